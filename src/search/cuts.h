/* GCP_POLICY_BUDGET: minimum cuts, the bound. A resident byte has a price. A value that is needed later is kept (its
   bytes times the price), or its task runs again (seconds), which needs its inputs. The least total is a minimum
   cut: a value on the source side is needed, and kept if its task is on the sink side. Keep-sets for many prices are
   starts for the search. For each position in the order, the cut also bounds what any order must pay from there on
   (Lagrangian of the bytes that are free there), so that the answer comes with its gap. */
enum { GCPI_CUT_WORK = 500000000, GCPI_CUT_PLACES = 32 };
typedef struct gcpi_cut {
    const gcpi_model *m;
    /* node 0: source, 1: sink, 2 + value, 2 + values + task */
    int nodes, arcs, *head, *next, *to, *level, *at, *path;
    double *room, kept;               /* per arc: what may still flow; kept: bytes that the cut keeps */
    double price;                     /* the best one at this position, or 0 */
    double work;                      /* arcs that may still be looked at: a long chain can take thousands of phases */
    size_t *own;                      /* per value: bytes that keeping it adds */
    int *needed;                      /* per value: last task that reads it; if it lives to the end, the last of all */
    /* per value: resident at the position in question; a task of the window behind it reads it */
    unsigned char *free, *wanted;
} gcpi_cut;

static size_t gcpi_dense_bytes(const gcpi_problem *p, int item)      /* without what lies between its rows */
{
    const gcpi_item *x = &p->items[item];
    if (!x->row || x->pitch == x->row) return x->bytes;
    size_t row = gcpi_item_row(x), pitch = gcpi_item_pitch(x);
    return (x->bytes - GCPI_MIN(row, x->bytes)) / pitch * row + row;
}

static int gcpi_cut_make(gcpi_cut *c, const gcpi_model *m, gcp_arena *a)
{
    const gcpi_problem *p = m->p;
    int arcs = 2 * (3 * m->values + m->read_first[p->forward] * 2 + p->forward + 8);
    memset(c, 0, sizeof *c);
    c->m = m; c->work = GCPI_CUT_WORK;
    c->nodes = 2 + m->values + p->forward;
    c->head = GCPI_SCRATCH(a, int, c->nodes); c->level = GCPI_SCRATCH(a, int, c->nodes);
    c->at = GCPI_SCRATCH(a, int, c->nodes); c->path = GCPI_SCRATCH(a, int, c->nodes + 1);
    c->next = GCPI_SCRATCH(a, int, arcs); c->to = GCPI_SCRATCH(a, int, arcs); c->room = GCPI_SCRATCH(a, double, arcs);
    c->own = GCPI_SCRATCH(a, size_t, m->values + 1);
    c->needed = GCPI_SCRATCH(a, int, m->values + 1);
    c->free = GCPI_SCRATCH(a, unsigned char, m->values + 1);
    c->wanted = GCPI_SCRATCH(a, unsigned char, m->values + 1);
    if (!c->head || !c->level || !c->at || !c->path || !c->next || !c->to || !c->room || !c->own || !c->needed ||
        !c->free || !c->wanted)
        return 0;
    for (int i = 0; i < p->item_count; i++) {
        int v = m->value_of[i];
        if (v < 0) continue;
        c->own[v] = p->items[p->items[i].root].next < 0 ? gcpi_round(p->items[i].bytes, p->target.align)
                                                        : gcpi_dense_bytes(p, i);
        const gcpi_task *t = &p->tasks[m->producer[v]];
        for (int k = 0; k < t->count; k++) {         /* a view adds only what is not its inputs' bytes */
            int x = p->operands[t->operands + k].item;
            if (p->operands[t->operands + k].mode == GCPI_READ && p->items[x].root == p->items[i].root)
                c->own[v] -= GCPI_MIN(c->own[v], gcpi_dense_bytes(p, x));
        }
    }
    for (int v = 0; v < m->values; v++) c->needed[v] = m->producer[v];
    for (int t = 0; t < p->task_count; t++) for GCPI_READS(m, t, k) c->needed[m->read[k]] = t;
    for (int v = 0; v < m->values; v++) if (m->lasting[v]) c->needed[v] = p->task_count - 1;
    return 1;
}

static void gcpi_arc(gcpi_cut *c, int from, int to, double room)
{
    for (int back = 0; back < 2; back++) {
        c->to[c->arcs] = back ? from : to;
        c->room[c->arcs] = back ? 0 : room;
        c->next[c->arcs] = c->head[back ? to : from];
        c->head[back ? to : from] = c->arcs++;
    }
}

/* The network at a price for position k: the values made before k that are read after it (in backward, or at it), and
   what it takes to make them again. */
static void gcpi_cut_build(gcpi_cut *c, int k, double price)
{
    const gcpi_model *m = c->m;
    int forward = GCPI_MIN(k, m->p->forward), tasks = 2 + m->values;
    const double never = 1e30;
    c->arcs = 0;
    for (int i = 0; i < c->nodes; i++) c->head[i] = -1;
    for (int f = 0; f < forward; f++) {
        if (!m->again[f]) continue;
        gcpi_arc(c, tasks + f, 1, m->p->tasks[f].seconds);
        for
            GCPI_READS(m, f, i)
            if (!c->free[m->read[i]] && m->again[m->producer[m->read[i]]])
                gcpi_arc(c, tasks + f, 2 + m->read[i], never);
        for GCPI_WRITES(m, f, i) {
            int v = m->written[i];
            if (c->free[v]) continue;
            gcpi_arc(c, 2 + v, tasks + f, price * (double)c->own[v]);
            for
                GCPI_READS(m, f, j)
                if (m->group[m->read[j]] == m->group[v] && !c->free[m->read[j]] && m->again[m->producer[m->read[j]]])
                    gcpi_arc(c, 2 + v, 2 + m->read[j], never);
            if (c->wanted[v]) gcpi_arc(c, 0, 2 + v, never);
        }
    }
}

static int gcpi_cut_levels(gcpi_cut *c)
{
    int first = 0, count = 1;
    for (int i = 0; i < c->nodes; i++) { c->level[i] = -1; c->at[i] = c->head[i]; }
    c->level[0] = 0;
    c->path[0] = 0;                                  /* as a queue */
    while (first < count) {
        int node = c->path[first++];
        for (int e = c->head[node]; e >= 0; c->work--, e = c->next[e])
            if (c->room[e] > 0 && c->level[c->to[e]] < 0) {
                c->level[c->to[e]] = c->level[node] + 1;
                c->path[count++] = c->to[e];
            }
    }
    return c->level[1] >= 0;
}

/* Pushes what one path from the source along levels can take; 0: there is no path left. path: its arcs. */
static double gcpi_cut_push(gcpi_cut *c)
{
    int node = 0, depth = 0;
    while (node != 1) {
        int e = c->at[node];
        while (e >= 0 && (c->room[e] <= 0 || c->level[c->to[e]] != c->level[node] + 1)) e = c->next[e];
        c->at[node] = e;
        c->work -= 2;
        if (e >= 0) { c->path[depth++] = e; node = c->to[e]; continue; }
        if (!depth) return 0;
        c->level[node] = -1;
        node = c->to[c->path[--depth] ^ 1];
    }
    double least = 1e300;
    for (int i = 0; i < depth; i++) least = GCPI_MIN(least, c->room[c->path[i]]);
    for (int i = 0; i < depth; i++) { c->room[c->path[i]] -= least; c->room[c->path[i] ^ 1] += least; }
    return least;
}

static int gcpi_cut_keeps(const gcpi_cut *c, int v)
{
    return c->level[2 + v] >= 0 && c->level[2 + c->m->values + c->m->producer[v]] < 0;
}

/* Dinic's algorithm (1970). Returns the least seconds + price x bytes; where c->work ends, what it is at least. */
static double gcpi_cut_solve(gcpi_cut *c, int k, double price)
{
    double flow = 0, more;
    gcpi_cut_build(c, k, price);
    while (gcpi_cut_levels(c) && c->work > 0) while (c->work > 0 && (more = gcpi_cut_push(c)) > 0) flow += more;
    c->kept = 0;
    for (int v = 0; v < c->m->values; v++) if (gcpi_cut_keeps(c, v)) c->kept += (double)c->own[v];
    return flow;
}

/* The bytes that are live in any case while task k runs. Values that are resident then become free. A value that lives
   to the end is live in any case only if it cannot be made again. */
static size_t gcpi_cut_place(gcpi_cut *c, int k)
{
    const gcpi_model *m = c->m;
    size_t live = 0, now;
    memset(m->live, 0, m->state_bytes);
    for (int v = 0; v < m->values; v++)
        if (m->lasting[v] && !m->again[m->producer[v]] && m->producer[v] <= k) live += gcpi_revive(m, v);
    now = gcpi_pass_task(m, k, &live) + m->during[k];
    for GCPI_WRITES(m, k, i) m->members[m->group[m->written[i]]]++;
    for (int v = 0; v < m->values; v++) c->free[v] = m->members[m->group[v]] > 0;
    return now;
}

/* The window from task `from` to task `to`: what it wants is what these read, and behind the last, what lives on. */
static void gcpi_cut_window(gcpi_cut *c, int from, int to)
{
    const gcpi_model *m = c->m;
    memset(c->wanted, 0, (size_t)m->values);
    for (int t = from; t <= to; t++) for GCPI_READS(m, t, i) c->wanted[m->read[i]] = 1;
    for (int v = 0; v < m->values && to == m->p->task_count - 1; v++) c->wanted[v] |= m->lasting[v];
}

/* Of the bytes that are free at k, those that values can fill: where sizes have a unit, many of it, and all the small
   ones, which are not looked at. */
static double gcpi_cut_filled(const gcpi_cut *c, int k, double capacity)
{
    enum { SMALL = 64 };
    size_t most = 0, unit = 0;
    double dust = 0;
    for (int v = 0; v < c->m->values; v++)
        if (!c->free[v] && c->m->producer[v] < k) most = GCPI_MAX(most, c->own[v]);
    for (int v = 0; v < c->m->values; v++) {
        if (c->free[v] || c->m->producer[v] >= k) continue;
        if (c->own[v] < most / SMALL) dust += (double)c->own[v];
        else unit = gcpi_common_divisor(unit, c->own[v]);
    }
    return unit ? GCPI_MIN(capacity, floor(capacity / (double)unit) * (double)unit + dust) : capacity;
}

/* A lower bound of what any order runs again from when task k first runs until task `to` does, because only `limit`
   bytes are there at k. */
static double gcpi_cut_bound_at(gcpi_cut *c, int k, int to, size_t limit)
{
    size_t footprint = gcpi_cut_place(c, k);
    double capacity = (double)limit - (double)footprint, low = 0, high = 0, best = 0, need = 0, cost = 0,
           dearest = 0;
    gcpi_cut_window(c, k, to);
    for (int v = 0; v < c->m->values; v++)
        if (!c->free[v] && c->m->producer[v] < k && c->wanted[v]) {
            need += (double)c->own[v];
            cost += c->m->p->tasks[c->m->producer[v]].seconds;
        }
    if (capacity < 0 || need <= capacity) return 0;
    capacity = gcpi_cut_filled(c, k, capacity);
    for (int step = 0; step < 24; step++) {
        double price = high > 0 ? (low + high) / 2 : low > 0 ? 4 * low : c->price > 0 ? c->price : cost / need,
               value = gcpi_cut_solve(c, k, price) - price * capacity;
        if (value > best) { best = value; dearest = price; }
        if (c->kept > capacity) low = price;
        else high = price;
        if (high > 0 && high - low < 0.01 * high) break;
    }
    if (best > 0) c->price = dearest;
    return best;
}

/* The bytes that task k takes in any case. *own: the part of the crossing values that these bytes hold. All values are
   dead before and after. */
static size_t gcpi_footprint(const gcpi_cut *c, int k, size_t *own)
{
    const gcpi_model *m = c->m;
    size_t live = 0, now = gcpi_pass_task(m, k, &live) + m->during[k];
    *own = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = pass ? m->written_first[k] : m->read_first[k];
             i < (pass ? m->written_first[k + 1] : m->read_first[k + 1]); i++) {
            int v = pass ? m->written[i] : m->read[i];
            m->live[v] = 0;
            m->members[m->group[v]] = 0;
            for (int x = m->p->items[m->item[v]].root; x >= 0; x = m->p->items[x].next)
                if (m->value_of[x] >= 0 && m->producer[m->value_of[x]] < k && c->needed[m->value_of[x]] >= k)
                    *own += c->own[m->value_of[x]];
        }
    return now;
}

static void gcpi_all_dead(const gcpi_model *m)
{
    memset(m->live, 0, m->state_bytes);
}

/* The bytes below which nothing fits. */
static size_t gcpi_least_bytes(gcpi_cut *c)
{
    size_t most = 0, own;
    gcpi_all_dead(c->m);
    for (int t = 0; t < c->m->p->task_count; t++) {
        size_t now = gcpi_footprint(c, t, &own);
        most = GCPI_MAX(most, now);
    }
    return most;
}

/* The most crowded tasks, some way apart, first to last. excess: per task, bytes that want to be there above the limit;
   becomes 0 around each. Returns how many. */
static int gcpi_cut_places(const gcpi_cut *c, double *excess, int most, int *at)
{
    int tasks = c->m->p->task_count, apart = tasks / (4 * most), n = 0;
    for (; n < most; n++) {
        int worst = 0, i = n;
        for (int t = 1; t < tasks; t++) if (excess[t] > excess[worst]) worst = t;
        if (excess[worst] <= 0) break;
        for (; i > 0 && at[i - 1] > worst; i--) at[i] = at[i - 1];
        at[i] = worst;
        for (int t = GCPI_MAX(0, worst - apart); t <= GCPI_MIN(tasks - 1, worst + apart); t++) excess[t] = 0;
    }
    return n;
}

/* The best sum of bounds of windows that do not meet: no run again falls into two of them. */
static double gcpi_cut_windows(gcpi_cut *c, const int *at, int n, size_t limit)
{
    double sum[GCPI_CUT_PLACES + 1];
    sum[n] = 0;
    for (int i = n - 1; i >= 0; i--) {
        double most = HUGE_VAL;                          /* no window from i on that ends earlier has a higher bound */
        sum[i] = sum[i + 1];
        c->price = 0;
        for (int j = n; j > i && most + sum[i + 1] > sum[i]; j--) {
            most = gcpi_cut_bound_at(c, at[i], j == n ? c->m->p->task_count - 1 : at[j], limit);
            sum[i] = GCPI_MAX(sum[i], most + sum[j]);
        }
    }
    return sum[0];
}

/* A lower bound of every order's seconds within `limit` bytes, from cuts at the most crowded tasks. excess: zeros, one
   more than tasks. */
static double gcpi_bound(gcpi_cut *c, size_t limit, int places, double *excess)
{
    const gcpi_model *m = c->m;
    int tasks = m->p->task_count, at[GCPI_CUT_PLACES];
    double crossing = 0;
    for (int v = 0; v < m->values; v++) {
        excess[m->producer[v] + 1] += (double)c->own[v];
        excess[c->needed[v] + 1] -= (double)c->own[v];
    }
    gcpi_all_dead(m);
    for (int t = 0; t < tasks; t++) {
        size_t own, footprint = gcpi_footprint(c, t, &own);
        crossing += excess[t];
        excess[t] = (double)footprint - (double)limit;
        if (excess[t] > 0) return HUGE_VAL;
        excess[t] += crossing - (double)own;
    }
    int n = gcpi_cut_places(c, excess, GCPI_MIN(places, GCPI_CUT_PLACES), at);
    return m->seconds + gcpi_cut_windows(c, at, n, limit);
}
