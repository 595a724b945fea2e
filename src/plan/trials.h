/* Which views are copies. Whole choices come first: none, all values, all gradients, all. Then a budget's search
   flips single views: near keep-all, as long as keep-all takes fewer bytes; of the best choice, as long as a quick
   plan is faster with the flip. Before that the copies of small ops are taken back, where that is faster: near the
   least budget often only the largest concat must be a copy. */

/* What planning with one choice of views gave: a plan, or the error that says why there is none. */
typedef struct gcpi_trial {
    int made;
    gcpi_copied *copied;              /* the choice, per op */
    gcpi_plan in; gcp_plan plan;
    gcp_code code; char message[GCP_MAX_ERROR];
} gcpi_trial;

/* A view that may be flipped; in a large network, all of one op. */
typedef struct gcpi_flip { int op, gradient; uint64_t bits; double bytes; } gcpi_flip;

/* What the choices of one plan share. tries: how many flips the effort allows. */
enum { GCPI_FLIPS = 25 };
typedef struct gcpi_trials {
    gcpi_flip flips[GCPI_FLIPS]; int count, tries;
    gcp_plan *plan, unplanned;
    gcp_arena *a;
    int open;                         /* gcpi_views_open */
    gcp_effort effort;                /* that was asked for */
    gcpi_trial best, trial, quick;    /* quick: what flips have reached */
    double bound;                     /* of all choices */
} gcpi_trials;

/* Whether trial b is worth more than a: a faster plan within the budget, else one of fewer bytes. A policy without a
   budget takes copies only where they save 2 % of the slab. */
static int gcpi_trial_better(const gcpi_trial *a, const gcpi_trial *b)
{
    if (a->made != b->made) return b->made;
    if (!b->made) return b->plan.least_bytes && b->plan.least_bytes < a->plan.least_bytes;
    if (b->in.opts.policy == GCP_POLICY_BUDGET) return b->in.planned_seconds < a->in.planned_seconds;
    return (double)b->in.slab_bytes < 0.98 * (double)a->in.slab_bytes;
}

static int gcpi_views_use(gcpi_plan *in, const gcpi_copied *copied, gcp_arena *a)
{
    memcpy(in->p.copied, copied, (size_t)in->p.tape->op_count * sizeof *copied);
    gcpi_views_place(&in->p);
    return !in->opts.costs || gcpi_costs_apply(&in->p, &in->opts, a);
}

/* Plans with trial->copied. The list stays at the front of the arena. */
static void gcpi_trial_run(gcpi_trials *r, gcpi_trial *trial)
{
    gcp_plan *plan = r->plan;
    gcp_tape *t = plan->tape;
    gcpi_lives lives;
    size_t *live;
    ptrdiff_t scratch = r->a->scratch;
    *plan = r->unplanned;
    trial->made = gcpi_views_use(plan->in, trial->copied, r->a) && gcpi_plan_by_views(plan, &lives, &live, r->a);
    r->a->scratch = scratch;
    trial->in = *plan->in; trial->plan = *plan;
    trial->code = t->code;
    memcpy(trial->message, t->message, sizeof t->message);
    gcp_error_clear(t);
}

/* A trial takes the place of the best one, if it is better. */
static int gcpi_trial_take(gcpi_trial *best, gcpi_trial *trial)
{
    const gcpi_trial was = *best;
    if (!gcpi_trial_better(best, trial)) return 0;
    trial->in.keep_all = was.in.keep_all;
    *best = *trial;
    trial->copied = was.copied;
    return 1;
}

static void gcpi_trial_copy(const gcpi_trials *r, gcpi_trial *to, const gcpi_trial *from)      /* its choice */
{
    memcpy(to->copied, from->copied, (size_t)r->plan->tape->op_count * sizeof *to->copied);
}

/* Whether another choice of views can gain nothing: keep-all was asked for or is nearly reached, or nothing trains. */
static int gcpi_trial_enough(const gcpi_trial *first)
{
    const gcpi_plan *in = &first->in;
    if (in->opts.policy == GCP_POLICY_KEEP_ALL || in->watch->stopped) return 1;
    if (in->opts.policy != GCP_POLICY_BUDGET) return !in->p.training;
    return first->made && in->planned_seconds <= in->keep_all_seconds * (1 + 3e-4);
}

/* A bound of the seconds of all lists, whatever their views. */
static double gcpi_views_bound(gcpi_plan *in, gcp_arena *a)
{
    gcpi_planner q;
    if (in->opts.policy != GCP_POLICY_BUDGET || !in->p.training) return 0;
    memset(&q, 0, sizeof q);
    q.p = &in->p; q.opts = &in->opts; q.a = a;
    q.slab_limit = GCPI_MAX(gcpi_slab_limit(in), 1);
    q.front = gcpi_round(in->p.numbers, in->p.target.align);
    return gcpi_relaxed_bound(&q, gcpi_efforts[in->opts.effort].places);
}

/* What is under way is this part of the call. The last tenth is for the least budget, which is rarely looked for. */
static void gcpi_trial_watch(gcpi_plan *in, double from, double to)
{
    const double begin = in->no_least || !gcpi_slab_limit(in) ? 0 : 0.9, share = begin > 0 ? 0.1 : 0.9;
    in->watch->portion.from = begin + share * from;
    in->watch->portion.to = begin + share * to;
}

/* What the next trial must beat. */
static void gcpi_trial_known(gcpi_trials *r, const gcpi_trial *best)
{
    r->plan->in->known = best->made ? best->in.planned_seconds : 0;
}

/* Plans with each whole choice that is open, the default first, in the first `share` of the call. For the least budget
   copies of gradients alone are left out, which is seldom the best choice. */
static void gcpi_trials_whole(gcpi_trials *r, double share)
{
    enum { GRADIENTS = 2 };
    gcpi_plan *in = r->plan->in;
    const int least = !in->no_least && r->open == 3, choices = least ? 3 : r->open == 3 ? 4 : 2;
    int done = 0;
    for (int copied = 0; copied < 4 && (!copied || !gcpi_trial_enough(&r->best)); copied++) {
        if (copied & ~r->open || (least && copied == GRADIENTS)) continue;
        gcpi_trial *trial = copied ? &r->trial : &r->best;
        if (copied) {
            in->no_least |= r->best.made;
            gcpi_trial_known(r, &r->best);
        }
        gcpi_trial_watch(in, share * done / choices, share * (done + 1) / choices);
        done++;
        gcpi_copied_set(trial->copied, in->p.tape->op_count, copied);
        gcpi_trial_run(r, trial);
        if (copied) gcpi_trial_take(&r->best, trial);
    }
}

static void gcpi_flip_add(gcpi_flip *flips, int *count, int most, gcpi_flip flip)
{
    int at = *count;
    if (!flip.bits || (at == most && flips[most - 1].bytes >= flip.bytes)) return;
    if (at == most) at--;
    else ++*count;
    for (; at > 0 && flips[at - 1].bytes < flip.bytes; at--) flips[at] = flips[at - 1];
    flips[at] = flip;
}

/* The views of an op that may lie in place or be copies: of its values, or of its gradients. */
static uint64_t gcpi_flip_bits(const gcpi_problem *p, const gcpi_op *op, int gradient)
{
    int view = gcpi_facts_of(op).view;
    uint64_t bits = 0;
    if (view != GCPI_VIEW_JOINED && (view != GCPI_VIEW_PART || gradient)) return 0;
    for (int i = 0; i < op->inputs; i++) {
        int x = gcpi_edge(p->tape, op, i);
        const gcpi_item *item = &p->items[gradient ? p->tensors + x : x];
        int open = view == GCPI_VIEW_PART ? 1
                   : gradient            ? item->active && p->tape->tensors[x].kind != GCPI_PARAMETER
                                         : item->kind == GCPI_FORWARD_ITEM && !(item->dense & 1);
        bits |= (uint64_t)open << i;
    }
    return bits;
}

/* single: one flip for each input, else one for all of them */
static void gcpi_flips_of(const gcpi_problem *p, int o, int single, gcpi_flip *flips, int *count, int most)
{
    const gcpi_op *op = &p->tape->ops[o];
    for (int gradient = 0; gradient < 2; gradient++) {
        uint64_t bits = gcpi_flip_bits(p, op, gradient);
        gcpi_flip flip = { o, gradient, bits, (double)gcpi_bytes_alone(p, op->out) };
        if (!single) gcpi_flip_add(flips, count, most, flip);
        for (int i = 0; single && i < op->inputs; i++) {
            flip.bits = bits & (uint64_t)1 << i;
            if (gcpi_facts_of(op).view == GCPI_VIEW_JOINED)
                flip.bytes = (double)gcpi_bytes_alone(p, gcpi_edge(p->tape, op, i));
            gcpi_flip_add(flips, count, most, flip);
        }
    }
}

/* The flips of the most bytes, largest first: of single inputs where all are few, else of ops. Returns how many. */
static int gcpi_flips_list(const gcpi_problem *p, gcpi_flip *flips, int most)
{
    int count = most;
    for (int single = 1; single >= 0 && count == most; single--) {
        count = 0;
        for (int k = 0; k < p->forward; k++)
            if (p->tasks[k].ops == 1) gcpi_flips_of(p, p->tasks[k].op, single, flips, &count, most);
    }
    return count;
}

static void gcpi_flip_turn(gcpi_trial *trial, const gcpi_flip *flip)
{
    gcpi_copied *c = &trial->copied[flip->op];
    uint64_t *bits = flip->gradient ? &c->gradients : &c->values;
    *bits = *bits & flip->bits ? *bits & ~flip->bits : *bits | flip->bits;
}

/* Whether flips may gain anything: there is a plan, and it is above what no choice beats. */
static int gcpi_flips_wanted(const gcpi_trials *r, const gcpi_trial *best)
{
    const gcpi_plan *in = &best->in;
    return in->opts.policy == GCP_POLICY_BUDGET && in->p.training && !in->watch->stopped &&
           (!best->made || in->planned_seconds > r->bound + 0.002 * in->keep_all_seconds);
}

/* Leaves copies only to ops of this share of the largest one's bytes, or more. 0: that changes nothing. */
static int gcpi_trial_thin(const gcpi_problem *p, gcpi_trial *trial, double share)
{
    size_t most = 0;
    int changed = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < p->forward; k++) {
            const gcpi_op *op = &p->tape->ops[p->tasks[k].op];
            gcpi_copied *c = &trial->copied[p->tasks[k].op];
            if (p->tasks[k].ops > 1 || !(gcpi_flip_bits(p, op, 0) | gcpi_flip_bits(p, op, 1))) continue;
            size_t bytes = gcpi_bytes_alone(p, op->out);
            if (!pass) most = GCPI_MAX(most, bytes);
            else if ((double)bytes < share * (double)most && (c->values | c->gradients)) {
                c->values = c->gradients = 0;
                changed = 1;
            }
        }
    return changed;
}

/* Plans quickly with the trial's choice. 1: it takes less than this share of the time that flips have reached, and is
   what they have reached now. */
static int gcpi_flips_try(gcpi_trials *r, ptrdiff_t used, double share)
{
    const gcpi_plan *before = &r->quick.in, *now = &r->trial.in;
    r->a->used = used;
    gcpi_trial_known(r, &r->quick);
    gcpi_trial_run(r, &r->trial);
    if (r->quick.made && r->trial.made && now->planned_seconds >= share * before->planned_seconds) return 0;
    return gcpi_trial_take(&r->quick, &r->trial);
}

/* Takes the copies of small ops back, more and more of them, where that is clearly faster. 1: it is once. */
static int gcpi_flips_thin(gcpi_trials *r, ptrdiff_t used)
{
    int better = 0;
    for (double rest = 0.5; rest > 0.1 && gcpi_flips_wanted(r, &r->quick); rest /= 2) {
        gcpi_trial_copy(r, &r->trial, &r->quick);
        better |= gcpi_trial_thin(&r->plan->in->p, &r->trial, 1 - rest) && gcpi_flips_try(r, used, 0.98);
    }
    return better;
}

/* From the best choice on: turns the flips in turn, and keeps those with which a quick plan is better. 1: any is. */
static int gcpi_flips_quick(gcpi_trials *r)
{
    const ptrdiff_t used = r->a->used;
    gcpi_trial_copy(r, &r->quick, &r->best);
    r->plan->in->known = 0;
    gcpi_trial_watch(r->plan->in, 0.7, 0.7);
    gcpi_trial_run(r, &r->quick);
    int better = gcpi_flips_thin(r, used);
    for (int n = 0, idle = 0; idle < r->count && n < r->tries && gcpi_flips_wanted(r, &r->quick); n++) {
        gcpi_trial_watch(r->plan->in, 0.7 + 0.2 * n / r->tries, 0.7 + 0.2 * (n + 1) / r->tries);
        gcpi_trial_copy(r, &r->trial, &r->quick);
        gcpi_flip_turn(&r->trial, &r->flips[n % r->count]);
        int taken = gcpi_flips_try(r, used, 1);
        better |= taken;
        idle = taken ? 0 : idle + 1;
    }
    r->a->used = used;
    return better;
}

/* Where keep-all takes hardly more than a slab of these bytes: turns the flips in turn, from the default on, and keeps
   those with which keep-all takes less, until it fits. r->quick has the choice. 1: any is kept. */
static int gcpi_flips_keep_all(gcpi_trials *r, size_t slab)
{
    const ptrdiff_t used = r->a->used;
    gcpi_plan *in = r->plan->in;
    const size_t limit = gcpi_slab_limit(in), all = r->best.in.keep_all;
    int better = 0;
    if (!all || slab < all / 5 * 4 || in->watch->stopped) return 0;
    in->opts.policy = GCP_POLICY_KEEP_ALL;
    gcpi_copied_set(r->quick.copied, in->p.tape->op_count, 0);
    gcpi_trial_run(r, &r->quick);
    for (int n = 0, idle = 0; idle < r->count && n < 4 * r->tries && r->quick.made; n++) {
        if (r->quick.in.slab_bytes <= limit) break;
        gcpi_trial_copy(r, &r->trial, &r->quick);
        gcpi_flip_turn(&r->trial, &r->flips[n % r->count]);
        r->a->used = used;
        gcpi_trial_run(r, &r->trial);
        int taken = r->trial.made && r->trial.in.slab_bytes < r->quick.in.slab_bytes;
        if (taken) { gcpi_trial_copy(r, &r->quick, &r->trial); r->quick.in = r->trial.in; }
        better |= taken;
        idle = taken ? 0 : idle + 1;
    }
    in->opts.policy = GCP_POLICY_BUDGET;
    r->a->used = used;
    return better;
}

/* Plans in full with the choice of r->quick, in this part of the call. */
static void gcpi_trials_full(gcpi_trials *r, double from, double to)
{
    gcpi_trial_copy(r, &r->trial, &r->quick);
    gcpi_trial_known(r, &r->best);
    gcpi_trial_watch(r->plan->in, from, to);
    gcpi_trial_run(r, &r->trial);
    gcpi_trial_take(&r->best, &r->trial);
}

/* Mixtures: those that lower keep-all's bytes, then from the best choice on. What quick plans say is better is planned
   in full. */
static void gcpi_trials_flip(gcpi_trials *r)
{
    gcpi_plan *in = r->plan->in;
    if (!r->tries || !gcpi_flips_wanted(r, &r->best)) return;
    if (gcpi_flips_keep_all(r, gcpi_slab_limit(in))) gcpi_trials_full(r, 0.6, 0.7);
    if (!gcpi_flips_wanted(r, &r->best)) return;
    in->opts.effort = GCP_EFFORT_QUICK; in->rough = 1;
    int better = gcpi_flips_quick(r);
    in->opts.effort = r->effort; in->rough = 0;
    if (better && !in->watch->stopped) gcpi_trials_full(r, 0.9, 1);
}

/* Looks for the least budget: with little effort for each whole choice, then in full for the best of them. */
static void gcpi_trials_least(gcpi_trials *r)
{
    gcpi_plan *in = r->plan->in;
    in->no_least = 0;
    in->known = 0;
    in->opts.effort = GCP_EFFORT_QUICK;
    gcpi_trials_whole(r, 0.3);
    in->opts.effort = r->effort;
    if (r->effort == GCP_EFFORT_QUICK || in->watch->stopped) return;
    in->no_least = r->best.made;
    gcpi_trial_copy(r, &r->quick, &r->best);
    gcpi_trials_full(r, 0.3, 0.6);
    const size_t least = r->best.plan.least_bytes;
    if (!r->best.made && least && gcpi_flips_keep_all(r, least - in->state_bytes)) gcpi_trials_full(r, 0.6, 1);
}

static int gcpi_trials_make(gcpi_trials *r, gcp_plan *plan, int open, gcp_arena *a)
{
    r->best.made = r->trial.made = r->quick.made = 0;
    r->plan = plan; r->unplanned = *plan; r->a = a; r->open = open; r->effort = plan->in->opts.effort;
    gcpi_trial *const all[] = { &r->best, &r->trial, &r->quick };
    for (int i = 0; i < 3; i++)
        if ((all[i]->copied = GCPI_SCRATCH(a, gcpi_copied, plan->tape->op_count)) == NULL) return 0;
    r->bound = gcpi_views_bound(plan->in, a);
    static const int share[] = { 4, 1, 16 }, some[] = { 8, 0, 32 };      /* per effort */
    const int forward = plan->in->p.forward, small = forward <= 16;
    r->count = gcpi_flips_list(&plan->in->p, r->flips, GCPI_FLIPS);
    r->tries = share[r->effort] * (small ? 20 : 120 / (forward + 10)) + some[r->effort];
    return 1;
}

/* The plan becomes the best one, or its error is on the tape. */
static int gcpi_trials_end(gcpi_trials *r, gcpi_lives *l, size_t **live)
{
    gcpi_plan *in = r->plan->in;
    gcp_tape *t = r->plan->tape;
    *r->plan = r->best.plan; *in = r->best.in;
    in->opts.effort = r->effort;
    if (!r->best.made) {
        t->code = r->best.code;
        memcpy(t->message, r->best.message, sizeof t->message);
        if (!t->code && in->watch->stopped) gcpi_stop_fail(in);       /* in a later choice than the best */
        return 0;
    }
    /* what other trials took after the list is free again */
    r->a->used = (unsigned char *)(in->list.at + in->list.capacity) - r->a->base;
    if (!gcpi_views_use(in, r->best.copied, r->a)) return 0;
    in->bound_seconds = r->bound;
    in->slab_bytes = gcpi_arrange(&in->p, &in->list, l, live, in->fit, r->a);
    return in->slab_bytes != 0;
}

/* The best plan of all choices of views. The least budget is looked for only where no choice has a plan. l and live
   stay in scratch. */
static int gcpi_plan_search(gcp_plan *plan, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    int open = gcpi_views_open(&in->p);
    gcpi_trials r;
    if (!open) return gcpi_plan_by_views(plan, l, live, a);
    if (!gcpi_trials_make(&r, plan, open, a)) return 0;
    in->no_least = 1;
    /* in a slab of no bytes nothing fits: gcp_least_budget asks for the least alone */
    if (in->opts.policy != GCP_POLICY_BUDGET || gcpi_slab_limit(in)) gcpi_trials_whole(&r, 0.6);
    if (!r.best.made && in->opts.policy == GCP_POLICY_BUDGET && !in->watch->stopped) gcpi_trials_least(&r);
    if (r.best.made) gcpi_trials_flip(&r);
    return gcpi_trials_end(&r, l, live);
}

/* gcpi_plan_search under the eyes of .progress, which hears of the end, too. */
static int gcpi_plan_watched(gcp_plan *plan, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    gcpi_watch watch;
    memset(&watch, 0, sizeof watch);
    watch.ask = in->opts.progress; watch.context = in->opts.progress_context;
    watch.portion.to = 1;
    in->watch = &watch;
    int made = gcpi_plan_search(plan, l, live, a);
    in->watch = NULL;
    if (watch.stopped) plan->coarse = 2;
    if (!watch.ask || watch.stopped) return made;
    watch.now.share = 1;
    if (made) { watch.now.seconds = in->planned_seconds; watch.now.keep_all_seconds = in->keep_all_seconds; }
    watch.ask(watch.context, &watch.now);
    return made;
}
