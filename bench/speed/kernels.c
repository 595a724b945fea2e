/* kernels.c - GFLOP/s of gcp's convolutions and matrix products beside the FMA rate that this machine reaches in
   registers, and beside oneDNN, OpenBLAS and PyTorch where they are installed.

       kernels [--threads N] [--torch PYTHON | --old LIBRARY] [--only TEXT] [--rounds 5] [--out FOLDER]

   --torch names a Python that has torch; --old another tree's kernels (old.c), which then are the only peer; --only
   keeps the layers whose names hold TEXT. Prints a table and writes kernels.csv:
   layer,pass,threads,gcp_gflops,peak_gflops,peer,peer_gflops, a line per peer (both empty where there is none). All
   that is compared runs in turn, a twentieth of a second each, in each of the rounds; a figure is the median of the
   rounds, its spread half of what lies between the slowest and the fastest. gcp is measured again beside each peer, as
   a core does not run alike beside all of them. FLOPs include padding, for all alike. At the end, what gcp promises of
   these figures (gates.h), met or not. */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include <math.h>
#include <signal.h>
#include "../../tests/support/clock.h"
#include "gates.h"
#include "../../tests/support/table.h"
#include "rivals.h"
#ifdef _OPENMP
#include <omp.h>
#endif

enum { MOST_ROUNDS = 32, MOST_RIVALS = 8, PEAK_TERMS = 100000 };
#define BLOCK_SECONDS 0.05

typedef enum group { SEED, RESNET, SEED000, OTHER, PRODUCT, GROUPS } group;
static const char *const group_names[GROUPS] = { "4 layers of 5x5", "ResNet-50", "6 layers of 5x5", "not tuned on",
                                                 "matrix products" };

typedef struct layer { const char *name; group group; int n, h, w, ci, co, kh, kw, stride, pt, pl, groups; } layer;

/* The layers that the kernels were tuned on are those of the first three groups. */
static const layer layers[] = {
    { "5x5 1-10 256 b4", SEED, 4, 256, 256, 1, 10, 5, 5, 1, 2, 2, 1 },
    { "5x5 10-40 256 b4", SEED, 4, 256, 256, 10, 40, 5, 5, 1, 2, 2, 1 },
    { "5x5 40-20 256 b4", SEED, 4, 256, 256, 40, 20, 5, 5, 1, 2, 2, 1 },
    { "5x5 20-10 256 b4", SEED, 4, 256, 256, 20, 10, 5, 5, 1, 2, 2, 1 },
    { "3x3 64-64 56 b8", RESNET, 8, 56, 56, 64, 64, 3, 3, 1, 1, 1, 1 },
    { "3x3 128-128 28 b8", RESNET, 8, 28, 28, 128, 128, 3, 3, 1, 1, 1, 1 },
    { "3x3 256-256 14 b8", RESNET, 8, 14, 14, 256, 256, 3, 3, 1, 1, 1, 1 },
    { "3x3 512-512 7 b8", RESNET, 8, 7, 7, 512, 512, 3, 3, 1, 1, 1, 1 },
    { "1x1 64-256 56 b8", RESNET, 8, 56, 56, 64, 256, 1, 1, 1, 0, 0, 1 },
    { "1x1 256-64 56 b8", RESNET, 8, 56, 56, 256, 64, 1, 1, 1, 0, 0, 1 },
    { "1x1 1024-256 14 b8", RESNET, 8, 14, 14, 1024, 256, 1, 1, 1, 0, 0, 1 },
    { "1x1 2048-512 7 b8", RESNET, 8, 7, 7, 2048, 512, 1, 1, 1, 0, 0, 1 },
    { "3x3s2 128-128 56 b8", RESNET, 8, 56, 56, 128, 128, 3, 3, 2, 1, 1, 1 },
    { "5x5 10-20 64 b16", SEED000, 16, 64, 64, 10, 20, 5, 5, 1, 2, 2, 1 },
    { "5x5 20-40 64 b16", SEED000, 16, 64, 64, 20, 40, 5, 5, 1, 2, 2, 1 },
    { "5x5 40-60 64 b16", SEED000, 16, 64, 64, 40, 60, 5, 5, 1, 2, 2, 1 },
    { "5x5 60-40 64 b16", SEED000, 16, 64, 64, 60, 40, 5, 5, 1, 2, 2, 1 },
    { "5x5 40-40 64 b16", SEED000, 16, 64, 64, 40, 40, 5, 5, 1, 2, 2, 1 },
    { "5x5 20-20 64 b16", SEED000, 16, 64, 64, 20, 20, 5, 5, 1, 2, 2, 1 },
    { "7x7s2 3-64 224 b8", OTHER, 8, 224, 224, 3, 64, 7, 7, 2, 3, 3, 1 },
    { "vgg 3x3 128-128 112 b4", OTHER, 4, 112, 112, 128, 128, 3, 3, 1, 1, 1, 1 },
    { "vgg 3x3 512-512 14 b32", OTHER, 32, 14, 14, 512, 512, 3, 3, 1, 1, 1, 1 },
    { "resnet18 3x3 64-64 32 b32", OTHER, 32, 32, 32, 64, 64, 3, 3, 1, 1, 1, 1 },
    { "mobilenet 3x3 dw 128 56 b8", OTHER, 8, 56, 56, 128, 128, 3, 3, 1, 1, 1, 128 },
    { "mobilenet 3x3s2 dw 256 28 b8", OTHER, 8, 28, 28, 256, 256, 3, 3, 2, 1, 1, 256 },
    { "mobilenet 1x1 32-64 112 b8", OTHER, 8, 112, 112, 32, 64, 1, 1, 1, 0, 0, 1 },
    { "densenet 3x3 48-12 32 b32", OTHER, 32, 32, 32, 48, 12, 3, 3, 1, 1, 1, 1 },
    { "densenet 1x1 300-48 32 b32", OTHER, 32, 32, 32, 300, 48, 1, 1, 1, 0, 0, 1 },
    { "inception 1x7 128-128 17 b8", OTHER, 8, 17, 17, 128, 128, 1, 7, 1, 0, 3, 1 },
    { "inception 7x1 160-192 17 b8", OTHER, 8, 17, 17, 160, 192, 7, 1, 1, 3, 0, 1 },
    { "inception 5x5 48-64 35 b8", OTHER, 8, 35, 35, 48, 64, 5, 5, 1, 2, 2, 1 },
    { "odd 3x3 37-53 29x31 b5", OTHER, 5, 29, 31, 37, 53, 3, 3, 1, 1, 1, 1 },
    { "3x3 256-256 14 b1", OTHER, 1, 14, 14, 256, 256, 3, 3, 1, 1, 1, 1 },
    { "1x1 512-2048 7 b1", OTHER, 1, 7, 7, 512, 2048, 1, 1, 1, 0, 0, 1 },
};
/* m k n */
static const int products[][3] = { { 256, 256, 256 },  { 512, 512, 512 },   { 1024, 1024, 1024 }, { 2048, 2048, 2048 },
                                   { 64, 784, 128 },   { 64, 2048, 1000 },   { 128, 2048, 1000 },  { 4096, 784, 128 },
                                   { 3136, 384, 1536 }, { 3152, 192, 768 }, { 512, 768, 3072 },
                                   { 512, 768, 50257 } };

static const rival rivals[] = { RIVALS_ONEDNN RIVALS_BLAS RIVALS_TORCH RIVALS_OLD };
enum { RIVALS = (int)(sizeof rivals / sizeof *rivals) };

static gcp_target target;
static FILE *csv;
static int rounds = 5;
static gcp_real *registers;
static double logs[GROUPS][3][RIVALS + 1];     /* sums of log ratios: gcp over each rival, over the peak at the end */
static int counts[GROUPS][3][RIVALS + 1];

/* ---- the peak: the widest micro-kernel on operands that stay in registers and L1 ---- */

static void peak_task(void *arg, int index, int worker)
{
    static const gcp_real row[8], column[4096];
    gcpi_simd s = gcpi_simd_of(gcpi_isa_best());
    int mr = s.mr[s.nv - 1];
    const gcp_real *a[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_tile t;
    memset(&t, 0, sizeof t);
    for (int r = 0; r < mr; r++) { a[r] = row; c[r] = (gcp_real *)arg + index * 2048 + r * s.nv * s.lanes; }
    t.a = a; t.c = c;
    t.b = t.start = column;
    t.n[0] = t.n[1] = 1; t.n[2] = PEAK_TERMS; t.rows = mr;
    s.kernel[s.nv - 1](&t);
    (void)worker;
}

static double peak(void)
{
    gcpi_simd s = gcpi_simd_of(gcpi_isa_best());
    double best = 1e9;
    for (int run = 0; run < 12; run++) {
        double t = seconds_now();
        gcpi_parallel(&target, target.threads, peak_task, registers);
        t = seconds_now() - t;
        if (t < best) best = t;
    }
    return 2.0 * s.lanes * s.nv * s.mr[s.nv - 1] * PEAK_TERMS * target.threads / best * 1e-9;
}

/* ---- measuring ---- */

typedef struct figure { double median, spread; } figure;       /* GFLOP/s; spread as a share of it */

static figure figure_of(double *rates)
{
    qsort(rates, (size_t)rounds, sizeof *rates, by_size);
    return (figure){ rates[rounds / 2], (rates[rounds - 1] - rates[0]) / 2 / rates[rounds / 2] };
}

static int calls_for(double (*seconds)(int))
{
    seconds(1);
    return 1 + (int)(BLOCK_SECONDS / GCPI_MAX(seconds(1), 1e-6));
}

/* One open rival and gcp in turn, and the peak: beside what it is compared with, as a core that was idle takes its time
   to reach it. */
static double peak_seen;
static int measured, moved;                                    /* moved: gcp's rates spread by more than a tenth */
static void measure(double flops, const rival *r, figure *gcp, figure *other, double *most)
{
    double rates[2][MOST_ROUNDS];
    int calls[2] = { calls_for(own_seconds), r ? calls_for(r->seconds) : 0 };
    for (int i = 0; i < rounds; i++) {
        rates[0][i] = flops * calls[0] / own_seconds(calls[0]) * 1e-9;
        if (r) rates[1][i] = flops * calls[1] / r->seconds(calls[1]) * 1e-9;
        *most = GCPI_MAX(*most, peak());
        peak_seen = GCPI_MAX(peak_seen, *most);
    }
    *gcp = figure_of(rates[0]);
    measured++, moved += gcp->spread > 0.1;
    if (r) *other = figure_of(rates[1]);
}

static void count(group g, int pass, int at, double ratio) { logs[g][pass][at] += log(ratio); counts[g][pass][at]++; }

static void write_row(const char *name, const char *pass, figure gcp, double most, const char *beside, double rate)
{
    fprintf(csv, "%s,%s,%d,%.1f,%.1f,%s,", name, pass, target.threads, gcp.median, most, beside);
    if (rate > 0) fprintf(csv, "%.1f", rate);
    fprintf(csv, "\n");
}

static void run(const char *name, const char *pass, group g, const work *w, double flops)
{
    figure gcp = { 0, 0 }, other = { 0, 0 };
    double most = 0;
    int met = 0;
    cell *c = &cells[cell_count++];
    own_open(w);
    printf("%-30s %-17s", name, pass);
    for (int i = 0; i < RIVALS; i++) {
        if ((old.library && rivals[i].open != old_open) || !rivals[i].open(w)) continue;
        most = 0;
        measure(flops, &rivals[i], &gcp, &other, &most);
        rivals[i].close();
        if (!met++) printf("%5.0f +-%2.0f %% (%2.0f %%)", gcp.median, 100 * gcp.spread, 100 * gcp.median / most);
        printf(" | %s %4.0f +-%2.0f %%", rivals[i].name, other.median, 100 * other.spread);
        if (met > 1) printf(", gcp %.0f", gcp.median);
        printf(": %.2f", gcp.median / other.median);
        write_row(name, pass, gcp, most, rivals[i].name, other.median);
        count(g, w->pass, i, gcp.median / other.median);
        c->rate[i] = other.median;
        c->ratio[i] = gcp.median / other.median;
        if (met == 1) c->gcp = gcp.median, c->peak = most;
    }
    if (!met) {
        measure(flops, NULL, &gcp, &other, &most);
        printf("%5.0f +-%2.0f %% (%2.0f %%)", gcp.median, 100 * gcp.spread, 100 * gcp.median / most);
        write_row(name, pass, gcp, most, "", 0);
        c->gcp = gcp.median, c->peak = most;
    }
    count(g, w->pass, RIVALS, c->gcp / c->peak);
    c->group = (int)g; c->pass = w->pass; c->kernel = w->m ? 0 : w->c.kh;
    c->flops = flops; c->scratch = own.bytes;
    printf("\n");
    fflush(stdout);
    own_close();
}

static void run_layer(const layer *l)
{
    static const char *const passes[] = { "forward", "backward_data", "backward_weights" };
    gcpi_conv c = { l->n,
                    l->h,
                    l->w,
                    l->ci,
                    l->ci,
                    (l->h + 2 * l->pt - l->kh) / l->stride + 1,
                    (l->w + 2 * l->pl - l->kw) / l->stride + 1,
                    l->co,
                    l->co,
                    l->kh,
                    l->kw,
                    l->stride,
                    l->stride,
                    l->pt,
                    l->pl,
                    1,
                    1,
                    l->groups };
    double flops = 2.0 * c.n * c.ho * c.wo * c.co * c.kh * c.kw * (c.ci / c.groups);
    for (int pass = 0; pass < 3; pass++) {
        if (pass == GCPI_BACKWARD_DATA && l->ci <= 3) continue;        /* an image's gradient, which nobody asks for */
        work w = { .c = c, .pass = pass };
        run(l->name, passes[pass], l->group, &w, flops);
    }
}

static void run_product(const int *p, const char *name)
{
    static const char *const passes[] = { "NN", "NT", "TN" };
    for (int pass = 0; pass < 3; pass++) {
        work w = { .pass = pass, .m = p[0], .k = p[1], .n = p[2] };
        run(name, passes[pass], PRODUCT, &w, 2.0 * p[0] * p[1] * p[2]);
    }
}

static void print_means(void)
{
    printf("\ngeometric means of the three passes: share of the peak, and gcp over each\n");
    for (int g = 0; g < GROUPS; g++) {
        if (!counts[g][0][RIVALS]) continue;
        printf("%-16s", group_names[g]);
        for (int i = RIVALS; i >= 0; i--) {
            if (!counts[g][0][i]) continue;
            printf(i < RIVALS ? " | %s" : " %s", i < RIVALS ? rivals[i].name : "peak");
            for (int pass = 0; pass < 3; pass++)
                printf(" %.2f", exp(logs[g][pass][i] / GCPI_MAX(counts[g][pass][i], 1)));
        }
        printf("\n");
    }
}

static void print_gates(void)
{
    const char *names[RIVALS + 1] = { NULL };
    for (int i = 0; i < RIVALS; i++) names[i] = rivals[i].name;
    printf("\nwhat gcp aims at, on any CPU (no test): measured (aim; !: less) of forward, backward data, backward "
           "weights; NN, NT, TN\n");
    gate_share("ResNet-50's 3x3, least share of the peak", RESNET, 3, 0.70, 0.70, 0.62);
    gate_share("ResNet-50's 1x1, least share of the peak", RESNET, 1, 0.62, 0.62, 0.55);
    gate_ratio("ResNet-50's layers over oneDNN's best", RESNET, names, "onednn", 0, 0.88, 0.90, 0.82);
    gate_ratio("... as asked on every CPU", RESNET, names, "onednn", 0, 0.95, 0.95, 0.95);
    gate_least("... and no layer below", RESNET, names, "onednn", 0.80);
    gate_ratio("... over PyTorch channels_last", RESNET, names, "torch_channels_last", 1, 0.92, 0.95, 0.98);
    gate_ratio("... over PyTorch's default", RESNET, names, "torch", 1, 1.05, 1.05, 1.05);
    gate_ratio("... over OpenBLAS, product of equal size", RESNET, names, "openblas", 1, 1.15, 1.15, 1.15);
    gate_ratio("matrix products over OpenBLAS", PRODUCT, names, "openblas", 1, 0.90, 1.00, 0.95);
    gate_ratio("matrix products over the best of all peers", PRODUCT, names, "", 0, 0.95, 0.95, 0.95);
    gate_least("... and none below", PRODUCT, names, "", 0.85);
    gate_ratio("layers not tuned on, over oneDNN's best", OTHER, names, "onednn", 0, 0.79, 0.81, 0.74);
    gate_time("4 layers of 5x5, time: oneDNN's best over gcp", SEED, names, "onednn", 0, 1.2);
    gate_time("... PyTorch channels_last over gcp", SEED, names, "torch_channels_last", 1, 1.3);
    gate_time("... PyTorch's default over gcp", SEED, names, "torch", 1, 2.2);
    gate_scratch(target.threads);
}

typedef struct options { int threads; const char *only, *out, *python, *old; } options;
static options options_of(int argc, char **argv)
{
    options o = { 0, "", ".", NULL, NULL };
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--threads")) o.threads = atoi(value);
        else if (!strcmp(argv[i], "--torch")) o.python = value;
        else if (!strcmp(argv[i], "--old")) o.old = value;
        else if (!strcmp(argv[i], "--only")) o.only = value;
        else if (!strcmp(argv[i], "--rounds")) rounds = GCPI_MIN(GCPI_MAX(atoi(value), 1), MOST_ROUNDS);
        else if (!strcmp(argv[i], "--out")) o.out = value;
        else {
            const int help = !strcmp(argv[i], "--help");
            fprintf(help ? stdout : stderr,
                    "kernels [--threads N] [--torch PYTHON | --old LIBRARY] [--only TEXT] [--rounds 5] [--out FOLDER]\n"
                    "--torch: a Python that has torch; --old: another tree's kernels, the only peer\n"
                    "--only: rows whose names hold TEXT; kernels.csv is written to FOLDER, or here\n");
            exit(!help);
        }
    }
    return o;
}

/* Another tree's kernels, or those that are installed. */
static void start_peers(const options *o)
{
    char threads[16];
    if (o->old) {
        old_load(o->old, target.threads);
        return;
    }
    snprintf(threads, sizeof threads, "%d", target.threads);
    torch_runs =
        o->python && peer_start(&torch, o->python, BENCH_PEERS "/torch_layers.py", (char *[]){ threads, NULL });
    if (o->python && !torch_runs) fprintf(stderr, "kernels: %s has no torch\n", o->python);
    if (torch_runs) printf("PyTorch %s\n", torch.version);
    dnn_say();
    blas_say();
}

int main(int argc, char **argv)
{
    const options o = options_of(argc, argv);
    const gcp_target wish = { .threads = o.threads };
    target = gcpi_target_of(&wish);
    par = gcpi_par_of(&target, GCP_STORE_REAL);
#ifdef _OPENMP
    omp_set_num_threads(target.threads);       /* what oneDNN and OpenBLAS take */
#endif
    registers = filled(2048 * (size_t)target.threads);
    csv = table_open("kernels", o.out, "kernels.csv");
    signal(SIGPIPE, SIG_IGN);
    start_peers(&o);
    fprintf(csv, "layer,pass,threads,gcp_gflops,peak_gflops,peer,peer_gflops\n");
    printf("%d thread(s); gcp's GFLOP/s beside the first peer (share of the FMA peak measured beside them) | each "
           "peer's, gcp's beside it: gcp over it\n"
           "rows: kernel, channels in and out, image, batch; m x k x n: NN as they lie, NT, TN with the second, the "
           "first transposed\nonednn_nhwc: in gcp's layout, onednn_any: in the one that it likes best\n",
           target.threads);
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
        if (strstr(layers[i].name, o.only)) run_layer(&layers[i]);
    for (size_t i = 0; i < sizeof products / sizeof *products; i++) {
        char name[64];
        snprintf(name, sizeof name, "matmul %dx%dx%d", products[i][0], products[i][1], products[i][2]);
        if (strstr(name, o.only)) run_product(products[i], name);
    }
    if (!cell_count) { fprintf(stderr, "kernels: --only: no row has that in its name\n"); exit(1); }
    printf("\n%.0f GFLOP/s FMA peak, the most of all rows; %d of %d measurements of gcp spread by more than 10 %%%s\n",
           peak_seen, moved, measured, 4 * moved > measured ? ": others use this machine, measure again" : "");
    print_means();
    if (!o.old) print_gates();
    printf("\n%s/kernels.csv is written\n", o.out);
    if (torch_runs) peer_stop(&torch);
    free(registers);
    table_close("kernels", csv);
    return 0;
}
