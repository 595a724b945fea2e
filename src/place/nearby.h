/* Nearby: what lies near a buffer of a long list. Not all of it is looked at: a tree over the buffers in order of birth
   knows the last death and the highest end below each node, so those that meet a life above some address are found by
   going down where there are any. Each moment has a height below which no byte is free: a buffer lies at the most of
   its life or above, and where all is stacked without gaps it lies there. */

typedef struct gcpi_near { size_t at, next; } gcpi_near;    /* where a placed buffer begins and ends, aligned */

typedef struct gcpi_nearby {
    const gcpi_buffer *buffers;
    int *leaf, *born;                      /* of a buffer; per instruction: buffers that were born there or before */
    int *last; size_t *next, *at;          /* per node: the last death, the highest end; per leaf: the address */
    int leaves;
    gcpi_heights full;                     /* no byte is free below */
    gcpi_near *near; int near_count;       /* those that a fit has found, the lowest at the root of a heap */
} gcpi_nearby;

/* Of so many buffers and instructions, or less. Gaps take less than that. */
static size_t gcpi_nearby_bytes(size_t buffers, size_t list)
{
    return buffers * (5 * sizeof(int) + 7 * sizeof(size_t) + sizeof(gcpi_near)) + (list + 2) * sizeof(int) +
           gcpi_heights_bytes(list);
}

/* For the buffers of an order; none is placed. ground: where buffers may begin. 0: not enough scratch. */
static int gcpi_nearby_make(gcpi_nearby *n, const gcpi_lives *l, const int *order, int count,
                            const gcpi_heights *ground, ptrdiff_t list, gcp_arena *a)
{
    for (n->leaves = 1; n->leaves < count; n->leaves *= 2) { }
    n->buffers = l->buffers;
    n->leaf = GCPI_SCRATCH(a, int, l->buffer_count + 1);
    n->born = GCPI_SCRATCH(a, int, list + 2);
    n->last = GCPI_SCRATCH(a, int, 2 * (ptrdiff_t)n->leaves);
    n->next = GCPI_SCRATCH(a, size_t, 2 * (ptrdiff_t)n->leaves);
    n->at = GCPI_SCRATCH(a, size_t, count + 1);
    n->near = GCPI_SCRATCH(a, gcpi_near, count + 1);
    if (!n->leaf || !n->born || !n->last || !n->next || !n->at || !n->near) return 0;
    if (!gcpi_heights_arrays(&n->full, list, a)) return 0;
    int *begin = n->born + 1;              /* counting sort by birth; then begin[t] has become the count up to t */
    for (int k = 0; k < count; k++) begin[n->buffers[order[k]].first + 1]++;
    for (ptrdiff_t t = 1; t <= list; t++) begin[t] += begin[t - 1];
    for (int k = 0; k < count; k++) n->leaf[order[k]] = begin[n->buffers[order[k]].first]++;
    n->born = begin;
    memcpy(n->full.most, ground->most, 2 * (size_t)n->full.leaves * sizeof *n->full.most);
    for (int k = 0; k < 2 * n->leaves; k++) n->last[k] = -1;
    return 1;
}

/* Buffer b lies at this place. */
static void gcpi_nearby_put(gcpi_nearby *n, int b, size_t at, size_t next)
{
    const gcpi_buffer *x = &n->buffers[b];
    if (at == next) return;
    n->at[n->leaf[b]] = at;
    for (int node = n->leaves + n->leaf[b]; node > 0; node /= 2) {
        n->last[node] = GCPI_MAX(n->last[node], x->last);
        n->next[node] = GCPI_MAX(n->next[node], next);
    }
    if (at <= gcpi_heights_most(&n->full, x->first, x->last)) gcpi_heights_raise(&n->full, x->first, x->last, at, next);
}

/* Puts what meets b and ends above an address on the heap: leaves that were born until b's death, below a node whose
   leaves begin at `first` and are so many. */
static void gcpi_nearby_find(gcpi_nearby *n, const gcpi_buffer *b, size_t above, int node, int first, int leaves)
{
    if (first >= n->born[b->last] || n->last[node] < b->first || n->next[node] <= above) return;
    if (leaves > 1) {
        gcpi_nearby_find(n, b, above, 2 * node, first, leaves / 2);
        gcpi_nearby_find(n, b, above, 2 * node + 1, first + leaves / 2, leaves / 2);
        return;
    }
    int k = n->near_count++;
    for (; k > 0 && n->near[(k - 1) / 2].at > n->at[first]; k = (k - 1) / 2) n->near[k] = n->near[(k - 1) / 2];
    n->near[k].at = n->at[first]; n->near[k].next = n->next[node];
}
static gcpi_near gcpi_nearby_lowest(gcpi_nearby *n)                 /* takes it off the heap */
{
    const gcpi_near lowest = n->near[0], end = n->near[--n->near_count];
    int k = 0;
    for (int below; (below = 2 * k + 1) < n->near_count; k = below) {
        if (below + 1 < n->near_count && n->near[below + 1].at < n->near[below].at) below++;
        if (n->near[below].at >= end.at) break;
        n->near[k] = n->near[below];
    }
    n->near[k] = end;
    return lowest;
}

/* The lowest place for b at `floor` or above. Takes *work down: a fit takes as long as 50 looks at placed buffers, and
   8 more for each that is found. */
static size_t gcpi_nearby_fit(gcpi_nearby *n, int b, size_t floor, double *work)
{
    const gcpi_buffer *x = &n->buffers[b];
    size_t at = GCPI_MAX(floor, gcpi_heights_most(&n->full, x->first, x->last));
    n->near_count = 0;
    gcpi_nearby_find(n, x, at, 1, 0, n->leaves);
    *work -= 50 + 8 * (double)n->near_count;
    while (n->near_count) {
        const gcpi_near o = gcpi_nearby_lowest(n);
        if (o.at >= at + x->bytes) break;
        at = GCPI_MAX(at, o.next);
    }
    return at;
}
