/* Patterns: what exporters write in pieces and gcp has as one op. A pattern belongs to its last node; what it reads is
   recorded, what lies between is not, unless something else reads it. */

typedef struct gcpi_onnx_pattern {
    const char *op;                                /* of the last node */
    int (*match)(gcpi_onnx *m, gcpi_onnx_node *n); /* fills n->part, the values that it reads, 0 behind them */
    int (*record)(gcpi_onnx *m, gcpi_onnx_node *n);
} gcpi_onnx_pattern;

/* The node that makes a value, if it is this op; else NULL. */
static gcpi_onnx_node *gcpi_onnx_maker(gcpi_onnx *m, const gcpi_onnx_value *v, const char *op)
{
    gcpi_onnx_node *n = v && v->node >= 0 ? &m->nodes[v->node] : NULL;
    return n && !n->foreign && gcpi_excerpt_is(n->op, op) ? n : NULL;
}
static int gcpi_onnx_index(const gcpi_onnx *m, const gcpi_onnx_value *v) { return (int)(v - m->values); }

/* x times f(x): which of a Mul's inputs is x, where the other is op of it. NULL: neither. */
static gcpi_onnx_value *gcpi_onnx_times_own(gcpi_onnx *m, gcpi_onnx_node *n, const char *op)
{
    for (int i = 0; i < 2; i++) {
        gcpi_onnx_value *x = gcpi_onnx_in(m, n, i);
        gcpi_onnx_node *f = gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 1 - i), op);
        if (f && gcpi_onnx_in(m, f, 0) == x) return x;
    }
    return NULL;
}
static int gcpi_match_silu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_times_own(m, n, "Sigmoid");
    if (x) n->part[0] = gcpi_onnx_index(m, x);
    return x != NULL;
}
static int gcpi_match_hard_swish(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_times_own(m, n, "HardSigmoid");
    const gcpi_onnx_node *f =
        x ? gcpi_onnx_maker(m, gcpi_onnx_in(m, n, gcpi_onnx_in(m, n, 0) == x), "HardSigmoid") : NULL;
    if (!f || fabs(gcpi_onnx_float(f, "alpha", 0.2) - 1.0 / 6) > 1e-6 || gcpi_onnx_float(f, "beta", 0.5) != 0.5)
        return 0;
    n->part[0] = gcpi_onnx_index(m, x);
    return 1;
}
static int gcpi_record_silu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    return gcpi_onnx_put(m, n, 0, gcp_silu_at(gcpi_onnx_any(m, x), gcpi_onnx_opts(m)), &x->order);
}
static int gcpi_record_hard_swish(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    return gcpi_onnx_put(m, n, 0, gcp_hard_swish_at(gcpi_onnx_any(m, x), gcpi_onnx_opts(m)), &x->order);
}

/* v without the Mul or Div by a number that made it; *scale is multiplied by that. */
static gcpi_onnx_value *gcpi_onnx_unscaled(gcpi_onnx *m, gcpi_onnx_value *v, double *scale)
{
    gcpi_onnx_node *times = gcpi_onnx_maker(m, v, "Mul"), *over = gcpi_onnx_maker(m, v, "Div");
    double by;
    for (int i = 0; times && i < 2; i++)
        if (gcpi_onnx_number(m, gcpi_onnx_in(m, times, i), &by)) {
            *scale *= by;
            return gcpi_onnx_in(m, times, 1 - i);
        }
    if (over && gcpi_onnx_number(m, gcpi_onnx_in(m, over, 1), &by) && by != 0) {
        *scale /= by;
        return gcpi_onnx_in(m, over, 0);
    }
    return v;
}
/* v without what changes nothing: Identity, a cast among floats, a Dropout that drops nothing. */
static gcpi_onnx_value *gcpi_onnx_bare(gcpi_onnx *m, gcpi_onnx_value *v)
{
    for (gcpi_onnx_node *n; v && v->node >= 0; v = gcpi_onnx_in(m, n, 0)) {
        double rate;
        n = &m->nodes[v->node];
        const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
        rate = gcpi_onnx_float(n, "ratio", 0.5);
        gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &rate);
        const int cast = gcpi_excerpt_is(n->op, "Cast") || gcpi_excerpt_is(n->op, "CastLike");
        if (!gcpi_excerpt_is(n->op, "Identity") &&
            !(cast && x && gcpi_onnx_is_real(x->type) && gcpi_onnx_is_real(v->type)) &&
            !(gcpi_excerpt_is(n->op, "Dropout") && rate == 0))
            return v;
    }
    return v;
}
/* A mask of scores (samples or 1, heads or 1, rows, keys), of two to four axes. */
static int gcpi_onnx_is_bias(const gcpi_onnx_value *b, const gcpi_onnx_value *scores)
{
    if (!b || !b->shaped || b->rank < 2 || b->rank > scores->rank || scores->rank != 4) return 0;
    for (int i = 1; i <= b->rank; i++) {
        const int size = b->d[b->rank - i], full = scores->d[scores->rank - i];
        if (size != full && (size != 1 || i < 3)) return 0;
    }
    return 1;
}
/* softmax(scale q k' + bias) v: a MatMul whose left operand is a Softmax of scores. */
static int gcpi_match_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 1), *bias = NULL;
    gcpi_onnx_node *softmax = gcpi_onnx_maker(m, gcpi_onnx_bare(m, gcpi_onnx_in(m, n, 0)), "Softmax");
    gcpi_onnx_value *scores = softmax ? gcpi_onnx_bare(m, gcpi_onnx_in(m, softmax, 0)) : NULL;
    double scale = 1;
    if (!scores || (v->rank != 4 && v->rank != 3) || scores->rank != v->rank) return 0;
    if (gcpi_onnx_axis(gcpi_onnx_integer(softmax, "axis", m->opset < 13 ? 1 : -1), v->rank) != v->rank - 1) return 0;
    gcpi_onnx_node *add = gcpi_onnx_maker(m, scores, "Add");
    for (int i = 0; add && i < 2 && !bias; i++)
        if (gcpi_onnx_is_bias(gcpi_onnx_in(m, add, i), gcpi_onnx_in(m, add, 1 - i)) &&
            gcpi_onnx_maker(m, gcpi_onnx_unscaled(m, gcpi_onnx_in(m, add, 1 - i), &scale), "MatMul")) {
            bias = gcpi_onnx_in(m, add, i);
            scale = 1;
            scores = gcpi_onnx_in(m, add, 1 - i);
        } else scale = 1;
    gcpi_onnx_node *product = gcpi_onnx_maker(m, gcpi_onnx_unscaled(m, scores, &scale), "MatMul");
    if (!product) return 0;
    gcpi_onnx_value *q = gcpi_onnx_unscaled(m, gcpi_onnx_in(m, product, 0), &scale),
                    *k = gcpi_onnx_unscaled(m, gcpi_onnx_in(m, product, 1), &scale);
    if (!q || !k || q->rank != v->rank || k->rank != v->rank || scale <= 0) return 0;
    for (int i = 0; i < v->rank - 2; i++)
        if (q->d[i] != k->d[i] || q->d[i] != v->d[i]) return 0;
    n->part[0] = gcpi_onnx_index(m, q);
    n->part[1] = gcpi_onnx_index(m, k);
    n->part[2] = gcpi_onnx_index(m, v);
    n->part[3] = bias ? gcpi_onnx_index(m, bias) : 0;
    n->number[0] = scale;
    return 1;
}
static int gcpi_record_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    static const int turn[4] = { 0, 1, 3, 2 };
    gcpi_onnx_value x[3];
    gcpi_onnx_attend a;
    const int rank = m->values[n->part[0]].rank;
    for (int i = 0; i < 3; i++) {
        gcpi_onnx_any(m, &m->values[n->part[i]]);
        x[i] = gcpi_onnx_copy(&m->values[n->part[i]]);
        const int one_head[4] = { x[i].d[0], 1, x[i].d[1], x[i].d[2] };
        if (rank == 3) gcpi_onnx_order_reshape(&x[i].order, 4, one_head);
        if (i == 1) gcpi_onnx_order_transpose(&x[i].order, turn);
        x[i].rank = 4;
        memcpy(x[i].d, x[i].order.d, sizeof x[i].d);
    }
    a.q = &x[0];
    a.k = &x[1];
    a.v = &x[2];
    a.bias = n->part[3] ? &m->values[n->part[3]] : NULL;
    a.causal = 0;
    a.scale = n->number[0];
    return gcpi_onnx_put_layout(m, n, 0, gcpi_onnx_attended(m, &a), rank == 4 ? "0||2|13" : "0||1|2");
}

static const gcpi_onnx_pattern gcpi_onnx_patterns[] = {
    { "Mul", gcpi_match_silu, gcpi_record_silu },
    { "Mul", gcpi_match_hard_swish, gcpi_record_hard_swish },
    { "MatMul", gcpi_match_attention, gcpi_record_attention },
};
