/* scale.c - what several workers take for a step: measured with the ranks that it is started with, and a model of more.

       mpirun -n 2 scale [--network NAME] [--batch N] [--image N] [--steps N] [--budget MB] [--faster X] [--out FOLDER]

   --batch: of each rank. The model is a step's list as gcp_profile times it: a gradient, or a bucket of small ones
   (examples/workers.h), is sent when it is finished; a link carries one at a time; updates wait. n ranks in a ring
   add b bytes in 2 (n - 1) / n b / rate + 2 (n - 1) latency seconds (Patarasuk and Yuan 2009). It is first set beside
   what these ranks measure, with the link's rate and latency measured between them (by sums alone, of as many bytes
   as the gradients); then it goes on to links and numbers of workers that are not here. Where ranks are on one
   machine each sum is work of their own cores, which backward has to wait for ("by cores"). --faster X: as if all
   that computes were X times as fast (a GPU).

   scale.csv: network,batch,workers,link,source,overlap,step_seconds,wait_seconds,speed: source: measured or model;
   wait_seconds: of the step, for sums; speed: of the speed that as many workers would have without sums. */
#define _POSIX_C_SOURCE 200809L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../tests/support/clock.h"
#include "networks.h"
#include "../../tests/support/table.h"
#include "workers.h"

enum { MOST_STEPS = 100, REPEATS = 5 };

typedef struct options { const char *network, *folder; int batch, image, steps; double budget, faster; } options;

typedef struct event { char kind; double seconds; size_t count; int parameter; } event;
typedef struct timeline { event *at; int count; double compute; } timeline;
/* by_cores: the ranks' own cores carry it. */
typedef struct wire { const char *name; double rate, latency; int by_cores; } wire;

typedef struct bench {
    options o;
    workers w;
    gcp_tape *net;
    network ends;
    gcp_plan plan;
    timeline t;
    FILE *csv;
} bench;

static void *allocate(size_t size)
{
    void *m = malloc(size ? size : 1);
    if (m) return m;
    fprintf(stderr, "scale: no %zu bytes\n", size);
    exit(1);
}

/* ---- The model -------------------------------------------------------------------------------------------------*/

static double ring(const wire *l, int ranks, size_t count)
{
    const double bytes = (double)(count * sizeof(gcp_real)), others = ranks - 1;
    return 2 * others / ranks * bytes / l->rate + 2 * others * l->latency;
}

/* The link while a step is played: when it is free again, what waits in the open bucket, when each sum is there. */
typedef struct play {
    const wire *link;
    int ranks;
    double now, free;
    size_t bucket;
    double *there;
    int *open, opened;
} play;

static void play_send(play *p, size_t count)
{
    const double seconds = ring(p->link, p->ranks, count);
    if (p->link->by_cores) p->now += seconds;
    p->free = p->link->by_cores ? p->now : (p->free > p->now ? p->free : p->now) + seconds;
}
static void play_close(play *p)
{
    if (p->bucket) play_send(p, p->bucket);
    for (int i = 0; i < p->opened; i++) p->there[p->open[i]] = p->free;
    p->bucket = 0;
    p->opened = 0;
}
static void play_gradient(play *p, const event *e)
{
    if (e->count >= WORKERS_BUCKET) {
        play_send(p, e->count);
        p->there[e->parameter] = p->free;
        return;
    }
    p->bucket += e->count;
    p->open[p->opened++] = e->parameter;
    if (p->bucket >= WORKERS_BUCKET) play_close(p);
}

/* Seconds of a step; *wait of them for sums. late: nothing is sent before backward is done. */
static double model(const timeline *t, const wire *link, int ranks, int late, double faster, double *wait)
{
    play p = { .link = link, .ranks = ranks };
    p.there = allocate((size_t)t->count * sizeof *p.there);
    p.open = allocate((size_t)t->count * sizeof *p.open);
    int waited = 0;
    for (int i = 0; i < t->count; i++) {
        const event *e = &t->at[i];
        p.now += e->seconds / faster;
        if (e->kind == 'H' && ranks > 1 && !late) play_gradient(&p, e);
        if (e->kind != 'W' || ranks == 1) continue;
        for (int k = 0; late && !waited && k < i; k++) if (t->at[k].letter == 'H') play_gradient(&p, &t->at[k]);
        if (!waited++) play_close(&p);
        if (p.there[e->parameter] > p.now) p.now = p.there[e->parameter];
    }
    free(p.there);
    free(p.open);
    *wait = p.now - t->compute / faster;
    return p.now;
}

/* ---- The step --------------------------------------------------------------------------------------------------*/

static void feed(bench *b)
{
    const size_t count = gcp_elements(b->ends.image), labels = gcp_elements(b->ends.labels);
    gcp_real *x = allocate(count * sizeof *x);
    int32_t *y = allocate(labels * sizeof *y);
    for (size_t i = 0; i < count; i++) x[i] = (gcp_real)((i + (size_t)b->w.rank) * 37 % 101) / 50 - 1;
    for (size_t i = 0; i < labels; i++) y[i] = (int32_t)(i * 7 % 2);
    gcp_write(&b->plan, b->ends.image, x);
    gcp_write(&b->plan, b->ends.labels, y);
    free(x);
    free(y);
}

static void begin(bench *b)
{
    static gcp_arena arena;
    const network_name *n = NULL;
    for (int i = 0; i < NETWORK_NAMES; i++) if (!strcmp(network_names[i].name, b->o.network)) n = &network_names[i];
    if (!n) { fprintf(stderr, "scale: --network: there is no '%s'\n", b->o.network); exit(2); }
    arena = gcp_arena_from(allocate(GCP_MB(400)), GCP_MB(400));
    b->net = gcp_tape_make(&arena, .ops = n->ops, .seed = 1);
    b->ends = n->record(b->net, b->o.batch ? b->o.batch : n->batch, b->o.image ? b->o.image : n->image);
    gcp_plan_opts p = { .at = GCP_AT, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9,
                        .on_gradient = workers_on_gradient, .on_wait = workers_on_wait, .hook_context = &b->w };
    if (b->o.budget > 0) { p.policy = GCP_POLICY_BUDGET; p.budget = (size_t)(1e6 * b->o.budget); }
    b->plan = gcp_plan_make_at(b->ends.loss, p);
    if (gcp_error(b->net)) workers_stop(&b->w, gcp_error(b->net));
    gcp_bind(&b->plan, allocate(b->plan.room), b->plan.room);
    if (!workers_sums(&b->w, b->net)) workers_stop(&b->w, "out of memory");
    feed(b);
}

/* The median seconds of a step, all ranks beginning together; *wait: the mean that rank 0 waits. */
static double steps(bench *b, int ranks, int late, double *wait)
{
    double seconds[MOST_STEPS];
    const int all = b->w.ranks;
    b->w.ranks = ranks;
    b->w.late = late;
    for (int i = -1; i < b->o.steps; i++) {                    /* the first one warms up */
        MPI_Barrier(b->w.world);
        if (i == 0) b->w.wait_seconds = 0;
        const double start = seconds_now();
        gcp_step(&b->plan, .lr = 1e-4, .share = 1.0 / ranks);
        if (i >= 0) seconds[i] = seconds_now() - start;
    }
    b->w.ranks = all;
    if (gcp_error(b->net)) workers_stop(&b->w, gcp_error(b->net));
    *wait = b->w.wait_seconds / b->o.steps;
    qsort(seconds, (size_t)b->o.steps, sizeof *seconds, by_size);
    return seconds[b->o.steps / 2];
}

/* The list with the seconds that each instruction takes while the other ranks compute, too. */
static void profile(bench *b)
{
    const int ranks = b->w.ranks;
    workers_text text = { 0 };
    char name[256];
    timeline *t = &b->t;
    b->w.ranks = 1;
    MPI_Barrier(b->w.world);
    gcp_profile(&b->plan, .repeats = REPEATS, .lr = 1e-4);
    b->w.ranks = ranks;
    gcp_list_print(&b->plan, workers_writer(&text));
    if (text.failed) workers_stop(&b->w, "out of memory");
    t->at = allocate((size_t)b->plan.instructions * sizeof *t->at);
    for (const char *line = text.text; *line && t->count < b->plan.instructions; line += strcspn(line, "\n") + 1) {
        event *e = &t->at[t->count];
        *e = (event) { line[0], gcp_instruction_seconds(&b->plan, t->count), 0, 0 };
        t->compute += e->seconds;
        t->count++;
        if (line[0] != 'H' && line[0] != 'W') continue;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(line + 2, "\n"), line + 2);
        const gcp_tensor x = gcp_find(b->net, name);
        e->count = gcp_elements(x);
        while (gcp_nth_parameter(b->net, e->parameter).id != x.id) e->parameter++;
    }
    free(text.text);
}

static double gradient_bytes(const timeline *t)
{
    size_t count = 0;
    for (int i = 0; i < t->count; i++) if (t->at[i].letter == 'H') count += t->at[i].count;
    return (double)(count * sizeof(gcp_real));
}

/* The link between these ranks: seconds of the sums of `count` values, `piece` at a time. */
static double sum_seconds(bench *b, size_t count, size_t piece)
{
    double seconds[REPEATS];
    gcp_real *x = allocate(count * sizeof *x);
    memset(x, 0, count * sizeof *x);
    for (int i = -1; i < REPEATS; i++) {
        MPI_Barrier(b->w.world);
        const double start = seconds_now();
        for (size_t k = 0; k < count; k += piece)
            workers_add(&b->w, x + k, (int)(count - k < piece ? count - k : piece), workers_real(), "the link");
        if (i >= 0) seconds[i] = seconds_now() - start;
    }
    free(x);
    qsort(seconds, REPEATS, sizeof *seconds, by_size);
    return seconds[REPEATS / 2];
}
static wire measured_link(bench *b)
{
    enum { PIECE = 4 * WORKERS_BUCKET };
    const size_t count = (size_t)gradient_bytes(&b->t) / sizeof(gcp_real);
    const double n = b->w.ranks, one = sum_seconds(b, 1, 1), all = sum_seconds(b, count, PIECE),
                 pieces = (double)((count + PIECE - 1) / PIECE);
    wire here = { "this machine", 2 * (n - 1) / n * (double)(count * sizeof(gcp_real)) / (all - pieces * one),
                  one / (2 * (n - 1)), 1 };
    return here;
}

/* ---- Tables ----------------------------------------------------------------------------------------------------*/

static void row(bench *b, int workers_, const char *link, const char *source, const char *overlap, double alone,
                double step, double wait)
{
    if (b->w.rank) return;
    printf("%7d  %-26s %-9s %-7s %9.1f ms %9.1f ms %8.1f %%\n", workers_, link, source, overlap, 1e3 * step, 1e3 * wait,
           100 * alone / step);
    fflush(stdout);
    if (b->csv)
        fprintf(b->csv, "%s,%d,%d,%s,%s,%s,%.6f,%.6f,%.4f\n", b->o.network, gcp_shape_of(b->ends.image).d[0], workers_,
                link, source, overlap, step, wait, alone / step);
}

static void measured(bench *b)
{
    static const char *const overlap[] = { "yes", "no" };
    const wire none = { "-", 1, 0, 0 };
    double wait;
    const double alone = steps(b, 1, 0, &wait), played = model(&b->t, &none, 1, 0, 1, &wait);
    row(b, 1, "-", "measured", "-", alone, alone, 0);
    row(b, 1, "-", "model", "-", alone, played, 0);
    if (b->w.ranks == 1) return;
    const wire here = measured_link(b);
    if (!b->w.rank)
        printf("%9s%s: %.2f GB/s, %.0f microseconds\n", "", here.name, 1e-9 * here.rate, 1e6 * here.latency);
    for (int late = 0; late < 2; late++) {
        const double step = steps(b, b->w.ranks, late, &wait);
        row(b, b->w.ranks, here.name, "measured", overlap[late], alone, step, wait);
        const double seconds = model(&b->t, &here, b->w.ranks, late, 1, &wait);
        row(b, b->w.ranks, here.name, "model", overlap[late], alone, seconds, wait);
    }
}

static void modelled(bench *b)
{
    static const wire wires[] = { { "1 Gb/s 50 us", 1.25e8, 50e-6, 0 }, { "10 Gb/s 20 us", 1.25e9, 20e-6, 0 },
                                  { "100 Gb/s 5 us", 1.25e10, 5e-6, 0 }, { "300 GB/s 3 us", 3e11, 3e-6, 0 } };
    static const int ranks[] = { 2, 8, 64, 256, 1024 };
    double wait;
    for (size_t l = 0; l < sizeof wires / sizeof *wires; l++)
        for (size_t i = 0; i < sizeof ranks / sizeof *ranks; i++)
            for (int late = 0; late < 2; late++) {
                const double step = model(&b->t, &wires[l], ranks[i], late, b->o.faster, &wait);
                row(b, ranks[i], wires[l].name, "model", late ? "no" : "yes", b->t.compute / b->o.faster, step, wait);
            }
}

static int usage(void)
{
    fprintf(stderr, "usage: mpirun -n RANKS scale [--network NAME] [--batch N] [--image N] [--steps N (1 to %d)]\n"
                    "                             [--budget MB] [--faster X] [--out FOLDER]\n", MOST_STEPS);
    return 2;
}

static int parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--network")) o->network = value;
        else if (!strcmp(argv[i], "--out")) o->folder = value;
        else if (!strcmp(argv[i], "--batch") && atoi(value) > 0) o->batch = atoi(value);
        else if (!strcmp(argv[i], "--image") && atoi(value) > 0) o->image = atoi(value);
        else if (!strcmp(argv[i], "--steps")) o->steps = atoi(value);
        else if (!strcmp(argv[i], "--budget")) o->budget = atof(value);
        else if (!strcmp(argv[i], "--faster")) o->faster = atof(value);
        else return 0;
    }
    if (argc % 2 == 0) return 0;
    return o->steps >= 1 && o->steps <= MOST_STEPS && o->faster > 0 && o->batch >= 0 && o->image >= 0;
}

int main(int argc, char **argv)
{
    static bench b = { .o = { .network = "resnet50", .batch = 8, .steps = 7, .faster = 1 } };
    if (!parse(&b.o, argc, argv)) return usage();
    MPI_Init(&argc, &argv);
    workers_begin(&b.w, MPI_COMM_WORLD, 600);
    begin(&b);
    if (!b.w.rank && b.o.folder) {
        b.csv = table_open("scale", b.o.folder, "scale.csv");
        fprintf(b.csv, "network,batch,workers,link,source,overlap,step_seconds,wait_seconds,speed\n");
    }
    profile(&b);
    if (!b.w.rank)
        printf("%s, %d images a rank, %.1f MB of gradients; its peak %zu bytes\n%7s  %-26s %-9s %-7s %12s %12s %10s\n",
               b.o.network, gcp_shape_of(b.ends.image).d[0], 1e-6 * gradient_bytes(&b.t), b.plan.bytes,
               "workers", "link", "source", "overlap", "step", "waits", "speed");
    measured(&b);
    modelled(&b);
    if (b.csv) table_close("scale", b.csv);
    workers_end(&b.w);
    MPI_Finalize();
    return 0;
}
