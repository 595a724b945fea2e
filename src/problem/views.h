/* Where items lie: views and copies. An input of a concat can be made where the concat needs it, a slice or reshape
   can share the bytes of its input, and a gradient those of another: a view costs no time and no bytes, but what it
   shares stays as long as any of them is needed. Or it is a copy: p->copied says which, for a whole plan. Tasks,
   their operands and their numbers do not depend on it; gcpi_views_place (tasks.h) sets all that does: root, next,
   offset, pitch and bytes of items; free, over, under, workspace and seconds of tasks; which gradients are aliases. */

static size_t gcpi_bytes_at(const gcpi_problem *p, int item, ptrdiff_t pitch)     /* of an item, with this pitch */
{
    const gcpi_tensor *e = &p->tape->tensors[p->items[item].tensor];
    return gcpi_view_bytes(e->shape, e->dtype, p->items[item].width, pitch);
}
static size_t gcpi_bytes_alone(const gcpi_problem *p, int item)
{
    return gcpi_bytes_at(p, item, p->tape->tensors[p->items[item].tensor].shape.d[3]);
}
/* Whether two items may be the same bytes: an element is stored alike in both. */
static int gcpi_stored_alike(const gcpi_problem *p, int x, int y)
{
    return p->items[x].width == p->items[y].width && p->items[x].rounds == p->items[y].rounds;
}

/* Alias groups. Moves every member of group `from` into `to`, at an offset, with the pitch of to. */
static void gcpi_join(gcpi_problem *p, int from, int to, size_t offset, ptrdiff_t pitch)
{
    int last = to;
    while (p->items[last].next >= 0) last = p->items[last].next;
    p->items[last].next = from;
    for (int i = from; i >= 0; i = p->items[i].next) {
        p->items[i].root = p->items[to].root;
        p->items[i].offset += offset;
        p->items[i].pitch = pitch;
        p->items[i].bytes = gcpi_bytes_at(p, i, pitch);
    }
}

/* A new item becomes a view of an old one. */
static void gcpi_view_of(gcpi_problem *p, int item, int of, size_t offset, ptrdiff_t pitch)
{
    gcpi_item *x = &p->items[item], *base = &p->items[of];
    x->offset = base->offset + offset;
    x->pitch = pitch;
    x->bytes = gcpi_bytes_at(p, item, pitch);
    x->root = base->root;
    x->next = p->items[base->root].next;
    p->items[base->root].next = item;
}

static int gcpi_alone(const gcpi_problem *p, int item)              /* shares its bytes with no other item */
{
    return p->items[item].root == item && p->items[item].next < 0;
}
static int gcpi_is_dense(const gcpi_problem *p, int item)
{
    return !p->items[item].row || p->items[item].pitch == p->items[item].row;
}
static int gcpi_takes_pitch(const gcpi_problem *p, int item, ptrdiff_t pitch)
{
    return !p->items[item].dense || pitch == p->items[item].row;
}
static void gcpi_dense_group(gcpi_problem *p, int item)
{
    for (int i = p->items[item].root; i >= 0; i = p->items[i].next) p->items[i].dense |= GCPI_DENSE_BY_VIEW;
}

/* Whether the target's kernels take an item's rows there (gcp_target.row_align). */
static int gcpi_rows_aligned(const gcpi_problem *p, int item, size_t offset, ptrdiff_t pitch)
{
    const size_t align = p->target.row_align, width = (size_t)p->items[item].width,
                 row = (size_t)p->items[item].row * width;
    return !align || row % align || (offset % align == 0 && (size_t)pitch * width % align == 0);
}
/* Whether all of an item's group may move into another's rows, `at` bytes behind their beginning. */
static int gcpi_group_fits(const gcpi_problem *p, int root, int to, size_t at)
{
    for (int i = root; i >= 0; i = p->items[i].next) {
        const gcpi_item *x = &p->items[i];
        if (x->dense || !gcpi_stored_alike(p, i, to) ||
            !gcpi_rows_aligned(p, i, x->offset + p->items[to].offset + at, p->items[to].pitch)) return 0;
    }
    return 1;
}

/* Whether an input of a concat can be made where the concat needs it: it owns its bytes, and its pitch is free. */
static int gcpi_can_join(const gcpi_problem *p, int item, int to, size_t at)
{
    const gcpi_item *x = &p->items[item];
    return x->kind == GCPI_FORWARD_ITEM && x->root == item && item != p->items[to].root &&
           gcpi_group_fits(p, item, to, at);
}

/* Where input i begins in the rows of a concat, in bytes. (All inputs that lie there are stored as it is.) */
static size_t gcpi_joined_at(const gcpi_problem *p, const gcpi_op *op, int i)
{
    size_t at = 0;
    if (gcpi_facts_of(op).view != GCPI_VIEW_JOINED) return 0;
    for (int k = 0; k < i; k++) at += (size_t)p->tape->tensors[gcpi_edge(p->tape, op, k)].shape.d[3];
    return at * (size_t)p->items[op->out].width;
}

/* Whether input i of a concat lies where the concat needs it. */
static int gcpi_in_place_in(const gcpi_problem *p, const gcpi_op *op, int i)
{
    const gcpi_item *x = &p->items[gcpi_edge(p->tape, op, i)], *y = &p->items[op->out];
    return x->root == y->root && x->pitch == y->pitch && x->offset - y->offset == gcpi_joined_at(p, op, i);
}

/* Whether input i of a concat, which lies in an earlier one, may move with all of that into this one: as in a list of
   features that grows, concat(a, b), then concat(a, b, c). All columns of the earlier one must be inputs of this one,
   in the same order. *at: where it begins in the rows of this one. */
static int gcpi_can_join_with(const gcpi_problem *p, const gcpi_op *op, int i, size_t *at)
{
    const gcp_tape *t = p->tape;
    const uint64_t copied = p->copied[op - t->ops].values;
    const gcpi_item *x = &p->items[gcpi_edge(t, op, i)], *r = &p->items[x->root];
    const size_t begin = gcpi_joined_at(p, op, i) - x->offset, end = begin + gcpi_item_row(r);
    if (x->kind != GCPI_FORWARD_ITEM || r->kind != GCPI_FORWARD_ITEM || x->root == op->out || x->root == x - p->items ||
        gcpi_joined_at(p, op, i) < x->offset || end > gcpi_item_row(&p->items[op->out]))
        return 0;
    if (!gcpi_group_fits(p, x->root, op->out, begin)) return 0;
    size_t column = 0;
    for (int k = 0; k < op->inputs; k++) {
        const gcpi_item *z = &p->items[gcpi_edge(t, op, k)];
        size_t behind = column + (size_t)t->tensors[gcpi_edge(t, op, k)].shape.d[3] * (size_t)r->width;
        if (column < end && behind > begin &&
            (z->root != x->root || begin + z->offset != column || copied >> k & 1))
            return 0;
        column = behind;
    }
    *at = begin;
    return 1;
}

/* Whether y must outlive the step, but as a view of x would see what the update makes of a parameter. */
static int gcpi_view_changes(const gcpi_problem *p, int y, int x)
{
    int lasts = y == p->root || p->tape->tensors[y].flags & GCPI_KEPT;
    return lasts && p->training && p->items[p->items[x].root].kind == GCPI_STATE_ITEM;
}

static int gcpi_forward_views(gcpi_problem *p, const gcpi_op *op)       /* 1: nothing is left to copy */
{
    const gcp_tape *t = p->tape;
    const uint64_t copied = p->copied[op - t->ops].values;
    const gcpi_facts facts = gcpi_facts_of(op);
    int y = op->out, x = gcpi_edge(t, op, 0), whole = 1;
    const size_t first = (size_t)facts.first * (size_t)p->items[x].width;
    if (facts.view != GCPI_VIEW_JOINED && (gcpi_view_changes(p, y, x) || !gcpi_stored_alike(p, x, y))) return 0;
    if (facts.view == GCPI_VIEW_WHOLE && gcpi_is_dense(p, x)) {
        gcpi_view_of(p, y, x, 0, p->items[y].pitch);
        gcpi_dense_group(p, x);
        return 1;
    }
    if (facts.view == GCPI_VIEW_PART && !(copied & 1) && gcpi_takes_pitch(p, y, p->items[x].pitch) &&
        gcpi_rows_aligned(p, y, p->items[x].offset + first, p->items[x].pitch)) {
        gcpi_view_of(p, y, x, first, p->items[x].pitch);
        return 1;
    }
    if (facts.view != GCPI_VIEW_JOINED) return 0;
    for (int i = 0; i < op->inputs; i++) {
        size_t at;
        x = gcpi_edge(t, op, i);
        if (copied >> i & 1) { whole = 0; continue; }
        if (gcpi_can_join(p, x, y, gcpi_joined_at(p, op, i)))
            gcpi_join(p, x, y, gcpi_joined_at(p, op, i), p->items[y].pitch);
        else if (gcpi_can_join_with(p, op, i, &at)) gcpi_join(p, p->items[x].root, y, at, p->items[y].pitch);
        whole &= gcpi_in_place_in(p, op, i);
    }
    return whole;
}

/* Whether gradient x would change while y is still to be read. Ops before o add to x, in backward after o. Both
   gradients are last read by the backward of their producers. Backward runs from the last op down to -1. */
static int gcpi_changes_under(const gcpi_problem *p, int x, int y, int o)
{
    const gcp_tape *t = p->tape;
    int tx = p->items[x].tensor, ty = p->items[y].tensor;
    int y_last = t->tensors[ty].producer;                     /* -1: an input's, read at the end */
    for (int k = p->uses.first[tx]; k < p->uses.first[tx + 1]; k++) {
        int c = p->uses.consumers[k];
        if (c < o && c >= y_last && gcpi_has_backward(p, &t->ops[c])) return 1;
    }
    return 0;
}

static int gcpi_regions_meet(const gcpi_problem *p, int x, int y)
{
    const gcpi_item *a = &p->items[x], *b = &p->items[y];
    size_t wa = gcpi_item_row(a), wb = gcpi_item_row(b);
    return a->pitch != b->pitch || (a->offset < b->offset + wb && b->offset < a->offset + wa);
}

/* The first backward task that makes a gradient writes it; later ones add to it. A gradient that add, concat or reshape
   passes on unchanged can share its bytes, unless one of those that share them is changed while another is still to be
   read. */
static int gcpi_gradient_alias(gcpi_problem *p, int o, int i)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o];
    int x = t->tensor_count + gcpi_edge(t, op, i), y = t->tensor_count + op->out;
    if (!(op->row->flags & GCP_FLAG_GRAD_VIEW) || t->tensors[gcpi_edge(t, op, i)].kind == GCPI_PARAMETER) return 0;
    if (!gcpi_stored_alike(p, x, y)) return 0;
    int whole = gcpi_facts_of(op).view == GCPI_VIEW_WHOLE, joined = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
    if (joined && p->copied[o].gradients >> i & 1) return 0;
    if (whole ? !gcpi_is_dense(p, y) : !gcpi_takes_pitch(p, x, p->items[y].pitch)) return 0;
    if (!whole && !gcpi_rows_aligned(p, x, p->items[y].offset + gcpi_joined_at(p, op, i), p->items[y].pitch)) return 0;
    for (int k = 0; k < op->inputs; k++) if (k != i && gcpi_edge(t, op, k) == gcpi_edge(t, op, i)) return 0;
    gcpi_item trial = p->items[x];
    gcpi_view_of(p, x, y, gcpi_joined_at(p, op, i), whole ? trial.pitch : p->items[y].pitch);
    for (int m = p->items[x].root; m >= 0; m = p->items[m].next) {
        if (m == x || m == y || t->tensors[p->items[m].tensor].producer >= o || !gcpi_regions_meet(p, x, m)) continue;
        if (!gcpi_changes_under(p, x, m, o) && !gcpi_changes_under(p, m, x, o)) continue;
        p->items[p->items[x].root].next = p->items[x].next;   /* gcpi_view_of put it right after the root */
        p->items[x] = trial;
        return 0;
    }
    return 1;
}

/* Whether the task has the bytes of operand k as another operand, too, of which it does not know what it may overwrite:
   x as a batch-norm's input and its gamma; x, and a part of it that is spread over x. Of two operands of the same bytes
   it reads the same element when it writes it. */
static int gcpi_operand_elsewhere(const gcpi_problem *p, const gcpi_task *task, int k)
{
    const gcpi_operand *o = &p->operands[task->operands];
    for (int m = 0; m < task->count; m++) {
        const gcpi_item *x = &p->items[o[m].item], *y = &p->items[o[k].item];
        const int alike = x->offset == y->offset && x->bytes == y->bytes;
        if (m == k || m == task->over || ((m == task->under[0] || m == task->under[1]) && alike)) continue;
        if (x->root == y->root) return 1;
    }
    return 0;
}

/* What the task may write in place: output 0 over input 0 (or 1); in backward, the gradient of input 0 over that of
   output 0. */
static void gcpi_task_in_place(const gcpi_problem *p, gcpi_task *task, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    int back = task->kind == GCPI_TASK_BACKWARD, pair = !back && !facts.custom;
    const gcpi_operand *o = &p->operands[task->operands];
    task->over = task->under[0] = task->under[1] = -1;
    if (!facts.in_place || !(op->row->flags & (back ? GCP_FLAG_GRAD_IN_PLACE : GCP_FLAG_IN_PLACE))) return;
    for (int k = 0; k < task->count; k++) {
        if (o[k].role == (back ? GCPI_ROLE_DOUT : GCPI_ROLE_IN)) task->under[0] = k;
        if (pair && o[k].role == GCPI_ROLE_IN + 1) task->under[1] = k;
        if (o[k].role == (back ? GCPI_ROLE_DIN : GCPI_ROLE_OUT) && o[k].mode == GCPI_WRITE) task->over = k;
        /* x * x: the gradient is written, then added to, so not in place */
        else if (task->over >= 0 && o[k].item == o[task->over].item) { task->over = -1; return; }
    }
    for (int side = 0; side < 2; side++)
        if (task->under[side] >= 0 &&
            (gcpi_operand_elsewhere(p, task, task->under[side]) ||
             (task->over >= 0 && p->items[o[task->under[side]].item].width != p->items[o[task->over].item].width)))
            task->under[side] = -1;
}

/* Every item has bytes of its own. */
static void gcpi_views_forget(gcpi_problem *p)
{
    for (int i = 1; i < p->item_count; i++) {
        gcpi_item *x = &p->items[i];
        if (!x->tensor) continue;
        x->root = i; x->next = -1; x->offset = 0;
        x->dense &= 1;
        x->pitch = p->tape->tensors[x->tensor].shape.d[3];
        x->bytes = gcpi_bytes_alone(p, i);
    }
}

/* The gradients that a backward task is the first to make: each is written, or shares bytes. */
static void gcpi_backward_views(gcpi_problem *p, const gcpi_task *task)
{
    gcpi_operand *o = &p->operands[task->operands];
    for (int k = 0; k < task->count; k++)
        if (o[k].mode == GCPI_WRITE || o[k].mode == GCPI_ALIAS)
            o[k].mode = gcpi_gradient_alias(p, task->op, o[k].role - GCPI_ROLE_DIN) ? GCPI_ALIAS : GCPI_WRITE;
}
