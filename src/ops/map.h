/* A pass over all elements; copies of views. A pass calls a function on one contiguous span of up to four operands
   at a time. */

/* A task starts at a multiple of 8 pixels,
   so that no two tasks share a byte of a bit mask. */
typedef struct gcpi_span {
    gcp_real *p[4];
    unsigned char *mask;
    size_t n, index;
    const gcp_call *call;
    int accumulate;
} gcpi_span;
typedef void (*gcpi_span_fn)(const gcpi_span *s);
GCPI_BODY void gcpi_copy_span_body(const gcpi_span *s)                          /* p: to, from */
{
    gcp_real *to = s->p[0];
    const gcp_real *from = s->p[1];
    if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) to[i] += from[i];
    else if (to != from) memmove(to, from, s->n * sizeof *to);
}
GCPI_WIDE_SPAN(gcpi_copy_span)

/* out: the operand that is made. halves: some lie in two bytes; moved: both of a copy do. */
typedef struct gcpi_map_job {
    const gcp_call *call; gcpi_span_fn fn;
    gcp_view view[4]; unsigned char *mask; int out, dense, accumulate, halves, moved;
    size_t pixels, chunk, width;
} gcpi_map_job;

/* An operand's elements from one on; .at NULL: there are none. */
static gcpi_data gcpi_elements(const gcp_view *v, size_t pixel, int channel)
{
    gcpi_data d;
    d.at = v->data; d.half = v->dtype == GCP_DTYPE_BF16;
    return v->data ? gcpi_data_at(d, (ptrdiff_t)pixel * v->pitch + channel) : d;
}

/* A span of which some operands lie in two bytes: in pieces that stay in L1, in floats. What is made is rounded. */
enum { GCPI_PIECE = 1024 };
static void gcpi_map_pieces(const gcpi_map_job *job, const gcpi_span *whole, const gcpi_data *d)
{
    const gcpi_halves *h = gcpi_halves_of(job->call->target->isa);
    gcp_real room[4][GCPI_PIECE];
    gcpi_span s = *whole;
    for (size_t first = 0; first < whole->n; first += s.n) {
        s.n = GCPI_MIN((size_t)GCPI_PIECE, whole->n - first);
        s.index = whole->index + first;
        for (int v = 0; v < 4; v++) {
            gcpi_data from = d[v].at ? gcpi_data_at(d[v], (ptrdiff_t)first) : d[v];
            s.p[v] = from.half && from.at ? room[v] : (gcp_real *)from.at;
            if (from.half && from.at && (v != job->out || job->accumulate))
                h->widen(room[v], 0, (const gcpi_half *)from.at, 0, 1, (ptrdiff_t)s.n);
        }
        job->fn(&s);
        if (!d[job->out].half) continue;
        h->narrow((gcpi_half *)d[job->out].at + first, 0, s.p[job->out], 0, 1, (ptrdiff_t)s.n);
    }
}

static void gcpi_map_task(void *arg, int index, int worker)
{
    const gcpi_map_job *job = (const gcpi_map_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    size_t step = job->dense ? last - first : 1;
    gcpi_span s;
    s.call = job->call; s.mask = job->mask; s.accumulate = job->accumulate; s.n = step * job->width;
    for (size_t pixel = first; pixel < last; pixel += step) {
        gcpi_data d[4];
        s.index = pixel * job->width;
        for (int v = 0; v < 4; v++) {
            d[v] = gcpi_elements(&job->view[v], pixel, 0);
            s.p[v] = (gcp_real *)d[v].at;
        }
        if (job->moved) memmove(d[0].at, d[1].at, s.n * sizeof(gcpi_half));
        else if (job->halves) gcpi_map_pieces(job, &s, d);
        else job->fn(&s);
    }
    (void)worker;
}

static void gcpi_map(const gcp_call *call, gcpi_span_fn fn, const gcp_view *const *views, int count, int out,
                     unsigned char *mask, int accumulate)
{
    gcpi_map_job job;
    memset(&job, 0, sizeof job);
    job.call = call; job.fn = fn; job.mask = mask; job.dense = 1; job.out = out; job.accumulate = accumulate;
    job.pixels = gcpi_pixels(views[0]->shape);
    job.width = (size_t)views[0]->shape.d[3];
    job.moved = fn == gcpi_copy_span && !accumulate;
    for (int v = 0; v < count; v++) {
        job.view[v] = *views[v];
        job.halves |= views[v]->dtype == GCP_DTYPE_BF16;
        job.moved &= views[v]->dtype == GCP_DTYPE_BF16;
        if (views[v]->data && views[v]->pitch != (ptrdiff_t)job.width) job.dense = 0;
    }
    job.chunk = (GCPI_MAX((size_t)1, GCPI_CHUNK / job.width) + 7) / 8 * 8;
    gcpi_parallel(call->target, (int)((job.pixels + job.chunk - 1) / job.chunk), gcpi_map_task, &job);
}

static void gcpi_map_forward(const gcp_call *c, gcpi_span_fn fn)          /* p: x, y */
{
    const gcp_view *v[2];
    v[0] = &c->in[0]; v[1] = &c->out[0];
    gcpi_map(c, fn, v, 2, 1, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, 0);
}

static void gcpi_map_backward(const gcp_call *c, gcpi_span_fn fn)         /* p: dx, dy, x or NULL, y or NULL */
{
    const gcp_view *v[4];
    if (!c->din[0].data) return;
    v[0] = &c->din[0]; v[1] = &c->dout[0]; v[2] = &c->in[0]; v[3] = &c->out[0];
    gcpi_map(c, fn, v, 4, 0, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, c->din[0].accumulate);
}

static void gcpi_view_copy(const gcp_call *c, const gcp_view *to, const gcp_view *from, int accumulate)
{
    const gcp_view *v[2];
    if (to->data == from->data && to->pitch == from->pitch && !accumulate) return;
    v[0] = to; v[1] = from;
    gcpi_map(c, gcpi_copy_span, v, 2, 0, NULL, accumulate);
}

/* n elements that lie side by side in both. */
static void gcpi_elements_copy(const gcp_call *c, gcpi_data to, gcpi_data from, size_t n, int accumulate)
{
    const gcpi_data d[4] = { to, from, { NULL, 0 }, { NULL, 0 } };
    gcpi_map_job job;
    gcpi_span s;
    if (!accumulate && to.half == from.half) {
        memmove(to.at, from.at, n * (to.half ? sizeof(gcpi_half) : sizeof(gcp_real)));
        return;
    }
    memset(&job, 0, sizeof job);
    memset(&s, 0, sizeof s);
    job.call = s.call = c; job.fn = gcpi_copy_span;
    job.accumulate = s.accumulate = accumulate;
    s.n = n;
    gcpi_map_pieces(&job, &s, d);
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
