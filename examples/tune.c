/* A network from a file, trained within so many bytes, and the same file again:
   tune MODEL.onnx TUNED.onnx MEBIBYTES [STEPS]. The images are made up; put yours in their place. */
#include <stdio.h>
#include <stdlib.h>
#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"

enum { BATCH = 8 };
static gcp_arena arena_of(size_t size) { return gcp_arena_from(malloc(size), size); }

int main(int count, char **words)
{
    if (count < 4) return fprintf(stderr, "tune MODEL.onnx TUNED.onnx MEBIBYTES [STEPS]\n"), 2;
    gcp_arena files = arena_of(GCP_MB(512)), tapes = arena_of(GCP_MB(256));
    gcp_onnx model = gcp_onnx_open(&files, words[1]);
    if (model.error[0]) return fprintf(stderr, "%s\n", model.error), 1;

    gcp_tape *net = gcp_tape_make(&tapes, .ops = model.ops);
    gcp_onnx_record(net, &model, .batch = BATCH, .report = gcp_file(stderr));
    gcp_tensor image = gcp_onnx_input(&model, 0), label = gcp_labels(net, "label", GCP_SHAPE(BATCH));
    gcp_tensor loss = gcp_cross_entropy(gcp_onnx_output(&model, 0), label);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(atof(words[3])),
                                  .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    if (gcp_error(net)) return fprintf(stderr, "%s\n", gcp_error(net)), 1;
    printf("%zu bytes; keep-all takes %zu\n", plan.bytes, plan.keep_all_bytes);

    gcp_bind(&plan, malloc(plan.room), plan.room);
    gcp_onnx_load(net, &model);
    gcp_real *images = malloc(gcp_elements(image) * sizeof *images);
    int32_t labels[BATCH];
    for (int step = 0; step < (count > 4 ? atoi(words[4]) : 10); step++) {
        for (int i = 0; i < BATCH; i++) labels[i] = (i + step) % 2;
        for (size_t i = 0, each = gcp_elements(image) / BATCH; i < gcp_elements(image); i++)
            images[i] = (gcp_real)((i * 7 + i / each) % 11) / 11 + (gcp_real)labels[i / each];
        gcp_write(&plan, image, images);
        gcp_write(&plan, label, labels);
        printf("step %d: loss %.4f\n", step, gcp_step(&plan, .lr = 0.01));
    }
    gcp_onnx_save(net, &model, words[2]);
    if (gcp_error(net)) return fprintf(stderr, "%s\n", gcp_error(net)), 1;
    return 0;
}
