/* planted.cu.h - kernels with bugs, each beside its correct twin (the template's argument), and kernels that use every
   feature of the language. Ordinary CUDA but for GCP_DYN_SHARED and the wrappers of PTX. */

enum { TILE = 16 };

/* c = a b, n x n, by tiles. Without the second barrier a tile is overwritten while others read it. */
template <bool SECOND> static __global__ void tiled(const float *a, const float *b, float *c, int n)
{
    __shared__ float ta[TILE][TILE], tb[TILE][TILE];
    int row = static_cast<int>(blockIdx.y * TILE + threadIdx.y),
        column = static_cast<int>(blockIdx.x * TILE + threadIdx.x);
    int y = static_cast<int>(threadIdx.y), x = static_cast<int>(threadIdx.x);
    float sum = 0;
    for (int k0 = 0; k0 < n; k0 += TILE) {
        ta[y][x] = row < n && k0 + x < n ? a[row * n + k0 + x] : 0;
        tb[y][x] = k0 + y < n && column < n ? b[(k0 + y) * n + column] : 0;
        __syncthreads();
        for (int k = 0; k < TILE; k++) sum = fmaf(ta[y][k], tb[k][x], sum);
        if (SECOND) __syncthreads();
    }
    if (row < n && column < n) c[row * n + column] = sum;
}

template <bool BARRIER> static __global__ void neighbour(const float *from, float *to)
{
    __shared__ float s[256];
    s[threadIdx.x] = from[threadIdx.x];
    if (BARRIER) __syncthreads();
    to[threadIdx.x] = threadIdx.x ? s[threadIdx.x - 1] : 0;
}

/* Thread t uses what it copied itself, so that only the wait matters. The second half is filled with zeros. */
template <bool WAIT, int BYTES> static __global__ void staged(const float *from, float *to, int valid)
{
    enum { EACH = BYTES / 4 };
    __shared__ __align__(16) float s[2][256 * EACH];
    int t = static_cast<int>(threadIdx.x);
    for (int i = 0; i < 2; i++) {
        hostcuda_cp_async(&s[i][t * EACH], from + t * EACH, BYTES, t < valid);
        hostcuda_cp_async_commit();
    }
    if (WAIT) hostcuda_cp_async_wait(1);         /* the first group is there, the second need not be */
    for (int i = 0; i < EACH; i++) to[t * EACH + i] = s[0][t * EACH + i];
    if (WAIT) to[256 * EACH + t] = s[1][t * EACH];
    hostcuda_cp_async_wait(0);
    if (s[1][t * EACH] != (t < valid ? from[t * EACH] : 0)) to[0] = -1;
}
/* A 16x8 corner of a tile of 16 x 16 floats, copied and read by one warp; pitch 16, swizzled or not, or 20. */
template <int PITCH, bool SWIZZLED> static __global__ void tile_of_rows(const float *from, float *to)
{
    __shared__ __align__(16) float s[16 * PITCH];
    int lane = static_cast<int>(threadIdx.x);
    for (int i = lane; i < 64; i += 32) {
        int row = i / 4, four = i % 4;
        hostcuda_cp_async(s + row * PITCH + (SWIZZLED ? four ^ (row / 2 & 3) : four) * 4, from + i * 4, 16, true);
    }
    hostcuda_cp_async_commit();
    hostcuda_cp_async_wait(0);
    __syncthreads();
    int row = lane % 16, four = lane / 16;
    float f[4];
    hostcuda_ldmatrix_x4(f, s + row * PITCH + (SWIZZLED ? four ^ (row / 2 & 3) : four) * 4);
    for (int i = 0; i < 4; i++) to[4 * lane + i] = f[i];
}

static __global__ void misaligned(const float *from, float *to)
{
    __shared__ __align__(16) float s[8];
    hostcuda_cp_async(s, from + 1, 16, true);
    hostcuda_cp_async_wait(0);
    to[0] = s[0];
}

static __global__ void two_barriers(float *to)
{
    if (threadIdx.x < 40) __syncthreads();
    else
        __syncthreads();
    to[threadIdx.x] = 1;
}
static __global__ void barrier_and_shuffle(float *to)
{
    float v = 1;
    if (threadIdx.x % 32 == 7) __syncthreads();
    else v = __shfl_xor_sync(0xFFFFFFFFu, v, 1);
    to[threadIdx.x] = v;
}
static __global__ void out_of_mask(float *to, unsigned mask) { to[threadIdx.x] = __shfl_sync(mask, 1.0f, 1); }
static __global__ void masks_differ(float *to)
{
    to[threadIdx.x] = __shfl_sync(threadIdx.x < 16 ? 0x1FFFFu : ~0u, 1.0f, 1);
}
static __global__ void some_leave(float *to)     /* allowed: who has left is waited for by nobody */
{
    if (threadIdx.x % 32 == 9 || threadIdx.x >= 48) return;
    __syncthreads();
    to[threadIdx.x] = static_cast<float>(__shfl_sync(0xFFFFFFFFu, static_cast<int>(threadIdx.x), 3));
    __syncwarp();
}

template <int OVER> static __global__ void global_end(float *to, int n) { if (threadIdx.x < 1) to[n - 1 + OVER] = 1; }
template <int OVER> static __global__ void shared_end(float *to)
{
    __shared__ float guarded[32];
    float *volatile s = guarded;                 /* hides the size from UBSan, so that it is ASan that speaks */
    s[(threadIdx.x + OVER) % (32 + OVER)] = 1;
    to[threadIdx.x] = guarded[threadIdx.x];
}
template <int OVER> static __global__ void dynamic_end(float *to, int n)
{
    GCP_DYN_SHARED(float, s);
    for (int i = 0; i < n + OVER; i++) s[i] = 1;
    to[0] = s[0];
}
static __global__ void uninitialised(float *to) { GCP_DYN_SHARED(float, s); to[blockIdx.x] = s[0]; s[0] = 3; }

static __global__ void nothing(void) {}
static __global__ void add(float *p, float by, int n)
{
    for (int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x); i < n;
         i += static_cast<int>(gridDim.x * blockDim.x))
        p[i] += by;
}
static __global__ void scale(float *to, const float *from, const float *by, int n)
{
    for (int i = static_cast<int>(threadIdx.x); i < n; i += static_cast<int>(blockDim.x)) to[i] = from[i] * *by;
}
static __global__ void order_of(int *seen, int *next)
{
    seen[atomicAdd(next, 1)] = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
}
static __global__ void where(int *to)            /* every thread of a 3-dimensional launch once */
{
    unsigned block = (blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
    unsigned thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
    to[block * (blockDim.x * blockDim.y * blockDim.z) + thread]++;
}

/* Per lane: results of all collectives. */
static __global__ void collectives(double *to)
{
    int lane = static_cast<int>(threadIdx.x % 32);
    double *r = to + threadIdx.x * 12;
    unsigned half = lane < 16 ? 0xFFFFu : 0xFFFF0000u;
    r[0] = __shfl_sync(~0u, lane * 1.5, 5);
    r[1] = __shfl_xor_sync(~0u, lane, 3);
    r[2] = __shfl_down_sync(~0u, static_cast<unsigned>(lane), 4);
    r[3] = static_cast<double>(__shfl_up_sync(~0u, static_cast<float>(lane), 2));
    r[4] = __shfl_sync(~0u, lane, 2, 8);
    r[5] = __shfl_down_sync(~0u, lane, 3, 8);
    r[6] = __ballot_sync(~0u, lane % 3 == 0);
    r[7] = __any_sync(half, lane == 3);          /* the halves apart */
    r[8] = __all_sync(half, lane < 16);
    int sum = lane;
    for (int by = 8; by; by /= 2) sum += __shfl_xor_sync(half, sum, by);
    __syncwarp();
    r[9] = sum;
    if (lane < 4) r[10] = __shfl_sync(0xFu, lane, 3); /* the others are elsewhere */
    else r[10] = __ballot_sync(0xFFFFFFF0u, 1);
    r[11] = __shfl_up_sync(~0u, lane, 1, 4);
}

static __global__ void one_mma(const float *a, const float *b, float *d)
{
    int g = static_cast<int>(threadIdx.x) / 4, t = static_cast<int>(threadIdx.x) % 4;
    float sum[4] = {d[g * 8 + 2 * t], d[g * 8 + 2 * t + 1], d[(g + 8) * 8 + 2 * t], d[(g + 8) * 8 + 2 * t + 1]};
    unsigned fa[4], fb[2];
    for (int i = 0; i < 4; i++) fa[i] = hostcuda_to_tf32(a[(g + i % 2 * 8) * 8 + t + i / 2 * 4]);
    for (int i = 0; i < 2; i++) fb[i] = hostcuda_to_tf32(b[(t + 4 * i) * 8 + g]);
    hostcuda_mma_m16n8k8_tf32(sum, fa, fb);
    d[g * 8 + 2 * t] = sum[0]; d[g * 8 + 2 * t + 1] = sum[1];
    d[(g + 8) * 8 + 2 * t] = sum[2]; d[(g + 8) * 8 + 2 * t + 1] = sum[3];
}

/* d += a b of 16x16 and 16x8 halves that lie as [k][row]. TURNED: as they must be read, else they are not
   transposed. */
template <bool TURNED> static __global__ void mma_of_halves(const float *a, const float *b, float *d)
{
    __shared__ __align__(16) unsigned short s[2][16][24];
    int lane = static_cast<int>(threadIdx.x), g = lane / 4, t = lane % 4;
    for (int i = lane; i < 256; i += 32) s[0][i % 16][i / 16] = hostcuda_to_bf16(a[i]);
    for (int i = lane; i < 256; i += 32)
        s[1][i / 16][i % 16] = i % 16 < 8 ? hostcuda_to_bf16(b[i / 16 * 8 + i % 16]) : 0;
    __syncthreads();
    float sum[4] = {d[g * 8 + 2 * t], d[g * 8 + 2 * t + 1], d[(g + 8) * 8 + 2 * t], d[(g + 8) * 8 + 2 * t + 1]};
    unsigned r[2][4];
    const unsigned short *at[2] = { &s[0][lane % 8 + lane / 16 * 8][lane / 8 % 2 * 8],
                                    &s[1][lane % 8 + lane / 8 % 2 * 8][lane / 16 * 8] };
    for (int i = 0; i < 2; i++) {
        float f[4];
        if (TURNED) hostcuda_ldmatrix_x4_trans(r[i], at[i]);
        else hostcuda_ldmatrix_x4(f, reinterpret_cast<const float *>(at[i]));
        for (int k = 0; k < 4 && !TURNED; k++) r[i][k] = __float_as_uint(f[k]);
    }
    hostcuda_mma_m16n8k16_bf16(sum, r[0], r[1]);
    d[g * 8 + 2 * t] = sum[0]; d[g * 8 + 2 * t + 1] = sum[1];
    d[(g + 8) * 8 + 2 * t] = sum[2]; d[(g + 8) * 8 + 2 * t + 1] = sum[3];
}
static __global__ void half_a_warp(float *d)
{
    float sum[4] = {};
    unsigned r[4] = {};
    hostcuda_mma_m16n8k16_bf16(sum, r, r);
    d[threadIdx.x] = sum[0];
}

/* c = a b of 128 x 128 tiles, k by 16 in two stages: the shape of a real kernel, to measure. */
static __global__ void mma_gemm(const float *a, const float *b, float *c, int n)
{
    GCP_DYN_SHARED(float, s);                    /* two stages of a [128][20] and b [16][136] */
    const int stage = 128 * 20 + 16 * 136;
    int t = static_cast<int>(threadIdx.x), lane = t % 32, warp = t / 32, g = lane / 4, q = lane % 4;
    int row0 = static_cast<int>(blockIdx.y) * 128, column0 = static_cast<int>(blockIdx.x) * 128;
    float sum[4][4][4] = {};                     /* a warp: 64 x 32 */
    auto load = [&](int k0) {
        float *sa = s + k0 / 16 % 2 * stage, *sb = sa + 128 * 20;
        for (int i = t; i < 128 * 4; i += 256)
            hostcuda_cp_async(sa + i / 4 * 20 + i % 4 * 4, a + (row0 + i / 4) * n + k0 + i % 4 * 4, 16, true);
        for (int i = t; i < 16 * 32; i += 256)
            hostcuda_cp_async(sb + i / 32 * 136 + i % 32 * 4, b + (k0 + i / 32) * n + column0 + i % 32 * 4, 16, true);
    };
    load(0);
    hostcuda_cp_async_commit();
    for (int k0 = 0; k0 < n; k0 += 16) {
        if (k0 + 16 < n) load(k0 + 16);
        hostcuda_cp_async_commit();
        hostcuda_cp_async_wait(1);
        __syncthreads();
        const float *sa = s + k0 / 16 % 2 * stage + warp / 4 * 64 * 20,
                    *sb = s + k0 / 16 % 2 * stage + 128 * 20 + warp % 4 * 32;
        for (int k = 0; k < 16; k += 8) {
            unsigned fa[4][4], fb[4][2];
            for (int i = 0; i < 4; i++)
                for (int e = 0; e < 4; e++)
                    fa[i][e] = hostcuda_to_tf32(sa[(i * 16 + g + e % 2 * 8) * 20 + k + q + e / 2 * 4]);
            for (int j = 0; j < 4; j++)
                for (int e = 0; e < 2; e++) fb[j][e] = hostcuda_to_tf32(sb[(k + q + 4 * e) * 136 + j * 8 + g]);
            for (int i = 0; i < 4; i++)
                for (int j = 0; j < 4; j++) hostcuda_mma_m16n8k8_tf32(sum[i][j], fa[i], fb[j]);
        }
        __syncthreads();
    }
    for (int i = 0; i < 4; i++)
        for (int j = 0; j < 4; j++)
            for (int e = 0; e < 4; e++)
                c[(row0 + warp / 4 * 64 + i * 16 + g + e / 2 * 8) * n + column0 + warp % 4 * 32 + j * 8 + 2 * q +
                  e % 2] = sum[i][j][e];
}

static __global__ void numbers(float *f, unsigned *u)
{
    float4 v = make_float4(1, 2, 3, 4);
    uint2 w = make_uint2(7, 9);
    f[0] = v.x + v.y + v.z + v.w; f[1] = __fmaf_rn(2, 3, 4); f[2] = rsqrtf(16);
    f[3] = min(2.0f, 1.0f) + max(3.0f, 4.0f);
    f[4] = __fadd_rn(1, __fmul_rn(2, 3)); f[5] = __ldg(&v.z); f[6] = __uint_as_float(0x40490FDBu); f[7] = 0;
    f[8] = atomicAdd(&f[7], 2.5f) + atomicAdd(&f[7], 1.0f);
    u[0] = __umulhi(0x80000001u, 6); u[1] = __float_as_uint(1.0f); u[2] = static_cast<unsigned>(__popc(0xF0Fu));
    u[3] = static_cast<unsigned>(__clz(1)); u[4] = static_cast<unsigned>(__ffs(8)); u[5] = w.x + w.y;
    u[6] = static_cast<unsigned>(max(min(3, 5), 2) + (__clz(0) == 32)); u[7] = max(3u, 5u);
}
