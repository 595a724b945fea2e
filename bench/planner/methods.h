/* methods.h - published rematerialisation methods as independent baselines: Chen 2016, Griewank-Walther revolve, rotor.
   Needs libc only and shares no code with the planner it is compared with.

   The problem. Forward ops may run any number of times, backward ops once each; either kind's first runs keep the
   file's order. Every op makes one tensor. A schedule is a list of ops; a read refers to the latest earlier instance,
   and an instance lives from the instruction that makes it to the last one that reads it. So a list says everything:
   there is no free and no keep.

   Every method proposes lists, re-runs that nothing reads are dropped, and method_simulate judges: a list is returned
   only if its exact peak is within the budget, and of those the fastest. 1: *out holds it; 0: none fits, and *out is
   empty.

       method_graph g;
       method_list best = { 0 };
       if (method_parse(&g, text) && method_rotor(&g, budget, &best)) printf("%g\n", best.time);
       method_list_free(&best);
       method_free(&g); */
#ifndef METHODS_H
#define METHODS_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    METHOD_OPS_MAX = 20000,
    METHOD_HASH = 1 << 16,            /* more than three times the ops, so probing stays short */
    METHOD_NAME = 48,
    METHOD_LIST_MAX = 1 << 23,        /* a longer list is no candidate */
    METHOD_DP_STAGES = 200,           /* the table grows with the square of it, the time with the cube */
    METHOD_SLOTS = 500,               /* rotor's default: the budget in 500 slots */
    METHOD_SLOTS_SWEPT = 1000         /* the table goes on to two budgets: it overcounts, the judge does not */
};

typedef struct method_op {
    char name[METHOD_NAME];
    double cost;
    uint64_t bytes, workspace;
    int first_input, input_count;     /* into method_graph.inputs */
    int backward, rank;               /* rank: the place among the ops of its kind */
} method_op;

typedef struct method_graph {
    method_op *ops;
    int *inputs, *forward, *backward; /* forward, backward: rank to op */
    /* backward rank to the rank of the forward op it is the gradient of, "id_b" of "id" */
    int *owner;
    int *hash;
    int op_count, input_count, input_room, forward_count, backward_count;
    int line;                         /* where parsing stopped; 0: it did not */
} method_graph;

/* Zero it before the first use; a later use keeps its memory. */
typedef struct method_list {
    int *ops;
    size_t count, room;
    int too_long;
    double time;
    uint64_t peak;
} method_list;

/* ---- memory ---- */

/* A benchmark out of memory has nothing to report, so every caller may take the result as it is. */
static inline void *method_resize(void *old, size_t count, size_t size)
{
    void *made = count > SIZE_MAX / size ? NULL : realloc(old, (count ? count : 1) * size);
    if (made) return made;
    fprintf(stderr, "methods.h: out of memory (%zu x %zu bytes)\n", count, size);
    exit(1);
}

static inline void *method_zeros(size_t count, size_t size)
{
    return memset(method_resize(NULL, count, size), 0, (count ? count : 1) * size);
}

static inline int *method_ints(int count, int value)
{
    int *made = method_resize(NULL, (size_t)count, sizeof *made);
    for (int i = 0; i < count; i++) made[i] = value;
    return made;
}

static inline void method_list_free(method_list *list)
{
    free(list->ops);
    *list = (method_list){ 0 };
}

static inline void method_push(method_list *list, int op)
{
    if (list->count == METHOD_LIST_MAX) { list->too_long = 1; return; }
    if (list->count == list->room) {
        list->room = list->room ? 2 * list->room : 256;
        list->ops = method_resize(list->ops, list->room, sizeof *list->ops);
    }
    list->ops[list->count++] = op;
}

static inline void method_clear(method_list *list) { list->count = 0; list->too_long = 0; }

/* ---- graphs ---- */

static inline void method_free(method_graph *g)
{
    free(g->ops); free(g->inputs); free(g->forward); free(g->backward); free(g->owner); free(g->hash);
    *g = (method_graph){ 0 };
}

static inline void method_begin(method_graph *g)
{
    *g = (method_graph){ 0 };
    g->ops = method_resize(NULL, METHOD_OPS_MAX, sizeof *g->ops);
    g->forward = method_ints(METHOD_OPS_MAX, -1);
    g->backward = method_ints(METHOD_OPS_MAX, -1);
    g->owner = method_ints(METHOD_OPS_MAX, -1);
    g->hash = method_ints(METHOD_HASH, -1);
}

/* The slot where the name is, or where it would go (FNV-1a, linear probing). */
static inline unsigned method_slot(const method_graph *g, const char *name, size_t length)
{
    uint32_t h = 2166136261u;
    for (size_t i = 0; i < length; i++) h = (h ^ (unsigned char)name[i]) * 16777619u;
    for (h %= METHOD_HASH;; h = (h + 1) % METHOD_HASH) {
        int op = g->hash[h];
        if (op < 0 || (!strncmp(g->ops[op].name, name, length) && !g->ops[op].name[length])) return h;
    }
}

static inline int method_find(const method_graph *g, const char *name)
{
    return g->hash[method_slot(g, name, strlen(name))];
}

/* A backward op whose name tells nothing belongs with the one before it, the first (the loss) with the last forward
   op. */
static inline int method_owner(const method_graph *g, const method_op *op)
{
    size_t length = strlen(op->name);
    int of = length > 2 && !strcmp(op->name + length - 2, "_b") ? g->hash[method_slot(g, op->name, length - 2)] : -1;
    if (of >= 0 && !g->ops[of].backward) return g->ops[of].rank;
    return g->backward_count ? g->owner[g->backward_count - 1] : g->forward_count - 1;
}

/* Adds an op whose inputs follow by method_add_input; 0 if the name is taken or too long, or there are too many ops. */
static inline int method_add(method_graph *g, int backward, const char *name, double cost, uint64_t bytes,
                             uint64_t workspace)
{
    size_t length = strlen(name);
    if (g->op_count == METHOD_OPS_MAX || !length || length >= METHOD_NAME) return 0;
    unsigned slot = method_slot(g, name, length);
    if (g->hash[slot] >= 0 || (!backward && g->backward_count)) return 0;
    method_op *op = &g->ops[g->op_count];
    *op = (method_op){ .cost = cost, .bytes = bytes, .workspace = workspace, .backward = backward };
    op->first_input = g->input_count;
    memcpy(op->name, name, length + 1);
    op->rank = backward ? g->backward_count : g->forward_count;
    if (backward) g->owner[op->rank] = method_owner(g, op);
    if (backward) g->backward[g->backward_count++] = g->op_count;
    else g->forward[g->forward_count++] = g->op_count;
    g->hash[slot] = g->op_count++;
    return 1;
}

/* Another input of the op added last. */
static inline int method_add_input(method_graph *g, int op)
{
    if (op < 0 || op >= g->op_count - 1) return 0;
    if (g->ops[g->op_count - 1].backward == 0 && g->ops[op].backward) return 0;
    if (g->input_count == g->input_room) {
        g->input_room = g->input_room ? 2 * g->input_room : 1024;
        g->inputs = method_resize(g->inputs, (size_t)g->input_room, sizeof *g->inputs);
    }
    g->inputs[g->input_count++] = op;
    g->ops[g->op_count - 1].input_count++;
    return 1;
}

/* The next word of the line at *at, "" at its end or at a comment; 0 if the word has no room. */
static inline int method_word(const char **at, char word[METHOD_NAME])
{
    const char *from = *at + strspn(*at, " \t\r");
    size_t length = *from == '#' ? 0 : strcspn(from, " \t\r\n");
    *at = from + length;
    if (length >= METHOD_NAME) return 0;
    memcpy(word, from, length);
    word[length] = 0;
    return 1;
}

static inline int method_parse_number(const char **at, double *value)
{
    char word[METHOD_NAME], *end;
    if (!method_word(at, word) || !*word) return 0;
    *value = strtod(word, &end);
    return !*end && *value >= 0 && *value < 1e300;
}

static inline int method_parse_bytes(const char **at, uint64_t *value)
{
    char word[METHOD_NAME], *end;
    if (!method_word(at, word) || !*word || *word == '-') return 0;
    unsigned long long read = strtoull(word, &end, 10);
    *value = read;
    return !*end && read < UINT64_C(1) << 48;     /* so that the sum over all ops cannot overflow */
}

static inline int method_parse_line(method_graph *g, const char *at)
{
    char kind[METHOD_NAME], name[METHOD_NAME];
    double cost;
    uint64_t bytes, workspace;
    if (!method_word(&at, kind)) return 0;
    if (!*kind) return 1;
    if (strcmp(kind, "f") && strcmp(kind, "b")) return 0;
    if (!method_word(&at, name) || !method_parse_number(&at, &cost)) return 0;
    if (!method_parse_bytes(&at, &bytes) || !method_parse_bytes(&at, &workspace)) return 0;
    if (!method_add(g, *kind == 'b', name, cost, bytes, workspace)) return 0;
    while (method_word(&at, name))
        if (!*name) return 1;
        else if (!method_add_input(g, method_find(g, name))) return 0;
    return 0;
}

/* Reads a gcp-graph 1: a line an op, "f|b NAME COST BYTES WORKSPACE INPUT...", '#' begins a comment; forward ops first,
   at least one of each kind. 0: g->line is the first bad line, 0 if each by itself is good. method_free in any case. */
static inline int method_parse(method_graph *g, const char *text)
{
    method_begin(g);
    for (int line = 1; *text; line++) {
        if (!method_parse_line(g, text)) { g->line = line; return 0; }
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
    return g->forward_count > 0 && g->backward_count > 0;
}

/* The sum of the forward outputs. */
static inline uint64_t method_forward_bytes(const method_graph *g)
{
    uint64_t sum = 0;
    for (int r = 0; r < g->forward_count; r++) sum += g->ops[g->forward[r]].bytes;
    return sum;
}

/* ---- the judge ---- */

/* Order of first runs, and for each instruction the last one that reads what it makes. 0: the list is no schedule. */
static inline int method_last_reads(const method_graph *g, const method_list *list, int *latest, int *last)
{
    int next[2] = { 0, 0 };
    for (int i = 0; i < (int)list->count; i++) {
        const method_op *op = &g->ops[list->ops[i]];
        for (int k = 0; k < op->input_count; k++) {
            int made = latest[g->inputs[op->first_input + k]];
            if (made < 0) return 0;
            last[made] = i;
        }
        if (latest[list->ops[i]] < 0 && op->rank != next[op->backward]++) return 0;
        if (latest[list->ops[i]] >= 0 && op->backward) return 0;
        last[i] = latest[list->ops[i]] = i;
    }
    return next[0] == g->forward_count && next[1] == g->backward_count;
}

static inline void method_measure(const method_graph *g, method_list *list, const int *last, uint64_t *dies)
{
    uint64_t live = 0;
    list->peak = 0;
    list->time = 0;
    for (size_t i = 0; i < list->count; i++) dies[last[i]] += g->ops[list->ops[i]].bytes;
    for (size_t i = 0; i < list->count; i++) {
        const method_op *op = &g->ops[list->ops[i]];
        live += op->bytes;
        list->time += op->cost;
        if (live + op->workspace > list->peak) list->peak = live + op->workspace;
        live -= dies[i];
    }
}

/* Time and exact liveness peak of the list; 0 if it is no schedule of the graph. Linear in the list. */
static inline int method_simulate(const method_graph *g, method_list *list)
{
    if (list->too_long) return 0;
    int *latest = method_ints(g->op_count, -1), *last = method_ints((int)list->count, -1);
    uint64_t *dies = method_zeros(list->count, sizeof *dies);
    int good = method_last_reads(g, list, latest, last);
    if (good) method_measure(g, list, last, dies);
    free(latest); free(last); free(dies);
    return good;
}

/* Takes the trial for the best if it fits and is faster, or as fast and smaller. The two swap memory. */
static inline int method_consider(const method_graph *g, uint64_t budget, method_list *trial, method_list *best)
{
    if (!method_simulate(g, trial) || trial->peak > budget) return 0;
    if (best->count && (trial->time > best->time || (trial->time == best->time && trial->peak >= best->peak))) return 1;
    method_list old = *best;
    *best = *trial;
    *trial = old;
    return 1;
}

/* For each read of the list, in order, the instruction that made what it reads (-1: nothing), *total of them; and how
   often each instruction is read, or -1 where it stays whatever reads it: a first run. */
static inline int *method_links(const method_graph *g, const method_list *list, int *reads, int *total)
{
    int *made = method_ints(g->op_count, -1), count = 0;
    for (size_t i = 0; i < list->count; i++) count += g->ops[list->ops[i]].input_count;
    int *links = method_ints(count, -1), at = 0;
    for (int i = 0; i < (int)list->count; i++) {
        const method_op *op = &g->ops[list->ops[i]];
        for (int k = 0; k < op->input_count; k++, at++) {
            links[at] = made[g->inputs[op->first_input + k]];
            if (links[at] >= 0 && reads[links[at]] >= 0) reads[links[at]]++;
        }
        reads[i] = made[list->ops[i]] < 0 ? -1 : 0;
        made[list->ops[i]] = i;
    }
    free(made);
    *total = at;
    return links;
}

/* Drops every re-run that nothing reads, and what only such re-runs read: no method is charged for them. */
static inline void method_drop_unread(const method_graph *g, method_list *list)
{
    int *reads = method_ints((int)list->count, 0), at;
    int *links = method_links(g, list, reads, &at);
    for (int i = (int)list->count; i-- > 0;) {
        int inputs = g->ops[list->ops[i]].input_count;
        at -= inputs;
        if (reads[i]) continue;
        for (int k = 0; k < inputs; k++)
            if (links[at + k] >= 0 && reads[links[at + k]] > 0) reads[links[at + k]]--;
        list->ops[i] = -1;
    }
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->ops[i] >= 0) list->ops[kept++] = list->ops[i];
    list->count = kept;
    free(reads); free(links);
}

/* The list as gcp_plan_opts.list reads it: 'F name' a first run, 'R name' a re-run, 'B name' a backward op, one a line.
   The caller frees it. */
static inline char *method_text(const method_graph *g, const method_list *list)
{
    unsigned char *ran = method_zeros((size_t)g->op_count, 1);
    size_t size = 1;
    for (size_t i = 0; i < list->count; i++) size += strlen(g->ops[list->ops[i]].name) + 3;
    char *text = method_resize(NULL, size, 1), *at = text;
    for (size_t i = 0; i < list->count; i++) {
        const method_op *op = &g->ops[list->ops[i]];
        at += snprintf(at, size - (size_t)(at - text), "%c %s\n",
                       op->backward        ? 'B'
                       : ran[list->ops[i]] ? 'R'
                                           : 'F',
                       op->name);
        ran[list->ops[i]] = 1;
    }
    *at = 0;
    free(ran);
    return text;
}

/* ---- stages ---- */

/* Stages cover the forward ops in order; the backward ops of stage s are those from back[s + 1] up to back[s], so that
   the last stage's come first. alive[r]: the last rank at which the output of forward op r must be at hand, to run a
   later forward op or a backward op that belongs to one. L(p), the live set at p, is then every r <= p with alive[r] >
   p. */
typedef struct method_chain {
    const method_graph *graph;
    int count;
    int *end, *back, *stage, *alive;  /* per stage: last rank, first backward; per rank: its stage, see above */
} method_chain;

static inline void method_chain_free(method_chain *c)
{
    free(c->end); free(c->back); free(c->stage); free(c->alive);
}

static inline int method_stage_begin(const method_chain *c, int s) { return s ? c->end[s - 1] + 1 : 0; }

static inline int *method_alive(const method_graph *g)
{
    int *alive = method_ints(g->forward_count, 0);
    for (int r = 0; r < g->forward_count; r++) alive[r] = r;
    for (int i = 0; i < g->op_count; i++) {
        const method_op *op = &g->ops[i];
        int at = op->backward ? g->owner[op->rank] : op->rank;
        for (int k = 0; k < op->input_count; k++) {
            const method_op *in = &g->ops[g->inputs[op->first_input + k]];
            if (!in->backward && alive[in->rank] < at) alive[in->rank] = at;
        }
    }
    return alive;
}

/* Tensors in L(p) for every p, and their bytes. */
static inline void method_live_sets(const method_graph *g, const int *alive, int *tensors, uint64_t *bytes)
{
    int n = g->forward_count;
    for (int r = 0; r < n; r++) {
        uint64_t size = g->ops[g->forward[r]].bytes;
        for (int p = r; p < alive[r] && size; p++) { tensors[p]++; bytes[p] += size; }
    }
}

/* Of more ends than a table can have stages: from each of `most` equal windows the one with the fewest live bytes. */
static inline int method_coarsen(int *end, int count, int most, const uint64_t *bytes)
{
    if (count <= most) return count;
    int kept = 0, last = end[count - 1];
    for (int w = 0; w < most - 1; w++) {
        int from = (int)((int64_t)(count - 1) * w / (most - 1)),
            to = (int)((int64_t)(count - 1) * (w + 1) / (most - 1));
        int least = from;
        for (int i = from; i < to; i++)
            if (bytes[end[i]] < bytes[end[least]]) least = i;
        end[kept++] = end[least];
    }
    end[kept++] = last;
    return kept;
}

/* A backward op out of the stages' reverse order joins the stage that is being reversed: the judge sees what that
   costs. */
static inline void method_assign(method_chain *c)
{
    const method_graph *g = c->graph;
    for (int s = 0; s < c->count; s++)
        for (int r = method_stage_begin(c, s); r <= c->end[s]; r++) c->stage[r] = s;
    int s = c->count - 1;
    c->back[c->count] = 0;
    for (int b = 0; b < g->backward_count; b++)
        while (s > c->stage[g->owner[b]]) c->back[s--] = b;
    while (s >= 0) c->back[s--] = g->backward_count;
}

/* Stages that end where a single tensor crosses ("blocks"), or after every forward op; at most `most` of them. */
static inline method_chain method_stages(const method_graph *g, int blocks, int most)
{
    int n = g->forward_count;
    method_chain c = { .graph = g, .end = method_ints(n, 0), .back = method_ints(n + 1, 0) };
    c.stage = method_ints(n, 0);
    c.alive = method_alive(g);
    int *tensors = method_ints(n, 0);
    uint64_t *bytes = method_zeros((size_t)n, sizeof *bytes);
    method_live_sets(g, c.alive, tensors, bytes);
    for (int p = 0; p < n; p++)
        if (p == n - 1 || !blocks || tensors[p] == 1) c.end[c.count++] = p;
    c.count = method_coarsen(c.end, c.count, most, bytes);
    method_assign(&c);
    free(tensors); free(bytes);
    return c;
}

static inline void method_forward(const method_chain *c, int from, int to, method_list *list)
{
    for (int r = method_stage_begin(c, from); r <= c->end[to]; r++) method_push(list, c->graph->forward[r]);
}

/* Stages from..to, the last one first. */
static inline void method_backward(const method_chain *c, int from, int to, method_list *list)
{
    for (int b = c->back[to + 1]; b < c->back[from]; b++) method_push(list, c->graph->backward[b]);
}

static inline uint64_t method_stage_bytes(const method_chain *c, int s)
{
    uint64_t sum = 0;
    for (int r = method_stage_begin(c, s); r <= c->end[s]; r++) sum += c->graph->ops[c->graph->forward[r]].bytes;
    return sum;
}

/* What the sweeps share: propose a list in `trial`, keep the best. */
typedef struct method_search {
    method_chain chain;
    uint64_t budget;
    method_list trial, *best;
} method_search;

static inline method_search method_search_begin(const method_graph *g, int blocks, int most, uint64_t budget,
                                                method_list *best)
{
    method_clear(best);
    return (method_search){ .chain = method_stages(g, blocks, most), .budget = budget, .best = best };
}

static inline int method_search_end(method_search *s)
{
    method_chain_free(&s->chain);
    method_list_free(&s->trial);
    return s->best->count > 0;
}

static inline int method_try(method_search *s)
{
    if (s->trial.too_long) return 0;
    method_drop_unread(s->chain.graph, &s->trial);
    return method_consider(s->chain.graph, s->budget, &s->trial, s->best);
}

/* ---- Chen, Xu, Zhang, Guestrin: Training Deep Nets with Sublinear Memory Cost (2016) ---- */

/* Algorithm 3: one pass that closes a segment where its bytes exceed b. b is a knob and no memory limit. */
static inline int method_chen_segments(const method_chain *c, uint64_t b, int *last)
{
    int count = 0;
    uint64_t sum = 0;
    for (int s = 0; s < c->count; s++) {
        sum += method_stage_bytes(c, s);
        if (sum <= b && s < c->count - 1) continue;
        last[count++] = s;
        sum = 0;
    }
    return count;
}

/* Re-runs a segment; without `whole` not the ops that make the checkpoint at its end, which is still there. */
static inline void method_chen_again(const method_chain *c, int from, int to, int whole, method_list *list)
{
    for (int r = method_stage_begin(c, from); r <= c->end[to]; r++)
        if (whole || c->alive[r] <= c->end[to]) method_push(list, c->graph->forward[r]);
}

static inline void method_chen_list(method_search *s, const int *last, int count, int whole)
{
    const method_chain *c = &s->chain;
    method_clear(&s->trial);
    method_forward(c, 0, c->count - 1, &s->trial);
    for (int i = count; i-- > 0;) {
        int from = i ? last[i - 1] + 1 : 0;
        if (i < count - 1) method_chen_again(c, from, last[i], whole, &s->trial);
        method_backward(c, from, last[i], &s->trial);
    }
}

/* Many knobs, denser towards small segments; fewer where a list is long. */
static inline void method_chen_sweep(method_search *s, int whole)
{
    int steps = s->chain.count > 512 ? 128 : 2048, *last = method_ints(s->chain.count, 0);
    double all = (double)method_forward_bytes(s->chain.graph);
    for (int i = 1; i <= steps; i++) {
        double share = (double)i / steps;
        method_chen_list(s, last, method_chen_segments(&s->chain, (uint64_t)(all * share * share * share), last),
                         whole);
        method_try(s);
    }
    free(last);
}

/* Both readings of the paper: checkpoints are never computed again (its mirror counts, m = 0), or, as frameworks do it,
   a segment is one call that is re-run with its output. */
static inline int method_chen(const method_graph *g, uint64_t budget, method_list *out)
{
    method_search s = method_search_begin(g, 1, METHOD_OPS_MAX, budget, out);
    method_chen_sweep(&s, 0);
    method_chen_sweep(&s, 1);
    return method_search_end(&s);
}

/* The recursion: a range in k equal parts, the forward of all but the last keeping only where each begins; then each
   part, from the last, by the same rule; `depth` levels down a range is run whole and reversed. */
static inline void method_recursive_list(method_search *s, int from, int to, int k, int depth)
{
    int n = to - from + 1, parts = k < n ? k : n;
    if (!depth || n == 1) {
        method_forward(&s->chain, from, to, &s->trial);
        method_backward(&s->chain, from, to, &s->trial);
        return;
    }
    int split = from + (int)((int64_t)n * (parts - 1) / parts);
    method_forward(&s->chain, from, split - 1, &s->trial);
    for (int i = parts; i-- > 0;) {
        int begin = from + (int)((int64_t)n * i / parts), end = from + (int)((int64_t)n * (i + 1) / parts) - 1;
        method_recursive_list(s, begin, end, k, depth - 1);
    }
}

static inline void method_recursive_try(method_search *s, int k, int depth)
{
    method_clear(&s->trial);
    method_recursive_list(s, 0, s->chain.count - 1, k, depth);
    method_try(s);
}

/* Depth 0 keeps everything. */
static inline int method_recursive(const method_graph *g, uint64_t budget, method_list *out)
{
    method_search s = method_search_begin(g, 1, METHOD_OPS_MAX, budget, out);
    int n = s.chain.count;
    method_recursive_try(&s, 2, 0);
    for (int k = 2; k <= n; k += 1 + k / 16)
        for (int64_t depth = 1, size = 1; size < n; depth++, size *= k) method_recursive_try(&s, k, (int)depth);
    return method_search_end(&s);
}

/* ---- Griewank, Walther: Algorithm 799: Revolve (2000) ---- */

/* beta(c, r) = C(c + r, c): the steps that c checkpoints, the initial state among them, reverse with no step advanced
   more than r times. Capped far above any number of steps. */
static inline int64_t method_beta(int c, int r)
{
    const int64_t cap = INT64_C(1) << 40;
    if (c < 0 || r < 0) return 0;
    int64_t low = c < r ? c : r, high = c < r ? r : c, value = 1;
    for (int64_t i = 1; i <= low && value < cap; i++) value = value * (high + i) / i;
    return value < cap ? value : cap;
}

static inline int method_revolve_repeats(int l, int c)
{
    int r = 0;
    while (method_beta(c, r) < l) r++;
    return r;
}

/* Fewest advances: r l - beta(c + 1, r - 1). */
static inline int64_t method_revolve_advances(int l, int c)
{
    int r = method_revolve_repeats(l, c);
    return (int64_t)r * l - method_beta(c + 1, r - 1);
}

/* Where the next checkpoint goes: the first or the last of the optimal places. */
static inline int method_revolve_split(int l, int c, int late)
{
    int r = method_revolve_repeats(l, c);
    int64_t first = method_beta(c, r - 2), last = method_beta(c, r - 1);
    if (first < l - method_beta(c - 1, r)) first = l - method_beta(c - 1, r);
    if (last > l - method_beta(c - 1, r - 1)) last = l - method_beta(c - 1, r - 1);
    return (int)(late ? last : first > 1 ? first : 1);
}

/* Every backward step follows a fresh forward of that step, whose inner tensors it reads. */
static inline void method_revolve_list(method_search *s, int from, int to, int c, int late)
{
    while (to > from && c > 1) {
        int split = from + method_revolve_split(to - from + 1, c, late);
        method_forward(&s->chain, from, split - 1, &s->trial);
        method_revolve_list(s, split, to, c - 1, late);
        to = split - 1;
    }
    for (; to >= from; to--) {
        method_forward(&s->chain, from, to, &s->trial);
        method_backward(&s->chain, to, to, &s->trial);
    }
}

/* All numbers of checkpoints up to 512 stages; then every sixteenth part of it. */
static inline int method_revolve(const method_graph *g, uint64_t budget, method_list *out)
{
    method_search s = method_search_begin(g, 1, METHOD_OPS_MAX, budget, out);
    int n = s.chain.count;
    for (int c = 1; c <= n; c += n > 512 ? 1 + c / 16 : 1) {
        if (method_revolve_advances(n, c) > METHOD_LIST_MAX) continue;
        for (int late = 0; late < 2; late++) {
            method_clear(&s.trial);
            method_revolve_list(&s, 0, n - 1, c, late);
            method_try(&s);
        }
    }
    return method_search_end(&s);
}

/* ---- rotor: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova: Optimal checkpointing for heterogeneous chains (2019)
   ---- */

/* Peak of a span of ops, counting `start` (there before it) and what the span makes. death[op] is scratch for every op;
   tensors with stays[op] live to the span's end, others to their last reader, and if they have none: those of `start`
   not at all, a made one during its own op. */
static inline uint64_t method_span_peak(const method_graph *g, const int *ops, int count, const int *start, int started,
                                        const unsigned char *stays, int *death)
{
    const int outside = -2;
    uint64_t *dies = method_zeros((size_t)count + 1, sizeof *dies), live = 0, peak = 0;
    for (int i = 0; i < g->op_count; i++) death[i] = outside;
    for (int i = 0; i < started; i++) death[start[i]] = stays[start[i]] ? count : -1;
    for (int i = 0; i < count; i++) death[ops[i]] = stays[ops[i]] ? count : i;
    for (int i = 0; i < count; i++)
        for (int k = 0; k < g->ops[ops[i]].input_count; k++) {
            int in = g->inputs[g->ops[ops[i]].first_input + k];
            if (death[in] != outside && death[in] < i) death[in] = i;
        }
    for (int i = 0; i < started; i++)
        if (death[start[i]] >= 0) { live += g->ops[start[i]].bytes; dies[death[start[i]]] += g->ops[start[i]].bytes; }
    for (int i = 0; i < count; i++) dies[death[ops[i]]] += g->ops[ops[i]].bytes;
    for (int i = 0; i < count; i++) {
        live += g->ops[ops[i]].bytes;
        if (live + g->ops[ops[i]].workspace > peak) peak = live + g->ops[ops[i]].workspace;
        live -= dies[i];
    }
    free(dies);
    return live > peak ? live : peak;
}

/* Bytes per stage, all above the stage's resident input L(s - 1). Gradients: alive just before the stage is reversed,
   by others than it or by it. */
typedef struct method_rows {
    uint64_t *saved, *peak_all, *peak_none, *peak_back, *gradients;
    double *before;                   /* forward cost of the stages before; one more than stages */
} method_rows;

/* cost[row(s, t)][m]: the least forward cost to reverse stages s..t in m slots with L(s - 1) resident and paid for
   outside, the gradients that enter t inside. Backward ops run once whatever happens, so they are left out. */
typedef struct method_table {
    const method_chain *chain;
    method_rows rows;
    uint64_t *kept;                   /* [s * n + j]: bytes of L(j) \ L(s - 1) */
    uint64_t unit;
    int n, width;
    float *cost;
    int *first;                       /* per row: its first slot of finite cost, `width` if none */
} method_table;

static const float method_never = 1e30f;

static inline void method_mark_saved(const method_chain *c, int s, unsigned char *stays)
{
    const method_graph *g = c->graph;
    for (int r = method_stage_begin(c, s); r <= c->end[s]; r++) stays[g->forward[r]] = c->alive[r] > c->end[s];
    for (int b = c->back[s + 1]; b < c->back[s]; b++) {
        const method_op *op = &g->ops[g->backward[b]];
        for (int k = 0; k < op->input_count; k++) {
            const method_op *in = &g->ops[g->inputs[op->first_input + k]];
            if (!in->backward && c->stage[in->rank] == s) stays[g->inputs[op->first_input + k]] = 1;
        }
    }
}

/* Forward: all outputs that the backward reads and L(s) stay, or L(s) only. */
static inline void method_forward_rows(const method_chain *c, int s, method_rows *rows, unsigned char *stays,
                                       int *death)
{
    const method_graph *g = c->graph;
    int begin = method_stage_begin(c, s), count = c->end[s] - begin + 1;
    const int *ops = g->forward + begin;
    rows->before[s + 1] = rows->before[s];
    for (int i = 0; i < count; i++) {
        stays[ops[i]] = c->alive[begin + i] > c->end[s];
        rows->before[s + 1] += g->ops[ops[i]].cost;
    }
    rows->peak_none[s] = method_span_peak(g, ops, count, NULL, 0, stays, death);
    method_mark_saved(c, s, stays);
    rows->peak_all[s] = method_span_peak(g, ops, count, NULL, 0, stays, death);
    rows->saved[s] = 0;
    for (int i = 0; i < count; i++)
        if (stays[ops[i]]) rows->saved[s] += g->ops[ops[i]].bytes;
}

/* Backward: starts with what the forward saved and the gradients alive; `reader` is the last backward rank reading an
   op. */
static inline void method_backward_rows(const method_chain *c, int s, method_rows *rows, const int *reader,
                                        unsigned char *stays, int *death)
{
    const method_graph *g = c->graph;
    int begin = method_stage_begin(c, s), from = c->back[s + 1], to = c->back[s], started = 0;
    int *start = method_ints(g->op_count, 0);
    method_mark_saved(c, s, stays);
    for (int r = begin; r <= c->end[s]; r++) {
        if (stays[g->forward[r]]) start[started++] = g->forward[r];
        stays[g->forward[r]] = 0;
    }
    rows->gradients[s] = 0;
    for (int b = 0; b < to; b++) {
        stays[g->backward[b]] = reader[g->backward[b]] >= to;
        if (b >= from || reader[g->backward[b]] < from) continue;
        start[started++] = g->backward[b];
        rows->gradients[s] += g->ops[g->backward[b]].bytes;
    }
    rows->peak_back[s] = method_span_peak(g, g->backward + from, to - from, start, started, stays, death);
    free(start);
}

static inline int *method_backward_readers(const method_graph *g)
{
    int *reader = method_ints(g->op_count, -1);
    for (int b = 0; b < g->backward_count; b++) {
        const method_op *op = &g->ops[g->backward[b]];
        for (int k = 0; k < op->input_count; k++) reader[g->inputs[op->first_input + k]] = b;
    }
    return reader;
}

static inline void method_rows_fill(const method_chain *c, method_rows *rows)
{
    size_t n = (size_t)c->count;
    uint64_t **parts[] = { &rows->saved, &rows->peak_all, &rows->peak_none, &rows->peak_back, &rows->gradients };
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) *parts[i] = method_zeros(n, sizeof **parts[i]);
    rows->before = method_zeros(n + 1, sizeof *rows->before);
    unsigned char *stays = method_zeros((size_t)c->graph->op_count, 1);
    int *death = method_ints(c->graph->op_count, 0), *reader = method_backward_readers(c->graph);
    for (int s = 0; s < c->count; s++) {
        method_forward_rows(c, s, rows, stays, death);
        method_backward_rows(c, s, rows, reader, stays, death);
    }
    free(stays); free(death); free(reader);
}

/* L(j) \ L(s - 1) is what stages s..j made of L(j): whatever L(j) has from before s, L(s - 1) has too. */
static inline void method_kept_fill(method_table *t)
{
    const method_chain *c = t->chain;
    t->kept = method_zeros((size_t)t->n * (size_t)t->n, sizeof *t->kept);
    for (int r = 0; r < c->graph->forward_count; r++)
        for (int j = c->stage[r]; j < t->n && c->alive[r] > c->end[j]; j++)
            for (int s = 0; s <= c->stage[r]; s++) t->kept[s * t->n + j] += c->graph->ops[c->graph->forward[r]].bytes;
}

/* Sizes are rounded up to slots, and past the table's end they are all alike. */
static inline int method_slots(const method_table *t, uint64_t bytes)
{
    uint64_t slots = bytes / t->unit + (bytes % t->unit != 0);
    return slots < (uint64_t)t->width ? (int)slots : t->width;
}

static inline size_t method_row(const method_table *t, int from, int to)
{
    return (size_t)from * (size_t)(2 * t->n - from + 1) / 2 + (size_t)(to - from);
}

/* What one choice for (s, t) costs and needs: the row `then` shifted by `shift` slots, the row `rest` at the same slot
   (none if negative), a constant, and a least slot. split 0: run stage s and save everything; else: run s..split-1, and
   keep L(split-1). */
typedef struct method_choice { int split, least, shift; int64_t then, rest; float cost; } method_choice;

static inline method_choice method_choose_all(const method_table *t, int s, int to)
{
    uint64_t run = t->rows.gradients[to] + t->rows.peak_all[s], back = t->rows.peak_back[s];
    method_choice c = { .shift = method_slots(t, t->rows.saved[s]), .then = -1, .rest = -1 };
    c.least = method_slots(t, run > back ? run : back);
    if (to > s) c.then = (int64_t)method_row(t, s + 1, to);
    c.cost = (float)(t->rows.before[s + 1] - t->rows.before[s]);
    return c;
}

/* *need is the footprint of running s..split-1 with nothing saved; it grows with the split. */
static inline method_choice method_choose_split(const method_table *t, int s, int to, int split, uint64_t *need)
{
    uint64_t held = split - 1 > s ? t->kept[s * t->n + split - 2] : 0;
    if (held + t->rows.peak_none[split - 1] > *need) *need = held + t->rows.peak_none[split - 1];
    method_choice c = { .split = split, .least = method_slots(t, t->rows.gradients[to] + *need) };
    c.shift = method_slots(t, t->kept[s * t->n + split - 1]);
    c.then = (int64_t)method_row(t, split, to);
    c.rest = (int64_t)method_row(t, s, split - 1);
    c.cost = (float)(t->rows.before[split] - t->rows.before[s]);
    return c;
}

/* The table's time is spent here: two plain loops, the second for a row by itself or a constant. */
static inline void method_relax(const method_table *t, float *restrict row, method_choice c)
{
    int least = c.least;
    if (c.then >= 0 && least < t->first[c.then] + c.shift) least = t->first[c.then] + c.shift;
    if (c.rest >= 0 && least < t->first[c.rest]) least = t->first[c.rest];
    if (least >= t->width) return;
    const float *then = c.then >= 0 ? t->cost + (size_t)c.then * (size_t)t->width : NULL;
    const float *rest = c.rest >= 0 ? t->cost + (size_t)c.rest * (size_t)t->width : NULL;
    if (then && rest)
        for (int m = least; m < t->width; m++) {
            float cost = c.cost + then[m - c.shift] + rest[m];
            row[m] = cost < row[m] ? cost : row[m];
        }
    else
        for (int m = least; m < t->width; m++) {
            float cost = c.cost + (then ? then[m - c.shift] : 0);
            row[m] = cost < row[m] ? cost : row[m];
        }
}

static inline void method_fill_row(method_table *t, int s, int to)
{
    size_t at = method_row(t, s, to);
    float *row = t->cost + at * (size_t)t->width;
    uint64_t need = 0;
    for (int m = 0; m < t->width; m++) row[m] = method_never;
    method_relax(t, row, method_choose_all(t, s, to));
    for (int split = s + 1; split <= to; split++) method_relax(t, row, method_choose_split(t, s, to, split, &need));
    t->first[at] = 0;
    while (t->first[at] < t->width && row[t->first[at]] >= method_never) t->first[at]++;
}

static inline method_table method_table_make(const method_chain *c, uint64_t budget)
{
    method_table t = { .chain = c, .unit = budget / METHOD_SLOTS + 1, .n = c->count, .width = METHOD_SLOTS_SWEPT + 1 };
    size_t rows = (size_t)t.n * (size_t)(t.n + 1) / 2;
    method_rows_fill(c, &t.rows);
    method_kept_fill(&t);
    t.cost = method_resize(NULL, rows * (size_t)t.width, sizeof *t.cost);
    t.first = method_resize(NULL, rows, sizeof *t.first);
    for (int length = 1; length <= t.n; length++)
        for (int s = 0; s + length <= t.n; s++) method_fill_row(&t, s, s + length - 1);
    return t;
}

static inline void method_table_free(method_table *t)
{
    free(t->rows.saved);
    free(t->rows.peak_all);
    free(t->rows.peak_none);
    free(t->rows.peak_back);
    free(t->rows.gradients);
    free(t->rows.before); free(t->kept); free(t->cost); free(t->first);
}

static inline float method_choice_cost(const method_table *t, method_choice c, int m)
{
    if (m < c.least || m < c.shift) return method_never;
    float then = c.then >= 0 ? t->cost[(size_t)c.then * (size_t)t->width + (size_t)(m - c.shift)] : 0;
    float rest = c.rest >= 0 ? t->cost[(size_t)c.rest * (size_t)t->width + (size_t)m] : 0;
    return c.cost + then + rest;
}

/* The table holds costs only: the choice behind one is found again. */
static inline method_choice method_best_choice(const method_table *t, int s, int to, int m)
{
    method_choice best = method_choose_all(t, s, to);
    float least = method_choice_cost(t, best, m);
    uint64_t need = 0;
    for (int split = s + 1; split <= to; split++) {
        method_choice c = method_choose_split(t, s, to, split, &need);
        float cost = method_choice_cost(t, c, m);
        if (cost < least) { least = cost; best = c; }
    }
    return best;
}

static inline void method_trace(const method_table *t, int s, int to, int m, method_list *list)
{
    method_choice c = method_best_choice(t, s, to, m);
    method_forward(t->chain, s, c.split ? c.split - 1 : s, list);
    if (c.split) {
        method_trace(t, c.split, to, m - c.shift, list);
        method_trace(t, s, c.split - 1, m, list);
        return;
    }
    if (to > s) method_trace(t, s + 1, to, m - c.shift, list);
    method_backward(t->chain, s, s, list);
}

/* The published plan is the one for all slots of the budget. Here every number of slots up to two budgets is traced,
   and the fastest list that fits wins: the table rounds up, keeps outputs that no backward op reads and counts some
   bytes twice. */
static inline int method_rotor_stages(const method_graph *g, int blocks, uint64_t budget, method_list *out)
{
    method_search s = method_search_begin(g, blocks, METHOD_DP_STAGES, budget, out);
    method_table t = method_table_make(&s.chain, budget);
    for (int m = METHOD_SLOTS_SWEPT; m >= t.first[method_row(&t, 0, t.n - 1)]; m--) {
        method_clear(&s.trial);
        method_trace(&t, 0, t.n - 1, m, &s.trial);
        method_try(&s);
    }
    method_table_free(&t);
    return method_search_end(&s);
}

/* The better of two granularities: single-tensor stages as published; every forward op a stage, live sets between
   them. */
static inline int method_rotor(const method_graph *g, uint64_t budget, method_list *out)
{
    method_list ops = { 0 };
    method_rotor_stages(g, 1, budget, out);
    if (method_rotor_stages(g, 0, budget, &ops)) method_consider(g, budget, &ops, out);
    method_list_free(&ops);
    return out->count > 0;
}

#endif
