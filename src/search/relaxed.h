/* GCP_POLICY_BUDGET: a bound for all choices of views. It holds for mixtures, too (views.h). The relaxed problem has
   the same tasks, but concats and reshapes are gone: whoever reads one reads its parts, the values whose bytes it
   shows. A concat keeps only its own copies of what can lie in none (inputs of the step, weights). Slices cost their
   bytes while they are kept, and nothing while a task uses them; copies cost no time; a gradient that may share
   another's bytes does.

   No choice takes less. Where a concat is resident, as a view or a copy, the relaxed problem may keep its parts
   instead, which take no more bytes, and has the concat with them. Where a slice is resident in what it was cut from,
   it may keep that. The cuts of cuts.h take the least cost of such relaxed schedules, so their bound holds. */
enum { GCPI_RELAXED_PARTS = 1 << 20 };         /* a larger problem has no cuts */

typedef struct gcpi_relaxed {
    const gcpi_problem *from;
    gcpi_problem p;
    gcpi_model m;
    int *first, *parts;               /* parts[first[i]] up to parts[first[i + 1]]: of tensor i */
    int *seen, mark;                  /* per tensor: the last mark; a mark is one op or task */
    unsigned char *slice;             /* per tensor: it is a slice with bytes of its own */
    size_t *discount;                 /* per task: bytes of its operands that may take none */
} gcpi_relaxed;

/* Whether an input of a concat may lie where the concat needs it, in some choice. */
static int gcpi_relaxed_joins(const gcpi_relaxed *r, int x)
{
    return r->from->items[x].kind == GCPI_FORWARD_ITEM && !(r->from->items[x].dense & GCPI_DENSE_ANYWAY) &&
           r->first[x] < r->first[x + 1];
}

/* Whether each concat that reads it has a copy of its own, in any choice. A slice of an input of the step may be copied
   once, then lie in one concat within another. */
static int gcpi_relaxed_copied(const gcpi_relaxed *r, int x)
{
    return r->from->items[x].kind != GCPI_FORWARD_ITEM || r->from->items[x].dense & GCPI_DENSE_ANYWAY;
}

static void gcpi_relaxed_part(gcpi_relaxed *r, int part)
{
    if (r->seen[part] != r->mark) r->parts[r->first[r->p.tensors]++] = part;
    r->seen[part] = r->mark;
}

static void gcpi_relaxed_parts_of(gcpi_relaxed *r, int x)
{
    for (int k = r->first[x]; k < r->first[x + 1]; k++) gcpi_relaxed_part(r, r->parts[k]);
}

/* The parts of an op's first output: of what it shows, and itself, if it has bytes that lie nowhere else. */
static void gcpi_relaxed_output(gcpi_relaxed *r, const gcpi_op *op)
{
    const gcp_tape *t = r->from->tape;
    const int view = gcpi_facts_of(op).view, y = op->out, x = op->inputs ? gcpi_edge(t, op, 0) : 0;
    size_t rest = 0;
    r->mark++;
    if (view == GCPI_VIEW_JOINED) {
        for (int i = 0; i < op->inputs; i++) {
            int input = gcpi_edge(t, op, i);
            if (gcpi_relaxed_joins(r, input)) gcpi_relaxed_parts_of(r, input);
            else if (gcpi_relaxed_copied(r, input)) rest += gcpi_bytes_alone(r->from, input);
        }
        r->p.items[y].bytes = rest;
        r->p.items[y].active &= rest > 0;
        if (rest) gcpi_relaxed_part(r, y);
    } else if (view == GCPI_VIEW_NONE || gcpi_view_changes(r->from, y, x)) gcpi_relaxed_part(r, y);
    else if (r->first[x] == r->first[x + 1]) r->p.items[y].root = r->p.items[x].root;    /* of an input or a weight */
    else if (view == GCPI_VIEW_WHOLE) { gcpi_relaxed_parts_of(r, x); r->p.items[y].active = 0; }
    else { gcpi_relaxed_part(r, y); r->slice[y] = 1; r->p.items[y].pinned = 0; }
}

/* Sets the parts of all tensors; those of inputs and parameters have none. 0: they are too many, or no arena. */
static int gcpi_relaxed_parts(gcpi_relaxed *r, gcp_arena *a)
{
    const gcp_tape *t = r->from->tape;
    int *most = GCPI_SCRATCH(a, int, r->p.tensors), at = 0;
    ptrdiff_t all = 1;
    for (int i = 0; most && i < r->p.tensors; i++) {
        const gcpi_op *op = t->tensors[i].producer < 0 ? NULL : &t->ops[t->tensors[i].producer];
        most[i] = op != NULL;
        for (int k = 0; op && i == op->out && k < op->inputs; k++)
            if (gcpi_facts_of(op).view != GCPI_VIEW_NONE) most[i] += most[gcpi_edge(t, op, k)];
        if ((all += most[i]) > GCPI_RELAXED_PARTS) return 0;
    }
    r->parts = GCPI_SCRATCH(a, int, all);
    if (!most || !r->parts) return 0;
    int *end = &r->first[r->p.tensors];
    for (int i = 0; i < r->p.tensors; i++, at = *end) {
        const gcpi_op *op = t->tensors[i].producer < 0 ? NULL : &t->ops[t->tensors[i].producer];
        r->first[i] = r->first[i + 1] = *end = at;
        if (op && i == op->out) gcpi_relaxed_output(r, op);
        else if (op) { r->mark++; gcpi_relaxed_part(r, i); }
        if (i + 1 < r->p.tensors) r->first[i + 1] = *end;
    }
    return 1;
}

/* An operand, as the relaxed task has it: a read of a value, one of each of its parts. */
static void gcpi_relaxed_operand(gcpi_relaxed *r, gcpi_task *task, const gcpi_operand *o, int over)
{
    const int item = o->item, forward = item < r->p.tensors && r->from->items[item].kind == GCPI_FORWARD_ITEM,
              none = forward && r->first[item] == r->first[item + 1], k = (int)(task - r->p.tasks);
    if (!forward || none) { gcpi_operand_add(&r->p, task, item, o->mode, o->role); return; }
    for (int i = r->first[item]; i < r->first[item + 1]; i++) {
        int part = r->parts[i];
        if (o->mode == GCPI_READ ? r->seen[part] == r->mark : part != item) continue;
        if (o->mode == GCPI_READ) r->seen[part] = r->mark;
        if (r->slice[part] || over) r->discount[k] += r->p.items[part].bytes;
        gcpi_operand_add(&r->p, task, part, o->mode == GCPI_READ ? GCPI_READ : GCPI_WRITE, o->role);
    }
}

/* Views take no time. With measured costs, nor does what passes gradients on: its key may be another in each choice. */
static void gcpi_relaxed_seconds(gcpi_relaxed *r, gcpi_task *task)
{
    if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) return;
    const gcpi_op *op = &r->from->tape->ops[task->op];
    if (task->kind == GCPI_TASK_FORWARD) {
        if (task->ops == 1 && gcpi_facts_of(op).view != GCPI_VIEW_NONE) task->seconds = 0;
    } else if (op->row->flags & GCP_FLAG_GRAD_VIEW) {
        double copying = gcpi_view_traffic(&r->p, task, op) / r->p.target.bytes_per_second;
        if (r->from->costed) task->seconds = 0;
        else if (gcpi_facts_of(op).view == GCPI_VIEW_JOINED) task->seconds = GCPI_MIN(task->seconds, copying);
    }
}

static void gcpi_relaxed_task(gcpi_relaxed *r, int k)
{
    const gcpi_task *from = &r->from->tasks[k];
    gcpi_task *task = &r->p.tasks[k];
    int passes = from->kind == GCPI_TASK_BACKWARD && r->from->tape->ops[from->op].row->flags & GCP_FLAG_GRAD_VIEW;
    *task = *from;
    task->operands = r->p.operand_count; task->count = 0;
    task->over = task->under[0] = task->under[1] = -1;
    r->mark++;
    for (int i = 0; i < from->count; i++) {
        gcpi_operand o = r->from->operands[from->operands + i];
        if (passes && o.mode == GCPI_WRITE) o.mode = GCPI_ALIAS;
        gcpi_relaxed_operand(r, task, &o, i == from->over);
    }
    gcpi_relaxed_seconds(r, task);
}

static int gcpi_relaxed_arrays(gcpi_relaxed *r, gcp_arena *a)
{
    const gcpi_problem *p = r->from;
    r->p = *p;
    r->p.target.align = 1;
    r->p.far_count = r->p.move_count = r->p.operand_count = 0;
    r->p.items = GCPI_SCRATCH(a, gcpi_item, p->item_count);
    r->p.tasks = GCPI_SCRATCH(a, gcpi_task, p->task_count);
    r->first = GCPI_SCRATCH(a, int, p->tensors + 1);
    r->seen = GCPI_SCRATCH(a, int, p->tensors);
    r->slice = GCPI_SCRATCH(a, unsigned char, p->tensors);
    r->discount = GCPI_SCRATCH(a, size_t, p->task_count);
    if (!r->p.items || !r->p.tasks || !r->first || !r->seen || !r->slice || !r->discount) return 0;
    memcpy(r->p.items, p->items, (size_t)p->item_count * sizeof *p->items);
    gcpi_views_forget(&r->p);
    return 1;
}

static int gcpi_relaxed_tasks(gcpi_relaxed *r, gcp_arena *a)
{
    const gcpi_problem *p = r->from;
    ptrdiff_t all = 1;
    for (int k = 0; k < p->task_count; k++)
        for (int i = 0; i < p->tasks[k].count; i++) {
            int item = p->operands[p->tasks[k].operands + i].item;
            all += item < p->tensors ? GCPI_MAX(1, r->first[item + 1] - r->first[item]) : 1;
        }
    r->p.operands = all <= 4 * GCPI_RELAXED_PARTS ? GCPI_SCRATCH(a, gcpi_operand, all) : NULL;
    for (int k = 0; r->p.operands && k < p->task_count; k++) gcpi_relaxed_task(r, k);
    return r->p.operands != NULL;
}

/* Gradients. One that is first made by passing another on may lie in it: in a concat's, side by side with its others;
   else on top of them. So they form trees; what one of these takes at least while a task runs follows from which of its
   gradients are alive. */
typedef struct gcpi_tree {
    int above, below, beside;         /* which one it may lie in; the first in it; the next beside it; -1: none */
    int first, last;                  /* its first task, its last */
    int joined, live, early;          /* joined: those in it lie side by side; early: begins on another's bytes */
    size_t now;                       /* bytes that it takes with all in it */
} gcpi_tree;

static void gcpi_tree_lives(const gcpi_problem *p, gcpi_tree *tree)
{
    for (int i = 0; i < p->item_count; i++) {
        tree[i].above = tree[i].below = tree[i].beside = tree[i].first = tree[i].last = -1;
        if (!p->items[i].active || p->items[i].kind != GCPI_GRADIENT_ITEM) continue;
        if (p->items[i].pinned == GCPI_PINNED_ALWAYS) tree[i].first = 0;
        if (p->items[i].pinned) tree[i].last = p->task_count - 1;
    }
    for (int k = 0; k < p->task_count; k++)
        for (int i = 0; i < p->tasks[k].count; i++) {
            const gcpi_operand *o = &p->operands[p->tasks[k].operands + i];
            gcpi_tree *x = &tree[o->item];
            if (p->items[o->item].kind != GCPI_GRADIENT_ITEM) continue;
            if (x->first < 0) x->first = k;
            x->last = GCPI_MAX(x->last, k);
        }
}

static void gcpi_tree_links(const gcpi_problem *p, gcpi_tree *tree)
{
    const gcp_tape *t = p->tape;
    for (int k = p->forward; k < p->task_count; k++) {
        const gcpi_task *task = &p->tasks[k];
        if (task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &t->ops[task->op];
        int y = t->tensor_count + op->out, passes = !!(op->row->flags & GCP_FLAG_GRAD_VIEW);
        tree[y].joined = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
        for (int i = 0; i < task->count; i++) {
            int x = p->operands[task->operands + i].item;
            if (x < t->tensor_count || x == y || tree[x].first != k || tree[x].above >= 0) continue;
            if (!passes) tree[x].early = i == task->over;
            else if (t->tensors[x - t->tensor_count].kind != GCPI_PARAMETER) {
                tree[x].above = y;
                tree[x].beside = tree[y].below;
                tree[y].below = x;
            }
        }
    }
}

/* Gradient i begins or ends; returns by how much its tree takes more (may wrap; the sums do not). */
static size_t gcpi_tree_set(const gcpi_problem *p, gcpi_tree *tree, int i, int live)
{
    size_t change = 0;
    tree[i].live = live;
    for (; i >= 0; i = tree[i].above) {
        size_t inside = 0, was = tree[i].now;
        for (int x = tree[i].below; x >= 0; x = tree[x].beside)
            inside = tree[i].joined ? inside + tree[x].now : GCPI_MAX(inside, tree[x].now);
        tree[i].now = tree[i].live ? GCPI_MAX(gcpi_bytes_alone(p, i), inside) : inside;
        change = tree[i].now - was;
    }
    return change;
}

/* Replaces what the model says of bytes other than forward values. */
static int gcpi_relaxed_during(gcpi_relaxed *r, gcp_arena *a)
{
    const gcpi_problem *p = r->from;
    gcpi_tree *tree = GCPI_SCRATCH(a, gcpi_tree, p->item_count);
    size_t now = 0;
    if (!tree) return 0;
    gcpi_tree_lives(p, tree);
    gcpi_tree_links(p, tree);
    for (int i = 0; i < p->item_count; i++) {
        if (!p->items[i].active || p->items[i].pinned != GCPI_PINNED_ALWAYS) continue;
        if (p->items[i].kind == GCPI_INPUT_ITEM) now += gcpi_bytes_alone(p, i);
        if (p->items[i].kind == GCPI_GRADIENT_ITEM) now += gcpi_tree_set(p, tree, i, 1);
    }
    for (int k = 0; k < p->task_count; k++)
        for (int step = 0; step < 3; step++) {         /* what begins with k; k itself; what begins or ends behind it */
            if (step == 1) r->m.during[k] = now + p->tasks[k].workspace - r->discount[k];
            for (int i = 0; i < p->tasks[k].count && step != 1; i++) {
                int x = p->operands[p->tasks[k].operands + i].item;
                if (p->items[x].kind != GCPI_GRADIENT_ITEM) continue;
                if (tree[x].first == k && !tree[x].live && (step == 2) == tree[x].early)
                    now += gcpi_tree_set(p, tree, x, 1);
                if (step == 2 && tree[x].last == k && tree[x].live) now += gcpi_tree_set(p, tree, x, 0);
            }
        }
    return 1;
}

/* Seconds of the copies that no choice avoids. */
static double gcpi_relaxed_copies(const gcpi_relaxed *r)
{
    const gcpi_problem *p = r->from;
    double bytes = 0;
    for (int k = 0; k < p->forward && !p->costed; k++) {
        const gcpi_op *op = &p->tape->ops[p->tasks[k].op];
        for (int i = 0; p->tasks[k].ops == 1 && gcpi_facts_of(op).view == GCPI_VIEW_JOINED && i < op->inputs; i++) {
            int x = gcpi_edge(p->tape, op, i);
            if (gcpi_relaxed_copied(r, x)) bytes += 2 * (double)gcpi_bytes_alone(p, x);
        }
    }
    return bytes / p->target.bytes_per_second;
}

/* The relaxed problem of one whose views are placed in any way, and its model; all in scratch of a. 0: it is too large,
   or there is not enough. */
static int gcpi_relaxed_make(gcpi_relaxed *r, const gcpi_problem *p, gcp_arena *a)
{
    memset(r, 0, sizeof *r);
    r->from = p;
    int ok = gcpi_relaxed_arrays(r, a) && gcpi_relaxed_parts(r, a) && gcpi_relaxed_tasks(r, a) &&
             gcpi_model_make(&r->m, &r->p, a) && gcpi_relaxed_during(r, a);
    if (ok) r->m.seconds += gcpi_relaxed_copies(r);
    return ok;
}

/* Seconds that no choice of views changes. */
static double gcpi_relaxed_floor(const gcpi_problem *p)
{
    double seconds = 0;
    for (int k = 0; k < p->task_count; k++) {
        const gcpi_task *t = &p->tasks[k];
        int op = t->kind == GCPI_TASK_FORWARD || t->kind == GCPI_TASK_BACKWARD;
        if (!op || !(p->tape->ops[t->op].row->flags & (GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW))) seconds += t->seconds;
    }
    return seconds;
}

/* What no list of any choice of views beats, for this request. */
static double gcpi_relaxed_bound(const gcpi_request *asked, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_planner q;
    gcpi_relaxed r;
    memset(&q, 0, sizeof q);
    q.r = asked; q.a = a;
    q.front = gcpi_front(asked->p);
    q.bound = gcpi_relaxed_floor(asked->p);
    gcpi_none(&q.kept);
    if (gcpi_relaxed_make(&r, asked->p, a) && gcpi_order_make(&q.trial, r.p.task_count, a)) {
        q.p = &r.p; q.m = r.m;
        if (asked->far_only) q.bound = r.m.seconds;
        else gcpi_budget_bound(&q, gcpi_efforts[asked->effort].places);
    }
    a->scratch = scratch;
    return q.bound;
}
