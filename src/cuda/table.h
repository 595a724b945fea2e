/* Rows of what a step does beside its ops; the table of all rows; the target. */

static void gcpi_cuda_seed_forward(const gcp_call *c)
{
    gcpi_cuda_fn2(c, GCPI_FN_FILL, c->out[0], gcpi_no_view(), gcpi_no_view(), *(const double *)c->attributes);
}
static void gcpi_cuda_norm_forward(const gcp_call *c) { gcpi_cuda_norm_add(c->in[0], c->workspace, gcpi_stream(c)); }
static void gcpi_cuda_norm_backward(const gcp_call *c)
{
    gcpi_cuda_norm_finish((gcp_step_numbers *)(uintptr_t)c->numbers, ((const gcp_plan_opts *)c->attributes)->clip_norm,
                          c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->workspace = GCPI_CUDA_LOSS_BYTES + sizeof(double);
}
static gcpi_cuda_parameter gcpi_cuda_parameter_of(const gcp_call *c)
{
    const gcpi_update_rates r = gcpi_update_rates_of(c);
    gcpi_cuda_parameter p = { (float *)c->out[0].data, (float *)c->out[1].data, (float *)c->out[2].data,
                              (const float *)c->in[0].data, gcpi_count(c->in[0].shape),
                              (const uint64_t *)c->in[1].data, r.decay, r.rate, 0, 0 };
    return p;
}
static void gcpi_cuda_update_forward(const gcp_call *c)
{
    const gcp_plan_opts *o = (const gcp_plan_opts *)c->attributes;
    const cudaStream_t stream = gcpi_stream(c);
    gcpi_cuda_update u;
    u.numbers = c->numbers;
    u.beta1 = o->beta1; u.beta2 = o->beta2; u.epsilon = o->epsilon; u.clip_value = o->clip_value;
    u.momentum = o->momentum; u.nesterov = o->nesterov; u.optimizer = (int)o->optimizer;
    for (u.count = 0; c && u.count < GCP_MAX_UPDATES; c = c->fused) u.at[u.count++] = gcpi_cuda_parameter_of(c);
    gcpi_cuda_step(&u, stream);
}

/* The rows, by name: GCP_OPS puts them in order, and a missing one does not compile. Shapes and reads are the CPU's:
   only what runs is another. */
#define GCPI_ROW(name, forward, backward, cost, flags) { name, NULL, forward, backward, cost, 0, 0, flags, 0, NULL }
#define GCPI_ROW_AS(name, as, cost) GCPI_ROW(#name, gcpi_cuda_##as##_forward, gcpi_cuda_##as##_backward, cost, 0)
#define GCPI_ROW_OF(name, cost) GCPI_ROW_AS(name, name, cost)
#define GCPI_CUDA_CONV2D           GCPI_ROW("conv2d", gcpi_cuda_conv2d_forward, gcpi_cuda_conv2d_backward, \
                                            gcpi_cuda_conv2d_cost, GCP_FLAG_FUSED)
#define GCPI_CUDA_CONV_TRANSPOSE2D GCPI_ROW_OF(conv_transpose2d, gcpi_cuda_conv_transpose2d_cost)
#define GCPI_CUDA_UPSAMPLE         GCPI_ROW_OF(upsample, NULL)
#define GCPI_CUDA_LINEAR           GCPI_ROW_OF(linear, gcpi_cuda_linear_cost)
#define GCPI_CUDA_MATMUL           GCPI_ROW_OF(matmul, gcpi_cuda_matmul_cost)
#define GCPI_CUDA_ADD              GCPI_ROW_OF(add, NULL)
#define GCPI_CUDA_MUL              GCPI_ROW_OF(mul, NULL)
#define GCPI_CUDA_BIAS             GCPI_ROW_OF(bias, gcpi_cuda_bias_cost)
#define GCPI_CUDA_RELU             GCPI_ROW_AS(relu, rectify, NULL)
#define GCPI_CUDA_LEAKY_RELU       GCPI_ROW_AS(leaky_relu, rectify, NULL)
#define GCPI_CUDA_MAX_POOL         GCPI_ROW_OF(max_pool, NULL)
#define GCPI_CUDA_AVG_POOL         GCPI_ROW_OF(avg_pool, NULL)
#define GCPI_CUDA_GLOBAL_AVG_POOL  GCPI_ROW_AS(global_avg_pool, avg_pool, NULL)
#define GCPI_CUDA_BATCH_STATS      GCPI_ROW("batch_stats", gcpi_cuda_batch_stats_forward, NULL, \
                                            gcpi_cuda_batch_stats_cost, 0)
#define GCPI_CUDA_BATCH_NORM       GCPI_ROW("batch_norm", gcpi_cuda_batch_norm_forward, gcpi_cuda_batch_norm_backward, \
                                            gcpi_cuda_batch_norm_cost, GCP_FLAG_FUSED)
#define GCPI_CUDA_LAYER_NORM       GCPI_ROW_OF(layer_norm, gcpi_cuda_layer_norm_cost)
#define GCPI_CUDA_DROPOUT          GCPI_ROW_OF(dropout, NULL)
#define GCPI_CUDA_CONCAT           GCPI_ROW_OF(concat, NULL)
#define GCPI_CUDA_SLICE            GCPI_ROW_OF(slice, NULL)
#define GCPI_CUDA_RESHAPE          GCPI_ROW_OF(reshape, NULL)
#define GCPI_CUDA_EMBEDDING        GCPI_ROW_OF(embedding, gcpi_cuda_embedding_cost)
#define GCPI_CUDA_CROSS_ENTROPY    GCPI_ROW_OF(cross_entropy, gcpi_cuda_loss_cost)
#define GCPI_CUDA_MSE              GCPI_ROW_OF(mse, gcpi_cuda_loss_cost)
#define GCPI_CUDA_MEAN             GCPI_ROW_OF(mean, gcpi_cuda_loss_cost)
#define GCPI_CUDA_CUSTOM           GCPI_ROW("custom", NULL, NULL, NULL, 0)
#define GCPI_CUDA_APPLY            GCPI_ROW("apply", gcpi_cuda_apply_forward, NULL, NULL, 0)
#define GCPI_CUDA_SEED             GCPI_ROW("seed", gcpi_cuda_seed_forward, NULL, NULL, 0)
#define GCPI_CUDA_NORM             GCPI_ROW_OF(norm, gcpi_cuda_norm_cost)
#define GCPI_CUDA_UPDATE           GCPI_ROW("update", gcpi_cuda_update_forward, NULL, NULL, GCP_FLAG_FUSED)
#define GCPI_CUDA_NEXT(NAME, name) GCPI_CUDA_##NAME,
#define GCPI_CUDA_POINTWISE(NAME, name) GCPI_ROW_OF(name, NULL),
static const gcp_op gcpi_cuda_rows[GCP_ROW_COUNT] = {
    GCP_OPS_WITH_ROOMS(GCPI_CUDA_NEXT) GCP_POINTWISE_OPS(GCPI_CUDA_POINTWISE) GCPI_CUDA_CUSTOM,
    GCPI_CUDA_APPLY, GCPI_CUDA_SEED, GCPI_CUDA_NORM, GCPI_CUDA_UPDATE
};
#undef GCPI_ROW
#undef GCPI_ROW_OF
#undef GCPI_ROW_AS

GCPI_DEF const gcp_target *gcp_cuda(gcp_gpu *gpu)
{
    static const gcp_device device = { gcpi_gpu_copy,  gcpi_gpu_fill,    gcpi_gpu_play,    gcpi_gpu_forget,
                                       gcpi_gpu_timed, gcpi_gpu_trouble, gcpi_gpu_copy_rows, gcpi_gpu_behind };
    gcp_target *t = &gpu->target;
    memset(t, 0, sizeof *t);
    t->name = "cuda";
    t->kernels = gcpi_cuda_rows;
    t->device = &device;
    t->align = 256;
    t->row_align = GCPI_CUDA_ROW_ALIGN;
    t->flops_per_second = gpu->opts.math == GCP_TF32 ? 2e14 : 4e13;     /* of an H100's order; profiles replace them */
    t->bytes_per_second = 3e12;
    t->far_bytes_per_second = 2.5e10;                                   /* PCIe 4.0, 16 lanes */
    t->context = gpu;
    t->allocate = gcpi_gpu_allocate;
    t->release = gcpi_gpu_release;
    t->copy_start = gcpi_gpu_copy_start;
    t->copy_wait = gcpi_gpu_copy_wait;
    t->far_allocate = gcpi_gpu_far_allocate;
    t->far_release = gcpi_gpu_far_release;
    return t;
}
