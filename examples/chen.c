/* chen.c - the square root, measured: Chen et al. 2016 (arXiv 1604.06174), section 4.3.

       chen [layers]

   A chain of n layers is cut into segments of k layers. What crosses the cuts is kept: n/k tensors. Backward runs one
   segment forward again at a time and keeps its inside: k tensors. The peak is n/k + k tensors, least at k = sqrt(n).
   Each line cuts the chain for one k, plans, runs a step, and measures the bytes that the step touched. The formula is
   exact where k divides n and is more than 1; else the last segment is shorter, and a tensor more or less is live. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"

enum { VALUES = 4096, MOST = 400 };             /* of one tensor; layers */
static unsigned char tape_memory[GCP_MB(16)], step_memory[GCP_MB(16)], probe_memory[GCP_MB(16)];
static float image[VALUES];

/* n layers in segments of k; tanh, for its backward reads what its forward made. */
static gcp_tensor chain(gcp_tape *net, int n, int k)
{
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, VALUES), .want_grad = 1);
    for (int first = 0; first < n; first += k)
        GCP_SEGMENT(net, "segment")
            for (int layer = first; layer < first + k && layer < n; layer++) x = gcp_tanh(x);
    return gcp_mean(x);
}

/* The bytes that a step touches, in tensors; NaN on error. reruns: layers that ran twice. */
static double tensors_at_peak(int n, int k, int *reruns)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = n + 1);
    gcp_plan plan = gcp_plan_make(chain(net, n, k), .policy = GCP_POLICY_SEGMENTS);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, gcp_find(net, "x"), image);
    gcp_step(&plan);
    size_t measured = gcp_measure(&plan, probe_memory, sizeof probe_memory);
    if (gcp_error(net)) { fprintf(stderr, "chen: %s\n", gcp_error(net)); return (double)NAN; }
    if (measured != plan.bytes) fprintf(stderr, "chen: %zu bytes planned, %zu measured\n", plan.bytes, measured);
    *reruns = plan.instructions - (2 * n + 3);          /* n + 1 forward, as many backward, and backward's seed */
    return (double)measured / sizeof image;
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 36, best = 0;
    double least = 0;
    if (n < 1 || n > MOST) { fprintf(stderr, "chen: 1 to %d layers\n", MOST); return 1; }
    for (int i = 0; i < VALUES; i++) image[i] = (float)(i % 17) / 17;
    printf("%d layers, one tensor each; keeping all takes %d tensors and the gradient\n\n", n, n + 1);
    printf("    k  segments  n/k + k  measured  layers run again\n");
    for (int k = 1; k <= n; k++) {
        int reruns;
        double peak = tensors_at_peak(n, k, &reruns);
        if (isnan(peak)) return 1;
        printf("%5d  %8d  %7.2f  %8.2f  %16d\n", k, (n + k - 1) / k, (double)n / k + k, peak, reruns);
        int nearer = fabs(k - sqrt(n)) < fabs(best - sqrt(n));
        if (!best || peak < least - 0.5 || (peak < least + 0.5 && nearer)) { best = k; least = peak; }
    }
    printf("\nleast at k = %d: %.0f tensors; sqrt(%d) = %.1f, 2 sqrt(%d) = %.1f\n", best, least, n, sqrt(n), n,
           2 * sqrt(n));
    return 0;
}
