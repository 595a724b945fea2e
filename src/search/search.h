/* GCP_POLICY_BUDGET: local search. From an order it goes on by moves: a value is dropped and made again, a run is taken
   out or slides. Annealing takes some moves that are worse; bytes above the limit have a price. */

/* What .effort means. visits: instructions that the search simulates, in large problems up to `growth` times as many;
   prices: of cuts; places: tasks for bounds; stages, grains: of the chain; policies: each is tried, even if something
   fits; layout: placed buffers that a layout looks at; hard: the same, for the last layout of what nearly fits; least:
   visits per forward op on the way to the least budget; nodes: of the exact search with addresses. */
typedef struct gcpi_effort {
    double visits, growth;
    int prices, places, stages, grains, policies;
    double layout, hard, least;
    int nodes;
} gcpi_effort;
enum {
    GCPI_MOST_STAGES = 192,
    GCPI_MOST_GRAINS = 160,
    GCPI_FEW_GRAINS = 48,
    GCPI_FEW_CELLS = 4000000,      /* stages squared, times grains, where grains are few */
    GCPI_SHORT_CHAIN = 201
};
static const gcpi_effort gcpi_efforts[] = { { 1.6e6, 6, 20, 12, 96, 100, 1, 6e5, 3e6, 8e3, 3000 },
                                            { 1.5e5, 1, 12, 4, 48, 64, 0, 1e5, 3e5, 2e3, 1000 },
                                            { 4e7, 6, 24, 32, GCPI_MOST_STAGES, GCPI_MOST_GRAINS, 1, 1.5e6, 1.2e7,
                                              1e5, 400000 } };

/* Local search: annealing with a fixed seed. A move takes a run out, puts one in, or shifts one nearer to its reader.
   Bytes above the limit cost a price, which rises while the present order does not fit and falls while it does. So the
   search stays near the limit and finds out by itself what a byte is worth there.

   Only what a move changes is simulated. Marks stand along the present order, each with what is live there and the peak
   from there to the next mark. A trial begins at the first mark after the move and walks towards the front, until the
   same values are live as before at a mark before the move: what comes before that mark is unchanged. */
/* peak_at: counted from `at`; state: index in states */
typedef struct gcpi_mark { int at, next, peak_at, state; size_t live, peak; } gcpi_mark;

enum { GCPI_MARKS = 64, GCPI_STATES = 2 * GCPI_MARKS };

typedef struct gcpi_search {
    const gcpi_model *m;
    gcpi_order now, best;             /* best: the fastest whose peak fits */
    /* limit: `aim` times the whole; most: a trial with a higher peak is not taken */
    size_t whole, limit, most;
    double aim;
    uint64_t random;
    /* price of bytes above the limit: keep-alls of seconds per limit; rate: e-folds of the price in a whole run */
    double price, rate;
    /* first: the search stops at the first order that fits */
    int found, first, spacing;
    unsigned char *states, *there;    /* there: per value, live at a position */
    double *weight;                   /* per value: bytes over seconds; 0: it cannot be made again */
    /* how values may come to life again: 0: by runs; 1: by runs or copies from far memory; 2: by copies alone */
    int far;
    gcpi_planner *q;
    int judge;                        /* 0: seconds are the sum of the tasks; 1: of the timeline of its placed copies */
    gcpi_mark mark[GCPI_MARKS], fresh[GCPI_MARKS];     /* from its front; of the trial, from its end */
    int marks, fresh_count, spare[GCPI_STATES], spares;
    /* the move: position of the run taken out; position before which runs are put; these, last first */
    int removed, ahead, *runs, run_count;
    int *part, part_count, low, high;                  /* the trial from mark low to mark high, last first */
    gcpi_mark front; gcpi_pass pass; double seconds;   /* of the trial: its mark low; where the walk is; all seconds */
} gcpi_search;

static uint32_t gcpi_draw(gcpi_search *s, uint32_t below) { return gcpi_below(&s->random, below); }

static double gcpi_chance(gcpi_search *s) { return (double)gcpi_draw(s, 1u << 30) / (double)(1u << 30); }

static double gcpi_energy(const gcpi_search *s, size_t peak, double seconds)
{
    double over = peak > s->limit ? (double)(peak - s->limit) / (double)GCPI_MAX(s->limit, 1) : 0;
    return seconds / s->m->seconds + s->price * over;
}

static unsigned char *gcpi_state(const gcpi_search *s, int state)
{
    return s->states + (size_t)state * s->m->state_bytes;
}

/* The trial. */

static void gcpi_walk_step(gcpi_search *s, int code, int old)
{
    size_t bytes = gcpi_pass_code(s->m, code, &s->pass);
    double seconds = code < 0 ? s->m->p->tasks[~code].seconds : 0;
    if (bytes == GCPI_DEAD) { if (old) s->seconds -= seconds; return; }
    if (!old) s->seconds += seconds;
    s->part[s->part_count++] = code;
    if (bytes > s->front.peak) { s->front.peak = bytes; s->front.peak_at = s->part_count; }
}

/* Where the walk stands becomes a mark. Until the trial is taken, `at` and peak_at count from mark high backwards. */
static void gcpi_walk_mark(gcpi_search *s, gcpi_mark *mark)
{
    *mark = s->front;
    mark->at = s->part_count; mark->next = s->pass.next; mark->live = s->pass.live;
    memcpy(gcpi_state(s, mark->state), s->m->live, s->m->state_bytes);
    s->front.peak = 0; s->front.peak_at = s->part_count;
}

static void gcpi_walk_runs(gcpi_search *s) { for (int i = 0; i < s->run_count; i++) gcpi_walk_step(s, s->runs[i], 0); }

static int gcpi_mark_behind(const gcpi_search *s, int at)    /* the first mark at this position or after it */
{
    int low = 0, high = s->marks - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->mark[middle].at < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Walks through what the move changes; 0: the trial is not valid, or its peak is above s->most. */
static int gcpi_walk(gcpi_search *s)
{
    const gcpi_model *m = s->m;
    int first = GCPI_MIN(s->removed < 0 ? s->ahead : s->removed, s->ahead < 0 ? INT32_MAX : s->ahead);
    s->high = gcpi_mark_behind(s, GCPI_MAX(s->removed + 1, s->ahead));
    const gcpi_mark *mark = &s->mark[s->high];
    memcpy(m->live, gcpi_state(s, mark->state), m->state_bytes);
    s->pass.live = mark->live; s->pass.next = mark->next; s->pass.valid = 1;
    s->front.peak = 0; s->front.peak_at = 0;
    s->seconds = s->now.seconds;
    s->part_count = s->fresh_count = 0;
    s->low = s->high;
    if (s->ahead == mark->at) gcpi_walk_runs(s);
    for (int i = mark->at, last = 0, met = 0; s->low > 0;) {
        i--;
        if (i == s->removed) s->seconds -= m->p->tasks[~s->now.at[i]].seconds;
        else gcpi_walk_step(s, s->now.at[i], 1);
        if (i == s->ahead) gcpi_walk_runs(s);
        if (!s->pass.valid || s->front.peak > s->most) return 0;
        for (; s->low > 0 && s->mark[s->low - 1].at == i; s->low--) met = 1;
        if (met && i <= first && !memcmp(m->live, gcpi_state(s, s->mark[s->low].state), (size_t)m->values)) break;
        met = 0;
        if (s->part_count - last < s->spacing || s->low == 0 ||
            s->low + 1 + s->fresh_count + s->marks - s->high >= GCPI_MARKS)
            continue;
        s->front.state = s->spare[s->spares - 1 - s->fresh_count];
        gcpi_walk_mark(s, &s->fresh[s->fresh_count++]);
        last = s->part_count;
    }
    return 1;
}

/* The seconds of the order that the trial makes, from its timeline; HUGE_VAL: its copies cannot be placed. */
static double gcpi_judge(gcpi_search *s)
{
    gcpi_planner *q = s->q;
    gcpi_order *o = &q->trial;
    int begin = s->mark[s->low].at, end = s->mark[s->high].at;
    unsigned char *here = gcpi_state(s, GCPI_STATES);
    memcpy(o->at, s->now.at, (size_t)begin * sizeof *o->at);
    for (int i = 0; i < s->part_count; i++) o->at[begin + i] = s->part[s->part_count - 1 - i];
    o->count = begin + s->part_count + s->now.count - end;
    memcpy(o->at + begin + s->part_count, s->now.at + end, (size_t)(s->now.count - end) * sizeof *o->at);
    memcpy(here, s->m->live, s->m->state_bytes);
    gcpi_simulate(s->m, o, NULL);
    const gcpi_order *full = gcpi_far_place(q, o, GCPI_MAX(s->limit, o->peak));
    memcpy(s->m->live, here, s->m->state_bytes);
    return full && full->valid && full->peak <= GCPI_MAX(s->limit, o->peak) ? full->seconds : HUGE_VAL;
}

static size_t gcpi_walk_peak(const gcpi_search *s)         /* of the whole order that the trial makes */
{
    size_t peak = s->front.peak;
    for (int i = 0; i < s->low; i++) peak = GCPI_MAX(peak, s->mark[i].peak);
    for (int i = s->high; i < s->marks; i++) peak = GCPI_MAX(peak, s->mark[i].peak);
    for (int i = 0; i < s->fresh_count; i++) peak = GCPI_MAX(peak, s->fresh[i].peak);
    return peak;
}

static void gcpi_take_marks(gcpi_search *s, int shift)     /* the trial's replace those that it walked past */
{
    int from = s->low + 1 + s->fresh_count;
    s->spares -= s->fresh_count;
    for (int i = s->low + 1; i < s->high; i++) s->spare[s->spares++] = s->mark[i].state;
    memmove(s->mark + from, s->mark + s->high, (size_t)(s->marks - s->high) * sizeof *s->mark);
    s->marks += from - s->high;
    for (int i = from; i < s->marks; i++) s->mark[i].at += shift;
    for (int k = 0; k < s->fresh_count; k++) {
        gcpi_mark *mark = &s->mark[from - 1 - k];
        *mark = s->fresh[k];
        mark->peak_at = mark->at - mark->peak_at;
        mark->at = s->mark[s->low].at + s->part_count - mark->at;
    }
}

/* The trial becomes the present order. */
static void gcpi_take(gcpi_search *s)
{
    gcpi_order *o = &s->now;
    gcpi_mark *low = &s->mark[s->low];
    int begin = low->at, end = s->mark[s->high].at, shift = s->part_count - (end - begin);
    memmove(o->at + end + shift, o->at + end, (size_t)(o->count - end) * sizeof *o->at);
    for (int i = 0; i < s->part_count; i++) o->at[begin + i] = s->part[s->part_count - 1 - i];
    o->count += shift;
    o->seconds = s->seconds;
    s->front.state = low->state;
    gcpi_walk_mark(s, low);
    low->peak_at = low->at - low->peak_at;
    low->at = begin;
    gcpi_take_marks(s, shift);
    o->peak = 0;
    for (int i = 0; i < s->marks; i++)
        if (s->mark[i].peak > o->peak) {
            o->peak = s->mark[i].peak;
            o->peak_at = s->mark[i].at + s->mark[i].peak_at;
        }
}

/* Marks for the order in s->now, from one walk through all of it. */
static void gcpi_search_begin(gcpi_search *s)
{
    const gcpi_model *m = s->m;
    gcpi_simulate(m, &s->now, NULL);
    double seconds = s->now.seconds;
    s->spacing = s->now.count / (GCPI_MARKS / 2) + 4;
    s->spares = 0;
    for (int i = GCPI_STATES - 1; i >= 2; i--) s->spare[s->spares++] = i;
    memset(s->mark, 0, sizeof s->mark);
    s->marks = 2;
    s->mark[1].at = s->now.count;
    s->mark[1].next = m->p->task_count - 1;
    s->mark[1].state = 1;
    memset(m->live, 0, m->state_bytes);
    for (int v = 0; v < m->values; v++) if (m->lasting[v]) s->mark[1].live += gcpi_revive(m, v);
    memcpy(gcpi_state(s, 1), m->live, m->state_bytes);
    memset(gcpi_state(s, 0), 0xff, m->state_bytes);          /* equals no state */
    s->removed = -1; s->ahead = s->now.count; s->run_count = 0; s->most = SIZE_MAX;
    gcpi_walk(s);
    if (s->judge) seconds = gcpi_judge(s);
    gcpi_take(s);
    s->now.seconds = seconds;
}

/* Moves. */

/* Sets s->there: what is live before the instruction at this position. */
static void gcpi_live_ahead(gcpi_search *s, int at)
{
    const gcpi_model *m = s->m;
    const gcpi_mark *mark = &s->mark[gcpi_mark_behind(s, at)];
    memcpy(s->there, gcpi_state(s, mark->state), (size_t)m->values);
    for (int i = mark->at - 1; i >= at; i--) {
        int task = gcpi_code_task(&s->now, i);
        for GCPI_WRITES(m, task, k) s->there[m->written[k]] = 0;
        for GCPI_READS(m, task, k) s->there[m->read[k]] = 1;
    }
}

/* the next position, from `from` on, that reads anything that task makes; -1: none */
static int gcpi_reader_of(const gcpi_search *s, int task, int from)
{
    const gcpi_model *m = s->m;
    int back = task >= m->p->task_count ? m->written[m->written_first[task]] : -1;
    for (int i = from; i < s->now.count; i++) {
        int reader = gcpi_code_task(&s->now, i);
        for GCPI_READS(m, reader, k) if (m->producer[m->read[k]] == task || m->read[k] == back) return i;
    }
    return -1;
}

/* The task that will make a value live again; -1: none can. */
static int gcpi_maker(gcpi_search *s, int v)
{
    const gcpi_model *m = s->m;
    int again = s->far < 2 && m->again[m->producer[v]];
    if (s->far && m->fetch[v] >= 0 && (!again || gcpi_draw(s, 2))) return m->fetch[v];
    return again ? m->producer[v] : -1;
}

/* Lists a run of task and, by chance, of those whose outputs it needs and that are not live there. 0: no room. */
static int gcpi_list_runs(gcpi_search *s, int task, int depth)
{
    const gcpi_model *m = s->m;
    if (s->now.count + s->run_count >= s->now.capacity) return 0;
    s->runs[s->run_count++] = ~task;
    for GCPI_READS(m, task, k) {
        int v = m->read[k], maker = s->there[v] ? -1 : gcpi_maker(s, v);
        if (maker < 0 || depth > 40 || gcpi_draw(s, 8) < 2) continue;
        s->there[v] = 1;
        if (!gcpi_list_runs(s, maker, depth + 1)) return 0;
    }
    return 1;
}

/* Drop: a value that idles across a crowded position, drawn by weight, is made again for its next reader. */
static int gcpi_move_drop(gcpi_search *s)
{
    const gcpi_model *m = s->m;
    const gcpi_order *o = &s->now;
    int at = o->peak > s->limit || gcpi_draw(s, 4) == 0 ? o->peak_at : (int)gcpi_draw(s, (uint32_t)o->count), v = 0;
    int task = gcpi_code_task(o, at);
    double sum = 0;
    gcpi_live_ahead(s, at);
    for GCPI_READS(m, task, k) s->there[m->read[k]] = 0;
    for (int i = 0; i < m->values; i++) sum += s->there[i] * s->weight[i];
    if (sum <= 0) return 0;
    for (sum *= gcpi_chance(s); v < m->values - 1; v++) if ((sum -= s->there[v] * s->weight[v]) < 0) break;
    if (!s->there[v] || s->weight[v] <= 0) return 0;
    int maker = gcpi_maker(s, v);
    s->ahead = gcpi_reader_of(s, maker, at + 1);
    if (s->ahead < 0) return 0;
    gcpi_live_ahead(s, s->ahead);
    for GCPI_WRITES(m, maker, k) s->there[m->written[k]] = 1;
    return gcpi_list_runs(s, maker, 0);
}

static int gcpi_some_run(gcpi_search *s)             /* position of a run again, or -1 */
{
    int at = (int)gcpi_draw(s, (uint32_t)s->now.count);
    for (int k = 0; k < s->now.count; k++, at = at + 1 < s->now.count ? at + 1 : 0) if (s->now.at[at] < 0) return at;
    return -1;
}

static int gcpi_move_slide(gcpi_search *s)
{
    int reader = gcpi_reader_of(s, ~s->now.at[s->removed], s->removed + 1);
    if (reader <= s->removed + 1) return 0;
    s->runs[s->run_count++] = s->now.at[s->removed];
    s->ahead = gcpi_draw(s, 2) ? reader : s->removed + 2 + (int)gcpi_draw(s, (uint32_t)(reader - s->removed - 1));
    return 1;
}

static int gcpi_search_change(gcpi_search *s)
{
    uint32_t kind = gcpi_draw(s, 8);
    s->removed = s->ahead = -1;
    s->run_count = 0;
    if (kind < 3) return gcpi_move_drop(s);
    s->removed = gcpi_some_run(s);
    return s->removed >= 0 && (kind < 6 || gcpi_move_slide(s));
}

static void gcpi_search_keep(gcpi_search *s)         /* the present order, if it is the best so far that fits */
{
    if (s->now.peak > s->limit || (s->found && s->now.seconds >= s->best.seconds)) return;
    s->found = 1;
    gcpi_order_copy(&s->best, &s->now);
}

/* Sets s->most, the peak at which a move's energy reaches `worst`; 0: its seconds alone reach it. Runs right before the
   one that is taken out may fall out with it; other runs that may fall out are not counted. */
static int gcpi_hope(gcpi_search *s, double worst)
{
    double seconds = s->now.seconds;
    for (int i = 0; i < s->run_count; i++) seconds += s->m->p->tasks[~s->runs[i]].seconds;
    for (int i = s->removed; i >= 0 && s->now.at[i] < 0; i--) seconds -= s->m->p->tasks[~s->now.at[i]].seconds;
    double over = (worst - seconds / s->m->seconds) / s->price;
    s->most = over < 1 && !s->judge ? gcpi_bytes_from((double)s->limit * (1 + over)) : SIZE_MAX;
    return over >= 0 || s->judge;
}

/* Tries a move, taken if its energy is below a random threshold; returns how many instructions were looked at. */
static int gcpi_search_step(gcpi_search *s, double heat)
{
    if (!gcpi_search_change(s)) return s->spacing;
    double worst = gcpi_energy(s, s->now.peak, s->now.seconds) - heat * log(1 - gcpi_chance(s));
    if (!gcpi_hope(s, worst)) return s->spacing;
    int looked = s->spacing, valid = gcpi_walk(s);
    looked += s->part_count;
    if (valid && s->judge) { s->seconds = gcpi_judge(s); looked += 4 * s->now.count; }
    if (valid && gcpi_energy(s, gcpi_walk_peak(s), s->seconds) <= worst) {
        gcpi_take(s);
        if (s->marks + GCPI_MARKS / 8 > GCPI_MARKS) gcpi_search_begin(s);
        gcpi_search_keep(s);
    }
    return looked;
}

/* Moves until `visits` instructions were simulated, from the order in s->now. Returns how many were. */
static double gcpi_search_run(gcpi_search *s, double visits, double hot, double cold, gcpi_portion portion)
{
    double done = s->now.count;
    if (!s->now.count) return visits;
    gcpi_search_begin(s);
    gcpi_search_keep(s);
    while (done < visits && !(s->first && s->found) && !gcpi_stopped(s->q, portion, done / visits)) {
        double heat = hot * pow(cold / hot, done / visits), turn = 0;
        for (int i = 0; i < 16 && !(s->first && s->found); i++) {          /* so many steps at one heat and price */
            int looked = gcpi_search_step(s, heat);
            turn += s->now.peak > s->limit ? looked : -looked;
            done += looked;
        }
        s->price = GCPI_MIN(50, GCPI_MAX(0.02, s->price * exp(s->rate * turn / visits)));
    }
    return done;
}
