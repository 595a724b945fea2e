/* GCP_POLICY_BUDGET: what its methods try. The policies, cuts, chains, turns of the local search, copies, exact search;
   and the bound. Each offers candidates; budget.h calls them. */

/* The order that keeps what the cut at this price (seconds per byte) keeps. 0: its bytes do not fit. */
static int gcpi_cut_order(gcpi_planner *q, gcpi_cut *c, double price)
{
    gcpi_cut_window(c, q->p->forward, q->p->task_count - 1);
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
static void gcpi_cuts_try(gcpi_planner *q, int prices)
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
        if (gcpi_cut_order(q, &c, fit[fits]) && gcpi_offer(q, &q->trial) <= q->r->limit) break;
    if (!gcpi_cut_order(q, &c, q->m.seconds / GCPI_MAX(all, 1) * exp2(low)) && q->trial.valid)
        gcpi_order_copy(&q->over[0], &q->trial);
    /* lower prices keep too much, and copies take the excess away */
    for (double price = high; q->r->far && price > -12; price -= 0.5) {
        gcpi_cut_order(q, &c, q->m.seconds / GCPI_MAX(all, 1) * exp2(price));
        if (gcpi_far_relieve(q, &q->trial, gcpi_room(q))) gcpi_offer_copies(q, &q->trial);
    }
    q->a->scratch = scratch;
}

/* Grains from many to few: the first orders that fit are the fastest. late: only where that pays. */
static void gcpi_chain_try(gcpi_planner *q, int late)
{
    const size_t bytes = gcpi_bytes_from(1.6 * (double)q->r->limit);       /* the tables count too much */
    ptrdiff_t scratch = q->a->scratch;
    gcpi_chain c;
    const int most = gcpi_efforts[q->r->effort].stages;
    int made = 0, stages = gcpi_chain_stages(&q->m, bytes, most), grains = gcpi_efforts[q->r->effort].grains;
    if (stages <= most && q->p->forward > 2 * stages) stages /= 2;
    if (late && !gcpi_chain_pays_late(&q->m, q->crossing, stages, q->a)) return;
    for (; stages >= 16 && !made; stages /= 2, grains = GCPI_MAX(64, grains / 2)) {
        q->a->scratch = scratch;
        made = gcpi_chain_make(&c, &q->m, q->crossing, bytes, stages, grains, late, q->a);
        q->coarse |= !made && bytes > c.constant;
    }
    for (int k = made ? c.grains : 0, after = 0; k > 0 && after < 4; k--) {
        if (!gcpi_chain_order(&c, &q->trial, k)) continue;
        if (q->trial.peak > gcpi_room(q)) { gcpi_order_copy(&q->over[1], &q->trial); continue; }
        gcpi_offer(q, &q->trial);
        after += q->kept.order.seconds <= q->trial.seconds;
    }
    q->a->scratch = scratch;
}

/* The search's turns: where each starts, its share of the visits, its first heat (in seconds of keep-all), price and
   rate. The last one runs only where a policy was faster than all the others. */
enum { GCPI_FROM_KEPT, GCPI_FROM_KEEP_ALL, GCPI_TURNS = 6 };
typedef struct gcpi_turn { int from; double share, heat, price, rate; } gcpi_turn;
static const gcpi_turn gcpi_turns[] = {
    { GCPI_FROM_KEPT, 0.1, 0.001, 3, 0 },
    { GCPI_FROM_KEEP_ALL, 0.3, 0.003, 0.2, 50 },
    { GCPI_FROM_KEEP_ALL, 0.3, 0.01, 0.3, 50 },
    { GCPI_FROM_KEEP_ALL, 0.2, 0.01, 1, 3 },
    { GCPI_FROM_KEPT, 0.2, 0.001, 1, 10 },
    { GCPI_FROM_KEPT, 0.1, 0.0005, 1, 10 },
    { GCPI_FROM_KEPT, 0.4, 0.001, 3, 0 },
};

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

static uint64_t gcpi_random_of(int seed) { return 88172645463325252ull ^ (uint64_t)seed * 0x9E3779B97F4A7C15u; }

static int gcpi_search_make(gcpi_search *s, gcpi_planner *q)
{
    const gcpi_model *m = &q->m;
    memset(s, 0, sizeof *s);
    s->m = m; s->q = q;
    s->random = gcpi_random_of(q->seed);
    s->there = GCPI_SCRATCH(q->a, unsigned char, m->values + 1);
    s->weight = GCPI_SCRATCH(q->a, double, m->values + 1);
    s->states = GCPI_SCRATCH(q->a, unsigned char, (GCPI_STATES + 1) * (ptrdiff_t)m->state_bytes);
    s->runs = GCPI_SCRATCH(q->a, int, q->trial.capacity + 1);
    s->part = GCPI_SCRATCH(q->a, int, q->trial.capacity + 1);
    if (!s->there || !s->weight || !s->states || !s->runs || !s->part) return 0;
    gcpi_search_by(s, q, 0);
    return gcpi_order_make(&s->now, q->trial.capacity, q->a) && gcpi_order_make(&s->best, q->trial.capacity, q->a);
}

static double gcpi_search_scale(const gcpi_planner *q)              /* in a small problem each move weighs more */
{
    return GCPI_MAX(1, 60.0 / q->p->forward);
}

static void gcpi_keep_all_order(const gcpi_model *m, gcpi_order *o)
{
    o->count = 0;
    for (int i = 0; i < m->p->task_count; i++) o->at[o->count++] = i;
    gcpi_simulate(m, o, NULL);
}

/* What could still be gained is not worth a search, or .progress stopped it. */
static int gcpi_search_over(const gcpi_planner *q)
{
    return q->r->watch->stopped || (gcpi_has(&q->kept) && q->kept.order.seconds <= q->bound * (1 + 3e-4));
}

/* Offers what a turn found. Where it has no layout that fits, the search goes on from it and aims lower, as later
   turns will. */
static void gcpi_budget_mend(gcpi_planner *q, gcpi_search *s, double visits, double scale, gcpi_portion portion)
{
    enum { TRIES = 2 };
    for (int i = 0; s->found; i++) {
        size_t slab = q->r->far_only ? gcpi_offer_copies(q, &s->best) : gcpi_offer(q, &s->best);
        int fits = slab <= q->r->limit;
        if (slab) gcpi_search_aim(s, s->aim + (fits ? 0.002 : -0.008));
        if (fits || i == TRIES || q->r->watch->stopped) break;
        s->limit = GCPI_MIN(s->limit, s->best.peak - 1);
        gcpi_order_copy(&s->now, &s->best);
        s->found = 0; s->price = 3; s->rate = 0;
        gcpi_search_run(s, visits, 0.001 * scale, 4e-5 * scale, portion);
    }
    s->found = 0;
}

/* The last resort for an order whose bytes fit: more work on its layout, then its layout without a limit, then moves.
   1: one of these is kept. */
static int gcpi_budget_pack_one(gcpi_planner *q, const gcpi_candidate *loose)
{
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    gcpi_fit fits[3];
    fits[0] = gcpi_fit_of(q->r->limit, e->hard, 0);
    fits[1] = gcpi_fit_free();
    fits[2] = gcpi_fit_of(q->r->limit, e->layout / 2, GCPI_MOST_MOVES);
    for (int i = 0; i < 3 && loose->order.seconds < q->kept.order.seconds; i++) {
        const gcpi_slab slab = gcpi_order_slab(q, &loose->order, fits[i]);
        if (slab.bytes > q->r->limit || loose->order.seconds + slab.moving >= q->kept.order.seconds) continue;
        gcpi_keep(&q->kept, &loose->order, loose->method, fits[i]);
        q->kept.order.seconds += slab.moving;
        return 1;
    }
    return 0;
}

/* The fastest first; then those of fewer bytes, where they are much faster than what is kept. */
static int gcpi_budget_pack(gcpi_planner *q)
{
    int kept = gcpi_budget_pack_one(q, &q->loose);
    for (int i = 0; i < GCPI_LOWER; i++)
        if (q->lower[i].order.peak < q->loose.order.peak &&
            q->lower[i].order.seconds < q->kept.order.seconds - 0.02 * q->m.seconds)
            kept |= gcpi_budget_pack_one(q, &q->lower[i]);
    gcpi_none_loose(q);
    return kept;
}

static void gcpi_budget_turn(gcpi_planner *q, gcpi_search *s, const gcpi_turn *r, double visits, double mending,
                              gcpi_portion portion)
{
    /* what fits only by its bytes may be so much faster that it is worth mending */
    const gcpi_candidate *kept =
        q->loose.order.seconds < q->kept.order.seconds - 0.1 * q->m.seconds ? &q->loose : &q->kept;
    if (r->from == GCPI_FROM_KEPT && gcpi_has(kept)) gcpi_order_copy(&s->now, &kept->order);
    else gcpi_keep_all_order(s->m, &s->now);
    const double scale = gcpi_search_scale(q);
    gcpi_far_strip(q, &s->now);
    s->price = r->price; s->rate = r->rate;
    gcpi_search_aim(s, s->aim);
    gcpi_search_run(s, visits * r->share, r->heat * scale, 4e-5 * scale, portion);
    gcpi_budget_mend(q, s, visits * mending, scale, portion);
}

/* Searches with copies. An order is judged by the timeline of its copies, once they are placed: a second of the link
   does not cost the same everywhere. This takes more visits than without copies: each move looks at the whole order. */
static void gcpi_budget_far(gcpi_planner *q, gcpi_search *s, double visits, gcpi_portion portion)
{
    static const gcpi_turn turns[] = { { GCPI_FROM_KEPT, 1.5, 0.001, 1, 3 },
                                                { GCPI_FROM_KEPT, 2, 0.003, 0.3, 10 },
                                                { GCPI_FROM_KEPT, 1.5, 0.002, 1, 3 },
                                                { GCPI_FROM_KEPT, 1, 0.001, 1, 10 } };
    s->judge = 1;
    const double count = sizeof turns / sizeof *turns;
    for (int i = 0; i < count && !gcpi_search_over(q); i++) {
        gcpi_search_by(s, q, i == 0 || q->r->far_only ? 2 : 1);
        gcpi_budget_turn(q, s, &turns[i], visits, 0.3, gcpi_part_of(portion, i / count, (i + 1) / count));
    }
    s->judge = 0;
    gcpi_search_by(s, q, 0);
}

static double gcpi_budget_visits(const gcpi_planner *q, double patience)      /* larger problems get more */
{
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    double growth = GCPI_MIN(e->growth, GCPI_MAX(1, sqrt(q->p->task_count / 800.0)));
    return patience * GCPI_MIN(e->visits * growth, 150000.0 * q->p->forward);
}

/* Turns [from, to). patience: how many times the visits of the effort. */
static void gcpi_budget_search(gcpi_planner *q, int from, int to, double patience, gcpi_portion portion)
{
    double visits = gcpi_budget_visits(q, patience);
    ptrdiff_t scratch = q->a->scratch;
    gcpi_search s;
    int ok = gcpi_search_make(&s, q);
    q->coarse |= !ok;
    q->method = "search";
    s.whole = gcpi_room(q);
    gcpi_search_aim(&s, 1);
    double near = q->r->far ? 0.2 : 1;              /* the share of searches without copies */
    for (int i = from; ok && i < to && !gcpi_search_over(q); i++) {
        const double begin = near * (i - from) / (to - from), end = near * (i + 1 - from) / (to - from);
        gcpi_budget_turn(q, &s, &gcpi_turns[i], visits, 0.06, gcpi_part_of(portion, begin, end));
    }
    if (ok && q->r->far) gcpi_budget_far(q, &s, visits, gcpi_part_of(portion, near, 1));
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
            gcpi_offer_copies(q, &q->trial) <= q->r->limit)
            break;
    }
}

/* With addresses: what is faster than the plan so far, or the proof that nothing is. Where the search ends before, it
   tries in haste: nearer to the end comes first. In great haste only where the bound is below a share of the plan. */
static void gcpi_budget_places(gcpi_planner *q, gcpi_exact *x)
{
    enum { HASTY = 20000, TRIES = 5 };
    static const struct { double haste, share; } tries[TRIES] = { { 0, 1 }, { 0.03, 1 }, { 0.1, 1 },
                                                                  { 0.3, 0.8 }, { 1, 0.8 } };
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    const gcpi_fit fit = gcpi_fit_of(q->r->limit, e->hard, 0);
    gcpi_places p;
    double least = 0;
    gcpi_exact_costs(x, gcpi_room(q));
    if (!gcpi_places_make(&p, x, q->r->limit - q->front, e->nodes, q->a)) return;
    for (int k = 0; k < TRIES && q->bound < tries[k].share * q->kept.order.seconds;) {
        p.haste = tries[k].haste;
        if (k) p.most = GCPI_MIN(p.most, HASTY);
        const gcpi_placing found = gcpi_places_search(&p, 1, q->kept.order.seconds, &q->trial, &least);
        q->bound = GCPI_MAX(q->bound, least);
        if (found != GCPI_PLACED) { k++; continue; }
        if (gcpi_order_slab(q, &q->trial, fit).bytes > q->r->limit) return;
        gcpi_keep(&q->kept, &q->trial, q->method, fit);
    }
}

/* The fastest order within the limit; where that has no layout that fits, others. 1: nothing is faster. */
static int gcpi_budget_exact(gcpi_planner *q)
{
    ptrdiff_t scratch = q->a->scratch;
    size_t limit = gcpi_room(q);
    gcpi_exact x;
    int made = limit && gcpi_exact_make(&x, &q->m, q->a);
    q->coarse |= limit && !made && gcpi_exact_small(&q->m);
    for (int i = 0; made && i < GCPI_EXACT_ORDERS && gcpi_exact_other(&x, i, &limit, &q->trial); i++) {
        if (i == 0 && !q->r->far && !q->m.mixed) q->bound = q->trial.seconds;
        if (gcpi_offer(q, &q->trial) <= q->r->limit) break;
    }
    if (made && !q->r->far && q->bound < q->kept.order.seconds) gcpi_budget_places(q, &x);
    q->a->scratch = scratch;
    return made && !q->r->far && gcpi_has(&q->kept) && q->bound >= q->kept.order.seconds;
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
               away = GCPI_MIN((double)q->r->far, q->p->target.far_bytes_per_second * seconds / 2);
        const size_t more = (size_t)GCPI_MIN(away + aligning, (double)q->trial.peak),
                     room = more + GCPI_MIN(gcpi_room(q), SIZE_MAX - more);
        memset(excess, 0, ((size_t)q->p->task_count + 2) * sizeof *excess);
        if (!q->r->far_only) least = gcpi_bound(c, room, places, excess);
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
    if (q->m.mixed) q->bound = GCPI_MAX(q->bound, q->m.seconds);
    else if (!gcpi_room(q)) q->bound = HUGE_VAL;
    else if (excess && gcpi_cut_make(&c, &q->m, q->a)) {
        double bound =
            q->r->far ? gcpi_far_bound(q, &c, places, excess) : gcpi_bound(&c, gcpi_room(q), places, excess);
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

static void gcpi_policies_try(gcpi_planner *q)
{
    const int all = gcpi_efforts[q->r->effort].policies;
    q->best.seconds = HUGE_VAL;
    q->tries = 0;
    q->method = "segments";  gcpi_policy_segments(q);
    q->method = "cheap";     gcpi_policy_cheap(q);
    q->method = "sqrt";      if (all || !gcpi_has(&q->kept)) gcpi_policy_sqrt(q);
    q->method = "recursive"; if (all || !gcpi_has(&q->kept)) gcpi_policy_recursive(q);
    q->method = "replay";    if (all || !gcpi_has(&q->kept)) gcpi_policy_replay(q);
}

/* The policies. First the fastest of all their orders whose bytes fit is laid out; where that fails, each order that
   may be faster. Where nothing fits, q->best does not depend on the limit: it is offered on the way down. */
static void gcpi_budget_policies(gcpi_planner *q)
{
    const gcpi_judgement judgement = q->judgement;
    q->policies_tried = 1;
    if (q->r->watch->stopped) return;
    if (judgement == GCPI_BY_LAYOUT) q->judgement = GCPI_LAID_OUT_LATER;
    gcpi_policies_try(q);
    q->judgement = judgement;
    if (gcpi_has(&q->loose) && !gcpi_budget_pack(q) && !q->r->watch->stopped) gcpi_policies_try(q);
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
