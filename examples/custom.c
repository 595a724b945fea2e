/* custom.c - an op of your own: softmax over the last axis, checked against numeric gradients.

       cc -DGCP_REAL=double -DGCP_IMPLEMENTATION custom.c -lm

   The row below is all that gcp asks for. The op is then planned, recomputed and timed as the built-in ones are. */
#include <math.h>
#include <stdio.h>
#include "gcp.h"

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

/* Rows are pitch elements apart: more than c where the tensor is a part of a concat. */
static void softmax_forward(const gcp_call *call)
{
    int channels = call->in[0].shape.d[3];
    for (size_t p = 0; p < pixels(&call->in[0]); p++) {
        const gcp_real *x = row(&call->in[0], p);
        gcp_real *y = row(&call->out[0], p), most = x[0], sum = 0;
        for (int c = 1; c < channels; c++) most = x[c] > most ? x[c] : most;
        for (int c = 0; c < channels; c++) sum += y[c] = (gcp_real)exp((double)(x[c] - most));
        for (int c = 0; c < channels; c++) y[c] /= sum;
    }
}

/* dx = y (dy - sum(y dy)). It reads the output alone (.reads_out): the input may be freed after forward. din[0].data is
   NULL where no gradient is wanted; with .accumulate another op has written a part of it, and this one adds. */
static void softmax_backward(const gcp_call *call)
{
    int channels = call->out[0].shape.d[3];
    for (size_t p = 0; call->din[0].data && p < pixels(&call->out[0]); p++) {
        const gcp_real *y = row(&call->out[0], p), *dy = row(&call->dout[0], p);
        gcp_real *dx = row(&call->din[0], p), sum = 0;
        for (int c = 0; c < channels; c++) sum += y[c] * dy[c];
        for (int c = 0; c < channels; c++)
            dx[c] = y[c] * (dy[c] - sum) + (call->din[0].accumulate ? dx[c] : 0);
    }
}

/* For the planner: operations; the bytes of the operands are counted already, and no workspace is asked for. */
static void softmax_cost(const gcp_cost_call *call, gcp_cost *cost)
{
    const int *d = call->in[0].d;
    cost->flops += 20.0 * d[0] * d[1] * d[2] * d[3];
}

static const gcp_op softmax_op = { .name = "softmax", .shape = softmax_shape, .forward = softmax_forward,
                                   .backward = softmax_backward, .cost = softmax_cost, .reads_out = 1, .outputs = 1 };

static gcp_tensor softmax(gcp_tensor x) { return gcp_custom(&x, 1, &softmax_op); }

/* The loss of a small network; 0 after an error. */
static double loss_under(gcp_policy policy, int check)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 1);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 6)), y = x;
    gcp_real values[4 * 6];
    for (int i = 0; i < 24; i++) values[i] = (gcp_real)sin(3.0 * i);
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "block") y = gcp_add(gcp_tanh(gcp_linear(y, .out = 6)), softmax(y));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .policy = policy);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, x, values);
    double loss = gcp_step(&plan);
    if (check) {
        gcp_gradcheck_result result = gcp_gradcheck(&plan);
        printf("%d gradients, the worst is off by %.1e: %s\n", result.elements, result.worst,
               result.passed ? "right" : "WRONG");
    }
    if (gcp_error(net)) printf("%s\n", gcp_error(net));
    else
        printf("%-9s %zu bytes, %d reruns, loss %.17g\n", check ? "keep all:" : "segments:", plan.bytes, plan.reruns,
               loss);
    return gcp_error(net) ? 0 : loss;
}

int main(void)
{
    double kept = loss_under(GCP_POLICY_KEEP_ALL, 1), again = loss_under(GCP_POLICY_SEGMENTS, 0);
    return kept == 0 || kept < again || kept > again;
}
