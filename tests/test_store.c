/* GCP_STORE_BF16: each op gives the bits of the same op in floats, rounded, on every instruction set, by any threads,
   whatever lies in two bytes beside it; near what floats give; half of the bytes; the same training goes on. */
#include <stdlib.h>
#include "support/check.h"
#include "support/halves.h"
#include "support/pointwise.h"

static unsigned char tape_memory[1 << 22], probe[1 << 22];
static _Alignas(64) unsigned char memory[1 << 23];
static gcp_tape *net;
static gcp_tensor image, other, labels, ids, lengths, weights; /* inputs, of which an op may take some */
static int channels = 12;                                      /* of x */

/* Values between -1.3 and 1.3. */
static float value(size_t i, unsigned salt)
{
    return (float)((i * 2654435761u + salt * 40503u) >> 7 & 1023) / 400 - 1.28f;
}

/* ---- ops ---- */

static gcp_tensor op_conv(gcp_tensor x) { return gcp_conv2d(x, .out = 9, .k = 3, .pad = 1, .stride = 2); }
static gcp_tensor op_conv_same(gcp_tensor x) { return gcp_relu(gcp_conv2d(x, .out = 7, .k = 3, .pad = 1)); }
static gcp_tensor op_conv_group(gcp_tensor x) { return gcp_relu(gcp_add(gcp_conv2d(x, .out = 12, .k = 1), x)); }
static gcp_tensor op_conv_leaky(gcp_tensor x) { return gcp_leaky_relu(gcp_conv2d(x, .out = 6, .k = 3), .slope = 0.3); }
static gcp_tensor op_conv_groups(gcp_tensor x) { return gcp_conv2d(x, .out = 8, .k = 3, .groups = 4, .pad = 1); }
static gcp_tensor op_depthwise(gcp_tensor x) { return gcp_conv2d(x, .out = 12, .k = 3, .groups = 12, .pad = 1); }
static gcp_tensor op_transposed(gcp_tensor x) { return gcp_conv_transpose2d(x, .out = 5, .k = 3, .stride = 2); }
static gcp_tensor op_norm(gcp_tensor x) { return gcp_batch_norm(gcp_conv2d(x, .out = 10, .k = 1, .no_bias = 1)); }
static gcp_tensor op_norm_relu(gcp_tensor x) { return gcp_relu(gcp_batch_norm(x)); }
static gcp_tensor op_norm_add(gcp_tensor x) { return gcp_relu6(gcp_add(gcp_tanh(x), gcp_batch_norm(x))); }
static gcp_tensor op_norm_views(gcp_tensor x) /* of channels that lie beside others */
{
    gcp_tensor y = gcp_concat(GCP_TENSORS(gcp_relu(gcp_batch_norm(x)), x)), z = gcp_batch_norm(y);
    return gcp_add(gcp_relu(gcp_batch_norm(gcp_slice(z, .first = 1, .count = channels))), gcp_relu6(gcp_batch_norm(x)));
}
static gcp_tensor op_norm_leaky(gcp_tensor x)
{
    return gcp_conv2d(gcp_leaky_relu(gcp_batch_norm(x)), .out = 3, .k = 1);
}
static gcp_tensor op_norm_frozen(gcp_tensor x)
{
    return gcp_clamp(gcp_batch_norm(x, .frozen = 1), .low = -0.7, .high = 0.3);
}
static gcp_tensor op_layer_norm(gcp_tensor x) { return gcp_layer_norm(x); }
static gcp_tensor op_rms_norm(gcp_tensor x) { return gcp_rms_norm(gcp_tanh(x)); }
static gcp_tensor op_group_norm(gcp_tensor x) { return gcp_group_norm(x, .groups = 3); }
static gcp_tensor op_linear(gcp_tensor x) { return gcp_linear(gcp_flatten(x), .out = 11); }
static gcp_tensor op_max_pool(gcp_tensor x) { return gcp_max_pool(x, .k = 3, .stride = 2, .pad = 1); }
static gcp_tensor op_max_pool_gaps(gcp_tensor x) { return gcp_max_pool(gcp_add(x, gcp_tanh(x)), .k = 2, .stride = 3); }
static gcp_tensor op_max_pool_tiles(gcp_tensor x)
{
    return gcp_add(gcp_global_avg_pool(x),
                   gcp_global_avg_pool(gcp_max_pool(gcp_slice(x, .first = 0, .count = 12), .k = 2)));
}
static gcp_tensor op_avg_pool(gcp_tensor x) { return gcp_avg_pool(x, .k = 3, .stride = 1, .pad = 1); }
static gcp_tensor op_global(gcp_tensor x) { return gcp_mul(x, gcp_sigmoid(gcp_global_avg_pool(x))); }
static gcp_tensor op_upsample(gcp_tensor x) { return gcp_upsample(x, .factor = 2, .mode = GCP_UPSAMPLING_BILINEAR); }
static gcp_tensor op_resize(gcp_tensor x) { return gcp_resize(x, .height = 3, .width = 5); }
static gcp_tensor op_softmax(gcp_tensor x) { return gcp_softmax(x); }
static gcp_tensor op_log_softmax(gcp_tensor x) { return gcp_log_softmax(x); }
static gcp_tensor op_dropout(gcp_tensor x)
{
    return gcp_dropout(gcp_dropout(x, .rate = 0.3), .rate = 0.2, .per_sample = 1);
}
static gcp_tensor op_concat(gcp_tensor x) { return gcp_concat(GCP_TENSORS(gcp_tanh(x), x, gcp_relu(x))); }
static gcp_tensor op_join(gcp_tensor x) { return gcp_concat(GCP_TENSORS(gcp_tanh(x), x), .axis = GCP_AXIS_WIDTH); }
static gcp_tensor op_cut(gcp_tensor x)
{
    return gcp_slice(x, .first = 1, .count = 2, .step = 2, .axis = GCP_AXIS_HEIGHT);
}
static gcp_tensor op_slice(gcp_tensor x) { return gcp_tanh(gcp_slice(x, .first = 3, .count = 4)); }
static gcp_tensor op_pad(gcp_tensor x)
{
    return gcp_pad(gcp_relu(x), .before = 2, .after = 1, .axis = GCP_AXIS_HEIGHT, .mode = GCP_PAD_EDGE);
}
static gcp_tensor op_pad_zeros(gcp_tensor x)
{
    gcp_tensor y = gcp_tanh(x);
    return gcp_mul(gcp_pad(y, .before = 1, .after = 2, .axis = GCP_AXIS_WIDTH),
                   gcp_pad(gcp_tanh(y), .before = 3, .axis = GCP_AXIS_WIDTH));
}
static gcp_tensor op_largest(gcp_tensor x)
{
    gcp_tensor y = gcp_tanh(x);
    return gcp_add(gcp_reduce(y, .by = GCP_REDUCE_MAX, .height = 1), gcp_reduce(y, .by = GCP_REDUCE_MAX, .width = 1));
}
static gcp_tensor op_transpose(gcp_tensor x) { return gcp_transpose(gcp_tanh(x), 0, 3, 1, 2); }
static gcp_tensor op_reshape(gcp_tensor x)
{
    return gcp_tanh(gcp_reshape(gcp_slice(x, .first = 0, .count = 8), GCP_SHAPE(2, 96, 5)));
}
static gcp_tensor op_reduce(gcp_tensor x) { return gcp_sub(x, gcp_reduce(x, .by = GCP_REDUCE_MAX, .channels = 1)); }
static gcp_tensor op_mean_of(gcp_tensor x) { return gcp_add(x, gcp_reduce(x, .height = 1, .width = 1)); }
static gcp_tensor op_twice(gcp_tensor x)
{
    return gcp_mul(gcp_conv2d(x, .out = 4, .k = 1), gcp_conv2d(x, .out = 4, .k = 1));
}
static gcp_tensor op_square(gcp_tensor x)
{
    gcp_tensor y = gcp_tanh(x);
    return gcp_mul(y, y);
}
static gcp_tensor op_prelu(gcp_tensor x)
{
    return gcp_prelu(x, gcp_param(net, "slopes", GCP_SHAPE(12), .init = GCP_INIT_ONES));
}
static gcp_tensor op_bias(gcp_tensor x)
{
    return gcp_bias(gcp_tanh(x), gcp_param(net, "shift", GCP_SHAPE(12), .init = GCP_INIT_ONES));
}
static gcp_tensor op_position(gcp_tensor x)
{
    return gcp_add(x, gcp_tanh(gcp_param(net, "place", GCP_SHAPE(1, 6, 10, 12), .init = GCP_INIT_ONES)));
}
static gcp_tensor op_matmul(gcp_tensor x)
{
    return gcp_matmul(gcp_softmax(gcp_matmul(x, gcp_tanh(x), .transpose_b = 1)), x);
}
static gcp_tensor op_matmul_shared(gcp_tensor x)                /* one matrix of many rows; one of an image's six */
{
    gcp_tensor mean = gcp_tanh(gcp_reduce(x, .height = 1)), k = gcp_param(net, "k", GCP_SHAPE(12, 9));
    gcp_tensor turned = gcp_matmul(mean, gcp_matmul(gcp_relu(x), k), .transpose_a = 1);
    return gcp_matmul(gcp_matmul(x, mean, .transpose_b = 1), gcp_matmul(mean, turned));
}
static gcp_tensor op_readers(gcp_tensor x)
{
    gcp_tensor y = gcp_tanh(x), sum = gcp_relu(y);
    for (int i = 0; i < 5; i++) sum = gcp_add(sum, gcp_conv2d(y, .out = 12, .k = 1));
    return sum;
}
static gcp_tensor op_attention(gcp_tensor x)
{
    gcp_tensor t = gcp_reshape(x, GCP_SHAPE(2, 60, 12)), q = gcp_linear(t, .out = 12), k = gcp_linear(t, .out = 6);
    return gcp_attention(q, k, gcp_linear(t, .out = 8), .heads = 4, .causal = 1);
}
static gcp_tensor op_attention_bias(gcp_tensor x)
{
    gcp_tensor t = gcp_reshape(x, GCP_SHAPE(2, 60, 12));
    return gcp_attention(gcp_tanh(t), t, gcp_relu(t), .heads = 3, .lengths = lengths,
                         .bias = gcp_tanh(gcp_param(net, "bias", GCP_SHAPE(1, 3, 60, 60), .init = GCP_INIT_ONES)));
}
static gcp_tensor op_embedding(gcp_tensor x)
{
    return gcp_add(gcp_global_avg_pool(x),
                   gcp_linear(gcp_flatten(gcp_embedding(ids, .entries = 9, .out = 7)), .out = 12));
}
#define OP(name)         \
    {                    \
#name, op_##name \
    }
static const struct {
    const char *name;
    gcp_tensor (*record)(gcp_tensor x);
} ops[] = { OP(conv),
            OP(conv_same),
            OP(conv_group),
            OP(conv_leaky),
            OP(conv_groups),
            OP(depthwise),
            OP(transposed),
            OP(norm),
            OP(norm_relu),
            OP(norm_add),
            OP(norm_views),
            OP(norm_leaky),
            OP(norm_frozen),
            OP(layer_norm),
            OP(rms_norm),
            OP(group_norm),
            OP(linear),
            OP(max_pool),
            OP(max_pool_gaps),
            OP(max_pool_tiles),
            OP(avg_pool),
            OP(global),
            OP(upsample),
            OP(resize),
            OP(softmax),
            OP(log_softmax),
            OP(dropout),
            OP(concat),
            OP(join),
            OP(cut),
            OP(slice),
            OP(pad),
            OP(pad_zeros),
            OP(largest),
            OP(transpose),
            OP(reshape),
            OP(reduce),
            OP(mean_of),
            OP(twice),
            OP(square),
            OP(prelu),
            OP(bias),
            OP(position),
            OP(matmul),
            OP(matmul_shared),
            OP(readers),
            OP(attention),
            OP(attention_bias),
            OP(embedding) };
enum { OPS = sizeof ops / sizeof *ops };

/* Losses of what an op made, y: of rows of classes, soft or weighted; of two tensors. */
static gcp_tensor loss_of(gcp_tensor y, int which)
{
    const gcp_shape s = gcp_shape_of(y);
    gcp_tensor rows = gcp_linear(gcp_global_avg_pool(s.d[1] * s.d[2] > 1 ? y : gcp_tanh(y)), .out = 5);
    switch (which % 5) {
    case 0: return gcp_cross_entropy(rows, labels, .smoothing = 0.1);
    case 1: return gcp_cross_entropy(rows, gcp_softmax(gcp_linear(gcp_global_avg_pool(other), .out = 5)));
    case 2: return gcp_mse(y, gcp_tanh(gcp_scale(y, .by = 0.5)));
    case 3: return gcp_add(gcp_mean(gcp_square(y)), gcp_cross_entropy(rows, labels, .sample_weights = weights));
    default: return gcp_smooth_l1(y, gcp_scale(y, .by = -0.25));
    }
}

static gcp_tensor record(int op, int pointwise)
{
    static gcp_arena arena;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 7);
    image = gcp_want_grad(gcp_input(net, "image", GCP_SHAPE(2, 7, 9, 3)));
    other = gcp_input(net, "other", GCP_SHAPE(2, 3, 3, 4));
    labels = gcp_labels(net, "labels", GCP_SHAPE(2));
    ids = gcp_ids(net, "ids", GCP_SHAPE(2, 4));
    lengths = gcp_labels(net, "lengths", GCP_SHAPE(2));
    weights = gcp_input(net, "weights", GCP_SHAPE(2));
    gcp_tensor x = gcp_conv2d(image, .out = channels, .kh = 2, .kw = 2, .pad_left = 1, .pad_right = 1), y;
    if (op < OPS) GCP_SEGMENT(net, "op") y = ops[op].record(x);
    else y = pointwise_calls[pointwise](x);
    return loss_of(y, op + pointwise);
}

static void write_all(gcp_plan *plan)
{
    static float some[2 * 7 * 9 * 3];
    const int32_t label[2] = { 3, 1 }, id[8] = { 1, 8, 1, 0, 2, 2, 7, 1 }, length[2] = { 60, 33 };
    const float weight[2] = { 0.5f, 2 };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) some[i] = gcp_bf16_value(gcp_bf16(value(i, 1)));
    gcp_write(plan, image, some);
    gcp_write(plan, other, some);
    gcp_write(plan, labels, label);
    gcp_write(plan, ids, id);
    gcp_write(plan, lengths, length);
    gcp_write(plan, weights, weight);
}

/* Loss, gradients of all parameters and of the image after a step; how many numbers. */
enum { MOST = 1 << 15, MOST_PARTS = 32 };
static size_t parts[MOST_PARTS]; /* where the numbers of each tensor end */
static int part_count;
static size_t results(int op, int pointwise, gcp_plan_opts o, float *out)
{
    size_t n = parts[0] = 1;
    gcp_tensor loss = record(op, pointwise); /* anew: random draws depend on how many steps ran */
    gcp_plan plan = gcp_plan_make_at(loss, o);
    gcp_bind(&plan, memory, sizeof memory);
    write_all(&plan);
    out[0] = (float)gcp_step(&plan);
    part_count = 1;
    for (int i = 0; !gcp_error(net); i++) {
        gcp_tensor p = i ? gcp_nth_parameter(net, i - 1) : image;
        if (gcp_is_nil(p)) break;
        if (gcp_grad(&plan, p, out + n)) gcp_error_clear(net);
        else if (part_count < MOST_PARTS) parts[part_count++] = n += gcp_elements(p);
    }
    if (gcp_plan_ok(&plan) && !o.check && !o.target->kernels)
        CHECK_INT(gcp_measure(&plan, probe, sizeof probe), ==, plan.bytes);
    return n;
}

/* ---- how far from floats ---- */

/* Rounds to a neighbour in bfloat16: to either, by chance, so that the mean is x; or all values of a tensor away from
   0, or towards it. */
enum { BY_CHANCE, BY_CHANCE_TOO, AWAY, TOWARDS, ROUNDINGS };
static int rounding;
static unsigned chance;
static void round_somehow(const gcp_call *c)
{
    const gcp_view *v = &c->out[0];
    const gcp_shape s = v->shape;
    for (ptrdiff_t p = 0; p < (ptrdiff_t)s.d[0] * s.d[1] * s.d[2]; p++)
        for (int k = 0; k < s.d[3]; k++) {
            float *x = (float *)v->data + p * v->pitch + k;
            unsigned bits;
            memcpy(&bits, x, sizeof bits);
            if (rounding <= BY_CHANCE_TOO) bits += (chance = chance * 1664525u + 1013904223u) >> 16;
            else if (rounding == AWAY) bits += 0xffff;
            bits &= 0xffff0000u;
            memcpy(x, &bits, sizeof bits);
        }
}
/* The root mean square of what lies between two results, from a number on. */
static double apart(const float *a, const float *b, size_t first, size_t end)
{
    double sum = 0;
    for (size_t i = first; i < end; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sqrt(sum / (double)(end - first));
}
/* The largest difference, as a share of the largest value. */
static double share_apart(const float *a, const float *b, size_t n)
{
    double most = 0, size = 0;
    for (size_t i = 0; i < n; i++) {
        most = fmax(most, fabs((double)a[i] - (double)b[i]));
        size = fmax(size, fabs((double)a[i]));
    }
    return size > 0 ? most / size : most;
}
/* The rule rounds to the nearest. Each gradient is no farther from that in floats than twice what comes of
   rounding to any neighbour. */
static double farthest;
static void explained(const char *name, int op, int pointwise, gcp_plan_opts o, const float *floats, const float *near)
{
    static float found[ROUNDINGS][MOST];
    static gcp_op rows[GCP_ROW_COUNT];
    const double most = 2;
    gcp_target target = *o.target;
    memcpy(rows, target.kernels, sizeof rows);
    rows[GCP_ROW_ROUND].forward = round_somehow;
    target.kernels = rows;
    o.target = &target;
    for (rounding = 0; rounding < ROUNDINGS; rounding++) results(op, pointwise, o, found[rounding]);
    CHECK_INT(part_count, <, MOST_PARTS);
    for (int part = 0; part < part_count; part++) {
        const size_t first = part ? parts[part - 1] : 0, end = parts[part];
        double some = 0;
        for (int k = 0; k < ROUNDINGS; k++) some = fmax(some, apart(floats, found[k], first, end));
        const double off = apart(floats, near, first, end);
        farthest = fmax(farthest, some > 0 ? off / some : 0);
        if (off > most * some)
            fprintf(stderr, "%s, tensor %d: %g from floats, roundings explain %g\n", name, part, off, some);
        CHECK(off <= most * some);
    }
}

static void one(const char *name, int op, int pointwise, unsigned seed)
{
    static float floats[MOST], wanted[MOST], found[MOST];
    gcp_target target = { .isa = instructions(seed, probe, sizeof probe) }, plain = target;
    plain.kernels = float_kernels();
    const size_t n = results(op, pointwise,
                             (gcp_plan_opts){ .at = GCP_AT, .policy = GCP_POLICY_KEEP_ALL, .target = &target }, floats);
    const gcp_plan_opts literal = {
        .at = GCP_AT, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL, .no_groups = 1, .target = &plain
    };
    results(op, pointwise, literal, wanted);
    explained(name, op, pointwise, literal, floats, wanted);
    for (int way = 0; way < 4; way++) {
        gcp_plan_opts o = { .at = GCP_AT,
                            .store = GCP_STORE_BF16,
                            .policy = way & 1 ? GCP_POLICY_KEEP_ALL : GCP_POLICY_SEGMENTS,
                            .target = &target };
        o.no_groups = way == 2;
        o.check = way == 2 ? GCP_CHECK : 0;
        if (way == 3) {
            target.threads = 3;
            target.parallel_for = backwards;
        }
        CHECK_INT(results(op, pointwise, o, found), ==, n);
        const int same = !memcmp(wanted, found, n * sizeof *found);
        if (!same) fprintf(stderr, "%s, instruction set %d, way %d: other bits\n", name, target.isa, way);
        CHECK(same);
    }
    /* 8 bits of a value, a few roundings: a hundredth of the largest; what goes by sign may flip near 0 */
    const double off = share_apart(floats, wanted, n);
    if (off > 0.06 || off == 0) fprintf(stderr, "%s: %g from floats\n", name, off);
    CHECK(off < 0.06 && off > 0);
    if (gcp_error(net)) fprintf(stderr, "%s: %s\n", name, gcp_error(net));
    CHECK(!gcp_error(net));
}

/* ---- one number ---- */

static void numbers(void)
{
    for (unsigned h = 0; h < 65536; h++) {
        const float x = gcp_bf16_value((uint16_t)h);
        if (isnan(x)) CHECK(isnan(gcp_bf16_value(gcp_bf16(x))));
        else CHECK_INT(gcp_bf16(x), ==, h);
        /* between two neighbours the nearer one, halfway the even one */
        const float next = gcp_bf16_value((uint16_t)(h + 1)), middle = (float)(((double)x + (double)next) / 2);
        if ((h & 0x7fff) >= 0x7f7f) continue;
        CHECK_INT(gcp_bf16(middle), ==, h & 1 ? h + 1 : h);
        CHECK_INT(gcp_bf16(nextafterf(middle, x)), ==, h);
        CHECK_INT(gcp_bf16(nextafterf(middle, next)), ==, h + 1);
    }
    CHECK_INT(gcp_bf16(3.4e38f), ==, 0x7f80);
    CHECK_INT(gcp_bf16(-INFINITY), ==, 0xff80);
}

/* Values from all over float's range: each half, or what lies between it and the next one. */
enum { ALL = 1 << 16, ROW = 512 };
static float range[ALL], seen[ALL];
static void range_make(void)
{
    static const unsigned between[4] = { 0, 0x7fff, 0x8000, 0x8001 };
    for (unsigned i = 0; i < ALL; i++) {
        const unsigned bits = i << 16 | between[(i ^ i >> 1 ^ i >> 4) % 4];
        memcpy(&range[i], &bits, sizeof bits);
    }
}
static gcp_tensor range_net(gcp_tensor (*op)(gcp_tensor x), gcp_tensor *y)
{
    static gcp_arena arena;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 3);
    image = gcp_want_grad(gcp_input(net, "image", GCP_SHAPE(ALL / ROW, ROW)));
    *y = op(image);
    return gcp_mean(*y);
}
static gcp_tensor bent_relu(gcp_tensor x) { return gcp_keep(gcp_relu(x)); }
static gcp_tensor bent_relu_mask(gcp_tensor x) { return gcp_relu(x); }
static gcp_tensor bent_relu6(gcp_tensor x) { return gcp_relu6(x); }
static gcp_tensor bent_band(gcp_tensor x) { return gcp_keep(gcp_clamp(x, .low = 0.3, .high = HUGE_VAL)); }
static gcp_tensor bent_band_mask(gcp_tensor x) { return gcp_clamp(x, .low = 0.3, .high = 1e-3 + 2); }
static gcp_tensor bent_below(gcp_tensor x) { return gcp_clamp(x, .low = -1.5, .high = 4); }
static gcp_tensor bent_nothing(gcp_tensor x) { return gcp_clamp(x, .low = -3e-45, .high = -1e-45); }
/* Inputs are rounded in runs. Bounds as the plan has them: the last two become one. */
static const struct { gcp_tensor (*op)(gcp_tensor x); float low, high; } bents[] = {
    { bent_relu, 0, INFINITY },       { bent_relu_mask, 0, INFINITY },  { bent_relu6, 0, 6 },
    { bent_band, 0.3f, INFINITY },    { bent_band_mask, 0.3f, 2.001f }, { bent_below, -1.5f, 4 },
    { bent_nothing, -0.0f, -0.0f } };
static void range_one(int bent, int isa)
{
    const gcp_target target = { .isa = isa };
    const float low = gcp_bf16_value(gcp_bf16(bents[bent].low)), high = gcp_bf16_value(gcp_bf16(bents[bent].high));
    gcp_tensor y, loss = range_net(bents[bent].op, &y);
    gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL, .target = &target);
    int bits = 0, values = 0, slopes = 0;
    gcp_bind(&plan, memory, sizeof memory);
    gcp_write(&plan, image, range);
    CHECK(gcp_read(&plan, image, seen) == GCP_OK);
    for (int i = 0; i < ALL; i++) bits += gcp_bf16(seen[i]) != gcp_bf16(range[i]);
    gcp_step(&plan);
    if (gcp_read(&plan, y, seen) == GCP_OK)
        for (int i = 0; i < ALL; i++) {
            const float x = gcp_bf16_value(gcp_bf16(range[i])), wanted = x < low ? low : x > high ? high : x;
            values += memcmp(&wanted, &seen[i], sizeof wanted) != 0;
        }
    else gcp_error_clear(net);
    CHECK(gcp_grad(&plan, image, seen) == GCP_OK);
    for (int i = 0; i < ALL; i++) {
        const float x = gcp_bf16_value(gcp_bf16(range[i]));
        slopes += seen[i] != (x > low && (x < high || isinf(high)) ? gcp_bf16_value(gcp_bf16(1.0f / ALL)) : 0);
    }
    if (bits + values + slopes)
        fprintf(stderr, "rectifier %d, instruction set %d: %d %d %d differ\n", bent, isa, bits, values, slopes);
    CHECK_INT(bits + values + slopes, ==, 0);
    CHECK(!gcp_error(net));
}
static void ranges(void)
{
    const int best = instructions_best(probe, sizeof probe);
    range_make();
    for (int bent = 0; bent < (int)(sizeof bents / sizeof *bents); bent++)
        for (int isa = GCP_ISA_SCALAR; isa <= best; isa++) range_one(bent, isa);
}

/* Batch-norm of few channels, and of some beyond whole vectors. */
static void widths(void)
{
    static const int some[] = { 3, 20, 24, 40, 65, 76, 110 };
    int views = 0;
    while (ops[views].record != op_norm_views) views++;
    for (unsigned i = 0; i < sizeof some / sizeof *some; i++) {
        channels = some[i];
        one("norm_views", views, 0, i);
    }
    channels = 12;
}

/* ---- bytes, values in and out ---- */

static gcp_tensor plain_net(void)
{
    static gcp_arena arena;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 3);
    image = gcp_want_grad(gcp_input(net, "image", GCP_SHAPE(4, 16, 16, 8)));
    labels = gcp_labels(net, "labels", GCP_SHAPE(4));
    gcp_tensor x = gcp_keep(gcp_relu(gcp_conv2d(image, .out = 16, .k = 3, .pad = 1)));
    other = x;
    for (int i = 0; i < 4; i++) x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1)));
    return gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 5), labels);
}
static void feed(gcp_plan *plan, unsigned salt)
{
    static float some[4 * 16 * 16 * 8];
    const int32_t label[4] = { 0, 1, 2, 3 };
    for (size_t i = 0; i < sizeof some / sizeof *some; i++) some[i] = value(i, salt);
    gcp_write(plan, image, some);
    gcp_write(plan, labels, label);
}
static void bytes(void)
{
    static float in[4 * 16 * 16 * 8], out[4 * 16 * 16 * 16], gradient[4 * 16 * 16 * 8];
    gcp_tensor loss = plain_net();
    gcp_plan floats = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    gcp_plan halves = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL);
    const size_t kept = floats.split.kept + floats.split.activation_gradients,
                 half = halves.split.kept + halves.split.activation_gradients;
    CHECK(half <= kept * 51 / 100);
    CHECK_INT(halves.split.inputs, <=, floats.split.inputs / 2 + 64);
    CHECK_INT(halves.split.weights, ==, floats.split.weights);
    gcp_bind(&halves, memory, sizeof memory);
    feed(&halves, 5);
    CHECK(gcp_read(&halves, image, in) == GCP_OK);
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) CHECK(in[i] == gcp_bf16_value(gcp_bf16(value(i, 5))));
    gcp_step(&halves);
    CHECK(gcp_read(&halves, other, out) == GCP_OK && gcp_grad(&halves, image, gradient) == GCP_OK);
    for (size_t i = 0; i < sizeof out / sizeof *out; i++) CHECK(out[i] == gcp_bf16_value(gcp_bf16(out[i])));
    for (size_t i = 0; i < sizeof in / sizeof *in; i++) CHECK(gradient[i] == gcp_bf16_value(gcp_bf16(gradient[i])));
    CHECK(!gcp_error(net));
}

static int has_duos(void)
{
    static gcp_arena arena;
    const gcp_target target = { .isa = GCP_ISA_AVX512_BF16 };
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *t = gcp_tape_make(&arena, .ops = 4);
    gcp_plan plan = gcp_plan_make(gcp_relu(gcp_input(t, "x", GCP_SHAPE(2))), .inference = 1, .target = &target);
    return gcp_plan_ok(&plan);
}

/* The cost model: where products bound a step, it takes as long as the rate of what is rounded says. */
static void rates(void)
{
    const gcp_target one = { .isa = GCP_ISA_SCALAR, .flops_per_second = 1e9, .bytes_per_second = 1e15 },
                     two = { .flops_per_second = 1e9, .bf16_flops_per_second = 2e9, .bytes_per_second = 1e15 },
                     duos = { .isa = GCP_ISA_AVX512_BF16, .flops_per_second = 1e9, .bytes_per_second = 1e15 };
    const gcp_target *of[4] = { &one, &one, &two, has_duos() ? &duos : &two };
    double seconds[4];
    for (int k = 0; k < 4; k++) {
        gcp_tensor loss = plain_net();
        seconds[k] = gcp_plan_make(loss, .store = k ? GCP_STORE_BF16 : GCP_STORE_REAL, .target = of[k]).seconds;
    }
    CHECK_NEAR(seconds[1], seconds[0], 1e-4 * seconds[0]);
    CHECK_NEAR(seconds[2], seconds[0] / 2, 1e-4 * seconds[0]);
    CHECK_NEAR(seconds[3], seconds[2], 1e-4 * seconds[0]);
}

/* Where the CPU multiplies bfloat16, weights are rounded first. With weights that are rounded already the loss has the
   bits of the kernels of floats, and so has the gradient of the input. */
static double loss_of_weights(int isa, int rounded, float *gradient)
{
    static float w[1 << 14];
    const gcp_target target = { .isa = isa };
    gcp_tensor loss = plain_net();
    gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .target = &target);
    gcp_bind(&plan, memory, sizeof memory);
    for (int i = 0; rounded && !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_tensor p = gcp_nth_parameter(net, i);
        gcp_read(&plan, p, w);
        for (size_t k = 0; k < gcp_elements(p); k++) w[k] = gcp_bf16_value(gcp_bf16(w[k]));
        gcp_write(&plan, p, w);
    }
    feed(&plan, 5);
    const double value = gcp_step(&plan);
    gcp_grad(&plan, image, gradient);
    CHECK(!gcp_error(net));
    return value;
}
static void weights_rounded(void)
{
    static float gradient[4][4 * 16 * 16 * 8];
    double loss[4];
    if (!has_duos()) return;
    for (int k = 0; k < 4; k++)
        loss[k] = loss_of_weights(k & 1 ? GCP_ISA_AVX512 : GCP_ISA_AVX512_BF16, k / 2, gradient[k]);
    CHECK(loss[2] == loss[3] && !memcmp(gradient[2], gradient[3], sizeof gradient[2]));
    CHECK(loss[0] == loss[2] && !memcmp(gradient[0], gradient[2], sizeof gradient[0]));
    CHECK(loss[1] != loss[3] && fabs(loss[1] - loss[3]) < 0.02 * loss[3]);
}

/* One value a sample is never rounded, nor what is multiplied by it: a head of one output, an input of one value. */
static void exact_products(void)
{
    static gcp_arena arena;
    float in[8], y[8], first[2][2];
    for (int i = 0; i < 8; i++) in[i] = (float)(997 + i);
    for (int k = 0; k < 2; k++) {
        const gcp_target target = { .isa = k && has_duos() ? GCP_ISA_AVX512_BF16 : GCP_ISA_SCALAR };
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 64, .seed = 3);
        gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(8, 1)), wide = gcp_linear(x, .out = 12);
        gcp_tensor head = gcp_linear(gcp_tanh(gcp_scale(wide, .by = 0.001)), .out = 1),
                   loss = gcp_mean(gcp_square(head));
        gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .target = &target);
        gcp_bind(&plan, memory, sizeof memory);
        gcp_write(&plan, x, in);
        gcp_step(&plan);
        CHECK(gcp_read(&plan, x, y) == GCP_OK && !memcmp(in, y, sizeof in));
        float gradient[12];
        CHECK(gcp_grad(&plan, gcp_nth_parameter(net, 2), gradient) == GCP_OK);
        first[k][0] = gradient[0];
        CHECK(gcp_grad(&plan, gcp_nth_parameter(net, 0), gradient) == GCP_OK);
        first[k][1] = gradient[0];
        CHECK(!gcp_error(net));
    }
    for (int i = 0; i < 2; i++) CHECK_NEAR(first[0][i], first[1][i], 2e-6 * fabs((double)first[0][i]));
}

/* Blocks of rows in floats: all tasks on the last worker, whose share of a workspace ends where the workspace does. */
static void on_last(void *context, int n, void (*task)(void *, int, int), void *argument)
{
    (void)context;
    for (int i = 0; i < n; i++) task(argument, i, 7);
}
static void blocks(int width)
{
    static float in[96 * 1500], out[96 * 1500];
    static gcp_arena arena;
    const gcp_target target = { .threads = 8, .parallel_for = on_last };
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 3);
    image = gcp_want_grad(gcp_input(net, "image", GCP_SHAPE(96, width)));
    gcp_tensor x = gcp_rms_norm(gcp_layer_norm(image)), y = gcp_dropout(gcp_gelu(gcp_batch_norm(x)), .rate = 0.5);
    x = gcp_softmax(gcp_group_norm(gcp_add(x, y), .groups = 3));
    gcp_tensor loss = gcp_add(gcp_mse(x, y), gcp_cross_entropy(y, gcp_log_softmax(x)));
    gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL, .check = GCP_CHECK,
                                  .target = &target);
    gcp_bind(&plan, memory, sizeof memory);
    for (size_t i = 0; i < 96u * (size_t)width; i++) in[i] = (float)(i % 7);
    gcp_write(&plan, image, in);
    gcp_step(&plan);
    CHECK(gcp_read(&plan, image, out) == GCP_OK && !memcmp(in, out, 96u * (size_t)width * sizeof *in));
    if (gcp_error(net)) fprintf(stderr, "width %d: %s\n", width, gcp_error(net));
    CHECK(!gcp_error(net));
}

/* Float, then bfloat16, then float again: state, slots and files are the tape's. */
static void goes_on(void)
{
    double loss[3], first = 0;
    gcp_tensor y = plain_net();
    for (int part = 0; part < 3; part++) {
        gcp_plan plan = gcp_plan_make(y, .store = part == 1 ? GCP_STORE_BF16 : GCP_STORE_REAL,
                                      .optimizer = GCP_OPTIMIZER_ADAM, .policy = GCP_POLICY_SQRT);
        gcp_bind(&plan, memory, sizeof memory);
        feed(&plan, 9);
        for (int i = 0; i < 12; i++) {
            loss[part] = gcp_step(&plan, .lr = 0.01);
            if (!part && !i) first = loss[0];
        }
        gcp_plan_free(&plan);
    }
    CHECK(loss[0] < first / 2 && loss[1] < loss[0] && loss[2] < loss[1]);
    CHECK(!gcp_error(net));
}

/* ---- custom ops ---- */

static int calls[2]; /* with floats, with halves */
static int half_shape(gcp_shape_call *c)
{
    c->out[0] = c->in[0];
    return 1;
}
static float get(const gcp_view *v, ptrdiff_t i)
{
    return v->dtype == GCP_DTYPE_BF16 ? gcp_bf16_value(((const uint16_t *)v->data)[i]) : ((const float *)v->data)[i];
}
static void put(const gcp_view *v, ptrdiff_t i, float x)
{
    if (v->accumulate) x += get(v, i);
    if (v->dtype == GCP_DTYPE_BF16) ((uint16_t *)v->data)[i] = gcp_bf16(x);
    else ((float *)v->data)[i] = x;
}
static void third(const gcp_call *c, const gcp_view *to, const gcp_view *from)
{
    const gcp_shape s = c->in[0].shape;
    calls[from->dtype == GCP_DTYPE_BF16]++;
    for (ptrdiff_t p = 0; p < (ptrdiff_t)s.d[0] * s.d[1] * s.d[2]; p++)
        for (int k = 0; k < s.d[3]; k++) put(to, p * to->pitch + k, get(from, p * from->pitch + k) / 3);
}
static void third_forward(const gcp_call *c) { third(c, &c->out[0], &c->in[0]); }
static void third_backward(const gcp_call *c) { third(c, &c->din[0], &c->dout[0]); }

static void third_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->flops = 1e12;
}

static void custom(void)
{
    static float found[2][4 * 16 * 16 * 8];
    const gcp_target twice = { .flops_per_second = 1e9, .bf16_flops_per_second = 2e9, .bytes_per_second = 1e15 };
    size_t taken[2];
    double seconds[2];
    for (unsigned flag = 0; flag < 2; flag++) {
        const gcp_op op = { .name = "third",
                            .shape = half_shape,
                            .forward = third_forward,
                            .backward = third_backward,
                            .cost = third_cost,
                            .outputs = 1,
                            .flags = flag ? GCP_FLAG_BF16 : 0 };
        static gcp_arena arena;
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 64, .seed = 3);
        image = gcp_want_grad(gcp_input(net, "image", GCP_SHAPE(4, 16, 16, 8)));
        gcp_tensor x = gcp_tanh(image), y = gcp_custom(&x, 1, &op);
        gcp_tensor loss = gcp_mean(gcp_square(gcp_add(gcp_tanh(y), gcp_relu(x))));
        gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL);
        static float some[4 * 16 * 16 * 8];
        for (size_t i = 0; i < sizeof some / sizeof *some; i++) some[i] = value(i, 2);
        memset(calls, 0, sizeof calls);
        gcp_bind(&plan, memory, sizeof memory);
        gcp_write(&plan, image, some);
        gcp_step(&plan);
        CHECK(calls[flag] > 0 && calls[!flag] == 0);
        CHECK(gcp_grad(&plan, image, found[flag]) == GCP_OK);
        taken[flag] = plan.bytes;
        seconds[flag] = gcp_plan_make(loss, .store = GCP_STORE_BF16, .target = &twice).seconds;
        CHECK(!gcp_error(net));
    }
    CHECK(!memcmp(found[0], found[1], sizeof *found));
    CHECK_NEAR(seconds[0], 2 * seconds[1], 1e-3 * seconds[0]);          /* floats are multiplied at floats' rate */
    CHECK(taken[1] < taken[0]);
}

/* ---- as text ---- */

static char text[1 << 18];
static size_t used;
static void append(void *context, const char *some, size_t size)
{
    (void)context;
    if (used + size >= sizeof text) return;
    memcpy(text + used, some, size);
    text[used += size] = 0;
}
/* A graph says how wide the elements of rows are: planned again it takes the same bytes, and prints the same. */
static void graphs(void)
{
    static char first[sizeof text];
    gcp_tensor x = plain_net(), loss = gcp_add(x, gcp_mean(gcp_concat(GCP_TENSORS(other, gcp_tanh(other)))));
    gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL);
    used = 0;
    gcp_graph_print(&plan, (gcp_writer){ append, NULL });
    strcpy(first, text);
    CHECK(!strncmp(text, "# gcp-graph 4\n", 14) && strstr(text, " width=2 "));
    gcp_plan again = gcp_graph_plan(net, first, .policy = GCP_POLICY_KEEP_ALL);
    CHECK(!gcp_error(net));
    CHECK_INT(again.bytes, ==, plan.bytes);
    used = 0;
    gcp_why_print(&plan, (gcp_writer){ append, NULL });
    CHECK(strstr(text, " MiB of the peak are activations in bfloat16") != NULL);
    gcp_graph_plan(net, "# gcp-graph 4\nt x 64 rows=4/2 width=0\n");
    CHECK(strstr(gcp_error(net), "line 2: not width=BYTES, 1 to 16: 0") != NULL);
    gcp_error_clear(net);
    gcp_graph_plan(net, "# gcp-graph 3\nt x 64 rows=4/2 width=2\n");
    CHECK(strstr(gcp_error(net), "line 2: unknown: width=2") != NULL);
    gcp_error_clear(net);
}

/* What a budget's error says that bfloat16 saves is what it saves: nothing is said where it takes more. */
static gcp_tensor conv_net(int batch, int wide)
{
    static gcp_arena arena;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(batch, 16, 16, 3));
    for (int i = 0; i < 3; i++) x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = wide, .k = 3, .pad = 1)));
    return gcp_mean(x);
}
static size_t least_of(gcp_tensor loss, const gcp_target *target, gcp_store store, size_t *advised)
{
    const char *words = "; .store = GCP_STORE_BF16: about ", *advice = NULL;
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = 1, .target = target, .store = store);
    if (gcp_error(net)) advice = strstr(gcp_error(net), words);
    *advised = advice ? (size_t)strtoul(advice + strlen(words), NULL, 10) : 0;
    gcp_error_clear(net);
    return plan.least_bytes;
}
static void told(void)
{
    static const struct { int batch, wide, threads, saves; } cases[] = {
        { 4, 8, 1, 1 }, { 4, 8, 16, 0 }, { 8, 32, 2, 1 }, { 4, 32, 16, 1 }, { 1, 4, 8, 0 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const gcp_target target = { .threads = cases[i].threads, .parallel_for = on_last, .isa = GCP_ISA_SCALAR };
        gcp_tensor loss = conv_net(cases[i].batch, cases[i].wide);
        size_t advised, none;
        const size_t floats = least_of(loss, &target, GCP_STORE_REAL, &advised),
                     halves = least_of(loss, &target, GCP_STORE_BF16, &none);
        CHECK(!none);
        CHECK_INT(advised > 0, ==, cases[i].saves);
        if (advised) CHECK_NEAR((double)advised, (double)floats - (double)halves, 0.1 * (double)advised);
        else CHECK(halves + halves / 20 > floats);
        gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &target, .store = GCP_STORE_BF16);
        used = 0;
        gcp_why_print(&plan, (gcp_writer){ append, NULL });
        CHECK_INT(strstr(text, "more than bfloat16 saves there") != NULL, ==, !cases[i].saves);
    }
}

/* ---- what is refused ---- */

static int device_calls;
static void no_copy(void *c, void *to, const void *from, size_t n)
{
    (void)c;
    device_calls++;
    memcpy(to, from, n);
}
static void no_fill(void *c, void *to, int byte, size_t n)
{
    (void)c;
    memset(to, byte, n);
}
static double no_time(void *c, void (*issue)(void *), void *arg)
{
    (void)c;
    issue(arg);
    return 1;
}
static const char *no_trouble(void *c)
{
    (void)c;
    return NULL;
}

static void refused(void)
{
    const gcp_device device = { .copy = no_copy, .fill = no_fill, .timed = no_time, .trouble = no_trouble };
    const gcp_target target = { .kernels = float_kernels(), .device = &device };
    gcp_tensor loss = plain_net();
    const int others[] = { -1, GCP_POLICY_KEEP_ALL, GCP_DTYPE_BF16, 17 }; /* a policy in its place, in C */
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) {
        gcp_plan_make(loss, .store = (gcp_store)others[i]);
        CHECK(strstr(gcp_error(net), "unknown .store: found ") != NULL);
        gcp_error_clear(net);
    }
    gcp_plan plan = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_KEEP_ALL);
    gcp_bind(&plan, memory, sizeof memory);
    CHECK(!gcp_gradcheck(&plan).passed);
    CHECK(strstr(gcp_error(net), "rounds away") != NULL);
    gcp_error_clear(net);
    gcp_plan_make(loss, .store = GCP_STORE_BF16, .target = &target);
    CHECK(strstr(gcp_error(net), "the target's kernels take no bfloat16") != NULL);
    gcp_error_clear(net);
    gcp_graph_plan(net, "gcp-graph 3\n", .store = GCP_STORE_BF16);
    CHECK(strstr(gcp_error(net), ".store") != NULL);
}

int main(void)
{
    numbers();
    for (int op = 0; op < OPS; op++)
        for (unsigned isa = 0; isa < 4; isa += 2 + (unsigned)(op % 3)) one(ops[op].name, op, 0, isa + (unsigned)op);
    for (int i = 0; i < POINTWISE_CALLS; i++) one("pointwise", OPS, i, (unsigned)i);
    widths();
    ranges();
    bytes();
    rates();
    weights_rounded();
    exact_products();
    for (int width = 3; width <= 1500; width = width * 2 + 3) blocks(width);
    goes_on();
    custom();
    graphs();
    told();
    refused();
    printf("from floats: at most %.2f of what roundings explain\n", farthest);
    return check_done();
}
