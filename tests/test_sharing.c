/* What several readers, plans or recordings share: a weight under fused updates, a tape recorded on, memory between
   micro-batches. */
#include "support/check.h"
#include "gcp.h"
#include "support/feed.h"

static unsigned char tape_memory[1 << 20], slab[1 << 18];

static int identity_shape(gcp_shape_call *c) { c->out[0] = c->in[0]; return 1; }
static void identity(const gcp_call *c) { memcpy(c->out[0].data, c->in[0].data, (size_t)c->in[0].shape.d[0] * (size_t)c->in[0].shape.d[3] * sizeof(gcp_real)); }
static const gcp_op stop_gradient = { "stop", identity_shape, identity, NULL, NULL, 0, 0, GCP_NO_GRADIENT, 1, NULL };

/* w is read once with a gradient and, earlier on the tape, once without: a fused update must wait for both. */
static float fused_shared(int fuse, gcp_policy policy)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", 2, 4), w = gcp_param(net, "w", GCP_SHAPE(4, 4), .init = GCP_INIT_HE, .fan_in = 4), y = x, out[1];
    float data[8] = { 1, 2, 3, 4, -1, 0.5f, 2, 1 }, value = 0;
    GCP_SEGMENT(net, "first") {
        gcp_tensor held = gcp_linear_op(x, w, GCP_NIL);
        y = gcp_mul(gcp_linear(x, .out = 4), gcp_custom(&held, 1, &stop_gradient, .outputs = out));
        y = gcp_tanh(y);
    }
    GCP_SEGMENT(net, "second") y = gcp_tanh(gcp_linear_op(y, w, GCP_NIL));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .policy = policy, .optimizer = GCP_SGD, .fuse_update = fuse, .check = GCP_CHECK);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, data);
    for (int i = 0; i < 4; i++) value = gcp_step(&plan, .lr = 0.5);
    CHECK(gcp_error(net) == NULL);
    return value;
}

static void fused_update_waits(void)
{
    float plain = fused_shared(0, GCP_KEEP_ALL);
    CHECK(fused_shared(1, GCP_KEEP_ALL) == plain);
    CHECK(fused_shared(1, GCP_SEGMENTS) == plain);
}

/* Ops recorded after a plan was made are not its business. */
static float recorded_after(int more)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", 2, 4), y = gcp_linear(x, .out = 3);
    float data[8] = { 1, 2, 3, 4, -1, 0.5f, 2, 1 }, value = 0;
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .optimizer = GCP_SGD, .momentum = 0.9);
    for (int i = 0; i < more; i++) y = gcp_tanh(y);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, data);
    for (int i = 0; i < 3; i++) value = gcp_step(&plan, .lr = 0.1);
    CHECK_INT(gcp_steps_done(net), ==, 3);
    CHECK(gcp_error(net) == NULL);
    if (more) CHECK(gcp_read(&plan, y, data) == GCP_E_ARGUMENT);
    return value;
}

/* The first of two micro-batches, and then another plan, in this memory. */
static gcp_plan interrupted(gcp_arena *arena, void *memory, size_t size)
{
    gcp_tape *net = gcp_tape_make(arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "x", 2, 4), y = gcp_linear(x, .out = 3), loss = gcp_mean(gcp_mul(y, y));
    gcp_plan train = gcp_plan_make(loss, .optimizer = GCP_SGD, .accumulate = 2);
    gcp_plan look = gcp_plan_make(y, .inference = 1);
    gcp_bind(&train, slab, sizeof slab);
    gcp_bind(&look, memory, size);
    feed_zeros(&train, "x");
    gcp_step(&train, .lr = 0.1);
    feed_zeros(&look, "x");
    gcp_forward(&look);
    CHECK(gcp_error(net) == NULL);
    return train;
}

/* Another plan between the micro-batches of one would write over its gradients. */
static void between_micro_batches(void)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_plan train = interrupted(&arena, slab, sizeof slab);
    feed_zeros(&train, "x");
    CHECK(gcp_error_code(train.tape) == GCP_E_BIND);
    CHECK(strstr(gcp_error(train.tape), "gcp_write: another plan used the same memory between the micro-batches"));
}

/* Nor may it run in memory of its own, where it updates the same weights; after the error the micro-batches begin anew. */
static void apart_between_micro_batches(void)
{
    static unsigned char apart[4096];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_plan train = interrupted(&arena, apart, sizeof apart);
    CHECK(gcp_step(&train, .lr = 0.1) == 0);
    CHECK(strstr(gcp_error(train.tape), "gcp_step: another plan ran between the micro-batches"));
    gcp_error_clear(train.tape);
    for (int i = 0; i < 2; i++) gcp_step(&train, .lr = 0.1);
    CHECK(!gcp_error(train.tape) && gcp_steps_done(train.tape) == 3);
}

int main(void)
{
    fused_update_waits();
    CHECK(recorded_after(7) == recorded_after(0));
    between_micro_batches();
    apart_between_micro_batches();
    return check_done();
}
