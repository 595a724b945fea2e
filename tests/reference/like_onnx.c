/* A file's network trained for one step, for models.py: like_onnx MODEL.onnx --batch N --in FILE.f32 --labels FILE.i32
   [--lr X] [--policy NAME] [--logits FILE] [--trained-logits FILE] [--saved FILE.onnx]. Inputs and logits are in the
   file's layout. Prints a line of figures; 1, with the message, where the file is refused. */
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

int main(int count, char **words)
{
    if (count < 2) return refused("like_onnx MODEL.onnx --batch N --in FILE --labels FILE ...");
    const int batch = atoi(option(count, words, "--batch", "4"));
    const char *policy = option(count, words, "--policy", "keep_all"), *saved = option(count, words, "--saved", NULL),
               *logits_file = option(count, words, "--logits", NULL),
               *trained_file = option(count, words, "--trained-logits", NULL);
    gcp_arena files = arena_of(GCP_MB(900)), tapes = arena_of(GCP_MB(600)), plans = arena_of(GCP_MB(600));
    gcp_onnx model = gcp_onnx_open(&files, words[1]);
    if (model.error[0]) return refused(model.error);
    gcp_tape *net = gcp_tape_make(&tapes, .ops = model.ops);
    if (gcp_onnx_record(net, &model, .batch = batch, .frozen_norms = atoi(option(count, words, "--frozen-norms", "0")),
                        .report = gcp_file(stderr)))
        return refused(gcp_error(net));
    const gcp_tensor logits = gcp_keep(gcp_onnx_output(&model, 0)),
                     labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    const gcp_tensor loss = gcp_cross_entropy(logits, labels);
    int kind = 0;
    while (kind < POLICIES - 1 && strcmp(policy, policy_names[kind])) kind++;
    gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .arena = &plans);
    const int budget = policies[kind] == GCP_POLICY_BUDGET;
    size_t least = 0;
    if (budget) least = gcp_least_budget(loss, .optimizer = GCP_OPTIMIZER_SGD, .arena = &plans);
    gcp_plan plan =
        gcp_plan_make(loss, .policy = policies[kind], .budget = budget ? least + (all.bytes - least) / 4 : 0,
                      .optimizer = GCP_OPTIMIZER_SGD, .arena = &plans);
    gcp_plan see = gcp_plan_make(logits, .inference = 1, .policy = GCP_POLICY_KEEP_ALL, .arena = &plans);
    if (gcp_error(net)) return refused(gcp_error(net));
    const size_t room = gcp_plans_room(&plan, &see);
    void *memory = malloc(room);
    gcp_bind(&plan, memory, room);
    gcp_bind(&see, memory, room);
    if (!gcp_onnx_load(net, &model)) return refused(gcp_error(net));
    const gcp_tensor image = gcp_onnx_input(&model, 0);
    gcp_real *pixels = file_read(option(count, words, "--in", NULL), gcp_elements(image) * sizeof(float)),
             *out = malloc(gcp_elements(logits) * sizeof *out);
    int32_t *classes = file_read(option(count, words, "--labels", NULL), (size_t)batch * sizeof(int32_t));
    gcp_onnx_write(&see, &model, 0, pixels);
    gcp_forward(&see);
    gcp_read(&see, logits, out);
    if (logits_file) file_write(logits_file, out, gcp_elements(logits) * sizeof *out);
    gcp_onnx_write(&plan, &model, 0, pixels);
    gcp_write(&plan, labels, classes);
    const double value = gcp_step(&plan, .lr = atof(option(count, words, "--lr", "0.01")));
    gcp_read(&plan, logits, out);
    if (trained_file) file_write(trained_file, out, gcp_elements(logits) * sizeof *out);
    if (saved) gcp_onnx_save(net, &model, saved);
    const uint64_t hash = state_hash(net, &plan);
    const size_t more = plan.room + GCP_MB(1);
    void *scratch = malloc(more);
    const size_t measured = gcp_measure(&plan, scratch, more);
    if (gcp_error(net)) return refused(gcp_error(net));
    printf("ops %d least %zu keep_all %zu planned %zu measured %zu loss %.9g hash %016llx\n", all.instructions, least,
           all.bytes, plan.bytes, measured, value, (unsigned long long)hash);
    return 0;
}
