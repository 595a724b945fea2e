/* The executor: an instruction becomes a call of its op, of a group, or of a pair that runs as one pass. */

/* The bytes of an item. offset: its place in the slab; -1: it lies in the state, with its root's parameter. NULL: in
   neither. */
static void *gcpi_item_data(const gcpi_plan *in, int item, ptrdiff_t offset)
{
    const gcpi_item *x = &in->p.items[item];
    const gcpi_tensor *root = &in->p.tape->tensors[in->p.items[x->root].tensor];
    if (offset >= 0) return in->bound.slab + offset;
    if (root->parameter < 0) return NULL;
    return in->p.tape->state + in->p.tape->parameters[root->parameter].offset + x->offset;
}

typedef struct gcpi_call_space {
    gcp_view in[GCP_MAX_INPUTS], din[GCP_MAX_INPUTS], out[GCP_MAX_OUTPUTS], dout[GCP_MAX_OUTPUTS];
} gcpi_call_space;

static void gcpi_view_empty(const gcpi_plan *in, gcp_view *v, int tensor, int gradient)
{
    const gcpi_tensor *e = &in->p.tape->tensors[tensor];
    v->data = NULL;
    v->shape = e->shape;
    v->dtype = gradient ? GCP_DTYPE_REAL : e->dtype;
    v->pitch = e->shape.d[3];
    v->accumulate = 0;
}

/* Fills the call's views of the task's operands. Operand k is placed at in->placed[n + k]. */
static void gcpi_call_operands(const gcpi_plan *in, const gcpi_task *t, int n, gcpi_call_space *s)
{
    const gcpi_problem *p = &in->p;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        int index = o->slot % GCPI_SLOTS, gradient = o->slot >= GCPI_SLOT_DIN;
        gcp_view *v = o->slot >= GCPI_SLOT_DOUT  ? &s->dout[index]
                      : gradient                 ? &s->din[index]
                      : o->slot >= GCPI_SLOT_OUT ? &s->out[index]
                                                 : &s->in[index];
        gcpi_view_empty(in, v, p->items[o->item].tensor, gradient);
        v->data = gcpi_item_data(in, o->item, in->placed[n + k].offset);
        v->pitch = p->items[o->item].pitch;
        v->accumulate = o->mode == GCPI_ADD ||
                        (o->mode == GCPI_WRITE && p->items[o->item].pinned == 2 && in->run.numbers.micro > 0);
    }
}

static void gcpi_call_fill(const gcpi_plan *in, const gcpi_task *t, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_op *op = &in->p.tape->ops[t->op];
    for (int i = 0; i < op->inputs; i++) {
        gcpi_view_empty(in, &s->in[i], gcpi_edge(in->p.tape, op, i), 0);
        gcpi_view_empty(in, &s->din[i], gcpi_edge(in->p.tape, op, i), 1);
    }
    for (int j = 0; j < op->outputs; j++) {
        gcpi_view_empty(in, &s->out[j], op->out + j, 0);
        gcpi_view_empty(in, &s->dout[j], op->out + j, 1);
    }
    gcpi_call_operands(in, t, n, s);
    c->attributes = op->context ? op->context : (const void *)&op->attributes;
    c->inputs = op->inputs; c->outputs = op->outputs;
}

/* What an op, or the library's own task, may write besides its operands. Around an op's the guards of .check lie. */
typedef struct gcpi_space { unsigned char *at; size_t size, guard; } gcpi_space;
static gcpi_space gcpi_workspace_of(const gcpi_plan *in, const gcpi_task *t)
{
    gcpi_space w;
    w.guard = t->kind <= GCPI_TASK_BACKWARD && t->workspace ? in->p.guard : 0;
    w.size = t->workspace - 2 * w.guard;
    w.at = in->bound.slab + gcpi_round(GCPI_NUMBERS_BYTES, in->p.target.align) + w.guard;
    return w;
}

static void gcpi_call_init(const gcpi_plan *in, const gcpi_task *t, int row, gcp_call *c)
{
    memset(c, 0, sizeof *c);
    c->row = row;
    c->attributes = &in->opts;
    c->workspace = t->workspace ? gcpi_workspace_of(in, t).at : NULL;
    c->numbers = (const gcp_step_numbers *)(void *)in->bound.slab;
    c->ordinal = (uint64_t)t->op;
    c->training = in->p.training;
    c->target = &in->p.target;
}

static void gcpi_call_begin(const gcpi_plan *in, const gcpi_task *t, int row, gcp_call *c, gcpi_call_space *s)
{
    gcpi_call_init(in, t, row, c);
    c->in = s->in; c->out = s->out; c->din = s->din; c->dout = s->dout;
}

/* A group, or a single op that could be a group, as a call of GCP_ROW_APPLY. */
static void gcpi_apply_call(const gcpi_plan *in, const gcpi_task *t, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_op *last = &in->p.tape->ops[t->op];
    gcpi_call_begin(in, t, GCP_ROW_APPLY, c, s);
    memset(s->in, 0, 6 * sizeof *s->in);
    memset(s->out, 0, 2 * sizeof *s->out);
    gcpi_call_operands(in, t, n, s);
    c->attributes = gcpi_is_part(last, GCPI_PART_RECTIFIER) ? (const void *)&last->attributes : NULL;
    c->inputs = 6; c->outputs = 2;
}

static void gcpi_run_group(const gcpi_plan *in, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_apply_call(in, t, n, &call, &space);
    gcpi_row_for(&in->p.target, NULL, GCP_ROW_APPLY)->forward(&call);
}

static void gcpi_op_call(const gcpi_plan *in, const gcpi_instruction *i, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_task *t = &in->p.tasks[i->task];
    gcpi_call_begin(in, t, (int)in->p.tape->ops[t->op].kind, c, s);
    c->training &= !gcpi_norm_is_fixed(&in->p, &in->p.tape->ops[t->op]);
    c->commit = i->kind == 'F' && in->p.training && !in->run.measuring;
    gcpi_call_fill(in, t, n, c, s);
}

static void gcpi_run_op(const gcpi_plan *in, const gcpi_instruction *i, int n)
{
    const gcpi_task *t = &in->p.tasks[i->task];
    const gcp_op *row = gcpi_row_for(&in->p.target, &in->p.tape->ops[t->op], 0);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(in, i, n, &call, &space);
    (t->kind == GCPI_TASK_FORWARD ? row->forward : row->backward)(&call);
}

/* Pairs: two instructions that run as one pass and give the same bits as one after the other. The second writes where
   the first would have written, so that no instruction could read what is left out; or it reads what the first made
   while that is in cache, or still at hand. */

/* Index of a task's operand, or -1. */
static int gcpi_operand_at(const gcpi_plan *in, const gcpi_task *t, int slot)
{
    for (int k = 0; k < t->count; k++) if (in->p.operands[t->operands + k].slot == slot) return k;
    return -1;
}

/* Whether operand b of task u (placed from placed[m] on) has the same bytes as operand a of task t (from placed[n] on),
   and both tasks write them without adding. */
static int gcpi_same_place(const gcpi_plan *in, const gcpi_task *t, int n, int a, const gcpi_task *u, int m, int b)
{
    if (a < 0 || b < 0) return 0;
    const gcpi_operand *x = &in->p.operands[t->operands + a], *y = &in->p.operands[u->operands + b];
    return x->mode == GCPI_WRITE && y->mode == GCPI_WRITE && in->p.items[x->item].pinned != 2 &&
           in->p.items[y->item].pinned != 2 && in->placed[n + a].offset >= 0 &&
           in->placed[n + a].offset == in->placed[m + b].offset &&
           in->p.items[x->item].pitch == in->p.items[y->item].pitch &&
           in->p.items[x->item].bytes == in->p.items[y->item].bytes;
}

/* conv2d and, next and in place, an addition, a rectifier or both. */
static int gcpi_conv_ends(const gcpi_plan *in, const gcpi_task *t, int n, const gcpi_task *u)
{
    int reads = 0;
    if (t->kind != GCPI_TASK_FORWARD || u->kind != GCPI_TASK_FORWARD) return 0;
    const gcpi_op *op = &in->p.tape->ops[t->op], *first = &in->p.tape->ops[u->op] - (u->ops - 1);
    if (op->kind != GCP_OP_CONV2D) return 0;
    if (!gcpi_is_part(first, GCPI_PART_ADD) && !gcpi_is_part(first, GCPI_PART_RECTIFIER)) return 0;
    for (int k = 0; k < u->count; k++)
        reads += in->p.operands[u->operands + k].item == op->out && in->p.operands[u->operands + k].mode == GCPI_READ;
    return reads == 1 && gcpi_same_place(in, t, n, gcpi_operand_at(in, t, GCPI_SLOT_OUT), u, n + t->count,
                                         gcpi_operand_at(in, u, GCPI_SLOT_OUT));
}

/* Backward of a rectifier and, next and in place, of the batch-norm whose output it rectifies. */
static int gcpi_norm_begins(const gcpi_plan *in, const gcpi_task *t, int n, const gcpi_task *u)
{
    if (t->kind != GCPI_TASK_BACKWARD || u->kind != GCPI_TASK_BACKWARD) return 0;
    const gcpi_op *op = &in->p.tape->ops[t->op], *norm = &in->p.tape->ops[u->op];
    int dx = gcpi_operand_at(in, t, GCPI_SLOT_DIN), dy = gcpi_operand_at(in, t, GCPI_SLOT_DOUT);
    if (!gcpi_is_part(op, GCPI_PART_RECTIFIER) || !gcpi_is_part(norm, GCPI_PART_NORM)) return 0;
    if (gcpi_edge(in->p.tape, op, 0) != norm->out ||
        in->p.items[gcpi_edge(in->p.tape, norm, 4)].kind != GCPI_STATE_ITEM)
        return 0;
    return gcpi_same_place(in, t, n, dx, u, n + t->count, gcpi_operand_at(in, u, GCPI_SLOT_DIN)) && dy >= 0 &&
           in->placed[n + dy].offset == in->placed[n + dx].offset &&
           in->p.items[in->p.operands[t->operands + dy].item].pitch ==
               in->p.items[in->p.operands[t->operands + dx].item].pitch;
}

/* conv2d and the statistics of its output. */
static int gcpi_conv_sums(const gcpi_plan *in, const gcpi_task *t, int n, const gcpi_task *u)
{
    (void)n;
    if (t->kind != GCPI_TASK_FORWARD || u->kind != GCPI_TASK_FORWARD || u->op != t->op + 1) return 0;
    return gcpi_stats_follow(&in->p, &in->p.tape->ops[t->op]);
}

/* A convolution, with the call of the next instruction in the same pass. */
static void gcpi_run_conv(const gcpi_plan *in, int i, int n, gcp_call *next)
{
    const gcpi_facts facts = gcpi_facts_of(&in->p.tape->ops[in->p.tasks[in->list.at[i].task].op]);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(in, &in->list.at[i], n, &call, &space);
    call.fused = next;
    if (in->p.target.kernels) in->p.target.kernels[GCP_OP_CONV2D].forward(&call);
    else if (next->row == GCP_ROW_APPLY) facts.with_group(&call, next);
    else facts.with_stats(&call, next);
}

static void gcpi_run_conv_ends(const gcpi_plan *in, int i, int n)
{
    gcp_call apply;
    gcpi_call_space space;
    const int count = in->p.tasks[in->list.at[i].task].count;
    gcpi_apply_call(in, &in->p.tasks[in->list.at[i + 1].task], n + count, &apply, &space);
    gcpi_run_conv(in, i, n, &apply);
}

static void gcpi_run_conv_sums(const gcpi_plan *in, int i, int n)
{
    gcp_call stats;
    gcpi_call_space space;
    gcpi_op_call(in, &in->list.at[i + 1], n + in->p.tasks[in->list.at[i].task].count, &stats, &space);
    gcpi_run_conv(in, i, n, &stats);
}

static void gcpi_run_norm_begins(const gcpi_plan *in, int i, int n)
{
    const gcpi_op *norm = &in->p.tape->ops[in->p.tasks[in->list.at[i + 1].task].op];
    gcp_call call, rectifier;
    gcpi_call_space space, others;
    gcpi_op_call(in, &in->list.at[i], n, &rectifier, &others);
    gcpi_op_call(in, &in->list.at[i + 1], n + in->p.tasks[in->list.at[i].task].count, &call, &space);
    space.in[4].data = gcpi_item_data(in, gcpi_edge(in->p.tape, norm, 4), -1);
    call.fused = &rectifier;
    (in->p.target.kernels ? &in->p.target.kernels[GCP_OP_BATCH_NORM] : norm->row)->backward(&call);
}

/* i: an instruction; its operands are placed from placed[n] on. t, u: its task and the next instruction's. row: of a
   target with kernels of its own the one that must say GCP_FLAG_FUSED. */
typedef struct gcpi_pair {
    int (*fits)(const gcpi_plan *in, const gcpi_task *t, int n, const gcpi_task *u);
    void (*run)(const gcpi_plan *in, int i, int n);
    int row;
} gcpi_pair;
static const gcpi_pair gcpi_pairs[] = { { gcpi_conv_ends, gcpi_run_conv_ends, GCP_OP_CONV2D },
                                        { gcpi_conv_sums, gcpi_run_conv_sums, GCP_OP_CONV2D },
                                        { gcpi_norm_begins, gcpi_run_norm_begins, GCP_OP_BATCH_NORM } };

static int gcpi_pair_known(const gcp_op *kernels, const gcpi_pair *pair)
{
    return !kernels || kernels[pair->row].flags & GCP_FLAG_FUSED;
}

static const gcpi_pair *gcpi_pair_at(const gcpi_plan *in, int i, int n)        /* NULL: instruction i runs alone */
{
    if (i + 1 >= (int)in->list.count || in->opts.check || in->opts.no_groups) return NULL;
    const gcpi_task *t = &in->p.tasks[in->list.at[i].task], *u = &in->p.tasks[in->list.at[i + 1].task];
    for (size_t k = 0; k < sizeof gcpi_pairs / sizeof *gcpi_pairs; k++)
        if (gcpi_pair_known(in->p.target.kernels, &gcpi_pairs[k]) && gcpi_pairs[k].fits(in, t, n, u))
            return &gcpi_pairs[k];
    return NULL;
}

/* A view of data as reals with the item's shape: the item itself, or values, slots and a count in the state. */
static gcp_view gcpi_view_like(const gcpi_plan *in, int item, void *data)
{
    gcp_view v;
    gcpi_view_empty(in, &v, in->p.items[item].tensor, 1);
    v.data = data;
    v.pitch = in->p.items[item].pitch;
    return v;
}

static void gcpi_run_seed(const gcpi_plan *in, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(in, t, GCP_ROW_SEED, &call, &space);
    space.out[0] = gcpi_view_like(in, in->p.operands[t->operands].item, in->bound.slab + in->placed[n].offset);
    call.outputs = 1;
    call.attributes = &in->run.share;
    gcpi_row_for(&in->p.target, NULL, GCP_ROW_SEED)->forward(&call);
}

static void gcpi_run_norm(const gcpi_plan *in, const gcpi_task *t, int n)
{
    const gcp_op *row = gcpi_row_for(&in->p.target, NULL, GCP_ROW_NORM);
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(in, t, GCP_ROW_NORM, &call, &space);
    call.inputs = 1;
    for (int k = 0; k < t->count; k++) {
        int item = in->p.operands[t->operands + k].item;
        space.in[0] = gcpi_view_like(in, item, gcpi_item_data(in, item, in->placed[n + k].offset));
        space.in[0].accumulate = k > 0;
        row->forward(&call);
    }
    row->backward(&call);
}

typedef struct gcpi_update_call { gcp_call call; gcp_view in[3], out[3], none[3]; } gcpi_update_call;
static void gcpi_update_call_fill(const gcpi_plan *in, const gcpi_task *t, int n, gcpi_update_call *u)
{
    int item = in->p.operands[t->operands].item;
    memset(u->none, 0, sizeof u->none);
    gcpi_call_init(in, t, GCP_ROW_UPDATE, &u->call);
    u->call.in = u->in; u->call.out = u->out; u->call.din = u->call.dout = u->none;
    u->call.inputs = 3; u->call.outputs = 3;
    u->in[0] = gcpi_view_like(in, item, gcpi_item_data(in, item, in->placed[n].offset));
    u->in[1] = gcpi_view_like(in, item, gcpi_count_at(in->p.tape, t->op));
    u->in[2] = gcpi_view_like(in, item, in->p.rates ? in->p.rates[t->op] : NULL);
    u->out[0] = gcpi_view_like(in, item, gcpi_value_at(in->p.tape, t->op));
    for (int k = 0; k < 2; k++)
        u->out[1 + k] = gcpi_view_like(in, item, in->slots > k ? gcpi_slot_at(in->p.tape, t->op, k) : NULL);
}
static void gcpi_run_update(gcpi_plan *in, const gcpi_task *t, int n)
{
    gcpi_update_call u;
    gcpi_update_call_fill(in, t, n, &u);
    if (in->p.far_slots) gcpi_run_far_update(in, &u.call);
    else gcpi_row_for(&in->p.target, NULL, GCP_ROW_UPDATE)->forward(&u.call);
}

/* Updates behind each other, as one call: each is the .fused of the one before it. */
static int gcpi_updates_at(const gcpi_plan *in, int i)
{
    const gcp_op *kernels = in->p.target.kernels;
    int count = 0;
    if (!kernels || !(kernels[GCP_ROW_UPDATE].flags & GCP_FLAG_FUSED)) return 0;
    if (in->opts.check || in->opts.no_groups || in->p.far_slots) return 0;
    while (count < GCP_MAX_UPDATES && i + count < (int)in->list.count &&
           in->p.tasks[in->list.at[i + count].task].kind == GCPI_TASK_UPDATE)
        count++;
    return count;
}
static void gcpi_run_updates(gcpi_plan *in, int i, int n, int count)
{
    gcpi_update_call u[GCP_MAX_UPDATES];
    if (in->run.numbers.micro + 1 != in->run.numbers.micros) return;
    for (int k = 0; k < count; k++) {
        const gcpi_task *t = &in->p.tasks[in->list.at[i + k].task];
        gcpi_far_meet(in, t, n);
        gcpi_update_call_fill(in, t, n, &u[k]);
        if (k > 0) u[k - 1].call.fused = &u[k].call;
        n += t->count;
    }
    in->p.target.kernels[GCP_ROW_UPDATE].forward(&u[0].call);
}

static void gcpi_run_move(const gcpi_plan *in, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(in, t, GCP_OP_CONCAT, &call, &space);
    space.in[0] = gcpi_view_like(in, t->op, in->bound.slab + in->placed[n].offset);
    space.out[0] = gcpi_view_like(in, t->op, in->bound.slab + in->placed[n + 1].offset);
    call.inputs = call.outputs = 1;
    gcpi_row_for(&in->p.target, NULL, GCP_OP_CONCAT)->forward(&call);
}

static void gcpi_run_hook(const gcpi_plan *in, const gcpi_task *t, int n)
{
    gcp_gradient_hook hook = t->kind == GCPI_TASK_HOOK ? in->opts.on_gradient : in->opts.on_wait;
    const gcpi_parameter *p = &in->p.tape->parameters[t->op];
    if (hook && !in->run.measuring)
        hook(in->opts.hook_context, gcpi_handle(in->p.tape, p->tensor),
             (gcp_real *)gcpi_item_data(in, in->p.operands[t->operands].item, in->placed[n].offset),
             gcpi_count(p->shape));
}

static gcp_at gcpi_instruction_at(const gcpi_plan *in, int i)
{
    const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
    int by_item = t->kind >= GCPI_TASK_OFFLOAD,
        op = by_item ? in->p.tape->tensors[in->p.items[t->op].tensor].producer : t->op;
    return (t->kind <= GCPI_TASK_BACKWARD || by_item) && op >= 0 ? in->p.tape->ops[op].at : in->opts.at;
}

/* .check: a recomputed output must have the hash of its first value; the first NaN is an error of the op that made it;
   what lies around a workspace must stay; buffers are overwritten with NaNs when they die. */
typedef struct gcpi_looked { uint64_t hash; int nan; } gcpi_looked;

static void gcpi_look_bytes(const gcp_target *target, const unsigned char *data, size_t size, int real, gcpi_looked *l)
{
    gcp_real some[4096 / sizeof(gcp_real)];
    for (size_t first = 0; first < size; first += sizeof some) {
        size_t n = GCPI_MIN(sizeof some, size - first);
        gcpi_bytes_copy(target, some, data + first, n);
        for (size_t i = 0; i < n; i++) l->hash = gcpi_hash_byte(l->hash, ((unsigned char *)some)[i]);
        for (size_t i = 0; real && i < n / sizeof *some; i++) l->nan |= isnan(some[i]) != 0;
    }
}

static gcpi_looked gcpi_look(const gcpi_plan *in, int item, ptrdiff_t offset)
{
    const gcpi_item *x = &in->p.items[item];
    const gcpi_tensor *e = &in->p.tape->tensors[x->tensor];
    const unsigned char *data = (const unsigned char *)gcpi_item_data(in, item, offset);
    int real = x->kind == GCPI_GRADIENT_ITEM || e->dtype == GCP_DTYPE_REAL, dense = !real || x->pitch == e->shape.d[3];
    size_t rows = dense ? 1 : gcpi_pixels(e->shape),
           width = dense ? x->bytes : (size_t)e->shape.d[3] * sizeof(gcp_real);
    gcpi_looked l = { GCPI_HASH, 0 };
    for (size_t r = 0; r < rows; r++)
        gcpi_look_bytes(&in->p.target, data + r * (size_t)x->pitch * sizeof(gcp_real), width, real, &l);
    return l;
}

/* Before the first instruction: the state and the inputs hold no NaN. */
static void gcpi_check_given(const gcpi_plan *in, gcp_at at)
{
    char name[128];
    for (int i = 1; i < in->p.tensors; i++) {
        int kind = in->p.items[i].kind,
            there = kind == GCPI_STATE_ITEM || (kind == GCPI_INPUT_ITEM && in->where[i] >= 0);
        if (there && gcpi_look(in, i, in->where[i]).nan)
            gcpi_fail(in->p.tape, GCP_E_CHECK, at, "gcp_step", "'%s' holds a NaN before the step",
                      gcp_name(gcpi_handle(in->p.tape, i), name, sizeof name));
    }
}

/* Guards: a pattern on both sides of a workspace, which an op that stays inside leaves alone. */
enum { GCPI_GUARD = 0x5C };
static void gcpi_guards_set(const gcpi_plan *in, const gcpi_task *t)
{
    const gcpi_space w = gcpi_workspace_of(in, t);
    if (!w.guard) return;
    gcpi_bytes_fill(&in->p.target, w.at - w.guard, GCPI_GUARD, w.guard);
    gcpi_bytes_fill(&in->p.target, w.at + w.size, GCPI_GUARD, w.guard);
}
static int gcpi_guard_whole(const gcpi_plan *in, const unsigned char *guard, size_t size)
{
    unsigned char some[256];
    for (size_t n; size > 0; guard += n, size -= n) {
        n = GCPI_MIN(size, sizeof some);
        gcpi_bytes_copy(&in->p.target, some, guard, n);
        for (size_t i = 0; i < n; i++) if (some[i] != GCPI_GUARD) return 0;
    }
    return 1;
}
static void gcpi_guards_check(const gcpi_plan *in, const gcpi_task *t, gcp_at at)
{
    const gcpi_space w = gcpi_workspace_of(in, t);
    char name[128];
    const int before = gcpi_guard_whole(in, w.at - w.guard, w.guard);
    if (before && gcpi_guard_whole(in, w.at + w.size, w.guard)) return;
    gcpi_fail(in->p.tape, GCP_E_CHECK, at, gcpi_task_name(&in->p, t, name, sizeof name),
              "its %s writes %s its workspace of %zu bytes", t->kind == GCPI_TASK_BACKWARD ? "backward" : "forward",
              before ? "behind" : "before", w.size);
}

static void gcpi_check_instruction(const gcpi_plan *in, int i, int n)
{
    const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
    int makes = t->kind == GCPI_TASK_FORWARD || t->kind == GCPI_TASK_PREFETCH || t->kind == GCPI_TASK_BACKWARD;
    int letter = in->list.at[i].kind;
    char name[128], other[256];
    gcp_at at = gcpi_instruction_at(in, i);
    gcpi_guards_check(in, t, at);
    for (int k = 0; makes && k < t->count; k++) {
        const gcpi_operand *o = &in->p.operands[t->operands + k];
        if (o->mode == GCPI_READ || in->placed[n + k].offset < 0) continue;
        gcpi_looked now = gcpi_look(in, o->item, in->placed[n + k].offset);
        gcpi_task_name(&in->p, t, name, sizeof name);
        gcpi_item_name(&in->p, o->item, other, sizeof other);
        if (t->kind == GCPI_TASK_BACKWARD) {
            if (now.nan)
                gcpi_fail(in->p.tape, GCP_E_CHECK, at, name, "its backward makes a NaN in the gradient of %s", other);
        } else if (letter != 'F' && in->hashes[o->item] != now.hash)
            gcpi_fail(in->p.tape, GCP_E_CHECK, at, name, "output %d %s with bits that differ from the first run's",
                      o->slot - GCPI_SLOT_OUT, letter == 'P' ? "came back" : "was recomputed");
        else if (now.nan)
            gcpi_fail(in->p.tape, GCP_E_CHECK, at, name, "output %d has a NaN, but its inputs have none",
                      o->slot - GCPI_SLOT_OUT);
        if (letter == 'F') in->hashes[o->item] = now.hash;
    }
    for (int d = in->dying_first[i]; d < in->dying_first[i + 1] && i + 1 < (int)in->list.count; d++)
        gcpi_bytes_fill(&in->p.target, in->bound.slab + in->buffers[in->dying[d]].offset, 0xFF,
                        in->buffers[in->dying[d]].bytes);
}

static void gcpi_run_instruction(gcpi_plan *in, int i, int n)
{
    const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
    int last = in->run.numbers.micro + 1 == in->run.numbers.micros;
    gcpi_far_meet(in, t, n);
    gcpi_guards_set(in, t);
    switch (t->kind) {
    case GCPI_TASK_FORWARD: if (t->ops > 1) { gcpi_run_group(in, t, n); break; }  /* fall through */
    case GCPI_TASK_BACKWARD: gcpi_run_op(in, &in->list.at[i], n); break;
    case GCPI_TASK_SEED: gcpi_run_seed(in, t, n); break;
    case GCPI_TASK_NORM: if (last) gcpi_run_norm(in, t, n); break;
    case GCPI_TASK_UPDATE: if (last) gcpi_run_update(in, t, n); break;
    case GCPI_TASK_HOOK: case GCPI_TASK_WAIT: if (last) gcpi_run_hook(in, t, n); break;
    case GCPI_TASK_OFFLOAD: case GCPI_TASK_PREFETCH: gcpi_far_start(in, t, n); break;
    case GCPI_TASK_MOVE: gcpi_run_move(in, t, n); break;
    default: break;
    }
    if (in->opts.check && in->run.measuring != 1) gcpi_check_instruction(in, i, n);
}

/* Issues the whole list. A device's first error gets the line of the op that was issued last. */
static void gcpi_issue(void *plan)
{
    gcpi_plan *in = (gcpi_plan *)plan;
    const gcp_target *target = &in->p.target;
    for (int i = 0, n = 0; i < (int)in->list.count; i++) {
        const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
        const char *text;
        char name[128];
        const gcpi_pair *pair = gcpi_pair_at(in, i, n);
        const int updates = gcpi_updates_at(in, i);
        if (updates > 1) {
            gcpi_run_updates(in, i, n, updates);
            for (int k = 1; k < updates; k++, t = &in->p.tasks[in->list.at[++i].task]) n += t->count;
        }
        else if (pair) {
            gcpi_far_meet(in, t, n);
            gcpi_far_meet(in, &in->p.tasks[in->list.at[i + 1].task], n + t->count);
            pair->run(in, i++, n);
            n += t->count;
            t = &in->p.tasks[in->list.at[i].task];
        }
        else gcpi_run_instruction(in, i, n);
        n += t->count;
        if (!target->device || (text = target->device->trouble(target->context)) == NULL) continue;
        gcpi_fail(in->p.tape, GCP_E_DEVICE, gcpi_instruction_at(in, i), gcpi_task_name(&in->p, t, name, sizeof name),
                  "%s: %s", target->name, text);
        break;
    }
    gcpi_far_wait_all(in);
    in->run.next_copy = 0;
}
