/* Rows that sum: windows, norms, embedding, losses. */

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
    gcpi_cuda_upsample(x, y, a->upsample.factor, a->upsample.mode == GCP_UPSAMPLING_BILINEAR, back, gcpi_stream(c));
}
static void gcpi_cuda_upsample_forward(const gcp_call *c)
{
    gcpi_cuda_upsampled(c, c->in[0], c->out[0], 0);
}
static void gcpi_cuda_upsample_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_cuda_upsampled(c, c->din[0], c->dout[0], 1);
}

/* ---- Rows: norms, embedding, losses --------------------------------------------------------------------------*/

static void gcpi_cuda_batch_stats_summed(const gcp_call *c, int summed)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_stats s = { (float *)c->out[0].data, (float *)c->out[1].data, (float *)c->in[1].data,
                          (float *)c->in[2].data, a->norm.epsilon, a->norm.momentum, c->training, c->commit };
    gcpi_cuda_batch_stats(c->in[0], &s, summed, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_batch_stats_forward(const gcp_call *c) { gcpi_cuda_batch_stats_summed(c, 0); }
static void gcpi_cuda_batch_stats_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = gcpi_cuda_stats_workspace(c->in[0]);
}
static void gcpi_cuda_batch_norm_forward(const gcp_call *c)
{
    gcpi_cuda_apply a = gcpi_cuda_applied(c, c->in + 1);
    gcpi_cuda_apply_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_batch_norm_backward(const gcp_call *c)
{
    gcpi_cuda_batch_norm_back(c, c->fused ? (float)gcpi_slope(c->fused) : 0, gcpi_stream(c));
}
static void gcpi_cuda_batch_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_sums_workspace(c->in[0], 2);
}
static void gcpi_cuda_layer_norm_forward(const gcp_call *c)
{
    gcpi_cuda_layer_norm(c->out[0], c->in[0], (const float *)c->in[1].data, (const float *)c->in[2].data,
                         gcpi_attr(c->attributes)->norm.epsilon, gcpi_stream(c));
}
static void gcpi_cuda_layer_norm_backward(const gcp_call *c)
{
    gcpi_cuda_layer_norm_back(c, gcpi_attr(c->attributes)->norm.epsilon, gcpi_stream(c));
}
static void gcpi_cuda_layer_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_layer_norm_workspace(c->in[0]);
}

static void gcpi_cuda_embedding_forward(const gcp_call *c)
{
    gcpi_cuda_embedding(c->out[0], c->in[0], c->in[1], gcpi_stream(c));
}
static void gcpi_cuda_embedding_backward(const gcp_call *c)
{
    if (c->din[1].data) gcpi_cuda_embedding_back(c->din[1], c->in[0], c->dout[0], c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_embedding_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_embedding_workspace(c->in[0]);
}

static void gcpi_cuda_loss_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->workspace = GCPI_CUDA_LOSS_BYTES;
}
static int gcpi_cuda_ignored(const gcp_call *c)
{
    return gcpi_attr(c->attributes)->labels.ignores ? gcpi_attr(c->attributes)->labels.ignore : -1;
}
static void gcpi_cuda_cross_entropy_forward(const gcp_call *c)
{
    gcpi_cuda_cross_entropy(c->in[0], c->in[1], gcpi_cuda_ignored(c), (float *)c->out[0].data, c->workspace,
                            gcpi_stream(c));
}
static void gcpi_cuda_cross_entropy_backward(const gcp_call *c)
{
    if (c->din[0].data)
        gcpi_cuda_cross_entropy_back(c->din[0], c->in[0], c->in[1], gcpi_cuda_ignored(c),
                                     (const float *)c->dout[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_mse_forward(const gcp_call *c)
{
    gcpi_cuda_mean(c->in[0], c->in[1], (float *)c->out[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_mse_backward(const gcp_call *c)
{
    for (int k = 0; k < 2; k++)
        if (c->din[k].data)
            gcpi_cuda_mse_back(c->din[k], c->in[k], c->in[1 - k], (const float *)c->dout[0].data, gcpi_stream(c));
}
static void gcpi_cuda_mean_forward(const gcp_call *c)
{
    gcpi_cuda_mean(c->in[0], gcpi_no_view(), (float *)c->out[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_mean_backward(const gcp_call *c)
{
    gcp_view dout = c->dout[0];
    if (c->din[0].data)
        gcpi_cuda_fn2(c, GCPI_FN_FILL_FROM, c->din[0], gcpi_no_view(), dout, 1.0 / (double)gcpi_count(c->din[0].shape));
}
