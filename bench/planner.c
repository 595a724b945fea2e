/* planner.c - GCP_BUDGET on known networks and on cost graphs: time (keep-all = 1), the bound, arena over peak, milliseconds
   of planning on one core; and how planning time grows. Writes planner.csv.

       planner [--graph FILE]... [--shares 1/2,1/4] [--effort quick|default|thorough] [--out FOLDER] [--growth 0] */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "networks.h"

enum { MAX_GRAPHS = 16, MAX_SHARES = 16, REPEATS = 5 };

static unsigned char *memory;
static const size_t room = GCP_MB(1500);
static gcp_arena arena;
static gcp_effort effort;
static FILE *csv;

static double milliseconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return 1e3 * (double)t.tv_sec + 1e-6 * (double)t.tv_nsec;
}

static int ascending(const void *a, const void *b) { double x = *(const double *)a, y = *(const double *)b; return (x > y) - (x < y); }

/* What is planned: a tape's loss, or a graph's text with only the tape to hold errors. */
typedef struct subject { const char *name, *text; gcp_tensor loss; gcp_plan keep; } subject;

static gcp_plan_opts options_of(const subject *s)
{
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_KEEP_ALL, .effort = effort };
    if (!s->text) { o.optimizer = GCP_SGD; o.momentum = 0.9; }
    return o;
}

static gcp_plan plan_any(const subject *s, gcp_plan_opts o) { return s->text ? gcp_graph_plan_at(s->loss.tape, s->text, o) : gcp_plan_make_at(s->loss, o); }

static void row(const subject *s, const char *share, size_t budget)
{
    gcp_plan_opts o = options_of(s);
    gcp_plan plan = { 0 };
    double ms[REPEATS];
    ptrdiff_t used = arena.used;
    o.policy = GCP_BUDGET;
    o.budget = budget;
    for (int i = 0; i < REPEATS; i++) {
        arena.used = used;
        double begin = milliseconds();
        plan = plan_any(s, o);
        ms[i] = milliseconds() - begin;
        if (!plan.in) break;
    }
    if (!plan.in) {
        printf("%-14s %-6s %8.1f MB: nothing fits; %.1f MB would\n", s->name, share, (double)budget / 1e6, (double)plan.least_bytes / 1e6);
        fprintf(csv, "%s,%s,%zu,,,,\n", s->name, share, budget);
        gcp_error_clear(s->loss.tape);
    } else {
        qsort(ms, REPEATS, sizeof *ms, ascending);
        double time = plan.seconds / plan.keep_all_seconds, bound = plan.bound_seconds / plan.keep_all_seconds, over = (double)plan.slab_bytes / (double)plan.live_peak;
        printf("%-14s %-6s %8.1f MB: %.4f, bound %.4f, arena/peak %.3f, by %-9s %6.0f ms (%.0f to %.0f)\n", s->name, share, (double)budget / 1e6, time, bound, over, plan.method,
               ms[REPEATS / 2], ms[0], ms[REPEATS - 1]);
        fprintf(csv, "%s,%s,%zu,%.6f,%.6f,%.4f,%.1f\n", s->name, share, budget, time, bound, over, ms[REPEATS / 2]);
    }
    arena.used = used;
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

static void graph(const char *path, char *const *shares, int count)
{
    FILE *f = fopen(path, "r");
    char *text = calloc(1, 16 << 20);
    if (!f || !text) { fprintf(stderr, "planner: %s cannot be read\n", path); exit(1); }
    text[fread(text, 1, (16 << 20) - 1, f)] = 0;
    fclose(f);
    arena = gcp_arena_from(memory, room);
    subject s = { .name = strrchr(path, '/') ? strrchr(path, '/') + 1 : path, .text = text };
    s.loss.tape = gcp_tape_make(&arena, .ops = 8);
    for (int i = 0; i < count; i++) {
        double over = 1, part = strtod(shares[i], NULL);
        if (strchr(shares[i], '/')) over = strtod(strchr(shares[i], '/') + 1, NULL);
        row(&s, shares[i], (size_t)((double)activations_of(text) * part / over));
    }
    free(text);
}

/* Budgets a part of the way from the least that works to keep-all. */
static void network_rows(const network_name *n)
{
    static const double parts[] = { 0.1, 0.25, 0.5, 0.75 };
    arena = gcp_arena_from(memory, room);
    subject s = { .name = n->name };
    gcp_tape *tape = gcp_tape_make(&arena, .ops = n->ops);
    s.loss = n->record(tape, n->batch, n->image).loss;
    s.keep = plan_any(&s, options_of(&s));
    gcp_plan_opts o = options_of(&s);
    o.policy = GCP_BUDGET;
    o.budget = 1;
    double begin = milliseconds();
    size_t least = plan_any(&s, o).least_bytes;
    printf("%s: %d ops, keep-all %.1f MB, least %.1f MB (%.0f ms)\n", n->name, n->ops, (double)s.keep.bytes / 1e6, (double)least / 1e6, milliseconds() - begin);
    gcp_error_clear(tape);
    for (int i = 0; i < 4; i++) {
        char name[16];
        snprintf(name, sizeof name, "%.2f", parts[i]);
        row(&s, name, least + (size_t)((double)(s.keep.bytes - least) * parts[i]));
    }
}

/* Residual chains of about n ops. */
static void growth(void)
{
    printf("\nplanning time of a residual network, half way between least and keep-all\n");
    for (int blocks = 3; blocks <= 333; blocks *= 3) {
        arena = gcp_arena_from(memory, room);
        gcp_tape *tape = gcp_tape_make(&arena, .ops = 27 * blocks + 64);
        subject s = { .name = "resnet_deep", .loss = resnet_deep(tape, blocks, 32, 32, 10).loss };
        char ops[16];
        snprintf(ops, sizeof ops, "%d", 27 * blocks);
        s.keep = plan_any(&s, options_of(&s));
        row(&s, ops, s.keep.state_bytes + s.keep.slab_bytes / 2);
    }
}

int main(int argc, char **argv)
{
    static const char *const efforts[] = { "default", "quick", "thorough" };
    static char standard[] = "3/4,1/2,1/3,1/4,1/6,1/8";
    char *graphs[MAX_GRAPHS], *shares[MAX_SHARES], *list = standard, path[1024];
    const char *out = ".";
    int count = 0, parts = 0, grow = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--graph") && count < MAX_GRAPHS) graphs[count++] = argv[i + 1];
        else if (!strcmp(argv[i], "--shares")) list = argv[i + 1];
        else if (!strcmp(argv[i], "--out")) out = argv[i + 1];
        else if (!strcmp(argv[i], "--growth")) grow = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--effort")) { for (int e = 0; e < 3; e++) if (!strcmp(argv[i + 1], efforts[e])) effort = (gcp_effort)e; }
        else { fprintf(stderr, "planner [--graph FILE]... [--shares LIST] [--effort quick|default|thorough] [--out FOLDER] [--growth 0]\n"); return 1; }
    }
    for (char *c = strtok(list, ","); c && parts < MAX_SHARES; c = strtok(NULL, ",")) shares[parts++] = c;
    memory = malloc(room);
    snprintf(path, sizeof path, "%s/planner.csv", out);
    csv = fopen(path, "w");
    if (!memory || !csv) { fprintf(stderr, "planner: no memory, or %s cannot be written\n", path); return 1; }
    fprintf(csv, "network,share,budget_bytes,gcp,bound,arena_over_peak,plan_ms\n");
    for (int i = 0; i < count; i++) graph(graphs[i], shares, parts);
    for (int i = 0; i < NETWORK_NAMES; i++) network_rows(&network_names[i]);
    if (grow) growth();
    free(memory);
    return fclose(csv) != 0;
}
