/* A plan: from options to a placed list. Problem, choice, list, lifetimes, layout, verification. */

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
typedef enum gcpi_purpose { GCPI_TO_STEP, GCPI_TO_MEASURE, GCPI_TO_CHECK } gcpi_purpose;

/* The step that runs, or ran last. */
typedef struct gcpi_run_state {
    int micro;
    gcpi_purpose purpose;
    double share;                     /* what the loss's own gradient is */
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
    gcpi_list list;
    gcpi_placed *placed;              /* per operand, in list order */
    size_t *live;                     /* per instruction */
    double *seconds;                  /* per instruction, measured; 0: not yet */
    gcpi_plan_buffer *buffers; int buffer_count;
    ptrdiff_t *where;                 /* per item: offset in the slab of its last value, -1: none */
    /* .check: per item the hash of its first value; the buffers (indices of buffers) that die at each instruction:
       dying[dying_first[i]] up to dying[dying_first[i + 1]] */
    uint64_t *hashes; int *dying, *dying_first;
    /* keep_all: slab bytes of the keep-all plan, 0 where not known */
    size_t slab_bytes, state_bytes, slot_bytes, live_peak, keep_all;
    const char *method; double bound_seconds, keep_all_seconds; gcpi_fit fit;   /* keep_all: by default views */
    size_t unfused;                   /* slab bytes of the keep-all plan without fused updates; SIZE_MAX: as it is */
    int peak_at, forward_end, slots, segments;          /* forward_end: the instruction after the last F */
    int inputs, leaves_out;           /* inputs that the list reads; whether the loss can leave samples out */
    int joins_samples;                /* the first op that makes one value of several samples, -1: none */
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
static int gcpi_plan_list(gcpi_plan *in, gcp_arena *a)
{
    gcp_tape *t = in->p.tape;
    char message[200];
    if (!gcpi_list_views(&in->p, in->opts.list, message, sizeof message)) {
        gcpi_fail(t, GCP_E_LIST, in->opts.at, t->planning, "%s", message);
        return 0;
    }
    if (in->opts.costs && !gcpi_costs_apply(&in->p, &in->opts, a)) return 0;
    for (int pass = 0; pass < 2; pass++) {
        if (!gcpi_list_parse(&in->p, in->opts.list, &in->list, message, sizeof message)) {
            gcpi_fail(t, GCP_E_LIST, in->opts.at, t->planning, "%s", message);
            return 0;
        }
        if (in->list.count == 0) {
            gcpi_fail(t, GCP_E_LIST, in->opts.at, t->planning, "the list holds no instruction");
            return 0;
        }
        if (pass == 0 && in->list.count > INT32_MAX / 4) {
            gcpi_fail(t, GCP_E_PLAN, in->opts.at, t->planning, "%td instructions", in->list.count);
            return 0;
        }
        if (pass == 0 && (in->list.at = GCPI_NEW(a, gcpi_instruction, in->list.count)) == NULL) return 0;
        in->list.capacity = in->list.count;
    }
    return gcpi_list_reruns(&in->p, &in->list, a);
}

/* Where each operand lies, and each item's last value: from the addresses of buffers. */
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

static void gcpi_plan_buffers(gcpi_plan *in, const gcpi_lives *l)
{
    for (int i = 0; i < l->buffer_count; i++) {
        const gcpi_buffer *x = &l->buffers[i];
        if (x->joined >= 0) continue;
        gcpi_plan_buffer *b = &in->buffers[in->buffer_count++];
        b->offset = x->offset;
        b->bytes = x->bytes;
        b->first = x->first;
        b->last = x->last;
        b->item = x->root;
        b->again = in->list.at[x->first].kind == 'R';
    }
}

static int gcpi_plan_deaths(gcpi_plan *in, gcp_arena *a)
{
    in->hashes = GCPI_NEW(a, uint64_t, in->p.item_count);
    in->dying = GCPI_NEW(a, int, in->buffer_count + 1);
    in->dying_first = GCPI_NEW(a, int, in->list.count + 2);
    if (!in->hashes || !in->dying || !in->dying_first) return 0;
    for (int b = 0; b < in->buffer_count; b++) in->dying_first[in->buffers[b].last + 1]++;
    for (ptrdiff_t i = 0; i < in->list.count; i++) in->dying_first[i + 1] += in->dying_first[i];
    for (int b = 0; b < in->buffer_count; b++) in->dying[in->dying_first[in->buffers[b].last]++] = b;
    for (ptrdiff_t i = in->list.count; i > 0; i--) in->dying_first[i] = in->dying_first[i - 1];
    in->dying_first[0] = 0;
    return 1;
}

enum { GCPI_LARGE = 3000 };           /* tasks of a problem in which not every candidate gets a layout */

static size_t gcpi_slab_limit(const gcpi_plan *in)
{
    return in->opts.budget > in->state_bytes ? in->opts.budget - in->state_bytes : 0;
}

/* The layout of a user's list. With a budget, it tries each amount of work that the planner can have spent on a layout:
   so a list printed from a plan gets that plan's layout again (nearly always, if its budget was the least). */
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
    return p->tasks[task].kind <= GCPI_TASK_BACKWARD && !gcpi_is_graph(p) ? p->tape->ops[p->tasks[task].op].at : other;
}

/* Whether a smaller batch can be had: an input has more than one sample. */
static int gcpi_can_halve(const gcp_tape *t)
{
    for (int i = 1; i < t->tensor_count; i++)
        if (t->tensors[i].kind == GCPI_INPUT && t->tensors[i].shape.d[0] > 1) return 1;
    return 0;
}

/* What one thread alone would take less for a task's workspace. */
static size_t gcpi_threads_take(const gcpi_problem *p, int task)
{
    gcpi_problem one = *p;
    gcpi_task alone = p->tasks[task];
    if (alone.kind > GCPI_TASK_BACKWARD) return 0;
    one.target.threads = 1;
    gcpi_task_cost(&one, &alone, &p->tape->ops[alone.op], alone.kind == GCPI_TASK_BACKWARD);
    return p->tasks[task].workspace - GCPI_MIN(alone.workspace, p->tasks[task].workspace);
}

/* What else would lower a peak at this task, with so many bytes of weight gradients, and so many that grow with the
   batch: each with the bytes that it saves at most. Empty: nothing. */
static void gcpi_help_text(const gcpi_plan *in, int task, size_t gradients, size_t batch, char *text, size_t size)
{
    const gcp_plan_opts *o = &in->opts;
    int adam = o->optimizer == GCP_OPTIMIZER_ADAM || o->optimizer == GCP_OPTIMIZER_ADAMW;
    size_t n = 0;
    text[0] = 0;
    if (gcpi_is_graph(&in->p)) return;
    const size_t threads = gcpi_threads_take(&in->p, task);
    if (adam && in->slot_bytes)
        n += (size_t)snprintf(text, size, "; SGD with momentum in place of Adam: %zu less", in->slot_bytes / 2);
    if (o->optimizer == GCP_OPTIMIZER_SGD && in->slot_bytes)
        n += (size_t)snprintf(text, size, "; SGD without momentum: %zu less", in->slot_bytes);
    if (in->slot_bytes && n < size)
        n += (size_t)snprintf(text + n, size - n, "; slots in far memory (gcp_slots_bind): up to %zu less",
                              in->slot_bytes);
    if (o->optimizer && !o->fuse_update && gradients && n < size)
        n += (size_t)snprintf(text + n, size - n, "; .fuse_update%s%s: frees up to %zu of weight gradients",
                              o->clip_norm > 0 ? ", without .clip_norm" : "",
                              o->accumulate > 1 ? ", without .accumulate" : "", gradients);
    if (threads && n < size)
        n += (size_t)snprintf(text + n, size - n, "; a target with .threads = 1, in place of %d: up to %zu less",
                              in->p.target.threads, threads);
    if (batch && gcpi_can_halve(in->p.tape) && n < size)
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

static void gcpi_stop_fail(const gcpi_plan *in, gcpi_outcome *out)
{
    gcpi_outcome_fail(out, GCP_E_BUDGET,
                      ".progress stopped the search before anything was found that fits .budget = %zu bytes",
                      in->opts.budget);
}

static void gcpi_budget_fail(const gcpi_plan *in, const gcpi_watch *watch, gcpi_outcome *out)
{
    char name[128], help[400];
    const gcpi_lowest *lowest = &out->lowest;
    const gcpi_task *task = &in->p.tasks[lowest->task];
    gcp_at at = gcpi_task_at(&in->p, lowest->task, in->opts.at);
    if (!lowest->slab && watch->stopped) gcpi_stop_fail(in, out);
    if (!lowest->slab) return;
    gcpi_help_text(in, lowest->task, lowest->gradients, lowest->batch, help, sizeof help);
    gcpi_outcome_fail(out, GCP_E_BUDGET,
                      ".budget allows %zu bytes; the least found to work is %zu%s; %s %.48s (%s:%d) sets it%s",
                      in->opts.budget, in->state_bytes + lowest->slab,
                      watch->stopped ? " (.progress stopped the search)"
                      : out->coarse  ? " (the plan's arena had no room for all of the search: gcp_plan_arena)"
                                     : "",
                      lowest->task < in->p.forward ? "forward of" : "backward of",
                      gcpi_task_name(&in->p, task, name, sizeof name), gcpi_basename(at.file), at.line, help);
}

/* What a plan of these options asks for. */
static gcpi_request gcpi_request_of(gcpi_plan *in, gcpi_watch *watch)
{
    gcpi_request r;
    memset(&r, 0, sizeof r);
    r.p = &in->p; r.opts = &in->opts;
    r.policy = in->opts.policy; r.effort = in->opts.effort;
    r.far = in->opts.far; r.far_only = in->opts.far_only;
    if (r.policy == GCP_POLICY_BUDGET) r.limit = GCPI_MAX(gcpi_slab_limit(in), 1);
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

static gcpi_outcome gcpi_plan_choose(const gcpi_plan *in, const gcpi_request *r, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_planner q;
    gcpi_answer found;
    gcpi_outcome out;
    memset(&out, 0, sizeof out);
    if (!gcpi_choose(&q, r, a, &found)) return out;
    out.lowest = found.lowest;
    out.coarse = found.coarse; out.bound = found.bound; out.seconds = found.seconds; out.segments = found.segments;
    out.method = found.method; out.fit = found.fit;
    out.keep_all = in->unfused < SIZE_MAX ? in->unfused : found.keep_all < SIZE_MAX ? found.keep_all : 0;
    if (!found.order) { gcpi_budget_fail(in, r->watch, &out); return out; }
    memset(&out.lowest, 0, sizeof out.lowest);
    out.checkpoints = in->p.training ? gcpi_checkpoint_bytes(r) : 0;
    gcpi_outcome_list(&out, r, &found, a);
    a->scratch = scratch;
    return out;
}

/* The slab of GCP_POLICY_KEEP_ALL, whose updates come last: what a plan is compared with that fuses them by itself. 0:
   not known, for a large problem. */
static size_t gcpi_unfused_slab(const gcpi_plan *in, int root, const gcp_target *target, gcp_arena *a)
{
    const gcp_arena was = *a;
    gcp_plan_opts o = in->opts;
    gcpi_problem p;
    gcpi_list list;
    gcpi_lives l;
    size_t *live, slab = 0;
    memset(&p, 0, sizeof p);
    memset(&list, 0, sizeof list);
    p.tape = in->p.tape;
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
static gcpi_outcome gcpi_plan_by_views(const gcpi_plan *in, const gcpi_request *asked, gcpi_lives *l, size_t **live,
                                       gcp_arena *a)
{
    ptrdiff_t used = a->used, scratch = a->scratch;
    gcpi_request r = *asked;
    for (r.by_peak = r.policy == GCP_POLICY_BUDGET && r.p->task_count > GCPI_LARGE;; r.by_peak = 0) {
        a->used = used; a->scratch = scratch;
        gcpi_outcome out = gcpi_plan_choose(in, &r, a);
        if (!out.made) return out;
        out.slab = gcpi_arrange(r.p, &out.list, l, live, out.fit, a);
        out.made = out.slab != 0;
        if (!r.by_peak || out.slab <= gcpi_slab_limit(in)) return out;
    }
}
