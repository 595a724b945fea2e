/* The executor: instruction after instruction, pairs in one pass. A pair is two instructions that run as one pass;
   so are updates behind each other. */

/* Pairs: two instructions that run as one pass and give the same bits as one after the other. The second writes where
   the first would have written, so that no instruction could read what is left out; or it reads what the first made
   while that is in cache, or still at hand. */

/* Index of a task's operand, or -1. */
static int gcpi_operand_at(const gcpi_plan *core, const gcpi_task *t, int role)
{
    for (int k = 0; k < t->count; k++) if (core->p.operands[t->operands + k].role == role) return k;
    return -1;
}

/* Whether operand b of task u (placed from placed[m] on) has the same bytes as operand a of task t (from placed[n] on),
   and both tasks write them without adding. */
static int gcpi_same_place(const gcpi_plan *core, const gcpi_task *t, int n, int a, const gcpi_task *u, int m, int b)
{
    if (a < 0 || b < 0) return 0;
    const gcpi_operand *x = &core->p.operands[t->operands + a], *y = &core->p.operands[u->operands + b];
    return x->mode == GCPI_WRITE && y->mode == GCPI_WRITE && core->p.items[x->item].pinned != GCPI_PINNED_ALWAYS &&
           core->p.items[y->item].pinned != GCPI_PINNED_ALWAYS && core->placed[n + a].offset >= 0 &&
           core->placed[n + a].offset == core->placed[m + b].offset &&
           core->p.items[x->item].pitch == core->p.items[y->item].pitch &&
           core->p.items[x->item].bytes == core->p.items[y->item].bytes;
}

/* Whether what makes an item in one pass with another task leaves no rounding to gcpi_round_results. */
static int gcpi_rounds_itself(const gcpi_plan *core, int item)
{
    return !core->p.items[item].rounds || core->p.items[item].width != (int)sizeof(gcp_real);
}

/* conv2d and, next and in place, an addition, a rectifier or both. Where one of them rounds, so do all, where they
   store. */
static int gcpi_conv_ends(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u)
{
    int reads = 0;
    if (t->kind != GCPI_TASK_FORWARD || u->kind != GCPI_TASK_FORWARD) return 0;
    const gcpi_op *op = &core->p.tape->ops[t->op], *first = &core->p.tape->ops[u->op] - (u->ops - 1);
    if (!gcpi_facts_of(op).with_group || !gcpi_fuses(&core->p.target, op)) return 0;
    if (!core->p.target.kernels && core->p.store) return 0;      /* halves go by whole rows, behind the convolution */
    const int end = core->p.tape->ops[u->op].out;
    if (!gcpi_rounds_itself(core, end) || core->p.items[op->out].rounds != core->p.items[end].rounds) return 0;
    if (!gcpi_is_part(first, GCPI_PART_ADD) && !gcpi_is_part(first, GCPI_PART_RECTIFIER)) return 0;
    for (int k = 0; k < u->count; k++)
        reads += core->p.operands[u->operands + k].item == op->out &&
                 core->p.operands[u->operands + k].mode == GCPI_READ;
    return reads == 1 && gcpi_same_place(core, t, n, gcpi_operand_at(core, t, GCPI_ROLE_OUT), u, n + t->count,
                                         gcpi_operand_at(core, u, GCPI_ROLE_OUT));
}

/* Backward of a rectifier and, next and in place, of the batch-norm whose output it rectifies. */
static int gcpi_batch_norm_begins(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u)
{
    if (t->kind != GCPI_TASK_BACKWARD || u->kind != GCPI_TASK_BACKWARD) return 0;
    const gcpi_op *op = &core->p.tape->ops[t->op], *norm = &core->p.tape->ops[u->op];
    int dx = gcpi_operand_at(core, t, GCPI_ROLE_DIN), dy = gcpi_operand_at(core, t, GCPI_ROLE_DOUT);
    if (!gcpi_is_part(op, GCPI_PART_RECTIFIER) || !gcpi_is_part(norm, GCPI_PART_NORM)) return 0;
    if (gcpi_edge(core->p.tape, op, 0) != norm->out || !gcpi_fuses(&core->p.target, norm) ||
        core->p.items[gcpi_edge(core->p.tape, norm, GCPI_NORM_BETA)].kind != GCPI_STATE_ITEM ||
        !gcpi_rounds_itself(core, core->p.tensors + norm->out))
        return 0;
    return gcpi_same_place(core, t, n, dx, u, n + t->count, gcpi_operand_at(core, u, GCPI_ROLE_DIN)) && dy >= 0 &&
           core->placed[n + dy].offset == core->placed[n + dx].offset &&
           core->p.items[core->p.operands[t->operands + dy].item].pitch ==
               core->p.items[core->p.operands[t->operands + dx].item].pitch;
}

/* conv2d and the statistics of its output. */
static int gcpi_conv_sums(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u)
{
    (void)n;
    if (t->kind != GCPI_TASK_FORWARD || u->kind != GCPI_TASK_FORWARD || u->op != t->op + 1) return 0;
    if (!gcpi_rounds_itself(core, core->p.tape->ops[t->op].out)) return 0;
    return gcpi_stats_follow(&core->p, &core->p.tape->ops[t->op]);
}

/* A convolution, with the call of the next instruction in the same pass. */
static void gcpi_run_conv(const gcpi_plan *core, int i, int n, gcp_call *next)
{
    const gcpi_op *op = &core->p.tape->ops[core->p.tasks[core->list.at[i].task].op];
    const gcpi_facts facts = gcpi_facts_of(op);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(core, &core->list.at[i], n, &call, &space);
    call.fused = next;
    if (core->p.target.kernels) core->p.target.kernels[op->kind].forward(&call);
    else if (next->row == GCP_ROW_APPLY) facts.with_group(&call, next);
    else facts.with_stats(&call, next);
}

static void gcpi_run_conv_ends(const gcpi_plan *core, int i, int n)
{
    gcp_call apply;
    gcpi_call_space space;
    const int count = core->p.tasks[core->list.at[i].task].count;
    gcpi_apply_call(core, &core->p.tasks[core->list.at[i + 1].task], n + count, &apply, &space);
    gcpi_run_conv(core, i, n, &apply);
}

static void gcpi_run_conv_sums(const gcpi_plan *core, int i, int n)
{
    gcp_call stats;
    gcpi_call_space space;
    gcpi_op_call(core, &core->list.at[i + 1], n + core->p.tasks[core->list.at[i].task].count, &stats, &space);
    gcpi_run_conv(core, i, n, &stats);
}

static void gcpi_run_batch_norm_begins(const gcpi_plan *core, int i, int n)
{
    const gcpi_op *norm = &core->p.tape->ops[core->p.tasks[core->list.at[i + 1].task].op];
    gcp_call call, rectifier;
    gcpi_call_space space, others;
    gcpi_op_call(core, &core->list.at[i], n, &rectifier, &others);
    gcpi_op_call(core, &core->list.at[i + 1], n + core->p.tasks[core->list.at[i].task].count, &call, &space);
    space.in[GCPI_NORM_BETA].data = gcpi_item_data(core, gcpi_edge(core->p.tape, norm, GCPI_NORM_BETA), -1);
    call.fused = &rectifier;
    gcpi_row_for(&core->p.target, norm, 0)->backward(&call);
}

/* i: an instruction; its operands are placed from placed[n] on. t, u: its task and the next instruction's. */
typedef struct gcpi_joint {
    int (*fits)(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u);
    void (*run)(const gcpi_plan *core, int i, int n);
} gcpi_joint;
static const gcpi_joint gcpi_joints[] = { { gcpi_conv_ends, gcpi_run_conv_ends },
                                        { gcpi_conv_sums, gcpi_run_conv_sums },
                                        { gcpi_batch_norm_begins, gcpi_run_batch_norm_begins } };

static const gcpi_joint *gcpi_joint_at(const gcpi_plan *core, int i, int n)        /* NULL: instruction i runs alone */
{
    if (i + 1 >= (int)core->list.count || core->opts.check || core->opts.no_groups) return NULL;
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task], *u = &core->p.tasks[core->list.at[i + 1].task];
    for (size_t k = 0; k < sizeof gcpi_joints / sizeof *gcpi_joints; k++)
        if (gcpi_joints[k].fits(core, t, n, u)) return &gcpi_joints[k];
    return NULL;
}

/* Updates behind each other are one call where the target's row takes them: each is the .fused of the one before. How
   many instructions from i on that are, 1 where there is nothing to join. */
static int gcpi_updates_at(const gcpi_plan *core, int i)
{
    const gcp_op *kernels = core->p.target.kernels;
    int count = 1;
    if (core->p.tasks[core->list.at[i].task].kind != GCPI_TASK_UPDATE) return 1;
    if (!kernels || !(kernels[GCP_ROW_UPDATE].flags & GCP_FLAG_FUSED)) return 1;
    if (core->p.far_slots || core->opts.check || core->opts.no_groups) return 1;
    while (count < GCP_MAX_UPDATES && i + count < (int)core->list.count &&
           core->p.tasks[core->list.at[i + count].task].kind == GCPI_TASK_UPDATE)
        count++;
    return count;
}
static void gcpi_run_updates(gcpi_plan *core, int i, int n, int count)
{
    gcpi_update_call u[GCP_MAX_UPDATES];
    if (core->run.numbers.micro + 1 != core->run.numbers.micros) return;
    for (int k = 0; k < count; k++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i + k].task];
        gcpi_update_call_fill(core, t, n, &u[k]);
        if (k > 0) u[k - 1].call.fused = &u[k].call;
        n += t->count;
    }
    if (core->p.far_slots) gcpi_run_far_update(core, &u[0].call);
    else gcpi_row_for(&core->p.target, NULL, GCP_ROW_UPDATE)->forward(&u[0].call);
}

static void gcpi_run_instruction(gcpi_plan *core, int i, int n)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    int last = core->run.numbers.micro + 1 == core->run.numbers.micros;
    gcpi_far_meet(core, t, n);
    gcpi_guards_set(core, t);
    switch (t->kind) {
    case GCPI_TASK_FORWARD: if (t->ops > 1) { gcpi_run_group(core, t, n); break; }  /* fall through */
    case GCPI_TASK_BACKWARD: gcpi_run_op(core, &core->list.at[i], n); break;
    case GCPI_TASK_SEED: gcpi_run_seed(core, t, n); break;
    case GCPI_TASK_GRADIENT_NORM: if (last) gcpi_run_gradient_norm(core, t, n); break;
    case GCPI_TASK_UPDATE: gcpi_run_updates(core, i, n, 1); break;
    case GCPI_TASK_HOOK: case GCPI_TASK_WAIT: if (last) gcpi_run_hook(core, t, n); break;
    case GCPI_TASK_OFFLOAD: case GCPI_TASK_PREFETCH: gcpi_far_start(core, t, n); break;
    case GCPI_TASK_MOVE: gcpi_run_move(core, t, n); break;
    default: break;
    }
    if (core->opts.check && core->run.purpose != GCPI_TO_MEASURE) gcpi_check_instruction(core, i, n);
}

/* A pair, or several updates. */
static void gcpi_run_together(gcpi_plan *core, const gcpi_joint *pair, int i, int n, int count)
{
    for (int k = 0, m = n; k < count; k++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i + k].task];
        gcpi_far_meet(core, t, m);
        m += t->count;
    }
    if (!pair) { gcpi_run_updates(core, i, n, count); return; }
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task], *u = &core->p.tasks[core->list.at[i + 1].task];
    gcp_call call;
    pair->run(core, i, n);
    gcpi_call_init(core, u, 0, &call);
    gcpi_round_results(core, u, n + t->count, &call);
}

/* Issues the whole list. A device's first error gets the line of the op that was issued last. */
static void gcpi_issue(void *plan)
{
    gcpi_plan *core = (gcpi_plan *)plan;
    const gcp_target *target = &core->p.target;
    for (int i = 0, n = 0; i < (int)core->list.count; i++) {
        const gcpi_joint *pair = gcpi_joint_at(core, i, n);
        const int count = pair ? 2 : gcpi_updates_at(core, i), end = i + count;
        const char *text;
        char name[128];
        if (count > 1) gcpi_run_together(core, pair, i, n, count);
        else gcpi_run_instruction(core, i, n);
        for (; i < end; i++) n += core->p.tasks[core->list.at[i].task].count;
        const gcpi_task *t = &core->p.tasks[core->list.at[--i].task];
        if (!target->device || (text = target->device->trouble(target->context)) == NULL) continue;
        gcpi_fail(core->p.tape, GCP_E_DEVICE, gcpi_instruction_at(core, i),
                  gcpi_task_name(&core->p, t, name, sizeof name),
                  "%s: %s", target->name, text);
        break;
    }
    gcpi_far_wait_all(core);
    core->run.next_copy = 0;
}
