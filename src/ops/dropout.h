/* Dropout: y = x / (1 - rate) or 0. A draw depends on seed, step, op, global sample and element only; with .per_sample
   on no element. */
GCPI_LOOP void gcpi_dropout_walk(const gcp_call *c, const gcp_view *to, const gcp_view *from, int image, int accumulate)
{
    double rate = gcpi_attr(c->attributes)->dropout.rate;
    uint32_t limit = (uint32_t)(rate * 4294967296.0);
    gcp_real gain = (gcp_real)(1.0 / (1.0 - rate));
    uint64_t sample = c->numbers->first_sample + (uint64_t)image,
             key = c->numbers->seed + 0x9E3779B97F4A7C15u * c->ordinal;
    const int whole = gcpi_attr(c->attributes)->dropout.per_sample; /* element 0's draw is all elements' */
    size_t per = (size_t)to->shape.d[1] * (size_t)to->shape.d[2], width = (size_t)to->shape.d[3];
    uint64_t element = 0;
    gcpi_random r = gcpi_philox(0, (uint32_t)sample, (uint32_t)c->numbers->step, (uint32_t)(sample >> 32), key);
    for (size_t p = 0; p < per; p++) {
        const gcp_real *x = gcpi_row(from, (size_t)image * per + p);
        gcp_real *y = gcpi_row_out(to, (size_t)image * per + p);
        for (size_t i = 0; i < width; i++, element++) {
            if (!whole && (i == 0 || (element & 3) == 0))
                r = gcpi_philox((uint32_t)(element >> 2), (uint32_t)sample, (uint32_t)c->numbers->step,
                                (uint32_t)((element >> 34) ^ (sample >> 32)), key);
            gcp_real v = r.x[whole ? 0 : element & 3] >= limit ? x[i] * gain : 0;
            y[i] = accumulate ? y[i] + v : v;
        }
    }
}
static void gcpi_dropout_image(const gcp_call *c, int image) { gcpi_dropout_walk(c, &c->out[0], &c->in[0], image, 0); }
static void gcpi_dropout_image_back(const gcp_call *c, int image)
{
    gcpi_dropout_walk(c, &c->din[0], &c->dout[0], image, c->din[0].accumulate);
}
static void gcpi_dropout_forward(const gcp_call *c)
{
    if (c->training) gcpi_images(c, c->in[0].shape.d[0], gcpi_dropout_image);
    else gcpi_view_copy(c, &c->out[0], &c->in[0], 0);
}
static void gcpi_dropout_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_dropout_image_back);
}

static void gcpi_dropout_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, "dropout", 0, 1);
    gcpi_code_real(c, "rate", op->attributes.dropout.rate, 0);
    gcpi_code_int(c, "per_sample", op->attributes.dropout.per_sample, 0);
}
static void gcpi_dropout_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->call = gcpi_dropout_call;
}
static const gcpi_op_row gcpi_dropout_row = { GCP_OP_DROPOUT,
                                              { "dropout", gcpi_unary_shape, gcpi_dropout_forward,
                                                gcpi_dropout_backward, NULL, 0, 0, GCPI_OVER, 1, NULL },
                                              gcpi_dropout_facts };
GCPI_DEF gcp_tensor gcp_dropout_at(gcp_tensor x, gcp_dropout_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.dropout.rate = gcpi_option(o.rate, 0);
    a.dropout.per_sample = o.per_sample != 0;
    if (!(a.dropout.rate >= 0 && a.dropout.rate < 1))
        return gcpi_bad_option(x, o.at, "dropout", ".rate", a.dropout.rate, "at least 0 and less than 1");
    return gcpi_simple(&gcpi_dropout_row, &x, 1, &a, o.name, o.at);
}
