/* precision_cases.h - one case of test_precision.c. precision_float.c and precision_double.c include it behind gcp.h;
   others see the declarations alone. */
#ifndef PRECISION_CASES_H
#define PRECISION_CASES_H
#include <stdint.h>
#include "../../src/ops/pointwise_table.h"

#define AND_ONE(...) + 1

typedef enum precision_kind {
    CONV, CONV_TRANSPOSE, LINEAR, MATMUL,                  /* compared by the sum of absolute products */
    ADD, MUL, GATE, SPREAD, BIAS, RELU, LEAKY, RELU6, CLAMP, MAX_POOL, AVG_POOL, GLOBAL_POOL, NEAREST, BILINEAR,
    BATCH_NORM, LAYER_NORM, DROPOUT, CONCAT, SLICE, RESHAPE, EMBEDDING, CROSS_ENTROPY, MSE, MEAN,
    SOFTMAX, LOG_SOFTMAX, RMS_NORM, GROUP_NORM, RESIDUAL,
    SUMMED, LARGEST, PADDED, RESIZED, MATRICES, TARGETS, LOGITS, SMOOTH,
    POINTWISE, KINDS = POINTWISE GCPI_POINTWISE(AND_ONE, AND_ONE, AND_ONE)   /* each line of the table */
} precision_kind;

/* x is n h w ci. conv: ci -> co. linear and matmul: n pixels, ci -> co. Others take n h w ci, and k and stride for
   pools. */
typedef struct precision_case {
    precision_kind kind;
    int n, h, w, ci, co, kh, kw, sh, sw, pt, pb, pl, pr, dilation, groups, bias;
} precision_case;

/* values of all parts; parts: loss, output, gradients of 1, 2, 3 */
enum { PRECISION_MOST = 1 << 18, PRECISION_PARTS = 5 };
typedef struct precision_result {
    int count[PRECISION_PARTS], first[PRECISION_PARTS], total;
    double v[PRECISION_MOST];
} precision_result;

/* 1: ran; 0: this machine lacks the instruction set; -1: an error, printed. */
int precision_run_float(const precision_case *c, int isa, int threads, precision_result *r);
int precision_run_double(const precision_case *c, int isa, int threads, precision_result *r);

/* Multiples of 2^-23: the same number in float and double. Seeds: 1, 2, 3 operands, 9 the output's gradient. */
static inline double precision_value(uint32_t seed, uint32_t i)
{
    uint32_t h = (i + 1) * 2654435761u + seed * 2246822519u;
    h = (h ^ (h >> 15)) * 3266489917u;
    h ^= h >> 13;
    return (double)(h >> 8) / 16777216.0 * 2.0 - 1.0;
}
static inline int precision_id(int i, int range) { return (i * 7 + 3) % range; }
#endif

#ifdef GCP_H
#include <stdio.h>
#include "pointwise.h"

static unsigned char precision_tape[1 << 19], precision_memory[12 << 20];
static gcp_tape *precision_net;
static gcp_tensor operand[4], precision_ids;

static gcp_tensor wanted(int k, int a, int b, int c, int d)
{
    static const char *const names[] = { "", "a", "b", "c" };
    return operand[k] = gcp_want_grad(gcp_input(precision_net, names[k], GCP_SHAPE(a, b, c, d)));
}
static gcp_tensor param1(int k, int a)
{
    return operand[k] = gcp_param(precision_net, k == 2 ? "p" : "q", GCP_SHAPE(a));
}
static gcp_tensor param2(int k, int a, int b) { return operand[k] = gcp_param(precision_net, "w", GCP_SHAPE(a, b)); }
static gcp_tensor param4(int k, int a, int b, int c, int d)
{
    return operand[k] = gcp_param(precision_net, "w", GCP_SHAPE(a, b, c, d));
}

static gcp_tensor convolution(const precision_case *c, gcp_tensor x)
{
    int up = c->kind == CONV_TRANSPOSE, in = up ? c->ci : c->co, out = up ? c->co : c->ci;
    gcp_tensor w = param4(2, in, c->kh, c->kw, out / c->groups), b = c->bias ? param1(3, c->co) : GCP_NIL;
    gcp_conv2d_opts o = GCP_OPTS(gcp_conv2d_opts, .kh = c->kh, .kw = c->kw, .stride_h = c->sh, .stride_w = c->sw,
                                 .pad_top = c->pt, .pad_bottom = c->pb, .pad_left = c->pl, .pad_right = c->pr,
                                 .dilation = c->dilation, .groups = c->groups);
    return up ? gcp_conv_transpose2d_op_at(x, w, b, o) : gcp_conv2d_op_at(x, w, b, o);
}

static gcp_tensor product(const precision_case *c)
{
    gcp_tensor x = operand[1] = gcp_want_grad(gcp_input(precision_net, "a", GCP_SHAPE(c->n, c->ci)));
    if (c->kind == MATMUL)
        return gcp_matmul(x, operand[2] = gcp_want_grad(gcp_input(precision_net, "b", GCP_SHAPE(c->ci, c->co))));
    gcp_tensor w = param2(2, c->co, c->ci), b = c->bias ? param1(3, c->co) : GCP_NIL;
    return gcp_linear_op(x, w, b, .out = c->co);
}

static gcp_tensor batch_norm(gcp_tensor x)
{
    gcp_tensor y = gcp_batch_norm(x, .name = "norm");
    operand[2] = gcp_find(precision_net, "norm/gamma");
    operand[3] = gcp_find(precision_net, "norm/beta");
    return y;
}

static gcp_tensor ids(int count) { return precision_ids = gcp_labels(precision_net, "ids", GCP_SHAPE(count)); }

static gcp_tensor residual(const precision_case *c, gcp_tensor x)        /* a convolution, twice, among other ops */
{
    gcp_tensor w = param4(2, c->ci, 3, 3, c->ci), b = param1(3, c->ci);
    gcp_tensor y = gcp_relu(gcp_conv2d_op(x, w, b, .pad = 1));
    return gcp_add(gcp_layer_norm_op(gcp_conv2d_op(y, w, b, .pad = 1), b, b, .epsilon = 0.1), gcp_tanh(y));
}

static gcp_tensor shifted_norm(const precision_case *c, gcp_tensor x)
{
    gcp_tensor g = param1(2, c->ci), b = param1(3, c->ci);
    if (c->kind == LAYER_NORM) return gcp_layer_norm_op(x, g, b, .epsilon = 1e-3);
    return gcp_group_norm_op(x, g, b, .groups = 1, .epsilon = 1e-3);
}

static gcp_tensor padded(const precision_case *c, gcp_tensor x)
{
    x = gcp_pad(x, .before = c->kh, .after = 1, .axis = GCP_AXIS_HEIGHT, .mode = GCP_PAD_EDGE);
    return gcp_pad(x, .before = c->w > 1, .axis = GCP_AXIS_WIDTH, .mode = GCP_PAD_REFLECT);
}

static gcp_tensor other(const precision_case *c, gcp_tensor x)
{
    int pixels = c->n * c->h * c->w;
    switch (c->kind) {
    case ADD: return gcp_add(x, wanted(2, c->n, c->h, c->w, c->ci));
    case MUL: return gcp_mul(x, wanted(2, c->n, c->h, c->w, c->ci));
    case GATE: return gcp_mul(x, wanted(2, c->n, 1, 1, c->ci));
    case SPREAD: return gcp_sub(gcp_maximum(x, wanted(2, 1, c->h, 1, c->ci)), wanted(3, c->n, c->h, c->w, 1));
    case RELU6: return gcp_relu6(gcp_scale(x, .by = 8));
    case CLAMP: return gcp_clamp(x, .low = -0.25, .high = 0.5);
    case SOFTMAX: return gcp_softmax(gcp_scale(x, .by = 3));
    case LOG_SOFTMAX: return gcp_log_softmax(gcp_scale(x, .by = 3));
    case RMS_NORM: return gcp_rms_norm_op(x, param1(2, c->ci), .epsilon = 1e-3);
    case BIAS: return gcp_bias(x, param1(2, c->ci));
    case RELU: return gcp_relu(x);
    case LEAKY: return gcp_leaky_relu(x, .slope = 0.3);
    case MAX_POOL:
        return gcp_max_pool(x, .kh = c->kh, .kw = c->kw, .stride_h = c->sh, .stride_w = c->sw, .pad_left = c->kw - 1);
    case AVG_POOL:
        return gcp_avg_pool(x, .kh = c->kh, .kw = c->kw, .stride_h = c->sh, .stride_w = c->sw, .pad_left = c->kw - 1);
    case GLOBAL_POOL: return gcp_global_avg_pool(x);
    case NEAREST: return gcp_upsample(x, .factor = c->sh);
    case BILINEAR: return gcp_upsample(x, .factor = c->sh, .mode = GCP_UPSAMPLING_BILINEAR);
    case BATCH_NORM: return batch_norm(x);
    case LAYER_NORM: case GROUP_NORM: return shifted_norm(c, x);
    case DROPOUT: return gcp_dropout(x, .rate = 0.4);
    case CONCAT: return gcp_concat(GCP_TENSORS(gcp_tanh(x), wanted(2, c->n, c->h, c->w, c->co), x));
    case SLICE: return gcp_slice(gcp_tanh(x), .first = c->ci / 3, .count = c->ci - c->ci / 3);
    case RESHAPE: return gcp_reshape(gcp_tanh(x), GCP_SHAPE(c->h, c->n, c->ci, c->w));
    case CROSS_ENTROPY: return gcp_cross_entropy(gcp_reshape(x, GCP_SHAPE(pixels, c->ci)), ids(pixels));
    case MSE: return gcp_mse(x, wanted(2, c->n, c->h, c->w, c->ci));
    case MEAN: return gcp_mean(x);
    case RESIDUAL: return residual(c, x);
    default: return pointwise_calls[c->kind - POINTWISE](x);
    }
}

/* Reductions, sizes that change, products and losses; the rest is `other`'s. */
static gcp_tensor resized_or_reduced(const precision_case *c, gcp_tensor x)
{
    switch (c->kind) {
    case SUMMED: return gcp_reduce(x, .by = GCP_REDUCE_SUM, .height = 1, .samples = c->kh > 1, .channels = c->kw > 1);
    case LARGEST: return gcp_reduce(x, .by = GCP_REDUCE_MAX, .width = 1, .channels = c->kw > 1);
    case PADDED: return padded(c, x);
    case RESIZED:
        return gcp_resize(x, .height = c->h * c->sh / 2 + 1, .width = c->w + c->kw, .mode = GCP_UPSAMPLING_BILINEAR);
    case MATRICES: return gcp_matmul(x, wanted(2, c->n, c->h, c->co, c->ci), .transpose_b = 1);
    case TARGETS: return gcp_cross_entropy(gcp_scale(x, .by = 4), gcp_softmax(x), .smoothing = 0.1);
    case LOGITS:
        return gcp_binary_cross_entropy(gcp_scale(x, .by = 5), wanted(2, c->n, c->h, c->w, c->ci), .positive = 2);
    case SMOOTH: return gcp_smooth_l1(x, wanted(2, c->n, c->h, c->w, c->ci), .beta = 0.5);
    default: return other(c, x);
    }
}

static gcp_tensor precision_build(const precision_case *c)
{
    if (c->kind == LINEAR || c->kind == MATMUL) return product(c);
    if (c->kind == EMBEDDING)
        return gcp_embedding_op(ids(c->n),
                                operand[1] = gcp_want_grad(gcp_input(precision_net, "a", GCP_SHAPE(c->co, c->ci))));
    gcp_tensor x = wanted(1, c->n, c->h, c->w, c->ci);
    return c->kind == CONV || c->kind == CONV_TRANSPOSE ? convolution(c, x) : resized_or_reduced(c, x);
}

/* sum(y * dy): dy is the gradient of y to the last bit. A loss is its own. */
static gcp_tensor precision_loss(gcp_tensor y, gcp_tensor *dy)
{
    gcp_shape s = gcp_shape_of(y);
    *dy = GCP_NIL;
    if (gcp_is_nil(y) || s.rank == 0) return y;
    s.rank = 4;
    *dy = gcp_input(precision_net, "dy", s);
    return gcp_scale(gcp_mean(gcp_mul(y, *dy)), .by = (double)gcp_elements(y));
}

static void precision_write(gcp_plan *plan, gcp_tensor x, uint32_t seed)
{
    static gcp_real v[PRECISION_MOST];
    if (gcp_is_nil(x)) return;
    for (uint32_t i = 0; i < gcp_elements(x); i++) v[i] = (gcp_real)precision_value(seed, i);
    gcp_write(plan, x, v);
}

static void precision_write_ids(gcp_plan *plan, int range)
{
    static int v[PRECISION_MOST];
    for (int i = 0; i < (int)gcp_elements(precision_ids); i++) v[i] = precision_id(i, range);
    if (!gcp_is_nil(precision_ids)) gcp_write(plan, precision_ids, v);
}

static void precision_part(gcp_plan *plan, precision_result *r, int part, gcp_tensor x)
{
    static gcp_real v[PRECISION_MOST];
    int count = gcp_is_nil(x) ? 0 : (int)gcp_elements(x);
    r->first[part] = r->total;
    r->count[part] = count;
    if (!count || r->total + count > PRECISION_MOST) { r->count[part] = 0; return; }
    if (part < 2) gcp_read(plan, x, v);
    else gcp_grad(plan, x, v);
    for (int i = 0; i < count; i++) r->v[r->total++] = (double)v[i];
}

/* Tasks in a scrambled order, each under some worker's number. */
static void precision_for(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    int threads = *(const int *)context, stride = 5;
    /* 5, 11, 13, 15, ...: until coprime */
    while (threads > 1 && tasks % stride == 0) stride += 2 + 4 * (stride % 3 == 2);
    for (int i = 0; i < tasks; i++) {
        int index = threads == 1 ? i : (int)(((long long)i * stride + tasks / 2) % tasks);
        task(arg, index, threads == 1 ? 0 : (i + tasks) % threads);
    }
}

static int precision_run(const precision_case *c, int isa, int threads, precision_result *r)
{
    gcp_arena arena = gcp_arena_from(precision_tape, sizeof precision_tape);
    gcp_target target = { .isa = isa, .threads = threads, .parallel_for = precision_for, .context = &threads };
    gcp_tensor dy, y;
    precision_net = gcp_tape_make(&arena, .ops = 16);
    precision_ids = operand[1] = operand[2] = operand[3] = GCP_NIL;
    y = gcp_keep(precision_build(c));
    gcp_tensor loss = gcp_keep(precision_loss(y, &dy));
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &target);
    if (gcp_error_code(precision_net) == GCP_E_PLAN && isa > GCP_ISA_SCALAR) return 0;
    gcp_bind(&plan, precision_memory, sizeof precision_memory);
    for (uint32_t k = 1; k <= 3; k++) precision_write(&plan, operand[k], k);
    precision_write(&plan, dy, 9);
    precision_write_ids(&plan, c->kind == EMBEDDING ? c->co : c->ci);
    gcp_step(&plan);
    r->total = 0;
    precision_part(&plan, r, 0, loss);
    precision_part(&plan, r, 1, y);
    for (int k = 1; k <= 3; k++) precision_part(&plan, r, 1 + k, operand[k]);
    if (!gcp_error(precision_net) && r->count[1]) return 1;
    fprintf(stderr, "kind %d: %s\n", (int)c->kind,
            gcp_error(precision_net) ? gcp_error(precision_net) : "too many values");
    return -1;
}
#endif
