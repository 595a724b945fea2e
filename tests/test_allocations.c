/* Every call of a target's allocate and far_allocate fails once, and from there on for three tries: an error, nothing
   lost, nothing left behind, and the same bits when memory is there again. */
#include "support/check.h"
#include "gcp.h"
#include <math.h>
#include <stdlib.h>

enum { BATCH = 4, TRIES = 3 };
typedef struct pool { int calls, fails_at, fails, live; size_t bytes; } pool;        /* fails: how many in a row */
typedef struct scenario {
    const char *name;
    gcp_plan_opts first, second;        /* second: a plan bound after the first has trained */
    int dropout, infer, measure, again; /* again: the first is unbound, bound and trained once more */
} scenario;

static unsigned char tape_memory[GCP_MB(4)];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor image, label, logits, loss;
static pool memory;

static void *take(void *context, size_t size)
{
    pool *p = (pool *)context;
    int number = ++p->calls;
    void *block = p->fails_at && number >= p->fails_at && number < p->fails_at + p->fails ? NULL : malloc(size + 64);
    if (!block) return NULL;
    p->live++;
    p->bytes += size;
    /* the block's own address stands before what is given */
    unsigned char *at = (unsigned char *)block + 64 - ((uintptr_t)block & 63);
    memcpy(at - sizeof block, &block, sizeof block);
    return at;
}

static void give(void *context, void *at, size_t size)
{
    pool *p = (pool *)context;
    void *block;
    memcpy(&block, (unsigned char *)at - sizeof block, sizeof block);
    p->live--;
    p->bytes -= size;
    free(block);
}

static void record(const scenario *s)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 7);
    image = gcp_input(net, "image", GCP_SHAPE(BATCH, 8, 8, 3));
    label = gcp_labels(net, "label", GCP_SHAPE(BATCH));
    gcp_tensor x = gcp_conv2d(image, .out = 8, .k = 3, .pad = 1);
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "block")
    x = gcp_dropout(gcp_add(gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1))), x),
                    .rate = s->dropout ? 0.25 : 0);
    logits = gcp_linear(gcp_global_avg_pool(x), .out = 5);
    loss = gcp_cross_entropy(logits, label);
}

/* Binds until it works: an attempt that fails is an error of memory, which leaves the plan unbound and the state as it
   was. Returns how many failed. */
static int bound(gcp_plan *plan)
{
    int failed = 0;
    while (gcp_bind(plan, NULL, 0) != GCP_OK && failed++ < 2 * TRIES) {
        CHECK_INT(gcp_error_code(net), ==, GCP_E_NOMEM);
        CHECK(strstr(gcp_error(net), "gcp_bind: the target could not allocate ") != NULL);
        gcp_error_clear(net);
        CHECK(isnan(gcp_step(plan, .lr = 0.1)) && gcp_error_code(net) != GCP_OK);
        gcp_error_clear(net);
    }
    return failed;
}

static void fill(gcp_plan *plan, int step)
{
    gcp_real pixels[BATCH * 8 * 8 * 3];
    int32_t classes[BATCH];
    for (int i = 0; i < BATCH * 8 * 8 * 3; i++) pixels[i] = (gcp_real)((i * 31 + step * 17) % 64) / 64;
    for (int i = 0; i < BATCH; i++) classes[i] = (i + step) % 5;
    gcp_write(plan, image, pixels);
    gcp_write(plan, label, classes);
}

static double trained(gcp_plan *plan)
{
    double last = 0;
    for (int i = 0; i < 3; i++) {
        fill(plan, i);
        last = gcp_step(plan, .lr = 0.05);
    }
    return last;
}

static int measured(gcp_plan *plan)
{
    int failed = 0;
    size_t bytes;
    while ((bytes = gcp_measure(plan, NULL, 0)) == 0 && failed++ < 2 * TRIES) {
        CHECK_INT(gcp_error_code(net), ==, GCP_E_NOMEM);
        gcp_error_clear(net);
    }
    CHECK_INT(bytes, ==, plan->bytes);
    return failed;
}

/* A program: returns a number that depends on all that it computed. *failed: how many of its calls had to be made
   again. */
static double program(const scenario *s, const gcp_target *target, int *failed)
{
    gcp_plan_opts first = s->first, second = s->second;
    record(s);
    first.at = second.at = (gcp_at) { __FILE__, __LINE__ };
    first.target = second.target = target;
    if (first.policy == GCP_POLICY_BUDGET) first.budget = gcp_least_budget_at(loss, first);
    gcp_plan a = gcp_plan_make_at(loss, first), b = { 0 }, infer = { 0 };
    CHECK(gcp_plan_ok(&a) && (!first.far || a.far_bytes));
    *failed = bound(&a);
    double sum = trained(&a);
    if (s->measure) *failed += measured(&a);
    if (s->infer) {
        infer = gcp_plan_make(logits, .inference = 1, .target = target);
        *failed += bound(&infer);
        fill(&infer, 1);
        gcp_real out[BATCH * 5] = { 0 };
        gcp_forward(&infer);
        CHECK(gcp_read(&infer, logits, out) == GCP_OK);
        for (int i = 0; i < BATCH * 5; i++) sum += (double)out[i];
    }
    if (s->again) {
        gcp_unbind(&a);
        *failed += bound(&a);
        sum += trained(&a);
    }
    if (second.optimizer || second.policy) {
        b = gcp_plan_make_at(loss, second);
        *failed += bound(&b);
        sum += trained(&b);
    }
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "", "");
    gcp_unbind(&b); gcp_unbind(&infer); gcp_unbind(&a);
    return sum;
}

#define SGD .optimizer = GCP_OPTIMIZER_SGD
#define ADAM .optimizer = GCP_OPTIMIZER_ADAM
#define FAR .far = GCP_MB(1), .far_only = 1
#define QUICK .effort = GCP_EFFORT_QUICK
static const scenario scenarios[] = {
    { .name = "keep all", .first = { .policy = GCP_POLICY_KEEP_ALL, SGD } },
    { .name = "segments, Adam", .first = { ADAM }, .dropout = 1 },
    { .name = "square root", .first = { .policy = GCP_POLICY_SQRT, SGD, .momentum = 0.9 }, .measure = 1 },
    { .name = "least budget", .first = { .policy = GCP_POLICY_BUDGET, QUICK, ADAM }, .dropout = 1, .measure = 1 },
    { .name = "far memory", .first = { .policy = GCP_POLICY_BUDGET, QUICK, FAR, SGD }, .dropout = 1 },
    { .name = "far memory, twice", .first = { .policy = GCP_POLICY_BUDGET, QUICK, FAR, ADAM }, .measure = 1,
      .again = 1 },
    { .name = "inference beside", .first = { SGD }, .dropout = 1, .infer = 1 },
    { .name = "recursive", .first = { .policy = GCP_POLICY_RECURSIVE, ADAM }, .infer = 1, .measure = 1 },
    { .name = "accumulated", .first = { SGD, .accumulate = 3 }, .again = 1 },
    { .name = "clipped", .first = { ADAM, .clip_norm = 1 }, .dropout = 1, .again = 1 },
    { .name = "another policy", .first = { ADAM }, .second = { .policy = GCP_POLICY_CHEAP, ADAM }, .dropout = 1 },
    { .name = "all of it", .first = { ADAM }, .second = { .policy = GCP_POLICY_KEEP_ALL, ADAM }, .dropout = 1,
      .infer = 1, .measure = 1 },
    { .name = "thawed", .first = { SGD, .freeze = "conv2d*" }, .second = { .policy = GCP_POLICY_KEEP_ALL, SGD },
      .infer = 1 },
};

/* The program with call n failing, and as many in a row. */
static int failing(const scenario *s, const gcp_target *target, int n, int fails, double whole)
{
    int failed;
    memory = (pool) { .fails_at = n, .fails = fails };
    double got = program(s, target, &failed);
    int same = !memcmp(&got, &whole, sizeof got);
    CHECK_INT(failed, ==, fails);
    CHECK(same && memory.live == 0 && memory.bytes == 0);
    if (!same) printf("%s, call %d: %.17g is not %.17g\n", s->name, n, got, whole);
    return failed;
}

int main(void)
{
    const gcp_target target = { .context = &memory, .allocate = take, .release = give, .far_allocate = take,
                                .far_release = give };
    int failures = 0, count = (int)(sizeof scenarios / sizeof *scenarios);
    for (int i = 0; i < count; i++) {
        int failed;
        memory = (pool) { 0 };
        double whole = program(&scenarios[i], &target, &failed);
        int calls = memory.calls;
        CHECK(failed == 0 && calls > 0 && memory.live == 0 && memory.bytes == 0);
        for (int n = 1; n <= calls; n++) {
            failures += failing(&scenarios[i], &target, n, 1, whole);
            failures += failing(&scenarios[i], &target, n, TRIES, whole);
        }
    }
    printf("%d programs, %d failing calls\n", count, failures);
    CHECK(failures >= 100);
    return check_done();
}
