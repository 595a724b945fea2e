/* From values to tensors. Weights are made where they are first used, in the order that their op wants; other values
   are moved where they lie in another. */

static gcp_op_opts gcpi_onnx_opts(const gcpi_onnx *m)
{
    gcp_op_opts o;
    o.at = m->at;
    o.name = NULL;
    return o;
}
/* A shape as the user would write it. */
static gcp_shape gcpi_onnx_rank(gcp_shape s)
{
    if (s.d[0] == 1 && s.d[1] == 1 && s.d[2] == 1) return gcpi_raw(1, s.d[3], 0, 0, 0);
    if (s.d[1] == 1 && s.d[2] == 1) return gcpi_raw(2, s.d[0], s.d[3], 0, 0);
    if (s.d[1] == 1) return gcpi_raw(3, s.d[0], s.d[2], s.d[3], 0);
    return gcpi_raw(4, s.d[0], s.d[1], s.d[2], s.d[3]);
}
static gcp_tensor gcpi_onnx_reshape(gcpi_onnx *m, gcp_tensor x, gcp_shape s)
{
    if (gcp_is_nil(x) || gcpi_same_shape(gcp_shape_of(x), s)) return x;
    return gcp_reshape_at(x, gcpi_onnx_rank(s), gcpi_onnx_opts(m));
}

/* ---- moving ---- */

/* Two blocks of memory change places: those that begin at j and k, with `length` factors from k on. */
static gcp_tensor gcpi_onnx_swap(gcpi_onnx *m, gcp_tensor x, gcpi_onnx_order *o, int j, int k, int length)
{
    int moved[GCPI_FACTORS];
    const int a = (int)gcpi_onnx_order_elements(o, 0, j), b = (int)gcpi_onnx_order_elements(o, j, k),
              c = (int)gcpi_onnx_order_elements(o, k, k + length),
              d = (int)gcpi_onnx_order_elements(o, k + length, o->count);
    x = gcpi_onnx_reshape(m, x, gcpi_raw(4, a, b, c, d));
    x = gcp_transpose_at(x, 0, 2, 1, 3, gcpi_onnx_opts(m));
    memcpy(moved, o->memory + k, (size_t)length * sizeof *moved);
    memmove(o->memory + j + length, o->memory + j, (size_t)(k - j) * sizeof *moved);
    memcpy(o->memory + j, moved, (size_t)length * sizeof *moved);
    return x;
}
/* Blocks of memory that stay together on the way to want. Returns how many; first[b]: where block b begins in want. */
static int gcpi_onnx_order_blocks(const gcpi_onnx_order *o, const int *want, int *first)
{
    int count = 0;
    for (int j = 0; j < o->count; j++)
        if (!j || gcpi_onnx_order_place(o, want[j]) != gcpi_onnx_order_place(o, want[j - 1]) + 1) first[count++] = j;
    first[count] = o->count;
    return count;
}
static void gcpi_onnx_moved(const gcpi_onnx *m, const gcpi_onnx_value *v)
{
    char name[80];
    if (m->report.write)
        gcpi_say(m->report, "moved: the %td elements of '%s', for an op that wants them in another order\n",
                 gcpi_onnx_elements(v), gcpi_excerpt_text(v->name, name, sizeof name));
}
/* All at once where four axes are enough, else a swap after the other. */
static gcp_tensor gcpi_onnx_move(gcpi_onnx *m, gcp_tensor x, gcpi_onnx_order *o, const int *want)
{
    int first[GCPI_FACTORS + 1], from[4] = { 0 }, rank[4], size[4] = { 1, 1, 1, 1 };
    const int blocks = gcpi_onnx_order_blocks(o, want, first);
    if (blocks <= 1) return x;
    for (int b = 0; b < blocks && blocks <= 4; b++) {
        from[b] = gcpi_onnx_order_place(o, want[first[b]]);
        rank[b] = 0;
        for (int c = 0; c < blocks; c++) rank[b] += gcpi_onnx_order_place(o, want[first[c]]) < from[b];
        for (int j = first[b]; j < first[b + 1]; j++) size[rank[b]] *= o->size[want[j]];
    }
    if (blocks <= 4) {
        for (int b = blocks; b < 4; b++) rank[b] = b;
        x = gcpi_onnx_reshape(m, x, gcpi_raw(4, size[0], size[1], size[2], size[3]));
        x = gcp_transpose_at(x, rank[0], rank[1], rank[2], rank[3], gcpi_onnx_opts(m));
        memcpy(o->memory, want, (size_t)o->count * sizeof *want);
        return x;
    }
    for (int j = 0; j < o->count; j++) {
        const int k = gcpi_onnx_order_place(o, want[j]);
        int length = 1;
        while (k + length < o->count && j + length < o->count && o->memory[k + length] == want[j + length]) length++;
        if (k != j) x = gcpi_onnx_swap(m, x, o, j, k, length);
    }
    return x;
}

/* ---- weights ---- */

/* The name of a parameter: the initialiser's, in which what gcp does not allow in names became '_'. A second one that
   would be the same ends in _2, a third one in _3. */
static void gcpi_onnx_plain_name(gcpi_excerpt name, char *text, size_t size)
{
    gcpi_excerpt_text(name, text, size);
    for (char *c = text; *c; c++)
        if (strchr(" /#[*?", *c)) *c = '_';
    if (!*text) snprintf(text, size, "_");
}
static void gcpi_onnx_free_name(gcp_tape *t, gcpi_excerpt name, char *text, size_t size)
{
    gcpi_onnx_plain_name(name, text, size);
    const size_t length = GCPI_MIN(strlen(text), size - 12); /* room for any number */
    for (int i = 2; gcpi_name_find(t, 0, text, gcpi_name_hash(0, text)); i++)
        snprintf(text + length, size - length, "_%d", i);
}
/* Where two orders of the same elements have boundaries in the file, both get them. The file's order is that of memory,
   or, of a weight's order, that of the factors (weight 1). 0: they do not nest. */
static int gcpi_onnx_order_cut(gcpi_onnx_order *o, int weight,
                               ptrdiff_t step) /* a boundary before every `step` elements */
{
    ptrdiff_t below = 1;
    for (int j = o->count - 1; j >= 0; j--) {
        const int f = weight ? j : o->memory[j], size = o->size[f];
        if (step > below && step < below * size)
            return step % below == 0 && size % (step / below) == 0 &&
                   gcpi_onnx_order_split(o, f, size / (int)(step / below));
        below *= size;
    }
    return 1;
}
static int gcpi_onnx_order_refine(gcpi_onnx_order *o, int weight, const gcpi_onnx_order *by)
{
    ptrdiff_t step = 1;
    for (int j = by->count - 1; j > 0; j--)
        if (!gcpi_onnx_order_cut(o, weight, step *= by->size[weight ? by->memory[j] : j])) return 0;
    return 1;
}
/* A weight's order: its factors in the file's order, and want in terms of them. o: of a value whose memory is the
   file's. */
static gcpi_onnx_order gcpi_onnx_file_order(const gcpi_onnx_order *o, const int *want)
{
    gcpi_onnx_order r;
    memset(&r, 0, sizeof r);
    r.rank = 1;
    r.d[0] = 1;
    r.count = o->count;
    for (int j = 0; j < o->count; j++) {
        r.size[j] = o->size[o->memory[j]];
        r.memory[j] = gcpi_onnx_order_place(o, want[j]);
        r.d[0] *= r.size[j];
    }
    gcpi_onnx_order_tidy(&r, 1);
    return r;
}
static gcpi_onnx_weight *gcpi_onnx_weight_of(gcpi_onnx *m, int source)
{
    for (int i = 0; i < m->weight_count; i++)
        if (m->weights[i].source == source) return &m->weights[i];
    return NULL;
}
/* A new parameter for a source. It is the tape's, whatever segment is open. */
static gcp_tensor gcpi_onnx_parameter(gcpi_onnx *m, int source, const gcpi_onnx_order *order, gcp_shape shape)
{
    char name[200], path[204];
    gcp_param_opts o = GCP_OPTS(gcp_param_opts, );
    const int constant = source < 0 || source >= m->data_count || !gcpi_onnx_trains(m, source);
    gcpi_excerpt text = source < 0             ? gcpi_excerpt_of("number", 6)
                      : source < m->data_count ? m->data[source].name
                                               : m->values[source - m->data_count].name;
    if (m->weight_count == m->weight_capacity) {
        gcpi_fail(m->tape, GCP_E_CAPACITY, m->at, m->call, "more than %d weights and constants", m->weight_capacity);
        return gcpi_nil(m->tape);
    }
    gcpi_onnx_free_name(m->tape, text, name, sizeof name);
    snprintf(path, sizeof path, "/%s", name);
    o.at = m->at;
    gcp_tensor x = gcp_param_at(m->tape, path, gcpi_onnx_rank(shape), o);
    if (gcp_is_nil(x)) return x;
    gcpi_onnx_weight *w = &m->weights[m->weight_count++];
    w->source = source;
    w->order = *order;
    w->tensor = x;
    return constant ? gcp_freeze_at(x, m->at) : x;
}
/* A number as a tensor of one element, where an op has no option for it. */
static gcp_tensor gcpi_onnx_number_tensor(gcpi_onnx *m, double number)
{
    gcpi_onnx_order none;
    gcpi_onnx_order_set(&none, 0, NULL);
    const gcp_tensor x = gcpi_onnx_parameter(m, -1, &none, gcpi_raw(4, 1, 1, 1, 1));
    if (!gcp_is_nil(x)) m->weights[m->weight_count - 1].number = number;
    return x;
}
/* A weight or constant that has its parameter already is a value like others. */
static void gcpi_onnx_bind(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const gcpi_onnx_weight *w = v->source < 0 ? NULL : gcpi_onnx_weight_of(m, v->source);
    int file[GCPI_FACTORS];
    char name[80];
    if (v->source < 0 && gcp_is_nil(v->tensor)) {
        gcpi_fail(m->tape, GCP_E_DTYPE, m->at, m->call, "'%s' is of %s; floats are allowed there",
                  gcpi_excerpt_text(v->name, name, sizeof name), gcpi_onnx_type_name(v->type));
        gcpi_onnx_order_set(&v->order, v->rank, v->d);
    }
    if (!w) return;
    if (gcpi_get(w->tensor)->kind == GCPI_STATISTIC)
        gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call, "'%s' is a running statistic, and is read as a weight, too",
                  gcpi_excerpt_text(v->name, name, sizeof name));
    gcpi_onnx_order lies = w->order;
    if (!gcpi_onnx_order_refine(&v->order, 0, &lies) || !gcpi_onnx_order_refine(&lies, 1, &v->order))
        gcpi_fail(m->tape, GCP_E_SHAPE, m->at, m->call, "a weight is read in two shapes that do not nest");
    memcpy(file, v->order.memory, sizeof file);
    for (int j = 0; j < lies.count && !m->tape->code; j++) v->order.memory[j] = file[lies.memory[j]];
    v->tensor = w->tensor;
    v->source = -1;
}

/* ---- a value as an op wants it ---- */

/* v, bound, with its factors in the order of `want`, and this shape. A weight is made so. What was moved is kept beside
   v for the next that asks. */
static gcp_tensor gcpi_onnx_arranged(gcpi_onnx *m, gcpi_onnx_value *v, const int *want, gcp_shape shape)
{
    if (v->source >= 0) {
        const gcpi_onnx_order order = gcpi_onnx_file_order(&v->order, want);
        v->tensor = gcpi_onnx_parameter(m, v->source, &order, shape);
        memcpy(v->order.memory, want, (size_t)v->order.count * sizeof *want);
        v->source = -1;
    }
    if (gcpi_onnx_order_is(&v->order, want)) return gcpi_onnx_reshape(m, v->tensor, shape);
    if (gcp_is_nil(v->other) || !gcpi_onnx_order_is(&v->other_order, want)) {
        v->other_order = v->order;
        v->other = gcpi_onnx_move(m, v->tensor, &v->other_order, want);
        gcpi_onnx_moved(m, v);
    }
    return gcpi_onnx_reshape(m, v->other, shape);
}
static gcp_tensor gcpi_onnx_get(gcpi_onnx *m, gcpi_onnx_value *v, const char *layout)
{
    int want[GCPI_FACTORS];
    gcpi_onnx_bind(m, v);
    gcpi_layout_factors(&v->order, layout, want);
    return gcpi_onnx_arranged(m, v, want, gcpi_layout_shape(&v->order, layout));
}
/* A value as gcp has it: an image channels last. */
static gcp_tensor gcpi_onnx_usual(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const char *layout = gcpi_layout_usual(v->rank);
    v->tensor = gcpi_onnx_get(m, v, layout);
    gcpi_onnx_order_make(&v->order, layout, v->rank, v->d);
    v->other = gcpi_nil(m->tape);
    return v->tensor;
}
/* v as it lies, or in its own order where it is a weight. */
static gcp_tensor gcpi_onnx_any(gcpi_onnx *m, gcpi_onnx_value *v)
{
    gcpi_onnx_bind(m, v);
    return v->source >= 0 ? gcpi_onnx_get(m, v, gcpi_layout_plain(v->rank)) : v->tensor;
}
/* A shape of as many elements, whose last size is `last`; sizes of x that stay whole are kept. */
static gcp_shape gcpi_onnx_rows_shape(gcp_tensor x, ptrdiff_t last)
{
    gcp_shape s = gcp_shape_of(x), r = gcpi_raw(4, 1, 1, 1, (int)last);
    if (gcp_is_nil(x)) return r;
    ptrdiff_t rest = (ptrdiff_t)gcpi_count(s) / last;
    for (int i = 0; i < 3 && rest % s.d[i] == 0; i++) {
        r.d[i] = s.d[i];
        rest /= s.d[i];
    }
    r.d[2] *= (int)rest;
    return r;
}
/* The axes of v from `axis` on as channels, in the order in which they lie there, if they do; o: the order of that. */
static gcp_tensor gcpi_onnx_rows(gcpi_onnx *m, gcpi_onnx_value *v, int axis, gcpi_onnx_order *o, int *trailing)
{
    gcp_tensor x = gcpi_onnx_any(m, v);
    *o = v->order;
    *trailing = gcpi_onnx_order_trailing(o, axis);
    if (*trailing < 0) {
        int want[GCPI_FACTORS], rest = 0, count = 0;
        for (int j = 0; j < o->count; j++)
            if (o->axis[o->memory[j]] < axis) want[rest++] = o->memory[j];
        for (int f = 0; f < o->count; f++)
            if (o->axis[f] >= axis) want[rest + count++] = f;
        x = gcpi_onnx_arranged(m, v, want, gcpi_raw(4, 1, 1, (int)gcpi_onnx_order_elements(o, 0, o->count), 1));
        memcpy(o->memory, want, sizeof o->memory);
        *trailing = count;
        x = gcpi_onnx_reshape(m, x,
                              gcpi_raw(4, (int)(rest ? gcpi_onnx_order_elements(o, 0, 1) : 1), 1,
                                       (int)(rest ? gcpi_onnx_order_elements(o, 1, rest) : 1),
                                       (int)gcpi_onnx_order_elements(o, rest, o->count)));
    }
    return gcpi_onnx_reshape(m, x,
                             gcpi_onnx_rows_shape(x, gcpi_onnx_order_elements(o, o->count - *trailing, o->count)));
}
/* Cuts v's factors where those of axis k of o, v's axis `axis`, are cut. 0: they do not nest. */
static int gcpi_onnx_cut_axis(gcpi_onnx_value *v, int axis, const gcpi_onnx_order *o, int k)
{
    int f = 0, g = 0;
    while (f < v->order.count && v->order.axis[f] < axis) f++;
    while (g < o->count && o->axis[g] < k) g++;
    for (; f < v->order.count && v->order.axis[f] == axis; f++, g++) {
        if (g == o->count || o->axis[g] != k) return 0;
        if (v->order.size[f] == o->size[g]) continue;
        if (!o->size[g] || v->order.size[f] % o->size[g] || !gcpi_onnx_order_split(&v->order, f, o->size[g])) return 0;
        v->other = gcpi_nil(v->tensor.tape);
    }
    return 1;
}
/* The place of v's factor f among those of its axis, and the factor with such a place. */
static int gcpi_onnx_order_nth(const gcpi_onnx_order *o, int axis, int nth)
{
    for (int f = 0; f < o->count; f++)
        if (o->axis[f] == axis && !nth--) return f;
    return -1;
}
static int gcpi_onnx_order_rank_in_axis(const gcpi_onnx_order *o, int f)
{
    int n = 0;
    while (f > n && o->axis[f - n - 1] == o->axis[f]) n++;
    return n;
}
/* A weight of the axes from `axis` on, in the order in which they lie in rows of o: their gamma. */
static gcp_tensor gcpi_onnx_along_rows(gcpi_onnx *m, gcpi_onnx_value *v, int axis, const gcpi_onnx_order *o,
                                       int trailing)
{
    int want[GCPI_FACTORS];
    gcpi_onnx_bind(m, v);
    for (int i = 0; i < v->rank; i++)
        if (!gcpi_onnx_cut_axis(v, i, o, axis + i)) return gcpi_nil(m->tape);
    for (int j = 0; j < trailing; j++) {
        const int f = o->memory[o->count - trailing + j];
        want[j] = gcpi_onnx_order_nth(&v->order, o->axis[f] - axis, gcpi_onnx_order_rank_in_axis(o, f));
        if (want[j] < 0) return gcpi_nil(m->tape);
    }
    return gcpi_onnx_arranged(m, v, want,
                              gcpi_raw(4, 1, 1, 1, (int)gcpi_onnx_order_elements(o, o->count - trailing, o->count)));
}

/* ---- results ---- */

static int gcpi_onnx_put(gcpi_onnx *m, gcpi_onnx_node *n, int output, gcp_tensor x, const gcpi_onnx_order *o)
{
    gcpi_onnx_value *v = gcpi_onnx_out(m, n, output);
    if (gcp_is_nil(x)) return 0;
    if (!v) return 1;
    if ((ptrdiff_t)gcp_elements(x) != gcpi_onnx_elements(v) || o->rank != v->rank ||
        memcmp(o->d, v->d, (size_t)o->rank * sizeof *o->d))
        return gcpi_onnx_refuse(m, n, "its shape was foretold wrong: a mistake in gcp");
    v->tensor = x;
    v->order = *o;
    return 1;
}
/* x lies in this layout of the output's axes. */
static int gcpi_onnx_put_layout(gcpi_onnx *m, gcpi_onnx_node *n, int output, gcp_tensor x, const char *layout)
{
    const gcpi_onnx_value *v = gcpi_onnx_out(m, n, output);
    gcpi_onnx_order o;
    if (!v) return 1;
    gcpi_onnx_order_make(&o, layout, v->rank, v->d);
    return gcpi_onnx_put(m, n, output, x, &o);
}
/* A value to be changed. What x has in another order is not its own: that order's factors are x's. */
static gcpi_onnx_value gcpi_onnx_copy(const gcpi_onnx_value *x)
{
    gcpi_onnx_value v = *x;
    v.known = NULL;
    v.other = gcpi_nil(x->tensor.tape);
    return v;
}
/* x becomes a result of its own. */
static void gcpi_onnx_becomes(const gcpi_onnx *m, gcpi_onnx_value *x, gcp_tensor y)
{
    x->tensor = y;
    x->other = gcpi_nil(m->tape);
    x->source = -1;
}
/* A copy's axes in another order. */
static void gcpi_onnx_turn(gcpi_onnx_value *x, const int *axes)
{
    gcpi_onnx_order_transpose(&x->order, axes);
    memcpy(x->d, x->order.d, sizeof x->d);
}
/* An output is this value in other axes. Where one of them would be cut across, x goes into its own order first. */
static int gcpi_onnx_put_value(gcpi_onnx *m, gcpi_onnx_node *n, int output, const gcpi_onnx_value *x)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, output), plain = gcpi_onnx_copy(x);
    if (!y) return 1;
    y->order = x->order;
    if (!gcpi_onnx_order_reshape(&y->order, y->rank, y->d)) {
        gcpi_onnx_becomes(m, &plain, gcpi_onnx_get(m, &plain, gcpi_layout_plain(x->rank)));
        gcpi_onnx_order_set(&y->order, y->rank, y->d);
    }
    y->tensor = plain.tensor;
    y->source = plain.source;
    return y->source >= 0 || !gcp_is_nil(y->tensor);
}
