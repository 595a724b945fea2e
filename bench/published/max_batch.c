/* max_batch.c - the largest batch that a card's memory holds, by planning alone, beside what the published systems
   reached there: ResNet-50 in 7.6 GB (002), ResNet-1001 in what 15 images took (001). Of each row one image more is
   planned as well: refused, or too slow. --run 1 takes a step of the largest batch that is no slower than --slowdown,
   and measures its bytes; without it that plan is bound, which verifies it.

       max_batch [--only resnet50|resnet1001] [--memory MB] [--slowdown 1.33] [--run 0|1] [--rates FLOPS,BYTES,LINK]
                 [--store float|bf16] [--out FOLDER]

   --memory: what your card has, in place of theirs. A step's time does not rise evenly with the batch, so with a limit
   of the time the batch is the largest that gcp_max_batch finds, and a larger one may pass again.
   --store bf16: activations and their gradients in two bytes; the published batches were reached in float.
   max_batch.csv: network,cap_bytes,strategy,batch,planned_bytes,measured_bytes,ratio: of the seconds of an image, to
   those of keeping all at the same batch. Rates are those of strategies.c. */
#define _POSIX_C_SOURCE 199309L
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "../../tests/support/published.h"
#include "../../tests/support/table.h"
#include "words.h"

enum { ROOM = 700, REACHED = 4 };

typedef struct reached { const char *system; int batch; } reached;
/* cap: MB of 10^6 bytes */
typedef struct card {
    const char *network, *table;
    double cap;
    network (*record)(gcp_tape *net, int batch, stored *s);
    int ops;
    reached published[REACHED];
} card;

/* 001: its card is not named. 15 images are what plain training took: by the framework's rule 15 times 613.7 MB, and
   weights, gradients and momentum of 163.4 million parameters. */
static const card cards[] = {
    { "resnet50", "002", 7600, resnet50_002, 256,
      { { "plain", 87 }, { "LMS", 111 }, { "gradient-checkpointing", 212 }, { "OME", 214 } } },
    { "resnet1001", "001", 15 * 613.7 + 3 * 4 * 163.417, resnet1001_001, 4352,
      { { "plain", 15 }, { "checkpoint_sequential, 6", 51 } } },
};

typedef struct options {
    const char *only, *folder;
    double memory, slowdown, rates[3];
    int run;
    gcp_store store;
} options;

static unsigned char *memory;
static gcp_arena arena;
static FILE *csv;

static gcp_tape *tape_of(const card *c)
{
    arena = gcp_arena_from(memory, GCP_MB(ROOM));
    return gcp_tape_make(&arena, .ops = c->ops);
}
static gcp_tensor record(void *context, gcp_tape *net, int batch)
{
    return ((const card *)context)->record(net, batch, NULL).loss;
}

/* The largest batch of a policy that is no search. */
static int largest_kept(gcp_tape *net, const card *c, gcp_plan_opts o)
{
    int low = 0, high = 1, fits = 1;
    while (high - low > 1 || fits) {
        const int batch = low == 0 || fits ? high : low + (high - low) / 2;
        gcp_tape_reset(net);
        gcp_plan plan = gcp_plan_make_at(c->record(net, batch, NULL).loss, o);
        const int good = gcp_plan_ok(&plan) && plan.bytes <= o.budget;
        gcp_error_clear(net);
        if (good) low = batch;
        else { high = batch; fits = 0; }
        if (good && fits) high *= 2;
    }
    gcp_tape_reset(net);
    return low;
}

/* Binds the plan, and takes and measures a step if asked to. Returns the measured bytes, 0 without. */
static size_t proved(const options *o, gcp_plan *plan, const network *n)
{
    size_t measured = 0, size = plan->room + 4096;
    unsigned char *slab = malloc(size);
    if (!slab) { printf("    no %.1f MB here to bind it in\n", 1e-6 * (double)size); return 0; }
    gcp_bind(plan, slab, plan->room);
    unsigned char *probe = o->run ? malloc(size) : NULL;
    if (probe) {
        measured = gcp_measure(plan, probe, size);
        printf("    a step took %zu bytes, %zu were planned\n", measured, plan->bytes);
    } else printf("    verified and bound%s\n", o->run ? "; no memory to measure a step in" : "");
    if (gcp_error(n->loss.tape)) printf("    %s\n", gcp_error(n->loss.tape));
    free(probe);
    free(slab);
    return measured;
}

static void row(const options *o, const card *c, const char *name, int batch, gcp_plan_opts opts, int prove)
{
    gcp_tape *net = tape_of(c);
    network n = c->record(net, batch, NULL);
    gcp_plan plan = gcp_plan_make_at(n.loss, opts);
    const double ratio = plan.seconds / plan.keep_all_seconds;
    if (!gcp_plan_ok(&plan)) { printf("  gcp %-22s none: %s\n", name, gcp_error(net)); return; }
    printf("  gcp %-22s %6d %10.1f %8.3f\n", name, batch, 1e-6 * (double)plan.bytes, ratio);
    const size_t measured = prove ? proved(o, &plan, &n) : 0;
    fprintf(csv, "%s,%.0f,%s,%d,%zu,%zu,%.4f\n", c->network, 1e6 * c->cap, name, batch, plan.bytes, measured, ratio);
    net = tape_of(c);
    plan = gcp_plan_make_at(c->record(net, batch + 1, NULL).loss, opts);
    if (gcp_plan_ok(&plan) && (opts.policy == GCP_POLICY_KEEP_ALL || plan.bytes > opts.budget))
        printf("    one more: DOES FIT, %zu bytes\n", plan.bytes);
    else if (gcp_plan_ok(&plan))
        printf("    one more: fits, but takes %.3f of the time\n", plan.seconds / plan.keep_all_seconds);
    else printf("    one more: %s\n", gcp_error(net));
    fflush(stdout);
}

static void table(const options *o, const card *c)
{
    static const struct { const char *name; double slowdown; int far; } searches[] = {
        { "budget as fast", 1.001, 0 }, { "budget little slower", 1.05, 0 }, { "budget slowdown", 0, 0 },
        { "either slowdown", 0, 1 }, { "budget any time", -1, 0 }, { "either any time", -1, 1 }
    };
    const gcp_target target = card_of(o->rates);
    gcp_plan_opts opts = published_training(c->table);
    opts.target = &target;
    opts.budget = (size_t)(1e6 * c->cap);
    opts.store = o->store;
    printf("\n%s, %.1f MB (%s)%s\n  %-26s %6s %10s %8s\n", c->network, c->cap, c->table, store_said(o->store), "",
           "images", "MB", "x time");
    for (int i = 0; i < REACHED && c->published[i].system; i++)
        printf("  %-26s %6d\n", c->published[i].system, c->published[i].batch);
    opts.policy = GCP_POLICY_KEEP_ALL;
    row(o, c, "keep_all", largest_kept(tape_of(c), c, opts), opts, 0);
    opts.policy = GCP_POLICY_BUDGET;
    for (size_t i = 0; i < sizeof searches / sizeof *searches; i++) {
        const double given = searches[i].slowdown, most = given < 0 ? 0 : given > 0 ? given : o->slowdown;
        card copy = *c;
        opts.far = searches[i].far ? SIZE_MAX / 4 : 0;
        gcp_tape *net = tape_of(c);
        const int batch = gcp_max_batch(net, record, &copy, .slowdown = most, .plan = opts);
        if (!batch) { printf("  gcp %-22s none: %s\n", searches[i].name, gcp_error(net)); continue; }
        row(o, c, searches[i].name, batch, opts, i == 2);
    }
}

static int usage(const char *option)
{
    fprintf(stderr, "max_batch: %s: unknown, or its value is missing or out of range\n", option);
    fprintf(stderr, "usage: max_batch [--only resnet50|resnet1001] [--memory MB] [--slowdown 1.33] [--run 0|1]\n"
                    "                 [--rates FLOPS,BYTES,LINK] [--store float|bf16] [--out FOLDER]\n");
    return 2;
}

/* NULL, or the option that is wrong. */
static const char *parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i += 2) {
        const char *name = argv[i], *value = i + 1 < argc ? argv[i + 1] : NULL;
        int known = value != NULL;
        if (!known) return name;
        if (!strcmp(name, "--only")) known = !strcmp(o->only = value, "resnet50") || !strcmp(value, "resnet1001");
        else if (!strcmp(name, "--out")) o->folder = value;
        else if (!strcmp(name, "--run")) known = whole_of(value, 0, 1, &o->run);
        else if (!strcmp(name, "--store")) known = store_of(value, &o->store);
        else if (!strcmp(name, "--memory")) known = number_of(value, 1, 1e12, &o->memory);
        else if (!strcmp(name, "--slowdown")) known = number_of(value, 1, 1e6, &o->slowdown);
        else if (!strcmp(name, "--rates")) known = rates_of(value, o->rates);
        else return name;
        if (!known) return name;
    }
    return NULL;
}

int main(int argc, char **argv)
{
    options o = { .folder = ".", .slowdown = 1.33, .rates = CARD_RATES };
    const char *wrong = parse(&o, argc, argv);
    if (wrong) return usage(wrong);
    memory = malloc(GCP_MB(ROOM));
    if (!memory) { fprintf(stderr, "max_batch: out of memory\n"); return 1; }
    csv = table_open("max_batch", o.folder, "max_batch.csv");
    fprintf(csv, "network,cap_bytes,strategy,batch,planned_bytes,measured_bytes,ratio\n");
    for (size_t i = 0; i < sizeof cards / sizeof *cards; i++)
        if (!o.only || !strcmp(o.only, cards[i].network)) {
            card c = cards[i];
            if (o.memory > 0) c.cap = o.memory;
            table(&o, &c);
        }
    printf("\nMB: all bytes of a step; x time: of an image, over keep_all's at the same batch. budget: runs again\n"
           "alone; either: copies too; as fast: at most 1.001, little slower: 1.05, slowdown: --slowdown\n");
    table_close("max_batch", csv);
    free(memory);
    return 0;
}
