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
   occupancy. Environment: HOSTCUDA_ORDER=forward|reverse|<seed>, HOSTCUDA_STREAMS=<seed>, HOSTCUDA_MAJOR=<the
   card's compute capability, 9>. */

#ifndef HOSTCUDA_RUNTIME_H
#define HOSTCUDA_RUNTIME_H
#include "inside/api.h"            /* types, errors, calls */
#include "inside/language.h"       /* what kernels are written in */
#endif /* HOSTCUDA_RUNTIME_H */

#if defined(HOSTCUDA_IMPLEMENTATION) && !defined(HOSTCUDA_IMPLEMENTATION_DONE)
#define HOSTCUDA_IMPLEMENTATION_DONE
#include "inside/state.h"          /* what runs */
#include "inside/fibers.h"         /* a stack for each CUDA thread */
#include "inside/blocks.h"         /* threads of a block, blocks of a launch */
#include "inside/streams.h"        /* queued work, captures, memory */
#include "inside/calls.h"          /* the runtime's calls */
#endif
