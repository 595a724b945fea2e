/* Norms, softmax, and ops that reduce axes. */

/* The running mean and variance of the batch-norm that was recorded last are inputs 3 and 4 of its node. */
static void gcpi_onnx_statistics(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    gcp_tape *t = m->tape;
    int op = t->op_count - 1, next = 0;
    while (op > 0 && !gcpi_facts_of(&t->ops[op]).stats) op--;
    for (int i = 3; i < 5; i++) {
        if (m->weight_count == m->weight_capacity) {
            gcpi_fail(t, GCP_E_CAPACITY, m->at, m->call, "more than %d weights and constants", m->weight_capacity);
            return;
        }
        const gcpi_onnx_value *v = gcpi_onnx_in(m, n, i);
        gcpi_onnx_weight *w = &m->weights[m->weight_count++];
        w->source = v->source;
        w->order = v->order;
        w->tensor = gcpi_handle(t, t->edges[t->ops[op].in + 1 + next++]);
    }
}
/* A norm's running statistics lie below its name: that of the mean in the file, without the last part. NULL: it has
   none, or it is taken. */
static const char *gcpi_onnx_norm_name(const gcpi_onnx *m, const gcpi_onnx_value *mean, char *text, size_t size)
{
    const int parent = m->tape->segments[m->tape->open].name;
    size_t end = mean->name.size;
    while (end && mean->name.at[end - 1] != '.') end--;
    if (end < 2) return NULL;
    gcpi_onnx_plain_name(gcpi_excerpt_of(mean->name.at, end - 1), text, size);
    return gcpi_name_find(m->tape, parent, text, gcpi_name_hash(parent, text)) ? NULL : text;
}
/* The scale of a norm, which begins as ones where no file gives it. */
static gcp_tensor gcpi_onnx_ones(gcp_tensor scale)
{
    const gcpi_tensor *e = gcpi_get(scale);
    if (e && e->kind == GCPI_PARAMETER) scale.tape->parameters[e->parameter].init = GCP_INIT_ONES;
    return scale;
}
static int gcpi_onnx_batch_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *gamma = gcpi_onnx_in(m, n, 1), *beta = gcpi_onnx_in(m, n, 2);
    const char *layout = x->rank == 2 ? "0|||1" : x->rank == 3 ? "0||2|1" : "0|2|3|1";
    char name[200];
    GCPI_ONNX_OPTS(norm, o);
    const double momentum = 1 - gcpi_onnx_float(n, "momentum", 0.9);
    if (x->rank < 2 || x->rank > 4 || !beta || n->inputs < 5)
        return gcpi_onnx_refuse(m, n, "an input of %d axes; 2 to 4 are allowed", x->rank);
    for (int i = 3; i < 5; i++) {
        const int source = gcpi_onnx_in(m, n, i)->source;
        if (source < 0) return gcpi_onnx_refuse(m, n, "its mean or variance is not known before a step");
        if (gcpi_onnx_weight_of(m, source) || gcpi_onnx_in(m, n, 3) == gcpi_onnx_in(m, n, 4))
            return gcpi_onnx_refuse(m, n, "its mean or variance is another op's, too: it has one place in the file");
    }
    if (gcpi_onnx_integer(n, "spatial", 1) != 1) return gcpi_onnx_refuse(m, n, "spatial = 0");
    o.epsilon = gcpi_onnx_exactly(gcpi_onnx_float(n, "epsilon", 1e-5));
    o.frozen = m->frozen_norms;
    if (!o.frozen) o.momentum = gcpi_onnx_exactly(floor(momentum * 1e6 + 0.5) / 1e6); /* 0.9 as a float is not 0.9 */
    o.name = gcpi_onnx_norm_name(m, gcpi_onnx_in(m, n, 3), name, sizeof name);
    const gcp_tensor g = gcpi_onnx_ones(gcpi_onnx_channels(m, gamma)), b = gcpi_onnx_channels(m, beta),
                     y = gcp_batch_norm_op_at(gcpi_onnx_get(m, x, layout), g, b, o);
    if (gcp_is_nil(y)) return 0;
    gcpi_onnx_statistics(m, n);
    return gcpi_onnx_put_layout(m, n, 0, y, layout);
}
/* Layer norm, or rms, over the axes from `axis` on. beta NULL: none. */
static int gcpi_onnx_norm_of_rows(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *gamma,
                                  gcpi_onnx_value *beta, int axis, double epsilon, int rms)
{
    gcpi_onnx_order o;
    int trailing;
    GCPI_ONNX_OPTS(norm, opts);
    opts.epsilon = gcpi_onnx_exactly(epsilon);
    const gcp_tensor rows = gcpi_onnx_rows(m, x, axis, &o, &trailing),
                     g = gcpi_onnx_ones(gcpi_onnx_along_rows(m, gamma, axis, &o, trailing));
    gcp_tensor b = beta && !rms ? gcpi_onnx_along_rows(m, beta, axis, &o, trailing) : gcpi_nil(NULL);
    if (gcp_is_nil(g) || (beta && !rms && gcp_is_nil(b)))
        return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    if (!beta && !rms) b = gcpi_onnx_scaled(m, g, 0);
    return gcpi_onnx_put(m, n, 0, rms ? gcp_rms_norm_op_at(rows, g, opts) : gcp_layer_norm_op_at(rows, g, b, opts), &o);
}
static int gcpi_onnx_layer_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *gamma = gcpi_onnx_in(m, n, 1);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", -1), x->rank);
    for (int i = 1; i < n->outputs; i++)
        if (gcpi_onnx_out(m, n, i) && gcpi_onnx_out(m, n, i)->uses)
            return gcpi_onnx_refuse(m, n, "its mean or deviation is read");
    if (axis < 0 || !gamma || gamma->rank != x->rank - axis)
        return gcpi_onnx_refuse(m, n, "its axis, or a scale of other axes");
    return gcpi_onnx_norm_of_rows(m, n, x, gamma, gcpi_onnx_in(m, n, 2), axis, gcpi_onnx_float(n, "epsilon", 1e-5),
                                  gcpi_excerpt_is(n->op, "RMSNormalization"));
}
static int gcpi_onnx_group_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *gamma = gcpi_onnx_in(m, n, 1), *beta = gcpi_onnx_in(m, n, 2);
    const int each = gcpi_excerpt_is(n->op, "InstanceNormalization");
    GCPI_ONNX_OPTS(group_norm, o);
    if (x->rank < 3 || x->rank > 4 || !gamma || !beta)
        return gcpi_onnx_refuse(m, n, "an input of %d axes; 3 or 4 are allowed", x->rank);
    if (gamma->d[0] != x->d[1])
        return gcpi_onnx_refuse(m, n, "a scale for each group, as before opset 21; for each channel is allowed");
    o.groups = each ? x->d[1] : (int)gcpi_onnx_integer(n, "num_groups", 1);
    o.epsilon = gcpi_onnx_exactly(gcpi_onnx_float(n, "epsilon", 1e-5));
    const char *layout = gcpi_layout_image(x->rank);
    const gcp_tensor g = gcpi_onnx_ones(gcpi_onnx_channels(m, gamma)), b = gcpi_onnx_channels(m, beta);
    return gcpi_onnx_put_layout(m, n, 0, gcp_group_norm_op_at(gcpi_onnx_get(m, x, layout), g, b, o), layout);
}
/* Over one axis; before opset 13 over all from the axis on. */
static int gcpi_onnx_softmax(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value x = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0)), *in = gcpi_onnx_in(m, n, 0);
    const int old = m->opset < 13, axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", old ? 1 : -1), x.rank);
    const int logarithm = gcpi_excerpt_is(n->op, "LogSoftmax");
    int axes[GCPI_AXES], back[GCPI_AXES], trailing, last = 0;
    gcpi_onnx_order o;
    if (axis < 0) return gcpi_onnx_refuse(m, n, "its axis is not one of %d", x.rank);
    gcpi_onnx_bind(m, in);
    for (int i = 0; i < x.rank; i++)
        if (i != axis || old) axes[last++] = i;
    if (!old) axes[last] = axis;
    x = gcpi_onnx_copy(in);
    gcpi_onnx_turn(&x, axes);
    for (int i = 0; i < x.rank; i++) back[axes[i]] = i;
    const gcp_tensor rows = gcpi_onnx_rows(m, &x, old ? axis : x.rank - 1, &o, &trailing);
    gcpi_onnx_order_transpose(&o, back);
    return gcpi_onnx_put(
        m, n, 0, logarithm ? gcp_log_softmax_at(rows, gcpi_onnx_opts(m)) : gcp_softmax_at(rows, gcpi_onnx_opts(m)), &o);
}

/* ---- reductions ---- */

/* Factors of axes in `axes` are left out of an order. */
static void gcpi_onnx_order_drop(gcpi_onnx_order *o, int axes)
{
    for (int f = o->count - 1; f >= 0; f--)
        if (axes >> o->axis[f] & 1) gcpi_onnx_order_remove(o, f);
    for (int i = 0; i < o->rank; i++)
        if (axes >> i & 1) o->d[i] = 1;
}
static gcp_tensor gcpi_onnx_reduced_by(gcpi_onnx *m, gcp_tensor x, gcp_reduction by, const int *over)
{
    GCPI_ONNX_OPTS(reduce, o);
    o.by = by;
    o.samples = over[0];
    o.height = over[1];
    o.width = over[2];
    o.channels = over[3];
    return gcp_reduce_at(x, o);
}
static int gcpi_onnx_reduce(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 0), y;
    int has[GCPI_FACTORS], over[4] = { 0 }, any = 0;
    const int axes = gcpi_onnx_reduced(m, n, v->rank);
    const gcp_reduction by = gcpi_excerpt_is(n->op, "ReduceMean") ? GCP_REDUCE_MEAN
                           : gcpi_excerpt_is(n->op, "ReduceMax")  ? GCP_REDUCE_MAX
                                                                  : GCP_REDUCE_SUM;
    gcp_tensor x = gcpi_onnx_any(m, v);
    gcp_shape s;
    for (int j = 0; j < v->order.count; j++) has[j] = axes >> v->order.axis[v->order.memory[j]] & 1;
    if (!gcpi_onnx_groups(&v->order, has, gcp_shape_of(x), &s))
        return gcpi_onnx_refuse(m, n, "axes that lie in more than four parts");
    for (int j = 0, place = 0, left = 1; j < v->order.count; j++) {
        if (left == 1) {
            while (s.d[place] == 1) place++;
            left = s.d[place++];
        }
        left /= v->order.size[v->order.memory[j]];
        over[place - 1] |= has[j];
        any |= has[j];
    }
    y = gcpi_onnx_copy(v);
    y.source = -1;
    gcpi_onnx_order_drop(&y.order, axes);
    x = gcpi_onnx_reshape(m, x, s);
    if (gcpi_excerpt_is(n->op, "ReduceL2")) x = gcp_square_at(x, gcpi_onnx_opts(m));
    y.tensor = any ? gcpi_onnx_reduced_by(m, x, by, over) : x;
    if (gcpi_excerpt_is(n->op, "ReduceL2")) y.tensor = gcp_sqrt_at(y.tensor, gcpi_onnx_opts(m));
    return gcpi_onnx_put_value(m, n, 0, &y);
}
