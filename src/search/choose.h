/* From a request to an answer. The policy runs, with what it needs in scratch. */

/* Inference has only one order. Where it does not fit, less than was found is asked for until nothing is found. */
static void gcpi_budget_inference(gcpi_planner *q)
{
    size_t asked = q->slab_limit;
    gcpi_fit fit = gcpi_fit_free();
    gcpi_budget_keep_all(q);
    q->bound = q->m.seconds;
    if (gcpi_has(&q->kept)) return;
    gcpi_least_holds(q, &q->best);
    q->least_slab = gcpi_order_slab(q, &q->best, fit);
    for (int found = 1; found;) {
        q->slab_limit = q->least_slab - 1;
        gcpi_budget_keep_all(q);
        if ((found = gcpi_has(&q->kept)) != 0) { fit = q->kept.fit; q->least_slab = gcpi_order_slab(q, &q->best, fit); }
        gcpi_none(&q->kept);
    }
    q->slab_limit = asked;
    if (q->least_slab <= asked) gcpi_keep(&q->kept, &q->best, "keep_all", fit);
}

/* Whether .progress lets the search go on, and the plan is so far above the bound, as a share of keep-all. */
static int gcpi_budget_far_off(const gcpi_planner *q, double share)
{
    return !q->watch->stopped && !q->opts->far && gcpi_has(&q->kept) &&
           q->kept.order.seconds > q->bound + share * q->m.seconds;
}

/* Whether all of the search runs once more: the plan is still far off, more effort than little was asked for, and no
   other choice of views is known to be faster. */
static int gcpi_budget_again(const gcpi_planner *q)
{
    return q->opts->effort != GCP_EFFORT_QUICK && gcpi_budget_far_off(q, 0.04) &&
           !(q->known > 0 && q->kept.order.seconds > q->known);
}

/* As long as it helps, and the plan is far from the bound, the search goes on; then all of it, with more visits. */
static void gcpi_budget_more(gcpi_planner *q)
{
    for (int again = 0; again < 2; again++) {
        double before = HUGE_VAL;
        if (again && !gcpi_budget_again(q)) return;
        q->patience = again ? 4 : 1;
        if (again) gcpi_budget_search(q, 0, GCPI_ROUNDS);
        q->patience = 1;
        while (gcpi_budget_far_off(q, 0.02) && q->kept.order.seconds < before - 0.003 * q->m.seconds) {
            before = q->kept.order.seconds;
            gcpi_budget_search(q, GCPI_ROUNDS, GCPI_ROUNDS + 1);
        }
    }
}

/* The first search is enough: more is not wanted, or another choice of views is known to be much faster. */
static int gcpi_budget_enough(const gcpi_planner *q)
{
    return q->rough || (q->known > 0 && gcpi_has(&q->kept) && q->kept.order.seconds > q->known + 0.03 * q->m.seconds);
}

static void gcpi_budget_run(gcpi_planner *q)
{
    gcpi_portion whole = gcpi_watch_part(q, 0, 0.4);
    gcpi_budget_find(q);
    q->watch->portion = whole;
    if (!gcpi_budget_enough(q)) {
        double found = q->kept.order.seconds;
        gcpi_watch_part(q, 0.4, 0.7);
        const int beaten = q->known > 0 && q->bound >= q->known;
        if (gcpi_has(&q->kept) ? gcpi_least_wanted(q) : !q->no_least && !beaten) gcpi_budget_way_down(q);
        q->watch->portion = whole;
        gcpi_watch_part(q, 0.7, 1);
        if (GCPI_MIN(q->kept.order.seconds, q->loose.order.seconds) < found)
            gcpi_budget_search(q, 0, GCPI_ROUNDS);           /* from that order */
        gcpi_budget_more(q);
        q->watch->portion = whole;
    }
    if (gcpi_has(&q->kept)) gcpi_order_copy(&q->best, &q->kept.order);
}

/* The same with copies alone (far), or without them: for these views what is found is no worse than either. The bounds
   of these are none where values may be copied and ops run again. */
static void gcpi_budget_part(gcpi_planner *q, size_t far)
{
    const gcp_plan_opts *given = q->opts;
    const size_t size = (size_t)q->p->task_count;
    ptrdiff_t scratch = q->a->scratch;
    unsigned char *again = GCPI_SCRATCH(q->a, unsigned char, q->p->task_count);
    gcp_plan_opts part = *given;
    if (!again) { q->coarse = 1; q->a->scratch = scratch; return; }
    memcpy(again, q->m.again, size);
    if (far) memset(q->m.again, 0, size);
    part.far = far;
    part.far_only = far > 0;
    q->opts = &part;
    gcpi_budget_run(q);
    q->opts = given; q->bound = 0;
    memcpy(q->m.again, again, size);
    q->a->scratch = scratch;
}
/* Copies alone, then none; the faster plan of both is kept. */
static void gcpi_budget_parts(gcpi_planner *q)
{
    ptrdiff_t scratch = q->a->scratch;
    const gcpi_portion whole = gcpi_watch_part(q, 0, 0.4);
    const double known = q->known;
    gcpi_candidate copies;
    memset(&copies, 0, sizeof copies);
    if (!gcpi_order_make(&copies.order, q->trial.capacity, q->a)) { q->coarse = 1; return; }
    gcpi_budget_part(q, q->opts->far);
    gcpi_keep(&copies, &q->kept.order, q->kept.method, q->kept.fit);
    if (gcpi_has(&copies) && !(known > 0 && known < copies.order.seconds)) q->known = copies.order.seconds;
    gcpi_none(&q->kept);
    q->watch->portion = whole;
    gcpi_watch_part(q, 0.4, 1);
    gcpi_budget_part(q, 0);
    q->known = known;
    if (copies.order.seconds < q->kept.order.seconds) gcpi_keep(&q->kept, &copies.order, copies.method, copies.fit);
    q->watch->portion = whole;
    q->a->scratch = scratch;
}

static void gcpi_policy_budget(gcpi_planner *q)
{
    if (!q->p->training) { gcpi_budget_inference(q); return; }
    const int both = q->opts->far && !q->opts->far_only;
    gcpi_portion whole = gcpi_watch_part(q, 0, both ? 0.5 : 0);
    if (both) gcpi_budget_parts(q);
    q->watch->portion = whole;
    if (both) gcpi_watch_part(q, 0.5, 1);
    gcpi_budget_run(q);
    q->watch->portion = whole;
}

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
    ptrdiff_t capacity = gcpi_order_capacity(q->opts, p->task_count, p->forward, GCPI_MIN(depth, DEEP));
    for (int tail = 0; tail < 2 && depth > DEEP; tail++) {
        gcpi_list count;
        memset(&count, 0, sizeof count);
        gcpi_segments_choose(q, tail);
        if (!gcpi_schedule(p, &q->now, &count, q->a)) return 0;
        capacity = GCPI_MAX(capacity, count.count + 1);
    }
    return capacity;
}

static int gcpi_planner_make(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    if (!gcpi_choice_make(q, &q->now) || !gcpi_choice_make(q, &q->guide)) return 0;
    ptrdiff_t capacity = gcpi_planner_capacity(q);
    if (capacity <= 0 || capacity > INT32_MAX / 4) return 0;
    q->list.capacity = capacity;
    q->list.at = GCPI_SCRATCH(q->a, gcpi_instruction, capacity);
    q->front = gcpi_round(p->numbers, p->target.align);
    q->patience = 1;
    q->layout = GCPI_LAYOUT_WORK; q->kept.fit = gcpi_fit_free();
    int ok = q->list.at && gcpi_model_make(&q->m, p, q->a) && (!q->opts->far || gcpi_far_make(q, (int)capacity));
    gcpi_order *const orders[] = { &q->trial, &q->best, &q->kept.order, &q->loose.order };
    for (int i = 0; ok && i < 4; i++) ok = gcpi_order_make(orders[i], (int)capacity, q->a);
    gcpi_none(&q->kept); gcpi_none(&q->loose);
    return ok;
}

/* The slab of keep-all, to compare with. In large problems (by_peak) a budget's search has no time for layouts. */
static void gcpi_keep_all_slab(gcpi_planner *q)
{
    q->keep_all = SIZE_MAX;
    if (!q->by_peak && gcpi_order_of(q, &q->now, &q->trial))
        q->keep_all = gcpi_order_slab(q, &q->trial, gcpi_fit_free());
    gcpi_choice_clear(q);
}

/* Runs the policy; SQRT, RECURSIVE and CHEAP answer with keep-all where that is smaller. 0: not enough arena. */
static int gcpi_choose(gcpi_planner *q)
{
    gcp_policy policy = q->p->training || q->opts->policy == GCP_POLICY_BUDGET ? q->opts->policy : GCP_POLICY_KEEP_ALL;
    if (!gcpi_planner_make(q)) return 0;
    if (q->opts->far_only) memset(q->m.again, 0, (size_t)q->p->task_count);
    gcpi_choice_clear(q);
    if (!gcpi_guides(q)) return 0;
    gcpi_keep_all_slab(q);
    gcpi_policies[policy].run(q);
    if (policy < GCP_POLICY_SQRT || policy == GCP_POLICY_BUDGET || q->out_of_memory)
        return !q->out_of_memory && (q->found || q->watch->stopped);
    gcpi_choice_clear(q);
    if (gcpi_order_of(q, &q->now, &q->trial) &&
        (!q->found || q->keep_all <= gcpi_order_slab(q, &q->best, gcpi_fit_free()))) {
        q->found = 1;
        gcpi_order_copy(&q->best, &q->trial);
        gcpi_choice_copy(q->p, &q->guide, &q->now);
    }
    return !q->out_of_memory && q->found;
}
