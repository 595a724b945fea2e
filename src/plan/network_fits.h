/* What a network must be to be planned; which samples a loss may leave out. */

static int gcpi_customs_run_on(const gcpi_problem *p)
{
    for (int i = 0; p->target.device && i < p->task_count; i++) {
        const gcpi_task *task = &p->tasks[i];
        if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        const gcp_op *own = op->row->on_device;
        if (!gcpi_facts_of(op).custom ||
            (own && (task->kind == GCPI_TASK_FORWARD ? own->forward != NULL : own->backward != NULL)))
            continue;
        gcpi_fail(p->tape, GCP_E_PLAN, op->at, op->row->name, "no version for the target '%s' (.on_device)",
                  p->target.name);
        return 0;
    }
    return 1;
}

/* some: of each tensor, how many samples it holds that gcp_write_some can leave out; 0: none. Fills it for the op's
   outputs. 1: the op makes one value of several of them. */
static int gcpi_samples_through(const gcp_tape *t, const gcpi_op *op, int *some)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    int samples = 0, shared = 0;
    for (int i = 0; i < op->inputs; i++) {
        const int n = some[gcpi_edge(t, op, i)];
        samples = GCPI_MAX(samples, n);
        if (i < 32 && facts.shared >> i & 1) shared |= n;
    }
    const int cut = facts.view == GCPI_VIEW_WHOLE && samples && t->tensors[op->out].shape.d[0] % samples,
              ends = facts.stats || facts.leaves_out;
    for (int j = 0; j < op->outputs; j++) some[op->out + j] = ends ? 0 : samples;
    return samples && !ends && (!facts.apart || shared || cut);
}
/* Whether samples can be left out of the loss: cross-entropies alone make one value of them. Inference has none.
   (Batch-norm's statistics are of all.) */
static int gcpi_samples_look(gcpi_plan *core, gcp_arena *a)
{
    const gcp_tape *t = core->p.tape;
    const ptrdiff_t scratch = a->scratch;
    int left_out = 0;
    if (gcpi_is_graph(&core->p)) return 1;
    core->joins_samples = -1;
    int *some = GCPI_SCRATCH(a, int, t->tensor_count);
    for (int x = 0; some && x < t->tensor_count; x++) {
        const int n = gcpi_by_samples(t->tensors[x].shape).d[0];
        some[x] = t->tensors[x].kind == GCPI_INPUT && n > 1 ? n : 0;
    }
    for (int k = 0; some && k < core->p.forward; k++) {
        const gcpi_task *task = &core->p.tasks[k];
        for (int o = task->op - GCPI_MAX(task->ops, 1) + 1; o <= task->op; o++) {
            if (gcpi_samples_through(t, &t->ops[o], some) && core->joins_samples < 0) core->joins_samples = o;
            left_out |= gcpi_facts_of(&t->ops[o]).leaves_out;
        }
    }
    core->leaves_out = !core->p.training || (left_out && core->joins_samples < 0);
    a->scratch = scratch;
    return some != NULL;
}

/* Statistics of one value a channel are that value: what they normalise is a constant, and no gradient comes back. */
static int gcpi_norms_have_values(const gcpi_problem *p)
{
    for (int i = 0; p->training && i < p->forward; i++) {
        const gcpi_op *op = &p->tape->ops[p->tasks[i].op];
        const gcp_shape *x = &p->tape->tensors[gcpi_edge(p->tape, op, 0)].shape;
        if (!gcpi_facts_of(op).stats || gcpi_norm_is_fixed(p, op) || gcpi_pixels(*x) > 1) continue;
        char name[256];
        gcpi_fail(p->tape, GCP_E_SHAPE, op->at, gcpi_task_name(p, &p->tasks[i + 1], name, sizeof name),
                  "found one value a channel in %s, expected at least 2 in training (a larger batch; or running "
                  "statistics: .frozen_norms, with its gamma and beta in .freeze, or .inference)", GCPI_SHAPE_TEXT(*x));
        return 0;
    }
    return 1;
}

/* Refuses a network whose sums of bytes could overflow under some plan, or whose sum of seconds is not finite. */
static int gcpi_plan_addressable(const gcpi_plan *core)
{
    double bytes = 0, workspace = 0, seconds = 0;
    for (int i = 0; i < core->p.item_count; i++) {
        const gcpi_item *x = &core->p.items[i];
        if (x->root == i)
            bytes += ((double)x->bytes + (double)core->p.target.align) *
                     (x->kind == GCPI_STATE_ITEM ? 1 + core->slots : 1);
    }
    for (int i = 0; i < core->p.task_count; i++) {
        workspace = GCPI_MAX(workspace, (double)core->p.tasks[i].workspace);
        seconds += core->p.tasks[i].seconds;
    }
    if (!(seconds < 1e100))
        return gcpi_plan_bad(core->p.tape, &core->opts,
                             "at the target's .flops_per_second and .bytes_per_second a step takes no finite time");
    if (bytes + workspace < (double)(SIZE_MAX / 2)) return 1;
    gcpi_fail(core->p.tape, GCP_E_SHAPE, core->opts.at, core->p.tape->planning,
              "the network's tensors take %.3g bytes, more than can be addressed", bytes + workspace);
    return 0;
}
