/* Every network under every strategy: the losses of all steps have the bits of keeping all, and so have the weights at
   the end; what a step takes is what was planned. Plans are made quickly, but for 20 steps.
   Usage: test_strategies [STEPS]: then every network is trained for so many, the large ones too. */
#include <stdlib.h>
#include "support/strategies.h"
#include "../examples/networks.h"
#include "support/check.h"

enum { MOST_STEPS = 20, SMALL = 4, LETTERS = 11 };

static unsigned char tape_memory[GCP_MB(64)];
static gcp_arena arena;

/* steps: how many it is trained for, where none are asked for; 0: not then. letters: of a text, not an image. */
typedef struct small_network {
    const char *name;
    network (*record)(gcp_tape *net, int batch, int size);
    int batch, size, steps, letters;
} small_network;

static network tf2(gcp_tape *net, int batch, int size)
{
    network n = { .logits = GCP_NIL };
    n.loss = tf2_checkpointing(net, size, batch, &n.image, &n.labels);
    return n;
}
static network partitions(gcp_tape *net, int batch, int size)
{
    network n = { .logits = GCP_NIL };
    n.loss = recompute_grad(net, 3, 3, size, batch, &n.image, &n.labels);
    return n;
}
static network densely(gcp_tape *net, int batch, int size) { return densenet_bc(net, 22, 4, batch, size, 10); }
static network deep(gcp_tape *net, int batch, int size) { return resnet_deep(net, 3, batch, size, 10); }
static network text(gcp_tape *net, int batch, int steps) { return lstm(net, batch, steps, 8, LETTERS); }
static network waves(gcp_tape *net, int batch, int steps) { return pde(net, batch, 64, steps); }
static network two_classes(gcp_tape *net, int batch, int size) { return unet(net, batch, size, size, 2); }
static network without_norms(gcp_tape *net, int batch, int size) { return inception_v4(net, 0, 1, batch, size, 10); }
#define DEPTH(name, depth) \
    static network name##_##depth(gcp_tape *net, int batch, int size) { return name(net, depth, batch, size, 10); }
DEPTH(resnet, 18)
DEPTH(resnet, 50)
DEPTH(resnet_v2, 18)
DEPTH(resnet_v2, 34)
DEPTH(resnet_v2, 50)
DEPTH(resnet_v2, 101)
DEPTH(resnet_v2, 152)
DEPTH(resnet_v2, 200)
DEPTH(cifar_resnet_v2, 20)
DEPTH(cifar_resnet_v2, 122)
DEPTH(densenet, 121)
DEPTH(densenet, 161)

static const small_network networks[] = {
    { "tf2_checkpointing", tf2, 2, 16, SMALL, 0 },
    { "recompute_grad", partitions, 2, 16, SMALL, 0 },
    { "resnet_deep", deep, 4, 16, SMALL, 0 },
    { "cifar_resnet_v2-20", cifar_resnet_v2_20, 2, 16, SMALL, 0 },
    { "densenet_bc", densely, 4, 16, SMALL, 0 },
    { "lstm", text, 4, 12, SMALL, LETTERS },
    { "pde", waves, 2, 60, SMALL, 0 },
    { "resnet_v2-18", resnet_v2_18, 2, 32, 0, 0 },
    { "resnet_v2-50", resnet_v2_50, 2, 32, 0, 0 },
    { "unet", two_classes, 1, 32, 0, 0 },
    { "inception_v4, no norms", without_norms, 2, 107, 0, 0 },
    { "vgg16", named_vgg16, 2, 32, 0, 0 },
    { "resnet-18", resnet_18, 2, 32, 0, 0 },
    { "resnet-50", resnet_50, 2, 32, 0, 0 },
    { "resnet_v2-34", resnet_v2_34, 2, 32, 0, 0 },
    { "resnet_v2-101", resnet_v2_101, 2, 32, 0, 0 },
    { "resnet_v2-152", resnet_v2_152, 2, 32, 0, 0 },
    { "resnet_v2-200", resnet_v2_200, 2, 32, 0, 0 },
    { "cifar_resnet_v2-122", cifar_resnet_v2_122, 2, 32, 0, 0 },
    { "densenet-121", densenet_121, 2, 32, 0, 0 },
    { "densenet-161", densenet_161, 2, 32, 0, 0 },
    { "mobilenet", named_mobilenet, 2, 32, 0, 0 },
    { "inception_v3", named_inception_v3, 2, 75, 0, 0 },
    { "inception_v4", named_inception_v4, 2, 107, 0, 0 },
};

/* ---- a run --------------------------------------------------------------------------------------------------- */

typedef struct run {
    double losses[MOST_STEPS];
    unsigned char *state; size_t state_bytes;
    size_t planned, measured, far;
    int reruns;
} run;

static void *memory(size_t size)
{
    void *m = malloc(size);
    if (!m) { fprintf(stderr, "no %zu bytes\n", size); exit(1); }
    return m;
}

/* Each step has a batch of its own. */
static void feed(gcp_plan *plan, const small_network *of, const network *n, int step)
{
    const size_t count = gcp_elements(n->image), labels = gcp_is_nil(n->labels) ? 0 : gcp_elements(n->labels);
    gcp_real *x = (gcp_real *)memory(count * sizeof *x);
    int32_t *y = (int32_t *)memory((count + labels) * sizeof *y);
    for (size_t i = 0; i < count; i++) x[i] = (gcp_real)((i + (size_t)step) * 37 % 101) / 50 - 1;
    for (size_t i = 0; i < count + labels; i++) y[i] = (int32_t)((i * 7 + (size_t)step) % (of->letters ? LETTERS : 2));
    gcp_write(plan, n->image, of->letters ? (const void *)y : (const void *)x);
    if (labels) gcp_write(plan, n->labels, y);
    free(x);
    free(y);
}

/* Half of keep-all's slab; for large networks, whose weights take most of it here, the least that works. */
static size_t budget_of(const small_network *of, gcp_tensor loss, gcp_plan_opts o)
{
    if (of->steps != SMALL) return 1;
    o.policy = GCP_POLICY_KEEP_ALL;
    o.effort = GCP_EFFORT_DEFAULT;
    gcp_plan all = gcp_plan_make_at(loss, o);
    const size_t bytes = all.state_bytes + all.slab_bytes / 2;
    gcp_plan_free(&all);
    return bytes;
}

static run train(const small_network *of, const strategy *s, int steps)
{
    run r = { .planned = 0 };
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 1200, .seed = 7);
    network n = of->record(net, of->batch, of->size);
    gcp_plan_opts o = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 };
    if (s >= &strategies[BUDGET] && steps < MOST_STEPS) o.effort = GCP_EFFORT_QUICK;
    gcp_plan plan = strategy_plan(s, n.loss, o, budget_of(of, n.loss, o));
    unsigned char *slab = memory(plan.room), *far = memory(plan.far_bytes + 64), *probe = memory(plan.room + 4096);
    r.state_bytes = gcp_state_bytes(net, GCP_OPTIMIZER_SGD);
    r.state = memory(r.state_bytes + 64);
    unsigned char *state = r.state + (-(uintptr_t)r.state & 63);
    gcp_state_bind(net, state, r.state_bytes);
    gcp_bind(&plan, slab, plan.room);
    if (plan.far_bytes) gcp_far_bind(&plan, far, plan.far_bytes);
    for (int i = 0; i < steps; i++) {
        feed(&plan, of, &n, i);
        r.losses[i] = gcp_step(&plan, .lr = 0.01);
    }
    r.planned = plan.bytes; r.reruns = plan.reruns; r.far = plan.far_bytes;
    r.measured = gcp_measure(&plan, probe, plan.room + 4096);
    if (!check_report(!gcp_error(net), __FILE__, __LINE__)) fprintf(stderr, "%s\n", gcp_error(net));
    memmove(r.state, state, r.state_bytes);
    free(slab); free(far); free(probe);
    return r;
}

static void same_bits(const small_network *of, int steps)
{
    const int failed = check_failed;
    run all = train(of, &strategies[KEEP_ALL], steps);
    CHECK(all.losses[0] > 0 && all.losses[0] < 100 && all.measured == all.planned);
    for (int k = 1; k < STRATEGIES; k++) {
        run r = train(of, &strategies[k], steps);
        CHECK(!memcmp(r.losses, all.losses, sizeof r.losses));
        CHECK(r.state_bytes == all.state_bytes && !memcmp(r.state, all.state, all.state_bytes));
        CHECK_INT(r.measured, ==, r.planned);
        CHECK(k < BUDGET || r.planned < all.planned);
        CHECK(k < FAR || r.far > 0 || (k == EITHER && r.reruns > 0));
        free(r.state);
    }
    free(all.state);
    if (check_failed > failed) fprintf(stderr, "  in %s\n", of->name);
}

int main(int argc, char **argv)
{
    const int asked = argc > 1 ? atoi(argv[1]) : 0;
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++) {
        const int steps = asked > 0 && asked <= MOST_STEPS ? asked : networks[i].steps;
        if (steps) same_bits(&networks[i], steps);
    }
    return check_done();
}
