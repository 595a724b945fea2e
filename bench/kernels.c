/* GFLOP/s of the convolution passes beside the FMA rate that this machine reaches in registers, measured next to each
   layer. Usage: kernels [threads]. Prints a table and writes kernels.csv: layer,pass,threads,gcp_gflops,peak_gflops.
   Medians of at least 5 runs; a FLOP count includes padding, for all alike. */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include <stdlib.h>
#include <time.h>

typedef struct layer { const char *name; gcpi_conv c; } layer;

static const layer layers[] = {        /* n h w ci pitch ho wo co pitch kh kw sh sw pt pl dh dw groups */
    { "5x5 10-20 64x64 b16",    { 16, 64, 64, 10, 10, 64, 64, 20, 20, 5, 5, 1, 1, 2, 2, 1, 1, 1 } },
    { "5x5 20-40 64x64 b16",    { 16, 64, 64, 20, 20, 64, 64, 40, 40, 5, 5, 1, 1, 2, 2, 1, 1, 1 } },
    { "5x5 40-60 64x64 b16",    { 16, 64, 64, 40, 40, 64, 64, 60, 60, 5, 5, 1, 1, 2, 2, 1, 1, 1 } },
    { "5x5 60-40 64x64 b16",    { 16, 64, 64, 60, 60, 64, 64, 40, 40, 5, 5, 1, 1, 2, 2, 1, 1, 1 } },
    { "5x5 40-40 64x64 b16",    { 16, 64, 64, 40, 40, 64, 64, 40, 40, 5, 5, 1, 1, 2, 2, 1, 1, 1 } },
    { "5x5 20-20 64x64 b16",    { 16, 64, 64, 20, 20, 64, 64, 20, 20, 5, 5, 1, 1, 2, 2, 1, 1, 1 } },
    { "3x3 64-64 56x56 b8",     { 8, 56, 56, 64, 64, 56, 56, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1 } },
    { "3x3 128-128 28x28 b8",   { 8, 28, 28, 128, 128, 28, 28, 128, 128, 3, 3, 1, 1, 1, 1, 1, 1, 1 } },
    { "3x3 256-256 14x14 b8",   { 8, 14, 14, 256, 256, 14, 14, 256, 256, 3, 3, 1, 1, 1, 1, 1, 1, 1 } },
    { "1x1 64-256 56x56 b8",    { 8, 56, 56, 64, 64, 56, 56, 256, 256, 1, 1, 1, 1, 0, 0, 1, 1, 1 } },
    { "1x1 1024-256 14x14 b8",  { 8, 14, 14, 1024, 1024, 14, 14, 256, 256, 1, 1, 1, 1, 0, 0, 1, 1, 1 } },
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static gcp_real *filled(size_t n)
{
    gcp_real *p = (gcp_real *)aligned_alloc(64, (n * sizeof *p + 127) / 64 * 64);
    for (size_t i = 0; p && i < n; i++) p[i] = (gcp_real)((int)(i * 7919 % 2001) - 1000) / 997;
    return p;
}

/* The widest micro-kernel on operands that stay in registers and L1. */
enum { PEAK_TERMS = 100000 };
static void peak_task(void *arg, int index, int worker)
{
    static const gcp_real row[8], column[4096];
    gcpi_simd s = gcpi_simd_of(gcpi_isa_best());
    int mr = s.mr[s.nv - 1];
    gcpi_tile t;
    memset(&t, 0, sizeof t);
    for (int r = 0; r < mr; r++) { t.a[r] = row; t.c[r] = (gcp_real *)arg + index * 2048 + r * s.nv * s.lanes; }
    t.b = t.start = column;
    t.n[0] = t.n[1] = 1; t.n[2] = PEAK_TERMS; t.rows = mr;
    s.kernel[s.nv - 1](&t);
    (void)worker;
}

static double peak(const gcp_target *target, gcp_real *out)
{
    gcpi_simd s = gcpi_simd_of(gcpi_isa_best());
    double best = 1e9;
    for (int run = 0; run < 12; run++) {
        double t = now();
        gcpi_parallel(target, target->threads, peak_task, out);
        t = now() - t;
        if (t < best) best = t;
    }
    return 2.0 * s.lanes * s.nv * s.mr[s.nv - 1] * PEAK_TERMS * target->threads / best * 1e-9;
}

typedef struct tensors { gcp_real *x, *w, *y; void *scratch; } tensors;

static void pass_run(const gcpi_conv *c, int pass, const tensors *t, const gcpi_par *par)
{
    if (pass == GCPI_FORWARD) gcpi_conv_forward(c, t->x, t->w, NULL, t->y, 0, t->scratch, par);
    else if (pass == GCPI_BACKWARD_DATA) gcpi_conv_backward_data(c, t->y, t->w, t->x, 0, t->scratch, par);
    else gcpi_conv_backward_weights(c, t->x, t->y, t->w, 0, t->scratch, par);
}

static double median_seconds(const gcpi_conv *c, int pass, const tensors *t, const gcpi_par *par)
{
    double times[64], total = 0;
    int n = 0;
    pass_run(c, pass, t, par);
    while (n < 5 || (n < 64 && total < 0.3)) {
        double start = now();
        pass_run(c, pass, t, par);
        total += times[n++] = now() - start;
    }
    qsort(times, (size_t)n, sizeof *times, by_value);
    return times[n / 2];
}

static void layer_run(const layer *l, const gcp_target *target, gcp_real *space, FILE *csv)
{
    static const char *const names[] = { "forward", "backward_data", "backward_weights" };
    const gcpi_conv *c = &l->c;
    gcpi_par par = gcpi_par_of(target);
    size_t scratch = 0;
    for (int pass = 0; pass < 3; pass++) scratch = GCPI_MAX(scratch, gcpi_conv_scratch(c, pass, &par));
    tensors t = { filled((size_t)c->n * (size_t)c->h * (size_t)c->w * (size_t)c->ci), filled((size_t)c->co * (size_t)c->kh * (size_t)c->kw * (size_t)c->ci),
                  filled((size_t)c->n * (size_t)c->ho * (size_t)c->wo * (size_t)c->co), aligned_alloc(64, gcpi_round(scratch + 64, 64)) };
    double flops = 2.0 * c->n * c->ho * c->wo * c->co * c->kh * c->kw * c->ci;
    printf("%-24s", l->name);
    for (int pass = 0; pass < 3 && t.x && t.w && t.y && t.scratch; pass++) {
        double rate = flops / median_seconds(c, pass, &t, &par) * 1e-9, most = peak(target, space);
        printf("  %6.0f (%2.0f %%)", rate, 100 * rate / most);
        fprintf(csv, "%s,%s,%d,%.1f,%.1f\n", l->name, names[pass], target->threads, rate, most);
        fflush(stdout);
    }
    printf("\n");
    free(t.x); free(t.w); free(t.y); free(t.scratch);
}

int main(int argc, char **argv)
{
    gcp_target wish = { .threads = argc > 1 ? atoi(argv[1]) : 0 }, target = gcpi_target_of(&wish);
    gcp_real *space = filled(2048 * (size_t)target.threads);
    FILE *csv = fopen("kernels.csv", "w");
    if (!csv || !space) { fprintf(stderr, "kernels: cannot write kernels.csv here\n"); return 1; }
    fprintf(csv, "layer,pass,threads,gcp_gflops,peak_gflops\n");
    printf("%d thread(s), %.0f GFLOP/s FMA peak; GFLOP/s and share of the peak measured beside it\n", target.threads, peak(&target, space));
    printf("%-24s  %13s  %13s  %13s\n", "layer", "forward", "backward data", "backward weights");
    for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) layer_run(&layers[i], &target, space, csv);
    free(space);
    return fclose(csv) != 0;
}
