/* The gather product: convolution forward and backward data, A times B. */

typedef struct gcpi_kblock {
    int y, x, j, ny, nx, nj;
} gcpi_kblock;

/* Packs rows of a panel: w begins with them. last: with the last channel. */
static void gcpi_gather_pack(const gcpi_gather *g, gcpi_array w, int rows, int last, const gcpi_panel *p, gcp_real *out,
                             gcp_real *room)
{
    const gcpi_array from = gcpi_array_at(w, p->first * g->ws[3]);
    if (g->v.duos)
        gcpi_pack_duos(&g->simd, out, p->width, p->cols, from, rows, g->ws[2], g->ws[3], room, g->odd && last);
    else if (w.half)
        gcpi_pack_halves(&g->simd, g->halves, out, p->width, p->cols, from, rows, g->ws[2], g->ws[3], room);
    else
        gcpi_pack_rows(&g->simd, out, p->width, p->cols, (const gcp_real *)from.at, rows, g->ws[2], g->ws[3]);
    if (g->settles) g->halves->settle(out, (ptrdiff_t)rows * p->width);
}

/* All pixels of a chunk, for the panels of a set and one block of the sum. */
typedef struct gcpi_sweep {
    const gcpi_gather *g;
    gcpi_block block;
    gcpi_kblock k, part; /* what is packed, and the part of it that reaches these pixels */
    gcpi_array x, w, y;
    const gcp_real *packed, *start; /* start: see gcpi_tile */
    ptrdiff_t first;                /* from x to the block's first tap, which may not be there */
    int panel, panel_end, paced;    /* paced: the tiles prefetch the rows of x after them; */
    int near;                       /* of x and y, into L1 */
    ptrdiff_t xstep, ystep, down;   /* values of x, of y, from row to row; of x, to the last kernel row */
    uintptr_t tiles;                /* of GCPI_ROWS rows */
    ptrdiff_t spread, further;      /* what a tile prefetches: values of the next rows of x; lines of y so far on */
    gcpi_pieces w_next;             /* the next block's rows of w, and the tiles that prefetch them: */
    int w_tile, w_tiles;            /* done, in all */
    gcp_real *rows, *sums;          /* with halves: rows of x in floats; sums, [pixel][width] */
    int base, cols, width;          /* the first column of the set, its columns, with padding */
    int begins, ends;               /* the first, the last block of the sum */
} gcpi_sweep;

/* Bytes from a row to what is prefetched meanwhile. The hardware's own prefetching stops at the end of a page. */
enum { GCPI_PACE_AHEAD = 4096 };

/* Tile number `tile` prefetches its share of the rows after these, in x and in y, where they lie side by side. */
static void gcpi_sweep_next(const gcpi_sweep *s, const gcp_real *x, const gcp_real *y, uintptr_t tile, gcpi_tile *t)
{
    const ptrdiff_t terms = t->n[0] * t->n[1] * t->n[2], xs = GCPI_ROWS * s->xstep, ys = GCPI_ROWS * s->ystep;
    const uintptr_t xshare = (uintptr_t)xs * sizeof *x / s->tiles, yshare = (uintptr_t)ys * sizeof *y / s->tiles;
    t->ahead = (uintptr_t)x + (uintptr_t)(xs + s->down) * sizeof *x + tile * xshare;
    t->also = (uintptr_t)y + (uintptr_t)ys * sizeof *y + tile * yshare;
    t->pace = xshare / (uintptr_t)terms + 1, t->step = yshare / (uintptr_t)terms + 1;
}

/* Tiles of so many rows. */
static int gcpi_sweep_tiles(const gcpi_sweep *s, int rows)
{
    int tiles = 0;
    for (int p = s->panel; p < s->panel_end; p++)
        tiles += gcpi_ceil(rows, s->g->simd.mr[gcpi_panel_of(&s->g->columns, p).nv - 1]);
    return tiles;
}

/* a and c hold GCPI_ROWS pointers. Those from `rows` on are never stored to, but must be readable. */
GCPI_FAST static void gcpi_sweep_panels(gcpi_sweep *s, const gcp_real *const *a, gcp_real *const *c, int rows)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    const gcpi_kblock *k = &s->k, *n = &s->part;
    const int base = s->base;
    uintptr_t tile = 0;
    ptrdiff_t spread = GCPI_ROWS * s->xstep + s->down, terms = (ptrdiff_t)k->ny * k->nx * k->nj,
              skipped = ((ptrdiff_t)(n->y - k->y) * k->nx + (n->x - k->x)) * k->nj + (n->j - k->j);
    gcpi_tile t;
    t.ahead = t.pace = 0, t.near = s->near, t.burst = g->simd.burst && !s->near, t.further = s->further;
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
            if (s->near) gcpi_sweep_next(s, a[0], c[0], tile++, &t);
            else if (g->ahead && !gcpi_piece_take(&s->w_next, s->w_tile++, s->w_tiles, &t)) t.pace = 0;
            if (s->spread) gcpi_fetch(a[0], spread, s->spread), spread += s->spread;
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
    const int n = s->part.nj, alone = g->odd && s->part.j + n == g->v.channels;
    gcp_real *to = s->rows + (ptrdiff_t)i * n;
    gcpi_array x = gcpi_array_at(s->x, w->from[i]);
    if (g->v.duos) gcpi_duos_load(to, 0, x, 0, g->v.xc, 1, n, alone, 0);
    else if (g->v.xc == 1) gcpi_array_load(g->halves, x, 0, to, 0, 1, n);
    else gcpi_array_load(g->halves, x, g->v.xc, to, 1, n, 1);
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
    const int n = s->part.nj, alone = g->odd && s->part.j + n == g->v.channels;
    if (g->v.direct && g->v.xc == 1 && w->rows > 1 && gcpi_held_even(w->from, w->rows)) {
        const gcpi_array x = gcpi_array_at(s->x, w->from[0]);
        const ptrdiff_t pitch = w->from[1] - w->from[0];
        if (g->v.duos) gcpi_duos_load(s->rows, n, x, pitch, 1, w->rows, n, alone, 0);
        else gcpi_array_load(g->halves, x, pitch, s->rows, n, w->rows, n);
        for (int i = 0; i < w->rows; i++) w->a[i] = s->rows + (ptrdiff_t)i * n;
    }
    else for (int i = 0; i < w->rows && g->v.direct; i++) gcpi_held_row(s, w, i);
    for (int i = 0; i < w->rows && s->begins && g->accumulate; i++)
        gcpi_array_load(g->halves, gcpi_array_at(s->y, w->at[i] + s->base), 0, w->c[i], 0, 1, s->cols);
}
GCPI_FAST static void gcpi_held_store(const gcpi_sweep *s, const gcpi_rows_held *w)
{
    const int even = w->rows > 1 && gcpi_held_even(w->at, w->rows) && s->g->blocks == 1;
    for (int i = 0; i < w->rows; i += even ? w->rows : 1)
        gcpi_array_store(s->g->halves, gcpi_array_at(s->y, w->at[i] + s->base), even ? w->at[1] - w->at[0] : 0, w->c[i],
                        s->width, even ? w->rows : 1, s->cols);
}

/* Sums the rows that are collected. Those from `rows` on repeat the first. */
GCPI_FAST static void gcpi_held_run(gcpi_sweep *s, gcpi_rows_held *w)
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
    const int i = w->rows++;
    if (!s->g->halves) {
        w->a[i] = (const gcp_real *)s->x.at + x, w->c[i] = (gcp_real *)s->y.at + y;
        return;
    }
    w->a[i] = s->g->v.direct ? NULL : (const gcp_real *)s->x.at + x;
    w->c[i] = s->sums + (s->g->blocks > 1 ? pixel : i) * s->width;
    w->from[i] = x, w->at[i] = y;
}

/* How the rows after these are prefetched; whether at once. Where they lie side by side, each narrow tile takes a share
   of them: so many lines at once hold up the sum. Where no cache holds y, a tile is late for its own lines. */
static int gcpi_sweep_fetches(gcpi_sweep *s, ptrdiff_t xstep, ptrdiff_t ystep)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    const int reads = !g->halves && v->direct, even = reads && xstep == s->k.nj && s->part.nj > 0,
              narrow = !g->halves && !gcpi_simd_wide(&g->simd),
              soon = reads && g->simd.burst && GCPI_ROWS * s->k.nj <= 2 * GCPI_L1_HALF;
    s->xstep = xstep, s->ystep = ystep, s->down = (s->part.ny - 1) * v->dy * v->ws[1];
    s->near = even && g->simd.paces && g->sets == 1 && ystep == s->cols;
    s->paced = even && !g->simd.burst;
    s->tiles = (uintptr_t)gcpi_sweep_tiles(s, GCPI_ROWS);
    s->spread = soon && even && narrow ? gcpi_line(GCPI_ROWS * xstep / (ptrdiff_t)s->tiles) : 0;
    s->further = narrow && ystep == g->columns.count && v->n * g->ys[0] > GCPI_FAR ? GCPI_ROWS * ystep : 0;
    return soon && !s->near && !s->spread;
}

/* Pixels `part` of the block (y and x are counted from the block's) for the terms s->part. */
GCPI_FAST static void gcpi_sweep_pixels(gcpi_sweep *s, gcpi_block part)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    const ptrdiff_t first =
        s->first + s->part.y * v->dy * v->ws[1] + s->part.x * v->dx * v->ws[2] +
        s->part.j * (v->direct ? g->each : 1) * v->xc;
    const ptrdiff_t xstep = v->sx * v->ws[2], ystep = g->ys[2];
    const int burst = gcpi_sweep_fetches(s, xstep, ystep);
    gcpi_rows_held w;
    w.rows = 0;
    for (int line = 0; line < part.n * part.h; line++) {
        int b = line / part.h, py = part.y + line % part.h;
        ptrdiff_t x = first + b * v->ws[0] + py * v->sy * v->ws[1] + part.x * xstep,
                  y = (s->block.b + b) * g->ys[0] + (s->block.y + py) * g->ys[1] + (s->block.x + part.x) * ystep,
                  pixel = ((ptrdiff_t)b * s->block.h + py) * s->block.w + part.x;
        for (int px = 0; px < part.w; px++) {
            gcpi_held_add(s, &w, x + px * xstep, y + px * ystep, pixel + px);
            if (w.rows < GCPI_ROWS) continue;
            if (burst) gcpi_sweep_ahead(w.a, xstep, s->k.nj, s->down);
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

/* Packs rows of w for the panels of a set, behind the rows that are done. last: with the last channel. */
static void gcpi_gather_pack_piece(const gcpi_gather *g, const gcpi_sweep *s, gcpi_array w, int rows, int last,
                                   ptrdiff_t done, gcp_real *out)
{
    const gcpi_kblock *k = &s->k;
    const ptrdiff_t terms = (ptrdiff_t)k->ny * k->nx * k->nj;
    for (int p = s->panel; p < s->panel_end; p++) {
        const gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        gcp_real *to = out + terms * (panel.first - s->base) + done * panel.width;
        if (!gcpi_panel_place(g, &panel)) gcpi_gather_pack(g, w, rows, last, &panel, to, s->rows);
    }
}

/* Packs the panels of a set for the block s->k, at `out`. Narrow panels come from a few rows at a time: a line holds
   more than one of them, a page more still. */
static void gcpi_gather_pack_set(const gcpi_gather *g, const gcpi_sweep *s, gcp_real *out)
{
    const gcpi_kblock *k = &s->k;
    const int channels = g->v.channels, most = gcpi_simd_wide(&g->simd) || g->ws[3] != 1 ? k->nj : GCPI_PACK_PIECE;
    ptrdiff_t done = 0;
    for (int y = k->y; y < k->y + k->ny; y++)
        for (int x = k->x; x < k->x + k->nx; x++)
            for (int j = x * g->v.len + k->j, end = j + k->nj, rows; j < end; j += rows, done += rows) {
                const int channel = j % channels;
                rows = gcpi_min(gcpi_min(end - j, channels - channel), most);
                const gcpi_array w = gcpi_array_at(s->w, y * g->ws[0] + j / channels * g->ws[1] +
                                                             channel * g->each * g->ws[2]);
                gcpi_gather_pack_piece(g, s, w, rows, channel + rows == channels, done, out);
            }
}

/* A set of columns of a group. */
static void gcpi_gather_columns(const gcpi_gather *g, gcpi_sweep *s, int set, int group)
{
    s->w = gcpi_array_at(g->w, g->wfirst + group * g->wgroup);
    s->panel = (int)((ptrdiff_t)set * g->columns.panels / g->sets);
    s->panel_end = (int)((ptrdiff_t)(set + 1) * g->columns.panels / g->sets);
    s->base = gcpi_panel_of(&g->columns, s->panel).first;
    s->width = gcpi_panel_of(&g->columns, s->panel_end).first - s->base;
    s->cols = gcpi_min(s->width, g->columns.count - s->base);
}

/* What is prefetched of the rows of w from term j on: a line of each during a tile. Or columns, one behind the other:
   as many of their lines as a tile has terms. */
static gcpi_pieces gcpi_gather_rows(const gcpi_gather *g, const gcpi_sweep *s, ptrdiff_t j)
{
    const uintptr_t line = GCPI_LINE * sizeof(gcp_real),
                    from = (uintptr_t)((const gcp_real *)s->w.at + j * g->ws[2] + s->base * g->ws[3]);
    if (g->ws[3] == 1) return gcpi_pieces_of(from, g->ws[2], s->cols);
    gcpi_pieces columns = { from, line, (uintptr_t)s->k.nj * line, 0 };
    columns.lines = (int)((s->cols * g->ws[3] - 1) / ((ptrdiff_t)s->k.nj * GCPI_LINE)) + 1;
    return columns;
}

/* The rows of w that the next block of the sum reads. Where they are packed, also those of this worker's next task: as
   many tasks further as there are threads, about. */
static gcpi_pieces gcpi_gather_next(const gcpi_gather *g, const gcpi_sweep *s, ptrdiff_t task)
{
    const gcpi_pieces none = { 0, 0, 0, 0 };
    const ptrdiff_t j = s->k.j + s->k.nj, set = (task + g->threads) / g->v.chunks;
    if (j < g->v.len)
        return g->ws[3] == 1 && !(g->place && s->cols < s->width) ? gcpi_gather_rows(g, s, j) : none;
    if (g->place || set == task / g->v.chunks || set >= (ptrdiff_t)g->sets * g->groups) return none;
    gcpi_sweep next = *s;
    gcpi_gather_columns(g, &next, (int)(set % g->sets), (int)(set / g->sets));
    return gcpi_gather_rows(g, &next, 0);
}

/* A task's sweep: a chunk of the pixels, a set of columns of a group. rows: the worker's, behind what it packs. */
static void gcpi_gather_sweep(const gcpi_gather *g, gcpi_sweep *s, ptrdiff_t chunk, int set, int group, gcp_real *rows)
{
    const gcpi_view *v = &g->v;
    s->g = g;
    gcpi_gather_columns(g, s, set, group);
    s->block = gcpi_view_block(v, chunk);
    s->w_tiles = g->ahead ? gcpi_sweep_tiles(s, s->block.n * s->block.h * s->block.w) : 0;
    s->rows = rows, s->sums = rows + g->rows;
    s->x = gcpi_array_at(g->x, group * g->xgroup);
    s->y = gcpi_array_at(g->y, g->yfirst + group * g->ygroup);
    s->first = s->block.b * v->xs[0] + (v->oy + (ptrdiff_t)s->block.y * v->sy) * v->xs[1] +
               (v->ox + (ptrdiff_t)s->block.x * v->sx) * v->xs[2];
    if (v->direct) return;
    s->x = gcpi_reals(gcpi_view_load(v, g->halves, s->x, &s->block, 0, v->ky, s->sums + g->sums));
    s->first = 0;
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
    gcpi_gather_sweep(g, &s, chunk, (int)(set % g->sets), group, start + g->pack);
    memcpy(&last, scratch, sizeof last);
    int packed = g->resident && last == set; /* by an earlier task of this worker */
    memcpy(scratch, &set, sizeof set);
    if (!packed) gcpi_gather_start(g, group, s.base, s.width, start);
    s.start = g->accumulate ? NULL : start;
    gcp_real *out = start + s.width;
    for (s.k.y = 0; s.k.y < v->ky; s.k.y += g->by)
        for (s.k.x = 0; s.k.x < v->runs; s.k.x += g->bx)
            for (s.k.j = 0; s.k.j == 0 || s.k.j < v->len; s.k.j += g->bj) {
                s.k.ny = gcpi_min(g->by, v->ky - s.k.y);
                s.k.nx = gcpi_min(g->bx, v->runs - s.k.x);
                s.k.nj = gcpi_min(g->bj, v->len - s.k.j);
                if (!packed) gcpi_gather_pack_set(g, &s, out);
                s.packed = out;
                if (g->ahead) s.w_next = gcpi_gather_next(g, &s, g->base + index), s.w_tile = 0;
                s.begins = !s.k.y && !s.k.x && !s.k.j;
                s.ends = s.k.y + g->by >= v->ky && s.k.x + g->bx >= v->runs && s.k.j + g->bj >= v->len;
                gcpi_sweep_block(&s);
                s.start = NULL;
                if (g->resident) out += (ptrdiff_t)s.k.ny * s.k.nx * s.k.nj * s.width;
            }
    gcpi_gather_end(g, &s.block, group * g->columns.count + s.base, s.cols, worker);
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
    gcpi_par_run(par, g->v.chunks * g->sets * g->groups, &g->base,
                 g->winograd ? gcpi_winograd_task : gcpi_gather_task, g);
}
