/* Losses: cross_entropy, mse, mean. */

/* One sum per block of pixels. The shape fixes the blocks; their sums are added in order, in double. */
typedef struct gcpi_loss_job {
    const gcp_call *call;
    double (*value)(const gcp_call *call, size_t pixel);
    size_t pixels, blocks;
} gcpi_loss_job;
static void gcpi_loss_task(void *arg, int index, int worker)
{
    const gcpi_loss_job *job = (const gcpi_loss_job *)arg;
    size_t first = job->pixels * (size_t)index / job->blocks, last = job->pixels * (size_t)(index + 1) / job->blocks;
    double sum = 0;
    for (size_t p = first; p < last; p++) sum += job->value(job->call, p);
    ((double *)job->call->workspace)[index] = sum;
    (void)worker;
}
static size_t gcpi_loss_blocks(gcp_shape s) { return GCPI_MIN((size_t)64, (gcpi_pixels(s) + 15) / 16); }
static void gcpi_loss(const gcp_call *c, double (*value)(const gcp_call *call, size_t pixel), double count)
{
    gcpi_loss_job job;
    double sum = 0;
    job.call = c; job.value = value; job.pixels = gcpi_pixels(c->in[0].shape);
    job.blocks = gcpi_loss_blocks(c->in[0].shape);
    gcpi_parallel(c->target, (int)job.blocks, gcpi_loss_task, &job);
    for (size_t b = 0; b < job.blocks; b++) sum += ((double *)c->workspace)[b];
    *(gcp_real *)c->out[0].data = (gcp_real)(sum / count);
}
static void gcpi_loss_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (!c->backward) cost->workspace = gcpi_loss_blocks(c->in[0]) * sizeof(double);
}

static int gcpi_cross_entropy_shape(gcp_shape_call *s)
{
    s->out[0] = gcpi_scalar();
    if (s->in_dtype[0] != GCP_DTYPE_REAL || s->in_dtype[1] != GCP_DTYPE_I32)
        return gcpi_refuse_type(s, "needs real logits and gcp_labels");
    if (gcpi_count(s->in[1]) != gcpi_pixels(s->in[0]))
        return gcpi_refuse(s, "%zu labels for the %zu rows of %s", gcpi_count(s->in[1]), gcpi_pixels(s->in[0]),
                           GCPI_SHAPE_TEXT(s->in[0]));
    return 1;
}
static int gcpi_label(const gcp_call *c, size_t pixel)                       /* -1: ignored, or out of range */
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    int32_t label = ((const int32_t *)c->in[1].data)[pixel];
    return label >= 0 && label < c->in[0].shape.d[3] && !(a->labels.ignores && label == a->labels.ignore) ? label : -1;
}
static double gcpi_labels_counted(const gcp_call *c)
{
    size_t n = gcpi_pixels(c->in[0].shape), counted = 0;
    for (size_t p = 0; p < n; p++) counted += gcpi_label(c, p) >= 0;
    return counted ? (double)counted : 1;
}
/* A row of logits: its largest, the sum of exponentials above that, the sum of all; in backward the gradient, dx =
   share (softmax - even) and at the label `hit` less. */
typedef struct gcpi_logits {
    const gcp_target *target;
    const gcp_real *x;
    gcp_real *dx, top, share, even;
    int n, accumulate;
    double sum, all;
} gcpi_logits;
GCPI_BODY void gcpi_logits_sum_body(gcpi_logits *l, int fused)
{
    gcp_real part[GCPI_SOFTMAX_PART];
    const gcp_real *x = l->x;
    l->top = gcpi_row_top(x, l->n);
    l->sum = 0;
    for (int i = 0; i < l->n; i += GCPI_SOFTMAX_PART)
        l->sum += gcpi_row_exp(fused, x + i, part, l->top, GCPI_MIN(l->n - i, (int)GCPI_SOFTMAX_PART));
    l->all = 0;
    if (l->even > 0) GCPI_ROW_SUM(l->all, l->n, i, (double)x[i])
}
GCPI_BODY void gcpi_logits_back_body(gcpi_logits *l, int fused)
{
    const gcp_real *x = l->x, top = l->top, scale = (gcp_real)((double)l->share / l->sum), even = l->share * l->even;
    gcp_real *dx = l->dx;
    (void)fused;
    if (l->accumulate) GCPI_EACH for (int i = 0; i < l->n; i++) dx[i] += gcpi_exp1(x[i] - top) * scale - even;
    else GCPI_EACH for (int i = 0; i < l->n; i++) dx[i] = gcpi_exp1(x[i] - top) * scale - even;
}
GCPI_CALLS
GCPI_EACH_SET(gcpi_logits_sum, (gcpi_logits *l), (l), l->target, gcpi_logits_sum_body(l, 0), gcpi_logits_sum_body(l, 1))
GCPI_EACH_SET(gcpi_logits_back, (gcpi_logits *l), (l), l->target, gcpi_logits_back_body(l, 0),
              gcpi_logits_back_body(l, 1))
GCPI_CALLS_END

static gcpi_logits gcpi_logits_of(const gcp_call *c, size_t pixel)
{
    gcpi_logits l;
    memset(&l, 0, sizeof l);
    l.target = c->target;
    l.x = gcpi_row(&c->in[0], pixel);
    l.n = c->in[0].shape.d[3];
    l.even = (gcp_real)(gcpi_attr(c->attributes)->labels.smoothing / l.n);
    gcpi_logits_sum(&l);
    return l;
}
static double gcpi_cross_entropy_value(const gcp_call *c, size_t pixel)
{
    const double smoothing = gcpi_attr(c->attributes)->labels.smoothing;
    const int label = gcpi_label(c, pixel);
    if (label < 0) return 0;
    const gcpi_logits l = gcpi_logits_of(c, pixel);
    return log(l.sum) + (double)l.top - (1 - smoothing) * (double)l.x[label] - smoothing * l.all / l.n;
}
static void gcpi_cross_entropy_forward(const gcp_call *c)
{
    gcpi_loss(c, gcpi_cross_entropy_value, gcpi_labels_counted(c));
}
typedef struct gcpi_cross_entropy_job {
    const gcp_call *call; double share; size_t pixels, chunk;
} gcpi_cross_entropy_job;
static void gcpi_cross_entropy_task_back(void *arg, int index, int worker)
{
    const gcpi_cross_entropy_job *job = (const gcpi_cross_entropy_job *)arg;
    const gcp_call *c = job->call;
    const gcp_view *d = &c->din[0];
    const gcp_real hit = (gcp_real)((1 - gcpi_attr(c->attributes)->labels.smoothing) * job->share);
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    for (size_t p = first; p < last; p++) {
        const int label = gcpi_label(c, p);
        gcp_real *dx = gcpi_row_out(d, p);
        if (label < 0 && !d->accumulate) memset(dx, 0, (size_t)d->shape.d[3] * sizeof *dx);
        if (label < 0) continue;
        gcpi_logits l = gcpi_logits_of(c, p);
        l.dx = dx; l.accumulate = d->accumulate; l.share = (gcp_real)job->share;
        gcpi_logits_back(&l);
        dx[label] -= hit;
    }
    (void)worker;
}
static void gcpi_cross_entropy_backward(const gcp_call *c)
{
    gcpi_cross_entropy_job job;
    if (!c->din[0].data) return;
    job.call = c; job.pixels = gcpi_pixels(c->in[0].shape);
    job.share = (double)*(const gcp_real *)c->dout[0].data / gcpi_labels_counted(c);
    job.chunk = GCPI_MAX((size_t)1, GCPI_CHUNK / (size_t)c->in[0].shape.d[3]);
    gcpi_parallel(c->target, (int)((job.pixels + job.chunk - 1) / job.chunk), gcpi_cross_entropy_task_back, &job);
}

static int gcpi_mse_shape(gcp_shape_call *s)
{
    s->out[0] = gcpi_scalar();
    if (!gcpi_same_shape(s->in[0], s->in[1]))
        return gcpi_refuse(s, "%s and %s differ", GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[1]));
    return gcpi_all_real(s);
}
static double gcpi_mse_value(const gcp_call *c, size_t pixel)
{
    const gcp_real *a = gcpi_row(&c->in[0], pixel), *b = gcpi_row(&c->in[1], pixel);
    double sum = 0;
    for (int i = 0; i < c->in[0].shape.d[3]; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}
static void gcpi_mse_forward(const gcp_call *c) { gcpi_loss(c, gcpi_mse_value, (double)gcpi_count(c->in[0].shape)); }
static void gcpi_mse_backward(const gcp_call *c)
{
    gcp_real share = (gcp_real)(2.0 * (double)*(const gcp_real *)c->dout[0].data / (double)gcpi_count(c->in[0].shape));
    for (int k = 0; k < 2; k++)
        for (size_t p = 0; c->din[k].data && p < gcpi_pixels(c->in[0].shape); p++) {
            const gcp_real *a = gcpi_row(&c->in[k], p), *b = gcpi_row(&c->in[1 - k], p);
            gcp_real *d = gcpi_row_out(&c->din[k], p);
            for (int i = 0; i < c->in[0].shape.d[3]; i++)
                d[i] = (c->din[k].accumulate ? d[i] : 0) + (a[i] - b[i]) * share;
        }
}

static int gcpi_mean_shape(gcp_shape_call *s) { s->out[0] = gcpi_scalar(); return gcpi_all_real(s); }
static double gcpi_mean_value(const gcp_call *c, size_t pixel)
{
    const gcp_real *x = gcpi_row(&c->in[0], pixel);
    double sum = 0;
    for (int i = 0; i < c->in[0].shape.d[3]; i++) sum += (double)x[i];
    return sum;
}
static void gcpi_mean_forward(const gcp_call *c) { gcpi_loss(c, gcpi_mean_value, (double)gcpi_count(c->in[0].shape)); }
static void gcpi_mean_backward(const gcp_call *c)
{
    const gcp_view *d = &c->din[0];
    if (!d->data) return;
    gcp_real share = (gcp_real)((double)*(const gcp_real *)c->dout[0].data / (double)gcpi_count(d->shape));
    for (size_t p = 0; p < gcpi_pixels(d->shape); p++) {
        gcp_real *dx = gcpi_row_out(d, p);
        for (int i = 0; i < d->shape.d[3]; i++) dx[i] = (d->accumulate ? dx[i] : 0) + share;
    }
}

static gcpi_label_range gcpi_cross_entropy_labels(const gcpi_attributes *a, gcp_shape logits)
{
    gcpi_label_range r = { logits.d[3], a->labels.ignores, a->labels.ignores ? a->labels.ignore : -1 };
    return r;
}
static void gcpi_cross_entropy_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->labels = gcpi_cross_entropy_labels;
    f->leaves_out = 1;
}
static const gcpi_op_row gcpi_cross_entropy_row = {
    GCP_OP_CROSS_ENTROPY,
    { "cross_entropy", gcpi_cross_entropy_shape, gcpi_cross_entropy_forward, gcpi_cross_entropy_backward,
      gcpi_loss_cost, GCPI_IN(0) | GCPI_IN(1), 0, GCPI_LOSS, 1, NULL },
    gcpi_cross_entropy_facts
};
static const gcpi_op_row gcpi_mse_row = {
    GCP_OP_MSE,
    { "mse", gcpi_mse_shape, gcpi_mse_forward, gcpi_mse_backward, gcpi_loss_cost, GCPI_IN(0) | GCPI_IN(1), 0, GCPI_LOSS,
      1, NULL },
    NULL
};
static const gcpi_op_row gcpi_mean_row = {
    GCP_OP_MEAN,
    { "mean", gcpi_mean_shape, gcpi_mean_forward, gcpi_mean_backward, gcpi_loss_cost, 0, 0, GCPI_LOSS, 1, NULL },
    NULL
};

GCPI_DEF gcp_tensor gcp_cross_entropy_at(gcp_tensor x, gcp_tensor labels, gcp_cross_entropy_opts o)
{
    gcp_tensor in[2];
    gcpi_attributes a = gcpi_no_attributes();
    in[0] = x; in[1] = labels;
    a.labels.ignore = o.ignore == GCP_ZERO ? 0 : o.ignore;
    a.labels.ignores = o.ignore != 0;
    a.labels.smoothing = o.smoothing;
    if (!(o.smoothing >= 0 && o.smoothing < 1))
        return gcpi_bad_option(x, o.at, "cross_entropy", ".smoothing", o.smoothing, "at least 0 and less than 1");
    return gcpi_simple(&gcpi_cross_entropy_row, in, 2, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_mse_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_mse_row, a, b, o);
}
GCPI_DEF gcp_tensor gcp_mean_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(&gcpi_mean_row, x, o); }
