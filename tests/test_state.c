/* State: what outlives a step, a plan, a recording. Parameters, optimiser slots, running statistics, step counters. */
#include "support/check.h"
#include "gcp.h"
#include "support/fitting.h"
#include <stdlib.h>

static unsigned char tape_memory[1 << 21];
static _Alignas(4096) unsigned char step_memory[1 << 19], more_memory[1 << 19], state_memory[1 << 17];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor image, label, loss, hidden;
static gcp_real values[1 << 14], other[1 << 14];

static gcp_tape *fresh(uint64_t seed)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return net = gcp_tape_make(&arena, .ops = 96, .seed = seed);
}

static void record(int braces)                       /* braces: 0 none, 1 nameless in effect, as many again inside */
{
    image = gcp_input(net, "image", GCP_SHAPE(4, 6, 6, 3));
    label = gcp_labels(net, "label", GCP_SHAPE(4));
    gcp_tensor x = gcp_conv2d(image, .out = 4, .k = 3, .pad = 1, .name = "stem");
    for (int i = 0; i < 4; i++) {
        gcp_tensor y = x;
        if (braces) GCP_SEGMENT(net, "block") y = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)));
        else y = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)));
        x = hidden = gcp_add(x, gcp_dropout(y, .rate = 0.25));
    }
    loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 5, .name = "head"), label);
}

static void batch(gcp_plan *plan, int number)
{
    int classes[4];
    for (int i = 0; i < 4; i++) classes[i] = (i + number) % 5;
    for (int i = 0; i < 432; i++) values[i] = (gcp_real)(((i + number) * 37 % 64) / 64.0);
    gcp_write(plan, image, values);
    gcp_write(plan, label, classes);
}

static float train(gcp_plan *plan, int number)
{
    batch(plan, number);
    return (float)gcp_step(plan, .lr = 0.1);
}

static float step_of(gcp_plan *plan) { return train(plan, 0); }

static void fine(int line)
{
    if (!check_report(!gcp_error(net), __FILE__, line)) fprintf(stderr, "%s\n", gcp_error(net));
    gcp_error_clear(net);
}

/* All parameters, one behind the other; how many values. */
static size_t weights(gcp_plan *plan, gcp_real *to)
{
    size_t n = 0;
    gcp_tensor w;
    for (int i = 0; !gcp_is_nil(w = gcp_nth_parameter(net, i)); i++) {
        CHECK_INT(gcp_read(plan, w, to + n), ==, GCP_OK);
        n += gcp_elements(w);
    }
    return n;
}

static int same(const gcp_real *a, const gcp_real *b, size_t n) { return !memcmp(a, b, n * sizeof *a); }

/* ---- initial values --------------------------------------------------------------------------------------------*/

static size_t initial(uint64_t seed, int braces, gcp_real *to)
{
    fresh(seed);
    record(braces);
    gcp_plan plan = gcp_plan_make(loss);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    fine(__LINE__);
    return weights(&plan, to);
}

static void seeds(void)
{
    size_t n = initial(1, 0, values);
    CHECK(n > 500 && n == initial(1, 0, other) && same(values, other, n));
    CHECK(n == initial(1, 1, other) && same(values, other, n));       /* braces change names, not values */
    CHECK(n == initial(2, 0, other) && !same(values, other, n));
    int equal = 0;
    for (size_t i = 0; i < 108; i++) equal += values[i] == other[i];
    CHECK_INT(equal, <, 2);
}

static void moments(const char *path, double *mean, double *deviation, double *largest, gcp_plan *plan)
{
    gcp_tensor w = gcp_find(net, path);
    size_t n = gcp_elements(w);
    CHECK(n > 0 && n <= sizeof values / sizeof *values && gcp_read(plan, w, values) == GCP_OK);
    *mean = *deviation = *largest = 0;
    for (size_t i = 0; i < n; i++) *mean += (double)values[i] / (double)n;
    for (size_t i = 0; i < n; i++) {
        *deviation += ((double)values[i] - *mean) * ((double)values[i] - *mean) / (double)n;
        *largest = fmax(*largest, fabs((double)values[i]));
    }
    *deviation = sqrt(*deviation);
}

static void statistics(void)
{
    double mean, deviation, largest;
    fresh(3);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4, 4, 16));
    gcp_tensor y = gcp_conv2d(x, .out = 32, .k = 3, .pad = 1, .name = "he");
    y = gcp_linear(gcp_flatten(gcp_global_avg_pool(y)), .out = 200, .init = GCP_INIT_GLOROT, .name = "glorot");
    loss = gcp_mean(gcp_batch_norm(y, .name = "norm"));
    gcp_plan plan = gcp_plan_make(loss);
    CHECK_INT(gcp_bind(&plan, step_memory, sizeof step_memory), ==, GCP_OK);
    moments("he/weight", &mean, &deviation, &largest, &plan);
    double want = sqrt(2.0 / (9 * 16));              /* 4608 normal draws */
    CHECK_NEAR(mean, 0, 4 * want / sqrt(4608));
    CHECK_NEAR(deviation, want, 0.05 * want);
    CHECK(largest > 3 * want && largest < 6 * want);
    moments("glorot/weight", &mean, &deviation, &largest, &plan);
    want = sqrt(6.0 / (32 + 200));                   /* 6400 uniform draws in +- want */
    CHECK_NEAR(mean, 0, 4 * want / sqrt(3 * 6400));
    CHECK_NEAR(deviation, want / sqrt(3), 0.03 * want);
    CHECK(largest <= want && largest > 0.99 * want);
    moments("he/bias", &mean, &deviation, &largest, &plan);
    CHECK_NEAR(largest, 0, 0);
    moments("norm/gamma", &mean, &deviation, &largest, &plan);
    CHECK(fabs(mean - 1) + deviation < 1e-12);
    moments("norm/running_var", &mean, &deviation, &largest, &plan);
    CHECK(fabs(mean - 1) + deviation < 1e-12);
}

/* Parameters made by hand: fans from the shape, or from matmul; vectors are zeros; .std says the deviation. */
static void by_hand(void)
{
    static const struct { const char *name; double want;
    } cases[] = { { "square", 0.25 }, { "kernel", 0.11785113019775793 },
                  { "right", 0.125 }, { "given", 0.5 },
                  { "spread", 0.02 }, { "shifted", 0.3 },
                  { "bias", 0 },      { "glorot", 0.1 } };
    double mean, deviation, largest;
    fresh(3);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 128)), w = gcp_param(net, "right", GCP_SHAPE(128, 64));
    gcp_tensor y = gcp_matmul(x, w);
    gcp_tensor all[] = { gcp_param(net, "square", GCP_SHAPE(100, 32)),
                         gcp_param(net, "kernel", GCP_SHAPE(32, 3, 3, 16)),
                         gcp_param(net, "given", GCP_SHAPE(100, 32), .fan_in = 8),
                         gcp_param(net, "spread", GCP_SHAPE(64, 64), .std = 0.02),
                         gcp_param(net, "shifted", GCP_SHAPE(4096), .std = 0.3),
                         gcp_param(net, "bias", GCP_SHAPE(64)),
                         gcp_param(net, "glorot", GCP_SHAPE(150, 50), .init = GCP_INIT_GLOROT) };
    gcp_tensor total = gcp_mean(gcp_mul(y, y));
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) total = gcp_add(total, gcp_mean(all[i]));
    gcp_plan plan = gcp_plan_make(total);
    CHECK_INT(gcp_bind(&plan, step_memory, sizeof step_memory), ==, GCP_OK);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        moments(cases[i].name, &mean, &deviation, &largest, &plan);
        CHECK_NEAR(deviation, cases[i].want, 0.06 * cases[i].want);
        CHECK_NEAR(mean, 0, 0.08 * cases[i].want);
    }
    fine(__LINE__);
}

/* ---- recordings and plans --------------------------------------------------------------------------------------*/

/* Reset, record and plan again in mid-training: as if nothing had happened. */
static void resets(void)
{
    float want[4];
    for (int again = 0; again < 2; again++) {
        fresh(4);
        record(1);
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        for (int step = 0; step < 4; step++) {
            if (again) {
                size_t n = weights(&plan, other);
                gcp_tape_reset(net);
                record(1);
                plan = gcp_plan_make_at(
                    loss, fitting(GCP_OPTS(gcp_plan_opts, .policy = (gcp_policy)(step + GCP_POLICY_KEEP_ALL),
                                           .segments = 2, .optimizer = GCP_OPTIMIZER_ADAM)));
                CHECK_INT(gcp_bind(&plan, step_memory, sizeof step_memory), ==, GCP_OK);
                CHECK(n == weights(&plan, values) && same(values, other, n));
            }
            float got = train(&plan, step);
            if (again) CHECK_NEAR(got, want[step], 0);
            want[step] = got;
        }
        CHECK_INT(gcp_steps_done(net), ==, 4);
        fine(__LINE__);
    }
}

/* A home of its own for the state, then plans that come and go in other memory. */
static void own_home(void)
{
    float want[4];
    for (int own = 0; own < 2; own++) {
        fresh(5);
        record(1);
        size_t bytes = gcp_state_bytes(net, GCP_OPTIMIZER_SGD);
        if (own) CHECK_INT(gcp_state_bind(net, state_memory, bytes), ==, GCP_OK);
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9),
                 sparse = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9,
                                        .policy = GCP_POLICY_RECURSIVE);
        CHECK_INT(bytes, ==, plan.state_bytes);
        for (int step = 0; step < 4; step++) {
            gcp_plan *now = own && step & 1 ? &sparse : &plan;
            unsigned char *memory = own && step > 1 ? more_memory : step_memory;
            CHECK_INT(gcp_bind(now, memory, own ? now->slab_bytes : now->bytes), ==, GCP_OK);
            float got = train(now, step);
            if (own) CHECK_NEAR(got, want[step], 0);
            want[step] = got;
            if (own) memset(memory, 0xFF, now->slab_bytes);       /* nothing that lasts lies there */
        }
        fine(__LINE__);
    }
}

/* Training and inference plans that share memory: one state, taken in turns. */
static void shared_memory(void)
{
    float want[3], seen[3], value;
    for (int both = 0; both < 2; both++) {
        fresh(6);
        record(1);
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.5),
                 eval = gcp_plan_make(loss, .inference = 1);
        CHECK(plan.slab_bytes > eval.slab_bytes);
        CHECK_INT(gcp_bind(&plan, step_memory, plan.bytes), ==, GCP_OK);
        if (both) CHECK_INT(gcp_bind(&eval, step_memory, plan.bytes), ==, GCP_OK);
        for (int step = 0; step < 3; step++) {
            float got = train(&plan, step);
            if (both) {
                batch(&eval, step);
                value = (float)gcp_forward(&eval, .lr = 0);
                batch(&eval, step);
                CHECK(value > 0 && value == gcp_forward(&eval, .lr = 0) && value != got);
                CHECK(step == 0 || value != seen[step - 1]);
                seen[step] = value;
                CHECK_NEAR(got, want[step], 0);
            }
            want[step] = got;
        }
        CHECK_INT(gcp_steps_done(net), ==, 3);       /* forward passes are no steps */
        fine(__LINE__);
    }
}

static int said(gcp_code code, const char *text)
{
    int ok = gcp_error_code(net) == code && strstr(gcp_error(net) ? gcp_error(net) : "", text);
    if (!ok) fprintf(stderr, "'%s', not '%s'\n", gcp_error(net) ? gcp_error(net) : "no error", text);
    gcp_error_clear(net);
    return ok;
}

/* Slots that appear behind the values move the other plan's slab, which takes its inputs and results. */
static void slots_appear(void)
{
    gcp_real value;
    fresh(7);
    record(1);
    gcp_plan eval = gcp_plan_make(loss, .inference = 1), plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(gcp_bind(&eval, step_memory, sizeof step_memory) == GCP_OK);
    batch(&eval, 0);
    CHECK(gcp_forward(&eval) > 0 && gcp_read(&eval, loss, &value) == GCP_OK);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(gcp_read(&eval, loss, &value) == GCP_E_INPUT &&
          said(GCP_E_INPUT, "gcp_read: 'cross_entropy[0]' has no value yet: no step has run since the state grew"));
    CHECK(isnan(gcp_forward(&eval)) && said(GCP_E_INPUT, "gcp_forward: 'image' was not written since the state grew"));
    float first = train(&plan, 0);
    batch(&eval, 0);
    CHECK(gcp_forward(&eval) > 0 && first > 0);
    fine(__LINE__);
    gcp_slots_reset(net);
    CHECK_INT(gcp_steps_done(net), ==, 0);
    CHECK(isnan(gcp_step(&plan, .lr = GCP_ZERO)) &&
          said(GCP_E_STATE, "gcp_step: gcp_slots_reset has forgotten the optimiser's slots: bind again"));
    gcp_plan sgd = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    CHECK(gcp_bind(&sgd, step_memory, sizeof step_memory) == GCP_OK);
    /* the slots there are not its own */
    CHECK(isnan(gcp_step(&plan, .lr = GCP_ZERO)) && said(GCP_E_STATE, "bind again"));
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_E_STATE &&
          said(GCP_E_STATE, "slots of another optimiser"));
    gcp_slots_reset(net);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && train(&plan, 0) > 0);
    fine(__LINE__);
}

/* A plan that trains nothing needs no slots: none can be forgotten. */
static void nothing_trained(void)
{
    const gcp_real some[6] = { 1, 2, 3, 4, 5, 6 };
    fresh(7);
    gcp_tensor x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(2, 3)));
    gcp_linear(x, .out = 2);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(x, x)), .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    gcp_write(&plan, x, some);
    CHECK(gcp_step(&plan, .lr = 0.1) > 0);
    gcp_slots_reset(net);
    CHECK(gcp_step(&plan, .lr = 0.1) > 0);
    fine(__LINE__);
}

/* ---- planned is measured, however many plans -------------------------------------------------------------------*/

/* Two plans, with and without an optimiser, in every order of binding: the state of both and the largest slab is
   enough. */
static void pairs(void)
{
    for (int order = 0; order < 4; order++) {
        fresh(20);
        record(1);
        gcp_plan plain = order & 1 ? gcp_plan_make(loss, .inference = 1) : gcp_plan_make(loss),
                 train = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM);
        CHECK(plain.bytes < train.bytes && plain.slab_bytes < train.slab_bytes);
        size_t exact = gcp_plans_bytes(&plain, &train), larger = train.bytes > plain.bytes ? train.bytes : plain.bytes;
        size_t slab = train.slab_bytes > plain.slab_bytes ? train.slab_bytes : plain.slab_bytes;
        CHECK_INT(exact, ==, train.state_bytes + slab);
        CHECK(exact == gcp_plans_bytes(&train, &plain) && exact >= larger && gcp_plans_bytes(&plain) == plain.bytes &&
              gcp_plans_room(&train) == train.room);
        gcp_plan *first = order & 2 ? &train : &plain, *second = order & 2 ? &plain : &train;
        CHECK(gcp_bind(first, step_memory, exact) == GCP_OK && gcp_bind(second, step_memory, exact) == GCP_OK);
        for (int turn = 0; turn < 4; turn++) {
            gcp_plan *now = turn & 1 ? second : first;
            batch(now, turn);
            float got = now == &train ? (float)gcp_step(now, .lr = 0.01)
                        : order & 1   ? (float)gcp_forward(now)
                                      : (float)gcp_step(now);
            CHECK(got > 0);
            CHECK_INT(gcp_measure(now, more_memory, sizeof more_memory), ==, now->bytes);
            CHECK_INT(now->state_bytes + now->slab_bytes, ==, now->bytes);
        }
        CHECK(plain.state_bytes == train.state_bytes && plain.room == plain.bytes + 63);
        fine(__LINE__);
    }
}

/* A plan whose memory is too small for the state that grew says both figures, and works again in more. */
static void outgrown(void)
{
    char text[128];
    fresh(21);
    record(1);
    gcp_plan wide = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
             train = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .policy = GCP_POLICY_RECURSIVE);
    size_t before = wide.bytes;
    CHECK(wide.slab_bytes > train.slab_bytes && gcp_bind(&wide, step_memory, before) == GCP_OK);
    batch(&wide, 0);
    CHECK(gcp_bind(&train, step_memory, sizeof step_memory) == GCP_OK && step_of(&train) > 0);
    gcp_write(&wide, image, values);
    CHECK(wide.bytes == gcp_plans_bytes(&wide, &train) && wide.bytes > before);
    snprintf(text, sizeof text, "gcp_write: %zu bytes given, %zu needed at this address; %zu are enough at any",
             before, wide.bytes,
             wide.room);
    CHECK(said(GCP_E_BIND, text));
    CHECK(step_of(&train) > 0 && gcp_bind(&wide, step_memory, wide.bytes) == GCP_OK);
    batch(&wide, 0);
    CHECK(gcp_step(&wide) > 0);
    fine(__LINE__);
}

/* .budget counts the slots that another plan has put into the state, at bind and after. */
static void budget_again(void)
{
    for (int later = 0; later < 2; later++) {
        fresh(22);
        record(1);
        gcp_plan plain = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
                 capped = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .budget = plain.bytes);
        gcp_plan train = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
        CHECK(capped.core && capped.bytes == plain.bytes);
        if (later) CHECK_INT(gcp_bind(&capped, step_memory, sizeof step_memory), ==, GCP_OK);
        CHECK_INT(gcp_bind(&train, step_memory, sizeof step_memory), ==, GCP_OK);
        if (later) gcp_write(&capped, image, values);
        else CHECK_INT(gcp_bind(&capped, step_memory, sizeof step_memory), ==, GCP_E_BUDGET);
        CHECK(said(GCP_E_BUDGET, "with the optimisers' slots that the state holds by now, .budget allows"));
    }
}

/* Generator and discriminator: two optimisers that train different weights; an inference plan beside them. */
static void three_plans(void)
{
    fresh(23);
    gcp_tensor noise = gcp_input(net, "noise", GCP_SHAPE(4, 8)), real = gcp_input(net, "real", GCP_SHAPE(4, 16));
    gcp_tensor made = gcp_tanh(
        gcp_linear(gcp_relu(gcp_linear(noise, .out = 12, .name = "g1")), .out = 16, .name = "g2"));
    gcp_tensor w = gcp_param(net, "d", GCP_SHAPE(1, 16)), told = gcp_mean(gcp_linear_op(made, w, GCP_NIL)),
               honest = gcp_mean(gcp_linear_op(real, w, GCP_NIL));
    gcp_tensor judge = gcp_add(told, gcp_scale(honest, .by = -1));
    gcp_plan d = gcp_plan_make(gcp_mean(gcp_mul(honest, honest)), .optimizer = GCP_OPTIMIZER_ADAM),
             both = gcp_plan_make(judge, .optimizer = GCP_OPTIMIZER_ADAM), show = gcp_plan_make(made, .inference = 1);
    size_t exact = gcp_plans_bytes(&d, &both, &show);
    CHECK(d.state_bytes < both.state_bytes && show.state_bytes < d.state_bytes);
    gcp_plan *plans[] = { &show, &d, &both };
    for (int i = 0; i < 3; i++) CHECK_INT(gcp_bind(plans[i], step_memory, exact), ==, GCP_OK);
    for (int turn = 0; turn < 6; turn++) {
        gcp_plan *now = plans[turn % 3];
        for (int i = 0; i < 64; i++) values[i] = (gcp_real)((i * 7 + turn) % 11) / 11;
        CHECK(gcp_write(now, noise, values) == GCP_OK && gcp_write(now, real, values) == GCP_OK);
        if (now == &show) gcp_forward(now);
        else gcp_step(now, .lr = 0.01);
        CHECK_INT(gcp_measure(now, more_memory, sizeof more_memory), ==, now->bytes);
    }
    CHECK(show.state_bytes == both.state_bytes && d.state_bytes == both.state_bytes);
    fine(__LINE__);
}

/* What one plan writes or runs takes the inputs of the others in that memory, and of no others. */
static void taken_inputs(void)
{
    fresh(24);
    record(1);
    gcp_plan a = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD), b = gcp_plan_make(loss, .inference = 1),
             c = gcp_plan_make(loss, .inference = 1);
    CHECK(gcp_bind(&a, step_memory, sizeof step_memory) == GCP_OK &&
          gcp_bind(&b, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(gcp_bind(&c, more_memory, sizeof more_memory) == GCP_OK);
    CHECK(isnan(gcp_step(&a, .lr = 0.1)) && said(GCP_E_INPUT, "gcp_step: 'image' was not written since gcp_bind"));
    batch(&c, 0);
    batch(&a, 0);
    CHECK(gcp_step(&a, .lr = 0.1) > 0 && gcp_step(&a, .lr = 0.1) > 0);          /* inputs stay */
    CHECK(gcp_write(&b, image, values) == GCP_OK);
    CHECK(isnan(gcp_forward(&b)) &&
          said(GCP_E_INPUT, "gcp_forward: 'label' was not written since another plan used the same memory"));
    CHECK(isnan(gcp_step(&a, .lr = 0.1)) &&
          said(GCP_E_INPUT, "gcp_step: 'image' was not written since another plan used the same memory"));
    CHECK(gcp_read(&a, image, values) == GCP_E_INPUT &&
          said(GCP_E_INPUT, "gcp_read: 'image' was not written since another plan"));
    CHECK(gcp_read(&a, loss, values) == GCP_E_INPUT &&
          said(GCP_E_INPUT, "gcp_read: 'cross_entropy[0]' has no value yet: no step has run since another plan"));
    CHECK(gcp_forward(&c) > 0);                                                  /* in memory of its own */
    gcp_tensor w = gcp_find(net, "head/weight");
    batch(&b, 0);
    /* weights are nobody's inputs */
    CHECK(gcp_write(&a, w, other) == GCP_OK && gcp_forward(&b) > 0 && gcp_read(&a, w, other) == GCP_OK);
    fine(__LINE__);
}

/* ---- memory that a plan cannot have ----------------------------------------------------------------------------*/

static void overlaps(void)
{
    fresh(25);
    record(1);
    gcp_plan plan = gcp_plan_make(loss), second = gcp_plan_make(loss, .policy = GCP_POLICY_RECURSIVE);
    size_t n = plan.room;
    /* made, not bound */
    CHECK(gcp_bind(&plan, second.core, n) == GCP_E_BIND && said(GCP_E_BIND, "overlaps a plan in its arena"));
    CHECK(gcp_bind(&plan, tape_memory, sizeof tape_memory) == GCP_E_BIND &&
          said(GCP_E_BIND, "the memory overlaps the tape in its arena"));
    CHECK(gcp_bind(&plan, arena.base + arena.used, n) == GCP_E_BIND &&
          said(GCP_E_BIND, "overlaps what is free in the tape's arena"));
    CHECK(gcp_state_bind(net, tape_memory, sizeof tape_memory) == GCP_E_BIND &&
          said(GCP_E_BIND, "gcp_state_bind: the memory overlaps the tape"));
    /* taken from the arena by the caller: his own */
    void *pushed = gcp_arena_push(&arena, (ptrdiff_t)n, 64, 1);
    CHECK(pushed && gcp_bind(&plan, pushed, n) == GCP_OK);
    CHECK(gcp_bind(&second, (unsigned char *)pushed + 64, n - 64) == GCP_E_BIND && said(GCP_E_BIND, "overlaps"));
    CHECK(gcp_measure(&plan, pushed, n + 1) == 0 && said(GCP_E_BIND, "gcp_measure: the memory overlaps"));
    CHECK(gcp_measure(&plan, tape_memory, sizeof tape_memory) == 0 &&
          said(GCP_E_BIND, "gcp_measure: the memory overlaps"));
    CHECK(gcp_unbind(&plan) == GCP_OK && gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(gcp_bind(&second, (unsigned char *)step_memory + plan.slab_bytes - 64, 1 << 18) == GCP_E_BIND &&
          said(GCP_E_BIND, "the memory overlaps another plan's"));
    CHECK(gcp_bind(&second, (unsigned char *)step_memory + plan.slab_bytes + 64, 1 << 18) == GCP_OK);
    CHECK(gcp_unbind(&plan) == GCP_OK && gcp_bind(&second, more_memory, sizeof more_memory) == GCP_OK);
    static gcp_arena own;
    own = gcp_arena_from(state_memory, sizeof state_memory);
    gcp_plan apart = gcp_plan_make(loss, .arena = &own);
    CHECK(apart.core != NULL);
    CHECK(gcp_bind(&apart, state_memory, sizeof state_memory) == GCP_E_BIND &&
          said(GCP_E_BIND, "overlaps the plan in its arena"));
    batch(&second, 0);
    CHECK(gcp_step(&second) > 0);
    fine(__LINE__);
}

/* Plans of targets that align otherwise share memory at any address: each slab lies behind the state, wherever the
   first one put it. */
static void aligned_otherwise(int first, size_t at)
{
    const gcp_target wide = { .align = 256 }, wider = { .align = 1024 };
    fresh(29);
    record(0);
    gcp_plan plans[] = { gcp_plan_make(loss, .inference = 1), gcp_plan_make(loss, .inference = 1, .target = &wide),
                         gcp_plan_make(loss, .inference = 1, .target = &wider) },
             adam = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .target = &wide);
    size_t room = gcp_plans_room(&plans[0], &plans[1], &plans[2], &adam);
    static gcp_real initial_weights[1 << 14];
    double loss_of_first = 0;
    memset(step_memory, 0xA5, sizeof step_memory);
    for (int i = 0; i < 7; i++) {                          /* after three the state grows: all slabs move */
        gcp_plan *plan = &plans[(first + i) % 3];
        if (i == 3) CHECK(gcp_bind(&adam, step_memory + at, room) == GCP_OK);
        if (i < 3) CHECK(gcp_bind(plan, step_memory + at, room) == GCP_OK);
        batch(plan, 0);
        double value = gcp_forward(plan);
        size_t n = weights(plan, i ? other : initial_weights);
        if (i == 0) loss_of_first = value;
        CHECK(value == loss_of_first && n > 0 && (i == 0 || same(initial_weights, other, n)));
    }
    size_t end = at + room;
    while (end < sizeof step_memory && step_memory[end] == 0xA5) end++;
    CHECK_INT(end, ==, sizeof step_memory);          /* nothing is written beyond the room */
    fine(__LINE__);
}

static void mixed_aligns(void)
{
    static const size_t places[] = { 0, 16, 64, 192, 960 };
    for (size_t i = 0; i < sizeof places / sizeof *places; i++)
        for (int first = 0; first < 3; first++) aligned_otherwise(first, places[i]);
}

/* No more than GCP_MAX_BOUND plans are bound at once; those of an arena that is used again do not count. */
static void many_bound(void)
{
    static gcp_plan plans[GCP_MAX_BOUND + 1];
    static unsigned char memory[1 << 17], large[1 << 23];
    arena = gcp_arena_from(large, sizeof large);
    net = gcp_tape_make(&arena, .ops = 96);
    record(0);
    for (int i = 0; i < 3 * GCP_MAX_BOUND; i++) {
        gcp_arena own = gcp_arena_from(memory, sizeof memory);
        gcp_plan plan = gcp_plan_make(loss, .arena = &own);
        CHECK(plan.core && gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    }
    for (int i = 0; i <= GCP_MAX_BOUND; i++) plans[i] = gcp_plan_make(loss);
    for (int i = 0; i < GCP_MAX_BOUND - 1; i++)
        CHECK_INT(gcp_bind(&plans[i], step_memory, sizeof step_memory), ==, GCP_OK);
    gcp_bind(&plans[GCP_MAX_BOUND - 1], step_memory, sizeof step_memory);
    CHECK(said(GCP_E_CAPACITY, "32 plans are bound; gcp_unbind those that are done"));
    CHECK(gcp_unbind(&plans[3]) == GCP_OK &&
          gcp_bind(&plans[GCP_MAX_BOUND], step_memory, sizeof step_memory) == GCP_OK);
    batch(&plans[GCP_MAX_BOUND], 0);
    CHECK(gcp_step(&plans[GCP_MAX_BOUND]) > 0);
    fine(__LINE__);
}

/* plan.room bytes are enough at any address, and needed at the worst. */
static void rooms(void)
{
    for (size_t align = 8; align <= 1024; align *= 2)
        for (size_t shift = 0; shift < align; shift += align / 8) {
            gcp_target target = { .align = align };
            fresh(26);
            record(1);
            gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .target = &target);
            CHECK_INT(plan.room, ==, plan.bytes + align - 1);
            CHECK(gcp_bind(&plan, step_memory + 1, plan.room - 1) == GCP_E_BIND &&
                  said(GCP_E_BIND, "needed at this address"));
            CHECK(gcp_bind(&plan, step_memory, plan.bytes - 1) == GCP_E_BIND &&
                  said(GCP_E_BIND, "needed at this address"));
            CHECK_INT(gcp_bind(&plan, step_memory + shift, shift ? plan.room : plan.bytes), ==, GCP_OK);
            CHECK(train(&plan, 0) > 0);
            fine(__LINE__);
        }
}

/* ---- plans that come and go ------------------------------------------------------------------------------------*/

static void given_back(void)
{
    fresh(27);
    record(1);
    gcp_plan eval = gcp_plan_make(loss, .inference = 1), plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD);
    ptrdiff_t high = 0, used = arena.used;
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK &&
          gcp_bind(&eval, more_memory, sizeof more_memory) == GCP_OK);
    for (int epoch = 0; epoch < 200; epoch++) {                      /* a new budget every epoch */
        gcp_plan_free(&plan);
        CHECK(!plan.core && gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_E_PLAN &&
              said(GCP_E_PLAN, "the plan was not made (see gcp_plan_ok), or was freed"));
        plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD,
                             .policy = epoch & 1 ? GCP_POLICY_SQRT : GCP_POLICY_KEEP_ALL);
        CHECK(plan.core && gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && train(&plan, epoch) > 0);
        if (epoch == 1) high = arena.used;
        CHECK(epoch < 2 || arena.used <= high);
    }
    batch(&eval, 0);
    CHECK(gcp_forward(&eval) > 0 && gcp_steps_done(net) == 200);
    gcp_plan_free(&plan);
    CHECK(arena.used < used);
    gcp_plan again = gcp_plan_make(loss), last = gcp_plan_make(loss);      /* in any order */
    gcp_plan_free(&eval);
    gcp_plan_free(&last);
    gcp_plan_free(&again);
    gcp_plan_free(&again);
    gcp_plan_free(NULL);
    gcp_plan first = gcp_plan_make(loss);
    CHECK(first.core && arena.used < used);
    gcp_tape_reset(net);
    gcp_plan_free(&first);
    CHECK(!first.core);
    fine(__LINE__);
}

static void given_back_apart(void)                               /* to an arena of their own */
{
    gcp_arena own = gcp_arena_from(state_memory, sizeof state_memory);
    fresh(27);
    record(1);
    for (int i = 0; i < 50; i++) {
        gcp_plan apart = gcp_plan_make(loss, .arena = &own);
        CHECK(apart.core != NULL);
        gcp_plan_free(&apart);
        CHECK_INT(own.used, ==, 0);
    }
    fine(__LINE__);
}

/* ---- updates ---------------------------------------------------------------------------------------------------*/

/* Adam's first update is the rate, however often other plans updated the tape before. */
static void own_counts(void)
{
    for (int before = 0; before <= 100; before += 50) {
        gcp_real was[3], is[3], gradient[3] = { 1, 2, -3 };
        fresh(28);
        gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(3)), u = gcp_param(net, "u", GCP_SHAPE(3), .init = GCP_INIT_ONES),
                   v = gcp_param(net, "v", GCP_SHAPE(3), .init = GCP_INIT_ONES);
        gcp_plan first = gcp_plan_make(gcp_mean(gcp_mul(x, u)), .optimizer = GCP_OPTIMIZER_ADAM),
                 second = gcp_plan_make(gcp_mean(gcp_mul(x, v)), .optimizer = GCP_OPTIMIZER_ADAM);
        CHECK(gcp_bind(&first, step_memory, sizeof step_memory) == GCP_OK &&
              gcp_bind(&second, step_memory, sizeof step_memory) == GCP_OK);
        gcp_write(&first, x, gradient);
        for (int i = 0; i < before; i++) gcp_step(&first, .lr = 0.1);
        gcp_write(&second, x, gradient);
        gcp_read(&second, v, was);
        gcp_step(&second, .lr = 0.125);
        gcp_read(&second, v, is);
        for (int i = 0; i < 3; i++) CHECK_NEAR(fabs((double)(is[i] - was[i])), 0.125, 1e-5);
        gcp_slots_reset(net);
        CHECK(gcp_bind(&second, step_memory, sizeof step_memory) == GCP_OK);
        gcp_write(&second, x, gradient);
        gcp_read(&second, v, was);
        gcp_step(&second, .lr = 0.125);
        gcp_read(&second, v, is);
        /* reset with the slots */
        for (int i = 0; i < 3; i++) CHECK_NEAR(fabs((double)(is[i] - was[i])), 0.125, 1e-5);
        fine(__LINE__);
    }
}

/* ---- what trains -----------------------------------------------------------------------------------------------*/

static void frozen(void)
{
    static gcp_real before[4096];
    fresh(8);
    record(1);
    gcp_tensor stem = gcp_find(net, "stem/weight"), head = gcp_find(net, "head/weight");
    gcp_freeze(stem);
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAMW, .weight_decay = 0.1);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_read(&plan, stem, before);
    gcp_read(&plan, head, before + 1024);
    for (int step = 0; step < 3; step++) train(&plan, step);
    CHECK(gcp_read(&plan, stem, values) == GCP_OK && same(values, before, gcp_elements(stem)));
    CHECK(gcp_read(&plan, head, values) == GCP_OK && !same(values, before + 1024, gcp_elements(head)));
    fine(__LINE__);
    CHECK(gcp_grad(&plan, stem, values) == GCP_E_ARGUMENT &&
          said(GCP_E_ARGUMENT,
               "gcp_grad: 'stem/weight' is frozen (gcp_freeze, .train or .freeze), or the loss does not "
               "depend on it"));
}

static double gradient_of(int uses, int index)       /* of a weight used once, twice, or as two weights */
{
    fresh(9);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)),
               w = gcp_param(net, "w", GCP_SHAPE(4, 4), .init = GCP_INIT_ONES);
    gcp_tensor v = uses == 3 ? gcp_param(net, "v", GCP_SHAPE(4, 4), .init = GCP_INIT_ONES) : w;
    gcp_tensor y = gcp_tanh(gcp_scale(gcp_linear_op(x, w, GCP_NIL, .out = 4), .by = 0.1));
    gcp_tensor l = gcp_mean(gcp_mul(y, gcp_linear_op(y, v, GCP_NIL, .out = 4)));
    gcp_plan plan = gcp_plan_make(l);
    for (int i = 0; i < 8; i++) values[i] = (gcp_real)(i / 8.0);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, x, values);
    gcp_step(&plan, .lr = 0);
    CHECK_INT(gcp_grad(&plan, index ? v : w, values), ==, GCP_OK);
    fine(__LINE__);
    return (double)values[6];
}

static void shared_weights(void)
{
    double both = gradient_of(2, 0), first = gradient_of(3, 0), second = gradient_of(3, 1);
    CHECK(first != 0 && second != 0);
    CHECK_NEAR(both, first + second, 1e-6 * fabs(both));
}

static void paths(void)
{
    char name[64], tiny[8];
    fresh(10);
    record(1);
    CHECK_TEXT(gcp_name(gcp_nth_parameter(net, 0), name, sizeof name), "stem/weight");
    CHECK_TEXT(gcp_name(gcp_nth_parameter(net, 2), name, sizeof name), "block[0]/conv2d[0]/weight");
    /* no statistics in between */
    CHECK_TEXT(gcp_name(gcp_nth_parameter(net, 4), name, sizeof name), "block[0]/batch_norm[0]/gamma");
    CHECK_TEXT(gcp_name(gcp_nth_parameter(net, 19), name, sizeof name), "head/bias");
    CHECK(gcp_is_nil(gcp_nth_parameter(net, 20)) && gcp_is_nil(gcp_nth_parameter(net, -1)));
    CHECK_TEXT(gcp_name(gcp_nth_statistic(net, 1), name, sizeof name), "block[0]/batch_norm[0]/running_var");
    CHECK(gcp_nth_statistic(net, 0).id == gcp_find(net, "block[0]/batch_norm[0]/running_mean").id);
    CHECK_TEXT(gcp_name(gcp_find(net, "head/bias"), tiny, sizeof tiny), "head/bi");
    CHECK_TEXT(gcp_name(gcp_find(net, "image"), name, sizeof name), "image");
    CHECK(gcp_is_nil(gcp_find(net, "head")) && gcp_is_nil(gcp_find(net, "block[0]/relu[0]")) &&
          gcp_is_nil(gcp_find(net, "")));
    gcp_shape s = gcp_shape_of(gcp_find(net, "stem/weight"));
    CHECK(s.rank == 4 && s.d[0] == 4 && s.d[1] == 3 && s.d[2] == 3 && s.d[3] == 3);
}

/* ---- what can be read ------------------------------------------------------------------------------------------*/

/* A kept tensor reads as an inference plan computes it, under every policy. No norm or dropout: they differ there. */
static void kept(void)
{
    static gcp_real want[4096];
    for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_CHEAP; policy++) {
        fresh(11);
        image = gcp_input(net, "image", GCP_SHAPE(2, 6, 6, 3));
        gcp_tensor x = image, middle = x, wide = x;
        for (int i = 0; i < 6; i++)
            GCP_SEGMENT(net, "block") {
                wide = gcp_gelu(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1));
                if (i == 2) middle = gcp_keep(wide);
                x = gcp_concat(GCP_TENSORS(gcp_tanh(wide), gcp_slice(x, .count = 2)));
            }
        loss = gcp_mean(gcp_mul(x, x));
        size_t n = gcp_elements(middle);
        gcp_plan plan = gcp_plan_make_at(loss, fitting(GCP_OPTS(gcp_plan_opts, .policy = (gcp_policy)policy,
                                                                .segments = 3, .checkpoints = 2, .check = GCP_CHECK)));
        gcp_plan eval = gcp_plan_make(middle, .inference = 1);
        CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK &&
              gcp_bind(&eval, more_memory, sizeof more_memory) == GCP_OK);
        for (int i = 0; i < 216; i++) values[i] = (gcp_real)((i * 37 % 64) / 64.0 - 0.5);
        gcp_write(&plan, image, values);
        gcp_write(&eval, image, values);
        gcp_step(&plan, .lr = 0);
        gcp_forward(&eval, .lr = 0);
        CHECK(n == 288 && gcp_read(&eval, middle, want) == GCP_OK && gcp_read(&plan, middle, values) == GCP_OK &&
              same(values, want, n));
        /* inputs stay intact */
        CHECK(gcp_read(&plan, image, want) == GCP_OK && want[1] == (gcp_real)(37 / 64.0 - 0.5));
        fine(__LINE__);
        CHECK(gcp_read(&plan, wide, values) == GCP_E_ARGUMENT);
        gcp_error_clear(net);
    }
}

/* Kept views of a weight hold what the step read, not what the update made of it. */
static void kept_views(void)
{
    static const gcp_real left[] = { 1, 2, 4, 5 };
    fresh(21);
    gcp_tensor w = gcp_param(net, "w", GCP_SHAPE(2, 3)), flat = gcp_keep(gcp_reshape(w, GCP_SHAPE(6))),
               part = gcp_keep(gcp_slice(w, .count = 2));
    gcp_plan plan = gcp_plan_make_at(gcp_mean(gcp_mul(flat, flat)),
                                     fitting(GCP_OPTS(gcp_plan_opts, .optimizer = GCP_OPTIMIZER_SGD)));
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < 6; i++) values[i] = (gcp_real)(i + 1);
    gcp_write(&plan, w, values);
    gcp_step(&plan, .lr = 0.5);
    CHECK(gcp_read(&plan, flat, other) == GCP_OK && same(other, values, 6));
    CHECK(gcp_read(&plan, part, other) == GCP_OK && same(other, left, 4));
    CHECK(gcp_read(&plan, w, other) == GCP_OK && !same(other, values, 6));
    fine(__LINE__);
}

/* The gradient of an input: of mean(x * w) it is w / n, whatever else is frozen. */
static void input_gradients(void)
{
    fresh(12);
    gcp_tensor x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(2, 3))), y = gcp_input(net, "y", GCP_SHAPE(2, 3));
    gcp_tensor l = gcp_mean(gcp_mul(gcp_add(x, y), y));
    gcp_plan plan = gcp_plan_make(l);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < 6; i++) values[i] = (gcp_real)(i + 1);
    gcp_write(&plan, x, values);
    gcp_write(&plan, y, values);
    gcp_step(&plan, .lr = 0);
    CHECK_INT(gcp_grad(&plan, x, other), ==, GCP_OK);
    for (int i = 0; i < 6; i++) CHECK_NEAR(other[i], (i + 1) / 6.0, 1e-6);
    fine(__LINE__);
    CHECK_INT(gcp_grad(&plan, y, other), ==, GCP_E_ARGUMENT);
}

/* Running statistics: (1 - m) old + m batch, once a step, the same bits under every policy. */
static void running(void)
{
    static gcp_real want[64];
    for (int policy = GCP_POLICY_KEEP_ALL; policy <= GCP_POLICY_CHEAP + 1; policy++) {
        fresh(13);
        image = gcp_input(net, "image", GCP_SHAPE(4, 2, 2, 3));
        gcp_tensor x = gcp_batch_norm(image);
        for (int i = 0; i < 4; i++)
            GCP_SEGMENT(net, "block") x = gcp_gelu(gcp_batch_norm(gcp_conv2d(x, .out = 3, .k = 1)));
        gcp_plan plan = gcp_plan_make_at(
            gcp_mean(gcp_mul(x, x)),
            fitting(GCP_OPTS(gcp_plan_opts,
                             .policy = policy > GCP_POLICY_CHEAP ? GCP_POLICY_SEGMENTS : (gcp_policy)policy,
                             .segments = 2, .checkpoints = 2, .replay = 1)));
        gcp_bind(&plan, step_memory, sizeof step_memory);
        gcp_tensor mean = gcp_find(net, "batch_norm[0]/running_mean"),
                   deep = gcp_find(net, "block[2]/batch_norm[0]/running_var");
        CHECK(!gcp_is_nil(mean) && !gcp_is_nil(deep));
        double expected = 0;
        for (int step = 0; step < 3; step++) {
            double sum = 0;
            for (int i = 0; i < 48; i++) values[i] = (gcp_real)((i * 5 + step) % 7);
            for (int i = 1; i < 48; i += 3) sum += (double)values[i];
            gcp_write(&plan, image, values);
            gcp_step(&plan);
            expected = 0.9 * expected + 0.1 * sum / 16;
            CHECK(gcp_read(&plan, mean, other) == GCP_OK && gcp_read(&plan, deep, other + 3) == GCP_OK);
            CHECK_NEAR(other[1], expected, 1e-5);
        }
        if (policy == GCP_POLICY_KEEP_ALL) memcpy(want, other, sizeof want);
        CHECK(same(other, want, 6) && other[3] != 1);
        fine(__LINE__);
    }
}

/* ---- memory from the target ------------------------------------------------------------------------------------*/

#ifdef _WIN32                            /* C11's is not there */
#include <malloc.h>
#define aligned_alloc(align, size) _aligned_malloc(size, align)
#define aligned_free _aligned_free
#else
#define aligned_free free
#endif
typedef struct pool { int taken, given; size_t bytes; int refuse, crooked; } pool;
static void *take(void *context, size_t size)
{
    pool *p = (pool *)context;
    unsigned char *memory = p->refuse ? NULL : (unsigned char *)aligned_alloc(4096, (size + 4096 + 4095) / 4096 * 4096);
    if (memory) { p->taken++; p->bytes += size; }
    return memory && p->crooked ? memory + 8 : memory;
}
static void give(void *context, void *memory, size_t size)
{
    pool *p = (pool *)context;
    p->given++;
    p->bytes -= size;
    aligned_free(p->crooked ? (unsigned char *)memory - 8 : memory);
}

static void allocating(void)
{
    for (size_t align = 16; align <= 4096; align *= 16) {
        pool p = { 0 };
        gcp_target target = { .align = align, .context = &p, .allocate = take, .release = give };
        fresh(14);
        record(1);
        gcp_plan plan = gcp_plan_make(loss, .target = &target, .optimizer = GCP_OPTIMIZER_ADAM);
        CHECK_INT(gcp_bind(&plan, NULL, 0), ==, GCP_OK);
        CHECK_INT(p.bytes, ==, plan.bytes);
        CHECK(train(&plan, 0) > 0);
        CHECK_INT(gcp_unbind(&plan), ==, GCP_OK);
        CHECK(p.taken == 1 && p.given == 1 && p.bytes == 0);
        CHECK(isnan(gcp_step(&plan, .lr = 0)) && gcp_error_code(net) == GCP_E_BIND);
        gcp_error_clear(net);
        CHECK_INT(gcp_unbind(&plan), ==, GCP_OK);    /* again: nothing more to give back */
        CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK && train(&plan, 0) > 0);      /* the state begins anew */
        CHECK(gcp_steps_done(net) == 1);
        CHECK_INT(gcp_bind(&plan, NULL, 0), ==, GCP_OK);      /* bound twice, given back once: nothing is lost */
        CHECK(gcp_unbind(&plan) == GCP_OK && p.taken == p.given && p.bytes == 0);
        fine(__LINE__);
        p.refuse = 1;
        CHECK_INT(gcp_bind(&plan, NULL, 0), ==, GCP_E_NOMEM);
        gcp_error_clear(net);
        CHECK(gcp_unbind(&plan) == GCP_OK && p.taken == p.given);
        p.refuse = 0; p.crooked = 1;
        CHECK_INT(gcp_bind(&plan, NULL, 0), ==, GCP_E_BIND);      /* not aligned as the target says */
        gcp_error_clear(net);
        CHECK(p.taken == p.given && p.bytes == 0);
    }
}

/* What was allocated for a bind that failed is given back, error or not. */
static void allocating_in_vain(void)
{
    pool p = { 0 };
    gcp_target target = { .context = &p, .allocate = take, .release = give };
    fresh(15);
    record(1);
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.5),
             adam = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .target = &target);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(gcp_bind(&adam, NULL, 0) == GCP_E_STATE);
    gcp_unbind(&adam);
    CHECK_INT(p.taken, ==, p.given);
    CHECK_INT(p.bytes, ==, 0);
}

static void counters(void)
{
    fresh(16);
    record(1);
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .accumulate = 3);
    CHECK_INT(gcp_steps_done(net), ==, 0);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    size_t n = weights(&plan, other);
    for (int step = 0; step < 6; step++) {
        train(&plan, step);
        CHECK_INT(gcp_steps_done(net), ==, step + 1);
        CHECK(n == weights(&plan, values) && same(values, other, n) == (step % 3 != 2));       /* updates every third */
        memcpy(other, values, n * sizeof *values);
    }
    CHECK(gcp_measure(&plan, more_memory, sizeof more_memory, .lr = 0.1) > 0);
    CHECK(n == weights(&plan, values) && same(values, other, n) && gcp_steps_done(net) == 6);      /* on copies */
    fine(__LINE__);
}

int main(void)
{
    static void (*const groups[])(void) = {
        seeds, statistics, by_hand, resets, own_home, shared_memory, slots_appear, nothing_trained, pairs,
        outgrown, budget_again, three_plans, taken_inputs, overlaps, mixed_aligns, many_bound, rooms,
        given_back, given_back_apart, own_counts, frozen, shared_weights, paths, kept, kept_views,
        input_gradients, running, allocating, allocating_in_vain, counters
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) groups[i]();
    return check_done();
}
