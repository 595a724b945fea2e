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
