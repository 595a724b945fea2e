/* random_net.h - random networks for property tests: skips, fan-out, concat, slice, reshape, dropout, batch-norm,
   shared weights, chances to work in place, nested segments. The same seed records the same network. */
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

enum { NET_MAX = 96 };
typedef struct random_net {
    gcp_tape *tape;
    gcp_tensor pool[NET_MAX]; int count;         /* activations to draw from */
    gcp_tensor image, label, loss;
    gcp_tensor shared[8];                        /* 3x3 weights for c -> c, made when first wanted */
    gcp_tensor triples[NET_MAX]; int triple_count;         /* concats of three tensors; the others have two */
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

static inline gcp_tensor net_triple(random_net *r, gcp_tensor x)
{
    gcp_tensor third = net_partner(r, x, 0), first = net_partner(r, x, 0);
    return r->triples[r->triple_count++] = gcp_concat(GCP_TENSORS(first, x, third));
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
    switch (roll(&r->d, 8)) {
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
    switch (roll(&r->d, 4)) {
    case 0: return x;
    case 1: return gcp_leaky_relu(x, .slope = 0.1);
    default: return gcp_relu(x);
    }
}

static inline gcp_tensor net_op(random_net *r)
{
    gcp_tensor x = net_pick(r);
    gcp_shape s = gcp_shape_of(x);
    switch (roll(&r->d, 14)) {
    case 0:
        return gcp_conv2d(x, .out = 1 + (int)roll(&r->d, 6), .k = 1 + 2 * (int)roll(&r->d, 2),
                          .padding = GCP_PADDING_SAME, .no_bias = (int)roll(&r->d, 2));
    case 1: return net_shared(r, x);
    case 2: return net_group(r, gcp_batch_norm(x));
    case 3: return gcp_layer_norm(x);
    case 4: return net_group(r, gcp_add(x, net_partner(r, x, 1)));
    case 5: return gcp_mul(x, net_partner(r, x, 1));
    case 6: return s.d[3] <= 12 ? gcp_concat(GCP_TENSORS(x, net_partner(r, x, 0))) : gcp_relu(x);
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

static inline void net_blocks(random_net *r, int ops, int depth)
{
    while (ops > 0) {
        int inside = 1 + (int)roll(&r->d, 5);
        if (depth < 3 && roll(&r->d, 3) == 0)
            GCP_SEGMENT(r->tape, "block", .keep = roll(&r->d, 6) == 0 ? GCP_KEEP_CONV2D | GCP_KEEP_ADD : GCP_KEEP_NONE)
                {
                net_push(r, net_op(r));
                net_blocks(r, inside - 1, depth + 1);
            }
        else for (int i = 0; i < inside; i++) net_push(r, net_op(r));
        ops -= inside;
    }
}

/* 4 to about 40 ops, then two heads: cross-entropy of one tensor, and the mean of another scaled. */
static inline random_net net_make(gcp_arena *arena, unsigned seed)
{
    random_net r = { .d = { 0x9E3779B97F4A7C15u ^ ((uint64_t)seed + 1) * 0xD1B54A32D192ED03u } };
    for (int i = 0; i < 8; i++) roll(&r.d, 2);
    r.tape = gcp_tape_make(arena, .ops = 256, .seed = seed);
    r.image = gcp_input(r.tape, "image",
                        GCP_SHAPE(2, 3 + (int)roll(&r.d, 4), 3 + (int)roll(&r.d, 4), 1 + (int)roll(&r.d, 4)));
    r.label = gcp_labels(r.tape, "label", GCP_SHAPE(2));
    if (roll(&r.d, 2)) r.image = gcp_want_grad(r.image);
    net_push(&r, gcp_conv2d(r.image, .out = 3, .k = 3, .pad = 1));
    net_blocks(&r, 4 + (int)roll(&r.d, 36), 0);
    gcp_tensor last = r.pool[r.count - 1], other = net_pick(&r);
    r.loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(last), .out = 5), r.label);
    if (roll(&r.d, 3) == 0) r.loss = gcp_add(r.loss, gcp_mean(gcp_mul(other, other)));
    return r;
}

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
    if (plan.in || gcp_error_code(loss.tape) != GCP_E_BUDGET) return plan;
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
#endif
