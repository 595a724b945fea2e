/* GCP_POLICY_BUDGET: exact search of small graphs by live bytes. At most 14 forward ops and values: Dijkstra over (next
   task, set of live values). Edges: the next task; a task again; a value dropped. Least seconds within a limit, or
   (limit 0) the least peak that any order has. */
enum { GCPI_EXACT_VALUES = 14 };

typedef struct gcpi_exact {
    const gcpi_model *m;
    size_t limit, *bytes;             /* bytes: per set */
    /* sets of values; mates: per value, those of its group; useful: per next task, what may still be read */
    unsigned *mates, *useful, *reads, *writes, *clashes;
    double *cost;                     /* per state: (next task << values) + set; to it, or from there on */
    int *heap, *place, count;         /* states; per state, its index in the heap + 1, -1: settled */
    /* per state: how it was reached: task, ~task for a task again, INT32_MAX: a value dropped */
    int *edge;
    unsigned *from;                   /* per state: the set it was reached from */
    /* for other orders than the fastest: by chance a run counts up to this share more seconds; others in each turn */
    double noise; int turn;
} gcpi_exact;

/* What a run of task before `next` counts. */
static double gcpi_exact_seconds(const gcpi_exact *x, int next, int task)
{
    const double seconds = x->m->p->tasks[task].seconds;
    if (!(x->noise > 0)) return seconds;
    uint64_t random = (uint64_t)(x->turn * 65536 + next * 256 + task + 1) * 6364136223846793005u;
    for (int i = 0; i < 3; i++) gcpi_below(&random, 2);                /* neighbours' first numbers are alike */
    return seconds * (1 + x->noise * gcpi_below(&random, 65536) / 65536.0);
}

static void gcpi_exact_sift(gcpi_exact *x, int i)
{
    int state = x->heap[i];
    for (; i > 0 && x->cost[x->heap[(i - 1) / 2]] > x->cost[state]; i = (i - 1) / 2) {
        x->heap[i] = x->heap[(i - 1) / 2];
        x->place[x->heap[i]] = i + 1;
    }
    for (int child; (child = 2 * i + 1) < x->count; i = child) {
        if (child + 1 < x->count && x->cost[x->heap[child + 1]] < x->cost[x->heap[child]]) child++;
        if (x->cost[x->heap[child]] >= x->cost[state]) break;
        x->heap[i] = x->heap[child]; x->place[x->heap[i]] = i + 1;
    }
    x->heap[i] = state; x->place[state] = i + 1;
}

static void gcpi_exact_reach(gcpi_exact *x, int next, unsigned set, double cost, int edge, unsigned from)
{
    int state = (int)(((unsigned)next << x->m->values) + (set & x->useful[next]));
    if (x->place[state] < 0 || (x->place[state] > 0 && x->cost[state] <= cost)) return;
    x->cost[state] = cost; x->edge[state] = edge; x->from[state] = from;
    if (x->place[state] == 0) { x->heap[x->count] = state; x->place[state] = ++x->count; }
    gcpi_exact_sift(x, x->place[state] - 1);
}

/* Whether task, the next one or one again, may run on a set. */
static int gcpi_exact_may(const gcpi_exact *x, int next, unsigned set, int task)
{
    const int again = task != next;
    if (again && (!x->m->again[task] || !(x->writes[task] & x->useful[next] & ~set))) return 0;
    return !(x->reads[task] & ~set) && !(again && (next > x->m->until[task] || x->clashes[task] & set));
}

/* Bytes beside forward values while task runs before `next`. */
static size_t gcpi_exact_beside(const gcpi_exact *x, int next, int task)
{
    return task == next ? x->m->during[task] : x->m->before[next] + x->m->workspace[task];
}

/* The ways of working in place: side 0 or 1, or -1: not so. *after: what lives behind the task, *bytes while it runs.
   0: there is no such way, or it takes too many bytes. */
static int gcpi_exact_side(const gcpi_exact *x, int next, unsigned set, int task, int side, unsigned *after,
                           size_t *bytes)
{
    const gcpi_model *m = x->m;
    *after = set | x->writes[task];
    *bytes = x->bytes[*after] + gcpi_exact_beside(x, next, task);
    if (side >= 0) {
        const int under = m->under[2 * task + side], z = m->over[task];
        if (z < 0 || under < 0) return 0;
        *after &= ~(1u << under);
        if (set & x->mates[z] || *after & x->mates[under]) return 0;          /* others of the group live */
        *bytes -= m->bytes[m->group[z]];
    }
    return !x->limit || *bytes <= x->limit;
}

/* Runs task (the next one, or one again) on a set, with each way of working in place. */
static void gcpi_exact_run(gcpi_exact *x, int next, unsigned set, int task, double cost)
{
    const int again = task != next;
    unsigned after;
    size_t bytes;
    if (!gcpi_exact_may(x, next, set, task)) return;
    for (int side = -1; side < 2; side++)
        if (gcpi_exact_side(x, next, set, task, side, &after, &bytes))
            gcpi_exact_reach(x, again ? next : next + 1, after,
                             x->limit ? cost + gcpi_exact_seconds(x, next, task) : GCPI_MAX(cost, (double)bytes),
                             again ? ~task : task, set);
}

static int gcpi_exact_small(const gcpi_model *m)
{
    const int ops = gcpi_is_graph(m->p) ? m->p->forward : m->p->tape->op_count;
    return m->values <= GCPI_EXACT_VALUES && ops <= GCPI_EXACT_VALUES;
}

static int gcpi_exact_make(gcpi_exact *x, const gcpi_model *m, gcp_arena *a)
{
    int tasks = m->p->task_count;
    memset(x, 0, sizeof *x);
    x->m = m;
    if (!gcpi_exact_small(m)) return 0;
    ptrdiff_t sets = (ptrdiff_t)1 << m->values, states = sets * (tasks + 1);
    x->bytes = GCPI_SCRATCH(a, size_t, sets);
    x->mates = GCPI_SCRATCH(a, unsigned, m->values + 1);
    x->useful = GCPI_SCRATCH(a, unsigned, tasks + 1);
    x->reads = GCPI_SCRATCH(a, unsigned, tasks + 1);
    x->writes = GCPI_SCRATCH(a, unsigned, tasks + 1); x->clashes = GCPI_SCRATCH(a, unsigned, tasks + 1);
    x->cost = GCPI_SCRATCH(a, double, states);
    x->heap = GCPI_SCRATCH(a, int, states);
    x->place = GCPI_SCRATCH(a, int, states);
    x->edge = GCPI_SCRATCH(a, int, states); x->from = GCPI_SCRATCH(a, unsigned, states);
    if (!x->bytes || !x->mates || !x->useful || !x->reads || !x->writes || !x->clashes || !x->cost || !x->heap ||
        !x->place || !x->edge || !x->from)
        return 0;
    for (int t = 0; t < tasks; t++) {
        for GCPI_READS(m, t, k) x->reads[t] |= 1u << m->read[k];
        for GCPI_WRITES(m, t, k) x->writes[t] |= 1u << m->written[k];
        for (int v = 0; v < m->values; v++) x->clashes[t] |= (unsigned)(m->shares[t] && gcpi_clash(m, t, v)) << v;
    }
    for (int v = 0; v < m->values; v++) {
        if (m->lasting[v]) x->useful[tasks] |= 1u << v;
        for (int u = 0; u < m->values; u++) x->mates[v] |= (unsigned)(m->group[u] == m->group[v]) << u;
    }
    for (int t = tasks - 1; t >= 0; t--) {
        x->useful[t] = x->useful[t + 1] | x->reads[t];
        for (int f = m->p->forward - 1; f >= 0; f--)
            if (m->again[f] && x->writes[f] & x->useful[t]) x->useful[t] |= x->reads[f];
    }
    for (ptrdiff_t set = 1; set < sets; set++) {
        int top = m->values - 1;
        while (!((unsigned)set >> top & 1)) top--;
        unsigned rest = (unsigned)set & ~(1u << top);
        x->bytes[set] = x->bytes[rest] + (rest & x->mates[top] ? 0 : m->bytes[m->group[top]]);
    }
    return 1;
}

static void gcpi_exact_order(const gcpi_exact *x, int state, gcpi_order *out)
{
    const gcpi_model *m = x->m;
    int count = out->capacity;
    for (int next = m->p->task_count; x->from[state] != UINT32_MAX;) {
        int edge = x->edge[state];
        if (edge != INT32_MAX && count > 0) out->at[--count] = edge;
        next -= edge >= 0 && edge != INT32_MAX;
        state = (int)(((unsigned)next << m->values) + x->from[state]);
    }
    out->count = out->capacity - count;
    memmove(out->at, out->at + count, (size_t)out->count * sizeof *out->at);
    gcpi_simulate(m, out, NULL);
    out->valid &= count > 0;
}

/* 1: out holds the best order; 0: there is none within the limit. */
static int gcpi_exact_search(gcpi_exact *x, size_t limit, gcpi_order *out)
{
    const gcpi_model *m = x->m;
    int tasks = m->p->task_count;
    ptrdiff_t states = ((ptrdiff_t)tasks + 1) << m->values;
    x->limit = limit; x->count = 0;
    memset(x->place, 0, (size_t)states * sizeof *x->place);
    gcpi_exact_reach(x, 0, 0, 0, INT32_MAX, UINT32_MAX);
    while (x->count) {
        int state = x->heap[0], next = state >> m->values;
        unsigned set = (unsigned)state & ((1u << m->values) - 1);
        double cost = x->cost[state];
        x->heap[0] = x->heap[--x->count];
        if (x->count) gcpi_exact_sift(x, 0);
        x->place[state] = -1;
        if (next == tasks && set == x->useful[tasks]) {
            if (limit) { gcpi_exact_order(x, state, out); return out->valid; }
            return gcpi_exact_search(x, GCPI_MAX((size_t)cost, 1), out);     /* of those with this peak, the fastest */
        }
        if (next == tasks) continue;
        gcpi_exact_run(x, next, set, next, cost);
        for (int f = 0; f < m->p->forward && f < next; f++) gcpi_exact_run(x, next, set, f, cost);
        for (int v = 0; v < m->values; v++)
            if (set >> v & 1) gcpi_exact_reach(x, next, set & ~(1u << v), cost, INT32_MAX, set);
    }
    return 0;
}

/* Orders within a limit, for one that has a layout: the fastest, others as fast, others nearly as fast; then the same
   for a peak below, thrice. 0: there is no order i. */
enum { GCPI_EXACT_PEAKS = 4, GCPI_EXACT_NOISES = 6, GCPI_EXACT_ORDERS = GCPI_EXACT_PEAKS * GCPI_EXACT_NOISES };
static int gcpi_exact_other(gcpi_exact *x, int i, size_t *limit, gcpi_order *out)
{
    static const double noises[GCPI_EXACT_NOISES] = { 0, 1e-6, 1e-6, 1e-6, 0.05, 0.2 };
    x->turn = i; x->noise = noises[i % GCPI_EXACT_NOISES];
    if (i > 0 && x->noise == 0) *limit = out->peak - 1;
    const int found = *limit > 0 && gcpi_exact_search(x, *limit, out);
    x->noise = 0;
    return found;
}

/* From the end: the least seconds from each state to the end within the limit. */

static int gcpi_exact_state(const gcpi_exact *x, int next, unsigned set)
{
    return (int)(((unsigned)next << x->m->values) + (set & x->useful[next]));
}

static void gcpi_exact_back(gcpi_exact *x, int next, unsigned set, int task, int *better)
{
    const int then = task == next ? next + 1 : next, state = gcpi_exact_state(x, next, set);
    unsigned after;
    size_t bytes;
    if (!gcpi_exact_may(x, next, set, task)) return;
    for (int side = -1; side < 2; side++) {
        if (!gcpi_exact_side(x, next, set, task, side, &after, &bytes)) continue;
        const double cost = x->m->p->tasks[task].seconds + x->cost[gcpi_exact_state(x, then, after)];
        if (cost >= x->cost[state]) continue;
        x->cost[state] = cost;
        *better = 1;
    }
}

/* The states before `next`, from those behind it. A task again leads to a larger set, a drop to a smaller one. */
static void gcpi_exact_layer(gcpi_exact *x, int next)
{
    const unsigned all = x->useful[next];
    const size_t beside = x->m->before[next];
    for (int better = 1, first = 1; better; first = 0) {
        unsigned set = all;
        better = 0;
        do {
            if (x->bytes[set] + beside > x->limit) continue;
            if (first) gcpi_exact_back(x, next, set, next, &better);
            for (int f = 0; f < x->m->p->forward && f < next; f++) gcpi_exact_back(x, next, set, f, &better);
        } while ((set = (set - 1) & all) != all);
        for (set = all & (0 - all); set; set = (set - all) & all) {
            double *cost = &x->cost[gcpi_exact_state(x, next, set)];
            for (int v = 0; v < x->m->values; v++) {
                const double less = set >> v & 1 ? x->cost[gcpi_exact_state(x, next, set & ~(1u << v))] : HUGE_VAL;
                if (less < *cost) { *cost = less; better = 1; }
            }
        }
    }
}

/* Sets x->cost, HUGE_VAL: the end is out of reach. Returns the least seconds of a step. */
static double gcpi_exact_costs(gcpi_exact *x, size_t limit)
{
    const int tasks = x->m->p->task_count;
    const ptrdiff_t states = ((ptrdiff_t)tasks + 1) << x->m->values;
    x->limit = limit;
    for (ptrdiff_t i = 0; i < states; i++) x->cost[i] = HUGE_VAL;
    x->cost[gcpi_exact_state(x, tasks, x->useful[tasks])] = 0;
    for (int next = tasks - 1; next >= 0; next--) gcpi_exact_layer(x, next);
    return x->cost[0];
}
