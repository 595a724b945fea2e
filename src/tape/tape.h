/* Recording: names, inputs, parameters, segments, ops. Nothing is computed here. Names are nodes of a tree; their text
   is written on demand. */

typedef struct gcpi_capacities {
    int ops, tensors, edges, names, segments, parameters;
    ptrdiff_t text;
} gcpi_capacities;

static gcpi_capacities gcpi_capacities_of(const gcp_tape_opts *o)
{
    gcpi_capacities c;
    c.ops = o->ops > 0 ? o->ops : 256;
    c.parameters = o->parameters > 0 ? o->parameters : 2 * c.ops + 16;
    c.tensors = (o->tensors > 0 ? o->tensors : 5 * c.ops + 16) + 1;
    c.segments = (o->segments > 0 ? o->segments : c.ops) + 1;
    c.edges = 4 * c.ops + GCP_MAX_INPUTS;
    c.names = c.ops + c.tensors + c.segments + 1;
    c.text = o->names > 0 ? o->names : 96 * (ptrdiff_t)c.ops + 1024;
    return c;
}

static int gcpi_tape_fits(const gcp_tape_opts *o)     /* gcpi_capacities_of counts in int */
{
    const int most = 1 << 24;
    return o->ops >= 0 && o->ops < most && o->tensors >= 0 && o->tensors < 4 * most && o->parameters >= 0 &&
           o->parameters < most && o->segments >= 0 && o->segments < most && o->names >= 0;
}

GCPI_DEF size_t gcp_tape_arena_at(gcp_tape_opts o)
{
    if (!gcpi_tape_fits(&o)) return SIZE_MAX;
    gcpi_capacities c = gcpi_capacities_of(&o);
    return sizeof(gcp_tape) + (size_t)c.ops * sizeof(gcpi_op) + (size_t)c.tensors * sizeof(gcpi_tensor) +
           (size_t)c.edges * sizeof(int) + (size_t)c.names * sizeof(gcpi_name) +
           (size_t)c.segments * sizeof(gcpi_segment) + (size_t)c.parameters * sizeof(gcpi_parameter) + (size_t)c.text +
           8 * 64;
}

static int gcpi_tape_arrays(gcp_tape *t, gcp_arena *a, gcpi_capacities c)
{
    t->ops = GCPI_NEW(a, gcpi_op, c.ops);                         t->op_capacity = c.ops;
    t->tensors = GCPI_NEW(a, gcpi_tensor, c.tensors);             t->tensor_capacity = c.tensors;
    t->edges = GCPI_NEW(a, int, c.edges);                         t->edge_capacity = c.edges;
    t->names = GCPI_NEW(a, gcpi_name, c.names);                   t->name_capacity = c.names;
    t->segments = GCPI_NEW(a, gcpi_segment, c.segments);          t->segment_capacity = c.segments;
    t->parameters = GCPI_NEW(a, gcpi_parameter, c.parameters);    t->parameter_capacity = c.parameters;
    t->text = GCPI_NEW(a, char, c.text);                          t->text_capacity = c.text;
    return t->ops && t->tensors && t->edges && t->names && t->segments && t->parameters && t->text;
}

static void gcpi_tape_clear(gcp_tape *t)
{
    t->op_count = t->edge_count = t->open = 0;
    t->tensor_count = t->name_count = t->segment_count = 1;
    t->text_used = 0;
    memset(t->names, 0, (size_t)t->name_capacity * sizeof *t->names);
    t->names[0].label = "";
    memset(&t->segments[0], 0, sizeof t->segments[0]);
    for (int i = 0; i < t->parameter_count; i++) t->parameters[i].tensor = 0;
    gcpi_recorded(t);
}

GCPI_DEF gcp_tape *gcp_tape_make_at(gcp_arena *arena, gcp_tape_opts o)
{
    /* a tape that was given back by hand lies past what is used */
    if (arena && arena->tape && (const unsigned char *)arena->tape - arena->base < arena->used) return NULL;
    gcp_tape *t = GCPI_NEW(arena, gcp_tape, 1);
    if (!t) return NULL;
    arena->tape = t;
    t->arena = arena;
    t->generation = 1;
    t->seed = o.seed;
    if (!gcpi_tape_fits(&o))
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_tape_make",
                  ".ops = %d, .tensors = %d, .parameters = %d, .segments = %d, .names = %d; 0 is the default, the most "
                  "2^24 - 1 (.tensors 2^26 - 1)",
                  o.ops, o.tensors, o.parameters, o.segments, o.names);
    if (t->code || !gcpi_tape_arrays(t, arena, gcpi_capacities_of(&o))) {
        memset(&t->ops, 0, (size_t)((char *)&t->state - (char *)&t->ops));
        gcpi_fail(t, GCP_E_NOMEM, o.at, "gcp_tape_make",
                  "an arena of %td bytes is too small for %d ops, which take %zu bytes", arena->size,
                  o.ops > 0 ? o.ops : 256, gcp_tape_arena_at(o));
        return t;
    }
    gcpi_tape_clear(t);
    t->arena_mark = arena->used;
    return t;
}

GCPI_DEF void gcp_tape_reset(gcp_tape *t)
{
    if (!t || !t->ops || gcpi_in_feed(t, NULL, "gcp_tape_reset")) return;
    gcp_error_clear(t);
    if (!t->state) t->parameter_count = 0, t->text_mark = 0;           /* they have no values that could be kept */
    gcpi_tape_clear(t);
    t->generation++;
    t->arena->used = t->arena_mark;
    t->runner = t->toucher = t->summing = 0;
    t->leases = NULL;
    memset(t->bindings, 0, sizeof t->bindings);
    t->layout++;
}

/* Names. */
static const char *gcpi_keep_text(gcp_tape *t, const char *s)     /* a copy that lives until the reset; NULL if full */
{
    ptrdiff_t n = (ptrdiff_t)strlen(s) + 1;
    if (n > t->text_capacity - t->text_mark - t->text_used) return NULL;
    char *copy = t->text + t->text_used;
    t->text_used += n;
    return (const char *)memcpy(copy, s, (size_t)n);
}

static int gcpi_name_find(gcp_tape *t, int parent, const char *label, uint64_t hash)     /* the latest, or 0 */
{
    for (int i = *gcpi_name_bucket(t, hash); i > 0; i = t->names[i].before)
        if (t->names[i].hash == hash && t->names[i].parent == parent && !strcmp(t->names[i].label, label)) return i;
    return 0;
}

/* A child of parent: label[0], label[1], ... or, where the user named it, that name, which must be new there. */
static int gcpi_name_new(gcp_tape *t, int parent, const char *label, const char *named, gcp_at at)
{
    const char *text = named ? gcpi_keep_text(t, named) : label;
    if (!text || t->name_count == t->name_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, label, "the tape's %td bytes for names are full (.names)", t->text_capacity);
        return 0;
    }
    uint64_t hash = gcpi_hash(text) ^ (uint64_t)parent * 0x9e3779b97f4a7c15u;
    int same = gcpi_name_find(t, parent, text, hash);
    const int taken = named && same;
    if (taken || !*text || strpbrk(text, " /#[\n\t\r")) {
        gcpi_fail(t, GCP_E_NAME, at, label,
                  taken ? "the name '%s' is used twice in its segment"
                        : "the name '%s' is empty or has a space, '/', '[' or '#'",
                  text);
        return 0;
    }
    gcpi_name *n = &t->names[t->name_count];
    n->parent = parent; n->label = text; n->hash = hash; n->named = named != NULL;
    n->index = same ? t->names[same].index + 1 : 0;
    n->before = *gcpi_name_bucket(t, hash);
    *gcpi_name_bucket(t, hash) = t->name_count;
    return t->name_count++;
}

static int gcpi_name_text(const gcp_tape *t, int name, char *buffer, size_t size)
{
    if (!name || !size) { if (size) buffer[0] = 0; return 0; }
    const gcpi_name *x = &t->names[name];
    int n = gcpi_name_text(t, x->parent, buffer, size);
    if (n >= (int)size - 1) return n;
    int more = x->named ? snprintf(buffer + n, size - (size_t)n, "%s%s", n ? "/" : "", x->label)
                        : snprintf(buffer + n, size - (size_t)n, "%s%s[%d]", n ? "/" : "", x->label, x->index);
    return more < 0 ? n : GCPI_MIN(n + more, (int)size - 1);
}

GCPI_DEF const char *gcp_name(gcp_tensor x, char *buffer, size_t size)
{
    const gcpi_tensor *e = gcpi_get(x);
    if (size) buffer[0] = 0;
    if (e) gcpi_name_text(x.tape, e->name, buffer, size);
    return buffer;
}

GCPI_DEF gcp_shape gcp_shape_of(gcp_tensor x)
{
    const gcpi_tensor *e = gcpi_get(x);
    gcp_shape none;
    memset(&none, 0, sizeof none);
    return e ? e->shape : none;
}

GCPI_DEF size_t gcp_elements(gcp_tensor x) { const gcpi_tensor *e = gcpi_get(x); return e ? gcpi_count(e->shape) : 0; }

/* Tensors. */
static int gcpi_tensor_new(gcp_tape *t, int kind, gcp_dtype dtype, gcp_shape shape, int name, gcp_at at,
                           const char *what)
{
    if (t->tensor_count == t->tensor_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, what, "the tape's %d tensors are full (.tensors)", t->tensor_capacity - 1);
        return 0;
    }
    gcpi_tensor *e = &t->tensors[t->tensor_count];
    memset(e, 0, sizeof *e);
    e->kind = kind; e->dtype = dtype; e->shape = shape; e->name = name;
    e->producer = e->parameter = -1;
    return t->tensor_count++;
}

static gcp_tensor gcpi_input_of(gcp_tape *t, gcp_dtype dtype, const char *name, gcp_shape raw, gcp_at at)
{
    gcp_shape shape;
    char wrong[160];
    if (!t || t->code) return gcpi_nil(t);
    if (!gcpi_shape_normal(raw, &shape)) {
        gcpi_fail(t, GCP_E_SHAPE, at, "input", "'%s' %s", name ? name : "", gcpi_shape_wrong(raw, wrong, sizeof wrong));
        return gcpi_nil(t);
    }
    int node = gcpi_name_new(t, 0, "input", name ? name : "", at);
    int id = node ? gcpi_tensor_new(t, GCPI_INPUT, dtype, shape, node, at, "input") : 0;
    if (id) gcpi_recorded(t);
    return id ? gcpi_handle(t, id) : gcpi_nil(t);
}

/* Checks a handle for a call: 0 with an error, or silently on nil after an earlier error. */
static int gcpi_usable(gcp_tape *t, gcp_tensor x, gcp_at at, const char *what)
{
    if (!t || t->code) return 0;
    if (gcp_is_nil(x)) { gcpi_fail(t, GCP_E_ARGUMENT, at, what, "a nil tensor"); return 0; }
    if (x.tape != t) { gcpi_fail(t, GCP_E_FOREIGN, at, what, "a tensor of another tape"); return 0; }
    if (!gcpi_get(x)) { gcpi_fail(t, GCP_E_STALE, at, what, "a tensor from before the tape's reset"); return 0; }
    return 1;
}

static gcp_tensor gcpi_flag(gcp_tensor x, int kinds, int flag, gcp_at at, const char *what, const char *kind_text)
{
    if (!gcpi_usable(x.tape, x, at, what)) return gcpi_nil(x.tape);
    gcpi_tensor *e = gcpi_get(x);
    if (!(kinds & 1 << e->kind) || (flag == GCPI_WANTED && e->dtype != GCP_DTYPE_REAL)) {
        char name[96];
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "'%s' is not %s", gcp_name(x, name, sizeof name), kind_text);
        return gcpi_nil(x.tape);
    }
    e->flags |= flag;
    return x;
}

GCPI_DEF gcp_tensor gcp_want_grad_at(gcp_tensor x, gcp_at at)
{
    return gcpi_flag(x, 1 << GCPI_INPUT, GCPI_WANTED, at, "gcp_want_grad", "a real input");
}

static gcp_tensor gcpi_input(gcp_tape *t, gcp_dtype dtype, const char *name, gcp_shape shape, const gcp_input_opts *o)
{
    if (o->want_grad && dtype != GCP_DTYPE_REAL)
        gcpi_fail(t, GCP_E_DTYPE, o->at, "input", "'%s' with .want_grad: whole numbers have no gradient",
                  name ? name : "");
    gcp_tensor x = gcpi_input_of(t, dtype, name, shape, o->at);
    return o->want_grad && !gcp_is_nil(x) ? gcp_want_grad_at(x, o->at) : x;
}
GCPI_DEF gcp_tensor gcp_input_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_input_opts o)
{
    return gcpi_input(t, GCP_DTYPE_REAL, name, shape, &o);
}
GCPI_DEF gcp_tensor gcp_labels_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_input_opts o)
{
    return gcpi_input(t, GCP_DTYPE_I32, name, shape, &o);
}
GCPI_DEF gcp_tensor gcp_ids_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_input_opts o)
{
    return gcpi_input(t, GCP_DTYPE_I32, name, shape, &o);
}

GCPI_DEF gcp_tensor gcp_freeze_at(gcp_tensor x, gcp_at at)
{
    return gcpi_flag(x, 1 << GCPI_PARAMETER, GCPI_FROZEN, at, "gcp_freeze", "a parameter");
}

GCPI_DEF gcp_tensor gcp_keep_at(gcp_tensor x, gcp_at at)
{
    return gcpi_flag(x, 1 << GCPI_ACTIVATION | 1 << GCPI_INPUT, GCPI_KEPT, at, "gcp_keep", "an activation");
}

/* Parameters outlive a reset, so their paths are copied to the back of the text, which a reset keeps. */
static const char *gcpi_keep_path(gcp_tape *t, const char *path)
{
    ptrdiff_t n = (ptrdiff_t)strlen(path) + 1;
    if (n > t->text_capacity - t->text_mark - t->text_used) return NULL;
    t->text_mark += n;
    return (const char *)memcpy(t->text + t->text_capacity - t->text_mark, path, (size_t)n);
}

static int gcpi_parameter_find(const gcp_tape *t, const char *path, uint64_t hash)
{
    for (int i = 0; i < t->parameter_count; i++)
        if (t->parameters[i].hash == hash && !strcmp(t->parameters[i].path, path)) return i;
    return -1;
}

/* A new parameter, or -1 with an error: once the state has its memory, there is none. */
static int gcpi_parameter_new(gcp_tape *t, const char *path, uint64_t hash, int kind, gcp_shape shape,
                              const gcp_param_opts *o)
{
    const gcp_at at = o->at;
    if (t->state) {
        gcpi_fail(t, GCP_E_PARAMETERS, at, "parameter",
                  "'%s' is new, but the parameters were bound to memory before; record another network on another tape",
                  path);
        return -1;
    }
    if (t->parameter_count == t->parameter_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, "parameter", "the tape's %d parameters are full (.parameters)",
                  t->parameter_capacity);
        return -1;
    }
    const char *copy = gcpi_keep_path(t, path);
    if (!copy) {
        gcpi_fail(t, GCP_E_CAPACITY, at, "parameter", "the tape's %td bytes for names are full (.names)",
                  t->text_capacity);
        return -1;
    }
    gcpi_parameter *p = &t->parameters[t->parameter_count];
    p->path = copy; p->hash = hash;
    p->kind = kind; p->shape = shape;
    p->init = o->init; p->deviation = o->std;
    p->fan_in = o->fan_in; p->fan_out = o->fan_out;
    return t->parameter_count++;
}

static int gcpi_same_shape(gcp_shape a, gcp_shape b) { return !memcmp(a.d, b.d, sizeof a.d); }

static gcp_tensor gcpi_parameter_of(gcp_tape *t, int kind, int parent, const char *name, gcp_shape raw,
                                    gcp_param_opts o)
{
    gcp_shape shape;
    char path[256], was[64], is[64], wrong[160];
    if (!t || t->code) return gcpi_nil(t);
    if (!gcpi_shape_normal(raw, &shape)) {
        gcpi_fail(t, GCP_E_SHAPE, o.at, "parameter", "'%s' %s", name ? name : "",
                  gcpi_shape_wrong(raw, wrong, sizeof wrong));
        return gcpi_nil(t);
    }
    if ((int)o.init < 0 || o.init > GCP_INIT_ONES) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "parameter", "'%s' with .init = %d; a gcp_init", name ? name : "",
                  (int)o.init);
        return gcpi_nil(t);
    }
    int node = gcpi_name_new(t, parent, "parameter", name ? name : "", o.at);
    int id = node ? gcpi_tensor_new(t, kind, GCP_DTYPE_REAL, shape, node, o.at, "parameter") : 0;
    if (!id) return gcpi_nil(t);
    if (gcpi_name_text(t, node, path, sizeof path) >= (int)sizeof path - 1) {
        gcpi_fail(t, GCP_E_NAME, o.at, "parameter", "a path of over %d characters", (int)sizeof path - 2);
        return gcpi_nil(t);
    }
    uint64_t hash = gcpi_hash(path);
    int index = gcpi_parameter_find(t, path, hash);
    if (index < 0) index = gcpi_parameter_new(t, path, hash, kind, shape, &o);
    if (index < 0) return gcpi_nil(t);
    gcpi_parameter *p = &t->parameters[index];
    if (!gcpi_same_shape(p->shape, shape) || p->kind != kind) {
        gcpi_fail(t, GCP_E_PARAMETERS, o.at, "parameter",
                  "'%s' was %s before the reset and is %s now; record another network on another tape", path,
                  gcpi_shape_text(p->shape, was, sizeof was), gcpi_shape_text(shape, is, sizeof is));
        return gcpi_nil(t);
    }
    p->tensor = id;
    t->tensors[id].parameter = index;
    return gcpi_handle(t, id);
}

GCPI_DEF gcp_tensor gcp_param_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_param_opts o)
{
    int bad = o.fan_in < 0 || o.fan_out < 0 || !(o.std == GCP_ZERO || o.std >= 0) || !gcpi_finite(o.std) ||
              (o.std != 0 && o.init != GCP_INIT_DEFAULT);
    if (t && bad)
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "parameter",
                  "'%s' with .fan_in = %d, .fan_out = %d, .std = %g; at least 0, and .std or .init", name ? name : "",
                  o.fan_in, o.fan_out, o.std);
    if (o.init == GCP_INIT_DEFAULT && (shape.rank == 1 || o.std == GCP_ZERO))
        o.init = o.std > 0 ? GCP_INIT_HE : GCP_INIT_ZEROS;
    gcp_tensor x =
        gcpi_parameter_of(t, GCPI_PARAMETER, t && t->segments ? t->segments[t->open].name : 0, name, shape, o);
    if (x.id) gcpi_recorded(t);
    return x;
}

static gcp_tensor gcpi_nth(gcp_tape *t, int kind, int index)
{
    for (int i = 0, seen = 0; t && i < t->parameter_count; i++)
        if (t->parameters[i].kind == kind && seen++ == index) return gcpi_handle(t, t->parameters[i].tensor);
    return gcpi_nil(t);
}
GCPI_DEF gcp_tensor gcp_nth_parameter(gcp_tape *t, int index) { return gcpi_nth(t, GCPI_PARAMETER, index); }
GCPI_DEF gcp_tensor gcp_nth_statistic(gcp_tape *t, int index) { return gcpi_nth(t, GCPI_STATISTIC, index); }

GCPI_DEF gcp_tensor gcp_find(gcp_tape *t, const char *path)
{
    char name[256];
    for (int i = 1; t && path && i < t->tensor_count; i++) {
        gcpi_name_text(t, t->tensors[i].name, name, sizeof name);
        if (t->tensors[i].kind != GCPI_ACTIVATION && !strcmp(name, path)) return gcpi_handle(t, i);
    }
    return gcpi_nil(t);
}

/* Segments. */
GCPI_DEF int gcp_segment_begin(gcp_tape *t, const char *label, gcp_segment_opts o)
{
    if (!t || t->code) return 0;
    if (t->segment_count == t->segment_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, o.at, "segment", "the tape's %d segments are full (.segments)",
                  t->segment_capacity - 1);
        return 0;
    }
    int name = gcpi_name_new(t, t->segments[t->open].name, label, NULL, o.at);
    if (!name) return 0;
    gcpi_segment *s = &t->segments[t->segment_count];
    memset(s, 0, sizeof *s);
    const gcpi_segment *around = &t->segments[t->open];
    s->parent = t->open; s->name = name; s->at = o.at; s->open = 1;
    s->outer = t->open ? around->outer : t->segment_count;
    s->keep = o.keep | around->keep;
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
    if (!op->row->shape(&call)) { gcpi_fail(t, call.code, op->at, op->row->name, "%s", message); return 0; }
    for (int j = 0; j < op->outputs; j++) {
        gcp_shape raw = out[j];
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
    t->edge_count += count;
    t->op_count++;
    gcpi_recorded(t);
    return t->op_count - 1;
}
