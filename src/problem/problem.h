/* What planning sees: items and tasks. Items are tensors and gradients: bytes, and where they lie inside an alias
   group. Tasks are op groups run forward or backward, and updates, in the order of plain backpropagation. Tasks [0,
   forward) may run again unless they have side effects; the others run once, in this order. Nothing here depends on
   a policy. */

enum { GCPI_STATE_ITEM, GCPI_INPUT_ITEM, GCPI_FORWARD_ITEM, GCPI_GRADIENT_ITEM };
/* ADD: read and written in place; ALIAS: shares bytes with what the task reads */
enum { GCPI_READ, GCPI_WRITE, GCPI_ADD, GCPI_ALIAS };
/* The kinds of tasks: the letter in a list, the word in the key of a cost. From OFFLOAD on they are by item: copies to
   far memory, back, the wait for the first; a move to another place in the slab. */
#define GCPI_TASK_KINDS(X)                                                                                             \
    X(FORWARD, 'F', "forward") X(SEED, 'B', "seed") X(BACKWARD, 'B', "backward") X(GRADIENT_NORM, 'U', "norm")         \
    X(UPDATE, 'U', "update") X(HOOK, 'H', "hook") X(WAIT, 'W', "wait") X(OFFLOAD, 'O', "offload")                      \
    X(PREFETCH, 'P', "prefetch") X(ARRIVE, 'A', "arrive") X(MOVE, 'M', "move")
#define GCPI_TASK_KIND(kind, letter, word) GCPI_TASK_##kind,
#define GCPI_TASK_LETTER(kind, letter, word) letter,
#define GCPI_TASK_WORD(kind, letter, word) word,
enum { GCPI_TASK_KINDS(GCPI_TASK_KIND) };
static const char gcpi_letters[] = { GCPI_TASK_KINDS(GCPI_TASK_LETTER) };

/* A pinned item lives to the end of the step; or from its beginning, too. */
enum { GCPI_PINNED_TO_END = 1, GCPI_PINNED_ALWAYS };
/* An item's pitch is fixed in any case; by a view of it. */
enum { GCPI_DENSE_ANYWAY = 1, GCPI_DENSE_BY_VIEW = 2 };

typedef struct gcpi_item {
    size_t bytes, offset;             /* own bytes; where they begin in the root's */
    ptrdiff_t pitch, row;             /* elements from row to row, and in one row; row 0: no rows, one run of bytes */
    int kind, tensor, producer;       /* tensor of the tape; producer: forward task (in a graph any task) or -1 */
    int root, next;                   /* alias group; next member, -1 at the end */
    int active, pinned, dense;        /* pinned: 0, or GCPI_PINNED_...; dense: bits that say why its pitch is fixed */
    /* store.h: bytes of an element of its rows; its values are rounded to bfloat16, at whatever width; it lies in two
       bytes with .store, or would */
    int width, rounds, halves;
    int stored, kept;                 /* stored: every policy keeps it; kept: by gcp_keep, nothing may write it again */
    int alone;                        /* shares its bytes with no other item, for some choice of views */
    int move, updated;                /* the task that moves it; the task that updates its parameter; 0: none */
} gcpi_item;

typedef struct gcpi_operand { int item, mode, role; } gcpi_operand;      /* role: which of its op's operands it is */

typedef struct gcpi_task {          /* an op group run forward, an op run backward, ... */
    int kind;
    /* op: of the tape, of a group the last; parameter: of an update or a hook; item: of a far task or a move */
    union { int op, parameter, item; };
    /* forward: how many ops it runs: 1, or more for a group (GCP_ROW_APPLY); op is the last of them */
    int ops;
    int operands, count;              /* first one in problem->operands; how many */
    int forward;                      /* backward: the forward task that it reverses */
    int once, free, segment, unit;    /* free: a view, costs nothing; segment: of the tape; unit: of its forward op */
    /* costly: kept by GCP_POLICY_CHEAP; loss: is part of a loss; joins: activations meet; concat: parts side by side */
    int costly, loss, joins, concat;
    int over, under[2];               /* operand `over` may be written in place on operands under[0] or [1]; -1: none */
    double seconds, flops;
    size_t workspace;
} gcpi_task;
static int gcpi_copies(const gcpi_task *t) { return t->kind == GCPI_TASK_OFFLOAD || t->kind == GCPI_TASK_PREFETCH; }

/* consumers[first[i]] up to first[i + 1]: the ops that read tensor i, last op first */
typedef struct gcpi_uses { int *first, *consumers; } gcpi_uses;

/* Which views of an op are copies, though they need not be: bit i of values: input i of a concat, or the output of a
   slice (bit 0); of gradients: the gradient of input i of a concat. */
typedef struct gcpi_copied { uint64_t values, gradients; } gcpi_copied;

typedef struct gcpi_problem {
    gcp_tape *tape;
    gcp_target target;
    gcpi_item *items;       int item_count;           /* tensor i is item i, its gradient is item tensors + i */
    gcpi_task *tasks;       int task_count, forward;  /* every list holds these; after them: */
    int far_count, move_count;                        /* far tasks, then moves: a list may hold them */
    gcpi_operand *operands; int operand_count;
    /* root: the loss or output tensor; tensors: how many the tape had when it was planned */
    int units, root, training, tensors;
    gcpi_uses uses;
    gcpi_copied *copied;                              /* per op; see views.h. NULL for a graph */
    char **task_names, **item_names;                  /* of a graph; NULL for a tape */
    size_t numbers, state;                            /* bytes of the step's numbers, first in the slab; of state */
    gcp_store store;
    int optimizer, costed;                            /* costed: how many tasks have their seconds from .costs, */
    double costed_share;                              /* and which share of all tasks' seconds that is */
    int far_slots;                                    /* slots per parameter that wait in far memory */
    int frozen_norms; const char *keep;               /* options */
    size_t guard;                                     /* .check: bytes on each side of an op's workspace; else 0 */
    double (*rates)[2];                               /* of each parameter: what multiplies .lr, and its weight decay;
                                                         NULL: 1 and the option, for all */
} gcpi_problem;
static int gcpi_is_graph(const gcpi_problem *p) { return p->task_names != NULL; }
enum { GCPI_NUMBERS_BYTES = 64 };                     /* what a tape's steps need for gcp_step_numbers */
typedef char gcpi_numbers_room[sizeof(gcp_step_numbers) <= GCPI_NUMBERS_BYTES ? 1 : -1];

/* A role is one of these four plus an index below GCPI_ROLES. */
enum { GCPI_ROLES = GCP_MAX_INPUTS, GCPI_ROLE_IN = 0, GCPI_ROLE_OUT = GCPI_ROLES, GCPI_ROLE_DIN = 2 * GCPI_ROLES,
       GCPI_ROLE_DOUT = 3 * GCPI_ROLES };

/* Bytes of the step's numbers, first in the slab. */
static size_t gcpi_front(const gcpi_problem *p) { return gcpi_round(p->numbers, p->target.align); }

/* Bytes up to the end of the last pixel: a kernel touches nothing after that. width: of an element; 0: it has no rows
   of real numbers. */
static size_t gcpi_view_bytes(gcp_shape s, gcp_dtype type, int width, ptrdiff_t pitch)
{
    if (!width) return gcpi_row_bytes(type, gcpi_count(s));
    return ((gcpi_pixels(s) - 1) * (size_t)pitch + (size_t)s.d[3]) * (size_t)width;
}
/* Bytes of an item's row, of the step from row to row; of the whole where it is one run. */
static size_t gcpi_item_row(const gcpi_item *x) { return x->row ? (size_t)x->row * (size_t)x->width : x->bytes; }
static size_t gcpi_item_pitch(const gcpi_item *x) { return x->row ? (size_t)x->pitch * (size_t)x->width : x->bytes; }
/* The bytes that x takes in the rows of a concat, y: it may be stored in another way, and is copied then. */
static size_t gcpi_column_bytes(const gcpi_item *x, const gcpi_item *y) { return (size_t)x->row * (size_t)y->width; }
/* How the elements of an item lie in memory. */
static gcp_dtype gcpi_item_dtype(const gcpi_problem *p, int item)
{
    const gcpi_item *x = &p->items[item];
    if (x->width == (int)sizeof(uint16_t)) return GCP_DTYPE_BF16;
    return x->kind == GCPI_GRADIENT_ITEM ? GCP_DTYPE_REAL : p->tape->tensors[x->tensor].dtype;
}

static void gcpi_operand_add(gcpi_problem *p, gcpi_task *task, int item, int mode, int role)
{
    gcpi_operand *o = &p->operands[p->operand_count++];
    o->item = item; o->mode = mode; o->role = role;
    task->count++;
}

static gcpi_task *gcpi_task_add(gcpi_problem *p, int kind, int op)
{
    int *count = kind == GCPI_TASK_MOVE ? &p->move_count : kind >= GCPI_TASK_OFFLOAD ? &p->far_count : &p->task_count;
    gcpi_task *task = &p->tasks[p->task_count + p->far_count + p->move_count];
    ++*count;
    memset(task, 0, sizeof *task);
    task->kind = kind; task->op = op;
    task->operands = p->operand_count;
    task->forward = task->over = task->under[0] = task->under[1] = -1;
    return task;
}

static int gcpi_edge(const gcp_tape *t, const gcpi_op *op, int i) { return t->edges[op->in + i]; }

/* Which ops are needed: ancestors of the root and of kept tensors. */
static void gcpi_mark_needed(const gcp_tape *t, int root, unsigned char *needed)
{
    for (int o = t->op_count - 1; o >= 0; o--) {
        const gcpi_op *op = &t->ops[o];
        for (int j = 0; j < op->outputs; j++)
            if (op->out + j == root || t->tensors[op->out + j].flags & GCPI_KEPT) needed[o] = 1;
        for (int i = 0; needed[o] && i < op->inputs; i++) {
            int producer = t->tensors[gcpi_edge(t, op, i)].producer;
            if (producer >= 0) needed[producer] = 1;
        }
    }
}

/* Whether the options, and the tape, let a parameter train. */
static int gcpi_trains(const gcp_tape *t, int tensor, const gcp_plan_opts *o)
{
    const char *path = t->parameters[t->tensors[tensor].parameter].path;
    if (t->tensors[tensor].flags & GCPI_FROZEN || (o->train && !gcpi_patterns_fit(o->train, path))) return 0;
    return !o->freeze || !gcpi_patterns_fit(o->freeze, path);
}

/* A gradient is active where it is wanted (its tensor depends on some parameter or wanted input) and flows (the loss
   depends on its tensor). */
static void gcpi_mark_gradients(gcpi_problem *p, const unsigned char *needed, const gcp_plan_opts *opts)
{
    enum { WANTED = 1, FLOWS };                   /* wanted; wanted and flows */
    const gcp_tape *t = p->tape;
    gcpi_item *gradient = p->items + t->tensor_count;
    for (int i = 1; i < t->tensor_count; i++) {
        const gcpi_tensor *e = &t->tensors[i];
        gradient[i].active = (e->kind == GCPI_PARAMETER && gcpi_trains(t, i, opts)) ||
                             (e->kind == GCPI_INPUT && e->flags & GCPI_WANTED);
    }
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        int wanted = 0;
        if (!needed[o] || op->row->flags & GCP_FLAG_NO_GRADIENT) continue;
        for (int i = 0; i < op->inputs; i++) wanted |= gradient[gcpi_edge(t, op, i)].active;
        for (int j = 0; j < op->outputs; j++)
            gradient[op->out + j].active = wanted && t->tensors[op->out + j].dtype == GCP_DTYPE_REAL;
    }
    if (gradient[p->root].active) gradient[p->root].active = FLOWS;
    for (int o = t->op_count - 1; o >= 0; o--) {
        const gcpi_op *op = &t->ops[o];
        int flows = 0;
        for (int j = 0; j < op->outputs; j++) flows |= gradient[op->out + j].active == FLOWS;
        for (int i = 0; flows && i < op->inputs; i++)
            if (gradient[gcpi_edge(t, op, i)].active) gradient[gcpi_edge(t, op, i)].active = FLOWS;
    }
    for (int i = 1; i < t->tensor_count; i++) gradient[i].active = gradient[i].active == FLOWS;
}

static int gcpi_has_backward(const gcpi_problem *p, const gcpi_op *op)
{
    int out = 0, in = 0;
    for (int j = 0; j < op->outputs; j++) out |= p->items[p->tensors + op->out + j].active;
    for (int i = 0; i < op->inputs; i++) in |= p->items[p->tensors + gcpi_edge(p->tape, op, i)].active;
    return out && in;
}

/* A batch-norm, an addition and a rectifier, recorded one behind the other, are one pass on a device: the mask costs
   1/32 of the output's bytes, so backward reads it even where the output is there. (Behind a batch-norm alone neither
   is read; and a convolution rectifies its own output only where no mask is made.) */
static int gcpi_mask_pays(const gcpi_problem *p, const gcpi_op *op)
{
    const gcp_tape *t = p->tape;
    const int sum = t->tensors[gcpi_edge(t, op, 0)].producer;
    if (!p->target.device || sum < 1 || gcpi_facts_of(&t->ops[sum]).part != GCPI_PART_ADD) return 0;
    const gcpi_op *add = &t->ops[sum], *norm = add - 1;
    const int feeds = gcpi_edge(t, add, 0) == norm->out || gcpi_edge(t, add, 1) == norm->out;
    return feeds && gcpi_facts_of(norm).part == GCPI_PART_NORM;
}

/* What the backward of op reads, as bits of inputs and outputs. GCP_FLAG_CROSS ops read input 0 for the gradient of
   input 1 and the reverse. GCP_FLAG_SIGN_OR_MASK ops read output 0 where another backward reads that anyway
   (read_anyway) and the mask does not pay, else their mask, output 1. */
static void gcpi_backward_reads(const gcpi_problem *p, const gcpi_op *op, int read_anyway, uint64_t *in, uint64_t *out)
{
    const gcpi_item *gradient = p->items + p->tensors;
    *in = op->row->reads_in;
    *out = op->row->reads_out;
    if (op->row->flags & GCP_FLAG_CROSS) {
        if (!gradient[gcpi_edge(p->tape, op, 1)].active) *in &= ~(uint64_t)1;
        if (!gradient[gcpi_edge(p->tape, op, 0)].active) *in &= ~(uint64_t)2;
    }
    if (op->row->flags & GCP_FLAG_SIGN_OR_MASK && (!read_anyway || gcpi_mask_pays(p, op))) *out = 2;
    if (!gcpi_facts_of(op).indexed) *out = 0;
}

/* Fills read[tensor]: some backward reads its value. Ops that may choose come last: they see what the others read. */
static void gcpi_mark_reads(const gcpi_problem *p, const unsigned char *needed, unsigned char *read)
{
    const gcp_tape *t = p->tape;
    for (int choosing = 0; choosing < 2; choosing++)
        for (int o = 0; o < t->op_count; o++) {
            const gcpi_op *op = &t->ops[o];
            uint64_t in, out;
            int chooses = !!(op->row->flags & GCP_FLAG_SIGN_OR_MASK);
            if (!needed[o] || !gcpi_has_backward(p, op) || choosing != chooses) continue;
            gcpi_backward_reads(p, op, read[op->out], &in, &out);
            for (int i = 0; i < op->inputs; i++) if (in >> i & 1) read[gcpi_edge(t, op, i)] = 1;
            for (int j = 0; j < op->outputs; j++) if (out >> j & 1) read[op->out + j] = 1;
        }
}

static void gcpi_items_make(gcpi_problem *p)
{
    const gcp_tape *t = p->tape;
    static const int kinds[] = { 0, GCPI_INPUT_ITEM, GCPI_STATE_ITEM, GCPI_STATE_ITEM, GCPI_FORWARD_ITEM };
    for (int i = 0; i < p->item_count; i++) {
        gcpi_item *item = &p->items[i];
        int gradient = i >= t->tensor_count;
        item->tensor = gradient ? i - t->tensor_count : i;
        const gcpi_tensor *e = &t->tensors[item->tensor];
        item->root = i; item->next = -1; item->producer = -1;
        if (item->tensor == 0) continue;
        item->kind = gradient ? GCPI_GRADIENT_ITEM : kinds[e->kind];
        item->pitch = item->row = e->shape.d[3];
        item->width = gradient || e->dtype == GCP_DTYPE_REAL ? (int)sizeof(gcp_real) : 0;
        item->bytes = gcpi_view_bytes(e->shape, e->dtype, item->width, item->pitch);
        if (!item->width) item->row = 0;
        item->dense = e->dtype == GCP_DTYPE_BIT || e->dtype == GCP_DTYPE_U8 || e->dtype == GCP_DTYPE_I32 ||
                      item->kind == GCPI_STATE_ITEM || item->kind == GCPI_INPUT_ITEM;
    }
}

/* The inputs that an op reads as one run of bytes, and their gradients, which it writes so, get no other pitch. (Of one
   row, all are such a run.) */
static void gcpi_items_dense(gcpi_problem *p)
{
    const gcp_tape *t = p->tape;
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        const gcpi_facts facts = gcpi_facts_of(op);
        unsigned dense = facts.dense | (p->target.device ? facts.dense_on_device : 0);
        for (int i = 0; i < op->inputs && dense; i++, dense >>= 1) {
            int x = gcpi_edge(t, op, i);
            if (dense & 1 && gcpi_pixels(t->tensors[x].shape) > 1)
                p->items[x].dense = p->items[t->tensor_count + x].dense = 1;
        }
    }
}

/* Whether its outputs are stored under every policy. */
static int gcpi_op_kept(const gcpi_problem *p, const gcpi_op *op)
{
    char path[256];
    if (op->kept || p->tape->segments[op->segment].keep & gcpi_class_of(op->kind)) return 1;
    if (!p->keep) return 0;
    gcpi_name_text(p->tape, op->name, path, sizeof path);
    return gcpi_patterns_fit(p->keep, path);
}

static void gcpi_forward_output(gcpi_problem *p, gcpi_task *task, int op, int j, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    int tensor = t->ops[op].out + j;
    const unsigned flags = t->ops[op].row->flags;
    gcpi_item *item = &p->items[tensor];
    item->producer = (int)(task - p->tasks);
    item->active = j == 0 || gcpi_facts_of(&t->ops[op]).custom || flags & GCP_FLAG_ONCE || read[tensor];
    item->kept = !!(t->tensors[tensor].flags & GCPI_KEPT);
    item->pinned = item->kept || tensor == p->root;
    item->stored = item->kept || flags & GCP_FLAG_ONCE || gcpi_op_kept(p, &t->ops[op]);
    if (item->active)
        gcpi_operand_add(p, task, tensor, flags & GCP_FLAG_VIEW ? GCPI_ALIAS : GCPI_WRITE, GCPI_ROLE_OUT + j);
}

static void gcpi_task_traits(const gcpi_problem *p, gcpi_task *task, const gcpi_op *op)
{
    int activations = 0;
    for (int i = 0; i < op->inputs; i++) activations += p->items[gcpi_edge(p->tape, op, i)].kind == GCPI_FORWARD_ITEM;
    task->joins = activations > 1 && !task->once && gcpi_facts_of(op).part != GCPI_PART_NORM;
    task->costly = !!(op->row->flags & GCP_FLAG_COSTLY);
    task->loss = !!(op->row->flags & GCP_FLAG_LOSS);
}

static void gcpi_forward_task(gcpi_problem *p, int o, const unsigned char *read)
{
    const gcpi_op *op = &p->tape->ops[o];
    gcpi_task *task = gcpi_task_add(p, GCPI_TASK_FORWARD, o);
    task->ops = 1;
    for (int i = 0; i < op->inputs; i++)
        gcpi_operand_add(p, task, gcpi_edge(p->tape, op, i), GCPI_READ, GCPI_ROLE_IN + i);
    for (int j = 0; j < op->outputs; j++) gcpi_forward_output(p, task, o, j, read);
    task->once = !!(op->row->flags & GCP_FLAG_ONCE);
    task->concat = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
    gcpi_task_traits(p, task, op);
}

static void gcpi_item_name(const gcpi_problem *p, int item, char *buffer, size_t size)
{
    if (gcpi_is_graph(p)) snprintf(buffer, size, "%s", p->item_names[item]);
    else gcpi_name_text(p->tape, p->tape->tensors[p->items[item].tensor].name, buffer, size);
}

static const char *gcpi_task_name(const gcpi_problem *p, const gcpi_task *task, char *buffer, size_t size)
{
    const gcp_tape *t = p->tape;
    if (gcpi_is_graph(p) && task->kind < GCPI_TASK_OFFLOAD) {
        snprintf(buffer, size, "%s", p->task_names[task - p->tasks]);
        return buffer;
    }
    if (task->kind >= GCPI_TASK_OFFLOAD) {
        const char *of = !gcpi_is_graph(p) && p->items[task->item].kind == GCPI_GRADIENT_ITEM ? "gradient of " : "";
        snprintf(buffer, size, "%s", of);
        gcpi_item_name(p, task->item, buffer + strlen(of), size - strlen(of));
        return buffer;
    }
    if (task->kind == GCPI_TASK_SEED) snprintf(buffer, size, "seed");
    else if (task->kind == GCPI_TASK_GRADIENT_NORM) snprintf(buffer, size, "norm");
    else if (task->kind > GCPI_TASK_GRADIENT_NORM) snprintf(buffer, size, "%s", t->parameters[task->parameter].path);
    else gcpi_name_text(t, t->ops[task->op - GCPI_MAX(task->ops, 1) + 1].name, buffer, size);
    /* the name of a group: a+b+c */
    for (int o = task->op - task->ops + 2; task->kind == GCPI_TASK_FORWARD && o <= task->op; o++) {
        char name[256];
        const char *base;
        gcpi_name_text(t, t->ops[o].name, name, sizeof name);
        base = strrchr(name, '/');
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "+%s", base ? base + 1 : name);
    }
    return buffer;
}
