/* Losses: cross_entropy, mse, mean, and those made of other ops. */

/* One sum per block of pixels. The shape fixes the blocks; their sums are added in order, in double. */
typedef struct gcpi_loss_job {
    const gcp_call *call;
    double (*value)(const gcp_call *call, size_t pixel);
    size_t pixels, blocks;
    gcpi_used used;
    int halves;                       /* some of them: rows are read by blocks in floats */
    double *sums;
} gcpi_loss_job;
static void gcpi_loss_task(void *arg, int index, int worker)
{
    const gcpi_loss_job *job = (const gcpi_loss_job *)arg;
    const int width = job->call->in[0].shape.d[3];
    const size_t first = job->pixels * (size_t)index / job->blocks,
                 last = job->pixels * (size_t)(index + 1) / job->blocks, step = gcpi_block_rows((size_t)width, 0);
    unsigned char *room = (unsigned char *)job->call->workspace + (size_t)worker * gcpi_block_room((size_t)width, 0);
    double sum = 0;
    for (size_t p = first; !job->halves && p < last; p++) sum += job->value(job->call, p);
    for (size_t p = first, n; job->halves && p < last; p += n) {
        gcpi_block_call b;
        n = GCPI_MIN(step, last - p);
        gcpi_block_open(&b, job->call, job->used, width, p, n, room);
        for (size_t i = 0; i < n; i++) sum += job->value(&b.call, i);
    }
    job->sums[index] = sum;
}
static size_t gcpi_loss_blocks(gcp_shape s) { return GCPI_MIN((size_t)64, (gcpi_pixels(s) + 15) / 16); }
static void gcpi_loss(const gcp_call *c, double (*value)(const gcp_call *call, size_t pixel), gcpi_used used,
                      double count)
{
    gcpi_loss_job job;
    double sum = 0;
    job.call = c; job.value = value; job.used = used;
    job.halves = gcpi_by_blocks(c, used);
    job.sums = (double *)(void *)((unsigned char *)c->workspace +
                                  gcpi_block_workspace(c->store, c->in[0].shape, c->target, 0));
    job.pixels = gcpi_pixels(c->in[0].shape);
    job.blocks = gcpi_loss_blocks(c->in[0].shape);
    gcpi_parallel(c->target, (int)job.blocks, gcpi_loss_task, &job);
    for (size_t b = 0; b < job.blocks; b++) sum += job.sums[b];
    *(gcp_real *)c->out[0].data = (gcp_real)(sum / count);
}
static void gcpi_loss_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_rows_cost(c, cost);
    if (!c->backward) cost->workspace += gcpi_loss_blocks(c->in[0]) * sizeof(double);
}

/* ---- cross-entropy: of a pixel, weight times the sum over classes of target (log of the sum of exp(x) - x) ---- */

/* The input with weights, whose number `at` is an attribute; NULL: there are none. */
static const gcp_real *gcpi_loss_weights(const gcp_call *c, int at)
{
    return at ? (const gcp_real *)c->in[at].data : NULL;
}
static int gcpi_cross_entropy_shape(gcp_shape_call *s)
{
    const gcpi_attributes *a = gcpi_attr(s->attributes);
    const size_t pixels = gcpi_pixels(s->in[0]);
    s->out[0] = gcpi_scalar();
    if (s->in_dtype[0] != GCP_DTYPE_REAL || (a->labels.soft && !gcpi_same_shape(s->in[0], s->in[1])))
        return gcpi_refuse_type(s, "needs real logits, and gcp_labels or real targets of the logits' shape");
    if (!a->labels.soft && gcpi_count(s->in[1]) != pixels)
        return gcpi_refuse(s, "%zu labels for the %zu rows of %s", gcpi_count(s->in[1]), pixels,
                           GCPI_SHAPE_TEXT(s->in[0]));
    for (int i = 2; i < s->inputs; i++) {
        const size_t found = gcpi_count(s->in[i]), wanted = i == a->labels.classes ? (size_t)s->in[0].d[3] : pixels;
        if (s->in_dtype[i] != GCP_DTYPE_REAL) return gcpi_refuse_type(s, "weights are real numbers, not integers");
        if (found != wanted)
            return gcpi_refuse(s, "%zu %s for the %zu %s of %s", found,
                               i == a->labels.classes ? ".class_weights" : ".sample_weights", wanted,
                               i == a->labels.classes ? "classes" : "rows", GCPI_SHAPE_TEXT(s->in[0]));
    }
    return 1;
}
/* -1: ignored, or out of range */
static int gcpi_label(const gcp_call *c, size_t pixel)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    int32_t label = ((const int32_t *)c->in[1].data)[pixel];
    return label >= 0 && label < c->in[0].shape.d[3] && !(a->labels.ignores && label == a->labels.ignore) ? label : -1;
}
/* The pixel's share of what the loss is divided by. */
static double gcpi_pixel_counts(const gcp_call *c, size_t pixel)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    const gcp_real *samples = gcpi_loss_weights(c, a->labels.samples);
    const gcp_real *classes = gcpi_loss_weights(c, a->labels.classes);
    const int label = a->labels.soft ? 0 : gcpi_label(c, pixel);
    if (label < 0) return 0;
    return (samples ? (double)samples[pixel] : 1) * (classes && !a->labels.soft ? (double)classes[label] : 1);
}
static double gcpi_pixels_count(const gcp_call *c)
{
    size_t n = gcpi_pixels(c->in[0].shape);
    double counted = 0;
    for (size_t p = 0; p < n; p++) counted += gcpi_pixel_counts(c, p);
    return counted != 0 ? counted : 1;
}
/* A row of logits. Targets are `even` for all classes, or of a class (keep targets + even) classes; and `hit` for the
   label besides. The largest x, the sum of exp(x - top), of targets, of targets times x. In backward dx is
   share (weight softmax - target). */
typedef struct gcpi_logits {
    const gcp_target *target;
    const gcp_real *x, *targets, *classes;
    gcp_real *dx, top, keep, even;
    int n, label, accumulate;
    double sum, weight, all, hit, share;
} gcpi_logits;
/* Targets of classes from `first` on; n: at most GCPI_SOFTMAX_PART. */
GCPI_BODY void gcpi_logits_targets(const gcpi_logits *l, int first, int n, gcp_real *part)
{
    const gcp_real *t = l->targets ? l->targets + first : NULL, *classes = l->classes ? l->classes + first : NULL;
    if (t) GCPI_EACH for (int i = 0; i < n; i++) part[i] = l->keep * t[i] + l->even;
    else GCPI_EACH for (int i = 0; i < n; i++) part[i] = l->even;
    if (classes) GCPI_EACH for (int i = 0; i < n; i++) part[i] *= classes[i];
}
GCPI_BODY void gcpi_logits_sum_body(gcpi_logits *l, int fused)
{
    gcp_real part[GCPI_SOFTMAX_PART];
    const gcp_real *x = l->x;
    const int plain = !l->targets && !l->classes;
    l->top = gcpi_row_top(x, l->n);
    l->sum = l->weight = l->all = 0;
    for (int i = 0; i < l->n; i += GCPI_SOFTMAX_PART)
        l->sum += gcpi_row_exp(fused, x + i, part, l->top, GCPI_MIN(l->n - i, (int)GCPI_SOFTMAX_PART));
    if (plain && l->even > 0) {
        GCPI_ROW_SUM(l->all, l->n, i, (double)x[i])
        l->all *= (double)l->even;
        l->weight = (double)l->even * l->n;
    }
    for (int i = 0, n; !plain && i < l->n; i += n) {
        const gcp_real *from = x + i;
        double weight, all;
        n = GCPI_MIN(l->n - i, (int)GCPI_SOFTMAX_PART);
        gcpi_logits_targets(l, i, n, part);
        GCPI_ROW_SUM(weight, n, e, (double)part[e])
        GCPI_ROW_SUM(all, n, e, (double)(part[e] * from[e]))
        l->weight += weight; l->all += all;
    }
}
GCPI_BODY void gcpi_logits_back_body(gcpi_logits *l, int fused)
{
    const gcp_real top = l->top, scale = (gcp_real)(l->share * l->weight / l->sum), share = (gcp_real)l->share,
                   even = share * l->even;
    gcp_real part[GCPI_SOFTMAX_PART];
    const int plain = !l->targets && !l->classes;
    (void)fused;
    for (int first = 0, n; first < l->n; first += n) {
        const gcp_real *x = l->x + first;
        gcp_real *dx = l->dx + first;
        n = GCPI_MIN(l->n - first, (int)GCPI_SOFTMAX_PART);
        if (!plain) gcpi_logits_targets(l, first, n, part);
        else if (l->accumulate) {
            GCPI_EACH for (int i = 0; i < n; i++) dx[i] += gcpi_exp1(x[i] - top) * scale - even;
            continue;
        }
        else {
            GCPI_EACH for (int i = 0; i < n; i++) dx[i] = gcpi_exp1(x[i] - top) * scale - even;
            continue;
        }
        GCPI_EACH for (int i = 0; i < n; i++) part[i] = gcpi_exp1(x[i] - top) * scale - share * part[i];
        if (l->accumulate) GCPI_EACH for (int i = 0; i < n; i++) dx[i] += part[i];
        else memcpy(dx, part, (size_t)n * sizeof *dx);
    }
}
GCPI_CALLS
GCPI_EACH_SET(gcpi_logits_sum, (gcpi_logits *l), (l), l->target, gcpi_logits_sum_body(l, 0), gcpi_logits_sum_body(l, 1))
GCPI_EACH_SET(gcpi_logits_back, (gcpi_logits *l), (l), l->target, gcpi_logits_back_body(l, 0),
              gcpi_logits_back_body(l, 1))
GCPI_CALLS_END

static gcpi_logits gcpi_logits_of(const gcp_call *c, size_t pixel)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    const gcp_real *samples = gcpi_loss_weights(c, a->labels.samples);
    const double keep = 1 - a->labels.smoothing, weight = samples ? (double)samples[pixel] : 1;
    gcpi_logits l;
    memset(&l, 0, sizeof l);
    l.target = c->target;
    l.x = gcpi_row(&c->in[0], pixel);
    l.n = c->in[0].shape.d[3];
    l.label = a->labels.soft ? -1 : gcpi_label(c, pixel);
    l.targets = a->labels.soft ? gcpi_row(&c->in[1], pixel) : NULL;
    l.classes = a->labels.soft || a->labels.smoothing > 0 ? gcpi_loss_weights(c, a->labels.classes) : NULL;
    l.keep = (gcp_real)keep;
    l.even = (gcp_real)(a->labels.smoothing / l.n);
    l.share = weight;
    if (l.label < 0 && !a->labels.soft) return l;
    gcpi_logits_sum(&l);
    if (l.label < 0) return l;
    l.hit = keep * (a->labels.classes ? (double)gcpi_loss_weights(c, a->labels.classes)[l.label] : 1);
    l.weight += l.hit; l.all += l.hit * (double)l.x[l.label];
    return l;
}
static double gcpi_cross_entropy_value(const gcp_call *c, size_t pixel)
{
    const gcpi_logits l = gcpi_logits_of(c, pixel);
    return l.label >= 0 || l.targets ? l.share * (l.weight * (log(l.sum) + (double)l.top) - l.all) : 0;
}
/* Logits and soft targets are rows; labels and weights of samples have a value a row. */
static gcpi_used gcpi_cross_entropy_used(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    const gcpi_used used = { GCPI_USES_IN(0) | (a->labels.soft ? GCPI_USES_IN(1) : 0), 0, 0,
                             (a->labels.soft ? 0 : GCPI_USES_IN(1)) |
                                 (a->labels.samples ? GCPI_USES_IN(a->labels.samples) : 0) };
    return used;
}
static void gcpi_cross_entropy_forward(const gcp_call *c)
{
    gcpi_loss(c, gcpi_cross_entropy_value, gcpi_cross_entropy_used(c), gcpi_pixels_count(c));
}
static void gcpi_cross_entropy_task_back(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_view *d = &job->call->din[0];
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    for (size_t p = first; p < last; p++) {
        gcpi_logits l = gcpi_logits_of(job->call, p);
        l.dx = gcpi_row_out(d, p); l.accumulate = d->accumulate; l.share *= job->share;
        const int counts = l.label >= 0 || l.targets;
        if (!counts && !d->accumulate) memset(l.dx, 0, (size_t)d->shape.d[3] * sizeof *l.dx);
        if (!counts) continue;
        gcpi_logits_back(&l);
        if (l.label >= 0) l.dx[l.label] -= (gcp_real)(l.hit * l.share);
    }
    (void)worker;
}
static void gcpi_cross_entropy_backward(const gcp_call *c)
{
    gcpi_norm_job job = gcpi_norm_job_of(c, c->in[0].shape);
    gcpi_used used = gcpi_cross_entropy_used(c);
    if (!c->din[0].data) return;
    used.makes = GCPI_USES_DIN(0);
    job.share = (double)*(const gcp_real *)c->dout[0].data / gcpi_pixels_count(c);
    job.chunk = GCPI_MAX((size_t)1, GCPI_CHUNK / (size_t)c->in[0].shape.d[3]);
    gcpi_rows_run(&job, c->in[0].shape.d[3], used, gcpi_by_blocks(c, used), gcpi_cross_entropy_task_back);
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
static void gcpi_mse_forward(const gcp_call *c)
{
    static const gcpi_used used = { GCPI_USES_IN(0) | GCPI_USES_IN(1), 0, 0, 0 };
    gcpi_loss(c, gcpi_mse_value, used, (double)gcpi_count(c->in[0].shape));
}
/* The gradient of the one input that the call makes one of. */
static void gcpi_mse_task_back(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_call *c = job->call;
    const int k = c->din[0].data ? 0 : 1;
    const gcp_real share = (gcp_real)job->share;
    const size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    for (size_t p = first; p < last; p++) {
        const gcp_real *a = gcpi_row(&c->in[k], p), *b = gcpi_row(&c->in[1 - k], p);
        gcp_real *d = gcpi_row_out(&c->din[k], p);
        for (int i = 0; i < c->in[0].shape.d[3]; i++)
            d[i] = (c->din[k].accumulate ? d[i] : 0) + (a[i] - b[i]) * share;
    }
    (void)worker;
}
static void gcpi_mse_backward(const gcp_call *c)
{
    for (int k = 0; k < 2; k++) {
        const gcpi_used used = { GCPI_USES_IN(0) | GCPI_USES_IN(1), GCPI_USES_DIN(k), 0, 0 };
        gcp_call one = *c;
        gcp_view din[2] = { c->din[0], c->din[1] };
        gcpi_norm_job job = gcpi_norm_job_of(&one, c->in[0].shape);
        if (!c->din[k].data) continue;
        din[1 - k].data = NULL;
        one.din = din;
        job.share = 2.0 * (double)*(const gcp_real *)c->dout[0].data / (double)gcpi_count(c->in[0].shape);
        gcpi_rows_run(&job, c->in[0].shape.d[3], used, gcpi_by_blocks(&one, used), gcpi_mse_task_back);
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
static void gcpi_mean_forward(const gcp_call *c)
{
    static const gcpi_used used = { GCPI_USES_IN(0), 0, 0, 0 };
    gcpi_loss(c, gcpi_mean_value, used, (double)gcpi_count(c->in[0].shape));
}
static void gcpi_mean_task_back(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_view *d = &job->call->din[0];
    const gcp_real share = (gcp_real)job->share;
    const size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    for (size_t p = first; p < last; p++) {
        gcp_real *dx = gcpi_row_out(d, p);
        for (int i = 0; i < d->shape.d[3]; i++) dx[i] = (d->accumulate ? dx[i] : 0) + share;
    }
    (void)worker;
}
static void gcpi_mean_backward(const gcp_call *c)
{
    static const gcpi_used used = { 0, GCPI_USES_DIN(0), 0, 0 };
    const gcp_view *d = &c->din[0];
    gcpi_norm_job job = gcpi_norm_job_of(c, d->shape);
    if (!d->data) return;
    job.share = (double)*(const gcp_real *)c->dout[0].data / (double)gcpi_count(d->shape);
    gcpi_rows_run(&job, d->shape.d[3], used, gcpi_by_blocks(c, used), gcpi_mean_task_back);
}

static gcpi_label_range gcpi_cross_entropy_labels(const gcpi_attributes *a, gcp_shape logits)
{
    gcpi_label_range r = { logits.d[3], a->labels.ignores, a->labels.ignores ? a->labels.ignore : -1 };
    return r;
}
static void gcpi_cross_entropy_call(gcpi_code *c, const gcpi_op *op)
{
    static const char *const names[2] = { ", .class_weights = ", ", .sample_weights = " };
    const int given[2] = { op->attributes.labels.classes, op->attributes.labels.samples };
    gcpi_code_call(c, op, "cross_entropy", 0, 2);
    if (op->attributes.labels.ignores) gcpi_code_int(c, "ignore", op->attributes.labels.ignore, INT32_MIN);
    gcpi_code_real(c, "smoothing", op->attributes.labels.smoothing, 0);
    for (int i = 0; i < 2; i++) {
        if (!given[i]) continue;
        gcpi_say(c->w, "%s", names[i]);
        gcpi_code_input(c, op, given[i]);
    }
}
static void gcpi_cross_entropy_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_cross_entropy_call;
    f->stops = (op->attributes.labels.soft ? GCPI_IN(1) : 0) | GCPI_IN(2) | GCPI_IN(3);
    const int classes = op->attributes.labels.classes;
    f->labels = op->attributes.labels.soft ? NULL : gcpi_cross_entropy_labels;
    f->leaves_out = !op->attributes.labels.soft;
    f->shared = classes ? GCPI_IN(classes) : 0;
    f->dense = f->floats = GCPI_IN(2) | GCPI_IN(3);
}
static const gcpi_op_row gcpi_cross_entropy_row = {
    GCP_OP_CROSS_ENTROPY,
    { "cross_entropy", gcpi_cross_entropy_shape, gcpi_cross_entropy_forward, gcpi_cross_entropy_backward,
      gcpi_loss_cost, GCPI_IN(0) | GCPI_IN(1) | GCPI_IN(2) | GCPI_IN(3), 0, GCPI_LOSS | GCP_FLAG_BF16, 1,
      NULL },
    gcpi_cross_entropy_facts
};
static const gcpi_op_row gcpi_mse_row = {
    GCP_OP_MSE,
    { "mse", gcpi_mse_shape, gcpi_mse_forward, gcpi_mse_backward, gcpi_loss_cost, GCPI_IN(0) | GCPI_IN(1), 0,
      GCPI_LOSS | GCP_FLAG_BF16, 1, NULL },
    NULL
};
static const gcpi_op_row gcpi_mean_row = {
    GCP_OP_MEAN,
    { "mean", gcpi_mean_shape, gcpi_mean_forward, gcpi_mean_backward, gcpi_loss_cost, 0, 0, GCPI_LOSS | GCP_FLAG_BF16,
      1, NULL },
    NULL
};

/* What gives a loss its targets or weights: no gradient goes there. What is refused later stays as it is. */
static gcp_tensor gcpi_constant(gcp_tape *t, gcp_tensor x, gcp_at at)
{
    const gcpi_tensor *e = gcpi_get(x);
    gcp_op_opts o;
    if (!e || x.tape != t || t->code || e->dtype != GCP_DTYPE_REAL) return x;
    o.at = at; o.name = NULL;
    return gcp_stop_gradient_at(x, o);
}
GCPI_DEF gcp_tensor gcp_cross_entropy_at(gcp_tensor x, gcp_tensor labels, gcp_cross_entropy_opts o)
{
    const gcpi_tensor *given = gcpi_get(labels);
    gcp_tensor in[4];
    gcpi_attributes a = gcpi_no_attributes();
    int count = 2;
    if (!(o.smoothing >= 0 && o.smoothing < 1))
        return gcpi_bad_option(x, o.at, "cross_entropy", ".smoothing", o.smoothing, "at least 0 and less than 1");
    a.labels.soft = given && given->dtype == GCP_DTYPE_REAL;
    if (a.labels.soft && o.ignore)
        return gcpi_bad_option(x, o.at, "cross_entropy", ".ignore", o.ignore, "targets that are no labels have none");
    a.labels.ignore = o.ignore == GCP_ZERO ? 0 : o.ignore;
    a.labels.ignores = o.ignore != 0;
    a.labels.smoothing = o.smoothing;
    const gcpi_before before = gcpi_before_ops(x);
    in[0] = x; in[1] = gcpi_constant(x.tape, labels, o.at);
    if (o.class_weights.id) a.labels.classes = count, in[count++] = gcpi_constant(x.tape, o.class_weights, o.at);
    if (o.sample_weights.id) a.labels.samples = count, in[count++] = gcpi_constant(x.tape, o.sample_weights, o.at);
    const int ops = count - 1 + (a.labels.soft ? 1 : 0);
    return gcpi_all_or_none(x, before, ops, gcpi_simple(&gcpi_cross_entropy_row, in, count, &a, o.name, o.at));
}
GCPI_DEF gcp_tensor gcp_mean_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(&gcpi_mean_row, x, o); }

/* ---- losses that are made of other ops ---- */

/* The mean of a loss that was made value by value; with weights, divided by their sum, and 0 where that is 0. */
static gcp_tensor gcpi_weighted(gcp_tensor x, gcp_tensor weights, const char *named, gcp_at at)
{
    gcp_op_opts o, plain;
    gcp_reduce_opts sum;
    gcp_clamp_opts some;
    o.at = plain.at = sum.at = at; o.name = named; plain.name = sum.name = NULL;
    if (!weights.id) return gcp_mean_at(x, o);
    weights = gcpi_constant(x.tape, weights, at);
    sum.by = GCP_REDUCE_SUM; sum.samples = sum.height = sum.width = sum.channels = 1; sum.tokens = 0;
    x = gcp_mul_at(x, weights, plain);
    if (gcpi_count(gcp_shape_of(weights)) < gcpi_count(gcp_shape_of(x)))
        weights = gcp_expand_at(weights, gcp_shape_of(x), plain);
    some.at = at; some.name = NULL; some.low = 1e-30; some.high = HUGE_VAL;
    x = gcp_reduce_at(x, sum);
    weights = gcp_reduce_at(weights, sum);
    return gcp_div_at(x, gcp_clamp_at(weights, some), o);
}
/* How many ops gcpi_weighted records. */
static int gcpi_weighted_ops(gcp_tensor x, gcp_tensor weights)
{
    return !weights.id ? 1 : gcpi_count(gcp_shape_of(weights)) < gcpi_count(gcp_shape_of(x)) ? 7 : 6;
}
/* Refuses wrong shapes under the loss's name. */
static int gcpi_weights_fit(gcp_tensor a, gcp_tensor b, gcp_tensor weights, const char *what, gcp_at at)
{
    const gcp_shape x = gcp_shape_of(a), y = gcp_shape_of(b), w = gcp_shape_of(weights);
    if (!gcpi_enter(a, at, what)) return 0;
    if (!gcpi_usable(a.tape, b, at, what) || (weights.id && !gcpi_usable(a.tape, weights, at, what))) return 0;
    int fits = gcpi_same_shape(x, y);
    if (!fits) gcpi_fail(a.tape, GCP_E_SHAPE, at, what, "%s and %s differ", GCPI_SHAPE_TEXT(x), GCPI_SHAPE_TEXT(y));
    for (int k = 0; k < 4 && weights.id; k++) fits &= w.d[k] == x.d[k] || w.d[k] == 1;
    if (!fits)
        gcpi_fail(a.tape, GCP_E_SHAPE, at, what, "weights of %s for %s: each size must be equal, or 1",
                  GCPI_SHAPE_TEXT(w), GCPI_SHAPE_TEXT(x));
    return fits;
}
GCPI_DEF gcp_tensor gcp_mse_at(gcp_tensor a, gcp_tensor b, gcp_loss_opts o)
{
    gcp_op_opts plain;
    plain.at = o.at; plain.name = o.weights.id ? NULL : o.name;
    const gcpi_before before = gcpi_before_ops(a);
    if (!gcpi_weights_fit(a, b, o.weights, "mse", o.at)) return gcpi_nil(a.tape);
    if (!o.weights.id) return gcpi_binary(&gcpi_mse_row, a, b, plain);
    const int ops = 2 + gcpi_weighted_ops(a, o.weights);
    gcp_tensor each = gcp_square_at(gcp_sub_at(a, b, plain), plain);
    return gcpi_all_or_none(a, before, ops, gcp_is_nil(each) ? each : gcpi_weighted(each, o.weights, o.name, o.at));
}
static gcp_tensor gcpi_pair_loss(const gcpi_op_row *row, int fn, double p, gcp_tensor a, gcp_tensor b,
                                 gcp_tensor weights, const char *what, const char *named, gcp_at at)
{
    gcp_op_opts plain;
    plain.at = at; plain.name = NULL;
    const gcpi_before before = gcpi_before_ops(a);
    const int ops = 1 + gcpi_weighted_ops(a, weights);
    if (!gcpi_weights_fit(a, b, weights, what, at)) return gcpi_all_or_none(a, before, ops, gcpi_nil(a.tape));
    gcp_tensor each = gcpi_pair(row, fn, p, a, b, plain);
    return gcpi_all_or_none(a, before, ops, gcp_is_nil(each) ? each : gcpi_weighted(each, weights, named, at));
}
GCPI_DEF gcp_tensor gcp_l1_at(gcp_tensor a, gcp_tensor b, gcp_loss_opts o)
{
    return gcpi_pair_loss(&gcpi_huber_pair_row, GCPI_PAIR_HUBER, 0, a, b, o.weights, "l1", o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_smooth_l1_at(gcp_tensor a, gcp_tensor b, gcp_smooth_l1_opts o)
{
    o.beta = gcpi_option(o.beta, 1);
    if (!(o.beta >= 0) || !gcpi_finite(o.beta))
        return gcpi_bad_option(a, o.at, "smooth_l1", ".beta", o.beta, "at least 0, and finite");
    return gcpi_pair_loss(&gcpi_huber_pair_row, GCPI_PAIR_HUBER, o.beta, a, b, o.weights, "smooth_l1", o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_binary_cross_entropy_at(gcp_tensor logits, gcp_tensor targets, gcp_binary_cross_entropy_opts o)
{
    const char *what = "binary_cross_entropy";
    o.positive = gcpi_option(o.positive, 1);
    if (!(o.positive >= 0) || !gcpi_finite(o.positive))
        return gcpi_bad_option(logits, o.at, what, ".positive", o.positive, "at least 0, and finite");
    return gcpi_pair_loss(&gcpi_logits_pair_row, GCPI_PAIR_LOGITS, o.positive, logits, targets, o.weights, what, o.name,
                          o.at);
}
