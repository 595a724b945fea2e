/* A product with weights: linear. y = x W' + b. */
static int gcpi_linear_shape(gcp_shape_call *s)
{
    int out = gcpi_attr(s->attributes)->linear.out;
    s->out[0] = s->in[0];
    s->out[0].d[3] = out;
    if (gcpi_pixels(s->in[0]) > INT32_MAX || s->in[0].d[3] > GCPI_CHANNELS_MAX || out > GCPI_CHANNELS_MAX)
        return gcpi_refuse(s, "%s to %d is too large: at most 2^31 - 1 rows and 2^30 columns",
                           GCPI_SHAPE_TEXT(s->in[0]), out);
    if (gcpi_pixels(s->in[1]) != (size_t)out || s->in[1].d[3] != s->in[0].d[3])
        return gcpi_refuse(s, "weights of %s for %s and .out = %d", GCPI_SHAPE_TEXT(s->in[1]),
                           GCPI_SHAPE_TEXT(s->in[0]), out);
    return gcpi_bias_fits(s, out);
}

/* m x k times the transpose of n x k, forward and backward. */
static void gcpi_linear_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_par par = gcpi_product_par(c->target, c->store, c->in[0], c->out[0]);
    int m = (int)gcpi_pixels(c->in[0]), k = c->in[0].d[3], n = c->out[0].d[3];
    double one = 2.0 * m * k * n;
    if (!c->backward) { cost->flops = one; cost->workspace = gcpi_gemm_scratch(0, 1, m, n, k, &par); return; }
    cost->flops = one * ((c->wanted & 1) + (c->wanted >> 1 & 1));
    if (c->wanted & 1) cost->workspace = gcpi_gemm_scratch(0, 0, m, k, n, &par);
    if (c->wanted & 2) cost->workspace = GCPI_MAX(cost->workspace, gcpi_gemm_scratch(1, 0, n, k, m, &par));
    if (c->wanted & 4) cost->workspace = GCPI_MAX(cost->workspace, gcpi_sum_workspace(c, c->out[0], 1));
}

static void gcpi_linear_forward(const gcp_call *c)
{
    gcpi_par par = gcpi_product_par(c->target, c->store, c->in[0].shape, c->out[0].shape);
    gcpi_gemm(0, 1, (int)gcpi_pixels(c->in[0].shape), c->out[0].shape.d[3], c->in[0].shape.d[3],
              gcpi_elements(&c->in[0], 0, 0), c->in[0].pitch, gcpi_elements(&c->in[1], 0, 0), c->in[1].pitch,
              c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL, gcpi_elements(&c->out[0], 0, 0),
              c->out[0].pitch, 0, c->workspace, &par);
}
static void gcpi_linear_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_product_par(c->target, c->store, c->in[0].shape, c->dout[0].shape);
    const gcp_view *a = &c->in[0], *b = &c->in[1], *dy = &c->dout[0];
    const gcpi_array g = gcpi_elements(dy, 0, 0);
    int m = (int)gcpi_pixels(dy->shape), n = dy->shape.d[3], k = a->shape.d[3];
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data)
        gcpi_gemm(0, 0, m, k, n, g, dy->pitch, gcpi_elements(b, 0, 0), b->pitch, NULL, gcpi_elements(&c->din[0], 0, 0),
                  c->din[0].pitch, c->din[0].accumulate, c->workspace, &par);
    if (c->din[1].data)
        gcpi_gemm(1, 0, n, k, m, g, dy->pitch, gcpi_elements(a, 0, 0), a->pitch, NULL, gcpi_elements(&c->din[1], 0, 0),
                  c->din[1].pitch, c->din[1].accumulate, c->workspace, &par);
}

static void gcpi_linear_call(gcpi_code *c, const gcpi_op *op)
{
    if (!gcpi_code_layer(c, op, 3)) return;
    gcpi_code_int(c, "out", op->attributes.linear.out, 0);
    gcpi_code_int(c, "no_bias", op->inputs < 3, 0);
    gcpi_code_layer_init(c, op, GCP_INIT_HE);
}
static void gcpi_linear_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->call = gcpi_linear_call;
    f->channels = GCPI_CHANNELS_WEIGHED;
    f->shared = GCPI_IN(1) | GCPI_IN(2);
    f->dense = f->early = GCPI_IN(2);
    f->floats = GCPI_IN(1) | GCPI_IN(2);
    f->dense_on_device = GCPI_IN(1);
}
static const gcpi_op_row gcpi_linear_row = {
    GCP_OP_LINEAR,
    { "linear", gcpi_linear_shape, gcpi_linear_forward, gcpi_linear_backward, gcpi_linear_cost, GCPI_IN(0) | GCPI_IN(1),
      0, GCPI_PRODUCT | GCP_FLAG_BF16, 1, NULL },
    gcpi_linear_facts
};
GCPI_COLD

static gcp_tensor gcpi_linear_record(gcp_tensor x, int name, gcp_tensor weight, gcp_tensor bias, int out, gcp_at at)
{
    gcp_tensor in[3];
    gcpi_attributes a = gcpi_no_attributes();
    a.linear.out = out;
    in[0] = x; in[1] = weight; in[2] = bias;
    return gcpi_record(x.tape, &gcpi_linear_row, name, in, gcp_is_nil(bias) ? 2 : 3, &a, at);
}

GCPI_DEF gcp_tensor gcp_linear_at(gcp_tensor x, gcp_linear_opts o)
{
    gcp_tape *t = x.tape;
    if (o.out < 1) return gcpi_bad_option(x, o.at, "linear", ".out", o.out, "at least 1");
    if (!gcpi_enter(x, o.at, "linear")) return gcpi_nil(t);
    int in = gcpi_get(x)->shape.d[3], name = gcpi_op_name(t, "linear", o.name, o.at);
    if (!name) return gcpi_nil(t);
    gcp_tensor weight = gcpi_weight(t, name, "weight", gcpi_raw(2, o.out, in, 0, 0),
                                    gcpi_weight_options(o.init, GCP_INIT_HE, in, o.out, o.at));
    gcp_tensor bias = o.no_bias ? gcpi_nil(t)
                                : gcpi_weight(t, name, "bias", gcpi_raw(1, o.out, 0, 0, 0),
                                              gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at));
    return t->code ? gcpi_nil(t) : gcpi_linear_record(x, name, weight, bias, o.out, o.at);
}

GCPI_DEF gcp_tensor gcp_linear_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_linear_opts o)
{
    const gcpi_tensor *w = gcpi_get(weight);
    if (!gcpi_given_ok(x, bias, "linear", o.init, o.no_bias, o.at)) return gcpi_nil(x.tape);
    if (!o.out) o.out = w ? w->shape.d[0] : 1;
    return gcpi_linear_record(x, gcpi_op_name(x.tape, "linear", o.name, o.at), weight, bias, o.out, o.at);
}
GCPI_WARM
