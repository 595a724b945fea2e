/* Ops of two operands, of which one may be spread over the other. A thread an element. */

template <int LOOP> GCPI_DEVICE float gcpi_pair_value(float x, float y, float z, float p)
{
    (void)y; (void)z; (void)p;
#define GCPI_PAIR_CASE(NAME, name, value) if (LOOP == GCPI_LOOP_##NAME) return value;
    GCPI_PAIR_LOOPS(GCPI_PAIR_CASE)
#undef GCPI_PAIR_CASE
    return 0;
}
/* The element of a view at a place of the result: a size of 1 is spread. */
GCPI_DEVICE float gcpi_spread(const gcp_view &v, const int *at)
{
    ptrdiff_t pixel = 0;
    if (!v.data) return 0;
    for (int k = 0; k < 3; k++) pixel = pixel * v.shape.d[k] + (v.shape.d[k] > 1 ? at[k] : 0);
    return gcpi_get(gcpi_at(v, pixel * v.pitch), v.shape.d[3] > 1 ? at[3] : 0);
}

struct gcpi_pair_map { gcp_view to, x, y, z; size_t count; float p; };
template <int LOOP> __global__ void gcpi_pair_kernel(gcpi_pair_map m)
{
    size_t i = gcpi_thread();
    int at[4];
    if (i >= m.count) return;
    for (int k = 3; k >= 0; k--) { at[k] = (int)(i % (size_t)m.to.shape.d[k]); i /= (size_t)m.to.shape.d[k]; }
    const ptrdiff_t pixel = ((ptrdiff_t)at[0] * m.to.shape.d[1] + at[1]) * m.to.shape.d[2] + at[2];
    const float value = gcpi_pair_value<LOOP>(gcpi_spread(m.x, at), gcpi_spread(m.y, at), gcpi_spread(m.z, at), m.p);
    gcpi_set(gcpi_at(m.to, pixel * m.to.pitch), at[3], value, m.to.accumulate);
}

/* The gradient of an operand that is spread, as sums over pixels: its elements are the channels, and what is summed for
   each of them are the pixels. It is dense. */
static gcp_shape gcpi_pair_sums_shape(gcp_shape operand, gcp_shape out)
{
    gcp_shape s = { 4, { 1, 1, 1, 1 } };
    for (int k = 0; k < 4; k++)
        if (operand.d[k] == out.d[k]) s.d[3] *= out.d[k];
        else s.d[k < 2 ? k : 2] *= out.d[k];
    return s;
}
template <int LOOP> struct gcpi_sum_of_pair {
    enum { SUMS = 1 };
    gcp_view x, y, z;
    gcp_shape operand, out;
    float p;
    __device__ __forceinline__ void add(double *s, size_t pixel, int c) const
    {
        int at[4];
        for (int k = 3; k >= 0; k--) {
            const int size = out.d[k], kept = operand.d[k] == size;
            at[k] = kept ? c % size : (int)(pixel % (size_t)size);
            if (kept) c /= size;
            else pixel /= (size_t)size;
        }
        s[0] += (double)gcpi_pair_value<LOOP>(gcpi_spread(x, at), gcpi_spread(y, at), gcpi_spread(z, at), p);
    }
};
size_t gcpi_cuda_pair_workspace(gcp_shape operand, gcp_shape out)
{
    return gcpi_cuda_sums_workspace(gcpi_pair_sums_shape(operand, out), 1);
}

template <int LOOP> static void gcpi_pair_launch(const gcpi_cuda_pair *p, cudaStream_t stream)
{
    gcpi_pair_map m = { p->to, p->x, p->y, p->z, gcpi_count_of(p->to.shape), p->p };
    if (!p->workspace) { GCPI_EACH(gcpi_pair_kernel<LOOP>, m.count, m); return; }
    gcpi_sum_of_pair<LOOP> f = { p->x, p->y, p->z, p->to.shape, p->out, p->p };
    gcpi_sums_done<1> done = { { p->to }, NULL, 0, 0 };
    gcpi_sums(f, gcpi_pair_sums_shape(p->to.shape, p->out), p->workspace, done, stream);
}
void gcpi_cuda_pair_run(const gcpi_cuda_pair *p, cudaStream_t stream)
{
    typedef void launcher(const gcpi_cuda_pair *p, cudaStream_t stream);
#define GCPI_PAIR_LAUNCH(NAME, name, value) gcpi_pair_launch<GCPI_LOOP_##NAME>,
    static launcher *const launch[] = { GCPI_PAIR_LOOPS(GCPI_PAIR_LAUNCH) };
#undef GCPI_PAIR_LAUNCH
    launch[p->loop](p, stream);
}
