/* A user's program: the header is found, libm is linked, a step runs. */
#define GCP_IMPLEMENTATION
#include <gcp.h>
#include <gcp_io.h>
#include <stdio.h>

static unsigned char tape_memory[GCP_KB(256)], step_memory[GCP_KB(256)];

int main(void)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)), loss = gcp_mean(gcp_sigmoid(gcp_linear(x, .out = 4)));
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, x, (float[8]) { 1, 2, 3, 4, 5, 6, 7, 8 });
    printf("loss %g\n", gcp_step(&plan, .lr = 0.1));
    gcp_save(net, "app.safetensors");
    if (gcp_load(net, "app.safetensors") == 2) remove("app.safetensors");
    const char *error = gcp_error(net);
    if (error) fprintf(stderr, "%s\n", error);
    return gcp_error(net) != NULL;
}
