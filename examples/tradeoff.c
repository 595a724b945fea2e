/* tradeoff.c - memory against time, measured on this machine. cmake --workflow --preset demo runs it.

   Part one: the 26-layer CNN of tf2_gradient_checkpointing under every policy: planned and measured peak, runs of a
   layer again, time, and whether loss and every gradient are the same bits. Part two: a CNN learns handwritten digits
   three times, keeping all and recomputing, and ends with the same weights. */
#include "loop.h"
#include "scatter.h"

enum { MAX_TIMES = 64, GUARD = 1 << 16, ALIGN = 256, CURVE = 25 };        /* ALIGN: what aligning memory may cost */

typedef struct options { int image, batch, epochs; double seconds; const char *out, *data, *device; } options;

typedef struct row {
    const char *name;
    gcp_policy policy;
    int k, replay, share;               /* share: a budget of keep_all's bytes over this */
    size_t budget;
    gcp_plan plan;
    size_t measured;
    double seconds[MAX_TIMES], median;
    int times, same;
} row;

static row rows[] = {
    { .name = "keep_all", .policy = GCP_POLICY_KEEP_ALL },
    { .name = "k0_replay", .policy = GCP_POLICY_CHECKPOINTS, .k = 0, .replay = 1 },
    { .name = "k2_replay", .policy = GCP_POLICY_CHECKPOINTS, .k = 2, .replay = 1 },
    { .name = "k4_replay", .policy = GCP_POLICY_CHECKPOINTS, .k = 4, .replay = 1 },
    { .name = "k8_replay", .policy = GCP_POLICY_CHECKPOINTS, .k = 8, .replay = 1 },
    { .name = "k16_replay", .policy = GCP_POLICY_CHECKPOINTS, .k = 16, .replay = 1 },
    { .name = "k0_retain", .policy = GCP_POLICY_CHECKPOINTS, .k = 0 },
    { .name = "k2_retain", .policy = GCP_POLICY_CHECKPOINTS, .k = 2 },
    { .name = "k4_retain", .policy = GCP_POLICY_CHECKPOINTS, .k = 4 },
    { .name = "k8_retain", .policy = GCP_POLICY_CHECKPOINTS, .k = 8 },
    { .name = "k16_retain", .policy = GCP_POLICY_CHECKPOINTS, .k = 16 },
    { .name = "sqrt", .policy = GCP_POLICY_SQRT },
    { .name = "recursive", .policy = GCP_POLICY_RECURSIVE },
    { .name = "cheap", .policy = GCP_POLICY_CHEAP },
    { .name = "budget_1/2", .policy = GCP_POLICY_BUDGET, .share = 2 },
    { .name = "budget_1/4", .policy = GCP_POLICY_BUDGET, .share = 4 },
    { .name = "budget_1/8", .policy = GCP_POLICY_BUDGET, .share = 8 },
};
enum { ROWS = sizeof rows / sizeof *rows };

/* Part one's network, its memory and what keep_all computed. */
typedef struct study {
    gcp_arena arena;
    gcp_tape *net;
    gcp_tensor image, labels, loss;
    stored framework;
    void *tape_memory, *state;
    unsigned char *slab;
    size_t slab_size, state_size;
    float *ones;
    int32_t *label;
    gcp_real *expected, *gradient;      /* every gradient of keep_all, one after the other; one of another plan */
    double expected_loss;
} study;

static study part_one;
/* Time for any budget, from the last row's to keep_all's bytes. fits: so many points, the last ones, have a plan. */
static struct { gcp_point points[CURVE]; int fits; } curve;
static const gcp_target *target;        /* of every plan; NULL: this CPU */

/* ---- Setting up ------------------------------------------------------------------------------------------------*/

static int out_of_memory(void) { fprintf(stderr, "tradeoff: out of memory\n"); return 0; }
static int failed(gcp_tape *net) { fprintf(stderr, "tradeoff: %s\n", gcp_error(net)); return 0; }

/* A row's plan; of a budget below the least one, the plan of that. */
static gcp_plan row_plan(const study *s, row *r)
{
    if (r->share) r->budget = rows[0].plan.bytes / (size_t)r->share;
    gcp_plan plan = gcp_plan_make(s->loss, .policy = r->policy, .checkpoints = r->k, .replay = r->replay,
                                  .budget = r->budget, .target = target);
    if (gcp_plan_ok(&plan) || gcp_error_code(s->net) != GCP_E_BUDGET) return plan;
    gcp_error_clear(s->net);
    r->budget = plan.least_bytes;
    return gcp_plan_make(s->loss, .policy = r->policy, .budget = r->budget, .target = target);
}

static int curve_of(gcp_tensor loss, size_t least, size_t most)
{
    for (int i = 0; i < CURVE; i++) curve.points[i].budget = least + (most - least) * (size_t)i / (CURVE - 1);
    curve.fits = gcp_sweep(loss, curve.points, CURVE, .target = target);
    return !gcp_error(loss.tape) || failed(loss.tape);
}

static int study_record(study *s, const options *o)
{
    const size_t arena = GCP_MB(64);
    s->tape_memory = malloc(arena);
    if (!s->tape_memory) return out_of_memory();
    s->arena = gcp_arena_from(s->tape_memory, arena);
    s->net = gcp_tape_make(&s->arena, .ops = 128, .seed = 1);
    s->loss = tf2_checkpointing_stored(s->net, o->image, o->batch, &s->image, &s->labels, &s->framework);
    for (int i = 0; i < ROWS; i++) {
        row *r = &rows[i];
        r->plan = row_plan(s, r);
        if (r->plan.slab_bytes > s->slab_size) s->slab_size = r->plan.slab_bytes;
    }
    return !gcp_error(s->net) ? curve_of(s->loss, rows[ROWS - 1].budget, rows[0].plan.bytes)
                              : failed(s->net);
}

/* Weights have a home of their own; all plans use one slab, as large as the largest says, and a guard behind it. */
static int study_memory(study *s, const options *o)
{
    size_t pixels = (size_t)o->image * (size_t)o->image * (size_t)o->batch, weights = 0,
           state = gcp_state_bytes(s->net, GCP_OPTIMIZER_NONE) + ALIGN;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(s->net, i)); i++)
        weights += gcp_elements(gcp_nth_parameter(s->net, i));
    s->slab_size += GUARD + ALIGN;
    s->state_size = state;
    s->state = device_take(target, state);
    s->slab = device_take(target, s->slab_size);
    s->ones = malloc(pixels * sizeof *s->ones);
    s->label = malloc((size_t)o->batch * sizeof *s->label);
    s->expected = malloc(weights * sizeof *s->expected);
    s->gradient = malloc(weights * sizeof *s->gradient);
    if (!s->state || !s->slab || !s->ones || !s->label || !s->expected || !s->gradient) return out_of_memory();
    for (size_t i = 0; i < pixels; i++) s->ones[i] = 1;
    for (int i = 0; i < o->batch; i++) s->label[i] = 1;
    return gcp_state_bind_on(s->net, target, s->state, state) ? failed(s->net) : 1;
}

static void study_free(study *s)
{
    device_give(target, s->state, s->state_size);
    device_give(target, s->slab, s->slab_size);
    free(s->tape_memory); free(s->ones); free(s->label); free(s->expected); free(s->gradient);
}

/* ---- Running ---------------------------------------------------------------------------------------------------*/

/* Every gradient of the plan that has just run against keep_all's, which comes first and is taken as it is. */
static int study_same(study *s, row *r, double loss)
{
    size_t at = 0;
    int same = 1, first = r == rows && r->times == 0;
    if (first) s->expected_loss = loss;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(s->net, i)); i++) {
        gcp_tensor w = gcp_nth_parameter(s->net, i);
        gcp_real *expected = s->expected + at, *found = first ? expected : s->gradient;
        if (gcp_grad(&r->plan, w, found)) return 0;
        same &= !memcmp(found, expected, gcp_elements(w) * sizeof *found);
        at += gcp_elements(w);
    }
    return same && !memcmp(&loss, &s->expected_loss, sizeof loss);
}

/* Bytes up to the last that is not pattern. */
static size_t last_change(const unsigned char *base, size_t end, unsigned char pattern)
{
    static unsigned char some[1 << 16];
    while (end > 0) {
        size_t n = end < sizeof some ? end : sizeof some, first = end - n;
        device_copy(target, some, base + first, n);
        while (n > 0 && some[n - 1] == pattern) n--;
        if (n > 0) return first + n;
        end = first;
    }
    return 0;
}

/* A step in memory filled with a pattern: the last byte that differs afterwards ends what the step touched. Each run of
   a row has another pattern, lest a byte that is written happens to equal it. (gcp_measure does this with two runs of
   its own; here the runs that are timed serve.) */
static int study_run(study *s, row *r)
{
    unsigned char pattern = r->times % 2 ? 0x5A : 0xA5, *base = s->slab + (-(uintptr_t)s->slab & 255);
    size_t end = r->plan.slab_bytes + GUARD;
    if (gcp_bind(&r->plan, base, s->slab_size - ALIGN)) return failed(s->net);
    device_fill(target, base, pattern, end);
    gcp_write(&r->plan, s->image, s->ones);
    gcp_write(&r->plan, s->labels, s->label);
    double start = seconds_now();
    double loss = gcp_step(&r->plan);
    r->seconds[r->times] = seconds_now() - start;
    if (gcp_error(s->net)) return failed(s->net);
    end = last_change(base, end, pattern);
    if (r->plan.state_bytes + end > r->measured) r->measured = r->plan.state_bytes + end;
    int same = study_same(s, r, loss);
    r->same = same && (r->times == 0 || r->same);
    r->times++;
    return 1;
}

static double median(const row *r)
{
    double sorted[MAX_TIMES];
    memcpy(sorted, r->seconds, (size_t)r->times * sizeof *sorted);
    qsort(sorted, (size_t)r->times, sizeof *sorted, by_size);
    return r->times % 2 ? sorted[r->times / 2] : 0.5 * (sorted[r->times / 2 - 1] + sorted[r->times / 2]);
}

static int row_good(const row *r) { return r->same && r->measured == r->plan.bytes; }

/* Runs every row once, then again and again while there is time for the next: those whose first measurement came out
   different once more at any rate, with the other pattern. */
static int study_measure(study *s, double until)
{
    for (int i = 0; i < ROWS; i++) {
        row *r = &rows[i];
        printf("[%2d/%d] %-11s planned %8.2f MiB ", i + 1, ROWS, r->name, mib(r->plan.bytes));
        fflush(stdout);
        if (!study_run(s, r)) return 0;
        if (r->measured != r->plan.bytes && !study_run(s, r)) return 0;
        printf("measured %8.2f MiB %8.3f s\n", mib(r->measured), r->seconds[0]);
    }
    printf("again, for the median");
    for (int ran = 1; ran; ) {
        ran = 0;
        for (int i = 0; i < ROWS; i++) {
            if (rows[i].times == MAX_TIMES || seconds_now() + 1.1 * rows[i].seconds[0] > until) continue;
            if (!study_run(s, &rows[i])) return 0;
            printf(".");
            fflush(stdout);
            ran = 1;
        }
    }
    for (int i = 0; i < ROWS; i++) rows[i].median = median(&rows[i]);
    printf("\n\n");
    return 1;
}

/* ---- Showing ---------------------------------------------------------------------------------------------------*/

/* What a framework holds and runs again under the same policy; for policies that it lacks, nothing. */
static void print_framework(const study *s, const row *r)
{
    if (r->policy == GCP_POLICY_KEEP_ALL) printf("%9.2f %7d", mib(framework_bytes(&s->framework)), 0);
    else if (r->policy != GCP_POLICY_CHECKPOINTS) printf("%9s %7s", "-", "-");
    else
        printf("%9.2f %7d", mib(framework_checkpoint_bytes(&s->framework, r->k, r->replay)),
               framework_reruns(&s->framework, r->k, r->replay));
}

static void print_table(const study *s)
{
    printf("             a framework       |  gcp (MiB)\n");
    printf("policy         stores  re-runs | checkpts  after fwd   planned  measured  re-runs        ms  ratio  same "
           "bits\n");
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i];
        printf("%-11s ", r->name);
        print_framework(s, r);
        if (r->plan.checkpoint_bytes) printf("  | %8.2f", mib(r->plan.checkpoint_bytes));
        else printf("  | %8s", "-");
        printf("  %9.2f %9.2f %9.2f  %7d  %8.0f  %5.2f  %s\n", mib(r->plan.after_forward), mib(r->plan.bytes),
               mib(r->measured), r->plan.reruns, 1e3 * r->median, r->median / rows[0].median,
               row_good(r) ? "yes"
               : r->same   ? "yes, but planned is not measured"
                           : "NO");
    }
    printf("\nreplay keeps nothing inside a segment and starts each layer from the last checkpoint; retain runs a "
           "segment once more\n"
           "and keeps its inside. A framework stores float tensors where gcp stores bits and byte indices, or nothing "
           "(1x1 pools,\n"
           "reshapes). planned and measured are all bytes of a step: weights, their gradients, inputs and workspace, "
           "too.\n\n");
}

/* What each budget asked for, and that no other row whose bytes fit it is faster by planned cost. */
static int print_budgets(void)
{
    int good = 1;
    for (int i = 0; i < ROWS; i++) {
        const row *r = &rows[i], *faster = NULL;
        if (!r->share) continue;
        for (int k = 0; k < ROWS; k++)
            if (rows[k].plan.bytes <= r->budget && rows[k].plan.seconds < r->plan.seconds) faster = &rows[k];
        printf("%s: %.2f MiB%s; found by %s, %.1f %% over keep_all by the cost model, no plan of these bytes is below "
               "%.1f %%\n",
               r->name, mib(r->budget),
               r->budget != rows[0].plan.bytes / (size_t)r->share ? ", the least that works" : "", r->plan.method,
               100 * (r->plan.seconds / r->plan.keep_all_seconds - 1),
               100 * (r->plan.bound_seconds / r->plan.keep_all_seconds - 1));
        if (faster) printf("%s IS SLOWER than %s, which fits, too\n", r->name, faster->name);
        good &= !faster;
    }
    printf("\n");
    return good;
}

/* Rows that came out as the same plan as keep_all should take the same time: how far apart they are is the noise. */
static void print_noise(void)
{
    double least = rows[0].median, most = least;
    for (int i = 1; i < ROWS; i++) {
        if (rows[i].plan.reruns || rows[i].plan.bytes != rows[0].plan.bytes) continue;
        if (rows[i].median < least) least = rows[i].median;
        if (rows[i].median > most) most = rows[i].median;
    }
    printf("Noise: rows that are keep_all's plan under another name differ by %.0f %% in time%s\n\n",
           100 * (most / least - 1), most > 1.15 * least ? ": THIS MACHINE IS BUSY, trust no ratio" : "");
}

static FILE *open_out(const options *o, const char *name, const char *suffix)
{
    char path[1024];
    snprintf(path, sizeof path, "%s/%s%s", o->out, name, suffix);
    FILE *f = fopen(path, "w");
    if (!f) fprintf(stderr, "tradeoff: %s cannot be written; --out names a folder that is there\n", path);
    return f;
}

static int write_csv(const options *o)
{
    FILE *f = open_out(o, "tradeoff", ".csv");
    if (!f) return 0;
    fprintf(f, "policy,after_forward_bytes,planned_peak,measured_peak,reruns,ms,ratio,same_bits\n");
    for (int i = 0; i < ROWS; i++)
        fprintf(f, "%s,%zu,%zu,%zu,%d,%.3f,%.4f,%s\n", rows[i].name, rows[i].plan.after_forward, rows[i].plan.bytes,
                rows[i].measured, rows[i].plan.reruns, 1e3 * rows[i].median, rows[i].median / rows[0].median,
                rows[i].same ? "yes" : "no");
    return fclose(f) == 0;
}

/* The points of the curve that have a plan; or, for those, times that no plan is below. */
static scatter_line curve_line(double *x, double *y, int bound, const char *name, const char *style)
{
    for (int i = 0; i < curve.fits; i++) {
        const gcp_point *p = &curve.points[CURVE - curve.fits + i];
        x[i] = mib(p->budget);
        y[i] = (bound ? p->bound_seconds : p->seconds) / p->keep_all_seconds;
    }
    return (scatter_line){ x, y, curve.fits, name, style };
}

static int row_group(const row *r)
{
    if (r->policy == GCP_POLICY_KEEP_ALL) return 0;
    if (r->policy == GCP_POLICY_CHECKPOINTS) return r->replay ? 2 : 1;
    return r->policy == GCP_POLICY_BUDGET ? 4 : 3;
}

/* The rows as points, at times as measured; or as planned, with the line of the best plans for any budget. */
static int write_scatter(const options *o, int planned)
{
    static double x[2][CURVE], y[2][CURVE];
    static const scatter_group groups[] = { { "keep all", "#000000", 0 }, { "checkpoints, retain", "#0b3a82", 0 },
                                            { "checkpoints, replay", "#b3261e", 1 },
                                            { "sqrt, recursive, cheap", "#0c4a22", 3 }, { "budget", "#a34e05", 2 } };
    const scatter_line lines[] = {
        curve_line(x[1], y[1], 0, "best plans", "stroke=\"#a34e05\" stroke-width=\"2\""),
        curve_line(x[0], y[0], 1, "no plan is faster", "stroke=\"#5f6368\" stroke-dasharray=\"5 4\"")
    };
    scatter_point p[ROWS];
    char title[200];
    FILE *f = open_out(o, planned ? "curve" : "tradeoff", ".svg");
    if (!f) return 0;
    for (int i = 0; i < ROWS; i++)
        p[i] = (scatter_point){ mib(rows[i].plan.bytes),
                                planned ? rows[i].plan.seconds / rows[0].plan.seconds : rows[i].median / rows[0].median,
                                rows[i].name, row_group(&rows[i]) };
    snprintf(title, sizeof title, "Time of a step%s against bytes at the peak: 26-layer CNN, %dx%d, batch %d",
             planned ? " as planned" : "", o->image, o->image, o->batch);
    const scatter_plot s = { title, "bytes at the peak, MiB", "time, keep_all = 1", p, ROWS,
                             groups, 5, lines, planned ? 2 : 0 };
    scatter_svg(f, &s);
    return fclose(f) == 0;
}

static int write_pictures(const options *o)
{
    for (int i = 0; i < ROWS; i++) {
        char name[64];
        snprintf(name, sizeof name, "memory_%s", rows[i].name);
        if (strchr(name, '/')) *strchr(name, '/') = '_';
        FILE *f = open_out(o, name, ".svg");
        if (!f) return 0;
        gcp_memory_svg(&rows[i].plan, &rows[0].plan, gcp_file(f));
        if (fclose(f)) return 0;
    }
    return write_scatter(o, 0) && write_scatter(o, 1);
}

static void print_why(const char *name)
{
    for (int i = 0; i < ROWS; i++) {
        if (strcmp(rows[i].name, name)) continue;
        printf("why %s:\n", name);
        gcp_why_print(&rows[i].plan, gcp_file(stdout));
        printf("\n");
    }
}

static int policies(const options *o, double until)
{
    study *s = &part_one;
    printf("Part one: 26-layer CNN, image %dx%dx1, batch %d, one training step under %d policies\n\n", o->image,
           o->image, o->batch, ROWS);
    int done = study_record(s, o) && study_memory(s, o) && study_measure(s, until), good = done;
    if (done) {
        print_table(s);
        print_noise();
        print_why("keep_all");
        print_why("k4_retain");
        good &= print_budgets();
        for (int i = 0; i < ROWS; i++) good &= row_good(&rows[i]);
        int written = write_csv(o) && write_pictures(o);
        printf(
            "%s\n",
            good ? "every row: measured = planned, byte for byte; loss and all gradients equal keep_all's, bit for bit"
                 : "SOMETHING DIFFERS: see the table");
        if (written)
            printf("written to %s: tradeoff.csv, tradeoff.svg (measured), curve.svg (planned, for any budget), "
                   "memory_<policy>.svg (memory over time, a rectangle a tensor)\n\n",
                   o->out);
        good &= written;
    }
    study_free(s);
    return good;
}

/* ---- Part two: training ----------------------------------------------------------------------------------------*/

/* Trains from the same start; *hash of the final weights. 0 where something is wrong. */
static int digits_train(const char *name, gcp_policy policy, const gcp_dataset *train, const gcp_dataset *test,
                        int epochs, uint64_t *hash)
{
    static unsigned char tape_memory[GCP_MB(4)];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    loop l = { .net = gcp_tape_make(&arena, .ops = 64, .seed = 1), .batch = 50, .lr = 0.003, .target = target };
    double accuracy = 0;
    l.ends = digits_cnn(l.net, l.batch);
    l.train = gcp_plan_make(l.ends.loss, .policy = policy, .optimizer = GCP_OPTIMIZER_ADAM, .target = target);
    l.infer = gcp_plan_make(l.ends.logits, .inference = 1, .target = target);
    if (!loop_start(&l, train)) return gcp_error(l.net) ? failed(l.net) : out_of_memory();
    size_t measured = loop_measure(&l);
    for (int epoch = 1; epoch <= epochs; epoch++) {
        if (2 * epoch > epochs) l.lr *= 0.7;
        double ms, loss = loop_epoch(&l, train, epoch, &ms), seen = loop_accuracy(&l, train);
        accuracy = loop_accuracy(&l, test);
        printf("%-8s epoch %2d  loss %.4f  right: training %6.2f %%, test %6.2f %%  %6.2f ms a step  peak planned %zu, "
               "measured %zu bytes\n",
               name, epoch, loss, seen, accuracy, ms, l.train.bytes, measured);
        fflush(stdout);
    }
    *hash = weights_hash(&l.train);
    int good = gcp_error(l.net) ? failed(l.net) : accuracy >= 95 && measured == l.train.bytes;
    printf("%-8s weights %016llx, %d reruns of units in each step\n\n", name, (unsigned long long)*hash,
           l.train.reruns);
    loop_free(&l);
    return good;
}

static int digits(const options *o)
{
    static unsigned char memory[GCP_KB(256)];
    gcp_arena arena = gcp_arena_from(memory, sizeof memory);
    uint64_t all = 0, root = 1, blocks = 2;
    gcp_dataset d = data_digits(&arena, o->data);
    if (!d.count) { fprintf(stderr, "tradeoff: %s\n", d.error); return 0; }
    data_mix(&d, 1);
    gcp_dataset train = data_slice(&d, 0, 1500), test = data_slice(&d, 1500, d.count - 1500);
    printf("Part two: a CNN learns handwritten digits, %d to train on and %d to test on, drawn at random; batches of "
           "50, Adam\n\n",
           train.count, test.count);
    int good = digits_train("keep_all", GCP_POLICY_KEEP_ALL, &train, &test, o->epochs, &all);
    good &= digits_train("sqrt", GCP_POLICY_SQRT, &train, &test, o->epochs, &root);
    good &= digits_train("segments", GCP_POLICY_SEGMENTS, &train, &test, o->epochs, &blocks);
    good &= all == root && all == blocks;
    printf("%s\n", good ? "the three trainings end with the same weights, bit for bit"
                        : "THE TRAININGS DIFFER, or one of them went wrong");
    return good;
}

/* ---- Options ---------------------------------------------------------------------------------------------------*/

static const char help[] =
    "tradeoff - what a training step's memory costs in time, measured on this machine\n\n"
    "Training keeps the output of each layer (its activation) until the backward pass has used it. That is most of\n"
    "the memory. Some outputs can be forgotten and computed again when they are needed: less memory, more time. A\n"
    "policy says which. This program runs the same step under 17 policies, then trains on handwritten digits.\n\n"
    "  tradeoff                        all of it, about a minute; tables here, pictures in this folder\n"
    "  tradeoff --seconds 0            each policy once: a few seconds, times are rough\n"
    "  tradeoff --image 128 --batch 8  another size of the step\n\n"
    "The table's columns: bytes that wait between forward and backward, bytes of the whole step as planned before\n"
    "it ran and as measured after, how many layers ran again, milliseconds, their ratio to keeping everything,\n"
    "and whether the loss and every gradient have the same bits. Its rows:\n"
    "  keep_all            nothing is forgotten\n"
    "  kN_retain           N outputs are kept (checkpoints); what lies between two runs again once, and is held\n"
    "                      while backward goes through it\n"
    "  kN_replay           the same, but nothing is held: least memory, most time\n"
    "  sqrt, recursive     about sqrt(n) checkpoints; checkpoints within checkpoints (Chen et al. 2016)\n"
    "  cheap               only convolutions' outputs are kept\n"
    "  budget_1/N          the fastest schedule found in an Nth of keep_all's bytes, or in the fewest that work\n\n"
    "options:\n"
    "  --image N     side of the square images (default 64; 256 is the published size: 16 times the work and\n"
    "                memory)\n"
    "  --batch N     images in a step (default 16)\n"
    "  --seconds S   repeat the steps until S seconds have passed (default 32)\n"
    "  --epochs N    of the training on digits (default 6; 0 leaves it out)\n"
    "  --out DIR     folder for tradeoff.csv and .svg, curve.svg and memory_<policy>.svg (default: this one)\n"
    "  --data DIR    folder with the digits (default: the source's examples/data)\n"
    "  --device D    cpu (default) or cuda\n\n"
    "The exit status is 0 only if every measured peak is the planned one and all bits are the same. To read on:\n"
    "docs/checkpointing.md.\n";

static int usage(FILE *f, int status)
{
    fputs(help, f);
    return status;
}

/* The whole of text as a number from least to most; what else it is, is said. */
static int number(const char *name, const char *text, double least, double most, double *value)
{
    char *end;
    double v = text ? strtod(text, &end) : 0;
    if (text && end != text && !*end && v >= least && v <= most) { *value = v; return 1; }
    fprintf(stderr, "tradeoff: %s: found '%s', expected a number from %g to %g\n", name, text ? text : "nothing", least,
            most);
    return 0;
}

static int whole(const char *name, const char *text, int least, int most, int *value)
{
    double v;
    if (!number(name, text, least, most, &v)) return 0;
    *value = (int)v;
    return 1;
}

static int option(options *o, const char *name, const char *value)
{
    if (!strcmp(name, "--image")) return whole(name, value, 2, 4096, &o->image);
    if (!strcmp(name, "--batch")) return whole(name, value, 1, 4096, &o->batch);
    if (!strcmp(name, "--epochs")) return whole(name, value, 0, 1000, &o->epochs);
    if (!strcmp(name, "--seconds")) return number(name, value, 0, 1e6, &o->seconds);
    if (!strcmp(name, "--out") && value) { o->out = value; return 1; }
    if (!strcmp(name, "--data") && value) { o->data = value; return 1; }
    if (!strcmp(name, "--device") && value) { o->device = value; return 1; }
    fprintf(stderr, "tradeoff: '%s' %s\n\n", name, value ? "is no option" : "needs a value, or is no option");
    return usage(stderr, 0);
}

int main(int argc, char **argv)
{
    double start = seconds_now();
    options o = {
        .image = 64, .batch = 16, .epochs = 6, .seconds = 32, .out = ".", .data = GCP_EXAMPLE_DATA, .device = "cpu"
    };
    for (int i = 1; i < argc; i += 2) {
        if (!strcmp(argv[i], "--help")) return usage(stdout, 0);
        if (!option(&o, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) return 2;
    }
    if (!device_open("tradeoff", o.device, &target)) return 2;
    int good = policies(&o, start + o.seconds);
    if (o.epochs) good &= digits(&o);
    printf("%.1f s in all, %.1f s of processor time\n", seconds_now() - start, (double)clock() / CLOCKS_PER_SEC);
    return !good;
}
