/* What ops promise beside their gradients: what stops one, which of equals gets it, statistics that stay, and that one
   form of an op gives what another does. */
#include "support/check.h"
#include "gcp.h"

enum { MOST = 4096 };
static unsigned char tape_memory[1 << 19], step_memory[1 << 20];
static gcp_arena arena;
static gcp_tape *net;
static gcp_plan plan;
static gcp_real got[MOST], other[MOST];

static void begin(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64);
}
static double value(unsigned i) { return (double)((i + 1) * 2654435761u % 65536) / 32768 - 1; }
static gcp_tensor input(const char *name, gcp_shape shape)
{
    return gcp_want_grad(gcp_input(net, name, shape));
}
static void fill(const char *name, unsigned seed)
{
    gcp_real v[MOST];
    gcp_tensor x = gcp_find(net, name);
    for (unsigned i = 0; i < gcp_elements(x); i++) v[i] = (gcp_real)value(i + 1000 * seed);
    gcp_write(&plan, x, v);
}
static double train(gcp_tensor loss)
{
    plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .check = GCP_CHECK);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < 3; i++) {
        const char name[2] = { "abc"[i], 0 };
        if (gcp_is_nil(gcp_find(net, name))) gcp_error_clear(net);
        else fill(name, (unsigned)i);
    }
    return gcp_step(&plan);
}
/* The two tensors have the same bits. */
static void check_same(int line, gcp_tensor x, gcp_tensor y)
{
    const size_t n = gcp_elements(x);
    gcp_keep(x); gcp_keep(y);
    train(gcp_add(gcp_mean(x), gcp_mean(y)));
    gcp_read(&plan, x, got); gcp_read(&plan, y, other);
    if (gcp_error(net)) fprintf(stderr, "line %d: %s\n", line, gcp_error(net));
    CHECK(!gcp_error(net) && n == gcp_elements(y));
    for (size_t i = 0; i < n; i++) CHECK(!(got[i] < other[i]) && !(got[i] > other[i]));
}

/* x times what comes of x itself, through which no gradient comes back. */
static void stopped(void)
{
    begin();
    gcp_tensor x = input("a", GCP_SHAPE(3, 4)), stop = gcp_keep(gcp_stop_gradient(gcp_tanh(x)));
    train(gcp_scale(gcp_mean(gcp_mul(x, stop)), .by = 12));
    gcp_grad(&plan, x, got);
    gcp_read(&plan, stop, other);
    CHECK(!gcp_error(net));
    for (int i = 0; i < 12; i++) CHECK(fabs((double)(got[i] - other[i])) < 1e-6);
    begin();
    x = gcp_input(net, "a", GCP_SHAPE(3, 4));
    gcp_tensor w = gcp_param(net, "w", GCP_SHAPE(4));
    gcp_plan nothing = gcp_plan_make(gcp_mean(gcp_stop_gradient(gcp_mul(x, w))), .policy = GCP_POLICY_KEEP_ALL);
    CHECK(!gcp_plan_ok(&nothing) && strstr(gcp_error(net), "the loss depends on no parameter that trains"));
    begin();
    x = input("a", GCP_SHAPE(3, 4));
    train(gcp_mean(gcp_mul(gcp_stop_gradient(x), gcp_param(net, "w", GCP_SHAPE(4)))));
    CHECK(gcp_grad(&plan, x, got) && strstr(gcp_error(net), "gcp_grad: 'a' is frozen") &&
          strstr(gcp_error(net), "or behind a gcp_stop_gradient alone"));
}

/* The rounding errors of a mean do not grow with the image. */
static void large_means(void)
{
    static const int sides[][2] = { { 32, 32 }, { 1, 1365 }, { 1365, 1 }, { 8, 8 }, { 13, 5 } };
    for (int i = 0; i < 5; i++) {
        const int h = sides[i][0], w = sides[i][1];
        double mean[3] = { 0, 0, 0 };
        begin();
        gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, h, w, 3)), y = gcp_global_avg_pool(x);
        plan = gcp_plan_make(y, .inference = 1);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        for (unsigned k = 0; k < gcp_elements(x); k++) {
            got[k] = (gcp_real)(2 + value(k));
            mean[k % 3] += (double)got[k] / (h * w);
        }
        gcp_write(&plan, x, got);
        gcp_forward(&plan);
        gcp_read(&plan, y, other);
        CHECK(!gcp_error(net));
        for (int c = 0; c < 3; c++) CHECK(fabs((double)other[c] - mean[c]) < 1.5e-7 * mean[c]);
    }
}

/* The gradient of a largest value goes to the first of equals; a NaN is the largest. */
static void largest(void)
{
    gcp_real v[6] = { 1, 3, 3, 2, 3, 0 }, want[6] = { 0, 1, 0, 0, 0, 0 };
    for (int channels = 0; channels < 2; channels++) {
        begin();
        gcp_tensor x = input("x", channels ? GCP_SHAPE(1, 6) : GCP_SHAPE(1, 6, 1));
        gcp_tensor y = gcp_keep(gcp_reduce(x, .by = GCP_REDUCE_MAX, .tokens = 1, .channels = channels));
        plan = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        gcp_write(&plan, x, v);
        gcp_step(&plan);
        gcp_grad(&plan, x, got);
        for (int i = 0; i < 6; i++) CHECK(!(got[i] < want[i]) && !(got[i] > want[i]));
        v[3] = (gcp_real)NAN;
        gcp_write(&plan, x, v);
        gcp_step(&plan);
        gcp_read(&plan, y, got);
        CHECK(isnan(got[0]) && !gcp_error(net));
        v[3] = 2;
    }
}

/* .frozen: running statistics stay, and are what training takes; gamma trains. */
static void frozen(void)
{
    static gcp_real before[8], after[8], trained[MOST], inferred[MOST];
    begin();
    gcp_tensor x = gcp_input(net, "a", GCP_SHAPE(4, 3, 3, 8));
    gcp_tensor y = gcp_keep(gcp_batch_norm(x, .frozen = 1, .name = "norm")), loss = gcp_mean(gcp_square(y));
    gcp_tensor mean = gcp_find(net, "norm/running_mean"), gamma = gcp_find(net, "norm/gamma");
    plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < 8; i++) before[i] = (gcp_real)value((unsigned)i);
    gcp_write(&plan, mean, before);
    fill("a", 0);
    gcp_step(&plan, .lr = 0.1);
    gcp_read(&plan, y, trained);
    gcp_read(&plan, mean, after);
    CHECK(!memcmp(before, after, sizeof before));
    gcp_read(&plan, gamma, after);
    for (int i = 0; i < 8; i++) CHECK(after[i] < 1);
    for (int i = 0; i < 8; i++) after[i] = 1;
    gcp_write(&plan, gamma, after);
    gcp_tensor beta = gcp_find(net, "norm/beta");
    for (int i = 0; i < 8; i++) after[i] = 0;
    gcp_write(&plan, beta, after);
    gcp_plan infer = gcp_plan_make(y, .inference = 1);
    static unsigned char more[1 << 18];
    gcp_bind(&infer, more, sizeof more);
    plan = infer;
    fill("a", 0);
    gcp_forward(&infer);
    gcp_read(&infer, y, inferred);
    CHECK(!gcp_error(net) && !memcmp(trained, inferred, gcp_elements(y) * sizeof *trained));
}

static void forms(void)
{
    begin();
    gcp_tensor x = input("a", GCP_SHAPE(2, 3, 4, 8));
    check_same(__LINE__, gcp_pixel_unshuffle(gcp_pixel_shuffle(x)), x);
    begin(); x = input("a", GCP_SHAPE(2, 3, 4, 5));
    check_same(__LINE__, gcp_resize(x, .height = 9, .width = 12), gcp_upsample(x, .factor = 3));
    begin(); x = input("a", GCP_SHAPE(2, 3, 4, 5));
    check_same(__LINE__, gcp_resize(x, .height = 6, .width = 8, .mode = GCP_UPSAMPLING_BILINEAR),
               gcp_upsample(x, .mode = GCP_UPSAMPLING_BILINEAR));
    begin(); x = input("a", GCP_SHAPE(2, 3, 4, 5));
    check_same(__LINE__, gcp_slice(gcp_pad(x, .before = 2, .after = 1, .axis = GCP_AXIS_HEIGHT), .first = 2, .count = 3,
                                   .axis = GCP_AXIS_HEIGHT), x);
    begin(); x = input("a", GCP_SHAPE(2, 3, 4, 5));
    gcp_tensor flat = gcp_input(net, "b", GCP_SHAPE(5, 6));
    check_same(__LINE__, gcp_matmul(x, flat), gcp_matmul(x, gcp_transpose(flat, 3, 1, 2, 0), .transpose_b = 1));
    begin(); x = input("a", GCP_SHAPE(9, 7, 5));
    gcp_tensor y = gcp_input(net, "b", GCP_SHAPE(9, 5, 6));
    check_same(__LINE__, gcp_matmul(x, y), gcp_matmul(gcp_transpose(x, 0, 1, 3, 2), y, .transpose_a = 1));
    begin(); x = input("a", GCP_SHAPE(9, 7, 5)); y = gcp_input(net, "b", GCP_SHAPE(5, 6));
    check_same(__LINE__, gcp_matmul(x, y), gcp_matmul(x, gcp_reshape(y, GCP_SHAPE(1, 5, 6))));
}

/* Labels as targets; weights of one; a loss of no weight at all. */
static void losses(void)
{
    begin();
    gcp_tensor x = input("a", GCP_SHAPE(6, 5)), label = gcp_labels(net, "label", GCP_SHAPE(6)), one, w;
    gcp_tensor hard = gcp_keep(gcp_cross_entropy(x, label, .smoothing = 0.1)), t = gcp_input(net, "t", GCP_SHAPE(6, 5));
    gcp_tensor soft = gcp_keep(gcp_cross_entropy(x, t, .smoothing = 0.1));
    one = gcp_input(net, "one", GCP_SHAPE(6, 1));
    w = gcp_input(net, "w", GCP_SHAPE(6));
    gcp_tensor half = gcp_keep(gcp_cross_entropy(x, label, .sample_weights = w));
    gcp_tensor l1 = gcp_keep(gcp_l1(x, t)), weighted = gcp_keep(gcp_l1(x, t, .weights = one));
    gcp_tensor mse = gcp_keep(gcp_mse(x, t)), mse_weighted = gcp_keep(gcp_mse(x, t, .weights = one));
    gcp_tensor first = gcp_keep(gcp_cross_entropy(gcp_slice(x, .count = 3, .axis = GCP_AXIS_SAMPLES),
                                                  gcp_labels(net, "three", GCP_SHAPE(3))));
    gcp_tensor sum = gcp_add(gcp_add(gcp_add(hard, soft), gcp_add(half, first)),
                             gcp_add(gcp_add(l1, weighted), gcp_add(mse, mse_weighted)));
    plan = gcp_plan_make(sum, .policy = GCP_POLICY_KEEP_ALL, .check = GCP_CHECK);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    fill("a", 0);
    const int labels[6] = { 0, 3, 1, 4, 2, 2 };
    gcp_real targets[30] = { 0 }, ones[6] = { 1, 1, 1, 1, 1, 1 }, weights[6] = { 2, 2, 2, 0, 0, 0 };
    for (int i = 0; i < 6; i++) targets[5 * i + labels[i]] = 1;
    gcp_write(&plan, label, labels); gcp_write(&plan, gcp_find(net, "three"), labels);
    gcp_write(&plan, t, targets); gcp_write(&plan, one, ones); gcp_write(&plan, w, weights);
    gcp_step(&plan);
    const gcp_tensor pairs[][2] = { { hard, soft }, { half, first }, { l1, weighted }, { mse, mse_weighted } };
    for (int i = 0; i < 4; i++) {
        gcp_read(&plan, pairs[i][0], got); gcp_read(&plan, pairs[i][1], other);
        CHECK(got[0] > 0 && fabs((double)(got[0] - other[0])) < 1e-5 * (double)got[0]);
    }
    CHECK(!gcp_error(net));
}

/* Calls that record several ops: where the last is refused (its name is taken) none stays; a full tape counts all. */
static gcp_tensor compound(int k, gcp_tensor x, gcp_tensor t, const char *name, int *ops)
{
    static const int counts[] = { 2, 3, 6, 6, 2, 3, 2, 2, 2, 7, 9, 2 };
    *ops = counts[k];
    switch (k) {
    case 0: return gcp_reduce(x, .tokens = 1, .name = name);
    case 1: return gcp_channel_shuffle(x, .groups = 2, .name = name);
    case 2: return gcp_pixel_shuffle(x, .name = name);
    case 3: return gcp_pixel_unshuffle(x, .name = name);
    case 4: return gcp_cross_entropy(x, t, .name = name);
    case 5: return gcp_cross_entropy(x, t, .class_weights = gcp_find(net, "c"), .name = name);
    case 6: return gcp_l1(x, t, .name = name);
    case 7: return gcp_smooth_l1(x, t, .name = name);
    case 8: return gcp_binary_cross_entropy(x, t, .name = name);
    case 9: return gcp_binary_cross_entropy(x, t, .weights = t, .name = name);
    case 10: return gcp_mse(x, t, .weights = gcp_find(net, "c"), .name = name);
    default: return gcp_batch_norm(x, .name = name);
    }
}
static void compounds(void)
{
    char want[80];
    for (int k = 0; k < 12; k++) {
        int ops = 0, fit = 0;
        for (int full = 0; full < 2; full++) {
            arena = gcp_arena_from(tape_memory, sizeof tape_memory);
            net = gcp_tape_make(&arena, .ops = 30);
            gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4, 4, 8)), t = gcp_input(net, "t", GCP_SHAPE(2, 4, 4, 8));
            gcp_input(net, "c", GCP_SHAPE(8));
            gcp_relu(x, .name = "taken");
            if (full) for (int i = 1; i < 29; i++) gcp_relu(x);            /* one place is left, none for two */
            CHECK(gcp_is_nil(compound(k, x, t, full ? "new" : "taken", &ops)) && gcp_error(net));
            snprintf(want, sizeof want, "30 ops are recorded, %d were needed so far", 29 + ops);
            if (full && !strstr(gcp_error(net), want)) fprintf(stderr, "%d: %s\n", k, gcp_error(net));
            CHECK(!full || strstr(gcp_error(net), want));
            if (full) continue;
            CHECK(strstr(gcp_error(net), "'taken' is used twice") != NULL);
            gcp_error_clear(net);
            while (!gcp_is_nil(gcp_relu(x))) fit++;
            CHECK_INT(fit, ==, 29);
        }
    }
}

/* Targets and weights get no gradient, also those that are inputs whose gradient is wanted; a tensor of another tape
   leaves that tape as it was. */
static void constants(void)
{
    static unsigned char other_memory[1 << 17];
    gcp_arena other_arena = gcp_arena_from(other_memory, sizeof other_memory);
    gcp_tape *another = gcp_tape_make(&other_arena, .ops = 4);
    gcp_tensor foreign = gcp_input(another, "f", GCP_SHAPE(3, 4));
    int fit = 0;
    begin();
    gcp_tensor x = input("a", GCP_SHAPE(3, 4)), t = input("b", GCP_SHAPE(3, 4)), w = input("c", GCP_SHAPE(4));
    CHECK(gcp_is_nil(gcp_cross_entropy(x, foreign)) && gcp_error_code(net) == GCP_E_FOREIGN);
    gcp_error_clear(net);
    while (!gcp_is_nil(gcp_relu(foreign))) fit++;
    CHECK_INT(fit, ==, 4);
    gcp_tensor loss = gcp_add(gcp_cross_entropy(x, t, .class_weights = w), gcp_l1(x, x, .weights = w));
    plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    fill("a", 0); fill("b", 1); fill("c", 2);
    gcp_step(&plan);
    CHECK(!gcp_error(net) && gcp_grad(&plan, x, got) == GCP_OK);
    gcp_real none[4] = { 0 };
    gcp_write(&plan, w, none);                             /* no weight at all: l1 is 0, and so is its gradient */
    CHECK(isfinite(gcp_step(&plan)) && gcp_grad(&plan, x, got) == GCP_OK);
    for (int i = 0; i < 12; i++) CHECK(isfinite((double)got[i]));
    CHECK(gcp_grad(&plan, t, got) != GCP_OK);
    gcp_error_clear(net);
    CHECK(gcp_grad(&plan, w, got) != GCP_OK);
}

int main(void)
{
    stopped();
    largest();
    large_means();
    frozen();
    forms();
    losses();
    compounds();
    constants();
    return check_done();
}
