/* Packing: an exact search for places at a goal or below.

   Rectangles of given sections of time move up and down only. Each rectangle has a lowest place so far, each section a
   height so far: below it nothing more can lie. Two rules raise them until nothing changes. A rectangle lies at the
   height of each of its sections or above; the height of a section is the lowest place of those that are still to come
   there. A section fails where its height and the bytes still to come exceed the limit.

   A valley is a run of sections of one height between higher ones. At its bottom, at each of its sections, lies one of
   the rectangles whose lowest place that is, or nothing: so the search branches. It takes the section that has failed
   most often for the number of its branches (Boussemart et al. 2004). What is placed in a valley rests on something,
   which makes the places canonical (Moffitt 2023, MiniMalloc), but in no order of time or address: each valley is on
   its own. So a failure can be blamed on an interval of sections, and forks that touch none of them are not tried
   again ("conflict-directed backjumping", Prosser 1993). Restarts with other orders and noise follow. */

enum { GCPI_PACKING_ORDERS = 4, GCPI_PACKING_NOISES = 4,
       /* larger problems are undecided; so many members take as long to look at as one of work */
       GCPI_PACKING_COUNT = 2048, GCPI_PACKING_SECTIONS = 4096, GCPI_PACKING_MEMBERS = 1 << 15,
       GCPI_PACKING_LOOKS = 3 };
typedef enum gcpi_packed { GCPI_PACKS, GCPI_CANNOT_PACK, GCPI_PACKING_UNDECIDED } gcpi_packed;

/* What was before a change. what: a rectangle's place (with the section that set it), a section's height (with the
   interval to blame), a section's bytes to come, a rectangle's being placed. */
typedef enum gcpi_change_of { GCPI_OF_PLACE, GCPI_OF_HEIGHT, GCPI_OF_REST, GCPI_OF_DONE } gcpi_change_of;
typedef struct gcpi_change { uint16_t what, i, from, to; size_t before; } gcpi_change;

/* A fork: what lies at the bottom of a section: one of its candidates, or (the last branch) nothing. */
typedef struct gcpi_fork {
    int section, first, count, next;      /* candidates[first + next] comes next */
    int touches_from, touches_to;         /* sections of the branch that was taken */
    int rests_from, rests_to;             /* sections because of which there are no other branches */
    int from, to;                         /* blamed by the branches that failed */
    size_t height;                        /* of the section, where nothing lies there */
    ptrdiff_t changes;                    /* before it */
} gcpi_fork;

typedef struct gcpi_packing {
    gcpi_rectangle *all; int count, sections;
    size_t goal, limit;                   /* limit: the goal, aligned */
    size_t *bytes; int *set_by, *rank;    /* per rectangle: aligned; the section that set its place; its order */
    int *members, *begin;                 /* of section s: members[begin[s]] up to members[begin[s + 1]] */
    size_t *height, *rest;                /* per section: so far; bytes to come */
    int *from, *to;                       /* per section: the interval that its height rests on */
    int *candidates_in, *stale;           /* per section: how many lie at its height; whether that must be counted */
    double *failures;                     /* per section */
    int *queue, *queued, head, queued_count;
    gcpi_change *changes; ptrdiff_t change_count, change_capacity;
    gcpi_fork *forks; int depth, depth_capacity;
    int *candidates, candidate_capacity, candidate_count;
    int blamed_from, blamed_to;           /* of the last failure */
    int full;                             /* a capacity was reached: undecided */
    uint64_t random;
    double work;                          /* members of sections that may still be looked at */
} gcpi_packing;

/* ---- heights and places ---- */

static int gcpi_packing_change(gcpi_packing *k, gcpi_change_of what, int i, int from, int to, size_t before)
{
    if (k->change_count >= k->change_capacity) { k->full = 1; return 0; }
    gcpi_change *c = &k->changes[k->change_count++];
    c->what = (uint16_t)what; c->i = (uint16_t)i; c->from = (uint16_t)from; c->to = (uint16_t)to; c->before = before;
    return 1;
}
static void gcpi_packing_count_again(gcpi_packing *k, int first, int last)
{
    for (int s = first; s <= last; s++) k->stale[s] = 1;
}
static void gcpi_packing_undo(gcpi_packing *k, ptrdiff_t to)
{
    while (k->change_count > to) {
        const gcpi_change *c = &k->changes[--k->change_count];
        gcpi_rectangle *x = &k->all[c->i];
        switch ((gcpi_change_of)c->what) {
        case GCPI_OF_PLACE: x->at = c->before; k->set_by[c->i] = c->from; break;
        case GCPI_OF_DONE: x->done = 0; break;
        case GCPI_OF_REST: k->rest[c->i] = c->before; break;
        default: k->height[c->i] = c->before; k->from[c->i] = c->from; k->to[c->i] = c->to; break;
        }
        if (c->what == GCPI_OF_PLACE || c->what == GCPI_OF_DONE) gcpi_packing_count_again(k, x->first, x->last);
        else k->stale[c->i] = 1;
    }
}

static void gcpi_packing_look(gcpi_packing *k, int section)
{
    if (k->queued[section]) return;
    k->queued[section] = 1;
    k->queue[(k->head + k->queued_count++) % k->sections] = section;
}
static int gcpi_packing_looks(gcpi_packing *k)
{
    const int section = k->queue[k->head];
    k->head = (k->head + 1) % k->sections;
    k->queued_count--;
    k->queued[section] = 0;
    return section;
}
/* Section s cannot hold what is to come. Always 0. */
static int gcpi_packing_fails(gcpi_packing *k, int s)
{
    k->failures[s]++;
    k->blamed_from = k->from[s]; k->blamed_to = k->to[s];
    while (k->queued_count) gcpi_packing_looks(k);
    return 0;
}

/* Raises a section, because of the interval and of what it rested on before, and the rectangles to come there. 0:
   something cannot lie there any more. */
static int gcpi_packing_raise(gcpi_packing *k, int s, size_t height, int from, int to)
{
    if (!gcpi_packing_change(k, GCPI_OF_HEIGHT, s, k->from[s], k->to[s], k->height[s])) return gcpi_packing_fails(k, s);
    k->height[s] = height;
    k->from[s] = GCPI_MIN(k->from[s], from); k->to[s] = GCPI_MAX(k->to[s], to);
    k->stale[s] = 1;
    if (k->rest[s] && (height > k->limit || k->rest[s] > k->limit - height)) return gcpi_packing_fails(k, s);
    k->work -= k->begin[s + 1] - k->begin[s];
    for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
        gcpi_rectangle *x = &k->all[k->members[m]];
        if (x->done || x->at >= height) continue;
        if (!gcpi_packing_change(k, GCPI_OF_PLACE, k->members[m], k->set_by[k->members[m]], 0, x->at) ||
            height > k->goal || x->bytes > k->goal - height)
            return gcpi_packing_fails(k, s);
        x->at = height; k->set_by[k->members[m]] = s;
        for (int t = x->first; t <= x->last; t++) {
            k->stale[t] = 1;
            if (k->height[t] < height) gcpi_packing_look(k, t);
        }
    }
    return 1;
}
/* Raises sections to the lowest place of those to come, until nothing changes. */
static int gcpi_packing_settle(gcpi_packing *k)
{
    while (k->queued_count) {
        const int s = gcpi_packing_looks(k);
        size_t lowest = SIZE_MAX;
        int from = s, to = s;
        k->work -= 2 * (k->begin[s + 1] - k->begin[s]);
        for (int m = k->begin[s]; k->rest[s] && m < k->begin[s + 1]; m++)
            if (!k->all[k->members[m]].done) lowest = GCPI_MIN(lowest, k->all[k->members[m]].at);
        if (!k->rest[s] || lowest <= k->height[s]) continue;
        for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
            const int by = k->set_by[k->members[m]];
            if (k->all[k->members[m]].done) continue;
            from = GCPI_MIN(from, k->from[by]); to = GCPI_MAX(to, k->to[by]);
        }
        if (!gcpi_packing_raise(k, s, lowest, from, to)) return 0;
    }
    return 1;
}

/* ---- forks ---- */

/* Places x at its lowest place, the height of section s. */
static int gcpi_packing_put(gcpi_packing *k, int b, int s)
{
    gcpi_rectangle *x = &k->all[b];
    const size_t top = x->at + k->bytes[b];
    const int from = k->from[s], to = k->to[s];
    if (!gcpi_packing_change(k, GCPI_OF_DONE, b, 0, 0, 0)) return gcpi_packing_fails(k, s);
    x->done = 1;
    for (int t = x->first; t <= x->last; t++) {
        if (!gcpi_packing_change(k, GCPI_OF_REST, t, 0, 0, k->rest[t])) return gcpi_packing_fails(k, s);
        k->rest[t] -= k->bytes[b];
    }
    for (int t = x->first; t <= x->last; t++) if (!gcpi_packing_raise(k, t, top, from, to)) return 0;
    for (int t = x->first; t <= x->last; t++) gcpi_packing_look(k, t);
    return gcpi_packing_settle(k);
}

static int gcpi_packing_candidates(gcpi_packing *k, int s)
{
    if (!k->stale[s]) return k->candidates_in[s];
    k->stale[s] = 0;
    k->candidates_in[s] = 0;
    k->work -= k->begin[s + 1] - k->begin[s];
    for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
        const gcpi_rectangle *x = &k->all[k->members[m]];
        k->candidates_in[s] += !x->done && x->at == k->height[s];
    }
    return k->candidates_in[s];
}
/* The section to choose for: of all valleys, that with the most failures for a branch. -1: all is placed. */
static int gcpi_packing_section(gcpi_packing *k)
{
    int best = -1;
    double most = -1;
    k->work -= k->sections;
    for (int a = 0, z; a < k->sections; a = z + 1) {
        z = a;
        if (!k->rest[a]) continue;
        while (z + 1 < k->sections && k->rest[z + 1] && k->height[z + 1] == k->height[a]) z++;
        if ((a > 0 && k->rest[a - 1] && k->height[a - 1] < k->height[a]) ||
            (z + 1 < k->sections && k->rest[z + 1] && k->height[z + 1] < k->height[a]))
            continue;
        for (int s = a; s <= z; s++) {
            const int n = gcpi_packing_candidates(k, s);
            const double key = n > 1 ? (k->failures[s] + 1e-3) / n : HUGE_VAL;
            if (key > most) { most = key; best = s; }
        }
    }
    return best;
}
static void gcpi_packing_add(gcpi_packing *k, const gcpi_fork *c, int b)
{
    int i = c->first + c->count;
    for (; i > c->first && k->rank[k->candidates[i - 1]] > k->rank[b]; i--) k->candidates[i] = k->candidates[i - 1];
    k->candidates[i] = b;
}
/* If nothing lies at the bottom of the section, what lies over it rests on a neighbour of the valley, or on what lies
   beside it at the bottom. */
static void gcpi_packing_without(gcpi_packing *k, gcpi_fork *c, int first, int last)
{
    for (int t = first; t <= last; t++) {
        k->work -= k->begin[t + 1] - k->begin[t];
        for (int m = k->begin[t]; m < k->begin[t + 1]; m++) {
            const gcpi_rectangle *x = &k->all[k->members[m]];
            if (x->done || (x->first <= c->section && c->section <= x->last)) continue;
            c->height = GCPI_MIN(c->height, k->height[c->section] + k->bytes[k->members[m]]);
        }
    }
}
/* A new fork. 0: there is none left, or no room for it. */
static int gcpi_packing_fork(gcpi_packing *k)
{
    const int s = gcpi_packing_section(k);
    if (s >= 0 && (k->depth >= k->depth_capacity ||
                   k->candidate_count + k->begin[s + 1] - k->begin[s] > k->candidate_capacity))
        k->full = 1;
    if (s < 0 || k->full) return 0;
    gcpi_fork *c = &k->forks[k->depth++];
    int first = s, last = s;
    c->section = s; c->first = k->candidate_count; c->count = c->next = 0;
    c->from = k->sections; c->to = -1; c->height = SIZE_MAX; c->changes = k->change_count;
    c->rests_from = k->from[s]; c->rests_to = k->to[s];
    for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
        const int b = k->members[m], by = k->set_by[b];
        const gcpi_rectangle *x = &k->all[b];
        if (x->done) continue;
        if (x->at == k->height[s]) {
            gcpi_packing_add(k, c, b);
            c->count++;
            first = GCPI_MIN(first, x->first); last = GCPI_MAX(last, x->last);
            continue;
        }
        c->height = GCPI_MIN(c->height, x->at);
        c->rests_from = GCPI_MIN(c->rests_from, k->from[by]); c->rests_to = GCPI_MAX(c->rests_to, k->to[by]);
    }
    gcpi_packing_without(k, c, first, last);
    c->rests_from = GCPI_MIN(c->rests_from, first); c->rests_to = GCPI_MAX(c->rests_to, last);
    k->candidate_count += c->count;
    return 1;
}

/* The branch that was taken failed. 1: others may not, as it is to blame. */
static int gcpi_packing_blames(gcpi_packing *k, gcpi_fork *c)
{
    gcpi_packing_undo(k, c->changes);
    if (k->blamed_to < c->touches_from || k->blamed_from > c->touches_to) return 0;
    c->from = GCPI_MIN(c->from, k->blamed_from); c->to = GCPI_MAX(c->to, k->blamed_to);
    return 1;
}
/* Takes the next branch that does not fail at once. 0: there is none. */
static int gcpi_packing_branch(gcpi_packing *k, gcpi_fork *c)
{
    while (c->next <= c->count && !k->full) {
        const int b = c->next < c->count ? k->candidates[c->first + c->next] : -1;
        c->next++;
        c->touches_from = b < 0 ? c->section : k->all[b].first;
        c->touches_to = b < 0 ? c->section : k->all[b].last;
        int goes_on;
        if (b >= 0) goes_on = gcpi_packing_put(k, b, c->section);
        else {
            goes_on = gcpi_packing_raise(k, c->section, c->height, c->rests_from, c->rests_to);
            if (goes_on) { gcpi_packing_look(k, c->section); goes_on = gcpi_packing_settle(k); }
        }
        if (goes_on) return 1;
        if (!gcpi_packing_blames(k, c)) return 0;
    }
    k->blamed_from = GCPI_MIN(c->from, c->rests_from); k->blamed_to = GCPI_MAX(c->to, c->rests_to);
    return 0;
}
/* Goes through forks, so many at most. */
static gcpi_packed gcpi_packing_search(gcpi_packing *k, int most)
{
    for (int n = 0; n < most && k->work > 0; n++) {
        if (!gcpi_packing_fork(k)) return k->full ? GCPI_PACKING_UNDECIDED : GCPI_PACKS;
        int goes_on = gcpi_packing_branch(k, &k->forks[k->depth - 1]);
        while (!goes_on && !k->full) {
            k->candidate_count = k->forks[--k->depth].first;
            if (!k->depth) return GCPI_CANNOT_PACK;
            gcpi_fork *c = &k->forks[k->depth - 1];
            goes_on = gcpi_packing_blames(k, c) && gcpi_packing_branch(k, c);
        }
    }
    return GCPI_PACKING_UNDECIDED;
}

/* ---- from the start ---- */

/* Enough for all of the instances of tests; a search that needs more is undecided. */
static ptrdiff_t gcpi_packing_changes(ptrdiff_t count, ptrdiff_t sections, ptrdiff_t members)
{
    return 8 * (count + sections) + 4 * members;
}
/* What the arrays take, for so many rectangles and sections at most. Few rectangles live for long: sixteen sections are
   counted for each. */
static size_t gcpi_packing_bytes(size_t rectangles, size_t instructions)
{
    const size_t count = GCPI_MIN(rectangles, (size_t)GCPI_PACKING_COUNT),
                 sections = GCPI_MIN(instructions, (size_t)GCPI_PACKING_SECTIONS),
                 members = GCPI_MIN(count * GCPI_MIN(sections, 16), (size_t)GCPI_PACKING_MEMBERS);
    return count * (sizeof(size_t) + 10 * sizeof(int) + 2 * sizeof(gcpi_fork)) +
           sections * (2 * sizeof(size_t) + 7 * sizeof(int) + sizeof(double)) + members * sizeof(int) +
           (size_t)gcpi_packing_changes((ptrdiff_t)count, (ptrdiff_t)sections, (ptrdiff_t)members) *
               sizeof(gcpi_change) + 17 * 16;
}

static int gcpi_packing_arrays(gcpi_packing *k, gcpi_skyline *s, gcp_arena *a)
{
    double members = 0;
    memset(k, 0, sizeof *k);
    k->all = s->all; k->count = s->count; k->sections = s->sections; k->random = 88172645463325252ull;
    for (int b = 0; b < s->count; b++) members += s->all[b].last - s->all[b].first + 1;
    if (!s->count || s->count > GCPI_PACKING_COUNT || s->sections > GCPI_PACKING_SECTIONS ||
        members > (double)GCPI_PACKING_MEMBERS)
        return 0;
    const ptrdiff_t count = s->count, sections = s->sections;
    k->depth_capacity = 2 * s->count;
    k->candidate_capacity = 8 * s->count;
    k->change_capacity = gcpi_packing_changes(count, sections, (ptrdiff_t)members);
    k->bytes = GCPI_SCRATCH(a, size_t, count); k->set_by = GCPI_SCRATCH(a, int, count);
    k->rank = GCPI_SCRATCH(a, int, count);
    k->members = GCPI_SCRATCH(a, int, (ptrdiff_t)members); k->begin = GCPI_SCRATCH(a, int, sections + 2);
    k->height = GCPI_SCRATCH(a, size_t, sections); k->rest = GCPI_SCRATCH(a, size_t, sections);
    k->from = GCPI_SCRATCH(a, int, sections); k->to = GCPI_SCRATCH(a, int, sections);
    k->candidates_in = GCPI_SCRATCH(a, int, sections); k->stale = GCPI_SCRATCH(a, int, sections);
    k->failures = GCPI_SCRATCH(a, double, sections);
    k->queue = GCPI_SCRATCH(a, int, sections); k->queued = GCPI_SCRATCH(a, int, sections);
    k->changes = GCPI_SCRATCH(a, gcpi_change, k->change_capacity);
    k->forks = GCPI_SCRATCH(a, gcpi_fork, k->depth_capacity);
    k->candidates = GCPI_SCRATCH(a, int, k->candidate_capacity);
    return k->bytes && k->set_by && k->rank && k->members && k->begin && k->height && k->rest && k->from && k->to &&
           k->candidates_in && k->stale && k->failures && k->queue && k->queued && k->changes && k->forks &&
           k->candidates;
}
static void gcpi_packing_members(gcpi_packing *k, size_t align)
{
    memset(k->begin, 0, (size_t)(k->sections + 2) * sizeof *k->begin);
    memset(k->failures, 0, (size_t)k->sections * sizeof *k->failures);
    for (int b = 0; b < k->count; b++) {
        k->bytes[b] = gcpi_round(k->all[b].bytes, align);
        for (int s = k->all[b].first; s <= k->all[b].last; s++) k->begin[s + 2]++;
    }
    for (int s = 2; s <= k->sections; s++) k->begin[s + 1] += k->begin[s];
    for (int b = 0; b < k->count; b++)
        for (int s = k->all[b].first; s <= k->all[b].last; s++) k->members[k->begin[s + 1]++] = b;
}

/* Candidates come in this order: the longest life, the most crowded or the largest area first, with noise. */
static void gcpi_packing_order(gcpi_packing *k, int order, double noise)
{
    static const int by[GCPI_PACKING_ORDERS][2] = { { 0, 2 }, { 1, 2 }, { 1, 0 }, { 2, 0 } };
    double most[3] = { 1, 1, 1 };
    for (int pass = 0; pass < 2; pass++)
        for (int b = 0; b < k->count; b++) {
            gcpi_rectangle *x = &k->all[b];
            const double life = x->last - x->first + 1, keys[3] = { life, x->crowd, life * (double)x->bytes },
                         chance = pass ? gcpi_below(&k->random, 65536) / 65536.0 : 0;
            for (int i = 0; i < 3 && !pass; i++) most[i] = GCPI_MAX(most[i], keys[i]);
            x->key = keys[by[order][0]] / most[by[order][0]] * (1 + noise * chance) +
                     1e-9 * keys[by[order][1]] / most[by[order][1]];
        }
    for (int b = 0, i; b < k->count; b++) {                 /* rank as a list first: candidates is free now */
        for (i = b; i > 0 && k->all[k->candidates[i - 1]].key < k->all[b].key; i--)
            k->candidates[i] = k->candidates[i - 1];
        k->candidates[i] = b;
    }
    for (int i = 0; i < k->count; i++) k->rank[k->candidates[i]] = i;
}
/* Nothing is placed. 0: it cannot be, as sections fail at once. */
static int gcpi_packing_start(gcpi_packing *k, const gcpi_skyline *s)
{
    int goes_on = 1;
    k->change_count = 0; k->depth = k->candidate_count = k->full = 0;
    for (int b = 0; b < k->count; b++) { k->all[b].at = 0; k->all[b].done = 0; k->set_by[b] = k->all[b].first; }
    for (int t = 0; t < k->sections; t++) {
        k->height[t] = 0; k->rest[t] = s->load[t];
        k->from[t] = k->to[t] = t;
        k->queued[t] = 0; k->stale[t] = 1;
    }
    k->head = k->queued_count = 0;
    for (int t = 0; t < k->sections && goes_on; t++) goes_on = gcpi_packing_raise(k, t, s->ground[t], t, t);
    for (int t = 0; t < k->sections && goes_on; t++) gcpi_packing_look(k, t);
    return goes_on && gcpi_packing_settle(k);
}

/* Whether the rectangles of a skyline pack so that all end at the goal or below. If so, .at are their places. Takes
   *work down. */
static gcpi_packed gcpi_packing_exact(gcpi_skyline *s, size_t goal, double *work, gcp_arena *a)
{
    static const double noise[GCPI_PACKING_NOISES] = { 0, 1, 0.05, 0.3 };
    gcpi_packing k;
    gcpi_packed packed = GCPI_PACKING_UNDECIDED;
    const ptrdiff_t scratch = a->scratch;
    const int ready = gcpi_packing_arrays(&k, s, a);
    if (ready) gcpi_packing_members(&k, s->align);
    k.goal = goal; k.limit = gcpi_round(goal, s->align);
    k.work = (double)GCPI_PACKING_LOOKS * *work;
    for (int round = 0; ready && k.work > 0 && packed == GCPI_PACKING_UNDECIDED; round++) {
        const int turn = round / GCPI_PACKING_ORDERS,
                  most = (500 + k.count) << GCPI_MIN(turn / GCPI_PACKING_NOISES, 10);
        gcpi_packing_order(&k, round % GCPI_PACKING_ORDERS, noise[turn % GCPI_PACKING_NOISES]);
        packed = gcpi_packing_start(&k, s) ? gcpi_packing_search(&k, most) : GCPI_CANNOT_PACK;
    }
    if (ready) *work = k.work / (double)GCPI_PACKING_LOOKS;
    a->scratch = scratch;
    return packed;
}
