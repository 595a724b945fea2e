/* gates.h - what gcp promises of its kernels on two threads, beside what bench/kernels has measured: a line a promise,
   met or not. Shares are the least of the layers, ratios geometric means; of several oneDNN formats each cell counts
   the best. */
#ifndef GATES_H
#define GATES_H
#include <math.h>
#include <stdio.h>
#include <string.h>

enum { CELL_RIVALS = 8, MOST_CELLS = 256 };
typedef struct cell {                  /* a pass of a layer */
    int group, pass, kernel;           /* kernel: its height, 0 for a matrix product */
    double flops, gcp, peak;           /* FLOPs of a call; GFLOP/s */
    /* of each rival, and gcp's in turn with it over that; 0 where it has none */
    double rate[CELL_RIVALS], ratio[CELL_RIVALS];
    size_t scratch;                    /* bytes, all threads */
} cell;
static cell cells[MOST_CELLS];
static int cell_count;

/* The rival that gcp is least ahead of, of those whose names begin so; -1: none. */
static int best_rival(const cell *c, const char *const *names, const char *prefix, int whole)
{
    int best = -1;
    for (int i = 0; names[i]; i++)
        if ((whole ? !strcmp(names[i], prefix) : !strncmp(names[i], prefix, strlen(prefix))) && c->rate[i] > 0 &&
            (best < 0 || c->ratio[i] < c->ratio[best]))
            best = i;
    return best;
}

static void gate_print(const char *what, const double *measured, const double *asked, int passes)
{
    int met = 1, any = 0;
    printf("  %-52s", what);
    for (int p = 0; p < passes; p++) {
        if (measured[p] <= 0) { printf("      -        "); continue; }
        const int good = measured[p] >= asked[p] - 0.005;  /* as printed */
        printf(" %5.2f (%4.2f)%s", measured[p], asked[p], good ? "  " : "! ");
        met &= good;
        any = 1;
    }
    printf("%s\n", !any ? "not measured" : met ? "met" : "NOT MET");
}

/* Least share of the peak of the layers with this kernel height. */
static void gate_share(const char *what, int group, int kernel, double forward, double data, double weights)
{
    double least[3] = { 0, 0, 0 }, asked[3] = { forward, data, weights };
    for (int i = 0; i < cell_count; i++) {
        const cell *c = &cells[i];
        double share = c->gcp / c->peak;
        if (c->group == group && c->kernel == kernel && (least[c->pass] == 0 || share < least[c->pass]))
            least[c->pass] = share;
    }
    gate_print(what, least, asked, 3);
}

static void gate_ratio(const char *what, int group, const char *const *names, const char *rival, int whole,
                       double first, double second, double third)
{
    double sum[3] = { 0, 0, 0 }, mean[3] = { 0, 0, 0 }, asked[3] = { first, second, third };
    int n[3] = { 0, 0, 0 };
    for (int i = 0; i < cell_count; i++) {
        const cell *c = &cells[i];
        int best = best_rival(c, names, rival, whole);
        if (c->group == group && best >= 0) { sum[c->pass] += log(c->ratio[best]); n[c->pass]++; }
    }
    for (int p = 0; p < 3; p++) if (n[p]) mean[p] = exp(sum[p] / n[p]);
    gate_print(what, mean, asked, 3);
}

/* The least ratio of a group's layers to a rival's best. */
static void gate_least(const char *what, int group, const char *const *names, const char *rival, double asked)
{
    double least[3] = { 0, 0, 0 }, most[3] = { asked, asked, asked };
    for (int i = 0; i < cell_count; i++) {
        const cell *c = &cells[i];
        int best = best_rival(c, names, rival, 0);
        if (c->group != group || best < 0) continue;
        if (least[c->pass] == 0 || c->ratio[best] < least[c->pass]) least[c->pass] = c->ratio[best];
    }
    gate_print(what, least, most, 3);
}

/* All passes of a group's layers, one after the other: a rival's time over gcp's. */
static void gate_time(const char *what, int group, const char *const *names, const char *rival, int whole, double asked)
{
    double own = 0, other = 0, ratio = 0;
    for (int i = 0; i < cell_count; i++) {
        const cell *c = &cells[i];
        int best = best_rival(c, names, rival, whole);
        if (c->group != group || best < 0) continue;
        own += c->flops / (c->ratio[best] * c->rate[best]);
        other += c->flops / c->rate[best];
    }
    if (own > 0) ratio = other / own;
    gate_print(what, &ratio, &asked, 1);
}

static void gate_scratch(int threads)
{
    double most = 0, asked = 3;
    for (int i = 0; i < cell_count; i++) most = fmax(most, (double)cells[i].scratch / threads / 1048576);
    printf("  %-52s %5.2f (%4.2f)  %s\n", "scratch of a thread, MiB, private sums included", most, asked,
           most <= asked ? "met" : "NOT MET");
}
#endif
