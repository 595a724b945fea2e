/* The kernel language: thread indices, barriers, warp collectives, device functions, launches. C++ alone. */
#ifndef HOSTCUDA_LANGUAGE_H
#define HOSTCUDA_LANGUAGE_H
#ifdef __cplusplus
#include <math.h>
#include <string.h>
#include <functional>
#include <tuple>

#define __global__
#define __device__
#define __host__
#define __constant__ const
/* one block at a time; an object of its own, so that ASan guards its ends */
#define __shared__ static
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)
#define __align__(n) __attribute__((aligned(n)))

#define HOSTCUDA_VECTORS(name, type) \
    struct alignas(2 * sizeof(type)) name##2 { type x, y; }; \
    struct name##3 { type x, y, z; }; \
    struct alignas(4 * sizeof(type)) name##4 { type x, y, z, w; }; \
    static inline name##2 make_##name##2(type x, type y) { return {x, y}; } \
    static inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
    static inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }
HOSTCUDA_VECTORS(float, float)
HOSTCUDA_VECTORS(int, int)
HOSTCUDA_VECTORS(uint, unsigned)

struct dim3 {
    unsigned x, y, z;
    dim3(unsigned a = 1, unsigned b = 1, unsigned c = 1) : x(a), y(b), z(c) {}
    dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
};
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
static const int warpSize = 32;

/* Where a thread waits, for messages: the line of the call. */
#define HOSTCUDA_HERE const char *file = __builtin_FILE(), int line = __builtin_LINE()
enum {
    HOSTCUDA_BARRIER, HOSTCUDA_SYNCWARP, HOSTCUDA_SHUFFLE, HOSTCUDA_VOTE, HOSTCUDA_MMA, HOSTCUDA_MMA_HALVES,
    HOSTCUDA_LDMATRIX
};
extern void *hostcuda_dynamic;
void hostcuda_barrier(const char *file, int line);
unsigned long long hostcuda_collective(int kind, unsigned mask, unsigned long long value, int from, const char *file,
                                       int line);
int hostcuda_lane(void);
cudaError_t hostcuda_queue(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared,
                           cudaStream_t stream, std::function<void()> body);
unsigned hostcuda_to_tf32(float value);
unsigned short hostcuda_to_bf16(float value);
void hostcuda_mma_m16n8k8_tf32(float d[4], const unsigned a[4], const unsigned b[2], HOSTCUDA_HERE);
void hostcuda_mma_m16n8k16_bf16(float d[4], const unsigned a[4], const unsigned b[2], HOSTCUDA_HERE);
void hostcuda_cp_async(void *shared, const void *global, int bytes, bool valid, HOSTCUDA_HERE);
void hostcuda_cp_async_commit(void);
void hostcuda_cp_async_wait(int n);
void hostcuda_ldmatrix_x4(float f[4], const float *row, HOSTCUDA_HERE);
void hostcuda_ldmatrix_x4_trans(unsigned r[4], const unsigned short *row, HOSTCUDA_HERE);

#define GCP_DYN_SHARED(T, name) T *name = static_cast<T *>(hostcuda_dynamic)
#define GCP_LAUNCH(kernel, grid, block, shared, ...) hostcuda_launch(#kernel, kernel, grid, block, shared, __VA_ARGS__)

/* Arguments are converted to the parameters' types and copied now; each thread gets copies of its own. */
template <class... P, class... A>
void hostcuda_launch(const char *name, void (*kernel)(P...), dim3 grid, dim3 block, size_t shared, cudaStream_t stream,
                     A &&...args)
{
    std::tuple<P...> values(std::forward<A>(args)...);
    hostcuda_queue(name, reinterpret_cast<const void *>(kernel), grid, block, shared, stream,
                   [=] { std::apply(kernel, values); });
}

static inline void __syncthreads(HOSTCUDA_HERE) { hostcuda_barrier(file, line); }
static inline void __syncwarp(unsigned mask = ~0u, HOSTCUDA_HERE)
{
    hostcuda_collective(HOSTCUDA_SYNCWARP, mask, 0, 0, file, line);
}
static inline void __threadfence(void) {}
static inline void __threadfence_block(void) {}
static inline unsigned __ballot_sync(unsigned mask, int p, HOSTCUDA_HERE)
{
    return static_cast<unsigned>(hostcuda_collective(HOSTCUDA_VOTE, mask, p != 0, 0, file, line));
}
static inline int __any_sync(unsigned mask, int p, HOSTCUDA_HERE) { return __ballot_sync(mask, p, file, line) != 0; }
static inline int __all_sync(unsigned mask, int p, HOSTCUDA_HERE) { return __ballot_sync(mask, !p, file, line) == 0; }

template <class T> static inline T hostcuda_shuffle(unsigned mask, T value, int from, const char *file, int line)
{
    static_assert(sizeof(T) <= 8, "shuffles move at most 8 bytes");
    unsigned long long bits = 0;
    memcpy(&bits, &value, sizeof value);
    bits = hostcuda_collective(HOSTCUDA_SHUFFLE, mask, bits, from, file, line);
    memcpy(&value, &bits, sizeof value);
    return value;
}
/* Segments of width lanes; a source outside of the own segment means the own value. */
template <class T> static inline T __shfl_sync(unsigned mask, T value, int from, int width = 32, HOSTCUDA_HERE)
{
    return hostcuda_shuffle(mask, value, (hostcuda_lane() & -width) | (from & (width - 1)), file, line);
}
template <class T> static inline T __shfl_xor_sync(unsigned mask, T value, int with, int width = 32, HOSTCUDA_HERE)
{
    int lane = hostcuda_lane(), from = lane ^ with;
    return hostcuda_shuffle(mask, value, from < (lane & -width) + width ? from : lane, file, line);
}
template <class T> static inline T __shfl_down_sync(unsigned mask, T value, unsigned by, int width = 32, HOSTCUDA_HERE)
{
    int lane = hostcuda_lane(), from = lane + static_cast<int>(by);
    return hostcuda_shuffle(mask, value, from < (lane & -width) + width ? from : lane, file, line);
}
template <class T> static inline T __shfl_up_sync(unsigned mask, T value, unsigned by, int width = 32, HOSTCUDA_HERE)
{
    int lane = hostcuda_lane(), from = lane - static_cast<int>(by);
    return hostcuda_shuffle(mask, value, from >= (lane & -width) ? from : lane, file, line);
}

template <class T> static inline T __ldg(const T *p) { return *p; }
static inline unsigned __float_as_uint(float v) { unsigned u; memcpy(&u, &v, 4); return u; }
static inline float __uint_as_float(unsigned u) { float v; memcpy(&v, &u, 4); return v; }
static inline unsigned __umulhi(unsigned a, unsigned b)
{
    return static_cast<unsigned>(static_cast<unsigned long long>(a) * b >> 32);
}
static inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
static inline float __fadd_rn(float a, float b) { return a + b; } /* with -ffp-contract=off: never part of an fma */
static inline float __fmul_rn(float a, float b) { return a * b; }
static inline float __fdividef(float a, float b) { return a / b; }     /* a card's is within 2 ulp */
static inline float hostcuda_rsqrtf(float v) { return 1.0f / sqrtf(v); }
#define rsqrtf hostcuda_rsqrtf                   /* a C library may have one of its own */
static inline int __popc(unsigned v) { return __builtin_popcount(v); }
static inline int __clz(int v) { return v ? __builtin_clz(static_cast<unsigned>(v)) : 32; }
static inline int __ffs(int v) { return __builtin_ffs(v); }
#define HOSTCUDA_MINMAX(T)                                  \
    static inline T min(T a, T b) { return b < a ? b : a; } \
    static inline T max(T a, T b) { return a < b ? b : a; }
HOSTCUDA_MINMAX(int) HOSTCUDA_MINMAX(unsigned) HOSTCUDA_MINMAX(long) HOSTCUDA_MINMAX(unsigned long)
HOSTCUDA_MINMAX(long long) HOSTCUDA_MINMAX(unsigned long long)
static inline float min(float a, float b) { return fminf(a, b); }
static inline float max(float a, float b) { return fmaxf(a, b); }
static inline double min(double a, double b) { return fmin(a, b); }
static inline double max(double a, double b) { return fmax(a, b); }
#define HOSTCUDA_ATOMIC(T) static inline T atomicAdd(T *p, T v) { T old = *p; *p = old + v; return old; }
HOSTCUDA_ATOMIC(int)
HOSTCUDA_ATOMIC(unsigned) HOSTCUDA_ATOMIC(unsigned long long) HOSTCUDA_ATOMIC(float) HOSTCUDA_ATOMIC(double)

    /* The toolkit's typed forms. */
    template <class T>
    static inline cudaError_t cudaMalloc(T **pointer, size_t size)
{
    return cudaMalloc(reinterpret_cast<void **>(pointer), size);
}
template <class T> static inline cudaError_t cudaMallocHost(T **pointer, size_t size)
{
    return cudaMallocHost(reinterpret_cast<void **>(pointer), size);
}
template <class T>
static inline cudaError_t cudaFuncSetAttribute(T *function, enum cudaFuncAttribute attribute, int value)
{
    return cudaFuncSetAttribute(reinterpret_cast<const void *>(function), attribute, value);
}
#endif
#endif /* HOSTCUDA_LANGUAGE_H */
