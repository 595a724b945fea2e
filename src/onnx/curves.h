/* Curves: activations that exporters write in pieces. What a few nodes make of one value, element by element, is drawn:
   where all that goes in is that value and numbers, it is computed at some points, and compared with ops of gcp. */

/* Clip, HardSigmoid and Cast of a number. 0: n is another op. */
static int gcpi_onnx_clipped_at(gcpi_onnx *m, const gcpi_onnx_node *n, double a, double *y)
{
    double low = gcpi_onnx_float(n, "min", -HUGE_VAL), high = gcpi_onnx_float(n, "max", HUGE_VAL);
    if (gcpi_excerpt_is(n->op, "HardSigmoid")) {
        a = a * gcpi_onnx_float(n, "alpha", 0.2) + gcpi_onnx_float(n, "beta", 0.5);
        low = 0;
        high = 1;
    } else if (gcpi_excerpt_is(n->op, "Cast")) {
        const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *to = gcpi_onnx_out(m, n, 0);
        if (!x || !to || x->type != GCPI_ONNX_BOOL || !gcpi_onnx_is_real(to->type)) return 0; /* of a truth to 0 or 1 */
    } else if (!gcpi_excerpt_is(n->op, "Clip")) return 0;
    if ((gcpi_onnx_in(m, n, 1) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &low)) ||
        (gcpi_onnx_in(m, n, 2) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 2), &high)))
        return 0;
    *y = a < low ? low : a > high ? high : a;
    return 1;
}
/* v where x is `at`. steps: how many nodes may be looked at. 0: v is no function of x's elements alone. */
static int gcpi_onnx_curve_at(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, double at, int *steps,
                              double *y)
{
    double a, b = 0;
    *y = at;
    if (v == x || gcpi_onnx_number(m, v, y)) return 1;
    if (v != gcpi_onnx_bare(m, v)) return gcpi_onnx_curve_at(m, gcpi_onnx_bare(m, v), x, at, steps, y);
    gcpi_onnx_node *n = v && v->node >= 0 ? &m->nodes[v->node] : NULL;
    if (!n || n->foreign || --*steps < 0) return 0;
    const char letter = gcpi_fold_letter(n);
    const int pair = n->inputs == 2 && strchr("+-*/^Mm<>lg=&|", letter) != NULL;
    if (!gcpi_onnx_curve_at(m, gcpi_onnx_in(m, n, 0), x, at, steps, &a)) return 0;
    if (gcpi_excerpt_is(n->op, "Where") && n->inputs == 3)
        return gcpi_onnx_curve_at(m, gcpi_onnx_in(m, n, a != 0 ? 1 : 2), x, at, steps, y);
    if (pair && !gcpi_onnx_curve_at(m, gcpi_onnx_in(m, n, 1), x, at, steps, &b)) return 0;
    if (pair) *y = gcpi_fold_pair(letter, a, b, 1);
    else if (n->inputs == 1 && strchr("-aselrEtGpRf!", letter)) *y = gcpi_fold_one(letter, a);
    else return gcpi_onnx_clipped_at(m, n, a, y);
    return 1;
}

static double gcpi_curve_silu(double x) { return x / (1 + exp(-x)); }
static double gcpi_curve_hard_sigmoid(double x) { return GCPI_MIN(1.0, GCPI_MAX(0.0, x / 6 + 0.5)); }
static double gcpi_curve_hard_swish(double x) { return x * gcpi_curve_hard_sigmoid(x); }
static double gcpi_curve_gelu(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752)); }
static double gcpi_curve_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}
static double gcpi_curve_mish(double x) { return x * tanh(log(1 + exp(x))); }
static gcp_tensor gcpi_onnx_sixth(gcp_tensor x, gcp_op_opts o) /* hard_sigmoid of slope 1/6 */
{
    gcp_hard_sigmoid_opts h = GCP_OPTS(gcp_hard_sigmoid_opts, );
    h.at = o.at;
    return gcp_hard_sigmoid_at(x, h);
}
static const struct gcpi_onnx_curve {
    double (*at)(double x);
    gcp_tensor (*record)(gcp_tensor x, gcp_op_opts o);
} gcpi_onnx_curves[] = { { gcpi_curve_silu, gcp_silu_at }, { gcpi_curve_hard_swish, gcp_hard_swish_at },
                         { gcpi_curve_gelu, gcp_gelu_at }, { gcpi_curve_gelu_tanh, gcp_gelu_tanh_at },
                         { gcpi_curve_mish, gcp_mish_at }, { gcpi_curve_hard_sigmoid, gcpi_onnx_sixth } };

/* Curves with numbers of their own, behind those above: p of clamp, low and high; of leaky_relu, the slope; of elu,
   alpha and what it is multiplied by. */
enum {
    GCPI_CURVES = (int)(sizeof gcpi_onnx_curves / sizeof *gcpi_onnx_curves),
    GCPI_CURVE_CLAMP = GCPI_CURVES,
    GCPI_CURVE_LEAKY,
    GCPI_CURVE_ELU,
    GCPI_CURVES_ALL
};
static double gcpi_onnx_curve_y(int curve, const double *p, double x)
{
    if (curve < GCPI_CURVES) return gcpi_onnx_curves[curve].at(x);
    if (curve == GCPI_CURVE_CLAMP) return x < p[0] ? p[0] : x > p[1] ? p[1] : x;
    if (curve == GCPI_CURVE_LEAKY) return x < 0 ? p[0] * x : x;
    return p[1] * (x < 0 ? p[0] * (exp(x) - 1) : x);
}
static int gcpi_onnx_drawn(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, double at, double *y)
{
    int steps = 24;
    return gcpi_onnx_curve_at(m, v, x, at, &steps, y);
}
/* The numbers that a curve would have, from where they show. 0: it has none that are allowed. */
static int gcpi_onnx_curve_numbers(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, int curve, double *p)
{
    const double far = curve == GCPI_CURVE_CLAMP ? 1e30 : curve == GCPI_CURVE_LEAKY ? 1 : 40;
    if (curve < GCPI_CURVES) return 1;
    if (!gcpi_onnx_drawn(m, v, x, -far, &p[0]) || !gcpi_onnx_drawn(m, v, x, curve == GCPI_CURVE_ELU ? 1 : far, &p[1]))
        return 0;
    if (curve == GCPI_CURVE_CLAMP) {
        if (p[0] == -far) p[0] = -HUGE_VAL;
        if (p[1] == far) p[1] = HUGE_VAL;
        return p[0] < p[1] && (p[0] > -HUGE_VAL || p[1] < HUGE_VAL);
    }
    if (curve == GCPI_CURVE_ELU && !(p[1] > 0)) return 0;
    p[0] /= curve == GCPI_CURVE_ELU ? -p[1] : -1;
    return p[0] >= 0;
}
/* Whether v is this curve where it is drawn. */
static int gcpi_onnx_curve_fits(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, int curve, const double *p)
{
    /* both sides of all kinks that activations have, close to 0, and far out */
    static const double points[] = { 1.1,  -4,    -2.2, -0.3,  0.2,  2.6,   3.7, 0,    1,  -1,  7.5, -7.5,
                                     1e-3, -1e-3, 0.05, -0.05, 2.95, -2.95, 5.4, -5.4, 20, -20, 1e3, -1e3 };
    enum { POINTS = (int)(sizeof points / sizeof *points) };
    const int bounds = curve == GCPI_CURVE_CLAMP ? 4 : 0;
    double y;
    for (int i = 0; i < POINTS + bounds; i++) {
        const double bound = p[(i - POINTS) / 2 & 1], step = 1e-3 * (1 + fabs(bound)),
                     at = i < POINTS       ? points[i]
                        : (i - POINTS) & 1 ? bound + step
                                           : bound - step;
        if (!isfinite(at)) continue;
        if (!gcpi_onnx_drawn(m, v, x, at, &y) || !(fabs(y - gcpi_onnx_curve_y(curve, p, at)) < 5e-7 * (1 + fabs(y))))
            return 0;
    }
    return 1;
}
/* Which curve v is, drawn over x, but for constants that are rounded to floats; -1: none. */
static int gcpi_onnx_curve_of(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, double *p)
{
    double y;
    if (!gcpi_onnx_drawn(m, v, x, 1.1, &y)) return -1;
    for (int c = 0; c < GCPI_CURVES_ALL; c++)
        if (gcpi_onnx_curve_numbers(m, v, x, c, p) && gcpi_onnx_curve_fits(m, v, x, c, p)) return c;
    return -1;
}
/* A value at most `depth` nodes below v of which n is a curve. */
static int gcpi_onnx_curve_below(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *v, int depth)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    double number;
    if (!v || gcpi_onnx_number(m, v, &number)) return 0;
    const int curve = gcpi_onnx_same_sizes(v, y) ? gcpi_onnx_curve_of(m, y, v, n->number + 1) : -1;
    n->part[0] = gcpi_onnx_index(m, v);
    n->number[0] = curve;
    if (curve >= 0) return 1;
    const gcpi_onnx_node *below = v->node >= 0 ? &m->nodes[v->node] : NULL;
    for (int i = 0; below && depth && i < 2; i++)
        if (gcpi_onnx_curve_below(m, n, gcpi_onnx_in(m, below, i), depth - 1)) return 1;
    n->part[0] = 0;
    return 0;
}
static int gcpi_match_curve(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (int i = 0; i < n->inputs; i++)
        if (gcpi_onnx_curve_below(m, n, gcpi_onnx_in(m, n, i), 2)) return 1;
    return 0;
}
static int gcpi_record_curve(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    const gcp_tensor in = gcpi_onnx_any(m, x);
    const int curve = (int)n->number[0];
    const double *p = n->number + 1;
    GCPI_ONNX_OPTS(leaky_relu, leaky);
    GCPI_ONNX_OPTS(elu, elu);
    leaky.slope = gcpi_onnx_exactly(p[0]);
    elu.alpha = gcpi_onnx_exactly(p[0]);
    const gcp_tensor y = curve == GCPI_CURVE_CLAMP ? gcpi_onnx_clamped(m, in, p[0], p[1])
                       : curve == GCPI_CURVE_LEAKY ? gcp_leaky_relu_at(in, leaky)
                       : curve == GCPI_CURVE_ELU   ? gcpi_onnx_scaled(m, gcp_elu_at(in, elu), p[1])
                                                   : gcpi_onnx_curves[curve].record(in, gcpi_onnx_opts(m));
    return gcpi_onnx_put(m, n, 0, y, &x->order);
}

/* ---- dropped samples ---- */

/* The random numbers that a mask is made of; NULL: none at most 6 nodes below it, or something else reads them. */
static gcpi_onnx_value *gcpi_onnx_random_below(gcpi_onnx *m, gcpi_onnx_value *v, int depth)
{
    gcpi_onnx_node *n = v && v->node >= 0 && depth ? &m->nodes[v->node] : NULL;
    gcpi_onnx_value *found = NULL;
    if (!n || n->foreign) return NULL;
    if (gcpi_excerpt_is(n->op, "RandomUniformLike"))
        return gcpi_onnx_float(n, "low", 0) == 0 && gcpi_onnx_float(n, "high", 1) == 1 ? v : NULL;
    for (int i = 0; i < 2 && !found; i++) found = gcpi_onnx_random_below(m, gcpi_onnx_in(m, n, i), depth - 1);
    return found && gcpi_onnx_readers(m, v) == 1 ? found : NULL;
}
/* How often a mask, a curve over uniform random numbers, is not 0, and what it is then; 0: it is no such mask. */
static double gcpi_onnx_kept_share(gcpi_onnx *m, gcpi_onnx_value *mask, double *number)
{
    const gcpi_onnx_value *r = gcpi_onnx_random_below(m, mask, 6);
    double low = 0, high = 1 - 1e-12, first, last, y;
    int steps = 24, more = 24;
    if (!r || !gcpi_onnx_curve_at(m, mask, r, low, &steps, &first) ||
        !gcpi_onnx_curve_at(m, mask, r, high, &more, &last) || (first != 0) == (last != 0))
        return 0;
    for (int i = 0; i < 44; i++) {
        const double middle = (low + high) / 2;
        steps = 24;
        if (!gcpi_onnx_curve_at(m, mask, r, middle, &steps, &y) || (y != first && y != last)) return 0;
        if (y == first) low = middle;
        else high = middle;
    }
    *number = first != 0 ? first : last;
    return first != 0 ? low : 1 - low;
}
/* x times a mask of its shape, or of a number for each sample: dropout, or stochastic depth. */
static int gcpi_match_drop(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (int i = 0; i < 2; i++) {
        gcpi_onnx_value *mask = gcpi_onnx_in(m, n, i), *x = gcpi_onnx_in(m, n, 1 - i);
        double kept, number = 1;
        int per_sample = x->rank > 1 && mask->rank == x->rank && mask->d[0] == x->d[0];
        for (int k = 1; k < x->rank && per_sample; k++) per_sample = mask->d[k] == 1;
        kept = per_sample || gcpi_onnx_same_sizes(mask, x) ? gcpi_onnx_kept_share(m, mask, &number) : 0;
        if (kept <= 0 || kept >= 1 || gcpi_onnx_readers(m, mask) != 1) continue;
        if (fabs(number * kept - 1) > 1e-5) x = gcpi_onnx_unscaled(m, x, &number);
        if (fabs(number * kept - 1) > 1e-5) continue; /* what is kept is not divided by its share */
        n->part[0] = gcpi_onnx_index(m, x);
        n->number[0] = 1 - kept;
        n->number[1] = per_sample;
        return 1;
    }
    return 0;
}
static int gcpi_record_drop(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    const char *layout = gcpi_layout_usual(x->rank);
    GCPI_ONNX_OPTS(dropout, o);
    o.rate = floor(n->number[0] * 1e7 + 0.5) / 1e7;
    o.per_sample = n->number[1] != 0;
    if (!o.per_sample) return gcpi_onnx_put(m, n, 0, gcp_dropout_at(gcpi_onnx_any(m, x), o), &x->order);
    return gcpi_onnx_put_layout(m, n, 0, gcp_dropout_at(gcpi_onnx_get(m, x, layout), o), layout);
}
