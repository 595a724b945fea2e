/* The line between plan and target. A pretend device: its addresses lie where nothing is mapped, so that any byte the
   library touches itself is a crash; what is issued runs only when it is asked for; recordings replay stored calls. Its
   kernels are the CPU's, so that its bits must be the CPU's. */
#include <stdlib.h>
#include "support/device_dags.h"

enum { QUEUE = 4096, AWAY = 62 };                /* AWAY: bit added to every address */

typedef struct issued {
    void (*fn)(const gcp_call *call);
    gcp_call call;
    struct { gcp_view in[GCP_MAX_INPUTS], din[GCP_MAX_INPUTS], out[GCP_MAX_OUTPUTS], dout[GCP_MAX_OUTPUTS]; } space;
    char options[sizeof(gcp_plan_opts)];
} issued;
typedef struct recording { issued *at; int count; } recording;
typedef struct pretend {
    issued *queue; int count, recorded, replayed, live;
    size_t bytes, most;
    const char *trouble, *told;
} pretend;
static pretend card;
static gcp_target target;

static void *near_by(const void *p) { return p ? (void *)((uintptr_t)p & ~((uintptr_t)1 << AWAY)) : NULL; }
static void *away(void *p) { return p ? (void *)((uintptr_t)p | (uintptr_t)1 << AWAY) : NULL; }
static int is_away(const void *p) { return (uintptr_t)p >> AWAY & 1; }

static void run_one(issued *i)
{
    issued now = *i;
    gcp_view *sets[] = { now.space.in, now.space.din, now.space.out, now.space.dout };
    int counts[] = { GCP_MAX_INPUTS, GCP_MAX_INPUTS, GCP_MAX_OUTPUTS, GCP_MAX_OUTPUTS };
    for (int s = 0; s < 4; s++)
        for (int k = 0; k < counts[s]; k++) sets[s][k].data = near_by(sets[s][k].data);
    now.call.in = now.space.in; now.call.din = now.space.din; now.call.out = now.space.out;
    now.call.dout = now.space.dout;
    now.call.workspace = near_by(now.call.workspace);
    now.call.numbers = (const gcp_step_numbers *)near_by(now.call.numbers);
    i->fn(&now.call);
}
static void finish(pretend *p)
{
    for (int i = 0; i < p->count; i++) run_one(&p->queue[i]);
    p->count = 0;
}

static void queue_call(const gcp_call *c, void (*fn)(const gcp_call *call))
{
    pretend *p = (pretend *)c->target->context;
    issued *i = &p->queue[p->count++];
    memset(i, 0, sizeof *i);
    i->fn = fn; i->call = *c;
    memcpy(i->space.in, c->in, (size_t)c->inputs * sizeof *c->in);
    memcpy(i->space.out, c->out, (size_t)c->outputs * sizeof *c->out);
    memcpy(i->space.din, c->din, (size_t)c->inputs * sizeof *c->din);
    memcpy(i->space.dout, c->dout, (size_t)c->outputs * sizeof *c->dout);
    if (p->count == QUEUE) finish(p);
}

/* Rows that queue the CPU's functions. */
static gcp_op cpu_rows[GCP_ROW_COUNT];
#define ROW_CALLS(NAME, name) \
    static void name##_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_OP_##NAME].forward); } \
    static void name##_back_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_OP_##NAME].backward); }
GCP_OPS(ROW_CALLS)
static void apply_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_ROW_APPLY].forward); }
static void seed_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_ROW_SEED].forward); }
static void norm_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_ROW_NORM].forward); }
static void norm_back_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_ROW_NORM].backward); }
static void update_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_ROW_UPDATE].forward); }
static void round_later(const gcp_call *c) { queue_call(c, cpu_rows[GCP_ROW_ROUND].forward); }

static gcp_op rows[GCP_ROW_COUNT];
static void rows_make(void)
{
    gcp_cpu_kernels(cpu_rows);
    memcpy(rows, cpu_rows, sizeof rows);
#define ROW_SET(NAME, name)                     \
    rows[GCP_OP_##NAME].forward = name##_later; \
    rows[GCP_OP_##NAME].backward = name##_back_later;
    GCP_OPS(ROW_SET)
    rows[GCP_ROW_APPLY].forward = apply_later;
    rows[GCP_ROW_SEED].forward = seed_later;
    rows[GCP_ROW_NORM].forward = norm_later; rows[GCP_ROW_NORM].backward = norm_back_later;
    rows[GCP_ROW_UPDATE].forward = update_later;
    rows[GCP_ROW_ROUND].forward = round_later;
}

static void copy(void *context, void *to, const void *from, size_t size)
{
    finish((pretend *)context);
    memmove(near_by(to), near_by(from), size);
}
static void fill(void *context, void *to, int byte, size_t size)
{
    finish((pretend *)context);
    CHECK(is_away(to));
    memset(near_by(to), byte, size);
}

static void play(void *context, void **recorded, void (*issue)(void *arg), void *arg)
{
    pretend *p = (pretend *)context;
    recording *r = (recording *)*recorded;
    finish(p);
    if (!r) {
        issue(arg);
        *recorded = r = (recording *)malloc(sizeof *r);
        r->count = p->count;
        r->at = (issued *)malloc((size_t)p->count * sizeof *r->at);
        memcpy(r->at, p->queue, (size_t)p->count * sizeof *r->at);
        p->recorded++;
        return;
    }
    memcpy(p->queue, r->at, (size_t)r->count * sizeof *r->at);
    p->count = r->count;
    p->replayed++;
}
static void forget(void *context, void *recorded)
{
    recording *r = (recording *)recorded;
    finish((pretend *)context);
    free(r->at);
    free(r);
}

static double timed(void *context, void (*issue)(void *arg), void *arg)
{
    finish((pretend *)context);
    issue(arg);
    finish((pretend *)context);
    return 1e-3;
}
static const char *trouble(void *context)
{
    pretend *p = (pretend *)context;
    p->told = p->trouble;
    p->trouble = NULL;
    return p->told;
}
static void *allocate(void *context, size_t size)
{
    pretend *p = (pretend *)context;
    size_t whole = (size + 255) / 256 * 256;
    p->live++;
    p->bytes += size;
    if (p->bytes > p->most) p->most = p->bytes;
    void *memory = aligned_alloc(256, whole);
    memset(memory, 0xFF, whole);
    return away(memory);
}
static void release(void *context, void *memory, size_t size)
{
    pretend *p = (pretend *)context;
    finish(p);
    p->live--;
    p->bytes -= size;
    free(near_by(memory));
}

static void device_make(void)
{
    static const gcp_device device = { copy, fill, play, forget, timed, trouble, NULL, NULL, NULL };
    rows_make();
    card.queue = (issued *)malloc(QUEUE * sizeof *card.queue);
    target.name = "pretend"; target.kernels = rows; target.device = &device; target.align = 256;
    target.context = &card; target.allocate = allocate; target.release = release;
}

/* ---- A CPU that allocates, to compare with --------------------------------------------------------------------*/

static void *cpu_allocate(void *context, size_t size)
{
    (void)context;
    return aligned_alloc(256, (size + 255) / 256 * 256);
}
static void cpu_release(void *context, void *memory, size_t size) { (void)context; (void)size; free(memory); }

/* ---- What only a device does ----------------------------------------------------------------------------------*/

static unsigned char tape_memory[GCP_MB(2)], plain_memory[GCP_MB(1)];
static gcp_tape *net;
static gcp_tensor image, loss;
static int line;

static void record(void)
{
    gcp_arena arena_now = gcp_arena_from(tape_memory, sizeof tape_memory);
    static gcp_arena arena;
    arena = arena_now;
    net = gcp_tape_make(&arena, .ops = 32);
    image = gcp_input(net, "image", GCP_SHAPE(2, 4, 4, 1));
    line = __LINE__ + 1;
    gcp_tensor x = gcp_relu(gcp_conv2d(image, .out = 3, .k = 3, .pad = 1));
    loss = gcp_mean(gcp_mul(x, x));
}

static int said(gcp_code code, const char *text)
{
    int ok = gcp_error_code(net) == code && strstr(gcp_error(net) ? gcp_error(net) : "", text);
    if (!ok) fprintf(stderr, "'%s', not '%s'\n", gcp_error(net) ? gcp_error(net) : "no error", text);
    gcp_error_clear(net);
    return ok;
}

static void failures(void)
{
    char text[96];
    record();
    gcp_plan plan = gcp_plan_make(loss, .target = &target, .optimizer = GCP_OPTIMIZER_SGD);
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
    float two[32] = { 0 };
    CHECK(gcp_write(&plan, image, two) == GCP_OK);
    card.trouble = "out of order";
    CHECK(isnan(gcp_step(&plan, .lr = 0.1)));
    snprintf(text, sizeof text, "test_device.c:%d: conv2d[0]: pretend: out of order", line);
    CHECK(said(GCP_E_DEVICE, text));                          /* after the first call that was made */
    CHECK(gcp_step(&plan, .lr = 0.1) >= 0 && !gcp_error(net));
    card.trouble = "no copy";
    CHECK(gcp_write(&plan, image, two) == GCP_E_DEVICE && said(GCP_E_DEVICE, "gcp_write: pretend: no copy"));
    card.trouble = "not there";
    CHECK(gcp_plan_make(loss, .target = &target).core == NULL && said(GCP_E_DEVICE, "pretend: not there"));
    gcp_plan cpu = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD);
    CHECK(gcp_bind(&cpu, plain_memory, sizeof plain_memory) == GCP_E_STATE && said(GCP_E_STATE, "another target"));
    gcp_unbind(&plan);
    CHECK(gcp_bind(&cpu, plain_memory, sizeof plain_memory) == GCP_OK);
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_E_STATE && said(GCP_E_STATE, "another target"));
    CHECK_INT(card.live, ==, 0);
}

static void own_home(void)
{
    record();
    size_t size = gcp_state_bytes(net, GCP_OPTIMIZER_ADAM);
    void *home = allocate(&card, size);
    CHECK(gcp_state_bind_on(net, &target, home, size) == GCP_OK);
    gcp_plan adam = gcp_plan_make(loss, .target = &target, .optimizer = GCP_OPTIMIZER_ADAM),
             checks = gcp_plan_make(loss, .target = &target);
    float x[32], w[27], want[27];
    for (int i = 0; i < 32; i++) x[i] = (float)(i % 7) - 3;
    size_t before = card.bytes;
    CHECK(gcp_bind(&adam, NULL, 0) == GCP_OK);
    CHECK_INT(card.bytes - before, ==, adam.slab_bytes);      /* the state is elsewhere */
    gcp_tensor weight = gcp_find(net, "conv2d[0]/weight");
    for (int step = 0; step < 3; step++) { gcp_write(&adam, image, x); gcp_step(&adam, .lr = 0.1); }
    gcp_read(&adam, weight, w);
    gcp_unbind(&adam);
    CHECK(gcp_bind(&checks, NULL, 0) == GCP_OK && gcp_read(&checks, weight, want) == GCP_OK &&
          !memcmp(w, want, sizeof w));
    gcp_write(&checks, image, x);
    gcp_gradcheck_result r = gcp_gradcheck(&checks, .step = 1e-2, .tolerance = 2e-2);
    CHECK(r.passed && r.elements == 30);
    CHECK_INT(gcp_steps_done(net), ==, 3);
    CHECK_NEAR(gcp_profile(&checks), 1e-3 * checks.instructions, 1e-6);      /* by the device's clock */
    gcp_unbind(&checks);
    CHECK(gcp_error(net) == NULL);
    release(&card, home, size);
}

static int same_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; return 1; }
static void twice(const gcp_call *c)
{
    for (int i = 0; i < 96; i++) ((float *)c->out[0].data)[i] = 2 * ((const float *)c->in[0].data)[i];
}
static void twice_back(const gcp_call *c)
{
    for (int i = 0; i < 96; i++) ((float *)c->din[0].data)[i] = 2 * ((const float *)c->dout[0].data)[i];
}
static void twice_there(const gcp_call *c) { queue_call(c, twice); }
static void twice_back_there(const gcp_call *c) { queue_call(c, twice_back); }

static void customs(void)
{
    gcp_op there = { .name = "twice", .forward = twice_there, .backward = twice_back_there };
    gcp_op here = { .name = "twice", .shape = same_shape, .forward = twice, .backward = twice_back, .outputs = 1 },
           both = here;
    both.on_device = &there;
    for (int k = 0; k < 2; k++) {
        record();
        gcp_tensor y = gcp_conv2d(image, .out = 3, .k = 3, .pad = 1), in[1];
        in[0] = y;
        loss = gcp_mean(gcp_tanh(gcp_custom(in, 1, k ? &both : &here)));
        gcp_plan plan = gcp_plan_make(loss, .target = &target);
        if (!k) {
            CHECK(plan.core == NULL && said(GCP_E_PLAN, "twice: no version for the target 'pretend'"));
            continue;
        }
        CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
        float x[32], g[27];
        for (int i = 0; i < 32; i++) x[i] = (float)(i % 5) - 2;
        gcp_write(&plan, image, x);
        gcp_step(&plan);
        CHECK(gcp_grad(&plan, gcp_find(net, "conv2d[1]/weight"), g) == GCP_OK && g[0] != 0);
        gcp_unbind(&plan);
    }
}

/* Far copies by the host are part of every step, also of those that a device could replay. */
static void far_by_host(void)
{
    const char *list = "F c\nF tanh[0]\nF tanh[1]\nO tanh[0]\nF tanh[2]\nF mean[1]\nB seed\nB mean[1]\nB tanh[2]\nB "
                       "tanh[1]\nP tanh[0]\nB tanh[0]\nB c\n";
    float got[2][3], far[2][512];
    for (int k = 0; k < 2; k++) {
        record();
        loss = gcp_mean(gcp_tanh(gcp_tanh(gcp_tanh(gcp_conv2d(image, .out = 3, .k = 3, .pad = 1, .name = "c")))));
        gcp_plan plan = gcp_plan_make(loss, .target = k ? &target : NULL, .list = list);
        CHECK(plan.core && plan.far_bytes > 0 && plan.far_bytes <= sizeof far[0]);
        if (k) CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
        else CHECK(gcp_bind(&plan, plain_memory, sizeof plain_memory) == GCP_OK);
        CHECK(gcp_far_bind(&plan, far[k], sizeof far[k]) == GCP_OK);
        for (int step = 0; step < 3; step++) {
            float x[32];
            for (int i = 0; i < 32; i++) x[i] = (float)((i * 7 + step * 5) % 11) / 5 - 1;
            gcp_write(&plan, image, x);
            got[k][step] = (float)gcp_step(&plan);
        }
        float g[27];
        CHECK(gcp_grad(&plan, gcp_find(net, "c/weight"), g) == GCP_OK);
        memcpy(far[k], g, sizeof g);
        gcp_unbind(&plan);
        const char *error = gcp_error(net);
        if (error) fprintf(stderr, "%s\n", error);
        CHECK(error == NULL);
    }
    CHECK(!memcmp(got[0], got[1], sizeof got[0]) && !memcmp(far[0], far[1], 27 * sizeof(float)));
}

/* What fails leaves things as they were: weights in memory that an earlier bind was given, a state that was not there
   yet, gradients of micro-batches that broke off. */
static void recoveries(void)
{
    float w[27], want[27], x[32] = { 1, 2, 3 };
    record();
    gcp_tensor weight = gcp_find(net, "conv2d[0]/weight");
    gcp_plan plan = gcp_plan_make(loss, .target = &target, .accumulate = 2);
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
    for (int i = 0; i < 27; i++) want[i] = (float)i / 9;
    gcp_write(&plan, weight, want);
    card.trouble = "no more";
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_E_DEVICE && said(GCP_E_DEVICE, "no more"));
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK && gcp_read(&plan, weight, w) == GCP_OK && !memcmp(w, want, sizeof w));
    float sums[2][27];
    for (int broken = 0; broken < 2; broken++) {
        gcp_write(&plan, image, x);
        if (broken) {
            gcp_step(&plan);
            card.trouble = "out of order";
            gcp_step(&plan);
            CHECK(said(GCP_E_DEVICE, "out of order"));
        }
        gcp_step(&plan);
        gcp_step(&plan);
        CHECK(gcp_grad(&plan, weight, sums[broken]) == GCP_OK);
    }
    CHECK(!memcmp(sums[0], sums[1], sizeof sums[0]));
    /* goes on between micro-batches */
    CHECK(gcp_profile(&plan, .repeats = 3) > 0 && (gcp_step(&plan), !gcp_error(net)));
    gcp_unbind(&plan);
    record();
    void *home = allocate(&card, gcp_state_bytes(net, GCP_OPTIMIZER_SGD));
    card.trouble = "no copy";
    CHECK(gcp_state_bind_on(net, &target, home, gcp_state_bytes(net, GCP_OPTIMIZER_SGD)) == GCP_E_DEVICE &&
          said(GCP_E_DEVICE, "no copy"));
    CHECK(gcp_state_bind_on(net, &target, home, gcp_state_bytes(net, GCP_OPTIMIZER_SGD)) == GCP_OK);
    release(&card, home, gcp_state_bytes(net, GCP_OPTIMIZER_SGD));
    CHECK(gcp_error(net) == NULL);
}

int main(int argc, char **argv)
{
    const gcp_target cpu = { .align = 256, .allocate = cpu_allocate, .release = cpu_release };
    device_make();
    failures();
    own_home();
    customs();
    far_by_host();
    recoveries();
    device_dags(argc > 1 ? atoi(argv[1]) : 25, &target, &cpu, GCP_STORE_REAL);
    device_dags(argc > 1 ? atoi(argv[1]) : 25, &target, &cpu, GCP_STORE_BF16);
    CHECK_INT(card.live, ==, 0);
    CHECK(card.recorded > 0 && card.replayed > card.recorded / 2);
    free(card.queue);
    return check_done();
}
