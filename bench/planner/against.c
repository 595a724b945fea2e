/* against.c - plans of one tree for 300 graphs and five budgets each, for against.sh, which compares two trees. A line
   a plan: graph, share of keep-all's live bytes, seconds as a ratio to keep-all (0: refused), bytes (refused: the
   least that would do), ms of CPU time. BUDGET: the policy's name in that tree. */
#define _POSIX_C_SOURCE 199309L
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include <stdio.h>
#include <stdlib.h>
#include "../../tests/support/clock.h"
#include "../../tests/support/graphs.h"
#include "layered.h"

enum { GRAPHS = 300, SHARES = 5 };
static unsigned char *memory;
static const size_t room = GCP_MB(2000);

static gcp_plan plan_of(const char *text, size_t budget, double *ms)
{
    gcp_arena arena = gcp_arena_from(memory, room);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
    const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    gcp_plan plan =
        budget ? gcp_graph_plan(tape, text, .policy = BUDGET, .budget = budget) : gcp_graph_plan(tape, text);
    *ms = 1e3 * (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
    return plan;
}

static void rows(const char *name, const char *text)
{
    static const double shares[SHARES] = { 0.8, 0.65, 0.5, 0.4, 0.3 };
    double ms;
    const size_t peak = plan_of(text, 0, &ms).live_peak;
    for (int s = 0; s < SHARES; s++) {
        const gcp_plan plan = plan_of(text, (size_t)(shares[s] * (double)peak), &ms);
        const double seconds = plan.bytes ? plan.seconds / plan.keep_all_seconds : 0;
        printf("%s %g %.6f %zu %.2f\n", name, shares[s], seconds, plan.bytes ? plan.slab_bytes : plan.least_bytes, ms);
    }
    fflush(stdout);
}

int main(int argc, char **argv)
{
    const int each = argc > 1 ? atoi(argv[1]) : 1;          /* of the graphs: every so many */
    memory = malloc(room);
    if (!memory) return 1;
    for (int i = 0; i < GRAPHS; i += each) {
        const int kind = i % (GRAPH_KINDS + 1), ops = 30 + (i * 37) % 220;
        char name[64], *text = kind < GRAPH_KINDS ? graph_text((graph_kind)kind, ops, (unsigned)i)
                                                  : layered_text(2 * ops, (unsigned)i, 1);
        snprintf(name, sizeof name, "%s-%d-%d", kind < GRAPH_KINDS ? graph_names[kind] : "layered", ops, i);
        if (!text) return 1;
        rows(name, text);
        free(text);
    }
    free(memory);
    return 0;
}
