/* Batch-norm: two ops, its statistics and their application. */

/* Batch-norm is two ops. Statistics: in: x, running mean, running variance; out: mean, scale = 1 / sqrt(variance +
   epsilon). It runs once a step and commits the running values (PyTorch's rule: unbiased variance). Application: in: x,
   mean, scale, gamma, beta. Its backward is that of both ops, so that x is read once:
   dx = gamma scale (dy - mean(dy) - xhat mean(dy xhat)); with running statistics (.frozen, .frozen_norms) it is
   gamma scale dy. */
static int gcpi_batch_stats_shape(gcp_shape_call *s) { s->out[0] = s->out[1] = s->in[1]; return gcpi_all_real(s); }
/* Halves fill vectors of a line. Short rows of other widths are widened first, a few pixels at a time. */
enum { GCPI_SUM_WIDENED = 256 };
GCPI_BODY void gcpi_sum_x_pixels(const gcp_call *c, size_t pixel, const int n, ptrdiff_t far, double *sums,
                                 const int half)
{
    const void *x = gcpi_elements(&c->in[0], pixel, 0).at;
    const int width = c->in[0].shape.d[3];
    gcp_real wide[GCPI_SUM_PIXELS * GCPI_SUM_WIDENED];
    double *squares = sums + width;
    ptrdiff_t pitch = c->in[0].pitch;
    if (!half && c->in[0].dtype == GCP_DTYPE_BF16) {
        gcpi_halves_of(c->target->isa)->widen(wide, width, (const gcpi_half *)x, pitch, n, width);
        x = wide; pitch = width;
    } else for (int q = 0; q < n; q++) gcpi_elements_fetch(x, far + q * pitch, width, half);
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i], square = squares[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) {
            double v = (double)GCPI_AT(half, x, i + q * pitch);
            sum += v; square += v * v;
        }
        sums[i] = sum; squares[i] = square;
    }
}
GCPI_BODY void gcpi_sum_x_loop(const gcp_call *c, size_t first, size_t last, double *sums, const int half)
{
    const ptrdiff_t far = gcpi_row_ahead(&c->in[0], GCPI_AHEAD_READ);
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS)
        gcpi_sum_x_pixels(c, p, GCPI_SUM_PIXELS, far, sums, half);
    for (; p < last; p++) gcpi_sum_x_pixels(c, p, 1, far, sums, half);
}
GCPI_BODY void gcpi_sum_x_body(const gcp_call *c, size_t first, size_t last, double *sums, const int typed)
{
    const int width = c->in[0].shape.d[3], widened = width % GCPI_HALVES_LINE && width <= GCPI_SUM_WIDENED;
    if (typed && c->in[0].dtype == GCP_DTYPE_BF16 && !widened) gcpi_sum_x_loop(c, first, last, sums, 1);
    else gcpi_sum_x_loop(c, first, last, sums, 0);
}
GCPI_TYPED_SUM(gcpi_sum_x)
static const gcpi_used gcpi_sums_of_x = { GCPI_USES_IN(0), 0, GCPI_TYPED_WIDE, 0 };
static void gcpi_batch_stats_set(const gcp_call *c, const double *sums)      /* sums NULL: from the running values */
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcp_real *running_mean = (gcp_real *)c->in[1].data, *running_var = (gcp_real *)c->in[2].data;
    gcp_real *mean = (gcp_real *)c->out[0].data, *scale = (gcp_real *)c->out[1].data;
    int width = c->in[0].shape.d[3];
    double n = (double)gcpi_pixels(c->in[0].shape), m = a->norm.momentum;
    for (int i = 0; i < width; i++) {
        double mu = sums ? sums[i] / n : (double)running_mean[i];
        double var = sums ? GCPI_MAX(0.0, sums[width + i] / n - mu * mu) : (double)running_var[i];
        mean[i] = (gcp_real)mu;
        scale[i] = (gcp_real)(1.0 / sqrt(var + a->norm.epsilon));
        if (!sums || !c->commit) continue;
        running_mean[i] = (gcp_real)((1 - m) * (double)running_mean[i] + m * mu);
        running_var[i] = (gcp_real)((1 - m) * (double)running_var[i] + m * var * (n > 1 ? n / (n - 1) : 1));
    }
}
static void gcpi_batch_stats_forward(const gcp_call *c)
{
    gcpi_batch_stats_set(c, c->training ? gcpi_sums(c, c->in[0].shape, 2, gcpi_sums_of_x, gcpi_sum_x) : NULL);
}
static void gcpi_batch_stats_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = gcpi_sum_workspace(c, c->in[0], 2);
}

static int gcpi_norm_shape(gcp_shape_call *s)       /* inputs from 1 on: one value per channel */
{
    s->out[0] = s->in[0];
    for (int i = 1; i < s->inputs; i++)
        if (gcpi_count(s->in[i]) != (size_t)s->in[0].d[3])
            return gcpi_refuse(s, "%zu values for %d channels", gcpi_count(s->in[i]), s->in[0].d[3]);
    return gcpi_all_real(s);
}
static void gcpi_batch_norm_forward(const gcp_call *c)      /* apply, without addition and rectifier */
{
    gcp_call apply = *c;
    gcp_view in[6] = { c->in[0] };
    memcpy(in + 2, c->in + 1, 4 * sizeof *in);
    apply.in = in; apply.inputs = 6; apply.attributes = NULL;
    gcpi_apply_forward(&apply);
}

/* The gradient of batch-norm's output: dy itself, or dy through the rectifier that comes after. Whether the
   rectifier's x was inside is computed again, as in forward. */
GCPI_BODY gcp_real gcpi_norm_gradient(const gcpi_norm_values *v, int i, gcp_real x, gcp_real dy, int rectified,
                                      const int half)
{
    return !rectified || gcpi_within(&v->rectifier, GCPI_SETTLED(half, gcpi_norm_value(v, i, x)))
               ? dy
               : GCPI_SETTLED(half, v->rectifier.slope * dy);
}

/* The sums of dy * xhat and of dy, n pixels at a time. */
GCPI_BODY void gcpi_sum_norm_pixels(const gcp_call *c, const gcpi_norm_values *v, size_t pixel, const int n,
                                    const int rectified, const ptrdiff_t *far, double *sums, const int half)
{
    const void *x = gcpi_elements(&c->in[0], pixel, 0).at, *dy = gcpi_elements(&c->dout[0], pixel, 0).at;
    const ptrdiff_t xp = c->in[0].pitch, dp = c->dout[0].pitch;
    int width = c->in[0].shape.d[3];
    double *plain = sums + width;
    for (int q = 0; q < n; q++) {
        gcpi_elements_fetch(x, far[0] + q * xp, width, half);
        gcpi_elements_fetch(dy, far[1] + q * dp, width, half);
    }
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i], sum_dy = plain[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) {
            const gcp_real value = GCPI_AT(half, x, i + q * xp);
            gcp_real d = gcpi_norm_gradient(v, i, value, GCPI_AT(half, dy, i + q * dp), rectified, half);
            sum += (double)(d * ((value - v->mean[i]) * v->scale[i]));
            sum_dy += (double)d;
        }
        sums[i] = sum; plain[i] = sum_dy;
    }
}
GCPI_BODY void gcpi_sum_norm_loop(const gcp_call *c, size_t first, size_t last, double *sums, const int rectified,
                                  const int half)
{
    const gcpi_norm_values v =
        gcpi_norm_values_of(c->in + 1, c->fused ? gcpi_attr(c->fused->attributes) : NULL, c->store);
    const ptrdiff_t far[] = { gcpi_row_ahead(&c->in[0], GCPI_AHEAD_READ / 2),
                              gcpi_row_ahead(&c->dout[0], GCPI_AHEAD_READ / 2) };
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS)
        gcpi_sum_norm_pixels(c, &v, p, GCPI_SUM_PIXELS, rectified, far, sums, half);
    for (; p < last; p++) gcpi_sum_norm_pixels(c, &v, p, 1, rectified, far, sums, half);
}
GCPI_BODY void gcpi_sum_norm_body(const gcp_call *c, size_t first, size_t last, double *sums, const int typed)
{
    const int half = typed && c->in[0].dtype == GCP_DTYPE_BF16;
    if (c->fused && half) gcpi_sum_norm_loop(c, first, last, sums, 1, 1);
    else if (half) gcpi_sum_norm_loop(c, first, last, sums, 0, 1);
    else if (c->fused) gcpi_sum_norm_loop(c, first, last, sums, 1, 0);
    else gcpi_sum_norm_loop(c, first, last, sums, 0, 0);
}
GCPI_TYPED_SUM(gcpi_sum_norm)
GCPI_BODY void gcpi_batch_norm_loop_back(const gcpi_norm_job *job, size_t first, size_t last, const int rectified,
                                         const int accumulate, const int half)
{
    const gcp_call *c = job->call;
    const int width = c->din[0].shape.d[3], dense = gcpi_dense_rows(&c->in[0], width) &&
                                                    gcpi_dense_rows(&c->dout[0], width) &&
                                                    gcpi_dense_rows(&c->din[0], width);
    gcpi_norm_values v =
        gcpi_norm_values_of(c->in + 1, c->fused ? gcpi_attr(c->fused->attributes) : NULL, c->store);
    const ptrdiff_t x_far = gcpi_row_ahead(&c->in[0], GCPI_AHEAD), dy_far = gcpi_row_ahead(&c->dout[0], GCPI_AHEAD),
                    dx_far = gcpi_row_ahead(&c->din[0], GCPI_AHEAD);
    const size_t together = gcpi_pixels_together(width, last - first, dense, 1, half);
    gcp_real room[4][GCPI_REPEATED], more[2][GCPI_REPEATED], side[3][GCPI_REPEATED];
    const gcp_real *dy_xhat_mean = gcpi_repeated(job->means, width, together, more[0]),
                   *dy_mean = gcpi_repeated(job->means + width, width, together, more[1]);
    gcpi_norm_repeat(&v, width, together, room);
    for (size_t p = first, n; p < last; p += n) {
        n = GCPI_MIN(together, last - p);
        const int count = width * (int)n;
        const void *x = gcpi_bring(&c->in[0], p, n, 0, width, side[0], half),
                   *dy = gcpi_bring(&c->dout[0], p, n, 0, width, side[1], half);
        void *dx = accumulate                              ? gcpi_bring(&c->din[0], p, n, 0, width, side[2], half)
                   : gcpi_lies_dense(&c->din[0], width, n) ? gcpi_elements(&c->din[0], p, 0).at
                                                           : side[2];
        gcpi_elements_fetch(x, x_far, count, half);
        gcpi_elements_fetch(dy, dy_far, count, half);
        if (dx != dy) gcpi_elements_fetch(dx, dx_far, count, half);
        GCPI_LINES(half, count, dx, to, i, k,
            const gcp_real value = GCPI_AT(half, x, i);
            const gcp_real d = gcpi_norm_gradient(&v, i, value, GCPI_AT(half, dy, i), rectified, half);
            const gcp_real g = v.gamma[i] * v.scale[i] *
                               (d - dy_mean[i] - (value - v.mean[i]) * v.scale[i] * dy_xhat_mean[i]);
            GCPI_PUT(half, to, k, accumulate ? GCPI_AT(half, dx, i) + g : g))
        gcpi_bring_back(&c->din[0], p, n, 0, width, dx, half);
    }
}
GCPI_BODY void gcpi_batch_norm_task_back_body(void *arg, int index, int worker, const int typed)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    /* fused: dx overwrites the rectifier's gradient, so nothing is ever added to it */
    const int half = typed && job->call->din[0].dtype == GCP_DTYPE_BF16, adds = job->call->din[0].accumulate;
    if (job->call->fused && half) gcpi_batch_norm_loop_back(job, first, last, 1, 0, 1);
    else if (job->call->fused) gcpi_batch_norm_loop_back(job, first, last, 1, 0, 0);
    else if (adds && half) gcpi_batch_norm_loop_back(job, first, last, 0, 1, 1);
    else if (adds) gcpi_batch_norm_loop_back(job, first, last, 0, 1, 0);
    else if (half) gcpi_batch_norm_loop_back(job, first, last, 0, 0, 1);
    else gcpi_batch_norm_loop_back(job, first, last, 0, 0, 0);
    (void)worker;
}
GCPI_EACH_SET(gcpi_batch_norm_task_back, (void *arg, int index, int worker), (arg, index, worker),
              ((const gcpi_norm_job *)arg)->call->target,
              gcpi_batch_norm_task_back_body(arg, index, worker, GCPI_TYPED_ANY),
              gcpi_batch_norm_task_back_body(arg, index, worker, 1))
/* Where values are rounded, the gradient through the rectifier is made first: from the rounded value of the norm, which
   is made again, and rounded, too. The call is a block's: its operands are its own, and z, the last slot, is free. */
static void gcpi_norm_rectify_back(gcp_call *c, size_t pixels)
{
    const size_t width = (size_t)c->in[0].shape.d[3], n = pixels * width;
    const gcpi_halves *h = gcpi_halves_of(c->target->isa);
    gcp_real *z = (gcp_real *)c->in[0].data + (GCPI_BLOCK_SLOTS - 1) * gcpi_block_values(width, 0),
             *dy = (gcp_real *)c->dout[0].data;
    gcp_call apply = *c;
    gcp_view in[6] = { c->in[0] }, out[2] = { c->in[0] };
    gcpi_span span = { { dy, dy, NULL, z }, NULL, n, 0, c->fused, 0, 0 };
    if (!c->fused) return;
    memcpy(in + 2, c->in + 1, 4 * sizeof *in);
    out[0].data = z;
    apply.in = in; apply.out = out; apply.attributes = NULL;
    gcpi_apply_pixels(&apply, 0, pixels, 0, c->in[0].shape.d[3], 0);
    h->settle(z, (ptrdiff_t)n);
    gcpi_rectify_span_back(&span);
    h->settle(span.p[0], (ptrdiff_t)n);
    c->fused = NULL;
}
static const gcpi_used gcpi_sums_of_norm = { GCPI_USES_IN(0) | GCPI_USES_DOUT(0), 0, GCPI_TYPED_WIDE, 0 };
static const gcpi_used gcpi_uses_norm_back = { GCPI_USES_IN(0) | GCPI_USES_DOUT(0), GCPI_USES_DIN(0), GCPI_TYPED_WIDE,
                                                0 };
static void gcpi_sum_norm_rounded(const gcp_call *c, size_t first, size_t last, double *sums)
{
    gcp_call own = *c;
    gcpi_norm_rectify_back(&own, last);
    gcpi_sum_norm(&own, first, last, sums);
}
static void gcpi_batch_norm_rounded_back(void *arg, int index, int worker)
{
    gcpi_norm_job own = *(const gcpi_norm_job *)arg;
    gcp_call call = *own.call;
    gcpi_norm_rectify_back(&call, own.pixels);
    own.call = &call;
    gcpi_batch_norm_task_back(&own, index, worker);
}
static void gcpi_batch_norm_backward(const gcp_call *c)
{
    const double n = (double)gcpi_pixels(c->in[0].shape);
    const int wanted = c->training || c->din[3].data || c->din[4].data;
    const int sums_mixed = gcpi_by_blocks(c, gcpi_sums_of_norm), mixed = gcpi_by_blocks(c, gcpi_uses_norm_back);
    double *sums = wanted ? gcpi_sums(c, c->in[0].shape, 2, gcpi_sums_of_norm,
                                      sums_mixed ? gcpi_sum_norm_rounded : gcpi_sum_norm)
                          : gcpi_sum_job_of(c, c->in[0].shape, 2, gcpi_sums_of_norm, NULL, c->workspace).partial;
    if (c->din[3].data) gcpi_store_sums(&c->din[3], sums);
    if (c->din[4].data) gcpi_store_sums(&c->din[4], sums + c->in[0].shape.d[3]);
    /* not in training: the statistics are constants */
    if (!c->training) memset(sums, 0, 2 * (size_t)c->in[0].shape.d[3] * sizeof *sums);
    /* the means overwrite the sums: a gcp_real is no wider than a double */
    for (int i = 0; i < 2 * c->in[0].shape.d[3]; i++) {
        gcp_real mean = (gcp_real)(sums[i] / n);
        memcpy((unsigned char *)sums + (size_t)i * sizeof mean, &mean, sizeof mean);
    }
    if (c->din[0].data)
        gcpi_norm_rows(c, c->din[0].shape, (const gcp_real *)(const void *)sums, gcpi_uses_norm_back,
                       mixed ? gcpi_batch_norm_rounded_back : gcpi_batch_norm_task_back);
}
static void gcpi_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_sum_workspace(c, c->in[0], 2);
    else gcpi_apply_cost(c, cost);
}

static void gcpi_batch_norm_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_say(c->w, gcpi_code_makes(c->t, op, 3) ? "gcp_batch_norm(" : "gcp_batch_norm_op(");
    gcpi_code_input(c, op, 0);
    for (int i = 3; i < 5 && !gcpi_code_makes(c->t, op, i); i++) {
        gcpi_say(c->w, ", ");
        gcpi_code_input(c, op, i);
    }
    gcpi_code_real(c, "epsilon", op->attributes.norm.epsilon, 1e-5);
    gcpi_code_real(c, "momentum", op->attributes.norm.momentum, 0.1);
    gcpi_code_int(c, "frozen", op->attributes.norm.frozen, 0);
}

static void gcpi_batch_stats_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->silent = 1;
    f->stats = 1;
    f->floats = GCPI_IN(1) | GCPI_IN(2);
    f->fixed = op->attributes.norm.frozen;
}
static void gcpi_batch_norm_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_batch_norm_call;
    f->fixed = op->attributes.norm.frozen;
    f->part = GCPI_PART_NORM;
    f->early = GCPI_IN(3) | GCPI_IN(GCPI_NORM_BETA);
    f->shared = f->dense = f->floats = GCPI_IN(1) | GCPI_IN(2) | f->early;
}
static const gcpi_op_row gcpi_batch_stats_row = {
    GCP_OP_BATCH_STATS,
    { "batch_stats", gcpi_batch_stats_shape, gcpi_batch_stats_forward, NULL, gcpi_batch_stats_cost, 0, 0,
      GCP_FLAG_ONCE | GCP_FLAG_NO_GRADIENT | GCP_FLAG_SAME_CHANNELS | GCP_FLAG_BF16, 2, NULL },
    gcpi_batch_stats_facts
};
static const gcpi_op_row gcpi_batch_norm_row = {
    GCP_OP_BATCH_NORM,
    { "batch_norm", gcpi_norm_shape, gcpi_batch_norm_forward, gcpi_batch_norm_backward, gcpi_norm_cost,
      GCPI_IN(0) | GCPI_IN(1) | GCPI_IN(2) | GCPI_IN(3), 0, GCPI_OVER | GCP_FLAG_BF16, 1, NULL },
    gcpi_batch_norm_facts
};

GCPI_COLD

static int gcpi_norm_options(gcp_tensor x, const char *what, gcp_norm_opts *o)
{
    if (o->frozen && o->momentum != 0) {
        gcpi_bad_option(x, o->at, what, ".momentum", o->momentum, "with .frozen it changes nothing");
        return 0;
    }
    o->epsilon = gcpi_option(o->epsilon, 1e-5);
    o->momentum = gcpi_option(o->momentum, 0.1);
    if (!(o->epsilon > 0) || !gcpi_finite(o->epsilon))
        gcpi_bad_option(x, o->at, what, ".epsilon", o->epsilon, "above 0");
    else if (!(o->momentum >= 0 && o->momentum <= 1))
        gcpi_bad_option(x, o->at, what, ".momentum", o->momentum, "in [0, 1]");
    else return gcpi_enter(x, o->at, what);
    return 0;
}

/* Whether gamma or beta has one value per channel. Checked before the first of the two ops is recorded. */
static int gcpi_channels_ok(gcp_tensor x, gcp_tensor values, gcp_at at)
{
    gcp_tape *t = x.tape;
    if (!gcpi_usable(t, values, at, "batch_norm")) return 0;
    const gcpi_tensor *e = gcpi_get(values);
    const int channels = gcpi_get(x)->shape.d[3];
    if (e->dtype != GCP_DTYPE_REAL)
        gcpi_fail(t, GCP_E_DTYPE, at, "batch_norm", "gamma and beta are real numbers, not integers");
    else if (gcpi_count(e->shape) != (size_t)channels)
        gcpi_fail(t, GCP_E_SHAPE, at, "batch_norm", "%zu values of gamma or beta for the %d channels of %s",
                  gcpi_count(e->shape), channels, GCPI_SHAPE_TEXT(gcpi_get(x)->shape));
    return t->code == GCP_OK;
}

/* Two ops under one name: statistics, and their application. gamma and beta are given, or made. Where the second op is
   refused, the first is taken back, too. */
static gcp_tensor gcpi_batch_norm(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given, gcp_norm_opts o)
{
    gcp_tape *t = x.tape;
    gcp_tensor stats[3], apply[5];
    const gcpi_before before = gcpi_before_ops(x);
    gcpi_attributes a = gcpi_no_attributes();
    if (!gcpi_norm_options(x, "batch_norm", &o)) return gcpi_all_or_none(x, before, 2, gcpi_nil(t));
    if (given && (!gcpi_channels_ok(x, gamma, o.at) || !gcpi_channels_ok(x, beta, o.at))) return gcpi_nil(t);
    a.norm.epsilon = o.epsilon; a.norm.momentum = o.momentum; a.norm.frozen = o.frozen != 0;
    gcp_shape channels = gcpi_raw(1, gcpi_get(x)->shape.d[3], 0, 0, 0);
    gcp_param_opts ones = gcpi_weight_options(GCP_INIT_ONES, GCP_INIT_ONES, 1, 1, o.at),
                   zeros = gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at);
    int name = gcpi_op_name(t, "batch_norm", o.name, o.at);
    int statistics = name ? gcpi_name_new(t, name, "statistics", "statistics", o.at) : 0;
    if (!statistics) return gcpi_nil(t);
    stats[0] = apply[0] = x;
    stats[1] = gcpi_parameter_of(t, GCPI_STATISTIC, name, "running_mean", channels, zeros);
    stats[2] = gcpi_parameter_of(t, GCPI_STATISTIC, name, "running_var", channels, ones);
    apply[3] = given ? gamma : gcpi_weight(t, name, "gamma", channels, ones);
    apply[4] = given ? beta : gcpi_weight(t, name, "beta", channels, zeros);
    if (t->code) return gcpi_nil(t);
    apply[1] = gcpi_record(t, &gcpi_batch_stats_row, statistics, stats, 3, &a, o.at);
    if (gcp_is_nil(apply[1])) return gcpi_all_or_none(x, before, 2, apply[1]);
    apply[2] = gcpi_handle(t, apply[1].id + 1);
    gcp_tensor y = gcpi_record(t, &gcpi_batch_norm_row, name, apply, 5, &a, o.at);
    return gcpi_all_or_none(x, before, 2, y);
}
GCPI_DEF gcp_tensor gcp_batch_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_batch_norm(x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_batch_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts o)
{
    return gcpi_batch_norm(x, gamma, beta, 1, o);
}
GCPI_WARM
