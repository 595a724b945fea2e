/* train_options.h - the command line of train.c. */
#ifndef TRAIN_OPTIONS_H
#define TRAIN_OPTIONS_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcp.h"
#include "words.h"

enum { MAX_FILES = 64 };
typedef enum task { NO_TASK, DIGITS, MNIST, CIFAR } task;
typedef enum schedule { COSINE, STEPS, CONSTANT } schedule;

typedef struct options {
    task task;
    char *file[MAX_FILES], *test[MAX_FILES];
    int files, tests;
    gcp_policy policy;
    gcp_optimizer optimizer;
    gcp_store store;
    schedule schedule;
    int segments, checkpoints, replay, epochs, batch, steps, blocks, warmup, patience, seed;
    size_t budget;
    double lr, average;
    char *data, *device, *resume, *save, *load, *freeze;
} options;

static int usage(void)
{
    fputs(
        "train - trains a network on image files and reports what memory it takes\n\n"
        "what (one of):\n"
        "  --digits                                        the 1,797 digits that come with gcp (297 of them to test "
        "on)\n"
        "  --mnist IMAGES LABELS [TEST_IMAGES TEST_LABELS] unpacked IDX files: MNIST, Fashion-MNIST\n"
        "  --cifar FILE... [--test FILE...]                CIFAR-10's binary version; pad-4 crops and mirroring\n"
        "without test files the training images are tested on\n\n"
        "memory:\n"
        "  --budget B       bytes of a step, weights and all: 200MiB, 1.5GiB, 123456; the fastest schedule that fits\n"
        "  --policy P       without a budget: keep_all, segments, sqrt, recursive, cheap, uniform, checkpoints\n"
        "                   (default segments)\n"
        "  --segments S     of uniform (default 4)\n"
        "  --checkpoints K  of checkpoints (default 4); --replay 1: nothing is kept between them\n"
        "  --store S        float (default), or bf16: activations and their gradients in two bytes, not four;\n"
        "                   a run goes on under either\n\n"
        "files:\n"
        "  --resume FILE    goes on with the run in FILE, if there is one, and saves it there after each epoch and\n"
        "                   when Ctrl-C ends it\n"
        "  --load FILE      begins with these weights (safetensors); what is not in the file keeps its own\n"
        "  --save FILE      the weights at the end\n\n"
        "training:\n"
        "  --freeze P       what does not train: paths, * for any text, [0-2] for an index: 'residual[0-2]*'; their\n"
        "                   batch-norms keep their statistics\n"
        "  --optimizer O    sgd (momentum 0.9), adam, adamw (default adam; sgd for CIFAR-10)\n"
        "  --lr X           learning rate (default 0.002; 0.1 with sgd)\n"
        "  --schedule S     cosine, to 0 at the end (default); steps, a tenth after each third; constant\n"
        "  --warmup N       epochs in which the rate rises (default 0)\n"
        "  --average D      tests and saves weights averaged over steps, of which each counts D times the next: 0.999\n"
        "  --patience N     ends after N epochs without a better result (default: never)\n"
        "  --epochs N (default 10)   --batch N (default 50)   --steps N at most in an epoch\n"
        "  --blocks N       residual blocks a stage for CIFAR-10 (default 3: 20 layers)\n"
        "  --seed N         of weights and draws (default 1)\n"
        "  --data DIR       where the digits are\n"
        "  --device D       cpu (default) or cuda\n",
        stdout);
    return 0;
}

static int whole(const char *name, const char *text, int least, int *value)
{
    if (whole_of(text, least, 1000000, value)) return 1;
    fprintf(stderr, "train: %s: found '%s', expected a whole number from %d to 1000000\n", name, text, least);
    return 0;
}

static int number(const char *name, const char *text, double below, double *value)
{
    char *end;
    *value = strtod(text, &end);
    if (end != text && !*end && *value > 0 && *value < below) return 1;
    fprintf(stderr, "train: %s: found '%s', expected a number between 0 and %g\n", name, text, below);
    return 0;
}

static int bytes(const char *name, const char *text, size_t *value)
{
    if ((*value = bytes_of(text)) > 0) return 1;
    fprintf(stderr, "train: %s: found '%s', expected bytes, as 200MiB\n", name, text);
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

static int named(options *o, const char *name, const char *text)
{
    static const char *const policies[] = { "segments", "keep_all",  "uniform", "checkpoints",
                                            "sqrt",     "recursive", "cheap",   NULL };
    static const gcp_policy policy[] = { GCP_POLICY_SEGMENTS, GCP_POLICY_KEEP_ALL,  GCP_POLICY_UNIFORM,
                                         GCP_POLICY_CHECKPOINTS, GCP_POLICY_SQRT, GCP_POLICY_RECURSIVE,
                                         GCP_POLICY_CHEAP };
    static const char *const optimizers[] = { "sgd", "adam", "adamw", NULL };
    static const gcp_optimizer optimizer[] = { GCP_OPTIMIZER_SGD, GCP_OPTIMIZER_ADAM, GCP_OPTIMIZER_ADAMW };
    static const char *const schedules[] = { "cosine", "steps", "constant", NULL };
    static const char *const stores[] = { "float", "bf16", NULL };
    int i;
    if (!strcmp(name, "--policy")) { if (!word(name, text, policies, &i)) return 0; o->policy = policy[i];
    } else if (!strcmp(name, "--optimizer")) {
        if (!word(name, text, optimizers, &i)) return 0;
        o->optimizer = optimizer[i];
    } else if (!strcmp(name, "--store")) {
        if (!word(name, text, stores, &i)) return 0;
        store_of(text, &o->store);
    } else if (!word(name, text, schedules, &i)) return 0;
    else o->schedule = (schedule)i;
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
    const struct { const char *name; int least, *to; } wholes[] = {
        { "--segments", 1, &o->segments }, { "--checkpoints", 0, &o->checkpoints }, { "--replay", 0, &o->replay },
        { "--epochs", 1, &o->epochs }, { "--batch", 1, &o->batch }, { "--steps", 0, &o->steps },
        { "--blocks", 1, &o->blocks }, { "--warmup", 0, &o->warmup }, { "--patience", 0, &o->patience },
        { "--seed", 0, &o->seed } };
    const struct { const char *name; char **to; } texts[] = {
        { "--data", &o->data }, { "--device", &o->device }, { "--resume", &o->resume }, { "--save", &o->save },
        { "--load", &o->load }, { "--freeze", &o->freeze } };
    if (!value) { fprintf(stderr, "train: '%s' needs a value, or is no option (--help)\n", name); return 0; }
    for (size_t i = 0; i < sizeof wholes / sizeof *wholes; i++)
        if (!strcmp(name, wholes[i].name)) return whole(name, value, wholes[i].least, wholes[i].to);
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        if (!strcmp(name, texts[i].name)) { *texts[i].to = value; return 1; }
    if (!strcmp(name, "--policy") || !strcmp(name, "--optimizer") || !strcmp(name, "--schedule") ||
        !strcmp(name, "--store"))
        return named(o, name, value);
    if (!strcmp(name, "--lr")) return number(name, value, 1e6, &o->lr);
    if (!strcmp(name, "--average")) return number(name, value, 1, &o->average);
    if (!strcmp(name, "--budget")) return bytes(name, value, &o->budget);
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
    if (!o->task) fprintf(stderr, "train: of what? --digits, --mnist FILES or --cifar FILES (--help)\n");
    else if (o->task == MNIST && o->files != 2 && o->files != 4)
        fprintf(stderr, "train: --mnist: found %d files, expected 2 or 4\n", o->files);
    else if (o->task == CIFAR && o->files < 1) fprintf(stderr, "train: --cifar: found no file\n");
    else if (o->tests && o->task != CIFAR) fprintf(stderr, "train: --test belongs to --cifar\n");
    else if (o->budget && o->policy) fprintf(stderr, "train: --budget chooses the schedule: leave out --policy\n");
    else return 1;
    return 0;
}
#endif
