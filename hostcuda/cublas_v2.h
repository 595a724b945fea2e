/* cublas_v2.h - the part of cuBLAS that gcp_cuda.h uses, on the CPU; see cuda_runtime.h beside it. MIT licence, see
   gcp.h. Arguments are checked as cuBLAS checks them; the sums have one fixed order that is not cuBLAS's. */

#ifndef HOSTCUDA_CUBLAS_H
#define HOSTCUDA_CUBLAS_H
#include "cuda_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublasContext *cublasHandle_t;
typedef enum {
    CUBLAS_STATUS_SUCCESS = 0,
    CUBLAS_STATUS_NOT_INITIALIZED = 1,
    CUBLAS_STATUS_ALLOC_FAILED = 3,
    CUBLAS_STATUS_INVALID_VALUE = 7,
    CUBLAS_STATUS_ARCH_MISMATCH = 8,
    CUBLAS_STATUS_MAPPING_ERROR = 11,
    CUBLAS_STATUS_EXECUTION_FAILED = 13,
    CUBLAS_STATUS_INTERNAL_ERROR = 14,
    CUBLAS_STATUS_NOT_SUPPORTED = 15
} cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1, CUBLAS_OP_C = 2 } cublasOperation_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1, CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99 } cublasGemmAlgo_t;
typedef enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_PEDANTIC_MATH = 2, CUBLAS_TF32_TENSOR_OP_MATH = 3 } cublasMath_t;
typedef enum {
    CUBLAS_COMPUTE_32F = 68,
    CUBLAS_COMPUTE_32F_PEDANTIC = 69,
    CUBLAS_COMPUTE_32F_FAST_TF32 = 77
} cublasComputeType_t;
typedef enum cudaDataType_t { CUDA_R_32F = 0, CUDA_R_64F = 1, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType;

#define cublasCreate cublasCreate_v2
#define cublasDestroy cublasDestroy_v2
#define cublasGetVersion cublasGetVersion_v2
#define cublasSetStream cublasSetStream_v2
#define cublasSetWorkspace cublasSetWorkspace_v2
#define cublasSgemm cublasSgemm_v2
const char *cublasGetStatusString(cublasStatus_t status);
const char *cublasGetStatusName(cublasStatus_t status);
cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream); /* forgets the workspace, as cuBLAS does */
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                           int k, const float *alpha, const float *A, int lda, const float *B, int ldb,
                           const float *beta, float *C, int ldc);
cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo);
cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                         int m, int n, int k, const float *alpha, const float *A, int lda,
                                         long long strideA, const float *B, int ldb, long long strideB,
                                         const float *beta, float *C, int ldc, long long strideC, int batchCount);

#ifdef __cplusplus
}
#endif
#endif /* HOSTCUDA_CUBLAS_H */

/* ---- The implementation ------------------------------------------------------------------------------------------ */

#if defined(HOSTCUDA_IMPLEMENTATION) && !defined(HOSTCUDA_CUBLAS_DONE)
#define HOSTCUDA_CUBLAS_DONE

struct cublasContext {
    cudaStream_t stream = nullptr;
    void *workspace = nullptr;
    size_t size = 0;
    cublasMath_t math = CUBLAS_DEFAULT_MATH;
};

namespace hostcuda {
struct gemm {                                    /* column-major: C[m, n] = alpha op(A)[m, k] op(B)[k, n] + beta C */
    bool ta, tb, tf32;
    int m, n, k; float alpha; const void *a; int lda; const void *b; int ldb; float beta; void *c; int ldc;
    int parts = 1;                               /* of each sum */
    bool halves = false, to_halves = false;      /* a and b, and c, are bfloat16 */
    bool dense() const { return lda == (ta ? k : m) && ldb == (tb ? n : k) && ldc == m; }
};
typedef float gemm_v8 __attribute__((vector_size(32)));
enum { GEMM_M = 8, GEMM_N = 4 };

/* Panels of `width` rows of a matrix of rows x k, in each the rows of one k together; zeros fill the last panel. */
static float gemm_value(const void *from, ptrdiff_t i, bool halves)
{
    if (!halves) return static_cast<const float *>(from)[i];
    return __uint_as_float(static_cast<unsigned>(static_cast<const unsigned short *>(from)[i]) << 16);
}
static void gemm_pack(float *to, const void *from, int rows, int k, int width, ptrdiff_t row_step, ptrdiff_t k_step,
                      const gemm &g)
{
    for (int r0 = 0; r0 < rows; r0 += width)
        for (int l = 0; l < k; l++)
            for (int r = r0; r < r0 + width; r++) {
                float v = r < rows ? gemm_value(from, r * row_step + l * k_step, g.halves) : 0.0f;
                *to++ = g.tf32 ? __uint_as_float(hostcuda_to_tf32(v)) : v;
            }
}

/* How many parts a sum over k has. Their order depends on the room that there is and on whether the matrices are dense,
   as that of cuBLAS may: a caller that wants the same bits must not let it. */
static int gemm_parts(size_t workspace, bool dense)
{
    return (workspace >= 16u << 20 ? 8 : workspace >= 1u << 20 ? 4 : workspace >= 32u << 10 ? 2 : 1) + !dense;
}

/* In a part one product and one addition at a time; then alpha and beta. */
static void gemm_tile(const gemm &g, const float *a, const float *b, int i0, int j0)
{
    gemm_v8 sum[GEMM_N] = {};
    for (int p = 0; p < g.parts; p++) {
        gemm_v8 part[GEMM_N] = {};
        for (int l = static_cast<int>(1ll * g.k * p / g.parts), end = static_cast<int>(1ll * g.k * (p + 1) / g.parts);
             l < end; l++, a += GEMM_M, b += GEMM_N) {
            gemm_v8 row;
            memcpy(&row, a, sizeof row);
            for (int j = 0; j < GEMM_N; j++) part[j] += row * b[j];
        }
        for (int j = 0; j < GEMM_N; j++) sum[j] += part[j];
    }
    for (int j = 0; j < GEMM_N && j0 + j < g.n; j++)
        for (int i = 0; i < GEMM_M && i0 + i < g.m; i++) {
            const ptrdiff_t at = (i0 + i) + static_cast<ptrdiff_t>(j0 + j) * g.ldc;
            float v = g.alpha * sum[j][i];
            if (g.beta != 0.0f) v += g.beta * gemm_value(g.c, at, g.to_halves);          /* else C is not read */
            if (g.to_halves) static_cast<unsigned short *>(g.c)[at] = hostcuda_to_bf16(v);
            else static_cast<float *>(g.c)[at] = v;
        }
}

static void gemm_run(const gemm &g)
{
    size_t k = static_cast<size_t>(g.k);
    std::vector<float> a((static_cast<size_t>(g.m) + GEMM_M - 1) / GEMM_M * GEMM_M * k);
    std::vector<float> b((static_cast<size_t>(g.n) + GEMM_N - 1) / GEMM_N * GEMM_N * k);
    gemm_pack(a.data(), g.a, g.m, g.k, GEMM_M, g.ta ? g.lda : 1, g.ta ? 1 : g.lda, g);
    gemm_pack(b.data(), g.b, g.n, g.k, GEMM_N, g.tb ? 1 : g.ldb, g.tb ? g.ldb : 1, g);
    for (int j = 0; j < g.n; j += GEMM_N)
        for (int i = 0; i < g.m; i += GEMM_M)
            gemm_tile(g, a.data() + static_cast<size_t>(i) * k, b.data() + static_cast<size_t>(j) * k, i, j);
}

static cublasStatus_t gemm_queue(cublasHandle_t handle, const gemm &g, long long stride_a, long long stride_b,
                                 long long stride_c, int count)
{
    guard hold(device.lock);
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (g.m < 0 || g.n < 0 || g.k < 0 || count < 0 || g.lda < max(1, g.ta ? g.k : g.m) ||
        g.ldb < max(1, g.tb ? g.n : g.k) || g.ldc < max(1, g.m))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (!g.m || !g.n || !count) return CUBLAS_STATUS_SUCCESS;
    void *workspace = handle->workspace;
    size_t size = handle->size;
    cudaError_t e = enqueue(handle->stream, [=] {
        if (workspace) memset(workspace, 0xFF, size); /* whatever lies there is lost, as it may be */
        gemm one = g;
        one.parts = gemm_parts(size, g.dense());
        for (int i = 0; i < count; i++) {
            one.a = static_cast<const float *>(g.a) + i * stride_a;
            one.b = static_cast<const float *>(g.b) + i * stride_b;
            one.c = static_cast<float *>(g.c) + i * stride_c;
            gemm_run(one);
        }
    });
    return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
} /* namespace hostcuda */

extern "C" {
#define HOSTCUDA_STATUS(X)                                                          \
    X(CUBLAS_STATUS_SUCCESS, "success")                                             \
    X(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized")             \
    X(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed")                 \
    X(CUBLAS_STATUS_INVALID_VALUE, "an unsupported value or parameter was passed")  \
    X(CUBLAS_STATUS_ARCH_MISMATCH, "a feature absent from the device architecture") \
    X(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory space failed")          \
    X(CUBLAS_STATUS_EXECUTION_FAILED, "the GPU program failed to execute")          \
    X(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed")                 \
    X(CUBLAS_STATUS_NOT_SUPPORTED, "the functionality requested is not supported")
#define HOSTCUDA_STATUS_NAME(name, text) case name: return #name;
#define HOSTCUDA_STATUS_TEXT(name, text) case name: return text;
const char *cublasGetStatusName(cublasStatus_t status)
{
    switch (status) {
        HOSTCUDA_STATUS(HOSTCUDA_STATUS_NAME)
    }
    return "unknown status";
}
const char *cublasGetStatusString(cublasStatus_t status)
{
    switch (status) {
        HOSTCUDA_STATUS(HOSTCUDA_STATUS_TEXT)
    }
    return "unknown status";
}

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    HOSTCUDA_ENTER;
    *handle = create<cublasContext>();
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    HOSTCUDA_ENTER;
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    destroy(handle);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int *version)
{
    (void)handle;
    *version = 130000;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->stream = stream;
    handle->workspace = nullptr;
    handle->size = 0;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void *workspace, size_t size)
{
    HOSTCUDA_ENTER;
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (reinterpret_cast<uintptr_t>(workspace) % 256 || (workspace && size && place_of(workspace, size) != DEVICE))
        return CUBLAS_STATUS_INVALID_VALUE;
    handle->workspace = workspace;
    handle->size = size;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    HOSTCUDA_ENTER;
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    handle->math = mode;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSgemmStridedBatched(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb,
                                         int m, int n, int k, const float *alpha, const float *A, int lda,
                                         long long strideA, const float *B, int ldb, long long strideB,
                                         const float *beta, float *C, int ldc, long long strideC, int batchCount)
{
    HOSTCUDA_ENTER;
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    return gemm_queue(handle, {transa != CUBLAS_OP_N, transb != CUBLAS_OP_N, handle->math == CUBLAS_TF32_TENSOR_OP_MATH,
                               m, n, k, *alpha, A, lda, B, ldb, *beta, C, ldc}, strideA, strideB, strideC, batchCount);
}

cublasStatus_t cublasSgemm(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                           int k, const float *alpha, const float *A, int lda, const float *B, int ldb,
                           const float *beta, float *C, int ldc)
{
    return cublasSgemmStridedBatched(handle, transa, transb, m, n, k, alpha, A, lda, 0, B, ldb, 0, beta, C, ldc, 0, 1);
}

cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t transa, cublasOperation_t transb, int m, int n,
                            int k, const void *alpha, const void *A, cudaDataType Atype, int lda, const void *B,
                            cudaDataType Btype, int ldb, const void *beta, void *C, cudaDataType Ctype, int ldc,
                            cublasComputeType_t compute, cublasGemmAlgo_t algo)
{
    HOSTCUDA_ENTER;
    (void)algo;
    if (!known(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!alpha || !beta) return CUBLAS_STATUS_INVALID_VALUE;
    const bool halves = Atype == CUDA_R_16BF;
    if (Atype != Btype || (!halves && (Atype != CUDA_R_32F || Ctype != CUDA_R_32F)) ||
        (Ctype != CUDA_R_32F && Ctype != CUDA_R_16BF))
        return CUBLAS_STATUS_NOT_SUPPORTED;
    if (compute != CUBLAS_COMPUTE_32F && compute != CUBLAS_COMPUTE_32F_PEDANTIC &&
        compute != CUBLAS_COMPUTE_32F_FAST_TF32)
        return CUBLAS_STATUS_NOT_SUPPORTED;
    bool tf32 = compute == CUBLAS_COMPUTE_32F_FAST_TF32 ||
                (compute == CUBLAS_COMPUTE_32F && handle->math == CUBLAS_TF32_TENSOR_OP_MATH);
    gemm g = { transa != CUBLAS_OP_N, transb != CUBLAS_OP_N, tf32 && !halves, m, n, k,
               *static_cast<const float *>(alpha), A, lda, B, ldb, *static_cast<const float *>(beta), C, ldc };
    g.halves = halves; g.to_halves = Ctype == CUDA_R_16BF;
    return gemm_queue(handle, g, 0, 0, 0, 1);
}
} /* extern "C" */
#endif
