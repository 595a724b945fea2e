/* Random layered graphs as text for gcp_graph_plan, in the manner of Appendix A of "Neural Topological Ordering for
   Computation Graphs" (Gagrani et al. 2022): layers of random width, one to four inputs of which a fifth skip layers,
   uneven bytes and costs. */
#ifndef LAYERED_H
#define LAYERED_H
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LAYERED_MOST = 2048, LAYERED_INPUTS = 4 };

typedef struct layered {
    int count, layers, layer[LAYERED_MOST], first[LAYERED_MOST + 1];
    int inputs[LAYERED_MOST], input[LAYERED_MOST][LAYERED_INPUTS], read[LAYERED_MOST];
    uint64_t random;
} layered;

static inline double layered_unit(layered *g)               /* Marsaglia's xorshift, in [0, 1) */
{
    g->random ^= g->random << 13; g->random ^= g->random >> 7; g->random ^= g->random << 17;
    return (double)(g->random >> 32) / 4294967296.0;
}
static inline int layered_int(layered *g, int low, int high)
{
    return low + (int)(layered_unit(g) * (high - low + 1));
}

static inline void layered_connect(layered *g, int op)
{
    int layer = g->layer[op], wanted = layer ? layered_int(g, 1, LAYERED_INPUTS) : 0;
    g->inputs[op] = 0;
    for (int k = 0; k < wanted; k++) {
        int from = layered_unit(g) < 0.8 || layer < 2 ? layer - 1 : layered_int(g, 0, layer - 2), again = 0;
        int x = layered_int(g, g->first[from], g->first[from + 1] - 1);
        for (int j = 0; j < g->inputs[op]; j++) again |= g->input[op][j] == x;
        if (again) continue;
        g->input[op][g->inputs[op]++] = x;
        g->read[x] = 1;
    }
}

static inline void layered_make(layered *g, int count, unsigned seed)
{
    memset(g, 0, sizeof *g);
    g->count = count;
    g->random = 88172645463325252ull ^ (seed * 0x9E3779B97F4A7C15ull) ^ ((uint64_t)count << 32);
    for (int i = 0; i < 20; i++) layered_unit(g);
    double width = 1 + layered_unit(g) * 0.6 * sqrt(count);
    for (int op = 0; op < count; g->layers++) {
        int wide = 1 + (int)(layered_unit(g) * 2 * width);
        g->first[g->layers] = op;
        for (int k = 0; k < wide && op < count; k++) g->layer[op++] = g->layers;
    }
    g->first[g->layers] = count;
    for (int op = 0; op < count; op++) layered_connect(g, op);
}

/* A half of the values are small, a tenth is large. */
static inline double layered_bytes(layered *g)
{
    double kind = layered_unit(g), spread = layered_unit(g);
    return 1000 * exp((kind < 0.5 ? 1 : kind < 0.9 ? 2.5 : 4) + spread);
}

/* The graph of `ops` ops; train: a half of them are the backward of the others; else one last op reads what nobody
   does. Freed by the caller. */
static inline char *layered_text(int ops, unsigned seed, int train)
{
    static layered g;
    static double cost[LAYERED_MOST], bytes[LAYERED_MOST];
    char *text = malloc((size_t)ops * 512 + 1024), *w = text;
    layered_make(&g, train ? ops / 2 : ops - 1, seed);
    w += sprintf(w, "# gcp-graph 1\n");
    for (int op = 0; op < g.count; op++) {
        bytes[op] = layered_bytes(&g);
        cost[op] = exp(3 * layered_unit(&g));
        w += sprintf(w, "f n%d %.6g %.0f 0", op, cost[op], bytes[op]);
        for (int k = 0; k < g.inputs[op]; k++) w += sprintf(w, " n%d", g.input[op][k]);
        w += sprintf(w, "\n");
    }
    if (!train) w += sprintf(w, "b end 1 4 0");
    for (int op = 0; op < g.count && !train; op++) if (!g.read[op]) w += sprintf(w, " n%d", op);
    for (int op = g.count - 1; op >= 0 && train; op--) {
        w += sprintf(w, "b n%d_b %.6g %.0f 0", op, 2 * cost[op], bytes[op]);
        if (layered_unit(&g) < 0.5) w += sprintf(w, " n%d", op);
        for (int k = 0; k < g.inputs[op]; k++) w += sprintf(w, " n%d", g.input[op][k]);
        for (int user = op + 1; user < g.count; user++)
            for (int k = 0; k < g.inputs[user]; k++) if (g.input[user][k] == op) w += sprintf(w, " n%d_b", user);
        w += sprintf(w, "\n");
    }
    sprintf(w, "\n");
    return text;
}

#endif
