/* Calls of ops, groups, updates: the views that they are given. */

/* The bytes of an item. offset: its place in the slab; -1: it lies in the state, with its root's parameter. NULL: in
   neither. */
static void *gcpi_item_data(const gcpi_plan *core, int item, ptrdiff_t offset)
{
    const gcpi_item *x = &core->p.items[item];
    const gcpi_tensor *root = &core->p.tape->tensors[core->p.items[x->root].tensor];
    if (offset >= 0) return core->bound.slab + offset;
    if (root->parameter < 0) return NULL;
    return core->p.tape->state + core->p.tape->parameters[root->parameter].offset + x->offset;
}

typedef struct gcpi_call_space {
    gcp_view in[GCP_MAX_INPUTS], din[GCP_MAX_INPUTS], out[GCP_MAX_OUTPUTS], dout[GCP_MAX_OUTPUTS];
} gcpi_call_space;

static void gcpi_view_empty(const gcpi_plan *core, gcp_view *v, int tensor, int gradient)
{
    const gcpi_tensor *e = &core->p.tape->tensors[tensor];
    v->data = NULL;
    v->shape = e->shape;
    v->dtype = gcpi_item_dtype(&core->p, gradient ? core->p.tensors + tensor : tensor);
    v->pitch = e->shape.d[3];
    v->accumulate = 0;
}

/* Fills the call's views of the task's operands. Operand k is placed at in->placed[n + k]. */
static void gcpi_call_operands(const gcpi_plan *core, const gcpi_task *t, int n, gcpi_call_space *s)
{
    const gcpi_problem *p = &core->p;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        int index = o->role % GCPI_ROLES, gradient = o->role >= GCPI_ROLE_DIN;
        gcp_view *v = o->role >= GCPI_ROLE_DOUT  ? &s->dout[index]
                      : gradient                 ? &s->din[index]
                      : o->role >= GCPI_ROLE_OUT ? &s->out[index]
                                                 : &s->in[index];
        gcpi_view_empty(core, v, p->items[o->item].tensor, gradient);
        v->data = gcpi_item_data(core, o->item, core->placed[n + k].offset);
        v->pitch = p->items[o->item].pitch;
        v->accumulate = o->mode == GCPI_ADD ||
                        (o->mode == GCPI_WRITE && p->items[o->item].pinned == GCPI_PINNED_ALWAYS &&
                         core->run.numbers.micro > 0);
    }
}

static void gcpi_call_fill(const gcpi_plan *core, const gcpi_task *t, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_op *op = &core->p.tape->ops[t->op];
    for (int i = 0; i < op->inputs; i++) {
        gcpi_view_empty(core, &s->in[i], gcpi_edge(core->p.tape, op, i), 0);
        gcpi_view_empty(core, &s->din[i], gcpi_edge(core->p.tape, op, i), 1);
    }
    for (int j = 0; j < op->outputs; j++) {
        gcpi_view_empty(core, &s->out[j], op->out + j, 0);
        gcpi_view_empty(core, &s->dout[j], op->out + j, 1);
    }
    gcpi_call_operands(core, t, n, s);
    c->attributes = op->context ? op->context : (const void *)&op->attributes;
    c->inputs = op->inputs; c->outputs = op->outputs;
}

/* What an op, or the library's own task, may write besides its operands. Around an op's the guards of .check lie. */
typedef struct gcpi_space { unsigned char *at; size_t size, guard; } gcpi_space;
static gcpi_space gcpi_workspace_of(const gcpi_plan *core, const gcpi_task *t)
{
    gcpi_space w;
    w.guard = t->kind <= GCPI_TASK_BACKWARD && t->workspace ? core->p.guard : 0;
    w.size = t->workspace - 2 * w.guard;
    w.at = core->bound.slab + gcpi_round(GCPI_NUMBERS_BYTES, core->p.target.align) + w.guard;
    return w;
}

static void gcpi_call_init(const gcpi_plan *core, const gcpi_task *t, int row, gcp_call *c)
{
    memset(c, 0, sizeof *c);
    c->row = row;
    c->attributes = &core->opts;
    c->workspace = t->workspace ? gcpi_workspace_of(core, t).at : NULL;
    c->numbers = (const gcp_step_numbers *)(void *)core->bound.slab;
    c->ordinal = (uint64_t)t->op;
    c->training = core->p.training;
    c->store = gcpi_task_store(&core->p, t);
    c->target = &core->p.target;
}

static void gcpi_call_begin(const gcpi_plan *core, const gcpi_task *t, int row, gcp_call *c, gcpi_call_space *s)
{
    gcpi_call_init(core, t, row, c);
    c->in = s->in; c->out = s->out; c->din = s->din; c->dout = s->dout;
}

/* A group, or a single op that could be a group, as a call of GCP_ROW_APPLY. */
static void gcpi_apply_call(const gcpi_plan *core, const gcpi_task *t, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_op *last = &core->p.tape->ops[t->op];
    gcpi_call_begin(core, t, GCP_ROW_APPLY, c, s);
    memset(s->in, 0, 6 * sizeof *s->in);
    memset(s->out, 0, 2 * sizeof *s->out);
    gcpi_call_operands(core, t, n, s);
    c->attributes = gcpi_is_part(last, GCPI_PART_RECTIFIER) ? (const void *)&last->attributes : NULL;
    c->inputs = 6; c->outputs = 2;
}

/* Rounds to bfloat16 what a task made in floats (store.h). What lies in two bytes is rounded where it is stored. */
static void gcpi_round_results(const gcpi_plan *core, const gcpi_task *t, int n, const gcp_call *c)
{
    for (int k = 0; core->p.store && k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        const gcpi_item *x = &core->p.items[o->item];
        const int shared = t->kind == GCPI_TASK_FORWARD ? t->free : o->mode == GCPI_ALIAS;
        if (o->mode == GCPI_READ || shared || !x->rounds || x->width != (int)sizeof(gcp_real)) continue;
        gcp_call round = *c;
        gcp_view v;
        gcpi_view_empty(core, &v, x->tensor, x->kind == GCPI_GRADIENT_ITEM);
        v.data = gcpi_item_data(core, o->item, core->placed[n + k].offset);
        v.pitch = x->pitch;
        round.row = GCP_ROW_ROUND; round.out = &v; round.inputs = 0; round.outputs = 1;
        if (v.data) gcpi_row_for(&core->p.target, NULL, GCP_ROW_ROUND)->forward(&round);
    }
}

static void gcpi_run_group(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_apply_call(core, t, n, &call, &space);
    gcpi_row_for(&core->p.target, NULL, GCP_ROW_APPLY)->forward(&call);
    gcpi_round_results(core, t, n, &call);
}

static void gcpi_op_call(const gcpi_plan *core, const gcpi_instruction *i, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_task *t = &core->p.tasks[i->task];
    gcpi_call_begin(core, t, (int)core->p.tape->ops[t->op].kind, c, s);
    c->training &= !gcpi_norm_is_fixed(&core->p, &core->p.tape->ops[t->op]);
    c->commit = i->letter == 'F' && core->p.training && core->run.purpose == GCPI_TO_STEP;
    gcpi_call_fill(core, t, n, c, s);
}

static void gcpi_run_op(const gcpi_plan *core, const gcpi_instruction *i, int n)
{
    const gcpi_task *t = &core->p.tasks[i->task];
    const gcp_op *row = gcpi_row_for(&core->p.target, &core->p.tape->ops[t->op], 0);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(core, i, n, &call, &space);
    (t->kind == GCPI_TASK_FORWARD ? row->forward : row->backward)(&call);
    gcpi_round_results(core, t, n, &call);
}

/* A view of data as reals with the item's shape: the item itself, or values, slots and a count in the state. */
static gcp_view gcpi_view_like(const gcpi_plan *core, int item, void *data)
{
    gcp_view v;
    gcpi_view_empty(core, &v, core->p.items[item].tensor, 1);
    v.data = data;
    v.pitch = core->p.items[item].pitch;
    return v;
}

static void gcpi_run_seed(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(core, t, GCP_ROW_SEED, &call, &space);
    space.out[0] = gcpi_view_like(core, core->p.operands[t->operands].item, core->bound.slab + core->placed[n].offset);
    call.outputs = 1;
    call.attributes = &core->run.share;
    gcpi_row_for(&core->p.target, NULL, GCP_ROW_SEED)->forward(&call);
}

static void gcpi_run_gradient_norm(const gcpi_plan *core, const gcpi_task *t, int n)
{
    const gcp_op *row = gcpi_row_for(&core->p.target, NULL, GCP_ROW_NORM);
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(core, t, GCP_ROW_NORM, &call, &space);
    call.inputs = 1;
    for (int k = 0; k < t->count; k++) {
        int item = core->p.operands[t->operands + k].item;
        space.in[0] = gcpi_view_like(core, item, gcpi_item_data(core, item, core->placed[n + k].offset));
        space.in[0].accumulate = k > 0;
        row->forward(&call);
    }
    row->backward(&call);
}

typedef struct gcpi_update_call { gcp_call call; gcp_view in[3], out[3], none[3]; } gcpi_update_call;
static void gcpi_update_call_fill(const gcpi_plan *core, const gcpi_task *t, int n, gcpi_update_call *u)
{
    int item = core->p.operands[t->operands].item;
    memset(u->none, 0, sizeof u->none);
    gcpi_call_init(core, t, GCP_ROW_UPDATE, &u->call);
    u->call.in = u->in; u->call.out = u->out; u->call.din = u->call.dout = u->none;
    u->call.inputs = 3; u->call.outputs = 3;
    u->in[0] = gcpi_view_like(core, item, gcpi_item_data(core, item, core->placed[n].offset));
    u->in[1] = gcpi_view_like(core, item, gcpi_count_at(core->p.tape, t->parameter));
    u->in[2] = gcpi_view_like(core, item, core->p.rates ? core->p.rates[t->parameter] : NULL);
    u->out[0] = gcpi_view_like(core, item, gcpi_value_at(core->p.tape, t->parameter));
    for (int k = 0; k < 2; k++)
        u->out[1 + k] = gcpi_view_like(core, item,
                                       core->slots > k ? gcpi_slot_at(core->p.tape, t->parameter, k) : NULL);
}

static void gcpi_run_move(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(core, t, GCPI_ROW_COPY, &call, &space);
    space.in[0] = gcpi_view_like(core, t->item, core->bound.slab + core->placed[n].offset);
    space.out[0] = gcpi_view_like(core, t->item, core->bound.slab + core->placed[n + 1].offset);
    call.inputs = call.outputs = 1;
    gcpi_row_for(&core->p.target, NULL, GCPI_ROW_COPY)->forward(&call);
}

static void gcpi_run_hook(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_gradient_hook hook = t->kind == GCPI_TASK_HOOK ? core->opts.on_gradient : core->opts.on_wait;
    const gcpi_parameter *p = &core->p.tape->parameters[t->parameter];
    if (hook && core->run.purpose == GCPI_TO_STEP)
        hook(core->opts.hook_context, gcpi_handle(core->p.tape, p->tensor),
             (gcp_real *)gcpi_item_data(core, core->p.operands[t->operands].item, core->placed[n].offset),
             gcpi_count(p->shape));
}
