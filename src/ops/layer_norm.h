/* Norms over the channels of a pixel: layer_norm, rms_norm. */

/* Layer-norm over channels; RMS-norm is the same with a mean of 0 and without beta. Backward computes the mean and
   scale of a pixel again. */
GCPI_BODY void gcpi_pixel_moments(const gcp_call *c, const gcp_real *x, int width, double *mean, double *scale)
{
    const double epsilon = gcpi_attr(c->attributes)->norm.epsilon;
    double sum = 0, square;
    if (!gcpi_attr(c->attributes)->norm.rms) GCPI_ROW_SUM(sum, width, i, (double)x[i])
    const double middle = sum / width;
    GCPI_ROW_SUM(square, width, i, ((double)x[i] - middle) * ((double)x[i] - middle))
    *mean = middle;
    *scale = 1.0 / sqrt(square / width + epsilon);
}
GCPI_BODY void gcpi_layer_norm_task_body(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_call *c = job->call;
    const gcp_real *gamma = (const gcp_real *)c->in[1].data,
                   *beta = c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    int width = c->in[0].shape.d[3];
    for (size_t p = first; p < last; p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p);
        gcp_real *y = gcpi_row_out(&c->out[0], p);
        double mean, scale;
        gcpi_pixel_moments(c, x, width, &mean, &scale);
        if (beta) GCPI_EACH for (int i = 0; i < width; i++)
            y[i] = (gcp_real)(((double)x[i] - mean) * scale) * gamma[i] + beta[i];
        else GCPI_EACH for (int i = 0; i < width; i++) y[i] = (gcp_real)(((double)x[i] - mean) * scale) * gamma[i];
    }
    (void)worker;
}
GCPI_WIDE_TASK(gcpi_layer_norm_task, gcpi_norm_job)
static void gcpi_layer_norm_forward(const gcp_call *c)
{
    gcpi_norm_rows(c, c->in[0].shape, NULL, gcpi_uses_forward, gcpi_layer_norm_task);
}

/* Backward of a pixel: one pass sums g and g xhat, where g is dy gamma, and adds to the sums of gamma's and beta's
   gradients, where these are not NULL; another makes dx. Lanes are those of GCPI_ROW_SUM. */
typedef struct gcpi_norm_pixel { const gcp_real *x, *dy, *gamma; int width; double mean, scale; } gcpi_norm_pixel;

GCPI_BODY void gcpi_layer_norm_lanes(const gcpi_norm_pixel *p, int from, int n, double *sums, double *g, double *gx)
{
    const gcp_real *x = p->x + from, *dy = p->dy + from, *gamma = p->gamma + from;
    const double mean = p->mean, scale = p->scale;
    double *of_gamma = sums ? sums + from : NULL, *of_beta = sums ? sums + p->width + from : NULL;
    GCPI_EACH for (int k = 0; k < n; k++) {
        const double d = (double)dy[k], xhat = ((double)x[k] - mean) * scale, product = d * (double)gamma[k];
        g[k] += product;
        gx[k] += product * xhat;
        if (sums) { of_gamma[k] += d * xhat; of_beta[k] += d; }
    }
}
GCPI_BODY void gcpi_layer_norm_sums(const gcpi_norm_pixel *p, double *sums, double *a, double *b)
{
    double g[GCPI_LANES] = { 0 }, gx[GCPI_LANES] = { 0 };
    int from = 0;
    for (; from + GCPI_LANES <= p->width; from += GCPI_LANES) gcpi_layer_norm_lanes(p, from, GCPI_LANES, sums, g, gx);
    gcpi_layer_norm_lanes(p, from, p->width - from, sums, g, gx);
    *a = *b = 0;
    for (int k = 0; k < GCPI_LANES; k++) { *a += g[k]; *b += gx[k]; }
}
GCPI_BODY void gcpi_layer_norm_dx(const gcpi_norm_pixel *p, double a, double b, const gcp_view *din, size_t pixel)
{
    const gcp_real mean = (gcp_real)p->mean, rest = (gcp_real)(p->mean - (double)mean), scale = (gcp_real)p->scale,
                   af = (gcp_real)a, bf = (gcp_real)b;
    const int keep = din->accumulate;
    gcp_real *dx = gcpi_row_out(din, pixel);
    GCPI_EACH for (int i = 0; i < p->width; i++) {
        const gcp_real xhat = (p->x[i] - mean - rest) * scale, g = scale * (p->dy[i] * p->gamma[i] - af - xhat * bf);
        dx[i] = keep ? dx[i] + g : g;
    }
}
/* sums: of gamma's and beta's gradients, or NULL. dx may be dy. */
GCPI_BODY void gcpi_layer_norm_back_body(const gcp_call *c, size_t first, size_t last, double *sums)
{
    gcpi_norm_pixel p;
    double a, b;
    p.gamma = (const gcp_real *)c->in[1].data; p.width = c->in[0].shape.d[3];
    for (size_t i = first; i < last; i++) {
        p.x = gcpi_row(&c->in[0], i); p.dy = gcpi_row(&c->dout[0], i);
        gcpi_pixel_moments(c, p.x, p.width, &p.mean, &p.scale);
        if (sums) gcpi_layer_norm_sums(&p, sums, &a, &b);
        else gcpi_layer_norm_sums(&p, NULL, &a, &b);
        a = gcpi_attr(c->attributes)->norm.rms ? 0 : a / p.width;
        if (c->din[0].data) gcpi_layer_norm_dx(&p, a, b / p.width, &c->din[0], i);
    }
}
GCPI_WIDE_SUM(gcpi_layer_norm_back)
static void gcpi_layer_norm_task_back(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const size_t first = (size_t)index * job->chunk;
    gcpi_layer_norm_back(job->call, first, GCPI_MIN(first + job->chunk, job->pixels), NULL);
    (void)worker;
}
/* One pass, but where x is gamma or beta, too: their gradients come first, and dx is added to them. */
static void gcpi_layer_norm_backward(const gcp_call *c)
{
    const int beta = c->inputs > 2 && c->din[2].data, sums_wanted = c->din[1].data || beta;
    const int apart = c->din[0].data != c->din[1].data && (!beta || c->din[0].data != c->din[2].data);
    gcp_call with_sums = *c;
    gcp_view none = c->din[0];
    none.data = NULL;
    if (!apart) with_sums.din = &none;
    if (sums_wanted) {
        const double *sums = gcpi_sums(&with_sums, c->in[0].shape, 2, gcpi_uses_backward, gcpi_layer_norm_back);
        if (c->din[1].data) gcpi_store_sums(&c->din[1], sums);
        if (beta) gcpi_store_sums(&c->din[2], sums + c->in[0].shape.d[3]);
    }
    if (c->din[0].data && !(apart && sums_wanted))
        gcpi_norm_rows(c, c->din[0].shape, NULL, gcpi_uses_backward, gcpi_layer_norm_task_back);
}

static void gcpi_layer_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_sum_workspace(c, c->in[0], 2);
    else gcpi_rows_cost(c, cost);                       /* no mask: other blocks than those of gcpi_norm_cost */
}
static void gcpi_layer_norm_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_layer(c, op, op->inputs);
    gcpi_code_int(c, "groups", op->attributes.norm.groups, 0);
    gcpi_code_real(c, "epsilon", op->attributes.norm.epsilon, 1e-5);
}
static void gcpi_layer_norm_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->call = gcpi_layer_norm_call;
    f->shared = f->dense = f->early = f->floats = GCPI_IN(1) | GCPI_IN(2);
}
#define GCPI_LAYER_NORM_ROW(name)                                                                                   \
    static const gcpi_op_row gcpi_##name##_row = {                                                                  \
        GCP_OP_LAYER_NORM,                                                                                          \
        { #name, gcpi_norm_shape, gcpi_layer_norm_forward, gcpi_layer_norm_backward, gcpi_layer_norm_cost,          \
          GCPI_IN(0) | GCPI_IN(1), 0, GCPI_OVER | GCP_FLAG_BF16, 1, NULL },                                         \
        gcpi_layer_norm_facts                                                                                       \
    };
GCPI_LAYER_NORM_ROW(layer_norm)
GCPI_LAYER_NORM_ROW(rms_norm)

GCPI_COLD

/* An op with a value a channel each of gamma and, but for RMS-norm, beta: given, or made. */
static gcp_tensor gcpi_norm_record(const gcpi_op_row *row, gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given,
                                   const gcpi_attributes *a, const char *named, gcp_at at)
{
    gcp_tape *t = x.tape;
    gcp_tensor in[3];
    if (!gcpi_enter(x, at, row->op.name)) return gcpi_nil(t);
    gcp_shape channels = gcpi_raw(1, gcpi_get(x)->shape.d[3], 0, 0, 0);
    int name = gcpi_op_name(t, row->op.name, named, at);
    if (!name) return gcpi_nil(t);
    gcp_param_opts ones = gcpi_weight_options(GCP_INIT_ONES, GCP_INIT_ONES, 1, 1, at),
                   zeros = gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, at);
    in[0] = x;
    in[1] = given ? gamma : gcpi_weight(t, name, "gamma", channels, ones);
    in[2] = given || a->norm.rms ? beta : gcpi_weight(t, name, "beta", channels, zeros);
    return t->code ? gcpi_nil(t) : gcpi_record(t, row, name, in, a->norm.rms ? 2 : 3, a, at);
}
static gcp_tensor gcpi_layer_norm(const gcpi_op_row *row, gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given,
                                  gcp_norm_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    if (o.momentum != 0)
        return gcpi_bad_option(x, o.at, row->op.name, ".momentum", o.momentum, "it belongs to gcp_batch_norm");
    if (o.frozen)
        return gcpi_bad_option(x, o.at, row->op.name, ".frozen", o.frozen, "it belongs to gcp_batch_norm");
    if (!gcpi_norm_options(x, row->op.name, &o)) return gcpi_nil(x.tape);
    a.norm.epsilon = o.epsilon;
    a.norm.rms = row == &gcpi_rms_norm_row;
    return gcpi_norm_record(row, x, gamma, beta, given, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_layer_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_layer_norm(&gcpi_layer_norm_row, x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_layer_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts o)
{
    return gcpi_layer_norm(&gcpi_layer_norm_row, x, gamma, beta, 1, o);
}
GCPI_DEF gcp_tensor gcp_rms_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_layer_norm(&gcpi_rms_norm_row, x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_rms_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_norm_opts o)
{
    return gcpi_layer_norm(&gcpi_rms_norm_row, x, gamma, gcpi_nil(NULL), 1, o);
}
GCPI_WARM
