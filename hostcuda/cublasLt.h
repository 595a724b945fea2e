/* cublasLt.h - the part of cuBLASLt that gcp_cuda.h uses, on the CPU; see cublas_v2.h beside it. MIT licence, see
   gcp.h. An algorithm is chosen for matrices (how long their rows are, how far apart they lie, where they begin), and
   then runs on others of the same shape: its sums keep their order, and what it needs of their alignment is checked. */

#ifndef HOSTCUDA_CUBLASLT_H
#define HOSTCUDA_CUBLASLT_H
#include "cublas_v2.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct cublasLtContext *cublasLtHandle_t;         /* a cublasHandle_t is one */
typedef struct { uint64_t rows, columns; int64_t ld; int type; } cublasLtMatrixLayoutOpaque_t;
typedef struct { int compute, scale, transpose[2]; } cublasLtMatmulDescOpaque_t;
typedef struct { uint64_t workspace; uint32_t alignment[4]; } cublasLtMatmulPreferenceOpaque_t;
typedef cublasLtMatrixLayoutOpaque_t *cublasLtMatrixLayout_t;
typedef cublasLtMatmulDescOpaque_t *cublasLtMatmulDesc_t;
typedef cublasLtMatmulPreferenceOpaque_t *cublasLtMatmulPreference_t;
typedef struct { uint64_t data[8]; } cublasLtMatmulAlgo_t;
typedef struct {
    cublasLtMatmulAlgo_t algo;
    size_t workspaceSize;
    cublasStatus_t state;
    float wavesCount;
    int reserved[4];
} cublasLtMatmulHeuristicResult_t;
typedef enum { CUBLASLT_MATMUL_DESC_TRANSA = 3, CUBLASLT_MATMUL_DESC_TRANSB = 4 } cublasLtMatmulDescAttributes_t;
typedef enum {
    CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES = 1,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES = 5,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES = 6,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES = 7,
    CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES = 8
} cublasLtMatmulPreferenceAttributes_t;

cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows,
                                        uint64_t columns, int64_t ld);
cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t compute, cudaDataType scale);
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size);
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference);
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size);
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
                                              cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found);
cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc,
                              const void *beta, const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t size, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif /* HOSTCUDA_CUBLASLT_H */

/* ---- The implementation ------------------------------------------------------------------------------------------ */

#if defined(HOSTCUDA_IMPLEMENTATION) && !defined(HOSTCUDA_CUBLASLT_DONE)
#define HOSTCUDA_CUBLASLT_DONE

namespace hostcuda {
/* What an algorithm is: the parts of its sums, the alignment that it needs, the product that it is for. */
enum { ALGO_PARTS, ALGO_ALIGNMENT, ALGO_SHAPE, ALGO_WORKSPACE };

static bool known_lt(cublasLtHandle_t handle) { return known(reinterpret_cast<cublasHandle_t>(handle)); }
static bool layout_ok(const cublasLtMatrixLayoutOpaque_t *l)
{
    return l && l->rows && l->columns && l->rows <= INT32_MAX && l->columns <= INT32_MAX && l->ld <= INT32_MAX &&
           l->ld >= static_cast<int64_t>(l->rows) && (l->type == CUDA_R_32F || l->type == CUDA_R_16BF);
}
static uint64_t shape_of(const cublasLtMatmulDescOpaque_t *d, const cublasLtMatrixLayoutOpaque_t *a,
                         const cublasLtMatrixLayoutOpaque_t *b)
{
    uint64_t h = static_cast<uint64_t>(d->compute);
    for (uint64_t x : { a->rows, a->columns, b->rows, b->columns, static_cast<uint64_t>(d->transpose[0]),
                        static_cast<uint64_t>(d->transpose[1]), static_cast<uint64_t>(a->type) })
        h = (h ^ x) * 0x9E3779B185EBCA87u;
    return h;
}
/* Whether the shapes are those of one product: C[m, n] = op(A)[m, k] op(B)[k, n]; and the types some that there are. */
static bool product_ok(const cublasLtMatmulDescOpaque_t *d, const cublasLtMatrixLayoutOpaque_t *a,
                       const cublasLtMatrixLayoutOpaque_t *b, const cublasLtMatrixLayoutOpaque_t *c)
{
    if (!d || !layout_ok(a) || !layout_ok(b) || !layout_ok(c) || a->type != b->type) return false;
    if (a->type == CUDA_R_16BF ? d->compute != CUBLAS_COMPUTE_32F : c->type == CUDA_R_16BF) return false;
    uint64_t m = d->transpose[0] ? a->columns : a->rows, k = d->transpose[0] ? a->rows : a->columns;
    return k == (d->transpose[1] ? b->columns : b->rows) && m == c->rows &&
           c->columns == (d->transpose[1] ? b->rows : b->columns);
}
static bool aligned(const void *p, const cublasLtMatrixLayoutOpaque_t *l, uint64_t alignment)
{
    const uint64_t width = l->type == CUDA_R_16BF ? 2 : 4;
    return reinterpret_cast<uintptr_t>(p) % alignment == 0 && static_cast<uint64_t>(l->ld) * width % alignment == 0;
}
} /* namespace hostcuda */

extern "C" {
cublasStatus_t cublasLtMatrixLayoutInit(cublasLtMatrixLayout_t layout, cudaDataType type, uint64_t rows,
                                        uint64_t columns, int64_t ld)
{
    *layout = { rows, columns, ld, type };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescInit(cublasLtMatmulDesc_t desc, cublasComputeType_t compute, cudaDataType scale)
{
    *desc = { compute, scale, { CUBLAS_OP_N, CUBLAS_OP_N } };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t desc, cublasLtMatmulDescAttributes_t attribute,
                                              const void *value, size_t size)
{
    if (size != sizeof(int32_t)) return CUBLAS_STATUS_INVALID_VALUE;
    memcpy(&desc->transpose[attribute - CUBLASLT_MATMUL_DESC_TRANSA], value, size);
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceInit(cublasLtMatmulPreference_t preference)
{
    *preference = { 0, { 256, 256, 256, 256 } };
    return CUBLAS_STATUS_SUCCESS;
}
cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t preference,
                                                    cublasLtMatmulPreferenceAttributes_t attribute, const void *value,
                                                    size_t size)
{
    bool room = attribute == CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES;
    if (size != (room ? sizeof(uint64_t) : sizeof(uint32_t))) return CUBLAS_STATUS_INVALID_VALUE;
    if (room) memcpy(&preference->workspace, value, size);
    else memcpy(&preference->alignment[attribute - CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES], value, size);
    return CUBLAS_STATUS_SUCCESS;
}

/* The order of sums depends on all that is told: the shape, the leading dimensions, the alignment, the room. */
cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc,
                                              cublasLtMatrixLayout_t A, cublasLtMatrixLayout_t B,
                                              cublasLtMatrixLayout_t C, cublasLtMatrixLayout_t D,
                                              cublasLtMatmulPreference_t preference, int wanted,
                                              cublasLtMatmulHeuristicResult_t results[], int *found)
{
    HOSTCUDA_ENTER;
    using namespace hostcuda;
    if (!known_lt(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!product_ok(desc, A, B, C) || !layout_ok(D) || !preference || wanted < 1) return CUBLAS_STATUS_INVALID_VALUE;
    uint32_t alignment = 16;
    for (uint32_t given : preference->alignment) alignment = given < alignment ? given : alignment;
    for (const auto *l : { A, B, C, D }) if (!aligned(nullptr, l, alignment)) alignment = 2;
    bool dense = true;
    for (const auto *l : { A, B, C, D }) dense &= l->ld == static_cast<int64_t>(l->rows);
    memset(results, 0, sizeof *results);
    results->algo.data[ALGO_PARTS] =
        static_cast<uint64_t>(gemm_parts(preference->workspace, dense)) + (alignment < 16 ? 2 : 0);
    results->algo.data[ALGO_ALIGNMENT] = alignment;
    results->algo.data[ALGO_SHAPE] = shape_of(desc, A, B);
    results->algo.data[ALGO_WORKSPACE] = results->workspaceSize = preference->workspace;
    *found = 1;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t handle, cublasLtMatmulDesc_t desc, const void *alpha, const void *A,
                              cublasLtMatrixLayout_t Adesc, const void *B, cublasLtMatrixLayout_t Bdesc,
                              const void *beta, const void *C, cublasLtMatrixLayout_t Cdesc, void *D,
                              cublasLtMatrixLayout_t Ddesc, const cublasLtMatmulAlgo_t *algo, void *workspace,
                              size_t size, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    using namespace hostcuda;
    if (!known_lt(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
    if (!alpha || !beta || !algo || C != D || !product_ok(desc, Adesc, Bdesc, Ddesc) || Cdesc->ld != Ddesc->ld ||
        algo->data[ALGO_SHAPE] != shape_of(desc, Adesc, Bdesc) || size < algo->data[ALGO_WORKSPACE] ||
        !aligned(A, Adesc, algo->data[ALGO_ALIGNMENT]) || !aligned(B, Bdesc, algo->data[ALGO_ALIGNMENT]) ||
        !aligned(D, Ddesc, algo->data[ALGO_ALIGNMENT]) || reinterpret_cast<uintptr_t>(workspace) % 16 ||
        (size && place_of(workspace, size) != DEVICE))
        return CUBLAS_STATUS_INVALID_VALUE;
    if (cudaPeekAtLastError() != cudaSuccess) return CUBLAS_STATUS_EXECUTION_FAILED; /* whosever it is: cuBLAS does */
    gemm g = { desc->transpose[0] != CUBLAS_OP_N, desc->transpose[1] != CUBLAS_OP_N,
               desc->compute == CUBLAS_COMPUTE_32F_FAST_TF32, static_cast<int>(Ddesc->rows),
               static_cast<int>(Ddesc->columns),
               static_cast<int>(desc->transpose[0] ? Adesc->rows : Adesc->columns), *static_cast<const float *>(alpha),
               A, static_cast<int>(Adesc->ld), B, static_cast<int>(Bdesc->ld), *static_cast<const float *>(beta), D,
               static_cast<int>(Ddesc->ld) };
    g.halves = Adesc->type == CUDA_R_16BF; g.to_halves = Ddesc->type == CUDA_R_16BF;
    /* One that takes any alignment may use what it finds, operand by operand: then its sums have another order. */
    g.parts = static_cast<int>(algo->data[ALGO_PARTS]);
    if (algo->data[ALGO_ALIGNMENT] < 16)
        g.parts += aligned(A, Adesc, 16) + aligned(B, Bdesc, 16) + aligned(D, Ddesc, 16);
    cudaError_t e = enqueue(stream, [=] {
        if (workspace) memset(workspace, 0xFF, size);    /* whatever lies there is lost, as it may be */
        gemm_run(g);
    });
    return e == cudaSuccess ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_EXECUTION_FAILED;
}
} /* extern "C" */
#endif
