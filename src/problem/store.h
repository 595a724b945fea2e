/* What lies in two bytes. With GCP_STORE_BF16 the values of most tensors are rounded to bfloat16, and so are their
   gradients: the result of each op once, whether it is stored or not, so that no plan changes a bit. Where all ops that
   read or make a tensor take halves (GCP_FLAG_BF16) it lies in two bytes; else its rounded values lie in floats, and no
   pass converts them. */

/* Whether a tensor is a parameter or made of parameters alone: no sample has a part in it. */
static int gcpi_is_lasting(const gcp_tape *t, int tensor, const unsigned char *lasting)
{
    const gcpi_tensor *e = &t->tensors[tensor];
    const gcpi_op *op = e->producer < 0 ? NULL : &t->ops[e->producer];
    int all = op != NULL;
    for (int i = 0; op && i < op->inputs; i++) all &= lasting[gcpi_edge(t, op, i)];
    return all || e->kind == GCPI_PARAMETER || e->kind == GCPI_STATISTIC;
}

/* Whether values stay exact though they are of samples: no real numbers, losses, statistics, one value a sample. */
static int gcpi_is_exact(const gcp_tape *t, int tensor)
{
    const gcpi_tensor *e = &t->tensors[tensor];
    const gcpi_op *op = e->producer < 0 ? NULL : &t->ops[e->producer];
    if (e->dtype != GCP_DTYPE_REAL || gcpi_one_a_sample(e->shape)) return 1;
    if (!op) return 0;
    return op->row->flags & (GCP_FLAG_LOSS | GCP_FLAG_ONCE) || gcpi_facts_of(op).exact >> (tensor - op->out) & 1;
}

/* Whether the target's version of an op takes halves: as an input, or as output where that is negative. A tensor that
   is several of its inputs lies in floats: its gradient's parts are added there, and the sum is rounded once. */
static int gcpi_takes_halves(const gcpi_problem *p, const gcpi_op *op, int input)
{
    const gcp_op *row = gcpi_row_for(&p->target, op, 0);
    const gcpi_facts facts = gcpi_facts_of(op);
    const unsigned floats = facts.floats | (p->target.device ? facts.floats_on_device : 0);
    int times = 0;
    if (!row || !(row->flags & GCP_FLAG_BF16)) return 0;
    for (int i = 0; input >= 0 && i < op->inputs; i++)
        times += gcpi_edge(p->tape, op, i) == gcpi_edge(p->tape, op, input);
    return input < 0 || (times == 1 && !(floats >> GCPI_MIN(input, 31) & 1));
}
/* As part of a group, or in one pass with a convolution. */
static int gcpi_groups_round(const gcpi_problem *p)
{
    return !p->store || gcpi_row_for(&p->target, NULL, GCP_ROW_APPLY)->flags & GCP_FLAG_BF16;
}

static void gcpi_item_width(gcpi_problem *p, int tensor, int width)
{
    const gcp_tape *t = p->tape;
    for (int i = tensor; i < p->item_count; i += p->tensors) {
        gcpi_item *x = &p->items[i];
        x->halves = width == (int)sizeof(uint16_t);
        if (!p->store) continue;
        x->rounds = 1;
        x->width = width;
        x->bytes = gcpi_view_bytes(t->tensors[tensor].shape, GCP_DTYPE_REAL, width, x->pitch);
    }
}

/* The op because of which a tensor of rounded values lies in floats. */
static const char *gcpi_store_denied(const gcpi_problem *p, int tensor)
{
    const gcp_tape *t = p->tape;
    const int producer = t->tensors[tensor].producer;
    if (producer >= 0 && !gcpi_takes_halves(p, &t->ops[producer], -1)) return t->ops[producer].row->name;
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        for (int i = 0; i < op->inputs; i++)
            if (gcpi_edge(t, op, i) == tensor && !gcpi_takes_halves(p, op, i)) return op->row->name;
    }
    return "an op";
}

/* A task none of whose operands is rounded (or would be) runs as in a plan without halves. */
static gcp_store gcpi_task_store(const gcpi_problem *p, const gcpi_task *t)
{
    for (int k = 0; p->store && k < t->count; k++)
        if (p->items[p->operands[t->operands + k].item].rounds || p->items[p->operands[t->operands + k].item].halves)
            return p->store;
    return GCP_STORE_REAL;
}

/* Without .store: what it would halve. lasting: room for a byte a tensor. */
static void gcpi_items_store(gcpi_problem *p, const unsigned char *needed, unsigned char *lasting)
{
    const gcp_tape *t = p->tape;
    for (int i = 1; i < t->tensor_count; i++) {
        lasting[i] = (unsigned char)gcpi_is_lasting(t, i, lasting);
        if (!lasting[i] && !gcpi_is_exact(t, i)) gcpi_item_width(p, i, (int)sizeof(uint16_t));
    }
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        for (int i = 0; needed[o] && i < op->inputs; i++)
            if (p->items[gcpi_edge(t, op, i)].halves && !gcpi_takes_halves(p, op, i))
                gcpi_item_width(p, gcpi_edge(t, op, i), (int)sizeof(gcp_real));
        for (int j = 0; needed[o] && j < op->outputs; j++)
            if (p->items[op->out + j].halves && !gcpi_takes_halves(p, op, -1))
                gcpi_item_width(p, op->out + j, (int)sizeof(gcp_real));
    }
}
