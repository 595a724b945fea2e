/* oracle.h - ground truth for planners of rematerialisation, sharing no code with gcp.h: text form of a problem,
   simulator of schedules, exact search for small problems, random problems, closed forms.
   A tensor instance lives from the instruction that makes it to the last one that reads it. Live bytes at an
   instruction: all instances living there, its inputs and its output included, plus its workspace. */
#ifndef ORACLE_H
#define ORACLE_H
#include <inttypes.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ORACLE_OPS 512
#define ORACLE_INPUTS 16
#define ORACLE_NAME 32
#define ORACLE_FORWARDS 20 /* the most forward ops a search may be opened for: tables of 2^n entries */
#define ORACLE_CHAIN 200   /* the longest chain and */
#define ORACLE_STATES 20   /* the most checkpoints of the closed forms */

/* Forward ops first: op[0..forwards), then the backward ops. Inputs are indices of earlier ops, each once. */
typedef struct oracle_op {
    char name[ORACLE_NAME];
    double cost;
    uint64_t bytes, workspace;
    int inputs, input[ORACLE_INPUTS];
} oracle_op;

typedef struct oracle_graph {
    int ops, forwards;
    oracle_op op[ORACLE_OPS];
} oracle_graph;

/* ---- text ---- */

/* The next word of the line, its length in *length; 0 at the end of the line or at a comment. */
static inline const char *oracle_word(const char **at, size_t *length)
{
    const char *word = *at + strspn(*at, " \t\r");
    *length = strcspn(word, " \t\r\n#");
    *at = word + *length;
    return *length ? word : NULL;
}

static inline const char *oracle_line_end(const char *at)
{
    at += strcspn(at, "\n");
    return *at ? at + 1 : at;
}

static inline int oracle_find(const oracle_graph *g, const char *name, size_t length)
{
    for (int i = 0; i < g->ops; i++)
        if (strlen(g->op[i].name) == length && !memcmp(g->op[i].name, name, length)) return i;
    return -1;
}

static inline int oracle_add_input(oracle_op *op, int input)
{
    for (int i = 0; i < op->inputs; i++)
        if (op->input[i] == input) return 1;
    if (input < 0 || op->inputs == ORACLE_INPUTS) return 0;
    op->input[op->inputs++] = input;
    return 1;
}

static inline int oracle_number(const char *word, size_t length, uint64_t *value)
{
    *value = 0;
    for (size_t i = 0; i < length; i++) {
        uint64_t digit = (uint64_t)(unsigned char)word[i] - '0';
        if (digit > 9 || *value > (UINT64_MAX - digit) / 10) return 0;
        *value = *value * 10 + digit;
    }
    return length > 0;
}

static inline int oracle_real(const char *word, size_t length, double *value)
{
    char *end;
    *value = strtod(word, &end);
    return length > 0 && end == word + length && *value >= 0 && *value < HUGE_VAL;
}

static inline int oracle_parse_op(oracle_graph *g, const char *at)
{
    oracle_op *op = &g->op[g->ops];
    size_t k, n, c, b, w;
    const char *kind = oracle_word(&at, &k), *name = oracle_word(&at, &n), *cost = oracle_word(&at, &c);
    const char *bytes = oracle_word(&at, &b), *workspace = oracle_word(&at, &w), *input;
    memset(op, 0, sizeof *op);
    if (k != 1 || n >= ORACLE_NAME || !workspace || oracle_find(g, name, n) >= 0) return 0;
    if (*kind != 'b' && (*kind != 'f' || g->ops > g->forwards)) return 0;
    memcpy(op->name, name, n);
    if (!oracle_real(cost, c, &op->cost) || !oracle_number(bytes, b, &op->bytes)) return 0;
    if (!oracle_number(workspace, w, &op->workspace)) return 0;
    while ((input = oracle_word(&at, &n)) != NULL)
        if (!oracle_add_input(op, oracle_find(g, input, n))) return 0;
    g->ops++;
    g->forwards += *kind == 'f';
    return 1;
}

/* 0: not a graph, or one too large for the fixed arrays. */
static inline int oracle_parse(oracle_graph *g, const char *text)
{
    size_t length;
    g->ops = g->forwards = 0;
    for (; *text; text = oracle_line_end(text)) {
        const char *at = text;
        if (!oracle_word(&at, &length)) continue;
        if (g->ops == ORACLE_OPS || !oracle_parse_op(g, text)) return 0;
    }
    return g->ops > 0;
}

static inline int oracle_write_op(const oracle_graph *g, int i, char *text, size_t size)
{
    const oracle_op *op = &g->op[i];
    size_t at = 0;
    int n = snprintf(text, size, "%c %s %.17g %" PRIu64 " %" PRIu64, i < g->forwards ? 'f' : 'b', op->name, op->cost,
                     op->bytes, op->workspace);
    for (int k = 0; k <= op->inputs; k++) {
        if (n < 0 || (size_t)n >= size - at) return 0;
        at += (size_t)n;
        n = k < op->inputs ? snprintf(text + at, size - at, " %s", g->op[op->input[k]].name)
                           : snprintf(text + at, size - at, "\n");
    }
    return n > 0 && (size_t)n < size - at ? (int)at + n : 0;
}

/* The length written, terminator not counted; 0 if size does not suffice. */
static inline int oracle_write(const oracle_graph *g, char *text, size_t size)
{
    int length = snprintf(text, size, "# gcp-graph 1\n");
    if (length < 0 || (size_t)length >= size) return 0;
    for (int i = 0; i < g->ops; i++) {
        int n = oracle_write_op(g, i, text + length, size - (size_t)length);
        if (!n) return 0;
        length += n;
    }
    return length;
}

/* ---- simulator ---- */

/* change[t]: live bytes at instruction t less those at t - 1, modulo 2^64. */
typedef struct oracle_run {
    const oracle_graph *g;
    uint64_t *change;
    size_t step, last[ORACLE_OPS];
    int forwards, backwards;
    double seconds;
} oracle_run;

static inline int oracle_run_open(oracle_run *r, const oracle_graph *g, size_t steps)
{
    memset(r, 0, sizeof *r);
    r->g = g;
    r->change = (uint64_t *)calloc(steps + 1, sizeof *r->change);
    return r->change != NULL;
}

static inline int oracle_has_run(const oracle_run *r, int i)
{
    return i < r->g->forwards ? i < r->forwards : i - r->g->forwards < r->backwards;
}

static inline int oracle_may_run(const oracle_run *r, char kind, int i)
{
    if (i < 0) return 0;
    for (int k = 0; k < r->g->op[i].inputs; k++)
        if (!oracle_has_run(r, r->g->op[i].input[k])) return 0;
    if (kind == 'F') return i < r->g->forwards && i == r->forwards;
    if (kind == 'R') return i < r->forwards;
    return kind == 'B' && r->forwards == r->g->forwards && i == r->forwards + r->backwards;
}

/* A move: what op i made lies at two places for one step. */
static inline int oracle_move(oracle_run *r, int i)
{
    if (i < 0 || !oracle_has_run(r, i)) return 0;
    r->change[r->step] += r->g->op[i].bytes;
    r->last[i] = r->step++;
    r->change[r->step] -= r->g->op[i].bytes;
    r->seconds += r->g->op[i].cost;
    return 1;
}

static inline int oracle_step(oracle_run *r, char kind, int i)
{
    const oracle_op *op = i < 0 ? NULL : &r->g->op[i];
    if (kind == 'M') return oracle_move(r, i);
    if (!oracle_may_run(r, kind, i)) return 0;
    for (int k = 0; k < op->inputs; k++) r->last[op->input[k]] = r->step;
    if (kind == 'R') r->change[r->last[i] + 1] -= op->bytes;
    r->change[r->step] += op->bytes + op->workspace;
    r->last[i] = r->step++;
    r->change[r->step] -= op->workspace;
    r->forwards += kind == 'F';
    r->backwards += kind == 'B';
    r->seconds += op->cost;
    return 1;
}

/* Closes the run; ok: no step was refused. */
static inline int oracle_run_close(oracle_run *r, int ok, uint64_t *peak, double *seconds)
{
    uint64_t live = 0, most = 0;
    ok = ok && r->forwards + r->backwards == r->g->ops;
    for (int i = 0; ok && i < r->g->ops; i++) r->change[r->last[i] + 1] -= r->g->op[i].bytes;
    for (size_t t = 0; ok && t < r->step; t++) {
        live += r->change[t];
        if (live > most) most = live;
    }
    free(r->change);
    if (ok && peak) *peak = most;
    if (ok && seconds) *seconds = r->seconds;
    return ok;
}

/* A list of lines 'F name', 'R name', 'B name', 'M name'. 0: not a valid schedule of g. */
static inline int oracle_simulate(const oracle_graph *g, const char *list, uint64_t *peak, double *seconds)
{
    oracle_run r;
    size_t lines = 1, k, n;
    int ok = 1;
    for (const char *c = list; *c; c++) lines += *c == '\n';
    if (!oracle_run_open(&r, g, lines)) return 0;
    for (; ok && *list; list = oracle_line_end(list)) {
        const char *at = list, *kind = oracle_word(&at, &k), *name = oracle_word(&at, &n);
        if (!kind) continue;
        ok = k == 1 && name && oracle_step(&r, *kind, oracle_find(g, name, n)) && !oracle_word(&at, &n);
    }
    return oracle_run_close(&r, ok, peak, seconds);
}

/* Every op once. */
static inline int oracle_keep_all(const oracle_graph *g, uint64_t *peak, double *seconds)
{
    oracle_run r;
    int ok = 1;
    if (!oracle_run_open(&r, g, ORACLE_OPS)) return 0;
    for (int i = 0; ok && i < g->ops; i++) ok = oracle_step(&r, i < g->forwards ? 'F' : 'B', i);
    return oracle_run_close(&r, ok, peak, seconds);
}

/* ---- exact search ----
   A state is (ops of the tape done, set of resident forward tensors). The ops of the tape run in one order, so the
   states split into layers; in a layer, Dijkstra's algorithm over the sets with the edges 'run again' and 'drop', the
   latter free. Live bytes of gradients depend on the layer only. One instance of a tensor at a time suffices: reads
   refer to the latest. Sets are cut down to the tensors that some later instruction can have a use for; without that a
   chain would have n times the states. */

typedef struct oracle_memory {
    int forwards;           /* the most forward ops of a problem */
    double *now, *next;     /* by set: the least value of reaching it, in this layer and the following one */
    uint64_t *bytes;        /* by set: its bytes */
    uint32_t *heap, *place; /* heap of sets by now[], from 1; place[]: where a set stands in it, 0: nowhere */
    uint32_t heaped;
} oracle_memory;

typedef struct oracle_search {
    const oracle_graph *g;
    oracle_memory *m;
    uint64_t budget;
    int least;                          /* values are peaks, not times */
    uint32_t read[ORACLE_OPS];          /* by op: the forward tensors it reads */
    uint32_t useful[ORACLE_OPS + 1];    /* by layer: the tensors that can be of use in it */
    uint64_t gradients[ORACLE_OPS + 1]; /* by layer: live bytes of what backward ops made */
} oracle_search;

static inline void oracle_close(oracle_memory *m)
{
    free(m->now);
    free(m->next);
    free(m->bytes);
    free(m->heap);
    free(m->place);
    memset(m, 0, sizeof *m);
}

/* For problems of up to that many forward ops. 0: too many, or no memory; oracle_close is then allowed, not needed. */
static inline int oracle_open(oracle_memory *m, int forwards)
{
    size_t sets;
    memset(m, 0, sizeof *m);
    if (forwards < 0 || forwards > ORACLE_FORWARDS) return 0;
    sets = (size_t)1 << forwards;
    m->forwards = forwards;
    m->now = (double *)malloc(sets * sizeof *m->now);
    m->next = (double *)malloc(sets * sizeof *m->next);
    m->bytes = (uint64_t *)malloc(sets * sizeof *m->bytes);
    m->heap = (uint32_t *)malloc((sets + 1) * sizeof *m->heap);
    m->place = (uint32_t *)calloc(sets, sizeof *m->place);
    if (m->now && m->next && m->bytes && m->heap && m->place) return 1;
    oracle_close(m);
    return 0;
}

static inline void oracle_heap_put(oracle_memory *m, uint32_t at, uint32_t set)
{
    m->heap[at] = set;
    m->place[set] = at;
}

/* Enters the set, or moves it up after its value fell. */
static inline void oracle_heap_up(oracle_memory *m, uint32_t set)
{
    uint32_t at = m->place[set] ? m->place[set] : ++m->heaped;
    for (; at > 1 && m->now[m->heap[at / 2]] > m->now[set]; at /= 2) oracle_heap_put(m, at, m->heap[at / 2]);
    oracle_heap_put(m, at, set);
}

static inline uint32_t oracle_heap_pop(oracle_memory *m)
{
    uint32_t top = m->heap[1], set = m->heap[m->heaped--], at = 1, child;
    m->place[top] = 0;
    if (!m->heaped) return top;
    for (; (child = 2 * at) <= m->heaped; at = child) {
        if (child < m->heaped && m->now[m->heap[child + 1]] < m->now[m->heap[child]]) child++;
        if (m->now[m->heap[child]] >= m->now[set]) break;
        oracle_heap_put(m, at, m->heap[child]);
    }
    oracle_heap_put(m, at, set);
    return top;
}

/* Useful: read by an op of this layer or a later one, or by a forward op whose tensor is useful (it may be run
   again). */
static inline void oracle_prepare_useful(oracle_search *s)
{
    const oracle_graph *g = s->g;
    for (int i = 0; i < g->ops; i++) {
        s->read[i] = 0;
        for (int k = 0; k < g->op[i].inputs; k++)
            if (g->op[i].input[k] < g->forwards) s->read[i] |= (uint32_t)1 << g->op[i].input[k];
    }
    s->useful[g->ops] = 0;
    for (int layer = g->ops - 1; layer >= 0; layer--) {
        uint32_t useful = s->useful[layer + 1] | s->read[layer];
        for (int i = g->forwards - 1; i >= 0; i--)
            if (useful >> i & 1) useful |= s->read[i];
        s->useful[layer] = useful;
    }
}

static inline void oracle_prepare_gradients(oracle_search *s)
{
    const oracle_graph *g = s->g;
    int last[ORACLE_OPS];
    memset(s->gradients, 0, sizeof s->gradients);
    for (int i = 0; i < g->ops; i++) {
        last[i] = i;
        for (int k = 0; k < g->op[i].inputs; k++) last[g->op[i].input[k]] = i;
    }
    for (int i = g->forwards; i < g->ops; i++)
        for (int layer = i + 1; layer <= last[i]; layer++) s->gradients[layer] += g->op[i].bytes;
}

static inline void oracle_prepare(oracle_search *s)
{
    oracle_prepare_useful(s);
    oracle_prepare_gradients(s);
    s->m->bytes[0] = 0;
    for (int i = 0; i < s->g->forwards; i++)
        for (uint32_t set = 0, bit = (uint32_t)1 << i; set < bit; set++)
            s->m->bytes[bit | set] = s->m->bytes[set] + s->g->op[i].bytes;
}

/* The value after running op i in that layer with the tensors of set and of what it makes live; INFINITY: not
   allowed. */
static inline double oracle_value(const oracle_search *s, int layer, int i, uint32_t set, double value)
{
    const oracle_op *op = &s->g->op[i];
    uint64_t live = s->m->bytes[set] + s->gradients[layer] + op->workspace + (i < s->g->forwards ? 0 : op->bytes);
    if (live > s->budget) return INFINITY;
    if (!s->least) return value + op->cost;
    return (double)live > value ? (double)live : value;
}

static inline void oracle_reach(oracle_memory *m, uint32_t set, double value)
{
    if (!(value < m->now[set])) return;
    m->now[set] = value;
    oracle_heap_up(m, set);
}

/* All that can follow a set in its layer: a useful tensor made again, one dropped, and the next op of the tape. */
static inline void oracle_expand(oracle_search *s, int layer, uint32_t set)
{
    oracle_memory *m = s->m;
    const oracle_graph *g = s->g;
    double value = m->now[set], v;
    uint32_t made = layer < g->forwards ? (uint32_t)1 << layer : 0;
    for (int i = 0; i < g->forwards && i < layer; i++) {
        uint32_t bit = (uint32_t)1 << i;
        if (set & bit) oracle_reach(m, set ^ bit, value);
        else if ((s->useful[layer] & bit) && !(s->read[i] & ~set))
            oracle_reach(m, set | bit, oracle_value(s, layer, i, set | bit, value));
    }
    if (s->read[layer] & ~set) return;
    v = oracle_value(s, layer, layer, set | made, value);
    set = (set | made) & s->useful[layer + 1];
    if (v < m->next[set]) m->next[set] = v;
}

static inline void oracle_layer(oracle_search *s, int layer)
{
    oracle_memory *m = s->m;
    uint32_t sets = (uint32_t)1 << s->g->forwards;
    double *swap;
    for (uint32_t set = 0; set < sets; set++) {
        m->next[set] = INFINITY;
        if (m->now[set] < INFINITY) oracle_heap_up(m, set);
    }
    while (m->heaped) oracle_expand(s, layer, oracle_heap_pop(m));
    swap = m->now;
    m->now = m->next;
    m->next = swap;
}

static inline double oracle_solve(const oracle_graph *g, uint64_t budget, oracle_memory *m, int least)
{
    oracle_search s;
    if (g->forwards > m->forwards) return NAN;
    s.g = g;
    s.m = m;
    s.budget = budget;
    s.least = least;
    oracle_prepare(&s);
    for (uint32_t set = 0; set < (uint32_t)1 << g->forwards; set++) m->now[set] = set ? INFINITY : 0;
    for (int layer = 0; layer < g->ops; layer++) oracle_layer(&s, layer);
    return m->now[0]; /* nothing is useful after the last op */
}

/* The least time over all schedules whose peak is within the budget; INFINITY: there is none; NAN: too many forward ops
   for m. */
static inline double oracle_best(const oracle_graph *g, uint64_t budget, oracle_memory *m)
{
    return oracle_solve(g, budget, m, 0);
}

/* The least budget for which there is a schedule; UINT64_MAX: too many forward ops for m. Exact below 2^53 bytes. */
static inline uint64_t oracle_least(const oracle_graph *g, oracle_memory *m)
{
    double least = oracle_solve(g, UINT64_MAX, m, 1);
    return least >= 0 && least < INFINITY ? (uint64_t)least : UINT64_MAX;
}

/* ---- random problems ---- */

static inline uint64_t oracle_random(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* 0..count-1; the bias of the remainder is of no account at these counts. */
static inline int oracle_pick(uint64_t *state, int count) { return (int)(oracle_random(state) % (uint64_t)count); }

static inline oracle_op *oracle_random_op(oracle_graph *g, uint64_t *state, char kind, int number)
{
    oracle_op *op = &g->op[g->ops++];
    memset(op, 0, sizeof *op);
    snprintf(op->name, sizeof op->name, "%c%d", kind, number);
    op->cost = 1 + oracle_pick(state, kind == 'f' ? 100 : 200);
    if (!oracle_pick(state, 4)) op->workspace = 64 * (1 + (uint64_t)oracle_pick(state, 20));
    if (kind == 'f') op->bytes = 64 * (1 + (uint64_t)oracle_pick(state, 100));
    g->forwards += kind == 'f';
    return op;
}

/* Backward op i of 0..n-1 stands at n + (n - 1 - i). It reads the gradients made for the consumers of forward op i, and
   of the values one or both of: those its forward op read, that one's output. It makes one gradient, as large as the
   largest input. */
static inline void oracle_random_backward(oracle_graph *g, uint64_t *state, int i, int reads_output)
{
    int n = g->forwards, which = 1 + oracle_pick(state, 3);
    const oracle_op *forward = &g->op[i];
    oracle_op *op = oracle_random_op(g, state, 'b', i);
    for (int k = 0; k < forward->inputs; k++) {
        if (which & 1) oracle_add_input(op, forward->input[k]);
        if (g->op[forward->input[k]].bytes > op->bytes) op->bytes = g->op[forward->input[k]].bytes;
    }
    if ((which & 2) || reads_output) oracle_add_input(op, i);
    for (int j = i + 1; j < n; j++)
        for (int k = 0; k < g->op[j].inputs; k++)
            if (g->op[j].input[k] == i) oracle_add_input(op, 2 * n - 1 - j);
}

/* n forward ops (1..ORACLE_OPS/2), each reading the one before. */
static inline void oracle_random_chain(oracle_graph *g, uint64_t seed, int n)
{
    g->ops = g->forwards = 0;
    for (int i = 0; i < n; i++) {
        oracle_op *op = oracle_random_op(g, &seed, 'f', i);
        if (i) oracle_add_input(op, i - 1);
    }
    for (int i = n - 1; i >= 0; i--) oracle_random_backward(g, &seed, i, 0);
}

/* n forward ops, each reading the one before, or one or two of the four before; the loss reads the last one's
   output. */
static inline void oracle_random_dag(oracle_graph *g, uint64_t seed, int n)
{
    g->ops = g->forwards = 0;
    for (int i = 0; i < n; i++) {
        oracle_op *op = oracle_random_op(g, &seed, 'f', i);
        int window = i < 4 ? i : 4, near = oracle_pick(&seed, 2), reads = near ? 1 : 1 + oracle_pick(&seed, 2);
        for (int k = 0; i && k < reads; k++) oracle_add_input(op, near ? i - 1 : i - 1 - oracle_pick(&seed, window));
    }
    for (int i = n - 1; i >= 0; i--) oracle_random_backward(g, &seed, i, i == n - 1);
}

/* ---- closed forms: a chain of n equal steps, s equal checkpoints, the initial state among them ---- */

typedef uint64_t oracle_table[ORACLE_CHAIN + 1][ORACLE_STATES + 1];

static inline uint64_t oracle_square(int n) { return (uint64_t)n * (uint64_t)(n - 1) / 2; }

static inline uint64_t oracle_revolve_entry(oracle_table t, int n, int s)
{
    uint64_t best = oracle_square(n);
    if (s == 1) return best;
    for (int j = 1; j < n; j++) {
        uint64_t steps = (uint64_t)j + t[n - j][s - 1] + t[j][s];
        if (steps < best) best = steps;
    }
    return best;
}

/* A checkpoint holds a state or one step's tape. With fewer than two steps to spare every tape is held. */
static inline uint64_t oracle_mixed_entry(oracle_table m, int n, int s)
{
    uint64_t best;
    if (n <= s + 1) return (uint64_t)n;
    if (s == 1) return oracle_square(n + 1) - 1;
    best = 1 + m[n - 1][s - 1];
    for (int i = 2; i < n; i++) {
        uint64_t steps = (uint64_t)i + m[i][s] + m[n - i][s - 1];
        if (steps < best) best = steps;
    }
    return best;
}

static inline void oracle_fill(oracle_table t, uint64_t (*entry)(oracle_table, int, int))
{
    for (int s = 1; s <= ORACLE_STATES; s++)
        for (int n = 1; n <= ORACLE_CHAIN; n++) t[n][s] = entry(t, n, s);
}

static inline int oracle_outside(int n, int s) { return n < 1 || n > ORACLE_CHAIN || s < 1 || s > ORACLE_STATES; }

/* Revolve's least count of forward steps besides the one taped forward of each step; UINT64_MAX outside 1..200,
   1..20. */
static inline uint64_t oracle_revolve(int n, int s)
{
    static oracle_table table;
    if (oracle_outside(n, s)) return UINT64_MAX;
    if (!table[2][1]) oracle_fill(table, oracle_revolve_entry);
    return table[n][s];
}

/* C(c + r, c), the longest chain c checkpoints reverse with no step run ahead more than r times; saturates beyond any
   chain. */
static inline uint64_t oracle_beta(int c, int r)
{
    uint64_t beta = 1;
    if (r < 0) return 0;
    for (int i = 1; i <= c && beta < UINT64_C(1) << 48; i++) beta = beta * (uint64_t)(r + i) / (uint64_t)i;
    return beta;
}

/* The same count by the formula r n - beta(s + 1, r - 1), r the least with n <= beta(s, r). */
static inline uint64_t oracle_revolve_closed(int n, int s)
{
    int r = 0;
    if (n < 1 || s < 1) return UINT64_MAX;
    while (oracle_beta(s, r) < (uint64_t)n) r++;
    return (uint64_t)r * (uint64_t)n - oracle_beta(s + 1, r - 1);
}

/* The least count of all forward steps, taped ones included, where a checkpoint may hold a tape; UINT64_MAX outside
   1..200, 1..20. */
static inline uint64_t oracle_mixed(int n, int s)
{
    static oracle_table table;
    if (oracle_outside(n, s)) return UINT64_MAX;
    if (!table[2][1]) oracle_fill(table, oracle_mixed_entry);
    return table[n][s];
}
#endif
