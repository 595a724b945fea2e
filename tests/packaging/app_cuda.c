/* A user's program on a GPU: naming the target and letting gcp_bind allocate is all that changes. */
#define GCP_IMPLEMENTATION
#include <gcp.h>
#include <gcp_cuda.h>
#include <stdio.h>

static unsigned char tape_memory[GCP_KB(256)];

int main(void)
{
    gcp_gpu gpu = gcp_gpu_open(.math = GCP_TF32);
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)), loss = gcp_mean(gcp_sigmoid(gcp_linear(x, .out = 4)));
    gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .target = gcp_cuda(&gpu));
    if (!gpu.blas) { printf("no GPU: %s\n", gcp_error(net)); return gcp_error_code(net) == GCP_E_DEVICE ? 77 : 1; }
    gcp_bind(&plan, NULL, 0);
    gcp_write(&plan, x, (float[8]) { 1, 2, 3, 4, 5, 6, 7, 8 });
    printf("loss %g\n", gcp_step(&plan, .lr = 0.1));
    const char *error = gcp_error(net);
    if (error) fprintf(stderr, "%s\n", error);
    gcp_unbind(&plan);
    gcp_gpu_close(&gpu);
    return gcp_error(net) != NULL;
}
