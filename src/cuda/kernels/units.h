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
   operand can be read four values at a time. Where all operands are dense the tensor is one long pixel, and no division
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

#ifdef GCPI_SM80
/* set for a test */
#elif defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define GCPI_SM80 0 /* no asynchronous copies, no tensor cores for TF32 and bfloat16: plain copies and fmaf */
#else
#define GCPI_SM80 1
#endif

/* bfloat16: the upper half of a float, rounded to the nearest, ties to even. Kernels compute in float. Whether an
   operand holds floats or halves is the same for all threads, so that the branches below part no warp. */
typedef unsigned short gcpi_bf16;
GCPI_DEVICE float gcpi_widened(unsigned half) { return __uint_as_float(half << 16); }
/* Both rounded: low in the lower 16 bits. */
GCPI_DEVICE unsigned gcpi_halves_of(float low, float high)
{
#if defined(__CUDACC__) && GCPI_SM80
    unsigned halves;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(halves) : "f"(high), "f"(low));
    return halves;
#else
    unsigned bits[2] = { __float_as_uint(low), __float_as_uint(high) };
    for (int i = 0; i < 2; i++)
        bits[i] = (bits[i] & 0x7FFFFFFFu) > 0x7F800000u ? 0x7FFF0000u : bits[i] + 0x7FFFu + (bits[i] >> 16 & 1);
    return bits[0] >> 16 | (bits[1] & 0xFFFF0000u);
#endif
}
GCPI_DEVICE float gcpi_settled(float v, bool half) { return half ? gcpi_widened(gcpi_halves_of(v, 0) & 0xFFFF) : v; }

static bool gcpi_is_half(const gcp_view &v) { return v.dtype == GCP_DTYPE_BF16; }
GCPI_BOTH gcpi_cuda_array gcpi_at(const gcpi_cuda_array &a, ptrdiff_t element)
{
    gcpi_cuda_array there = { (char *)a.at + element * (a.half ? 2 : 4), a.half };
    return there;
}
GCPI_BOTH gcpi_cuda_array gcpi_at(const gcp_view &v, ptrdiff_t element)
{
    const gcpi_cuda_array all = { v.data, v.dtype == GCP_DTYPE_BF16 };
    return gcpi_at(all, element);
}
GCPI_DEVICE gcpi_cuda_array gcpi_at(const gcp_view &v, gcpi_unit u)
{
    return gcpi_at(v, u.pixel * v.pitch + (ptrdiff_t)u.c);
}
GCPI_DEVICE gcpi_cuda_array gcpi_pixel_of(const gcp_view &v, size_t p) { return gcpi_at(v, (ptrdiff_t)p * v.pitch); }
GCPI_DEVICE float gcpi_get(const gcpi_cuda_array &a, ptrdiff_t i)
{
    return a.half ? gcpi_widened(((const gcpi_bf16 *)a.at)[i]) : ((const float *)a.at)[i];
}
GCPI_DEVICE void gcpi_set(const gcpi_cuda_array &a, ptrdiff_t i, float v)
{
    if (a.half) ((gcpi_bf16 *)a.at)[i] = (gcpi_bf16)gcpi_halves_of(v, 0);
    else ((float *)a.at)[i] = v;
}
/* The element becomes v, or what it is and v. */
GCPI_DEVICE void gcpi_set(const gcpi_cuda_array &a, ptrdiff_t i, float v, int accumulate)
{
    gcpi_set(a, i, accumulate ? gcpi_get(a, i) + v : v);
}
GCPI_DEVICE float gcpi_value(const gcp_view &v, size_t pixel, int c) { return gcpi_get(gcpi_pixel_of(v, pixel), c); }

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
template <int V> GCPI_DEVICE void gcpi_load(float *v, const gcpi_cuda_array &a)
{
    if (!a.half) { gcpi_load<V>(v, (const float *)a.at); return; }
    unsigned pairs[2];
    if (V == 4) { uint2 x = *(const uint2 *)a.at; pairs[0] = x.x; pairs[1] = x.y; }
    else if (V == 2) pairs[0] = *(const unsigned *)a.at;
    else pairs[0] = *(const gcpi_bf16 *)a.at;
    for (int k = 0; k < V; k++) v[k] = k % 2 ? __uint_as_float(pairs[k / 2] & 0xFFFF0000u) : gcpi_widened(pairs[k / 2]);
}
template <int V> GCPI_DEVICE void gcpi_store(const gcpi_cuda_array &a, const float *v)
{
    if (!a.half) { gcpi_store<V>((float *)a.at, v); return; }
    if (V == 4) *(uint2 *)a.at = make_uint2(gcpi_halves_of(v[0], v[1 % V]), gcpi_halves_of(v[2 % V], v[3 % V]));
    else if (V == 2) *(unsigned *)a.at = gcpi_halves_of(v[0], v[1 % V]);
    else gcpi_set(a, 0, v[0]);
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
GCPI_BOTH bool gcpi_aligned(const void *p) { return (uintptr_t)p % 16 == 0; }
/* Its rows, or all of it where it is one row, can be read by fours. */
static bool gcpi_by_fours(const gcp_view &v, bool whole)
{
    return !v.data || ((uintptr_t)v.data % (gcpi_is_half(v) ? 8 : 16) == 0 && (whole || v.pitch % 4 == 0));
}
static gcpi_cut gcpi_cut_of(gcp_view x, gcp_view y, gcp_view z, bool whole)
{
    const gcp_view operands[] = { x, y, z };
    const size_t width = (size_t)x.shape.d[3], count = gcpi_count_of(x.shape);
    bool four = true;
    for (int i = 0; i < 3; i++) whole = whole && (!operands[i].data || operands[i].pitch == x.shape.d[3]);
    for (int i = 0; i < 3; i++) four = four && gcpi_by_fours(operands[i], whole);
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
