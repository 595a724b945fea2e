/* Ops that select or move values: dropout, concat, slice, reshape, embedding. */

/* dropout: y = x / (1 - rate) or 0. A draw depends on seed, step, op, global sample and element only. */
GCPI_LOOP void gcpi_dropout_walk(const gcp_call *c, const gcp_view *to, const gcp_view *from, int image, int accumulate)
{
    double rate = gcpi_attr(c->attributes)->number.a;
    uint32_t limit = (uint32_t)(rate * 4294967296.0);
    gcp_real gain = (gcp_real)(1.0 / (1.0 - rate));
    uint64_t sample = c->numbers->first_sample + (uint64_t)image,
             key = c->numbers->seed + 0x9E3779B97F4A7C15u * c->ordinal;
    size_t per = (size_t)to->shape.d[1] * (size_t)to->shape.d[2], width = (size_t)to->shape.d[3];
    uint64_t element = 0;
    gcpi_random r;
    for (size_t p = 0; p < per; p++) {
        const gcp_real *x = gcpi_row(from, (size_t)image * per + p);
        gcp_real *y = gcpi_row_out(to, (size_t)image * per + p);
        for (size_t i = 0; i < width; i++, element++) {
            if (i == 0 || (element & 3) == 0)
                r = gcpi_philox((uint32_t)(element >> 2), (uint32_t)sample, (uint32_t)c->numbers->step,
                                (uint32_t)((element >> 34) ^ (sample >> 32)), key);
            gcp_real v = r.x[element & 3] >= limit ? x[i] * gain : 0;
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

/* Views: concat, slice, reshape. Nothing is copied where output and input are the same bytes. */
static gcp_view gcpi_channels(const gcp_view *v, int first, int count)
{
    gcp_view part = *v;
    part.data = (gcp_real *)v->data + first;
    part.shape.d[3] = count;
    return part;
}
static int gcpi_concat_shape(gcp_shape_call *s)
{
    long long channels = 0;
    for (int i = 0; i < s->inputs; i++) {
        gcp_shape want = s->in[0];
        want.d[3] = s->in[i].d[3];
        if (!gcpi_same_shape(want, s->in[i]))
            return gcpi_refuse(s, "%s beside %s", GCPI_TEXT(s->in[0]), GCPI_TEXT(s->in[i]));
        channels += s->in[i].d[3];
    }
    if (channels > INT32_MAX) return gcpi_refuse(s, "%lld channels", channels);
    s->out[0] = s->in[0];
    s->out[0].d[3] = (int)channels;
    return gcpi_all_real(s);
}
static void gcpi_concat_forward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3]) {
        gcp_view part = gcpi_channels(&c->out[0], at, c->in[i].shape.d[3]);
        gcpi_view_copy(c, &part, &c->in[i], 0);
    }
}
static void gcpi_concat_backward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3]) {
        gcp_view part = gcpi_channels(&c->dout[0], at, c->in[i].shape.d[3]);
        if (c->din[i].data) gcpi_view_copy(c, &c->din[i], &part, c->din[i].accumulate);
    }
}

static int gcpi_slice_shape(gcp_shape_call *s)
{
    int first = gcpi_attr(s->attributes)->number.i, count = gcpi_attr(s->attributes)->number.j;
    if (first < 0 || count < 1 || first > s->in[0].d[3] - count)
        return gcpi_refuse(s, "channels [%d, %d + %d) of %s", first, first, count, GCPI_TEXT(s->in[0]));
    s->out[0] = s->in[0];
    s->out[0].d[3] = count;
    return gcpi_all_real(s);
}
static void gcpi_slice_forward(const gcp_call *c)
{
    gcp_view part = gcpi_channels(&c->in[0], gcpi_attr(c->attributes)->number.i, c->out[0].shape.d[3]);
    gcpi_view_copy(c, &c->out[0], &part, 0);
}
static void gcpi_slice_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    gcp_view part = gcpi_channels(&c->din[0], gcpi_attr(c->attributes)->number.i, c->dout[0].shape.d[3]);
    if (!c->din[0].accumulate)
        for (int n = 0; n < c->din[0].shape.d[0]; n++) gcpi_zero_image(&c->din[0], n);
    gcpi_view_copy(c, &part, &c->dout[0], c->din[0].accumulate);
}

static int gcpi_reshape_shape(gcp_shape_call *s)
{
    s->out[0] = gcpi_attr(s->attributes)->shape;
    s->out_dtype[0] = s->in_dtype[0];
    if (gcpi_count(s->out[0]) != gcpi_count(s->in[0]))
        return gcpi_refuse(s, "%s into %s: %zu and %zu values", GCPI_TEXT(s->in[0]), GCPI_TEXT(s->out[0]),
                           gcpi_count(s->in[0]), gcpi_count(s->out[0]));
    return gcpi_all_real(s);
}
GCPI_LOOP void gcpi_reshape_copy(const gcp_view *to, const gcp_view *from, int accumulate)    /* row lengths differ */
{
    size_t n = gcpi_count(to->shape), tw = (size_t)to->shape.d[3], fw = (size_t)from->shape.d[3];
    if (to->data == from->data && !accumulate) return;
    for (size_t i = 0; i < n;) {
        size_t run = GCPI_MIN(tw - i % tw, fw - i % fw);
        gcp_real *t = gcpi_row_out(to, i / tw) + i % tw;
        const gcp_real *f = gcpi_row(from, i / fw) + i % fw;
        for (size_t k = 0; k < run; k++) t[k] = accumulate ? t[k] + f[k] : f[k];
        i += run;
    }
}
static void gcpi_reshape_forward(const gcp_call *c) { gcpi_reshape_copy(&c->out[0], &c->in[0], 0); }
static void gcpi_reshape_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_reshape_copy(&c->din[0], &c->dout[0], c->din[0].accumulate);
}

/* Embedding. Backward adds rows in the order of the ids. */
static int gcpi_embedding_shape(gcp_shape_call *s)
{
    const int *d = s->in[0].d;
    if (s->in_dtype[0] != GCP_DTYPE_I32) return gcpi_refuse_type(s, "ids must be gcp_ids");
    if (s->in_dtype[1] != GCP_DTYPE_REAL) return gcpi_refuse_type(s, "input 1 holds integers, not real numbers");
    if (d[1] != 1 || s->in[0].rank > 2) return gcpi_refuse(s, "ids of %s: at most two sizes", GCPI_TEXT(s->in[0]));
    s->out[0].rank = s->in[0].rank + 1;
    s->out[0].d[0] = s->in[0].rank == 1 ? d[3] : d[0];
    s->out[0].d[1] = 1;
    s->out[0].d[2] = s->in[0].rank == 1 ? 1 : d[3];
    s->out[0].d[3] = s->in[1].d[3];
    return 1;
}
static size_t gcpi_entry(const gcp_call *c, size_t i)
{
    int32_t id = ((const int32_t *)c->in[0].data)[i];
    return id < 0 || (size_t)id >= gcpi_pixels(c->in[1].shape) ? 0 : (size_t)id;
}
static void gcpi_embedding_forward(const gcp_call *c)
{
    size_t n = gcpi_count(c->in[0].shape), width = (size_t)c->in[1].shape.d[3] * sizeof(gcp_real);
    for (size_t i = 0; i < n; i++) memcpy(gcpi_row_out(&c->out[0], i), gcpi_row(&c->in[1], gcpi_entry(c, i)), width);
}
static void gcpi_embedding_backward(const gcp_call *c)
{
    size_t n = gcpi_count(c->in[0].shape);
    const gcp_view *d = &c->din[1];
    if (!d->data) return;
    if (!d->accumulate) memset(d->data, 0, gcpi_count(d->shape) * sizeof(gcp_real));
    for (size_t i = 0; i < n; i++) {
        gcp_real *to = gcpi_row_out(d, gcpi_entry(c, i));
        const gcp_real *dy = gcpi_row(&c->dout[0], i);
        for (int k = 0; k < d->shape.d[3]; k++) to[k] += dy[k];
    }
}
