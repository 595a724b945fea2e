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
