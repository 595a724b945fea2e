/* Optimisers against PyTorch's trajectories (tests/reference), accumulation, hooks, and plans changed in
   mid-training. */
#include <stdlib.h>
#include "support/check.h"
#include "gcp.h"

#ifndef TEST_DATA
#define TEST_DATA "."
#endif

static unsigned char tape_memory[1 << 20], step_memory[3][1 << 18], state_memory[1 << 16];
static gcp_arena arena;
static gcp_tape *net;

static double value(uint32_t seed, uint32_t i)
{
    uint32_t h = (i + 1) * 2654435761u + seed * 2246822519u;
    h = (h ^ (h >> 15)) * 3266489917u;
    h ^= h >> 13;
    return (double)(h >> 8) / 16777216.0 * 2.0 - 1.0;
}

static void fill(gcp_real *v, int count, uint32_t seed)
{
    for (int i = 0; i < count; i++) v[i] = (gcp_real)value(seed, (uint32_t)i);
}

static void fresh(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 5);
}

static void no_error(void) { CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none"); }

/* ---- one parameter whose gradient is an input ------------------------------------------------------------------ */

enum { FIVE = 5 };
static gcp_tensor p, g;

static gcp_tensor gradient_is_input(void)
{
    fresh();
    p = gcp_param(net, "p", GCP_SHAPE(FIVE));
    g = gcp_input(net, "g", GCP_SHAPE(FIVE));
    return gcp_scale(gcp_mean(gcp_mul(p, g)), .by = FIVE);
}

static void step_with(gcp_plan *plan, uint32_t seed, double lr)
{
    gcp_real v[FIVE];
    fill(v, FIVE, seed);
    gcp_write(plan, g, v);
    gcp_step(plan, .lr = lr);
}

/* A share is the gradient's factor; 0 leaves nothing. */
static void shares(void)
{
    const double share[] = { 1, 0.5, GCP_ZERO }, factor[] = { 1, 0.5, 0 };
    gcp_real v[FIVE], got[FIVE];
    gcp_plan plan = gcp_plan_make(gradient_is_input());
    gcp_bind(&plan, step_memory[0], sizeof step_memory[0]);
    fill(v, FIVE, 3);
    gcp_write(&plan, g, v);
    for (int i = 0; i < 3; i++) {
        const double loss = gcp_step(&plan, .share = share[i]);
        gcp_grad(&plan, p, got);
        for (int k = 0; k < FIVE; k++) CHECK_NEAR(got[k], factor[i] * v[k], 1e-12);
        CHECK(loss == gcp_step(&plan));
    }
    no_error();
}

static void start(gcp_plan *plan)
{
    gcp_real v[FIVE];
    gcp_bind(plan, step_memory[0], sizeof step_memory[0]);
    fill(v, FIVE, 1);
    gcp_write(plan, p, v);
}

static int same_p(gcp_plan *plan, const gcp_real *want)
{
    gcp_real got[FIVE];
    return gcp_read(plan, p, got) == GCP_OK && !memcmp(got, want, sizeof got);
}

/* ---- trajectories ------------------------------------------------------------------------------------------------ */

static char reference[1 << 18];

static void read_reference(void)
{
    FILE *file = fopen(TEST_DATA "/tests/reference/cases.txt", "r");
    CHECK(file != NULL);
    if (!file) return;
    reference[fread(reference, 1, sizeof reference - 1, file)] = 0;
    CHECK(feof(file));
    fclose(file);
}

static int trajectory(const char *name, double *want)
{
    char head[64];
    snprintf(head, sizeof head, "case %s\nout %d", name, FIVE);
    const char *at = strstr(reference, head);
    if (!at) return 0;
    char *end = reference + (at - reference) + strlen(head);
    for (int i = 0; i < FIVE; i++) want[i] = strtod(end, &end);
    return 1;
}

static void follow(const char *name, gcp_plan_opts o, int fused)
{
    double want[FIVE] = { 0 };
    gcp_real got[FIVE] = { 0 };
    gcp_tensor loss = gradient_is_input();
    o.fuse_update = fused;
    gcp_plan plan = gcp_plan_make_at(loss, o);
    start(&plan);
    for (uint32_t t = 1; t <= 4; t++) step_with(&plan, 20 + t, 0.1);
    gcp_read(&plan, p, got);
    no_error();
    CHECK(trajectory(name, want));
    for (int i = 0; i < FIVE; i++) CHECK_NEAR(got[i], want[i], 1e-6);
}

#define FOLLOW(name, fused, ...) follow(name, GCP_OPTS(gcp_plan_opts, __VA_ARGS__), fused)
static void trajectories(void)
{
    for (int fused = 0; fused < 2; fused++) {
        FOLLOW("sgd_momentum", fused, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
        FOLLOW("sgd_nesterov_wd", fused, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9,
               .nesterov = 1, .weight_decay = 0.01);
        FOLLOW("adam", fused, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM);
        FOLLOW("adamw", fused, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAMW, .weight_decay = 0.01);
        FOLLOW("sgd_clip_value", fused, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD,
               .clip_value = 0.3);
    }
    FOLLOW("sgd_clip_norm", 0, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .clip_norm = 0.5);
}

/* ---- accumulation ------------------------------------------------------------------------------------------------ */

/* Four micro-batches a step against one step by their mean gradient, for two updates. */
static void accumulation(gcp_plan_opts o)
{
    gcp_real got[FIVE] = { 0 }, want[FIVE] = { 0 }, before[FIVE], mean[FIVE];
    gcp_plan_opts four = o;
    four.accumulate = 4;
    gcp_plan plan = gcp_plan_make_at(gradient_is_input(), four);
    start(&plan);
    for (uint32_t t = 0; t < 8; t++) {
        gcp_read(&plan, p, before);
        step_with(&plan, 50 + t, 0.1);
        CHECK_INT(same_p(&plan, before), ==, t % 4 != 3);          /* only the last of four updates */
    }
    gcp_read(&plan, p, got);
    CHECK_INT(gcp_steps_done(net), ==, 8);
    no_error();

    plan = gcp_plan_make_at(gradient_is_input(), o);
    start(&plan);
    for (uint32_t u = 0; u < 2; u++) {
        for (uint32_t i = 0; i < FIVE; i++) {
            double sum = 0;
            for (uint32_t t = 0; t < 4; t++) sum += value(50 + 4 * u + t, i);
            mean[i] = (gcp_real)(sum / 4);
        }
        gcp_write(&plan, g, mean);
        gcp_step(&plan, .lr = 0.1);
    }
    gcp_read(&plan, p, want);
    no_error();
    for (int i = 0; i < FIVE; i++) CHECK_NEAR(got[i], want[i], 1e-6);
}

static int two_heads;                   /* the loss is a sum of two cross-entropies */
static void labels_counted(double clip);
static void losses_counted(void);
static void accumulations(void)
{
    losses_counted();
    for (two_heads = 0; two_heads < 2; two_heads++) {
        labels_counted(0);
        labels_counted(0.05);
    }
    accumulation(
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9));
    accumulation(GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM));
    accumulation(
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .clip_norm = 0.2));
    accumulation(
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .clip_value = 0.1));
}

/* Rows of a linear layer's batch, some with an ignored label: parts of it as micro-batches against all of it. */
static const int row_labels[6] = { 2, -1, -1, 0, 1, 2 };
static gcp_plan rows_plan(int batch, gcp_plan_opts o)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(batch, 4)), y = gcp_labels(net, "y", GCP_SHAPE(batch));
    gcp_tensor loss = gcp_cross_entropy(gcp_linear(x, .out = 3, .name = "l"), y, .ignore = -1);
    if (two_heads)
        loss = gcp_add(loss, gcp_scale(gcp_cross_entropy(gcp_linear(x, .out = 3), y, .ignore = -1), .by = 0.5));
    gcp_plan plan = gcp_plan_make_at(loss, o);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    return plan;
}
static void rows_step(gcp_plan *plan, int first, int rows, int last)
{
    gcp_real x[24];
    for (uint32_t i = 0; i < 24; i++) x[i] = (gcp_real)value(70, i);
    if (rows == (int)gcp_shape_of(gcp_find(net, "x")).d[0]) {
        gcp_write(plan, gcp_find(net, "x"), x + 4 * first);
        gcp_write(plan, gcp_find(net, "y"), row_labels + first);
    } else {
        gcp_write_some(plan, gcp_find(net, "x"), x + 4 * first, rows);
        gcp_write_some(plan, gcp_find(net, "y"), row_labels + first, rows);
    }
    gcp_step(plan, .lr = 0.5, .last = last);
}
static void labels_counted(double clip)
{
    gcp_real want[12], got[12], before[12];
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD };
    o.clip_norm = clip;
    gcp_plan plan = rows_plan(6, o);
    for (int update = 0; update < 2; update++) rows_step(&plan, 0, 6, 0);
    gcp_read(&plan, gcp_find(net, "l/weight"), want);
    o.accumulate = 5;
    for (int by_labels = 0; by_labels < 2; by_labels++) {
        o.accumulate_labels = by_labels;
        plan = rows_plan(3, o);
        for (int update = 0; update < 2; update++) {       /* 1, 2 and 1 labels that count; 3 of the 5 micro-batches */
            gcp_read(&plan, gcp_find(net, "l/weight"), before);
            rows_step(&plan, 0, 3, 0); rows_step(&plan, 3, 2, 0);
            gcp_read(&plan, gcp_find(net, "l/weight"), got);
            CHECK(!memcmp(before, got, sizeof got));
            rows_step(&plan, 5, 1, 1);
            gcp_read(&plan, gcp_find(net, "l/weight"), got);
            CHECK(memcmp(before, got, sizeof got) != 0);
        }
        gcp_read(&plan, gcp_find(net, "l/weight"), got);
        no_error();
        double most = 0;
        for (int i = 0; i < 12; i++) most = fmax(most, fabs((double)(got[i] - want[i])));
        CHECK(by_labels ? most < 1e-6 : most > 1e-3);
    }
    o.accumulate_labels = 0;
    plan = rows_plan(3, o);                                /* .last divides by the micro-batches that there were */
    rows_step(&plan, 0, 3, 0); rows_step(&plan, 3, 3, 1);
    gcp_read(&plan, gcp_find(net, "l/weight"), got);
    o.accumulate = 2;
    plan = rows_plan(3, o);
    rows_step(&plan, 0, 3, 0); rows_step(&plan, 3, 3, 0);
    gcp_read(&plan, gcp_find(net, "l/weight"), want);
    CHECK(!memcmp(got, want, sizeof got));
    no_error();
}

/* .accumulate_labels takes a sum of means over the same labels, nothing else. */
static gcp_code counted(int kind)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = gcp_linear(gcp_input(net, "x", GCP_SHAPE(6, 4)), .out = 3), loss;
    gcp_tensor y = gcp_labels(net, "y", GCP_SHAPE(6)), z = gcp_labels(net, "z", GCP_SHAPE(6));
    gcp_tensor a = gcp_cross_entropy(x, y), b = gcp_cross_entropy(x, kind == 1 ? z : y, .ignore = kind == 2 ? 2 : 0);
    if (kind == 3) loss = gcp_mul(a, b);
    else if (kind == 4) loss = gcp_add(a, gcp_mean(gcp_square(x)));
    else loss = gcp_sub(gcp_scale(a, .by = 2), b);
    gcp_plan_make(loss, .accumulate = 2, .accumulate_labels = 1, .optimizer = GCP_OPTIMIZER_SGD);
    return gcp_error_code(net);
}
static void losses_counted(void)
{
    CHECK(counted(0) == GCP_OK);
    for (int kind = 1; kind < 5; kind++) CHECK(counted(kind) == GCP_E_PLAN);
}

/* ---- a small network --------------------------------------------------------------------------------------------- */

enum { BATCH = 4, SIDE = 6, PIXELS = BATCH * SIDE * SIDE * 2, CLASSES = 3, ALL = 2048 };
static gcp_tensor image, label;

static gcp_tensor residual_net(void)
{
    fresh();
    image = gcp_input(net, "image", GCP_SHAPE(BATCH, SIDE, SIDE, 2));
    label = gcp_labels(net, "label", GCP_SHAPE(BATCH));
    gcp_tensor x = gcp_relu(gcp_conv2d(image, .out = 4, .k = 3, .pad = 1));
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "block") {
            gcp_tensor y = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)));
            x = gcp_add(gcp_dropout(gcp_conv2d(y, .out = 4, .k = 3, .pad = 1), .rate = 0.2), x);
        }
    return gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = CLASSES), label);
}

static void step_net(gcp_plan *plan, int t)
{
    gcp_real pixels[PIXELS];
    int labels[BATCH];
    fill(pixels, PIXELS, (uint32_t)(100 + t));
    for (int i = 0; i < BATCH; i++) labels[i] = (i + t) % CLASSES;
    gcp_write(plan, image, pixels);
    gcp_write(plan, label, labels);
    gcp_step(plan, .lr = 0.01);
}

/* All parameters, and the running statistics of the last block; returns how many values. */
static int snapshot(gcp_plan *plan, gcp_real *all)
{
    int n = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_read(plan, gcp_nth_parameter(net, i), all + n);
        n += (int)gcp_elements(gcp_nth_parameter(net, i));
    }
    gcp_tensor variance = gcp_find(net, "block[3]/batch_norm[0]/running_var");
    CHECK(!gcp_is_nil(variance));
    gcp_read(plan, variance, all + n);
    return n + (int)gcp_elements(variance);
}

static int train(gcp_plan_opts o, int steps, gcp_real *all)
{
    gcp_plan plan = gcp_plan_make_at(residual_net(), o);
    gcp_bind(&plan, step_memory[0], sizeof step_memory[0]);
    for (int t = 0; t < steps; t++) step_net(&plan, t);
    int n = snapshot(&plan, all);
    no_error();
    return n;
}

static void fused_updates(void)
{
    static gcp_real one[ALL], other[ALL];
    static const gcp_optimizer which[] = { GCP_OPTIMIZER_SGD, GCP_OPTIMIZER_ADAM, GCP_OPTIMIZER_ADAMW };
    for (int i = 0; i < 3; i++)
        for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_KEEP_ALL; policy++) {
            gcp_plan_opts o = GCP_OPTS(gcp_plan_opts, .policy = (gcp_policy)policy, .optimizer = which[i],
                                       .weight_decay = 0.01, .clip_value = 0.5);
            if (which[i] == GCP_OPTIMIZER_SGD) o.momentum = 0.9;
            int n = train(o, 3, one);
            o.fuse_update = 1;
            CHECK_INT(train(o, 3, other), ==, n);
            CHECK(!memcmp(one, other, (size_t)n * sizeof *one));
        }
}

/* ---- plans changed in mid-training ------------------------------------------------------------------------------- */

static gcp_plan plans[3];

static void three_plans(void)
{
    gcp_tensor loss = residual_net();
    static const gcp_policy policies[3] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SQRT, GCP_POLICY_SEGMENTS };
    for (int i = 0; i < 3; i++)
        plans[i] = gcp_plan_make(loss, .policy = policies[i], .optimizer = GCP_OPTIMIZER_ADAM, .weight_decay = 0.01);
}

/* shared: the plans take turns in one memory that holds the state too; else the state has its own, and so has each
   plan. */
static void switching(int shared)
{
    static gcp_real one[ALL], other[ALL];
    int n = train(
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM, .weight_decay = 0.01),
        9, one);
    three_plans();
    if (!shared) gcp_state_bind(net, state_memory, sizeof state_memory);
    for (int i = 0; i < 3; i++) gcp_bind(&plans[i], step_memory[shared ? 0 : i], sizeof step_memory[0]);
    for (int t = 0; t < 9; t++) step_net(&plans[t < 6 ? t / 2 : t % 3], t);
    CHECK_INT(snapshot(&plans[1], other), ==, n);
    no_error();
    CHECK_INT(gcp_steps_done(net), ==, 9);
    CHECK(!memcmp(one, other, (size_t)n * sizeof *one));
}

/* ---- hooks ------------------------------------------------------------------------------------------------------- */

enum { MOST = 64 };
typedef struct hook_log { int ready[MOST], waited[MOST], ready_count, wait_count; } hook_log;

static int times(const int *ids, int count, int id)
{
    int n = 0;
    for (int i = 0; i < count; i++) n += ids[i] == id;
    return n;
}

static void on_ready(void *context, gcp_tensor x, gcp_real *gradient, size_t count)
{
    hook_log *log = (hook_log *)context;
    if (log->ready_count < MOST) log->ready[log->ready_count++] = x.id;
    CHECK_INT(count, ==, gcp_elements(x));
    (void)gradient;
}
static void on_wait(void *context, gcp_tensor x, gcp_real *gradient, size_t count)
{
    hook_log *log = (hook_log *)context;
    CHECK_INT(times(log->ready, log->ready_count, x.id), ==, 1);          /* it was ready before */
    if (log->wait_count < MOST) log->waited[log->wait_count++] = x.id;
    for (size_t i = 0; i < count; i++) gradient[i] *= 2;
}

static void hooked_run(hook_log *log, gcp_plan_opts o, int steps)
{
    memset(log, 0, sizeof *log);
    o.on_gradient = on_ready; o.on_wait = on_wait; o.hook_context = log;
    gcp_plan plan = gcp_plan_make_at(residual_net(), o);
    gcp_bind(&plan, step_memory[0], sizeof step_memory[0]);
    for (int t = 0; t < steps; t++) step_net(&plan, t);
    no_error();
}

/* Once per parameter and update, each wait behind its ready; the order is the same in every plan. */
static void hook_order(void)
{
    static hook_log first, log;
    gcp_plan_opts o = GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD);
    hooked_run(&first, o, 1);
    int parameters = 0;
    while (!gcp_is_nil(gcp_nth_parameter(net, parameters))) parameters++;
    CHECK_INT(first.ready_count, ==, parameters);
    CHECK_INT(first.wait_count, ==, parameters);
    for (int i = 0; i < parameters; i++) {
        CHECK_INT(times(first.ready, first.ready_count, gcp_nth_parameter(net, i).id), ==, 1);
        CHECK_INT(times(first.waited, first.wait_count, gcp_nth_parameter(net, i).id), ==, 1);
    }
    for (int k = 0; k < 4; k++) {                       /* other policies, fused, and four micro-batches */
        o.policy = k < 3 ? (gcp_policy[]){ GCP_POLICY_SQRT, GCP_POLICY_SEGMENTS, GCP_POLICY_RECURSIVE }[k]
                         : GCP_POLICY_KEEP_ALL;
        o.fuse_update = k == 1;
        o.accumulate = k == 3 ? 4 : 0;
        hooked_run(&log, o, k == 3 ? 4 : 1);
        CHECK_INT(log.ready_count, ==, parameters);
        CHECK_INT(log.wait_count, ==, parameters);
        CHECK(!memcmp(first.ready, log.ready, sizeof first.ready));
    }
}

/* Doubled by the hook, the gradient moves the weight twice as far. */
static void hook_changes(int fused)
{
    gcp_real want[FIVE], got[FIVE] = { 0 }, v[FIVE];
    hook_log log = { 0 };
    gcp_tensor loss = gradient_is_input();
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD,
                                  .fuse_update = fused, .on_gradient = on_ready, .on_wait = on_wait,
                                  .hook_context = &log);
    start(&plan);
    fill(want, FIVE, 1);
    fill(v, FIVE, 21);
    step_with(&plan, 21, 0.25);
    gcp_read(&plan, p, got);
    for (int i = 0; i < FIVE; i++) CHECK_NEAR(got[i], (double)want[i] - 0.25 * 2 * (double)v[i], 1e-6);
    no_error();
}

/* ---- gcp_slots_reset --------------------------------------------------------------------------------------------- */

/* After the reset momentum begins at nothing, the counters at 0, and another optimiser may come. */
static void slots_reset(void)
{
    gcp_real once[FIVE], again[FIVE];
    gcp_tensor loss = gradient_is_input();
    gcp_plan sgd = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    gcp_plan adam = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM);
    start(&sgd);
    step_with(&sgd, 21, 0.1);
    gcp_read(&sgd, p, once);
    step_with(&sgd, 22, 0.1);
    gcp_slots_reset(net);
    CHECK_INT(gcp_steps_done(net), ==, 0);
    start(&sgd);
    step_with(&sgd, 21, 0.1);
    CHECK(same_p(&sgd, once));
    no_error();

    CHECK_INT(gcp_bind(&adam, step_memory[0], sizeof step_memory[0]), ==, GCP_E_STATE);
    CHECK(strstr(gcp_error(net), "gcp_slots_reset") != NULL);
    gcp_error_clear(net);
    gcp_slots_reset(net);
    start(&adam);
    step_with(&adam, 21, 0.1);
    gcp_read(&adam, p, again);
    no_error();
    for (uint32_t i = 0; i < FIVE; i++)                 /* Adam's first step is lr long */
        CHECK_NEAR(again[i], value(1, i) - 0.1 * (value(21, i) > 0 ? 1 : -1), 1e-6);
}

/* GCP_ZERO is zero where 0 is a default: Adam without memory goes by the sign of the gradient, a slope of zero is relu,
   a momentum of zero leaves running statistics alone. */
static void zeros(void)
{
    gcp_real before[FIVE], after[FIVE], v[FIVE], y[2][10];
    gcp_plan plan = gcp_plan_make(gradient_is_input(), .optimizer = GCP_OPTIMIZER_ADAM, .beta1 = GCP_ZERO,
                                  .beta2 = GCP_ZERO, .epsilon = GCP_ZERO);
    start(&plan);
    for (uint32_t t = 1; t < 4; t++) {
        gcp_read(&plan, p, before);
        step_with(&plan, t, 0.125);
        gcp_read(&plan, p, after);
        fill(v, FIVE, t);
        for (int i = 0; i < FIVE; i++) CHECK_NEAR(after[i], before[i] - (v[i] > 0 ? 0.125f : -0.125f), 1e-6);
    }
    gcp_read(&plan, p, before);
    step_with(&plan, 4, GCP_ZERO);
    CHECK(same_p(&plan, before));
    no_error();
    fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(5, 2)), leaky = gcp_keep(gcp_leaky_relu(x, .slope = GCP_ZERO)),
               plain = gcp_keep(gcp_relu(x));
    gcp_tensor norm = gcp_batch_norm(gcp_scale(x, .by = GCP_ZERO), .momentum = GCP_ZERO),
               other = gcp_batch_norm(x, .momentum = GCP_ZERO);
    plan = gcp_plan_make(gcp_mean(gcp_mul(gcp_add(leaky, plain), gcp_add(norm, other))));
    gcp_bind(&plan, step_memory[0], sizeof step_memory[0]);
    fill(y[0], 10, 3);
    gcp_write(&plan, x, y[0]);
    gcp_step(&plan);
    CHECK(gcp_read(&plan, leaky, y[0]) == GCP_OK && gcp_read(&plan, plain, y[1]) == GCP_OK &&
          !memcmp(y[0], y[1], sizeof y[0]));
    CHECK(gcp_read(&plan, gcp_find(net, "batch_norm[1]/running_mean"), v) == GCP_OK && v[0] == 0 && v[1] == 0);
    CHECK(gcp_read(&plan, gcp_find(net, "batch_norm[1]/running_var"), v) == GCP_OK && v[0] == 1 && v[1] == 1);
    no_error();
}

/* ---- a large parameter: parts of its norm are longer than a task, its last vector is not full ---- */

enum { MANY = 64 * 16384 + 4097 };
/* Two steps of AdamW by its definition, in double. */
static double adamw(double w, double first, double second)
{
    const double gradients[] = { first, second }, lr = 0.01;
    double m = 0, v = 0;
    for (int t = 0; t < 2; t++) {
        m = 0.9 * m + 0.1 * gradients[t];
        v = 0.999 * v + 0.001 * gradients[t] * gradients[t];
        w -= lr * 0.1 * w;
        w -= lr * m / (1 - pow(0.9, t + 1)) / (sqrt(v / (1 - pow(0.999, t + 1))) + 1e-8);
    }
    return w;
}
static void many_values(void)
{
    const size_t bytes = MANY * sizeof(gcp_real);
    gcp_real *before = malloc(bytes), *after = malloc(bytes), *gradient = malloc(bytes);
    fresh();
    p = gcp_param(net, "p", GCP_SHAPE(MANY));
    g = gcp_input(net, "g", GCP_SHAPE(MANY));
    gcp_plan plan = gcp_plan_make(gcp_scale(gcp_mean(gcp_mul(p, g)), .by = MANY), .optimizer = GCP_OPTIMIZER_ADAMW,
                                  .weight_decay = 0.1, .clip_norm = 1e9);
    const size_t room = gcp_plans_room(&plan);
    void *memory = malloc(room);
    gcp_bind(&plan, memory, room);
    fill(before, MANY, 1);
    gcp_write(&plan, p, before);
    for (int step = 0; step < 2; step++) {
        double squares = 0;
        fill(gradient, MANY, 3);
        for (int i = 0; i < MANY; i++) {
            gradient[i] *= (gcp_real)(1 + 2 * step);
            squares += (double)gradient[i] * (double)gradient[i];
        }
        gcp_write(&plan, g, gradient);
        gcp_step(&plan, .lr = 0.01);
        CHECK_NEAR(gcp_gradient_norm(&plan) / sqrt(squares), 1, 1e-6);
    }
    no_error();
    gcp_read(&plan, p, after);
    double worst = 0;
    fill(gradient, MANY, 3);
    for (int i = 0; i < MANY; i++) {
        const double want = adamw((double)before[i], (double)gradient[i], 3 * (double)gradient[i]);
        worst = fmax(worst, fabs((double)after[i] - want));
    }
    CHECK(worst < 2e-7);
    free(before); free(after); free(gradient); free(memory);
}

int main(void)
{
    read_reference();
    many_values();
    trajectories();
    shares();
    zeros();
    accumulations();
    fused_updates();
    switching(0);
    switching(1);
    hook_order();
    hook_changes(0);
    hook_changes(1);
    slots_reset();
    return check_done();
}
