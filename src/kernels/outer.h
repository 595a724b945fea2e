/* The outer product: convolution backward weights, transposed A times B. */

/* Packs n pixels of a chunk of so many, from number `pixel` on, whose rows lie at `row`. */
GCPI_FAST static void gcpi_outer_pack_piece(const gcpi_outer *o, gcpi_array row, ptrdiff_t pixel, int n, int rows,
                                            ptrdiff_t pixels, gcp_real *out)
{
    const gcp_real *from = (const gcp_real *)row.at;
    for (int r = 0; r < rows; r += o->beside) {
        const int width = gcpi_min(o->beside, rows - r);
        gcp_real *to = out + gcpi_outer_block(r, pixels) + pixel * width;
        if (o->duos) gcpi_duos_of(to, width, gcpi_array_at(row, r), o->epair, o->es[2], n, width);
        else if (row.half) gcpi_array_load(o->halves, gcpi_array_at(row, r), o->es[2], to, width, n, width);
        else if (width == o->es[2]) memcpy(to, from + r, (size_t)((ptrdiff_t)n * width) * sizeof *to);
        else if (width >= o->simd.lanes) o->simd.copy(to, from + r, n, o->es[2], width);
        else for (int i = 0; i < n; i++) gcpi_copy(to + i * width, from + i * o->es[2] + r, width);
    }
}

/* Packs the rows of e at the pixels of a chunk. Few rows side by side come from a few pixels at a time, so that what
   else is in their lines is still in L1 when it is packed. */
GCPI_FAST static const gcp_real *gcpi_outer_pack(const gcpi_outer *o, gcpi_array e, const gcpi_block *k, int rows,
                                                 gcp_real *out)
{
    const ptrdiff_t pixels = (ptrdiff_t)k->n * k->h * k->w;
    const int piece = o->beside < GCPI_OUTER_ROWS ? GCPI_PACK_PIECE : k->w;
    for (int line = 0; line < k->n * k->h; line++) {
        const gcpi_array first = gcpi_array_at(e, line / k->h * o->es[0] + line % k->h * o->es[1]);
        for (int at = 0; at < k->w; at += piece)
            gcpi_outer_pack_piece(o, gcpi_array_at(first, at * o->es[2]), (ptrdiff_t)line * k->w + at,
                                  gcpi_min(piece, k->w - at), rows, pixels, out);
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

/* n rows of duos whose halves lie `lower` values apart; of which but those of `there` are 0. */
GCPI_FAST static void gcpi_outer_duos(const gcpi_panel *p, gcpi_array row, ptrdiff_t lower, uint32_t there,
                                      ptrdiff_t step, int n, gcp_real *out)
{
    gcpi_duos_of(out, p->width, row, lower, step, n, p->cols);
    for (ptrdiff_t i = 0; there != UINT32_MAX && i < (ptrdiff_t)n * p->width; i++) ((gcpi_duo *)out)[i] &= there;
}

/* A row of x, and of a duo's values what is there: see gcpi_outer_duos. */
typedef struct gcpi_outer_from { gcpi_array row; ptrdiff_t lower; uint32_t there; } gcpi_outer_from;
static gcpi_outer_from gcpi_outer_from_at(const gcpi_outer *o, gcpi_array x, ptrdiff_t y)
{
    const gcpi_view *v = &o->v;
    const int upper = y >= 0 && y < v->h, lower = y + o->ypair >= 0 && y + o->ypair < v->h;
    gcpi_outer_from s;
    s.row = gcpi_array_at(x, y * v->xs[1] + (upper ? 0 : o->xpair));
    s.lower = upper && lower ? o->xpair : 0;
    s.there = upper && lower ? UINT32_MAX : upper ? 0xffff0000u : 0xffffu;
    if (!upper && !lower) s.row.at = NULL;
    return s;
}

/* Copies one row of the window of a panel: pixels from `first` on, o->sx apart, zeros where there are none. */
GCPI_FAST static void gcpi_outer_row_load(const gcpi_outer *o, const gcpi_outer_from *s, ptrdiff_t first, int count,
                                          const gcpi_panel *p, gcp_real *out)
{
    gcpi_array row = s->row;
    const gcpi_view *v = &o->v;
    ptrdiff_t step = o->sx * v->xs[2];
    gcpi_range in = gcpi_inside(first, o->sx, count, row.at ? v->w : 0);
    memset(out, 0, (size_t)((ptrdiff_t)in.begin * p->width) * sizeof *out);
    memset(out + (ptrdiff_t)in.end * p->width, 0, (size_t)((ptrdiff_t)(count - in.end) * p->width) * sizeof *out);
    if (in.end <= in.begin) return;
    row = gcpi_array_at(row, first * v->xs[2] + in.begin * step);
    out += (ptrdiff_t)in.begin * p->width;
    const int n = in.end - in.begin;
    const gcp_real *from = (const gcp_real *)row.at;
    if (o->duos) gcpi_outer_duos(p, row, s->lower, s->there, step, n, out);
    else if (row.half) gcpi_array_load(o->halves, row, step, out, p->width, n, p->cols);
    else if (p->cols == p->width) o->simd.copy(out, from, n, step, p->width);
    else for (int i = 0; i < n; i++) gcpi_copy(out + (ptrdiff_t)i * p->width, from + i * step, p->cols);
    for (int i = 0; i < n && p->cols < p->width; i++)
        memset(out + (ptrdiff_t)i * p->width + p->cols, 0, (size_t)(p->width - p->cols) * sizeof *out);
}

/* Blocked: copies the window of block k for a panel of channels of x. */
GCPI_FAST static void gcpi_outer_load(const gcpi_outer *o, gcpi_array x, const gcpi_block *k, const gcpi_panel *p,
                                      gcp_real *window)
{
    const gcpi_view *v = &o->v;
    int rows, pixels;
    gcpi_outer_window(o, k, &rows, &pixels);
    ptrdiff_t y0 = v->oy + (ptrdiff_t)k->y * v->sy, x0 = v->ox + (ptrdiff_t)k->x * v->sx;
    for (int b = 0; b < k->n; b++)
        for (int r = 0; r < rows; r++, window += (ptrdiff_t)pixels * p->width) {
            const gcpi_outer_from s = gcpi_outer_from_at(
                o, gcpi_array_at(x, (k->b + b) * v->xs[0] + p->first), y0 + (ptrdiff_t)r * o->sy);
            gcpi_outer_row_load(o, &s, x0, pixels, p, window);
        }
}

/* Item p of the panels at their taps: all taps of a panel, then the next panel. Its window is loaded where it differs
   from that of the item before. In place, vectors past the last channel would end behind the last pixel: `last`, of all
   chunks. */
static gcpi_source gcpi_outer_block_source(const gcpi_outer *o, gcpi_array x, const gcpi_block *k, int p, int load,
                                           int last, gcp_real *window)
{
    const gcpi_view *v = &o->v;
    int tap = p % o->taps, ky = tap / v->kx, kx = tap % v->kx, rows, pixels;
    gcpi_source s;
    s.panel = gcpi_panel_of(&o->columns, p / o->taps);
    s.d = tap * (ptrdiff_t)v->channels + s.panel.first;
    if (o->place && !(last && s.panel.cols < s.panel.width)) {
        s.x = (const gcp_real *)x.at + k->b * v->xs[0] + (v->oy + k->y * v->sy + ky * v->dy) * v->xs[1] +
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

/* What a task prefetches while it sums over a chunk. Of what lies side by side: the pixels of the next chunk in x, then
   in e, spread evenly over all terms. */
typedef struct gcpi_pace {
    uintptr_t x, e, half, tile, term; /* addresses; bytes of x, for each tile, for each term */
    int near;                         /* see gcpi_tile */
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
    gcpi_pieces x_next, e_next;        /* the next panel; the next chunk's rows */
} gcpi_share;

/* Where a share begins in e, in x, at a block's first pixel. */
static gcpi_array gcpi_outer_rows(const gcpi_outer *o, const gcpi_share *s, const gcpi_block *k)
{
    return gcpi_array_at(o->e,
                        s->group * o->egroup + s->row + k->b * o->es[0] + k->y * o->es[1] + k->x * o->es[2]);
}
static uintptr_t gcpi_outer_pixels(const gcpi_outer *o, const gcpi_share *s, const gcpi_block *k)
{
    const gcpi_view *v = &o->v;
    return (uintptr_t)((const gcp_real *)o->x.at + s->group * o->xgroup + k->b * v->xs[0] +
                       (ptrdiff_t)k->y * v->sy * v->xs[1] + (ptrdiff_t)k->x * v->sx * v->xs[2]);
}

/* Whether panels of x are prefetched by pieces, as there are tiles enough; then pixels are not. */
static int gcpi_outer_x_apart(const gcpi_outer *o)
{
    return o->simd.burst && !o->halves && o->blocked && !o->near && o->rows >= 4 * GCPI_MR_MAX;
}

static gcpi_pace gcpi_outer_pace(const gcpi_outer *o, const gcpi_share *s, ptrdiff_t chunk)
{
    const gcpi_view *v = &o->v;
    gcpi_block k = gcpi_view_block(v, chunk);
    uintptr_t pixels = (uintptr_t)k.n * (uintptr_t)k.h * (uintptr_t)k.w,
              tiles = (uintptr_t)gcpi_ceil(s->rows, o->simd.mr[o->simd.nv - 1]) * (uintptr_t)(s->last - s->first);
    gcpi_pace p;
    p.x = gcpi_outer_pixels(o, s, &k);
    p.e = (uintptr_t)gcpi_outer_rows(o, s, &k).at;
    p.half = gcpi_outer_x_apart(o)
                 ? 0
                 : pixels * (uintptr_t)v->sy * (uintptr_t)v->sx * (uintptr_t)v->xs[2] * sizeof(gcp_real);
    p.tile = (p.half + (s->rows == o->es[2] ? pixels * (uintptr_t)s->rows * sizeof(gcp_real) : 0)) / tiles;
    p.term = p.tile / pixels + (p.tile > 0);
    p.near = o->simd.paces && o->near && p.term > GCPI_LINE * sizeof(gcp_real) / 2; /* L2 is late for so many lines */
    return p;
}

/* Cores that fetch many lines at once gain always; others lose but where few channels of x are read in place. */
static int gcpi_outer_paces(const gcpi_outer *o)
{
    int side = o->near && o->taps == 1 && o->sx == 1 && o->sy == 1 && o->v.xs[2] == o->v.channels;
    return o->units == 1 && !o->halves && (side || (o->simd.burst && o->groups == 1));
}

/* The panel after item p of a share, in this chunk or the next: prefetched while the last tap is summed. */
static gcpi_pieces gcpi_outer_x_next(const gcpi_outer *o, const gcpi_share *s, ptrdiff_t chunk, int p)
{
    const gcpi_pieces none = { 0, 0, 0, 0 };
    if (!gcpi_outer_x_apart(o) || p % o->taps < o->taps - 1) return none;
    gcpi_block k = s->k;
    if (++p == s->last) {
        if (++chunk == o->v.chunks) return none;
        p = s->first, k = gcpi_view_block(&o->v, chunk);
    }
    gcpi_panel panel = gcpi_panel_of(&o->columns, p / o->taps);
    return gcpi_pieces_of(gcpi_outer_pixels(o, s, &k) + (uintptr_t)panel.first * sizeof(gcp_real), o->sx * o->v.xs[2],
                          panel.cols);
}

/* The rows of the next chunk, where they are some of e's. */
static gcpi_pieces gcpi_outer_e_next(const gcpi_outer *o, const gcpi_share *s, ptrdiff_t chunk)
{
    const gcpi_pieces none = { 0, 0, 0, 0 };
    if (!o->simd.burst || o->halves || !o->packed || s->rows == o->es[2] || chunk + 1 >= o->v.chunks) return none;
    gcpi_block k = gcpi_view_block(&o->v, chunk + 1);
    return gcpi_pieces_of((uintptr_t)gcpi_outer_rows(o, s, &k).at, o->es[2], s->rows);
}

/* What tile i of the panel-th panel prefetches. */
static void gcpi_outer_ahead(const gcpi_share *s, int panel, int i, int tiles, gcpi_tile *t)
{
    const gcpi_pace *pace = &s->pace;
    int at = panel * tiles + i;
    if (gcpi_piece_take(&s->x_next, i, tiles, t)) return;
    if (gcpi_piece_take(&s->e_next, at, (s->last - s->first) * tiles, t)) return;
    t->pace = pace->term, t->near = pace->near;
    uintptr_t next = (uintptr_t)at * pace->tile;
    t->ahead = next < pace->half ? pace->x + next : pace->e + next - pace->half;
}

/* The loops of a tile over a chunk, for rows of e `pixel` values apart (0: as e lies). */
static void gcpi_outer_loops(const gcpi_outer *o, const gcpi_block *k, const gcpi_source *x, int pixel, gcpi_tile *t)
{
    t->n[0] = k->n, t->n[1] = k->h, t->n[2] = k->w;
    memcpy(t->bs, x->steps, sizeof t->bs);
    memcpy(t->as, o->es, sizeof t->as);
    if (pixel) t->as[2] = pixel, t->as[1] = t->as[2] * k->w, t->as[0] = t->as[1] * k->h;
    gcpi_tile_merge(t);
}

/* Adds a chunk to a share's rows of d, for one panel of x: the panel-th of the share. */
GCPI_FAST static void gcpi_outer_panel(const gcpi_outer *o, const gcpi_share *s, const gcpi_source *x, int panel)
{
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_block *k = &s->k;
    const gcp_real *rows_of_e[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX], *d = s->d + x->d;
    gcpi_tile t;
    t.a = rows_of_e, t.c = c, t.first = 0, t.burst = o->simd.burst, t.further = 0;
    t.also = (uintptr_t)&t, t.step = 0;              /* a line at hand: there is nothing else */
    t.start = s->fresh ? zero : NULL, t.ss = 0;
    t.b = x->x;
    int mr, block = o->packed ? o->beside : s->rows;
    /* no tile may span two packed blocks, and 5 does not divide 48 */
    gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, x->panel.nv, s->rows <= GCPI_OUTER_ROWS ? s->rows : 0, &mr);
    const int tiles = gcpi_ceil(s->rows, mr);
    for (int first = 0, i = 0; first < s->rows; first += block, d += block * s->ds) {
        const int rows = gcpi_min(block, s->rows - first);
        const gcp_real *e = s->e + (o->packed ? gcpi_outer_block(first, (ptrdiff_t)k->n * k->h * k->w) : 0);
        gcpi_outer_loops(o, k, x, o->packed ? rows : 0, &t);
        for (int r = 0; r < rows; r += mr, i++) {
            gcpi_outer_ahead(s, panel, i, tiles, &t);
            t.rows = gcpi_min(mr, rows - r);
            for (int q = 0; q < mr; q++) {
                const int at = q < t.rows ? r + q : r;
                rows_of_e[q] = e + at;
                c[q] = d + at * s->ds;
            }
            gcpi_run_tile(kernel, &t, &x->panel);
        }
    }
}

/* Adds the chunk s->k, of number `chunk`. packed, window: room for rows of e, for pixels of x. */
static void gcpi_outer_chunk(const gcpi_outer *o, gcpi_share *s, ptrdiff_t chunk, gcp_real *packed, gcp_real *window)
{
    const gcpi_view *v = &o->v;
    const gcpi_array x = gcpi_array_at(o->x, s->group * o->xgroup), e = gcpi_outer_rows(o, s, &s->k);
    const gcp_real *pixels = NULL;
    int row_panels = v->runs * o->columns.panels;
    if (!o->blocked)
        pixels = gcpi_view_load(v, o->halves, x, &s->k, s->first / row_panels, (s->last - 1) / row_panels + 1, window);
    s->e_next = gcpi_outer_e_next(o, s, chunk);
    s->e = o->packed ? gcpi_outer_pack(o, e, &s->k, s->rows, packed) : (const gcp_real *)e.at;
    for (int p = s->first; p < s->last; p++) {
        gcpi_source from =
            o->blocked ? gcpi_outer_block_source(o, x, &s->k, p, p == s->first, chunk + 1 == v->chunks, window)
                       : gcpi_outer_run_source(o, pixels, p);
        s->x_next = gcpi_outer_x_next(o, s, chunk, p);
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
        s.pace.term = 0, s.pace.near = 0;
        if (paces && i + 1 < end) s.pace = gcpi_outer_pace(o, &s, i + 1);
        gcpi_outer_chunk(o, &s, i, packed, window);
    }
}

/* The columns of e at the pixels of a chunk: rows of e, in place or copied side by side. */
GCPI_FAST static const gcp_real *gcpi_swapped_columns(const gcpi_outer *o, const gcpi_block *k, ptrdiff_t *steps,
                                                      gcp_real *out)
{
    const gcpi_array e = gcpi_array_at(o->e, k->b * o->es[0] + k->y * o->es[1] + k->x * o->es[2]);
    memcpy(steps, o->es, sizeof o->es);
    if (!o->packed) return (const gcp_real *)e.at;
    steps[2] = o->rows, steps[1] = k->w * steps[2], steps[0] = k->h * steps[1];
    for (int line = 0; line < k->n * k->h; line++) {
        const gcpi_array row = gcpi_array_at(e, line / k->h * o->es[0] + line % k->h * o->es[1]);
        const gcp_real *from = (const gcp_real *)row.at;
        if (row.half) gcpi_array_load(o->halves, row, o->es[2], out + line * steps[1], steps[2], k->w, o->rows);
        else
            for (int i = 0; i < k->w; i++)
                gcpi_copy(out + line * steps[1] + i * steps[2], from + i * o->es[2], o->rows);
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
        gcpi_run_tile(kernel, &t, panel);
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
        const gcp_real *x = gcpi_view_load(v, o->halves, o->x, &k, 0, v->ky, window),
                       *e = gcpi_swapped_columns(o, &k, t.bs, columns);
        t.burst = o->simd.burst, t.further = 0;
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
    else
        gcpi_par_run(par, (ptrdiff_t)o->splits * o->units * o->parts * o->groups, &o->base,
                     o->winograd ? gcpi_winograd_back_task : gcpi_outer_task, o);
    if (!o->shared) par->parallel_for(par->context, GCPI_TASKS, gcpi_outer_sum, o);
}
