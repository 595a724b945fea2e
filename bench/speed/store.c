/* store.c - whole training steps with activations in two bytes (GCP_STORE_BF16) beside float, a step in turn: time, the
   plan's bytes, and the activations among them.

       store [--threads N] [--isa N] [--only TEXT] [--rounds 7] [--ops 0] [--out FOLDER]

   Both keep all. Activations: values and their gradients at the peak, with masks and indices, as the plan's split has
   them. Then float in the bytes that bfloat16 takes for all: what it must run again, and how long a step is. --isa: an
   instruction set by its number (4, GCP_ISA_AVX512, multiplies no bfloat16). --ops N: the N tasks that lose most by
   bfloat16 and the N that gain most, from a profile of each. Writes store.csv:
   network,batch,plan,ms_median,ms_min,bytes,activation_bytes. */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include <time.h>
#include "networks.h"
#include "../../tests/support/clock.h"

enum { MOST_ROUNDS = 64, PLANS = 3 };
static const char *const plan_names[PLANS] = { "float", "bf16", "float_in_bf16_bytes" };

static network resnet50_8(gcp_tape *net) { return resnet50(net, 8, 224, 1000); }
static network resnet18_64(gcp_tape *net) { return resnet(net, 18, 8, 224, 1000); }
static network densenet_bc_64(gcp_tape *net) { return densenet_bc(net, 100, 12, 64, 32, 10); }
static network unet_2(gcp_tape *net) { return unet(net, 2, 256, 256, 2); }
static network vit_tiny_8(gcp_tape *net) { return named_vit_tiny(net, 8, 224); }
static const struct {
    const char *name;
    int batch;
    network (*record)(gcp_tape *net);
} networks[] = { { "resnet50", 8, resnet50_8 },
                 { "resnet18", 8, resnet18_64 },
                 { "densenet_bc", 64, densenet_bc_64 },
                 { "unet", 2, unet_2 },
                 { "vit_tiny", 8, vit_tiny_8 } };

static gcp_target target;
static int rounds = 7, ops;
static FILE *csv;

static int fail(const char *what)
{
    fprintf(stderr, "store: %s\n", what);
    exit(1);
}

/* A tape, its plan, the plan's memory: each plan trains a network of its own, so that steps can go in turns. */
typedef struct run {
    gcp_arena arena;
    network net;
    gcp_plan plan;
    void *memory;
    double ms[MOST_ROUNDS];
} run;

static size_t activations(const gcp_plan *plan)
{
    return plan->split.kept + plan->split.recomputed + plan->split.activation_gradients;
}

static void open_run(run *r, int which, gcp_store store, size_t budget)
{
    const size_t room = GCP_MB(512);
    memset(r, 0, sizeof *r);
    r->arena = gcp_arena_from(malloc(room), room);
    gcp_tape *t = gcp_tape_make(&r->arena, .ops = 4096, .seed = 1);
    r->net = networks[which].record(t);
    r->plan = gcp_plan_make(r->net.loss, .store = store, .policy = budget ? GCP_POLICY_BUDGET : GCP_POLICY_KEEP_ALL,
                            .budget = budget, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9, .target = &target);
    if (!gcp_plan_ok(&r->plan)) return;
    r->memory = aligned_alloc(64, gcpi_round(r->plan.room, 64));
    if (!r->memory) fail("out of memory");
    memset(r->memory, 0, r->plan.room);
    gcp_bind(&r->plan, r->memory, r->plan.room);
    gcp_real *image = malloc(gcp_elements(r->net.image) * sizeof *image);
    int32_t *labels = calloc(gcp_elements(r->net.labels), sizeof *labels);
    for (size_t i = 0; i < gcp_elements(r->net.image); i++)
        image[i] = (gcp_real)((i * 2654435761u >> 8) % 2001) / 1000 - 1;
    gcp_write(&r->plan, r->net.image, image);
    gcp_write(&r->plan, r->net.labels, labels);
    free(image);
    free(labels);
    if (gcp_error(t)) fail(gcp_error(t));
}
static void close_run(run *r)
{
    free(r->memory);
    free(r->arena.base);
}

static double step_ms(run *r)
{
    const double start = seconds_now();
    gcp_step(&r->plan, .lr = 1e-4);
    return (seconds_now() - start) * 1e3;
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, by_size);
    return n % 2 ? x[n / 2] : (x[n / 2 - 1] + x[n / 2]) / 2;
}

/* ---- the profile ---- */

typedef struct text {
    char *at;
    size_t used, size;
} text;
static void append(void *context, const char *from, size_t size)
{
    text *t = context;
    if (t->used + size + 1 > t->size) t->at = realloc(t->at, t->size = 2 * (t->used + size + 1));
    memcpy(t->at + t->used, from, size);
    t->at[t->used += size] = 0;
}
typedef struct line {
    const char *key;
    int length;
    double seconds[2];
} line;
static int by_loss(const void *a, const void *b)
{
    const line *x = a, *y = b;
    const double p = x->seconds[1] - x->seconds[0], q = y->seconds[1] - y->seconds[0];
    return (p < q) - (p > q);
}
static int lines_of(const char *from, line *to, int which, int most)
{
    int n = 0;
    for (const char *at = from, *end; *at && n < most; at = end + 1) {
        end = strchr(at, '\n');
        if (!end) break;
        const char *number = end;
        while (number > at && number[-1] != ' ') number--;
        if (*at == '#' || number == at) continue;
        to[n].key = at;
        to[n].length = (int)(number - at);
        to[n++].seconds[which] = strtod(number, NULL);
    }
    return n;
}
/* The key of a task of halves says so behind its first word. */
static int same_task(const line *floats, const line *halves)
{
    static const char mark[] = " bf16";
    const size_t n = (size_t)floats->length, word = strcspn(floats->key, " "), skip = sizeof mark - 1;
    if (!strncmp(halves->key + word, mark, skip))
        return (size_t)halves->length == n + skip && !strncmp(floats->key, halves->key, word) &&
               !strncmp(floats->key + word, halves->key + word + skip, n - word);
    return (size_t)halves->length == n && !strncmp(floats->key, halves->key, n);
}
static void print_ops(run *r)
{
    enum { MOST = 4096 };
    static line lines[2][MOST];
    int count[2];
    text t[2];
    memset(t, 0, sizeof t);
    for (int i = 0; i < 2; i++) {
        gcp_profile(&r[i].plan);
        gcp_costs_print(&r[i].plan, (gcp_writer){ append, &t[i] });
        count[i] = lines_of(t[i].at, lines[i], i, MOST);
    }
    for (int i = 0; i < count[0]; i++)
        for (int k = 0; k < count[1]; k++)
            if (same_task(&lines[0][i], &lines[1][k])) lines[0][i].seconds[1] = lines[1][k].seconds[1];
    qsort(lines[0], (size_t)count[0], sizeof **lines, by_loss);
    for (int i = 0; i < count[0]; i++)
        if (i < ops || i >= count[0] - ops)
            printf("  %8.3f ms  %8.3f ms  %5.2f  %.*s\n", lines[0][i].seconds[0] * 1e3, lines[0][i].seconds[1] * 1e3,
                   lines[0][i].seconds[1] / lines[0][i].seconds[0], lines[0][i].length, lines[0][i].key);
    free(t[0].at);
    free(t[1].at);
}

static void one(int which)
{
    static run r[PLANS];
    double middle[PLANS] = { 0 };
    open_run(&r[0], which, GCP_STORE_REAL, 0);
    open_run(&r[1], which, GCP_STORE_BF16, 0);
    if (!r[1].memory) fail(gcp_error(r[1].net.loss.tape));
    open_run(&r[2], which, GCP_STORE_REAL, r[1].plan.bytes);
    for (int i = -1; i < rounds; i++)
        for (int k = 0; k < PLANS; k++) {
            if (!r[k].memory) continue;
            const double ms = step_ms(&r[k]);
            if (i >= 0) r[k].ms[i] = ms;
        }
    for (int k = 0; k < PLANS; k++) {
        if (!r[k].memory) continue;
        middle[k] = median(r[k].ms, rounds);
        if (csv)
            fprintf(csv, "%s,%d,%s,%.3f,%.3f,%zu,%zu\n", networks[which].name, networks[which].batch, plan_names[k],
                    middle[k], r[k].ms[0], r[k].plan.bytes, activations(&r[k].plan));
    }
    printf("%-12s %9.1f %9.1f %6.2f  %8.1f %8.1f  %8.1f %8.1f %6.3f", networks[which].name, middle[0], middle[1],
           middle[1] / middle[0], (double)r[0].plan.bytes / 1e6, (double)r[1].plan.bytes / 1e6,
           (double)activations(&r[0].plan) / 1e6, (double)activations(&r[1].plan) / 1e6,
           (double)activations(&r[1].plan) / (double)activations(&r[0].plan));
    if (r[2].memory) printf("  %9.1f %6.2f\n", middle[2], middle[1] / middle[2]);
    else printf("  %9s %6s\n", "-", "-");
    if (ops) print_ops(r);
    for (int k = 0; k < PLANS; k++) close_run(&r[k]);
}

int main(int argc, char **argv)
{
    const char *only = NULL, *folder = NULL;
    char path[512];
    if (argc % 2 == 0) fail("an option has a value (see the head of store.c)");
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--threads")) target.threads = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--isa")) target.isa = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--only")) only = argv[i + 1];
        else if (!strcmp(argv[i], "--rounds")) rounds = GCPI_MAX(1, GCPI_MIN(atoi(argv[i + 1]), (int)MOST_ROUNDS));
        else if (!strcmp(argv[i], "--ops")) ops = atoi(argv[i + 1]);
        else if (!strcmp(argv[i], "--out")) folder = argv[i + 1];
        else fail("store [--threads N] [--isa N] [--only TEXT] [--rounds 7] [--ops 0] [--out FOLDER]");
    }
    if (folder) {
        snprintf(path, sizeof path, "%s/store.csv", folder);
        csv = fopen(path, "w");
        if (!csv) fail("cannot write store.csv");
        fprintf(csv, "network,batch,plan,ms_median,ms_min,bytes,activation_bytes\n");
    }
    printf("%-12s %9s %9s %6s  %17s  %24s  %16s\n%-12s %9s %9s %6s  %8s %8s  %8s %8s %6s  %9s %6s\n", "", "ms", "ms",
           "", "all bytes, MB", "activations, MB", "float, same bytes", "network", "float", "bf16", "ratio", "float",
           "bf16", "float", "bf16", "ratio", "ms", "ratio");
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (!only || strstr(networks[i].name, only)) one((int)i);
    if (csv) fclose(csv);
    return 0;
}
