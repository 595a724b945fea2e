/* A network from a file as C that records it with gcp.h alone, to be read and changed, and its weights for gcp_load:
   onnx_to_c MODEL.onnx NETWORK.c WEIGHTS.safetensors [BATCH [SIZES]]. SIZES: "* 224", what the file leaves open. */
#include <stdio.h>
#include <stdlib.h>
#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"
#include "words.h"

static gcp_arena arena_of(size_t size) { return gcp_arena_from(malloc(size), size); }
static int wrong(const char *what, const char *why) { return fprintf(stderr, "onnx_to_c: %s: %s\n", what, why), 1; }

int main(int count, char **words)
{
    int batch = 1;
    if (count > 4 && !whole_of(words[4], 1, 1 << 20, &batch)) return wrong(words[4], "expected a batch of 1 or more");
    if (count < 4) return wrong("onnx_to_c MODEL.onnx NETWORK.c WEIGHTS.safetensors [BATCH [SIZES]]", "too few words");
    gcp_arena files = arena_of(GCP_MB(1024)), tapes = arena_of(GCP_MB(256));
    gcp_onnx model = gcp_onnx_open(&files, words[1]);
    if (model.error[0]) return wrong(words[1], model.error);
    gcp_tape *net = gcp_tape_make(&tapes, .ops = model.ops);
    gcp_onnx_record(net, &model, .batch = batch, .sizes = count > 5 ? words[5] : "* 224", .report = gcp_file(stderr));

    FILE *code = gcp_error(net) ? NULL : fopen(words[2], "w");
    if (code) gcp_onnx_print_c(net, &model, gcp_file(code));
    const int written = code && !fclose(code);
    if (!gcp_error(net) && !written) return wrong(words[2], "it cannot be written");

    const size_t bytes = gcp_state_bytes(net, GCP_OPTIMIZER_NONE) + 63;
    gcp_state_bind(net, malloc(bytes), bytes);
    gcp_onnx_load(net, &model);
    gcp_save(net, words[3]);
    if (gcp_error(net)) return wrong(words[1], gcp_error(net));
    printf("%s: record() of the network of %s; %s: its weights, for gcp_load\n", words[2], words[1], words[3]);
    return 0;
}
