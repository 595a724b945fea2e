/* Sizes: of the state, of the arena that planning takes. */

/* The state's layout: counters (the tape's, then per parameter how often its slots were updated), values in order of
   recording, slots. These may wait in far memory instead. */
enum { GCPI_FAR_SLOTS_FIRST = 64 };            /* offset 0 says that a parameter has none */
typedef struct gcpi_counters { uint64_t steps, updates; } gcpi_counters;

static size_t gcpi_counters_bytes(const gcp_tape *t)
{
    return gcpi_round(sizeof(gcpi_counters) + (size_t)t->parameter_count * sizeof(uint64_t), GCPI_STATE_ALIGN);
}
static size_t gcpi_parameter_bytes(const gcp_tape *t, int i)
{
    return gcpi_round(gcpi_count(t->parameters[i].shape) * sizeof(gcp_real), GCPI_STATE_ALIGN);
}

/* Bytes of the state once it has the slots that each of these plans adds. */
static size_t gcpi_state_with(const gcp_tape *t, gcpi_plan *const *plans, int count)
{
    size_t total = gcpi_counters_bytes(t);
    for (int i = 0; i < t->parameter_count; i++) {
        int slots = t->parameters[i].slot ? t->slots : 0;
        for (int k = 0; k < count; k++) if (gcpi_trained(&plans[k]->p, i)) slots = GCPI_MAX(slots, plans[k]->slots);
        if (t->far_slots) slots = 0;
        total += gcpi_parameter_bytes(t, i) * (size_t)(1 + slots);
    }
    return total;
}
GCPI_DEF size_t gcp_slots_bytes(const gcp_tape *t, gcp_optimizer optimizer)
{
    const size_t slots = !optimizer ? 0 : optimizer == GCP_OPTIMIZER_SGD ? 1 : 2;
    size_t total = GCPI_FAR_SLOTS_FIRST;
    for (int i = 0; t && i < t->parameter_count; i++)
        if (t->parameters[i].kind == GCPI_PARAMETER) total += gcpi_parameter_bytes(t, i) * slots;
    return t && slots ? total : 0;
}
GCPI_DEF size_t gcp_state_bytes(const gcp_tape *t, gcp_optimizer optimizer)
{
    size_t total = t ? gcpi_counters_bytes(t) : 0;
    for (int i = 0; t && i < t->parameter_count; i++) total += gcpi_parameter_bytes(t, i);
    return t && optimizer && !t->far_slots ? total + gcp_slots_bytes(t, optimizer) - GCPI_FAR_SLOTS_FIRST : total;
}

/* Counts for an upper bound of what planning takes. list: instructions of the longest list that the policy can make;
   listed: their operands; written: those that they write; values: that forward makes. */
typedef struct gcpi_sizes { size_t tasks, forward, items, operands, list, listed, written, values; } gcpi_sizes;

static size_t gcpi_arena_budget(const gcpi_sizes *n, gcp_effort effort)
{
    const size_t nodes = (size_t)gcpi_efforts[effort <= GCP_EFFORT_THOROUGH ? effort : GCP_EFFORT_THOROUGH].nodes;
    size_t stages = GCPI_MIN(n->forward + 1, (size_t)GCPI_MOST_STAGES), rows = stages * (stages + 1) / 2,
           sets = n->forward <= GCPI_EXACT_VALUES ? (size_t)1 << GCPI_MIN(n->values, (size_t)GCPI_EXACT_VALUES) : 0;
    size_t chain = 2 * rows * ((GCPI_MOST_GRAINS + 1) * sizeof(float) + 2 * sizeof(int)) +
                   stages * (stages + 16) * sizeof(size_t) + (n->items + n->tasks) * 4 * sizeof(int);
    size_t exact = sets * sizeof(size_t) + sets * (n->tasks + 1) * (sizeof(double) + 4 * sizeof(int)) +
                   (n->tasks + n->items) * 4 * sizeof(int) + (sets ? gcpi_places_bytes(n->tasks, nodes) : 0);
    size_t cut = (n->items + n->forward) * 6 * sizeof(size_t) +
                 (n->operands + n->items + n->forward) * 8 * (2 * sizeof(int) + sizeof(double));
    return GCPI_MAX(GCPI_MAX(chain, exact), cut) + (7 + GCPI_LOWER) * n->list * sizeof(int) +
           n->items * (sizeof(double) + 1 + (GCPI_STATES + 1) * (1 + sizeof(uint16_t))) + 8192;
}

static size_t gcpi_arena_of(const gcp_tape *t, const gcp_plan_opts *o, const gcpi_sizes *n)
{
    size_t problem = n->items * (sizeof(gcpi_item) + 1) + n->tasks * sizeof(gcpi_task) +
                     n->operands * (sizeof(gcpi_operand) + sizeof(int)) + n->items * sizeof(int) +
                     n->forward * (4 * sizeof(gcpi_copied) + sizeof(int)) +
                     2 * (size_t)(t->parameter_count + 1) * sizeof(double);
    size_t lives = n->listed * (sizeof(int) + sizeof(gcpi_placed)) +
                   n->written * (sizeof(gcpi_value) + sizeof(gcpi_buffer) + 2 * sizeof(gcpi_spot) + 6 * sizeof(int) +
                                 2 * sizeof(size_t) + sizeof(gcpi_plan_buffer) + sizeof(gcpi_rectangle)) +
                   n->items * 2 * sizeof(int);
    size_t lists = n->list * (5 * sizeof(gcpi_instruction) + 6 * sizeof(size_t) + 15 * sizeof(int) + sizeof(double));
    size_t choice = 2 * (n->items + (n->forward + 4) * 5 * sizeof(int) + 2 * (size_t)t->segment_count * sizeof(int));
    size_t model = n->items * (6 * sizeof(int) + sizeof(size_t) + 2) +
                   n->tasks * (6 * sizeof(int) + 3 * sizeof(size_t) + 2) + 2 * n->operands * sizeof(int);
    size_t search = (n->items * 4 + n->forward * 4 + n->operands) * 2 * sizeof(size_t) +
                    (10 * n->forward + 4 * n->items + 5 * (size_t)t->segment_count) * sizeof(int);
    size_t far =
        o->far ? n->list * (4 * sizeof(int) + 2 * sizeof(size_t) + sizeof(double)) + n->items * 7 * sizeof(int) : 0;
    size_t layout =
        gcpi_packing_bytes(n->written, n->list) + n->list + 2 * (size_t)GCPI_FIT_LIVES * sizeof(int) +
        2 * gcpi_heights_bytes(n->list) +
        (n->written < GCPI_LAYOUT_MANY ? 0 : gcpi_nearby_bytes(n->written, n->list));
    return sizeof(gcpi_plan) + problem + lives + lists + choice + model + search + far + layout +
           (o->policy == GCP_POLICY_BUDGET ? gcpi_arena_budget(n, o->effort) : 0) + 128 * 64;
}

GCPI_DEF size_t gcp_plan_arena_at(gcp_tensor loss, gcp_plan_opts o)
{
    const gcp_tape *t = loss.tape;
    gcpi_sizes n;
    if (!t || !t->ops || !loss.id) return 0;
    size_t tensors = (size_t)t->tensor_count, edges = (size_t)t->edge_count, parameters = (size_t)t->parameter_count,
           widest = 0, lines = 1;
    int depth = 0;
    for (int s = 0; s < t->segment_count; s++) depth = GCPI_MAX(depth, t->segments[s].depth);
    n.forward = (size_t)t->op_count; n.items = 2 * tensors;
    n.tasks = 2 * n.forward + 3 * parameters + 2; n.operands = 3 * edges + 4 * tensors + 4 * parameters + 1;
    n.list = (size_t)gcpi_order_capacity(&o, (ptrdiff_t)n.tasks, (ptrdiff_t)n.forward, depth);
    const size_t again = (n.list - n.tasks) / n.forward;
    n.listed = n.operands + again * (edges + 2 * tensors);
    n.written = (2 + again) * tensors + n.tasks; n.values = tensors - parameters;
    if (o.far) { n.tasks += 3 * tensors; n.operands += 3 * tensors; n.written += 3 * tensors; }
    if (gcpi_moves(&o)) { n.tasks += 2 * tensors; n.operands += 4 * tensors; n.written += 2 * tensors; }
    for (int i = 0; i < t->op_count; i++) widest = GCPI_MAX(widest, 2 * (size_t)(t->ops[i].inputs + t->ops[i].outputs));
    for (const char *c = o.list; c && *c; c++) lines += *c == '\n';
    if (o.list) {
        n.list = lines;
        n.listed = n.written = lines * (widest + parameters);
        n.tasks += 3 * tensors;
        n.operands += 3 * tensors;
    }
    lines = 1;
    for (const char *c = o.costs; c && *c; c++) lines += *c == '\n';
    return gcpi_arena_of(t, &o, &n) + lines * (sizeof(uint64_t) + sizeof(double));
}

/* An upper bound from the text's lines and words alone, without parsing it. */
GCPI_DEF size_t gcp_graph_arena_at(const gcp_tape *t, const char *text, gcp_plan_opts o)
{
    gcpi_sizes n;
    if (!text) text = "";
    size_t lines = 2, words = 2, length = strlen(text), line = 0, widest = 2;
    n.forward = n.values = 0;
    for (size_t i = 0; i < length; i++) {
        int begins = text[i] > ' ' && (i == 0 || text[i - 1] <= ' ');
        line = text[i] == '\n' ? 0 : line + (size_t)begins;
        widest = GCPI_MAX(widest, line);
        lines += text[i] == '\n'; words += (size_t)begins;
        n.forward += begins && line == 1 && (text[i] == 'f' || text[i] == 'o');
        n.values += begins && line == 1 && (text[i] == 'f' || text[i] == 'o' || text[i] == 't');
    }
    n.forward = GCPI_MAX(n.forward, 1); n.tasks = n.items = lines; n.operands = words;
    n.list = (size_t)gcpi_order_capacity(&o, (ptrdiff_t)lines, (ptrdiff_t)lines, 2);
    n.listed = words * (1 + n.list / lines);
    if (o.far || o.list) { n.tasks += 3 * lines; n.operands += 3 * lines; }
    if (gcpi_moves(&o)) { n.tasks += lines; n.operands += 2 * lines; }
    size_t given = o.list != NULL;
    for (const char *c = o.list; c && *c; c++) given += *c == '\n';
    n.list += given; n.listed += given * widest;
    n.written = n.listed;
    return gcpi_arena_of(t, &o, &n) + length + lines * (2 * sizeof(char *) + 8 * sizeof(int)) + 1;
}
