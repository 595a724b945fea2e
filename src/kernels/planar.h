/* The gather product of planes: a vector holds pixels of a row. For few output channels, which would leave lanes empty.
   The window is copied as [row][channel][x], so (ky, channel) is one evenly spaced run, and output channels are the
   rows of the tile. */

/* The pixels of a row in floats: where they lie, or in room. *step: from pixel to pixel. */
static const gcp_real *gcpi_planar_pixels(const gcpi_gather *g, gcpi_array x, ptrdiff_t pitch, ptrdiff_t pixels,
                                          int channels, gcp_real *room, ptrdiff_t *step)
{
    *step = x.half ? channels : pitch;
    if (!x.half) return (const gcp_real *)x.at;
    gcpi_array_load(g->halves, x, pitch, room, channels, pixels, channels);
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
        gcpi_array x = gcpi_array_at(g->x, k->b * v->xs[0] + (y0 + y) * v->xs[1] + (x0 + left) * v->xs[2]);
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
    t.a = a, t.c = c, t.ahead = t.pace = 0, t.burst = t.near = 0;
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

/* The starting values of a set: the bias, or zeros. */
static void gcpi_gather_start(const gcpi_gather *g, int group, int first, int width, gcp_real *out)
{
    for (int j = 0; j < width; j++)
        out[j] = g->bias && first + j < g->columns.count ? g->bias[group * g->columns.count + first + j] : 0;
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
        gcpi_array y = gcpi_array_at(g->y, g->yfirst + k.b * g->ys[0] + (k.y + py) * g->ys[1] + k.x * g->ys[2]);
        ptrdiff_t step;
        if (g->accumulate) {
            const gcp_real *pixels = gcpi_planar_pixels(g, y, g->ys[2], k.w, g->cols, room, &step);
            g->simd.turn(out, plane, g->cols, k.w, pixels, step);
        }
        gcpi_planar_row(g, window + (ptrdiff_t)py * v->sy * v->channels * v->ww, out, plane);
        if (!y.half) { g->simd.turn((gcp_real *)y.at, g->ys[2], k.w, g->cols, out, plane); continue; }
        g->simd.turn(room, g->cols, k.w, g->cols, out, plane);
        gcpi_array_store(g->halves, y, g->ys[2], room, g->cols, k.w, g->cols);
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
    if (g->settles) g->halves->settle(g->scratch, out - g->scratch);
    out = g->scratch + g->weights;
    for (ptrdiff_t i = 0; i < g->shared - g->weights; i++)
        out[i] = g->bias && i / GCPI_NR_MAX < g->cols ? g->bias[i / GCPI_NR_MAX] : 0;
    gcpi_par_run(par, g->v.chunks, &g->base, gcpi_planar_task, g);
}
