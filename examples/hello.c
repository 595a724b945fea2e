#include <stdio.h>
#define GCP_IMPLEMENTATION              /* in one file of a program */
#include "gcp.h"

static unsigned char tape_memory[GCP_MB(2)], step_memory[GCP_MB(64)];
static float images[16 * 32 * 32 * 3];
static int   labels[16];

int main(void)
{
    gcp_arena  arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape  *net   = gcp_tape_make(&arena, .ops = 128);

    /* record: shapes are checked here, nothing is computed */
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(16, 32, 32, 3));      /* batch, height, width, channels */
    gcp_tensor label = gcp_labels(net, "label", GCP_SHAPE(16));
    gcp_tensor x     = gcp_relu(gcp_conv2d(image, .out = 16, .k = 3, .pad = 1));
    for (int i = 0; i < 8; i++)
        GCP_SEGMENT(net, "residual") {                              /* residual[0], residual[1], ... */
            gcp_tensor y = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1)));
            x = gcp_relu(gcp_add(gcp_conv2d(y, .out = 16, .k = 3, .pad = 1), x));
        }
    gcp_tensor loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 10), label);

    /* plan: the peak is known before a byte is spent */
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    gcp_why_print(&plan, gcp_file(stdout));

    /* bind: the only memory that a step touches */
    gcp_bind(&plan, step_memory, sizeof step_memory);

    /* run: ten kinds of images, each of a colour of its own, with a pattern over it */
    for (int step = 0; step <= 30; step++) {
        for (int i = 0; i < 16; i++) labels[i] = (3 * i + step) % 10;
        for (int i = 0; i < 16 * 32 * 32 * 3; i++)
            images[i] = (float)(labels[i / 3072] * (i % 3 + 1) % 10) / 10 + (float)(i * 7 % 11) / 11;
        gcp_write(&plan, image, images);
        gcp_write(&plan, label, labels);
        double now = gcp_step(&plan, .lr = 0.01);
        if (step % 5 == 0) printf("step %d: loss %.4f\n", step, now);
    }
    if (gcp_error(net)) {
        fprintf(stderr, "%s\n", gcp_error(net));
        return 1;
    }
    return 0;
}
