/* Placing copies to far memory. A search's order holds only the copies back, as runs of tasks that read nothing and
   whose seconds are a price. Here all copies get their positions: away (O) after the value's first run, waited for
   (A) when the link will have done it, back (P) as long before the reader as the link needs. Where the bytes within
   the limit do not allow that, computing waits. */
static int gcpi_far_make(gcpi_planner *q, int capacity)
{
    gcpi_far *f = &q->far;
    int **const places[] = { &f->waits, &f->backs, &f->next_back },
                **const values[] = { &f->made, &f->read, &f->end, &f->back, &f->wait, &f->next_wait };
    int ok = gcpi_order_make(&f->full, capacity, q->a);
    for (int i = 0; i < 3; i++) ok &= (*places[i] = GCPI_SCRATCH(q->a, int, capacity + 1)) != NULL;
    for (int i = 0; i < 6; i++) ok &= (*values[i] = GCPI_SCRATCH(q->a, int, q->m.values + 1)) != NULL;
    f->live = GCPI_SCRATCH(q->a, size_t, capacity + 1);
    f->fall = GCPI_SCRATCH(q->a, size_t, capacity + 1);
    f->clock = GCPI_SCRATCH(q->a, double, capacity + 1);
    return ok && f->live && f->fall && f->clock;
}

static double gcpi_far_seconds(const gcpi_planner *q, int v)
{
    return (double)q->p->items[q->m.item[v]].bytes / q->p->target.far_bytes_per_second;
}

static int gcpi_touches(const gcpi_model *m, int task, int v)
{
    int touches = 0;
    for GCPI_READS(m, task, i) touches |= m->read[i] == v;
    for GCPI_WRITES(m, task, i) touches |= m->written[i] == v;
    return touches;
}

/* Clock and positions of an order. Returns the bytes that far memory needs. */
static size_t gcpi_far_scan(gcpi_planner *q, const gcpi_order *o)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    size_t bytes = 0;
    for (int v = 0; v < m->values; v++) f->made[v] = f->read[v] = f->end[v] = f->back[v] = f->wait[v] = -1;
    f->clock[0] = 0;
    for (int i = 0; i <= o->count; i++) {
        f->waits[i] = f->backs[i] = -1;
        if (i == o->count) break;
        int task = gcpi_code_task(o, i), far = task >= q->p->task_count;
        f->clock[i + 1] = f->clock[i] + (far ? 0 : q->p->tasks[task].seconds);
        for GCPI_READS(m, task, k) if (f->end[m->read[k]] < 0) f->read[m->read[k]] = i;
        for GCPI_WRITES(m, task, k) {
            int v = m->written[k];
            if (far && f->back[v] < 0) { f->back[v] = i; bytes += m->bytes[m->group[v]]; }
            if (o->at[i] >= 0) f->made[v] = f->read[v] = i;
            else if (f->end[v] < 0) f->end[v] = i;
        }
    }
    return bytes;
}

/* A copy away: the value stays until the copy is done, or until its bytes are needed. *link: when the link is free. */
static void gcpi_far_away(gcpi_planner *q, const gcpi_order *o, int v, size_t limit, double *link)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    size_t bytes = m->bytes[m->group[v]];
    int w = f->read[v], task = gcpi_code_task(o, w),
        over = m->over[task] >= 0 && (m->under[2 * task] == v || m->under[2 * task + 1] == v);
    *link = GCPI_MAX(*link, f->clock[f->made[v] + 1]) + gcpi_far_seconds(q, v);
    int stays = !over || (f->clock[w] < *link && f->live[w] + bytes <= limit);
    if (over && stays) f->live[w] += bytes;            /* nobody works in place on it then */
    if (stays) for (w++; w < f->end[v] && f->clock[w] < *link && f->live[w] + bytes <= limit; w++) f->live[w] += bytes;
    double stall = *link - f->clock[w];
    for (int i = w; stall > 0 && i <= o->count; i++) f->clock[i] += stall;
    f->wait[v] = w;
    f->next_wait[v] = f->waits[w];
    f->waits[w] = v;
}

/* The copy back at position r of the order. *due: when the copy back after it needs the link. */
static void gcpi_far_back(gcpi_planner *q, const gcpi_order *o, int r, size_t limit, double *due)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    int v = m->written[m->written_first[gcpi_code_task(o, r)]], at = r;
    size_t bytes = m->bytes[m->group[v]];
    double start = GCPI_MIN(*due, f->clock[r]) - gcpi_far_seconds(q, v);
    while (at > f->wait[v] && f->clock[at] > start && f->live[at - 1] + bytes <= limit &&
           !gcpi_touches(m, gcpi_code_task(o, at - 1), v))
        f->live[--at] += bytes;
    *due = GCPI_MAX(start, f->clock[at]);
    f->next_back[r] = f->backs[at];
    f->backs[at] = r;
}

static int gcpi_far_emit(gcpi_planner *q, const gcpi_order *o)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    gcpi_order *out = &f->full;
    out->count = 0;
    if (o->count + 2 * m->values > out->capacity) return 0;
    for (int i = 0; i <= o->count; i++) {
        for (int v = f->waits[i]; v >= 0; v = f->next_wait[v]) out->at[out->count++] = m->fetch[v] + 1;
        for (int r = f->backs[i]; r >= 0; r = f->next_back[r]) out->at[out->count++] = o->at[r];
        if (i == o->count || gcpi_code_task(o, i) >= q->p->task_count) continue;
        out->at[out->count++] = o->at[i];
        for GCPI_WRITES(m, gcpi_code_task(o, i), k)
            if (o->at[i] >= 0 && f->back[m->written[k]] >= 0) out->at[out->count++] = m->fetch[m->written[k]] - 1;
    }
    return 1;
}

/* The order with its copies placed within the limit, judged by the timeline. An order without copies, or with placed
   ones, is returned as it is. NULL: the copies cannot be placed. */
static const gcpi_order *gcpi_far_place(gcpi_planner *q, gcpi_order *o, size_t limit)
{
    gcpi_far *f = &q->far;
    int copies = 0, placed = 0;
    double link = 0, due = HUGE_VAL;
    for (int i = 0; q->r->far && i < o->count; i++) {
        copies += gcpi_code_task(o, i) >= q->p->task_count;
        placed |= o->at[i] >= q->p->task_count;
    }
    if (!copies || placed) return o;
    gcpi_simulate(&q->m, o, f->live);
    if (!o->valid || gcpi_far_scan(q, o) > q->r->far) return NULL;
    for (int i = 0; i < o->count; i++)
        for
            GCPI_WRITES(&q->m, gcpi_code_task(o, i), k)
            if (o->at[i] >= 0 && f->back[q->m.written[k]] >= 0) gcpi_far_away(q, o, q->m.written[k], limit, &link);
    for (int i = o->count - 1; i >= 0; i--)
        if (gcpi_code_task(o, i) >= q->p->task_count) gcpi_far_back(q, o, i, limit, &due);
    if (!gcpi_far_emit(q, o)) return NULL;
    gcpi_simulate(&q->m, &f->full, NULL);
    gcpi_list_of(q->p, &f->full, &q->list);
    f->full.seconds = gcpi_timeline(q->p, &q->list, NULL, NULL, NULL);
    return &f->full;
}

/* Removes from an order what placing has put in. */
static void gcpi_far_strip(const gcpi_planner *q, gcpi_order *o)
{
    int kept = 0;
    for (int i = 0; i < o->count; i++) if (o->at[i] < q->p->task_count) o->at[kept++] = o->at[i];
    o->count = kept;
}

/* Whether value v idles longer than w does; of equals the first goes first. */
static int gcpi_far_longer(const gcpi_far *f, int v, int w)
{
    double a = f->clock[f->end[v]] - f->clock[f->read[v] + 1], b = f->clock[f->end[w]] - f->clock[f->read[w] + 1];
    return a > b || (a == b && v < w);
}

static void gcpi_far_sift(const gcpi_far *f, int *heap, int count, int i)
{
    int v = heap[i];
    for (int child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && gcpi_far_longer(f, heap[child + 1], heap[child])) child++;
        if (!gcpi_far_longer(f, heap[child], v)) break;
        heap[i] = heap[child];
    }
    heap[i] = v;
}

/* A heap of the values that idle across position `at` and can be copied away, the longest wait first. */
static int gcpi_far_idle(gcpi_planner *q, const gcpi_order *o, int at, int *heap)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    int count = 0;
    for (int v = 0; v < m->values; v++) f->read[v] = f->end[v] = -1;
    for (int i = 0; i <= at; i++) {
        for GCPI_READS(m, gcpi_code_task(o, i), k) f->read[m->read[k]] = i;
        for GCPI_WRITES(m, gcpi_code_task(o, i), k) f->read[m->written[k]] = i;
    }
    for (int i = o->count - 1; i > at; i--) {
        for GCPI_WRITES(m, gcpi_code_task(o, i), k) f->end[m->written[k]] = -1;
        for GCPI_READS(m, gcpi_code_task(o, i), k) f->end[m->read[k]] = i;
    }
    for (int v = 0; v < m->values; v++)
        if (m->fetch[v] >= 0 && f->back[v] < 0 && f->read[v] >= 0 && f->read[v] < at && f->end[v] > at &&
            f->clock[f->end[v]] > f->clock[f->read[v] + 1])
            heap[count++] = v;
    for (int i = count / 2 - 1; i >= 0; i--) gcpi_far_sift(f, heap, count, i);
    return count;
}

/* Values that idle across position `at` are copied away meanwhile, until the bytes there are within room. *left: free
   bytes of far memory. */
static int gcpi_far_relieve_at(gcpi_planner *q, const gcpi_order *o, int at, size_t room, size_t *left)
{
    gcpi_far *f = &q->far;
    int *heap = f->next_back, count = gcpi_far_idle(q, o, at, heap);
    size_t live = f->live[at], fallen = 0;
    while (live > room && count) {
        int v = heap[0], reader = f->end[v];
        size_t bytes = q->m.bytes[q->m.group[v]];
        heap[0] = heap[--count];
        if (count) gcpi_far_sift(f, heap, count, 0);
        if (bytes > *left) continue;
        *left -= bytes; live -= bytes;
        f->fall[f->read[v] + 1] += bytes;
        f->fall[reader] -= bytes;                     /* may wrap; the sums do not */
        f->back[v] = reader;
        f->next_wait[v] = f->waits[reader];
        f->waits[reader] = v;
    }
    for (int i = 0; i <= o->count; i++) {
        fallen += f->fall[i];
        f->live[i] -= fallen;
        f->fall[i] = 0;
    }
    return live <= room;
}

/* Adds copies back to the order until its bytes are within room; 0: they do not get there. */
static int gcpi_far_relieve(gcpi_planner *q, gcpi_order *o, size_t room)
{
    gcpi_far *f = &q->far;
    size_t used, left;
    gcpi_simulate(&q->m, o, f->live);
    if (!o->valid || (used = gcpi_far_scan(q, o)) > q->r->far) return 0;
    left = q->r->far - used;
    for (;;) {
        int at = 0;
        for (int i = 1; i < o->count; i++) if (f->live[i] > f->live[at]) at = i;
        if (f->live[at] <= room) break;
        if (!gcpi_far_relieve_at(q, o, at, room, &left)) return 0;
    }
    gcpi_order *out = &f->full;
    out->count = 0;
    if (o->count + q->m.values > out->capacity) return 0;
    for (int i = 0; i < o->count; i++) {
        for (int v = f->waits[i]; v >= 0; v = f->next_wait[v]) out->at[out->count++] = ~q->m.fetch[v];
        out->at[out->count++] = o->at[i];
    }
    gcpi_order_copy(o, out);
    gcpi_simulate(&q->m, o, NULL);
    return o->valid && o->peak <= room;
}
