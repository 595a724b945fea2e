/* What a network must be to be planned. */

static int gcpi_ops_run_on(const gcpi_problem *p)
{
    for (int i = 0; p->target.device && i < p->task_count; i++) {
        const gcpi_task *task = &p->tasks[i];
        if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        const gcp_op *row = gcpi_row_for(&p->target, op, 0);
        if (row && (task->kind == GCPI_TASK_FORWARD ? row->forward != NULL : row->backward != NULL)) continue;
        gcpi_fail(p->tape, GCP_E_PLAN, op->at, op->row->name, "no version for the target '%s'%s", p->target.name,
                  gcpi_facts_of(op).custom ? " (.on_device)" : "");
        return 0;
    }
    return 1;
}

/* The cross-entropy over whose labels the value of op o is a mean, -1: none. means[x]: that of tensor x, made before.
   An op of single values whose backward reads none of them is linear: a sum of means over the same labels is one. */
static int gcpi_mean_over_labels(const gcp_tape *t, int o, const int *means)
{
    const gcpi_op *op = &t->ops[o];
    const gcpi_facts facts = gcpi_facts_of(op);
    if (facts.leaves_out) return op->inputs == 2 ? o : -1;
    const int linear = !facts.custom && !op->row->reads_in && !op->row->reads_out,
              first = linear && gcpi_count(t->tensors[op->out].shape) == 1 ? means[gcpi_edge(t, op, 0)] : -1;
    for (int i = 1; i < op->inputs; i++) {
        const int other = means[gcpi_edge(t, op, i)];
        if (first < 0 || other < 0 || gcpi_edge(t, &t->ops[first], 1) != gcpi_edge(t, &t->ops[other], 1) ||
            gcpi_label_range_of(t, &t->ops[first], 1).ignore != gcpi_label_range_of(t, &t->ops[other], 1).ignore)
            return -1;
    }
    return first;
}
/* .accumulate_labels: the loss is one whose labels that count are known. */
static int gcpi_labels_count(gcpi_plan *core, gcp_arena *a)
{
    const gcp_tape *t = core->p.tape;
    if (!core->opts.accumulate_labels) return 1;
    const ptrdiff_t scratch = a->scratch;
    int *means = GCPI_SCRATCH(a, int, t->tensor_count);
    for (int x = 0; means && x < t->tensor_count; x++) means[x] = -1;
    for (int o = 0; means && o < t->op_count; o++) means[t->ops[o].out] = gcpi_mean_over_labels(t, o, means);
    core->counted = means ? means[core->p.root] : -1;
    a->scratch = scratch;
    return !means || core->counted >= 0 ||
           gcpi_plan_bad(core->p.tape, &core->opts, ".accumulate_labels: the loss is not a gcp_cross_entropy of labels "
                                                    "without weights, nor a (scaled) sum of several of the same "
                                                    "labels and .ignore");
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
