/* Shapes that no memory holds: every op is recorded or refused with its line, what was recorded is planned, and no sum
   or product of sizes overflows on the way. Nothing runs. What proves it are the builds that trap overflows
   (extremes_trapped) or report them (asan). */
#include <stdlib.h>
#include "support/check.h"
#include "gcp.h"

static unsigned char tape_memory[1 << 20];
static gcp_arena arena;
static gcp_tape *net;
static uint64_t state = 0x9E3779B97F4A7C15u;
static int recorded, planned;

static unsigned roll(unsigned sides)
{
    state ^= state << 13; state ^= state >> 7; state ^= state << 17;
    return (unsigned)((state >> 20) % sides);
}

/* From 1 up to 2^bits - 1, each power of two as likely as the next; often just below one. */
static int size(unsigned bits)
{
    unsigned high = roll(bits), low = high ? roll(1u << high) : 0;
    return (int)(roll(4) ? (1u << high) + low : (2u << high) - 1);
}

static gcp_tensor image(void)
{
    /* bits of all sizes together, so that most are recorded */
    unsigned left = sizeof(void *) == 4 ? 22 : 40;
    int d[4];
    for (int i = 0; i < 4; i++) {
        unsigned most = left < 31 ? left + 1 : 31, order = (unsigned)(i * 3) % 4;
        d[order] = size(most);
        for (int n = d[order]; n > 1 && left; n >>= 1) left--;
    }
    return gcp_input(net, "x", GCP_SHAPE(d[0], d[1], d[2], d[3]));
}

static gcp_conv2d_opts options(int channels)
{
    gcp_conv2d_opts o = { .at = GCP_AT, .out = size(31), .kh = size(roll(3) ? 4 : 24), .kw = size(roll(3) ? 4 : 24) };
    if (roll(2)) { o.stride_h = size(roll(3) ? 4 : 14); o.stride_w = size(roll(3) ? 4 : 14); }
    if (roll(2)) {
        o.pad_top = size(roll(3) ? 4 : 24);
        o.pad_bottom = size(4);
        o.pad_left = size(roll(3) ? 4 : 24);
        o.pad_right = size(24);
    } else if (roll(2)) o.padding = GCP_PADDING_SAME;
    if (roll(3) == 0) { o.dilation_h = size(roll(2) ? 4 : 24); o.dilation_w = size(24); }
    if (roll(4) == 0) o.groups = roll(2) ? channels : size(6);
    if (o.groups == channels) o.out = channels;
    o.no_bias = (int)roll(2);
    return o;
}

static gcp_tensor some_op(gcp_tensor x)
{
    int channels = gcp_shape_of(x).d[3];
    gcp_pool_opts pool = { .at = GCP_AT,
                           .kh = size(roll(2) ? 4 : 24),
                           .kw = size(roll(2) ? 4 : 24),
                           .stride_h = size(14),
                           .stride_w = size(14) };
    switch (roll(9)) {
    case 0: case 1: return gcp_conv2d_at(x, options(channels));
    case 2: case 3: return gcp_conv_transpose2d_at(x, options(channels));
    case 4: return gcp_linear(x, .out = size(31));
    case 5: return gcp_matmul(x, gcp_param(net, "w", GCP_SHAPE(channels, size(31))));
    case 6: return roll(2) ? gcp_max_pool_at(x, pool) : gcp_avg_pool_at(x, pool);
    case 7: return gcp_upsample(x, .factor = size(31), .mode = (gcp_upsampling)roll(2));
    default:
        return gcp_batch_norm(
            gcp_concat(GCP_TENSORS(x, gcp_slice(x, .first = channels / 2, .count = channels - channels / 2))));
    }
}

static void nobody(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    (void)context;
    (void)tasks;
    (void)task;
    (void)arg;
}

static void one(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = image(), y = some_op(roll(2) ? gcp_want_grad(x) : x);
    gcp_code code = gcp_error_code(net);
    recorded += code == GCP_OK;
    CHECK(code ? code == GCP_E_SHAPE || code == GCP_E_ARGUMENT : !gcp_is_nil(y));
    const gcp_target target = { .isa = GCP_ISA_SCALAR + (int)roll(2), .threads = 1 + (int)roll(64) };
    gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL, .optimizer = (gcp_optimizer)roll(4),
                                  .target = &target);
    if (plan.core) {
        planned++;
        CHECK(plan.bytes == plan.state_bytes + plan.slab_bytes && plan.room > plan.bytes &&
              plan.slab_bytes >= plan.live_peak);
    } else CHECK(gcp_error(net) != NULL);
}

/* Found from outside: a division by a product that had wrapped to zero. */
static void wrapped(void)
{
    if (sizeof(void *) == 4) return;                 /* sizes are refused before they come there */
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 16, 2, 3));
    int line = __LINE__ + 1;
    CHECK(gcp_is_nil(gcp_conv_transpose2d(x, .out = 67108864, .kh = 3, .kw = 64)));
    char want[96];
    snprintf(want, sizeof want, "test_extremes.c:%d: conv_transpose2d: 1x16x2x3 with a 3x64 kernel", line);
    CHECK(gcp_error(net) && !strncmp(gcp_error(net), want, strlen(want)));
    gcp_error_clear(net);
    gcp_tensor y = gcp_conv_transpose2d(x, .out = 8388608, .kh = 3, .kw = 64, .no_bias = 1, .name = "fits");
    gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL);
    CHECK(plan.core && plan.bytes > GCP_GB(36));
    gcp_error_clear(net);
    x = gcp_input(net, "huge", GCP_SHAPE(1 << 30, (1 << 27) - 1));
    for (int i = 0; i < 8; i++) x = gcp_gelu(i ? x : gcp_want_grad(x));
    CHECK(gcp_plan_make(gcp_mean(x), .policy = GCP_POLICY_KEEP_ALL).core == NULL &&
          gcp_error_code(net) == GCP_E_SHAPE &&
          strstr(gcp_error(net), "more than can be addressed"));
}

/* Found from outside, on 32-bit systems: strides that no tap uses, and scratch of many threads. */
static void strides(void)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 16);
        gcp_tensor x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(1, 8, 8, 256)));
        gcp_tensor y = transposed ? gcp_conv_transpose2d(x, .out = 1, .k = 17, .pad = 8)
                                  : gcp_conv2d(x, .out = 1, .k = 17, .pad = 8, .stride = 1 << 22);
        CHECK(gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL).core != NULL);
        const gcp_target crowd = { .threads = 1 << 20, .parallel_for = nobody };
        gcp_plan plan = gcp_plan_make(gcp_mean(gcp_conv2d(x, .out = 16, .k = 5)), .policy = GCP_POLICY_KEEP_ALL,
                                      .target = &crowd);
        CHECK(sizeof(void *) == 4 ? !plan.core && strstr(gcp_error(net), "more than can be addressed")
                                  : plan.bytes > GCP_GB(4));
    }
}

/* Found from outside: budgets whose bytes, rounded up, wrapped to zero. */
static void budgets(void)
{
    static unsigned char memory[GCP_MB(4)];
    const char *graph = "f a 1 64 0\nf b 1 64 0 a\nb b_b 1 64 0 b\nb a_b 1 64 0 b_b a\n";
    arena = gcp_arena_from(memory, sizeof memory);
    net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor y = gcp_tanh(gcp_input(net, "x", GCP_SHAPE(64, 64))), label = gcp_labels(net, "label", GCP_SHAPE(64));
    y = gcp_linear(gcp_tanh(gcp_concat(GCP_TENSORS(y, gcp_sigmoid(y)))), .out = 3);
    gcp_tensor loss = gcp_cross_entropy(y, label);
    for (int i = 0; i < 130; i++) {
        const size_t budget = SIZE_MAX - (size_t)i;
        gcp_plan plan = gcp_graph_plan(net, graph, .policy = GCP_POLICY_BUDGET, .budget = budget);
        CHECK(gcp_plan_ok(&plan));
        gcp_plan_free(&plan);
        if (i % 16) continue;
        plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = budget, .far = GCP_MB(1));
        CHECK(gcp_plan_ok(&plan) && plan.bound_seconds <= plan.seconds * (1 + 1e-12));
        gcp_plan_free(&plan);
    }
}

int main(int argc, char **argv)
{
    int count = argc > 1 ? atoi(argv[1]) : 20000;
    wrapped();
    strides();
    budgets();
    for (int i = 0; i < count; i++) one();
    printf("%d shapes, %d recorded, %d planned\n", count, recorded, planned);
    CHECK(planned > count / 8);
    return check_done();
}
