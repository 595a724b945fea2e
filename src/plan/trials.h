/* Which views are copies. Whole choices come first: none, all values, all gradients, all. Then a budget's search
   flips single views: near keep-all, as long as keep-all takes fewer bytes; of the best choice, as long as a quick
   plan is faster with the flip. Before that the copies of small ops are taken back, where that is faster: near the
   least budget often only the largest concat must be a copy. */

/* A choice of views, per op, and what planning with it gave. */
typedef struct gcpi_trial { gcpi_copied *copied; gcpi_outcome out; } gcpi_trial;

/* A view that may be flipped; in a large network, all of one op. */
typedef struct gcpi_flip { int op, gradient; uint64_t bits; double bytes; } gcpi_flip;

/* What the choices of one plan share. tries: how many flips the effort allows. */
enum { GCPI_FLIPS = 25 };
typedef struct gcpi_trials {
    gcpi_flip flips[GCPI_FLIPS]; int count, tries;
    gcpi_plan *core;
    gcpi_request asked;               /* what all of them are for */
    gcp_arena *a;
    int open;                         /* gcpi_views_open */
    gcpi_trial best, trial, quick;    /* quick: what flips have reached */
    double bound;                     /* of all choices */
    int no_least;                     /* of the trials to come: see gcpi_request */
    int broken;                       /* an error that no other choice mends is on the tape */
} gcpi_trials;

/* Whether outcome b is worth more than a: a faster list within the budget, else one of fewer bytes. A policy without a
   budget takes copies only where they save 2 % of the slab. */
static int gcpi_outcome_better(const gcpi_outcome *a, const gcpi_outcome *b, gcp_policy policy)
{
    if (a->made != b->made) return b->made;
    if (!b->made) return b->lowest.slab && b->lowest.slab < a->lowest.slab;
    if (policy == GCP_POLICY_BUDGET) return b->seconds < a->seconds;
    return (double)b->slab < 0.98 * (double)a->slab;
}

static int gcpi_views_use(gcpi_plan *core, const gcpi_copied *copied, gcp_arena *a)
{
    memcpy(core->p.copied, copied, (size_t)core->p.tape->op_count * sizeof *copied);
    gcpi_views_place(&core->p);
    return !core->opts.costs || gcpi_costs_apply(&core->p, &core->opts, a);
}

/* Plans with trial->copied. The list stays at the front of the arena. */
static void gcpi_trial_run(gcpi_trials *r, gcpi_trial *trial, const gcpi_request *request)
{
    gcpi_lives lives;
    size_t *live;
    ptrdiff_t scratch = r->a->scratch;
    memset(&trial->out, 0, sizeof trial->out);
    r->broken |= !gcpi_views_use(r->core, trial->copied, r->a);
    if (!r->broken) trial->out = gcpi_plan_by_views(r->core, request, &lives, &live, r->a);
    r->a->scratch = scratch;
}

static void gcpi_trial_copy(const gcpi_trials *r, gcpi_trial *to, const gcpi_trial *from)      /* its choice */
{
    memcpy(to->copied, from->copied, (size_t)r->core->p.tape->op_count * sizeof *to->copied);
}

/* A trial takes the place of the best one, if it is better. What is compared with stays keep-all by default views. */
static int gcpi_trial_take(const gcpi_trials *r, gcpi_trial *best, const gcpi_trial *trial)
{
    const size_t keep_all = best->out.keep_all;
    if (!gcpi_outcome_better(&best->out, &trial->out, r->asked.policy)) return 0;
    best->out = trial->out;
    best->out.keep_all = keep_all;
    gcpi_trial_copy(r, best, trial);
    return 1;
}

/* Whether another choice of views can gain nothing: keep-all was asked for or is nearly reached, or nothing trains. */
static int gcpi_trial_enough(const gcpi_trials *r)
{
    const gcpi_outcome *best = &r->best.out;
    if (r->asked.policy == GCP_POLICY_KEEP_ALL || r->asked.watch->stopped || r->broken) return 1;
    if (r->asked.policy != GCP_POLICY_BUDGET) return !r->core->p.training;
    return best->made && best->seconds <= r->core->keep_all_seconds * (1 + 3e-4);
}

/* A bound of the seconds of all lists, whatever their views. */
static double gcpi_views_bound(const gcpi_request *asked, gcp_arena *a)
{
    return asked->policy == GCP_POLICY_BUDGET && asked->p->training ? gcpi_relaxed_bound(asked, a) : 0;
}

/* The request for a trial that must beat `best`, in this part of the call. The last tenth is for the least budget,
   which is rarely looked for. */
static gcpi_request gcpi_trial_request(const gcpi_trials *r, const gcpi_outcome *best, double from, double to)
{
    const double begin = r->no_least || !gcpi_slab_limit(r->core) ? 0 : 0.9, share = begin > 0 ? 0.1 : 0.9;
    gcpi_request request = r->asked;
    request.known = best && best->made ? best->seconds : 0;
    request.no_least = r->no_least;
    request.portion.from = begin + share * from;
    request.portion.to = begin + share * to;
    return request;
}

/* Plans with each whole choice that is open, the default first, in the first `share` of the call. For the least budget
   copies of gradients alone are left out, which is seldom the best choice. */
static void gcpi_trials_whole(gcpi_trials *r, gcp_effort effort, double share)
{
    enum { GRADIENTS = 2 };
    const int least = !r->no_least && r->open == 3, choices = least ? 3 : r->open == 3 ? 4 : 2;
    int done = 0;
    for (int copied = 0; copied < 4 && (!copied || !gcpi_trial_enough(r)); copied++) {
        if (copied & ~r->open || (least && copied == GRADIENTS)) continue;
        gcpi_trial *trial = copied ? &r->trial : &r->best;
        r->no_least |= copied && r->best.out.made;
        gcpi_request request = gcpi_trial_request(r, copied ? &r->best.out : NULL, share * done / choices,
                                                  share * (done + 1) / choices);
        request.effort = effort;
        done++;
        gcpi_copied_set(trial->copied, r->core->p.tape->op_count, copied);
        gcpi_trial_run(r, trial, &request);
        if (copied) gcpi_trial_take(r, &r->best, trial);
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
                                         : item->kind == GCPI_FORWARD_ITEM && !(item->dense & GCPI_DENSE_ANYWAY);
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

/* Whether flips may gain anything: there is a list, and it is above what no choice beats. */
static int gcpi_flips_wanted(const gcpi_trials *r, const gcpi_outcome *best)
{
    return r->asked.policy == GCP_POLICY_BUDGET && r->core->p.training && !r->asked.watch->stopped && !r->broken &&
           (!best->made || best->seconds > r->bound + 0.002 * r->core->keep_all_seconds);
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
static int gcpi_flips_try(gcpi_trials *r, ptrdiff_t used, double share, double from, double to)
{
    const gcpi_outcome *before = &r->quick.out, *now = &r->trial.out;
    gcpi_request request = gcpi_trial_request(r, before, from, to);
    request.effort = GCP_EFFORT_QUICK; request.rough = 1;
    r->a->used = used;
    gcpi_trial_run(r, &r->trial, &request);
    if (before->made && now->made && now->seconds >= share * before->seconds) return 0;
    return gcpi_trial_take(r, &r->quick, &r->trial);
}

/* Takes the copies of small ops back, more and more of them, where that is clearly faster. 1: it is once. */
static int gcpi_flips_thin(gcpi_trials *r, ptrdiff_t used)
{
    int better = 0;
    for (double rest = 0.5; rest > 0.1 && gcpi_flips_wanted(r, &r->quick.out); rest /= 2) {
        gcpi_trial_copy(r, &r->trial, &r->quick);
        better |= gcpi_trial_thin(&r->core->p, &r->trial, 1 - rest) && gcpi_flips_try(r, used, 0.98, 0.7, 0.7);
    }
    return better;
}

/* From the best choice on: turns the flips in turn, and keeps those with which a quick plan is better. 1: any is. */
static int gcpi_flips_quick(gcpi_trials *r)
{
    const ptrdiff_t used = r->a->used;
    gcpi_request request = gcpi_trial_request(r, NULL, 0.7, 0.7);
    request.effort = GCP_EFFORT_QUICK; request.rough = 1;
    gcpi_trial_copy(r, &r->quick, &r->best);
    gcpi_trial_run(r, &r->quick, &request);
    int better = gcpi_flips_thin(r, used);
    for (int n = 0, idle = 0; idle < r->count && n < r->tries && gcpi_flips_wanted(r, &r->quick.out); n++) {
        gcpi_trial_copy(r, &r->trial, &r->quick);
        gcpi_flip_turn(&r->trial, &r->flips[n % r->count]);
        int taken = gcpi_flips_try(r, used, 1, 0.7 + 0.2 * n / r->tries, 0.7 + 0.2 * (n + 1) / r->tries);
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
    const size_t limit = gcpi_slab_limit(r->core), all = r->best.out.keep_all;
    gcpi_request request = r->asked;
    int better = 0;
    if (!all || slab < all / 5 * 4 || r->asked.watch->stopped) return 0;
    request.policy = GCP_POLICY_KEEP_ALL; request.limit = 0;
    gcpi_copied_set(r->quick.copied, r->core->p.tape->op_count, 0);
    gcpi_trial_run(r, &r->quick, &request);
    for (int n = 0, idle = 0; idle < r->count && n < 4 * r->tries && r->quick.out.made && !r->broken; n++) {
        if (r->quick.out.slab <= limit) break;
        gcpi_trial_copy(r, &r->trial, &r->quick);
        gcpi_flip_turn(&r->trial, &r->flips[n % r->count]);
        r->a->used = used;
        gcpi_trial_run(r, &r->trial, &request);
        int taken = r->trial.out.made && r->trial.out.slab < r->quick.out.slab;
        if (taken) { gcpi_trial_copy(r, &r->quick, &r->trial); r->quick.out = r->trial.out; }
        better |= taken;
        idle = taken ? 0 : idle + 1;
    }
    r->a->used = used;
    return better;
}

/* Plans in full with the choice of r->quick, in this part of the call. */
static void gcpi_trials_full(gcpi_trials *r, double from, double to)
{
    const gcpi_request request = gcpi_trial_request(r, &r->best.out, from, to);
    gcpi_trial_copy(r, &r->trial, &r->quick);
    gcpi_trial_run(r, &r->trial, &request);
    gcpi_trial_take(r, &r->best, &r->trial);
}

/* Mixtures: those that lower keep-all's bytes, then from the best choice on. What quick plans say is better is planned
   in full. */
static void gcpi_trials_flip(gcpi_trials *r)
{
    if (!r->tries || !gcpi_flips_wanted(r, &r->best.out)) return;
    if (gcpi_flips_keep_all(r, gcpi_slab_limit(r->core))) gcpi_trials_full(r, 0.6, 0.7);
    if (!gcpi_flips_wanted(r, &r->best.out)) return;
    if (gcpi_flips_quick(r) && !r->asked.watch->stopped) gcpi_trials_full(r, 0.9, 1);
}

/* Looks for the least budget: with little effort for each whole choice, then in full for the best of them. */
static void gcpi_trials_least(gcpi_trials *r)
{
    r->no_least = 0;
    gcpi_trials_whole(r, GCP_EFFORT_QUICK, 0.3);
    if (r->asked.effort == GCP_EFFORT_QUICK || r->asked.watch->stopped || r->broken) return;
    r->no_least = r->best.out.made;
    gcpi_trial_copy(r, &r->quick, &r->best);
    gcpi_trials_full(r, 0.3, 0.6);
    const size_t least = r->best.out.lowest.slab;
    if (!r->best.out.made && least && gcpi_flips_keep_all(r, least)) gcpi_trials_full(r, 0.6, 1);
}

static int gcpi_trials_make(gcpi_trials *r, gcpi_plan *core, gcpi_watch *watch, int open, gcp_arena *a)
{
    memset(r, 0, sizeof *r);
    r->core = core; r->asked = gcpi_request_of(core, watch); r->a = a; r->open = open;
    gcpi_trial *const all[] = { &r->best, &r->trial, &r->quick };
    for (int i = 0; i < 3; i++)
        if ((all[i]->copied = GCPI_SCRATCH(a, gcpi_copied, core->p.tape->op_count)) == NULL) return 0;
    r->bound = gcpi_views_bound(&r->asked, a);
    static const int share[] = { 4, 1, 16 }, some[] = { 8, 0, 32 };      /* per effort */
    const int forward = core->p.forward, small = forward <= 16;
    r->count = gcpi_flips_list(&core->p, r->flips, GCPI_FLIPS);
    r->tries = share[r->asked.effort] * (small ? 20 : 120 / (forward + 10)) + some[r->asked.effort];
    return 1;
}

/* The best outcome, laid out again. */
static gcpi_outcome gcpi_trials_end(gcpi_trials *r, gcpi_lives *l, size_t **live)
{
    gcpi_outcome out = r->best.out;
    if (!out.made && !out.code && r->asked.watch->stopped) gcpi_stop_fail(r->core, &out);   /* in a later choice */
    if (!out.made || r->broken) { out.made = 0; return out; }
    /* what other trials took after the list is free again */
    r->a->used = (unsigned char *)(out.list.at + out.list.capacity) - r->a->base;
    if (!gcpi_views_use(r->core, r->best.copied, r->a)) { out.made = 0; return out; }
    out.bound = r->bound;
    out.slab = gcpi_arrange(&r->core->p, &out.list, l, live, out.fit, r->a);
    out.made = out.slab != 0;
    return out;
}

/* The best outcome of all choices of views. The least budget is looked for only where no choice has a list. l and live
   stay in scratch. */
static gcpi_outcome gcpi_plan_search(gcpi_plan *core, gcpi_watch *watch, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    const int open = gcpi_views_open(&core->p), budget = core->opts.policy == GCP_POLICY_BUDGET;
    gcpi_trials r;
    if (!open) {
        const gcpi_request asked = gcpi_request_of(core, watch);
        return gcpi_plan_by_views(core, &asked, l, live, a);
    }
    if (!gcpi_trials_make(&r, core, watch, open, a)) return r.best.out;
    r.no_least = 1;
    /* in a slab of no bytes nothing fits: gcp_least_budget asks for the least alone */
    if (!budget || gcpi_slab_limit(core)) gcpi_trials_whole(&r, core->opts.effort, 0.6);
    if (!r.best.out.made && budget && !watch->stopped) gcpi_trials_least(&r);
    if (r.best.out.made) gcpi_trials_flip(&r);
    return gcpi_trials_end(&r, l, live);
}

/* Takes an outcome over into the plan. 0: it is an error, which goes on the tape. */
static int gcpi_plan_take(gcp_plan *plan, const gcpi_outcome *out)
{
    gcpi_plan *core = plan->core;
    plan->least_bytes = out->lowest.slab ? core->state_bytes + out->lowest.slab : 0;
    plan->least_proven = out->lowest.proven;
    plan->checkpoint_bytes = out->checkpoints;
    if (out->coarse) plan->coarse = 1;
    core->list = out->list; core->fit = out->fit; core->method = out->method;
    core->bound_seconds = out->bound; core->slab_bytes = out->slab; core->keep_all = out->keep_all;
    core->segments = out->segments;
    if (!out->made && out->code)
        gcpi_fail(plan->tape, out->code, core->opts.at, plan->tape->planning, "%s", out->message);
    return out->made;
}

/* Plans under the eyes of .progress, which hears of the end, too. */
static int gcpi_plan_watched(gcp_plan *plan, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    gcpi_watch watch;
    memset(&watch, 0, sizeof watch);
    watch.ask = core->opts.progress; watch.context = core->opts.progress_context;
    const gcpi_outcome out = gcpi_plan_search(core, &watch, l, live, a);
    const int made = gcpi_plan_take(plan, &out);
    if (watch.stopped) plan->coarse = 2;
    if (!watch.ask || watch.stopped) return made;
    watch.now.share = 1;
    if (made) { watch.now.seconds = out.seconds; watch.now.keep_all_seconds = core->keep_all_seconds; }
    watch.ask(watch.context, &watch.now);
    return made;
}
