/* Windows of an image: their arithmetic and options; pools. */

/* Window arithmetic of convolutions and pools: sets ho, wo and, for GCP_PADDING_SAME, the paddings. */
static int gcpi_window(gcp_shape_call *s, gcpi_conv_attr *a)
{
    long long eh = (long long)a->dh * (a->kh - 1) + 1, ew = (long long)a->dw * (a->kw - 1) + 1;
    if (a->same) {
        long long th = (long long)((a->h - 1) / a->sh) * a->sh + eh - a->h,
                  tw = (long long)((a->w - 1) / a->sw) * a->sw + ew - a->w;
        if (th > INT32_MAX || tw > INT32_MAX)
            return gcpi_refuse(s, "a kernel of %dx%d with .dilation = %d", a->kh, a->kw, a->dh);
        a->pt = (int)GCPI_MAX(th, 0) / 2; a->pb = (int)GCPI_MAX(th, 0) - a->pt;
        a->pl = (int)GCPI_MAX(tw, 0) / 2; a->pr = (int)GCPI_MAX(tw, 0) - a->pl;
    }
    long long fh = (long long)a->h + a->pt + a->pb - eh, fw = (long long)a->w + a->pl + a->pr - ew;
    if (fh < 0 || fw < 0 || fh / a->sh >= INT32_MAX || fw / a->sw >= INT32_MAX)
        return gcpi_refuse(s, "%s does not fit a %dx%d kernel with .pad = %d%s", GCPI_SHAPE_TEXT(s->in[0]), a->kh,
                           a->kw, a->pt, a->same ? "" : " (GCP_PADDING_SAME pads enough)");
    a->ho = (int)(fh / a->sh) + 1;
    a->wo = (int)(fw / a->sw) + 1;
    return 1;
}

static void gcpi_image_out(gcp_shape *out, int n, int h, int w, int c)
{
    out->rank = 4;
    out->d[0] = n; out->d[1] = h; out->d[2] = w; out->d[3] = c;
}

/* A shape rule may complete its attributes: they belong to the op that is being recorded. */
static gcpi_conv_attr *gcpi_conv_attr_of(const gcp_shape_call *s)
{
    return &((gcpi_attributes *)(uintptr_t)s->attributes)->conv;
}


/* Windows: .k sets both sides, .stride both strides, .pad all four paddings; a field for one side overrides them. */
static int gcpi_pick(int single, int both, int otherwise)
{
    return gcpi_integer(single ? single : both ? both : otherwise);
}

static int gcpi_window_in_range(const gcpi_conv_attr *a)
{
    const int most = 1 << 24, from1[] = { a->kh, a->kw, a->sh, a->sw, a->dh, a->dw, a->groups },
              from0[] = { a->pt, a->pb, a->pl, a->pr };
    for (int i = 0; i < 7; i++)
        if (from1[i] < 1 || from1[i] > most) return 0;
    for (int i = 0; i < 4; i++)
        if (from0[i] < 0 || from0[i] > (a->same ? 0 : most)) return 0;
    return 1;
}

/* Checks the options of a convolution or pool. */
static int gcpi_window_ok(gcp_tensor x, const char *what, const gcpi_conv_attr *a, gcp_padding padding, gcp_at at)
{
    if (!gcpi_enter(x, at, what)) return 0;
    if (padding != GCP_PADDING_EXPLICIT && padding != GCP_PADDING_SAME)
        gcpi_bad_option(x, at, what, ".padding", (double)padding, "GCP_PADDING_EXPLICIT or GCP_PADDING_SAME");
    else if (!a->kh || !a->kw)
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s is missing", a->kh ? ".kw" : a->kw ? ".kh" : ".k");
    else if (!gcpi_window_in_range(a))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what,
                  ".k = %dx%d, .stride = %dx%d, .dilation = %dx%d, .groups = %d, .pad = %d %d %d %d; each "
                  "is 1 to 2^24, .pad 0 to 2^24 and left out with GCP_PADDING_SAME",
                  a->kh, a->kw, a->sh, a->sw, a->dh, a->dw, a->groups, a->pt, a->pb, a->pl, a->pr);
    return x.tape->code == GCP_OK;
}

/* ---- pools ---- */

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

static void gcpi_pool_run(const gcp_call *c, gcpi_image_fn *fn);

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
    else gcpi_pool_run(c, gcpi_max_pool_image);
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
    else gcpi_pool_run(c, gcpi_max_pool_image_back);
}

static gcp_real gcpi_cells_share(const gcpi_cells *w)
{
    return (gcp_real)1 / (gcp_real)GCPI_MAX(1, (int64_t)(w->y1 - w->y0) * (w->x1 - w->x0));
}
GCPI_LOOP void gcpi_avg_pool_small(const gcp_call *c, int image, const gcpi_cells *w, gcp_real *y, int n)
{
    const gcp_real share = gcpi_cells_share(w);
    memset(y, 0, (size_t)n * sizeof *y);
    for (int iy = w->y0; iy < w->y1; iy++)
        for (int ix = w->x0; ix < w->x1; ix++) {
            const gcp_real *x = gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, iy, ix));
            for (int k = 0; k < n; k++) y[k] += x[k];
        }
    for (int k = 0; k < n; k++) y[k] *= share;
}
/* Of many cells: by parts, as in one sum the rounding errors would grow with it. n channels from `first` on. */
enum { GCPI_POOL_WIDE = 512, GCPI_POOL_PART = 64 };
GCPI_LOOP void gcpi_avg_pool_large(const gcp_call *c, int image, const gcpi_cells *w, gcp_real *y, int first, int n)
{
    double sum[GCPI_POOL_WIDE];
    gcp_real part[GCPI_POOL_WIDE];
    const gcp_real share = gcpi_cells_share(w);
    int pairs = 0;
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(part, 0, (size_t)n * sizeof *part);
    for (int iy = w->y0; iy < w->y1; iy++)
        for (int ix = w->x0; ix < w->x1; ix += 2) {
            const gcp_real *x = gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, iy, ix)) + first,
                           *other = ix + 1 < w->x1 ? x + c->in[0].pitch : NULL;
            if (other) for (int k = 0; k < n; k++) part[k] += x[k] + other[k];
            else for (int k = 0; k < n; k++) part[k] += x[k];
            if (++pairs % (GCPI_POOL_PART / 2)) continue;
            for (int k = 0; k < n; k++) sum[k] += (double)part[k];
            memset(part, 0, (size_t)n * sizeof *part);
        }
    for (int k = 0; k < n; k++) y[first + k] = (gcp_real)(sum[k] + (double)part[k]) * share;
}
static void gcpi_avg_pool_image(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++) {
            const gcpi_cells w = gcpi_cells_of(a, oy, ox);
            gcp_real *y = gcpi_row_out(&c->out[0], gcpi_pixel(c->out[0].shape, image, oy, ox));
            if ((int64_t)(w.y1 - w.y0) * (w.x1 - w.x0) <= GCPI_POOL_PART) gcpi_avg_pool_small(c, image, &w, y, a->co);
            else for (int k = 0; k < a->co; k += GCPI_POOL_WIDE)
                gcpi_avg_pool_large(c, image, &w, y, k, GCPI_MIN(GCPI_POOL_WIDE, a->co - k));
        }
}
static void gcpi_avg_pool_forward(const gcp_call *c) { gcpi_pool_run(c, gcpi_avg_pool_image); }

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
    if (c->din[0].data) gcpi_pool_run(c, gcpi_avg_pool_image_back);
}

/* ---- pools of halves: a task is an image, or some channels of it; in floats row by row of the output ---- */

/* Of backward: x's gradient from row `from` on to `end` is in the room, which begins with row `from`. */
typedef struct gcpi_pool_rows {
    const gcp_call *call;
    gcpi_part_call p;
    int image, first, from, end;
} gcpi_pool_rows;

/* Rows [from, to) of x or its gradient between its place and the room. */
static void gcpi_pool_move(gcpi_pool_rows *r, const gcp_view *whole, const gcp_view *part, int from, int to, int back)
{
    const gcpi_halves *h = gcpi_halves_of(r->call->target->isa);
    const ptrdiff_t n = part->shape.d[3], w = whole->shape.d[2], rows = (ptrdiff_t)(to - from) * w;
    const gcpi_array at = gcpi_elements(whole, gcpi_pixel(whole->shape, r->image, from, 0), r->first);
    gcp_real *here = (gcp_real *)part->data + (ptrdiff_t)(from - r->from) * w * n;
    if (rows <= 0) return;
    if (back) gcpi_array_store(h, at, whole->pitch, here, n, rows, n);
    else gcpi_array_load(h, at, whole->pitch, here, n, rows, n);
}
/* The gradient's rows before `to` are finished; rows up to `end` begin. Those that no window covers get nothing. */
static void gcpi_pool_advance(gcpi_pool_rows *r, int to, int end)
{
    const gcp_view *d = &r->call->din[0];
    const size_t row = (size_t)d->shape.d[2] * (size_t)r->p.din.shape.d[3];
    gcp_real *room = (gcp_real *)r->p.din.data;
    const int done = GCPI_MIN(to, r->end);
    gcpi_pool_move(r, d, &r->p.din, r->from, done, 1);
    memmove(room, room + (size_t)(done - r->from) * row, (size_t)(r->end - done) * row * sizeof *room);
    r->from = done;
    for (; r->end < to; r->from = ++r->end) {
        memset(room, 0, row * sizeof *room);
        if (!d->accumulate) gcpi_pool_move(r, d, &r->p.din, r->end, r->end + 1, 1);
    }
    if (end <= r->end) return;
    if (d->accumulate) gcpi_pool_move(r, d, &r->p.din, r->end, end, 0);
    else memset(room + (size_t)(r->end - r->from) * row, 0, (size_t)(end - r->end) * row * sizeof *room);
    r->end = end;
}
/* One row of the output: the call of an image of as many rows as its windows have. */
static void gcpi_pool_row(gcpi_pool_rows *r, gcpi_image_fn *fn, int oy)
{
    const gcp_call *c = r->call;
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_conv_attr *own = &r->p.attributes.conv;
    const int top = oy * a->sh - a->pt, y0 = GCPI_MAX(top, 0), y1 = GCPI_MIN(top + a->kh, a->h),
              back = c->din[0].data != NULL, at = r->image * a->ho + oy;
    own->h = y1 - y0; own->ho = 1; own->pt = y0 - top;
    if (!back) r->from = y0;
    if (!back) gcpi_pool_move(r, &c->in[0], &r->p.in, y0, y1, 0);
    else gcpi_pool_advance(r, y0, y1);
    r->p.in.shape.d[1] = r->p.din.shape.d[1] = own->h;
    if (back) gcpi_part_move(c, &c->dout[0], at, r->first, &r->p.dout, 0);
    if (back && c->outputs > 1) gcpi_part_move(c, &c->out[1], at, r->first, &r->p.out[1], 0);
    r->p.din.accumulate = !(gcpi_pool_tiles(own) && !c->din[0].accumulate);        /* else each cell is written once */
    fn(&r->p.call, 0);
    if (!back) gcpi_part_move(c, &c->out[0], at, r->first, &r->p.out[0], 1);
    if (!back && c->outputs > 1) gcpi_part_move(c, &c->out[1], at, r->first, &r->p.out[1], 1);
}
/* Shapes as a part has them: rows of a window, a row of the output. */
static void gcpi_pool_shapes(const gcpi_conv_attr *a, gcp_shape *in, gcp_shape *out)
{
    in->d[1] = GCPI_MIN(a->kh, a->h);
    out->d[1] = 1;
}
static void gcpi_pool_task(void *arg, int index, int worker)
{
    const gcpi_image_job *job = (const gcpi_image_job *)arg;
    const gcp_call *c = job->call;
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcp_call row = *c;
    gcp_view in = c->in[0], din = c->din[0], out[2] = { c->out[0] }, dout = c->dout[0];
    gcpi_pool_rows r;
    gcp_shape x = in.shape, y = dout.shape;
    gcpi_pool_shapes(a, &x, &y);
    in.shape = din.shape = x;
    out[0].shape = dout.shape = y;
    if (c->outputs > 1) { out[1] = c->out[1]; out[1].shape.d[1] = 1; }
    row.in = &in; row.din = &din; row.out = out; row.dout = &dout;
    r.call = c; r.image = index / job->parts; r.first = index % job->parts * job->channels; r.from = r.end = 0;
    gcpi_part_open(&r.p, &row, r.first, job->channels, worker);
    for (int oy = 0; oy < a->ho; oy++) gcpi_pool_row(&r, job->fn, oy);
    if (c->din[0].data) gcpi_pool_advance(&r, a->h, a->h);
}
static void gcpi_pool_run(const gcp_call *c, gcpi_image_fn *fn)
{
    gcp_shape in = c->in[0].shape, out = c->out[0].shape;
    gcpi_pool_shapes(&gcpi_attr(c->attributes)->conv, &in, &out);
    gcpi_image_parts(c, in, out, fn, gcpi_pool_task);
}
static void gcpi_pool_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcp_shape in = c->in[0], out = c->out[0];
    gcpi_pool_shapes(&gcpi_attr(c->attributes)->conv, &in, &out);
    gcpi_parts_room(c, in, out, cost);
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

static void gcpi_pool_call(gcpi_code *c, const gcpi_op *op)
{
    const gcpi_conv_attr *a = &op->attributes.conv;
    const int whole = a->sh == a->kh && a->sw == a->kw;
    gcpi_code_call(c, op, op->row->name, 0, 1);
    gcpi_code_both(c, "k", "kh", "kw", a->kh, a->kw, 0);
    if (!whole) gcpi_code_both(c, "stride", "stride_h", "stride_w", a->sh, a->sw, 0);
    gcpi_code_pads(c, a);
}
static void gcpi_max_pool_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_pool_call;
    f->window = &op->attributes.conv;
    f->in_place = gcpi_pool_copies(f->window);          /* larger windows read neighbours, too */
    f->indexed = f->window->kh * f->window->kw > 1;
}
static void gcpi_avg_pool_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->window = &op->attributes.conv;
    f->call = gcpi_pool_call;
}
static const gcpi_op_row gcpi_max_pool_row = {
    GCP_OP_MAX_POOL,
    { "max_pool", gcpi_max_pool_shape, gcpi_max_pool_forward, gcpi_max_pool_backward, gcpi_pool_cost, 0,
      GCPI_OUT(1), GCPI_OVER | GCP_FLAG_BF16, 2, NULL },
    gcpi_max_pool_facts
};
static const gcpi_op_row gcpi_avg_pool_row = {
    GCP_OP_AVG_POOL,
    { "avg_pool", gcpi_pool_shape, gcpi_avg_pool_forward, gcpi_avg_pool_backward, gcpi_pool_cost, 0, 0,
      GCPI_EACH_ONE | GCP_FLAG_BF16, 1, NULL },
    gcpi_avg_pool_facts
};
static const gcpi_op_row gcpi_global_avg_pool_row = {
    GCP_OP_GLOBAL_AVG_POOL,
    { "global_avg_pool", gcpi_global_avg_pool_shape, gcpi_avg_pool_forward, gcpi_avg_pool_backward, gcpi_pool_cost,
      0, 0, GCPI_EACH_ONE | GCP_FLAG_BF16, 1, NULL },
    NULL
};

GCPI_COLD

static gcp_tensor gcpi_pool(const gcpi_op_row *row, gcp_tensor x, gcp_pool_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    gcpi_conv_attr *c = &a.conv;
    c->kh = gcpi_pick(o.kh, o.k, 0); c->kw = gcpi_pick(o.kw, o.k, 0);
    c->sh = gcpi_pick(o.stride_h, o.stride, c->kh); c->sw = gcpi_pick(o.stride_w, o.stride, c->kw);
    c->pt = gcpi_pick(o.pad_top, o.pad, 0); c->pb = gcpi_pick(o.pad_bottom, o.pad, 0);
    c->pl = gcpi_pick(o.pad_left, o.pad, 0); c->pr = gcpi_pick(o.pad_right, o.pad, 0);
    c->dh = c->dw = c->groups = 1;
    c->same = o.padding == GCP_PADDING_SAME;
    if (!gcpi_window_ok(x, row->op.name, c, o.padding, o.at)) return gcpi_nil(x.tape);
    return gcpi_simple(row, &x, 1, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_max_pool_at(gcp_tensor x, gcp_pool_opts o) { return gcpi_pool(&gcpi_max_pool_row, x, o); }
GCPI_DEF gcp_tensor gcp_avg_pool_at(gcp_tensor x, gcp_pool_opts o) { return gcpi_pool(&gcpi_avg_pool_row, x, o); }
GCPI_DEF gcp_tensor gcp_global_avg_pool_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_unary(&gcpi_global_avg_pool_row, x, o);
}
GCPI_WARM
