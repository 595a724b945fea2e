/* device.h - what --device of the examples chooses: this CPU, or a GPU where the example was built for one. */
#ifndef DEVICE_H
#define DEVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcp.h"
#ifdef EXAMPLE_CUDA
#include "gcp_cuda.h"
#endif

/* The target's memory, or malloc's. */
static inline void *device_take(const gcp_target *target, size_t size)
{
    return target ? target->allocate(target->context, size) : malloc(size);
}
static inline void device_give(const gcp_target *target, void *memory, size_t size)
{
    if (!target) free(memory);
    else if (memory) target->release(target->context, memory, size);
}
static inline void device_fill(const gcp_target *target, void *memory, int byte, size_t size)
{
    if (target && target->device) target->device->fill(target->context, memory, byte, size);
    else memset(memory, byte, size);
}
static inline void device_copy(const gcp_target *target, void *to, const void *from, size_t size)
{
    if (target && target->device) target->device->copy(target->context, to, from, size);
    else memcpy(to, from, size);
}

/* "cpu": target NULL. 0: there is no such device, said on stderr. */
static inline int device_open(const char *program, const char *name, const gcp_target **target)
{
    *target = NULL;
    if (!strcmp(name, "cpu")) return 1;
    if (strcmp(name, "cuda")) {
        fprintf(stderr, "%s: --device: found '%s', expected cpu or cuda\n", program, name);
        return 0;
    }
#ifdef EXAMPLE_CUDA
    static gcp_gpu gpu;
    gpu = gcp_gpu_open(.math = GCP_FP32);
    if (!gpu.blas) { fprintf(stderr, "%s: %s\n", program, gpu.message); return 0; }
    printf("on %s\n", gpu.name);
    *target = gcp_cuda(&gpu);
    return 1;
#else
    fprintf(stderr, "%s: built without a GPU: configure with -DGCP_CUDA=ON, or HOST to run its kernels on this CPU\n",
            program);
    return 0;
#endif
}
#endif
