/* Op by op on the GPU target against the CPU: values, gradients, statistics and updated weights, for shapes that take
   every path of the kernels. Runs on a GPU, or on the host emulation.

       test_cuda_ops [CASE [FIRST [COUNT]]]: all, or that case alone (convolution, norms, ...), from FIRST on, COUNT of
       it; test_cuda_ops waves: the table of bench/results/gpu_waves.csv */
#include "support/check.h"
#include "gcp_cuda.h"
#include "support/pointwise.h"
#include <stdlib.h>

enum { VALUES = 1 << 18 };
static unsigned char tape_memory[GCP_MB(8)], cpu_memory[GCP_MB(96)];
static float cpu[VALUES], gpu[VALUES], scale[VALUES], input[VALUES];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor kept[64];
static int kept_count;
static gcp_gpu gpus[2];                              /* GCP_FP32, GCP_TF32 */

/* ---- What a case records: it marks what is compared ------------------------------------------------------------*/

static gcp_tensor image(int n, int h, int w, int c)
{
    char name[24];
    snprintf(name, sizeof name, "image%d", kept_count);
    gcp_tensor x = gcp_want_grad(gcp_input(net, name, GCP_SHAPE(n, h, w, c)));
    kept[kept_count++] = x;
    return x;
}
static gcp_tensor seen(gcp_tensor x) { return kept[kept_count++] = gcp_keep(x); }
static gcp_tensor square(gcp_tensor x) { return gcp_mean(gcp_mul(x, gcp_tanh(x))); }

typedef struct conv_shape { int n, h, w, ci, co, kh, kw, stride, stride_w, pad, dilation, groups; } conv_shape;
static const conv_shape shapes[] = {
    { 2, 8, 8, 4, 8, 3, 3, 1, 1, 1, 1, 1 },      { 1, 9, 7, 3, 5, 3, 3, 1, 1, 1, 1, 1 },
    { 2, 11, 10, 8, 12, 5, 5, 2, 2, 2, 1, 1 },   { 1, 13, 12, 1, 10, 5, 5, 1, 1, 2, 1, 1 },
    { 2, 7, 7, 16, 40, 1, 1, 1, 1, 0, 1, 1 },    { 2, 8, 8, 16, 12, 1, 1, 2, 2, 0, 1, 1 },
    { 1, 12, 15, 6, 7, 3, 5, 3, 2, 1, 1, 1 },    { 1, 16, 16, 3, 20, 7, 7, 2, 2, 3, 1, 1 },
    { 1, 10, 10, 4, 4, 3, 3, 1, 1, 2, 2, 1 },    { 1, 11, 11, 4, 4, 3, 3, 2, 2, 2, 2, 1 },
    { 2, 8, 8, 8, 8, 3, 3, 1, 1, 1, 1, 8 },      { 1, 9, 9, 12, 6, 3, 3, 2, 2, 1, 1, 3 },
    { 1, 20, 20, 32, 136, 3, 3, 1, 1, 1, 1, 1 }, { 3, 6, 6, 20, 64, 2, 2, 2, 2, 0, 1, 1 },
    { 1, 6, 6, 5, 3, 1, 1, 1, 1, 0, 1, 1 },      { 2, 5, 5, 4, 4, 4, 4, 1, 1, 2, 1, 1 },
    { 1, 30, 30, 10, 10, 1, 7, 1, 1, 0, 1, 1 },  { 1, 7, 6, 50, 70, 3, 3, 1, 1, 1, 1, 1 },
    { 1, 6, 7, 70, 50, 3, 3, 1, 1, 1, 1, 1 },    { 1, 8, 8, 136, 48, 3, 3, 1, 1, 1, 1, 1 },
    { 1, 12, 12, 3, 70, 7, 7, 2, 2, 3, 1, 1 },   { 1, 6, 6, 5, 50, 3, 3, 1, 1, 1, 1, 1 },
    { 1, 5, 6, 5, 71, 3, 3, 1, 1, 1, 1, 1 }
};

static gcp_tensor conv_of(const conv_shape *s, int transposed)
{
    gcp_conv2d_opts o = { .at = GCP_AT,
                          .out = s->co,
                          .kh = s->kh,
                          .kw = s->kw,
                          .stride_h = s->stride,
                          .stride_w = s->stride_w,
                          .pad = s->pad,
                          .dilation = s->dilation,
                          .groups = s->groups,
                          .no_bias = s->ci % 3 == 0 };
    gcp_tensor x = image(s->n, s->h, s->w, s->ci);
    if (transposed) o.pad = s->pad < 2 ? s->pad : 1;
    return square(seen(transposed ? gcp_conv_transpose2d_at(x, o) : gcp_conv2d_at(x, o)));
}
static gcp_tensor convolution(int k) { return conv_of(&shapes[k], 0); }
static gcp_tensor transposed(int k) { return conv_of(&shapes[k], 1); }

/* Two convolutions read the same input and the same weights: gradients are added to what is there. */
static gcp_tensor twice(int k)
{
    static const int which[] = { 0, 1, 5, 6, 11, 12 };
    const conv_shape *s = &shapes[which[k]];
    gcp_conv2d_opts o = { .at = GCP_AT, .kh = s->kh, .kw = s->kw, .stride_h = s->stride, .stride_w = s->stride_w,
                          .pad = s->pad, .dilation = s->dilation, .groups = s->groups };
    gcp_tensor x = image(s->n, s->h, s->w, s->ci),
               w = gcp_param(net, "w", GCP_SHAPE(s->co, s->kh, s->kw, s->ci / s->groups), .init = GCP_INIT_HE,
                             .fan_in = s->kh * s->kw * s->ci / s->groups);
    gcp_tensor y = gcp_conv2d_op_at(x, w, GCP_NIL, o), z = gcp_conv2d_op_at(x, w, GCP_NIL, o);
    return square(seen(gcp_add(gcp_tanh(y), z)));
}

static gcp_tensor pitched(int k)                     /* between slices and concats: pitches beyond the channels */
{
    gcp_tensor x = image(2, 6, 6, 9), a = gcp_slice(x, .first = k % 2 ? 4 : 1, .count = 4);
    gcp_tensor y = k < 2   ? gcp_conv2d(a, .out = 8, .k = 3, .pad = 1)
                   : k < 4 ? gcp_conv2d(a, .out = 5, .k = 1)
                           : gcp_max_pool(a, .k = 2, .stride = 1);
    gcp_tensor z = k % 2 ? gcp_relu(y) : gcp_batch_norm(gcp_gelu(y));
    return square(seen(gcp_concat(GCP_TENSORS(z, gcp_sigmoid(y), gcp_scale(z, .by = 0.5)))));
}

static gcp_tensor elementwise(int k)
{
    gcp_tensor x = image(2, 5, 3 + k % 3, k % 2 ? 7 : 8), y = image(2, 5, 3 + k % 3, k % 2 ? 7 : 8);
    switch (k / 2) {
    case 0: return square(seen(gcp_add(x, y)));
    case 1: return square(seen(gcp_mul(x, y)));
    case 2: return square(seen(gcp_mul(x, x)));
    case 3: return square(seen(gcp_relu(gcp_add(x, y))));
    case 4: return square(seen(gcp_leaky_relu(x, .slope = 0.3)));
    case 10: return square(seen(gcp_relu6(gcp_scale(gcp_add(x, y), .by = 5))));
    case 12: return square(seen(gcp_softmax(gcp_add(x, y))));
    case 13: return square(seen(gcp_log_softmax(gcp_slice(gcp_tanh(x), .first = 1, .count = 6))));
    case 14: return square(seen(gcp_add(gcp_softmax(x), gcp_softmax(gcp_concat(GCP_TENSORS(x))))));
    case 11: return square(seen(gcp_clamp(gcp_batch_norm(x), .low = -0.5, .high = 0.75)));
    case 5: return square(seen(gcp_dropout(gcp_add(x, y), .rate = 0.4, .per_sample = k % 2)));
    case 6: return square(seen(gcp_bias(x, gcp_param(net, "b", GCP_SHAPE(k % 2 ? 7 : 8), .init = GCP_INIT_ONES))));
    case 7: return square(seen(gcp_reshape(gcp_slice(x, .first = 1, .count = 6), GCP_SHAPE(2, 3 + k % 3, 5, 6))));
    case 8: return square(seen(gcp_flatten(gcp_concat(GCP_TENSORS(x, y)))));
    case 9: x = image(1, 1, 1, 7 + k % 2); return square(seen(gcp_layer_norm_op(gcp_bias(x, x), x, x)));
    default: return gcp_add(gcp_mean(gcp_relu(x)), gcp_mse(seen(gcp_relu(y)), x));
    }
}

/* More rows and keys than a tile, fewer heads of k and v, causal or not, a bias for all samples or for each. */
static gcp_tensor attention(int k)
{
    const int rows = k % 3 == 2 ? 37 : 5, keys = k % 3 ? 41 : 5, heads = 2, kv = k % 2 + 1, d = k % 4 > 1 ? 35 : 3;
    gcp_tensor q = image(2, 1, rows, heads * d), key = image(2, 1, keys, kv * d), v = image(2, 1, keys, kv * 4);
    gcp_tensor bias = k < 4 ? GCP_NIL : image(k < 8 ? 1 : 2, heads, rows, keys);
    if (k > 11) {                                        /* windows of two images, each with a bias of its own */
        q = image(4, 1, rows, heads * d); key = image(4, 1, keys, kv * d); v = image(4, 1, keys, kv * 4);
    }
    if (k == 16) q = image(34, 1, 3, 16), key = image(34, 1, 2, 16), v = image(34, 1, 2, 16);    /* blocks take turns */
    if (k == 16) return square(seen(gcp_attention(q, key, v, .heads = 8)));
    if (k == 11) v = key = q;
    if (k == 11) bias = GCP_NIL;
    return square(seen(gcp_attention(q, key, v, .heads = heads, .causal = k / 2 % 2, .bias = bias)));
}

static gcp_tensor axes(int k)
{
    gcp_tensor x = image(2, 3, 37, k % 2 ? 7 : 40);
    if (k % 3 == 2) x = gcp_slice(gcp_tanh(x), .first = 1, .count = 5);
    switch (k / 3) {
    case 0: return square(seen(gcp_transpose(x, 0, 1, 3, 2)));
    case 1: return square(seen(gcp_transpose(x, 3, 1, 0, 2)));
    case 2: return square(seen(gcp_add(gcp_transpose(x, 0, 2, 1, 3), gcp_tanh(gcp_transpose(x, 0, 2, 1, 3)))));
    case 3: return square(seen(gcp_concat(GCP_TENSORS(x, gcp_tanh(x), x), .axis = GCP_AXIS_TOKENS)));
    case 4: return square(seen(gcp_slice(x, .first = 2, .count = 4, .step = 3, .axis = GCP_AXIS_WIDTH)));
    default: return square(seen(gcp_expand(gcp_global_avg_pool(x), GCP_SHAPE(2, 3, 4, gcp_shape_of(x).d[3]))));
    }
}

static gcp_tensor pair(int k)
{
    static const int shape[][2][4] = { { { 2, 3, 4, 8 }, { 2, 1, 1, 8 } }, { { 2, 3, 4, 7 }, { 1, 1, 1, 7 } },
                                       { { 2, 3, 4, 5 }, { 1, 3, 4, 5 } }, { { 2, 3, 4, 5 }, { 2, 3, 4, 1 } },
                                       { { 2, 1, 4, 1 }, { 1, 3, 1, 5 } }, { { 1, 1, 1, 1 }, { 3, 9, 11, 4 } },
                                       { { 2, 3, 4, 5 }, { 2, 3, 4, 5 } } };
    const int *a = shape[k % 7][0], *b = shape[k % 7][1];
    gcp_tensor x = image(a[0], a[1], a[2], a[3]), y = image(b[0], b[1], b[2], b[3]);
    if (k % 2 && a[3] > 1 && b[3] > 1) {
        x = gcp_slice(gcp_concat(GCP_TENSORS(x, x)), .first = 1, .count = a[3]);
        y = gcp_slice(gcp_concat(GCP_TENSORS(y, y)), .first = 2, .count = b[3]);
    }
    switch (k / 7) {
    case 0: return square(seen(gcp_add(x, y)));
    case 1: return square(seen(gcp_sub(x, y)));
    case 2: return square(seen(gcp_mul(x, y)));
    case 3: return square(seen(gcp_div(x, gcp_exp(y))));
    case 4: return square(seen(gcp_maximum(x, y)));
    case 5: return square(seen(gcp_minimum(x, y)));
    case 6: return square(seen(gcp_prelu(x, y)));
    default: return square(seen(gcp_mul(x, gcp_reduce(gcp_tanh(gcp_add(x, y)), .by = GCP_REDUCE_SUM, .tokens = k % 2,
                                                      .channels = k % 2, .height = 1))));
    }
}

/* Channels by fours, and not; a view of a wider tensor. */
static gcp_tensor pointwise(int k)
{
    gcp_tensor x = image(2, 5, 3, k % 3 == 1 ? 7 : 8);
    if (k % 3 == 2) x = gcp_slice(gcp_add(x, x), .first = 1, .count = 4);
    return square(seen(pointwise_calls[k / 3](x)));
}

static gcp_tensor windows(int k)
{
    static const int size[] = { 2, 3, 3, 5, 1, 4 }, stride[] = { 2, 2, 1, 3, 1, 2 }, pad[] = { 0, 1, 1, 2, 0, 1 };
    gcp_tensor x = image(2, 9, 8, 3 + k % 2 * 5);
    gcp_pool_opts o = { .at = GCP_AT, .k = size[k / 2 % 6], .stride = stride[k / 2 % 6], .pad = pad[k / 2 % 6] };
    if (k < 12) return square(seen(gcp_max_pool_at(gcp_tanh(x), o)));
    if (k < 24) return square(seen(gcp_avg_pool_at(x, o)));
    if (k < 26) return square(seen(gcp_global_avg_pool(x)));
    return square(
        seen(gcp_upsample(x, .factor = 2 + k % 2, .mode = k < 28 ? GCP_UPSAMPLING_NEAREST : GCP_UPSAMPLING_BILINEAR)));
}

static gcp_tensor norms(int k)
{
    static const int channels[] = { 1, 3, 4, 6, 12, 33, 64, 100 };
    if (k > 43) {                                        /* statistics are made by blocks of the convolution */
        gcp_tensor x = image(2, 20, 19, 5 + k % 4);
        return square(seen(gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 40 * (k - 43), .k = 3, .pad = 1)))));
    }
    gcp_tensor x = image(3, 7, 5 + k % 4, channels[k % 8]);
    if (k > 35) {
        const int c = channels[k % 8];
        if (k % 2) x = gcp_slice(gcp_tanh(image(3, 7, 5 + k % 4, c + 3)), .first = 1, .count = c);
        return square(seen(gcp_group_norm(x, .groups = k % 8 < 4 ? 1 : k % 8 < 6 ? 3 : 4)));
    }
    return square(seen(k < 8    ? gcp_batch_norm(x)
                       : k < 16 ? gcp_layer_norm(x)
                       : k > 27 ? gcp_relu(gcp_batch_norm(x, .frozen = 1))
                       : k > 19 ? gcp_rms_norm(x)
                                : gcp_relu(gcp_add(gcp_batch_norm(x), x))));
}

static gcp_tensor products(int k)
{
    if (k > 7) {                                         /* both sides are activations */
        gcp_tensor a = gcp_want_grad(gcp_input(net, "a", GCP_SHAPE(16, 4 * (k - 7))));
        gcp_tensor b = gcp_want_grad(gcp_input(net, "image0", GCP_SHAPE(4 * (k - 7), 8 - k % 2 * 2)));
        kept[kept_count++] = b;
        kept[kept_count++] = a;
        return gcp_mean(gcp_tanh(seen(gcp_matmul(gcp_tanh(a), gcp_tanh(b)))));
    }
    gcp_tensor x = image(5, 1, 3 + k % 2, 7 + k), y = gcp_linear(x, .out = 4 + k % 3, .no_bias = k % 2);
    if (k < 4) return square(seen(y));
    gcp_tensor a = gcp_input(net, "a", GCP_SHAPE(6, 9));
    kept[kept_count++] = gcp_want_grad(a);
    return gcp_mean(
        gcp_tanh(seen(gcp_matmul(a, gcp_param(net, "w", GCP_SHAPE(9, 2 + k), .init = GCP_INIT_HE, .fan_in = 9)))));
}

/* With .store: x, y or both lie in floats, as an op has them twice. Convolutions that take every kernel. */
static gcp_tensor mixed(int k)
{
    static const int which[] = { 0, 1, 2, 4, 7, 10, 14, 17 };
    const int way = k / 3 % 9, other = k / 27;
    gcp_tensor loss;
    if (way < 8) loss = conv_of(&shapes[which[way]], other);
    else loss = square(gcp_relu(gcp_batch_norm(seen(gcp_linear(image(2, 3, 3, 16), .out = 24, .no_bias = other)))));
    gcp_tensor x = kept[0], y = kept[kept_count - 1];
    if (k % 3 != 1) loss = gcp_add(loss, gcp_mean(gcp_mul(x, x)));
    if (k % 3 != 0) loss = gcp_add(loss, gcp_mean(gcp_mul(y, y)));
    return loss;
}

static gcp_tensor losses(int k)
{
    gcp_tensor ids = gcp_labels(net, "ids", GCP_SHAPE(6, k ? 100 : 4));     /* 600: runs of the sort are merged twice */
    if (k < 2) return square(seen(gcp_embedding(ids, .entries = 5, .out = 3 + 30 * k)));
    if (k == 6) return gcp_smooth_l1(seen(gcp_tanh(image(3, 2, 5, 7))), image(3, 2, 5, 7), .beta = 0.3);
    if (k == 7)
        return gcp_l1(seen(gcp_tanh(image(3, 2, 5, 7))), image(3, 2, 5, 7), .weights = gcp_exp(image(3, 1, 5, 1)));
    if (k == 8)
        return gcp_binary_cross_entropy(seen(gcp_scale(image(3, 2, 5, 8), .by = 3)), gcp_sigmoid(image(3, 2, 5, 8)),
                                        .positive = 2.5);
    if (k > 8) {
        gcp_tensor logits = seen(gcp_tanh(image(40, 1, 1, 70))), classes = gcp_exp(image(1, 1, 1, 70));
        gcp_tensor targets = k < 11 ? gcp_softmax(image(40, 1, 1, 70)) : gcp_labels(net, "some", GCP_SHAPE(40));
        return gcp_cross_entropy(logits, targets, .ignore = k < 11 ? 0 : -1, .smoothing = k % 2 ? 0.1 : 0,
                                 .class_weights = classes,
                                 .sample_weights = k % 4 ? GCP_NIL : gcp_exp(image(40, 1, 1, 1)));
    }
    gcp_tensor labels = gcp_labels(net, k < 4 ? "some" : "labels", GCP_SHAPE(40)), x = image(40, 1, 1, k % 2 ? 70 : 5);
    return gcp_cross_entropy(seen(gcp_tanh(x)), labels, .ignore = k < 4 ? -1 : k == 4 ? GCP_ZERO : 3,
                             .smoothing = k % 2 ? 0.1 : 0);
}

/* ---- Running one case on both ---------------------------------------------------------------------------------*/

static void feed(gcp_plan *plan)
{
    static const char *const names[] = { "a", "ids", "labels", "some" };
    for (int i = 0; i < kept_count + 4; i++) {
        char name[24];
        if (i < kept_count) snprintf(name, sizeof name, "image%d", i);
        else snprintf(name, sizeof name, "%s", names[i - kept_count]);
        gcp_tensor x = gcp_find(net, name);
        if (gcp_is_nil(x)) continue;
        for (size_t e = 0; e < gcp_elements(x) && e < VALUES; e++) {
            if (i <= kept_count) input[e] = (float)((e * 2654435761u + (size_t)i * 977) % 2048) / 1024 - 1;
            /* some: -1 among them */
            else
                ((int *)(void *)input)[e] = name[0] == 's' ? (int)((e * 7 + e / 5) % 6) - 1
                                                           : (int)((e * 7 + e / 5) % 5);
        }
        gcp_write(plan, x, input);
    }
}

/* Everything that may be read after a step without and a step with an optimiser, end to end. Returns how many. */
static size_t results(gcp_tensor loss, const gcp_target *target, gcp_optimizer optimizer, gcp_store store, float *out)
{
    size_t n = 0, first;
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .target = target, .optimizer = optimizer,
                                  .store = store,
                                  .momentum = optimizer == GCP_OPTIMIZER_SGD ? 0.9 : 0,
                                  /* lest Adam blow up the rounding of tiny gradients */
                                  .epsilon = optimizer > GCP_OPTIMIZER_SGD ? 1e-2 : 0,
                                  .weight_decay = optimizer ? 0.1 : 0, .nesterov = optimizer == GCP_OPTIMIZER_SGD,
                                  .clip_norm = optimizer == GCP_OPTIMIZER_ADAM ? 0.5 : 0,
                                  .clip_value = optimizer == GCP_OPTIMIZER_SGD ? 0.05 : 0);
    if (target) gcp_bind(&plan, NULL, 0);
    else gcp_bind(&plan, cpu_memory, sizeof cpu_memory);
    for (int step = 0; step < (optimizer ? 3 : 1); step++) {
        feed(&plan);
        out[n] = (float)gcp_step(&plan, .lr = optimizer ? 0.05 : 0);
        scale[n] = 1;
        n++;
    }
    for (int i = 0; i < 2 * kept_count + 64; i++) {
        gcp_tensor x = i < 2 * kept_count ? kept[i / 2] : gcp_nth_parameter(net, i - 2 * kept_count);
        int gradient = i < 2 * kept_count ? i % 2 : !optimizer;
        float most = 1e-3f;
        if (gcp_is_nil(x) || n + gcp_elements(x) > VALUES) continue;
        if (gradient ? gcp_grad(&plan, x, out + n) : gcp_read(&plan, x, out + n)) { gcp_error_clear(net); continue; }
        for (first = n, n += gcp_elements(x); first < n; first++) most = fmaxf(most, fabsf(out[first]));
        for (size_t e = n - gcp_elements(x); e < n; e++) scale[e] = most;
    }
    gcp_unbind(&plan);
    return n;
}

static double most_halves;                           /* the largest difference of any plan with halves */
static void one(const char *name, gcp_tensor (*record)(int k), int k, gcp_math math, gcp_optimizer optimizer,
                gcp_store store)
{
    size_t count[2] = { 0, 0 }, worst = 0;
    double tolerance = store ? 3e-2 : math == GCP_TF32 ? 1e-2 : 5e-5, most = 0;
    for (int on_gpu = 0; on_gpu < 2; on_gpu++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 64);
        kept_count = 0;
        gcp_tensor loss = record(k);
        count[on_gpu] = results(loss, on_gpu ? gcp_cuda(&gpus[math]) : NULL, optimizer, store, on_gpu ? gpu : cpu);
        const char *error = gcp_error(net);
        if (error) fprintf(stderr, "%s %d: %s\n", name, k, error);
        CHECK(gcp_error(net) == NULL);
    }
    for (size_t i = 0; i < count[0]; i++) {
        double error = fabs((double)cpu[i] - (double)gpu[i]) / (double)scale[i];
        if (!(error <= most)) { most = error; worst = i; }
    }
    if (store) most_halves = fmax(most_halves, most);
    if (count[0] != count[1] || !(most <= tolerance))
        fprintf(stderr,
                "%s %d (math %d, optimizer %d, store %d): %zu and %zu values; value %zu is %g on the CPU, %g on the "
                "GPU\n", name, k, (int)math, (int)optimizer, (int)store, count[0], count[1], worst, (double)cpu[worst],
                (double)gpu[worst]);
    CHECK(count[0] == count[1] && count[0] > 3 && most <= tolerance);
}

/* No two lanes of a warp meet in a bank where the gather's tiles are copied and read, whatever their width. */
static void banks(void)
{
#ifdef HOSTCUDA
    static const int channels[][2] = { { 16, 128 }, { 8, 64 }, { 4, 24 }, { 3, 128 } };
    for (int math = 0; math < 3; math++)                         /* 2: halves; single ones are not copied so */
        for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
            arena = gcp_arena_from(tape_memory, sizeof tape_memory);
            net = gcp_tape_make(&arena, .ops = 64);
            kept_count = 0;
            gcp_tensor y = gcp_conv2d(image(1, 14, 14, channels[i][0]), .out = channels[i][1], .k = 3, .pad = 1);
            gcp_plan plan = gcp_plan_make(y, .inference = 1, .target = gcp_cuda(&gpus[math % 2]),
                                          .store = math == 2 ? GCP_STORE_BF16 : GCP_STORE_REAL);
            gcp_bind(&plan, NULL, 0);
            feed(&plan);
            hostcuda_count_banks();
            gcp_forward(&plan);
            hostcuda_banks b = hostcuda_banks_counted();
            if (b.stores > b.stores_least || b.reads > b.reads_least)
                fprintf(stderr,
                        "%d to %d channels: %llu wavefronts for stores where %llu are enough, %llu for reads where "
                        "%llu are\n",
                        channels[i][0], channels[i][1], b.stores, b.stores_least, b.reads, b.reads_least);
            CHECK(!gcp_error(net) && (b.stores_least > 0) == (math < 2 || channels[i][0] % 2 == 0));
            CHECK(math == GCP_FP32 || b.reads_least > 0);
            CHECK(b.stores == b.stores_least && b.reads == b.reads_least);
            gcp_unbind(&plan);
        }
#else
    printf("not seen on a card: bank conflicts\n");
#endif
}

/* Blocks of the weights' gradients of ResNet-50's convolutions that are the kernels' own: the last wave on an H100,
   which runs 264 at a time, is at least four fifths full. */
static void waves(int print)
{
    static const int layers[][5] = { { 112, 3, 64, 7, 2 },    { 56, 64, 64, 3, 1 },    { 28, 128, 128, 3, 2 },
                                     { 28, 128, 128, 3, 1 },  { 28, 256, 512, 1, 2 },  { 14, 256, 256, 3, 2 },
                                     { 14, 256, 256, 3, 1 },  { 14, 512, 1024, 1, 2 }, { 7, 512, 512, 3, 2 },
                                     { 7, 512, 512, 3, 1 },   { 7, 1024, 2048, 1, 2 } };
    if (print) printf("batch,output,in,out,kernel,stride,blocks,last_wave,partial_mib\n");
    for (int batch = 64; batch <= 256; batch *= 2)
        for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
            const int *l = layers[i], size = l[0] * l[4];
            gcpi_cuda_conv c = { batch, size, size, l[1], l[0], l[0], l[2], l[3], l[3], l[4], l[4], l[3] / 2, l[3] / 2,
                                 1,     1,    1,    l[1], l[2], 1 };
            const int blocks = gcpi_cuda_weights_blocks(&c, 0), last = (blocks - 1) % 264 + 1;
            CHECK(((gcpi_cuda_weights_blocks(&c, 1) - 1) % 264 + 1) * 5 >= 264 * 4);
            if (print)
                printf("%d,%d,%d,%d,%d,%d,%d,%.3f,%.1f\n", batch, l[0], l[1], l[2], l[3], l[4], blocks, last / 264.0,
                       (double)gcpi_cuda_conv_workspace(&c, GCPI_CUDA_WEIGHTS, GCP_STORE_REAL) / (1 << 20));
            CHECK(last * 5 >= 264 * 4 && gcpi_cuda_conv_workspace(&c, GCPI_CUDA_WEIGHTS, GCP_STORE_BF16) <= 32 << 20);
        }
}

typedef struct test_case { const char *name; gcp_tensor (*record)(int k); int count, has_tf32; } test_case;

/* All math and optimizers of the k-th of a case; the first three cases and the products have TF32 kernels. */
static void every_way(const test_case *c, int k)
{
    one(c->name, c->record, k, GCP_FP32, (gcp_optimizer)(k % 4), GCP_STORE_REAL);
    one(c->name, c->record, k, GCP_FP32, GCP_OPTIMIZER_NONE, GCP_STORE_REAL);
    if (c->has_tf32) one(c->name, c->record, k, GCP_TF32, GCP_OPTIMIZER_NONE, GCP_STORE_REAL);
    if (gpus[0].halves) one(c->name, c->record, k, (gcp_math)(k % 2), GCP_OPTIMIZER_NONE, GCP_STORE_BF16);
}

/* A card without tensor cores for bfloat16 says so. */
static void refused(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64);
    kept_count = 0;
    gcp_tensor loss = convolution(0);
    gcp_plan plan = gcp_plan_make(loss, .target = gcp_cuda(&gpus[0]), .store = GCP_STORE_BF16);
    CHECK(!plan.core == !gpus[0].halves);
    CHECK(plan.core || strstr(gcp_error(net), ".store = GCP_STORE_BF16: the target's kernels take no bfloat16"));
}

int main(int argc, char **argv)
{
    enum { SHAPES = sizeof shapes / sizeof *shapes };
    static const test_case cases[] = { { "convolution", convolution, SHAPES, 1 },
                                       { "transposed", transposed, SHAPES, 1 },
                                       { "twice", twice, 6, 1 },
                                       { "pitched", pitched, 6, 1 },
                                       { "elementwise", elementwise, 32, 0 },
                                       { "pair", pair, 56, 0 },
                                       { "attention", attention, 17, 0 },
                                       { "axes", axes, 18, 0 },
                                       { "pointwise", pointwise, 3 * POINTWISE_CALLS, 0 },
                                       { "windows", windows, 30, 0 },
                                       { "norms", norms, 48, 1 },
                                       { "products", products, 11, 1 },
                                       { "mixed", mixed, 54, 0 },
                                       { "losses", losses, 13, 0 } };
    if (argc > 1 && !strcmp(argv[1], "waves")) { waves(1); return check_done(); }
    int first = argc > 2 ? atoi(argv[2]) : 0, count = argc > 3 ? atoi(argv[3]) : 1 << 20, run = 0;
    for (int math = 0; math < 2; math++) gpus[math] = gcp_gpu_open(.math = (gcp_math)math);
    if (!gpus[0].blas) { printf("no GPU: %s\n", gpus[0].message); return 77; }
    printf("on %s\n", gpus[0].name);
    for (size_t c = 0; c < sizeof cases / sizeof *cases; c++)
        for (int k = first; k < cases[c].count && k - first < count; k++)
            if (argc < 2 || !strcmp(argv[1], cases[c].name)) { every_way(&cases[c], k); run++; }
    printf("%d cases; with halves at most %g of the largest value\n", run, most_halves);
    CHECK(run > 0);
    refused();
    if (argc < 2) { banks(); waves(0); }
    for (int math = 0; math < 2; math++) gcp_gpu_close(&gpus[math]);
    return check_done();
}
