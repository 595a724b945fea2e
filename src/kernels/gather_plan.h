/* The gather product's plan: how it is cut, and how x and w are read. */

/* Called with finished pixels of a row of y, `count` channels from `first` on, while they are in cache. */
typedef struct gcpi_end {
    void (*run)(void *arg, size_t pixel, size_t pixels, int first, int count, int worker);
    void *arg;
} gcpi_end;

typedef struct gcpi_gather {
    gcpi_view v;
    gcpi_array x, w, y;
    const gcp_real *bias;
    int accumulate, groups;
    ptrdiff_t ws[4], wfirst;          /* steps of w: ky, kx, channel, column; its start */
    ptrdiff_t ys[3], yfirst;          /* steps of y: image, row, pixel */
    ptrdiff_t xgroup, wgroup, ygroup; /* steps to the next group */
    const gcpi_end *end;              /* may be NULL; counts pixels of the view's output */
    int windowed;                     /* x is copied, wherever it lies */
    /* set by gcpi_gather_plan */
    const gcpi_halves *halves;        /* NULL: x and y are gcp_real */
    int each, odd;                    /* values that a term multiplies: 2 in duos, of the last 1 if odd */
    int settles;                      /* w is rounded as for duos */
    gcpi_simd simd;
    gcpi_columns columns; /* output channels; planar: pixels of a row */
    /* planar: values of packed w; shared: these, and a panel of starting values for each row of the tiles */
    ptrdiff_t weights, shared;
    /* cols: output channels; tile: so many are packed side by side: a kernel's rows, or all where kernels differ */
    int planar, cols, tile;
    int winograd, tiles, isa; /* tiles of a chunk */
    int by, bx, bj;           /* a block of the sum: kernel rows, runs, terms of a run */
    int panels, sets;         /* panels packed together (a set); how many sets */
    int resident;             /* a set is packed for the whole sum, and kept for the next chunks */
    int place;                /* panels of w that are full are read in place; */
    int ahead;                /* the next block's rows of w are prefetched: in place; or, few pixels, to be packed */
    int threads;              /* tasks from one of a worker's to its next, about */
    /* values: packed; with halves: rows of x, sums for y, in floats; in all of a worker's scratch */
    ptrdiff_t pack, rows, sums, worker;
    int blocks;               /* of the sum */
    ptrdiff_t base;           /* number of the task at index 0 (gcpi_par_run) */
    gcp_real *scratch;
} gcpi_gather;

/* Planar: where few output channels would leave vector lanes empty, a vector holds pixels of a row
 * instead. The window is copied as [row][channel][x], so (ky, channel) is one evenly spaced run,
 * and output channels are the rows of the tile. */

/* Whether it fills enough lanes to pay for transposing x and y. It multiplies no duos. */
static int gcpi_planar_pays(const gcpi_gather *g, int cols, int duos)
{
    int lanes = g->simd.lanes, mr;
    gcpi_kernel_of(&g->simd, g->simd.nv, cols, &mr);
    double across = cols / ((double)gcpi_ceil(cols, lanes) * lanes);
    double along = g->v.wo / ((double)gcpi_ceil(g->v.wo, lanes) * lanes) * cols / ((double)gcpi_ceil(cols, mr) * mr);
    return g->groups == 1 && g->v.sx == 1 && g->v.xc == 1 && g->v.wo > lanes && g->v.ky * g->v.kx >= 9 &&
           g->v.channels > 0 && cols <= GCPI_PLANAR_COLS && along > (duos ? 2.1 : 1.05) * across;
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

/* Whether fewer products pay for the transforms; those of the weights take as long as the products of some tiles. By
   the shape alone. */
static int gcpi_winograd_pays(const gcpi_gather *g, int cols, const gcpi_par *par)
{
    const gcpi_view *v = &g->v;
    const gcpi_side ys = gcpi_view_rows(v), xs = gcpi_view_columns(v);
    const double tiles = gcpi_winograd_tiles(v), in = gcpi_lanes_up(&g->simd, v->channels),
                 out = gcpi_lanes_up(&g->simd, cols),
                 taps = v->n * gcpi_side_pairs(&ys, v->ho) * gcpi_side_pairs(&xs, v->wo);
    return gcpi_winograd_takes(v, g->groups, cols, par) &&
           v->channels <= GCPI_WINOGRAD_MAX / (GCPI_POINTS * GCPI_NR_MAX) &&
           GCPI_POINTS * (tiles * (v->channels + GCPI_TILE_TERMS) + GCPI_WINOGRAD_WEIGHTS * in) * out +
                   tiles * (GCPI_WINOGRAD_IN * in + GCPI_WINOGRAD_OUT * out) <
               0.9 * (taps * v->channels + (double)v->n * v->ho * v->wo * GCPI_TILE_TERMS) * out;
}

/* A set is a panel: a worker transforms its weights, and keeps them for the next tasks. A task takes a share of the
   tiles, a chunk of them at a time. */
static size_t gcpi_winograd_plan(gcpi_gather *g, int cols, const gcpi_par *par)
{
    gcpi_view *v = &g->v;
    const double all = gcpi_winograd_tiles(v);
    g->columns = gcpi_columns_of(cols, &g->simd);
    g->sets = g->columns.panels, g->settles = par->duos;
    const int width = gcpi_ceil(g->columns.vectors, g->sets) * g->simd.lanes,
              fit = gcpi_max(GCPI_ROWS / 2, GCPI_WINOGRAD_CHUNK / (v->channels + width)),
              most = gcpi_min(GCPI_WINOGRAD_TILES, fit), rows = gcpi_min(v->channels, GCPI_WINOGRAD_ROWS);
    /* enough tasks; more where the weights' transform, which each worker repeats, is little beside the tiles */
    const double enough = ceil(gcpi_par_tasks(par) / (double)g->sets),
                 more = GCPI_MIN(ceil(GCPI_TASKS / (double)g->sets), floor(all / (8 * GCPI_WINOGRAD_WEIGHTS)));
    v->chunks = (ptrdiff_t)GCPI_MIN(GCPI_MAX(enough, more), ceil(all / (GCPI_ROWS / 2)));
    const double share = ceil(all / (double)v->chunks);
    g->tiles = (int)ceil(share / ceil(share / most));
    g->pack = gcpi_line((ptrdiff_t)GCPI_POINTS * v->channels * width);
    g->rows = gcpi_line((ptrdiff_t)GCPI_POINTS * v->channels) + 4 * width;  /* a tile's pixels of x, and of y */
    g->sums = GCPI_POINTS * gcpi_winograd_point(g->tiles, width);
    const ptrdiff_t tiles = GCPI_POINTS * gcpi_winograd_point(g->tiles, v->channels) + g->sums + g->rows;
    g->worker = GCPI_LINE + width + g->pack + GCPI_MAX(tiles, (ptrdiff_t)9 * rows * width);
    return gcpi_scratch_bytes(0, g->worker, par);
}

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

/* Whether rows of w compete for the same sets of L2. */
static int gcpi_gather_crowded(const gcpi_gather *g, ptrdiff_t terms)
{
    ptrdiff_t pitch = g->ws[2] * (ptrdiff_t)sizeof(gcp_real), power = GCPI_MAX(pitch & -pitch, 1); /* of two */
    return terms > GCPI_L2_MIN / GCPI_MIN(power, (ptrdiff_t)GCPI_L2_WAY);
}

/* Few pixels do not pay for packing w where its columns lie side by side. Narrow tiles read parts of its lines, each
   more often: they gain by packing almost always. */
static int gcpi_gather_place(const gcpi_gather *g, ptrdiff_t terms)
{
    const gcpi_view *v = &g->v;
    const int most = !gcpi_simd_wide(&g->simd) ? GCPI_PLACE_NARROW
                     : gcpi_gather_crowded(g, terms) ? GCPI_PLACE_FEW : GCPI_PLACE_PIXELS;
    return g->ws[3] == 1 && v->runs == v->kx && !g->w.half && !v->duos && !g->settles &&
           (double)v->n * v->ho * v->wo <= most;
}

/* Whether each block of the sum prefetches the rows of w that the next one reads: in place, where tiles are enough for
   it; else where they are so few that they would wait for w, on cores that fetch many lines at once. */
static int gcpi_gather_ahead(const gcpi_gather *g)
{
    const gcpi_view *v = &g->v;
    const double pixels = (double)v->n * v->ho * v->wo;
    if (g->halves || v->ky * v->kx != 1 || v->len <= 0) return 0;
    if (g->place) return g->simd.paces && g->panels == 1 && pixels >= GCPI_PLACE_FEW;
    return !gcpi_simd_wide(&g->simd) && g->simd.burst && pixels <= GCPI_AHEAD_PIXELS &&
           (g->ws[3] == 1 || g->ws[3] == v->len);
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

/* Whether two terms at a time are multiplied. Where a window holds several taps, channels come in twos. */
static int gcpi_gather_duos(const gcpi_gather *g, const gcpi_par *par)
{
    return par->duos && g->v.channels > 0 &&
           (g->v.channels % 2 == 0 || (gcpi_gather_direct(g) && gcpi_view_inside(&g->v)));
}

/* Panels of so many values that are packed together. All of them where they fit in L2: then x is read once. Else each
   set reads it again, and a set that leaves room in L2 for what is read meanwhile is faster; but not one panel alone
   where rows of w run across panels and share lines, nor where no cache holds x or y. */
static int gcpi_gather_most(const gcpi_gather *g, int cols, ptrdiff_t panel)
{
    const gcpi_view *v = &g->v;
    const ptrdiff_t all = GCPI_MIN(GCPI_PACK_MAX / panel, (ptrdiff_t)g->columns.panels), few = GCPI_PACK_FEW / panel;
    const int far = (double)v->n * v->h * v->w * v->channels >= GCPI_FAR ||
                    (double)v->n * v->ho * v->wo * cols >= GCPI_FAR;
    if (all == g->columns.panels || gcpi_simd_wide(&g->simd) || far || few < 1 + (g->ws[3] == 1))
        return (int)GCPI_MAX(all, 1);
    return (int)few;
}

/* Cuts the sum into blocks of terms. After each the sums go to memory and back: narrow tiles, which have fewer of them,
   take more terms, unless few pixels read what is packed for each block. */
static void gcpi_gather_blocks(gcpi_gather *g)
{
    const gcpi_view *v = &g->v;
    const int few = gcpi_simd_wide(&g->simd) || (double)v->n * v->ho * v->wo <= GCPI_AHEAD_PIXELS,
              most = few ? GCPI_K_BLOCK : GCPI_K_NARROW;
    const ptrdiff_t row = (ptrdiff_t)v->runs * v->len;
    g->by = g->bx = g->bj = 1;
    if (row <= 0) return;
    g->bj = gcpi_even(v->len, most);
    g->bx = gcpi_even(v->runs, gcpi_max(1, most / v->len));
    g->by = gcpi_even(v->ky, gcpi_max(1, (int)(most / row)));
}

/* Cuts the panels into sets. What is packed of a set is kept where other chunks read it, if it fits. Returns the terms
   that are packed of a panel. */
static ptrdiff_t gcpi_gather_sets(gcpi_gather *g, int cols, int width)
{
    const gcpi_view *v = &g->v;
    const ptrdiff_t all = (ptrdiff_t)v->ky * v->runs * v->len;
    g->resident = v->chunks > 1 && all <= GCPI_RESIDENT_MAX / width;
    const ptrdiff_t terms = g->resident ? all : (ptrdiff_t)g->by * g->bx * g->bj;
    g->sets = terms ? gcpi_ceil(g->columns.panels, gcpi_gather_most(g, cols, terms * width)) : 1;
    return terms;
}

/* Cuts the panels into more sets: a task for each thread, unless tasks would be over before a thread has begun; then as
   many sets for each thread. A set reads x again, but packs nothing that another packs. */
static void gcpi_gather_share(gcpi_gather *g, const gcpi_par *par)
{
    const gcpi_view *v = &g->v;
    const double beside = (double)v->chunks * g->groups, terms = (double)v->ky * v->runs * v->len,
                 products = (double)v->n * v->ho * v->wo * g->columns.count * terms * g->groups,
                 enough = GCPI_MIN(par->threads, floor(products / GCPI_TASK_LEAST));
    const int wish = (int)ceil(GCPI_MIN(enough / beside, INT32_MAX)),
              even = par->threads / gcpi_divisor(par->threads, (int)fmod(beside, par->threads)),
              sets = gcpi_max(g->sets, gcpi_min(wish, g->columns.panels)), up = gcpi_ceil(sets, even) * even;
    g->sets = sets > 1 && up <= g->columns.panels ? up : sets;
    g->panels = gcpi_ceil(g->columns.panels, g->sets);
}

/* Chooses all block sizes; returns the bytes of scratch. */
static size_t gcpi_gather_plan(gcpi_gather *g, int cols, const gcpi_par *par)
{
    g->simd = gcpi_simd_of(par->isa);
    g->threads = par->threads;
    g->halves = par->halves ? gcpi_halves_of(par->isa) : NULL;
    if (g->halves) g->v.most = GCPI_WINDOW_WIDE;
    g->v.duos = gcpi_gather_duos(g, par);
    g->isa = par->isa, g->winograd = gcpi_winograd_pays(g, cols, par);
    if (g->winograd) return gcpi_winograd_plan(g, cols, par);
    g->planar = gcpi_planar_pays(g, cols, g->v.duos);
    g->v.duos &= !g->planar;
    g->settles = par->duos && !g->v.duos;
    g->each = 1 + g->v.duos, g->odd = g->v.duos && g->v.channels % 2;
    if (g->planar) return gcpi_planar_plan(g, cols, par);
    if (g->v.duos) gcpi_simd_duos(&g->simd);
    g->columns = gcpi_columns_of(cols, &g->simd);
    g->sets = 1;
    g->v.skips = !g->windowed && gcpi_gather_skips(g);       /* by channels: as floats do */
    g->v.channels = gcpi_ceil(g->v.channels, g->each);
    gcpi_gather_cut(g, par);
    gcpi_gather_blocks(g);
    const int width = gcpi_ceil(g->columns.vectors, g->columns.panels) * g->simd.lanes;
    ptrdiff_t terms = gcpi_gather_sets(g, cols, width);
    if (g->sets > 1) {
        gcpi_gather_cut(g, par);
        terms = gcpi_gather_sets(g, cols, width);
    }
    gcpi_gather_share(g, par);
    g->place = gcpi_gather_place(g, g->by * g->bx * g->bj);
    g->ahead = gcpi_gather_ahead(g);
    if (g->ahead && g->place) g->bj = gcpi_even(g->v.len, GCPI_PLACE_K); /* no sum and no byte depends on it */
    g->pack = gcpi_line((terms + 1) * g->panels * width); /* not less in place: a plan asks before it knows pitches */
    if (g->halves) gcpi_gather_floats(g, width);
    g->worker = GCPI_LINE + g->pack + g->rows + g->sums + g->v.window;
    return gcpi_scratch_bytes(0, g->worker, par);
}
