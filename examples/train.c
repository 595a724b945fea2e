/* train.c - trains a network on image files under a budget or a policy of your choice, and reports its memory. A run
   can be stopped and taken up again, weights loaded and saved, a part of them frozen.

       train --digits
       train --mnist IMAGES LABELS [TEST_IMAGES TEST_LABELS] --policy sqrt
       train --cifar data_batch_1.bin ... --test test_batch.bin --budget 200MiB --epochs 30 --resume run.gcp

   --help says the rest. */
#if defined(__unix__) || defined(__APPLE__)
#define _POSIX_C_SOURCE 200809L          /* for bar.h */
#endif
#include <signal.h>

#include "bar.h"
#include "loop.h"
#include "train_options.h"

/* ---- Data ------------------------------------------------------------------------------------------------------*/

/* train and test may be parts of one set, which lies in memory. */
typedef struct samples { void *memory, *more; gcp_dataset train, test; } samples;

/* The files of a task, or its test files. */
static gcp_dataset read_files(const options *o, gcp_arena *arena, int test)
{
    char *const *file = o->task == MNIST ? o->file + 2 * test : test ? o->test : o->file;
    if (o->task == DIGITS) return data_digits(arena, o->data);
    if (o->task == MNIST) return gcp_dataset_idx(arena, file[0], file[1]);
    return gcp_dataset_cifar10(arena, (const char *const *)file, test ? o->tests : o->files);
}
/* The same with memory as large as it takes. */
static gcp_dataset read_set(const options *o, void **memory, int test)
{
    gcp_dataset d = read_files(o, NULL, test);
    if (d.error[0]) return d;
    gcp_arena arena = gcp_arena_from(*memory = malloc(d.bytes), d.bytes);
    return read_files(o, &arena, test);
}

static int load(const options *o, samples *s)
{
    const int tests = o->task == MNIST ? o->files == 4 : o->tests > 0;
    s->train = read_set(o, &s->memory, 0);
    s->test = tests ? read_set(o, &s->more, 1) : s->train;
    const gcp_dataset *wrong = s->train.error[0] ? &s->train : s->test.error[0] ? &s->test : NULL;
    if (o->task == DIGITS && !wrong) {
        gcp_dataset all = s->train;
        data_mix(&all, 1);
        s->train = data_slice(&all, 0, all.count - 297);
        s->test = data_slice(&all, all.count - 297, 297);
    }
    if (wrong) fprintf(stderr, "train: %s\n", wrong->error);
    else if (s->test.height != s->train.height || s->test.width != s->train.width)
        fprintf(stderr, "train: %s: found images of %dx%d, expected %dx%d as in %s\n", o->file[2], s->test.height,
                s->test.width, s->train.height, s->train.width, o->file[0]);
    else if (s->train.count < o->batch)
        fprintf(stderr, "train: %d images are fewer than a batch of %d\n", s->train.count, o->batch);
    else return 1;
    return 0;
}

/* ---- The plan --------------------------------------------------------------------------------------------------*/

static network record(const options *o, gcp_tape *net, const gcp_dataset *d)
{
    if (o->task == DIGITS) return digits_cnn(net, o->batch);
    if (o->task == CIFAR) return cifar_resnet(net, o->batch, o->blocks);
    return mnist_cnn(net, o->batch, d->height, d->width, d->classes);
}

static gcp_plan_opts training(const options *o, const gcp_target *target)
{
    const int sgd = o->optimizer == GCP_OPTIMIZER_SGD;
    gcp_plan_opts p = { .at = GCP_AT, .policy = o->policy, .optimizer = o->optimizer, .target = target,
                        .store = o->store };
    if (o->budget) { p.policy = GCP_POLICY_BUDGET; p.budget = o->budget; }
    else if (o->policy == GCP_POLICY_UNIFORM) p.segments = o->segments;
    else if (o->policy == GCP_POLICY_CHECKPOINTS) { p.checkpoints = o->checkpoints; p.replay = o->replay; }
    if (sgd) { p.momentum = 0.9; p.weight_decay = 1e-4; }
    if (o->optimizer == GCP_OPTIMIZER_ADAMW) { p.weight_decay = 0.01; p.decays = "*/bias 0\n*/gamma 0\n*/beta 0"; }
    p.freeze = o->freeze;
    p.frozen_norms = o->freeze != NULL;
    return p;
}

static int plan(const options *o, loop *l, const gcp_dataset *d)
{
    l->ends = record(o, l->net, d);
    l->train = gcp_plan_make_at(l->ends.loss, training(o, l->target));
    l->infer = gcp_plan_make(l->ends.logits, .inference = 1, .target = l->target, .store = o->store);
    if (gcp_error(l->net)) return 0;
    gcp_layers_print(&l->train, gcp_file(stdout));
    printf("\n");
    gcp_why_print(&l->train, gcp_file(stdout));
    printf("\n");
    return loop_start(l, d);
}

/* ---- A run: its place in the data, and what it has reached ---- */

typedef struct place { int epoch, batch, without_better; double loss, best; } place;     /* loss: sum in this epoch */

/* place and averages lie in one block, which goes into the run file. */
typedef struct run { place *at; void *averages; size_t bytes; } run;

static volatile sig_atomic_t interrupted;
static void interrupt(int signal) { (void)signal; interrupted = 1; }

static int run_begin(const options *o, loop *l, run *r)
{
    const size_t front = (sizeof(place) + 63) / 64 * 64;
    r->bytes = front + (o->average > 0 ? gcp_average_bytes(l->net) : 0);
    r->at = calloc(1, r->bytes);
    if (!r->at) return 0;
    r->averages = o->average > 0 ? (unsigned char *)r->at + front : NULL;
    if (o->load) printf("%s: %d tensors loaded\n", o->load, gcp_load(l->net, o->load, .partial = 1));
    if (r->averages) gcp_average(l->net, r->averages, 0);
    if (o->resume && gcp_resume_run(l->net, o->resume, .extra = r->at, .extra_bytes = r->bytes))
        printf("%s: goes on after epoch %d, batch %d\n", o->resume, r->at->epoch, r->at->batch);
    return !gcp_error(l->net);
}
static int run_save(const options *o, loop *l, const run *r)
{
    return !o->resume || gcp_save_run(l->net, o->resume, .extra = r->at, .extra_bytes = r->bytes) == GCP_OK;
}

/* ---- Training --------------------------------------------------------------------------------------------------*/

static double rate(const options *o, int epoch, int batch, int batches)
{
    const uint64_t each = (uint64_t)batches, step = (uint64_t)epoch * each + (uint64_t)batch,
                   all = (uint64_t)o->epochs * each, warmup = (uint64_t)o->warmup * each;
    if (o->schedule == COSINE) return gcp_rate_cosine(o->lr, step, warmup, all);
    return gcp_rate_steps(o->lr, step, warmup, o->schedule == STEPS ? all / 3 + 1 : 0, 0.1);
}

static int batches_of(const options *o, const loop *l, const gcp_dataset *d)
{
    const int all = loop_batches(l, d);
    return o->steps && o->steps < all ? o->steps : all;
}

/* The rest of the epoch at r->at; *ms a step. 0: it was interrupted, or an error. */
static int epoch(const options *o, loop *l, const gcp_dataset *d, run *r, double *ms)
{
    place *at = r->at;
    const int batches = batches_of(o, l, d), first = at->batch;
    double seconds = 0;
    loop_shuffle(l, d, at->epoch + 1);
    while (at->batch < batches && !interrupted && !gcp_error(l->net)) {
        l->lr = rate(o, at->epoch, at->batch, batches);
        at->loss += loop_step(l, d, at->batch++, &seconds);
        if (r->averages) gcp_average(l->net, r->averages, o->average);
        bar(at->epoch + 1, at->batch, batches, at->batch - first, seconds);
    }
    *ms = at->batch > first ? 1e3 * seconds / (at->batch - first) : 0;
    return at->batch == batches && !gcp_error(l->net);
}

/* The share of the test images that is classified rightly; by averaged weights, where there are. */
static double tested(loop *l, const samples *s, const run *r)
{
    if (r->averages) gcp_average_swap(l->net, r->averages);
    double right = loop_accuracy(l, &s->test);
    if (r->averages) gcp_average_swap(l->net, r->averages);
    return right;
}

static void report(const loop *l, const samples *s, const place *at, int images, double right, double ms)
{
    printf("epoch %3d  loss %.4f  right on the %s %6.2f %%  %8.2f ms a step  peak planned %zu, measured %zu bytes\n",
           at->epoch, at->loss / images, s->test.images == s->train.images ? "training set" : "test set", right, ms,
           l->train.bytes, l->measured);
    fflush(stdout);
}

/* Whole epochs, from r->at on. 0: an error. */
static int train(const options *o, loop *l, const samples *s, run *r)
{
    place *at = r->at;
    const int most = batches_of(o, l, &s->train) * l->batch, images = most < s->train.count ? most : s->train.count;
    double ms;
    while (at->epoch < o->epochs && epoch(o, l, &s->train, r, &ms)) {
        double right = tested(l, s, r);
        if (!l->measured) loop_measure(l);
        at->epoch++;
        report(l, s, at, images, right, ms);
        at->without_better = right > at->best ? 0 : at->without_better + 1;
        at->best = right > at->best ? right : at->best;
        at->batch = 0;
        at->loss = 0;
        if (!run_save(o, l, r)) return 0;
        if (o->patience && at->without_better >= o->patience) {
            printf("no better result in %d epochs: the best was %.2f %%\n", o->patience, at->best);
            break;
        }
    }
    if (!interrupted || at->epoch == o->epochs) return !gcp_error(l->net);
    printf("\nstopped in epoch %d, after batch %d%s%s\n", at->epoch + 1, at->batch,
           o->resume ? "; go on with --resume " : "", o->resume ? o->resume : "");
    return run_save(o, l, r);
}

/* The weights at the end, averaged where that was asked for. */
static int finish(const options *o, loop *l, const run *r)
{
    printf("weights %016llx\n", (unsigned long long)weights_hash(&l->train));
    if (r->averages) gcp_average_swap(l->net, r->averages);
    if (o->save && gcp_save(l->net, o->save) == GCP_OK) printf("saved as %s\n", o->save);
    return !gcp_error(l->net);
}

static int defaults(options *o, int argc, char **argv)
{
    static char data[] = GCP_EXAMPLE_DATA, cpu[] = "cpu";
    o->data = data;
    o->device = cpu;
    if (!parse(o, argc, argv)) return 0;
    if (!o->optimizer) o->optimizer = o->task == CIFAR ? GCP_OPTIMIZER_SGD : GCP_OPTIMIZER_ADAM;
    if (o->lr <= 0) o->lr = o->optimizer == GCP_OPTIMIZER_SGD ? 0.1 : 0.002;
    return 1;
}

int main(int argc, char **argv)
{
    static unsigned char tape_memory[GCP_MB(64)];
    options o = { .epochs = 10, .batch = 50, .segments = 4, .checkpoints = 4, .blocks = 3, .seed = 1 };
    samples s = { 0 };
    run r = { 0 };
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--help")) return usage();
    if (!defaults(&o, argc, argv)) return 2;
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    loop l = { .net = gcp_tape_make(&arena, .ops = 8192, .seed = (uint64_t)o.seed), .batch = o.batch };
    if (!device_open("train", o.device, &l.target)) return 2;
    if (o.task == CIFAR) l.change = (augment) { .shift = 4, .mirror = 1 };
    signal(SIGINT, interrupt);
    int good = load(&o, &s);
    if (good) {
        good = plan(&o, &l, &s.train) && run_begin(&o, &l, &r) && train(&o, &l, &s, &r) && finish(&o, &l, &r);
        if (!good) fprintf(stderr, "train: %s\n", gcp_error(l.net) ? gcp_error(l.net) : "out of memory");
    }
    if (good && l.measured && l.measured != l.train.bytes)
        good = !fprintf(stderr, "train: the measured peak is not the planned one\n");
    loop_free(&l);
    free(r.at);
    free(s.memory);
    free(s.more);
    return !good;
}
