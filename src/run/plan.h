/* Problem, choice, list, lifetimes, layout, verification; then the figures that a plan shows. */

/* a buffer, for reports */
typedef struct gcpi_extent { size_t offset, bytes; int first, last, item, again; } gcpi_extent;

typedef struct gcpi_plan {
    gcp_arena *arena; ptrdiff_t first, last;          /* the arena that it lies in, and its bytes there */
    /* the plan made before it in the tape's arena; given back by gcp_plan_free */
    struct gcpi_plan *before; int freed;
    gcp_plan_opts opts;
    gcpi_problem p;
    gcpi_list list;
    gcpi_placed *placed;              /* per operand, in list order */
    size_t *live;                     /* per instruction */
    double *seconds;                  /* per instruction, measured; 0: not yet */
    gcpi_extent *blocks; int block_count;
    ptrdiff_t *where;                 /* per item: offset of its last value in the slab, -1 where it has none */
    /* .check: first version's hash per item; blocks that die at each instruction */
    uint64_t *hashes; int *dying, *dying_first;
    /* keep_all: slab of that plan, 0 where it is not known */
    size_t slab_bytes, state_bytes, live_peak, keep_all;
    const char *method; double bound; gcpi_fit fit;                 /* of the planner's order */
    int peak_at, forward_end, slots, segments;          /* forward_end: the instruction behind the last F */
    /* what gcp_bind was given: where the state grows, the slab moves in it */
    void *memory; size_t memory_size;
    unsigned char *slab; void *owned; size_t owned_size;              /* owned: given by the target */
    unsigned layout;                  /* of the tape's memory when the slab was laid */
    unsigned char *written;           /* per tensor: an input that was written since then */
    /* inputs that the list reads; those of them that were not written; a step ran since then */
    int inputs, unwritten, ran;
    const char *since;                /* what took away what was written */
    int micro, measuring;
    ptrdiff_t *far_at;                /* per tensor: where far memory has it, -1: never */
    double timeline;                  /* seconds with far copies beside them; 0: there are none */
    unsigned char *far; void *far_owned; size_t far_bytes;
    gcpi_transfer flying[GCP_COPIES]; int next_copy;
    gcp_step_numbers numbers;         /* of the step that is being issued; the slab holds a copy for the kernels */
    void *recordings[4];              /* the device's, one for each way that micro-batches differ */
} gcpi_plan;

static int gcpi_plan_bad(gcp_tape *t, const gcp_plan_opts *o, const char *text)
{
    gcpi_fail(t, GCP_E_PLAN, o->at, "gcp_plan_make", "%s", text);
    return 0;
}

static void gcpi_plan_defaults(gcp_plan_opts *o)
{
    o->momentum = gcpi_option(o->momentum, 0);
    o->beta1 = gcpi_option(o->beta1, 0.9);
    o->beta2 = gcpi_option(o->beta2, 0.999);
    o->epsilon = gcpi_option(o->epsilon, 1e-8);
    o->weight_decay = gcpi_option(o->weight_decay, 0);
    o->clip_value = gcpi_option(o->clip_value, 0);
    o->clip_norm = gcpi_option(o->clip_norm, 0);
    o->segments = gcpi_integer(o->segments);
    o->checkpoints = gcpi_integer(o->checkpoints);
    o->accumulate = gcpi_integer(o->accumulate);
    if (o->budget == (size_t)GCP_ZERO) o->budget = 0;
    if (o->far == (size_t)GCP_ZERO) o->far = 0;
}

/* The numbers of an optimiser, with their defaults. */
static int gcpi_plan_numbers_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const struct { const char *name; double value, below;
    } numbers[] = { { ".momentum", o->momentum, HUGE_VAL },
                    { ".weight_decay", o->weight_decay, HUGE_VAL },
                    { ".clip_value", o->clip_value, HUGE_VAL },
                    { ".clip_norm", o->clip_norm, HUGE_VAL },
                    { ".epsilon", o->epsilon, HUGE_VAL },
                    { ".beta1", o->beta1, 1 },
                    { ".beta2", o->beta2, 1 } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value >= 0 && numbers[i].value < numbers[i].below) continue;
        gcpi_fail(t, GCP_E_PLAN, o->at, "gcp_plan_make", "%s = %g; at least 0%s", numbers[i].name, numbers[i].value,
                  numbers[i].below > 1 ? ", and finite" : " and below 1");
        return 0;
    }
    return 1;
}

static int gcpi_plan_options_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    if (!gcpi_plan_numbers_ok(t, o)) return 0;
    if ((int)o->policy < 0 || o->policy > GCP_BUDGET) return gcpi_plan_bad(t, o, "unknown .policy");
    if ((int)o->effort < 0 || o->effort > GCP_EFFORT_THOROUGH) return gcpi_plan_bad(t, o, "unknown .effort");
    if (o->far && (o->policy != GCP_BUDGET || o->list || o->inference))
        return gcpi_plan_bad(t, o, ".far belongs to GCP_BUDGET");
    if (o->far_only && !o->far) return gcpi_plan_bad(t, o, ".far_only without .far");
    if (o->policy == GCP_BUDGET && !o->budget && !o->list) return gcpi_plan_bad(t, o, "GCP_BUDGET without .budget");
    if ((int)o->optimizer < 0 || o->optimizer > GCP_ADAMW) return gcpi_plan_bad(t, o, "unknown .optimizer");
    if (o->inference && (o->optimizer || o->accumulate > 1 || o->on_gradient || o->fuse_update))
        return gcpi_plan_bad(t, o, "an inference plan has no optimiser, accumulation or gradient hook");
    if (o->fuse_update && !o->optimizer) return gcpi_plan_bad(t, o, ".fuse_update without .optimizer");
    if (o->fuse_update && o->clip_norm > 0)
        return gcpi_plan_bad(t, o, ".fuse_update with .clip_norm: the norm needs all gradients first");
    if (o->fuse_update && o->accumulate > 1)
        return gcpi_plan_bad(t, o,
                             ".fuse_update with .accumulate: gradients are not finished before the last micro-batch");
    if (o->accumulate < 0) return gcpi_plan_bad(t, o, ".accumulate is at least 0");
    if (o->check && o->check != GCP_CHECK) return gcpi_plan_bad(t, o, ".check is GCP_CHECK or 0");
    if (o->nesterov && (o->optimizer != GCP_SGD || o->momentum == 0))
        return gcpi_plan_bad(t, o, ".nesterov needs GCP_SGD with .momentum");
    if (o->target && (o->target->align & (o->target->align - 1) || o->target->align > 1 << 30))
        return gcpi_plan_bad(t, o, "the target's .align is not a power of two up to 2^30");
    if (o->target && !(gcpi_finite(o->target->flops_per_second) && gcpi_finite(o->target->bytes_per_second) &&
                       gcpi_finite(o->target->far_bytes_per_second)))
        return gcpi_plan_bad(
            t, o, "the target's .flops_per_second, .bytes_per_second or .far_bytes_per_second is not finite");
    const gcp_device *d = o->target ? o->target->device : NULL;
    if (d && (!o->target->kernels || !d->copy || !d->fill || !d->timed || !d->trouble || !d->play != !d->forget))
        return gcpi_plan_bad(
            t, o,
            "the target's .device needs .kernels, and copy, fill, timed and trouble, and play and forget together");
    if (o->target && !o->target->copy_start != !o->target->copy_wait)
        return gcpi_plan_bad(t, o, "the target's .copy_start and .copy_wait belong together");
    if (o->target && o->target->align && o->target->align < sizeof(double))
        return gcpi_plan_bad(t, o, "the target's .align is below 8");
    if (o->target && (o->target->isa < 0 ||
                      (o->target->isa > 0 && o->target->isa - GCP_ISA_SCALAR > gcpi_isa_best() - GCPI_ISA_SCALAR)))
        return gcpi_plan_bad(t, o, "the target's .isa is not to be had on this machine");
    return 1;
}

/* Every parameter of the state was recorded again, or the first missing one is named. */
static int gcpi_parameters_seen(gcp_tape *t, gcp_at at)
{
    for (int i = 0; i < t->parameter_count; i++)
        if (!t->parameters[i].tensor) {
            gcpi_fail(t, GCP_E_PARAMETERS, at, "gcp_plan_make",
                      "'%s' was there before the reset and was not recorded again", t->parameters[i].path);
            return 0;
        }
    return 1;
}

static int gcpi_plan_ready(gcp_tensor loss, const gcp_plan_opts *o)
{
    gcp_tape *t = loss.tape;
    if (!t) return 0;
    gcpi_segments_close(t, 0);
    if (!gcpi_usable(t, loss, o->at, "gcp_plan_make") || !gcpi_plan_options_ok(t, o) || !gcpi_parameters_seen(t, o->at))
        return 0;
    const gcpi_tensor *e = gcpi_get(loss);
    char text[64];
    if (e->producer < 0) return gcpi_plan_bad(t, o, "the tensor is an input or parameter: there is nothing to run");
    if (!o->inference && (gcpi_count(e->shape) != 1 || e->dtype != GCP_DTYPE_REAL)) {
        gcpi_fail(t, GCP_E_SHAPE, o->at, "gcp_plan_make", "the loss is %s, not a scalar (gcp_mean makes one)",
                  gcpi_shape_text(e->shape, text, sizeof text));
        return 0;
    }
    return 1;
}

static int gcpi_policy_fits(gcp_tape *t, const gcp_plan_opts *o, int units)
{
    int bad_k = o->policy == GCP_CHECKPOINTS && (o->checkpoints < 0 || o->checkpoints >= units);
    int bad_s = o->policy == GCP_UNIFORM && (o->segments < 1 || o->segments > units);
    if (o->inference || o->list || (!bad_k && !bad_s)) return 1;
    if (!units) return gcpi_plan_bad(t, o, "the network is a loss alone: it has no unit to cut (GCP_KEEP_ALL)");
    gcpi_fail(t, GCP_E_PLAN, o->at, "gcp_plan_make",
              bad_k ? ".checkpoints = %d of %d units; allowed are 0 to %d"
                    : ".segments = %d of %d units; allowed are 1 to %d",
              bad_k ? o->checkpoints : o->segments, units, bad_k ? units - 1 : units);
    return 0;
}

/* The list that the user gave. */
static int gcpi_plan_list(gcpi_plan *in, gcp_arena *a)
{
    gcp_tape *t = in->p.tape;
    char message[200];
    for (int pass = 0; pass < 2; pass++) {
        if (!gcpi_list_parse(&in->p, in->opts.list, &in->list, message, sizeof message)) {
            gcpi_fail(t, GCP_E_LIST, in->opts.at, "gcp_plan_make", "%s", message);
            return 0;
        }
        if (in->list.count == 0) {
            gcpi_fail(t, GCP_E_LIST, in->opts.at, "gcp_plan_make", "the list holds no instruction");
            return 0;
        }
        if (pass == 0 && in->list.count > INT32_MAX / 4) {
            gcpi_fail(t, GCP_E_PLAN, in->opts.at, "gcp_plan_make", "%td instructions", in->list.count);
            return 0;
        }
        if (pass == 0 && (in->list.at = GCPI_NEW(a, gcpi_instruction, in->list.count)) == NULL) return 0;
        in->list.capacity = in->list.count;
    }
    return gcpi_list_reruns(&in->p, &in->list, a);
}

/* Where each operand lies, from the buffers. */
static void gcpi_plan_place(gcpi_plan *in, const gcpi_lives *l)
{
    const gcpi_problem *p = &in->p;
    int n = 0;
    for (int i = 0; i < p->item_count; i++) in->where[i] = -1;
    for (ptrdiff_t i = 0; i < in->list.count; i++) {
        const gcpi_task *t = &p->tasks[in->list.at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_item *x = &p->items[p->operands[t->operands + k].item];
            in->placed[n].offset = -1;
            if (l->operand_value[n] < 0) continue;
            in->placed[n].offset =
                (ptrdiff_t)(l->buffers[gcpi_buffer_of(l, l->values[l->operand_value[n]].buffer)].offset + x->offset);
            in->where[p->operands[t->operands + k].item] = in->placed[n].offset;
        }
    }
}

static void gcpi_plan_blocks(gcpi_plan *in, const gcpi_lives *l)
{
    for (int b = 0, n = 0; b < l->buffer_count; b++) {
        const gcpi_buffer *x = &l->buffers[b];
        if (x->joined >= 0) continue;
        gcpi_extent *block = &in->blocks[n++];
        block->offset = x->offset;
        block->bytes = x->bytes;
        block->first = x->first;
        block->last = x->last;
        block->item = x->root;
        block->again = in->list.at[x->first].kind == 'R';
        in->block_count = n;
    }
}

static int gcpi_plan_deaths(gcpi_plan *in, gcp_arena *a)
{
    in->hashes = GCPI_NEW(a, uint64_t, in->p.item_count);
    in->dying = GCPI_NEW(a, int, in->block_count + 1);
    in->dying_first = GCPI_NEW(a, int, in->list.count + 2);
    if (!in->hashes || !in->dying || !in->dying_first) return 0;
    for (int b = 0; b < in->block_count; b++) in->dying_first[in->blocks[b].last + 1]++;
    for (ptrdiff_t i = 0; i < in->list.count; i++) in->dying_first[i + 1] += in->dying_first[i];
    for (int b = 0; b < in->block_count; b++) in->dying[in->dying_first[in->blocks[b].last]++] = b;
    for (ptrdiff_t i = in->list.count; i > 0; i--) in->dying_first[i] = in->dying_first[i - 1];
    in->dying_first[0] = 0;
    return 1;
}

static size_t gcpi_slab_limit(const gcpi_plan *in)
{
    return in->opts.budget > in->state_bytes ? in->opts.budget - in->state_bytes : 0;
}

/* The layout of a user's list. With a budget: by every amount of work that a planner may have spent, which finds that
   of a printed plan again (of a least budget's nearly always). */
static int gcpi_plan_layout(gcpi_plan *in, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    size_t limit = gcpi_slab_limit(in);
    for (int i = 0; limit && i < 9; i++) {
        const gcpi_effort *e = &gcpi_efforts[((int)in->opts.effort + i / 3) % 3];
        a->scratch = scratch;
        in->slab_bytes = gcpi_arrange(&in->p, &in->list, l, live,
                                      gcpi_fit_of(limit,
                                                  i % 3 == 0   ? e->layout
                                                  : i % 3 == 1 ? e->layout / 2
                                                               : e->hard,
                                                  0),
                                      a);
        if (in->slab_bytes && in->slab_bytes <= limit) return 1;
    }
    a->scratch = scratch;
    in->slab_bytes = gcpi_arrange(&in->p, &in->list, l, live, gcpi_fit_free(), a);
    return in->slab_bytes != 0;
}

static gcp_at gcpi_task_at(const gcpi_problem *p, int task, gcp_at other)          /* where the user recorded it */
{
    return p->tasks[task].kind <= GCPI_TASK_BACKWARD && !p->names ? p->tape->ops[p->tasks[task].op].at : other;
}

static int gcpi_budget_fail(const gcpi_plan *in, const gcpi_planner *q)
{
    char name[128];
    gcp_at at = gcpi_task_at(q->p, q->least_task, in->opts.at);
    if (q->least_slab)
        gcpi_fail(q->p->tape, GCP_E_BUDGET, in->opts.at, "gcp_plan_make",
                  ".budget allows %zu bytes; the least found to work is %zu%s; %s %s (%s:%d) sets it", in->opts.budget,
                  in->state_bytes + q->least_slab,
                  q->coarse ? " (the plan's arena had no room for all of the search: gcp_plan_arena)" : "",
                  q->least_task < q->p->forward ? "forward of" : "backward of",
                  gcpi_task_name(q->p, &q->p->tasks[q->least_task], name, sizeof name), gcpi_basename(at.file),
                  at.line);
    return 0;
}

static int gcpi_plan_choose(gcp_plan *plan, int by_peak, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    ptrdiff_t scratch = a->scratch;
    gcpi_planner q;
    memset(&q, 0, sizeof q);
    q.p = &in->p; q.opts = &in->opts; q.a = a; q.by_peak = by_peak;
    if (in->opts.policy == GCP_BUDGET) q.slab_limit = GCPI_MAX(gcpi_slab_limit(in), 1);
    if (!gcpi_choose(&q)) return 0;
    plan->least_bytes = q.least_slab ? in->state_bytes + q.least_slab : 0;
    plan->coarse = q.coarse;
    if (q.slab_limit && !gcpi_has(&q.kept)) return gcpi_budget_fail(in, &q);
    plan->checkpoint_bytes = in->p.training ? gcpi_checkpoint_bytes(&q) : 0;
    in->segments = GCPI_MAX(1, q.guide.segments - 1);
    in->keep_all = q.keep_all < SIZE_MAX ? q.keep_all : 0;
    in->method = q.kept.method; in->bound = q.bound; in->fit = q.kept.fit;
    in->list.capacity = q.best.count + in->fit.moves;
    in->list.at = GCPI_NEW(a, gcpi_instruction, in->list.capacity);
    if (in->list.at) gcpi_list_of(&in->p, &q.best, &in->list);
    int ok = in->list.at && gcpi_list_reruns(&in->p, &in->list, a);
    a->scratch = scratch;
    return ok;
}

/* The planner's list and its layout. In a large problem a layout takes longer than finding another order: there
   candidates count by their bytes alone, and only what comes of it is laid out; where that fails, each is. */
static int gcpi_plan_search(gcp_plan *plan, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    enum { LARGE = 3000 };
    gcpi_plan *in = plan->in;
    ptrdiff_t used = a->used, scratch = a->scratch;
    for (int by_peak = in->opts.policy == GCP_BUDGET && in->p.task_count > LARGE;; by_peak = 0) {
        a->used = used; a->scratch = scratch;
        if (!gcpi_plan_choose(plan, by_peak, a)) return 0;
        in->slab_bytes = gcpi_arrange(&in->p, &in->list, l, live, in->fit, a);
        if (!by_peak || in->slab_bytes <= gcpi_slab_limit(in)) return in->slab_bytes != 0;
    }
}

/* From options to a verified, placed plan. */
static int gcpi_plan_settle(gcp_plan *plan, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    ptrdiff_t scratch = a->scratch;
    gcpi_lives lives;
    size_t *live;
    char message[200];
    if (in->opts.list ? !gcpi_plan_list(in, a) || !gcpi_plan_layout(in, &lives, &live, a)
                      : !gcpi_plan_search(plan, &lives, &live, a))
        return 0;
    in->placed = GCPI_NEW(a, gcpi_placed, gcpi_operand_total(&in->p, &in->list) + 1);
    in->live = GCPI_NEW(a, size_t, in->list.count + 1);
    in->where = GCPI_NEW(a, ptrdiff_t, in->p.item_count);
    in->seconds = GCPI_NEW(a, double, in->list.count);
    in->blocks = GCPI_NEW(a, gcpi_extent, lives.buffer_count + 1);
    if (!in->placed || !in->live || !in->where || !in->seconds || !in->blocks) return 0;
    memcpy(in->live, live, (size_t)in->list.count * sizeof *live);
    /* the last buffer ends at a byte, not at a multiple of align */
    in->live_peak = GCPI_MIN(lives.peak, in->slab_bytes);
    in->peak_at = lives.peak_at;
    gcpi_plan_place(in, &lives);
    gcpi_plan_blocks(in, &lives);
    a->scratch = scratch;
    if (!gcpi_verify(&in->p, &in->list, in->placed, in->slab_bytes, message, sizeof message, a)) {
        gcpi_fail(in->p.tape, GCP_E_LIST, in->opts.at, "gcp_plan_make", "%s", message);
        return 0;
    }
    return !in->opts.check || gcpi_plan_deaths(in, a);
}

static int gcpi_slots_of(const gcp_plan_opts *o)
{
    return o->optimizer == GCP_SGD ? o->momentum > 0 : o->optimizer ? 2 : 0;
}

/* State: counters (of the tape, and of each parameter how often its slots were updated), values, slots. */
enum { GCPI_STATE_ALIGN = 64 };
typedef struct gcpi_counters { uint64_t steps, updates; } gcpi_counters;

static size_t gcpi_counters_bytes(const gcp_tape *t)
{
    return gcpi_round(sizeof(gcpi_counters) + (size_t)t->parameter_count * sizeof(uint64_t), GCPI_STATE_ALIGN);
}
static size_t gcpi_parameter_bytes(const gcp_tape *t, int i)
{
    return gcpi_round(gcpi_count(t->parameters[i].shape) * sizeof(gcp_real), GCPI_STATE_ALIGN);
}

/* The state with what each of these plans adds to it. */
static size_t gcpi_state_with(const gcp_tape *t, gcpi_plan *const *plans, int count)
{
    size_t total = gcpi_counters_bytes(t);
    for (int i = 0; i < t->parameter_count; i++) {
        int slots = t->parameters[i].slot ? t->slots : 0;
        for (int k = 0; k < count; k++) if (gcpi_trained(&plans[k]->p, i)) slots = GCPI_MAX(slots, plans[k]->slots);
        total += gcpi_parameter_bytes(t, i) * (size_t)(1 + slots);
    }
    return total;
}
GCPI_DEF size_t gcp_state_bytes(const gcp_tape *t, gcp_optimizer optimizer)
{
    size_t total = t ? gcpi_counters_bytes(t) : 0;
    for (int i = 0; t && i < t->parameter_count; i++)
        total += gcpi_parameter_bytes(t, i) * (t->parameters[i].kind != GCPI_PARAMETER || !optimizer ? 1
                                               : optimizer == GCP_SGD                                ? 2
                                                                                                     : 3);
    return total;
}

/* The figures that change where the state grows. */
static void gcpi_plan_sizes(gcp_plan *plan)
{
    gcpi_plan *in = plan->in;
    if (!in->p.names) in->state_bytes = gcpi_round(gcpi_state_with(plan->tape, &plan->in, 1), in->p.target.align);
    plan->state_bytes = in->state_bytes;
    plan->slab_bytes = in->slab_bytes;
    plan->bytes = plan->state_bytes + plan->slab_bytes;
    plan->room = plan->bytes + in->p.target.align - 1;
    plan->keep_all_bytes = in->keep_all ? plan->state_bytes + in->keep_all : 0;
    plan->split.optimizer = plan->state_bytes - plan->split.weights - plan->split.statistics;
}

static void gcpi_plan_split(gcp_plan *plan)
{
    const gcpi_plan *in = plan->in;
    const gcpi_problem *p = &in->p;
    const gcp_tape *t = p->tape;
    gcp_split *s = &plan->split;
    size_t sum = 0;
    for (int i = 0; i < t->parameter_count && !p->names; i++)
        *(t->parameters[i].kind == GCPI_PARAMETER ? &s->weights : &s->statistics) += gcpi_parameter_bytes(t, i);
    if (p->names) s->weights = in->state_bytes;
    else s->statistics += gcpi_counters_bytes(t);
    for (int b = 0; b < in->block_count; b++) {
        const gcpi_extent *x = &in->blocks[b];
        const gcpi_item *item = &p->items[x->item];
        if (x->first > in->peak_at || x->last < in->peak_at) continue;
        sum += x->bytes;
        if (item->kind == GCPI_INPUT_ITEM) s->inputs += x->bytes;
        else if (item->kind == GCPI_GRADIENT_ITEM)
            *(!p->names && t->tensors[item->tensor].kind == GCPI_PARAMETER ? &s->weight_gradients
                                                                           : &s->activation_gradients) += x->bytes;
        else *(x->again ? &s->recomputed : &s->kept) += x->bytes;
    }
    s->workspace = p->tasks[in->list.at[in->peak_at].task].workspace + p->numbers;
    s->gaps = in->slab_bytes - sum - s->workspace;
}

static void gcpi_plan_figures(gcp_plan *plan)
{
    gcpi_plan *in = plan->in;
    const gcpi_problem *p = &in->p;
    plan->live_peak = in->live_peak;
    plan->peak_instruction = in->peak_at;
    plan->instructions = (int)in->list.count;
    plan->units = p->units;
    plan->reruns = in->list.reruns;
    plan->rerun_flops = in->list.rerun_flops;
    plan->seconds = GCPI_MAX(in->list.seconds, in->timeline);
    plan->stall_seconds = plan->seconds - in->list.seconds;
    plan->segments = in->segments;
    plan->far_bytes = in->far_bytes;
    plan->costed = p->costed;
    /* rounding */
    plan->bound_seconds =
        in->bound > plan->seconds && in->bound < plan->seconds * (1 + 1e-9) ? plan->seconds : in->bound;
    plan->method = in->method;
    for (int i = 0; i < p->task_count; i++) plan->keep_all_seconds += p->tasks[i].seconds;
    for (int i = 0; i < p->forward; i++) plan->forward_flops += p->tasks[i].flops;
    for (ptrdiff_t i = 0; i < in->list.count; i++) {
        const gcpi_task *t = &p->tasks[in->list.at[i].task];
        if (gcpi_copies(t)) plan->far_traffic += p->items[t->op].bytes;
        if (t->kind == GCPI_TASK_MOVE) plan->moved_bytes += p->items[t->op].bytes;
        if (in->list.at[i].kind == 'F') in->forward_end = (int)i + 1;
    }
    for (int b = 0; b < in->block_count; b++) {
        const gcpi_extent *x = &in->blocks[b];
        if (x->first < in->forward_end && x->last >= in->forward_end && p->items[x->item].kind == GCPI_FORWARD_ITEM)
            plan->after_forward += x->bytes;
    }
    gcpi_plan_split(plan);
    gcpi_plan_sizes(plan);
}

static int gcpi_plan_within(gcp_plan *plan)
{
    const gcpi_plan *in = plan->in;
    const gcpi_task *task = &in->p.tasks[in->list.at[in->peak_at].task];
    char name[128];
    if (!in->opts.budget || plan->bytes <= in->opts.budget) return 1;
    gcp_at at = gcpi_task_at(&in->p, (int)(task - in->p.tasks), in->opts.at);
    gcpi_fail(in->p.tape, GCP_E_BUDGET, in->opts.at, "gcp_plan_make",
              "the plan takes %zu bytes, .budget allows %zu; the peak is at %c %s (%s:%d)", plan->bytes,
              in->opts.budget, in->list.at[in->peak_at].kind, gcpi_task_name(&in->p, task, name, sizeof name),
              gcpi_basename(at.file), at.line);
    return 0;
}

/* Every tensor that the list copies away has a place of its own in far memory. */
static int gcpi_plan_far(gcpi_plan *in, gcp_arena *a)
{
    if (!in->p.far_count) return 1;
    in->far_at = GCPI_NEW(a, ptrdiff_t, in->p.tensors);
    for (int i = 0; in->far_at && i < in->p.tensors; i++) in->far_at[i] = -1;
    for (ptrdiff_t i = 0; in->far_at && i < in->list.count; i++) {
        const gcpi_task *t = &in->p.tasks[in->list.at[i].task];
        if (t->kind != GCPI_TASK_OFFLOAD || in->far_at[t->op] >= 0) continue;
        in->far_at[t->op] = (ptrdiff_t)in->far_bytes;
        in->far_bytes += gcpi_round(in->p.items[t->op].bytes, in->p.target.align);
    }
    if (in->far_bytes) in->timeline = gcpi_timeline(&in->p, &in->list, in->placed);
    return in->far_at != NULL;
}

static int gcpi_customs_run_on(const gcpi_problem *p)
{
    for (int i = 0; p->target.device && i < p->task_count; i++) {
        const gcpi_task *task = &p->tasks[i];
        if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        const gcp_op *own = op->row->on_device;
        if (op->kind != GCP_OP_CUSTOM ||
            (own && (task->kind == GCPI_TASK_FORWARD ? own->forward != NULL : own->backward != NULL)))
            continue;
        gcpi_fail(p->tape, GCP_E_PLAN, op->at, op->row->name, "no version for the target '%s' (.on_device)",
                  p->target.name);
        return 0;
    }
    return 1;
}

/* Inputs that the list reads, to know which were written. */
static int gcpi_plan_inputs(gcpi_plan *in, gcp_arena *a)
{
    in->written = GCPI_NEW(a, unsigned char, in->p.tensors + 1);
    for (int i = 0; i < in->p.tensors; i++) in->inputs += in->p.items[i].kind == GCPI_INPUT_ITEM && in->where[i] >= 0;
    in->unwritten = in->inputs;
    return in->written != NULL;
}

static int gcpi_plan_finish(gcp_plan *plan, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    if (!gcpi_plan_settle(plan, a) || !gcpi_plan_far(in, a) || !gcpi_plan_inputs(in, a)) return 0;
    gcpi_plan_figures(plan);
    return gcpi_plan_within(plan);
}

/* Sums of bytes cannot overflow, whatever the plan, and sums of seconds are finite. */
static int gcpi_plan_addressable(const gcpi_plan *in)
{
    double bytes = 0, workspace = 0, seconds = 0;
    for (int i = 0; i < in->p.item_count; i++) {
        const gcpi_item *x = &in->p.items[i];
        if (x->root == i)
            bytes += ((double)x->bytes + (double)in->p.target.align) * (x->kind == GCPI_STATE_ITEM ? 1 + in->slots : 1);
    }
    for (int i = 0; i < in->p.task_count; i++) {
        workspace = GCPI_MAX(workspace, (double)in->p.tasks[i].workspace);
        seconds += in->p.tasks[i].seconds;
    }
    if (!(seconds < 1e100))
        return gcpi_plan_bad(in->p.tape, &in->opts,
                             "at the target's .flops_per_second and .bytes_per_second a step takes no finite time");
    if (bytes + workspace < (double)(SIZE_MAX / 2)) return 1;
    gcpi_fail(in->p.tape, GCP_E_SHAPE, in->opts.at, "gcp_plan_make",
              "the network's tensors take %.3g bytes, more than can be addressed", bytes + workspace);
    return 0;
}

static int gcpi_plan_steps(gcp_plan *plan, int root, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    gcp_tape *t = plan->tape;
    gcp_target target = gcpi_target_of(in->opts.target);
    in->p.tape = t;
    in->slots = gcpi_slots_of(&in->opts);
    if (gcpi_trouble(t, &target, in->opts.at, "gcp_plan_make")) return 0;
    if (!gcpi_problem_make(&in->p, root, &in->opts, &target, a) || !gcpi_customs_run_on(&in->p) ||
        !gcpi_plan_addressable(in))
        return 0;
    if (in->p.training && !in->p.items[t->tensor_count + root].active)
        return gcpi_plan_bad(t, &in->opts, "no parameter and no wanted input lies behind the loss");
    if (!gcpi_policy_fits(t, &in->opts, in->p.units)) return 0;
    in->state_bytes = gcpi_round(gcpi_state_with(t, &plan->in, 1), in->p.target.align);
    return gcpi_plan_finish(plan, a);
}

static int gcpi_graph_steps(gcp_plan *plan, const char *text, gcp_arena *a)
{
    gcpi_plan *in = plan->in;
    char message[200];
    gcp_target target = gcpi_target_of(in->opts.target);
    in->p.tape = plan->tape;
    if (!gcpi_graph_parse(&in->p, text, &target, &in->opts, message, sizeof message, a)) {
        if (message[0]) gcpi_fail(plan->tape, GCP_E_GRAPH, in->opts.at, "gcp_graph_plan", "%s", message);
        return 0;
    }
    in->state_bytes = gcpi_round(in->p.state, in->p.target.align);
    return gcpi_policy_fits(plan->tape, &in->opts, in->p.units) && gcpi_plan_finish(plan, a);
}

/* Takes the plan's own bytes. */
static int gcpi_plan_begin(gcp_plan *plan, const gcp_plan_opts *o)
{
    gcp_arena *a = o->arena ? o->arena : plan->tape->arena;
    ptrdiff_t first = a->used;
    plan->generation = plan->tape->generation;
    plan->in = GCPI_NEW(a, gcpi_plan, 1);
    if (!plan->in) return 0;
    plan->in->opts = *o;
    plan->in->arena = a; plan->in->first = first;
    return 1;
}

/* What lay bound where this plan lies now is gone: its arena was used again. */
static void gcpi_binding_forget(gcp_tape *t, const gcpi_plan *in)
{
    uintptr_t first = (uintptr_t)in->arena->base + (uintptr_t)in->first,
              last = (uintptr_t)in->arena->base + (uintptr_t)in->last;
    for (int i = 0; i < GCP_MAX_BOUND; i++)
        if ((uintptr_t)t->bindings[i].plan >= first && (uintptr_t)t->bindings[i].plan < last)
            memset(&t->bindings[i], 0, sizeof t->bindings[i]);
}

/* Bytes in the tape's arena of plans that were freed while later ones live. */
static size_t gcpi_freed_below(const gcp_tape *t)
{
    size_t bytes = 0;
    for (const gcpi_plan *in = t->newest; in; in = in->before) if (in->freed) bytes += (size_t)(in->last - in->first);
    return bytes;
}

/* The plan is made, or its bytes go back, with the error that there is or that the arena is too small. */
static void gcpi_plan_end(gcp_plan *plan, int made, const gcp_arena *was, size_t enough, const gcp_plan_opts *o,
                          const char *what, const char *call)
{
    gcp_tape *t = plan->tape;
    gcp_arena *a = o->arena ? o->arena : t->arena;
    gcpi_plan *in = plan->in;
    a->scratch = was->scratch;
    if (made) {
        in->last = a->used;
        gcpi_binding_forget(t, in);
        if (a != t->arena) return;
        in->before = (uintptr_t)t->newest < (uintptr_t)a->base + (uintptr_t)in->first ? t->newest : NULL;
        t->newest = in;
        return;
    }
    size_t freed = a == t->arena ? gcpi_freed_below(t) : 0;
    if (!freed)
        gcpi_fail(t, GCP_E_NOMEM, o->at, what, "the plan's arena of %td bytes is too small; %zu are enough (%s)",
                  was->size - was->used - was->scratch, enough, call);
    else
        gcpi_fail(t, GCP_E_NOMEM, o->at, what,
                  "the plan's arena of %td bytes is too small; %zu are enough (%s); freed plans below a living one "
                  "hold %zu (free before you "
                  "make, or use two arenas in turn)",
                  was->size - was->used - was->scratch, enough, call, freed);
    size_t least = in && t->code == GCP_E_BUDGET ? plan->least_bytes : 0;
    int coarse = least > 0 && plan->coarse;
    memset(plan, 0, sizeof *plan);
    plan->tape = t; plan->least_bytes = least; plan->coarse = coarse;
    a->used = was->used;
}

static gcp_plan gcpi_plan_none(gcp_tape *t)
{
    gcp_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.tape = t;
    return plan;
}

/* The arena has the plan's bytes again: where nothing lies behind them, at once; behind plans of the tape's arena as
   soon as they went. */
static void gcpi_plan_return(gcp_plan *plan)
{
    gcpi_plan *in = plan->in;
    gcp_tape *t = plan->tape;
    in->freed = 1;
    if (in->arena != t->arena && in->arena->used == in->last) in->arena->used = in->first;
    while (t->newest && t->newest->freed && t->arena->used == t->newest->last) {
        t->arena->used = t->newest->first;
        t->newest = t->newest->before;
    }
    *plan = gcpi_plan_none(t);
}

GCPI_DEF gcp_plan gcp_plan_make_at(gcp_tensor loss, gcp_plan_opts o)
{
    gcp_plan plan = gcpi_plan_none(loss.tape);
    gcpi_plan_defaults(&o);
    if (!gcpi_plan_ready(loss, &o)) return plan;
    gcp_arena *a = o.arena ? o.arena : plan.tape->arena, was = *a;
    int made = gcpi_plan_begin(&plan, &o) && gcpi_plan_steps(&plan, loss.id, a);
    gcpi_plan_end(&plan, made, &was, made ? 0 : gcp_plan_arena_at(loss, o), &o, "gcp_plan_make", "gcp_plan_arena");
    return plan;
}

GCPI_DEF gcp_plan gcp_graph_plan_at(gcp_tape *t, const char *text, gcp_plan_opts o)
{
    gcp_plan plan = gcpi_plan_none(t);
    gcpi_plan_defaults(&o);
    if (!t || !t->ops || t->code || !gcpi_plan_options_ok(t, &o)) return plan;
    if (o.inference || o.optimizer || o.accumulate > 1 || o.on_gradient || o.costs) {
        gcpi_plan_bad(t, &o,
                      "a graph says itself what a step does: no .inference, .optimizer, .accumulate, hooks or .costs");
        return plan;
    }
    gcp_arena *a = o.arena ? o.arena : t->arena, was = *a;
    int made = gcpi_plan_begin(&plan, &o) && gcpi_graph_steps(&plan, text, a);
    gcpi_plan_end(&plan, made, &was, made ? 0 : gcp_graph_arena_at(t, text, o), &o, "gcp_graph_plan",
                  "gcp_graph_arena");
    return plan;
}
