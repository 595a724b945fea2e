/* Inputs and parameters; marks on tensors. */

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
    const int top = name && *name == '/';
    const int parent = t && t->segments && !top ? t->segments[t->open].name : 0;
    gcp_tensor x = gcpi_parameter_of(t, GCPI_PARAMETER, parent, name ? name + top : NULL, shape, o);
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
