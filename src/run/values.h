/* Values in and out: a plan's inputs, results, gradients. */

/* n values between the user's reals and a run of rounded ones of this width, some at a time. */
static void gcpi_copy_rounded_row(const gcpi_plan *core, unsigned char *data, int width, gcp_real *user, size_t n,
                                  int to_user)
{
    enum { SOME = 4096 };
    gcp_real some[SOME];
    gcpi_half halves[SOME];
    const gcpi_halves *h = gcpi_halves_of(core->p.target.isa);
    const int half = width == (int)sizeof *halves;
    void *mine = half ? (void *)halves : (void *)some;
    for (size_t k, i = 0; i < n; i += k) {
        k = GCPI_MIN(n - i, (size_t)SOME);
        if (to_user) gcpi_bytes_copy(&core->p.target, mine, data + i * (size_t)width, k * (size_t)width);
        else h->narrow(halves, 0, user + i, 0, 1, (ptrdiff_t)k);
        if (half || !to_user) h->widen(some, 0, halves, 0, 1, (ptrdiff_t)k);
        if (to_user) memcpy(user + i, some, k * sizeof *some);
        else gcpi_bytes_copy(&core->p.target, data + i * (size_t)width, mine, k * (size_t)width);
    }
}

/* The same where the user's reals are a device's, too: it copies them itself. */
static void gcpi_copy_there(const gcpi_plan *core, int item, unsigned char *data, gcp_real *user, gcp_shape some,
                            ptrdiff_t pitch, int to_user)
{
    const gcp_target *target = &core->p.target;
    unsigned char waits;
    gcp_view in, out;
    gcp_call call;
    memset(&call, 0, sizeof call);
    memset(&in, 0, sizeof in);
    in.shape = some; in.dtype = GCP_DTYPE_REAL; in.data = user; in.pitch = some.d[3];
    out = in;
    out.dtype = gcpi_item_dtype(&core->p, item); out.data = data; out.pitch = pitch;
    call.in = to_user ? &out : &in; call.out = to_user ? &in : &out;
    call.inputs = call.outputs = 1; call.row = GCPI_ROW_COPY; call.store = core->p.store; call.target = target;
    gcpi_row_for(target, NULL, GCPI_ROW_COPY)->forward(&call);
    call.row = GCP_ROW_ROUND;
    if (!to_user && out.dtype == GCP_DTYPE_REAL) gcpi_row_for(target, NULL, GCP_ROW_ROUND)->forward(&call);
    gcpi_bytes_copy(target, &waits, data, 1);
}
/* Rows of an item of rounded values. A device need not wait for each piece that it is given. */
static void gcpi_copy_rounded(const gcpi_plan *core, const gcpi_item *x, unsigned char *data, gcp_real *user,
                              size_t elements, size_t rows, int to_user)
{
    const gcp_device *device = core->p.target.device;
    void (*behind)(void *context, int on) = device && !to_user ? device->behind : NULL;
    if (behind) behind(core->p.target.context, 1);
    for (size_t r = 0; r < rows; r++)
        gcpi_copy_rounded_row(core, data + r * gcpi_item_pitch(x), x->width, user + r * elements, elements, to_user);
    if (behind) behind(core->p.target.context, 0);
}

/* Copies samples [first, first + count) of a tensor between the user's dense array, which begins with the first of
   them, and their place in the slab or the state. Bits are copied as a whole alone. */
static void gcpi_copy_samples(const gcpi_plan *core, int item, unsigned char *user, int first, int count, int to_user)
{
    const gcpi_item *x = &core->p.items[item];
    const gcpi_tensor *e = &core->p.tape->tensors[x->tensor];
    const int dense = !x->row || x->pitch == e->shape.d[3] || e->shape.rank == 1;
    gcp_shape some = gcpi_by_samples(e->shape), before = some;
    some.d[0] = count; before.d[0] = first;
    const gcp_dtype type = gcpi_item_dtype(&core->p, item);
    const size_t rows = dense ? 1 : gcpi_pixels(some), row = gcpi_item_pitch(x),
                 elements = dense ? gcpi_count(some) : (size_t)e->shape.d[3], width = gcpi_row_bytes(type, elements);
    unsigned char *data = (unsigned char *)gcpi_item_data(core, item, core->where[item]) +
                          (dense ? gcpi_row_bytes(type, gcpi_count(before)) : gcpi_pixels(before) * row);
    const gcp_device *device = core->p.target.device;
    if (x->rounds && device && device->holds && device->holds(core->p.target.context, user))
        gcpi_copy_there(core, item, data, (gcp_real *)(void *)user, some, dense ? some.d[3] : x->pitch, to_user);
    else if (x->rounds) gcpi_copy_rounded(core, x, data, (gcp_real *)(void *)user, elements, rows, to_user);
    else if (to_user) gcpi_rows_copy(&core->p.target, user, width, data, row, width, rows);
    else gcpi_rows_copy(&core->p.target, data, row, user, width, width, rows);
}
/* The whole tensor. */
static gcp_code gcpi_copy_dense(const gcpi_plan *core, int item, unsigned char *user, int to_user, gcp_at at)
{
    const gcp_shape shape = gcpi_by_samples(core->p.tape->tensors[core->p.items[item].tensor].shape);
    gcpi_copy_samples(core, item, user, 0, shape.d[0], to_user);
    return gcpi_trouble(core->p.tape, &core->p.target, at, to_user ? "gcp_read" : "gcp_write") ? core->p.tape->code
                                                                                               : GCP_OK;
}

/* A call on a value. feeds: it writes, which .feed may do to its own plan. */
typedef struct gcpi_access { gcp_plan *plan; gcp_tensor x; gcp_at at; const char *what; int feeds; } gcpi_access;

static gcp_code gcpi_access_fail(const gcpi_access *a, gcp_code code, const char *text, const char *since)
{
    char name[96];
    gcpi_fail(a->plan->tape, code, a->at, a->what, "'%s' %s%s", gcp_name(a->x, name, sizeof name), text, since);
    return code;
}

static gcp_code gcpi_access_check(const gcpi_access *a)
{
    gcp_code code = gcpi_usable_check(a->plan, a->at, a->what, a->feeds);
    if (code) return code;
    if (!gcpi_usable(a->plan->tape, a->x, a->at, a->what)) return a->plan->tape->code;
    return a->x.id < a->plan->core->p.tensors
               ? GCP_OK
               : gcpi_access_fail(a, GCP_E_ARGUMENT, "was recorded after the plan was made", "");
}

static gcpi_access gcpi_access_of(gcp_plan *plan, gcp_tensor x, gcp_at at, const char *what, int feeds)
{
    gcpi_access a;
    a.plan = plan; a.x = x; a.at = at; a.what = what; a.feeds = feeds;
    return a;
}

/* The k-th forward op that reads this item, and as which of its inputs; NULL: there are no more. */
static const gcpi_op *gcpi_reading_op(const gcpi_problem *p, int item, int k, int *input)
{
    for (int f = 0; f < p->forward; f++)
        for (int o = p->tasks[f].operands; o < p->tasks[f].operands + p->tasks[f].count; o++) {
            if (p->operands[o].item != item || p->operands[o].mode != GCPI_READ || k-- > 0) continue;
            *input = p->operands[o].role - GCPI_ROLE_IN;
            return &p->tape->ops[p->tasks[f].op];
        }
    return NULL;
}

/* Each label must be in the range of each op that reads it, or be the label that the op ignores. */
static gcp_code gcpi_labels_check(const gcpi_access *a, const int32_t *labels, size_t n)       /* the first n */
{
    gcp_tape *t = a->plan->tape;
    int input = 0;
    const gcpi_op *op;
    for (int k = 0; (op = gcpi_reading_op(&a->plan->core->p, a->x.id, k, &input)) != NULL; k++) {
        gcpi_label_range range = gcpi_label_range_of(t, op, input);
        for (size_t i = 0; range.count && i < n; i++) {
            if (gcpi_label_ok(&range, labels[i])) continue;
            char name[96], reader[128], ignored[48] = "";
            gcpi_name_text(t, op->name, reader, sizeof reader);
            if (range.ignores) snprintf(ignored, sizeof ignored, ", or the ignored %d", range.ignore);
            else if (gcpi_facts_of(op).leaves_out)
                snprintf(ignored, sizeof ignored, " (.ignore: a label that does not count)");
            gcpi_fail(t, GCP_E_ARGUMENT, a->at, a->what, "element %zu of '%s' is %d; %s (%s:%d) reads 0 to %d%s", i,
                      gcp_name(a->x, name, sizeof name), (int)labels[i], reader, gcpi_basename(op->at.file),
                      op->at.line, range.count - 1, ignored);
            return GCP_E_ARGUMENT;
        }
    }
    return GCP_OK;
}

/* The label that losses reading x leave out of their mean. 0: none, an embedding reads x. -1: they differ. */
static int gcpi_ignored_label(const gcpi_plan *core, int x, int32_t *label)
{
    const gcpi_op *op;
    int input = 0, found = 0;
    for (int k = 0; (op = gcpi_reading_op(&core->p, x, k, &input)) != NULL; k++) {
        const int one = gcpi_facts_of(op).leaves_out;
        const int32_t ignored = gcpi_label_range_of(core->p.tape, op, input).ignore;
        if (k && (one != found || (one && ignored != *label))) return -1;
        found = one;
        *label = ignored;
    }
    return found;
}
/* Fills samples [given, all) of an input: with the ones given, again and again; labels with the ignored one. */
static void gcpi_write_rest(const gcpi_plan *core, int x, const unsigned char *data, int given, int all)
{
    enum { SOME = 1024 };
    const gcpi_tensor *e = &core->p.tape->tensors[x];
    int32_t label, some[SOME];
    const int labels = given < all && e->dtype == GCP_DTYPE_I32 && gcpi_ignored_label(core, x, &label) > 0;
    for (int i = 0; labels && i < SOME; i++) some[i] = label;
    if (labels) {
        const size_t each = gcpi_count(e->shape) / (size_t)all, end = each * (size_t)all;
        int32_t *at = (int32_t *)gcpi_item_data(core, x, core->where[x]);
        for (size_t i = each * (size_t)given, n; i < end; i += n) {
            n = GCPI_MIN(end - i, (size_t)SOME);
            gcpi_bytes_copy(&core->p.target, at + i, some, n * sizeof *some);
        }
        return;
    }
    for (int i = given, n; i < all; i += n) {
        n = GCPI_MIN(given, all - i);
        gcpi_copy_samples(core, x, (unsigned char *)(uintptr_t)data, i, n, 0);
    }
}

/* samples: how many of the input's are given. */
static gcp_code gcpi_write(const gcpi_access *a, const void *data, int samples)
{
    gcpi_plan *core = a->plan->core;
    const int x = a->x.id;
    const gcpi_tensor *e = &core->p.tape->tensors[x];
    unsigned char *from = (unsigned char *)(uintptr_t)data;
    const int all = gcpi_by_samples(e->shape).d[0];
    const size_t given = gcpi_count(e->shape) / (size_t)all * (size_t)samples;
    gcp_code code;
    if (core->where[x] < 0) return GCP_OK;           /* this plan does not read it */
    if (e->dtype == GCP_DTYPE_I32 && (code = gcpi_labels_check(a, (const int32_t *)data, given)) != GCP_OK) return code;
    gcpi_touch(core);
    gcpi_copy_samples(core, x, from, 0, samples, 0);
    gcpi_write_rest(core, x, from, samples, all);
    if (gcpi_trouble(core->p.tape, &core->p.target, a->at, a->what)) return core->p.tape->code;
    core->bound.unwritten -= !core->bound.given[x];
    core->bound.given[x] = samples;
    core->bound.some |= samples < all;
    return GCP_OK;
}

GCPI_DEF gcp_code gcp_write_at(gcp_plan *plan, gcp_tensor x, const void *data, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_write", 1);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    const gcpi_plan *core = plan->core;
    int kind = core->p.items[x.id].kind;
    if (!data || (kind != GCPI_INPUT_ITEM && kind != GCPI_STATE_ITEM))
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, data ? "is neither an input nor a parameter" : "from NULL", "");
    if (kind == GCPI_STATE_ITEM && gcpi_halfway(plan->tape, at, a.what)) return plan->tape->code;
    if (kind == GCPI_STATE_ITEM) return gcpi_copy_dense(core, x.id, (unsigned char *)(uintptr_t)data, 0, at);
    return gcpi_write(&a, data, gcpi_by_samples(core->p.tape->tensors[x.id].shape).d[0]);
}

/* Whether an input can be written in part: the loss leaves samples out, and these are samples. */
static gcp_code gcpi_some_check(const gcpi_access *a)
{
    char text[256], name[96];
    const gcpi_plan *core = a->plan->core;
    const gcp_tape *t = a->plan->tape;
    int o = core->joins_samples;
    if (core->leaves_out && core->samples[a->x.id]) return GCP_OK;
    if (!core->leaves_out && o < 0)
        return gcpi_access_fail(a, GCP_E_ARGUMENT, "cannot be written in part: the plan has no gcp_cross_entropy, "
                                                   "which alone leaves samples out", "");
    for (; core->leaves_out && (o < 0 || !gcpi_reads_whole(t, &t->ops[o], a->x.id)); o++) {}
    gcpi_name_text(t, t->ops[o].name, name, sizeof name);
    snprintf(text, sizeof text, "'%s' (%s:%d) %s%s", name, gcpi_basename(t->ops[o].at.file), t->ops[o].at.line,
             core->leaves_out ? "reads it whole" : "makes one value of several samples",
             gcpi_facts_of(&t->ops[o]).custom ? ", or lacks GCP_FLAG_SAMPLES_APART" : "");
    return gcpi_access_fail(a, GCP_E_ARGUMENT, "cannot be written in part: ", text);
}

GCPI_DEF gcp_code gcp_write_some_at(gcp_plan *plan, gcp_tensor x, const void *data, int samples, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_write_some", 1);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    const int all = gcpi_by_samples(plan->tape->tensors[x.id].shape).d[0];
    if (!data || plan->core->p.items[x.id].kind != GCPI_INPUT_ITEM)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, data ? "is no input" : "from NULL", "");
    char text[64];
    int32_t label;
    if (samples < all && plan->tape->tensors[x.id].dtype == GCP_DTYPE_I32 &&
        gcpi_ignored_label(plan->core, x.id, &label) < 0)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, "is read by ops that cannot ignore the same label", "");
    if (samples < all && samples >= 1 && (code = gcpi_some_check(&a)) != GCP_OK) return code;
    if (samples >= 1 && samples <= all) return gcpi_write(&a, data, samples);
    snprintf(text, sizeof text, "%d samples; 1 to %d are allowed", samples, all);
    return gcpi_access_fail(&a, GCP_E_ARGUMENT, "was given ", text);
}

/* Whether an item has a value to read: state always, an input once written, others once a step ran. */
static gcp_code gcpi_there(const gcpi_access *a, int item)
{
    const gcpi_plan *core = a->plan->core;
    int kind = core->p.items[core->p.items[item].root].kind;
    const int there = kind == GCPI_INPUT_ITEM ? core->bound.given[core->p.items[item].root] > 0 : core->bound.ran;
    if (kind == GCPI_STATE_ITEM || there) return GCP_OK;
    return gcpi_access_fail(
        a, GCP_E_INPUT, kind == GCPI_INPUT_ITEM ? "was not written since " : "has no value yet: no step has run since ",
        core->bound.since);
}

GCPI_DEF gcp_code gcp_read_at(gcp_plan *plan, gcp_tensor x, void *data, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_read", 0);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    const gcpi_item *item = &plan->core->p.items[x.id];
    int there = item->kind == GCPI_STATE_ITEM ||
                ((item->kind == GCPI_INPUT_ITEM || item->pinned) && plan->core->where[x.id] >= 0) ||
                (item->kind == GCPI_FORWARD_ITEM && plan->core->p.items[item->root].kind == GCPI_STATE_ITEM);
    if (!data || !there)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT,
                                data ? "is not kept: mark it with gcp_keep before planning" : "to NULL", "");
    code = gcpi_there(&a, x.id);
    return code ? code : gcpi_copy_dense(plan->core, x.id, (unsigned char *)data, 1, at);
}

GCPI_DEF gcp_code gcp_grad_at(gcp_plan *plan, gcp_tensor x, gcp_real *data, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_grad", 0);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    int item = plan->core->p.tensors + x.id;
    const int asked = gcpi_get(x)->kind == GCPI_PARAMETER || gcpi_get(x)->flags & GCPI_WANTED;
    const char *none =
        asked && !plan->core->p.items[item].active
            ? "is frozen (gcp_freeze, .train or .freeze), or the loss does not depend on it, or behind a "
              "gcp_stop_gradient alone"
            : "has no gradient that outlives the step: plan without an optimiser, or gcp_want_grad for an input";
    if (!data || !plan->core->p.items[item].pinned || plan->core->where[item] < 0)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, data ? none : "to NULL", "");
    code = gcpi_there(&a, item);
    return code ? code : gcpi_copy_dense(plan->core, item, (unsigned char *)data, 1, at);
}

GCPI_DEF ptrdiff_t gcp_ignored_at(gcp_plan *plan, gcp_tensor loss, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, loss, at, "gcp_ignored", 0);
    if (gcpi_access_check(&a)) return -1;
    gcp_tape *t = plan->tape;
    const gcpi_plan *core = plan->core;
    const gcpi_op *op = t->tensors[loss.id].producer >= 0 ? &t->ops[t->tensors[loss.id].producer] : NULL;
    if (!op || !gcpi_facts_of(op).leaves_out) {
        gcpi_access_fail(&a, GCP_E_ARGUMENT, "is not made by gcp_cross_entropy", "");
        return -1;
    }
    int labels = gcpi_edge(t, op, 1);
    a.x = gcpi_handle(t, labels);
    if (core->where[labels] < 0) { gcpi_access_fail(&a, GCP_E_ARGUMENT, "is not read by this plan", ""); return -1; }
    if (gcpi_there(&a, labels)) return -1;
    const ptrdiff_t ignored = gcpi_labels_ignored(core, op);
    return gcpi_trouble(t, &core->p.target, at, "gcp_ignored") ? -1 : ignored;
}
