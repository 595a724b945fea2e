/* Policies on chains whose figures are known: Chen's tanh chains, torch's checkpoint_sequential, weight-heavy nets. */
#include "support/check.h"
#include "gcp.h"

static unsigned char tape_memory[GCP_MB(64)], slab[GCP_MB(24)];
static gcp_arena arena;

static gcp_tape *fresh(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(&arena, .ops = 512);
}

static const char *none(gcp_tape *net) { return gcp_error(net) ? gcp_error(net) : "none"; }

/* n tanh of 1 MB; residual: every second one is added to its input. */
static gcp_tensor chain(gcp_tape *net, int n, int residual)
{
    gcp_tensor x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(1, 250000)));
    for (int i = 0; i < n; i++) x = residual && i % 2 ? gcp_add(x, gcp_tanh(x)) : gcp_tanh(x);
    return gcp_mean(x);
}

static void tanh_chains(void)
{
    for (int residual = 0; residual < 2; residual++) {
        gcp_tape *net = fresh();
        gcp_tensor loss = chain(net, 100, residual);
        gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
                 root = gcp_plan_make(loss, .policy = GCP_POLICY_SQRT);
        gcp_plan deep = gcp_plan_make(loss, .policy = GCP_POLICY_RECURSIVE);
        CHECK_INT(all.bytes, >=, 101000000);
        CHECK_INT(all.bytes, <=, 103100000);
        CHECK_INT(root.bytes, <=, 21100000);
        CHECK_INT(root.segments, >=, 7);                 /* about sqrt(n); 10 to 13 published, at 21 MB */
        CHECK_INT(root.segments, <=, 13);
        CHECK_INT(deep.bytes, <=, 12000000);
        CHECK_INT(deep.reruns, <=, 100 * 7);             /* n log2 n */
        CHECK(root.rerun_flops <= root.forward_flops);
        CHECK_TEXT(none(net), "none");
    }
}

/* Keeping only the last node saves nothing; it is refused because it is a wish that cannot be met under the cap. */
static void last_node_only(void)
{
    gcp_tape *net = fresh();
    gcp_tensor loss = chain(net, 5, 0);
    gcp_plan_make(loss, .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 5, .budget = GCP_MB(5));
    CHECK_INT(gcp_error_code(net), ==, GCP_E_PLAN);
}

/* Dense 100-50-20-5 with relu after each but the last, repeated to 10 modules: forward counts as in torch's own
   tests. */
static gcp_tensor modules(gcp_tape *net, int count, gcp_tensor *x, gcp_tensor *y)
{
    static const int width[] = { 50, 20, 5 };
    *x = gcp_input(net, "x", GCP_SHAPE(1, 100));
    *y = gcp_input(net, "y", GCP_SHAPE(1, count % 2 ? width[count / 2 % 3] : width[(count - 1) / 2 % 3]));
    gcp_tensor z = *x;
    for (int i = 0; i < count; i++) z = i % 2 ? gcp_relu(z) : gcp_linear(z, .out = width[i / 2 % 3]);
    return gcp_mse(z, *y);
}

static void checkpoint_sequential(void)
{
    gcp_tape *net = fresh();
    gcp_tensor x, y, loss = modules(net, 10, &x, &y);
    gcp_plan one = gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = 1);
    gcp_plan two = gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = 2);
    CHECK_INT(one.units, ==, 10);
    CHECK_INT(one.reruns, ==, 0);
    CHECK_INT(two.reruns, >=, 4);                  /* five run twice; the fifth only where backward needs its output */
    CHECK_INT(two.reruns, <=, 5);
    CHECK_TEXT(none(net), "none");
}

/* Nine modules in five segments: 1, 1, 1, 1, 5. The last five are never run again. */
static void uneven_split(void)
{
    gcp_tape *net = fresh();
    gcp_tensor x, y, loss = modules(net, 9, &x, &y);
    gcp_plan plain = gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = 5);
    gcp_plan balanced = gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = 5, .balance = 1);
    CHECK_INT(plain.segments, ==, 5);
    CHECK_INT(plain.reruns, <=, 4);
    CHECK_INT(balanced.bytes, <=, plain.bytes);
    CHECK_TEXT(none(net), "none");
}

static gcp_tensor convolutions(gcp_tape *net, int n, gcp_tensor *x)
{
    gcp_tensor z = *x = gcp_input(net, "x", GCP_SHAPE(2, 16, 16, 8));
    for (int i = 0; i < n; i++)
        GCP_SEGMENT(net, "unit") z = gcp_tanh(gcp_conv2d(z, .out = 8, .k = 3, .pad = 1));
    return gcp_mean(z);
}

/* Extra forwards are (S - 1) / S to one layer; memory falls. */
static void sweep(void)
{
    static const int segments[] = { 1, 2, 5, 10 };
    size_t before = GCP_GB(1);
    for (int i = 0; i < 4; i++) {
        gcp_tape *net = fresh();
        gcp_tensor x, loss = convolutions(net, 20, &x);
        int s = segments[i];
        gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = s);
        CHECK_INT(plan.units, ==, 20);
        CHECK_INT(plan.reruns, <=, 20 * (s - 1) / s + 1);
        /* a cut's own output is kept, and need not be made again */
        CHECK_INT(plan.reruns, >=, 20 * (s - 1) / s - s);
        if (s <= 5) CHECK_INT(plan.bytes, <, before);
        before = plan.bytes;
    }
}

static size_t least(const gcp_plan *plans, int n)
{
    size_t best = SIZE_MAX;
    for (int i = 0; i < n; i++) best = plans[i].bytes < best ? plans[i].bytes : best;
    return best;
}

/* A U-Net: skips over everything. No policy that may choose freely ever needs more than keep-all. */
static gcp_tensor unet(gcp_tape *net, int depth, int width)
{
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 32, 32, 3)), skip[4];
    for (int i = 0; i < depth; i++) {
        skip[i] = gcp_relu(gcp_conv2d(x, .out = width << i, .k = 3, .pad = 1));
        x = gcp_max_pool(skip[i], .k = 2);
    }
    x = gcp_relu(gcp_conv2d(x, .out = width << depth, .k = 3, .pad = 1));
    for (int i = depth - 1; i >= 0; i--) {
        x = gcp_conv_transpose2d(x, .out = width << i, .k = 2, .stride = 2);
        x = gcp_relu(gcp_conv2d(gcp_concat(GCP_TENSORS(skip[i], x)), .out = width << i, .k = 3, .pad = 1));
    }
    return gcp_mean(gcp_conv2d(x, .out = 1, .k = 1));
}

static void never_above_keep_all(void)
{
    for (int depth = 1; depth <= 4; depth++)
        for (int width = 2; width <= 8; width *= 2) {
            gcp_tape *net = fresh();
            gcp_tensor loss = unet(net, depth, width);
            gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
            gcp_plan plans[] = { gcp_plan_make(loss, .policy = GCP_POLICY_SQRT),
                                 gcp_plan_make(loss, .policy = GCP_POLICY_RECURSIVE),
                                 gcp_plan_make(loss, .policy = GCP_POLICY_CHEAP) };
            for (int i = 0; i < 3; i++) CHECK_INT(plans[i].bytes, <=, all.bytes);
            CHECK_INT(least(plans, 3), >, 0);
            CHECK_TEXT(none(net), "none");
        }
}

static size_t said_size;
static char said[4096];
static void say(void *context, const char *text, size_t size)
{
    (void)context;
    if (said_size + size < sizeof said) memcpy(said + said_size, text, size);
    said_size += size;
}

/* Weights dominate: the report says how much can be saved at most. */
static void weight_heavy(void)
{
    gcp_tape *net = fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 512));
    for (int i = 0; i < 6; i++) GCP_SEGMENT(net, "dense") x = gcp_relu(gcp_linear(x, .out = 512));
    gcp_plan plan = gcp_plan_make(gcp_mean(x), .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD);
    said_size = 0;
    memset(said, 0, sizeof said);
    gcp_why_print(&plan, (gcp_writer) { say, NULL });
    CHECK(strstr(said, "% can be saved by recomputing") != NULL);
}

/* Dropout of half: the same mask again, and a step after it draws the next one. */
static void dropout_once(void)
{
    static const gcp_policy policies[] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SEGMENTS };
    float losses[2][3];
    for (int p = 0; p < 2; p++) {
        gcp_tape *net = fresh();
        static float ones[2 * 16 * 16 * 8];
        gcp_tensor x, z = x = gcp_input(net, "x", GCP_SHAPE(2, 16, 16, 8));
        for (int i = 0; i < 4; i++)
            GCP_SEGMENT(net, "unit") z = gcp_tanh(gcp_dropout(gcp_conv2d(z, .out = 8, .k = 3, .pad = 1), .rate = 0.5));
        gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(z, z)), .policy = policies[p], .optimizer = GCP_OPTIMIZER_SGD);
        gcp_bind(&plan, slab, sizeof slab);
        for (size_t i = 0; i < sizeof ones / sizeof *ones; i++) ones[i] = 1;
        gcp_write(&plan, x, ones);
        for (int s = 0; s < 3; s++) losses[p][s] = (float)gcp_step(&plan, .lr = 0.1);
        CHECK_TEXT(none(net), "none");
    }
    CHECK(!memcmp(losses[0], losses[1], sizeof losses[0]));
    CHECK(losses[0][0] != losses[0][1]);
}

/* A segment that many ops behind it read: it is run again once for all of them, and within gcp_plan_arena's bytes. */
static void nested_once(void)
{
    static unsigned char exact[GCP_MB(4)];
    gcp_tape *net = fresh();
    gcp_tensor h[40], x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(4, 64))), sum = x;
    GCP_SEGMENT(net, "outer") {
        GCP_SEGMENT(net, "first") {
            for (int i = 0; i < 40; i++) sum = gcp_tanh(sum);
            for (int i = 0; i < 40; i++) h[i] = gcp_scale(sum, .by = 1 + i);
        }
        GCP_SEGMENT(net, "second")
            for (int i = 0; i < 40; i++) sum = gcp_add(sum, gcp_gelu(h[i]));
    }
    gcp_tensor loss = gcp_mean(sum);
    size_t bytes = gcp_plan_arena(loss);
    gcp_arena own = gcp_arena_from(exact, bytes < sizeof exact ? bytes : sizeof exact);
    gcp_plan plan = gcp_plan_make(loss, .arena = &own);
    CHECK_INT(plan.instructions, <=, 161 + 161 + 2 * 160 + 2);
    CHECK_TEXT(none(net), "none");
}

/* A second loss early in the network: what follows it still counts as units. */
static void auxiliary_loss(void)
{
    gcp_tape *net = fresh();
    gcp_tensor early = GCP_NIL, x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(4, 4096)));
    for (int i = 0; i < 60; i++) {
        x = gcp_gelu(x);
        if (i == 3) early = gcp_scale(gcp_mean(x), .by = 0.3);
    }
    gcp_tensor loss = gcp_add(gcp_mean(x), early);
    gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
             root = gcp_plan_make(loss, .policy = GCP_POLICY_SQRT);
    CHECK_INT(all.units, >=, 60);
    CHECK_INT(root.bytes * 2, <, all.bytes);
}

int main(void)
{
    nested_once();
    auxiliary_loss();
    tanh_chains();
    last_node_only();
    checkpoint_sequential();
    uneven_split();
    sweep();
    never_above_keep_all();
    weight_heavy();
    dropout_once();
    return check_done();
}
