/* Convolutions and transposed convolutions. */

/* Attributes hold the sizes; the pitches come with the call. */
static gcpi_conv gcpi_conv_of(const gcpi_conv_attr *a, ptrdiff_t xpitch, ptrdiff_t ypitch)
{
    gcpi_conv c;
    c.n = a->n; c.h = a->h; c.w = a->w; c.ci = a->ci; c.xpitch = xpitch;
    c.ho = a->ho; c.wo = a->wo; c.co = a->co; c.ypitch = ypitch;
    c.kh = a->kh; c.kw = a->kw; c.sh = a->sh; c.sw = a->sw; c.pt = a->pt; c.pl = a->pl;
    c.dh = a->dh; c.dw = a->dw; c.groups = a->groups;
    return c;
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
                       GCPI_SHAPE_TEXT(s->in[0]), a->kh, a->kw, s->out[0].d[3], (int)GCPI_WINDOW_LIMIT);
}

static int gcpi_conv_weights_fit(gcp_shape_call *s, const gcpi_conv_attr *a)
{
    const int *w = s->in[1].d;
    if (w[0] != a->co || w[1] != a->kh || w[2] != a->kw || w[3] != a->ci / a->groups)
        return gcpi_refuse(s, "weights of %dx%dx%dx%d, not %dx%dx%dx%d", w[0], w[1], w[2], w[3], a->co, a->kh, a->kw,
                           a->ci / a->groups);
    return 1;
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

static gcpi_par gcpi_conv_par(const gcpi_conv_attr *a, const gcp_target *target, gcp_store store)
{
    gcp_shape x, y;
    gcpi_image_out(&x, a->n, a->h, a->w, a->ci);
    gcpi_image_out(&y, a->n, a->ho, a->wo, a->co);
    return gcpi_product_par(target, store, x, y);
}
static size_t gcpi_conv_workspace(const gcpi_conv_attr *a, int pass, const gcp_target *target, gcp_store store)
{
    gcpi_par par = gcpi_conv_par(a, target, store);
    gcpi_conv c = gcpi_conv_of(a, a->ci, a->co);
    return gcpi_conv_scratch(&c, pass, &par);
}
/* Adds one pass. */
static void gcpi_conv_pass_cost(const gcp_cost_call *c, int pass, gcp_cost *cost)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_par par = gcpi_conv_par(a, c->target, c->store);
    gcpi_conv conv = gcpi_conv_of(a, a->ci, a->co);
    cost->flops += gcpi_conv_flops(&conv);
    cost->performed += gcpi_conv_performed(&conv, pass, &par);
    cost->workspace = GCPI_MAX(cost->workspace, gcpi_conv_scratch(&conv, pass, &par));
}

/* forward, data: the kernel passes that compute the op's output and its input's gradient. */
static void gcpi_conv_cost(const gcp_cost_call *c, gcp_cost *cost, int forward, int data)
{
    if (!c->backward) gcpi_conv_pass_cost(c, forward, cost);
    if (c->backward && c->wanted & 1) gcpi_conv_pass_cost(c, data, cost);
    if (c->backward && c->wanted & 2) gcpi_conv_pass_cost(c, GCPI_BACKWARD_WEIGHTS, cost);
    if (c->backward && c->wanted & 4) cost->workspace = GCPI_MAX(cost->workspace, gcpi_sum_workspace(c, c->out[0], 1));
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
    gcpi_par par = gcpi_conv_par(&gcpi_attr(c->attributes)->conv, c->target, c->store);
    gcpi_conv d = gcpi_conv_of(&gcpi_attr(c->attributes)->conv, c->in[0].pitch, c->out[0].pitch);
    gcpi_conv_forward(&d, gcpi_elements(&c->in[0], 0, 0), (const gcp_real *)c->in[1].data,
                      c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL, gcpi_elements(&c->out[0], 0, 0), 0, end,
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
static size_t gcpi_conv2d_room(const gcpi_conv_attr *a, const gcp_target *target, gcp_store store)
{
    return (gcpi_conv_workspace(a, GCPI_FORWARD, target, store) + 63) / 64 * 64;
}

/* Workspace of a convolution that also makes the statistics of its output, in training. */
static size_t gcpi_conv2d_stats_workspace(const gcpi_conv_attr *a, const gcp_cost_call *c)
{
    return gcpi_conv2d_room(a, c->target, c->store) + gcpi_sum_workspace(c, c->out[0], 2);
}

static void gcpi_conv2d_stats(const gcp_call *c, const gcp_call *stats)
{
    gcpi_sum_watch sums;
    gcpi_end end = { gcpi_sum_written, &sums };
    gcpi_sum_job job =
        gcpi_sum_job_of(stats, c->out[0].shape, 2, gcpi_sums_of_x, gcpi_sum_x,
                        (unsigned char *)c->workspace +
                            gcpi_conv2d_room(&gcpi_attr(c->attributes)->conv, c->target, c->store));
    gcpi_sum_watch_of(&sums, &job, c->out[0].shape.d[3]);
    gcpi_conv2d_run(c, &end);
    /* outputs of stats may lie in the workspace of c, but not in that of stats: the sums move there first */
    gcpi_batch_stats_set(
        stats, (const double *)memmove(stats->workspace, gcpi_sum_total(&job), job.width * sizeof *job.partial));
}
static void gcpi_conv2d_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_conv_par(&gcpi_attr(c->attributes)->conv, c->target, c->store);
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcpi_array dy = gcpi_elements(&c->dout[0], 0, 0), x = gcpi_elements(&c->in[0], 0, 0),
                    dx = gcpi_elements(&c->din[0], 0, 0);
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data) {
        gcpi_conv d = gcpi_conv_of(a, c->din[0].pitch, c->dout[0].pitch);
        gcpi_conv_backward_data(&d, dy, (const gcp_real *)c->in[1].data, NULL, dx, c->din[0].accumulate, c->workspace,
                                &par);
    }
    if (c->din[1].data) {
        gcpi_conv d = gcpi_conv_of(a, c->in[0].pitch, c->dout[0].pitch);
        gcpi_conv_backward_weights(&d, x, dy, (gcp_real *)c->din[1].data,
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
        return gcpi_refuse(s, "%s with a %dx%d kernel and .pad = %d gives %lldx%lld", GCPI_SHAPE_TEXT(*x), a->kh, a->kw,
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
    gcpi_par par = gcpi_conv_par(&gcpi_attr(c->attributes)->conv, c->target, c->store);
    gcpi_conv d = gcpi_conv_of(&gcpi_attr(c->attributes)->conv, c->out[0].pitch, c->in[0].pitch);
    gcpi_conv_backward_data(&d, gcpi_elements(&c->in[0], 0, 0), (const gcp_real *)c->in[1].data,
                            c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL, gcpi_elements(&c->out[0], 0, 0), 0,
                            c->workspace, &par);
}

static void gcpi_conv_transpose2d_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_conv_par(&gcpi_attr(c->attributes)->conv, c->target, c->store);
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcpi_array dy = gcpi_elements(&c->dout[0], 0, 0), x = gcpi_elements(&c->in[0], 0, 0),
                    dx = gcpi_elements(&c->din[0], 0, 0);
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data) {
        gcpi_conv d = gcpi_conv_of(a, c->dout[0].pitch, c->din[0].pitch);
        gcpi_conv_forward(&d, dy, (const gcp_real *)c->in[1].data, NULL, dx, c->din[0].accumulate, NULL, c->workspace,
                          &par);
    }
    if (c->din[1].data) {
        gcpi_conv d = gcpi_conv_of(a, c->dout[0].pitch, c->in[0].pitch);
        gcpi_conv_backward_weights(&d, dy, x, (gcp_real *)c->din[1].data,
                                   c->din[1].accumulate, c->workspace, &par);
    }
}

static void gcpi_conv_call(gcpi_code *c, const gcpi_op *op)
{
    const gcpi_conv_attr *a = &op->attributes.conv;
    const int makes = gcpi_code_layer(c, op, 3);
    if (makes) {
        gcpi_code_int(c, "out", op->kind == GCP_OP_CONV2D ? a->co : a->ci, 0);
        gcpi_code_both(c, "k", "kh", "kw", a->kh, a->kw, 0);
    }
    gcpi_code_both(c, "stride", "stride_h", "stride_w", a->sh, a->sw, 1);
    gcpi_code_pads(c, a);
    gcpi_code_both(c, "dilation", "dilation_h", "dilation_w", a->dh, a->dw, 1);
    gcpi_code_int(c, "groups", a->groups, 1);
    if (!makes) return;
    gcpi_code_int(c, "no_bias", op->inputs < 3, 0);
    gcpi_code_layer_init(c, op, GCP_INIT_HE);
}
static void gcpi_conv_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_conv_call;
    f->window = &op->attributes.conv;
    f->channels = GCPI_CHANNELS_WEIGHED;
    f->dense = f->shared = f->floats = GCPI_IN(1) | GCPI_IN(2);
    f->early = GCPI_IN(2);
}
static void gcpi_conv2d_facts(const gcpi_op *op, gcpi_facts *f)
{
    gcpi_conv_facts(op, f);
    f->with_group = gcpi_conv2d_apply;
    f->with_stats = gcpi_conv2d_stats;
    f->stats_workspace = gcpi_conv2d_stats_workspace;
}
static const gcpi_op_row gcpi_conv2d_row = {
    GCP_OP_CONV2D,
    { "conv2d", gcpi_conv2d_shape, gcpi_conv2d_forward, gcpi_conv2d_backward, gcpi_conv2d_cost, GCPI_IN(0) | GCPI_IN(1),
      0, GCPI_PRODUCT | GCP_FLAG_BF16, 1, NULL },
    gcpi_conv2d_facts
};
static const gcpi_op_row gcpi_conv_transpose2d_row = {
    GCP_OP_CONV_TRANSPOSE2D,
    { "conv_transpose2d", gcpi_conv_transpose2d_shape, gcpi_conv_transpose2d_forward, gcpi_conv_transpose2d_backward,
      gcpi_conv_transpose2d_cost, GCPI_IN(0) | GCPI_IN(1), 0, GCPI_PRODUCT | GCP_FLAG_BF16, 1, NULL },
    gcpi_conv_facts
};

GCPI_COLD

/* ---- recording ---- */

static gcpi_attributes gcpi_conv_options(const gcp_conv2d_opts *o)
{
    gcpi_attributes a = gcpi_no_attributes();
    gcpi_conv_attr *c = &a.conv;
    c->kh = gcpi_pick(o->kh, o->k, 0); c->kw = gcpi_pick(o->kw, o->k, 0);
    c->sh = gcpi_pick(o->stride_h, o->stride, 1); c->sw = gcpi_pick(o->stride_w, o->stride, 1);
    c->pt = gcpi_pick(o->pad_top, o->pad, 0); c->pb = gcpi_pick(o->pad_bottom, o->pad, 0);
    c->pl = gcpi_pick(o->pad_left, o->pad, 0); c->pr = gcpi_pick(o->pad_right, o->pad, 0);
    c->dh = gcpi_pick(o->dilation_h, o->dilation, 1); c->dw = gcpi_pick(o->dilation_w, o->dilation, 1);
    c->groups = gcpi_pick(o->groups, 0, 1);
    c->same = o->padding == GCP_PADDING_SAME;
    return a;
}

static gcp_tensor gcpi_conv_record(const gcpi_op_row *row, gcp_tensor x, int name, gcp_tensor weight, gcp_tensor bias,
                                   gcpi_attributes a, gcp_conv2d_opts o)
{
    gcp_tensor in[3];
    in[0] = x; in[1] = weight; in[2] = bias;
    if (row->kind == GCP_OP_CONV_TRANSPOSE2D) { a.conv.ci = o.out; }
    else a.conv.co = o.out;
    return gcpi_record(x.tape, row, name, in, gcp_is_nil(bias) ? 2 : 3, &a, o.at);
}

static int gcpi_conv_options_ok(gcp_tensor x, const char *what, const gcpi_attributes *a, const gcp_conv2d_opts *o)
{
    if (!gcpi_window_ok(x, what, &a->conv, o->padding, o->at)) return 0;
    if (!o->out) gcpi_fail(x.tape, GCP_E_ARGUMENT, o->at, what, ".out is missing");
    else if (o->out < 0) gcpi_bad_option(x, o->at, what, ".out", o->out, "at least 1");
    return o->out > 0;
}

static gcp_tensor gcpi_conv_layer(const gcpi_op_row *row, gcp_tensor x, gcp_conv2d_opts o)
{
    const char *what = row->op.name;
    gcpi_attributes a = gcpi_conv_options(&o);
    gcp_tape *t = x.tape;
    if (!gcpi_conv_options_ok(x, what, &a, &o)) return gcpi_nil(t);
    int in = gcpi_get(x)->shape.d[3], name = gcpi_op_name(t, what, o.name, o.at);
    int transposed = row->kind == GCP_OP_CONV_TRANSPOSE2D;
    int cells = (int)GCPI_MIN((int64_t)a.conv.kh * a.conv.kw, 1 << 24);
    if (!name) return gcpi_nil(t);
    if (in % a.conv.groups || o.out % a.conv.groups) {
        gcpi_fail(t, GCP_E_SHAPE, o.at, what, "%d channels in and .out = %d do not divide into .groups = %d", in, o.out,
                  a.conv.groups);
        return gcpi_nil(t);
    }
    gcp_shape shape = transposed ? gcpi_raw(4, in, a.conv.kh, a.conv.kw, o.out / a.conv.groups)
                                 : gcpi_raw(4, o.out, a.conv.kh, a.conv.kw, in / a.conv.groups);
    double fan = (double)cells / a.conv.groups;
    gcp_tensor weight =
        gcpi_weight(t, name, "weight", shape, gcpi_weight_options(o.init, GCP_INIT_HE, fan * in, fan * o.out, o.at));
    gcp_tensor bias = o.no_bias ? gcpi_nil(t)
                                : gcpi_weight(t, name, "bias", gcpi_raw(1, o.out, 0, 0, 0),
                                              gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at));
    return t->code ? gcpi_nil(t) : gcpi_conv_record(row, x, name, weight, bias, a, o);
}
GCPI_DEF gcp_tensor gcp_conv2d_at(gcp_tensor x, gcp_conv2d_opts o) { return gcpi_conv_layer(&gcpi_conv2d_row, x, o); }
GCPI_DEF gcp_tensor gcp_conv_transpose2d_at(gcp_tensor x, gcp_conv2d_opts o)
{
    return gcpi_conv_layer(&gcpi_conv_transpose2d_row, x, o);
}

static gcp_tensor gcpi_conv_op(const gcpi_op_row *row, gcp_tensor x, gcp_tensor weight, gcp_tensor bias,
                               gcp_conv2d_opts o)
{
    const char *what = row->op.name;
    if (gcpi_get(weight)) {
        const int *d = gcpi_get(weight)->shape.d;
        if (!o.k && !o.kh) o.kh = d[1];
        if (!o.k && !o.kw) o.kw = d[2];
        if (!o.out && row->kind == GCP_OP_CONV2D) o.out = d[0];
        if (!o.out) o.out = (int)GCPI_MIN((long long)d[3] * GCPI_MAX(o.groups, 1), INT32_MAX);
    }
    gcpi_attributes a = gcpi_conv_options(&o);
    if (!gcpi_conv_options_ok(x, what, &a, &o) || !gcpi_given_ok(x, bias, what, o.init, o.no_bias, o.at))
        return gcpi_nil(x.tape);
    return gcpi_conv_record(row, x, gcpi_op_name(x.tape, what, o.name, o.at), weight, bias, a, o);
}
GCPI_DEF gcp_tensor gcp_conv2d_op_at(gcp_tensor x, gcp_tensor w, gcp_tensor b, gcp_conv2d_opts o)
{
    return gcpi_conv_op(&gcpi_conv2d_row, x, w, b, o);
}
GCPI_DEF gcp_tensor gcp_conv_transpose2d_op_at(gcp_tensor x, gcp_tensor w, gcp_tensor b, gcp_conv2d_opts o)
{
    return gcpi_conv_op(&gcpi_conv_transpose2d_row, x, w, b, o);
}
GCPI_WARM
