/* GCP_POLICY_BUDGET: the methods in turn. Their table; the way down where nothing fits; copies alone and without any,
   where both are allowed. */

static int gcpi_any(const gcpi_planner *q) { (void)q; return 1; }
static int gcpi_may_be_exact(const gcpi_planner *q) { return !q->r->no_exact; }
static int gcpi_may_run_again(const gcpi_planner *q) { return !q->r->far_only; }
static int gcpi_only_copies(const gcpi_planner *q) { return q->r->far_only; }
static int gcpi_copies_too(const gcpi_planner *q) { return q->r->far > 0; }
static int gcpi_copies_and_runs(const gcpi_planner *q) { return q->r->far && !q->r->far_only; }
static int gcpi_no_copies(const gcpi_planner *q) { return !q->r->far; }

/* The methods. 1: nothing is left to look for. */
static int gcpi_method_keep_all(gcpi_planner *q, gcpi_portion portion)
{
    const int best = gcpi_budget_keep_all(q);
    q->layout = gcpi_efforts[q->r->effort].layout;
    (void)portion;
    return best;
}
static int gcpi_method_bound(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_bound(q, gcpi_efforts[q->r->effort].places);
    (void)portion;
    return !q->r->far && q->bound >= (q->r->known > 0 ? q->r->known : HUGE_VAL);
}
static int gcpi_method_exact(gcpi_planner *q, gcpi_portion portion)
{
    (void)portion;
    return gcpi_budget_exact(q);
}
static int gcpi_method_chain(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_chain_try(q, 0);
    (void)portion;
    return 0;
}
static int gcpi_method_two_levels(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_binomial_copies(q);
    (void)portion;
    return 0;
}
static int gcpi_method_cuts(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_cuts_try(q, gcpi_efforts[q->r->effort].prices);
    (void)portion;
    return 0;
}
static int gcpi_method_copies(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_copies(q);
    (void)portion;
    return 0;
}
static int gcpi_method_search(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_search(q, 0, GCPI_TURNS, 1, portion);
    return 0;
}
/* The search goes on from a policy's order that is faster than all before. */
static int gcpi_method_policies(gcpi_planner *q, gcpi_portion portion)
{
    const double searched = q->kept.order.seconds;
    gcpi_budget_policies(q);
    if (q->kept.order.seconds < searched) gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
    return 0;
}

/* Late backward tasks in chains where that pays; the search goes on from such an order if it is faster. */
static int gcpi_method_late_chain(gcpi_planner *q, gcpi_portion portion)
{
    const double searched = q->kept.order.seconds;
    gcpi_chain_try(q, 1);
    if (q->kept.order.seconds < searched) gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
    return 0;
}

/* name: of the candidates that it offers; share: of what .progress counts. */
typedef struct gcpi_method {
    const char *name;
    int (*applies)(const gcpi_planner *q);
    int (*run)(gcpi_planner *q, gcpi_portion portion);
    double share;
} gcpi_method;
static const gcpi_method gcpi_methods[] = {
    { "keep_all", gcpi_any, gcpi_method_keep_all, 0 },
    { "bound", gcpi_no_copies, gcpi_method_bound, 0 },
    { "exact", gcpi_may_be_exact, gcpi_method_exact, 0.1 },
    { "chain", gcpi_may_run_again, gcpi_method_chain, 0 },
    { "cuts", gcpi_may_run_again, gcpi_method_cuts, 0 },
    { "binomial", gcpi_copies_and_runs, gcpi_method_two_levels, 0 },
    { "copies", gcpi_only_copies, gcpi_method_copies, 0 },
    { "bound", gcpi_copies_too, gcpi_method_bound, 0 },
    { "search", gcpi_any, gcpi_method_search, 0.8 },
    { "policies", gcpi_may_run_again, gcpi_method_policies, 0.1 },
    { "chain", gcpi_may_run_again, gcpi_method_late_chain, 0 },
};

/* The candidates for the limit. Where the bound says that nothing fits, there is nothing to look for. */
static void gcpi_budget_find(gcpi_planner *q, gcpi_portion portion)
{
    double done = 0;
    q->bound = 0;
    gcpi_none_loose(q);
    q->over[0].count = q->over[1].count = 0;
    for (size_t k = 0; k < sizeof gcpi_methods / sizeof *gcpi_methods; k++) {
        const gcpi_method *method = &gcpi_methods[k];
        q->method = method->name;
        if (method->applies(q) && method->run(q, gcpi_part_of(portion, done, done + method->share))) return;
        done += method->share;
    }
}

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
static int gcpi_budget_again(const gcpi_planner *q, double share)
{
    return q->r->effort != GCP_EFFORT_QUICK && gcpi_budget_far_off(q, share) &&
           !(q->r->known > 0 && q->kept.order.seconds > q->r->known);
}

/* As long as it helps, and the plan is far from the bound, the search goes on; then all of it, with more visits. */
static void gcpi_budget_more(gcpi_planner *q, gcpi_portion portion)
{
    for (int again = 0; again < 2; again++) {
        double before = HUGE_VAL;
        if (again && !gcpi_budget_again(q, 0.04)) return;
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

/* Binomial checkpoints, joins; the search goes on from what is clearly faster. */
static void gcpi_budget_late(gcpi_planner *q, gcpi_portion portion)
{
    const double before = q->kept.order.seconds;
    if (q->r->far || gcpi_search_over(q)) return;
    q->method = "binomial"; gcpi_binomial_try(q);
    q->method = "joins";    gcpi_joins_try(q);
    if (q->kept.order.seconds < before - 0.003 * q->m.seconds)
        gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
}

/* Small problems are searched by other random numbers, too: until so many in a row find nothing, the more, the further
   the plan is from the bound. 1: the plan is faster. */
static int gcpi_budget_seeds(gcpi_planner *q, gcpi_portion portion)
{
    enum { MOST = 10, SMALL = 256 };
    const double before = q->kept.order.seconds;
    if (q->p->forward > SMALL || q->r->effort == GCP_EFFORT_QUICK || q->r->far || q->r->limit <= 1) return 0;
    int idle = 0;
    for (q->seed = 1; q->seed <= MOST && !q->r->watch->stopped && !q->lowest.proven; q->seed++) {
        const double was = q->kept.order.seconds;
        const int none = !gcpi_has(&q->kept) && !q->r->no_least,
                  most = none ? 3 : gcpi_budget_again(q, 0.25) ? MOST : gcpi_budget_again(q, 0.02) ? 2 : 1;
        if (idle == most || (!none && !gcpi_budget_again(q, 0.003))) break;
        gcpi_budget_search(q, 0, GCPI_TURNS, 1, portion);
        idle = q->kept.order.seconds < was - 0.0005 * q->m.seconds ? 0 : idle + 1;
    }
    q->seed = 0;
    return q->kept.order.seconds < before;
}

/* Small graphs: what was found lately leaves less to look through with addresses. */
static void gcpi_budget_last(gcpi_planner *q)
{
    const ptrdiff_t scratch = q->a->scratch;
    gcpi_exact x;
    q->method = "exact";
    if (!q->r->no_exact && !q->r->far && gcpi_exact_make(&x, &q->m, q->a)) gcpi_budget_places(q, &x);
    q->a->scratch = scratch;
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
        gcpi_budget_late(q, gcpi_part_of(portion, 1, 1));
        if (gcpi_budget_seeds(q, gcpi_part_of(portion, 1, 1))) gcpi_budget_late(q, gcpi_part_of(portion, 1, 1));
        if (gcpi_has(&q->kept) && q->bound < q->kept.order.seconds) gcpi_budget_last(q);
    }
    if (gcpi_has(&q->kept)) gcpi_order_copy(&q->best, &q->kept.order);
}

enum { GCPI_ASK_AGAIN = 48 };              /* more forward ops leave no time to look twice where nothing fits */

/* What a request for a byte less than the least slab finds is the least; where it fits the limit, it is kept. */
static void gcpi_budget_below(gcpi_planner *q)
{
    if (q->r->far || q->r->no_least || q->p->forward > GCPI_ASK_AGAIN) return;
    const gcpi_request *asked = q->r;
    gcpi_request less = *asked;
    const gcpi_portion end = gcpi_part_of(asked->portion, 1, 1);
    const double bound = q->bound;
    for (int found = 1; found && q->lowest.slab > 1 && !q->lowest.proven && !gcpi_has(&q->kept);) {
        less.limit = q->lowest.slab - 1;
        q->r = &less;
        gcpi_budget_run(q, end);
        q->r = asked; q->bound = bound;
        found = gcpi_has(&q->kept);
        if (!found) return;
        q->lowest.slab = gcpi_order_slab(q, &q->kept.order, q->kept.fit).bytes;
        gcpi_least_holds(q, &q->kept.order);
        if (q->lowest.slab <= asked->limit) gcpi_order_copy(&q->best, &q->kept.order);
        else gcpi_none(&q->kept);
    }
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
    gcpi_budget_below(q);
    q->r = asked;
    q->bound = 0;
    q->lowest.proven = 0;                    /* of this part alone */
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

/* What lesser efforts find is a candidate, too: a greater one is then not slower. It comes last, for all else to begin
   as it would without. */
static void gcpi_budget_lesser(gcpi_planner *q, gcpi_portion portion)
{
    static const gcp_effort efforts[] = { GCP_EFFORT_QUICK, GCP_EFFORT_DEFAULT, GCP_EFFORT_THOROUGH };
    const gcpi_request *asked = q->r;
    gcpi_request lesser = *asked;
    const ptrdiff_t scratch = q->a->scratch;
    gcpi_candidate own;
    memset(&own, 0, sizeof own);
    if (!gcpi_order_make(&own.order, q->trial.capacity, q->a)) { q->coarse = 1; return; }
    /* the way down has passed theirs already, but for layouts */
    lesser.no_least |= !gcpi_has(&q->kept) && q->p->forward > GCPI_ASK_AGAIN;
    for (int e = 0; efforts[e] != asked->effort && !gcpi_search_over(q); e++) {
        const double bound = q->bound;
        gcpi_keep(&own, &q->kept.order, q->kept.method, q->kept.fit);
        gcpi_none(&q->kept);
        lesser.effort = efforts[e];
        q->r = &lesser;
        gcpi_budget_run(q, portion);
        q->r = asked;
        q->bound = GCPI_MAX(q->bound, bound);
        if (own.order.seconds <= q->kept.order.seconds) gcpi_keep(&q->kept, &own.order, own.method, own.fit);
    }
    if (gcpi_has(&q->kept)) gcpi_order_copy(&q->best, &q->kept.order);
    q->a->scratch = scratch;
}

/* Whether what lesser efforts find is looked at: in a small problem where there is something to gain, and of the
   greatest effort, beside which they take little. */
static int gcpi_budget_looks_back(const gcpi_planner *q)
{
    enum { SMALL = 128 };
    if (!gcpi_has(&q->kept) && q->lowest.proven) return 0;
    if ((q->r->limit <= 1 && q->p->forward > GCPI_ASK_AGAIN) || q->r->rough || gcpi_search_over(q)) return 0;
    return q->r->effort == GCP_EFFORT_THOROUGH || q->p->forward <= SMALL;
}

static void gcpi_policy_budget(gcpi_planner *q)
{
    if (!q->p->training) { gcpi_budget_inference(q); return; }
    const int both = q->r->far && !q->r->far_only;
    if (both) gcpi_budget_parts(q, gcpi_part_of(q->r->portion, 0, 0.5));
    gcpi_budget_run(q, gcpi_part_of(q->r->portion, both ? 0.5 : 0, 1));
    if (gcpi_budget_looks_back(q)) gcpi_budget_lesser(q, gcpi_part_of(q->r->portion, 1, 1));
    gcpi_budget_below(q);
}
