/* ops.c - pointwise ops, broadcasts, norms and attention, forward and backward, and the optimisers' updates of a
   weight, beside PyTorch's and beside a copy.

       ops [--threads N] [--torch PYTHON] [--only TEXT] [--rounds 7] [--out FOLDER]

   Each op is planned and run as a user's is, with the gradient of all its inputs; gcp_profile gives the seconds of its
   instructions. PyTorch's forward and backward, and a copy of the first input's bytes, run in turn with it, in each of
   the rounds; figures are medians. ns are those of an element of the first input, or of the weight, whose update has
   one pass; PyTorch's are its fused optimisers. Prints a table and writes ops.csv:
   op,shape,threads,pass,gcp_ms,copy_ms,torch_ms. */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include <signal.h>
#include "peer.h"
#include "../../tests/support/clock.h"
#include "../../tests/support/table.h"

enum { MOST_ROUNDS = 32, HEADS = 6, REPEATS = 3, PASSES = 2 };

typedef gcp_tensor recorder(gcp_tape *net, gcp_tensor x);
typedef struct op { const char *name; recorder *record; int n, l, c; } op;

#define POINTWISE(X) \
    X(relu) X(relu6) X(hard_swish) X(hard_sigmoid) X(square) X(silu) X(mish) X(elu) X(softplus) X(gelu) X(gelu_tanh) \
    X(tanh) X(sigmoid) X(exp)
#define RECORD(name) static gcp_tensor name##_of(gcp_tape *net, gcp_tensor x) { (void)net; return gcp_##name(x); }
POINTWISE(RECORD)

static gcp_tensor other(gcp_tape *net, const char *name, gcp_shape shape)
{
    return gcp_want_grad(gcp_input(net, name, shape));
}
static gcp_tensor gate_of(gcp_tape *net, gcp_tensor x)
{
    return gcp_mul(x, other(net, "gate", GCP_SHAPE(gcp_shape_of(x).d[0], 1, gcp_shape_of(x).d[3])));
}
static gcp_tensor positions_of(gcp_tape *net, gcp_tensor x)
{
    return gcp_add(x, other(net, "positions", GCP_SHAPE(1, gcp_shape_of(x).d[2], gcp_shape_of(x).d[3])));
}
static gcp_tensor softmax_of(gcp_tape *net, gcp_tensor x) { (void)net; return gcp_softmax(x); }
static gcp_tensor layer_norm_of(gcp_tape *net, gcp_tensor x) { (void)net; return gcp_layer_norm(x); }
static gcp_tensor attention_of(gcp_tape *net, gcp_tensor q)
{
    return gcp_attention(q, other(net, "k", gcp_shape_of(q)), other(net, "v", gcp_shape_of(q)), .heads = HEADS);
}
static gcp_tensor attention_causal_of(gcp_tape *net, gcp_tensor q)
{
    return gcp_attention(q, other(net, "k", gcp_shape_of(q)), other(net, "v", gcp_shape_of(q)), .heads = HEADS,
                         .causal = 1);
}

#define ROWS(name) { #name, name##_of, 8, 256, 512 }, { #name, name##_of, 64, 512, 512 },
static const op ops[] = { POINTWISE(ROWS)
    { "gate", gate_of, 32, 784, 96 },
    { "positions", positions_of, 32, 197, 384 },
    { "softmax", softmax_of, 48, 197, 197 },
    { "layer_norm", layer_norm_of, 32, 197, 384 },
    { "attention", attention_of, 8, 197, 64 * HEADS },
    { "attention", attention_of, 2, 512, 64 * HEADS },
    { "attention", attention_of, 1, 2048, 64 * HEADS },
    { "attention_causal", attention_causal_of, 8, 197, 64 * HEADS },
    { "attention_causal", attention_causal_of, 2, 512, 64 * HEADS },
    { "attention_causal", attention_causal_of, 1, 2048, 64 * HEADS } };

enum { WEIGHT = 2048 };                                /* of an update: so many rows and columns */
typedef struct update { const char *name; gcp_optimizer optimizer; double momentum, clip_norm; } update;
static const update updates[] = { { "update_sgd", GCP_OPTIMIZER_SGD, 0, 0 },
                                  { "update_sgd_momentum", GCP_OPTIMIZER_SGD, 0.9, 0 },
                                  { "update_adam", GCP_OPTIMIZER_ADAM, 0, 0 },
                                  { "update_adamw", GCP_OPTIMIZER_ADAMW, 0, 0 },
                                  { "update_adamw_clip_norm", GCP_OPTIMIZER_ADAMW, 0, 1 } };

static peer torch;
static int torch_runs, rounds = 7;
static gcp_target target;
static FILE *csv;

static void *memory_of(size_t size)
{
    void *memory = aligned_alloc(64, (size + 63) / 64 * 64);
    if (!memory) { fprintf(stderr, "ops: out of memory\n"); exit(1); }
    memset(memory, 0, size);
    return memory;
}
static double torch_ask(void)
{
    const char *line = peer_answer(&torch);
    if (!line) { fprintf(stderr, "ops: PyTorch is gone\n"); exit(1); }
    return atof(line);
}

static double updates_seconds(gcp_plan *plan)
{
    const gcpi_list *list = &plan->core->list;
    double sum = 0;
    gcp_profile(plan, .repeats = REPEATS);
    for (ptrdiff_t i = 0; i < list->count; i++)
        if (list->at[i].letter == 'U') sum += gcp_instruction_seconds(plan, (int)i);
    return sum;
}
/* Seconds of one pass: of the instructions with this letter, but for the loss (the last F; the first two B). */
static double gcp_seconds(gcp_plan *plan, int back)
{
    const gcpi_list *list = &plan->core->list;
    double sum = 0;
    int seen = 0, all = 0;
    gcp_profile(plan, .repeats = REPEATS);
    for (ptrdiff_t i = 0; i < list->count; i++) all += list->at[i].letter == (back ? 'B' : 'F');
    for (ptrdiff_t i = 0; i < list->count; i++) {
        if (list->at[i].letter != (back ? 'B' : 'F')) continue;
        if (back ? seen > 1 : seen < all - 1) sum += gcp_instruction_seconds(plan, (int)i);
        seen++;
    }
    return sum;
}
static double torch_seconds(const char *name, int n, int l, int c, int back)
{
    if (!torch_runs) return 0;
    fprintf(torch.to, "op %s %d %d %d %d\n", name, n, l, c, back);
    torch_ask();
    fprintf(torch.to, "run 1\n");                        /* as gcp_profile, which warms up, too */
    torch_ask();
    fprintf(torch.to, "run %d\n", REPEATS);
    return torch_ask() / REPEATS;
}
static double copy_seconds(const void *from, void *to, size_t bytes)
{
    memcpy(to, from, bytes);
    const double begin = seconds_now();
    for (int i = 0; i < REPEATS; i++) {
        memcpy(to, from, bytes);
        __asm__ volatile("" : : "r"(to) : "memory");
    }
    return (seconds_now() - begin) / REPEATS;
}

static double median(double *seconds)
{
    qsort(seconds, (size_t)rounds, sizeof *seconds, by_size);
    return seconds[rounds / 2];
}
static void figures(const op *o, gcp_plan *plan, gcp_tensor x)
{
    const size_t count = gcp_elements(x), bytes = count * sizeof(gcp_real);
    static double gcp[PASSES][MOST_ROUNDS], copy[MOST_ROUNDS], its[PASSES][MOST_ROUNDS];
    void *from = memory_of(bytes), *to = memory_of(bytes);
    for (int i = 0; i < rounds; i++) {
        for (int pass = 0; pass < PASSES; pass++) {
            gcp[pass][i] = gcp_seconds(plan, pass);
            its[pass][i] = torch_seconds(o->name, o->n, o->l, o->c, pass);
        }
        copy[i] = copy_seconds(from, to, bytes);
    }
    const double copied = median(copy), per = 1e9 / (double)count;
    printf("  %-17s %dx%dx%d%*s", o->name, o->n, o->l, o->c, o->n > 9 ? 4 : 5, "");
    for (int pass = 0; pass < PASSES; pass++) {
        const double own = median(gcp[pass]), other = median(its[pass]);
        printf("  %7.3f ns (torch %7.3f: %5.2f)", per * own, per * other, other / own);
        fprintf(csv, "%s,%dx%dx%d,%d,%s,%.4f,%.4f,%.4f\n", o->name, o->n, o->l, o->c, target.threads,
                pass ? "backward" : "forward", 1e3 * own, 1e3 * copied, 1e3 * other);
    }
    printf("  copy %.3f ns: %.2f of it forward\n", per * copied, median(gcp[0]) / copied);
    free(from); free(to);
}
static void update_figures(const update *u, gcp_plan *plan)
{
    const size_t bytes = (size_t)WEIGHT * WEIGHT * sizeof(gcp_real);
    double own[MOST_ROUNDS], copy[MOST_ROUNDS], its[MOST_ROUNDS];
    void *from = memory_of(bytes), *to = memory_of(bytes);
    for (int i = 0; i < rounds; i++) {
        own[i] = updates_seconds(plan);
        its[i] = torch_seconds(u->name, 1, WEIGHT, WEIGHT, 0);
        copy[i] = copy_seconds(from, to, bytes);
    }
    const double per = 1e9 / WEIGHT / WEIGHT, copied = median(copy), ours = median(own), other = median(its);
    printf("  %-22s %dx%d  %7.3f ns (torch %7.3f: %5.2f)  copy %.3f ns: %.2f of it\n", u->name, WEIGHT, WEIGHT,
           per * ours, per * other, other / ours, per * copied, ours / copied);
    fprintf(csv, "%s,%dx%d,%d,update,%.4f,%.4f,%.4f\n", u->name, WEIGHT, WEIGHT, target.threads, 1e3 * ours,
            1e3 * copied, 1e3 * other);
    free(from); free(to);
}
static void fill(gcp_plan *plan, const char *name)
{
    gcp_tensor x = gcp_find(plan->tape, name);
    if (gcp_is_nil(x)) { gcp_error_clear(plan->tape); return; }
    gcp_real *values = (gcp_real *)memory_of(gcp_elements(x) * sizeof *values);
    for (size_t i = 0; i < gcp_elements(x); i++)
        values[i] = (gcp_real)((int)(i * 2654435761u >> 8 & 0xffff) - 32768) / (gcp_real)16384;
    gcp_write(plan, x, values);
    free(values);
}
static void run(const op *o)
{
    static const char *const names[] = { "x", "gate", "positions", "k", "v" };
    const size_t room = GCP_MB(64);
    unsigned char *memory = (unsigned char *)memory_of(room);
    gcp_arena arena = gcp_arena_from(memory, room);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    gcp_tensor x = other(net, "x", GCP_SHAPE(o->n, o->l, o->c)), y = o->record(net, x);
    gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL, .target = &target);
    const size_t size = gcp_plans_room(&plan);
    void *step = memory_of(size);
    gcp_bind(&plan, step, size);
    for (int i = 0; i < 5; i++) fill(&plan, names[i]);
    gcp_step(&plan);
    if (gcp_error(net)) { fprintf(stderr, "ops: %s: %s\n", o->name, gcp_error(net)); exit(1); }
    figures(o, &plan, x);
    free(step); free(memory);
}
static void run_update(const update *u)
{
    const size_t room = GCP_MB(8);
    unsigned char *memory = (unsigned char *)memory_of(room);
    gcp_arena arena = gcp_arena_from(memory, room);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, WEIGHT));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_linear(x, .out = WEIGHT, .no_bias = 1)), .policy = GCP_POLICY_KEEP_ALL,
                                  .optimizer = u->optimizer, .momentum = u->momentum, .clip_norm = u->clip_norm,
                                  .target = &target);
    const size_t size = gcp_plans_room(&plan);
    void *step = memory_of(size);
    gcp_bind(&plan, step, size);
    fill(&plan, "x");
    gcp_step(&plan, .lr = 1e-3);
    if (gcp_error(net)) { fprintf(stderr, "ops: %s: %s\n", u->name, gcp_error(net)); exit(1); }
    update_figures(u, &plan);
    free(step); free(memory);
}

int main(int argc, char **argv)
{
    gcp_target wish = { 0 };
    const char *out = ".", *python = NULL, *only = "";
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        if (!strcmp(argv[i], "--threads")) wish.threads = atoi(value);
        else if (!strcmp(argv[i], "--torch")) python = value;
        else if (!strcmp(argv[i], "--only")) only = value;
        else if (!strcmp(argv[i], "--rounds")) rounds = GCPI_MIN(GCPI_MAX(atoi(value), 1), (int)MOST_ROUNDS);
        else if (!strcmp(argv[i], "--out")) out = value;
        else {
            fprintf(stderr, "ops [--threads N] [--torch PYTHON] [--only TEXT] [--rounds 7] [--out FOLDER]\n");
            return 1;
        }
    }
    target = gcpi_target_of(&wish);
    char threads[16];
    snprintf(threads, sizeof threads, "%d", target.threads);
    signal(SIGPIPE, SIG_IGN);
    torch_runs = python && peer_start(&torch, python, BENCH_PEERS "/torch_ops.py", (char *[]) { threads, NULL });
    if (python && !torch_runs) { fprintf(stderr, "ops: %s has no torch\n", python); return 1; }
    csv = table_open("ops", out, "ops.csv");
    fprintf(csv, "op,shape,threads,pass,gcp_ms,copy_ms,torch_ms\n");
    printf("%d thread(s), torch %s; medians of %d; forward, then backward, of an element\n", target.threads,
           torch_runs ? torch.version : "-", rounds);
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++) if (strstr(ops[i].name, only)) run(&ops[i]);
    for (size_t i = 0; i < sizeof updates / sizeof *updates; i++)
        if (strstr(updates[i].name, only)) run_update(&updates[i]);
    if (torch_runs) peer_stop(&torch);
    table_close("ops", csv);
    return 0;
}
