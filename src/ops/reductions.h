/* Sums, means and largest values over chosen axes. A sum is the gradient of an expand, and its gradient is an expand:
   both run there (binary.h). */

static int gcpi_reduce_shape(gcp_shape_call *s)
{
    const int axes = gcpi_attr(s->attributes)->reduce.axes;
    if (axes == 15) { s->out[0] = gcpi_scalar(); return gcpi_all_real(s); }
    s->out[0] = s->in[0];
    for (int k = 0; k < 4; k++) if (axes >> k & 1) s->out[0].d[k] = 1;
    return gcpi_all_real(s);
}

/* ---- sum ---- */

/* Runs an expand of `part` to `whole`, or its gradient. */
static void gcpi_expand_call(const gcp_call *c, const gcp_view *part, const gcp_view *whole,
                             void (*run)(const gcp_call *call))
{
    gcpi_attributes a = gcpi_no_attributes();
    gcp_call expand = *c;
    a.pair.fn = GCPI_PAIR_EXPAND;
    expand.attributes = &a;
    expand.in = expand.din = part;
    expand.out = expand.dout = whole;
    run(&expand);
}
static void gcpi_sum_forward(const gcp_call *c)
{
    gcpi_expand_call(c, &c->out[0], &c->in[0], gcpi_pair_backward);
}
static void gcpi_sum_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_expand_call(c, &c->dout[0], &c->din[0], gcpi_pair_forward);
}
/* The cost of a sum as that of the expand. */
static gcp_cost_call gcpi_expand_cost_call(const gcp_cost_call *c)
{
    gcp_cost_call expand = *c;
    expand.in = c->out; expand.out = c->in;
    expand.backward = !c->backward; expand.wanted = 1;
    return expand;
}
static void gcpi_sum_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    const gcp_cost_call expand = gcpi_expand_cost_call(c);
    gcpi_pair_cost(&expand, cost);
}

/* ---- max: the gradient goes to the first of several that are the largest ---- */

enum { GCPI_MAX_RUN = 256 };
typedef struct gcpi_max_job {
    const gcp_call *call;
    int axes;
    size_t units, each, chunk;             /* pixels of the result; of x for each of them; of the result in a task */
} gcpi_max_job;

/* The pixel of x that is the i-th of those that unit u of the result is made of. */
static size_t gcpi_max_pixel(const gcpi_max_job *job, size_t u, size_t i)
{
    const int *d = job->call->in[0].shape.d;
    size_t at = 0, step = 1;
    for (int k = 2; k >= 0; k--) {
        size_t *index = job->axes >> k & 1 ? &i : &u;
        at += *index % (size_t)d[k] * step;
        *index /= (size_t)d[k];
        step *= (size_t)d[k];
    }
    return at;
}
/* xh, yh: whether x, y are halves. Literals, but where one of them is. */
GCPI_BODY void gcpi_max_units(const gcpi_max_job *job, size_t first, size_t last, const int xh, const int yh)
{
    const gcp_call *c = job->call;
    const int n = c->in[0].shape.d[3], across = job->axes >> 3 & 1;
    for (size_t u = first; u < last; u++) {
        void *y = gcpi_elements(&c->out[0], u, 0).at;
        for (size_t i = 0; i < job->each; i++) {
            const void *x = gcpi_elements(&c->in[0], gcpi_max_pixel(job, u, i), 0).at;
            for (int k = 0; k < (across ? 1 : n) && i == 0; k++) GCPI_PUT_SETTLED(yh, y, k, GCPI_AT(xh, x, k))
            if (across) for (int k = 0; k < n; k++) {
                const gcp_real v = GCPI_AT(xh, x, k);
                if (v > GCPI_AT(yh, y, 0) || v != v) GCPI_PUT_SETTLED(yh, y, 0, v)
            }
            else GCPI_EACH for (int k = 0; k < n; k++) {
                const gcp_real v = GCPI_AT(xh, x, k), most = GCPI_AT(yh, y, k);
                GCPI_PUT_SETTLED(yh, y, k, v > most || v != v ? v : most)
            }
        }
    }
}
GCPI_BODY void gcpi_max_task_body(void *arg, int index, int worker)
{
    const gcpi_max_job *job = (const gcpi_max_job *)arg;
    const size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->units);
    const int xh = job->call->in[0].dtype == GCP_DTYPE_BF16, yh = job->call->out[0].dtype == GCP_DTYPE_BF16;
    if (xh && yh) gcpi_max_units(job, first, last, 1, 1);
    else if (!xh && !yh) gcpi_max_units(job, first, last, 0, 0);
    else gcpi_max_units(job, first, last, xh, yh);
    (void)worker;
}
GCPI_WIDE_TASK(gcpi_max_task, gcpi_max_job)
/* Channels [from, to) of what unit u is made of. */
static void gcpi_max_run_back(const gcpi_max_job *job, size_t u, int from, int to)
{
    const gcp_call *c = job->call;
    const gcpi_array y = gcpi_elements(&c->out[0], u, 0), dy = gcpi_elements(&c->dout[0], u, 0);
    const int across = job->axes >> 3 & 1, adds = c->din[0].accumulate;
    unsigned char taken[GCPI_MAX_RUN] = { 0 };
    for (size_t i = 0; i < job->each; i++) {
        const size_t pixel = gcpi_max_pixel(job, u, i);
        const gcpi_array x = gcpi_elements(&c->in[0], pixel, 0), dx = gcpi_elements(&c->din[0], pixel, 0);
        for (int k = from; k < to; k++) {
            const int at = across ? 0 : k, slot = across ? 0 : k - from,
                      hit = !taken[slot] && GCPI_AT(x.half, x.at, k) == GCPI_AT(y.half, y.at, at);
            const gcp_real d = hit ? GCPI_AT(dy.half, dy.at, at) : 0;
            taken[slot] |= (unsigned char)hit;
            GCPI_PUT(dx.half, dx.at, k, (adds ? GCPI_AT(dx.half, dx.at, k) : 0) + d)
        }
    }
}
static void gcpi_max_task_back(void *arg, int index, int worker)
{
    const gcpi_max_job *job = (const gcpi_max_job *)arg;
    const size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->units);
    const int n = job->call->in[0].shape.d[3], run = job->axes >> 3 & 1 ? n : GCPI_MAX_RUN;
    for (size_t u = first; u < last; u++)
        for (int k = 0; k < n; k += GCPI_MIN(run, n - k)) gcpi_max_run_back(job, u, k, k + GCPI_MIN(run, n - k));
    (void)worker;
}
static void gcpi_max_run(const gcp_call *c, void (*task)(void *arg, int index, int worker))
{
    gcpi_max_job job;
    job.call = c; job.axes = gcpi_attr(c->attributes)->reduce.axes;
    job.units = gcpi_pixels(c->out[0].shape);
    job.each = gcpi_pixels(c->in[0].shape) / job.units;
    job.chunk = GCPI_MAX((size_t)1, GCPI_CHUNK / job.each / (size_t)c->in[0].shape.d[3]);
    gcpi_parallel(c->target, (int)((job.units + job.chunk - 1) / job.chunk), task, &job);
}
static void gcpi_max_forward(const gcp_call *c) { gcpi_max_run(c, gcpi_max_task); }
static void gcpi_max_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_max_run(c, gcpi_max_task_back);
}

static void gcpi_reduce_call(gcpi_code *c, const gcpi_op *op)
{
    static const char *const names[] = { "samples", "height", "width", "channels" };
    const int axes = op->attributes.reduce.axes;
    gcpi_code_call(c, op, "reduce", 0, 1);
    gcpi_code_word(c, "by", op->kind == GCP_OP_SUM ? "GCP_REDUCE_SUM" : "GCP_REDUCE_MAX");
    for (int k = 0; k < 4 && axes != 15; k++) gcpi_code_int(c, names[k], axes >> k & 1, 0);
}
static void gcpi_reduce_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_reduce_call;
    f->apart = !(op->attributes.reduce.axes & 1);
    f->channels = op->attributes.reduce.axes & 8 ? GCPI_CHANNELS_UNKNOWN : GCPI_CHANNELS_SAME;
}
static const gcpi_op_row gcpi_sum_row = {
    GCP_OP_SUM,
    { "sum", gcpi_reduce_shape, gcpi_sum_forward, gcpi_sum_backward, gcpi_sum_cost, 0, 0, GCP_FLAG_BF16, 1, NULL },
    gcpi_reduce_facts
};
static const gcpi_op_row gcpi_max_row = {
    GCP_OP_MAX,
    { "max", gcpi_reduce_shape, gcpi_max_forward, gcpi_max_backward, NULL, GCPI_IN(0), GCPI_OUT(0), GCP_FLAG_BF16, 1,
      NULL },
    gcpi_reduce_facts
};

/* A mean is a sum, scaled: one more value for each of the result. */
GCPI_DEF gcp_tensor gcp_reduce_at(gcp_tensor x, gcp_reduce_opts o)
{
    const gcp_shape s = gcp_shape_of(x);
    gcpi_attributes a = gcpi_no_attributes();
    gcp_scale_opts scale;
    const int axes = (o.samples ? 1 : 0) | (o.height ? 2 : 0) | (o.width || o.tokens ? 4 : 0) | (o.channels ? 8 : 0);
    a.reduce.axes = axes ? axes : 15;
    if (o.by < GCP_REDUCE_MEAN || o.by > GCP_REDUCE_MAX)
        return gcpi_bad_option(x, o.at, "reduce", ".by", (double)o.by, "one of GCP_REDUCE_MEAN, SUM, MAX");
    if (o.by != GCP_REDUCE_MEAN)
        return gcpi_simple(o.by == GCP_REDUCE_SUM ? &gcpi_sum_row : &gcpi_max_row, &x, 1, &a, o.name, o.at);
    const gcpi_before before = gcpi_before_ops(x);
    gcp_tensor sum = gcpi_simple(&gcpi_sum_row, &x, 1, &a, NULL, o.at);
    scale.at = o.at; scale.name = o.name; scale.by = 1;
    for (int k = 0; k < 4; k++) if (a.reduce.axes >> k & 1) scale.by /= s.d[k];
    return gcpi_all_or_none(x, before, 2, gcp_is_nil(sum) ? sum : gcp_scale_at(sum, scale));
}
