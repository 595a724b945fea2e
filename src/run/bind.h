/* Binding: memory for states, slabs, far values. A state that has no home takes its bytes from the front of the
   first plan's memory. */

static void gcpi_state_forget(gcp_tape *t)          /* its memory is given back, or was never filled */
{
    gcp_slots_reset(t);
    t->state = NULL;
    t->state_memory = NULL;
    t->state_size = t->state_capacity = 0;
    t->own_state = 0;
    t->layout++;
}

GCPI_DEF gcp_code gcp_state_bind_at(gcp_tape *t, void *memory, size_t size, gcp_at at)
{
    return gcp_state_bind_on_at(t, NULL, memory, size, at);
}
GCPI_DEF gcp_code gcp_state_bind_on_at(gcp_tape *t, const gcp_target *target, void *memory, size_t size, gcp_at at)
{
    gcp_target home = gcpi_target_of(target);
    if (!t || t->code) return t ? t->code : GCP_E_NOMEM;
    unsigned char *base = gcpi_align_up(memory, GCPI_STATE_ALIGN);
    size_t lost = (size_t)(base - (unsigned char *)memory), need = gcp_state_bytes(t, GCP_OPTIMIZER_NONE);
    const char *taken = gcpi_taken(t, base, need, memory, 0);
    if (t->state)
        gcpi_fail(t, GCP_E_STATE, at, "gcp_state_bind",
                  "the state has memory already: gcp_state_bind comes before the first gcp_bind, once");
    else if (!memory || size < need + lost)
        gcpi_fail(t, GCP_E_BIND, at, "gcp_state_bind",
                  "%zu bytes given, %zu needed at this address, and what the optimiser takes (gcp_state_bytes)", size,
                  need + lost);
    else if (taken) gcpi_fail(t, GCP_E_BIND, at, "gcp_state_bind", "the memory overlaps %s", taken);
    if (t->code) return t->code;
    gcpi_state_settle(t, &home, base, size - lost);
    t->own_state = 1;
    t->state_memory = memory;
    if (!gcpi_trouble(t, &home, at, "gcp_state_bind")) return GCP_OK;
    gcpi_state_forget(t);
    return t->code;
}

GCPI_DEF gcp_code gcp_slots_bind_at(gcp_tape *t, void *memory, size_t size, gcp_at at)
{
    if (!t || t->code) return t ? t->code : GCP_E_NOMEM;
    if (gcpi_in_feed(t, &at, "gcp_slots_bind")) return t->code;
    unsigned char *base = gcpi_align_up(memory, GCPI_STATE_ALIGN);
    size_t lost = (size_t)(base - (unsigned char *)memory), room = size > lost ? size - lost : 0;
    unsigned char *was = t->far_slots;
    t->far_slots = NULL;                          /* the same memory may be given again */
    const char *taken = memory ? gcpi_taken(t, base, room, NULL, 0) : NULL;
    t->far_slots = was;
    if (t->slots)
        gcpi_fail(t, GCP_E_STATE, at, "gcp_slots_bind",
                  "the optimiser has slots already: gcp_slots_bind comes before the first gcp_bind of a plan with an "
                  "optimiser, or after gcp_slots_reset");
    else if (!memory != !size || (memory && room < GCPI_FAR_SLOTS_FIRST))
        gcpi_fail(t, GCP_E_BIND, at, "gcp_slots_bind",
                  "%zu bytes given; gcp_slots_bytes says how many are needed (NULL, 0: in the state again)", size);
    else if (taken) gcpi_fail(t, GCP_E_BIND, at, "gcp_slots_bind", "the memory overlaps %s", taken);
    if (t->code) return t->code;
    t->far_slots = memory ? base : NULL;
    t->far_slots_capacity = room; t->far_slots_size = GCPI_FAR_SLOTS_FIRST;
    return GCP_OK;
}

/* Whether the state lies at the front of this memory, or will when it is bound. */
static int gcpi_state_here(const gcp_tape *t, const void *memory)
{
    return !t->state || (!t->own_state && memory == t->state_memory);
}

/* Updates the plan's bytes for the state as it is now; with them the plan must still fit its budget. */
static gcp_code gcpi_plan_refresh(gcp_plan *plan, gcp_at at, const char *what)
{
    gcpi_plan_sizes(plan);
    if (!plan->core->opts.budget || plan->bytes <= plan->core->opts.budget) return GCP_OK;
    return gcpi_refuse_plan(
        plan, GCP_E_BUDGET, at, what,
        "the plan takes %zu bytes with the optimisers' slots that the state holds by now, .budget allows %zu: make it "
        "when they are there, so that it counts them", plan->bytes, plan->core->opts.budget);
}

/* Where the slab goes in the plan's memory: after the state, if the state is at the front of it (where the first plan's
   align put it), else at the front. NULL: an error. */
static unsigned char *gcpi_slab_place(const gcp_plan *plan, gcp_at at, const char *what)
{
    const gcpi_plan *core = plan->core;
    const gcp_tape *t = plan->tape;
    int here = gcpi_state_here(t, core->bound.memory);
    size_t align = core->p.target.align, state = here ? gcpi_state_with(t, &plan->core, 1) : 0;
    unsigned char *base = here && t->state ? t->state : gcpi_align_up(core->bound.memory, align),
                  *slab = gcpi_align_up(base + state, align);
    size_t lost = (size_t)(base - (unsigned char *)core->bound.memory), used = (size_t)(slab - base) + core->slab_bytes;
    const char *taken = gcpi_ranges_meet(base, used, core, (size_t)(core->lease.last - core->lease.first))
                            ? "the plan in its arena"
                            : gcpi_taken(t, base, used, core->bound.memory, 0);
    if (core->bound.memory_size < lost + used)
        gcpi_refuse_plan(
            plan, GCP_E_BIND, at, what,
            "%zu bytes given, %zu needed at this address; %zu are enough at any (plan.room, gcp_plans_room)",
            core->bound.memory_size, lost + used, used + align - 1);
    else if (taken) gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the memory overlaps %s", taken);
    return t->code ? NULL : slab;
}

/* What micro-batches have summed is of no use any more. */
static void gcpi_sums_forget(gcpi_plan *core)
{
    core->run.micro = 0;
    core->p.tape->summing = 0;
}
/* 1, and an error: a bound plan's gradients of earlier micro-batches wait for the last one; they are of these weights,
   and in no file. */
static int gcpi_halfway(gcp_tape *t, gcp_at at, const char *call)
{
    int bound = gcpi_in_feed(t, &at, call);
    for (int i = 0; i < GCP_MAX_BOUND; i++) bound |= t->summing && t->bindings[i].plan == t->summing;
    if (bound)
        gcpi_fail(t, GCP_E_STATE, at, call, "a plan is between two micro-batches of .accumulate: call it after the "
                                            "last one (gcp_unbind gives up what was summed)");
    return bound;
}

/* Refuses a plan that was made for slots in the state where they wait in far memory, or the reverse. */
static gcp_code gcpi_slots_elsewhere(const gcp_plan *plan, gcp_at at, const char *what)
{
    const gcpi_plan *core = plan->core;
    return !core->slots || !core->p.far_slots == !plan->tape->far_slots
               ? GCP_OK
               : gcpi_refuse_plan(plan, GCP_E_STATE, at, what,
                                  "the plan was made before gcp_slots_bind: make it again");
}

/* The state's layout has changed since the slab was placed: places the slab again. */
static gcp_code gcpi_lay_again(gcp_plan *plan, gcp_at at, const char *what)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    if (!t->state) return gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the state's memory was given back: bind again");
    const int others = t->optimizer && t->optimizer != core->opts.optimizer;
    if (core->slots && (others || gcpi_slots_lacking(t, core)))
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, what,
                                "gcp_slots_reset has forgotten the optimiser's slots: bind again");
    if (gcpi_slots_elsewhere(plan, at, what)) return t->code;
    unsigned char *slab = gcpi_plan_refresh(plan, at, what) ? NULL : gcpi_slab_place(plan, at, what);
    if (!slab) return t->code;
    gcpi_recordings_forget(core);
    int moved = slab != core->bound.slab, micro = core->run.micro;
    core->bound.slab = slab;
    core->bound.layout = t->layout;
    if (!moved) return GCP_OK;
    gcpi_written_forget(core, "the state grew");
    gcpi_binding *note = gcpi_binding_of(t, core, 1);
    if (note) gcpi_binding_note(t, core, note);
    if (micro) gcpi_sums_forget(core);
    return micro ? gcpi_refuse_plan(plan, GCP_E_BIND, at, what,
                                    "another plan was bound between the micro-batches of this one")
                 : GCP_OK;
}

/* Whether a plan is bound, and its slab is where it was: it is placed again where the state has grown. feeds: as in
   gcpi_plan_check. */
static gcp_code gcpi_usable_check(gcp_plan *plan, gcp_at at, const char *what, int feeds)
{
    gcp_code code = gcpi_plan_check(plan, at, what, feeds);
    if (code) return code;
    gcpi_plan *core = plan->core;
    if (!core->bound.slab) return gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the plan is not bound");
    if (core->far_bytes && !core->bound.far)
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "no far memory: %zu bytes to gcp_far_bind",
                                plan->far_bytes);
    if (core->bound.layout != plan->tape->layout && (code = gcpi_lay_again(plan, at, what)) != GCP_OK) return code;
    gcpi_binding *note = gcpi_binding_of(plan->tape, core, 0);
    if (!note || !note->taken) return GCP_OK;
    note->taken = 0;
    gcpi_written_forget(core, "another plan used the same memory");
    if (!core->run.micro) return GCP_OK;
    gcpi_sums_forget(core);
    return gcpi_refuse_plan(plan, GCP_E_BIND, at, what,
                            "another plan used the same memory between the micro-batches of this one");
}
static gcp_code gcpi_bound_check(gcp_plan *plan, gcp_at at, const char *what)
{
    return gcpi_usable_check(plan, at, what, 0);
}

/* Whether the plan's slots have room where slots lie, if that is not the plan's memory. */
static gcp_code gcpi_bind_slots_ok(const gcp_plan *plan, gcp_at at)
{
    const gcp_tape *t = plan->tape;
    const gcpi_plan *core = plan->core;
    size_t lacking = gcpi_slots_lacking(t, core), end = (t->far_slots ? t->far_slots_size : t->state_size) + lacking;
    if (gcpi_slots_elsewhere(plan, at, "gcp_bind")) return t->code;
    if (!lacking) return GCP_OK;
    if (t->far_slots)
        return end <= t->far_slots_capacity
                   ? GCP_OK
                   : gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                      "gcp_slots_bind gave %zu bytes; with this optimiser the slots take %zu "
                                      "(gcp_slots_bytes)", t->far_slots_capacity, end);
    if (gcpi_state_here(t, core->bound.memory)) return GCP_OK;
    if (t->own_state && end > t->state_capacity)
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                "the state's home (gcp_state_bind) has %zu bytes and stays it; with this optimiser it "
                                "takes %zu (gcp_state_bytes)",
                                t->state_capacity, end);
    if (!t->own_state)
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                "the optimiser's slots must follow the weights, in the memory that was bound first: "
                                "bind this plan there (gcp_plans_room of all plans says how much to give at first)");
    return GCP_OK;
}

/* Whether the plan's optimiser and target agree with the state. */
static gcp_code gcpi_bind_state_ok(const gcp_plan *plan, gcp_at at)
{
    const gcp_tape *t = plan->tape;
    const gcpi_plan *core = plan->core;
    if (core->slots && t->slots && (t->optimizer != core->opts.optimizer || t->slots != core->slots))
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                "the state holds slots of another optimiser; gcp_slots_reset forgets them");
    if (t->state &&
        (t->home.device != core->p.target.device || (t->home.device && t->home.context != core->p.target.context)))
        return gcpi_refuse_plan(
            plan, GCP_E_STATE, at, "gcp_bind",
            "the state lies in the memory of another target: its values can be moved with gcp_read and gcp_write");
    return gcpi_bind_slots_ok(plan, at);
}

/* Places state, slots and slab in in->bound.memory. Nothing is written before all of it is known to fit. */
static gcp_code gcpi_bind_memory(gcp_plan *plan, gcp_at at)
{
    gcp_tape *t = plan->tape;
    gcpi_plan *core = plan->core;
    if (gcpi_bind_state_ok(plan, at) || gcpi_plan_refresh(plan, at, "gcp_bind")) return t->code;
    unsigned char *slab = gcpi_slab_place(plan, at, "gcp_bind");
    if (!slab) return t->code;
    gcpi_binding *note = gcpi_binding_of(t, core, 1);
    if (!note)
        return gcpi_refuse_plan(plan, GCP_E_CAPACITY, at, "gcp_bind",
                                "%d plans are bound; gcp_unbind those that are done", GCP_MAX_BOUND);
    if (gcpi_state_here(t, core->bound.memory)) {
        if (!t->state) {
            gcpi_state_settle(t, &core->p.target, gcpi_align_up(core->bound.memory, core->p.target.align), 0);
            t->state_memory = core->bound.memory;
        }
        t->state_capacity = core->bound.memory_size - (size_t)(t->state - (unsigned char *)core->bound.memory);
    }
    gcpi_slots_settle(t, core);
    core->bound.slab = slab;
    core->bound.layout = t->layout;
    core->run.micro = 0;
    gcpi_written_forget(core, "gcp_bind");
    gcpi_binding_note(t, core, note);
    return GCP_OK;
}

static void gcpi_far_release(gcpi_plan *core)
{
    if (core->bound.far_owned && core->p.target.far_release)
        core->p.target.far_release(core->p.target.context, core->bound.far_owned, core->far_bytes);
    core->bound.far = NULL;
    core->bound.far_owned = NULL;
}

static void gcpi_unlay(gcpi_plan *core)
{
    gcpi_binding *note = gcpi_binding_of(core->p.tape, core, 0);
    if (note) memset(note, 0, sizeof *note);
    gcpi_recordings_forget(core);
    core->bound.slab = NULL;
}

/* Gives back what the target allocated. A state that lies in it is lost. */
static void gcpi_release(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    if (!core->bound.owned) return;
    if (t->state_memory == core->bound.owned && !t->own_state) gcpi_state_forget(t);
    if (core->p.target.release)
        core->p.target.release(core->p.target.context, core->bound.owned, core->bound.owned_size);
    core->bound.owned = NULL;
    core->bound.slab = NULL;
    t->layout++;
}

/* gcp_bind(plan, NULL, 0): the target allocates. What it gave this plan before is kept if it is large enough, or holds
   the state. */
static gcp_code gcpi_bind_owned(gcp_plan *plan, gcp_at at)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    const gcp_target *target = &core->p.target;
    gcpi_plan_sizes(plan);
    size_t exact = core->slab_bytes + (gcpi_state_here(t, core->bound.owned) ? core->state_bytes : 0);
    if (core->bound.owned && core->bound.owned_size < exact && t->state_memory != core->bound.owned) gcpi_release(plan);
    if (!core->bound.owned && !target->allocate)
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind",
                                "no memory, and the target allocates none; %zu bytes are needed (plan.room)",
                                plan->room);
    if (!core->bound.owned) {
        core->bound.owned_size = exact;
        core->bound.owned = target->allocate(target->context, exact);
        if (!core->bound.owned && !gcpi_trouble(t, target, at, "gcp_bind"))
            gcpi_refuse_plan(plan, GCP_E_NOMEM, at, "gcp_bind", "the target could not allocate %zu bytes", exact);
    }
    if ((uintptr_t)core->bound.owned & (target->align - 1)) {
        gcpi_release(plan);
        gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind",
                         "the target's allocate gave memory that is not aligned to %zu bytes", target->align);
    }
    core->bound.memory = core->bound.owned; core->bound.memory_size = core->bound.owned_size;
    return t->code;
}

static gcp_code gcpi_far_check(const gcp_plan *plan, const void *memory, gcp_at at, const char *what)
{
    const gcpi_plan *core = plan->core;
    int own = gcpi_ranges_meet(memory, core->far_bytes, core->bound.slab, core->bound.slab ? core->slab_bytes : 0);
    const char *taken = own ? "the step's" : gcpi_taken(plan->tape, memory, core->far_bytes, NULL, 1);
    return taken ? gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the far memory overlaps %s", taken) : GCP_OK;
}

static gcp_code gcpi_far_take(gcp_plan *plan, void *memory, gcp_at at, const char *what)
{
    gcpi_plan *core = plan->core;
    gcpi_binding *note = gcpi_binding_of(plan->tape, core, 0);
    if (gcpi_far_check(plan, memory, at, what)) return plan->tape->code;
    core->bound.far = (unsigned char *)memory;
    if (note) { note->far = core->bound.far; note->far_bytes = core->far_bytes; }
    return GCP_OK;
}

static gcp_code gcpi_bind_far(gcp_plan *plan, gcp_at at)
{
    gcpi_plan *core = plan->core;
    const gcp_target *target = &core->p.target;
    if (!core->far_bytes || (!core->bound.far && !target->far_allocate)) return GCP_OK;
    if (core->bound.far) return gcpi_far_take(plan, core->bound.far, at, "gcp_bind");
    core->bound.far_owned = target->far_allocate(target->context, core->far_bytes);
    if (core->bound.far_owned) return gcpi_far_take(plan, core->bound.far_owned, at, "gcp_bind");
    if (gcpi_trouble(plan->tape, target, at, "gcp_bind")) return plan->tape->code;
    return gcpi_refuse_plan(plan, GCP_E_NOMEM, at, "gcp_bind", "the target could not allocate %zu bytes of far memory",
                            core->far_bytes);
}

GCPI_DEF gcp_code gcp_bind_at(gcp_plan *plan, void *memory, size_t size, gcp_at at)
{
    gcp_code code = gcpi_plan_check(plan, at, "gcp_bind", 0);
    if (code) return code;
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    const void *owned = core->bound.owned, *had_state = t->state;
    if (gcpi_is_graph(&core->p))
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind", "a graph's plan has nothing to run");
    gcpi_unlay(core);                               /* the plan is not bound unless this bind succeeds */
    core->bound.memory = memory; core->bound.memory_size = size;
    if (!memory && size == 0) code = gcpi_bind_owned(plan, at);
    else if (!memory)
        code = gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind", "%zu bytes at NULL; %zu are needed (plan.room)", size,
                                plan->room);
    if (!code) code = gcpi_bind_memory(plan, at);
    if (!code) code = gcpi_bind_far(plan, at);
    if (gcpi_trouble(t, &core->p.target, at, "gcp_bind")) code = t->code;
    if (!code) return GCP_OK;
    gcpi_unlay(core);
    if (core->bound.owned != owned) gcpi_release(plan);   /* what an earlier bind got stays: the state may lie in it */
    if (!had_state) gcpi_state_forget(t);
    return code;
}

GCPI_DEF gcp_code gcp_far_bind_at(gcp_plan *plan, void *memory, size_t size, gcp_at at)
{
    gcp_code code = gcpi_plan_check(plan, at, "gcp_far_bind", 0);
    if (code) return code;
    if (gcpi_is_graph(&plan->core->p))
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_far_bind", "a graph's plan has nothing to run");
    if (!memory || size < plan->far_bytes)
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_far_bind",
                                "%zu bytes given, %zu needed (plan.far_bytes)", size, plan->far_bytes);
    if (gcpi_far_check(plan, memory, at, "gcp_far_bind")) return plan->tape->code;
    gcpi_recordings_forget(plan->core);
    gcpi_far_release(plan->core);
    return gcpi_far_take(plan, memory, at, "gcp_far_bind");
}

static void gcpi_unbind(gcp_plan *plan)
{
    gcpi_unlay(plan->core);
    gcpi_release(plan);
    gcpi_far_release(plan->core);
}
GCPI_DEF gcp_code gcp_unbind_at(gcp_plan *plan, gcp_at at)
{
    if (!plan || !plan->tape || !plan->core || plan->generation != plan->tape->generation)
        return gcpi_plan_check(plan, at, "gcp_unbind", 0);
    if (gcpi_in_feed(plan->tape, &at, "gcp_unbind")) return plan->tape->code;
    if (plan->tape->summing == plan->core->number) gcpi_sums_forget(plan->core);
    gcpi_unbind(plan);
    return GCP_OK;
}

GCPI_DEF void gcp_plan_free(gcp_plan *plan)
{
    if (!plan || (plan->tape && gcpi_in_feed(plan->tape, NULL, "gcp_plan_free"))) return;
    if (plan->core && plan->generation == plan->tape->generation) {
        gcpi_unbind(plan);
        gcpi_plan_return(plan);
    }
    *plan = gcpi_plan_none(plan->tape);
}

GCPI_DEF size_t gcp_plans_bytes_at(const gcp_plan *const *plans, int count)
{
    enum { MOST = GCP_MAX_BOUND };
    gcpi_plan *in[MOST];
    size_t slab = 0, align = 1;
    int n = 0;
    for (int i = 0; plans && i < count && i < MOST; i++) {
        if (!plans[i] || !plans[i]->core || plans[i]->tape != plans[0]->tape ||
            plans[i]->generation != plans[i]->tape->generation)
            return 0;
        in[n++] = plans[i]->core;
        slab = GCPI_MAX(slab, plans[i]->core->slab_bytes);
        align = GCPI_MAX(align, plans[i]->core->p.target.align);
    }
    return n && n == count ? gcpi_round(gcpi_state_with(in[0]->p.tape, in, n), align) + slab : 0;
}

GCPI_DEF size_t gcp_plans_room_at(const gcp_plan *const *plans, int count)
{
    size_t bytes = gcp_plans_bytes_at(plans, count), least = SIZE_MAX, most = 1;
    for (int i = 0; bytes && i < count; i++) {
        most = GCPI_MAX(most, plans[i]->core->p.target.align);
        least = GCPI_MIN(least, plans[i]->core->p.target.align);
    }
    /* if the plan that is bound first has a smaller align, both alignments may cost bytes */
    return bytes ? bytes + most - 1 + (least < most ? least - 1 : 0) : 0;
}
