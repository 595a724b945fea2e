/* Skylines: places for rectangles in time and address. All end at a goal or below. The lowest step of the skyline of
   what is placed gets the rectangle that fits on it and whose sections of time are the fullest. Where none fits, the
   step is lifted to its lower neighbour, which loses bytes. Once a section cannot hold what is still to come, the
   trial ends, and the rectangles that it left over there weigh more in the next one: "squeaky wheel" optimisation
   (Joslin and Clements 1999). The lowest step first is the canonical order of MiniMalloc (Moffitt 2023). */

/* from section to section of time; buffer: for the caller; bytes: not 0 */
typedef struct gcpi_rectangle {
    int buffer, first, last, done;
    size_t bytes, at;
    double crowd, weight, key;        /* most bytes in its sections; grows where it is left over; of a trial */
} gcpi_rectangle;

typedef struct gcpi_skyline {
    gcpi_rectangle *all; int count, sections;
    int *order, *begin;               /* rectangles by their first section; where those of each section begin */
    size_t *ground, *load;            /* per section: where it begins to be free; bytes of its rectangles, aligned */
    /* of a trial. A step from section s to e: end[s] = e, start[e] = s, height[s]; rest: bytes still to come */
    int *end, *start;
    size_t *height, *rest;
    /* the lowest step as a tournament: node n plays 2n against 2n + 1, leaf `leaves + t` is t where a step begins
       there, else -1; lowest[1] wins */
    int *lowest, leaves, steps;
    gcpi_heights crowds;              /* the bytes of each section, for gcpi_skyline_ready */
    size_t align, top;                /* top: where the highest rectangle ends */
    uint64_t random;
    double work;                      /* steps, sections and rectangles that may still be looked at */
} gcpi_skyline;

static int gcpi_skyline_arrays(gcpi_skyline *s, int count, int sections, gcp_arena *a)
{
    memset(s, 0, sizeof *s);
    s->sections = sections; s->random = 88172645463325252ull;
    s->all = GCPI_SCRATCH(a, gcpi_rectangle, count + 1);
    s->order = GCPI_SCRATCH(a, int, count + 1);
    s->begin = GCPI_SCRATCH(a, int, sections + 3);
    s->end = GCPI_SCRATCH(a, int, sections + 1); s->start = GCPI_SCRATCH(a, int, sections + 1);
    s->ground = GCPI_SCRATCH(a, size_t, sections + 1); s->load = GCPI_SCRATCH(a, size_t, sections + 1);
    s->height = GCPI_SCRATCH(a, size_t, sections + 1); s->rest = GCPI_SCRATCH(a, size_t, sections + 1);
    s->lowest = GCPI_SCRATCH(a, int, 4 * (ptrdiff_t)sections + 4);
    return s->all && s->order && s->begin && s->end && s->start && s->ground && s->load && s->height && s->rest &&
           s->lowest && gcpi_heights_arrays(&s->crowds, sections + 1, a);
}

/* Once all rectangles are there: sorts them by their first section, and sums up what crowds them. */
static void gcpi_skyline_ready(gcpi_skyline *s)
{
    memset(s->begin, 0, (size_t)(s->sections + 3) * sizeof *s->begin);
    for (int b = 0; b < s->count; b++) {
        s->begin[s->all[b].first + 2]++;
        s->load[s->all[b].first] += gcpi_round(s->all[b].bytes, s->align);
        s->load[s->all[b].last + 1] -= gcpi_round(s->all[b].bytes, s->align);       /* may wrap; the sums do not */
    }
    for (int t = 1; t < s->sections; t++) s->load[t] += s->load[t - 1];
    for (int t = 2; t <= s->sections; t++) s->begin[t + 1] += s->begin[t];
    for (int b = 0; b < s->count; b++) s->order[s->begin[s->all[b].first + 1]++] = b;
    for (int t = 0; t < s->sections; t++) *gcpi_heights_leaf(&s->crowds, t) = s->ground[t] + s->load[t];
    gcpi_heights_ready(&s->crowds);
    for (int b = 0; b < s->count; b++)
        s->all[b].crowd = (double)gcpi_heights_most(&s->crowds, s->all[b].first, s->all[b].last);
}

static double gcpi_skyline_chance(gcpi_skyline *s) { return gcpi_below(&s->random, 65536) / 65536.0; }

/* The leftmost of the lowest wins. */
static void gcpi_skyline_play(gcpi_skyline *s, int node)
{
    int left = s->lowest[2 * node], right = s->lowest[2 * node + 1];
    s->lowest[node] = right < 0 || (left >= 0 && s->height[left] <= s->height[right]) ? left : right;
}

/* A step begins at section t, or does not any more. */
static void gcpi_skyline_mark(gcpi_skyline *s, int t, int begins)
{
    int node = s->leaves + t;
    s->steps += begins - (s->lowest[node] >= 0);
    if (!begins && s->lowest[node] < 0) return;
    s->lowest[node] = begins ? t : -1;
    while (node /= 2) gcpi_skyline_play(s, node);
}

/* A step from first to last, merged with neighbours of the same height. */
static void gcpi_skyline_step(gcpi_skyline *s, int first, int last, size_t height)
{
    if (first > 0 && s->height[s->start[first - 1]] == height) {
        gcpi_skyline_mark(s, first, 0);
        first = s->start[first - 1];
    }
    if (last + 1 < s->sections && s->height[last + 1] == height) {
        gcpi_skyline_mark(s, last + 1, 0);
        last = s->end[last + 1];
    }
    s->end[first] = last; s->start[last] = first;
    s->height[first] = height;
    gcpi_skyline_mark(s, first, 1);
}

static void gcpi_skyline_begin(gcpi_skyline *s, double noise)
{
    memcpy(s->rest, s->load, (size_t)s->sections * sizeof *s->rest);
    memcpy(s->height, s->ground, (size_t)s->sections * sizeof *s->height);
    for (int t = s->sections - 1; t >= 0; t--) {
        int merged = t + 1 < s->sections && s->ground[t] == s->ground[t + 1];
        s->end[t] = merged ? s->end[t + 1] : t;
        s->start[s->end[t]] = t;
    }
    for (s->leaves = 1; s->leaves < s->sections; s->leaves *= 2) { }
    for (int t = 0; t < s->leaves; t++) s->lowest[s->leaves + t] = -1;
    s->steps = 0;
    for (int t = 0; t < s->sections; t = s->end[t] + 1, s->steps++) s->lowest[s->leaves + t] = t;
    for (int node = s->leaves - 1; node > 0; node--) gcpi_skyline_play(s, node);
    for (int b = 0; b < s->count; b++) {
        gcpi_rectangle *x = &s->all[b];
        x->done = 0;
        x->key = x->crowd * (1 + x->weight + (noise > 0 ? noise * gcpi_skyline_chance(s) : 0)) +
                 1e-3 * (x->last - x->first);
    }
    s->top = 0;
    s->work -= s->sections + s->count;
}

/* The rectangle for the step from first to last, or NULL. */
static gcpi_rectangle *gcpi_skyline_choose(gcpi_skyline *s, int first, int last)
{
    gcpi_rectangle *best = NULL;
    for (int k = s->begin[first]; k < s->begin[last + 1]; k++) {
        gcpi_rectangle *x = &s->all[s->order[k]];
        if (!x->done && x->last <= last && (!best || x->key > best->key)) best = x;
    }
    s->work -= s->begin[last + 1] - s->begin[first];
    return best;
}

/* Puts a rectangle on the step that begins at section `first`. */
static void gcpi_skyline_put(gcpi_skyline *s, gcpi_rectangle *x, int first)
{
    size_t height = s->height[first], bytes = gcpi_round(x->bytes, s->align);
    int last = s->end[first];
    x->done = 1; x->at = height;
    s->top = GCPI_MAX(s->top, height + x->bytes);
    for (int t = x->first; t <= x->last; t++) s->rest[t] -= bytes;
    if (first < x->first) { s->end[first] = x->first - 1; s->start[x->first - 1] = first; }
    if (x->last < last) {
        s->end[x->last + 1] = last; s->start[last] = x->last + 1; s->height[x->last + 1] = height;
        gcpi_skyline_mark(s, x->last + 1, 1);
    }
    gcpi_skyline_step(s, x->first, x->last, height + bytes);
    s->work -= (x->last - x->first) / 4;
}

/* Lifts the step that begins at `first` to its lower neighbour. Returns a section that then holds too little, or -1. */
static int gcpi_skyline_lift(gcpi_skyline *s, int first, size_t limit)
{
    int last = s->end[first], full = -1;
    size_t height = first > 0 ? s->height[s->start[first - 1]] : SIZE_MAX;
    if (last + 1 < s->sections) height = GCPI_MIN(height, s->height[last + 1]);
    for (int t = first; t <= last && full < 0; t++) if (s->rest[t] && height + s->rest[t] > limit) full = t;
    gcpi_skyline_step(s, first, last, height);
    s->work -= (last - first) / 4;
    return full;
}

/* One trial; 1: all rectangles have their places and end at `goal` or below. */
static int gcpi_skyline_trial(gcpi_skyline *s, size_t goal, double noise)
{
    size_t limit = gcpi_round(goal, s->align);
    gcpi_skyline_begin(s, noise);
    for (int left = s->count, full = -1; left > 0 && full < 0 && s->work > 0;) {
        int first = s->lowest[1];
        s->work -= s->steps;
        gcpi_rectangle *x = gcpi_skyline_choose(s, first, s->end[first]);
        if (x) gcpi_skyline_put(s, x, first);
        else full = gcpi_skyline_lift(s, first, limit);
        if (x && --left == 0) return s->top <= goal;
        for (int b = 0; b < s->count && full >= 0; b++)
            if (!s->all[b].done && s->all[b].first <= full && full <= s->all[b].last) s->all[b].weight += 0.1;
    }
    return s->count == 0;
}

/* Trials until one reaches the goal, for so much work. */
static int gcpi_skyline_pack(gcpi_skyline *s, size_t goal, double work)
{
    s->work = work;
    for (int b = 0; b < s->count; b++) s->all[b].weight = 0;
    for (double noise = 0; s->work > 0; noise = 0.03 * gcpi_skyline_chance(s))
        if (gcpi_skyline_trial(s, goal, noise)) return 1;
    return 0;
}
