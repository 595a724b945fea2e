/* Convolutions and matrix products as ops. */

/* Convolutions. Attributes hold the sizes; the pitches come with the call. */
static gcpi_conv gcpi_conv_of(const gcpi_conv_attr *a, ptrdiff_t xpitch, ptrdiff_t ypitch)
{
    gcpi_conv c;
    c.n = a->n; c.h = a->h; c.w = a->w; c.ci = a->ci; c.xpitch = xpitch;
    c.ho = a->ho; c.wo = a->wo; c.co = a->co; c.ypitch = ypitch;
    c.kh = a->kh; c.kw = a->kw; c.sh = a->sh; c.sw = a->sw; c.pt = a->pt; c.pl = a->pl;
    c.dh = a->dh; c.dw = a->dw; c.groups = a->groups;
    return c;
}

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
        return gcpi_refuse(s, "%s does not fit a %dx%d kernel with .out = %d, .pad = %d%s", GCPI_TEXT(s->in[0]),
                           a->kh, a->kw, a->co, a->pt, a->same ? "" : " (GCP_PADDING_SAME pads enough)");
    a->ho = (int)(fh / a->sh) + 1;
    a->wo = (int)(fw / a->sw) + 1;
    return 1;
}

/* The limits of the kernels' ints: they hold a padded side, the values under a window, and channels rounded up to whole
   vectors. */
enum { GCPI_CHANNELS_MAX = 1 << 30, GCPI_WINDOW_LIMIT = sizeof(void *) > 4 ? INT32_MAX : INT32_MAX / 256 };
static int gcpi_conv_fits(gcp_shape_call *s, const gcpi_conv_attr *a)
{
    int64_t eh = (int64_t)a->dh * (a->kh - 1) + 1, ew = (int64_t)a->dw * (a->kw - 1) + 1;
    double side = GCPI_MAX((double)a->h + a->pt + a->pb, (double)a->w + a->pl + a->pr),
           window = (double)eh * (double)ew * GCPI_MAX(a->ci, a->co) / a->groups;
    if (side <= INT32_MAX && window <= (double)GCPI_WINDOW_LIMIT && a->ci <= GCPI_CHANNELS_MAX &&
        a->co <= GCPI_CHANNELS_MAX)
        return 1;
    return gcpi_refuse(s,
                       "%s with a %dx%d kernel and .out = %d is too large: at most 2^31 - 1 pixels a side with "
                       "padding, %d values under a window, 2^30 channels",
                       GCPI_TEXT(s->in[0]), a->kh, a->kw, s->out[0].d[3], (int)GCPI_WINDOW_LIMIT);
}

static void gcpi_image_out(gcp_shape *out, int n, int h, int w, int c)
{
    out->rank = 4;
    out->d[0] = n; out->d[1] = h; out->d[2] = w; out->d[3] = c;
}

static int gcpi_conv_weights_fit(gcp_shape_call *s, const gcpi_conv_attr *a)
{
    const int *w = s->in[1].d;
    if (w[0] != a->co || w[1] != a->kh || w[2] != a->kw || w[3] != a->ci / a->groups)
        return gcpi_refuse(s, "weights of %dx%dx%dx%d, not %dx%dx%dx%d", w[0], w[1], w[2], w[3], a->co, a->kh, a->kw,
                           a->ci / a->groups);
    return 1;
}

static int gcpi_bias_fits(gcp_shape_call *s, int channels)
{
    if (s->inputs > 2 && gcpi_count(s->in[2]) != (size_t)channels)
        return gcpi_refuse(s, "a bias of %zu values for %d outputs", gcpi_count(s->in[2]), channels);
    return gcpi_all_real(s);
}

/* A shape rule may complete its attributes: they belong to the op that is being recorded. */
static gcpi_conv_attr *gcpi_conv_attr_of(const gcp_shape_call *s)
{
    return &((gcpi_attributes *)(uintptr_t)s->attributes)->conv;
}

static int gcpi_conv2d_shape(gcp_shape_call *s)
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    a->n = s->in[0].d[0]; a->h = s->in[0].d[1]; a->w = s->in[0].d[2]; a->ci = s->in[0].d[3];
    if (a->ci % a->groups || a->co % a->groups)
        return gcpi_refuse(s, "%d channels in and .out = %d do not divide into .groups = %d", a->ci, a->co, a->groups);
    if (!gcpi_window(s, a) || !gcpi_conv_weights_fit(s, a)) return 0;
    gcpi_image_out(&s->out[0], a->n, a->ho, a->wo, a->co);
    return gcpi_conv_fits(s, a) && gcpi_bias_fits(s, a->co);
}

static double gcpi_conv_flops(const gcpi_conv_attr *a)
{
    return 2.0 * a->n * a->ho * a->wo * a->co * (a->ci / a->groups) * a->kh * a->kw;
}

static size_t gcpi_conv_workspace(const gcpi_conv_attr *a, int pass, const gcp_target *target)
{
    gcpi_par par = gcpi_par_of(target);
    gcpi_conv c = gcpi_conv_of(a, a->ci, a->co);
    return gcpi_conv_scratch(&c, pass, &par);
}

/* forward, data: the kernel passes that compute the op's output and its input's gradient. */
static void gcpi_conv_cost(const gcp_cost_call *c, gcp_cost *cost, int forward, int data)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    cost->flops = gcpi_conv_flops(a) * (c->backward ? (c->wanted & 1) + (c->wanted >> 1 & 1) : 1);
    if (!c->backward) cost->workspace = gcpi_conv_workspace(a, forward, c->target);
    if (c->backward && c->wanted & 1) cost->workspace = gcpi_conv_workspace(a, data, c->target);
    if (c->backward && c->wanted & 2)
        cost->workspace = GCPI_MAX(cost->workspace, gcpi_conv_workspace(a, GCPI_BACKWARD_WEIGHTS, c->target));
    if (c->backward && c->wanted & 4) cost->workspace = GCPI_MAX(cost->workspace, gcpi_sum_workspace(c->out[0], 1));
}
static void gcpi_conv2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_conv_cost(c, cost, GCPI_FORWARD, GCPI_BACKWARD_DATA);
}
static void gcpi_conv_transpose2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_conv_cost(c, cost, GCPI_BACKWARD_DATA, GCPI_FORWARD);
}

static void gcpi_conv2d_run(const gcp_call *c, const gcpi_end *end)       /* end: may be NULL */
{
    gcpi_par par = gcpi_par_of(c->target);
    gcpi_conv d = gcpi_conv_of(&gcpi_attr(c->attributes)->conv, c->in[0].pitch, c->out[0].pitch);
    gcpi_conv_forward(&d, (const gcp_real *)c->in[0].data, (const gcp_real *)c->in[1].data,
                      c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL, (gcp_real *)c->out[0].data, 0, end,
                      c->workspace, &par);
}
static void gcpi_conv2d_forward(const gcp_call *c) { gcpi_conv2d_run(c, NULL); }

/* A convolution and the addition, rectifier or both after it, in one pass. */
static void gcpi_conv2d_apply(const gcp_call *c, gcp_call *apply)
{
    gcpi_end end = { gcpi_apply_end, apply };
    int masked = apply->out[1].data != NULL;                /* chunks of pixels may share a byte of the mask */
    gcpi_conv2d_run(c, masked ? NULL : &end);
    if (masked) gcpi_apply_forward(apply);
}
/* Bytes of a convolution's own workspace; the sums for the statistics of its output come after them. */
static size_t gcpi_conv2d_room(const gcpi_conv_attr *a, const gcp_target *target)
{
    return (gcpi_conv_workspace(a, GCPI_FORWARD, target) + 63) / 64 * 64;
}

static void gcpi_conv2d_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_par_of(c->target);
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcp_real *dy = (const gcp_real *)c->dout[0].data;
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data) {
        gcpi_conv d = gcpi_conv_of(a, c->din[0].pitch, c->dout[0].pitch);
        gcpi_conv_backward_data(&d, dy, (const gcp_real *)c->in[1].data, (gcp_real *)c->din[0].data,
                                c->din[0].accumulate, c->workspace, &par);
    }
    if (c->din[1].data) {
        gcpi_conv d = gcpi_conv_of(a, c->in[0].pitch, c->dout[0].pitch);
        gcpi_conv_backward_weights(&d, (const gcp_real *)c->in[0].data, dy, (gcp_real *)c->din[1].data,
                                   c->din[1].accumulate, c->workspace, &par);
    }
}

/* A transposed convolution is the backward data pass of a convolution from its output to its input: the attributes are
   those of that convolution. */
static int gcpi_conv_transpose2d_shape(gcp_shape_call *s)
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    const gcp_shape *x = &s->in[0];
    int out = a->ci;
    a->n = x->d[0]; a->ho = x->d[1]; a->wo = x->d[2]; a->co = x->d[3];
    long long h = (long long)(a->ho - 1) * a->sh - a->pt - a->pb + (long long)a->dh * (a->kh - 1) + 1;
    long long w = (long long)(a->wo - 1) * a->sw - a->pl - a->pr + (long long)a->dw * (a->kw - 1) + 1;
    if (a->same) { h = (long long)a->ho * a->sh; w = (long long)a->wo * a->sw; }
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
        return gcpi_refuse(s, "%s with a %dx%d kernel and .pad = %d gives %lldx%lld", GCPI_TEXT(*x), a->kh, a->kw,
                           a->pt, h, w);
    a->h = (int)h; a->w = (int)w;
    if (a->co % a->groups || out % a->groups)
        return gcpi_refuse(s, "%d channels in and .out = %d do not divide into .groups = %d", a->co, out, a->groups);
    if (a->same) {
        int ho = a->ho, wo = a->wo;
        if (!gcpi_window(s, a)) return 0;
        a->ho = ho; a->wo = wo;
    }
    if (!gcpi_conv_weights_fit(s, a)) return 0;
    gcpi_image_out(&s->out[0], a->n, a->h, a->w, out);
    return gcpi_conv_fits(s, a) && gcpi_bias_fits(s, out);
}

static void gcpi_conv_transpose2d_forward(const gcp_call *c)
{
    gcpi_par par = gcpi_par_of(c->target);
    gcpi_conv d = gcpi_conv_of(&gcpi_attr(c->attributes)->conv, c->out[0].pitch, c->in[0].pitch);
    gcp_real *y = (gcp_real *)c->out[0].data;
    size_t pixels = gcpi_pixels(c->out[0].shape);
    if (c->inputs > 2)
        for (size_t p = 0; p < pixels; p++)
            memcpy(gcpi_row_out(&c->out[0], p), c->in[2].data, (size_t)c->out[0].shape.d[3] * sizeof(gcp_real));
    gcpi_conv_backward_data(&d, (const gcp_real *)c->in[0].data, (const gcp_real *)c->in[1].data, y, c->inputs > 2,
                            c->workspace, &par);
}

static void gcpi_conv_transpose2d_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_par_of(c->target);
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcp_real *dy = (const gcp_real *)c->dout[0].data;
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data) {
        gcpi_conv d = gcpi_conv_of(a, c->dout[0].pitch, c->din[0].pitch);
        gcpi_conv_forward(&d, dy, (const gcp_real *)c->in[1].data, NULL, (gcp_real *)c->din[0].data,
                          c->din[0].accumulate, NULL, c->workspace, &par);
    }
    if (c->din[1].data) {
        gcpi_conv d = gcpi_conv_of(a, c->dout[0].pitch, c->in[0].pitch);
        gcpi_conv_backward_weights(&d, dy, (const gcp_real *)c->in[0].data, (gcp_real *)c->din[1].data,
                                   c->din[1].accumulate, c->workspace, &par);
    }
}

/* Matrix products. linear: y = x W' + b; matmul: y = a b. */
static int gcpi_product_fits(gcp_shape_call *s)
{
    if (gcpi_pixels(s->in[0]) <= INT32_MAX && s->in[0].d[3] <= GCPI_CHANNELS_MAX && s->out[0].d[3] <= GCPI_CHANNELS_MAX)
        return 1;
    return gcpi_refuse(s, "%s to %d is too large: at most 2^31 - 1 rows and 2^30 columns", GCPI_TEXT(s->in[0]),
                       s->out[0].d[3]);
}

static int gcpi_linear_shape(gcp_shape_call *s)
{
    int out = gcpi_attr(s->attributes)->number.i;
    s->out[0] = s->in[0];
    s->out[0].d[3] = out;
    if (!gcpi_product_fits(s)) return 0;
    if (gcpi_pixels(s->in[1]) != (size_t)out || s->in[1].d[3] != s->in[0].d[3])
        return gcpi_refuse(s, "weights of %s for %s and .out = %d", GCPI_TEXT(s->in[1]), GCPI_TEXT(s->in[0]), out);
    return gcpi_bias_fits(s, out);
}

static int gcpi_matmul_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    s->out[0].d[3] = s->in[1].d[3];
    if ((size_t)s->in[0].d[3] != gcpi_pixels(s->in[1]))
        return gcpi_refuse(
            s,
            "%s times %s; a product is of two matrices, (rows, k) by (k, columns): sizes before the last count as rows",
            GCPI_TEXT(s->in[0]), GCPI_TEXT(s->in[1]));
    return gcpi_product_fits(s) && gcpi_all_real(s);
}

/* m x k times k x n, forward and backward; tb: the second operand is stored as n x k. */
static void gcpi_product_cost(const gcp_cost_call *c, gcp_cost *cost, int tb)
{
    gcpi_par par = gcpi_par_of(c->target);
    int m = (int)gcpi_pixels(c->in[0]), k = c->in[0].d[3], n = c->out[0].d[3];
    double one = 2.0 * m * k * n;
    if (!c->backward) { cost->flops = one; cost->workspace = gcpi_gemm_scratch(0, tb, m, n, k, &par); return; }
    cost->flops = one * ((c->wanted & 1) + (c->wanted >> 1 & 1));
    if (c->wanted & 1) cost->workspace = gcpi_gemm_scratch(0, !tb, m, k, n, &par);
    if (c->wanted & 2) {
        size_t weights = tb ? gcpi_gemm_scratch(1, 0, n, k, m, &par) : gcpi_gemm_scratch(1, 0, k, n, m, &par);
        cost->workspace = GCPI_MAX(cost->workspace, weights);
    }
    if (c->wanted & 4) cost->workspace = GCPI_MAX(cost->workspace, gcpi_sum_workspace(c->out[0], 1));
}
static void gcpi_linear_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_product_cost(c, cost, 1); }
static void gcpi_matmul_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_product_cost(c, cost, 0); }

static void gcpi_product_forward(const gcp_call *c, int tb, const gcp_real *bias)
{
    gcpi_par par = gcpi_par_of(c->target);
    gcpi_gemm(0, tb, (int)gcpi_pixels(c->in[0].shape), c->out[0].shape.d[3], c->in[0].shape.d[3],
              (const gcp_real *)c->in[0].data, c->in[0].pitch, (const gcp_real *)c->in[1].data, c->in[1].pitch, bias,
              (gcp_real *)c->out[0].data, c->out[0].pitch, 0, c->workspace, &par);
}
static void gcpi_linear_forward(const gcp_call *c)
{
    gcpi_product_forward(c, 1, c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL);
}
static void gcpi_matmul_forward(const gcp_call *c) { gcpi_product_forward(c, 0, NULL); }

static void gcpi_product_backward(const gcp_call *c, int tb)
{
    gcpi_par par = gcpi_par_of(c->target);
    const gcp_view *a = &c->in[0], *b = &c->in[1], *dy = &c->dout[0];
    const gcp_real *g = (const gcp_real *)dy->data;
    int m = (int)gcpi_pixels(dy->shape), n = dy->shape.d[3], k = a->shape.d[3];
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data)
        gcpi_gemm(0, !tb, m, k, n, g, dy->pitch, (const gcp_real *)b->data, b->pitch, NULL, (gcp_real *)c->din[0].data,
                  c->din[0].pitch, c->din[0].accumulate, c->workspace, &par);
    if (c->din[1].data && tb)
        gcpi_gemm(1, 0, n, k, m, g, dy->pitch, (const gcp_real *)a->data, a->pitch, NULL, (gcp_real *)c->din[1].data,
                  c->din[1].pitch, c->din[1].accumulate, c->workspace, &par);
    else if (c->din[1].data)
        gcpi_gemm(1, 0, k, n, m, (const gcp_real *)a->data, a->pitch, g, dy->pitch, NULL, (gcp_real *)c->din[1].data,
                  c->din[1].pitch, c->din[1].accumulate, c->workspace, &par);
}
static void gcpi_linear_backward(const gcp_call *c) { gcpi_product_backward(c, 1); }
static void gcpi_matmul_backward(const gcp_call *c) { gcpi_product_backward(c, 0); }
