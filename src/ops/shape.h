/* Views: concat, slice, reshape, stop_gradient. Nothing is copied where output and input are the same bytes. */
static int gcpi_concat_shape(gcp_shape_call *s)
{
    long long channels = 0;
    for (int i = 0; i < s->inputs; i++) {
        gcp_shape want = s->in[0];
        want.d[3] = s->in[i].d[3];
        if (!gcpi_same_shape(want, s->in[i]))
            return gcpi_refuse(s, "%s beside %s", GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[i]));
        channels += s->in[i].d[3];
    }
    if (channels > INT32_MAX) return gcpi_refuse(s, "%lld channels", channels);
    s->out[0] = s->in[0];
    s->out[0].d[3] = (int)channels;
    return gcpi_all_real(s);
}
/* A pass over some pixels of all parts, then over the next: so many that each part is a stream, so few that the whole's
   stay in L2. */
enum { GCPI_PARTS_CHUNKS = 8 };
typedef struct gcpi_parts_job { gcpi_map_job part[GCP_MAX_INPUTS]; int count; size_t pixels, chunk; } gcpi_parts_job;
static void gcpi_parts_task(void *arg, int index, int worker)
{
    const gcpi_parts_job *job = (const gcpi_parts_job *)arg;
    const size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    for (int i = 0; i < job->count; i++) gcpi_map_pixels(&job->part[i], first, last);
    (void)worker;
}
/* Between the channels of `whole` and the parts, which hold them one after another; back: from it to them. */
static void gcpi_parts_copy(const gcp_call *c, const gcp_view *whole, const gcp_view *parts, int back)
{
    gcpi_parts_job job;
    job.count = 0; job.pixels = gcpi_pixels(whole->shape);
    job.chunk = gcpi_rows_of(GCPI_PARTS_CHUNKS * GCPI_CHUNK, (size_t)whole->shape.d[3]);
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3]) {
        const gcp_view there = gcpi_channels(whole, at, c->in[i].shape.d[3]), *v[2];
        const int adds = back && parts[i].accumulate;
        v[!back] = &parts[i]; v[back] = &there;
        if (!parts[i].data || (gcpi_view_same(v[0], v[1]) && !adds)) continue;
        job.part[job.count++] = gcpi_map_job_of(c, gcpi_copy_span, 1, v, 2, 0, NULL, adds);
    }
    if (job.count) gcpi_parallel(c->target, (int)((job.pixels + job.chunk - 1) / job.chunk), gcpi_parts_task, &job);
}
static void gcpi_concat_forward(const gcp_call *c) { gcpi_parts_copy(c, &c->out[0], c->in, 0); }
static void gcpi_concat_backward(const gcp_call *c) { gcpi_parts_copy(c, &c->dout[0], c->din, 1); }

static int gcpi_slice_shape(gcp_shape_call *s)
{
    int first = gcpi_attr(s->attributes)->slice.first, count = gcpi_attr(s->attributes)->slice.count;
    if (first < 0 || count < 1 || first > s->in[0].d[3] - count)
        return gcpi_refuse(s, "channels [%d, %d + %d) of %s", first, first, count, GCPI_SHAPE_TEXT(s->in[0]));
    s->out[0] = s->in[0];
    s->out[0].d[3] = count;
    return gcpi_all_real(s);
}
static void gcpi_slice_forward(const gcp_call *c)
{
    gcp_view part = gcpi_channels(&c->in[0], gcpi_attr(c->attributes)->slice.first, c->out[0].shape.d[3]);
    gcpi_view_copy(c, &c->out[0], &part, 0);
}
static void gcpi_slice_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    gcp_view part = gcpi_channels(&c->din[0], gcpi_attr(c->attributes)->slice.first, c->dout[0].shape.d[3]);
    if (!c->din[0].accumulate)
        for (int n = 0; n < c->din[0].shape.d[0]; n++) gcpi_zero_image(&c->din[0], n);
    gcpi_view_copy(c, &part, &c->dout[0], c->din[0].accumulate);
}

static int gcpi_reshape_shape(gcp_shape_call *s)
{
    s->out[0] = gcpi_attr(s->attributes)->shape;
    s->out_dtype[0] = s->in_dtype[0];
    if (gcpi_count(s->out[0]) != gcpi_count(s->in[0]))
        return gcpi_refuse(s, "%s into %s: %zu and %zu values", GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->out[0]),
                           gcpi_count(s->in[0]), gcpi_count(s->out[0]));
    return gcpi_all_real(s);
}
/* Row lengths differ: a run lies in one row of each. */
static void gcpi_reshape_copy(const gcp_call *c, const gcp_view *to, const gcp_view *from, int accumulate)
{
    size_t n = gcpi_count(to->shape), tw = (size_t)to->shape.d[3], fw = (size_t)from->shape.d[3], run;
    if (to->data == from->data && !accumulate) return;
    for (size_t i = 0; i < n; i += run) {
        run = GCPI_MIN(tw - i % tw, fw - i % fw);
        gcpi_elements_copy(c, gcpi_elements(to, i / tw, (int)(i % tw)), gcpi_elements(from, i / fw, (int)(i % fw)),
                           run, accumulate);
    }
}
static void gcpi_reshape_forward(const gcp_call *c) { gcpi_reshape_copy(c, &c->out[0], &c->in[0], 0); }
static void gcpi_reshape_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_reshape_copy(c, &c->din[0], &c->dout[0], c->din[0].accumulate);
}

static void gcpi_concat_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_list(c, op, "concat");
    gcpi_code_axis(c, op->attributes.axes.axis);
}
static void gcpi_reshape_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, "reshape", 0, 1);
    gcpi_say(c->w, ", ");
    gcpi_code_shape(c, op->attributes.shape);
}
static void gcpi_slice_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, "slice", 0, 1);
    gcpi_code_int(c, "first", op->attributes.slice.first, 0);
    gcpi_code_int(c, "count", op->attributes.slice.count, 0);
}

static void gcpi_concat_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->view = GCPI_VIEW_JOINED;
    f->call = gcpi_concat_call;
}
static void gcpi_reshape_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->view = GCPI_VIEW_WHOLE;
    if (!(op->row->flags & GCP_FLAG_NO_GRADIENT)) f->call = gcpi_reshape_call;
}
static void gcpi_slice_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_slice_call;
    f->view = GCPI_VIEW_PART;
    f->first = op->attributes.slice.first;
}
static const gcpi_op_row gcpi_concat_row = {
    GCP_OP_CONCAT,
    { "concat", gcpi_concat_shape, gcpi_concat_forward, gcpi_concat_backward, NULL, 0, 0,
      GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW | GCP_FLAG_SAMPLES_APART | GCP_FLAG_BF16, 1, NULL },
    gcpi_concat_facts
};
static const gcpi_op_row gcpi_slice_row = {
    GCP_OP_SLICE,
    { "slice", gcpi_slice_shape, gcpi_slice_forward, gcpi_slice_backward, NULL, 0, 0,
      GCP_FLAG_VIEW | GCPI_EACH_ONE | GCP_FLAG_BF16, 1, NULL },
    gcpi_slice_facts
};
static const gcpi_op_row gcpi_reshape_row = {
    GCP_OP_RESHAPE,
    { "reshape", gcpi_reshape_shape, gcpi_reshape_forward, gcpi_reshape_backward, NULL, 0, 0,
      GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW | GCP_FLAG_SAMPLES_APART | GCP_FLAG_BF16, 1, NULL },
    gcpi_reshape_facts
};

/* A reshape to the same shape, through which no gradient comes back. */
static const gcpi_op_row gcpi_stop_row = {
    GCP_OP_RESHAPE,
    { "stop_gradient", gcpi_reshape_shape, gcpi_reshape_forward, NULL, NULL, 0, 0,
      GCP_FLAG_VIEW | GCP_FLAG_NO_GRADIENT | GCPI_EACH_ONE | GCP_FLAG_BF16, 1, NULL },
    gcpi_reshape_facts
};
GCPI_DEF gcp_tensor gcp_stop_gradient_at(gcp_tensor x, gcp_op_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.shape = gcp_shape_of(x);
    return gcpi_simple(&gcpi_stop_row, &x, 1, &a, o.name, o.at);
}

static gcp_tensor gcpi_reshape(gcp_tensor x, gcp_shape raw, const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    char wrong[160];
    if (gcpi_shape_normal(raw, &a.shape)) return gcpi_simple(&gcpi_reshape_row, &x, 1, &a, named, at);
    if (gcpi_enter(x, at, "reshape"))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, "reshape", "its output %s", gcpi_shape_wrong(raw, wrong, sizeof wrong));
    return gcpi_nil(x.tape);
}
GCPI_DEF gcp_tensor gcp_reshape_at(gcp_tensor x, gcp_shape shape, gcp_op_opts o)
{
    return gcpi_reshape(x, shape, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_flatten_at(gcp_tensor x, gcp_op_opts o)
{
    const gcpi_tensor *e = gcpi_get(x);
    size_t per = e ? gcpi_count(e->shape) / (size_t)e->shape.d[0] : 1;
    gcp_shape s;
    memset(&s, 0, sizeof s);
    s.rank = 2;
    s.d[0] = e ? e->shape.d[0] : 1;
    s.d[1] = per <= INT32_MAX ? (int)per : 0;
    return gcpi_reshape(x, s, o.name, o.at);
}
