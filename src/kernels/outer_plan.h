/* The outer product's plan: how it is cut, and how x and e are read. */

typedef struct gcpi_outer { /* d[row][t, j] = sum over pixels p of e[p][row] * x[p + t][j] */
    gcpi_view v;
    gcpi_array x, e;
    gcp_real *d;
    int rows, groups, accumulate;
    ptrdiff_t es[3], ds; /* steps of e: image, row, pixel; step of d: row */
    ptrdiff_t xgroup, egroup, dgroup;
    int turned;    /* d is stored as [j][row]; for one group only */
    /* set by gcpi_outer_plan */
    const gcpi_halves *halves;    /* NULL: x and e are gcp_real; else both are copied, and widened by that */
    int duos;                    /* pixels come in twos: from one to the other so many values of x, of e, rows of x */
    ptrdiff_t xpair, epair, ypair;
    gcpi_simd simd;
    gcpi_columns columns;         /* of one run; blocked: of the channels */
    /* A panel of x's channels is copied as [pixel][panel], and read at all taps. */
    int blocked, taps, sy, sx;    /* pixels of x from one row, one pixel of the copy to the next */
    int near, place;              /* few channels, all there; blocked, but not copied */
    int splits, shared;           /* private sums of blocks of pixels; shared: d itself is the only one */
    int packed, beside;           /* rows of e are copied, so many side by side */
    /* for few channels of x: rows are the elements of x under the kernel, columns are e's */
    int swapped;
    int winograd, tiles, isa;     /* tiles of a chunk */
    int height, width;            /* of a sum */
    int part, parts, unit, units; /* rows of a task, their cuts; panels of a task, their cuts */
    ptrdiff_t sum, worker;        /* values: in a sum; in a worker's scratch */
    ptrdiff_t base;               /* number of the task at index 0 (gcpi_par_run) */
    gcp_real *scratch;
} gcpi_outer;

/* e is packed as [rows / beside][pixel][beside]; the last block is as wide as the rows that are left. At the pitch of
 * e, pixels would compete for the same cache sets. An extra line after each 48 rows spreads them. `row`: the first of
 * a block. */
static ptrdiff_t gcpi_outer_block(int row, ptrdiff_t pixels)
{
    return row * pixels + row / GCPI_OUTER_ROWS * GCPI_LINE;
}
/* Room for so many rows at so many pixels. */
static ptrdiff_t gcpi_outer_packed(int rows, ptrdiff_t pixels)
{
    return gcpi_line(pixels * rows) + gcpi_ceil(rows, GCPI_OUTER_ROWS) * GCPI_LINE;
}

/* Panels of all runs, or blocked: panels of channels at all taps. */
static int gcpi_outer_panels(const gcpi_outer *o)
{
    return (o->blocked ? o->taps : o->v.ky * o->v.runs) * o->columns.panels;
}

/* Pixels of x that the units of one part read, per pixel of e. Blocked, a unit copies its own channels alone, unless
   several share a panel. */
static double gcpi_outer_reads(const gcpi_outer *o, int units)
{
    if (o->near) return 1;
    if (o->blocked) return gcpi_max(1, units / o->columns.panels);
    return (double)units * gcpi_min(o->v.sy, gcpi_ceil(o->v.ky, units)) * o->v.sx;
}

/* Task `index` of a group: its products, in rows times panels times chunks. */
static double gcpi_outer_work(const gcpi_outer *o, int index, int unit, int units, int panels)
{
    int split = index % o->splits, first = index / o->splits % units * unit, row = index / o->splits / units * o->part;
    ptrdiff_t chunks = (split + 1) * o->v.chunks / o->splits - split * o->v.chunks / o->splits;
    return (double)chunks * gcpi_min(unit, panels - first) * gcpi_min(o->part, o->rows - row);
}

/* Time of all tasks over the time of threads that never wait: each thread takes the next task when it is free. Many
   tasks are not looked at. */
static double gcpi_outer_wait(const gcpi_outer *o, int parts, int unit, int units, int threads)
{
    double busy[GCPI_TASKS] = { 0 }, most = 0, all = 0, tasks = (double)o->splits * units * parts * o->groups;
    if (threads == 1) return 1;
    if (threads > GCPI_TASKS || tasks > 8 * threads) return ceil(tasks / threads) * threads / tasks;
    for (int i = 0; i < (int)tasks; i++) {
        double work = gcpi_outer_work(o, i % (o->splits * units * parts), unit, units, gcpi_outer_panels(o));
        int idle = 0;
        for (int t = 1; t < threads; t++) if (busy[t] < busy[idle]) idle = t;
        busy[idle] += work, all += work;
        most = GCPI_MAX(most, busy[idle]);
    }
    return most * threads / all;
}

/* Cuts rows and panels into enough tasks, so that threads neither wait nor copy much: each unit of panels copies the
   rows again, each part of the rows reads x again, and a copied value takes as long as GCPI_OUTER_COPY products. The
   packed rows of a part fit in L2, and the fewer they are, the more of the rest does. Scratch depends on the parts, so
   they depend on the shape and the threads, not on the pitch of x. */
static void gcpi_outer_cut(gcpi_outer *o, const gcpi_par *par)
{
    double best = 0, products = (double)o->rows * o->width;
    int blocks = gcpi_ceil(o->rows, GCPI_OUTER_ROWS), panels = gcpi_outer_panels(o), part = 0,
        tasks = gcpi_ceil(gcpi_par_tasks(par), o->splits * gcpi_min(o->groups, GCPI_TASKS)),
        all = GCPI_PACK_MAX / (GCPI_OUTER_ROWS * o->v.bn * o->v.bh * o->v.bw),
        fit = gcpi_max(1, gcpi_min(GCPI_OUTER_BLOCKS, all));
    for (int most = gcpi_min(blocks, fit); most > 0; most--) {
        o->part = gcpi_even(blocks, most) * GCPI_OUTER_ROWS;
        int parts = gcpi_ceil(o->rows, o->part), least = gcpi_min(panels, gcpi_ceil(tasks, parts));
        for (int wish = least; wish <= gcpi_min(panels, 2 * least); wish++) {
            int unit = gcpi_ceil(panels, wish), units = gcpi_ceil(panels, unit);
            double copied = (double)units * o->rows + parts * gcpi_outer_reads(o, units) * o->v.channels,
                   full = 0.02 * o->part / GCPI_OUTER_ROWS / gcpi_max(1, all),
                   cost = products * (gcpi_outer_wait(o, parts, unit, units, par->threads) + full) +
                          GCPI_OUTER_COPY * copied;
            if (best > 0 && cost >= best) continue;
            best = cost, part = o->part, o->unit = unit, o->units = units;
        }
    }
    o->part = part;
    o->parts = gcpi_ceil(o->rows, part);
}

/* The share of a core's products that `rows` rows by `count` columns keep busy: lanes and rows of tiles that are used,
   and the loads that a tile's products wait for, as if half of them were seen. */
static double gcpi_outer_fit(const gcpi_simd *simd, int count, int rows)
{
    gcpi_columns c = gcpi_columns_of(count, simd);
    int nv = c.vectors / c.panels, wider = c.vectors % c.panels;
    double cycles = 0;
    for (int wide = 0; wide < 2; wide++, nv++) {
        int mr, panels = wide ? wider : c.panels - wider;
        if (!panels) continue;
        gcpi_kernel_of(simd, nv, rows <= GCPI_OUTER_ROWS ? rows : 0, &mr);
        cycles += (double)panels * gcpi_ceil(rows, mr) * (mr * nv + 0.5 * (mr + nv));
    }
    return (double)rows * count / (cycles * simd->lanes);
}

/* Whether more lanes work once rows and columns change places: a run of x may be shorter than a vector where the rows
   of e fill one. */
static int gcpi_outer_swaps(const gcpi_outer *o)
{
    int run = o->v.kx * o->v.channels, elements = o->v.ky * run;
    return o->v.channels <= 4 && o->v.ky * o->v.kx > 1 && o->v.dx == 1 && o->groups == 1 && !o->turned &&
           (ptrdiff_t)elements * o->rows <= GCPI_PARTIAL_MAX / GCPI_TASKS &&
           gcpi_outer_fit(&o->simd, o->rows, elements) > 1.3 * gcpi_outer_fit(&o->simd, run, o->rows);
}

/* Every task computes all rows and columns, into a private sum. */
static size_t gcpi_swapped_plan(gcpi_outer *o, const gcpi_par *par)
{
    gcpi_view_cut(&o->v, 2 * GCPI_OUTER_PIXELS, 0);
    o->columns = gcpi_columns_of(o->rows, &o->simd);
    o->splits = (int)GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS);
    o->height = o->v.ky * o->v.len, o->width = o->rows, o->turned = 1;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->packed = o->halves || o->rows % o->simd.lanes != 0; /* else e's rows are whole vectors: read in place */
    o->worker =
        (o->packed ? gcpi_line((ptrdiff_t)o->v.bn * o->v.bh * o->v.bw * o->rows) + GCPI_NR_MAX : 0) + o->v.window;
    return gcpi_scratch_bytes(o->sum * o->splits, o->worker, par);
}

/* Whether whole channels are as good columns as a run of (kx, channels) would be. */
static int gcpi_outer_fills(const gcpi_outer *o)
{
    int channels = o->v.channels, run = (o->v.dx == 1 ? o->v.kx : 1) * channels;
    return channels >= o->simd.lanes &&
           gcpi_outer_fit(&o->simd, channels, o->rows) >= 0.98 * gcpi_outer_fit(&o->simd, run, o->rows);
}

/* Whether narrow tiles read few rows of e in place, at so many pixels that no more private sums come of short chunks:
   then the rows of a chunk stay in L1. */
static int gcpi_outer_short(const gcpi_outer *o)
{
    const gcpi_view *v = &o->v;
    return !gcpi_simd_wide(&o->simd) && o->near && o->rows <= GCPI_OUTER_PLAIN &&
           (double)v->n * v->ho * v->wo >= GCPI_TASKS * GCPI_OUTER_PIXELS;
}

/* Cuts the pixels, and says how x is read: blocked where channels fill the lanes; then in place where they are few and
   all there, or (what no sum and no byte depends on) where tiles are wide, the core fetches many lines at once, and no
   other tap reads the same. Few channels are cut into half as many pixels, so that this chunk and the next fit in
   L2. */
static void gcpi_outer_view(gcpi_outer *o)
{
    gcpi_view *v = &o->v;
    int channels = v->channels, lanes = o->simd.lanes;
    /* pixels at a pitch of whole pages share few sets of a cache, and many rows read them often */
    const int crowded = v->xs[2] * (ptrdiff_t)sizeof(gcp_real) % 4096 == 0 && o->rows > 512,
              wide = gcpi_simd_wide(&o->simd);
    o->blocked = o->duos || gcpi_outer_fills(o);
    o->near = o->blocked && gcpi_view_inside(v) &&
              (channels <= GCPI_OUTER_NEAR ||
               (channels <= 2 * GCPI_OUTER_NEAR && (int64_t)o->rows * channels <= GCPI_OUTER_SMALL));
    o->place = !o->halves && (o->near || (wide && o->blocked && gcpi_view_inside(v) && o->simd.burst &&
                                          v->ky * v->kx == 1 && !crowded));
    int values = GCPI_OUTER_MAX >> o->near, least = GCPI_OUTER_PIXELS >> o->near,
        pixels = gcpi_max(least, gcpi_min(2 * GCPI_OUTER_PIXELS, (int)(values / ((int64_t)o->rows + channels))));
    if (o->blocked) v->channels = gcpi_min(o->simd.nv, gcpi_ceil(channels, lanes)) * lanes;
    gcpi_view_cut(v, gcpi_outer_short(o) ? GCPI_OUTER_SHORT : pixels, 0);
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
    v->window = gcpi_line((ptrdiff_t)v->bn * v->wh * v->ww * width);
    if (!o->halves && o->near && v->channels % o->simd.lanes == 0) v->window = 0;
}

/* As many private sums as fit; or a few less, if then all are of as many chunks. */
static int gcpi_outer_splits(const gcpi_outer *o)
{
    int most = (int)GCPI_MIN(GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS), GCPI_PARTIAL_MAX / o->sum);
    for (int n = most; n > 0 && n >= most / 2; n--)
        if (o->v.chunks % n == 0) return n;
    return gcpi_max(1, most);
}

/* Pixels in twos, which duos hold: of two images, two rows or, where no tap but one reads them, side by side. */
static int gcpi_outer_pairs(gcpi_outer *o)
{
    gcpi_view *v = &o->v;
    if (v->n % 2 == 0) {
        o->xpair = v->xs[0], o->epair = o->es[0];
        v->xs[0] *= 2, o->es[0] *= 2, v->n /= 2;
    } else if (v->ho % 2 == 0 && v->sy <= INT32_MAX / 2) {
        o->xpair = v->sy * v->xs[1], o->epair = o->es[1], o->ypair = v->sy;
        v->sy *= 2, o->es[1] *= 2, v->ho /= 2;
    } else if (v->wo % 2 == 0 && v->ky * v->kx == 1 && gcpi_view_inside(v)) {
        o->xpair = v->sx * v->xs[2], o->epair = o->es[2];
        v->sx *= 2, o->es[2] *= 2, v->wo /= 2;
    } else return 0;
    return 1;
}

/* Whether fewer products pay for the transforms: those of x, of a part of the rows of e, of the sums. */
static int gcpi_winograd_back_pays(const gcpi_outer *o, const gcpi_par *par)
{
    const gcpi_view *v = &o->v;
    const double tiles = gcpi_winograd_tiles(v), in = gcpi_lanes_up(&o->simd, v->channels),
                 parts = gcpi_ceil(o->rows, GCPI_WINOGRAD_PART), panels = ceil(in / GCPI_NR_MAX),
                 beside = 1 + GCPI_TILE_TERMS / (double)GCPI_WINOGRAD_TILES;       /* the terms of a chunk */
    return !o->turned && !o->duos && gcpi_winograd_takes(v, o->groups, o->rows, par) &&
           (GCPI_POINTS * (tiles * beside + 8) * o->rows + tiles * GCPI_WINOGRAD_IN * parts) * in +
                   tiles * GCPI_WINOGRAD_IN * panels * o->rows <
               0.9 * 9 * v->n * v->ho * v->wo * in * o->rows;
}

/* A task sums one panel of channels of x with a part of the rows of e, at a split's tiles. */
static size_t gcpi_winograd_back_plan(gcpi_outer *o, const gcpi_par *par)
{
    gcpi_view *v = &o->v;
    o->columns = gcpi_columns_of(v->channels, &o->simd);
    const int width = gcpi_ceil(o->columns.vectors, o->columns.panels) * o->simd.lanes;
    const double all = gcpi_winograd_tiles(v);
    o->part = gcpi_even(o->rows, GCPI_WINOGRAD_PART), o->parts = gcpi_ceil(o->rows, o->part);
    o->unit = 1, o->units = o->columns.panels;
    o->height = o->rows, o->width = 9 * v->channels;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    int splits = gcpi_min((int)ceil(GCPI_TASKS / ((double)o->parts * o->units)),
                          (int)GCPI_MIN(GCPI_WINOGRAD_SUMS / o->sum, (ptrdiff_t)(all / GCPI_WINOGRAD_SPLIT)));
    o->splits = gcpi_max(1, splits > 4 ? splits / 4 * 4 : splits);
    o->tiles = gcpi_min(GCPI_WINOGRAD_TILES, gcpi_max(GCPI_ROWS, GCPI_WINOGRAD_BACK / (o->part + width)));
    o->shared = o->splits == 1;
    const ptrdiff_t point = gcpi_winograd_point(o->part, width) + gcpi_winograd_point(o->tiles, width) +
                            gcpi_winograd_point(o->tiles, o->part);
    o->worker = GCPI_POINTS * point + gcpi_line(GCPI_POINTS * gcpi_max(width, o->part));
    return gcpi_scratch_bytes(o->shared ? 0 : o->sum * o->splits, o->worker, par);
}

static size_t gcpi_outer_plan(gcpi_outer *o, const gcpi_par *par)
{
    o->simd = gcpi_simd_of(par->isa);
    o->halves = par->halves ? gcpi_halves_of(par->isa) : NULL;
    o->splits = GCPI_TASKS;
    o->swapped = gcpi_outer_swaps(o);
    if (o->swapped) return gcpi_swapped_plan(o, par);
    o->duos = par->duos && o->v.channels >= o->simd.lanes && gcpi_outer_pairs(o);
    o->isa = par->isa, o->winograd = gcpi_winograd_back_pays(o, par);
    if (o->winograd) return gcpi_winograd_back_plan(o, par);
    if (o->duos) gcpi_simd_duos(&o->simd);
    o->beside = gcpi_simd_wide(&o->simd) ? GCPI_OUTER_ROWS : GCPI_OUTER_BESIDE;
    gcpi_outer_view(o);
    o->columns = gcpi_columns_of(o->blocked ? o->v.channels : o->v.len, &o->simd);
    if (o->blocked) gcpi_outer_block_plan(o);
    o->height = o->groups * o->rows, o->width = o->v.ky * o->v.runs * o->v.len;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->splits = gcpi_outer_splits(o);
    gcpi_outer_cut(o, par);
    int rows = o->groups * o->rows, few = o->near ? GCPI_OUTER_PLAIN : GCPI_OUTER_FEW;
    ptrdiff_t packed = gcpi_outer_packed(gcpi_min(o->part, o->rows), (ptrdiff_t)o->v.bn * o->v.bh * o->v.bw);
    o->packed = o->halves || rows > (o->simd.burst ? few : GCPI_OUTER_PLAIN);
    /* bytes are the same on every core, packed or not */
    o->worker = (o->halves || rows > few ? packed : 0) + o->v.window;
    o->shared = o->splits == 1 && !o->turned;
    ptrdiff_t sums = o->shared ? 0 : o->sum * o->splits;
    return gcpi_scratch_bytes(sums, o->worker, par);
}
