/* gpt.c - a GPT that learns a text letter by letter, in as many bytes as you give it, and writes some as it learns.

       gpt [FILE] [--width 128] [--depth 4] [--tokens 128] [--batch 8] [--steps 300] [--every 100] [--budget 20MiB]
           [--store float|bf16] [--seed 1]

   --store bf16: activations and their gradients in two bytes, not four, as it learns and as it writes.
   Without a file it reads the first chapter of Alice's Adventures in Wonderland (Lewis Carroll, 1865). Letters are
   written by the same network with a batch of one, on a tape of its own: its weights are copied there. */
#define _POSIX_C_SOURCE 199309L          /* clock_gettime */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "gcp.h"
#include "networks.h"
#include "words.h"

enum { LETTERS = 256, HEAD = 32 };
typedef struct options {
    const char *file;
    int width, depth, tokens, batch, steps, every, seed;         /* seed: of weights and draws */
    size_t budget;
    gcp_store store;
} options;

/* A text as numbers from 0 on: letter[i] is what i stands for. */
typedef struct text { int *ids; size_t length; int letters; unsigned char letter[LETTERS]; } text;

/* A tape, the network on it, a plan and their memory. */
typedef struct model { gcp_arena arena; gcp_tape *net; network ends; gcp_plan plan; void *tape_memory, *memory; } model;

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
/* In [0, 1), the same in each run. */
static uint64_t drawn = 1;
static double chance(void)
{
    drawn = drawn * 6364136223846793005u + 1442695040888963407u;
    return (double)(drawn >> 11) / 9007199254740992.0;
}

static int text_read(text *t, const char *path)
{
    int number[LETTERS] = { 0 }, c;
    FILE *f = fopen(path, "rb");
    if (!f) { perror(path); return 0; }
    fseek(f, 0, SEEK_END);
    const long size = ftell(f);
    rewind(f);
    t->ids = malloc((size_t)(size > 0 ? size : 1) * sizeof *t->ids);
    t->length = 0; t->letters = 0;
    while (t->ids && (long)t->length < size && (c = getc(f)) != EOF) {
        if (!number[c]) { t->letter[t->letters] = (unsigned char)c; number[c] = ++t->letters; }
        t->ids[t->length++] = number[c] - 1;
    }
    fclose(f);
    return t->length > 0;
}

/* train 0: an inference plan for a batch of one. */
static int model_make(model *m, const options *o, int letters, int train)
{
    const size_t tape_bytes = GCP_MB(64);
    m->tape_memory = malloc(tape_bytes);
    m->arena = gcp_arena_from(m->tape_memory, m->tape_memory ? tape_bytes : 0);
    m->net = gcp_tape_make(&m->arena, .ops = 32 * (o->depth + 1), .seed = (uint64_t)o->seed);
    m->ends = gpt2(m->net, o->width, o->depth, o->width / HEAD, train ? o->batch : 1, o->tokens, letters);
    if (train)
        m->plan = gcp_plan_make(m->ends.loss, .policy = o->budget ? GCP_POLICY_BUDGET : GCP_POLICY_KEEP_ALL,
                                .budget = o->budget, .optimizer = GCP_OPTIMIZER_ADAMW, .weight_decay = 0.01,
                                .decays = "*/bias 0\n*/gamma 0\n*/beta 0", .clip_norm = 1, .store = o->store);
    else m->plan = gcp_plan_make(m->ends.logits, .inference = 1, .store = o->store);
    m->memory = malloc(m->plan.room + 1);
    if (!gcp_error(m->net)) gcp_bind(&m->plan, m->memory, m->memory ? m->plan.room : 0);
    if (gcp_error(m->net)) fprintf(stderr, "gpt: %s\n", gcp_error(m->net));
    return !gcp_error(m->net);
}
static void model_free(model *m)
{
    free(m->memory);
    free(m->tape_memory);
}

/* Weights go by their paths. */
static void weights_copy(model *to, model *from)
{
    gcp_tensor w;
    for (int i = 0; !gcp_is_nil(w = gcp_nth_parameter(from->net, i)); i++) {
        char path[256];
        float *values = malloc(gcp_elements(w) * sizeof *values);
        gcp_read(&from->plan, w, values);
        gcp_write(&to->plan, gcp_find(to->net, gcp_name(w, path, sizeof path)), values);
        free(values);
    }
}

/* A letter by its chance under the logits, sharpened a little. */
static int draw(const float *logits, int letters)
{
    double most = (double)logits[0], sum = 0;
    for (int i = 1; i < letters; i++) if ((double)logits[i] > most) most = (double)logits[i];
    for (int i = 0; i < letters; i++) sum += exp(((double)logits[i] - most) / 0.8);
    double rest = chance() * sum;
    for (int i = 0; i < letters; i++) if ((rest -= exp(((double)logits[i] - most) / 0.8)) < 0) return i;
    return letters - 1;
}
/* Writes `count` letters behind the beginning of the text. Row i of the logits is what follows letters 0 to i. */
static void write_some(model *writer, const text *t, int tokens, int count)
{
    const int begin = 16 < tokens ? 16 : tokens;
    int *ids = calloc((size_t)tokens, sizeof *ids), have = begin;
    float *logits = malloc((size_t)tokens * (size_t)t->letters * sizeof *logits);
    memcpy(ids, t->ids, (size_t)begin * sizeof *ids);
    printf("    ");
    for (int i = 0; i < begin; i++) putchar(t->letter[ids[i]]);
    for (int i = 0; i < count && !gcp_error(writer->net); i++) {
        gcp_write(&writer->plan, writer->ends.image, ids);
        gcp_forward(&writer->plan);
        gcp_read(&writer->plan, writer->ends.logits, logits);
        const int next = draw(logits + (have - 1) * t->letters, t->letters);
        putchar(t->letter[next]);
        if (t->letter[next] == '\n') printf("    ");
        if (have == tokens) memmove(ids, ids + 1, (size_t)(tokens - 1) * sizeof *ids), have--;
        ids[have++] = next;
    }
    printf("\n");
    free(ids);
    free(logits);
}

/* Places in the text, drawn anew: each letter's label is the next one. */
static double step(model *m, const options *o, const text *t, int number)
{
    const size_t count = (size_t)o->batch * (size_t)o->tokens;
    int *ids = malloc(2 * count * sizeof *ids), *next = ids + count;
    for (int b = 0; b < o->batch; b++) {
        const size_t first = (size_t)(chance() * (double)(t->length - (size_t)o->tokens));
        memcpy(ids + b * o->tokens, t->ids + first, (size_t)o->tokens * sizeof *ids);
        memcpy(next + b * o->tokens, t->ids + first + 1, (size_t)o->tokens * sizeof *ids);
    }
    gcp_write(&m->plan, m->ends.image, ids);
    gcp_write(&m->plan, m->ends.labels, next);
    free(ids);
    return gcp_step(&m->plan, .lr = gcp_rate_cosine(1e-3, (uint64_t)number, 20, (uint64_t)o->steps));
}
static int train(model *m, model *writer, const options *o, const text *t)
{
    double began = seconds(), sum = 0;
    for (int i = 0, since = 0; i < o->steps && !gcp_error(m->net); i++) {
        sum += step(m, o, t, i);
        since++;
        if ((i + 1) % o->every && i + 1 < o->steps) continue;
        printf("step %d: loss %.3f, %.0f letters a second\n", i + 1, sum / since,
               since * (double)(o->batch * o->tokens) / (seconds() - began));
        weights_copy(writer, m);
        write_some(writer, t, o->tokens, 200);
        fflush(stdout);
        began = seconds(); sum = since = 0;
    }
    if (gcp_error(m->net)) fprintf(stderr, "gpt: %s\n", gcp_error(m->net));
    return !gcp_error(m->net);
}

static int options_read(options *o, int argc, char **argv)
{
    const struct { const char *name; int *value; } numbers[] = {
        { "--width", &o->width }, { "--depth", &o->depth }, { "--tokens", &o->tokens },
        { "--batch", &o->batch }, { "--steps", &o->steps }, { "--every", &o->every }, { "--seed", &o->seed } };
    for (int i = 1; i < argc; i++) {
        int known = 0;
        for (size_t k = 0; i + 1 < argc && k < sizeof numbers / sizeof *numbers && !known; k++)
            known = !strcmp(argv[i], numbers[k].name) && whole_of(argv[i + 1], 1, 1 << 20, numbers[k].value);
        if (!known && i + 1 < argc && !strcmp(argv[i], "--budget")) known = (o->budget = bytes_of(argv[i + 1])) > 0;
        if (!known && i + 1 < argc && !strcmp(argv[i], "--store")) known = store_of(argv[i + 1], &o->store);
        if (known) i++;
        else if (argv[i][0] == '-') {
            fprintf(stderr, "gpt: %s%s%s: no option, or not a value that it takes\n", argv[i], i + 1 < argc ? " " : "",
                    i + 1 < argc ? argv[i + 1] : "");
            return 0;
        }
        else o->file = argv[i];
    }
    return o->width % HEAD == 0;
}

int main(int argc, char **argv)
{
    options o = { GCP_EXAMPLE_DATA "/alice.txt", 128, 4, 128, 8, 300, 100, 1, 0, GCP_STORE_REAL };
    text t = { .ids = NULL };
    model trained = { .net = NULL }, writer = { .net = NULL };
    if (!options_read(&o, argc, argv)) {
        fprintf(stderr, "gpt [FILE] [--width N, a multiple of %d] [--depth N] [--tokens N] [--batch N] [--steps N] "
                        "[--every N] [--budget BYTES, as 20MiB] [--store float|bf16] [--seed N]\n", HEAD);
        return 2;
    }
    drawn = (uint64_t)o.seed;
    if (!text_read(&t, o.file)) return 1;
    int ok = t.length > (size_t)o.tokens;
    if (!ok) fprintf(stderr, "gpt: %s has fewer letters than --tokens\n", o.file);
    ok = ok && model_make(&trained, &o, t.letters, 1) && model_make(&writer, &o, t.letters, 0);
    if (ok) {
        void *other = malloc(trained.plan.room);                 /* a step in memory that is watched */
        printf("%zu letters, %d of them different; %zu bytes planned, %zu measured (all kept: %zu)%s\n", t.length,
               t.letters, trained.plan.bytes, gcp_measure(&trained.plan, other, trained.plan.room),
               trained.plan.keep_all_bytes, store_said(o.store));
        free(other);
        ok = train(&trained, &writer, &o, &t);
    }
    model_free(&trained);
    model_free(&writer);
    free(t.ids);
    return !ok;
}
