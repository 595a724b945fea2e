/* halves.h - plans with GCP_STORE_BF16, and what stands beside them: kernels that take no bfloat16, so that each op
   runs alone in floats and what it made is rounded; instruction sets; threads in the wrong order. */
#ifndef HALVES_H
#define HALVES_H
#include "gcp.h"

/* Threads in the wrong order, to show that order does not matter. */
static inline void backwards(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    (void)context;
    for (int i = tasks - 1; i >= 0; i--) task(arg, i, i % 3);
}

/* The best instruction set that this machine has, and any of those it has; scratch: room for a small tape. */
static inline int instructions_best(void *scratch, size_t size)
{
    static int best;
    gcp_arena arena = gcp_arena_from(scratch, size);
    if (!best) {
        gcp_tape *t = gcp_tape_make(&arena, .ops = 4);
        gcp_tensor y = gcp_relu(gcp_input(t, "x", GCP_SHAPE(2)));
        for (int isa = GCP_ISA_AVX512_BF16; !best; isa--) {
            const gcp_target target = { .isa = isa };
            gcp_plan plan = gcp_plan_make(y, .inference = 1, .target = &target);
            if (gcp_plan_ok(&plan)) best = isa;
            gcp_error_clear(t);
        }
    }
    return best;
}
static inline int instructions(unsigned seed, void *scratch, size_t size)
{
    return GCP_ISA_SCALAR + (int)(seed % (unsigned)instructions_best(scratch, size));
}

/* The CPU's kernels, as if none took bfloat16. */
static inline const gcp_op *float_kernels(void)
{
    static gcp_op rows[GCP_ROW_COUNT];
    gcp_cpu_kernels(rows);
    for (int k = 0; k < GCP_ROW_COUNT; k++) rows[k].flags &= ~(unsigned)GCP_FLAG_BF16;
    return rows;
}
#endif
