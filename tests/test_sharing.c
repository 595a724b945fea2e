/* What several readers, plans or recordings share: a weight under fused updates, a tape recorded on, memory between
   micro-batches. */
#include "support/check.h"
#include "gcp.h"
#include "support/feed.h"

static unsigned char tape_memory[1 << 20], slab[1 << 18];

static int identity_shape(gcp_shape_call *c) { c->out[0] = c->in[0]; return 1; }
static void identity(const gcp_call *c)
{
    memcpy(c->out[0].data, c->in[0].data, (size_t)c->in[0].shape.d[0] * (size_t)c->in[0].shape.d[3] * sizeof(gcp_real));
}
static const gcp_op stop_gradient = {
    "stop", identity_shape, identity, NULL, NULL, 0, 0, GCP_FLAG_NO_GRADIENT, 1, NULL
};

/* w is read once with a gradient and, earlier on the tape, once without: a fused update must wait for both. */
static float fused_shared(int fuse, gcp_policy policy)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)),
               w = gcp_param(net, "w", GCP_SHAPE(4, 4), .init = GCP_INIT_HE, .fan_in = 4), y = x, out[1];
    float data[8] = { 1, 2, 3, 4, -1, 0.5f, 2, 1 }, value = 0;
    GCP_SEGMENT(net, "first") {
        gcp_tensor held = gcp_linear_op(x, w, GCP_NIL);
        y = gcp_mul(gcp_linear(x, .out = 4), gcp_custom(&held, 1, &stop_gradient, .outputs = out));
        y = gcp_tanh(y);
    }
    GCP_SEGMENT(net, "second") y = gcp_tanh(gcp_linear_op(y, w, GCP_NIL));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .policy = policy, .optimizer = GCP_OPTIMIZER_SGD,
                                  .fuse_update = fuse, .check = GCP_CHECK);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, data);
    for (int i = 0; i < 4; i++) value = (float)gcp_step(&plan, .lr = 0.5);
    CHECK(gcp_error(net) == NULL);
    return value;
}

static void fused_update_waits(void)
{
    float plain = fused_shared(0, GCP_POLICY_KEEP_ALL);
    CHECK(fused_shared(1, GCP_POLICY_KEEP_ALL) == plain);
    CHECK(fused_shared(1, GCP_POLICY_SEGMENTS) == plain);
}

/* Ops recorded after a plan was made are not its business. */
static float recorded_after(int more)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)), y = gcp_linear(x, .out = 3);
    float data[8] = { 1, 2, 3, 4, -1, 0.5f, 2, 1 }, value = 0;
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, y)), .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    for (int i = 0; i < more; i++) y = gcp_tanh(y);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, data);
    for (int i = 0; i < 3; i++) value = (float)gcp_step(&plan, .lr = 0.1);
    CHECK_INT(gcp_steps_done(net), ==, 3);
    CHECK(gcp_error(net) == NULL);
    if (more) CHECK(gcp_read(&plan, y, data) == GCP_E_ARGUMENT);
    return value;
}

/* The first of two micro-batches, and then another plan, in this memory. */
static gcp_plan interrupted(gcp_arena *arena, void *memory, size_t size)
{
    gcp_tape *net = gcp_tape_make(arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)), y = gcp_linear(x, .out = 3), loss = gcp_mean(gcp_mul(y, y));
    gcp_plan train = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .accumulate = 2);
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

/* Nor may it run in memory of its own, where it updates the same weights; after the error the micro-batches begin
   anew. */
static void apart_between_micro_batches(void)
{
    static unsigned char apart[4096];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_plan train = interrupted(&arena, apart, sizeof apart);
    CHECK(isnan(gcp_step(&train, .lr = 0.1)));
    CHECK(strstr(gcp_error(train.tape), "gcp_step: another plan ran between the micro-batches"));
    gcp_error_clear(train.tape);
    for (int i = 0; i < 2; i++) gcp_step(&train, .lr = 0.1);
    CHECK(!gcp_error(train.tape) && gcp_steps_done(train.tape) == 3);
}

/* A plan that takes the place of another, or is bound again, after the first of two micro-batches: an error, once. */
static void replaced_between_micro_batches(int freed)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)), y = gcp_linear(x, .out = 3), loss = gcp_mean(gcp_mul(y, y));
    gcp_plan train = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .accumulate = 2);
    gcp_bind(&train, slab, sizeof slab);
    feed_zeros(&train, "x");
    gcp_step(&train, .lr = 0.1);
    if (freed) gcp_plan_free(&train);
    if (freed) train = gcp_plan_make(loss, .policy = GCP_POLICY_SQRT, .optimizer = GCP_OPTIMIZER_SGD, .accumulate = 2);
    gcp_bind(&train, slab, sizeof slab);
    feed_zeros(&train, "x");
    CHECK(!gcp_error(net) && isnan(gcp_step(&train, .lr = 0.1)) && gcp_error_code(net) == GCP_E_BIND);
    CHECK(gcp_error(net) && strstr(gcp_error(net), "the plan before was not through its micro-batches"));
    gcp_error_clear(net);
    for (int i = 0; i < 4; i++) gcp_step(&train, .lr = 0.1);
    CHECK(!gcp_error(net) && gcp_steps_done(net) == 5);
}

/* Gradients of gamma and beta of two batch-norms that share them, or have their own; how many. */
static size_t norm_gradients(int shared, gcp_real *out)
{
    static float data[2 * 3 * 3 * 4];
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 3, 3, 4), .want_grad = 1), y = x, p[4];
    static const char *const names[] = { "gamma", "beta", "gamma2", "beta2" };
    for (int i = 0; i < 4; i++)
        p[i] = gcp_param(net, names[i], GCP_SHAPE(4), .init = i % 2 ? GCP_INIT_ZEROS : GCP_INIT_ONES);
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "norm")
            y = gcp_tanh(gcp_batch_norm_op(y, p[shared ? 0 : 2 * i], p[shared ? 1 : 2 * i + 1], .name = "bn"));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_mul(y, gcp_mul(y, x))), .check = GCP_CHECK);
    gcp_bind(&plan, slab, sizeof slab);
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) data[i] = (float)(i * 37 % 23) / 10 - 1;
    CHECK(gcp_write(&plan, x, data) == GCP_OK && gcp_step(&plan) != 0);
    CHECK(!gcp_is_nil(gcp_find(net, "norm[0]/bn/running_mean")) &&
          !gcp_is_nil(gcp_find(net, "norm[1]/bn/running_var")));
    for (int i = 0; i < (shared ? 2 : 4); i++) CHECK(gcp_grad(&plan, p[i], out + 4 * i) == GCP_OK);
    CHECK(!gcp_error(net));
    return shared ? 8 : 16;
}

static void shared_norms(void)
{
    gcp_real one[8], two[16];
    CHECK(norm_gradients(1, one) == 8 && norm_gradients(0, two) == 16);
    for (int i = 0; i < 8; i++) CHECK_NEAR(one[i], two[i] + two[i + 8], 1e-6);
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 8);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4)), gamma = gcp_param(net, "gamma", GCP_SHAPE(3));
    for (int i = 0; i < 2; i++) {                    /* a refused one leaves no name, no statistics */
        CHECK(gcp_is_nil(gcp_batch_norm_op(x, gamma, gamma, .name = "bn")) && gcp_error_code(net) == GCP_E_SHAPE);
        gcp_error_clear(net);
    }
    CHECK(gcp_is_nil(gcp_find(net, "bn/running_mean")));
    CHECK(gcp_is_nil(gcp_batch_norm_op(x, GCP_NIL, gamma)) && strstr(gcp_error(net), "batch_norm: a nil tensor"));
}

/* A convolution reads its weights as one run of bytes: a concat that reads them too has a copy. */
static double weights_in_concat(int copied)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 5);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 4, 4, 2)),
               raw = gcp_param(net, "w", GCP_SHAPE(3, 2, 2, 2), .fan_in = 8),
               v = gcp_param(net, "v", GCP_SHAPE(3, 2, 2, 1), .fan_in = 8), w = gcp_tanh(raw),
               read = copied ? gcp_scale(w, .by = 1) : w, y = gcp_conv2d_op(x, w, GCP_NIL, .k = 2),
               z = gcp_concat(GCP_TENSORS(v, read));
    float data[32];
    for (int i = 0; i < 32; i++) data[i] = (float)(i * 37 % 19) / 7 - 1;
    gcp_plan plan = gcp_plan_make(gcp_add(gcp_mean(gcp_mul(y, y)), gcp_mean(gcp_mul(z, z))),
                                  .optimizer = GCP_OPTIMIZER_SGD);
    gcp_bind(&plan, slab, sizeof slab);
    gcp_write(&plan, x, data);
    double loss = gcp_step(&plan, .lr = 0.5) + gcp_step(&plan, .lr = 0.5);
    CHECK(gcp_error(net) == NULL && loss > 0);
    return loss;
}

int main(void)
{
    CHECK(weights_in_concat(0) == weights_in_concat(1));
    shared_norms();
    fused_update_waits();
    CHECK(recorded_after(7) == recorded_after(0));
    between_micro_batches();
    apart_between_micro_batches();
    replaced_between_micro_batches(0);
    replaced_between_micro_batches(1);
    return check_done();
}
