/* A plan's figures, its making and its end. */

/* From options to a verified, placed plan. */
static int gcpi_plan_settle(gcp_plan *plan, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    ptrdiff_t scratch = a->scratch;
    gcpi_lives lives;
    size_t *live;
    char message[200];
    if (core->opts.list ? !gcpi_plan_list(core, a) || !gcpi_plan_layout(core, &lives, &live, a)
                      : !gcpi_plan_watched(plan, &lives, &live, a))
        return 0;
    core->placed = GCPI_NEW(a, gcpi_placed, gcpi_operand_total(&core->p, &core->list) + 1);
    core->live = GCPI_NEW(a, size_t, core->list.count + 1);
    core->where = GCPI_NEW(a, ptrdiff_t, core->p.item_count);
    core->seconds = GCPI_NEW(a, double, core->list.count);
    core->buffers = GCPI_NEW(a, gcpi_plan_buffer, lives.buffer_count + 1);
    if (!core->placed || !core->live || !core->where || !core->seconds || !core->buffers) return 0;
    memcpy(core->live, live, (size_t)core->list.count * sizeof *live);
    /* lives.peak rounds every buffer up to align; the slab ends at the last buffer's last byte */
    core->live_peak = GCPI_MIN(lives.peak, core->slab_bytes);
    core->peak_at = lives.peak_at;
    gcpi_plan_place(core, &lives);
    gcpi_plan_buffers(core, &lives);
    a->scratch = scratch;
    if (!gcpi_verify(&core->p, &core->list, core->placed, core->slab_bytes, message, sizeof message, a)) {
        if (*message) gcpi_fail(core->p.tape, GCP_E_LIST, core->opts.at, core->p.tape->planning, "%s", message);
        return 0;
    }
    return !core->opts.check || gcpi_plan_deaths(core, a);
}

/* The figures that change when the state grows. */
static void gcpi_plan_sizes(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    if (!gcpi_is_graph(&core->p))
        core->state_bytes = gcpi_round(gcpi_state_with(plan->tape, &plan->core, 1), core->p.target.align);
    plan->state_bytes = core->state_bytes;
    plan->slab_bytes = core->slab_bytes;
    plan->bytes = plan->state_bytes + plan->slab_bytes;
    plan->room = plan->bytes + core->p.target.align - 1;
    plan->keep_all_bytes = core->keep_all ? plan->state_bytes + core->keep_all : 0;
    plan->split.optimizer = plan->state_bytes - plan->split.weights - plan->split.statistics;
}

static void gcpi_plan_split(gcp_plan *plan)
{
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    const gcp_tape *t = p->tape;
    gcp_split *s = &plan->split;
    size_t sum = 0;
    for (int i = 0; i < t->parameter_count && !gcpi_is_graph(p); i++)
        *(t->parameters[i].kind == GCPI_PARAMETER ? &s->weights : &s->statistics) += gcpi_parameter_bytes(t, i);
    if (gcpi_is_graph(p)) s->weights = core->state_bytes;
    else s->statistics += gcpi_counters_bytes(t);
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        const gcpi_item *item = &p->items[x->item];
        if (x->first > core->peak_at || x->last < core->peak_at) continue;
        sum += x->bytes;
        if (item->kind == GCPI_INPUT_ITEM) s->inputs += x->bytes;
        else if (item->kind == GCPI_GRADIENT_ITEM)
            *(!gcpi_is_graph(p) && t->tensors[item->tensor].kind == GCPI_PARAMETER ? &s->weight_gradients
                                                                           : &s->activation_gradients) += x->bytes;
        else *(x->again ? &s->recomputed : &s->kept) += x->bytes;
    }
    s->workspace = p->tasks[core->list.at[core->peak_at].task].workspace + p->numbers;
    s->gaps = core->slab_bytes - sum - s->workspace;
}

static void gcpi_plan_figures(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    plan->live_peak = core->live_peak;
    plan->peak_instruction = core->peak_at;
    plan->instructions = (int)core->list.count;
    plan->units = p->units;
    plan->reruns = core->list.reruns;
    plan->rerun_flops = core->list.rerun_flops;
    plan->seconds = GCPI_MAX(core->list.seconds, core->timeline);
    plan->stall_seconds = plan->seconds - core->list.seconds;
    plan->segments = core->segments;
    plan->far_bytes = core->far_bytes;
    plan->costed = p->costed;
    /* the bound is above the plan's own time by less than 1e-9 of it */
    const int rounding = core->bound_seconds > plan->seconds && core->bound_seconds < plan->seconds * (1 + 1e-9);
    plan->bound_seconds = rounding ? plan->seconds : core->bound_seconds;
    plan->method = core->method;
    plan->keep_all_seconds = core->keep_all_seconds;
    for (int i = 0; i < p->forward; i++) plan->forward_flops += p->tasks[i].flops;
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const gcpi_task *t = &p->tasks[core->list.at[i].task];
        if (gcpi_copies(t)) plan->far_traffic += p->items[t->item].bytes;
        if (t->kind == GCPI_TASK_UPDATE)
            plan->far_traffic += 2 * (size_t)p->far_slots * p->items[p->operands[t->operands].item].bytes;
        if (t->kind == GCPI_TASK_MOVE) plan->moved_bytes += p->items[t->item].bytes;
        if (core->list.at[i].letter == 'F') core->forward_end = (int)i + 1;
    }
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        if (x->first < core->forward_end && x->last >= core->forward_end && p->items[x->item].kind == GCPI_FORWARD_ITEM)
            plan->after_forward += x->bytes;
    }
    gcpi_plan_split(plan);
    gcpi_plan_sizes(plan);
}

static int gcpi_plan_within(gcp_plan *plan)
{
    const gcpi_plan *core = plan->core;
    const gcpi_task *task = &core->p.tasks[core->list.at[core->peak_at].task];
    char name[128];
    if (!core->opts.budget || plan->bytes <= core->opts.budget) return 1;
    const int searched = core->opts.policy == GCP_POLICY_BUDGET || core->opts.list || core->opts.inference;
    gcp_at at = gcpi_task_at(&core->p, (int)(task - core->p.tasks), core->opts.at);
    gcpi_fail(core->p.tape, GCP_E_BUDGET, core->opts.at, core->p.tape->planning,
              "the plan takes %zu bytes, .budget allows %zu; the peak is at %c %s (%s:%d)%s", plan->bytes,
              core->opts.budget, core->list.at[core->peak_at].letter, gcpi_task_name(&core->p, task, name, sizeof name),
              gcpi_basename(at.file), at.line, searched ? "" : "; GCP_POLICY_BUDGET looks for a plan that fits");
    return 0;
}

/* Gives every tensor that the list copies away a place in far memory; no two share bytes. */
static int gcpi_plan_far(gcpi_plan *core, gcp_arena *a)
{
    if (!core->p.far_count) return 1;
    core->far_at = GCPI_NEW(a, ptrdiff_t, core->p.tensors);
    for (int i = 0; core->far_at && i < core->p.tensors; i++) core->far_at[i] = -1;
    for (ptrdiff_t i = 0; core->far_at && i < core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        if (t->kind != GCPI_TASK_OFFLOAD || core->far_at[t->item] >= 0) continue;
        core->far_at[t->item] = (ptrdiff_t)core->far_bytes;
        core->far_bytes += gcpi_round(core->p.items[t->item].bytes, core->p.target.align);
    }
    if (core->far_bytes) core->timeline = gcpi_timeline(&core->p, &core->list, core->placed, NULL, NULL);
    return core->far_at != NULL;
}

/* Counts the inputs that the list reads: a step is refused until all of them are written. */
static int gcpi_plan_inputs(gcpi_plan *core, gcp_arena *a)
{
    core->bound.given = GCPI_NEW(a, int, core->p.tensors + 1);
    for (int i = 0; i < core->p.tensors; i++)
        core->inputs += core->p.items[i].kind == GCPI_INPUT_ITEM && core->where[i] >= 0;
    core->bound.unwritten = core->inputs;
    return core->bound.given != NULL && gcpi_plan_samples(core, a);
}

static int gcpi_plan_finish(gcp_plan *plan, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    for (int i = 0; i < core->p.task_count; i++) core->keep_all_seconds += core->p.tasks[i].seconds;
    if (!gcpi_plan_settle(plan, a) || !gcpi_plan_far(core, a) || !gcpi_plan_inputs(core, a)) return 0;
    gcpi_plan_figures(plan);
    return gcpi_plan_within(plan);
}

static int gcpi_plan_steps(gcp_plan *plan, int root, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    gcp_target target = gcpi_target_of(core->opts.target);
    core->p.tape = t;
    core->threads_asked = core->opts.target ? core->opts.target->threads : 0;
    core->slots = gcpi_slots_of(&core->opts);
    if (gcpi_trouble(t, &target, core->opts.at, t->planning)) return 0;
    if (!gcpi_problem_make(&core->p, root, &core->opts, &target, a) || !gcpi_ops_run_on(&core->p) ||
        !gcpi_norms_have_values(&core->p) || !gcpi_labels_count(core, a) || !gcpi_plan_addressable(core))
        return 0;
    if (core->p.training && !core->p.items[t->tensor_count + root].active)
        return gcpi_plan_bad(t, &core->opts,
                             "the loss depends on no parameter that trains and on no input with gcp_want_grad");
    if (!gcpi_policy_fits(t, &core->opts, core->p.units)) return 0;
    core->state_bytes = gcpi_round(gcpi_state_with(t, &plan->core, 1), core->p.target.align);
    core->unfused = core->opts.fuse_update == GCPI_FUSED_ITSELF ? gcpi_unfused_slab(core, root, &target, a) : SIZE_MAX;
    core->slot_bytes = core->state_bytes - gcp_state_bytes(t, GCP_OPTIMIZER_NONE);
    return gcpi_plan_finish(plan, a);
}

static int gcpi_graph_steps(gcp_plan *plan, const char *text, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    char message[200];
    gcp_target target = gcpi_target_of(core->opts.target);
    core->p.tape = plan->tape;
    if (!gcpi_graph_parse(&core->p, text, &target, &core->opts, message, sizeof message, a)) {
        if (message[0]) gcpi_fail(plan->tape, GCP_E_GRAPH, core->opts.at, plan->tape->planning, "%s", message);
        return 0;
    }
    core->state_bytes = gcpi_round(core->p.state, core->p.target.align);
    core->unfused = SIZE_MAX;
    return gcpi_policy_fits(plan->tape, &core->opts, core->p.units) && gcpi_plan_finish(plan, a);
}

/* Takes the plan's struct from the arena. Its lease begins here and ends where gcpi_plan_end says. */
static int gcpi_plan_begin(gcp_plan *plan, const gcp_plan_opts *o)
{
    gcp_arena *a = o->arena ? o->arena : plan->tape->arena;
    ptrdiff_t first = a->used;
    plan->generation = plan->tape->generation;
    plan->core = GCPI_NEW(a, gcpi_plan, 1);
    if (!plan->core) return 0;
    plan->core->opts = *o;
    plan->core->arena = a; plan->core->lease.first = first;
    plan->core->number = ++plan->tape->plans;
    return 1;
}

/* Forgets bindings of plans whose bytes this plan now has: their arena was used again. */
static void gcpi_binding_forget(gcp_tape *t, const gcpi_plan *core)
{
    uintptr_t first = (uintptr_t)core->arena->base + (uintptr_t)core->lease.first,
              last = (uintptr_t)core->arena->base + (uintptr_t)core->lease.last;
    for (int i = 0; i < GCP_MAX_BOUND; i++)
        if ((uintptr_t)t->bindings[i].own >= first && (uintptr_t)t->bindings[i].own < last)
            memset(&t->bindings[i], 0, sizeof t->bindings[i]);
}

/* Bytes that freed plans still hold in the tape's arena, because a later plan is not freed. */
static size_t gcpi_freed_below(const gcp_tape *t)
{
    size_t bytes = 0;
    for (const gcpi_lease *l = t->leases; l; l = l->before) if (l->freed) bytes += (size_t)(l->last - l->first);
    return bytes;
}

/* Ends planning. If the plan was not made, its bytes go back to the arena, and if there is no error yet, the error is
   that the arena is too small. */
static void gcpi_plan_end(gcp_plan *plan, int made, const gcp_arena *was, size_t enough, const gcp_plan_opts *o,
                          const char *call)
{
    gcp_tape *t = plan->tape;
    gcp_arena *a = o->arena ? o->arena : t->arena;
    gcpi_plan *core = plan->core;
    a->scratch = was->scratch;
    if (made) {
        core->lease.last = a->used;
        gcpi_binding_forget(t, core);
        if (a != t->arena) return;
        core->lease.before =
            (uintptr_t)t->leases < (uintptr_t)a->base + (uintptr_t)core->lease.first ? t->leases : NULL;
        t->leases = &core->lease;
        return;
    }
    size_t freed = a == t->arena ? gcpi_freed_below(t) : 0;
    if (!freed)
        gcpi_fail(t, GCP_E_NOMEM, o->at, t->planning, "the plan's arena of %td bytes is too small; %zu are enough (%s)",
                  was->size - was->used - was->scratch, enough, call);
    else
        gcpi_fail(t, GCP_E_NOMEM, o->at, t->planning,
                  "the plan's arena of %td bytes is too small; %zu are enough (%s); freed plans below a living one "
                  "hold %zu (free before you "
                  "make, or use two arenas in turn)",
                  was->size - was->used - was->scratch, enough, call, freed);
    size_t least = core && t->code == GCP_E_BUDGET ? plan->least_bytes : 0;
    int coarse = least > 0 ? plan->coarse : 0, proven = least > 0 ? plan->least_proven : 0;
    memset(plan, 0, sizeof *plan);
    plan->tape = t; plan->least_bytes = least; plan->least_proven = proven; plan->coarse = coarse;
    a->used = was->used;
}

static gcp_plan gcpi_plan_none(gcp_tape *t)
{
    gcp_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.tape = t;
    return plan;
}

/* Gives the plan's bytes back to the arena, if they are the last taken there. In the tape's arena, bytes that are not
   the last go back once all plans after them are freed. */
static void gcpi_plan_return(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    core->lease.freed = 1;
    if (core->arena != t->arena && core->arena->used == core->lease.last) core->arena->used = core->lease.first;
    while (t->leases && t->leases->freed && t->arena->used == t->leases->last) {
        t->arena->used = t->leases->first;
        t->leases = t->leases->before;
    }
    *plan = gcpi_plan_none(t);
}

static gcp_plan gcpi_plan_of_tape(gcp_tensor loss, gcp_plan_opts *o)
{
    gcp_plan plan = gcpi_plan_none(loss.tape);
    if (!gcpi_plan_ready(loss, o)) return plan;
    gcp_arena *a = o->arena ? o->arena : plan.tape->arena, was = *a;
    int made = gcpi_plan_begin(&plan, o) && gcpi_plan_steps(&plan, loss.id, a);
    gcpi_plan_end(&plan, made, &was, made ? 0 : gcp_plan_arena_at(loss, *o), o, "gcp_plan_arena");
    return plan;
}

static gcp_plan gcpi_plan_of_graph(gcp_tape *t, const char *text, gcp_plan_opts *o)
{
    gcp_plan plan = gcpi_plan_none(t);
    const int chosen = o->train || o->freeze || o->frozen_norms || o->rates || o->decays;
    if (!t->ops || t->code || (!chosen && !gcpi_plan_options_ok(t, o))) return plan;
    if (o->inference || o->optimizer || o->accumulate > 1 || o->on_gradient || o->costs || o->store || chosen) {
        gcpi_plan_bad(t, o,
                      "the graph's text says what a step does: leave out .store, .inference, .optimizer, .accumulate, "
                      "what trains, hooks and .costs");
        return plan;
    }
    gcp_arena *a = o->arena ? o->arena : t->arena, was = *a;
    int made = gcpi_plan_begin(&plan, o) && gcpi_graph_steps(&plan, text, a);
    gcpi_plan_end(&plan, made, &was, made ? 0 : gcp_graph_arena_at(t, text, *o), o, "gcp_graph_arena");
    return plan;
}

/* text: a graph's, or NULL: the loss is planned. call: the function that the user called, for errors. */
static gcp_plan gcpi_plan_for(gcp_tensor loss, const char *text, gcp_plan_opts o, const char *call)
{
    if (!loss.tape) return gcpi_plan_none(NULL);
    loss.tape->planning = call;
    return text ? gcpi_plan_of_graph(loss.tape, text, &o) : gcpi_plan_of_tape(loss, &o);
}

GCPI_DEF gcp_plan gcp_plan_make_at(gcp_tensor loss, gcp_plan_opts o)
{
    return gcpi_plan_for(loss, NULL, o, "gcp_plan_make");
}
GCPI_DEF gcp_plan gcp_graph_plan_at(gcp_tape *t, const char *text, gcp_plan_opts o)
{
    return gcpi_plan_for(gcpi_nil(t), text ? text : "", o, "gcp_graph_plan");
}

GCPI_DEF int gcp_plan_ok(const gcp_plan *plan) { return plan && plan->core; }
