/* kernels.cu 0.3.0 in one file: assembled from kernels.cu and the rooms in src/ by src/assemble.cmake, never edited. */
#define GCPI_ONE_FILE

/* kernels.cu - the kernels of gcp_cuda.h. MIT licence, see gcp.h.

   gcp_cuda.h says how to compile it; the single file to copy is dist/kernels.cu. The same text compiles as C++ against
   the host emulation in hostcuda, where every line is run. What that asks of it: launches only by GCP_LAUNCH, dynamic
   shared memory only by GCP_DYN_SHARED, PTX only in wrappers that have a host twin, warp collectives with explicit
   masks, at most 256 threads a block. No atomics: every sum has one order, given by shapes. Products that are meant to
   be fused say fmaf (compile with -fmad=false).

   Which kernels serve an op (gcpi_NAME_kernel, in the order of their launches), and in which room they are:
     op                            forward                   backward                                     room
     conv2d (implicit GEMM)        gather (of halves: map    transpose_weights, gather                    implicit
                                   of the weights before it)
     conv_transpose2d              transpose_weights, gather gather                                       implicit
       either's weights, bias                                weights, weights_sum; sum_blocks, sum_finish wgrad, reduce
       with groups (depthwise)     direct                    direct; direct_weights, weights_sum          grouped
       with stride and dilation    gather                    direct; weights, weights_sum                 grouped
       what follows conv2d         in gather's epilogue: an addition, ReLU, or statistics, then sum_finish  implicit
     conv2d 1x1 (stride 1, no padding), linear, matmul, where channels are by fours (halves: eights): cuBLAS
     batch_stats                   sum_blocks, sum_finish; in inference running_stats                     reduce, norms
     batch_norm                    apply or apply_fours      sum_blocks, sum_finish, batch_norm_back      norms
     layer_norm                    layer_norm                layer_norm_back (moments), sum_blocks,
                                                             sum_finish, layer_norm_back                  norms
     attention                     attention                 attention_rows, attention_keys               attend
     softmax, log_softmax          softmax                   softmax_back                                 distribution
     add, relu, leaky_relu, relu6, clamp: apply or apply_fours   map; rectify_back                        elementwise
       (batch_norm, add and relu behind each other: one apply)
     concat, slice along other axes than channels, transpose: moved or turned both ways                   moves
     concat, slice, pointwise ops (ops/pointwise_table.h): map both ways                                  elementwise
     mul, sub, div, ..., add of other shapes: pair (mul of equal ones: map)  pair; sum_blocks, sum_finish  pairs
     bias                          map                       map; sum_blocks, sum_finish                  reduce
     reshape, dropout              reshape, dropout          the same                                     elementwise
     max_pool, avg_pool, global_avg_pool: pool               pool_back                                    windows
     group_norm                    group_norm                group_norm (moments), sums, group_norm_back      groups
     upsample                      upsample                  upsample_back                                windows
     embedding                     embedding                 map (zeros), sort, merge, embedding_back     lookup
     cross_entropy                 cross_entropy, finish     count_labels, cross_entropy_back             losses
     mse, mean                     reduce, finish            mse_back, map                                losses
     .clip_norm                    reduce, finish for each gradient; norm_finish                          updates
     updates, the loss's gradient  sgd or adam for GCP_MAX_UPDATES parameters; map                          updates

   Operands are floats or, in a plan with GCP_STORE_BF16, halves: bfloat16. Kernels that move memory load and store
   either (units.h); those of products have a version for each kind of tile (tiles.h). */

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/cuda/kernels/units.h")
#error "kernels.cu needs its rooms, the folder src/ beside it; the single file to copy is dist/kernels.cu"
#endif
#endif
#include "gcp_cuda.h"


/* ==== src/cuda/kernels/units.h ==== */

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

/* ==== src/cuda/kernels/reduce.h ==== */

/* Sums over pixels. Each block sums its pixels for a strip of channels: threads lie as rows x columns, add their
   pixels in order in double, then rows add up in order. Another launch adds the blocks in order and does with the
   sums what they are for. Strips and blocks follow from the shape. */

enum { GCPI_SUM_BLOCKS = 256 };
static int gcpi_sum_columns(int channels) { return channels > 16 ? 32 : channels > 8 ? 16 : channels > 4 ? 8 : 4; }
static size_t gcpi_sum_length(size_t pixels, int channels)      /* pixels of a block */
{
    return gcpi_most(4 * GCPI_THREADS / gcpi_sum_columns(channels), (pixels + GCPI_SUM_BLOCKS - 1) / GCPI_SUM_BLOCKS);
}
static size_t gcpi_sum_blocks_of(size_t pixels, size_t length) { return (pixels + length - 1) / length; }
size_t gcpi_cuda_sums_workspace(gcp_shape shape, int sums)
{
    const size_t pixels = gcpi_pixels_of(shape), length = gcpi_sum_length(pixels, shape.d[3]);
    return (gcpi_sum_blocks_of(pixels, length) + 1) * (size_t)shape.d[3] * (size_t)sums * sizeof(double);
}

/* For statistics: a value and its square. */
GCPI_DEVICE void gcpi_add_value(double *s, float x)
{
    s[0] += (double)x;
    s[1] += (double)x * (double)x;
}
/* A block's rows of threads, `columns` each, add up in order: partial [block][sum][channel]. */
template <int SUMS>
GCPI_DEVICE void gcpi_add_rows(const double *s, int columns, int c, int channels, size_t block, double *partial)
{
    __shared__ double part[SUMS][GCPI_THREADS];
    __syncthreads();
    for (int k = 0; k < SUMS; k++) part[k][threadIdx.x] = s[k];
    __syncthreads();
    if ((int)threadIdx.x >= columns || c >= channels) return;
    for (int k = 0; k < SUMS; k++) {
        double sum = 0;
        for (int r = 0; r < GCPI_THREADS; r += columns) sum += part[k][r + threadIdx.x];
        partial[(block * SUMS + k) * channels + c] = sum;
    }
}

struct gcpi_sum_of_dy     { enum { SUMS = 1 }; gcp_view dy;
    __device__ __forceinline__ void add(double *s, size_t p, int c) const
    {
        s[0] += (double)gcpi_value(dy, p, c);
    }
};
struct gcpi_sum_of_x      { enum { SUMS = 2 }; gcp_view x;
    __device__ __forceinline__ void add(double *s, size_t p, int c) const
    {
        gcpi_add_value(s, gcpi_value(x, p, c));
    }
};
template <int N> struct gcpi_sum_of_sums { enum { SUMS = N }; const double *partial; int channels;
    __device__ __forceinline__ void add(double *s, size_t p, int c) const
    {
        for (int k = 0; k < N; k++) s[k] += partial[(p * N + k) * channels + c];
    }
};
template <class F>
__global__ void gcpi_sum_blocks_kernel(F f, size_t pixels, size_t length, int channels, int columns, double *partial)
{
    const unsigned strips = (unsigned)((channels + columns - 1) / columns), rows = GCPI_THREADS / columns;
    const size_t block = blockIdx.x / strips, end = (block + 1) * length, last = end < pixels ? end : pixels;
    const int c = (int)(blockIdx.x % strips) * columns + threadIdx.x % columns;
    double s[F::SUMS] = {};
    size_t p = c < channels ? block * length + threadIdx.x / columns : last;
    for (; p + 3 * rows < last; p += 4 * rows) {     /* the loads of four pixels under way, the same order of sums */
#pragma unroll
        for (unsigned k = 0; k < 4; k++) f.add(s, p + k * rows, c);
    }
    for (; p < last; p += rows) f.add(s, p, c);
    gcpi_add_rows<F::SUMS>(s, columns, c, channels, block, partial);
}

/* Adds the blocks: 8 threads a channel, each every eighth block, then those in order; done(channel, its sums). */
template <int SUMS, class D>
__global__ void gcpi_sum_finish_kernel(const double *partial, unsigned blocks, int channels, D done)
{
    __shared__ double part[SUMS][8][32];
    const unsigned column = threadIdx.x % 32, lane = threadIdx.x / 32;
    const int c = (int)(blockIdx.x * 32 + column);
    double sum[SUMS] = {};
    for (unsigned b = lane; b < blocks && c < channels; b += 8)
        for (int k = 0; k < SUMS; k++) sum[k] += partial[((size_t)b * SUMS + k) * channels + c];
    for (int k = 0; k < SUMS; k++) part[k][lane][column] = sum[k];
    __syncthreads();
    if (lane || c >= channels) return;
    for (int k = 0; k < SUMS; k++) for (int l = 1; l < 8; l++) sum[k] += part[k][l][column];
    done(c, sum);
}
template <class F>
static size_t gcpi_sum_blocks(const F &f, size_t pixels, int channels, size_t length, double *partial, cudaStream_t s)
{
    const int columns = gcpi_sum_columns(channels);
    const size_t blocks = gcpi_sum_blocks_of(pixels, length);
    GCP_LAUNCH((gcpi_sum_blocks_kernel<F>), (unsigned)(blocks * (size_t)gcpi_blocks(channels, columns)), GCPI_THREADS,
               0, s, f, pixels, length, channels, columns, partial);
    return blocks;
}
/* Where there are many blocks, blocks add them first. */
template <int SUMS, class D>
static void gcpi_sum_finish(double *partial, size_t blocks, int channels, const D &done, cudaStream_t stream)
{
    if (blocks > GCPI_SUM_BLOCKS) {
        gcpi_sum_of_sums<SUMS> f = { partial, channels };
        partial += blocks * SUMS * (size_t)channels;
        blocks = gcpi_sum_blocks(f, blocks, channels, gcpi_sum_length(blocks, channels), partial, stream);
    }
    GCP_LAUNCH((gcpi_sum_finish_kernel<SUMS, D>), gcpi_blocks(channels, 32), 256, 0, stream, (const double *)partial,
               (unsigned)blocks, channels, done);
}
template <class F, class D>
static void gcpi_sums(const F &f, gcp_shape shape, void *workspace, const D &done, cudaStream_t stream)
{
    const size_t pixels = gcpi_pixels_of(shape), length = gcpi_sum_length(pixels, shape.d[3]);
    double *partial = (double *)workspace;
    const size_t blocks = gcpi_sum_blocks(f, pixels, shape.d[3], length, partial, stream);
    gcpi_sum_finish<F::SUMS>(partial, blocks, shape.d[3], done, stream);
}

/* The sums are gradients; means, where it is there: [sums][channels] of float, over n pixels. */
template <int SUMS> struct gcpi_sums_done {
    gcp_view to[SUMS];
    float *means;
    double n;
    int channels;
    __device__ __forceinline__ void operator()(int c, const double *sum) const
    {
        for (int k = 0; k < SUMS; k++) {
            const gcpi_cuda_array d = gcpi_at(to[k], c);
            if (to[k].data) gcpi_set(d, 0, (float)((to[k].accumulate ? (double)gcpi_get(d, 0) : 0) + sum[k]));
            if (means) means[k * channels + c] = (float)(sum[k] / n);
        }
    }
};

void gcpi_cuda_bias_back(gcp_view db, gcp_view dy, void *workspace, cudaStream_t stream)
{
    gcpi_sum_of_dy f = { dy };
    gcpi_sums_done<1> done = { { db }, NULL, 0, 0 };
    gcpi_sums(f, dy.shape, workspace, done, stream);
}

/* ==== src/cuda/kernels/tiles.h ==== */

/* Products of tiles in shared memory: copies, FP32, TF32, bfloat16. Two products of convolution over the same staged
   tiles, with nothing lowered to a matrix in memory:
     gather    out[p][c]  = sum over k of src[where k of pixel p lies] * b[c][k]
               forward; backward data too, on dy with transposed weights, a gather per stride phase
     weights   dw[co][k]  = sum over pixels p of dy[p][co] * x[where k of pixel p lies]
   k = (tap row, tap column, channel) flattened, channels fastest, as OHWI weights lie. Groups, and the gradient of a
   stride with a dilation, take the direct kernels: a thread per result.

   These are the implicit GEMMs of the field: gather its fprop and dgrad, weights its wgrad with split-K. A block owns
   128 x BN results and sums a K-block of terms at a time. Each result is summed by one thread (in wgrad: one of each
   share of the terms) in an order that the shape alone decides: no atomics, same bits. */

enum {
    GCPI_BM = 128,                /* rows of a block's tile: pixels (gather) or k (weights) */
    GCPI_WAVE = 264,              /* blocks of 128 columns that an H100 runs at a time: 132 multiprocessors, two each */
    GCPI_SHARE_LEAST = 128,       /* fewest terms worth a partial sum of dw */
    GCPI_SHARES_BYTES = 32 << 20  /* most bytes of all partial sums */
};

/* How operands are multiplied; sums are floats. What a tile's elements are: floats, or halves. */
enum { GCPI_FP32, GCPI_TF32, GCPI_BF16 };
template <int MATH> struct gcpi_operand { typedef float type; };
template <> struct gcpi_operand<GCPI_BF16> { typedef gcpi_bf16 type; };

/* Terms of a K-block, and how many K-blocks lie in shared memory: one in use, the others on their way. On an H100 TF32
   is bound by the path through L1, where rows of 128 bytes cost the least; FP32 goes to cards with 64 KB, too. */
GCPI_BOTH constexpr int gcpi_block_terms(int math) { return math == GCPI_FP32 ? 16 : math == GCPI_TF32 ? 32 : 64; }
GCPI_BOTH constexpr int gcpi_stages(int math) { return math == GCPI_FP32 ? 3 : 2; }
/* A row of a K-block in words of 4 bytes: floats, or pairs of halves. */
GCPI_BOTH constexpr int gcpi_block_words(int math) { return gcpi_block_terms(math) / (math == GCPI_BF16 ? 2 : 1); }

/* Copies VEC neighbours (16 bytes, 8, 4, or one half) to shared memory, or zeros if not valid; both ends are aligned to
   as many bytes. They are there after commit, wait and __syncthreads. 16 bytes go past L1: of what the taps of a
   convolution read again, L1 still held a tenth (H100), and the way through it is what the tensor cores wait for. */
template <int VEC, class T> GCPI_DEVICE void gcpi_copy_async(T *shared, const T *global, bool valid)
{
    const int size = VEC * (int)sizeof(T);
    if (size < 4) { *shared = valid ? *global : (T)0; return; }
#ifndef __CUDACC__
    hostcuda_cp_async(shared, global, size, valid);
#elif GCPI_SM80
    const unsigned to = (unsigned)__cvta_generic_to_shared(shared);
    const int bytes = valid ? size : 0;
    if (size == 16)
        asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;\n" ::"r"(to), "l"(global), "r"(bytes) : "memory");
    else
        asm volatile("cp.async.ca.shared.global [%0], [%1], %3, %2;\n"
                     ::"r"(to), "l"(global), "r"(bytes), "n"(size < 4 ? 4 : size) : "memory");
#else
    if (size == 16) *(float4 *)shared = valid ? *(const float4 *)global : make_float4(0, 0, 0, 0);
    else for (int i = 0; i < VEC; i++) shared[i] = valid ? global[i] : (T)0;
#endif
}
/* One element, which is widened where floats are made of halves (below sm_80 there are none). */
GCPI_DEVICE void gcpi_copy_one(float *shared, const gcpi_cuda_array &from, ptrdiff_t i, bool valid)
{
    if (GCPI_SM80 && from.half) *shared = valid ? gcpi_get(from, i) : 0;
    else gcpi_copy_async<1>(shared, (const float *)from.at + i, valid);
}
GCPI_DEVICE void gcpi_copy_one(gcpi_bf16 *shared, const gcpi_cuda_array &from, ptrdiff_t i, bool valid)
{
    gcpi_copy_async<1>(shared, (const gcpi_bf16 *)from.at + i, valid);
}

GCPI_DEVICE void gcpi_copy_commit(void)
{
#ifndef __CUDACC__
    hostcuda_cp_async_commit();
#elif GCPI_SM80
    asm volatile("cp.async.commit_group;\n" ::: "memory");
#endif
}

/* Waits until at most n of this thread's committed groups are still under way. */
template <int n> GCPI_DEVICE void gcpi_copy_wait(void)
{
#ifndef __CUDACC__
    hostcuda_cp_async_wait(n);
#elif GCPI_SM80
    asm volatile("cp.async.wait_group %0;\n" ::"n"(n) : "memory");
#endif
}

#if GCPI_SM80
/* The tensor cores read the upper 19 bits of a float and cut the rest off. This adds 0.36 to 0.72 of a unit in the last
   place that they read, so that the mean relative error is zero: at most 0.72 of a unit, where rounding to nearest has
   0.5. One multiplication instead of a comparison and an addition; a NaN stays one, an infinity too, and what is above
   0.9996 of the largest float becomes one. */
GCPI_DEVICE unsigned gcpi_to_tf32(float v) { return __float_as_uint(v * (1 + 0.72134752f / 2048)); }

/* d += a * b of 16x8 and 8x8 words, a word being a float of TF32 or two halves that are neighbours in k. Lane l has
   g = l/4, t = l%4 and holds a: (g,t) (g+8,t) (g,t+4) (g+8,t+4)   b: (t,g) (t+4,g)
   d: (g,2t) (g,2t+1) (g+8,2t) (g+8,2t+1) */
#ifdef __CUDACC__
#define GCPI_MMA(shape, type)                                                                                         \
    asm volatile("mma.sync.aligned." shape ".row.col.f32." type "." type ".f32 "                                      \
                 "{%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};\n"                                            \
                 : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])                                                     \
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]))
#endif
template <int MATH> GCPI_DEVICE void gcpi_mma(float d[4], const unsigned a[4], const unsigned b[2])
{
#ifdef __CUDACC__
    if (MATH == GCPI_TF32) GCPI_MMA("m16n8k8", "tf32");
    else GCPI_MMA("m16n8k16", "bf16");
#else
    if (MATH == GCPI_TF32) hostcuda_mma_m16n8k8_tf32(d, a, b);
    else hostcuda_mma_m16n8k16_bf16(d, a, b);
#endif
}

/* f = elements (g,t) (g+8,t) (g,t+4) (g+8,t+4) of a 16x8 tile, of which each lane names four floats of a row: lane l
   columns l/16*4 and on of row l%16. One ldmatrix. */
GCPI_DEVICE void gcpi_load_rows(float f[4], const float *row)
{
#ifdef __CUDACC__
    unsigned from = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=f"(f[0]), "=f"(f[1]), "=f"(f[2]), "=f"(f[3])
                 : "r"(from)
                 : "memory");
#else
    hostcuda_ldmatrix_x4(f, row);
#endif
}
/* Of a tile of halves that is stored [k][row] the same words. Lane l names eight halves of the (l % 8)-th k of the
   (l / 8)-th of four 8x8 matrices. */
GCPI_DEVICE void gcpi_load_turned(unsigned r[4], const gcpi_bf16 *row)
{
#ifdef __CUDACC__
    unsigned from = (unsigned)__cvta_generic_to_shared(row);
    asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0,%1,%2,%3}, [%4];\n"
                 : "=r"(r[0]), "=r"(r[1]), "=r"(r[2]), "=r"(r[3])
                 : "r"(from)
                 : "memory");
#else
    hostcuda_ldmatrix_x4_trans(r, row);
#endif
}
#endif

/* Where word (row, k) of a tile stored [row][k] lies: its rows' fours of k change places, so that neither copies
   of 16 bytes nor reads of a column of fours by 8 rows meet in a bank. Rows 8 apart have the same order. */
template <int BK> GCPI_DEVICE int gcpi_swizzled(int row, int k)
{
    return row * BK + ((k / 4 ^ (row * BK / 32 & (BK / 4 - 1))) * 4 + k % 4);
}

/* Element (row, k) of such a tile. */
template <int MATH> GCPI_DEVICE typename gcpi_operand<MATH>::type *gcpi_tile_element(float *tile, int row, int k)
{
    typedef typename gcpi_operand<MATH>::type T;
    const int each = 4 / (int)sizeof(T);
    return (T *)(tile + gcpi_swizzled<gcpi_block_words(MATH)>(row, k / each)) + k % each;
}

/* A counter in mixed radix, so that walking on by a fixed step costs no division: (image, row, column) of a pixel,
   or (tap row, tap column, channel) of k. */
typedef struct gcpi_walk { int hi, mid, lo; } gcpi_walk;

typedef struct gcpi_tiling {               /* one launch of either product */
    int n, rows, cols;                     /* output pixels: image, row j, column i */
    int h, w, channels; ptrdiff_t pitch;   /* source images */
    int ystep, ybase, ytap, taps_h;        /* tap t of row j: source row j*ystep+ybase+t*ytap */
    int xstep, xbase, xtap, taps_w;        /* columns likewise */
    int oys, oy0, oxs, ox0, out_h, out_w;  /* (j, i) is written at (j*oys+oy0, i*oxs+ox0) */
    ptrdiff_t out_pitch;
    int k, columns;                        /* taps_h*taps_w*channels; output channels */
    gcpi_cuda_array src, b, out;           /* b [columns][k], or dy for the weights */
    const float *bias;
    int accumulate, fours, pairs;          /* dy can be read by fours; results can be written by twos */
    gcpi_cuda_end end;                     /* what the gather does with its results */
    int sum_columns;                       /* of its statistics (gcpi_sum_columns) */
    int steps, length;                     /* K-blocks of a tile of dw, of a block's share */
    gcpi_walk step;                        /* from what a thread copies to what it copies next */
} gcpi_tiling;

GCPI_BOTH gcpi_walk gcpi_walk_at(ptrdiff_t index, int mids, int los)
{
    gcpi_walk w;
    ptrdiff_t rest = los > 0 ? index / los : 0; /* no channels or no taps: nothing will be read */
    w.lo = (int)(index - rest * los);
    w.hi = mids > 0 ? (int)(rest / mids) : 0;
    w.mid = (int)(rest - (ptrdiff_t)w.hi * mids);
    return w;
}

GCPI_DEVICE void gcpi_walk_on(gcpi_walk *w, gcpi_walk step, int mids, int los)
{
    w->lo += step.lo;
    int carry = w->lo >= los;
    w->lo -= carry ? los : 0;
    w->mid += step.mid + carry;
    carry = w->mid >= mids;
    w->mid -= carry ? mids : 0;
    w->hi += step.hi + carry;
}

/* The host launches as many threads as the device's code wants, whatever that was compiled for: below sm_80 TF32's
   kernels are FP32's with TF32's threads. Those of bfloat16 are not launched there, and are empty. */
GCPI_DEVICE constexpr bool gcpi_is_empty(int math) { return math == GCPI_BF16 && !GCPI_SM80; }
constexpr int gcpi_tile_threads(bool kmajor, int math) { return math != GCPI_FP32 && !kmajor ? 128 : GCPI_THREADS; }

/* Sums of products of a, 128 x BK, and b, BN x BK (rows x k). KMAJOR: stored [row][k], swizzled. Otherwise stored
   [k][row], pitch rows + 8. Both keep copies and the reads below free of bank conflicts.

   FP32: a thread sums MI x NI results in order of k; a warp is 4 threads down and 8 across. */
template <int BN, bool KMAJOR, int MATH> struct gcpi_tile_sums {
    static const int THREADS = gcpi_tile_threads(KMAJOR, MATH), BK = gcpi_block_words(MATH);
    static const int ACROSS = BN == 128 ? 16 : 8, DOWN = THREADS / ACROSS;
    static const int MI = GCPI_BM / DOWN, NI = BN / ACROSS;
    static const int DEEP = KMAJOR ? 2 : 1; /* k at a time */
    float sum[MI][NI] = {};

    /* this thread's place among the threads down and across */
    const int down = threadIdx.x / 32 / (ACROSS / 8) * 4 + threadIdx.x % 32 / 8;
    const int across = threadIdx.x / 32 % (ACROSS / 8) * 8 + threadIdx.x % 8;

    GCPI_DEVICE int row(int t, int threads, int i) /* the i-th of the t-th of so many */
    {
        return KMAJOR ? t + threads * i : 4 * (t + threads * (i / 4)) + i % 4;
    }

    /* f[e][i] = this thread's rows at k + e */
    template <int ROWS, int COUNT> GCPI_DEVICE void load(float f[DEEP][COUNT], const float *tile, int t, int k)
    {
#pragma unroll
        for (int i = 0; i < COUNT; i += KMAJOR ? 1 : 4)
            if (KMAJOR) {
                /* rows are 8 or more apart */
                float2 v = *(const float2 *)(tile + ROWS / COUNT * i * BK + gcpi_swizzled<BK>(t, k));
                f[0][i] = v.x, f[DEEP - 1][i] = v.y;
            } else {
                float4 v = *(const float4 *)(tile + k * (ROWS + 8) + row(t, ROWS / COUNT, i));
                f[0][i] = v.x, f[0][i + 1] = v.y, f[0][i + 2] = v.z, f[0][i + 3] = v.w;
            }
    }

    __device__ __forceinline__ void add(const float *a, const float *b)
    {
#pragma unroll (KMAJOR ? 1 : 2) /* more, and so many loads move up that registers spill */
        for (int k = 0; k < BK; k += DEEP) {
            float fa[DEEP][MI], fb[DEEP][NI];
            load<GCPI_BM>(fa, a, down, k);
            load<BN>(fb, b, across, k);
#pragma unroll
            for (int e = 0; e < DEEP * MI * NI; e++) {
                const int kk = e / (MI * NI), i = e / NI % MI, j = e % NI;
                sum[i][j] = fmaf(fa[kk][i], fb[kk][j], sum[i][j]);
            }
        }
    }

    /* store(row, column, results, how many neighbours there are in the row) */
    template <class F> __device__ __forceinline__ void each(F store) const
    {
#pragma unroll
        for (int e = 0; e < MI * NI; e++) {
            const int i = KMAJOR ? e / NI : e % MI, j = KMAJOR ? e % NI : e / MI;
            store(row(down, DOWN, i), row(across, ACROSS, j), &sum[i][j], 1);
        }
    }
};

#if GCPI_SM80
/* KMAJOR: eight warps share the tile, 2x4 of 64x32, 4x2 of 32x32 or 8x1 of 16x32. Otherwise four: 2x2 of 64x64, 2x2
   of 64x32 or 4x1 of 32x32. There each float of TF32 is a load of its own, and a larger tile has fewer of them a
   product. */
template <int BN, bool KMAJOR, int MATH> struct gcpi_tensor_sums {
    static const int THREADS = gcpi_tile_threads(KMAJOR, MATH), WARPS = THREADS / 32, BK = gcpi_block_words(MATH);
    static const int WIDE = BN == 128 && !KMAJOR ? 64 : 32, NI = WIDE / 8; /* columns of a warp, in eights */
    static const int ACROSS = BN / WIDE, TALL = GCPI_BM * ACROSS / WARPS, MI = TALL / 16;
    float sum[MI][NI][4] = {};

    /* The words of 16 rows and of 8 words of k, of either kind of tile. B: two 8x8 fragments of b, each a pair of
       registers, so that mma finds them side by side. */
    template <int ROWS, bool B> GCPI_DEVICE void load(unsigned r[4], const float *tile, int row, int k)
    {
        const int lane = threadIdx.x % 32;
        float f[4];
        if (!KMAJOR && MATH == GCPI_BF16) {
            const int down = B ? lane / 16 * 8 : lane / 8 % 2 * 8, deep = B ? lane / 8 % 2 : lane / 16;
            gcpi_load_turned(r, (const gcpi_bf16 *)tile + (2 * k + deep * 8 + lane % 8) * (ROWS + 8) + row + down);
            return;
        }
        if (KMAJOR) {
            const int down = B ? lane % 8 + lane / 16 * 8 : lane % 16, deep = B ? lane / 8 % 2 : lane / 16;
            gcpi_load_rows(f, tile + row * BK + gcpi_swizzled<BK>(down, k + deep * 4));
        } else {
#pragma unroll
            for (int i = 0; i < 4; i++) {
                const int down = B ? i / 2 : i % 2, deep = B ? i % 2 : i / 2;
                f[i] = tile[(k + lane % 4 + deep * 4) * (ROWS + 8) + row + lane / 4 + down * 8];
            }
        }
#pragma unroll
        for (int i = 0; i < 4; i++) r[i] = MATH == GCPI_BF16 ? __float_as_uint(f[i]) : gcpi_to_tf32(f[i]);
    }

    __device__ __forceinline__ void add(const float *a, const float *b)
    {
        const int warp = threadIdx.x / 32;
#pragma unroll (KMAJOR ? 2 : 1) /* for registers' sake */
        for (int k = 0; k < BK; k += 8) {
            unsigned fb[NI / 2][4];
#pragma unroll
            for (int j = 0; j < NI / 2; j++) load<BN, true>(fb[j], b, warp % ACROSS * WIDE + j * 16, k);
#pragma unroll
            for (int i = 0; i < MI; i++) {
                unsigned fa[4];
                load<GCPI_BM, false>(fa, a, warp / ACROSS * TALL + i * 16, k);
#pragma unroll
                for (int j = 0; j < NI; j++) gcpi_mma<MATH>(sum[i][j], fa, fb[j / 2] + j % 2 * 2);
            }
        }
    }

    template <class F> __device__ __forceinline__ void each(F store) const
    {
        const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
        const int row = warp / ACROSS * TALL + lane / 4, col = warp % ACROSS * WIDE + lane % 4 * 2;
#pragma unroll
        for (int e = 0; e < 2 * MI * NI; e++) {
            const int r = KMAJOR ? e / NI : e % (2 * MI), c = KMAJOR ? e % NI : e / (2 * MI);
            store(row + r * 8, col + c * 8, &sum[r / 2][c][r % 2 * 2], 2);
        }
    }
};
template <int BN, bool KMAJOR>
struct gcpi_tile_sums<BN, KMAJOR, GCPI_TF32> : gcpi_tensor_sums<BN, KMAJOR, GCPI_TF32> {};
template <int BN, bool KMAJOR>
struct gcpi_tile_sums<BN, KMAJOR, GCPI_BF16> : gcpi_tensor_sums<BN, KMAJOR, GCPI_BF16> {};
#endif

/* Adds up all terms: load(k, to) sends for the K-block from k on. All stages but one are sent for first. Round b
   then sums block b, in stage `use`, and sends for the block that fills the stage `next`, which every thread has
   left behind at this round's barrier. A, B: elements of either tile for a term. */
template <int MATH, int A, int B, class P, class L>
GCPI_DEVICE void gcpi_rounds(P &product, float *stages, int terms, L load)
{
    const int deep = gcpi_block_terms(MATH), ahead = gcpi_stages(MATH) - 1, words = gcpi_block_words(MATH),
              size = words * (A + B);
#pragma unroll 1
    for (int s = 0; s < ahead; s++) {
        if (s * deep < terms) load(s * deep, stages + s * size);
        gcpi_copy_commit(); /* also of nothing: the waits count groups */
    }
#pragma unroll 1
    for (int k = 0, use = 0, next = ahead; k < terms; k += deep) {
        gcpi_copy_wait<gcpi_stages(MATH) - 2>();
        __syncthreads();
        if (k + ahead * deep < terms) load(k + ahead * deep, stages + next * size);
        gcpi_copy_commit();
        product.add(stages + use * size, stages + use * size + words * A);
        use = use == ahead ? 0 : use + 1;
        next = next == ahead ? 0 : next + 1;
    }
}

/* ==== src/cuda/kernels/implicit.h ==== */

/* Gather: forward, and backward data. */

typedef struct gcpi_place {
    ptrdiff_t origin, out; /* where its tap (0,0) lies in the source, if anywhere; where it is written, -1: no pixel */
    int y, x;
} gcpi_place;

static __device__ gcpi_place gcpi_gather_pixel(const gcpi_tiling &g, ptrdiff_t p)
{
    const gcpi_walk at = gcpi_walk_at(p, g.rows, g.cols);
    gcpi_place px = { 0, -1, -(1 << 30), 0 }; /* y so far off that every tap reads a zero */
    if (at.hi >= g.n) return px;
    const int y = at.mid * g.oys + g.oy0, x = at.lo * g.oxs + g.ox0;
    px.out = (((ptrdiff_t)at.hi * g.out_h + y) * g.out_w + x) * g.out_pitch;
    px.y = at.mid * g.ystep + g.ybase;
    px.x = at.lo * g.xstep + g.xbase;
    px.origin = (((ptrdiff_t)at.hi * g.h + px.y) * g.w + px.x) * g.pitch;
    return px;
}

/* Stages one K-block. A thread copies VEC neighbouring values of k of some pixels, so that it has one tap of them. */
template <int VEC, int BN, int MATH>
GCPI_DEVICE void gcpi_gather_load(const gcpi_tiling &g, const gcpi_place *pixels, int column, gcpi_walk tap, int k,
                                  float *tile)
{
    typedef typename gcpi_operand<MATH>::type T;
    const int words = gcpi_block_words(MATH), lanes = gcpi_block_terms(MATH) / VEC, step = GCPI_THREADS / lanes;
    const int first = threadIdx.x / lanes, at = threadIdx.x % lanes * VEC, each = 4 / (int)sizeof(T);
    const int dy = tap.hi * g.ytap, dx = tap.mid * g.xtap;
    const ptrdiff_t offset = ((ptrdiff_t)dy * g.w + dx) * g.pitch + tap.lo;
    const T *src = (const T *)g.src.at, *b = (const T *)g.b.at;
    T *to = gcpi_tile_element<MATH>(tile, first, at); /* rows 8 apart lie alike, and step is a multiple, or 4 */
    T *other = step % 8 ? gcpi_tile_element<MATH>(tile, first + 4, at) - 4 * words * each : to;
#pragma unroll(sizeof(T) < 4 ? 8 : 32)
    for (int r = 0; r < GCPI_BM; r += step) {
        const gcpi_place *px = pixels + first + r;
        const bool valid = /* & has no branches */
            (k < g.k) & ((unsigned)(px->y + dy) < (unsigned)g.h) & ((unsigned)(px->x + dx) < (unsigned)g.w);
        gcpi_copy_async<VEC>((r % 8 ? other : to) + r * words * each, src + (valid ? px->origin + offset : 0), valid);
    }
    column += first;
    const T *from = b + (ptrdiff_t)column * g.k + k; /* not read where not valid */
#pragma unroll(sizeof(T) < 4 ? 8 : 32)
    for (int r = 0; r < BN && (step <= BN || first < BN); r += step) {
        const bool valid = (k < g.k) & (column + r < g.columns);
        gcpi_copy_async<VEC>((r % 8 ? other : to) + (GCPI_BM + r) * words * each, valid ? from + (ptrdiff_t)r * g.k : b,
                             valid);
    }
}

/* Sums of a tile's results and of their squares, a column each, as gcpi_sum_blocks_kernel adds them up once they are
   stored: the same pixels to a thread, in the same order. Results go through shared memory, WIDE columns at a time. */
template <int BN, class P>
GCPI_DEVICE void gcpi_gather_stats(const P &product, const gcpi_tiling &g, const gcpi_place *pixels, int column,
                                   float *tile)
{
    enum { WIDE = BN < 64 ? BN : 64, PITCH = WIDE + 8 };
    const int across = (g.columns + BN - 1) / BN, wide = g.sum_columns, row = threadIdx.x / wide;
#pragma unroll 1
    for (int at = 0; at < BN; at += WIDE) {
        __syncthreads();
        product.each([&](int r, int c, const float *sums, int count) {
            if (c < at || c >= at + WIDE) return;
            for (int i = 0; i < count; i++, c++) {
                const float v = g.bias && c < g.columns - column ? sums[i] + g.bias[column + c] : sums[i];
                tile[r * PITCH + c - at] = pixels[r].out < 0 ? 0 : gcpi_settled(v, g.out.half);
            }
        });
        __syncthreads();
#pragma unroll 1
        for (int strip = 0; strip < WIDE; strip += 32) {
            const int c = strip + threadIdx.x % wide;
            double sums[2] = {};
#pragma unroll 4
            for (int r = row; r < GCPI_BM; r += GCPI_THREADS / wide) gcpi_add_value(sums, tile[r * PITCH + c]);
            gcpi_add_rows<2>(sums, wide, column + at + c, g.columns, blockIdx.x / across, g.end.partial);
        }
    }
}

/* Stores V neighbouring results of a pixel, with what end does to them: rounded in between, where they are halves. */
template <int V>
GCPI_DEVICE void gcpi_gather_store(const gcpi_tiling &g, ptrdiff_t pixel, ptrdiff_t out, int c, const float *sums)
{
    if (c >= g.columns) return;
    const gcpi_cuda_array to = gcpi_at(g.out, out + c);
    float v[V], other[V] = {}, there[V] = {};
    if (g.end.other.data) gcpi_load<V>(other, gcpi_at(g.end.other, pixel * g.end.other.pitch + c));
    if (g.accumulate) gcpi_load<V>(there, to);
    for (int i = 0; i < V; i++) {
        v[i] = sums[i];
        if (g.bias) v[i] += g.bias[c + i];
        if (g.end.other.data) v[i] = gcpi_settled(v[i], to.half) + other[i];
        if (g.end.rectifier.rectify) v[i] = gcpi_rectified(gcpi_settled(v[i], to.half), g.end.rectifier);
        if (g.accumulate) v[i] = there[i] + v[i];
    }
    gcpi_store<V>(to, v);
}

template <int VEC, int BN, int MATH>
static __global__ void __launch_bounds__(GCPI_THREADS, 2) gcpi_gather_kernel(gcpi_tiling g)
{
    GCP_DYN_SHARED(float, stages); /* gcpi_stages of a [128][words of a K-block], b [BN][as many] */
    __shared__ gcpi_place pixels[GCPI_BM];
    if (gcpi_is_empty(MATH)) return;
    const int across = (g.columns + BN - 1) / BN; /* blocks that share pixels run together */
    const int column = (int)(blockIdx.x % across) * BN;
    const ptrdiff_t first = (ptrdiff_t)(blockIdx.x / across) * GCPI_BM;
    if (threadIdx.x < GCPI_BM) pixels[threadIdx.x] = gcpi_gather_pixel(g, first + threadIdx.x);
    __syncthreads();

    const int k0 = threadIdx.x % (gcpi_block_terms(MATH) / VEC) * VEC;
    gcpi_walk tap = gcpi_walk_at(k0, g.taps_w, g.channels);
    gcpi_tile_sums<BN, true, MATH> product;
    gcpi_rounds<MATH, GCPI_BM, BN>(product, stages, g.k, [&](int k, float *a) {
        gcpi_gather_load<VEC, BN, MATH>(g, pixels, column, tap, k + k0, a);
        gcpi_walk_on(&tap, g.step, g.taps_w, g.channels);
    });
    product.each([&](int r, int c, const float *sums, int count) {
        c += column;
        if (pixels[r].out < 0) return;
        if (count == 2 && g.pairs) gcpi_gather_store<2>(g, first + r, pixels[r].out, c, sums);
        else
            for (int i = 0; i < count; i++) gcpi_gather_store<1>(g, first + r, pixels[r].out, c + i, sums + i);
    });
    if (g.end.partial) gcpi_gather_stats<BN>(product, g, pixels, column, stages);
}

/* Backward data wants its weights as [phase][ci][tap of the phase][co]; the phase of tap (ky, kx) is (qy, qx) = (ky
   % sh, kx % sw). Per axis, q has the taps q, q + stride, ... */
GCPI_BOTH int gcpi_tap_count(int q, int kernel, int stride)
{
    return q < kernel ? (kernel - q + stride - 1) / stride : 0;
}

GCPI_BOTH ptrdiff_t gcpi_phase_start(const gcpi_cuda_conv &c, int qy, int qx)
{
    const int rows = c.kh / c.sh * qy + (c.kh % c.sh < qy ? c.kh % c.sh : qy); /* taps before */
    const int cols = c.kw / c.sw * qx + (c.kw % c.sw < qx ? c.kw % c.sw : qx);
    return (ptrdiff_t)(rows * c.kw + cols * gcpi_tap_count(qy, c.kh, c.sh)) * c.ci * c.co;
}

static __global__ void __launch_bounds__(GCPI_THREADS)
    gcpi_transpose_weights_kernel(gcpi_cuda_conv c, const float *w, gcpi_cuda_array out)
{
    __shared__ float tile[32][33];
    const int across = (c.ci + 31) / 32, tap = blockIdx.x / across;
    const int ky = tap / c.kw, kx = tap % c.kw, qy = ky % c.sh, qx = kx % c.sw;
    const int taps_h = gcpi_tap_count(qy, c.kh, c.sh), taps_w = gcpi_tap_count(qx, c.kw, c.sw);
    const int x = threadIdx.x % 32, co0 = blockIdx.y * 32, ci0 = blockIdx.x % across * 32;
    for (int y = threadIdx.x / 32; y < 32; y += GCPI_THREADS / 32)
        if (co0 + y < c.co && ci0 + x < c.ci)
            tile[y][x] = w[((ptrdiff_t)(co0 + y) * c.kh * c.kw + tap) * c.ci + ci0 + x];
    __syncthreads();
    const ptrdiff_t at = gcpi_phase_start(c, qy, qx) + (ptrdiff_t)(ky / c.sh * taps_w + kx / c.sw) * c.co;
    for (int y = threadIdx.x / 32; y < 32; y += GCPI_THREADS / 32)
        if (ci0 + y < c.ci && co0 + x < c.co)
            gcpi_set(out, at + (ptrdiff_t)(ci0 + y) * taps_h * taps_w * c.co + co0 + x, tile[x][y]);
}

/* ==== src/cuda/kernels/wgrad.h ==== */

/* Backward weights. VEC elements of x at a time go to a tile: 1, or 16 bytes where all is aligned (4 bytes of halves
   where that is), or the 3 channels of a pixel and a zero, so that four are staged. What each block sums follows from
   the shape, so that three channels always go by 3. Where x is of floats and dy of halves, or the reverse, tiles are of
   floats, and VEC is 1 or 3. */

#define GCPI_STAGED(VEC) ((VEC) == 3 ? 4 : (VEC))
template <int VEC> GCPI_BOTH int gcpi_staged(int k) { return VEC == 3 ? k / 3 * 4 : k; }
template <int VEC> GCPI_DEVICE int gcpi_unstaged(int k) { return VEC == 3 ? k / 4 * 3 + k % 4 : k; }
template <int VEC, class T>
GCPI_DEVICE void gcpi_stage(T *shared, const gcpi_cuda_array &from, ptrdiff_t at, bool valid)
{
    if (VEC == 1) gcpi_copy_one(shared, from, at, valid);
    else if (VEC != 3) gcpi_copy_async<VEC>(shared, (const T *)from.at + at, valid);
    else {
#pragma unroll
        for (int i = 0; i < 4; i++) { /* eight lanes at a time have the same channel: no two meet in a bank */
            const int c = (i + threadIdx.x / 8) % 4;
            const bool there = valid & (c < 3);
            gcpi_copy_one(shared + c, from, at + (there ? c : 0), there);
        }
    }
}

/* Stages BK pixels, p and on of `pixels`: a = what the tile's columns k read of x there, b = dy. A thread copies one
   column (or some), whose tap (0,0)-relative place is tap; pixel walks the rows it copies, call after call. */
template <int VEC, int BN, int THREADS, int BK, class T>
GCPI_DEVICE void gcpi_weights_load(const gcpi_tiling &g, const gcpi_cuda_array &dy, int column, int p, int pixels,
                                   gcpi_walk tap, gcpi_walk *pixel, T *a)
{
    const int staged = GCPI_STAGED(VEC), lanes = GCPI_BM / staged, wide = BN / staged, c = threadIdx.x % wide * staged;
#pragma unroll(sizeof(T) < 4 ? 8 : 32) /* many copies of single halves only make code long */
    for (int i = 0; i < BK; i += THREADS / lanes) {
        const int r = i + threadIdx.x / lanes;
        const int py = pixel->mid * g.ystep + tap.hi, px = pixel->lo * g.xstep + tap.mid;
        const bool valid = (p + r < pixels) & ((unsigned)py < (unsigned)g.h) & ((unsigned)px < (unsigned)g.w);
        ptrdiff_t at = (((ptrdiff_t)pixel->hi * g.h + py) * g.w + px) * g.pitch + tap.lo;
        gcpi_stage<VEC>(a + r * (GCPI_BM + 8) + threadIdx.x % lanes * staged, g.src, valid ? at : 0, valid);
        gcpi_walk_on(pixel, g.step, g.rows, g.cols);
    }
    const int first = threadIdx.x / wide, down = THREADS / wide;
    a += BK * (GCPI_BM + 8) + first * (BN + 8) + c;
    p += first;
#pragma unroll
    for (int r = 0; r < BK && (down <= BK || first < BK); r += down) {
        const bool valid = (p + r < pixels) & (column + c < g.columns);
        const ptrdiff_t from = valid ? (p + r) * g.out_pitch + column + c : 0;
        if (VEC != 3) gcpi_stage<VEC>(a + r * (BN + 8), dy, from, valid);
        else if (g.fours) gcpi_copy_async<4>(a + r * (BN + 8), (const T *)dy.at + from, valid);
        else
            for (int i = 0; i < 4; i++)
                gcpi_copy_one(a + r * (BN + 8) + i, dy, from + i * valid, valid && column + c + i < g.columns);
    }
}

/* One piece of a share: sums K-blocks [first, first + steps) of a tile into out [co][filter]. */
template <int VEC, int BN, int MATH>
GCPI_DEVICE void gcpi_weights_piece(const gcpi_tiling &g, int tile, int first, int steps, float *out, float *stages)
{
    typedef gcpi_tile_sums<BN, false, MATH> sums;
    typedef typename gcpi_operand<MATH>::type T;
    const int across = (g.columns + BN - 1) / BN, column = tile % across * BN, k0 = tile / across * GCPI_BM;
    const int staged = GCPI_STAGED(VEC), lanes = GCPI_BM / staged, k = k0 + threadIdx.x % lanes * staged;
    const int BK = gcpi_block_terms(MATH);
    const ptrdiff_t from = (ptrdiff_t)first * BK, rest = (ptrdiff_t)g.n * g.rows * g.cols - from;
    const int pixels = (int)(rest < (ptrdiff_t)steps * BK ? rest : (ptrdiff_t)steps * BK);
    gcpi_walk tap = gcpi_walk_at(k, g.taps_w, VEC == 3 ? 4 : g.channels);
    tap.hi = k < gcpi_staged<VEC>(g.k) ? tap.hi * g.ytap + g.ybase : -(1 << 30); /* or only zeros */
    tap.mid = tap.mid * g.xtap + g.xbase;
    gcpi_walk pixel = gcpi_walk_at(from + threadIdx.x / lanes, g.rows, g.cols);
    sums product;
    const gcpi_cuda_array dy = gcpi_at(g.b, from * g.out_pitch);
    gcpi_rounds<MATH, GCPI_BM + 8, BN + 8>(product, stages, pixels, [&](int p, float *a) {
        gcpi_weights_load<VEC, BN, sums::THREADS, gcpi_block_terms(MATH)>(g, dy, column, p, pixels, tap, &pixel,
                                                                          (T *)a);
    });
    product.each([&](int r, int c, const float *results, int count) {
        for (int i = 0; i < count; i++, c++) {
            asm volatile("" ::: "memory"); /* one address at a time, or registers spill */
            if (k0 + r >= gcpi_staged<VEC>(g.k) || c >= g.columns - column || (VEC == 3 && r % 4 == 3)) return;
            float *to = out + (ptrdiff_t)(column + c) * g.k + gcpi_unstaged<VEC>(k0 + r);
            *to = g.accumulate ? *to + results[i] : results[i];
        }
    });
}

/* The K-blocks of all tiles lie in a row, and a block's share is `length` of them: the end of one tile, whole ones,
   the beginning of another. A tile's pieces go to partial sums 0, 1, ... in order of the blocks. */
template <int VEC, int BN, int MATH>
static __global__ void __launch_bounds__(gcpi_tile_sums<BN, false, MATH>::THREADS, 2)
    gcpi_weights_kernel(gcpi_tiling g, ptrdiff_t work)
{
    GCP_DYN_SHARED(float, stages); /* gcpi_stages of a [BK][128+8], b [BK][BN+8] */
    if (gcpi_is_empty(MATH)) return;
    ptrdiff_t at = (ptrdiff_t)blockIdx.x * g.length, end = at + g.length < work ? at + g.length : work;
#pragma unroll 1
    while (at < end) {
        const int tile = (int)(at / g.steps), first = (int)(at - (ptrdiff_t)tile * g.steps);
        const int steps = g.steps - first < end - at ? g.steps - first : (int)(end - at);
        const ptrdiff_t piece = blockIdx.x - (ptrdiff_t)tile * g.steps / g.length;
        float *out = (float *)g.out.at + piece * g.columns * g.k;
        gcpi_weights_piece<VEC, BN, MATH>(g, tile, first, steps, out, stages);
        at += steps;
        if (at < end) __syncthreads(); /* the stages are free */
    }
}

/* dw = a tile's partial sums, added in order. */
static __global__ void __launch_bounds__(GCPI_THREADS)
    gcpi_weights_sum_kernel(gcpi_tiling g, int tile_columns, const float *partial, float *dw, int accumulate)
{
    const ptrdiff_t i = (ptrdiff_t)blockIdx.x * GCPI_THREADS + threadIdx.x, count = (ptrdiff_t)g.columns * g.k;
    if (i >= count) return;
    const int column = (int)(i / g.k), at_k = (int)(i - (ptrdiff_t)column * g.k);
    const int k = g.channels == 3 ? gcpi_staged<3>(at_k) : at_k, across = (g.columns + tile_columns - 1) / tile_columns;
    const ptrdiff_t first = (ptrdiff_t)(k / GCPI_BM * across + column / tile_columns) * g.steps;
    const int more = (int)((first + g.steps - 1) / g.length - first / g.length); /* pieces behind the first */
    float sum = partial[i];
#pragma unroll 4
    for (int s = 1; s <= more; s++) sum += partial[s * count + i];
    dw[i] = accumulate ? dw[i] + sum : sum;
}

/* ==== src/cuda/kernels/grouped.h ==== */

/* Convolution: the direct kernels; which kernel runs, with what. The direct ones are for any shape, a thread a result.
   The host side says which kernel, how many blocks, what workspace. */

/* DATA: out = dx, in = dy; otherwise out = y, in = x. */
template <bool DATA> static __global__ void __launch_bounds__(GCPI_THREADS)
    gcpi_direct_kernel(gcpi_cuda_conv c, gcpi_cuda_array in, const float *w, const float *bias, gcpi_cuda_array out,
                       int accumulate)
{
    const int outs = DATA ? c.ci : c.co, rows = DATA ? c.h : c.ho, cols = DATA ? c.w : c.wo;
    const int in_h = DATA ? c.ho : c.h, in_w = DATA ? c.wo : c.w;
    const ptrdiff_t index = (ptrdiff_t)blockIdx.x * GCPI_THREADS + threadIdx.x;
    const ptrdiff_t pixel = index / outs;
    const int channel = (int)(index - pixel * outs), group = channel / (outs / c.groups);
    const int ci = c.ci / c.groups, co = c.co / c.groups, ins = DATA ? co : ci;
    const ptrdiff_t filter = (ptrdiff_t)c.kh * c.kw * ci, step = DATA ? filter : 1;
    const gcpi_walk at = gcpi_walk_at(pixel, rows, cols);
    if (at.hi >= c.n) return;
    w += DATA ? group * co * filter + channel % ci : channel * filter;
    float sum = 0;
    for (int ky = 0; ky < c.kh; ky++)
        for (int kx = 0; kx < c.kw; kx++, w += ci) {
            int y = DATA ? at.mid + c.pt - ky * c.dh : at.mid * c.sh - c.pt + ky * c.dh;
            int x = DATA ? at.lo + c.pl - kx * c.dw : at.lo * c.sw - c.pl + kx * c.dw;
            if (DATA && (y % c.sh || x % c.sw)) continue;
            if (DATA) y /= c.sh, x /= c.sw;
            if (y < 0 || y >= in_h || x < 0 || x >= in_w) continue;
            const ptrdiff_t pixel_in = ((ptrdiff_t)at.hi * in_h + y) * in_w + x;
            const gcpi_cuda_array from = gcpi_at(in, pixel_in * (DATA ? c.ypitch : c.xpitch) + group * ins);
#pragma unroll 2 /* more, and registers spill */
            for (int i = 0; i < ins; i++) sum = fmaf(gcpi_get(from, i), w[i * step], sum);
        }
    if (bias) sum += bias[channel];
    gcpi_set(out, pixel * (DATA ? c.xpitch : c.ypitch) + channel, sum, accumulate);
}

/* Pixels [y*length, (y+1)*length), y = blockIdx.y. Neighbouring threads have neighbouring channels of dy. */
static __global__ void __launch_bounds__(GCPI_THREADS)
    gcpi_direct_weights_kernel(gcpi_cuda_conv c, gcpi_cuda_array x, gcpi_cuda_array dy, float *out, ptrdiff_t length,
                               int accumulate)
{
    const ptrdiff_t index = (ptrdiff_t)blockIdx.x * GCPI_THREADS + threadIdx.x;
    const ptrdiff_t total = (ptrdiff_t)c.n * c.ho * c.wo, first = blockIdx.y * length;
    const ptrdiff_t end = first + length < total ? first + length : total;
    const int ci = c.ci / c.groups, k = c.kh * c.kw * ci;
    const int at_k = (int)(index / c.co), co = (int)(index - (ptrdiff_t)at_k * c.co);
    if (at_k >= k) return;
    const gcpi_walk tap = gcpi_walk_at(at_k, c.kw, ci), step = { 0, 0, 1 };
    const int channel = co / (c.co / c.groups) * ci + tap.lo;
    gcpi_walk at = gcpi_walk_at(first, c.ho, c.wo);
    float sum = 0;
    for (ptrdiff_t p = first; p < end; p++, gcpi_walk_on(&at, step, c.ho, c.wo)) {
        const int iy = at.mid * c.sh - c.pt + tap.hi * c.dh;
        const int ix = at.lo * c.sw - c.pl + tap.mid * c.dw;
        if (iy < 0 || iy >= c.h || ix < 0 || ix >= c.w) continue;
        const ptrdiff_t from = (((ptrdiff_t)at.hi * c.h + iy) * c.w + ix) * c.xpitch + channel;
        sum = fmaf(gcpi_get(x, from), gcpi_get(dy, p * c.ypitch + co), sum);
    }
    out += ((ptrdiff_t)blockIdx.y * c.co + co) * k + at_k;
    *out = accumulate ? *out + sum : sum;
}

/* ---- Host side ---- */

static gcpi_tiling gcpi_gather_forward(const gcpi_cuda_conv *c)
{
    gcpi_tiling g = {};
    g.n = c->n, g.rows = c->ho, g.cols = c->wo;
    g.h = c->h, g.w = c->w, g.channels = c->ci, g.pitch = c->xpitch;
    g.ystep = c->sh, g.ybase = -c->pt, g.ytap = c->dh, g.taps_h = c->kh;
    g.xstep = c->sw, g.xbase = -c->pl, g.xtap = c->dw, g.taps_w = c->kw;
    g.oys = 1, g.oxs = 1, g.out_h = c->ho, g.out_w = c->wo, g.out_pitch = c->ypitch;
    g.columns = c->co, g.k = c->kh * c->kw * c->ci;
    return g;
}

/* Row iy of x is read by outputs oy with oy*sh = iy + pt - ky*dh. For the rows py, py+sh, ... that means, if dh ==
   1, ky = q, q+sh, ..., q = (py+pt) % sh; if sh == 1, every ky. Either way the i-th tap of the j-th of them reads dy
   row j + (py+pt-q)/sh - i*dh. Columns likewise. */
static gcpi_tiling gcpi_gather_data(const gcpi_cuda_conv *c, int py, int px, const gcpi_cuda_array &turned)
{
    const int qy = (py + c->pt) % c->sh, qx = (px + c->pl) % c->sw;
    gcpi_tiling g = {};
    g.n = c->n;
    g.rows = py < c->h ? (c->h - py + c->sh - 1) / c->sh : 0;
    g.cols = px < c->w ? (c->w - px + c->sw - 1) / c->sw : 0;
    g.h = c->ho, g.w = c->wo, g.channels = c->co, g.pitch = c->ypitch;
    g.ystep = 1, g.ybase = (py + c->pt) / c->sh, g.ytap = -c->dh, g.taps_h = gcpi_tap_count(qy, c->kh, c->sh);
    g.xstep = 1, g.xbase = (px + c->pl) / c->sw, g.xtap = -c->dw, g.taps_w = gcpi_tap_count(qx, c->kw, c->sw);
    g.oys = c->sh, g.oy0 = py, g.oxs = c->sw, g.ox0 = px, g.out_h = c->h, g.out_w = c->w, g.out_pitch = c->xpitch;
    g.columns = c->ci, g.k = g.taps_h * g.taps_w * g.channels;
    g.b = gcpi_at(turned, gcpi_phase_start(*c, qy, qx));
    return g;
}

static bool gcpi_conv_direct(const gcpi_cuda_conv *c, int pass)
{
    const bool both = (c->sh > 1 && c->dh > 1) || (c->sw > 1 && c->dw > 1);
    return c->groups != 1 || (pass == GCPI_CUDA_DATA && both);
}

/* Columns of a tile. vec: 3 where there are three channels. */
static int gcpi_tile_columns(int columns, int vec) { return columns > 64 && vec != 3 ? 128 : columns > 32 ? 64 : 32; }

/* How blocks share the pixels of dw, by shape alone, so that the bits do not depend on the device: two full waves of
   GCPI_WAVE, or one where the partial sums of two take too many bytes, or a block a tile. */
struct gcpi_shares { int steps, length, pieces; ptrdiff_t work; }; /* pieces: most partial sums of a tile */
static gcpi_shares gcpi_weights_shares(const gcpi_cuda_conv *c, bool direct, int math)
{
    const ptrdiff_t k = (ptrdiff_t)c->kh * c->kw * (c->ci / c->groups), count = c->co * k;
    const ptrdiff_t columns = gcpi_tile_columns(c->co, c->ci), staged = c->ci == 3 ? gcpi_staged<3>((int)k) : k;
    const ptrdiff_t tiles = direct ? gcpi_blocks(count, GCPI_THREADS)
                                   : gcpi_blocks(staged, GCPI_BM) * gcpi_blocks(c->co, (int)columns);
    const ptrdiff_t terms = gcpi_block_terms(direct ? GCPI_FP32 : math),
                    most = (1 << 30) / terms; /* pixels in an int */
    const ptrdiff_t steps = ((ptrdiff_t)c->n * c->ho * c->wo + terms - 1) / terms;
    gcpi_shares s = { (int)steps, (int)gcpi_least(most, steps), 1, tiles * steps };
    for (int waves = 2; waves > 0 && count > 0; waves--) {
        ptrdiff_t length = (s.work + waves * GCPI_WAVE - 1) / (waves * GCPI_WAVE);
        if (length < GCPI_SHARE_LEAST / terms) length = GCPI_SHARE_LEAST / terms;
        const ptrdiff_t pieces = direct ? (steps + length - 1) / length : (steps + length - 2) / length + 1;
        if (length >= steps || length > most || pieces * count * 4 > GCPI_SHARES_BYTES) continue;
        s.length = (int)length, s.pieces = (int)pieces;
        return s;
    }
    if (steps > most) s.pieces = (int)((steps + most - 2) / most + 1);
    return s;
}
/* How operands are multiplied: halves as they are. */
static int gcpi_math_of(const gcpi_cuda_conv *c, bool halves)
{
    return halves ? GCPI_BF16 : c->tf32 ? GCPI_TF32 : GCPI_FP32;
}
int gcpi_cuda_weights_blocks(const gcpi_cuda_conv *c, int halves)
{
    const gcpi_shares s = gcpi_weights_shares(c, false, gcpi_math_of(c, halves));
    return gcpi_blocks(s.work, s.length);
}

/* The attribute lets a launch have more than 48 KB of shared memory on the current device. To set it clears the last
   error, so it is not set where a launch before has failed. */
static void gcpi_tiling_shared(const void *kernel, int bytes)
{
    if (cudaPeekAtLastError() == cudaSuccess)
        cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, bytes);
}
template <int VEC, int BN, int MATH> static void gcpi_gather_launch(gcpi_tiling g, cudaStream_t stream)
{
    const int blocks = gcpi_blocks((ptrdiff_t)g.n * g.rows * g.cols, GCPI_BM) * gcpi_blocks(g.columns, BN);
    const int shared = 4 * gcpi_stages(MATH) * gcpi_block_words(MATH) * (GCPI_BM + BN);
    gcpi_tiling_shared((const void *)gcpi_gather_kernel<VEC, BN, MATH>, shared);
    g.step = gcpi_walk_at(gcpi_block_terms(MATH), g.taps_w, g.channels);
    GCP_LAUNCH((gcpi_gather_kernel<VEC, BN, MATH>), blocks, GCPI_THREADS, shared, stream, g);
}
template <int VEC, int BN, int MATH> static void gcpi_weights_launch(gcpi_tiling g, cudaStream_t stream)
{
    const int threads = gcpi_tile_sums<BN, false, MATH>::THREADS;
    const int shared = 4 * gcpi_stages(MATH) * gcpi_block_words(MATH) * (GCPI_BM + 8 + BN + 8);
    const int tiles = gcpi_blocks(gcpi_staged<VEC>(g.k), GCPI_BM) * gcpi_blocks(g.columns, BN);
    const ptrdiff_t work = (ptrdiff_t)tiles * g.steps;
    gcpi_tiling_shared((const void *)gcpi_weights_kernel<VEC, BN, MATH>, shared);
    g.step = gcpi_walk_at(threads * GCPI_STAGED(VEC) / GCPI_BM, g.rows, g.cols);
    GCP_LAUNCH((gcpi_weights_kernel<VEC, BN, MATH>), gcpi_blocks(work, g.length), threads, shared, stream, g, work);
}

/* Copies of one element, or of 4 bytes where they are more than one, of 16, of three channels; for columns of 32, 64
   and 128. */
typedef void gcpi_tiling_launcher(gcpi_tiling, cudaStream_t);
enum { GCPI_ONES, GCPI_PAIRS, GCPI_SIXTEENS, GCPI_THREES };
#define GCPI_CONV_TILES(launch, v, math) \
    { launch<v, 32, math>, launch<v, 64, math>, launch<v, (v) == 3 ? 64 : 128, math> }
#define GCPI_CONV_COPIES(launch, pair, sixteen, math) \
    GCPI_CONV_TILES(launch, 1, math), GCPI_CONV_TILES(launch, pair, math), GCPI_CONV_TILES(launch, sixteen, math)
/* What neighbours in k are copied at a time: all of them lie side by side in both operands, dense or of this pitch. */
static int gcpi_copies_of(const gcpi_tiling &g, ptrdiff_t counts, bool halves)
{
    const size_t places = (size_t)g.src.at | (size_t)g.b.at;
    if (counts % (halves ? 8 : 4) == 0 && places % 16 == 0) return GCPI_SIXTEENS;
    return halves && counts % 2 == 0 && places % 4 == 0 ? GCPI_PAIRS : GCPI_ONES;
}
static bool gcpi_by_twos(const gcpi_cuda_array &a, ptrdiff_t pitch)
{
    return !a.at || (pitch % 2 == 0 && (size_t)a.at % (a.half ? 4 : 8) == 0);
}
static void gcpi_gather_run(gcpi_tiling g, int math, cudaStream_t stream)
{
    static gcpi_tiling_launcher *const launch[3][3][3] = {
        { GCPI_CONV_COPIES(gcpi_gather_launch, 1, 4, GCPI_FP32) },
        { GCPI_CONV_COPIES(gcpi_gather_launch, 1, 4, GCPI_TF32) },
        { GCPI_CONV_COPIES(gcpi_gather_launch, 2, 8, GCPI_BF16) }
    };
    g.pairs = g.columns % 2 == 0 && gcpi_by_twos(g.out, g.out_pitch) &&
              gcpi_by_twos(gcpi_at(g.end.other, 0), g.end.other.pitch);
    if (g.n > 0 && g.rows > 0 && g.cols > 0 && g.columns > 0)
        launch[math][gcpi_copies_of(g, g.channels | g.pitch, math == GCPI_BF16)]
              [gcpi_tile_columns(g.columns, 1) / 64](g, stream);
}
static void gcpi_weights_run(gcpi_tiling g, int math, cudaStream_t stream)
{
    static gcpi_tiling_launcher *const launch[3][4][3] = {
        { GCPI_CONV_COPIES(gcpi_weights_launch, 1, 4, GCPI_FP32), GCPI_CONV_TILES(gcpi_weights_launch, 3, GCPI_FP32) },
        { GCPI_CONV_COPIES(gcpi_weights_launch, 1, 4, GCPI_TF32), GCPI_CONV_TILES(gcpi_weights_launch, 3, GCPI_TF32) },
        { GCPI_CONV_COPIES(gcpi_weights_launch, 2, 8, GCPI_BF16), GCPI_CONV_TILES(gcpi_weights_launch, 3, GCPI_BF16) }
    };
    const bool alike = g.src.half == g.b.half;
    const int three = g.channels == 3, copies =
        three ? GCPI_THREES
        : alike ? gcpi_copies_of(g, g.channels | g.pitch | g.columns | g.out_pitch, math == GCPI_BF16) : GCPI_ONES;
    g.fours = alike && (g.columns | g.out_pitch) % 4 == 0 && (size_t)g.b.at % (g.b.half ? 8 : 16) == 0;
    launch[math][copies][gcpi_tile_columns(g.columns, three ? 3 : 1) / 64](g, stream);
}

/* store: of the plan. Which operands hold halves is not known yet: enough for either. */
size_t gcpi_cuda_conv_workspace(const gcpi_cuda_conv *c, int pass, gcp_store store)
{
    const bool direct = gcpi_conv_direct(c, pass);
    const size_t weights = (size_t)c->co * c->kh * c->kw * (c->ci / c->groups) * sizeof(float);
    if (pass == GCPI_CUDA_DATA) return direct ? 0 : weights;
    if (pass != GCPI_CUDA_WEIGHTS) return direct || !store ? 0 : weights / 2;
    size_t pieces = 1;
    for (int halves = 0; halves <= (store == GCP_STORE_BF16); halves++)
        pieces = gcpi_most(pieces, (size_t)gcpi_weights_shares(c, direct, gcpi_math_of(c, halves)).pieces);
    return pieces > 1 ? pieces * weights : 0;
}

/* Halves are multiplied by rounded weights, which go to the workspace. */
static gcpi_cuda_array gcpi_conv_weights(const gcpi_cuda_conv *c, const float *w, bool halves, void *workspace,
                                         cudaStream_t stream)
{
    const gcpi_cuda_array floats = { (void *)(uintptr_t)w, 0 }, rounded = { workspace, 1 };
    const int k = c->kh * c->kw * c->ci;
    const gcp_view none = {};
    gcp_view from = {}, to;
    if (!halves) return floats;
    from.data = floats.at; from.pitch = k; from.shape = { 4, { 1, 1, c->co, k } };
    to = from;
    to.data = workspace; to.dtype = GCP_DTYPE_BF16;
    gcpi_cuda_map(GCPI_FN_COPY, to, from, none, 0, 0, stream);
    return rounded;
}
void gcpi_cuda_conv_forward(const gcpi_cuda_conv *c, gcp_view x, const float *w, const float *bias, gcp_view y,
                            const gcpi_cuda_end *end, void *workspace, cudaStream_t stream)
{
    const ptrdiff_t outputs = (ptrdiff_t)c->n * c->ho * c->wo * c->co;
    gcpi_tiling g = gcpi_gather_forward(c);
    g.src = gcpi_at(x, 0), g.bias = bias, g.out = gcpi_at(y, 0), g.accumulate = y.accumulate;
    g.sum_columns = gcpi_sum_columns(c->co);
    if (end) g.end = *end;
    if (outputs <= 0) return;
    if (gcpi_conv_direct(c, GCPI_CUDA_FORWARD)) {
        GCP_LAUNCH(gcpi_direct_kernel<false>, gcpi_blocks(outputs, GCPI_THREADS), GCPI_THREADS, 0, stream, *c, g.src, w,
                   bias, g.out, y.accumulate);
        return;
    }
    g.b = gcpi_conv_weights(c, w, g.src.half, workspace, stream);
    gcpi_gather_run(g, gcpi_math_of(c, g.src.half), stream);
}

void gcpi_cuda_conv_backward_data(const gcpi_cuda_conv *c, gcp_view dy, const float *w, const float *bias, gcp_view dx,
                                  void *workspace, cudaStream_t stream)
{
    const ptrdiff_t inputs = (ptrdiff_t)c->n * c->h * c->w * c->ci;
    const gcpi_cuda_array from = gcpi_at(dy, 0), to = gcpi_at(dx, 0), turned = { workspace, from.half };
    if (inputs <= 0) return;
    if (gcpi_conv_direct(c, GCPI_CUDA_DATA)) {
        GCP_LAUNCH(gcpi_direct_kernel<true>, gcpi_blocks(inputs, GCPI_THREADS), GCPI_THREADS, 0, stream, *c, from, w,
                   bias, to, dx.accumulate);
        return;
    }
    const dim3 blocks((unsigned)gcpi_blocks(c->ci, 32) * c->kh * c->kw, gcpi_blocks(c->co, 32));
    GCP_LAUNCH(gcpi_transpose_weights_kernel, blocks, GCPI_THREADS, 0, stream, *c, w, turned);
    for (int py = 0; py < c->sh; py++)
        for (int px = 0; px < c->sw; px++) {
            gcpi_tiling g = gcpi_gather_data(c, py, px, turned);
            g.src = from, g.bias = bias, g.out = to, g.accumulate = dx.accumulate;
            if (g.k > 0 || !dx.accumulate) /* pixels that no output reads get zeros, and the bias */
                gcpi_gather_run(g, gcpi_math_of(c, from.half), stream);
        }
}

void gcpi_cuda_conv_backward_weights(const gcpi_cuda_conv *c, gcp_view x, gcp_view dy, gcp_view dw, void *workspace,
                                     cudaStream_t stream)
{
    const bool direct = gcpi_conv_direct(c, GCPI_CUDA_WEIGHTS);
    const int math = gcpi_math_of(c, gcpi_is_half(x) && gcpi_is_half(dy));
    const gcpi_shares shares = gcpi_weights_shares(c, direct, math);
    gcpi_tiling g = gcpi_gather_forward(c);
    g.k = c->kh * c->kw * (c->ci / c->groups);
    const ptrdiff_t count = (ptrdiff_t)c->co * g.k;
    if (count <= 0) return;
    g.src = gcpi_at(x, 0), g.b = gcpi_at(dy, 0), g.out = gcpi_at(dw, 0);
    if (shares.pieces > 1) g.out.at = workspace;
    g.accumulate = dw.accumulate && shares.pieces == 1, g.steps = shares.steps, g.length = shares.length;
    if (direct) {
        const dim3 blocks(gcpi_blocks(count, GCPI_THREADS), shares.pieces);
        GCP_LAUNCH(gcpi_direct_weights_kernel, blocks, GCPI_THREADS, 0, stream, *c, g.src, g.b, (float *)g.out.at,
                   (ptrdiff_t)g.length * gcpi_block_terms(GCPI_FP32), g.accumulate);
        g.steps = shares.pieces, g.length = 1;   /* each tile's pieces: all */
    } else gcpi_weights_run(g, math, stream);
    if (shares.pieces > 1)
        GCP_LAUNCH(gcpi_weights_sum_kernel, gcpi_blocks(count, GCPI_THREADS), GCPI_THREADS, 0, stream, g,
                   gcpi_tile_columns(c->co, c->ci), (const float *)workspace, (float *)dw.data, dw.accumulate);
}

/* ==== src/ops/pointwise_table.h ==== */

/* The pointwise ops, an entry each. It gives y, element by element, and dy/dx. It is all there is of one:
   from it come the enumerator, the functions and macros of gcp.h (pointwise_calls.h), rows and kernels of the CPU
   and of a GPU, and the cases of tests. x, y: input and output; p, q: the numbers that the user gives. Backward
   READS X, Y or NOTHING: the derivative uses nothing else. gcpi_exp1, gcpi_expm11 (of x <= 0), gcpi_log1, gcpi_log1p1
   (of 0 <= x <= 1), gcpi_sqrt1, gcpi_abs1, gcpi_tanh1, gcpi_sigmoid1, gcpi_phi (the normal distribution),
   gcpi_density: of both machines. What a number is, behind the derivative: its field, its default (GCP_ZERO: it must
   be given), the least and the most that it may be, a value for tests. */

/* Parts of entries. */
#define GCPI_LEAST(a, b) ((a) < (b) ? (a) : (b))
#define GCPI_SIXTH ((gcp_real)0.16666666666666667)
#define GCPI_BETWEEN(z, low, high) ((z) < (low) ? (low) : (z) > (high) ? (high) : (z))
#define GCPI_SOFTPLUS(x, p) (((x) > 0 ? (x) : 0) + gcpi_log1p1(gcpi_exp1(-gcpi_abs1((x) * (p)))) / (p))
/* of x s, with s = sigmoid of what has the derivative d */
#define GCPI_SWISH_BACK(x, s, d) ((s) + (x) * (s) * (1 - (s)) * (d))
/* tanh(log(1 + e)), and what it makes of x's derivative; e = exp(x), and above 20 it is 1 */
#define GCPI_MISH(e) ((e) * ((e) + 2) / ((e) * ((e) + 2) + 2))
#define GCPI_MISH_BACK(x, e) \
    (GCPI_MISH(e) + GCPI_LEAST(x, 20) * (4 * (e) * (1 + (e)) / (((e) * ((e) + 2) + 2) * ((e) * ((e) + 2) + 2))))
/* 2 sqrt(2 / pi) (x + 0.044715 x^3) */
#define GCPI_GELU_IN(x) ((x) * ((gcp_real)1.5957691216057308 + (gcp_real)0.071354816272600248 * ((x) * (x))))
#define GCPI_GELU_IN_BACK(x) ((gcp_real)1.5957691216057308 + (gcp_real)0.21406444881780074 * ((x) * (x)))

#define GCPI_POINTWISE(PLAIN, ONE, TWO)                                                                              \
    ONE(SCALE, scale, NOTHING, x * p, p, by, GCP_ZERO, -HUGE_VAL, HUGE_VAL, -1.7)                       /* by x */   \
    PLAIN(NEG, neg, NOTHING, -x, -1)                                                                      /* -x */   \
    PLAIN(ABS, abs, X, gcpi_abs1(x), (gcp_real)((x > 0) - (x < 0)))            /* |x|; its gradient at 0 is 0 */     \
    PLAIN(SQUARE, square, X, x * x, 2 * x)                                                               /* x x */   \
    PLAIN(SQRT, sqrt, Y, gcpi_sqrt1(x), (gcp_real)0.5 / y)                         /* the square root; NaN below 0 */ \
    PLAIN(RECIPROCAL, reciprocal, Y, 1 / x, -y * y)                                                    /* 1 / x */   \
    PLAIN(EXP, exp, Y, gcpi_exp1(x), y)                                                                /* exp x */   \
    PLAIN(LOG, log, X, gcpi_log1(x), 1 / x)                                /* the natural logarithm; NaN below 0 */ \
    PLAIN(TANH, tanh, Y, gcpi_tanh1(x), 1 - y * y)                                                      /* tanh x */ \
    PLAIN(SIGMOID, sigmoid, Y, gcpi_sigmoid1(x), y * (1 - y))                                 /* 1 / (1 + exp(-x)) */ \
    TWO(HARD_SIGMOID, hard_sigmoid, Y, GCPI_BETWEEN(x * p + q, 0, 1), y > 0 && y < 1 ? p : 0,                        \
        slope, 1.0/6, -HUGE_VAL, HUGE_VAL, 0.2, offset, 0.5, -HUGE_VAL, HUGE_VAL, 0.5)                               \
                                                                      /* min(max(slope x + offset, 0), 1) */         \
    ONE(ELU, elu, Y, x > 0 ? x : p * gcpi_expm11(x > 0 ? 0 : x), y > 0 ? 1 : y + p, alpha, 1, 0, HUGE_VAL, 0.8)     \
                                                                  /* x, and alpha (exp(x) - 1) where x is below 0 */ \
    ONE(SOFTPLUS, softplus, Y, GCPI_SOFTPLUS(x, p), -gcpi_expm11(-y * p), beta, 1, 1e-6, HUGE_VAL, 1.5)         \
                                                                              /* log(1 + exp(beta x)) / beta */      \
    PLAIN(SILU, silu, X, x * gcpi_sigmoid1(x), GCPI_SWISH_BACK(x, gcpi_sigmoid1(x), 1))  /* x sigmoid x, or swish */ \
    PLAIN(HARD_SWISH, hard_swish, X, x * (GCPI_BETWEEN(x + 3, 0, 6) * GCPI_SIXTH),                                    \
          x <= -3 ? 0 : x >= 3 ? 1 : x * 2 * GCPI_SIXTH + (gcp_real)0.5)            /* x min(max(x + 3, 0), 6) / 6 */ \
    PLAIN(MISH, mish, X, x * GCPI_MISH(gcpi_exp1(GCPI_LEAST(x, 20))),                                                  \
          GCPI_MISH_BACK(x, gcpi_exp1(GCPI_LEAST(x, 20))))                                  /* x tanh(softplus x) */ \
    PLAIN(GELU, gelu, X, x * gcpi_phi(x), gcpi_phi(x) + x * gcpi_density(x))                    /* x Phi(x), exact */ \
    PLAIN(GELU_TANH, gelu_tanh, X, x * gcpi_sigmoid1(GCPI_GELU_IN(x)),                                               \
          GCPI_SWISH_BACK(x, gcpi_sigmoid1(GCPI_GELU_IN(x)), GCPI_GELU_IN_BACK(x)))                                  \
                                          /* x (1 + tanh(sqrt(2 / pi) (x + 0.044715 x x x))) / 2: gelu's quick form */

/* ==== src/ops/pairs_table.h ==== */

/* The ops of two operands a and b, for both machines. LOOP: what is computed of x, y, z and the op's number p. PAIR:
   which loop, and what its x, y and z are, for the result, for dy times its derivative by a, and by b. prelu: b is the
   slope where a is below 0. Where both are equal the gradient of maximum and minimum goes to both in halves. huber: of
   the difference, a square below p and a slope beyond. logits: binary cross-entropy, b a target in [0, 1], of weight p
   where it is 1. */

#define GCPI_HUBER(d, p) ((d) < (p) ? (gcp_real)0.5 * (d) * (d) / (p) : (d) - (gcp_real)0.5 * (p))
#define GCPI_HUBER_BACK(d, p) ((d) >= (p) ? (gcp_real)((d) > 0) : (d) <= -(p) ? (gcp_real)-1 : (d) / (p))
/* log(1 + exp(x)) */
#define GCPI_SOFT(x) (((x) > 0 ? (x) : 0) + gcpi_log1p1(gcpi_exp1(-gcpi_abs1(x))))

#define GCPI_PAIR_LOOPS(LOOP)                                                                                        \
    LOOP(SUM, sum, x + y)                                                                                            \
    LOOP(DIFFERENCE, difference, x - y)                                                                              \
    LOOP(PRODUCT, product, x * y)                                                                                    \
    LOOP(QUOTIENT, quotient, x / y)                                                                                  \
    LOOP(SAME, same, x)                                                                                              \
    LOOP(MINUS, minus, -x)                                                                                           \
    LOOP(DIVISOR, divisor, -(x * (y / z) / z))                                                                       \
    LOOP(LARGER, larger, x > y ? x : x == x ? y : x)                                                                 \
    LOOP(SMALLER, smaller, x < y ? x : x == x ? y : x)                                                               \
    LOOP(SHARE, share, y < z ? 0 : y == z ? x * (gcp_real)0.5 : x)                                                   \
    LOOP(BENT, bent, x > 0 ? x : x * y)                                                                              \
    LOOP(BENT_X, bent_x, y > 0 ? x : x * z)                                                                          \
    LOOP(BENT_SLOPE, bent_slope, y > 0 ? 0 : x * y)                                                                  \
    LOOP(HUBER, huber, GCPI_HUBER(gcpi_abs1(x - y), p))                                                              \
    LOOP(HUBER_BACK, huber_back, x * GCPI_HUBER_BACK(y - z, p))                                                      \
    LOOP(LOGITS, logits, (1 - y) * x + (1 + (p - 1) * y) * GCPI_SOFT(-x))                                            \
    LOOP(LOGITS_BACK, logits_back, x * ((1 - z) - (1 + (p - 1) * z) * gcpi_sigmoid1(-y)))                            \
    LOOP(LOGITS_TARGET, logits_target, x * ((p - 1) * GCPI_SOFT(-y) - y))

#define GCPI_PAIRS(PAIR)                                                                                             \
    PAIR(ADD, add, SUM, A, B, A, SAME, DY, DY, DY, SAME, DY, DY, DY)                                                 \
    PAIR(SUB, sub, DIFFERENCE, A, B, A, SAME, DY, DY, DY, MINUS, DY, DY, DY)                                         \
    PAIR(MUL, mul, PRODUCT, A, B, A, PRODUCT, DY, B, DY, PRODUCT, DY, A, DY)                                         \
    PAIR(DIV, div, QUOTIENT, A, B, A, QUOTIENT, DY, B, DY, DIVISOR, DY, A, B)                                        \
    PAIR(MAXIMUM, maximum, LARGER, A, B, A, SHARE, DY, A, B, SHARE, DY, B, A)                                        \
    PAIR(MINIMUM, minimum, SMALLER, A, B, A, SHARE, DY, B, A, SHARE, DY, A, B)                                       \
    PAIR(EXPAND, expand, SAME, A, A, A, SAME, DY, DY, DY, SAME, DY, DY, DY)                                          \
    PAIR(PRELU, prelu, BENT, A, B, A, BENT_X, DY, A, B, BENT_SLOPE, DY, A, DY)                                       \
    PAIR(HUBER, huber, HUBER, A, B, A, HUBER_BACK, DY, A, B, HUBER_BACK, DY, B, A)                                   \
    PAIR(LOGITS, logits, LOGITS, A, B, A, LOGITS_BACK, DY, A, B, LOGITS_TARGET, DY, A, DY)

/* Their numbers, and the steps of an op as data: which loop, and where its x, y and z come from. */
#define GCPI_PAIR_NUMBER(NAME, ...) GCPI_PAIR_##NAME,
enum { GCPI_PAIRS(GCPI_PAIR_NUMBER) GCPI_PAIR_COUNT };
#define GCPI_LOOP_NUMBER(NAME, name, value) GCPI_LOOP_##NAME,
enum { GCPI_PAIR_LOOPS(GCPI_LOOP_NUMBER) GCPI_LOOP_COUNT };
enum { GCPI_PAIR_DY, GCPI_PAIR_A, GCPI_PAIR_B };

typedef struct gcpi_pair_step { int loop, x[3]; } gcpi_pair_step;
#define GCPI_PAIR_STEPS(NAME, name, f, f0, f1, f2, a, a0, a1, a2, b, b0, b1, b2)                                     \
    { { GCPI_LOOP_##f, { GCPI_PAIR_##f0, GCPI_PAIR_##f1, GCPI_PAIR_##f2 } },                                         \
      { GCPI_LOOP_##a, { GCPI_PAIR_##a0, GCPI_PAIR_##a1, GCPI_PAIR_##a2 } },                                         \
      { GCPI_LOOP_##b, { GCPI_PAIR_##b0, GCPI_PAIR_##b1, GCPI_PAIR_##b2 } } },

/* ==== src/cuda/kernels/elementwise.h ==== */

/* Elementwise ops, reshape, dropout. */

/* What lines of pointwise_table.h call. */
GCPI_DEVICE float gcpi_exp1(float x) { return expf(x); }
GCPI_DEVICE float gcpi_expm11(float x) { return expm1f(x); }
GCPI_DEVICE float gcpi_log1(float x) { return logf(x); }
GCPI_DEVICE float gcpi_log1p1(float x) { return log1pf(x); }
GCPI_DEVICE float gcpi_abs1(float x) { return fabsf(x); }
GCPI_DEVICE float gcpi_sqrt1(float x) { return sqrtf(x); }
GCPI_DEVICE float gcpi_sigmoid1(float x) { return 1 / (1 + expf(-x)); }
GCPI_DEVICE float gcpi_tanh1(float x) { return tanhf(x); }
GCPI_DEVICE float gcpi_phi(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
GCPI_DEVICE float gcpi_density(float x) { return 0.39894228040143268f * expf(-0.5f * x * x); }

struct gcpi_map { gcp_view to, a, b; float p, q; gcpi_cut cut; };
#define GCPI_POINTWISE_CASE(NAME, name, reads, value, derivative)                             \
    case GCPI_FN_##NAME: { const float x = a; return value; }                                 \
    case GCPI_FN_##NAME##_BACK: { const float x = b, y = b; (void)x; (void)y; return a * (derivative); }
#define GCPI_NUMBERS_CASE(NAME, name, reads, value, derivative, ...) \
    GCPI_POINTWISE_CASE(NAME, name, reads, value, derivative)
template <int FN> GCPI_DEVICE float gcpi_apply(float a, float b, float p, float q)
{
    (void)q;
    switch (FN) {
    case GCPI_FN_ADD: case GCPI_FN_ADD_CHANNEL: return a + b;
    case GCPI_FN_MUL: return a * b;
    case GCPI_FN_FILL: return p;
    case GCPI_FN_FILL_FROM: return b * p;
    case GCPI_FN_ROUND: return gcpi_settled(a, true);
    GCPI_POINTWISE(GCPI_POINTWISE_CASE, GCPI_NUMBERS_CASE, GCPI_NUMBERS_CASE)
    default: return a; /* GCPI_FN_COPY */
    }
}
#undef GCPI_POINTWISE_CASE
#undef GCPI_NUMBERS_CASE
template <int FN, int V> __global__ void gcpi_map_kernel(gcpi_map m)
{
    const size_t i = gcpi_thread();
    if (i >= m.cut.units) return;
    const gcpi_unit u = gcpi_unit_of<V>(i, m.cut.width);
    float a[V] = {}, b[V] = {};
    if (m.a.data) gcpi_load<V>(a, gcpi_at(m.a, u));
    if (FN == GCPI_FN_ADD_CHANNEL) gcpi_load<V>(b, (const float *)m.b.data + u.c);
    else if (FN == GCPI_FN_FILL_FROM) for (int k = 0; k < V; k++) b[k] = *(const float *)m.b.data;
    else if (m.b.data) gcpi_load<V>(b, gcpi_at(m.b, u));
    for (int k = 0; k < V; k++) a[k] = gcpi_apply<FN>(a[k], b[k], m.p, m.q);
    gcpi_store<V>(m.to, u, a);
}
template <int FN> static void gcpi_map_launch(gcpi_map m, cudaStream_t stream)
{
    gcp_view b = m.b;
    if (FN == GCPI_FN_ADD_CHANNEL) b.pitch = 0;  /* one value a channel */
    if (FN == GCPI_FN_FILL_FROM) b.data = NULL;  /* one value */
    m.cut = gcpi_cut_of(m.to, m.a, b, FN != GCPI_FN_ADD_CHANNEL);
    if (m.cut.v == 4) GCPI_EACH((gcpi_map_kernel<FN, 4>), m.cut.units, m);
    else              GCPI_EACH((gcpi_map_kernel<FN, 1>), m.cut.units, m);
}
void gcpi_cuda_map(gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b, float p, float q, cudaStream_t stream)
{
    typedef void launcher(gcpi_map, cudaStream_t);
#define GCPI_POINTWISE_LAUNCH(NAME, name) , gcpi_map_launch<GCPI_FN_##NAME>, gcpi_map_launch<GCPI_FN_##NAME##_BACK>
    static launcher *const launch[] = {          /* in the order of gcpi_cuda_fn */
        gcpi_map_launch<GCPI_FN_COPY>, gcpi_map_launch<GCPI_FN_ADD>, gcpi_map_launch<GCPI_FN_MUL>,
        gcpi_map_launch<GCPI_FN_ADD_CHANNEL>, gcpi_map_launch<GCPI_FN_FILL>, gcpi_map_launch<GCPI_FN_FILL_FROM>,
        gcpi_map_launch<GCPI_FN_ROUND>
        GCP_POINTWISE_OPS(GCPI_POINTWISE_LAUNCH)
    };
#undef GCPI_POINTWISE_LAUNCH
    gcpi_map m = { to, a, b, p, q, { 0, 0, 0 } };
    launch[fn](m, stream);
}

/* apply: batch-norm, addition and rectifier in one pass, each where it is there. A byte of the mask is two threads' of
   four channels each, or that of a thread with eight. */
struct gcpi_applied { gcpi_cuda_apply a; gcpi_cut cut; };
template <int V> GCPI_DEVICE unsigned gcpi_apply_unit(const gcpi_cuda_apply &a, gcpi_unit u)
{
    float x[V], other[V] = {}, mean[V] = {}, scale[V] = {}, gamma[V] = {}, beta[V] = {};
    unsigned bits = 0;
    gcpi_load<V>(x, gcpi_at(a.x, u));
    if (a.other.data) gcpi_load<V>(other, gcpi_at(a.other, u));
    if (a.mean) {
        gcpi_load<V>(mean, a.mean + u.c);
        gcpi_load<V>(scale, a.scale + u.c);
        gcpi_load<V>(gamma, a.gamma + u.c);
        gcpi_load<V>(beta, a.beta + u.c);
    }
    for (int k = 0; k < V; k++) {
        float v = x[k];
        if (a.mean) v = gcpi_settled((v - mean[k]) * (scale[k] * gamma[k]) + beta[k], a.settles);
        if (a.other.data) v = gcpi_settled(v + other[k], a.settles);
        bits |= (unsigned)gcpi_within(v, a.rectifier) << k;
        x[k] = gcpi_rectified(v, a.rectifier);
    }
    gcpi_store<V>(gcpi_at(a.y, u), x);
    return bits;
}
__global__ void gcpi_apply_kernel(gcpi_applied m)
{
    const size_t first = gcpi_thread() * 8;
    unsigned bits = 0;
    for (unsigned k = 0; k < 8 && first + k < m.cut.units; k++)
        bits |= gcpi_apply_unit<1>(m.a, gcpi_unit_of<1>(first + k, m.cut.width)) << k;
    if (m.a.mask && first < m.cut.units) m.a.mask[first / 8] = (unsigned char)bits;
}
__global__ void gcpi_apply_fours_kernel(gcpi_applied m)
{
    const size_t four = gcpi_thread();
    unsigned bits = four < m.cut.units ? gcpi_apply_unit<4>(m.a, gcpi_unit_of<4>(four, m.cut.width)) : 0;
    bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 1) << 4;
    if (m.a.mask && four < m.cut.units && four % 2 == 0) m.a.mask[four / 2] = (unsigned char)bits;
}
void gcpi_cuda_apply_run(const gcpi_cuda_apply *a, cudaStream_t stream)
{
    gcpi_applied m = { *a, gcpi_cut_of(a->y, a->x, a->other, !a->mean) };
    const bool aligned = gcpi_aligned(a->mean) && gcpi_aligned(a->scale) && gcpi_aligned(a->gamma) &&
                         gcpi_aligned(a->beta);
    if (m.cut.v == 4 && aligned) { GCPI_EACH(gcpi_apply_fours_kernel, m.cut.units, m); return; }
    m.cut.units *= (size_t)m.cut.v;
    m.cut.width *= (unsigned)m.cut.v;
    GCPI_EACH(gcpi_apply_kernel, (m.cut.units + 7) / 8, m);
}

/* The rectifier's gradient: by the mask, or by y. */
struct gcpi_rectify {
    gcp_view dx, dy, y;
    const unsigned char *mask;
    gcpi_cuda_rectifier rectifier;
    gcpi_cut cut;
};
template <int V> __global__ void gcpi_rectify_back_kernel(gcpi_rectify r)
{
    const size_t i = gcpi_thread();
    if (i >= r.cut.units) return;
    const gcpi_unit u = gcpi_unit_of<V>(i, r.cut.width);
    const unsigned bits = r.mask ? r.mask[i * V / 8] >> (i * V % 8) : 0;
    float g[V], y[V] = {};
    gcpi_load<V>(g, gcpi_at(r.dy, u));
    if (!r.mask) gcpi_load<V>(y, gcpi_at(r.y, u));
    for (int k = 0; k < V; k++)
        if (r.mask ? (bits >> k & 1) == 0 : !gcpi_within(y[k], r.rectifier)) g[k] = r.rectifier.slope * g[k];
    gcpi_store<V>(r.dx, u, g);
}
void gcpi_cuda_rectify_back(gcp_view dx, gcp_view dy, gcp_view y, const unsigned char *mask,
                            const gcpi_cuda_rectifier *rectifier, cudaStream_t stream)
{
    if (mask) y.data = NULL;
    gcpi_rectify r = { dx, dy, y, mask, *rectifier, gcpi_cut_of(dx, dy, y, true) };
    if (r.cut.v == 4) GCPI_EACH(gcpi_rectify_back_kernel<4>, r.cut.units, r);
    else              GCPI_EACH(gcpi_rectify_back_kernel<1>, r.cut.units, r);
}

/* Same elements in the same order, rows of another length. */
__global__ void gcpi_reshape_kernel(gcp_view to, gcp_view from, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const float v = gcpi_get(gcpi_at(from, gcpi_unit_of<1>(i, (unsigned)from.shape.d[3])), 0);
    gcpi_store<1>(to, gcpi_unit_of<1>(i, (unsigned)to.shape.d[3]), &v);
}
void gcpi_cuda_reshape(gcp_view to, gcp_view from, cudaStream_t stream)
{
    const size_t count = gcpi_count_of(to.shape);
    GCPI_EACH(gcpi_reshape_kernel, count, to, from, count);
}

/* Dropout: Philox 4x32-10 as on the CPU, four elements of one sample a draw. */
GCPI_DEVICE void gcpi_philox(unsigned c[4], uint64_t key)
{
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    for (int round = 0; round < 10; round++) {
        unsigned a_high = __umulhi(0xD2511F53u, c[0]), a_low = 0xD2511F53u * c[0], b_high = __umulhi(0xCD9E8D57u, c[2]),
                 b_low = 0xCD9E8D57u * c[2];
        c[0] = b_high ^ c[1] ^ k0; c[1] = b_low;
        c[2] = a_high ^ c[3] ^ k1; c[3] = a_low;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
}
__global__ void gcpi_dropout_kernel(gcp_view to, gcp_view from, double rate, int per_sample, uint64_t ordinal,
                                    const gcp_step_numbers *numbers, size_t per, size_t groups)
{
    const size_t i = gcpi_thread(), image = i / groups, group = i % groups;
    if (image >= (size_t)to.shape.d[0]) return;
    const uint64_t sample = numbers->first_sample + image;
    const size_t drawn = per_sample ? 0 : group;             /* element 0's draw is all elements' */
    unsigned draw[4] = { (unsigned)drawn, (unsigned)sample, (unsigned)numbers->step,
                         (unsigned)((drawn >> 32) ^ (sample >> 32)) };
    const unsigned limit = (unsigned)(rate * 4294967296.0);
    const float gain = (float)(1.0 / (1.0 - rate));
    gcpi_philox(draw, numbers->seed + 0x9E3779B97F4A7C15u * ordinal);
    for (size_t k = 0; k < 4 && 4 * group + k < per; k++) {
        const gcpi_unit u = gcpi_unit_of<1>(image * per + 4 * group + k, (unsigned)to.shape.d[3]);
        const float v = draw[per_sample ? 0 : k] >= limit ? gcpi_get(gcpi_at(from, u), 0) * gain : 0;
        gcpi_store<1>(to, u, &v);
    }
}
void gcpi_cuda_dropout(gcp_view to, gcp_view from, double rate, int per_sample, uint64_t ordinal,
                       const gcp_step_numbers *numbers, cudaStream_t stream)
{
    size_t per = gcpi_count_of(to.shape) / (size_t)to.shape.d[0], groups = (per + 3) / 4;
    GCPI_EACH(gcpi_dropout_kernel, groups * (size_t)to.shape.d[0], to, from, rate, per_sample, ordinal, numbers, per,
              groups);
}

/* ==== src/cuda/kernels/pairs.h ==== */

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

/* ==== src/cuda/kernels/moves.h ==== */

/* Elements moved by strides: concat and slice along any axis, transpose. */

struct gcpi_moves { gcpi_cuda_moved m; size_t count; };
__global__ void gcpi_moved_kernel(gcpi_moves v)
{
    size_t i = gcpi_thread();
    ptrdiff_t to = 0, from = 0;
    if (i >= v.count) return;
    for (int k = 3; k >= 0; k--) {
        const ptrdiff_t at = (ptrdiff_t)(i % (size_t)v.m.size[k]);
        i /= (size_t)v.m.size[k];
        to += at * v.m.ts[k];
        from += at * v.m.fs[k];
    }
    gcpi_set(v.m.to, to, gcpi_get(v.m.from, from), v.m.accumulate);
}
/* Where `from` lies side by side along another axis (across) than `to` does, 32 by 32 elements go through shared
   memory. */
struct gcpi_turns { gcpi_cuda_moved m; int across, rest[2]; unsigned tiles[2]; };
__global__ void gcpi_turned_kernel(gcpi_turns v)
{
    __shared__ float tile[32][33];
    const unsigned column = threadIdx.x % 32, row = threadIdx.x / 32, rows = (unsigned)v.m.size[v.across],
                   columns = (unsigned)v.m.size[3];
    unsigned block = blockIdx.x;
    const unsigned r = block % v.tiles[0] * 32, c = block / v.tiles[0] % v.tiles[1] * 32;
    block /= v.tiles[0] * v.tiles[1];
    const ptrdiff_t a = (ptrdiff_t)(block % (unsigned)v.m.size[v.rest[0]]),
                    b = (ptrdiff_t)(block / (unsigned)v.m.size[v.rest[0]]);
    const gcpi_cuda_array from = gcpi_at(v.m.from, a * v.m.fs[v.rest[0]] + b * v.m.fs[v.rest[1]]),
                          to = gcpi_at(v.m.to, a * v.m.ts[v.rest[0]] + b * v.m.ts[v.rest[1]]);
    for (unsigned k = row; k < 32; k += 8)
        if (c + k < columns && r + column < rows)
            tile[k][column] = gcpi_get(from, (ptrdiff_t)(c + k) * v.m.fs[3] + r + column);
    __syncthreads();
    for (unsigned k = row; k < 32; k += 8) {
        if (r + k >= rows || c + column >= columns) continue;
        gcpi_set(to, (ptrdiff_t)(r + k) * v.m.ts[v.across] + c + column, tile[column][k], v.m.accumulate);
    }
}
void gcpi_cuda_move(const gcpi_cuda_moved *m, cudaStream_t stream)
{
    gcpi_moves moves = { *m, (size_t)m->size[0] * (size_t)m->size[1] * (size_t)m->size[2] * (size_t)m->size[3] };
    gcpi_turns t = { *m, -1, { 0, 0 }, { 0, 0 } };
    for (int k = 0; k < 3 && m->fs[3] != 1 && m->ts[3] == 1; k++) if (m->fs[k] == 1 && m->size[k] > 1) t.across = k;
    if (t.across < 0) { GCPI_EACH(gcpi_moved_kernel, moves.count, moves); return; }
    for (int k = 0, n = 0; k < 3; k++) if (k != t.across) t.rest[n++] = k;
    t.tiles[0] = gcpi_blocks((size_t)m->size[t.across], 32);
    t.tiles[1] = gcpi_blocks((size_t)m->size[3], 32);
    const unsigned matrices = (unsigned)m->size[t.rest[0]] * (unsigned)m->size[t.rest[1]];
    GCP_LAUNCH(gcpi_turned_kernel, t.tiles[0] * t.tiles[1] * matrices, 256, 0, stream, t);
}

/* ==== src/cuda/kernels/windows.h ==== */

/* Windows: pooling and upsampling. Forward: a thread a unit of the output. Backward: a thread a unit of the input,
   which gathers from the windows over it in the order of the outputs: no atomics, and the order of the CPU's sums. */

struct gcpi_spot { int image, y, x; size_t c; };
template <int V> GCPI_DEVICE gcpi_spot gcpi_spot_of(size_t i, gcp_shape s)
{
    const gcpi_unit u = gcpi_unit_of<V>(i, (unsigned)s.d[3] / V);
    const unsigned h = (unsigned)s.d[1], w = (unsigned)s.d[2];
    const size_t pixel = (size_t)u.pixel, row = gcpi_over(pixel, w), image = gcpi_over(row, h);
    gcpi_spot p = { (int)image, (int)(row - image * h), (int)(pixel - row * w), u.c };
    return p;
}
GCPI_DEVICE gcpi_cuda_array gcpi_at(const gcp_view &v, int image, int y, int x, size_t c)
{
    return gcpi_at(v, (((ptrdiff_t)image * v.shape.d[1] + y) * v.shape.d[2] + x) * v.pitch + (ptrdiff_t)c);
}
template <int V> GCPI_DEVICE void gcpi_load_bytes(unsigned *v, const unsigned char *p)
{
    const unsigned all = V == 4 ? *(const unsigned *)p : *p;
    for (int k = 0; k < V; k++) v[k] = all >> 8 * k & 255;
}
GCPI_DEVICE int gcpi_low(int size, int start) { return start < 0 ? 0 : start < size ? start : size; }

/* Max and average pooling: their tensors, or the gradients of these. which: the cell of each maximum, or NULL. */
struct gcpi_pool { gcpi_cuda_conv a; gcp_view x, y; unsigned char *which; size_t units; };
GCPI_DEVICE float gcpi_share(const gcpi_cuda_conv &a, int oy, int ox)
{
    int top = oy * a.sh - a.pt, left = ox * a.sw - a.pl;
    int cells = (gcpi_low(a.h, top + a.kh) - gcpi_low(a.h, top)) * (gcpi_low(a.w, left + a.kw) - gcpi_low(a.w, left));
    return 1.0f / (float)(cells > 1 ? cells : 1);
}
/* sum += v; lost: what rounding has left out so far (Kahan 1965). The window may be a whole image. */
GCPI_DEVICE void gcpi_add_kept(float *sum, float *lost, float v)
{
    const float more = v - *lost, now = *sum + more;
    const float left = (now - *sum) - more;
    *lost = left == left ? left : 0;                     /* an infinity stays one */
    *sum = now;
}
template <int V, bool MAX> __global__ void gcpi_pool_kernel(gcpi_pool m)
{
    const gcpi_cuda_conv &a = m.a;
    const size_t i = gcpi_thread();
    if (i >= m.units) return;
    const gcpi_spot p = gcpi_spot_of<V>(i, m.y.shape);
    const int top = p.y * a.sh - a.pt, left = p.x * a.sw - a.pl;
    const float share = MAX ? 1 : gcpi_share(a, p.y, p.x);
    float v[V], y[V] = {}, lost[V] = {};
    unsigned cell[V] = {}, cells = 0;
    bool first = true;
    for (int iy = gcpi_low(a.h, top); iy < gcpi_low(a.h, top + a.kh); iy++)
        for (int ix = gcpi_low(a.w, left); ix < gcpi_low(a.w, left + a.kw); ix++, first = false) {
            gcpi_load<V>(v, gcpi_at(m.x, p.image, iy, ix, p.c));
            for (int k = 0; k < V; k++) {
                if (!MAX) { gcpi_add_kept(&y[k], &lost[k], v[k]); continue; }
                if (!first && !(v[k] > y[k])) continue;
                y[k] = v[k];
                cell[k] = (unsigned)((iy - top) * a.kw + ix - left);
            }
        }
    for (int k = 0; k < V && !MAX; k++) y[k] *= share;
    gcpi_store<V>(gcpi_at(m.y, p.image, p.y, p.x, p.c), y);
    for (int k = 0; k < V; k++) cells |= cell[k] << 8 * k;
    if (MAX && m.which && V == 4) ((unsigned *)m.which)[i] = cells;
    else if (MAX && m.which) m.which[i] = (unsigned char)cells;
}

/* Outputs whose windows lie over row (column) i: from gcpi_first to the last at or before (i + pad) / stride. */
GCPI_DEVICE int gcpi_first(int i, int pad, int k, int stride)
{
    const int t = i + pad - k + 1;
    return t <= 0 ? 0 : (t + stride - 1) / stride;
}
template <int V, bool MAX> __global__ void gcpi_pool_back_kernel(gcpi_pool m)
{
    const gcpi_cuda_conv &a = m.a;
    const size_t i = gcpi_thread();
    if (i >= m.units) return;
    const gcpi_spot p = gcpi_spot_of<V>(i, m.x.shape);
    const gcpi_cuda_array to = gcpi_at(m.x, p.image, p.y, p.x, p.c);
    float sum[V] = {}, g[V];
    unsigned which[V] = {};
    if (m.x.accumulate) gcpi_load<V>(sum, to);
    for (int oy = gcpi_first(p.y, a.pt, a.kh, a.sh); oy < a.ho && oy * a.sh - a.pt <= p.y; oy++)
        for (int ox = gcpi_first(p.x, a.pl, a.kw, a.sw); ox < a.wo && ox * a.sw - a.pl <= p.x; ox++) {
            const unsigned cell = (unsigned)((p.y - oy * a.sh + a.pt) * a.kw + p.x - ox * a.sw + a.pl);
            const float share = MAX ? 1 : gcpi_share(a, oy, ox);
            if (MAX && m.which)
                gcpi_load_bytes<V>(which, m.which + (((size_t)p.image * a.ho + oy) * a.wo + ox) * a.co + p.c);
            gcpi_load<V>(g, gcpi_at(m.y, p.image, oy, ox, p.c));
            for (int k = 0; k < V; k++) {
                if (MAX) sum[k] = which[k] == cell ? sum[k] + g[k] : sum[k];
                else sum[k] += g[k] * share;
            }
        }
    gcpi_store<V>(to, sum);
}
template <bool MAX> static void gcpi_pool_launch(gcpi_pool m, bool back, cudaStream_t stream)
{
    const bool four = (uintptr_t)m.which % 4 == 0 && gcpi_cut_of(m.x, m.y, m.y, false).v == 4;
    m.units = gcpi_count_of(back ? m.x.shape : m.y.shape) / (four ? 4 : 1);
    if (back && four) GCPI_EACH((gcpi_pool_back_kernel<4, MAX>), m.units, m);
    else if (back)    GCPI_EACH((gcpi_pool_back_kernel<1, MAX>), m.units, m);
    else if (four)    GCPI_EACH((gcpi_pool_kernel<4, MAX>), m.units, m);
    else              GCPI_EACH((gcpi_pool_kernel<1, MAX>), m.units, m);
}
void gcpi_cuda_max_pool(const gcpi_cuda_conv *c, gcp_view x, gcp_view y, unsigned char *which, int back,
                        cudaStream_t stream)
{
    gcpi_pool_launch<true>({ *c, x, y, which, 0 }, back, stream);
}
void gcpi_cuda_avg_pool(const gcpi_cuda_conv *c, gcp_view x, gcp_view y, int back, cudaStream_t stream)
{
    gcpi_pool_launch<false>({ *c, x, y, NULL, 0 }, back, stream);
}

/* Upsampling: the taps of large pixel o, as on the CPU (half-pixel centres, edges clamped). */
struct gcpi_lerp { int i[2]; float w[2]; };
GCPI_DEVICE gcpi_lerp gcpi_lerp_of(int o, int factor, int size, int bilinear)
{
    gcpi_lerp t;
    double x = bilinear ? fmax(0.0, ((double)o + 0.5) / factor - 0.5) : (double)(o / factor);
    t.i[0] = (int)x;
    t.i[1] = t.i[0] + 1 < size ? t.i[0] + 1 : size - 1;
    t.w[1] = (float)(x - (double)t.i[0]);
    t.w[0] = 1 - t.w[1];
    return t;
}
__global__ void gcpi_upsample_kernel(gcp_view x, gcp_view y, int factor, int bilinear, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const gcpi_spot p = gcpi_spot_of<1>(i, y.shape);
    gcpi_lerp ty = gcpi_lerp_of(p.y, factor, x.shape.d[1], bilinear),
              tx = gcpi_lerp_of(p.x, factor, x.shape.d[2], bilinear);
    float sum = 0;
    for (int t = 0; t < 4; t++) {
        float w = ty.w[t >> 1] * tx.w[t & 1];
        if (w != 0) sum += w * gcpi_get(gcpi_at(x, p.image, ty.i[t >> 1], tx.i[t & 1], p.c), 0);
    }
    gcpi_set(gcpi_at(y, p.image, p.y, p.x, p.c), 0, sum);
}
__global__ void gcpi_upsample_back_kernel(gcp_view dx, gcp_view dy, int factor, int bilinear, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const gcpi_spot p = gcpi_spot_of<1>(i, dx.shape);
    int h = dx.shape.d[1], w = dx.shape.d[2], reach = bilinear ? factor : 0;
    const gcpi_cuda_array to = gcpi_at(dx, p.image, p.y, p.x, p.c);
    float sum = dx.accumulate ? gcpi_get(to, 0) : 0;
    for (int oy = gcpi_low(h * factor, p.y * factor - reach); oy < gcpi_low(h * factor, (p.y + 1) * factor + reach);
         oy++) {
        gcpi_lerp ty = gcpi_lerp_of(oy, factor, h, bilinear);
        for (int ox = gcpi_low(w * factor, p.x * factor - reach); ox < gcpi_low(w * factor, (p.x + 1) * factor + reach);
             ox++) {
            gcpi_lerp tx = gcpi_lerp_of(ox, factor, w, bilinear);
            for (int t = 0; t < 4; t++) {
                float weight = ty.w[t >> 1] * tx.w[t & 1];
                if (weight != 0 && ty.i[t >> 1] == p.y && tx.i[t & 1] == p.x)
                    sum += weight * gcpi_get(gcpi_at(dy, p.image, oy, ox, p.c), 0);
            }
        }
    }
    gcpi_set(to, 0, sum);
}
void gcpi_cuda_upsample(gcp_view x, gcp_view y, int factor, int bilinear, int back, cudaStream_t stream)
{
    const size_t count = gcpi_count_of(back ? x.shape : y.shape);
    if (back) GCPI_EACH(gcpi_upsample_back_kernel, count, x, y, factor, bilinear, count);
    else      GCPI_EACH(gcpi_upsample_kernel, count, x, y, factor, bilinear, count);
}

/* ==== src/cuda/kernels/norms.h ==== */

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

/* ==== src/cuda/kernels/distribution.h ==== */

/* Softmax and its logarithm: a warp a pixel. */

struct gcpi_softmaxed { gcp_view to, y, dy; int logarithm; size_t pixels; };
GCPI_DEVICE size_t gcpi_warp_pixel() { return (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }

__global__ void gcpi_softmax_kernel(gcpi_softmaxed m)                     /* y: what goes in */
{
    const size_t p = gcpi_warp_pixel();
    const int lane = (int)(threadIdx.x % 32), n = m.to.shape.d[3];
    if (p >= m.pixels) return;
    const gcpi_cuda_array x = gcpi_pixel_of(m.y, p), to = gcpi_pixel_of(m.to, p);
    float top = gcpi_get(x, 0);
    double sum = 0;
    for (int i = lane; i < n; i += 32) top = gcpi_get(x, i) > top ? gcpi_get(x, i) : top;
    top = gcpi_warp_max(top);
    for (int i = lane; i < n; i += 32) sum += (double)expf(gcpi_get(x, i) - top);
    sum = gcpi_warp_sum(sum);
    const float share = (float)(1 / sum), all = (float)log(sum);
    for (int i = lane; i < n; i += 32) {
        const float v = gcpi_get(x, i) - top;
        gcpi_set(to, i, m.logarithm ? v - all : expf(v) * share);
    }
}
__global__ void gcpi_softmax_back_kernel(gcpi_softmaxed m)
{
    const size_t p = gcpi_warp_pixel();
    const int lane = (int)(threadIdx.x % 32), n = m.to.shape.d[3];
    if (p >= m.pixels) return;
    const gcpi_cuda_array y = gcpi_pixel_of(m.y, p), dy = gcpi_pixel_of(m.dy, p), to = gcpi_pixel_of(m.to, p);
    double sum = 0;
    for (int i = lane; i < n; i += 32)
        sum += (double)(m.logarithm ? gcpi_get(dy, i) : gcpi_get(y, i) * gcpi_get(dy, i));
    const float all = (float)gcpi_warp_sum(sum);
    for (int i = lane; i < n; i += 32) {
        const float v = gcpi_get(y, i), g = gcpi_get(dy, i);
        gcpi_set(to, i, m.logarithm ? g - expf(v) * all : v * (g - all), m.to.accumulate);
    }
}
void gcpi_cuda_softmax(gcp_view y, gcp_view x, int logarithm, cudaStream_t stream)
{
    gcpi_softmaxed m = { y, x, x, logarithm, gcpi_pixels_of(x.shape) };
    GCP_LAUNCH(gcpi_softmax_kernel, gcpi_blocks(m.pixels, 8), 256, 0, stream, m);
}
void gcpi_cuda_softmax_back(gcp_view dx, gcp_view y, gcp_view dy, int logarithm, cudaStream_t stream)
{
    gcpi_softmaxed m = { dx, y, dy, logarithm, gcpi_pixels_of(y.shape) };
    GCP_LAUNCH(gcpi_softmax_back_kernel, gcpi_blocks(m.pixels, 8), 256, 0, stream, m);
}

/* ==== src/cuda/kernels/attend.h ==== */

/* Attention: tiles of 32 rows and 32 keys. A block of 256 threads makes a tile of scores, eight rows of threads by
   32 keys. Sums go over tiles in order, so the bits depend on the shapes alone; so far they stay in the results'
   memory. Where results are halves their sums are floats in the workspace, 32 tokens for each of GCPI_AT_BLOCKS blocks,
   each of which then makes several results, one after the other. */

enum { GCPI_AT = 32, GCPI_AT_PITCH = 33, GCPI_AT_BLOCKS = 264 };
typedef float gcpi_tile_of[GCPI_AT][GCPI_AT_PITCH];

/* What a block works on: a head of a sample, rows from `row` on and keys from `key` on; end: the sample's end. */
struct gcpi_tile_at { int sample, head, row, key, end; };
GCPI_DEVICE gcpi_cuda_array gcpi_at_head(const gcp_view &v, int sample, int token, int head, int width)
{
    const ptrdiff_t tokens = (ptrdiff_t)v.shape.d[1] * v.shape.d[2];
    return gcpi_at(v, (sample * tokens + token) * v.pitch + (ptrdiff_t)head * width);
}
/* Where results of 32 tokens from `token` on add up: a head's channels, a row each token. to.data NULL: nowhere. */
struct gcpi_at_sums { gcp_view to; float *at; ptrdiff_t pitch; int sample, token, tokens, head, width; };
GCPI_DEVICE gcpi_at_sums gcpi_at_sums_of(const gcp_view &to, float *scratch, int sample, int token, int tokens,
                                         int head, int width)
{
    gcpi_at_sums s = { to, scratch, width, sample, token, tokens, head, width };
    if (to.data && to.dtype != GCP_DTYPE_BF16) {
        s.at = (float *)gcpi_at_head(to, sample, token, head, width).at;
        s.pitch = to.pitch;
    }
    return s;
}
/* This block's part of the workspace, `width` floats a token, behind `skip` of them; NULL where there is none. */
GCPI_DEVICE float *gcpi_at_scratch(const gcpi_cuda_attention &a, int width, int skip)
{
    const size_t at = ((size_t)blockIdx.x * (size_t)width + (size_t)skip) * GCPI_AT;
    return a.workspace ? (float *)a.workspace + at : NULL;
}
GCPI_DEVICE int gcpi_at_last(const gcpi_cuda_attention &a, int sample)
{
    const int end = a.lengths ? a.lengths[sample] : a.keys;
    return end < 0 ? 0 : end < a.keys ? end : a.keys;
}
GCPI_DEVICE bool gcpi_at_seen(const gcpi_cuda_attention &a, const gcpi_tile_at &t, int r, int k)
{
    const int row = t.row + r, key = t.key + k;
    return row < a.rows && key < t.end && (!a.causal || key <= row + a.keys - a.rows);
}
GCPI_DEVICE float *gcpi_at_bias(const gcpi_cuda_attention &a, const gcp_view &v, const gcpi_tile_at &t, int r, int k)
{
    const ptrdiff_t at = ((ptrdiff_t)(t.sample % v.shape.d[0]) * a.heads + t.head) * a.rows + t.row + r;
    return (float *)v.data + at * v.pitch + t.key + k;
}
/* 32 tokens by 32 channels of a head into shared memory, zeros where there are none. */
GCPI_DEVICE void gcpi_at_load(gcpi_tile_of &to, const gcp_view &v, int sample, int token, int tokens, int head,
                              int width, int channel)
{
    const int c = (int)threadIdx.x % GCPI_AT;
    for (int r = (int)threadIdx.x / GCPI_AT; r < GCPI_AT; r += 8)
        to[r][c] = token + r < tokens && channel + c < width
                       ? gcpi_get(gcpi_at_head(v, sample, token + r, head, width), channel + c) : 0;
}
/* s = rows of x times keys of y, over a head's channels. x and y are loaded part by part. */
GCPI_DEVICE void gcpi_at_product(const gcpi_cuda_attention &a, const gcpi_tile_at &t, const gcp_view &x,
                                 const gcp_view &y, int width, gcpi_tile_of &s, gcpi_tile_of &left, gcpi_tile_of &right)
{
    const int k = (int)threadIdx.x % GCPI_AT, first = (int)threadIdx.x / GCPI_AT;
    float sum[4] = {};
    for (int c = 0; c < width; c += GCPI_AT) {
        __syncthreads();
        gcpi_at_load(left, x, t.sample, t.row, a.rows, t.head, width, c);
        gcpi_at_load(right, y, t.sample, t.key, a.keys, t.head / a.group, width, c);
        __syncthreads();
        for (int i = 0; i < 4; i++)
            for (int j = 0; j < GCPI_AT; j++) sum[i] = fmaf(left[first + 8 * i][j], right[k][j], sum[i]);
    }
    for (int i = 0; i < 4; i++) s[first + 8 * i][k] = sum[i];
    __syncthreads();
}
GCPI_DEVICE float gcpi_at_score(const gcpi_cuda_attention &a, const gcpi_tile_at &t, float s, int r, int k)
{
    return s * a.scale + (a.bias.data ? *gcpi_at_bias(a, a.bias, t, r, k) : 0);
}
/* sums += scale times s, or s transposed, times x's 32 tokens. */
GCPI_DEVICE void gcpi_at_add(const gcpi_at_sums &sums, const gcpi_tile_of &s, bool turned, const gcp_view &x, int from,
                             int froms, int from_head, float scale, gcpi_tile_of &part)
{
    const int c = (int)threadIdx.x % GCPI_AT;
    for (int channel = 0; sums.to.data && channel < sums.width; channel += GCPI_AT) {
        __syncthreads();
        gcpi_at_load(part, x, sums.sample, from, froms, from_head, sums.width, channel);
        __syncthreads();
        for (int r = (int)threadIdx.x / GCPI_AT; r < GCPI_AT; r += 8) {
            float sum = 0;
            for (int j = 0; j < GCPI_AT; j++) sum = fmaf(turned ? s[j][r] : s[r][j], part[j][c], sum);
            if (sums.token + r < sums.tokens && channel + c < sums.width)
                sums.at[r * sums.pitch + channel + c] += sum * scale;
        }
    }
}
/* Sums become 0, or what they are times a share of each token's. */
GCPI_DEVICE void gcpi_at_times(const gcpi_at_sums &sums, const float *share)
{
    for (int i = (int)threadIdx.x; i < GCPI_AT * sums.width; i += (int)blockDim.x) {
        const int r = i / sums.width;
        if (sums.token + r >= sums.tokens) continue;
        float *at = sums.at + r * sums.pitch + i % sums.width;
        *at = share ? *at * share[r] : 0;
    }
    __syncthreads();
}
/* A gradient's sums begin with what is there, where that is floats. */
GCPI_DEVICE void gcpi_at_begin(const gcpi_at_sums &sums)
{
    if (sums.to.data && (sums.to.dtype == GCP_DTYPE_BF16 || !sums.to.accumulate)) gcpi_at_times(sums, NULL);
}
/* Sums in the workspace are rounded, or added to what is there. */
GCPI_DEVICE void gcpi_at_end(const gcpi_at_sums &sums)
{
    const bool apart = sums.to.data && sums.to.dtype == GCP_DTYPE_BF16;
    __syncthreads();
    for (int i = (int)threadIdx.x; apart && i < GCPI_AT * sums.width; i += (int)blockDim.x) {
        const int r = i / sums.width, c = i % sums.width;
        if (sums.token + r >= sums.tokens) continue;
        gcpi_set(gcpi_at_head(sums.to, sums.sample, sums.token + r, sums.head, sums.width), c,
                 sums.at[r * sums.pitch + c], sums.to.accumulate);
    }
    __syncthreads();
}

/* Rows' scores of a tile become weights; what they add to the sums, and by how much these shrink. */
GCPI_DEVICE void gcpi_at_weigh(const gcpi_cuda_attention &a, const gcpi_tile_at &t, gcpi_tile_of &s, float *top,
                               float *share, double *sum)
{
    const int r = (int)threadIdx.x;
    if (r >= GCPI_AT) return;
    float most = top[r], before = top[r];
    for (int k = 0; k < GCPI_AT; k++) {
        s[r][k] = gcpi_at_seen(a, t, r, k) ? gcpi_at_score(a, t, s[r][k], r, k) : -INFINITY;
        most = s[r][k] > most ? s[r][k] : most;
    }
    share[r] = before == -INFINITY ? 0 : expf(before - most);
    sum[r] *= (double)share[r];
    for (int k = 0; k < GCPI_AT; k++) {
        s[r][k] = s[r][k] == -INFINITY ? 0 : expf(s[r][k] - most);
        sum[r] += (double)s[r][k];
    }
    top[r] = most;
}
__global__ void __launch_bounds__(GCPI_THREADS, 2) gcpi_attention_kernel(gcpi_cuda_attention a, int blocks, int all)
{
    __shared__ gcpi_tile_of s, left, right;
    __shared__ float top[GCPI_AT], share[GCPI_AT];
    __shared__ double sum[GCPI_AT];
    const int r = (int)threadIdx.x;
    for (int block = (int)blockIdx.x; block < all; block += (int)gridDim.x) {
        gcpi_tile_at t = { block / blocks / a.heads, block / blocks % a.heads, block % blocks * GCPI_AT, 0, 0 };
        const gcpi_at_sums y = gcpi_at_sums_of(a.y, gcpi_at_scratch(a, a.e, 0), t.sample, t.row, a.rows, t.head, a.e);
        t.end = gcpi_at_last(a, t.sample);
        if (r < GCPI_AT) { top[r] = -INFINITY; sum[r] = 0; }
        gcpi_at_times(y, NULL);
        for (t.key = 0; t.key < t.end; t.key += GCPI_AT) {
            gcpi_at_product(a, t, a.q, a.k, a.d, s, left, right);
            gcpi_at_weigh(a, t, s, top, share, sum);
            __syncthreads();
            gcpi_at_times(y, share);
            gcpi_at_add(y, s, false, a.v, t.key, a.keys, t.head / a.group, 1, left);
        }
        __syncthreads();
        if (r < GCPI_AT) {
            share[r] = sum[r] > 0 || sum[r] != sum[r] ? (float)(1 / sum[r]) : 0;
            if (a.all.data && t.row + r < a.rows)
                gcpi_set(gcpi_at_head(a.all, t.sample, t.row + r, t.head, 1), 0, top[r] + (float)log(sum[r]));
        }
        __syncthreads();
        gcpi_at_times(y, share);
        gcpi_at_end(y);
    }
}

/* Of a tile: weights in p, gradients of scores before the scale in g. */
GCPI_DEVICE void gcpi_at_back(const gcpi_cuda_attention &a, const gcpi_tile_at &t, gcpi_tile_of &p, gcpi_tile_of &g,
                              gcpi_tile_of &left, gcpi_tile_of &right, float *dot)
{
    const int k = (int)threadIdx.x % GCPI_AT, r0 = (int)threadIdx.x;
    gcpi_at_product(a, t, a.q, a.k, a.d, p, left, right);
    gcpi_at_product(a, t, a.dy, a.v, a.e, g, left, right);
    if (r0 < GCPI_AT && t.row + r0 < a.rows) {
        const gcpi_cuda_array y = gcpi_at_head(a.y, t.sample, t.row + r0, t.head, a.e),
                              dy = gcpi_at_head(a.dy, t.sample, t.row + r0, t.head, a.e);
        double sum = 0;
        for (int c = 0; c < a.e; c++) sum += (double)(gcpi_get(y, c) * gcpi_get(dy, c));
        dot[r0] = (float)sum;
    }
    __syncthreads();
    for (int r = (int)threadIdx.x / GCPI_AT; r < GCPI_AT; r += 8) {
        const bool seen = gcpi_at_seen(a, t, r, k);
        const float all = seen ? gcpi_get(gcpi_at_head(a.all, t.sample, t.row + r, t.head, 1), 0) : -INFINITY;
        p[r][k] = all == -INFINITY ? 0 : expf(gcpi_at_score(a, t, p[r][k], r, k) - all);
        g[r][k] = all == -INFINITY ? 0 : p[r][k] * (g[r][k] - dot[r]);
    }
    __syncthreads();
}
/* A block: 32 keys of a sample's head of k and v. */
__global__ void __launch_bounds__(GCPI_THREADS, 2)
    gcpi_attention_keys_kernel(gcpi_cuda_attention a, int blocks, int all)
{
    __shared__ gcpi_tile_of p, g, left, right;
    __shared__ float dot[GCPI_AT];
    const int heads = a.heads / a.group;
    float *const for_dk = gcpi_at_scratch(a, a.d + a.e, 0), *const for_dv = gcpi_at_scratch(a, a.d + a.e, a.d);
    for (int block = (int)blockIdx.x; block < all; block += (int)gridDim.x) {
        const int kv = block / blocks % heads;
        gcpi_tile_at t = { block / blocks / heads, 0, 0, block % blocks * GCPI_AT, 0 };
        const gcpi_at_sums dk = gcpi_at_sums_of(a.dk, for_dk, t.sample, t.key, a.keys, kv, a.d),
                           dv = gcpi_at_sums_of(a.dv, for_dv, t.sample, t.key, a.keys, kv, a.e);
        t.end = gcpi_at_last(a, t.sample);
        gcpi_at_begin(dk);
        gcpi_at_begin(dv);
        for (t.head = kv * a.group; t.head < (kv + 1) * a.group; t.head++)
            for (t.row = 0; t.row < a.rows; t.row += GCPI_AT) {
                gcpi_at_back(a, t, p, g, left, right, dot);
                gcpi_at_add(dv, p, true, a.dy, t.row, a.rows, t.head, 1, left);
                gcpi_at_add(dk, g, true, a.q, t.row, a.rows, t.head, a.scale, left);
            }
        gcpi_at_end(dk);
        gcpi_at_end(dv);
    }
}
/* A block: 32 rows of a head; where a bias's gradient is wanted, of all samples that share one, in order. */
__global__ void __launch_bounds__(GCPI_THREADS, 2)
    gcpi_attention_rows_kernel(gcpi_cuda_attention a, int blocks, int together, int all)
{
    __shared__ gcpi_tile_of p, g, left, right;
    __shared__ float dot[GCPI_AT];
    const int k = (int)threadIdx.x % GCPI_AT;
    for (int block = (int)blockIdx.x; block < all; block += (int)gridDim.x)
        for (int i = 0; i < together; i++) {
            const int first = block / blocks / a.heads;
            gcpi_tile_at t = { together > 1 ? first + i * a.dbias.shape.d[0] : first, block / blocks % a.heads,
                               block % blocks * GCPI_AT, 0, 0 };
            const gcpi_at_sums dq = gcpi_at_sums_of(a.dq, gcpi_at_scratch(a, a.d, 0), t.sample, t.row, a.rows,
                                                    t.head, a.d);
            t.end = gcpi_at_last(a, t.sample);
            gcpi_at_begin(dq);
            for (t.key = 0; t.key < a.keys; t.key += GCPI_AT) {
                gcpi_at_back(a, t, p, g, left, right, dot);
                for (int r = (int)threadIdx.x / GCPI_AT; a.dbias.data && r < GCPI_AT; r += 8) {
                    if (t.row + r >= a.rows || t.key + k >= a.keys) continue;
                    float *to = gcpi_at_bias(a, a.dbias, t, r, k);
                    *to = a.dbias.accumulate || i > 0 ? *to + g[r][k] : g[r][k];
                }
                gcpi_at_add(dq, g, false, a.k, t.key, a.keys, t.head / a.group, a.scale, left);
            }
            gcpi_at_end(dq);
        }
}

/* Blocks' results of each kernel: 32 tokens of a head. */
static int gcpi_at_forward(const gcpi_cuda_attention *a) { return a->n * a->heads * gcpi_blocks(a->rows, GCPI_AT); }
static int gcpi_at_keys(const gcpi_cuda_attention *a)
{
    return a->n * (a->heads / a->group) * gcpi_blocks(a->keys, GCPI_AT);
}
static int gcpi_at_blocks(const gcpi_cuda_attention *a, int all)
{
    return a->workspace ? (int)gcpi_least((size_t)all, GCPI_AT_BLOCKS) : all;
}
size_t gcpi_cuda_attention_workspace(const gcpi_cuda_attention *a, int backward)
{
    const size_t rows = gcpi_least((size_t)gcpi_at_forward(a), GCPI_AT_BLOCKS) * (size_t)(backward ? a->d : a->e),
                 keys = backward ? gcpi_least((size_t)gcpi_at_keys(a), GCPI_AT_BLOCKS) * (size_t)(a->d + a->e) : 0;
    return gcpi_most(rows, keys) * GCPI_AT * sizeof(float);
}
void gcpi_cuda_attention_run(const gcpi_cuda_attention *a, cudaStream_t stream)
{
    const int all = gcpi_at_forward(a);
    GCP_LAUNCH(gcpi_attention_kernel, gcpi_at_blocks(a, all), 256, 0, stream, *a, gcpi_blocks(a->rows, GCPI_AT), all);
}
void gcpi_cuda_attention_back(const gcpi_cuda_attention *a, cudaStream_t stream)
{
    const int together = a->dbias.data ? a->n / a->dbias.shape.d[0] : 1, rows = gcpi_at_forward(a) / together,
              keys = gcpi_at_keys(a);
    if (a->dq.data || a->dbias.data)                 /* first: of a tensor that is q and k the others are added */
        GCP_LAUNCH(gcpi_attention_rows_kernel, gcpi_at_blocks(a, rows), 256, 0, stream, *a,
                   gcpi_blocks(a->rows, GCPI_AT), together, rows);
    if (a->dk.data || a->dv.data)
        GCP_LAUNCH(gcpi_attention_keys_kernel, gcpi_at_blocks(a, keys), 256, 0, stream, *a,
                   gcpi_blocks(a->keys, GCPI_AT), keys);
}

/* ==== src/cuda/kernels/lookup.h ==== */

/* Embedding. Backward: positions are sorted by their entry, those of one entry in order (keys: entry << 32 |
   position). Then a block an entry adds the gradients of its positions. */

GCPI_DEVICE size_t gcpi_entry(const int *ids, size_t i, size_t entries)
{
    return ids[i] < 0 || (size_t)ids[i] >= entries ? 0 : (size_t)ids[i];
}
__global__ void gcpi_embedding_kernel(gcp_view y, const int *ids, gcp_view table, size_t entries)
{
    const gcpi_cuda_array from = gcpi_pixel_of(table, gcpi_entry(ids, blockIdx.x, entries)),
                          to = gcpi_pixel_of(y, blockIdx.x);
    for (int c = (int)threadIdx.x; c < table.shape.d[3]; c += (int)blockDim.x) gcpi_set(to, c, gcpi_get(from, c));
}
/* Sorts each 256 keys: a key's place is how many are less. */
__global__ void gcpi_sort_kernel(const int *ids, size_t count, size_t entries, uint64_t *keys)
{
    __shared__ uint64_t block[256];
    const size_t i = gcpi_thread();
    const uint64_t key = i < count ? (uint64_t)gcpi_entry(ids, i, entries) << 32 | i : UINT64_MAX;
    unsigned place = 0;
    block[threadIdx.x] = key;
    __syncthreads();
    for (int k = 0; k < 256; k++) place += block[k] < key;
    if (i < count) keys[(size_t)blockIdx.x * 256 + place] = key;
}
/* Merges pairs of sorted runs: a key moves on by how many of the other run are less. */
__global__ void gcpi_merge_kernel(const uint64_t *from, uint64_t *to, size_t count, size_t run)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const size_t own = i / run, pair = own / 2 * 2 * run, first = (own ^ 1) * run;
    size_t low = first < count ? first : count, high = first + run < count ? first + run : count;
    const size_t begin = low;
    while (low < high) {
        const size_t middle = (low + high) / 2;
        if (from[middle] < from[i]) low = middle + 1;
        else high = middle;
    }
    to[pair + (i - own * run) + (low - begin)] = from[i];
}
__global__ void gcpi_embedding_back_kernel(gcp_view d, const uint64_t *keys, gcp_view dy, size_t count)
{
    const size_t me = blockIdx.x, entry = (size_t)(keys[me] >> 32);
    if (me && keys[me - 1] >> 32 == entry) return;
    for (int c = (int)threadIdx.x; c < d.shape.d[3]; c += (int)blockDim.x) {
        float *to = (float *)d.data + (ptrdiff_t)entry * d.pitch + c, sum = *to;
        for (size_t i = me; i < count && keys[i] >> 32 == entry; i++) sum += gcpi_value(dy, (unsigned)keys[i], c);
        *to = sum;
    }
}
void gcpi_cuda_embedding(gcp_view y, gcp_view ids, gcp_view table, cudaStream_t stream)
{
    GCP_LAUNCH(gcpi_embedding_kernel, (unsigned)gcpi_count_of(ids.shape), 128, 0, stream, y, (const int *)ids.data,
               table, gcpi_pixels_of(table.shape));
}
size_t gcpi_cuda_embedding_workspace(gcp_shape ids) { return 2 * gcpi_count_of(ids) * sizeof(uint64_t); }
void gcpi_cuda_embedding_back(gcp_view d, gcp_view ids, gcp_view dy, void *workspace, cudaStream_t stream)
{
    const gcp_view none = {};
    const size_t count = gcpi_count_of(ids.shape);
    uint64_t *keys = (uint64_t *)workspace, *other = keys + count;
    if (!d.accumulate) gcpi_cuda_map(GCPI_FN_FILL, d, none, none, 0, 0, stream);
    GCPI_EACH(gcpi_sort_kernel, count, (const int *)ids.data, count, gcpi_pixels_of(d.shape), keys);
    for (size_t run = 256; run < count; run *= 2) {
        GCPI_EACH(gcpi_merge_kernel, count, (const uint64_t *)keys, other, count, run);
        uint64_t *merged = other;
        other = keys;
        keys = merged;
    }
    GCP_LAUNCH(gcpi_embedding_back_kernel, (unsigned)count, 128, 0, stream, d, (const uint64_t *)keys, dy, count);
}

/* ==== src/cuda/kernels/losses.h ==== */

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

/* ==== src/cuda/kernels/groups.h ==== */

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

/* ==== src/cuda/kernels/updates.h ==== */

/* Updates. The numbers of the step are read on the device, so that a recorded step sees each step's own. */

void gcpi_cuda_norm_add(gcp_view g, void *workspace, cudaStream_t stream)
{
    double *sum = (double *)workspace;
    gcpi_reduce(g, g, 2, 1, NULL, sum, sum + 1, stream);
}
__global__ void gcpi_norm_finish_kernel(gcp_step_numbers *n, double limit, const double *sum)
{
    double scale = n->gradient_scale, norm = sqrt(*sum) * scale, clip = limit / (norm + 1e-6);
    n->gradient_norm = norm;
    n->gradient_scale = scale * (clip >= 1 ? 1.0 : clip); /* a NaN stays */
}
void gcpi_cuda_norm_finish(gcp_step_numbers *numbers, double limit, const void *workspace, cudaStream_t stream)
{
    GCP_LAUNCH(gcpi_norm_finish_kernel, 1, 1, 0, stream, numbers, limit, (const double *)workspace);
}
/* Gradients as the optimiser takes them. */
template <int V> GCPI_DEVICE void gcpi_clipped(float *g, const gcpi_cuda_update &u, const float *from)
{
    const float scale = (float)u.numbers->gradient_scale, limit = (float)u.clip_value;
    gcpi_load<V>(g, from);
    for (int k = 0; k < V; k++) {
        g[k] *= scale;
        if (limit > 0) g[k] = g[k] > limit ? limit : g[k] < -limit ? -limit : g[k]; /* a NaN stays */
    }
}
/* Whose elements a block has. */
GCPI_DEVICE int gcpi_parameter_of_block(const gcpi_cuda_update &u)
{
    int k = 0;
    while (k + 1 < u.count && blockIdx.x >= u.at[k + 1].block) k++;
    return k;
}
template <int V> GCPI_DEVICE void gcpi_sgd(const gcpi_cuda_update &u, const gcpi_cuda_parameter &p)
{
    const size_t i = ((size_t)(blockIdx.x - p.block) * GCPI_THREADS + threadIdx.x) * V;
    if (i >= p.count) return;
    const float m = (float)u.momentum, rate = (float)(u.numbers->lr * p.rate);
    float g[V], w[V], v[V];
    gcpi_clipped<V>(g, u, p.g + i);
    gcpi_load<V>(w, p.w + i);
    for (int k = 0; k < V; k++) g[k] += (float)p.weight_decay * w[k];
    if (p.s1) {
        gcpi_load<V>(v, p.s1 + i);
        for (int k = 0; k < V; k++) {
            v[k] = m * v[k] + g[k];
            g[k] = u.nesterov ? g[k] + m * v[k] : v[k];
        }
        gcpi_store<V>(p.s1 + i, v);
    }
    for (int k = 0; k < V; k++) w[k] -= rate * g[k];
    gcpi_store<V>(p.w + i, w);
}
static __global__ void gcpi_sgd_kernel(gcpi_cuda_update u)
{
    const int k = gcpi_parameter_of_block(u);
    if (u.at[k].fours) gcpi_sgd<4>(u, u.at[k]);
    else gcpi_sgd<1>(u, u.at[k]);
}

/* What all elements share is made once a block in double: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t), lr * decay. */
struct gcpi_adam_shared {
    float step, unroot, lost;
};
template <int V>
GCPI_DEVICE void gcpi_adam(const gcpi_cuda_update &u, const gcpi_cuda_parameter &p, const gcpi_adam_shared &shared)
{
    const size_t i = ((size_t)(blockIdx.x - p.block) * GCPI_THREADS + threadIdx.x) * V;
    if (i >= p.count) return;
    const float beta1 = (float)u.beta1, rest1 = (float)(1 - u.beta1), beta2 = (float)u.beta2,
                rest2 = (float)(1 - u.beta2), epsilon = (float)u.epsilon,
                decay = u.optimizer == GCP_OPTIMIZER_ADAMW ? 0 : (float)p.weight_decay;
    float g[V], w[V], a[V], b[V];
    gcpi_clipped<V>(g, u, p.g + i);
    gcpi_load<V>(w, p.w + i);
    gcpi_load<V>(a, p.s1 + i);
    gcpi_load<V>(b, p.s2 + i);
    for (int k = 0; k < V; k++) {
        g[k] += decay * w[k];
        a[k] = beta1 * a[k] + rest1 * g[k];
        b[k] = beta2 * b[k] + rest2 * g[k] * g[k];
        w[k] -= shared.lost * w[k] + shared.step * __fdividef(a[k], sqrtf(b[k]) * shared.unroot + epsilon);
    }
    gcpi_store<V>(p.s1 + i, a);
    gcpi_store<V>(p.s2 + i, b);
    gcpi_store<V>(p.w + i, w);
}
static __global__ void gcpi_adam_kernel(gcpi_cuda_update u)
{
    __shared__ gcpi_adam_shared shared;
    const int k = gcpi_parameter_of_block(u);
    const double t = (double)(*u.at[k].updates + 1), lr = u.numbers->lr * u.at[k].rate;
    if (threadIdx.x == 0) shared.step = (float)(lr / (1 - pow(u.beta1, t)));
    if (threadIdx.x == 32) shared.unroot = (float)(1 / sqrt(1 - pow(u.beta2, t)));
    if (threadIdx.x == 64) shared.lost = u.optimizer == GCP_OPTIMIZER_ADAMW ? (float)(lr * u.at[k].weight_decay) : 0;
    __syncthreads();
    if (u.at[k].fours) gcpi_adam<4>(u, u.at[k], shared);
    else gcpi_adam<1>(u, u.at[k], shared);
}
void gcpi_cuda_step(gcpi_cuda_update *u, cudaStream_t stream)
{
    unsigned blocks = 0;
    for (int k = 0; k < u->count; k++) {
        gcpi_cuda_parameter *p = &u->at[k];
        p->fours =
            p->count % 4 == 0 && gcpi_aligned(p->w) && gcpi_aligned(p->s1) && gcpi_aligned(p->s2) && gcpi_aligned(p->g);
        p->block = blocks;
        blocks += (unsigned)gcpi_blocks((ptrdiff_t)p->count, GCPI_THREADS * (p->fours ? 4 : 1));
    }
    if (u->optimizer == GCP_OPTIMIZER_SGD) GCP_LAUNCH(gcpi_sgd_kernel, blocks, GCPI_THREADS, 0, stream, *u);
    else GCP_LAUNCH(gcpi_adam_kernel, blocks, GCPI_THREADS, 0, stream, *u);
}
