/* The gather product: convolution forward and backward data, A times B. */

/* Called with finished pixels of a row of y, `count` channels from `first` on, while they are in cache. */
typedef struct gcpi_end {
    void (*run)(void *arg, size_t pixel, size_t pixels, int first, int count, int worker);
    void *arg;
} gcpi_end;

typedef struct gcpi_gather {
    gcpi_view v;
    gcpi_data x, w, y;
    const gcp_real *bias;
    int accumulate, groups;
    ptrdiff_t ws[4], wfirst;          /* steps of w: ky, kx, channel, column; its start */
    ptrdiff_t ys[3], yfirst;          /* steps of y: image, row, pixel */
    ptrdiff_t xgroup, wgroup, ygroup; /* steps to the next group */
    const gcpi_end *end;              /* may be NULL; counts pixels of the view's output */
    int windowed;                     /* x is copied, wherever it lies */
    /* set by gcpi_gather_plan */
    const gcpi_halves *halves;        /* NULL: x and y are gcp_real */
    gcpi_simd simd;
    gcpi_columns columns; /* output channels; planar: pixels of a row */
    /* planar: values of packed w; shared: these, and a panel of starting values for each row of the tiles */
    ptrdiff_t weights, shared;
    /* cols: output channels; tile: so many are packed side by side: a kernel's rows, or all where kernels differ */
    int planar, cols, tile;
    int by, bx, bj;           /* a block of the sum: kernel rows, runs, terms of a run */
    int panels, sets;         /* panels packed together (a set); how many sets */
    int resident;             /* a set is packed for the whole sum, and kept for the next tasks */
    int place;                /* panels of w that are full are read in place */
    /* values: packed; with halves: rows of x, sums for y, in floats; in all of a worker's scratch */
    ptrdiff_t pack, rows, sums, worker;
    int blocks;               /* of the sum */
    ptrdiff_t base;           /* number of the task at index 0 (gcpi_par_run) */
    gcp_real *scratch;
} gcpi_gather;

/* out[r][c] = w[r*rs + c*cs], rows padded with zeros to `width`; rs or cs is 1. */
GCPI_FAST static void gcpi_pack_rows(const gcpi_simd *simd, gcp_real *out, int width, int cols, const gcp_real *w,
                                     int rows, ptrdiff_t rs, ptrdiff_t cs)
{
    for (int r0 = 0; r0 < rows; r0 += GCPI_PACK_ROWS) {
        int r1 = gcpi_min(rows, r0 + GCPI_PACK_ROWS);
        if (cs != 1) simd->turn(out + (ptrdiff_t)r0 * width, width, r1 - r0, cols, w + r0, cs);
        if (cs == 1 && cols == width && cols >= simd->lanes) {
            simd->copy(out + (ptrdiff_t)r0 * width, w + r0 * rs, r1 - r0, rs, cols);
            continue;
        }
        for (int r = r0; r < r1 && (cs == 1 || cols < width); r++) {
            if (cs == 1) memcpy(out + (ptrdiff_t)r * width, w + r * rs, (size_t)cols * sizeof *out);
            memset(out + (ptrdiff_t)r * width + cols, 0, (size_t)(width - cols) * sizeof *out);
        }
    }
}

/* The same of halves: rs or cs is 1. turned: room for GCPI_PACK_ROWS rows of a panel. */
GCPI_FAST static void gcpi_pack_halves(const gcpi_simd *simd, const gcpi_halves *halves, gcp_real *out, int width, int cols,
                                       gcpi_data w, int rows, ptrdiff_t rs, ptrdiff_t cs, gcp_real *turned)
{
    for (int r = 0, n; r < rows; r += n, out += (ptrdiff_t)n * width) {
        n = gcpi_min(rows - r, GCPI_PACK_ROWS);
        if (cs != 1) {
            gcpi_data_load(halves, gcpi_data_at(w, r), cs, turned, n, cols, n);
            simd->turn(out, width, n, cols, turned, n);
        }
        else gcpi_data_load(halves, gcpi_data_at(w, r * rs), rs, out, width, n, cols);
        for (int i = 0; i < n && cols < width; i++)
            memset(out + (ptrdiff_t)i * width + cols, 0, (size_t)(width - cols) * sizeof *out);
    }
}

/* Planar: where few output channels would leave vector lanes empty, a vector holds pixels of a row
 * instead. The window is copied as [row][channel][x], so (ky, channel) is one evenly spaced run,
 * and output channels are the rows of the tile. */

/* Whether it fills enough lanes to pay for transposing x and y. */
static int gcpi_planar_pays(const gcpi_gather *g, int cols)
{
    int lanes = g->simd.lanes, mr;
    gcpi_kernel_of(&g->simd, g->simd.nv, cols, &mr);
    double across = cols / ((double)gcpi_ceil(cols, lanes) * lanes);
    double along = g->v.wo / ((double)gcpi_ceil(g->v.wo, lanes) * lanes) * cols / ((double)gcpi_ceil(cols, mr) * mr);
    return g->groups == 1 && g->v.sx == 1 && g->v.xc == 1 && g->v.wo > lanes && g->v.ky * g->v.kx >= 9 &&
           g->v.channels > 0 && cols <= GCPI_PLANAR_COLS && along > 1.05 * across;
}

static size_t gcpi_planar_plan(gcpi_gather *g, int cols, const gcpi_par *par)
{
    gcpi_view_cut(&g->v, 1024, 0);
    g->v.bn = 1;
    g->v.cn = g->v.n;
    g->v.chunks = (ptrdiff_t)g->v.cn * g->v.ch * g->v.cw;
    g->sets = 1;
    g->cols = cols;
    g->columns = gcpi_columns_of(g->v.bw, &g->simd);
    gcpi_kernel_of(&g->simd, gcpi_panel_of(&g->columns, 0).nv, cols, &g->tile);
    if (g->columns.vectors % g->columns.panels) g->tile = cols;
    g->pack = gcpi_line((ptrdiff_t)g->v.wh * g->v.ww * g->v.channels) + GCPI_NR_MAX;
    g->rows = g->halves ? gcpi_line(GCPI_MAX((ptrdiff_t)g->v.ww * g->v.channels, (ptrdiff_t)g->v.bw * cols)) : 0;
    g->worker = g->pack + gcpi_line((ptrdiff_t)cols * g->columns.vectors * g->simd.lanes) + GCPI_LINE + g->rows;
    g->weights = gcpi_line((ptrdiff_t)g->v.ky * g->v.kx * g->v.channels * cols);
    /* starting values also for rows of the last tile that are not stored */
    g->shared = g->weights + (cols + GCPI_MR_MAX) * GCPI_NR_MAX;
    return gcpi_scratch_bytes(g->shared, g->worker, par);
}

/* The pixels of a row in floats: where they lie, or in room. *step: from pixel to pixel. */
static const gcp_real *gcpi_planar_pixels(const gcpi_gather *g, gcpi_data x, ptrdiff_t pitch, ptrdiff_t pixels,
                                          int channels, gcp_real *room, ptrdiff_t *step)
{
    *step = x.half ? channels : pitch;
    if (!x.half) return (const gcp_real *)x.at;
    gcpi_data_load(g->halves, x, pitch, room, channels, pixels, channels);
    return room;
}
GCPI_FAST static void gcpi_planar_load(const gcpi_gather *g, const gcpi_block *k, gcp_real *window, gcp_real *room)
{
    const gcpi_view *v = &g->v;
    ptrdiff_t y0 = v->oy + (ptrdiff_t)k->y * v->sy, x0 = v->ox + k->x, row = (ptrdiff_t)v->channels * v->ww;
    ptrdiff_t left = x0 < 0 ? -x0 : 0, end = v->w - x0 < v->ww ? v->w - x0 : v->ww;
    for (ptrdiff_t y = 0; y < v->wh; y++) {
        gcp_real *to = window + y * row;
        int exists = y0 + y >= 0 && y0 + y < v->h && end > left;
        if (!exists || left > 0 || end < v->ww) memset(to, 0, (size_t)row * sizeof *to);
        if (!exists) continue;
        gcpi_data x = gcpi_data_at(g->x, k->b * v->xs[0] + (y0 + y) * v->xs[1] + (x0 + left) * v->xs[2]);
        ptrdiff_t step;
        const gcp_real *pixels = gcpi_planar_pixels(g, x, v->xs[2], end - left, v->channels, room, &step);
        g->simd.turn(to + left, v->ww, v->channels, (int)(end - left), pixels, step);
    }
    memset(window + v->wh * row, 0, GCPI_NR_MAX * sizeof *window); /* kernels read past the end */
}

/* One output row of the block of pixels, into the planes at `out`: one plane per output channel. */
static void gcpi_planar_row(const gcpi_gather *g, const gcp_real *window, gcp_real *out, ptrdiff_t plane)
{
    const gcpi_view *v = &g->v;
    const gcp_real *start = g->scratch + g->weights, *w = g->scratch;
    ptrdiff_t terms = (ptrdiff_t)v->ky * v->kx * v->channels;
    const gcp_real *a[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_tile t;
    t.a = a, t.c = c, t.ahead = t.pace = 0, t.burst = 0;
    /* ky and channels make one run, unless reuse across kx in L1 is worth more */
    int whole = v->dy == 1 && (ptrdiff_t)v->ky * v->channels * v->ww <= GCPI_L1_HALF;
    t.n[0] = whole ? 1 : v->ky, t.n[1] = v->kx, t.n[2] = whole ? v->ky * v->channels : v->channels;
    t.bs[2] = v->ww, t.bs[1] = v->dx, t.bs[0] = (ptrdiff_t)v->dy * v->channels * v->ww;
    t.ss = GCPI_NR_MAX;
    for (int p = 0; p < g->columns.panels; p++) {
        gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        int mr;
        gcpi_kernel *kernel = gcpi_kernel_of(&g->simd, panel.nv, g->cols, &mr);
        t.b = window + panel.first;
        t.first = panel.first;
        for (int r = 0; r < g->cols; r += mr) {
            int side = r % g->tile, from = r - side;
            t.rows = gcpi_min(mr, g->cols - r);
            t.as[2] = gcpi_min(g->tile, g->cols - from), t.as[0] = t.as[2] * v->channels, t.as[1] = t.as[0] * v->ky;
            t.start = g->accumulate ? NULL : start + r * GCPI_NR_MAX;
            for (int i = 0; i < mr; i++) {
                int row = i < t.rows ? i : 0;
                a[i] = w + from * terms + side + row;
                c[i] = out + (r + row) * plane;
            }
            kernel(&t);
        }
    }
}

static void gcpi_gather_end(const gcpi_gather *g, const gcpi_block *k, int first, int count, int worker)
{
    for (int b = k->b; g->end && b < k->b + k->n; b++)
        for (int y = k->y; y < k->y + k->h; y++)
            g->end->run(g->end->arg, ((size_t)b * (size_t)g->v.ho + (size_t)y) * (size_t)g->v.wo + (size_t)k->x,
                        (size_t)k->w, first, count, worker);
}

static void gcpi_planar_task(void *arg, int index, int worker)
{
    const gcpi_gather *g = (const gcpi_gather *)arg;
    const gcpi_view *v = &g->v;
    gcpi_block k = gcpi_view_block(v, g->base + index);
    gcp_real *window = g->scratch + g->shared + worker * g->worker;
    gcp_real *out = window + g->pack, *room = window + g->worker - g->rows;
    ptrdiff_t plane = (ptrdiff_t)g->columns.vectors * g->simd.lanes;
    gcpi_planar_load(g, &k, window, room);
    for (int py = 0; py < k.h; py++) {
        gcpi_data y = gcpi_data_at(g->y, g->yfirst + k.b * g->ys[0] + (k.y + py) * g->ys[1] + k.x * g->ys[2]);
        ptrdiff_t step;
        if (g->accumulate) {
            const gcp_real *pixels = gcpi_planar_pixels(g, y, g->ys[2], k.w, g->cols, room, &step);
            g->simd.turn(out, plane, g->cols, k.w, pixels, step);
        }
        gcpi_planar_row(g, window + (ptrdiff_t)py * v->sy * v->channels * v->ww, out, plane);
        if (!y.half) { g->simd.turn((gcp_real *)y.at, g->ys[2], k.w, g->cols, out, plane); continue; }
        g->simd.turn(room, g->cols, k.w, g->cols, out, plane);
        gcpi_data_store(g->halves, y, g->ys[2], room, g->cols, k.w, g->cols);
    }
    gcpi_gather_end(g, &k, 0, g->cols, worker);
}

static void gcpi_planar_run(gcpi_gather *g, const gcpi_par *par)
{
    gcp_real *out = g->scratch;
    for (int first = 0, n; first < g->cols; first += n) {
        n = gcpi_min(g->tile, g->cols - first);
        for (int t = 0; t < g->v.kx * g->v.ky; t++, out += (ptrdiff_t)g->v.channels * n)
            gcpi_pack_rows(&g->simd, out, n, n,
                           (const gcp_real *)g->w.at + g->wfirst + t % g->v.ky * g->ws[0] + t / g->v.ky * g->ws[1] +
                               first * g->ws[3],
                           g->v.channels, g->ws[2], g->ws[3]);
    }
    out = g->scratch + g->weights;
    for (ptrdiff_t i = 0; i < g->shared - g->weights; i++)
        out[i] = g->bias && i / GCPI_NR_MAX < g->cols ? g->bias[i / GCPI_NR_MAX] : 0;
    gcpi_par_run(par, g->v.chunks, &g->base, gcpi_planar_task, g);
}

typedef struct gcpi_kblock {
    int y, x, j, ny, nx, nj;
} gcpi_kblock;

/* Whether x may be read without a window. Where it may be halves, several taps read the same pixel of a window: it is
   widened once. */
static int gcpi_gather_direct(const gcpi_gather *g)
{
    return !g->windowed && !(g->halves && g->v.ky * g->v.kx > 1);
}

/* Cuts the pixels into tasks: enough of them, so that threads neither wait for the last ones nor sweep many tiles that
   are not full (about 4 rows of a task). Several sets are packed again by each worker, and for each chunk of theirs:
   they are cut as little as may be. */
static void gcpi_gather_cut(gcpi_gather *g, const gcpi_par *par)
{
    const double sets = (double)g->sets * g->groups, enough = sets > 1 ? gcpi_par_tasks(par) : GCPI_TASKS,
                 pixels_in_all = (double)g->v.n * g->v.ho * g->v.wo;
    double best = 0;
    int chosen = GCPI_GATHER_PIXELS;
    for (int pixels = chosen; pixels >= GCPI_GATHER_LEAST && pixels_in_all > GCPI_GATHER_LEAST; pixels -= pixels / 4) {
        gcpi_view_cut(&g->v, pixels, gcpi_gather_direct(g));
        double tasks = (double)g->v.chunks * sets, rest = 4.0 / ((double)g->v.bn * g->v.bh * g->v.bw),
               cost = ceil(tasks / par->threads) * par->threads / tasks * (1 + rest) + 0.02 * (tasks < enough);
        if (best > 0 && cost >= best) continue;
        best = cost, chosen = pixels;
        if (tasks >= enough && cost < 1.05) break;
    }
    gcpi_view_cut(&g->v, chosen, gcpi_gather_direct(g));
}

/* Whether it pays to skip padding: what the last tiles of each kind of pixels leave empty, and what a tile and a kind
   take beside their terms, may cost more. By the shape, not by how it is cut for the threads: a sum of terms that are 0
   may differ from none in the sign of zero. */
static int gcpi_gather_skips(const gcpi_gather *g)
{
    const gcpi_view *v = &g->v;
    const gcpi_side ys = gcpi_view_rows(v), xs = gcpi_view_columns(v);
    int mr = g->simd.mr[gcpi_ceil(g->columns.vectors, g->columns.panels) - 1];
    const double images = gcpi_min(v->n, gcpi_max(1, (int)(GCPI_GATHER_PIXELS / ((int64_t)v->ho * v->wo)))),
                 all = (double)v->ky * v->kx * v->channels + GCPI_TILE_TERMS;
    double some = 0;
    if (gcpi_view_inside(v) || gcpi_max(v->ho, v->wo) > GCPI_SKIPS_MAX || gcpi_max(v->ky, v->kx) > GCPI_SKIPS_TAPS)
        return 0;
    for (int y = 0, h; y < v->ho; y += h) {
        gcpi_range rows = gcpi_taps_at(&ys, y);
        h = gcpi_same_taps(&ys, y, v->ho);
        for (int x = 0, w; x < v->wo; x += w) {
            gcpi_range columns = gcpi_taps_at(&xs, x);
            w = gcpi_same_taps(&xs, x, v->wo);
            double terms = (double)(rows.end - rows.begin) * (columns.end - columns.begin) * v->channels;
            some += ceil(images * h * w / mr) * (terms + GCPI_TILE_TERMS) + GCPI_KIND_TERMS;
        }
    }
    return some < 0.995 * ceil(images * v->ho * v->wo / mr) * all;
}

/* Whether rows of w compete for the same sets of a cache: of L2, if a panel is so wide that each line is read whole;
   else of L1. */
static int gcpi_gather_crowded(const gcpi_gather *g, ptrdiff_t terms)
{
    ptrdiff_t pitch = g->ws[2] * (ptrdiff_t)sizeof(gcp_real), power = GCPI_MAX(pitch & -pitch, 1); /* of two */
    if (g->simd.nv * g->simd.lanes < GCPI_NR_MAX) return power >= GCPI_L1_CROWDED;
    return terms > GCPI_L2_MIN / GCPI_MIN(power, (ptrdiff_t)GCPI_L2_WAY);
}

/* Few pixels do not pay for packing w where its columns lie side by side. */
static int gcpi_gather_place(const gcpi_gather *g, ptrdiff_t terms)
{
    const gcpi_view *v = &g->v;
    int few = g->simd.nv * g->simd.lanes < GCPI_NR_MAX ? GCPI_PLACE_FEW / 4 : GCPI_PLACE_FEW,
        most = gcpi_gather_crowded(g, terms) ? few : GCPI_PLACE_PIXELS;
    return g->ws[3] == 1 && v->runs == v->kx && !g->w.half && (double)v->n * v->ho * v->wo <= most;
}

/* Whether a panel of w is read in place: kernels read whole vectors. */
static int gcpi_panel_place(const gcpi_gather *g, const gcpi_panel *p) { return g->place && p->cols == p->width; }

/* Room for floats in place of halves: rows of x, or of a panel of w that is turned; the sums of a block where its terms
   are summed in several goes, else of the rows that are walked together. */
static void gcpi_gather_floats(gcpi_gather *g, int width)
{
    const gcpi_view *v = &g->v;
    g->blocks = gcpi_ceil(v->ky, g->by) * gcpi_ceil(v->runs, g->bx) * gcpi_max(1, gcpi_ceil(v->len, g->bj));
    g->rows = gcpi_line(GCPI_MAX((ptrdiff_t)(v->direct ? GCPI_ROWS * g->bj : 0), (ptrdiff_t)GCPI_PACK_ROWS * width)) +
              GCPI_LINE;
    g->sums = gcpi_line((ptrdiff_t)(g->blocks > 1 ? v->bn * v->bh * v->bw : GCPI_ROWS) * g->panels * width);
}

/* Chooses all block sizes; returns the bytes of scratch. */
static size_t gcpi_gather_plan(gcpi_gather *g, int cols, const gcpi_par *par)
{
    g->simd = gcpi_simd_of(par->isa);
    g->halves = par->halves ? gcpi_halves_of(par->isa) : NULL;
    g->v.most = g->halves ? GCPI_WINDOW_WIDE : GCPI_WINDOW_MAX;
    g->planar = gcpi_planar_pays(g, cols);
    if (g->planar) return gcpi_planar_plan(g, cols, par);
    g->columns = gcpi_columns_of(cols, &g->simd);
    g->sets = 1;
    g->v.skips = !g->windowed && gcpi_gather_skips(g);
    gcpi_gather_cut(g, par);
    ptrdiff_t row = (ptrdiff_t)g->v.runs * g->v.len, all = g->v.ky * row;
    int width = gcpi_ceil(g->columns.vectors, g->columns.panels) * g->simd.lanes;
    g->by = g->bx = g->bj = 1;
    if (row > 0) {
        g->bj = gcpi_even(g->v.len, GCPI_K_BLOCK);
        g->bx = gcpi_even(g->v.runs, gcpi_max(1, GCPI_K_BLOCK / g->v.len));
        g->by = gcpi_even(g->v.ky, gcpi_max(1, (int)(GCPI_K_BLOCK / row)));
    }
    g->resident = all <= GCPI_RESIDENT_MAX / width;
    ptrdiff_t terms = g->resident ? all : (ptrdiff_t)g->by * g->bx * g->bj;
    ptrdiff_t most = terms ? GCPI_PACK_MAX / (terms * width) : g->columns.panels;
    g->panels = gcpi_even(g->columns.panels, gcpi_max(1, most < g->columns.panels ? (int)most : g->columns.panels));
    g->sets = gcpi_ceil(g->columns.panels, g->panels);
    if (g->sets > 1) gcpi_gather_cut(g, par);
    g->place = gcpi_gather_place(g, g->by * g->bx * g->bj);
    g->pack = gcpi_line((terms + 1) * g->panels * width); /* not less in place: a plan asks before it knows pitches */
    if (g->halves) gcpi_gather_floats(g, width);
    g->worker = GCPI_LINE + g->pack + g->rows + g->sums + g->v.window;
    return gcpi_scratch_bytes(0, g->worker, par);
}

/* Packs one panel of one block of the sum. */
static void gcpi_gather_pack(const gcpi_gather *g, gcpi_data w, const gcpi_kblock *k, const gcpi_panel *p,
                             gcp_real *out, gcp_real *room)
{
    int channels = g->v.channels;
    for (int y = k->y; y < k->y + k->ny; y++)
        for (int x = k->x; x < k->x + k->nx; x++)
            for (int j = x * g->v.len + k->j, end = j + k->nj, rows; j < end; j += rows) {
                rows = gcpi_min(end - j, channels - j % channels);
                gcpi_data from = gcpi_data_at(w, y * g->ws[0] + j / channels * g->ws[1] + j % channels * g->ws[2] +
                                                     p->first * g->ws[3]);
                if (w.half)
                    gcpi_pack_halves(&g->simd, g->halves, out, p->width, p->cols, from, rows, g->ws[2], g->ws[3], room);
                else
                    gcpi_pack_rows(&g->simd, out, p->width, p->cols, (const gcp_real *)from.at, rows, g->ws[2], g->ws[3]);
                out += (ptrdiff_t)rows * p->width;
            }
}

/* All pixels of a chunk, for the panels of a set and one block of the sum. */
typedef struct gcpi_sweep {
    const gcpi_gather *g;
    gcpi_block block;
    gcpi_kblock k, part; /* what is packed, and the part of it that reaches these pixels */
    gcpi_data x, w, y;
    const gcp_real *packed, *start; /* start: see gcpi_tile */
    ptrdiff_t first;                /* from x to the block's first tap, which may not be there */
    int panel, panel_end, paced;    /* paced: the tiles prefetch the rows after them */
    gcp_real *rows, *sums;          /* with halves: rows of x in floats; sums, [pixel][width] */
    int base, cols, width;          /* the first column of the set, its columns, with padding */
    int begins, ends;               /* the first, the last block of the sum */
} gcpi_sweep;

/* Bytes from a row to what is prefetched meanwhile. The hardware's own prefetching stops at the end of a page. */
enum { GCPI_PACE_AHEAD = 4096 };

/* a and c hold GCPI_ROWS pointers. Those from `rows` on are never stored to, but must be readable. */
GCPI_FAST static void gcpi_sweep_panels(const gcpi_sweep *s, const gcp_real *const *a, gcp_real *const *c, int rows)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    const gcpi_kblock *k = &s->k, *n = &s->part;
    const int base = s->base;
    ptrdiff_t terms = (ptrdiff_t)k->ny * k->nx * k->nj,
              skipped = ((ptrdiff_t)(n->y - k->y) * k->nx + (n->x - k->x)) * k->nj + (n->j - k->j);
    gcpi_tile t;
    t.ahead = t.pace = 0, t.burst = g->simd.burst;
    t.n[0] = n->ny, t.n[1] = n->nx, t.n[2] = n->nj;
    t.as[0] = v->dy * v->ws[1], t.as[1] = v->dx * v->ws[2], t.as[2] = g->halves ? 1 : v->xc;
    for (int p = s->panel; p < s->panel_end; p++) {
        gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        int mr = g->simd.mr[panel.nv - 1];
        if (gcpi_panel_place(g, &panel)) {
            memcpy(t.bs, g->ws, sizeof t.bs);
            t.b = (const gcp_real *)s->w.at + n->y * g->ws[0] + n->x * g->ws[1] + n->j * g->ws[2] + panel.first;
        }
        else {
            t.bs[2] = panel.width, t.bs[1] = t.bs[2] * k->nj, t.bs[0] = t.bs[1] * k->nx;
            t.b = s->packed + terms * (panel.first - base) + skipped * panel.width;
        }
        t.start = s->start ? s->start + (panel.first - base) : NULL, t.ss = 0;
        t.first = g->halves ? panel.first - base : panel.first;
        if (g->halves) panel.cols = panel.width;
        gcpi_kernel *kernel = g->simd.kernel[panel.nv - 1];
        /* a tile prefetches its panel's share of as many bytes as it reads */
        if (s->paced) t.pace = (uintptr_t)mr * sizeof(gcp_real) / (uintptr_t)(s->panel_end - s->panel);
        ptrdiff_t ahead = GCPI_PACE_AHEAD + (ptrdiff_t)(p - s->panel) * (ptrdiff_t)t.pace * k->nj;
        for (int r = 0; r < rows; r += mr) {
            t.rows = gcpi_min(mr, rows - r);
            t.a = a + r, t.c = c + r;
            if (s->paced) t.ahead = (uintptr_t)a[r] + (uintptr_t)ahead;
            gcpi_run_tile(kernel, &t, &panel);
        }
    }
}

/* Where x is read in place, this prefetches the pixels after these rows: the hardware does not recognise a few short
 * rows at a time as a stream. Pixels that lie side by side are fetched in one go, with fewer instructions. down: to the
 * last kernel row, since earlier pixels have read the others. Always inlined, because gcc drops the call of a function
 * that only prefetches. */
GCPI_BODY void gcpi_sweep_ahead(const gcp_real *const *a, ptrdiff_t step, ptrdiff_t terms, ptrdiff_t down)
{
    const ptrdiff_t far = GCPI_ROWS * step + down;
    if (step == terms) gcpi_fetch(a[0], far, GCPI_ROWS * step);
    else for (int i = 0; i < GCPI_ROWS; i++) gcpi_fetch(a[i], far, terms);
}

/* With halves: rows of x and sums are floats of the worker's. first: of x, at[]: of y, for each row. */
typedef struct gcpi_rows_held {
    const gcp_real *a[GCPI_ROWS];
    gcp_real *c[GCPI_ROWS];
    ptrdiff_t from[GCPI_ROWS], at[GCPI_ROWS];
    int rows;
} gcpi_rows_held;

/* The values of row i that the terms s->part read. They may lie apart: in a transposed matrix. */
GCPI_FAST static void gcpi_held_row(const gcpi_sweep *s, gcpi_rows_held *w, int i)
{
    const gcpi_gather *g = s->g;
    const int n = s->part.nj;
    gcp_real *to = s->rows + (ptrdiff_t)i * n;
    gcpi_data x = gcpi_data_at(s->x, w->from[i]);
    if (g->v.xc == 1) gcpi_data_load(g->halves, x, 0, to, 0, 1, n);
    else gcpi_data_load(g->halves, x, g->v.xc, to, 1, n, 1);
    w->a[i] = to;
}

/* Rows that lie side by side, in x or in y, are widened or rounded in one go. */
static int gcpi_held_even(const ptrdiff_t *at, int rows)
{
    for (int i = 2; i < rows; i++) if (at[i] - at[i - 1] != at[1] - at[0]) return 0;
    return 1;
}
GCPI_FAST static void gcpi_held_load(const gcpi_sweep *s, gcpi_rows_held *w)
{
    const gcpi_gather *g = s->g;
    const int n = s->part.nj;
    if (g->v.direct && g->v.xc == 1 && w->rows > 1 && gcpi_held_even(w->from, w->rows)) {
        gcpi_data_load(g->halves, gcpi_data_at(s->x, w->from[0]), w->from[1] - w->from[0], s->rows, n, w->rows, n);
        for (int i = 0; i < w->rows; i++) w->a[i] = s->rows + (ptrdiff_t)i * n;
    }
    else for (int i = 0; i < w->rows && g->v.direct; i++) gcpi_held_row(s, w, i);
    for (int i = 0; i < w->rows && s->begins && g->accumulate; i++)
        gcpi_data_load(g->halves, gcpi_data_at(s->y, w->at[i] + s->base), 0, w->c[i], 0, 1, s->cols);
}
GCPI_FAST static void gcpi_held_store(const gcpi_sweep *s, const gcpi_rows_held *w)
{
    const int even = w->rows > 1 && gcpi_held_even(w->at, w->rows) && s->g->blocks == 1;
    for (int i = 0; i < w->rows; i += even ? w->rows : 1)
        gcpi_data_store(s->g->halves, gcpi_data_at(s->y, w->at[i] + s->base), even ? w->at[1] - w->at[0] : 0, w->c[i],
                        s->width, even ? w->rows : 1, s->cols);
}

/* Sums the rows that are collected. Those from `rows` on repeat the first. */
GCPI_FAST static void gcpi_held_run(const gcpi_sweep *s, gcpi_rows_held *w)
{
    const gcpi_gather *g = s->g;
    if (g->halves) gcpi_held_load(s, w);
    for (int i = w->rows; i < GCPI_ROWS; i++) w->a[i] = w->a[0], w->c[i] = w->c[0];
    gcpi_sweep_panels(s, w->a, w->c, w->rows);
    if (g->halves && s->ends) gcpi_held_store(s, w);
    w->rows = 0;
}

/* Adds a pixel of the block, at number `pixel` of it: where its x and y lie. */
GCPI_BODY void gcpi_held_add(const gcpi_sweep *s, gcpi_rows_held *w, ptrdiff_t x, ptrdiff_t y, ptrdiff_t pixel)
{
    const int i = w->rows++, halves = s->g->halves != NULL;
    w->a[i] = halves && s->g->v.direct ? NULL : (const gcp_real *)s->x.at + x;
    w->c[i] = halves ? s->sums + (s->g->blocks > 1 ? pixel : i) * s->width : (gcp_real *)s->y.at + y;
    w->from[i] = x, w->at[i] = y;
}

/* Pixels `part` of the block (y and x are counted from the block's) for the terms s->part. */
GCPI_FAST static void gcpi_sweep_pixels(gcpi_sweep *s, gcpi_block part)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    const ptrdiff_t first =
        s->first + s->part.y * v->dy * v->ws[1] + s->part.x * v->dx * v->ws[2] + s->part.j * v->xc;
    const ptrdiff_t xstep = v->sx * v->ws[2], ystep = g->ys[2];
    const int burst = !g->halves && g->simd.burst && v->direct && GCPI_ROWS * s->k.nj <= 2 * GCPI_L1_HALF;
    gcpi_rows_held w;
    w.rows = 0;
    s->paced = !g->halves && !g->simd.burst && v->direct && xstep == s->k.nj;
    for (int line = 0; line < part.n * part.h; line++) {
        int b = line / part.h, py = part.y + line % part.h;
        ptrdiff_t x = first + b * v->ws[0] + py * v->sy * v->ws[1] + part.x * xstep,
                  y = (s->block.b + b) * g->ys[0] + (s->block.y + py) * g->ys[1] + (s->block.x + part.x) * ystep,
                  pixel = ((ptrdiff_t)b * s->block.h + py) * s->block.w + part.x;
        for (int px = 0; px < part.w; px++) {
            gcpi_held_add(s, &w, x + px * xstep, y + px * ystep, pixel + px);
            if (w.rows < GCPI_ROWS) continue;
            if (burst) gcpi_sweep_ahead(w.a, xstep, s->k.nj, (s->part.ny - 1) * v->dy * v->ws[1]);
            gcpi_held_run(s, &w);
        }
    }
    if (w.rows) gcpi_held_run(s, &w);
}

/* The terms of block k of the sum at these taps; none where they do not meet. Where kx and channels are one run, the
   run is cut. */
static gcpi_kblock gcpi_kblock_at(const gcpi_view *v, const gcpi_kblock *k, gcpi_range ky, gcpi_range kx)
{
    gcpi_kblock p = *k;
    int one = v->runs == 1 && v->kx > 1, cut = one ? v->channels : 1, *at = one ? &p.j : &p.x, *n = one ? &p.nj : &p.nx;
    int begin = gcpi_max(*at, kx.begin * cut), end = gcpi_min(*at + *n, kx.end * cut);
    *at = begin, *n = end - begin;
    p.y = gcpi_max(k->y, ky.begin), p.ny = gcpi_min(k->y + k->ny, ky.end) - p.y;
    if (p.ny > 0 && *n > 0) return p;
    p = *k, p.nj = 0;
    return p;
}

/* Pixels with the same taps are swept together, so that no tap reads padding. */
static void gcpi_sweep_block(gcpi_sweep *s)
{
    const gcpi_view *v = &s->g->v;
    const gcpi_side ys = gcpi_view_rows(v), xs = gcpi_view_columns(v);
    gcpi_block k = s->block, p = k;
    s->part = s->k;
    p.y = p.x = 0;
    if (!v->skips) gcpi_sweep_pixels(s, p);
    for (p.y = 0; v->skips && p.y < k.h; p.y += p.h) {
        p.h = gcpi_same_taps(&ys, k.y + p.y, k.y + k.h);
        for (p.x = 0; p.x < k.w; p.x += p.w) {
            p.w = gcpi_same_taps(&xs, k.x + p.x, k.x + k.w);
            s->part = gcpi_kblock_at(v, &s->k, gcpi_taps_at(&ys, k.y + p.y), gcpi_taps_at(&xs, k.x + p.x));
            gcpi_sweep_pixels(s, p);
        }
    }
}

/* Packs the panels of a set for the block s->k, at `out`. */
static void gcpi_gather_pack_set(const gcpi_gather *g, const gcpi_sweep *s, gcp_real *out)
{
    for (int p = s->panel; p < s->panel_end; p++) {
        gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        if (!gcpi_panel_place(g, &panel)) gcpi_gather_pack(g, s->w, &s->k, &panel, out, s->rows);
        out += (ptrdiff_t)s->k.ny * s->k.nx * s->k.nj * panel.width;
    }
}

/* The starting values of a set: the bias, or zeros. */
static void gcpi_gather_start(const gcpi_gather *g, int group, int first, int width, gcp_real *out)
{
    for (int j = 0; j < width; j++)
        out[j] = g->bias && first + j < g->columns.count ? g->bias[group * g->columns.count + first + j] : 0;
}

static void gcpi_gather_task(void *arg, int index, int worker)
{
    const gcpi_gather *g = (const gcpi_gather *)arg;
    const gcpi_view *v = &g->v;
    gcp_real *scratch = g->scratch + worker * g->worker, *start = scratch + GCPI_LINE;
    /* last: the set whose weights this worker has packed */
    ptrdiff_t chunk = (g->base + index) % v->chunks, set = (g->base + index) / v->chunks, last;
    int group = (int)(set / g->sets);
    gcpi_sweep s;
    s.g = g;
    s.w = gcpi_data_at(g->w, g->wfirst + group * g->wgroup);
    s.panel = (int)(set % g->sets * g->columns.panels / g->sets);
    s.panel_end = (int)((set % g->sets + 1) * g->columns.panels / g->sets);
    int first = gcpi_panel_of(&g->columns, s.panel).first;
    int width = gcpi_panel_of(&g->columns, s.panel_end).first - first;
    s.block = gcpi_view_block(v, chunk);
    s.base = first, s.width = width, s.cols = gcpi_min(width, g->columns.count - first);
    s.rows = start + g->pack, s.sums = s.rows + g->rows;
    s.x = gcpi_data_at(g->x, group * g->xgroup);
    s.first = s.block.b * v->xs[0] + (v->oy + (ptrdiff_t)s.block.y * v->sy) * v->xs[1] +
              (v->ox + (ptrdiff_t)s.block.x * v->sx) * v->xs[2];
    if (!v->direct) {
        s.x = gcpi_reals(gcpi_view_load(v, g->halves, s.x, &s.block, 0, v->ky, s.sums + g->sums));
        s.first = 0;
    }
    s.y = gcpi_data_at(g->y, g->yfirst + group * g->ygroup);
    memcpy(&last, scratch, sizeof last);
    int packed = g->resident && last == set; /* by an earlier task of this worker */
    memcpy(scratch, &set, sizeof set);
    if (!packed) gcpi_gather_start(g, group, first, width, start);
    s.start = g->accumulate ? NULL : start;
    gcp_real *out = start + width;
    for (s.k.y = 0; s.k.y < v->ky; s.k.y += g->by)
        for (s.k.x = 0; s.k.x < v->runs; s.k.x += g->bx)
            for (s.k.j = 0; s.k.j == 0 || s.k.j < v->len; s.k.j += g->bj) {
                s.k.ny = gcpi_min(g->by, v->ky - s.k.y);
                s.k.nx = gcpi_min(g->bx, v->runs - s.k.x);
                s.k.nj = gcpi_min(g->bj, v->len - s.k.j);
                if (!packed) gcpi_gather_pack_set(g, &s, out);
                s.packed = out;
                s.begins = !s.k.y && !s.k.x && !s.k.j;
                s.ends = s.k.y + g->by >= v->ky && s.k.x + g->bx >= v->runs && s.k.j + g->bj >= v->len;
                gcpi_sweep_block(&s);
                s.start = NULL;
                if (g->resident) out += (ptrdiff_t)s.k.ny * s.k.nx * s.k.nj * width;
            }
    gcpi_gather_end(g, &s.block, group * g->columns.count + first, s.cols, worker);
}

static void gcpi_gather_run(gcpi_gather *g, void *scratch, const gcpi_par *par)
{
    g->scratch = (gcp_real *)scratch;
    if (g->planar) {
        gcpi_planar_run(g, par);
        return;
    }
    const ptrdiff_t none = -1;
    for (int i = 0; i < par->threads; i++) memcpy(g->scratch + i * g->worker, &none, sizeof none);
    gcpi_par_run(par, g->v.chunks * g->sets * g->groups, &g->base, gcpi_gather_task, g);
}
