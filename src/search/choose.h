/* From a request to an answer. The policy runs, with what it needs in scratch. */

/* Keep-all, kept if it has a layout within this limit. */
static int gcpi_inference_within(gcpi_planner *q, size_t limit)
{
    const gcpi_request *asked = q->r;
    gcpi_request within = *asked;
    within.limit = limit;
    q->r = &within;
    gcpi_none(&q->kept);
    gcpi_budget_keep_all(q);
    q->r = asked;
    return gcpi_has(&q->kept);
}

/* Inference has only one order, keep-all. Where its first layout does not fit, the limit is lowered to a byte below
   each layout that is found, until there is none: the last one is the least. */
static void gcpi_budget_inference(gcpi_planner *q)
{
    gcpi_fit fit = gcpi_fit_free();
    const int fits = gcpi_inference_within(q, q->r->limit);
    q->bound = q->m.seconds;
    if (fits) return;
    gcpi_least_holds(q, &q->best);
    q->lowest.slab = gcpi_order_slab(q, &q->best, fit).bytes;
    while (gcpi_inference_within(q, q->lowest.slab - 1)) {
        fit = q->kept.fit;
        q->lowest.slab = gcpi_order_slab(q, &q->best, fit).bytes;
    }
    gcpi_none(&q->kept);
    if (q->lowest.slab <= q->r->limit) gcpi_keep(&q->kept, &q->best, "keep_all", fit);
}

/* Whether .progress lets the search go on, and the plan is so far above the bound, as a share of keep-all. */
static int gcpi_budget_far_off(const gcpi_planner *q, double share)
{
    return !q->r->watch->stopped && !q->r->far && gcpi_has(&q->kept) &&
           q->kept.order.seconds > q->bound + share * q->m.seconds;
}

/* Whether all of the search runs once more: the plan is still far off, more effort than little was asked for, and no
   other choice of views is known to be faster. */
static int gcpi_budget_again(const gcpi_planner *q)
{
    return q->r->effort != GCP_EFFORT_QUICK && gcpi_budget_far_off(q, 0.04) &&
           !(q->r->known > 0 && q->kept.order.seconds > q->r->known);
}

/* As long as it helps, and the plan is far from the bound, the search goes on; then all of it, with more visits. */
static void gcpi_budget_more(gcpi_planner *q, gcpi_portion portion)
{
    for (int again = 0; again < 2; again++) {
        double before = HUGE_VAL;
        if (again && !gcpi_budget_again(q)) return;
        if (again) gcpi_budget_search(q, 0, GCPI_TURNS, 4, portion);
        while (gcpi_budget_far_off(q, 0.02) && q->kept.order.seconds < before - 0.003 * q->m.seconds) {
            before = q->kept.order.seconds;
            gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
        }
    }
}

/* The first search is enough: more is not wanted, or another choice of views is known to be much faster. */
static int gcpi_budget_enough(const gcpi_planner *q)
{
    const double known = q->r->known;
    return q->r->rough || (known > 0 && gcpi_has(&q->kept) && q->kept.order.seconds > known + 0.03 * q->m.seconds);
}

/* What is kept, or `loose`, is what answers this request best. */
static void gcpi_budget_run(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_find(q, gcpi_part_of(portion, 0, 0.4));
    if (!gcpi_budget_enough(q)) {
        const double found = q->kept.order.seconds;
        const int beaten = q->r->known > 0 && q->bound >= q->r->known;
        if (gcpi_has(&q->kept) ? gcpi_least_wanted(q) : !q->r->no_least && !beaten)
            gcpi_budget_way_down(q, gcpi_part_of(portion, 0.4, 0.7));
        if (GCPI_MIN(q->kept.order.seconds, q->loose.order.seconds) < found)      /* from that order */
            gcpi_budget_search(q, 0, GCPI_TURNS, 1, gcpi_part_of(portion, 0.7, 1));
        gcpi_budget_more(q, gcpi_part_of(portion, 0.7, 1));
    }
    if (gcpi_has(&q->kept)) gcpi_order_copy(&q->best, &q->kept.order);
}

/* A part of the request: with copies alone (far), or without them. Its bounds do not hold where values may be copied
   and ops run again. known: as in a request. */
static void gcpi_budget_part(gcpi_planner *q, size_t far, double known, gcpi_portion portion)
{
    const gcpi_request *asked = q->r;
    gcpi_request part = *asked;
    const size_t size = (size_t)q->p->task_count;
    ptrdiff_t scratch = q->a->scratch;
    unsigned char *again = GCPI_SCRATCH(q->a, unsigned char, q->p->task_count);
    if (!again) { q->coarse = 1; q->a->scratch = scratch; return; }
    memcpy(again, q->m.again, size);
    if (far) memset(q->m.again, 0, size);
    part.far = far; part.far_only = far > 0; part.known = known;
    q->r = &part;
    gcpi_budget_run(q, portion);
    q->r = asked;
    q->bound = 0;
    memcpy(q->m.again, again, size);
    q->a->scratch = scratch;
}
/* Copies alone, then none; the faster order of both is kept. So what is found with both is no worse than either. */
static void gcpi_budget_parts(gcpi_planner *q, gcpi_portion portion)
{
    ptrdiff_t scratch = q->a->scratch;
    double known = q->r->known;
    gcpi_candidate copies;
    memset(&copies, 0, sizeof copies);
    if (!gcpi_order_make(&copies.order, q->trial.capacity, q->a)) { q->coarse = 1; q->a->scratch = scratch; return; }
    gcpi_budget_part(q, q->r->far, known, gcpi_part_of(portion, 0, 0.4));
    gcpi_keep(&copies, &q->kept.order, q->kept.method, q->kept.fit);
    if (gcpi_has(&copies) && !(known > 0 && known < copies.order.seconds)) known = copies.order.seconds;
    gcpi_none(&q->kept);
    gcpi_budget_part(q, 0, known, gcpi_part_of(portion, 0.4, 1));
    if (copies.order.seconds < q->kept.order.seconds) gcpi_keep(&q->kept, &copies.order, copies.method, copies.fit);
    q->a->scratch = scratch;
}

static void gcpi_policy_budget(gcpi_planner *q)
{
    if (!q->p->training) { gcpi_budget_inference(q); return; }
    const int both = q->r->far && !q->r->far_only;
    if (both) gcpi_budget_parts(q, gcpi_part_of(q->r->portion, 0, 0.5));
    gcpi_budget_run(q, gcpi_part_of(q->r->portion, both ? 0.5 : 0, 1));
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

static int gcpi_planner_make(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    if (!gcpi_choice_make(q, &q->now) || !gcpi_choice_make(q, &q->guide)) return 0;
    ptrdiff_t capacity = gcpi_planner_capacity(q);
    if (capacity <= 0 || capacity > INT32_MAX / 4) return 0;
    q->list.capacity = capacity;
    q->list.at = GCPI_SCRATCH(q->a, gcpi_instruction, capacity);
    q->front = gcpi_round(p->numbers, p->target.align);
    q->judgement = q->r->by_peak ? GCPI_BY_PEAK : GCPI_BY_LAYOUT;
    q->layout = GCPI_LAYOUT_WORK; q->kept.fit = gcpi_fit_free();
    int ok = q->list.at && gcpi_model_make(&q->m, p, q->a) && (!q->r->far || gcpi_far_make(q, (int)capacity));
    gcpi_order *const orders[] = { &q->trial, &q->best, &q->kept.order, &q->loose.order };
    for (int i = 0; ok && i < 4; i++) ok = gcpi_order_make(orders[i], (int)capacity, q->a);
    gcpi_none(&q->kept); gcpi_none(&q->loose);
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
    gcpi_choice_clear(q);
    if (!gcpi_order_of(q, &q->now, &q->trial) ||
        (gcpi_has_best(q) && q->keep_all > gcpi_order_slab(q, &q->best, gcpi_fit_free()).bytes))
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
