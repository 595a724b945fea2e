/* Batch-norm, addition and rectifier in one pass. It is a row of its own, GCP_ROW_APPLY. */

/* Batch-norm's values per channel, and the rectifier after it. */
typedef struct gcpi_norm_values {
    const gcp_real *mean, *scale, *gamma, *beta;
    gcpi_rectifier rectifier;
} gcpi_norm_values;
/* in: mean, scale, gamma, beta */
static gcpi_norm_values gcpi_norm_values_of(const gcp_view *in, const gcpi_attributes *rectifier, gcp_store store)
{
    gcpi_norm_values v;
    v.mean = (const gcp_real *)in[0].data; v.scale = (const gcp_real *)in[1].data;
    v.gamma = (const gcp_real *)in[2].data; v.beta = (const gcp_real *)in[3].data;
    v.rectifier = gcpi_rectifier_of(rectifier, store);
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
/* first, count: channels, all of them where there is a norm; far: how far ahead to prefetch x, other, y, 0: not at
   all */
typedef struct gcpi_apply_span { size_t pixel, pixels; int first, count; ptrdiff_t far[3]; } gcpi_apply_span;

GCPI_BODY void gcpi_apply_run(const gcpi_norm_values *v, const void *x, const void *other, void *y, int count,
                              const int norm, const int add, const int half)
{
    /* halves come without a slope: a bound is one of them, too */
    GCPI_LINES(half, count, y, to, i, k,
        gcp_real z = GCPI_AT(half, x, i);
        if (norm) z = GCPI_SETTLED(half, gcpi_norm_value(v, i, z));
        if (add) z = GCPI_SETTLED(half, z + GCPI_AT(half, other, i));
        GCPI_PUT_SETTLED(half, to, k, half ? gcpi_bounded(&v->rectifier, z) : gcpi_rectified(&v->rectifier, z)))
}

static int gcpi_dense_rows(const gcp_view *v, int width) { return !v->data || v->pitch == width; }

/* Several pixels go together, a multiple of 8, for whole bytes of a mask: where rows are dense, of those that depend on
   no channel about so many values, which stay in L1; of few channels so many, for which a channel's values are
   repeated. Halves fill vectors of a line: with other numbers of channels rows that lie apart are brought together. */
enum { GCPI_TOGETHER = 1024, GCPI_REPEATED = 512, GCPI_REPEATED_CHANNELS = 64 };
static size_t gcpi_pixels_together(int channels, size_t pixels, int dense, int norm, const int half)
{
    if (!norm) return dense ? (size_t)(GCPI_TOGETHER / channels + 8) / 8 * 8 : 1;
    if (channels > GCPI_REPEATED_CHANNELS || !(dense || (half && channels % GCPI_HALVES_LINE))) return 1;
    return GCPI_MIN((size_t)(GCPI_REPEATED / channels / 8 * 8), GCPI_MAX(pixels, (size_t)1));
}
/* Some channels of n pixels, side by side: where they lie, or brought to the room; and back from it. */
static int gcpi_lies_dense(const gcp_view *v, int channels, size_t n) { return n == 1 || gcpi_dense_rows(v, channels); }
GCPI_BODY void *gcpi_bring(const gcp_view *v, size_t pixel, size_t n, int first, int channels, gcp_real *room,
                           const int half)
{
    const ptrdiff_t value = half ? sizeof(gcpi_half) : sizeof(gcp_real);
    void *at = gcpi_elements(v, pixel, first).at;
    if (gcpi_lies_dense(v, channels, n)) return at;
    gcpi_rows_move((unsigned char *)room, channels * value, (const unsigned char *)at, v->pitch * value, n,
                   (size_t)(channels * value));
    return room;
}
GCPI_BODY void gcpi_bring_back(const gcp_view *v, size_t pixel, size_t n, int first, int channels, const void *from,
                               const int half)
{
    const ptrdiff_t value = half ? sizeof(gcpi_half) : sizeof(gcp_real);
    if (gcpi_lies_dense(v, channels, n)) return;
    gcpi_rows_move((unsigned char *)gcpi_elements(v, pixel, first).at, v->pitch * value, (const unsigned char *)from,
                   channels * value, n, (size_t)(channels * value));
}
/* The values of `width` channels, for so many pixels; room: GCPI_REPEATED values. */
static const gcp_real *gcpi_repeated(const gcp_real *values, int width, size_t pixels, gcp_real *room)
{
    for (size_t p = 0; values && pixels > 1 && p < pixels; p++)
        memcpy(room + p * (size_t)width, values, (size_t)width * sizeof *room);
    return pixels > 1 ? room : values;
}
static void gcpi_norm_repeat(gcpi_norm_values *v, int width, size_t pixels, gcp_real (*room)[GCPI_REPEATED])
{
    v->mean = gcpi_repeated(v->mean, width, pixels, room[0]);
    v->scale = gcpi_repeated(v->scale, width, pixels, room[1]);
    v->gamma = gcpi_repeated(v->gamma, width, pixels, room[2]);
    v->beta = gcpi_repeated(v->beta, width, pixels, room[3]);
}
GCPI_BODY void gcpi_apply_loop(const gcp_call *c, const gcpi_apply_span *s, const int norm, const int add,
                               const int half)
{
    const int masked = c->attributes && c->out[1].data, width = c->out[0].shape.d[3],
              dense = s->count == width && gcpi_dense_rows(&c->in[0], width) && gcpi_dense_rows(&c->in[1], width) &&
                      gcpi_dense_rows(&c->out[0], width);
    gcpi_norm_values v = gcpi_norm_values_of(c->in + 2, masked ? NULL : gcpi_attr(c->attributes), c->store);
    const size_t together = gcpi_pixels_together(s->count, s->pixels, dense, norm, half), end = s->pixel + s->pixels;
    gcp_real room[4][GCPI_REPEATED], side[3][GCPI_REPEATED];
    if (norm) gcpi_norm_repeat(&v, s->count, together, room);
    for (size_t p = s->pixel, n; p < end; p += n) {
        n = GCPI_MIN(together, end - p);
        const int count = s->count * (int)n;
        const void *x = gcpi_bring(&c->in[0], p, n, s->first, s->count, side[0], half),
                   *other = add ? gcpi_bring(&c->in[1], p, n, s->first, s->count, side[1], half) : x;
        void *y = gcpi_lies_dense(&c->out[0], s->count, n) ? gcpi_elements(&c->out[0], p, s->first).at : side[2];
        gcpi_elements_fetch(x, s->far[0], count, half);
        gcpi_elements_fetch(other, s->far[1], count, half);
        gcpi_elements_fetch(y, s->far[2], count, half);
        gcpi_apply_run(&v, x, other, y, count, norm, add, half);
        if (masked) {
            gcpi_span span = { { (gcp_real *)y, (gcp_real *)y }, (unsigned char *)c->out[1].data, (size_t)count,
                               p * (size_t)width + (size_t)s->first, c, 0, half };
            gcpi_rectify_span(&span);
        }
        gcpi_bring_back(&c->out[0], p, n, s->first, s->count, y, half);
    }
}
GCPI_BODY void gcpi_apply_pixels_body(const gcp_call *c, size_t pixel, size_t pixels, int first, int count, int ahead)
{
    gcpi_apply_span s = { pixel, pixels, first, count, { 0 } };
    const gcp_view *views[] = { &c->in[0], &c->in[1], &c->out[0] };
    for (int i = 0; i < 3; i++)
        s.far[i] = ahead && c->out[0].shape.d[3] >= GCPI_LINE ? gcpi_row_ahead(views[i], GCPI_AHEAD) : 0;
    const int half = c->out[0].dtype == GCP_DTYPE_BF16;
    if (c->in[2].data && c->in[1].data && half) gcpi_apply_loop(c, &s, 1, 1, 1);
    else if (c->in[2].data && half) gcpi_apply_loop(c, &s, 1, 0, 1);
    else if (c->in[1].data && half) gcpi_apply_loop(c, &s, 0, 1, 1);
    else if (half) gcpi_apply_loop(c, &s, 0, 0, 1);
    else if (c->in[2].data && c->in[1].data) gcpi_apply_loop(c, &s, 1, 1, 0);
    else if (c->in[2].data) gcpi_apply_loop(c, &s, 1, 0, 0);
    else if (c->in[1].data) gcpi_apply_loop(c, &s, 0, 1, 0);
    else gcpi_apply_loop(c, &s, 0, 0, 0);
}
GCPI_WIDE(gcpi_apply_pixels, (const gcp_call *c, size_t pixel, size_t pixels, int first, int count, int ahead),
          (c, pixel, pixels, first, count, ahead), c->target)
static void gcpi_apply_end(void *arg, size_t pixel, size_t pixels, int first, int count, int worker)
{
    gcpi_apply_pixels((const gcp_call *)arg, pixel, pixels, first, count, 0);
    (void)worker;
}
static void gcpi_apply_task(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    gcpi_apply_pixels(job->call, first, last - first, 0, job->call->in[0].shape.d[3], 1);
    (void)worker;
}
/* Where values are rounded: part by part, each rounded as if it were an op of its own; the last one is when it is
   stored. The call is a block's: it has its own bytes. */
static void gcpi_apply_part(const gcp_call *c, const gcp_view *x, int part, size_t pixels)
{
    gcp_call one = *c;
    gcp_view in[6], out[2];
    memset(in, 0, sizeof in);
    in[0] = *x; out[0] = out[1] = c->out[0];
    out[1].data = NULL;
    one.in = in; one.out = out; one.attributes = NULL;
    if (part == GCPI_PART_NORM) memcpy(in + 2, c->in + 2, 4 * sizeof *in);
    if (part == GCPI_PART_ADD) in[1] = c->in[1];
    if (part == GCPI_PART_RECTIFIER) { out[1] = c->out[1]; one.attributes = c->attributes; }
    gcpi_apply_pixels(&one, 0, pixels, 0, c->out[0].shape.d[3], 0);
}
static void gcpi_apply_rounded(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_call *c = job->call;
    const int parts[] = { GCPI_PART_NORM, GCPI_PART_ADD, GCPI_PART_RECTIFIER };
    const int there[] = { c->in[2].data != NULL, c->in[1].data != NULL, c->attributes != NULL };
    const gcp_view *x = &c->in[0];
    for (int i = 0; i < 3; i++) {
        if (!there[i]) continue;
        if (x != &c->in[0])
            gcpi_halves_of(c->target->isa)->settle((gcp_real *)c->out[0].data,
                                                   (ptrdiff_t)job->pixels * c->out[0].shape.d[3]);
        gcpi_apply_part(c, x, parts[i], job->pixels);
        x = &c->out[0];
    }
    (void)index; (void)worker;
}
static void gcpi_apply_forward(const gcp_call *c)
{
    static const gcpi_used used = { GCPI_USES_IN(0) | GCPI_USES_IN(1), GCPI_USES_OUT(0) | GCPI_USES_OUT(1), GCPI_TYPED,
                                     0 };
    /* of halves those with a slope go by blocks; several parts round in between, even where all are floats */
    const int parts = (c->in[2].data != NULL) + (c->in[1].data != NULL) + (c->attributes != NULL),
              halves = c->out[0].dtype == GCP_DTYPE_BF16,
              bent = c->attributes && gcpi_attr(c->attributes)->rectifier.slope != 0,
              blocks = c->store && (gcpi_by_blocks(c, used) || (halves ? bent : parts > 1));
    const gcpi_norm_job job = gcpi_norm_job_of(c, c->in[0].shape);
    gcpi_rows_run(&job, c->in[0].shape.d[3], used, blocks, blocks ? gcpi_apply_rounded : gcpi_apply_task);
}
static void gcpi_apply_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = gcpi_block_workspace(c->store, c->in[0], c->target, 1);
}

static const gcpi_op_row gcpi_apply_row = {
    GCP_ROW_APPLY, { "apply", NULL, gcpi_apply_forward, NULL, gcpi_apply_cost, 0, 0,
                      GCP_FLAG_IN_PLACE | GCP_FLAG_BF16, 2, NULL }, NULL
};
