/* nccl.h - the hooks of workers.h for workers with a GPU each: gradients are added by NCCL, on a stream of its own,
   while backward goes on. It compiles; it has not run on GPUs yet.

       nccl_sums s;
       nccl_begin(&s, &w, &gpu);                           // w: workers_begin's; gpu: gcp_gpu_open's
       gcp_plan plan = gcp_plan_make(loss, .target = gcp_cuda(&gpu), .on_gradient = nccl_on_gradient,
                                     .on_wait = nccl_on_wait, .hook_context = &s, ...);
       ...
       nccl_end(&s);

   With .share as for workers.h. NCCL gathers small messages itself: there are no buckets. */
#ifndef NCCL_H
#define NCCL_H

#include <nccl.h>

#include "gcp_cuda.h"
#include "workers.h"

typedef struct nccl_sums {
    ncclComm_t world;
    cudaStream_t compute, stream;           /* the plan's, and that of the sums */
    cudaEvent_t ready, added;
    const char *trouble;                    /* NULL, or the first that went wrong */
} nccl_sums;

static inline void nccl_look(nccl_sums *s, ncclResult_t r)
{
    if (r != ncclSuccess && !s->trouble) s->trouble = ncclGetErrorString(r);
}
static inline void nccl_look_cuda(nccl_sums *s, cudaError_t e)
{
    if (e != cudaSuccess && !s->trouble) s->trouble = cudaGetErrorString(e);
}

/* All ranks call it, each with its device current. .trouble says what failed. */
static inline void nccl_begin(nccl_sums *s, workers *w, const gcp_gpu *gpu)
{
    ncclUniqueId id;
    memset(s, 0, sizeof *s);
    s->compute = gpu->stream;
    if (w->rank == 0) nccl_look(s, ncclGetUniqueId(&id));
    workers_give(w, &id, sizeof id, 0, "NCCL's id");
    nccl_look(s, ncclCommInitRank(&s->world, w->ranks, id, w->rank));
    nccl_look_cuda(s, cudaStreamCreateWithFlags(&s->stream, cudaStreamNonBlocking));
    nccl_look_cuda(s, cudaEventCreateWithFlags(&s->ready, cudaEventDisableTiming));
    nccl_look_cuda(s, cudaEventCreateWithFlags(&s->added, cudaEventDisableTiming));
}

static inline void nccl_end(nccl_sums *s)
{
    cudaEventDestroy(s->ready);
    cudaEventDestroy(s->added);
    cudaStreamDestroy(s->stream);
    if (s->world) ncclCommDestroy(s->world);
}

/* The gradient's last kernel is only queued now, so its sum is queued behind it. */
static inline void nccl_on_gradient(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count)
{
    nccl_sums *s = (nccl_sums *)context;
    (void)parameter;
    nccl_look_cuda(s, cudaEventRecord(s->ready, s->compute));
    nccl_look_cuda(s, cudaStreamWaitEvent(s->stream, s->ready, 0));
    nccl_look(s, ncclAllReduce(gradient, gradient, count, ncclFloat, ncclSum, s->world, s->stream));
}

/* What the plan queues next runs behind all sums that were queued. */
static inline void nccl_on_wait(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count)
{
    nccl_sums *s = (nccl_sums *)context;
    (void)parameter; (void)gradient; (void)count;
    nccl_look_cuda(s, cudaEventRecord(s->added, s->stream));
    nccl_look_cuda(s, cudaStreamWaitEvent(s->compute, s->added, 0));
}
#endif
