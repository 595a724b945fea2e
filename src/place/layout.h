/* Layout: gives each buffer its offset. The step's numbers come first, then the workspace of the current instruction
   (it may be written in part only, so it never lies on top), then the buffers: by first fit, the largest first; where
   that is not good enough, by skylines, by exact search, and by first fit in an order that is searched: the first
   buffer that finds no room below a limit moves before some other, and the buffers from there on are placed again. */
enum { GCPI_LAYOUT_WORK = 3000000,
       GCPI_LAYOUT_HARD = 1000000,         /* with so much work all ways are tried */
       /* buffers from which on it is tried first, or alone, not to look at all of them */
       GCPI_LAYOUT_MANY = 8192, GCPI_LAYOUT_MOST = 32768,
       GCPI_LAYOUT_NEAR = 4096,            /* of many buffers a layout may lose so small a part */
       /* moves of a list; buffers above which moves take too long to find */
       GCPI_MOST_MOVES = 8, GCPI_MOVES_LARGE = 3000 };

/* What a layout must achieve. enough: bytes that the slab may have, or 0: as few as can be found; work: how many placed
   buffers may be looked at where there are 250 tasks, more or fewer where there are; moves: how many at most. The same
   list and fit give the same layout; another fit may fail where this one did not. */
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
    int *first, *last;                 /* of the spots on trial, for gcpi_fit_meets */
    int *order, *sorted, count, placed_count, trial_count;
    /* many buffers: spots are in the order of placing, and one of these (or NULL) finds what lies near */
    int many; gcpi_gaps *gaps; gcpi_nearby *nearby;
    size_t *floor, *offset, top, best_top;
    uint64_t random;
    double work;                       /* placed buffers that may still be looked at */
} gcpi_layout;

/* Which of some lives meet that from begin to end. Few do, so a fit looks at eight of these bytes at once. */
enum { GCPI_FIT_LIVES = 128 };
GCPI_LOOP void gcpi_fit_meets(const int *GCPI_RESTRICT first, const int *GCPI_RESTRICT last, int begin, int end,
                              unsigned char *GCPI_RESTRICT meets)
{
    for (int k = 0; k < GCPI_FIT_LIVES; k++) meets[k] = (unsigned char)((first[k] <= end) & (begin <= last[k]));
}
static int gcpi_fit_none(const unsigned char *meets)               /* of eight */
{
    uint64_t eight;
    memcpy(&eight, meets, sizeof eight);
    return eight == 0;
}

/* The lowest place for b; *before: how many placed buffers lie below it. Of many buffers, those for which there is no
   work left go on top of all. */
static size_t gcpi_first_fit(gcpi_layout *y, int b, int *before)
{
    const gcpi_buffer *x = &y->l->buffers[b];
    size_t at = y->floor[b];
    *before = y->trial_count;
    if (y->gaps) return gcpi_gaps_fit(y->gaps, b, at);
    if (y->nearby && y->work < 0) return GCPI_MAX(at, gcpi_round(y->top, y->p->target.align));
    if (y->nearby) return gcpi_nearby_fit(y->nearby, b, at, &y->work);
    unsigned char meets[GCPI_FIT_LIVES];
    int k = y->trial_count;
    for (int begin = 0; begin < k; begin += GCPI_FIT_LIVES) {
        gcpi_fit_meets(y->first + begin, y->last + begin, x->first, x->last, meets);
        for (int i = 0; i < GCPI_FIT_LIVES && begin + i < k; i++) {
            if (i % 8 == 0 && gcpi_fit_none(meets + i)) { i += 7; continue; }
            if (!meets[i]) continue;
            const gcpi_spot *o = &y->trial[begin + i];
            if (o->at >= at + x->bytes) k = begin + i;
            else at = GCPI_MAX(at, o->next);
        }
    }
    y->work -= k + 1;
    int low = 0, high = y->trial_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (y->trial[middle].at <= at) low = middle + 1;
        else high = middle;
    }
    *before = low;
    return at;
}

static void gcpi_trial_put(gcpi_layout *y, int k, const gcpi_spot *spot)
{
    const size_t above = (size_t)(y->trial_count++ - k);
    memmove(y->trial + k + 1, y->trial + k, above * sizeof *y->trial);
    y->trial[k] = *spot;
    if (y->nearby) gcpi_nearby_put(y->nearby, y->order[spot->rank], spot->at, spot->next);
    if (y->many) return;
    memmove(y->first + k + 1, y->first + k, above * sizeof *y->first);
    memmove(y->last + k + 1, y->last + k, above * sizeof *y->last);
    y->first[k] = spot->first; y->last[k] = spot->last;
}

/* Places the buffers from position `from` of the order on; those before it stay. Returns the position of the first that
   would end above `most`, or count. y->top is where that one, or the highest, ends. */
static int gcpi_place_from(gcpi_layout *y, int from, size_t most)
{
    y->trial_count = 0; y->top = 0;
    y->work -= y->placed_count / 4;
    for (int i = 0; from > 0 && i < y->placed_count; i++) {
        if (y->placed[i].rank >= from) continue;
        gcpi_trial_put(y, y->trial_count, &y->placed[i]);
        y->top = GCPI_MAX(y->top, y->placed[i].end);
    }
    for (int i = from; i < y->count; i++) {
        int k;
        const gcpi_buffer *x = &y->l->buffers[y->order[i]];
        size_t at = gcpi_first_fit(y, y->order[i], &k);
        y->top = GCPI_MAX(y->top, at + x->bytes);
        if (at + x->bytes > most) return i;
        gcpi_spot spot;
        spot.at = at;
        spot.end = at + x->bytes;
        spot.next = gcpi_round(spot.end, y->p->target.align);
        spot.first = x->first;
        spot.last = x->last;
        spot.rank = i;
        gcpi_trial_put(y, k, &spot);
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

/* What an order is by. */
typedef enum gcpi_order_by { GCPI_BY_BYTES, GCPI_BY_AREA, GCPI_BY_BIRTH, GCPI_BY_DEATH } gcpi_order_by;
static double gcpi_layout_key(const gcpi_buffer *b, gcpi_order_by by)          /* the greatest comes first */
{
    double bytes = (double)b->bytes, life = (double)(b->last - b->first + 1);
    switch (by) {
    case GCPI_BY_BYTES: return bytes * 1e6 + life;
    case GCPI_BY_AREA: return bytes * life;
    case GCPI_BY_BIRTH: return -b->first;
    default: return b->last;
    }
}

/* Merge sort; equal keys go by buffer, so that the result is unique. */
static void gcpi_layout_sort(gcpi_layout *y, gcpi_order_by by)
{
    const gcpi_buffer *all = y->l->buffers;
    for (int run = 1; run < y->count; run *= 2) {
        for (int begin = 0; begin < y->count; begin += 2 * run) {
            const int middle = GCPI_MIN(begin + run, y->count), end = GCPI_MIN(middle + run, y->count);
            for (int i = begin, j = middle, k = begin; k < end; k++) {
                int left = j == end;
                if (i < middle && j < end) {
                    const double one = gcpi_layout_key(&all[y->order[i]], by),
                                 other = gcpi_layout_key(&all[y->order[j]], by);
                    left = one > other || (!(other > one) && y->order[i] < y->order[j]);
                }
                y->sorted[k] = y->order[left ? i++ : j++];
            }
        }
        int *swap = y->order; y->order = y->sorted; y->sorted = swap;
    }
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

/* Where buffers may begin: after the largest workspace of their lives. */
static void gcpi_floors(gcpi_layout *y, const gcpi_heights *ground)
{
    const size_t align = y->p->target.align, front = gcpi_round(y->p->numbers, align);
    for (ptrdiff_t k = 0; k < y->list->count; k++)
        *gcpi_heights_leaf(ground, k) = front + gcpi_round(y->p->tasks[y->list->at[k].task].workspace, align);
    gcpi_heights_ready(ground);
    if (y->many && ground->most[1] - front <= y->l->peak / GCPI_LAYOUT_NEAR)       /* one ground for all */
        for (int k = 0; k < 2 * ground->leaves; k++) ground->most[k] = ground->most[1];
    for (int i = 0; i < y->count; i++) {
        const int b = y->order[i];
        y->floor[b] = gcpi_heights_most(ground, y->l->buffers[b].first, y->l->buffers[b].last);
    }
}

/* Places all buffers in their order, at `most` or below. */
static void gcpi_layout_once(gcpi_layout *y, size_t most, double work)
{
    y->placed_count = 0; y->work = work;
    gcpi_place_from(y, 0, most);
    gcpi_layout_take(y);
}

/* Searches from one order of the buffers: for the goal at once, or (least) in steps that get smaller. */
static void gcpi_layout_search(gcpi_layout *y, size_t goal, int least, double work)
{
    gcpi_layout_once(y, least ? SIZE_MAX : goal, work);
    y->work = work;
    if (!least) { gcpi_pack(y, goal, work); return; }
    for (double share = 1; share > 0.01 && y->work > 0 && y->best_top > goal;) {
        size_t before = y->best_top;
        gcpi_pack(y, before - GCPI_MAX(gcpi_bytes_from((double)(before - goal) * share), 1), work / 6);
        if (y->best_top == before) share /= 2;
    }
}

/* Sections of time. For skylines a new one begins where a buffer does, and where the workspace changes. For the exact
   search, whose time grows with them, there are fewer: one first grows (buffers begin, the workspace grows), then
   shrinks, and all of its buffers are live at the instruction in between. Sets section[t] for each instruction, and
   where buffers may begin; returns how many sections there are. marks: scratch, zeros. */
static int gcpi_layout_sections(const gcpi_layout *y, int exact, int *section, size_t *ground, unsigned char *marks)
{
    enum { BEGINS = 1, ENDED = 2 };
    size_t front = gcpi_round(y->p->numbers, y->p->target.align), last = 0;
    int sections = 0, shrinks = 0;
    for (int i = 0; i < y->count; i++) {
        marks[y->l->buffers[y->order[i]].first] |= BEGINS;
        marks[y->l->buffers[y->order[i]].last + 1] |= ENDED;
    }
    for (ptrdiff_t t = 0; t < y->list->count; t++) {
        const size_t now = front + gcpi_round(y->p->tasks[y->list->at[t].task].workspace, y->p->target.align);
        const int grows = (marks[t] & BEGINS) || now > last;
        shrinks |= (marks[t] & ENDED) || now < last;
        if (t == 0 || (exact ? grows && shrinks : grows || now != last)) { ground[sections++] = now; shrinks = 0; }
        ground[sections - 1] = GCPI_MAX(ground[sections - 1], now);
        section[t] = sections - 1;
        last = now;
    }
    return sections;
}

/* The rectangles of a skyline: one for each buffer that has bytes. 0: not enough scratch. */
static int gcpi_layout_rectangles(const gcpi_layout *y, gcpi_skyline *s, int exact, gcp_arena *a)
{
    int *section = GCPI_SCRATCH(a, int, y->list->count);
    unsigned char *marks = GCPI_SCRATCH(a, unsigned char, y->list->count + 1);
    if (!section || !marks || !gcpi_skyline_arrays(s, y->count, (int)y->list->count, a)) return 0;
    s->align = y->p->target.align;
    s->sections = gcpi_layout_sections(y, exact, section, s->ground, marks);
    for (int i = 0; i < y->count; i++) {
        const gcpi_buffer *x = &y->l->buffers[y->order[i]];
        gcpi_rectangle *b = &s->all[s->count];
        b->buffer = y->order[i]; b->first = section[x->first]; b->last = section[x->last]; b->bytes = x->bytes;
        s->count += x->bytes > 0;
    }
    gcpi_skyline_ready(s);
    return 1;
}

/* Places for all rectangles, at `aim` or below, by the exact search or by skylines. Takes *work down. */
static gcpi_packed gcpi_layout_reach(gcpi_layout *y, gcpi_skyline *s, size_t aim, int exact, double *work, gcp_arena *a)
{
    gcpi_packed packed = GCPI_PACKING_UNDECIDED;
    if (exact) packed = gcpi_packing_exact(s, aim, work, a);
    else {
        if (gcpi_skyline_pack(s, aim, *work)) packed = GCPI_PACKS;
        *work = s->work;
    }
    if (packed != GCPI_PACKS) return packed;
    y->best_top = 0;
    for (int i = 0; i < y->count; i++) y->offset[y->order[i]] = y->floor[y->order[i]];
    for (int i = 0; i < s->count; i++) {
        y->offset[s->all[i].buffer] = s->all[i].at;
        y->best_top = GCPI_MAX(y->best_top, s->all[i].at + s->all[i].bytes);
    }
    return packed;
}

/* Searches by rectangles: for the goal at once, or (least) in steps that get smaller. Returns the goal, or more where
   it cannot be reached. */
static size_t gcpi_layout_pack(gcpi_layout *y, size_t goal, int exact, int least, double work, gcp_arena *a)
{
    gcpi_skyline s;
    ptrdiff_t scratch = a->scratch;
    double left = gcpi_layout_rectangles(y, &s, exact, a) ? work : 0;
    for (double share = 1; share > 0.01 && left > 0 && y->best_top > goal;) {
        const size_t before = y->best_top,
                     aim = least ? before - GCPI_MAX(gcpi_bytes_from((double)(before - goal) * share), 1) : goal;
        double part = least ? GCPI_MIN(left, work / 6) : work;
        left -= part;
        const gcpi_packed packed = gcpi_layout_reach(y, &s, aim, exact, &part, a);
        left += GCPI_MAX(part, 0);
        if (packed == GCPI_CANNOT_PACK) goal = aim + 1;
        else if (packed == GCPI_PACKING_UNDECIDED) share /= 2;
        if (!least) break;
    }
    a->scratch = scratch;
    return goal;
}

/* Ways to a layout, in turn, with their shares of the work. In order of birth or death the goal is met or not: chains
   of equal buffers meet it. The exact search comes early, where it often ends at once, and later with more work. The
   hard ways are for layouts with much work, those that decide; for each candidate of a search they take too long. Moves
   begin with what the last order has placed. */
typedef enum gcpi_way { GCPI_WAY_ORDER, GCPI_WAY_SKYLINES, GCPI_WAY_EXACT } gcpi_way;
static const struct { gcpi_way way; gcpi_order_by by; double share; int hard; } gcpi_ways[] = {
    { GCPI_WAY_ORDER, GCPI_BY_BIRTH, 0, 1 },    { GCPI_WAY_ORDER, GCPI_BY_DEATH, 0, 1 },
    { GCPI_WAY_EXACT, GCPI_BY_BYTES, 0.03, 0 }, { GCPI_WAY_SKYLINES, GCPI_BY_BYTES, 0.8, 0 },
    { GCPI_WAY_EXACT, GCPI_BY_BYTES, 0.4, 1 },  { GCPI_WAY_ORDER, GCPI_BY_BYTES, 0.1, 0 },
    { GCPI_WAY_ORDER, GCPI_BY_AREA, 0.1, 0 },
};
static void gcpi_layout_improve(gcpi_layout *y, const size_t asked, gcpi_fit fit, gcp_arena *a)
{
    const double scale = GCPI_MIN(8, GCPI_MAX(0.2, y->p->task_count / 250.0));
    const int least = fit.enough == 0, hard = fit.work >= (double)GCPI_LAYOUT_HARD;
    size_t goal = asked;
    for (size_t k = 0; k < sizeof gcpi_ways / sizeof *gcpi_ways && y->best_top > goal; k++) {
        const gcpi_way way = gcpi_ways[k].way;
        const double work = fit.work * scale * gcpi_ways[k].share;
        const int cannot = goal > asked && !least;
        if (cannot && !fit.moves) break;
        if (gcpi_ways[k].hard && !hard) continue;
        gcpi_layout_sort(y, gcpi_ways[k].by);
        if (way == GCPI_WAY_ORDER) gcpi_layout_search(y, asked, least && work > 0, work);
        else if (!cannot)
            goal = gcpi_layout_pack(y, goal, way != GCPI_WAY_SKYLINES, least, work, a);
    }
}

/* Many buffers: in order of birth and of death, and of too many, too, of bytes, by what finds places without looking at
   all of them. 1: it is good enough. */
static int gcpi_layout_long(gcpi_layout *y, size_t goal, int least, const gcpi_heights *ground, gcp_arena *a)
{
    gcpi_gaps gaps;
    gcpi_nearby nearby;
    const ptrdiff_t scratch = a->scratch;
    const size_t most = least ? SIZE_MAX : goal;
    if (least) goal += goal / GCPI_LAYOUT_NEAR;
    for (int death = 0; death < 2 && y->best_top > goal; death++) {
        if (!gcpi_gaps_make(&gaps, y->l, y->list->count, y->p->target.align, a)) break;
        gcpi_gaps_begin(&gaps, death);
        y->gaps = &gaps;
        gcpi_layout_sort(y, death ? GCPI_BY_DEATH : GCPI_BY_BIRTH);
        gcpi_layout_once(y, most, 0);
        a->scratch = scratch;
    }
    y->gaps = NULL;
    if (y->best_top <= goal || y->count < GCPI_LAYOUT_MOST) return y->best_top <= goal;
    if (!gcpi_nearby_make(&nearby, y->l, y->order, y->count, ground, y->list->count, a)) return 0;
    y->nearby = &nearby;
    gcpi_layout_sort(y, GCPI_BY_BYTES);
    gcpi_layout_once(y, most, 200.0 * y->count);
    y->nearby = NULL;
    a->scratch = scratch;
    return y->best_top <= goal;
}
