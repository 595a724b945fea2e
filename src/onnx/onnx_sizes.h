/* Sizes: of what is made of numbers, and of windows, products, sums, images. Rules as in the room above. */

/* ---- made from numbers ---- */

static int gcpi_shape_constant(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    int64_t list[64];
    if (!y) return 1;
    if (y->data >= 0) {
        const gcpi_onnx_data *d = &m->data[y->data];
        return gcpi_onnx_shape(m, n, 0, d->type, d->rank, d->d);
    }
    const int many = gcpi_onnx_integers(n, "value_ints", list, 64);
    if (many >= 0 && many <= 64) return gcpi_shape_integers(m, n, list, many, 1);
    list[0] = gcpi_onnx_integer(n, "value_int", 0);
    if (gcpi_onnx_given(n, "value_int")) return gcpi_shape_integers(m, n, list, 1, 0);
    int count = 0;
    gcpi_numbers floats = gcpi_numbers_of(gcpi_onnx_attribute(n, "value_floats"), GCPI_ATTRIBUTE_FLOATS, 4);
    for (uint64_t bits; floats.rest.size && gcpi_numbers_next(&floats, &bits);) count++;
    if (!gcpi_onnx_given(n, "value_float") && !count)
        return gcpi_onnx_refuse(m, n, "a constant of another kind than numbers");
    if (!gcpi_onnx_shape(m, n, 0, GCPI_ONNX_FLOAT, count > 0, &count)) return 0;
    double *known = gcpi_onnx_known_new(m, y);
    if (known) known[0] = gcpi_onnx_float(n, "value_float", 0);
    floats = gcpi_numbers_of(gcpi_onnx_attribute(n, "value_floats"), GCPI_ATTRIBUTE_FLOATS, 4);
    for (uint64_t bits; known && count && gcpi_numbers_next(&floats, &bits);) *known++ = gcpi_float_bits(bits);
    y->known = known - (known ? count : 0);
    return 1;
}
static int gcpi_shape_constant_of_shape(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    gcpi_onnx_data value;
    int64_t list[GCPI_AXES];
    int d[GCPI_AXES];
    double x = 0;
    const int rank = gcpi_onnx_list(m, n, "shape", 0, list, GCPI_AXES);
    if (rank < 0 || rank > GCPI_AXES || !y) return gcpi_onnx_refuse(m, n, "its shape is not known before a step");
    for (int i = 0; i < rank; i++) d[i] = list[i] < 0 || list[i] > INT32_MAX ? -1 : (int)list[i];
    gcpi_onnx_data_parse(gcpi_wire_find(gcpi_onnx_attribute(n, "value"), GCPI_ATTRIBUTE_T), &value);
    gcpi_onnx_reader r = gcpi_onnx_reader_of(&value);
    gcpi_onnx_read(&r, &x);
    if (!gcpi_onnx_shape(m, n, 0, value.type ? value.type : GCPI_ONNX_FLOAT, rank, d)) return 0;
    y->uniform = gcpi_onnx_elements(y) > GCPI_ONNX_FOLDED;
    double *known = y->uniform ? GCPI_NEW(m->arena, double, 1) : gcpi_onnx_known_new(m, y);
    for (ptrdiff_t i = 0; known && i < (y->uniform ? 1 : gcpi_onnx_elements(y)); i++) known[i] = x;
    y->known = known;
    return known || m->tape->code || gcpi_onnx_refuse(m, n, "no room for its elements");
}
static int gcpi_shape_range(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    double first, last, step;
    if (!y || !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 0), &first) ||
        !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &last) || !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 2), &step) ||
        step == 0)
        return gcpi_onnx_refuse(m, n, "its bounds are not known before a step");
    const double many = ceil((last - first) / step);
    const int count = many > 0 && many <= GCPI_ONNX_FOLDED ? (int)many : 0;
    if (many > GCPI_ONNX_FOLDED)
        return gcpi_onnx_refuse(m, n, "%g elements; at most %d are folded", many, GCPI_ONNX_FOLDED);
    if (!gcpi_onnx_shape(m, n, 0, gcpi_onnx_in(m, n, 0)->type, 1, &count)) return 0;
    double *known = gcpi_onnx_known_new(m, y);
    for (int i = 0; known && i < count; i++) known[i] = gcpi_fold_rounded(y->type, first + i * step);
    y->known = known;
    return 1;
}
static int gcpi_shape_where(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *c = gcpi_onnx_in(m, n, 0), *a = gcpi_onnx_in(m, n, 1), *b = gcpi_onnx_in(m, n, 2),
                    *y = gcpi_onnx_out(m, n, 0);
    int rank, d[GCPI_AXES];
    if (!y || !gcpi_onnx_broadcast(a, b, &rank, d) || !gcpi_onnx_shape(m, n, 0, a->type, rank, d) ||
        !gcpi_onnx_broadcast(y, c, &rank, d) || !gcpi_onnx_shape(m, n, 0, a->type, rank, d))
        return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    if (!gcpi_onnx_known(m, a) || !gcpi_onnx_known(m, b) || !gcpi_onnx_known(m, c)) return 1;
    const ptrdiff_t scratch = m->arena->scratch;
    const double *is = gcpi_fold_spread(m, c, rank, d), *x = gcpi_fold_spread(m, a, rank, d),
                 *z = gcpi_fold_spread(m, b, rank, d);
    double *known = is && x && z ? gcpi_onnx_known_new(m, y) : NULL;
    for (ptrdiff_t i = 0; known && i < gcpi_onnx_elements(y); i++) known[i] = is[i] != 0 ? x[i] : z[i];
    m->arena->scratch = scratch;
    y->known = known;
    return 1;
}

/* ---- windows ---- */

enum { GCPI_ONNX_SIDE = 1 << 24 }; /* the most of an image's side, a padding, what a window reaches */
/* Windows along up to two axes, height and width: a sequence has a height of 1. */
typedef struct gcpi_onnx_window {
    int axes, k[2], stride[2], dilation[2], before[2], after[2];
} gcpi_onnx_window;

static int gcpi_onnx_along(const gcpi_onnx_node *n, const char *name, int axes, int otherwise, int *to)
{
    int64_t list[4] = { 0 };
    const int count = gcpi_onnx_integers(n, name, list, 4);
    to[0] = to[1] = otherwise;
    if (count < 0) return 1;
    for (int i = 0; i < axes; i++) to[2 - axes + i] = list[i] < 0 || list[i] > GCPI_ONNX_SIDE ? -1 : (int)list[i];
    return count == axes && to[0] >= 0 && to[1] >= 0;
}
/* Whether a window of an image fits in ints: its side, and what the window reaches. */
static int gcpi_onnx_side_fits(int size, int kernel, int dilation)
{
    return size <= GCPI_ONNX_SIDE && (int64_t)dilation * kernel <= GCPI_ONNX_SIDE;
}
/* in: a value of a batch, channels, and one or two axes. Its output's sizes go to out. 0, with a message: refused. */
static int gcpi_onnx_window_of(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x, const int *kernel,
                               gcpi_onnx_window *w, int *out)
{
    const gcpi_excerpt same = gcpi_onnx_string(n, "auto_pad", "NOTSET");
    const int axes = x->rank - 2, ceiling = (int)gcpi_onnx_integer(n, "ceil_mode", 0);
    int64_t pads[4] = { 0, 0, 0, 0 };
    w->axes = axes;
    if (axes < 1 || axes > 2) return gcpi_onnx_refuse(m, n, "a window along %d axes; one or two are allowed", axes);
    const int count = gcpi_onnx_integers(n, "pads", pads, 4);
    if (!gcpi_onnx_along(n, "kernel_shape", axes, 1, w->k) || !gcpi_onnx_along(n, "strides", axes, 1, w->stride) ||
        !gcpi_onnx_along(n, "dilations", axes, 1, w->dilation) || (count >= 0 && count != 2 * axes))
        return gcpi_onnx_refuse(m, n, "its window has not %d axes", axes);
    for (int i = 0, a = 2 - axes; a < 2; i++, a++) {
        if (kernel && gcpi_onnx_given(n, "kernel_shape") && w->k[a] != kernel[i])
            return gcpi_onnx_refuse(m, n, "a kernel_shape that its weight has not");
        if (kernel) w->k[a] = kernel[i];
        if (!gcpi_onnx_side_fits(x->d[2 + i], w->k[a], w->dilation[a]) || pads[i] < 0 || pads[axes + i] < 0 ||
            pads[i] > GCPI_ONNX_SIDE || pads[axes + i] > GCPI_ONNX_SIDE || w->stride[a] < 1 || w->dilation[a] < 1 ||
            w->k[a] < 1)
            return gcpi_onnx_refuse(m, n, "a kernel, stride, dilation, padding or side out of range");
        const int size = x->d[2 + i], reach = w->dilation[a] * (w->k[a] - 1) + 1;
        w->before[a] = (int)pads[i];
        w->after[a] = (int)pads[axes + i];
        if (gcpi_excerpt_is(same, "SAME_UPPER") || gcpi_excerpt_is(same, "SAME_LOWER")) {
            const int pad = GCPI_MAX(((size + w->stride[a] - 1) / w->stride[a] - 1) * w->stride[a] + reach - size, 0);
            w->before[a] = gcpi_excerpt_is(same, "SAME_LOWER") ? pad - pad / 2 : pad / 2;
            w->after[a] = pad - w->before[a];
        } else if (gcpi_excerpt_is(same, "VALID")) w->before[a] = w->after[a] = 0;
        const int room = size + w->before[a] + w->after[a] - reach;
        if (room < 0) return gcpi_onnx_refuse(m, n, "a window of %d on %d", reach, size);
        out[i] = room / w->stride[a] + 1;
        if (ceiling && room % w->stride[a] && out[i] * w->stride[a] < size + w->before[a]) {
            w->after[a] += w->stride[a] - room % w->stride[a]; /* the last window goes over the edge */
            out[i]++;
        }
    }
    w->before[0] *= axes == 2;
    w->after[0] *= axes == 2;
    if (axes == 1) w->k[0] = w->stride[0] = w->dilation[0] = 1;
    return 1;
}
static int gcpi_shape_conv(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1);
    gcpi_onnx_window w;
    int d[GCPI_AXES] = { 0 };
    if (!k || k->rank != x->rank || x->rank < 3)
        return gcpi_onnx_refuse(m, n, "its weight has not as many axes as its input");
    if (!gcpi_onnx_window_of(m, n, x, k->d + 2, &w, d + 2)) return 0;
    if (gcpi_onnx_integer(n, "group", 1) < 1 || gcpi_onnx_integer(n, "group", 1) > x->d[1])
        return gcpi_onnx_refuse(m, n, "a number of groups out of range");
    d[0] = x->d[0];
    d[1] = k->d[0];
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
/* Of a transposed convolution: w's paddings are those of the output that are cut off. */
static int gcpi_onnx_transposed(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x,
                                const gcpi_onnx_value *k, gcpi_onnx_window *w, int *out, int *extra)
{
    const gcpi_excerpt same = gcpi_onnx_string(n, "auto_pad", "NOTSET");
    const int axes = x->rank - 2;
    int64_t pads[4] = { 0, 0, 0, 0 }, shape[4] = { 0, 0, 0, 0 };
    const int count = gcpi_onnx_integers(n, "pads", pads, 4), sized = gcpi_onnx_integers(n, "output_shape", shape, 4);
    w->axes = axes;
    if (axes < 1 || axes > 2) return gcpi_onnx_refuse(m, n, "a window along %d axes; one or two are allowed", axes);
    if (!gcpi_onnx_along(n, "strides", axes, 1, w->stride) || !gcpi_onnx_along(n, "dilations", axes, 1, w->dilation) ||
        !gcpi_onnx_along(n, "output_padding", axes, 0, extra) || (count >= 0 && count != 2 * axes))
        return gcpi_onnx_refuse(m, n, "its window has not %d axes", axes);
    w->k[0] = 1;
    w->before[0] = w->after[0] = 0;
    for (int i = 0, a = 2 - axes; a < 2; i++, a++) {
        w->k[a] = k->d[2 + i];
        if (!gcpi_onnx_side_fits(x->d[2 + i], w->k[a], w->dilation[a]) || pads[i] < 0 || pads[axes + i] < 0 ||
            pads[i] > GCPI_ONNX_SIDE || pads[axes + i] > GCPI_ONNX_SIDE || shape[i] > GCPI_ONNX_SIDE ||
            (int64_t)x->d[2 + i] * w->stride[a] > GCPI_ONNX_SIDE || (sized >= 0 && sized != axes))
            return gcpi_onnx_refuse(m, n, "a kernel, stride, dilation, padding, side or output_shape out of range");
        w->before[a] = (int)pads[i];
        w->after[a] = (int)pads[axes + i];
        const int all = (x->d[2 + i] - 1) * w->stride[a] + extra[a] + w->dilation[a] * (w->k[a] - 1) + 1;
        const int to = sized >= 0 ? (int)shape[i]
                     : gcpi_excerpt_is(same, "SAME_UPPER") || gcpi_excerpt_is(same, "SAME_LOWER")
                         ? x->d[2 + i] * w->stride[a]
                         : 0;
        if (to > 0) {
            const int cut = all - to;
            w->before[a] = gcpi_excerpt_is(same, "SAME_UPPER") ? cut / 2 : cut - cut / 2;
            w->after[a] = cut - w->before[a];
        }
        out[i] = all - w->before[a] - w->after[a];
        if (w->before[a] < 0 || w->after[a] < 0 || out[i] < 1)
            return gcpi_onnx_refuse(m, n, "a padding or an output_shape out of range");
    }
    return 1;
}
static int gcpi_shape_conv_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1);
    gcpi_onnx_window w;
    int d[GCPI_AXES] = { 0 }, extra[2];
    if (!k || k->rank != x->rank || x->rank < 3)
        return gcpi_onnx_refuse(m, n, "its weight has not as many axes as its input");
    if (!gcpi_onnx_transposed(m, n, x, k, &w, d + 2, extra)) return 0;
    d[0] = x->d[0];
    const int64_t groups = gcpi_onnx_integer(n, "group", 1);
    if (groups < 1 || groups > x->d[1] || (int64_t)k->d[1] * groups > INT32_MAX)
        return gcpi_onnx_refuse(m, n, "a number of groups out of range");
    d[1] = k->d[1] * (int)groups;
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_pool(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    gcpi_onnx_window w;
    int d[GCPI_AXES] = { 0 };
    if (x->rank < 3) return gcpi_onnx_refuse(m, n, "an input of %d axes", x->rank);
    if (!gcpi_onnx_window_of(m, n, x, NULL, &w, d + 2)) return 0;
    d[0] = x->d[0];
    d[1] = x->d[1];
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_global(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int d[GCPI_AXES];
    for (int i = 0; i < x->rank; i++) d[i] = i < 2 ? x->d[i] : 1;
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}

/* ---- products, sums ---- */

static int gcpi_shape_gemm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1);
    const int ta = gcpi_onnx_integer(n, "transA", 0) != 0, tb = gcpi_onnx_integer(n, "transB", 0) != 0;
    int d[2];
    if (!b || a->rank != 2 || b->rank != 2 || a->d[!ta] != b->d[tb])
        return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    d[0] = a->d[ta];
    d[1] = b->d[!tb];
    return gcpi_onnx_shape(m, n, 0, a->type, 2, d);
}
static int gcpi_shape_matmul(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value a = *gcpi_onnx_in(m, n, 0), b = *gcpi_onnx_in(m, n, 1);
    int d[GCPI_AXES], rank, rows, columns;
    if (!a.rank || !b.rank || a.rank > GCPI_AXES - 1 || b.rank > GCPI_AXES - 1)
        return gcpi_onnx_refuse(m, n, "a number as operand");
    if (a.rank == 1) {
        a.d[1] = a.d[0];
        a.d[0] = 1;
    }
    if (b.rank == 1) b.d[1] = 1;
    const int ra = GCPI_MAX(a.rank, 2), rb = GCPI_MAX(b.rank, 2);
    rows = a.d[ra - 2];
    columns = b.d[rb - 1];
    if (a.d[ra - 1] != b.d[rb - 2])
        return gcpi_onnx_refuse(m, n, "rows of %d times columns of %d", a.d[ra - 1], b.d[rb - 2]);
    const int one = a.rank == 1, other = b.rank == 1;
    a.rank = ra - 2;
    b.rank = rb - 2;
    if (!gcpi_onnx_broadcast(&a, &b, &rank, d)) return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    if (!one) d[rank++] = rows;
    if (!other) d[rank++] = columns;
    return gcpi_onnx_shape(m, n, 0, a.type, rank, d);
}
/* Bits of the axes that a Reduce op sums up. */
static int gcpi_onnx_reduced(gcpi_onnx *m, const gcpi_onnx_node *n, int rank)
{
    int64_t list[GCPI_AXES];
    const int none = gcpi_onnx_list(m, n, "axes", 1, list, GCPI_AXES) <= 0, all = (1 << rank) - 1;
    if (none) return gcpi_onnx_integer(n, "noop_with_empty_axes", 0) ? 0 : all;
    return gcpi_onnx_axes(m, n, 1, rank, all);
}
static int gcpi_shape_reduce(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    const int keep = gcpi_onnx_integer(n, "keepdims", 1) != 0, axes = gcpi_onnx_reduced(m, n, x->rank);
    int d[GCPI_AXES], rank = 0;
    if (axes < 0 || !y) return gcpi_onnx_refuse(m, n, "its axes are not known, or not of %d", x->rank);
    for (int i = 0; i < x->rank; i++)
        if (!(axes >> i & 1)) d[rank++] = x->d[i];
        else if (keep) d[rank++] = 1;
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d)) return 0;
    const double *known = axes == (1 << x->rank) - 1 ? gcpi_onnx_known(m, x) : NULL;
    double *to = known ? gcpi_onnx_known_new(m, y) : NULL;
    const int product = gcpi_excerpt_is(n->op, "ReduceProd"), least = gcpi_excerpt_is(n->op, "ReduceMin"),
              most = gcpi_excerpt_is(n->op, "ReduceMax");
    if (!product && !least && !most && !gcpi_excerpt_is(n->op, "ReduceSum")) to = NULL;
    for (ptrdiff_t i = 0; to && i < gcpi_onnx_elements(x); i++)
        *to = !i      ? known[0]
            : product ? *to * known[i]
            : least   ? GCPI_MIN(*to, known[i])
            : most    ? GCPI_MAX(*to, known[i])
                      : *to + known[i];
    y->known = to;
    return 1;
}

/* ---- images ---- */

static int gcpi_shape_pad(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t pads[2 * GCPI_AXES];
    int d[GCPI_AXES];
    const int count = gcpi_onnx_list(m, n, "pads", 1, pads, 2 * GCPI_AXES),
              axes = gcpi_onnx_axes(m, n, 3, x->rank, (1 << x->rank) - 1);
    int named = 0;
    for (int i = 0; i < x->rank; i++) named += axes >= 0 && axes >> i & 1;
    if (axes < 0 || count != 2 * named)
        return gcpi_onnx_refuse(m, n, "its pads are not known, or not two for each axis");
    for (int i = 0, k = 0; i < x->rank; i++) {
        d[i] = x->d[i];
        if (!(axes >> i & 1)) continue;
        const int64_t size = x->d[i] + pads[k] + pads[named + k];
        if (pads[k] > 1 << 24 || pads[named + k] > 1 << 24 || size < 1)
            return gcpi_onnx_refuse(m, n, "a padded size of %lld", (long long)size);
        d[i] = (int)size;
        k++;
    }
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_resize(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    const int upsample = gcpi_excerpt_is(n->op, "Upsample"), old = upsample || m->opset < 11;
    gcpi_onnx_value *scales = gcpi_onnx_in(m, n, old ? 1 : 2), *sizes = old ? NULL : gcpi_onnx_in(m, n, 3);
    int64_t axes[GCPI_AXES];
    const int named = gcpi_onnx_integers(n, "axes", axes, GCPI_AXES);
    const double *by = sizes ? gcpi_onnx_elements_of(m, sizes) : gcpi_onnx_elements_of(m, scales);
    const ptrdiff_t many = by ? gcpi_onnx_elements(sizes ? sizes : scales) : 0;
    int d[GCPI_AXES];
    memcpy(d, x->d, sizeof d);
    if (!by || many != (named < 0 ? x->rank : named))
        return gcpi_onnx_refuse(m, n, "its sizes are not known before a step");
    if (!gcpi_excerpt_is(gcpi_onnx_string(n, "keep_aspect_ratio_policy", "stretch"), "stretch"))
        return gcpi_onnx_refuse(m, n, "keep_aspect_ratio_policy other than stretch");
    for (int i = 0; i < many; i++) {
        const int axis = gcpi_onnx_axis(named < 0 ? i : axes[i], x->rank);
        const double size = axis < 0 ? 0 : sizes ? by[i] : floor(x->d[axis] * by[i]);
        if (!(size >= 1 && size < 1 << 28)) return gcpi_onnx_refuse(m, n, "a size of %g", size);
        d[axis] = (int)size;
    }
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_depth(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    const int to_space = gcpi_excerpt_is(n->op, "DepthToSpace"), b = (int)gcpi_onnx_integer(n, "blocksize", 0);
    int d[4];
    if (x->rank != 4 || b < 1 || b > 1 << 10 || (to_space ? x->d[1] % (b * b) : x->d[2] % b || x->d[3] % b))
        return gcpi_onnx_refuse(m, n, "its blocks do not fit its image");
    d[0] = x->d[0];
    d[1] = to_space ? x->d[1] / (b * b) : x->d[1] * b * b;
    d[2] = to_space ? x->d[2] * b : x->d[2] / b;
    d[3] = to_space ? x->d[3] * b : x->d[3] / b;
    return gcpi_onnx_shape(m, n, 0, x->type, 4, d);
}
/* Opset 23: of three axes (samples, tokens, channels of all heads) or four (samples, heads, tokens, channels). */
static int gcpi_shape_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *q = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1), *v = gcpi_onnx_in(m, n, 2);
    const int heads = (int)gcpi_onnx_integer(n, "q_num_heads", 1),
              shared = (int)gcpi_onnx_integer(n, "kv_num_heads", heads);
    int d[4];
    if (!k || !v || q->rank != k->rank || q->rank != v->rank || q->rank < 3 || q->rank > 4 || heads < 1 || shared < 1)
        return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    memcpy(d, q->d, sizeof d);
    d[q->rank - 1] = q->rank == 4 ? v->d[3] : v->d[2] / shared * heads;
    return gcpi_onnx_shape(m, n, 0, q->type, q->rank, d);
}
/* Its output is of its own kind; a rule of its own would say no more: batch-norm's statistics have no reader. */
static int gcpi_shape_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_shape_like(m, n, 0, gcpi_onnx_in(m, n, 0));
}
