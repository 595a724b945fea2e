/* gcp_onnx_record: from a graph to a tape. Sizes are filled in, shapes follow, what is known is folded; then what the
   outputs need is recorded, node after node. */

/* ---- inputs and their sizes ---- */

/* Whether an input has an open size of this name. */
static int gcpi_onnx_names_size(gcpi_onnx *m, gcpi_excerpt name)
{
    gcpi_excerpt dim;
    int found = gcpi_excerpt_is(name, "*");
    for (int i = 0; i < m->input_count; i++)
        for (gcpi_excerpt rest = gcpi_wire_find(gcpi_wire_find(m->input_types[i], 1), 2);
             gcpi_wire_each(&rest, 1, &dim);)
            found |= gcpi_excerpt_equal(gcpi_wire_find(dim, 2), name);
    return found;
}
/* .sizes is pairs of a name that an input has and a number above 0. */
static int gcpi_onnx_sizes_fit(gcpi_onnx *m, const char *text)
{
    const char *const blank = " \t\r\n";
    while (text && *(text += strspn(text, blank))) {
        const size_t length = strcspn(text, blank);
        const char *number = text + length + strspn(text + length, blank);
        char *end;
        const long size = strtol(number, &end, 10);
        const int known = gcpi_onnx_names_size(m, gcpi_excerpt_of(text, length));
        if (known && end > number && strchr(blank, *end) && size > 0 && size < INT32_MAX) {
            text = end;
            continue;
        }
        gcpi_fail(m->tape, GCP_E_ARGUMENT, m->at, m->call, ".sizes: '%.40s': %s", text,
                  known ? "a number above 0 must follow the name" : "no input has an open size of this name");
        return 0;
    }
    return 1;
}
/* The number behind a name in text "NAME NUMBER NAME NUMBER ..."; 0: it is not there. */
static int gcpi_onnx_size_of(const char *text, gcpi_excerpt name)
{
    while (text && *text) {
        const char *word = text + strspn(text, " \t\r\n"), *end = word + strcspn(word, " \t\r\n");
        const int is = gcpi_excerpt_equal(gcpi_excerpt_of(word, (size_t)(end - word)), name);
        char *after;
        const long size = strtol(end, &after, 10);
        if (is) return size > 0 && size < INT32_MAX ? (int)size : 0;
        text = after > end ? after : end;
        if (text == word) return 0;
    }
    return 0;
}
static int gcpi_onnx_input_fail(gcpi_onnx *m, const gcpi_onnx_value *v, const char *format, const char *what)
{
    char name[80];
    gcpi_excerpt_text(v->name, name, sizeof name);
    gcpi_fail(m->tape, GCP_E_SHAPE, m->at, m->call, format, name, what);
    return 0;
}
/* The sizes of an input: the file's, those of .sizes and .batch, those of a tensor that was given for it. */
static int gcpi_onnx_input_sizes(gcpi_onnx *m, gcpi_onnx_value *v, gcpi_excerpt type, const gcp_shape *given)
{
    const gcpi_excerpt tensor = gcpi_wire_find(type, 1);
    gcpi_excerpt rest = gcpi_wire_find(tensor, 2), dim;
    char name[80];
    v->type = (int)gcpi_wire_integer(tensor, 1, 0);
    v->rank = 0;
    while (gcpi_wire_each(&rest, 1, &dim)) {
        const gcpi_excerpt symbol = gcpi_wire_find(dim, 2);
        int64_t size = gcpi_wire_integer(dim, 1, 0);
        if (v->rank == GCPI_AXES) return gcpi_onnx_input_fail(m, v, "input '%s' has more than 8 axes%s", "");
        if (gcpi_onnx_size_of(m->sizes, symbol)) size = gcpi_onnx_size_of(m->sizes, symbol);
        else if (m->batch && !v->rank) size = m->batch;
        else if (size <= 0) size = gcpi_onnx_size_of(m->sizes, gcpi_excerpt_of("*", 1));
        v->d[v->rank] = size > 0 && size < INT32_MAX ? (int)size : 0;
        v->rank++;
        if (!given && !v->d[v->rank - 1])
            return gcpi_onnx_input_fail(
                m, v, "input '%s': its size '%s' is open: .batch is the first one, .sizes gives others",
                gcpi_excerpt_text(symbol, name, sizeof name));
    }
    if (v->rank > 4 || !tensor.size) return gcpi_onnx_input_fail(m, v, "input '%s' has not one to four axes%s", "");
    if (given) {
        const char *c = gcpi_layout_usual(v->rank);
        for (int place = 0; *c; c++) {
            if (*c == '|') {
                place++;
                continue;
            }
            int *size = &v->d[*c - '0'];
            if (*c > '0' && *size && *size != given->d[place])
                return gcpi_onnx_input_fail(m, v, "input '%s' has other sizes in the file than in .inputs%s", "");
            *size = given->d[place];
        }
    }
    for (int i = 0, most = 1; i < v->rank; most *= v->d[i++])
        if (v->d[i] > INT32_MAX / most) return gcpi_onnx_input_fail(m, v, "input '%s' has too many elements%s", "");
    v->shaped = 1;
    return 1;
}
static int gcpi_onnx_input_record(gcpi_onnx *m, gcpi_onnx_value *v, gcp_tensor given)
{
    char name[200];
    const char *layout = gcpi_layout_usual(v->rank);
    const int whole = v->type == GCPI_ONNX_INT64 || v->type == GCPI_ONNX_INT32;
    gcp_input_opts o = GCP_OPTS(gcp_input_opts, );
    o.at = m->at;
    gcpi_onnx_order_make(&v->order, layout, v->rank, v->d);
    gcpi_onnx_free_name(m->tape, v->name, name, sizeof name);
    const gcp_shape shape = gcpi_onnx_rank(gcpi_layout_shape(&v->order, layout));
    if (!gcp_is_nil(given) && whole != (gcpi_get(given)->dtype != GCP_DTYPE_REAL))
        return gcpi_onnx_input_fail(m, v, "input '%s' is of %s; .inputs gives another kind",
                                    gcpi_onnx_type_name(v->type));
    if (!gcp_is_nil(given)) v->tensor = given;
    else if (whole) v->tensor = gcp_ids_at(m->tape, name, shape, o);
    else if (gcpi_onnx_is_real(v->type)) v->tensor = gcp_input_at(m->tape, name, shape, o);
    else
        return gcpi_onnx_input_fail(m, v, "input '%s' is of %s; floats, int32 and int64 are allowed",
                                    gcpi_onnx_type_name(v->type));
    return !gcp_is_nil(v->tensor);
}
static int gcpi_onnx_inputs_begin(gcpi_onnx *m, const gcp_onnx_record_opts *o)
{
    for (int i = 0; i < m->input_count; i++) {
        gcpi_onnx_value *v = &m->values[m->inputs[i]];
        const gcp_tensor given = i < o->input_count ? o->inputs[i] : gcpi_nil(NULL);
        const gcp_shape shape = gcp_shape_of(given);
        if (!v->needed) continue;
        if (!gcpi_onnx_input_sizes(m, v, m->input_types[i], gcp_is_nil(given) ? NULL : &shape) ||
            !gcpi_onnx_input_record(m, v, given))
            return 0;
    }
    return 1;
}

/* ---- what is needed ---- */

static void gcpi_onnx_want(gcpi_onnx *m, int value)
{
    m->values[value].needed = 1;
    m->values[value].uses++;
}
/* Marks what the outputs are made of. With patterns: as it will be recorded. */
static void gcpi_onnx_needed(gcpi_onnx *m, const int *outputs, int count, int patterns)
{
    for (int i = 0; i < m->value_count; i++) m->values[i].needed = m->values[i].uses = 0;
    for (int i = 0; i < count; i++) gcpi_onnx_want(m, outputs[i]);
    for (int i = m->node_count - 1; i >= 0; i--) {
        gcpi_onnx_node *n = &m->nodes[i];
        n->needed = 0;
        n->pattern = NULL;
        for (int k = 0; k < n->outputs; k++) {
            const gcpi_onnx_value *y = gcpi_onnx_out(m, n, k);
            n->needed |= y && y->needed && !(patterns && (y->known || y->data >= 0));
        }
        if (!n->needed) continue;
        if (patterns && !n->foreign) n->pattern = gcpi_onnx_pattern_of(m, n);
        for (int k = 0; k < 8 && n->pattern; k++)
            if (n->part[k]) gcpi_onnx_want(m, n->part[k]);
        for (int k = 0; k < n->inputs && !n->pattern; k++)
            if (m->edges[n->input + k]) gcpi_onnx_want(m, m->edges[n->input + k]);
    }
}

/* ---- shapes ---- */

static void gcpi_onnx_values_clear(gcpi_onnx *m)
{
    for (int i = 0; i < m->value_count; i++) {
        gcpi_onnx_value *v = &m->values[i];
        v->shaped = 0;
        v->known = NULL;
        v->uniform = 0;
        v->tensor = v->other = gcpi_nil(m->tape);
        v->source = -1;
        if (v->node >= 0 || v->data < 0) continue;
        const gcpi_onnx_data *d = &m->data[v->data];
        v->shaped = 1;
        v->type = d->type;
        v->rank = d->rank;
        memcpy(v->d, d->d, sizeof v->d);
    }
}
/* All that cannot be recorded is found here, node by node; what is made of it is passed over. */
static void gcpi_onnx_shapes(gcpi_onnx *m)
{
    for (int i = 0; i < m->node_count && !m->tape->code; i++) {
        gcpi_onnx_node *n = &m->nodes[i];
        int ready = 1;
        if (!n->needed) continue;
        n->row = gcpi_onnx_row_of(n);
        if (!n->row) {
            gcpi_onnx_refuse(m, n, n->foreign ? "an op of another domain" : "an op that is not known");
            continue;
        }
        for (int k = 0; k < n->row->inputs; k++) ready &= gcpi_onnx_in(m, n, k) != NULL;
        if (!ready || !gcpi_onnx_out(m, n, 0)) {
            gcpi_onnx_refuse(m, n, "an input or output that it must have is left out");
            continue;
        }
        for (int k = 0; k < n->inputs; k++)
            ready &= !m->edges[n->input + k] || m->values[m->edges[n->input + k]].shaped;
        if (!ready) continue;
        const int before = m->refused;
        if (!gcpi_onnx_only(m, n, n->row->attributes)) continue;
        if (!n->row->shape(m, n) && m->refused == before && !m->tape->code)
            gcpi_onnx_refuse(m, n, "its inputs do not fit");
    }
}
/* What an op makes of an empty value is empty, and no tape has it. What a refused node would have made is missing: that
   was said. */
static int gcpi_onnx_recordable(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (int k = 0; k < n->outputs; k++) {
        const gcpi_onnx_value *y = gcpi_onnx_out(m, n, k);
        if (y && y->needed && (!y->shaped || (!gcpi_onnx_elements(y) && y->type != GCPI_ONNX_NONE)))
            return gcpi_onnx_refuse(m, n, "its output is empty, or not known");
    }
    if (!n->pattern && !n->row->record)
        return gcpi_onnx_refuse(m, n, "it is only folded: its inputs must be known before a step");
    for (int k = 0; k < (n->pattern ? 8 : n->inputs); k++) {
        const gcpi_onnx_value *x = n->pattern ? &m->values[n->part[k]] : gcpi_onnx_in(m, n, k);
        if (!x || !gcpi_onnx_index(m, x)) continue;
        const int unread = k && (gcpi_excerpt_is(n->op, "Resize") || gcpi_excerpt_is(n->op, "CastLike"));
        if (!unread && gcpi_onnx_is_real(x->type) && !gcpi_onnx_elements(x))
            return gcpi_onnx_refuse(m, n, "an empty input");
        if (x->source >= 0 || !gcp_is_nil(x->tensor) || (x->type == GCPI_ONNX_NONE && x->data < 0)) continue;
        if (gcpi_onnx_is_real(x->type)) return 0;
        if (!k) return gcpi_onnx_refuse(m, n, "%s elements; floats are allowed", gcpi_onnx_type_name(x->type));
    }
    return 1;
}
/* Weights and constants wait for the op that reads them first. */
static void gcpi_onnx_sources(gcpi_onnx *m)
{
    for (int i = 1; i < m->value_count; i++) {
        gcpi_onnx_value *v = &m->values[i];
        if (!v->shaped || !gcpi_onnx_is_real(v->type) || v->rank > GCPI_AXES || !gcp_is_nil(v->tensor)) continue;
        v->source = v->data >= 0 ? v->data : v->known ? m->data_count + i : -1;
        if (v->source >= 0) gcpi_onnx_order_set(&v->order, v->rank, v->d);
    }
}

/* ---- segments ---- */

/* Its label is the block's name without its number: the tape counts, too. */
static int gcpi_onnx_segment(gcpi_onnx *m, gcpi_excerpt block)
{
    char label[80];
    size_t end = block.size;
    while (end && block.at[end - 1] >= '0' && block.at[end - 1] <= '9') end--;
    if (end > 1 && (block.at[end - 1] == '.' || block.at[end - 1] == '_')) block.size = end - 1;
    gcp_segment_opts o = GCP_OPTS(gcp_segment_opts, );
    o.at = m->at;
    gcpi_onnx_plain_name(block, label, sizeof label);
    const char *kept = gcpi_keep_text(m->tape, label);
    return kept ? gcp_segment_begin(m->tape, kept, o) : 0;
}
/* A block whose nodes only changed orders recorded no op, and is no segment. */
static void gcpi_onnx_segment_end(gcpi_onnx *m, int segment)
{
    gcp_tape *t = m->tape;
    int state = 2;
    if (!segment || t->code) return;
    if (t->segments[segment].ops < t->op_count) {
        gcp_segment_end(t, segment, &state);
        return;
    }
    t->open = t->segments[segment].parent;
    t->segment_count = segment;
    if (t->segments[segment].name == t->name_count - 1) gcpi_name_take_back(t);
}

/* ---- recording ---- */

/* A tape's message says which call of a gcp op failed; this adds whose node it was. */
static int gcpi_onnx_where(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    char name[80], op[40];
    const size_t used = strlen(m->tape->message);
    snprintf(m->tape->message + used, sizeof m->tape->message - used, " (node '%s', %s)",
             gcpi_excerpt_text(n->name, name, sizeof name), gcpi_excerpt_text(n->op, op, sizeof op));
    return 0;
}
static int gcpi_onnx_nodes_record(gcpi_onnx *m)
{
    int segment = 0, now = 0;
    gcpi_onnx_blocks(m);
    for (int i = 0; i < m->node_count && !m->tape->code; i++) {
        gcpi_onnx_node *n = &m->nodes[i];
        if (!n->needed || !gcpi_onnx_recordable(m, n)) continue;
        if (n->block != now) {
            gcpi_onnx_segment_end(m, segment);
            segment = n->block ? gcpi_onnx_segment(m, n->block_name) : 0;
            now = n->block;
        }
        const int before = m->refused, ok = n->pattern ? n->pattern->record(m, n) : n->row->record(m, n);
        if (m->tape->code) return gcpi_onnx_where(m, n);
        if (!ok && m->refused == before) gcpi_onnx_refuse(m, n, "it could not be recorded");
    }
    gcpi_onnx_segment_end(m, segment);
    return !m->tape->code;
}
/* Outputs lie as gcp has them: images channels last. */
static int gcpi_onnx_outputs_record(gcpi_onnx *m, const int *outputs, int count)
{
    for (int i = 0; i < count; i++) {
        gcpi_onnx_value *v = &m->values[outputs[i]];
        if (gcp_is_nil(v->tensor) && v->source < 0)
            return gcpi_onnx_input_fail(m, v, "output '%s' is no tensor of floats%s", "");
        if (gcp_is_nil(gcpi_onnx_usual(m, v))) return 0;
        if (gcpi_get(v->tensor)->kind != GCPI_ACTIVATION) /* an input as it is: a plan has something to run */
            v->tensor = gcp_reshape_at(v->tensor, gcpi_onnx_rank(gcp_shape_of(v->tensor)), gcpi_onnx_opts(m));
        if (gcp_is_nil(v->tensor)) return 0;
    }
    return 1;
}
static int gcpi_onnx_refusals(gcpi_onnx *m)
{
    if (!m->refused) return 1;
    char text[GCP_MAX_ERROR];
    snprintf(text, sizeof text, "%s", m->refusals);
    gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call,
              "%d node%s of the file cannot be recorded (.report lists all): %.300s", m->refused,
              m->refused == 1 ? "" : "s", text);
    return 0;
}
static int gcpi_onnx_run(gcpi_onnx *m, const int *outputs, int count, const gcp_onnx_record_opts *o)
{
    if (!gcpi_onnx_sizes_fit(m, o->sizes) || !gcpi_onnx_head_record(m, outputs[0], o->classes)) return 0;
    gcpi_onnx_values_clear(m);
    gcpi_onnx_needed(m, outputs, count, 0);
    if (!gcpi_onnx_inputs_begin(m, o)) return 0;
    gcpi_onnx_shapes(m);
    if (m->tape->code || !gcpi_onnx_refusals(m)) return 0;
    gcpi_onnx_sources(m);
    gcpi_onnx_needed(m, outputs, count, 1);
    return gcpi_onnx_nodes_record(m) && gcpi_onnx_refusals(m) && gcpi_onnx_outputs_record(m, outputs, count) &&
           (!m->head_count || gcpi_onnx_head_shows(m, &m->values[outputs[0]]));
}

/* What a Softmax or LogSoftmax at the end reads; else the value itself. */
static int gcpi_onnx_logits(gcpi_onnx *m, int value)
{
    gcpi_onnx_value *v = &m->values[value];
    const gcpi_onnx_node *soft = gcpi_onnx_maker(m, v, "Softmax"), *log = gcpi_onnx_maker(m, v, "LogSoftmax"),
                         *same = gcpi_onnx_maker(m, v, "Identity"),
                         *n = soft ? soft
                            : log  ? log
                                   : same;
    const gcpi_onnx_value *x = n ? gcpi_onnx_in(m, n, 0) : NULL;
    if (x && same) return gcpi_onnx_logits(m, gcpi_onnx_index(m, x));
    return x ? gcpi_onnx_index(m, x) : value;
}
GCPI_DEF gcp_code gcp_onnx_record_at(gcp_tape *t, gcp_onnx *model, gcp_onnx_record_opts o)
{
    gcpi_onnx *m = model ? model->core : NULL;
    if (!t || t->code) return gcp_error_code(t);
    if (!m) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_onnx_record", "a model that was not opened: %.300s",
                  model ? model->error : "");
        return t->code;
    }
    m->tape = t;
    m->generation = t->generation;
    m->at = o.at;
    m->call = "gcp_onnx_record";
    m->report = o.report;
    m->batch = o.batch;
    m->classes = o.classes;
    m->sizes = o.sizes;
    m->refused = m->weight_count = m->recorded = 0;
    m->refusals[0] = 0;
    if (m->arena->used == m->end) m->arena->used = m->mark;
    const int until = o.until ? gcpi_onnx_find(m, gcpi_excerpt_of(o.until, strlen(o.until))) : 0;
    m->until = o.logits ? gcpi_onnx_logits(m, until ? until : m->outputs[0]) : until;
    m->frozen_norms = o.frozen_norms;
    const gcpi_extents before = t->good;
    const int open = t->open;
    if (o.until && !until)
        gcpi_fail(t, GCP_E_NAME, o.at, m->call, ".until = '%.100s': no value of the file has this name", o.until);
    else if (o.batch < 0 || o.classes < 0 || o.input_count < 0 || o.input_count > m->input_count ||
             (o.input_count && !o.inputs))
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, m->call,
                  ".batch = %d, .classes = %d, .input_count = %d; at least 0, at most %d inputs, and .inputs", o.batch,
                  o.classes, o.input_count, m->input_count);
    else gcpi_onnx_run(m, m->until ? &m->until : m->outputs, m->until ? 1 : m->output_count, &o);
    m->end = m->arena->used;
    m->recorded = !t->code;
    if (t->code) {
        t->good = before;
        t->open = open;
        m->weight_count = 0;
    }
    return t->code;
}
