/* gpu.c - what the card reaches and what gcp makes of it: copy and cuBLAS rates; convolutions a layer and pass; whole
   training steps of ResNet-50 (N images, and twice as many) and of the 26-layer CNN under several policies; and where
   the time of one step goes, instruction by instruction. Prints tables and writes one JSON, which is whole after every
   row: a run that is cut off leaves what it has measured, the steps of ResNet-50 first.

       gpu [--out FILE.json] [--batch N] [--small 1] [--steps-only 1]

   FILE.json: "device", "cuda", "cublas", "gcp"; of the card "copy_gb_per_second" and "cublas_tflops"; "steps";
   "profile_of" and "profile"; "convolutions". A step is "recorded" if it was replayed from a CUDA graph.

   Operands are random: a card multiplies zeros faster. Between two events there are as many launches as take 20 ms, so
   that the host's time is not counted. --small 1: sizes that the host emulation gets through. --steps-only 1: for a
   profiler. */
#define _POSIX_C_SOURCE 200809L
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../tests/support/clock.h"
#include "../../examples/networks.h"
#include "gcp_cuda.h"

enum { REPEATS = 7 };                                /* once with --small */
static gcp_gpu gpus[2];                              /* GCP_FP32, GCP_TF32 */
/* How products are multiplied: as .math of a card says, or bfloat16 (GCP_STORE_BF16). */
enum { FP32, TF32, BF16, MATHS };
static const char *const maths[] = { "fp32", "tf32", "bf16" };
static gcp_gpu *gpu_of(int math) { return &gpus[math > FP32]; }
static int small, batch, repeats = REPEATS;

static void fail(const char *what)
{
    fprintf(stderr, "gpu: %s\n", what);
    exit(1);
}

/* ---- The JSON --------------------------------------------------------------------------------------------------*/

/* The file is written beside and renamed after every row: whole at every moment. rows: of the list that is open, and
   one; 0: none is. */
static struct json { char at[1 << 20]; size_t used; int rows; const char *path; } json;

static void json_save(void)
{
    char beside[4096];
    snprintf(beside, sizeof beside, "%s.new", json.path);
    FILE *file = fopen(beside, "w");
    if (!file) fail("--out cannot be written");
    fputs(json.at, file);
    fputs(json.rows == 0 ? "\n}\n" : json.rows == 1 ? "]\n}\n" : "\n  ]\n}\n", file);
    if (fclose(file) || rename(beside, json.path)) fail("--out cannot be written");
}
static void json_add(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    const int size = vsnprintf(json.at + json.used, sizeof json.at - json.used, format, args);
    va_end(args);
    if (size < 0 || (size_t)size >= sizeof json.at - json.used) fail("the JSON is too long");
    json.used += (size_t)size;
}
static void json_list_ends(void)
{
    if (json.rows) json_add("\n  ]");
    json.rows = 0;
}
static void json_list(const char *name)
{
    json_list_ends();
    json_add(",\n  \"%s\": [", name);
    json.rows = 1;
    json_save();
}
#define json_fields(...) (json_list_ends(), json_add(__VA_ARGS__), json_save())
#define json_row(...) \
    (json_add(json.rows++ == 1 ? "\n    { " : ",\n    { "), json_add(__VA_ARGS__), json_add(" }"), json_save())

/* ---- Timing ----------------------------------------------------------------------------------------------------*/

/* Seconds of one call: median, least and most of REPEATS. */
typedef struct figure { double median, least, most; int launches; } figure;
static double spread(figure f) { return 100 * (f.most - f.least) / f.median; }

typedef struct many { void (*issue)(void *arg); void *arg; int launches; } many;
static void issue_many(void *arg)
{
    const many *m = (const many *)arg;
    for (int i = 0; i < m->launches; i++) m->issue(m->arg);
}

static figure figure_of(double *s, int launches)
{
    qsort(s, (size_t)repeats, sizeof *s, by_size);
    return (figure) { s[repeats / 2], s[0], s[repeats - 1], launches };
}

static figure timed(gcp_gpu *gpu, void (*issue)(void *arg), void *arg)
{
    double s[REPEATS];
    const gcp_target *t = gcp_cuda(gpu);
    many m = { issue, arg, 3 };
    t->device->timed(t->context, issue_many, &m);                        /* warms up */
    double one = t->device->timed(t->context, issue_many, &m) / m.launches;
    m.launches = small ? 2 : one > 0.02 / 4 ? 4 : one < 0.02 / 500 ? 500 : (int)(0.02 / one);
    for (int i = 0; i < repeats; i++) s[i] = t->device->timed(t->context, issue_many, &m) / m.launches;
    return figure_of(s, m.launches);
}

static void check(void)
{
    for (int i = 0; i < 2; i++) {
        const char *text = gpus[i].target.device ? gpus[i].target.device->trouble(&gpus[i]) : NULL;
        if (text) fail(text);
    }
}

/* Uniform in [-1, 1). */
static float draw(uint64_t *state)
{
    *state ^= *state << 13; *state ^= *state >> 7; *state ^= *state << 17;
    return (float)(int32_t)(*state >> 32) / 2147483648.0f;
}

enum { SOME = 1 << 20 };
static float *device_floats(size_t count)
{
    static float some[SOME];
    void *memory = NULL;
    if (some[0] == 0) { uint64_t state = 0x9E3779B97F4A7C15u; for (int i = 0; i < SOME; i++) some[i] = draw(&state); }
    if (cudaMalloc(&memory, count * sizeof(float)) != cudaSuccess) fail("out of memory on the device");
    for (size_t i = 0; i < count; i += SOME)
        gpus[0].target.device->copy(&gpus[0], (float *)memory + i, some,
                                    (count - i < SOME ? count - i : SOME) * sizeof(float));
    return (float *)memory;
}

/* A view of one row: of floats, or of halves that are made of them. */
static gcp_view device_values(size_t count, int math)
{
    gcp_view from, none, to;
    memset(&none, 0, sizeof none);
    from = none;
    from.data = device_floats(count);
    from.shape = GCP_SHAPE(1, 1, 1, (int)count);
    from.pitch = (int)count;
    if (math != BF16) return from;
    to = from;
    to.dtype = GCP_DTYPE_BF16;
    if (cudaMalloc(&to.data, count * sizeof(uint16_t)) != cudaSuccess) fail("out of memory on the device");
    gcpi_cuda_map(GCPI_FN_COPY, to, from, none, 0, 0, gpus[0].stream);
    cudaStreamSynchronize(gpus[0].stream);
    cudaFree(from.data);
    return to;
}

/* What came out is no row of zeros: the mean size of its first values. */
static double mean_size(gcp_view made, size_t count)
{
    static float some[4096];
    static uint16_t halves[4096];
    double sum = 0;
    if (count > sizeof some / sizeof *some) count = sizeof some / sizeof *some;
    if (made.dtype != GCP_DTYPE_BF16) gpus[0].target.device->copy(&gpus[0], some, made.data, count * sizeof *some);
    else gpus[0].target.device->copy(&gpus[0], halves, made.data, count * sizeof *halves);
    for (size_t i = 0; i < count; i++) {
        if (made.dtype == GCP_DTYPE_BF16) some[i] = gcp_bf16_value(halves[i]);
        sum += some[i] < 0 ? -(double)some[i] : (double)some[i];
    }
    if (!(sum > 0)) fail("a kernel wrote zeros or NaNs");
    return sum / (double)count;
}

/* ---- The card -------------------------------------------------------------------------------------------------*/

typedef struct rate_job { int math; gcp_view a, b, c; size_t n; } rate_job;
static void issue_copy(void *arg)
{
    rate_job *j = (rate_job *)arg;
    cudaMemcpyAsync(j->a.data, j->b.data, j->n * sizeof(float), cudaMemcpyDefault, gpu_of(j->math)->stream);
}
static void issue_gemm(void *arg)
{
    rate_job *j = (rate_job *)arg;
    const float one = 1, zero = 0;
    const cudaDataType type = j->math == BF16 ? CUDA_R_16BF : CUDA_R_32F;
    int n = (int)j->n;
    cublasGemmEx(gpu_of(j->math)->blas, CUBLAS_OP_N, CUBLAS_OP_N, n, n, n, &one, j->a.data, type, n, j->b.data, type, n,
                 &zero, j->c.data, type, n, j->math == TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                 CUBLAS_GEMM_DEFAULT);
}

static double peak[MATHS];                           /* FLOP/s of cuBLAS */
static void card(void)
{
    const size_t side = small ? 64 : 8192, count = side * side;
    double copy = 0;
    for (int math = 0; math < MATHS; math++) {
        rate_job j = { math, device_values(count, math), device_values(count, math), device_values(count, math),
                       count };
        if (math == FP32) copy = 2.0 * (double)count * sizeof(float) / timed(&gpus[0], issue_copy, &j).median;
        j.n = side;
        peak[math] = 2.0 * (double)count * (double)side / timed(gpu_of(math), issue_gemm, &j).median;
        mean_size(j.c, count);
        cudaFree(j.a.data); cudaFree(j.b.data); cudaFree(j.c.data);
    }
    check();
    printf("copy %.0f GB/s; cuBLAS %zu^3: fp32 %.1f, tf32 %.1f, bf16 %.1f TFLOP/s\n\n", copy / 1e9, side,
           peak[FP32] / 1e12, peak[TF32] / 1e12, peak[BF16] / 1e12);
    json_fields(",\n  \"copy_gb_per_second\": %.1f,\n  \"cublas_tflops\": { \"fp32\": %.2f, \"tf32\": %.2f, "
                "\"bf16\": %.2f }", copy / 1e9, peak[FP32] / 1e12, peak[TF32] / 1e12, peak[BF16] / 1e12);
}

/* ---- Convolutions ---------------------------------------------------------------------------------------------*/

typedef struct layer { const char *name; int n, h, w, ci, co, k, stride, pad; } layer;
static const layer layers[] = {
    { "seed 1->10 5x5", 16, 256, 256, 1, 10, 5, 1, 2 },       { "seed 10->40 5x5", 16, 256, 256, 10, 40, 5, 1, 2 },
    { "seed 40->20 5x5", 16, 256, 256, 40, 20, 5, 1, 2 },     { "7x7s2 3->64 @224", 128, 224, 224, 3, 64, 7, 2, 3 },
    { "3x3 64->64 @56", 128, 56, 56, 64, 64, 3, 1, 1 },       { "3x3 128->128 @28", 128, 28, 28, 128, 128, 3, 1, 1 },
    { "3x3 256->256 @14", 128, 14, 14, 256, 256, 3, 1, 1 },   { "3x3 512->512 @7", 128, 7, 7, 512, 512, 3, 1, 1 },
    { "3x3s2 128->128 @56", 128, 56, 56, 128, 128, 3, 2, 1 }, { "1x1s2 256->512 @56", 128, 56, 56, 256, 512, 1, 2, 0 }
};

typedef struct conv_job { gcpi_cuda_conv conv; int pass; gcp_view x, w, y, workspace; cudaStream_t stream; } conv_job;
static void issue_conv(void *arg)
{
    conv_job *j = (conv_job *)arg;
    const float *w = (const float *)j->w.data;
    if (j->pass == GCPI_CUDA_FORWARD)
        gcpi_cuda_conv_forward(&j->conv, j->x, w, NULL, j->y, NULL, j->workspace.data, j->stream);
    if (j->pass == GCPI_CUDA_DATA)
        gcpi_cuda_conv_backward_data(&j->conv, j->y, w, NULL, j->x, j->workspace.data, j->stream);
    if (j->pass == GCPI_CUDA_WEIGHTS)
        gcpi_cuda_conv_backward_weights(&j->conv, j->x, j->y, j->w, j->workspace.data, j->stream);
}

static gcpi_cuda_conv conv_of(const layer *l, int math)
{
    gcpi_cuda_conv c = { .n = small ? 1 : l->n, .h = small ? 8 : l->h, .w = small ? 8 : l->w, .kh = l->k, .kw = l->k,
                         .sh = l->stride, .sw = l->stride, .pt = l->pad, .pl = l->pad, .dh = 1, .dw = 1, .groups = 1,
                         .ci = small && l->ci > 24 ? 24 : l->ci, .co = small && l->co > 24 ? 24 : l->co,
                         .tf32 = gpu_of(math)->opts.math == GCP_TF32 };
    c.xpitch = c.ci; c.ypitch = c.co;
    c.ho = (c.h + 2 * l->pad - l->k) / l->stride + 1;
    c.wo = (c.w + 2 * l->pad - l->k) / l->stride + 1;
    return c;
}

static void convolution_pass(const layer *l, int math, conv_job *j, gcp_view made, size_t count)
{
    static const char *const passes[] = { "forward", "data", "weights" };
    const gcpi_cuda_conv *c = &j->conv;
    figure f = timed(gpu_of(math), issue_conv, j);
    double rate = 2.0 * c->n * c->ho * c->wo * c->co * c->ci * c->kh * c->kw / f.median;
    printf("  %8s %8.3f ms +-%3.0f %% %6.1f TFLOP/s %3.0f %%", passes[j->pass], 1e3 * f.median, spread(f) / 2,
           rate / 1e12, 100 * rate / peak[math]);
    json_row("\"layer\": \"%s\", \"math\": \"%s\", \"pass\": \"%s\", \"ms_median\": %.4f, \"ms_min\": %.4f, "
             "\"ms_max\": %.4f, \"launches\": %d, "
             "\"mean_size\": %.4g, \"tflops\": %.2f, \"share_of_cublas\": %.3f",
             l->name, maths[math], passes[j->pass], 1e3 * f.median, 1e3 * f.least, 1e3 * f.most, f.launches,
             mean_size(made, count), rate / 1e12, rate / peak[math]);
}

static void convolution(const layer *l, int math)
{
    const gcpi_cuda_conv c = conv_of(l, math);
    const size_t x = (size_t)c.n * (size_t)(c.h * c.w) * (size_t)c.ci;
    const size_t w = (size_t)(c.co * c.ci) * (size_t)(c.kh * c.kw);
    const size_t y = (size_t)c.n * (size_t)(c.ho * c.wo) * (size_t)c.co, counts[] = { y, x, w };
    size_t work = 256;
    for (int pass = 0; pass < 3; pass++) {
        const size_t bytes = gcpi_cuda_conv_workspace(&c, pass, math == BF16 ? GCP_STORE_BF16 : GCP_STORE_REAL);
        if (bytes > work) work = bytes;
    }
    conv_job j = { c, 0, device_values(x, math), device_values(w, FP32), device_values(y, math),
                   device_values(work / sizeof(float) + 1, FP32), gpu_of(math)->stream };
    const gcp_view made[] = { j.y, j.x, j.w };
    printf("%-20s %s ", l->name, maths[math]);
    for (j.pass = 0; j.pass < 3; j.pass++) convolution_pass(l, math, &j, made[j.pass], counts[j.pass]);
    printf("\n");
    cudaFree(j.x.data); cudaFree(j.w.data); cudaFree(j.y.data); cudaFree(j.workspace.data);
    check();
}

static void convolutions(void)
{
    const size_t count = sizeof layers / sizeof *layers;
    json_list("convolutions");
    for (size_t i = small ? count - 3 : 0; i < count; i++)
        for (int math = 0; math < MATHS; math++) convolution(&layers[i], math);
}

/* ---- Training steps -------------------------------------------------------------------------------------------*/

typedef struct run { const char *name; gcp_policy policy; int checkpoints, replay; } run;

/* A network on the tape, its plan, and one batch of random data on the device. */
typedef struct job { const char *title; gcp_tensor loss, image, labels; int classes, math; gcp_plan plan; } job;

static void job_begin(job *j, const run *r)
{
    const size_t values = gcp_elements(j->image), samples = gcp_elements(j->labels);
    float *pixels = (float *)calloc(values, sizeof *pixels);
    int *label = (int *)calloc(samples, sizeof *label);
    uint64_t state = 1;
    if (!pixels || !label) fail("out of memory");
    for (size_t i = 0; i < values; i++) pixels[i] = draw(&state);
    for (size_t i = 0; i < samples; i++) label[i] = (int)(i * 7 % (size_t)j->classes);
    j->plan = gcp_plan_make(j->loss, .policy = r->policy, .checkpoints = r->checkpoints, .replay = r->replay,
                            .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9, .target = gcp_cuda(gpu_of(j->math)),
                            .store = j->math == BF16 ? GCP_STORE_BF16 : GCP_STORE_REAL);
    gcp_bind(&j->plan, NULL, 0);
    gcp_write(&j->plan, j->image, pixels);
    gcp_write(&j->plan, j->labels, label);
    free(pixels); free(label);
}
static int images_of(const job *j) { return gcp_shape_of(j->image).d[0]; }

/* Its plan is the only one that is bound: whatever was recorded is its step. */
static int recorded(const gcp_gpu *gpu)
{
    for (int i = 0; i < GCP_GPU_RECORDINGS; i++)
        if (gpu->recordings[i].taken && gpu->recordings[i].graph) return 1;
    return 0;
}

static void steps_failed(const job *j, const run *r)        /* the card has not the memory, most likely */
{
    const char *text = gcp_error(j->loss.tape);
    printf("%-12s %3d %-10s %s\n", j->title, images_of(j), r->name, text);
    json_row("\"network\": \"%s\", \"batch\": %d, \"policy\": \"%s\", \"math\": \"%s\", \"bytes\": %zu, "
             "\"recorded\": false, \"failed\": true",
             j->title, images_of(j), r->name, maths[j->math], j->plan.bytes);
}

static void steps(job *j, const run *r)
{
    double s[REPEATS];
    const gcp_plan *plan = &j->plan;
    job_begin(j, r);
    for (int i = -3; i < repeats; i++) {             /* as it stands, recorded, replayed */
        double start = seconds_now();
        gcp_step(&j->plan, .lr = 0.001);
        if (i >= 0) s[i] = seconds_now() - start;
    }
    if (gcp_error(j->loss.tape)) steps_failed(j, r);
    else {
        const figure f = figure_of(s, 1);
        const int images = images_of(j), replayed = recorded(gpu_of(j->math));
        printf("%-12s %3d %-10s %s %9.2f ms +-%3.0f %%  %8.1f images/s  %9.1f MiB, %d reruns of units%s\n", j->title,
               images, r->name, maths[j->math], 1e3 * f.median, spread(f) / 2, images / f.median,
               (double)plan->bytes / 1048576, plan->reruns, replayed ? "" : ", NOT RECORDED");
        json_row("\"network\": \"%s\", \"batch\": %d, \"policy\": \"%s\", \"math\": \"%s\", \"ms_median\": %.3f, "
                 "\"ms_min\": %.3f, \"ms_max\": %.3f, \"images_per_second\": %.1f, \"bytes\": %zu, "
                 "\"after_forward\": %zu, \"reruns\": %d, \"recorded\": %s",
                 j->title, images, r->name, maths[j->math], 1e3 * f.median, 1e3 * f.least, 1e3 * f.most,
                 images / f.median, plan->bytes, plan->after_forward, plan->reruns, replayed ? "true" : "false");
    }
    gcp_unbind(&j->plan);
}

static unsigned char tape_memory[GCP_MB(96)];
static gcp_tape *new_tape(gcp_arena *arena, int ops)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(arena, .ops = ops);
}
static job residual_job(gcp_arena *arena, int images, int math)
{
    gcp_tape *net = new_tape(arena, 512);
    const network n = small ? cifar_resnet(net, images, 1) : resnet50(net, images, 224, 1000);
    return (job) { .title = small ? "resnet8" : "resnet50", .loss = n.loss, .image = n.image, .labels = n.labels,
                   .classes = small ? 10 : 1000, .math = math };
}

static void networks(void)
{
    static const run resnet_runs[] = { { "keep_all", GCP_POLICY_KEEP_ALL, 0, 0 },
                                       { "segments", GCP_POLICY_SEGMENTS, 0, 0 },
                                       { "sqrt", GCP_POLICY_SQRT, 0, 0 } };
    static const run checkpoint_runs[] = {
        { "keep_all", GCP_POLICY_KEEP_ALL, 0, 0 },       { "k0_replay", GCP_POLICY_CHECKPOINTS, 0, 1 },
        { "k2_retain", GCP_POLICY_CHECKPOINTS, 2, 0 },   { "k4_retain", GCP_POLICY_CHECKPOINTS, 4, 0 },
        { "k4_replay", GCP_POLICY_CHECKPOINTS, 4, 1 },   { "k8_retain", GCP_POLICY_CHECKPOINTS, 8, 0 },
        { "k16_retain", GCP_POLICY_CHECKPOINTS, 16, 0 }, { "sqrt", GCP_POLICY_SQRT, 0, 0 }
    };
    enum {
        RESNETS = sizeof resnet_runs / sizeof *resnet_runs,
        RUNS = sizeof checkpoint_runs / sizeof *checkpoint_runs
    };
    gcp_arena arena;
    json_list("steps");
    for (int i = 0; i < 2 * RESNETS; i += small ? RESNETS : 1)
        for (int math = TF32; math < MATHS; math++) {
            job j = residual_job(&arena, (small ? 1 : batch) << (i / RESNETS), math);
            steps(&j, &resnet_runs[i % RESNETS]);
        }
    for (int i = small ? RUNS - 1 : 0; i < RUNS; i++) {
        job j = { .title = "tf2_checkpointing", .classes = 2, .math = GCP_FP32 };
        j.loss = tf2_checkpointing(new_tape(&arena, 128), small ? 8 : 256, small ? 1 : 16, &j.image, &j.labels);
        steps(&j, &checkpoint_runs[i]);
    }
}

/* ---- Where a step's time goes ---------------------------------------------------------------------------------*/

typedef struct text { char at[1 << 17]; size_t used; } text;
static void text_write(void *context, const char *s, size_t size)
{
    text *t = (text *)context;
    if (size > sizeof t->at - 1 - t->used) fail("a report is too long");
    memcpy(t->at + t->used, s, size);
    t->used += size;
}

/* Whether a group's name (a/b[0]+relu[0]) has the op (a/relu[0]) among its members, or is it. */
static int has_member(const char *group, const char *op)
{
    const char *slash = strrchr(op, '/'), *member = slash ? slash + 1 : op;
    const size_t folder = (size_t)(member - op), size = strlen(member);
    if (!strcmp(group, op)) return 1;
    if (strncmp(group, op, folder)) return 0;
    for (const char *m = group + folder; m; m = strchr(m, '+') ? strchr(m, '+') + 1 : NULL)
        if (!strncmp(m, member, size) && (m[size] == '+' || !m[size])) return 1;
    return 0;
}

/* The op's output: the second column of its line in the table of layers. "": it has none. */
static void output_of(const char *table, const char *op, char *output)
{
    char group[256];
    output[0] = 0;
    for (const char *line = table; line; line = strchr(line, '\n') ? strchr(line, '\n') + 1 : NULL)
        if (sscanf(line, "%255s %63s", group, output) == 2 && has_member(group, op)) return;
    output[0] = 0;
}

/* Of an update's parameter, or of the weight of an op. "": there is none. */
static void parameter_of(gcp_tape *net, char kind, const char *op, char *shape)
{
    char path[300];
    snprintf(path, sizeof path, kind == 'U' ? "%s" : "%s/weight", op);
    const gcp_tensor x = gcp_find(net, path);
    const gcp_shape s = gcp_shape_of(x);
    shape[0] = 0;
    if (!gcp_is_nil(x)) snprintf(shape, 64, "%dx%dx%dx%d", s.d[0], s.d[1], s.d[2], s.d[3]);
}

/* a/b[0]+relu[1]: b+relu. */
static void op_of(const char *name, char *op)
{
    const char *slash = strrchr(name, '/');
    int inside = 0;
    for (const char *c = slash ? slash + 1 : name; *c; c++) {
        inside += *c == '[';
        if (!inside) *op++ = *c;
        inside -= *c == ']';
    }
    *op = 0;
}

static void profile_rows(const gcp_plan *plan)
{
    static text list, table;                         /* zeros behind what was written */
    char kind, name[256], op[256], output[64], parameter[64];
    int lines = 0;
    gcp_list_print(plan, (gcp_writer) { text_write, &list });
    gcp_layers_print(plan, (gcp_writer) { text_write, &table });
    for (const char *c = list.at; *c; c++) lines += *c == '\n';
    const char *line = list.at;
    for (int i = plan->instructions - lines; i < plan->instructions; i++, line = strchr(line, '\n') + 1) {
        if (i < 0 || sscanf(line, "%c %255[^\n]", &kind, name) != 2) continue;         /* how the list opens */
        op_of(name, op);
        output_of(table.at, name, output);
        parameter_of(plan->tape, kind, name, parameter);
        json_row("\"kind\": \"%c\", \"op\": \"%s\", \"name\": \"%s\", \"output\": \"%s\", \"parameter\": \"%s\", "
                 "\"ms\": %.4f", kind, op, name, output, parameter, 1e3 * gcp_instruction_seconds(plan, i));
    }
}

static void profile(void)
{
    const run keep_all = { "keep_all", GCP_POLICY_KEEP_ALL, 0, 0 };
    gcp_arena arena;
    job j = residual_job(&arena, small ? 1 : batch, TF32);
    job_begin(&j, &keep_all);
    const double ms = 1e3 * gcp_profile(&j.plan, .lr = 0.001, .repeats = small ? 1 : 5);
    const char *trouble = gcp_error(j.loss.tape);
    printf("\n%s %d keep_all, instruction by instruction: %.2f ms in %d%s%s\n", j.title, images_of(&j), ms,
           j.plan.instructions, trouble ? ": " : "", trouble ? trouble : "");
    json_fields(",\n  \"profile_of\": { \"network\": \"%s\", \"batch\": %d, \"policy\": \"keep_all\", "
                "\"math\": \"tf32\", \"instructions\": %d, \"ms\": %.3f, \"failed\": %s }",
                j.title, images_of(&j), j.plan.instructions, ms, trouble ? "true" : "false");
    json_list("profile");
    if (!trouble) profile_rows(&j.plan);
    gcp_unbind(&j.plan);
}

int main(int argc, char **argv)
{
    const char *out = "gpu.json";
    int runtime = 0, blas = 0, steps_only = 0;
    batch = 128;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--out")) out = argv[i + 1];
        else if (!strcmp(argv[i], "--batch")) batch = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--small")) small = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--steps-only")) steps_only = atoi(argv[i + 1]);
        else { fprintf(stderr, "gpu [--out FILE.json] [--batch N] [--small 1] [--steps-only 1]\n"); return 2; }
    }
    if (small) repeats = 1;
    for (int math = 0; math < 2; math++) {
        gpus[math] = gcp_gpu_open(.math = (gcp_math)math, .workspace = small ? 1 << 16 : (size_t)32 << 20);
        gcp_cuda(&gpus[math]);
    }
    if (!gpus[0].blas) { printf("no GPU: %s\n", gpus[0].message); return 77; }
    json.path = out;
    setvbuf(stdout, NULL, _IOLBF, BUFSIZ);           /* so that nothing is lost where the run is cut off */
    cudaRuntimeGetVersion(&runtime);
    cublasGetVersion(gpus[0].blas, &blas);
    printf("%s, CUDA %d, cuBLAS %d\n", gpus[0].name, runtime, blas);
    json_fields("{\n  \"device\": \"%s\", \"cuda\": %d, \"cublas\": %d, \"gcp\": \"%d.%d.%d\"", gpus[0].name, runtime,
                blas, GCP_VERSION_MAJOR, GCP_VERSION_MINOR, GCP_VERSION_PATCH);
    if (!steps_only) card();
    networks();
    if (!steps_only) {
        profile();
        convolutions();
    }
    for (int math = 0; math < 2; math++) gcp_gpu_close(&gpus[math]);
    return 0;
}
