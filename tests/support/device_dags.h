/* device_dags.h - random networks on a target with memory of its own: under every policy the bits of keep-all on that
   target, the bytes that were planned, nothing left allocated. */
#ifndef DEVICE_DAGS_H
#define DEVICE_DAGS_H
#include "check.h"
#include "random_net.h"

static unsigned char device_tape[GCP_MB(48)], device_far[2][GCP_MB(8)], device_slots[GCP_MB(8)];
static float device_images[4096], device_numbers[1 << 18];

typedef struct device_outcome { float loss[4]; double hash; size_t values; } device_outcome;

static inline void device_feed(gcp_plan *plan, const random_net *r, int step)
{
    int labels[2];
    for (int i = 0; i < 4096; i++) device_images[i] = (float)((i * 37 + step * 11) % 101) / 50 - 1;
    labels[0] = step % 5;
    labels[1] = (step + 3) % 5;
    gcp_write(plan, r->image, device_images);
    gcp_write(plan, r->label, labels);
}

/* A number that any changed bit of any value changes, for all parameters and statistics, or for all gradients. */
static inline void device_hash(gcp_plan *plan, device_outcome *o, int gradients)
{
    gcp_tape *net = plan->tape;
    for (int i = 0; !gcp_error(net) && !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_tensor p = gcp_nth_parameter(net, i);
        const unsigned char *bytes = (const unsigned char *)device_numbers;
        gcp_code code = gradients ? gcp_grad(plan, p, device_numbers) : gcp_read(plan, p, device_numbers);
        if (code && gradients) { gcp_error_clear(net); continue; }
        for (size_t k = 0; k < 4 * gcp_elements(p); k++)
            o->hash = fmod(o->hash * 257 + bytes[k] + 1, 4503599627370449.0);
        o->values += gcp_elements(p);
    }
}

/* Optimiser slots wait in far memory. Returns what the target allocated for them, or NULL. */
static inline void *device_slots_bind(gcp_tape *net, const gcp_target *target)
{
    size_t bytes = 63 + gcp_slots_bytes(net, GCP_OPTIMIZER_ADAM);
    void *own = target->far_allocate ? target->far_allocate(target->context, bytes) : NULL;
    CHECK(bytes <= sizeof device_slots);
    CHECK(gcp_slots_bind(net, own ? own : device_slots, bytes) == GCP_OK);
    return own;
}

/* One network under one policy: gradients of a first step, then four steps of training (the third replays what the
   second recorded). */
static inline device_outcome device_one(unsigned seed, int policy, const gcp_target *target, gcp_store store)
{
    gcp_arena arena = gcp_arena_from(device_tape, sizeof device_tape);
    random_net r = net_make(&arena, seed);
    int units = gcp_plan_make(r.loss, .policy = GCP_POLICY_KEEP_ALL).units;
    gcp_plan_opts o = net_policy(policy, seed, units);
    device_outcome out = { .values = 0 };
    o.target = target;
    o.store = store;
    if (policy && seed % 4 == 0) o.check = GCP_CHECK;
    void *slots = policy && seed % 3 == 1 ? device_slots_bind(r.tape, target) : NULL;
    gcp_plan plan = net_plan(r.loss, net_choices(net_training(o, seed), seed, r.tape), seed);
    gcp_bind(&plan, NULL, 0);
    gcp_plan gradients = net_plan(r.loss, o, seed);          /* now its budget counts the slots, too */
    gcp_bind(&gradients, NULL, 0);
    if (!target->far_allocate && gradients.far_bytes) gcp_far_bind(&gradients, device_far[0], sizeof device_far[0]);
    if (!target->far_allocate && plan.far_bytes) gcp_far_bind(&plan, device_far[1], sizeof device_far[1]);
    device_feed(&gradients, &r, 1);
    gcp_step(&gradients);
    device_hash(&gradients, &out, 1);
    for (int step = 0; step < 4; step++) {
        device_feed(&plan, &r, step);
        out.loss[step] = (float)gcp_step(&plan, .lr = 0.01 / (step + 1));
    }
    device_hash(&plan, &out, 0);
    CHECK_INT(gcp_measure(&plan, NULL, 0), ==, plan.bytes);
    CHECK_INT(gcp_steps_done(r.tape), ==, 5);
    gcp_unbind(&gradients);
    gcp_unbind(&plan);
    if (slots) target->far_release(target->context, slots, 63 + gcp_slots_bytes(r.tape, GCP_OPTIMIZER_ADAM));
    const char *error = gcp_error(r.tape);
    if (error) fprintf(stderr, "network %u, policy %d: %s\n", seed, policy, error);
    CHECK(gcp_error(r.tape) == NULL);
    return out;
}

static inline int device_same(const device_outcome *a, const device_outcome *b)
{
    return a->hash == b->hash && a->values == b->values && !memcmp(a->loss, b->loss, sizeof a->loss);
}

/* other: a target that must give the same bits, or NULL. */
static inline void device_dags(int networks, const gcp_target *target, const gcp_target *other, gcp_store store)
{
    static const int policies[] = { GCP_POLICY_KEEP_ALL,
                                    GCP_POLICY_SEGMENTS,
                                    GCP_POLICY_UNIFORM,
                                    GCP_POLICY_CHECKPOINTS,
                                    GCP_POLICY_SQRT,
                                    GCP_POLICY_RECURSIVE,
                                    GCP_POLICY_CHEAP,
                                    7,
                                    8 };
    for (int i = 0; i < networks && check_failed < 10; i++) {
        device_outcome kept = device_one((unsigned)i, GCP_POLICY_KEEP_ALL, other ? other : target, store);
        /* the last one plans longest */
        for (size_t p = 0; p < sizeof policies / sizeof *policies - (i % 3 != 0); p++) {
            device_outcome now = device_one((unsigned)i, policies[p], target, store);
            if (!device_same(&now, &kept)) fprintf(stderr, "network %d, policy %d: other bits\n", i, policies[p]);
            CHECK(device_same(&now, &kept));
        }
    }
    printf("%d networks%s\n", networks, store ? " in bfloat16" : "");
}
#endif
