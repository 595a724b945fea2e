/* Arrangement: lives and addresses of a list. Where no layout is found, moves are the last resort: a buffer that finds
   no room for all of its life gets two places. */

/* The task that moves what buffer b holds between instructions t and t + 1, where there are bytes for both places; 0:
   none. */
static int gcpi_mover(const gcpi_layout *y, int b, int t, size_t most)
{
    const gcpi_lives *l = y->l;
    size_t across = gcpi_round(y->p->numbers, y->p->target.align) + l->buffers[b].bytes;
    int value = -1, values = 0;
    for (int v = 0; v < l->value_count; v++)
        if (l->values[v].first <= t && l->values[v].last > t && gcpi_buffer_of(l, l->values[v].buffer) == b) {
            value = v;
            values++;
        }
    if (values != 1) return 0;
    for (int k = 0; k < l->buffer_count; k++)
        if (l->buffers[k].joined < 0 && l->buffers[k].first <= t && l->buffers[k].last > t)
            across += gcpi_round(l->buffers[k].bytes, y->p->target.align);
    int item = l->values[value].item;
    return across <= most && gcpi_alone(y->p, item) ? y->p->items[item].move : 0;
}

/* Whether b would find room below `most` if it lived from first to last, beside what is placed. */
static int gcpi_layout_room(gcpi_layout *y, int b, int first, int last, size_t most)
{
    gcpi_buffer *x = &y->l->buffers[b], whole = *x;
    int before;
    x->first = first; x->last = last;
    size_t at = gcpi_first_fit(y, b, &before);
    *x = whole;
    return at + x->bytes <= most;
}

/* Splits the life of the buffer that found no room, into its longest first part that would find room and the rest, or
   its longest last part and the rest. Sets the move between the two. */
static void gcpi_layout_move(gcpi_layout *y, size_t most)
{
    if (y->placed_count >= y->count) return;
    int b = y->order[y->placed_count], first = y->l->buffers[b].first, last = y->l->buffers[b].last, front;
    y->trial_count = 0;
    for (int i = 0; i < y->placed_count; i++) gcpi_trial_put(y, i, &y->placed[i]);
    front = gcpi_layout_room(y, b, first, first, most);
    if (!front && !gcpi_layout_room(y, b, last, last, most)) return;
    int low = first, high = last;                  /* the end of the part lies in between */
    while (high - low > 1) {
        int middle = low + (high - low) / 2,
            fits = front ? gcpi_layout_room(y, b, first, middle, most) : gcpi_layout_room(y, b, middle, last, most);
        *(fits == front ? &low : &high) = middle;
    }
    int move = 0, t = low;                         /* from there to shorter parts */
    while (t >= first && t < last && (move = gcpi_mover(y, b, t, most)) == 0) t += front ? -1 : 1;
    if (move) { y->l->move = move; y->l->move_at = t + 1; }
}

static int gcpi_layout_arrays(gcpi_layout *y, gcp_arena *a)
{
    const int buffers = y->l->buffer_count;
    for (int b = 0; b < buffers; b++) y->count += y->l->buffers[b].joined < 0;
    const int alone = y->count >= GCPI_LAYOUT_MOST;
    y->many = y->count >= GCPI_LAYOUT_MANY;
    y->order = GCPI_SCRATCH(a, int, y->count + 1);
    y->sorted = GCPI_SCRATCH(a, int, y->count + 1);
    y->trial = GCPI_SCRATCH(a, gcpi_spot, y->count + 1);
    y->placed = alone ? y->trial : GCPI_SCRATCH(a, gcpi_spot, y->count + 1);
    y->first = GCPI_SCRATCH(a, int, alone ? 1 : y->count + GCPI_FIT_LIVES);
    y->last = GCPI_SCRATCH(a, int, alone ? 1 : y->count + GCPI_FIT_LIVES);
    y->floor = GCPI_SCRATCH(a, size_t, buffers + 1);
    y->offset = GCPI_SCRATCH(a, size_t, buffers + 1);
    if (!y->order || !y->sorted || !y->trial || !y->placed || !y->first || !y->last || !y->floor || !y->offset)
        return 0;
    for (int b = 0, k = 0; b < buffers; b++) if (y->l->buffers[b].joined < 0) y->order[k++] = b;
    return 1;
}

/* Sets the offsets of l's buffers; returns the slab's bytes, or 0: not enough scratch. A result above fit.enough, where
   that is given, means that no layout was found; the offsets are then not valid. */
static size_t gcpi_layout_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, gcpi_fit fit, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_layout y;
    gcpi_heights ground;
    memset(&y, 0, sizeof y);
    y.p = p; y.list = list; y.l = l;
    y.best_top = SIZE_MAX; y.random = 88172645463325252ull;
    if (!gcpi_layout_arrays(&y, a) || !gcpi_heights_arrays(&ground, list->count, a)) {
        a->scratch = scratch;
        return 0;
    }
    size_t top = gcpi_front(p);
    const size_t goal = fit.enough ? fit.enough : top + l->peak;
    l->move = -1;
    gcpi_floors(&y, &ground);
    const int done = y.many && (gcpi_layout_long(&y, goal, fit.enough == 0, &ground, a) || y.count >= GCPI_LAYOUT_MOST);
    if (!done) {
        if (y.many) { y.many = 0; gcpi_floors(&y, &ground); }
        gcpi_layout_sort(&y, GCPI_BY_BYTES);
        gcpi_layout_search(&y, goal, fit.enough == 0, 0);
        if (y.best_top > goal) gcpi_layout_improve(&y, goal, fit, a);
    }
    a->scratch = scratch;
    if (y.best_top == SIZE_MAX && fit.moves && !y.many) gcpi_layout_move(&y, fit.enough);
    if (y.best_top == SIZE_MAX) return GCPI_MAX(y.top, goal + 1);
    for (ptrdiff_t i = 0; i < list->count; i++)
        top = GCPI_MAX(top, gcpi_front(p) + p->tasks[list->at[i].task].workspace);
    for (int b = 0; b < l->buffer_count; b++)
        if (l->buffers[b].joined < 0) {
            l->buffers[b].offset = y.offset[b];
            top = GCPI_MAX(top, y.offset[b] + l->buffers[b].bytes);
        }
    return GCPI_MAX(top, 1);               /* 0 would say that scratch was short */
}

/* Lifetimes and layout of a list, to which moves may be added. Returns the slab's bytes as gcpi_layout_make does; l and
   *live lie in scratch. */
static size_t gcpi_arrange(const gcpi_problem *p, gcpi_list *list, gcpi_lives *l, size_t **live, gcpi_fit fit,
                           gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    for (int moves = 0;; moves++) {
        a->scratch = scratch;
        if (!gcpi_lives_make(p, list, l, live, a)) return 0;
        size_t slab = gcpi_layout_make(p, list, l, fit, a);
        if (slab == 0 || slab <= fit.enough || moves == fit.moves || l->move < 0 ||
            l->buffer_count > GCPI_MOVES_LARGE || list->count >= list->capacity)
            return slab;
        const gcpi_task *task = &p->tasks[l->move];
        gcpi_emit(list, 'M', l->move, task);
        memmove(list->at + l->move_at + 1, list->at + l->move_at,
                (size_t)(list->count - 1 - l->move_at) * sizeof *list->at);
        list->at[l->move_at].letter = 'M'; list->at[l->move_at].task = l->move;
    }
}
