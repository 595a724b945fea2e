/* The table of ops: all that later rooms know of an op; custom ops. A row (gcp_op) is what built-in ops, custom ops
   and a device's kernels have in common; facts are what only some ops have. What comes behind this room names no
   kind of op, calls no op's function and reads no op's attributes. */

/* ---- custom: the user's row ---- */

/* The row's name stands for it; its context is not known. */
static void gcpi_custom_call(gcpi_code *c, const gcpi_op *op)
{
    char name[80];
    const gcpi_variable v = c->variables[op->out];
    gcpi_code_list(c, op, "custom");
    gcpi_say(c->w, ", &%s", gcpi_code_identifier(op->row->name, name, sizeof name));
    if (v.kind == 'c') gcpi_say(c->w, ", .outputs = c%d", v.number);
}
static void gcpi_custom_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->custom = 1;
    f->call = gcpi_custom_call;
}
static const gcpi_op_row gcpi_custom_row = {
    GCP_OP_CUSTOM, { "custom", NULL, NULL, NULL, NULL, 0, 0, 0, 1, NULL }, gcpi_custom_facts
};
GCPI_DEF gcp_tensor gcp_custom_at(const gcp_tensor *inputs, int count, const gcp_op *op, gcp_custom_opts o)
{
    gcp_tape *t = inputs && count > 0 ? inputs[0].tape : NULL;
    if (!t || !gcpi_enter(inputs[0], o.at, "custom")) return gcpi_nil(t);
    if (!op || !op->name || !op->shape || !op->forward || (!op->backward && !(op->flags & GCP_FLAG_NO_GRADIENT)) ||
        op->flags & (GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW | GCP_FLAG_SIGN_OR_MASK) ||
        (op->flags & GCP_FLAG_CROSS && count != 2)) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, op && op->name ? op->name : "custom",
                  "an op needs name, shape, forward, and backward or GCP_FLAG_NO_GRADIENT; its flags may not be VIEW, "
                  "GRAD_VIEW or SIGN_OR_MASK");
        return gcpi_nil(t);
    }
    static const char nothing[1] = { 0 };
    int name = gcpi_op_name(t, op->name, o.name, o.at);
    int index =
        name ? gcpi_op_new(t, op, GCP_OP_CUSTOM, name, inputs, count, NULL, o.context ? o.context : nothing, o.at) : -1;
    for (int j = 0; index >= 0 && o.outputs && j < op->outputs; j++)
        o.outputs[j] = gcpi_handle(t, t->ops[index].out + j);
    return index < 0 ? gcpi_nil(t) : gcpi_handle(t, t->ops[index].out);
}

/* ---- the table ---- */

#define GCPI_ROW_AT(NAME, name) &gcpi_##name##_row,
static const gcpi_op_row *const gcpi_rows[GCP_ROW_COUNT] = {
    GCP_OPS(GCPI_ROW_AT) &gcpi_apply_row, &gcpi_seed_row, &gcpi_gradient_norm_row, &gcpi_update_row,
    &gcpi_round_row
};
#undef GCPI_ROW_AT
/* A call of this row with one input copies it. */
enum { GCPI_ROW_COPY = GCP_OP_CONCAT };

static gcpi_facts gcpi_facts_of(const gcpi_op *op)
{
    gcpi_facts f;
    memset(&f, 0, sizeof f);
    f.in_place = f.indexed = 1;
    f.apart = !!(op->row->flags & GCP_FLAG_SAMPLES_APART);
    f.channels = op->row->flags & GCP_FLAG_SAME_CHANNELS ? GCPI_CHANNELS_SAME : GCPI_CHANNELS_UNKNOWN;
    if (gcpi_rows[op->kind]->facts) gcpi_rows[op->kind]->facts(op, &f);
    return f;
}

/* GCP_KEEP_... */
static unsigned gcpi_class_of(int kind)
{
#define GCPI_CASE(NAME, name) case GCP_OP_##NAME:
    switch ((gcp_op_kind)kind) {
    case GCP_OP_CONV2D: case GCP_OP_CONV_TRANSPOSE2D: case GCP_OP_LINEAR: case GCP_OP_MATMUL: case GCP_OP_MATMULS:
        return GCP_KEEP_PRODUCTS;
    case GCP_OP_ATTENTION: case GCP_OP_SOFTMAX: return GCP_KEEP_ATTENTION;
    case GCP_OP_BATCH_STATS: case GCP_OP_BATCH_NORM: case GCP_OP_LAYER_NORM: case GCP_OP_GROUP_NORM:
        return GCP_KEEP_NORMS;
    case GCP_OP_MAX_POOL: case GCP_OP_AVG_POOL: case GCP_OP_GLOBAL_AVG_POOL: case GCP_OP_UPSAMPLE: case GCP_OP_RESIZE:
    case GCP_OP_SUM: case GCP_OP_MAX: case GCP_OP_MEAN: case GCP_OP_CROSS_ENTROPY: case GCP_OP_MSE:
        return GCP_KEEP_POOLS;
    case GCP_OP_ADD: case GCP_OP_PAIR: case GCP_OP_BIAS: return GCP_KEEP_PAIRS;
    GCP_POINTWISE_OPS(GCPI_CASE)
    case GCP_OP_RELU: case GCP_OP_LEAKY_RELU: case GCP_OP_RELU6: case GCP_OP_CLAMP: case GCP_OP_DROPOUT:
        return GCP_KEEP_POINTWISE;
    case GCP_OP_CONCAT: case GCP_OP_SLICE: case GCP_OP_RESHAPE: case GCP_OP_JOIN: case GCP_OP_CUT: case GCP_OP_PAD:
    case GCP_OP_TRANSPOSE: case GCP_OP_EMBEDDING:
        return GCP_KEEP_MOVES;
    case GCP_OP_CUSTOM: case GCP_OP_COUNT: return GCP_KEEP_CUSTOM;
    }
#undef GCPI_CASE
    return 0;
}

static int gcpi_label_ok(const gcpi_label_range *r, int32_t label)
{
    return (label >= 0 && label < r->count) || (r->ignores && label == r->ignore);
}
static gcpi_label_range gcpi_label_range_of(const gcp_tape *t, const gcpi_op *op, int input)
{
    const gcpi_label_range none = { 0, 0, 0 };
    const gcpi_facts facts = gcpi_facts_of(op);
    return facts.labels ? facts.labels(&op->attributes, t->tensors[t->edges[op->in + (input == 0)]].shape) : none;
}

GCPI_DEF void gcp_cpu_kernels(gcp_op *rows)
{
    for (int k = 0; k < GCP_ROW_COUNT; k++) rows[k] = gcpi_rows[k]->op;
}

/* The row whose functions run an op on a target or, where op is NULL, one of the rows that no tape records. NULL: a
   custom op without a version for the target. */
static const gcp_op *gcpi_row_for(const gcp_target *target, const gcpi_op *op, int row)
{
    const int at = op ? op->kind : row;
    if (op && gcpi_facts_of(op).custom) return target->device ? op->row->on_device : op->row;
    return target->kernels ? &target->kernels[at] : &gcpi_rows[at]->op;
}
