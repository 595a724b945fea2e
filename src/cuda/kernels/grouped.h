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
