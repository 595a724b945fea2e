/* Reports: plain text through a writer. */

static int gcpi_reportable(const gcp_plan *plan)
{
    return plan && plan->core && plan->generation == plan->tape->generation;
}

/* How a list opens: a line where updates are fused, and one for each concat or slice that copies what it need not. */
static void gcpi_list_opening(const gcpi_plan *core, gcp_writer w)
{
    const gcpi_problem *p = &core->p;
    char name[256];
    if (core->opts.fuse_update) gcpi_say(w, "U " GCPI_LIST_FUSED "\n");
    for (int f = 0; f < p->forward && !gcpi_is_graph(p); f++) {
        const gcpi_copied *c = &p->copied[p->tasks[f].op];
        const gcpi_op *op = &p->tape->ops[p->tasks[f].op];
        const int view = gcpi_facts_of(op).view;
        for (int back = 0; back < 2; back++) {
            if (view != GCPI_VIEW_JOINED && (view != GCPI_VIEW_PART || back)) continue;
            uint64_t bits = (back ? c->gradients : c->values) & UINT64_MAX >> (64 - op->inputs);
            if (!bits) continue;
            gcpi_say(w, "C %s%s", back ? "gradient of " : "", gcpi_task_name(p, &p->tasks[f], name, sizeof name));
            for (int i = 0; i < op->inputs; i++) if (bits >> i & 1) gcpi_say(w, " %d", i);
            gcpi_say(w, "\n");
        }
    }
}

GCPI_DEF void gcp_list_print(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    if (!gcpi_reportable(plan)) return;
    gcpi_list_opening(plan->core, w);
    for (int i = 0; i < plan->instructions; i++)
        gcpi_say(w, "%c %s\n", plan->core->list.at[i].letter,
                 gcpi_task_name(&plan->core->p, &plan->core->p.tasks[plan->core->list.at[i].task], name, sizeof name));
}

static void gcpi_link_print(const gcpi_plan *core, gcp_writer w)
{
    double bytes = 0, seconds = 0;
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        if (gcpi_copies(t) && core->seconds[i] > 0) {
            bytes += (double)core->p.items[t->item].bytes;
            seconds += core->seconds[i];
        }
    }
    if (seconds > 0) gcpi_say(w, GCPI_LINK_KEY " %.9g\n", 1e9 * seconds / bytes);
}

GCPI_DEF void gcp_costs_print(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan) || gcpi_is_graph(&plan->core->p)) return;
    const gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch, count = core->list.count;
    uint64_t *hash = GCPI_SCRATCH(a, uint64_t, count);
    double *same = GCPI_SCRATCH(a, double, count);
    char key[GCPI_KEY_BYTES];
    gcpi_say(w, "# gcp-costs: seconds on %s, %d threads\n", core->p.target.name, core->p.target.threads);
    gcpi_link_print(core, w);
    for (ptrdiff_t i = 0; hash && same && i < count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        gcpi_task_key(&core->p, t, key, sizeof key);
        hash[i] = core->seconds[i] > 0 && t->kind < GCPI_TASK_OFFLOAD ? gcpi_key_hash(key, strlen(key)) : 0;
    }
    for (ptrdiff_t i = 0; hash && same && i < count; i++) {
        int n = 0;
        for (ptrdiff_t k = i; hash[i] && k < count; k++) {
            if (hash[k] != hash[i]) continue;
            same[n++] = core->seconds[k];
            if (k > i) hash[k] = 0;
        }
        if (!n) continue;
        gcpi_task_key(&core->p, &core->p.tasks[core->list.at[i].task], key, sizeof key);
        gcpi_say(w, "%s %.9g\n", key, gcpi_median(same, 1, n));
    }
    a->scratch = scratch;
}

GCPI_DEF void gcp_graph_print(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    gcp_arena *a = core->opts.arena ? core->opts.arena : p->tape->arena;
    ptrdiff_t scratch = a->scratch;
    unsigned char *done = GCPI_SCRATCH(a, unsigned char, p->item_count);
    if (done) {
        gcpi_say(w, "# gcp-graph %d\n# numbers %zu\n# state %zu\n# units %d\n", gcpi_graph_least(p), p->numbers,
                 plan->state_bytes, p->units);
        for (int i = 0; i < p->operand_count; i++) gcpi_graph_print_tensor(p, p->operands[i].item, done, w);
        for (int i = 0; i < p->task_count; i++) gcpi_graph_print_op(p, i, w);
    }
    a->scratch = scratch;
}

/* The unit in which so many bytes are between 1 and 1024. */
static double gcpi_unit(size_t bytes, const char **name)
{
    static const char *const names[] = { "bytes", "KiB", "MiB", "GiB" };
    double unit = 1;
    int k = 0;
    while (k < 3 && (double)bytes >= 1024 * unit) { unit *= 1024; k++; }
    *name = names[k];
    return unit;
}

GCPI_DEF void gcp_plan_print(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    const char *unit;
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    const double one = gcpi_unit(plan->live_peak, &unit);
    for (int i = 0; i < plan->instructions; i++) {
        if (core->list.at[i].task == core->p.forward && core->p.training)
            gcpi_say(w, "-- forward is done; backward begins, last to first --\n");
        gcpi_say(w, "%5d  %c %-44s ", i + 1, core->list.at[i].letter,
                 gcpi_task_name(&core->p, &core->p.tasks[core->list.at[i].task], name, sizeof name));
        gcpi_say(w, one > 1 ? "%10.3f %s live" : "%10.0f %s live", (double)core->live[i] / one, unit);
        if (core->seconds[i] > 0) gcpi_say(w, " %10.3f ms", 1e3 * core->seconds[i]);
        gcpi_say(w, i == core->peak_at ? "  <- peak\n" : "\n");
    }
    gcpi_say(w, "F forward, R forward again, B backward, U update, H gradient ready, W wait for its hook");
    gcpi_say(w, core->far_bytes ? ", O copy to far memory, P copy back, A wait until a copy has arrived\n" : "\n");
}

static int gcpi_rerun(const gcpi_plan *core, int task)
{
    int n = 0;
    for (ptrdiff_t i = 0; i < core->list.count; i++)
        n += core->list.at[i].letter == 'R' && core->list.at[i].task == task;
    return n;
}

GCPI_DEF void gcp_sweep_csv(const gcp_point *p, int count, gcp_writer w)
{
    gcpi_say(w, "budget_bytes,plan_bytes,planned_with,time_ratio,bound_ratio\n");
    for (int i = 0; i < count; i++)
        if (p[i].bytes)
            gcpi_say(w, "%zu,%zu,%zu,%.6f,%.6f\n", p[i].budget, p[i].bytes, p[i].planned_with,
                     p[i].seconds / p[i].keep_all_seconds, p[i].bound_seconds / p[i].keep_all_seconds);
        else gcpi_say(w, "%zu,,%zu,,\n", p[i].budget, p[i].planned_with);
}

/* By gcp_keep or a .keep, not by what the op is. */
static int gcpi_kept_as_asked(const gcpi_problem *p, const gcpi_op *op)
{
    int kept = 0;
    for (int j = 0; j < op->outputs; j++) kept |= p->items[op->out + j].active && p->items[op->out + j].stored;
    return kept && !(op->row->flags & GCP_FLAG_ONCE);
}

/* A line of the table: of a graph's text only bytes are known. */
typedef struct gcpi_layer { size_t parameters, bytes; char shape[64]; int asked; } gcpi_layer;

static gcpi_layer gcpi_layer_of(const gcpi_problem *p, const gcpi_task *task)
{
    const gcp_tape *t = p->tape;
    gcpi_layer layer = { 0, 0, "", 0 };
    for (int k = 0; k < task->count; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        if (gcpi_is_graph(p)) layer.bytes += o->mode == GCPI_READ ? 0 : p->items[o->item].bytes;
        else if (o->mode == GCPI_READ && t->tensors[o->item].kind == GCPI_PARAMETER)
            layer.parameters += gcpi_count(t->tensors[o->item].shape);
    }
    if (gcpi_is_graph(p)) return layer;
    const gcpi_op *op = &t->ops[task->op];
    for (int j = 0; j < op->outputs; j++)
        if (p->items[op->out + j].active && p->items[op->out + j].root == op->out + j)
            layer.bytes += p->items[op->out + j].bytes;
    gcpi_shape_text(t->tensors[op->out].shape, layer.shape, sizeof layer.shape);
    layer.asked = gcpi_kept_as_asked(p, op);
    return layer;
}

GCPI_DEF void gcp_layers_print(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    if (!gcpi_reportable(plan)) return;
    const gcpi_problem *p = &plan->core->p;
    size_t parameters = 0, bytes = 0;
    gcpi_say(w, "%-40s %-16s %12s %14s\n", "op", "output", "parameters", "bytes");
    for (int f = 0; f < p->forward; f++) {
        const gcpi_layer layer = gcpi_layer_of(p, &p->tasks[f]);
        const int again = gcpi_rerun(plan->core, f);
        gcpi_say(w, "%-40s %-16s %12zu %14zu  ", gcpi_task_name(p, &p->tasks[f], name, sizeof name), layer.shape,
                 layer.parameters, layer.bytes);
        if (again) gcpi_say(w, "run %d more time%s", again, again > 1 ? "s" : "");
        else gcpi_say(w, "%s", p->tasks[f].free ? "view" : "run once");
        gcpi_say(w, "%s\n", layer.asked ? ", kept as asked" : "");
        parameters += layer.parameters; bytes += layer.bytes;
    }
    gcpi_say(w, "%-40s %-16s %12zu %14zu\n", "total", "", parameters, bytes);
}

static void gcpi_why_in_vain(const gcp_plan *plan, gcp_writer w)
{
    if (!plan->core->p.training || !plan->reruns || !plan->keep_all_bytes || plan->bytes < plan->keep_all_bytes) return;
    gcpi_say(w,
             "checkpointing saves nothing here: this plan takes %.1f %% of the %.3f MiB that GCP_POLICY_KEEP_ALL "
             "takes, with %d rerun%s of units. What crosses its cuts stays until backward, and what is run again at "
             "the peak comes on top: try GCP_POLICY_BUDGET with a .budget, GCP_POLICY_SQRT, or other blocks\n",
             100.0 * (double)plan->bytes / (double)plan->keep_all_bytes, gcpi_mib(plan->keep_all_bytes), plan->reruns,
             plan->reruns == 1 ? "" : "s");
}

static gcpi_lowest gcpi_peak_holds(const gcp_plan *plan)
{
    const gcpi_plan *core = plan->core;
    const gcp_split *s = &plan->split;
    gcpi_lowest at;
    memset(&at, 0, sizeof at);
    at.task = core->list.at[core->peak_at].task;
    at.gradients = s->weight_gradients;
    at.batch = s->inputs + s->kept + s->recomputed + s->activation_gradients;
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        const int lives = x->first <= core->peak_at && x->last >= core->peak_at;
        if (core->p.items[x->item].halves && lives) at.halves += x->bytes;
    }
    return at;
}

/* Why the plan needs its bytes: the share that no plan can save, and why nothing was recomputed, if so. */
static void gcpi_why_reason(const gcp_plan *plan, gcp_writer w)
{
    const gcp_split *s = &plan->split;
    const gcpi_plan *core = plan->core;
    size_t fixed = plan->state_bytes + s->inputs + s->weight_gradients;
    double share = 100.0 * (double)fixed / (double)plan->bytes;
    gcpi_lowest lowest;
    char help[500];
    if (!core->p.training) return;
    if (share > 50)
        gcpi_say(w,
                 "why not less: weights, their gradients, optimiser and inputs are %.1f %% of the peak and need as "
                 "much under every plan: "
                 "at most %.1f %% can be saved by recomputing\n",
                 share, 100 - share);
    lowest = gcpi_peak_holds(plan);
    gcpi_help_text(core, &lowest, help, sizeof help);
    if (share > 50 && *help) gcpi_say(w, "what would help, in bytes: %s\n", help + 2);
    if (plan->reruns == 0 && core->opts.policy != GCP_POLICY_KEEP_ALL && !core->opts.list && !plan->far_bytes)
        gcpi_say(w, "why nothing is recomputed: %s\n",
                 core->opts.policy == GCP_POLICY_BUDGET ? "keeping all fits the budget"
                 : core->opts.policy == GCP_POLICY_SEGMENTS && core->p.tape->segment_count < 2
                     ? "no GCP_SEGMENT block was recorded"
                 : core->opts.policy >= GCP_POLICY_SQRT
                     ? "every plan of this policy needs at least as much as keeping all"
                 : plan->segments <= 1
                     ? "one segment holds the whole network, and the last segment is never run again"
                     : "the last segment is never run again, and nothing that backward reads lies inside the others");
    if (core->opts.policy < GCP_POLICY_SQRT &&
        core->p.tasks[core->list.at[core->peak_at].task].kind == GCPI_TASK_FORWARD &&
        core->list.at[core->peak_at].letter == 'R')
        gcpi_say(w, "the peak is inside a segment that is run again: more, shorter segments would lower it\n");
}

/* What the CPU multiplies where activations are rounded. */
static const char *gcpi_products_of(const gcp_target *t)
{
    if (t->device) return "";
    return t->isa == GCP_ISA_AVX512_BF16 ? "; products multiply bfloat16 (AVX512-BF16)" : "; products multiply floats";
}

/* What two bytes cost at the peak: its task widens blocks, each thread its own. halves: bytes that lie in bfloat16. */
static void gcpi_why_widened(const gcp_plan *plan, size_t halves, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    const gcpi_task *task = &core->p.tasks[core->list.at[core->peak_at].task];
    const size_t floats = gcpi_workspace_with(&core->p, task, core->p.target.threads, GCP_STORE_REAL),
                 more = task->workspace - GCPI_MIN(floats, task->workspace);
    if (more <= halves / 4) return;
    gcpi_say(w, "the workspace takes %.3f MiB more than with floats (widened blocks, on %d thread%s)%s\n",
             gcpi_mib(more), core->p.target.threads, core->p.target.threads == 1 ? "" : "s",
             more > halves ? ": more than bfloat16 saves there, a float plan may take less" : "");
}

/* What lies in two bytes at the peak; and what does not, because of an op. */
static void gcpi_why_store(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    size_t halves = 0, floats = 0, most = 0;
    int largest = 0;
    char name[128];
    if (!core->p.store) return;
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        const gcpi_item *item = &core->p.items[x->item];
        if (!item->rounds || x->first > core->peak_at || x->last < core->peak_at) continue;
        *(item->width == (int)sizeof(uint16_t) ? &halves : &floats) += x->bytes;
        if (item->width != (int)sizeof(uint16_t) && x->bytes > most) { most = x->bytes; largest = x->item; }
    }
    gcpi_say(w, "%.3f MiB of the peak are activations in bfloat16: floats would take as much again%s\n",
             gcpi_mib(halves), gcpi_products_of(&core->p.target));
    gcpi_why_widened(plan, halves, w);
    if (!floats) return;
    gcpi_item_name(&core->p, largest, name, sizeof name);
    gcpi_say(w, "%.3f MiB of the peak are rounded, but lie in floats, most of it %s: %s takes no bfloat16 there\n",
             gcpi_mib(floats), name, gcpi_store_denied(&core->p, core->p.items[largest].tensor));
}

/* A graph's text does not tell what its state is, nor whose gradients are weights'. */
static void gcpi_why_bytes(const gcp_plan *plan, gcp_writer w)
{
    const gcp_split *s = &plan->split;
    const int graph = gcpi_is_graph(&plan->core->p);
    gcpi_say(w, "peak %.3f MiB (%zu bytes) = state: ", gcpi_mib(plan->bytes), plan->bytes);
    if (graph) gcpi_say(w, "%.3f", gcpi_mib(plan->state_bytes));
    else
        gcpi_say(w, "weights %.3f + statistics %.3f + optimiser %.3f", gcpi_mib(s->weights), gcpi_mib(s->statistics),
                 gcpi_mib(s->optimizer));
    gcpi_say(w, "; slab: input %.3f + kept %.3f + recomputed %.3f + ", gcpi_mib(s->inputs), gcpi_mib(s->kept),
             gcpi_mib(s->recomputed));
    if (graph) gcpi_say(w, "gradients %.3f", gcpi_mib(s->weight_gradients + s->activation_gradients));
    else
        gcpi_say(w, "weight gradients %.3f + activation gradients %.3f", gcpi_mib(s->weight_gradients),
                 gcpi_mib(s->activation_gradients));
    gcpi_say(w, " + workspace %.3f + gaps %.3f\n", gcpi_mib(s->workspace), gcpi_mib(s->gaps));
}

static void gcpi_why_time(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    const gcpi_task *task = &core->p.tasks[core->list.at[core->peak_at].task];
    gcp_at at = gcpi_task_at(&core->p, (int)(task - core->p.tasks), core->opts.at);
    char name[256];
    gcpi_say(w, "set by %c %s (%s:%d), instruction %d of %d; %d rerun%s of units, ",
             core->list.at[core->peak_at].letter,
             gcpi_task_name(&core->p, task, name, sizeof name), gcpi_basename(at.file), at.line, core->peak_at + 1,
             plan->instructions, plan->reruns, plan->reruns == 1 ? "" : "s");
    if (plan->forward_flops > 0)
        gcpi_say(w, "extra forward FLOPs %.1f %%, ", 100.0 * plan->rerun_flops / plan->forward_flops);
    gcpi_say(w, "time by %s %.3f of keeping all\n", plan->costed ? ".costs" : "the cost model",
             plan->keep_all_seconds > 0 ? plan->seconds / plan->keep_all_seconds : 1.0);
    if (core->threads_asked > core->p.target.threads)
        gcpi_say(w, "one thread: nothing runs the target's %d (compile with -fopenmp, or give .parallel_for)\n",
                 core->threads_asked);
}

/* Whether an instruction from i on reads the value that item has before it; 2: none, but it lives to the step's end. */
static int gcpi_read_from(const gcpi_plan *core, ptrdiff_t i, int item)
{
    for (; i < core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        const gcpi_operand *o = &core->p.operands[t->operands];
        int writes = 0;
        for (int k = 0; k < t->count; k++) {
            if (o[k].item != item) continue;
            if (o[k].mode == GCPI_READ || o[k].mode == GCPI_ADD) return 1;
            writes = 1;
        }
        if (writes) return 0;
    }
    return core->p.items[item].pinned ? 2 : 0;
}

/* Whether the columns of item a lie within those of b, which shares its bytes. */
static int gcpi_lies_in(const gcpi_problem *p, int a, int b)
{
    const gcpi_item *x = &p->items[a], *y = &p->items[b];
    size_t wide = gcpi_item_row(x), wider = gcpi_item_row(y);
    return a != b && x->pitch == y->pitch && x->offset >= y->offset && x->offset + wide <= y->offset + wider &&
           (wide < wider || a > b);
}

/* Bytes of a buffer at the peak that nothing needs any more: they stay for another part of a concat, or for a slice.
   *last: the largest part that is needed. */
static size_t gcpi_held_up(const gcpi_plan *core, const gcpi_plan_buffer *b, int *last)
{
    const gcpi_problem *p = &core->p;
    size_t needed = 0, most = 0;
    if (p->items[b->item].next < 0 || b->first > core->peak_at || b->last <= core->peak_at) return 0;
    for (int i = b->item; i >= 0; i = p->items[i].next) {
        int inside = !gcpi_read_from(core, core->peak_at, i);
        for (int k = b->item; !inside && k >= 0; k = p->items[k].next)
            inside = gcpi_lies_in(p, i, k) && gcpi_read_from(core, core->peak_at, k);
        size_t bytes = inside ? 0 : gcpi_dense_bytes(p, i);
        if (bytes > most) { most = bytes; *last = i; }
        needed += bytes;
    }
    return most && needed < b->bytes ? b->bytes - needed : 0;
}

static void gcpi_why_views(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    char whole[128], part[128];
    size_t all = 0, most = 0;
    int buffer = 0, last = 0;
    for (int b = 0; b < core->buffer_count; b++) {
        int needed = 0;
        size_t held = gcpi_held_up(core, &core->buffers[b], &needed);
        all += held;
        if (held > most) { most = held; buffer = b; last = needed; }
    }
    if (all < plan->bytes / 100) return;
    gcpi_item_name(&core->p, core->buffers[buffer].item, whole, sizeof whole);
    gcpi_item_name(&core->p, last, part, sizeof part);
    gcpi_say(w,
             "%.3f MiB at the peak are held up by views, most of it %s%s (%.3f of %.3f MiB), which stays for %s: %s\n",
             gcpi_mib(all), core->p.items[last].kind == GCPI_GRADIENT_ITEM ? "the gradient of " : "", whole,
             gcpi_mib(most), gcpi_mib(core->buffers[buffer].bytes), part,
             core->opts.policy == GCP_POLICY_BUDGET
                 ? "copies of such parts were tried, and are no faster in this budget"
                                                  : "GCP_POLICY_BUDGET copies such parts where that pays");
}

GCPI_DEF void gcp_why_print(const gcp_plan *made, gcp_writer w)
{
    if (made && !made->core && made->tape && gcp_error(made->tape)) gcpi_say(w, "no plan: %s\n", gcp_error(made->tape));
    if (!gcpi_reportable(made)) return;
    gcp_plan now = *made, *plan = &now;
    gcpi_plan_sizes(plan);                        /* the state may have grown */
    const gcpi_plan *core = plan->core;
    gcpi_why_in_vain(plan, w);
    gcpi_why_bytes(plan, w);
    gcpi_why_store(plan, w);
    gcpi_why_time(plan, w);
    if (core->opts.policy == GCP_POLICY_BUDGET && plan->method)
        gcpi_say(w,
                 "found by %s for %.3f MiB; no schedule in these bytes is below %.4f of keeping all: another may be at "
                 "most %.2f %% faster\n",
                 plan->method, gcpi_mib(core->opts.budget), plan->bound_seconds / plan->keep_all_seconds,
                 100 * (1 - plan->bound_seconds / plan->seconds));
    if (core->opts.costs)
        gcpi_say(w,
                 ".costs gave the seconds of %d ops, %.1f %% of all ops' seconds; the others are the cost model's%s\n",
                 core->p.costed, 100 * core->p.costed_share,
                 core->p.store && core->p.costed_share < 0.5 ? ": a profile is of one .store alone" : "");
    if (plan->far_bytes)
        gcpi_say(w,
                 "%.3f MiB wait in far memory, %.3f MiB are copied in a step; computing waits for copies for %.2f %% "
                 "of the step\n",
                 gcpi_mib(plan->far_bytes), gcpi_mib(plan->far_traffic),
                 plan->seconds > 0 ? 100 * plan->stall_seconds / plan->seconds : 0.0);
    if (core->p.far_slots)
        gcpi_say(w, "the optimiser's slots wait in far memory (gcp_slots_bind); each update copies its own\n");
    if (plan->moved_bytes)
        gcpi_say(w, "%zu bytes are moved inside the slab in a step: no layout without that fits\n", plan->moved_bytes);
    if (plan->coarse == 2) gcpi_say(w, ".progress stopped the search: a longer one may find a faster schedule\n");
    if (plan->coarse == 1)
        gcpi_say(w, "the plan's arena had no room for all of the search: gcp_plan_arena says how much it takes\n");
    gcpi_why_views(plan, w);
    gcpi_why_reason(plan, w);
}
