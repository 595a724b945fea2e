/* Ops of images: convolutions, pools, other sizes. A sequence is an image of one row. */

static const char *gcpi_layout_image(int rank) { return rank == 3 ? "0||2|1" : "0|2|3|1"; }

/* A weight (out, in, height, width) as gcp has it; of a transposed convolution, too, where it is (in, out, ...). */
static gcp_tensor gcpi_onnx_kernel(gcpi_onnx *m, gcpi_onnx_value *w)
{
    return gcpi_onnx_get(m, w, gcpi_layout_image(w->rank));
}
static gcp_tensor gcpi_onnx_channels(gcpi_onnx *m, gcpi_onnx_value *b) /* a value a channel; nil: left out */
{
    return b ? gcpi_onnx_get(m, b, "|||0") : gcpi_nil(NULL);
}
static void gcpi_onnx_window_options(const gcpi_onnx_window *w, gcp_conv2d_opts *o)
{
    o->stride_h = w->stride[0];
    o->stride_w = w->stride[1];
    o->dilation_h = w->dilation[0];
    o->dilation_w = w->dilation[1];
    o->pad_top = w->before[0];
    o->pad_bottom = w->after[0];
    o->pad_left = w->before[1];
    o->pad_right = w->after[1];
}
static int gcpi_onnx_conv(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1), *b = gcpi_onnx_in(m, n, 2);
    const char *layout = gcpi_layout_image(x->rank);
    gcpi_onnx_window w;
    int out[2];
    GCPI_ONNX_OPTS(conv2d, o);
    if (!gcpi_onnx_window_of(m, n, x, k->d + 2, &w, out)) return 0;
    gcpi_onnx_window_options(&w, &o);
    o.groups = (int)gcpi_onnx_integer(n, "group", 1);
    o.no_bias = b == NULL;
    const gcp_tensor image = gcpi_onnx_get(m, x, layout), weight = gcpi_onnx_kernel(m, k),
                     bias = gcpi_onnx_channels(m, b), y = gcp_conv2d_op_at(image, weight, bias, o);
    return gcpi_onnx_put_layout(m, n, 0, y, layout);
}
static int gcpi_onnx_conv_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1), *b = gcpi_onnx_in(m, n, 2);
    const char *layout = gcpi_layout_image(x->rank);
    gcpi_onnx_window w;
    int out[2], extra[2], cut[2];
    GCPI_ONNX_OPTS(conv2d, o);
    if (!gcpi_onnx_transposed(m, n, x, k, &w, out, extra)) return 0;
    for (int i = 0; i < 2; i++) { /* more output at the end is less padding there */
        cut[i] = w.after[i] - extra[i];
        w.after[i] = GCPI_MAX(cut[i], 0);
    }
    gcpi_onnx_window_options(&w, &o);
    o.groups = (int)gcpi_onnx_integer(n, "group", 1);
    o.no_bias = b == NULL || cut[0] < 0 || cut[1] < 0;
    const gcp_tensor image = gcpi_onnx_get(m, x, layout), weight = gcpi_onnx_kernel(m, k),
                     bias = gcpi_onnx_channels(m, b);
    gcp_tensor y = gcp_conv_transpose2d_op_at(image, weight, o.no_bias ? gcpi_nil(NULL) : bias, o);
    for (int i = 0; i < 2; i++) {
        GCPI_ONNX_OPTS(pad, p);
        p.axis = i ? GCP_AXIS_WIDTH : GCP_AXIS_HEIGHT;
        p.after = -cut[i];
        if (cut[i] < 0) y = gcp_pad_at(y, p); /* what no window reaches is the bias alone */
    }
    if (b && o.no_bias) y = gcp_bias_at(y, bias, gcpi_onnx_opts(m));
    return gcpi_onnx_put_layout(m, n, 0, y, layout);
}
static gcp_pool_opts gcpi_onnx_pool_options(const gcpi_onnx *m, const gcpi_onnx_window *w)
{
    GCPI_ONNX_OPTS(pool, o);
    o.kh = w->k[0];
    o.kw = w->k[1];
    o.stride_h = w->stride[0];
    o.stride_w = w->stride[1];
    o.pad_top = w->before[0];
    o.pad_bottom = w->after[0];
    o.pad_left = w->before[1];
    o.pad_right = w->after[1];
    return o;
}
/* Padding that counts becomes a pad; what a ceiling added to the end never counts. */
static int gcpi_onnx_pool_padded(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_window *w, gcp_tensor *x)
{
    int64_t pads[4] = { 0, 0, 0, 0 };
    const gcpi_excerpt same = gcpi_onnx_string(n, "auto_pad", "NOTSET");
    gcpi_onnx_integers(n, "pads", pads, 4);
    for (int i = 0, a = 2 - w->axes; i < w->axes; i++, a++) {
        GCPI_ONNX_OPTS(pad, o);
        o.axis = a ? GCP_AXIS_WIDTH : GCP_AXIS_HEIGHT;
        o.before = w->before[a];
        o.after = gcpi_excerpt_is(same, "NOTSET") ? (int)pads[w->axes + i] : w->after[a];
        if (o.before || o.after) *x = gcp_pad_at(*x, o);
        w->before[a] = 0;
        w->after[a] -= o.after;
    }
    return 1;
}
static int gcpi_onnx_pool(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 0);
    const char *layout = gcpi_layout_image(v->rank);
    const int most = gcpi_excerpt_is(n->op, "MaxPool");
    gcpi_onnx_window w;
    int out[2];
    if (most && gcpi_onnx_out(m, n, 1) && gcpi_onnx_out(m, n, 1)->uses)
        return gcpi_onnx_refuse(m, n, "its indices are read");
    if (!gcpi_onnx_window_of(m, n, v, NULL, &w, out)) return 0;
    if (w.dilation[0] != 1 || w.dilation[1] != 1) return gcpi_onnx_refuse(m, n, "dilations of a pool; 1 is allowed");
    gcp_tensor x = gcpi_onnx_get(m, v, layout);
    if (!most && gcpi_onnx_integer(n, "count_include_pad", 0)) gcpi_onnx_pool_padded(m, n, &w, &x);
    if (w.k[0] * w.k[1] == 1 && w.stride[0] * w.stride[1] == 1) return gcpi_onnx_put_layout(m, n, 0, x, layout);
    const gcp_pool_opts o = gcpi_onnx_pool_options(m, &w);
    return gcpi_onnx_put_layout(m, n, 0, most ? gcp_max_pool_at(x, o) : gcp_avg_pool_at(x, o), layout);
}
static int gcpi_onnx_global_pool(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 0);
    const int most = gcpi_excerpt_is(n->op, "GlobalMaxPool");
    if (v->rank < 3 || v->rank > 4) return gcpi_onnx_refuse(m, n, "an input of %d axes; 3 or 4 are allowed", v->rank);
    const gcp_tensor x = gcpi_onnx_get(m, v, gcpi_layout_image(v->rank));
    GCPI_ONNX_OPTS(reduce, o);
    o.by = GCP_REDUCE_MAX;
    o.height = o.width = 1;
    const gcp_tensor y = most ? gcp_reduce_at(x, o) : gcp_global_avg_pool_at(x, gcpi_onnx_opts(m));
    return gcpi_onnx_put_layout(m, n, 0, y, v->rank == 3 ? "0|||12" : "0|||123");
}

/* ---- other sizes ---- */

/* Whether scales, where the file has them and no sizes, are those of the sizes: else coordinates follow the scales. */
static int gcpi_onnx_exact_scales(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x,
                                  const gcpi_onnx_value *y)
{
    const int old = gcpi_excerpt_is(n->op, "Upsample") || m->opset < 11;
    gcpi_onnx_value *scales = gcpi_onnx_in(m, n, old ? 1 : 2);
    const double *by = (!old && gcpi_onnx_in(m, n, 3)) || !scales ? NULL : gcpi_onnx_elements_of(m, scales);
    int64_t axes[GCPI_AXES];
    const int named = gcpi_onnx_integers(n, "axes", axes, GCPI_AXES);
    for (int i = 0; by && i < (int)gcpi_onnx_elements(scales); i++) {
        const int axis = gcpi_onnx_axis(named < 0 ? i : axes[i], x->rank);
        if (axis >= 0 && fabs(x->d[axis] * by[i] - y->d[axis]) > 1e-4) return 0;
    }
    return 1;
}
/* Whether a side's resize is one that gcp knows; *corners, *mode say which. */
static int gcpi_onnx_resize_mode(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x,
                                 const gcpi_onnx_value *y, gcp_resize_opts *o)
{
    const gcpi_excerpt mode = gcpi_onnx_string(n, "mode", "nearest"),
                       at = gcpi_onnx_string(n, "coordinate_transformation_mode",
                                             m->opset < 11 ? "asymmetric" : "half_pixel"),
                       round = gcpi_onnx_string(n, "nearest_mode", m->opset < 11 ? "floor" : "round_prefer_floor");
    const int linear = gcpi_excerpt_is(mode, "linear") || gcpi_excerpt_is(mode, "bilinear");
    int whole = 1, same = 1;
    for (int i = 2; i < 4; i++) {
        whole &= y->d[i] % x->d[i] == 0;
        same &= y->d[i] == x->d[i];
    }
    const int half = gcpi_excerpt_is(at, "half_pixel") || gcpi_excerpt_is(at, "half_pixel_symmetric") ||
                     (gcpi_excerpt_is(at, "pytorch_half_pixel") && y->d[2] > 1 && y->d[3] > 1);
    if (!linear && !gcpi_excerpt_is(mode, "nearest"))
        return gcpi_onnx_refuse(m, n, "its mode; nearest and linear are allowed");
    if (gcpi_onnx_integer(n, "antialias", 0) && !same && (y->d[2] < x->d[2] || y->d[3] < x->d[3]))
        return gcpi_onnx_refuse(m, n, "antialias");
    if (gcpi_onnx_integer(n, "exclude_outside", 0)) return gcpi_onnx_refuse(m, n, "exclude_outside");
    o->mode = linear ? GCP_UPSAMPLING_BILINEAR : GCP_UPSAMPLING_NEAREST;
    if (same) return 1;
    if (linear && !gcpi_onnx_exact_scales(m, n, x, y))
        return gcpi_onnx_refuse(m, n, "linear by scales that make no whole size");
    if (linear) {
        o->corners = gcpi_excerpt_is(at, "align_corners");
        return half || o->corners ||
               gcpi_onnx_refuse(m, n, "linear with its coordinates; half_pixel and align_corners are allowed");
    }
    /* gcp takes floor(i in / out): that is asymmetric with floor, and of a whole factor also half_pixel's nearest */
    if (gcpi_excerpt_is(at, "asymmetric") && gcpi_excerpt_is(round, "floor")) return 1;
    if (half && whole && !gcpi_excerpt_is(round, "floor") && !gcpi_excerpt_is(round, "ceil")) return 1;
    return gcpi_onnx_refuse(
        m, n, "nearest with its coordinates; asymmetric with floor, and half_pixel of a whole factor are allowed");
}
static int gcpi_onnx_resize(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    GCPI_ONNX_OPTS(resize, o);
    if (x->rank != 4 || x->d[0] != y->d[0] || x->d[1] != y->d[1])
        return gcpi_onnx_refuse(m, n, "other than rows and columns of an image");
    if (!gcpi_onnx_resize_mode(m, n, x, y, &o)) return 0;
    gcp_tensor image = gcpi_onnx_get(m, x, "0|2|3|1");
    o.height = y->d[2];
    o.width = y->d[3];
    if (y->d[2] != x->d[2] || y->d[3] != x->d[3]) image = gcp_resize_at(image, o);
    return gcpi_onnx_put_layout(m, n, 0, image, "0|2|3|1");
}
/* An axis becomes several: (n, c, h, w) -> six axes, which are put in order and joined again. */
static int gcpi_onnx_depth(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value x = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0));
    const int b = (int)gcpi_onnx_integer(n, "blocksize", 1),
              crd = gcpi_excerpt_is(gcpi_onnx_string(n, "mode", "DCR"), "CRD"),
              to_space = gcpi_excerpt_is(n->op, "DepthToSpace");
    const int c = x.d[1] / (b * b), dcr[6] = { x.d[0], b, b, c, x.d[2], x.d[3] },
              crd_sizes[6] = { x.d[0], c, b, b, x.d[2], x.d[3] },
              blocks[6] = { x.d[0], x.d[1], x.d[2] / b, b, x.d[3] / b, b };
    static const int dcr_axes[6] = { 0, 3, 4, 1, 5, 2 }, crd_axes[6] = { 0, 1, 4, 2, 5, 3 },
                     block_axes[6] = { 0, 3, 5, 1, 2, 4 }, block_crd_axes[6] = { 0, 1, 3, 5, 2, 4 };
    const int *sizes = !to_space ? blocks
                     : crd       ? crd_sizes
                                 : dcr,
              *axes = !to_space ? crd ? block_crd_axes : block_axes
                    : crd       ? crd_axes
                                : dcr_axes;
    if (!gcpi_onnx_order_reshape(&x.order, 6, sizes)) {
        x.tensor = gcpi_onnx_get(m, gcpi_onnx_in(m, n, 0), "0|1|2|3");
        gcpi_onnx_order_set(&x.order, 6, sizes);
    }
    gcpi_onnx_order_transpose(&x.order, axes);
    return gcpi_onnx_put_value(m, n, 0, &x);
}
