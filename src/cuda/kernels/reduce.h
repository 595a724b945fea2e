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
