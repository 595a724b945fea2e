/* gcp.h as declarations only, as strict C99, with the library linked: every kind of macro call once, and one step. */
#include "gcp.h"
#include <stdio.h>

static unsigned char tape_memory[GCP_KB(512)], step_memory[GCP_KB(512)];
static gcp_real image_data[2 * 4 * 4 * 2];
static int label_data[2];

int main(void)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 1);
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(2, 4, 4, 2)), label = gcp_labels(net, "label", GCP_SHAPE(2)),
               x = image;
    gcp_tensor scale = gcp_param(net, "scale", GCP_SHAPE(4), .init = GCP_INIT_ONES);
    GCP_SEGMENT(net, "block", .keep = GCP_KEEP_PRODUCTS | GCP_KEEP_PAIRS) {
        x = gcp_relu(gcp_bias(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1), scale));
        GCP_SEGMENT(net, "inner")
            x = gcp_concat(GCP_TENSORS(gcp_slice(x, .count = 2), gcp_tanh(gcp_slice(x, .first = 2, .count = 2))));
    }
    gcp_tensor loss = gcp_cross_entropy(gcp_linear(gcp_reshape(x, GCP_SHAPE(2, 64)), .out = 3), label);
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, image, image_data);
    gcp_write(&plan, label, label_data);
    double value = gcp_step(&plan, .lr = 0.1);
    const char *error = gcp_error(net);
    if (error) fprintf(stderr, "%s\n", error);
    return gcp_error(net) != NULL || !(value > 0);
}
