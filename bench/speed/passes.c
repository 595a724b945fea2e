/* passes.c - what is bound by memory: gcp's elementwise ops beside this machine's triad rate and, in bfloat16, beside
   themselves in float; fused passes beside the same ops one by one; and what a step costs beyond its kernels.

       passes [--threads N] [--rounds 9] [--out FOLDER]

   Tensors are 8x56x56x256 (25.7 MB), the largest of ResNet-50's at batch 8; 8x28x28x512 and 32x64x64x40 follow. Bytes
   are what an op must read and write; the triad's are its three arrays'. All that is compared runs in turn in each of
   the rounds; a figure is the median. Prints a table and writes passes.csv:
   name,shape,threads,ms,gb_per_second,beside,ratio, where beside names what the ratio is to: the triad's rate, the time
   of the op in float, or that of the ops one by one. Behind a convolution its time alone is taken off both sides:
   there the sums are made while its output is in cache, as in a step. An instruction's cost is that of a chain of 2,000
   ops on one value, all of which fits L1, kernels included. */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "../../tests/support/clock.h"
#include "../../tests/support/table.h"

enum { MOST_ROUNDS = 64, CHAIN = 2000, NARROW = 64 };       /* NARROW: channels of a convolution's input */
static gcp_target target;
static int rounds = 9;
static FILE *csv;

static void *memory_of(size_t bytes)
{
    void *p = aligned_alloc(64, gcpi_round(bytes, 64));
    if (!p) { fprintf(stderr, "passes: out of memory\n"); exit(1); }
    return p;
}

/* ---- Operands: x and other come in, y and dy live beside them, weights are a value a channel ---- */

enum { X, OTHER, Y, DY, TENSORS };
enum { MEAN, SCALE, GAMMA, BETA, RUNNING_MEAN, RUNNING_VAR, VALUES };
static gcp_shape shape;
static gcp_real *tensors[TENSORS], *values[VALUES];
static gcpi_half *halves[TENSORS];               /* the same tensors in two bytes */
static gcp_store store;                          /* of the calls that follow */
static unsigned char *mask;
static void *workspace;
static gcp_real *narrow, *weights;
static gcpi_attributes rectifier, norm, conv;

static void operands_open(int n, int h, int c)
{
    gcpi_image_out(&shape, n, h, h, c);
    size_t count = gcpi_count(shape);
    for (int t = 0; t < TENSORS; t++) {
        tensors[t] = (gcp_real *)memory_of(count * sizeof(gcp_real));
        for (size_t i = 0; i < count; i++) tensors[t][i] = (gcp_real)((int)(i * 7919 % 2001) - 1000) / 997;
        halves[t] = (gcpi_half *)memory_of(count * sizeof **halves);
        for (size_t i = 0; i < count; i++) halves[t][i] = gcpi_half_of(tensors[t][i]);
    }
    for (int v = 0; v < VALUES; v++) {
        values[v] = (gcp_real *)memory_of((size_t)c * sizeof(gcp_real));
        for (int i = 0; i < c; i++) values[v][i] = v == SCALE || v == GAMMA || v == RUNNING_VAR ? 1 : (gcp_real)0.1;
    }
    mask = (unsigned char *)memory_of(count / 8 + 1);
    memset(mask, 0x5A, count / 8 + 1);
    narrow = (gcp_real *)memory_of(gcpi_pixels(shape) * NARROW * sizeof(gcp_real));
    weights = (gcp_real *)memory_of((size_t)c * NARROW * sizeof(gcp_real));
    for (size_t i = 0; i < gcpi_pixels(shape) * NARROW; i++) narrow[i] = (gcp_real)((int)(i * 31 % 101) - 50) / 50;
    for (size_t i = 0; i < (size_t)c * NARROW; i++) weights[i] = (gcp_real)((int)(i * 17 % 61) - 30) / 300;
    conv.conv = (gcpi_conv_attr){ .n = n,
                                  .h = h,
                                  .w = h,
                                  .ci = NARROW,
                                  .ho = h,
                                  .wo = h,
                                  .co = c,
                                  .kh = 1,
                                  .kw = 1,
                                  .sh = 1,
                                  .sw = 1,
                                  .dh = 1,
                                  .dw = 1,
                                  .groups = 1 };
    const gcp_cost_call cost = { .target = &target, .store = GCP_STORE_BF16 };
    workspace = memory_of(gcpi_conv2d_room(&conv.conv, &target, GCP_STORE_REAL) + gcpi_sum_workspace(&cost, shape, 2) +
                          gcpi_block_workspace(GCP_STORE_BF16, shape, &target, 1));
    norm.norm.epsilon = 1e-5; norm.norm.momentum = 0.1;
}

static void operands_close(void)
{
    for (int t = 0; t < TENSORS; t++) { free(tensors[t]); free(halves[t]); }
    for (int v = 0; v < VALUES; v++) free(values[v]);
    free(mask);
    free(narrow);
    free(weights);
    free(workspace);
}

static gcp_view view(void *data)
{
    gcp_view v = { .data = data, .shape = shape, .pitch = shape.d[3] };
    return v;
}

static gcp_view tensor(int t)
{
    gcp_view v = view(store ? (void *)halves[t] : (void *)tensors[t]);
    if (store) v.dtype = GCP_DTYPE_BF16;
    return v;
}

typedef struct bench_call { gcp_call call; gcp_view in[8], out[4], din[8], dout[2]; } bench_call;
static void call_begin(bench_call *b, const gcpi_attributes *attributes)
{
    memset(b, 0, sizeof *b);
    b->call.attributes = attributes;
    b->call.in = b->in; b->call.out = b->out; b->call.din = b->din; b->call.dout = b->dout;
    b->call.workspace = workspace; b->call.training = b->call.commit = 1; b->call.target = &target;
    b->call.store = store;
    for (int i = 0; i < 8; i++) b->in[i] = b->din[i] = view(NULL);
    for (int i = 0; i < 4; i++) b->out[i] = view(NULL);
    b->dout[0] = b->dout[1] = view(NULL);
    b->call.inputs = b->call.outputs = 1;
}

/* ---- What is measured ---- */

GCPI_BODY void triad_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] + (gcp_real)0.5 * b[i];
}
GCPI_WIDE_SPAN(triad_span)

static void triad(void)
{
    bench_call b;
    call_begin(&b, NULL);
    b.in[0] = tensor(X); b.in[1] = tensor(OTHER); b.out[0] = tensor(Y);
    const gcp_view *v[3] = { &b.in[0], &b.in[1], &b.out[0] };
    gcpi_map(&b.call, triad_span, 0, v, 3, 2, NULL, 0);
}

static void add(void)
{
    bench_call b;
    call_begin(&b, NULL);
    b.in[0] = tensor(X); b.in[1] = tensor(OTHER); b.out[0] = tensor(Y);
    gcpi_add_forward(&b.call);
}

static void add_in_place(void)
{
    bench_call b;
    call_begin(&b, NULL);
    b.in[0] = tensor(Y); b.in[1] = tensor(OTHER); b.out[0] = tensor(Y);
    gcpi_add_forward(&b.call);
}

static void relu(void)
{
    bench_call b;
    call_begin(&b, &rectifier);
    b.in[0] = tensor(X); b.out[0] = tensor(Y);
    gcpi_rectify_forward(&b.call);
}

static void relu_masked(void)                     /* in place, with its mask */
{
    bench_call b;
    call_begin(&b, &rectifier);
    b.in[0] = tensor(Y); b.out[0] = tensor(Y); b.out[1].data = mask;
    b.call.outputs = 2;
    gcpi_rectify_forward(&b.call);
}

static void relu_back(void)                       /* in place, by the sign of y */
{
    bench_call b;
    call_begin(&b, &rectifier);
    b.out[0] = tensor(Y); b.din[0] = tensor(DY); b.dout[0] = tensor(DY);
    gcpi_rectify_backward(&b.call);
}

static void relu_masked_back(void)
{
    bench_call b;
    call_begin(&b, &rectifier);
    b.out[1].data = mask; b.din[0] = tensor(DY); b.dout[0] = tensor(DY);
    b.call.outputs = 2;
    gcpi_rectify_backward(&b.call);
}

/* Pointwise ops: y of x; dx in the place of dy, by x or y. */
static void pointwise(void (*forward)(const gcp_call *c))
{
    bench_call b;
    call_begin(&b, &rectifier);
    b.in[0] = tensor(X); b.out[0] = tensor(Y);
    forward(&b.call);
}
static void pointwise_back(void (*backward)(const gcp_call *c), int reads)
{
    bench_call b;
    call_begin(&b, &rectifier);
    if (reads == X) b.in[0] = tensor(X);
    else b.out[0] = tensor(reads);
    b.din[0] = tensor(DY); b.dout[0] = tensor(DY);
    backward(&b.call);
}
static void tanh_of(void) { pointwise(gcpi_tanh_forward); }
static void tanh_back(void) { pointwise_back(gcpi_tanh_backward, Y); }
static void sigmoid(void) { pointwise(gcpi_sigmoid_forward); }
static void sigmoid_back(void) { pointwise_back(gcpi_sigmoid_backward, Y); }
static void gelu(void) { pointwise(gcpi_gelu_forward); }
static void gelu_back(void) { pointwise_back(gcpi_gelu_backward, X); }

static void stats_call(bench_call *b)
{
    call_begin(b, &norm);
    b->in[0] = tensor(X); b->in[1].data = values[RUNNING_MEAN]; b->in[2].data = values[RUNNING_VAR];
    b->out[0].data = values[MEAN]; b->out[1].data = values[SCALE];
}
static void stats(void)
{
    bench_call b;
    stats_call(&b);
    gcpi_batch_stats_forward(&b.call);
}

static void conv_call(bench_call *b)              /* 1x1, from NARROW channels */
{
    call_begin(b, &conv);
    b->in[0].data = narrow; b->in[0].pitch = NARROW; b->in[1].data = weights; b->out[0] = tensor(X);
    b->call.inputs = 2;
}
static void conv_alone(void)
{
    bench_call b;
    conv_call(&b);
    gcpi_conv2d_forward(&b.call);
}
static void conv_then_stats(void) { conv_alone(); stats(); }
static void conv_with_stats(void)
{
    static double sums[1 << 16];
    bench_call b, s;
    conv_call(&b);
    stats_call(&s);
    s.call.workspace = sums;
    gcpi_conv2d_stats(&b.call, &s.call);
}

static void norm_operands(bench_call *b, int first)
{
    for (int i = 0; i < 4; i++) b->in[first + i].data = values[MEAN + i];
    b->call.inputs = first + 4;
}

static void apply(void)
{
    bench_call b;
    call_begin(&b, &rectifier);
    b.in[0] = tensor(X); b.in[1] = tensor(OTHER); b.out[0] = tensor(Y);
    norm_operands(&b, 2);
    gcpi_apply_forward(&b.call);
}

static void norm_back_call(const gcp_call *fused)
{
    bench_call b;
    call_begin(&b, &norm);
    b.in[0] = tensor(X); b.din[0] = tensor(DY); b.dout[0] = tensor(DY);
    norm_operands(&b, 1);
    b.call.fused = fused;
    gcpi_batch_norm_backward(&b.call);
}
static void norm_back(void) { norm_back_call(NULL); }

static void unfused_forward(void)
{
    bench_call b;
    stats();
    call_begin(&b, &norm);
    b.in[0] = tensor(X); b.out[0] = tensor(Y);
    norm_operands(&b, 1);
    gcpi_batch_norm_forward(&b.call);
    add_in_place();
    call_begin(&b, &rectifier);
    b.in[0] = tensor(Y); b.out[0] = tensor(Y);
    gcpi_rectify_forward(&b.call);
}
static void fused_forward(void) { stats(); apply(); }
static void unfused_block(void) { conv_alone(); unfused_forward(); }
static void fused_block(void) { conv_with_stats(); apply(); }

static void unfused_backward(void) { relu_back(); norm_back(); }
static void fused_backward(void)
{
    bench_call b;
    call_begin(&b, &rectifier);
    norm_back_call(&b.call);
}

/* ---- Measuring ---- */

/* seconds; spread: half of slowest less fastest, as a share */
typedef struct figure { double median, spread; } figure;
static figure figure_of(double *seconds)
{
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    return (figure){ seconds[rounds / 2], (seconds[rounds - 1] - seconds[0]) / 2 / seconds[rounds / 2] };
}

static double seconds_of(void (*run)(void))
{
    double begin = seconds_now();
    run();
    return seconds_now() - begin;
}

/* All in turn; the last may be missing, and is nothing then, or is in bfloat16. */
static void figures_of(void (*const run[3])(void), gcp_store last, figure figures[3])
{
    double seconds[3][MOST_ROUNDS];
    for (int i = 0; i < rounds; i++)
        for (int k = 0; k < 3 && run[k]; k++) {
            store = k == 2 ? last : GCP_STORE_REAL;
            seconds[k][i] = seconds_of(run[k]);
        }
    store = GCP_STORE_REAL;
    for (int k = 0; k < 3; k++) figures[k] = run[k] ? figure_of(seconds[k]) : (figure){ 0, 0 };
}

/* passes: how often the tensor's bytes are read or written; ratio of rates to the triad's, which goes through three. */
static void memory_bound(const char *name, void (*run)(void), double passes)
{
    figure f[3];
    double bytes = passes * (double)gcpi_count(shape) * sizeof(gcp_real), ratio;
    figures_of((void (*const[3])(void)){ run, triad, run }, GCP_STORE_BF16, f);
    ratio = bytes / f[0].median / (3.0 * (double)gcpi_count(shape) * sizeof(gcp_real) / f[1].median);
    printf("  %-34s %7.2f ms +-%3.0f %% %6.1f GB/s   %.2f of the triad's rate; bf16 %7.2f ms +-%3.0f %%: %.2f\n", name,
           1e3 * f[0].median, 100 * f[0].spread, 1e-9 * bytes / f[0].median, ratio, 1e3 * f[2].median,
           100 * f[2].spread, f[2].median / f[0].median);
    fprintf(csv, "%s,%dx%dx%dx%d,%d,%.3f,%.1f,triad,%.3f\n", name, shape.d[0], shape.d[1], shape.d[2], shape.d[3],
            target.threads, 1e3 * f[0].median, 1e-9 * bytes / f[0].median, ratio);
    fprintf(csv, "%s in bf16,%dx%dx%dx%d,%d,%.3f,%.1f,float,%.3f\n", name, shape.d[0], shape.d[1], shape.d[2],
            shape.d[3], target.threads, 1e3 * f[2].median, 0.5e-9 * bytes / f[2].median, f[2].median / f[0].median);
}

/* less: taken off both, or NULL. */
static void fusion(const char *name, void (*fused)(void), void (*unfused)(void), void (*less)(void))
{
    figure f[3];
    figures_of((void (*const[3])(void)){ fused, unfused, less }, GCP_STORE_REAL, f);
    double own = f[0].median - f[2].median, apart = f[1].median - f[2].median;
    printf("  %-34s %7.2f ms +-%3.0f %%   one by one %7.2f ms +-%3.0f %%: %.2f\n", name, 1e3 * own, 100 * f[0].spread,
           1e3 * apart, 100 * f[1].spread, apart / own);
    fprintf(csv, "%s,%dx%dx%dx%d,%d,%.3f,,one by one,%.3f\n", name, shape.d[0], shape.d[1], shape.d[2], shape.d[3],
            target.threads, 1e3 * own, apart / own);
}

static void one_size(int n, int h, int c)
{
    operands_open(n, h, c);
    printf("%dx%dx%dx%d\n", n, h, h, c);
    for (int i = 0; i < 3; i++) triad();
    memory_bound("add", add, 3);
    memory_bound("relu", relu, 2);
    memory_bound("relu in place with mask", relu_masked, 2 + 1.0 / 32);
    memory_bound("relu backward by sign", relu_back, 3);
    memory_bound("relu backward by mask", relu_masked_back, 2 + 1.0 / 32);
    memory_bound("tanh", tanh_of, 2);
    memory_bound("tanh backward", tanh_back, 3);
    memory_bound("sigmoid", sigmoid, 2);
    memory_bound("sigmoid backward", sigmoid_back, 3);
    memory_bound("gelu", gelu, 2);
    memory_bound("gelu backward", gelu_back, 3);
    memory_bound("batch-norm sums", stats, 1);
    memory_bound("batch-norm + add + relu", apply, 3);
    memory_bound("batch-norm backward", norm_back, 5);
    fusion("batch-norm with sums + add + relu", fused_forward, unfused_forward, NULL);
    fusion("the same behind a 1x1 convolution", fused_block, unfused_block, conv_alone);
    fusion("backward of relu and batch-norm", fused_backward, unfused_backward, NULL);
    fusion("1x1 convolution + batch-norm sums", conv_with_stats, conv_then_stats, NULL);
    operands_close();
}

/* ---- An instruction ---- */

static gcp_plan chain;
static void chain_step(void) { gcp_step(&chain, .lr = GCP_ZERO); }

static void instructions(void)
{
    size_t room = GCP_MB(64), slab = GCP_MB(4);
    unsigned char *memory = (unsigned char *)memory_of(room), *step = (unsigned char *)memory_of(slab);
    gcp_arena arena = gcp_arena_from(memory, room);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = CHAIN + 8);
    gcp_tensor x = gcp_input(tape, "x", GCP_SHAPE(1, 4)), y = gcp_linear(x, .out = 1);
    for (int i = 0; i < CHAIN; i++) y = gcp_scale(y, .by = 0.999);
    chain = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD,
                          .target = &target);
    gcp_bind(&chain, step, slab);
    gcp_write(&chain, x, (gcp_real[4]) { 0 });
    figure f;
    double seconds[MOST_ROUNDS];
    if (gcp_error(tape)) { fprintf(stderr, "passes: %s\n", gcp_error(tape)); exit(1); }
    chain_step();
    for (int i = 0; i < rounds; i++) seconds[i] = seconds_of(chain_step) / (double)chain.core->list.count;
    f = figure_of(seconds);
    printf("an instruction, of %zu in a step: %.3f us +-%.0f %%\n", (size_t)chain.core->list.count, 1e6 * f.median,
           100 * f.spread);
    fprintf(csv, "instruction,,%d,%.6f,,,\n", target.threads, 1e3 * f.median);
    free(memory);
    free(step);
}

int main(int argc, char **argv)
{
    gcp_target wish = { 0 };
    const char *out = ".";
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--threads")) wish.threads = atoi(value);
        else if (!strcmp(argv[i], "--rounds")) rounds = GCPI_MIN(GCPI_MAX(atoi(value), 1), MOST_ROUNDS);
        else if (!strcmp(argv[i], "--out")) out = value;
        else { fprintf(stderr, "passes [--threads N] [--rounds 9] [--out FOLDER]\n"); return 1; }
    }
    target = gcpi_target_of(&wish);
    csv = table_open("passes", out, "passes.csv");
    fprintf(csv, "name,shape,threads,ms,gb_per_second,beside,ratio\n");
    printf("%d thread(s); medians of %d\n", target.threads, rounds);
    one_size(8, 56, 256);
    one_size(8, 28, 512);
    one_size(32, 64, 40);
    instructions();
    table_close("passes", csv);
    return 0;
}
