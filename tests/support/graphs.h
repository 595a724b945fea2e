/* Random cost graphs as text for gcp_graph_plan: forward ops of some kind of network, and the backward of each. Bytes
   are multiples of 64, seconds 1 to 10, a quarter of the ops has a workspace. */
#ifndef GRAPHS_H
#define GRAPHS_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GRAPH_MOST = 2048, GRAPH_INPUTS = 12 };
typedef enum graph_kind {
    GRAPH_CHAIN, GRAPH_SERIES_PARALLEL, GRAPH_TREE, GRAPH_UNET, GRAPH_CELLS, GRAPH_DENSE, GRAPH_LOSSES, GRAPH_SOURCES,
    GRAPH_LADDER, GRAPH_KINDS
} graph_kind;
static const char *const graph_names[GRAPH_KINDS] = { "chain",  "series-parallel", "tree",    "unet",  "cells",
                                                      "dense", "losses",          "sources", "ladder" };

typedef struct graph {
    int count, fan[GRAPH_MOST], from[GRAPH_MOST][GRAPH_INPUTS], read[GRAPH_MOST], source[GRAPH_MOST];
    uint64_t random;
} graph;

static inline int graph_int(graph *g, int low, int high)    /* Marsaglia's xorshift */
{
    g->random ^= g->random << 13; g->random ^= g->random >> 7; g->random ^= g->random << 17;
    return low + (int)((g->random >> 32) % (uint64_t)(high - low + 1));
}

/* ---- forward ---- */

static inline void graph_read(graph *g, int op, int x)
{
    for (int k = 0; k < g->fan[op]; k++) if (g->from[op][k] == x) return;
    if (x < 0 || x >= op || g->fan[op] == GRAPH_INPUTS) return;
    g->from[op][g->fan[op]++] = x;
    g->read[x] = 1;
}
static inline int graph_op(graph *g, int x, int y)          /* a new op, that reads these; -1: nothing */
{
    const int op = g->count++;
    g->fan[op] = g->read[op] = g->source[op] = 0;
    graph_read(g, op, x);
    graph_read(g, op, y);
    return op;
}
static inline int graph_run(graph *g, int x, int length)    /* a chain behind x */
{
    for (int k = 0; k < length; k++) x = graph_op(g, x, -1);
    return x;
}

static inline void graph_series_parallel(graph *g, int ops)
{
    for (int end = graph_op(g, -1, -1); g->count < ops;) {
        const int left = graph_run(g, end, graph_int(g, 1, 4)),
                  right = graph_int(g, 0, 2) ? graph_run(g, end, graph_int(g, 0, 3)) : left;
        end = left == right ? left : graph_op(g, left, right);
    }
}
static inline void graph_tree(graph *g, int ops)
{
    while (g->count < ops) {
        const int op = graph_op(g, -1, -1), wanted = graph_int(g, 0, 3);
        for (int x = op - 1, k = 0; x >= 0 && k < wanted; x--)
            if (!g->read[x]) { graph_read(g, op, x); k++; }
    }
}
static inline void graph_unet(graph *g, int ops)
{
    int skip[GRAPH_MOST], levels = 0, end = graph_op(g, -1, -1);
    const int deep = graph_int(g, 1, 3);
    while (g->count < ops / 2) skip[levels++] = end = graph_run(g, end, graph_int(g, 1, deep));
    while (levels > 0) end = graph_run(g, graph_op(g, end, skip[--levels]), graph_int(g, 0, deep - 1));
}
static inline int graph_of_cell(graph *g, int first, int before, int last)        /* one of the cell's, or of the two */
{
    const int x = graph_int(g, first - 2, g->count - 1);
    return x == first - 2 ? before : x == first - 1 ? last : x;
}
static inline void graph_cells(graph *g, int ops)
{
    for (int before = graph_op(g, -1, -1), last = graph_op(g, before, -1); g->count < ops;) {
        const int first = g->count, nodes = graph_int(g, 2, 6);
        for (int k = 0; k < nodes; k++) {
            const int x = graph_of_cell(g, first, before, last), y = graph_of_cell(g, first, before, last);
            graph_op(g, x, y);
        }
        const int joint = graph_op(g, g->count - 1, -1);
        for (int x = first; x < joint; x++) if (!g->read[x]) graph_read(g, joint, x);
        before = last; last = joint;
    }
}
static inline void graph_dense(graph *g, int ops)
{
    for (int end = graph_op(g, -1, -1); g->count < ops; end = graph_op(g, g->count - 1, -1)) {
        const int layers = graph_int(g, 3, GRAPH_INPUTS - 1);
        for (int k = 0, first = end; k < layers; k++) {
            const int op = graph_op(g, first, -1);
            for (int x = first; x < op; x++) graph_read(g, op, x);
        }
    }
}
static inline void graph_losses(graph *g, int ops)
{
    for (int trunk = graph_op(g, -1, -1); g->count < ops;) {
        trunk = graph_run(g, trunk, graph_int(g, 1, 4));
        if (graph_int(g, 0, 1)) graph_run(g, trunk, graph_int(g, 1, 2));
    }
}
static inline void graph_sources(graph *g, int ops)
{
    for (int end = graph_op(g, -1, -1); g->count < ops;) {
        if (g->count == 1 || graph_int(g, 0, 3) == 0) {
            const int x = graph_op(g, -1, -1);
            g->source[x] = 1;
            end = graph_op(g, end, x);
        } else end = graph_op(g, end, -1);
    }
    g->source[0] = 1;
}
static inline void graph_ladder(graph *g, int ops)
{
    for (int left = graph_op(g, -1, -1), right = graph_op(g, left, -1); g->count < ops;) {
        const int cross = graph_int(g, 0, 2);
        const int up = graph_op(g, left, cross == 1 ? right : -1);
        right = graph_op(g, right, cross == 2 ? left : -1);
        left = up;
    }
}

/* ---- text ---- */

static inline char *graph_write(graph *g, char *w)
{
    static int bytes[GRAPH_MOST], space[GRAPH_MOST];
    const int large = graph_int(g, 2, 12);
    w += sprintf(w, "# gcp-graph 1\n");
    for (int op = 0; op < g->count; op++) {
        bytes[op] = 64 * graph_int(g, 1, large);
        space[op] = graph_int(g, 0, 3) ? 0 : 64 * graph_int(g, 1, large);
        w += sprintf(w, "%c v%d %d %d %d", g->source[op] ? 'o' : 'f', op, g->source[op] ? 0 : graph_int(g, 1, 10),
                     bytes[op], g->source[op] ? 0 : space[op]);
        for (int k = 0; k < g->fan[op]; k++) w += sprintf(w, " v%d", g->from[op][k]);
        w += sprintf(w, "\n");
    }
    for (int op = g->count - 1; op >= 0; op--) {
        if (g->source[op]) continue;
        w += sprintf(w, "b g%d %d %d %d", op, graph_int(g, 1, 10), bytes[op], space[op]);
        if (graph_int(g, 0, 1)) w += sprintf(w, " v%d", op);
        for (int k = 0; k < g->fan[op]; k++) if (graph_int(g, 0, 3)) w += sprintf(w, " v%d", g->from[op][k]);
        for (int user = op + 1; user < g->count; user++)
            for (int k = 0; k < g->fan[user]; k++) if (g->from[user][k] == op) w += sprintf(w, " g%d", user);
        w += sprintf(w, "\n");
    }
    return w;
}

/* A graph of about so many forward ops. Freed by the caller. */
static inline char *graph_text(graph_kind kind, int ops, unsigned seed)
{
    static void (*const make[GRAPH_KINDS])(graph *, int) = {
        [GRAPH_SERIES_PARALLEL] = graph_series_parallel, [GRAPH_TREE] = graph_tree, [GRAPH_UNET] = graph_unet,
        [GRAPH_CELLS] = graph_cells, [GRAPH_DENSE] = graph_dense, [GRAPH_LOSSES] = graph_losses,
        [GRAPH_SOURCES] = graph_sources, [GRAPH_LADDER] = graph_ladder,
    };
    static graph g;
    char *text = malloc((size_t)ops * 800 + 8192);
    g.count = 0;
    g.random = 88172645463325252ull ^ (seed * 0x9E3779B97F4A7C15ull) ^ ((uint64_t)ops << 40) ^ ((uint64_t)kind << 52);
    for (int i = 0; i < 20; i++) graph_int(&g, 0, 1);
    if (make[kind]) make[kind](&g, ops);
    else graph_run(&g, graph_op(&g, -1, -1), ops - 1);
    if (text) graph_write(&g, text);
    return text;
}

/* Equal steps, as Revolve has them: backward of a step reads the state before it; a step takes a second, and writes in
   place on the state that it read. Returns the end of the text. */
enum { GRAPH_STATE = 64 };                                  /* bytes of a state */
static inline char *graph_steps(char *w, int n)
{
    w += sprintf(w, "# gcp-graph 2\n");
    for (int i = 0; i < n; i++) w += sprintf(w, "t x%d %d\n", i, GRAPH_STATE);
    w += sprintf(w, "o f0 0 0 >x0\n");
    for (int i = 1; i < n; i++) w += sprintf(w, "f f%d 1 0 x%d >x%d<x%d\n", i, i - 1, i, i - 1);
    for (int i = n; i >= 1; i--) w += sprintf(w, "b b%d 1 0 x%d of=f%d\n", i, i - 1, i < n ? i : n - 1);
    return w;
}

#endif
