/* The published systems' own numbers: tf2_gradient_checkpointing (26-layer CNN, k checkpoints by index) and the
   tf.recompute_grad tutorial (3 partitions of 3 blocks), at 64x64 for figures and smaller where steps are run;
   efficient_densenet_pytorch (DenseNet-BC-100-12 at batch 64). */
#include "../examples/networks.h"
#include "support/published.h"
#include "support/check.h"
#include <stdlib.h>

/* The image where steps are run, and the cap as a share of keep-all. Under a sanitizer all is smaller,
   so weights are more of the total and the cap is looser. */
#ifdef __SANITIZE_ADDRESS__
enum { RUN = 12, CAP = 75, DEPTH = 22 };
#else
enum { RUN = 32, CAP = 65, DEPTH = 40 };
#endif

static unsigned char tape_memory[GCP_MB(48)], slab[GCP_MB(80)];
static _Alignas(64) float image[64 * 64 * 64], gradient[4 << 20], gradient_kept[4 << 20];
static int labels[64];
static gcp_arena arena;

static gcp_tape *fresh(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(&arena, .ops = 512, .seed = 3);
}

static double mib(size_t bytes) { return (double)bytes / 1048576; }
static const char *none(gcp_tape *net) { return gcp_error(net) ? gcp_error(net) : "none"; }

static const int ks[] = { 0, 2, 4, 8, 16 };

static void checkpoint_figures(void)
{
    static const double printed[] = { 0, 15, 26.25, 58.75, 108.75 };
    static const int replayed[] = { 351, 140, 86, 52, 35 };
    gcp_tape *net = fresh();
    gcp_tensor x, y;
    stored s = { .count = 0 };
    gcp_tensor loss = tf2_checkpointing_stored(net, 64, 16, &x, &y, &s);
    CHECK_NEAR(mib(framework_bytes(&s)), 181.5, 0.1);
    for (int i = 0; i < 5; i++) {
        gcp_plan retain = gcp_plan_make(loss, .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = ks[i]);
        gcp_plan replay = gcp_plan_make(loss, .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = ks[i], .replay = 1);
        CHECK_INT(retain.units, ==, 26);
        CHECK_NEAR(mib(retain.checkpoint_bytes), printed[i], 0.0025);      /* a dense output is 0.002 MiB */
        CHECK_NEAR(mib(replay.checkpoint_bytes), printed[i], 0.0025);
        CHECK_INT(framework_reruns(&s, ks[i], 1), ==, replayed[i]);
        CHECK_INT(replay.reruns, <=, replayed[i]);
        CHECK_INT(retain.reruns, <=, 26);
        CHECK_INT(replay.after_forward, <=, replay.checkpoint_bytes + GCP_MB(2));
    }
    gcp_plan four = gcp_plan_make(loss, .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 4),
             all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    CHECK_NEAR(mib(four.slab_bytes), 0, 81.5 + 30);
    CHECK(mib(four.slab_bytes) * 1.6 <= 181.5);
    CHECK(mib(all.bytes) < 181.5);
    gcp_plan_make(loss, .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 26);
    CHECK_INT(gcp_error_code(net), ==, GCP_E_PLAN);
}

static size_t gradients(gcp_tape *net, gcp_plan *plan, float *out)
{
    size_t n = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_grad(plan, gcp_nth_parameter(net, i), out + n);
        n += gcp_elements(gcp_nth_parameter(net, i));
    }
    return n;
}

static double step(const gcp_plan_opts *o, float *out, size_t *n)
{
    gcp_tape *net = fresh();
    gcp_tensor x, y, loss = tf2_checkpointing(net, RUN, 16, &x, &y);
    gcp_plan plan = gcp_plan_make_at(loss, *o);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, image);
    gcp_write(&plan, y, labels);
    double value = gcp_step(&plan);
    *n = gradients(net, &plan, out);
    CHECK_TEXT(none(net), "none");
    return value;
}

static void checkpoint_bits(int first, int last)
{
    size_t n, m;
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_KEEP_ALL };
    double kept = step(&o, gradient_kept, &n);
    CHECK_NEAR(kept, log(10), 1);
    for (int i = first; i < last; i++) {
        o.policy = GCP_POLICY_CHECKPOINTS;
        o.checkpoints = ks[i / 2];
        o.replay = i % 2;
        double again = step(&o, gradient, &m);
        CHECK(again == kept);
        CHECK(n == m && !memcmp(gradient, gradient_kept, n * sizeof *gradient));
    }
}

static void partition_figures(void)
{
    gcp_tape *net = fresh();
    gcp_tensor x, y;
    stored s = { .count = 0 };
    gcp_tensor loss = recompute_grad_stored(net, 3, 3, 64, 16, &x, &y, &s);
    gcp_plan cut = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD);
    CHECK_NEAR(mib(framework_bytes(&s)), 315, 3.15);
    CHECK(mib(cut.bytes) <= 115 + 20);
    CHECK(cut.rerun_flops <= cut.forward_flops);
    CHECK_TEXT(none(net), "none");
}

/* Three SGD steps; plain, or in partitions under a cap that plain does not fit. */
static void partition_steps(float *losses, size_t *cap, gcp_policy policy)
{
    gcp_tape *net = fresh();
    gcp_tensor x, y, loss = recompute_grad(net, 3, 3, RUN, 16, &x, &y);
    gcp_plan plan = gcp_plan_make(loss, .policy = policy, .budget = *cap, .optimizer = GCP_OPTIMIZER_SGD);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, image);
    gcp_write(&plan, y, labels);
    for (int i = 0; i < 3; i++) losses[i] = (float)gcp_step(&plan, .lr = 0.01);
    CHECK_TEXT(none(net), "none");
    if (*cap == 0) *cap = plan.bytes * CAP / 100;
}

static void partition_cap(void)
{
    float plain[3], cut[3];
    size_t cap = 0;
    partition_steps(plain, &cap, GCP_POLICY_KEEP_ALL);
    partition_steps(cut, &cap, GCP_POLICY_SEGMENTS);
    CHECK(!memcmp(plain, cut, sizeof plain));
    gcp_tape *net = fresh();
    gcp_tensor x, y, loss = recompute_grad(net, 3, 3, RUN, 16, &x, &y);
    gcp_plan refused = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .budget = cap,
                                     .optimizer = GCP_OPTIMIZER_SGD);
    CHECK(refused.core == NULL);
    CHECK_INT(gcp_error_code(net), ==, GCP_E_BUDGET);
}

/* Budgets, by planning alone: the partitioned CNN in 75 + 20 MiB, weights and all; the v2 ResNets' slab (updates fused,
   so that weight gradients come and go) in 1/2.4 and 1/4 of what a framework stores; at most one more forward pass. */
static void budget_figures(void)
{
    static unsigned char planning[GCP_MB(96)];
    static const struct { int depth, batch; double over; } nets[] = { { 0, 16, 1 }, { 50, 4, 2.4 }, { 152, 2, 4.0 } };
    for (int i = 0; i < 3; i++) {
        arena = gcp_arena_from(planning, sizeof planning);
        gcp_tape *net = gcp_tape_make(&arena, .ops = 1024);
        static stored s;
        gcp_tensor x, y;
        s.count = s.layers = 0;
        gcp_tensor loss = nets[i].depth ? resnet_v2_stored(net, nets[i].depth, nets[i].batch, 224, 1000, &s).loss
                                        : recompute_grad_stored(net, 3, 3, 64, 16, &x, &y, &s);
        gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(95) };
        if (nets[i].depth) {
            o.optimizer = GCP_OPTIMIZER_SGD;
            o.fuse_update = 1;
            o.budget = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD,
                                     .fuse_update = 1)
                           .state_bytes +
                       (size_t)((double)framework_bytes(&s) / nets[i].over);
        }
        gcp_plan plan = gcp_plan_make_at(loss, o);
        if (!plan.core) fprintf(stderr, "ResNet-%d: %s\n", nets[i].depth, none(net));
        CHECK(plan.core && plan.bytes <= o.budget && plan.rerun_flops <= plan.forward_flops);
        CHECK(plan.bound_seconds <= plan.seconds && plan.seconds <= 1.35 * plan.keep_all_seconds);
    }
}

/* DenseNet-BC, where each layer joins all features anew, in bytes of what a framework stores (2190 MB): with
   convolutions kept, and for a budget. */
static void dense_figures(void)
{
    static unsigned char planning[GCP_MB(96)];
    static stored s;
    arena = gcp_arena_from(planning, sizeof planning);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 512);
    gcp_tensor loss = densenet_bc_stored(net, 100, 12, 64, 32, 10, &s).loss;
    double all = (double)framework_bytes(&s);
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_CHEAP, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 };
    gcp_plan cheap = gcp_plan_make_at(loss, o);
    o.policy = GCP_POLICY_BUDGET;
    o.budget = (size_t)(all / 4);
    gcp_plan quarter = gcp_plan_make_at(loss, o);
    CHECK_NEAR(all / 1e6, 2190.5, 1);
    CHECK(cheap.core && cheap.rerun_flops == 0 && (double)cheap.bytes <= 0.23 * all);
    CHECK(quarter.core && quarter.seconds <= 1.16 * quarter.keep_all_seconds && !gcp_error(net));
}

/* DenseNet-BC at batch 32 as 004 prints it: what a framework stores, FLOPs, and the share of them that its
   partial-layer checkpoints run again: the 1x1 convolutions of the layers. gcp's cheap policy, which keeps what
   convolutions make, takes less and runs none of them again. */
static void dense_shares(void)
{
    static unsigned char planning[GCP_MB(96)];
    static stored s;
    arena = gcp_arena_from(planning, sizeof planning);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 512);
    s.count = s.layers = 0;
    gcp_tensor loss = densenet_bc_stored(net, 100, 12, 32, 32, 10, &s).loss, w;
    double flops = 0, inside = 0;
    for (int i = 0, size = 32; w = gcp_nth_parameter(net, i), !gcp_is_nil(w); i++) {
        const gcp_shape shape = gcp_shape_of(w);
        if (shape.d[0] == 1) continue;                                  /* gamma, beta, bias */
        const int one = shape.d[1] == 1 && shape.d[2] == 1, layer = one && shape.d[0] == 48,
                  transition = one && !layer && shape.d[0] != 10, pixels = shape.d[0] == 10 ? 1 : size * size;
        flops += 2.0 * (double)gcp_elements(w) * pixels;
        inside += layer ? 2.0 * (double)gcp_elements(w) * pixels : 0;
        if (transition) size /= 2;
    }
    CHECK_NEAR(flops, 0.576e9, 0.00576e9);
    CHECK_NEAR(inside / flops, 0.488, 0.01);
    CHECK_NEAR((double)framework_bytes(&s) / 1e6, 1095, 11);
    gcp_plan cheap = gcp_plan_make(loss, .policy = GCP_POLICY_CHEAP, .optimizer = GCP_OPTIMIZER_SGD);
    CHECK((double)cheap.bytes <= 0.45 * (double)framework_bytes(&s) && cheap.rerun_flops <= inside * 32);
}

/* 004's pitfall: a batch-norm on the raw image, whose input has no gradient, moves its statistics once a step, whether
   its output is kept or runs again. */
static void norm_on_the_image(void)
{
    float first[2][6];
    for (int again = 0; again < 2; again++) {
        gcp_tape *net = fresh();
        gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 6, 6, 3)), y = GCP_NIL;
        GCP_SEGMENT(net, "stem") y = gcp_relu(gcp_conv2d(gcp_batch_norm(x), .out = 4, .k = 3));
        GCP_SEGMENT(net, "head") y = gcp_relu(gcp_conv2d(y, .out = 4, .k = 3));
        gcp_plan plan = gcp_plan_make(gcp_mean(y), .optimizer = GCP_OPTIMIZER_SGD,
                                      .policy = again ? GCP_POLICY_SEGMENTS : GCP_POLICY_KEEP_ALL);
        gcp_bind(&plan, slab, sizeof slab);
        for (int i = 0; i < 432; i++) gradient[i] = (float)(i * 7 % 13);
        gcp_write(&plan, x, gradient);
        for (int i = 0; i < 3; i++) gcp_step(&plan, .lr = 0.1);
        for (int i = 0; i < 2; i++) gcp_read(&plan, gcp_nth_statistic(net, i), first[again] + 3 * i);
        CHECK((plan.reruns > 0) == again && first[again][0] > 1 && first[again][3] > 1);
        CHECK_TEXT(none(net), "none");
    }
    CHECK(!memcmp(first[0], first[1], sizeof first[0]));
}

/* 003 at its full size, by planning: what cannot be trained here. */
static void full_size(void)
{
    static unsigned char planning[GCP_MB(200)];
    static stored s;
    arena = gcp_arena_from(planning, sizeof planning);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 640);
    gcp_tensor x, y;
    s.count = s.layers = 0;
    gcp_tensor loss = recompute_grad_stored(net, 3, 20, 256, 16, &x, &y, &s);
    CHECK_NEAR((double)framework_bytes(&s) / 1e9, 35.236, 0.352);
    gcp_plan cut = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD);
    CHECK((double)cut.bytes <= 11.9e9 + 1.3e9 && cut.rerun_flops <= cut.forward_flops);
    gcp_plan small = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .optimizer = GCP_OPTIMIZER_SGD,
                                   .budget = 4000000000u);
    printf("3x20 blocks at 256x256: partitions %.2f GB, for 4 GB %.2f GB at %.2f\n", 1e-9 * (double)cut.bytes,
           1e-9 * (double)small.bytes, small.seconds / small.keep_all_seconds);
    CHECK(small.core && small.rerun_flops <= small.forward_flops);
    CHECK_TEXT(none(net), "none");
}

/* 002's networks trained: two steps of keeping all, and of a slab that is a part of what a framework stores, give the
   same losses; planned bytes are measured ones; at most one more forward pass. Far memory lowers the least budget. */
static double residual_steps(int depth, int batch, size_t budget, size_t *measured)
{
    static unsigned char planning[GCP_MB(96)];
    arena = gcp_arena_from(planning, sizeof planning);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 1024, .seed = 2);
    network n = resnet_v2_stored(net, depth, batch, 224, 1000, NULL);
    gcp_plan plan = gcp_plan_make(n.loss, .policy = budget ? GCP_POLICY_BUDGET : GCP_POLICY_KEEP_ALL,
                                  .budget = budget, .optimizer = GCP_OPTIMIZER_SGD);
    const size_t pixels = gcp_elements(n.image);
    unsigned char *memory = malloc(plan.room), *probe = malloc(plan.room);
    float *x = malloc(pixels * sizeof *x);
    double loss = 0;
    for (size_t i = 0; i < pixels; i++) x[i] = (float)(i * 37 % 101) / 50 - 1;
    gcp_bind(&plan, memory, plan.room);
    gcp_write(&plan, n.image, x);
    gcp_write(&plan, n.labels, labels);
    for (int i = 0; i < 2; i++) loss = gcp_step(&plan, .lr = 0.01);
    *measured = gcp_measure(&plan, probe, plan.room);
    CHECK_INT(*measured, ==, plan.bytes);
    CHECK(plan.rerun_flops <= plan.forward_flops);
    CHECK_TEXT(none(net), "none");
    free(memory);
    free(probe);
    free(x);
    return loss;
}
static void residual_rows(void)
{
    static unsigned char planning[GCP_MB(96)];
    static const struct { int depth, batch; double over; } rows[] = { { 50, 4, 2.4 }, { 152, 2, 4.0 } };
    for (int i = 0; i < 2; i++) {
        static stored s;
        size_t kept, least[2], measured;
        s.count = s.layers = 0;
        arena = gcp_arena_from(planning, sizeof planning);
        gcp_tape *net = gcp_tape_make(&arena, .ops = 1024);
        gcp_tensor loss = resnet_v2_stored(net, rows[i].depth, rows[i].batch, 224, 1000, &s).loss;
        const size_t state = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD)
                                 .state_bytes,
                     budget = state + (size_t)((double)framework_bytes(&s) / rows[i].over);
        for (int far = 0; far < 2; far++)
            least[far] = gcp_least_budget(loss, .optimizer = GCP_OPTIMIZER_SGD, .far = far ? GCP_GB(1) : 0);
        CHECK(least[1] < least[0]);
        const double first = residual_steps(rows[i].depth, rows[i].batch, 0, &kept);
        CHECK(residual_steps(rows[i].depth, rows[i].batch, budget, &measured) == first);
        CHECK(measured <= budget && measured < kept);
        printf("ResNet-%d, batch %d: keep-all %zu bytes, budget %zu, measured %zu; least %zu, with far memory %zu\n",
               rows[i].depth, rows[i].batch, kept, budget, measured, least[0], least[1]);
    }
}

/* The tables of 002 (support/published.h): in the least bytes that any of its systems needed, planned for a card as
   theirs, a step is no slower beside plain than that system's. (Those of ResNet-18 and -34 are given as faster than
   plain; ResNet-200 has no plain one.) With far memory beside it a plan is no slower than without. */
static void tables_of_002(void)
{
    static unsigned char planning[GCP_MB(200)];
    static const struct { const char *name; double ratio; } least[] = {
        { "resnet18", 1.02 },   { "resnet34", 1.02 },   { "resnet50", 1.115 },    { "resnet101", 1.197 },
        { "resnet152", 1.218 }, { "resnet200", 1.218 }, { "inception_v4", 1.05 },
    };
    const double rates[3] = CARD_RATES;
    const gcp_target card = card_of(rates);
    for (int i = 0; i < WORKLOADS; i++) {
        const workload *w = &workloads[i];
        double most = 0;
        for (size_t k = 0; k < sizeof least / sizeof *least; k++)
            if (!strcmp(w->table, "002") && !strcmp(w->name, least[k].name)) most = least[k].ratio;
        if (most == 0 || w->batch != 32) continue;
        arena = gcp_arena_from(planning, sizeof planning);
        gcp_tape *net = gcp_tape_make(&arena, .ops = w->ops);
        gcp_plan_opts o = published_training(w->table);
        o.target = &card;
        gcp_tensor loss = w->record(net, w->batch, NULL).loss;
        gcp_plan plan = strategy_plan(&strategies[BUDGET], loss, o, (size_t)(1e6 * w->budget));
        const double seconds = plan.seconds;
        if (!check_report(plan.core && (double)plan.bytes <= 1e6 * w->budget &&
                              plan.seconds <= most * plan.keep_all_seconds,
                          __FILE__, __LINE__))
            fprintf(stderr, "%s: %zu bytes, %.3f\n", w->name, plan.bytes, plan.seconds / plan.keep_all_seconds);
        gcp_plan_free(&plan);
        if (w->ops > 512) continue;
        plan = strategy_plan(&strategies[EITHER], loss, o, (size_t)(1e6 * w->budget));
        CHECK((double)plan.bytes <= 1e6 * w->budget && plan.seconds <= seconds * 1.001);
    }
}

/* ResNet-50 under Adam in 7.6 GB: 214 images is what the best of 002's systems reached, at 1.08 of plain's time. */
static gcp_tensor resnet50_of(void *context, gcp_tape *net, int batch)
{
    (void)context;
    return resnet50_002(net, batch, NULL).loss;
}
static void largest_batch(void)
{
    static unsigned char planning[GCP_MB(64)];
    const double rates[3] = CARD_RATES;
    const gcp_target card = card_of(rates);
    arena = gcp_arena_from(planning, sizeof planning);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 256);
    gcp_plan_opts o = { .optimizer = GCP_OPTIMIZER_ADAM, .budget = 7600000000u, .target = &card,
                        .effort = GCP_EFFORT_QUICK };
    if (sizeof(size_t) < 8) return;
    const int batch = gcp_max_batch(net, resnet50_of, NULL, .slowdown = 1.33, .plan = o);
    printf("ResNet-50 in 7.6 GB: %d images\n", batch);
    CHECK(batch >= 300);
    CHECK_TEXT(none(net), "none");
}

/* Five steps of it; the state is what they leave: weights, momentum, running statistics. share: of keep-all's bytes. */
typedef struct dense_run { double loss; size_t state, bytes, measured; } dense_run;

static dense_run dense_steps(int depth, int batch, gcp_policy policy, size_t budget, unsigned char *state)
{
    dense_run r = { .loss = 0 };
    gcp_tape *net = fresh();
    network n = densenet_bc(net, depth, 12, batch, 32, 10);
    gcp_plan plan = gcp_plan_make(n.loss, .policy = policy, .budget = budget, .optimizer = GCP_OPTIMIZER_SGD,
                                  .momentum = 0.9);
    unsigned char *memory = malloc(plan.room), *probe = malloc(plan.room);
    r.state = gcp_state_bytes(net, GCP_OPTIMIZER_SGD);
    CHECK(memory && probe && r.state <= sizeof gradient && gcp_state_bind(net, state, r.state) == GCP_OK);
    gcp_bind(&plan, memory, plan.room);
    gcp_write(&plan, n.image, image);
    gcp_write(&plan, n.labels, labels);
    for (int i = 0; i < 5; i++) r.loss = gcp_step(&plan, .lr = 0.1);
    r.bytes = plan.bytes;
    r.measured = gcp_measure(&plan, probe, plan.room);
    free(memory);
    free(probe);
    CHECK_TEXT(none(net), "none");
    return r;
}

static void dense_bits(int depth, int batch)
{
    static const double shares[] = { 0, 0.6, 0.5, 0.25 };
    dense_run kept = dense_steps(depth, batch, GCP_POLICY_KEEP_ALL, 0, (unsigned char *)gradient_kept);
    CHECK(kept.loss > 0 && kept.bytes == kept.measured);
    for (int i = 0; i < (depth < 100 ? 3 : 4); i++) {
        gcp_policy policy = i ? GCP_POLICY_BUDGET : GCP_POLICY_CHEAP;
        dense_run r = dense_steps(depth, batch, policy, (size_t)(shares[i] * (double)kept.bytes),
                                  (unsigned char *)gradient);
        CHECK(r.loss == kept.loss && r.state == kept.state && !memcmp(gradient, gradient_kept, r.state));
        CHECK_INT(r.measured, ==, r.bytes);
        printf("DenseNet-BC-%d-12, batch %d, %s: %zu bytes planned, %zu measured; keep-all %zu\n", depth, batch,
               i ? "budget" : "cheap", r.bytes, r.measured, kept.bytes);
    }
}

/* Usage: test_published [batch | rows]: the whole DenseNet-BC-100-12 at that batch alone; or what takes long. */
int main(int argc, char **argv)
{
    for (int i = 0; i < 64 * 64 * 64; i++) image[i] = 1;
    for (int i = 0; i < 64; i++) labels[i] = 1;
    if (argc > 1 && !strcmp(argv[1], "rows")) {
        full_size();
        residual_rows();
        dense_bits(100, 32);
        checkpoint_bits(0, 10);
        return check_done();
    }
    if (argc > 1) { dense_bits(100, atoi(argv[1])); return check_done(); }
    dense_figures();
    dense_shares();
    norm_on_the_image();
    tables_of_002();
    largest_batch();
    budget_figures();
    dense_bits(DEPTH, 2);
    checkpoint_figures();
    checkpoint_bits(4, 6);
    partition_figures();
    partition_cap();
    return check_done();
}
