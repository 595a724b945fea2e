/* steps.c - whole training steps of gcp beside PyTorch, TensorFlow and JAX: time and peak memory, plain and
   checkpointed.

       steps [--threads N] [--torch PYTHON] [--tensorflow PYTHON] [--jax PYTHON] [--only TEXT] [--rounds 5]
             [--policies 0|1] [--store float|bf16] [--out FOLDER]

   Each PYTHON is one that has the tool. A peer runs twice: alone, with what it frees given back at once, for its peak
   of resident memory above what it held before its first step; then, as it is, a step in turn with the others, a fifth
   of a second after the one before, for its time.
   gcp's bytes are counted alike: all of the plan's but the weights and the input, which a peer holds before its
   first step. Checkpointed, gcp has the least bytes that a peer needed as its budget, or half of what keep-all takes
   where there is no peer; where no schedule fits, the least bytes that one does. --policies 1: every policy of
   PyTorch's in turn (checkpoint_sequential in each number of segments, selective, save_on_cpu) and TensorFlow's
   (recompute_grad), and gcp in its bytes (policies.csv). --store bf16: activations in bfloat16, beside PyTorch's
   autocast, all kept (mode autocast). Prints a table and writes steps.csv:
   network,mode,tool,version,ms_median,ms_min,peak_bytes. The median is of the rounds. */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include <signal.h>
#include <time.h>
#include "networks.h"
#include "peer.h"
#include "../../tests/support/clock.h"
#include "../../tests/support/table.h"

enum { TOOLS = 3, MOST_ROUNDS = 64 };

typedef struct tool { const char *name, *python; peer peer; int runs; double ms[MOST_ROUNDS]; size_t peak; } tool;
static tool tools[TOOLS] = { { .name = "torch" }, { .name = "tensorflow" }, { .name = "jax" } };

static network resnet18_cifar(gcp_tape *net)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(128, 32, 32, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(128)), x = image;
    GCP_SEGMENT(net, "stem") x = norm_relu(NULL, conv(NULL, x, 64, 3, 1));
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < 2; i++) x = residual_block(net, NULL, x, 64 << stage, stage && !i ? 2 : 1, 0);
    return network_of(image, labels, mean_head(net, NULL, x, 0, 10));
}

static network of_loss(gcp_tensor loss, gcp_tensor image, gcp_tensor labels)
{
    return (network){ .image = image, .labels = labels, .loss = loss };
}
static network tf2_checkpointing_64(gcp_tape *net)
{
    gcp_tensor x, l, loss = tf2_checkpointing(net, 64, 16, &x, &l);
    return of_loss(loss, x, l);
}
static network tf2_checkpointing_256(gcp_tape *net)
{
    gcp_tensor x, l, loss = tf2_checkpointing(net, 256, 16, &x, &l);
    return of_loss(loss, x, l);
}
static network recompute_grad_64(gcp_tape *net)
{
    gcp_tensor x, l, loss = recompute_grad(net, 3, 1, 64, 16, &x, &l);
    return of_loss(loss, x, l);
}
static network densenet_bc_cifar(gcp_tape *net) { return densenet_bc(net, 100, 12, 64, 32, 10); }
static network vit_tiny_224(gcp_tape *net) { return named_vit_tiny(net, 8, 224); }
static network gpt2_512(gcp_tape *net) { return named_gpt2(net, 1, 512); }
static network mobilenet_v3_small_96(gcp_tape *net) { return named_mobilenet_v3_small(net, 32, 96); }
/* Their twins leave out no samples. */
static network efficientnet_b0_224(gcp_tape *net) { *network_drop() = 0; return named_efficientnet_b0(net, 8, 224); }
static network convnext_t_224(gcp_tape *net) { *network_drop() = 0; return named_convnext_t(net, 8, 224); }
static network vit_small_224(gcp_tape *net) { return named_vit_small(net, 8, 224); }
static network resnet50_224(gcp_tape *net) { return resnet50(net, 8, 224, 1000); }

static const struct { const char *name; network (*record)(gcp_tape *net); double momentum;
} networks[] = { { "tf2_checkpointing_64", tf2_checkpointing_64, 0 },
                 { "tf2_checkpointing_256", tf2_checkpointing_256, 0 },
                 { "recompute_grad_64", recompute_grad_64, 0 },
                 { "resnet50", resnet50_224, 0.9 },
                 { "resnet18_cifar", resnet18_cifar, 0.9 },
                 { "densenet_bc", densenet_bc_cifar, 0.9 },
                 { "vit_tiny", vit_tiny_224, 0 },
                 { "vit_small", vit_small_224, 0 },
                 { "gpt2", gpt2_512, 0 },
                 { "mobilenet_v3_small", mobilenet_v3_small_96, 0.9 },
                 { "efficientnet_b0", efficientnet_b0_224, 0.9 },
                 { "convnext_t", convnext_t_224, 0 } };
static const char *const modes[] = { "plain", "checkpointed" }, *const halves = "autocast";
static gcp_store store;
enum { MOST_SEGMENTS = 32 };

static unsigned char *tape_memory;
static const size_t tape_room = GCP_MB(256);
static gcp_target target;
static int rounds = 5;
static FILE *csv;

/* What ran before has threads that wait for more, awake for a while. */
static void rest(void)
{
    struct timespec t = { 0, 200000000 };
    nanosleep(&t, NULL);
}

/* ---- Peers ---- */

static int tool_start(tool *t, const char *name, const char *mode)
{
    char script[1024], threads[16];
    char *words[] = { (char *)(size_t)name, (char *)(size_t)mode, threads, NULL };
    snprintf(script, sizeof script, BENCH_PEERS "/%s_steps.py", t->name);
    snprintf(threads, sizeof threads, "%d", target.threads);
    return t->python && peer_start(&t->peer, t->python, script, words);
}

static int tool_step(tool *t, double *ms, size_t *peak)
{
    fprintf(t->peer.to, "step\n");
    const char *line = peer_answer(&t->peer);
    return line && sscanf(line, "%lf %zu", ms, peak) == 2;
}

/* Its peak of live memory, from a run of its own. 0: it does not run this. */
static int tool_measure(tool *t, const char *name, const char *mode)
{
    double ms;
    t->runs = 0;
    if (!t->python || (mode == halves && t != tools)) return 0;
    setenv("MALLOC_MMAP_THRESHOLD_", "65536", 1);
    if (tool_start(t, name, mode)) { t->runs = tool_step(t, &ms, &t->peak); peer_stop(&t->peer); }
    unsetenv("MALLOC_MMAP_THRESHOLD_");
    return t->runs;
}

/* ---- gcp ---- */

static int fail(const char *what) { fprintf(stderr, "steps: %s\n", what); exit(1); }

/* What a peer holds before its first step. */
static size_t resident(const gcp_plan *keep)
{
    return keep->split.weights + keep->split.statistics + keep->split.inputs;
}

static gcp_plan plan_of(const network *n, double momentum, size_t budget, gcp_plan *keep)
{
    gcp_tape *tape = n->loss.tape;
    *keep = gcp_plan_make(n->loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = momentum,
                          .fuse_update = 1, .target = &target, .store = store);
    if (!keep->core) fail(gcp_error(tape));
    if (!budget) return *keep;
    budget = budget == 1 ? keep->state_bytes + keep->slab_bytes / 2 : budget + resident(keep);
    gcp_plan plan = gcp_plan_make(n->loss, .policy = GCP_POLICY_BUDGET, .budget = budget,
                                  .optimizer = GCP_OPTIMIZER_SGD, .momentum = momentum, .fuse_update = 1,
                                  .target = &target);
    if (plan.core) return plan;
    gcp_error_clear(tape);
    plan = gcp_plan_make(n->loss, .policy = GCP_POLICY_BUDGET, .budget = plan.least_bytes,
                         .optimizer = GCP_OPTIMIZER_SGD, .momentum = momentum, .fuse_update = 1, .target = &target);
    if (!plan.core) fail(gcp_error(tape));
    return plan;
}

static void fill(gcp_plan *plan, const network *n)
{
    gcp_shape s = gcp_shape_of(n->image);
    size_t count = gcp_elements(n->image), answers = gcp_elements(n->labels);
    const int words = s.rank == 2;                       /* a language model's: ids, in place of pixels */
    float *x = malloc(count * sizeof *x);
    int *labels = calloc(answers, sizeof *labels), *ids = calloc(count, sizeof *ids);
    if (!x || !labels || !ids) fail("out of memory");
    for (size_t i = 0; i < count; i++) x[i] = (float)((int)(i * 7919 % 2001) - 1000) / 577;
    for (size_t i = 0; i < count; i++) ids[i] = (int)(i * 7919 % 2001);
    for (size_t i = 0; i < answers; i++) labels[i] = (int)(i % 10);
    gcp_write(plan, n->image, words ? (const void *)ids : x);
    gcp_write(plan, n->labels, labels);
    free(x); free(labels); free(ids);
}

/* ---- Rows ---- */

static double row(const char *name, const char *mode, const char *who, const char *version, double *ms, size_t peak,
                  double own)
{
    qsort(ms, (size_t)rounds, sizeof *ms, by_size);
    double median = ms[rounds / 2];
    printf("%-15s %-12s %-10s %-14s %9.1f ms (%.1f to %.1f) %8.1f MiB", name, mode, who, version, median, ms[0],
           ms[rounds - 1], (double)peak / 1048576);
    if (own > 0) printf("   gcp %.2f times as fast", median / own);
    printf("\n");
    fprintf(csv, "%s,%s,%s,%s,%.2f,%.2f,%zu\n", name, mode, who, version, median, ms[0], peak);
    fflush(stdout);
    return median;
}

/* 0: no peer runs it. */
static int run(int at, const char *mode)
{
    const char *name = networks[at].name;
    const int plain = !strcmp(mode, "plain") || mode == halves;
    size_t least = 0, peak;
    double ms[MOST_ROUNDS];
    for (int i = 0; i < TOOLS; i++)
        if (tool_measure(&tools[i], name, mode) && (!least || tools[i].peak < least)) least = tools[i].peak;
    for (int i = 0; plain && i < TOOLS; i++)
        if (tools[i].python && !tools[i].runs) fprintf(stderr, "steps: %s does not run %s\n", tools[i].name, name);
    if (!least && strcmp(mode, modes[1]) && !plain) return 0;
    gcp_arena arena = gcp_arena_from(tape_memory, tape_room);
    network n = networks[at].record(gcp_tape_make(&arena, .ops = 1024));
    gcp_plan keep, plan = plan_of(&n, networks[at].momentum, plain ? 0 : GCPI_MAX(least, 1), &keep);
    void *memory = aligned_alloc(4096, gcpi_round(plan.bytes, 4096));
    if (!memory || gcp_bind(&plan, memory, plan.bytes) != GCP_OK) fail("the plan cannot be bound");
    fill(&plan, &n);
    for (int i = 0; i < TOOLS; i++) tools[i].runs = tools[i].runs && tool_start(&tools[i], name, mode);
    for (int r = -1; r < rounds; r++) {
        rest();
        double start = seconds_now();
        gcp_step(&plan, .lr = 0.001);
        if (r >= 0) ms[r] = 1e3 * (seconds_now() - start);
        for (int i = 0; i < TOOLS; i++) {
            if (!tools[i].runs) continue;
            rest();
            tools[i].runs = tool_step(&tools[i], &tools[i].ms[GCPI_MAX(r, 0)], &peak);
        }
    }
    if (gcp_error(n.loss.tape)) fail(gcp_error(n.loss.tape));
    char version[32];
    snprintf(version, sizeof version, "%d.%d.%d", GCP_VERSION_MAJOR, GCP_VERSION_MINOR, GCP_VERSION_PATCH);
    double own = row(name, mode, "gcp", version, ms, plan.bytes - resident(&keep), 0);
    for (int i = 0; i < TOOLS; i++) {
        if (!tools[i].runs) continue;
        row(name, mode, tools[i].name, tools[i].peer.version, tools[i].ms, tools[i].peak, own);
        peer_stop(&tools[i].peer);
    }
    free(memory);
    return 1;
}

static void run_policies(int at)
{
    char mode[32];
    run(at, "plain");
    for (int i = 2, more = 1; more && i <= MOST_SEGMENTS; i++) {
        snprintf(mode, sizeof mode, "segments_%d", i);
        more = run(at, mode);
    }
    run(at, "selective");
    run(at, "save_on_cpu");
    run(at, "recompute_grad");
}

static void run_network(int at, int policies)
{
    if (store) { run(at, halves); return; }
    if (policies) { run_policies(at); return; }
    for (int mode = 0; mode < 2; mode++) run(at, modes[mode]);
}

/* float or bf16. */
static int store_read(const char *word)
{
    store = strcmp(word, "bf16") ? GCP_STORE_REAL : GCP_STORE_BF16;
    return store || !strcmp(word, "float");
}

static void usage(FILE *to)
{
    fprintf(to, "steps [--threads N] [--torch PYTHON] [--tensorflow PYTHON] [--jax PYTHON] [--only TEXT] [--rounds 5]\n"
                "      [--policies 0|1] [--store float|bf16] [--out FOLDER]\n"
                "PYTHON: one that has the tool; a row takes minutes, as each peer also runs alone for its peak\n"
                "--only: rows whose names hold TEXT; --policies 1: each policy of the peers; steps.csv is written to "
                "FOLDER, or here\nrows:");
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) fprintf(to, " %s", networks[i].name);
    fprintf(to, "\n");
}

int main(int argc, char **argv)
{
    gcp_target wish = { 0 };
    const char *only = "", *out = ".";
    int policies = 0, found = 0;
    for (int i = 1; i < argc; i += 2) {
        const char *value = i + 1 < argc ? argv[i + 1] : "";
        int known = 0;
        for (int t = 0; t < TOOLS; t++)
            if (!strncmp(argv[i], "--", 2) && !strcmp(argv[i] + 2, tools[t].name)) {
                tools[t].python = value;
                known = 1;
            }
        if (known) continue;
        if (!strcmp(argv[i], "--threads")) wish.threads = atoi(value);
        else if (!strcmp(argv[i], "--only")) only = value;
        else if (!strcmp(argv[i], "--rounds")) rounds = GCPI_MIN(GCPI_MAX(atoi(value), 1), MOST_ROUNDS);
        else if (!strcmp(argv[i], "--policies")) policies = atoi(value);
        else if (!strcmp(argv[i], "--out")) out = value;
        else if (strcmp(argv[i], "--store") || !store_read(value)) {
            const int help = !strcmp(argv[i], "--help");
            usage(help ? stdout : stderr);
            return !help;
        }
    }
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) found |= strstr(networks[i].name, only) != NULL;
    if (!found) fail("--only: no network has that in its name");
    target = gcpi_target_of(&wish);
    tape_memory = malloc(tape_room);
    if (!tape_memory) fail("out of memory");
    csv = table_open("steps", out, store ? "autocast.csv" : policies ? "policies.csv" : "steps.csv");
    signal(SIGPIPE, SIG_IGN);
    fprintf(csv, "network,mode,tool,version,ms_median,ms_min,peak_bytes\n");
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (strstr(networks[i].name, only)) run_network((int)i, policies);
    free(tape_memory);
    table_close("steps", csv);
    return 0;
}
