/* Losses. Blocks, as many as the shape says, sum their share in double; one block adds them in order. */

static unsigned gcpi_loss_blocks(size_t units)
{
    return (unsigned)gcpi_least(GCPI_CUDA_LOSS_BLOCKS, (units + 255) / 256);
}

/* Sums of a block's 256 threads, in order of the threads; known to all of them. */
GCPI_DEVICE double gcpi_block_sum(double v)
{
    __shared__ double warps[8];
    v = gcpi_warp_sum(v);
    __syncthreads();
    if (threadIdx.x % 32 == 0) warps[threadIdx.x / 32] = v;
    __syncthreads();
    v = 0;
    for (int w = 0; w < 8; w++) v += warps[w];
    return v;
}

/* kind 0: mean of a; 1: mean of (a - b)^2; 2: sum of squares of a. */
__global__ void gcpi_reduce_kernel(gcp_view a, gcp_view b, int kind, size_t count, double *partial)
{
    double sum = 0;
    for (size_t i = gcpi_thread(); i < count; i += (size_t)gridDim.x * 256) {
        const gcpi_unit u = gcpi_unit_of<1>(i, (unsigned)a.shape.d[3]);
        double v = (double)gcpi_get(gcpi_at(a, u), 0);
        if (kind == 1) v -= (double)gcpi_get(gcpi_at(b, u), 0);
        sum += kind ? v * v : v;
    }
    sum = gcpi_block_sum(sum);
    if (threadIdx.x == 0) partial[blockIdx.x] = sum;
}
/* out = sum / count; into: added to *into instead (set where first). counts: how many, one a block, in place of
   count. */
__global__ void gcpi_finish_kernel(const double *partial, const double *counts, unsigned blocks, double count,
                                   float *out, double *into, int first)
{
    double sum = 0, n = 0;
    for (unsigned b = 0; b < blocks; b++) {
        sum += partial[b];
        if (counts) n += counts[b];
    }
    if (counts) count = n != 0 ? n : 1;
    if (out) *out = (float)(sum / count);
    if (into) *into = first ? sum : *into + sum;
}
/* The blocks' sums of a (and b), added up as gcpi_finish_kernel says. */
static void gcpi_reduce(gcp_view a, gcp_view b, int kind, double count, float *out, double *into, double *partial,
                        cudaStream_t stream)
{
    const size_t all = gcpi_count_of(a.shape);
    const unsigned blocks = gcpi_loss_blocks(all);
    GCP_LAUNCH(gcpi_reduce_kernel, blocks, 256, 0, stream, a, b, kind, all, partial);
    GCP_LAUNCH(gcpi_finish_kernel, 1, 1, 0, stream, (const double *)partial, (const double *)NULL, blocks, count, out,
               into, !a.accumulate);
}
void gcpi_cuda_mean(gcp_view a, gcp_view b, float *out, void *workspace, cudaStream_t stream)
{
    gcpi_reduce(a, b, b.data != NULL, (double)gcpi_count_of(a.shape), out, NULL, (double *)workspace, stream);
}
__global__ void gcpi_mse_back_kernel(gcp_view d, gcp_view a, gcp_view b, const float *dout, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const gcpi_unit u = gcpi_unit_of<1>(i, (unsigned)a.shape.d[3]);
    const float apart = gcpi_get(gcpi_at(a, u), 0) - gcpi_get(gcpi_at(b, u), 0);
    const float g = apart * (float)(2.0 * (double)*dout / (double)count);
    gcpi_store<1>(d, u, &g);
}
void gcpi_cuda_mse_back(gcp_view d, gcp_view a, gcp_view b, const float *dout, cudaStream_t stream)
{
    size_t count = gcpi_count_of(a.shape);
    GCPI_EACH(gcpi_mse_back_kernel, count, d, a, b, dout, count);
}
/* A warp's row: its largest value and the sum of exponentials above it. */
GCPI_DEVICE void gcpi_softmax(const gcpi_cuda_array &x, int width, double *top, double *sum)
{
    int lane = (int)(threadIdx.x % 32);
    float most = gcpi_get(x, 0);
    for (int i = lane; i < width; i += 32) most = fmaxf(most, gcpi_get(x, i));
    *top = (double)gcpi_warp_max(most);
    *sum = 0;
    for (int i = lane; i < width; i += 32) *sum += exp((double)gcpi_get(x, i) - *top);
    *sum = gcpi_warp_sum(*sum);
}
/* A pixel's label, or -1 where it does not count; 0 where targets are given. */
GCPI_DEVICE int gcpi_label(const gcpi_cuda_targets &t, size_t p, int width)
{
    if (!t.labels) return 0;
    return t.labels[p] >= 0 && t.labels[p] < width && t.labels[p] != t.ignore ? t.labels[p] : -1;
}
/* A pixel's target of class i, times the class's weight. */
GCPI_DEVICE double gcpi_target(const gcpi_cuda_targets &t, size_t p, int i, int label, int width)
{
    const double hit = t.labels ? (double)(i == label) : (double)gcpi_value(t.soft, p, i);
    return ((1 - t.smoothing) * hit + t.smoothing / width) * (t.classes ? (double)t.classes[i] : 1);
}
/* The pixel's share of what the loss is divided by. */
GCPI_DEVICE double gcpi_pixel_counts(const gcpi_cuda_targets &t, size_t p, int label)
{
    if (label < 0) return 0;
    return (t.samples ? (double)t.samples[p] : 1) * (t.classes && t.labels ? (double)t.classes[label] : 1);
}
/* A warp's row: the sums over classes of targets, and of targets times x. */
GCPI_DEVICE void gcpi_target_sums(const gcpi_cuda_targets &t, const gcpi_cuda_array &x, size_t p, int label, int width,
                                  double *weight, double *all)
{
    if (t.labels && t.smoothing == 0) {
        *weight = label < 0 ? 0 : t.classes ? (double)t.classes[label] : 1;
        *all = label < 0 ? 0 : *weight * (double)gcpi_get(x, label);
        return;
    }
    *weight = *all = 0;
    for (int i = (int)(threadIdx.x % 32); i < width; i += 32) {
        const double target = gcpi_target(t, p, i, label, width);
        *weight += target;
        *all += target * (double)gcpi_get(x, i);
    }
    *weight = gcpi_warp_sum(*weight);
    *all = gcpi_warp_sum(*all);
}
__global__ void gcpi_cross_entropy_kernel(gcp_view x, gcpi_cuda_targets t, size_t pixels, double *partial,
                                          double *counts)
{
    int width = x.shape.d[3], lane = (int)(threadIdx.x % 32);
    double loss = 0, counted = 0;
    for (size_t p = (size_t)blockIdx.x * 8 + threadIdx.x / 32; p < pixels; p += (size_t)gridDim.x * 8) {
        const gcpi_cuda_array row = gcpi_pixel_of(x, p);
        double top, sum, weight, all;
        int label = gcpi_label(t, p, width);
        if (label < 0) continue;
        gcpi_softmax(row, width, &top, &sum);
        gcpi_target_sums(t, row, p, label, width, &weight, &all);
        if (lane) continue;
        loss += (t.samples ? (double)t.samples[p] : 1) * (weight * (log(sum) + top) - all);
        counted += gcpi_pixel_counts(t, p, label);
    }
    loss = gcpi_block_sum(loss);
    counted = gcpi_block_sum(counted);
    if (threadIdx.x == 0) {
        partial[blockIdx.x] = loss;
        counts[blockIdx.x] = counted;
    }
}
void gcpi_cuda_cross_entropy(gcp_view x, const gcpi_cuda_targets *t, float *out, void *workspace, cudaStream_t stream)
{
    size_t pixels = gcpi_pixels_of(x.shape);
    unsigned blocks = gcpi_loss_blocks(pixels * 32);
    double *partial = (double *)workspace, *counts = partial + GCPI_CUDA_LOSS_BLOCKS;
    GCP_LAUNCH(gcpi_cross_entropy_kernel, blocks, 256, 0, stream, x, *t, pixels, partial, counts);
    GCP_LAUNCH(gcpi_finish_kernel, 1, 1, 0, stream, (const double *)partial, (const double *)counts, blocks, 1.0, out,
               (double *)NULL, 0);
}
__global__ void gcpi_count_pixels_kernel(gcpi_cuda_targets t, size_t pixels, int width, double *counted)
{
    double n = 0;
    for (size_t p = threadIdx.x; p < pixels; p += 256) n += gcpi_pixel_counts(t, p, gcpi_label(t, p, width));
    n = gcpi_block_sum(n);
    if (threadIdx.x == 0) *counted = n != 0 ? n : 1;
}
__global__ void gcpi_cross_entropy_back_kernel(gcp_view d, gcp_view x, gcpi_cuda_targets t, const float *dout,
                                               const double *counted, size_t pixels)
{
    size_t p = (size_t)blockIdx.x * 8 + threadIdx.x / 32;
    int width = x.shape.d[3];
    if (p >= pixels) return;
    const gcpi_cuda_array row = gcpi_pixel_of(x, p), to = gcpi_pixel_of(d, p);
    int label = gcpi_label(t, p, width);
    double share = (double)*dout / *counted * (t.samples ? (double)t.samples[p] : 1), top, sum, weight, all;
    gcpi_softmax(row, width, &top, &sum);
    gcpi_target_sums(t, row, p, label, width, &weight, &all);
    for (int i = (int)(threadIdx.x % 32); i < width; i += 32) {
        const double target = gcpi_target(t, p, i, label, width);
        const double x_i = (double)gcpi_get(row, i);
        gcpi_set(to, i, label < 0 ? 0 : (float)((weight * exp(x_i - top) / sum - target) * share), d.accumulate);
    }
}
void gcpi_cuda_cross_entropy_back(gcp_view d, gcp_view x, const gcpi_cuda_targets *t, const float *dout,
                                  void *workspace, cudaStream_t stream)
{
    size_t pixels = gcpi_pixels_of(x.shape);
    GCP_LAUNCH(gcpi_count_pixels_kernel, 1, 256, 0, stream, *t, pixels, x.shape.d[3], (double *)workspace);
    GCP_LAUNCH(gcpi_cross_entropy_back_kernel, gcpi_blocks(pixels, 8), 256, 0, stream, d, x, *t, dout,
               (const double *)workspace, pixels);
}
