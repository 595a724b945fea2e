/* Ops of elements: activations, and two operands. */

#define GCPI_ONNX_OPTS(type, o)                          \
    gcp_##type##_opts o = GCP_OPTS(gcp_##type##_opts, ); \
    o.at = m->at

/* An option whose 0 would mean its default. */
static double gcpi_onnx_exactly(double x) { return x == 0 ? GCP_ZERO : x; }

/* y is f of each element of input 0. */
static int gcpi_onnx_put_like(gcpi_onnx *m, gcpi_onnx_node *n, gcp_tensor y)
{
    return gcpi_onnx_put(m, n, 0, y, &gcpi_onnx_in(m, n, 0)->order);
}
static int gcpi_onnx_plain(gcpi_onnx *m, gcpi_onnx_node *n)
{
    static const struct {
        const char *op;
        gcp_tensor (*record)(gcp_tensor x, gcp_op_opts o);
    } ops[] = { { "Relu", gcp_relu_at },
                { "Sigmoid", gcp_sigmoid_at },
                { "Tanh", gcp_tanh_at },
                { "Exp", gcp_exp_at },
                { "Log", gcp_log_at },
                { "Sqrt", gcp_sqrt_at },
                { "Abs", gcp_abs_at },
                { "Neg", gcp_neg_at },
                { "Reciprocal", gcp_reciprocal_at },
                { "HardSwish", gcp_hard_swish_at },
                { "Mish", gcp_mish_at } };
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (gcpi_excerpt_is(n->op, ops[i].op)) return gcpi_onnx_put_like(m, n, ops[i].record(x, gcpi_onnx_opts(m)));
    return 0;
}
/* What gcp has as a part of another op alone. */
static int gcpi_onnx_part(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_refuse(m, n, "only as a part of a GELU, of dropout, or of stochastic depth");
}
static int gcpi_onnx_leaky_relu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(leaky_relu, o);
    const double slope = gcpi_onnx_float(n, "alpha", 0.01);
    if (slope < 0) return gcpi_onnx_refuse(m, n, "alpha = %g; at least 0 is allowed", slope);
    o.slope = gcpi_onnx_exactly(slope);
    return gcpi_onnx_put_like(m, n, gcp_leaky_relu_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}
static gcp_tensor gcpi_onnx_scaled(gcpi_onnx *m, gcp_tensor x, double by)
{
    GCPI_ONNX_OPTS(scale, o);
    o.by = gcpi_onnx_exactly(by);
    return by == 1 ? x : gcp_scale_at(x, o);
}
/* Elu, Selu, Celu: scale elu(x / by) with its alpha. */
static int gcpi_onnx_elu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(elu, o);
    const int selu = gcpi_excerpt_is(n->op, "Selu"), celu = gcpi_excerpt_is(n->op, "Celu");
    const double alpha = gcpi_onnx_float(n, "alpha", selu ? 1.67326319217681884765625 : 1),
                 scale = selu ? gcpi_onnx_float(n, "gamma", 1.05070102214813232421875)
                       : celu ? alpha
                              : 1;
    gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    if (alpha < 0 || (celu && alpha == 0)) return gcpi_onnx_refuse(m, n, "alpha = %g; at least 0 is allowed", alpha);
    o.alpha = celu ? 1 : gcpi_onnx_exactly(alpha);
    if (celu) x = gcpi_onnx_scaled(m, x, 1 / alpha);
    return gcpi_onnx_put_like(m, n, gcpi_onnx_scaled(m, gcp_elu_at(x, o), scale));
}
static int gcpi_onnx_hard_sigmoid(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(hard_sigmoid, o);
    o.slope = gcpi_onnx_exactly(gcpi_onnx_float(n, "alpha", 0.2));
    if (fabs(o.slope - 1.0 / 6) < 1e-7) o.slope = 1.0 / 6; /* as a float the file cannot say it */
    o.offset = gcpi_onnx_exactly(gcpi_onnx_float(n, "beta", 0.5));
    return gcpi_onnx_put_like(m, n, gcp_hard_sigmoid_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}
static int gcpi_onnx_softplus(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(softplus, o);
    return gcpi_onnx_put_like(m, n, gcp_softplus_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}
static int gcpi_onnx_gelu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    const gcpi_excerpt how = gcpi_onnx_string(n, "approximate", "none");
    const int quick = gcpi_excerpt_is(how, "tanh");
    if (!quick && !gcpi_excerpt_is(how, "none")) return gcpi_onnx_refuse(m, n, "approximate is neither none nor tanh");
    return gcpi_onnx_put_like(m, n, quick ? gcp_gelu_tanh_at(x, gcpi_onnx_opts(m)) : gcp_gelu_at(x, gcpi_onnx_opts(m)));
}
static int gcpi_onnx_swish(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const double alpha = gcpi_onnx_float(n, "alpha", 1);
    if (alpha == 0) return gcpi_onnx_refuse(m, n, "alpha = 0");
    const gcp_tensor x = gcpi_onnx_scaled(m, gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), alpha);
    return gcpi_onnx_put_like(m, n, gcpi_onnx_scaled(m, gcp_silu_at(x, gcpi_onnx_opts(m)), 1 / alpha));
}
static int gcpi_onnx_softsign(gcpi_onnx *m, gcpi_onnx_node *n) /* x / (1 + |x|) */
{
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), one = gcpi_onnx_number_tensor(m, 1),
                     size = gcp_add_at(gcp_abs_at(x, gcpi_onnx_opts(m)), one, gcpi_onnx_opts(m));
    return gcpi_onnx_put_like(m, n, gcp_div_at(x, size, gcpi_onnx_opts(m)));
}
static gcp_tensor gcpi_onnx_clamped(gcpi_onnx *m, gcp_tensor x, double low, double high)
{
    GCPI_ONNX_OPTS(clamp, o);
    if (low == -HUGE_VAL && high == HUGE_VAL) return x;
    if (low == 0 && high == HUGE_VAL) return gcp_relu_at(x, gcpi_onnx_opts(m));
    if (low == 0 && high == 6) return gcp_relu6_at(x, gcpi_onnx_opts(m));
    o.low = gcpi_onnx_exactly(low);
    o.high = gcpi_onnx_exactly(high);
    return gcp_clamp_at(x, o);
}
static int gcpi_onnx_clip(gcpi_onnx *m, gcpi_onnx_node *n)
{
    double low = gcpi_onnx_float(n, "min", -HUGE_VAL), high = gcpi_onnx_float(n, "max", HUGE_VAL);
    gcpi_onnx_value *least = gcpi_onnx_in(m, n, 1), *most = gcpi_onnx_in(m, n, 2);
    if ((least && !gcpi_onnx_number(m, least, &low)) || (most && !gcpi_onnx_number(m, most, &high)))
        return gcpi_onnx_refuse(m, n, "its bounds are not known before a step");
    if (low < -3e38) low = -HUGE_VAL;
    if (high > 3e38) high = HUGE_VAL;
    if (!(low < high)) return gcpi_onnx_refuse(m, n, "bounds of %g and %g", low, high);
    return gcpi_onnx_put_like(m, n, gcpi_onnx_clamped(m, gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), low, high));
}
static int gcpi_onnx_same(gcpi_onnx *m, gcpi_onnx_node *n) /* Identity, Cast among floats */
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    if (gcpi_onnx_is_real(x->type) != gcpi_onnx_is_real(y->type))
        return gcpi_onnx_refuse(m, n, "%s to %s of a tensor", gcpi_onnx_type_name(x->type),
                                gcpi_onnx_type_name(y->type));
    return gcpi_onnx_put_value(m, n, 0, x);
}
static int gcpi_onnx_dropout(gcpi_onnx *m, gcpi_onnx_node *n)
{
    double rate = gcpi_onnx_float(n, "ratio", 0.5);
    if (gcpi_onnx_in(m, n, 1) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &rate))
        return gcpi_onnx_refuse(m, n, "its ratio is not known before a step");
    if (!(rate >= 0 && rate < 1)) return gcpi_onnx_refuse(m, n, "a ratio of %g; in [0, 1) is allowed", rate);
    if (gcpi_onnx_out(m, n, 1) && gcpi_onnx_out(m, n, 1)->uses) return gcpi_onnx_refuse(m, n, "its mask is read");
    if (rate == 0) return gcpi_onnx_same(m, n);
    GCPI_ONNX_OPTS(dropout, o);
    o.rate = rate;
    return gcpi_onnx_put_like(m, n, gcp_dropout_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}

/* ---- two operands ---- */

/* The axes of v counted from the end of a result's. */
static gcpi_onnx_order gcpi_onnx_aligned(const gcpi_onnx_value *v, int rank)
{
    gcpi_onnx_order o = v->order;
    for (int f = 0; f < o.count; f++) o.axis[f] += rank - v->rank;
    return o;
}
/* The four sizes for factors in memory, of which each operand has all or none within a size. has: bits of operands, a
   factor each, in the order of memory. shape: one that is tried first. 0: more than four. */
static int gcpi_onnx_groups(const gcpi_onnx_order *o, const int *has, gcp_shape shape, gcp_shape *to)
{
    int place = 0, fits = 1, sizes[GCPI_FACTORS], runs = 0;
    ptrdiff_t left = 1;
    for (int j = 0; j < o->count; j++) { /* shape, if no size of it mixes */
        const int size = o->size[o->memory[j]];
        if (left == 1) {
            while (place < 4 && shape.d[place] == 1) place++;
            left = place < 4 ? shape.d[place++] : 0;
        } else if (has[j] != has[j - 1]) fits = 0;
        if (!left || left % size) {
            fits = 0;
            break;
        }
        left /= size;
    }
    *to = shape;
    if (fits) return 1;
    for (int j = 0; j < o->count; j++) {
        if (!j || has[j] != has[j - 1]) sizes[runs++] = 1;
        sizes[runs - 1] *= o->size[o->memory[j]];
    }
    *to = gcpi_raw(4, 1, 1, 1, 1);
    for (int i = 0; i < runs && runs <= 4; i++) to->d[runs == 1 ? 3 : i == runs - 1 ? 3 : i] = sizes[i];
    return runs <= 4;
}
/* What of a shape in groups an operand has; want: its factors in that order. */
static gcp_shape gcpi_onnx_share(const gcpi_onnx_order *o, const int *has, int bit, gcp_shape all,
                                 const gcpi_onnx_order *own, int *want)
{
    gcp_shape s = gcpi_raw(4, 1, 1, 1, 1);
    int place = 0, count = 0;
    ptrdiff_t left = 1;
    for (int j = 0; j < o->count; j++) {
        const int f = o->memory[j];
        if (left == 1) {
            while (all.d[place] == 1) place++;
            left = all.d[place++];
        }
        left /= o->size[f];
        if (!(has[j] & bit)) continue;
        want[count++] = gcpi_onnx_order_nth(own, o->axis[f], gcpi_onnx_order_rank_in_axis(o, f));
        s.d[place - 1] *= o->size[f];
    }
    return s;
}
typedef struct gcpi_onnx_pair {
    gcp_tensor a, b;
    gcpi_onnx_order order;
    gcp_shape shape;
} gcpi_onnx_pair;

/* The order of the result: of the operand that has all axes, else the result's own. has: as gcpi_onnx_groups takes it.
   */
static void gcpi_onnx_pair_order(const gcpi_onnx_order *a, const gcpi_onnx_order *b, int rank, const int *d,
                                 gcpi_onnx_order *o, int *has)
{
    int mark[GCPI_FACTORS];
    memset(o, 0, sizeof *o);
    o->rank = rank;
    for (int i = 0; i < rank; i++) {
        const int in_a = gcpi_onnx_order_nth(a, i, 0) >= 0, in_b = gcpi_onnx_order_nth(b, i, 0) >= 0;
        const gcpi_onnx_order *from = in_a ? a : b;
        o->d[i] = d[i];
        for (int f = 0; f < from->count; f++)
            if (from->axis[f] == i) {
                mark[o->count] = in_a | in_b << 1;
                o->size[o->count] = from->size[f];
                o->axis[o->count] = i;
                o->memory[o->count] = o->count;
                o->count++;
            }
    }
    if (a->count == o->count) memcpy(o->memory, a->memory, sizeof o->memory);
    else if (b->count == o->count) memcpy(o->memory, b->memory, sizeof o->memory);
    for (int j = 0; j < o->count; j++) has[j] = mark[o->memory[j]];
}
/* a and b, of result y, in orders that agree. 0, with a message: refused. */
static int gcpi_onnx_pair_of(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *a, gcpi_onnx_value *b,
                             const gcpi_onnx_value *y, gcpi_onnx_pair *p)
{
    int has[GCPI_FACTORS], want[GCPI_FACTORS];
    gcpi_onnx_bind(m, a);
    gcpi_onnx_bind(m, b);
    for (int i = 0; i < y->rank; i++) {
        const int ai = i - y->rank + a->rank, bi = i - y->rank + b->rank;
        if (ai < 0 || bi < 0 || a->d[ai] == 1 || b->d[bi] == 1) continue;
        if (!gcpi_onnx_cut_axis(a, ai, &b->order, bi) && !gcpi_onnx_cut_axis(b, bi, &a->order, ai))
            return gcpi_onnx_refuse(m, n, "its operands were cut differently");
        if (!gcpi_onnx_cut_axis(b, bi, &a->order, ai))
            return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    }
    const gcpi_onnx_order oa = gcpi_onnx_aligned(a, y->rank), ob = gcpi_onnx_aligned(b, y->rank);
    const int swapped = a->source >= 0 && b->source < 0 && ob.count >= oa.count; /* a weight goes by what it meets */
    gcpi_onnx_pair_order(swapped ? &ob : &oa, swapped ? &oa : &ob, y->rank, y->d, &p->order, has);
    const gcpi_onnx_value *big = oa.count == p->order.count && !swapped ? a : ob.count == p->order.count ? b : NULL;
    const gcp_shape first = big && !gcp_is_nil(big->tensor) ? gcp_shape_of(big->tensor)
                                                            : gcpi_layout_shape(&p->order, gcpi_layout_plain(y->rank));
    if (!gcpi_onnx_groups(&p->order, has, first, &p->shape))
        return gcpi_onnx_refuse(m, n, "an operand is spread over axes that lie in more than four parts");
    const gcp_shape sa = gcpi_onnx_share(&p->order, has, swapped ? 2 : 1, p->shape, &oa, want);
    p->a = gcpi_onnx_arranged(m, a, want, sa);
    const gcp_shape sb = gcpi_onnx_share(&p->order, has, swapped ? 1 : 2, p->shape, &ob, want);
    p->b = gcpi_onnx_arranged(m, b, want, sb);
    return !gcp_is_nil(p->a) && !gcp_is_nil(p->b);
}

typedef gcp_tensor (*gcpi_onnx_pair_fn)(gcp_tensor a, gcp_tensor b, gcp_op_opts o);
static gcpi_onnx_pair_fn gcpi_onnx_pair_fn_of(gcpi_excerpt op)
{
    static const struct {
        const char *op;
        gcpi_onnx_pair_fn fn;
    } ops[] = { { "Add", gcp_add_at },     { "Sum", gcp_add_at },     { "Mean", gcp_add_at },
                { "Sub", gcp_sub_at },     { "Mul", gcp_mul_at },     { "Div", gcp_div_at },
                { "Max", gcp_maximum_at }, { "Min", gcp_minimum_at }, { "PRelu", gcp_prelu_at } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (gcpi_excerpt_is(op, ops[i].op)) return ops[i].fn;
    return NULL;
}
/* An operand that is a number: no tensor is needed for it. 0: it is none, or that does not help. */
static int gcpi_onnx_with_number(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1), *x = a;
    const char fn = gcpi_fold_letter(n);
    double by;
    const int first = gcpi_onnx_number(m, a, &by);
    if (!first && !gcpi_onnx_number(m, b, &by)) return 0;
    if (first) x = b;
    if (x->known || x->rank != gcpi_onnx_out(m, n, 0)->rank || !isfinite(by)) return 0;
    gcp_tensor y = gcpi_onnx_any(m, x);
    if (fn == '*') y = gcpi_onnx_scaled(m, y, by);
    else if (fn == '/' && !first && by != 0) y = gcpi_onnx_scaled(m, y, 1 / by);
    else if (fn == '/' && first) y = gcpi_onnx_scaled(m, gcp_reciprocal_at(y, gcpi_onnx_opts(m)), by);
    else if (fn == '+' && by == 0) {
    } else if (fn == '-' && by == 0) y = first ? gcp_neg_at(y, gcpi_onnx_opts(m)) : y;
    else if (fn == 'M') y = gcpi_onnx_clamped(m, y, by, HUGE_VAL);
    else if (fn == 'm') y = gcpi_onnx_clamped(m, y, -HUGE_VAL, by);
    else return 0;
    return gcpi_onnx_put(m, n, 0, y, &x->order);
}
/* x below 0 times slopes. */
static int gcpi_onnx_prelu_of(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *slopes)
{
    gcpi_onnx_pair p;
    return gcpi_onnx_pair_of(m, n, x, slopes, gcpi_onnx_out(m, n, 0), &p) &&
           gcpi_onnx_put(m, n, 0, gcp_prelu_at(p.a, p.b, gcpi_onnx_opts(m)), &p.order);
}
/* PRelu before opset 7: its slopes are the channels', axis 1. */
static int gcpi_onnx_channel_slopes(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), slopes = gcpi_onnx_copy(gcpi_onnx_in(m, n, 1));
    int d[GCPI_AXES];
    for (int i = 0; i < x->rank; i++) d[i] = i ? 1 : (int)gcpi_onnx_elements(&slopes);
    gcpi_onnx_bind(m, &slopes);
    gcpi_onnx_order_reshape(&slopes.order, x->rank - 1, d);
    slopes.rank = x->rank - 1;
    memcpy(slopes.d, d, sizeof d);
    return gcpi_onnx_prelu_of(m, n, x, &slopes);
}
static int gcpi_onnx_pairs(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_pair_fn fn = gcpi_onnx_pair_fn_of(n->op);
    gcpi_onnx_value *out = gcpi_onnx_out(m, n, 0), sum;
    gcpi_onnx_pair p;
    if (n->inputs == 1) return gcpi_onnx_same(m, n);
    if (m->opset < 7 && gcpi_excerpt_is(n->op, "PRelu") && gcpi_onnx_in(m, n, 0)->rank > 1)
        return gcpi_onnx_channel_slopes(m, n);
    if (n->inputs == 2 && !gcpi_excerpt_is(n->op, "PRelu") && gcpi_onnx_with_number(m, n)) return 1;
    sum = *gcpi_onnx_in(m, n, 0);
    for (int i = 1; i < n->inputs; i++) {
        gcpi_onnx_value *b = gcpi_onnx_in(m, n, i), *a = i == 1 ? gcpi_onnx_in(m, n, 0) : &sum;
        gcpi_onnx_value y = *out;
        if (!gcpi_onnx_broadcast(a, b, &y.rank, y.d)) return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
        if (!gcpi_onnx_pair_of(m, n, a, b, &y, &p)) return 0;
        gcpi_onnx_becomes(m, &sum, fn(p.a, p.b, gcpi_onnx_opts(m)));
        sum.order = p.order;
        sum.rank = y.rank;
        memcpy(sum.d, y.d, sizeof sum.d);
    }
    if (gcpi_excerpt_is(n->op, "Mean")) sum.tensor = gcpi_onnx_scaled(m, sum.tensor, 1.0 / n->inputs);
    return gcpi_onnx_put(m, n, 0, sum.tensor, &sum.order);
}
static int gcpi_onnx_pow(gcpi_onnx *m, gcpi_onnx_node *n)
{
    double by;
    if (!gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &by))
        return gcpi_onnx_refuse(m, n, "its exponent is not a number known before a step");
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    const gcp_op_opts o = gcpi_onnx_opts(m);
    if (by == 1) return gcpi_onnx_same(m, n);
    if (by == 2) return gcpi_onnx_put_like(m, n, gcp_square_at(x, o));
    if (by == 0.5) return gcpi_onnx_put_like(m, n, gcp_sqrt_at(x, o));
    if (by == -1) return gcpi_onnx_put_like(m, n, gcp_reciprocal_at(x, o));
    if (by == -0.5) return gcpi_onnx_put_like(m, n, gcp_reciprocal_at(gcp_sqrt_at(x, o), o));
    if (by == 3) return gcpi_onnx_put_like(m, n, gcp_mul_at(gcp_square_at(x, o), x, o));
    return gcpi_onnx_refuse(m, n, "an exponent of %g; 2, 3, 1, 0.5, -0.5 and -1 are allowed", by);
}
