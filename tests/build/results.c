/* results.c - a line for each result that a change of form must not change: plans and lists of the networks, and
   losses, gradients and state of steps on each instruction set. results.sh compares them between two trees. It uses
   what both know. */
#include <stdlib.h>
#include "../../examples/networks.h"
#include "../support/random_net.h"

enum { RANDOM_NETWORKS = 400 };
static unsigned char tape_memory[GCP_MB(192)], memory[GCP_MB(512)], far_memory[GCP_MB(8)];
static float images[2 * 64 * 64 * 3], gradient[1 << 22];
static int32_t labels[2 * 64 * 64];
static gcp_arena arena;

static uint64_t hash_of(uint64_t hash, const void *data, size_t size)                /* FNV-1a */
{
    const unsigned char *byte = (const unsigned char *)data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ byte[i]) * 0x100000001b3u;
    return hash;
}
static void hash_text(void *context, const char *text, size_t size)
{
    *(uint64_t *)context = hash_of(*(uint64_t *)context, text, size);
}

static uint64_t list_hash(const gcp_plan *plan)
{
    uint64_t hash = 0xcbf29ce484222325u;
    gcp_writer to = { hash_text, &hash };
    gcp_list_print(plan, to);
    gcp_why_print(plan, to);
    return hash;
}

static void print_plan(const char *name, const char *what, const gcp_plan *plan)
{
    if (!gcp_plan_ok(plan)) printf("%s %s: %s\n", name, what, gcp_error(plan->tape));
    else
        printf("%s %s: %zu bytes, slab %zu, live %zu, %d instructions, %d reruns, %.17g s, bound %.17g, list %016llx\n",
               name, what, plan->bytes, plan->slab_bytes, plan->live_peak, plan->instructions, plan->reruns,
               plan->seconds, plan->bound_seconds, (unsigned long long)list_hash(plan));
    gcp_error_clear(plan->tape);
}

static network recorded(const network_name *n, int batch, int image)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return n->record(gcp_tape_make(&arena, .ops = n->ops, .seed = 3), batch, image);
}

static void plans_of(const network_name *n)
{
    static const struct { const char *name; gcp_plan_opts o;
    } policies[] = {
        { "keep_all", { .policy = GCP_POLICY_KEEP_ALL } },
        { "segments", { .policy = GCP_POLICY_SEGMENTS } },
        { "uniform", { .policy = GCP_POLICY_UNIFORM, .segments = 3 } },
        { "checkpoints", { .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 3 } },
        { "replay", { .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 2, .replay = 1 } },
        { "sqrt", { .policy = GCP_POLICY_SQRT } },
        { "recursive", { .policy = GCP_POLICY_RECURSIVE } },
        { "cheap", { .policy = GCP_POLICY_CHEAP } },
        { "fused",
          { .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9, .fuse_update = 1 } },
        { "forward", { .policy = GCP_POLICY_KEEP_ALL, .inference = 1 } }
    };
    network net = recorded(n, n->batch, n->image);
    size_t all = 0;
    for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
        gcp_plan_opts o = policies[i].o;
        o.at = GCP_AT;
        gcp_plan plan = gcp_plan_make_at(net.loss, o);
        if (i == 0) all = plan.bytes;
        print_plan(n->name, policies[i].name, &plan);
        net = recorded(n, n->batch, n->image);
    }
    for (int share = 4; share <= 8; share += 2) {
        gcp_plan plan = gcp_plan_make(net.loss, .policy = GCP_POLICY_BUDGET, .budget = all * (size_t)share / 10,
                                      .effort = GCP_EFFORT_QUICK);
        print_plan(n->name, share == 4 ? "budget 0.4" : share == 6 ? "budget 0.6" : "budget 0.8", &plan);
        net = recorded(n, n->batch, n->image);
    }
    fflush(stdout);
}

static void feed(gcp_plan *plan, gcp_tensor image, gcp_tensor label, int step, int classes)
{
    for (size_t i = 0; i < sizeof images / sizeof *images; i++)
        images[i] = (float)((i * 37 + (size_t)step * 11) % 101) / 50 - 1;
    for (size_t i = 0; i < sizeof labels / sizeof *labels; i++) labels[i] = (int)((i + (size_t)step) % (size_t)classes);
    gcp_write(plan, image, images);
    gcp_write(plan, label, labels);
}

/* Loss and gradients of a step, then the weights that two more steps with an optimiser leave. */
static void steps_of(const char *name, unsigned number, gcp_tensor loss, gcp_tensor image, gcp_tensor label,
                     int classes, gcp_plan_opts o, unsigned seed)
{
    gcp_tape *net = loss.tape;
    uint64_t hash = 0xcbf29ce484222325u, trained = hash, grown;
    double losses[3];
    gcp_plan plan = net_plan(loss, o, seed);
    gcp_bind(&plan, memory, sizeof memory);
    if (plan.far_bytes) gcp_far_bind(&plan, far_memory, sizeof far_memory);
    feed(&plan, image, label, 0, classes);
    losses[0] = gcp_step(&plan);
    for (int i = 0; !gcp_error(net) && !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_tensor w = gcp_nth_parameter(net, i);
        if (gcp_elements(w) > sizeof gradient / sizeof *gradient || gcp_grad(&plan, w, gradient)) gcp_error_clear(net);
        else hash = hash_of(hash, gradient, gcp_elements(w) * sizeof *gradient);
    }
    grown = list_hash(&plan);
    plan = net_plan(loss, net_training(o, seed), seed);
    gcp_bind(&plan, memory, sizeof memory);
    if (plan.far_bytes) gcp_far_bind(&plan, far_memory, sizeof far_memory);
    for (int step = 1; step < 3; step++) {
        feed(&plan, image, label, step, classes);
        losses[step] = gcp_step(&plan, .lr = 0.01);
    }
    for (int i = 0; !gcp_error(net) && !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_tensor w = gcp_nth_parameter(net, i);
        if (gcp_elements(w) > sizeof gradient / sizeof *gradient || gcp_read(&plan, w, gradient)) gcp_error_clear(net);
        else trained = hash_of(trained, gradient, gcp_elements(w) * sizeof *gradient);
    }
    printf("%s %u isa %d policy %d: %.9g %.9g %.9g, gradients %016llx, weights %016llx, lists %016llx %016llx%s\n",
           name, number, o.target->isa, (int)o.policy, losses[0], losses[1], losses[2], (unsigned long long)hash,
           (unsigned long long)trained, (unsigned long long)grown, (unsigned long long)list_hash(&plan),
           gcp_error(net) ? gcp_error(net) : "");
    fflush(stdout);
}

static void random_steps(unsigned seed, int isa)
{
    const gcp_target target = { .isa = isa, .threads = 1 };
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    random_net r = net_make(&arena, seed);
    gcp_plan_opts o = net_policy((int)(seed % 9), seed, 4);
    o.target = &target;
    steps_of("random", seed, r.loss, r.image, r.label, 5, o, seed);
}

static void network_steps(const network_name *n, int isa)
{
    const gcp_target target = { .isa = isa, .threads = 1 };
    int unet = !strcmp(n->name, "unet");
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_SQRT, .target = &target };
    network net = recorded(n, 1,
                           !strcmp(n->name, "inception_v3")          ? 75
                           : unet || !strncmp(n->name, "resnet1", 7) ? 32
                                                                     : 64);
    steps_of(n->name, 1, net.loss, net.image, net.labels, unet ? 2 : 10, o, 0);
}

int main(int argc, char **argv)
{
    /* instruction sets of this machine: 4 with AVX-512, 3 with AVX2 */
    int last = argc > 1 ? atoi(argv[1]) : GCP_ISA_AVX512;
    for (int i = 0; i < NETWORK_NAMES; i++) plans_of(&network_names[i]);
    for (int isa = GCP_ISA_SCALAR; isa <= last; isa++) {
        for (unsigned seed = 0; seed < RANDOM_NETWORKS; seed++) random_steps(seed, isa);
        for (int i = 0; i < NETWORK_NAMES; i++)
            if (strcmp(network_names[i].name, "resnet1000")) network_steps(&network_names[i], isa);
    }
    return 0;
}
