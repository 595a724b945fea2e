/* Convolutions and matrix products in all passes. Each is a gather product, an outer product or depthwise. */

static int gcpi_conv_empty(const gcpi_conv *c)
{
    return c->n <= 0 || c->h <= 0 || c->w <= 0 || c->ho <= 0 || c->wo <= 0;
}
static int gcpi_conv_is_depthwise(const gcpi_conv *c)
{
    return c->groups > 1 && c->ci == c->groups && c->co == c->groups && c->sh * (ptrdiff_t)c->sw <= GCPI_PHASES;
}

/* Steps from image to image, row to row, pixel to pixel. */
static void gcpi_steps(ptrdiff_t *s, int h, int w, ptrdiff_t pitch)
{
    s[2] = pitch;
    s[1] = w * pitch;
    s[0] = h * s[1];
}

static gcpi_view gcpi_conv_view(const gcpi_conv *c)
{
    gcpi_view v;
    memset(&v, 0, sizeof v);
    v.n = c->n, v.h = c->h, v.w = c->w, v.channels = c->ci / c->groups;
    gcpi_steps(v.xs, c->h, c->w, c->xpitch);
    v.xc = 1;
    v.oy = -c->pt, v.sy = c->sh, v.ky = c->kh, v.dy = c->dh, v.ho = c->ho;
    v.ox = -c->pl, v.sx = c->sw, v.kx = c->kw, v.dx = c->dw, v.wo = c->wo;
    return v;
}

static gcpi_gather gcpi_conv_gather(const gcpi_conv *c)
{
    gcpi_gather g;
    memset(&g, 0, sizeof g);
    g.v = gcpi_conv_view(c);
    g.groups = c->groups;
    g.ws[2] = 1, g.ws[1] = g.v.channels, g.ws[0] = c->kw * g.ws[1], g.ws[3] = c->kh * g.ws[0];
    gcpi_steps(g.ys, c->ho, c->wo, c->ypitch);
    g.xgroup = g.v.channels, g.ygroup = c->co / c->groups, g.wgroup = g.ygroup * g.ws[3];
    return g;
}

/* Along one axis, the gradient at positions i, i + s, i + 2s, ... is a stride-1 convolution of dy
 * with every tap that reaches them, last tap first. */
typedef struct gcpi_phase {
    int count, taps, last, step, origin, dilation;
} gcpi_phase;

/* The x with a x = b modulo m, where a and m have no common divisor (Euclid's algorithm, which also tracks the factor
   of a). */
static int64_t gcpi_congruent(int64_t a, int64_t b, int64_t m)
{
    int64_t high = m, low = a % m, was = 0, is = 1;
    while (low > 0) {
        int64_t times = high / low, rest = high % low, next = was - times * is;
        high = low; low = rest; was = is; is = next;
    }
    return ((b % m) * ((was % m + m) % m)) % m;
}

static gcpi_phase gcpi_phase_of(int i, int size, int k, int stride, int pad, int dilation)
{
    gcpi_phase p;
    int common = gcpi_divisor(dilation, stride);
    int64_t at = (int64_t)i + pad,
            first = at % common ? k : gcpi_congruent(dilation / common, at / common, stride / common);
    p.count = gcpi_ceil(size - i, stride);
    p.step = stride / common;
    p.taps = first < k ? (int)((k - 1 - first) / p.step) + 1 : 0;
    p.last = p.taps ? (int)first + (p.taps - 1) * p.step : 0;
    p.origin = p.taps ? (int)((at - (int64_t)p.last * dilation) / stride) : 0;
    p.dilation = dilation / common;
    return p;
}

static gcpi_gather gcpi_conv_phase(const gcpi_conv *c, int y, int x)
{
    gcpi_phase py = gcpi_phase_of(y, c->h, c->kh, c->sh, c->pt, c->dh);
    gcpi_phase px = gcpi_phase_of(x, c->w, c->kw, c->sw, c->pl, c->dw);
    int reached = py.taps && px.taps, ci = c->ci / c->groups, co = c->co / c->groups;
    ptrdiff_t row = (ptrdiff_t)c->kw * ci;
    gcpi_gather g;
    memset(&g, 0, sizeof g);
    g.groups = c->groups;
    g.v.n = c->n, g.v.h = c->ho, g.v.w = c->wo, g.v.channels = reached ? co : 0;
    gcpi_steps(g.v.xs, c->ho, c->wo, c->ypitch);
    g.v.xc = 1;
    g.v.oy = py.origin, g.v.sy = 1, g.v.ky = reached ? py.taps : 1, g.v.dy = py.dilation, g.v.ho = py.count;
    g.v.ox = px.origin, g.v.sx = 1, g.v.kx = reached ? px.taps : 1, g.v.dx = px.dilation, g.v.wo = px.count;
    g.wfirst = reached ? py.last * row + (ptrdiff_t)px.last * ci : 0;
    g.ws[0] = gcpi_stride(-py.step, row), g.ws[1] = gcpi_stride(-px.step, ci), g.ws[2] = c->kh * row, g.ws[3] = 1;
    gcpi_steps(g.ys, c->h, c->w, c->xpitch);
    g.yfirst = y * g.ys[1] + x * g.ys[2];
    g.ys[1] = gcpi_stride(c->sh, g.ys[1]), g.ys[2] = gcpi_stride(c->sw, g.ys[2]);
    g.xgroup = co, g.ygroup = ci, g.wgroup = co * g.ws[2];
    return g;
}

/* Whether x and dy change places in a 1x1 convolution's outer product. Rows are copied and columns are read in place,
 * so the side with fewer channels should be the rows. Every task needs room for a private sum. */
static int gcpi_conv_turns(const gcpi_conv *c)
{
    int inside = !c->pt && !c->pl && (c->ho - 1) * (ptrdiff_t)c->sh < c->h && (c->wo - 1) * (ptrdiff_t)c->sw < c->w;
    return c->kh == 1 && c->kw == 1 && inside && c->groups == 1 && c->co > c->ci &&
           (ptrdiff_t)c->ci * c->co <= GCPI_PARTIAL_MAX / GCPI_TASKS;
}

static gcpi_outer gcpi_conv_outer(const gcpi_conv *c)
{
    gcpi_outer o;
    memset(&o, 0, sizeof o);
    o.v = gcpi_conv_view(c);
    o.turned = gcpi_conv_turns(c);
    o.groups = c->groups, o.rows = c->co / c->groups;
    gcpi_steps(o.es, c->ho, c->wo, c->ypitch);
    o.ds = (ptrdiff_t)c->kh * c->kw * o.v.channels;
    o.xgroup = o.v.channels, o.egroup = o.rows, o.dgroup = o.rows * o.ds;
    if (!o.turned) return o;
    memcpy(o.es, o.v.xs, sizeof o.es);
    o.es[1] *= c->sh, o.es[2] *= c->sw;
    gcpi_steps(o.v.xs, c->ho, c->wo, c->ypitch);
    o.v.h = c->ho, o.v.w = c->wo, o.v.sy = o.v.sx = 1;
    o.v.channels = c->co, o.rows = c->ci;
    return o;
}

static gcpi_depthwise gcpi_conv_depthwise(const gcpi_conv *c, int pass)
{
    gcpi_depthwise p;
    int back = pass == GCPI_BACKWARD_DATA;
    memset(&p, 0, sizeof p);
    p.channels = c->groups, p.taps = c->kh * c->kw, p.height = back ? c->h : c->ho;
    p.width = back ? c->w : c->wo, p.pitch = back ? c->xpitch : c->ypitch, p.stride = back ? c->sw : 1;
    p.phases[0] = back ? gcpi_min(c->sh, c->h) : 1, p.phases[1] = back ? gcpi_min(c->sw, c->w) : 1;
    for (int y = 0; y < p.phases[0]; y++)
        for (int x = 0; x < p.phases[1]; x++)
            p.g[y * p.phases[1] + x] = back ? gcpi_conv_phase(c, y, x) : gcpi_conv_gather(c);
    return p;
}

/* Finds one phase of each kind along an axis: strides may be long, but scratch depends only on how many positions and
 * taps a phase has and, unless `anywhere`, on its origin: on what it reads beside dy. Returns how many kinds there are;
 * 0: too many. */
enum { GCPI_KINDS = 24 };
static int gcpi_phase_kinds(int size, int k, int stride, int pad, int dilation, int anywhere, int *at)
{
    gcpi_phase kinds[GCPI_KINDS];
    int found = 0;
    for (int i = 0; i < stride && i < size; i++) {
        gcpi_phase p = gcpi_phase_of(i, size, k, stride, pad, dilation);
        int same = 0;
        while (same < found && (kinds[same].count != p.count || kinds[same].taps != p.taps ||
                                (!anywhere && kinds[same].origin != p.origin)))
            same++;
        if (same < found) continue;
        if (found == GCPI_KINDS) return 0;
        kinds[found] = p;
        at[found++] = i;
    }
    return found;
}

/* Scratch of one phase; anywhere: of any with as many positions and taps, whether it reads dy in place or not. */
static size_t gcpi_phase_scratch(const gcpi_conv *c, int y, int x, int anywhere, const gcpi_par *par)
{
    gcpi_gather g = gcpi_conv_phase(c, y, x), inside = g;
    g.windowed = anywhere;
    size_t bytes = gcpi_gather_plan(&g, c->ci / c->groups, par);
    if (!anywhere) return bytes;
    inside.v.oy = inside.v.ox = 0;
    inside.v.h = (int)GCPI_MIN(inside.v.ho + (inside.v.ky - 1) * (int64_t)inside.v.dy, INT32_MAX);
    inside.v.w = (int)GCPI_MIN(inside.v.wo + (inside.v.kx - 1) * (int64_t)inside.v.dx, INT32_MAX);
    return GCPI_MAX(bytes, gcpi_gather_plan(&inside, c->ci / c->groups, par));
}

static size_t gcpi_phases_scratch(const gcpi_conv *c, const gcpi_par *par)
{
    int ys[GCPI_KINDS], xs[GCPI_KINDS], rows = gcpi_phase_kinds(c->h, c->kh, c->sh, c->pt, c->dh, 0, ys),
        columns = gcpi_phase_kinds(c->w, c->kw, c->sw, c->pl, c->dw, 0, xs);
    const int anywhere = !rows || !columns;
    size_t most = 0;
    if (anywhere) {                       /* at most six kinds an axis */
        rows = gcpi_phase_kinds(c->h, c->kh, c->sh, c->pt, c->dh, 1, ys);
        columns = gcpi_phase_kinds(c->w, c->kw, c->sw, c->pl, c->dw, 1, xs);
    }
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++)
            most = GCPI_MAX(most, gcpi_phase_scratch(c, ys[y], xs[x], anywhere, par));
    return most;
}

static size_t gcpi_conv_scratch(const gcpi_conv *c, int pass, const gcpi_par *par)
{
    if (gcpi_conv_empty(c)) return 0;
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, pass);
        return gcpi_depthwise_plan(&p, pass == GCPI_BACKWARD_WEIGHTS, par);
    }
    if (pass == GCPI_FORWARD) {
        gcpi_gather g = gcpi_conv_gather(c);
        return gcpi_gather_plan(&g, c->co / c->groups, par);
    }
    if (pass == GCPI_BACKWARD_WEIGHTS) {
        gcpi_outer o = gcpi_conv_outer(c);
        return gcpi_outer_plan(&o, par);
    }
    return gcpi_phases_scratch(c, par);
}

/* FLOPs of a pass as a sum over taps. */
static double gcpi_conv_flops(const gcpi_conv *c)
{
    return 2.0 * c->n * c->ho * c->wo * c->co * (c->ci / c->groups) * c->kh * c->kw;
}

/* Winograd's tiles of a pass; 0: it takes none. */
static double gcpi_conv_tiles(const gcpi_conv *c, int pass, const gcpi_par *par)
{
    if (gcpi_conv_empty(c) || gcpi_conv_is_depthwise(c)) return 0;
    if (pass == GCPI_BACKWARD_WEIGHTS) {
        gcpi_outer o = gcpi_conv_outer(c);
        gcpi_outer_plan(&o, par);
        return o.winograd ? gcpi_winograd_tiles(&o.v) : 0;
    }
    const int forward = pass == GCPI_FORWARD;
    gcpi_gather g = forward ? gcpi_conv_gather(c) : gcpi_conv_phase(c, 0, 0);
    gcpi_gather_plan(&g, (forward ? c->co : c->ci) / c->groups, par);
    return g.winograd && (forward || c->sh * (ptrdiff_t)c->sw == 1) ? gcpi_winograd_tiles(&g.v) : 0;
}
/* What a pass performs of these: with Winograd's tiles their products, and the additions of their transforms. */
static double gcpi_conv_performed(const gcpi_conv *c, int pass, const gcpi_par *par)
{
    const double tiles = gcpi_conv_tiles(c, pass, par);
    return tiles > 0 ? tiles * (2.0 * GCPI_POINTS * c->ci * c->co + 32.0 * c->ci + 24.0 * c->co) : gcpi_conv_flops(c);
}

/* y starts from a bias, or is added to; not both. end may be NULL. */
static void gcpi_conv_forward(const gcpi_conv *c, gcpi_array x, const gcp_real *w, const gcp_real *bias,
                              gcpi_array y, int accumulate, const gcpi_end *end, void *scratch, const gcpi_par *par)
{
    if (gcpi_conv_empty(c)) return;
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, GCPI_FORWARD);
        gcpi_depthwise_set(&p, x, w, y, accumulate);
        p.g[0].bias = bias, p.g[0].end = end;
        gcpi_depthwise_run(&p, scratch, par);
        return;
    }
    gcpi_gather g = gcpi_conv_gather(c);
    g.x = x, g.w = gcpi_reals(w), g.bias = bias, g.y = y, g.accumulate = accumulate, g.end = end;
    gcpi_gather_plan(&g, c->co / c->groups, par);
    gcpi_gather_run(&g, scratch, par);
}

/* dx starts from a bias (a transposed convolution's result), or is added to; not both. */
static void gcpi_conv_backward_data(const gcpi_conv *c, gcpi_array dy, const gcp_real *w, const gcp_real *bias,
                                    gcpi_array dx, int accumulate, void *scratch, const gcpi_par *par)
{
    if (gcpi_conv_empty(c)) return;
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, GCPI_BACKWARD_DATA);
        gcpi_depthwise_set(&p, dy, w, dx, accumulate);
        p.g[0].bias = bias;
        gcpi_depthwise_run(&p, scratch, par);
        return;
    }
    for (int py = 0; py < c->sh && py < c->h; py++)
        for (int px = 0; px < c->sw && px < c->w; px++) {
            gcpi_gather g = gcpi_conv_phase(c, py, px);
            if (accumulate && !g.v.channels) continue;
            g.x = dy, g.w = gcpi_reals(w), g.bias = bias, g.y = dx, g.accumulate = accumulate;
            gcpi_gather_plan(&g, c->ci / c->groups, par);
            gcpi_gather_run(&g, scratch, par);
        }
}

static void gcpi_conv_backward_weights(const gcpi_conv *c, gcpi_array x, gcpi_array dy, gcp_real *dw,
                                       int accumulate, void *scratch, const gcpi_par *par)
{
    gcpi_outer o = gcpi_conv_outer(c);
    if (gcpi_conv_empty(c)) {
        if (!accumulate) memset(dw, 0, (size_t)(c->co * o.ds) * sizeof *dw);
        return;
    }
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, GCPI_BACKWARD_WEIGHTS);
        gcpi_depthwise_set(&p, x, NULL, dy, accumulate);
        p.d = dw;
        gcpi_depthwise_back(&p, scratch, par);
        return;
    }
    o.x = o.turned ? dy : x, o.e = o.turned ? x : dy, o.d = dw, o.accumulate = accumulate;
    gcpi_outer_plan(&o, par);
    gcpi_outer_run(&o, scratch, par);
}

static gcpi_gather gcpi_gemm_gather(int ta, int tb, int m, int k, ptrdiff_t lda, ptrdiff_t ldb, ptrdiff_t ldc)
{
    gcpi_gather g;
    memset(&g, 0, sizeof g);
    g.groups = 1;
    g.v.n = g.v.h = g.v.ho = g.v.sy = g.v.sx = g.v.ky = g.v.kx = g.v.dy = g.v.dx = 1;
    g.v.w = g.v.wo = m, g.v.channels = k;
    g.v.xs[2] = ta ? 1 : lda, g.v.xc = ta ? lda : 1;
    g.ws[2] = tb ? 1 : ldb, g.ws[3] = tb ? ldb : 1;
    g.ys[2] = ldc;
    return g;
}

static gcpi_outer gcpi_gemm_outer(int m, int n, int k, ptrdiff_t lda, ptrdiff_t ldb, ptrdiff_t ldc)
{
    gcpi_outer o;
    memset(&o, 0, sizeof o);
    o.groups = 1, o.rows = m, o.es[2] = lda, o.ds = ldc;
    o.v.n = o.v.h = o.v.ho = o.v.sy = o.v.sx = o.v.ky = o.v.kx = o.v.dy = o.v.dx = 1;
    o.v.w = o.v.wo = k, o.v.channels = n, o.v.xs[2] = ldb, o.v.xc = 1;
    return o;
}

/* The user's BLAS. The longer side of c is cut into shares, whose number depends on the shape only. Each share is one
   call on one thread. */
#ifdef GCP_USE_CBLAS
enum { GCPI_CBLAS = 1, GCPI_CBLAS_SHARE = 32 };       /* the least rows or columns of a share */
#if !defined(GCP_CBLAS_ONE_THREAD) && defined(OPENBLAS_VERSION)
#define GCP_CBLAS_ONE_THREAD() openblas_set_num_threads(1)
#elif !defined(GCP_CBLAS_ONE_THREAD)
#error "GCP_USE_CBLAS: this is not OpenBLAS; define GCP_CBLAS_ONE_THREAD() as what sets it to one thread"
#endif

typedef struct gcpi_blas {
    int ta, tb, m, n, k, accumulate, shares;
    const gcp_real *a, *b;
    gcp_real *c;
    ptrdiff_t lda, ldb, ldc;
} gcpi_blas;

static void gcpi_blas_task(void *arg, int index, int worker)
{
    const gcpi_blas *g = (const gcpi_blas *)arg;
    int tall = g->m >= g->n, length = tall ? g->m : g->n;
    int first = (int)((ptrdiff_t)index * length / g->shares),
        count = (int)((ptrdiff_t)(index + 1) * length / g->shares) - first;
    int m = tall ? count : g->m, n = tall ? g->n : count, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const void *a = g->a + (tall ? (g->ta ? 1 : g->lda) * first : 0),
               *b = g->b + (tall ? 0 : (g->tb ? g->ldb : 1) * first);
    void *c = g->c + (tall ? g->ldc : 1) * first;
    CBLAS_TRANSPOSE ta = g->ta ? CblasTrans : CblasNoTrans, tb = g->tb ? CblasTrans : CblasNoTrans;
    (void)worker;
    if (sizeof(gcp_real) == sizeof(float))
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, g->k, 1, (const float *)a, lda, (const float *)b, ldb,
                    (float)g->accumulate, (float *)c, ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, g->k, 1, (const double *)a, lda, (const double *)b, ldb, g->accumulate,
                    (double *)c, ldc);
}

static void gcpi_blas_run(gcpi_blas *g, const gcpi_par *par)
{
#ifdef _OPENMP
    int threads = omp_get_max_threads();       /* an OpenBLAS built with OpenMP changes this, too */
    GCP_CBLAS_ONE_THREAD();                    /* never restored: another thread may be in a product */
    omp_set_num_threads(threads);
#else
    GCP_CBLAS_ONE_THREAD();
#endif
    g->shares = gcpi_max(1, gcpi_min(GCPI_TASKS, gcpi_max(g->m, g->n) / GCPI_CBLAS_SHARE));
    par->parallel_for(par->context, g->shares, gcpi_blas_task, g);
}
#else
enum { GCPI_CBLAS = 0 };
#endif

static size_t gcpi_gemm_scratch(int ta, int tb, int m, int n, int k, const gcpi_par *par)
{
    if (m <= 0 || n <= 0 || (GCPI_CBLAS && !par->halves)) return 0;
    if (ta && !tb && k > 0) {
        gcpi_outer o = gcpi_gemm_outer(m, n, k, m, n, n);
        return gcpi_outer_plan(&o, par);
    }
    gcpi_gather g = gcpi_gemm_gather(ta, tb, m, k, k, k, n);
    return gcpi_gather_plan(&g, n, par);
}

/* Where operands may be halves there is no call of a BLAS. c is gcp_real where a is transposed and b is not, or where
   something is added to it and a bias, too. */
static void gcpi_gemm(int ta, int tb, int m, int n, int k, gcpi_array a, ptrdiff_t lda, gcpi_array b, ptrdiff_t ldb,
                      const gcp_real *bias, gcpi_array c, ptrdiff_t ldc, int accumulate, void *scratch,
                      const gcpi_par *par)
{
    int outer = ta && !tb && k > 0;
    gcp_real *sums = (gcp_real *)c.at;
    if (m <= 0 || n <= 0) return;
    if (bias && (outer || accumulate || (GCPI_CBLAS && !par->halves))) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) sums[i * ldc + j] = bias[j] + (accumulate ? sums[i * ldc + j] : 0);
        accumulate = 1;
    }
#ifdef GCP_USE_CBLAS
    if (!par->halves) {
        gcpi_blas blas = { ta, tb, m, n, k, accumulate, 1, (const gcp_real *)a.at, (const gcp_real *)b.at, sums,
                           lda, ldb, ldc };
        gcpi_blas_run(&blas, par);
        return;
    }
#endif
    if (outer) {
        gcpi_outer o = gcpi_gemm_outer(m, n, k, lda, ldb, ldc);
        o.x = b, o.e = a, o.d = sums, o.accumulate = accumulate;
        gcpi_outer_plan(&o, par);
        gcpi_outer_run(&o, scratch, par);
        return;
    }
    gcpi_gather g = gcpi_gemm_gather(ta, tb, m, k, lda, ldb, ldc);
    g.x = a, g.w = b, g.bias = bias, g.y = c, g.accumulate = accumulate;
    gcpi_gather_plan(&g, n, par);
    gcpi_gather_run(&g, scratch, par);
}
