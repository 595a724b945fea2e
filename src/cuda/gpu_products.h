/* Matrix products by cuBLAS. It reads columns first, so a row-major C = A B is asked for as C' = B' A'. */

/* A product's order of sums must not depend on the plan, which chooses addresses and pitches. So its algorithm is the
   one that cuBLAS's heuristic gives for dense matrices of this shape, and for the alignment that rows have in every
   plan (the target's row_align). It then runs with the pitches that there are. Rows that have no such alignment, as
   their channels are not by fours, go another way. */
enum { GCPI_CUDA_ROW_ALIGN = 16 };
/* A matrix by its rows: how many, how long, how far apart; of halves or floats. */
typedef struct gcpi_matrix { size_t rows, row; ptrdiff_t pitch; int half; } gcpi_matrix;

static int gcpi_gemm_layouts(gcp_gpu *gpu, const gcpi_matrix *x, int dense, cublasLtMatrixLayoutOpaque_t *l)
{
    int ok = 1;
    for (int i = 0; i < 3 && ok; i++)
        ok = gcpi_blas_ok(gpu, cublasLtMatrixLayoutInit(&l[i], x[i].half ? CUDA_R_16BF : CUDA_R_32F, x[i].row,
                                                        x[i].rows, dense ? (int64_t)x[i].row : (int64_t)x[i].pitch),
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
static int gcpi_gemm_describe(gcp_gpu *gpu, int transpose_a, int transpose_b, int halves, cublasLtMatmulDesc_t product)
{
    const int32_t ta = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int fast = !halves && gpu->opts.math == GCP_TF32;
    const cublasComputeType_t type = fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasStatus_t status = cublasLtMatmulDescInit(product, type, CUDA_R_32F);
    if (!status) status = cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    if (!status) status = cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulDescInit");
}

static void gcpi_cuda_gemm(const gcp_call *c, int ta, int tb, size_t m, size_t n, size_t k, gcp_view a, gcp_view b,
                           gcp_view y)
{
    gcp_gpu *gpu = gcpi_gpu_in(c);
    const int halves = a.dtype == GCP_DTYPE_BF16;
    const gcpi_matrix x[3] = { { tb ? n : k, tb ? k : n, b.pitch, halves }, { ta ? k : m, ta ? m : k, a.pitch, halves },
                               { m, n, y.pitch, y.dtype == GCP_DTYPE_BF16 } };
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
    if (!gcpi_gemm_describe(gpu, ta, tb, halves, &product) || !gcpi_gemm_choose(gpu, x, &product, &best) ||
        !gcpi_gemm_layouts(gpu, x, 0, l))
        return;
    gcpi_blas_ok(gpu,
                 cublasLtMatmul((cublasLtHandle_t)gpu->blas, &product, &one, b.data, &l[0], a.data, &l[1], &add, y.data,
                                &l[2], y.data, &l[2], &best.algo, c->workspace, gpu->opts.workspace, gcpi_stream(c)),
                 "cublasLtMatmul");
}

/* Weights as a product's other operand takes them: rounded where that is of halves, behind cuBLAS's workspace. */
static gcp_view gcpi_cuda_alike(const gcp_call *c, gcp_view w, gcp_view other)
{
    gcp_view rounded = w;
    if (other.dtype != GCP_DTYPE_BF16) return w;
    rounded.data = (unsigned char *)c->workspace + gcpi_round(gcpi_gpu_in(c)->opts.workspace, 256);
    rounded.dtype = GCP_DTYPE_BF16;
    rounded.pitch = w.shape.d[3];
    gcpi_cuda_copy(c, rounded, w);
    return rounded;
}
/* y = x W' (tb) or x W over pixels, and its gradients; weights seen as a matrix of rows of `pitch`. */
static void gcpi_cuda_product_forward(const gcp_call *c, int tb, gcp_view w)
{
    const int bias = c->inputs > 2, first = bias && c->out[0].dtype == GCP_DTYPE_BF16;
    gcp_view y = c->out[0];
    if (first) gcpi_cuda_add_bias(c, y, gcpi_no_view(), &c->in[2]);       /* so that the result is rounded once */
    y.accumulate = first;
    gcpi_cuda_gemm(c, 0, tb, gcpi_pixels(c->in[0].shape), (size_t)y.shape.d[3], (size_t)c->in[0].shape.d[3], c->in[0],
                   gcpi_cuda_alike(c, w, c->in[0]), y);
    if (bias && !first) gcpi_cuda_add_bias(c, y, y, &c->in[2]);
}
static void gcpi_cuda_product_data(const gcp_call *c, int tb, gcp_view w)
{
    gcpi_cuda_gemm(c, 0, !tb, gcpi_pixels(c->in[0].shape), (size_t)c->in[0].shape.d[3], (size_t)c->dout[0].shape.d[3],
                   c->dout[0], gcpi_cuda_alike(c, w, c->dout[0]), c->din[0]);
}
static void gcpi_cuda_product_weights(const gcp_call *c, int tb, gcp_view dw)
{
    const size_t m = gcpi_pixels(c->in[0].shape), k = (size_t)c->in[0].shape.d[3], n = (size_t)c->dout[0].shape.d[3];
    if (tb) gcpi_cuda_gemm(c, 1, 0, n, k, m, c->dout[0], c->in[0], dw);
    else    gcpi_cuda_gemm(c, 1, 0, k, n, m, c->in[0], c->dout[0], dw);
}
static size_t gcpi_cuda_product_bytes(const gcp_cost_call *c)
{
    const size_t bytes = gcpi_gpu_of(c->target->context)->opts.workspace;
    return c->store ? gcpi_round(bytes, 256) + gcpi_count(c->in[1]) * sizeof(uint16_t) : bytes;
}
