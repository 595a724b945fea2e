/* A pass over all elements; copies of views. A pass calls a function on one contiguous span of up to four operands
   at a time. */

typedef struct gcpi_span {
    gcp_real *p[4];
    unsigned char *mask;
    size_t n, index;
    const gcp_call *call;
    int accumulate, half;              /* half: all operands are halves; only for a loop that is typed */
} gcpi_span;
typedef void (*gcpi_span_fn)(const gcpi_span *s);
GCPI_BODY void gcpi_copy_span_body(const gcpi_span *s)                          /* p: to, from */
{
    gcp_real *to = s->p[0];
    const gcp_real *from = s->p[1];
    if (s->accumulate && s->half)
        GCPI_EACH for (size_t i = 0; i < s->n; i++) GCPI_PUT(1, to, i, GCPI_AT(1, to, i) + GCPI_AT(1, from, i))
    else if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) to[i] += from[i];
    else if (to != from) memmove(to, from, s->n * (s->half ? sizeof(gcpi_half) : sizeof *to));
}
GCPI_WIDE_SPAN(gcpi_copy_span)

/* out: the operand that is made. halves: some lie in two bytes; typed: all do, and the loop takes
   them; moves: short rows are copied, or added to others. */
typedef struct gcpi_map_job {
    const gcp_call *call; gcpi_span_fn fn;
    gcp_view view[4]; unsigned char *mask; int out, dense, accumulate, halves, typed, moves;
    size_t pixels, chunk, width;
} gcpi_map_job;

/* An operand's elements from one on; .at NULL: there are none. Always inlined: passes over rows of a few values call
   it for each. */
GCPI_BODY gcpi_array gcpi_elements(const gcp_view *v, size_t pixel, int channel)
{
    gcpi_array d;
    d.at = v->data; d.half = v->dtype == GCP_DTYPE_BF16;
    return v->data ? gcpi_array_at(d, (ptrdiff_t)pixel * v->pitch + channel) : d;
}

/* Where some operands lie in two bytes: in pieces that stay in L1, in floats. What is made is rounded. */
enum { GCPI_PIECE = 512, GCPI_ROW_LONG = 64, GCPI_ROW_LONG_HALVES = 512 };
/* So many rows of n values, from a channel of a pixel on; s: of the pieces, with room for each operand. */
static void gcpi_map_piece(const gcpi_map_job *job, const gcpi_halves *h, gcpi_span *s, size_t pixel, size_t channel,
                           size_t rows, size_t n)
{
    const gcp_view *to = &job->view[job->out];
    s->n = rows * n; s->index = pixel * job->width + channel;
    for (int v = 0; v < 4; v++) {
        const gcp_view *from = &job->view[v];
        if (s->p[v] && (v != job->out || job->accumulate))
            gcpi_array_load(h, gcpi_elements(from, pixel, (int)channel), from->pitch, s->p[v], (ptrdiff_t)n,
                           (ptrdiff_t)rows, (ptrdiff_t)n);
    }
    job->fn(s);
    gcpi_array_store(h, gcpi_elements(to, pixel, (int)channel), to->pitch, s->p[job->out], (ptrdiff_t)n,
                    (ptrdiff_t)rows, (ptrdiff_t)n);
}
static void gcpi_map_pieces(const gcpi_map_job *job, size_t first, size_t last)
{
    const size_t most = GCPI_MAX((size_t)1, GCPI_PIECE / job->width), step = most < 8 ? most : most / 8 * 8;
    const gcpi_halves *h = gcpi_halves_of(job->call->target->isa);
    gcp_real room[4][GCPI_PIECE];
    gcpi_span s;
    memset(&s, 0, sizeof s);
    s.call = job->call; s.mask = job->mask; s.accumulate = job->accumulate;
    for (int v = 0; v < 4; v++) s.p[v] = job->view[v].data ? room[v] : NULL;
    for (size_t pixel = first, rows; pixel < last; pixel += rows) {
        rows = GCPI_MIN(step, last - pixel);
        for (size_t channel = 0, n; channel < job->width; channel += n) {
            n = GCPI_MIN((size_t)GCPI_PIECE, job->width - channel);
            gcpi_map_piece(job, h, &s, pixel, channel, rows, n);
        }
    }
}

/* Rows of so many bytes are moved. The last 16 of a row overlap those before. */
GCPI_FAST static void gcpi_rows_move(unsigned char *to, ptrdiff_t to_pitch, const unsigned char *from, ptrdiff_t pitch,
                                     size_t rows, size_t bytes)
{
    for (; rows > 0; rows--, to += to_pitch, from += pitch) {
        size_t i = 0;
        for (; i + 16 <= bytes; i += 16) memcpy(to + i, from + i, 16);
        if (bytes < 16) memcpy(to, from, bytes);
        else if (i < bytes) memcpy(to + bytes - 16, from + bytes - 16, 16);
    }
}
/* Short rows are copied. Or added: brought together, so that one loop adds many of them. */
static void gcpi_map_moves(const gcpi_map_job *job, size_t first, size_t last)
{
    unsigned char room[2][GCPI_PIECE * sizeof(gcp_real)];
    const size_t value = job->typed ? sizeof(gcpi_half) : sizeof(gcp_real), bytes = job->width * value;
    const ptrdiff_t to_pitch = job->view[0].pitch * (ptrdiff_t)value, pitch = job->view[1].pitch * (ptrdiff_t)value,
                    dense = (ptrdiff_t)bytes;
    gcpi_span s;
    memset(&s, 0, sizeof s);
    s.call = job->call; s.accumulate = 1; s.half = job->typed;
    s.p[0] = (gcp_real *)(void *)room[0]; s.p[1] = (gcp_real *)(void *)room[1];
    for (size_t pixel = first, rows; pixel < last; pixel += rows) {
        unsigned char *to = (unsigned char *)gcpi_elements(&job->view[0], pixel, 0).at;
        const unsigned char *from = (const unsigned char *)gcpi_elements(&job->view[1], pixel, 0).at;
        rows = job->accumulate ? GCPI_MIN(last - pixel, GCPI_PIECE / job->width) : last - pixel;
        gcpi_rows_move(job->accumulate ? room[1] : to, job->accumulate ? dense : to_pitch, from, pitch, rows, bytes);
        if (!job->accumulate) continue;
        if (to_pitch == dense) s.p[0] = (gcp_real *)(void *)to;
        else gcpi_rows_move(room[0], dense, to, to_pitch, rows, bytes);
        s.n = rows * job->width;
        job->fn(&s);
        if (to_pitch != dense) gcpi_rows_move(to, to_pitch, room[0], dense, rows, bytes);
    }
}

/* `step` pixels at a time; all operands are of one type, which is read once: rows may be a few values. */
static void gcpi_map_rows(const gcpi_map_job *job, size_t first, size_t last, size_t step)
{
    const int half = job->typed;
    gcpi_span s;
    s.call = job->call; s.mask = job->mask; s.accumulate = job->accumulate; s.n = step * job->width; s.half = half;
    for (size_t pixel = first; pixel < last; pixel += step) {
        s.index = pixel * job->width;
        for (int v = 0; v < 4; v++) {
            const gcpi_array d = { job->view[v].data, half };
            s.p[v] = d.at ? (gcp_real *)gcpi_array_at(d, (ptrdiff_t)pixel * job->view[v].pitch).at : NULL;
        }
        job->fn(&s);
    }
}

static void gcpi_map_pixels(const gcpi_map_job *job, size_t first, size_t last)
{
    if (job->moves) gcpi_map_moves(job, first, last);
    else if (job->halves && !job->typed) gcpi_map_pieces(job, first, last);
    else gcpi_map_rows(job, first, last, job->dense ? last - first : 1);
}
static void gcpi_map_task(void *arg, int index, int worker)
{
    const gcpi_map_job *job = (const gcpi_map_job *)arg;
    const size_t first = (size_t)index * job->chunk;
    gcpi_map_pixels(job, first, GCPI_MIN(first + job->chunk, job->pixels));
    (void)worker;
}

/* typed: the loop takes halves, too. */
static gcpi_map_job gcpi_map_job_of(const gcp_call *call, gcpi_span_fn fn, int typed, const gcp_view *const *views,
                                    int count, int out, unsigned char *mask, int accumulate)
{
    gcpi_map_job job;
    memset(&job, 0, sizeof job);
    job.call = call; job.fn = fn; job.mask = mask; job.dense = 1; job.out = out; job.accumulate = accumulate;
    job.pixels = gcpi_pixels(views[0]->shape);
    job.width = (size_t)views[0]->shape.d[3];
    job.typed = typed;
    for (int v = 0; v < count; v++) {
        job.view[v] = *views[v];
        if (!views[v]->data) continue;
        job.halves |= views[v]->dtype == GCP_DTYPE_BF16;
        job.typed &= views[v]->dtype == GCP_DTYPE_BF16;
        if (views[v]->data && views[v]->pitch != (ptrdiff_t)job.width) job.dense = 0;
    }
    /* a loop over so few values takes longer than to bring many rows of them together */
    job.moves = !job.dense && job.width < (job.typed ? GCPI_ROW_LONG_HALVES : GCPI_ROW_LONG) && fn == gcpi_copy_span &&
                (job.typed || !job.halves) && views[0]->data != views[1]->data;
    if (!job.dense && job.width < GCPI_ROW_LONG && fn != gcpi_copy_span) job.typed = 0;
    job.chunk = gcpi_task_rows(call->target, job.pixels, job.width);
    return job;
}
static void gcpi_map(const gcp_call *call, gcpi_span_fn fn, int typed, const gcp_view *const *views, int count, int out,
                     unsigned char *mask, int accumulate)
{
    gcpi_map_job job = gcpi_map_job_of(call, fn, typed, views, count, out, mask, accumulate);
    gcpi_parallel(call->target, (int)((job.pixels + job.chunk - 1) / job.chunk), gcpi_map_task, &job);
}

/* p: x, y */
static void gcpi_map_forward(const gcp_call *c, gcpi_span_fn fn, int typed)
{
    const gcp_view *v[2];
    v[0] = &c->in[0]; v[1] = &c->out[0];
    gcpi_map(c, fn, typed, v, 2, 1, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, 0);
}

/* p: dx, dy, x or NULL, y or NULL */
static void gcpi_map_backward(const gcp_call *c, gcpi_span_fn fn, int typed)
{
    const gcp_view *v[4];
    if (!c->din[0].data) return;
    v[0] = &c->din[0]; v[1] = &c->dout[0]; v[2] = &c->in[0]; v[3] = &c->out[0];
    gcpi_map(c, fn, typed, v, 4, 0, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, c->din[0].accumulate);
}

static int gcpi_view_same(const gcp_view *a, const gcp_view *b) { return a->data == b->data && a->pitch == b->pitch; }
static void gcpi_view_copy(const gcp_call *c, const gcp_view *to, const gcp_view *from, int accumulate)
{
    const gcp_view *v[2];
    if (gcpi_view_same(to, from) && !accumulate) return;
    v[0] = to; v[1] = from;
    gcpi_map(c, gcpi_copy_span, 1, v, 2, 0, NULL, accumulate);
}

/* n elements that lie side by side in both. */
static void gcpi_elements_copy(const gcp_call *c, gcpi_array to, gcpi_array from, size_t n, int accumulate)
{
    gcpi_map_job job;
    gcpi_span s;
    if (!accumulate && to.half == from.half) {
        memmove(to.at, from.at, n * (to.half ? sizeof(gcpi_half) : sizeof(gcp_real)));
        return;
    }
    memset(&job, 0, sizeof job);
    memset(&s, 0, sizeof s);
    s.call = job.call = c; s.accumulate = job.accumulate = accumulate; s.half = to.half; s.n = job.width = n;
    s.p[0] = (gcp_real *)to.at; s.p[1] = (gcp_real *)from.at;
    if (to.half == from.half) { gcpi_copy_span(&s); return; }
    job.fn = gcpi_copy_span;
    job.view[0].data = to.at; job.view[0].dtype = to.half ? GCP_DTYPE_BF16 : GCP_DTYPE_REAL;
    job.view[1].data = from.at; job.view[1].dtype = from.half ? GCP_DTYPE_BF16 : GCP_DTYPE_REAL;
    gcpi_map_pieces(&job, 0, 1);
}

static const gcp_real *gcpi_row(const gcp_view *v, size_t pixel)
{
    return (const gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch;
}
static gcp_real *gcpi_row_out(const gcp_view *v, size_t pixel)
{
    return (gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch;
}

static gcp_view gcpi_channels(const gcp_view *v, int first, int count)
{
    gcp_view part = *v;
    part.data = gcpi_elements(v, 0, first).at;
    part.shape.d[3] = count;
    return part;
}

static size_t gcpi_pixel(gcp_shape s, int n, int y, int x)
{
    return ((size_t)n * (size_t)s.d[1] + (size_t)y) * (size_t)s.d[2] + (size_t)x;
}

static void gcpi_zero_image(const gcp_view *v, int image)
{
    size_t per = (size_t)v->shape.d[1] * (size_t)v->shape.d[2], width = gcpi_row_bytes(v->dtype, (size_t)v->shape.d[3]);
    for (size_t p = 0; p < per; p++) memset(gcpi_elements(v, (size_t)image * per + p, 0).at, 0, width);
}
