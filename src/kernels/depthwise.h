/* Depthwise convolution: each group has one channel of x and one of y. */

typedef struct gcpi_depthwise {        /* scratch: w, then the bias; or private sums of d; all as [tap][channel] */
    /* one, or for backward data one per phase of the strides: [phase of rows][phase of columns] */
    gcpi_gather g[GCPI_PHASES];
    int phases[2], height;             /* phases of rows, of columns; rows in an image of y */
    int channels, taps, isa;           /* taps: of w, per channel */
    int shares;                        /* the rows of y are cut into so many tasks */
    int width, stride;                 /* pixels in a row of y; from one to the next of a phase */
    ptrdiff_t pitch;                   /* of y */
    int weights;                       /* y is read: its gradient */
    gcp_real *d;
    gcp_real *scratch;
    /* halves: a worker holds a band of rows of x, and a row of y, in floats */
    const gcpi_halves *halves;
    int band;
    ptrdiff_t shared, worker;          /* values: before the workers' rooms, in one of them */
} gcpi_depthwise;

static void gcpi_depthwise_set(gcpi_depthwise *p, gcpi_array x, const gcp_real *w, gcpi_array y, int accumulate)
{
    for (int i = 0; i < p->phases[0] * p->phases[1]; i++)
        p->g[i].x = x, p->g[i].w = gcpi_reals(w), p->g[i].y = y, p->g[i].accumulate = accumulate;
}

/* Rows of a band: those under the highest of the phases' windows, and some more, so that it moves seldom. */
enum { GCPI_BAND_MORE = 8 };
static int gcpi_depthwise_band(const gcpi_depthwise *p)
{
    int most = 1;
    for (int i = 0; i < p->phases[0] * p->phases[1]; i++)
        most = gcpi_max(most, (p->g[i].v.ky - 1) * p->g[i].v.dy + 1);
    return gcpi_min(most + GCPI_BAND_MORE, p->g[0].v.h);
}

static size_t gcpi_depthwise_plan(gcpi_depthwise *p, int weights, const gcpi_par *par)
{
    ptrdiff_t rows = (ptrdiff_t)p->g[0].v.n * p->height;
    p->isa = par->isa;
    p->weights = weights;
    p->shares = (int)GCPI_MIN(rows, weights ? GCPI_TASKS : 4 * GCPI_TASKS);
    p->halves = par->halves ? gcpi_halves_of(par->isa) : NULL;
    p->shared = (weights ? (ptrdiff_t)p->shares * p->taps : (ptrdiff_t)p->taps + 1) * p->channels;
    p->worker = 0;
    if (!p->halves) return (size_t)p->shared * sizeof(gcp_real);
    p->band = gcpi_depthwise_band(p);
    p->shared = gcpi_line(p->shared);
    p->worker = gcpi_line(((ptrdiff_t)p->band * p->g[0].v.w + p->width) * p->channels);
    return gcpi_scratch_bytes(p->shared, p->worker, par);
}

/* Whether no cache holds x and y. */
static int gcpi_depthwise_far(const gcpi_gather *g) { return g->v.n * (g->v.xs[0] + g->ys[0]) > GCPI_FAR; }

/* What follows pixels [begin, end) of a row is prefetched in shares, one before each row of taps for a block of
 * channels, and in the order of memory: a kernel reads some channels of each pixel, with steps that the hardware does
 * not predict. Of y it is these pixels of the next row; of x, where it is far, a part of the rows below those that the
 * taps read. */
static void gcpi_strip_ahead(const gcpi_gather *g, const gcpi_simd *simd, int begin, int end, ptrdiff_t from,
                             gcpi_strip *s)
{
    const gcpi_view *v = &g->v;
    const int shares = gcpi_ceil(s->channels, 4 * simd->lanes) * s->rows;
    const ptrdiff_t each = gcpi_min(v->sy, s->rows) * v->xs[1] / v->wo;       /* of x, for a pixel of y */
    s->ynext = (uintptr_t)(s->e ? s->e : s->y) + (size_t)g->ys[1] * sizeof(gcp_real);
    s->xnext = (uintptr_t)g->x.at + (size_t)(from + s->rows * s->xrow + begin * each) * sizeof(gcp_real);
    s->yshare = gcpi_line((end - begin) * s->pixel / shares);
    s->xshare = gcpi_depthwise_far(g) ? gcpi_line((end - begin) * each / shares) : 0;
}

/* The kernel of a strip from pixel o on, and what is prefetched for it: shares cost a tenth where x and y are in a
 * cache; there it is y alone, two strips on. */
GCPI_FAST static gcpi_stripper *gcpi_strip_kernel(const gcpi_depthwise *p, const gcpi_gather *g, const gcpi_simd *simd,
                                                  int size, int o, ptrdiff_t from, gcpi_strip *s)
{
    const int pixels = simd->strips[size];
    if (!simd->burst || p->halves || size == GCPI_STRIPS - 1 || !s->rows) return simd->depth[size];
    if (size == 1 && p->phases[1] == 1 && gcpi_depthwise_far(g)) {
        gcpi_strip_ahead(g, simd, o, o + pixels, from, s);
        return simd->depth_far;
    }
    for (int q = 2 * pixels; q < 3 * pixels; q++) gcpi_fetch(s->y, q * s->pixel, s->channels);
    return simd->depth[size];
}

/* Forward and backward data, a row: strips of pixels. from: where x's first row begins. */
GCPI_FAST static void gcpi_depthwise_strips(const gcpi_depthwise *p, const gcpi_gather *g, const gcpi_simd *simd,
                                            gcpi_strip s, ptrdiff_t from)
{
    const gcpi_view *v = &g->v;
    const int rows = s.rows;
    const gcp_real *w = s.w;
    for (int o = 0, size; o < v->wo; o += simd->strips[size], s.y += simd->strips[size] * s.pixel) {
        ptrdiff_t x = v->ox + (ptrdiff_t)o * v->sx, left = v->w - x - (ptrdiff_t)(v->kx - 1) * v->dx;
        gcpi_range in = gcpi_inside(x, v->dx, v->kx, v->w);
        for (size = p->channels >= 4 * simd->lanes; size < GCPI_STRIPS - 1; size++) /* many channels: short strips */
            if (x >= 0 && o + simd->strips[size] <= v->wo && (simd->strips[size] - 1) * (ptrdiff_t)v->sx < left) break;
        s.rows = in.end > in.begin ? rows : 0, s.taps = in.end - in.begin;
        s.x = (const gcp_real *)g->x.at + (s.rows ? from + (x + in.begin * v->dx) * v->xs[2] : 0);
        s.w = s.rows ? w + in.begin * s.tap : w;
        gcpi_strip_kernel(p, g, simd, size, o, from, &s)(&s);
    }
}

/* The pixels of a row of y that tap t reaches. */
static gcpi_range gcpi_depthwise_reach(const gcpi_view *v, int t)
{
    return gcpi_inside(v->ox + (ptrdiff_t)t * v->dx, v->sx, v->wo, v->w);
}

/* Backward weights: tap t and those after it that kernel `size` sums together, over the pixels `in`. */
GCPI_FAST static void gcpi_depthwise_taps(const gcpi_gather *g, const gcpi_simd *simd, const gcpi_strip *row, int size,
                                          int t, gcpi_range in, ptrdiff_t from)
{
    gcpi_strip s = *row;
    if (in.end <= in.begin) return;
    s.x = (const gcp_real *)g->x.at + from + g->v.ox * g->v.xs[2] + in.begin * s.xpixel + t * s.xtap;
    s.e += in.begin * s.pixel, s.d += t * s.tap;
    s.pixels = in.end - in.begin;
    simd->depth_back[size](&s);
}

/* Backward weights, a row: the taps of a kernel where all of them reach a pixel, beside that each for itself. */
GCPI_FAST static void gcpi_depthwise_back_row(const gcpi_gather *g, const gcpi_simd *simd, gcpi_strip s, ptrdiff_t from)
{
    const gcpi_view *v = &g->v;
    for (int t = 0, size; t < v->kx; t += simd->taps[size]) {
        for (size = 0; simd->taps[size] > v->kx - t; size++) {}
        const int end = t + simd->taps[size];
        const gcpi_range first = gcpi_depthwise_reach(v, t), last = gcpi_depthwise_reach(v, end - 1);
        gcpi_range all = { gcpi_max(first.begin, last.begin), gcpi_min(first.end, last.end) };
        if (all.end <= all.begin) all.begin = all.end = v->wo;
        gcpi_depthwise_taps(g, simd, &s, size, t, all, from);
        s.xshare = s.yshare = 0;
        for (int i = t; i < end; i++) {
            const gcpi_range own = gcpi_depthwise_reach(v, i), before = { own.begin, gcpi_min(own.end, all.begin) },
                             after = { gcpi_max(own.begin, all.end), own.end };
            gcpi_depthwise_taps(g, simd, &s, GCPI_STRIPS - 1, i, before, from);
            gcpi_depthwise_taps(g, simd, &s, GCPI_STRIPS - 1, i, after, from);
        }
    }
}

/* Row j of a phase, in image b. taps: w, or the private sum of d. */
GCPI_FAST static void gcpi_depthwise_row(const gcpi_depthwise *p, const gcpi_gather *g, const gcpi_simd *simd, int b,
                                         int j, gcp_real *taps)
{
    const gcpi_view *v = &g->v;
    const int row = v->oy + j * v->sy;
    const gcpi_range rows = gcpi_inside(row, v->dy, v->channels ? v->ky : 0, v->h);
    const ptrdiff_t from = b * v->xs[0] + (row + rows.begin * v->dy) * v->xs[1];
    gcpi_strip s;
    memset(&s, 0, sizeof s);
    s.rows = rows.end - rows.begin;
    s.xpixel = v->sx * v->xs[2], s.xrow = v->dy * v->xs[1], s.xtap = v->dx * v->xs[2];
    s.row = g->ws[0] * p->channels, s.tap = g->ws[1] * p->channels, s.pixel = g->ys[2];
    s.start = p->weights || g->accumulate ? NULL : taps + (ptrdiff_t)p->taps * p->channels;
    s.channels = p->channels;
    s.w = s.d = taps + (s.rows ? g->wfirst * p->channels + rows.begin * s.row : 0);
    s.y = (gcp_real *)g->y.at + g->yfirst + b * g->ys[0] + j * g->ys[1];
    if (!p->weights) {
        gcpi_depthwise_strips(p, g, simd, s, from);
        return;
    }
    if (!s.rows) return;
    s.e = s.y;
    if (simd->burst && !p->halves) gcpi_strip_ahead(g, simd, 0, v->wo, from, &s);
    gcpi_depthwise_back_row(g, simd, s, from);
}

/* ---- halves ---- */

/* Rows [base, end) of image b of x, in floats; a row of y. */
typedef struct gcpi_band { gcp_real *x, *y; int b, base, end; } gcpi_band;

/* Rows [first, last) are in the band. */
GCPI_FAST static void gcpi_band_hold(const gcpi_depthwise *p, gcpi_band *band, int b, int first, int last)
{
    const gcpi_view *v = &p->g[0].v;
    const ptrdiff_t row = (ptrdiff_t)v->w * p->channels;
    if (band->b != b || first < band->base || first > band->end) band->b = b, band->base = band->end = first;
    if (last > band->base + p->band) {
        memmove(band->x, band->x + (first - band->base) * row, (size_t)((band->end - first) * row) * sizeof *band->x);
        band->base = first;
    }
    for (; band->end < last; band->end++)
        gcpi_array_load(p->halves, gcpi_array_at(p->g[0].x, b * v->xs[0] + band->end * v->xs[1]), v->xs[2],
                        band->x + (band->end - band->base) * row, p->channels, v->w, p->channels);
}

/* A gather of the band, for row j of a phase: image 0, row 0. */
static gcpi_gather gcpi_band_gather(const gcpi_depthwise *p, const gcpi_gather *g, const gcpi_band *band, int j,
                                    int phase)
{
    gcpi_gather own = *g;
    own.x = gcpi_reals(band->x), own.y = gcpi_reals(band->y);
    own.v.oy = g->v.oy + j * g->v.sy - band->base, own.v.h = band->end - band->base;
    own.v.xs[2] = p->channels, own.v.xs[1] = (ptrdiff_t)g->v.w * p->channels, own.v.xs[0] = 0;
    own.ys[2] = (ptrdiff_t)p->stride * p->channels, own.ys[1] = own.ys[0] = 0;
    own.yfirst = (ptrdiff_t)phase * p->channels;
    return own;
}

/* Row y of image b: all phases of columns. */
static void gcpi_band_row(const gcpi_depthwise *p, gcpi_band *band, const gcpi_simd *simd, int b, int y, gcp_real *taps)
{
    const gcpi_gather *g = &p->g[y % p->phases[0] * p->phases[1]];
    int reached = 0;                                   /* a phase that some tap reaches; all have the same rows */
    while (reached < p->phases[1] - 1 && !g[reached].v.channels) reached++;
    const gcpi_view *v = &g[reached].v;
    const int j = y / p->phases[0], row = v->oy + j * v->sy;
    const gcpi_range rows = gcpi_inside(row, v->dy, v->channels ? v->ky : 0, v->h);
    const gcpi_array out = gcpi_array_at(g->y, g->yfirst + b * g->ys[0] + j * g->ys[1]);
    if (rows.end > rows.begin)
        gcpi_band_hold(p, band, b, row + rows.begin * v->dy, row + (rows.end - 1) * v->dy + 1);
    else band->b = -1, band->base = band->end = 0;
    if (p->weights || g->accumulate)
        gcpi_array_load(p->halves, out, p->pitch, band->y, p->channels, p->width, p->channels);
    for (int x = 0; x < p->phases[1]; x++) {
        const gcpi_gather own = gcpi_band_gather(p, &g[x], band, j, x);
        gcpi_depthwise_row(p, &own, simd, 0, 0, taps);
    }
    if (!p->weights) gcpi_array_store(p->halves, out, p->pitch, band->y, p->channels, p->width, p->channels);
}

/* A share of the rows, from top to bottom: rows of x that two rows of y read are still in cache. */
static void gcpi_depthwise_rows(const gcpi_depthwise *p, int share, int worker, gcp_real *taps)
{
    const gcpi_simd simd = gcpi_simd_of(p->isa);
    ptrdiff_t rows = (ptrdiff_t)p->g[0].v.n * p->height;
    gcpi_band band = { p->scratch + p->shared + worker * p->worker, NULL, -1, 0, 0 };
    band.y = band.x + (ptrdiff_t)p->band * p->g[0].v.w * p->channels;
    for (ptrdiff_t r = share * rows / p->shares; r < (share + 1) * rows / p->shares; r++) {
        int b = (int)(r / p->height), y = (int)(r % p->height);
        const gcpi_gather *g = &p->g[y % p->phases[0] * p->phases[1]];
        gcpi_block done = { b, y, 0, 1, 1, g->v.wo };
        if (p->halves) gcpi_band_row(p, &band, &simd, b, y, taps);
        for (int x = 0; !p->halves && x < p->phases[1]; x++)
            gcpi_depthwise_row(p, &g[x], &simd, b, y / p->phases[0], taps);
        gcpi_gather_end(g, &done, 0, p->channels, worker);
    }
}

static void gcpi_depthwise_task(void *arg, int index, int worker)
{
    const gcpi_depthwise *p = (const gcpi_depthwise *)arg;
    gcpi_depthwise_rows(p, index, worker, p->scratch);
}

static void gcpi_depthwise_run(gcpi_depthwise *p, void *scratch, const gcpi_par *par)
{
    const gcp_real *bias = p->g[0].bias;
    gcpi_depthwise_plan(p, 0, par);
    p->scratch = (gcp_real *)scratch;
    gcpi_simd_of(p->isa).turn(p->scratch, p->channels, p->taps, p->channels, (const gcp_real *)p->g[0].w.at, p->taps);
    for (int c = 0; c < p->channels; c++) p->scratch[(ptrdiff_t)p->taps * p->channels + c] = bias ? bias[c] : 0;
    par->parallel_for(par->context, p->shares, gcpi_depthwise_task, p);
}

/* Backward weights: each share has a private sum. */
static void gcpi_depthwise_back_task(void *arg, int index, int worker)
{
    const gcpi_depthwise *p = (const gcpi_depthwise *)arg;
    ptrdiff_t size = (ptrdiff_t)p->taps * p->channels;
    memset(p->scratch + index * size, 0, (size_t)size * sizeof *p->scratch);
    gcpi_depthwise_rows(p, index, worker, p->scratch + index * size);
}

/* One tap, all channels: adds the private sums into the first, always in the same order. */
GCPI_FAST static void gcpi_depthwise_sum(void *arg, int tap, int worker)
{
    const gcpi_depthwise *p = (const gcpi_depthwise *)arg;
    ptrdiff_t size = (ptrdiff_t)p->taps * p->channels;
    gcp_real *sum = p->scratch + (ptrdiff_t)tap * p->channels;
    (void)worker;
    for (int s = 1; s < p->shares; s++)
        for (int c = 0; c < p->channels; c++) sum[c] += sum[s * size + c];
}

static void gcpi_depthwise_back(gcpi_depthwise *p, void *scratch, const gcpi_par *par)
{
    gcpi_depthwise_plan(p, 1, par);
    p->scratch = (gcp_real *)scratch;
    par->parallel_for(par->context, p->shares, gcpi_depthwise_back_task, p);
    par->parallel_for(par->context, p->taps, gcpi_depthwise_sum, p);
    if (!p->g[0].accumulate) gcpi_simd_of(p->isa).turn(p->d, p->taps, p->channels, p->taps, p->scratch, p->channels);
    else
        for (ptrdiff_t i = 0; i < (ptrdiff_t)p->channels * p->taps; i++)
            p->d[i] += p->scratch[i % p->taps * p->channels + i / p->taps];
}
