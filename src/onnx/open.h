/* gcp_onnx_open: a file read and checked, its graph in arrays. Nothing in it is trusted: what is wrong is an error that
   names it. */

enum { GCPI_ONNX_NODES = 1 << 20, GCPI_ONNX_NAME = 4096 }; /* the most: nodes, values; bytes of a name */
enum { GCPI_ONNX_IR = 3 };                                 /* the least that has opsets */

static int gcpi_wire_count(gcpi_excerpt message, int number)
{
    gcpi_field f;
    int count = 0;
    while (gcpi_wire_next(&message, &f) > 0 && count <= GCPI_ONNX_NODES)
        count += f.number == number && f.type == GCPI_WIRE_BYTES;
    return count;
}

/* ---- sizes, and the arrays ---- */

typedef struct gcpi_onnx_counts {
    int nodes, edges, data, inputs, outputs;
} gcpi_onnx_counts;
static gcpi_onnx_counts gcpi_onnx_count(gcpi_excerpt graph)
{
    gcpi_onnx_counts c;
    gcpi_excerpt rest = graph, node;
    memset(&c, 0, sizeof c);
    c.data = gcpi_wire_count(graph, GCPI_GRAPH_INITIALIZER);
    c.inputs = gcpi_wire_count(graph, GCPI_GRAPH_INPUT);
    c.outputs = gcpi_wire_count(graph, GCPI_GRAPH_OUTPUT);
    while (gcpi_wire_each(&rest, GCPI_GRAPH_NODE, &node) && c.nodes <= GCPI_ONNX_NODES && c.edges <= GCPI_ONNX_NODES) {
        c.nodes++;
        c.edges += gcpi_wire_count(node, GCPI_NODE_INPUT) + gcpi_wire_count(node, GCPI_NODE_OUTPUT);
        c.data += gcpi_excerpt_is(gcpi_wire_find(node, GCPI_NODE_OP), "Constant");
    }
    return c;
}
/* 0: they do not fit; *bytes is what they take at most. */
static int gcpi_onnx_arrays(gcpi_onnx *m, gcpi_onnx_counts c, size_t *bytes)
{
    gcp_arena *a = m->arena;
    const int values = c.edges + c.data + c.inputs + 1;
    m->data_capacity = c.data;
    m->weight_capacity = 2 * c.data + 3 * c.nodes + 16;
    m->bucket_count = 2 * values;
    m->nodes = GCPI_NEW(a, gcpi_onnx_node, c.nodes);
    m->values = GCPI_NEW(a, gcpi_onnx_value, values);
    m->data = GCPI_NEW(a, gcpi_onnx_data, c.data);
    m->weights = GCPI_NEW(a, gcpi_onnx_weight, m->weight_capacity);
    m->edges = GCPI_NEW(a, int, c.edges + 1);
    m->inputs = GCPI_NEW(a, int, c.inputs + 1);
    m->input_types = GCPI_NEW(a, gcpi_excerpt, c.inputs + 1);
    m->outputs = GCPI_NEW(a, int, c.outputs + 1);
    m->buckets = GCPI_NEW(a, int, m->bucket_count);
    m->value_count = 1;
    *bytes = sizeof *m + (size_t)c.nodes * sizeof *m->nodes + (size_t)values * sizeof *m->values +
             (size_t)c.data * sizeof *m->data + (size_t)m->weight_capacity * sizeof *m->weights +
             (size_t)(c.edges + c.inputs + c.outputs + 3 + m->bucket_count) * sizeof(int) +
             (size_t)(c.inputs + 1) * sizeof(gcpi_excerpt) + 16 * 16;
    return m->nodes && m->values && m->data && m->weights && m->edges && m->inputs && m->input_types && m->outputs &&
           m->buckets;
}

/* ---- the graph ---- */

static int gcpi_onnx_name_ok(gcpi_disk_file *s, gcpi_excerpt name)
{
    return name.size <= GCPI_ONNX_NAME ||
           gcpi_wrong(s, GCP_E_CONTENTS, "a name of %zu bytes; at most %d", name.size, GCPI_ONNX_NAME);
}
/* A new value of this name. 0: an error. */
static int gcpi_onnx_define(gcpi_onnx *m, gcpi_disk_file *s, gcpi_excerpt name, const char *what)
{
    char text[80];
    if (!gcpi_onnx_name_ok(s, name)) return 0;
    if (gcpi_onnx_find(m, name))
        return gcpi_wrong(s, GCP_E_CONTENTS, "%s '%s': something before has this name", what,
                          gcpi_excerpt_text(name, text, sizeof text));
    return gcpi_onnx_value_new(m, name);
}

/* External data: the elements lie in a file of .folder. Its path must stay in there. */
static int gcpi_onnx_path_stays(gcpi_excerpt path)
{
    for (size_t i = 0, part = 0; i <= path.size; i++) {
        if (i < path.size && (path.at[i] < 32 || path.at[i] == ':')) return 0;
        if (i < path.size && path.at[i] != '/' && path.at[i] != '\\') continue;
        if (i - part == 2 && path.at[part] == '.' && path.at[part + 1] == '.') return 0;
        if (i == part) return 0; /* absolute, or empty */
        part = i + 1;
    }
    return path.size > 0;
}
typedef struct gcpi_onnx_external {
    gcpi_excerpt location;
    uint64_t offset, length;
    int has_length;
} gcpi_onnx_external;
static uint64_t gcpi_excerpt_number(gcpi_excerpt text)
{
    uint64_t x = 0;
    for (size_t i = 0; i < text.size && text.at[i] >= '0' && text.at[i] <= '9' && x < (uint64_t)1 << 58; i++)
        x = 10 * x + (uint64_t)(text.at[i] - '0');
    return x;
}
static gcpi_onnx_external gcpi_onnx_external_of(gcpi_excerpt tensor)
{
    gcpi_onnx_external e;
    gcpi_excerpt pair;
    memset(&e, 0, sizeof e);
    while (gcpi_wire_each(&tensor, GCPI_TENSOR_EXTERNAL, &pair)) {
        const gcpi_excerpt key = gcpi_wire_find(pair, 1), value = gcpi_wire_find(pair, 2);
        if (gcpi_excerpt_is(key, "location")) e.location = value;
        if (gcpi_excerpt_is(key, "offset")) e.offset = gcpi_excerpt_number(value);
        if (gcpi_excerpt_is(key, "length")) e.length = gcpi_excerpt_number(value), e.has_length = 1;
    }
    return e;
}
static int gcpi_onnx_external_read(gcpi_onnx *m, gcpi_disk_file *s, const char *folder, gcpi_onnx_data *d)
{
    const gcpi_onnx_external e = gcpi_onnx_external_of(d->message);
    const size_t size = d->count * gcpi_onnx_type_size(d->type);
    char name[80], location[200], path[GCPI_PATH];
    gcpi_excerpt_text(d->name, name, sizeof name);
    gcpi_excerpt_text(e.location, location, sizeof location);
    if (!folder)
        return gcpi_wrong(s, GCP_E_CONTENTS, "the elements of '%s' lie in another file, '%s': .folder says where it is",
                          name, location);
    if (!gcpi_onnx_path_stays(e.location) || e.location.size >= sizeof location)
        return gcpi_wrong(s, GCP_E_CONTENTS, "'%s' lies in '%s', which is no file of the folder", name, location);
    if (e.has_length && e.length != size)
        return gcpi_wrong(s, GCP_E_CONTENTS, "'%s' has %llu bytes in '%s', expected %zu", name,
                          (unsigned long long)e.length, location, size);
    if (snprintf(path, sizeof path, "%s/%s", folder, location) >= (int)sizeof path)
        return gcpi_wrong(s, GCP_E_FILE, "the path of '%s' is too long", location);
    unsigned char *at = (unsigned char *)gcp_arena_push(m->arena, 1, 16, (ptrdiff_t)size);
    if (!at && size)
        return gcpi_wrong(s, GCP_E_NOMEM, "'%s' takes %zu bytes of the arena, which has %td left", name, size,
                          m->arena->size - m->arena->used - m->arena->scratch);
    gcpi_disk_file beside = gcpi_disk_of(s->files, path, s->at, s->call);
    beside.text = s->text;
    if (gcpi_disk_open(&beside) && gcpi_disk_skip(&beside, e.offset)) gcpi_disk_read(&beside, at, size);
    gcpi_disk_close(&beside);
    s->failed |= beside.failed;
    d->raw = gcpi_excerpt_of(at, size);
    return !s->failed;
}

/* Reads the data of an initialiser or a Constant. Returns its index; -1: an error. */
static int gcpi_onnx_data_new(gcpi_onnx *m, gcpi_disk_file *s, gcpi_excerpt message, gcpi_excerpt name,
                              const char *folder)
{
    char text[80];
    gcpi_onnx_data *d = &m->data[m->data_count];
    const char *wrong = gcpi_onnx_data_parse(message, d);
    d->name = name;
    gcpi_excerpt_text(name, text, sizeof text);
    if (!wrong && gcpi_wire_integer(message, GCPI_TENSOR_LOCATION, 0) == 1 && !gcpi_onnx_external_read(m, s, folder, d))
        return -1;
    if (!wrong && !gcpi_onnx_data_whole(d)) wrong = "its elements are not as many as its shape says";
    if (!wrong) return m->data_count++;
    gcpi_wrong(s, GCP_E_CONTENTS, "tensor '%s': %s", text, wrong);
    return -1;
}
static int gcpi_onnx_initializers(gcpi_onnx *m, gcpi_disk_file *s, const char *folder)
{
    gcpi_excerpt rest = m->graph, message;
    while (gcpi_wire_each(&rest, GCPI_GRAPH_INITIALIZER, &message)) {
        const gcpi_excerpt name = gcpi_wire_find(message, GCPI_TENSOR_NAME);
        const int v = gcpi_onnx_define(m, s, name, "initialiser"),
                  data = v ? gcpi_onnx_data_new(m, s, message, name, folder) : -1;
        if (data < 0) return 0;
        m->values[v].data = data;
    }
    m->initializers = m->data_count;
    return !gcpi_wire_count(m->graph, GCPI_GRAPH_SPARSE) ||
           gcpi_wrong(s, GCP_E_CONTENTS, "sparse initialisers are not read");
}
/* An input that is an initialiser, too, is that (as before IR 4). */
static int gcpi_onnx_inputs(gcpi_onnx *m, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->graph, message;
    while (gcpi_wire_each(&rest, GCPI_GRAPH_INPUT, &message)) {
        const gcpi_excerpt name = gcpi_wire_find(message, 1);
        const int known = gcpi_onnx_find(m, name);
        if (known && m->values[known].data >= 0) continue;
        const int v = gcpi_onnx_define(m, s, name, "input");
        if (!v) return 0;
        m->input_types[m->input_count] = gcpi_wire_find(message, 2);
        m->inputs[m->input_count++] = v;
    }
    return 1;
}
static int gcpi_onnx_node_new(gcpi_onnx *m, gcpi_disk_file *s, gcpi_excerpt message, const char *folder)
{
    gcpi_onnx_node *n = &m->nodes[m->node_count];
    const gcpi_excerpt domain = gcpi_wire_find(message, GCPI_NODE_DOMAIN);
    gcpi_excerpt rest = message, name;
    char text[80], op[40];
    n->message = message;
    n->name = gcpi_wire_find(message, GCPI_NODE_NAME);
    n->op = gcpi_wire_find(message, GCPI_NODE_OP);
    n->foreign = domain.size && !gcpi_excerpt_is(domain, "ai.onnx");
    gcpi_excerpt_text(n->op, op, sizeof op);
    n->input = m->edge_count;
    while (gcpi_wire_each(&rest, GCPI_NODE_INPUT, &name)) {
        const int v = gcpi_onnx_find(m, name);
        if (!v && name.size)
            return gcpi_wrong(s, GCP_E_CONTENTS, "node %d (%s) reads '%s', which nothing before it makes",
                              m->node_count, op, gcpi_excerpt_text(name, text, sizeof text));
        m->edges[m->edge_count++] = v;
        n->inputs++;
    }
    n->output = m->edge_count;
    for (rest = message; gcpi_wire_each(&rest, GCPI_NODE_OUTPUT, &name); n->outputs++) {
        const int v = name.size ? gcpi_onnx_define(m, s, name, "output") : 0;
        if (!v && name.size) return 0;
        if (v) m->values[v].node = m->node_count;
        m->edges[m->edge_count++] = v;
    }
    const gcpi_excerpt value = gcpi_wire_find(gcpi_onnx_attribute(n, "value"), GCPI_ATTRIBUTE_T);
    if (!n->foreign && gcpi_excerpt_is(n->op, "Constant") && n->outputs && value.size) {
        gcpi_onnx_value *out = gcpi_onnx_out(m, n, 0);
        if (out) out->data = gcpi_onnx_data_new(m, s, value, out->name, folder);
        if (out && out->data < 0) return 0;
    }
    m->node_count++;
    return 1;
}
static int gcpi_onnx_nodes(gcpi_onnx *m, gcpi_disk_file *s, const char *folder)
{
    gcpi_excerpt rest = m->graph, message;
    while (gcpi_wire_each(&rest, GCPI_GRAPH_NODE, &message)) {
        if (!gcpi_onnx_node_new(m, s, message, folder)) return 0;
    }
    return 1;
}
static int gcpi_onnx_outputs(gcpi_onnx *m, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->graph, message;
    char text[80];
    while (gcpi_wire_each(&rest, GCPI_GRAPH_OUTPUT, &message)) {
        const gcpi_excerpt name = gcpi_wire_find(message, 1);
        const int v = gcpi_onnx_find(m, name);
        if (!v || !gcpi_wire_find(message, 2).size)
            return gcpi_wrong(s, GCP_E_CONTENTS, "nothing makes the output '%s', or it has no type",
                              gcpi_excerpt_text(name, text, sizeof text));
        m->outputs[m->output_count++] = v;
    }
    return m->output_count > 0 || gcpi_wrong(s, GCP_E_CONTENTS, "the graph has no output");
}

/* ---- the model ---- */

static int gcpi_onnx_versions(gcpi_onnx *m, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->file, import;
    if (!m->file.size || !gcpi_onnx_whole(m->file, GCPI_KIND_MODEL, 0))
        return gcpi_wrong(s, GCP_E_CONTENTS,
                          "no ONNX model: cut off, or its bytes are no messages of Protocol Buffers");
    m->ir = (int)gcpi_wire_integer(m->file, GCPI_MODEL_IR, 0);
    m->graph = gcpi_wire_find(m->file, GCPI_MODEL_GRAPH);
    while (gcpi_wire_each(&rest, GCPI_MODEL_OPSETS, &import)) {
        const gcpi_excerpt domain = gcpi_wire_find(import, 1);
        if (!domain.size || gcpi_excerpt_is(domain, "ai.onnx")) m->opset = (int)gcpi_wire_integer(import, 2, 0);
    }
    if (!m->graph.size || m->ir < GCPI_ONNX_IR)
        return gcpi_wrong(s, GCP_E_CONTENTS, "no ONNX model: no graph, or an IR version below %d", GCPI_ONNX_IR);
    if (gcpi_wire_count(m->file, GCPI_MODEL_GRAPH) > 1) return gcpi_wrong(s, GCP_E_CONTENTS, "two graphs");
    return (m->opset >= GCP_ONNX_OLDEST && m->opset <= GCP_ONNX_NEWEST) ||
           gcpi_wrong(s, GCP_E_CONTENTS, "opset %d; %d to %d are read", m->opset, GCP_ONNX_OLDEST, GCP_ONNX_NEWEST);
}
/* The file's bytes: the user's, or read into the arena. */
static int gcpi_onnx_bytes(gcpi_onnx *m, gcpi_disk_file *s, const gcp_onnx_open_opts *o)
{
    if (o->data) {
        m->file = gcpi_excerpt_of(o->data, o->size);
        return 1;
    }
    if (!gcpi_disk_open(s)) return 0;
    unsigned char *at = s->size < PTRDIFF_MAX ? GCPI_NEW(m->arena, unsigned char, s->size) : NULL;
    if (!at)
        return gcpi_wrong(s, GCP_E_NOMEM,
                          "the file takes %llu bytes, and as a rule a tenth more; the arena has %td left",
                          (unsigned long long)s->size, m->arena->size - m->arena->used - m->arena->scratch);
    m->file = gcpi_excerpt_of(at, (size_t)s->size);
    return gcpi_disk_read(s, at, (size_t)s->size);
}
/* A file without initialisers of floats has its weights in Constants, as Paddle's exporter writes them. */
static int gcpi_onnx_weights_found(gcpi_onnx *m)
{
    int found = 0;
    for (int i = 0; i < m->initializers; i++) found |= gcpi_onnx_is_real(m->data[i].type) && m->data[i].count > 1;
    if (!found) m->initializers = m->data_count;
    return 1;
}
static int gcpi_onnx_graph(gcpi_onnx *m, gcpi_disk_file *s, const gcp_onnx_open_opts *o)
{
    const gcpi_onnx_counts c = gcpi_onnx_count(m->graph);
    size_t bytes;
    if (c.nodes > GCPI_ONNX_NODES || c.edges > GCPI_ONNX_NODES || c.data > GCPI_ONNX_NODES ||
        c.inputs > GCPI_ONNX_NODES)
        return gcpi_wrong(s, GCP_E_CONTENTS, "too many nodes or names; at most %d", GCPI_ONNX_NODES);
    if (!gcpi_onnx_arrays(m, c, &bytes))
        return gcpi_wrong(s, GCP_E_NOMEM, "the graph takes %zu bytes of the arena beside the file's %zu", bytes,
                          m->file.size);
    return gcpi_onnx_initializers(m, s, o->folder) && gcpi_onnx_inputs(m, s) && gcpi_onnx_nodes(m, s, o->folder) &&
           gcpi_onnx_outputs(m, s) && gcpi_onnx_weights_found(m);
}

/* What a tape must hold: a node is two ops as a rule; names take 96 bytes an op. */
static int gcpi_onnx_ops(const gcpi_onnx *m)
{
    size_t names = 0;
    for (int i = 0; i < m->initializers; i++) names += GCPI_MIN(m->data[i].name.size, (size_t)200);
    return 2 * m->node_count + m->data_count + (int)(names / 96) + 64;
}
/* The folder that a file lies in; NULL: too long. */
static const char *gcpi_onnx_folder(const char *path, char *text, size_t size)
{
    const char *slash = strrchr(path, '/'), *other = strrchr(path, '\\');
    if (other && (!slash || other > slash)) slash = other;
    if (!slash) return ".";
    const size_t length = slash == path ? 1 : (size_t)(slash - path);
    if (length >= size) return NULL;
    memcpy(text, path, length);
    text[length] = 0;
    return text;
}
GCPI_DEF gcp_onnx gcp_onnx_open_at(gcp_arena *arena, const char *path, gcp_onnx_open_opts o)
{
    gcp_onnx model;
    memset(&model, 0, sizeof model);
    gcpi_disk_file s = gcpi_disk_of(o.files, path ? path : o.data ? "(bytes)" : NULL, o.at, "gcp_onnx_open");
    s.text = model.error;
    if (!arena || !arena->base) {
        gcpi_wrong(&s, GCP_E_ARGUMENT, "no arena");
        return model;
    }
    const ptrdiff_t before = arena->used;
    gcpi_onnx *m = GCPI_NEW(arena, gcpi_onnx, 1);
    if (!m) {
        gcpi_wrong(&s, GCP_E_NOMEM, "an arena of %td bytes is too small", arena->size);
        return model;
    }
    m->arena = arena;
    char folder[GCPI_PATH];
    if (!o.folder && !o.data && path) o.folder = gcpi_onnx_folder(path, folder, sizeof folder);
    const int ok = gcpi_onnx_bytes(m, &s, &o) && gcpi_onnx_versions(m, &s) && gcpi_onnx_graph(m, &s, &o);
    gcpi_disk_close(&s);
    if (!ok) {
        arena->used = before;
        return model;
    }
    m->mark = arena->used;
    model.core = m;
    model.ir = m->ir;
    model.opset = m->opset;
    model.nodes = m->node_count;
    model.weights = m->initializers;
    model.ops = gcpi_onnx_ops(m);
    return model;
}
