/* small.c - graphs so small that solvers end, and chains of equal steps, as gcp plans them: what solvers.py compares
   with. Into a folder: each graph as a file, and small.csv, a line for each graph and budget. Random graphs (graphs.h)
   of about 4 to 8 forward ops at the least budget and at parts of the way to keep-all; chains in so many states, alone
   and beside far memory, where writing and reading back a state each take twice the time of a step (H-Revolve's
   defaults).

       small COUNT FOLDER                 COUNT: of random graphs

   Exit status 1: it could not be made. */
#define _POSIX_C_SOURCE 199309L
#include "gcp.h"
#include <stdio.h>
#include <stdlib.h>
#include "../../tests/support/clock.h"
#include "../../tests/support/graphs.h"
#include "../../tests/support/table.h"

enum { PARTS = 4, UNIT = 64, CHAIN_TEXT = 1 << 16 };    /* UNIT: all sizes are multiples of it */
static unsigned char *memory;
static const size_t room = GCP_MB(256);
static FILE *csv;

static gcp_plan plan_of(const char *text, gcp_plan_opts o, double *ms)
{
    gcp_arena arena = gcp_arena_from(memory, room);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
    o.at = GCP_AT;
    const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const gcp_plan plan = gcp_graph_plan_at(tape, text, o);
    *ms = 1e3 * (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
    return plan;
}

static int keep_graph(const char *folder, const char *name, const char *text)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s.graph", folder, name);
    FILE *f = fopen(path, "w");
    if (!f) { fprintf(stderr, "small: %s cannot be written\n", path); return 0; }
    fputs(text, f);
    return fclose(f) == 0;
}

static void row(const char *name, const char *text, gcp_plan_opts o)
{
    double ms;
    o.policy = GCP_POLICY_BUDGET;
    const gcp_plan plan = plan_of(text, o, &ms);
    fprintf(csv, "%s,%zu,%zu,", name, o.budget, o.far);
    if (plan.core) fprintf(csv, "%.9g,%.9g,%.9g,%.2f\n", plan.keep_all_seconds, plan.seconds, plan.bound_seconds, ms);
    else fprintf(csv, ",,,%.2f\n", ms);
}

static int random_rows(const char *folder, int i)
{
    char name[64];
    double ms;
    const graph_kind kind = (graph_kind)(i % GRAPH_KINDS);
    char *text = graph_text(kind, 4 + i / GRAPH_KINDS % 5, (unsigned)i);
    snprintf(name, sizeof name, "%s-%d", graph_names[kind], i);
    if (!text || !keep_graph(folder, name, text)) { free(text); return 0; }
    const size_t all = plan_of(text, (gcp_plan_opts){ .policy = GCP_POLICY_KEEP_ALL }, &ms).bytes,
                 least = plan_of(text, (gcp_plan_opts){ .policy = GCP_POLICY_BUDGET, .budget = 1 }, &ms).least_bytes;
    for (int p = 0; p < PARTS; p++) {
        const size_t budget = (least + (all - least) * (size_t)p / PARTS) / UNIT * UNIT;
        if (p == 0 || budget > least) row(name, text, (gcp_plan_opts){ .budget = budget });
    }
    free(text);
    return 1;
}

static int chain_rows(const char *folder)
{
    static const int steps[] = { 10, 25, 50, 100, 200 }, states[] = { 2, 3, 5, 10 };
    static char text[CHAIN_TEXT];
    const gcp_target link = { .far_bytes_per_second = GRAPH_STATE / 2.0 };
    for (int i = 0; i < 5; i++) {
        char name[64];
        snprintf(name, sizeof name, "steps-%d", steps[i]);
        graph_steps(text, steps[i]);
        if (!keep_graph(folder, name, text)) return 0;
        for (int s = 0; s < 4; s++) {
            const size_t budget = (size_t)GRAPH_STATE * (size_t)(states[s] + 1);
            row(name, text, (gcp_plan_opts){ .budget = budget });
            row(name, text, (gcp_plan_opts){ .budget = budget, .far = GCP_MB(1), .target = &link });
        }
    }
    return 1;
}

int main(int argc, char **argv)
{
    if (argc != 3 || atoi(argv[1]) < 0) { fprintf(stderr, "small COUNT FOLDER\n"); return 1; }
    memory = malloc(room);
    if (!memory) { fprintf(stderr, "small: out of memory\n"); return 1; }
    csv = table_open("small", argv[2], "small.csv");
    fprintf(csv, "graph,budget_bytes,far_bytes,keep_all,gcp,bound,ms\n");
    int made = chain_rows(argv[2]);
    for (int i = 0; made && i < atoi(argv[1]); i++) made = random_rows(argv[2], i);
    table_close("small", csv);
    free(memory);
    return !made;
}
