/* The pointwise ops on the CPU, from the lines of pointwise_table.h. */

/* y is its value of x; dx gets dy times the derivative. */
#define GCPI_POINTWISE_NUMBERS                                                       \
    const double *numbers = gcpi_attr(s->call->attributes)->pointwise;               \
    const gcp_real p = (gcp_real)numbers[0], q = (gcp_real)numbers[1];               \
    (void)p; (void)q; (void)fused;
/* One loop writes; where gradients are added, it writes a part at a time to L1. */
static void gcpi_pointwise_back(const gcpi_span *s, gcpi_span_fn back)
{
    enum { PART = 512 };
    gcp_real part[PART];
    gcpi_span from = *s, to = *s;
    if (!s->accumulate) { back(s); return; }
    for (size_t first = 0; first < s->n; first += PART) {
        from.n = to.n = GCPI_MIN((size_t)PART, s->n - first);
        for (int k = 1; k < 4; k++) from.p[k] = s->p[k] ? s->p[k] + first : NULL;
        to.p[0] = s->p[0] + first;
        from.p[0] = to.p[1] = part;
        back(&from);
        gcpi_copy_span(&to);
    }
}
#define GCPI_POINTWISE_KERNELS(name, value, derivative)                              \
    GCPI_BODY void gcpi_##name##_span_body(const gcpi_span *s, int fused)            \
    {                                                                                \
        const gcp_real *in = s->p[0]; gcp_real *out = s->p[1];                       \
        GCPI_POINTWISE_NUMBERS                                                       \
        GCPI_EACH for (size_t i = 0; i < s->n; i++) { const gcp_real x = in[i]; out[i] = (value); } \
    }                                                                                \
    GCPI_BODY void gcpi_##name##_slope_body(const gcpi_span *s, int fused)       \
    {                                                                                \
        gcp_real *dx = s->p[0];                                                      \
        const gcp_real *dy = s->p[1], *xs = s->p[2] ? s->p[2] : dy, *ys = s->p[3] ? s->p[3] : dy; \
        GCPI_POINTWISE_NUMBERS                                                       \
        GCPI_EACH for (size_t i = 0; i < s->n; i++) {                                \
            const gcp_real x = xs[i], y = ys[i];                                     \
            (void)x; (void)y;                                                        \
            dx[i] = dy[i] * (derivative);                                            \
        }                                                                            \
    }                                                                                \
    GCPI_FUSED_SPAN(gcpi_##name##_span)                                              \
    GCPI_FUSED_SPAN(gcpi_##name##_slope)                                             \
    static void gcpi_##name##_span_back(const gcpi_span *s) { gcpi_pointwise_back(s, gcpi_##name##_slope); } \
    static void gcpi_##name##_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_##name##_span, 0); } \
    static void gcpi_##name##_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_##name##_span_back, 0); }

/* ---- recording ---- */

/* field: its name with the dot. */
static int gcpi_number_ok(gcp_tensor x, gcp_at at, const char *what, const char *field, double number, double least,
                          double most)
{
    char allowed[64];
    if (gcpi_finite((double)(gcp_real)number) && number >= least && number <= most) return 1;
    if (gcpi_finite(least) && gcpi_finite(most)) snprintf(allowed, sizeof allowed, "%g to %g", least, most);
    else if (gcpi_finite(least)) snprintf(allowed, sizeof allowed, "at least %g, and finite", least);
    else if (gcpi_finite(most)) snprintf(allowed, sizeof allowed, "at most %g, and finite", most);
    else snprintf(allowed, sizeof allowed, "finite");
    gcpi_bad_option(x, at, what, field, number, allowed);
    return 0;
}
/* The number itself, or its default where it is 0. */
static int gcpi_number_given(gcp_tensor x, gcp_at at, const char *what, const char *field, double otherwise,
                             double *number)
{
    const int missing = *number == 0 && otherwise == GCP_ZERO;
    if (missing && gcpi_enter(x, at, what))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s is missing; GCP_ZERO says zero", field);
    *number = gcpi_option(*number, otherwise);
    return !missing;
}
static gcp_tensor gcpi_pointwise(const gcpi_op_row *row, gcp_tensor x, double p, double q, const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.pointwise[0] = p; a.pointwise[1] = q;
    return gcpi_simple(row, &x, 1, &a, named, at);
}

#define GCPI_READS_X GCPI_IN(0), 0
#define GCPI_READS_Y 0, GCPI_OUT(0)
#define GCPI_READS_NOTHING 0, 0
#define GCPI_POINTWISE_ROW(NAME, name, reads, value, derivative, facts)                                             \
    GCPI_POINTWISE_KERNELS(name, value, derivative)                                                                 \
    static const gcpi_op_row gcpi_##name##_row = {                                                                  \
        GCP_OP_##NAME, { #name, gcpi_unary_shape, gcpi_##name##_forward, gcpi_##name##_backward, NULL, reads,       \
                         GCPI_OVER | GCP_FLAG_BF16, 1, NULL }, facts };
#define GCPI_POINTWISE_NUMBER(name, field, otherwise, least, most)                                                  \
    if (!gcpi_number_given(x, o.at, #name, "." #field, otherwise, &o.field) ||                                      \
        !gcpi_number_ok(x, o.at, #name, "." #field, o.field, least, most)) return gcpi_nil(x.tape);
static void gcpi_pointwise_call(gcpi_code *c, const gcpi_op *op, const char *p, double p_otherwise, const char *q,
                                double q_otherwise)
{
    gcpi_code_call(c, op, op->row->name, 0, 1);
    gcpi_code_real(c, p, op->attributes.pointwise[0], p_otherwise);
    if (q) gcpi_code_real(c, q, op->attributes.pointwise[1], q_otherwise);
}
#define GCPI_POINTWISE_CALL(name, ...)                                                                              \
    static void gcpi_##name##_call(gcpi_code *c, const gcpi_op *op) { gcpi_pointwise_call(c, op, __VA_ARGS__); }    \
    static void gcpi_##name##_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->call = gcpi_##name##_call; }
#define GCPI_PLAIN_OP(NAME, op, reads, value, derivative)                                                         \
    GCPI_POINTWISE_ROW(NAME, op, GCPI_READS_##reads, value, derivative, NULL)                                     \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor x, gcp_op_opts o)                                                \
    {                                                                                                               \
        return gcpi_pointwise(&gcpi_##op##_row, x, 0, 0, o.name, o.at);                                           \
    }
#define GCPI_ONE_OP(NAME, op, reads, value, derivative, p, p_otherwise, p_least, p_most, p_test)                  \
    GCPI_POINTWISE_CALL(op, #p, p_otherwise, NULL, 0)                                                               \
    GCPI_POINTWISE_ROW(NAME, op, GCPI_READS_##reads, value, derivative, gcpi_##op##_facts)                        \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor x, gcp_##op##_opts o)                                          \
    {                                                                                                               \
        GCPI_POINTWISE_NUMBER(op, p, p_otherwise, p_least, p_most)                                                \
        return gcpi_pointwise(&gcpi_##op##_row, x, o.p, 0, o.name, o.at);                                         \
    }
#define GCPI_TWO_OP(NAME, op, reads, value, derivative, p, p_otherwise, p_least, p_most, p_test, q, q_otherwise,  \
                    q_least, q_most, q_test)                                                                        \
    GCPI_POINTWISE_CALL(op, #p, p_otherwise, #q, q_otherwise)                                                       \
    GCPI_POINTWISE_ROW(NAME, op, GCPI_READS_##reads, value, derivative, gcpi_##op##_facts)                        \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor x, gcp_##op##_opts o)                                          \
    {                                                                                                               \
        GCPI_POINTWISE_NUMBER(op, p, p_otherwise, p_least, p_most)                                                \
        GCPI_POINTWISE_NUMBER(op, q, q_otherwise, q_least, q_most)                                                \
        return gcpi_pointwise(&gcpi_##op##_row, x, o.p, o.q, o.name, o.at);                                       \
    }
GCPI_CALLS
GCPI_POINTWISE(GCPI_PLAIN_OP, GCPI_ONE_OP, GCPI_TWO_OP)
GCPI_CALLS_END
