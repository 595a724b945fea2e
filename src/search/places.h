/* GCP_POLICY_BUDGET: exact search of small graphs with addresses. A* (Hart, Nilsson, Raphael 1968) over (next task,
   pile of live buffers); what exact.h says from there on is the estimate, which is never too high. Ways on: the next
   task, a task again, a move. A value dies where it was last read or made, as in lists. What is found is the fastest
   list that has a layout, moves included; where nothing is left to try, there is none.

   A new buffer goes between two that lie one above the other. Where exactly is left open: a pile says in which order
   buffers lie, and how far apart any two are at least, for all that lay between them in their lives. So there is a
   layout as long as the floor and the ceiling are far enough apart. */
enum { GCPI_PILE_MOST = 20, GCPI_PLACES_THINGS = 64, GCPI_PLACES_UNITS = 60000 };

typedef enum gcpi_placing { GCPI_PLACED, GCPI_CANNOT_PLACE, GCPI_PLACING_UNDECIDED } gcpi_placing;

/* A buffer, in units. Those of groups come first; then those whose lives no choice changes, from task first to last. */
typedef struct gcpi_thing { size_t bytes; int size, highest, first, last; } gcpi_thing;

/* thing: from the floor up; apart[i][k]: from where i begins to where k does, at least; 0 is the floor, count + 1 the
   ceiling, in between are the things */
typedef struct gcpi_pile { int count, thing[GCPI_PILE_MOST], apart[GCPI_PILE_MOST + 2][GCPI_PILE_MOST + 2]; } gcpi_pile;

/* rank: cost and estimate, rounded so that equals are equal; pile: where in the pool; other: the next with the same
   task, set and order of things; dead: another is no dearer, and nowhere tighter */
typedef struct gcpi_node {
    double cost; int64_t rank;
    int parent, code, other, dead, next; unsigned set;
    size_t pile;
} gcpi_node;

typedef struct gcpi_places {
    const gcpi_exact *x;
    const gcpi_model *m;
    gcpi_thing *thing; int things, units;
    size_t unit;
    int *floor;                       /* per task, in units: its workspace */
    int *mover;                       /* of a buffer of fixed life, before a task: the task that moves it, or 0 */
    gcpi_node *node; int *heap, *slot, nodes, most, heaped, slots;
    uint16_t *pool; size_t pooled, pool_size;           /* piles */
    int full;                         /* a node was left out */
    int timed; double below;          /* seconds count, and must be below; else any order will do */
    double haste;                     /* what a task further is worth, in seconds of keep-all */
    /* the step from a node: the task; what lives while it runs, and after it; things to be placed */
    int from, task, code, fresh[GCPI_PILE_MOST], fresh_count;
    unsigned all, after;
} gcpi_places;

/* Piles. */

static int gcpi_pile_size(const gcpi_places *p, const gcpi_pile *pile, int i)
{
    return i ? p->thing[pile->thing[i - 1]].size : 0;
}

static int gcpi_pile_find(const gcpi_pile *pile, int thing)          /* 0: it is not there */
{
    for (int i = 0; i < pile->count; i++) if (pile->thing[i] == thing) return i + 1;
    return 0;
}

/* Whether there is room for the thing above the one at `below`. */
static int gcpi_pile_fits(const gcpi_places *p, const gcpi_pile *pile, int below, int thing)
{
    const int begin = below ? pile->apart[0][below] + gcpi_pile_size(p, pile, below) : 0, above = below + 1,
              end = pile->count + 1, size = p->thing[thing].size;
    return begin <= p->thing[thing].highest && begin + size + (above < end ? pile->apart[above][end] : 0) <= p->units;
}

/* The thing goes above the one at `below`, where it fits. */
static void gcpi_pile_put(const gcpi_places *p, gcpi_pile *pile, int below, int thing)
{
    const int at = below + 1, end = pile->count + 2;
    for (int i = end - 1; i >= 0; i--)
        for (int k = end - 1; k > i; k--) pile->apart[i + (i >= at)][k + (k >= at)] = pile->apart[i][k];
    for (int i = pile->count; i > below; i--) pile->thing[i] = pile->thing[i - 1];
    pile->thing[below] = thing;
    pile->count++;
    for (int i = 0; i < at; i++)
        pile->apart[i][at] = (i < below ? pile->apart[i][below] : 0) + gcpi_pile_size(p, pile, below);
    for (int k = at + 1; k <= end; k++)
        pile->apart[at][k] = p->thing[thing].size + (k > at + 1 ? pile->apart[at + 1][k] : 0);
    pile->apart[at][end] = GCPI_MAX(pile->apart[at][end], p->units - p->thing[thing].highest);
    for (int i = 0; i < at; i++)
        for (int k = at + 1; k <= end; k++)
            pile->apart[i][k] = GCPI_MAX(pile->apart[i][k], pile->apart[i][at] + pile->apart[at][k]);
}

/* All things lie above the task's workspace. 0: there is no room. */
static int gcpi_pile_raise(const gcpi_places *p, gcpi_pile *pile, int floor)
{
    const int end = pile->count + 1;
    for (int i = 1; i < end; i++) {
        if (!gcpi_pile_size(p, pile, i)) continue;
        pile->apart[0][i] = GCPI_MAX(pile->apart[0][i], floor);
        for (int k = i + 1; k <= end; k++)
            pile->apart[0][k] = GCPI_MAX(pile->apart[0][k], pile->apart[0][i] + pile->apart[i][k]);
    }
    return pile->apart[0][end] <= p->units;
}

static void gcpi_pile_take(gcpi_pile *pile, int at)
{
    const int end = pile->count + 1;
    for (int i = 0; i < end; i++)
        for (int k = i + 1; k < end; k++) pile->apart[i][k] = pile->apart[i + (i >= at)][k + (k >= at)];
    for (int i = at; i < pile->count; i++) pile->thing[i - 1] = pile->thing[i];
    pile->count--;
}

/* In the pool: how many things, these, then how far apart. Returns how many numbers. */
static size_t gcpi_pile_numbers(int count) { return 1 + (size_t)count + (size_t)(count + 2) * (size_t)(count + 1) / 2; }
static void gcpi_pile_write(const gcpi_pile *pile, uint16_t *to)
{
    *to++ = (uint16_t)pile->count;
    for (int i = 0; i < pile->count; i++) *to++ = (uint16_t)pile->thing[i];
    for (int i = 0; i < pile->count + 2; i++)
        for (int k = i + 1; k < pile->count + 2; k++) *to++ = (uint16_t)pile->apart[i][k];
}
static void gcpi_pile_read(gcpi_pile *pile, const uint16_t *from)
{
    pile->count = *from++;
    for (int i = 0; i < pile->count; i++) pile->thing[i] = *from++;
    for (int i = 0; i < pile->count + 2; i++)
        for (int k = i + 1; k < pile->count + 2; k++) pile->apart[i][k] = *from++;
}

/* Of two piles in the same order: bit 0: a is nowhere tighter than b; bit 1: b nowhere tighter than a. */
static int gcpi_pile_compare(const uint16_t *a, const uint16_t *b)
{
    int result = 3;
    for (size_t i = 1 + a[0], n = gcpi_pile_numbers(a[0]); i < n && result; i++)
        result &= a[i] < b[i] ? 1 : a[i] > b[i] ? 2 : 3;
    return result;
}

/* The nodes: a table by task, set and order; a heap by rank. */

/* Of equals the one nearer to the end comes first, then the newer. */
static int gcpi_node_before(const gcpi_places *p, int a, int b)
{
    const gcpi_node *x = &p->node[a], *y = &p->node[b];
    if (x->rank != y->rank) return x->rank < y->rank;
    return x->next != y->next ? x->next > y->next : a > b;
}

static void gcpi_places_sift(gcpi_places *p, int i)
{
    const int n = p->heap[i];
    for (; i > 0 && gcpi_node_before(p, n, p->heap[(i - 1) / 2]); i = (i - 1) / 2) p->heap[i] = p->heap[(i - 1) / 2];
    for (int child; (child = 2 * i + 1) < p->heaped; i = child) {
        if (child + 1 < p->heaped && gcpi_node_before(p, p->heap[child + 1], p->heap[child])) child++;
        if (!gcpi_node_before(p, p->heap[child], n)) break;
        p->heap[i] = p->heap[child];
    }
    p->heap[i] = n;
}

static int gcpi_places_pop(gcpi_places *p)
{
    const int n = p->heap[0];
    p->heap[0] = p->heap[--p->heaped];
    if (p->heaped) gcpi_places_sift(p, 0);
    return n;
}

/* The first node of the same task, set and order of things as the pile; or where it goes. */
static int *gcpi_places_slot(const gcpi_places *p, const uint16_t *pile, int next, unsigned set)
{
    uint64_t hash = (uint64_t)next << 32 | set;
    for (int i = 0; i <= pile[0]; i++) { hash = (hash ^ pile[i]) * 0x9E3779B97F4A7C15u; hash ^= hash >> 29; }
    for (int k = (int)(hash % (uint64_t)p->slots);; k = k + 1 < p->slots ? k + 1 : 0) {
        const int n = p->slot[k] - 1;
        if (n < 0 || (p->node[n].next == next && p->node[n].set == set &&
                      !memcmp(p->pool + p->node[n].pile, pile, (size_t)(pile[0] + 1) * sizeof *pile)))
            return &p->slot[k];
    }
}

/* Where seconds do not count, depth first, and of these what has the most room. */
static int64_t gcpi_places_rank(const gcpi_places *p, const gcpi_pile *pile, int next, double seconds)
{
    if (p->timed) return p->m->seconds > 0 ? (int64_t)((seconds / p->m->seconds - next * p->haste) * 1e9 + 0.5) : 0;
    return pile->apart[0][pile->count + 1] - (int64_t)next * GCPI_PLACES_UNITS;
}

/* A pile is reached, with these values live. */
static void gcpi_places_reach(gcpi_places *p, const gcpi_pile *pile, int next, unsigned set, double seconds)
{
    const double rest = p->x->cost[gcpi_exact_state(p->x, next, set)], cost = p->timed ? seconds : 0;
    const size_t numbers = gcpi_pile_numbers(pile->count);
    if (!(cost + rest < p->below) || p->full) return;
    if (p->nodes == p->most || p->pooled + numbers > p->pool_size) { p->full = 1; return; }
    uint16_t *written = p->pool + p->pooled;
    gcpi_pile_write(pile, written);
    int *slot = gcpi_places_slot(p, written, next, set);
    for (int n = *slot - 1; n >= 0; n = p->node[n].other) {
        const int compared = p->node[n].dead ? 0 : gcpi_pile_compare(p->pool + p->node[n].pile, written);
        if (compared & 1 && p->node[n].cost <= cost) return;
        p->node[n].dead |= compared >> 1 && p->node[n].cost >= cost;
    }
    gcpi_node *x = &p->node[p->nodes];
    x->cost = cost; x->next = next; x->set = set; x->parent = p->from; x->code = p->code; x->dead = 0;
    x->rank = gcpi_places_rank(p, pile, next, cost + rest);
    x->pile = p->pooled;
    p->pooled += numbers;
    x->other = *slot - 1;
    *slot = p->nodes + 1;
    p->heap[p->heaped] = p->nodes++;
    gcpi_places_sift(p, p->heaped++);
}

/* The steps. */

/* The task has run: what is dead is taken out. */
static void gcpi_places_after(gcpi_places *p, const gcpi_pile *pile)
{
    const gcpi_node *from = &p->node[p->from];
    const int next = from->next + (p->code >= 0);
    gcpi_pile left = *pile;
    for (int i = left.count; i > 0; i--) {
        const int thing = left.thing[i - 1];
        int lives = thing >= p->m->groups && p->thing[thing].last >= next;
        for (int v = 0; v < p->m->values; v++) lives |= p->after >> v & 1 && p->m->group[v] == thing;
        if (!lives) gcpi_pile_take(&left, i);
    }
    gcpi_places_reach(p, &left, next, p->after, from->cost + p->m->p->tasks[p->task].seconds);
}

/* Places the k-th new thing, and those after it, in all ways. */
static void gcpi_places_put(gcpi_places *p, const gcpi_pile *pile, int k)
{
    gcpi_pile more;
    if (pile->count == GCPI_PILE_MOST) p->full = 1;
    for (int below = 0; below <= pile->count && !p->full; below++) {
        if (!gcpi_pile_fits(p, pile, below, p->fresh[k])) continue;
        more = *pile;
        gcpi_pile_put(p, &more, below, p->fresh[k]);
        if (k + 1 < p->fresh_count) gcpi_places_put(p, &more, k + 1);
        else if (gcpi_pile_raise(p, &more, p->floor[p->task])) gcpi_places_after(p, &more);
    }
}

/* The input that the task writes on: the first that dies, as in lives.h. -1: none. */
static int gcpi_places_under(const gcpi_places *p, unsigned before)
{
    const gcpi_model *m = p->m;
    const int over = m->over[p->task];
    if (over < 0 || before & p->x->mates[over]) return -1;
    for (int side = 0; side < 2; side++) {
        const int under = m->under[2 * p->task + side];
        if (under >= 0 && p->all >> under & 1 && !(p->after & p->x->mates[under])) return under;
    }
    return -1;
}

/* The step that leaves p->after live. */
static void gcpi_places_step(gcpi_places *p, gcpi_pile pile)
{
    const gcpi_model *m = p->m;
    const gcpi_node *from = &p->node[p->from];
    const int under = gcpi_places_under(p, from->set);
    size_t bytes = p->x->bytes[p->all] + gcpi_exact_beside(p->x, from->next, p->task);
    if (under >= 0) bytes -= m->bytes[m->group[m->over[p->task]]];
    if (bytes > p->x->limit) return;
    p->fresh_count = 0;
    for (int v = 0; v < m->values; v++) {
        const int group = m->group[v];
        int known = gcpi_pile_find(&pile, group) || !m->bytes[group];
        for (int i = 0; i < p->fresh_count; i++) known |= p->fresh[i] == group;
        if (!(p->x->writes[p->task] >> v & 1) || known) continue;
        if (under < 0 || v != m->over[p->task]) p->fresh[p->fresh_count++] = group;
        else pile.thing[gcpi_pile_find(&pile, m->group[under]) - 1] = group;
    }
    for (int i = m->groups; i < p->things && p->code >= 0; i++)
        if (p->thing[i].first == p->task) {
            if (p->fresh_count == GCPI_PILE_MOST) { p->full = 1; return; }
            p->fresh[p->fresh_count++] = i;
        }
    if (p->fresh_count) gcpi_places_put(p, &pile, 0);
    else if (gcpi_pile_raise(p, &pile, p->floor[p->task])) gcpi_places_after(p, &pile);
}

/* Runs task, with each choice of what dies behind it. A run again makes nothing that is there. */
static void gcpi_places_run(gcpi_places *p, const gcpi_pile *pile, int task)
{
    const gcpi_exact *x = p->x;
    const unsigned set = p->node[p->from].set, touched = x->reads[task] | x->writes[task];
    const int next = p->node[p->from].next, again = task != next;
    if (!gcpi_exact_may(x, next, set, task) || (again && x->writes[task] & set)) return;
    p->task = task; p->code = again ? ~task : task;
    p->all = set | x->writes[task];
    for (unsigned dead = touched;; dead = (dead - 1) & touched) {
        p->after = p->all & ~dead;
        if (!(p->after & ~x->useful[next + !again]) && !(again && !(p->after & x->writes[task])))
            gcpi_places_step(p, *pile);
        if (!dead) return;
    }
}

/* The task that moves a thing before `next`; 0: none can. */
static int gcpi_places_mover(const gcpi_places *p, int thing)
{
    const gcpi_model *m = p->m;
    const gcpi_node *from = &p->node[p->from];
    int value = -1;
    if (thing >= m->groups) return p->mover[(thing - m->groups) * (m->p->task_count + 1) + from->next];
    for (int v = 0; v < m->values; v++) if (from->set >> v & 1 && m->group[v] == thing) value = v;
    return value >= 0 && gcpi_alone(m->p, m->item[value]) ? m->p->items[m->item[value]].move : 0;
}

static void gcpi_places_moves(gcpi_places *p, const gcpi_pile *pile)
{
    gcpi_pile moved;
    if (pile->count == GCPI_PILE_MOST) p->full = 1;
    for (int i = 1; i <= pile->count && !p->full; i++) {
        const int thing = pile->thing[i - 1];
        if ((p->code = gcpi_places_mover(p, thing)) == 0) continue;
        for (int below = 0; below <= pile->count; below++) {
            if (!gcpi_pile_fits(p, pile, below, thing)) continue;
            moved = *pile;
            gcpi_pile_put(p, &moved, below, thing);
            gcpi_pile_take(&moved, i + (i > below));
            gcpi_places_reach(p, &moved, p->node[p->from].next, p->node[p->from].set,
                              p->node[p->from].cost + p->m->p->tasks[p->code].seconds);
        }
    }
}

static void gcpi_places_order(const gcpi_places *p, int node, gcpi_order *out)
{
    int count = out->capacity;
    for (; p->node[node].parent >= 0 && count > 0; node = p->node[node].parent) out->at[--count] = p->node[node].code;
    out->count = out->capacity - count;
    memmove(out->at, out->at + count, (size_t)out->count * sizeof *out->at);
    gcpi_simulate(p->m, out, NULL);
    out->valid &= count > 0;
}

/* An order with a layout, within the limit for which x has costs: the fastest, if it is below `below` (timed), or any.
   *least: no order takes fewer seconds; in haste only where none is below is that known. */
static gcpi_placing gcpi_places_search(gcpi_places *p, int timed, double below, gcpi_order *out, double *least)
{
    const gcpi_exact *x = p->x;
    gcpi_pile pile;
    p->nodes = p->heaped = p->full = 0; p->pooled = 0;
    p->from = -1; p->code = 0; p->timed = timed; p->below = below;
    memset(p->slot, 0, (size_t)p->slots * sizeof *p->slot);
    pile.count = 0; pile.apart[0][1] = 0;
    gcpi_places_reach(p, &pile, 0, 0, 0);
    while (p->heaped && !p->full) {
        const int n = p->from = gcpi_places_pop(p), next = p->node[n].next;
        if (p->node[n].dead) continue;
        if (p->haste == 0) *least = p->node[n].cost + x->cost[gcpi_exact_state(x, next, p->node[n].set)];
        if (next == p->m->p->task_count) { gcpi_places_order(p, n, out); return GCPI_PLACED; }
        gcpi_pile_read(&pile, p->pool + p->node[n].pile);
        gcpi_places_run(p, &pile, next);
        for (int f = 0; f < p->m->p->forward && f < next; f++) gcpi_places_run(p, &pile, f);
        if (next > 0) gcpi_places_moves(p, &pile);
    }
    if (!p->full) *least = below;
    return p->full ? GCPI_PLACING_UNDECIDED : GCPI_CANNOT_PLACE;
}

/* Setting up. */

/* Buffers whose lives no choice changes, and what moves them, from the lifetimes of keep-all. 0: not enough scratch, or
   too many. */
static int gcpi_places_fixed(gcpi_places *p, gcp_arena *a)
{
    const gcpi_problem *problem = p->m->p;
    gcpi_list list;
    gcpi_lives l;
    size_t *live;
    if (!gcpi_keep_all_list(problem, &list, a) || !gcpi_lives_make(problem, &list, &l, &live, a)) return 0;
    for (int b = 0; b < l.buffer_count; b++) {
        const gcpi_buffer *buffer = &l.buffers[b];
        if (buffer->joined >= 0 || problem->items[buffer->root].kind == GCPI_FORWARD_ITEM || !buffer->bytes) continue;
        if (p->things == GCPI_PLACES_THINGS) return 0;
        gcpi_thing *thing = &p->thing[p->things];
        int *mover = p->mover + (p->things++ - p->m->groups) * (problem->task_count + 1);
        thing->bytes = buffer->bytes; thing->first = buffer->first; thing->last = buffer->last;
        for (int next = buffer->first + 1; next <= buffer->last; next++) {
            int values = 0;
            for (int v = 0; v < l.value_count; v++) {
                const gcpi_value *value = &l.values[v];
                if (value->first >= next || value->last < next || gcpi_buffer_of(&l, value->buffer) != b) continue;
                mover[next] = gcpi_alone(problem, value->item) && !values++ ? problem->items[value->item].move : 0;
            }
        }
    }
    return 1;
}

/* The unit, which divides all sizes, and these in it. 0: there are too many units. */
static int gcpi_places_sizes(gcpi_places *p, size_t slab)
{
    const gcpi_model *m = p->m;
    const size_t align = m->p->target.align;
    for (int i = 0; i < p->things; i++) p->unit = gcpi_common_divisor(p->unit, gcpi_round(p->thing[i].bytes, align));
    for (int t = 0; t < m->p->task_count; t++) p->unit = gcpi_common_divisor(p->unit, m->workspace[t]);
    if (!p->unit || gcpi_round(slab, align) / p->unit >= GCPI_PLACES_UNITS) return 0;
    p->units = (int)(gcpi_round(slab, align) / p->unit);
    for (int t = 0; t < m->p->task_count; t++) p->floor[t] = (int)GCPI_MIN(m->workspace[t] / p->unit, (size_t)p->units);
    for (int i = 0; i < p->things; i++) {
        gcpi_thing *thing = &p->thing[i];
        if (thing->bytes > slab) return 0;
        thing->size = (int)(gcpi_round(thing->bytes, align) / p->unit);
        thing->highest = (int)((slab - thing->bytes) / p->unit);
    }
    return 1;
}

/* A pile takes this many numbers in the pool, on average. */
enum { GCPI_PILE_NUMBERS = 40 };
static int gcpi_places_nodes(gcpi_places *p, int most, gcp_arena *a)
{
    p->most = most;
    p->slots = 2 * most;
    p->pool_size = GCPI_PILE_NUMBERS * (size_t)most;
    p->node = GCPI_SCRATCH(a, gcpi_node, most);
    p->pool = GCPI_SCRATCH(a, uint16_t, (ptrdiff_t)p->pool_size);
    p->heap = GCPI_SCRATCH(a, int, most);
    p->slot = GCPI_SCRATCH(a, int, p->slots);
    return p->node && p->pool && p->heap && p->slot;
}

/* An upper bound of the scratch that all of this takes, beside the lives of keep-all. */
static size_t gcpi_places_bytes(size_t tasks, size_t nodes)
{
    return GCPI_PLACES_THINGS * (sizeof(gcpi_thing) + (tasks + 1) * sizeof(int)) + tasks * sizeof(int) +
           nodes * (sizeof(gcpi_node) + GCPI_PILE_NUMBERS * sizeof(uint16_t) + 3 * sizeof(int));
}

/* Whether a live group always takes all of its bytes: no value is a part of it; and whether gradients' bytes are what
   they are in keep-all. */
static int gcpi_values_whole(const gcpi_model *m)
{
    if (m->mixed) return 0;
    for (int v = 0; v < m->values; v++) {
        const gcpi_item *item = &m->p->items[m->item[v]];
        if (item->offset || item->bytes != m->p->items[item->root].bytes) return 0;
    }
    return 1;
}

/* For slabs of `slab` bytes behind the step's numbers; `most` nodes. 0: not for this graph, or not enough scratch. */
static int gcpi_places_make(gcpi_places *p, const gcpi_exact *x, size_t slab, int most, gcp_arena *a)
{
    const gcpi_model *m = x->m;
    const gcpi_problem *problem = m->p;
    memset(p, 0, sizeof *p);
    p->x = x; p->m = m; p->things = m->groups;
    p->thing = GCPI_SCRATCH(a, gcpi_thing, GCPI_PLACES_THINGS);
    p->floor = GCPI_SCRATCH(a, int, problem->task_count);
    p->mover = GCPI_SCRATCH(a, int, GCPI_PLACES_THINGS * (problem->task_count + 1));
    if (!p->thing || !p->floor || !p->mover || !gcpi_values_whole(m)) return 0;
    for (int v = 0; v < m->values; v++)
        p->thing[m->group[v]].bytes = problem->items[problem->items[m->item[v]].root].bytes;
    return gcpi_places_fixed(p, a) && gcpi_places_sizes(p, slab) && gcpi_places_nodes(p, most, a);
}
