/* custom.c - an op of your own: softmax over the last axis, on all threads, checked against numeric gradients.

       cc -DGCP_REAL=double -DGCP_IMPLEMENTATION custom.c -lm

   The row below is all that gcp asks for. The op is then planned, recomputed and timed as the built-in ones are. With
   EXAMPLE_CUDA it also runs on a GPU (custom_kernel.cu). docs/custom-ops.md explains it. */
#include <math.h>
#include <stdio.h>
#include "gcp.h"
#ifdef EXAMPLE_CUDA
#include "gcp_cuda.h"
#endif

static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(1)];

/* Fills the outputs' shapes and types. What is wrong with the inputs would go to call->message, and 0 be returned. */
static int softmax_shape(gcp_shape_call *call)
{
    call->out[0] = call->in[0];
    call->out_dtype[0] = call->in_dtype[0];
    return 1;
}

static size_t pixels(const gcp_view *v)
{
    return (size_t)v->shape.d[0] * (size_t)v->shape.d[1] * (size_t)v->shape.d[2];
}
static gcp_real *row(const gcp_view *v, size_t pixel) { return (gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch; }

/* Shares the rows among the target's threads. No row needs another, so the bits are the same for any number of them. */
typedef struct share { const gcp_call *call; void (*rows)(const gcp_call *, size_t first, size_t last); } share;
enum { ROWS = 64 };                                  /* of a task */
static void run_share(void *arg, int index, int worker)
{
    const share *s = arg;
    const size_t all = pixels(&s->call->out[0]), first = (size_t)index * ROWS, last = first + ROWS;
    (void)worker;
    s->rows(s->call, first, last < all ? last : all);
}
static void in_parallel(const gcp_call *call, void (*rows)(const gcp_call *, size_t first, size_t last))
{
    share s = { call, rows };
    gcp_parallel_for(call, (int)((pixels(&call->out[0]) + ROWS - 1) / ROWS), run_share, &s);
}

/* Rows are pitch elements apart: more than c where the tensor is a part of a concat. */
static void forward_rows(const gcp_call *call, size_t first, size_t last)
{
    int channels = call->in[0].shape.d[3];
    for (size_t p = first; p < last; p++) {
        const gcp_real *x = row(&call->in[0], p);
        gcp_real *y = row(&call->out[0], p), most = x[0], sum = 0;
        for (int c = 1; c < channels; c++) most = x[c] > most ? x[c] : most;
        for (int c = 0; c < channels; c++) sum += y[c] = (gcp_real)exp((double)(x[c] - most));
        for (int c = 0; c < channels; c++) y[c] /= sum;
    }
}
static void softmax_forward(const gcp_call *call) { in_parallel(call, forward_rows); }

/* dx = y (dy - sum(y dy)). It reads the output alone (.reads_out): the input may be freed after forward. din[0].data is
   NULL where no gradient is wanted; with .accumulate another op has written a part of it, and this one adds. */
static void backward_rows(const gcp_call *call, size_t first, size_t last)
{
    int channels = call->out[0].shape.d[3];
    for (size_t p = first; p < last; p++) {
        const gcp_real *y = row(&call->out[0], p), *dy = row(&call->dout[0], p);
        gcp_real *dx = row(&call->din[0], p), sum = 0;
        for (int c = 0; c < channels; c++) sum += y[c] * dy[c];
        for (int c = 0; c < channels; c++)
            dx[c] = y[c] * (dy[c] - sum) + (call->din[0].accumulate ? dx[c] : 0);
    }
}
static void softmax_backward(const gcp_call *call)
{
    if (call->din[0].data) in_parallel(call, backward_rows);
}

/* For the planner: operations; the bytes of the operands are counted already, and no workspace is asked for. */
static void softmax_cost(const gcp_cost_call *call, gcp_cost *cost)
{
    const int *d = call->in[0].d;
    cost->flops += 20.0 * d[0] * d[1] * d[2] * d[3];
}

#ifdef EXAMPLE_CUDA
extern const gcp_op softmax_on_device;   /* custom_kernel.cu */
#define ON_DEVICE &softmax_on_device
#else
#define ON_DEVICE NULL
#endif
static const gcp_op softmax_op = { .name = "softmax", .shape = softmax_shape, .forward = softmax_forward,
                                   .backward = softmax_backward, .cost = softmax_cost, .reads_out = 1,
                                   .flags = GCP_FLAG_SAMPLES_APART | GCP_FLAG_SAME_CHANNELS,
                                   .outputs = 1, .on_device = ON_DEVICE };

/* The macro takes the place of the call along: messages name the user's line, and not one of this file. */
static gcp_tensor softmax_at(gcp_tensor x, gcp_at at)
{
    return gcp_custom_at(&x, 1, &softmax_op, (gcp_custom_opts) { .at = at });
}
#define softmax(x) softmax_at((x), GCP_AT)

/* The loss of a small network, and the gradient of its first weights; 0 after an error. */
static double loss_under(const char *name, gcp_policy policy, const gcp_target *target, gcp_real *gradient)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 1);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 6)), y = x;
    gcp_real values[4 * 6];
    for (int i = 0; i < 24; i++) values[i] = (gcp_real)sin(3.0 * i);
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "block") y = gcp_add(gcp_tanh(gcp_linear(y, .out = 6)), softmax(y));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .policy = policy, .target = target);
    gcp_bind(&plan, target ? NULL : step_memory, target ? 0 : sizeof step_memory);
    gcp_write(&plan, x, values);
    double loss = gcp_step(&plan);
    gcp_grad(&plan, gcp_find(net, "block[0]/linear[0]/weight"), gradient);
    if (policy == GCP_POLICY_KEEP_ALL && !target && sizeof(gcp_real) == sizeof(double)) {
        gcp_gradcheck_result result = gcp_gradcheck(&plan);
        printf("%d gradients, the worst is off by %.1e: %s\n", result.elements, result.worst,
               result.passed ? "right" : "WRONG");
    }
    if (gcp_error(net)) printf("%s\n", gcp_error(net));
    else printf("%-9s %zu bytes, %d reruns, loss %.17g\n", name, plan.bytes, plan.reruns, loss);
    if (target) gcp_unbind(&plan);
    return gcp_error(net) ? 0 : loss;
}

int main(void)
{
    gcp_real kept_gradient[36], gradient[36];
    double kept = loss_under("keep all:", GCP_POLICY_KEEP_ALL, NULL, kept_gradient),
           again = loss_under("segments:", GCP_POLICY_SEGMENTS, NULL, gradient);
    int wrong = !(kept > 0 && kept <= again && kept >= again);
#ifdef EXAMPLE_CUDA
    gcp_gpu gpu = gcp_gpu_open();
    double there = loss_under("GPU:", GCP_POLICY_SEGMENTS, gcp_cuda(&gpu), gradient), off = fabs(there - kept);
    for (int i = 0; i < 36; i++) off = fmax(off, fabs((double)(gradient[i] - kept_gradient[i])));
    printf("loss and gradients are off by at most %.1e\n", off);
    wrong |= !(off < 1e-6);
    gcp_gpu_close(&gpu);
#endif
    return wrong;
}
