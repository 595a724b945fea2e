/* Depthwise convolution: each group has one channel of x and one of y. */

typedef struct gcpi_depthwise {        /* scratch: w, then the bias; or private sums of d; all as [tap][channel] */
    /* one, or for backward data one per phase of the strides: [phase of rows][phase of columns] */
    gcpi_gather g[GCPI_PHASES];
    int phases[2], height;             /* phases of rows, of columns; rows in an image of y */
    int channels, taps, isa;           /* taps: of w, per channel */
    int shares;                        /* the rows of y are cut into so many tasks */
    const gcp_real *e;                 /* backward weights: dy; else NULL */
    gcp_real *d;
    gcp_real *scratch;
} gcpi_depthwise;

static void gcpi_depthwise_set(gcpi_depthwise *p, const gcp_real *x, const gcp_real *w, gcp_real *y, int accumulate)
{
    for (int i = 0; i < p->phases[0] * p->phases[1]; i++)
        p->g[i].x = gcpi_reals(x), p->g[i].w = gcpi_reals(w), p->g[i].y = gcpi_reals(y),
        p->g[i].accumulate = accumulate;
}

static size_t gcpi_depthwise_plan(gcpi_depthwise *p, int weights, const gcpi_par *par)
{
    ptrdiff_t rows = (ptrdiff_t)p->g[0].v.n * p->height;
    p->isa = par->isa;
    p->shares = (int)GCPI_MIN(rows, weights ? GCPI_TASKS : 4 * GCPI_TASKS);
    return (weights ? (size_t)p->shares * (size_t)p->taps : (size_t)p->taps + 1) * (size_t)p->channels *
           sizeof(gcp_real);
}

/* Prefetches in the order of memory. The kernel goes by channels, with steps of whole pixels, which the hardware does
 * not predict. y: two strips ahead. x, too, where no cache holds all images: the lowest rows, which no strip has read
 * yet. */
GCPI_FAST static void gcpi_strip_ahead(const gcpi_gather *g, const gcpi_strip *s, int pixels)
{
    for (int p = 2 * pixels; p < 3 * pixels; p++) gcpi_fetch(s->e ? s->e : s->y, p * s->pixel, s->channels);
    for (int i = 1; g->v.n * g->v.xs[0] > GCPI_FAR && i <= gcpi_min(g->v.sy, s->rows); i++)
        for (int p = 2 * pixels * g->v.sx; p < 3 * pixels * g->v.sx; p++)
            gcpi_fetch(s->x, (s->rows - i) * s->xrow + p * g->v.xs[2], s->channels);
}

/* Row j of a phase, in image b. taps: w, or the private sum of d. */
GCPI_FAST static void gcpi_depthwise_row(const gcpi_depthwise *p, const gcpi_gather *g, const gcpi_simd *simd, int b,
                                         int j, gcp_real *taps)
{
    static const int sizes[GCPI_STRIPS] = { 8, 4, 1 };
    const gcpi_view *v = &g->v;
    int row = v->oy + j * v->sy, size;
    gcpi_range rows = gcpi_inside(row, v->dy, v->channels ? v->ky : 0, v->h);
    ptrdiff_t from = b * v->xs[0] + (row + rows.begin * v->dy) * v->xs[1], to = b * g->ys[0] + j * g->ys[1];
    gcpi_strip s;
    memset(&s, 0, sizeof s);
    s.xpixel = v->sx * v->xs[2], s.xrow = v->dy * v->xs[1], s.xtap = v->dx * v->xs[2];
    s.row = g->ws[0] * p->channels, s.tap = g->ws[1] * p->channels, s.pixel = g->ys[2];
    s.start = p->e || g->accumulate ? NULL : taps + (ptrdiff_t)p->taps * p->channels;
    s.channels = p->channels;
    for (int o = 0; o < v->wo; o += sizes[size], to += sizes[size] * s.pixel) {
        ptrdiff_t x = v->ox + (ptrdiff_t)o * v->sx, left = v->w - x - (ptrdiff_t)(v->kx - 1) * v->dx;
        gcpi_range in = gcpi_inside(x, v->dx, v->kx, v->w);
        /* many channels: short strips, but for weights where nothing is prefetched for a strip */
        for (size = p->channels >= 4 * simd->lanes && (simd->burst || !p->e); size < GCPI_STRIPS - 1; size++)
            if (x >= 0 && o + sizes[size] <= v->wo && (ptrdiff_t)(sizes[size] - 1) * v->sx < left) break;
        s.rows = in.end > in.begin ? rows.end - rows.begin : 0, s.taps = in.end - in.begin;
        s.x = (const gcp_real *)g->x.at + (s.rows ? from + (x + in.begin * v->dx) * v->xs[2] : 0);
        s.w = s.d = taps + (s.rows ? g->wfirst * p->channels + rows.begin * s.row + in.begin * s.tap : 0);
        if (p->e) s.e = p->e + to;
        else s.y = (gcp_real *)g->y.at + g->yfirst + to;
        if (simd->burst && sizes[size] > 1) gcpi_strip_ahead(g, &s, sizes[size]);
        (p->e ? simd->depth_back : simd->depth)[size](&s);
    }
}

/* A share of the rows, from top to bottom: rows of x that two rows of y read are still in cache. */
static void gcpi_depthwise_rows(const gcpi_depthwise *p, int share, int worker, gcp_real *taps)
{
    const gcpi_simd simd = gcpi_simd_of(p->isa);
    ptrdiff_t rows = (ptrdiff_t)p->g[0].v.n * p->height;
    for (ptrdiff_t r = share * rows / p->shares; r < (share + 1) * rows / p->shares; r++) {
        int b = (int)(r / p->height), y = (int)(r % p->height);
        const gcpi_gather *g = &p->g[y % p->phases[0] * p->phases[1]];
        gcpi_block done = { b, y, 0, 1, 1, g->v.wo };
        for (int x = 0; x < p->phases[1]; x++) gcpi_depthwise_row(p, &g[x], &simd, b, y / p->phases[0], taps);
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
