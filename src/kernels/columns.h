/* What all products share: columns, cut into panels; windows of pixels. A view says what pixels of x a block of
   outputs reads.

   One idea serves all products, the gather product: a tile of MR rows, each known by a pointer, times NV vectors of
   columns, summed over three nested loops with a stride each. Nothing is lowered to an im2col matrix.
     forward            rows = output pixels, columns = output channels, loops = (ky, kx, ci)
     backward data      the same on dy with flipped weights, one call per stride phase
     backward weights   rows = output channels, columns = a run of (kx, ci), loops = (image, y, x)
     matrix product     a 1x1 convolution, or its backward weights where A is stored transposed
   Borders cost nothing inside the loops. Where channels are many, pixels that the same taps reach are summed together,
   and x is read in place; else each task copies the zero-padded window of x it needs, and because that copy is dense,
   kx and ci merge into one contiguous run. Sums are cut by shape and instruction set only, so results do not depend on
   the threads; what no sum depends on is cut by the threads, too. */

static int gcpi_min(int a, int b) { return a < b ? a : b; }
static int gcpi_max(int a, int b) { return a > b ? a : b; }
static int gcpi_ceil(int a, int b) { return a / b + (a % b != 0); }
static int gcpi_even(int total, int most) { return gcpi_ceil(total, gcpi_ceil(total, most)); }
/* the greatest common divisor */
static int gcpi_divisor(int a, int b)
{
    while (b) {
        int r = a % b;
        a = b;
        b = r;
    }
    return a;
}
static ptrdiff_t gcpi_line(ptrdiff_t n) { return (n + GCPI_LINE - 1) / GCPI_LINE * GCPI_LINE; }

/* Bytes of scratch for `shared` values, and `worker` values per worker; SIZE_MAX where that is more than can be
   addressed. */
static size_t gcpi_scratch_bytes(ptrdiff_t shared, ptrdiff_t worker, const gcpi_par *par)
{
    return gcpi_bytes_from(((double)shared + (double)worker * par->threads) * sizeof(gcp_real));
}

/* Work that no sum depends on is cut into so many tasks at least: more copy and pack the same again. */
static int gcpi_par_tasks(const gcpi_par *par) { return gcpi_min(GCPI_TASKS, 2 * par->threads); }

/* steps * elements, capped. A stride that does not fit belongs to an axis with one position, so it is never taken. */
static ptrdiff_t gcpi_stride(int64_t steps, int64_t elements)
{
    int64_t all = steps * elements;
    return (ptrdiff_t)GCPI_MAX(GCPI_MIN(all, (int64_t)PTRDIFF_MAX), -(int64_t)PTRDIFF_MAX);
}

/* memcpy for so few values that a call would cost more than the copy. */
GCPI_FAST static void gcpi_copy(gcp_real *to, const gcp_real *from, int count)
{
    int i = 0;
    for (; i + 8 <= count; i += 8) memcpy(to + i, from + i, 8 * sizeof *to);
    if (count & 4) memcpy(to + i, from + i, 4 * sizeof *to), i += 4;
    if (count & 2) memcpy(to + i, from + i, 2 * sizeof *to), i += 2;
    if (count & 1) to[i] = from[i];
}

/* Of `count` positions from `first` on, `step` apart: the indices of those in [0, size). */
typedef struct gcpi_range {
    int begin, end;
} gcpi_range;
static gcpi_range gcpi_inside(ptrdiff_t first, int step, int count, int size)
{
    gcpi_range r = { 0, count };
    while (r.begin < count && first + (ptrdiff_t)r.begin * step < 0) r.begin++;
    while (r.end > r.begin && first + (ptrdiff_t)(r.end - 1) * step >= size) r.end--;
    return r;
}

/* n values fill vectors of so many. */
static double gcpi_lanes_up(const gcpi_simd *simd, int n) { return (double)gcpi_ceil(n, simd->lanes) * simd->lanes; }

/* Columns come in panels of at most nv vectors, all nearly equally wide. */
typedef struct gcpi_columns {
    int count, lanes, vectors, panels;
} gcpi_columns;

static gcpi_columns gcpi_columns_of(int count, const gcpi_simd *simd)
{
    gcpi_columns c;
    c.count = count;
    c.lanes = simd->lanes;
    c.vectors = gcpi_ceil(count, simd->lanes);
    c.panels = gcpi_ceil(c.vectors, simd->nv);
    return c;
}

/* A panel's first column, its vectors, and its columns with (width) and without padding. */
typedef struct gcpi_panel {
    int first, nv, width, cols;
} gcpi_panel;

static gcpi_panel gcpi_panel_of(const gcpi_columns *c, int index)
{
    gcpi_panel p;
    int begin = (int)((ptrdiff_t)index * c->vectors / c->panels);
    int end = (int)((ptrdiff_t)(index + 1) * c->vectors / c->panels);
    p.first = begin * c->lanes;
    p.nv = end - begin;
    p.width = p.nv * c->lanes;
    p.cols = gcpi_min(p.width, c->count - p.first);
    return p;
}

/* The kernel for panels of nv vectors and, over all tiles, `rows` rows. */
static gcpi_kernel *gcpi_kernel_of(const gcpi_simd *simd, int nv, int rows, int *mr)
{
    int five = nv == 4 && rows % 5 == 0 && rows % 6 != 0;
    *mr = five ? 5 : simd->mr[nv - 1];
    return five ? simd->five : simd->kernel[nv - 1];
}

/* What is prefetched of pieces (pixels, rows of weights) that lie `pitch` bytes apart: one line of each during a tile;
   during another, `step` bytes further, the next. */
typedef struct gcpi_pieces {
    uintptr_t from, pitch, step;
    int lines; /* of a piece; 0: nothing is to come */
} gcpi_pieces;

/* Pieces of so many values, `pitch` values apart: their lines, wherever in a line a piece begins. */
static gcpi_pieces gcpi_pieces_of(uintptr_t from, ptrdiff_t pitch, int values)
{
    gcpi_pieces p;
    const uintptr_t line = GCPI_LINE * sizeof(gcp_real), apart = (uintptr_t)pitch * sizeof(gcp_real),
                    at = from | apart | line, least = at & (~at + 1);
    p.from = from, p.pitch = apart, p.step = line;
    p.lines = gcpi_ceil((int)((line - least) / sizeof(gcp_real)) + values, GCPI_LINE);
    return p;
}

/* Takes the pieces that are due in tile i of `tiles`. */
static int gcpi_piece_take(const gcpi_pieces *p, int i, int tiles, gcpi_tile *t)
{
    if (!p->lines) return 0;
    int every = gcpi_max(1, tiles / p->lines), line = i / every;
    if (line >= p->lines || line * every != i) return 0;
    t->ahead = p->from + (uintptr_t)line * p->step, t->pace = p->pitch, t->near = 0;
    return 1;
}

/* Runs a kernel on a tile of a padded panel: c goes through a full-width copy, and the tile does not know its lines. */
GCPI_FAST static void gcpi_run_padded(gcpi_kernel *kernel, const gcpi_tile *t, const gcpi_panel *p)
{
    gcp_real wide[GCPI_MR_MAX][GCPI_NR_MAX], *c[GCPI_MR_MAX];
    gcpi_tile padded = *t;
    padded.c = c, padded.first = 0, padded.burst = 0;
    for (int i = 0; i < t->rows && t->burst; i++) gcpi_fetch(t->c[i] + t->first, t->further, p->cols);
    for (int i = 0; i < GCPI_MR_MAX; i++) c[i] = wide[i < t->rows ? i : 0];
    for (int i = 0; i < t->rows && !t->start; i++) gcpi_copy(wide[i], t->c[i] + t->first, p->cols);
    kernel(&padded);
    for (int i = 0; i < t->rows; i++) gcpi_copy(t->c[i] + t->first, wide[i], p->cols);
}

GCPI_BODY void gcpi_run_tile(gcpi_kernel *kernel, const gcpi_tile *t, const gcpi_panel *p)
{
    if (p->cols == p->width) kernel(t);
    else gcpi_run_padded(kernel, t, p);
}

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

/* Zeros behind the columns of packed rows. */
static void gcpi_pad_rows(gcp_real *out, int width, int cols, int rows)
{
    for (int i = 0; i < rows && cols < width; i++)
        memset(out + (ptrdiff_t)i * width + cols, 0, (size_t)(width - cols) * sizeof *out);
}

/* The same of halves: rs or cs is 1. turned: room for GCPI_PACK_ROWS rows of a panel. */
GCPI_FAST static void gcpi_pack_halves(const gcpi_simd *simd, const gcpi_halves *halves, gcp_real *out, int width,
                                       int cols, gcpi_array w, int rows, ptrdiff_t rs, ptrdiff_t cs, gcp_real *turned)
{
    for (int r = 0, n; r < rows; r += n, out += (ptrdiff_t)n * width) {
        n = gcpi_min(rows - r, GCPI_PACK_ROWS);
        if (cs != 1) {
            gcpi_array_load(halves, gcpi_array_at(w, r), cs, turned, n, cols, n);
            simd->turn(out, width, n, cols, turned, n);
        } else gcpi_array_load(halves, gcpi_array_at(w, r * rs), rs, out, width, n, cols);
        gcpi_pad_rows(out, width, cols, n);
    }
}

/* The same of duos: a row of them is two of w; alone: the last is one. */
GCPI_FAST static void gcpi_pack_duos(const gcpi_simd *simd, gcp_real *out, int width, int cols, gcpi_array w, int rows,
                                     ptrdiff_t rs, ptrdiff_t cs, gcp_real *turned, int alone)
{
    for (int r = 0, n; r < rows; r += n, out += (ptrdiff_t)n * width) {
        const gcpi_array from = gcpi_array_at(w, 2 * r * rs);
        n = gcpi_min(rows - r, GCPI_PACK_ROWS);
        const int last = alone && r + n == rows, pairs = n - last;
        if (cs != 1) {
            gcpi_duos_load(turned, n, from, cs, rs, cols, n, last, (gcp_real)-0.0);
            simd->turn(out, width, n, cols, turned, n);
        } else {
            gcpi_duos_of(out, width, from, rs, 2 * rs, pairs, cols);
            if (last)
                gcpi_duos_alone(out + (ptrdiff_t)pairs * width, 1, gcpi_array_at(from, 2 * pairs * rs), 1, cols,
                                (gcp_real)-0.0);
        }
        gcpi_pad_rows(out, width, cols, n);
    }
}

typedef struct gcpi_view {
    int n, h, w, channels;              /* source images; channels of one group */
    int duos;                           /* what is read is duos: channels and a window's steps count them */
    ptrdiff_t xs[3], xc;                /* steps to the next image, row, pixel, and channel */
    int oy, ox, sy, sx, ky, kx, dy, dx; /* row y reads source rows oy + y*sy + k*dy, k < ky */
    int ho, wo;
    int skips;      /* what is not there is not read */
    ptrdiff_t most; /* values of a window, if it can be cut; 0: GCPI_WINDOW_MAX */
    /* set by gcpi_view_cut */
    int bn, bh, bw, cn, ch, cw; /* images, rows, columns of a block; blocks along each of them */
    ptrdiff_t chunks;           /* blocks in all */
    int direct, wh, ww;         /* x is read in place, or copied: wh x ww pixels an image */
    int runs, len;              /* per kernel row: contiguous runs, and their length */
    ptrdiff_t ws[3];            /* steps of the pixels that are read: image, row, pixel */
    ptrdiff_t window;           /* values in the copied window */
} gcpi_view;

typedef struct gcpi_block {
    int b, y, x, n, h, w;
} gcpi_block;

/* Values in the window of a block. Capped at INT32_MAX while the block is too large; the window of one pixel always
   fits (gcpi_conv_fits). */
static ptrdiff_t gcpi_view_window(gcpi_view *v)
{
    double values = (double)v->bn * v->channels;
    v->wh = (int)((int64_t)(v->bh - 1) * v->sy + (int64_t)(v->ky - 1) * v->dy + 1);
    v->ww = (int)((int64_t)(v->bw - 1) * v->sx + (int64_t)(v->kx - 1) * v->dx + 1);
    values *= (double)v->wh * v->ww;
    return values < INT32_MAX ? (ptrdiff_t)values : INT32_MAX;
}

static int gcpi_view_inside(const gcpi_view *v)
{
    return v->oy >= 0 && v->ox >= 0 &&
           (ptrdiff_t)v->oy + (ptrdiff_t)(v->ho - 1) * v->sy + (ptrdiff_t)(v->ky - 1) * v->dy < v->h &&
           (ptrdiff_t)v->ox + (ptrdiff_t)(v->wo - 1) * v->sx + (ptrdiff_t)(v->kx - 1) * v->dx < v->w;
}

/* One axis of a view: row (column) p of y reads pixels from + p*step + k*apart of `size`, k < taps. */
typedef struct gcpi_side {
    int from, step, apart, taps, size;
} gcpi_side;
static gcpi_side gcpi_view_rows(const gcpi_view *v)
{
    gcpi_side a = { v->oy, v->sy, v->dy, v->ky, v->h };
    return a;
}
static gcpi_side gcpi_view_columns(const gcpi_view *v)
{
    gcpi_side a = { v->ox, v->sx, v->dx, v->kx, v->w };
    return a;
}

/* Taps that read pixels which exist. */
static gcpi_range gcpi_taps_at(const gcpi_side *a, int p)
{
    return gcpi_inside(a->from + (ptrdiff_t)p * a->step, a->apart, a->taps, a->size);
}

/* Pairs of a row (column) of y and a tap that reaches a pixel. */
static double gcpi_side_pairs(const gcpi_side *s, int count)
{
    double pairs = 0;
    for (ptrdiff_t k = 0; k < s->taps; k++) {
        const ptrdiff_t first = s->from + k * s->apart;
        pairs += (double)GCPI_MAX(GCPI_MIN(count, s->size - first) - GCPI_MAX(-first, 0), 0);
    }
    return pairs;
}
/* How many rows (columns) from p on, below `end`, have the same taps. */
static int gcpi_same_taps(const gcpi_side *a, int p, int end)
{
    gcpi_range first = gcpi_taps_at(a, p), next;
    ptrdiff_t spare = (ptrdiff_t)a->size - 1 - (ptrdiff_t)(a->taps - 1) * a->apart - a->from;
    if (first.begin == 0 && first.end == a->taps) return (int)GCPI_MIN((ptrdiff_t)end, spare / a->step + 1) - p;
    for (int n = 1; p + n < end; n++) {
        next = gcpi_taps_at(a, p + n);
        if (next.begin != first.begin || next.end != first.end) return n;
    }
    return end - p;
}

/* Cuts the output into blocks of about `pixels`; place: x may be read in place, if every pixel that is read exists. */
static void gcpi_view_cut(gcpi_view *v, int pixels, int place)
{
    v->bw = gcpi_even(v->wo, pixels);
    v->bh = gcpi_even(v->ho, gcpi_max(1, pixels / v->wo));
    v->bn = v->bh < v->ho ? 1 : gcpi_even(v->n, gcpi_max(1, (int)(pixels / ((ptrdiff_t)v->ho * v->wo))));
    v->direct = place && (gcpi_view_inside(v) || (v->skips && v->channels >= GCPI_NR_MAX));
    const ptrdiff_t most = v->most ? v->most : (ptrdiff_t)GCPI_WINDOW_MAX;
    while (gcpi_view_window(v) > most && !v->direct && v->bn * v->bh * v->bw > 1)
        if (v->bn > 1) v->bn = (v->bn + 1) / 2;
        else if (v->bh > 1) v->bh = (v->bh + 1) / 2;
        else v->bw = (v->bw + 1) / 2;
    v->cn = gcpi_ceil(v->n, v->bn);
    v->ch = gcpi_ceil(v->ho, v->bh);
    v->cw = gcpi_ceil(v->wo, v->bw);
    v->chunks = (ptrdiff_t)v->cn * v->ch * v->cw;
    v->ws[2] = v->direct ? v->xs[2] : v->channels;
    v->ws[1] = v->direct ? v->xs[1] : v->ww * v->ws[2];
    v->ws[0] = v->direct ? v->xs[0] : v->wh * v->ws[1];
    /* not in place: there merging would depend on the pitch, and scratch must not */
    int merge = v->dx == 1 && !v->direct && v->xc == 1;
    v->runs = merge ? 1 : v->kx;
    v->len = merge ? v->kx * v->channels : v->channels;
    v->window = v->direct ? 0 : gcpi_line(gcpi_view_window(v)) + GCPI_LINE; /* kernels read past the end */
}

static gcpi_block gcpi_view_block(const gcpi_view *v, ptrdiff_t index)
{
    gcpi_block k;
    k.x = (int)(index % v->cw) * v->bw;
    k.y = (int)(index / v->cw % v->ch) * v->bh;
    k.b = (int)(index / v->cw / v->ch) * v->bn;
    k.w = gcpi_min(v->bw, v->wo - k.x);
    k.h = gcpi_min(v->bh, v->ho - k.y);
    k.n = gcpi_min(v->bn, v->n - k.b);
    return k;
}

/* One row of the window: pixels first .. first + ww of a source row, zeros where there are none. */
GCPI_FAST static void gcpi_view_row(const gcpi_view *v, const gcpi_halves *halves, gcpi_array x, ptrdiff_t first,
                                    gcp_real *out)
{
    ptrdiff_t c = v->channels, left = first < 0 ? -first : 0, end = v->w - first;
    if (left > v->ww) left = v->ww;
    if (end > v->ww) end = v->ww;
    if (end < left) end = left;
    memset(out, 0, (size_t)(left * c) * sizeof *out);
    memset(out + end * c, 0, (size_t)((v->ww - end) * c) * sizeof *out);
    if (end == left) return;
    x = gcpi_array_at(x, (first + left) * v->xs[2]);
    if (v->duos) gcpi_duos_load(out + left * c, c, x, v->xs[2], 1, end - left, c, 0, 0);
    else if (v->xs[2] == c) gcpi_array_load(halves, x, 0, out + left * c, 0, 1, (end - left) * c);
    else gcpi_array_load(halves, x, v->xs[2], out + left * c, c, end - left, c);
}

/* Whether kernel rows first .. last - 1 read row y of the window of block k. */
static int gcpi_view_reads(const gcpi_view *v, const gcpi_block *k, int y, int first, int last)
{
    for (int ky = first; ky < last; ky++) {
        int from = y - ky * v->dy;
        if (from >= 0 && from % v->sy == 0 && from / v->sy < k->h) return 1;
    }
    return 0;
}

/* Copies the pixels of a block that kernel rows first .. last - 1 read to `window`, where their steps are v->ws. */
GCPI_FAST static const gcp_real *gcpi_view_load(const gcpi_view *v, const gcpi_halves *halves, gcpi_array x,
                                                const gcpi_block *k, int first, int last, gcp_real *window)
{
    ptrdiff_t y0 = v->oy + (ptrdiff_t)k->y * v->sy, x0 = v->ox + (ptrdiff_t)k->x * v->sx;
    for (int b = 0; b < k->n; b++)
        for (int y = 0; y < v->wh; y++) {
            gcp_real *out = window + b * v->ws[0] + y * v->ws[1];
            if (!gcpi_view_reads(v, k, y, first, last)) continue;
            if (y0 + y < 0 || y0 + y >= v->h) memset(out, 0, (size_t)v->ws[1] * sizeof *out);
            else gcpi_view_row(v, halves, gcpi_array_at(x, (k->b + b) * v->xs[0] + (y0 + y) * v->xs[1]), x0, out);
        }
    memset(window + k->n * v->ws[0], 0, GCPI_LINE * sizeof *window);
    return window;
}
