/* When instructions run: computing, and a link to far memory. */

/* Far memory. One link copies values away and back, in the order of the list, while tasks compute. */
/* at, end: in the slab (end 0: no copy); back: it copies into the slab */
typedef struct gcpi_transfer { size_t at, end; int item, back; double done; } gcpi_transfer;

/* Whether a task waits for a copy: one of the same value, one out of bytes that it writes, or one into bytes that it
   touches. placed: where its operands lie; NULL: items are compared instead. */
static int gcpi_meets(const gcpi_problem *p, const gcpi_task *t, const gcpi_placed *placed, const gcpi_transfer *f)
{
    int meets = f->end && ((t->kind >= GCPI_TASK_OFFLOAD && t->item == f->item) ||
                           (placed && t->workspace && f->at < gcpi_front(p) + t->workspace));
    for (int k = 0; f->end && k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        if (o->mode == GCPI_READ && !f->back) continue;
        if (!placed) { meets |= o->item == f->item; continue; }
        size_t at = (size_t)placed[k].offset;
        meets |= placed[k].offset >= 0 && at < f->end && f->at < at + p->items[o->item].bytes;
    }
    return meets;
}

/* When an instruction runs, in seconds from the beginning of the step. */
typedef struct gcpi_time { double begin, end; } gcpi_time;

/* Seconds of a list on two streams, computing and the link. A copy begins when it is issued and the link is free; a
   task that meets a copy (gcpi_meets) waits for it. Without copy_start, computing waits for every copy. measured: each
   instruction's seconds, or 0 for the cost model's (NULL: of all); spans: NULL, or where each one's goes. */
static double gcpi_timeline(const gcpi_problem *p, const gcpi_list *list, const gcpi_placed *placed,
                            const double *measured, gcpi_time *spans)
{
    gcpi_transfer flying[GCP_COPIES];
    double now = 0, link = 0;
    unsigned first = 0, next = 0;      /* flying, modulo GCP_COPIES: the link is done with the first of them first */
    int at_once = !gcpi_is_graph(p) && !p->target.copy_start;
    memset(flying, 0, sizeof flying);
    for (ptrdiff_t i = 0, n = 0; i < list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        int copies = gcpi_copies(t);
        int full = copies && next - first == GCP_COPIES;
        for (; first < next && (full || flying[first % GCP_COPIES].done <= now); first++, full = 0)
            now = GCPI_MAX(now, flying[first % GCP_COPIES].done);
        for (unsigned f = first; f < next; f++)
            if (gcpi_meets(p, t, placed ? placed + n : NULL, &flying[f % GCP_COPIES])) {
                now = flying[f % GCP_COPIES].done;
                first = f + 1;
            }
        double begin = copies ? GCPI_MAX(now, link) : now,
               seconds = t->kind == GCPI_TASK_ARRIVE       ? 0
                         : measured && measured[i] > 0     ? measured[i]
                         : copies ? (double)p->items[t->item].bytes / p->target.far_bytes_per_second
                                  : t->seconds;
        if (spans) { spans[i].begin = begin; spans[i].end = begin + seconds; }
        if (copies) {
            gcpi_transfer *f = &flying[next++ % GCP_COPIES];
            link = f->done = begin + seconds;
            f->at = placed ? (size_t)placed[n].offset : 0; f->end = f->at + p->items[t->item].bytes;
            f->item = t->item; f->back = t->kind == GCPI_TASK_PREFETCH;
            if (at_once) now = link;
        } else now += seconds;
        n += t->count;
    }
    return now;
}
