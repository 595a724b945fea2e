/* Ops that move elements, or that would: most change an order alone. */

/* The output is the input in other axes. */
static int gcpi_onnx_again(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_put_value(m, n, 0, gcpi_onnx_in(m, n, 0));
}
static int gcpi_onnx_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value x = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0));
    int axes[GCPI_AXES];
    gcpi_onnx_permutation(n, x.rank, axes);
    gcpi_onnx_turn(&x, axes);
    return gcpi_onnx_put_value(m, n, 0, &x);
}
static int gcpi_onnx_expand(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0), all = *y;
    gcpi_onnx_pair p;
    if (gcpi_onnx_elements(x) == gcpi_onnx_elements(y)) return gcpi_onnx_again(m, n);
    gcpi_onnx_order_set(&all.order, y->rank, y->d);
    gcpi_onnx_bind(m, x);
    int has[GCPI_FACTORS], want[GCPI_FACTORS];
    for (int i = 0; i < y->rank; i++) {
        const int k = i - y->rank + x->rank;
        if (k >= 0 && x->d[k] != 1 && !gcpi_onnx_cut_axis(&all, i, &x->order, k))
            return gcpi_onnx_refuse(m, n, "its axes were cut");
    }
    const gcpi_onnx_order own = gcpi_onnx_aligned(x, y->rank);
    gcpi_onnx_pair_order(&all.order, &own, y->rank, y->d, &p.order, has);
    if (!gcpi_onnx_groups(&p.order, has, gcpi_layout_shape(&p.order, gcpi_layout_plain(y->rank)), &p.shape))
        return gcpi_onnx_refuse(m, n, "it spreads axes that lie in more than four parts");
    const gcp_shape share = gcpi_onnx_share(&p.order, has, 2, p.shape, &own, want);
    p.a = gcpi_onnx_arranged(m, x, want, share);
    return gcpi_onnx_put(m, n, 0, gcp_expand_at(p.a, gcpi_onnx_rank(p.shape), gcpi_onnx_opts(m)), &p.order);
}

/* ---- one axis ---- */

static const gcp_axis gcpi_onnx_places[4] = { GCP_AXIS_SAMPLES, GCP_AXIS_HEIGHT, GCP_AXIS_WIDTH, GCP_AXIS_CHANNELS };

/* The factors of an axis in memory are memory[*from .. *to - 1], in their order: 1. An axis of size 1 has none. */
static int gcpi_onnx_order_run(const gcpi_onnx_order *o, int axis, int *from, int *to)
{
    int f = gcpi_onnx_order_nth(o, axis, 0);
    *from = *to = f < 0 ? o->count : gcpi_onnx_order_place(o, f);
    for (; f >= 0 && f < o->count && o->axis[f] == axis; f++, ++*to)
        if (*to == o->count || o->memory[*to] != f) return 0;
    return 1;
}
/* v's axes in the order of memory, those of size 1 among them; as gcp would have them where the parts of one lie apart.
   */
static void gcpi_onnx_axes_list(const gcpi_onnx_value *v, char *list)
{
    const char *usual = gcpi_layout_usual(v->rank);
    int count = 0, from, to, together = 1;
    for (int i = 0; i < v->rank; i++) together &= gcpi_onnx_order_run(&v->order, i, &from, &to);
    for (const char *c = usual; *c; c++)
        if (*c != '|' && (!together || v->d[*c - '0'] == 1)) list[count++] = *c;
    for (int j = 0, last = -1; j < v->order.count && together; j++) {
        const int axis = v->order.axis[v->order.memory[j]];
        int at = 0;
        if (axis == last) continue;
        last = axis;
        while (at < count && (v->d[list[at] - '0'] != 1 || list[at] < '0' + axis)) at++; /* a 1 goes behind it */
        memmove(list + at + 1, list + at, (size_t)(count - at));
        list[at] = (char)('0' + axis);
        count++;
    }
    list[count] = 0;
}
/* The tensor's size for axis i of `count`, of which axis `at` has one alone. */
static int gcpi_onnx_place(int i, int count, int at)
{
    if (count <= 4) return i || count == 1 ? 4 - count + i : 0;
    const int place = !at ? 0 : at == count - 1 ? 3 : 2;
    return i == at ? place : i > at ? 3 : !i ? 0 : place == 2 ? 1 : GCPI_MIN(i, 2);
}
/* A layout of v in which an axis has one of the tensor's sizes alone. Returns which. */
static int gcpi_onnx_axis_layout(const gcpi_onnx_value *v, int axis, char *layout)
{
    char list[GCPI_AXES + 1];
    gcpi_onnx_axes_list(v, list);
    const int count = v->rank, at = (int)(strchr(list, '0' + axis) - list);
    for (int i = 0, now = 0; i < count; i++) {
        for (; now < gcpi_onnx_place(i, count, at); now++) *layout++ = '|';
        *layout++ = list[i];
    }
    *layout = 0;
    return gcpi_onnx_place(at, count, at);
}
/* Factors of an axis, which lie together, become one of this size. */
static void gcpi_onnx_order_resize(gcpi_onnx_order *o, int axis, int size)
{
    const int f = gcpi_onnx_order_nth(o, axis, 0);
    o->d[axis] = size;
    if (f < 0) return;
    while (f + 1 < o->count && o->axis[f + 1] == axis) gcpi_onnx_order_join(o, f);
    o->size[f] = size;
    if (size == 1) gcpi_onnx_order_remove(o, f);
}
/* Where an axis is the slowest part of one of the tensor's sizes (q, k and v in channels), that size, and how much of
   it an element is; 0: it is no such part. */
static int gcpi_onnx_axis_in_size(const gcpi_onnx_value *v, int axis, int *scale)
{
    int from, to;
    if (gcp_is_nil(v->tensor) || !gcpi_onnx_order_run(&v->order, axis, &from, &to) || from == to) return 0;
    const gcp_shape s = gcp_shape_of(v->tensor);
    const ptrdiff_t before = gcpi_onnx_order_elements(&v->order, 0, from),
                    size = gcpi_onnx_order_elements(&v->order, from, to);
    ptrdiff_t front = 1;
    for (int i = 0; i < 4; front *= s.d[i++])
        if (front == before && s.d[i] % size == 0) {
            *scale = s.d[i] / (int)size;
            return i + 1;
        }
    return 0;
}
/* y becomes elements first, first + step, ... of an axis of x, `count` of them. 0: refused. */
static int gcpi_onnx_cut(gcpi_onnx *m, gcpi_onnx_value *x, int axis, int first, int count, int step, gcpi_onnx_value *y)
{
    GCPI_ONNX_OPTS(slice, o);
    char layout[16];
    int scale = 1;
    *y = gcpi_onnx_copy(x);
    if (count == x->d[axis]) return 1;
    gcpi_onnx_bind(m, x);
    int size = gcpi_onnx_axis_in_size(x, axis, &scale);
    if (step != 1 && scale != 1) size = 0;
    if (!size) scale = 1;
    o.axis = gcpi_onnx_places[size ? size - 1 : gcpi_onnx_axis_layout(x, axis, layout)];
    o.first = first * scale;
    o.count = count * scale;
    o.step = step;
    gcpi_onnx_becomes(m, y, gcp_slice_at(size ? x->tensor : gcpi_onnx_get(m, x, layout), o));
    y->d[axis] = count;
    y->order = x->order;
    if (size) gcpi_onnx_order_resize(&y->order, axis, count);
    else gcpi_onnx_order_make(&y->order, layout, y->rank, y->d);
    return !gcp_is_nil(y->tensor);
}
static int gcpi_onnx_split(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), part;
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank);
    int64_t sizes[GCP_MAX_INPUTS];
    int first = 0;
    gcpi_onnx_split_sizes(m, n, x->d[axis], sizes);
    for (int i = 0; i < n->outputs; first += (int)sizes[i++]) {
        const gcpi_onnx_value *y = gcpi_onnx_out(m, n, i);
        if (sizes[i] < 1) return gcpi_onnx_refuse(m, n, "an empty part");
        if (!y || !y->needed) continue;
        if (!gcpi_onnx_cut(m, x, axis, first, (int)sizes[i], 1, &part) || !gcpi_onnx_put_value(m, n, i, &part))
            return 0;
    }
    return 1;
}
static int gcpi_onnx_sequence(gcpi_onnx *m, gcpi_onnx_node *n) { return m && n; }
static int gcpi_onnx_sequence_at(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value part;
    int axis, first, count;
    const gcpi_onnx_node *split = gcpi_onnx_sequence_part(m, n, &axis, &first, &count);
    gcpi_onnx_value *x = gcpi_onnx_in(m, split, 0);
    if (gcp_is_nil(x->tensor) && x->source < 0) return gcpi_onnx_refuse(m, n, "what was split was not recorded");
    return gcpi_onnx_cut(m, x, axis, first, count, 1, &part) && gcpi_onnx_put_value(m, n, 0, &part);
}
static int gcpi_onnx_slices(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), part = gcpi_onnx_copy(x), whole;
    int first[GCPI_AXES], step[GCPI_AXES], count[GCPI_AXES];
    gcpi_onnx_slice(m, n, first, step, count);
    for (int i = 0; i < x->rank; i++) {
        if (step[i] < 0 && count[i] > 1) return gcpi_onnx_refuse(m, n, "a step of %d; above 0 is allowed", step[i]);
        if (count[i] < 1) return gcpi_onnx_refuse(m, n, "an empty slice");
        if (count[i] == part.d[i]) continue;
        whole = part;
        if (!gcpi_onnx_cut(m, &whole, i, first[i], count[i], GCPI_MAX(step[i], 1), &part)) return 0;
    }
    return gcpi_onnx_put_value(m, n, 0, &part);
}
/* Elements in any order: side by side, one by one. */
static int gcpi_onnx_gather_each(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, int axis, const double *at,
                                 int count)
{
    gcp_tensor parts[GCP_MAX_INPUTS];
    gcpi_onnx_value part, all = gcpi_onnx_copy(x);
    char layout[16];
    GCPI_ONNX_OPTS(concat, o);
    if (count > GCP_MAX_INPUTS)
        return gcpi_onnx_refuse(m, n, "%d indices that are no slice; at most %d", count, GCP_MAX_INPUTS);
    gcpi_onnx_any(m, x);
    o.axis = gcpi_onnx_places[gcpi_onnx_axis_layout(x, axis, layout)];
    for (int i = 0; i < count; i++) {
        const int row = (int)(at[i] < 0 ? at[i] + x->d[axis] : at[i]);
        if (!gcpi_onnx_cut(m, x, axis, row, 1, 1, &part)) return 0;
        parts[i] = gcpi_onnx_get(m, &part, layout);
    }
    gcpi_onnx_becomes(m, &all, gcp_concat_at(parts, count, o));
    all.d[axis] = count;
    gcpi_onnx_order_make(&all.order, layout, all.rank, all.d);
    return !gcp_is_nil(all.tensor) && gcpi_onnx_put_value(m, n, 0, &all);
}
static int gcpi_onnx_gather(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *index = gcpi_onnx_in(m, n, 1), part;
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank), count = (int)gcpi_onnx_elements(index);
    const double *at = gcpi_onnx_known(m, index);
    GCPI_ONNX_OPTS(embedding, o);
    if (!at && (axis || x->rank != 2 || gcp_is_nil(index->tensor) || index->rank > 2))
        return gcpi_onnx_refuse(m, n, "indices that are not known before a step, but for rows of a table");
    if (!at)
        return gcpi_onnx_put_layout(m, n, 0, gcp_embedding_op_at(index->tensor, gcpi_onnx_get(m, x, "0|||1"), o),
                                    index->rank == 2 ? "0||1|2" : "0|||1");
    const int size = x->d[axis], first = count ? (int)(at[0] < 0 ? at[0] + size : at[0]) : 0;
    int step = 1, slice = 1;
    for (int i = 1; i < count; i++) {
        const int is = (int)(at[i] < 0 ? at[i] + size : at[i]);
        if (i == 1) step = is - first;
        slice &= step >= 1 && is == first + i * step;
    }
    if (!slice) return gcpi_onnx_gather_each(m, n, x, axis, at, count);
    return gcpi_onnx_cut(m, x, axis, first, count, step, &part) && gcpi_onnx_put_value(m, n, 0, &part);
}
/* Inputs side by side, in the order in which the largest lies. */
static int gcpi_onnx_concat(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 1), y->rank);
    gcpi_onnx_value *large = gcpi_onnx_in(m, n, 0);
    gcp_tensor parts[GCP_MAX_INPUTS];
    char layout[16];
    GCPI_ONNX_OPTS(concat, o);
    if (n->inputs > GCP_MAX_INPUTS) return gcpi_onnx_refuse(m, n, "%d inputs; at most %d", n->inputs, GCP_MAX_INPUTS);
    for (int i = 1; i < n->inputs; i++)
        if (gcpi_onnx_elements(gcpi_onnx_in(m, n, i)) > gcpi_onnx_elements(large)) large = gcpi_onnx_in(m, n, i);
    gcpi_onnx_bind(m, large);
    o.axis = gcpi_onnx_places[gcpi_onnx_axis_layout(large, axis, layout)];
    for (int i = 0; i < n->inputs; i++) parts[i] = gcpi_onnx_get(m, gcpi_onnx_in(m, n, i), layout);
    return gcpi_onnx_put_layout(m, n, 0, n->inputs == 1 ? parts[0] : gcp_concat_at(parts, n->inputs, o), layout);
}
/* What a Pad says: its mode, what it fills with. 0, with a message: refused. */
typedef struct gcpi_onnx_padding {
    gcp_pad_mode mode;
    double fill;
} gcpi_onnx_padding;
static int gcpi_onnx_padding_of(gcpi_onnx *m, const gcpi_onnx_node *n, gcpi_onnx_padding *p)
{
    static const char *const names[] = { "constant", "edge", "reflect" };
    static const gcp_pad_mode modes[] = { GCP_PAD_ZEROS, GCP_PAD_EDGE, GCP_PAD_REFLECT };
    const gcpi_excerpt mode = gcpi_onnx_string(n, "mode", "constant");
    int kind = 0;
    p->fill = gcpi_onnx_float(n, "value", 0);
    while (kind < 3 && !gcpi_excerpt_is(mode, names[kind])) kind++;
    if (gcpi_onnx_in(m, n, 2) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 2), &p->fill))
        return gcpi_onnx_refuse(m, n, "its value is not known before a step");
    if (kind == 3 || !gcpi_finite(p->fill))
        return gcpi_onnx_refuse(m, n, "its mode, or a value of %g; constant, edge and reflect are allowed", p->fill);
    p->mode = modes[kind];
    return 1;
}
/* More elements before and after those of an axis. */
static int gcpi_onnx_pad_axis(gcpi_onnx *m, gcpi_onnx_value *x, int axis, int before, int after, gcpi_onnx_padding p)
{
    const int shifts = p.mode == GCP_PAD_ZEROS && p.fill != 0; /* gcp pads with zeros */
    char layout[16];
    GCPI_ONNX_OPTS(pad, o);
    gcpi_onnx_bind(m, x);
    o.axis = gcpi_onnx_places[gcpi_onnx_axis_layout(x, axis, layout)];
    o.before = before;
    o.after = after;
    o.mode = p.mode;
    gcp_tensor y = gcpi_onnx_get(m, x, layout);
    const gcp_tensor by = shifts ? gcpi_onnx_number_tensor(m, p.fill) : y;
    if (shifts) y = gcp_sub_at(y, by, gcpi_onnx_opts(m));
    y = gcp_pad_at(y, o);
    if (shifts) y = gcp_add_at(y, by, gcpi_onnx_opts(m));
    x->d[axis] += before + after;
    gcpi_onnx_becomes(m, x, y);
    gcpi_onnx_order_make(&x->order, layout, x->rank, x->d);
    return !gcp_is_nil(y);
}
/* An axis after the other; a negative pad cuts. */
static int gcpi_onnx_pad(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value part = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0)), whole;
    gcpi_onnx_padding p;
    int64_t pads[2 * GCPI_AXES];
    const int named = gcpi_onnx_list(m, n, "pads", 1, pads, 2 * GCPI_AXES) / 2,
              axes = gcpi_onnx_axes(m, n, 3, part.rank, 255);
    if (!gcpi_onnx_padding_of(m, n, &p)) return 0;
    for (int i = 0, k = 0; i < part.rank; i++) {
        if (!(axes >> i & 1)) continue;
        const int before = (int)pads[k], after = (int)pads[named + k++];
        const int first = GCPI_MAX(-before, 0), count = part.d[i] + GCPI_MIN(before, 0) + GCPI_MIN(after, 0);
        whole = part;
        if (count != part.d[i] && !gcpi_onnx_cut(m, &whole, i, first, count, 1, &part)) return 0;
        if ((before > 0 || after > 0) && !gcpi_onnx_pad_axis(m, &part, i, GCPI_MAX(before, 0), GCPI_MAX(after, 0), p))
            return 0;
    }
    return gcpi_onnx_put_value(m, n, 0, &part);
}
