/* A plan: its data; a list of the user's; where its values lie. */

/* a buffer of the placed list, as reports, .check and the figures need it */
typedef struct gcpi_plan_buffer { size_t offset, bytes; int first, last, item, again; } gcpi_plan_buffer;

/* What a plan is bound to. The slab moves inside the memory that gcp_bind was given when the state grows. */
typedef struct gcpi_bound_state {
    void *memory; size_t memory_size;
    unsigned char *slab; void *owned; size_t owned_size;              /* owned: the target allocated it */
    unsigned layout;                  /* tape->layout when the slab was placed */
    int *given;                       /* per tensor: samples of an input that were written since then; 0: none */
    int some;                         /* an input was written in part since then */
    int unwritten, ran;               /* inputs that are not written; whether a step ran since the slab was placed */
    const char *since;                /* for messages: what lost the written inputs */
    unsigned char *far; void *far_owned;
} gcpi_bound_state;

/* What a run is for: a step that counts; gcp_measure, on copies of state and inputs; gcp_gradcheck, whose steps all
   have the same numbers and do not change the state. */
typedef enum gcpi_purpose { GCPI_TO_STEP, GCPI_TO_MEASURE, GCPI_TO_GRADCHECK } gcpi_purpose;

/* The step that runs, or ran last. */
typedef struct gcpi_run_state {
    int micro;
    gcpi_purpose purpose;
    double share;                     /* what the loss's own gradient is */
    double counted;                   /* what the micro-batches of this update count, so far */
    gcpi_transfer flying[GCP_COPIES]; int next_copy;
    gcp_step_numbers numbers;         /* of the step that is being issued; the slab holds a copy for the kernels */
    void *recordings[4];              /* the device's: of a first, middle, only and last micro-batch */
} gcpi_run_state;

typedef struct gcpi_plan {
    gcpi_lease lease;                 /* its bytes in the arena, this struct at their front; freed by gcp_plan_free */
    gcp_arena *arena;
    uint64_t number;                  /* the tape knows the plan by it */
    gcp_plan_opts opts;
    gcpi_problem p;
    int threads_asked;                /* by the target; more than p.target's where nothing runs them */
    gcpi_list list;
    gcpi_placed *placed;              /* per operand, in list order */
    size_t *live;                     /* per instruction */
    double *seconds;                  /* per instruction, measured; 0: not yet */
    gcpi_plan_buffer *buffers; int buffer_count;
    ptrdiff_t *where;                 /* per item: offset in the slab of its last value, -1: none */
    /* .check: per item the hash of its first value; the buffers (indices of buffers) that die at each instruction:
       dying[dying_first[i]] up to dying[dying_first[i + 1]] */
    uint64_t *hashes; int *dying, *dying_first;
    /* keep_all: slab bytes of the keep-all plan by default views, 0 where not known; its seconds */
    size_t slab_bytes, state_bytes, slot_bytes, live_peak, keep_all;
    double bound_seconds, keep_all_seconds;
    const char *method; gcpi_fit fit;           /* of the search */
    size_t unfused;                   /* slab bytes of the keep-all plan without fused updates; SIZE_MAX: as it is */
    int peak_at, forward_end, slots, segments;          /* forward_end: the instruction after the last F */
    int inputs, leaves_out;           /* inputs that the list reads; whether the loss can leave samples out */
    int counted;                      /* .accumulate_labels: the op whose labels count */
    int *samples, joins_samples;      /* per tensor: see samples.h; the first op that joins them, -1: none */
    ptrdiff_t *far_at; size_t far_bytes;      /* per tensor: its offset in far memory, -1: never there */
    double timeline;                  /* seconds of a step, far copies beside it; 0: the list has no copies */
    gcpi_bound_state bound;
    gcpi_run_state run;
} gcpi_plan;

static int gcpi_policy_fits(gcp_tape *t, const gcp_plan_opts *o, int units)
{
    int bad_k = o->policy == GCP_POLICY_CHECKPOINTS && (o->checkpoints < 0 || o->checkpoints >= units);
    int bad_s = o->policy == GCP_POLICY_UNIFORM && (o->segments < 1 || o->segments > units);
    if (o->inference || o->list || (!bad_k && !bad_s)) return 1;
    if (!units)
        return gcpi_plan_bad(
            t, o, "the network has no op before the loss, so there is nothing to cut: use GCP_POLICY_KEEP_ALL");
    gcpi_fail(t, GCP_E_PLAN, o->at, t->planning,
              bad_k ? ".checkpoints = %d of %d units; allowed are 0 to %d"
                    : ".segments = %d of %d units; allowed are 1 to %d",
              bad_k ? o->checkpoints : o->segments, units, bad_k ? units - 1 : units);
    return 0;
}

/* Parses the list that the user gave: the first pass counts its instructions, the second stores them. */
static int gcpi_plan_list(gcpi_plan *core, gcp_arena *a)
{
    gcp_tape *t = core->p.tape;
    char message[200];
    if (!gcpi_list_views(&core->p, core->opts.list, message, sizeof message)) {
        gcpi_fail(t, GCP_E_LIST, core->opts.at, t->planning, "%s", message);
        return 0;
    }
    if (core->opts.costs && !gcpi_costs_apply(&core->p, &core->opts, a)) return 0;
    for (int pass = 0; pass < 2; pass++) {
        if (!gcpi_list_parse(&core->p, core->opts.list, &core->list, message, sizeof message)) {
            gcpi_fail(t, GCP_E_LIST, core->opts.at, t->planning, "%s", message);
            return 0;
        }
        if (core->list.count == 0) {
            gcpi_fail(t, GCP_E_LIST, core->opts.at, t->planning, "the list holds no instruction");
            return 0;
        }
        if (pass == 0 && core->list.count > INT32_MAX / 4) {
            gcpi_fail(t, GCP_E_PLAN, core->opts.at, t->planning, "%td instructions", core->list.count);
            return 0;
        }
        if (pass == 0 && (core->list.at = GCPI_NEW(a, gcpi_instruction, core->list.count)) == NULL) return 0;
        core->list.capacity = core->list.count;
    }
    return gcpi_list_reruns(&core->p, &core->list, a);
}

/* Where each operand lies, and each item's last value: from the addresses of buffers. */
static void gcpi_plan_place(gcpi_plan *core, const gcpi_lives *l)
{
    const gcpi_problem *p = &core->p;
    int n = 0;
    for (int i = 0; i < p->item_count; i++) core->where[i] = -1;
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const gcpi_task *t = &p->tasks[core->list.at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_item *x = &p->items[p->operands[t->operands + k].item];
            core->placed[n].offset = -1;
            if (l->operand_value[n] < 0) continue;
            core->placed[n].offset =
                (ptrdiff_t)(l->buffers[gcpi_buffer_of(l, l->values[l->operand_value[n]].buffer)].offset + x->offset);
            core->where[p->operands[t->operands + k].item] = core->placed[n].offset;
        }
    }
}

static void gcpi_plan_buffers(gcpi_plan *core, const gcpi_lives *l)
{
    for (int i = 0; i < l->buffer_count; i++) {
        const gcpi_buffer *x = &l->buffers[i];
        if (x->joined >= 0) continue;
        gcpi_plan_buffer *b = &core->buffers[core->buffer_count++];
        b->offset = x->offset;
        b->bytes = x->bytes;
        b->first = x->first;
        b->last = x->last;
        b->item = x->root;
        b->again = core->list.at[x->first].letter == 'R';
    }
}

static int gcpi_plan_deaths(gcpi_plan *core, gcp_arena *a)
{
    core->hashes = GCPI_NEW(a, uint64_t, core->p.item_count);
    core->dying = GCPI_NEW(a, int, core->buffer_count + 1);
    core->dying_first = GCPI_NEW(a, int, core->list.count + 2);
    if (!core->hashes || !core->dying || !core->dying_first) return 0;
    for (int b = 0; b < core->buffer_count; b++) core->dying_first[core->buffers[b].last + 1]++;
    for (ptrdiff_t i = 0; i < core->list.count; i++) core->dying_first[i + 1] += core->dying_first[i];
    for (int b = 0; b < core->buffer_count; b++) core->dying[core->dying_first[core->buffers[b].last]++] = b;
    for (ptrdiff_t i = core->list.count; i > 0; i--) core->dying_first[i] = core->dying_first[i - 1];
    core->dying_first[0] = 0;
    return 1;
}

enum { GCPI_LARGE = 3000 };           /* tasks of a problem in which not every candidate gets a layout */

static size_t gcpi_slab_limit(const gcpi_plan *core)
{
    return core->opts.budget > core->state_bytes ? core->opts.budget - core->state_bytes : 0;
}

/* The layout of a user's list. With a budget, it tries each amount of work that the planner can have spent on a layout:
   so a list printed from a plan gets that plan's layout again (nearly always, if its budget was the least). */
static int gcpi_plan_layout(gcpi_plan *core, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    size_t limit = gcpi_slab_limit(core);
    for (int i = 0; limit && i < 9; i++) {
        const gcpi_effort *e = &gcpi_efforts[((int)core->opts.effort + i / 3) % 3];
        a->scratch = scratch;
        core->slab_bytes = gcpi_arrange(&core->p, &core->list, l, live,
                                      gcpi_fit_of(limit,
                                                  i % 3 == 0   ? e->layout
                                                  : i % 3 == 1 ? e->layout / 2
                                                               : e->hard,
                                                  0),
                                      a);
        if (core->slab_bytes && core->slab_bytes <= limit) return 1;
    }
    a->scratch = scratch;
    core->slab_bytes = gcpi_arrange(&core->p, &core->list, l, live, gcpi_fit_free(), a);
    return core->slab_bytes != 0;
}
