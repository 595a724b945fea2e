/* Training as people do it: what trains is the plan's choice; rates and decays of some weights; rates that change; a
   last batch that is not full; averages of weights; the norm of gradients. */
#include "support/check.h"
#include "gcp.h"
#include <stdlib.h>

enum { BATCH = 4, CLASSES = 5, IMAGE = 6 * 6 * 3, MOST = 1 << 12 };
static unsigned char tape_memory[1 << 21];
static _Alignas(64) unsigned char step_memory[1 << 21];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor image, label, loss;

static void record(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 96, .seed = 5);
    image = gcp_input(net, "image", GCP_SHAPE(BATCH, 6, 6, 3));
    label = gcp_labels(net, "label", GCP_SHAPE(BATCH));
    gcp_tensor x = image;
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "block") x = gcp_tanh(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)));
    loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = CLASSES, .name = "head"), label);
}
static gcp_plan bound(gcp_plan_opts o)
{
    gcp_plan plan = gcp_plan_make_at(loss, o);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    return plan;
}
static void batch(gcp_plan *plan, int number)
{
    gcp_real values[BATCH * IMAGE];
    int classes[BATCH];
    for (int i = 0; i < BATCH; i++) classes[i] = (i + number) % CLASSES;
    for (int i = 0; i < BATCH * IMAGE; i++) values[i] = (gcp_real)(((i + number) * 37 % 64) / 64.0);
    gcp_write(plan, image, values);
    gcp_write(plan, label, classes);
}
static double train(gcp_plan *plan, int number)
{
    batch(plan, number);
    return gcp_step(plan, .lr = 0.1);
}
static size_t read(gcp_plan *plan, const char *path, gcp_real *to)
{
    gcp_tensor x = gcp_find(net, path);
    CHECK(gcp_read(plan, x, to) == GCP_OK);
    return gcp_elements(x);
}
static int same(gcp_plan *plan, const char *path, const gcp_real *before)
{
    static gcp_real now[MOST];
    size_t count = read(plan, path, now);
    return !memcmp(now, before, count * sizeof *now);
}
static void fine(int line)
{
    if (!check_report(!gcp_error(net), __FILE__, line)) fprintf(stderr, "%s\n", gcp_error(net));
    gcp_error_clear(net);
}
static void refused(gcp_plan_opts o, const char *text, int line)
{
    CHECK(!gcp_plan_make_at(loss, o).core);
    if (!check_report(gcp_error(net) && strstr(gcp_error(net), text), __FILE__, line))
        fprintf(stderr, "expected '%s', found '%s'\n", text, gcp_error(net) ? gcp_error(net) : "no error");
    gcp_error_clear(net);
}
static gcp_plan_opts sgd(gcp_policy policy)
{
    return (gcp_plan_opts) { .at = GCP_AT, .policy = policy, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 };
}

/* ---- what trains ---- */

/* .freeze is gcp_freeze, to the byte and to the bit; .train says the same from the other side. */
static void frozen(void)
{
    static gcp_real first[MOST], weights[3][MOST];
    size_t bytes[3], count = 0;
    double losses[3];
    for (int way = 0; way < 3; way++) {
        gcp_plan_opts o = sgd(GCP_POLICY_SQRT);
        record();
        if (way == 0) {
            static const char *const parts[] = { "conv2d[0]/weight", "conv2d[0]/bias", "batch_norm[0]/gamma",
                                                 "batch_norm[0]/beta" };
            for (int i = 0; i < 12; i++) {
                char path[64];
                snprintf(path, sizeof path, "block[%d]/%s", i / 4, parts[i % 4]);
                gcp_freeze(gcp_find(net, path));
            }
        }
        if (way == 1) o.freeze = "block[0-1]* block[2]*";
        if (way == 2) o.train = "head*\nblock[3-3]*";
        gcp_plan plan = bound(o);
        read(&plan, "block[2]/conv2d[0]/weight", first);
        for (int i = 0; i < 3; i++) losses[way] = train(&plan, i);
        CHECK(same(&plan, "block[2]/conv2d[0]/weight", first));
        count = read(&plan, "block[3]/conv2d[0]/weight", weights[way]);
        bytes[way] = plan.bytes;
        fine(__LINE__);
        gcp_real gradient[MOST];
        CHECK(gcp_grad(&plan, gcp_find(net, "block[0]/conv2d[0]/weight"), gradient) == GCP_E_ARGUMENT);
        CHECK(strstr(gcp_error(net), "is frozen"));
        gcp_error_clear(net);
    }
    for (int way = 1; way < 3; way++)
        CHECK(bytes[way] == bytes[0] && losses[way] == losses[0] &&
              !memcmp(weights[way], weights[0], count * sizeof **weights));
}

/* Two plans of one recording: the head alone, then everything. Every policy ends with the same bits, and the frozen
   part costs neither gradients nor slots. */
static void thawed(void)
{
    static gcp_real before[MOST], after[MOST], expected[MOST];
    static const gcp_policy policies[] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SEGMENTS, GCP_POLICY_RECURSIVE };
    for (int i = 0; i < 3; i++) {
        record();
        gcp_plan_opts o = sgd(policies[i]);
        gcp_plan all = gcp_plan_make_at(loss, o);
        o.freeze = "block*";
        gcp_plan head = gcp_plan_make_at(loss, o);
        CHECK(head.bytes < all.bytes && head.split.weight_gradients < all.split.weight_gradients);
        gcp_bind(&head, step_memory, sizeof step_memory);
        read(&head, "block[0]/conv2d[0]/weight", before);
        for (int k = 0; k < 3; k++) train(&head, k);
        CHECK(same(&head, "block[0]/conv2d[0]/weight", before));
        gcp_bind(&all, step_memory, sizeof step_memory);
        for (int k = 0; k < 3; k++) train(&all, k);
        CHECK(!same(&all, "block[0]/conv2d[0]/weight", before));
        size_t count = read(&all, "block[0]/conv2d[0]/weight", after);
        if (!i) memcpy(expected, after, sizeof after);
        CHECK(!memcmp(after, expected, count * sizeof *after));
        for (int k = 0; k < 2; k++) train(&head, k);
        CHECK(same(&head, "block[0]/conv2d[0]/weight", after));
        fine(__LINE__);
    }
}

/* .frozen_norms: statistics stay; the gradients behind them are those of a norm with constant statistics. */
static void norms(void)
{
    static gcp_real mean[16], gamma[16];
    gcp_plan_opts o = { .at = GCP_AT, .freeze = "block[1]/batch_norm* block[3]*", .frozen_norms = 1 };
    record();
    gcp_plan plan = bound(o);
    batch(&plan, 0);
    gcp_gradcheck_result r = gcp_gradcheck(&plan);
    CHECK(r.passed && r.elements > 300);
    if (!r.passed) fprintf(stderr, "%g at %s\n", r.worst, gcp_name(r.tensor, (char[64]) { 0 }, 64));
    static const gcp_policy policies[] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SEGMENTS, GCP_POLICY_SQRT };
    static gcp_real weights[3][MOST];
    for (int i = 0; i < 3; i++) {
        record();
        gcp_plan_opts s = sgd(policies[i]);
        s.freeze = o.freeze; s.frozen_norms = 1;
        plan = bound(s);
        read(&plan, "block[1]/batch_norm[0]/running_mean", mean);
        read(&plan, "block[0]/batch_norm[0]/running_mean", gamma);
        for (int k = 0; k < 3; k++) train(&plan, k);
        CHECK(same(&plan, "block[1]/batch_norm[0]/running_mean", mean));
        CHECK(!same(&plan, "block[0]/batch_norm[0]/running_mean", gamma));
        size_t count = read(&plan, "block[0]/conv2d[0]/weight", weights[i]);
        CHECK(!memcmp(weights[i], weights[0], count * sizeof **weights));
    }
    record();
    gcp_plan_opts s = sgd(GCP_POLICY_KEEP_ALL);
    s.freeze = o.freeze;
    plan = bound(s);
    for (int k = 0; k < 3; k++) train(&plan, k);
    CHECK(!same(&plan, "block[1]/batch_norm[0]/running_mean", mean));
    fine(__LINE__);
}

static void bad_patterns(void)
{
    record();
    gcp_plan_opts o = sgd(GCP_POLICY_SEGMENTS), infer = { .at = GCP_AT, .inference = 1, .train = "head*" },
                  plain = { .at = GCP_AT, .rates = "head* 2" };
    o.freeze = "block* stem*";
    refused(o, "test_training.c:", __LINE__);
    refused(o, "gcp_plan_make: .freeze: 'stem*' fits no parameter", __LINE__);
    o.freeze = "block[4-9]*";
    refused(o, ".freeze: 'block[4-9]*' fits no parameter", __LINE__);
    o.freeze = "*";
    refused(o, "the loss depends on no parameter that trains", __LINE__);
    o.freeze = NULL; o.train = "block[0]";
    refused(o, ".train: 'block[0]' fits no parameter", __LINE__);
    o.train = " \n ";
    refused(o, ".train: '' has no pattern", __LINE__);
    o.train = NULL; o.rates = "head*";
    refused(o, ".rates: 'head*' needs a number of at least 0 behind it", __LINE__);
    o.rates = "head* 2 3";
    refused(o, ".rates: 'head*' needs a number", __LINE__);
    o.rates = "head* -1";
    refused(o, ".rates: 'head*' needs a number", __LINE__);
    o.rates = NULL; o.decays = "* 1\nhead* x";
    refused(o, ".decays: 'head*' fits no parameter that the lines before leave", __LINE__);
    o.decays = "head* x\n* 1";
    refused(o, ".decays: 'head*' needs a number", __LINE__);
    refused(infer, "an inference plan trains nothing: no .train, .freeze or .frozen_norms", __LINE__);
    refused(plain, ".rates and .decays need .optimizer", __LINE__);
    o = GCP_OPTS(gcp_plan_opts, .optimizer = GCP_OPTIMIZER_ADAMW, .frozen_norms = 1);
    refused(o, ".frozen_norms: nothing is frozen (.freeze, .train, gcp_freeze)", __LINE__);
    o = GCP_OPTS(gcp_plan_opts, .optimizer = GCP_OPTIMIZER_ADAMW, .decays = "*/bias 0");
    refused(o, ".decays: its numbers are 0, and so is .weight_decay: nothing decays", __LINE__);
}

/* ---- rates ---- */

/* One step of plain SGD: each weight moves by lr rate (gradient + decay weight). */
static void groups(void)
{
    static gcp_real before[MOST], after[MOST], gradient[MOST];
    static const struct { const char *path; double rate, decay; } expected[] = {
        { "head/weight", 10, 0.01 }, { "head/bias", 0, 0 }, { "block[0]/conv2d[0]/weight", 1, 0.01 },
        { "block[1]/batch_norm[0]/gamma", 0.5, 0 }, { "block[3]/conv2d[0]/weight", 0.5, 0.01 }
    };
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++) {
        record();
        gcp_plan_opts o = { .at = GCP_AT };
        gcp_plan plan = bound(o);
        train(&plan, 0);
        gcp_error_clear(net);
        batch(&plan, 0);
        gcp_step(&plan);
        size_t count = read(&plan, expected[i].path, before);
        gcp_grad(&plan, gcp_find(net, expected[i].path), gradient);
        o = (gcp_plan_opts) { .at = GCP_AT,
                              .optimizer = GCP_OPTIMIZER_SGD,
                              .weight_decay = 0.01,
                              .rates = "head/bias 0\nhead* 10\nblock[1-3]* 0.5",
                              .decays = "*/bias 0\n*/gamma 0 \n*/beta 0" };
        plan = bound(o);
        train(&plan, 0);
        read(&plan, expected[i].path, after);
        for (size_t k = 0; k < count; k++) {
            double w = (double)before[k], step = 0.1 * expected[i].rate * ((double)gradient[k] + expected[i].decay * w);
            CHECK_NEAR(after[k], w - step, 1e-12);
        }
        fine(__LINE__);
    }
}

static void schedules(void)
{
    CHECK_NEAR(gcp_rate_cosine(0.1, 0, 4, 104), 0.025, 1e-15);
    CHECK_NEAR(gcp_rate_cosine(0.1, 3, 4, 104), 0.1, 1e-15);
    CHECK_NEAR(gcp_rate_cosine(0.1, 4, 4, 104), 0.1, 1e-15);
    CHECK_NEAR(gcp_rate_cosine(0.1, 54, 4, 104), 0.05, 1e-15);
    CHECK(gcp_rate_cosine(0.1, 103, 4, 104) > 0 && gcp_rate_cosine(0.1, 103, 4, 104) < 1e-4);
    CHECK(gcp_rate_cosine(0.1, 104, 4, 104) == GCP_ZERO && gcp_rate_cosine(0, 7, 4, 104) == GCP_ZERO);
    CHECK(isnan(gcp_rate_cosine(0.1, 0, 0, 0)) && isnan(gcp_rate_cosine(-0.1, 0, 0, 9)));
    CHECK(isnan(gcp_rate_cosine((double)NAN, 9, 0, 9)) && isnan(gcp_rate_steps(0.1, 9, 0, 1, (double)NAN)));
    CHECK_NEAR(gcp_rate_steps(0.1, 0, 0, 30, 0.1), 0.1, 1e-15);
    CHECK_NEAR(gcp_rate_steps(0.1, 29, 0, 30, 0.1), 0.1, 1e-15);
    CHECK_NEAR(gcp_rate_steps(0.1, 61, 0, 30, 0.1), 0.001, 1e-15);
    CHECK_NEAR(gcp_rate_steps(0.1, 0, 2, 30, 0.1), 0.05, 1e-15);
    CHECK_NEAR(gcp_rate_steps(0.1, 9, 0, 0, 0.1), 0.1, 1e-15);
    CHECK(gcp_rate_steps(0.1, 9, 0, 1, 0) == GCP_ZERO);
    record();
    gcp_plan plan = bound(sgd(GCP_POLICY_SEGMENTS));
    batch(&plan, 0);
    for (uint64_t i = 0; i < 4; i++) gcp_step(&plan, .lr = gcp_rate_cosine(0.1, i, 1, 3));
    fine(__LINE__);
}

/* ---- a last batch that is not full ---- */

/* Three of four samples: the loss is the mean over the three, gradients are those of a batch of three. */
static void last_batch(void)
{
    gcp_real values[BATCH * IMAGE], all[8], some[8];
    int classes[BATCH] = { 0, 1, 2, 3 };
    double losses[2];
    for (int i = 0; i < BATCH * IMAGE; i++) values[i] = (gcp_real)(i * 37 % 64 / 64.0);
    for (int n = 3; n <= 4; n++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 16, .seed = 5);
        image = gcp_input(net, "image", GCP_SHAPE(n, 6, 6, 3));
        label = gcp_labels(net, "label", GCP_SHAPE(n));
        gcp_tensor y = gcp_linear(gcp_global_avg_pool(gcp_tanh(gcp_conv2d(image, .out = 4, .k = 3))), .out = CLASSES);
        loss = gcp_cross_entropy(y, label);
        gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT });
        CHECK(gcp_write_some(&plan, image, values, 3) == GCP_OK && gcp_write_some(&plan, label, classes, 3) == GCP_OK);
        losses[n - 3] = gcp_step(&plan);
        CHECK_INT(gcp_ignored(&plan, loss), ==, n - 3);
        gcp_grad(&plan, gcp_find(net, "conv2d[0]/bias"), n == 3 ? all : some);
        fine(__LINE__);
        gcp_write_some(&plan, label, classes, 2);
        CHECK(isnan(gcp_step(&plan)) && strstr(gcp_error(net), " of 'label'"));
        gcp_error_clear(net);
        gcp_write_some(&plan, image, values, 2);
        CHECK(gcp_step(&plan) > 0);
        fine(__LINE__);
        CHECK(gcp_write_some(&plan, image, values, 0) == GCP_E_ARGUMENT);
        CHECK(strstr(gcp_error(net), "gcp_write_some: 'image' was given 0 samples; 1 to "));
        gcp_error_clear(net);
        CHECK(gcp_write_some(&plan, image, values, n + 1) == GCP_E_ARGUMENT);
        gcp_error_clear(net);
        CHECK(gcp_write_some(&plan, gcp_find(net, "conv2d[0]/bias"), values, 1) == GCP_E_ARGUMENT);
        gcp_error_clear(net);
        CHECK(gcp_write_some(&plan, image, NULL, 1) == GCP_E_ARGUMENT);
        gcp_error_clear(net);
    }
    CHECK_NEAR(losses[0], losses[1], 1e-12);
    for (int i = 0; i < 4; i++) CHECK_NEAR(all[i], some[i], 1e-12);
}

/* A second loss, which cannot leave samples out, refuses; one of weights alone does not. */
static void last_batch_of_two_losses(void)
{
    static gcp_real values[4 * 8];
    for (int i = 0; i < 2; i++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 16, .seed = 5);
        image = gcp_input(net, "image", GCP_SHAPE(4, 8));
        label = gcp_labels(net, "label", GCP_SHAPE(4));
        gcp_tensor y = gcp_linear(image, .out = 8), w = gcp_find(net, "linear[0]/weight");
        loss = gcp_add(gcp_cross_entropy(y, label), i ? gcp_mse(y, image) : gcp_mean(gcp_mul(w, w)));
        gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT });
        CHECK(gcp_write_some(&plan, image, values, 3) == (i ? GCP_E_ARGUMENT : GCP_OK));
        if (i) CHECK(strstr(gcp_error(net), "'mse[0]' (test_training.c:"));
        gcp_error_clear(net);
    }
}

/* ---- averages, norms ---- */

static void averages(void)
{
    static gcp_real average[1 << 13], first[MOST], second[MOST], swapped[MOST];
    record();
    gcp_plan plan = bound(sgd(GCP_POLICY_SEGMENTS));
    CHECK(gcp_average_bytes(net) < sizeof average && gcp_average_bytes(NULL) == 0);
    CHECK(gcp_average(net, average, 0) == GCP_OK);
    size_t count = read(&plan, "head/weight", first);
    train(&plan, 0);
    read(&plan, "head/weight", second);
    CHECK(gcp_average(net, average, 0.75) == GCP_OK && gcp_average_swap(net, average) == GCP_OK);
    read(&plan, "head/weight", swapped);
    for (size_t i = 0; i < count; i++)
        CHECK_NEAR(swapped[i], 0.75 * (double)first[i] + 0.25 * (double)second[i], 1e-12);
    CHECK(gcp_average_swap(net, average) == GCP_OK && same(&plan, "head/weight", second));
    CHECK(gcp_average(net, average, 1.5) == GCP_E_ARGUMENT && strstr(gcp_error(net), "a decay of 1.5; 0 to 1"));
    gcp_error_clear(net);
    CHECK(gcp_average(net, NULL, 0) == GCP_E_STATE);
    gcp_error_clear(net);
    CHECK(gcp_average(net, (char *)average + 1, 0) == GCP_E_STATE && strstr(gcp_error(net), "memory is not aligned"));
    gcp_error_clear(net);
    record();
    CHECK(gcp_average(net, average, 0) == GCP_E_STATE && gcp_average(NULL, average, 0) != GCP_OK);
}

static void gradient_norm(void)
{
    static gcp_real gradient[MOST];
    double sum = 0;
    record();
    gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT });
    batch(&plan, 0);
    gcp_step(&plan);
    for (int i = 0;; i++) {
        gcp_tensor x = gcp_nth_parameter(net, i);
        if (gcp_is_nil(x)) break;
        gcp_grad(&plan, x, gradient);
        for (size_t k = 0; k < gcp_elements(x); k++) sum += (double)gradient[k] * (double)gradient[k];
    }
    CHECK(isnan(gcp_gradient_norm(&plan)) && strstr(gcp_error(net), "the plan has no .clip_norm"));
    gcp_error_clear(net);
    for (int i = 0; i < 2; i++) {
        record();
        gcp_plan_opts o = sgd(GCP_POLICY_SEGMENTS);
        o.clip_norm = i ? 1e30 : 1e-3;
        plan = bound(o);
        CHECK(isnan(gcp_gradient_norm(&plan)) && strstr(gcp_error(net), "no step has run yet"));
        gcp_error_clear(net);
        train(&plan, 0);
        CHECK_NEAR(gcp_gradient_norm(&plan), sqrt(sum), 1e-12);
        fine(__LINE__);
    }
}

int main(void)
{
    frozen();
    thawed();
    norms();
    bad_patterns();
    groups();
    schedules();
    last_batch();
    last_batch_of_two_losses();
    averages();
    gradient_norm();
    return check_done();
}
