/* Rows: pools, upsampling. */

static gcpi_cuda_conv gcpi_cuda_conv_of(const gcpi_conv_attr *a, const gcp_target *target, ptrdiff_t xpitch,
                                        ptrdiff_t ypitch)
{
    gcpi_cuda_conv c;
    c.n = a->n; c.h = a->h; c.w = a->w; c.ci = a->ci; c.ho = a->ho; c.wo = a->wo; c.co = a->co;
    c.kh = a->kh; c.kw = a->kw; c.sh = a->sh; c.sw = a->sw; c.pt = a->pt; c.pl = a->pl;
    c.dh = a->dh; c.dw = a->dw; c.groups = a->groups;
    c.xpitch = xpitch; c.ypitch = ypitch;
    c.tf32 = gcpi_gpu_of(target->context)->opts.math == GCP_TF32;
    return c;
}
static gcpi_cuda_conv gcpi_cuda_window(const gcp_call *c)
{
    return gcpi_cuda_conv_of(&gcpi_attr(c->attributes)->conv, c->target, 0, 0);
}
static void gcpi_cuda_max_pool_forward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    gcpi_cuda_max_pool(&w, c->in[0], c->out[0], gcpi_mask_of(c), 0, gcpi_stream(c));
}
static void gcpi_cuda_max_pool_backward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    if (c->din[0].data) gcpi_cuda_max_pool(&w, c->din[0], c->dout[0], gcpi_mask_of(c), 1, gcpi_stream(c));
}
static void gcpi_cuda_avg_pool_forward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    gcpi_cuda_avg_pool(&w, c->in[0], c->out[0], 0, gcpi_stream(c));
}
static void gcpi_cuda_avg_pool_backward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    if (c->din[0].data) gcpi_cuda_avg_pool(&w, c->din[0], c->dout[0], 1, gcpi_stream(c));
}
static void gcpi_cuda_upsampled(const gcp_call *c, gcp_view x, gcp_view y, int back)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_upsample(x, y, a->resize.factor, a->resize.mode == GCP_UPSAMPLING_BILINEAR, back, gcpi_stream(c));
}
static void gcpi_cuda_upsample_forward(const gcp_call *c)
{
    gcpi_cuda_upsampled(c, c->in[0], c->out[0], 0);
}
static void gcpi_cuda_upsample_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_cuda_upsampled(c, c->din[0], c->dout[0], 1);
}

#define GCPI_CUDA_MAX_POOL GCPI_CUDA_ROW_OF(max_pool, NULL)
#define GCPI_CUDA_AVG_POOL GCPI_CUDA_ROW_OF(avg_pool, NULL)
#define GCPI_CUDA_GLOBAL_AVG_POOL GCPI_CUDA_ROW_AS(global_avg_pool, avg_pool, NULL)
#define GCPI_CUDA_UPSAMPLE GCPI_CUDA_ROW_OF(upsample, NULL)
#define GCPI_CUDA_RESIZE GCPI_CUDA_NO_ROW("resize")
