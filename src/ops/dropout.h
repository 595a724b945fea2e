/* Dropout: y = x / (1 - rate) or 0. A draw depends on seed, step, op, global sample and element only; with .per_sample
   on no element. */
/* How the draws of a row go on: element by element. */
typedef struct gcpi_draws {
    const gcp_step_numbers *numbers;
    uint64_t sample, key, element;
    uint32_t limit;
    gcpi_random r;
    int whole; /* element 0's draw is all elements' */
    gcp_real gain;
} gcpi_draws;
/* n values of a row, the first of them if `begins`. */
GCPI_LOOP void gcpi_dropout_run(gcpi_draws *d, const gcp_real *x, gcp_real *y, size_t n, int begins, int accumulate)
{
    for (size_t i = 0; i < n; i++, d->element++) {
        if (!d->whole && ((begins && i == 0) || (d->element & 3) == 0))
            d->r = gcpi_philox((uint32_t)(d->element >> 2), (uint32_t)d->sample, (uint32_t)d->numbers->step,
                               (uint32_t)((d->element >> 34) ^ (d->sample >> 32)), d->key);
        gcp_real v = d->r.x[d->whole ? 0 : d->element & 3] >= d->limit ? x[i] * d->gain : 0;
        y[i] = accumulate ? y[i] + v : v;
    }
}
static void gcpi_dropout_walk(const gcp_call *c, const gcp_view *to, const gcp_view *from, int image, int accumulate)
{
    const double rate = gcpi_attr(c->attributes)->dropout.rate;
    const gcpi_halves *h = gcpi_halves_of(c->target->isa);
    const size_t per = (size_t)to->shape.d[1] * (size_t)to->shape.d[2], width = (size_t)to->shape.d[3];
    gcp_real xs[GCPI_PIECE], ys[GCPI_PIECE];
    gcpi_draws d;
    d.numbers = c->numbers;
    d.limit = (uint32_t)(rate * 4294967296.0);
    d.gain = (gcp_real)(1.0 / (1.0 - rate));
    d.sample = c->numbers->first_sample + (uint64_t)image;
    d.key = c->numbers->seed + 0x9E3779B97F4A7C15u * c->ordinal;
    d.whole = gcpi_attr(c->attributes)->dropout.per_sample;
    d.element = 0;
    d.r = gcpi_philox(0, (uint32_t)d.sample, (uint32_t)c->numbers->step, (uint32_t)(d.sample >> 32), d.key);
    for (size_t p = (size_t)image * per; p < ((size_t)image + 1) * per; p++)
        for (size_t first = 0, n; first < width; first += n) {
            const gcpi_array x = gcpi_elements(from, p, (int)first), y = gcpi_elements(to, p, (int)first);
            n = GCPI_MIN(width - first, (size_t)GCPI_PIECE);
            if (x.half) gcpi_array_load(h, x, 0, xs, 0, 1, (ptrdiff_t)n);
            if (y.half && accumulate) gcpi_array_load(h, y, 0, ys, 0, 1, (ptrdiff_t)n);
            gcpi_dropout_run(&d, x.half ? xs : (const gcp_real *)x.at, y.half ? ys : (gcp_real *)y.at, n, first == 0,
                             accumulate);
            if (y.half) gcpi_array_store(h, y, 0, ys, 0, 1, (ptrdiff_t)n);
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
                                                gcpi_dropout_backward, NULL, 0, 0, GCPI_OVER | GCP_FLAG_BF16, 1, NULL },
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
