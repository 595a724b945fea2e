/* Ops that go image by image. One task per image of the batch, so that scattered sums keep one order. Where operands
   lie in two bytes, and the op treats each channel alone, a task is some channels of an image, in floats: a worker's
   room holds that part of the input (or its gradient), of the output (or its gradient), and of the index. */

typedef void gcpi_image_fn(const gcp_call *call, int image);
typedef struct gcpi_image_job {
    const gcp_call *call; gcpi_image_fn *fn;
    int channels, parts;               /* of a part; parts of an image */
} gcpi_image_job;
static void gcpi_image_task(void *arg, int index, int worker)
{
    const gcpi_image_job *job = (const gcpi_image_job *)arg;
    job->fn(job->call, index);
    (void)worker;
}
static void gcpi_images(const gcp_call *c, int images, gcpi_image_fn *fn)
{
    gcpi_image_job job;
    memset(&job, 0, sizeof job);
    job.call = c; job.fn = fn;
    gcpi_parallel(c->target, images, gcpi_image_task, &job);
}

/* ---- parts in floats ---- */

enum { GCPI_PART_VALUES = 131072, GCPI_PART_CHANNELS = 16 };       /* about so many values; a multiple of so many */
static size_t gcpi_image_pixels(gcp_shape s) { return (size_t)s.d[1] * (size_t)s.d[2]; }
static int gcpi_part_channels(gcp_shape in, gcp_shape out)
{
    const size_t most = GCPI_PART_VALUES / (gcpi_image_pixels(in) + gcpi_image_pixels(out)), step = GCPI_PART_CHANNELS;
    return (int)GCPI_MIN((size_t)in.d[3], GCPI_MAX(most / step, (size_t)1) * step);
}
/* Bytes of a worker's room. */
static size_t gcpi_part_room(gcp_shape in, gcp_shape out)
{
    const size_t n = (size_t)gcpi_part_channels(in, out), x = gcpi_image_pixels(in) * n, y = gcpi_image_pixels(out) * n;
    return gcpi_round((x + y) * sizeof(gcp_real) + y, 64);
}
static void gcpi_parts_room(const gcp_cost_call *c, gcp_shape in, gcp_shape out, gcp_cost *cost)
{
    if (c->store) cost->workspace = gcpi_part_room(in, out) * (size_t)c->target->threads;
}
static void gcpi_parts_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_parts_room(c, c->in[0], c->out[0], cost); }

/* A call of one image and some channels. */
typedef struct gcpi_part_call {
    gcp_call call; gcpi_attributes attributes; gcp_view in, din, out[2], dout;
} gcpi_part_call;

static void gcpi_part_view(const gcp_view *from, int channels, void *room, gcp_view *to)
{
    *to = *from;
    to->shape.d[0] = 1; to->shape.d[3] = channels;
    if (!from->data) return;
    to->data = room;
    to->pitch = channels;
    if (from->dtype == GCP_DTYPE_BF16) to->dtype = GCP_DTYPE_REAL;
}
/* Copies the part of an operand, to the room or back; image: how many parts of as many pixels come before it. */
static void gcpi_part_move(const gcp_call *c, const gcp_view *whole, int image, int first, const gcp_view *part,
                           int back)
{
    const gcpi_halves *h = gcpi_halves_of(c->target->isa);
    const size_t pixels = gcpi_image_pixels(part->shape), n = (size_t)part->shape.d[3];
    if (!whole->data) return;
    if (whole->dtype == GCP_DTYPE_U8) {
        const size_t all = (size_t)whole->shape.d[3];
        unsigned char *there = (unsigned char *)whole->data + (size_t)image * pixels * all + first,
                      *here = (unsigned char *)part->data;
        for (size_t p = 0; p < pixels; p++, there += all, here += n)
            memcpy(back ? there : here, back ? here : there, n);
        return;
    }
    const gcpi_array at = gcpi_elements(whole, (size_t)image * pixels, first);
    gcp_real *here = (gcp_real *)part->data;
    if (back) gcpi_array_store(h, at, whole->pitch, here, (ptrdiff_t)n, (ptrdiff_t)pixels, (ptrdiff_t)n);
    else gcpi_array_load(h, at, whole->pitch, here, (ptrdiff_t)n, (ptrdiff_t)pixels, (ptrdiff_t)n);
}

/* The call of channels [first, first + count) of an image, in a worker's room: nothing is there yet. */
static void gcpi_part_open(gcpi_part_call *p, const gcp_call *c, int first, int count, int worker)
{
    const size_t room = gcpi_part_room(c->in[0].shape, c->out[0].shape);
    const int n = GCPI_MIN(count, c->in[0].shape.d[3] - first);
    gcp_real *x = (gcp_real *)(void *)((unsigned char *)c->workspace + (size_t)worker * room),
             *y = x + gcpi_image_pixels(c->in[0].shape) * (size_t)n,
             *which = y + gcpi_image_pixels(c->out[0].shape) * (size_t)n;
    p->call = *c;
    gcpi_part_view(&c->in[0], n, x, &p->in);
    gcpi_part_view(&c->din[0], n, x, &p->din);
    gcpi_part_view(&c->out[0], n, y, &p->out[0]);
    gcpi_part_view(&c->dout[0], n, y, &p->dout);
    if (c->outputs > 1) gcpi_part_view(&c->out[1], n, which, &p->out[1]);
    p->call.in = &p->in; p->call.din = &p->din; p->call.out = p->out; p->call.dout = &p->dout;
    p->attributes = *gcpi_attr(c->attributes);
    if (c->row != GCP_OP_RESIZE && c->row != GCP_OP_UPSAMPLE) p->attributes.conv.ci = p->attributes.conv.co = n;
    p->call.attributes = &p->attributes;
}

/* A whole image at once. */
static void gcpi_part_task(void *arg, int index, int worker)
{
    const gcpi_image_job *job = (const gcpi_image_job *)arg;
    const gcp_call *c = job->call;
    const int image = index / job->parts, first = index % job->parts * job->channels, back = c->din[0].data != NULL;
    gcpi_part_call p;
    gcpi_part_open(&p, c, first, job->channels, worker);
    if (back) gcpi_part_move(c, &c->dout[0], image, first, &p.dout, 0);
    else gcpi_part_move(c, &c->in[0], image, first, &p.in, 0);
    if (back && c->din[0].accumulate) gcpi_part_move(c, &c->din[0], image, first, &p.din, 0);
    job->fn(&p.call, 0);
    if (back) gcpi_part_move(c, &c->din[0], image, first, &p.din, 1);
    else gcpi_part_move(c, &c->out[0], image, first, &p.out[0], 1);
}
/* An op whose channels do not meet, and whose backward reads no value but the index. in, out: what a part holds of an
   image; task: what runs it. */
static void gcpi_image_parts(const gcp_call *c, gcp_shape in, gcp_shape out, gcpi_image_fn *fn,
                             void (*task)(void *arg, int index, int worker))
{
    const int halves = c->in[0].dtype == GCP_DTYPE_BF16 || c->out[0].dtype == GCP_DTYPE_BF16;
    gcpi_image_job job;
    job.call = c; job.fn = fn;
    job.channels = gcpi_part_channels(in, out);
    job.parts = (in.d[3] + job.channels - 1) / job.channels;
    if (!halves) gcpi_images(c, in.d[0], fn);
    else gcpi_parallel(c->target, in.d[0] * job.parts, task, &job);
}
