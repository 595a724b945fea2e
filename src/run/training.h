/* What training needs beside steps: averages, the norm of gradients. Rates that change, too. */

/* What is no rate stays none, for gcp_step to refuse. */
static double gcpi_rate(double lr) { return lr == 0 ? GCP_ZERO : lr > 0 ? lr : (double)NAN; }
static double gcpi_warm(uint64_t step, uint64_t warmup) { return ((double)step + 1) / (double)warmup; }

GCPI_DEF double gcp_rate_cosine(double lr, uint64_t step, uint64_t warmup, uint64_t steps)
{
    if (step < warmup) return gcpi_rate(lr * gcpi_warm(step, warmup));
    if (!steps || !(lr >= 0)) return (double)NAN;
    if (step >= steps) return GCP_ZERO;
    const double share = (double)(step - warmup) / (double)(steps - warmup);
    return gcpi_rate(lr * 0.5 * (1 + cos(3.14159265358979323846 * share)));
}
GCPI_DEF double gcp_rate_steps(double lr, uint64_t step, uint64_t warmup, uint64_t every, double factor)
{
    if (step < warmup) return gcpi_rate(lr * gcpi_warm(step, warmup));
    return gcpi_rate(every ? lr * pow(factor, (double)((step - warmup) / every)) : lr);
}

GCPI_DEF double gcp_gradient_norm_at(gcp_plan *plan, gcp_at at)
{
    gcp_step_numbers n;
    if (gcpi_bound_check(plan, at, "gcp_gradient_norm")) return (double)NAN;
    const gcpi_plan *core = plan->core;
    if (core->opts.clip_norm <= 0 || !core->bound.ran) {
        gcpi_fail(plan->tape, GCP_E_PLAN, at, "gcp_gradient_norm", core->bound.ran ? "the plan has no .clip_norm"
                                                                                 : "no step has run yet");
        return (double)NAN;
    }
    gcpi_bytes_copy(&core->p.target, &n, core->bound.slab, sizeof n);
    return n.gradient_norm;
}

/* ---- averages: in order of recording, one behind the other ---- */

GCPI_DEF size_t gcp_average_bytes(const gcp_tape *t)
{
    size_t count = 0;
    for (int i = 0; t && i < t->parameter_count; i++) count += gcpi_count(t->parameters[i].shape);
    return count * sizeof(gcp_real);
}
static int gcpi_average_ok(gcp_tape *t, const void *memory, gcp_at at, const char *call)
{
    if (!t || t->code) return 0;
    const char *wrong = !memory                                ? "memory is NULL"
                        : (uintptr_t)memory % sizeof(gcp_real) ? "memory is not aligned to a gcp_real"
                        : !t->state ? "the state has no memory yet: call gcp_bind first"
                                    : NULL;
    if (wrong) gcpi_fail(t, GCP_E_STATE, at, call, "%s", wrong);
    return !wrong;
}
/* decay below 0: exchanges them */
static void gcpi_average_some(gcp_real *average, gcp_real *values, size_t count, double decay)
{
    for (size_t i = 0; i < count; i++) {
        const gcp_real value = values[i], old = average[i];
        if (decay < 0) { average[i] = value; values[i] = old; }
        else average[i] = decay > 0 ? (gcp_real)(decay * (double)old + (1 - decay) * (double)value) : value;
    }
}
static void gcpi_average(gcp_tape *t, gcp_real *average, double decay)
{
    enum { SOME = 1024 };
    gcp_real some[SOME];
    for (int i = 0; i < t->parameter_count; i++) {
        const size_t count = gcpi_count(t->parameters[i].shape);
        gcp_real *at = (gcp_real *)(void *)gcpi_value_at(t, i);
        for (size_t first = 0, n; first < count; first += n, average += n) {
            n = GCPI_MIN(count - first, (size_t)SOME);
            gcpi_bytes_copy(&t->home, some, at + first, n * sizeof *some);
            gcpi_average_some(average, some, n, decay);
            if (decay < 0) gcpi_bytes_copy(&t->home, at + first, some, n * sizeof *some);
        }
    }
}
GCPI_DEF gcp_code gcp_average_at(gcp_tape *t, void *memory, double decay, gcp_at at)
{
    if (!gcpi_average_ok(t, memory, at, "gcp_average")) return gcp_error_code(t);
    if (decay >= 0 && decay <= 1) gcpi_average(t, (gcp_real *)memory, decay);
    else gcpi_fail(t, GCP_E_ARGUMENT, at, "gcp_average", "a decay of %g; 0 to 1 are allowed", decay);
    return gcp_error_code(t);
}
GCPI_DEF gcp_code gcp_average_swap_at(gcp_tape *t, void *memory, gcp_at at)
{
    if (gcpi_average_ok(t, memory, at, "gcp_average_swap") && !gcpi_halfway(t, at, "gcp_average_swap"))
        gcpi_average(t, (gcp_real *)memory, -1);
    return gcp_error_code(t);
}
