/* A value is one writing of an item. Values of one alias group whose lives meet share a buffer; where an op may work in
   place on a value that dies there, input and output become one buffer. A layout gives each buffer its offset. */

typedef struct gcpi_value { int item, buffer; int first, last; } gcpi_value;

typedef struct gcpi_buffer {
    size_t bytes, offset;
    int first, last, root, joined;    /* joined: the buffer this one became part of, or -1 */
    int pinned;                       /* holds what must stay: nobody works in place on it */
} gcpi_buffer;

typedef struct gcpi_lives {
    gcpi_value *values;   int value_count;
    gcpi_buffer *buffers; int buffer_count;
    int *operand_value;               /* per operand of each instruction, in list order */
    size_t peak; int peak_at;         /* most live bytes at once, and when; excludes the step's numbers */
    /* where no layout met the limit: a move that may help, and the instruction before which it goes; -1: none */
    int move, move_at;
} gcpi_lives;

static int gcpi_operand_total(const gcpi_problem *p, const gcpi_list *list)
{
    int total = 0;
    for (ptrdiff_t i = 0; i < list->count; i++) total += p->tasks[list->at[i].task].count;
    return total;
}

static int gcpi_buffer_of(const gcpi_lives *l, int buffer)
{
    while (l->buffers[buffer].joined >= 0) buffer = l->buffers[buffer].joined;
    return buffer;
}

static int gcpi_value_new(gcpi_lives *l, int item, int first, int *current)
{
    gcpi_value *v = &l->values[l->value_count];
    v->item = item; v->first = v->last = first; v->buffer = -1;
    return current[item] = l->value_count++;
}

static void gcpi_values_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, int *current)
{
    int end = (int)list->count - 1, n = 0;
    for (int i = 0; i < p->item_count; i++) {
        current[i] = -1;
        if (p->items[i].active && p->items[i].pinned == 2) gcpi_value_new(l, i, 0, current);
    }
    for (int i = 0; i <= end; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_operand *o = &p->operands[t->operands + k];
            int fresh = (o->mode == GCPI_WRITE || o->mode == GCPI_ALIAS) && p->items[o->item].pinned != 2;
            l->operand_value[n] = -1;
            if (p->items[p->items[o->item].root].kind == GCPI_STATE_ITEM) continue;
            if (fresh) gcpi_value_new(l, o->item, i, current);
            if (current[o->item] < 0) continue;
            l->operand_value[n] = current[o->item];
            l->values[current[o->item]].last = i;
        }
    }
    for (int v = 0; v < l->value_count; v++)
        if (p->items[l->values[v].item].pinned && current[l->values[v].item] == v) l->values[v].last = end;
}

/* Buffers. Values come by group, in order of their first instruction. Inputs are live from the start: views share their
   buffers. Values of an item that shares its bytes with no other overlap, in two buffers, only at a move. */
static void gcpi_buffers_make(const gcpi_problem *p, gcpi_lives *l, const int *order)
{
    for (int k = 0; k < l->value_count; k++) {
        gcpi_value *v = &l->values[order[k]];
        int root = p->items[v->item].root, open = l->buffer_count - 1;
        if (open < 0 || l->buffers[open].root != root || v->first > l->buffers[open].last || p->items[root].next < 0) {
            gcpi_buffer *b = &l->buffers[open = l->buffer_count++];
            b->bytes = p->items[root].bytes; b->offset = 0;
            b->first = v->first; b->last = v->last; b->root = root; b->joined = -1; b->pinned = 0;
        }
        l->buffers[open].pinned |= p->items[v->item].pinned;
        v->buffer = open;
        l->buffers[open].last = GCPI_MAX(l->buffers[open].last, v->last);
    }
}

static void gcpi_values_sort(const gcpi_problem *p, const gcpi_lives *l, int *order, int *count)
{
    /* by root; values are in order of time already */
    memset(count, 0, (size_t)(p->item_count + 1) * sizeof *count);
    for (int v = 0; v < l->value_count; v++) count[p->items[l->values[v].item].root + 1]++;
    for (int i = 1; i <= p->item_count; i++) count[i] += count[i - 1];
    for (int v = 0; v < l->value_count; v++) order[count[p->items[l->values[v].item].root]++] = v;
}

static int gcpi_whole(const gcpi_problem *p, int item)              /* fills its buffer, in dense rows */
{
    const gcpi_item *x = &p->items[item];
    return x->offset == 0 && x->bytes == p->items[x->root].bytes && gcpi_is_dense(p, item);
}

/* Output value z takes over the buffer of value x, which dies at instruction i. */
static int gcpi_take_over(const gcpi_problem *p, gcpi_lives *l, int x, int z, int i)
{
    if (x < 0 || z < 0 || l->values[z].first != i) return 0;
    int from = gcpi_buffer_of(l, l->values[x].buffer), to = gcpi_buffer_of(l, l->values[z].buffer);
    gcpi_buffer *b = &l->buffers[from], *e = &l->buffers[to];
    if (from == to || b->pinned || b->last != i || e->first != i || b->bytes != e->bytes) return 0;
    if (!gcpi_whole(p, l->values[x].item) || !gcpi_whole(p, l->values[z].item)) return 0;
    e->joined = from;
    b->last = e->last;
    b->pinned = e->pinned;
    return 1;
}

static void gcpi_in_place(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l)
{
    int n = 0;
    for (int i = 0; i < (int)list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        int done = t->over < 0;
        for (int k = 0; k < 2 && !done; k++)
            done = t->under[k] >= 0 &&
                   gcpi_take_over(p, l, l->operand_value[n + t->under[k]], l->operand_value[n + t->over], i);
        n += t->count;
    }
}

/* Live bytes at each instruction, workspace included; the most of them. */
static void gcpi_live_bytes(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, size_t *live)
{
    size_t align = p->target.align, now = 0;
    memset(live, 0, (size_t)(list->count + 1) * sizeof *live);
    for (int b = 0; b < l->buffer_count; b++) {
        if (l->buffers[b].joined >= 0) continue;
        live[l->buffers[b].first] += gcpi_round(l->buffers[b].bytes, align);
        live[l->buffers[b].last + 1] -= gcpi_round(l->buffers[b].bytes, align);     /* may wrap; the sums do not */
    }
    l->peak = 0; l->peak_at = 0;
    for (int i = 0; i < (int)list->count; i++) {
        now += live[i];
        live[i] = now + gcpi_round(p->tasks[list->at[i].task].workspace, align);
        if (live[i] > l->peak) { l->peak = live[i]; l->peak_at = i; }
    }
}

/* Fills l, all in scratch of a, which the caller gives back. 0: not enough. */
static int gcpi_lives_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    int operands = gcpi_operand_total(p, list), values = operands + p->item_count;
    memset(l, 0, sizeof *l);
    l->values = GCPI_SCRATCH(a, gcpi_value, values);
    l->buffers = GCPI_SCRATCH(a, gcpi_buffer, values);
    l->operand_value = GCPI_SCRATCH(a, int, operands + 1);
    *live = GCPI_SCRATCH(a, size_t, list->count + 2);
    ptrdiff_t scratch = a->scratch;
    int *current = GCPI_SCRATCH(a, int, p->item_count), *order = GCPI_SCRATCH(a, int, values),
        *count = GCPI_SCRATCH(a, int, p->item_count + 1);
    if (!l->values || !l->buffers || !l->operand_value || !*live || !current || !order || !count) return 0;
    gcpi_values_make(p, list, l, current);
    gcpi_values_sort(p, l, order, count);
    gcpi_buffers_make(p, l, order);
    gcpi_in_place(p, list, l);
    gcpi_live_bytes(p, list, l, *live);
    a->scratch = scratch;
    return 1;
}

/* Layout. The step's numbers come first, then the workspace of the current instruction (it may be written in part only,
   so it never lies on top), then the buffers, by first fit in an order. The order is searched: the first buffer that
   finds no room below a limit moves before some other, and the buffers from there on are placed again. */
enum { GCPI_LAYOUT_WORK = 1500000, GCPI_LAYOUT_RUN = 64,
       /* moves of a list; buffers above which moves take too long to find */
       GCPI_MOST_MOVES = 8, GCPI_MOVES_LARGE = 3000 };

/* What a layout must achieve. enough: bytes that the slab may have, or 0: as few as can be found; work: how many placed
   buffers may be looked at; moves: how many at most. The same list and fit give the same layout; another fit may fail
   where this one did not. */
typedef struct gcpi_fit { size_t enough; double work; int moves; } gcpi_fit;
static gcpi_fit gcpi_fit_of(size_t enough, double work, int moves)
{
    gcpi_fit f;
    f.enough = enough;
    f.work = work;
    f.moves = moves;
    return f;
}
static gcpi_fit gcpi_fit_free(void) { return gcpi_fit_of(0, GCPI_LAYOUT_WORK, 0); }

/* a placed buffer; next: end, aligned; rank: its position in the order */
typedef struct gcpi_spot { size_t at, end, next; int first, last, rank; } gcpi_spot;

typedef struct gcpi_layout {
    const gcpi_problem *p; const gcpi_list *list; gcpi_lives *l;
    gcpi_spot *placed, *trial;         /* by offset: of the accepted order; of the order on trial */
    int *order, count, placed_count, trial_count;
    size_t *floor, *offset, top, best_top;
    uint64_t random;
    double work;                       /* placed buffers that may still be looked at */
} gcpi_layout;

/* The lowest place for b; *before: how many placed buffers lie below it. */
static size_t gcpi_first_fit(gcpi_layout *y, int b, int *before)
{
    const gcpi_buffer *x = &y->l->buffers[b];
    size_t at = y->floor[b];
    int k;
    for (k = 0; k < y->trial_count; k++) {
        const gcpi_spot *o = &y->trial[k];
        /* no branches: which lives meet is not predictable */
        int meets = (o->first <= x->last) & (x->first <= o->last);
        if (meets & (o->at >= at + x->bytes)) break;
        size_t next = meets ? o->next : 0;
        at = next > at ? next : at;
    }
    y->work -= k + 1;
    while (k > 0 && y->trial[k - 1].at > at) k--;
    while (k < y->trial_count && y->trial[k].at <= at) k++;
    *before = k;
    return at;
}

/* Places the buffers from position `from` of the order on; those before it stay. Returns the position of the first that
   would end above `most`, or count. y->top is where that one, or the highest, ends. */
static int gcpi_place_from(gcpi_layout *y, int from, size_t most)
{
    y->trial_count = 0; y->top = 0;
    y->work -= y->placed_count / 4;
    for (int i = 0; from > 0 && i < y->placed_count; i++) {
        if (y->placed[i].rank >= from) continue;
        y->trial[y->trial_count++] = y->placed[i];
        y->top = GCPI_MAX(y->top, y->placed[i].end);
    }
    for (int i = from; i < y->count; i++) {
        int k;
        const gcpi_buffer *x = &y->l->buffers[y->order[i]];
        size_t at = gcpi_first_fit(y, y->order[i], &k);
        y->top = GCPI_MAX(y->top, at + x->bytes);
        if (at + x->bytes > most) return i;
        gcpi_spot *spot = y->trial + k;
        memmove(spot + 1, spot, (size_t)(y->trial_count++ - k) * sizeof *spot);
        spot->at = at;
        spot->end = at + x->bytes;
        spot->next = gcpi_round(spot->end, y->p->target.align);
        spot->first = x->first;
        spot->last = x->last;
        spot->rank = i;
    }
    return y->count;
}

/* Accepts the trial. Where it holds all buffers, it may be the best. */
static void gcpi_layout_take(gcpi_layout *y)
{
    gcpi_spot *swap = y->placed; y->placed = y->trial; y->trial = swap;
    y->placed_count = y->trial_count;
    if (y->placed_count < y->count || y->top >= y->best_top) return;
    y->best_top = y->top;
    for (int i = 0; i < y->count; i++) y->offset[y->order[y->placed[i].rank]] = y->placed[i].at;
}

static double gcpi_layout_key(const gcpi_buffer *b, int by)
{
    double bytes = (double)b->bytes, life = (double)(b->last - b->first + 1);
    return by == 0 ? bytes * 1e6 + life : bytes * life;
}

/* heap sort; equal keys go by buffer, so that the result is unique */
static void gcpi_layout_sort(gcpi_layout *y, int by)
{
    int n = y->count, *o = y->order;
#define GCPI_BEFORE(a, b) (gcpi_layout_key(&y->l->buffers[a], by) > gcpi_layout_key(&y->l->buffers[b], by) || \
    (gcpi_layout_key(&y->l->buffers[a], by) == gcpi_layout_key(&y->l->buffers[b], by) && (a) < (b)))
    for (int start = n / 2 - 1, end = n; end > 1;) {
        int root;
        if (start >= 0) root = start--;
        else { int last = o[--end]; o[end] = o[0]; o[0] = last; root = 0; }
        for (int child; (child = 2 * root + 1) < end; root = child) {
            if (child + 1 < end && GCPI_BEFORE(o[child], o[child + 1])) child++;
            if (!GCPI_BEFORE(o[root], o[child])) break;
            int swap = o[root]; o[root] = o[child]; o[child] = swap;
        }
    }
#undef GCPI_BEFORE
}

/* Marsaglia's xorshift (2003): only for what planning tries; no step depends on it */
static uint32_t gcpi_below(uint64_t *random, uint32_t n)
{
    *random ^= *random << 13; *random ^= *random >> 7; *random ^= *random << 17;
    return (uint32_t)((*random >> 32) * n >> 32);
}

/* Looks for an order in which all buffers end at `most` or below. The first that does not moves before a random one.
   That is undone if fewer buffers then find room, by more than chance allows: some steps back are taken, since another
   buffer may be the one to move. */
static void gcpi_pack(gcpi_layout *y, size_t most, double work)
{
    int reached = y->placed_count;
    double end = y->work - work;
    for (int i = 0; i < y->placed_count; i++)
        if (y->placed[i].end > most) reached = GCPI_MIN(reached, y->placed[i].rank);
    while (reached > 0 && reached < y->count && y->work > end) {
        int to = (int)gcpi_below(&y->random, (uint32_t)reached), b = y->order[reached];
        double chance = gcpi_below(&y->random, 65536) / 65536.0,
               slack = chance * chance * chance * chance * reached / 2;
        memmove(y->order + to + 1, y->order + to, (size_t)(reached - to) * sizeof *y->order);
        y->order[to] = b;
        int now = gcpi_place_from(y, to, most);
        if (now > reached - 2 - (int)slack) { gcpi_layout_take(y); reached = now; continue; }
        memmove(y->order + to, y->order + to + 1, (size_t)(reached - to) * sizeof *y->order);
        y->order[reached] = b;
    }
}

/* Where buffers may begin: after the largest workspace of their lives. run: scratch. */
static void gcpi_floors(gcpi_layout *y, size_t *run)
{
    const ptrdiff_t length = GCPI_LAYOUT_RUN;
    size_t align = y->p->target.align;
    memset(run, 0, ((size_t)(y->list->count / length) + 1) * sizeof *run);
    for (ptrdiff_t k = 0; k < y->list->count; k++)
        run[k / length] = GCPI_MAX(run[k / length], y->p->tasks[y->list->at[k].task].workspace);
    for (int i = 0; i < y->count; i++) {
        const gcpi_buffer *b = &y->l->buffers[y->order[i]];
        size_t most = 0;
        for (ptrdiff_t k = b->first; k <= b->last;) {
            int whole = k % length == 0 && k + length - 1 <= b->last;
            most = GCPI_MAX(most, whole ? run[k / length] : y->p->tasks[y->list->at[k].task].workspace);
            k += whole ? length : 1;
        }
        y->floor[y->order[i]] = gcpi_round(y->p->numbers, align) + gcpi_round(most, align);
    }
}

/* Searches from one order of the buffers: for the goal at once, or (least) in steps that get smaller. */
static void gcpi_layout_search(gcpi_layout *y, size_t goal, int least, double work)
{
    y->placed_count = 0; y->work = work;
    gcpi_place_from(y, 0, least ? SIZE_MAX : goal);
    gcpi_layout_take(y);
    y->work = work;
    if (!least) { gcpi_pack(y, goal, work); return; }
    for (double share = 1; share > 0.01 && y->work > 0 && y->best_top > goal;) {
        size_t before = y->best_top;
        gcpi_pack(y, before - GCPI_MAX(gcpi_bytes_from((double)(before - goal) * share), 1), work / 6);
        if (y->best_top == before) share /= 2;
    }
}

/* Moves, the last resort: a buffer that finds no room for all of its life gets two places. */

/* The task that moves what buffer b holds between instructions t and t + 1, where there are bytes for both places; 0:
   none. */
static int gcpi_mover(const gcpi_layout *y, int b, int t, size_t most)
{
    const gcpi_lives *l = y->l;
    size_t across = gcpi_round(y->p->numbers, y->p->target.align) + l->buffers[b].bytes;
    int value = -1, values = 0;
    for (int v = 0; v < l->value_count; v++)
        if (l->values[v].first <= t && l->values[v].last > t && gcpi_buffer_of(l, l->values[v].buffer) == b) {
            value = v;
            values++;
        }
    if (values != 1) return 0;
    for (int k = 0; k < l->buffer_count; k++)
        if (l->buffers[k].joined < 0 && l->buffers[k].first <= t && l->buffers[k].last > t)
            across += gcpi_round(l->buffers[k].bytes, y->p->target.align);
    int item = l->values[value].item;
    return across <= most && gcpi_alone(y->p, item) ? y->p->items[item].move : 0;
}

/* Whether b would find room below `most` if it lived from first to last, beside what is placed. */
static int gcpi_layout_room(gcpi_layout *y, int b, int first, int last, size_t most)
{
    gcpi_buffer *x = &y->l->buffers[b], whole = *x;
    int before;
    x->first = first; x->last = last;
    size_t at = gcpi_first_fit(y, b, &before);
    *x = whole;
    return at + x->bytes <= most;
}

/* Splits the life of the buffer that found no room, into its longest first part that would find room and the rest, or
   its longest last part and the rest. Sets the move between the two. */
static void gcpi_layout_move(gcpi_layout *y, size_t most)
{
    if (y->placed_count >= y->count) return;
    int b = y->order[y->placed_count], first = y->l->buffers[b].first, last = y->l->buffers[b].last, front;
    memcpy(y->trial, y->placed, (size_t)y->placed_count * sizeof *y->trial);
    y->trial_count = y->placed_count;
    front = gcpi_layout_room(y, b, first, first, most);
    if (!front && !gcpi_layout_room(y, b, last, last, most)) return;
    int low = first, high = last;                  /* the end of the part lies in between */
    while (high - low > 1) {
        int middle = low + (high - low) / 2,
            fits = front ? gcpi_layout_room(y, b, first, middle, most) : gcpi_layout_room(y, b, middle, last, most);
        *(fits == front ? &low : &high) = middle;
    }
    int move = 0, t = low;                         /* from there to shorter parts */
    while (t >= first && t < last && (move = gcpi_mover(y, b, t, most)) == 0) t += front ? -1 : 1;
    if (move) { y->l->move = move; y->l->move_at = t + 1; }
}

/* Sets the offsets of l's buffers; returns the slab's bytes, or 0: not enough scratch. A result above fit.enough, where
   that is given, means that no layout was found; the offsets are then not valid. */
static size_t gcpi_layout_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, gcpi_fit fit, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_layout y;
    memset(&y, 0, sizeof y);
    y.p = p; y.list = list; y.l = l;
    y.best_top = SIZE_MAX; y.random = 88172645463325252ull;
    y.order = GCPI_SCRATCH(a, int, l->buffer_count + 1);
    y.placed = GCPI_SCRATCH(a, gcpi_spot, l->buffer_count + 1);
    y.trial = GCPI_SCRATCH(a, gcpi_spot, l->buffer_count + 1);
    y.floor = GCPI_SCRATCH(a, size_t, l->buffer_count + 1);
    y.offset = GCPI_SCRATCH(a, size_t, l->buffer_count + 1);
    size_t *run = GCPI_SCRATCH(a, size_t, list->count / GCPI_LAYOUT_RUN + 1);
    if (!y.order || !y.placed || !y.trial || !y.floor || !y.offset || !run) { a->scratch = scratch; return 0; }
    size_t goal = gcpi_round(p->numbers, p->target.align), top = goal;
    for (int b = 0; b < l->buffer_count; b++) if (l->buffers[b].joined < 0) y.order[y.count++] = b;
    goal = GCPI_MAX(goal + l->peak, fit.enough);
    l->move = -1;
    gcpi_floors(&y, run);
    for (int by = 0; by < 2 && y.best_top > goal; by++) {
        gcpi_layout_sort(&y, by);
        gcpi_layout_search(&y, goal, fit.enough == 0, fit.work / 2);
    }
    a->scratch = scratch;
    if (y.best_top == SIZE_MAX && fit.moves) gcpi_layout_move(&y, fit.enough);
    if (y.best_top == SIZE_MAX) return GCPI_MAX(y.top, goal + 1);
    for (ptrdiff_t i = 0; i < list->count; i++)
        top = GCPI_MAX(top, gcpi_round(p->numbers, p->target.align) + p->tasks[list->at[i].task].workspace);
    for (int b = 0; b < l->buffer_count; b++)
        if (l->buffers[b].joined < 0) {
            l->buffers[b].offset = y.offset[b];
            top = GCPI_MAX(top, y.offset[b] + l->buffers[b].bytes);
        }
    return top;
}

/* Lifetimes and layout of a list, to which moves may be added. Returns the slab's bytes as gcpi_layout_make does; l and
   *live lie in scratch. */
static size_t gcpi_arrange(const gcpi_problem *p, gcpi_list *list, gcpi_lives *l, size_t **live, gcpi_fit fit,
                           gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    for (int moves = 0;; moves++) {
        a->scratch = scratch;
        if (!gcpi_lives_make(p, list, l, live, a)) return 0;
        size_t slab = gcpi_layout_make(p, list, l, fit, a);
        if (slab == 0 || slab <= fit.enough || moves == fit.moves || l->move < 0 ||
            l->buffer_count > GCPI_MOVES_LARGE || list->count >= list->capacity)
            return slab;
        const gcpi_task *task = &p->tasks[l->move];
        gcpi_emit(list, 'M', l->move, task);
        memmove(list->at + l->move_at + 1, list->at + l->move_at,
                (size_t)(list->count - 1 - l->move_at) * sizeof *list->at);
        list->at[l->move_at].kind = 'M'; list->at[l->move_at].task = l->move;
    }
}
