/* The executor: instruction after instruction, pairs in one pass. A pair is two instructions that run as one pass;
   so are updates behind each other. */

/* Pairs: two instructions that run as one pass and give the same bits as one after the other. The second writes where
   the first would have written, so that no instruction could read what is left out; or it reads what the first made
   while that is in cache, or still at hand. */

/* Index of a task's operand, or -1. */
static int gcpi_operand_at(const gcpi_plan *in, const gcpi_task *t, int role)
{
    for (int k = 0; k < t->count; k++) if (in->p.operands[t->operands + k].role == role) return k;
    return -1;
}

/* Whether operand b of task u (placed from placed[m] on) has the same bytes as operand a of task t (from placed[n] on),
   and both tasks write them without adding. */
static int gcpi_same_place(const gcpi_plan *in, const gcpi_task *t, int n, int a, const gcpi_task *u, int m, int b)
{
    if (a < 0 || b < 0) return 0;
    const gcpi_operand *x = &in->p.operands[t->operands + a], *y = &in->p.operands[u->operands + b];
    return x->mode == GCPI_WRITE && y->mode == GCPI_WRITE && in->p.items[x->item].pinned != GCPI_PINNED_ALWAYS &&
           in->p.items[y->item].pinned != GCPI_PINNED_ALWAYS && in->placed[n + a].offset >= 0 &&
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
    if (!gcpi_facts_of(op).with_group || !gcpi_fuses(&in->p.target, op)) return 0;
    if (!gcpi_is_part(first, GCPI_PART_ADD) && !gcpi_is_part(first, GCPI_PART_RECTIFIER)) return 0;
    for (int k = 0; k < u->count; k++)
        reads += in->p.operands[u->operands + k].item == op->out && in->p.operands[u->operands + k].mode == GCPI_READ;
    return reads == 1 && gcpi_same_place(in, t, n, gcpi_operand_at(in, t, GCPI_ROLE_OUT), u, n + t->count,
                                         gcpi_operand_at(in, u, GCPI_ROLE_OUT));
}

/* Backward of a rectifier and, next and in place, of the batch-norm whose output it rectifies. */
static int gcpi_batch_norm_begins(const gcpi_plan *in, const gcpi_task *t, int n, const gcpi_task *u)
{
    if (t->kind != GCPI_TASK_BACKWARD || u->kind != GCPI_TASK_BACKWARD) return 0;
    const gcpi_op *op = &in->p.tape->ops[t->op], *norm = &in->p.tape->ops[u->op];
    int dx = gcpi_operand_at(in, t, GCPI_ROLE_DIN), dy = gcpi_operand_at(in, t, GCPI_ROLE_DOUT);
    if (!gcpi_is_part(op, GCPI_PART_RECTIFIER) || !gcpi_is_part(norm, GCPI_PART_NORM)) return 0;
    if (gcpi_edge(in->p.tape, op, 0) != norm->out || !gcpi_fuses(&in->p.target, norm) ||
        in->p.items[gcpi_edge(in->p.tape, norm, GCPI_NORM_BETA)].kind != GCPI_STATE_ITEM)
        return 0;
    return gcpi_same_place(in, t, n, dx, u, n + t->count, gcpi_operand_at(in, u, GCPI_ROLE_DIN)) && dy >= 0 &&
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
    const gcpi_op *op = &in->p.tape->ops[in->p.tasks[in->list.at[i].task].op];
    const gcpi_facts facts = gcpi_facts_of(op);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(in, &in->list.at[i], n, &call, &space);
    call.fused = next;
    if (in->p.target.kernels) in->p.target.kernels[op->kind].forward(&call);
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

static void gcpi_run_batch_norm_begins(const gcpi_plan *in, int i, int n)
{
    const gcpi_op *norm = &in->p.tape->ops[in->p.tasks[in->list.at[i + 1].task].op];
    gcp_call call, rectifier;
    gcpi_call_space space, others;
    gcpi_op_call(in, &in->list.at[i], n, &rectifier, &others);
    gcpi_op_call(in, &in->list.at[i + 1], n + in->p.tasks[in->list.at[i].task].count, &call, &space);
    space.in[GCPI_NORM_BETA].data = gcpi_item_data(in, gcpi_edge(in->p.tape, norm, GCPI_NORM_BETA), -1);
    call.fused = &rectifier;
    gcpi_row_for(&in->p.target, norm, 0)->backward(&call);
}

/* i: an instruction; its operands are placed from placed[n] on. t, u: its task and the next instruction's. */
typedef struct gcpi_pair {
    int (*fits)(const gcpi_plan *in, const gcpi_task *t, int n, const gcpi_task *u);
    void (*run)(const gcpi_plan *in, int i, int n);
} gcpi_pair;
static const gcpi_pair gcpi_pairs[] = { { gcpi_conv_ends, gcpi_run_conv_ends },
                                        { gcpi_conv_sums, gcpi_run_conv_sums },
                                        { gcpi_batch_norm_begins, gcpi_run_batch_norm_begins } };

static const gcpi_pair *gcpi_pair_at(const gcpi_plan *in, int i, int n)        /* NULL: instruction i runs alone */
{
    if (i + 1 >= (int)in->list.count || in->opts.check || in->opts.no_groups) return NULL;
    const gcpi_task *t = &in->p.tasks[in->list.at[i].task], *u = &in->p.tasks[in->list.at[i + 1].task];
    for (size_t k = 0; k < sizeof gcpi_pairs / sizeof *gcpi_pairs; k++)
        if (gcpi_pairs[k].fits(in, t, n, u)) return &gcpi_pairs[k];
    return NULL;
}

/* Updates behind each other are one call where the target's row takes them: each is the .fused of the one before. How
   many instructions from i on that are, 1 where there is nothing to join. */
static int gcpi_updates_at(const gcpi_plan *in, int i)
{
    const gcp_op *kernels = in->p.target.kernels;
    int count = 1;
    if (in->p.tasks[in->list.at[i].task].kind != GCPI_TASK_UPDATE) return 1;
    if (!kernels || !(kernels[GCP_ROW_UPDATE].flags & GCP_FLAG_FUSED)) return 1;
    if (in->p.far_slots || in->opts.check || in->opts.no_groups) return 1;
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
        gcpi_update_call_fill(in, t, n, &u[k]);
        if (k > 0) u[k - 1].call.fused = &u[k].call;
        n += t->count;
    }
    if (in->p.far_slots) gcpi_run_far_update(in, &u[0].call);
    else gcpi_row_for(&in->p.target, NULL, GCP_ROW_UPDATE)->forward(&u[0].call);
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
    case GCPI_TASK_GRADIENT_NORM: if (last) gcpi_run_gradient_norm(in, t, n); break;
    case GCPI_TASK_UPDATE: gcpi_run_updates(in, i, n, 1); break;
    case GCPI_TASK_HOOK: case GCPI_TASK_WAIT: if (last) gcpi_run_hook(in, t, n); break;
    case GCPI_TASK_OFFLOAD: case GCPI_TASK_PREFETCH: gcpi_far_start(in, t, n); break;
    case GCPI_TASK_MOVE: gcpi_run_move(in, t, n); break;
    default: break;
    }
    if (in->opts.check && in->run.purpose != GCPI_TO_MEASURE) gcpi_check_instruction(in, i, n);
}

/* A pair, or several updates. */
static void gcpi_run_together(gcpi_plan *in, const gcpi_pair *pair, int i, int n, int count)
{
    for (int k = 0, m = n; k < count; k++) {
        const gcpi_task *t = &in->p.tasks[in->list.at[i + k].task];
        gcpi_far_meet(in, t, m);
        m += t->count;
    }
    if (pair) pair->run(in, i, n);
    else gcpi_run_updates(in, i, n, count);
}

/* Issues the whole list. A device's first error gets the line of the op that was issued last. */
static void gcpi_issue(void *plan)
{
    gcpi_plan *in = (gcpi_plan *)plan;
    const gcp_target *target = &in->p.target;
    for (int i = 0, n = 0; i < (int)in->list.count; i++) {
        const gcpi_pair *pair = gcpi_pair_at(in, i, n);
        const int count = pair ? 2 : gcpi_updates_at(in, i), end = i + count;
        const char *text;
        char name[128];
        if (count > 1) gcpi_run_together(in, pair, i, n, count);
        else gcpi_run_instruction(in, i, n);
        for (; i < end; i++) n += in->p.tasks[in->list.at[i].task].count;
        const gcpi_task *t = &in->p.tasks[in->list.at[--i].task];
        if (!target->device || (text = target->device->trouble(target->context)) == NULL) continue;
        gcpi_fail(in->p.tape, GCP_E_DEVICE, gcpi_instruction_at(in, i), gcpi_task_name(&in->p, t, name, sizeof name),
                  "%s: %s", target->name, text);
        break;
    }
    gcpi_far_wait_all(in);
    in->run.next_copy = 0;
}
