/* budgets.c - GCP_POLICY_BUDGET by itself, one table each in the folder of --out:
     growth.csv   how planning time grows: residual chains of 100 to 10,000 ops at half of keep-all's slab
     layered.csv  random layered graphs (layered.h): plans for shares of their peak, refusals; means over --seeds
     dense.csv    dense blocks written as lists of features, and as growing concats: the least bytes, and half way
                  from there to keep-all
     sweep.csv    --budgets budgets from the least to keep-all, a plan each: the biggest step in time, how far fewer
                  bytes were faster, how far the plans are above the bound
     times.csv    seconds of refusals, of plans with far memory, of deep nests
   Times of steps are ratios to keep-all by the cost model of a scalar target with one thread, so only what is measured
   (ms) depends on the machine; that is CPU time of one core.

       budgets [--only growth|layered|dense|sweep|times] [--seeds 10] [--budgets 40]
               [--effort quick|default|thorough] [--graph FILE]... [--out FOLDER] */
#define _POSIX_C_SOURCE 199309L
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "../../tests/support/clock.h"
#include "layered.h"
#include "networks.h"
#include "../../tests/support/table.h"

enum { MAX_GRAPHS = 16 };

/* What is planned: a tape's loss, or a graph's text with only the tape to hold errors. */
typedef struct subject { const char *name, *text; gcp_tensor loss; } subject;

static unsigned char *memory;
static const size_t room = GCP_MB(3000);
static gcp_arena arena;
static gcp_effort effort;
static const char *folder = ".", *graphs[MAX_GRAPHS];
static int graph_count, seeds = 10, budgets = 40;

static gcp_tape *tape_of(int ops)
{
    arena = gcp_arena_from(memory, room);
    return gcp_tape_make(&arena, .ops = ops, .segments = ops);
}

static gcp_plan_opts options_of(const subject *s)
{
    static const gcp_target any = { .isa = GCP_ISA_SCALAR, .threads = 1, .direct = 1 };
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_BUDGET, .effort = effort, .target = &any };
    if (!s->text) { o.optimizer = GCP_OPTIMIZER_SGD; o.momentum = 0.9; }
    return o;
}

/* A plan and the ms that it took. What is refused has a least budget and no error left on the tape. */
static gcp_plan plan_with(const subject *s, gcp_plan_opts o, double *ms)
{
    double begin = clock_seconds(CLOCK_PROCESS_CPUTIME_ID);
    gcp_plan plan = s->text ? gcp_graph_plan_at(s->loss.tape, s->text, o) : gcp_plan_make_at(s->loss, o);
    if (ms) *ms = 1e3 * (clock_seconds(CLOCK_PROCESS_CPUTIME_ID) - begin);
    gcp_error_clear(s->loss.tape);
    return plan;
}

static gcp_plan plan_for(const subject *s, size_t budget, double *ms)
{
    gcp_plan_opts o = options_of(s);
    o.budget = budget;
    return plan_with(s, o, ms);
}

static gcp_plan keep_all_of(const subject *s)
{
    gcp_plan_opts o = options_of(s);
    o.policy = GCP_POLICY_KEEP_ALL; o.effort = GCP_EFFORT_DEFAULT;
    return plan_with(s, o, NULL);
}

static size_t least_of(const subject *s, double *ms) { return plan_for(s, 1, ms).least_bytes; }
static double over(double seconds, const gcp_plan *plan) { return seconds / plan->keep_all_seconds; }

static FILE *table(const char *file, const char *columns)
{
    FILE *out = table_open("budgets", folder, file);
    fprintf(out, "%s\n", columns);
    return out;
}

/* ---- residual chains of about n ops ---- */

static void growth(void)
{
    static const int lengths[] = { 4, 11, 37, 111, 370 };
    FILE *out = table("growth.csv", "ops,budget_bytes,time,bound,arena_over_peak,ms");
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++) {
        double ms;
        int ops = 27 * lengths[i];
        subject s = { .name = "resnet_deep", .loss = resnet_deep(tape_of(ops + 64), lengths[i], 32, 32, 10).loss };
        gcp_plan keep = keep_all_of(&s), plan = plan_for(&s, keep.state_bytes + keep.slab_bytes / 2, &ms);
        if (!plan.core) continue;
        fprintf(out, "%d,%zu,%.6f,%.6f,%.4f,%.1f\n", ops, plan.bytes, over(plan.seconds, &plan),
                over(plan.bound_seconds, &plan), (double)plan.slab_bytes / (double)plan.live_peak, ms);
        fflush(out);
    }
    table_close("budgets", out);
}

/* ---- random layered graphs: share 0: the least budget ---- */

typedef struct means { int fit; double time, over, worst, ms, slowest, least; } means;

static void layered_plan(means *sum, int train, int ops, double share, int seed)
{
    char *text = layered_text(ops, (unsigned)seed, train);
    subject s = { .name = "layered", .text = text };
    double ms;
    s.loss.tape = tape_of(8);
    double peak = (double)keep_all_of(&s).live_peak;
    gcp_plan plan = plan_for(&s, share > 0 ? (size_t)(share * peak) : 1, &ms);
    free(text);
    sum->ms += ms / seeds;
    sum->slowest = fmax(sum->slowest, ms);
    if (!plan.core) { sum->least += (double)plan.least_bytes / peak; return; }
    double ratio = (double)plan.slab_bytes / (double)plan.live_peak;
    sum->fit++;
    sum->time += over(plan.seconds, &plan);
    sum->over += ratio;
    sum->worst = fmax(sum->worst, ratio);
}

static void layered_row(FILE *out, int train, int ops, double share)
{
    means sum = { 0 };
    for (int seed = 1; seed <= seeds; seed++) layered_plan(&sum, train, ops, share, seed);
    fprintf(out, "%s,%d,%.2f,%d,%d", train ? "training" : "forward", ops, share, sum.fit, seeds - sum.fit);
    if (sum.fit) fprintf(out, ",%.4f,%.4f,%.4f", sum.time / sum.fit, sum.over / sum.fit, sum.worst);
    else fprintf(out, ",,,");
    if (sum.fit < seeds) fprintf(out, ",%.4f", sum.least / (seeds - sum.fit));
    else fprintf(out, ",");
    fprintf(out, ",%.1f,%.1f\n", sum.ms, sum.slowest);
    fflush(out);
}

static void layered_rows(void)
{
    static const int ops[] = { 100, 250, 500, 1000 };
    static const double shares[] = { 0.9, 0.8, 0 };
    FILE *out = table("layered.csv",
                      "kind,ops,share,fit,refused,time,arena_over_peak,worst,least_of_refused,ms,slowest_ms");
    for (int train = 0; train < 2; train++)
        for (int n = 0; n < 4; n++) for (int k = 0; k < 3; k++) layered_row(out, train, ops[n], shares[k]);
    table_close("budgets", out);
}

/* ---- dense blocks: each layer reads all features so far, 4 channels of 32x32 each ---- */

static gcp_tensor dense(int layers, int growing)
{
    gcp_tape *tape = tape_of(256);
    gcp_tensor x = gcp_input(tape, "x", GCP_SHAPE(1, 32, 32, 4)), list[64], all;
    all = list[0] = gcp_conv2d(x, .out = 4, .k = 3, .pad = 1);
    for (int i = 1; i <= layers; i++) {
        list[i] = gcp_relu(gcp_conv2d(all, .out = 4, .k = 3, .pad = 1));
        gcp_tensor two[] = { all, list[i] };
        all = growing ? gcp_concat_at(two, 2, (gcp_concat_opts) { .at = GCP_AT })
                      : gcp_concat_at(list, i + 1, (gcp_concat_opts) { .at = GCP_AT });
    }
    return gcp_mean(all);
}

static void dense_rows(void)
{
    static const int layers[] = { 12, 20, 40 };
    FILE *out = table("dense.csv", "form,layers,keep_all_bytes,least_bytes,time_at_least,least_ms,"
                                   "time_half_way,bound_half_way,ms");
    for (int growing = 0; growing < 2; growing++)
        for (int i = 0; i < 3; i++) {
            double ms[2];
            subject s = { .name = "dense", .loss = dense(layers[i], growing) };
            size_t all = keep_all_of(&s).bytes, least = least_of(&s, ms);
            gcp_plan lowest = plan_for(&s, least, NULL), half = plan_for(&s, least + (all - least) / 2, ms + 1);
            fprintf(out, "%s,%d,%zu,%zu,%.4f,%.1f", growing ? "growing" : "list", layers[i], all, least,
                    over(lowest.seconds, &lowest), ms[0]);
            fprintf(out, ",%.4f,%.4f,%.1f\n", over(half.seconds, &half), over(half.bound_seconds, &half), ms[1]);
            fflush(out);
        }
    table_close("budgets", out);
}

/* ---- sweeps ---- */

static void sweep_row(FILE *out, const subject *s)
{
    size_t all = keep_all_of(s).bytes, least = least_of(s, NULL);
    double fastest = INFINITY, before = 0, step = 0, at = 0, inverted = 0, above = 0, most = 0, all_ms = 0;
    int missing = 0, low = 0;
    for (int i = 0; i < budgets; i++) {
        double ms, share = (double)i / (budgets - 1);
        gcp_plan plan = plan_for(s, least + (size_t)((double)(all - least) * share), &ms);
        all_ms += ms;
        if (!plan.core) { missing++; continue; }
        double time = over(plan.seconds, &plan), bound = over(plan.bound_seconds, &plan);
        if (before > 0 && before - time > step) { step = before - time; at = share; }
        inverted = fmax(inverted, time - fastest);
        fastest = fmin(fastest, time);
        before = time;
        if (share <= 0.25) { above += time - bound; low++; }
        most = fmax(most, time);
        gcp_plan_free(&plan);
    }
    fprintf(out, "%s,%d,%d,%.4f,%.4f,%.3f,%.4f,%.4f,%.1f\n", s->name, budgets, missing, most, step, at, inverted,
            above / low, all_ms / budgets);
    fflush(out);
}

static char *text_of(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *text = f ? calloc(1, 1 << 22) : NULL;
    if (!text || fread(text, 1, (1 << 22) - 1, f) == 0) {
        fprintf(stderr, "budgets: cannot read %s\n", path);
        exit(1);
    }
    fclose(f);
    return text;
}

static void sweep_rows(void)
{
    FILE *out = table("sweep.csv",
                      "network,budgets,missing,most_time,biggest_step,step_at,fewer_bytes_faster,"
                      "above_bound_lowest_quarter,ms");
    for (int i = 0; i < graph_count; i++) {
        const char *base = strrchr(graphs[i], '/');
        char *text = text_of(graphs[i]);
        subject s = { .name = base ? base + 1 : graphs[i], .text = text };
        s.loss.tape = tape_of(8);
        sweep_row(out, &s);
        free(text);
    }
    for (int i = 0; i < NETWORK_NAMES; i++) {
        const network_name *n = &network_names[i];
        subject s = { .name = n->name, .loss = n->record(tape_of(n->ops), n->batch, n->image).loss };
        sweep_row(out, &s);
    }
    table_close("budgets", out);
}

/* ---- times ---- */

static gcp_tensor chain(int ops)
{
    gcp_tape *tape = tape_of(ops + 16);
    gcp_tensor x = gcp_input(tape, "x", GCP_SHAPE(8, 640), .want_grad = 1), y = gcp_labels(tape, "y", GCP_SHAPE(8));
    for (int i = 0; i < ops / 2; i++) x = gcp_tanh(gcp_scale(x, .by = 1.001));
    return gcp_cross_entropy(gcp_linear(x, .out = 10), y);
}

static gcp_tensor layers_of_60(void)
{
    gcp_tape *tape = tape_of(256);
    gcp_tensor x = gcp_input(tape, "x", GCP_SHAPE(512, 256)), y = gcp_labels(tape, "y", GCP_SHAPE(512));
    for (int i = 0; i < 60; i++) x = gcp_relu(gcp_linear(x, .out = 256));
    return gcp_cross_entropy(gcp_linear(x, .out = 10), y);
}

static gcp_tensor nest(gcp_tape *tape, gcp_tensor x, int depth)
{
    if (!depth) return x;
    GCP_SEGMENT(tape, "s") x = nest(tape, gcp_tanh(x), depth - 1);
    return x;
}

static void refusal_row(FILE *out, const char *name, gcp_tensor loss)
{
    double ms;
    subject s = { .name = name, .loss = loss };
    gcp_plan all = keep_all_of(&s);
    size_t least = least_of(&s, &ms);
    fprintf(out, "refusal,%s,%d,%.4f,%.1f,\n", name, all.instructions, (double)least / (double)all.bytes, ms);
    fflush(out);
}

/* At a fifth of the way from the least budget to keep-all: without far memory, and with it. */
static void far_row(FILE *out, const char *name, gcp_tensor loss)
{
    double ms[2];
    subject s = { .name = name, .loss = loss };
    gcp_plan all = keep_all_of(&s);
    size_t least = least_of(&s, NULL);
    gcp_plan_opts o = options_of(&s);
    o.budget = least + (all.bytes - least) / 5;
    plan_with(&s, o, ms);
    o.far = (size_t)8 << 30;
    plan_with(&s, o, ms + 1);
    fprintf(out, "far,%s,%d,%.4f,%.1f,%.2f\n", name, all.instructions, (double)o.budget / (double)all.bytes, ms[1],
            ms[1] / ms[0]);
    fflush(out);
}

static void nest_row(FILE *out, int depth)
{
    double ms;
    void *small = malloc(GCP_MB(64));
    gcp_tape *tape = tape_of(depth + 8);
    gcp_tensor x = gcp_input(tape, "x", GCP_SHAPE(4, 16), .want_grad = 1);
    subject s = { .name = "nest", .loss = gcp_mean(nest(tape, x, depth)) };
    gcp_plan_opts o = options_of(&s);
    gcp_arena own = gcp_arena_from(small, small ? GCP_MB(64) : 0);
    o.policy = GCP_POLICY_SEGMENTS; o.effort = GCP_EFFORT_DEFAULT; o.optimizer = GCP_OPTIMIZER_NONE; o.momentum = 0;
    o.arena = &own;
    gcp_plan plan = plan_with(&s, o, &ms);
    fprintf(out, "nest,64 MiB arena,%d,,%.1f,\n", plan.core ? plan.instructions : 0, ms);
    fflush(out);
    free(small);
}

static void time_rows(void)
{
    static const int lengths[] = { 10, 100, 1000, 20000 };
    static const char *const names[] = { "resnet50", "unet", "densenet121", "densenet_bc", "inception_v3" };
    FILE *out = table("times.csv", "what,network,instructions,share_of_keep_all,ms,times_without_far");
    for (int i = 0; i < 4; i++) refusal_row(out, "chain", chain(lengths[i]));
    for (int k = 0; k < 5; k++)
        for (int i = 0; i < NETWORK_NAMES; i++) {
            const network_name *n = &network_names[i];
            if (strcmp(n->name, names[k])) continue;
            refusal_row(out, n->name, n->record(tape_of(n->ops), n->batch, n->image).loss);
            if (k == 0) far_row(out, n->name, n->record(tape_of(n->ops), n->batch, n->image).loss);
        }
    far_row(out, "60 layers", layers_of_60());
    far_row(out, "chain", chain(20000));
    nest_row(out, 1000);
    nest_row(out, 10000);
    table_close("budgets", out);
}

static int usage(void)
{
    fprintf(stderr, "budgets [--only growth|layered|dense|sweep|times] [--seeds N] [--budgets N] "
                    "[--effort quick|default|thorough] [--graph FILE]... [--out FOLDER]\n");
    return 1;
}

int main(int argc, char **argv)
{
    static const struct { const char *name; void (*rows)(void); } tables[] = {
        { "growth", growth }, { "layered", layered_rows }, { "dense", dense_rows }, { "sweep", sweep_rows },
        { "times", time_rows }
    };
    static const char *const efforts[] = { "default", "quick", "thorough" };
    const char *only = NULL;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (!value) return usage();
        if (!strcmp(argv[i], "--only")) only = value;
        else if (!strcmp(argv[i], "--out")) folder = value;
        else if (!strcmp(argv[i], "--graph") && graph_count < MAX_GRAPHS) graphs[graph_count++] = value;
        else if (!strcmp(argv[i], "--seeds") && atoi(value) > 0) seeds = atoi(value);
        else if (!strcmp(argv[i], "--budgets") && atoi(value) > 1) budgets = atoi(value);
        else if (!strcmp(argv[i], "--effort")) {
            for (int e = 0; e < 3; e++) if (!strcmp(value, efforts[e])) effort = (gcp_effort)e;
        } else return usage();
    }
    memory = malloc(room);
    if (!memory) { fprintf(stderr, "budgets: out of memory\n"); return 1; }
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
        if (!only || !strcmp(only, tables[i].name)) tables[i].rows();
    free(memory);
    return 0;
}
