/* Rows: normalisation, softmax, attention. */

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
    const gcpi_cuda_rectifier r = gcpi_cuda_rectifier_of(c->fused);
    gcpi_cuda_batch_norm_back(c, &r, gcpi_stream(c));
}
static void gcpi_cuda_batch_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_sums_workspace(c->in[0], 2);
}
static void gcpi_cuda_softmax_forward(const gcp_call *c)
{
    gcpi_cuda_softmax(c->out[0], c->in[0], gcpi_attr(c->attributes)->softmax.logarithm, gcpi_stream(c));
}
static void gcpi_cuda_softmax_backward(const gcp_call *c)
{
    if (c->din[0].data)
        gcpi_cuda_softmax_back(c->din[0], c->out[0], c->dout[0], gcpi_attr(c->attributes)->softmax.logarithm,
                               gcpi_stream(c));
}
static gcpi_cuda_attention gcpi_cuda_attention_sizes(const void *attributes, const gcp_shape *in)
{
    gcpi_attributes plain = *gcpi_attr(attributes);
    gcpi_cuda_attention a;
    plain.attention.bias = 0;
    const gcpi_attention sizes = gcpi_attention_of(&plain, in);
    memset(&a, 0, sizeof a);
    a.n = sizes.n; a.rows = sizes.rows; a.keys = sizes.keys; a.heads = sizes.heads; a.group = sizes.group;
    a.d = sizes.d; a.e = sizes.e; a.causal = sizes.causal; a.scale = (float)sizes.scale;
    return a;
}
static gcpi_cuda_attention gcpi_cuda_attention_of(const gcp_call *c)
{
    const gcp_shape in[3] = { c->in[0].shape, c->in[1].shape, c->in[2].shape };
    const gcpi_attributes *attributes = gcpi_attr(c->attributes);
    const int bias = attributes->attention.bias, lengths = attributes->attention.lengths;
    gcpi_cuda_attention a = gcpi_cuda_attention_sizes(attributes, in);
    a.q = c->in[0]; a.k = c->in[1]; a.v = c->in[2]; a.y = c->out[0]; a.all = c->out[1];
    if (bias) a.bias = c->in[bias];
    if (lengths) a.lengths = (const int32_t *)c->in[lengths].data;
    a.workspace = c->workspace;
    return a;
}
static void gcpi_cuda_attention_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    const gcpi_cuda_attention a = gcpi_cuda_attention_sizes(c->attributes, c->in);
    if (c->store) cost->workspace = gcpi_cuda_attention_workspace(&a, c->backward);
}
static void gcpi_cuda_attention_forward(const gcp_call *c)
{
    const gcpi_cuda_attention a = gcpi_cuda_attention_of(c);
    gcpi_cuda_attention_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_attention_backward(const gcp_call *c)
{
    gcpi_cuda_attention a = gcpi_cuda_attention_of(c);
    const int bias = gcpi_attr(c->attributes)->attention.bias;
    a.dy = c->dout[0]; a.dq = c->din[0]; a.dk = c->din[1]; a.dv = c->din[2];
    if (bias) a.dbias = c->din[bias];
    gcpi_cuda_attention_back(&a, gcpi_stream(c));
}
static void gcpi_cuda_layer_norm_forward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_layer_norm(c->out[0], c->in[0], (const float *)c->in[1].data,
                         a->norm.rms ? NULL : (const float *)c->in[2].data, a->norm.epsilon, a->norm.rms,
                         gcpi_stream(c));
}
static void gcpi_cuda_layer_norm_backward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_layer_norm_back(c, a->norm.epsilon, a->norm.rms, gcpi_stream(c));
}
static void gcpi_cuda_group_norm_forward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_group_norm(c, a->norm.groups, a->norm.epsilon, gcpi_stream(c));
}
static void gcpi_cuda_group_norm_backward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_group_norm_back(c, a->norm.groups, a->norm.epsilon, gcpi_stream(c));
}
static void gcpi_cuda_group_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (!c->backward) return;
    cost->workspace = gcpi_cuda_group_norm_workspace(c->in[0], gcpi_attr(c->attributes)->norm.groups);
}
static void gcpi_cuda_layer_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_layer_norm_workspace(c->in[0]);
}

#define GCPI_CUDA_GROUP_NORM GCPI_CUDA_ROW_OF(group_norm, gcpi_cuda_group_norm_cost)
#define GCPI_CUDA_BATCH_STATS GCPI_CUDA_ROW("batch_stats", gcpi_cuda_batch_stats_forward, NULL, \
                                            gcpi_cuda_batch_stats_cost, 0)
#define GCPI_CUDA_BATCH_NORM GCPI_CUDA_ROW("batch_norm", gcpi_cuda_batch_norm_forward, gcpi_cuda_batch_norm_backward, \
                                           gcpi_cuda_batch_norm_cost, GCP_FLAG_FUSED)
#define GCPI_CUDA_LAYER_NORM GCPI_CUDA_ROW_OF(layer_norm, gcpi_cuda_layer_norm_cost)
#define GCPI_CUDA_SOFTMAX GCPI_CUDA_ROW_OF(softmax, NULL)
#define GCPI_CUDA_ATTENTION GCPI_CUDA_ROW_OF(attention, gcpi_cuda_attention_cost)
