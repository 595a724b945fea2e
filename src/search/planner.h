/* What policies and searches share. The current choice, the best order so far, candidates. */

/* An order whose copies are being placed. A position is an index into the order, or its end. */
typedef struct gcpi_far {
    gcpi_order full;                  /* with all copies */
    size_t *live, *fall; double *clock;       /* per position: bytes while it runs; how they fall; when it begins */
    /* positions, per value: of its first run; of the last reader of what that made; of the next run or copy back; of
       the first copy back; of the wait for the copy away; -1: none */
    int *made, *read, *end, *back,
        *wait;
    /* linked lists per position: values to wait for; positions of the copies back that are issued there */
    int *waits, *next_wait, *backs, *next_back;
} gcpi_far;

/* seconds of the order HUGE_VAL: there is no candidate */
typedef struct gcpi_candidate { gcpi_order order; const char *method; gcpi_fit fit; } gcpi_candidate;

/* .progress of a call. What is under way goes from one share of the call to another. */
typedef struct gcpi_portion { double from, to; } gcpi_portion;
typedef struct gcpi_watch {
    gcp_progress_fn ask; void *context;
    gcp_progress now;                 /* what was said last */
    gcpi_portion portion;
    int stopped;
} gcpi_watch;

typedef struct gcpi_planner {
    gcpi_problem *p; const gcp_plan_opts *opts; gcp_arena *a;
    gcpi_watch *watch;
    gcpi_model m;
    gcpi_choice now, guide;           /* guide: that of the best order */
    gcpi_list list;                   /* the list of an order, reused */
    gcpi_order trial, best;           /* of the current choice; of least peak, then least time */
    int found, tries;
    /* per forward task f: bytes that a cut after f keeps; bytes of its outputs that backward reads */
    size_t *crossing, *saved;
    int out_of_memory, coarse;        /* coarse: some part of the search did not fit in the arena */
    double layout, moving;            /* layout work for each candidate; seconds of the last one's moves */
    size_t front, slab_limit;         /* bytes of the step's numbers; most bytes of the slab (0: not BUDGET) */
    gcpi_candidate kept, loose;       /* the fastest whose slab fits; whose bytes fit, but not its slab */
    const char *method;               /* of the current candidate */
    gcpi_far far;                     /* where .far is given */
    double bound; size_t least_slab;  /* lower bound of seconds; where nothing fits: the smallest slab found, */
    int least_task;                   /* and the task at its peak, */
    size_t least_gradients, least_batch;      /* bytes there of weight gradients, and of what grows with the batch */
    int tried;                        /* the policies of a budget: best is the least of them */
    int lazy;                         /* candidates are not laid out; the fastest whose bytes fit becomes `loose` */
    size_t keep_all;                  /* slab of keep-all; SIZE_MAX: not known */
    /* no_exact: for tests; no_least: the least budget is not wanted where nothing fits; by_peak: an order's peak stands
       for its slab, see gcpi_plan_by_views; rough: what the first search finds is enough */
    int no_exact, no_least, by_peak, rough;
    double patience;                  /* of the search: how many times the visits of its effort */
    double known;                     /* seconds of a plan for another choice of views: find a faster one. 0: none */
} gcpi_planner;

static int gcpi_choice_make(gcpi_planner *q, gcpi_choice *c)
{
    const gcpi_problem *p = q->p;
    int segments = p->tape->segment_count + 2 * p->forward + 4;
    c->store = GCPI_SCRATCH(q->a, unsigned char, p->item_count);
    c->segment = GCPI_SCRATCH(q->a, int, p->forward + 1);
    c->parent = GCPI_SCRATCH(q->a, int, segments);
    c->depth = GCPI_SCRATCH(q->a, int, segments);
    return c->store && c->segment && c->parent && c->depth;
}

static void gcpi_choice_copy(const gcpi_problem *p, gcpi_choice *to, const gcpi_choice *from)
{
    memcpy(to->store, from->store, (size_t)p->item_count);
    memcpy(to->segment, from->segment, (size_t)p->forward * sizeof *to->segment);
    memcpy(to->parent, from->parent, (size_t)from->segments * sizeof *to->parent);
    memcpy(to->depth, from->depth, (size_t)from->segments * sizeof *to->depth);
    to->segments = from->segments; to->replay = from->replay;
}

/* All tasks go into the root segment. Outputs of ops with side effects, kept tensors and .keep masks are stored. */
static void gcpi_choice_clear(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    gcpi_choice *c = &q->now;
    memset(c->store, GCPI_AUTO, (size_t)p->item_count);
    memset(c->segment, 0, (size_t)p->forward * sizeof *c->segment);
    c->parent[0] = c->depth[0] = 0;
    c->segments = 1; c->replay = 0;
    for (int i = 0; i < p->item_count; i++) if (p->items[i].stored) c->store[i] = GCPI_STORE;
}

static int gcpi_segment_add(gcpi_choice *c, int parent)
{
    c->parent[c->segments] = parent;
    c->depth[c->segments] = c->depth[parent] + 1;
    return c->segments++;
}

/* The order of a choice, with its peak and seconds. 0: it has more runs than there is room for, or q->out_of_memory. */
static int gcpi_order_of(gcpi_planner *q, const gcpi_choice *c, gcpi_order *o)
{
    o->count = o->valid = 0;
    if (!gcpi_schedule(q->p, c, &q->list, q->a)) { q->out_of_memory = 1; return 0; }
    if (q->list.count > q->list.capacity) return 0;
    for (ptrdiff_t i = 0; i < q->list.count; i++)
        o->at[o->count++] = q->list.at[i].kind == 'R' ? ~q->list.at[i].task : q->list.at[i].task;
    gcpi_simulate(&q->m, o, NULL);
    return 1;
}

static void gcpi_list_of(const gcpi_problem *p, const gcpi_order *o, gcpi_list *list)
{
    list->count = 0; list->seconds = list->rerun_flops = 0;
    for (int i = 0; i < o->count; i++) {
        int task = gcpi_code_task(o, i);
        gcpi_emit(list, o->at[i] < 0 && task < p->forward ? 'R' : gcpi_letters[p->tasks[task].kind], task,
                  &p->tasks[task]);
    }
}

/* The slab that an order needs after layout; SIZE_MAX where the arena is too small to tell. */
static size_t gcpi_order_slab(gcpi_planner *q, const gcpi_order *o, gcpi_fit fit)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_lives lives;
    size_t *live, slab = 0;
    gcpi_list_of(q->p, o, &q->list);
    q->moving = q->list.seconds;
    slab = gcpi_arrange(q->p, &q->list, &lives, &live, fit, q->a);
    q->moving = q->list.seconds - q->moving;
    q->a->scratch = scratch;
    return slab ? slab : SIZE_MAX;
}

/* The most live bytes that slab_limit allows: buffers count rounded up to align, but the slab ends at its last byte. */
static size_t gcpi_room(const gcpi_planner *q)
{
    return q->slab_limit > q->front ? gcpi_round(q->slab_limit - q->front, q->p->target.align) : 0;
}

/* What is under way is now a part of the portion; returns the whole, to go back to. */
static gcpi_portion gcpi_watch_part(gcpi_planner *q, double from, double to)
{
    gcpi_portion whole = q->watch->portion, *s = &q->watch->portion;
    s->from = whole.from + from * (whole.to - whole.from);
    s->to = whole.from + to * (whole.to - whole.from);
    return whole;
}

/* Tells .progress that so much of what is under way is done, where that is news. 1: it stopped the search. */
static int gcpi_stopped(gcpi_planner *q, double done)
{
    gcpi_watch *w = q->watch;
    double share = w->portion.from + GCPI_MIN(1, done) * (w->portion.to - w->portion.from);
    double seconds = q->kept.order.seconds;
    int faster = seconds < HUGE_VAL && (w->now.seconds == 0 || seconds < w->now.seconds);
    if (!w->ask || w->stopped || (share < w->now.share + 0.002 && !faster)) return w->stopped;
    w->now.share = GCPI_MAX(w->now.share, share);
    if (faster) w->now.seconds = seconds;
    if (w->now.keep_all_seconds == 0) w->now.keep_all_seconds = q->m.seconds;
    return w->stopped = w->ask(w->context, &w->now) != 0;
}
