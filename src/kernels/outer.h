/* The outer product: convolution backward weights, transposed A times B. */

typedef struct gcpi_outer { /* d[row][t, j] = sum over pixels p of e[p][row] * x[p + t][j] */
    gcpi_view v;
    const gcp_real *x, *e;
    gcp_real *d;
    int rows, groups, accumulate;
    ptrdiff_t es[3], ds; /* steps of e: image, row, pixel; step of d: row */
    ptrdiff_t xgroup, egroup, dgroup;
    int turned;    /* d is stored as [j][row]; for one group only */
    /* set by gcpi_outer_plan */
    gcpi_simd simd;
    gcpi_columns columns;         /* of one run; blocked: of the channels */
    /* A panel of x's channels is copied as [pixel][panel], and read at all taps. */
    int blocked, taps, sy, sx;    /* pixels of x from one row, one pixel of the copy to the next */
    int place;                    /* blocked, but not copied */
    int splits, shared;           /* private sums of blocks of pixels; shared: d itself is the only one */
    int packed;                   /* rows of e are copied side by side */
    /* for few channels of x: rows are the elements of x under the kernel, columns are e's */
    int swapped;
    int height, width;            /* of a sum */
    int part, parts, unit, units; /* rows of a task, their cuts; panels of a task, their cuts */
    ptrdiff_t sum, worker;        /* values: in a sum; in a worker's scratch */
    ptrdiff_t base;               /* number of the task at index 0 (gcpi_par_run) */
    gcp_real *scratch;
} gcpi_outer;

/* e is packed as [rows / 48][pixel][48]; the last block is as wide as the rows that are left. At the pitch of e, pixels
 * would compete for the same cache sets. An extra line after each block spreads them. */
static ptrdiff_t gcpi_outer_block(ptrdiff_t pixels) { return pixels * GCPI_OUTER_ROWS + GCPI_LINE; }

/* Panels of all runs, or blocked: panels of channels at all taps. */
static int gcpi_outer_panels(const gcpi_outer *o)
{
    return (o->blocked ? o->taps : o->v.ky * o->v.runs) * o->columns.panels;
}

/* Pixels of x that the units of one part read, per pixel of e. Blocked, a unit copies its own channels alone, unless
   several share a panel. */
static double gcpi_outer_reads(const gcpi_outer *o, int units)
{
    if (o->place) return 1;
    if (o->blocked) return gcpi_max(1, units / o->columns.panels);
    return (double)units * gcpi_min(o->v.sy, gcpi_ceil(o->v.ky, units)) * o->v.sx;
}

/* Cuts rows and panels into enough tasks, with as few repeated copies as possible: each unit of panels copies the rows
 * again, each part of the rows reads x again. The packed rows of a part fit in L2. Scratch depends on the parts, so
 * they depend on the shape and the threads, not on the pitch of x. */
static void gcpi_outer_cut(gcpi_outer *o, const gcpi_par *par)
{
    double best = 0;
    int blocks = gcpi_ceil(o->rows, GCPI_OUTER_ROWS), pixels = o->v.bn * o->v.bh * o->v.bw,
        tasks = gcpi_ceil(gcpi_par_tasks(par), o->splits * gcpi_min(o->groups, GCPI_TASKS));
    int fit = gcpi_max(1, gcpi_min(GCPI_OUTER_BLOCKS, GCPI_PACK_MAX / (GCPI_OUTER_ROWS * pixels)));
    for (int most = gcpi_min(blocks, fit); most > 0; most--) {
        int part = gcpi_even(blocks, most), parts = gcpi_ceil(blocks, part), units = gcpi_ceil(tasks, parts);
        double copied = (double)units * o->rows + parts * gcpi_outer_reads(o, units) * o->v.channels;
        if (best > 0 && copied >= best) continue;
        best = copied;
        o->part = part * GCPI_OUTER_ROWS;
    }
    o->parts = gcpi_ceil(o->rows, o->part);
    int panels = gcpi_outer_panels(o);
    o->unit = gcpi_ceil(panels, gcpi_ceil(tasks, o->parts));
    o->units = gcpi_ceil(panels, o->unit);
}

/* Whether more lanes work once rows and columns change places: a run of x may be shorter than a vector where the rows
   of e fill one. */
static int gcpi_outer_swaps(const gcpi_outer *o)
{
    int lanes = o->simd.lanes, run = o->v.kx * o->v.channels, elements = o->v.ky * run, mr, mr_swapped;
    gcpi_columns c = gcpi_columns_of(run, &o->simd), swapped = gcpi_columns_of(o->rows, &o->simd);
    gcpi_kernel_of(&o->simd, gcpi_panel_of(&c, 0).nv, o->rows, &mr);
    gcpi_kernel_of(&o->simd, gcpi_panel_of(&swapped, 0).nv, elements, &mr_swapped);
    double now = run / ((double)c.vectors * lanes) * o->rows / ((double)gcpi_ceil(o->rows, mr) * mr);
    double then =
        o->rows / ((double)swapped.vectors * lanes) * elements / ((double)gcpi_ceil(elements, mr_swapped) * mr_swapped);
    return o->v.channels <= 4 && o->v.ky * o->v.kx > 1 && o->v.dx == 1 && o->groups == 1 && !o->turned &&
           (ptrdiff_t)elements * o->rows <= GCPI_PARTIAL_MAX / GCPI_TASKS && then > 1.3 * now;
}

/* Every task computes all rows and columns, into a private sum. */
static size_t gcpi_swapped_plan(gcpi_outer *o, const gcpi_par *par)
{
    gcpi_view_cut(&o->v, 2 * GCPI_OUTER_PIXELS, 0);
    o->columns = gcpi_columns_of(o->rows, &o->simd);
    o->splits = (int)GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS);
    o->height = o->v.ky * o->v.len, o->width = o->rows, o->turned = 1;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->packed = o->rows % o->simd.lanes != 0;         /* else e's rows are whole vectors: read in place */
    o->worker =
        (o->packed ? gcpi_line((ptrdiff_t)o->v.bn * o->v.bh * o->v.bw * o->rows) + GCPI_NR_MAX : 0) + o->v.window;
    return gcpi_scratch_bytes(o->sum * o->splits, o->worker, par);
}

/* Whether whole channels fill as many lanes as a run of (kx, channels) would. */
static int gcpi_outer_fills(const gcpi_outer *o)
{
    int lanes = o->simd.lanes, channels = o->v.channels, run = o->v.kx * (o->v.dx == 1 ? channels : 1);
    double along = run / ((double)gcpi_ceil(run, lanes) * lanes),
           across = channels / ((double)gcpi_ceil(channels, lanes) * lanes);
    return channels >= lanes && across >= 0.95 * along;
}

/* Cuts the pixels, and says how x is read: blocked where channels fill the lanes; then in place where they are few and
   all there. What is read in place is cut into half as many, so that this chunk and the next fit in L2. */
static void gcpi_outer_view(gcpi_outer *o)
{
    gcpi_view *v = &o->v;
    int channels = v->channels, lanes = o->simd.lanes;
    o->blocked = gcpi_outer_fills(o);
    o->place = o->blocked && gcpi_view_inside(v) &&
               (channels <= GCPI_OUTER_NEAR ||
                (channels <= 2 * GCPI_OUTER_NEAR && (int64_t)o->rows * channels <= GCPI_OUTER_SMALL));
    int values = GCPI_OUTER_MAX >> o->place, least = GCPI_OUTER_PIXELS >> o->place,
        pixels = gcpi_min(2 * GCPI_OUTER_PIXELS, (int)(values / ((int64_t)o->rows + channels)));
    if (o->blocked) v->channels = gcpi_min(o->simd.nv, gcpi_ceil(channels, lanes)) * lanes;
    gcpi_view_cut(v, gcpi_max(least, pixels), 0);
    v->channels = channels;
}

/* Rows and pixels a row of the window of a block. */
static void gcpi_outer_window(const gcpi_outer *o, const gcpi_block *k, int *rows, int *pixels)
{
    const gcpi_view *v = &o->v;
    *rows = (k->h - 1) * (v->sy / o->sy) + (v->ky - 1) * v->dy + 1;
    *pixels = (k->w - 1) * (v->sx / o->sx) + (v->kx - 1) * v->dx + 1;
}

/* The window of one panel is kept, of the widest. Read in place, only the last pixel may need a copy: the kernels read
   whole vectors. */
static void gcpi_outer_block_plan(gcpi_outer *o)
{
    gcpi_view *v = &o->v;
    int width = gcpi_ceil(o->columns.vectors, o->columns.panels) * o->simd.lanes;
    o->sy = v->ky == 1 ? v->sy : 1, o->sx = v->kx == 1 ? v->sx : 1;
    o->taps = v->ky * v->kx;
    v->runs = v->kx, v->len = v->channels;
    gcpi_block most = { 0, 0, 0, v->bn, v->bh, v->bw };
    gcpi_outer_window(o, &most, &v->wh, &v->ww);
    v->window = o->place && v->channels % o->simd.lanes == 0 ? 0 : gcpi_line((ptrdiff_t)v->bn * v->wh * v->ww * width);
}

static size_t gcpi_outer_plan(gcpi_outer *o, const gcpi_par *par)
{
    o->simd = gcpi_simd_of(par->isa);
    o->splits = GCPI_TASKS;
    o->swapped = gcpi_outer_swaps(o);
    if (o->swapped) return gcpi_swapped_plan(o, par);
    gcpi_outer_view(o);
    o->columns = gcpi_columns_of(o->blocked ? o->v.channels : o->v.len, &o->simd);
    if (o->blocked) gcpi_outer_block_plan(o);
    o->height = o->groups * o->rows, o->width = o->v.ky * o->v.runs * o->v.len;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->splits = (int)GCPI_MIN(GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS), GCPI_PARTIAL_MAX / o->sum);
    o->splits = gcpi_max(1, o->splits);
    gcpi_outer_cut(o, par);
    ptrdiff_t pixels = (ptrdiff_t)o->v.bn * o->v.bh * o->v.bw;
    o->packed = o->groups * o->rows > GCPI_OUTER_PLAIN;
    o->worker = (o->packed ? gcpi_ceil(o->part, GCPI_OUTER_ROWS) * gcpi_outer_block(pixels) : 0) + o->v.window;
    o->shared = o->splits == 1 && !o->turned;
    ptrdiff_t sums = o->shared ? 0 : o->sum * o->splits;
    return gcpi_scratch_bytes(sums, o->worker, par);
}

/* Packs the rows of e at the pixels of a chunk: see gcpi_outer_block. */
GCPI_FAST static const gcp_real *gcpi_outer_pack(const gcpi_outer *o, const gcp_real *e, const gcpi_block *k, int rows,
                                                 gcp_real *out)
{
    ptrdiff_t block = gcpi_outer_block((ptrdiff_t)k->n * k->h * k->w);
    for (int line = 0; line < k->n * k->h; line++) {
        const gcp_real *from = e + line / k->h * o->es[0] + line % k->h * o->es[1];
        for (int r = 0; r < rows; r += GCPI_OUTER_ROWS) {
            int width = gcpi_min(GCPI_OUTER_ROWS, rows - r);
            gcp_real *to = out + r / GCPI_OUTER_ROWS * block + (ptrdiff_t)line * k->w * width;
            if (width == o->es[2]) memcpy(to, from + r, (size_t)((ptrdiff_t)k->w * width) * sizeof *to);
            else if (width >= o->simd.lanes) o->simd.copy(to, from + r, k->w, o->es[2], width);
            else for (int i = 0; i < k->w; i++) gcpi_copy(to + i * width, from + i * o->es[2] + r, width);
        }
    }
    return out;
}

/* What a panel of d sums over: columns of x, where they begin, their steps; where the sums begin in a row of d. */
typedef struct gcpi_source {
    gcpi_panel panel;
    const gcp_real *x;
    ptrdiff_t steps[3], d;
} gcpi_source;

/* Panel p in the pixels that gcpi_view_load gave; panels of all runs are counted in one sequence. */
static gcpi_source gcpi_outer_run_source(const gcpi_outer *o, const gcp_real *x, int p)
{
    const gcpi_view *v = &o->v;
    int run = p / o->columns.panels;
    gcpi_source s;
    s.panel = gcpi_panel_of(&o->columns, p % o->columns.panels);
    s.x = x + run / v->runs * v->dy * v->ws[1] + run % v->runs * v->dx * v->ws[2] + s.panel.first;
    s.steps[0] = v->ws[0], s.steps[1] = gcpi_stride(v->sy, v->ws[1]), s.steps[2] = gcpi_stride(v->sx, v->ws[2]);
    s.d = run * (ptrdiff_t)v->len + s.panel.first;
    return s;
}

/* Copies one row of the window of a panel: pixels from `first` on, o->sx apart, zeros where there are none. */
GCPI_FAST static void gcpi_outer_row_load(const gcpi_outer *o, const gcp_real *row, ptrdiff_t first, int count,
                                          const gcpi_panel *p, gcp_real *out)
{
    const gcpi_view *v = &o->v;
    ptrdiff_t step = o->sx * v->xs[2];
    gcpi_range in = gcpi_inside(first, o->sx, count, row ? v->w : 0);
    memset(out, 0, (size_t)((ptrdiff_t)in.begin * p->width) * sizeof *out);
    memset(out + (ptrdiff_t)in.end * p->width, 0, (size_t)((ptrdiff_t)(count - in.end) * p->width) * sizeof *out);
    if (in.end <= in.begin) return;
    row += first * v->xs[2];
    if (p->cols == p->width)
        o->simd.copy(out + (ptrdiff_t)in.begin * p->width, row + in.begin * step, in.end - in.begin, step, p->width);
    else
        for (int i = in.begin; i < in.end; i++) {
            gcpi_copy(out + (ptrdiff_t)i * p->width, row + i * step, p->cols);
            memset(out + (ptrdiff_t)i * p->width + p->cols, 0, (size_t)(p->width - p->cols) * sizeof *out);
        }
}

/* Blocked: copies the window of block k for a panel of channels of x. */
GCPI_FAST static void gcpi_outer_load(const gcpi_outer *o, const gcp_real *x, const gcpi_block *k, const gcpi_panel *p,
                                      gcp_real *window)
{
    const gcpi_view *v = &o->v;
    int rows, pixels;
    gcpi_outer_window(o, k, &rows, &pixels);
    ptrdiff_t y0 = v->oy + (ptrdiff_t)k->y * v->sy, x0 = v->ox + (ptrdiff_t)k->x * v->sx;
    for (int b = 0; b < k->n; b++)
        for (int r = 0; r < rows; r++, window += (ptrdiff_t)pixels * p->width) {
            ptrdiff_t y = y0 + (ptrdiff_t)r * o->sy;
            const gcp_real *row =
                y < 0 || y >= v->h ? NULL : x + (k->b + b) * v->xs[0] + y * v->xs[1] + p->first;
            gcpi_outer_row_load(o, row, x0, pixels, p, window);
        }
}

/* Item p of the panels at their taps: all taps of a panel, then the next panel. Its window is loaded where it differs
   from that of the item before; x is read in place where `window` is NULL. */
static gcpi_source gcpi_outer_block_source(const gcpi_outer *o, const gcp_real *x, const gcpi_block *k, int p, int load,
                                           gcp_real *window)
{
    const gcpi_view *v = &o->v;
    int tap = p % o->taps, ky = tap / v->kx, kx = tap % v->kx, rows, pixels;
    gcpi_source s;
    s.panel = gcpi_panel_of(&o->columns, p / o->taps);
    s.d = tap * (ptrdiff_t)v->channels + s.panel.first;
    if (!window) {
        s.x = x + k->b * v->xs[0] + (v->oy + k->y * v->sy + ky * v->dy) * v->xs[1] +
              (v->ox + k->x * v->sx + kx * v->dx) * v->xs[2] + s.panel.first;
        s.steps[0] = v->xs[0], s.steps[1] = gcpi_stride(v->sy, v->xs[1]), s.steps[2] = gcpi_stride(v->sx, v->xs[2]);
        return s;
    }
    if (load || !tap) gcpi_outer_load(o, x, k, &s.panel, window);
    gcpi_outer_window(o, k, &rows, &pixels);
    ptrdiff_t row = (ptrdiff_t)pixels * s.panel.width;
    s.steps[2] = v->sx / o->sx * (ptrdiff_t)s.panel.width, s.steps[1] = v->sy / o->sy * row, s.steps[0] = rows * row;
    s.x = window + ky * v->dy * row + kx * v->dx * (ptrdiff_t)s.panel.width;
    return s;
}

/* Merges two loops into one where the outer loop's step goes on exactly where the inner loop ends. */
static void gcpi_tile_merge(gcpi_tile *t)
{
    for (int i = 1; i >= 0; i--) {
        if (t->as[i] != t->n[2] * t->as[2] || t->bs[i] != t->n[2] * t->bs[2]) return;
        t->n[2] *= t->n[i], t->n[i] = 1;
    }
}

/* What a task prefetches while it sums over a chunk: the pixels of the next one in x, then in e, spread evenly over all
   terms. They are taken to lie side by side. */
typedef struct gcpi_pace {
    uintptr_t x, e, half, tile, term; /* addresses; bytes of x, for each tile, for each term */
} gcpi_pace;

/* A task: some rows and panels of d, at one chunk after the other. */
typedef struct gcpi_share {
    int group, row, rows, first, last; /* rows from `row` on; panels first .. last - 1 */
    gcp_real *d;
    ptrdiff_t ds;
    gcpi_block k;                      /* the chunk */
    const gcp_real *e;                 /* its rows, packed or in place */
    int fresh;                         /* d is not added to */
    gcpi_pace pace;
} gcpi_share;

static const gcp_real *gcpi_outer_rows(const gcpi_outer *o, const gcpi_share *s, const gcpi_block *k)
{
    return o->e + s->group * o->egroup + s->row + k->b * o->es[0] + k->y * o->es[1] + k->x * o->es[2];
}

static gcpi_pace gcpi_outer_pace(const gcpi_outer *o, const gcpi_share *s, ptrdiff_t chunk)
{
    const gcpi_view *v = &o->v;
    gcpi_block k = gcpi_view_block(v, chunk);
    uintptr_t pixels = (uintptr_t)k.n * (uintptr_t)k.h * (uintptr_t)k.w,
              tiles = (uintptr_t)gcpi_ceil(s->rows, o->simd.mr[o->simd.nv - 1]) * (uintptr_t)(s->last - s->first);
    gcpi_pace p;
    p.x = (uintptr_t)(o->x + s->group * o->xgroup + k.b * v->xs[0] + k.y * v->xs[1] + k.x * v->xs[2]);
    p.e = (uintptr_t)gcpi_outer_rows(o, s, &k);
    p.half = pixels * (uintptr_t)v->xs[2] * sizeof(gcp_real);
    p.tile = (p.half + (s->rows == o->es[2] ? pixels * (uintptr_t)s->rows * sizeof(gcp_real) : 0)) / tiles;
    p.term = p.tile / pixels + 1;
    return p;
}

/* Where what a task reads in place lies side by side from chunk to chunk, and the core does not want it at once. */
static int gcpi_outer_paces(const gcpi_outer *o)
{
    return !o->simd.burst && o->place && o->taps == 1 && o->sx == 1 && o->sy == 1 && o->units == 1 &&
           o->v.xs[2] == o->v.channels;
}

/* Adds a chunk to a share's rows of d, for one panel of x: the panel-th of the share. */
GCPI_FAST static void gcpi_outer_panel(const gcpi_outer *o, const gcpi_share *s, const gcpi_source *x, int panel)
{
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_block *k = &s->k;
    const gcpi_pace *pace = &s->pace;
    const gcp_real *rows_of_e[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX], *d = s->d + x->d;
    gcpi_tile t;
    t.a = rows_of_e, t.c = c, t.first = 0, t.ahead = (uintptr_t)s->e, t.pace = pace->term;
    t.start = s->fresh ? zero : NULL, t.ss = 0;
    t.b = x->x;
    int mr;
    /* no tile may span two packed blocks, and 5 does not divide 48 */
    gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, x->panel.nv, s->rows <= GCPI_OUTER_ROWS ? s->rows : 0, &mr);
    for (int r = 0; r < s->rows; r += mr) {
        int first = r / GCPI_OUTER_ROWS * GCPI_OUTER_ROWS;
        const gcp_real *a = s->e + r;
        t.n[0] = k->n, t.n[1] = k->h, t.n[2] = k->w;
        memcpy(t.bs, x->steps, sizeof t.bs);
        memcpy(t.as, o->es, sizeof t.as);
        if (o->packed) {
            a = s->e + r / GCPI_OUTER_ROWS * gcpi_outer_block((ptrdiff_t)k->n * k->h * k->w) + (r - first);
            t.as[2] = gcpi_min(GCPI_OUTER_ROWS, s->rows - first), t.as[1] = t.as[2] * k->w, t.as[0] = t.as[1] * k->h;
        }
        gcpi_tile_merge(&t);
        t.rows = gcpi_min(mr, s->rows - r);
        if (pace->term) {
            uintptr_t at = (uintptr_t)(panel * gcpi_ceil(s->rows, mr) + r / mr) * pace->tile;
            t.ahead = at < pace->half ? pace->x + at : pace->e + at - pace->half;
        }
        for (int i = 0; i < mr; i++) {
            rows_of_e[i] = i < t.rows ? a + i : a;
            c[i] = d + (i < t.rows ? r + i : r) * s->ds;
        }
        gcpi_run_tile(&o->simd, kernel, &t, &x->panel);
    }
}

/* Adds the chunk s->k, of number `chunk`. packed, window: room for rows of e, for pixels of x. */
static void gcpi_outer_chunk(const gcpi_outer *o, gcpi_share *s, ptrdiff_t chunk, gcp_real *packed, gcp_real *window)
{
    const gcpi_view *v = &o->v;
    const gcp_real *x = o->x + s->group * o->xgroup;
    int row_panels = v->runs * o->columns.panels;
    if (o->place && (chunk + 1 < v->chunks || v->channels % o->simd.lanes == 0)) window = NULL;
    if (!o->blocked) x = gcpi_view_load(v, x, &s->k, s->first / row_panels, (s->last - 1) / row_panels + 1, window);
    s->e = gcpi_outer_rows(o, s, &s->k);
    if (o->packed) s->e = gcpi_outer_pack(o, s->e, &s->k, s->rows, packed);
    for (int p = s->first; p < s->last; p++) {
        gcpi_source from = o->blocked ? gcpi_outer_block_source(o, x, &s->k, p, p == s->first, window)
                                      : gcpi_outer_run_source(o, x, p);
        gcpi_outer_panel(o, s, &from, p - s->first);
    }
}

static void gcpi_outer_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    const gcpi_view *v = &o->v;
    ptrdiff_t task = o->base + index;
    int split = (int)(task % o->splits), unit = (int)(task / o->splits % o->units),
        part = (int)(task / o->splits / o->units % o->parts), shared = o->shared, paces = gcpi_outer_paces(o);
    gcp_real *packed = o->scratch + (shared ? 0 : o->splits * o->sum) + worker * o->worker,
             *window = packed + o->worker - v->window;
    ptrdiff_t begin = split * v->chunks / o->splits, end = (split + 1) * v->chunks / o->splits;
    gcpi_share s;
    memset(&s, 0, sizeof s);
    s.group = (int)(task / o->splits / o->units / o->parts);
    s.row = part * o->part, s.rows = gcpi_min(o->part, o->rows - s.row);
    s.first = unit * o->unit, s.last = gcpi_min(s.first + o->unit, gcpi_outer_panels(o));
    s.ds = shared ? o->ds : o->width;
    s.d = s.row * s.ds + (shared ? o->d + s.group * o->dgroup
                                 : o->scratch + split * o->sum + (ptrdiff_t)s.group * o->rows * o->width);
    for (ptrdiff_t i = begin; i < end; i++) {
        s.k = gcpi_view_block(v, i);
        s.fresh = i == begin && !(shared && o->accumulate);
        s.pace.term = 0;
        if (paces && i + 1 < end) s.pace = gcpi_outer_pace(o, &s, i + 1);
        gcpi_outer_chunk(o, &s, i, packed, window);
    }
}

/* The columns of e at the pixels of a chunk: rows of e, in place or copied side by side. */
GCPI_FAST static const gcp_real *gcpi_swapped_columns(const gcpi_outer *o, const gcpi_block *k, ptrdiff_t *steps,
                                                      gcp_real *out)
{
    const gcp_real *e = o->e + k->b * o->es[0] + k->y * o->es[1] + k->x * o->es[2];
    memcpy(steps, o->es, sizeof o->es);
    if (!o->packed) return e;
    steps[2] = o->rows, steps[1] = k->w * steps[2], steps[0] = k->h * steps[1];
    for (int line = 0; line < k->n * k->h; line++) {
        const gcp_real *from = e + line / k->h * o->es[0] + line % k->h * o->es[1];
        for (int i = 0; i < k->w; i++) gcpi_copy(out + line * steps[1] + i * steps[2], from + i * o->es[2], o->rows);
    }
    return out;
}

/* Adds a chunk to d, for one panel of e's columns. loops: those of the tiles, and what d starts from. */
static void gcpi_swapped_panel(const gcpi_outer *o, const gcpi_tile *loops, const gcpi_panel *panel, const gcp_real *x,
                               gcp_real *d)
{
    const gcpi_view *v = &o->v;
    const gcp_real *a[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_tile t = *loops;
    int mr;
    gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, panel->nv, o->height, &mr);
    t.a = a, t.c = c;
    for (int r = 0; r < o->height; r += mr) {
        t.rows = gcpi_min(mr, o->height - r);
        for (int q = 0; q < mr; q++) {
            int at = q < t.rows ? r + q : r;
            a[q] = x + at / v->len * v->dy * v->ws[1] + at % v->len;
            c[q] = d + (ptrdiff_t)at * o->width + panel->first;
        }
        gcpi_run_tile(&o->simd, kernel, &t, panel);
    }
}

static void gcpi_swapped_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_view *v = &o->v;
    gcp_real *columns = o->scratch + o->splits * o->sum + worker * o->worker, *window = columns + o->worker - v->window,
             *d = o->scratch + index * o->sum;
    ptrdiff_t begin = index * v->chunks / o->splits, end = (index + 1) * v->chunks / o->splits;
    for (ptrdiff_t i = begin; i < end; i++) {
        gcpi_block k = gcpi_view_block(v, i);
        gcpi_tile t;
        memset(&t, 0, sizeof t);
        t.n[0] = k.n, t.n[1] = k.h, t.n[2] = k.w;
        t.as[0] = v->ws[0], t.as[1] = v->sy * v->ws[1], t.as[2] = v->sx * v->ws[2];
        t.start = i == begin ? zero : NULL;
        const gcp_real *x = gcpi_view_load(v, o->x, &k, 0, v->ky, window),
                       *e = gcpi_swapped_columns(o, &k, t.bs, columns);
        t.ahead = (uintptr_t)e;
        for (int p = 0; p < o->columns.panels; p++) {
            gcpi_panel panel = gcpi_panel_of(&o->columns, p);
            t.b = e + panel.first;
            gcpi_swapped_panel(o, &t, &panel, x, d);
        }
    }
}

/* Row r of d: adds the private sums into the first, always in the same order. */
GCPI_FAST static gcp_real *gcpi_outer_row(const gcpi_outer *o, int r, int width)
{
    gcp_real *sum = o->scratch + (ptrdiff_t)r * width;
    for (int s = 1; s < o->splits; s++) {
        const gcp_real *from = sum + s * o->sum;
        for (int j = 0; j < width; j++) sum[j] += from[j];
    }
    return sum;
}

/* Writes a share of the rows to d. */
GCPI_FAST static void gcpi_outer_sum(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    int width = o->width, total = o->height;
    int first = (int)((ptrdiff_t)index * total / GCPI_TASKS), end = (int)((ptrdiff_t)(index + 1) * total / GCPI_TASKS);
    (void)worker;
    for (int r = first; r < end; r++) {
        const gcp_real *sum = gcpi_outer_row(o, r, width);
        gcp_real *d = o->d + (o->turned ? r : r / o->rows * o->dgroup + r % o->rows * o->ds);
        if (o->accumulate) for (int j = 0; j < width; j++) d[o->turned ? j * o->ds : j] += sum[j];
        else if (!o->turned) memcpy(d, sum, (size_t)width * sizeof *d);
    }
    if (o->turned && !o->accumulate)
        o->simd.turn(o->d + first, o->ds, width, end - first, o->scratch + (ptrdiff_t)first * width, width);
}

static void gcpi_outer_run(gcpi_outer *o, void *scratch, const gcpi_par *par)
{
    o->scratch = (gcp_real *)scratch;
    if (o->swapped) par->parallel_for(par->context, o->splits, gcpi_swapped_task, o);
    else gcpi_par_run(par, (ptrdiff_t)o->splits * o->units * o->parts * o->groups, &o->base, gcpi_outer_task, o);
    if (!o->shared) par->parallel_for(par->context, GCPI_TASKS, gcpi_outer_sum, o);
}
