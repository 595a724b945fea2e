/* GCP_POLICY_BUDGET: the least budget, and the way there. Where nothing fits, or what fits is slow, orders of fewer
   and fewer bytes are looked for, from keep-all down. The way does not depend on the budget that was asked for: what
   fits on it is a candidate, and if nothing does, the least slab on it is what the refusal names. A greater effort
   first goes the way of the lesser ones, then further. */
typedef struct gcpi_least {
    gcpi_order order, path;
    size_t slab, floor;
    int proven, task; /* nothing has a slab of fewer bytes; the task that alone takes so many, or -1 */
} gcpi_least;

/* Whether nothing fits yet, or what does is so far from the bound that the way down may pass a faster order. No more
   is wanted once .progress stopped the search. */
static int gcpi_least_wanted(const gcpi_planner *q)
{
    if (q->r->watch->stopped) return 0;
    if (!gcpi_has(&q->kept)) return 1;
    return !q->r->far && q->kept.order.seconds > q->bound + 0.1 * q->m.seconds;
}

/* The slab of an order on the way; it is kept if it is the fastest that fits, and `loose` if only its bytes fit.
   SIZE_MAX: it has none. *placed: the order with its copies. */
static size_t gcpi_least_slab(gcpi_planner *q, size_t most, gcpi_order *found, gcpi_fit fit, const gcpi_order **placed)
{
    /* limit 0: each copy is waited for at once, which takes the fewest bytes */
    const gcpi_order *o = *placed = found->valid ? gcpi_far_place(q, found, 0) : found;
    if (!o || !o->valid || q->front + o->peak > gcpi_round(most, q->p->target.align)) return SIZE_MAX;
    const gcpi_slab laid = gcpi_order_slab(q, o, fit);
    const size_t slab = laid.bytes;
    if (slab > q->r->limit && o->peak <= gcpi_room(q) && o->seconds < q->loose.order.seconds)
        gcpi_keep(&q->loose, o, "least", fit);
    if (fit.enough && slab > fit.enough) return SIZE_MAX;
    if (slab <= q->r->limit && o->seconds + laid.moving < q->kept.order.seconds) {
        gcpi_keep(&q->kept, o, "least", fit);
        q->kept.order.seconds += laid.moving;
    }
    return slab;
}

/* Takes over an order with the least slab so far. 1: what is kept is good enough, or no slab is smaller. */
static int gcpi_least_offer(gcpi_planner *q, gcpi_least *least, gcpi_order *found, gcpi_fit fit)
{
    const gcpi_order *o;
    size_t slab = gcpi_least_slab(q, GCPI_MAX(least->slab, q->r->limit), found, fit, &o);
    if (slab < least->slab || (slab == least->slab && o->seconds < least->order.seconds)) {
        least->slab = slab;
        gcpi_order_copy(&least->order, o);
    }
    return !gcpi_least_wanted(q) || least->slab <= q->front + least->floor;
}

static gcpi_fit gcpi_least_fit(void) { return gcpi_fit_of(0, 5e5, 0); }

/* Early on the way no slab is the least for long: what fits is kept. */
static int gcpi_least_early(gcpi_planner *q, gcpi_order *found)
{
    const gcpi_order *o;
    gcpi_least_slab(q, q->r->limit, found, gcpi_least_fit(), &o);
    return !gcpi_least_wanted(q);
}

/* From the end of the path down. Each search stops at the first order within its limit. Where one fails, a hotter one
   follows, and where these fail, a smaller step. */
static int gcpi_least_walk(gcpi_planner *q, gcpi_least *least, gcpi_search *s, double visits, gcpi_portion portion)
{
    enum { HEATS = 3 };
    static const double heats[HEATS] = { 0.03, 0.1, 0.3 };
    const gcpi_fit fit = gcpi_least_fit();
    double used = 0, scale = gcpi_search_scale(q), step = 0.1;
    s->first = 1;
    for (int failed = 0; step > 0.002 && used < visits && least->path.peak > least->floor && !q->r->watch->stopped;) {
        double heat = heats[failed] * scale;
        s->limit = GCPI_MAX(least->floor, gcpi_bytes_from((double)least->path.peak * (1 - step)));
        s->found = 0;
        s->price = 3 * scale;
        s->rate = 50;
        gcpi_order_copy(&s->now, &least->path);
        gcpi_far_strip(q, &s->now);
        used += gcpi_search_run(s, visits / 24, heat, 0.3 * heat,
                                gcpi_part_of(portion, used / visits, GCPI_MIN(1, used / visits + 1.0 / 24)));
        failed = s->found ? 0 : (failed + 1) % HEATS;
        if (!s->found && !failed) step /= 2;
        if (!s->found) continue;
        gcpi_order_copy(&least->path, &s->best);
        if (step > 0.05 ? gcpi_least_early(q, &least->path) : gcpi_least_offer(q, least, &least->path, fit)) return 1;
    }
    return 0;
}

/* More work on the layout of an order, for less and less of what the least slab is above its bytes. */
static int gcpi_least_pack(gcpi_planner *q, gcpi_least *least, gcpi_order *o, double work)
{
    for (double share = 0.5; share > 0.05;) {
        size_t live = q->front + o->peak, before = least->slab;
        if (before < live + live / 128) break;
        size_t goal = before - gcpi_bytes_from((double)(before - live) * share);
        if (gcpi_least_offer(q, least, o, gcpi_fit_of(goal, work, 0))) return 1;
        if (least->slab == before) share /= 2;
    }
    return 0;
}

/* Moves, as long as they take bytes off the least slab. */
static int gcpi_least_move(gcpi_planner *q, gcpi_least *least, double work)
{
    enum { MOST = 8 };
    int done = 0;
    size_t before = SIZE_MAX;
    for (int i = 0; i < MOST && !done && least->slab < before; i++) {
        before = least->slab;
        done = gcpi_least_offer(q, least, &least->order, gcpi_fit_of(before - 1, work, GCPI_MOST_MOVES));
    }
    return done;
}

/* The chain's orders of the fewest grains. */
static int gcpi_least_chain(gcpi_planner *q, gcpi_least *least, const gcpi_effort *e, int late)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_chain chain;
    size_t bytes = 3 * least->floor;
    int done = 0, made, stages = gcpi_chain_stages(&q->m, bytes, e->stages);
    if (late && !gcpi_chain_pays_late(&q->m, q->crossing, stages, q->a)) return 0;
    made = gcpi_chain_make(&chain, &q->m, q->crossing, bytes, stages, e->grains, late, q->a);
    q->coarse |= !made && bytes > chain.constant;
    for (int k = 0, orders = 0; made && k <= chain.grains && orders < 12 && !done; k++)
        if (gcpi_chain_order(&chain, &q->trial, k)) {
            done = gcpi_least_offer(q, least, &q->trial, gcpi_least_fit());
            orders++;
        }
    q->a->scratch = scratch;
    return done;
}

/* Orders of few bytes, however long they take: the policies' least, and the exact one. */
static int gcpi_least_starts(gcpi_planner *q, gcpi_least *least)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_exact exact;
    int done = 0;
    if (!q->r->no_exact && gcpi_exact_make(&exact, &q->m, q->a) && gcpi_exact_search(&exact, 0, &q->trial))
        done = gcpi_least_offer(q, least, &q->trial, gcpi_least_fit());
    q->a->scratch = scratch;
    if (done) return 1;
    if (!q->policies_tried) gcpi_budget_policies(q);
    return gcpi_least_offer(q, least, &q->best, gcpi_least_fit());
}

/* An order in its live bytes or in `most`, by moves: which ones are tried depends on the work, too. */
static int gcpi_least_moves(gcpi_planner *q, gcpi_least *least, gcpi_order *o, size_t most)
{
    enum { TRIES = 4 };
    const size_t live = q->front + o->peak, before = least->slab;
    double work = gcpi_efforts[q->r->effort].layout;
    int done = 0;
    for (int i = 0; i < 2 * TRIES && !done && least->slab == before; i++, work *= i % 2 ? 1 : 0.5)
        done = gcpi_least_offer(q, least, o, gcpi_fit_of(GCPI_MIN(i % 2 ? most : live, most), work, GCPI_MOST_MOVES));
    return done;
}

/* Small graphs: orders within a byte less than the least slab, with moves if need be, until none of them has a
   layout. */
static int gcpi_least_exact(gcpi_planner *q, gcpi_least *least)
{
    ptrdiff_t scratch = q->a->scratch;
    const size_t align = q->p->target.align;
    size_t before = least->slab, limit = 0;
    gcpi_exact x;
    int done = 0, made = !q->r->no_exact && gcpi_exact_make(&x, &q->m, q->a);
    for (int i = 0; made && i < GCPI_EXACT_ORDERS && !done && before > q->front + least->floor; i++) {
        if (i == 0) limit = gcpi_round(before - 1 - q->front, align);
        if (!gcpi_exact_other(&x, i, &limit, &q->trial)) break;
        done = gcpi_least_moves(q, least, &q->trial, before - 1);
        if (least->slab < before) i = -1;
        before = least->slab;
    }
    q->a->scratch = scratch;
    return done;
}

/* Whether nothing is below the least slab. What fits there is taken over: *better. */
static int gcpi_least_below(gcpi_planner *q, gcpi_least *least, gcpi_exact *x, int *better)
{
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    const size_t slab = least->slab - 1 - q->front, before = least->slab;
    const ptrdiff_t scratch = q->a->scratch;
    double seconds = 0;
    gcpi_places p;
    gcpi_placing found = GCPI_PLACING_UNDECIDED;
    if (!(gcpi_exact_costs(x, gcpi_round(slab, q->p->target.align)) < HUGE_VAL)) return 1;
    if (gcpi_places_make(&p, x, slab, e->nodes, q->a)) found = gcpi_places_search(&p, 0, HUGE_VAL, &q->trial, &seconds);
    q->a->scratch = scratch;
    if (found == GCPI_PLACED) gcpi_least_offer(q, least, &q->trial, gcpi_fit_of(before - 1, e->hard, 0));
    *better = least->slab < before;
    return found == GCPI_CANNOT_PLACE;
}

static size_t gcpi_least_pad(const gcpi_problem *p, size_t bytes) { return gcpi_round(bytes, p->target.align) - bytes; }

/* A bound of all slabs, and the task that sets it: the bytes that it takes in any case, rounded up but for those of the
   buffer on top. */
static size_t gcpi_least_bound(gcpi_planner *q, const gcpi_cut *c, int *task)
{
    const gcpi_problem *p = q->p;
    const ptrdiff_t scratch = q->a->scratch;
    gcpi_list list;
    gcpi_lives l;
    size_t *live, most = 0, own;
    const int made = gcpi_keep_all_list(p, &list, q->a) && gcpi_lives_make(p, &list, &l, &live, q->a);
    gcpi_all_dead(&q->m);
    for (int t = 0; made && t < p->task_count; t++) {
        size_t pad = gcpi_least_pad(p, p->tasks[t].workspace);
        for (int k = 0; k < p->tasks[t].count; k++) {
            const gcpi_item *item = &p->items[p->operands[p->tasks[t].operands + k].item];
            if (p->items[item->root].kind != GCPI_STATE_ITEM) pad = GCPI_MAX(pad, gcpi_least_pad(p, item->bytes));
        }
        for (int b = 0; b < l.buffer_count; b++)
            if (l.buffers[b].first <= t && l.buffers[b].last >= t &&
                p->items[l.buffers[b].root].kind != GCPI_FORWARD_ITEM)
                pad = GCPI_MAX(pad, gcpi_least_pad(p, l.buffers[b].bytes));
        const size_t bytes = gcpi_footprint(c, t, &own);
        if (bytes <= most + pad) continue;
        most = bytes - pad;
        *task = t;
    }
    q->a->scratch = scratch;
    return q->front + most;
}

/* Nothing is below the bytes that one task takes. Small graphs: with addresses, down until nothing is below. */
static void gcpi_least_prove(gcpi_planner *q, gcpi_least *least, const gcpi_cut *cut)
{
    const ptrdiff_t scratch = q->a->scratch;
    gcpi_exact x;
    if (!gcpi_values_whole(&q->m)) return;
    least->proven = least->slab <= gcpi_least_bound(q, cut, &least->task);
    if (!least->proven) least->task = -1;
    int better = !q->r->no_exact && gcpi_exact_make(&x, &q->m, q->a);
    while (better && !least->proven) least->proven = gcpi_least_below(q, least, &x, &better);
    q->a->scratch = scratch;
}

/* keep-all with copies, for limits from the least up: the first few that are reached */
static int gcpi_least_copies(gcpi_planner *q, gcpi_least *least)
{
    int done = 0;
    const size_t most = least->path.peak;
    size_t room = least->floor ? least->floor : most / 128;
    for (int relieved = 0; relieved < 4 && room < most && !done; room += room / 32 + 1) {
        gcpi_keep_all_order(&q->m, &q->trial);
        if (!gcpi_far_relieve(q, &q->trial, room)) continue;
        if (!relieved) gcpi_order_copy(&least->path, &q->trial);
        done = gcpi_least_offer(q, least, &q->trial, gcpi_least_fit());
        relieved++;
    }
    return done;
}

static int gcpi_least_effort(gcpi_planner *q, gcpi_least *least, gcpi_search *s, const gcpi_effort *e,
                             gcpi_portion portion)
{
    /* a small problem takes as many to settle; a large one has no time for more */
    double visits = e->least * GCPI_MIN(GCPI_MAX(q->p->forward, 100), 6000);
    if (gcpi_least_walk(q, least, s, visits, portion) || gcpi_least_pack(q, least, &least->path, e->hard / 2)) return 1;
    for (int late = 0; late < 2 && !q->r->far_only; late++)
        if (gcpi_least_chain(q, least, e, late)) return 1;
    return (least->order.peak != least->path.peak && gcpi_least_pack(q, least, &least->order, e->hard / 2)) ||
           gcpi_least_move(q, least, e->layout / 2);
}

/* Small problems in which nothing fits: more ways down from keep-all, by other random numbers, as one may end lower.
   They end when so many in a row did not: in smaller problems more. */
static int gcpi_least_again(gcpi_planner *q, gcpi_least *least, gcpi_search *s, gcpi_portion portion)
{
    enum { SMALL = 256, MOST = 40 };
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    const double visits = e->least * GCPI_MAX(q->p->forward, 100);
    if (gcpi_has(&q->kept) || q->p->forward > SMALL || q->r->effort == GCP_EFFORT_QUICK || q->r->far ||
        (!q->r->no_exact && gcpi_exact_small(&q->m)))
        return 0;
    const int most = 3 + SMALL / GCPI_MAX(1, q->p->forward);
    for (int seed = 1, idle = 0; seed <= MOST && idle < most && !q->r->watch->stopped; seed++) {
        const size_t before = least->slab;
        s->random = gcpi_random_of(seed);
        gcpi_keep_all_order(&q->m, &least->path);
        if (gcpi_least_walk(q, least, s, visits, portion) || gcpi_least_pack(q, least, &least->path, e->hard / 2))
            return 1;
        idle = least->slab < before ? 0 : idle + 1;
    }
    return 0;
}

static void gcpi_least_find(gcpi_planner *q, gcpi_least *least, gcpi_portion portion)
{
    static const gcp_effort efforts[] = { GCP_EFFORT_QUICK, GCP_EFFORT_DEFAULT, GCP_EFFORT_THOROUGH };
    gcpi_search s;
    int made = gcpi_search_make(&s, q);
    q->coarse |= !made;
    if (!made) return;
    gcpi_search_by(&s, q, q->r->far ? 1 + (q->r->far_only != 0) : 0);
    gcpi_keep_all_order(&q->m, &least->path);
    int done = gcpi_least_offer(q, least, &least->path, gcpi_least_fit()) || (q->r->far && gcpi_least_copies(q, least));
    /* where something fits that is not too slow, a little effort tells whether another way is faster */
    for (int e = 0; e < (q->kept.order.seconds < q->bound + q->m.seconds ? 1 : 3) && !done; e++) {
        int last = efforts[e] == q->r->effort;
        done = gcpi_least_effort(q, least, &s, &gcpi_efforts[efforts[e]],
                                 gcpi_part_of(portion, e ? 0.2 : 0, last ? 1 : 0.2)) ||
               (e == 0 && !q->r->far_only && gcpi_least_starts(q, least));
        if (last) break;
    }
    if (!done) done = gcpi_least_again(q, least, &s, gcpi_part_of(portion, 1, 1));
    if (!done && !q->r->far) gcpi_least_exact(q, least);
    gcpi_search_by(&s, q, 0);
}

/* What the least slab holds at its peak. */
static void gcpi_least_holds(gcpi_planner *q, const gcpi_order *o)
{
    const gcpi_problem *p = q->p;
    ptrdiff_t scratch = q->a->scratch;
    gcpi_lives l;
    size_t *live;
    q->lowest.gradients = q->lowest.batch = q->lowest.halves = 0;
    for (int i = o->peak_at; (q->lowest.task = gcpi_code_task(o, i)) >= p->task_count;) i++;
    gcpi_list_of(p, o, &q->list);
    int made = !gcpi_is_graph(p) && gcpi_lives_make(p, &q->list, &l, &live, q->a);
    for (int b = 0; made && b < l.buffer_count; b++) {
        const gcpi_buffer *x = &l.buffers[b];
        const gcpi_item *item = &p->items[x->root];
        if (x->joined >= 0 || x->first > l.peak_at || x->last < l.peak_at) continue;
        int weight = item->kind == GCPI_GRADIENT_ITEM && p->tape->tensors[item->tensor].kind == GCPI_PARAMETER;
        *(weight ? &q->lowest.gradients : &q->lowest.batch) += x->bytes;
        if (item->halves) q->lowest.halves += x->bytes;
    }
    q->a->scratch = scratch;
}

/* Looks for the least slab; that of an earlier search stays where it is smaller. */
static void gcpi_budget_way_down(gcpi_planner *q, gcpi_portion portion)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_least least;
    gcpi_cut cut;
    q->judgement = GCPI_BY_LAYOUT;
    memset(&least, 0, sizeof least);
    least.slab = SIZE_MAX / 2;
    least.task = -1;
    if (gcpi_order_make(&least.order, q->trial.capacity, q->a) &&
        gcpi_order_make(&least.path, q->trial.capacity, q->a) && gcpi_cut_make(&cut, &q->m, q->a)) {
        least.floor = q->m.mixed ? 0 : gcpi_least_bytes(&cut);
        gcpi_least_find(q, &least, portion);
        if (!q->r->far && !gcpi_has(&q->kept)) gcpi_least_prove(q, &least, &cut);
    }
    /* no order: the arena is too small to lay anything out */
    if (least.order.count && (!q->lowest.slab || least.slab < q->lowest.slab)) {
        q->lowest.slab = least.slab;
        q->lowest.proven = least.proven;
        gcpi_least_holds(q, &least.order);
        if (least.task >= 0) q->lowest.task = least.task;
    }
    q->a->scratch = scratch;
}
