/* random_net.h - random networks for property tests: skips, fan-out, concat, slice, reshape, dropout, batch-norm,
   shared weights, chances to work in place, nested segments; dense blocks, concats of concats, slices of slices, gated
   cells that share weights over up to 64 steps, several losses, ops of two outputs. The same seed records the same
   network. */
#ifndef RANDOM_NET_H
#define RANDOM_NET_H
#include "gcp.h"
#include "fitting.h"

typedef struct dice { uint64_t s; } dice;
static inline unsigned roll(dice *d, unsigned sides)
{
    d->s ^= d->s << 13; d->s ^= d->s >> 7; d->s ^= d->s << 17;
    return (unsigned)((d->s >> 20) % sides);
}

enum { NET_MAX = 96, NET_CONCATS = 128 };
typedef struct random_net {
    gcp_tape *tape;
    gcp_tensor pool[NET_MAX]; int count;         /* activations to draw from */
    gcp_tensor image, label, loss;
    gcp_tensor shared[8];                        /* 3x3 weights for c -> c, made when first wanted */
    gcp_tensor concats[NET_CONCATS]; int concat_inputs[NET_CONCATS], concat_count;
    gcp_tensor extra;                            /* sum of the other losses; nil: none */
    int custom, cells, named;                    /* custom: ops of its own, for a CPU alone; cells: recurrent ones */
    dice d;
} random_net;

static inline gcp_tensor net_pick(random_net *r)
{
    int recent = r->count > 4 ? 4 : r->count;
    return roll(&r->d, 3) ? r->pool[r->count - 1 - (int)roll(&r->d, (unsigned)recent)]
                          : r->pool[roll(&r->d, (unsigned)r->count)];
}

/* Another tensor of the same pixels, or nil. */
static inline gcp_tensor net_partner(random_net *r, gcp_tensor x, int same_channels)
{
    gcp_shape s = gcp_shape_of(x);
    for (int tries = 0; tries < 8; tries++) {
        gcp_tensor y = net_pick(r);
        gcp_shape t = gcp_shape_of(y);
        if (s.d[0] == t.d[0] && s.d[1] == t.d[1] && s.d[2] == t.d[2] && (!same_channels || s.d[3] == t.d[3])) return y;
    }
    return x;
}

static inline gcp_tensor net_shared(random_net *r, gcp_tensor x)
{
    int c = gcp_shape_of(x).d[3];
    char name[24];
    if (c > 7) return gcp_relu(x);
    snprintf(name, sizeof name, "shared%d", c);
    if (gcp_is_nil(r->shared[c]))
        r->shared[c] = gcp_param(r->tape, name, GCP_SHAPE(c, 3, 3, c), .init = GCP_INIT_HE, .fan_in = 9 * c);
    return gcp_conv2d_op(x, r->shared[c], GCP_NIL, .pad = 1);
}

static inline gcp_tensor net_concat(random_net *r, const gcp_tensor *inputs, int count)
{
    gcp_tensor y = gcp_concat(inputs, count);
    if (r->concat_count == NET_CONCATS) return y;
    r->concat_inputs[r->concat_count] = count;
    return r->concats[r->concat_count++] = y;
}

static inline gcp_tensor net_concat_2(random_net *r, gcp_tensor x, gcp_tensor y)
{
    const gcp_tensor both[] = { x, y };
    return net_concat(r, both, 2);
}

static inline gcp_tensor net_triple(random_net *r, gcp_tensor x)
{
    const gcp_tensor three[] = { net_partner(r, x, 0), x, net_partner(r, x, 0) };
    return net_concat(r, three, 3);
}

static inline gcp_tensor net_resize(random_net *r, gcp_tensor x)
{
    gcp_shape s = gcp_shape_of(x);
    if (s.d[1] >= 4 && s.d[2] >= 4)
        return roll(&r->d, 2) ? gcp_max_pool(x, .k = 2 + (int)roll(&r->d, 2), .stride = 2)
                              : gcp_avg_pool(x, .k = 3, .stride = 1 + (int)roll(&r->d, 2), .pad = 1);
    return roll(&r->d, 2)
               ? gcp_upsample(x, .factor = 2, .mode = roll(&r->d, 2) ? GCP_UPSAMPLING_BILINEAR : GCP_UPSAMPLING_NEAREST)
               : gcp_conv_transpose2d(x, .out = 1 + (int)roll(&r->d, 4), .k = 2, .stride = 2);
}

static inline gcp_tensor net_elementwise(random_net *r, gcp_tensor x)
{
    switch (roll(&r->d, 22)) {
    case 20: return gcp_softmax(x);
    case 21: return gcp_log_softmax(x);
    case 8: return gcp_silu(x);
    case 9: return gcp_hard_swish(x);
    case 10: return gcp_hard_sigmoid(x);
    case 11: return gcp_elu(x);
    case 12: return gcp_softplus(x);
    case 13: return gcp_mish(x);
    case 14: return gcp_gelu_tanh(x);
    case 15: return gcp_abs(x);
    case 16: return gcp_neg(x);
    case 17: return gcp_relu6(x);
    case 18: return gcp_clamp(x, .low = -1, .high = 0.5);
    case 0: return gcp_tanh(x);
    case 1: return gcp_sigmoid(x);
    case 2: return gcp_gelu(x);
    case 3: return gcp_leaky_relu(x, .slope = 0.2);
    case 4: return gcp_scale(x, .by = 0.75);
    case 5: return gcp_dropout(x, .rate = 0.25);
    default: return gcp_relu(x);
    }
}

/* What may run as one pass: batch-norm or nothing, an addition, a rectifier. */
static inline gcp_tensor net_group(random_net *r, gcp_tensor x)
{
    if (roll(&r->d, 2)) x = roll(&r->d, 2) ? gcp_add(x, net_partner(r, x, 1)) : gcp_add(net_partner(r, x, 1), x);
    switch (roll(&r->d, 6)) {
    case 0: return x;
    case 1: return gcp_leaky_relu(x, .slope = 0.1);
    case 2: return gcp_relu6(x);
    case 3: return gcp_clamp(x, .low = -0.25, .high = 0.75);
    default: return gcp_relu(x);
    }
}

/* Two operands, of which one is spread: over pixels, channels, samples, or both are. */
static inline gcp_tensor net_spread(random_net *r, gcp_tensor x)
{
    const gcp_shape s = gcp_shape_of(x);
    const int c = s.d[3];
    char name[24];
    gcp_tensor y;
    if (!c) return x;                                    /* an error came before */
    snprintf(name, sizeof name, "spread%d", r->named++);
    switch (roll(&r->d, 5)) {
    case 0: y = gcp_sigmoid(gcp_global_avg_pool(x)); break;
    case 1: y = gcp_slice(gcp_tanh(x), .first = (int)roll(&r->d, (unsigned)c), .count = 1); break;
    case 2: y = gcp_param(r->tape, name, GCP_SHAPE(c), .init = GCP_INIT_ONES); break;
    case 3: y = gcp_param(r->tape, name, GCP_SHAPE(1, s.d[1], s.d[2], c), .init = GCP_INIT_ONES); break;
    default: y = gcp_global_avg_pool(gcp_slice(x, .first = 0, .count = 1)); break;
    }
    switch (roll(&r->d, 7)) {
    case 0: return gcp_add(y, x);
    case 1: return gcp_sub(x, y);
    case 2: return gcp_maximum(y, x);
    case 3: return gcp_minimum(x, y);
    case 4: return gcp_div(x, gcp_softplus(y));
    case 5: return gcp_prelu(x, y);
    default: return gcp_mul(x, y);
    }
}

static inline gcp_tensor net_axes(random_net *r, gcp_tensor x)
{
    const gcp_shape s = gcp_shape_of(x);
    const gcp_axis axis = roll(&r->d, 2) ? GCP_AXIS_HEIGHT : GCP_AXIS_WIDTH;
    const int size = axis == GCP_AXIS_HEIGHT ? s.d[1] : s.d[2];
    char name[24];                                       /* none of what test_dags.c lets copy */
    snprintf(name, sizeof name, "part%d", r->named++);
    switch (roll(&r->d, 4)) {
    case 0: return size > 8 ? gcp_relu(x) : gcp_concat(GCP_TENSORS(x, gcp_tanh(x)), .axis = axis, .name = name);
    case 1: return gcp_slice(x, .first = (int)roll(&r->d, (unsigned)size), .count = 1, .axis = axis,
                             .name = name);
    case 2:
        if (size < 3) return gcp_tanh(x);
        return gcp_slice(x, .first = 0, .count = size / 2, .step = 2, .axis = axis, .name = name);
    default: return s.d[1] * s.d[2] > 12 ? gcp_tanh(x) : gcp_transpose(x, 0, 1, 3, 2);
    }
}

/* Pixels attend to pixels; two heads of q share one of k and v. */
static inline gcp_tensor net_attention(random_net *r, gcp_tensor x)
{
    gcp_tensor q = gcp_linear(x, .out = 4), k = gcp_linear(x, .out = 2), y;
    if (gcp_shape_of(x).d[1] * gcp_shape_of(x).d[2] > 100) return gcp_relu(x);
    y = gcp_attention(q, k, roll(&r->d, 2) ? k : x, .heads = 2, .causal = (int)roll(&r->d, 2));
    return gcp_linear(y, .out = 1 + (int)roll(&r->d, 4));
}

/* Products of matrices, sums, edges, other sizes, and what no gradient comes back from. */
static inline gcp_tensor net_matrices(random_net *r, gcp_tensor x)
{
    const gcp_shape s = gcp_shape_of(x);
    const int most = s.d[1] * s.d[2] > 40;
    char name[24];                                       /* none of what test_dags.c lets copy */
    unsigned which = roll(&r->d, 9);
    snprintf(name, sizeof name, "part%d", r->named++);
#ifdef NET_ON_GPU
    if (which < 6 && which != 2) return gcp_tanh(x);     /* no version there */
#endif
    switch (which) {
    case 0: return most ? gcp_relu(x) : gcp_matmul(gcp_softmax(gcp_matmul(x, gcp_tanh(x), .transpose_b = 1)), x);
    case 1: return most ? gcp_tanh(x) : gcp_matmul(x, gcp_scale(x, .by = 0.5), .transpose_a = 1);
    case 2: return gcp_mul(x, gcp_reduce(x, .height = 1, .channels = (int)roll(&r->d, 2)));
    case 3: return gcp_sub(x, gcp_reduce(gcp_tanh(x), .by = GCP_REDUCE_MAX, .tokens = 1));
    case 4: return most ? gcp_relu(x) : gcp_pad(x, .before = 1, .axis = GCP_AXIS_WIDTH,
                                                .mode = (gcp_pad_mode)roll(&r->d, 2), .name = name);
    case 5: return gcp_resize(x, .height = 1 + (int)roll(&r->d, 5), .width = 1 + (int)roll(&r->d, 5),
                              .mode = (gcp_upsampling)roll(&r->d, 2));
    case 6: return s.d[3] % 4 || most ? gcp_silu(x) : gcp_pixel_shuffle(x, .name = name);
    case 7: return gcp_add(x, gcp_stop_gradient(gcp_tanh(x)));
    default: return net_group(r, gcp_batch_norm(x, .frozen = 1));
    }
}

static inline gcp_tensor net_op(random_net *r)
{
    gcp_tensor x = net_pick(r);
    gcp_shape s = gcp_shape_of(x);
    switch (roll(&r->d, 20)) {
    case 19: return net_matrices(r, x);
    case 17: return net_axes(r, x);
    case 18: return gcp_transpose(x, 0, 2, 1, 3);
    case 14: return net_spread(r, x);
    case 16: return net_attention(r, x);
    case 0:
        return gcp_conv2d(x, .out = 1 + (int)roll(&r->d, 6), .k = 1 + 2 * (int)roll(&r->d, 2),
                          .padding = GCP_PADDING_SAME, .no_bias = (int)roll(&r->d, 2));
    case 1: return net_shared(r, x);
    case 2: return net_group(r, gcp_batch_norm(x));
    case 3: return roll(&r->d, 2) ? gcp_rms_norm(x) : gcp_layer_norm(x);
    case 4: return net_group(r, gcp_add(x, net_partner(r, x, 1)));
    case 5: return gcp_mul(x, net_partner(r, x, 1));
    case 6: return s.d[3] <= 12 ? net_concat_2(r, x, net_partner(r, x, 0)) : gcp_relu(x);
    case 7: return s.d[3] <= 8 ? net_triple(r, x) : gcp_tanh(x);
    case 8: return s.d[3] > 1 ? gcp_slice(x, .first = (int)roll(&r->d, (unsigned)s.d[3] - 1), .count = 1) : gcp_relu(x);
    case 9: return gcp_reshape(x, GCP_SHAPE(s.d[0], s.d[2], s.d[1], s.d[3]));
    case 10: return net_resize(r, x);
    case 11: return gcp_linear(x, .out = 1 + (int)roll(&r->d, 5));
    default: return net_elementwise(r, x);
    }
}

static inline void net_push(random_net *r, gcp_tensor x)
{
    if (roll(&r->d, 24) == 0) x = gcp_keep(x);
    if (r->count < NET_MAX) r->pool[r->count++] = x;
}

/* A dense block: each layer reads all features so far, joined anew or in a concat that grows. */
static inline void net_dense(random_net *r)
{
    gcp_tensor features[7], all = features[0] = net_pick(r);
    int grown = (int)roll(&r->d, 2), layers = 2 + (int)roll(&r->d, 5);
    for (int i = 0; i < layers; i++) {
        features[i + 1] = gcp_relu(gcp_conv2d(all, .out = 1, .k = 3, .pad = 1, .no_bias = 1));
        all = grown ? net_concat_2(r, all, features[i + 1]) : net_concat(r, features, i + 2);
    }
    net_push(r, all);
}

/* A concat of concats, one of which is read elsewhere, too; a slice of a slice of it. */
static inline void net_nested_views(random_net *r)
{
    gcp_tensor x = net_pick(r), low = net_concat_2(r, x, net_partner(r, x, 0)),
               high = net_concat_2(r, net_partner(r, x, 0), low), all = net_concat_2(r, high, roll(&r->d, 2) ? low : x);
    int channels = gcp_shape_of(all).d[3], first = (int)roll(&r->d, (unsigned)channels - 1),
        count = channels - first, part = 1 + (int)roll(&r->d, (unsigned)count);
    if (channels > 24) return;
    gcp_tensor slice = gcp_slice(all, .first = first, .count = count);
    if (roll(&r->d, 2)) net_push(r, low);
    net_push(r, gcp_tanh(roll(&r->d, 2) ? all : slice));
    net_push(r, gcp_slice(slice, .first = (int)roll(&r->d, (unsigned)(count - part) + 1), .count = part));
}

static inline void net_loss(random_net *r, gcp_tensor loss)
{
    r->extra = gcp_is_nil(r->extra) ? loss : gcp_add(r->extra, loss);
}

/* A gated cell, its weights shared over time; its end is a loss of its own. */
static inline void net_recurrent(random_net *r)
{
    char name[24];
    snprintf(name, sizeof name, "cell%d", r->cells++);
    gcp_tensor w = gcp_param(r->tape, name, GCP_SHAPE(8, 8), .init = GCP_INIT_GLOROT, .fan_in = 8, .fan_out = 8);
    gcp_tensor x = gcp_linear(gcp_global_avg_pool(net_pick(r)), .out = 4), h = gcp_tanh(x), c = h;
    int steps = roll(&r->d, 8) ? 2 + (int)roll(&r->d, 6) : 64;
    for (int t = 0; t < steps; t++) {
        gcp_tensor gates = gcp_linear_op(net_concat_2(r, x, h), w, GCP_NIL),
                   open = gcp_sigmoid(gcp_slice(gates, .first = 0, .count = 4));
        c = gcp_add(gcp_mul(c, open), gcp_tanh(gcp_slice(gates, .first = 4, .count = 4)));
        h = gcp_mul(gcp_tanh(c), open);
    }
    net_loss(r, gcp_mean(gcp_mul(h, h)));
}

/* Two outputs of one op, of which one may be of no use: half of x, and its square. */
static inline int net_two_shape(gcp_shape_call *c)
{
    c->out[0] = c->out[1] = c->in[0];
    return 1;
}
static inline void net_two_run(const gcp_call *c, int back)
{
    const gcp_shape s = c->in[0].shape;
    for (ptrdiff_t row = 0; row < (ptrdiff_t)s.d[0] * s.d[1] * s.d[2]; row++)
        for (int k = 0; k < s.d[3]; k++) {
            double x = ((gcp_real *)c->in[0].data)[row * c->in[0].pitch + k];
            gcp_real *out[2];
            for (int j = 0; j < 2; j++) {
                const gcp_view *v = back ? &c->dout[j] : &c->out[j];
                out[j] = v->data ? (gcp_real *)v->data + row * v->pitch + k : NULL;
            }
            if (!back && out[0]) *out[0] = (gcp_real)(x / 2);
            if (!back && out[1]) *out[1] = (gcp_real)(x * x);
            if (!back || !c->din[0].data) continue;
            gcp_real *in = (gcp_real *)c->din[0].data + row * c->din[0].pitch + k;
            double sum = (out[0] ? (double)*out[0] / 2 : 0) + (out[1] ? 2 * x * (double)*out[1] : 0);
            *in = (gcp_real)(sum + (c->din[0].accumulate ? (double)*in : 0));
        }
}
static inline void net_two_forward(const gcp_call *c) { net_two_run(c, 0); }
static inline void net_two_backward(const gcp_call *c) { net_two_run(c, 1); }

static inline void net_two(random_net *r)
{
    static const gcp_op two = { .name = "two", .shape = net_two_shape, .forward = net_two_forward,
                                .backward = net_two_backward, .reads_in = 1, .outputs = 2 };
    gcp_tensor in = net_pick(r), out[2];
    if (!r->custom) return;
    gcp_custom(&in, 1, &two, .outputs = out);
    unsigned used = 1 + roll(&r->d, 3);
    for (unsigned j = 0; j < 2; j++) if (used >> j & 1) net_push(r, gcp_tanh(out[j]));
}

static inline void net_shape(random_net *r)
{
    switch (roll(&r->d, 6)) {
    case 0: case 1: net_dense(r); break;
    case 2: net_nested_views(r); break;
    case 3: net_recurrent(r); break;
    case 4: net_two(r); break;
    default: net_loss(r, gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(net_pick(r)), .out = 5), r->label));
    }
}

static inline void net_blocks(random_net *r, int ops, int depth)
{
    while (ops > 0) {
        int inside = 1 + (int)roll(&r->d, 5);
        if (depth < 3 && roll(&r->d, 3) == 0)
            GCP_SEGMENT(r->tape, "block", .keep = roll(&r->d, 6) == 0 ? GCP_KEEP_PRODUCTS | GCP_KEEP_PAIRS : 0)
                {
                net_push(r, net_op(r));
                net_blocks(r, inside - 1, depth + 1);
            }
        else if (roll(&r->d, 12) == 0) net_shape(r);
        else for (int i = 0; i < inside; i++) net_push(r, net_op(r));
        ops -= inside;
    }
}

/* 4 to about 40 ops and a shape or two, then the heads: cross-entropy of one tensor, the mean of another scaled, and
   other losses. custom: with ops of its own. */
static inline random_net net_make_with(gcp_arena *arena, unsigned seed, int custom)
{
    random_net r = { .custom = custom, .extra = GCP_NIL };
    r.d.s = 0x9E3779B97F4A7C15u ^ ((uint64_t)seed + 1) * 0xD1B54A32D192ED03u;
    for (int i = 0; i < 8; i++) roll(&r.d, 2);
    r.tape = gcp_tape_make(arena, .ops = 1024, .seed = seed);
    r.image = gcp_input(r.tape, "image",
                        GCP_SHAPE(2, 3 + (int)roll(&r.d, 4), 3 + (int)roll(&r.d, 4), 1 + (int)roll(&r.d, 4)));
    r.label = gcp_labels(r.tape, "label", GCP_SHAPE(2));
    if (roll(&r.d, 2)) r.image = gcp_want_grad(r.image);
    net_push(&r, gcp_conv2d(r.image, .out = 3, .k = 3, .pad = 1));
    net_blocks(&r, 4 + (int)roll(&r.d, 36), 0);
    gcp_tensor last = r.pool[r.count - 1], other = net_pick(&r);
    r.loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(last), .out = 5), r.label);
    if (roll(&r.d, 3) == 0) r.loss = gcp_add(r.loss, gcp_mean(gcp_mul(other, other)));
    if (!gcp_is_nil(r.extra)) r.loss = gcp_add(r.loss, r.extra);
    return r;
}
static inline random_net net_make(gcp_arena *arena, unsigned seed) { return net_make_with(arena, seed, 0); }

/* What the property tests vary: a policy (7: replayed checkpoints, 8: a budget) with its numbers, an optimiser with its
   options. */
static inline gcp_plan_opts net_policy(int policy, unsigned seed, int units)
{
    gcp_plan_opts o = { .at = GCP_AT, .policy = (gcp_policy)(policy % 7) };
    o.segments = 1 + (int)(seed % (unsigned)(units < 6 ? units : 6));
    o.balance = (int)(seed & 1);
    o.checkpoints = (int)(seed % (unsigned)(units < 5 ? units : 5));
    o.replay = policy == 7;
    if (policy == 7) o.policy = GCP_POLICY_CHECKPOINTS;
    if (policy == 8) {
        o.policy = GCP_POLICY_BUDGET;
        o.effort = GCP_EFFORT_QUICK;
        o.far = seed % 2 ? GCP_MB(8) : 0;
        o.far_only = seed % 4 == 3;
    }
    return fitting(o);
}

/* The plan of those options; a budget is some share of what keep-all takes, or the least one where that is too
   little. */
static inline gcp_plan net_plan(gcp_tensor loss, gcp_plan_opts o, unsigned seed)
{
    if (o.policy != GCP_POLICY_BUDGET) return gcp_plan_make_at(loss, fitting(o));
    gcp_plan_opts keep = o;
    keep.policy = GCP_POLICY_KEEP_ALL;
    o.budget = gcp_plan_make_at(loss, fitting(keep)).bytes * (30 + 7 * (seed % 11)) / 100;
    gcp_plan plan = gcp_plan_make_at(loss, o);
    if (plan.core || gcp_error_code(loss.tape) != GCP_E_BUDGET) return plan;
    gcp_error_clear(loss.tape);
    o.budget = plan.least_bytes;
    return gcp_plan_make_at(loss, o);
}

static inline gcp_plan_opts net_training(gcp_plan_opts o, unsigned seed)
{
    static const gcp_optimizer kinds[] = { GCP_OPTIMIZER_SGD, GCP_OPTIMIZER_ADAM, GCP_OPTIMIZER_ADAMW };
    o.optimizer = kinds[seed % 3];
    o.momentum = 0.9;
    o.weight_decay = 0.01;
    o.fuse_update = seed % 4 == 1;
    o.clip_norm = seed % 4 == 2 ? 0.5 : 0;
    o.accumulate = seed % 4 == 3 ? 2 : 0;
    return fitting(o);
}

/* What trains, and how fast: in a third of the networks a parameter is frozen, in another all batch-norms are, with
   their statistics; half of them have rates and decays by path. The texts are good until the next call. */
static inline gcp_plan_opts net_choices(gcp_plan_opts o, unsigned seed, gcp_tape *tape)
{
    static char one[2][512];
    int count = 0, norms = 0;
    char path[256] = "";
    for (; !gcp_is_nil(gcp_nth_parameter(tape, count)); count++)
        norms |= strstr(gcp_name(gcp_nth_parameter(tape, count), path, sizeof path), "batch_norm") != NULL;
    if (count < 3) return o;
    gcp_name(gcp_nth_parameter(tape, (int)(seed / 3) % count), path, sizeof path);
    snprintf(one[0], sizeof one[0], "%s", path);
    snprintf(one[1], sizeof one[1], "%s 3\n* 0.5", path);
    if (seed % 3 == 1) o.freeze = one[0];
    if (seed % 3 == 2 && norms) { o.freeze = "*batch_norm*"; o.frozen_norms = 1; }
    if (o.optimizer && seed % 2) { o.rates = one[1]; o.decays = one[1]; }
    return o;
}
#endif
