/* Stages: a network as a chain of runs, each with what reverses it. What crosses from one run of forward tasks to the
   next is a set of values; here are its bytes, and those that running and reversing a stage takes. L(s): the values
   made up to stage s that later stages read. */
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
    /* C0, C1 and (where tables is 3) C2; grains per byte, and what is added to them */
    float *table[3]; int tables, grains; double per_byte, rounding;
    int *first[3], *full[3];          /* per row: the first grains with an order; from which on more change nothing */
    unsigned char *loose;             /* per stage: there is an L(s - 1), and no backward reads it */
    /* stage 0 makes a value that may not be made again and no backward reads: the first cut keeps L(0) for it */
    int pinned;
    int late;                         /* a backward task may belong to the stage behind what it reads */
    size_t constant;                  /* bytes that are live throughout */
    unsigned char *ran;
} gcpi_chain;

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

/* The stage that a backward task belongs to: of the op that it reverses; or (late) the one behind what it reads, where
   that crosses to it. */
static int gcpi_chain_stage_of(const gcpi_chain *c, const int *stage_of, int b)
{
    const gcpi_model *m = c->m;
    int at = stage_of[m->p->tasks[b].forward];
    for GCPI_READS(m, b, k) {
        const int v = m->read[k], s = stage_of[m->producer[v]];
        if (c->late) at = GCPI_MAX(at, s + (c->end[m->group[v]] > s));
    }
    return at;
}
/* Per group the last stage whose forward tasks read it. */
static void gcpi_chain_crossings(gcpi_chain *c, const int *stage_of)
{
    const gcpi_model *m = c->m;
    for (int g = 0; g < m->groups; g++) c->end[g] = -1;
    for (int f = 0; f < m->p->forward; f++)
        for GCPI_READS(m, f, k) c->end[m->group[m->read[k]]] = GCPI_MAX(c->end[m->group[m->read[k]]], stage_of[f]);
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
    gcpi_chain_crossings(c, stage_of);
    for (int now = last; b < p->task_count; b++) {
        if (p->tasks[b].kind == GCPI_TASK_BACKWARD) now = GCPI_MIN(now, gcpi_chain_stage_of(c, stage_of, b));
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

static size_t gcpi_common_divisor(size_t a, size_t b)                /* the greatest; of 0 and b it is b */
{
    while (b) { const size_t rest = a % b; a = b; b = rest; }
    return a;
}

/* The unit of sizes: the most bytes of which all are multiples. Small ones (a loss beside activations) are not looked
   at where all of them together, *dust, are at most a sixteenth of the unit of the others. */
static size_t gcpi_chain_unit(const gcpi_model *m, size_t *dust)
{
    size_t unit = 0, most = 0, all = 0, rest = 0;
    *dust = 0;
    for (int g = 0; g < m->groups; g++) {
        most = GCPI_MAX(most, m->bytes[g]);
        all = gcpi_common_divisor(all, m->bytes[g]);
    }
    for (int g = 0; g < m->groups; g++)
        if (m->bytes[g] < most / 64) *dust += m->bytes[g];
        else unit = gcpi_common_divisor(unit, m->bytes[g]);
    for (int t = 0; t < m->p->task_count; t++) {
        all = gcpi_common_divisor(all, m->during[t]);
        if (unit) rest = GCPI_MAX(rest, (m->during[t] - (m->during[0] - m->workspace[0])) % unit);
    }
    *dust += rest;
    if (*dust && *dust <= unit / 16) return unit;
    *dust = 0;
    return GCPI_MAX(all, 1);
}

/* At most `most` stages; but where few grains express all sizes exactly, more of them, as many as the memory of the
   tables allows. */
static int gcpi_chain_stages(const gcpi_model *m, size_t bytes, int most)
{
    size_t dust;
    const size_t grains = bytes / gcpi_chain_unit(m, &dust);
    const double cells = (double)GCPI_FEW_CELLS * GCPI_MIN(most, 96) / 96;
    return grains < GCPI_FEW_GRAINS ? (int)sqrt(cells / ((double)grains + 5)) : most;
}

/* Stages and their figures. Returns the most bytes that the reversal of one takes. */
static size_t gcpi_chain_divide(gcpi_chain *c, const size_t *crossing, int most, int *stage_of, int late)
{
    const gcpi_model *m = c->m;
    size_t need = 0;
    c->late = late;
    memset(c->need, 0, (size_t)m->values);
    memset(c->taped, 0, (size_t)m->groups);
    memset(c->reads_own, 0, (size_t)(most + 2) * sizeof *c->reads_own);
    memset(c->seconds, 0, (size_t)(most + 2) * sizeof *c->seconds);
    memset(c->reverse_seconds, 0, (size_t)(most + 2) * sizeof *c->reverse_seconds);
    memset(c->cross, 0, (size_t)((most + 1) * (most + 1) + 1) * sizeof *c->cross);
    c->pinned = 0;
    gcpi_chain_cut(c, crossing, most);
    gcpi_chain_backs(c, stage_of);
    c->constant = m->during[0] - m->workspace[0];
    gcpi_chain_lives(c, stage_of);
    gcpi_chain_figures(c);
    for (int s = 0; s < c->stages; s++)
        need = GCPI_MAX(need, gcpi_chain_input(c, s) + GCPI_MAX(c->gradient[s] + c->save[s], c->reverse[s]));
    return need;
}

/* Whether a chain takes far fewer bytes where its backward tasks are late: where they read what ops read, not what they
   write. */
static int gcpi_chain_pays_late(const gcpi_model *m, const size_t *crossing, int most, gcp_arena *a)
{
    gcpi_chain c;
    const ptrdiff_t scratch = a->scratch;
    int pays = 0;
    memset(&c, 0, sizeof c);
    c.m = m;
    most = GCPI_MIN(most, m->p->forward + 1);
    if (gcpi_chain_arrays(&c, most, a)) {
        int *stage_of = GCPI_SCRATCH(a, int, m->p->task_count + 1);
        const size_t need = stage_of ? gcpi_chain_divide(&c, crossing, most - 1, stage_of, 0) : 0;
        pays = stage_of && gcpi_chain_divide(&c, crossing, most - 1, stage_of, 1) < need - need / 6;
    }
    a->scratch = scratch;
    return pays;
}
