/* Sums over pixels, and the op whose backward is one: bias. */

/* Per channel. The shape fixes the blocks of pixels. Each block sums in double, and the blocks are
   added in order. */
enum { GCPI_SUM_BLOCKS = 64 };
typedef void (*gcpi_sum_fn)(const gcp_call *call, size_t first, size_t last, double *sums);
typedef struct gcpi_sum_job {
    const gcp_call *call;
    gcpi_sum_fn fn;
    size_t pixels, blocks, width;
    gcpi_used used;                    /* the operands that are summed */
    int channels;
    unsigned char *rooms;              /* of blocks in floats; NULL: operands are floats */
    double *partial;
} gcpi_sum_job;

static size_t gcpi_sum_blocks(size_t pixels, size_t width)
{
    size_t most = GCPI_MAX((size_t)1, GCPI_MIN((size_t)GCPI_SUM_BLOCKS, 32768 / GCPI_MAX(width, (size_t)1)));
    return GCPI_MAX((size_t)1, GCPI_MIN(most, pixels / 32));
}
/* workspace: rooms for blocks in floats, then the sums. */
static gcpi_sum_job gcpi_sum_job_of(const gcp_call *call, gcp_shape shape, int sums, gcpi_used used, gcpi_sum_fn fn,
                                    void *workspace)
{
    gcpi_sum_job job;
    unsigned char *rooms = (unsigned char *)workspace;
    job.call = call; job.fn = fn; job.used = used; job.pixels = gcpi_pixels(shape);
    job.channels = shape.d[3];
    job.width = (size_t)shape.d[3] * (size_t)sums;
    job.blocks = gcpi_sum_blocks(job.pixels, job.width);
    job.rooms = gcpi_by_blocks(call, used) ? rooms : NULL;
    job.partial = (double *)(void *)(rooms + gcpi_block_workspace(call->store, shape, call->target, 0));
    return job;
}
static size_t gcpi_sum_workspace(const gcp_cost_call *c, gcp_shape s, int sums)
{
    size_t width = (size_t)s.d[3] * (size_t)sums;
    return gcpi_block_workspace(c->store, s, c->target, 0) +
           gcpi_sum_blocks(gcpi_pixels(s), width) * width * sizeof(double);
}

static size_t gcpi_sum_first(const gcpi_sum_job *job, size_t block) { return job->pixels * block / job->blocks; }
static void gcpi_sum_task(void *arg, int index, int worker)
{
    const gcpi_sum_job *job = (const gcpi_sum_job *)arg;
    double *sums = job->partial + (size_t)index * job->width;
    const size_t first = gcpi_sum_first(job, (size_t)index), last = gcpi_sum_first(job, (size_t)index + 1),
                 step = gcpi_block_rows((size_t)job->channels, 0);
    memset(sums, 0, job->width * sizeof *sums);
    if (!job->rooms) job->fn(job->call, first, last, sums);
    for (size_t at = first, n; job->rooms && at < last; at += n) {
        gcpi_block_call b;
        n = GCPI_MIN(step, last - at);
        gcpi_block_open(&b, job->call, job->used, job->channels, at, n,
                        job->rooms + (size_t)worker * gcpi_block_room((size_t)job->channels, 0));
        job->fn(&b.call, 0, n, sums);
        gcpi_block_close(&b);
    }
}

/* Adds the blocks' sums into the first block's, and returns them: [sums][channels]. */
static double *gcpi_sum_total(const gcpi_sum_job *job)
{
    for (size_t b = 1; b < job->blocks; b++)
        for (size_t i = 0; i < job->width; i++) job->partial[i] += job->partial[b * job->width + i];
    return job->partial;
}
static double *gcpi_sums(const gcp_call *call, gcp_shape shape, int sums, gcpi_used used, gcpi_sum_fn fn)
{
    gcpi_sum_job job = gcpi_sum_job_of(call, shape, sums, used, fn, call->workspace);
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
static void gcpi_sum_written(void *arg, size_t pixel, size_t pixels, int first, int count, int worker)
{
    gcpi_sum_watch *e = (gcpi_sum_watch *)arg;
    for (size_t b = pixel * e->job.blocks / e->job.pixels, n; pixels; b++, pixel += n, pixels -= n) {
        size_t end = gcpi_sum_first(&e->job, b + 1);
        n = end > pixel ? GCPI_MIN(end - pixel, pixels) : 0;
        if (n && GCPI_TAKE(&e->left[b], n * (size_t)count) == 0) gcpi_sum_task(&e->job, (int)b, worker);
    }
    (void)first;
}

/* The sum of value, which is of i, over a row. Value i goes to lane i % GCPI_LANES, and lanes are added in order. */
enum { GCPI_LANES = 16 };
#define GCPI_ROW_SUM(sum, n, i, value)                                        \
    {                                                                         \
        double lane[GCPI_LANES] = { 0 };                                      \
        int lanes_from = 0;                                                   \
        for (; lanes_from + GCPI_LANES <= (n); lanes_from += GCPI_LANES)      \
            GCPI_EACH for (int k = 0; k < GCPI_LANES; k++) {                  \
                const int i = lanes_from + k;                                 \
                lane[k] += (value);                                           \
            }                                                                 \
        for (int k = 0; lanes_from < (n); lanes_from++, k++) {                \
            const int i = lanes_from;                                         \
            lane[k] += (value);                                               \
        }                                                                     \
        sum = 0;                                                              \
        for (int k = 0; k < GCPI_LANES; k++) sum += lane[k];                  \
    }

static void gcpi_store_sums(const gcp_view *to, const double *sums)
{
    gcp_real *d = (gcp_real *)to->data;
    for (size_t i = 0; i < gcpi_count(to->shape); i++) d[i] = (gcp_real)((to->accumulate ? (double)d[i] : 0) + sums[i]);
}

/* Distances of prefetches, in values. These passes do so much with each cache line that the hardware prefetches too
   late: they ask for whole pixels ahead, of one tensor that is only read (READ), or of each of several. */
enum { GCPI_AHEAD = 512, GCPI_AHEAD_READ = 2048 };
static ptrdiff_t gcpi_row_ahead(const gcp_view *v, int values)
{
    return v->data ? (values / v->pitch + 1) * v->pitch : 0;
}
/* Prefetches `count` elements, far ones ahead; 0: none. half: they are halves. */
GCPI_BODY void gcpi_elements_fetch(const void *p, ptrdiff_t far, ptrdiff_t count, const int half)
{
    if (far) gcpi_fetch((const gcp_real *)p, half ? far / 2 : far, half ? (count + 1) / 2 : count);
}

/* Sums take so many pixels at a time, and each channel adds them in order: the sums are loaded and stored less often. n
   is a literal: this number, or 1 at the end. */
enum { GCPI_SUM_PIXELS = 4 };

GCPI_BODY void gcpi_sum_dout_pixels(const gcp_call *c, size_t pixel, const int n, ptrdiff_t far, double *sums,
                                    const int half)
{
    const void *dy = gcpi_elements(&c->dout[0], pixel, 0).at;
    const ptrdiff_t pitch = c->dout[0].pitch;
    int width = c->dout[0].shape.d[3];
    for (int q = 0; q < n; q++) gcpi_elements_fetch(dy, far + q * pitch, width, half);
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) sum += (double)GCPI_AT(half, dy, i + q * pitch);
        sums[i] = sum;
    }
}
GCPI_BODY void gcpi_sum_dout_loop(const gcp_call *c, size_t first, size_t last, double *sums, const int half)
{
    const ptrdiff_t far = gcpi_row_ahead(&c->dout[0], GCPI_AHEAD_READ);
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS)
        gcpi_sum_dout_pixels(c, p, GCPI_SUM_PIXELS, far, sums, half);
    for (; p < last; p++) gcpi_sum_dout_pixels(c, p, 1, far, sums, half);
}
GCPI_BODY void gcpi_sum_dout_body(const gcp_call *c, size_t first, size_t last, double *sums, const int typed)
{
    if (typed && c->dout[0].dtype == GCP_DTYPE_BF16) gcpi_sum_dout_loop(c, first, last, sums, 1);
    else gcpi_sum_dout_loop(c, first, last, sums, 0);
}
GCPI_TYPED_SUM(gcpi_sum_dout)

static void gcpi_bias_gradient(const gcp_call *c, const gcp_view *db)
{
    static const gcpi_used used = { GCPI_USES_DOUT(0), 0, GCPI_TYPED_WIDE, 0 };
    if (db->data) gcpi_store_sums(db, gcpi_sums(c, c->dout[0].shape, 1, used, gcpi_sum_dout));
}

static int gcpi_bias_fits(gcp_shape_call *s, int channels)
{
    if (s->inputs > 2 && gcpi_count(s->in[2]) != (size_t)channels)
        return gcpi_refuse(s, "a bias of %zu values for %d outputs", gcpi_count(s->in[2]), channels);
    return gcpi_all_real(s);
}
static int gcpi_bias_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    if (gcpi_count(s->in[1]) != (size_t)s->in[0].d[3])
        return gcpi_refuse(s, "%zu values for the %d channels of %s", gcpi_count(s->in[1]), s->in[0].d[3],
                           GCPI_SHAPE_TEXT(s->in[0]));
    return gcpi_all_real(s);
}

GCPI_LOOP void gcpi_bias_rows(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_call *c = job->call;
    const gcp_real *bias = (const gcp_real *)c->in[1].data;
    const size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    for (size_t p = first; p < last; p++) {
        const gcp_real *from = gcpi_row(&c->in[0], p);
        gcp_real *to = gcpi_row_out(&c->out[0], p);
        for (int i = 0; i < c->out[0].shape.d[3]; i++) to[i] = from[i] + bias[i];
    }
    (void)worker;
}
static void gcpi_bias_forward(const gcp_call *c)
{
    gcpi_norm_rows(c, c->in[0].shape, NULL, gcpi_uses_forward, gcpi_bias_rows);
}
static void gcpi_bias_backward(const gcp_call *c)
{
    gcpi_bias_gradient(c, &c->din[1]);
    if (c->din[0].data) gcpi_view_copy(c, &c->din[0], &c->dout[0], c->din[0].accumulate);
}
static void gcpi_bias_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward && c->wanted & 2) cost->workspace = gcpi_sum_workspace(c, c->out[0], 1);
    else gcpi_rows_cost(c, cost);
}

static void gcpi_bias_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->shared = f->dense = f->early = f->floats = GCPI_IN(1);
}
static const gcpi_op_row gcpi_bias_row = {
    GCP_OP_BIAS,
    { "bias", gcpi_bias_shape, gcpi_bias_forward, gcpi_bias_backward, gcpi_bias_cost, 0, 0,
      GCPI_OVER | GCP_FLAG_BF16, 1, NULL },
    gcpi_bias_facts
};
GCPI_DEF gcp_tensor gcp_bias_at(gcp_tensor x, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_bias_row, x, b, o);
}
