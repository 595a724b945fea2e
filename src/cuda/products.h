/* Rows: matrix products and convolutions. cuBLAS reads columns first, so a row-major C = A B is asked for as
   C' = B' A'. */

static void gcpi_cuda_gemm(const gcp_call *c, int ta, int tb, size_t m, int n, size_t k, gcp_view a, gcp_view b,
                           gcp_view y)
{
    gcp_gpu *gpu = gcpi_gpu_in(c);
    const float one = 1, add = y.accumulate ? 1 : 0;
    if (m > INT32_MAX || k > INT32_MAX || a.pitch > INT32_MAX || b.pitch > INT32_MAX || y.pitch > INT32_MAX) {
        if (!gpu->message[0])
            snprintf(gpu->message, sizeof gpu->message, "a matrix product of %zu x %d x %zu is more than cuBLAS counts",
                     m, n, k);
        return;
    }
    cublasComputeType_t type = gpu->opts.math == GCP_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    if (!gcpi_blas_ok(gpu, cublasSetWorkspace(gpu->blas, c->workspace, gpu->opts.workspace), "cublasSetWorkspace"))
        return;
    gcpi_blas_ok(gpu,
                 cublasGemmEx(gpu->blas, tb ? CUBLAS_OP_T : CUBLAS_OP_N, ta ? CUBLAS_OP_T : CUBLAS_OP_N, n, (int)m,
                              (int)k, &one, b.data, CUDA_R_32F, (int)b.pitch, a.data, CUDA_R_32F, (int)a.pitch, &add,
                              y.data, CUDA_R_32F, (int)y.pitch, type, CUBLAS_GEMM_DEFAULT),
                 "cublasGemmEx");
}

/* y = x W' (tb) or x W over pixels, and its gradients; weights seen as a matrix of rows of `pitch`. */
static void gcpi_cuda_product_forward(const gcp_call *c, int tb, gcp_view w)
{
    gcpi_cuda_gemm(c, 0, tb, gcpi_pixels(c->in[0].shape), c->out[0].shape.d[3], (size_t)c->in[0].shape.d[3], c->in[0],
                   w, c->out[0]);
    if (c->inputs > 2) gcpi_cuda_add_bias(c, c->out[0], c->out[0], &c->in[2]);
}
static void gcpi_cuda_product_backward(const gcp_call *c, int tb, gcp_view w, gcp_view dw)
{
    size_t m = gcpi_pixels(c->in[0].shape);
    int k = c->in[0].shape.d[3], n = c->dout[0].shape.d[3];
    gcpi_cuda_bias_gradient(c, 2);
    if (c->din[0].data) gcpi_cuda_gemm(c, 0, !tb, m, k, (size_t)n, c->dout[0], w, c->din[0]);
    if (dw.data && tb) gcpi_cuda_gemm(c, 1, 0, (size_t)n, k, m, c->dout[0], c->in[0], dw);
    else if (dw.data)  gcpi_cuda_gemm(c, 1, 0, (size_t)k, n, m, c->in[0], c->dout[0], dw);
}
static void gcpi_cuda_linear_forward(const gcp_call *c) { gcpi_cuda_product_forward(c, 1, c->in[1]); }
static void gcpi_cuda_linear_backward(const gcp_call *c) { gcpi_cuda_product_backward(c, 1, c->in[1], c->din[1]); }
static void gcpi_cuda_matmul_forward(const gcp_call *c) { gcpi_cuda_product_forward(c, 0, c->in[1]); }
static void gcpi_cuda_matmul_backward(const gcp_call *c) { gcpi_cuda_product_backward(c, 0, c->in[1], c->din[1]); }

static size_t gcpi_cuda_product_bytes(const gcp_cost_call *c)
{
    size_t bytes = gcpi_gpu_of(c->target->context)->opts.workspace;
    return c->backward && c->wanted & 4 ? GCPI_MAX(bytes, gcpi_cuda_sums_workspace(c->out[0], 1)) : bytes;
}
static void gcpi_cuda_product_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    double one = 2.0 * (double)gcpi_pixels(c->in[0]) * c->in[0].d[3] * c->out[0].d[3];
    cost->flops = one * (c->backward ? (c->wanted & 1) + (c->wanted >> 1 & 1) : 1);
    cost->workspace = gcpi_cuda_product_bytes(c);
}

static void gcpi_cuda_batch_stats_summed(const gcp_call *c, int summed);     /* in sums.h */

/* ---- Rows: convolutions --------------------------------------------------------------------------------------
   1x1 with stride 1 is a matrix product over pixels; everything else goes to the kernels. A transposed convolution is
   the backward-data of the convolution from its output to its input. */

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
static int gcpi_cuda_is_product(const gcpi_conv_attr *a)
{
    return a->kh == 1 && a->kw == 1 && a->sh == 1 && a->sw == 1 && a->groups == 1 && a->h == a->ho && a->w == a->wo;
}
/* OHWI weights of a 1x1 kernel: a matrix of [out][in]. */
static gcp_view gcpi_cuda_matrix(gcp_view w) { w.pitch = w.shape.d[3]; return w; }

/* forward, data: which kernel passes stand behind the op's forward and its input's gradient. */
static void gcpi_cuda_conv_cost(const gcp_cost_call *c, gcp_cost *cost, int forward, int data)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_cuda_conv conv = gcpi_cuda_conv_of(a, c->target, a->ci, a->co);
    int product = gcpi_cuda_is_product(a);
    cost->flops = gcpi_conv_flops(a) * (c->backward ? (c->wanted & 1) + (c->wanted >> 1 & 1) : 1);
    if (product) cost->workspace = gcpi_cuda_product_bytes(c);
    if (!product && !c->backward) cost->workspace = gcpi_cuda_conv_workspace(&conv, forward);
    if (!product && c->backward && c->wanted & 1) cost->workspace = gcpi_cuda_conv_workspace(&conv, data);
    if (!product && c->backward && c->wanted & 2)
        cost->workspace = GCPI_MAX(cost->workspace, gcpi_cuda_conv_workspace(&conv, GCPI_CUDA_WEIGHTS));
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
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcp_call *next = c->fused;
    memset(end, 0, sizeof *end);
    end->slope = 1;
    if (!next || a->groups != 1 || gcpi_cuda_is_product(a)) return 0;
    if (next->row == GCP_OP_BATCH_STATS) end->partial = (double *)next->workspace;
    if (next->row == GCP_OP_BATCH_STATS) return next->training;
    end->other = next->in[next->in[1].data != c->out[0].data];       /* y + other, or other + y */
    if (next->attributes) end->slope = (float)gcpi_number(next);
    return !next->out[1].data;
}
static void gcpi_cuda_conv2d_forward(const gcp_call *c)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_cuda_conv conv = gcpi_cuda_conv_of(a, c->target, c->in[0].pitch, c->out[0].pitch);
    gcpi_cuda_end end;
    const int ends = gcpi_cuda_conv2d_end(c, &end);
    if (gcpi_cuda_is_product(a)) gcpi_cuda_product_forward(c, 1, gcpi_cuda_matrix(c->in[1]));
    else gcpi_cuda_conv_forward(&conv, (const float *)c->in[0].data, (const float *)c->in[1].data,
                                c->inputs > 2 ? (const float *)c->in[2].data : NULL, (float *)c->out[0].data, 0,
                                ends ? &end : NULL, gcpi_stream(c));
    if (c->fused && c->fused->row == GCP_OP_BATCH_STATS) gcpi_cuda_batch_stats_summed(c->fused, ends);
    else if (c->fused && !ends) gcpi_cuda_apply_forward(c->fused);
}
static void gcpi_cuda_conv2d_backward(const gcp_call *c)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const float *dy = (const float *)c->dout[0].data;
    if (gcpi_cuda_is_product(a)) {
        gcpi_cuda_product_backward(c, 1, gcpi_cuda_matrix(c->in[1]), gcpi_cuda_matrix(c->din[1]));
        return;
    }
    gcpi_cuda_bias_gradient(c, 2);
    gcpi_cuda_conv data = gcpi_cuda_conv_of(a, c->target, c->din[0].pitch, c->dout[0].pitch), weights = data;
    weights.xpitch = c->in[0].pitch;
    if (c->din[0].data)
        gcpi_cuda_conv_backward_data(&data, dy, (const float *)c->in[1].data, (float *)c->din[0].data,
                                     c->din[0].accumulate, c->workspace, gcpi_stream(c));
    if (c->din[1].data)
        gcpi_cuda_conv_backward_weights(&weights, (const float *)c->in[0].data, dy, (float *)c->din[1].data,
                                        c->din[1].accumulate, c->workspace, gcpi_stream(c));
}

static void gcpi_cuda_conv_transpose2d_forward(const gcp_call *c)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_cuda_conv conv = gcpi_cuda_conv_of(a, c->target, c->out[0].pitch, c->in[0].pitch);
    if (gcpi_cuda_is_product(a)) { gcpi_cuda_product_forward(c, 0, gcpi_cuda_matrix(c->in[1])); return; }
    gcpi_cuda_conv_backward_data(&conv, (const float *)c->in[0].data, (const float *)c->in[1].data,
                                 (float *)c->out[0].data, 0, c->workspace, gcpi_stream(c));
    if (c->inputs > 2) gcpi_cuda_add_bias(c, c->out[0], c->out[0], &c->in[2]);
}
static void gcpi_cuda_conv_transpose2d_backward(const gcp_call *c)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const float *dy = (const float *)c->dout[0].data;
    if (gcpi_cuda_is_product(a)) {
        gcpi_cuda_product_backward(c, 0, gcpi_cuda_matrix(c->in[1]), gcpi_cuda_matrix(c->din[1]));
        return;
    }
    gcpi_cuda_bias_gradient(c, 2);
    gcpi_cuda_conv data = gcpi_cuda_conv_of(a, c->target, c->dout[0].pitch, c->din[0].pitch), weights = data;
    weights.ypitch = c->in[0].pitch;
    if (c->din[0].data)
        gcpi_cuda_conv_forward(&data, dy, (const float *)c->in[1].data, NULL, (float *)c->din[0].data,
                               c->din[0].accumulate, NULL, gcpi_stream(c));
    if (c->din[1].data)
        gcpi_cuda_conv_backward_weights(&weights, dy, (const float *)c->in[0].data, (float *)c->din[1].data,
                                        c->din[1].accumulate, c->workspace, gcpi_stream(c));
}
