/* Planning more than once: curves, the least budget, the largest batch. */

/* gcp_sweep, gcp_least_budget and gcp_max_batch: the policy may be left out or be GCP_POLICY_BUDGET. budget: where the
   budgets come from, if not from .budget. */
static int gcpi_budgets_only(gcp_tape *t, gcp_plan_opts *o, gcp_at at, const char *call, const char *budget)
{
    const int other = o->policy != GCP_POLICY_SEGMENTS && o->policy != GCP_POLICY_BUDGET;
    if (other) gcpi_fail(t, GCP_E_PLAN, at, call, "the policy is always GCP_POLICY_BUDGET: leave out .policy");
    else if (o->list) gcpi_fail(t, GCP_E_PLAN, at, call, "schedules are searched for: leave out .list");
    else if (budget && o->budget) gcpi_fail(t, GCP_E_PLAN, at, call, "%s: leave out .budget", budget);
    o->policy = GCP_POLICY_BUDGET;
    return !t->code;
}

/* Plans that are made one after another. Of .progress, each plan's share becomes one of all plans. */
typedef struct gcpi_series {
    gcp_tensor loss; const char *text; gcp_plan_opts o;
    const char *call;                                          /* the user's, for errors */
    gcp_progress_fn ask; void *context;                        /* the user's */
    int plan, plans, stopped;
} gcpi_series;

static int gcpi_series_progress(void *context, const gcp_progress *progress)
{
    gcpi_series *s = (gcpi_series *)context;
    gcp_progress now = *progress;
    now.share = (s->plan + now.share) / s->plans;
    return s->stopped |= s->ask(s->context, &now) != 0;
}

/* The series stands between its plans and .progress. */
static void gcpi_series_watched(gcpi_series *s)
{
    s->ask = s->o.progress; s->context = s->o.progress_context;
    s->stopped = 0;
    if (!s->ask) return;
    s->o.progress = gcpi_series_progress; s->o.progress_context = s;
}

/* A point's plan. Once the series was stopped, only keep-all is left to try. */
static gcp_plan gcpi_series_plan(const gcpi_series *s)
{
    gcp_plan_opts o = s->o;
    if (s->stopped) {
        o.policy = GCP_POLICY_KEEP_ALL;
        o.effort = GCP_EFFORT_DEFAULT; o.progress = NULL; o.progress_context = NULL; o.far = 0; o.far_only = 0;
    }
    return gcpi_plan_for(s->loss, s->text, o, s->call);
}

/* A point by a plan of its own. 1: it has one; 0: nothing fits, or nothing was found before the stop; -1: an error. */
static int gcpi_sweep_point(gcpi_series *s, gcp_point *p)
{
    gcp_tape *t = s->loss.tape;
    size_t budget = s->o.budget = p->budget;
    memset(p, 0, sizeof *p);
    p->budget = budget;
    const int kept = s->stopped;
    gcp_plan plan = gcpi_series_plan(s);
    p->planned_with = plan.core ? budget : plan.least_bytes;
    if (!plan.core && t->code != GCP_E_BUDGET) return -1;
    p->coarse = s->stopped ? 2 : plan.coarse;
    if (!plan.core) { gcp_error_clear(t); return 0; }
    p->bytes = plan.bytes;
    p->seconds = plan.seconds;
    p->keep_all_seconds = plan.keep_all_seconds;
    p->bound_seconds = kept ? plan.keep_all_seconds : plan.bound_seconds;
    gcpi_plan_return(&plan);
    return 1;
}

/* The budgets must not fall. */
static int gcpi_sweep_budgets_ok(gcp_tape *t, const gcp_point *points, int count, gcp_at at, const char *call)
{
    if (!points) return gcpi_fail(t, GCP_E_ARGUMENT, at, call, "points is NULL"), 0;
    if (!points[0].budget) return gcpi_fail(t, GCP_E_ARGUMENT, at, call, "points[0].budget is 0"), 0;
    for (int i = 1; i < count; i++) {
        if (points[i].budget >= points[i - 1].budget) continue;
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "points[%d].budget = %zu is less than points[%d].budget = %zu", i,
                  points[i].budget, i - 1, points[i - 1].budget);
        return 0;
    }
    return 1;
}

/* A point takes the plan of a smaller budget where that is faster. */
static int gcpi_sweep_points(gcp_tensor loss, const char *text, gcp_point *points, int count, gcp_plan_opts o)
{
    gcp_tape *t = loss.tape;
    int fit = 0;
    const gcp_point *last = NULL;          /* the fastest so far: its plan fits all later budgets too */
    gcpi_series s;
    if (!t || t->code || count <= 0) return 0;
    s.loss = loss; s.text = text; s.plans = count; s.call = text ? "gcp_graph_sweep" : "gcp_sweep";
    if (!gcpi_budgets_only(t, &o, o.at, s.call, "the budgets are those of the points") ||
        !gcpi_sweep_budgets_ok(t, points, count, o.at, s.call))
        return 0;
    s.o = o;
    gcpi_series_watched(&s);
    for (int i = 0; i < count; i++) {
        gcp_point *p = &points[i];
        size_t budget = p->budget;
        s.plan = i;
        int planned = gcpi_sweep_point(&s, p);
        if (planned < 0) return 0;
        if (!planned && !last) continue;
        fit++;
        if (last && (!planned || last->seconds < p->seconds)) {
            double bound = planned ? p->bound_seconds : last->keep_all_seconds;      /* that of fewer bytes is none */
            const int coarse = p->coarse;
            *p = *last;
            p->budget = budget; p->bound_seconds = bound; p->coarse = coarse;
        }
        last = p;
    }
    return fit;
}

GCPI_DEF int gcp_sweep_at(gcp_tensor loss, gcp_point *points, int count, gcp_plan_opts o)
{
    return gcpi_sweep_points(loss, NULL, points, count, o);
}
GCPI_DEF int gcp_graph_sweep_at(gcp_tape *t, const char *text, gcp_point *points, int count, gcp_plan_opts o)
{
    return gcpi_sweep_points(gcpi_nil(t), text ? text : "", points, count, o);
}

GCPI_DEF size_t gcp_least_budget_at(gcp_tensor loss, gcp_plan_opts o)
{
    gcp_tape *t = loss.tape;
    if (!t || t->code || !gcpi_budgets_only(t, &o, o.at, "gcp_least_budget", "the least budget is what is looked for"))
        return 0;
    o.budget = 1;
    size_t least = gcpi_plan_for(loss, NULL, o, "gcp_least_budget").least_bytes;
    if (least) gcp_error_clear(t);
    return least;
}

/* Forgets a try, but not its error. */
static void gcpi_batch_forget(gcp_tape *t)
{
    char message[GCP_MAX_ERROR];
    gcp_code code = t->code;
    gcp_error(t);                                   /* a full tape's message is written only here */
    memcpy(message, t->message, sizeof message);
    gcp_tape_reset(t);
    t->code = code;
    memcpy(t->message, message, sizeof message);
}

/* 1: the batch fits; 0: it does not, and the tape's error says why; 2: one sample is too few for a batch-norm; -1:
   another error. */
static int gcpi_batch_fits(gcp_tape *t, gcp_record_fn record, void *context, const gcp_batch_opts *o, int batch)
{
    gcp_plan_opts plan = o->plan;
    plan.at = o->at;
    gcp_tensor loss = record(context, t, batch);
    if (loss.tape != t || loss.id == 0)
        gcpi_fail(t, GCP_E_ARGUMENT, o->at, "gcp_max_batch",
                  "record returned no tensor of the tape that it was given, at batch %d", batch);
    if (t->code) return -1;
    gcp_plan made = gcpi_plan_for(loss, NULL, plan, "gcp_max_batch");
    if (!made.core && t->code == GCP_E_SHAPE && batch == 1 && o->most != 1) return 2;
    if (!made.core) return t->code == GCP_E_BUDGET ? 0 : -1;
    const double slowdown = made.seconds / made.keep_all_seconds;
    gcpi_plan_return(&made);
    if (!(o->slowdown > 0) || slowdown <= o->slowdown) return 1;
    gcpi_fail(t, GCP_E_BUDGET, o->at, "gcp_max_batch", "a step of batch %d takes %.3f of keep-all's time, .slowdown %g",
              batch, slowdown, o->slowdown);
    return 0;
}

/* One try on an empty tape. low: the largest batch that fits so far; if 0, the error "does not fit" stays. */
static int gcpi_batch_try(gcp_tape *t, gcp_record_fn record, void *context, const gcp_batch_opts *o, int batch, int low)
{
    int fits = gcpi_batch_fits(t, record, context, o, batch);
    if (fits >= 0 && (fits || low)) gcp_error_clear(t);
    gcpi_batch_forget(t);
    return fits;
}

GCPI_DEF int gcp_max_batch_at(gcp_tape *t, gcp_record_fn record, void *context, gcp_batch_opts o)
{
    int64_t low = 0, high = 1, most = o.most > 0 ? o.most : 65536, fits = 1;
    if (!t || t->code || !t->ops) return 0;
    if (!record || o.most < 0 || !(o.slowdown >= 0)) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_max_batch", "%s",
                  !record      ? "record is NULL"
                  : o.most < 0 ? ".most is at least 1; 0 is the default"
                               : ".slowdown is above 0; 0 is any");
        return 0;
    }
    if (o.plan.costs) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_max_batch", "%s",
                  ".plan.costs are the seconds of ops of one batch: leave them out, or give a .plan.target with rates");
        return 0;
    }
    if (!gcpi_budgets_only(t, &o.plan, o.at, "gcp_max_batch", NULL)) return 0;
    gcpi_series s;
    s.o = o.plan; s.plan = 0; s.plans = 1;
    gcpi_series_watched(&s);
    o.plan = s.o;
    gcp_tape_reset(t);
    while (high <= most && !s.stopped && (fits = gcpi_batch_try(t, record, context, &o, (int)high, (int)low)) > 0) {
        if (fits == 1) low = high;
        high *= 2;
    }
    high = GCPI_MIN(high, most + 1);
    while (low && fits >= 0 && !s.stopped && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        fits = gcpi_batch_try(t, record, context, &o, (int)middle, (int)low);
        if (fits > 0) low = middle;
        else high = middle;
    }
    return fits < 0 ? 0 : (int)low;
}
