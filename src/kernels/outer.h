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
    gcpi_columns columns;         /* of one run */
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

/* Cuts rows and panels into enough tasks, with as few repeated copies as possible. Each unit of panels copies the rows
 * again. Each task copies its window of x; where x is read in place, each part of the rows reads it once. Scratch
 * depends on the parts, so they depend on the shape only, not on the pitch of x. */
static void gcpi_outer_cut(gcpi_outer *o)
{
    double best = 0;
    int blocks = gcpi_ceil(o->rows, GCPI_OUTER_ROWS),
        tasks = gcpi_ceil(GCPI_TASKS, o->splits * gcpi_min(o->groups, GCPI_TASKS));
    for (int most = gcpi_min(blocks, GCPI_OUTER_BLOCKS); most > 0; most--) {
        int part = gcpi_even(blocks, most), parts = gcpi_ceil(blocks, part), units = gcpi_ceil(tasks, parts);
        /* pixels of x per pixel of e, for the kernel rows of a unit */
        double window = (double)gcpi_min(o->v.sy, gcpi_ceil(o->v.ky, units)) * o->v.sx;
        double copied = (double)units * o->rows + parts * (o->v.direct ? 1 : units * window) * o->v.channels;
        if (best > 0 && copied >= best) continue;
        best = copied;
        o->part = part * GCPI_OUTER_ROWS;
    }
    o->parts = gcpi_ceil(o->rows, o->part);
    int panels = o->v.ky * o->v.runs * o->columns.panels;
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

static size_t gcpi_outer_plan(gcpi_outer *o, const gcpi_par *par)
{
    o->simd = gcpi_simd_of(par->isa);
    o->splits = GCPI_TASKS;
    o->swapped = gcpi_outer_swaps(o);
    if (o->swapped) return gcpi_swapped_plan(o, par);
    gcpi_view_cut(&o->v,
                  gcpi_max(GCPI_OUTER_PIXELS,
                           gcpi_min(2 * GCPI_OUTER_PIXELS, (int)(GCPI_OUTER_MAX / ((int64_t)o->rows + o->v.channels)))),
                  o->simd.lanes);
    o->columns = gcpi_columns_of(o->v.len, &o->simd);
    o->height = o->groups * o->rows, o->width = o->v.ky * o->v.runs * o->v.len;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->splits = (int)GCPI_MIN(GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS), GCPI_PARTIAL_MAX / o->sum);
    o->splits = gcpi_max(1, o->splits);
    gcpi_outer_cut(o);
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

/* Where panel p begins in the pixels that gcpi_view_load gave; panels of all runs are counted in one sequence. */
static const gcp_real *gcpi_outer_source(const gcpi_outer *o, const gcp_real *x, int p, gcpi_panel *panel)
{
    int run = p / o->columns.panels;
    *panel = gcpi_panel_of(&o->columns, p % o->columns.panels);
    return x + run / o->v.runs * o->v.dy * o->v.ws[1] + run % o->v.runs * o->v.dx * o->v.ws[2] + panel->first;
}

/* Merges two loops into one where the outer loop's step goes on exactly where the inner loop ends. */
static void gcpi_tile_merge(gcpi_tile *t)
{
    for (int i = 1; i >= 0; i--) {
        if (t->as[i] != t->n[2] * t->as[2] || t->bs[i] != t->n[2] * t->bs[2]) return;
        t->n[2] *= t->n[i], t->n[i] = 1;
    }
}

/* Adds one chunk to `rows` rows of d, for panel p of x; e: the rows, packed or in place. */
GCPI_FAST static void gcpi_outer_panel(const gcpi_outer *o, const gcpi_block *k, const gcp_real *x, int p,
                                       const gcp_real *e, gcp_real *d, ptrdiff_t ds, int rows, int fresh)
{
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_view *v = &o->v;
    const gcp_real *rows_of_e[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_panel panel;
    gcpi_tile t;
    t.a = rows_of_e, t.c = c, t.first = 0;
    t.start = fresh ? zero : NULL, t.ss = 0;
    t.b = gcpi_outer_source(o, x, p, &panel);
    int mr;
    /* no tile may span two packed blocks, and 5 does not divide 48 */
    gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, panel.nv, rows <= GCPI_OUTER_ROWS ? rows : 0, &mr);
    d += p / o->columns.panels * v->len + panel.first;
    for (int r = 0; r < rows; r += mr) {
        int first = r / GCPI_OUTER_ROWS * GCPI_OUTER_ROWS;
        const gcp_real *a = e + r;
        t.n[0] = k->n, t.n[1] = k->h, t.n[2] = k->w;
        t.bs[0] = v->ws[0], t.bs[1] = gcpi_stride(v->sy, v->ws[1]), t.bs[2] = gcpi_stride(v->sx, v->ws[2]);
        t.as[0] = o->es[0], t.as[1] = o->es[1], t.as[2] = o->es[2];
        if (o->packed) {
            a = e + r / GCPI_OUTER_ROWS * gcpi_outer_block((ptrdiff_t)k->n * k->h * k->w) + (r - first);
            t.as[2] = gcpi_min(GCPI_OUTER_ROWS, rows - first), t.as[1] = t.as[2] * k->w, t.as[0] = t.as[1] * k->h;
        }
        gcpi_tile_merge(&t);
        t.rows = gcpi_min(mr, rows - r);
        for (int i = 0; i < mr; i++) {
            rows_of_e[i] = i < t.rows ? a + i : a;
            c[i] = d + (i < t.rows ? r + i : r) * ds;
        }
        gcpi_run_tile(kernel, &t, &panel);
    }
}

static void gcpi_outer_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    const gcpi_view *v = &o->v;
    ptrdiff_t task = o->base + index;
    int split = (int)(task % o->splits), unit = (int)(task / o->splits % o->units),
        part = (int)(task / o->splits / o->units % o->parts);
    int group = (int)(task / o->splits / o->units / o->parts), shared = o->shared;
    int row = part * o->part, rows = gcpi_min(o->part, o->rows - row), width = o->width;
    int first = unit * o->unit, last = gcpi_min(first + o->unit, v->ky * v->runs * o->columns.panels);
    int row_panels = v->runs * o->columns.panels;
    ptrdiff_t ds = shared ? o->ds : width;
    gcp_real *packed = o->scratch + (shared ? 0 : o->splits * o->sum) + worker * o->worker,
             *window = packed + o->worker - v->window;
    gcp_real *d = shared ? o->d + group * o->dgroup : o->scratch + split * o->sum + (ptrdiff_t)group * o->rows * width;
    ptrdiff_t begin = split * v->chunks / o->splits, end = (split + 1) * v->chunks / o->splits;
    for (ptrdiff_t i = begin; i < end; i++) {
        gcpi_block k = gcpi_view_block(v, i);
        const gcp_real *x =
            gcpi_view_load(v, o->x + group * o->xgroup, &k, first / row_panels, (last - 1) / row_panels + 1, window);
        const gcp_real *e = o->e + group * o->egroup + row + k.b * o->es[0] + k.y * o->es[1] + k.x * o->es[2];
        if (o->packed) e = gcpi_outer_pack(o, e, &k, rows, packed);
        for (int p = first; p < last; p++)
            gcpi_outer_panel(o, &k, x, p, e, d + row * ds, ds, rows, i == begin && !(shared && o->accumulate));
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

static void gcpi_swapped_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_view *v = &o->v;
    gcp_real *columns = o->scratch + o->splits * o->sum + worker * o->worker, *window = columns + o->worker - v->window,
             *d = o->scratch + index * o->sum;
    ptrdiff_t begin = index * v->chunks / o->splits, end = (index + 1) * v->chunks / o->splits;
    int mr;
    for (ptrdiff_t i = begin; i < end; i++) {
        gcpi_block k = gcpi_view_block(v, i);
        const gcp_real *a[GCPI_MR_MAX];
        gcp_real *c[GCPI_MR_MAX];
        gcpi_tile t = { { k.n, k.h, k.w },
                        { v->ws[0], v->sy * v->ws[1], v->sx * v->ws[2] },
                        { 0 },
                        NULL,
                        a,
                        c,
                        0,
                        i == begin ? zero : NULL,
                        0,
                        0 };
        const gcp_real *x = gcpi_view_load(v, o->x, &k, 0, v->ky, window),
                       *e = gcpi_swapped_columns(o, &k, t.bs, columns);
        for (int p = 0; p < o->columns.panels; p++) {
            gcpi_panel panel = gcpi_panel_of(&o->columns, p);
            gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, panel.nv, o->height, &mr);
            t.b = e + panel.first;
            for (int r = 0; r < o->height; r += mr) {
                t.rows = gcpi_min(mr, o->height - r);
                for (int q = 0; q < mr; q++) {
                    int at = q < t.rows ? r + q : r;
                    a[q] = x + at / v->len * v->dy * v->ws[1] + at % v->len;
                    c[q] = d + (ptrdiff_t)at * o->width + panel.first;
                }
                gcpi_run_tile(kernel, &t, &panel);
            }
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
