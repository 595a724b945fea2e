/* gcp_onnx_save: the file again, with new elements where one was trained. */

static size_t gcpi_varint_size(uint64_t x)
{
    size_t n = 1;
    while (x >>= 7) n++;
    return n;
}
static void gcpi_put_varint(gcpi_disk_file *s, uint64_t x)
{
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (unsigned char)(x & 127) | (unsigned char)(x >> 7 ? 128 : 0);
    } while (x >>= 7);
    gcpi_disk_write(s, bytes, n);
}
static void gcpi_put_head(gcpi_disk_file *s, int number, size_t size) /* of a field of so many bytes */
{
    gcpi_put_varint(s, (uint64_t)number << 3 | GCPI_WIRE_BYTES);
    gcpi_put_varint(s, size);
}
static size_t gcpi_field_size(int number, size_t size)
{
    return gcpi_varint_size((uint64_t)number << 3) + gcpi_varint_size(size) + size;
}

/* The weight that an initialiser, or the tensor of a Constant, became; NULL: it is as it was. */
static const gcpi_onnx_weight *gcpi_onnx_trained(gcpi_onnx *m, const gcpi_field *f)
{
    const int constant =
        f->number == GCPI_GRAPH_NODE && gcpi_excerpt_is(gcpi_wire_find(f->bytes, GCPI_NODE_OP), "Constant");
    if (f->type != GCPI_WIRE_BYTES || (f->number != GCPI_GRAPH_INITIALIZER && !constant)) return NULL;
    for (int i = 0; i < m->weight_count; i++) {
        const gcpi_onnx_weight *w = &m->weights[i];
        const unsigned char *at = w->source >= 0 && w->source < m->initializers ? m->data[w->source].message.at : NULL;
        if (at && (constant ? at > f->bytes.at && at < f->bytes.at + f->bytes.size : at == f->bytes.at)) return w;
    }
    return NULL;
}
static size_t gcpi_onnx_data_size(const gcpi_onnx_data *d) /* of its message, written anew */
{
    size_t size = 1 + gcpi_varint_size((uint64_t)d->type);
    for (int i = 0; i < d->rank; i++) size += 1 + gcpi_varint_size((uint64_t)d->d[i]);
    return size + gcpi_field_size(GCPI_TENSOR_NAME, d->name.size) +
           gcpi_field_size(GCPI_TENSOR_RAW, d->count * gcpi_onnx_type_size(d->type));
}
/* A float's upper bits, rounded to the nearest, to even where there are two. */
static unsigned gcpi_half_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    const unsigned sign = u >> 16 & 0x8000u;
    const uint32_t rest = u & 0x7fffffffu;
    if (rest > 0x7f800000u) return sign | 0x7e00u;
    if (rest >= 0x477ff000u) return sign | 0x7c00u;
    if (rest < 0x38800000u) { /* below the normal numbers: counts of 2^-24 */
        const double count = (double)gcpi_float_of(rest) * 16777216.0, low = floor(count), part = count - low;
        unsigned n = (unsigned)low;
        return sign | (n + (part > 0.5 || (part == 0.5 && n & 1)));
    }
    return sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13);
}
static void gcpi_onnx_put_element(int type, double x, unsigned char *to)
{
    const float f = (float)x;
    uint32_t u;
    uint64_t d;
    memcpy(&u, &f, 4);
    memcpy(&d, &x, 8);
    if (type == GCPI_ONNX_FLOAT) gcpi_u64_to(u, to, 4);
    else if (type == GCPI_ONNX_DOUBLE) gcpi_u64_to(d, to, 8);
    else if (type == GCPI_ONNX_FLOAT16) gcpi_u64_to(gcpi_half_bits(f), to, 2);
    else gcpi_u64_to((u + 0x7fffu + (u >> 16 & 1)) >> 16, to, 2);
}
static int gcpi_onnx_put_data(gcpi_onnx *m, gcpi_disk_file *s, const gcpi_onnx_weight *w)
{
    const gcpi_onnx_data *d = &m->data[w->source];
    const size_t size = gcpi_onnx_type_size(d->type);
    const gcpi_place place = gcpi_onnx_weight_place(m, w);
    const ptrdiff_t scratch = m->arena->scratch;
    unsigned char some[8 * 512];
    const gcp_real *all = gcpi_place_open(&place, m->arena, d->count);
    if (!all) return gcpi_onnx_no_room(m, d->count * sizeof *all);
    if ((const unsigned char *)all != place.at)
        gcpi_place_copy(&place, (void *)(uintptr_t)all, place.at, d->count * sizeof *all);
    for (int i = 0; i < d->rank; i++) {
        gcpi_put_varint(s, GCPI_TENSOR_DIMS << 3);
        gcpi_put_varint(s, (uint64_t)d->d[i]);
    }
    gcpi_put_varint(s, GCPI_TENSOR_TYPE << 3);
    gcpi_put_varint(s, (uint64_t)d->type);
    gcpi_put_head(s, GCPI_TENSOR_NAME, d->name.size);
    gcpi_disk_write(s, d->name.at, d->name.size);
    gcpi_put_head(s, GCPI_TENSOR_RAW, d->count * size);
    gcpi_onnx_order_walk walk = gcpi_onnx_order_walk_of(&w->order);
    for (size_t first = 0, n; first < d->count && !s->failed; first += n) {
        n = GCPI_MIN(d->count - first, (size_t)512);
        for (size_t i = 0; i < n; i++, gcpi_onnx_order_walk_on(&walk))
            gcpi_onnx_put_element(d->type, (double)all[walk.index], some + i * size);
        gcpi_disk_write(s, some, n * size);
    }
    m->arena->scratch = scratch;
    return !s->failed;
}
/* The sizes of an output, or of a weight that is an input, too; a new head changed one. An output's other sizes that
   are not those of the recording are left open. Written, or (s NULL) counted. */
static size_t gcpi_onnx_put_sizes(const gcpi_onnx *m, const gcpi_onnx_value *v, gcpi_excerpt shape, int output,
                                  gcpi_disk_file *s)
{
    gcpi_excerpt dim;
    size_t total = 0;
    for (int i = 0; gcpi_wire_each(&shape, 1, &dim); i++) {
        const uint64_t was = (uint64_t)gcpi_wire_integer(dim, 1, 0),
                       is = v->shaped && i < v->rank ? (uint64_t)v->d[i] : 0;
        const int samples = output && !i && m->batch, same = !was || was == is || (!output && !is),
                  known = !output || (!samples && is == (uint64_t)m->classes);
        const uint64_t now = known ? is : 0;
        const size_t size = same ? dim.size : now ? 1 + gcpi_varint_size(now) : 0;
        total += gcpi_field_size(1, size);
        if (!s) continue;
        gcpi_put_head(s, 1, size);
        if (same) gcpi_disk_write(s, dim.at, dim.size);
        else if (now) {
            gcpi_put_varint(s, 1 << 3);
            gcpi_put_varint(s, now);
        }
    }
    return total;
}
/* Whether a field has sizes that a new head may have changed. */
static int gcpi_onnx_resized(const gcpi_onnx *m, const gcpi_field *f)
{
    const int v = f->number == GCPI_GRAPH_INPUT ? gcpi_onnx_find(m, gcpi_wire_find(f->bytes, 1)) : 0;
    return (f->number == GCPI_GRAPH_OUTPUT || (v && m->values[v].data >= 0)) && f->type == GCPI_WIRE_BYTES &&
           gcpi_wire_find(gcpi_wire_find(gcpi_wire_find(f->bytes, 2), 1), 2).size > 0;
}
/* A ValueInfoProto with a TypeProto of a tensor in it. */
static size_t gcpi_onnx_put_declared(gcpi_onnx *m, int field, gcpi_excerpt message, gcpi_disk_file *s)
{
    const gcpi_excerpt name = gcpi_wire_find(message, 1), tensor = gcpi_wire_find(gcpi_wire_find(message, 2), 1),
                       shape = gcpi_wire_find(tensor, 2);
    const gcpi_onnx_value *v = &m->values[gcpi_onnx_find(m, name)];
    const int output = field == GCPI_GRAPH_OUTPUT;
    const uint64_t element = (uint64_t)gcpi_wire_integer(tensor, 1, 0);
    const size_t sizes = gcpi_onnx_put_sizes(m, v, shape, output, NULL),
                 inner = 1 + gcpi_varint_size(element) + gcpi_field_size(2, sizes), type = gcpi_field_size(1, inner),
                 whole = gcpi_field_size(1, name.size) + gcpi_field_size(2, type);
    if (!s) return gcpi_field_size(field, whole);
    gcpi_put_head(s, field, whole);
    gcpi_put_head(s, 1, name.size);
    gcpi_disk_write(s, name.at, name.size);
    gcpi_put_head(s, 2, type);
    gcpi_put_head(s, 1, inner);
    gcpi_put_varint(s, 1 << 3);
    gcpi_put_varint(s, element);
    gcpi_put_head(s, 2, sizes);
    gcpi_onnx_put_sizes(m, v, shape, output, s);
    return gcpi_field_size(field, whole);
}

/* ---- a graph as it runs in inference ---- */

/* Whether a node reads a value, or it is an output of the file. */
static int gcpi_onnx_is_read(const gcpi_onnx *m, int value)
{
    int found = gcpi_onnx_readers(m, &m->values[value]) > 0;
    for (int i = 0; i < m->output_count; i++) found |= m->outputs[i] == value;
    return found;
}
/* What says that a node trains: a norm's attribute and outputs of statistics, a Dropout's third input. */
typedef struct gcpi_onnx_trims {
    int norm, dropout;
    const gcpi_onnx_value *copied; /* of a product that drops samples: what it passes on */
} gcpi_onnx_trims;
static gcpi_onnx_trims gcpi_onnx_trims_of(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    gcpi_onnx_trims t;
    t.norm = !n->foreign && gcpi_excerpt_is(n->op, "BatchNormalization");
    t.dropout = !n->foreign && gcpi_excerpt_is(n->op, "Dropout");
    t.copied = n->pattern && n->pattern->record == gcpi_record_drop ? &m->values[n->part[0]] : NULL;
    for (int k = 1; k < n->outputs && t.norm; k++) {
        const int v = m->edges[n->output + k];
        if (v && gcpi_onnx_is_read(m, v)) t.norm = 0;
    }
    return t;
}
static int gcpi_onnx_trimmed(gcpi_onnx_trims t, const gcpi_field *f, int inputs, int outputs)
{
    if (f->type != GCPI_WIRE_BYTES) return 0;
    if (t.dropout) return f->number == GCPI_NODE_INPUT && inputs > 2;
    return (f->number == GCPI_NODE_OUTPUT && outputs > 1) ||
           (f->number == GCPI_NODE_ATTRIBUTE &&
            gcpi_excerpt_is(gcpi_wire_find(f->bytes, GCPI_ATTRIBUTE_NAME), "training_mode"));
}
/* An Identity of one of its values in the place of a node. */
static size_t gcpi_onnx_put_copy(const gcpi_onnx_value *x, gcpi_excerpt message, gcpi_disk_file *s)
{
    const gcpi_excerpt text[] = { x->name, gcpi_wire_find(message, GCPI_NODE_OUTPUT),
                                  gcpi_wire_find(message, GCPI_NODE_NAME), gcpi_excerpt_of("Identity", 8) };
    size_t total = 0;
    for (int i = 0; i < 4; i++) {
        total += gcpi_field_size(GCPI_NODE_INPUT + i, text[i].size);
        if (!s) continue;
        gcpi_put_head(s, GCPI_NODE_INPUT + i, text[i].size);
        gcpi_disk_write(s, text[i].at, text[i].size);
    }
    return total;
}
/* A Constant with new elements. */
static size_t gcpi_onnx_put_constant(gcpi_onnx *m, const gcpi_onnx_weight *w, gcpi_excerpt message, gcpi_disk_file *s)
{
    const size_t data = gcpi_onnx_data_size(&m->data[w->source]),
                 attribute = gcpi_field_size(GCPI_ATTRIBUTE_NAME, 5) + gcpi_field_size(GCPI_ATTRIBUTE_T, data) + 3;
    gcpi_field f;
    size_t total = 0;
    for (const unsigned char *from = message.at; gcpi_wire_next(&message, &f) > 0; from = message.at) {
        const int value = f.number == GCPI_NODE_ATTRIBUTE && f.type == GCPI_WIRE_BYTES;
        total += value ? gcpi_field_size(GCPI_NODE_ATTRIBUTE, attribute) : (size_t)(message.at - from);
        if (s && !value) gcpi_disk_write(s, from, (size_t)(message.at - from));
        if (!s || !value) continue;
        gcpi_put_head(s, GCPI_NODE_ATTRIBUTE, attribute);
        gcpi_put_head(s, GCPI_ATTRIBUTE_NAME, 5);
        gcpi_disk_write(s, "value", 5);
        gcpi_put_varint(s, GCPI_ATTRIBUTE_TYPE << 3);
        gcpi_put_varint(s, GCPI_ATTRIBUTE_IS_TENSOR);
        gcpi_put_head(s, GCPI_ATTRIBUTE_T, data);
        gcpi_onnx_put_data(m, s, w);
    }
    return total;
}
/* A node's fields without those; written, or (s NULL) counted. */
static size_t gcpi_onnx_put_node(gcpi_onnx_trims t, gcpi_excerpt message, gcpi_disk_file *s)
{
    gcpi_field f;
    size_t total = 0;
    int inputs = 0, outputs = 0;
    if (t.copied) return gcpi_onnx_put_copy(t.copied, message, s);
    for (const unsigned char *from = message.at; gcpi_wire_next(&message, &f) > 0; from = message.at) {
        inputs += f.number == GCPI_NODE_INPUT && f.type == GCPI_WIRE_BYTES;
        outputs += f.number == GCPI_NODE_OUTPUT && f.type == GCPI_WIRE_BYTES;
        if (gcpi_onnx_trimmed(t, &f, inputs, outputs)) continue;
        total += (size_t)(message.at - from);
        if (s) gcpi_disk_write(s, from, (size_t)(message.at - from));
    }
    return total;
}

/* ---- the graph ---- */

/* A field that is not as it was in the file: a trained weight or Constant; with a new head, an output; in inference, a
   node (else NULL). Written, or counted. 0: it is as it was. */
static size_t gcpi_onnx_put_changed(gcpi_onnx *m, const gcpi_field *f, const gcpi_onnx_node *node, gcpi_disk_file *s)
{
    const gcpi_onnx_weight *w = gcpi_onnx_trained(m, f);
    gcpi_onnx_trims t = { 0, 0, NULL };
    if (m->head_count && gcpi_onnx_resized(m, f)) return gcpi_onnx_put_declared(m, f->number, f->bytes, s);
    if (node) t = gcpi_onnx_trims_of(m, node);
    if (!w && !t.norm && !t.dropout && !t.copied) return 0;
    const int constant = w && f->number == GCPI_GRAPH_NODE;
    const size_t size = constant ? gcpi_onnx_put_constant(m, w, f->bytes, NULL)
                      : w        ? gcpi_onnx_data_size(&m->data[w->source])
                                 : gcpi_onnx_put_node(t, f->bytes, NULL);
    if (s) gcpi_put_head(s, f->number, size);
    if (s && constant) gcpi_onnx_put_constant(m, w, f->bytes, s);
    else if (s && w) gcpi_onnx_put_data(m, s, w);
    else if (s) gcpi_onnx_put_node(t, f->bytes, s);
    return gcpi_field_size(f->number, size);
}
/* The graph's fields, written or counted. With a new head, what the file says of shapes between is left out. */
static size_t gcpi_onnx_put_graph(gcpi_onnx *m, int inference, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->graph;
    gcpi_field f;
    size_t total = 0;
    int node = 0;
    for (const unsigned char *from = rest.at; gcpi_wire_next(&rest, &f) > 0; from = rest.at) {
        const int is_node = f.number == GCPI_GRAPH_NODE && f.type == GCPI_WIRE_BYTES;
        const gcpi_onnx_node *n = is_node ? &m->nodes[node++] : NULL;
        if (m->head_count && f.number == GCPI_GRAPH_VALUES) continue;
        const size_t changed = gcpi_onnx_put_changed(m, &f, inference ? n : NULL, s);
        if (s && !changed) gcpi_disk_write(s, from, (size_t)(rest.at - from));
        total += changed ? changed : (size_t)(rest.at - from);
    }
    return total;
}
static int gcpi_onnx_put_model(gcpi_onnx *m, int inference, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->file;
    gcpi_field f;
    for (const unsigned char *from = rest.at; gcpi_wire_next(&rest, &f) > 0; from = rest.at) {
        if (f.number != GCPI_MODEL_GRAPH) {
            gcpi_disk_write(s, from, (size_t)(rest.at - from));
            continue;
        }
        if (f.bytes.at != m->graph.at) continue;
        gcpi_put_head(s, GCPI_MODEL_GRAPH, gcpi_onnx_put_graph(m, inference, NULL));
        gcpi_onnx_put_graph(m, inference, s);
    }
    return !s->failed && !m->tape->code;
}
/* Whether running statistics that change have a place in the file. */
static int gcpi_onnx_statistics_stay(gcpi_onnx *m)
{
    for (int i = 0; i < m->weight_count && !m->frozen_norms; i++) {
        const gcpi_onnx_weight *w = &m->weights[i];
        if (gcpi_get(w->tensor)->kind != GCPI_STATISTIC || w->source < m->initializers) continue;
        gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call,
                  "a BatchNormalization's mean or variance is no initialiser: it has no place in the file "
                  "(.frozen_norms of gcp_onnx_record keeps it as it is)");
        return 0;
    }
    return 1;
}
/* Whether all norms that train in the file can be written as they are used. */
static int gcpi_onnx_infers(gcpi_onnx *m)
{
    char name[80];
    for (int i = 0; i < m->node_count; i++) {
        const gcpi_onnx_node *n = &m->nodes[i];
        if (n->foreign || !gcpi_excerpt_is(n->op, "BatchNormalization") || gcpi_onnx_trims_of(m, n).norm) continue;
        gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call,
                  ".inference: node '%s' (BatchNormalization): its statistics are read, or an output of the file",
                  gcpi_excerpt_text(n->name, name, sizeof name));
        return 0;
    }
    return 1;
}
GCPI_DEF gcp_code gcp_onnx_save_at(gcp_tape *t, gcp_onnx *model, const char *path, gcp_onnx_save_opts o)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, o.at, "gcp_onnx_save");
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_onnx_save");
    char part[GCPI_PATH];
    s.tape = t;
    if (!m || !gcpi_onnx_state_ready(m) || !gcpi_onnx_statistics_stay(m)) return gcp_error_code(t);
    if (o.inference && !gcpi_onnx_infers(m)) return gcp_error_code(t);
    if (gcpi_disk_create(&s, part) && !gcpi_onnx_put_model(m, o.inference, &s)) s.failed = 1;
    gcpi_disk_settle(&s, part);
    return t->code;
}
