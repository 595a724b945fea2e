/* data_parallel_nccl.c - data_parallel.c's idea on GPUs, one to a rank: mpirun -n 4 data_parallel_nccl [STEPS]. Each
   rank trains a small network on images of its own; rank 0 prints the mean loss. It compiles; it has not run yet. */
#include "nccl.h"

enum { BATCH = 64, PIXELS = 32 * 32 * 3 };

static void feed(gcp_plan *plan, gcp_tensor image, gcp_tensor label, int first)
{
    static float images[BATCH * PIXELS];
    static int labels[BATCH];
    for (int i = 0; i < BATCH; i++) labels[i] = (first + i) % 10;
    for (int i = 0; i < BATCH * PIXELS; i++) images[i] = (float)((i * 7 + labels[i / PIXELS] * 13) % 31) / 31;
    gcp_write(plan, image, images);
    gcp_write(plan, label, labels);
}

static gcp_tensor record(gcp_tape *net, gcp_tensor image, gcp_tensor label)
{
    gcp_tensor x = gcp_relu(gcp_conv2d(image, .out = 32, .k = 3, .pad = 1));
    for (int i = 0; i < 8; i++)
        GCP_SEGMENT(net, "residual") {
            gcp_tensor y = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 32, .k = 3, .pad = 1)));
            x = gcp_relu(gcp_add(gcp_conv2d(y, .out = 32, .k = 3, .pad = 1), x));
        }
    return gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 10), label);
}

static void train(workers *w, nccl_sums *s, gcp_gpu *gpu, int steps)
{
    static unsigned char tape_memory[GCP_MB(4)];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 128, .seed = 1);            /* the same weights on every rank */
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(BATCH, 32, 32, 3)),
               label = gcp_labels(net, "label", GCP_SHAPE(BATCH));
    gcp_plan plan = gcp_plan_make(record(net, image, label), .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9,
                                  .target = gcp_cuda(gpu), .on_gradient = nccl_on_gradient, .on_wait = nccl_on_wait,
                                  .hook_context = s);
    gcp_bind(&plan, NULL, 0);
    for (int i = 0; i < steps; i++) {
        feed(&plan, image, label, (i * w->ranks + w->rank) * BATCH);
        double loss = gcp_step(&plan, .lr = 0.05, .first_sample = (uint64_t)(w->rank * BATCH),
                               .share = 1.0 / w->ranks);
        if (gcp_error(net) || s->trouble) workers_stop(w, s->trouble ? s->trouble : gcp_error(net));
        workers_add(w, &loss, 1, MPI_DOUBLE, "the loss");
        if (w->rank == 0) printf("step %d: loss %.4f\n", i, loss / w->ranks);
    }
    gcp_plan_free(&plan);
}

int main(int argc, char **argv)
{
    workers w;
    nccl_sums s;
    MPI_Init(&argc, &argv);
    workers_begin(&w, MPI_COMM_WORLD, 60);
    int devices = 0;
    cudaGetDeviceCount(&devices);
    if (devices < 1) workers_stop(&w, "no GPU");
    cudaSetDevice(w.rank % devices);
    gcp_gpu gpu = gcp_gpu_open(.device = w.rank % devices);
    nccl_begin(&s, &w, &gpu);
    if (s.trouble) workers_stop(&w, s.trouble);
    train(&w, &s, &gpu, argc > 1 ? atoi(argv[1]) : 20);
    nccl_end(&s);
    gcp_gpu_close(&gpu);
    MPI_Finalize();
    return 0;
}
