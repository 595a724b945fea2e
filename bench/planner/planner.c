/* planner.c - GCP_POLICY_BUDGET beside the published methods, on cost graphs and known networks. Writes planner.csv.
   Times are ratios to keep-all by the cost model of a scalar target with one thread, plan_ms is gcp's planning time on
   one core; a field is empty where a method does not fit or is not available. budgets.c has gcp by itself.

   A plan counts only if its arena, all tensors with addresses, fits the budget. Cost graphs: the lists of chen,
   recursive, revolve and rotor (methods.h) are laid out by gcp. Networks: methods.h reads no tapes, so chen and
   recursive are gcp's own policies (GCP_POLICY_UNIFORM with 2 to 64 segments or GCP_POLICY_SQRT; GCP_POLICY_RECURSIVE),
   and revolve and rotor are empty.

       planner [--graph FILE]... [--networks] [--shares 1/2,1/4] [--effort quick|default|thorough] [--out FOLDER]
       planner [--layout FILE.csv CAPACITY]... [--long OPS]...

   --networks: the known networks, too (eight minutes); without --graph they are what is planned.
   --layout: addresses alone, by the exact search; a file as MiniMalloc reads it (support/layouts.h).
   --long: a chain of so many ops, equal and unequal: processor seconds of planning, scratch an op beside the plan.

   Exit status 1: a method was faster than gcp somewhere, or the comparison could not be made. */
#define _POSIX_C_SOURCE 199309L
#define GCP_IMPLEMENTATION
#define GCP_STATIC
#include "gcp.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../tests/support/clock.h"
#include "../../tests/support/layouts.h"
#include "methods.h"
#include "networks.h"
#include "../../tests/support/table.h"

enum { MAX_GRAPHS = 16, MAX_SHARES = 16, PARTS = 4, REPEATS = 5, ATTEMPTS = 8, MOST_SEGMENTS = 64, LABEL = 24 };
enum { CHEN, RECURSIVE, REVOLVE, ROTOR, METHODS };

static const struct {
    const char *name;
    int (*call)(const method_graph *g, uint64_t budget, method_list *out);
} methods[METHODS] = {
    [CHEN] = { "chen", method_chen }, [RECURSIVE] = { "recursive", method_recursive },
    [REVOLVE] = { "revolve", method_revolve }, [ROTOR] = { "rotor", method_rotor },
};

/* A policy's plan that needs no budget: made once, then compared with each. */
typedef struct policy_plan { int method; size_t bytes; double time; } policy_plan;

/* What is planned: a tape's loss, or a graph's text with only the tape to hold errors. */
typedef struct subject {
    const char *name, *text;
    gcp_tensor loss;
    gcp_plan keep;
    const method_graph *graph;          /* for methods.h; NULL: it cannot read the text, or there is none */
    policy_plan policies[MOST_SEGMENTS + 2];
    int policy_count;
} subject;

/* A cell where gcp was slower than a method, or found nothing (gcp 0). */
typedef struct loss_cell { const char *network; char share[LABEL]; int method; double gcp, other; } loss_cell;

static unsigned char *memory;
static const size_t room = GCP_MB(1500);
static gcp_arena arena;
static gcp_effort effort;
static FILE *csv;
static loss_cell losses[(MAX_GRAPHS * MAX_SHARES + NETWORK_NAMES * PARTS) * METHODS];
static double quick_logs;
static int loss_count, cell_count, faults, quick_count;

static gcp_plan_opts options_of(const subject *s)
{
    static const gcp_target any = { .isa = GCP_ISA_SCALAR, .threads = 1, .direct = 1 };
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_KEEP_ALL, .target = &any };
    if (!s->text) { o.optimizer = GCP_OPTIMIZER_SGD; o.momentum = 0.9; }
    return o;
}

static gcp_plan plan_any(const subject *s, gcp_plan_opts o)
{
    return s->text ? gcp_graph_plan_at(s->loss.tape, s->text, o) : gcp_plan_make_at(s->loss, o);
}

/* ---- the other methods: 0 is no time, the cell is empty ---- */

static void report_fault(const subject *s, const char *method, const char *text)
{
    printf("%s: %s: %s\n", s->name, method, text);
    faults++;
}

/* The list with addresses, by gcp: its time, and *bytes. 0: gcp refuses it. */
static double lay_out(const subject *s, const char *method, const method_list *list, size_t *bytes)
{
    ptrdiff_t used = arena.used;
    char *text = method_text(s->graph, list), message[128];
    gcp_plan plan = gcp_graph_plan(s->loss.tape, s->text, .list = text);
    free(text);
    arena.used = used;
    if (!plan.core) {
        report_fault(s, method, gcp_error(s->loss.tape));
        gcp_error_clear(s->loss.tape);
        return 0;
    }
    if (fabs(plan.seconds - list->time) > 1e-9 * plan.seconds) {
        snprintf(message, sizeof message, "%.12g by methods.h, %.12g by gcp: the same list", list->time, plan.seconds);
        report_fault(s, method, message);
    }
    *bytes = plan.bytes;
    return plan.seconds / plan.keep_all_seconds;
}

/* methods.h knows live bytes, not addresses. Where the arena of its list is over the budget it is asked again for less,
   and then, between what fitted and what did not, for more. */
static double graph_time(const subject *s, int method, size_t budget)
{
    method_list list = { 0 };
    uint64_t asked = budget, fits = 0, fails = 0;
    double best = 0;
    for (int i = 0; i < ATTEMPTS && methods[method].call(s->graph, asked, &list); i++) {
        size_t bytes;
        double time = lay_out(s, methods[method].name, &list, &bytes);
        if (!(time > 0)) break;
        if (bytes <= budget) {
            if (!(best > 0) || time < best) best = time;
            fits = asked;
        } else fails = list.peak;
        if (fails <= fits) break;                /* nothing failed, or nothing is left between the two */
        asked = fits ? fits + (fails - fits) / 2 : (uint64_t)((double)fails * (double)budget / (double)bytes);
    }
    method_list_free(&list);
    return best;
}

static double policy_time(const subject *s, int method, size_t budget)
{
    double best = 0;
    for (int i = 0; i < s->policy_count; i++) {
        const policy_plan *p = &s->policies[i];
        if (p->method == method && p->bytes <= budget && (!(best > 0) || p->time < best)) best = p->time;
    }
    return best;
}

static void add_policy(subject *s, int method, gcp_policy policy, int segments)
{
    ptrdiff_t used = arena.used;
    gcp_plan_opts o = options_of(s);
    o.policy = policy;
    o.segments = policy == GCP_POLICY_UNIFORM ? segments : 0;
    if (policy == GCP_POLICY_BUDGET) o.effort = effort;
    gcp_plan plan = plan_any(s, o);
    arena.used = used;
    if (plan.core) {
        s->policies[s->policy_count++] = (policy_plan){ method, plan.bytes, plan.seconds / plan.keep_all_seconds };
        return;
    }
    report_fault(s, methods[method].name, gcp_error(s->loss.tape));
    gcp_error_clear(s->loss.tape);
}

static void add_policies(subject *s)
{
    for (int segments = 2; segments <= MOST_SEGMENTS && segments <= s->keep.units; segments++)
        add_policy(s, CHEN, GCP_POLICY_UNIFORM, segments);
    add_policy(s, CHEN, GCP_POLICY_SQRT, 0);
    add_policy(s, RECURSIVE, GCP_POLICY_RECURSIVE, 0);
}

/* ---- rows ---- */

static void count_cell(const subject *s, const char *share, double gcp, int method, double other)
{
    if (!(other > 0)) return;
    cell_count++;
    if (gcp > 0 && gcp <= other * (1 + 1e-9)) return;
    loss_cell *l = &losses[loss_count++];
    *l = (loss_cell){ .network = s->name, .method = method, .gcp = gcp, .other = other };
    snprintf(l->share, sizeof l->share, "%s", share);
}

static void print_methods(const double times[METHODS])
{
    for (int m = 0; m < METHODS; m++)
        if (times[m] > 0) printf(" | %s %.4f", methods[m].name, times[m]);
        else printf(" | %s   -   ", methods[m].name);
}

static void write_time(double time)
{
    if (time > 0) fprintf(csv, ",%.6f", time);
    else fprintf(csv, ",");
}

/* gcp's plan, and the milliseconds that it took in ascending order. */
static gcp_plan plan_budget(const subject *s, size_t budget, gcp_effort with, double ms[REPEATS])
{
    gcp_plan_opts o = options_of(s);
    gcp_plan plan = { 0 };
    ptrdiff_t used = arena.used;
    o.policy = GCP_POLICY_BUDGET;
    o.budget = budget;
    o.effort = with;
    for (int i = 0; i < REPEATS; i++) {
        arena.used = used;
        double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
        plan = plan_any(s, o);
        ms[i] = 1e3 * (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
        if (!plan.core) break;
    }
    if (plan.core) qsort(ms, REPEATS, sizeof *ms, by_size);
    else gcp_error_clear(s->loss.tape);
    return plan;
}

/* Cells that are solved in less than a millisecond say nothing of the search. */
static void count_quick(double ms, double quick)
{
    if (!(quick > 0) || ms < 1) return;
    quick_logs += log(ms / quick);
    quick_count++;
}

static void row(const subject *s, const char *share, size_t budget)
{
    double ms[REPEATS], quick[REPEATS] = { 0 }, times[METHODS], time = 0;
    ptrdiff_t used = arena.used;
    plan_budget(s, budget, GCP_EFFORT_QUICK, quick);
    arena.used = used;
    gcp_plan plan = plan_budget(s, budget, effort, ms);
    arena.used = used;
    if (plan.core) time = plan.seconds / plan.keep_all_seconds;
    for (int m = 0; m < METHODS; m++) {
        times[m] = s->graph ? graph_time(s, m, budget) : policy_time(s, m, budget);
        count_cell(s, share, time, m, times[m]);
    }
    printf("%-14s %-6s %8.1f MB: ", s->name, share, (double)budget / 1048576);
    fprintf(csv, "%s,%s,%zu", s->name, share, budget);
    write_time(time);
    for (int m = 0; m < METHODS; m++) write_time(times[m]);
    if (plan.core) {
        double bound = plan.bound_seconds / plan.keep_all_seconds,
               over = (double)plan.slab_bytes / (double)plan.live_peak;
        printf("%.4f", time);
        print_methods(times);
        printf(" | bound %.4f, arena/peak %.3f, by %-9s %6.0f ms (%.0f to %.0f), quick %.0f\n", bound, over,
               plan.method, ms[REPEATS / 2], ms[0], ms[REPEATS - 1], quick[REPEATS / 2]);
        count_quick(ms[REPEATS / 2], quick[REPEATS / 2]);
        fprintf(csv, ",%.6f,%.4f,%.1f\n", bound, over, ms[REPEATS / 2]);
    } else {
        printf("  -   ");
        print_methods(times);
        printf(" | nothing fits; %.1f MB would\n", (double)plan.least_bytes / 1048576);
        fprintf(csv, ",,,\n");
    }
    fflush(stdout);
}

/* Shares of the sum of forward output bytes. */
static size_t activations_of(const char *text)
{
    size_t sum = 0, bytes;
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (sscanf(line, "f %*s %*s %zu", &bytes) == 1) sum += bytes;
    }
    return sum;
}

static char *text_of(const char *path)
{
    const size_t most = 16 << 20;
    FILE *f = fopen(path, "r");
    char *text = calloc(1, most);
    if (!f || !text) { fprintf(stderr, "planner: %s cannot be read\n", path); exit(1); }
    text[fread(text, 1, most - 1, f)] = 0;
    fclose(f);
    return text;
}

static void graph_rows(const char *path, char *const *shares, int count)
{
    char *text = text_of(path);
    method_graph g;
    subject s = { .name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, .text = text };
    arena = gcp_arena_from(memory, room);
    s.loss.tape = gcp_tape_make(&arena, .ops = 8);
    if (method_parse(&g, text)) s.graph = &g;
    else printf("%s: no gcp-graph 1 (line %d), so gcp is alone\n", s.name, g.line);
    for (int i = 0; i < count; i++) {
        double over = 1, part = strtod(shares[i], NULL);
        if (strchr(shares[i], '/')) over = strtod(strchr(shares[i], '/') + 1, NULL);
        row(&s, shares[i], (size_t)((double)activations_of(text) * part / over));
    }
    method_free(&g);
    free(text);
}

/* Budgets a part of the way from the least that works to keep-all. */
static void network_rows(const network_name *n)
{
    static const double parts[PARTS] = { 0.1, 0.25, 0.5, 0.75 };
    arena = gcp_arena_from(memory, room);
    subject s = { .name = n->name };
    gcp_tape *tape = gcp_tape_make(&arena, .ops = n->ops);
    s.loss = n->record(tape, n->batch, n->image).loss;
    s.keep = plan_any(&s, options_of(&s));
    gcp_plan_opts o = options_of(&s);
    o.policy = GCP_POLICY_BUDGET;
    o.effort = effort;
    o.budget = 1;
    double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    size_t least = plan_any(&s, o).least_bytes;
    printf("%s: %d ops, keep-all %.1f MB, least %.1f MB (%.0f ms)\n", n->name, n->ops, (double)s.keep.bytes / 1048576,
           (double)least / 1048576, 1e3 * (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin));
    gcp_error_clear(tape);
    add_policies(&s);
    for (int i = 0; i < PARTS; i++) {
        char name[LABEL];
        snprintf(name, sizeof name, "%.2f", parts[i]);
        row(&s, name, least + (size_t)((double)(s.keep.bytes - least) * parts[i]));
    }
}

/* 0: it packs. */
static int layout_row(const char *path, size_t capacity)
{
    static const char *const said[] = { "packs", "cannot", "undecided" };
    static layout y;
    gcpi_skyline s;
    double work = 1e11;
    arena = gcp_arena_from(memory, room);
    if (!layout_read(&y, path) || !layout_rectangles(&y, &s, &arena)) { printf("%s: no layout\n", path); return 1; }
    const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    const gcpi_packed packed = gcpi_packing_exact(&s, capacity, &work, &arena);
    const double seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
    const int fault = packed == GCPI_PACKS && !layout_holds(&y, &s, capacity);
    printf("%s: %d buffers in %zu: %s, %.3f s%s\n", path, y.count, capacity, said[packed], seconds,
           fault ? ", but they overlap" : "");
    return packed != GCPI_PACKS || fault;
}

static void verdict(void)
{
    printf("\nin %d of %d cells gcp is at least as fast\n", cell_count - loss_count, cell_count);
    if (quick_count)
        printf("quick effort plans in 1/%.1f of the time (geometric mean of %d cells)\n", exp(quick_logs / quick_count),
               quick_count);
    for (int i = 0; i < loss_count; i++) {
        const loss_cell *l = &losses[i];
        printf("slower: %s %s: ", l->network, l->share);
        if (l->gcp > 0) printf("gcp %.6f, ", l->gcp);
        else printf("gcp fits nothing, ");
        printf("%s %.6f\n", methods[l->method].name, l->other);
    }
    if (faults) printf("%d lists or policies failed or disagreed (above)\n", faults);
}

static char *long_chain(int n, int equal)
{
    uint64_t random = 88172645463325252ull;
    size_t *bytes = malloc(((size_t)n + 1) * sizeof *bytes);
    char *text = malloc(80 * ((size_t)n + 1)), *w = text;
    if (!bytes || !text) { free(bytes); free(text); return NULL; }
    for (int i = 0; i <= n; i++) bytes[i] = equal ? 1000 : 64 * (1 + (size_t)gcpi_below(&random, 32));
    w += sprintf(w, "# gcp-graph 1\no x0 0 %zu 0\n", bytes[0]);
    for (int i = 1; i < n; i++)
        w += sprintf(w, "f x%d %u %zu 0 x%d\n", i, equal ? 1 : 1 + gcpi_below(&random, 10), bytes[i], i - 1);
    w += sprintf(w, "b g%d 1 %zu 0 x%d\n", n, bytes[n], n - 1);
    for (int i = n - 1; i > 0; i--) w += sprintf(w, "b g%d 1 %zu 0 x%d g%d\n", i, bytes[i], i - 1, i + 1);
    free(bytes);
    return text;
}

static int long_rows(int n)
{
    static const struct { const char *name; gcp_policy policy; double share; } rows[] = {
        { "keep-all", GCP_POLICY_KEEP_ALL, 0 },   { "sqrt", GCP_POLICY_SQRT, 0 },
        { "recursive", GCP_POLICY_RECURSIVE, 0 }, { "quick, half", GCP_POLICY_BUDGET, 0.5 },
        { "quick, 1/20", GCP_POLICY_BUDGET, 0.05 },
    };
    const gcp_target target = { .threads = 1, .align = 8 };
    int failed = 0;
    for (int equal = 1; equal >= 0; equal--) {
        char *text = long_chain(n, equal);
        size_t all = 0;
        double keep = 1;
        if (!text) { fprintf(stderr, "planner: out of memory\n"); return 1; }
        for (int i = 0; i < 5; i++) {
            gcp_plan_opts o = { .policy = rows[i].policy, .target = &target };
            if (rows[i].share > 0) { o.budget = (size_t)(rows[i].share * (double)all); o.effort = GCP_EFFORT_QUICK; }
            arena = gcp_arena_from(memory, room);
            gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
            const double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
            const gcp_plan plan = gcp_graph_plan_at(tape, text, o);
            const double seconds = clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin;
            if (i == 0) all = plan.slab_bytes;
            failed += !gcp_plan_ok(&plan);
            if (i == 0) keep = plan.seconds;
            printf("%d ops, %s, %s: %zu bytes (live %zu), %.4f times keep-all", n, equal ? "equal" : "unequal",
                   rows[i].name, plan.slab_bytes, plan.live_peak, plan.seconds / keep);
            if (rows[i].share > 0) printf(" (no list below %.4f)", plan.bound_seconds / keep);
            printf("; %.2f s, scratch %td bytes an op\n", seconds, (arena.high - arena.used) / n);
        }
        free(text);
    }
    return failed;
}

static int usage(void)
{
    fprintf(stderr, "planner [--graph FILE]... [--networks] [--shares LIST] [--effort quick|default|thorough] "
                    "[--out FOLDER] | [--layout FILE.csv CAPACITY]... [--long OPS]...\n");
    return 1;
}

/* What is asked for. */
typedef struct asked {
    const char *graphs[MAX_GRAPHS], *out;
    char *shares[MAX_SHARES], *list;
    int count, parts, networks, alone, failed;      /* alone: rows of --layout and --long, which are made at once */
} asked;

/* Takes option i and what belongs to it. Returns how many words that is; 0: it is none. */
static int take(asked *a, char **argv, int left)
{
    static const char *const efforts[] = { "default", "quick", "thorough" };
    const char *name = argv[0];
    if (!strcmp(name, "--networks")) { a->networks = 1; return 1; }
    if (left < 2) return 0;
    if (!strcmp(name, "--graph") && a->count < MAX_GRAPHS) a->graphs[a->count++] = argv[1];
    else if (!strcmp(name, "--shares")) a->list = argv[1];
    else if (!strcmp(name, "--out")) a->out = argv[1];
    else if (!strcmp(name, "--long") && atoi(argv[1]) > 1) { a->failed += long_rows(atoi(argv[1])); a->alone++; }
    else if (!strcmp(name, "--layout") && left > 2) {
        a->failed += layout_row(argv[1], (size_t)strtoull(argv[2], NULL, 10));
        a->alone++;
        return 3;
    } else if (!strcmp(name, "--effort")) {
        int e = 0;
        while (e < 3 && strcmp(argv[1], efforts[e])) e++;
        if (e == 3) return 0;
        effort = (gcp_effort)e;
    } else return 0;
    return 2;
}

static int table_of(asked *a)
{
    for (char *c = strtok(a->list, ","); c && a->parts < MAX_SHARES; c = strtok(NULL, ",")) a->shares[a->parts++] = c;
    csv = table_open("planner", a->out, "planner.csv");
    fprintf(csv, "network,share,budget_bytes,gcp");
    for (int m = 0; m < METHODS; m++) fprintf(csv, ",%s", methods[m].name);
    fprintf(csv, ",bound,arena_over_peak,plan_ms\n");
    for (int i = 0; i < a->count; i++) graph_rows(a->graphs[i], a->shares, a->parts);
    for (int i = 0; i < NETWORK_NAMES && (a->networks || !a->count); i++) network_rows(&network_names[i]);
    verdict();
    table_close("planner", csv);
    return loss_count > 0 || faults > 0;
}

int main(int argc, char **argv)
{
    static char standard[] = "3/4,1/2,1/3,1/4,1/6,1/8";
    asked a = { .out = ".", .list = standard };
    memory = malloc(room);
    if (!memory) { fprintf(stderr, "planner: out of memory\n"); return 1; }
    for (int i = 1, words; i < argc; i += words)
        if (!(words = take(&a, argv + i, argc - i))) { free(memory); return usage(); }
    const int failed = a.alone ? a.failed > 0 : table_of(&a);
    free(memory);
    return failed;
}
