/* How much arena planning takes; and planning more than once: the trade-off curve, the largest batch. */

/* Counts for an upper bound of what planning takes. list: instructions of the longest list that the policy can make;
   listed: their operands. */
typedef struct gcpi_sizes { size_t tasks, forward, items, operands, list, listed; } gcpi_sizes;

static size_t gcpi_arena_budget(const gcpi_sizes *n)
{
    size_t stages = GCPI_MIN(n->forward + 1, (size_t)GCPI_MOST_STAGES), rows = stages * (stages + 1) / 2,
           sets = n->forward <= GCPI_EXACT_VALUES ? (size_t)1 << GCPI_EXACT_VALUES : 0;
    size_t chain = 2 * rows * ((GCPI_MOST_SLOTS + 1) * sizeof(float) + 2 * sizeof(int)) +
                   stages * (stages + 16) * sizeof(size_t) + (n->items + n->tasks) * 4 * sizeof(int);
    size_t exact = sets * sizeof(size_t) + sets * (n->tasks + 1) * (sizeof(double) + 4 * sizeof(int)) +
                   (n->tasks + n->items) * 4 * sizeof(int);
    size_t cut = (n->items + n->forward) * 6 * sizeof(size_t) +
                 (n->operands + n->items + n->forward) * 8 * (2 * sizeof(int) + sizeof(double));
    return GCPI_MAX(chain, exact) + cut + 7 * n->list * sizeof(int) +
           n->items * (sizeof(double) + 1 + (GCPI_STATES + 1) * (1 + sizeof(uint16_t))) + 8192;
}

static size_t gcpi_arena_of(const gcp_tape *t, const gcp_plan_opts *o, const gcpi_sizes *n)
{
    size_t problem = n->items * (sizeof(gcpi_item) + 1) + n->tasks * sizeof(gcpi_task) +
                     n->operands * (sizeof(gcpi_operand) + sizeof(int)) + n->items * sizeof(int) +
                     n->forward * (4 * sizeof(gcpi_copied) + sizeof(int)) +
                     2 * (size_t)(t->parameter_count + 1) * sizeof(double);
    size_t lives =
        (n->listed + n->items) * (sizeof(gcpi_value) + sizeof(gcpi_buffer) + 2 * sizeof(gcpi_spot) + 5 * sizeof(int) +
                                  2 * sizeof(size_t) + sizeof(gcpi_placed) + sizeof(gcpi_plan_buffer) +
                                  sizeof(gcpi_rectangle));
    size_t lists = n->list * (5 * sizeof(gcpi_instruction) + 6 * sizeof(size_t) + 13 * sizeof(int) + sizeof(double));
    size_t choice = 2 * (n->items + (n->forward + 4) * 5 * sizeof(int) + 2 * (size_t)t->segment_count * sizeof(int));
    size_t model = n->items * (6 * sizeof(int) + sizeof(size_t) + 2) +
                   n->tasks * (6 * sizeof(int) + 3 * sizeof(size_t) + 2) + 2 * n->operands * sizeof(int);
    size_t search = (n->items * 4 + n->forward * 4 + n->operands) * 2 * sizeof(size_t) +
                    (10 * n->forward + 4 * n->items + 5 * (size_t)t->segment_count) * sizeof(int);
    size_t far =
        o->far ? n->list * (4 * sizeof(int) + 2 * sizeof(size_t) + sizeof(double)) + n->items * 7 * sizeof(int) : 0;
    return sizeof(gcpi_plan) + problem + lives + lists + choice + model + search + far +
           (o->policy == GCP_POLICY_BUDGET ? gcpi_arena_budget(n) : 0) + 128 * 64;
}

GCPI_DEF size_t gcp_plan_arena_at(gcp_tensor loss, gcp_plan_opts o)
{
    const gcp_tape *t = loss.tape;
    gcpi_sizes n;
    if (!t || !t->ops || !loss.id) return 0;
    size_t tensors = (size_t)t->tensor_count, edges = (size_t)t->edge_count, parameters = (size_t)t->parameter_count,
           widest = 0, lines = 1;
    int depth = 0;
    for (int s = 0; s < t->segment_count; s++) depth = GCPI_MAX(depth, t->segments[s].depth);
    n.forward = (size_t)t->op_count; n.items = 2 * tensors;
    n.tasks = 2 * n.forward + 3 * parameters + 2; n.operands = 3 * edges + 4 * tensors + 4 * parameters + 1;
    n.list = (size_t)gcpi_order_capacity(&o, (ptrdiff_t)n.tasks, (ptrdiff_t)n.forward, depth);
    n.listed = n.operands + (n.list - n.tasks) / n.forward * (edges + 2 * tensors);
    if (o.far) { n.tasks += 3 * tensors; n.operands += 3 * tensors; }
    if (gcpi_moves(&o)) { n.tasks += 2 * tensors; n.operands += 4 * tensors; }
    for (int i = 0; i < t->op_count; i++) widest = GCPI_MAX(widest, 2 * (size_t)(t->ops[i].inputs + t->ops[i].outputs));
    for (const char *c = o.list; c && *c; c++) lines += *c == '\n';
    if (o.list) {
        n.list = lines;
        n.listed = lines * (widest + parameters);
        n.tasks += 3 * tensors;
        n.operands += 3 * tensors;
    }
    lines = 1;
    for (const char *c = o.costs; c && *c; c++) lines += *c == '\n';
    return gcpi_arena_of(t, &o, &n) + lines * (sizeof(uint64_t) + sizeof(double));
}

/* An upper bound from the text's lines and words alone, without parsing it. */
GCPI_DEF size_t gcp_graph_arena_at(const gcp_tape *t, const char *text, gcp_plan_opts o)
{
    gcpi_sizes n;
    if (!text) text = "";
    size_t lines = 2, words = 2, length = strlen(text), line = 0, widest = 2;
    n.forward = 0;
    for (size_t i = 0; i < length; i++) {
        int begins = text[i] > ' ' && (i == 0 || text[i - 1] <= ' ');
        line = text[i] == '\n' ? 0 : line + (size_t)begins;
        widest = GCPI_MAX(widest, line);
        lines += text[i] == '\n'; words += (size_t)begins;
        n.forward += begins && line == 1 && (text[i] == 'f' || text[i] == 'o');
    }
    n.forward = GCPI_MAX(n.forward, 1); n.tasks = n.items = lines; n.operands = words;
    n.list = (size_t)gcpi_order_capacity(&o, (ptrdiff_t)lines, (ptrdiff_t)lines, 2);
    n.listed = words * (1 + n.list / lines);
    if (o.far || o.list) { n.tasks += 3 * lines; n.operands += 3 * lines; }
    if (gcpi_moves(&o)) { n.tasks += lines; n.operands += 2 * lines; }
    size_t given = o.list != NULL;
    for (const char *c = o.list; c && *c; c++) given += *c == '\n';
    n.list += given; n.listed += given * widest;
    return gcpi_arena_of(t, &o, &n) + length + lines * (2 * sizeof(char *) + 8 * sizeof(int)) + 1;
}

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
    p->planned_with = plan.in ? budget : plan.least_bytes;
    if (!plan.in && t->code != GCP_E_BUDGET) return -1;
    p->coarse = s->stopped ? 2 : plan.coarse;
    if (!plan.in) { gcp_error_clear(t); return 0; }
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
    if (!made.in && t->code == GCP_E_SHAPE && batch == 1 && o->most != 1) return 2;
    if (!made.in) return t->code == GCP_E_BUDGET ? 0 : -1;
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
