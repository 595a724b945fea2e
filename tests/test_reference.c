/* Outputs and gradients of the ops against PyTorch's (tests/reference; its README has the formats and every case). */
#include "support/check.h"
#include "gcp.h"

#ifndef TEST_DATA
#define TEST_DATA "."
#endif
enum { MOST = 512 };

/* ---- cases.txt ------------------------------------------------------------------------------------------------- */

typedef struct numbers { int count; double v[MOST]; } numbers;
typedef struct record { char name[48]; numbers out, grad[4], running_mean, running_var; } record;

static FILE *file;
static char word[64];

static int next_word(void)                         /* skips comments; 0 at the end */
{
    while (fscanf(file, "%63s", word) == 1) {
        if (word[0] != '#') return 1;
        for (int c = fgetc(file); c != EOF && c != '\n'; c = fgetc(file)) { }
    }
    return word[0] = 0;
}

static void read_numbers(numbers *n)
{
    CHECK(fscanf(file, "%d", &n->count) == 1 && n->count > 0 && n->count <= MOST);
    if (n->count > MOST) n->count = MOST;
    for (int i = 0; i < n->count; i++) CHECK(fscanf(file, "%lf", &n->v[i]) == 1);
}

static numbers *which_numbers(record *r)
{
    int k = 0;
    if (!strcmp(word, "out")) return &r->out;
    if (!strcmp(word, "grad") && fscanf(file, "%d", &k) == 1 && k >= 1 && k <= 3) return &r->grad[k];
    if (!strcmp(word, "extra") && next_word() && !strcmp(word, "running_mean")) return &r->running_mean;
    return !strcmp(word, "running_var") ? &r->running_var : NULL;
}

/* Expects the word "case" to be read already, and leaves the next one so. */
static int read_record(record *r)
{
    memset(r, 0, sizeof *r);
    if (strcmp(word, "case") || !next_word()) return 0;
    snprintf(r->name, sizeof r->name, "%.47s", word);
    while (next_word() && strcmp(word, "case")) {
        numbers *n = which_numbers(r);
        CHECK(n != NULL);
        if (!n) return 0;
        read_numbers(n);
    }
    return 1;
}

/* ---- the network of one case ----------------------------------------------------------------------------------- */

static unsigned char tape_memory[1 << 17], step_memory[1 << 17];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor operand[4], ids, out_gradient;
static int classes;

static double value(uint32_t seed, uint32_t i)
{
    uint32_t h = (i + 1) * 2654435761u + seed * 2246822519u;
    h = (h ^ (h >> 15)) * 3266489917u;
    h ^= h >> 13;
    return (double)(h >> 8) / 16777216.0 * 2.0 - 1.0;
}

static const char *letter(int k) { return k == 1 ? "a" : k == 2 ? "b" : "c"; }
static gcp_tensor input(int k, gcp_shape s) { return operand[k] = gcp_want_grad(gcp_input(net, letter(k), s)); }
static gcp_tensor param(int k, gcp_shape s)
{
    return operand[k] = gcp_param_at(net, letter(k), s, GCP_OPTS(gcp_param_opts, .fan_in = 1));
}
static gcp_tensor labels(gcp_shape s, int range) { classes = range; return ids = gcp_labels(net, "ids", s); }

#define IN(k, ...)  input(k, GCP_SHAPE(__VA_ARGS__))
#define PAR(k, ...) param(k, GCP_SHAPE(__VA_ARGS__))
#define IMAGE       IN(1, 2, 3, 4, 3)

static gcp_tensor batch_norm(void)                 /* a layer makes its gamma and beta */
{
    gcp_tensor y = gcp_batch_norm(IMAGE, .name = "norm");
    operand[2] = gcp_find(net, "norm/gamma");
    operand[3] = gcp_find(net, "norm/beta");
    return y;
}

#define CASES(X)                                                                                                 \
    X(conv2d_k3_pad1_bias, IN(1, 2, 5, 4, 3); PAR(2, 4, 3, 3, 3); PAR(3, 4);                                     \
      return gcp_conv2d_op(operand[1], operand[2], operand[3], .pad = 1);)                                       \
    X(conv2d_k3_stride2, IN(1, 2, 5, 6, 3); PAR(2, 4, 3, 3, 3);                                                  \
      return gcp_conv2d_op(operand[1], operand[2], GCP_NIL, .stride = 2);)                                       \
    X(conv2d_k3x2_asym_pad, IN(1, 2, 5, 4, 3); PAR(2, 2, 3, 2, 3);                                               \
      return gcp_conv2d_op(operand[1], operand[2], GCP_NIL, .pad_top = 1, .pad_left = 2, .pad_right = 1);)       \
    X(conv2d_k3_dilation2, IN(1, 2, 6, 5, 3); PAR(2, 2, 3, 3, 3);                                                \
      return gcp_conv2d_op(operand[1], operand[2], GCP_NIL, .pad = 1, .dilation = 2);)                           \
    X(conv2d_k3_groups2, IN(1, 2, 4, 3, 4); PAR(2, 6, 3, 3, 2); PAR(3, 6);                                       \
      return gcp_conv2d_op(operand[1], operand[2], operand[3], .pad = 1, .groups = 2);)                          \
    X(conv2d_depthwise, IN(1, 2, 4, 5, 4); PAR(2, 4, 3, 3, 1);                                                   \
      return gcp_conv2d_op(operand[1], operand[2], GCP_NIL, .pad = 1, .groups = 4);)                             \
    X(conv2d_1x1, IN(1, 2, 3, 4, 3); PAR(2, 5, 1, 1, 3);                                                         \
      return gcp_conv2d_op(operand[1], operand[2], GCP_NIL, .k = 1);)                                            \
    X(conv2d_k5_same_stride2, IN(1, 1, 6, 7, 2); PAR(2, 3, 5, 5, 2);                                             \
      return gcp_conv2d_op(operand[1], operand[2], GCP_NIL, .stride = 2, .padding = GCP_PADDING_SAME);)          \
    X(conv_transpose2d_k3_stride2, IN(1, 2, 3, 4, 3); PAR(2, 3, 3, 3, 2); PAR(3, 2);                             \
      return gcp_conv_transpose2d_op(operand[1], operand[2], operand[3], .stride = 2, .pad = 1);)                \
    X(upsample_nearest2, return gcp_upsample(IN(1, 2, 3, 2, 2));)                                                \
    X(upsample_bilinear2, return gcp_upsample(IN(1, 2, 3, 2, 2), .factor = 2, .mode = GCP_UPSAMPLING_BILINEAR);) \
    X(linear_bias, IN(1, 4, 5); PAR(2, 3, 5); PAR(3, 3);                                                         \
      return gcp_linear_op(operand[1], operand[2], operand[3], .out = 3);)                                       \
    X(matmul, IN(1, 3, 4); IN(2, 4, 5); return gcp_matmul(operand[1], operand[2]);)                              \
    X(matmul_batch, IN(1, 2, 3, 4); IN(2, 2, 4, 5); return gcp_matmul(operand[1], operand[2]);)                  \
    X(matmul_batch_ta, IN(1, 2, 4, 3); IN(2, 2, 4, 5);                                                           \
      return gcp_matmul(operand[1], operand[2], .transpose_a = 1);)                                              \
    X(matmul_batch_tb, IN(1, 2, 3, 2, 4); IN(2, 2, 3, 5, 4);                                                     \
      return gcp_matmul(operand[1], operand[2], .transpose_b = 1);)                                              \
    X(matmul_batch_tt, IN(1, 2, 4, 3); IN(2, 1, 5, 4);                                                           \
      return gcp_matmul(operand[1], operand[2], .transpose_a = 1, .transpose_b = 1);)                            \
    X(matmul_ta, IN(1, 4, 3); IN(2, 4, 5); return gcp_matmul(operand[1], operand[2], .transpose_a = 1);)         \
    X(add, IMAGE; IN(2, 2, 3, 4, 3); return gcp_add(operand[1], operand[2]);)                                    \
    X(mul, IMAGE; IN(2, 2, 3, 4, 3); return gcp_mul(operand[1], operand[2]);)                                    \
    X(bias, IMAGE; PAR(2, 3); return gcp_bias(operand[1], operand[2]);)                                          \
    X(scale, return gcp_scale(IMAGE, .by = -1.5);)                                                               \
    X(relu, return gcp_relu(IMAGE);)                                                                             \
    X(leaky_relu, return gcp_leaky_relu(IMAGE, .slope = 0.1);)                                                   \
    X(tanh, return gcp_tanh(IMAGE);)                                                                             \
    X(sigmoid, return gcp_sigmoid(IMAGE);)                                                                       \
    X(gelu, return gcp_gelu(IMAGE);)                                                                             \
    X(gelu_tanh, return gcp_gelu_tanh(IMAGE);)                                                                   \
    X(relu6, return gcp_relu6(gcp_scale(IMAGE, .by = 8));)                                                       \
    X(clamp, return gcp_clamp(IMAGE, .low = -0.25, .high = 0.5);)                                                \
    X(neg, return gcp_neg(IMAGE);)                                                                               \
    X(abs, return gcp_abs(IMAGE);)                                                                               \
    X(square, return gcp_square(IMAGE);)                                                                         \
    X(exp, return gcp_exp(IMAGE);)                                                                               \
    X(sqrt, return gcp_sqrt(gcp_exp(IMAGE));)                                                                    \
    X(log, return gcp_log(gcp_exp(IMAGE));)                                                                      \
    X(reciprocal, return gcp_reciprocal(gcp_exp(IMAGE));)                                                        \
    X(silu, return gcp_silu(gcp_scale(IMAGE, .by = 3));)                                                         \
    X(hard_swish, return gcp_hard_swish(gcp_scale(IMAGE, .by = 4));)                                             \
    X(hard_sigmoid, return gcp_hard_sigmoid(gcp_scale(IMAGE, .by = 4));)                                         \
    X(hard_sigmoid_fifth, return gcp_hard_sigmoid(gcp_scale(IMAGE, .by = 4), .slope = 0.2);)                     \
    X(elu, return gcp_elu(IMAGE, .alpha = 0.7);)                                                                 \
    X(softplus, return gcp_softplus(gcp_scale(IMAGE, .by = 3), .beta = 2);)                                      \
    X(mish, return gcp_mish(gcp_scale(IMAGE, .by = 3));)                                                         \
    X(prelu, IMAGE; PAR(2, 3); return gcp_prelu(operand[1], operand[2]);)                                        \
    X(softmax, return gcp_softmax(gcp_scale(IN(1, 2, 3, 4, 5), .by = 3));)                                       \
    X(log_softmax, return gcp_log_softmax(gcp_scale(IN(1, 2, 3, 4, 5), .by = 3));)                               \
    X(attention, IN(1, 2, 5, 6); IN(2, 2, 4, 6); IN(3, 2, 4, 8);                                                 \
      return gcp_attention(operand[1], operand[2], operand[3], .heads = 2);)                                     \
    X(attention_causal, IN(1, 1, 6, 4); IN(2, 1, 6, 4); IN(3, 1, 6, 4);                                          \
      return gcp_attention(operand[1], operand[2], operand[3], .causal = 1);)                                    \
    X(transpose, return gcp_transpose(IN(1, 2, 3, 4, 5), 3, 0, 2, 1);)                                           \
    X(channel_shuffle, return gcp_channel_shuffle(IN(1, 2, 3, 2, 6), .groups = 3);)                              \
    X(slice_step, return gcp_slice(IN(1, 2, 7, 3), .first = 1, .count = 3, .step = 2, .axis = GCP_AXIS_TOKENS);) \
    X(pad_zeros, return gcp_pad(IMAGE, .before = 1, .after = 2, .axis = GCP_AXIS_HEIGHT);)                       \
    X(pad_edge, return gcp_pad(IMAGE, .before = 2, .after = 1, .axis = GCP_AXIS_WIDTH, .mode = GCP_PAD_EDGE);)   \
    X(pad_reflect,                                                                                               \
      return gcp_pad(IMAGE, .before = 3, .after = 2, .axis = GCP_AXIS_WIDTH, .mode = GCP_PAD_REFLECT);)          \
    X(reduce_mean, return gcp_reduce(IMAGE, .height = 1, .width = 1);)                                           \
    X(reduce_sum, return gcp_reduce(IMAGE, .by = GCP_REDUCE_SUM, .samples = 1, .channels = 1);)                  \
    X(reduce_max, return gcp_reduce(IMAGE, .by = GCP_REDUCE_MAX, .width = 1, .channels = 1);)                    \
    X(pixel_shuffle, return gcp_pixel_shuffle(IN(1, 2, 2, 3, 12));)                                              \
    X(pixel_unshuffle, return gcp_pixel_unshuffle(IN(1, 2, 4, 6, 3), .factor = 2);)                              \
    X(resize_nearest, return gcp_resize(IN(1, 1, 5, 4, 2), .height = 7, .width = 3);)                            \
    X(resize_bilinear,                                                                                           \
      return gcp_resize(IN(1, 1, 5, 4, 2), .height = 7, .width = 3, .mode = GCP_UPSAMPLING_BILINEAR);)           \
    X(resize_corners, return gcp_resize(IN(1, 1, 5, 4, 2), .height = 8, .width = 3,                              \
                                        .mode = GCP_UPSAMPLING_BILINEAR, .corners = 1);)                         \
    X(class_token, IN(1, 2, 3, 4); PAR(2, 1, 1, 4);                                                              \
      return gcp_concat(GCP_TENSORS(gcp_expand(operand[2], GCP_SHAPE(2, 1, 4)), operand[1]),                     \
                        .axis = GCP_AXIS_TOKENS);)                                                               \
    X(group_norm, IN(1, 2, 2, 3, 6); PAR(2, 6); PAR(3, 6);                                                       \
      return gcp_group_norm_op(operand[1], operand[2], operand[3], .groups = 3);)                                \
    X(instance_norm, IN(1, 2, 2, 3, 4); PAR(2, 4); PAR(3, 4);                                                    \
      return gcp_group_norm_op(operand[1], operand[2], operand[3], .groups = 4);)                                \
    X(rms_norm, IN(1, 2, 2, 3, 5); PAR(2, 5); return gcp_rms_norm_op(operand[1], operand[2]);)                   \
    X(sub_gate, IMAGE; IN(2, 2, 3); return gcp_sub(operand[1], operand[2]);)                                     \
    X(mul_gate, IMAGE; IN(2, 2, 3); return gcp_mul(operand[1], operand[2]);)                                     \
    X(div_pixels, IMAGE; IN(2, 2, 3, 4, 1); return gcp_div(operand[1], gcp_exp(operand[2]));)                    \
    X(maximum_rows, IN(1, 1, 3, 1, 3); IN(2, 2, 3, 4, 3); return gcp_maximum(operand[1], operand[2]);)           \
    X(minimum_samples, IMAGE; IN(2, 1, 3, 4, 3); return gcp_minimum(operand[1], operand[2]);)                    \
    X(add_both, IN(1, 2, 1, 4, 1); IN(2, 1, 3, 1, 3); return gcp_add(operand[1], operand[2]);)                   \
    X(max_pool_k2_s2, return gcp_max_pool(IN(1, 2, 4, 6, 3), .k = 2);)                                           \
    X(max_pool_k3_s2_pad1, return gcp_max_pool(IN(1, 2, 5, 6, 3), .k = 3, .stride = 2, .pad = 1);)               \
    X(avg_pool_k2_s2, return gcp_avg_pool(IN(1, 2, 4, 6, 3), .k = 2);)                                           \
    X(avg_pool_k3_s1_pad1, return gcp_avg_pool(IN(1, 2, 4, 5, 3), .k = 3, .stride = 1, .pad = 1);)               \
    X(global_avg_pool, return gcp_global_avg_pool(IMAGE);)                                                       \
    X(batch_norm_train, return batch_norm();)                                                                    \
    X(batch_norm_infer, return batch_norm();)                                                                    \
    X(layer_norm, IN(1, 2, 2, 3, 5); PAR(2, 5); PAR(3, 5);                                                       \
      return gcp_layer_norm_op(operand[1], operand[2], operand[3], .epsilon = 1e-5);)                            \
    X(concat, IN(1, 2, 3, 2, 2); IN(2, 2, 3, 2, 3); return gcp_concat(GCP_TENSORS(operand[1], operand[2]));)     \
    X(slice, return gcp_slice(IN(1, 2, 3, 2, 4), .first = 1, .count = 2);)                                       \
    X(softmax_cross_entropy, IN(1, 4, 5); return gcp_cross_entropy(operand[1], labels(GCP_SHAPE(4), 5));)        \
    X(cross_entropy_smooth, IN(1, 4, 5);                                                                         \
      return gcp_cross_entropy(operand[1], labels(GCP_SHAPE(4), 5), .smoothing = 0.1);)                          \
    X(cross_entropy_weights, IN(1, 4, 5); operand[2] = gcp_input(net, "w", GCP_SHAPE(5));                        \
      return gcp_cross_entropy(operand[1], labels(GCP_SHAPE(4), 5), .smoothing = 0.2,                            \
                               .class_weights = gcp_exp(operand[2]));)                                           \
    X(cross_entropy_targets, IN(1, 4, 5); operand[2] = gcp_input(net, "w", GCP_SHAPE(5));                        \
      operand[3] = gcp_input(net, "t", GCP_SHAPE(4, 5));                                                         \
      return gcp_cross_entropy(operand[1], gcp_softmax(operand[3]), .smoothing = 0.2,                            \
                               .class_weights = gcp_exp(operand[2]));)                                           \
    X(binary_cross_entropy, IN(1, 3, 4); IN(2, 3, 4);                                                            \
      return gcp_binary_cross_entropy(gcp_scale(operand[1], .by = 4), operand[2], .positive = 2.5);)             \
    X(binary_cross_entropy_weights, IN(1, 3, 4); IN(2, 3, 4); operand[3] = gcp_input(net, "w", GCP_SHAPE(3, 1)); \
      return gcp_binary_cross_entropy(gcp_scale(operand[1], .by = 4), operand[2],                                \
                                      .weights = gcp_exp(operand[3]));)                                          \
    X(l1, IN(1, 3, 4); IN(2, 3, 4); return gcp_l1(operand[1], operand[2]);)                                      \
    X(smooth_l1, IN(1, 3, 4); IN(2, 3, 4); return gcp_smooth_l1(operand[1], operand[2], .beta = 0.4);)           \
    X(mse, IN(1, 3, 4); IN(2, 3, 4); return gcp_mse(operand[1], operand[2]);)                                    \
    X(embedding, PAR(1, 7, 3); return gcp_embedding_op(labels(GCP_SHAPE(2, 4), 7), operand[1]);)                 \
    X(embedding_vocab5, PAR(1, 5, 3); return gcp_embedding_op(labels(GCP_SHAPE(2, 4), 5), operand[1]);)          \
    X(mean, return gcp_mean(IMAGE);)

#define BODY(name, ...) static gcp_tensor case_##name(void) { __VA_ARGS__ }
CASES(BODY)
#define ROW(name, ...) { #name, case_##name },
static const struct { const char *name; gcp_tensor (*build)(void); } cases[] = { CASES(ROW) };
enum { COUNT = sizeof cases / sizeof cases[0] };

/* Optimiser trajectories: test_optimizers.c reads them. */
static const char *const elsewhere[] = { "sgd_momentum", "sgd_nesterov_wd", "adam",
                                         "adamw",        "sgd_clip_norm",   "sgd_clip_value" };

/* ---- values and comparison ------------------------------------------------------------------------------------- */

static void write_seed(gcp_plan *plan, gcp_tensor x, uint32_t seed)
{
    gcp_real v[MOST];
    for (uint32_t i = 0; i < gcp_elements(x); i++) v[i] = (gcp_real)value(seed, i);
    gcp_write(plan, x, v);
}

static void write_all(gcp_plan *plan)
{
    int id[MOST];
    for (int k = 1; k <= 3; k++)
        if (!gcp_is_nil(operand[k])) write_seed(plan, operand[k], (uint32_t)k);
    if (!gcp_is_nil(out_gradient)) write_seed(plan, out_gradient, 9);
    for (int i = 0; i < (int)gcp_elements(ids); i++) id[i] = (i * 7 + 3) % classes;
    if (!gcp_is_nil(ids)) gcp_write(plan, ids, id);
}

/* The file has 9 digits: 2e-5 is for float, 1e-8 for double. */
static void compare(const char *name, const char *what, const gcp_real *got, size_t count, const numbers *want)
{
    double allowed = sizeof(gcp_real) == sizeof(float) ? 2e-5 : 1e-8;
    int bad = (size_t)want->count != count;
    for (int i = 0; i < want->count && !bad; i++)
        if (!(fabs((double)got[i] - want->v[i]) <= allowed * fmax(1, fabs(want->v[i])))) {
            fprintf(stderr, "%s: %s[%d]: %.9g, PyTorch %.9g\n", name, what, i, (double)got[i], want->v[i]);
            bad = 1;
        }
    CHECK(!bad);
}

static void compare_tensor(gcp_plan *plan, const char *what, gcp_tensor x, int gradient, const record *r,
                           const numbers *want)
{
    gcp_real got[MOST];
    gcp_code code = gradient ? gcp_grad(plan, x, got) : gcp_read(plan, x, got);
    CHECK_INT(code, ==, GCP_OK);
    if (code == GCP_OK) compare(r->name, what, got, gcp_elements(x), want);
}

static void compare_gradients(gcp_plan *plan, const record *r)
{
    for (int k = 1; k <= 3; k++) {
        if (!r->grad[k].count) continue;
        CHECK(!gcp_is_nil(operand[k]));
        compare_tensor(plan, letter(k), operand[k], 1, r, &r->grad[k]);
    }
}

/* ---- the runs ---------------------------------------------------------------------------------------------------- */

static gcp_tensor record_case(int i)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16);
    ids = out_gradient = operand[1] = operand[2] = operand[3] = GCP_NIL;
    return gcp_keep(cases[i].build());
}

/* The gradient of sum(out * out_gradient); a loss is its own. */
static gcp_tensor loss_of(gcp_tensor out)
{
    gcp_shape s = gcp_shape_of(out);
    if (s.rank == 0) return out;
    s.rank = 4;
    out_gradient = gcp_input(net, "out_gradient", s);
    return gcp_scale(gcp_mean(gcp_mul(out, out_gradient)), .by = (double)gcp_elements(out));
}

static void training(int i, const record *r, gcp_policy policy)
{
    gcp_tensor out = record_case(i);
    gcp_plan plan = gcp_plan_make(loss_of(out), .policy = policy, .check = GCP_CHECK);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    write_all(&plan);
    gcp_step(&plan);
    compare_tensor(&plan, "out", out, 0, r, &r->out);
    compare_gradients(&plan, r);
    if (r->running_mean.count) {
        compare_tensor(&plan, "running_mean", gcp_find(net, "norm/running_mean"), 0, r, &r->running_mean);
        compare_tensor(&plan, "running_var", gcp_find(net, "norm/running_var"), 0, r, &r->running_var);
    }
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
}

static void inference(int i, const record *r)
{
    gcp_tensor out = record_case(i);
    gcp_plan plan = gcp_plan_make(out, .inference = 1);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    write_all(&plan);
    if (!gcp_is_nil(gcp_find(net, "norm/running_mean"))) {
        gcp_write(&plan, gcp_find(net, "norm/running_mean"), (gcp_real[]) { 0, (gcp_real)0.1, (gcp_real)0.2 });
        gcp_write(&plan, gcp_find(net, "norm/running_var"), (gcp_real[]) { 1, (gcp_real)1.2, (gcp_real)1.4 });
    }
    gcp_forward(&plan);
    compare_tensor(&plan, "out", out, 0, r, &r->out);
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
}

static void run_case(int i, const record *r)
{
    int infer_only = !strcmp(r->name, "batch_norm_infer"), train_only = !strcmp(r->name, "batch_norm_train");
    if (!train_only) inference(i, r);
    if (infer_only) return;                      /* running statistics have no gradient pass */
    training(i, r, GCP_POLICY_KEEP_ALL);
    training(i, r, GCP_POLICY_SQRT);
}

static int is_elsewhere(const char *name)
{
    for (size_t i = 0; i < sizeof elsewhere / sizeof elsewhere[0]; i++)
        if (!strcmp(elsewhere[i], name)) return 1;
    return 0;
}

static void dispatch(const record *r, int *seen)
{
    int found = is_elsewhere(r->name);
    for (int i = 0; i < COUNT; i++)
        if (!strcmp(cases[i].name, r->name)) { run_case(i, r); seen[i]++; found = 1; }
    if (!found) fprintf(stderr, "no C case for '%s'\n", r->name);
    CHECK(found);
}

int main(void)
{
    static record r;
    int seen[COUNT] = { 0 };
    file = fopen(TEST_DATA "/tests/reference/cases.txt", "r");
    CHECK(file != NULL);
    if (!file) return check_done();
    for (next_word(); read_record(&r); ) dispatch(&r, seen);
    CHECK(feof(file));
    fclose(file);
    for (int i = 0; i < COUNT; i++) {
        if (seen[i] != 1) fprintf(stderr, "'%s' is %d times in cases.txt\n", cases[i].name, seen[i]);
        CHECK_INT(seen[i], ==, 1);
    }
    return check_done();
}
