/* Attention: tiles of 32 rows and 32 keys. A block of 256 threads makes a tile of scores, eight rows of threads by
   32 keys. Sums go over tiles in order, so the bits depend on the shapes alone; so far they stay in the results'
   memory. */

enum { GCPI_AT = 32, GCPI_AT_PITCH = 33 };
typedef float gcpi_tile_of[GCPI_AT][GCPI_AT_PITCH];

/* What a block works on: a head of a sample, rows from `row` on and keys from `key` on; end: the sample's end. */
struct gcpi_tile_at { int sample, head, row, key, end; };
GCPI_DEVICE float *gcpi_at_head(const gcp_view &v, int sample, int token, int head, int width)
{
    const ptrdiff_t tokens = (ptrdiff_t)v.shape.d[1] * v.shape.d[2];
    return (float *)v.data + (sample * tokens + token) * v.pitch + (ptrdiff_t)head * width;
}
GCPI_DEVICE int gcpi_at_end(const gcpi_cuda_attention &a, int sample)
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
                       ? gcpi_at_head(v, sample, token + r, head, width)[channel + c] : 0;
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
/* to (32 tokens by a head's channels) += s, or s transposed, times x's 32 tokens. */
GCPI_DEVICE void gcpi_at_add(const gcp_view &to, int sample, int token, int tokens, int head, int width,
                             const gcpi_tile_of &s, bool turned, const gcp_view &x, int from, int froms, int from_head,
                             float scale, gcpi_tile_of &part)
{
    const int c = (int)threadIdx.x % GCPI_AT;
    for (int channel = 0; channel < width; channel += GCPI_AT) {
        __syncthreads();
        gcpi_at_load(part, x, sample, from, froms, from_head, width, channel);
        __syncthreads();
        for (int r = (int)threadIdx.x / GCPI_AT; r < GCPI_AT; r += 8) {
            float sum = 0;
            for (int j = 0; j < GCPI_AT; j++) sum = fmaf(turned ? s[j][r] : s[r][j], part[j][c], sum);
            if (token + r < tokens && channel + c < width)
                gcpi_at_head(to, sample, token + r, head, width)[channel + c] += sum * scale;
        }
    }
}
/* A head's channels of 32 tokens become 0, unless they are added to, or are multiplied. */
GCPI_DEVICE void gcpi_at_times(const gcp_view &to, int sample, int token, int tokens, int head, int width,
                               const float *share)
{
    for (int i = (int)threadIdx.x; i < GCPI_AT * width; i += (int)blockDim.x) {
        const int r = i / width;
        if (token + r >= tokens) continue;
        float *at = gcpi_at_head(to, sample, token + r, head, width) + i % width;
        *at = share ? *at * share[r] : 0;
    }
    __syncthreads();
}

__global__ void __launch_bounds__(GCPI_THREADS, 2) gcpi_attention_kernel(gcpi_cuda_attention a, int blocks)
{
    __shared__ gcpi_tile_of s, left, right;
    __shared__ float top[GCPI_AT], share[GCPI_AT];
    __shared__ double sum[GCPI_AT];
    gcpi_tile_at t = { (int)blockIdx.x / blocks / a.heads, (int)blockIdx.x / blocks % a.heads,
                  (int)blockIdx.x % blocks * GCPI_AT, 0, 0 };
    const int r = (int)threadIdx.x;
    t.end = gcpi_at_end(a, t.sample);
    if (r < GCPI_AT) { top[r] = -INFINITY; sum[r] = 0; }
    gcpi_at_times(a.y, t.sample, t.row, a.rows, t.head, a.e, NULL);
    for (t.key = 0; t.key < t.end; t.key += GCPI_AT) {
        gcpi_at_product(a, t, a.q, a.k, a.d, s, left, right);
        if (r < GCPI_AT) {
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
        __syncthreads();
        gcpi_at_times(a.y, t.sample, t.row, a.rows, t.head, a.e, share);
        gcpi_at_add(a.y, t.sample, t.row, a.rows, t.head, a.e, s, false, a.v, t.key, a.keys, t.head / a.group, 1, left);
    }
    __syncthreads();
    if (r < GCPI_AT) {
        share[r] = sum[r] > 0 || sum[r] != sum[r] ? (float)(1 / sum[r]) : 0;
        if (a.all.data && t.row + r < a.rows)
            *gcpi_at_head(a.all, t.sample, t.row + r, t.head, 1) = top[r] + (float)log(sum[r]);
    }
    __syncthreads();
    gcpi_at_times(a.y, t.sample, t.row, a.rows, t.head, a.e, share);
}

/* Of a tile: weights in p, gradients of scores before the scale in g. */
GCPI_DEVICE void gcpi_at_back(const gcpi_cuda_attention &a, const gcpi_tile_at &t, gcpi_tile_of &p, gcpi_tile_of &g,
                              gcpi_tile_of &left, gcpi_tile_of &right, float *dot)
{
    const int k = (int)threadIdx.x % GCPI_AT, r0 = (int)threadIdx.x;
    gcpi_at_product(a, t, a.q, a.k, a.d, p, left, right);
    gcpi_at_product(a, t, a.dy, a.v, a.e, g, left, right);
    if (r0 < GCPI_AT && t.row + r0 < a.rows) {
        const float *y = gcpi_at_head(a.y, t.sample, t.row + r0, t.head, a.e),
                    *dy = gcpi_at_head(a.dy, t.sample, t.row + r0, t.head, a.e);
        double sum = 0;
        for (int c = 0; c < a.e; c++) sum += (double)(y[c] * dy[c]);
        dot[r0] = (float)sum;
    }
    __syncthreads();
    for (int r = (int)threadIdx.x / GCPI_AT; r < GCPI_AT; r += 8) {
        const bool seen = gcpi_at_seen(a, t, r, k);
        const float all = seen ? *gcpi_at_head(a.all, t.sample, t.row + r, t.head, 1) : -INFINITY;
        p[r][k] = all == -INFINITY ? 0 : expf(gcpi_at_score(a, t, p[r][k], r, k) - all);
        g[r][k] = all == -INFINITY ? 0 : p[r][k] * (g[r][k] - dot[r]);
    }
    __syncthreads();
}
/* A block: 32 keys of a sample's head of k and v. */
__global__ void __launch_bounds__(GCPI_THREADS, 2) gcpi_attention_keys_kernel(gcpi_cuda_attention a, int blocks)
{
    __shared__ gcpi_tile_of p, g, left, right;
    __shared__ float dot[GCPI_AT];
    const int kv = (int)blockIdx.x / blocks % (a.heads / a.group);
    gcpi_tile_at t = { (int)blockIdx.x / blocks / (a.heads / a.group), 0, 0, (int)blockIdx.x % blocks * GCPI_AT, 0 };
    t.end = gcpi_at_end(a, t.sample);
    if (a.dk.data && !a.dk.accumulate) gcpi_at_times(a.dk, t.sample, t.key, a.keys, kv, a.d, NULL);
    if (a.dv.data && !a.dv.accumulate) gcpi_at_times(a.dv, t.sample, t.key, a.keys, kv, a.e, NULL);
    for (t.head = kv * a.group; t.head < (kv + 1) * a.group; t.head++)
        for (t.row = 0; t.row < a.rows; t.row += GCPI_AT) {
            gcpi_at_back(a, t, p, g, left, right, dot);
            if (a.dv.data)
                gcpi_at_add(a.dv, t.sample, t.key, a.keys, kv, a.e, p, true, a.dy, t.row, a.rows, t.head, 1, left);
            if (a.dk.data)
                gcpi_at_add(a.dk, t.sample, t.key, a.keys, kv, a.d, g, true, a.q, t.row, a.rows, t.head, a.scale, left);
        }
}
/* A block: 32 rows of a head; where a bias's gradient is wanted, of all samples that share one, in order. */
__global__ void __launch_bounds__(GCPI_THREADS, 2) gcpi_attention_rows_kernel(gcpi_cuda_attention a, int blocks,
                                                                                     int together)
{
    __shared__ gcpi_tile_of p, g, left, right;
    __shared__ float dot[GCPI_AT];
    const int first = (int)blockIdx.x / blocks / a.heads, k = (int)threadIdx.x % GCPI_AT;
    gcpi_tile_at t = { 0, (int)blockIdx.x / blocks % a.heads, (int)blockIdx.x % blocks * GCPI_AT, 0, 0 };
    for (int i = 0; i < together; i++) {
        t.sample = together > 1 ? first + i * a.dbias.shape.d[0] : first;
        t.end = gcpi_at_end(a, t.sample);
        if (a.dq.data && !a.dq.accumulate) gcpi_at_times(a.dq, t.sample, t.row, a.rows, t.head, a.d, NULL);
        for (t.key = 0; t.key < a.keys; t.key += GCPI_AT) {
            gcpi_at_back(a, t, p, g, left, right, dot);
            for (int r = (int)threadIdx.x / GCPI_AT; a.dbias.data && r < GCPI_AT; r += 8) {
                if (t.row + r >= a.rows || t.key + k >= a.keys) continue;
                float *to = gcpi_at_bias(a, a.dbias, t, r, k);
                *to = a.dbias.accumulate || i > 0 ? *to + g[r][k] : g[r][k];
            }
            if (a.dq.data)
                gcpi_at_add(a.dq, t.sample, t.row, a.rows, t.head, a.d, g, false, a.k, t.key, a.keys, t.head / a.group,
                            a.scale, left);
        }
    }
}
void gcpi_cuda_attention_run(const gcpi_cuda_attention *a, cudaStream_t stream)
{
    const int blocks = (a->rows + GCPI_AT - 1) / GCPI_AT;
    GCP_LAUNCH(gcpi_attention_kernel, (unsigned)(a->n * a->heads * blocks), 256, 0, stream, *a, blocks);
}
void gcpi_cuda_attention_back(const gcpi_cuda_attention *a, cudaStream_t stream)
{
    const int rows = (a->rows + GCPI_AT - 1) / GCPI_AT, keys = (a->keys + GCPI_AT - 1) / GCPI_AT,
              together = a->dbias.data ? a->n / a->dbias.shape.d[0] : 1;
    if (a->dq.data || a->dbias.data)                 /* first: of a tensor that is q and k the others are added */
        GCP_LAUNCH(gcpi_attention_rows_kernel, (unsigned)(a->n / together * a->heads * rows), 256, 0, stream, *a, rows,
                   together);
    if (a->dk.data || a->dv.data)
        GCP_LAUNCH(gcpi_attention_keys_kernel, (unsigned)(a->n * (a->heads / a->group) * keys), 256, 0, stream, *a,
                   keys);
}
