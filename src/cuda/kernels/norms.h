/* Batch-norm and layer-norm. */

struct gcpi_stats_done {
    gcpi_cuda_stats s;
    double n;
    __device__ __forceinline__ void operator()(int c, const double *sum) const
    {
        const double mean = s.training ? sum[0] / n : (double)s.running_mean[c];
        const double spread = s.training ? sum[1] / n - mean * mean : (double)s.running_var[c];
        const double var = spread < 0 ? 0 : spread;                                     /* a NaN stays */
        s.mean[c] = (float)mean;
        s.scale[c] = (float)(1.0 / sqrt(var + s.epsilon));
        if (!s.training || !s.commit) return;
        s.running_mean[c] = (float)((1 - s.momentum) * (double)s.running_mean[c] + s.momentum * mean);
        s.running_var[c] = (float)((1 - s.momentum) * (double)s.running_var[c] +
                                   s.momentum * var * (n > 1 ? n / (n - 1) : 1));
    }
};
__global__ void gcpi_running_stats_kernel(gcpi_stats_done done, int channels)
{
    const int c = (int)gcpi_thread();
    if (c < channels) done(c, NULL);
}
/* A block sums GCPI_BM pixels, so that the convolution that makes them can. */
static size_t gcpi_stats_blocks(gcp_shape s) { return gcpi_sum_blocks_of(gcpi_pixels_of(s), GCPI_BM); }
size_t gcpi_cuda_stats_workspace(gcp_shape s)
{
    const size_t blocks = gcpi_stats_blocks(s);
    return (blocks + (blocks > GCPI_SUM_BLOCKS ? GCPI_SUM_BLOCKS : 0)) * (size_t)s.d[3] * 2 * sizeof(double);
}
void gcpi_cuda_batch_stats(gcp_view x, const gcpi_cuda_stats *s, int summed, void *workspace, cudaStream_t stream)
{
    gcpi_sum_of_x f = { x };
    gcpi_stats_done done = { *s, (double)gcpi_pixels_of(x.shape) };
    const int channels = x.shape.d[3];
    double *partial = (double *)workspace;
    if (!s->training) { GCPI_EACH(gcpi_running_stats_kernel, channels, done, channels); return; }
    if (!summed) gcpi_sum_blocks(f, gcpi_pixels_of(x.shape), channels, GCPI_BM, partial, stream);
    gcpi_sum_finish<2>(partial, gcpi_stats_blocks(x.shape), channels, done, stream);
}

/* The gradient of a batch-norm's output: g, or g through the rectifier behind it. Whether that one's x was inside is
   computed again, as in forward. settles: both are rounded, as they would be in memory. */
struct gcpi_norm_end { const float *gamma, *beta; gcpi_cuda_rectifier rectifier; bool settles; };
GCPI_DEVICE float gcpi_rectified_back(float g, float x, float mean, float scale, float gamma, float beta,
                                      const gcpi_cuda_rectifier &r, bool settles)
{
    const float y = gcpi_settled((x - mean) * (scale * gamma) + beta, settles);
    return gcpi_within(y, r) ? g : gcpi_settled(r.slope * g, settles);
}
template <bool RECTIFIED> struct gcpi_sum_of_norm {
    enum { SUMS = 2 };
    gcp_view x, dy;
    const float *mean, *scale;
    gcpi_norm_end r;
    __device__ __forceinline__ void add(double *s, size_t p, int c) const
    {
        float v = gcpi_value(x, p, c), g = gcpi_value(dy, p, c);
        if (RECTIFIED) g = gcpi_rectified_back(g, v, mean[c], scale[c], r.gamma[c], r.beta[c], r.rectifier, r.settles);
        s[0] += (double)(g * ((v - mean[c]) * scale[c]));
        s[1] += (double)g;
    }
};

/* dx = gamma s (dy - mean dy - xhat mean(dy xhat)): one pass over pixels, V channels a thread. means: mean(dy xhat) of
   all channels, then mean dy. */
struct gcpi_norm {
    gcp_view to, x, dy;
    const float *mean, *scale, *means;
    gcpi_norm_end r;
    gcpi_cut cut;
};
template <int V, bool RECTIFIED> __global__ void gcpi_batch_norm_back_kernel(gcpi_norm m)
{
    const size_t at = gcpi_thread();
    if (at >= m.cut.units) return;
    const gcpi_unit u = gcpi_unit_of<V>(at, m.cut.width);
    float x[V], dy[V], mean[V], scale[V], gamma[V], beta[V], mean_x[V], mean_dy[V];
    gcpi_load<V>(x, gcpi_at(m.x, u));
    gcpi_load<V>(dy, gcpi_at(m.dy, u));
    gcpi_load<V>(mean, m.mean + u.c);
    gcpi_load<V>(scale, m.scale + u.c);
    gcpi_load<V>(gamma, m.r.gamma + u.c);
    if (RECTIFIED) gcpi_load<V>(beta, m.r.beta + u.c);
    gcpi_load<V>(mean_x, m.means + u.c);
    gcpi_load<V>(mean_dy, m.means + m.cut.width * V + u.c);
    for (unsigned i = 0; i < V; i++) {
        float d = dy[i];
        if (RECTIFIED)
            d = gcpi_rectified_back(d, x[i], mean[i], scale[i], gamma[i], beta[i], m.r.rectifier, m.r.settles);
        float xhat = (x[i] - mean[i]) * scale[i];
        x[i] = gamma[i] * scale[i] * (d - mean_dy[i] - xhat * mean_x[i]);
    }
    gcpi_store<V>(m.to, u, x);
}
template <bool RECTIFIED> static void gcpi_norm_launch(gcpi_norm m, cudaStream_t stream)
{
    const bool aligned = gcpi_aligned(m.mean) && gcpi_aligned(m.scale) && gcpi_aligned(m.r.gamma) &&
                         gcpi_aligned(m.r.beta) && gcpi_aligned(m.means);
    m.cut = gcpi_cut_of(m.to, m.x, m.dy, false);
    if (m.cut.v == 4 && aligned) { GCPI_EACH((gcpi_batch_norm_back_kernel<4, RECTIFIED>), m.cut.units, m); return; }
    m.cut.units *= (size_t)m.cut.v;
    m.cut.width *= (unsigned)m.cut.v;
    GCPI_EACH((gcpi_batch_norm_back_kernel<1, RECTIFIED>), m.cut.units, m);
}
template <bool RECTIFIED> static void gcpi_norm_back(const gcp_call *c, const gcpi_cuda_rectifier &rectifier,
                                                     cudaStream_t stream)
{
    gcpi_norm m = {};
    m.to = c->din[0]; m.x = c->in[0]; m.dy = c->dout[0];
    m.mean = (const float *)c->in[1].data; m.scale = (const float *)c->in[2].data;
    m.r.gamma = (const float *)c->in[3].data; m.r.beta = RECTIFIED ? (const float *)c->in[4].data : NULL;
    m.r.rectifier = rectifier; m.r.settles = c->store == GCP_STORE_BF16;
    const int channels = m.x.shape.d[3];
    float *means = (float *)((char *)c->workspace + gcpi_cuda_sums_workspace(m.x.shape, 2)) - 4 * channels;
    m.means = means;         /* behind the sums */
    gcpi_sum_of_norm<RECTIFIED> f = { m.x, m.dy, m.mean, m.scale, m.r };
    gcpi_sums_done<2> done = { { c->din[3], c->din[4] }, means, (double)gcpi_pixels_of(m.x.shape), channels };
    if (c->training || c->din[3].data || c->din[4].data) gcpi_sums(f, m.x.shape, c->workspace, done, stream);
    /* not in training: statistics are constants */
    if (!c->training) cudaMemsetAsync(means, 0, 2 * sizeof(float) * (size_t)channels, stream);
    if (m.to.data) gcpi_norm_launch<RECTIFIED>(m, stream);
}
void gcpi_cuda_batch_norm_back(const gcp_call *c, const gcpi_cuda_rectifier *rectifier, cudaStream_t stream)
{
    if (c->fused) gcpi_norm_back<true>(c, *rectifier, stream);
    else gcpi_norm_back<false>(c, *rectifier, stream);
}

/* Layer-norm: a warp a pixel. */
struct gcpi_sum_of_layer  { enum { SUMS = 2 }; gcp_view x, dy; const float2 *moments;     /* a pixel's mean and scale */
    __device__ __forceinline__ void add(double *s, size_t p, int c) const
    {
        float v = gcpi_value(x, p, c), g = gcpi_value(dy, p, c);
        s[0] += (double)g * (((double)v - (double)moments[p].x) * (double)moments[p].y);
        s[1] += (double)g;
    }
};
/* rms: the mean counts as 0 */
GCPI_DEVICE void gcpi_moments(const gcpi_cuda_array &x, int width, double epsilon, int rms, double *mean, double *scale)
{
    int lane = (int)(threadIdx.x % 32);
    double sum = 0, square = 0;
    for (int i = lane; i < width; i += 32) sum += (double)gcpi_get(x, i);
    *mean = rms ? 0 : gcpi_warp_sum(sum) / width;
    for (int i = lane; i < width; i += 32) {
        const double d = (double)gcpi_get(x, i) - *mean;
        square += d * d;
    }
    *scale = 1.0 / sqrt(gcpi_warp_sum(square) / width + epsilon);
}
__global__ void gcpi_layer_norm_kernel(gcp_view y, gcp_view x, const float *gamma, const float *beta, double epsilon,
                                       int rms, size_t pixels)
{
    size_t p = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    if (p >= pixels) return;
    const gcpi_cuda_array from = gcpi_pixel_of(x, p), to = gcpi_pixel_of(y, p);
    double mean, scale;
    gcpi_moments(from, x.shape.d[3], epsilon, rms, &mean, &scale);
    for (int i = (int)(threadIdx.x % 32); i < x.shape.d[3]; i += 32)
        gcpi_set(to, i, (float)(((double)gcpi_get(from, i) - mean) * scale) * gamma[i] + (rms ? 0 : beta[i]));
}
__global__ void gcpi_layer_norm_back_kernel(gcp_view dx, gcp_view x, gcp_view dy, const float *gamma, double epsilon,
                                            int rms, float2 *moments, size_t pixels)
{
    size_t p = (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32;
    int lane = (int)(threadIdx.x % 32), width = x.shape.d[3];
    if (p >= pixels) return;
    const gcpi_cuda_array v = gcpi_pixel_of(x, p), g = gcpi_pixel_of(dy, p);
    double mean, scale, a = 0, b = 0;
    gcpi_moments(v, width, epsilon, rms, &mean, &scale);
    if (lane == 0) moments[p] = make_float2((float)mean, (float)scale);
    if (!dx.data) return;
    for (int i = lane; i < width; i += 32) {
        double t = (double)gcpi_get(g, i) * (double)gamma[i];
        a += t;
        b += t * ((double)gcpi_get(v, i) - mean) * scale;
    }
    a = rms ? 0 : gcpi_warp_sum(a);
    b = gcpi_warp_sum(b);
    const gcpi_cuda_array to = gcpi_pixel_of(dx, p);
    for (int i = lane; i < width; i += 32) {
        double xhat = ((double)gcpi_get(v, i) - mean) * scale;
        float d = (float)(scale * ((double)gcpi_get(g, i) * (double)gamma[i] - a / width - xhat * b / width));
        gcpi_set(to, i, d, dx.accumulate);
    }
}
size_t gcpi_cuda_layer_norm_workspace(gcp_shape shape)
{
    return gcpi_cuda_sums_workspace(shape, 2) + gcpi_pixels_of(shape) * sizeof(float2);
}
void gcpi_cuda_layer_norm(gcp_view y, gcp_view x, const float *gamma, const float *beta, double epsilon, int rms,
                          cudaStream_t stream)
{
    size_t pixels = gcpi_pixels_of(x.shape);
    GCP_LAUNCH(gcpi_layer_norm_kernel, gcpi_blocks(pixels, 8), 256, 0, stream, y, x, gamma, beta, epsilon, rms,
               pixels);
}
/* The sums of gamma's and beta's gradients read dy, which dx may overwrite: moments first, then sums, then dx. */
void gcpi_cuda_layer_norm_back(const gcp_call *c, double epsilon, int rms, cudaStream_t stream)
{
    gcp_view x = c->in[0], dy = c->dout[0], none = c->din[0];
    size_t pixels = gcpi_pixels_of(x.shape);
    float2 *moments = (float2 *)c->workspace;
    void *partial = (char *)c->workspace + pixels * sizeof(float2);
    const float *gamma = (const float *)c->in[1].data;
    gcp_view dbeta = none;
    none.data = dbeta.data = NULL;
    if (!rms) dbeta = c->din[2];
    if (c->din[1].data || dbeta.data) {
        GCP_LAUNCH(gcpi_layer_norm_back_kernel, gcpi_blocks(pixels, 8), 256, 0, stream, none, x, dy, gamma, epsilon,
                   rms, moments, pixels);
        gcpi_sum_of_layer f = { x, dy, moments };
        gcpi_sums_done<2> done = { { c->din[1], dbeta }, NULL, 0, 0 };
        gcpi_sums(f, x.shape, partial, done, stream);
    }
    if (c->din[0].data)
        GCP_LAUNCH(gcpi_layer_norm_back_kernel, gcpi_blocks(pixels, 8), 256, 0, stream, c->din[0], x, dy, gamma,
                   epsilon, rms, moments, pixels);
}
