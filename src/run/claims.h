/* Whose memory is whose. Which plans may be used, what overlaps, and what is lost when a plan writes. */

static unsigned char *gcpi_align_up(void *memory, size_t align)
{
    return (unsigned char *)memory + (-(uintptr_t)memory & (uintptr_t)(align - 1));
}

GCPI_PRINTF(5, 6)
static gcp_code gcpi_refuse_plan(const gcp_plan *plan, gcp_code code, gcp_at at, const char *what, const char *format,
                                 ...)
{
    char text[GCP_MAX_ERROR];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gcpi_fail(plan->tape, code, at, what, "%s", text);
    return plan->tape->code;
}

/* Whether a plan may be used: it was made, from the tape's present recording, and the tape has no error. feeds: the
   call may also come from the plan's own .feed, as writes of its inputs do. */
static gcp_code gcpi_plan_check(const gcp_plan *plan, gcp_at at, const char *what, int feeds)
{
    if (!plan || !plan->tape) return GCP_E_PLAN;
    if (plan->tape->code) return plan->tape->code;
    if (!plan->core)
        return gcpi_refuse_plan(plan, GCP_E_PLAN, at, what, "the plan was not made (see gcp_plan_ok), or was freed");
    if (plan->generation != plan->tape->generation)
        return gcpi_refuse_plan(plan, GCP_E_STALE, at, what, "a plan from before the tape's reset");
    if (feeds && plan->tape->feeding == plan->core->number) return GCP_OK;
    return gcpi_in_feed(plan->tape, &at, what) ? GCP_E_ARGUMENT : GCP_OK;
}

static int gcpi_ranges_meet(const void *a, size_t an, const void *b, size_t bn)
{
    return an && bn && (uintptr_t)a < (uintptr_t)b + bn && (uintptr_t)b < (uintptr_t)a + an;
}

/* Names what of the tape's overlaps a range of memory: the tape, plans or free bytes in the arena, slabs, far memory,
   the state. NULL: nothing. memory: the pointer that the caller gave; plans bound to the same pointer share its memory,
   and its front may hold the state. for_far: far memory may be shared, too, as values lie there within a step only. */
static const char *gcpi_taken(const gcp_tape *t, const void *first, size_t bytes, const void *memory, int for_far)
{
    const gcp_arena *a = t->arena;
    if (gcpi_ranges_meet(first, bytes, a->base, (size_t)t->arena_mark)) return "the tape in its arena";
    if (gcpi_ranges_meet(first, bytes, a->base + a->used, (size_t)(a->size - a->used)))
        return "what is free in the tape's arena";
    for (const gcpi_lease *p = t->leases; p; p = p->before)
        if (gcpi_ranges_meet(first, bytes, p, (size_t)(p->last - p->first))) return "a plan in its arena";
    for (int i = 0; i < GCP_MAX_BOUND; i++) {
        const gcpi_binding *b = &t->bindings[i];
        if (gcpi_ranges_meet(first, bytes, b->own, b->own_bytes)) return "a plan in its arena";
        if (b->memory != memory && gcpi_ranges_meet(first, bytes, b->slab, b->slab_bytes))
            return "another plan's (gcp_unbind, or bind both to the same)";
        if (!for_far && gcpi_ranges_meet(first, bytes, b->far, b->far_bytes)) return "a plan's far memory";
    }
    if (gcpi_ranges_meet(first, bytes, t->far_slots, t->far_slots_capacity)) return "the optimiser's slots";
    return (t->own_state || memory != t->state_memory) && gcpi_ranges_meet(first, bytes, t->state, t->state_size)
               ? "the state, which stays where it was bound first"
               : NULL;
}

/* The tape's note of a bound plan, or NULL. make: if there is none, a vacant one, or NULL if all are in use. */
static gcpi_binding *gcpi_binding_of(gcp_tape *t, const gcpi_plan *core, int make)
{
    gcpi_binding *vacant = NULL;
    for (int i = GCP_MAX_BOUND - 1; i >= 0; i--) {
        if (t->bindings[i].plan == core->number) return &t->bindings[i];
        if (!t->bindings[i].plan) vacant = &t->bindings[i];
    }
    return make ? vacant : NULL;
}

static void gcpi_binding_note(gcp_tape *t, const gcpi_plan *core, gcpi_binding *b)
{
    b->plan = core->number; b->memory = core->bound.memory; b->taken = 0;
    b->own = (const unsigned char *)core; b->own_bytes = (size_t)(core->lease.last - core->lease.first);
    b->slab = core->bound.slab; b->slab_bytes = core->slab_bytes;
    b->far = core->bound.far; b->far_bytes = core->far_bytes;
    if (t->toucher == core->number) t->toucher = 0;
}

/* The inputs and results in the slab are lost. since: what lost them, for messages. */
static void gcpi_written_forget(gcpi_plan *core, const char *since)
{
    memset(core->bound.given, 0, (size_t)core->p.tensors * sizeof *core->bound.given);
    core->bound.some = 0;
    core->bound.unwritten = core->inputs;
    core->bound.ran = 0;
    core->bound.since = since;
}

/* The plan is about to write to its slab: what other plans have in those bytes is lost. */
static void gcpi_touch(gcpi_plan *core)
{
    gcp_tape *t = core->p.tape;
    if (t->toucher == core->number || core->run.purpose == GCPI_TO_MEASURE) return;
    t->toucher = core->number;
    for (int i = 0; i < GCP_MAX_BOUND; i++) {
        gcpi_binding *b = &t->bindings[i];
        int meet = gcpi_ranges_meet(b->slab, b->slab_bytes, core->bound.slab, core->slab_bytes);
        if (b->plan && b->plan != core->number && meet) b->taken = 1;
    }
}

static void gcpi_recordings_forget(gcpi_plan *core)
{
    for (int i = 0; i < 4; i++) {
        if (core->run.recordings[i]) core->p.target.device->forget(core->p.target.context, core->run.recordings[i]);
        core->run.recordings[i] = NULL;
    }
}
