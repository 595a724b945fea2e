/* Real threads (examples/threads.h, what the thread sanitizer runs): the same bits for 1, 2, 3 and 4 of them, with
   values copied to far memory and back by one more, and two contexts in two threads that share nothing. */
#include "../examples/threads.h"
#include "support/check.h"
#include "support/random_net.h"

enum { STATE = 1 << 20 };
typedef struct context {
    _Alignas(64) unsigned char state[STATE]; /* aligned alike, so that states compare byte by byte */
    unsigned char tape[GCP_MB(24)], slab[GCP_MB(8)];
    float image[4096];
    unsigned char far[GCP_MB(8)];
    unsigned seed;
    size_t bytes, moved; /* of state; copied in a step */
    char error[GCP_MAX_ERROR];
} context;

static context one, two, alone;

/* Three steps of a random network with everything in it. */
static void run(context *c, const gcp_target *target, gcp_policy policy)
{
    gcp_arena arena = gcp_arena_from(c->tape, sizeof c->tape);
    random_net r = net_make(&arena, c->seed);
    const int labels[2] = { 1, 3 };
    gcp_plan plan = gcp_plan_make_at(
        r.loss, fitting(GCP_OPTS(gcp_plan_opts, .policy = policy == GCP_POLICY_BUDGET ? GCP_POLICY_KEEP_ALL : policy,
                                 .segments = 2, .optimizer = GCP_OPTIMIZER_ADAM, .target = target)));
    size_t budget = plan.state_bytes + plan.slab_bytes / 8 * 7;
    if (policy == GCP_POLICY_BUDGET)
        plan = gcp_plan_make(r.loss, .policy = policy, .budget = budget, .effort = GCP_EFFORT_QUICK,
                             .far = sizeof c->far, .far_only = 1, .optimizer = GCP_OPTIMIZER_ADAM, .target = target);
    memset(c->state, 0, STATE);
    gcp_state_bind(r.tape, c->state, STATE);
    gcp_bind(&plan, c->slab, sizeof c->slab);
    if (plan.far_bytes) gcp_far_bind(&plan, c->far, sizeof c->far);
    c->moved = plan.far_traffic;
    for (int i = 0; i < 4096; i++) c->image[i] = (float)(i * 29 % 83) / 41 - 1;
    gcp_write(&plan, r.image, c->image);
    gcp_write(&plan, r.label, labels);
    for (int step = 0; step < 3; step++) gcp_step(&plan, .lr = 0.01);
    c->bytes = plan.state_bytes;
    snprintf(c->error, sizeof c->error, "%s", gcp_error(r.tape) ? gcp_error(r.tape) : "none");
}

static void same_bits(void)
{
    for (unsigned seed = 0; seed < 12; seed++)
        for (int threads = 1; threads <= 4; threads++) {
            thread_pool pool;
            context *c = threads == 1 ? &one : &two;
            pool_start(&pool, threads);
            gcp_target target = pool_target(&pool);
            c->seed = seed;
            run(c, &target, seed % 2 ? GCP_POLICY_SQRT : GCP_POLICY_SEGMENTS);
            pool_stop(&pool);
            CHECK_TEXT(c->error, "none");
            CHECK(one.bytes == c->bytes && !memcmp(one.state, c->state, one.bytes));
        }
}

/* Offload plans, copied by a thread of their own while one or two others compute. */
static void far_copies(void)
{
    size_t moved = 0;
    for (unsigned seed = 0; seed < 8; seed++) {
        thread_pool pool;
        one.seed = two.seed = seed;
        run(&one, NULL, GCP_POLICY_KEEP_ALL);
        pool_start(&pool, 1 + (int)seed % 2);
        CHECK(pool_copies(&pool));
        gcp_target target = pool_target(&pool);
        target.far_bytes_per_second = 1e12;
        run(&two, &target, GCP_POLICY_BUDGET);
        pool_stop(&pool);
        /* what lies at the peak cannot be copied away */
        if (strstr(two.error, ".budget allows")) continue;
        moved += two.moved;
        CHECK_TEXT(two.error, "none");
        CHECK(one.bytes == two.bytes && !memcmp(one.state, two.state, one.bytes));
    }
    CHECK_INT(moved, >, 0);
}

static void *thread(void *argument)
{
    run((context *)argument, NULL, GCP_POLICY_SEGMENTS);
    return NULL;
}

static void two_contexts(void)
{
    for (unsigned seed = 20; seed < 26; seed++) {
        pthread_t a, b;
        one.seed = two.seed = alone.seed = seed;
        run(&alone, NULL, GCP_POLICY_SEGMENTS);
        pthread_create(&a, NULL, thread, &one);
        pthread_create(&b, NULL, thread, &two);
        pthread_join(a, NULL);
        pthread_join(b, NULL);
        CHECK_TEXT(one.error, "none");
        CHECK(!memcmp(one.state, alone.state, alone.bytes) && !memcmp(two.state, alone.state, alone.bytes));
    }
}

/* Two workers, each in a thread with a tape and half of the batch, under a policy that runs again: the mean of their
   gradients is that of one with the whole batch, up to the order of sums, and so are their losses. */
typedef struct worker {
    unsigned char tape[GCP_MB(2)], slab[GCP_MB(2)];
    int batch, first;
    double loss;
    float gradient[8 * 3 * 3 * 3];
    const char *error;
} worker;
static worker whole, halves[2];

static void *work(void *argument)
{
    worker *w = (worker *)argument;
    static const int labels[8] = { 0, 3, 1, 2, 3, 3, 0, 1 };
    float pixels[8 * 10 * 10 * 3];
    gcp_arena arena = gcp_arena_from(w->tape, sizeof w->tape);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 9);
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(w->batch, 10, 10, 3)), x = image,
               label = gcp_labels(net, "label", GCP_SHAPE(w->batch));
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "block")
        {
            x = gcp_tanh(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1));
            x = gcp_tanh(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1));
        }
    gcp_tensor loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 4), label);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS);
    gcp_bind(&plan, w->slab, sizeof w->slab);
    for (int i = 0; i < 8 * 300; i++) pixels[i] = (float)(i * 37 % 101) / 50 - 1;
    gcp_write(&plan, image, pixels + w->first * 300);
    gcp_write(&plan, label, labels + w->first);
    w->loss = gcp_step(&plan);
    gcp_grad(&plan, gcp_find(net, "block[0]/conv2d[0]/weight"), w->gradient);
    w->error = gcp_error(net) ? "failed" : plan.reruns > 0 ? "none" : "nothing ran again";
    return NULL;
}
static void workers(void)
{
    pthread_t threads[2];
    whole.batch = 8;
    work(&whole);
    for (int i = 0; i < 2; i++) {
        halves[i].batch = 4;
        halves[i].first = 4 * i;
        pthread_create(&threads[i], NULL, work, &halves[i]);
    }
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    CHECK_TEXT(whole.error, "none");
    for (int i = 0; i < 2; i++) CHECK_TEXT(halves[i].error, "none");
    CHECK_NEAR((halves[0].loss + halves[1].loss) / 2, whole.loss, 1e-6);
    for (int i = 0; i < 8 * 27; i++)
        CHECK_NEAR((halves[0].gradient[i] + halves[1].gradient[i]) / 2, whole.gradient[i], 1e-6);
}

/* Threads take workspace: a refusal, and the report of a plan, say how much fewer of them would give back at most. */
static size_t least(gcp_tensor loss, int threads, size_t *advised)
{
    gcp_target target = { .threads = threads, .parallel_for = pool_for };
    const char *advice = NULL;
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = 1, .target = &target,
                                  .optimizer = GCP_OPTIMIZER_SGD);
    CHECK(!gcp_plan_ok(&plan));
    if (gcp_error(loss.tape)) advice = strstr(gcp_error(loss.tape), "a target with .threads = 1, in place of ");
    *advised = 0;
    if (advice) CHECK(sscanf(advice, "a target with .threads = 1, in place of %*d: up to %zu less", advised) == 1);
    gcp_error_clear(loss.tape);
    return plan.least_bytes;
}
static void threads_take_memory(void)
{
    gcp_arena arena = gcp_arena_from(one.tape, sizeof one.tape);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(64, 8, 8, 16));
    for (int i = 0; i < 2; i++) x = gcp_conv2d(x, .out = 16, .k = 3, .pad = 1);
    gcp_tensor loss = gcp_mean(gcp_relu(x));
    size_t advised;
    const size_t single = least(loss, 1, &advised);
    CHECK(single && !advised);
    const size_t many = least(loss, 64, &advised);
    CHECK(many > single && advised >= many - single && advised < 2 * (many - single));
}

int main(void)
{
    threads_take_memory();
    same_bits();
    far_copies();
    two_contexts();
    workers();
    return check_done();
}
