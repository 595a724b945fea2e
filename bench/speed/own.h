/* own.h - a pass of a layer, or a matrix product, by the kernels of the gcp.h that is included before: for kernels.c,
   and for old.c. */
#ifndef OWN_H
#define OWN_H
#include <stdio.h>
#include <stdlib.h>
#include "../../tests/support/clock.h"

typedef struct work {                  /* a pass of a convolution, or where m > 0 a matrix product [m][k] x [k][n] */
    gcpi_conv c;
    int pass;                          /* GCPI_FORWARD ..., or 0 NN, 1 NT, 2 TN */
    int m, n, k;
} work;

static float *filled(size_t n)
{
    float *p = (float *)aligned_alloc(64, (n * sizeof *p + 127) / 64 * 64);
    if (!p) { fprintf(stderr, "kernels: out of memory\n"); exit(1); }
    for (size_t i = 0; i < n; i++) p[i] = (float)((int)(i * 7919 % 2001) - 1000) / 997;
    return p;
}

static gcpi_par par;
static struct { work w; gcp_real *x, *k, *y; void *scratch; size_t bytes; } own;      /* bytes: of scratch */

static void own_open(const work *w)
{
    const gcpi_conv *c = &w->c;
    size_t scratch = w->m ? gcpi_gemm_scratch(w->pass == 2, w->pass == 1, w->m, w->n, w->k, &par)
                          : gcpi_conv_scratch(c, w->pass, &par);
    own.w = *w;
    own.bytes = scratch;
    own.x = filled(w->m ? (size_t)w->m * (size_t)w->k : (size_t)c->n * (size_t)c->h * (size_t)c->w * (size_t)c->ci);
    own.k = filled(w->m ? (size_t)w->k * (size_t)w->n
                        : (size_t)c->co * (size_t)c->kh * (size_t)c->kw * (size_t)(c->ci / c->groups));
    own.y = filled(w->m ? (size_t)w->m * (size_t)w->n : (size_t)c->n * (size_t)c->ho * (size_t)c->wo * (size_t)c->co);
    own.scratch = aligned_alloc(64, gcpi_round(scratch + 64, 64));
    if (!own.scratch) { fprintf(stderr, "kernels: out of memory\n"); exit(1); }
}

static void own_call(void)
{
    const work *w = &own.w;
    const gcpi_array x = gcpi_reals(own.x), y = gcpi_reals(own.y);
    int ta = w->pass == 2, tb = w->pass == 1;
    if (w->m)
        gcpi_gemm(ta, tb, w->m, w->n, w->k, x, ta ? w->m : w->k, gcpi_reals(own.k), tb ? w->k : w->n, NULL, y, w->n, 0,
                  own.scratch, &par);
    else if (w->pass == GCPI_FORWARD) gcpi_conv_forward(&w->c, x, own.k, NULL, y, 0, NULL, own.scratch, &par);
    else if (w->pass == GCPI_BACKWARD_DATA)
        gcpi_conv_backward_data(&w->c, y, own.k, NULL, x, 0, own.scratch, &par);
    else gcpi_conv_backward_weights(&w->c, x, y, own.k, 0, own.scratch, &par);
}

static double own_seconds(int calls)
{
    double start = seconds_now();
    for (int i = 0; i < calls; i++) own_call();
    return seconds_now() - start;
}

static void own_close(void) { free(own.x); free(own.k); free(own.y); free(own.scratch); }
#endif
