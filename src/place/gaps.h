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

static int gcpi_gaps_make(gcpi_gaps *s, const gcpi_lives *l, ptrdiff_t list, size_t align, gcp_arena *a)
{
    s->buffers = l->buffers; s->align = align; s->moments = list;
    s->gaps = GCPI_SCRATCH(a, gcpi_gap, l->buffer_count + 2);
    s->ends = GCPI_SCRATCH(a, int, list + 1);
    s->next = GCPI_SCRATCH(a, int, l->buffer_count + 1);
    s->at = GCPI_SCRATCH(a, size_t, l->buffer_count + 1);
    return s->gaps && s->ends && s->next && s->at;
}
static void gcpi_gaps_begin(gcpi_gaps *s, int back)
{
    s->back = back; s->now = 0;
    s->gap_count = 1;
    s->gaps[0].from = 0; s->gaps[0].to = SIZE_MAX;
    for (ptrdiff_t t = 0; t < s->moments; t++) s->ends[t] = -1;
}
static int gcpi_gaps_moment(const gcpi_gaps *s, int b, int end)   /* when buffer b begins or ends */
{
    const gcpi_buffer *x = &s->buffers[b];
    return s->back ? (int)s->moments - 1 - (end ? x->first : x->last) : end ? x->last : x->first;
}

/* Sets gap k to these bytes, or removes it where there are none. */
static void gcpi_gaps_set(gcpi_gaps *s, int k, size_t from, size_t to)
{
    s->gaps[k].from = from; s->gaps[k].to = to;
    if (from >= to) memmove(s->gaps + k, s->gaps + k + 1, (size_t)(--s->gap_count - k) * sizeof *s->gaps);
}
static void gcpi_gaps_insert(gcpi_gaps *s, int k, size_t from, size_t to)
{
    if (from >= to) return;
    memmove(s->gaps + k + 1, s->gaps + k, (size_t)(s->gap_count++ - k) * sizeof *s->gaps);
    s->gaps[k].from = from; s->gaps[k].to = to;
}

/* A buffer's bytes are free again. */
static void gcpi_gaps_free(gcpi_gaps *s, int b)
{
    const size_t from = s->at[b], to = from + gcpi_round(s->buffers[b].bytes, s->align);
    int low = 0, high = s->gap_count;      /* the first gap above */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (s->gaps[middle].from < to) low = middle + 1;
        else high = middle;
    }
    const int under = low > 0 && s->gaps[low - 1].to == from, over = low < s->gap_count && s->gaps[low].from == to;
    if (under && over) {
        s->gaps[low - 1].to = s->gaps[low].to;
        gcpi_gaps_set(s, low, 0, 0);
    } else if (under) s->gaps[low - 1].to = to;
    else if (over) s->gaps[low].from = from;
    else gcpi_gaps_insert(s, low, from, to);
}

/* The lowest place for the next buffer of the order at `floor` or above, which it takes. */
static size_t gcpi_gaps_fit(gcpi_gaps *s, int b, size_t floor)
{
    const size_t bytes = gcpi_round(s->buffers[b].bytes, s->align);
    const int begin = gcpi_gaps_moment(s, b, 0), end = gcpi_gaps_moment(s, b, 1);
    for (; s->now < begin; s->now++)
        for (int dead = s->ends[s->now]; dead >= 0; dead = s->next[dead]) gcpi_gaps_free(s, dead);
    if (!bytes) return floor;
    int k = 0;
    while (s->gaps[k].to < bytes || GCPI_MAX(s->gaps[k].from, floor) > s->gaps[k].to - bytes) k++;
    const gcpi_gap gap = s->gaps[k];
    const size_t at = GCPI_MAX(gap.from, floor);
    gcpi_gaps_set(s, k, at + bytes, gap.to);
    gcpi_gaps_insert(s, k, gap.from, at);
    s->at[b] = at;
    s->next[b] = s->ends[end]; s->ends[end] = b;
    return at;
}
