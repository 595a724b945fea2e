/* The rest of a tape's problem: groups, gradients, updates, far tasks, moves. */

/* Groups: batch_norm, add and a rectifier that follow one another run as one pass (GCP_ROW_APPLY), so that the values
   in between are never made. Nothing else may need these: they are not kept, and no other op and no backward reads
   them. Backward runs op by op. Which ops form a group depends on the tape, the loss and .inference.
   1: op o + 1 is the only user of the output of op o. */
static int gcpi_swallowed(const gcpi_problem *p, int o, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    const gcpi_uses *u = &p->uses;
    const gcpi_op *op = &t->ops[o], *next = op + 1;
    if (o + 1 >= t->op_count || op->segment != next->segment || read[op->out] ||
        t->tensors[op->out].flags & GCPI_KEPT || op->out == p->root)
        return 0;
    if (p->items[op->out].rounds != p->items[next->out].rounds) return 0;
    return !gcpi_op_kept(p, op) && u->first[op->out + 1] - u->first[op->out] == 1 &&
           u->consumers[u->first[op->out]] == o + 1;
}

static int gcpi_is_part(const gcpi_op *op, int part) { return gcpi_facts_of(op).part == part; }

/* how many ops from o on form a group; 1: none */
static int gcpi_group(const gcpi_problem *p, int o, const unsigned char *read)
{
    const gcpi_op *op = &p->tape->ops[o];
    int norm = gcpi_is_part(op, GCPI_PART_NORM), n = 1;
    if ((!norm && !gcpi_is_part(op, GCPI_PART_ADD)) || !gcpi_swallowed(p, o, read)) return 1;
    if (norm && gcpi_is_part(op + n, GCPI_PART_ADD)) {
        n++;
        if (!gcpi_swallowed(p, o + 1, read)) return n;
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
    gcpi_operand_add(p, task, gcpi_edge(t, op, 0), GCPI_READ, GCPI_ROLE_IN);
    if (add)
        gcpi_operand_add(p, task, gcpi_edge(t, add, add == op || gcpi_edge(t, add, 0) == op->out), GCPI_READ,
                         GCPI_ROLE_IN + 1);
    for (int i = 1; gcpi_is_part(op, GCPI_PART_NORM) && i < 5; i++)
        gcpi_operand_add(p, task, gcpi_edge(t, op, i), GCPI_READ, GCPI_ROLE_IN + 1 + i);
    /* values that are never made count as made by this task */
    for (const gcpi_op *k = op; k < last; k++) p->items[k->out].producer = p->task_count - 1;
    for (int j = 0; j < last->outputs; j++) gcpi_forward_output(p, task, o + ops - 1, j, read);
    gcpi_task_traits(p, task, last);
}

/* Which ops read each tensor. */
static int gcpi_uses_make(gcpi_problem *p, const unsigned char *needed, gcp_arena *a)
{
    const gcp_tape *t = p->tape;
    gcpi_uses *u = &p->uses;
    u->first = GCPI_NEW(a, int, t->tensor_count + 2);
    u->consumers = GCPI_NEW(a, int, t->edge_count + 1);
    if (!u->first || !u->consumers) return 0;
    for (int o = 0; o < t->op_count; o++)
        for (int i = 0; needed[o] && i < t->ops[o].inputs; i++) u->first[gcpi_edge(t, &t->ops[o], i) + 2]++;
    for (int i = 2; i <= t->tensor_count + 1; i++) u->first[i] += u->first[i - 1];
    for (int o = t->op_count - 1; o >= 0; o--)
        for (int i = 0; needed[o] && i < t->ops[o].inputs; i++)
            u->consumers[u->first[gcpi_edge(t, &t->ops[o], i) + 1]++] = o;
    return 1;
}

/* Whether a tensor is more than one of the op's inputs. */
static int gcpi_repeats(const gcp_tape *t, const gcpi_op *op)
{
    for (int i = 1; i < op->inputs; i++)
        for (int k = 0; k < i; k++) if (gcpi_edge(t, op, k) == gcpi_edge(t, op, i)) return 1;
    return 0;
}

static void gcpi_backward_gradient(gcpi_problem *p, gcpi_task *task, int i, unsigned char *defined)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[task->op];
    int x = gcpi_edge(t, op, i);
    if (!p->items[t->tensor_count + x].active) return;
    gcpi_operand_add(p, task, t->tensor_count + x, defined[x] ? GCPI_ADD : GCPI_WRITE, GCPI_ROLE_DIN + i);
    defined[x] = 1;
}

static void gcpi_backward_task(gcpi_problem *p, int o, const unsigned char *read, unsigned char *defined)
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
        if (in >> i & 1) gcpi_operand_add(p, task, gcpi_edge(t, op, i), GCPI_READ, GCPI_ROLE_IN + i);
    for (int j = 0; j < op->outputs; j++) {
        int gradient = t->tensor_count + op->out + j;
        if (out >> j & 1) gcpi_operand_add(p, task, op->out + j, GCPI_READ, GCPI_ROLE_OUT + j);
        if (p->items[gradient].active && defined[op->out + j])
            gcpi_operand_add(p, task, gradient, GCPI_READ, GCPI_ROLE_DOUT + j);
    }
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < op->inputs; i++)
            if (late != (int)(early >> i & 1)) gcpi_backward_gradient(p, task, i, defined);
}

static int gcpi_slots_of(const gcp_plan_opts *o)
{
    return o->optimizer == GCP_OPTIMIZER_SGD ? o->momentum > 0 : o->optimizer ? 2 : 0;
}

/* Slots that wait in far memory pass through the workspace of their update piece by piece. While one piece is updated,
   the next arrives: so there are two places for pieces, each for all slots of so many elements. */
enum { GCPI_SLOTS_PIECE = 65536, GCPI_STATE_ALIGN = 64 };
static size_t gcpi_slots_place(size_t count)            /* bytes of a place, per slot */
{
    return gcpi_round(GCPI_MIN(count, (size_t)GCPI_SLOTS_PIECE) * sizeof(gcp_real), GCPI_STATE_ALIGN);
}

static void gcpi_far_slots_cost(const gcpi_problem *p, gcpi_task *update, gcp_shape shape)
{
    size_t count = gcpi_count(shape), places = count > GCPI_SLOTS_PIECE ? 2 : 1;
    update->workspace = (size_t)p->far_slots * places * gcpi_slots_place(count);
    update->seconds += 2.0 * p->far_slots * (double)count * sizeof(gcp_real) / p->target.far_bytes_per_second;
}

static void gcpi_parameter_task(gcpi_problem *p, int kind, int parameter, int mode)
{
    int gradient = p->tensors + p->tape->parameters[parameter].tensor;
    gcpi_task *task = gcpi_task_add(p, kind, parameter);
    gcpi_operand_add(p, task, gradient, mode, GCPI_ROLE_DIN);
    if (kind == GCPI_TASK_UPDATE) p->items[gradient].updated = (int)(task - p->tasks);
    task->seconds = 3.0 * (double)p->items[gradient].bytes / p->target.bytes_per_second;
    if (kind == GCPI_TASK_UPDATE && p->far_slots) gcpi_far_slots_cost(p, task, p->tape->parameters[parameter].shape);
}

static int gcpi_trained(const gcpi_problem *p, int parameter)       /* has a gradient in this plan */
{
    int tensor = p->tape->parameters[parameter].tensor;
    return tensor && tensor < p->tensors && p->tape->parameters[parameter].kind == GCPI_PARAMETER &&
           p->items[p->tensors + tensor].active;
}

/* The tasks after the backward of op o, for parameters whose gradient is complete then: hooks, and fused updates. */
static void gcpi_after_backward(gcpi_problem *p, int o, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    const gcpi_uses *u = &p->uses;
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
        gcpi_task *norm = gcpi_task_add(p, GCPI_TASK_GRADIENT_NORM, 0);
        for (int i = 0; i < t->parameter_count; i++)
            if (gcpi_trained(p, i)) {
                gcpi_operand_add(p, norm, t->tensor_count + t->parameters[i].tensor, GCPI_READ, GCPI_ROLE_DIN);
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
        p->tasks[i].segment = t->ops[p->tasks[i].op].segment;
        int outer = t->segments[p->tasks[i].segment].outer;
        if (i < tail && (!outer || outer != segment || p->units == 0)) p->units++;
        segment = outer;
        p->tasks[i].unit = i < tail ? p->units - 1 : p->units;
    }
}

/* Far tasks: copies to far memory and back, and waits for them. Only first outputs have them, and only those that can
   have bytes of their own; a list holds them where they do (gcpi_alone). */
static void gcpi_far_tasks(gcpi_problem *p)
{
    for (int i = 0; i < p->tensors; i++) {
        const gcpi_item *x = &p->items[i];
        if (x->kind != GCPI_FORWARD_ITEM || !x->active || !x->alone || x->pinned) continue;
        /* masks and the like share their op's name */
        if (!gcpi_is_graph(p) && p->tape->ops[p->tape->tensors[i].producer].out != i) continue;
        for (int kind = GCPI_TASK_OFFLOAD; kind <= GCPI_TASK_ARRIVE; kind++)
            gcpi_operand_add(p, gcpi_task_add(p, kind, i), i, kind == GCPI_TASK_PREFETCH ? GCPI_WRITE : GCPI_READ,
                             GCPI_ROLE_OUT);
    }
}

static int gcpi_may_move(const gcpi_problem *p, int i, int hooks)
{
    const gcpi_item *x = &p->items[i];
    if ((x->kind != GCPI_FORWARD_ITEM && x->kind != GCPI_GRADIENT_ITEM) || !x->active || !x->alone ||
        x->pinned == GCPI_PINNED_ALWAYS || !x->bytes)
        return 0;
    if (gcpi_is_graph(p)) return 1;
    const gcpi_tensor *e = &p->tape->tensors[x->tensor];
    if (hooks && e->kind == GCPI_PARAMETER) return 0;          /* on_gradient's address is good until on_wait returns */
    return e->producer < 0 || (p->tape->ops[e->producer].out == x->tensor &&
                               (e->dtype == GCP_DTYPE_REAL || x->kind == GCPI_GRADIENT_ITEM));
}

/* For items of real numbers that can have bytes of their own: a concat of one input does the copying. A graph's
   costs may be in any unit, so there a move costs what the op costs that made the item. */
static void gcpi_move_tasks(gcpi_problem *p, int hooks)
{
    for (int i = 0; i < p->item_count; i++) {
        if (!gcpi_may_move(p, i, hooks)) continue;
        gcpi_task *task = gcpi_task_add(p, GCPI_TASK_MOVE, i);
        gcpi_operand_add(p, task, i, GCPI_READ, GCPI_ROLE_IN);
        gcpi_operand_add(p, task, i, GCPI_WRITE, GCPI_ROLE_OUT);
        task->seconds = gcpi_is_graph(p) ? p->tasks[p->items[i].producer].seconds
                                 : 2 * (double)gcpi_bytes_alone(p, i) / p->target.bytes_per_second;
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
    p->copied = GCPI_NEW(a, gcpi_copied, t->op_count);
    return p->items && p->tasks && p->operands && p->copied;
}

static void gcpi_problem_backward(gcpi_problem *p, const unsigned char *needed, const unsigned char *read,
                                  unsigned char *defined, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    gcpi_task *seed = gcpi_task_add(p, GCPI_TASK_SEED, t->tensors[p->root].producer);
    gcpi_operand_add(p, seed, t->tensor_count + p->root, GCPI_WRITE, GCPI_ROLE_DOUT);
    defined[p->root] = 1;
    for (int o = t->op_count - 1; o >= 0; o--) {
        if (!needed[o] || !gcpi_has_backward(p, &t->ops[o])) continue;
        gcpi_backward_task(p, o, read, defined);
        gcpi_after_backward(p, o, opts);
    }
    gcpi_updates(p, opts);
    for (int i = 1; i < t->tensor_count; i++) {
        gcpi_item *gradient = &p->items[t->tensor_count + i];
        if (!gradient->active) continue;
        if (t->tensors[i].kind == GCPI_PARAMETER)
            gradient->pinned = opts->accumulate > 1 ? GCPI_PINNED_ALWAYS : opts->optimizer ? 0 : GCPI_PINNED_TO_END;
        if (t->tensors[i].kind == GCPI_INPUT) gradient->pinned = GCPI_PINNED_TO_END;
    }
}

/* Places all items for the choice in p->copied, in the order of plain backpropagation: what comes first has its way. */
static void gcpi_views_place(gcpi_problem *p)
{
    gcpi_views_forget(p);
    for (int k = 0; k < p->task_count; k++) {
        gcpi_task *task = &p->tasks[k];
        int back = task->kind == GCPI_TASK_BACKWARD;
        if (task->kind != GCPI_TASK_FORWARD && !back) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        if (back) gcpi_backward_views(p, task);
        else task->free = task->ops == 1 && op->row->flags & GCP_FLAG_VIEW && gcpi_forward_views(p, op);
        gcpi_task_in_place(p, task, op);
        gcpi_task_cost(p, task, task->ops > 1 ? NULL : op, back);
    }
}

/* All values of concats and slices (copied & 1), all gradients of concats (copied & 2) are copies. */
static void gcpi_copied_set(gcpi_copied *c, int ops, int copied)
{
    for (int o = 0; o < ops; o++) {
        c[o].values = copied & 1 ? UINT64_MAX : 0;
        c[o].gradients = copied & 2 ? UINT64_MAX : 0;
    }
}

static void gcpi_views_choose(gcpi_problem *p, int copied)
{
    gcpi_copied_set(p->copied, p->tape->op_count, copied);
    gcpi_views_place(p);
    for (int i = 0; i < p->item_count; i++) p->items[i].alone |= gcpi_alone(p, i);
}

/* Of what gcpi_views_choose can copy, what is in place now: there is a choice. */
static int gcpi_views_open(const gcpi_problem *p)
{
    int open = 0;
    for (int k = 0; k < p->task_count && !gcpi_is_graph(p); k++) {
        const gcpi_task *task = &p->tasks[k];
        if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        int view = gcpi_facts_of(op).view;
        if (view == GCPI_VIEW_PART && task->free) open |= 1;
        for (int i = 0; view == GCPI_VIEW_JOINED && task->kind == GCPI_TASK_FORWARD && i < op->inputs; i++)
            open |= gcpi_in_place_in(p, op, i);
        for (int i = 0; view == GCPI_VIEW_JOINED && task->kind == GCPI_TASK_BACKWARD && i < task->count; i++)
            open |= 2 * (p->operands[task->operands + i].mode == GCPI_ALIAS);
    }
    return open;
}

static int gcpi_rates_make(gcpi_problem *p, const gcp_plan_opts *o, gcp_arena *a)
{
    const gcp_tape *t = p->tape;
    if (!o->rates && !o->decays) return 1;
    p->rates = (double (*)[2])gcp_arena_push(a, 2 * sizeof(double), 16, t->parameter_count + 1);
    for (int i = 0; p->rates && i < t->parameter_count; i++) {
        p->rates[i][0] = gcpi_numbers_fit(o->rates, t->parameters[i].path, 1);
        p->rates[i][1] = gcpi_numbers_fit(o->decays, t->parameters[i].path, o->weight_decay);
    }
    return p->rates != NULL;
}

/* A task for each group of ops that are needed, and for each op that is in none. */
static void gcpi_forward_tasks(gcpi_problem *p, const unsigned char *needed, const unsigned char *read, int no_groups)
{
    for (int o = 0, n; o < p->tape->op_count; o += n) {
        n = needed[o] && !no_groups && gcpi_groups_round(p) ? gcpi_group(p, o, read) : 1;
        if (n > 1) gcpi_group_task(p, o, n, read);
        else if (needed[o]) gcpi_forward_task(p, o, read);
    }
    p->forward = p->task_count;
}

/* Makes the problem of a tape. 0: the arena is too small. */
static int gcpi_problem_make(gcpi_problem *p, int root, const gcp_plan_opts *opts, const gcp_target *target,
                             gcp_arena *a)
{
    gcp_tape *t = p->tape;
    ptrdiff_t scratch = a->scratch;
    p->target = *target; p->root = root; p->training = !opts->inference;
    p->numbers = GCPI_NUMBERS_BYTES;
    p->store = opts->store;
    p->frozen_norms = opts->frozen_norms; p->keep = opts->keep;
    p->guard = opts->check ? target->align : 0;
    if (!gcpi_rates_make(p, opts, a)) return 0;
    p->far_slots = t->far_slots ? gcpi_slots_of(opts) : 0;
    unsigned char *needed = GCPI_SCRATCH(a, unsigned char, t->op_count + 1),
                  *read = GCPI_SCRATCH(a, unsigned char, t->tensor_count);
    unsigned char *defined = GCPI_SCRATCH(a, unsigned char, t->tensor_count);
    if (!gcpi_problem_arrays(p, opts->list || opts->far, gcpi_moves(opts), a) || !needed || !read || !defined) return 0;
    gcpi_mark_needed(t, root, needed);
    if (!gcpi_uses_make(p, needed, a)) return 0;
    gcpi_items_make(p);
    gcpi_items_store(p, needed, defined);
    memset(defined, 0, (size_t)t->tensor_count);
    gcpi_items_dense(p);
    if (p->training) gcpi_mark_gradients(p, needed, opts);
    gcpi_mark_reads(p, needed, read);
    for (int i = 1; i < t->tensor_count; i++)
        if (p->items[i].kind == GCPI_INPUT_ITEM) p->items[i].pinned = GCPI_PINNED_ALWAYS;
    gcpi_forward_tasks(p, needed, read, opts->no_groups);
    /* inputs and parameters that are read */
    for (int i = 0; i < p->operand_count; i++) p->items[p->operands[i].item].active = 1;
    gcpi_units_number(p);
    if (p->training) gcpi_problem_backward(p, needed, read, defined, opts);
    gcpi_views_choose(p, 3);
    gcpi_views_choose(p, 0);
    if (opts->list || opts->far) gcpi_far_tasks(p);
    if (gcpi_moves(opts)) gcpi_move_tasks(p, opts->on_gradient != NULL);
    a->scratch = scratch;
    p->optimizer = (int)opts->optimizer;
    return !opts->costs || gcpi_costs_apply(p, opts, a);
}
