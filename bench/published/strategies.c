/* strategies.c - the tables of the five published systems (published.h), with gcp's rows below theirs; and in the
   folder of --out, strategies.csv and strategies.svg. Networks are planned, which takes no memory; with --steps those
   that fit in --memory, and whose step takes no more than --work, are trained as well (--train: this strategy alone):
   what a step takes is measured.

       strategies [--table 000|001|002|003|004|big] [--only NETWORK] [--batch N] [--budget MB] [--steps N]
                  [--train STRATEGY] [--memory MB] [--work TFLOP] [--rates FLOPS,BYTES,LINK] [--profile 0|1]
                  [--store float|bf16] [--out FOLDER]

   Without --table it is 002's: every residual network and Inception-v4 at both batches. Without --budget it is what the
   published systems needed, or else the weights' bytes and a quarter of what a framework stores (see published.h).
   --rates: of the machine that times are planned for: FLOPs, memory bytes and bytes over the link a second; by default
   a card as the measurements of 002 had (GTX 1070: 6.5e12, 2.56e11, 1.2e10), whose copies run beside what computes. Of
   what is trained, the ratio measured on this CPU stands beside; there copies wait. --profile 1: planned for this CPU
   instead, with each op's seconds and the link's as gcp_profile measures them; and a row either_less, of `either` in
   the least bytes in which it is planned to be no slower than `budget`. Strategies are trained one after another, so on
   a machine that others use a measured ratio is a hint; --train alone has none, as keep_all is not trained. --store
   bf16: gcp's rows keep activations and their gradients in two bytes, and what a framework stores is halved; the
   published rows are in float, as they were.

   strategies.csv: stored_bytes: of keep_all, what a framework stores; of the others, what lies between forward and
   backward. planned_peak: all bytes of a step; persistent_bytes of them are weights, statistics and slots. moved_bytes:
   copied in a step. ratio: seconds over keep_all's, as planned. gap: seconds over the proven bound, less 1.
   measured_ratio: of the medians of the steps that were run. budget_bytes: what was asked for; where budget, far and
   either have more as planned_peak, that is the least found to work. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../tests/support/clock.h"
#include "../../tests/support/published.h"
#include "scatter.h"
#include "../../tests/support/table.h"
#include "words.h"

enum { ROOM = 700, MOST_STEPS = 100, POINTS = SCATTER_MAX };

typedef struct options {
    const char *table, *only, *folder, *train;
    int batch, steps, profile, rated;
    double budget;                       /* MB; 0: the table's */
    double memory, work;                 /* MB and 10^12 FLOPs that a step may take to be trained */
    double rates[3];
    gcp_store store;
} options;

/* A strategy's plan: its figures, what was measured (0: nothing), and seconds of a step on this machine. */
typedef struct row {
    const char *name;
    gcp_plan plan;
    size_t stored, measured;
    double seconds;
} row;

static unsigned char *memory;
static gcp_arena arena;
static FILE *csv;
static char *costs;                      /* of this machine, as gcp_costs_print writes them (--profile 1) */
static size_t costs_length;
static scatter_point points[POINTS];
static int point_count, trained;

static void *allocate(size_t size)
{
    void *m = malloc(size ? size : 1);
    if (m) return m;
    fprintf(stderr, "strategies: no %zu bytes\n", size);
    exit(1);
}

/* ---- training ----------------------------------------------------------------------------------------------------*/

static void feed(gcp_plan *plan, const network *n)
{
    const size_t count = gcp_elements(n->image), labels = gcp_elements(n->labels);
    gcp_real *x = allocate(count * sizeof *x);
    int32_t *y = allocate(labels * sizeof *y);
    for (size_t i = 0; i < count; i++) x[i] = (gcp_real)(i * 37 % 101) / 50 - 1;
    for (size_t i = 0; i < labels; i++) y[i] = (int32_t)(i * 7 % 2);
    gcp_write(plan, n->image, x);
    gcp_write(plan, n->labels, y);
    free(x);
    free(y);
}

/* What a plan is bound to: of the device, and far memory. */
typedef struct bound { unsigned char *slab, *far; } bound;
static bound bind_plan(gcp_plan *plan, const network *n)
{
    const bound b = { allocate(plan->room), allocate(plan->far_bytes + 64) };
    gcp_bind(plan, b.slab, plan->room);
    if (plan->far_bytes) gcp_far_bind(plan, b.far, plan->far_bytes);
    feed(plan, n);
    return b;
}
static void release(bound b)
{
    free(b.slab);
    free(b.far);
}

/* The bytes that a step changes, and the median of the seconds of o->steps of them. */
static void train(const options *o, const network *n, row *r)
{
    const size_t size = r->plan.room + 4096;
    double seconds[MOST_STEPS];
    const bound b = bind_plan(&r->plan, n);
    for (int i = 0; i < o->steps; i++) {
        const double begin = seconds_now();
        gcp_step(&r->plan, .lr = 0.001);
        seconds[i] = seconds_now() - begin;
        fprintf(stderr, "\r%s: step %d of %d, %.1f s ", r->name, i + 1, o->steps, seconds[i]);
    }
    unsigned char *probe = allocate(size);
    r->measured = gcp_measure(&r->plan, probe, size);
    free(probe);
    release(b);
    fprintf(stderr, "\r%60s\r", "");
    qsort(seconds, (size_t)o->steps, sizeof *seconds, by_size);
    r->seconds = seconds[o->steps / 2];
    trained++;
}

/* ---- a workload --------------------------------------------------------------------------------------------------*/

static gcp_tape *tape_of(const workload *w)
{
    arena = gcp_arena_from(memory, GCP_MB(ROOM));
    return gcp_tape_make(&arena, .ops = w->ops);
}

/* Plans a strategy on a tape of its own, whose arena the next one takes over. */
static row planned(const options *o, const workload *w, const strategy *s, size_t budget, network *n)
{
    static stored noted;
    const gcp_target target = card_of(o->rates);
    gcp_plan_opts opts = published_training(w->table);
    row r = { .name = s->name };
    gcp_tape *net = tape_of(w);
    noted.count = noted.layers = 0;
    *n = w->record(net, w->batch, &noted);
    opts.target = o->profile ? NULL : &target;
    opts.costs = costs;
    opts.store = o->store;
    r.plan = strategy_plan(s, n->loss, opts, budget);
    if (!gcp_plan_ok(&r.plan))
        fprintf(stderr, "strategies: %s, %s: %s\n", w->name, s->name, gcp_error(net) ? gcp_error(net) : "no plan");
    r.stored = s == &strategies[KEEP_ALL] ? framework_bytes(&noted) / (o->store ? 2 : 1) : r.plan.after_forward;
    return r;
}

static int small_enough(const options *o, const gcp_plan *p)
{
    const double bytes = (double)(p->room + p->far_bytes), flops = 3 * p->forward_flops + p->rerun_flops;
    return 1e-6 * bytes < o->memory && 1e-12 * flops < o->work;
}

/* A plan that is trained as well where it fits. */
static row row_of(const options *o, const workload *w, const strategy *s, size_t budget)
{
    network n;
    row r = planned(o, w, s, budget, &n);
    if (!gcp_plan_ok(&r.plan)) return r;
    const int wanted = o->steps && (!o->train || !strcmp(o->train, s->name));
    if (wanted && small_enough(o, &r.plan)) train(o, &n, &r);
    const char *error = gcp_error(n.loss.tape);
    if (error) fprintf(stderr, "strategies: %s, %s: %s\n", w->name, s->name, error);
    return r;
}

static size_t budget_of(const options *o, const workload *w)
{
    if (w->budget > 0) return (size_t)(1e6 * w->budget);
    network n;
    const row all = planned(o, w, &strategies[KEEP_ALL], 0, &n);
    return all.plan.state_bytes + all.plan.split.weight_gradients + all.stored / 4;
}

/* ---- this machine (--profile 1) ----------------------------------------------------------------------------------*/

static void costs_write(void *context, const char *text, size_t size)
{
    (void)context;
    char *longer = allocate(costs_length + size + 1);
    if (costs) memcpy(longer, costs, costs_length);
    free(costs);
    costs = longer;
    memcpy(costs + costs_length, text, size);
    costs[costs_length += size] = 0;
}

/* Adds what a strategy's steps cost to the costs. */
static void profile(const options *o, const workload *w, const strategy *s, size_t budget)
{
    network n;
    row r = planned(o, w, s, budget, &n);
    if (!gcp_plan_ok(&r.plan) || !small_enough(o, &r.plan)) return;
    const bound b = bind_plan(&r.plan, &n);
    gcp_profile(&r.plan);
    gcp_costs_print(&r.plan, (gcp_writer) { costs_write, NULL });
    release(b);
}

/* Between the least bytes of a strategy and these: the fewest, to a 64th, in which it takes no more seconds. */
static size_t least_in(const options *o, const workload *w, const strategy *s, size_t bytes, double seconds)
{
    network n;
    size_t low = planned(o, w, s, 1, &n).plan.bytes;
    if (low >= bytes) return bytes;
    for (size_t step = (bytes - low) / 64; step && bytes - low > step;) {
        const size_t middle = low + (bytes - low) / 2;
        if (planned(o, w, s, middle, &n).plan.seconds <= seconds) bytes = middle;
        else low = middle;
    }
    return bytes;
}

/* ---- the tables --------------------------------------------------------------------------------------------------*/

static void legend_print(void)
{
    printf("\nMB: all bytes of a step; but state: less weights, statistics and slots; x time: over keep_all, planned\n"
           "and measured here (--steps); gap: over the proven bound; stored: of keep_all what a framework stores, or\n"
           "what lies between forward and backward; =: a step was run, and changed as many bytes as were planned.\n");
}
static void ratio_print(double ratio)
{
    if (ratio > 0) printf(" %8.3f", ratio);
    else printf(" %8s", "-");
}
static void published_print(const workload *w)
{
    const double plain = w->published[0].seconds;
    for (int i = 0; i < PUBLISHED && w->published[i].system; i++) {
        const published *p = &w->published[i];
        printf("  %-26s", p->system);
        if (p->megabytes > 0) printf(" %9.1f", p->megabytes);
        else printf(" %9s", "-");
        printf(" %9s", "");
        ratio_print(plain > 0 && p->seconds > 0 ? p->seconds / plain : 0);
        printf("\n");
    }
}

/* The measured bytes are "=" where they are the planned ones. */
static void row_print(const row *r, const row *all, size_t budget)
{
    const gcp_plan *p = &r->plan;
    const double gap = p->bound_seconds > 0 ? p->seconds / p->bound_seconds - 1 : -1;
    printf("  gcp %-22s %9.1f %9.1f", r->name, 1e-6 * (double)p->bytes, 1e-6 * (double)p->slab_bytes);
    ratio_print(p->seconds / all->plan.seconds);
    ratio_print(all->seconds > 0 ? r->seconds / all->seconds : 0);
    if (gap >= 0) printf(" %6.1f%%", 100 * gap);
    else printf(" %7s", "-");
    printf(" %6d %9.1f %9.1f %s%s\n", p->reruns, 1e-6 * (double)p->far_traffic, 1e-6 * (double)r->stored,
           !r->measured               ? ""
           : r->measured == p->bytes ? "="
                                      : "DIFFERS",
           p->method && p->bytes > budget ? " over budget: its least" : "");
}

static void row_csv(const workload *w, const row *r, const row *all, size_t budget)
{
    const gcp_plan *p = &r->plan;
    fprintf(csv, "%s,%d,%s,%zu,%zu,%zu,%zu,%zu,%d,%.4f,", w->name, w->batch, r->name, r->stored, p->bytes, r->measured,
            p->state_bytes, p->far_traffic, p->reruns, p->seconds / all->plan.seconds);
    if (p->bound_seconds > 0) fprintf(csv, "%.4f", p->seconds / p->bound_seconds - 1);
    fprintf(csv, ",");
    if (r->seconds > 0 && all->seconds > 0) fprintf(csv, "%.4f", r->seconds / all->seconds);
    fprintf(csv, ",%zu\n", budget);
    fflush(csv);
}

static void row_point(const workload *w, const row *r, const row *all, int k)
{
    static const int group[] = { 0, 0, 1, 2, 0, 3 };      /* of keep-all and of copies alone no points are drawn */
    if (w->batch > 32 || k == KEEP_ALL || k == FAR || point_count == POINTS) return;
    points[point_count++] = (scatter_point) { (double)r->plan.bytes / (double)all->plan.bytes,
                                              r->plan.seconds / all->plan.seconds, w->name, group[k] };
}

static void either_less(const options *o, const workload *w, const row *all, const row *budget, size_t bytes)
{
    const strategy less = { "either_less", GCP_POLICY_BUDGET, FAR_TOO, 0, 0, 0 };
    row r = row_of(o, w, &less, least_in(o, w, &less, budget->plan.bytes, budget->plan.seconds));
    if (!gcp_plan_ok(&r.plan)) return;
    row_print(&r, all, bytes);
    row_csv(w, &r, all, bytes);
}

static int table(const options *o, const workload *w)
{
    const size_t budget = budget_of(o, w);
    row all = { .name = NULL }, again = { .name = NULL };
    if (o->profile) {
        profile(o, w, &strategies[KEEP_ALL], budget);
        profile(o, w, &strategies[FAR], budget);
    }
    printf("\n%s, batch %d (%s)%s: %.1f MB may be taken\n", w->name, w->batch, w->table, store_said(o->store),
           1e-6 * (double)budget);
    printf("  %-26s %9s %9s %8s %8s %7s %6s %9s %9s\n", "", "MB", "but state", "x time", "measured", "gap", "reruns",
           "moved MB", "stored MB");
    published_print(w);
    for (int k = 0; k < STRATEGIES + w->owned; k++) {
        row r = row_of(o, w, k < STRATEGIES ? &strategies[k] : &w->own[k - STRATEGIES], budget);
        if (!gcp_plan_ok(&r.plan)) return 0;
        if (k == KEEP_ALL) all = r;
        if (k == BUDGET) again = r;
        row_print(&r, &all, budget);
        row_csv(w, &r, &all, budget);
        if (k < STRATEGIES) row_point(w, &r, &all, k);
    }
    if (o->profile && !costs)
        printf("  no op was measured: above --memory %g (MB) or --work %g (TFLOP)\n", o->memory, o->work);
    if (o->profile) either_less(o, w, &all, &again, budget);
    free(costs);
    costs = NULL;
    costs_length = 0;
    fflush(stdout);
    return 1;
}

static void picture(const options *o)
{
    FILE *f = table_open("strategies", o->folder, "strategies.svg");
    static const scatter_group groups[] = { { "sqrt", "#a34e05", 0 }, { "cheap", "#0c4a22", 3 },
                                            { "budget", "#0b3a82", 1 }, { "either, with copies", "#7b2fbf", 2 } };
    const scatter_plot s = { "Time of a step against bytes at the peak, both over keep-all's", "bytes over keep-all's",
                             "time over keep-all's", points, point_count, groups, 4, NULL, 0 };
    scatter_svg(f, &s);
    table_close("strategies", f);
}

/* Whether a workload differs from one before it by its batch alone. */
static int seen(int at)
{
    int before = 0;
    for (int i = 0; i < at; i++)
        before += !strcmp(workloads[i].table, workloads[at].table) && !strcmp(workloads[i].name, workloads[at].name);
    return before;
}

static int usage(const char *option)
{
    fprintf(stderr, "strategies: %s: unknown, or its value is missing or out of range\n", option);
    fprintf(stderr, "usage: strategies [--table 000|001|002|003|004|big] [--only NETWORK] [--batch N] [--budget MB]\n"
                    "                  [--steps N] [--train STRATEGY] [--memory MB] [--work TFLOP]\n"
                    "                  [--rates FLOPS,BYTES,LINK] [--profile 0|1] [--store float|bf16] [--out FOLDER]\n"
                    "defaults: --table 002 --steps 0 --memory 8000 --work 1 --profile 0 --out .; networks:");
    for (int i = 0; i < WORKLOADS; i++)
        if (!seen(i))
            fprintf(stderr, "%s%s %s", !i || strcmp(workloads[i].table, workloads[i - 1].table) ? "\n  " : "",
                    !i || strcmp(workloads[i].table, workloads[i - 1].table) ? workloads[i].table : "",
                    workloads[i].name);
    fprintf(stderr, "\n");
    return 2;
}
/* NULL, or the option that is wrong. */
static const char *parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        int known = value != NULL;
        if (!known) return name;
        if (!strcmp(name, "--table")) o->table = value;
        else if (!strcmp(name, "--only")) o->only = value;
        else if (!strcmp(name, "--out")) o->folder = value;
        else if (!strcmp(name, "--train")) o->train = value;
        else if (!strcmp(name, "--profile")) known = whole_of(value, 0, 1, &o->profile);
        else if (!strcmp(name, "--store")) known = store_of(value, &o->store);
        else if (!strcmp(name, "--batch")) known = whole_of(value, 1, 1 << 20, &o->batch);
        else if (!strcmp(name, "--steps")) known = whole_of(value, 0, MOST_STEPS, &o->steps);
        else if (!strcmp(name, "--budget")) known = number_of(value, 1e-6, 1e12, &o->budget);
        else if (!strcmp(name, "--memory")) known = number_of(value, 0, 1e12, &o->memory);
        else if (!strcmp(name, "--work")) known = number_of(value, 0, 1e12, &o->work);
        else if (!strcmp(name, "--rates")) known = o->rated = rates_of(value, o->rates);
        else return name;
        if (!known) return name;
    }
    return o->profile && o->rated ? "--rates with --profile 1" : NULL;
}

/* Whether a workload is asked for. */
static int chosen(const options *o, int i)
{
    const workload *w = &workloads[i];
    return !strcmp(w->table, o->table) && (!o->only || !strcmp(w->name, o->only)) && (!o->batch || !seen(i));
}

/* Whether --train names a strategy of a workload that is asked for; there is at least one such workload. */
static const char *asked_for(const options *o)
{
    int found = !o->train, any = 0;
    for (int i = 0; i < WORKLOADS; i++) {
        if (!chosen(o, i)) continue;
        any = 1;
        for (int k = 0; k < STRATEGIES; k++) found |= o->train && !strcmp(strategies[k].name, o->train);
        for (int k = 0; k < workloads[i].owned; k++) found |= o->train && !strcmp(workloads[i].own[k].name, o->train);
    }
    return !any ? "--only, --table" : !found ? "--train" : NULL;
}

int main(int argc, char **argv)
{
    options o = { .table = "002", .folder = ".", .memory = 8000, .work = 1, .rates = CARD_RATES };
    int good = 1;
    const char *wrong = parse(&o, argc, argv);
    if (!wrong) wrong = asked_for(&o);
    if (wrong) return usage(wrong);
    memory = allocate(GCP_MB(ROOM));
    csv = table_open("strategies", o.folder, "strategies.csv");
    fprintf(csv, "network,batch,strategy,stored_bytes,planned_peak,measured_peak,persistent_bytes,moved_bytes,reruns,"
                 "ratio,gap,measured_ratio,budget_bytes\n");
    for (int i = 0; i < WORKLOADS && good; i++) {
        workload w = workloads[i];
        if (!chosen(&o, i)) continue;
        if (o.batch && o.batch != w.batch) {
            w.batch = o.batch;
            w.budget = 0;
            memset(w.published, 0, sizeof w.published);       /* they had another batch */
        }
        if (o.budget > 0) w.budget = o.budget;
        good = table(&o, &w);
    }
    if (good) legend_print();
    if (o.steps && !trained)
        printf("Nothing was trained: each is above --memory %g (MB) or --work %g (TFLOP a step).\n", o.memory, o.work);
    table_close("strategies", csv);
    if (point_count) picture(&o);
    free(memory);
    return !good;
}
