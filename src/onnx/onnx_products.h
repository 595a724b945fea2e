/* Products of matrices, and attention. */

/* x's last axis, as it lies, times a weight that is no tensor yet: (in, out), or (out, in) where it is turned. */
static gcp_tensor gcpi_onnx_linear(gcpi_onnx *m, gcpi_onnx_value *x, gcpi_onnx_value *w, int turned, gcp_tensor bias,
                                   gcpi_onnx_order *o)
{
    int want[GCPI_FACTORS], trailing, count = 0;
    const int in = turned ? 1 : 0;
    const gcp_tensor rows = gcpi_onnx_rows(m, x, x->rank - 1, o, &trailing);
    GCPI_ONNX_OPTS(linear, opts);
    gcpi_onnx_bind(m, w);
    if (!gcpi_onnx_cut_axis(w, in, o, x->rank - 1)) return gcpi_nil(m->tape);
    for (int f = 0; f < w->order.count; f++)
        if (w->order.axis[f] == !in) want[count++] = f;
    for (int j = o->count - trailing; j < o->count; j++)
        want[count++] = gcpi_onnx_order_nth(&w->order, in, gcpi_onnx_order_rank_in_axis(o, o->memory[j]));
    opts.no_bias = gcp_is_nil(bias);
    return gcp_linear_op_at(rows, gcpi_onnx_arranged(m, w, want, gcpi_raw(4, w->d[!in], 1, 1, w->d[in])), bias, opts);
}
/* The order of rows whose last axis has become this long. */
static void gcpi_onnx_order_last(gcpi_onnx_order *o, int size)
{
    const int axis = o->rank - 1;
    while (o->count && o->axis[o->count - 1] == axis) gcpi_onnx_order_remove(o, o->count - 1);
    o->d[axis] = size;
    if (size == 1) return;
    o->size[o->count] = size;
    o->axis[o->count] = axis;
    o->memory[o->count] = o->count;
    o->count++;
}
static int gcpi_onnx_gemm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value a = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0)), b = gcpi_onnx_copy(gcpi_onnx_in(m, n, 1)),
                    *c = gcpi_onnx_in(m, n, 2), *y = gcpi_onnx_out(m, n, 0), product = *y;
    static const int turn[2] = { 1, 0 };
    const double alpha = gcpi_onnx_float(n, "alpha", 1), beta = gcpi_onnx_float(n, "beta", 1);
    gcpi_onnx_pair p;
    if (gcpi_onnx_integer(n, "transA", 0)) gcpi_onnx_turn(&a, turn);
    const int plain = c && c->rank == 1 && c->d[0] == y->d[1] && alpha == 1 && beta == 1;
    const gcp_tensor bias = plain ? gcpi_onnx_channels(m, c) : gcpi_nil(NULL);
    product.order.count = 0;
    product.tensor = gcpi_onnx_linear(m, &a, &b, gcpi_onnx_integer(n, "transB", 0) != 0, bias, &product.order);
    if (gcp_is_nil(product.tensor)) return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    gcpi_onnx_order_last(&product.order, y->d[1]);
    if (!c || plain || beta == 0)
        return gcpi_onnx_put(m, n, 0, gcpi_onnx_scaled(m, product.tensor, alpha), &product.order);
    gcpi_onnx_becomes(m, &product, gcpi_onnx_scaled(m, product.tensor, alpha));
    gcpi_onnx_value sum = gcpi_onnx_copy(c);
    if (beta != 1) {
        gcpi_onnx_becomes(m, &sum, gcpi_onnx_scaled(m, gcpi_onnx_any(m, c), beta));
        sum.order = c->order;
    }
    if (!gcpi_onnx_pair_of(m, n, &product, &sum, y, &p)) return 0;
    return gcpi_onnx_put(m, n, 0, gcp_add_at(p.a, p.b, gcpi_onnx_opts(m)), &p.order);
}
/* Layouts of operands of many matrices, in a product of so many axes: batches first, then the two of a matrix, which
   may be turned. */
static const char *gcpi_onnx_matrices(int rank, int of, int turned)
{
    static const char *const layouts[2][4] = { { "||0|1", "0||1|2", "0|1|2|3", "01|2|3|4" },
                                               { "||1|0", "0||2|1", "0|1|3|2", "01|2|4|3" } };
    if (rank == 3 && of == 4) return turned ? "|0|2|1" : "|0|1|2";
    return rank < 6 ? layouts[turned][rank - 2] : "";
}
/* A tensor of batches, also where sizes of 1 make it look like a matrix. */
static gcp_tensor gcpi_onnx_batches(gcpi_onnx *m, gcp_tensor x)
{
    const gcp_shape s = gcp_shape_of(x);
    if (gcp_is_nil(x) || s.rank > 2) return x;
    return gcp_reshape_at(x, gcpi_raw(4, s.d[0], s.d[1], s.d[2], s.d[3]), gcpi_onnx_opts(m));
}
/* Whether each batch of one is a batch of the other, or one of them is a single matrix. */
static int gcpi_onnx_batches_fit(const gcpi_onnx_value *a, const gcpi_onnx_value *b)
{
    const int rank = GCPI_MAX(a->rank, b->rank);
    int same = 1;
    for (int i = 3; i <= rank; i++)
        same &= (i > a->rank ? 1 : a->d[a->rank - i]) == (i > b->rank ? 1 : b->d[b->rank - i]);
    return same || gcpi_onnx_elements(a) == (ptrdiff_t)a->d[a->rank - 2] * a->d[a->rank - 1] ||
           gcpi_onnx_elements(b) == (ptrdiff_t)b->d[b->rank - 2] * b->d[b->rank - 1];
}
/* A vector is a matrix of one row, or of one column. */
static gcpi_onnx_value gcpi_onnx_matrix(const gcpi_onnx_value *x, int column)
{
    gcpi_onnx_value v = gcpi_onnx_copy(x);
    if (x->rank > 1) return v;
    v.rank = 2;
    v.d[column ? 0 : 1] = x->d[0];
    v.d[column ? 1 : 0] = 1;
    gcpi_onnx_order_reshape(&v.order, 2, v.d);
    return v;
}
/* x's rows times a matrix, and a bias; nil: none. */
static int gcpi_onnx_product(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *w, gcp_tensor bias)
{
    gcpi_onnx_value y = gcpi_onnx_copy(x);
    y.source = -1;
    y.tensor = gcpi_onnx_linear(m, x, w, 0, bias, &y.order);
    if (gcp_is_nil(y.tensor)) return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    gcpi_onnx_order_last(&y.order, w->d[1]);
    return gcpi_onnx_put_value(m, n, 0, &y);
}
static int gcpi_onnx_matmul(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *left = gcpi_onnx_in(m, n, 0), *right = gcpi_onnx_in(m, n, 1);
    gcpi_onnx_value row = gcpi_onnx_matrix(left, 0), column = gcpi_onnx_matrix(right, 1), y = row;
    gcpi_onnx_value *a = left->rank == 1 ? &row : left, *b = right->rank == 1 ? &column : right;
    const int rank = GCPI_MAX(a->rank, b->rank);
    GCPI_ONNX_OPTS(matmul, opts);
    y.source = -1;
    if (b->rank == 2) return gcpi_onnx_product(m, n, a, b, gcpi_nil(NULL));
    if (rank > 5 || (rank == 5 && (a->rank != 5 || b->rank != 5)) || !gcpi_onnx_batches_fit(a, b))
        return gcpi_onnx_refuse(m, n, "operands of %d and %d axes, or batches that are spread over each other", a->rank,
                                b->rank);
    gcpi_onnx_bind(m, b);
    const int last = b->order.count ? b->order.axis[b->order.memory[b->order.count - 1]] : 0;
    opts.transpose_b = b->source < 0 && last == b->rank - 2; /* as it lies */
    const gcp_tensor x = gcpi_onnx_batches(m, gcpi_onnx_get(m, a, gcpi_onnx_matrices(a->rank, rank, 0))),
                     z = gcpi_onnx_batches(m, gcpi_onnx_get(m, b, gcpi_onnx_matrices(b->rank, rank, opts.transpose_b)));
    const gcpi_onnx_value *large = a->rank == rank ? a : b;
    for (int i = 0; i < rank; i++)
        y.d[i] = i == rank - 2 ? a->d[a->rank - 2] : i == rank - 1 ? b->d[b->rank - 1] : large->d[i];
    for (int i = 0; i < rank - 2; i++)
        if (y.d[i] == 1 && a->rank == rank && b->rank == rank) y.d[i] = GCPI_MAX(a->d[i], b->d[i]);
    y.tensor = gcp_matmul_at(x, z, opts);
    y.rank = rank;
    gcpi_onnx_order_make(&y.order, gcpi_onnx_matrices(rank, rank, 0), rank, y.d);
    return !gcp_is_nil(y.tensor) && gcpi_onnx_put_value(m, n, 0, &y);
}

/* ---- attention ---- */

/* q, k, v (samples, heads, tokens, channels); bias added to scores, or NULL. */
typedef struct gcpi_onnx_attend {
    gcpi_onnx_value *q, *k, *v, *bias;
    int causal;
    double scale;
} gcpi_onnx_attend;

static gcp_tensor gcpi_onnx_bias_tensor(gcpi_onnx *m, gcpi_onnx_value *b, int samples, int heads, int rows, int keys)
{
    const gcp_tensor x = gcpi_onnx_get(m, b, b->rank == 2 ? "||0|1" : b->rank == 3 ? "|0|1|2" : "0|1|2|3");
    const gcp_shape s = gcp_shape_of(x), full = gcpi_raw(4, s.d[0] == 1 ? 1 : samples, heads, rows, keys);
    return gcp_is_nil(x) || gcpi_same_shape(s, full) ? x : gcp_expand_at(x, full, gcpi_onnx_opts(m));
}
static gcp_tensor gcpi_onnx_attended(gcpi_onnx *m, const gcpi_onnx_attend *a)
{
    GCPI_ONNX_OPTS(attention, o);
    o.heads = a->q->d[1];
    o.causal = a->causal;
    o.scale = a->scale;
    if (a->bias) o.bias = gcpi_onnx_bias_tensor(m, a->bias, a->q->d[0], o.heads, a->q->d[2], a->k->d[2]);
    const gcp_tensor q = gcpi_onnx_get(m, a->q, "0||2|13"), k = gcpi_onnx_get(m, a->k, "0||2|13"),
                     v = gcpi_onnx_get(m, a->v, "0||2|13");
    return gcp_attention_at(q, k, v, o);
}
/* The op of opset 23. */
static int gcpi_onnx_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    static const int heads_first[4] = { 0, 2, 1, 3 };
    gcpi_onnx_value x[3], *bias = gcpi_onnx_in(m, n, 3);
    gcpi_onnx_attend a;
    const int rank = gcpi_onnx_in(m, n, 0)->rank;
    for (int i = 4; i < n->inputs; i++)
        if (gcpi_onnx_in(m, n, i)) return gcpi_onnx_refuse(m, n, "past keys, or lengths");
    for (int i = 1; i < n->outputs; i++)
        if (gcpi_onnx_out(m, n, i)) return gcpi_onnx_refuse(m, n, "a second output");
    if (gcpi_onnx_float(n, "softcap", 0) != 0) return gcpi_onnx_refuse(m, n, "softcap");
    if (bias && !gcpi_onnx_is_real(bias->type)) return gcpi_onnx_refuse(m, n, "a mask that is no float");
    for (int i = 0; i < 3; i++) {
        x[i] = gcpi_onnx_copy(gcpi_onnx_in(m, n, i));
        const int heads = (int)gcpi_onnx_integer(n, i ? "kv_num_heads" : "q_num_heads", 1);
        int d[4] = { x[i].d[0], x[i].d[1], heads, x[i].d[2] / heads };
        if (rank == 4) continue;
        if (x[i].d[2] % heads || !gcpi_onnx_order_reshape(&x[i].order, 4, d))
            return gcpi_onnx_refuse(m, n, "heads that do not fit");
        gcpi_onnx_turn(&x[i], heads_first);
        x[i].rank = 4;
    }
    a.q = &x[0];
    a.k = &x[1];
    a.v = &x[2];
    a.bias = bias;
    a.causal = gcpi_onnx_integer(n, "is_causal", 0) != 0;
    a.scale = gcpi_onnx_float(n, "scale", 0);
    /* row i sees keys up to i, so those behind the last row serve nobody */
    for (int i = 1; i < 3 && a.causal && x[0].d[2] < x[i].d[2]; i++) {
        gcpi_onnx_value all = x[i];
        if (!gcpi_onnx_cut(m, &all, 2, 0, x[0].d[2], 1, &x[i])) return 0;
    }
    if (a.causal && x[0].d[2] > x[1].d[2]) return gcpi_onnx_refuse(m, n, "is_causal with more rows than keys");
    if (a.causal && a.bias && a.bias->d[a.bias->rank - 1] != x[1].d[2])
        return gcpi_onnx_refuse(m, n, "is_causal with a mask of more keys than rows");
    return gcpi_onnx_put_layout(m, n, 0, gcpi_onnx_attended(m, &a), rank == 4 ? "0||2|13" : "0||1|2");
}
