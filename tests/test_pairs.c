/* Two instructions as one pass (src/run/execute.h): they are found where they should be, and loss, weights, statistics
   and masks have the bits of every op on its own, on every instruction set, in any order of tasks, under every plan. */
#define GCP_IMPLEMENTATION
#define GCP_STATIC
#include "gcp.h"
#include "support/check.h"

enum { STATE = 1 << 22, BATCH = 2 };
static unsigned char tape_memory[GCP_MB(4)];
static _Alignas(64) unsigned char slab[GCP_MB(32)], state[2][STATE];

/* ---- The networks: each ends in some tensor of any size ---- */

static gcp_tensor conv_relu(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_conv2d(x, .out = 24, .k = 3, .pad = 1)), .out = 8, .k = 1);
}
static gcp_tensor planar_relu(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_conv2d(x, .out = 10, .k = 5, .pad = 2)), .out = 5, .k = 5, .pad = 2);
}
static gcp_tensor strided_leaky(gcp_tensor x)
{
    return gcp_conv2d(gcp_leaky_relu(gcp_conv2d(x, .out = 70, .k = 3, .pad = 1, .stride = 2), .slope = 0.1), .out = 8,
                      .k = 1);
}
static gcp_tensor grouped_relu(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_conv2d(x, .out = 18, .k = 3, .pad = 1, .groups = 3)), .out = 8, .k = 1);
}
static gcp_tensor depthwise_relu(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1, .groups = 6)), .out = 8, .k = 1);
}
static gcp_tensor masked(gcp_tensor x)
{
    return gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 12, .k = 3, .pad = 1)), .k = 2, .stride = 2);
}
static gcp_tensor masked_odd(gcp_tensor x)
{
    return gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 11, .k = 3, .pad = 1)), .k = 2, .stride = 2);
}
static gcp_tensor residual(gcp_tensor x)
{
    gcp_tensor y = gcp_relu(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1));
    return gcp_conv2d(gcp_relu(gcp_add(gcp_conv2d(y, .out = 6, .k = 3, .pad = 1), y)), .out = 8, .k = 1);
}
static gcp_tensor sum_only(gcp_tensor x)
{
    gcp_tensor y = gcp_conv2d(x, .out = 6, .k = 1);
    return gcp_conv2d(gcp_add(x, gcp_conv2d(y, .out = 6, .k = 3, .pad = 1)), .out = 8, .k = 3, .pad = 1);
}
static gcp_tensor norm_relu(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 70, .k = 3, .pad = 1))), .out = 8, .k = 3);
}
static gcp_tensor norm_leaky(gcp_tensor x)
{
    return gcp_conv2d(gcp_leaky_relu(gcp_batch_norm(gcp_conv2d(x, .out = 13, .k = 1)), .slope = 0.2), .out = 8, .k = 3);
}
static gcp_tensor norm_masked(gcp_tensor x)
{
    return gcp_avg_pool(gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 11, .k = 3, .pad = 1))), .k = 2, .stride = 2);
}
static gcp_tensor norm_add_relu(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_add(gcp_batch_norm(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1)), x)), .out = 8,
                      .k = 1);
}

static gcp_tensor planar_norm(gcp_tensor x)
{
    return gcp_conv2d(gcp_batch_norm(gcp_conv2d(x, .out = 10, .k = 5, .pad = 2)), .out = 8, .k = 1);
}
static gcp_tensor strided_norm(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 33, .k = 3, .stride = 2))), .out = 8, .k = 1);
}
static gcp_tensor grouped_norm(gcp_tensor x)
{
    return gcp_conv2d(gcp_batch_norm(gcp_conv2d(x, .out = 18, .k = 3, .pad = 1, .groups = 3)), .out = 8, .k = 1);
}
static gcp_tensor depthwise_norm(gcp_tensor x)
{
    return gcp_conv2d(gcp_batch_norm(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1, .groups = 6)), .out = 8, .k = 1);
}
/* several sets of panels */
static gcp_tensor wide_norm(gcp_tensor x)
{
    return gcp_conv2d(gcp_batch_norm(gcp_conv2d(gcp_conv2d(x, .out = 400, .k = 1), .out = 600, .k = 1)), .out = 8,
                      .k = 1);
}
static gcp_tensor tiny_norm(gcp_tensor x) { return gcp_batch_norm(gcp_conv2d(x, .out = 7, .k = 5, .stride = 5)); }
static gcp_tensor shared_norm(gcp_tensor x)        /* what is normed is read by others, too */
{
    gcp_tensor y = gcp_conv2d(x, .out = 6, .k = 3, .pad = 1), z = gcp_relu(gcp_batch_norm(y));
    return gcp_add(z, gcp_mul(y, x));
}

/* pairs: in a step that keeps all */
typedef struct net { const char *name; gcp_tensor (*body)(gcp_tensor x); int pairs; } net;
static const net nets[] = { { "conv_relu", conv_relu, 1 },
                            { "planar_relu", planar_relu, 1 },
                            { "strided_leaky", strided_leaky, 1 },
                            { "grouped_relu", grouped_relu, 1 },
                            { "depthwise_relu", depthwise_relu, 1 },
                            { "masked", masked, 1 },
                            { "masked_odd", masked_odd, 1 },
                            { "residual", residual, 2 },
                            { "sum_only", sum_only, 1 },
                            { "norm_relu", norm_relu, 2 },
                            { "norm_leaky", norm_leaky, 2 },
                            { "norm_masked", norm_masked, 2 },
                            { "norm_add_relu", norm_add_relu, 1 },
                            { "planar_norm", planar_norm, 1 },
                            { "strided_norm", strided_norm, 2 },
                            { "grouped_norm", grouped_norm, 1 },
                            { "depthwise_norm", depthwise_norm, 1 },
                            { "wide_norm", wide_norm, 1 },
                            { "tiny_norm", tiny_norm, 1 },
                            { "shared_norm", shared_norm, 1 } };

/* ---- One run ---- */

static void backwards(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    (void)context;
    for (int i = tasks - 1; i >= 0; i--) task(arg, i, i % 3);
}

static int pairs_of(const gcp_plan *plan)
{
    const gcpi_plan *core = plan->core;
    int found = 0;
    for (int i = 0, n = 0; i < (int)core->list.count; i++) {
        found += gcpi_joint_at(core, i, n) != NULL;
        n += core->p.tasks[core->list.at[i].task].count;
    }
    return found;
}

static float train(const net *n, gcp_plan_opts o, unsigned char *kept, int *pairs)
{
    static float image[BATCH * 19 * 18 * 6];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor x = gcp_input(tape, "image", GCP_SHAPE(BATCH, 19, 18, 6)),
               label = gcp_labels(tape, "label", GCP_SHAPE(BATCH)), y = x;
    GCP_SEGMENT(tape, "body") y = n->body(x);
    gcp_tensor loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(y), .out = 5), label);
    const int labels[BATCH] = { 1, 3 };
    float last = 0;
    o.optimizer = GCP_OPTIMIZER_ADAM;
    gcp_plan plan = gcp_plan_make_at(loss, o);
    memset(kept, 0, STATE);
    gcp_state_bind(tape, kept, STATE);
    gcp_bind(&plan, slab, sizeof slab);
    for (int i = 0; i < BATCH * 19 * 18 * 6; i++) image[i] = (float)(i * 29 % 83) / 41 - 1;
    gcp_write(&plan, x, image);
    gcp_write(&plan, label, labels);
    for (int step = 0; step < 3; step++) last = (float)gcp_step(&plan, .lr = 0.01);
    const char *error = gcp_error(tape);
    if (error) fprintf(stderr, "%s: %s\n", n->name, error);
    CHECK(!error);
    *pairs = error ? -1 : pairs_of(&plan);
    return last;
}

static void compare(const net *n, int isa)
{
    const gcp_target single = { .isa = isa, .threads = 1 },
                     scrambled = { .isa = isa, .threads = 3, .parallel_for = backwards };
    gcp_plan_opts o = { .policy = GCP_POLICY_KEEP_ALL, .no_groups = 1, .target = &single };
    int pairs;
    float apart = train(n, o, state[0], &pairs);
    CHECK_INT(pairs, ==, 0);
    for (int way = 0; way < 3; way++) {
        o.no_groups = 0;
        o.policy = way == 2 ? GCP_POLICY_SEGMENTS : GCP_POLICY_KEEP_ALL;
        o.target = way == 1 ? &scrambled : &single;
        float together = train(n, o, state[1], &pairs);
        if (way < 2) CHECK_INT(pairs, ==, n->pairs);
        if (memcmp(&apart, &together, sizeof apart) || memcmp(state[0], state[1], STATE))
            fprintf(stderr, "%s, isa %d, way %d:\n", n->name, isa, way);
        CHECK(!memcmp(&apart, &together, sizeof apart) && !memcmp(state[0], state[1], STATE));
    }
}

/* A pool of single cells copies: forward and backward it works in place, and has nothing to do. */
static void pools_in_place(void)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor x = gcp_input(tape, "image", GCP_SHAPE(BATCH, 16, 16, 6));
    for (int i = 0; i < 3; i++) x = gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1)), .k = 1);
    gcp_plan plan = gcp_plan_make(gcp_mean(x), .policy = GCP_POLICY_KEEP_ALL);
    int found = 0;
    CHECK(!gcp_error(tape));
    for (int i = 0, n = 0; plan.core && i < (int)plan.core->list.count; i++) {
        const gcpi_plan *core = plan.core;
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        int back = t->kind == GCPI_TASK_BACKWARD;
        if ((back || t->kind == GCPI_TASK_FORWARD) && core->p.tape->ops[t->op].kind == GCP_OP_MAX_POOL) {
            int from = gcpi_operand_at(core, t, back ? GCPI_ROLE_DOUT : GCPI_ROLE_IN),
                to = gcpi_operand_at(core, t, back ? GCPI_ROLE_DIN : GCPI_ROLE_OUT);
            found += from >= 0 && to >= 0 && core->placed[n + from].offset == core->placed[n + to].offset;
        }
        n += t->count;
    }
    CHECK_INT(found, ==, 6);
}

/* A device that is planned for, not run. */
static void no_copy(void *context, void *to, const void *from, size_t size)
{
    (void)context; (void)to; (void)from; (void)size;
}
static void no_fill(void *context, void *to, int byte, size_t size)
{
    (void)context; (void)to; (void)byte; (void)size;
}
static double no_time(void *context, void (*issue)(void *arg), void *arg)
{
    (void)context; (void)issue; (void)arg;
    return 0;
}
static const char *no_trouble(void *context) { (void)context; return NULL; }

/* A device reads a rectifier's sign from the mask behind a batch-norm and an addition, though the output is there. */
static void mask_where_it_pays(void)
{
    static const gcp_device device = { .copy = no_copy, .fill = no_fill, .timed = no_time, .trouble = no_trouble };
    static gcp_op rows[GCP_ROW_COUNT];
    const gcp_target elsewhere = { .name = "elsewhere", .kernels = rows, .device = &device };
    gcp_cpu_kernels(rows);
    for (int way = 0; way < 4; way++) {
        const int norm = way & 1, there = way >> 1;
        gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        gcp_tape *tape = gcp_tape_make(&arena, .ops = 64);
        gcp_tensor x = gcp_conv2d(gcp_input(tape, "image", GCP_SHAPE(BATCH, 16, 16, 6)), .out = 8, .k = 1);
        gcp_tensor f = gcp_conv2d(x, .out = 8, .k = 3, .pad = 1);
        gcp_tensor y = gcp_relu(gcp_add(x, norm ? gcp_batch_norm(f) : f));
        gcp_plan plan = gcp_plan_make(gcp_mean(gcp_conv2d(y, .out = 2, .k = 1)), .policy = GCP_POLICY_KEEP_ALL,
                                      .target = there ? &elsewhere : NULL);
        if (gcp_error(tape)) fprintf(stderr, "%s\n", gcp_error(tape));
        CHECK(!gcp_error(tape) && plan.core);
        int found = 0;
        for (int i = 0; plan.core && i < (int)plan.core->list.count; i++) {
            const gcpi_task *t = &plan.core->p.tasks[plan.core->list.at[i].task];
            if (t->kind != GCPI_TASK_BACKWARD || tape->ops[t->op].kind != GCP_OP_RELU) continue;
            CHECK_INT(gcpi_operand_at(plan.core, t, GCPI_ROLE_OUT + (norm && there)), >=, 0);
            CHECK_INT(gcpi_operand_at(plan.core, t, GCPI_ROLE_OUT + !(norm && there)), <, 0);
            found++;
        }
        CHECK_INT(found, ==, 1);
    }
}

int main(void)
{
    pools_in_place();
    mask_where_it_pays();
#ifdef __SANITIZE_ADDRESS__
    const int first = gcpi_isa_best();
#else
    const int first = GCP_ISA_SCALAR;
#endif
    for (int isa = first; isa <= gcpi_isa_best(); isa++)
        for (size_t i = 0; i < sizeof nets / sizeof *nets; i++) compare(&nets[i], isa);
    return check_done();
}
