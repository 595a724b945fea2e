/* Rows: convolutions, dense layers, matrix products. 1x1 with stride 1 is a matrix product over pixels, where
   channels are by fours (in bfloat16 by eights); everything else goes to the kernels: their order of sums is the
   shape's, however rows are aligned. A transposed convolution is the backward-data of the convolution from its output
   to its input; a dense layer is a 1x1 convolution. */

static int gcpi_cuda_is_product(const gcpi_conv_attr *a, gcp_store store)
{
    const int one = a->kh == 1 && a->kw == 1 && a->sh == 1 && a->sw == 1 && a->groups == 1;
    return one && a->h == a->ho && a->w == a->wo && (a->ci | a->co) % (store ? 8 : 4) == 0;
}
/* What cuBLAS multiplies: floats to floats, or halves to any of both. */
static int gcpi_cuda_multiplies(const gcp_call *c, const gcp_view *from, const gcp_view *to)
{
    return gcpi_cuda_is_product(&gcpi_attr(c->attributes)->conv, c->store) &&
           (from->dtype == GCP_DTYPE_BF16 || to->dtype != GCP_DTYPE_BF16);
}
/* OHWI weights of a 1x1 kernel: a matrix of [out][in]. */
static gcp_view gcpi_cuda_matrix(gcp_view w) { w.pitch = w.shape.d[3]; return w; }

/* The sums of statistics, before the rounded weights that are still read while they are made. */
static size_t gcpi_cuda_stats_room(gcp_shape y) { return gcpi_round(gcpi_cuda_stats_workspace(y), 256); }
/* forward, data: which kernel passes stand behind the op's forward and its input's gradient. With halves some operands
   may be floats, so that a product takes either way. */
static void gcpi_cuda_conv_cost(const gcp_cost_call *c, gcp_cost *cost, int forward, int data)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_cuda_conv conv = gcpi_cuda_conv_of(a, c->target, a->ci, a->co);
    const int product = gcpi_cuda_is_product(a, c->store), kernels = !product || c->store;
    const int passes[] = { !c->backward, c->backward && c->wanted & 1, c->backward && c->wanted & 2 },
              pass[] = { forward, data, GCPI_CUDA_WEIGHTS };
    const size_t room = c->fused && c->store ? gcpi_cuda_stats_room(c->out[0]) : 0;
    const gcpi_conv plain = gcpi_conv_of(a, a->ci, a->co);
    cost->flops = gcpi_conv_flops(&plain) * (c->backward ? (c->wanted & 1) + (c->wanted >> 1 & 1) : 1);
    if (product) cost->workspace = gcpi_cuda_product_bytes(c);
    for (int k = 0; k < 3; k++)
        if (passes[k] && kernels)
            cost->workspace = GCPI_MAX(cost->workspace, room + gcpi_cuda_conv_workspace(&conv, pass[k], c->store));
    if (c->backward && c->wanted & 4)
        cost->workspace = GCPI_MAX(cost->workspace, gcpi_cuda_sums_workspace(c->out[0], 1));
}
static void gcpi_cuda_conv2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_cuda_conv_cost(c, cost, GCPI_CUDA_FORWARD, GCPI_CUDA_DATA);
}
static void gcpi_cuda_conv_transpose2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_cuda_conv_cost(c, cost, GCPI_CUDA_DATA, GCPI_CUDA_FORWARD);
}

/* What c->fused is to a convolution's results; 0: it runs after them. A mask's bytes may be what others still read. */
static int gcpi_cuda_conv2d_end(const gcp_call *c, gcpi_cuda_end *end)
{
    const gcp_call *next = c->fused;
    memset(end, 0, sizeof *end);
    if (!next || gcpi_attr(c->attributes)->conv.groups != 1 || gcpi_cuda_multiplies(c, &c->in[0], &c->out[0])) return 0;
    if (next->row == GCP_OP_BATCH_STATS) end->partial = (double *)next->workspace;
    if (next->row == GCP_OP_BATCH_STATS) return next->training;
    end->other = next->in[next->in[1].data != c->out[0].data];       /* y + other, or other + y */
    end->rectifier = gcpi_cuda_rectifier_of(next);
    return !next->out[1].data;
}
static const float *gcpi_cuda_bias_of(const gcp_call *c) { return c->inputs > 2 ? (const float *)c->in[2].data : NULL; }
static const float *gcpi_cuda_weights_of(const gcp_call *c) { return (const float *)c->in[1].data; }
static gcpi_cuda_conv gcpi_cuda_conv_between(const gcp_call *c, gcp_view x, gcp_view y)
{
    return gcpi_cuda_conv_of(&gcpi_attr(c->attributes)->conv, c->target, x.pitch, y.pitch);
}
static void gcpi_cuda_conv2d_forward(const gcp_call *c)
{
    const gcpi_cuda_conv conv = gcpi_cuda_conv_between(c, c->in[0], c->out[0]);
    gcpi_cuda_end end;
    const int ends = gcpi_cuda_conv2d_end(c, &end);
    unsigned char *workspace = (unsigned char *)c->workspace;
    if (ends && end.partial && c->store) workspace += gcpi_cuda_stats_room(c->out[0].shape);
    if (gcpi_cuda_multiplies(c, &c->in[0], &c->out[0])) gcpi_cuda_product_forward(c, 1, gcpi_cuda_matrix(c->in[1]));
    else gcpi_cuda_conv_forward(&conv, c->in[0], gcpi_cuda_weights_of(c), gcpi_cuda_bias_of(c), c->out[0],
                                ends ? &end : NULL, workspace, gcpi_stream(c));
    if (c->fused && c->fused->row == GCP_OP_BATCH_STATS) gcpi_cuda_batch_stats_summed(c->fused, ends);
    else if (c->fused && !ends) gcpi_cuda_apply_forward(c->fused);
}
/* Gradients. forward: of a convolution, else of a transposed one, whose input's gradient is made as forward. */
static void gcpi_cuda_conv_back(const gcp_call *c, int forward)
{
    const gcp_view dy = c->dout[0], dx = c->din[0], x = c->in[0];
    const gcpi_cuda_conv data = forward ? gcpi_cuda_conv_between(c, dx, dy) : gcpi_cuda_conv_between(c, dy, dx),
                         weights = forward ? gcpi_cuda_conv_between(c, x, dy) : gcpi_cuda_conv_between(c, dy, x);
    const gcp_view w = gcpi_cuda_matrix(c->in[1]);
    gcpi_cuda_bias_gradient(c, 2);
    if (dx.data && gcpi_cuda_multiplies(c, &dy, &dx)) gcpi_cuda_product_data(c, forward, w);
    else if (dx.data && forward)
        gcpi_cuda_conv_backward_data(&data, dy, gcpi_cuda_weights_of(c), NULL, dx, c->workspace, gcpi_stream(c));
    else if (dx.data)
        gcpi_cuda_conv_forward(&data, dy, gcpi_cuda_weights_of(c), NULL, dx, NULL, c->workspace, gcpi_stream(c));
    if (!c->din[1].data) return;
    if (x.dtype == dy.dtype && gcpi_cuda_multiplies(c, &x, &dy))
        gcpi_cuda_product_weights(c, forward, gcpi_cuda_matrix(c->din[1]));
    else
        gcpi_cuda_conv_backward_weights(&weights, forward ? x : dy, forward ? dy : x, c->din[1], c->workspace,
                                        gcpi_stream(c));
}
static void gcpi_cuda_conv2d_backward(const gcp_call *c) { gcpi_cuda_conv_back(c, 1); }

static void gcpi_cuda_conv_transpose2d_forward(const gcp_call *c)
{
    const gcpi_cuda_conv conv = gcpi_cuda_conv_between(c, c->out[0], c->in[0]);
    if (gcpi_cuda_multiplies(c, &c->in[0], &c->out[0])) gcpi_cuda_product_forward(c, 0, gcpi_cuda_matrix(c->in[1]));
    else gcpi_cuda_conv_backward_data(&conv, c->in[0], gcpi_cuda_weights_of(c), gcpi_cuda_bias_of(c), c->out[0],
                                      c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_conv_transpose2d_backward(const gcp_call *c) { gcpi_cuda_conv_back(c, 0); }

/* A 1x1 convolution of x; of a matrix product, whose right side has a row to a channel of x, the transposed one. */
static gcpi_attributes gcpi_cuda_one_by_one(const gcp_shape *x, int out, int transposed)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    a.conv.n = x->d[0];
    a.conv.h = a.conv.ho = x->d[1];
    a.conv.w = a.conv.wo = x->d[2];
    a.conv.ci = transposed ? out : x->d[3];
    a.conv.co = transposed ? x->d[3] : out;
    a.conv.kh = a.conv.kw = a.conv.sh = a.conv.sw = a.conv.dh = a.conv.dw = a.conv.groups = 1;
    return a;
}
static void gcpi_cuda_as_conv(const gcp_call *c, int transposed, void (*run)(const gcp_call *))
{
    const gcpi_attributes a = gcpi_cuda_one_by_one(&c->in[0].shape, c->out[0].shape.d[3], transposed);
    gcp_call conv = *c;
    conv.attributes = &a;
    run(&conv);
}
static void gcpi_cuda_linear_forward(const gcp_call *c) { gcpi_cuda_as_conv(c, 0, gcpi_cuda_conv2d_forward); }
static void gcpi_cuda_linear_backward(const gcp_call *c) { gcpi_cuda_as_conv(c, 0, gcpi_cuda_conv2d_backward); }
static void gcpi_cuda_matmul_forward(const gcp_call *c) { gcpi_cuda_as_conv(c, 1, gcpi_cuda_conv_transpose2d_forward); }
static void gcpi_cuda_matmul_backward(const gcp_call *c)
{
    gcpi_cuda_as_conv(c, 1, gcpi_cuda_conv_transpose2d_backward);
}
static void gcpi_cuda_cost_as_conv(const gcp_cost_call *c, gcp_cost *cost, int transposed)
{
    const gcpi_attributes a = gcpi_cuda_one_by_one(&c->in[0], c->out[0].d[3], transposed);
    gcp_cost_call conv = *c;
    conv.attributes = &a;
    (transposed ? gcpi_cuda_conv_transpose2d_cost : gcpi_cuda_conv2d_cost)(&conv, cost);
}
static void gcpi_cuda_linear_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_cuda_cost_as_conv(c, cost, 0); }
static void gcpi_cuda_matmul_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_cuda_cost_as_conv(c, cost, 1); }

#define GCPI_CUDA_CONV2D GCPI_CUDA_ROW("conv2d", gcpi_cuda_conv2d_forward, gcpi_cuda_conv2d_backward, \
                                       gcpi_cuda_conv2d_cost, GCP_FLAG_FUSED)
#define GCPI_CUDA_CONV_TRANSPOSE2D GCPI_CUDA_ROW_OF(conv_transpose2d, gcpi_cuda_conv_transpose2d_cost)
#define GCPI_CUDA_LINEAR GCPI_CUDA_ROW_OF(linear, gcpi_cuda_linear_cost)
#define GCPI_CUDA_MATMULS GCPI_CUDA_NO_ROW("matmul")
#define GCPI_CUDA_MATMUL GCPI_CUDA_ROW_OF(matmul, gcpi_cuda_matmul_cost)
