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
