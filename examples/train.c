/* train.c - trains a network on image files under a policy of your choice, and reports its memory.

       train --digits
       train --mnist IMAGES LABELS [TEST_IMAGES TEST_LABELS] --policy sqrt
       train --cifar data_batch_1.bin ... --test test_batch.bin --policy uniform --segments 4 --epochs 30

   --help says the rest. */
#include <errno.h>

#include "loop.h"

enum { MAX_FILES = 64 };
typedef enum task { NO_TASK, DIGITS, MNIST, CIFAR } task;

typedef struct options {
    task task;
    char *file[MAX_FILES], *test[MAX_FILES];
    int files, tests;
    gcp_policy policy;
    gcp_optimizer optimizer;
    int segments, checkpoints, replay, epochs, batch, steps, blocks;
    double lr;
    char *data, *device;
} options;

/* ---- Options ---------------------------------------------------------------------------------------------------*/

static int usage(FILE *f, int status)
{
    fputs("train - trains a network on image files and reports what memory it takes\n\n"
          "what (one of):\n"
          "  --digits                                        the 1,797 digits that come with gcp (297 of them to test "
          "on)\n"
          "  --mnist IMAGES LABELS [TEST_IMAGES TEST_LABELS] unpacked IDX files: MNIST, Fashion-MNIST\n"
          "  --cifar FILE... [--test FILE...]                CIFAR-10's binary version; pad-4 crops and mirroring\n"
          "without test files the training images are tested on\n\n"
          "memory:\n"
          "  --policy P       keep_all, segments, sqrt, recursive, cheap, uniform, checkpoints (default segments)\n"
          "  --segments S     of uniform (default 4)\n"
          "  --checkpoints K  of checkpoints (default 4); --replay 1: nothing is kept between them\n\n"
          "training:\n"
          "  --optimizer O    sgd (momentum 0.9), adam, adamw (default adam; sgd for CIFAR-10)\n"
          "  --lr X           learning rate (default 0.002; 0.1 with sgd), falling smoothly to 0\n"
          "  --epochs N (default 10)   --batch N (default 50)   --steps N at most in an epoch\n"
          "  --blocks N       residual blocks a stage for CIFAR-10 (default 3: 20 layers)\n"
          "  --data DIR       where the digits are\n"
          "  --device D       cpu (default) or cuda\n",
          f);
    return status;
}

static int whole(const char *name, const char *text, int least, int *value)
{
    char *end;
    errno = 0;
    long v = strtol(text, &end, 10);
    if (end != text && !*end && !errno && v >= least && v <= 1000000) { *value = (int)v; return 1; }
    fprintf(stderr, "train: %s: found '%s', expected a whole number from %d to 1000000\n", name, text, least);
    return 0;
}

static int rate(const char *text, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && !*end && *value > 0 && *value < 1e6) return 1;
    fprintf(stderr, "train: --lr: found '%s', expected a positive number\n", text);
    return 0;
}

/* The place of text in a list of words that ends with NULL. */
static int word(const char *name, const char *text, const char *const *list, int *value)
{
    for (*value = 0; list[*value]; ++*value) if (!strcmp(text, list[*value])) return 1;
    fprintf(stderr, "train: %s: found '%s', expected one of", name, text);
    for (int i = 0; list[i]; i++) fprintf(stderr, " %s", list[i]);
    fprintf(stderr, "\n");
    return 0;
}

static int named_policy(const char *text, gcp_policy *policy)
{
    static const char *const names[] = { "segments", "keep_all",  "uniform", "checkpoints",
                                         "sqrt",     "recursive", "cheap",   NULL };
    static const gcp_policy values[] = { GCP_POLICY_SEGMENTS,    GCP_POLICY_KEEP_ALL, GCP_POLICY_UNIFORM,
                                         GCP_POLICY_CHECKPOINTS, GCP_POLICY_SQRT,     GCP_POLICY_RECURSIVE,
                                         GCP_POLICY_CHEAP };
    int i;
    if (!word("--policy", text, names, &i)) return 0;
    *policy = values[i];
    return 1;
}

static int named_optimizer(const char *text, gcp_optimizer *optimizer)
{
    static const char *const names[] = { "sgd", "adam", "adamw", NULL };
    static const gcp_optimizer values[] = { GCP_OPTIMIZER_SGD, GCP_OPTIMIZER_ADAM, GCP_OPTIMIZER_ADAMW };
    int i;
    if (!word("--optimizer", text, names, &i)) return 0;
    *optimizer = values[i];
    return 1;
}

/* File names up to the next option; how many. */
static int file_names(char **argv, int count, char **to)
{
    int n = 0;
    while (n < count && n < MAX_FILES && strncmp(argv[n], "--", 2)) { to[n] = argv[n]; n++; }
    return n;
}

static int option(options *o, const char *name, char *value)
{
    if (!value) { fprintf(stderr, "train: '%s' needs a value, or is no option (--help)\n", name); return 0; }
    if (!strcmp(name, "--policy")) return named_policy(value, &o->policy);
    if (!strcmp(name, "--optimizer")) return named_optimizer(value, &o->optimizer);
    if (!strcmp(name, "--lr")) return rate(value, &o->lr);
    if (!strcmp(name, "--segments")) return whole(name, value, 1, &o->segments);
    if (!strcmp(name, "--checkpoints")) return whole(name, value, 0, &o->checkpoints);
    if (!strcmp(name, "--replay")) return whole(name, value, 0, &o->replay);
    if (!strcmp(name, "--epochs")) return whole(name, value, 1, &o->epochs);
    if (!strcmp(name, "--batch")) return whole(name, value, 1, &o->batch);
    if (!strcmp(name, "--steps")) return whole(name, value, 0, &o->steps);
    if (!strcmp(name, "--blocks")) return whole(name, value, 1, &o->blocks);
    if (!strcmp(name, "--data")) { o->data = value; return 1; }
    if (!strcmp(name, "--device")) { o->device = value; return 1; }
    fprintf(stderr, "train: '%s' is no option (--help)\n", name);
    return 0;
}

static int parse(options *o, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        if (!strcmp(argv[i], "--digits")) o->task = DIGITS;
        else if (!strcmp(argv[i], "--mnist")) {
            o->task = MNIST;
            i += o->files = file_names(argv + i + 1, argc - i - 1, o->file);
        } else if (!strcmp(argv[i], "--cifar")) {
            o->task = CIFAR;
            i += o->files = file_names(argv + i + 1, argc - i - 1, o->file);
        } else if (!strcmp(argv[i], "--test")) i += o->tests = file_names(argv + i + 1, argc - i - 1, o->test);
        else if (option(o, argv[i], i + 1 < argc ? argv[i + 1] : NULL)) i++;
        else return 0;
    }
    if (!o->task) return usage(stderr, 0);
    if (o->task == MNIST && o->files != 2 && o->files != 4)
        fprintf(stderr, "train: --mnist: found %d files, expected 2 or 4\n", o->files);
    else if (o->task == CIFAR && o->files < 1) fprintf(stderr, "train: --cifar: found no file\n");
    else if (o->tests && o->task != CIFAR) fprintf(stderr, "train: --test belongs to --cifar\n");
    else return 1;
    return 0;
}

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

/* ---- Training --------------------------------------------------------------------------------------------------*/

static network record(const options *o, gcp_tape *net, const gcp_dataset *d)
{
    if (o->task == DIGITS) return digits_cnn(net, o->batch);
    if (o->task == CIFAR) return cifar_resnet(net, o->batch, o->blocks);
    return mnist_cnn(net, o->batch, d->height, d->width, d->classes);
}

static int plan(const options *o, loop *l, const gcp_dataset *d)
{
    int sgd = o->optimizer == GCP_OPTIMIZER_SGD;
    l->ends = record(o, l->net, d);
    l->train = gcp_plan_make(l->ends.loss, .policy = o->policy,
                             .segments = o->policy == GCP_POLICY_UNIFORM ? o->segments : 0,
                             .checkpoints = o->policy == GCP_POLICY_CHECKPOINTS ? o->checkpoints : 0,
                             .replay = o->policy == GCP_POLICY_CHECKPOINTS && o->replay, .optimizer = o->optimizer,
                             .momentum = sgd ? 0.9 : 0,
                             .weight_decay = sgd                                   ? 1e-4
                                             : o->optimizer == GCP_OPTIMIZER_ADAMW ? 0.01
                                                                                   : 0,
                             .target = l->target);
    l->infer = gcp_plan_make(l->ends.logits, .inference = 1, .target = l->target);
    if (gcp_error(l->net)) return 0;
    gcp_layers_print(&l->train, gcp_file(stdout));
    printf("\n");
    gcp_why_print(&l->train, gcp_file(stdout));
    printf("\n");
    return loop_start(l, d);
}

/* From 1 to 0, flat at both ends. */
static double fall(double share) { return 1 - share * share * (3 - 2 * share); }

static int train(const options *o, loop *l, const samples *s)
{
    for (int epoch = 1; epoch <= o->epochs && !gcp_error(l->net); epoch++) {
        double ms;
        l->lr = o->lr * fall((epoch - 1.0) / o->epochs);
        double loss = loop_epoch(l, &s->train, epoch, o->steps, &ms), right = loop_accuracy(l, &s->test);
        if (epoch == 1) loop_measure(l);
        printf(
            "epoch %3d  loss %.4f  right on the %s %6.2f %%  %8.2f ms a step  peak planned %zu, measured %zu bytes\n",
            epoch, loss, s->test.images == s->train.images ? "training set" : "test set", right, ms, l->train.bytes,
            l->measured);
        fflush(stdout);
    }
    if (gcp_error(l->net)) return 0;
    printf("weights %016llx\n", (unsigned long long)loop_hash(l));
    return l->measured == l->train.bytes;
}

int main(int argc, char **argv)
{
    static unsigned char tape_memory[GCP_MB(64)];
    options o = { .epochs = 10, .batch = 50, .segments = 4, .checkpoints = 4, .blocks = 3 };
    samples s = { 0 };
    char data[] = GCP_EXAMPLE_DATA, cpu[] = "cpu";
    o.data = data;
    o.device = cpu;
    for (int i = 1; i < argc; i++) if (!strcmp(argv[i], "--help")) return usage(stdout, 0);
    if (!parse(&o, argc, argv)) return 2;
    if (!o.optimizer) o.optimizer = o.task == CIFAR ? GCP_OPTIMIZER_SGD : GCP_OPTIMIZER_ADAM;
    if (o.lr <= 0) o.lr = o.optimizer == GCP_OPTIMIZER_SGD ? 0.1 : 0.002;
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    loop l = { .net = gcp_tape_make(&arena, .ops = 8192, .seed = 1), .batch = o.batch };
    if (!device_open("train", o.device, &l.target)) return 2;
    if (o.task == CIFAR) l.change = (augment) { .shift = 4, .mirror = 1 };
    int good = load(&o, &s);
    if (good && !(good = plan(&o, &l, &s.train) && train(&o, &l, &s)))
        fprintf(stderr, "train: %s\n",
                gcp_error(l.net) ? gcp_error(l.net)
                : l.measured     ? "the measured peak is not the planned one"
                                 : "out of memory");
    loop_free(&l);
    free(s.memory);
    free(s.more);
    return !good;
}
