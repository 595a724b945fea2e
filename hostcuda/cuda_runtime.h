/* cuda_runtime.h - CUDA kernels and the CUDA runtime on the CPU, to test and to debug without a GPU. MIT licence, see
   gcp.h.

   Put this folder on the include path instead of the CUDA toolkit, and do this in *one* C++17 file:
       #define HOSTCUDA_IMPLEMENTATION
       #include "cublas_v2.h"                    // includes this header
       #include "kernels.cu"                     // kernels are plain C++ functions now
   Two spellings differ from ordinary CUDA: GCP_LAUNCH(kernel, grid, block, shared, stream, ...) for
   kernel<<<...>>>(...), and GCP_DYN_SHARED(type, name) for extern __shared__. PTX goes into wrappers that have a twin
   here (hostcuda_cp_async...).

   What runs: every CUDA thread of a block is a fiber that runs until it waits (__syncthreads, a warp collective) or
   ends. Which goes on then is the order: forward, reverse or shuffled. What a missing barrier lets through in one
   order, another shows. Queued work of streams runs only when the host waits for something, in a legal order drawn from
   a seed. One thing runs at a time, under one lock; host threads may share the device.

   What it does not show: races inside a stretch without waits other than by order, weak memory ordering, timing,
   occupancy. Environment: HOSTCUDA_ORDER=forward|reverse|<seed>, HOSTCUDA_STREAMS=<seed>. */

#ifndef HOSTCUDA_RUNTIME_H
#define HOSTCUDA_RUNTIME_H
#define HOSTCUDA 1
#define CUDART_VERSION 13000

#include <stddef.h>

#ifdef __cplusplus
#define HOSTCUDA_OR(value) = value               /* default arguments, as in the toolkit's own header */
extern "C" {
#else
#define HOSTCUDA_OR(value)
#endif

#define HOSTCUDA_ERRORS(X)                                                                                             \
    X(cudaSuccess, 0, "no error")                                                                                      \
    X(cudaErrorInvalidValue, 1, "invalid argument")                                                                    \
    X(cudaErrorMemoryAllocation, 2, "out of memory")                                                                   \
    X(cudaErrorInitializationError, 3, "initialization error")                                                         \
    X(cudaErrorInvalidConfiguration, 9, "invalid configuration argument")                                              \
    X(cudaErrorInvalidMemcpyDirection, 21, "invalid copy direction for memcpy")                                        \
    X(cudaErrorInsufficientDriver, 35, "CUDA driver version is insufficient for CUDA runtime version")                 \
    X(cudaErrorInvalidDeviceFunction, 98, "invalid device function")                                                   \
    X(cudaErrorNoDevice, 100, "no CUDA-capable device is detected") X(cudaErrorInvalidDevice, 101,                     \
                                                                      "invalid device ordinal")                        \
        X(cudaErrorInvalidResourceHandle, 400, "invalid resource handle") X(                                           \
            cudaErrorIllegalState, 401,                                                                                \
            "the operation cannot be performed in the present state") X(cudaErrorNotReady, 600, "device not ready")    \
            X(cudaErrorIllegalAddress, 700, "an illegal memory access was encountered") X(                             \
                cudaErrorLaunchOutOfResources, 701,                                                                    \
                "too many resources requested for launch") X(cudaErrorMisalignedAddress, 716, "misaligned address")    \
                X(cudaErrorLaunchFailure, 719, "unspecified launch failure") X(cudaErrorNotSupported, 801,             \
                                                                               "operation not supported")              \
                    X(cudaErrorStreamCaptureUnsupported, 900, "operation not permitted when stream is capturing")      \
                        X(cudaErrorStreamCaptureInvalidated, 901,                                                      \
                          "operation failed due to a previous "                                                        \
                          "error during capture") X(cudaErrorStreamCaptureMerge, 902,                                  \
                                                    "operation would result in a merge of separate capture sequences") \
                            X(cudaErrorStreamCaptureUnmatched, 903,                                                    \
                              "capture was not ended in the same stream as it began")                                  \
                                X(cudaErrorStreamCaptureUnjoined, 904, "capturing stream has unjoined work") X(        \
                                    cudaErrorStreamCaptureIsolation, 905,                                              \
                                    "dependency created on uncaptured work in another stream")                         \
                                    X(cudaErrorStreamCaptureImplicit, 906,                                             \
                                      "operation would make the legacy stream depend on a capturing blocking stream")  \
                                        X(cudaErrorCapturedEvent, 907,                                                 \
                                          "operation not permitted on an event last recorded in a capturing stream")   \
                                            X(cudaErrorStreamCaptureWrongThread, 908,                                  \
                                              "attempt to terminate a thread-local capture sequence from another "     \
                                              "thread") X(cudaErrorUnknown, 999, "unknown error")
#define HOSTCUDA_ENUM(name, value, text) name = value,
typedef enum cudaError { HOSTCUDA_ERRORS(HOSTCUDA_ENUM) hostcudaErrorMax = 10000 } cudaError_t;

enum cudaMemcpyKind {
    cudaMemcpyHostToHost,
    cudaMemcpyHostToDevice,
    cudaMemcpyDeviceToHost,
    cudaMemcpyDeviceToDevice,
    cudaMemcpyDefault
};
enum cudaStreamCaptureMode {
    cudaStreamCaptureModeGlobal,
    cudaStreamCaptureModeThreadLocal,
    cudaStreamCaptureModeRelaxed
};
enum cudaStreamCaptureStatus {
    cudaStreamCaptureStatusNone,
    cudaStreamCaptureStatusActive,
    cudaStreamCaptureStatusInvalidated
};
enum cudaFuncAttribute {
    cudaFuncAttributeMaxDynamicSharedMemorySize = 8,
    cudaFuncAttributePreferredSharedMemoryCarveout = 9
};
enum cudaDeviceAttr {
    cudaDevAttrMaxThreadsPerBlock = 1,
    cudaDevAttrMaxSharedMemoryPerBlock = 8,
    cudaDevAttrWarpSize = 10,
    cudaDevAttrMultiProcessorCount = 16,
    cudaDevAttrL2CacheSize = 38,
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
#define cudaStreamDefault 0x00
#define cudaStreamNonBlocking 0x01
#define cudaEventDefault 0x00
#define cudaEventBlockingSync 0x01
#define cudaEventDisableTiming 0x02
#define cudaHostAllocDefault 0x00
#define cudaHostAllocPortable 0x01
#define cudaHostAllocMapped 0x02
#define cudaHostAllocWriteCombined 0x04

typedef struct CUstream_st *cudaStream_t;
typedef struct CUevent_st *cudaEvent_t;
typedef struct CUgraph_st *cudaGraph_t;
typedef struct CUgraphExec_st *cudaGraphExec_t;

struct cudaDeviceProp {
    char name[256];
    size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor, totalConstMem;
    int regsPerBlock, warpSize, maxThreadsPerBlock, maxThreadsDim[3], maxGridSize[3], major, minor, multiProcessorCount,
        l2CacheSize;
    int maxThreadsPerMultiProcessor, memoryBusWidth, asyncEngineCount, unifiedAddressing, concurrentKernels, ECCEnabled,
        integrated;
};

enum cudaMemoryType {
    cudaMemoryTypeUnregistered = 0, cudaMemoryTypeHost = 1, cudaMemoryTypeDevice = 2, cudaMemoryTypeManaged = 3
};
struct cudaPointerAttributes {
    enum cudaMemoryType type;
    int device;
    void *devicePointer, *hostPointer;
};

const char *cudaGetErrorName(cudaError_t error);
const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetLastError(void);
cudaError_t cudaPeekAtLastError(void);
cudaError_t cudaGetDeviceCount(int *count);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaGetDevice(int *device);
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int device);
cudaError_t cudaDeviceSynchronize(void);
cudaError_t cudaRuntimeGetVersion(int *version);
cudaError_t cudaDriverGetVersion(int *version);
cudaError_t cudaMalloc(void **pointer, size_t size);
cudaError_t cudaFree(void *pointer);
cudaError_t cudaMallocHost(void **pointer, size_t size);
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags);
cudaError_t cudaFreeHost(void *pointer);
cudaError_t cudaMemGetInfo(size_t *available, size_t *total);
cudaError_t cudaMemcpy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind,
                            cudaStream_t stream HOSTCUDA_OR(0));
cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream HOSTCUDA_OR(0));
cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p);
cudaError_t cudaMemset(void *to, int value, size_t count);
cudaError_t cudaMemsetAsync(void *to, int value, size_t count, cudaStream_t stream HOSTCUDA_OR(0));
cudaError_t cudaStreamCreate(cudaStream_t *stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags HOSTCUDA_OR(0));
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *graph);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status);
cudaError_t cudaEventCreate(cudaEvent_t *event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream HOSTCUDA_OR(0));
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventQuery(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t start, cudaEvent_t stop);
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph,
                                          unsigned long long flags HOSTCUDA_OR(0));
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec);
cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value);

/* The emulation's own controls. */
void hostcuda_order(int kind, unsigned seed);    /* of threads and blocks: 0 forward, 1 reverse, 2 shuffled */
/* 0: all work runs when issued; else the order of a draw, when waited for */
void hostcuda_streams(unsigned seed);
void hostcuda_capacity(size_t bytes);            /* of the device (0: 16 GiB); hostcuda_high_bytes starts anew */
void hostcuda_fail_nth(int n);                   /* the n-th next allocation fails; 0: none does */
size_t hostcuda_live_bytes(void);                /* allocated by cudaMalloc, as asked for */
size_t hostcuda_high_bytes(void);                /* the most of that */
int hostcuda_live_count(void);                   /* allocations, on the device and pinned */
int hostcuda_live_handles(void);                 /* streams, events, graphs, cuBLAS handles */
const char *hostcuda_message(void);              /* of the last failed kernel: where, and which threads */
unsigned long long hostcuda_launches(void);      /* kernels run */
unsigned long long hostcuda_pageable(void);      /* copies to the device before which a driver may wait: not pinned */
/* Bank conflicts of what a warp's lanes do at once: wavefronts that cp.async's stores and ldmatrix's reads take, and
   the fewest that could move as many bytes. Counted from this call on, which starts them anew. */
typedef struct hostcuda_banks { unsigned long long stores, stores_least, reads, reads_least; } hostcuda_banks;
void hostcuda_count_banks(void);
hostcuda_banks hostcuda_banks_counted(void);

#ifdef __cplusplus
}
#endif

/* ---- The kernel language ----------------------------------------------------------------------------------------- */

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
enum { HOSTCUDA_BARRIER, HOSTCUDA_SYNCWARP, HOSTCUDA_SHUFFLE, HOSTCUDA_VOTE, HOSTCUDA_MMA, HOSTCUDA_LDMATRIX };
extern void *hostcuda_dynamic;
void hostcuda_barrier(const char *file, int line);
unsigned long long hostcuda_collective(int kind, unsigned mask, unsigned long long value, int from, const char *file,
                                       int line);
int hostcuda_lane(void);
cudaError_t hostcuda_queue(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared,
                           cudaStream_t stream, std::function<void()> body);
unsigned hostcuda_to_tf32(float value);
void hostcuda_mma_m16n8k8_tf32(float d[4], const unsigned a[4], const unsigned b[2], HOSTCUDA_HERE);
void hostcuda_cp_async(void *shared, const void *global, int bytes, bool valid, HOSTCUDA_HERE);
void hostcuda_cp_async_commit(void);
void hostcuda_cp_async_wait(int n);
void hostcuda_ldmatrix_x4(float f[4], const float *row, HOSTCUDA_HERE);

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
#endif /* HOSTCUDA_RUNTIME_H */

/* ---- The implementation ------------------------------------------------------------------------------------------ */

#if defined(HOSTCUDA_IMPLEMENTATION) && !defined(HOSTCUDA_IMPLEMENTATION_DONE)
#define HOSTCUDA_IMPLEMENTATION_DONE
#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>
#include <sys/mman.h>

#ifdef __has_feature
#define HOSTCUDA_HAS(sanitizer) __has_feature(sanitizer)
#else
#define HOSTCUDA_HAS(sanitizer) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HOSTCUDA_HAS(address_sanitizer)
#define HOSTCUDA_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__) || HOSTCUDA_HAS(thread_sanitizer)
#define HOSTCUDA_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
#ifndef HOSTCUDA_STACK                           /* bytes of a CUDA thread's stack */
#ifdef HOSTCUDA_ASAN
#define HOSTCUDA_STACK (256 << 10)
#else
#define HOSTCUDA_STACK (64 << 10)
#endif
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
void *hostcuda_dynamic;

/* hostcuda_switch(&from, to) saves the registers that a call must keep on this stack, its top in from, and goes on with
 * those on the other stack. A new stack holds zeros and the address to start at, as if it had once called. */
#if defined(__x86_64__) && !defined(HOSTCUDA_UCONTEXT)
enum { HOSTCUDA_FRAME = 8, HOSTCUDA_START = 6 };
__asm__(".text\n.globl hostcuda_switch\nhostcuda_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#elif defined(__aarch64__) && !defined(HOSTCUDA_UCONTEXT)
enum { HOSTCUDA_FRAME = 20, HOSTCUDA_START = 11 };
__asm__(
    ".text\n.globl hostcuda_switch\nhostcuda_switch:\n"
    "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\nmov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n");
#else
#define HOSTCUDA_UCONTEXT_USED 1
#include <ucontext.h>
#endif
extern "C" void hostcuda_switch(void **from, void *to) __asm__("hostcuda_switch");

namespace hostcuda {

struct fiber {
    void *top = nullptr;                         /* of its stack while it does not run */
    char *stack = nullptr;                       /* the lowest byte; below it a page that may not be touched */
    const void *bottom = nullptr; size_t size = 0; void *shadow = nullptr; /* what sanitizers want to know */
#ifdef HOSTCUDA_UCONTEXT_USED
    ucontext_t context;
#endif
};
struct copy { char *to; unsigned char data[16]; int bytes, group; }; /* a cp.async under way */
struct cuda_thread {
    fiber *on = nullptr;                         /* where it waits; NULL before it starts */
    const char *file = nullptr; int line = 0, kind = 0; unsigned mask = 0; /* what it waits for */
    int groups = 0; size_t first = 0; std::vector<copy> copies;
    size_t stored = 0;                           /* cp.async of this thread in this block, where banks are counted */
};
/* What the lanes of a warp stored by their n-th cp.async. */
struct store { uintptr_t at[32]; unsigned lanes; int bytes; };
/* Bit l of each mask stands for lane l. A lane is ready (not started, or released), waiting in a collective, at the
 * barrier, running, or no longer live. */
struct warp {
    unsigned live, ready, waiting, barrier, mask;
    int kind; bool mixed;                        /* the kind and mask of all that wait, unless mixed */
    unsigned long long in[32], out[32]; int from[32];
    alignas(32) float a[16][8], b[8][8], p[16][8];
    /* of ldmatrix: what the lanes name, and what lies there when all have come */
    const float *rows[32]; float fours[32][4];
    std::vector<store> stores;                   /* of this block, where banks are counted */
};

/* The block that runs, and where in it. */
static struct {
    const char *name; const std::function<void()> *body;
    warp warps[32], *w; unsigned active;         /* active: the warps with ready lanes */
    cuda_thread threads[1024]; uint3 index[1024];
    unsigned lane, count, live, arrived;         /* count: threads of a block; arrived: at the barrier */
    cuda_thread *current, *barrier;              /* barrier: the first that arrived */
    unsigned long long blocks, left, block, step; size_t shared;
    fiber *on, host, *before; std::vector<std::unique_ptr<fiber>> fibers; std::vector<fiber *> idle;
    int order; unsigned long long draw; bool failed; char message[640];
    bool banking; hostcuda_banks banks;
} run;

static unsigned draw(unsigned long long *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(*state >> 33);
}

/* ---- Banks */

/* What the memory serves at once: as many lanes, side by side, as 128 bytes are; different words in one of 32 banks
   come one after
 * the other. */
static void wavefronts(const uintptr_t *at, unsigned lanes, int bytes, unsigned long long *taken,
                       unsigned long long *least)
{
    for (int first = 0, group = 128 / bytes; first < 32; first += group) {
        uintptr_t words[32][32];
        int count[32] = {}, most = 0;
        for (int l = first; l < first + group; l++)
            for (int b = 0; lanes >> l & 1 && b < bytes / 4; b++) {
                uintptr_t word = at[l] / 4 + static_cast<uintptr_t>(b);
                int bank = static_cast<int>(word % 32), i = 0;
                while (i < count[bank] && words[bank][i] != word) i++;
                if (i == count[bank]) words[bank][count[bank]++] = word;
                if (count[bank] > most) most = count[bank];
            }
        *taken += static_cast<unsigned long long>(most);
        *least += most > 0;
    }
}

static void count_stores(warp *w)                /* the block is done */
{
    for (const store &s : w->stores) wavefronts(s.at, s.lanes, s.bytes, &run.banks.stores, &run.banks.stores_least);
    w->stores.clear();
}

/* ---- Fibers */

static void work(void);

static void landed(void)                         /* the first thing after every switch, on the stack switched to */
{
#ifdef HOSTCUDA_ASAN
    const void *bottom; size_t size;
    __sanitizer_finish_switch_fiber(run.on->shadow, &bottom, &size);
    if (run.before == &run.host) { run.host.bottom = bottom; run.host.size = size; }
#endif
}
static void start(void) { landed(); work(); }

static void switch_to(fiber *to)
{
    fiber *from = run.before = run.on;
    run.on = to;
#ifdef HOSTCUDA_ASAN
    __sanitizer_start_switch_fiber(&from->shadow, to->bottom, to->size);
#elif defined(HOSTCUDA_TSAN)
    __tsan_switch_to_fiber(to->shadow, 0);
#endif
#ifdef HOSTCUDA_UCONTEXT_USED
    swapcontext(&from->context, &to->context);
#else
    hostcuda_switch(&from->top, to->top);
#endif
    landed();
}

/* The stack as it is before the first switch to it, whatever was on it. Tops differ in their place within a page, or
   all
 * stacks would compete for the same lines of the cache. */
static void rewind(fiber *f, size_t number)
{
#ifdef HOSTCUDA_ASAN
    __asan_unpoison_memory_region(f->stack, HOSTCUDA_STACK);
    f->shadow = nullptr;
#elif defined(HOSTCUDA_TSAN)
    if (f->shadow) __tsan_destroy_fiber(f->shadow);
    f->shadow = __tsan_create_fiber(0);
#endif
    f->bottom = f->stack; f->size = HOSTCUDA_STACK;
#ifdef HOSTCUDA_UCONTEXT_USED
    (void)number;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack; f->context.uc_stack.ss_size = HOSTCUDA_STACK;
    makecontext(&f->context, start, 0);
#else
    void **top = reinterpret_cast<void **>(f->stack + HOSTCUDA_STACK - number * 576 % 4096) - HOSTCUDA_FRAME;
    for (int i = 0; i < HOSTCUDA_FRAME; i++) top[i] = nullptr;
    top[HOSTCUDA_START] = reinterpret_cast<void *>(start);
    f->top = top;
#endif
}

static fiber *take_fiber(void)
{
    if (run.idle.empty()) {
        fiber *f = new fiber;
        size_t page = 16 << 10;
        void *p = mmap(nullptr, page + HOSTCUDA_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p, page, PROT_NONE)) {
            fprintf(stderr, "hostcuda: no memory for stacks\n");
            abort();
        }
        f->stack = static_cast<char *>(p) + page;
        rewind(f, run.fibers.size());
        run.fibers.emplace_back(f);
        return f;
    }
    fiber *f = run.idle.back();
    run.idle.pop_back();
    return f;
}

/* ---- Threads of a block */

static const char *describe(char text[200], const cuda_thread *t)
{
    static const char *const kinds[] = {"__syncthreads", "__syncwarp", "a shuffle", "a vote", "mma", "ldmatrix"};
    uint3 i = run.index[t - run.threads];
    int n = snprintf(text, 200, "thread (%u, %u, %u) at %s, %s:%d", i.x, i.y, i.z, kinds[t->kind], t->file, t->line);
    if (t->kind != HOSTCUDA_BARRIER && n > 0 && n < 200)
        snprintf(text + n, static_cast<size_t>(200 - n), ", mask %#x", t->mask);
    return text;
}

/* Ends the launch: no thread of it goes on. */
__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list list;
    int n = snprintf(run.message, sizeof run.message, "%s, block (%u, %u, %u): ", run.name, blockIdx.x, blockIdx.y,
                     blockIdx.z);
    va_start(list, format);
    if (n > 0 && n < static_cast<int>(sizeof run.message))
        vsnprintf(run.message + n, sizeof run.message - static_cast<size_t>(n), format, list);
    va_end(list);
    run.failed = true;
    switch_to(&run.host);
}

static unsigned choose(unsigned bits)            /* one of them, by the order */
{
    if (run.order == 0) return static_cast<unsigned>(__builtin_ctz(bits));
    if (run.order == 1) return 31 - static_cast<unsigned>(__builtin_clz(bits));
    unsigned turn = draw(&run.draw) & 31, turned = turn ? bits >> turn | bits << (32 - turn) : bits;
    return (static_cast<unsigned>(__builtin_ctz(turned)) + turn) & 31;
}

static void release(warp *w, unsigned lanes)
{
    w->ready |= lanes;
    run.active |= 1u << (w - run.warps);
}

static void open_barrier(void)
{
    for (unsigned i = 0; 32 * i < run.count; i++) {
        warp *w = &run.warps[i];
        if (w->barrier) release(w, w->barrier);
        w->barrier = 0;
    }
    run.arrived = 0;
    run.w = &run.warps[choose(run.active)];      /* all start anew, in the order's first warp */
}

static void deadlock(void)
{
    char a[200], b[200];
    const cuda_thread *first = nullptr, *other = nullptr;
    unsigned exited = run.count - run.live;
    for (unsigned i = 0; i < run.count; i++) {
        const cuda_thread *t = &run.threads[i];
        if (!(run.warps[i / 32].live >> i % 32 & 1)) continue;
        if (!first) first = t;
        else if (t->kind != first->kind || t->line != first->line || t->mask != first->mask) { other = t; break; }
    }
    if (other) fail("threads wait for each other: %s; %s; %u exited", describe(a, first), describe(b, other), exited);
    else fail("threads wait for ever: %s; %u exited", describe(a, first), exited);
}

/* Makes one ready thread the current one: of the same warp while it has any. */
static void next(void)
{
    warp *w = run.w;
    if (!w->ready) {
        run.active &= ~(1u << (w - run.warps));
        if (!run.active) deadlock();
        w = run.w = &run.warps[choose(run.active)];
    }
    run.lane = choose(w->ready);
    w->ready &= ~(1u << run.lane);
    unsigned i = static_cast<unsigned>(w - run.warps) * 32 + run.lane;
    run.current = &run.threads[i];
    threadIdx = run.index[i];
}

/* The current thread waits; returns when it has been released and chosen. */
static void go_on(void)
{
    cuda_thread *self = run.current;
    self->on = run.on;
    next();
    if (run.current != self) switch_to(run.current->on ? run.current->on : take_fiber());
}

static void product(warp *w)                     /* p = a * b, each sum in order of k */
{
    typedef float row __attribute__((vector_size(32)));
    const row *b = reinterpret_cast<const row *>(w->b);
    for (int i = 0; i < 16; i++) {
        row sum = b[0] * w->a[i][0];
        for (int k = 1; k < 8; k++) sum += b[k] * w->a[i][k];
        *reinterpret_cast<row *>(w->p[i]) = sum;
    }
}

/* If all live lanes of the mask wait in this collective: its results, and they are released. */
static bool gathered(warp *w, int kind, unsigned mask)
{
    unsigned group = mask & w->live, votes = 0;
    if ((w->waiting & group) != group) return false;
    if (w->mixed)
        for (unsigned l = 0, first = static_cast<unsigned>(w - run.warps) * 32; l < 32; l++)
            if (group >> l & 1 && (run.threads[first + l].kind != kind || run.threads[first + l].mask != mask))
                return false;
    if (kind == HOSTCUDA_VOTE)
        for (int l = 0; l < 32; l++) if (group >> l & 1 && w->in[l]) votes |= 1u << l;
    for (int l = 0; l < 32; l++) {               /* lanes outside may not have read theirs yet */
        if (!(group >> l & 1)) continue;
        if (kind == HOSTCUDA_VOTE) w->out[l] = votes;
        if (kind == HOSTCUDA_SHUFFLE) w->out[l] = group >> (w->from[l] & 31) & 1 ? w->in[w->from[l] & 31] : ~0ull;
    }
    if (kind == HOSTCUDA_MMA) product(w);
    if (kind == HOSTCUDA_LDMATRIX) for (int l = 0; l < 32; l++) memcpy(w->fours[l], w->rows[l], sizeof w->fours[l]);
    if (kind == HOSTCUDA_LDMATRIX && run.banking) {
        uintptr_t at[32];
        for (int l = 0; l < 32; l++) at[l] = reinterpret_cast<uintptr_t>(w->rows[l]);
        wavefronts(at, ~0u, 16, &run.banks.reads, &run.banks.reads_least);
    }
    w->waiting &= ~group;
    release(w, group);
    return true;
}

static void join(warp *w, int kind, unsigned mask, const char *file, int line)
{
    cuda_thread *t = run.current;
    unsigned bit = 1u << run.lane;
    t->kind = kind; t->mask = mask; t->file = file; t->line = line;
    if (!w->waiting) { w->kind = kind; w->mask = mask; w->mixed = false; }
    else if (kind != w->kind || mask != w->mask) w->mixed = true;
    w->waiting |= bit;
    if (gathered(w, kind, mask)) w->ready &= ~bit; /* the last one to come runs on */
    else go_on();
}

/* ---- Blocks of a launch */

static bool next_block(void)
{
    if (!run.left--) return false;
    run.block = (run.block + run.step) % run.blocks;
    unsigned long long b = run.block;
    blockIdx = {static_cast<unsigned>(b % gridDim.x), static_cast<unsigned>(b / gridDim.x % gridDim.y),
                static_cast<unsigned>(b / gridDim.x / gridDim.y)};
    if (run.shared) memset(hostcuda_dynamic, 0xFF, run.shared);
    run.active = 0;
    run.arrived = 0;
    run.live = run.count;
    for (unsigned i = 0; 32 * i < run.count; i++) {
        warp *w = &run.warps[i];
        w->live = w->ready = run.count - 32 * i < 32 ? (1u << (run.count - 32 * i)) - 1 : ~0u;
        w->waiting = w->barrier = 0;
        run.active |= 1u << i;
    }
    run.w = &run.warps[choose(run.active)];
    return true;
}

static void retire(void)                         /* the current thread has returned */
{
    cuda_thread *t = run.current;
    warp *w = run.w;
    t->on = nullptr;
    t->stored = 0;
    if (t->groups || !t->copies.empty()) { t->groups = 0; t->first = 0; t->copies.clear(); }
    w->live &= ~(1u << run.lane);
    if (!w->live) count_stores(w);
    run.live--;
    for (unsigned l = 0, first = static_cast<unsigned>(w - run.warps) * 32; w->waiting && l < 32; l++)
        if (w->waiting >> l & 1) gathered(w, run.threads[first + l].kind, run.threads[first + l].mask);
    if (run.arrived && run.arrived == run.live) open_barrier();
}

/* What a fiber does: start threads one after another while they return without having waited. Such a kernel switches
 * stacks twice, however many threads it has. */
static void work(void)
{
    for (;;) {
        (*run.body)();
        retire();
        if (!run.live && !next_block()) {
            run.idle.push_back(run.on);
            switch_to(&run.host);
            continue;
        }
        next();
        if (run.current->on) {
            run.idle.push_back(run.on);
            switch_to(run.current->on);
        }
    }
}

/* How blocks are walked: by a step that has no common divisor with their number. */
static void walk_blocks(void)
{
    run.left = run.blocks;
    run.step = run.order == 1 ? run.blocks - 1 : 1;
    run.block = run.order == 1 ? 0 : run.blocks - 1;
    if (run.order != 2 || run.blocks < 3) return;
    unsigned long long a, b, rest;
    do {
        run.step = 1 + draw(&run.draw) % (run.blocks - 1);
        for (a = run.blocks, b = run.step; b; a = b, b = rest) rest = a % b;
    } while (a != 1);
    run.block = draw(&run.draw) % run.blocks;
}

static bool execute(const char *name, dim3 grid, dim3 block, size_t shared, const std::function<void()> &body)
{
    run.name = name; run.body = &body;
    gridDim = grid; blockDim = block;
    run.count = block.x * block.y * block.z;
    for (unsigned i = 0; i < run.count; i++) run.index[i] = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    run.blocks = 1ull * grid.x * grid.y * grid.z;
    run.shared = shared;
    run.failed = false;
    if (posix_memalign(&hostcuda_dynamic, 1024, shared ? shared : 1)) abort();
    walk_blocks();
    next_block();
    next();
#ifdef HOSTCUDA_TSAN
    run.host.shadow = __tsan_get_current_fiber();
#endif
    run.on = &run.host;
    switch_to(take_fiber());
    free(hostcuda_dynamic);
    hostcuda_dynamic = nullptr;
    if (!run.failed) return true;
    run.idle.clear();                            /* threads were left where they stood */
    for (size_t i = 0; i < run.fibers.size(); i++) {
        rewind(run.fibers[i].get(), i);
        run.idle.push_back(run.fibers[i].get());
    }
    for (cuda_thread &t : run.threads) { t.on = nullptr; t.groups = 0; t.first = 0; t.copies.clear(); }
    return false;
}
} /* namespace hostcuda */

void hostcuda_barrier(const char *file, int line)
{
    using namespace hostcuda;
    char a[200], b[200];
    cuda_thread *t = run.current;
    t->kind = HOSTCUDA_BARRIER; t->file = file; t->line = line; t->mask = 0;
    if (!run.arrived++) run.barrier = t;
    else if (run.barrier->line != line || (run.barrier->file != file && strcmp(run.barrier->file, file)))
        fail("threads at different barriers: %s; %s; %u exited", describe(a, run.barrier), describe(b, t),
             run.count - run.live);
    run.w->barrier |= 1u << run.lane;
    if (run.arrived == run.live) open_barrier();
    go_on();
}

unsigned long long hostcuda_collective(int kind, unsigned mask, unsigned long long value, int from, const char *file,
                                       int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    unsigned lane = run.lane;
    w->in[lane] = value;
    w->from[lane] = from;
    if (!(mask >> lane & 1)) {
        char a[200];
        cuda_thread *t = run.current;
        t->kind = kind; t->mask = mask; t->file = file; t->line = line;
        fail("lane %u is not in its own mask: %s", lane, describe(a, t));
    }
    join(w, kind, mask, file, line);
    return w->out[lane];
}

int hostcuda_lane(void) { return static_cast<int>(hostcuda::run.lane); }

unsigned hostcuda_to_tf32(float value)           /* to nearest, ties away from zero; a NaN is one in 19 bits, too */
{
    unsigned u = __float_as_uint(value);
    if (isnan(value)) return 0x7FFFFFFFu;
    return (u & 0x7F800000u) == 0x7F800000u ? u : (u + 0x1000u) & 0xFFFFE000u;
}

/* Lane l has g = l/4, t = l%4 and holds a: (g,t) (g+8,t) (g,t+4) (g+8,t+4)  b: (t,g) (t+4,g)
 * d: (g,2t) (g,2t+1) (g+8,2t) (g+8,2t+1). The low 13 bits of a and b are not read. */
void hostcuda_mma_m16n8k8_tf32(float d[4], const unsigned a[4], const unsigned b[2], const char *file, int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    unsigned g = run.lane / 4, t = run.lane % 4, top = 0xFFFFE000u;
    if (w->live != ~0u) fail("mma needs all 32 lanes, live are %#x, %s:%d", w->live, file, line);
    w->a[g][t] = __uint_as_float(a[0] & top); w->a[g + 8][t] = __uint_as_float(a[1] & top);
    w->a[g][t + 4] = __uint_as_float(a[2] & top); w->a[g + 8][t + 4] = __uint_as_float(a[3] & top);
    w->b[t][g] = __uint_as_float(b[0] & top); w->b[t + 4][g] = __uint_as_float(b[1] & top);
    join(w, HOSTCUDA_MMA, ~0u, file, line);
    d[0] += w->p[g][2 * t]; d[1] += w->p[g][2 * t + 1];
    d[2] += w->p[g + 8][2 * t]; d[3] += w->p[g + 8][2 * t + 1];
}

/* Until it is waited for, what a copy will bring is NaN. */
void hostcuda_cp_async(void *shared, const void *global, int bytes, bool valid, const char *file, int line)
{
    using namespace hostcuda;
    cuda_thread *t = run.current;
    size_t size = static_cast<size_t>(bytes);
    if (bytes != 4 && bytes != 8 && bytes != 16) fail("cp.async of %d bytes, %s:%d", bytes, file, line);
    if (reinterpret_cast<uintptr_t>(shared) % size || (valid && reinterpret_cast<uintptr_t>(global) % size))
        fail("cp.async of %d bytes between misaligned addresses %p and %p, %s:%d", bytes, shared, global, file, line);
    if (run.banking) {
        std::vector<store> &stores = run.w->stores;
        if (stores.size() == t->stored) stores.push_back({{}, 0, bytes});
        stores[t->stored].at[run.lane] = reinterpret_cast<uintptr_t>(shared);
        stores[t->stored++].lanes |= 1u << run.lane;
    }
    t->copies.push_back({static_cast<char *>(shared), {}, bytes, t->groups});
    if (valid) memcpy(t->copies.back().data, global, size);
    memset(shared, 0xFF, size);
}

/* Lane l names four floats: those of row l % 8 of the l / 8-th of four 8x4 matrices; it gets element l % 4 of row l / 4
   of each. */
void hostcuda_ldmatrix_x4(float f[4], const float *row, const char *file, int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    unsigned lane = run.lane;
    if (w->live != ~0u) fail("ldmatrix needs all 32 lanes, live are %#x, %s:%d", w->live, file, line);
    if (reinterpret_cast<uintptr_t>(row) % 16)
        fail("ldmatrix of a misaligned address %p, %s:%d", static_cast<const void *>(row), file, line);
    w->rows[lane] = row;
    join(w, HOSTCUDA_LDMATRIX, ~0u, file, line);
    for (unsigned i = 0; i < 4; i++) f[i] = w->fours[8 * i + lane / 4][lane % 4];
}

void hostcuda_cp_async_commit(void) { hostcuda::run.current->groups++; }

void hostcuda_cp_async_wait(int n)
{
    hostcuda::cuda_thread *t = hostcuda::run.current;
    for (; t->first < t->copies.size() && t->copies[t->first].group < t->groups - n; t->first++)
        memcpy(t->copies[t->first].to, t->copies[t->first].data, static_cast<size_t>(t->copies[t->first].bytes));
    if (t->first == t->copies.size()) { t->copies.clear(); t->first = 0; }
}

/* ---- Work, streams, captures */

namespace hostcuda {
struct op;
typedef std::shared_ptr<op> op_ptr;
struct op {                                      /* one piece of queued or captured work */
    std::function<void()> body;
    int blockers = 0; bool done = false; std::vector<op_ptr> followers; /* queued: how many must run first; who waits */
    /* captured: edges; graph while capturing */
    std::vector<op_ptr> after; CUgraph_st *graph = nullptr; bool captured = false;
};
typedef std::lock_guard<std::recursive_mutex> guard;
struct allocation { size_t size; bool pinned; };
enum place { PAGEABLE, PINNED, DEVICE, OUTSIDE };
} /* namespace hostcuda */

struct CUstream_st {
    bool legacy = false, blocking = true;
    std::vector<hostcuda::op_ptr> tail, outer;   /* what the next operation follows; outer: kept while capturing */
    CUgraph_st *capture = nullptr;
};
struct CUevent_st { hostcuda::op_ptr op; bool timing; std::shared_ptr<double> when; };
struct CUgraph_st {
    std::vector<hostcuda::op_ptr> nodes; CUstream_st *origin = nullptr;
    bool invalid = false; cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal; std::thread::id owner;
};
struct CUgraphExec_st { std::vector<hostcuda::op_ptr> nodes, last; };

namespace hostcuda {

static struct device {
    std::recursive_mutex lock;
    std::map<uintptr_t, allocation> memory; size_t live = 0, high = 0, capacity = 16ull << 30; int fail_nth = 0;
    CUstream_st legacy;
    std::set<void *> handles;
    std::vector<CUstream_st *> streams;
    std::vector<CUgraph_st *> capturing;
    std::vector<op_ptr> ready; unsigned long long draw = 0, launches = 0, pageable = 0; bool lazy = false;
    std::map<const void *, size_t> dynamic;      /* the most dynamic shared memory of a kernel, where set */
    cudaError_t error = cudaSuccess;             /* of a kernel, until a waiting call has told it */
    device()
    {
        legacy.legacy = true;
        streams.push_back(&legacy);
        const char *order = getenv("HOSTCUDA_ORDER"), *seed = getenv("HOSTCUDA_STREAMS");
        if (order)
            hostcuda_order(!strcmp(order, "forward")   ? 0
                           : !strcmp(order, "reverse") ? 1
                                                       : 2,
                           static_cast<unsigned>(atoi(order)));
        if (seed) { draw = strtoul(seed, nullptr, 10); lazy = draw != 0; }
    }
} device;
static thread_local cudaError_t last_error = cudaSuccess;

static cudaError_t note(cudaError_t e) { if (e != cudaSuccess) last_error = e; return e; }
static cudaError_t told(void) { cudaError_t e = device.error; device.error = cudaSuccess; return note(e); }
template <class T> static bool known(T *handle) { return device.handles.count(handle) != 0; }
static CUstream_st *stream_of(cudaStream_t s) { return !s ? &device.legacy : known(s) ? s : nullptr; }

/* Runs one operation that nothing holds back. After a failed kernel nothing runs until the failure has been told. */
static void step(void)
{
    size_t i = device.lazy ? draw(&device.draw) % device.ready.size() : 0;
    op_ptr o = device.ready[i];
    device.ready.erase(device.ready.begin() + static_cast<ptrdiff_t>(i));
    if (device.error == cudaSuccess) o->body();
    o->body = nullptr;
    o->done = true;
    for (op_ptr &f : o->followers) if (--f->blockers == 0) device.ready.push_back(f);
    o->followers.clear();
}

static void finish(const std::vector<op_ptr> &ops) { for (const op_ptr &o : ops) while (!o->done) step(); }
static void finish_all(void) { while (!device.ready.empty()) step(); }

static op_ptr put(CUgraph_st *graph, std::function<void()> body, const std::vector<op_ptr> &after)
{
    op_ptr o = std::make_shared<op>();
    o->body = std::move(body);
    if (graph) {
        o->after = after; o->graph = graph; o->captured = true;
        graph->nodes.push_back(o);
        return o;
    }
    for (const op_ptr &a : after) if (!a->done) { a->followers.push_back(o); o->blockers++; }
    if (!o->blockers) device.ready.push_back(o);
    return o;
}

/* What an operation in s must follow: those before it in s; and the legacy stream and blocking streams each other. */
static std::vector<op_ptr> before(CUstream_st *s)
{
    std::vector<op_ptr> after = s->tail;
    if (s->capture) return after;
    for (CUstream_st *other : device.streams)
        if (other != s && !other->capture && s->blocking && other->blocking && (s->legacy || other->legacy))
            after.insert(after.end(), other->tail.begin(), other->tail.end());
    return after;
}

static cudaError_t spoil(CUgraph_st *graph, cudaError_t e) { graph->invalid = true; return note(e); }

/* Whether work may be put into s now. */
static cudaError_t usable(CUstream_st *s)
{
    if (!s) return note(cudaErrorInvalidResourceHandle);
    if (s->capture && s->capture->invalid) return note(cudaErrorStreamCaptureInvalidated);
    if (s->legacy)
        for (CUstream_st *other : device.streams)
            if (other->capture && other->blocking) return spoil(other->capture, cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

static cudaError_t enqueue(cudaStream_t stream, std::function<void()> body)
{
    CUstream_st *s = stream_of(stream);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    s->tail = {put(s->capture, std::move(body), before(s))};
    if (!device.lazy) finish_all();
    return cudaSuccess;
}

/* Calls that may wait for the whole device: not while a capture forbids it, that of this thread or a global one. */
static cudaError_t unsafe(bool always)
{
    cudaError_t e = cudaSuccess;
    for (CUgraph_st *g : device.capturing)
        if (always || g->mode == cudaStreamCaptureModeGlobal ||
            (g->mode == cudaStreamCaptureModeThreadLocal && g->owner == std::this_thread::get_id()))
            e = spoil(g, cudaErrorStreamCaptureUnsupported);
    return e;
}

static cudaError_t wait_stream(CUstream_st *s)
{
    if (!s) return note(cudaErrorInvalidResourceHandle);
    if (s->capture) return spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    finish(before(s));
    return told();
}

static place place_of(const void *p, size_t count)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(p);
    auto i = device.memory.upper_bound(at);
    if (i == device.memory.begin()) return PAGEABLE;
    --i;
    if (at >= i->first + i->second.size) return PAGEABLE;
    return count > i->first + i->second.size - at ? OUTSIDE : i->second.pinned ? PINNED : DEVICE;
}

/* Host memory that is not pinned is read when the copy is issued, and written before the call returns, as CUDA does;
 * a captured copy reads it at each launch. */
static cudaError_t copy_memory(void *to, const void *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (!count) return cudaSuccess;
    if (!to || !from) return note(cudaErrorInvalidValue);
    place dst = place_of(to, count), src = place_of(from, count);
    if (dst == OUTSIDE || src == OUTSIDE) return note(cudaErrorInvalidValue);
    int real = (src == DEVICE ? 2 : 0) + (dst == DEVICE ? 1 : 0);
    if (kind != cudaMemcpyDefault && real != static_cast<int>(kind)) return note(cudaErrorInvalidMemcpyDirection);
    CUstream_st *s = stream_of(stream);
    if (src == PAGEABLE && s && !s->capture) {
        device.pageable += dst == DEVICE;
        auto staged = std::make_shared<std::vector<char>>(static_cast<const char *>(from),
                                                          static_cast<const char *>(from) + count);
        cudaError_t e = enqueue(stream, [=] { memcpy(to, staged->data(), count); });
        if (e != cudaSuccess || dst == DEVICE) return e;
    } else {
        cudaError_t e = enqueue(stream, [=] { memcpy(to, from, count); });
        if (e != cudaSuccess || dst != PAGEABLE || s->capture) return e;
    }
    return wait_stream(s);
}

static cudaError_t allocate(void **pointer, size_t size, bool pinned)
{
    guard g(device.lock);
    if (!pointer) return note(cudaErrorInvalidValue);
    *pointer = nullptr;
    cudaError_t e = unsafe(false);
    if (e != cudaSuccess || !size) return e;
    bool fails = device.fail_nth > 0 && --device.fail_nth == 0;
    if (fails || (!pinned && (device.live > device.capacity || size > device.capacity - device.live)) ||
        posix_memalign(pointer, 256, size))
        return *pointer = nullptr, note(cudaErrorMemoryAllocation);
    memset(*pointer, 0xFF, size);
    device.memory[reinterpret_cast<uintptr_t>(*pointer)] = {size, pinned};
    if (!pinned) device.live += size;
    if (device.live > device.high) device.high = device.live;
    return cudaSuccess;
}

static cudaError_t release_memory(void *pointer, bool pinned)
{
    guard g(device.lock);
    if (!pointer) return cudaSuccess;
    cudaError_t e = unsafe(false);
    if (e != cudaSuccess) return e;
    auto i = device.memory.find(reinterpret_cast<uintptr_t>(pointer));
    if (i == device.memory.end() || i->second.pinned != pinned) return note(cudaErrorInvalidValue);
    finish_all();
    memset(pointer, 0xFF, i->second.size);
    if (!pinned) device.live -= i->second.size;
    device.memory.erase(i);
    free(pointer);
    return told();
}

template <class T> static T *create(void) { T *t = new T(); device.handles.insert(t); return t; }
template <class T> static void destroy(T *t) { device.handles.erase(t); delete t; }
} /* namespace hostcuda */

cudaError_t hostcuda_queue(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared,
                           cudaStream_t stream, std::function<void()> body)
{
    using namespace hostcuda;
    guard g(device.lock);
    unsigned long long threads = 1ull * block.x * block.y * block.z;
    if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.x > 0x7FFFFFFF ||
        grid.y > 65535 || grid.z > 65535)
        return note(cudaErrorInvalidConfiguration);
    auto most = device.dynamic.find(kernel);
    if (shared > (most == device.dynamic.end() ? 48u << 10 : most->second)) return note(cudaErrorInvalidValue);
    return enqueue(stream, [=] {
        device.launches++;
        if (!execute(name, grid, block, shared, body)) device.error = cudaErrorLaunchFailure;
    });
}

/* ---- The runtime's calls */

#define HOSTCUDA_ENTER using namespace hostcuda; guard hostcuda_guard(device.lock)
extern "C" {
#define HOSTCUDA_NAME(name, value, text) case name: return #name;
#define HOSTCUDA_TEXT(name, value, text) case name: return text;
const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
        HOSTCUDA_ERRORS(HOSTCUDA_NAME) default : return "unrecognized error code";
    }
}
const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
        HOSTCUDA_ERRORS(HOSTCUDA_TEXT) default : return "unrecognized error code";
    }
}
cudaError_t cudaPeekAtLastError(void)
{
    HOSTCUDA_ENTER;
    return device.error != cudaSuccess ? device.error : last_error;
}
cudaError_t cudaGetLastError(void)
{
    HOSTCUDA_ENTER;
    told();
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}
cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int *number) { *number = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int number) { return number == 0 ? cudaSuccess : hostcuda::note(cudaErrorInvalidDevice); }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int number)
{
    HOSTCUDA_ENTER;
    if (!prop) return note(cudaErrorInvalidValue);
    if (number) return note(cudaErrorInvalidDevice);
    *prop = cudaDeviceProp();
    snprintf(prop->name, sizeof prop->name, "host emulation");
    prop->totalGlobalMem = device.capacity;
    prop->sharedMemPerBlock = 48 << 10; prop->sharedMemPerBlockOptin = 227 << 10;
    prop->sharedMemPerMultiprocessor = 228 << 10;
    prop->totalConstMem = 64 << 10; prop->regsPerBlock = 64 << 10; prop->warpSize = 32; prop->maxThreadsPerBlock = 1024;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024; prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 0x7FFFFFFF; prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    prop->major = 9; prop->minor = 0; prop->multiProcessorCount = 4; prop->l2CacheSize = 4 << 20;
    prop->maxThreadsPerMultiProcessor = 2048; prop->memoryBusWidth = 64; prop->asyncEngineCount = 1;
    prop->unifiedAddressing = prop->concurrentKernels = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int number)
{
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, number);
    if (e != cudaSuccess) return e;
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    default: return hostcuda::note(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t size) { return hostcuda::allocate(pointer, size, false); }
cudaError_t cudaMallocHost(void **pointer, size_t size) { return hostcuda::allocate(pointer, size, true); }
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    (void)flags;
    return hostcuda::allocate(pointer, size, true);
}
cudaError_t cudaFree(void *pointer) { return hostcuda::release_memory(pointer, false); }
cudaError_t cudaFreeHost(void *pointer) { return hostcuda::release_memory(pointer, true); }

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    HOSTCUDA_ENTER;
    *total = device.capacity;
    *available = device.live < device.capacity ? device.capacity - device.live : 0;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    return copy_memory(to, from, count, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (width > to_pitch || width > from_pitch) return note(cudaErrorInvalidValue);
    cudaError_t e = cudaSuccess;
    for (size_t r = 0; r < height && e == cudaSuccess; r++)
        e = copy_memory(static_cast<char *>(to) + r * to_pitch, static_cast<const char *>(from) + r * from_pitch, width,
                        kind, stream);
    return e;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p)
{
    HOSTCUDA_ENTER;
    if (!attributes) return note(cudaErrorInvalidValue);
    const place there = place_of(p, 1);
    const bool reached = there == DEVICE || there == PINNED;
    attributes->type = there == DEVICE   ? cudaMemoryTypeDevice
                       : there == PINNED ? cudaMemoryTypeHost
                                         : cudaMemoryTypeUnregistered;
    attributes->device = reached ? 0 : -2;
    attributes->devicePointer = reached ? const_cast<void *>(p) : nullptr;
    attributes->hostPointer = there == DEVICE ? nullptr : const_cast<void *>(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind)
{
    HOSTCUDA_ENTER;
    cudaError_t e = usable(&device.legacy);
    if (e == cudaSuccess) e = unsafe(false);
    if (e == cudaSuccess) e = copy_memory(to, from, count, kind, nullptr);
    return e == cudaSuccess ? wait_stream(&device.legacy) : e;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t count, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (count && place_of(to, count) != DEVICE && place_of(to, count) != PINNED) return note(cudaErrorInvalidValue);
    return count ? enqueue(stream, [=] { memset(to, value, count); }) : cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t count)
{
    HOSTCUDA_ENTER;
    cudaError_t e = unsafe(false);
    return e == cudaSuccess ? cudaMemsetAsync(to, value, count, nullptr) : e;
}

cudaError_t cudaDeviceSynchronize(void)
{
    HOSTCUDA_ENTER;
    cudaError_t e = unsafe(true);
    if (e != cudaSuccess) return e;
    finish_all();
    return told();
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    HOSTCUDA_ENTER;
    if (!stream || flags > cudaStreamNonBlocking) return note(cudaErrorInvalidValue);
    *stream = create<CUstream_st>();
    (*stream)->blocking = flags == cudaStreamDefault;
    device.streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) /* its work still runs */
{
    HOSTCUDA_ENTER;
    if (!known(stream)) return note(cudaErrorInvalidResourceHandle);
    if (stream->blocking) for (op_ptr &o : stream->tail) if (!o->captured) device.legacy.tail.push_back(o);
    if (stream->capture) stream->capture->invalid = true;
    for (size_t i = 0; i < device.streams.size(); i++)
        if (device.streams[i] == stream) {
            device.streams.erase(device.streams.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    destroy(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { HOSTCUDA_ENTER; return wait_stream(stream_of(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    if (s->capture) return spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    if (!device.ready.empty()) step();           /* so that asking again and again ends */
    for (const op_ptr &o : before(s)) if (!o->done) return cudaErrorNotReady;
    return told();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!known(event) || flags > 1) return note(cudaErrorInvalidResourceHandle);
    cudaError_t e = usable(s);
    if (e != cudaSuccess || !event->op) return e;
    CUgraph_st *graph = event->op->graph;
    if (event->op->captured && !graph) return note(cudaErrorCapturedEvent); /* of a capture that has ended */
    if (graph && s->legacy) return spoil(graph, cudaErrorStreamCaptureImplicit);
    if (s->capture && !graph) return spoil(s->capture, cudaErrorStreamCaptureIsolation);
    if (s->capture && s->capture != graph) return spoil(s->capture, cudaErrorStreamCaptureMerge);
    if (graph && !s->capture) {                  /* this stream joins the capture */
        s->outer.swap(s->tail);
        s->tail.clear();
        s->capture = graph;
    }
    if (!graph) s->tail = {put(nullptr, [] {}, before(s))}; /* keeps the tail short */
    s->tail.push_back(event->op);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!s) return note(cudaErrorInvalidResourceHandle);
    if (s->legacy) return note(cudaErrorStreamCaptureUnsupported);
    if (s->capture) return note(cudaErrorIllegalState);
    s->capture = create<CUgraph_st>();
    s->capture->origin = s; s->capture->mode = mode; s->capture->owner = std::this_thread::get_id();
    device.capturing.push_back(s->capture);
    s->outer.swap(s->tail);
    s->tail.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *result)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!s || !result) return note(cudaErrorInvalidValue);
    *result = nullptr;
    CUgraph_st *graph = s->capture;
    if (!graph) return note(cudaErrorIllegalState);
    if (graph->origin != s) return spoil(graph, cudaErrorStreamCaptureUnmatched);
    if (graph->mode != cudaStreamCaptureModeRelaxed && graph->owner != std::this_thread::get_id())
        return note(cudaErrorStreamCaptureWrongThread);
    cudaError_t e = graph->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    std::set<op *> joined;                       /* all that the origin's next operation would follow */
    std::vector<op_ptr> look = s->tail;
    while (!look.empty()) {
        op_ptr o = look.back();
        look.pop_back();
        if (joined.insert(o.get()).second) look.insert(look.end(), o->after.begin(), o->after.end());
    }
    for (CUstream_st *other : device.streams) {
        if (other->capture != graph) continue;
        for (op_ptr &o : other->tail)
            if (!joined.count(o.get()) && e == cudaSuccess) e = cudaErrorStreamCaptureUnjoined;
        other->capture = nullptr;
        other->tail.swap(other->outer);
        other->outer.clear();
    }
    for (op_ptr &o : graph->nodes) o->graph = nullptr;
    for (size_t i = 0; i < device.capturing.size(); i++)
        if (device.capturing[i] == graph) {
            device.capturing.erase(device.capturing.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    if (e == cudaSuccess) *result = graph;
    else destroy(graph);
    return note(e);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!s || !status) return note(cudaErrorInvalidValue);
    *status = !s->capture           ? cudaStreamCaptureStatusNone
              : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    HOSTCUDA_ENTER;
    if (!event) return note(cudaErrorInvalidValue);
    *event = create<CUevent_st>();
    (*event)->timing = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    destroy(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    auto when = event->when = std::make_shared<double>(0);
    cudaError_t e = enqueue(stream, [=] {
        *when = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    });
    if (e == cudaSuccess) event->op = stream_of(stream)->tail.back();
    return e;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    if (!event->op) return cudaSuccess;
    if (event->op->graph) return spoil(event->op->graph, cudaErrorCapturedEvent);
    if (event->op->captured) return note(cudaErrorCapturedEvent);
    finish({event->op});
    return told();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    if (!event->op) return cudaSuccess;
    if (event->op->graph) return spoil(event->op->graph, cudaErrorCapturedEvent);
    if (event->op->captured) return note(cudaErrorCapturedEvent);
    if (!device.ready.empty()) step();
    return event->op->done ? told() : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    HOSTCUDA_ENTER;
    if (!milliseconds) return note(cudaErrorInvalidValue);
    if (!known(begin) || !known(end) || !begin->op || !end->op || !begin->timing || !end->timing)
        return note(cudaErrorInvalidResourceHandle);
    if (begin->op->captured || end->op->captured) return note(cudaErrorCapturedEvent);
    if (!begin->op->done || !end->op->done) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(*end->when - *begin->when);
    return told();
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    HOSTCUDA_ENTER;
    if (!exec || !known(graph) || flags) return note(cudaErrorInvalidValue);
    *exec = create<CUgraphExec_st>();
    (*exec)->nodes = graph->nodes;
    return cudaSuccess;
}

/* Each node again as an operation of its own, the edges between them as recorded; all of it follows what is in the
 * stream, and the graph's previous launch. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!known(exec)) return note(cudaErrorInvalidValue);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    std::vector<op_ptr> first = before(s);
    if (!s->capture) first.insert(first.end(), exec->last.begin(), exec->last.end());
    op_ptr head = put(s->capture, [] {}, first);
    std::map<op *, op_ptr> again;
    std::vector<op_ptr> all = {head};
    for (const op_ptr &node : exec->nodes) {
        std::vector<op_ptr> after = {head};
        for (const op_ptr &a : node->after) after.push_back(again[a.get()]);
        all.push_back(again[node.get()] = put(s->capture, node->body, after));
    }
    s->tail = {put(s->capture, [] {}, all)};
    if (!s->capture) exec->last = s->tail;
    if (!device.lazy) finish_all();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    HOSTCUDA_ENTER;
    if (!known(graph)) return note(cudaErrorInvalidValue);
    destroy(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    HOSTCUDA_ENTER;
    if (!known(exec)) return note(cudaErrorInvalidValue);
    destroy(exec);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    HOSTCUDA_ENTER;
    if (!function) return note(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > 227 << 10) return note(cudaErrorInvalidValue);
    device.dynamic[function] = value < 48 << 10 ? 48u << 10 : static_cast<size_t>(value);
    last_error = cudaSuccess;                    /* as CUDA 13.0 does on a card */
    return cudaSuccess;
}

void hostcuda_order(int kind, unsigned seed) { HOSTCUDA_ENTER; run.order = kind; run.draw = seed; }
void hostcuda_streams(unsigned seed) { HOSTCUDA_ENTER; finish_all(); device.lazy = seed != 0; device.draw = seed; }
void hostcuda_capacity(size_t bytes)
{
    HOSTCUDA_ENTER;
    device.capacity = bytes ? bytes : 16ull << 30;
    device.high = device.live;
}
void hostcuda_fail_nth(int n) { HOSTCUDA_ENTER; device.fail_nth = n; }
size_t hostcuda_live_bytes(void) { HOSTCUDA_ENTER; return device.live; }
size_t hostcuda_high_bytes(void) { HOSTCUDA_ENTER; return device.high; }
int hostcuda_live_count(void) { HOSTCUDA_ENTER; return static_cast<int>(device.memory.size()); }
int hostcuda_live_handles(void) { HOSTCUDA_ENTER; return static_cast<int>(device.handles.size()); }
const char *hostcuda_message(void) { HOSTCUDA_ENTER; return run.message; }
unsigned long long hostcuda_launches(void) { HOSTCUDA_ENTER; return device.launches; }
unsigned long long hostcuda_pageable(void) { HOSTCUDA_ENTER; return device.pageable; }
void hostcuda_count_banks(void) { HOSTCUDA_ENTER; finish_all(); run.banking = true; run.banks = hostcuda_banks(); }
hostcuda_banks hostcuda_banks_counted(void) { HOSTCUDA_ENTER; finish_all(); run.banking = false; return run.banks; }
} /* extern "C" */
#endif
