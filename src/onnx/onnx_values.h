/* Values between the file and the tape. Weights become parameters' values; inputs and results go in the file's own
   layout. */

/* The recording that a model serves; 0, with an error: none of this tape. */
static gcpi_onnx *gcpi_onnx_of(gcp_tape *t, const gcp_onnx *model, gcp_at at, const char *call)
{
    gcpi_onnx *m = model ? model->core : NULL;
    if (!t || t->code) return NULL;
    if (!m || m->tape != t || m->generation != t->generation || !m->recorded) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "the model is not recorded on this tape (gcp_onnx_record)");
        return NULL;
    }
    m->at = at;
    m->call = call;
    return m;
}

/* Where the file's next element lies in memory, in an order whose factors are the file's, one after the other. */
typedef struct gcpi_onnx_order_walk {
    int count, size[GCPI_FACTORS], at[GCPI_FACTORS];
    ptrdiff_t step[GCPI_FACTORS], index;
} gcpi_onnx_order_walk;
static gcpi_onnx_order_walk gcpi_onnx_order_walk_of(const gcpi_onnx_order *o)
{
    gcpi_onnx_order_walk w;
    ptrdiff_t step = 1;
    memset(&w, 0, sizeof w);
    w.count = o->count;
    for (int f = 0; f < o->count; f++) w.size[f] = o->size[f];
    for (int j = o->count - 1; j >= 0; j--) {
        w.step[o->memory[j]] = step;
        step *= o->size[o->memory[j]];
    }
    return w;
}
static void gcpi_onnx_order_walk_on(gcpi_onnx_order_walk *w)
{
    for (int f = w->count - 1; f >= 0; f--) {
        w->index += w->step[f];
        if (++w->at[f] < w->size[f]) return;
        w->index -= w->step[f] * w->size[f];
        w->at[f] = 0;
    }
}
static size_t gcpi_onnx_order_size(const gcpi_onnx_order *o)
{
    return (size_t)gcpi_onnx_order_elements(o, 0, o->count);
}

/* ---- weights ---- */

static int gcpi_onnx_state_ready(gcpi_onnx *m)
{
    if (!m->tape->state)
        gcpi_fail(m->tape, GCP_E_STATE, m->at, m->call,
                  "the state has no memory yet: call gcp_bind (or gcp_state_bind) first");
    return m->tape->state != NULL;
}
static int gcpi_onnx_no_room(gcpi_onnx *m, size_t bytes)
{
    gcpi_fail(m->tape, GCP_E_NOMEM, m->at, m->call, "a tensor takes %zu bytes of the model's arena, which has %td left",
              bytes, m->arena->size - m->arena->used - m->arena->scratch);
    return 0;
}
static gcpi_place gcpi_onnx_weight_place(const gcpi_onnx *m, const gcpi_onnx_weight *w)
{
    gcpi_place p;
    p.home = &m->tape->home;
    p.at = gcpi_value_at(m->tape, gcpi_get(w->tensor)->parameter);
    return p;
}
/* The elements of a weight go to `all`, in its order. */
static int gcpi_onnx_weight_read(gcpi_onnx *m, const gcpi_onnx_weight *w, gcp_real *all)
{
    const size_t count = gcpi_onnx_order_size(&w->order);
    gcpi_onnx_order_walk walk = gcpi_onnx_order_walk_of(&w->order);
    gcpi_onnx_reader r;
    double x = 0;
    const double *known = w->source < 0             ? &w->number
                        : w->source < m->data_count ? NULL
                                                    : m->values[w->source - m->data_count].known;
    const int uniform = w->source >= m->data_count && m->values[w->source - m->data_count].uniform;
    if (!known) r = gcpi_onnx_reader_of(&m->data[w->source]);
    for (size_t i = 0; i < count; i++, gcpi_onnx_order_walk_on(&walk)) {
        if (known) x = known[uniform ? 0 : i];
        else if (!gcpi_onnx_read(&r, &x)) return 0;
        all[walk.index] = (gcp_real)x;
    }
    return 1;
}
GCPI_DEF int gcp_onnx_load_at(gcp_tape *t, gcp_onnx *model, gcp_at at)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, "gcp_onnx_load");
    int count = 0;
    if (!m || !gcpi_onnx_state_ready(m) || gcpi_halfway(t, at, m->call)) return 0;
    for (int i = 0; i < m->weight_count; i++) {
        const gcpi_onnx_weight *w = &m->weights[i];
        if (w->source >= 0 && w->source < m->data_count && m->data[w->source].fresh) continue;
        const ptrdiff_t scratch = m->arena->scratch;
        const size_t size = gcpi_onnx_order_size(&w->order);
        const gcpi_place place = gcpi_onnx_weight_place(m, w);
        gcp_real *all = gcpi_place_open(&place, m->arena, size);
        if (!all) {
            gcpi_onnx_no_room(m, size * sizeof *all);
            return 0;
        }
        if (gcpi_onnx_weight_read(m, w, all) && (unsigned char *)all != place.at)
            gcpi_place_copy(&place, place.at, all, size * sizeof *all);
        m->arena->scratch = scratch;
        count++;
    }
    return count;
}

/* ---- inputs and results ---- */

GCPI_DEF gcp_tensor gcp_onnx_tensor_at(gcp_tape *t, gcp_onnx *model, const char *name, gcp_at at)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, "gcp_onnx_tensor");
    const int v = m && name ? gcpi_onnx_find(m, gcpi_excerpt_of(name, strlen(name))) : 0;
    if (!m) return gcpi_nil(t);
    if (v && (!gcp_is_nil(m->values[v].tensor) || m->values[v].source >= 0)) return gcpi_onnx_usual(m, &m->values[v]);
    gcpi_fail(t, GCP_E_NAME, at, m->call, "'%.100s': %s", name ? name : "(NULL)",
              v ? "it was not recorded: no output needs it, or it is part of another op"
                : "no value of the file has this name");
    return gcpi_nil(t);
}
/* The value that is input or output `index`; 0: there is none. Of a recording with .until, that is the output. */
static int gcpi_onnx_end(const gcp_onnx *model, int input, int index)
{
    const gcpi_onnx *m = model ? model->core : NULL;
    if (!m || !m->recorded || index < 0) return 0;
    if (input) return index < m->input_count ? m->inputs[index] : 0;
    if (m->until) return index ? 0 : m->until;
    return index < m->output_count ? m->outputs[index] : 0;
}
static gcp_tensor gcpi_onnx_end_tensor(const gcp_onnx *model, int input, int index)
{
    const int v = gcpi_onnx_end(model, input, index);
    return v ? model->core->values[v].tensor : gcpi_nil(NULL);
}
GCPI_DEF gcp_tensor gcp_onnx_input(const gcp_onnx *model, int index) { return gcpi_onnx_end_tensor(model, 1, index); }
GCPI_DEF gcp_tensor gcp_onnx_output(const gcp_onnx *model, int index) { return gcpi_onnx_end_tensor(model, 0, index); }

GCPI_DEF gcp_code gcp_onnx_print_c_at(gcp_tape *t, gcp_onnx *model, gcp_writer out, gcp_at at)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, "gcp_onnx_print_c");
    if (!m) return gcp_error_code(t);
    const ptrdiff_t scratch = m->arena->scratch;
    const int count = m->until ? 1 : m->output_count;
    gcp_tensor *outputs = GCPI_SCRATCH(m->arena, gcp_tensor, count);
    for (int i = 0; outputs && i < count; i++) outputs[i] = gcp_onnx_output(model, i);
    if (outputs) gcp_print_c_at(outputs, count, out, at);
    else gcpi_fail(t, GCP_E_NOMEM, at, m->call, "the model's arena has no room for %d outputs", count);
    m->arena->scratch = scratch;
    return t->code;
}

/* Elements in the file's order go to those of an input, or come from those of an output. */
static gcp_code gcpi_onnx_exchange(gcp_plan *plan, gcp_onnx *model, int index, gcp_real *data, int write, gcp_at at)
{
    gcp_tape *t = plan ? plan->tape : NULL;
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, write ? "gcp_onnx_write" : "gcp_onnx_read");
    const int v = m ? gcpi_onnx_end(model, write, index) : 0;
    if (!m) return gcp_error_code(t);
    if (!v || gcp_is_nil(m->values[v].tensor)) {
        gcpi_fail(t, GCP_E_NAME, at, m->call, "%s %d was not recorded", write ? "input" : "output", index);
        return t->code;
    }
    const gcpi_onnx_value *x = &m->values[v];
    if (gcpi_get(x->tensor)->dtype != GCP_DTYPE_REAL) {
        gcpi_fail(t, GCP_E_DTYPE, at, m->call, "input %d is of whole numbers: gcp_write takes them", index);
        return t->code;
    }
    const size_t count = gcpi_onnx_order_size(&x->order);
    const ptrdiff_t scratch = m->arena->scratch;
    gcp_real *all = GCPI_SCRATCH(m->arena, gcp_real, count);
    gcpi_onnx_order_walk walk = gcpi_onnx_order_walk_of(&x->order);
    if (!all) {
        gcpi_onnx_no_room(m, count * sizeof *all);
        return t->code;
    }
    if (!write) gcp_read_at(plan, x->tensor, all, at);
    for (size_t i = 0; i < count; i++, gcpi_onnx_order_walk_on(&walk))
        if (write) all[walk.index] = data[i];
        else data[i] = all[walk.index];
    if (write) gcp_write_at(plan, x->tensor, all, at);
    m->arena->scratch = scratch;
    return t->code;
}
GCPI_DEF gcp_code gcp_onnx_write_at(gcp_plan *plan, gcp_onnx *model, int input, const gcp_real *data, gcp_at at)
{
    return gcpi_onnx_exchange(plan, model, input, (gcp_real *)(uintptr_t)data, 1, at);
}
GCPI_DEF gcp_code gcp_onnx_read_at(gcp_plan *plan, gcp_onnx *model, int output, gcp_real *data, gcp_at at)
{
    return gcpi_onnx_exchange(plan, model, output, data, 0, at);
}
