/* State: what outlives a step, a plan, a recording. Parameters, optimiser slots, running statistics, step counters. */
#include "check.h"
#include "gcp.h"
#include <stdlib.h>

static unsigned char tape_memory[1 << 20];
static _Alignas(64) unsigned char step_memory[1 << 19], more_memory[1 << 19], state_memory[1 << 17];
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
    image = gcp_input(net, "image", 4, 6, 6, 3);
    label = gcp_labels(net, "label", 4);
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
    return gcp_step(plan, .lr = 0.1);
}

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
    for (int i = 0; !gcp_is_nil(w = gcp_parameter(net, i)); i++) {
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
    gcp_tensor x = gcp_input(net, "x", 1, 4, 4, 16);
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

/* ---- recordings and plans --------------------------------------------------------------------------------------*/

/* Reset, record and plan again in mid-training: as if nothing had happened. */
static void resets(void)
{
    float want[4];
    for (int again = 0; again < 2; again++) {
        fresh(4);
        record(1);
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_ADAM);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        for (int step = 0; step < 4; step++) {
            if (again) {
                size_t n = weights(&plan, other);
                gcp_tape_reset(net);
                record(1);
                plan = gcp_plan_make(loss, .optimizer = GCP_ADAM, .policy = (gcp_policy)(step + GCP_KEEP_ALL), .segments = 2);
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
        size_t bytes = gcp_state_bytes(net, GCP_SGD);
        if (own) CHECK_INT(gcp_state_bind(net, state_memory, bytes), ==, GCP_OK);
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_SGD, .momentum = 0.9), sparse = gcp_plan_make(loss, .optimizer = GCP_SGD, .momentum = 0.9, .policy = GCP_RECURSIVE);
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
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_SGD, .momentum = 0.5), eval = gcp_plan_make(loss, .inference = 1);
        CHECK(plan.slab_bytes > eval.slab_bytes);
        CHECK_INT(gcp_bind(&plan, step_memory, plan.bytes), ==, GCP_OK);
        if (both) CHECK_INT(gcp_bind(&eval, step_memory, plan.bytes), ==, GCP_OK);
        for (int step = 0; step < 3; step++) {
            float got = train(&plan, step);
            if (both) {
                batch(&eval, step);
                value = gcp_forward(&eval, .lr = 0);
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

/* Slots that appear behind the values move the other plan's slab away: bind it again. */
static void slots_appear(void)
{
    fresh(7);
    record(1);
    gcp_plan eval = gcp_plan_make(loss, .inference = 1), plan = gcp_plan_make(loss, .optimizer = GCP_ADAM);
    CHECK(gcp_bind(&eval, step_memory, sizeof step_memory) == GCP_OK && gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(gcp_forward(&eval, .lr = 0) == 0 && gcp_error_code(net) == GCP_E_BIND);
    gcp_error_clear(net);
    CHECK(gcp_bind(&eval, step_memory, sizeof step_memory) == GCP_OK);
    float first = train(&plan, 0);
    batch(&eval, 0);
    CHECK(gcp_forward(&eval, .lr = 0) > 0 && first > 0);
    fine(__LINE__);
    gcp_slots_reset(net);
    CHECK_INT(gcp_steps_done(net), ==, 0);
    CHECK(gcp_step(&plan, .lr = 0) == 0 && gcp_error_code(net) == GCP_E_BIND);
    gcp_error_clear(net);
}

/* ---- what trains -----------------------------------------------------------------------------------------------*/

static void frozen(void)
{
    static gcp_real before[4096];
    fresh(8);
    record(1);
    gcp_tensor stem = gcp_find(net, "stem/weight"), head = gcp_find(net, "head/weight");
    gcp_freeze(stem);
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_ADAMW, .weight_decay = 0.1);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_read(&plan, stem, before);
    gcp_read(&plan, head, before + 1024);
    for (int step = 0; step < 3; step++) train(&plan, step);
    CHECK(gcp_read(&plan, stem, values) == GCP_OK && same(values, before, gcp_elements(stem)));
    CHECK(gcp_read(&plan, head, values) == GCP_OK && !same(values, before + 1024, gcp_elements(head)));
    fine(__LINE__);
    CHECK(gcp_grad(&plan, stem, values) == GCP_E_ARGUMENT);
    gcp_error_clear(net);
}

static double gradient_of(int uses, int index)       /* of a weight used once, twice, or as two weights */
{
    fresh(9);
    gcp_tensor x = gcp_input(net, "x", 2, 4), w = gcp_param(net, "w", GCP_SHAPE(4, 4), .init = GCP_INIT_ONES);
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
    CHECK_TEXT(gcp_name(gcp_parameter(net, 0), name, sizeof name), "stem/weight");
    CHECK_TEXT(gcp_name(gcp_parameter(net, 2), name, sizeof name), "block[0]/conv2d[0]/weight");
    CHECK_TEXT(gcp_name(gcp_parameter(net, 4), name, sizeof name), "block[0]/batch_norm[0]/gamma");      /* no statistics in between */
    CHECK_TEXT(gcp_name(gcp_parameter(net, 19), name, sizeof name), "head/bias");
    CHECK(gcp_is_nil(gcp_parameter(net, 20)) && gcp_is_nil(gcp_parameter(net, -1)));
    CHECK_TEXT(gcp_name(gcp_find(net, "head/bias"), tiny, sizeof tiny), "head/bi");
    CHECK_TEXT(gcp_name(gcp_find(net, "image"), name, sizeof name), "image");
    CHECK(gcp_is_nil(gcp_find(net, "head")) && gcp_is_nil(gcp_find(net, "block[0]/relu[0]")) && gcp_is_nil(gcp_find(net, "")));
    gcp_shape s = gcp_shape_of(gcp_find(net, "stem/weight"));
    CHECK(s.rank == 4 && s.d[0] == 4 && s.d[1] == 3 && s.d[2] == 3 && s.d[3] == 3);
}

/* ---- what can be read ------------------------------------------------------------------------------------------*/

/* A kept tensor reads as an inference plan computes it, under every policy. No norm or dropout: they differ there. */
static void kept(void)
{
    static gcp_real want[4096];
    for (int policy = GCP_SEGMENTS; policy <= GCP_CHEAP; policy++) {
        fresh(11);
        image = gcp_input(net, "image", 2, 6, 6, 3);
        gcp_tensor x = image, middle = x, wide = x;
        for (int i = 0; i < 6; i++)
            GCP_SEGMENT(net, "block") {
                wide = gcp_gelu(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1));
                if (i == 2) middle = gcp_keep(wide);
                x = gcp_concat(gcp_tanh(wide), gcp_slice(x, .count = 2));
            }
        loss = gcp_mean(gcp_mul(x, x));
        size_t n = gcp_elements(middle);
        gcp_plan plan = gcp_plan_make(loss, .policy = (gcp_policy)policy, .segments = 3, .checkpoints = 2, .check = GCP_CHECK);
        gcp_plan eval = gcp_plan_make(middle, .inference = 1);
        CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && gcp_bind(&eval, more_memory, sizeof more_memory) == GCP_OK);
        for (int i = 0; i < 216; i++) values[i] = (gcp_real)((i * 37 % 64) / 64.0 - 0.5);
        gcp_write(&plan, image, values);
        gcp_write(&eval, image, values);
        gcp_step(&plan, .lr = 0);
        gcp_forward(&eval, .lr = 0);
        CHECK(n == 288 && gcp_read(&eval, middle, want) == GCP_OK && gcp_read(&plan, middle, values) == GCP_OK && same(values, want, n));
        CHECK(gcp_read(&plan, image, want) == GCP_OK && want[1] == (gcp_real)(37 / 64.0 - 0.5));      /* inputs stay intact */
        fine(__LINE__);
        CHECK(gcp_read(&plan, wide, values) == GCP_E_ARGUMENT);
        gcp_error_clear(net);
    }
}

/* The gradient of an input: of mean(x * w) it is w / n, whatever else is frozen. */
static void input_gradients(void)
{
    fresh(12);
    gcp_tensor x = gcp_want_grad(gcp_input(net, "x", 2, 3)), y = gcp_input(net, "y", 2, 3);
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
    for (int policy = GCP_KEEP_ALL; policy <= GCP_CHEAP + 1; policy++) {
        fresh(13);
        image = gcp_input(net, "image", 4, 2, 2, 3);
        gcp_tensor x = gcp_batch_norm(image);
        for (int i = 0; i < 4; i++) GCP_SEGMENT(net, "block") x = gcp_gelu(gcp_batch_norm(gcp_conv2d(x, .out = 3, .k = 1)));
        gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(x, x)), .policy = policy > GCP_CHEAP ? GCP_SEGMENTS : (gcp_policy)policy, .segments = 2, .checkpoints = 2, .replay = 1);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        gcp_tensor mean = gcp_find(net, "batch_norm[0]/running_mean"), deep = gcp_find(net, "block[2]/batch_norm[0]/running_var");
        CHECK(!gcp_is_nil(mean) && !gcp_is_nil(deep));
        double expected = 0;
        for (int step = 0; step < 3; step++) {
            double sum = 0;
            for (int i = 0; i < 48; i++) values[i] = (gcp_real)((i * 5 + step) % 7);
            for (int i = 1; i < 48; i += 3) sum += (double)values[i];
            gcp_write(&plan, image, values);
            gcp_step(&plan, .lr = 0.1);
            expected = 0.9 * expected + 0.1 * sum / 16;
            CHECK(gcp_read(&plan, mean, other) == GCP_OK && gcp_read(&plan, deep, other + 3) == GCP_OK);
            CHECK_NEAR(other[1], expected, 1e-5);
        }
        if (policy == GCP_KEEP_ALL) memcpy(want, other, sizeof want);
        CHECK(same(other, want, 6) && other[3] != 1);
        fine(__LINE__);
    }
}

/* ---- memory from the target ------------------------------------------------------------------------------------*/

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
    free(p->crooked ? (unsigned char *)memory - 8 : memory);
}

static void allocating(void)
{
    for (size_t align = 16; align <= 4096; align *= 16) {
        pool p = { 0 };
        gcp_target target = { .align = align, .context = &p, .allocate = take, .release = give };
        fresh(14);
        record(1);
        gcp_plan plan = gcp_plan_make(loss, .target = &target, .optimizer = GCP_ADAM);
        CHECK_INT(gcp_bind(&plan, NULL, 0), ==, GCP_OK);
        CHECK_INT(p.bytes, ==, plan.bytes);
        CHECK(train(&plan, 0) > 0);
        CHECK_INT(gcp_unbind(&plan), ==, GCP_OK);
        CHECK(p.taken == 1 && p.given == 1 && p.bytes == 0);
        CHECK(gcp_step(&plan, .lr = 0) == 0 && gcp_error_code(net) == GCP_E_BIND);
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
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_SGD, .momentum = 0.5), adam = gcp_plan_make(loss, .optimizer = GCP_ADAM, .target = &target);
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
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_SGD, .accumulate = 3);
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
    static void (*const groups[])(void) = { seeds, statistics, resets, own_home, shared_memory, slots_appear, frozen, shared_weights, paths,
        kept, input_gradients, running, allocating, allocating_in_vain, counters };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) groups[i]();
    return check_done();
}
