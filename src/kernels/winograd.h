/* The gather product by Winograd's tiles: 3x3 taps, one apart, no stride. A tile of 2x2 pixels of y, which reads 4x4 of
   x, takes 16 products a pair of channels where a sum over taps takes 36 (winograd_tiles.h). The products of point p of
   all tiles are a matrix product: rows are tiles, columns output channels. Sums go over channels in order, so no bit
   depends on how tiles are cut. */

/* A worker's weights, tiles and sums. */
typedef struct gcpi_winograd {
    const gcpi_gather *g;
    gcpi_panel panel;
    gcp_real *start, *weights, *x, *sums, *room;
    ptrdiff_t xpoint, point;             /* values from point to point, of x and of sums */
} gcpi_winograd;

/* Transforms the weights of the panel. */
static void gcpi_winograd_weights(const gcpi_winograd *w)
{
    const gcpi_gather *g = w->g;
    const gcpi_panel *p = &w->panel;
    const int channels = g->v.channels;
    gcp_real *taps = w->x;
    for (int first = 0, rows; first < channels; first += rows) {
        gcpi_wave s;
        memset(&s, 0, sizeof s);
        rows = gcpi_min(GCPI_WINOGRAD_ROWS, channels - first);
        s.n = (ptrdiff_t)rows * p->width, s.step[1] = s.n, s.step[0] = 3 * s.n, s.from = taps;
        s.point = (ptrdiff_t)channels * p->width, s.to = w->weights + (ptrdiff_t)first * p->width;
        for (int t = 0; t < 9; t++)
            gcpi_pack_rows(&g->simd, taps + t * s.n, p->width, p->cols,
                           (const gcp_real *)g->w.at + g->wfirst + t / 3 * g->ws[0] + t % 3 * g->ws[1] +
                               first * g->ws[2] + p->first * g->ws[3],
                           rows, g->ws[2], g->ws[3]);
        if (g->settles) g->halves->settle(taps, 9 * s.n);
        gcpi_waves_of(g->isa)->weights(&s);
    }
}

/* Transforms a chunk of x. */
static void gcpi_winograd_load(const gcpi_winograd *w, ptrdiff_t first, int tiles)
{
    const gcpi_gather *g = w->g;
    const gcpi_tiled pixels = gcpi_winograd_x(&g->v, g->x);
    gcpi_wave s;
    memset(&s, 0, sizeof s);
    s.point = w->xpoint;
    for (int i = 0; i < tiles; i++) {
        gcpi_winograd_pixels(&pixels, g->halves, gcpi_winograd_at(&g->v, first + i), g->v.channels, w->room, &s);
        s.to = w->x + (ptrdiff_t)i * g->v.channels;
        gcpi_waves_of(g->isa)->in(&s);
    }
}

/* The sums of all points over the channels. */
static void gcpi_winograd_sums(const gcpi_winograd *w, int tiles)
{
    static const gcp_real zero[GCPI_NR_MAX] = { 0 };
    const ptrdiff_t channels = w->g->v.channels;
    const gcpi_points p = { w->x, w->weights, zero, w->sums, channels, 1, w->xpoint, channels * w->panel.width,
                            w->point, channels, tiles };
    gcpi_points_sum(&p, &w->g->simd, &w->panel);
}

/* A tile's pixels of y from its sums. Floats in place of halves, and pixels that are not there, lie in the room. */
static void gcpi_winograd_y(const gcpi_winograd *w, gcpi_corner at, gcpi_wave *s)
{
    const gcpi_gather *g = w->g;
    gcpi_array y[4];
    int there[4];
    for (int i = 0; i < 4; i++) {
        const int py = at.y + i / 2, px = at.x + i % 2;
        gcp_real *room = w->room + i * w->panel.width;
        there[i] = py < g->v.ho && px < g->v.wo;
        y[i] = gcpi_array_at(g->y, g->yfirst + at.b * g->ys[0] + (there[i] ? py * g->ys[1] + px * g->ys[2] : 0) +
                                       w->panel.first);
        s->y[i] = there[i] && !y[i].half ? (gcp_real *)y[i].at : room;
        if (s->start || s->y[i] != room) continue;
        if (there[i]) gcpi_array_load(g->halves, y[i], 0, room, 0, 1, w->panel.cols);
        else memset(room, 0, (size_t)w->panel.cols * sizeof *room);
    }
    gcpi_waves_of(g->isa)->out(s);
    for (int i = 0; i < 4; i++)
        if (there[i] && y[i].half) gcpi_array_store(g->halves, y[i], 0, s->y[i], 0, 1, w->panel.cols);
}

/* A chunk of y, from the sums. Tells of a row of tiles as two rows of pixels. */
static void gcpi_winograd_store(const gcpi_winograd *w, ptrdiff_t first, int tiles, int worker)
{
    const gcpi_gather *g = w->g;
    const gcpi_view *v = &g->v;
    gcpi_wave s;
    memset(&s, 0, sizeof s);
    s.point = w->point, s.n = w->panel.cols, s.start = g->accumulate ? NULL : w->start;
    for (int i = 0; i < tiles; i++) {
        s.from = w->sums + (ptrdiff_t)i * w->panel.width;
        gcpi_winograd_y(w, gcpi_winograd_at(v, first + i), &s);
    }
    for (int n; g->end && tiles > 0; first += n, tiles -= n) {
        const gcpi_corner at = gcpi_winograd_at(v, first);
        n = gcpi_min(tiles, gcpi_ceil(v->wo, 2) - at.x / 2);
        gcpi_block done = { at.b, at.y, at.x, 1, gcpi_min(2, v->ho - at.y), gcpi_min(2 * n, v->wo - at.x) };
        gcpi_gather_end(g, &done, w->panel.first, w->panel.cols, worker);
    }
}

static void gcpi_winograd_task(void *arg, int index, int worker)
{
    const gcpi_gather *g = (const gcpi_gather *)arg;
    const double all = gcpi_winograd_tiles(&g->v);
    gcp_real *scratch = g->scratch + worker * g->worker;
    const ptrdiff_t share = (g->base + index) % g->v.chunks, set = (g->base + index) / g->v.chunks,
                    end = gcpi_share_first(share + 1, g->v.chunks, all);
    ptrdiff_t last;
    gcpi_winograd w;
    w.g = g, w.panel = gcpi_panel_of(&g->columns, (int)set);
    w.xpoint = gcpi_winograd_point(g->tiles, g->v.channels), w.point = gcpi_winograd_point(g->tiles, w.panel.width);
    w.start = scratch + GCPI_LINE, w.weights = w.start + w.panel.width, w.x = w.weights + g->pack;
    w.sums = w.x + GCPI_POINTS * w.xpoint, w.room = w.sums + g->sums;
    memcpy(&last, scratch, sizeof last);
    memcpy(scratch, &set, sizeof set);
    if (last != set) {
        gcpi_gather_start(g, 0, w.panel.first, w.panel.width, w.start);
        gcpi_winograd_weights(&w);
    }
    for (ptrdiff_t first = gcpi_share_first(share, g->v.chunks, all); first < end; first += g->tiles) {
        const int tiles = (int)GCPI_MIN(g->tiles, end - first);
        gcpi_winograd_load(&w, first, tiles);
        gcpi_winograd_sums(&w, tiles);
        gcpi_winograd_store(&w, first, tiles, worker);
    }
}
