/* Rectifiers: relu, leaky_relu. max(x, slope x), with slope 0 for relu. Backward reads the sign of y, or the mask. */
static void gcpi_mask_write(unsigned char *mask, const gcp_real *x, size_t index, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = index + i;
        if ((k & 7) == 0) mask[k >> 3] = 0;
        mask[k >> 3] = (unsigned char)(mask[k >> 3] | (x[i] > 0) << (k & 7));
    }
}

/* Packs eight bytes of 0 or 1 into the bits of one byte. The product moves byte i to bit 56 + i, and no two of its
   terms meet in a bit. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    uint64_t all;
    memcpy(&all, on, sizeof all);
    return (unsigned char)(all * 0x0102040810204080u >> 56);
}
#else
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; i++) bits |= (unsigned)on[i] << i;
    return (unsigned char)bits;
}
#endif

/* Whole bytes of the mask at a time where the span begins at one. */
GCPI_BODY void gcpi_mask_span(unsigned char *mask, const gcp_real *x, size_t index, size_t n)
{
    enum { RUN = 64 };
    unsigned char on[RUN];
    size_t done = 0;
    for (; (index & 7) == 0 && done + RUN <= n; done += RUN) {
        for (int i = 0; i < RUN; i++) on[i] = x[done + (size_t)i] > 0;
        for (size_t b = 0; b < RUN / 8; b++) mask[(index + done) / 8 + b] = gcpi_bits(on + 8 * b);
    }
    for (; (index & 7) == 0 && done + 8 <= n; done += 8) {
        for (int i = 0; i < 8; i++) on[i] = x[done + (size_t)i] > 0;
        mask[(index + done) / 8] = gcpi_bits(on);
    }
    gcpi_mask_write(mask, x + done, index + done, n - done);
}

GCPI_BODY void gcpi_rectify_span_body(const gcpi_span *s)
{
    const gcp_real *x = s->p[0], slope = (gcp_real)gcpi_attr(s->call->attributes)->rectifier.slope;
    gcp_real *y = s->p[1];
    if (s->mask) gcpi_mask_span(s->mask, x, s->index, s->n);
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span)

/* By the mask: eight values at a time for whole bytes, the rest bit by bit. */
GCPI_BODY void gcpi_rectify_mask_back(const gcpi_span *s, gcp_real *dx, const gcp_real *dy, gcp_real slope)
{
    static const unsigned bit[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    size_t bytes = (s->index & 7) == 0 ? s->n / 8 : 0;
    const unsigned char *mask = s->mask + s->index / 8;
    for (size_t b = 0; b < bytes; b++, mask++) {
        unsigned on = *mask;
        gcp_real *to = dx + 8 * b;
        const gcp_real *from = dy + 8 * b;
        if (s->accumulate) GCPI_EIGHT for (int i = 0; i < 8; i++) to[i] += on & bit[i] ? from[i] : slope * from[i];
        else GCPI_EIGHT for (int i = 0; i < 8; i++) to[i] = on & bit[i] ? from[i] : slope * from[i];
    }
    for (size_t i = 8 * bytes; i < s->n; i++) {
        size_t k = s->index + i;
        gcp_real g = s->mask[k >> 3] & bit[k & 7] ? dy[i] : slope * dy[i];
        dx[i] = s->accumulate ? dx[i] + g : g;
    }
}

GCPI_BODY void gcpi_rectify_span_back_body(const gcpi_span *s)
{
    gcp_real *dx = s->p[0];
    const gcp_real *dy = s->p[1], *y = s->p[3], slope = (gcp_real)gcpi_attr(s->call->attributes)->rectifier.slope;
    if (s->mask) gcpi_rectify_mask_back(s, dx, dy, slope);
    else if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] += y[i] > 0 ? dy[i] : slope * dy[i];
    else GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span_back)

static void gcpi_rectify_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_rectify_span); }
static void gcpi_rectify_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_rectify_span_back); }

static int gcpi_rectify_shape(gcp_shape_call *s)
{
    s->out[0] = s->out[1] = s->in[0];
    s->out_dtype[1] = GCP_DTYPE_BIT;
    return gcpi_all_real(s);
}

#define GCPI_RECTIFIER_ROW(name) \
    { name, gcpi_rectify_shape, gcpi_rectify_forward, gcpi_rectify_backward, NULL, 0, GCPI_OUT(0), \
      GCPI_OVER | GCP_FLAG_SIGN_OR_MASK, 2, NULL }
static void gcpi_rectifier_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->part = GCPI_PART_RECTIFIER; }
static const gcpi_op_row gcpi_relu_row = { GCP_OP_RELU, GCPI_RECTIFIER_ROW("relu"), gcpi_rectifier_facts };
static const gcpi_op_row gcpi_leaky_relu_row = {
    GCP_OP_LEAKY_RELU, GCPI_RECTIFIER_ROW("leaky_relu"), gcpi_rectifier_facts
};

static gcp_tensor gcpi_rectifier(const gcpi_op_row *row, gcp_tensor x, double slope, const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.rectifier.slope = slope;
    return gcpi_simple(row, &x, 1, &a, named, at);
}
GCPI_DEF gcp_tensor gcp_relu_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_rectifier(&gcpi_relu_row, x, 0, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_leaky_relu_at(gcp_tensor x, gcp_leaky_relu_opts o)
{
    double slope = gcpi_option(o.slope, 0.01);
    /* backward takes the sign of x from y */
    if (!(slope >= 0) || !gcpi_finite(slope))
        return gcpi_bad_option(x, o.at, "leaky_relu", ".slope", slope, "at least 0");
    return gcpi_rectifier(&gcpi_leaky_relu_row, x, slope, o.name, o.at);
}
