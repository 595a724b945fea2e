/* What a step does besides its ops: seed gradient, norm of gradients, updates. */

/* The attributes of these calls are the plan's options. seed: the gradient of the
   loss with respect to itself. */
static void gcpi_seed_forward(const gcp_call *c)
{
    *(gcp_real *)c->out[0].data = (gcp_real)*(const double *)c->attributes;
}

/* norm: forward adds the squares of one gradient to the sum in the workspace (the first gradient sets it): of up to
   GCPI_NORM_PARTS parts, then of these in order. backward turns the sum into the step's gradient scale. */
enum { GCPI_NORM_PARTS = 64 };
static size_t gcpi_norm_part(size_t count)                  /* values */
{
    return GCPI_MAX((count + GCPI_NORM_PARTS - 1) / GCPI_NORM_PARTS, (size_t)GCPI_CHUNK);
}
static int gcpi_norm_parts(size_t count) { return (int)((count + gcpi_norm_part(count) - 1) / gcpi_norm_part(count)); }
typedef struct gcpi_squares_job {
    const gcp_target *target;
    const gcp_real *g;
    size_t count, part;
    double *sums;
} gcpi_squares_job;

GCPI_BODY void gcpi_squares_task_body(void *arg, int index, int worker)
{
    const gcpi_squares_job *job = (const gcpi_squares_job *)arg;
    const size_t first = (size_t)index * job->part;
    const gcp_real *g = job->g + first;
    const int n = (int)GCPI_MIN(job->part, job->count - first);
    double sum;
    GCPI_ROW_SUM(sum, n, i, (double)g[i] * (double)g[i])
    job->sums[index] = sum;
    (void)worker;
}
GCPI_WIDE(gcpi_squares_task, (void *arg, int index, int worker), (arg, index, worker),
          ((const gcpi_squares_job *)arg)->target)
static void gcpi_gradient_norm_add(const gcp_call *c)
{
    double *sum = (double *)c->workspace;
    gcpi_squares_job job;
    job.target = c->target; job.g = (const gcp_real *)c->in[0].data; job.sums = sum + 1;
    job.count = gcpi_count(c->in[0].shape);
    job.part = gcpi_norm_part(job.count);
    const int parts = gcpi_norm_parts(job.count);
    gcpi_parallel(c->target, parts, gcpi_squares_task, &job);
    if (!c->in[0].accumulate) *sum = 0;
    for (int k = 0; k < parts; k++) *sum += job.sums[k];
}
static void gcpi_gradient_norm_finish(const gcp_call *c)
{
    gcp_step_numbers *n = (gcp_step_numbers *)(uintptr_t)c->numbers;
    double limit = ((const gcp_plan_opts *)c->attributes)->clip_norm, scale = n->gradient_scale;
    n->gradient_norm = sqrt(*(double *)c->workspace) * scale;
    n->gradient_scale = scale * GCPI_MIN(1.0, limit / (n->gradient_norm + 1e-6));
}
static void gcpi_gradient_norm_workspace(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = (1 + (size_t)gcpi_norm_parts(gcpi_count(c->in[0]))) * sizeof(double);
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

/* Adam: Kingma and Ba 2015. AdamW: Loshchilov and Hutter 2019 (weight decay is not part of the gradient). What w loses
   is summed before it is subtracted, so that a small decay is not lost. */
GCPI_BODY void gcpi_adam_body(const gcpi_update_job *u, size_t first, size_t last, int fused)
{
    const gcp_real b1 = (gcp_real)u->o->beta1, b2 = (gcp_real)u->o->beta2, c1 = (gcp_real)(1 - u->o->beta1),
                   c2 = (gcp_real)(1 - u->o->beta2), eps = (gcp_real)u->o->epsilon, decay = (gcp_real)u->decay,
                   step = (gcp_real)(u->lr / u->first), root = (gcp_real)(1 / sqrt(u->second));
    const int apart = u->o->optimizer == GCP_OPTIMIZER_ADAMW;
    const gcp_real lost = apart ? (gcp_real)(u->lr * u->decay) : 0, added = apart ? 0 : decay;
    const gcp_real *grads = u->g;
    gcp_real *w = u->w, *m = u->s1, *v = u->s2;
    GCPI_EACH for (size_t i = first; i < last; i++) {
        const gcp_real g = gcpi_clip(u, grads[i]) + added * w[i];
        m[i] = b1 * m[i] + c1 * g;
        v[i] = b2 * v[i] + c2 * g * g;
        w[i] -= lost * w[i] + step * m[i] / (gcpi_sqrt1(v[i]) * root + eps);
    }
}
GCPI_CALLS
GCPI_EACH_SET(gcpi_adam, (const gcpi_update_job *u, size_t first, size_t last), (u, first, last), u->target,
              gcpi_adam_body(u, first, last, 0), gcpi_adam_body(u, first, last, 1))
GCPI_CALLS_END

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

/* What an op without GCP_FLAG_BF16 made, in a plan with GCP_STORE_BF16. */
static void gcpi_round_span(const gcpi_span *s)
{
    gcpi_halves_of(s->call->target->isa)->settle(s->p[0], (ptrdiff_t)s->n);
}
static void gcpi_round_forward(const gcp_call *c)
{
    const gcp_view *const views[1] = { &c->out[0] };
    gcpi_map(c, gcpi_round_span, 0, views, 1, 0, NULL, 0);
}

static const gcpi_op_row gcpi_seed_row = {
    GCP_ROW_SEED, { "seed", NULL, gcpi_seed_forward, NULL, NULL, 0, 0, 0, 1, NULL }, NULL
};
static const gcpi_op_row gcpi_gradient_norm_row = {
    GCP_ROW_NORM,
    { "norm", NULL, gcpi_gradient_norm_add, gcpi_gradient_norm_finish, gcpi_gradient_norm_workspace, 0, 0, 0, 0, NULL },
    NULL
};
static const gcpi_op_row gcpi_update_row = {
    GCP_ROW_UPDATE, { "update", NULL, gcpi_update_forward, NULL, NULL, 0, 0, 0, 3, NULL }, NULL
};
static const gcpi_op_row gcpi_round_row = {
    GCP_ROW_ROUND, { "round", NULL, gcpi_round_forward, NULL, NULL, 0, 0, 0, 1, NULL }, NULL
};
