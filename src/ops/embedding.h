/* Embedding: rows of a table. Backward adds rows in the order of the ids. */
static int gcpi_embedding_shape(gcp_shape_call *s)
{
    const int *d = s->in[0].d;
    if (s->in_dtype[0] != GCP_DTYPE_I32) return gcpi_refuse_type(s, "ids must be gcp_ids");
    if (s->in_dtype[1] != GCP_DTYPE_REAL) return gcpi_refuse_type(s, "input 1 holds integers, not real numbers");
    if (d[1] != 1 || s->in[0].rank > 2)
        return gcpi_refuse(s, "ids of %s: at most two sizes", GCPI_SHAPE_TEXT(s->in[0]));
    s->out[0].rank = s->in[0].rank + 1;
    s->out[0].d[0] = s->in[0].rank == 1 ? d[3] : d[0];
    s->out[0].d[1] = 1;
    s->out[0].d[2] = s->in[0].rank == 1 ? 1 : d[3];
    s->out[0].d[3] = s->in[1].d[3];
    return 1;
}
static size_t gcpi_entry(const gcp_call *c, size_t i)
{
    int32_t id = ((const int32_t *)c->in[0].data)[i];
    return id < 0 || (size_t)id >= gcpi_pixels(c->in[1].shape) ? 0 : (size_t)id;
}
static void gcpi_embedding_forward(const gcp_call *c)
{
    const gcpi_halves *h = gcpi_halves_of(c->target->isa);
    size_t n = gcpi_count(c->in[0].shape);
    for (size_t i = 0; i < n; i++)
        gcpi_array_store(h, gcpi_elements(&c->out[0], i, 0), 0, gcpi_row(&c->in[1], gcpi_entry(c, i)), 0, 1,
                        c->in[1].shape.d[3]);
}
static void gcpi_embedding_backward(const gcp_call *c)
{
    size_t n = gcpi_count(c->in[0].shape);
    const gcp_view *d = &c->din[1];
    if (!d->data) return;
    if (!d->accumulate) memset(d->data, 0, gcpi_count(d->shape) * sizeof(gcp_real));
    for (size_t i = 0; i < n; i++) {
        const gcpi_array to = gcpi_elements(d, gcpi_entry(c, i), 0), dy = gcpi_elements(&c->dout[0], i, 0);
        gcpi_elements_copy(c, to, dy, (size_t)d->shape.d[3], 1);
    }
}

static gcpi_label_range gcpi_embedding_ids(const gcpi_attributes *a, gcp_shape table)
{
    gcpi_label_range r = { (int)GCPI_MIN(gcpi_pixels(table), (size_t)INT32_MAX), 0, 0 };
    (void)a;
    return r;
}
static void gcpi_embedding_call(gcpi_code *c, const gcpi_op *op)
{
    const gcp_shape table = gcpi_code_input_shape(c, op, 1);
    if (!gcpi_code_layer(c, op, 2)) return;
    gcpi_code_int(c, "entries", (int)gcpi_pixels(table), 0);
    gcpi_code_int(c, "out", table.d[3], 0);
}
static void gcpi_embedding_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->call = gcpi_embedding_call;
    f->channels = GCPI_CHANNELS_LOOKED_UP;
    f->shared = f->floats = GCPI_IN(1);
    f->labels = gcpi_embedding_ids;
}
static const gcpi_op_row gcpi_embedding_row = {
    GCP_OP_EMBEDDING,
    { "embedding", gcpi_embedding_shape, gcpi_embedding_forward, gcpi_embedding_backward, NULL, GCPI_IN(0), 0,
      GCP_FLAG_SAMPLES_APART | GCP_FLAG_BF16, 1, NULL },
    gcpi_embedding_facts
};

GCPI_DEF gcp_tensor gcp_embedding_op_at(gcp_tensor ids, gcp_tensor table, gcp_embedding_opts o)
{
    gcp_tensor in[2];
    const gcpi_tensor *e = gcpi_get(table);
    in[0] = ids; in[1] = table;
    if (e && o.entries && (size_t)o.entries != gcpi_pixels(e->shape))
        return gcpi_bad_option(ids, o.at, "embedding", ".entries", o.entries, "not the table's");
    if (e && o.out && o.out != e->shape.d[3])
        return gcpi_bad_option(ids, o.at, "embedding", ".out", o.out, "not the table's");
    return gcpi_simple(&gcpi_embedding_row, in, 2, NULL, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_embedding_at(gcp_tensor ids, gcp_embedding_opts o)
{
    gcp_tape *t = ids.tape;
    gcp_tensor in[2];
    if (o.entries < 1 || o.out < 1)
        return gcpi_bad_option(ids, o.at, "embedding", o.entries < 1 ? ".entries" : ".out",
                               o.entries < 1 ? o.entries : o.out, "at least 1");
    if (!gcpi_enter(ids, o.at, "embedding")) return gcpi_nil(t);
    int name = gcpi_op_name(t, "embedding", o.name, o.at);
    if (!name) return gcpi_nil(t);
    in[0] = ids;
    in[1] = gcpi_weight(t, name, "table", gcpi_raw(2, o.entries, o.out, 0, 0),
                        gcpi_weight_options(GCP_INIT_GLOROT, GCP_INIT_GLOROT, o.entries, o.out, o.at));
    return t->code ? gcpi_nil(t) : gcpi_record(t, &gcpi_embedding_row, name, in, 2, NULL, o.at);
}
