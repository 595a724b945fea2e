/* The head: the last layer, given another number of outputs (.classes). Its weight and bias keep their names and places
   in the file; their elements are made anew, and the file is saved with the sizes that they have then. */

/* Ops between a network's last layer and its output, which any number of classes passes. */
static int gcpi_onnx_behind_head(const gcpi_onnx_node *n)
{
    static const char *const ops[] = { "Softmax",  "LogSoftmax", "Sigmoid", "Relu",    "Flatten",           "Reshape",
                                       "Squeeze",  "Unsqueeze",  "Cast",    "Dropout", "GlobalAveragePool", "Clip",
                                       "Identity", "ReduceMean", "Add",     "Mul",     "AveragePool" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (gcpi_excerpt_is(n->op, ops[i])) return !n->foreign;
    return 0;
}
/* The initialiser that a node reads there; NULL: it reads none. */
static gcpi_onnx_data *gcpi_onnx_initializer(gcpi_onnx *m, const gcpi_onnx_node *n, int input)
{
    const gcpi_onnx_value *v = gcpi_onnx_in(m, n, input);
    return v && v->data >= 0 && v->data < m->initializers ? &m->data[v->data] : NULL;
}
static const gcpi_onnx_value *gcpi_onnx_value_of(const gcpi_onnx *m, const gcpi_onnx_data *d)
{
    return &m->values[gcpi_onnx_find(m, d->name)];
}
/* The last node with a weight, on the way back from a value; what is added on that way may be its bias. */
static gcpi_onnx_node *gcpi_onnx_head_node(gcpi_onnx *m, int value, gcpi_onnx_data **bias)
{
    const gcpi_onnx_value *v = &m->values[value];
    *bias = NULL;
    while (v && v->node >= 0) {
        gcpi_onnx_node *n = &m->nodes[v->node];
        const int conv = gcpi_excerpt_is(n->op, "Conv"), gemm = gcpi_excerpt_is(n->op, "Gemm");
        if ((conv || gemm || gcpi_excerpt_is(n->op, "MatMul")) && !n->foreign && gcpi_onnx_initializer(m, n, 1)) {
            if (conv || gemm) *bias = gcpi_onnx_initializer(m, n, 2);
            return n;
        }
        if (!gcpi_onnx_behind_head(n)) return NULL;
        const int added = gcpi_excerpt_is(n->op, "Add"), first = added && gcpi_onnx_initializer(m, n, 0);
        if (added) *bias = gcpi_onnx_initializer(m, n, !first);
        v = gcpi_onnx_in(m, n, first);
    }
    return NULL;
}
/* Whether what is behind a value takes any number of classes, up to the outputs; a file whose .until lies before its
   head does not. */
static int gcpi_onnx_ends(gcpi_onnx *m, int value, int depth)
{
    int ends = depth > 0;
    for (int i = 0; i < m->node_count && ends; i++)
        for (int k = 0; k < m->nodes[i].inputs && ends; k++)
            if (m->edges[m->nodes[i].input + k] == value)
                ends = gcpi_onnx_behind_head(&m->nodes[i]) && m->nodes[i].outputs &&
                       gcpi_onnx_ends(m, m->edges[m->nodes[i].output], depth - 1);
    return ends;
}
/* The size of an axis becomes `classes`. What was is kept for the next recording. */
static int gcpi_onnx_head_resize(gcpi_onnx *m, gcpi_onnx_data *d, int axis, int classes)
{
    const size_t rest = d->count / (size_t)d->d[axis];
    if (rest > (size_t)INT32_MAX / (size_t)classes) return 0;
    m->head[m->head_count] = (int)(d - m->data);
    m->head_was[m->head_count++] = *d;
    d->d[axis] = classes;
    d->count = rest * (size_t)classes;
    d->fresh = 1;
    return 1;
}
static void gcpi_onnx_head_restore(gcpi_onnx *m)
{
    while (m->head_count) {
        m->head_count--;
        m->data[m->head[m->head_count]] = m->head_was[m->head_count];
    }
}
/* A head of so many classes as there are stays. 0: there is none that could be changed. */
static int gcpi_onnx_head_set(gcpi_onnx *m, int output, int classes)
{
    gcpi_onnx_data *bias, *weight;
    const gcpi_onnx_node *n = gcpi_onnx_head_node(m, output, &bias);
    if (!n || !gcpi_onnx_ends(m, output, 8)) return 0;
    weight = gcpi_onnx_initializer(m, n, 1);
    const int first = gcpi_excerpt_is(n->op, "Conv") || gcpi_onnx_integer(n, "transB", 0),
              axis = first ? 0 : weight->rank - 1;
    if (weight->rank < 2 || !weight->count || gcpi_onnx_integer(n, "group", 1) != 1) return 0;
    if (weight->d[axis] == classes) return 1;
    if (bias && (bias->rank < 1 || bias->d[bias->rank - 1] != weight->d[axis])) return 0;
    if (gcpi_onnx_readers(m, gcpi_onnx_value_of(m, weight)) != 1 ||
        (bias && gcpi_onnx_readers(m, gcpi_onnx_value_of(m, bias)) != 1))
        return 0;
    return (!bias || gcpi_onnx_head_resize(m, bias, bias->rank - 1, classes)) &&
           gcpi_onnx_head_resize(m, weight, axis, classes);
}
static int gcpi_onnx_head_fail(gcpi_onnx *m, int classes)
{
    gcpi_fail(m->tape, GCP_E_ARGUMENT, m->at, m->call,
              ".classes = %d: behind the last layer that has a weight there is an op that tells its outputs apart, or "
              "that weight is read twice: put a layer of yours behind .until",
              classes);
    return 0;
}
/* Whether an axis of the output has the new size: a Reshape of a fixed size may have made samples of classes. */
static int gcpi_onnx_head_shows(gcpi_onnx *m, const gcpi_onnx_value *output)
{
    int shows = 0;
    for (int i = 0; i < output->rank; i++) shows |= output->d[i] == m->classes;
    const int one = m->classes == 1 && m->batch && gcpi_onnx_elements(output) % m->batch == 0 &&
                    gcpi_onnx_elements(output) / m->batch > 1 && output->rank <= 2;
    return (shows && !one) || gcpi_onnx_head_fail(m, m->classes);
}
/* .classes of a recording; 0 leaves the file's. */
static int gcpi_onnx_head_record(gcpi_onnx *m, int output, int classes)
{
    gcpi_onnx_head_restore(m);
    if (!classes || gcpi_onnx_head_set(m, output, classes)) return 1;
    gcpi_onnx_head_restore(m);
    return gcpi_onnx_head_fail(m, classes);
}
