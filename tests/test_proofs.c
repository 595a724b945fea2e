#define GCP_IMPLEMENTATION
#define GCP_STATIC
#include "gcp.h"
#include "support/check.h"
#include "support/addresses.h"
#include "support/graphs.h"
#include <math.h>
#include <stdlib.h>

/* What the planner says is proven, against all lists with all addresses; what a greater effort, and a byte less, give.
   Usage: test_proofs [long] */

static unsigned char memory[200 << 20];
static gcp_arena arena;
static int graphs_of_each = 5;
static gcp_effort most_effort = GCP_EFFORT_DEFAULT;
static gcp_tape *fresh(void) { arena = gcp_arena_from(memory, sizeof memory); return gcp_tape_make(&arena, .ops = 8); }

/* A random graph of a few ops, in a slab: against all lists, all addresses, all moves. 0: too many to look through. */
static int addressed(addresses *all, const char *small, size_t budget)
{
    gcp_tape *tape = fresh();
    const int best = addresses_best(all, budget);
    if (best < 0) return 0;
    gcp_plan plan = gcp_graph_plan(tape, small, .policy = GCP_POLICY_BUDGET, .budget = budget);
    CHECK((plan.core != NULL) == (best > 0));
    if (!plan.core) { gcp_error_clear(tape); return 1; }
    CHECK(plan.seconds >= best - 1e-9 && plan.bound_seconds <= best + 1e-9);
    return 1;
}

/* What is said to be proven is so: fastest plans, least budgets. */
static void proofs(void)
{
    static addresses all;
    int rows = 0, done = 0;
    for (int i = 0; done < graphs_of_each; i++) {
        gcp_tape *tape = fresh();
        char *small = graph_text((graph_kind)(i % GRAPH_KINDS), 3 + i % 3, (unsigned)i);
        const size_t keep = gcp_graph_plan(tape, small, .policy = GCP_POLICY_KEEP_ALL).bytes;
        gcp_plan none = gcp_graph_plan(tape, small, .policy = GCP_POLICY_BUDGET, .budget = 1);
        const size_t least = none.least_bytes;
        CHECK(!none.core && least <= keep && (strstr(gcp_error(tape), "(proven") != NULL) == none.least_proven);
        if (addresses_read(&all, small) && addressed(&all, small, least) && addressed(&all, small, least - 64)) {
            CHECK(none.least_proven);
            rows += 2 + addressed(&all, small, (least + keep) / 128 * 64);
            done++;
        }
        free(small);
    }
    printf("addresses: %d small graphs, %d budgets: as all lists, addresses and moves say\n", done, rows);
}

/* The least budget that is named works, a byte less is refused; a greater effort is never slower. */
static void efforts(void)
{
    for (int i = 0; i < graphs_of_each; i++) {
        gcp_tape *tape = fresh();
        char *some = graph_text((graph_kind)(i % GRAPH_KINDS), 6 + i % 15, (unsigned)i);
        const size_t keep = gcp_graph_plan(tape, some, .policy = GCP_POLICY_KEEP_ALL).bytes;
        const size_t least = gcp_graph_plan(tape, some, .policy = GCP_POLICY_BUDGET, .budget = 1).least_bytes;
        gcp_error_clear(tape);
        gcp_plan less = gcp_graph_plan(tape, some, .policy = GCP_POLICY_BUDGET, .budget = least - 1);
        CHECK(!less.core && less.least_bytes == least);
        gcp_error_clear(tape);
        for (int k = 0; k < 2; k++) {
            static const gcp_effort all[] = { GCP_EFFORT_QUICK, GCP_EFFORT_DEFAULT, GCP_EFFORT_THOROUGH };
            double before = INFINITY;
            for (int e = 0; e < 3 && (e == 0 || all[e - 1] != most_effort); e++) {
                gcp_plan plan = gcp_graph_plan(tape, some, .policy = GCP_POLICY_BUDGET, .effort = all[e],
                                               .budget = k ? (least + keep) / 2 : least);
                CHECK(plan.core ? plan.seconds <= before : before == INFINITY && all[e] == GCP_EFFORT_QUICK);
                if (plan.core) { before = plan.seconds; gcp_plan_free(&plan); }
                else gcp_error_clear(tape);
            }
        }
        free(some);
    }
}

/* Found from outside: a gradient written in place on a forward value, about which nothing is proven; no bytes at all;
   an empty tensor at the address of another. */
static void odd_graphs(void)
{
    static const struct { const char *text; size_t budget, least; } odd[] = {
        { "# gcp-graph 3\nt x0 64\nt x1 64\nt x2 64 gradient\nt x3 64 gradient\nf T0 8 0 >x0\nf T1 6 0 x0 >x1<x0\n"
          "b T2 2 0 x1 x0 >x2<x0\nb T3 2 0 x0 x2 >x3<x2\n", 128, 0 },
        { "# gcp-graph 3\nt a 192\nt g 192 gradient\nt h 64 gradient\nt k 64 gradient\nf A 1 0 >a\nb G 1 0 a >g<a\n"
          "b H 1 0 g >h\nb K 1 0 a h >k\n", 320, 0 },
        { "# gcp-graph 1\nf a 1 0 0\nb b 1 0 0\n", 64, 0 },
        { "# gcp-graph 3\nt x0 128\nt x1 0\nt x2 128 end\nt x3 64\nt x4 128 gradient\nt x5 128 gradient\n"
          "f T0 7 0 >x1 >x0\nf T1 0 0 x0 >x2<x0 >x3\nb T2 7 0 x0 x3 >x4\nb T3 0 128 x1 x4 >x5<x4\n", 384, 384 },
    };
    for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
        gcp_tape *tape = fresh();
        gcp_plan plan = gcp_graph_plan(tape, odd[i].text, .policy = GCP_POLICY_BUDGET, .budget = odd[i].budget);
        CHECK(plan.core && plan.bound_seconds <= plan.seconds);
        gcp_plan less = gcp_graph_plan(tape, odd[i].text, .policy = GCP_POLICY_BUDGET, .budget = odd[i].budget - 1);
        if (odd[i].least) CHECK(!less.core && less.least_bytes == odd[i].least && less.least_proven);
        else CHECK(less.core || !less.least_proven);
    }
}

/* Too many states near the least: a search in haste finds what the one that proves does not reach (by it 152 s), and
   what live bytes alone allow is no more than a bound. */
static void haste(void)
{
    gcp_tape *tape = fresh();
    char *dense = graph_text(GRAPH_DENSE, 8, 41);
    gcp_plan plan = gcp_graph_plan(tape, dense, .policy = GCP_POLICY_BUDGET, .budget = 1408);
    CHECK(plan.core && plan.seconds <= 147 && plan.bound_seconds == 129);
    free(dense);
}

/* Free bytes that no values fill are no help: between two whole numbers of equal buffers the bound is the lower's. */
static void units(void)
{
    char text[4096], *w = text;
    double bound[2];
    for (int i = 0; i < 24; i++) {
        w += sprintf(w, "f v%d %d 1024 0", i, 1 + i * 5 % 7);
        w += i ? sprintf(w, " v%d\n", i - 1) : sprintf(w, "\n");
    }
    for (int i = 23; i >= 0; i--) {
        w += sprintf(w, "b g%d 1 1024 0 v%d", i, i);
        w += i < 23 ? sprintf(w, " v%d g%d\n", i ? i - 1 : 0, i + 1) : sprintf(w, " v%d\n", i - 1);
    }
    for (int half = 0; half < 2; half++) {
        gcp_tape *tape = fresh();
        gcp_plan plan = gcp_graph_plan(tape, text, .policy = GCP_POLICY_BUDGET,
                                       .budget = 12 * 1024 + 512 * (size_t)half);
        CHECK(plan.core && plan.bound_seconds > plan.keep_all_seconds && plan.bound_seconds <= plan.seconds);
        bound[half] = plan.bound_seconds;
    }
    CHECK(bound[0] == bound[1]);
}

/* By several ways down: one alone ends at 2,176 and 960 bytes. Where that is the least, it is planned. */
static void ways_down(void)
{
    static const struct { graph_kind kind; int ops; unsigned seed; size_t least; } cases[] = {
        { GRAPH_CELLS, 20, 0, 1984 }, { GRAPH_LOSSES, 20, 0, 896 } };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        gcp_tape *tape = fresh();
        char *text = graph_text(cases[i].kind, cases[i].ops, cases[i].seed);
        const size_t least = gcp_graph_plan(tape, text, .policy = GCP_POLICY_BUDGET, .budget = 1).least_bytes;
        CHECK(least && least <= cases[i].least);
        tape = fresh();
        const gcp_plan plan = gcp_graph_plan(tape, text, .policy = GCP_POLICY_BUDGET, .budget = least);
        CHECK(plan.core && plan.bytes == least);
        free(text);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "long")) { graphs_of_each = 12; most_effort = GCP_EFFORT_THOROUGH; }
    proofs();
    efforts();
    odd_graphs();
    haste();
    units();
    ways_down();
    return check_done();
}
