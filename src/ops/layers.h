/* The public functions that record ops. A layer records a name, its weights under that name, and the op. */

static int gcpi_enter(gcp_tensor x, gcp_at at, const char *what)
{
    if (x.tape && x.tape->full_ops) x.tape->full_ops++;
    if (!x.tape || x.tape->code) return 0;
    return gcpi_usable(x.tape, x, at, what);
}

static int gcpi_op_name(gcp_tape *t, const char *label, const char *named, gcp_at at)
{
    return gcpi_name_new(t, t->segments[t->open].name, label, named, at);
}

static gcp_tensor gcpi_record(gcp_tape *t, int kind, int name, const gcp_tensor *inputs, int count,
                              const gcpi_attributes *a, gcp_at at)
{
    int op = name ? gcpi_op_new(t, &gcpi_rows[kind], kind, name, inputs, count, a, NULL, at) : -1;
    return op < 0 ? gcpi_nil(t) : gcpi_handle(t, t->ops[op].out);
}

/* An op on one or two tensors without weights. */
static gcp_tensor gcpi_simple(int kind, const gcp_tensor *inputs, int count, const gcpi_attributes *a,
                              const char *named, gcp_at at)
{
    const char *label = gcpi_rows[kind].name;
    gcp_tape *t = inputs[0].tape;
    if (!gcpi_enter(inputs[0], at, label)) return gcpi_nil(t);
    return gcpi_record(t, kind, gcpi_op_name(t, label, named, at), inputs, count, a, at);
}

static gcp_tensor gcpi_unary(int kind, gcp_tensor x, double number, gcp_at at, const char *named)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    a.number.a = number;
    return gcpi_simple(kind, &x, 1, &a, named, at);
}

static gcp_tensor gcpi_binary(int kind, gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    gcp_tensor in[2];
    in[0] = a; in[1] = b;
    return gcpi_simple(kind, in, 2, NULL, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_relu_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(GCP_OP_RELU, x, 0, o.at, o.name); }
GCPI_DEF gcp_tensor gcp_tanh_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(GCP_OP_TANH, x, 0, o.at, o.name); }
GCPI_DEF gcp_tensor gcp_sigmoid_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_unary(GCP_OP_SIGMOID, x, 0, o.at, o.name);
}
GCPI_DEF gcp_tensor gcp_gelu_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(GCP_OP_GELU, x, 0, o.at, o.name); }
GCPI_DEF gcp_tensor gcp_mean_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(GCP_OP_MEAN, x, 0, o.at, o.name); }
GCPI_DEF gcp_tensor gcp_global_avg_pool_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_unary(GCP_OP_GLOBAL_AVG_POOL, x, 0, o.at, o.name);
}
GCPI_DEF gcp_tensor gcp_add_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o) { return gcpi_binary(GCP_OP_ADD, a, b, o); }
GCPI_DEF gcp_tensor gcp_mul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o) { return gcpi_binary(GCP_OP_MUL, a, b, o); }
GCPI_DEF gcp_tensor gcp_bias_at(gcp_tensor x, gcp_tensor b, gcp_op_opts o) { return gcpi_binary(GCP_OP_BIAS, x, b, o); }
GCPI_DEF gcp_tensor gcp_mse_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o) { return gcpi_binary(GCP_OP_MSE, a, b, o); }

GCPI_DEF gcp_tensor gcp_cross_entropy_at(gcp_tensor x, gcp_tensor labels, gcp_cross_entropy_opts o)
{
    gcp_tensor in[2];
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    in[0] = x; in[1] = labels;
    a.number.i = o.ignore == GCP_ZERO ? 0 : o.ignore;
    a.number.j = o.ignore != 0;
    return gcpi_simple(GCP_OP_CROSS_ENTROPY, in, 2, &a, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_matmul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    gcp_tensor y = gcpi_binary(GCP_OP_MATMUL, a, b, o);
    const gcpi_tensor *right = gcp_is_nil(y) ? NULL : gcpi_get(b);
    if (!right || right->kind != GCPI_PARAMETER) return y;
    gcpi_parameter *p = &b.tape->parameters[right->parameter];
    if (p->fan_in == 0) p->fan_in = (int)gcpi_pixels(right->shape);        /* not given: k of (k, m) */
    if (p->fan_out == 0) p->fan_out = right->shape.d[3];
    return y;
}

static gcp_tensor gcpi_bad_option(gcp_tensor x, gcp_at at, const char *what, const char *option, double value,
                                  const char *allowed)
{
    if (gcpi_enter(x, at, what)) gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s = %g; %s", option, value, allowed);
    return gcpi_nil(x.tape);
}

GCPI_DEF gcp_tensor gcp_scale_at(gcp_tensor x, gcp_scale_opts o)
{
    if (o.by == 0) return gcpi_bad_option(x, o.at, "scale", ".by", 0, "not given; .by = GCP_ZERO scales by zero");
    if (!gcpi_finite(o.by)) return gcpi_bad_option(x, o.at, "scale", ".by", o.by, "finite");
    return gcpi_unary(GCP_OP_SCALE, x, gcpi_option(o.by, 0), o.at, o.name);
}

GCPI_DEF gcp_tensor gcp_leaky_relu_at(gcp_tensor x, gcp_leaky_relu_opts o)
{
    double slope = gcpi_option(o.slope, 0.01);
    /* backward takes the sign of x from y */
    if (!(slope >= 0) || !gcpi_finite(slope))
        return gcpi_bad_option(x, o.at, "leaky_relu", ".slope", slope, "at least 0");
    return gcpi_unary(GCP_OP_LEAKY_RELU, x, slope, o.at, o.name);
}

GCPI_DEF gcp_tensor gcp_dropout_at(gcp_tensor x, gcp_dropout_opts o)
{
    o.rate = gcpi_option(o.rate, 0);
    if (!(o.rate >= 0 && o.rate < 1))
        return gcpi_bad_option(x, o.at, "dropout", ".rate", o.rate, "at least 0 and less than 1");
    return gcpi_unary(GCP_OP_DROPOUT, x, o.rate, o.at, o.name);
}

GCPI_DEF gcp_tensor gcp_upsample_at(gcp_tensor x, gcp_upsample_opts o)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    a.number.i = o.factor ? o.factor : 2;
    a.number.j = (int)o.mode;
    if (a.number.i < 1) return gcpi_bad_option(x, o.at, "upsample", ".factor", o.factor, "at least 1");
    if (o.mode != GCP_UPSAMPLING_NEAREST && o.mode != GCP_UPSAMPLING_BILINEAR)
        return gcpi_bad_option(x, o.at, "upsample", ".mode", (double)o.mode,
                               "GCP_UPSAMPLING_NEAREST or GCP_UPSAMPLING_BILINEAR");
    return gcpi_simple(GCP_OP_UPSAMPLE, &x, 1, &a, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_slice_at(gcp_tensor x, gcp_slice_opts o)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    a.number.i = gcpi_integer(o.first);
    a.number.j = o.count;
    return gcpi_simple(GCP_OP_SLICE, &x, 1, &a, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_concat_at(const gcp_tensor *inputs, int count, gcp_op_opts o)
{
    gcp_tape *t = inputs && count > 0 ? inputs[0].tape : NULL;
    return t ? gcpi_simple(GCP_OP_CONCAT, inputs, count, NULL, o.name, o.at) : gcpi_nil(NULL);
}

static gcp_tensor gcpi_reshape(gcp_tensor x, gcp_shape raw, const char *named, gcp_at at)
{
    gcpi_attributes a;
    char wrong[160];
    memset(&a, 0, sizeof a);
    if (gcpi_shape_normal(raw, &a.shape)) return gcpi_simple(GCP_OP_RESHAPE, &x, 1, &a, named, at);
    if (gcpi_enter(x, at, "reshape"))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, "reshape", "its output %s", gcpi_shape_wrong(raw, wrong, sizeof wrong));
    return gcpi_nil(x.tape);
}
GCPI_DEF gcp_tensor gcp_reshape_at(gcp_tensor x, gcp_shape shape, gcp_op_opts o)
{
    return gcpi_reshape(x, shape, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_flatten_at(gcp_tensor x, gcp_op_opts o)
{
    const gcpi_tensor *e = gcpi_get(x);
    size_t per = e ? gcpi_count(e->shape) / (size_t)e->shape.d[0] : 1;
    gcp_shape s;
    memset(&s, 0, sizeof s);
    s.rank = 2;
    s.d[0] = e ? e->shape.d[0] : 1;
    s.d[1] = per <= INT32_MAX ? (int)per : 0;
    return gcpi_reshape(x, s, o.name, o.at);
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

static gcpi_attributes gcpi_conv_options(const gcp_conv2d_opts *o)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
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

static gcp_tensor gcpi_pool(int kind, gcp_tensor x, gcp_pool_opts o)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    gcpi_conv_attr *c = &a.conv;
    c->kh = gcpi_pick(o.kh, o.k, 0); c->kw = gcpi_pick(o.kw, o.k, 0);
    c->sh = gcpi_pick(o.stride_h, o.stride, c->kh); c->sw = gcpi_pick(o.stride_w, o.stride, c->kw);
    c->pt = gcpi_pick(o.pad_top, o.pad, 0); c->pb = gcpi_pick(o.pad_bottom, o.pad, 0);
    c->pl = gcpi_pick(o.pad_left, o.pad, 0); c->pr = gcpi_pick(o.pad_right, o.pad, 0);
    c->dh = c->dw = c->groups = 1;
    c->same = o.padding == GCP_PADDING_SAME;
    if (!gcpi_window_ok(x, gcpi_rows[kind].name, c, o.padding, o.at)) return gcpi_nil(x.tape);
    return gcpi_simple(kind, &x, 1, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_max_pool_at(gcp_tensor x, gcp_pool_opts o) { return gcpi_pool(GCP_OP_MAX_POOL, x, o); }
GCPI_DEF gcp_tensor gcp_avg_pool_at(gcp_tensor x, gcp_pool_opts o) { return gcpi_pool(GCP_OP_AVG_POOL, x, o); }

/* Convolutions and linear: weights are given, or made under the layer's name. */
static gcp_param_opts gcpi_weight_options(gcp_init init, gcp_init otherwise, double fan_in, double fan_out, gcp_at at)
{
    gcp_param_opts p;
    p.at = at;
    p.std = 0;
    p.init = init == GCP_INIT_DEFAULT ? otherwise : init;
    p.fan_in = (int)GCPI_MIN(fan_in, 2e9);
    p.fan_out = (int)GCPI_MIN(fan_out, 2e9);
    return p;
}

static gcp_shape gcpi_raw(int rank, int a, int b, int c, int d)
{
    gcp_shape s;
    s.rank = rank;
    s.d[0] = a; s.d[1] = b; s.d[2] = c; s.d[3] = d;
    return s;
}

#define gcpi_weight(t, layer, name, shape, options) \
    gcpi_parameter_of((t), GCPI_PARAMETER, (layer), (name), (shape), (options))

static gcp_tensor gcpi_conv_record(int kind, gcp_tensor x, int name, gcp_tensor weight, gcp_tensor bias,
                                   gcpi_attributes a, gcp_conv2d_opts o)
{
    gcp_tensor in[3];
    in[0] = x; in[1] = weight; in[2] = bias;
    if (kind == GCP_OP_CONV_TRANSPOSE2D) { a.conv.ci = o.out; }
    else a.conv.co = o.out;
    return gcpi_record(x.tape, kind, name, in, gcp_is_nil(bias) ? 2 : 3, &a, o.at);
}

static int gcpi_conv_options_ok(gcp_tensor x, const char *what, const gcpi_attributes *a, const gcp_conv2d_opts *o)
{
    if (!gcpi_window_ok(x, what, &a->conv, o->padding, o->at)) return 0;
    if (!o->out) gcpi_fail(x.tape, GCP_E_ARGUMENT, o->at, what, ".out is missing");
    else if (o->out < 0) gcpi_bad_option(x, o->at, what, ".out", o->out, "at least 1");
    return o->out > 0;
}

static gcp_tensor gcpi_conv_layer(int kind, gcp_tensor x, gcp_conv2d_opts o)
{
    const char *what = gcpi_rows[kind].name;
    gcpi_attributes a = gcpi_conv_options(&o);
    gcp_tape *t = x.tape;
    if (!gcpi_conv_options_ok(x, what, &a, &o)) return gcpi_nil(t);
    int in = gcpi_get(x)->shape.d[3], name = gcpi_op_name(t, what, o.name, o.at);
    int transposed = kind == GCP_OP_CONV_TRANSPOSE2D, cells = (int)GCPI_MIN((int64_t)a.conv.kh * a.conv.kw, 1 << 24);
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
    return t->code ? gcpi_nil(t) : gcpi_conv_record(kind, x, name, weight, bias, a, o);
}
GCPI_DEF gcp_tensor gcp_conv2d_at(gcp_tensor x, gcp_conv2d_opts o) { return gcpi_conv_layer(GCP_OP_CONV2D, x, o); }
GCPI_DEF gcp_tensor gcp_conv_transpose2d_at(gcp_tensor x, gcp_conv2d_opts o)
{
    return gcpi_conv_layer(GCP_OP_CONV_TRANSPOSE2D, x, o);
}

/* The options of a layer that makes its weights are errors where the weights are given. */
static int gcpi_given_ok(gcp_tensor x, gcp_tensor bias, const char *what, gcp_init init, int no_bias, gcp_at at)
{
    if (!gcpi_enter(x, at, what)) return 0;
    const char *vain = init != GCP_INIT_DEFAULT          ? ".init, but the weights are given"
                       : no_bias && !gcp_is_nil(bias) ? ".no_bias, but a bias is given"
                                                      : NULL;
    if (vain) gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s", vain);
    return !vain;
}

static gcp_tensor gcpi_conv_op(int kind, gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_conv2d_opts o)
{
    const char *what = gcpi_rows[kind].name;
    if (gcpi_get(weight)) {
        const int *d = gcpi_get(weight)->shape.d;
        if (!o.k && !o.kh) o.kh = d[1];
        if (!o.k && !o.kw) o.kw = d[2];
        if (!o.out)
            o.out = kind == GCP_OP_CONV2D ? d[0] : (int)GCPI_MIN((long long)d[3] * GCPI_MAX(o.groups, 1), INT32_MAX);
    }
    gcpi_attributes a = gcpi_conv_options(&o);
    if (!gcpi_conv_options_ok(x, what, &a, &o) || !gcpi_given_ok(x, bias, what, o.init, o.no_bias, o.at))
        return gcpi_nil(x.tape);
    return gcpi_conv_record(kind, x, gcpi_op_name(x.tape, what, o.name, o.at), weight, bias, a, o);
}
GCPI_DEF gcp_tensor gcp_conv2d_op_at(gcp_tensor x, gcp_tensor w, gcp_tensor b, gcp_conv2d_opts o)
{
    return gcpi_conv_op(GCP_OP_CONV2D, x, w, b, o);
}
GCPI_DEF gcp_tensor gcp_conv_transpose2d_op_at(gcp_tensor x, gcp_tensor w, gcp_tensor b, gcp_conv2d_opts o)
{
    return gcpi_conv_op(GCP_OP_CONV_TRANSPOSE2D, x, w, b, o);
}

static gcp_tensor gcpi_linear_record(gcp_tensor x, int name, gcp_tensor weight, gcp_tensor bias, int out, gcp_at at)
{
    gcp_tensor in[3];
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    a.number.i = out;
    in[0] = x; in[1] = weight; in[2] = bias;
    return gcpi_record(x.tape, GCP_OP_LINEAR, name, in, gcp_is_nil(bias) ? 2 : 3, &a, at);
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

GCPI_DEF gcp_tensor gcp_embedding_op_at(gcp_tensor ids, gcp_tensor table, gcp_embedding_opts o)
{
    gcp_tensor in[2];
    const gcpi_tensor *e = gcpi_get(table);
    in[0] = ids; in[1] = table;
    if (e && o.entries && (size_t)o.entries != gcpi_pixels(e->shape))
        return gcpi_bad_option(ids, o.at, "embedding", ".entries", o.entries, "not the table's");
    if (e && o.out && o.out != e->shape.d[3])
        return gcpi_bad_option(ids, o.at, "embedding", ".out", o.out, "not the table's");
    return gcpi_simple(GCP_OP_EMBEDDING, in, 2, NULL, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_embedding_at(gcp_tensor ids, gcp_embedding_opts o)
{
    gcp_tape *t = ids.tape;
    gcp_tensor in[2];
    if (o.entries < 1 || o.out < 1)
        return gcpi_bad_option(ids, o.at, "embedding", o.entries < 1 ? ".entries" : ".out",
                               o.entries < 1 ? o.entries : o.out, "at least 1");
    if (!gcpi_enter(ids, o.at, "embedding")) return gcpi_nil(t);
    int name = gcpi_op_name(t, "embedding", o.name, o.at);
    if (!name) return gcpi_nil(t);
    in[0] = ids;
    in[1] = gcpi_weight(t, name, "table", gcpi_raw(2, o.entries, o.out, 0, 0),
                        gcpi_weight_options(GCP_INIT_GLOROT, GCP_INIT_GLOROT, o.entries, o.out, o.at));
    return t->code ? gcpi_nil(t) : gcpi_record(t, GCP_OP_EMBEDDING, name, in, 2, NULL, o.at);
}

static int gcpi_norm_options(gcp_tensor x, const char *what, gcp_norm_opts *o)
{
    o->epsilon = gcpi_option(o->epsilon, 1e-5);
    o->momentum = gcpi_option(o->momentum, 0.1);
    if (!(o->epsilon > 0) || !gcpi_finite(o->epsilon))
        gcpi_bad_option(x, o->at, what, ".epsilon", o->epsilon, "above 0");
    else if (!(o->momentum >= 0 && o->momentum <= 1))
        gcpi_bad_option(x, o->at, what, ".momentum", o->momentum, "in [0, 1]");
    else return gcpi_enter(x, o->at, what);
    return 0;
}

/* Whether gamma or beta has one value per channel. Checked before the first of the two ops is recorded. */
static int gcpi_channels_ok(gcp_tensor x, gcp_tensor values, gcp_at at)
{
    gcp_tape *t = x.tape;
    if (!gcpi_usable(t, values, at, "batch_norm")) return 0;
    const gcpi_tensor *e = gcpi_get(values);
    const int channels = gcpi_get(x)->shape.d[3];
    if (e->dtype != GCP_DTYPE_REAL)
        gcpi_fail(t, GCP_E_DTYPE, at, "batch_norm", "gamma and beta are real numbers, not integers");
    else if (gcpi_count(e->shape) != (size_t)channels)
        gcpi_fail(t, GCP_E_SHAPE, at, "batch_norm", "%zu values of gamma or beta for the %d channels of %s",
                  gcpi_count(e->shape), channels, GCPI_TEXT(gcpi_get(x)->shape));
    return t->code == GCP_OK;
}

/* Two ops under one name: statistics, and their application. gamma and beta are given, or made. Where the second op is
   refused, the first is taken back, too. */
static gcp_tensor gcpi_batch_norm(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given, gcp_norm_opts o)
{
    gcp_tape *t = x.tape;
    gcp_tensor stats[3], apply[5];
    gcpi_extents before;
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    if (t && t->full_ops) t->full_ops++;                             /* two ops: gcpi_enter counts one */
    if (!gcpi_norm_options(x, "batch_norm", &o)) return gcpi_nil(t);
    if (given && (!gcpi_channels_ok(x, gamma, o.at) || !gcpi_channels_ok(x, beta, o.at))) return gcpi_nil(t);
    a.number.a = o.epsilon; a.number.b = o.momentum;
    gcp_shape channels = gcpi_raw(1, gcpi_get(x)->shape.d[3], 0, 0, 0);
    gcp_param_opts ones = gcpi_weight_options(GCP_INIT_ONES, GCP_INIT_ONES, 1, 1, o.at),
                   zeros = gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at);
    before = t->good;
    int name = gcpi_op_name(t, "batch_norm", o.name, o.at);
    int statistics = name ? gcpi_name_new(t, name, "statistics", "statistics", o.at) : 0;
    if (!statistics) return gcpi_nil(t);
    stats[0] = apply[0] = x;
    stats[1] = gcpi_parameter_of(t, GCPI_STATISTIC, name, "running_mean", channels, zeros);
    stats[2] = gcpi_parameter_of(t, GCPI_STATISTIC, name, "running_var", channels, ones);
    apply[3] = given ? gamma : gcpi_weight(t, name, "gamma", channels, ones);
    apply[4] = given ? beta : gcpi_weight(t, name, "beta", channels, zeros);
    if (t->code) return gcpi_nil(t);
    apply[1] = gcpi_record(t, GCP_OP_BATCH_STATS, statistics, stats, 3, &a, o.at);
    if (gcp_is_nil(apply[1]) && t->full_ops) t->full_ops++;          /* the second op is needed, too */
    if (gcp_is_nil(apply[1])) return gcpi_nil(t);
    apply[2] = gcpi_handle(t, apply[1].id + 1);
    gcp_tensor y = gcpi_record(t, GCP_OP_BATCH_NORM, name, apply, 5, &a, o.at);
    if (gcp_is_nil(y)) t->good = before;
    return y;
}
GCPI_DEF gcp_tensor gcp_batch_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_batch_norm(x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_batch_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts o)
{
    return gcpi_batch_norm(x, gamma, beta, 1, o);
}

/* gamma and beta are given, or made. */
static gcp_tensor gcpi_layer_norm(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given, gcp_norm_opts o)
{
    gcp_tape *t = x.tape;
    gcp_tensor in[3];
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    if (o.momentum != 0)
        return gcpi_bad_option(x, o.at, "layer_norm", ".momentum", o.momentum, "it belongs to gcp_batch_norm");
    if (!gcpi_norm_options(x, "layer_norm", &o)) return gcpi_nil(t);
    a.number.a = o.epsilon;
    gcp_shape channels = gcpi_raw(1, gcpi_get(x)->shape.d[3], 0, 0, 0);
    int name = gcpi_op_name(t, "layer_norm", o.name, o.at);
    if (!name) return gcpi_nil(t);
    gcp_param_opts ones = gcpi_weight_options(GCP_INIT_ONES, GCP_INIT_ONES, 1, 1, o.at),
                   zeros = gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at);
    in[0] = x;
    in[1] = given ? gamma : gcpi_weight(t, name, "gamma", channels, ones);
    in[2] = given ? beta : gcpi_weight(t, name, "beta", channels, zeros);
    return t->code ? gcpi_nil(t) : gcpi_record(t, GCP_OP_LAYER_NORM, name, in, 3, &a, o.at);
}
GCPI_DEF gcp_tensor gcp_layer_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_layer_norm(x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_layer_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts o)
{
    return gcpi_layer_norm(x, gamma, beta, 1, o);
}

GCPI_DEF gcp_tensor gcp_custom_at(const gcp_tensor *inputs, int count, const gcp_op *op, gcp_custom_opts o)
{
    gcp_tape *t = inputs && count > 0 ? inputs[0].tape : NULL;
    if (!t || !gcpi_enter(inputs[0], o.at, "custom")) return gcpi_nil(t);
    if (!op || !op->name || !op->shape || !op->forward || (!op->backward && !(op->flags & GCP_FLAG_NO_GRADIENT)) ||
        op->flags & (GCPI_V | GCP_FLAG_SIGN_OR_MASK) || (op->flags & GCP_FLAG_CROSS && count != 2)) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, op && op->name ? op->name : "custom",
                  "an op needs name, shape, forward, and backward or GCP_FLAG_NO_GRADIENT; its flags may not be VIEW, "
                  "GRAD_VIEW or SIGN_OR_MASK");
        return gcpi_nil(t);
    }
    static const char nothing[1] = { 0 };
    int name = gcpi_op_name(t, op->name, o.name, o.at);
    int index =
        name ? gcpi_op_new(t, op, GCP_OP_CUSTOM, name, inputs, count, NULL, o.context ? o.context : nothing, o.at) : -1;
    for (int j = 0; index >= 0 && o.outputs && j < op->outputs; j++)
        o.outputs[j] = gcpi_handle(t, t->ops[index].out + j);
    return index < 0 ? gcpi_nil(t) : gcpi_handle(t, t->ops[index].out);
}
