/* Heights: the most of any stretch of moments, in logarithmic time. A node of a binary tree has the most of what is
   below it. To raise all moments of a stretch that are at its most is one change at each node that the stretch covers;
   the nodes below learn of it when they are looked at ("segment tree beats"). */

typedef struct gcpi_heights { size_t *most; int leaves; } gcpi_heights;    /* node n is above 2n and 2n + 1 */

/* For so many moments, all 0. 0: not enough scratch. */
static int gcpi_heights_arrays(gcpi_heights *h, ptrdiff_t moments, gcp_arena *a)
{
    for (h->leaves = 1; h->leaves < moments; h->leaves *= 2) { }
    h->most = GCPI_SCRATCH(a, size_t, 2 * (ptrdiff_t)h->leaves);
    return h->most != NULL;
}
static size_t gcpi_heights_bytes(size_t moments) { return 4 * (moments + 1) * sizeof(size_t); }   /* or less */

static size_t *gcpi_heights_leaf(const gcpi_heights *h, ptrdiff_t moment) { return &h->most[h->leaves + moment]; }

/* Once all leaves are set. */
static void gcpi_heights_ready(const gcpi_heights *h)
{
    for (int n = h->leaves - 1; n > 0; n--) h->most[n] = GCPI_MAX(h->most[2 * n], h->most[2 * n + 1]);
}

/* A node is higher than those below it where all of their highest moments were raised: raises them. */
static void gcpi_heights_pass(const gcpi_heights *h, int node)
{
    size_t *below = &h->most[2 * node], before = GCPI_MAX(below[0], below[1]);
    if (h->most[node] == before) return;
    for (int k = 0; k < 2; k++) if (below[k] == before) below[k] = h->most[node];
}

/* The most from moment `first` to `last`, of those below a node whose moments are begin to end. */
static size_t gcpi_heights_below(const gcpi_heights *h, int node, int begin, int end, int first, int last)
{
    if (first > end || last < begin) return 0;
    if (first <= begin && end <= last) return h->most[node];
    gcpi_heights_pass(h, node);
    const int middle = begin + (end - begin) / 2;
    const size_t left = gcpi_heights_below(h, 2 * node, begin, middle, first, last),
                 right = gcpi_heights_below(h, 2 * node + 1, middle + 1, end, first, last);
    return GCPI_MAX(left, right);
}
static size_t gcpi_heights_most(const gcpi_heights *h, int first, int last)
{
    return gcpi_heights_below(h, 1, 0, h->leaves - 1, first, last);
}

/* Raises moments of a stretch from the height `from`, which is the most there, to `to`. */
static void gcpi_heights_raise_below(const gcpi_heights *h, int node, int begin, int end, const int stretch[2],
                                     const size_t from_to[2])
{
    if (stretch[0] > end || stretch[1] < begin || h->most[node] < from_to[0]) return;
    if (stretch[0] <= begin && end <= stretch[1]) { h->most[node] = from_to[1]; return; }
    gcpi_heights_pass(h, node);
    const int middle = begin + (end - begin) / 2;
    gcpi_heights_raise_below(h, 2 * node, begin, middle, stretch, from_to);
    gcpi_heights_raise_below(h, 2 * node + 1, middle + 1, end, stretch, from_to);
    h->most[node] = GCPI_MAX(h->most[2 * node], h->most[2 * node + 1]);
}
static void gcpi_heights_raise(const gcpi_heights *h, int first, int last, size_t from, size_t to)
{
    const int stretch[2] = { first, last };
    const size_t from_to[2] = { from, to };
    gcpi_heights_raise_below(h, 1, 0, h->leaves - 1, stretch, from_to);
}
