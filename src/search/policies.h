/* Candidates, and the policies. Each policy only fills a choice. Where it has freedom it tries several and keeps the
   one with the least live peak, then the least time; GCP_POLICY_BUDGET keeps the fastest that fits. */

static int gcpi_has(const gcpi_candidate *c) { return c->order.seconds < HUGE_VAL; }
static void gcpi_none(gcpi_candidate *c) { c->order.seconds = HUGE_VAL; }
static void gcpi_none_loose(gcpi_planner *q)
{
    gcpi_none(&q->loose);
    for (int i = 0; i < GCPI_LOWER; i++) gcpi_none(&q->lower[i]);
}

static void gcpi_keep(gcpi_candidate *c, const gcpi_order *o, const char *method, gcpi_fit fit)
{
    gcpi_order_copy(&c->order, o);
    c->method = method; c->fit = fit;
}

/* An order whose bytes fit, and not its slab. */
static void gcpi_loosen(gcpi_planner *q, const gcpi_order *o, gcpi_fit fit)
{
    if (o->seconds < q->loose.order.seconds) { gcpi_keep(&q->loose, o, q->method, fit); return; }
    if (q->p->forward > GCPI_LOWER_MOST || o->peak >= q->loose.order.peak) return;
    int to = 0;
    for (int i = 0; i < GCPI_LOWER; i++) {
        const gcpi_order *x = &q->lower[i].order;
        if (x->seconds <= o->seconds && x->peak <= o->peak) return;
        if (x->seconds > q->lower[to].order.seconds) to = i;
    }
    if (o->seconds < q->lower[to].order.seconds) gcpi_keep(&q->lower[to], o, q->method, fit);
}

/* A candidate of GCP_POLICY_BUDGET: kept if its slab fits and it is faster than the kept one; if only its bytes fit,
   the fastest is remembered in `loose`. Returns its slab (where it is not laid out: the limit), or 0: no candidate. */
static size_t gcpi_offer_order(gcpi_planner *q, const gcpi_order *o)
{
    size_t slab = q->r->limit;
    const gcpi_fit fit = gcpi_fit_of(q->r->limit, q->layout, 0);
    if (!o || !o->valid || o->seconds >= q->kept.order.seconds || o->peak > gcpi_room(q)) return 0;
    if (q->judgement == GCPI_BY_LAYOUT) slab = gcpi_order_slab(q, o, fit).bytes;
    const int loose = q->judgement == GCPI_LAID_OUT_LATER || slab > q->r->limit;
    if (!loose) gcpi_keep(&q->kept, o, q->method, fit);
    else if (slab < SIZE_MAX) gcpi_loosen(q, o, fit);
    return slab;
}

static size_t gcpi_offer(gcpi_planner *q, gcpi_order *found)
{
    return gcpi_offer_order(q, found->valid ? gcpi_far_place(q, found, gcpi_room(q)) : found);
}

/* Places copies in all the room; where the slab then does not fit, in somewhat less. Returns what gcpi_offer does. */
static size_t gcpi_offer_copies(gcpi_planner *q, gcpi_order *found)
{
    size_t room = gcpi_room(q), slab = gcpi_offer(q, found);
    for (int less = 1; less < 4 && slab > q->r->limit; less++)
        slab = gcpi_offer_order(q, gcpi_far_place(q, found, room - room / 32 * (size_t)less));
    return slab;
}

static int gcpi_has_best(const gcpi_planner *q) { return q->best.seconds < HUGE_VAL; }

/* Tries the order of the current choice; it becomes the best if it is. */
static void gcpi_try(gcpi_planner *q)
{
    gcpi_order *o = &q->trial;
    q->tries++;
    if (!gcpi_order_of(q, &q->now, o) || !o->valid) return;
    if (q->r->limit) gcpi_offer(q, o);
    if (gcpi_has_best(q) && (o->peak > q->best.peak || (o->peak == q->best.peak && o->seconds >= q->best.seconds)))
        return;
    gcpi_order_copy(&q->best, o);
    gcpi_choice_copy(q->p, &q->guide, &q->now);
}

/* What a cut after each task would keep, and what segments would hold: guides for the search, not exact counts. */
static int gcpi_guides(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    q->crossing = GCPI_SCRATCH(q->a, size_t, p->forward + 2);
    q->saved = GCPI_SCRATCH(q->a, size_t, p->forward + 2);
    ptrdiff_t scratch = q->a->scratch;
    int *last = GCPI_SCRATCH(q->a, int, p->item_count);
    unsigned char *read = GCPI_SCRATCH(q->a, unsigned char, p->item_count);
    if (!q->crossing || !q->saved || !last || !read) return 0;
    for (int i = 0; i < p->item_count; i++) last[i] = -1;
    for (int b = 0; b < p->task_count; b++)
        for (int k = 0; k < p->tasks[b].count; k++) {
            const gcpi_operand *o = &p->operands[p->tasks[b].operands + k];
            if (o->mode == GCPI_READ && b < p->forward) last[p->items[o->item].root] = b;
            if (o->mode == GCPI_READ && b >= p->forward) read[p->items[o->item].root] = 1;
        }
    for (int i = 0; i < p->item_count; i++) {
        const gcpi_item *x = &p->items[i];
        if (x->kind != GCPI_FORWARD_ITEM || x->root != i || x->producer < 0 || q->now.store[i] == GCPI_STORE) continue;
        if (last[i] > x->producer) { q->crossing[x->producer] += x->bytes; q->crossing[last[i]] -= x->bytes; }
        if (read[i]) q->saved[x->producer] += x->bytes;
    }
    for (int f = 1; f <= p->forward; f++) q->crossing[f] += q->crossing[f - 1];
    q->a->scratch = scratch;
    return 1;
}

/* Segments from cuts: cut[f] = 1 begins a new segment after task f. */
static void gcpi_segments_from(gcpi_planner *q, const unsigned char *cut)
{
    const gcpi_problem *p = q->p;
    gcpi_choice_clear(q);
    int segment = gcpi_segment_add(&q->now, 0);
    for (int f = 0; f < p->forward; f++) {
        q->now.segment[f] = segment;
        if (cut[f] && f + 1 < p->forward) segment = gcpi_segment_add(&q->now, 0);
    }
}

/* After Chen's algorithm 3, which cuts at the first candidate beyond the budget: grow a segment to `budget` saved
   bytes, then cut where the fewest bytes cross. family 0: among its last four tasks; 1: in its second half; 2: among
   its last four tasks, but only between units. */
static int gcpi_chen_cuts(const gcpi_planner *q, size_t budget, int family, unsigned char *cut)
{
    const gcpi_problem *p = q->p;
    size_t held = 0;
    int begin = 0, cuts = 0, end = p->forward;
    while (end > 0 && p->tasks[end - 1].unit == p->units) end--;
    memset(cut, 0, (size_t)p->forward + 1);
    for (int f = 0; f + 1 < end; f++) {
        held += q->saved[f];
        if (held < budget) continue;
        int best = -1, from = family == 1 ? begin + (f - begin) / 2 : GCPI_MAX(begin, f - 3);
        for (int g = f; g >= from; g--) {
            if (family == 2 && p->tasks[g].unit == p->tasks[g + 1].unit) continue;
            if (best < 0 || q->crossing[g] < q->crossing[best]) best = g;
        }
        if (best < 0) continue;
        cut[best] = 1;
        cuts++;
        held = 0;
        for (int g = best + 1; g <= f; g++) held += q->saved[g];
        begin = best + 1;
    }
    return cuts;
}

/* Above so many tasks fewer numbers of segments are tried, and then some near the best one. */
enum { GCPI_CHEN_LONG = 8192 };
typedef struct gcpi_chen {
    int is_long;
    unsigned char *cut, *other;
    size_t total, budget;             /* saved bytes in all; of the last segments */
    int k, family;                    /* of the best */
} gcpi_chen;

/* About k segments. Families often cut alike: in a long chain one of them is enough. */
static void gcpi_chen_try(gcpi_planner *q, gcpi_chen *c, int k, int family)
{
    const size_t budget = c->total / (size_t)k + 1, peak = q->best.peak;
    const double seconds = q->best.seconds;
    if (budget == c->budget || !gcpi_chen_cuts(q, budget, family, c->cut)) return;
    if (family && c->is_long) {
        gcpi_chen_cuts(q, budget, 0, c->other);
        if (!memcmp(c->cut, c->other, (size_t)q->p->forward)) return;
    }
    c->budget = budget;
    gcpi_segments_from(q, c->cut);
    gcpi_try(q);
    if (q->best.peak != peak || q->best.seconds != seconds) { c->k = k; c->family = family; }
}

/* Moves single cuts of the best choice by one task. */
static void gcpi_chen_moves(gcpi_planner *q, unsigned char *cut)
{
    const gcpi_problem *p = q->p;
    for (int round = 0; round < 3 && gcpi_has_best(q); round++)
        for (int f = 0;
             f + 1 < p->forward && q->tries < 400 && (double)q->tries * p->task_count < (q->r->limit ? 1e5 : 5e5);
             f++) {
            if (q->guide.segment[f] == q->guide.segment[f + 1]) continue;
            for (int to = f - 1; to <= f + 1; to += 2) {
                for (int g = 0; g + 1 < p->forward; g++) cut[g] = q->guide.segment[g] != q->guide.segment[g + 1];
                if (to < 0 || to + 1 >= p->forward || cut[to] || !cut[f]) continue;
                cut[f] = 0; cut[to] = 1;
                gcpi_segments_from(q, cut);
                gcpi_try(q);
            }
        }
}

static void gcpi_policy_sqrt(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    gcpi_chen c = { p->forward > GCPI_CHEN_LONG, NULL, NULL, 0, 0, 0, 0 };
    c.cut = GCPI_SCRATCH(q->a, unsigned char, p->forward + 1);
    c.other = GCPI_SCRATCH(q->a, unsigned char, p->forward + 1);
    if (!c.cut || !c.other) { q->out_of_memory = 1; return; }
    for (int f = 0; f < p->forward; f++) c.total += q->saved[f];
    for (int family = 0; family < 3; family++)
        for (int k = 1; k <= 4 || (double)k * k <= 8.0 * p->forward;        /* more segments never pay */
             k += c.is_long ? 1 + k / 4 : q->r->limit || k >= 64 ? 1 + k / 8 : 1)
            if (!c.is_long || !family || (2 * k > c.k && k < 2 * c.k)) gcpi_chen_try(q, &c, k, family);
    for (int step = c.k / 8; c.is_long && step > 0; step /= 2)
        for (int side = -1, k = c.k; side < 2; side += 2) gcpi_chen_try(q, &c, k + side * step, c.family);
    gcpi_chen_moves(q, c.cut);
}

/* Where [begin, end) is cut off with fewer bytes crossing: there, or up to three tasks earlier. */
static int gcpi_cheap_cut(const gcpi_planner *q, int begin, int end, int last)
{
    int best = end - 1;
    for (int g = best; g >= GCPI_MAX(begin, end - 4) && end < last; g--)
        if (q->crossing[g] < q->crossing[best]) best = g;
    return best + 1;
}

/* Halves (or k-ths by saved bytes) of a run of tasks, again and again, down to leaves of at most `leaf` tasks. */
static void gcpi_divide(gcpi_planner *q, int first, int last, int segment, int parts, int leaf)
{
    size_t total = 0, sum = 0;
    int begin = first, done = 0;
    for (int f = first; f < last; f++) { total += q->saved[f]; q->now.segment[f] = segment; }
    if (last - first <= leaf || total == 0 || q->now.depth[segment] > 24) return;
    for (int f = first; f < last && done + 1 < parts; f++) {
        sum += q->saved[f];
        if (sum < total / (size_t)parts * (size_t)(done + 1) || f + 1 >= last) continue;
        const int end = gcpi_cheap_cut(q, begin, f + 1, last);
        gcpi_divide(q, begin, end, gcpi_segment_add(&q->now, segment), parts, leaf);
        begin = end;
        done++;
    }
    if (begin > first && begin < last) gcpi_divide(q, begin, last, gcpi_segment_add(&q->now, segment), parts, leaf);
}

static void gcpi_policy_recursive(gcpi_planner *q)
{
    for (int parts = 2; parts <= 4; parts++)
        for (int leaf = 1; leaf <= 16; leaf *= 2) {
            gcpi_choice_clear(q);
            gcpi_divide(q, 0, q->p->forward, 0, parts, leaf);
            gcpi_try(q);
        }
}

/* Keeps what is costly to recompute; then joins (add, concat), too, or a recomputation may reach back to the start. */
static void gcpi_policy_cheap(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    for (int joins = 0; joins < 2; joins++) {
        gcpi_choice_clear(q);
        for (int f = 0; f < p->forward; f++) {
            const gcpi_task *t = &p->tasks[f];
            if (t->costly || t->loss || (joins && t->joins)) continue;
            for (int k = 0; k < t->count; k++) {
                const gcpi_operand *o = &p->operands[t->operands + k];
                if (o->mode != GCPI_READ && q->now.store[o->item] == GCPI_AUTO) q->now.store[o->item] = GCPI_DROP;
            }
        }
        gcpi_try(q);
    }
}

/* The user's segments. What follows the last one (the loss) belongs to the root, or to that segment, which then need
   not run again; both are tried. */
static int gcpi_segments_choose(gcpi_planner *q, int tail)          /* 1: there are segments */
{
    const gcpi_problem *p = q->p;
    const gcp_tape *t = p->tape;
    int segmented = 0, last = 0;
    gcpi_choice_clear(q);
    q->now.segments = t->segment_count;
    for (int s = 0; s < t->segment_count; s++) {
        q->now.parent[s] = t->segments[s].parent;
        q->now.depth[s] = t->segments[s].depth;
    }
    for (int f = 0; f < p->forward; f++) {
        q->now.segment[f] = p->tasks[f].segment;
        segmented |= p->tasks[f].segment;
    }
    for (int f = p->forward - 1; tail && f >= 0 && !last; f--) last = p->tasks[f].segment;
    for (int f = p->forward - 1; last && f >= 0 && !p->tasks[f].segment; f--) q->now.segment[f] = last;
    return segmented;
}

static void gcpi_policy_segments(gcpi_planner *q)
{
    for (int tail = 0, segmented = 1; tail < 2 && segmented; tail++) {
        segmented = gcpi_segments_choose(q, tail);
        gcpi_try(q);
    }
}

/* Runs of units: boundary[i] = first unit of run i + 1. The loss belongs to the last run, or in replay to the root. */
static void gcpi_runs(gcpi_planner *q, const int *boundary, int boundaries, int replay)
{
    const gcpi_problem *p = q->p;
    gcpi_choice_clear(q);
    q->now.replay = replay;
    int run = 0, segment = gcpi_segment_add(&q->now, 0);
    for (int f = 0; f < p->forward; f++) {
        for (; run < boundaries && p->tasks[f].unit >= boundary[run] && p->tasks[f].unit < p->units; run++)
            segment = gcpi_segment_add(&q->now, 0);
        q->now.segment[f] = replay && p->tasks[f].unit == p->units ? 0 : segment;
    }
    gcpi_try(q);
}

static void gcpi_policy_uniform(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    int runs = q->r->opts->segments, *boundary = GCPI_SCRATCH(q->a, int, p->units + 1);
    if (!boundary) { q->out_of_memory = 1; return; }
    for (int i = 0; i + 1 < runs; i++) boundary[i] = (i + 1) * (p->units / runs);
    gcpi_runs(q, boundary, runs - 1, 0);
    if (!q->r->opts->balance) return;
    size_t total = 0, sum = 0;
    int n = 0;
    for (int f = 0; f < p->forward; f++) total += q->saved[f];
    for (int f = 0; f + 1 < p->forward && n + 1 < runs; f++) {
        sum += q->saved[f];
        int next = p->tasks[f + 1].unit;
        if (next == p->tasks[f].unit || next == p->units) continue;
        if (sum >= total / (size_t)runs * (size_t)(n + 1) || p->units - next <= runs - 1 - n) boundary[n++] = next;
    }
    gcpi_runs(q, boundary, n, 0);
}

/* Seed 000's rule: k units evenly spaced by index, both ends truncated before interpolating. */
static int gcpi_checkpoint_unit(int units, int k, int i)
{
    int offset = (units - 1) / k, first = offset / 2, last = (2 * (units - 1) - offset) / 2;
    return k == 1 ? first : first + (int)((long long)(last - first) * i / (k - 1));
}

static void gcpi_policy_checkpoints(gcpi_planner *q)
{
    int k = q->r->opts->checkpoints, *boundary = GCPI_SCRATCH(q->a, int, k + 1);
    if (!boundary) { q->out_of_memory = 1; return; }
    for (int i = 0; i < k; i++) boundary[i] = gcpi_checkpoint_unit(q->p->units, k, i) + 1;
    gcpi_runs(q, boundary, k, q->r->opts->replay);
}

/* Bytes of the checkpoints: outputs of the chosen units that other units read. Views of the input do not count. */
static size_t gcpi_checkpoint_bytes(const gcpi_request *r)
{
    const gcpi_problem *p = r->p;
    size_t bytes = 0;
    for (int i = 0; r->policy == GCP_POLICY_CHECKPOINTS && i < r->opts->checkpoints; i++) {
        int unit = gcpi_checkpoint_unit(p->units, r->opts->checkpoints, i);
        for (int x = 0; x < p->item_count; x++) {
            const gcpi_item *e = &p->items[x];
            int crosses = 0;
            if (e->kind != GCPI_FORWARD_ITEM || e->producer < 0 || p->tasks[e->producer].unit != unit ||
                p->items[e->root].kind != GCPI_FORWARD_ITEM)
                continue;
            for (int f = e->producer + 1; f < p->forward && !crosses; f++)
                for (int o = 0; o < p->tasks[f].count; o++)
                    crosses |= p->tasks[f].unit != unit && p->operands[p->tasks[f].operands + o].item == x &&
                               p->operands[p->tasks[f].operands + o].mode == GCPI_READ;
            if (crosses) bytes += e->bytes;
        }
    }
    return bytes;
}

static void gcpi_policy_keep_all(gcpi_planner *q) { gcpi_choice_clear(q); gcpi_try(q); }
