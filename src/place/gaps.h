/* Gaps: first fit in order of birth, or of death back in time. Lists may be of any length: of what was placed, those
   that live at the moment are all that a new buffer can meet; between them lie gaps, and they are few. */

typedef struct gcpi_gap { size_t from, to; } gcpi_gap;

typedef struct gcpi_gaps {
    const gcpi_buffer *buffers; size_t align;
    gcpi_gap *gaps; int gap_count;         /* what is free, by address; the last one has no end */
    int *ends, *next;                      /* per moment: the placed buffers that end there, a list */
    size_t *at;                            /* per buffer */
    int now, back; ptrdiff_t moments;      /* back: moments are counted from the end of the list */
} gcpi_gaps;

static int gcpi_gaps_make(gcpi_gaps *g, const gcpi_lives *l, ptrdiff_t list, size_t align, gcp_arena *a)
{
    g->buffers = l->buffers; g->align = align; g->moments = list;
    g->gaps = GCPI_SCRATCH(a, gcpi_gap, l->buffer_count + 2);
    g->ends = GCPI_SCRATCH(a, int, list + 1);
    g->next = GCPI_SCRATCH(a, int, l->buffer_count + 1);
    g->at = GCPI_SCRATCH(a, size_t, l->buffer_count + 1);
    return g->gaps && g->ends && g->next && g->at;
}
static void gcpi_gaps_begin(gcpi_gaps *g, int back)
{
    g->back = back; g->now = 0;
    g->gap_count = 1;
    g->gaps[0].from = 0; g->gaps[0].to = SIZE_MAX;
    for (ptrdiff_t t = 0; t < g->moments; t++) g->ends[t] = -1;
}
static int gcpi_gaps_moment(const gcpi_gaps *g, int b, int end)   /* when buffer b begins or ends */
{
    const gcpi_buffer *x = &g->buffers[b];
    return g->back ? (int)g->moments - 1 - (end ? x->first : x->last) : end ? x->last : x->first;
}

/* Sets gap k to these bytes, or removes it where there are none. */
static void gcpi_gaps_set(gcpi_gaps *g, int k, size_t from, size_t to)
{
    g->gaps[k].from = from; g->gaps[k].to = to;
    if (from >= to) memmove(g->gaps + k, g->gaps + k + 1, (size_t)(--g->gap_count - k) * sizeof *g->gaps);
}
static void gcpi_gaps_insert(gcpi_gaps *g, int k, size_t from, size_t to)
{
    if (from >= to) return;
    memmove(g->gaps + k + 1, g->gaps + k, (size_t)(g->gap_count++ - k) * sizeof *g->gaps);
    g->gaps[k].from = from; g->gaps[k].to = to;
}

/* A buffer's bytes are free again. */
static void gcpi_gaps_free(gcpi_gaps *g, int b)
{
    const size_t from = g->at[b], to = from + gcpi_round(g->buffers[b].bytes, g->align);
    int low = 0, high = g->gap_count;      /* the first gap above */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (g->gaps[middle].from < to) low = middle + 1;
        else high = middle;
    }
    const int under = low > 0 && g->gaps[low - 1].to == from, over = low < g->gap_count && g->gaps[low].from == to;
    if (under && over) {
        g->gaps[low - 1].to = g->gaps[low].to;
        gcpi_gaps_set(g, low, 0, 0);
    } else if (under) g->gaps[low - 1].to = to;
    else if (over) g->gaps[low].from = from;
    else gcpi_gaps_insert(g, low, from, to);
}

/* The lowest place for the next buffer of the order at `floor` or above, which it takes. */
static size_t gcpi_gaps_fit(gcpi_gaps *g, int b, size_t floor)
{
    const size_t bytes = gcpi_round(g->buffers[b].bytes, g->align);
    const int begin = gcpi_gaps_moment(g, b, 0), end = gcpi_gaps_moment(g, b, 1);
    for (; g->now < begin; g->now++)
        for (int dead = g->ends[g->now]; dead >= 0; dead = g->next[dead]) gcpi_gaps_free(g, dead);
    if (!bytes) return floor;
    int k = 0;
    while (g->gaps[k].to < bytes || GCPI_MAX(g->gaps[k].from, floor) > g->gaps[k].to - bytes) k++;
    const gcpi_gap gap = g->gaps[k];
    const size_t at = GCPI_MAX(gap.from, floor);
    gcpi_gaps_set(g, k, at + bytes, gap.to);
    gcpi_gaps_insert(g, k, gap.from, at);
    g->at[b] = at;
    g->next[b] = g->ends[end]; g->ends[end] = b;
    return at;
}
