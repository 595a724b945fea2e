/* Rows: matrix products and convolutions. cuBLAS reads columns first, so a row-major C = A B is asked for as
   C' = B' A'. */

/* A product's order of sums must not depend on the plan, which chooses addresses and pitches. So its algorithm is the
   one that cuBLAS's heuristic gives for dense matrices of this shape, and for the alignment that rows have in every
   plan (the target's row_align). It then runs with the pitches that there are. Rows that have no such alignment, as
   their channels are not by fours, go another way. */
enum { GCPI_CUDA_ROW_ALIGN = 16 };
/* A matrix by its rows: how many, how long, how far apart. */
typedef struct gcpi_matrix { size_t rows, row; ptrdiff_t pitch; } gcpi_matrix;

static int gcpi_gemm_layouts(gcp_gpu *gpu, const gcpi_matrix *x, int dense, cublasLtMatrixLayoutOpaque_t *l)
{
    int ok = 1;
    for (int i = 0; i < 3 && ok; i++)
        ok = gcpi_blas_ok(gpu, cublasLtMatrixLayoutInit(&l[i], CUDA_R_32F, x[i].row, x[i].rows,
                                                        dense ? (int64_t)x[i].row : (int64_t)x[i].pitch),
                          "cublasLtMatrixLayoutInit");
    return ok;
}
/* What the heuristic is told besides. */
static int gcpi_gemm_wish(gcp_gpu *gpu, cublasLtMatmulPreference_t wish)
{
    static const cublasLtMatmulPreferenceAttributes_t of[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
    };
    const uint64_t room = gpu->opts.workspace;
    const uint32_t align = GCPI_CUDA_ROW_ALIGN;
    cublasStatus_t status = cublasLtMatmulPreferenceInit(wish);
    if (!status)
        status =
            cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    for (int i = 0; i < 4 && !status; i++)
        status = cublasLtMatmulPreferenceSetAttribute(wish, of[i], &align, sizeof align);
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulPreferenceSetAttribute");
}
static int gcpi_gemm_choose(gcp_gpu *gpu, const gcpi_matrix *x, cublasLtMatmulDesc_t product,
                            cublasLtMatmulHeuristicResult_t *best)
{
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatrixLayoutOpaque_t l[3];
    int found = 0;
    if (!gcpi_gemm_layouts(gpu, x, 1, l) || !gcpi_gemm_wish(gpu, &wish)) return 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)gpu->blas, product, &l[0], &l[1], &l[2],
                                                           &l[2], &wish, 1, best, &found);
    if (!status && !found) status = CUBLAS_STATUS_NOT_SUPPORTED;
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulAlgoGetHeuristic");
}
static int gcpi_gemm_describe(gcp_gpu *gpu, int transpose_a, int transpose_b, cublasLtMatmulDesc_t product)
{
    const int32_t ta = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    cublasComputeType_t type = gpu->opts.math == GCP_TF32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasStatus_t status = cublasLtMatmulDescInit(product, type, CUDA_R_32F);
    if (!status) status = cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    if (!status) status = cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulDescInit");
}

static void gcpi_cuda_gemm(const gcp_call *c, int ta, int tb, size_t m, size_t n, size_t k, gcp_view a, gcp_view b,
                           gcp_view y)
{
    gcp_gpu *gpu = gcpi_gpu_in(c);
    const gcpi_matrix x[3] = { { tb ? n : k, tb ? k : n, b.pitch }, { ta ? k : m, ta ? m : k, a.pitch },
                               { m, n, y.pitch } };
    const float one = 1, add = y.accumulate ? 1 : 0;
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t l[3];
    cublasLtMatmulHeuristicResult_t best;
    if (m > INT32_MAX || k > INT32_MAX || a.pitch > INT32_MAX || b.pitch > INT32_MAX || y.pitch > INT32_MAX) {
        if (!gpu->message[0])
            snprintf(gpu->message, sizeof gpu->message,
                     "a matrix product of %zu x %zu x %zu is more than cuBLAS counts", m, n, k);
        return;
    }
    if (!gcpi_gemm_describe(gpu, ta, tb, &product) || !gcpi_gemm_choose(gpu, x, &product, &best) ||
        !gcpi_gemm_layouts(gpu, x, 0, l))
        return;
    gcpi_blas_ok(gpu,
                 cublasLtMatmul((cublasLtHandle_t)gpu->blas, &product, &one, b.data, &l[0], a.data, &l[1], &add, y.data,
                                &l[2], y.data, &l[2], &best.algo, c->workspace, gpu->opts.workspace, gcpi_stream(c)),
                 "cublasLtMatmul");
}

/* y = x W' (tb) or x W over pixels, and its gradients; weights seen as a matrix of rows of `pitch`. */
static void gcpi_cuda_product_forward(const gcp_call *c, int tb, gcp_view w)
{
    gcpi_cuda_gemm(c, 0, tb, gcpi_pixels(c->in[0].shape), (size_t)c->out[0].shape.d[3], (size_t)c->in[0].shape.d[3],
                   c->in[0], w, c->out[0]);
    if (c->inputs > 2) gcpi_cuda_add_bias(c, c->out[0], c->out[0], &c->in[2]);
}
static void gcpi_cuda_product_backward(const gcp_call *c, int tb, gcp_view w, gcp_view dw)
{
    size_t m = gcpi_pixels(c->in[0].shape), k = (size_t)c->in[0].shape.d[3], n = (size_t)c->dout[0].shape.d[3];
    gcpi_cuda_bias_gradient(c, 2);
    if (c->din[0].data) gcpi_cuda_gemm(c, 0, !tb, m, k, n, c->dout[0], w, c->din[0]);
    if (dw.data && tb) gcpi_cuda_gemm(c, 1, 0, n, k, m, c->dout[0], c->in[0], dw);
    else if (dw.data)  gcpi_cuda_gemm(c, 1, 0, k, n, m, c->in[0], c->dout[0], dw);
}
static size_t gcpi_cuda_product_bytes(const gcp_cost_call *c)
{
    size_t bytes = gcpi_gpu_of(c->target->context)->opts.workspace;
    return c->backward && c->wanted & 4 ? GCPI_MAX(bytes, gcpi_cuda_sums_workspace(c->out[0], 1)) : bytes;
}
static void gcpi_cuda_batch_stats_summed(const gcp_call *c, int summed);     /* in sums.h */

/* ---- Rows: convolutions --------------------------------------------------------------------------------------
   1x1 with stride 1 is a matrix product over pixels, where channels are by fours; everything else goes to the kernels:
   their order of sums is the shape's, however rows are aligned. A transposed convolution is the backward-data of the
   convolution from its output to its input; a dense layer is a 1x1 convolution. */

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
    const int one = a->kh == 1 && a->kw == 1 && a->sh == 1 && a->sw == 1 && a->groups == 1;
    return one && a->h == a->ho && a->w == a->wo && a->ci % 4 == 0 && a->co % 4 == 0;
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
    if (next->attributes) end->slope = (float)gcpi_slope(next);
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

/* ---- Rows: dense layers, matrix products ---- */

/* A 1x1 convolution of x; of a matrix product, whose right side has a row to a channel of x, the transposed one. */
static gcpi_attributes gcpi_cuda_pointwise(const gcp_shape *x, int out, int transposed)
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
    const gcpi_attributes a = gcpi_cuda_pointwise(&c->in[0].shape, c->out[0].shape.d[3], transposed);
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
    const gcpi_attributes a = gcpi_cuda_pointwise(&c->in[0], c->out[0].d[3], transposed);
    gcp_cost_call conv = *c;
    conv.attributes = &a;
    (transposed ? gcpi_cuda_conv_transpose2d_cost : gcpi_cuda_conv2d_cost)(&conv, cost);
}
static void gcpi_cuda_linear_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_cuda_cost_as_conv(c, cost, 0); }
static void gcpi_cuda_matmul_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_cuda_cost_as_conv(c, cost, 1); }
