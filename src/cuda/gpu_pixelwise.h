/* Rows: elementwise ops, bias, dropout, views. */

static gcp_view gcpi_no_view(void) { gcp_view v; memset(&v, 0, sizeof v); return v; }
static void gcpi_cuda_fn2(const gcp_call *c, gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b, double number)
{
    gcpi_cuda_map(fn, to, a, b, (float)number, 0, gcpi_stream(c));
}
static void gcpi_cuda_copy(const gcp_call *c, gcp_view to, gcp_view from)
{
    if (to.data == from.data && to.pitch == from.pitch && !to.accumulate) return;
    gcpi_cuda_fn2(c, GCPI_FN_COPY, to, from, gcpi_no_view(), 0);
}
static gcpi_cuda_rectifier gcpi_cuda_rectifier_of(const gcp_call *c)       /* NULL, or without attributes: none */
{
    const gcpi_rectifier r = gcpi_rectifier_of(c ? gcpi_attr(c->attributes) : NULL, c ? c->store : GCP_STORE_REAL);
    gcpi_cuda_rectifier there;
    there.low = (float)r.low; there.high = (float)r.high; there.last = (float)r.last;
    there.slope = (float)r.slope;
    there.least = (float)r.least; there.kink = (float)r.kink;
    there.rectify = c && c->attributes;
    return there;
}

/* The pointwise ops. forward: out = f(in); backward: din = g(dout, a saved value). */
#define GCPI_SAVED_X c->in[0]
#define GCPI_SAVED_Y c->out[0]
#define GCPI_SAVED_NOTHING gcpi_no_view()
static void gcpi_cuda_pointwise_map(const gcp_call *c, gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b)
{
    const double *numbers = gcpi_attr(c->attributes)->pointwise;
    if (to.data) gcpi_cuda_map(fn, to, a, b, (float)numbers[0], (float)numbers[1], gcpi_stream(c));
}
#define GCPI_CUDA_POINTWISE_CALLS(NAME, name, saved)                                           \
    static void gcpi_cuda_##name##_forward(const gcp_call *c)                                  \
    {                                                                                          \
        gcpi_cuda_pointwise_map(c, GCPI_FN_##NAME, c->out[0], c->in[0], gcpi_no_view());           \
    }                                                                                          \
    static void gcpi_cuda_##name##_backward(const gcp_call *c)                                 \
    {                                                                                          \
        gcpi_cuda_pointwise_map(c, GCPI_FN_##NAME##_BACK, c->din[0], c->dout[0], saved);           \
    }
#define GCPI_CUDA_PLAIN(NAME, name, reads, value, derivative) GCPI_CUDA_POINTWISE_CALLS(NAME, name, GCPI_SAVED_##reads)
#define GCPI_CUDA_NUMBERS(NAME, name, reads, ...) GCPI_CUDA_POINTWISE_CALLS(NAME, name, GCPI_SAVED_##reads)
GCPI_POINTWISE(GCPI_CUDA_PLAIN, GCPI_CUDA_NUMBERS, GCPI_CUDA_NUMBERS)
#define GCPI_CUDA_POINTWISE(NAME, name) GCPI_CUDA_ROW_OF(name, NULL),

static unsigned char *gcpi_mask_of(const gcp_call *c)
{
    return c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL;
}
static gcpi_cuda_apply gcpi_cuda_applied(const gcp_call *c, const gcp_view *norm) /* norm: mean, scale, gamma, beta */
{
    gcpi_cuda_apply a;
    memset(&a, 0, sizeof a);
    a.y = c->out[0]; a.x = c->in[0];
    a.settles = c->store == GCP_STORE_BF16;
    if (norm) {
        a.mean = (const float *)norm[0].data; a.scale = (const float *)norm[1].data;
        a.gamma = (const float *)norm[2].data; a.beta = (const float *)norm[3].data;
    }
    return a;
}
static void gcpi_cuda_rectified(const gcp_call *c, gcpi_cuda_apply a)
{
    a.rectifier = gcpi_cuda_rectifier_of(c); a.mask = gcpi_mask_of(c);
    gcpi_cuda_apply_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_rectify_forward(const gcp_call *c) { gcpi_cuda_rectified(c, gcpi_cuda_applied(c, NULL)); }
static void gcpi_cuda_apply_forward(const gcp_call *c)
{
    gcpi_cuda_apply a = gcpi_cuda_applied(c, c->in + 2);
    a.other = c->in[1];
    if (c->attributes) gcpi_cuda_rectified(c, a);
    else gcpi_cuda_apply_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_rectify_backward(const gcp_call *c)
{
    const gcpi_cuda_rectifier r = gcpi_cuda_rectifier_of(c);
    if (c->din[0].data)
        gcpi_cuda_rectify_back(c->din[0], c->dout[0], c->out[0], gcpi_mask_of(c), &r, gcpi_stream(c));
}

static void gcpi_cuda_add_forward(const gcp_call *c)
{
    gcpi_cuda_fn2(c, GCPI_FN_ADD, c->out[0], c->in[0], c->in[1], 0);
}
static void gcpi_cuda_add_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++) if (c->din[i].data) gcpi_cuda_copy(c, c->din[i], c->dout[0]);
}
/* side: 0 forward; 1, 2 the gradient of that operand */
static void gcpi_cuda_pair_side(const gcp_call *c, int side)
{
    const gcpi_pair_step *step = &gcpi_pair_steps[gcpi_attr(c->attributes)->pair.fn][side];
    gcp_view operand[3], *x[3];
    gcpi_cuda_pair p;
    operand[0] = side ? c->dout[0] : gcpi_no_view();
    operand[1] = c->in[0];
    operand[2] = c->inputs > 1 ? c->in[1] : gcpi_no_view();
    memset(&p, 0, sizeof p);
    p.loop = step->loop;
    p.p = (float)gcpi_attr(c->attributes)->pair.p;
    p.to = side ? c->din[side - 1] : c->out[0];
    p.out = c->out[0].shape;
    p.workspace = gcpi_same_shape(p.to.shape, p.out) ? NULL : c->workspace;
    x[0] = &p.x; x[1] = &p.y; x[2] = &p.z;
    for (int k = 0; k < 3; k++) *x[k] = operand[step->x[k]];
    if (step->loop == GCPI_LOOP_PRODUCT && !p.workspace && gcpi_same_shape(p.x.shape, p.y.shape))
        gcpi_cuda_fn2(c, GCPI_FN_MUL, p.to, p.x, p.y, 0);
    else gcpi_cuda_pair_run(&p, gcpi_stream(c));
}
static void gcpi_cuda_pair_forward(const gcp_call *c) { gcpi_cuda_pair_side(c, 0); }
/* input 1 first: input 0's gradient may overwrite dy; x * x keeps the order */
static void gcpi_cuda_pair_backward(const gcp_call *c)
{
    const int same = c->inputs > 1 && c->din[0].data == c->din[1].data;
    for (int k = 0; k < 2; k++) {
        const int i = same ? k : 1 - k;
        if (i < c->inputs && c->din[i].data) gcpi_cuda_pair_side(c, 1 + i);
    }
}
static void gcpi_cuda_pair_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    for (int i = 0; i < c->inputs && c->backward; i++)
        if (c->wanted >> i & 1 && !gcpi_same_shape(c->in[i], c->out[0]))
            cost->workspace = GCPI_MAX(cost->workspace, gcpi_cuda_pair_workspace(c->in[i], c->out[0]));
}

/* A sum goes to a dense place behind its workspace, as a pair's kernel asks for, and then to where it belongs. */
static void gcpi_cuda_sum_forward(const gcp_call *c)
{
    gcp_view dense = c->out[0];
    dense.pitch = dense.shape.d[3]; dense.dtype = GCP_DTYPE_REAL;
    dense.data = (char *)c->workspace + gcpi_cuda_pair_workspace(dense.shape, c->in[0].shape);
    gcpi_expand_call(c, &dense, &c->in[0], gcpi_cuda_pair_backward);
    gcpi_cuda_copy(c, c->out[0], dense);
}
static void gcpi_cuda_sum_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_expand_call(c, &c->dout[0], &c->din[0], gcpi_cuda_pair_forward);
}
static void gcpi_cuda_sum_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) return;
    cost->workspace = gcpi_cuda_pair_workspace(c->out[0], c->in[0]) + gcpi_count(c->out[0]) * sizeof(float);
}

static void gcpi_cuda_add_bias(const gcp_call *c, gcp_view y, gcp_view x, const gcp_view *bias)
{
    gcpi_cuda_fn2(c, GCPI_FN_ADD_CHANNEL, y, x, *bias, 0);
}
static void gcpi_cuda_bias_gradient(const gcp_call *c, int i)
{
    if (c->inputs > i && c->din[i].data) gcpi_cuda_bias_back(c->din[i], c->dout[0], c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_bias_forward(const gcp_call *c) { gcpi_cuda_add_bias(c, c->out[0], c->in[0], &c->in[1]); }
static void gcpi_cuda_bias_backward(const gcp_call *c)
{
    gcpi_cuda_bias_gradient(c, 1);
    if (c->din[0].data) gcpi_cuda_copy(c, c->din[0], c->dout[0]);
}
static void gcpi_cuda_bias_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward && c->wanted & 2) cost->workspace = gcpi_cuda_sums_workspace(c->out[0], 1);
}

static void gcpi_cuda_drop(const gcp_call *c, gcp_view to, gcp_view from)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_dropout(to, from, a->dropout.rate, a->dropout.per_sample, c->ordinal, c->numbers, gcpi_stream(c));
}
static void gcpi_cuda_dropout_forward(const gcp_call *c)
{
    if (c->training) gcpi_cuda_drop(c, c->out[0], c->in[0]);
    else gcpi_cuda_copy(c, c->out[0], c->in[0]);
}
static void gcpi_cuda_dropout_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_cuda_drop(c, c->din[0], c->dout[0]);
}

/* ---- Rows: views ---------------------------------------------------------------------------------------------*/

static void gcpi_cuda_concat_forward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3])
        gcpi_cuda_copy(c, gcpi_channels(&c->out[0], at, c->in[i].shape.d[3]), c->in[i]);
}
static void gcpi_cuda_concat_backward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3])
        if (c->din[i].data) gcpi_cuda_copy(c, c->din[i], gcpi_channels(&c->dout[0], at, c->in[i].shape.d[3]));
}
static void gcpi_cuda_slice_forward(const gcp_call *c)
{
    const int first = gcpi_attr(c->attributes)->slice.first;
    gcpi_cuda_copy(c, c->out[0], gcpi_channels(&c->in[0], first, c->out[0].shape.d[3]));
}
static void gcpi_cuda_slice_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (!c->din[0].accumulate) gcpi_cuda_fn2(c, GCPI_FN_FILL, c->din[0], gcpi_no_view(), gcpi_no_view(), 0);
    const int first = gcpi_attr(c->attributes)->slice.first;
    gcpi_cuda_copy(c, gcpi_channels(&c->din[0], first, c->dout[0].shape.d[3]), c->dout[0]);
}
static void gcpi_cuda_reshaped(const gcp_call *c, gcp_view to, gcp_view from)
{
    if (to.data && (to.data != from.data || to.accumulate)) gcpi_cuda_reshape(to, from, gcpi_stream(c));
}
static void gcpi_cuda_reshape_forward(const gcp_call *c) { gcpi_cuda_reshaped(c, c->out[0], c->in[0]); }
static void gcpi_cuda_reshape_backward(const gcp_call *c) { gcpi_cuda_reshaped(c, c->din[0], c->dout[0]); }

static void gcpi_cuda_moved_run(gcpi_moved *m)
{
    gcpi_cuda_moved there;
    there.to.at = m->to.at; there.to.half = m->to.half;
    there.from.at = m->from.at; there.from.half = m->from.half;
    there.accumulate = m->accumulate;
    memcpy(there.size, m->size, sizeof there.size);
    memcpy(there.ts, m->ts, sizeof there.ts);
    memcpy(there.fs, m->fs, sizeof there.fs);
    gcpi_cuda_move(&there, gcpi_stream(m->call));
}
static void gcpi_cuda_join_forward(const gcp_call *c) { gcpi_join_run(c, 0, gcpi_cuda_moved_run); }
static void gcpi_cuda_join_backward(const gcp_call *c) { gcpi_join_run(c, 1, gcpi_cuda_moved_run); }
static void gcpi_cuda_cut_forward(const gcp_call *c)
{
    gcpi_cut_run(c, &c->in[0], &c->out[0], 0, gcpi_cuda_moved_run);
}
static void gcpi_cuda_cut_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (!c->din[0].accumulate) gcpi_cuda_fn2(c, GCPI_FN_FILL, c->din[0], gcpi_no_view(), gcpi_no_view(), 0);
    gcpi_cut_run(c, &c->din[0], &c->dout[0], 1, gcpi_cuda_moved_run);
}
static void gcpi_cuda_transpose_forward(const gcp_call *c) { gcpi_transpose_run(c, 0, gcpi_cuda_moved_run); }
static void gcpi_cuda_transpose_backward(const gcp_call *c) { gcpi_transpose_run(c, 1, gcpi_cuda_moved_run); }

#define GCPI_CUDA_ADD GCPI_CUDA_ROW_OF(add, NULL)
#define GCPI_CUDA_JOIN GCPI_CUDA_ROW_OF(join, NULL)
#define GCPI_CUDA_CUT GCPI_CUDA_ROW_OF(cut, NULL)
#define GCPI_CUDA_PAD GCPI_CUDA_NO_ROW("pad")
#define GCPI_CUDA_SUM GCPI_CUDA_ROW_OF(sum, gcpi_cuda_sum_cost)
#define GCPI_CUDA_MAX GCPI_CUDA_NO_ROW("max")
#define GCPI_CUDA_TRANSPOSE GCPI_CUDA_ROW_OF(transpose, NULL)
#define GCPI_CUDA_PAIR GCPI_CUDA_ROW_OF(pair, gcpi_cuda_pair_cost)
#define GCPI_CUDA_BIAS GCPI_CUDA_ROW_OF(bias, gcpi_cuda_bias_cost)
#define GCPI_CUDA_RELU GCPI_CUDA_ROW_AS(relu, rectify, NULL)
#define GCPI_CUDA_LEAKY_RELU GCPI_CUDA_ROW_AS(leaky_relu, rectify, NULL)
#define GCPI_CUDA_RELU6 GCPI_CUDA_ROW_AS(relu6, rectify, NULL)
#define GCPI_CUDA_CLAMP GCPI_CUDA_ROW_AS(clamp, rectify, NULL)
#define GCPI_CUDA_APPLY GCPI_CUDA_ROW("apply", gcpi_cuda_apply_forward, NULL, NULL, 0)
#define GCPI_CUDA_DROPOUT GCPI_CUDA_ROW_OF(dropout, NULL)
#define GCPI_CUDA_CONCAT GCPI_CUDA_ROW_OF(concat, NULL)
#define GCPI_CUDA_SLICE GCPI_CUDA_ROW_OF(slice, NULL)
#define GCPI_CUDA_RESHAPE GCPI_CUDA_ROW_OF(reshape, NULL)
