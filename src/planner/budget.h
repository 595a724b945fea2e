/* GCP_POLICY_BUDGET itself: the portfolio of candidates, the bound, and the least budget where nothing fits. */

/* The order that keeps what the cut at this price (seconds per byte) keeps. 0: its bytes do not fit. */
static int gcpi_cut_order(gcpi_planner *q, gcpi_cut *c, double price)
{
    gcpi_cut_solve(c, q->p->forward, price);
    gcpi_choice_clear(q);
    for (int i = 0; i < q->p->item_count; i++) {
        int v = q->m.value_of[i];
        if (v >= 0 && q->now.store[i] == GCPI_AUTO) q->now.store[i] = gcpi_cut_keeps(c, v) ? GCPI_STORE : GCPI_DROP;
    }
    return gcpi_order_of(q, &q->now, &q->trial) && q->trial.valid && q->trial.peak <= gcpi_room(q);
}

/* Tries keep-sets for prices, by bisection on whether the order fits. Of the orders that fit, those of lower prices are
   faster, so they are laid out first. */
static void gcpi_budget_cuts(gcpi_planner *q, int prices)
{
    enum { MOST = 32 };
    ptrdiff_t scratch = q->a->scratch;
    gcpi_cut c;
    /* exponents of two; the unit is the price at which all bytes together cost the seconds of keep-all */
    double low = -12, high = 12, fit[MOST], all = 0;
    int fits = 0;
    if (!gcpi_cut_make(&c, &q->m, q->a)) { q->coarse = 1; q->a->scratch = scratch; return; }
    for (int v = 0; v < q->m.values; v++) all += (double)c.own[v];
    for (int k = 0; k < prices && k < MOST; k++) {
        double price = (low + high) / 2, seconds = q->m.seconds / GCPI_MAX(all, 1) * exp2(price);
        if (gcpi_cut_order(q, &c, seconds)) { fit[fits++] = seconds; high = price; }
        else low = price;
    }
    while (fits-- > 0)
        if (gcpi_cut_order(q, &c, fit[fits]) && gcpi_offer(q, &q->trial, "cuts") <= q->slab_limit) break;
    /* lower prices keep too much, and copies take the excess away */
    for (double price = high; q->opts->far && price > -12; price -= 0.5) {
        gcpi_cut_order(q, &c, q->m.seconds / GCPI_MAX(all, 1) * exp2(price));
        if (gcpi_far_relieve(q, &q->trial, gcpi_room(q))) gcpi_offer_copies(q, &q->trial, "cuts");
    }
    q->a->scratch = scratch;
}

/* Slots from many to few: the first orders that fit are the fastest. */
static void gcpi_budget_chain(gcpi_planner *q, size_t bytes, int stages, int slots)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_chain c;
    int made = 0;
    if (q->p->forward > 2 * stages) stages /= 2;
    stages = gcpi_chain_stages(&q->m, bytes, stages);
    for (; stages >= 16 && !made; stages /= 2, slots = GCPI_MAX(64, slots / 2)) {
        q->a->scratch = scratch;
        made = gcpi_chain_make(&c, &q->m, q->crossing, bytes, stages, slots, q->a);
        q->coarse |= !made && bytes > c.constant;
    }
    for (int k = made ? c.slots : 0, after = 0; k > 0 && after < 4; k--) {
        if (!gcpi_chain_order(&c, &q->trial, k)) continue;
        if (q->trial.peak > gcpi_room(q)) continue;
        gcpi_offer(q, &q->trial, "chain");
        after += q->kept.order.seconds <= q->trial.seconds;
    }
    q->a->scratch = scratch;
}

/* The search's rounds: where each starts, its share of the visits, its first heat (in seconds of keep-all), price and
   rate. The last one runs only where a policy was faster than all the others. */
enum { GCPI_FROM_KEPT, GCPI_FROM_KEEP_ALL, GCPI_ROUNDS = 6 };
static const struct gcpi_round { int from; double share, heat, price, rate;
} gcpi_rounds[] = { { GCPI_FROM_KEPT, 0.1, 0.001, 3, 0 },       { GCPI_FROM_KEEP_ALL, 0.3, 0.003, 0.2, 50 },
                    { GCPI_FROM_KEEP_ALL, 0.3, 0.01, 0.3, 50 }, { GCPI_FROM_KEEP_ALL, 0.2, 0.01, 1, 3 },
                    { GCPI_FROM_KEPT, 0.2, 0.001, 1, 10 },      { GCPI_FROM_KEPT, 0.1, 0.0005, 1, 10 },
                    { GCPI_FROM_KEPT, 0.4, 0.001, 3, 0 } };

/* What it costs to make each value live again, in ways that far allows (see gcpi_search). A copy is priced at a tenth
   of the link's seconds, away and back. */
static void gcpi_search_by(gcpi_search *s, gcpi_planner *q, int far)
{
    const gcpi_model *m = s->m;
    s->far = far;
    for (int v = 0; v < m->values; v++) {
        double run = far < 2 && m->again[m->producer[v]] ? m->p->tasks[m->producer[v]].seconds : HUGE_VAL;
        double copy = far && m->fetch[v] >= 0 ? 0.2 * gcpi_far_seconds(q, v) : HUGE_VAL, least = GCPI_MIN(run, copy);
        if (m->fetch[v] >= 0) q->p->tasks[m->fetch[v]].seconds = far ? copy : 0;
        s->weight[v] = least < HUGE_VAL ? (double)m->bytes[m->group[v]] / (least + 1e-6 * m->seconds) : 0;
    }
}

static void gcpi_search_aim(gcpi_search *s, double aim)
{
    s->aim = GCPI_MIN(1, aim);
    s->limit = gcpi_bytes_from((double)s->whole * s->aim);
}

static int gcpi_search_make(gcpi_search *s, gcpi_planner *q)
{
    const gcpi_model *m = &q->m;
    memset(s, 0, sizeof *s);
    s->m = m;
    s->random = 88172645463325252ull;
    s->there = GCPI_SCRATCH(q->a, unsigned char, m->values + 1);
    s->weight = GCPI_SCRATCH(q->a, double, m->values + 1);
    s->states = GCPI_SCRATCH(q->a, unsigned char, (GCPI_STATES + 1) * (ptrdiff_t)m->state_bytes);
    s->runs = GCPI_SCRATCH(q->a, int, q->trial.capacity + 1);
    s->part = GCPI_SCRATCH(q->a, int, q->trial.capacity + 1);
    if (!s->there || !s->weight || !s->states || !s->runs || !s->part) return 0;
    gcpi_search_by(s, q, 0);
    return gcpi_order_make(&s->now, q->trial.capacity, q->a) && gcpi_order_make(&s->best, q->trial.capacity, q->a);
}

static void gcpi_keep_all_order(const gcpi_model *m, gcpi_order *o)
{
    o->count = 0;
    for (int i = 0; i < m->p->task_count; i++) o->at[o->count++] = i;
    gcpi_simulate(m, o, NULL);
}

/* What could still be gained is not worth a search. */
static int gcpi_proven(const gcpi_planner *q)
{
    return gcpi_has(&q->kept) && q->kept.order.seconds <= q->bound * (1 + 3e-4);
}

/* Offers what a round found. Where it has no layout that fits, the search goes on from it and aims lower, as later
   rounds will. */
static void gcpi_budget_mend(gcpi_planner *q, gcpi_search *s, double visits, double scale)
{
    enum { TRIES = 2 };
    for (int i = 0; s->found; i++) {
        size_t slab = q->opts->far_only ? gcpi_offer_copies(q, &s->best, "search") : gcpi_offer(q, &s->best, "search");
        int fits = slab <= q->slab_limit;
        if (slab) gcpi_search_aim(s, s->aim + (fits ? 0.002 : -0.008));
        if (fits || i == TRIES) break;
        s->limit = GCPI_MIN(s->limit, s->best.peak - 1);
        gcpi_order_copy(&s->now, &s->best);
        s->found = 0; s->price = 3; s->rate = 0;
        gcpi_search_run(s, visits, 0.001 * scale, 4e-5 * scale);
    }
    s->found = 0;
}

/* The last resort for `loose`, the fastest order whose bytes fit: more work on its layout, then its layout without a
   limit, then moves. 1: one of these is kept. */
static int gcpi_budget_pack(gcpi_planner *q)
{
    const gcpi_effort *e = &gcpi_efforts[q->opts->effort];
    gcpi_fit fits[3];
    fits[0] = gcpi_fit_of(q->slab_limit, e->hard, 0);
    fits[1] = gcpi_fit_free();
    fits[2] = gcpi_fit_of(q->slab_limit, e->layout / 2, GCPI_MOST_MOVES);
    int kept = 0;
    for (int i = 0; i < 3 && !kept && q->loose.order.seconds < q->kept.order.seconds; i++) {
        if (gcpi_order_slab(q, &q->loose.order, fits[i]) > q->slab_limit ||
            q->loose.order.seconds + q->moving >= q->kept.order.seconds)
            continue;
        gcpi_keep(&q->kept, &q->loose.order, q->loose.method, fits[i]);
        q->kept.order.seconds += q->moving;
        kept = 1;
    }
    gcpi_none(&q->loose);
    return kept;
}

static void gcpi_budget_round(gcpi_planner *q, gcpi_search *s, const struct gcpi_round *r, double visits, double scale,
                              double mending)
{
    if (r->from == GCPI_FROM_KEPT && gcpi_has(&q->kept)) gcpi_order_copy(&s->now, &q->kept.order);
    else gcpi_keep_all_order(s->m, &s->now);
    gcpi_far_strip(q, &s->now);
    s->price = r->price; s->rate = r->rate;
    gcpi_search_aim(s, s->aim);
    gcpi_search_run(s, visits * r->share, r->heat * scale, 4e-5 * scale);
    gcpi_budget_mend(q, s, visits * mending, scale);
}

/* Searches with copies. An order is judged by the timeline of its copies, once they are placed: a second of the link
   does not cost the same everywhere. This takes more visits than without copies: each move looks at the whole order. */
static void gcpi_budget_far(gcpi_planner *q, gcpi_search *s, double visits, double scale)
{
    static const struct gcpi_round rounds[] = { { GCPI_FROM_KEPT, 1.5, 0.001, 1, 3 },
                                                { GCPI_FROM_KEPT, 2, 0.003, 0.3, 10 },
                                                { GCPI_FROM_KEPT, 1.5, 0.002, 1, 3 },
                                                { GCPI_FROM_KEPT, 1, 0.001, 1, 10 } };
    s->judge = q;
    for (size_t i = 0; i < sizeof rounds / sizeof *rounds && !gcpi_proven(q); i++) {
        gcpi_search_by(s, q, i == 0 || q->opts->far_only ? 2 : 1);
        gcpi_budget_round(q, s, &rounds[i], visits, scale, 0.3);
    }
    s->judge = NULL;
    gcpi_search_by(s, q, 0);
}

static double gcpi_budget_visits(const gcpi_planner *q)              /* larger problems get more */
{
    const gcpi_effort *e = &gcpi_efforts[q->opts->effort];
    return GCPI_MIN(e->visits * GCPI_MIN(e->growth, GCPI_MAX(1, sqrt(q->p->task_count / 800.0))),
                    150000.0 * q->p->forward);
}

static void gcpi_budget_search(gcpi_planner *q, int from, int to)
{
    double visits = gcpi_budget_visits(q);
    ptrdiff_t scratch = q->a->scratch;
    gcpi_search s;
    int ok = gcpi_search_make(&s, q);
    q->coarse |= !ok;
    double scale = GCPI_MAX(1, 60.0 / q->p->forward);              /* in a small problem each move weighs more */
    s.whole = gcpi_room(q);
    gcpi_search_aim(&s, 1);
    for (int i = from; ok && i < to && !gcpi_proven(q); i++)
        gcpi_budget_round(q, &s, &gcpi_rounds[i], visits, scale, 0.06);
    if (ok && q->opts->far) gcpi_budget_far(q, &s, visits, scale);
    q->a->scratch = scratch;
    gcpi_budget_pack(q);
}

/* Nothing runs again: values are kept, or away in far memory. Where that has no layout, more of them go away. */
static void gcpi_budget_copies(gcpi_planner *q)
{
    size_t room = gcpi_room(q);
    for (int less = 0; less < 6; less++) {
        gcpi_keep_all_order(&q->m, &q->trial);
        if (gcpi_far_relieve(q, &q->trial, room - room / 16 * (size_t)less) &&
            gcpi_offer_copies(q, &q->trial, "copies") <= q->slab_limit)
            break;
    }
}

/* The fastest order within the limit. Where it has no layout that fits, the fastest of a lower peak, a few times. */
static void gcpi_budget_exact(gcpi_planner *q)
{
    enum { TRIES = 4 };
    ptrdiff_t scratch = q->a->scratch;
    size_t limit = gcpi_room(q);
    gcpi_exact x;
    int made = limit && gcpi_exact_make(&x, &q->m, q->a);
    q->coarse |= limit && !made && gcpi_exact_small(&q->m);
    for (int i = 0; made && i < TRIES && gcpi_exact_search(&x, limit, &q->trial); i++) {
        if (i == 0 && !q->opts->far) q->bound = q->trial.seconds;
        if (gcpi_offer(q, &q->trial, "exact") <= q->slab_limit) break;
        limit = q->trial.peak - 1;
    }
    q->a->scratch = scratch;
}

/* The bound with copies. What is away at any moment was copied out before and is copied back later. In T seconds it is
   at most half of what the link moves, and at most what far memory holds; in the slab it takes more, by its alignment.
   So T is at least the time of a schedule without copies and with that many bytes more. Bisection finds the least T. */
static double gcpi_far_bound(gcpi_planner *q, gcpi_cut *c, int places, double *excess)
{
    enum { STEPS = 12, MOST = 16 };
    const gcpi_model *m = &q->m;
    double low = m->seconds, high = gcpi_has(&q->kept) ? q->kept.order.seconds : (double)MOST * low, aligning = 0;
    for (int v = 0; v < m->values; v++)
        if (m->fetch[v] >= 0) aligning += (double)(m->bytes[m->group[v]] - q->p->items[m->item[v]].bytes);
    gcpi_keep_all_order(m, &q->trial);
    for (int i = 0; i < STEPS && low < high; i++) {
        double seconds = (low + high) / 2, least = HUGE_VAL,
               away = GCPI_MIN((double)q->opts->far, q->p->target.far_bytes_per_second * seconds / 2);
        size_t room = gcpi_room(q) + (size_t)GCPI_MIN(away + aligning, (double)q->trial.peak);
        memset(excess, 0, ((size_t)q->p->task_count + 2) * sizeof *excess);
        if (!q->opts->far_only) least = gcpi_bound(c, room, places, excess);
        else if (q->trial.peak <= room) least = m->seconds;
        if (least < seconds) { low = GCPI_MAX(low, least); high = seconds; }
        else low = seconds;
    }
    return low;
}

static void gcpi_budget_bound(gcpi_planner *q, int places)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_cut c;
    double *excess = GCPI_SCRATCH(q->a, double, q->p->task_count + 2);
    if (gcpi_room(q) && excess && gcpi_cut_make(&c, &q->m, q->a)) {
        double bound =
            q->opts->far ? gcpi_far_bound(q, &c, places, excess) : gcpi_bound(&c, gcpi_room(q), places, excess);
        q->bound = GCPI_MAX(q->bound, bound);
    }
    q->a->scratch = scratch;
}

/* Nothing is kept inside of a segment: quadratic time, and in short chains the least memory. */
static void gcpi_policy_replay(gcpi_planner *q)
{
    enum { MOST = 16 };
    int boundary[MOST], units = q->p->units;
    for (int k = 0; k <= MOST && k < units; k = k ? 2 * k : 1) {
        if ((double)q->p->forward * units / (k + 1) > 2.0 * q->trial.capacity) continue;
        for (int i = 0; i < k; i++) boundary[i] = gcpi_checkpoint_unit(units, k, i) + 1;
        gcpi_runs(q, boundary, k, 1);
    }
}

/* The policies. First the fastest of all their orders whose bytes fit is laid out; where that fails, each order that
   may be faster. Where nothing fits, q->best does not depend on the limit: the least budget starts from it. */
static void gcpi_budget_policies(gcpi_planner *q)
{
    for (q->lazy = 1;; q->lazy = 0) {
        q->found = q->tries = 0;
        q->method = "segments";  gcpi_policy_segments(q);
        q->method = "cheap";     gcpi_policy_cheap(q);
        int all = gcpi_efforts[q->opts->effort].policies;
        q->method = "sqrt";      if (all || !gcpi_has(&q->kept)) gcpi_policy_sqrt(q);
        q->method = "recursive"; if (all || !gcpi_has(&q->kept)) gcpi_policy_recursive(q);
        q->method = "replay";    if (all || !gcpi_has(&q->kept)) gcpi_policy_replay(q);
        if (!q->lazy) return;
        if (!gcpi_has(&q->loose) || gcpi_budget_pack(q)) break;
    }
    q->lazy = 0;
}

/* Keep-all. 1: it fits without a move, and nothing is faster. */
static int gcpi_budget_keep_all(gcpi_planner *q)
{
    q->method = "keep_all"; q->layout = GCPI_LAYOUT_WORK;
    gcpi_policy_keep_all(q);
    if (!gcpi_has(&q->kept)) gcpi_budget_pack(q);
    if (q->kept.order.seconds > q->m.seconds) return 0;
    q->bound = q->m.seconds;
    return 1;
}

/* The candidates for the current slab_limit. policies: keep-all and the policies, too. */
static void gcpi_budget_find(gcpi_planner *q, int policies)
{
    const gcpi_effort *e = &gcpi_efforts[q->opts->effort];
    q->bound = 0;
    gcpi_none(&q->loose);
    if (policies && gcpi_budget_keep_all(q)) return;
    q->layout = e->layout;
    if (q->known > 0) gcpi_budget_bound(q, e->places);
    if (q->known > 0 && q->bound >= q->known) return;
    if (!q->no_exact) gcpi_budget_exact(q);
    if (!q->opts->far_only) gcpi_budget_chain(q, gcpi_bytes_from(1.6 * (double)q->slab_limit), e->stages, e->slots);
    if (!q->opts->far_only) gcpi_budget_cuts(q, e->prices);
    if (q->opts->far_only) gcpi_budget_copies(q);
    gcpi_budget_bound(q, e->places);
    gcpi_budget_search(q, 0, GCPI_ROUNDS);
    double searched = q->kept.order.seconds;
    if (policies && !q->opts->far_only) gcpi_budget_policies(q);
    if (q->kept.order.seconds < searched) gcpi_budget_search(q, GCPI_ROUNDS, GCPI_ROUNDS + 1);
}

/* The least budget, which does not depend on the budget that was asked for. */
typedef struct gcpi_least { gcpi_order order; size_t slab; gcpi_fit fit; } gcpi_least;

static void gcpi_least_offer(gcpi_planner *q, gcpi_least *least, gcpi_order *found, gcpi_fit fit)
{
    /* limit 0: each copy is waited for at once, which takes the fewest bytes */
    const gcpi_order *o = found->valid ? gcpi_far_place(q, found, 0) : found;
    if (!o || !o->valid || q->front + o->peak > gcpi_round(least->slab, q->p->target.align)) return;
    size_t slab = gcpi_order_slab(q, o, fit);
    if (slab > least->slab || (slab == least->slab && o->seconds >= least->order.seconds)) return;
    least->slab = slab; least->fit = fit;
    gcpi_order_copy(&least->order, o);
}

/* Aims below what was found, again and again, in smaller and smaller steps. */
static void gcpi_least_search(gcpi_planner *q, gcpi_least *least, size_t floor, double visits, int far)
{
    gcpi_search s;
    if (!gcpi_search_make(&s, q)) return;
    gcpi_search_by(&s, q, far);
    for (double step = 0.1; step > 0.002;) {
        size_t before = least->slab;
        double goal = (double)(least->slab - q->front) * (1 - step);
        s.limit = GCPI_MAX(floor, (size_t)goal);
        s.found = 0; s.price = 3;
        gcpi_order_copy(&s.now, &least->order);
        gcpi_far_strip(q, &s.now);
        gcpi_search_run(&s, visits / 12, 0.01, 4e-4);
        if (s.found) gcpi_least_offer(q, least, &s.best, gcpi_fit_free());
        if (least->slab == before) step /= 2;
        if (least->slab <= q->front + floor) break;
    }
    gcpi_search_by(&s, q, 0);
}

/* Asks for less, in smaller and smaller steps, until one byte less is not found. With copies every step is one byte:
   those searches take long. */
static void gcpi_least_descend(gcpi_planner *q, gcpi_least *least)
{
    double step = q->opts->far ? 0 : 0.04, bound = q->bound;
    size_t asked = q->slab_limit;
    for (int last = 0; !last;) {
        size_t before = least->slab, less = GCPI_MAX(gcpi_bytes_from((double)(before - q->front) * step), 1);
        q->slab_limit = before - less;
        gcpi_none(&q->kept);
        gcpi_budget_find(q, less == 1);          /* the policies' orders are the same for every limit: once is enough */
        if (gcpi_has(&q->kept)) gcpi_least_offer(q, least, &q->kept.order, q->kept.fit);
        if (gcpi_has(&q->kept)) gcpi_least_offer(q, least, &q->kept.order, gcpi_fit_free());
        if (least->slab < before) continue;
        last = less == 1;
        step = step > 0.005 ? step / 2 : 0;
    }
    q->slab_limit = asked; q->bound = bound;
    gcpi_none(&q->kept);
}

/* keep-all with copies, for limits from the least up: the first few that are reached */
static void gcpi_least_copies(gcpi_planner *q, gcpi_least *least, size_t floor)
{
    for (size_t room = floor, relieved = 0; q->opts->far && relieved < 4 && room < q->best.peak; room += room / 32) {
        gcpi_keep_all_order(&q->m, &q->trial);
        if (!gcpi_far_relieve(q, &q->trial, room)) continue;
        gcpi_least_offer(q, least, &q->trial, gcpi_fit_free());
        relieved++;
    }
}

/* Where nothing fits: the least slab that can be found; its order is kept if it does fit after all. */
static void gcpi_budget_least(gcpi_planner *q)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_least least;
    gcpi_cut cut;
    gcpi_chain chain;
    gcpi_exact exact;
    size_t floor = 0;
    least.slab = SIZE_MAX / 2;
    if (!gcpi_order_make(&least.order, q->trial.capacity, q->a) || !gcpi_cut_make(&cut, &q->m, q->a)) {
        q->a->scratch = scratch;
        return;
    }
    floor = gcpi_least_bytes(&cut);
    gcpi_least_offer(q, &least, &q->best, gcpi_fit_free());
    /* the arena is too small to lay anything out */
    if (!least.order.count) { q->a->scratch = scratch; return; }
    ptrdiff_t here = q->a->scratch;
    if (!q->opts->far_only &&
        gcpi_chain_make(&chain, &q->m, q->crossing, 3 * floor, gcpi_chain_stages(&q->m, 3 * floor, GCPI_MOST_STAGES),
                        GCPI_MOST_SLOTS, q->a))
        for (int k = 0, orders = 0; k <= chain.slots && orders < 12; k++)
            if (gcpi_chain_order(&chain, &q->trial, k)) {
                gcpi_least_offer(q, &least, &q->trial, gcpi_fit_free());
                orders++;
            }
    q->a->scratch = here;
    if (!q->no_exact && gcpi_exact_make(&exact, &q->m, q->a) && gcpi_exact_search(&exact, 0, &q->trial))
        gcpi_least_offer(q, &least, &q->trial, gcpi_fit_free());
    else q->a->scratch = here;
    gcpi_least_copies(q, &least, floor);
    double visits = GCPI_MIN(6.5e6, 2500.0 * q->p->forward * q->p->forward);
    if (q->a->scratch == here && !q->opts->far_only) gcpi_least_search(q, &least, floor, visits, 0);
    if (q->opts->far) gcpi_least_search(q, &least, floor, visits, 1 + (q->opts->far_only != 0));
    gcpi_least_descend(q, &least);
    q->least_slab = least.slab;
    for (int i = least.order.peak_at; (q->least_task = gcpi_code_task(&least.order, i)) >= q->p->task_count;) i++;
    if (least.slab <= q->slab_limit) gcpi_keep(&q->kept, &least.order, "least", least.fit);
    q->a->scratch = scratch;
}

/* Where nothing fits. With far memory no more bytes are needed than without: what is found without comes first. */
static void gcpi_budget_nothing_fits(gcpi_planner *q)
{
    const gcp_plan_opts *opts = q->opts;
    gcp_plan_opts near = *opts;
    near.far = 0;
    q->by_peak = 0;
    q->opts = &near;
    if (opts->far && !opts->far_only) gcpi_budget_least(q);
    q->opts = opts;
    if (gcpi_has(&q->kept)) return;
    size_t slab = q->least_slab;
    int task = q->least_task;
    gcpi_budget_least(q);
    if (!slab || slab > q->least_slab) return;
    q->least_slab = slab; q->least_task = task;
}

/* Inference has only one order. Where it does not fit, less than was found is asked for until nothing is found. */
static void gcpi_budget_inference(gcpi_planner *q)
{
    size_t asked = q->slab_limit;
    gcpi_fit fit = gcpi_fit_free();
    gcpi_budget_keep_all(q);
    q->bound = q->m.seconds;
    if (gcpi_has(&q->kept)) return;
    q->least_task = gcpi_code_task(&q->best, q->best.peak_at);
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

static void gcpi_policy_budget(gcpi_planner *q)
{
    if (!q->p->training) { gcpi_budget_inference(q); return; }
    if (!gcpi_has(&q->kept)) gcpi_budget_find(q, 1);
    if (!gcpi_has(&q->kept) && !q->no_least) {
        gcpi_budget_nothing_fits(q);
        if (gcpi_has(&q->kept)) gcpi_budget_search(q, 0, GCPI_ROUNDS);          /* from that order */
    }
    if (gcpi_has(&q->kept)) gcpi_order_copy(&q->best, &q->kept.order);
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

static int gcpi_planner_make(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    int depth = 0;
    for (int i = 0; i < p->tape->segment_count; i++) depth = GCPI_MAX(depth, p->tape->segments[i].depth);
    ptrdiff_t capacity = gcpi_order_capacity(q->opts, p->task_count, p->forward, depth);
    if (capacity > INT32_MAX / 4) return 0;
    q->list.capacity = capacity;
    q->list.at = GCPI_SCRATCH(q->a, gcpi_instruction, capacity);
    q->front = gcpi_round(p->numbers, p->target.align);
    q->layout = GCPI_LAYOUT_WORK; q->kept.fit = gcpi_fit_free();
    int ok = q->list.at && gcpi_model_make(&q->m, p, q->a) && gcpi_choice_make(q, &q->now) &&
             gcpi_choice_make(q, &q->guide) && (!q->opts->far || gcpi_far_make(q, (int)capacity));
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
        return !q->out_of_memory && q->found;
    gcpi_choice_clear(q);
    if (gcpi_order_of(q, &q->now, &q->trial) &&
        (!q->found || q->keep_all <= gcpi_order_slab(q, &q->best, gcpi_fit_free()))) {
        q->found = 1;
        gcpi_order_copy(&q->best, &q->trial);
        gcpi_choice_copy(q->p, &q->guide, &q->now);
    }
    return !q->out_of_memory && q->found;
}
