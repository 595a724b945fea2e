/* Group-norm: a block of 256 threads for a group of a sample's channels. */

/* What a block's loops go over: element e of the group is channel first + e % width of pixel begin + e / width. */
struct gcpi_grouping { size_t begin, count; int first, width; };
GCPI_DEVICE gcpi_grouping gcpi_grouping_of(const gcp_shape &s, int groups)
{
    gcpi_grouping g;
    const int sample = (int)blockIdx.x / groups, group = (int)blockIdx.x % groups;
    const size_t pixels = (size_t)s.d[1] * (size_t)s.d[2];
    g.width = s.d[3] / groups;
    g.first = group * g.width;
    g.begin = (size_t)sample * pixels;
    g.count = pixels * (size_t)g.width;
    return g;
}
GCPI_DEVICE ptrdiff_t gcpi_grouped_at(const gcpi_grouping &g, const gcp_view &v, size_t e)
{
    return (ptrdiff_t)(g.begin + e / (size_t)g.width) * v.pitch + g.first + (ptrdiff_t)(e % (size_t)g.width);
}
/* The group's mean and 1 / sqrt(variance + epsilon), known to all threads. */
GCPI_DEVICE void gcpi_block_moments(const gcpi_grouping &g, const gcp_view &x, double epsilon, double *mean,
                                    double *scale)
{
    const gcpi_cuda_array from = gcpi_at(x, 0);
    double sum = 0, square = 0;
    for (size_t e = threadIdx.x; e < g.count; e += 256) sum += (double)gcpi_get(from, gcpi_grouped_at(g, x, e));
    *mean = gcpi_block_sum(sum) / (double)g.count;
    for (size_t e = threadIdx.x; e < g.count; e += 256) {
        const double d = (double)gcpi_get(from, gcpi_grouped_at(g, x, e)) - *mean;
        square += d * d;
    }
    *scale = 1.0 / sqrt(gcpi_block_sum(square) / (double)g.count + epsilon);
}
/* y.data NULL: the moments alone. */
__global__ void gcpi_group_norm_kernel(gcp_view y, gcp_view x, const float *gamma, const float *beta, int groups,
                                       double epsilon, float2 *moments)
{
    const gcpi_grouping g = gcpi_grouping_of(x.shape, groups);
    const gcpi_cuda_array from = gcpi_at(x, 0);
    double mean, scale;
    gcpi_block_moments(g, x, epsilon, &mean, &scale);
    if (moments && threadIdx.x == 0) moments[blockIdx.x] = make_float2((float)mean, (float)scale);
    for (size_t e = threadIdx.x; y.data && e < g.count; e += 256) {
        const int c = g.first + (int)(e % (size_t)g.width);
        const float xhat = (float)(((double)gcpi_get(from, gcpi_grouped_at(g, x, e)) - mean) * scale);
        gcpi_set(gcpi_at(y, 0), gcpi_grouped_at(g, y, e), xhat * gamma[c] + beta[c]);
    }
}
/* The gradient of a value before gamma scales it. */
GCPI_DEVICE double gcpi_grouped_back(const gcpi_grouping &g, const gcpi_cuda_array &grad, const gcp_view &dy,
                                     const float *gamma, size_t e)
{
    const float scale = gamma[g.first + (int)(e % (size_t)g.width)];
    return (double)gcpi_get(grad, gcpi_grouped_at(g, dy, e)) * (double)scale;
}
__global__ void gcpi_group_norm_back_kernel(gcp_view dx, gcp_view x, gcp_view dy, const float *gamma, int groups,
                                            double epsilon)
{
    const gcpi_grouping g = gcpi_grouping_of(x.shape, groups);
    const gcpi_cuda_array from = gcpi_at(x, 0), grad = gcpi_at(dy, 0);
    double mean, scale, plain = 0, sum = 0;
    gcpi_block_moments(g, x, epsilon, &mean, &scale);
    for (size_t e = threadIdx.x; e < g.count; e += 256) {
        const double t = gcpi_grouped_back(g, grad, dy, gamma, e);
        plain += t;
        sum += t * ((double)gcpi_get(from, gcpi_grouped_at(g, x, e)) - mean) * scale;
    }
    plain = gcpi_block_sum(plain) / (double)g.count;
    sum = gcpi_block_sum(sum) / (double)g.count;
    for (size_t e = threadIdx.x; e < g.count; e += 256) {
        const double t = gcpi_grouped_back(g, grad, dy, gamma, e);
        const double xhat = ((double)gcpi_get(from, gcpi_grouped_at(g, x, e)) - mean) * scale;
        const float d = (float)(scale * (t - plain - xhat * sum));
        gcpi_set(gcpi_at(dx, 0), gcpi_grouped_at(g, dx, e), d, dx.accumulate);
    }
}
struct gcpi_sum_of_group {
    enum { SUMS = 2 };
    gcp_view x, dy;
    const float2 *moments;
    size_t pixels;                       /* of a sample */
    int groups, width;
    __device__ __forceinline__ void add(double *s, size_t p, int c) const
    {
        const float2 m = moments[p / pixels * (size_t)groups + (size_t)(c / width)];
        const double v = (double)gcpi_value(x, p, c), g = (double)gcpi_value(dy, p, c);
        s[0] += g * ((v - (double)m.x) * (double)m.y);
        s[1] += g;
    }
};

size_t gcpi_cuda_group_norm_workspace(gcp_shape shape, int groups)
{
    return gcpi_cuda_sums_workspace(shape, 2) + (size_t)shape.d[0] * (size_t)groups * sizeof(float2);
}
void gcpi_cuda_group_norm(const gcp_call *c, int groups, double epsilon, cudaStream_t stream)
{
    const unsigned blocks = (unsigned)(c->in[0].shape.d[0] * groups);
    GCP_LAUNCH(gcpi_group_norm_kernel, blocks, 256, 0, stream, c->out[0], c->in[0], (const float *)c->in[1].data,
               (const float *)c->in[2].data, groups, epsilon, (float2 *)NULL);
}
/* The sums of gamma's and beta's gradients read dy, which dx may overwrite: moments first, then sums, then dx. */
void gcpi_cuda_group_norm_back(const gcp_call *c, int groups, double epsilon, cudaStream_t stream)
{
    const gcp_view x = c->in[0], dy = c->dout[0];
    const unsigned blocks = (unsigned)(x.shape.d[0] * groups);
    const float *gamma = (const float *)c->in[1].data;
    float2 *moments = (float2 *)c->workspace;
    void *partial = (char *)c->workspace + (size_t)blocks * sizeof(float2);
    gcp_view none = dy;
    none.data = NULL;
    if (c->din[1].data || c->din[2].data) {
        GCP_LAUNCH(gcpi_group_norm_kernel, blocks, 256, 0, stream, none, x, gamma, gamma, groups, epsilon, moments);
        gcpi_sum_of_group f = { x, dy, moments, (size_t)x.shape.d[1] * (size_t)x.shape.d[2], groups,
                                x.shape.d[3] / groups };
        gcpi_sums_done<2> done = { { c->din[1], c->din[2] }, NULL, 0, 0 };
        gcpi_sums(f, x.shape, partial, done, stream);
    }
    if (c->din[0].data)
        GCP_LAUNCH(gcpi_group_norm_back_kernel, blocks, 256, 0, stream, c->din[0], x, dy, gamma, groups, epsilon);
}
