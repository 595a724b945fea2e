/* The rest of a tape's problem: groups, gradients and their aliases, updates, far tasks, moves. */

/* Groups: batch_norm, add and a rectifier that follow one another run as one pass (GCP_ROW_APPLY), so that the values
   in between are never made. Nothing else may need these: they are not kept, and no other op and no backward reads
   them. Backward runs op by op. Which ops form a group depends on the tape, the loss and .inference. */
/* consumers[first[i]] up to first[i + 1]: the ops that read tensor i, last op first */
typedef struct gcpi_uses { int *first, *consumers, *last; } gcpi_uses;

/* whether op o + 1 is the only user of the output of op o */
static int gcpi_swallowed(const gcpi_problem *p, const gcpi_uses *u, int o, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o], *next = op + 1;
    unsigned keep = 0;
    if (o + 1 >= t->op_count || op->segment != next->segment || read[op->out] ||
        t->tensors[op->out].flags & GCPI_KEPT || op->out == p->root)
        return 0;
    for (int s = op->segment; s; s = t->segments[s].parent) keep |= t->segments[s].keep;
    return !(keep >> op->kind & 1) && u->first[op->out + 1] - u->first[op->out] == 1 &&
           u->consumers[u->first[op->out]] == o + 1;
}

static int gcpi_is_part(const gcpi_op *op, int part) { return gcpi_facts_of(op).part == part; }

/* how many ops from o on form a group; 1: none */
static int gcpi_group(const gcpi_problem *p, const gcpi_uses *u, int o, const unsigned char *read)
{
    const gcpi_op *op = &p->tape->ops[o];
    int norm = gcpi_is_part(op, GCPI_PART_NORM), n = 1;
    if ((!norm && !gcpi_is_part(op, GCPI_PART_ADD)) || !gcpi_swallowed(p, u, o, read)) return 1;
    if (norm && gcpi_is_part(op + n, GCPI_PART_ADD)) {
        n++;
        if (!gcpi_swallowed(p, u, o + 1, read)) return n;
    }
    return n + gcpi_is_part(op + n, GCPI_PART_RECTIFIER);
}

static void gcpi_group_task(gcpi_problem *p, int o, int ops, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o], *last = op + ops - 1,
                  *add = gcpi_is_part(op, GCPI_PART_ADD)       ? op
                         : gcpi_is_part(op + 1, GCPI_PART_ADD) ? op + 1
                                                               : NULL;
    gcpi_task *task = gcpi_task_add(p, GCPI_TASK_FORWARD, o + ops - 1);
    task->ops = ops;
    gcpi_operand_add(p, task, gcpi_edge(t, op, 0), GCPI_READ, GCPI_SLOT_IN);
    if (add)
        gcpi_operand_add(p, task, gcpi_edge(t, add, add == op || gcpi_edge(t, add, 0) == op->out), GCPI_READ,
                         GCPI_SLOT_IN + 1);
    for (int i = 1; gcpi_is_part(op, GCPI_PART_NORM) && i < 5; i++)
        gcpi_operand_add(p, task, gcpi_edge(t, op, i), GCPI_READ, GCPI_SLOT_IN + 1 + i);
    /* values that are never made count as made by this task */
    for (const gcpi_op *k = op; k < last; k++) p->items[k->out].producer = p->task_count - 1;
    for (int j = 0; j < last->outputs; j++) gcpi_forward_output(p, task, o + ops - 1, j, read);
    gcpi_task_traits(p, task, last);
    gcpi_task_cost(p, task, NULL, 0);
}

/* Gradients. The first backward task that makes a gradient writes it; later ones add to it. A gradient that add, concat
   or reshape passes on unchanged can share its bytes, unless one of those that share them is changed while another is
   still to be read. */
static int gcpi_uses_make(const gcpi_problem *p, const unsigned char *needed, gcp_arena *a, gcpi_uses *u)
{
    const gcp_tape *t = p->tape;
    u->first = GCPI_SCRATCH(a, int, t->tensor_count + 2);
    u->consumers = GCPI_SCRATCH(a, int, t->edge_count + 1);
    if (!u->first || !u->consumers) return 0;
    for (int o = 0; o < t->op_count; o++)
        for (int i = 0; needed[o] && i < t->ops[o].inputs; i++) u->first[gcpi_edge(t, &t->ops[o], i) + 2]++;
    for (int i = 2; i <= t->tensor_count + 1; i++) u->first[i] += u->first[i - 1];
    for (int o = t->op_count - 1; o >= 0; o--)
        for (int i = 0; needed[o] && i < t->ops[o].inputs; i++)
            u->consumers[u->first[gcpi_edge(t, &t->ops[o], i) + 1]++] = o;
    return 1;
}

/* Whether gradient x would change while y is still to be read. Ops before o add to x, in backward after o. Both
   gradients are last read by the backward of their producers. Backward runs from the last op down to -1. */
static int gcpi_changes_under(const gcpi_problem *p, const gcpi_uses *u, int x, int y, int o)
{
    const gcp_tape *t = p->tape;
    int tx = p->items[x].tensor, ty = p->items[y].tensor;
    int y_last = t->tensors[ty].producer;                     /* -1: an input's, read at the end */
    for (int k = u->first[tx]; k < u->first[tx + 1]; k++) {
        int c = u->consumers[k];
        if (c < o && c >= y_last && gcpi_has_backward(p, &t->ops[c])) return 1;
    }
    return 0;
}

static int gcpi_regions_meet(const gcpi_problem *p, int x, int y)
{
    const gcpi_item *a = &p->items[x], *b = &p->items[y];
    size_t wa = (size_t)a->row * sizeof(gcp_real), wb = (size_t)b->row * sizeof(gcp_real);
    return a->pitch != b->pitch || (a->offset < b->offset + wb && b->offset < a->offset + wa);
}

/* Where input i begins in the rows of a concat, in bytes. */
static size_t gcpi_joined_at(const gcp_tape *t, const gcpi_op *op, int i)
{
    size_t at = 0;
    if (gcpi_facts_of(op).view != GCPI_VIEW_JOINED) return 0;
    for (int k = 0; k < i; k++) at += (size_t)t->tensors[gcpi_edge(t, op, k)].shape.d[3] * sizeof(gcp_real);
    return at;
}

static int gcpi_gradient_alias(gcpi_problem *p, const gcpi_uses *u, int o, int i)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o];
    int x = t->tensor_count + gcpi_edge(t, op, i), y = t->tensor_count + op->out;
    if (!(op->row->flags & GCP_FLAG_GRAD_VIEW) || t->tensors[gcpi_edge(t, op, i)].kind == GCPI_PARAMETER) return 0;
    int whole = gcpi_facts_of(op).view == GCPI_VIEW_WHOLE;
    if (whole ? !gcpi_is_dense(p, y) : !gcpi_takes_pitch(p, x, p->items[y].pitch)) return 0;
    for (int k = 0; k < op->inputs; k++) if (k != i && gcpi_edge(t, op, k) == gcpi_edge(t, op, i)) return 0;
    gcpi_item trial = p->items[x];
    gcpi_view_of(p, x, y, gcpi_joined_at(t, op, i), whole ? trial.pitch : p->items[y].pitch);
    for (int m = p->items[x].root; m >= 0; m = p->items[m].next) {
        if (m == x || m == y || t->tensors[p->items[m].tensor].producer >= o || !gcpi_regions_meet(p, x, m)) continue;
        if (!gcpi_changes_under(p, u, x, m, o) && !gcpi_changes_under(p, u, m, x, o)) continue;
        p->items[p->items[x].root].next = p->items[x].next;   /* gcpi_view_of put it right after the root */
        p->items[x] = trial;
        return 0;
    }
    return 1;
}

/* Whether a tensor is more than one of the op's inputs. */
static int gcpi_repeats(const gcp_tape *t, const gcpi_op *op)
{
    for (int i = 1; i < op->inputs; i++)
        for (int k = 0; k < i; k++) if (gcpi_edge(t, op, k) == gcpi_edge(t, op, i)) return 1;
    return 0;
}

static void gcpi_backward_gradient(gcpi_problem *p, const gcpi_uses *u, gcpi_task *task, int i, unsigned char *defined)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[task->op];
    int x = gcpi_edge(t, op, i), mode = GCPI_ADD;
    if (!p->items[t->tensor_count + x].active) return;
    if (!defined[x]) mode = gcpi_gradient_alias(p, u, task->op, i) ? GCPI_ALIAS : GCPI_WRITE;
    gcpi_operand_add(p, task, t->tensor_count + x, mode, GCPI_SLOT_DIN + i);
    defined[x] = 1;
}

static void gcpi_backward_task(gcpi_problem *p, const gcpi_uses *u, int o, const unsigned char *read,
                               unsigned char *defined)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o];
    gcpi_task *task = gcpi_task_add(p, GCPI_TASK_BACKWARD, o);
    /* where a tensor's gradient has two parts, the one that is written first comes first: the other is added to it */
    uint64_t in, out, early = gcpi_repeats(t, op) ? gcpi_facts_of(op).early : 0;
    task->forward = p->items[op->out].producer;
    task->unit = p->tasks[task->forward].unit;
    gcpi_backward_reads(p, op, read[op->out], &in, &out);
    for (int i = 0; i < op->inputs; i++)
        if (in >> i & 1) gcpi_operand_add(p, task, gcpi_edge(t, op, i), GCPI_READ, GCPI_SLOT_IN + i);
    for (int j = 0; j < op->outputs; j++) {
        int gradient = t->tensor_count + op->out + j;
        if (out >> j & 1) gcpi_operand_add(p, task, op->out + j, GCPI_READ, GCPI_SLOT_OUT + j);
        if (p->items[gradient].active && defined[op->out + j])
            gcpi_operand_add(p, task, gradient, GCPI_READ, GCPI_SLOT_DOUT + j);
    }
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < op->inputs; i++)
            if (late != (int)(early >> i & 1)) gcpi_backward_gradient(p, u, task, i, defined);
    gcpi_task_in_place(p, task, op);
    gcpi_task_cost(p, task, op, 1);
}

static void gcpi_parameter_task(gcpi_problem *p, int kind, int parameter, int mode)
{
    int gradient = p->tensors + p->tape->parameters[parameter].tensor;
    gcpi_task *task = gcpi_task_add(p, kind, parameter);
    gcpi_operand_add(p, task, gradient, mode, GCPI_SLOT_DIN);
    if (kind == GCPI_TASK_UPDATE) p->items[gradient].updated = (int)(task - p->tasks);
    task->seconds = 3.0 * (double)p->items[gradient].bytes / p->target.bytes_per_second;
}

static int gcpi_trained(const gcpi_problem *p, int parameter)       /* has a gradient in this plan */
{
    int tensor = p->tape->parameters[parameter].tensor;
    return tensor && tensor < p->tensors && p->tape->parameters[parameter].kind == GCPI_PARAMETER &&
           p->items[p->tensors + tensor].active;
}

/* The tasks after the backward of op o, for parameters whose gradient is complete then: hooks, and fused updates. */
static void gcpi_after_backward(gcpi_problem *p, const gcpi_uses *u, int o, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o];
    for (int i = 0; i < op->inputs; i++) {
        int x = gcpi_edge(t, op, i), parameter = t->tensors[x].parameter, repeated = 0, last = 1, read = 0;
        for (int k = 0; k < i; k++) repeated |= gcpi_edge(t, op, k) == x;
        if (t->tensors[x].kind != GCPI_PARAMETER || !p->items[t->tensor_count + x].active || repeated) continue;
        for (int k = u->first[x]; k < u->first[x + 1]; k++) {
            last &= u->consumers[k] >= o || !gcpi_has_backward(p, &t->ops[u->consumers[k]]);
            read |= u->consumers[k] < o;          /* that op may run again later and must see the old weights */
        }
        if (!last) continue;
        if (opts->on_gradient) gcpi_parameter_task(p, GCPI_TASK_HOOK, parameter, GCPI_ADD);
        if (!opts->fuse_update || read) continue;
        if (opts->on_gradient) gcpi_parameter_task(p, GCPI_TASK_WAIT, parameter, GCPI_ADD);
        gcpi_parameter_task(p, GCPI_TASK_UPDATE, parameter, GCPI_READ);
    }
}

static int gcpi_updated(const gcpi_problem *p, int parameter)
{
    return p->items[p->tensors + p->tape->parameters[parameter].tensor].updated;
}

static size_t gcpi_norm_bytes(const gcpi_problem *p, const gcp_shape *shape)
{
    gcp_cost_call call;
    gcp_cost cost;
    memset(&cost, 0, sizeof cost);
    memset(&call, 0, sizeof call);
    call.in = shape; call.inputs = 1; call.target = &p->target;
    gcpi_row_for(&p->target, NULL, GCP_ROW_NORM)->cost(&call, &cost);
    return cost.workspace;
}

static void gcpi_updates(gcpi_problem *p, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    for (int i = 0; opts->on_gradient && i < t->parameter_count; i++)
        if (gcpi_trained(p, i) && !gcpi_updated(p, i)) gcpi_parameter_task(p, GCPI_TASK_WAIT, i, GCPI_ADD);
    if (!opts->optimizer) return;
    int trained = 0;
    for (int i = 0; i < t->parameter_count; i++) trained |= gcpi_trained(p, i);
    if (opts->clip_norm > 0 && trained) {
        gcpi_task *norm = gcpi_task_add(p, GCPI_TASK_NORM, 0);
        for (int i = 0; i < t->parameter_count; i++)
            if (gcpi_trained(p, i)) {
                gcpi_operand_add(p, norm, t->tensor_count + t->parameters[i].tensor, GCPI_READ, GCPI_SLOT_DIN);
                norm->workspace = GCPI_MAX(norm->workspace, gcpi_norm_bytes(p, &t->parameters[i].shape));
            }
    }
    for (int i = 0; i < t->parameter_count; i++)
        if (gcpi_trained(p, i) && !gcpi_updated(p, i)) gcpi_parameter_task(p, GCPI_TASK_UPDATE, i, GCPI_READ);
}

/* The tail: the loss and what is made from losses alone, to the end of forward. Returns its first task. */
static int gcpi_tail(gcpi_problem *p)
{
    int tail = p->forward;
    for (int i = 0; i < p->forward; i++) {
        int made = 0, losses = 0;
        for (int k = 0; k < p->tasks[i].count; k++) {
            const gcpi_item *x = &p->items[p->operands[p->tasks[i].operands + k].item];
            if (p->operands[p->tasks[i].operands + k].mode != GCPI_READ || x->kind != GCPI_FORWARD_ITEM) continue;
            made++;
            losses += p->tasks[x->producer].unit;
        }
        p->tasks[i].unit = p->training && (p->tasks[i].loss || (made && made == losses));
    }
    while (tail > 0 && p->tasks[tail - 1].unit) tail--;
    return tail;
}

/* A unit is an outermost segment, or an op outside of all segments. The tail belongs to none (unit = units). */
static void gcpi_units_number(gcpi_problem *p)
{
    const gcp_tape *t = p->tape;
    int segment = 0, tail = gcpi_tail(p);
    for (int i = 0; i < p->forward; i++) {
        int outer = p->tasks[i].segment = t->ops[p->tasks[i].op].segment;
        while (outer && t->segments[outer].depth > 1) outer = t->segments[outer].parent;
        if (i < tail && (!outer || outer != segment || p->units == 0)) p->units++;
        segment = outer;
        p->tasks[i].unit = i < tail ? p->units - 1 : p->units;
    }
}

/* Far tasks: copies to far memory and back, and waits for them. Only first outputs that share their bytes with no other
   tensor have them. */
static void gcpi_far_tasks(gcpi_problem *p)
{
    for (int i = 0; i < p->tensors; i++) {
        const gcpi_item *x = &p->items[i];
        if (x->kind != GCPI_FORWARD_ITEM || !x->active || x->root != i || x->next >= 0 || x->pinned) continue;
        /* masks and the like share their op's name */
        if (!p->names && p->tape->ops[p->tape->tensors[i].producer].out != i) continue;
        for (int kind = GCPI_TASK_OFFLOAD; kind <= GCPI_TASK_ARRIVE; kind++)
            gcpi_operand_add(p, gcpi_task_add(p, kind, i), i, kind == GCPI_TASK_PREFETCH ? GCPI_WRITE : GCPI_READ,
                             GCPI_SLOT_OUT);
    }
}

static int gcpi_may_move(const gcpi_problem *p, int i, int hooks)
{
    const gcpi_item *x = &p->items[i];
    if ((x->kind != GCPI_FORWARD_ITEM && x->kind != GCPI_GRADIENT_ITEM) || !x->active || x->root != i || x->next >= 0 ||
        x->pinned == 2 || !x->bytes)
        return 0;
    if (p->names) return 1;
    const gcpi_tensor *e = &p->tape->tensors[x->tensor];
    if (hooks && e->kind == GCPI_PARAMETER) return 0;          /* on_gradient's address is good until on_wait returns */
    return e->producer < 0 || (p->tape->ops[e->producer].out == x->tensor &&
                               (e->dtype == GCP_DTYPE_REAL || x->kind == GCPI_GRADIENT_ITEM));
}

/* For items of real numbers that share their bytes with nothing else: a concat of one input does the copying. A graph's
   costs may be in any unit, so there a move costs what the op costs that made the item. */
static void gcpi_move_tasks(gcpi_problem *p, int hooks)
{
    for (int i = 0; i < p->item_count; i++) {
        if (!gcpi_may_move(p, i, hooks)) continue;
        gcpi_task *task = gcpi_task_add(p, GCPI_TASK_MOVE, i);
        gcpi_operand_add(p, task, i, GCPI_READ, GCPI_SLOT_IN);
        gcpi_operand_add(p, task, i, GCPI_WRITE, GCPI_SLOT_OUT);
        task->seconds = p->names ? p->tasks[p->items[i].producer].seconds
                                 : 2 * (double)p->items[i].bytes / p->target.bytes_per_second;
        p->items[i].move = (int)(task - p->tasks);
    }
}

/* Whether the list may hold moves. */
static int gcpi_moves(const gcp_plan_opts *o) { return o->list != NULL || o->policy == GCP_POLICY_BUDGET; }

static int gcpi_problem_arrays(gcpi_problem *p, int far, int moves, gcp_arena *a)
{
    const gcp_tape *t = p->tape;
    ptrdiff_t tasks = 2 * (ptrdiff_t)t->op_count + 3 * (ptrdiff_t)t->parameter_count + 2;
    ptrdiff_t operands =
        3 * (ptrdiff_t)t->edge_count + 4 * (ptrdiff_t)t->tensor_count + 4 * (ptrdiff_t)t->parameter_count + 1;
    if (far) { tasks += 3 * (ptrdiff_t)t->tensor_count; operands += 3 * (ptrdiff_t)t->tensor_count; }
    if (moves) { tasks += 2 * (ptrdiff_t)t->tensor_count; operands += 4 * (ptrdiff_t)t->tensor_count; }
    p->tensors = t->tensor_count;
    p->item_count = 2 * p->tensors;
    p->items = GCPI_NEW(a, gcpi_item, p->item_count);
    p->tasks = GCPI_NEW(a, gcpi_task, tasks);
    p->operands = GCPI_NEW(a, gcpi_operand, operands);
    return p->items && p->tasks && p->operands;
}

static void gcpi_problem_backward(gcpi_problem *p, const gcpi_uses *u, const unsigned char *needed,
                                  const unsigned char *read, unsigned char *defined, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    gcpi_task *seed = gcpi_task_add(p, GCPI_TASK_SEED, t->tensors[p->root].producer);
    gcpi_operand_add(p, seed, t->tensor_count + p->root, GCPI_WRITE, GCPI_SLOT_DOUT);
    defined[p->root] = 1;
    for (int o = t->op_count - 1; o >= 0; o--) {
        if (!needed[o] || !gcpi_has_backward(p, &t->ops[o])) continue;
        gcpi_backward_task(p, u, o, read, defined);
        gcpi_after_backward(p, u, o, opts);
    }
    gcpi_updates(p, opts);
    for (int i = 1; i < t->tensor_count; i++) {
        gcpi_item *gradient = &p->items[t->tensor_count + i];
        if (!gradient->active) continue;
        if (t->tensors[i].kind == GCPI_PARAMETER) gradient->pinned = opts->accumulate > 1 ? 2 : !opts->optimizer;
        if (t->tensors[i].kind == GCPI_INPUT) gradient->pinned = 1;
    }
}

/* Makes the problem of a tape. 0: the arena is too small. */
static int gcpi_problem_make(gcpi_problem *p, int root, const gcp_plan_opts *opts, const gcp_target *target,
                             gcp_arena *a)
{
    gcp_tape *t = p->tape;
    ptrdiff_t scratch = a->scratch;
    gcpi_uses uses;
    p->target = *target; p->root = root; p->training = !opts->inference;
    p->numbers = GCPI_NUMBERS_BYTES;
    unsigned char *needed = GCPI_SCRATCH(a, unsigned char, t->op_count + 1),
                  *read = GCPI_SCRATCH(a, unsigned char, t->tensor_count);
    unsigned char *defined = GCPI_SCRATCH(a, unsigned char, t->tensor_count);
    if (!gcpi_problem_arrays(p, opts->list || opts->far, gcpi_moves(opts), a) || !needed || !read || !defined) return 0;
    gcpi_mark_needed(t, root, needed);
    if (!gcpi_uses_make(p, needed, a, &uses)) return 0;
    gcpi_items_make(p);
    gcpi_items_dense(p);
    if (p->training) gcpi_mark_gradients(p, needed);
    gcpi_mark_reads(p, needed, read);
    for (int i = 1; i < t->tensor_count; i++)
        if (p->items[i].kind == GCPI_INPUT_ITEM) p->items[i].pinned = 2;
    for (int o = 0, n; o < t->op_count; o += n) {
        n = needed[o] && !opts->no_groups ? gcpi_group(p, &uses, o, read) : 1;
        if (n > 1) gcpi_group_task(p, o, n, read);
        else if (needed[o]) gcpi_forward_task(p, o, read);
    }
    /* inputs and parameters that are read */
    for (int i = 0; i < p->operand_count; i++) p->items[p->operands[i].item].active = 1;
    p->forward = p->task_count;
    gcpi_units_number(p);
    if (p->training) gcpi_problem_backward(p, &uses, needed, read, defined, opts);
    if (opts->list || opts->far) gcpi_far_tasks(p);
    if (gcpi_moves(opts)) gcpi_move_tasks(p, opts->on_gradient != NULL);
    a->scratch = scratch;
    p->optimizer = (int)opts->optimizer;
    return !opts->costs || gcpi_costs_apply(p, opts, a);
}
