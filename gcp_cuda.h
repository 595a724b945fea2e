/* gcp_cuda.h - the same plan on a GPU: a target for gcp.h over the CUDA runtime and cuBLAS. MIT licence, see gcp.h.

   Do this in *one* C file, the one that holds gcp.h's implementation:
       #define GCP_IMPLEMENTATION
       #include "gcp.h"
       #include "gcp_cuda.h"
   Compile kernels.cu (to copy: dist/kernels.cu) once with CUDA 11.4 or newer (-arch=native needs 11.6: name the card's
   before, as -arch=sm_80; tensor cores need sm_80 or newer) and link:
       nvcc -O2 -arch=native -fmad=false -Xcompiler=-fno-threadsafe-statics,-fno-exceptions,-fno-rtti -c kernels.cu
       cc main.c kernels.o -lcudart -lcublas -lcublasLt -lm
   In CMake: target_link_libraries(app gcp::cuda).

       gcp_gpu  gpu  = gcp_gpu_open(.math = GCP_TF32);
       gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD,
                                     .target = gcp_cuda(&gpu));
       gcp_bind(&plan, NULL, 0);             // one allocation on the device, of exactly plan.bytes
       ... gcp_write, gcp_step, gcp_read as on the CPU ...
       gcp_unbind(&plan);
       gcp_gpu_close(&gpu);

   A step is issued once as it stands and recorded as a CUDA graph the second time; from then on it is replayed (not
   with .check, .on_gradient or .no_graphs; where a recording fails, because a custom op waits for its stream, say,
   nothing of it runs and steps go on unrecorded). What fails on the device is an error on the tape with CUDA's own
   words; what the application's own calls left as CUDA's last error is not gcp's, and is cleared where gcp launches
   kernels. Same bits in every run on the same card and version of CUDA, under every plan: no atomics, every sum in an
   order that depends on shapes alone. Matrix products are cuBLAS's: each takes the algorithm that its heuristic gives
   for the dense shape, wherever the plan lets its operands lie; .workspace has a say in that.
   gcp_gpu_open and every step make .device the calling thread's current one. */

#ifndef GCP_CUDA_H
#define GCP_CUDA_H

#include "gcp.h"
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/cuda/launchers.h")
#error "gcp_cuda.h needs its rooms, the folder src/ beside it; to copy are dist/gcp.h, dist/gcp_cuda.h, dist/kernels.cu"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How floats are multiplied. With GCP_STORE_BF16 (cards from sm_80 on) what lies in two bytes is multiplied as
   bfloat16, and weights are rounded to it where they meet it, in either. */
typedef enum gcp_math {
    GCP_FP32, /* every product in float */
    GCP_TF32  /* convolutions and matrix products round their inputs to 10 bits of mantissa (tensor cores); grouped
                 convolutions, and input gradients of those with stride and dilation, stay in float. Cards before sm_80
                 have no such cores: there it is GCP_FP32 */
} gcp_math;

typedef struct gcp_gpu_opts {
    gcp_at at GCPI_Z;
    int device GCPI_Z;
    gcp_math math GCPI_Z;
    /* device memory to take plans' bytes from, aligned to 256; NULL: cudaMalloc. Given back in the reverse order, or
       all at once when the last plan is unbound */
    void *memory GCPI_Z; size_t size GCPI_Z;
    /* for cuBLAS, planned with each matrix product, at least 16 KiB; 0: its wish, 32 MiB from sm_90 on, else 4 MiB. The
       bits of products depend on it */
    size_t workspace GCPI_Z;
    cudaStream_t stream GCPI_Z;                  /* NULL: one of its own */
    int no_graphs GCPI_Z;                        /* issue every step anew */
} gcp_gpu_opts;

enum { GCP_GPU_RECORDINGS = 64, GCP_GPU_WORKSPACE_MIN = 16384 };

typedef struct gcp_gpu_recording {
    int taken, plain;
    cudaGraphExec_t graph;
} gcp_gpu_recording; /* plain: cannot be recorded */

/* All that a GPU needs; two of them share nothing. It must stay where it is while a plan uses it, and serves one thread
   at a time. The fields are for reading. */
typedef struct gcp_gpu {
    gcp_gpu_opts opts;
    cudaStream_t stream;
    cudaStream_t far[2];                         /* of copies to far memory, and back */
    cudaEvent_t start, stop, copied[GCP_COPIES]; /* copied: both ends of each copy, one after the other */
    cublasHandle_t blas;
    char name[256], message[320], told[320];     /* of the card; what went wrong; and what the tape was told of it */
    gcp_target target;
    size_t used; int blocks;                     /* of opts.memory; how many are out */
    int halves;                                  /* it multiplies bfloat16 (GCP_STORE_BF16): from sm_80 on */
    int launched;                                /* kernels were, since the last look for trouble */
    int capturing, spoiled;                      /* a step is being recorded; something of it failed */
    int behind;                                  /* writes are copied behind the step, through pinned memory: */
    unsigned char *staging; size_t staging_size, staged;
    gcp_gpu_recording recordings[GCP_GPU_RECORDINGS];
} gcp_gpu;

/* Opens a device. What fails is said by the first plan made for it, on that plan's tape. close gives back stream,
   handle and recordings; plans must be unbound before. */
GCP_API gcp_gpu gcp_gpu_open_at(gcp_gpu_opts opts);
GCP_API void    gcp_gpu_close(gcp_gpu *gpu);
#define gcp_gpu_open(...) GCPI_F0(gcp_gpu_open_at, gcp_gpu_opts, __VA_ARGS__)

/* The target to plan for. In a custom op's device functions gcp_cuda_stream(call->target) is the stream to launch
   on. */
GCP_API const gcp_target *gcp_cuda(gcp_gpu *gpu);
GCP_API cudaStream_t      gcp_cuda_stream(const gcp_target *target);

#include "src/cuda/launchers.h"      /* kernels.cu: what its launchers take */

#ifdef __cplusplus
}
#endif
#endif /* GCP_CUDA_H */

/* ---- Rooms ------------------------------------------------------------------------------------------------------
   The implementation, behind gcp.h's, whose op attributes it reads. dist/gcp_cuda.h has all rooms in one file. */
#if defined(GCP_IMPLEMENTATION) && !defined(GCP_CUDA_IMPLEMENTATION_DONE)
#define GCP_CUDA_IMPLEMENTATION_DONE

#include "src/cuda/device.h"          /* A GPU: its context, memory, recorded steps, far memory */
#include "src/cuda/gpu_pixelwise.h"   /* Rows: elementwise ops, bias, dropout, views */
#include "src/cuda/gpu_windows.h"     /* Rows: pools, upsampling */
#include "src/cuda/gpu_norms.h"       /* Rows: normalisation, softmax, attention */
#include "src/cuda/gpu_products.h"    /* Matrix products by cuBLAS */
#include "src/cuda/gpu_convs.h"       /* Rows: convolutions, dense layers, matrix products */
#include "src/cuda/gpu_losses.h"      /* Rows: embedding, losses */
#include "src/cuda/gpu_table.h"       /* Rows of what a step does beside its ops; the table; the target */

#endif /* GCP_IMPLEMENTATION */
