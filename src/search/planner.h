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

/* .progress of a call, and what was said last. A portion is the share of the call that something goes through. */
typedef struct gcpi_portion { double from, to; } gcpi_portion;
typedef struct gcpi_watch { gcp_progress_fn ask; void *context; gcp_progress now; int stopped; } gcpi_watch;

/* A request: what is looked for. Nothing changes it while it is answered. */
typedef struct gcpi_request {
    gcpi_problem *p;                  /* searches price its copies to far memory (gcpi_search_by) */
    const gcp_plan_opts *opts;        /* the numbers of policies: .segments, .checkpoints, ... */
    gcp_policy policy; gcp_effort effort;
    size_t limit;                     /* most bytes of the slab; 0: not GCP_POLICY_BUDGET */
    size_t far; int far_only;         /* bytes of far memory; nothing runs again */
    double known;                     /* seconds of a plan for another choice of views: find a faster one. 0: none */
    /* by_peak: an order's peak stands for its slab; no_least: the least budget is not wanted where nothing fits; rough:
       what the first search finds is enough; no_exact: for tests */
    int by_peak, no_least, rough, no_exact;
    gcpi_watch *watch; gcpi_portion portion;
} gcpi_request;

/* Where nothing fits: the smallest slab found, 0: none; whether none is smaller; the task at its peak; bytes there of
   weight gradients, and of what grows with the batch. */
typedef struct gcpi_lowest { size_t slab; int proven, task; size_t gradients, batch, halves; } gcpi_lowest;

/* The answer. order: in scratch, NULL: nothing fits; keep_all: slab of keep-all, SIZE_MAX: not known. coarse: some part
   of the search did not fit in the arena. */
typedef struct gcpi_answer {
    const gcpi_order *order; gcpi_fit fit; const char *method;
    double seconds, bound;            /* of the order; lower bound of any order's */
    int segments, coarse;
    size_t keep_all;
    gcpi_lowest lowest;
} gcpi_answer;

/* How a candidate is judged: by its layout; by its live bytes, which stand for its slab; by live bytes for now: the
   fastest becomes `loose`, to be laid out later. */
typedef enum gcpi_judgement { GCPI_BY_LAYOUT, GCPI_BY_PEAK, GCPI_LAID_OUT_LATER } gcpi_judgement;

/* LOWER: such orders that are remembered beside the fastest, in problems of at most LOWER_MOST forward ops. */
enum { GCPI_LOWER = 3, GCPI_LOWER_MOST = 256 };

/* The search's own memory. */
typedef struct gcpi_planner {
    const gcpi_request *r;            /* that is being answered; in parts of a search, a part of the one asked */
    gcpi_problem *p; gcp_arena *a;
    gcpi_model m;
    gcpi_choice now, guide;           /* guide: that of the best order */
    gcpi_list list;                   /* the list of an order, reused */
    gcpi_order trial, best;           /* of the current choice; of least peak, then least time */
    int tries, policies_tried;        /* policies_tried: best is the least of them all */
    /* per forward task f: bytes that a cut after f keeps; bytes of its outputs that backward reads */
    size_t *crossing, *saved;
    int out_of_memory, coarse, seed;  /* seed: of the search's random numbers */
    gcpi_judgement judgement;
    double layout;                    /* layout work for each candidate */
    size_t front, keep_all;           /* bytes of the step's numbers; slab of keep-all */
    size_t unit;                      /* slabs are front and a multiple of it */
    gcpi_candidate kept, loose;       /* the fastest whose slab fits; whose bytes fit, but not its slab */
    gcpi_candidate lower[GCPI_LOWER]; /* as loose, but slower in fewer bytes */
    gcpi_order over[2];               /* of cuts, of a chain: the order of the fewest bytes that does not fit */
    const char *method;               /* of the current candidate */
    gcpi_far far;                     /* where .far is given */
    double bound;
    gcpi_lowest lowest;
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
        o->at[o->count++] = q->list.at[i].letter == 'R' ? ~q->list.at[i].task : q->list.at[i].task;
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

/* The slab that an order needs after layout, SIZE_MAX where the arena is too small to tell; seconds of its moves. */
typedef struct gcpi_slab { size_t bytes; double moving; } gcpi_slab;
static gcpi_slab gcpi_order_slab(gcpi_planner *q, const gcpi_order *o, gcpi_fit fit)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_lives lives;
    gcpi_slab slab;
    size_t *live;
    gcpi_list_of(q->p, o, &q->list);
    const double still = q->list.seconds;
    slab.bytes = gcpi_arrange(q->p, &q->list, &lives, &live, fit, q->a);
    slab.moving = q->list.seconds - still;
    q->a->scratch = scratch;
    if (!slab.bytes) slab.bytes = SIZE_MAX;
    return slab;
}

/* The most live bytes that the limit allows: buffers count rounded up to align, but the slab ends at its last byte. The
   first search begins with all of that; later ones (seed) with what buffers can fill. */
static size_t gcpi_room(const gcpi_planner *q)
{
    const size_t align = q->p->target.align;
    if (q->r->limit <= q->front) return 0;
    const size_t free = GCPI_MIN(q->r->limit - q->front, SIZE_MAX - align);
    return gcpi_round(q->seed ? free - free % q->unit : free, align);
}

static gcpi_portion gcpi_part_of(gcpi_portion whole, double from, double to)
{
    gcpi_portion part;
    part.from = whole.from + from * (whole.to - whole.from);
    part.to = whole.from + to * (whole.to - whole.from);
    return part;
}

/* Tells .progress that so much of a portion is done, where that is news. 1: it stopped the search. */
static int gcpi_stopped(const gcpi_planner *q, gcpi_portion portion, double done)
{
    gcpi_watch *w = q->r->watch;
    double share = portion.from + GCPI_MIN(1, done) * (portion.to - portion.from);
    double seconds = q->kept.order.seconds;
    int faster = seconds < HUGE_VAL && (w->now.seconds == 0 || seconds < w->now.seconds);
    if (!w->ask || w->stopped || (share < w->now.share + 0.002 && !faster)) return w->stopped;
    w->now.share = GCPI_MAX(w->now.share, share);
    if (faster) w->now.seconds = seconds;
    if (w->now.keep_all_seconds == 0) w->now.keep_all_seconds = q->m.seconds;
    return w->stopped = w->ask(w->context, &w->now) != 0;
}
