/* Ops that treat each pixel alone: elementwise, pairs, bias, apply (batch-norm, addition and rectifier in one pass);
   and the sums over pixels that their backward needs. An op has a shape rule, forward, backward and cost. */

/* Elementwise ops: a function on one contiguous span of up to four operands. A task starts at a multiple of 8 pixels,
   so that no two tasks share a byte of a bit mask. */
typedef struct gcpi_span {
    gcp_real *p[4];
    unsigned char *mask;
    size_t n, index;
    const gcp_call *call;
    int accumulate;
} gcpi_span;
typedef void (*gcpi_span_fn)(const gcpi_span *s);
typedef struct gcpi_map_job {
    const gcp_call *call; gcpi_span_fn fn;
    gcp_view view[4]; unsigned char *mask; int dense, accumulate;
    size_t pixels, chunk, width;
} gcpi_map_job;

static void gcpi_map_task(void *arg, int index, int worker)
{
    const gcpi_map_job *job = (const gcpi_map_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    size_t step = job->dense ? last - first : 1;
    gcpi_span s;
    s.call = job->call; s.mask = job->mask; s.accumulate = job->accumulate; s.n = step * job->width;
    for (size_t pixel = first; pixel < last; pixel += step) {
        s.index = pixel * job->width;
        for (int v = 0; v < 4; v++)
            s.p[v] = job->view[v].data ? (gcp_real *)job->view[v].data + (ptrdiff_t)pixel * job->view[v].pitch : NULL;
        job->fn(&s);
    }
    (void)worker;
}

static void gcpi_map(const gcp_call *call, gcpi_span_fn fn, const gcp_view *const *views, int count,
                     unsigned char *mask, int accumulate)
{
    gcpi_map_job job;
    memset(&job, 0, sizeof job);
    job.call = call; job.fn = fn; job.mask = mask; job.dense = 1; job.accumulate = accumulate;
    job.pixels = gcpi_pixels(views[0]->shape);
    job.width = (size_t)views[0]->shape.d[3];
    for (int v = 0; v < count; v++) {
        job.view[v] = *views[v];
        if (views[v]->data && views[v]->pitch != (ptrdiff_t)job.width) job.dense = 0;
    }
    job.chunk = (GCPI_MAX((size_t)1, GCPI_CHUNK / job.width) + 7) / 8 * 8;
    gcpi_parallel(call->target, (int)((job.pixels + job.chunk - 1) / job.chunk), gcpi_map_task, &job);
}

static void gcpi_map_forward(const gcp_call *c, gcpi_span_fn fn)          /* p: x, y */
{
    const gcp_view *v[2];
    v[0] = &c->in[0]; v[1] = &c->out[0];
    gcpi_map(c, fn, v, 2, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, 0);
}

static void gcpi_map_backward(const gcp_call *c, gcpi_span_fn fn)         /* p: dx, dy, x or NULL, y or NULL */
{
    const gcp_view *v[4];
    if (!c->din[0].data) return;
    v[0] = &c->din[0]; v[1] = &c->dout[0]; v[2] = &c->in[0]; v[3] = &c->out[0];
    gcpi_map(c, fn, v, 4, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, c->din[0].accumulate);
}

/* Defines forward and backward of a unary op from two expressions: the value, of x; the derivative, of x and y. */
#define GCPI_UNARY(name, prepare, value, derivative)                                                                   \
    GCPI_LOOP void gcpi_##name##_span(const gcpi_span *s)                                                              \
    {                                                                                                                  \
        const gcp_real *in = s->p[0]; gcp_real *out = s->p[1];                                                         \
        prepare                                                                                                        \
        for (size_t i = 0; i < s->n; i++) { const gcp_real x = in[i]; out[i] = (value); }                              \
    }                                                                                                                  \
    GCPI_LOOP void gcpi_##name##_span_back(const gcpi_span *s)                                                         \
    {                                                                                                                  \
        gcp_real *dx = s->p[0];                                                                                        \
        const gcp_real *dy = s->p[1], *xs = s->p[2] ? s->p[2] : dy, *ys = s->p[3] ? s->p[3] : dy;                      \
        prepare                                                                                                        \
        if (s->accumulate)                                                                                             \
            for (size_t i = 0; i < s->n; i++) {                                                                        \
                const gcp_real x = xs[i], y = ys[i];                                                                   \
                (void)x; (void)y;                                                                                      \
                dx[i] += dy[i] * (derivative);                                                                         \
            }                                                                                                          \
        else                                                                                                           \
            for (size_t i = 0; i < s->n; i++) {                                                                        \
                const gcp_real x = xs[i], y = ys[i];                                                                   \
                (void)x; (void)y;                                                                                      \
                dx[i] = dy[i] * (derivative);                                                                          \
            }                                                                                                          \
    }                                                                                                                  \
    static void gcpi_##name##_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_##name##_span); }                  \
    static void gcpi_##name##_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_##name##_span_back); }

/* One value at a time, never inlined: under fast math <math.h> declares vector forms of these with other bits, and a
   loop around the call would use them. */
GCPI_ALONE double gcpi_exp(double x) { return exp(x); }
GCPI_ALONE double gcpi_pow(double x, double y) { return pow(x, y); }
GCPI_ALONE gcp_real gcpi_exp1(gcp_real x)
{
    return sizeof x == sizeof(double) ? (gcp_real)exp((double)x) : (gcp_real)expf((float)x);
}
GCPI_ALONE gcp_real gcpi_tanh1(gcp_real x)
{
    return sizeof x == sizeof(double) ? (gcp_real)tanh((double)x) : (gcp_real)tanhf((float)x);
}
GCPI_ALONE gcp_real gcpi_phi(gcp_real x) { return (gcp_real)(0.5 * erfc(-(double)x * 0.70710678118654752440)); }
static gcp_real gcpi_density(gcp_real x)
{
    return (gcp_real)(0.39894228040143267794 * gcpi_exp(-0.5 * (double)x * (double)x));
}

GCPI_UNARY(tanh, , gcpi_tanh1(x), (1 - y * y))
GCPI_UNARY(sigmoid, , 1 / (1 + gcpi_exp1(-x)), (y * (1 - y)))
GCPI_UNARY(gelu, , x * gcpi_phi(x), (gcpi_phi(x) + x * gcpi_density(x)))
GCPI_UNARY(scale, const gcp_real by = (gcp_real)gcpi_attr(s->call->attributes)->number.a;, x * by, by)

/* relu and leaky relu: max(x, slope x) with slope 0 for relu. Backward reads the sign of y, or the mask. */
static void gcpi_mask_write(unsigned char *mask, const gcp_real *x, size_t index, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = index + i;
        if ((k & 7) == 0) mask[k >> 3] = 0;
        mask[k >> 3] = (unsigned char)(mask[k >> 3] | (x[i] > 0) << (k & 7));
    }
}

/* Packs eight bytes of 0 or 1 into the bits of one byte. The product moves byte i to bit 56 + i, and no two of its
   terms meet in a bit. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    uint64_t all;
    memcpy(&all, on, sizeof all);
    return (unsigned char)(all * 0x0102040810204080u >> 56);
}
#else
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; i++) bits |= (unsigned)on[i] << i;
    return (unsigned char)bits;
}
#endif

/* Whole bytes of the mask at a time where the span begins at one. */
GCPI_BODY void gcpi_mask_span(unsigned char *mask, const gcp_real *x, size_t index, size_t n)
{
    enum { RUN = 64 };
    unsigned char on[RUN];
    size_t done = 0;
    for (; (index & 7) == 0 && done + RUN <= n; done += RUN) {
        for (int i = 0; i < RUN; i++) on[i] = x[done + (size_t)i] > 0;
        for (size_t b = 0; b < RUN / 8; b++) mask[(index + done) / 8 + b] = gcpi_bits(on + 8 * b);
    }
    for (; (index & 7) == 0 && done + 8 <= n; done += 8) {
        for (int i = 0; i < 8; i++) on[i] = x[done + (size_t)i] > 0;
        mask[(index + done) / 8] = gcpi_bits(on);
    }
    gcpi_mask_write(mask, x + done, index + done, n - done);
}

GCPI_BODY void gcpi_rectify_span_body(const gcpi_span *s)
{
    const gcp_real *x = s->p[0], slope = (gcp_real)gcpi_attr(s->call->attributes)->number.a;
    gcp_real *y = s->p[1];
    if (s->mask) gcpi_mask_span(s->mask, x, s->index, s->n);
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span)

/* By the mask: eight values at a time for whole bytes, the rest bit by bit. */
GCPI_BODY void gcpi_rectify_mask_back(const gcpi_span *s, gcp_real *dx, const gcp_real *dy, gcp_real slope)
{
    static const unsigned bit[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    size_t bytes = (s->index & 7) == 0 ? s->n / 8 : 0;
    const unsigned char *mask = s->mask + s->index / 8;
    for (size_t b = 0; b < bytes; b++, mask++) {
        unsigned on = *mask;
        gcp_real *to = dx + 8 * b;
        const gcp_real *from = dy + 8 * b;
        if (s->accumulate) GCPI_EIGHT for (int i = 0; i < 8; i++) to[i] += on & bit[i] ? from[i] : slope * from[i];
        else GCPI_EIGHT for (int i = 0; i < 8; i++) to[i] = on & bit[i] ? from[i] : slope * from[i];
    }
    for (size_t i = 8 * bytes; i < s->n; i++) {
        size_t k = s->index + i;
        gcp_real g = s->mask[k >> 3] & bit[k & 7] ? dy[i] : slope * dy[i];
        dx[i] = s->accumulate ? dx[i] + g : g;
    }
}

GCPI_BODY void gcpi_rectify_span_back_body(const gcpi_span *s)
{
    gcp_real *dx = s->p[0];
    const gcp_real *dy = s->p[1], *y = s->p[3], slope = (gcp_real)gcpi_attr(s->call->attributes)->number.a;
    if (s->mask) gcpi_rectify_mask_back(s, dx, dy, slope);
    else if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] += y[i] > 0 ? dy[i] : slope * dy[i];
    else GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span_back)

static void gcpi_rectify_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_rectify_span); }
static void gcpi_rectify_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_rectify_span_back); }

static int gcpi_rectify_shape(gcp_shape_call *s)
{
    s->out[0] = s->out[1] = s->in[0];
    s->out_dtype[1] = GCP_DTYPE_BIT;
    return gcpi_all_real(s);
}

/* Pairs: add, mul. */
static int gcpi_pair_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    if (!gcpi_same_shape(s->in[0], s->in[1]))
        return gcpi_refuse(s,
                           "%s and %s differ; nothing is broadcast: gcp_bias adds a value a channel, gcp_upsample "
                           "spreads an n x 1 x 1 x c",
                           GCPI_TEXT(s->in[0]), GCPI_TEXT(s->in[1]));
    return gcpi_all_real(s);
}

GCPI_BODY void gcpi_add_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] + b[i];
}
GCPI_WIDE_SPAN(gcpi_add_span)

GCPI_BODY void gcpi_mul_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] * b[i];
}
GCPI_WIDE_SPAN(gcpi_mul_span)

GCPI_BODY void gcpi_copy_span_body(const gcpi_span *s)                          /* p: to, from */
{
    gcp_real *to = s->p[0];
    const gcp_real *from = s->p[1];
    if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) to[i] += from[i];
    else if (to != from) memmove(to, from, s->n * sizeof *to);
}
GCPI_WIDE_SPAN(gcpi_copy_span)

GCPI_BODY void gcpi_mul_span_back_body(const gcpi_span *s)                      /* p: d of one, dy, the other */
{
    gcp_real *d = s->p[0];
    const gcp_real *dy = s->p[1], *other = s->p[2];
    if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) d[i] += dy[i] * other[i];
    else               GCPI_EACH for (size_t i = 0; i < s->n; i++) d[i] = dy[i] * other[i];
}
GCPI_WIDE_SPAN(gcpi_mul_span_back)

static void gcpi_pair_forward(const gcp_call *c, gcpi_span_fn fn)
{
    const gcp_view *v[3];
    v[0] = &c->in[0]; v[1] = &c->in[1]; v[2] = &c->out[0];
    gcpi_map(c, fn, v, 3, NULL, 0);
}
static void gcpi_add_forward(const gcp_call *c) { gcpi_pair_forward(c, gcpi_add_span); }
static void gcpi_mul_forward(const gcp_call *c) { gcpi_pair_forward(c, gcpi_mul_span); }

static void gcpi_view_copy(const gcp_call *c, const gcp_view *to, const gcp_view *from, int accumulate)
{
    const gcp_view *v[2];
    if (to->data == from->data && to->pitch == from->pitch && !accumulate) return;
    v[0] = to; v[1] = from;
    gcpi_map(c, gcpi_copy_span, v, 2, NULL, accumulate);
}

static void gcpi_add_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->din[i].data) gcpi_view_copy(c, &c->din[i], &c->dout[0], c->din[i].accumulate);
}

/* Input 1 comes first, since input 0's gradient may overwrite dy. For x * x input 0 does: the other adds to it. */
static void gcpi_mul_backward(const gcp_call *c)
{
    int same = c->din[0].data == c->din[1].data;
    for (int k = 0; k < 2; k++) {
        int i = same ? k : 1 - k;
        const gcp_view *v[3];
        if (!c->din[i].data) continue;
        v[0] = &c->din[i]; v[1] = &c->dout[0]; v[2] = &c->in[1 - i];
        gcpi_map(c, gcpi_mul_span_back, v, 3, NULL, c->din[i].accumulate);
    }
}

/* Sums over pixels, per channel. The shape fixes the blocks of pixels. Each block sums in double, and the blocks are
   added in order. */
enum { GCPI_SUM_BLOCKS = 64 };
typedef void (*gcpi_sum_fn)(const gcp_call *call, size_t first, size_t last, double *sums);
typedef struct gcpi_sum_job {
    const gcp_call *call;
    gcpi_sum_fn fn;
    size_t pixels, blocks, width;
    double *partial;
} gcpi_sum_job;

static size_t gcpi_sum_blocks(size_t pixels, size_t width)
{
    size_t most = GCPI_MAX((size_t)1, GCPI_MIN((size_t)GCPI_SUM_BLOCKS, 32768 / GCPI_MAX(width, (size_t)1)));
    return GCPI_MAX((size_t)1, GCPI_MIN(most, pixels / 32));
}
static gcpi_sum_job gcpi_sum_job_of(const gcp_call *call, gcp_shape shape, int sums, gcpi_sum_fn fn, void *partial)
{
    gcpi_sum_job job;
    job.call = call; job.fn = fn; job.pixels = gcpi_pixels(shape);
    job.width = (size_t)shape.d[3] * (size_t)sums;
    job.blocks = gcpi_sum_blocks(job.pixels, job.width);
    job.partial = (double *)partial;
    return job;
}
static size_t gcpi_sum_workspace(gcp_shape s, int sums)
{
    size_t width = (size_t)s.d[3] * (size_t)sums;
    return gcpi_sum_blocks(gcpi_pixels(s), width) * width * sizeof(double);
}

static size_t gcpi_sum_first(const gcpi_sum_job *job, size_t block) { return job->pixels * block / job->blocks; }
static void gcpi_sum_task(void *arg, int index, int worker)
{
    const gcpi_sum_job *job = (const gcpi_sum_job *)arg;
    double *sums = job->partial + (size_t)index * job->width;
    memset(sums, 0, job->width * sizeof *sums);
    job->fn(job->call, gcpi_sum_first(job, (size_t)index), gcpi_sum_first(job, (size_t)index + 1), sums);
    (void)worker;
}

/* Adds the blocks' sums into the first block's, and returns them: [sums][channels]. */
static double *gcpi_sum_total(const gcpi_sum_job *job)
{
    for (size_t b = 1; b < job->blocks; b++)
        for (size_t i = 0; i < job->width; i++) job->partial[i] += job->partial[b * job->width + i];
    return job->partial;
}
static double *gcpi_sums(const gcp_call *call, gcp_shape shape, int sums, gcpi_sum_fn fn)
{
    gcpi_sum_job job = gcpi_sum_job_of(call, shape, sums, fn, call->workspace);
    gcpi_parallel(call->target, (int)job.blocks, gcpi_sum_task, &job);
    return gcpi_sum_total(&job);
}

/* The same sums while the tensor is being written, in any order and by any number of threads: the thread that writes
   the last value of a block sums the block. */
#if defined(__GNUC__) || defined(__clang__)
enum { GCPI_TAKES = 1 };
#define GCPI_TAKE(left, n) __atomic_sub_fetch(left, n, __ATOMIC_ACQ_REL)
#else
enum { GCPI_TAKES = 0 };               /* never used: no atomic subtraction here */
#define GCPI_TAKE(left, n) (*(left) -= (n))
#endif
/* left: values of each block that are still to be written */
typedef struct gcpi_sum_watch { gcpi_sum_job job; size_t left[GCPI_SUM_BLOCKS]; } gcpi_sum_watch;

static void gcpi_sum_watch_of(gcpi_sum_watch *e, const gcpi_sum_job *job, int channels)
{
    e->job = *job;
    for (size_t b = 0; b < job->blocks; b++)
        e->left[b] = (gcpi_sum_first(job, b + 1) - gcpi_sum_first(job, b)) * (size_t)channels;
}
static void gcpi_sum_written(void *arg, size_t pixel, size_t pixels, int first, int count)
{
    gcpi_sum_watch *e = (gcpi_sum_watch *)arg;
    for (size_t b = pixel * e->job.blocks / e->job.pixels, n; pixels; b++, pixel += n, pixels -= n) {
        size_t end = gcpi_sum_first(&e->job, b + 1);
        n = end > pixel ? GCPI_MIN(end - pixel, pixels) : 0;
        if (n && GCPI_TAKE(&e->left[b], n * (size_t)count) == 0) gcpi_sum_task(&e->job, (int)b, 0);
    }
    (void)first;
}

static void gcpi_store_sums(const gcp_view *to, const double *sums)
{
    gcp_real *d = (gcp_real *)to->data;
    for (size_t i = 0; i < gcpi_count(to->shape); i++) d[i] = (gcp_real)((to->accumulate ? (double)d[i] : 0) + sums[i]);
}

static const gcp_real *gcpi_row(const gcp_view *v, size_t pixel)
{
    return (const gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch;
}
static gcp_real *gcpi_row_out(const gcp_view *v, size_t pixel)
{
    return (gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch;
}

/* Distances of prefetches, in values. These passes do so much with each cache line that the hardware prefetches too
   late: they ask for whole pixels ahead, of one tensor that is only read (READ), or of each of several. */
enum { GCPI_AHEAD = 512, GCPI_AHEAD_READ = 2048 };
static ptrdiff_t gcpi_row_ahead(const gcp_view *v, int values)
{
    return v->data ? (values / v->pitch + 1) * v->pitch : 0;
}

/* Sums take so many pixels at a time, and each channel adds them in order: the sums are loaded and stored less often. n
   is a literal: this number, or 1 at the end. */
enum { GCPI_SUM_PIXELS = 4 };

GCPI_BODY void gcpi_sum_dout_pixels(const gcp_call *c, size_t pixel, const int n, ptrdiff_t far, double *sums)
{
    const gcp_real *dy = gcpi_row(&c->dout[0], pixel);
    const ptrdiff_t pitch = c->dout[0].pitch;
    int width = c->dout[0].shape.d[3];
    for (int q = 0; q < n; q++) gcpi_fetch(dy, far + q * pitch, width);
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) sum += (double)dy[i + q * pitch];
        sums[i] = sum;
    }
}
GCPI_BODY void gcpi_sum_dout_body(const gcp_call *c, size_t first, size_t last, double *sums)
{
    const ptrdiff_t far = gcpi_row_ahead(&c->dout[0], GCPI_AHEAD_READ);
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS) gcpi_sum_dout_pixels(c, p, GCPI_SUM_PIXELS, far, sums);
    for (; p < last; p++) gcpi_sum_dout_pixels(c, p, 1, far, sums);
}
GCPI_WIDE_SUM(gcpi_sum_dout)

static void gcpi_bias_gradient(const gcp_call *c, const gcp_view *db)
{
    if (db->data) gcpi_store_sums(db, gcpi_sums(c, c->dout[0].shape, 1, gcpi_sum_dout));
}

static int gcpi_bias_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    if (gcpi_count(s->in[1]) != (size_t)s->in[0].d[3])
        return gcpi_refuse(s, "%zu values for the %d channels of %s", gcpi_count(s->in[1]), s->in[0].d[3],
                           GCPI_TEXT(s->in[0]));
    return gcpi_all_real(s);
}

GCPI_LOOP void gcpi_bias_rows(const gcp_view *x, const gcp_real *bias, const gcp_view *y)
{
    size_t pixels = gcpi_pixels(y->shape);
    for (size_t p = 0; p < pixels; p++) {
        const gcp_real *from = gcpi_row(x, p);
        gcp_real *to = gcpi_row_out(y, p);
        for (int i = 0; i < y->shape.d[3]; i++) to[i] = from[i] + bias[i];
    }
}
static void gcpi_bias_forward(const gcp_call *c)
{
    gcpi_bias_rows(&c->in[0], (const gcp_real *)c->in[1].data, &c->out[0]);
}
static void gcpi_bias_backward(const gcp_call *c)
{
    gcpi_bias_gradient(c, &c->din[1]);
    if (c->din[0].data) gcpi_view_copy(c, &c->din[0], &c->dout[0], c->din[0].accumulate);
}
static void gcpi_bias_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward && c->wanted & 2) cost->workspace = gcpi_sum_workspace(c->out[0], 1);
}

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

/* Batch-norm's values per channel, and the slope of the rectifier after it. */
typedef struct gcpi_norm_values { const gcp_real *mean, *scale, *gamma, *beta; gcp_real slope; } gcpi_norm_values;
/* in: mean, scale, gamma, beta */
static gcpi_norm_values gcpi_norm_values_of(const gcp_view *in, const gcpi_attributes *rectifier)
{
    gcpi_norm_values v;
    v.mean = (const gcp_real *)in[0].data; v.scale = (const gcp_real *)in[1].data;
    v.gamma = (const gcp_real *)in[2].data; v.beta = (const gcp_real *)in[3].data;
    v.slope = rectifier ? (gcp_real)rectifier->number.a : 0;
    return v;
}
GCPI_BODY gcp_real gcpi_norm_value(const gcpi_norm_values *v, int i, gcp_real x)
{
    return (x - v->mean[i]) * (v->scale[i] * v->gamma[i]) + v->beta[i];
}

/* apply: batch-norm, addition and rectifier in one pass; any of them may be missing. The arithmetic is that of the ops
   alone. in: x, other, mean, scale, gamma, beta; out: y, mask. Attributes are the rectifier's, NULL without one. y may
   be the same bytes as x or other. norm and add are literals. Without a rectifier the slope is 1. A rectifier with a
   mask runs over what the others wrote while that is in L1. */
/* first, count: channels; far: how far ahead to prefetch x, other, y, 0: not at all */
typedef struct gcpi_apply_span { size_t pixel, pixels; int first, count; ptrdiff_t far[3]; } gcpi_apply_span;

GCPI_BODY void gcpi_apply_run(const gcpi_norm_values *v, const gcp_real *x, const gcp_real *other, gcp_real *y,
                              int channel, int count, const int norm, const int add)
{
    GCPI_EACH for (int i = 0; i < count; i++) {
        gcp_real z = norm ? gcpi_norm_value(v, channel + i, x[i]) : x[i];
        if (add) z = z + other[i];
        y[i] = z > 0 ? z : v->slope * z;
    }
}
static int gcpi_dense_rows(const gcp_view *v, int width) { return !v->data || v->pitch == width; }

/* Where rows are dense and nothing depends on the channel, several pixels go together: about so many values, which stay
   in L1, and a multiple of 8 pixels, for whole bytes of a mask. */
enum { GCPI_TOGETHER = 1024 };
GCPI_BODY void gcpi_apply_loop(const gcp_call *c, const gcpi_apply_span *s, const int norm, const int add)
{
    const int masked = c->attributes && c->out[1].data;
    gcpi_norm_values v = gcpi_norm_values_of(c->in + 2, gcpi_attr(c->attributes));
    if (!c->attributes || masked) v.slope = 1;
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
