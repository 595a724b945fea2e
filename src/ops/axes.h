/* Along any axis: concat and slice that are no views, pad, transpose. Elements are moved by strides. */

/* Copies size[0] * ... * size[3] elements, by a step in each of both tensors for each axis. */
typedef struct gcpi_moved {
    const gcp_call *call;
    gcpi_array to, from;
    int size[4], accumulate, turned;       /* turned: the axis along which `from` lies side by side, -1: none */
    ptrdiff_t ts[4], fs[4];
    size_t units, chunk;                   /* units: rows of channels; of a turned copy matrices of up to 64 rows */
} gcpi_moved;
enum { GCPI_TURNED_ROWS = 64 };

static void gcpi_axis_steps(const gcp_view *v, ptrdiff_t *step)
{
    step[3] = 1; step[2] = v->pitch; step[1] = v->shape.d[2] * step[2]; step[0] = v->shape.d[1] * step[1];
}
GCPI_LOOP void gcpi_moved_row(gcp_real *to, ptrdiff_t ts, const gcp_real *from, ptrdiff_t fs, int n, int accumulate)
{
    if (accumulate) for (int i = 0; i < n; i++) to[i * ts] += from[i * fs];
    else if (ts == 1 && fs == 1) memcpy(to, from, (size_t)n * sizeof *to);
    else for (int i = 0; i < n; i++) to[i * ts] = from[i * fs];
}
GCPI_LOOP void gcpi_moved_halves(gcpi_half *to, ptrdiff_t ts, const gcpi_half *from, ptrdiff_t fs, int n)
{
    if (ts == 1 && fs == 1) memcpy(to, from, (size_t)n * sizeof *to);
    else for (int i = 0; i < n; i++) to[i * ts] = from[i * fs];
}
/* A row of any two: by way of floats where values are added, or stored in another way. */
static void gcpi_moved_run_of(const gcpi_moved *m, gcpi_array to, ptrdiff_t ts, gcpi_array from, ptrdiff_t fs, int n)
{
    const gcpi_halves *h = gcpi_halves_of(m->call->target->isa);
    gcp_real row[GCPI_PIECE], sums[GCPI_PIECE];
    if (!to.half && !from.half) {
        gcpi_moved_row((gcp_real *)to.at, ts, (const gcp_real *)from.at, fs, n, m->accumulate);
        return;
    }
    if (to.half && from.half && !m->accumulate) {
        gcpi_moved_halves((gcpi_half *)to.at, ts, (const gcpi_half *)from.at, fs, n);
        return;
    }
    for (int i = 0, some; i < n; i += some) {
        const gcpi_array there = gcpi_array_at(to, i * ts);
        some = GCPI_MIN(n - i, (int)GCPI_PIECE);
        gcpi_array_load(h, gcpi_array_at(from, i * fs), fs, row, 1, fs == 1 ? 1 : some, fs == 1 ? some : 1);
        if (m->accumulate) gcpi_array_load(h, there, ts, sums, 1, ts == 1 ? 1 : some, ts == 1 ? some : 1);
        for (int k = 0; k < some && m->accumulate; k++) row[k] += sums[k];
        gcpi_array_store(h, there, ts, row, 1, ts == 1 ? 1 : some, ts == 1 ? some : 1);
    }
}
static void gcpi_moved_unit(const gcpi_moved *m, size_t unit)
{
    const int j = m->turned, parts = j < 0 ? 1 : gcpi_ceil(m->size[j], GCPI_TURNED_ROWS);
    const int part = (int)(unit % (size_t)parts) * GCPI_TURNED_ROWS;
    gcpi_array to = m->to, from = m->from;
    unit /= (size_t)parts;
    for (int k = 2; k >= 0; k--) {
        if (k == j) continue;
        to = gcpi_array_at(to, (ptrdiff_t)(unit % (size_t)m->size[k]) * m->ts[k]);
        from = gcpi_array_at(from, (ptrdiff_t)(unit % (size_t)m->size[k]) * m->fs[k]);
        unit /= (size_t)m->size[k];
    }
    if (j < 0) { gcpi_moved_run_of(m, to, m->ts[3], from, m->fs[3], m->size[3]); return; }
    to = gcpi_array_at(to, part * m->ts[j]); from = gcpi_array_at(from, part);
    const int rows = GCPI_MIN(m->size[j] - part, (int)GCPI_TURNED_ROWS);
    if (!m->accumulate && !to.half && !from.half)
        gcpi_simd_of(m->call->target->isa).turn((gcp_real *)to.at, m->ts[j], rows, m->size[3],
                                                (const gcp_real *)from.at, m->fs[3]);
    else for (int r = 0; r < rows; r++)
        gcpi_moved_run_of(m, gcpi_array_at(to, r * m->ts[j]), 1, gcpi_array_at(from, r), m->fs[3], m->size[3]);
}
static void gcpi_moved_task(void *arg, int index, int worker)
{
    const gcpi_moved *m = (const gcpi_moved *)arg;
    const size_t first = (size_t)index * m->chunk, last = GCPI_MIN(first + m->chunk, m->units);
    for (size_t u = first; u < last; u++) gcpi_moved_unit(m, u);
    (void)worker;
}
static void gcpi_moved_run(gcpi_moved *m)
{
    m->turned = -1;
    for (int k = 0; k < 3 && m->fs[3] != 1 && m->ts[3] == 1; k++) if (m->fs[k] == 1 && m->size[k] > 1) m->turned = k;
    m->units = 1;
    for (int k = 0; k < 3; k++)
        m->units *= (size_t)(k == m->turned ? gcpi_ceil(m->size[k], GCPI_TURNED_ROWS) : m->size[k]);
    m->chunk = GCPI_MAX((size_t)1, GCPI_CHUNK / (size_t)m->size[3] / (m->turned < 0 ? 1 : GCPI_TURNED_ROWS));
    gcpi_parallel(m->call->target, (int)((m->units + m->chunk - 1) / m->chunk), gcpi_moved_task, m);
}

/* What runs the copies: gcpi_moved_run, or a device's. */
typedef void (*gcpi_move_fn)(gcpi_moved *m);

/* A part of `whole` along an axis, from `first` on by `step`, and a tensor of its size; copied to the part (back) or
   from it. */
static void gcpi_part_copy(const gcp_call *c, const gcp_view *whole, const gcp_view *part, int axis, int first,
                           int step, int back, gcpi_move_fn run)
{
    gcpi_moved m;
    ptrdiff_t ws[4], ps[4];
    gcpi_axis_steps(whole, ws); gcpi_axis_steps(part, ps);
    const gcpi_array start = gcpi_array_at(gcpi_elements(whole, 0, 0), first * ws[axis]),
                    there = gcpi_elements(part, 0, 0);
    ws[axis] *= step;
    m.call = c; m.accumulate = back ? whole->accumulate : part->accumulate;
    m.to = back ? start : there; m.from = back ? there : start;
    memcpy(m.size, part->shape.d, sizeof m.size);
    memcpy(m.ts, back ? ws : ps, sizeof ws);
    memcpy(m.fs, back ? ps : ws, sizeof ws);
    run(&m);
}

/* ---- concat ---- */

static int gcpi_join_shape(gcp_shape_call *s)
{
    const int axis = gcpi_attr(s->attributes)->axes.axis;
    long long size = 0;
    for (int i = 0; i < s->inputs; i++) {
        gcp_shape want = s->in[0];
        want.d[axis] = s->in[i].d[axis];
        if (!gcpi_same_shape(want, s->in[i]))
            return gcpi_refuse(s, "%s beside %s", GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[i]));
        size += s->in[i].d[axis];
    }
    if (size > INT32_MAX) return gcpi_refuse(s, "a size of %lld", size);
    s->out[0] = s->in[0];
    s->out[0].d[axis] = (int)size;
    s->out[0].rank = GCPI_MAX(s->out[0].rank, axis == 1 ? 4 : axis == 2 ? 3 : 2);
    return gcpi_all_real(s);
}
static void gcpi_join_run(const gcp_call *c, int back, gcpi_move_fn run)
{
    const int axis = gcpi_attr(c->attributes)->axes.axis;
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[axis])
        if (!back) gcpi_part_copy(c, &c->out[0], &c->in[i], axis, at, 1, 1, run);
        else if (c->din[i].data) gcpi_part_copy(c, &c->dout[0], &c->din[i], axis, at, 1, 0, run);
}
static void gcpi_join_forward(const gcp_call *c) { gcpi_join_run(c, 0, gcpi_moved_run); }
static void gcpi_join_backward(const gcp_call *c) { gcpi_join_run(c, 1, gcpi_moved_run); }

/* ---- slice ---- */

static int gcpi_cut_shape(gcp_shape_call *s)
{
    const gcpi_attributes *a = gcpi_attr(s->attributes);
    const int axis = a->axes.axis, first = a->axes.first, step = a->axes.step, size = s->in[0].d[axis];
    if (first < 0 || first >= size || a->axes.count < 1 || a->axes.count > (size - 1 - first) / step + 1)
        return gcpi_refuse(s, "%d from %d on by %d, of %s along its size of %d", a->axes.count, first, step,
                           GCPI_SHAPE_TEXT(s->in[0]), size);
    s->out[0] = s->in[0];
    s->out[0].d[axis] = a->axes.count;
    return gcpi_all_real(s);
}
static void gcpi_cut_run(const gcp_call *c, const gcp_view *whole, const gcp_view *part, int back, gcpi_move_fn run)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_part_copy(c, whole, part, a->axes.axis, a->axes.first, a->axes.step, back, run);
}
static void gcpi_cut_forward(const gcp_call *c) { gcpi_cut_run(c, &c->in[0], &c->out[0], 0, gcpi_moved_run); }
static void gcpi_cut_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (!c->din[0].accumulate)
        for (int n = 0; n < c->din[0].shape.d[0]; n++) gcpi_zero_image(&c->din[0], n);
    gcpi_cut_run(c, &c->din[0], &c->dout[0], 1, gcpi_moved_run);
}

/* ---- pad ---- */

static int gcpi_pad_shape(gcp_shape_call *s)
{
    const gcpi_attributes *a = gcpi_attr(s->attributes);
    const int axis = a->pad.axis, size = s->in[0].d[axis];
    const int64_t padded = (int64_t)size + a->pad.before + a->pad.after;
    if (a->pad.mode == GCP_PAD_REFLECT && GCPI_MAX(a->pad.before, a->pad.after) >= size)
        return gcpi_refuse(s, "%d before and %d after %s along its size of %d; a reflection is shorter than that",
                           a->pad.before, a->pad.after, GCPI_SHAPE_TEXT(s->in[0]), size);
    if (padded > INT32_MAX) return gcpi_refuse(s, "a size of %lld", (long long)padded);
    s->out[0] = s->in[0];
    s->out[0].d[axis] = (int)padded;
    s->out[0].rank = GCPI_MAX(s->out[0].rank, axis == 1 ? 4 : axis == 2 ? 3 : 2);
    return gcpi_all_real(s);
}
/* `count` elements of the padded tensor from `at` on, beside those of x from `from` on by `step`, or 0 where x is NULL;
   back: the gradient of x. */
static void gcpi_pad_part(const gcp_call *c, const gcp_view *padded, const gcp_view *x, int at, int count, int from,
                          int step, int back)
{
    static const double zero = 0;                      /* of any width */
    const int axis = gcpi_attr(c->attributes)->pad.axis;
    gcpi_moved m;
    ptrdiff_t ps[4], xs[4] = { 0, 0, 0, 0 };
    gcpi_axis_steps(padded, ps);
    if (x) gcpi_axis_steps(x, xs);
    const gcpi_array inside = gcpi_array_at(gcpi_elements(padded, 0, 0), at * ps[axis]),
                    none = { (void *)(uintptr_t)&zero, inside.half },
                    there = x ? gcpi_array_at(gcpi_elements(x, 0, 0), from * xs[axis]) : none;
    xs[axis] *= step;
    m.call = c; m.accumulate = back && x->accumulate;
    m.to = back ? there : inside;
    m.from = back ? inside : there;
    memcpy(m.size, padded->shape.d, sizeof m.size);
    m.size[axis] = count;
    memcpy(m.ts, back ? xs : ps, sizeof xs);
    memcpy(m.fs, back ? ps : xs, sizeof xs);
    if (count > 0) gcpi_moved_run(&m);
}
/* What x gives, or in backward gets, outside of its own place: an edge gets its sum an element at a time. */
static void gcpi_pad_sides(const gcp_call *c, const gcp_view *padded, const gcp_view *x, int back)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    const int size = c->in[0].shape.d[a->pad.axis], before = a->pad.before, after = a->pad.after;
    if (a->pad.mode == GCP_PAD_ZEROS && back) return;
    if (a->pad.mode == GCP_PAD_ZEROS) x = NULL;
    if (a->pad.mode == GCP_PAD_REFLECT) {
        gcpi_pad_part(c, padded, x, 0, before, before, -1, back);
        gcpi_pad_part(c, padded, x, before + size, after, size - 2, -1, back);
    }
    else if (!back) {
        gcpi_pad_part(c, padded, x, 0, before, 0, 0, 0);
        gcpi_pad_part(c, padded, x, before + size, after, size - 1, 0, 0);
    }
    else {
        for (int i = 0; i < before; i++) gcpi_pad_part(c, padded, x, i, 1, 0, 0, 1);
        for (int i = 0; i < after; i++) gcpi_pad_part(c, padded, x, before + size + i, 1, size - 1, 0, 1);
    }
}
static void gcpi_pad_forward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_pad_part(c, &c->out[0], &c->in[0], a->pad.before, c->in[0].shape.d[a->pad.axis], 0, 1, 0);
    gcpi_pad_sides(c, &c->out[0], &c->in[0], 0);
}
static void gcpi_pad_backward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcp_view dx = c->din[0];
    if (!dx.data) return;
    gcpi_pad_part(c, &c->dout[0], &dx, a->pad.before, dx.shape.d[a->pad.axis], 0, 1, 1);
    dx.accumulate = 1;
    gcpi_pad_sides(c, &c->dout[0], &dx, 1);
}

/* ---- transpose ---- */

/* Axis k of a result is axis from[k] of what it is made of. */
static void gcpi_transposed(const gcp_call *c, const gcp_view *to, const gcp_view *x, const int *from, gcpi_move_fn run)
{
    gcpi_moved m;
    ptrdiff_t xs[4];
    gcpi_axis_steps(x, xs); gcpi_axis_steps(to, m.ts);
    m.call = c; m.accumulate = to->accumulate;
    m.to = gcpi_elements(to, 0, 0); m.from = gcpi_elements(x, 0, 0);
    memcpy(m.size, to->shape.d, sizeof m.size);
    for (int k = 0; k < 4; k++) m.fs[k] = xs[from[k]];
    run(&m);
}
static int gcpi_transpose_shape(gcp_shape_call *s)
{
    const int *from = gcpi_attr(s->attributes)->axes.from;
    gcp_shape *y = &s->out[0];
    for (int k = 0; k < 4; k++) y->d[k] = s->in[0].d[from[k]];
    y->rank = y->d[1] > 1 ? 4 : y->d[2] > 1 ? GCPI_MAX(s->in[0].rank, 3) : y->d[0] > 1 ? GCPI_MAX(s->in[0].rank, 2)
                                                                                       : s->in[0].rank;
    return gcpi_all_real(s);
}
static void gcpi_transpose_run(const gcp_call *c, int back, gcpi_move_fn run)
{
    const int *from = gcpi_attr(c->attributes)->axes.from;
    int inverse[4];
    for (int k = 0; k < 4; k++) inverse[from[k]] = k;
    if (!back) gcpi_transposed(c, &c->out[0], &c->in[0], from, run);
    else if (c->din[0].data) gcpi_transposed(c, &c->din[0], &c->dout[0], inverse, run);
}
static void gcpi_transpose_forward(const gcp_call *c) { gcpi_transpose_run(c, 0, gcpi_moved_run); }
static void gcpi_transpose_backward(const gcp_call *c) { gcpi_transpose_run(c, 1, gcpi_moved_run); }

/* ---- rows ---- */

static void gcpi_cut_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, "slice", 0, 1);
    gcpi_code_int(c, "first", op->attributes.axes.first, 0);
    gcpi_code_int(c, "count", op->attributes.axes.count, 0);
    gcpi_code_int(c, "step", op->attributes.axes.step, 1);
    gcpi_code_axis(c, op->attributes.axes.axis);
}
static void gcpi_pad_call(gcpi_code *c, const gcpi_op *op)
{
    static const char *const modes[] = { "GCP_PAD_ZEROS", "GCP_PAD_EDGE", "GCP_PAD_REFLECT" };
    gcpi_code_call(c, op, "pad", 0, 1);
    gcpi_code_int(c, "before", op->attributes.pad.before, 0);
    gcpi_code_int(c, "after", op->attributes.pad.after, 0);
    gcpi_code_axis(c, op->attributes.pad.axis);
    if (op->attributes.pad.mode) gcpi_code_word(c, "mode", modes[op->attributes.pad.mode]);
}
static void gcpi_transpose_call(gcpi_code *c, const gcpi_op *op)
{
    const int *from = op->attributes.axes.from;
    gcpi_code_call(c, op, "transpose", 0, 1);
    gcpi_say(c->w, ", %d, %d, %d, %d", from[0], from[1], from[2], from[3]);
}
static void gcpi_join_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = op->kind == GCP_OP_JOIN ? gcpi_concat_call : gcpi_cut_call;
    f->apart = op->attributes.axes.axis != 0;
    f->channels = op->attributes.axes.axis != 3 ? GCPI_CHANNELS_SAME : GCPI_CHANNELS_UNKNOWN;
}
static void gcpi_pad_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_pad_call;
    f->apart = op->attributes.pad.axis != 0;
    f->channels = op->attributes.pad.axis != 3 ? GCPI_CHANNELS_SAME : GCPI_CHANNELS_UNKNOWN;
    /* gradients of a side are added to x's one after another: a sum that is rounded once */
    f->floats = op->attributes.pad.mode == GCP_PAD_ZEROS ? 0 : GCPI_IN(0);
}
static void gcpi_transpose_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_transpose_call;
    f->apart = op->attributes.axes.from[0] == 0;
    f->channels = op->attributes.axes.from[3] == 3 ? GCPI_CHANNELS_SAME : GCPI_CHANNELS_UNKNOWN;
}
#define GCPI_AXES_ROW(NAME, name, word, facts)                                                                      \
    static const gcpi_op_row gcpi_##name##_row = {                                                                  \
        GCP_OP_##NAME,                                                                                              \
        { word, gcpi_##name##_shape, gcpi_##name##_forward, gcpi_##name##_backward, NULL, 0, 0,                     \
          GCP_FLAG_BF16, 1, NULL },                                                                                 \
        facts                                                                                                       \
    };
GCPI_AXES_ROW(JOIN, join, "concat", gcpi_join_facts)
GCPI_AXES_ROW(CUT, cut, "slice", gcpi_join_facts)
GCPI_AXES_ROW(PAD, pad, "pad", gcpi_pad_facts)
GCPI_AXES_ROW(TRANSPOSE, transpose, "transpose", gcpi_transpose_facts)

/* The stored axis; -1: there is none. */
static int gcpi_axis(gcp_tensor x, gcp_axis axis, const char *what, gcp_at at)
{
    static const int stored[] = { 3, 0, 1, 2 };
    if (axis >= GCP_AXIS_CHANNELS && axis <= GCP_AXIS_WIDTH) return stored[axis];
    gcpi_bad_option(x, at, what, ".axis", (double)axis, "one of GCP_AXIS_CHANNELS, SAMPLES, HEIGHT, WIDTH, TOKENS");
    return -1;
}
GCPI_DEF gcp_tensor gcp_slice_at(gcp_tensor x, gcp_slice_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    const int axis = gcpi_axis(x, o.axis, "slice", o.at);
    if (axis < 0) return gcpi_nil(x.tape);
    if (o.step < 0) return gcpi_bad_option(x, o.at, "slice", ".step", o.step, "at least 1, the default");
    if (axis == 3 && o.step < 2) {
        a.slice.first = gcpi_integer(o.first);
        a.slice.count = o.count;
        return gcpi_simple(&gcpi_slice_row, &x, 1, &a, o.name, o.at);
    }
    a.axes.axis = axis;
    a.axes.first = gcpi_integer(o.first);
    a.axes.step = GCPI_MAX(o.step, 1);
    a.axes.count = o.count;
    return gcpi_simple(&gcpi_cut_row, &x, 1, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_pad_at(gcp_tensor x, gcp_pad_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    const int axis = gcpi_axis(x, o.axis, "pad", o.at);
    if (axis < 0) return gcpi_nil(x.tape);
    if (o.before < 0) return gcpi_bad_option(x, o.at, "pad", ".before", o.before, "at least 0");
    if (o.after < 0) return gcpi_bad_option(x, o.at, "pad", ".after", o.after, "at least 0");
    if (o.mode < GCP_PAD_ZEROS || o.mode > GCP_PAD_REFLECT)
        return gcpi_bad_option(x, o.at, "pad", ".mode", (double)o.mode, "one of GCP_PAD_ZEROS, EDGE, REFLECT");
    a.pad.axis = axis; a.pad.before = o.before; a.pad.after = o.after; a.pad.mode = (int)o.mode;
    return gcpi_simple(&gcpi_pad_row, &x, 1, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_concat_at(const gcp_tensor *inputs, int count, gcp_concat_opts o)
{
    gcp_tape *t = inputs && count > 0 ? inputs[0].tape : NULL;
    gcpi_attributes a = gcpi_no_attributes();
    const int axis = t ? gcpi_axis(inputs[0], o.axis, "concat", o.at) : -1;
    if (axis < 0) return gcpi_nil(t);
    a.axes.axis = axis;
    return gcpi_simple(axis == 3 ? &gcpi_concat_row : &gcpi_join_row, inputs, count, &a, o.name, o.at);
}
/* Where no two axes of more than one element change places, the values stay where they are. */
GCPI_DEF gcp_tensor gcp_transpose_at(gcp_tensor x, int n, int h, int w, int c, gcp_op_opts o)
{
    const int from[4] = { n, h, w, c };
    gcpi_attributes a = gcpi_no_attributes();
    const gcp_shape s = gcp_shape_of(x);
    int seen = 0, last = -1, moves = 0;
    for (int k = 0; k < 4; k++) seen |= from[k] >= 0 && from[k] < 4 ? 1 << from[k] : 0;
    if (!gcpi_enter(x, o.at, "transpose")) return gcpi_nil(x.tape);
    if (seen != 15) {
        gcpi_fail(x.tape, GCP_E_ARGUMENT, o.at, "transpose", "axes %d, %d, %d, %d; each of 0, 1, 2, 3 once", n, h, w,
                  c);
        return gcpi_nil(x.tape);
    }
    memcpy(a.axes.from, from, sizeof from);
    for (int k = 0; k < 4; k++)
        if (s.d[from[k]] > 1) { moves |= from[k] < last; last = from[k]; }
    if (moves) return gcpi_simple(&gcpi_transpose_row, &x, 1, &a, o.name, o.at);
    return gcpi_reshape(x, gcpi_raw(4, s.d[n], s.d[h], s.d[w], s.d[c]), o.name, o.at);
}
/* Channels of `groups` by c / groups become c / groups by groups: two views and a transpose between them. */
GCPI_DEF gcp_tensor gcp_channel_shuffle_at(gcp_tensor x, gcp_shuffle_opts o)
{
    const gcp_shape s = gcp_shape_of(x);
    const gcpi_before before = gcpi_before_ops(x);
    gcp_op_opts named;
    if (!gcpi_enter(x, o.at, "channel_shuffle")) return gcpi_all_or_none(x, before, 3, gcpi_nil(x.tape));
    if (o.groups < 1 || s.d[3] % o.groups || (int64_t)s.d[1] * s.d[2] > INT32_MAX)
        return gcpi_bad_option(x, o.at, "channel_shuffle", ".groups", o.groups, "a divisor of the channels");
    named.at = o.at; named.name = o.name;
    gcp_tensor y = gcpi_reshape(x, gcpi_raw(4, s.d[0], s.d[1] * s.d[2], o.groups, s.d[3] / o.groups), NULL, o.at);
    y = gcp_transpose_at(y, 0, 1, 3, 2, named);
    y = gcpi_reshape(y, gcpi_raw(4, s.d[0], s.d[1], s.d[2], s.d[3]), NULL, o.at);
    return gcpi_all_or_none(x, before, 3, y);
}
/* Reshape, transpose, reshape: rows of y by x by (b, c) become rows of y by b by x by c, or the reverse. */
static gcp_tensor gcpi_regroup(gcp_tensor x, gcp_shape as, int turn, gcp_shape to, const char *named, gcp_at at)
{
    gcp_op_opts o;
    o.at = at; o.name = named;
    x = gcpi_reshape(x, as, NULL, at);
    x = turn ? gcp_transpose_at(x, 0, 2, 1, 3, o) : gcp_transpose_at(x, 0, 1, 3, 2, o);
    return gcpi_reshape(x, to, NULL, at);
}
/* Channels (c, i, j) of a pixel become pixels (i, j): first (i, j, c), then each row of an image becomes r rows. */
static gcp_tensor gcpi_pixel_shuffle(gcp_tensor x, int r, const char *named, gcp_at at)
{
    const gcp_shape s = gcp_shape_of(x);
    const int n = s.d[0], h = s.d[1], w = s.d[2], c = s.d[3] / r / r;
    x = gcpi_regroup(x, gcpi_raw(4, n, h * w, c, r * r), 0, gcpi_raw(4, n, h, w, s.d[3]), NULL, at);
    return gcpi_regroup(x, gcpi_raw(4, n * h, w, r, r * c), 1, gcpi_raw(4, n, h * r, w * r, c), named, at);
}
static gcp_tensor gcpi_pixel_unshuffle(gcp_tensor x, int r, const char *named, gcp_at at)
{
    const gcp_shape s = gcp_shape_of(x);
    const int n = s.d[0], h = s.d[1] / r, w = s.d[2] / r, c = s.d[3];
    x = gcpi_regroup(x, gcpi_raw(4, n * h, r, w, r * c), 1, gcpi_raw(4, n, h, w, r * r * c), NULL, at);
    return gcpi_regroup(x, gcpi_raw(4, n, h * w, r * r, c), 0, gcpi_raw(4, n, h, w, r * r * c), named, at);
}
static gcp_tensor gcpi_pixels_shuffled(gcp_tensor x, gcp_pixel_shuffle_opts o, int back, const char *what)
{
    const gcp_shape s = gcp_shape_of(x);
    const int64_t r = o.factor ? o.factor : 2, images = (int64_t)s.d[0] * s.d[1], pixels = (int64_t)s.d[1] * s.d[2];
    const gcpi_before before = gcpi_before_ops(x);
    if (!gcpi_enter(x, o.at, what)) return gcpi_all_or_none(x, before, 6, gcpi_nil(x.tape));
    if (r < 1 || r > 32768 || (back ? s.d[1] % r || s.d[2] % r || s.d[3] * r * r > INT32_MAX : s.d[3] % (r * r)) ||
        images > INT32_MAX || pixels > INT32_MAX || GCPI_MAX(s.d[1], s.d[2]) * r > INT32_MAX)
        return gcpi_bad_option(x, o.at, what, ".factor", (double)r,
                               back ? "a divisor of height and width" : "its square a divisor of the channels");
    gcp_tensor y = back ? gcpi_pixel_unshuffle(x, (int)r, o.name, o.at) : gcpi_pixel_shuffle(x, (int)r, o.name, o.at);
    return gcpi_all_or_none(x, before, 6, y);
}
GCPI_DEF gcp_tensor gcp_pixel_shuffle_at(gcp_tensor x, gcp_pixel_shuffle_opts o)
{
    return gcpi_pixels_shuffled(x, o, 0, "pixel_shuffle");
}
GCPI_DEF gcp_tensor gcp_pixel_unshuffle_at(gcp_tensor x, gcp_pixel_shuffle_opts o)
{
    return gcpi_pixels_shuffled(x, o, 1, "pixel_unshuffle");
}
