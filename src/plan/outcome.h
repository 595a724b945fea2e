/* An outcome: an answer as a list, or why there is none. The words of the refusal, and what would help, are made
   here. */

static gcp_at gcpi_task_at(const gcpi_problem *p, int task, gcp_at other)          /* where the user recorded it */
{
    return p->tasks[task].kind <= GCPI_TASK_BACKWARD && !gcpi_is_graph(p) ? p->tape->ops[p->tasks[task].op].at : other;
}

/* Whether a smaller batch can be had: an input has more than one sample. */
static int gcpi_can_halve(const gcp_tape *t)
{
    for (int i = 1; i < t->tensor_count; i++)
        if (t->tensors[i].kind == GCPI_INPUT && t->tensors[i].shape.d[0] > 1) return 1;
    return 0;
}

/* A task's workspace with other options of the plan's: another number of threads, another .store. */
static size_t gcpi_workspace_with(const gcpi_problem *p, const gcpi_task *task, int threads, gcp_store store)
{
    gcpi_problem other = *p;
    gcpi_task alone = *task;
    if (task->kind > GCPI_TASK_BACKWARD) return task->workspace;
    other.target.threads = threads, other.store = store;
    gcpi_task_cost(&other, &alone, task->ops > 1 ? NULL : &p->tape->ops[task->op], task->kind == GCPI_TASK_BACKWARD);
    return alone.workspace;
}

/* What one thread alone would take less for a task's workspace. */
static size_t gcpi_threads_take(const gcpi_problem *p, const gcpi_task *task)
{
    return task->workspace - GCPI_MIN(gcpi_workspace_with(p, task, 1, p->store), task->workspace);
}

/* What a task cannot do without where halves lie in two bytes: its operands, each root once, and its workspace. */
static size_t gcpi_halves_hold(const gcpi_problem *p, const gcpi_task *task)
{
    size_t bytes = gcpi_workspace_with(p, task, p->target.threads, GCP_STORE_BF16);
    for (int k = 0; k < task->count; k++) {
        const gcpi_operand *o = &p->operands[task->operands];
        const gcpi_item *item = &p->items[o[k].item];
        int again = 0;
        for (int i = 0; i < k; i++) again |= p->items[o[i].item].root == item->root;
        if (!again) bytes += item->halves ? item->bytes / 2 : item->bytes;
    }
    return bytes;
}

/* What GCP_STORE_BF16 would save of the least slab, as far as can be said without planning with it: half of the values
   at the peak, less what its task's workspace grows by; never more than what the task that holds most leaves. */
static size_t gcpi_halves_take(const gcpi_problem *p, const gcpi_lowest *at)
{
    const gcpi_task *task = &p->tasks[at->task];
    const size_t grown = gcpi_workspace_with(p, task, p->target.threads, GCP_STORE_BF16),
                 all = at->halves / 2 + task->workspace;
    size_t most = 0;
    for (int k = 0; k < p->task_count; k++)
        if (p->tasks[k].kind <= GCPI_TASK_BACKWARD) most = GCPI_MAX(most, gcpi_halves_hold(p, &p->tasks[k]));
    return GCPI_MIN(all - GCPI_MIN(all, grown), at->slab - GCPI_MIN(most, at->slab));
}

/* What else would lower a peak that holds this: each with the bytes that it saves, at most or about. Empty: nothing. */
static void gcpi_help_text(const gcpi_plan *core, const gcpi_lowest *at, char *text, size_t size)
{
    const size_t gradients = at->gradients, batch = at->batch;
    const gcp_plan_opts *o = &core->opts;
    int adam = o->optimizer == GCP_OPTIMIZER_ADAM || o->optimizer == GCP_OPTIMIZER_ADAMW;
    size_t n = 0;
    text[0] = 0;
    if (gcpi_is_graph(&core->p)) return;
    const size_t threads = gcpi_threads_take(&core->p, &core->p.tasks[at->task]),
                 halves = core->p.store || sizeof(gcp_real) != sizeof(float) ? 0 : gcpi_halves_take(&core->p, at);
    if (halves) n += (size_t)snprintf(text, size, "; .store = GCP_STORE_BF16: about %zu less", halves);
    if (adam && core->slot_bytes && n < size)
        n += (size_t)snprintf(text + n, size - n, "; SGD with momentum in place of %s: %zu less",
                              o->optimizer == GCP_OPTIMIZER_ADAM ? "Adam" : "AdamW", core->slot_bytes / 2);
    if (o->optimizer == GCP_OPTIMIZER_SGD && core->slot_bytes && n < size)
        n += (size_t)snprintf(text + n, size - n, "; SGD without momentum: %zu less", core->slot_bytes);
    if (core->slot_bytes && n < size)
        n += (size_t)snprintf(text + n, size - n, "; slots in far memory (gcp_slots_bind): up to %zu less",
                              core->slot_bytes);
    if (o->optimizer && !o->fuse_update && gradients && n < size)
        n += (size_t)snprintf(text + n, size - n, "; .fuse_update%s%s: frees up to %zu of weight gradients",
                              o->clip_norm > 0 ? ", without .clip_norm" : "",
                              o->accumulate > 1 ? ", without .accumulate" : "", gradients);
    if (threads && n < size)
        n += (size_t)snprintf(text + n, size - n, "; a target with .threads = 1, in place of %d: up to %zu less",
                              core->p.target.threads, threads);
    if (batch && gcpi_can_halve(core->p.tape) && n < size)
        snprintf(text + n, size - n, "; half the batch: about %zu less", batch / 2);
}

/* What planning with one choice of views gave: a list with its layout, or why there is none. */
typedef struct gcpi_outcome {
    int made;
    gcpi_list list; gcpi_fit fit; const char *method;
    double seconds, bound;            /* seconds: as the search judged it */
    size_t slab, keep_all, checkpoints;           /* bytes; keep_all 0: not known */
    int segments, coarse;
    gcpi_lowest lowest;
    gcp_code code; char message[GCP_MAX_ERROR];   /* GCP_OK: the arena is too small */
} gcpi_outcome;

GCPI_PRINTF(3, 4)
static void gcpi_outcome_fail(gcpi_outcome *out, gcp_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    out->code = code;
}

static void gcpi_stop_fail(const gcpi_plan *core, gcpi_outcome *out)
{
    gcpi_outcome_fail(out, GCP_E_BUDGET,
                      ".progress stopped the search before anything was found that fits .budget = %zu bytes",
                      core->opts.budget);
}

static void gcpi_budget_fail(const gcpi_plan *core, const gcpi_watch *watch, gcpi_outcome *out)
{
    char name[128], help[400];
    const gcpi_lowest *lowest = &out->lowest;
    const gcpi_task *task = &core->p.tasks[lowest->task];
    gcp_at at = gcpi_task_at(&core->p, lowest->task, core->opts.at);
    if (!lowest->slab && watch->stopped) gcpi_stop_fail(core, out);
    if (!lowest->slab) return;
    gcpi_help_text(core, lowest, help, sizeof help);
    gcpi_outcome_fail(out, GCP_E_BUDGET,
                      ".budget allows %zu bytes; the least found to work is %zu%s; %s %.48s (%s:%d) sets it%s",
                      core->opts.budget, core->state_bytes + lowest->slab,
                      lowest->proven   ? " (proven: no schedule takes less)"
                      : watch->stopped ? " (.progress stopped the search)"
                      : out->coarse    ? " (the plan's arena had no room for all of the search: gcp_plan_arena)"
                                       : "",
                      lowest->task < core->p.forward ? "forward of" : "backward of",
                      gcpi_task_name(&core->p, task, name, sizeof name), gcpi_basename(at.file), at.line, help);
}

/* What a plan of these options asks for. */
static gcpi_request gcpi_request_of(gcpi_plan *core, gcpi_watch *watch)
{
    gcpi_request r;
    memset(&r, 0, sizeof r);
    r.p = &core->p; r.opts = &core->opts;
    r.policy = core->opts.policy; r.effort = core->opts.effort;
    r.far = core->opts.far; r.far_only = core->opts.far_only;
    if (r.policy == GCP_POLICY_BUDGET) r.limit = GCPI_MAX(gcpi_slab_limit(core), 1);
    r.watch = watch; r.portion.to = 1;
    return r;
}

/* The answer as a list, at the front of the arena. */
static void gcpi_outcome_list(gcpi_outcome *out, const gcpi_request *r, const gcpi_answer *found, gcp_arena *a)
{
    out->list.capacity = found->order->count + found->fit.moves;
    out->list.at = GCPI_NEW(a, gcpi_instruction, out->list.capacity);
    if (out->list.at) gcpi_list_of(r->p, found->order, &out->list);
    out->made = out->list.at && gcpi_list_reruns(r->p, &out->list, a);
}

static gcpi_outcome gcpi_plan_choose(const gcpi_plan *core, const gcpi_request *r, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_planner q;
    gcpi_answer found;
    gcpi_outcome out;
    memset(&out, 0, sizeof out);
    if (!gcpi_choose(&q, r, a, &found)) return out;
    out.lowest = found.lowest;
    out.lowest.proven &= !gcpi_views_open(&core->p);          /* another choice may take less */
    out.coarse = found.coarse; out.bound = found.bound; out.seconds = found.seconds; out.segments = found.segments;
    out.method = found.method; out.fit = found.fit;
    out.keep_all = core->unfused < SIZE_MAX ? core->unfused : found.keep_all < SIZE_MAX ? found.keep_all : 0;
    if (!found.order) { gcpi_budget_fail(core, r->watch, &out); return out; }
    memset(&out.lowest, 0, sizeof out.lowest);
    out.checkpoints = core->p.training ? gcpi_checkpoint_bytes(r) : 0;
    gcpi_outcome_list(&out, r, &found, a);
    a->scratch = scratch;
    return out;
}

/* The slab of GCP_POLICY_KEEP_ALL, whose updates come last: what a plan is compared with that fuses them by itself. 0:
   not known, for a large problem. */
static size_t gcpi_unfused_slab(const gcpi_plan *core, int root, const gcp_target *target, gcp_arena *a)
{
    const gcp_arena was = *a;
    gcp_plan_opts o = core->opts;
    gcpi_problem p;
    gcpi_list list;
    gcpi_lives l;
    size_t *live, slab = 0;
    memset(&p, 0, sizeof p);
    memset(&list, 0, sizeof list);
    p.tape = core->p.tape;
    o.policy = GCP_POLICY_KEEP_ALL; o.far = 0; o.fuse_update = 0;
    if (gcpi_problem_make(&p, root, &o, target, a) && p.task_count <= GCPI_LARGE &&
        (list.at = GCPI_SCRATCH(a, gcpi_instruction, p.task_count)) != NULL) {
        list.capacity = p.task_count;
        for (int i = 0; i < p.task_count; i++) gcpi_emit(&list, gcpi_letters[p.tasks[i].kind], i, &p.tasks[i]);
        slab = gcpi_arrange(&p, &list, &l, &live, gcpi_fit_free(), a);
    }
    a->used = was.used; a->scratch = was.scratch;
    return slab;
}

/* The list for a request, and its layout. In a large problem a layout takes longer than finding another order. There
   candidates are judged by their live peak, and only the chosen one gets a layout. If that does not fit, the search
   runs again and lays out every candidate. l and live stay in scratch. */
static gcpi_outcome gcpi_plan_by_views(const gcpi_plan *core, const gcpi_request *asked, gcpi_lives *l, size_t **live,
                                       gcp_arena *a)
{
    ptrdiff_t used = a->used, scratch = a->scratch;
    gcpi_request r = *asked;
    for (r.by_peak = r.policy == GCP_POLICY_BUDGET && r.p->task_count > GCPI_LARGE;; r.by_peak = 0) {
        a->used = used; a->scratch = scratch;
        gcpi_outcome out = gcpi_plan_choose(core, &r, a);
        if (!out.made) return out;
        out.slab = gcpi_arrange(r.p, &out.list, l, live, out.fit, a);
        out.made = out.slab != 0;
        if (!r.by_peak || out.slab <= gcpi_slab_limit(core)) return out;
    }
}
