/* A step: its numbers, checks and counters. */

static double gcpi_root_value(const gcpi_plan *core)
{
    const gcpi_tensor *e = &core->p.tape->tensors[core->p.root];
    gcp_real value = 0;
    if (gcpi_count(e->shape) == 1 && e->dtype == GCP_DTYPE_REAL)
        gcpi_bytes_copy(&core->p.target, &value, gcpi_item_data(core, core->p.root, core->where[core->p.root]),
                        sizeof value);
    return (double)value;
}

/* How many labels of the op's input 1 its loss leaves out. */
static ptrdiff_t gcpi_labels_ignored(const gcpi_plan *core, const gcpi_op *op)
{
    enum { SOME = 1024 };
    const int labels = gcpi_edge(core->p.tape, op, 1), ignore = gcpi_label_range_of(core->p.tape, op, 1).ignore;
    const ptrdiff_t n = (ptrdiff_t)gcpi_count(core->p.tape->tensors[labels].shape);
    ptrdiff_t ignored = 0;
    for (ptrdiff_t first = 0; first < n; first += SOME) {
        int32_t some[SOME];
        ptrdiff_t count = GCPI_MIN((ptrdiff_t)SOME, n - first);
        gcpi_bytes_copy(&core->p.target, some, core->bound.slab + core->where[labels] + (size_t)first * sizeof *some,
                        (size_t)count * sizeof *some);
        for (ptrdiff_t i = 0; i < count; i++) ignored += some[i] == ignore;
    }
    return ignored;
}
/* What this micro-batch counts in its update: 1, or its labels. */
static double gcpi_micro_weight(const gcpi_plan *core)
{
    const gcp_tape *t = core->p.tape;
    if (!core->opts.accumulate_labels || core->run.purpose != GCPI_TO_STEP) return 1;
    const gcpi_op *op = &t->ops[core->counted];
    return (double)((ptrdiff_t)gcpi_count(t->tensors[gcpi_edge(t, op, 1)].shape) - gcpi_labels_ignored(core, op));
}

static void gcpi_numbers_fill(gcpi_plan *core, const gcp_step_opts *o)
{
    gcp_tape *t = core->p.tape;
    gcpi_counters counters = gcpi_counters_read(t);
    unsigned char bytes[GCPI_NUMBERS_BYTES] = { 0 };
    core->run.numbers.lr = o->lr;
    core->run.numbers.step = counters.steps;
    core->run.numbers.updates = counters.updates;
    core->run.numbers.seed = t->seed;
    core->run.numbers.first_sample = o->first_sample;
    core->run.numbers.micro = core->run.micro;
    core->run.numbers.micros = o->last ? core->run.micro + 1 : GCPI_MAX(1, core->opts.accumulate);
    const double weight = gcpi_micro_weight(core), share = gcpi_option(o->share, 1) * weight;
    core->run.counted = (core->run.micro ? core->run.counted : 0) + weight;
    core->run.numbers.gradient_scale =
        1.0 / (core->opts.accumulate_labels ? GCPI_MAX(1.0, core->run.counted) : core->run.numbers.micros);
    if (share != core->run.share) gcpi_recordings_forget(core);         /* they have it as a constant */
    core->run.share = share;
    memcpy(bytes, &core->run.numbers, sizeof core->run.numbers);
    gcpi_bytes_copy(&core->p.target, core->bound.slab, bytes, sizeof bytes);
}

/* Counts one more update of each parameter that the plan trains, if its optimiser has slots. */
static void gcpi_counts_advance(const gcpi_plan *core)
{
    enum { SOME = 512 };
    const gcp_tape *t = core->p.tape;
    uint64_t some[SOME];
    for (int first = 0; core->slots && first < t->parameter_count; first += SOME) {
        int n = GCPI_MIN((int)SOME, t->parameter_count - first);
        gcpi_bytes_copy(&t->home, some, gcpi_count_at(t, first), (size_t)n * sizeof *some);
        for (int i = 0; i < n; i++) some[i] += (uint64_t)gcpi_trained(&core->p, first + i);
        gcpi_bytes_copy(&t->home, gcpi_count_at(t, first), some, (size_t)n * sizeof *some);
    }
}

static void gcpi_counters_advance(gcpi_plan *core)
{
    gcpi_counters c;
    core->run.micro = (core->run.micro + 1) % core->run.numbers.micros;
    if (core->run.purpose == GCPI_TO_STEP) core->p.tape->summing = core->run.micro ? core->number : 0;
    c.steps = core->run.numbers.step + 1;
    c.updates = core->run.numbers.updates + (core->run.micro == 0);
    gcpi_bytes_copy(&core->p.tape->home, core->p.tape->state, &c, sizeof c);
    if (core->run.micro == 0) gcpi_counts_advance(core);
}

/* An error that names the first input that the list reads and that was not written. */
static void gcpi_unwritten_fail(const gcpi_plan *core, gcp_at at, const char *what)
{
    char name[128];
    int i = 0;
    while (core->p.items[i].kind != GCPI_INPUT_ITEM || core->where[i] < 0 || core->bound.given[i]) i++;
    gcpi_fail(core->p.tape, GCP_E_INPUT, at, what, "'%s' was not written since %s",
              gcp_name(gcpi_handle(core->p.tape, i), name, sizeof name), core->bound.since);
}
/* The same part of all inputs' samples must have been given: that of the first that was written in part. */
static int gcpi_samples_agree(gcpi_plan *core, gcp_at at, const char *what)
{
    const gcp_tape *t = core->p.tape;
    char name[96], other[96];
    int first = -1, first_all = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int x = 0; x < core->p.tensors; x++) {
            const int given = core->p.items[x].kind == GCPI_INPUT_ITEM ? core->bound.given[x] : 0;
            const int all = given ? gcpi_by_samples(t->tensors[x].shape).d[0] : 0;
            if (!pass && first < 0 && given < all) { first = x; first_all = all; }
            if (!pass || !given || first < 0 || !core->samples[x]) continue;
            if ((int64_t)given * first_all == (int64_t)core->bound.given[first] * all) continue;
            gcp_name(gcpi_handle(core->p.tape, first), name, sizeof name);
            gcp_name(gcpi_handle(core->p.tape, x), other, sizeof other);
            gcpi_fail(core->p.tape, GCP_E_INPUT, at, what,
                      "%d of %d samples of '%s' were written, and %d of %d of '%s'", core->bound.given[first],
                      first_all, name, given, all, other);
            return 0;
        }
    core->bound.some = first >= 0;
    return 1;
}

/* Whether this plan may run its next micro-batch. If so, it is the tape's running plan from now on. */
static int gcpi_may_run(gcpi_plan *core, gcp_at at, const char *what)
{
    gcp_tape *t = core->p.tape;
    if (core->run.purpose == GCPI_TO_MEASURE) return 1;
    if (core->bound.unwritten) { gcpi_unwritten_fail(core, at, what); return 0; }
    if (core->bound.some && !gcpi_samples_agree(core, at, what)) return 0;
    if (core->run.micro && t->runner != core->number) {
        gcpi_sums_forget(core);
        gcpi_fail(t, GCP_E_BIND, at, what, "another plan ran between the micro-batches of this one");
        return 0;
    }
    if (core->p.training && core->run.purpose == GCPI_TO_STEP && t->summing &&
        (t->summing != core->number || !core->run.micro)) {
        t->summing = 0;
        gcpi_fail(t, GCP_E_BIND, at, what,
                  "the plan before was not through its micro-batches: the gradients that it summed are lost");
        return 0;
    }
    if (core->run.purpose == GCPI_TO_STEP) t->runner = core->number;
    gcpi_touch(core);
    return 1;
}

/* Whether a run failed. If so, its recording is useless, and so are the gradients that micro-batches have summed. */
static int gcpi_broken_off(gcpi_plan *core, gcp_at at, const char *what)
{
    if (!core->p.tape->code && !gcpi_trouble(core->p.tape, &core->p.target, at, what)) return 0;
    gcpi_recordings_forget(core);
    gcpi_sums_forget(core);
    return 1;
}

/* What a .feed left on the tape. */
typedef struct gcpi_fed { gcp_code code; char message[GCP_MAX_ERROR]; } gcpi_fed;

/* The next step's inputs, while a device computes this one. An error is put by until the step is done. */
static void gcpi_feed(gcpi_plan *core, const gcp_step_opts *o, gcpi_fed *fed)
{
    gcp_tape *t = core->p.tape;
    const gcp_device *device = core->p.target.device;
    fed->code = GCP_OK;
    if (!o->feed || t->code || core->run.purpose != GCPI_TO_STEP) return;
    t->feeding = core->number;
    t->fed_at = o->at;
    if (device && device->behind) device->behind(core->p.target.context, 1);
    o->feed(o->feed_context);
    if (device && device->behind) device->behind(core->p.target.context, 0);
    t->feeding = 0;
    fed->code = t->code;
    memcpy(fed->message, t->message, sizeof fed->message);
    t->code = GCP_OK;
}

/* A device may record a step only if every step makes the same calls: no host code in between, always the same memory.
   way: which recording, as calls differ between the first, the last and other micro-batches. */
static void gcpi_start(gcpi_plan *core)
{
    const gcp_target *target = &core->p.target;
    int way = (core->run.numbers.micro > 0) + 2 * (core->run.numbers.micro + 1 == core->run.numbers.micros),
        by_host = (core->far_bytes || core->p.far_slots) && !target->copy_start;
    if (target->device && target->device->play && core->run.purpose == GCPI_TO_STEP && !core->opts.check &&
        !core->opts.on_gradient && !by_host)
        target->device->play(target->context, &core->run.recordings[way], gcpi_issue, core);
    else gcpi_issue(core);
}

static double gcpi_run(gcpi_plan *core, const gcp_step_opts *o, const char *what)
{
    gcp_tape *t = core->p.tape;
    gcpi_fed fed;
    if (!gcpi_may_run(core, o->at, what)) return (double)NAN;
    gcpi_numbers_fill(core, o);
    if (core->opts.check && core->run.purpose == GCPI_TO_STEP) gcpi_check_given(core, o->at);
    if (t->code) return (double)NAN;
    gcpi_start(core);
    /* a value that is a view of an input is read before .feed writes that; others do not wait for the device yet */
    const int viewed = o->feed && core->p.items[core->p.items[core->p.root].root].kind == GCPI_INPUT_ITEM;
    double value = viewed ? gcpi_root_value(core) : 0;
    gcpi_feed(core, o, &fed);
    if (gcpi_broken_off(core, o->at, what)) return (double)NAN;
    if (core->p.training && core->run.purpose != GCPI_TO_GRADCHECK) gcpi_counters_advance(core);
    if (!viewed) value = gcpi_root_value(core);
    if (gcpi_broken_off(core, o->at, what)) return (double)NAN;
    if (core->run.purpose != GCPI_TO_MEASURE) core->bound.ran = 1;
    if (fed.code) { t->code = fed.code; memcpy(t->message, fed.message, sizeof fed.message); }
    return value;
}

/* A plan with an optimiser needs a learning rate, another may have none. free: the rate may be left out. */
static int gcpi_rate_ok(const gcp_plan *plan, double *lr, int free, gcp_at at, const char *what)
{
    double given = *lr, rate = *lr = gcpi_option(given, 0);
    int trains = plan->core->opts.optimizer != GCP_OPTIMIZER_NONE;
    if (given != 0 && !trains)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, at, what, ".lr = %g, but the plan was made without .optimizer", rate);
    else if (given == 0 && trains && !free)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, at, what, ".lr is missing; GCP_ZERO says zero");
    else if (!(rate >= 0) || !gcpi_finite(rate))
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, at, what, ".lr = %g; at least 0, and finite", rate);
    return plan->tape->code == GCP_OK;
}

static int gcpi_last_ok(const gcp_plan *plan, const gcp_step_opts *o, const char *what)
{
    if (o->last && plan->core->opts.accumulate < 2)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, o->at, what, ".last belongs to a plan with .accumulate");
    return plan->tape->code == GCP_OK;
}

static int gcpi_share_ok(const gcp_plan *plan, const gcp_step_opts *o, const char *what)
{
    const double share = gcpi_option(o->share, 1);
    if (!(share >= 0 && share <= 1))
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, o->at, what, ".share = %.9g, in [0, 1]", share);
    else if (o->share != 0 && !plan->core->p.training)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, o->at, what, ".share = %g, but an inference plan has no gradients",
                         share);
    return plan->tape->code == GCP_OK;
}

GCPI_DEF double gcp_step_at(gcp_plan *plan, gcp_step_opts o)
{
    if (gcpi_bound_check(plan, o.at, "gcp_step")) return (double)NAN;
    if (!plan->core->p.training) {
        gcpi_fail(plan->tape, GCP_E_PLAN, o.at, "gcp_step", "an inference plan: use gcp_forward");
        return (double)NAN;
    }
    if (!gcpi_rate_ok(plan, &o.lr, 0, o.at, "gcp_step") || !gcpi_share_ok(plan, &o, "gcp_step") ||
        !gcpi_last_ok(plan, &o, "gcp_step"))
        return (double)NAN;
    return gcpi_run(plan->core, &o, "gcp_step");
}

GCPI_DEF double gcp_forward_at(gcp_plan *plan, gcp_step_opts o)
{
    if (gcpi_bound_check(plan, o.at, "gcp_forward")) return (double)NAN;
    if (plan->core->p.training) {
        gcpi_fail(plan->tape, GCP_E_PLAN, o.at, "gcp_forward",
                  "a training plan: use gcp_step, or plan with .inference = 1");
        return (double)NAN;
    }
    if (!gcpi_rate_ok(plan, &o.lr, 1, o.at, "gcp_forward") || !gcpi_share_ok(plan, &o, "gcp_forward") ||
        !gcpi_last_ok(plan, &o, "gcp_forward"))
        return (double)NAN;
    return gcpi_run(plan->core, &o, "gcp_forward");
}
