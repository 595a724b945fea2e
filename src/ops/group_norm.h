/* Group-norm: a group of a sample's channels has mean 0 and variance 1. As many groups as channels: instance-norm. A
   task is a sample. */

/* What a sample's task holds, a value a channel each: its group's mean and scale; sums. */
enum { GCPI_GROUP_MEAN, GCPI_GROUP_SCALE, GCPI_GROUP_SUM, GCPI_GROUP_SUM_2, GCPI_GROUP_ROWS };
enum { GCPI_GROUP_ROOMS = 3 };
typedef struct gcpi_grouped {
    const gcp_call *call;
    size_t first, pixels;              /* of the sample */
    int channels, width;               /* width: channels of a group */
    double *row[GCPI_GROUP_ROWS];
    gcp_real *room[GCPI_GROUP_ROOMS];  /* of a pixel's values, widened: of two operands and a result */
} gcpi_grouped;

/* Bytes of all samples' rows; behind them each has its room. */
static size_t gcpi_group_bytes(gcp_shape s)
{
    return (size_t)s.d[0] * GCPI_GROUP_ROWS * (size_t)s.d[3] * sizeof(double);
}

static gcpi_grouped gcpi_group_of(const gcp_call *c, int sample)
{
    const gcp_shape s = c->in[0].shape;
    gcpi_grouped g;
    g.call = c;
    g.pixels = (size_t)s.d[1] * (size_t)s.d[2];
    g.first = (size_t)sample * g.pixels;
    g.channels = s.d[3];
    g.width = s.d[3] / gcpi_attr(c->attributes)->norm.groups;
    for (int i = 0; i < GCPI_GROUP_ROWS; i++)
        g.row[i] = (double *)c->workspace + ((size_t)sample * GCPI_GROUP_ROWS + (size_t)i) * (size_t)s.d[3];
    for (int i = 0; i < GCPI_GROUP_ROOMS; i++)
        g.room[i] = (gcp_real *)(void *)((unsigned char *)c->workspace + gcpi_group_bytes(s)) +
                    ((size_t)sample * GCPI_GROUP_ROOMS + (size_t)i) * (size_t)s.d[3];
    return g;
}
/* A pixel's values: where they lie, or in room k. To be made: there is room for them; then they are put. */
static gcp_real *gcpi_group_row(const gcpi_grouped *g, const gcp_view *v, size_t pixel, int k, int fills)
{
    const gcpi_array from = gcpi_elements(v, g->first + pixel, 0);
    if (!from.half) return (gcp_real *)from.at;
    if (fills) gcpi_array_load(gcpi_halves_of(g->call->target->isa), from, 0, g->room[k], 0, 1, g->channels);
    return g->room[k];
}
static void gcpi_group_put(const gcpi_grouped *g, const gcp_view *v, size_t pixel, const gcp_real *values)
{
    const gcpi_array to = gcpi_elements(v, g->first + pixel, 0);
    if (to.half) gcpi_array_store(gcpi_halves_of(g->call->target->isa), to, 0, values, 0, 1, g->channels);
}
/* Each channel's sum becomes its group's, over count values. */
static void gcpi_group_mean(const gcpi_grouped *g, double *sums)
{
    for (int first = 0; first < g->channels; first += g->width) {
        double sum = 0;
        for (int i = first; i < first + g->width; i++) sum += sums[i];
        for (int i = first; i < first + g->width; i++) sums[i] = sum / ((double)g->pixels * g->width);
    }
}

GCPI_BODY void gcpi_group_moments_body(const gcpi_grouped *g)
{
    const int n = g->channels;
    double *mean = g->row[GCPI_GROUP_MEAN], *scale = g->row[GCPI_GROUP_SCALE];
    memset(mean, 0, (size_t)n * sizeof *mean);
    memset(scale, 0, (size_t)n * sizeof *scale);
    for (size_t p = 0; p < g->pixels; p++) {
        const gcp_real *x = gcpi_group_row(g, &g->call->in[0], p, 0, 1);
        GCPI_EACH for (int i = 0; i < n; i++) mean[i] += (double)x[i];
    }
    gcpi_group_mean(g, mean);
    for (size_t p = 0; p < g->pixels; p++) {
        const gcp_real *x = gcpi_group_row(g, &g->call->in[0], p, 0, 1);
        GCPI_EACH for (int i = 0; i < n; i++) scale[i] += ((double)x[i] - mean[i]) * ((double)x[i] - mean[i]);
    }
    gcpi_group_mean(g, scale);
    for (int i = 0; i < n; i++) scale[i] = 1 / sqrt(scale[i] + gcpi_attr(g->call->attributes)->norm.epsilon);
}
GCPI_BODY void gcpi_group_apply_body(const gcpi_grouped *g)
{
    const gcp_call *c = g->call;
    const gcp_real *gamma = (const gcp_real *)c->in[1].data, *beta = (const gcp_real *)c->in[2].data;
    const double *mean = g->row[GCPI_GROUP_MEAN], *scale = g->row[GCPI_GROUP_SCALE];
    for (size_t p = 0; p < g->pixels; p++) {
        const gcp_real *x = gcpi_group_row(g, &c->in[0], p, 0, 1);
        gcp_real *y = gcpi_group_row(g, &c->out[0], p, 1, 0);
        GCPI_EACH for (int i = 0; i < g->channels; i++)
            y[i] = (gcp_real)(((double)x[i] - mean[i]) * scale[i]) * gamma[i] + beta[i];
        gcpi_group_put(g, &c->out[0], p, y);
    }
}
/* A channel's sums of dy xhat, and of dy. */
GCPI_BODY void gcpi_group_sums_body(const gcpi_grouped *g)
{
    const int n = g->channels;
    const double *mean = g->row[GCPI_GROUP_MEAN], *scale = g->row[GCPI_GROUP_SCALE];
    double *sum = g->row[GCPI_GROUP_SUM], *plain = g->row[GCPI_GROUP_SUM_2];
    memset(sum, 0, (size_t)n * sizeof *sum);
    memset(plain, 0, (size_t)n * sizeof *plain);
    for (size_t p = 0; p < g->pixels; p++) {
        const gcp_real *x = gcpi_group_row(g, &g->call->in[0], p, 0, 1),
                       *dy = gcpi_group_row(g, &g->call->dout[0], p, 1, 1);
        GCPI_EACH for (int i = 0; i < n; i++) {
            sum[i] += (double)dy[i] * (((double)x[i] - mean[i]) * scale[i]);
            plain[i] += (double)dy[i];
        }
    }
}
/* The sums become those of gamma dy, over the group, as means. */
GCPI_BODY void gcpi_group_dx_body(const gcpi_grouped *g)
{
    const gcp_call *c = g->call;
    const gcp_real *gamma = (const gcp_real *)c->in[1].data;
    const double *mean = g->row[GCPI_GROUP_MEAN], *scale = g->row[GCPI_GROUP_SCALE];
    double *sum = g->row[GCPI_GROUP_SUM], *plain = g->row[GCPI_GROUP_SUM_2];
    const int accumulate = c->din[0].accumulate;
    for (int i = 0; i < g->channels; i++) { sum[i] *= (double)gamma[i]; plain[i] *= (double)gamma[i]; }
    gcpi_group_mean(g, sum);
    gcpi_group_mean(g, plain);
    for (size_t p = 0; p < g->pixels; p++) {
        const gcp_real *x = gcpi_group_row(g, &c->in[0], p, 0, 1), *dy = gcpi_group_row(g, &c->dout[0], p, 1, 1);
        gcp_real *dx = gcpi_group_row(g, &c->din[0], p, 2, accumulate);
        GCPI_EACH for (int i = 0; i < g->channels; i++) {
            const double xhat = ((double)x[i] - mean[i]) * scale[i];
            const gcp_real d = (gcp_real)(scale[i] * ((double)dy[i] * (double)gamma[i] - plain[i] - xhat * sum[i]));
            dx[i] = accumulate ? dx[i] + d : d;
        }
        gcpi_group_put(g, &c->din[0], p, dx);
    }
}
GCPI_WIDE(gcpi_group_moments, (const gcpi_grouped *g), (g), g->call->target)
GCPI_WIDE(gcpi_group_apply, (const gcpi_grouped *g), (g), g->call->target)
GCPI_WIDE(gcpi_group_sums, (const gcpi_grouped *g), (g), g->call->target)
GCPI_WIDE(gcpi_group_dx, (const gcpi_grouped *g), (g), g->call->target)

static void gcpi_group_image(const gcp_call *c, int sample)
{
    const gcpi_grouped g = gcpi_group_of(c, sample);
    gcpi_group_moments(&g);
    gcpi_group_apply(&g);
}
static void gcpi_group_norm_forward(const gcp_call *c) { gcpi_images(c, c->in[0].shape.d[0], gcpi_group_image); }
static void gcpi_group_image_sums(const gcp_call *c, int sample)
{
    const gcpi_grouped g = gcpi_group_of(c, sample);
    gcpi_group_moments(&g);
    gcpi_group_sums(&g);
}
static void gcpi_group_image_dx(const gcp_call *c, int sample)
{
    const gcpi_grouped g = gcpi_group_of(c, sample);
    gcpi_group_dx(&g);
}
/* gamma's and beta's gradients: the samples' sums, in their order; before dx uses them up. */
static void gcpi_group_norm_backward(const gcp_call *c)
{
    const int samples = c->in[0].shape.d[0], channels = c->in[0].shape.d[3];
    gcpi_images(c, samples, gcpi_group_image_sums);
    for (int k = 0; k < 2; k++) {
        gcp_real *d = (gcp_real *)c->din[1 + k].data;
        for (int i = 0; d && i < channels; i++) {
            double sum = c->din[1 + k].accumulate ? (double)d[i] : 0;
            for (int n = 0; n < samples; n++) {
                const size_t row = (size_t)n * GCPI_GROUP_ROWS + GCPI_GROUP_SUM + (size_t)k;
                sum += ((const double *)c->workspace)[row * (size_t)channels + (size_t)i];
            }
            d[i] = (gcp_real)sum;
        }
    }
    if (c->din[0].data) gcpi_images(c, samples, gcpi_group_image_dx);
}
static void gcpi_group_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    const size_t rooms = GCPI_GROUP_ROOMS * (size_t)c->in[0].d[0] * (size_t)c->in[0].d[3] * sizeof(gcp_real);
    cost->workspace = gcpi_group_bytes(c->in[0]) + (c->store ? rooms : 0);
}
static const gcpi_op_row gcpi_group_norm_row = {
    GCP_OP_GROUP_NORM,
    { "group_norm", gcpi_norm_shape, gcpi_group_norm_forward, gcpi_group_norm_backward, gcpi_group_norm_cost,
      GCPI_IN(0) | GCPI_IN(1), 0, GCPI_OVER | GCP_FLAG_BF16, 1, NULL },
    gcpi_layer_norm_facts
};

static gcp_tensor gcpi_group_norm(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given, gcp_group_norm_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    const int channels = gcp_shape_of(x).d[3];
    if (o.groups < 1 || channels % o.groups)
        return gcpi_bad_option(x, o.at, "group_norm", ".groups", o.groups, "a divisor of the channels of x");
    a.norm.epsilon = gcpi_option(o.epsilon, 1e-5);
    a.norm.groups = o.groups;
    if (!(a.norm.epsilon > 0) || !gcpi_finite(a.norm.epsilon))
        return gcpi_bad_option(x, o.at, "group_norm", ".epsilon", a.norm.epsilon, "above 0");
    return gcpi_norm_record(&gcpi_group_norm_row, x, gamma, beta, given, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_group_norm_at(gcp_tensor x, gcp_group_norm_opts o)
{
    return gcpi_group_norm(x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_group_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_group_norm_opts o)
{
    return gcpi_group_norm(x, gamma, beta, 1, o);
}
