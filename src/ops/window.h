/* Ops on windows of an image: pools and upsampling. */

/* One task per image of the batch, so that scattered sums keep one order. */
typedef struct gcpi_image_job { const gcp_call *call; void (*fn)(const gcp_call *call, int image); } gcpi_image_job;
static void gcpi_image_task(void *arg, int index, int worker)
{
    const gcpi_image_job *job = (const gcpi_image_job *)arg;
    job->fn(job->call, index);
    (void)worker;
}
static void gcpi_images(const gcp_call *c, int images, void (*fn)(const gcp_call *call, int image))
{
    gcpi_image_job job;
    job.call = c; job.fn = fn;
    gcpi_parallel(c->target, images, gcpi_image_task, &job);
}
static size_t gcpi_pixel(gcp_shape s, int n, int y, int x)
{
    return ((size_t)n * (size_t)s.d[1] + (size_t)y) * (size_t)s.d[2] + (size_t)x;
}

static void gcpi_zero_image(const gcp_view *v, int image)
{
    size_t per = (size_t)v->shape.d[1] * (size_t)v->shape.d[2], width = (size_t)v->shape.d[3] * sizeof(gcp_real);
    for (size_t p = 0; p < per; p++) memset(gcpi_row_out(v, (size_t)image * per + p), 0, width);
}

/* Pools. Max-pool keeps in one byte which cell of the window was the largest; a 1x1 window needs none. */
static int gcpi_pool_shape(gcp_shape_call *s)
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    a->n = s->in[0].d[0]; a->h = s->in[0].d[1]; a->w = s->in[0].d[2]; a->ci = a->co = s->in[0].d[3];
    if (!gcpi_window(s, a)) return 0;
    if (a->pt >= a->kh || a->pb >= a->kh || a->pl >= a->kw || a->pr >= a->kw)
        return gcpi_refuse(s, "padding %d of a %dx%d window", GCPI_MAX(a->pt, a->pl), a->kh, a->kw);
    gcpi_image_out(&s->out[0], a->n, a->ho, a->wo, a->co);
    return gcpi_all_real(s);
}
static int gcpi_max_pool_shape(gcp_shape_call *s)
{
    if (!gcpi_pool_shape(s)) return 0;
    if ((long long)gcpi_conv_attr_of(s)->kh * gcpi_conv_attr_of(s)->kw > 256)
        return gcpi_refuse(s, "a window may have at most 256 cells");
    s->out[1] = s->out[0];
    s->out_dtype[1] = GCP_DTYPE_U8;
    return 1;
}

typedef struct gcpi_cells { int y0, y1, x0, x1, top, left; } gcpi_cells;     /* the window's cells inside the image */
static gcpi_cells gcpi_cells_of(const gcpi_conv_attr *a, int oy, int ox)
{
    gcpi_cells c;
    c.top = oy * a->sh - a->pt; c.left = ox * a->sw - a->pl;
    c.y0 = GCPI_MAX(c.top, 0); c.y1 = GCPI_MIN(c.top + a->kh, a->h);
    c.x0 = GCPI_MAX(c.left, 0); c.x1 = GCPI_MIN(c.left + a->kw, a->w);
    return c;
}

/* copies: y is x, since each window is one cell and each cell has a window. tiles: windows lie side by side. */
static int gcpi_pool_copies(const gcpi_conv_attr *a) { return a->kh * a->kw == 1 && a->sh == 1 && a->sw == 1; }
static int gcpi_pool_tiles(const gcpi_conv_attr *a)
{
    return a->kh == a->sh && a->kw == a->sw && a->ho * a->kh == a->h && a->wo * a->kw == a->w && !a->pt && !a->pl;
}
static int gcpi_one_cell(gcpi_cells c) { return c.y1 - c.y0 == 1 && c.x1 - c.x0 == 1; }

enum { GCPI_POOL_RUN = 64 };        /* channels at a time: for each, the largest value so far and its cell */

GCPI_BODY void gcpi_max_pool_run(const gcp_call *c, const gcpi_conv_attr *a, int image, gcpi_cells w, size_t o,
                                 int first, int n)
{
    gcp_real best[GCPI_POOL_RUN], *y = gcpi_row_out(&c->out[0], o) + first;
    int at[GCPI_POOL_RUN];
    unsigned char *which = c->out[1].data ? (unsigned char *)c->out[1].data + o * (size_t)a->co + first : NULL;
    if (gcpi_one_cell(w)) {
        memcpy(y, gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, w.y0, w.x0)) + first, (size_t)n * sizeof *y);
        if (which) memset(which, (w.y0 - w.top) * a->kw + w.x0 - w.left, (size_t)n);
        return;
    }
    for (int iy = w.y0; iy < w.y1; iy++)
        for (int ix = w.x0; ix < w.x1; ix++) {
            const gcp_real *x = gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, iy, ix)) + first;
            int cell = (iy - w.top) * a->kw + ix - w.left, any = iy == w.y0 && ix == w.x0;
            if (any) for (int k = 0; k < n; k++) best[k] = x[k], at[k] = cell;
            else for (int k = 0; k < n; k++) {
                at[k] = x[k] > best[k] ? cell : at[k];
                best[k] = x[k] > best[k] ? x[k] : best[k];
            }
        }
    for (int k = 0; k < n; k++) y[k] = best[k];
    for (int k = 0; which && k < n; k++) which[k] = (unsigned char)at[k];
}
GCPI_BODY void gcpi_max_pool_image_body(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++)
            for (int k = 0; k < a->co; k += GCPI_POOL_RUN)
                gcpi_max_pool_run(c, a, image, gcpi_cells_of(a, oy, ox), gcpi_pixel(c->out[0].shape, image, oy, ox), k,
                                  GCPI_MIN(GCPI_POOL_RUN, a->co - k));
}
GCPI_WIDE(gcpi_max_pool_image, (const gcp_call *c, int image), (c, image), c->target)
static void gcpi_max_pool_forward(const gcp_call *c)
{
    if (gcpi_pool_copies(&gcpi_attr(c->attributes)->conv) && !c->out[1].data)
        gcpi_view_copy(c, &c->out[0], &c->in[0], 0);
    else gcpi_images(c, c->in[0].shape.d[0], gcpi_max_pool_image);
}

GCPI_BODY void gcpi_max_pool_run_back(const gcp_call *c, const gcpi_conv_attr *a, int image, gcpi_cells w, size_t o,
                                      int first, int n, int fresh)
{
    const gcp_real *dy = gcpi_row(&c->dout[0], o) + first;
    const unsigned char *which =
        c->out[1].data ? (const unsigned char *)c->out[1].data + o * (size_t)a->co + first : NULL;
    int at[GCPI_POOL_RUN];
    if (gcpi_one_cell(w)) {
        gcp_real *dx = gcpi_row_out(&c->din[0], gcpi_pixel(c->din[0].shape, image, w.y0, w.x0)) + first;
        GCPI_EACH for (int k = 0; k < n; k++) dx[k] += dy[k];
        return;
    }
    for (int k = 0; k < n; k++) at[k] = which ? which[k] : 0;
    for (int iy = w.y0; iy < w.y1; iy++)
        for (int ix = w.x0; ix < w.x1; ix++) {
            gcp_real *dx = gcpi_row_out(&c->din[0], gcpi_pixel(c->din[0].shape, image, iy, ix)) + first;
            int cell = (iy - w.top) * a->kw + ix - w.left;
            if (fresh) for (int k = 0; k < n; k++) dx[k] = at[k] == cell ? dy[k] : 0;
            else GCPI_EACH for (int k = 0; k < n; k++) dx[k] = at[k] == cell ? dx[k] + dy[k] : dx[k];
        }
}
GCPI_BODY void gcpi_max_pool_image_back_body(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    int fresh = !c->din[0].accumulate && gcpi_pool_tiles(a);       /* each cell is written once */
    if (!c->din[0].accumulate && !fresh) gcpi_zero_image(&c->din[0], image);
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++)
            for (int k = 0; k < a->co; k += GCPI_POOL_RUN)
                gcpi_max_pool_run_back(c, a, image, gcpi_cells_of(a, oy, ox),
                                       gcpi_pixel(c->dout[0].shape, image, oy, ox), k,
                                       GCPI_MIN(GCPI_POOL_RUN, a->co - k), fresh);
}
GCPI_WIDE(gcpi_max_pool_image_back, (const gcp_call *c, int image), (c, image), c->target)
static void gcpi_max_pool_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (gcpi_pool_copies(&gcpi_attr(c->attributes)->conv))
        gcpi_view_copy(c, &c->din[0], &c->dout[0], c->din[0].accumulate);
    else gcpi_images(c, c->din[0].shape.d[0], gcpi_max_pool_image_back);
}

static gcp_real gcpi_cells_share(const gcpi_cells *w)
{
    return (gcp_real)1 / (gcp_real)GCPI_MAX(1, (int64_t)(w->y1 - w->y0) * (w->x1 - w->x0));
}
GCPI_LOOP void gcpi_avg_pool_image(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++) {
            gcpi_cells w = gcpi_cells_of(a, oy, ox);
            gcp_real *y = gcpi_row_out(&c->out[0], gcpi_pixel(c->out[0].shape, image, oy, ox));
            gcp_real share = gcpi_cells_share(&w);
            memset(y, 0, (size_t)a->co * sizeof *y);
            for (int iy = w.y0; iy < w.y1; iy++)
                for (int ix = w.x0; ix < w.x1; ix++) {
                    const gcp_real *x = gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, iy, ix));
                    for (int k = 0; k < a->co; k++) y[k] += x[k];
                }
            for (int k = 0; k < a->co; k++) y[k] *= share;
        }
}
static void gcpi_avg_pool_forward(const gcp_call *c) { gcpi_images(c, c->in[0].shape.d[0], gcpi_avg_pool_image); }

GCPI_LOOP void gcpi_avg_pool_image_back(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    if (!c->din[0].accumulate) gcpi_zero_image(&c->din[0], image);
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++) {
            gcpi_cells w = gcpi_cells_of(a, oy, ox);
            const gcp_real *dy = gcpi_row(&c->dout[0], gcpi_pixel(c->dout[0].shape, image, oy, ox));
            gcp_real share = gcpi_cells_share(&w);
            for (int iy = w.y0; iy < w.y1; iy++)
                for (int ix = w.x0; ix < w.x1; ix++) {
                    gcp_real *dx = gcpi_row_out(&c->din[0], gcpi_pixel(c->din[0].shape, image, iy, ix));
                    for (int k = 0; k < a->co; k++) dx[k] += dy[k] * share;
                }
        }
}
static void gcpi_avg_pool_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_avg_pool_image_back);
}

static int gcpi_global_avg_pool_shape(gcp_shape_call *s)     /* the window is the image */
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    a->kh = a->sh = s->in[0].d[1]; a->kw = a->sw = s->in[0].d[2];
    a->dh = a->dw = a->groups = 1;
    if (!gcpi_pool_shape(s)) return 0;
    s->out[0].rank = 2;
    return 1;
}

/* Upsampling by a whole factor. Bilinear: half-pixel centres, edges clamped. */
static int gcpi_upsample_shape(gcp_shape_call *s)
{
    int f = gcpi_attr(s->attributes)->number.i;
    s->out[0] = s->in[0];
    if (s->in[0].d[1] > INT32_MAX / f || s->in[0].d[2] > INT32_MAX / f)
        return gcpi_refuse(s, "%s times .factor = %d", GCPI_TEXT(s->in[0]), f);
    s->out[0].d[1] *= f; s->out[0].d[2] *= f;
    s->out[0].rank = 4;
    return gcpi_all_real(s);
}
typedef struct gcpi_taps { int i[2]; gcp_real w[2]; } gcpi_taps;
static gcpi_taps gcpi_taps_of(int o, int factor, int size, int mode)
{
    gcpi_taps t;
    double x = mode == GCP_UPSAMPLING_BILINEAR ? GCPI_MAX(0.0, ((double)o + 0.5) / factor - 0.5) : (double)(o / factor);
    t.i[0] = (int)x;
    t.i[1] = GCPI_MIN(t.i[0] + 1, size - 1);
    t.w[1] = (gcp_real)(x - (double)t.i[0]);
    t.w[0] = 1 - t.w[1];
    return t;
}
GCPI_LOOP void gcpi_upsample_walk(const gcp_call *c, int image, const gcp_view *small, const gcp_view *large,
                                  int backward)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    for (int oy = 0; oy < large->shape.d[1]; oy++)
        for (int ox = 0; ox < large->shape.d[2]; ox++) {
            gcpi_taps ty = gcpi_taps_of(oy, a->number.i, small->shape.d[1], a->number.j),
                      tx = gcpi_taps_of(ox, a->number.i, small->shape.d[2], a->number.j);
            gcp_real *l = gcpi_row_out(large, gcpi_pixel(large->shape, image, oy, ox));
            if (!backward) memset(l, 0, (size_t)large->shape.d[3] * sizeof *l);
            for (int t = 0; t < 4; t++) {
                gcp_real w = ty.w[t >> 1] * tx.w[t & 1];
                gcp_real *s = gcpi_row_out(small, gcpi_pixel(small->shape, image, ty.i[t >> 1], tx.i[t & 1]));
                if (w == 0) continue;
                if (backward) for (int k = 0; k < large->shape.d[3]; k++) s[k] += w * l[k];
                else          for (int k = 0; k < large->shape.d[3]; k++) l[k] += w * s[k];
            }
        }
}
static void gcpi_upsample_image(const gcp_call *c, int image)
{
    gcpi_upsample_walk(c, image, &c->in[0], &c->out[0], 0);
}
static void gcpi_upsample_image_back(const gcp_call *c, int image)
{
    if (!c->din[0].accumulate) gcpi_zero_image(&c->din[0], image);
    gcpi_upsample_walk(c, image, &c->din[0], &c->dout[0], 1);
}
static void gcpi_upsample_forward(const gcp_call *c) { gcpi_images(c, c->in[0].shape.d[0], gcpi_upsample_image); }
static void gcpi_upsample_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_upsample_image_back);
}
