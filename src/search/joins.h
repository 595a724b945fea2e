/* GCP_POLICY_BUDGET: joins. The head of one order, up to a backward task, and the tail of another are an order, too:
   what the tail reads is kept from where the head makes it. So of an order that takes too many bytes and one that is
   too slow, each may give the part where it is better, and bytes between the two are used. */

/* Where the tail of an order begins whose first task that is not run again is `task`: right behind the task before. */
static int gcpi_join_at(const gcpi_order *o, int task)
{
    int i = o->count;
    while (i > 0 && o->at[i - 1] != task - 1) i--;
    return i;
}

/* 1: the trial is the join at this task, and its bytes fit. */
static int gcpi_join_make(gcpi_planner *q, const gcpi_order *head, const gcpi_order *tail, int task)
{
    gcpi_order *o = &q->trial;
    const int first = gcpi_join_at(head, task), from = gcpi_join_at(tail, task), rest = tail->count - from;
    if (first + rest > o->capacity) return 0;
    memcpy(o->at, head->at, (size_t)first * sizeof *o->at);
    memcpy(o->at + first, tail->at + from, (size_t)rest * sizeof *o->at);
    o->count = first + rest;
    gcpi_simulate(&q->m, o, NULL);
    return o->valid && o->peak <= gcpi_room(q);
}

/* The backward task at which the join has the most of the fast order and its bytes still fit, by bisection. */
static int gcpi_join_most(gcpi_planner *q, const gcpi_order *fast, const gcpi_order *slow, int fast_first)
{
    const int none = fast_first ? q->p->forward : q->p->task_count, all = fast_first ? q->p->task_count : q->p->forward;
    int fits = none, over = all;
    while (over - fits > 1 || fits - over > 1) {
        const int middle = (fits + over) / 2;
        *(gcpi_join_make(q, fast_first ? fast : slow, fast_first ? slow : fast, middle) ? &fits : &over) = middle;
    }
    return fits;
}

/* A join: the fast order, whether it is the head, the task; seconds. */
typedef struct gcpi_seam { const gcpi_order *fast; int first, task; double seconds; } gcpi_seam;

/* The fastest join of what does not fit, keep-all among it, with `slow`, which does. */
static gcpi_seam gcpi_joins_best(gcpi_planner *q, const gcpi_order *all, const gcpi_order *slow)
{
    const gcpi_order *const fast[] = { &q->over[0], &q->over[1], all };
    gcpi_seam best = { NULL, 0, 0, HUGE_VAL };
    for (int i = 0; i < 3; i++)
        for (int first = 0; first < 2 && fast[i]->count; first++) {
            const int task = gcpi_join_most(q, fast[i], slow, first);
            if (!gcpi_join_make(q, first ? fast[i] : slow, first ? slow : fast[i], task)) continue;
            if (q->trial.seconds >= best.seconds) continue;
            best.fast = fast[i]; best.first = first; best.task = task; best.seconds = q->trial.seconds;
        }
    return best;
}

/* Joins what is kept, as long as that helps; of a join that has no layout, those with a little less of the fast order
   follow. */
static void gcpi_joins_try(gcpi_planner *q)
{
    enum { ROUNDS = 3, TRIES = 3 };
    const ptrdiff_t scratch = q->a->scratch;
    const double enough = 5e-4 * q->m.seconds;
    gcpi_order all, slow;
    const int made = gcpi_order_make(&all, q->p->task_count, q->a) && gcpi_order_make(&slow, q->trial.capacity, q->a);
    q->coarse |= !made;
    if (made) gcpi_keep_all_order(&q->m, &all);
    for (int round = 0, better = made && gcpi_has(&q->kept); round < ROUNDS && better; round++) {
        const double before = q->kept.order.seconds;
        gcpi_order_copy(&slow, &q->kept.order);
        gcpi_seam seam = gcpi_joins_best(q, &all, &slow);
        better = 0;
        for (int i = 0; i < TRIES && seam.seconds < before - enough && !better; i++) {
            if (gcpi_join_make(q, seam.first ? seam.fast : &slow, seam.first ? &slow : seam.fast, seam.task))
                gcpi_offer(q, &q->trial);
            better = q->kept.order.seconds < before;
            seam.task += seam.first ? -1 - i : 1 + i;
            if (seam.task <= q->p->forward || seam.task >= q->p->task_count) break;
        }
    }
    q->a->scratch = scratch;
}
