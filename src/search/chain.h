/* GCP_POLICY_BUDGET: dynamic programming over a chain of stages. It is the recursion of Beaumont et al. (rotor, 2019),
   with boundaries that are sets of values. A second table is for segments whose last values are there still, which
   spares their last run. Where backward does not read the boundaries, a third table lets what the segment begins with
   go once its first stage has run for the last time.

   L(s): what crosses from stage s (stages.h). C0(s, t, m): the least seconds to reverse stages s..t with m grains above
   L(s - 1). C1: the same where L(t) is there already and counts in m. C2: the same where L(s - 1) counts in m and is
   not needed afterwards.
     keep: run s and keep what its backward reads; C(s + 1, t) with fewer grains; backward of s
     cut:  run s..r - 1, keep L(r - 1); C(r, t) with fewer grains; C1(s, r - 1)
           (C2: keep L(s - 1); C2(r, t) with fewer grains; C2(s, r - 1))
   Sizes are rounded up to grains (rotor's slots). The orders that come out are judged by simulation: no count here is
   trusted. */

#define GCPI_NEVER 1e30f

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
    double n = (double)(ptrdiff_t)bytes * c->per_byte + c->rounding;              /* rounds up, but for dust */
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

/* The chain of a model, with tables for orders of up to `bytes`. Scratch of a; 0: not enough. */
static int gcpi_chain_make(gcpi_chain *c, const gcpi_model *m, const size_t *crossing, size_t bytes, int most,
                           int grains, int late, gcp_arena *a)
{
    memset(c, 0, sizeof *c);
    c->m = m;
    most = GCPI_MIN(most, m->p->forward + 1);
    if (!gcpi_chain_arrays(c, most, a)) return 0;
    ptrdiff_t scratch = a->scratch;
    int *stage_of = GCPI_SCRATCH(a, int, m->p->task_count + 1);
    if (!stage_of) return 0;
    gcpi_chain_divide(c, crossing, most - 1, stage_of, late);
    c->tables = gcpi_chain_tables(c);
    a->scratch = scratch;
    if (bytes <= c->constant) return 0;
    size_t dust, unit = gcpi_chain_unit(m, &dust);
    if (c->tables == 3) grains = GCPI_MIN(grains, GCPI_MOST_GRAINS * 5 / 8);
    /* exact: a grain is one unit, and nothing but dust is rounded */
    int exact = (bytes - c->constant) / unit <= (size_t)grains;
    c->grains = exact ? GCPI_MIN(grains, (int)((bytes - c->constant) / unit) + 4) : grains;
    c->rounding = 1 - 1e-9 - (exact ? (double)dust / (double)unit : 0);
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
