/* What cuda_runtime_api.h declares, as far as gcp uses it: types, errors, calls; and hostcuda's own. */
#ifndef HOSTCUDA_API_H
#define HOSTCUDA_API_H
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
#endif /* HOSTCUDA_API_H */
