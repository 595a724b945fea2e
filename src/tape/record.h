/* Segments and ops, as they are recorded. Nothing is computed here. */

GCPI_DEF int gcp_segment_begin(gcp_tape *t, const char *label, gcp_segment_opts o)
{
    if (!t || t->code) return 0;
    if (t->segment_count == t->segment_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, o.at, "segment", "the tape's %d segments are full (.segments)",
                  t->segment_capacity - 1);
        return 0;
    }
    if (o.keep >= 2 * GCP_KEEP_CUSTOM) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "segment", ".keep = %u; a sum of GCP_KEEP_... classes", o.keep);
        return 0;
    }
    int name = gcpi_name_new(t, t->segments[t->open].name, label, NULL, o.at);
    if (!name) return 0;
    gcpi_segment *s = &t->segments[t->segment_count];
    memset(s, 0, sizeof *s);
    const gcpi_segment *around = &t->segments[t->open];
    s->parent = t->open; s->name = name; s->at = o.at; s->open = 1;
    s->outer = t->open ? around->outer : t->segment_count;
    s->keep = o.keep | around->keep; s->named = o.keep_named;
    s->depth = around->depth + 1;
    s->ops = t->op_count;                         /* the segment's first op */
    gcpi_recorded(t);
    return t->open = t->segment_count++;
}

static void gcpi_segment_error(gcp_tape *t, int segment, const char *text)
{
    char name[128], what[160];
    gcpi_name_text(t, t->segments[segment].name, name, sizeof name);
    snprintf(what, sizeof what, "segment '%s'", name);
    gcpi_fail(t, GCP_E_SEGMENT, t->segments[segment].at, what, "%s", text);
}

/* Closes every open segment inside `segment` (0: all), with an error: a return or goto left it. */
static void gcpi_segments_close(gcp_tape *t, int segment)
{
    while (t->open > segment) {
        gcpi_segment *s = &t->segments[t->open];
        if (t->open != segment) gcpi_segment_error(t, t->open, "a return or goto left its block");
        s->open = 0;
        t->open = s->parent;
    }
}

/* The op's path behind that of the segment. */
static const char *gcpi_path_in(const gcp_tape *t, const gcpi_op *op, int segment, char *buffer, size_t size)
{
    const int outer = gcpi_name_text(t, t->segments[segment].name, buffer, size),
              whole = gcpi_name_text(t, op->name, buffer, size);
    return buffer + GCPI_MIN(outer + (outer > 0), whole);
}
static int gcpi_kept_by_name(const gcp_tape *t, const gcpi_op *op)
{
    char path[256];
    int kept = 0;
    for (int s = op->segment; s > 0 && !kept; s = t->segments[s].parent)
        kept = t->segments[s].named &&
               gcpi_patterns_fit(t->segments[s].named, gcpi_path_in(t, op, s, path, sizeof path));
    return kept;
}
/* What is wrong with patterns of the ops of a segment (0: all ops); NULL: nothing, each fits one. */
static const char *gcpi_op_patterns_wrong(const gcp_tape *t, int segment, const char *text, char *wrong, size_t size)
{
    char path[256];
    int words = 0;
    do
        for (gcpi_word w; (w = gcpi_word_next(&text)).length > 0; words++) {
            int fits = 0;
            for (int o = segment ? t->segments[segment].ops : 0; o < t->op_count && !fits; o++)
                fits = gcpi_pattern_fits(w, gcpi_path_in(t, &t->ops[o], segment, path, sizeof path));
            snprintf(wrong, size, "'%.*s' fits no op (its whole path, as block[0]/* does)",
                     (int)GCPI_MIN(w.length, 120u), w.at);
            if (!fits) return wrong;
        }
    while (gcpi_line_next(&text));
    return words ? NULL : "no pattern";
}
static void gcpi_segment_named_ok(gcp_tape *t, int segment)
{
    gcpi_segment *s = &t->segments[segment];
    char word[200], text[220];
    const char *wrong =
        s->named && !t->code ? gcpi_op_patterns_wrong(t, segment, s->named, word, sizeof word) : NULL;
    snprintf(text, sizeof text, ".keep_named: %s", wrong ? wrong : "");
    if (wrong) gcpi_segment_error(t, segment, text);
    s->named = NULL;
}

GCPI_DEF void gcp_segment_end(gcp_tape *t, int segment, int *state)
{
    int left = *state == 1;                       /* a break: the loop of GCP_SEGMENT did not end by itself */
    *state = 0;
    if (!t || !segment) return;
    if (segment >= t->segment_count || !t->segments[segment].open) return;
    gcpi_segments_close(t, segment);
    if (t->open == segment) {
        gcpi_segment *s = &t->segments[segment];
        if (left) gcpi_segment_error(t, segment, "a break left its block");
        else if (s->ops == t->op_count && !t->code) gcpi_segment_error(t, segment, "its block recorded no op");
        gcpi_segment_named_ok(t, segment);
        s->open = 0;
        t->open = s->parent;
    }
}

/* Whether the tape has room for an op; if not, its error is set. */
static int gcpi_op_room(gcp_tape *t, const gcp_op *row, int inputs, int outputs, gcp_at at)
{
    if (t->full_ops) t->full_ops++;
    if (t->code) return 0;
    if (t->op_count == t->op_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, "tape", "full");
        t->full_at = at;
        t->full_ops = t->op_capacity + 1;
        return 0;
    }
    if (inputs > GCP_MAX_INPUTS || outputs < 1 || outputs > GCP_MAX_OUTPUTS) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, row->name, "%d inputs and %d outputs; at most %d and 1 to %d", inputs, outputs,
                  GCP_MAX_INPUTS, GCP_MAX_OUTPUTS);
        return 0;
    }
    if (inputs > t->edge_capacity - t->edge_count) {
        gcpi_fail(t, GCP_E_CAPACITY, at, row->name, "the tape's %d inputs of ops are full (.ops)", t->edge_capacity);
        return 0;
    }
    return 1;
}

/* The message of a rule that gave none. */
static void gcpi_shapes_refused(gcp_shape_call *c)
{
    int n = snprintf(c->message, c->message_size, "its shape rule refused ");
    for (int i = 0; i < c->inputs && n > 0 && n < (int)c->message_size; i++) {
        char shape[64];
        n += snprintf(c->message + n, c->message_size - (size_t)n, "%s%s", i ? ", " : "",
                      gcpi_shape_text(c->in[i], shape, sizeof shape));
    }
}
static int gcpi_op_shapes(gcp_tape *t, const gcpi_op *op, gcp_shape *out, gcp_dtype *out_type)
{
    gcp_shape in[GCP_MAX_INPUTS];
    gcp_dtype type[GCP_MAX_INPUTS];
    char message[200];
    gcp_shape_call call;
    for (int i = 0; i < op->inputs; i++) {
        int id = t->edges[op->in + i];
        in[i] = t->tensors[id].shape;
        type[i] = t->tensors[id].dtype;
    }
    memset(out, 0, (size_t)op->outputs * sizeof *out);
    for (int j = 0; j < op->outputs; j++) out_type[j] = GCP_DTYPE_REAL;
    message[0] = 0;
    call.attributes = op->context ? op->context : (const void *)&op->attributes;
    call.in = in; call.in_dtype = type; call.inputs = op->inputs;
    call.out = out; call.out_dtype = out_type; call.outputs = op->outputs;
    call.message = message; call.message_size = sizeof message; call.code = GCP_E_SHAPE;
    if (!op->row->shape(&call)) {
        if (!message[0]) gcpi_shapes_refused(&call);
        gcpi_fail(t, call.code, op->at, op->row->name, "%s", message);
        return 0;
    }
    for (int j = 0; j < op->outputs; j++) {
        gcp_shape raw = out[j];
        if (out_type[j] == GCP_DTYPE_BF16) {
            gcpi_fail(t, GCP_E_ARGUMENT, op->at, op->row->name,
                      "output %d: GCP_DTYPE_BF16 is a plan's choice (.store); a shape rule says GCP_DTYPE_REAL", j);
            return 0;
        }
        size_t count = 1;
        for (int d = 0; d < 4; d++) {
            if (raw.d[d] <= 0 || count > (size_t)PTRDIFF_MAX / 64 / (size_t)raw.d[d]) {
                gcpi_fail(t, GCP_E_SHAPE, op->at, op->row->name, "an output of %d x %d x %d x %d", raw.d[0], raw.d[1],
                          raw.d[2], raw.d[3]);
                return 0;
            }
            count *= (size_t)raw.d[d];
        }
    }
    return 1;
}

/* Records an op: its shape rule makes the outputs. Returns its index, or -1 with the tape's error set. */
static int gcpi_op_new(gcp_tape *t, const gcp_op *row, int kind, int name, const gcp_tensor *inputs, int count,
                       const gcpi_attributes *attributes, const void *context, gcp_at at)
{
    gcp_shape shape[GCP_MAX_OUTPUTS];
    gcp_dtype type[GCP_MAX_OUTPUTS];
    gcpi_op *op = &t->ops[t->op_count];
    if (!gcpi_op_room(t, row, count, row->outputs, at)) return -1;
    for (int i = 0; i < count; i++)
        if (!gcpi_usable(t, inputs[i], at, row->name)) return -1;
    memset(op, 0, sizeof *op);
    op->row = row; op->kind = kind; op->at = at; op->name = name; op->segment = t->open; op->context = context;
    op->in = t->edge_count; op->inputs = count; op->outputs = row->outputs;
    if (attributes) op->attributes = *attributes;
    for (int i = 0; i < count; i++) t->edges[op->in + i] = inputs[i].id;
    if (!gcpi_op_shapes(t, op, shape, type)) return -1;
    if (op->outputs > t->tensor_capacity - t->tensor_count) {
        gcpi_fail(t, GCP_E_CAPACITY, at, row->name, "the tape's %d tensors are full (.tensors)",
                  t->tensor_capacity - 1);
        return -1;
    }
    op->out = t->tensor_count;
    for (int j = 0; j < op->outputs; j++)
        t->tensors[gcpi_tensor_new(t, GCPI_ACTIVATION, type[j], shape[j], name, at, row->name)].producer = t->op_count;
    op->kept = gcpi_kept_by_name(t, op);
    t->edge_count += count;
    t->op_count++;
    gcpi_recorded(t);
    return t->op_count - 1;
}
