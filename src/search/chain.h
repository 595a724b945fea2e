/* GCP_POLICY_BUDGET: dynamic programming over a chain of stages. It is the recursion of Beaumont et al. (rotor, 2019),
   with boundaries that are sets of values. A second table is for segments whose last values are there still, which
   spares their last run. Where backward does not read the boundaries, a third table lets what the segment begins with
   go once its first stage has run for the last time.

   A stage is a run of forward tasks with the backward tasks that reverse them. L(s): the values made up to stage s that
   later stages read. C0(s, t, m): the least seconds to reverse stages s..t with m grains above L(s - 1). C1: the same
   where L(t) is there already and counts in m. C2: the same where L(s - 1) counts in m and is not needed afterwards.
     keep: run s and keep what its backward reads; C(s + 1, t) with fewer grains; backward of s
     cut:  run s..r - 1, keep L(r - 1); C(r, t) with fewer grains; C1(s, r - 1)
           (C2: keep L(s - 1); C2(r, t) with fewer grains; C2(s, r - 1))
   Sizes are rounded up to grains (rotor's slots). The orders that come out are judged by simulation: no count here is
   trusted. */
typedef struct gcpi_chain {
    const gcpi_model *m;
    /* stage s: forward tasks begin[s] .. begin[s + 1], backward tasks back[s] .. back[s - 1] */
    int stages, *begin, *back;
    int *made, *end;                  /* per group: stage that makes it; last stage that reads it, in either pass */
    double *seconds, *reverse_seconds;
    /* per value: backward of the stage that makes it reads it; per group: any backward task does */
    unsigned char *need, *taped;
    /* bytes per stage. keep: what `keep` keeps; own: of that, what no later stage reads; reads_own: what its backward
       reads of its own. Most of its own: save: running with keep kept; pass: running with L(s) kept; last, alone: the
       same two with its inputs counted; reverse: while reversed. gradient: gradients when that begins */
    size_t *keep, *own, *reads_own, *save, *pass, *last, *alone, *reverse, *gradient;
    size_t *cross;                    /* cross[s * stages + t]: of L(t), what s..t made */
    /* C0, C1 and (where tables is 3) C2; grains per byte */
    float *table[3]; int tables, grains; double per_byte;
    int *first[3], *full[3];          /* per row: the first grains with an order; from which on more change nothing */
    unsigned char *loose;             /* per stage: there is an L(s - 1), and no backward reads it */
    /* stage 0 makes a value that may not be made again and no backward reads: the first cut keeps L(0) for it */
    int pinned;
    size_t constant;                  /* bytes that are live throughout */
    unsigned char *ran;
} gcpi_chain;

#define GCPI_NEVER 1e30f

/* Whether a cut may come after task f: not before a view, nor (unless pairs) inside a pair that works in place. */
static int gcpi_may_cut(const gcpi_model *m, int f, int pairs)
{
    if (f + 1 >= m->p->forward) return 1;
    if (m->p->tasks[f + 1].free) return 0;
    for (int side = 0; !pairs && m->over[f + 1] >= 0 && side < 2; side++)
        if (m->under[2 * (f + 1) + side] >= 0 && m->producer[m->under[2 * (f + 1) + side]] == f) return 0;
    return 1;
}

/* At most `most` stages of equally many places for a cut; each ends where the fewest bytes cross. A chain that works in
   place nearly throughout is cut inside pairs, too: the tables then count too much, the simulation does not. */
static void gcpi_chain_cut(gcpi_chain *c, const size_t *crossing, int most)
{
    int places = 0, seen = 0, best = -1, pairs = 0;
    for (int f = 0; f < c->m->p->forward; f++) places += gcpi_may_cut(c->m, f, 0);
    for (pairs = places * 8 < c->m->p->forward, places = 0, seen = 0; seen < c->m->p->forward; seen++)
        places += gcpi_may_cut(c->m, seen, pairs);
    c->stages = seen = 0;
    for (int f = 0; f < c->m->p->forward; f++) {
        if (!gcpi_may_cut(c->m, f, pairs)) continue;
        if (best < 0 || crossing[f] < crossing[best]) best = f;
        seen++;
        int last = f + 1 == c->m->p->forward;
        if (!last && places > most && (long long)seen * most < (long long)(c->stages + 1) * places) continue;
        c->begin[++c->stages] = (last ? f : best) + 1;
        best = -1;
    }
}

/* Whether task b reads nothing that was made before the last stage with forward tasks. */
static int gcpi_chain_at_end(const gcpi_chain *c, int b)
{
    for GCPI_READS(c->m, b, k) if (c->m->producer[c->m->read[k]] < c->begin[c->stages - 1]) return 0;
    return 1;
}

/* The first backward tasks, of the loss, become a stage without forward tasks if other backward tasks of the last stage
   read what was made before it. What the first ones read then crosses to them, and what only the others read need not
   be live while they run. */
static void gcpi_chain_backs(gcpi_chain *c, int *stage_of)         /* stage_of: per task */
{
    const gcpi_problem *p = c->m->p;
    int b = p->forward, last = c->stages - 1;
    for (int s = 0; s < c->stages; s++) for (int f = c->begin[s]; f < c->begin[s + 1]; f++) stage_of[f] = s;
    while (b < p->task_count && gcpi_chain_at_end(c, b)) b++;
    int own = b > p->forward && b < p->task_count && p->tasks[b].kind == GCPI_TASK_BACKWARD &&
              stage_of[p->tasks[b].forward] == last;
    if (own) { c->begin[++c->stages] = p->forward; for (int k = p->forward; k < b; k++) stage_of[k] = last + 1; }
    else b = p->forward;
    for (int now = last; b < p->task_count; b++) {
        if (p->tasks[b].kind == GCPI_TASK_BACKWARD) now = GCPI_MIN(now, stage_of[p->tasks[b].forward]);
        stage_of[b] = now;
    }
    b = p->task_count;
    for (int s = 0; s < c->stages; s++) {
        while (b > p->forward && stage_of[b - 1] <= s) b--;
        c->back[s] = s + 1 == c->stages ? p->forward : b;
    }
}

static int gcpi_chain_back_end(const gcpi_chain *c, int s) { return s ? c->back[s - 1] : c->m->p->task_count; }

/* Values that may not be made again are live throughout, except those of stage 0 that backward does not read (pinned).
   The others cross from where they are made to where they are read. */
static void gcpi_chain_lives(gcpi_chain *c, const int *stage_of)
{
    const gcpi_model *m = c->m;
    for (int g = 0; g < m->groups; g++) { c->made[g] = c->stages; c->end[g] = -1; }
    for (int v = 0; v < m->values; v++) c->made[m->group[v]] = GCPI_MIN(c->made[m->group[v]], stage_of[m->producer[v]]);
    for (int t = 0; t < m->p->task_count; t++)
        for GCPI_READS(m, t, k) {
            int v = m->read[k];
            c->end[m->group[v]] = GCPI_MAX(c->end[m->group[v]], stage_of[t]);
            if (t < m->p->forward) continue;
            c->taped[m->group[v]] = 1;
            if (stage_of[t] != stage_of[m->producer[v]]) continue;
            c->need[v] = 1;
            c->reads_own[stage_of[t]] += m->bytes[m->group[v]];
        }
    for (int v = 0; v < m->values; v++) {
        if (m->again[m->producer[v]]) continue;
        if (c->made[m->group[v]] == 0 && !c->taped[m->group[v]] && !m->lasting[v]) c->pinned = 1;
        else c->end[m->group[v]] = c->stages;
    }
    for (int g = 0; g < m->groups; g++) {
        if (c->end[g] >= c->stages) c->constant += m->bytes[g];
        else for (int t = c->made[g]; t < c->end[g]; t++) c->cross[c->made[g] * c->stages + t] += m->bytes[g];
    }
    for (int t = 0; t < c->stages; t++)
        for (int s = c->stages - 2; s >= 0; s--) c->cross[s * c->stages + t] += c->cross[(s + 1) * c->stages + t];
}

/* bytes of L(s - 1) */
static size_t gcpi_chain_input(const gcpi_chain *c, int s) { return s ? c->cross[s - 1] : 0; }

/* How many tables. C2 pays where each L(s) is made by stage s alone, and backward does not read some of them. */
static int gcpi_chain_tables(gcpi_chain *c)
{
    int simple = 1, any = 0;
    for (int s = 0; s < c->stages; s++) c->loose[s] = gcpi_chain_input(c, s) > 0;
    for (int t = 0; t < c->stages; t++) simple &= c->cross[t] == c->cross[t * c->stages + t];
    for (int g = 0; g < c->m->groups; g++)
        if (c->taped[g])
            for (int t = c->made[g]; t < c->end[g] && t + 1 < c->stages; t++) c->loose[t + 1] = 0;
    for (int s = 0; s < c->stages; s++) any |= c->loose[s];
    return simple && any ? 3 : 2;
}

/* The most bytes of stage s's own values while tasks [first, end) run; what was made before is live and not counted
   (alone: it is counted, and lives as long as it is needed). hold: 1: L(s) lives on; 2: what backward of s reads, too.
   *held: bytes of what lives on. */
static size_t gcpi_chain_most(const gcpi_chain *c, int s, int first, int end, int hold, int alone, size_t *held)
{
    const gcpi_model *m = c->m;
    size_t live = 0, most = 0;
    memset(m->live, 0, m->state_bytes);
    for (int t = first; t < end; t++)
        for GCPI_READS(m, t, k) if (!alone && m->producer[m->read[k]] < c->begin[s]) gcpi_revive(m, m->read[k]);
    for (int v = 0; alone && v < m->values; v++) {
        if (m->producer[v] >= c->begin[s] || c->end[m->group[v]] <= s) continue;
        size_t bytes = gcpi_revive(m, v);
        live += c->end[m->group[v]] < c->stages ? bytes : 0;
    }
    *held = 0;
    for (int f = c->begin[s]; hold && f < c->begin[s + 1]; f++)
        for GCPI_WRITES(m, f, k)
    if (c->end[m->group[m->written[k]]] > s || (hold == 2 && c->need[m->written[k]]))
        *held += gcpi_revive(m, m->written[k]);
    live += *held;
    for (int t = end - 1; t >= first; t--) {
        size_t now = gcpi_pass_task(m, t, &live) +
                     (t < m->p->forward ? m->workspace[t] : m->during[t] - (m->during[0] - m->workspace[0]));
        most = GCPI_MAX(most, now);
    }
    return most;
}

static void gcpi_chain_figures(gcpi_chain *c)
{
    const gcpi_model *m = c->m;
    size_t held;
    for (int s = 0; s < c->stages; s++) {
        int b = c->back[s], end = gcpi_chain_back_end(c, s);
        for (int f = c->begin[s]; f < c->begin[s + 1]; f++) c->seconds[s] += m->p->tasks[f].seconds;
        for (int k = b; k < end; k++) c->reverse_seconds[s] += m->p->tasks[k].seconds;
        c->last[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 2, 1, &held);
        c->pass[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 1, 0, &held);
        c->alone[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 1, 1, &held);
        c->save[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 2, 0, &c->keep[s]);
        c->own[s] = c->keep[s] - held;
        c->reverse[s] = gcpi_chain_most(c, s, b, end, 0, 0, &held);
        c->gradient[s] = b < end ? m->before[b] - (m->during[0] - m->workspace[0]) : 0;
    }
}

/* Bytes above L(s - 1) while stage r runs after stages s..r - 1. Where L(s - 1) holds none of its inputs, these die
   there and may be written on. */
static size_t gcpi_chain_pass(const gcpi_chain *c, int s, int r)
{
    if (r == s) return c->pass[r];
    size_t inputs = c->cross[s * c->stages + r - 1];
    return inputs == c->cross[r - 1] ? c->alone[r] : inputs + c->pass[r];
}

static int gcpi_chain_at(int s, int t) { return t * (t + 1) / 2 + s; }
static float *gcpi_chain_row(const gcpi_chain *c, int with, int s, int t)
{
    return c->table[with] + (size_t)gcpi_chain_at(s, t) * (size_t)(c->grains + 1);
}

static int gcpi_chain_grains(const gcpi_chain *c, size_t bytes)
{
    double n = (double)(ptrdiff_t)bytes * c->per_byte + (1 - 1e-9);               /* rounds up */
    return n > c->grains ? c->grains + 1 : (int)n;
}

static float gcpi_relative(const gcpi_chain *c, double seconds) { return (float)(seconds / c->m->seconds); }

/* row[k] = least of row[k] and a[k - shift] + b[k] + seconds, for k in [from, to]. b may be NULL. */
GCPI_LOOP void gcpi_chain_relax(float *GCPI_RESTRICT row, const float *a, const float *b, float seconds, int from,
                                int to)
{
    for (int k = from; b && k <= to; k++) {
        float value = a[k] + b[k] + seconds;
        row[k] = value < row[k] ? value : row[k];
    }
    for (int k = from; !b && k <= to; k++) row[k] = a[k] + seconds < row[k] ? a[k] + seconds : row[k];
}

/* What is there when the reversal of s..t begins: gradients and, in C1, what s..t made of L(t). */
static size_t gcpi_chain_start(const gcpi_chain *c, int with, int s, int t)
{
    return c->gradient[t] + (with == 1 ? c->cross[s * c->stages + t] : 0);
}

/* Fills the rest of a row, and finds where it begins to hold anything. */
static void gcpi_chain_first(gcpi_chain *c, int with, int s, int t)
{
    float *row = gcpi_chain_row(c, with, s, t);
    int at = gcpi_chain_at(s, t), first = 0;
    for (int k = c->full[with][at] + 1; k <= c->grains; k++) row[k] = row[k - 1];
    while (first <= c->grains && row[first] >= GCPI_NEVER) first++;
    c->first[with][at] = first;
}

static void gcpi_chain_single(gcpi_chain *c, int s)
{
    float *row[3] = { gcpi_chain_row(c, 0, s, s), gcpi_chain_row(c, 1, s, s),
                      c->tables < 3 ? NULL : gcpi_chain_row(c, 2, s, s) };
    float f = gcpi_relative(c, c->seconds[s]), b = gcpi_relative(c, c->reverse_seconds[s]);
    int run = gcpi_chain_grains(c, GCPI_MAX(c->gradient[s] + c->save[s], c->reverse[s])),
        reverse = gcpi_chain_grains(c, c->reverse[s]);
    int there = gcpi_chain_grains(c, GCPI_MAX(gcpi_chain_start(c, 1, s, s), c->reverse[s]));
    int input = gcpi_chain_grains(c, gcpi_chain_input(c, s)),
        last = gcpi_chain_grains(c, GCPI_MAX(c->gradient[s] + c->last[s], c->reverse[s]));
    for (int k = 0; k <= c->grains; k++) {
        row[0][k] = k >= reverse && c->reads_own[s] == 0 ? b : k >= run ? f + b : GCPI_NEVER;
        row[1][k] = k >= there && c->own[s] == 0 ? GCPI_MIN(b, row[0][k]) : row[0][k];
        if (c->tables < 3) continue;
        row[2][k] = k >= input ? row[0][k - input] : GCPI_NEVER;
        if (c->loose[s] && k >= last) row[2][k] = GCPI_MIN(row[2][k], f + b);
    }
    for (int with = 0; with < c->tables; with++) {
        c->full[with][gcpi_chain_at(s, s)] = GCPI_MIN(
            c->grains, GCPI_MAX(GCPI_MAX(run, there), with < 2 ? 0 : GCPI_MAX(last, input + GCPI_MAX(run, reverse))));
        gcpi_chain_first(c, with, s, s);
    }
}

/* What distinguishes the tables: the bytes of L(s - 1) that count in m; the table for the stages before a cut. */
static size_t gcpi_chain_inside(const gcpi_chain *c, int with, int s) { return with == 2 ? gcpi_chain_input(c, s) : 0; }
static int gcpi_chain_left(int with) { return with == 2 ? 2 : 1; }

/* keep: the grains that it takes from the stages after s; *from: the fewest grains with which it is possible. */
static int gcpi_chain_keep(const gcpi_chain *c, int with, int s, int t, int *from)
{
    size_t start = gcpi_chain_start(c, with, s, t);
    *from = gcpi_chain_grains(c, GCPI_MAX(start + (with == 2 ? c->last : c->save)[s], c->reverse[s]));
    if (with == 2 && !c->loose[s]) *from = c->grains + 1;
    return gcpi_chain_grains(c, with == 2 ? c->own[s] : c->keep[s]);
}

/* A cut before r: the same. most: peak bytes above L(s - 1) while stages s..r - 1 run. */
static int gcpi_chain_hold(const gcpi_chain *c, int with, int s, int t, int r, size_t most, int *from)
{
    size_t inside = gcpi_chain_inside(c, with, s);
    *from = s == 0 && c->pinned && r > 1 ? c->grains + 1
                                         : gcpi_chain_grains(c, inside + gcpi_chain_start(c, with, s, t) + most);
    return gcpi_chain_grains(c, with == 2 ? inside : c->cross[s * c->stages + r - 1]);
}

static void gcpi_chain_segment(gcpi_chain *c, int with, int s, int t)
{
    float *row = gcpi_chain_row(c, with, s, t), *without = gcpi_chain_row(c, 0, s, t);
    size_t most = 0;
    double run = 0;
    int from, shift = gcpi_chain_keep(c, with, s, t, &from), rest = gcpi_chain_at(s + 1, t),
              left = gcpi_chain_left(with);
    int inside = gcpi_chain_grains(c, gcpi_chain_inside(c, with, s));
    int full = GCPI_MAX(from > c->grains ? 0 : GCPI_MAX(from, shift + c->full[with][rest]),
                        with ? inside + c->full[0][gcpi_chain_at(s, t)] : 0);
    c->full[with][gcpi_chain_at(s, t)] = full = GCPI_MIN(full, c->grains);
    for (int k = 0; k <= full; k++) row[k] = with && k >= inside ? without[k - inside] : GCPI_NEVER;
    gcpi_chain_relax(row, gcpi_chain_row(c, with, s + 1, t) - shift, NULL,
                     gcpi_relative(c, c->seconds[s] + c->reverse_seconds[s]),
                     GCPI_MAX(from, shift + c->first[with][rest]), full);
    for (int r = s + 1; r <= t; r++) {
        run += c->seconds[r - 1];
        most = GCPI_MAX(most, gcpi_chain_pass(c, s, r - 1));
        shift = gcpi_chain_hold(c, with, s, t, r, most, &from);
        if (from > full) break;
        from = GCPI_MAX(from,
                        GCPI_MAX(shift + c->first[with][gcpi_chain_at(r, t)], c->first[left][gcpi_chain_at(s, r - 1)]));
        gcpi_chain_relax(row, gcpi_chain_row(c, with, r, t) - shift, gcpi_chain_row(c, left, s, r - 1),
                         gcpi_relative(c, run), from, full);
    }
    gcpi_chain_first(c, with, s, t);
}

/* A few t at a time: what they read of C1 stays in the cache. */
static void gcpi_chain_solve(gcpi_chain *c)
{
    enum { TILE = 8 };
    for (int s = 0; s < c->stages; s++) gcpi_chain_single(c, s);
    for (int tile = 0; tile < c->stages; tile += TILE)
        for (int s = GCPI_MIN(tile + TILE, c->stages) - 2; s >= 0; s--)
            for (int t = GCPI_MAX(tile, s + 1); t < GCPI_MIN(tile + TILE, c->stages); t++)
                for (int with = 0; with < c->tables; with++) gcpi_chain_segment(c, with, s, t);
}

/* Emission. A forward task runs for the first time or again; the simulation removes runs that nobody reads. */
static void gcpi_chain_emit(gcpi_chain *c, gcpi_order *out, int task)
{
    int again = task < c->m->p->forward && c->ran[task];
    if (again && !c->m->again[task]) return;
    if (out->count < out->capacity) out->at[out->count] = again ? ~task : task;
    out->count++;
    c->ran[task] = 1;
}

static void gcpi_chain_run(gcpi_chain *c, gcpi_order *out, int s)
{
    for (int f = c->begin[s]; f < c->begin[s + 1]; f++) gcpi_chain_emit(c, out, f);
}
static void gcpi_chain_reverse(gcpi_chain *c, gcpi_order *out, int s)
{
    for (int b = c->back[s]; b < gcpi_chain_back_end(c, s); b++) gcpi_chain_emit(c, out, b);
}

/* Which way the table went. 0: keep; r: a cut before stage r; -1: that of C0. */
static int gcpi_chain_way(const gcpi_chain *c, int with, int s, int t, int k)
{
    size_t most = 0;
    double run = 0;
    float least = GCPI_NEVER;
    int way = 0, from, shift = gcpi_chain_keep(c, with, s, t, &from),
        inside = gcpi_chain_grains(c, gcpi_chain_inside(c, with, s));
    if (k >= GCPI_MAX(shift, from))
        least = gcpi_chain_row(c, with, s + 1, t)[k - shift] + gcpi_relative(c, c->seconds[s] + c->reverse_seconds[s]);
    for (int r = s + 1; r <= t; r++) {
        run += c->seconds[r - 1];
        most = GCPI_MAX(most, gcpi_chain_pass(c, s, r - 1));
        shift = gcpi_chain_hold(c, with, s, t, r, most, &from);
        if (k < GCPI_MAX(shift, from)) continue;
        float value = gcpi_chain_row(c, with, r, t)[k - shift] + gcpi_chain_row(c, gcpi_chain_left(with), s, r - 1)[k] +
                      gcpi_relative(c, run);
        if (value < least) { least = value; way = r; }
    }
    return with && k >= inside && gcpi_chain_row(c, 0, s, t)[k - inside] <= least ? -1 : way;
}

static void gcpi_chain_trace(gcpi_chain *c, gcpi_order *out, int with, int s, int t, int k)
{
    if (out->count > out->capacity) return;
    if (s == t) {
        int there = with == 1 && c->own[s] == 0 &&
                    k >= gcpi_chain_grains(c, GCPI_MAX(gcpi_chain_start(c, 1, s, s), c->reverse[s]));
        if (!c->ran[c->begin[s]] || (!there && c->reads_own[s])) gcpi_chain_run(c, out, s);
        gcpi_chain_reverse(c, out, s);
        return;
    }
    int way = gcpi_chain_way(c, with, s, t, k), from;
    if (way < 0) { gcpi_chain_trace(c, out, 0, s, t, k - gcpi_chain_grains(c, gcpi_chain_inside(c, with, s))); return; }
    for (int r = s; r < GCPI_MAX(way, s + 1); r++) gcpi_chain_run(c, out, r);
    if (way == 0) {
        gcpi_chain_trace(c, out, with, s + 1, t, k - gcpi_chain_keep(c, with, s, t, &from));
        gcpi_chain_reverse(c, out, s);
    } else {
        gcpi_chain_trace(c, out, with, way, t, k - gcpi_chain_hold(c, with, s, t, way, 0, &from));
        gcpi_chain_trace(c, out, gcpi_chain_left(with), s, way - 1, k);
    }
}

static int gcpi_chain_arrays(gcpi_chain *c, int most, gcp_arena *a)
{
    const gcpi_model *m = c->m;
    size_t **const bytes[] = { &c->keep, &c->own,   &c->reads_own, &c->save,    &c->pass,
                               &c->last, &c->alone, &c->reverse,   &c->gradient };
    int ok = 1;
    c->begin = GCPI_SCRATCH(a, int, most + 2);
    c->back = GCPI_SCRATCH(a, int, most + 1);
    c->made = GCPI_SCRATCH(a, int, m->groups + 1);
    c->end = GCPI_SCRATCH(a, int, m->groups + 1);
    c->need = GCPI_SCRATCH(a, unsigned char, m->values + 1);
    c->taped = GCPI_SCRATCH(a, unsigned char, m->groups + 1);
    c->loose = GCPI_SCRATCH(a, unsigned char, most + 1);
    c->seconds = GCPI_SCRATCH(a, double, most + 1);
    c->reverse_seconds = GCPI_SCRATCH(a, double, most + 1);
    for (int i = 0; i < 9; i++) ok &= (*bytes[i] = GCPI_SCRATCH(a, size_t, most + 1)) != NULL;
    c->cross = GCPI_SCRATCH(a, size_t, most * most + 1);
    c->ran = GCPI_SCRATCH(a, unsigned char, m->p->task_count + 1);
    return ok && c->begin && c->back && c->made && c->end && c->need && c->taped && c->loose && c->seconds &&
           c->reverse_seconds && c->cross && c->ran;
}

/* The greatest number of bytes that divides all sizes. */
static size_t gcpi_chain_unit(const gcpi_model *m)
{
    size_t unit = 0;
    for (int i = 0; i < m->groups + m->p->task_count; i++) {
        size_t size = i < m->groups ? m->bytes[i] : m->during[i - m->groups];
        while (size) { size_t rest = unit % size; unit = size; size = rest; }
    }
    return GCPI_MAX(unit, 1);
}

/* At most `most` stages; but where few grains express all sizes exactly, more stages are affordable. */
static int gcpi_chain_stages(const gcpi_model *m, size_t bytes, int most)
{
    return bytes / gcpi_chain_unit(m) < GCPI_FEW_GRAINS ? GCPI_FEW_STAGES : most;
}

/* The chain of a model, with tables for orders of up to `bytes`. Scratch of a; 0: not enough. */
static int gcpi_chain_make(gcpi_chain *c, const gcpi_model *m, const size_t *crossing, size_t bytes, int most,
                           int grains, gcp_arena *a)
{
    memset(c, 0, sizeof *c);
    c->m = m;
    most = GCPI_MIN(most, m->p->forward + 1);
    if (!gcpi_chain_arrays(c, most, a)) return 0;
    ptrdiff_t scratch = a->scratch;
    int *stage_of = GCPI_SCRATCH(a, int, m->p->task_count + 1);
    if (!stage_of) return 0;
    gcpi_chain_cut(c, crossing, most - 1);
    gcpi_chain_backs(c, stage_of);
    c->constant = m->during[0] - m->workspace[0];
    gcpi_chain_lives(c, stage_of);
    gcpi_chain_figures(c);
    c->tables = gcpi_chain_tables(c);
    a->scratch = scratch;
    if (bytes <= c->constant) return 0;
    size_t unit = gcpi_chain_unit(m);
    if (c->tables == 3) grains = GCPI_MIN(grains, GCPI_MOST_GRAINS * 5 / 8);
    /* exact: a grain is one unit, and nothing is rounded */
    int exact = (bytes - c->constant) / unit <= (size_t)grains;
    c->grains = exact ? GCPI_MIN(grains, (int)((bytes - c->constant) / unit) + 4) : grains;
    c->per_byte = exact ? 1 / (double)unit : grains / (double)(bytes - c->constant);
    ptrdiff_t rows = (ptrdiff_t)c->stages * (c->stages + 1) / 2;
    for (int with = 0; with < c->tables; with++) {
        c->table[with] = GCPI_SCRATCH(a, float, rows * (c->grains + 1));
        c->first[with] = GCPI_SCRATCH(a, int, rows);
        c->full[with] = GCPI_SCRATCH(a, int, rows);
        if (!c->table[with] || !c->first[with] || !c->full[with]) return 0;
    }
    gcpi_chain_solve(c);
    return 1;
}

/* The table's order for k grains; 0: there is none. */
static int gcpi_chain_order(gcpi_chain *c, gcpi_order *out, int k)
{
    int with = c->tables < 3 ? 0 : 2;
    if (gcpi_chain_row(c, with, 0, c->stages - 1)[k] >= GCPI_NEVER) return 0;
    memset(c->ran, 0, (size_t)c->m->p->task_count);
    out->count = 0;
    gcpi_chain_trace(c, out, with, 0, c->stages - 1, k);
    if (out->count > out->capacity) return 0;
    gcpi_simulate(c->m, out, NULL);
    return out->valid;
}
