/* Patterns: what exporters write in pieces and gcp has as one op. A pattern belongs to its last node; what it reads is
   recorded, what lies between is not, unless something else reads it. */

typedef struct gcpi_onnx_pattern {
    const char *op;                                /* of the last node */
    int (*match)(gcpi_onnx *m, gcpi_onnx_node *n); /* fills n->part, the values that it reads, 0 behind them */
    int (*record)(gcpi_onnx *m, gcpi_onnx_node *n);
} gcpi_onnx_pattern;

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

/* ---- norms in pieces, and a product's bias ---- */

/* Which input of a sum or product is a weight of the last axis alone; -1: none. */
static int gcpi_onnx_affine(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    for (int i = 0; n && i < 2; i++) {
        const gcpi_onnx_value *w = gcpi_onnx_in(m, n, i), *x = gcpi_onnx_in(m, n, 1 - i);
        if (w && x && w->source >= 0 && gcpi_onnx_is_weight(m, w) && w->rank == 1 && x->rank > 1 &&
            w->d[0] == x->d[x->rank - 1])
            return i;
    }
    return -1;
}
/* A weight added to rows times a weight, which nothing else reads. */
static int gcpi_match_bias(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int bias = gcpi_onnx_affine(m, n);
    gcpi_onnx_value *product = bias < 0 ? NULL : gcpi_onnx_in(m, n, 1 - bias);
    const gcpi_onnx_node *matmul = gcpi_onnx_maker(m, product, "MatMul");
    gcpi_onnx_value *w = matmul ? gcpi_onnx_in(m, matmul, 1) : NULL;
    if (!w || product->needed || w->rank != 2 || gcpi_onnx_in(m, matmul, 0)->rank < 2) return 0;
    n->part[0] = gcpi_onnx_index(m, gcpi_onnx_in(m, matmul, 0));
    n->part[1] = gcpi_onnx_index(m, w);
    n->part[2] = gcpi_onnx_index(m, gcpi_onnx_in(m, n, bias));
    return 1;
}
static int gcpi_record_bias(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value w = gcpi_onnx_copy(&m->values[n->part[1]]);
    return gcpi_onnx_product(m, n, &m->values[n->part[0]], &w, gcpi_onnx_channels(m, &m->values[n->part[2]]));
}
/* x below 0 times a weight, else x: what PRelu is expanded to. */
static int gcpi_match_prelu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_node *less = gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 0), "Less"),
                         *times = gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 1), "Mul");
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 2), *y = gcpi_onnx_out(m, n, 0);
    double zero;
    if (!less || !times || gcpi_onnx_in(m, less, 0) != x || !gcpi_onnx_number(m, gcpi_onnx_in(m, less, 1), &zero))
        return 0;
    const int weight = gcpi_onnx_in(m, times, 0) == x;
    if (zero != 0 || gcpi_onnx_in(m, times, !weight) != x || !gcpi_onnx_same_sizes(x, y)) return 0;
    n->part[0] = gcpi_onnx_index(m, x);
    n->part[1] = gcpi_onnx_index(m, gcpi_onnx_in(m, times, weight));
    return 1;
}
static int gcpi_record_prelu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_prelu_of(m, n, &m->values[n->part[0]], &m->values[n->part[1]]);
}
/* What v is the mean of, over its last axis, kept as a size of 1; NULL: it is none. */
static gcpi_onnx_value *gcpi_onnx_mean_of(gcpi_onnx *m, gcpi_onnx_value *v)
{
    gcpi_onnx_node *n = gcpi_onnx_maker(m, gcpi_onnx_bare(m, v), "ReduceMean");
    gcpi_onnx_value *x = n ? gcpi_onnx_in(m, n, 0) : NULL;
    int64_t axis;
    if (!x || gcpi_onnx_list(m, n, "axes", 1, &axis, 1) != 1 || !gcpi_onnx_integer(n, "keepdims", 1)) return NULL;
    return gcpi_onnx_axis(axis, x->rank) == x->rank - 1 ? gcpi_onnx_bare(m, x) : NULL;
}
static gcpi_onnx_value *gcpi_onnx_square_of(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const gcpi_onnx_node *power = gcpi_onnx_maker(m, v, "Pow"), *times = gcpi_onnx_maker(m, v, "Mul");
    double two;
    if (power && gcpi_onnx_number(m, gcpi_onnx_in(m, power, 1), &two) && two == 2)
        return gcpi_onnx_bare(m, gcpi_onnx_in(m, power, 0));
    return times && gcpi_onnx_in(m, times, 0) == gcpi_onnx_in(m, times, 1)
             ? gcpi_onnx_bare(m, gcpi_onnx_in(m, times, 0))
             : NULL;
}
/* Of a root of (mean of squares + epsilon): what is squared. NULL: v is none. */
static gcpi_onnx_value *gcpi_onnx_root_of(gcpi_onnx *m, gcpi_onnx_value *v, double *epsilon)
{
    const gcpi_onnx_node *root = gcpi_onnx_maker(m, v, "Sqrt"),
                         *sum = root ? gcpi_onnx_maker(m, gcpi_onnx_in(m, root, 0), "Add") : NULL;
    for (int i = 0; sum && i < 2; i++)
        if (gcpi_onnx_number(m, gcpi_onnx_in(m, sum, i), epsilon)) {
            gcpi_onnx_value *mean = gcpi_onnx_mean_of(m, gcpi_onnx_in(m, sum, 1 - i));
            return mean ? gcpi_onnx_square_of(m, mean) : NULL;
        }
    return NULL;
}
/* v = x over such a root, or times one over it. Returns x and fills what is squared; NULL: v is none. */
static gcpi_onnx_value *gcpi_onnx_over_root(gcpi_onnx *m, gcpi_onnx_value *v, gcpi_onnx_value **squared,
                                            double *epsilon)
{
    const gcpi_onnx_node *over = gcpi_onnx_maker(m, v, "Div"), *times = gcpi_onnx_maker(m, v, "Mul");
    if (over && (*squared = gcpi_onnx_root_of(m, gcpi_onnx_in(m, over, 1), epsilon)) != NULL)
        return gcpi_onnx_bare(m, gcpi_onnx_in(m, over, 0));
    for (int i = 0; times && i < 2; i++) {
        gcpi_onnx_value *factor = gcpi_onnx_in(m, times, i);
        const gcpi_onnx_node *one = gcpi_onnx_maker(m, factor, "Reciprocal"), *part = gcpi_onnx_maker(m, factor, "Div");
        double number = 0;
        if (part && gcpi_onnx_number(m, gcpi_onnx_in(m, part, 0), &number) && number != 1) part = NULL;
        if (!one && (!part || number != 1)) continue;
        *squared = gcpi_onnx_root_of(m, one ? gcpi_onnx_in(m, one, 0) : gcpi_onnx_in(m, part, 1), epsilon);
        if (*squared) return gcpi_onnx_bare(m, gcpi_onnx_in(m, times, 1 - i));
    }
    return NULL;
}
/* x where v is x minus its mean; else NULL. */
static gcpi_onnx_value *gcpi_onnx_centred(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const gcpi_onnx_node *n = gcpi_onnx_maker(m, v, "Sub");
    gcpi_onnx_value *x = n ? gcpi_onnx_bare(m, gcpi_onnx_in(m, n, 0)) : NULL;
    return x && gcpi_onnx_mean_of(m, gcpi_onnx_in(m, n, 1)) == x ? x : NULL;
}
static int gcpi_onnx_norm_parts(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *gamma,
                                gcpi_onnx_value *beta, double epsilon)
{
    n->part[0] = gcpi_onnx_index(m, x);
    n->part[1] = gcpi_onnx_index(m, gamma);
    n->part[2] = beta ? gcpi_onnx_index(m, beta) : 0;
    n->number[0] = epsilon;
    return epsilon > 0;
}
static int gcpi_match_rms_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int weight = gcpi_onnx_affine(m, n);
    gcpi_onnx_value *squared, *x;
    double epsilon = 0;
    if (weight < 0) return 0;
    x = gcpi_onnx_over_root(m, gcpi_onnx_bare(m, gcpi_onnx_in(m, n, 1 - weight)), &squared, &epsilon);
    return x && x == squared && gcpi_onnx_norm_parts(m, n, x, gcpi_onnx_in(m, n, weight), NULL, epsilon);
}
static int gcpi_match_layer_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int shift = gcpi_onnx_affine(m, n);
    const gcpi_onnx_node *scaled = shift < 0 ? NULL : gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 1 - shift), "Mul");
    const int scale = gcpi_onnx_affine(m, scaled);
    gcpi_onnx_value *squared, *x;
    double epsilon = 0;
    if (scale < 0) return 0;
    x = gcpi_onnx_over_root(m, gcpi_onnx_bare(m, gcpi_onnx_in(m, scaled, 1 - scale)), &squared, &epsilon);
    if (!x || (x = gcpi_onnx_centred(m, x)) == NULL || gcpi_onnx_centred(m, squared) != x) return 0;
    return gcpi_onnx_norm_parts(m, n, x, gcpi_onnx_in(m, scaled, scale), gcpi_onnx_in(m, n, shift), epsilon);
}
static int gcpi_record_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    return gcpi_onnx_norm_of_rows(m, n, x, &m->values[n->part[1]], n->part[2] ? &m->values[n->part[2]] : NULL,
                                  x->rank - 1, n->number[0], !n->part[2]);
}

static const gcpi_onnx_pattern gcpi_onnx_patterns[] = {
    { "Mul", gcpi_match_curve, gcpi_record_curve },
    { "Div", gcpi_match_curve, gcpi_record_curve },
    { "Where", gcpi_match_curve, gcpi_record_curve },
    { "Where", gcpi_match_prelu, gcpi_record_prelu },
    { "Min", gcpi_match_curve, gcpi_record_curve },
    { "Max", gcpi_match_curve, gcpi_record_curve },
    { "Mul", gcpi_match_drop, gcpi_record_drop },
    { "Mul", gcpi_match_rms_norm, gcpi_record_norm },
    { "Add", gcpi_match_layer_norm, gcpi_record_norm },
    { "Add", gcpi_match_bias, gcpi_record_bias },
    { "MatMul", gcpi_match_attention, gcpi_record_attention },
};
/* The pattern that ends in this node; NULL: none. */
static const gcpi_onnx_pattern *gcpi_onnx_pattern_of(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (size_t p = 0; p < sizeof gcpi_onnx_patterns / sizeof *gcpi_onnx_patterns; p++) {
        memset(n->part, 0, sizeof n->part);
        if (gcpi_excerpt_is(n->op, gcpi_onnx_patterns[p].op) && gcpi_onnx_patterns[p].match(m, n))
            return &gcpi_onnx_patterns[p];
    }
    return NULL;
}
