/* Batch-norm, addition and rectifier in one pass. It is a row of its own, GCP_ROW_APPLY. */

/* Norms and apply run by chunks of pixels. means: of batch-norm's backward, else NULL. */
typedef struct gcpi_norm_job { const gcp_call *call; const gcp_real *means; size_t pixels, chunk; } gcpi_norm_job;

static void gcpi_norm_rows(const gcp_call *c, gcp_shape shape, const gcp_real *means,
                           void (*task)(void *arg, int index, int worker))
{
    gcpi_norm_job job;
    job.call = c; job.means = means; job.pixels = gcpi_pixels(shape);
    /* a multiple of 8: no two tasks share a byte of a mask */
    job.chunk = (GCPI_MAX((size_t)1, GCPI_CHUNK / (size_t)shape.d[3]) + 7) / 8 * 8;
    gcpi_parallel(c->target, (int)((job.pixels + job.chunk - 1) / job.chunk), task, &job);
}

/* Batch-norm's values per channel, and the rectifier after it. */
typedef struct gcpi_norm_values {
    const gcp_real *mean, *scale, *gamma, *beta;
    gcpi_rectifier rectifier;
} gcpi_norm_values;
/* in: mean, scale, gamma, beta */
static gcpi_norm_values gcpi_norm_values_of(const gcp_view *in, const gcpi_attributes *rectifier)
{
    gcpi_norm_values v;
    v.mean = (const gcp_real *)in[0].data; v.scale = (const gcp_real *)in[1].data;
    v.gamma = (const gcp_real *)in[2].data; v.beta = (const gcp_real *)in[3].data;
    v.rectifier = gcpi_rectifier_of(rectifier);
    return v;
}
GCPI_BODY gcp_real gcpi_norm_value(const gcpi_norm_values *v, int i, gcp_real x)
{
    return (x - v->mean[i]) * (v->scale[i] * v->gamma[i]) + v->beta[i];
}

/* apply: batch-norm, addition and rectifier in one pass; any of them may be missing. The arithmetic is that of the ops
   alone. in: x, other, mean, scale, gamma, beta; out: y, mask. Attributes are the rectifier's, NULL without one. y may
   be the same bytes as x or other. norm and add are literals. A rectifier with a mask runs over what the others wrote
   while that is in L1. */
/* first, count: channels; far: how far ahead to prefetch x, other, y, 0: not at all */
typedef struct gcpi_apply_span { size_t pixel, pixels; int first, count; ptrdiff_t far[3]; } gcpi_apply_span;

GCPI_BODY void gcpi_apply_run(const gcpi_norm_values *v, const gcp_real *x, const gcp_real *other, gcp_real *y,
                              int channel, int count, const int norm, const int add)
{
    GCPI_EACH for (int i = 0; i < count; i++) {
        gcp_real z = norm ? gcpi_norm_value(v, channel + i, x[i]) : x[i];
        if (add) z = z + other[i];
        y[i] = gcpi_rectified(&v->rectifier, z);
    }
}
static int gcpi_dense_rows(const gcp_view *v, int width) { return !v->data || v->pitch == width; }

/* Where rows are dense and nothing depends on the channel, several pixels go together: about so many values, which stay
   in L1, and a multiple of 8 pixels, for whole bytes of a mask. */
enum { GCPI_TOGETHER = 1024 };
GCPI_BODY void gcpi_apply_loop(const gcp_call *c, const gcpi_apply_span *s, const int norm, const int add)
{
    const int masked = c->attributes && c->out[1].data;
    const gcpi_norm_values v = gcpi_norm_values_of(c->in + 2, masked ? NULL : gcpi_attr(c->attributes));
    const int width = c->out[0].shape.d[3];
    int flat = !norm && s->count == width && gcpi_dense_rows(&c->in[0], width) && gcpi_dense_rows(&c->in[1], width) &&
               gcpi_dense_rows(&c->out[0], width);
    size_t together = flat ? (size_t)(GCPI_TOGETHER / width + 8) / 8 * 8 : 1, end = s->pixel + s->pixels;
    for (size_t p = s->pixel, n; p < end; p += n) {
        n = GCPI_MIN(together, end - p);
        const int count = s->count * (int)n;
        const gcp_real *x = gcpi_row(&c->in[0], p) + s->first, *other = add ? gcpi_row(&c->in[1], p) + s->first : x;
        gcp_real *y = gcpi_row_out(&c->out[0], p) + s->first;
        if (s->far[0]) gcpi_fetch(x, s->far[0], count);
        if (s->far[1]) gcpi_fetch(other, s->far[1], count);
        if (s->far[2]) gcpi_fetch(y, s->far[2], count);
        gcpi_apply_run(&v, x, other, y, s->first, count, norm, add);
        if (!masked) continue;
        gcpi_span span = {
            { y, y }, (unsigned char *)c->out[1].data, (size_t)count, p * (size_t)width + (size_t)s->first, c, 0
        };
        gcpi_rectify_span(&span);
    }
}
GCPI_BODY void gcpi_apply_pixels_body(const gcp_call *c, size_t pixel, size_t pixels, int first, int count, int ahead)
{
    gcpi_apply_span s = { pixel, pixels, first, count, { 0 } };
    const gcp_view *views[] = { &c->in[0], &c->in[1], &c->out[0] };
    for (int i = 0; i < 3; i++)
        s.far[i] = ahead && c->out[0].shape.d[3] >= GCPI_LINE ? gcpi_row_ahead(views[i], GCPI_AHEAD) : 0;
    if (c->in[2].data && c->in[1].data) gcpi_apply_loop(c, &s, 1, 1);
    else if (c->in[2].data) gcpi_apply_loop(c, &s, 1, 0);
    else if (c->in[1].data) gcpi_apply_loop(c, &s, 0, 1);
    else gcpi_apply_loop(c, &s, 0, 0);
}
GCPI_WIDE(gcpi_apply_pixels, (const gcp_call *c, size_t pixel, size_t pixels, int first, int count, int ahead),
          (c, pixel, pixels, first, count, ahead), c->target)
static void gcpi_apply_end(void *arg, size_t pixel, size_t pixels, int first, int count)
{
    gcpi_apply_pixels((const gcp_call *)arg, pixel, pixels, first, count, 0);
}
static void gcpi_apply_task(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    gcpi_apply_pixels(job->call, first, last - first, 0, job->call->in[0].shape.d[3], 1);
    (void)worker;
}
static void gcpi_apply_forward(const gcp_call *c) { gcpi_norm_rows(c, c->in[0].shape, NULL, gcpi_apply_task); }

static const gcpi_op_row gcpi_apply_row = {
    GCP_ROW_APPLY, { "apply", NULL, gcpi_apply_forward, NULL, NULL, 0, 0, GCP_FLAG_IN_PLACE, 2, NULL }, NULL
};
