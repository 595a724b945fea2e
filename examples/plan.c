/* plan.c - what would it cost? Plans a known network, or a graph in a file, for a number of bytes; nothing is computed.

       plan resnet50 --batch 32 --budget 1.5GiB
       plan unet --curve 12 --svg curve.svg
       plan mobilenet --budget 4GiB --max-batch
       plan resnet50 --batch 32 --store bf16
       plan --graph tests/graphs/chain81.graph --budget 2GiB --list schedule.txt */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _WIN32
#include <io.h>
static int on_terminal(void) { return _isatty(_fileno(stderr)); }
#else
#include <unistd.h>
static int on_terminal(void) { return isatty(STDERR_FILENO); }
#endif
#include "networks.h"
#include "words.h"

static double mib(size_t bytes) { return (double)bytes / 1048576; }

enum { CURVE_MAX = 200 };

typedef struct options {
    const network_name *net;
    const char *graph, *csv, *svg, *list, *html, *trace, *dot;
    int batch, image, curve, max_batch, far_slots, watched;
    size_t budget;
    gcp_effort effort;
    gcp_optimizer optimizer;
    gcp_store store;
} options;

static gcp_arena arena;
static char *text;                      /* of --graph */
static gcp_tensor loss;                 /* of a network; of a graph only its tape */

/* ---- Options ---------------------------------------------------------------------------------------------------*/

static const char help[] =
    "plan - how a training step fits in the memory that you have, without running it\n\n"
    "A step needs memory for weights, for their gradients, and most of all for the layers' outputs, which wait\n"
    "for the backward pass. Outputs can be forgotten and computed again, which takes time. Say how many bytes a\n"
    "step may take; plan says what to forget, which order to work in, and how much longer the step takes.\n\n"
    "  plan resnet50                                 time against memory, from the least that works\n"
    "  plan resnet50 --batch 32 --budget 1.5GiB      the fastest schedule found in 1.5 GiB\n"
    "  plan resnet50 --batch 32 --budget 1.5GiB --html step.html\n"
    "                                                and a page that shows it, instruction by instruction\n"
    "  plan resnet50 --budget 7GiB --max-batch       the largest batch in 7 GiB\n"
    "  plan --graph FILE ...                         a network of yours (gcp_graph_print writes the file; its\n"
    "                                                format stands in src/problem/graph.h)\n\nnetworks:";
static const char help_options[] =
    "\n\noptions:\n"
    "  --budget B      bytes of a step, weights and all: 800MiB, 1.5GiB (or GB, 10^9), 123456\n"
    "  --batch N       images in a step; --image N: their side (defaults: as in the benchmark)\n"
    "  --optimizer O   none, sgd (default; it has momentum) or adam: it needs memory for each weight, too\n"
    "  --store S       float (default), or bf16: activations and their gradients in two bytes, not four\n"
    "  --far-slots     that memory lies elsewhere (a file, a GPU's host) and is copied in and out by each update\n"
    "  --effort E      quick, default or thorough: how long to search\n"
    "  --max-batch     also: the largest batch for --budget\n"
    "  --curve N       N budgets from the least that works to keeping everything (default 8; 0: none)\n"
    "  --csv FILE, --svg FILE      write that curve\n"
    "  --list FILE     the schedule as text: it can be edited and given back to gcp_plan_make as .list\n"
    "  --html FILE     a page to step through it, and below it the step that keeps everything\n"
    "  --trace FILE    its time line, for ui.perfetto.dev\n"
    "  --dot FILE      the network as a graph, for Graphviz (dot -Tsvg)\n\n"
    "What it prints: a time of 1.08 is 1.08 times that of the step that keeps everything. A bound is a time that\n"
    "no schedule in these bytes can beat: it says how much a better one could win at most. Times are by a model:\n"
    "the larger of FLOPs at 100 GFLOP/s (twice that where the CPU multiplies bfloat16) and bytes at 10 GB/s, or the\n"
    "costs in the graph's file.\n"
    "docs/reading-a-plan.md explains each line.\n";

static int usage(FILE *f, int status)
{
    fputs(help, f);
    for (int i = 0; i < NETWORK_NAMES; i++) fprintf(f, " %s", network_names[i].name);
    fputs(help_options, f);
    return status;
}

static int word_of(const char *s, const char *const *words, int count)       /* which, or -1 */
{
    for (int i = 0; i < count; i++) if (!strcmp(s, words[i])) return i;
    return -1;
}

static int wrong(const char *name, const char *value, const char *expected)
{
    fprintf(stderr, "plan: %s: '%s', expected %s\n", name, value, expected);
    return 0;
}
static int number(const char *name, const char *value, int least, int most, int *to)
{
    char expected[64];
    snprintf(expected, sizeof expected, "a whole number from %d to %d", least, most);
    return whole_of(value, least, most, to) || wrong(name, value, expected);
}
/* One of these words, a NULL behind them. */
static int named(const char *name, const char *value, const char *const *words, int *to)
{
    char expected[64] = "one of ";
    int count = 0;
    for (; words[count]; count++)
        snprintf(expected + strlen(expected), sizeof expected - strlen(expected), "%s%s", count ? ", " : "",
                 words[count]);
    *to = word_of(value, words, count);
    return *to >= 0 || wrong(name, value, expected);
}

/* Takes one option with its value; 0: it is wrong, and said so. */
static int option(options *o, const char *name, const char *value)
{
    static const char *const efforts[] = { "default", "quick", "thorough", NULL },
                      *const optimizers[] = { "none", "sgd", "adam", NULL };
    const char **texts[] = { &o->graph, &o->csv, &o->svg, &o->list, &o->html, &o->trace, &o->dot };
    static const char *const text_names[] = { "--graph", "--csv", "--svg", "--list", "--html", "--trace", "--dot" };
    int t = word_of(name, text_names, 7), e = 0;
    if (!value) { fprintf(stderr, "plan: '%s' needs a value, or is no option (--help)\n", name); return 0; }
    if (t >= 0) { *texts[t] = value; return 1; }
    if (!strcmp(name, "--batch")) return number(name, value, 1, 1 << 20, &o->batch);
    if (!strcmp(name, "--image")) return number(name, value, 1, 1 << 20, &o->image);
    if (!strcmp(name, "--curve")) return number(name, value, 0, CURVE_MAX, &o->curve);
    if (!strcmp(name, "--store")) return store_of(value, &o->store) || wrong(name, value, "float or bf16");
    if (!strcmp(name, "--budget"))
        return (o->budget = bytes_of(value)) > 0 || wrong(name, value, "bytes: 200MiB, 1.5GB, 123456");
    if (!strcmp(name, "--effort")) {
        if (!named(name, value, efforts, &e)) return 0;
        o->effort = (gcp_effort)e;
        return 1;
    }
    if (!strcmp(name, "--optimizer")) {
        if (!named(name, value, optimizers, &e)) return 0;
        o->optimizer = (gcp_optimizer)e;
        return 1;
    }
    fprintf(stderr, "plan: '%s' is no option (--help)\n", name);
    return 0;
}

static int options_read(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--max-batch")) { o->max_batch = 1; continue; }
        if (!strcmp(argv[i], "--far-slots")) { o->far_slots = 1; continue; }
        if (argv[i][0] != '-') {
            for (int k = 0; k < NETWORK_NAMES; k++)
                if (!strcmp(argv[i], network_names[k].name)) o->net = &network_names[k];
            if (o->net && !strcmp(argv[i], o->net->name)) continue;
            fprintf(stderr, "plan: no network '%s'; --help lists them\n", argv[i]);
            return 0;
        }
        if (!option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) return 0;
        i++;
    }
    if (!o->net == !o->graph) { fprintf(stderr, "plan: one network, or --graph\n"); return 0; }
    if (o->far_slots && (o->graph || !o->optimizer)) {
        fprintf(stderr, "plan: --far-slots wants a network and an optimiser\n");
        return 0;
    }
    if (o->store && o->graph) { fprintf(stderr, "plan: --store wants a network\n"); return 0; }
    if ((o->csv || o->svg) && !o->curve) { fprintf(stderr, "plan: --csv and --svg write a --curve\n"); return 0; }
    if ((o->list || o->html || o->trace || o->dot) && !o->budget) {
        fprintf(stderr, "plan: --list, --html, --trace and --dot show the plan of a --budget\n");
        return 0;
    }
    if (o->max_batch && (!o->budget || o->graph)) {
        fprintf(stderr, "plan: --max-batch wants a network and --budget\n");
        return 0;
    }
    if (o->net && !o->batch) o->batch = o->net->batch;
    if (o->net && !o->image) o->image = o->net->image;
    return 1;
}

/* ---- Planning --------------------------------------------------------------------------------------------------*/

/* A bar on a terminal while a search takes more than half a second. */
static int show_progress(void *context, const gcp_progress *p)
{
    static clock_t begun;
    static int shown;
    (void)context;
    if (!begun || p->share < 0.01) begun = clock();
    if (p->share < 1 && clock() - begun < CLOCKS_PER_SEC / 2) return 0;
    if (p->share >= 1) {
        if (shown) fprintf(stderr, "\r%60s\r", "");
        shown = 0; begun = 0;
        return 0;
    }
    int bars = (int)(30 * p->share);
    fprintf(stderr, "\r[%.*s%*s] %3.0f %%", bars, "##############################", 30 - bars, "", 100 * p->share);
    if (p->seconds > 0) fprintf(stderr, "  time %.4f", p->seconds / p->keep_all_seconds);
    shown = 1;
    return 0;
}

static int failed(void) { fprintf(stderr, "plan: %s\n", gcp_error(loss.tape)); return 0; }

static char *file_text(const char *path)
{
    FILE *f = fopen(path, "rb");
    char *all = NULL;
    if (f && !fseek(f, 0, SEEK_END)) {
        long size = ftell(f);
        rewind(f);
        if (size >= 0 && (all = malloc((size_t)size + 1)) != NULL) all[fread(all, 1, (size_t)size, f)] = 0;
    }
    if (f) fclose(f);
    if (!all) fprintf(stderr, "plan: %s cannot be read\n", path);
    return all;
}

static gcp_tensor record(void *context, gcp_tape *tape, int batch)
{
    static void *slots;                            /* nobody reads or writes them: nothing is bound */
    const options *o = context;
    gcp_tensor recorded = o->net->record(tape, batch, o->image).loss;
    size_t bytes = o->far_slots ? gcp_slots_bytes(tape, o->optimizer) + 63 : 0;
    if (bytes > 63 && (slots || (slots = malloc(bytes)) != NULL)) gcp_slots_bind(tape, slots, bytes);
    return recorded;
}

static gcp_plan_opts plan_options(const options *o)
{
    gcp_plan_opts p = { .at = GCP_AT, .policy = GCP_POLICY_BUDGET, .effort = o->effort, .store = o->store };
    p.progress = o->watched ? show_progress : NULL;
    if (!o->graph) { p.optimizer = o->optimizer; p.momentum = o->optimizer == GCP_OPTIMIZER_SGD ? 0.9 : 0; }
    return p;
}

static gcp_plan plan_any(gcp_plan_opts p)
{
    return text ? gcp_graph_plan_at(loss.tape, text, p) : gcp_plan_make_at(loss, p);
}

/* NULL: the path is wrong. */
static FILE *open_out(const char *path)
{
    FILE *f = fopen(path, "w");
    if (!f) fprintf(stderr, "plan: %s cannot be written\n", path);
    return f;
}

static int close_out(FILE *f, const char *path)
{
    const int bad = ferror(f);
    if (!fclose(f) && !bad) return 1;
    fprintf(stderr, "plan: %s cannot be written\n", path);
    return 0;
}

static int write_report(const char *path, void (*print)(const gcp_plan *, gcp_writer), const gcp_plan *plan)
{
    FILE *f = path ? open_out(path) : NULL;
    if (f) print(plan, gcp_file(f));
    return f ? close_out(f, path) : !path;
}

static int write_page(const char *path, const gcp_plan *plan, const gcp_plan *keep)
{
    FILE *f = path ? open_out(path) : NULL;
    if (f) gcp_memory_html(plan, keep, gcp_file(f));
    return f ? close_out(f, path) : !path;
}

static int print_budget(const options *o, const gcp_plan *keep)
{
    gcp_plan_opts p = plan_options(o);
    p.budget = o->budget;
    gcp_plan plan = plan_any(p);
    if (!gcp_plan_ok(&plan)) return failed();
    printf("budget %.1f MiB: %.1f MiB planned, %.2f %% more time than keeping all, %d instructions\n", mib(o->budget),
           mib(plan.bytes), 100 * (plan.seconds / plan.keep_all_seconds - 1), plan.instructions);
    gcp_why_print(&plan, gcp_file(stdout));
    return write_report(o->list, gcp_list_print, &plan) && write_report(o->trace, gcp_trace_json, &plan) &&
           write_report(o->dot, gcp_dot, &plan) && write_page(o->html, &plan, keep);
}

static int write_curve(const char *path, void (*print)(const gcp_point *, int, gcp_writer), const gcp_point *points,
                       int count)
{
    FILE *f = path ? open_out(path) : NULL;
    if (f) print(points, count, gcp_file(f));
    return f ? close_out(f, path) : !path;
}

static int print_curve(const options *o, const gcp_plan *keep, size_t least)
{
    static gcp_point points[CURVE_MAX];
    gcp_plan_opts p = plan_options(o);
    for (int i = 0; i < o->curve; i++)
        points[i].budget = least +
                           (size_t)((double)(keep->bytes - least) * (o->curve > 1 ? (double)i / (o->curve - 1) : 1));
    if (!(text ? gcp_graph_sweep_at(loss.tape, text, points, o->curve, p) : gcp_sweep_at(loss, points, o->curve, p)))
        return failed();
    printf("\nbudget MiB   time   no plan below   (keep-all%s = 1)\n", o->store ? " in bfloat16" : "");
    for (int i = 0; i < o->curve; i++)
        printf("%10.1f  %6.4f  %6.4f  %.*s\n", mib(points[i].budget), points[i].seconds / points[i].keep_all_seconds,
               points[i].bound_seconds / points[i].keep_all_seconds,
               (int)fmin(60, 100 * (points[i].seconds / points[i].keep_all_seconds - 1)),
               "############################################################");
    return write_curve(o->csv, gcp_sweep_csv, points, o->curve) && write_curve(o->svg, gcp_sweep_svg, points, o->curve);
}

/* bfloat16's keep-all, made with `all`, beside float's. */
static int print_float(gcp_plan_opts all, const gcp_plan *keep)
{
    all.store = GCP_STORE_REAL;
    gcp_plan floats = plan_any(all);
    if (!gcp_plan_ok(&floats)) return failed();
    printf("in float keeping all takes %.1f MiB; by the cost model bfloat16 takes %.2f of its time%s\n\n",
           mib(floats.bytes), keep->seconds / floats.seconds,
           (double)keep->bytes > 0.95 * (double)floats.bytes ? " (little lies in two bytes: --budget says why)" : "");
    return 1;
}

/* Keep-all and the least budget, which the error of an impossible one names. */
static int run(const options *o)
{
    gcp_plan_opts p = plan_options(o), all = p;
    all.policy = GCP_POLICY_KEEP_ALL;
    all.effort = GCP_EFFORT_DEFAULT;
    all.progress = NULL;
    gcp_plan keep = plan_any(all);
    if (!gcp_plan_ok(&keep)) return failed();
    p.budget = 1;
    size_t least = plan_any(p).least_bytes;
    if (gcp_error_code(loss.tape) != GCP_E_BUDGET) return failed();
    gcp_error_clear(loss.tape);
    if (o->net)
        printf("%s, batch %d, %dx%d%s: ", o->net->name, o->batch, o->image, o->image, store_said(o->store));
    printf("keeping all takes %.1f MiB, the least that works is %.1f MiB\n\n", mib(keep.bytes), mib(least));
    if (o->store && !print_float(all, &keep)) return 0;
    if (o->budget && !print_budget(o, &keep)) return 0;
    if (o->curve && !print_curve(o, &keep, least)) return 0;
    if (o->max_batch) {
        gcp_plan_opts q = plan_options(o);
        q.budget = o->budget;
        int batch = gcp_max_batch(loss.tape, record, (void *)(uintptr_t)o, .plan = q);
        if (!batch) return failed();
        printf("\nthe largest batch for %.1f MiB: %d\n", mib(o->budget), batch);
    }
    return 1;
}

int main(int argc, char **argv)
{
    options o = { .curve = 8, .optimizer = GCP_OPTIMIZER_SGD };
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--help")) return usage(stdout, 0);
    if (argc < 2) return usage(stderr, 1);
    if (!options_read(&o, argc, argv)) return 1;
    o.watched = on_terminal();
    const size_t size = GCP_MB(512);
    void *memory = malloc(size);
    if (!memory) { fprintf(stderr, "plan: out of memory\n"); return 1; }
    arena = gcp_arena_from(memory, size);
    if (o.graph && !(text = file_text(o.graph))) return 1;
    loss.tape = gcp_tape_make(&arena, .ops = o.net ? o.net->ops : 8);
    if (o.net) loss = record(&o, loss.tape, o.batch);
    int good = run(&o);
    free(text);
    free(memory);
    return !good;
}
