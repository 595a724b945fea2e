/* From a request to an answer. The policy runs, with what it needs in scratch. */

static const struct gcpi_policy { const char *name; void (*run)(gcpi_planner *);
} gcpi_policies[] = { { "segments", gcpi_policy_segments }, { "keep_all", gcpi_policy_keep_all },
                      { "uniform", gcpi_policy_uniform },   { "checkpoints", gcpi_policy_checkpoints },
                      { "sqrt", gcpi_policy_sqrt },         { "recursive", gcpi_policy_recursive },
                      { "cheap", gcpi_policy_cheap },       { "budget", gcpi_policy_budget } };

/* How many entries a policy's orders may have. */
static ptrdiff_t gcpi_order_capacity(const gcp_plan_opts *o, ptrdiff_t tasks, ptrdiff_t forward,
                                     ptrdiff_t segments_deep)
{
    ptrdiff_t depth = GCPI_MAX(2, segments_deep + 1), runs;
    if (o->policy == GCP_POLICY_RECURSIVE) depth = 26;
    if (o->policy == GCP_POLICY_CHECKPOINTS && o->replay) depth = forward + 1;
    runs = depth * forward;
    if (o->policy == GCP_POLICY_BUDGET) runs = GCPI_MAX(runs, GCPI_MAX(8 * forward, GCPI_MIN(64 * forward, 6000)));
    /* the least memory may take a run of all from the start for each op */
    if (o->policy == GCP_POLICY_BUDGET && forward <= GCPI_SHORT_CHAIN)
        runs = GCPI_MAX(runs, forward * (forward + 1) / 2);
    if (o->far) runs += 6 * forward;
    return tasks + runs + 1;
}

/* What the orders of this problem need. Deep segments could run again as often as they are deep, but rarely do: theirs
   are counted. Needs q->now. */
static ptrdiff_t gcpi_planner_capacity(gcpi_planner *q)
{
    enum { DEEP = 8 };
    const gcpi_problem *p = q->p;
    int depth = 0;
    for (int i = 0; i < p->tape->segment_count; i++) depth = GCPI_MAX(depth, p->tape->segments[i].depth);
    ptrdiff_t capacity = gcpi_order_capacity(q->r->opts, p->task_count, p->forward, GCPI_MIN(depth, DEEP));
    for (int tail = 0; tail < 2 && depth > DEEP; tail++) {
        gcpi_list count;
        memset(&count, 0, sizeof count);
        gcpi_segments_choose(q, tail);
        if (!gcpi_schedule(p, &q->now, &count, q->a)) return 0;
        capacity = GCPI_MAX(capacity, count.count + 1);
    }
    return capacity;
}

/* What divides align and all sizes. */
static size_t gcpi_planner_unit(const gcpi_problem *p)
{
    size_t unit = p->target.align;
    for (int i = 0; i < p->item_count; i++)
        if (p->items[i].root == i && p->items[i].kind != GCPI_STATE_ITEM)
            unit = gcpi_common_divisor(unit, p->items[i].bytes);
    for (int t = 0; t < p->task_count; t++) unit = gcpi_common_divisor(unit, p->tasks[t].workspace);
    return unit;
}

static int gcpi_planner_make(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    if (!gcpi_choice_make(q, &q->now) || !gcpi_choice_make(q, &q->guide)) return 0;
    ptrdiff_t capacity = gcpi_planner_capacity(q);
    if (capacity <= 0 || capacity > INT32_MAX / 4) return 0;
    q->list.capacity = capacity;
    q->list.at = GCPI_SCRATCH(q->a, gcpi_instruction, capacity);
    q->front = gcpi_front(p);
    q->unit = gcpi_planner_unit(p);
    q->judgement = q->r->by_peak ? GCPI_BY_PEAK : GCPI_BY_LAYOUT;
    q->layout = GCPI_LAYOUT_WORK; q->kept.fit = gcpi_fit_free();
    int ok = q->list.at && gcpi_model_make(&q->m, p, q->a) && (!q->r->far || gcpi_far_make(q, (int)capacity));
    gcpi_order *const orders[] = { &q->trial, &q->best, &q->kept.order, &q->loose.order, &q->over[0], &q->over[1] };
    const int count = q->r->limit ? 6 : 4;
    for (int i = 0; ok && i < count; i++) ok = gcpi_order_make(orders[i], (int)capacity, q->a);
    const int lower = q->r->limit && p->forward <= GCPI_LOWER_MOST ? GCPI_LOWER : 0;
    for (int i = 0; ok && i < lower; i++) ok = gcpi_order_make(&q->lower[i].order, (int)capacity, q->a);
    gcpi_none(&q->kept);
    gcpi_none_loose(q);
    q->best.seconds = HUGE_VAL;
    return ok;
}

/* The slab of keep-all, to compare with. In large problems (by_peak) a budget's search has no time for layouts. */
static size_t gcpi_keep_all_slab(gcpi_planner *q)
{
    size_t slab = SIZE_MAX;
    gcpi_choice_clear(q);
    if (!q->r->by_peak && gcpi_order_of(q, &q->now, &q->trial))
        slab = gcpi_order_slab(q, &q->trial, gcpi_fit_free()).bytes;
    gcpi_choice_clear(q);
    return slab;
}

/* SQRT, RECURSIVE and CHEAP answer with keep-all where that is smaller. */
static void gcpi_or_keep_all(gcpi_planner *q)
{
    const gcpi_fit less = gcpi_fit_of(q->keep_all - 1, GCPI_LAYOUT_WORK, 0);
    gcpi_choice_clear(q);
    if (!gcpi_order_of(q, &q->now, &q->trial) ||
        (gcpi_has_best(q) && gcpi_order_slab(q, &q->best, less).bytes < q->keep_all))
        return;
    gcpi_order_copy(&q->best, &q->trial);
    gcpi_choice_copy(q->p, &q->guide, &q->now);
}

static gcpi_answer gcpi_answer_of(const gcpi_planner *q)
{
    gcpi_answer a;
    const int fits = !q->r->limit || gcpi_has(&q->kept);
    memset(&a, 0, sizeof a);
    a.order = fits && gcpi_has_best(q) ? &q->best : NULL;
    a.seconds = q->r->limit ? q->kept.order.seconds : q->best.seconds;
    a.fit = q->kept.fit; a.method = q->kept.method; a.bound = q->bound;
    a.segments = GCPI_MAX(1, q->guide.segments - 1);
    a.coarse = q->coarse;
    a.keep_all = q->keep_all;
    a.lowest = q->lowest;
    return a;
}

/* Answers a request: q's memory is in scratch of a, and so is the order. 0: not enough arena. */
static int gcpi_choose(gcpi_planner *q, const gcpi_request *r, gcp_arena *a, gcpi_answer *answer)
{
    gcp_policy policy = r->p->training || r->policy == GCP_POLICY_BUDGET ? r->policy : GCP_POLICY_KEEP_ALL;
    memset(q, 0, sizeof *q);
    q->r = r; q->p = r->p; q->a = a;
    if (!gcpi_planner_make(q)) return 0;
    if (r->far_only) memset(q->m.again, 0, (size_t)q->p->task_count);
    gcpi_choice_clear(q);
    if (!gcpi_guides(q)) return 0;
    q->keep_all = gcpi_keep_all_slab(q);
    gcpi_policies[policy].run(q);
    if (policy >= GCP_POLICY_SQRT && policy != GCP_POLICY_BUDGET && !q->out_of_memory) gcpi_or_keep_all(q);
    *answer = gcpi_answer_of(q);
    return !q->out_of_memory && (gcpi_has_best(q) || r->watch->stopped);
}
