/* Prints a network of support/printed.h as C: print_c NAME FILE. */
#include <stdio.h>
#include <string.h>
#include "support/printed.h"

static unsigned char tape_memory[1 << 24], file_memory[1 << 20];

int main(int argc, char **argv)
{
    gcp_arena tapes = gcp_arena_from(tape_memory, sizeof tape_memory),
              files = gcp_arena_from(file_memory, sizeof file_memory);
    gcp_tape *net = gcp_tape_make(&tapes, .ops = 512);
    FILE *out = argc > 2 ? fopen(argv[2], "w") : NULL;
    for (int i = 0; out && i < PRINTED_NETWORKS; i++) {
        const printed_network *p = &printed_networks[i];
        if (strcmp(p->name, argv[1])) continue;
        if (p->onnx) {
            gcp_onnx model = printed_open(&files, net, p->onnx);
            gcp_onnx_print_c(net, &model, gcp_file(out));
        } else {
            const gcp_tensor loss = p->record(net);
            gcp_print_c(&loss, 1, gcp_file(out));
        }
    }
    if (gcp_error(net)) fprintf(stderr, "%s\n", gcp_error(net));
    return gcp_error(net) || !out || fclose(out);
}
