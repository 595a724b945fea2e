/* Winograd's tiles of a convolution: where they lie, and their transforms. A tile is 2x2 pixels of y, of the 4x4
   pixels of x that 3x3 taps read. Along one axis, with d of x and g of the weights, F(2, 3) of Lavin and Gray 2016
   ("Fast Algorithms for Convolutional Neural Networks", section 4.1) is y = A'[(G g) * (B' d)]: 4 products where a sum
   over taps takes 6. It adds, and multiplies by a half. A value that is infinite or a NaN makes all of its tiles
   NaN. */

enum { GCPI_POINTS = 16 };  /* products of a tile, 4 along each axis */

typedef struct gcpi_wave {  /* n values of each point */
    const gcp_real *from, *start; /* start: of the outputs; NULL: what lies there */
    gcp_real *to, *y[4];    /* y: the output's pixels, row by row */
    ptrdiff_t step[2], point, n; /* from row to row, pixel to pixel (of weights: tap to tap); from point to point */
} gcpi_wave;

/* Tiles of 2x2 pixels. */
static double gcpi_winograd_tiles(const gcpi_view *v)
{
    return (double)v->n * gcpi_ceil(v->ho, 2) * gcpi_ceil(v->wo, 2);
}
/* Whether it takes a convolution to y of `columns` channels. */
static int gcpi_winograd_takes(const gcpi_view *v, int groups, int columns, const gcpi_par *par)
{
    const double x = (double)v->n * v->h * v->w * v->channels, y = (double)v->n * v->ho * v->wo * columns;
    const int taps = v->ky == 3 && v->kx == 3 && v->sy == 1 && v->sx == 1 && v->dy == 1 && v->dx == 1;
    return taps && !par->direct && !v->duos && groups == 1 && v->xc == 1 && v->channels > 0 &&
           x + y > GCPI_WINOGRAD_LEAST;
}
/* The first tile of a share. */
static ptrdiff_t gcpi_share_first(ptrdiff_t share, ptrdiff_t shares, double tiles)
{
    return (ptrdiff_t)((double)share * tiles / (double)shares);
}
/* Values from point to point: a line more, so that the points of a tile do not compete for the same sets. */
static ptrdiff_t gcpi_winograd_point(int tiles, ptrdiff_t channels) { return gcpi_line(tiles * channels) + GCPI_LINE; }

/* A tile's place: its image, and its first pixel of y. */
typedef struct gcpi_corner { int b, y, x; } gcpi_corner;
static gcpi_corner gcpi_winograd_at(const gcpi_view *v, ptrdiff_t tile)
{
    const int across = gcpi_ceil(v->wo, 2), down = gcpi_ceil(v->ho, 2);
    gcpi_corner p;
    p.x = (int)(tile % across) * 2, p.y = (int)(tile / across % down) * 2, p.b = (int)(tile / across / down);
    return p;
}

/* Images whose tiles of side x side pixels a transform reads. */
typedef struct gcpi_tiled { gcpi_array at; const ptrdiff_t *steps; int h, w, oy, ox, side; } gcpi_tiled;
/* n channels of a tile's pixels: where they lie, or copied, with zeros where there are none. */
static void gcpi_winograd_pixels(const gcpi_tiled *x, const gcpi_halves *halves, gcpi_corner p, ptrdiff_t n,
                                 gcp_real *room, gcpi_wave *s)
{
    const int side = x->side, y0 = x->oy + p.y, x0 = x->ox + p.x;
    const gcpi_range rows = gcpi_inside(y0, 1, side, x->h), pixels = gcpi_inside(x0, 1, side, x->w);
    const int high = rows.end - rows.begin, wide = pixels.end - pixels.begin;
    const gcpi_array from = gcpi_array_at(
        x->at, high && wide
                   ? p.b * x->steps[0] + (y0 + rows.begin) * x->steps[1] + (x0 + pixels.begin) * x->steps[2]
                   : 0);
    s->from = (const gcp_real *)from.at, s->step[0] = x->steps[1], s->step[1] = x->steps[2], s->n = n;
    if (!from.half && high == side && wide == side) return;
    s->from = room, s->step[1] = n, s->step[0] = side * n;
    if (high < side || wide < side) memset(room, 0, (size_t)(side * side * n) * sizeof *room);
    for (int r = 0; r < high && wide; r++)
        gcpi_array_load(halves, gcpi_array_at(from, r * x->steps[1]), x->steps[2],
                        room + (side * (rows.begin + r) + pixels.begin) * n, n, wide, n);
}
static gcpi_tiled gcpi_winograd_x(const gcpi_view *v, gcpi_array x)
{
    const gcpi_tiled t = { x, v->xs, v->h, v->w, v->oy, v->ox, 4 };
    return t;
}

/* ---- transforms ---- */

typedef void gcpi_waver(const gcpi_wave *w);

#define GCPI_WAVE_X(r, a, b, c, d) r[0] = (a) - (c), r[1] = (b) + (c), r[2] = (c) - (b), r[3] = (b) - (d);
#define GCPI_WAVE_W(r, a, b, c)                               \
    r[0] = (a), r[3] = (c), r[1] = ((a) + (c)) * (gcp_real)0.5, \
    r[2] = r[1] - (b) * (gcp_real)0.5, r[1] = r[1] + (b) * (gcp_real)0.5;
#define GCPI_WAVE_Y(r, a, b, c, d) r[0] = (a) + (b) + (c), r[1] = (b) - (c) - (d);
/* The transposed: dg = G' sum over tiles of (A dy) * (B' d). */
#define GCPI_WAVE_DY(r, a, b) r[0] = (a), r[1] = (a) + (b), r[2] = (a) - (b), r[3] = -(b);
#define GCPI_WAVE_DW(r, a, b, c, d)                                                            \
    r[0] = ((b) + (c)) * (gcp_real)0.5, r[1] = ((b) - (c)) * (gcp_real)0.5, r[2] = r[0] + (d), \
    r[0] = r[0] + (a);

/* A transform along both axes, of IN x IN values to OUT x OUT: down the columns, whose values lie `down` apart, then
   along the rows. TO stores r[x], the value at (y, x). */
#define GCPI_WAVE_2(AXIS, VALUE, VEC) AXIS(r, VALUE(VEC, 0), VALUE(VEC, 1))
#define GCPI_WAVE_3(AXIS, VALUE, VEC) AXIS(r, VALUE(VEC, 0), VALUE(VEC, 1), VALUE(VEC, 2))
#define GCPI_WAVE_4(AXIS, VALUE, VEC) AXIS(r, VALUE(VEC, 0), VALUE(VEC, 1), VALUE(VEC, 2), VALUE(VEC, 3))
#define GCPI_WAVE_FROM(VEC, i) (*(const VEC *)(from + (i) * down))
#define GCPI_WAVE_ROW(VEC, i) t[y][i]
#define GCPI_WAVE_BOTH(VEC, IN, OUT, AXIS, ACROSS, DOWN, TO)          \
    {                                                                 \
        const ptrdiff_t down = DOWN;                                  \
        VEC t[OUT][IN], r[4];                                         \
        GCPI_UNROLL for (int x = 0; x < IN; x++) {                    \
            const gcp_real *from = s.from + c + x * ACROSS;           \
            GCPI_WAVE_##IN(AXIS, GCPI_WAVE_FROM, VEC)                 \
            GCPI_UNROLL for (int y = 0; y < OUT; y++) t[y][x] = r[y]; \
        }                                                             \
        GCPI_UNROLL for (int y = 0; y < OUT; y++) {                   \
            GCPI_WAVE_##IN(AXIS, GCPI_WAVE_ROW, VEC)                  \
            GCPI_UNROLL for (int x = 0; x < OUT; x++) TO(VEC)         \
        }                                                             \
    }
#define GCPI_TO_POINT(VEC) *(VEC *)(s.to + c + (4 * y + x) * s.point) = r[x];
#define GCPI_TO_SUM(VEC, TO)                                            \
    {                                                                   \
        gcp_real *to = TO + c;                                          \
        *(VEC *)to = r[x] + *(const VEC *)(s.start ? s.start + c : to); \
    }
#define GCPI_TO_PIXEL(VEC) GCPI_TO_SUM(VEC, s.y[2 * y + x])
#define GCPI_TO_TAP(VEC) GCPI_TO_SUM(VEC, s.to + y * s.step[0] + x * s.step[1])

/* B' d B of 4x4 pixels; G g G' of 3x3 taps; A' m A, 2x2 pixels; A e A' of 2x2 pixels; G' s G, 3x3 taps. */
#define GCPI_WAVE_IN(VEC) GCPI_WAVE_BOTH(VEC, 4, 4, GCPI_WAVE_X, s.step[1], s.step[0], GCPI_TO_POINT)
#define GCPI_WAVE_WEIGHTS(VEC) GCPI_WAVE_BOTH(VEC, 3, 4, GCPI_WAVE_W, s.step[1], s.step[0], GCPI_TO_POINT)
#define GCPI_WAVE_OUT(VEC) GCPI_WAVE_BOTH(VEC, 4, 2, GCPI_WAVE_Y, s.point, 4 * s.point, GCPI_TO_PIXEL)
#define GCPI_WAVE_BACK(VEC) GCPI_WAVE_BOTH(VEC, 2, 4, GCPI_WAVE_DY, s.step[1], s.step[0], GCPI_TO_POINT)
#define GCPI_WAVE_TAPS(VEC) GCPI_WAVE_BOTH(VEC, 4, 3, GCPI_WAVE_DW, s.point, 4 * s.point, GCPI_TO_TAP)
#define GCPI_WAVE(NAME, TARGET, VEC, EACH)                                                                           \
    TARGET static void NAME(const gcpi_wave *wave)                                                                   \
    {                                                                                                                \
        const gcpi_wave s = *wave; /* a copy: no store can change it */                                              \
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real)),                                         \
                        few = (ptrdiff_t)(sizeof(GCPI_SHORT) / sizeof(gcp_real));                                    \
        ptrdiff_t c = 0;                                                                                             \
        for (; c + lanes <= s.n; c += lanes) EACH(VEC)                                                               \
        for (; c + few <= s.n; c += few) EACH(GCPI_SHORT)                                                            \
        for (; c < s.n; c++) EACH(gcp_real)                                                                          \
    }
typedef struct gcpi_waves { gcpi_waver *in, *weights, *out, *back, *taps; } gcpi_waves;
#define GCPI_WAVES(ISA, TARGET, VEC)                             \
    GCPI_WAVE(ISA##_wave_in, TARGET, VEC, GCPI_WAVE_IN)          \
    GCPI_WAVE(ISA##_wave_weights, TARGET, VEC, GCPI_WAVE_WEIGHTS) \
    GCPI_WAVE(ISA##_wave_out, TARGET, VEC, GCPI_WAVE_OUT)        \
    GCPI_WAVE(ISA##_wave_back, TARGET, VEC, GCPI_WAVE_BACK)      \
    GCPI_WAVE(ISA##_wave_taps, TARGET, VEC, GCPI_WAVE_TAPS)      \
    static const gcpi_waves ISA##_waves = { ISA##_wave_in, ISA##_wave_weights, ISA##_wave_out, ISA##_wave_back, \
                                            ISA##_wave_taps };
GCPI_WAVES(gcpi_scalar, GCPI_PLAIN, gcp_real)
#if GCPI_VECTORS
GCPI_WAVES(gcpi_v128, GCPI_PLAIN, gcpi_v16)
#endif
#if GCPI_X86
GCPI_WAVES(gcpi_avx2, GCPI_HOT GCPI_AVX2, gcpi_v32)
GCPI_WAVES(gcpi_avx512, GCPI_HOT GCPI_AVX512, gcpi_v64)
#endif

static const gcpi_waves *gcpi_waves_of(int isa)
{
#if GCPI_X86
    if (isa >= GCP_ISA_AVX512) return &gcpi_avx512_waves;
    if (isa == GCP_ISA_AVX2) return &gcpi_avx2_waves;
#endif
#if GCPI_VECTORS
    if (isa != GCP_ISA_SCALAR) return &gcpi_v128_waves;
#endif
    (void)isa;
    return &gcpi_scalar_waves;
}

/* ---- sums ---- */

/* At each point, rows of sums, a panel wide: of so many terms of a times b, from `start` on or from what is there. */
typedef struct gcpi_points {
    const gcp_real *a, *b, *start;
    gcp_real *sums;
    ptrdiff_t arow, aterm, apoint, bpoint, point, terms; /* steps, by row, term, point; of sums by point */
    int rows;
} gcpi_points;

GCPI_FAST static void gcpi_points_sum(const gcpi_points *p, const gcpi_simd *simd, const gcpi_panel *panel)
{
    const int mr = simd->mr[panel->nv - 1];
    const gcp_real *a[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_tile t;
    memset(&t, 0, sizeof t);
    t.n[0] = t.n[1] = 1, t.n[2] = p->terms, t.as[2] = p->aterm, t.bs[2] = panel->width;
    t.a = a, t.c = c, t.start = p->start;
    for (int k = 0; k < GCPI_POINTS; k++)
        for (int r = 0; r < p->rows; r += mr) {
            t.rows = gcpi_min(mr, p->rows - r);
            for (int i = 0; i < mr; i++) {
                const ptrdiff_t row = r + (i < t.rows ? i : 0);
                a[i] = p->a + k * p->apoint + row * p->arow, c[i] = p->sums + k * p->point + row * panel->width;
            }
            t.b = p->b + k * p->bpoint;
            simd->kernel[panel->nv - 1](&t);
        }
}
