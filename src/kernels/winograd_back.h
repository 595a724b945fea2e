/* The outer product by Winograd's tiles: the gradient of 3x3 weights. At each of a tile's 16 points, sums over tiles of
   e times x, both transformed; at the end the sums are transformed to taps. */

/* A task: a panel of channels of x, some rows of e, a split's tiles. */
typedef struct gcpi_back {
    const gcpi_outer *o;
    gcpi_panel panel;
    int row, rows;
    gcp_real *sums, *x, *e, *room;       /* of all points */
    ptrdiff_t point, xpoint, epoint;     /* values from point to point */
} gcpi_back;

/* Transforms a chunk of tiles. */
static void gcpi_back_load(const gcpi_back *b, ptrdiff_t first, int tiles)
{
    const gcpi_outer *o = b->o;
    const gcpi_view *v = &o->v;
    const gcpi_waves *waves = gcpi_waves_of(o->isa);
    const gcpi_tiled x = gcpi_winograd_x(v, gcpi_array_at(o->x, b->panel.first)),
                     e = { gcpi_array_at(o->e, b->row), o->es, v->ho, v->wo, 0, 0, 2 };
    gcpi_wave s;
    memset(&s, 0, sizeof s);
    for (int i = 0; i < tiles; i++) {
        const gcpi_corner p = gcpi_winograd_at(v, first + i);
        gcpi_winograd_pixels(&x, o->halves, p, b->panel.cols, b->room, &s);
        s.to = b->x + (ptrdiff_t)i * b->panel.width, s.point = b->xpoint;
        waves->in(&s);
        gcpi_winograd_pixels(&e, o->halves, p, b->rows, b->room, &s);
        s.to = b->e + (ptrdiff_t)i * o->part, s.point = b->epoint;
        waves->back(&s);
    }
}

/* Adds a chunk of tiles to the sums of all points. */
static void gcpi_back_sum(const gcpi_back *b, int tiles, int fresh)
{
    static const gcp_real zero[GCPI_NR_MAX] = { 0 };
    const gcpi_points p = { b->e, b->x, fresh ? zero : NULL, b->sums, 1, b->o->part, b->epoint, b->xpoint,
                            b->point, tiles, b->rows };
    gcpi_points_sum(&p, &b->o->simd, &b->panel);
}

/* The taps of all rows, from the sums. */
static void gcpi_back_taps(const gcpi_back *b, gcp_real *d, ptrdiff_t ds, int fresh)
{
    static const gcp_real zero[GCPI_NR_MAX] = { 0 };
    gcpi_wave s;
    memset(&s, 0, sizeof s);
    s.n = b->panel.cols, s.point = b->point, s.start = fresh ? zero : NULL;
    s.step[1] = b->o->v.channels, s.step[0] = 3 * s.step[1];
    for (int r = 0; r < b->rows; r++) {
        s.from = b->sums + (ptrdiff_t)r * b->panel.width, s.to = d + (b->row + r) * ds + b->panel.first;
        gcpi_waves_of(b->o->isa)->taps(&s);
    }
}

static void gcpi_winograd_back_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    const ptrdiff_t task = o->base + index;
    const double all = gcpi_winograd_tiles(&o->v);
    const int split = (int)(task % o->splits), unit = (int)(task / o->splits % o->units);
    gcpi_back b;
    b.o = o, b.panel = gcpi_panel_of(&o->columns, unit);
    b.row = (int)(task / o->splits / o->units) * o->part, b.rows = gcpi_min(o->part, o->rows - b.row);
    b.point = gcpi_winograd_point(o->part, b.panel.width), b.xpoint = gcpi_winograd_point(o->tiles, b.panel.width);
    b.epoint = gcpi_winograd_point(o->tiles, o->part);
    b.sums = o->scratch + (o->shared ? 0 : o->splits * o->sum) + worker * o->worker;
    b.x = b.sums + GCPI_POINTS * b.point, b.e = b.x + GCPI_POINTS * b.xpoint, b.room = b.e + GCPI_POINTS * b.epoint;
    if (b.panel.cols < b.panel.width) memset(b.x, 0, (size_t)(GCPI_POINTS * b.xpoint) * sizeof *b.x);
    const ptrdiff_t begin = gcpi_share_first(split, o->splits, all), end = gcpi_share_first(split + 1, o->splits, all);
    for (ptrdiff_t first = begin; first < end; first += o->tiles) {
        const int tiles = (int)GCPI_MIN(o->tiles, end - first);
        gcpi_back_load(&b, first, tiles);
        gcpi_back_sum(&b, tiles, first == begin);
    }
    if (o->shared) gcpi_back_taps(&b, o->d, o->ds, !o->accumulate);
    else gcpi_back_taps(&b, o->scratch + split * o->sum, o->width, 1);
}
