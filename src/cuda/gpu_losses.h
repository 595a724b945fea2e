/* Rows: embedding, losses. */

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
static gcpi_cuda_targets gcpi_cuda_targets_of(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_targets t;
    memset(&t, 0, sizeof t);
    if (a->labels.soft) t.soft = c->in[1];
    else t.labels = (const int *)c->in[1].data;
    t.ignore = a->labels.ignores ? a->labels.ignore : -1;
    t.smoothing = a->labels.smoothing;
    t.classes = (const float *)gcpi_loss_weights(c, a->labels.classes);
    t.samples = (const float *)gcpi_loss_weights(c, a->labels.samples);
    return t;
}
static void gcpi_cuda_cross_entropy_forward(const gcp_call *c)
{
    const gcpi_cuda_targets t = gcpi_cuda_targets_of(c);
    gcpi_cuda_cross_entropy(c->in[0], &t, (float *)c->out[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_cross_entropy_backward(const gcp_call *c)
{
    const gcpi_cuda_targets t = gcpi_cuda_targets_of(c);
    if (c->din[0].data)
        gcpi_cuda_cross_entropy_back(c->din[0], c->in[0], &t, (const float *)c->dout[0].data, c->workspace,
                                     gcpi_stream(c));
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

#define GCPI_CUDA_EMBEDDING GCPI_CUDA_ROW_OF(embedding, gcpi_cuda_embedding_cost)
#define GCPI_CUDA_CROSS_ENTROPY GCPI_CUDA_ROW_OF(cross_entropy, gcpi_cuda_loss_cost)
#define GCPI_CUDA_MSE GCPI_CUDA_ROW_OF(mse, gcpi_cuda_loss_cost)
#define GCPI_CUDA_MEAN GCPI_CUDA_ROW_OF(mean, gcpi_cuda_loss_cost)
