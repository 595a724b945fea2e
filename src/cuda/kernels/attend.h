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
