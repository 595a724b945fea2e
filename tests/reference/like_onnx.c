/* A file's network trained for one step, for models.py: like_onnx MODEL.onnx --batch N --in FILE.f32 --labels FILE.i32
   [--lr X] [--policy NAME] [--logits FILE] [--trained-logits FILE] [--saved FILE.onnx]. Inputs and logits are in the
   file's layout. Prints a line of figures (without --in: of the plans alone); 1, with the message, where the file is
   refused. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"

enum { POLICIES = 5 };
static const char *const policy_names[POLICIES] = { "keep_all", "segments", "sqrt", "cheap", "budget" };
static const gcp_policy policies[POLICIES] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SEGMENTS, GCP_POLICY_SQRT,
                                               GCP_POLICY_CHEAP, GCP_POLICY_BUDGET };

static const char *option(int count, char **words, const char *name, const char *otherwise)
{
    for (int i = 2; i + 1 < count; i++)
        if (!strcmp(words[i], name)) return words[i + 1];
    return otherwise;
}
static void *file_read(const char *path, size_t size)
{
    FILE *f = path ? fopen(path, "rb") : NULL;
    void *data = calloc(1, size);
    if (!f || !data || fread(data, 1, size, f) != size) {
        fprintf(stderr, "%s: cannot be read\n", path ? path : "(none)");
        exit(2);
    }
    fclose(f);
    return data;
}
static void file_write(const char *path, const void *data, size_t size)
{
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(data, 1, size, f) != size || fclose(f)) {
        fprintf(stderr, "%s: cannot be written\n", path);
        exit(2);
    }
}
/* Files are of floats, whatever a gcp_real is. */
static gcp_real *reals_read(const char *path, size_t count)
{
    float *data = file_read(path, count * sizeof *data);
    gcp_real *reals = malloc(count * sizeof *reals);
    for (size_t i = 0; i < count; i++) reals[i] = (gcp_real)data[i];
    free(data);
    return reals;
}
static void reals_write(const char *path, const gcp_real *reals, size_t count)
{
    float *data = malloc(count * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = (float)reals[i];
    file_write(path, data, count * sizeof *data);
    free(data);
}
static gcp_arena arena_of(size_t size) { return gcp_arena_from(malloc(size), size); }

static int refused(const char *message)
{
    fprintf(stderr, "%s\n", message);
    return 1;
}
static uint64_t state_hash(gcp_tape *net, gcp_plan *plan)
{
    uint64_t hash = 14695981039346656037u;
    for (int kind = 0; kind < 2; kind++)
        for (int i = 0;; i++) {
            const gcp_tensor x = kind ? gcp_nth_statistic(net, i) : gcp_nth_parameter(net, i);
            if (gcp_is_nil(x)) break;
            unsigned char *data = malloc(gcp_elements(x) * sizeof(gcp_real));
            gcp_read(plan, x, (void *)data);
            for (size_t k = 0; k < gcp_elements(x) * sizeof(gcp_real); k++) hash = (hash ^ data[k]) * 1099511628211u;
            free(data);
        }
    return hash;
}

/* The words' file on a tape, with a loss and three plans: keep-all, the policy that is asked for, inference. */
typedef struct network {
    gcp_onnx model;
    gcp_tape *net;
    gcp_tensor logits, labels;
    gcp_plan all, plan, see;
    gcp_arena files, tapes, plans;
    size_t least;
} network;

static void network_plan(network *n, gcp_tensor loss, gcp_policy policy)
{
    const int budget = policy == GCP_POLICY_BUDGET;
    n->plans = arena_of(GCP_MB(600));
    n->all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .arena = &n->plans);
    if (budget) n->least = gcp_least_budget(loss, .optimizer = GCP_OPTIMIZER_SGD, .arena = &n->plans);
    n->plan = gcp_plan_make(loss, .policy = policy, .budget = budget ? n->least + (n->all.bytes - n->least) / 4 : 0,
                            .optimizer = GCP_OPTIMIZER_SGD, .arena = &n->plans);
    n->see = gcp_plan_make(n->logits, .inference = 1, .policy = GCP_POLICY_KEEP_ALL, .arena = &n->plans);
}
/* NULL, or why the file is refused. */
static const char *network_make(network *n, int count, char **words, int batch)
{
    const char *policy = option(count, words, "--policy", "keep_all");
    int kind = 0;
    while (kind < POLICIES - 1 && strcmp(policy, policy_names[kind])) kind++;
    n->files = arena_of(GCP_MB(900));
    n->tapes = arena_of(GCP_MB(600));
    n->model = gcp_onnx_open(&n->files, words[1]);
    if (n->model.error[0]) return n->model.error;
    n->net = gcp_tape_make(&n->tapes, .ops = n->model.ops);
    if (gcp_onnx_record(n->net, &n->model, .batch = batch,
                        .frozen_norms = atoi(option(count, words, "--frozen-norms", "0")), .report = gcp_file(stderr)))
        return gcp_error(n->net);
    n->logits = gcp_keep(gcp_onnx_output(&n->model, 0));
    n->labels = gcp_labels(n->net, "labels", GCP_SHAPE(batch));
    network_plan(n, gcp_cross_entropy(n->logits, n->labels), policies[kind]);
    if (gcp_error(n->net)) return gcp_error(n->net);
    const size_t room = gcp_plans_room(&n->plan, &n->see);
    void *memory = malloc(room);
    gcp_bind(&n->plan, memory, room);
    gcp_bind(&n->see, memory, room);
    return gcp_onnx_load(n->net, &n->model) ? NULL : gcp_error(n->net);
}
static void logits_write(network *n, gcp_plan *plan, const char *path)
{
    gcp_real *out = malloc(gcp_elements(n->logits) * sizeof *out);
    gcp_read(plan, n->logits, out);
    if (path) reals_write(path, out, gcp_elements(n->logits));
    free(out);
}

int main(int count, char **words)
{
    static network n;
    if (count < 2) return refused("like_onnx MODEL.onnx --batch N --in FILE --labels FILE ...");
    const int batch = atoi(option(count, words, "--batch", "4"));
    const char *wrong = network_make(&n, count, words, batch), *saved = option(count, words, "--saved", NULL);
    if (wrong) return refused(wrong);
    if (!option(count, words, "--in", NULL)) {
        printf("ops %d least %zu keep_all %zu\n", n.see.instructions, n.least, n.all.bytes);
        return 0;
    }
    const gcp_tensor image = gcp_onnx_input(&n.model, 0);
    gcp_real *pixels = reals_read(option(count, words, "--in", NULL), gcp_elements(image));
    int32_t *classes = file_read(option(count, words, "--labels", NULL), (size_t)batch * sizeof *classes);
    gcp_onnx_write(&n.see, &n.model, 0, pixels);
    gcp_forward(&n.see);
    logits_write(&n, &n.see, option(count, words, "--logits", NULL));
    gcp_onnx_write(&n.plan, &n.model, 0, pixels);
    gcp_write(&n.plan, n.labels, classes);
    const double loss = gcp_step(&n.plan, .lr = atof(option(count, words, "--lr", "0.01")));
    logits_write(&n, &n.plan, option(count, words, "--trained-logits", NULL));
    if (saved) gcp_onnx_save(n.net, &n.model, saved);
    const uint64_t hash = state_hash(n.net, &n.plan);
    const size_t more = n.plan.room + GCP_MB(1), measured = gcp_measure(&n.plan, malloc(more), more);
    if (gcp_error(n.net)) return refused(gcp_error(n.net));
    printf("ops %d least %zu keep_all %zu planned %zu measured %zu loss %.9g hash %016llx\n", n.see.instructions,
           n.least, n.all.bytes, n.plan.bytes, measured, loss, (unsigned long long)hash);
    return 0;
}
