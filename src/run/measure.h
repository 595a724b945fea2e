/* Measurements: seconds, bytes, whether gradients are right. */

/* Profile. Each instruction is waited for, far copies too, so that a copy's seconds are those of the link. */
typedef struct gcpi_timed { gcpi_plan *core; int instruction, operand; } gcpi_timed;
static void gcpi_issue_one(void *timed)
{
    const gcpi_timed *t = (const gcpi_timed *)timed;
    gcpi_run_instruction(t->core, t->instruction, t->operand);
    gcpi_far_wait_all(t->core);
}

/* Seconds since some moment, to the nanosecond: of a clock that counts from 1970 a double would hold a quarter of a
   microsecond, so the high bits are left out. They may begin again at 0 between two calls. */
#if defined(_WIN32)
union _LARGE_INTEGER;                   /* as windows.h has them */
#ifdef __cplusplus
extern "C" {
#endif
__declspec(dllimport) int __stdcall QueryPerformanceCounter(union _LARGE_INTEGER *count);
__declspec(dllimport) int __stdcall QueryPerformanceFrequency(union _LARGE_INTEGER *per_second);
#ifdef __cplusplus
}
#endif
static double gcpi_now(void)
{
    int64_t count = 0, per_second = 1;
    QueryPerformanceCounter((union _LARGE_INTEGER *)(void *)&count);
    QueryPerformanceFrequency((union _LARGE_INTEGER *)(void *)&per_second);
    return (double)(count / per_second & 0xFFFF) + (double)(count % per_second) / (double)per_second;
}
#else
static double gcpi_now(void)
{
    struct timespec t = { 0, 0 };
    timespec_get(&t, TIME_UTC);
    return (double)((int64_t)t.tv_sec & 0xFFFF) + 1e-9 * (double)t.tv_nsec;
}
#endif
static double gcpi_since(double start)
{
    const double seconds = gcpi_now() - start;
    if (seconds >= 0) return seconds;
    return seconds > -1 ? 0 : seconds + 0x10000;  /* it was set back; it began again */
}

static int gcpi_profile_step(gcpi_plan *core, const gcp_step_opts *o, double *seconds)
{
    const gcp_target *target = &core->p.target;
    gcpi_timed t;
    if (!gcpi_may_run(core, o->at, "gcp_profile")) return 0;
    t.core = core;
    gcpi_numbers_fill(core, o);
    for (t.instruction = t.operand = 0; t.instruction < (int)core->list.count; t.instruction++) {
        double begin = gcpi_now();
        if (target->device) seconds[t.instruction] = target->device->timed(target->context, gcpi_issue_one, &t);
        else { gcpi_issue_one(&t); seconds[t.instruction] = gcpi_since(begin); }
        t.operand += core->p.tasks[core->list.at[t.instruction].task].count;
    }
    if (gcpi_broken_off(core, o->at, "gcp_profile")) return 0;
    if (core->p.training) gcpi_counters_advance(core);
    core->bound.ran = 1;
    return 1;
}

static double gcpi_median(const double *x, ptrdiff_t stride, int n)          /* n even: the upper middle value */
{
    for (int i = 0; i < n; i++) {
        int below = 0;
        for (int k = 0; k < n; k++) below += x[k * stride] < x[i * stride] || (x[k * stride] == x[i * stride] && k < i);
        if (below == n / 2) return x[i * stride];
    }
    return 0;
}

GCPI_DEF double gcp_profile_at(gcp_plan *plan, gcp_profile_opts o)
{
    gcp_step_opts step;
    double sum = 0;
    if (gcpi_bound_check(plan, o.at, "gcp_profile") || !gcpi_rate_ok(plan, &o.lr, 1, o.at, "gcp_profile")) return 0;
    gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch, count = core->list.count;
    int repeats = o.repeats > 0 ? o.repeats : 5;
    double *all = GCPI_SCRATCH(a, double, gcpi_product(count, repeats));
    step.at = o.at; step.lr = o.lr; step.first_sample = 0; step.share = 0; step.feed = NULL; step.feed_context = NULL;
    if (!all)
        gcpi_fail(plan->tape, GCP_E_NOMEM, o.at, "gcp_profile", "the plan's arena has no room for %d x %td times",
                  repeats, count);
    int ok = all != NULL;
    for (int r = 0; ok && r < repeats; r++) ok = gcpi_profile_step(core, &step, all + r * count);
    for (ptrdiff_t i = 0; ok && i < count; i++) sum += core->seconds[i] = gcpi_median(all + i, count, repeats);
    a->scratch = scratch;
    return ok ? sum : 0;
}

GCPI_DEF double gcp_instruction_seconds(const gcp_plan *plan, int i)
{
    return plan && plan->core && plan->generation == plan->tape->generation && i >= 0 && i < plan->instructions
               ? plan->core->seconds[i]
               : 0;
}

/* Runs the plan in other memory, on copies of state and inputs; afterwards everything is as before. */
static void gcpi_run_copy(gcpi_plan *core, unsigned char *base, const gcp_step_opts *o)
{
    gcp_tape *t = core->p.tape;
    unsigned char *slab = core->bound.slab, *state = t->state;
    int micro = core->run.micro;
    gcpi_bytes_copy(&core->p.target, base, state, t->state_size);
    t->state = base;
    core->bound.slab = base + gcpi_round(t->state_size, core->p.target.align);
    core->run.purpose = GCPI_TO_MEASURE;
    for (int i = 0; i < core->p.item_count; i++)
        if (core->p.items[i].kind == GCPI_INPUT_ITEM && core->where[i] >= 0)
            gcpi_bytes_copy(&core->p.target, core->bound.slab + core->where[i], slab + core->where[i],
                            core->p.items[i].bytes);
    core->run.micro = 0;
    for (int m = 0; m < GCPI_MAX(1, core->opts.accumulate); m++) gcpi_run(core, o, "gcp_measure");
    core->run.purpose = GCPI_TO_STEP;
    core->run.micro = micro;
    core->bound.slab = slab;
    t->state = state;
}

/* Bytes up to the last that differs from the pattern. */
static size_t gcpi_touched(const gcp_target *target, const unsigned char *base, size_t size, unsigned char pattern)
{
    unsigned char some[16384];
    while (size > 0) {
        size_t n = (size - 1) % sizeof some + 1;
        gcpi_bytes_copy(target, some, base + size - n, n);
        const int all = some[0] == pattern && !memcmp(some, some + 1, n - 1);      /* each is as the one before */
        if (all) size -= n;
        else for (; some[n - 1] == pattern; n--) size--;
        if (!all) break;
    }
    return size;
}

static size_t gcpi_measure(gcp_plan *plan, unsigned char *memory, size_t size, const gcp_step_opts *o)
{
    gcpi_plan *core = plan->core;
    const gcp_target *target = &core->p.target;
    unsigned char *base = gcpi_align_up(memory, target->align);
    size_t lost = (size_t)(base - memory), last = 0;
    if (!memory || size <= plan->bytes + lost) {
        gcpi_fail(plan->tape, GCP_E_BIND, o->at, "gcp_measure",
                  "%zu bytes given, more than %zu needed at this address; more than %zu are enough at any "
                  "(plan.room)", size, plan->bytes + lost, plan->room);
        return 0;
    }
    const char *taken = gcpi_ranges_meet(memory, size, core->bound.slab, core->slab_bytes)
                            ? "the plan's own"
                            : gcpi_taken(plan->tape, memory, size, NULL, 0);
    if (taken) {
        gcpi_fail(plan->tape, GCP_E_BIND, o->at, "gcp_measure", "the memory overlaps %s", taken);
        return 0;
    }
    for (int pass = 0; pass < 2; pass++) {
        unsigned char pattern = pass ? 0x5A : 0xA5;
        gcpi_bytes_fill(target, base, pattern, size - lost);
        gcpi_run_copy(core, base, o);
        last = GCPI_MAX(last, gcpi_touched(target, base, size - lost, pattern));
    }
    return gcpi_trouble(plan->tape, target, o->at, "gcp_measure") ? 0 : last;
}

GCPI_DEF size_t gcp_measure_at(gcp_plan *plan, void *memory, size_t size, gcp_step_opts o)
{
    if (gcpi_bound_check(plan, o.at, "gcp_measure") || !gcpi_rate_ok(plan, &o.lr, 1, o.at, "gcp_measure") ||
        !gcpi_share_ok(plan, &o, "gcp_measure"))
        return 0;
    const gcp_target *target = &plan->core->p.target;
    if (memory || size || !target->allocate) return gcpi_measure(plan, (unsigned char *)memory, size, &o);
    size = plan->room + 4096;
    memory = target->allocate(target->context, size);
    if (!memory) {
        if (!gcpi_trouble(plan->tape, target, o.at, "gcp_measure"))
            gcpi_fail(plan->tape, GCP_E_NOMEM, o.at, "gcp_measure", "the target could not allocate %zu bytes", size);
        return 0;
    }
    size_t measured = gcpi_measure(plan, (unsigned char *)memory, size, &o);
    if (target->release) target->release(target->context, memory, size);
    return measured;
}

/* Gradient check. Its steps all have the same numbers (dropout, say) and do not change the state. */
typedef struct gcpi_check_job {
    gcp_plan *plan;
    gcp_step_opts o;
    double step, tolerance;
    gcp_gradcheck_result r;
} gcpi_check_job;

static double gcpi_loss_at(gcpi_check_job *j, gcp_real *x, double value)
{
    gcp_real v = (gcp_real)value;
    gcpi_bytes_copy(&j->plan->core->p.target, x, &v, sizeof v);
    return gcpi_run(j->plan->core, &j->o, "gcp_gradcheck");
}

static double gcpi_mean_square_root(const gcp_target *target, const gcp_real *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        gcp_real v;
        gcpi_bytes_copy(target, &v, &x[i], sizeof v);
        sum += (double)v * (double)v / (double)n;
    }
    return sqrt(sum);
}

static double gcpi_stencil(gcpi_check_job *j, gcp_real *x, double was, double h)
{
    double a = gcpi_loss_at(j, x, was + h) - gcpi_loss_at(j, x, was - h);
    double b = gcpi_loss_at(j, x, was + 2 * h) - gcpi_loss_at(j, x, was - 2 * h);
    return (8 * a - b) / (12 * h);
}

/* A large error need not be backward's: a rectifier or a maximum may have a kink between the stencil's points. Then
   closer points give a small error. */
static void gcpi_check_element(gcpi_check_job *j, gcp_tensor x, int element, gcp_real *at, double exact, double usual)
{
    enum { STEPS = 3 };
    const gcp_target *target = &j->plan->core->p.target;
    gcp_real first;
    gcpi_bytes_copy(target, &first, at, sizeof first);
    double size = GCPI_MAX(usual, fabs((double)first)), h = j->step * (size > 0 ? size : 1), least = HUGE_VAL, best = 0;
    for (int i = 0; i < STEPS && !(least <= j->tolerance); i++, h /= 10) {
        double numeric = gcpi_stencil(j, at, (double)first, h);
        double error = fabs(numeric - exact) / GCPI_MAX(1.0, GCPI_MAX(fabs(numeric), fabs(exact)));
        if (!i || error < least) best = numeric;
        if (error < least) least = error;           /* false for a NaN */
    }
    gcpi_bytes_copy(target, at, &first, sizeof first);
    j->r.elements++;
    if (least <= j->r.worst) return;
    j->r.worst = least;
    j->r.tensor = x;
    j->r.element = element;
    j->r.analytic = exact; j->r.numeric = best;
}

static void gcpi_check_tensor(gcpi_check_job *j, int tensor, gcp_real *x, const gcp_real *analytic)
{
    int n = (int)gcpi_count(j->plan->tape->tensors[tensor].shape);
    double usual = gcpi_mean_square_root(&j->plan->core->p.target, x, (size_t)n);
    for (int i = 0; i < n && j->r.worst < HUGE_VAL; i++)
        gcpi_check_element(j, gcpi_handle(j->plan->tape, tensor), i, &x[i], (double)analytic[i], usual);
}

static int gcpi_check_options(gcpi_check_job *j, const gcp_gradcheck_opts *o)
{
    int single = sizeof(gcp_real) == sizeof(float);
    j->step = gcpi_option(o->step, single ? 3e-2 : 1e-3);
    j->tolerance = gcpi_option(o->tolerance, single ? 5e-3 : 1e-7);
    if (j->step > 0 && gcpi_finite(j->step) && j->tolerance >= 0) return 1;
    gcpi_fail(j->plan->tape, GCP_E_ARGUMENT, o->at, "gcp_gradcheck", ".step = %g, .tolerance = %g; above 0, at least 0",
              j->step, j->tolerance);
    return 0;
}

GCPI_DEF gcp_gradcheck_result gcp_gradcheck_at(gcp_plan *plan, gcp_gradcheck_opts o)
{
    gcpi_check_job j;
    memset(&j.r, 0, sizeof j.r);
    j.o.at = o.at; j.o.lr = 0; j.o.first_sample = 0; j.o.share = 0; j.o.feed = NULL; j.o.feed_context = NULL;
    if (gcpi_bound_check(plan, o.at, "gcp_gradcheck")) return j.r;
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    if (!core->p.training || core->opts.optimizer || core->opts.accumulate > 1) {
        gcpi_fail(t, GCP_E_PLAN, o.at, "gcp_gradcheck", "needs a training plan without optimiser or accumulation");
        return j.r;
    }
    if (core->p.store) {
        gcpi_fail(t, GCP_E_PLAN, o.at, "gcp_gradcheck",
                  "the plan's .store is GCP_STORE_BF16, which rounds away its steps; GCP_STORE_REAL is checked");
        return j.r;
    }
    gcp_arena *a = core->opts.arena ? core->opts.arena : t->arena;
    ptrdiff_t scratch = a->scratch;
    j.plan = plan;
    if (!gcpi_check_options(&j, &o)) return j.r;
    for (int i = 1; i < core->p.tensors; i++) {
        int gradient = core->p.tensors + i, kind = t->tensors[i].kind;
        if (!core->p.items[gradient].active || (kind != GCPI_PARAMETER && kind != GCPI_INPUT)) continue;
        gcp_real *analytic = GCPI_SCRATCH(a, gcp_real, gcpi_count(t->tensors[i].shape));
        if (!analytic) {
            gcpi_fail(t, GCP_E_NOMEM, o.at, "gcp_gradcheck", "the plan's arena has no room for one gradient");
            return j.r;
        }
        core->run.purpose = GCPI_TO_GRADCHECK;
        gcpi_run(core, &j.o, "gcp_gradcheck");
        gcp_grad_at(plan, gcpi_handle(t, i), analytic, o.at);
        gcpi_check_tensor(&j, i, (gcp_real *)gcpi_item_data(core, i, core->where[i]), analytic);
        core->run.purpose = GCPI_TO_STEP;
        a->scratch = scratch;
        core->bound.ran = 0;                              /* the last results are those of a changed element */
        core->bound.since = "gcp_gradcheck";
    }
    j.r.passed = j.r.elements > 0 && j.r.worst <= j.tolerance;
    return j.r;
}
