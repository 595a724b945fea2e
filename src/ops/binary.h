/* Two operands, element by element: add, mul. */
static int gcpi_pair_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    if (!gcpi_same_shape(s->in[0], s->in[1]))
        return gcpi_refuse(s,
                           "%s and %s differ; nothing is broadcast: gcp_bias adds a value a channel, gcp_upsample "
                           "spreads an n x 1 x 1 x c",
                           GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[1]));
    return gcpi_all_real(s);
}

GCPI_BODY void gcpi_add_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] + b[i];
}
GCPI_WIDE_SPAN(gcpi_add_span)

GCPI_BODY void gcpi_mul_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] * b[i];
}
GCPI_WIDE_SPAN(gcpi_mul_span)

GCPI_BODY void gcpi_mul_span_back_body(const gcpi_span *s)                      /* p: d of one, dy, the other */
{
    gcp_real *d = s->p[0];
    const gcp_real *dy = s->p[1], *other = s->p[2];
    if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) d[i] += dy[i] * other[i];
    else               GCPI_EACH for (size_t i = 0; i < s->n; i++) d[i] = dy[i] * other[i];
}
GCPI_WIDE_SPAN(gcpi_mul_span_back)

static void gcpi_pair_forward(const gcp_call *c, gcpi_span_fn fn)
{
    const gcp_view *v[3];
    v[0] = &c->in[0]; v[1] = &c->in[1]; v[2] = &c->out[0];
    gcpi_map(c, fn, v, 3, NULL, 0);
}
static void gcpi_add_forward(const gcp_call *c) { gcpi_pair_forward(c, gcpi_add_span); }
static void gcpi_mul_forward(const gcp_call *c) { gcpi_pair_forward(c, gcpi_mul_span); }

static void gcpi_add_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->din[i].data) gcpi_view_copy(c, &c->din[i], &c->dout[0], c->din[i].accumulate);
}

/* Input 1 comes first, since input 0's gradient may overwrite dy. For x * x input 0 does: the other adds to it. */
static void gcpi_mul_backward(const gcp_call *c)
{
    int same = c->din[0].data == c->din[1].data;
    for (int k = 0; k < 2; k++) {
        int i = same ? k : 1 - k;
        const gcp_view *v[3];
        if (!c->din[i].data) continue;
        v[0] = &c->din[i]; v[1] = &c->dout[0]; v[2] = &c->in[1 - i];
        gcpi_map(c, gcpi_mul_span_back, v, 3, NULL, c->din[i].accumulate);
    }
}

static void gcpi_add_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->part = GCPI_PART_ADD; }
static const gcpi_op_row gcpi_add_row = {
    GCP_OP_ADD,
    { "add", gcpi_pair_shape, gcpi_add_forward, gcpi_add_backward, NULL, 0, 0,
      GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_VIEW | GCPI_EACH_ONE, 1, NULL },
    gcpi_add_facts
};
static const gcpi_op_row gcpi_mul_row = {
    GCP_OP_MUL,
    { "mul", gcpi_pair_shape, gcpi_mul_forward, gcpi_mul_backward, NULL, GCPI_IN(0) | GCPI_IN(1), 0,
      GCPI_OVER | GCP_FLAG_CROSS, 1, NULL },
    NULL
};
GCPI_DEF gcp_tensor gcp_add_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_add_row, a, b, o);
}
GCPI_DEF gcp_tensor gcp_mul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_mul_row, a, b, o);
}
