/* What tasks cost. FLOPs and bytes moved, or seconds from a table that a measured plan has written. */

/* Whether an op is one of the two of a batch-norm that takes its running statistics although the plan trains: it is
   recorded so, or the plan says so of those whose gamma and beta are frozen. */
static int gcpi_norm_is_fixed(const gcpi_problem *p, const gcpi_op *op)
{
    const gcpi_op *norm = gcpi_facts_of(op).stats ? op + 1 : op;
    const gcpi_facts facts = gcpi_facts_of(norm);
    int trained = 0;
    if (facts.fixed) return 1;
    if (!p->frozen_norms || facts.part != GCPI_PART_NORM) return 0;
    for (int i = 0; i <= GCPI_NORM_BETA; i++)
        trained |= facts.early >> i & 1 && p->items[p->tensors + gcpi_edge(p->tape, norm, i)].active;
    return !trained;
}

/* Whether the target may run an op and what is behind it as one pass. */
static int gcpi_fuses(const gcp_target *target, const gcpi_op *op)
{
    return !target->kernels || target->kernels[op->kind].flags & GCP_FLAG_FUSED;
}

/* Whether statistics follow a convolution that can make them. It then has workspace for their sums, so that both may
   run as one pass. */
static int gcpi_stats_follow(const gcpi_problem *p, const gcpi_op *op)
{
    const gcp_tape *t = p->tape;
    if (!p->training || !op || !gcpi_facts_of(op).with_stats || op + 1 == t->ops + t->op_count) return 0;
    if (!gcpi_fuses(&p->target, op) || (!p->target.kernels && !GCPI_TAKES)) return 0;
    return gcpi_facts_of(op + 1).stats && gcpi_edge(t, op + 1, 0) == op->out && !gcpi_norm_is_fixed(p, op + 1);
}

/* Workspace of a convolution that makes the statistics of its output, too. A target's rows use theirs in turn; a
   convolution that needs its own beside that asks for both (call->fused). */
static size_t gcpi_stats_room(const gcpi_problem *p, const gcpi_op *op, size_t own, const gcp_cost_call *call)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const gcp_op *kernels = p->target.kernels;
    gcp_cost cost;
    memset(&cost, 0, sizeof cost);
    if (!kernels) return facts.stats_workspace(facts.window, call);
    if (kernels[(op + 1)->kind].cost) kernels[(op + 1)->kind].cost(call->fused, &cost);
    return GCPI_MAX(own, cost.workspace);
}
static gcp_cost_call gcpi_stats_call(const gcpi_op *op, const gcp_cost_call *call)
{
    gcp_cost_call stats = *call;
    stats.in = call->out;
    stats.attributes = &(op + 1)->attributes;
    return stats;
}

/* Bytes that a concat or slice moves: only what does not lie in place. */
static double gcpi_view_traffic(const gcpi_problem *p, const gcpi_task *task, const gcpi_op *op)
{
    double bytes = 0;
    int joined = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
    for (int i = 0; i < op->inputs && joined && task->kind == GCPI_TASK_FORWARD; i++)
        if (!gcpi_in_place_in(p, op, i)) bytes += 2 * (double)gcpi_bytes_alone(p, gcpi_edge(p->tape, op, i));
    if (!joined) bytes = (task->free ? 0 : 2) * (double)gcpi_bytes_alone(p, op->out);
    for (int k = 0; k < task->count && task->kind == GCPI_TASK_BACKWARD; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        if (o->mode == GCPI_READ || o->mode == GCPI_ALIAS) continue;
        if (joined) bytes += (o->mode == GCPI_ADD ? 3 : 2) * (double)gcpi_bytes_alone(p, o->item);
        else bytes += o->mode == GCPI_ADD ? bytes / 2 : (double)gcpi_bytes_alone(p, o->item);   /* or zeros beside it */
    }
    return bytes;
}

static double gcpi_task_traffic(const gcpi_problem *p, const gcpi_task *task, const gcpi_op *op)
{
    double bytes = 0;
    int view = op ? gcpi_facts_of(op).view : GCPI_VIEW_NONE;
    if (task->free) return 0;
    if (view == GCPI_VIEW_JOINED || view == GCPI_VIEW_PART) return gcpi_view_traffic(p, task, op);
    for (int k = 0; k < task->count; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        bytes += (double)gcpi_bytes_alone(p, o->item) * (o->mode == GCPI_ADD ? 2 : 1);
    }
    return bytes;
}

static void gcpi_task_cost(const gcpi_problem *p, gcpi_task *task, const gcpi_op *op, int backward)
{
    gcp_shape in[GCP_MAX_INPUTS], out[GCP_MAX_OUTPUTS];
    const gcp_tape *t = p->tape;
    const gcp_op *row = gcpi_row_for(&p->target, op, GCP_ROW_APPLY);
    gcp_cost_call call, stats;
    gcp_cost cost;
    memset(&cost, 0, sizeof cost);
    memset(&call, 0, sizeof call);
    for (int i = 0; op && i < op->inputs; i++) in[i] = t->tensors[gcpi_edge(t, op, i)].shape;
    for (int j = 0; op && j < op->outputs; j++) out[j] = t->tensors[op->out + j].shape;
    cost.bytes = gcpi_task_traffic(p, task, op);
    if (op) {
        call.attributes = op->context ? op->context : (const void *)&op->attributes;
        call.inputs = op->inputs; call.outputs = op->outputs;
    }
    call.in = in; call.out = out;
    call.backward = backward; call.target = &p->target; call.store = gcpi_task_store(p, task);
    for (int i = 0; backward && op && i < GCPI_MIN(op->inputs, 32); i++)
        call.wanted |= (unsigned)p->items[t->tensor_count + gcpi_edge(t, op, i)].active << i;
    if (!op) in[0] = t->tensors[p->items[p->operands[task->operands].item].tensor].shape;      /* of a group */
    if (!backward && gcpi_stats_follow(p, op)) { stats = gcpi_stats_call(op, &call); call.fused = &stats; }
    if (row && row->cost) row->cost(&call, &cost);             /* row NULL: a custom op that will be refused */
    if (call.fused) cost.workspace = gcpi_stats_room(p, op, cost.workspace, &call);
    if (task->free) cost.bytes = 0;
    task->flops = cost.flops;
    task->workspace = cost.workspace ? cost.workspace + 2 * p->guard : 0;
    const int halves = call.store && row && row->flags & GCP_FLAG_BF16;
    const double rate = halves ? p->target.bf16_flops_per_second : p->target.flops_per_second;
    const double performed = cost.performed > 0 ? cost.performed : cost.flops;
    task->seconds = GCPI_MAX(performed / rate, cost.bytes / p->target.bytes_per_second);
}

/* Cost tables. A key says what a task does, not where it stands: its ops, the shapes of its operands, windows. */
#define GCPI_LINK_KEY "link 1e9 bytes"
static void gcpi_task_key(const gcpi_problem *p, const gcpi_task *task, char *key, size_t size)
{
    static const char *const kinds[] = { GCPI_TASK_KINDS(GCPI_TASK_WORD) };
    static const char *const modes[] = { "", ">", "+", "=" };
    const gcp_tape *t = p->tape;
    size_t n = (size_t)snprintf(key, size, "%s%s", kinds[task->kind], gcpi_task_store(p, task) ? " bf16" : "");
    int ops = task->kind == GCPI_TASK_FORWARD || task->kind == GCPI_TASK_BACKWARD;
    for (int o = task->op - GCPI_MAX(task->ops, 1) + 1; ops && o <= task->op && n < size; o++) {
        const gcpi_conv_attr *a = gcpi_facts_of(&t->ops[o]).window;
        n += (size_t)snprintf(key + n, size - n, " %s", t->ops[o].row->name);
        if (a && n < size)
            n += (size_t)snprintf(key + n, size - n, ",%dx%d,%dx%d,%d+%d+%d+%d,%dx%d,%d", a->kh, a->kw, a->sh, a->sw,
                                  a->pt, a->pb, a->pl, a->pr, a->dh, a->dw, a->groups);
    }
    for (int i = 0; task->concat && !task->free && i < t->ops[task->op].inputs && n < size; i++)
        if (!gcpi_in_place_in(p, &t->ops[task->op], i)) n += (size_t)snprintf(key + n, size - n, " copy %d", i);
    if (task->kind == GCPI_TASK_UPDATE && n < size)
        n += (size_t)snprintf(key + n, size - n, " %d%s", p->optimizer, p->far_slots ? " far" : "");
    for (int k = 0; k < task->count && n < size; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        const int *d = t->tensors[p->items[o->item].tensor].shape.d;
        n += (size_t)snprintf(key + n, size - n, " %s%dx%dx%dx%d", modes[o->mode], d[0], d[1], d[2], d[3]);
    }
}

enum { GCPI_KEY_BYTES = 1024 };
static uint64_t gcpi_key_hash(const char *key, size_t n)
{
    uint64_t h = GCPI_HASH;
    for (size_t i = 0; i < n; i++) if (key[i] != ' ') h = gcpi_hash_byte(h, (unsigned char)key[i]);
    return h;
}

/* A table's lines: keys as hashes, and their seconds. */
typedef struct gcpi_costs { uint64_t *hash; double *seconds; int count; } gcpi_costs;

/* 0: an error is on the tape, or the arena is too small. */
static int gcpi_costs_read(const gcpi_problem *p, const gcp_plan_opts *opts, gcp_arena *a, gcpi_costs *costs)
{
    int lines = 1, line = 0;
    for (const char *c = opts->costs; *c; c++) lines += *c == '\n';
    costs->count = 0;
    costs->hash = GCPI_SCRATCH(a, uint64_t, lines);
    costs->seconds = GCPI_SCRATCH(a, double, lines);
    if (!costs->hash || !costs->seconds) return 0;
    for (const char *c = opts->costs; *c;) {
        size_t n = strcspn(c, "\n"), last = n;
        char *end;
        line++;
        while (last > 0 && c[last - 1] != ' ') last--;
        if (n && *c != '#') {
            double value = gcpi_real(c + last, &end);
            if (!last || end != c + n || !(value >= 0) || value > 1e9) {
                gcpi_fail(p->tape, GCP_E_ARGUMENT, opts->at, p->tape->planning,
                          ".costs, line %d: not 'OP SHAPES SECONDS' (0 to 1e9), as gcp_costs_print writes it", line);
                return 0;
            }
            costs->hash[costs->count] = gcpi_key_hash(c, last);
            costs->seconds[costs->count++] = value;
        }
        c += n + (c[n] != 0);
    }
    return 1;
}

/* The first line of a key, or NULL. */
static const double *gcpi_costs_find(const gcpi_costs *costs, const char *key)
{
    const uint64_t hash = gcpi_key_hash(key, strlen(key));
    for (int k = 0; k < costs->count; k++) if (costs->hash[k] == hash) return &costs->seconds[k];
    return NULL;
}

/* Takes tasks' seconds, and the link's, from a table's text. 0: as gcpi_costs_read. */
static int gcpi_costs_apply(gcpi_problem *p, const gcp_plan_opts *opts, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_costs costs;
    double taken = 0, all = 0;
    p->costed = 0;
    if (!gcpi_costs_read(p, opts, a, &costs)) return 0;
    const double *link = gcpi_costs_find(&costs, GCPI_LINK_KEY);
    if (link && *link > 0) p->target.far_bytes_per_second = 1e9 / *link;
    for (int i = 0; i < p->task_count; i++) {
        char key[GCPI_KEY_BYTES];
        gcpi_task_key(p, &p->tasks[i], key, sizeof key);
        const double *seconds = gcpi_costs_find(&costs, key);
        if (seconds) { taken += p->tasks[i].seconds = *seconds; p->costed++; }
        all += p->tasks[i].seconds;
    }
    p->costed_share = all > 0 ? taken / all : 0;
    a->scratch = scratch;
    return 1;
}
