/* Rows of what a step does beside its ops; the table; the target. */

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

/* What an op without GCP_FLAG_BF16 made. */
static void gcpi_cuda_round_forward(const gcp_call *c)
{
    gcpi_cuda_fn2(c, GCPI_FN_ROUND, c->out[0], c->out[0], gcpi_no_view(), 0);
}

#define GCPI_CUDA_SEED GCPI_CUDA_ROW("seed", gcpi_cuda_seed_forward, NULL, NULL, 0)
#define GCPI_CUDA_NORM GCPI_CUDA_ROW_OF(norm, gcpi_cuda_norm_cost)
#define GCPI_CUDA_UPDATE GCPI_CUDA_ROW("update", gcpi_cuda_update_forward, NULL, NULL, GCP_FLAG_FUSED)
#define GCPI_CUDA_ROUND GCPI_CUDA_ROW("round", gcpi_cuda_round_forward, NULL, NULL, 0)
#define GCPI_CUDA_CUSTOM GCPI_CUDA_NO_ROW("custom")

/* The rows, by name: gcp.h puts them in order, and a missing one does not compile. Cards before sm_80 have no tensor
   cores for bfloat16. */
#define GCPI_CUDA_NEXT(NAME, name) GCPI_CUDA_##NAME,
#define GCPI_CUDA_ROWS                                                                                      \
    {                                                                                                       \
        GCP_OPS_WITH_ROOMS(GCPI_CUDA_NEXT) GCP_POINTWISE_OPS(GCPI_CUDA_POINTWISE) GCPI_CUDA_CUSTOM,         \
        GCPI_CUDA_APPLY, GCPI_CUDA_SEED, GCPI_CUDA_NORM, GCPI_CUDA_UPDATE, GCPI_CUDA_ROUND                  \
    }
#define GCPI_CUDA_HALVES GCP_FLAG_BF16
static const gcp_op gcpi_cuda_rows[GCP_ROW_COUNT] = GCPI_CUDA_ROWS;
#undef GCPI_CUDA_HALVES
#define GCPI_CUDA_HALVES 0
static const gcp_op gcpi_cuda_rows_before_80[GCP_ROW_COUNT] = GCPI_CUDA_ROWS;

GCPI_DEF const gcp_target *gcp_cuda(gcp_gpu *gpu)
{
    static const gcp_device device = { gcpi_gpu_copy,  gcpi_gpu_fill,    gcpi_gpu_play,    gcpi_gpu_forget,
                                       gcpi_gpu_timed, gcpi_gpu_trouble, gcpi_gpu_copy_rows, gcpi_gpu_behind,
                                       gcpi_gpu_holds };
    gcp_target *t = &gpu->target;
    memset(t, 0, sizeof *t);
    t->name = "cuda";
    t->kernels = gpu->halves ? gcpi_cuda_rows : gcpi_cuda_rows_before_80;
    t->device = &device;
    t->align = 256;
    t->row_align = GCPI_CUDA_ROW_ALIGN;
    t->flops_per_second = gpu->opts.math == GCP_TF32 ? 2e14 : 4e13;     /* of an H100's order; profiles replace them */
    t->bf16_flops_per_second = 4e14;
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
