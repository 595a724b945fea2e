/* The GPU target as a whole: random networks under every policy, memory, errors, two contexts at once, the same bits
   again and again, lists with far memory. On a GPU, or on the host emulation (where its faults can be planted, too). */
#define NET_ON_GPU
#include "support/device_dags.h"
#include "gcp_io.h"
#include "support/far_slots.h"
#include "gcp_cuda.h"
#include <stdlib.h>
#ifdef __unix__
#include <pthread.h>
#endif

static unsigned char tape_memory[2][GCP_MB(8)], cpu_memory[GCP_MB(8)];
static gcp_gpu gpu;
enum { WORKSPACE = 1 << 16 };              /* the same wherever bits are compared: products depend on it */

typedef struct small {
    gcp_arena arena;
    gcp_tape *net;
    gcp_tensor image, labels, loss;
    float pixels[2 * 12 * 12 * 3];
    int label[2];
} small;

static void record(small *s, int index)
{
    s->arena = gcp_arena_from(tape_memory[index], sizeof tape_memory[index]);
    s->net = gcp_tape_make(&s->arena, .ops = 64, .seed = 7);
    gcp_tensor x = s->image = gcp_input(s->net, "image", GCP_SHAPE(2, 12, 12, 3));
    s->labels = gcp_labels(s->net, "labels", GCP_SHAPE(2));
    for (int i = 0; i < 3; i++)
        GCP_SEGMENT(s->net, "block") {
            x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1)));
            x = gcp_dropout(gcp_conv2d(x, .out = 8, .k = 1), .rate = 0.2);
        }
    s->loss = gcp_cross_entropy(gcp_linear(gcp_flatten(x), .out = 8), s->labels);
    for (size_t i = 0; i < sizeof s->pixels / sizeof *s->pixels; i++) s->pixels[i] = (float)(i * 37 % 101) / 50 - 1;
    s->label[0] = 1; s->label[1] = 4;
}

static float train(small *s, gcp_plan *plan, int steps)
{
    float loss = 0;
    for (int i = 0; i < steps; i++) {
        gcp_write(plan, s->image, s->pixels);
        gcp_write(plan, s->labels, s->label);
        loss = (float)gcp_step(plan, .lr = 0.01);
    }
    return loss;
}

static int said(gcp_tape *net, gcp_code code, const char *text)
{
    int ok = gcp_error_code(net) == code && strstr(gcp_error(net) ? gcp_error(net) : "", text);
    if (!ok) fprintf(stderr, "'%s', not '%s'\n", gcp_error(net) ? gcp_error(net) : "no error", text);
    gcp_error_clear(net);
    return ok;
}

static uint64_t hash(small *s, gcp_plan *plan)
{
    float w[4096];                                   /* not static: two threads come here */
    uint64_t h = 14695981039346656037u;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(s->net, i)); i++) {
        size_t n = gcp_elements(gcp_nth_parameter(s->net, i));
        if (n > 4096 || gcp_read(plan, gcp_nth_parameter(s->net, i), w)) continue;
        for (size_t k = 0; k < n * sizeof *w; k++) h = (h ^ ((unsigned char *)w)[k]) * 1099511628211u;
    }
    return h;
}

/* ---- Memory ---------------------------------------------------------------------------------------------------*/

static void memory(void)
{
    static small s;
    record(&s, 0);
    gcp_plan plan = gcp_plan_make(s.loss, .target = gcp_cuda(&gpu), .optimizer = GCP_OPTIMIZER_ADAM);
#ifdef HOSTCUDA
    size_t before = hostcuda_live_bytes();
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
    CHECK_INT(hostcuda_live_bytes() - before, ==, plan.bytes);       /* planned = allocated */
    CHECK(train(&s, &plan, 3) > 0);
    CHECK_INT(hostcuda_live_bytes() - before, ==, plan.bytes);
    gcp_unbind(&plan);
    CHECK_INT(hostcuda_live_bytes(), ==, before);
    hostcuda_capacity(plan.bytes - 1 + before);
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_E_DEVICE &&
          said(s.net, GCP_E_DEVICE, "cudaMalloc: cudaErrorMemoryAllocation"));
    hostcuda_capacity(plan.bytes + before);
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK && train(&s, &plan, 1) > 0);
    hostcuda_capacity(0);
    gcp_unbind(&plan);
    hostcuda_fail_nth(1);
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_E_DEVICE && said(s.net, GCP_E_DEVICE, "out of memory"));
    hostcuda_fail_nth(0);
#endif
    void *mine = NULL;
    CHECK(cudaMalloc(&mine, plan.bytes) == cudaSuccess);
    gcp_gpu own = gcp_gpu_open(.memory = mine, .size = plan.bytes, .workspace = WORKSPACE);
    gcp_plan fits = gcp_plan_make(s.loss, .target = gcp_cuda(&own), .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(gcp_bind(&fits, NULL, 0) == GCP_OK && train(&s, &fits, 1) > 0);
    gcp_plan second = gcp_plan_make(s.loss, .target = gcp_cuda(&own), .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(gcp_bind(&second, NULL, 0) == GCP_E_DEVICE && said(s.net, GCP_E_DEVICE, "bytes asked, 0 of the"));
    gcp_unbind(&fits);
    CHECK(gcp_bind(&second, NULL, 0) == GCP_OK && train(&s, &second, 1) > 0);
    gcp_unbind(&second);
    gcp_gpu_close(&own);
    cudaFree(mine);
    CHECK(gcp_error(s.net) == NULL);
}

/* ---- Errors ---------------------------------------------------------------------------------------------------*/

static int same_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; return 1; }
static void on_cpu(const gcp_call *c) { (void)c; }
static void too_far(const gcp_call *c)               /* what a wrong launch looks like to the library */
{
    cudaStream_t stream = gcp_cuda_stream(c->target);
    (void)stream;
    (void)cudaSetDevice(12345);
}

static void errors(void)
{
    static small s;
    gcp_gpu none = gcp_gpu_open(.device = 99);
    record(&s, 0);
    CHECK(none.blas == NULL && gcp_plan_make(s.loss, .target = gcp_cuda(&none)).core == NULL);
    CHECK(said(s.net, GCP_E_DEVICE, "gcp_plan_make: cuda: cudaSetDevice: cudaErrorInvalidDevice"));
    gcp_gpu_close(&none);
    gcp_op there = { .name = "far", .forward = too_far, .backward = on_cpu },
           op = { .name = "far", .shape = same_shape, .forward = on_cpu, .backward = on_cpu, .outputs = 1 };
    gcp_tensor in[1];
    for (int k = 0; k < 2; k++) {
        record(&s, 0);
        char text[64];
        in[0] = gcp_conv2d(s.image, .out = 2, .k = 1);
        op.on_device = k ? &there : NULL;
        int line = __LINE__ + 1;
        gcp_tensor loss = gcp_mean(gcp_custom(in, 1, &op));
        gcp_plan plan = gcp_plan_make(loss, .target = gcp_cuda(&gpu));
        if (!k) {
            CHECK(plan.core == NULL && said(s.net, GCP_E_PLAN, "far: no version for the target 'cuda'"));
            continue;
        }
        CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK && gcp_write(&plan, s.image, s.pixels) == GCP_OK &&
              isnan(gcp_step(&plan)));
        snprintf(text, sizeof text, "test_cuda.c:%d: far[0]: cuda: a kernel: ", line);
        CHECK(said(s.net, GCP_E_DEVICE, text));
        gcp_unbind(&plan);
    }
}

/* Custom ops that spoil a recording: one waits for its stream, which no capture allows; another fails the one time that
   it is recorded. Such a step is issued as it stands, once, and is right. */
static int spoils, forwards;
static void copy_and_wait(const gcp_call *c, void *to, const void *from)
{
    cudaStream_t stream = gcp_cuda_stream(c->target);
    cudaMemcpyAsync(to, from,
                    4 * (size_t)c->in[0].shape.d[0] * (size_t)c->in[0].shape.d[1] * (size_t)c->in[0].shape.d[2] *
                        (size_t)c->in[0].shape.d[3],
                    cudaMemcpyDefault, stream);
    if (!spoils) cudaStreamSynchronize(stream);
}
static void waits(const gcp_call *c)
{
    if (++forwards == 2 && spoils) too_far(c);
    else copy_and_wait(c, c->out[0].data, c->in[0].data);
}
static void waits_back(const gcp_call *c) { copy_and_wait(c, c->din[0].data, c->dout[0].data); }

static void waiting(int fails)
{
    static small s;
    spoils = fails;
    const gcp_op there = { .name = "wait", .forward = waits, .backward = waits_back }, op = {
        .name = "wait", .shape = same_shape, .forward = on_cpu, .backward = on_cpu, .outputs = 1, .on_device = &there
    };
    float loss[2][5];
    uint64_t bits[2];
    for (int graphs = 0; graphs < 2; graphs++) {
        gcp_gpu own = gcp_gpu_open(.workspace = WORKSPACE, .no_graphs = !graphs);
        forwards = graphs ? 0 : 2;                   /* counted where steps are recorded */
        record(&s, 0);
        gcp_tensor in[1] = { gcp_conv2d(s.image, .out = 4, .k = 3, .pad = 1) };
        gcp_tensor y = gcp_tanh(gcp_custom(in, 1, &op)), end = gcp_mean(gcp_mul(y, y));
        gcp_plan plan = gcp_plan_make(end, .target = gcp_cuda(&own), .optimizer = GCP_OPTIMIZER_SGD);
        CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
        for (int step = 0; step < 5; step++) {
            gcp_write(&plan, s.image, s.pixels);
            loss[graphs][step] = (float)gcp_step(&plan, .lr = 0.5);
            CHECK(!gcp_error(s.net) && gcp_steps_done(s.net) == (uint64_t)step + 1);
        }
        bits[graphs] = hash(&s, &plan);
        gcp_unbind(&plan);
        gcp_gpu_close(&own);
    }
    const int same = bits[0] == bits[1] && !memcmp(loss[0], loss[1], sizeof loss[0]);
    for (int step = 0; step < 5 && !same; step++)
        fprintf(stderr, "fails %d, step %d: %.9g as it stands, %.9g where steps are recorded\n", fails, step + 1,
                (double)loss[0][step], (double)loss[1][step]);
    CHECK(same && loss[0][4] < loss[0][0]);
}

/* What the application did wrong before is not gcp's. */
static void stale_error(void)
{
    static small s;
    float value;
    record(&s, 0);
    (void)cudaSetDevice(77);
    gcp_plan plan = gcp_plan_make(s.loss, .target = gcp_cuda(&gpu), .optimizer = GCP_OPTIMIZER_SGD);
    (void)cudaSetDevice(77);
    CHECK(plan.core && gcp_bind(&plan, NULL, 0) == GCP_OK);
    for (int step = 0; step < 4; step++) {
        (void)cudaSetDevice(77);
        CHECK(gcp_write(&plan, s.image, s.pixels) == GCP_OK && gcp_write(&plan, s.labels, s.label) == GCP_OK);
        (void)cudaSetDevice(77);
        CHECK(gcp_step(&plan, .lr = 0.01) > 0);
        (void)cudaSetDevice(77);
        CHECK(gcp_read(&plan, s.loss, &value) == GCP_OK && gcp_measure(&plan, NULL, 0) == plan.bytes);
    }
    const char *error = gcp_error(s.net);
    if (error) fprintf(stderr, "%s\n", error);
    CHECK(!error);
    gcp_unbind(&plan);
}

/* The same where a matrix product is what comes first. */
static void stale_error_before_product(void)
{
    static const float ones[2 * 8] = { 1, -1, 1, -1, 1, -1, 1, -1 };
    gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16, .seed = 3);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 8));
    gcp_plan plan = gcp_plan_make(gcp_linear(x, .out = 4, .no_bias = 1), .inference = 1, .target = gcp_cuda(&gpu));
    gcp_bind(&plan, NULL, 0);
    for (int step = 0; step < 4; step++) {
        gcp_write(&plan, x, ones);
        (void)cudaSetDevice(77);
        gcp_forward(&plan);
    }
    const char *error = gcp_error(net);
    if (error) fprintf(stderr, "%s\n", error);
    CHECK(!error);
    gcp_unbind(&plan);
}

/* ---- Recorded steps -------------------------------------------------------------------------------------------*/

static int graphs_of(const gcp_gpu *g)
{
    int count = 0;
    for (int i = 0; i < GCP_GPU_RECORDINGS; i++) count += g->recordings[i].graph != NULL;
    return count;
}
/* A plan's second step is recorded; without it nothing but time would tell. */
static void recorded(void)
{
    static small s;
    for (int no_graphs = 0; no_graphs < 2; no_graphs++) {
        gcp_gpu own = gcp_gpu_open(.workspace = WORKSPACE, .no_graphs = no_graphs);
        record(&s, 0);
        gcp_plan plan = gcp_plan_make(s.loss, .target = gcp_cuda(&own), .optimizer = GCP_OPTIMIZER_SGD);
        gcp_bind(&plan, NULL, 0);
        for (int step = 1; step <= 3; step++) {
            train(&s, &plan, 1);
            CHECK_INT(graphs_of(&own), ==, step > 1 && !no_graphs);
        }
        gcp_unbind(&plan);
        CHECK_INT(graphs_of(&own), ==, 0);
        gcp_gpu_close(&own);
    }
}

/* ---- Products wherever their operands lie ---------------------------------------------------------------------*/

/* a and b are multiplied, by a weight in either orientation and by a tensor. `apart`: the loss has no more; `together`:
   it also has a concat of them, in whose rows they then lie, and a slice of that. */
typedef struct products {
    gcp_arena arena;
    gcp_tape *net;
    gcp_tensor image, results[5], apart, together;
} products;

static void products_record(products *s, int first, int second)
{
    s->arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    s->net = gcp_tape_make(&s->arena, .ops = 64, .seed = 9);
    gcp_tensor x = s->image = gcp_input(s->net, "image", GCP_SHAPE(2, 3, 3, 8)), *r = s->results;
    gcp_tensor a = gcp_tanh(gcp_conv2d(x, .out = first, .k = 3, .pad = 1)),
               b = gcp_tanh(gcp_conv2d(x, .out = second, .k = 3, .pad = 1)),
               right = gcp_tanh(gcp_conv2d(x, .out = second, .k = 1)), all = gcp_concat(GCP_TENSORS(a, b, right));
    r[0] = gcp_conv2d(b, .out = 8, .k = 1, .name = "c");
    r[1] = gcp_linear(b, .out = 6, .name = "d");
    r[2] = gcp_linear(a, .out = 4, .name = "e");
    r[3] = gcp_conv_transpose2d(b, .out = 4, .k = 1, .name = "f");
    r[4] = gcp_matmul(gcp_reshape(gcp_tanh(gcp_conv2d(x, .out = 2, .k = 1)), GCP_SHAPE(2, 18)),
                      gcp_reshape(right, GCP_SHAPE(18, second)));
    s->apart = gcp_mean(gcp_tanh(r[0]));
    for (int i = 0; i < 5; i++) gcp_keep(r[i]);
    for (int i = 1; i < 5; i++) s->apart = gcp_add(s->apart, gcp_mean(gcp_tanh(r[i])));
    gcp_tensor part = gcp_conv2d(gcp_slice(all, .first = 1, .count = 4), .out = 4, .k = 1, .name = "g");
    s->together = gcp_add(s->apart, gcp_add(gcp_mean(gcp_tanh(all)), gcp_mean(gcp_tanh(part))));
}
/* The bits of all results, and of the gradients of their weights. */
static uint64_t products_bits(products *s, gcp_tensor loss, gcp_gpu *g, const float *pixels)
{
    static const char *const weights[] = { "c/weight", "d/weight", "e/weight", "f/weight" };
    float values[1024];
    uint64_t h = 14695981039346656037u;
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = gcp_cuda(g));
    gcp_bind(&plan, NULL, 0);
    gcp_write(&plan, s->image, pixels);
    gcp_step(&plan);
    for (int i = 0; i < 9; i++) {
        gcp_tensor x = i < 5 ? s->results[i] : gcp_find(s->net, weights[i - 5]);
        CHECK((i < 5 ? gcp_read(&plan, x, values) : gcp_grad(&plan, x, values)) == GCP_OK);
        for (size_t k = 0; k < gcp_elements(x) * sizeof *values; k++)
            h = (h ^ ((unsigned char *)values)[k]) * 1099511628211u;
    }
    gcp_unbind(&plan);
    return h;
}
static void products_anywhere(gcp_math math)
{
    static const int channels[][2] = { { 8, 8 }, { 3, 8 }, { 5, 16 }, { 6, 7 }, { 4, 6 } };
    static products s;
    float pixels[2 * 3 * 3 * 8];
    gcp_gpu own = gcp_gpu_open(.workspace = WORKSPACE, .math = math);
    for (int i = 0; i < 144; i++) pixels[i] = (float)(i * 37 % 101) / 50 - 1;
    for (size_t i = 0; i < sizeof channels / sizeof *channels; i++) {
        products_record(&s, channels[i][0], channels[i][1]);
        CHECK(products_bits(&s, s.apart, &own, pixels) == products_bits(&s, s.together, &own, pixels));
        if (gcp_error(s.net)) fprintf(stderr, "%d and %d: %s\n", channels[i][0], channels[i][1], gcp_error(s.net));
        CHECK(!gcp_error(s.net));
    }
    gcp_gpu_close(&own);
}

/* TF32 that silently computed in float would pass all else. Products are cuBLAS's, the others the kernels' own. */
static void tf32_rounds(void)
{
    static const struct { int channels, out, k; } layers[] = { { 32, 8, 1 }, { 8, 8, 3 }, { 5, 8, 3 } };
    struct cudaDeviceProp card;
    float y[2][2 * 16 * 8], x[2 * 16 * 32];
    if (cudaGetDeviceProperties(&card, 0) != cudaSuccess || card.major < 8) {
        printf("no tensor cores: TF32 is float here\n");
        return;
    }
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i * 37 % 1009) / 1009 + 0.0001f;
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
        double most = 0, size = 0;
        for (int math = 0; math < 2; math++) {
            gcp_gpu own = gcp_gpu_open(.workspace = WORKSPACE, .math = (gcp_math)math);
            gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
            gcp_tape *net = gcp_tape_make(&arena, .ops = 16, .seed = 3);
            gcp_tensor in = gcp_input(net, "x", GCP_SHAPE(2, 4, 4, layers[i].channels));
            gcp_tensor out = gcp_conv2d(in, .out = layers[i].out, .k = layers[i].k, .padding = GCP_PADDING_SAME);
            gcp_plan plan = gcp_plan_make(out, .inference = 1, .target = gcp_cuda(&own));
            gcp_bind(&plan, NULL, 0);
            gcp_write(&plan, in, x);
            gcp_forward(&plan);
            CHECK(gcp_read(&plan, out, y[math]) == GCP_OK);
            gcp_unbind(&plan);
            gcp_gpu_close(&own);
        }
        for (int k = 0; k < 2 * 16 * 8; k++) {
            most = fmax(most, fabs((double)y[0][k] - (double)y[1][k]));
            size = fmax(size, fabs((double)y[0][k]));
        }
        if (most < 1e-5 * size || most > 1e-2 * size) fprintf(stderr, "layer %zu: TF32 %g beside %g\n", i, most, size);
        CHECK(most >= 1e-5 * size && most <= 1e-2 * size);
    }
}

static void workspaces(void)
{
    static small s;
    gcp_gpu little = gcp_gpu_open(.workspace = 16383), least = gcp_gpu_open(.workspace = 16384),
            wish = gcp_gpu_open(.math = GCP_FP32);
    record(&s, 0);
    CHECK(little.blas == NULL && gcp_plan_make(s.loss, .target = gcp_cuda(&little)).core == NULL);
    CHECK(said(s.net, GCP_E_DEVICE, "cuda: .workspace = 16383; cuBLAS takes at least 16384 bytes"));
    CHECK(gcp_plan_make(s.loss, .target = gcp_cuda(&least)).core != NULL);
#ifdef HOSTCUDA
    CHECK_INT(wish.opts.workspace, ==, 32 << 20);    /* the emulation calls itself sm_90 */
#endif
    gcp_gpu_close(&little);
    gcp_gpu_close(&least);
    gcp_gpu_close(&wish);
}

/* ---- The same bits --------------------------------------------------------------------------------------------*/

static uint64_t trained(int index, gcp_gpu *g, gcp_policy policy, int steps, float *loss)
{
    static small s[2];
    record(&s[index], index);
    gcp_plan plan = gcp_plan_make(s[index].loss, .target = gcp_cuda(g), .policy = policy,
                                  .optimizer = GCP_OPTIMIZER_ADAM);
    gcp_bind(&plan, NULL, 0);
    *loss = train(&s[index], &plan, steps);
    uint64_t h = hash(&s[index], &plan);
    gcp_unbind(&plan);
    const char *error = gcp_error(s[index].net);
    if (error) fprintf(stderr, "%s\n", error);
    CHECK(gcp_error(s[index].net) == NULL);
    return h;
}

static void again(int times)
{
    float first, now;
    gcp_gpu plain = gcp_gpu_open(.workspace = WORKSPACE, .no_graphs = 1);
    uint64_t want = trained(0, &gpu, GCP_POLICY_KEEP_ALL, 4, &first);
    CHECK(trained(0, &plain, GCP_POLICY_KEEP_ALL, 4, &now) == want && now == first);      /* recorded or not */
    for (int i = 0; i < times; i++)
        CHECK(trained(0, &gpu, i % 2 ? GCP_POLICY_SEGMENTS : GCP_POLICY_KEEP_ALL, 4, &now) == want && now == first);
    gcp_gpu_close(&plain);
}

#ifdef __unix__
typedef struct job { int index; gcp_gpu *gpu; uint64_t hash; float loss; } job;
static void *work(void *arg)
{
    job *j = (job *)arg;
    j->hash = trained(j->index, j->gpu, GCP_POLICY_SEGMENTS, 5, &j->loss);
    return NULL;
}

/* Two contexts, a thread and a stream each. */
static void two_at_once(void)
{
    gcp_gpu other = gcp_gpu_open(.math = GCP_FP32, .workspace = WORKSPACE);
    float loss;
    uint64_t want = trained(0, &gpu, GCP_POLICY_SEGMENTS, 5, &loss);
    job jobs[2] = { { 0, &gpu, 0, 0 }, { 1, &other, 0, 0 } };
    pthread_t threads[2];
    for (int i = 0; i < 2; i++) pthread_create(&threads[i], NULL, work, &jobs[i]);
    for (int i = 0; i < 2; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < 2; i++) CHECK(jobs[i].hash == want && jobs[i].loss == loss);
    gcp_gpu_close(&other);
}
#endif

/* ---- Far memory: copies on a second stream; moves
   --------------------------------------------------------------------*/

static void far_chain(int graphs)
{
    static float x[3 * 4096], dx[2][3 * 4096];
    const char *list = "F tanh[0]\nF tanh[1]\nO tanh[0]\nF tanh[2]\nO tanh[1]\nF tanh[3]\nA tanh[0]\nF mean[0]\nB "
                       "seed\nM tanh[3]\nB mean[0]\nB tanh[3]\n"
                       "M gradient of tanh[2]\nP tanh[1]\nB tanh[2]\nP tanh[0]\nB tanh[1]\nB tanh[0]\n";
    gcp_gpu plain = gcp_gpu_open(.workspace = WORKSPACE, .no_graphs = !graphs);
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) x[i] = (float)(i % 13) / 6 - 1;
    for (int way = 0; way < 2; way++) {
        gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
        gcp_tape *net = gcp_tape_make(&arena, .ops = 16);
        gcp_tensor image = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(3, 4096))), y = image;
        for (int i = 0; i < 4; i++) y = gcp_tanh(y);
        gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = way ? GCP_POLICY_SEGMENTS : GCP_POLICY_KEEP_ALL,
                                      .list = way ? list : NULL, .target = gcp_cuda(&plain));
        CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK &&
              (!way || (plan.far_bytes == 2 * sizeof x && plan.moved_bytes == 2 * sizeof x)));
        for (int step = 0; step < 4; step++) { gcp_write(&plan, image, x); gcp_step(&plan); }
        gcp_grad(&plan, image, dx[way]);
        const char *error = gcp_error(net);
        if (error) fprintf(stderr, "%s\n", error);
        CHECK(gcp_error(net) == NULL);
        gcp_unbind(&plan);
    }
    CHECK(!memcmp(dx[0], dx[1], sizeof dx[0]));
    gcp_gpu_close(&plain);
}

static void far_copies(void)
{
    far_chain(1);
#ifdef HOSTCUDA
    /* any legal order */
    for (unsigned order = 1; order < 40; order++) { hostcuda_streams(order); far_chain((int)(order % 2)); }
    hostcuda_streams(0);
#else
    for (int i = 0; i < 20; i++) far_chain(i % 2);
#endif
}

/* Slots pass through the workspace in pieces, whatever the order of streams. */
static void slots_away(void)
{
    for (int graphs = 0; graphs < 2; graphs++) {
        gcp_gpu plain = gcp_gpu_open(.workspace = WORKSPACE, .no_graphs = !graphs);
        const gcp_target *target = gcp_cuda(&plain);
        void *slots = target->far_allocate(target->context, GCP_MB(4));
#ifdef HOSTCUDA
        hostcuda_streams((unsigned)graphs + 1);
#endif
        far_slots(target, slots);
#ifdef HOSTCUDA
        hostcuda_streams(0);
#endif
        target->far_release(target->context, slots, GCP_MB(4));
        gcp_gpu_close(&plain);
    }
}

/* ---- Updates ----------------------------------------------------------------------------------------------------*/

/* Adam's first update is the rate, however often another plan updated the tape before. */
static void own_counts(void)
{
    static small s;
    record(&s, 0);
    float was[3], is[3], gradient[3] = { 1, 2, -3 };
    void *memory = NULL;
    gcp_tensor x = gcp_input(s.net, "x", GCP_SHAPE(3)), u = gcp_param(s.net, "u", GCP_SHAPE(3), .init = GCP_INIT_ONES),
               v = gcp_param(s.net, "v", GCP_SHAPE(3), .init = GCP_INIT_ONES);
    gcp_plan first = gcp_plan_make(gcp_mean(gcp_mul(x, u)), .optimizer = GCP_OPTIMIZER_ADAM, .target = gcp_cuda(&gpu));
    gcp_plan second = gcp_plan_make(gcp_mean(gcp_mul(x, v)), .optimizer = GCP_OPTIMIZER_ADAM, .target = gcp_cuda(&gpu));
    size_t room = gcp_plans_room(&first, &second);
    CHECK(cudaMalloc(&memory, room) == cudaSuccess && gcp_bind(&first, memory, room) == GCP_OK &&
          gcp_bind(&second, memory, room) == GCP_OK);
    gcp_write(&first, x, gradient);
    for (int i = 0; i < 10; i++) gcp_step(&first, .lr = 0.1);
    gcp_write(&second, x, gradient);
    gcp_read(&second, v, was);
    gcp_step(&second, .lr = 0.125);
    gcp_read(&second, v, is);
    for (int i = 0; i < 3; i++) CHECK_NEAR(fabs((double)(is[i] - was[i])), 0.125, 1e-5);
    CHECK(gcp_error(s.net) == NULL);
    gcp_unbind(&first);
    gcp_unbind(&second);
    cudaFree(memory);
}

/* ---- Profile --------------------------------------------------------------------------------------------------*/

/* Everything that a plan chooses of training, and files: on the device as on the CPU. */
static gcp_plan chosen(gcp_arena *arena, const gcp_target *target, double *loss, double *norm, float *weights)
{
    static const float images[4 * 6 * 6 * 3] = { 1, 2, 3, -4, 5, 0.5f };
    static const int labels[3] = { 0, 2, 1 };
    gcp_tape *net = gcp_tape_make(arena, .ops = 32, .seed = 3);
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(4, 6, 6, 3)), label = gcp_labels(net, "label", GCP_SHAPE(4));
    gcp_tensor x = image;
    for (int i = 0; i < 3; i++) x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)));
    gcp_tensor end = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 3, .name = "head"), label);
    gcp_plan plan = gcp_plan_make(end, .optimizer = GCP_OPTIMIZER_ADAMW, .weight_decay = 0.1, .clip_norm = 0.5,
                                  .freeze = "batch_norm[1]* conv2d[2]*", .frozen_norms = 1, .rates = "head* 3",
                                  .decays = "*/bias 0", .target = target);
    gcp_bind(&plan, NULL, 0);
    for (int i = 0; i < 3; i++) {
        gcp_write_some(&plan, image, images, 3);
        gcp_write_some(&plan, label, labels, 3);
        *loss = gcp_step(&plan, .lr = gcp_rate_cosine(0.01, (uint64_t)i, 2, 10));
    }
    *norm = gcp_gradient_norm(&plan);
    gcp_read(&plan, gcp_find(net, "head/weight"), weights);
    gcp_read(&plan, gcp_find(net, "conv2d[0]/weight"), weights + 12);
    gcp_read(&plan, gcp_find(net, "batch_norm[1]/running_mean"), weights + 120);
    if (gcp_error(net)) fprintf(stderr, "%s\n", gcp_error(net));
    CHECK(!gcp_error(net));
    return plan;
}
static void *host_take(void *context, size_t size)
{
    static _Alignas(64) unsigned char memory[1 << 20];
    (void)context;
    return size <= sizeof memory ? memory : NULL;
}
static void host_give(void *context, void *memory, size_t size) { (void)context; (void)memory; (void)size; }
static void choices(void)
{
    gcp_arena arenas[2] = { gcp_arena_from(tape_memory[0], sizeof tape_memory[0]),
                            gcp_arena_from(tape_memory[1], sizeof tape_memory[1]) };
    const gcp_target host = { .allocate = host_take, .release = host_give };
    double loss[2], norm[2];
    float weights[2][124], average[600];
    gcp_plan on_host = chosen(&arenas[0], &host, &loss[0], &norm[0], weights[0]),
             on_gpu = chosen(&arenas[1], gcp_cuda(&gpu), &loss[1], &norm[1], weights[1]);
    CHECK_NEAR(loss[0], loss[1], 1e-5);
    CHECK_NEAR(norm[0], norm[1], 1e-5);
    for (int i = 0; i < 124; i++) CHECK_NEAR(weights[0][i], weights[1][i], 2e-4);
    for (int i = 120; i < 124; i++) CHECK(weights[0][i] == 0 && weights[1][i] == 0);
    gcp_tape *gpu_net = on_gpu.tape, *host_net = on_host.tape;
    CHECK(gcp_average_bytes(gpu_net) <= sizeof average && gcp_average(gpu_net, average, 0) == GCP_OK);
    CHECK(gcp_average_swap(gpu_net, average) == GCP_OK);
    CHECK(gcp_save_run(gpu_net, "cuda_run.gcp") == GCP_OK && gcp_resume_run(host_net, "cuda_run.gcp") == 1);
    gcp_read(&on_host, gcp_find(host_net, "head/weight"), weights[0]);
    CHECK(!memcmp(weights[0], weights[1], 12 * sizeof **weights));
    CHECK(gcp_save(gpu_net, "cuda_run.gcp", .style = GCP_STYLE_TORCH) == GCP_OK);
    CHECK(gcp_load(gpu_net, "cuda_run.gcp", .style = GCP_STYLE_TORCH) > 0);
    gcp_read(&on_gpu, gcp_find(gpu_net, "conv2d[0]/weight"), weights[0]);
    CHECK(!memcmp(weights[0], weights[1] + 12, 108 * sizeof **weights));
    if (gcp_error(gpu_net)) fprintf(stderr, "%s\n", gcp_error(gpu_net));
    CHECK(!gcp_error(gpu_net) && !gcp_error(host_net));
    remove("cuda_run.gcp");
    gcp_unbind(&on_gpu);
}

static void profile(void)
{
    static small s;
    record(&s, 0);
    gcp_plan plan = gcp_plan_make(s.loss, .target = gcp_cuda(&gpu), .optimizer = GCP_OPTIMIZER_SGD);
    gcp_bind(&plan, NULL, 0);
    train(&s, &plan, 1);
    CHECK(gcp_profile(&plan, .repeats = 3) > 0 && gcp_error(s.net) == NULL && gcp_steps_done(s.net) == 4);
    gcp_unbind(&plan);
}

/* Another share than in the steps that were recorded. */
static void shares(void)
{
    static const double share[] = { 0, 1, 1, 0.5, 0.5, 0.5, GCP_ZERO, 1 }, factor[] = { 1, 1, 1, 0.5, 0.5, 0.5, 0, 1 };
    float first[24], now[24], pixels[24];
    gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16, .seed = 3);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 12)), w;
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_tanh(gcp_linear(x, .out = 2))), .target = gcp_cuda(&gpu));
    for (int i = 0; i < 24; i++) pixels[i] = (float)(i % 7) - 3;
    gcp_bind(&plan, NULL, 0);
    gcp_write(&plan, x, pixels);
    w = gcp_find(net, "linear[0]/weight");
    for (int i = 0; i < 8; i++) {
        gcp_step(&plan, .share = share[i]);
        gcp_grad(&plan, w, i ? now : first);
        for (int k = 0; i && k < 24; k++) CHECK(now[k] == (float)factor[i] * first[k]);
    }
    CHECK(first[0] != 0 && !gcp_error(net));
    gcp_unbind(&plan);
}

/* ---- One pass for two ops: fewer kernels, the same bits -------------------------------------------------------*/

static unsigned long long launches(void)
{
#ifdef HOSTCUDA
    return hostcuda_launches();
#else
    return 0;
#endif
}

static unsigned long long pageable(void)
{
#ifdef HOSTCUDA
    return hostcuda_pageable();
#else
    return 0;
#endif
}

static gcp_tensor norms(gcp_tensor x, int out, int k, int leaky)
{
    x = gcp_batch_norm(gcp_conv2d(x, .out = out, .k = k, .pad = k / 2));
    return leaky ? gcp_leaky_relu(x, .slope = 0.1) : gcp_relu(x);
}
static gcp_tensor three_norms(gcp_tensor x) { return norms(norms(norms(x, 8, 3, 0), 6, 3, 0), 8, 3, 0); }
static gcp_tensor three_leaky(gcp_tensor x) { return norms(norms(norms(x, 8, 3, 1), 6, 3, 1), 8, 3, 1); }
static gcp_tensor product_norm(gcp_tensor x) { return norms(x, 40, 1, 0); }
static gcp_tensor wide_norms(gcp_tensor x) { return norms(norms(x, 40, 3, 0), 150, 3, 0); }
static gcp_tensor strided_norm(gcp_tensor x) { return gcp_batch_norm(gcp_conv2d(x, .out = 70, .k = 3, .stride = 2)); }
static gcp_tensor many_pixels(gcp_tensor x) { return gcp_batch_norm(gcp_conv2d(x, .out = 5, .kh = 1, .kw = 2)); }
static gcp_tensor grouped_norm(gcp_tensor x)
{
    return gcp_batch_norm(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1, .groups = 4));
}
static gcp_tensor plain_conv(gcp_tensor x)
{
    return gcp_conv2d(gcp_relu(gcp_conv2d(x, .out = 70, .k = 3, .pad = 1)), .out = 8, .k = 1);
}
static gcp_tensor product_conv(gcp_tensor x)
{
    return gcp_conv2d(gcp_leaky_relu(gcp_conv2d(x, .out = 12, .k = 1), .slope = 0.2), .out = 8, .k = 3);
}
static gcp_tensor masked_conv(gcp_tensor x)
{
    return gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 12, .k = 3, .pad = 1)), .k = 2, .stride = 2);
}
static gcp_tensor residual(gcp_tensor x)
{
    gcp_tensor y = gcp_relu(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1));
    return gcp_conv2d(gcp_relu(gcp_add(gcp_conv2d(y, .out = 6, .k = 3, .pad = 1), y)), .out = 8, .k = 1);
}

static gcp_tensor residual_first(gcp_tensor x)
{
    gcp_tensor y = gcp_relu(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1));
    return gcp_conv2d(gcp_relu(gcp_add(y, gcp_conv2d(y, .out = 6, .k = 3, .pad = 1))), .out = 8, .k = 1);
}
static gcp_tensor sum_alone(gcp_tensor x)
{
    gcp_tensor y = gcp_scale(x, .by = 1.5);
    return gcp_add(y, gcp_conv2d(y, .out = 4, .k = 3, .pad = 1));
}

/* fewer: kernels that a step saves. With 34,584 pixels, sums of sums are added. */
static const struct { gcp_tensor (*body)(gcp_tensor x); int size, fewer; } passes[] = {
    { three_norms, 6, 6 }, { three_leaky, 6, 6 }, { product_norm, 12, 1 }, { wide_norms, 9, 4 },
    { strided_norm, 19, 1 }, { many_pixels, 132, 1 }, { grouped_norm, 12, 0 }, { plain_conv, 12, 1 },
    { product_conv, 12, 0 }, { masked_conv, 12, 0 }, { residual, 12, 2 },
    { residual_first, 12, 2 }, { sum_alone, 12, 1 }
};

static uint64_t passed(int net, const gcp_target *target, unsigned long long *kernels)
{
    static small s;
    static float pixels[2 * 132 * 132 * 4];
    const int size = passes[net].size;
    s.arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    s.net = gcp_tape_make(&s.arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(s.net, "x", GCP_SHAPE(2, size, size, 4)), y = passes[net].body(x);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .policy = GCP_POLICY_KEEP_ALL,
                                  .optimizer = GCP_OPTIMIZER_SGD, .target = target);
    for (int i = 0; i < 2 * size * size * 4; i++) pixels[i] = (float)(i * 7 % 13) - 6;
    gcp_bind(&plan, NULL, 0);
    for (int step = 0; step < 2; step++) {
        gcp_write(&plan, x, pixels);
        *kernels = launches();
        gcp_step(&plan, .lr = 0.1);
        *kernels = launches() - *kernels;
    }
    const uint64_t bits = hash(&s, &plan);
    CHECK(!gcp_error(s.net));
    gcp_unbind(&plan);
    return bits;
}

static void together(gcp_math math)
{
    static gcp_op rows[GCP_ROW_COUNT];
    gcp_gpu own = gcp_gpu_open(.workspace = WORKSPACE, .math = math);
    gcp_target apart = *gcp_cuda(&own);
    unsigned long long kernels[2];
    memcpy(rows, apart.kernels, sizeof rows);
    CHECK(rows[GCP_OP_BATCH_NORM].flags & rows[GCP_OP_CONV2D].flags & GCP_FLAG_FUSED);
    rows[GCP_OP_BATCH_NORM].flags = rows[GCP_OP_CONV2D].flags = 0;
    apart.kernels = rows;
    for (int i = 0; i < (int)(sizeof passes / sizeof *passes); i++) {
        const uint64_t bits = passed(i, &apart, &kernels[0]);
        CHECK(passed(i, gcp_cuda(&own), &kernels[1]) == bits);
#ifdef HOSTCUDA
        CHECK_INT(kernels[0] - kernels[1], ==, passes[i].fewer);
#endif
    }
    gcp_gpu_close(&own);
}

/* Parameters whose elements come by fours or not, more than fit into a launch, with rates of their own, after one
   micro-batch or two: the same as one after the other. */
typedef struct updated { gcp_optimizer optimizer; double momentum; int micros; } updated;
static uint64_t updated_bits(const updated *u, const gcp_target *target, unsigned long long *kernels)
{
    static small s;
    s.arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    s.net = gcp_tape_make(&s.arena, .ops = 128, .seed = 5);
    gcp_tensor x = gcp_input(s.net, "x", GCP_SHAPE(2, 3)), y = x;
    for (int i = 0; i < 35; i++) y = gcp_tanh(gcp_linear(y, .out = 3 + i % 3 * 29));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .optimizer = u->optimizer, .momentum = u->momentum,
                                  .accumulate = u->micros, .weight_decay = 0.01, .rates = "linear[7]* 3",
                                  .target = target);
    gcp_bind(&plan, NULL, 0);
    for (int step = 0; step < 4; step++) {
        gcp_write(&plan, x, (float[6]) { 1, -2, 3, -1, 2, -3 });
        *kernels = launches();
        gcp_step(&plan, .lr = 0.1);
        *kernels = launches() - *kernels;
    }
    const uint64_t bits = hash(&s, &plan);
    if (gcp_error(s.net)) fprintf(stderr, "%s\n", gcp_error(s.net));
    CHECK(!gcp_error(s.net));
    gcp_unbind(&plan);
    return bits;
}
static void updates_together(void)
{
    static const updated ways[] = { { GCP_OPTIMIZER_SGD, 0, 2 }, { GCP_OPTIMIZER_SGD, 0.9, 1 },
                                    { GCP_OPTIMIZER_ADAM, 0, 1 }, { GCP_OPTIMIZER_ADAMW, 0, 2 } };
    static gcp_op rows[GCP_ROW_COUNT];
    gcp_gpu own = gcp_gpu_open(.workspace = WORKSPACE);
    gcp_target apart = *gcp_cuda(&own);
    unsigned long long kernels[2];
    memcpy(rows, apart.kernels, sizeof rows);
    CHECK(rows[GCP_ROW_UPDATE].flags & GCP_FLAG_FUSED);
    rows[GCP_ROW_UPDATE].flags = 0;
    apart.kernels = rows;
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        const uint64_t bits = updated_bits(&ways[i], &apart, &kernels[0]);
        CHECK(updated_bits(&ways[i], gcp_cuda(&own), &kernels[1]) == bits);
#ifdef HOSTCUDA
        CHECK_INT(kernels[0] - kernels[1], ==, 70 - 3);
#endif
    }
    gcp_gpu_close(&own);
}

/* ---- What is no number stays none, as on the CPU ---------------------------------------------------------------*/

static int nans(const gcp_target *target, int kind, float bad)
{
    static small s;
    float pixels[2 * 2 * 2 * 4], w[64];
    int found = 0;
    s.arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    s.net = gcp_tape_make(&s.arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(s.net, "x", GCP_SHAPE(2, 2, 2, 4)), y = kind ? gcp_linear(x, .out = 3) : gcp_batch_norm(x);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .optimizer = GCP_OPTIMIZER_ADAM, .target = target,
                                  .clip_norm = kind == 1 ? 0.5 : 0, .clip_value = kind == 2 ? 0.5 : 0);
    for (int i = 0; i < 32; i++) pixels[i] = (float)(i * 7 % 13) - 6;
    pixels[5] = bad;
    gcp_bind(&plan, target->device ? NULL : cpu_memory, target->device ? 0 : sizeof cpu_memory);
    gcp_write(&plan, x, pixels);
    gcp_step(&plan, .lr = 0.1);
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(s.net, i)); i++) {
        gcp_read(&plan, gcp_nth_parameter(s.net, i), w);
        for (size_t k = 0; k < gcp_elements(gcp_nth_parameter(s.net, i)); k++) found += w[k] != w[k];
    }
    for (int i = 0; !gcp_is_nil(gcp_nth_statistic(s.net, i)); i++) {
        gcp_read(&plan, gcp_nth_statistic(s.net, i), w);
        for (size_t k = 0; k < gcp_elements(gcp_nth_statistic(s.net, i)); k++) found += w[k] != w[k];
    }
    CHECK(!gcp_error(s.net));
    gcp_unbind(&plan);
    return found;
}
static void no_numbers(void)
{
    static const int expected[] = { 3, 15, 3 };           /* at least; clip_norm's scale is every weight's */
    for (int kind = 0; kind < 3; kind++)
        for (int infinite = 0; infinite < 2; infinite++) {
            const float bad = infinite ? HUGE_VALF : nanf("");
            const int here = nans(&(gcp_target){ .threads = 1 }, kind, bad);
            CHECK_INT(nans(gcp_cuda(&gpu), kind, bad), ==, here);
            CHECK_INT(here, >=, infinite && kind == 2 ? 0 : expected[kind]);
        }
}

/* ---- .feed: the next batch while the device computes this one (docs/gpu.md) ----------------------------------*/

typedef struct feeder {
    small *s;
    gcp_plan *plan;
    int calls, wrong, waited;               /* waited: in how many calls kernels ran, or copies may wait for them */
} feeder;
static void change(small *s, int step)
{
    for (int i = 0; i < (int)(sizeof s->pixels / sizeof *s->pixels); i++)
        s->pixels[i] = (float)((i + step) * 37 % 101) / 50 - 1;
    s->label[0] = step % 5; s->label[1] = (step + 2) % 5;
}
static void feed(void *context)
{
    feeder *f = (feeder *)context;
    change(f->s, ++f->calls);                               /* load the next batch ... */
    gcp_write(f->plan, f->s->image, f->s->pixels);          /* ... and write it: taken when this returns */
    gcp_write(f->plan, f->s->labels, f->s->label);
}
static void feed_and_look(void *context)
{
    feeder *f = (feeder *)context;
    const unsigned long long before = launches() + pageable();
    feed(f);
    f->waited += launches() + pageable() != before;
    memset(f->s->pixels, 0xFF, sizeof f->s->pixels);       /* taken when gcp_write returns */
    memset(f->s->label, 0xFF, sizeof f->s->label);
}
static void feed_wrongly(void *context)
{
    feeder *f = (feeder *)context;
    float w[4096] = { 0 };
    gcp_tensor parameter = gcp_nth_parameter(f->s->net, 0);
    f->calls++;
    if (f->wrong == 0) gcp_read(f->plan, f->s->image, f->s->pixels);
    if (f->wrong == 1) gcp_step(f->plan, .lr = 0.01);
    if (f->wrong == 2) gcp_write(f->plan, parameter, w);
    if (f->wrong == 3) gcp_tape_reset(f->s->net);
    if (f->wrong == 4) gcp_unbind(f->plan);
    if (f->wrong == 5) gcp_plan_free(f->plan);
    if (f->wrong == 6) gcp_slots_reset(f->s->net);
    if (f->wrong == 7) gcp_profile(f->plan);
}
static void feeding(const gcp_target *target, int ahead, gcp_store store)
{
    static small s;
    uint64_t bits[2];
    double losses[2][6];
    for (int fed = 0; fed < 2; fed++) {
        record(&s, 0);
        gcp_plan plan = gcp_plan_make(s.loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_ADAM,
                                      .target = target, .store = store);
        feeder f = { &s, &plan, 0, 0, 0 };
        gcp_bind(&plan, target->device ? NULL : cpu_memory, target->device ? 0 : sizeof cpu_memory);
        for (int step = 0; step < 6; step++) {
            if (!fed || !step) {
                change(&s, step);
                gcp_write(&plan, s.image, s.pixels);
                gcp_write(&plan, s.labels, s.label);
            }
            losses[fed][step] = fed ? gcp_step(&plan, .lr = 0.01, .feed = feed_and_look, .feed_context = &f)
                                    : gcp_step(&plan, .lr = 0.01);
        }
        CHECK_INT(f.calls, ==, fed ? 6 : 0);
        if (ahead) CHECK(f.waited <= 1);                   /* where pinned memory grows */
        bits[fed] = hash(&s, &plan);
        for (f.wrong = 0; f.wrong < 8; f.wrong++) {
            const uint64_t steps = gcp_steps_done(s.net);
            CHECK(gcp_step(&plan, .lr = 0.01, .feed = feed_wrongly, .feed_context = &f) > 0);
            CHECK(said(s.net, GCP_E_ARGUMENT, "called in .feed") && gcp_steps_done(s.net) == steps + 1);
        }
        gcp_unbind(&plan);
    }
    CHECK(bits[0] == bits[1] && !memcmp(losses[0], losses[1], sizeof losses[0]));
}

/* What fails on the device while .feed writes is the step's; what lies on the device is not staged. */
static void feed_and_fail(void *context)
{
    feeder *f = (feeder *)context;
    snprintf(gpu.message, sizeof gpu.message, "planted");
    CHECK(gcp_write(f->plan, f->s->image, f->s->pixels) == GCP_OK);
}
static void feed_from_device(void *context)
{
    feeder *f = (feeder *)context;
    void *there = NULL;
    CHECK(cudaMalloc(&there, sizeof f->s->pixels) == cudaSuccess &&
          cudaMemcpy(there, f->s->pixels, sizeof f->s->pixels, cudaMemcpyDefault) == cudaSuccess);
    CHECK(gcp_write(f->plan, f->s->image, there) == GCP_OK && !gpu.staged);
    CHECK(cudaFree(there) == cudaSuccess);
}
static void feeding_from_device(void)
{
    static small s;
    record(&s, 0);
    gcp_plan plan = gcp_plan_make(s.loss, .optimizer = GCP_OPTIMIZER_SGD, .target = gcp_cuda(&gpu));
    feeder f = { &s, &plan, 0, 0, 0 };
    gcp_bind(&plan, NULL, 0);
    CHECK(train(&s, &plan, 2) > 0 && gcp_steps_done(s.net) == 2);
    CHECK(gcp_step(&plan, .lr = 0.01, .feed = feed_from_device, .feed_context = &f) > 0 && !gcp_error(s.net));
    CHECK(isnan(gcp_step(&plan, .lr = 0.01, .feed = feed_and_fail, .feed_context = &f)));
    CHECK(said(s.net, GCP_E_DEVICE, "gcp_step: cuda: planted") && gcp_steps_done(s.net) == 3);
    CHECK(train(&s, &plan, 1) > 0 && gcp_steps_done(s.net) == 4);
    gcp_unbind(&plan);
}

/* With .store values are rounded where they lie, also if that is the card's memory: of two bytes, of floats (x is twice
   an input), within the rows of a concat. */
static void halves_on_the_card(void)
{
    enum { N = 2 * 3 * 5 * 6 };
    static float in[N], out[2][N];
    gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x[3], parts[3], loss;
    for (int k = 0; k < 3; k++) x[k] = gcp_input(net, k == 0 ? "a" : k == 1 ? "b" : "c", GCP_SHAPE(2, 3, 5, 6));
    parts[0] = x[0]; parts[1] = x[1]; parts[2] = gcp_tanh(x[2]);
    loss = gcp_add(gcp_mean(gcp_tanh(gcp_concat(parts, 3))), gcp_mean(gcp_mul(x[1], x[1])));
    gcp_plan plan = gcp_plan_make(loss, .inference = 1, .store = GCP_STORE_BF16, .target = gcp_cuda(&gpu));
    void *there = NULL;
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK && cudaMalloc(&there, sizeof in) == cudaSuccess);
    for (int k = 0; k < 3; k++) {
        for (int i = 0; i < N; i++) in[i] = (float)((i * 37 + k * 11) % 101) / 50 - 1;
        CHECK(cudaMemcpy(there, in, sizeof in, cudaMemcpyDefault) == cudaSuccess);
        CHECK(gcp_write(&plan, x[k], there) == GCP_OK && gcp_read(&plan, x[k], out[0]) == GCP_OK);
        CHECK(gcp_write(&plan, x[k], in) == GCP_OK && gcp_read(&plan, x[k], there) == GCP_OK);
        CHECK(cudaMemcpy(out[1], there, sizeof in, cudaMemcpyDefault) == cudaSuccess);
        for (int i = 0; i < N; i++) CHECK(out[0][i] == gcp_bf16_value(gcp_bf16(in[i])) && out[0][i] == out[1][i]);
    }
    CHECK(gcp_forward(&plan) > 0 && !gcp_error(net));
    cudaFree(there);
    gcp_unbind(&plan);
}

/* What is made of parameters alone is not rounded: in groups and one by one the same bits. */
static void lasting(void)
{
    static float in[200];
    double loss[2];
    for (int i = 0; i < 200; i++) in[i] = (float)((i * 37) % 101) / 50 - 1;
    for (int way = 0; way < 24; way++) {
        for (int no_groups = 0; no_groups < 2; no_groups++) {
            gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
            gcp_tape *net = gcp_tape_make(&arena, .ops = 64, .seed = 3);
            gcp_tensor x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(2, 5, 5, 4))), t = gcp_tanh(x),
                       p = gcp_param(net, "p", GCP_SHAPE(2, 5, 5, 4), .std = 1.0);
            gcp_tensor l = p;
            if (way % 3) l = way % 3 == 1 ? gcp_batch_norm(p) : gcp_conv2d(p, .out = 4, .k = 3, .pad = 1);
            gcp_tensor y = way / 3 % 2 ? gcp_add(t, l) : gcp_add(l, t);
            if (way / 6 % 2) y = gcp_leaky_relu(y, .slope = 0.3);
            y = way / 12 ? gcp_tanh(y) : gcp_mul(y, y);
            gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .no_groups = no_groups, .store = GCP_STORE_BF16,
                                          .optimizer = GCP_OPTIMIZER_SGD, .target = gcp_cuda(&gpu));
            CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK && gcp_write(&plan, x, in) == GCP_OK);
            gcp_step(&plan, .lr = 0.1);
            loss[no_groups] = gcp_step(&plan, .lr = 0.1);
            CHECK(!gcp_error(net));
            gcp_unbind(&plan);
        }
        if (loss[0] != loss[1]) fprintf(stderr, "way %d: %.9g, without groups %.9g\n", way, loss[0], loss[1]);
        CHECK(loss[0] == loss[1]);
    }
}

/* The mean of a window that overflows. */
static void endless_mean(void)
{
    float out[1] = { 0 };
    gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 2, 2, 1)), y = gcp_avg_pool(x, .k = 2);
    gcp_plan plan = gcp_plan_make(y, .inference = 1, .target = gcp_cuda(&gpu));
    CHECK(gcp_bind(&plan, NULL, 0) == GCP_OK);
    gcp_write(&plan, x, (const float[]) { INFINITY, 1, 2, 3 });
    gcp_forward(&plan);
    CHECK(gcp_read(&plan, y, out) == GCP_OK && isinf(out[0]) && !gcp_error(net));
    gcp_unbind(&plan);
}

/* A plan's value that is a view of an input is this batch's. */
typedef struct viewed { gcp_plan *plan; gcp_tensor x; } viewed;
static void feed_other(void *context)
{
    const viewed *v = (const viewed *)context;
    gcp_write(v->plan, v->x, (const float[]) { 5 });
}
static void feeding_views(const gcp_target *target)
{
    gcp_arena arena = gcp_arena_from(tape_memory[0], sizeof tape_memory[0]);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 1));
    gcp_plan plan = gcp_plan_make(gcp_flatten(x), .inference = 1, .target = target);
    viewed v = { &plan, x };
    gcp_bind(&plan, target->device ? NULL : cpu_memory, target->device ? 0 : sizeof cpu_memory);
    gcp_write(&plan, x, (const float[]) { 3 });
    CHECK(gcp_forward(&plan, .feed = feed_other, .feed_context = &v) == 3);
    CHECK(gcp_forward(&plan) == 5 && !gcp_error(net));
    gcp_unbind(&plan);
}

/* docs/gpu.md */
static void page(void)
{
    static small s;
    record(&s, 0);
    gcp_gpu card = gcp_gpu_open(.math = GCP_TF32);              /* or GCP_FP32, the default */
    gcp_plan plan = gcp_plan_make(s.loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD,
                                  .target = gcp_cuda(&card));
    gcp_bind(&plan, NULL, 0);                                   /* one allocation of exactly plan.bytes */
    CHECK(train(&s, &plan, 3) > 0 && !gcp_error(s.net));
    gcp_unbind(&plan);
    gcp_gpu_close(&card);
}

static void feedings(void)
{
    feeding(gcp_cuda(&gpu), 1, GCP_STORE_REAL);
    feeding(gcp_cuda(&gpu), 1, GCP_STORE_BF16);
    halves_on_the_card();
    lasting();
    endless_mean();
    feeding(&(gcp_target){ .threads = 1 }, 0, GCP_STORE_BF16);
#ifdef HOSTCUDA
    for (unsigned order = 1; order < 4; order++) {
        hostcuda_streams(order);
        feeding(gcp_cuda(&gpu), 1, order == 2 ? GCP_STORE_BF16 : GCP_STORE_REAL);
    }
    hostcuda_streams(0);
#endif
    feeding_from_device();
    feeding_views(gcp_cuda(&gpu));
    feeding_views(&(gcp_target){ .threads = 1 });
}

static void products_and_updates(void)
{
    together(GCP_FP32);
    together(GCP_TF32);
    updates_together();
    products_anywhere(GCP_FP32);
    products_anywhere(GCP_TF32);
}

int main(int argc, char **argv)
{
    gpu = gcp_gpu_open(.workspace = WORKSPACE);
    if (!gpu.blas) { printf("no GPU: %s\n", gpu.message); return 77; }
    printf("on %s\n", gpu.name);
#ifndef HOSTCUDA
    printf("not seen on a card: how many kernels are launched, whether copies are from pageable memory\n");
#endif
    memory();
    errors();
    waiting(0);
    waiting(1);
    stale_error();
    stale_error_before_product();
    recorded();
    tf32_rounds();
    workspaces();
    again(argc > 2 ? atoi(argv[2]) : 5);
    far_copies();
    slots_away();
    own_counts();
    choices();
    profile();
    shares();
    page();
    feedings();
    no_numbers();
    products_and_updates();
#ifdef __unix__
    two_at_once();
#endif
    for (int k = 0; k < 2; k++)
        device_dags(argc > 1 ? atoi(argv[1]) : 25, gcp_cuda(&gpu), NULL, k ? GCP_STORE_BF16 : GCP_STORE_REAL);
    gcp_gpu_close(&gpu);
#ifdef HOSTCUDA
    CHECK_INT(hostcuda_live_count(), ==, 0);
#endif
    return check_done();
}
