/* Lives: values, the buffers that hold them, the peak of live bytes. A value is one writing of an item. Values of
   one alias group whose lives meet share a buffer; where an op may work in place on a value that dies there, input
   and output become one buffer. */

typedef struct gcpi_value { int item, buffer; int first, last; } gcpi_value;

typedef struct gcpi_buffer {
    size_t bytes, offset;
    int first, last, root, joined;    /* joined: the buffer this one became part of, or -1 */
    int pinned;                       /* holds what must stay: nobody works in place on it */
} gcpi_buffer;

typedef struct gcpi_lives {
    gcpi_value *values;   int value_count;
    gcpi_buffer *buffers; int buffer_count;
    int *operand_value;               /* per operand of each instruction, in list order */
    size_t peak; int peak_at;         /* most live bytes at once, and when; excludes the step's numbers */
    /* where no layout met the limit: a move that may help, and the instruction before which it goes; -1: none */
    int move, move_at;
} gcpi_lives;

static int gcpi_operand_total(const gcpi_problem *p, const gcpi_list *list)
{
    int total = 0;
    for (ptrdiff_t i = 0; i < list->count; i++) total += p->tasks[list->at[i].task].count;
    return total;
}

/* As many values as there can be: one for each writing, and those that are there from the start. */
static int gcpi_value_total(const gcpi_problem *p, const gcpi_list *list)
{
    int total = 0;
    for (int i = 0; i < p->item_count; i++) total += p->items[i].active && p->items[i].pinned == GCPI_PINNED_ALWAYS;
    for (ptrdiff_t i = 0; i < list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        for (int k = 0; k < t->count; k++) {
            const int mode = p->operands[t->operands + k].mode;
            total += mode == GCPI_WRITE || mode == GCPI_ALIAS;
        }
    }
    return total;
}

static int gcpi_buffer_of(const gcpi_lives *l, int buffer)
{
    while (l->buffers[buffer].joined >= 0) buffer = l->buffers[buffer].joined;
    return buffer;
}

static int gcpi_value_new(gcpi_lives *l, int item, int first, int *current)
{
    gcpi_value *v = &l->values[l->value_count];
    v->item = item; v->first = v->last = first; v->buffer = -1;
    return current[item] = l->value_count++;
}

static void gcpi_values_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, int *current)
{
    int end = (int)list->count - 1, n = 0;
    for (int i = 0; i < p->item_count; i++) {
        current[i] = -1;
        if (p->items[i].active && p->items[i].pinned == GCPI_PINNED_ALWAYS) gcpi_value_new(l, i, 0, current);
    }
    for (int i = 0; i <= end; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_operand *o = &p->operands[t->operands + k];
            int fresh = (o->mode == GCPI_WRITE || o->mode == GCPI_ALIAS) &&
                        p->items[o->item].pinned != GCPI_PINNED_ALWAYS;
            l->operand_value[n] = -1;
            if (p->items[p->items[o->item].root].kind == GCPI_STATE_ITEM) continue;
            if (fresh) gcpi_value_new(l, o->item, i, current);
            if (current[o->item] < 0) continue;
            l->operand_value[n] = current[o->item];
            l->values[current[o->item]].last = i;
        }
    }
    for (int v = 0; v < l->value_count; v++)
        if (p->items[l->values[v].item].pinned && current[l->values[v].item] == v) l->values[v].last = end;
}

/* Buffers, as long as what they hold reaches. Values come by group, in order of their first instruction. Inputs are
   live from the start: views share their buffers. Values of an item that shares its bytes with no other overlap, in two
   buffers, only at a move. */
static void gcpi_buffers_make(const gcpi_problem *p, gcpi_lives *l, const int *order)
{
    for (int k = 0; k < l->value_count; k++) {
        gcpi_value *v = &l->values[order[k]];
        int root = p->items[v->item].root, open = l->buffer_count - 1;
        if (open < 0 || l->buffers[open].root != root || v->first > l->buffers[open].last || p->items[root].next < 0) {
            gcpi_buffer *b = &l->buffers[open = l->buffer_count++];
            b->bytes = 0; b->offset = 0;
            b->first = v->first; b->last = v->last; b->root = root; b->joined = -1; b->pinned = 0;
        }
        l->buffers[open].pinned |= p->items[v->item].pinned;
        v->buffer = open;
        l->buffers[open].bytes = GCPI_MAX(l->buffers[open].bytes, p->items[v->item].offset + p->items[v->item].bytes);
        l->buffers[open].last = GCPI_MAX(l->buffers[open].last, v->last);
    }
}

static void gcpi_values_sort(const gcpi_problem *p, const gcpi_lives *l, int *order, int *count)
{
    /* by root; values are in order of time already */
    memset(count, 0, (size_t)(p->item_count + 1) * sizeof *count);
    for (int v = 0; v < l->value_count; v++) count[p->items[l->values[v].item].root + 1]++;
    for (int i = 1; i <= p->item_count; i++) count[i] += count[i - 1];
    for (int v = 0; v < l->value_count; v++) order[count[p->items[l->values[v].item].root]++] = v;
}

static int gcpi_whole(const gcpi_problem *p, int item)              /* fills its buffer, in dense rows */
{
    const gcpi_item *x = &p->items[item];
    return x->offset == 0 && x->bytes == p->items[x->root].bytes && gcpi_is_dense(p, item);
}

/* Output value z takes over the buffer of value x, which dies at instruction i. */
static int gcpi_take_over(const gcpi_problem *p, gcpi_lives *l, int x, int z, int i)
{
    if (x < 0 || z < 0 || l->values[z].first != i) return 0;
    int from = gcpi_buffer_of(l, l->values[x].buffer), to = gcpi_buffer_of(l, l->values[z].buffer);
    gcpi_buffer *b = &l->buffers[from], *e = &l->buffers[to];
    if (from == to || b->pinned || b->last != i || e->first != i || b->bytes != e->bytes) return 0;
    if (!gcpi_whole(p, l->values[x].item) || !gcpi_whole(p, l->values[z].item)) return 0;
    e->joined = from;
    b->last = e->last;
    b->pinned = e->pinned;
    return 1;
}

static void gcpi_in_place(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l)
{
    int n = 0;
    for (int i = 0; i < (int)list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        int done = t->over < 0;
        for (int k = 0; k < 2 && !done; k++)
            done = t->under[k] >= 0 &&
                   gcpi_take_over(p, l, l->operand_value[n + t->under[k]], l->operand_value[n + t->over], i);
        n += t->count;
    }
}

/* Live bytes at each instruction, workspace included; the most of them. */
static void gcpi_live_bytes(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, size_t *live)
{
    size_t align = p->target.align, now = 0;
    memset(live, 0, (size_t)(list->count + 1) * sizeof *live);
    for (int b = 0; b < l->buffer_count; b++) {
        if (l->buffers[b].joined >= 0) continue;
        live[l->buffers[b].first] += gcpi_round(l->buffers[b].bytes, align);
        live[l->buffers[b].last + 1] -= gcpi_round(l->buffers[b].bytes, align);     /* may wrap; the sums do not */
    }
    l->peak = 0; l->peak_at = 0;
    for (int i = 0; i < (int)list->count; i++) {
        now += live[i];
        live[i] = now + gcpi_round(p->tasks[list->at[i].task].workspace, align);
        if (live[i] > l->peak) { l->peak = live[i]; l->peak_at = i; }
    }
}

/* Fills l, all in scratch of a, which the caller gives back. 0: not enough. */
static int gcpi_lives_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    const int values = gcpi_value_total(p, list) + 1;
    memset(l, 0, sizeof *l);
    l->values = GCPI_SCRATCH(a, gcpi_value, values);
    l->buffers = GCPI_SCRATCH(a, gcpi_buffer, values);
    l->operand_value = GCPI_SCRATCH(a, int, gcpi_operand_total(p, list) + 1);
    *live = GCPI_SCRATCH(a, size_t, list->count + 2);
    ptrdiff_t scratch = a->scratch;
    int *current = GCPI_SCRATCH(a, int, p->item_count), *order = GCPI_SCRATCH(a, int, values),
        *count = GCPI_SCRATCH(a, int, p->item_count + 1);
    if (!l->values || !l->buffers || !l->operand_value || !*live || !current || !order || !count) return 0;
    gcpi_values_make(p, list, l, current);
    gcpi_values_sort(p, l, order, count);
    gcpi_buffers_make(p, l, order);
    gcpi_in_place(p, list, l);
    gcpi_live_bytes(p, list, l, *live);
    a->scratch = scratch;
    return 1;
}
