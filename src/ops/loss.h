/* Losses, and what a step does besides its ops: the seed gradient, the norm of all gradients, updates. */

/* Losses: one sum per block of pixels. The shape fixes the blocks; their sums are added in order, in double. */
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
                           GCPI_TEXT(s->in[0]));
    return 1;
}
/* The labels or ids that an op's input may hold: 0 to count - 1, or the ignored one. count 0: not checked. Where the
   user ignores none, -1 is left out of losses all the same, but only gcp_write_some writes it. */
typedef struct gcpi_label_range { int count, ignores, ignore; } gcpi_label_range;
static int gcpi_label_ok(const gcpi_label_range *r, int32_t label)
{
    return (label >= 0 && label < r->count) || (r->ignores && label == r->ignore);
}
static gcpi_label_range gcpi_label_range_of(const gcp_tape *t, const gcpi_op *op, int input)
{
    gcpi_label_range r = { 0, 0, 0 };
    gcp_shape other = t->tensors[t->edges[op->in + (op->inputs > 1 ? 1 - input % 2 : 0)]].shape;
    if (op->kind == GCP_OP_EMBEDDING) r.count = (int)GCPI_MIN(gcpi_pixels(other), (size_t)INT32_MAX);
    if (op->kind == GCP_OP_CROSS_ENTROPY) {
        r.count = other.d[3];
        r.ignores = op->attributes.number.j;
        r.ignore = r.ignores ? op->attributes.number.i : -1;
    }
    return r;
}

static int gcpi_label(const gcp_call *c, size_t pixel)                       /* -1: ignored, or out of range */
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    int32_t label = ((const int32_t *)c->in[1].data)[pixel];
    return label >= 0 && label < c->in[0].shape.d[3] && !(a->number.j && label == a->number.i) ? label : -1;
}
static double gcpi_labels_counted(const gcp_call *c)
{
    size_t n = gcpi_pixels(c->in[0].shape), counted = 0;
    for (size_t p = 0; p < n; p++) counted += gcpi_label(c, p) >= 0;
    return counted ? (double)counted : 1;
}
static void gcpi_softmax_sums(const gcp_real *x, int width, double *top, double *sum)
{
    *top = (double)x[0];
    for (int i = 1; i < width; i++) *top = GCPI_MAX(*top, (double)x[i]);
    *sum = 0;
    for (int i = 0; i < width; i++) *sum += gcpi_exp((double)x[i] - *top);
}
static double gcpi_cross_entropy_value(const gcp_call *c, size_t pixel)
{
    const gcp_real *x = gcpi_row(&c->in[0], pixel);
    int label = gcpi_label(c, pixel);
    double top, sum;
    if (label < 0) return 0;
    gcpi_softmax_sums(x, c->in[0].shape.d[3], &top, &sum);
    return log(sum) + top - (double)x[label];
}
static void gcpi_cross_entropy_forward(const gcp_call *c)
{
    gcpi_loss(c, gcpi_cross_entropy_value, gcpi_labels_counted(c));
}
static void gcpi_cross_entropy_backward(const gcp_call *c)
{
    const gcp_view *d = &c->din[0];
    int width = c->in[0].shape.d[3];
    double share;
    if (!d->data) return;
    share = (double)*(const gcp_real *)c->dout[0].data / gcpi_labels_counted(c);
    for (size_t p = 0; p < gcpi_pixels(d->shape); p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p);
        gcp_real *dx = gcpi_row_out(d, p);
        int label = gcpi_label(c, p);
        double top, sum;
        gcpi_softmax_sums(x, width, &top, &sum);
        for (int i = 0; i < width; i++) {
            gcp_real g = label < 0 ? 0 : (gcp_real)((gcpi_exp((double)x[i] - top) / sum - (i == label)) * share);
            dx[i] = d->accumulate ? dx[i] + g : g;
        }
    }
}

static int gcpi_mse_shape(gcp_shape_call *s)
{
    if (!gcpi_pair_shape(s)) return 0;
    s->out[0] = gcpi_scalar();
    return 1;
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

/* What a step does besides its ops. The attributes of these calls are the plan's options. seed: the gradient of the
   loss with respect to itself. */
static void gcpi_seed_forward(const gcp_call *c)
{
    *(gcp_real *)c->out[0].data = (gcp_real)*(const double *)c->attributes;
}

/* norm: forward adds the squares of one gradient to the sum in the workspace (the first gradient sets it). backward
   turns the sum into the step's gradient scale. */
static void gcpi_gradient_norm_add(const gcp_call *c)
{
    const gcp_real *g = (const gcp_real *)c->in[0].data;
    size_t count = gcpi_count(c->in[0].shape);
    double sum = c->in[0].accumulate ? *(double *)c->workspace : 0;
    for (size_t i = 0; i < count; i++) sum += (double)g[i] * (double)g[i];
    *(double *)c->workspace = sum;
}
static void gcpi_gradient_norm_finish(const gcp_call *c)
{
    gcp_step_numbers *n = (gcp_step_numbers *)(uintptr_t)c->numbers;
    double limit = ((const gcp_plan_opts *)c->attributes)->clip_norm, scale = 1.0 / n->micros;
    n->gradient_norm = sqrt(*(double *)c->workspace) * scale;
    n->gradient_scale = scale * GCPI_MIN(1.0, limit / (n->gradient_norm + 1e-6));
}
static void gcpi_gradient_norm_workspace(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->workspace = sizeof(double);
}

/* update: in: the gradient; how often the slots were updated so far (uint64_t); what multiplies .lr, and the weight
   decay (two doubles that the CPU reads; NULL: 1 and the option's); out: the value, up to two slots. */
typedef struct gcpi_update_rates { double rate, decay; } gcpi_update_rates;
static gcpi_update_rates gcpi_update_rates_of(const gcp_call *c)
{
    const double *own = (const double *)c->in[2].data;
    gcpi_update_rates r = { 1, ((const gcp_plan_opts *)c->attributes)->weight_decay };
    if (own) { r.rate = own[0]; r.decay = own[1]; }
    return r;
}
typedef struct gcpi_update_job {
    const gcp_target *target; const gcp_plan_opts *o; const gcp_step_numbers *n;
    double lr, decay;
    gcp_real *w, *s1, *s2; const gcp_real *g;
    size_t count;
    double first, second;             /* Adam: 1 - beta1^t, 1 - beta2^t; t counts this parameter's updates */
} gcpi_update_job;

GCPI_BODY gcp_real gcpi_clip(const gcpi_update_job *u, gcp_real g)
{
    g *= (gcp_real)u->n->gradient_scale;
    if (u->o->clip_value <= 0) return g;
    return GCPI_MIN((gcp_real)u->o->clip_value, GCPI_MAX((gcp_real)-u->o->clip_value, g)); /* thus a NaN stays */
}

/* SGD as Sutskever et al. 2013 in PyTorch's form: v = m v + g; w -= lr (v, or g + m v). */
GCPI_BODY void gcpi_sgd_body(const gcpi_update_job *u, size_t first, size_t last)
{
    gcp_real lr = (gcp_real)u->lr, m = (gcp_real)u->o->momentum, decay = (gcp_real)u->decay;
    for (size_t i = first; i < last; i++) {
        gcp_real g = gcpi_clip(u, u->g[i]) + decay * u->w[i];
        if (u->s1) {
            u->s1[i] = m * u->s1[i] + g;
            g = u->o->nesterov ? g + m * u->s1[i] : u->s1[i];
        }
        u->w[i] -= lr * g;
    }
}
GCPI_WIDE(gcpi_sgd, (const gcpi_update_job *u, size_t first, size_t last), (u, first, last), u->target)

/* Adam: Kingma and Ba 2015. AdamW: Loshchilov and Hutter 2019 (weight decay is not part of the gradient). */
GCPI_BODY void gcpi_adam_body(const gcpi_update_job *u, size_t first, size_t last)
{
    double b1 = u->o->beta1, b2 = u->o->beta2, eps = u->o->epsilon, step = u->lr / u->first, root = sqrt(u->second);
    int decoupled = u->o->optimizer == GCP_OPTIMIZER_ADAMW;
    for (size_t i = first; i < last; i++) {
        double g = (double)gcpi_clip(u, u->g[i]), w = (double)u->w[i];
        if (decoupled) w *= 1 - u->lr * u->decay;
        else g += u->decay * w;
        u->s1[i] = (gcp_real)(b1 * (double)u->s1[i] + (1 - b1) * g);
        u->s2[i] = (gcp_real)(b2 * (double)u->s2[i] + (1 - b2) * g * g);
        u->w[i] = (gcp_real)(w - step * (double)u->s1[i] / (sqrt((double)u->s2[i]) / root + eps));
    }
}
GCPI_WIDE(gcpi_adam, (const gcpi_update_job *u, size_t first, size_t last), (u, first, last), u->target)

static void gcpi_update_task(void *arg, int index, int worker)
{
    const gcpi_update_job *u = (const gcpi_update_job *)arg;
    size_t first = (size_t)index * GCPI_CHUNK, last = GCPI_MIN(first + GCPI_CHUNK, u->count);
    (u->o->optimizer == GCP_OPTIMIZER_SGD ? gcpi_sgd : gcpi_adam)(u, first, last);
    (void)worker;
}
static void gcpi_update_forward(const gcp_call *c)
{
    gcpi_update_job u;
    u.target = c->target; u.o = (const gcp_plan_opts *)c->attributes; u.n = c->numbers;
    const gcpi_update_rates r = gcpi_update_rates_of(c);
    u.lr = u.n->lr * r.rate; u.decay = r.decay;
    u.w = (gcp_real *)c->out[0].data; u.s1 = (gcp_real *)c->out[1].data; u.s2 = (gcp_real *)c->out[2].data;
    u.g = (const gcp_real *)c->in[0].data;
    u.count = gcpi_count(c->in[0].shape);
    double t = (double)(*(const uint64_t *)c->in[1].data + 1);
    u.first = 1 - gcpi_pow(u.o->beta1, t); u.second = 1 - gcpi_pow(u.o->beta2, t);
    gcpi_parallel(c->target, (int)((u.count + GCPI_CHUNK - 1) / GCPI_CHUNK), gcpi_update_task, &u);
}
