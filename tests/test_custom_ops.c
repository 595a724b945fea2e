/* What a custom op is promised: a workspace of the bytes that it asked for, and none where it asked for none; .commit
   exactly where an evaluation counts; .check names the op that writes outside of its workspace. */
#include "support/check.h"
#include "gcp.h"

static unsigned char tape_memory[1 << 20], more_memory[1 << 18];
static _Alignas(256) unsigned char step_memory[1 << 18];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor x, loss;

/* y = 2 x. before, behind: bytes that it writes outside of its workspace; calls, commits, spaces: what it was given. */
typedef struct twice { size_t asked[2], before, behind; int in_backward, calls, commits, spaces; } twice;

static int twice_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; s->out_dtype[0] = s->in_dtype[0]; return 1; }
static void twice_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = ((const twice *)c->attributes)->asked[c->backward];
}
static void twice_write(const gcp_call *c, int backward, const gcp_view *to, const gcp_view *from)
{
    twice *t = (twice *)(uintptr_t)c->attributes;
    unsigned char *space = (unsigned char *)c->workspace;
    const size_t size = t->asked[backward], astray = t->in_backward == backward;
    t->spaces += space != NULL;
    for (size_t i = 0; i < size; i++) space[i] = 7;
    if (astray && t->before) space[-(ptrdiff_t)t->before] = 7;
    if (astray && t->behind) space[size + t->behind - 1] = 7;
    for (size_t i = 0; i < gcp_elements(x); i++) ((gcp_real *)to->data)[i] = 2 * ((const gcp_real *)from->data)[i];
}
static void twice_forward(const gcp_call *c)
{
    twice *t = (twice *)(uintptr_t)c->attributes;
    t->calls++;
    t->commits += c->commit;
    twice_write(c, 0, &c->out[0], &c->in[0]);
}
static void twice_backward(const gcp_call *c) { twice_write(c, 1, &c->din[0], &c->dout[0]); }

static gcp_op op = { .name = "twice", .shape = twice_shape, .forward = twice_forward, .backward = twice_backward,
                     .cost = twice_cost, .outputs = 1 };

static void record(twice *t, unsigned flags)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 32);
    op.flags = flags;
    x = gcp_input(net, "x", GCP_SHAPE(4, 8));
    gcp_tensor y = gcp_tanh(gcp_linear(x, .out = 8));
    GCP_SEGMENT(net, "block") y = gcp_tanh(gcp_tanh(gcp_custom(&y, 1, &op, .context = t)));
    GCP_SEGMENT(net, "block") y = gcp_tanh(gcp_tanh(gcp_linear(y, .out = 8)));
    loss = gcp_mean(y);
}
static gcp_plan bound(gcp_plan_opts o)
{
    static const gcp_real ones[4 * 8] = { 1, 2, 3, 4, 5, 6, 7, 8 };
    gcp_plan plan = gcp_plan_make_at(loss, o);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, x, ones);
    return plan;
}

/* The gradient of a weight, with and without a workspace asked for by forward, by backward, by both. */
static void spaces(void)
{
    gcp_real gradient[64], first[64];
    for (int asked = 0; asked < 4; asked++) {
        twice t = { .asked = { asked & 1 ? 40 : 0, asked & 2 ? 24 : 0 } };
        record(&t, 0);
        gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT });
        gcp_step(&plan);
        CHECK(gcp_grad(&plan, gcp_find(net, "linear[0]/weight"), asked ? gradient : first) == GCP_OK);
        CHECK(!asked || !memcmp(gradient, first, sizeof first));
        /* forward runs twice, as it is recomputed */
        CHECK_INT(t.spaces, ==, 2 * (asked & 1) + (asked >> 1));
    }
}

/* .check sees one byte, up to an alignment away, on either side; other plans of the same bytes go on. */
static void astray(void)
{
    for (int k = 0; k < 8; k++) {
        twice t = { .asked = { 40, 24 }, .in_backward = k & 1 };
        const size_t far = k & 4 ? 64 : 1;
        char text[96];
        *(k & 2 ? &t.before : &t.behind) = far;
        record(&t, 0);
        gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT, .check = GCP_CHECK });
        gcp_step(&plan);
        snprintf(text, sizeof text, "its %s writes %s its workspace of %d bytes", k & 1 ? "backward" : "forward",
                 k & 2 ? "before" : "behind", k & 1 ? 24 : 40);
        CHECK(gcp_error_code(net) == GCP_E_CHECK && strstr(gcp_error(net), "block[0]/twice[0]") &&
              strstr(gcp_error(net), text));
    }
    twice good = { .asked = { 40, 24 } };
    record(&good, 0);
    gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT, .check = GCP_CHECK });
    gcp_step(&plan);
    CHECK(!gcp_error(net));
    CHECK_INT(gcp_measure(&plan, more_memory, sizeof more_memory), ==, plan.bytes);
}

/* Evaluations that count are those of training steps, once each. */
static void commits(void)
{
    for (int once = 0; once < 2; once++) {
        twice t = { .calls = 0 };
        record(&t, once ? GCP_FLAG_ONCE : 0);
        gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT });
        for (int step = 1; step <= 3; step++) {
            gcp_step(&plan);
            CHECK(t.commits == step && t.calls == (once ? step : 2 * step));
        }
        CHECK_INT(gcp_measure(&plan, more_memory, sizeof more_memory), ==, plan.bytes);
        gcp_gradcheck(&plan);
        CHECK_INT(t.commits, ==, 3);
        plan = bound((gcp_plan_opts) { .at = GCP_AT, .inference = 1 });
        gcp_forward(&plan);
        gcp_measure(&plan, more_memory, sizeof more_memory);
        CHECK_INT(t.commits, ==, 3);
        CHECK(!gcp_error(net));
    }
}

/* Its tasks run on the target's threads, each once, and its worker is one of them. */
enum { TASKS = 37, POOL = 3 };
static int ran[TASKS], most_worker, pools;
static void task(void *arg, int index, int worker)
{
    ran[index] += arg == ran;
    most_worker = worker > most_worker ? worker : most_worker;
}
static void tasks_forward(const gcp_call *c)
{
    gcp_parallel_for(c, TASKS, task, ran);
    twice_forward(c);
}
static void pool_for(void *context, int tasks, void (*run)(void *arg, int index, int worker), void *arg)
{
    for (int i = tasks - 1; i >= 0; i--) run(arg, i, i % POOL);
    pools += context == &pools;
}
static void tasks(void)
{
    const gcp_target targets[] = { { .threads = 1 },
                                   { .threads = POOL, .parallel_for = pool_for, .context = &pools } };
    op.forward = tasks_forward;
    for (int i = 0; i < 2; i++) {
        twice t = { .calls = 0 };
        memset(ran, 0, sizeof ran);
        pools = most_worker = 0;
        record(&t, 0);
        gcp_plan plan = bound((gcp_plan_opts) { .at = GCP_AT, .policy = GCP_POLICY_KEEP_ALL, .target = &targets[i] });
        gcp_step(&plan);
        for (int k = 0; k < TASKS; k++) CHECK_INT(ran[k], ==, 1);
        CHECK(most_worker == (i ? POOL - 1 : 0) && (pools > 0) == i && !gcp_error(net));
    }
    op.forward = twice_forward;
}

/* A helper's macro hands on the place of the call; a rule without a message says what it refused. */
static int never(gcp_shape_call *s) { return s->inputs < 0; }
static gcp_tensor helper_at(gcp_tensor a, gcp_tensor b, gcp_at at)
{
    static const gcp_op refused = { .name = "picky", .shape = never, .forward = twice_forward,
                                    .backward = twice_backward, .outputs = 1 };
    const gcp_tensor in[] = { a, b };
    return gcp_custom_at(in, 2, &refused, (gcp_custom_opts) { .at = at });
}
#define helper(a, b) helper_at((a), (b), GCP_AT)
static void places(void)
{
    char want[128];
    twice t = { .calls = 0 };
    record(&t, 0);
    snprintf(want, sizeof want, "test_custom_ops.c:%d: picky: its shape rule refused %s", __LINE__ + 1, "");
    helper(x, gcp_reshape(x, GCP_SHAPE((int)gcp_elements(x), 1)));
    CHECK(gcp_error(net) && !strncmp(gcp_error(net), want, strlen(want)) && strstr(gcp_error(net), ", ") != NULL);
}

int main(void)
{
    spaces();
    astray();
    commits();
    tasks();
    places();
    return check_done();
}
