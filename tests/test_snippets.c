/* The pieces of code in docs/training.md, as they stand there, each in a function that the test calls on the digits.
   (texts.cmake compares the two.) */
#include "support/check.h"
#include "data.h"
#include <stdlib.h>

enum { BATCH = 50, EPOCHS = 3 };
static unsigned char tape_memory[GCP_MB(2)], other_memory[GCP_MB(2)], data_memory[GCP_KB(512)];
static _Alignas(64) unsigned char memory[GCP_MB(4)], more_memory[GCP_MB(4)];
static gcp_arena arena, other_arena, data_arena;
static gcp_dataset train, test;
static gcp_tape *net;
static gcp_tensor image, label, logits, loss;
static gcp_plan plan, evaluation;
static float pixels[BATCH * 64], scores[BATCH * 10];
static int32_t classes[BATCH];
static int steps = 10, batches;

static gcp_tensor digits(gcp_tape *tape, gcp_tensor *in, gcp_tensor *labels)
{
    net = tape;
    *in = gcp_input(net, "image", GCP_SHAPE(BATCH, 8, 8, 1));
    *labels = gcp_labels(net, "label", GCP_SHAPE(BATCH));
    gcp_tensor x = *in;
    GCP_SEGMENT(net, "stem") x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1, .name = "conv")));
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "block") x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1)));
    return gcp_linear(gcp_global_avg_pool(x), .out = 10, .name = "head");
}
static void record(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    logits = digits(gcp_tape_make(&arena, .ops = 64, .seed = 1), &image, &label);
    loss = gcp_cross_entropy(logits, label);
}
static gcp_tensor network(gcp_tape *tape) { return gcp_cross_entropy(logits = digits(tape, &image, &label), label); }
static void begin(void)
{
    record();
    plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    gcp_bind(&plan, memory, sizeof memory);
}
static int next_batch(int i)                         /* returns how many images it has */
{
    const int first = i * BATCH % train.count, left = train.count - first;
    data_batch(&train, NULL, first, BATCH, (augment) { 0, 0, 0 }, pixels, classes);
    return left < BATCH ? left : BATCH;
}
static double step(gcp_plan *p, int i, double lr)
{
    const int images = next_batch(i);
    gcp_write_some(p, image, pixels, images);
    gcp_write_some(p, label, classes, images);
    return gcp_step(p, .lr = lr);
}
static void fine(int line)
{
    if (!check_report(!gcp_error(net), __FILE__, line)) fprintf(stderr, "%s\n", gcp_error(net));
}

/* ---- the pieces ---- */

static void sizes(void)
{
    size_t size = gcp_tape_arena(.ops = 64), more, files;
    gcp_arena tape_arena = gcp_arena_from(malloc(size), size);
    gcp_tensor out = network(gcp_tape_make(&tape_arena, .ops = 64));
    more = gcp_plan_arena(out, .optimizer = GCP_OPTIMIZER_ADAM);           /* the plan's options */
    gcp_arena plan_arena = gcp_arena_from(malloc(more), more);
    plan = gcp_plan_make(out, .optimizer = GCP_OPTIMIZER_ADAM, .arena = &plan_arena);
    void *step_memory = malloc(plan.room);
    gcp_bind(&plan, step_memory, plan.room);
    files = gcp_files_arena(out.tape);
    gcp_arena file_arena = gcp_arena_from(malloc(files), files);
    gcp_save_run(out.tape, "exact.run", .arena = &file_arena);
    CHECK(step(&plan, 0, 0.01) > 0 && !gcp_error(net) && !plan.coarse);
    CHECK_INT(gcp_resume_run(out.tape, "exact.run", .arena = &file_arena), ==, 1);
    CHECK(!gcp_error(net) && remove("exact.run") == 0);
    free(file_arena.base);
    free(step_memory);
    free(plan_arena.base);
    free(tape_arena.base);
}

static void save(void)
{
    if (gcp_save(net, "digits.safetensors") != GCP_OK) puts(gcp_error(net));
}

static void load(void)
{
    if (!gcp_load(net, "digits.safetensors")) puts(gcp_error(net));
}

static void resume(void)
{
    struct { int batch; double best; } at = { 0, 0 };       /* yours: what else the run must know */
    gcp_resume_run(net, "digits.run", .extra = &at, .extra_bytes = sizeof at);
    while (!gcp_error(net) && at.batch < steps) {     /* the file of another run is an error: it stays */
        step(&plan, at.batch++, 0.01);
        if (at.batch % 5 == 0 && gcp_save_run(net, "digits.run", .extra = &at, .extra_bytes = sizeof at) != GCP_OK) {
            puts(gcp_error(net));                               /* a full disk: the last file is still there */
            gcp_error_clear(net);                               /* or no further step is taken */
        }
    }
}

static void pytorch(void)
{
    static const char map[] = "stem[0]/conv/weight          conv1.weight\n"
                              "stem[0]/conv/bias            conv1.bias\n"
                              "stem[0]/batch_norm[0]/*      bn1.*\n"
                              "block[{i}]/conv2d[0]/*       layers.{i}.conv.*\n"
                              "block[{i}]/batch_norm[0]/*   layers.{i}.norm.*\n"
                              "head/*                       fc.*\n";
    if (!gcp_load(net, "torch.safetensors", .style = GCP_STYLE_TORCH, .map = map)) puts(gcp_error(net));
}

static void thaw(void)
{
    gcp_plan head = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .train = "head*", .frozen_norms = 1);
    gcp_plan all = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .freeze = "stem*");
    gcp_bind(&head, memory, sizeof memory);
    for (int i = 0; i < steps; i++) step(&head, i, 0.01);
    gcp_bind(&all, memory, sizeof memory);
    for (int i = 0; i < steps; i++) step(&all, i, 0.001);
}

static void two_rates(void)
{
    gcp_plan p = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAMW, .weight_decay = 0.01,
                               .rates = "head* 10\nstem* 0.1",
                               .decays = "*/bias 0\n*/gamma 0\n*/beta 0");
    gcp_bind(&p, memory, sizeof memory);
    for (int i = 0; i < steps; i++) step(&p, i, 0.001);
}

static void cosine(void)
{
    const uint64_t warmup = 5, all = (uint64_t)steps;
    for (uint64_t i = 0; i < all; i++) {
        gcp_write(&plan, image, pixels);
        gcp_write(&plan, label, classes);
        gcp_step(&plan, .lr = gcp_rate_cosine(0.01, i, warmup, all));
    }
}

static void listing(void)
{
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        char path[256];
        puts(gcp_name(gcp_nth_parameter(net, i), path, sizeof path));
    }
}

static void micro_batches(void)
{
    gcp_plan p = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .accumulate = 4, .accumulate_labels = 1);
    gcp_bind(&p, memory, sizeof memory);
    for (int i = 0; i < steps; i++) {
        gcp_write(&p, image, pixels);
        gcp_write(&p, label, classes);
        gcp_step(&p, .lr = 0.01, .last = i + 1 == steps);       /* an update every 4 steps, and at the end */
    }
}

static double evaluate(void)
{
    int right = 0;
    for (int first = 0; first < test.count; first += BATCH) {
        data_batch(&test, NULL, first, BATCH, (augment) { 0, 0, 0 }, pixels, classes);
        gcp_write(&evaluation, image, pixels);
        gcp_forward(&evaluation);
        gcp_read(&evaluation, logits, scores);
        for (int i = 0; i < BATCH; i++) right += data_best(scores + 10 * i, 10) == classes[i];
    }
    return 100.0 * right / test.count;
}

static void epochs(void)
{
    plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    evaluation = gcp_plan_make(logits, .inference = 1);
    gcp_bind(&plan, memory, sizeof memory);                 /* the same memory: weights are shared */
    gcp_bind(&evaluation, memory, sizeof memory);
    for (int epoch = 0; epoch < EPOCHS; epoch++) {
        for (int i = 0; i < batches; i++) step(&plan, i, 0.01);
        printf("epoch %d: %.1f %% right\n", epoch + 1, evaluate());
    }
}

static void last_batch(void)
{
    for (int i = 0; i < batches; i++) {
        int images = next_batch(i);                         /* fewer in the last one */
        gcp_write_some(&plan, image, pixels, images);
        gcp_write_some(&plan, label, classes, images);
        gcp_step(&plan, .lr = 0.01);
    }
}

static void averaged(void *averages)
{
    gcp_average(net, averages, 0);                          /* gcp_average_bytes(net) bytes of yours */
    for (int i = 0; i < steps; i++) {
        step(&plan, i, 0.01);
        gcp_average(net, averages, 0.999);
    }
    gcp_average_swap(net, averages);
    gcp_save(net, "averaged.safetensors");
    gcp_average_swap(net, averages);                        /* training goes on with its own weights */
}

/* One tape: the critic judges true samples and made ones with the same weights. */
static gcp_tensor judge(gcp_tensor x, gcp_tensor w, gcp_tensor v)
{
    gcp_tensor hidden = gcp_leaky_relu(gcp_linear_op(x, w, GCP_NIL), .slope = 0.2);
    return gcp_sigmoid(gcp_linear_op(hidden, v, GCP_NIL));
}
static double gan(double *first_mean)
{
    enum { N = 32 };
    static float noise[N * 4], truth[N * 2], ones[N], zeros[N], sample[N * 2];
    other_arena = gcp_arena_from(other_memory, sizeof other_memory);
    gcp_tape *tape = gcp_tape_make(&other_arena, .ops = 64, .seed = 3);
    gcp_tensor z = gcp_input(tape, "noise", GCP_SHAPE(N, 4)), real = gcp_input(tape, "real", GCP_SHAPE(N, 2)),
               one = gcp_input(tape, "ones", GCP_SHAPE(N, 1)), zero = gcp_input(tape, "zeros", GCP_SHAPE(N, 1)),
               made = z;
    GCP_SEGMENT(tape, "maker") made = gcp_linear(gcp_relu(gcp_linear(z, .out = 16)), .out = 2);
    made = gcp_keep(made);
    gcp_tensor w = gcp_param(tape, "critic_w", GCP_SHAPE(16, 2)), v = gcp_param(tape, "critic_v", GCP_SHAPE(1, 16));
    gcp_tensor made_is_true = gcp_mse(judge(made, w, v), one);
    gcp_tensor both = gcp_add(gcp_mse(judge(real, w, v), one), gcp_mse(judge(made, w, v), zero));

    gcp_plan critic = gcp_plan_make(both, .optimizer = GCP_OPTIMIZER_ADAM, .train = "critic*");
    gcp_plan maker = gcp_plan_make(made_is_true, .optimizer = GCP_OPTIMIZER_ADAM, .train = "maker*");
    gcp_bind(&critic, more_memory, sizeof more_memory);
    gcp_bind(&maker, more_memory, sizeof more_memory);
    for (int i = 0; i < 400; i++) {
        gcp_write(&critic, z, noise); gcp_write(&critic, real, truth);
        gcp_write(&critic, one, ones); gcp_write(&critic, zero, zeros);
        gcp_step(&critic, .lr = 0.01);
        gcp_write(&maker, z, noise); gcp_write(&maker, one, ones);
        gcp_step(&maker, .lr = 0.005);
        for (int k = 0; k < N * 4; k++) noise[k] = (float)(data_random(7, (uint64_t)(i * N * 4 + k)) % 2001) / 1000 - 1;
        for (int k = 0; k < N; k++) {
            truth[2 * k] = 3 + noise[k] / 4;
            truth[2 * k + 1] = -2 + noise[N + k] / 4;
            ones[k] = 1;
        }
        if (i == 1) { gcp_read(&maker, made, sample); *first_mean = (double)sample[0]; }
    }
    gcp_read(&maker, made, sample);
    double mean = 0;
    for (int k = 0; k < N; k++) mean += (double)sample[2 * k] / N;
    CHECK(!gcp_error(tape));
    if (gcp_error(tape)) fprintf(stderr, "%s\n", gcp_error(tape));
    return mean;
}

/* ---- what they do ---- */

/* Weights saved and loaded, and in PyTorch's way; a run taken up. */
static void files(void)
{
    static gcp_real before[1 << 12], after[1 << 12];
    static const char map[] =
        "stem[0]/conv/* conv1.*\nstem[0]/batch_norm[0]/* bn1.*\nblock[{i}]/conv2d[0]/* layers.{i}.conv.*\n"
        "block[{i}]/batch_norm[0]/* layers.{i}.norm.*\nhead/* fc.*\n";
    begin();
    step(&plan, 0, 0.01);
    save();
    gcp_read(&plan, gcp_find(net, "head/weight"), before);
    begin();
    load();
    gcp_read(&plan, gcp_find(net, "head/weight"), after);
    CHECK(!memcmp(before, after, 80 * sizeof *before));
    fine(__LINE__);
    for (steps = 10; steps <= 20; steps += 10) {
        begin();
        resume();
        CHECK(gcp_steps_done(net) == (uint64_t)steps);
        fine(__LINE__);
    }
    gcp_save(net, "digits.run");                    /* no run: an error, and the file stays */
    begin();
    resume();
    CHECK(gcp_error_code(net) == GCP_E_CONTENTS && gcp_steps_done(net) == 0);
    gcp_error_clear(net);
    CHECK(!gcp_resume_run(net, "digits.run") && gcp_error_code(net) == GCP_E_CONTENTS);
    gcp_error_clear(net);
    steps = 20;
    gcp_save(net, "torch.safetensors", .style = GCP_STYLE_TORCH, .map = map);
    gcp_read(&plan, gcp_find(net, "stem[0]/conv/weight"), before);
    begin();
    pytorch();
    gcp_read(&plan, gcp_find(net, "stem[0]/conv/weight"), after);
    CHECK(!memcmp(before, after, 72 * sizeof *before));
    fine(__LINE__);
}
/* ---- docs/memory.md ---- */

static void own_memory(void)
{
    plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    size_t room = plan.room;                        /* plan.bytes, and padding where malloc's address is not aligned */
    void *mine = malloc(room);
    gcp_bind(&plan, mine, room);                    /* a step touches exactly plan.bytes of it */
    step(&plan, 0, 0.01);
    gcp_plan_free(&plan);                           /* first: then its part of the tape's arena serves the next plan */
    plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = room, .optimizer = GCP_OPTIMIZER_SGD,
                         .momentum = 0.9);
    gcp_bind(&plan, mine, room);                    /* write the inputs: training goes on, to the bit */
    step(&plan, 1, 0.01);
    CHECK(gcp_steps_done(net) == 2 && !gcp_error(net));
    gcp_unbind(&plan);
    free(mine);
}
static void shared_memory(void)
{
    record();
    plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    evaluation = gcp_plan_make(logits, .inference = 1);
    size_t room = gcp_plans_room(&plan, &evaluation);           /* the state, and the larger slab */
    void *mine = malloc(room);
    gcp_bind(&plan, mine, room);
    gcp_bind(&evaluation, mine, room);
    CHECK(step(&plan, 0, 0.01) > 0 && !gcp_error(net));
    free(mine);
}
static void far_values(void)
{
    record();
    size_t least = gcp_least_budget(loss, .optimizer = GCP_OPTIMIZER_SGD, .far = GCP_MB(4));
    plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = least, .far = GCP_MB(4),
                         .optimizer = GCP_OPTIMIZER_SGD);
    void *far_memory = malloc(plan.far_bytes);
    gcp_bind(&plan, memory, sizeof memory);
    gcp_far_bind(&plan, far_memory, plan.far_bytes);        /* a GPU's target allocates it by itself */
    CHECK(step(&plan, 0, 0.01) > 0);
    fine(__LINE__);
    gcp_unbind(&plan);
    free(far_memory);
}
static void far_slots(void)
{
    record();
    size_t bytes = gcp_slots_bytes(net, GCP_OPTIMIZER_ADAM);
    gcp_slots_bind(net, more_memory, bytes);                /* aligned to 64; before plans are made */
    plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    gcp_bind(&plan, memory, sizeof memory);
    CHECK(step(&plan, 0, 0.01) > 0);
    fine(__LINE__);
    gcp_unbind(&plan);
}

/* ---- docs/policies.md ---- */

static void a_budget(void)
{
    gcp_plan p = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = GCP_KB(500),
                               .optimizer = GCP_OPTIMIZER_ADAM);
    if (!gcp_plan_ok(&p)) printf("%s\n", gcp_error(net));       /* ... the least found to work is ... */
    CHECK(gcp_plan_ok(&p) && p.bytes <= GCP_KB(500));
    gcp_plan_free(&p);
}
static void halves(void)
{
    gcp_plan p = gcp_plan_make(loss, .store = GCP_STORE_BF16, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(512));
    CHECK(gcp_plan_ok(&p));
    gcp_plan_free(&p);
}
static void a_curve(void)
{
    gcp_point points[8] = { { 0 } };
    size_t least = gcp_least_budget(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM);
    for (int i = 0; i < 8; i++) points[i].budget = least + (all.bytes - least) / 7 * (size_t)i;
    gcp_sweep(loss, points, 8, .optimizer = GCP_OPTIMIZER_ADAM);
    for (int i = 0; i < 8; i++)
        printf("%zu bytes: %.3f of keep-all's time, no schedule is below %.3f\n", points[i].bytes,
               points[i].seconds / points[i].keep_all_seconds, points[i].bound_seconds / points[i].keep_all_seconds);
    CHECK(points[0].bytes && points[7].bytes && points[0].seconds >= points[7].seconds);
    gcp_plan_free(&all);
}
static gcp_tensor of_batch(void *context, gcp_tape *tape, int batch)
{
    (void)context;
    gcp_tensor x = gcp_input(tape, "image", GCP_SHAPE(batch, 32, 32, 3));
    gcp_tensor y = gcp_labels(tape, "label", GCP_SHAPE(batch));
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(tape, "block") x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1)));
    return gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 10), y);
}
static void a_batch(void)
{
    other_arena = gcp_arena_from(other_memory, sizeof other_memory);
    gcp_tape *other = gcp_tape_make(&other_arena, .ops = 64);
    int most = gcp_max_batch(other, of_batch, NULL, .slowdown = 1.2,
                             .plan = { .budget = GCP_MB(64), .optimizer = GCP_OPTIMIZER_ADAM });
    printf("%d images in 64 MB, at no more than 1.2 of the time\n", most);
    CHECK(most > 1 && !gcp_error(other));
}
/* What a machine takes for each op, measured, and planned with. */
static void a_profile(void)
{
    static char costs[GCP_KB(64)];
    FILE *file = tmpfile();
    next_batch(0);
    gcp_write(&plan, image, pixels);
    gcp_write(&plan, label, classes);
    gcp_profile(&plan, .lr = 0.01);                              /* of a bound plan, the inputs written */
    gcp_costs_print(&plan, gcp_file(file));
    rewind(file);
    costs[fread(costs, 1, sizeof costs - 1, file)] = 0;
    gcp_plan p = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = plan.bytes, .costs = costs,
                               .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(gcp_plan_ok(&p) && strstr(costs, "conv2d"));
    gcp_plan_free(&p);
    fclose(file);
}

static void policies(void)
{
    record();
    own_memory();
    shared_memory();
    far_values();
    far_slots();
    begin();
    a_budget();
    halves();
    a_curve();
    fine(__LINE__);
    a_batch();
    a_profile();
    fine(__LINE__);
}

static void training(void)
{
    record();
    thaw();
    fine(__LINE__);
    record();
    two_rates();
    fine(__LINE__);
    begin();
    next_batch(0);
    cosine();
    micro_batches();
    listing();
    fine(__LINE__);
    record();
    epochs();
    CHECK(evaluate() > 80);
    last_batch();
    averaged(more_memory);
    fine(__LINE__);
}

int main(void)
{
    data_arena = gcp_arena_from(data_memory, sizeof data_memory);
    gcp_dataset all = data_digits(&data_arena, TEST_DATA "/examples/data");
    CHECK_TEXT(all.error, "");
    data_mix(&all, 1);
    train = data_slice(&all, 0, 1480); test = data_slice(&all, 1480, all.count - 1480);
    batches = (train.count + BATCH - 1) / BATCH;         /* the last one has 30 images */
    remove("digits.run");
    sizes();
    files();
    training();
    policies();
    double first = 0, mean = gan(&first);
    printf("a maker of samples around 3 begins at %.2f and ends at %.2f\n", first, mean);
    CHECK(fabs(mean - 3) < 1 && fabs(first - 3) > 1);
    remove("digits.safetensors"); remove("torch.safetensors"); remove("averaged.safetensors"); remove("digits.run");
    return check_done();
}
