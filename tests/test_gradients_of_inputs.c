/* Several inputs whose gradients are wanted, several losses, and two tapes that take turns: under every policy and
   budget the gradients of all inputs and parameters are keep-all's, and one tape's steps do not disturb the other's. */
#include "support/check.h"
#include "gcp.h"
#include <stdlib.h>

enum { INPUTS = 4, SIDE = 5, CHANNELS = 6, IMAGE = 2 * SIDE * SIDE * CHANNELS, POLICIES = 7, MOST = 1 << 14 };
typedef struct side { /* one tape and its memory */
    gcp_arena arena;
    gcp_tape *net;
    gcp_tensor in[INPUTS], label, loss;
    int wanted[INPUTS];
    gcp_plan plan;
    unsigned seed;
    uint64_t dice;
    _Alignas(64) unsigned char slab[GCP_MB(2)];
    unsigned char tape[GCP_MB(48)];
} side;
static side left, right;

static unsigned roll(side *s, unsigned sides)
{
    s->dice ^= s->dice << 13;
    s->dice ^= s->dice >> 7;
    s->dice ^= s->dice << 17;
    return (unsigned)((s->dice >> 20) % sides);
}

/* Another tensor of the size of all: from what two others have. */
static gcp_tensor mixed(side *s, gcp_tensor a, gcp_tensor b, gcp_tensor weight)
{
    switch (roll(s, 7)) {
    case 0: return gcp_add(a, b);
    case 1: return gcp_mul(a, gcp_sigmoid(b));
    case 2: return gcp_slice(gcp_concat(GCP_TENSORS(a, b)), .first = (int)roll(s, CHANNELS), .count = CHANNELS);
    case 3: return gcp_relu(gcp_conv2d_op(gcp_add(a, b), weight, GCP_NIL, .pad = 1));
    case 4: return gcp_dropout(gcp_add(a, gcp_tanh(b)), .rate = 0.2);
    case 5: return gcp_conv2d(gcp_concat(GCP_TENSORS(a, b)), .out = CHANNELS, .k = 1);
    default: return gcp_add(gcp_batch_norm(gcp_conv2d(a, .out = CHANNELS, .k = 3, .pad = 1)), b);
    }
}

static void record(side *s, unsigned seed)
{
    char name[16];
    gcp_tensor pool[INPUTS + 12], losses;
    s->seed = seed;
    s->dice = seed * 0x9E3779B97F4A7C15u + 1;
    s->arena = gcp_arena_from(s->tape, sizeof s->tape);
    s->net = gcp_tape_make(&s->arena, .ops = 96, .seed = seed);
    for (int i = 0; i < INPUTS; i++) {
        snprintf(name, sizeof name, "in%d", i);
        s->wanted[i] = i == 0 || roll(s, 3) > 0;
        pool[i] = s->in[i] = gcp_input(s->net, name, GCP_SHAPE(2, SIDE, SIDE, CHANNELS), .want_grad = s->wanted[i]);
    }
    s->label = gcp_labels(s->net, "label", GCP_SHAPE(2));
    gcp_tensor weight = gcp_param(s->net, "shared", GCP_SHAPE(CHANNELS, 3, 3, CHANNELS));
    int count = INPUTS;
    for (; count < INPUTS + 12; count++) GCP_SEGMENT(s->net, "part")
    pool[count] = mixed(s, pool[count - 1 - (int)roll(s, 3)], pool[roll(s, (unsigned)count)], weight);
    losses = gcp_mean(gcp_mul(pool[count - 2], pool[count - 2]));
    losses = gcp_add(losses, gcp_mse(pool[count - 3], s->in[roll(s, INPUTS)]));
    for (int i = 0; i < INPUTS; i++) losses = gcp_add(losses, gcp_mean(gcp_mul(s->in[i], s->in[i])));
    s->loss = gcp_add(losses, gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(pool[count - 1]), .out = 3), s->label));
}

/* Policy 0 is keep-all; the last ones are budgets. */
static gcp_plan planned(side *s, int policy)
{
    static const gcp_policy policies[] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SEGMENTS, GCP_POLICY_SQRT,
                                           GCP_POLICY_RECURSIVE, GCP_POLICY_CHEAP };
    if (policy < 5) return gcp_plan_make(s->loss, .policy = policies[policy]);
    size_t least = gcp_least_budget(s->loss, .effort = GCP_EFFORT_QUICK);
    return gcp_plan_make(s->loss, .policy = GCP_POLICY_BUDGET, .budget = policy == 5 ? least : least + least / 8,
                         .effort = GCP_EFFORT_QUICK);
}

static void begin(side *s, unsigned seed, int policy)
{
    float data[IMAGE];
    int32_t classes[2] = { 2, 0 };
    record(s, seed);
    s->plan = planned(s, policy);
    CHECK(gcp_bind(&s->plan, s->slab, sizeof s->slab) == GCP_OK);
    for (int i = 0; i < INPUTS; i++) {
        for (int k = 0; k < IMAGE; k++) data[k] = (float)((k * 29 + i * 11 + (int)seed) % 41 - 20) / 32;
        gcp_write(&s->plan, s->in[i], data);
    }
    gcp_write(&s->plan, s->label, classes);
}

/* A step's loss and all gradients, as floats. */
static size_t stepped(side *s, float *out)
{
    size_t n = 0;
    out[n++] = (float)gcp_step(&s->plan);
    for (int i = 0; i < INPUTS; i++)
        if (s->wanted[i]) {
            CHECK(gcp_grad(&s->plan, s->in[i], out + n) == GCP_OK);
            n += IMAGE;
        }
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(s->net, i)); i++) {
        gcp_tensor p = gcp_nth_parameter(s->net, i);
        if (gcp_grad(&s->plan, p, out + n) == GCP_OK) n += gcp_elements(p);
        else gcp_error_clear(s->net); /* the loss does not depend on it */
    }
    return n;
}

static void compared(unsigned seed)
{
    static float kept[2][2][MOST], got[MOST];
    size_t count[2] = { 0 };
    for (int k = 0; k < 2; k++) { /* each tape alone, keeping all */
        begin(&left, seed + (unsigned)k, 0);
        for (int step = 0; step < 2; step++) count[k] = stepped(&left, kept[k][step]);
        CHECK(!gcp_error(left.net) && count[k] < MOST);
    }
    for (int policy = 0; policy < POLICIES; policy++) {
        side *sides[2] = { &left, &right };
        for (int k = 0; k < 2; k++) begin(sides[k], seed + (unsigned)k, (policy + k) % POLICIES);
        for (int step = 0; step < 2; step++)
            for (int k = 0; k < 2; k++) {
                size_t n = stepped(sides[k], got);
                int same = n == count[k] && !memcmp(got, kept[k][step], n * sizeof *got);
                CHECK(same && !gcp_error(sides[k]->net));
                if (!same) printf("seed %u, policy %d, step %d\n", seed + (unsigned)k, (policy + k) % POLICIES, step);
            }
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 10;
    for (int i = 0; i < count; i++) compared(2 * (unsigned)i + 1);
    printf("%d pairs of networks\n", count);
    return check_done();
}
