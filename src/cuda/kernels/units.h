/* Launching kernels; elements of tensors. On CUDA, or on the host emulation. */

#ifdef __CUDACC__
#define GCP_LAUNCH(kernel, grid, block, shared, stream, ...) \
    kernel<<<(grid), (block), (shared), (stream)>>>(__VA_ARGS__)
#define GCP_DYN_SHARED(T, name)                                   \
    extern __shared__ __align__(16) unsigned char gcpi_dynamic[]; \
    T *name = (T *)gcpi_dynamic
#endif
#define GCPI_DEVICE static __device__ __forceinline__
#define GCPI_BOTH static __host__ __device__ __forceinline__
/* a thread an element */
#define GCPI_EACH(kernel, count, ...) \
    GCP_LAUNCH(kernel, gcpi_blocks((ptrdiff_t)(count), 256), 256, 0, stream, __VA_ARGS__)

enum { GCPI_THREADS = 256 };
static size_t gcpi_least(size_t a, size_t b) { return a < b ? a : b; }
static size_t gcpi_most(size_t a, size_t b) { return a > b ? a : b; }
static size_t gcpi_pixels_of(gcp_shape s) { return (size_t)s.d[0] * (size_t)s.d[1] * (size_t)s.d[2]; }
static int gcpi_blocks(ptrdiff_t items, int each) { return (int)((items + each - 1) / each); }
static size_t gcpi_count_of(gcp_shape s) { return gcpi_pixels_of(s) * (size_t)s.d[3]; }

/* A thread makes a unit: V neighbouring channels of one pixel; the next thread makes the next. V is 4 where every
   operand can be read 16 bytes at a time. Where all operands are dense the tensor is one long pixel, and no division
   is left. */
struct gcpi_unit { ptrdiff_t pixel; size_t c; };

GCPI_DEVICE size_t gcpi_over(size_t i, unsigned by) /* 32 bits divide sooner */
{
    return i <= UINT32_MAX ? (unsigned)i / by : i / by;
}
/* Unit i, where a pixel has `width` units; width 0: all is one pixel. */
template <int V> GCPI_DEVICE gcpi_unit gcpi_unit_of(size_t i, unsigned width)
{
    gcpi_unit u = { 0, i * V };
    if (!width) return u;
    u.pixel = (ptrdiff_t)gcpi_over(i, width);
    u.c = (i - (size_t)u.pixel * width) * V;
    return u;
}
GCPI_DEVICE size_t gcpi_thread(void) { return (size_t)blockIdx.x * blockDim.x + threadIdx.x; }
GCPI_DEVICE float *gcpi_at(const gcp_view &v, gcpi_unit u) { return (float *)v.data + u.pixel * v.pitch + u.c; }
GCPI_DEVICE float gcpi_value(const gcp_view &v, size_t pixel, int c)
{
    return ((const float *)v.data)[(ptrdiff_t)pixel * v.pitch + c];
}

template <int V> GCPI_DEVICE void gcpi_load(float *v, const float *p)
{
    if (V == 4) { float4 x = *(const float4 *)p; v[0] = x.x; v[1 % V] = x.y; v[2 % V] = x.z; v[3 % V] = x.w; }
    else if (V == 2) { float2 x = *(const float2 *)p; v[0] = x.x; v[1 % V] = x.y; }
    else v[0] = *p;
}
template <int V> GCPI_DEVICE void gcpi_store(float *p, const float *v)
{
    if (V == 4) *(float4 *)p = make_float4(v[0], v[1 % V], v[2 % V], v[3 % V]);
    else if (V == 2) *(float2 *)p = make_float2(v[0], v[1 % V]);
    else *p = v[0];
}
/* to = v, or to + v where the view says so. */
template <int V> GCPI_DEVICE void gcpi_store(const gcp_view &to, gcpi_unit u, const float *v)
{
    float y[V] = {};
    if (to.accumulate) gcpi_load<V>(y, gcpi_at(to, u));
    for (int k = 0; k < V; k++) y[k] = to.accumulate ? y[k] + v[k] : v[k];
    gcpi_store<V>(gcpi_at(to, u), y);
}

/* How a launch cuts a tensor. whole: no channel has values of its own. An operand without data does not count. */
struct gcpi_cut { int v; unsigned width; size_t units; };
static bool gcpi_aligned(const void *p, ptrdiff_t pitch) { return !p || ((uintptr_t)p % 16 == 0 && pitch % 4 == 0); }
static gcpi_cut gcpi_cut_of(gcp_view x, gcp_view y, gcp_view z, bool whole)
{
    const gcp_view operands[] = { x, y, z };
    const size_t width = (size_t)x.shape.d[3], count = gcpi_count_of(x.shape);
    bool four = true;
    for (int i = 0; i < 3; i++) whole = whole && (!operands[i].data || operands[i].pitch == x.shape.d[3]);
    for (int i = 0; i < 3; i++) four = four && gcpi_aligned(operands[i].data, whole ? 0 : operands[i].pitch);
    gcpi_cut cut = { four && (whole ? count : width) % 4 == 0 ? 4 : 1, 0, 0 };
    cut.units = count / (size_t)cut.v;
    if (!whole) cut.width = (unsigned)(width / (size_t)cut.v);
    return cut;
}

GCPI_DEVICE float gcpi_rectified(float v, const gcpi_cuda_rectifier &r)
{
    if (!r.rectify) return v;
    v = v < r.least ? r.least : v;
    return v < r.kink ? r.slope * v : v > r.high ? r.high : v;
}
GCPI_DEVICE bool gcpi_within(float v, const gcpi_cuda_rectifier &r) { return v > r.low && v <= r.last; }

/* Sum and maximum of a warp's lanes, by a butterfly whose order is fixed; known to all of them. */
GCPI_DEVICE double gcpi_warp_sum(double v)
{
    for (int offset = 16; offset > 0; offset /= 2) v += __shfl_xor_sync(0xFFFFFFFFu, v, offset);
    return v;
}
GCPI_DEVICE float gcpi_warp_max(float v)
{
    for (int offset = 16; offset > 0; offset /= 2) v = fmaxf(v, __shfl_xor_sync(0xFFFFFFFFu, v, offset));
    return v;
}
