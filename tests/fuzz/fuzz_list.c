/* Lists as text. What is accepted prints as a list that is accepted and the same, and runs to keep-all's bits. */
#include "fuzz.h"

static unsigned char tape_memory[1 << 20], state_memory[1 << 14], step_memory[1 << 18], far_memory[1 << 18];
static fuzz_sink once, twice;
static gcp_arena arena;
static gcp_tensor image, label, weight, loss;

static void record(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 5);
    image = gcp_input(net, "image", GCP_SHAPE(2, 4, 4, 2));
    label = gcp_labels(net, "label", GCP_SHAPE(2));
    gcp_tensor x = gcp_conv2d(image, .out = 3, .k = 3, .pad = 1);
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "block")
    x = gcp_relu(gcp_add(gcp_dropout(gcp_batch_norm(gcp_conv2d(x, .out = 3, .k = 3, .pad = 1)), .rate = 0.25), x));
    x = gcp_concat(GCP_TENSORS(gcp_tanh(x), gcp_sigmoid(x)));
    loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 3), label);
    weight = gcp_nth_parameter(net, 0);
}

/* A step's loss, the first gradient and the state, as bytes. */
static size_t step(gcp_plan *plan, unsigned char *out)
{
    float data[64], value, gradient[64];
    int classes[2] = { 1, 2 };
    for (int i = 0; i < 64; i++) data[i] = (float)(i * 37 % 64) / 64;
    FUZZ_CHECK(plan->slab_bytes <= sizeof step_memory && plan->far_bytes <= sizeof far_memory &&
               plan->state_bytes <= sizeof state_memory);
    memset(state_memory, 0, sizeof state_memory);
    FUZZ_CHECK(gcp_state_bind(plan->tape, state_memory, sizeof state_memory) == GCP_OK);
    FUZZ_CHECK(gcp_bind(plan, step_memory, sizeof step_memory) == GCP_OK);
    if (plan->far_bytes) FUZZ_CHECK(gcp_far_bind(plan, far_memory, sizeof far_memory) == GCP_OK);
    gcp_write(plan, image, data);
    gcp_write(plan, label, classes);
    value = (float)gcp_step(plan);
    FUZZ_CHECK(!gcp_error(plan->tape) && gcp_grad(plan, weight, gradient) == GCP_OK);
    memcpy(out, &value, sizeof value);
    memcpy(out + sizeof value, gradient, gcp_elements(weight) * sizeof *gradient);
    memcpy(out + sizeof value + sizeof gradient, state_memory, plan->state_bytes);
    return sizeof value + sizeof gradient + plan->state_bytes;
}

static void accepted(gcp_plan *plan)
{
    static unsigned char kept[1 << 15], got[1 << 15];
    static size_t size;
    gcp_list_print(plan, fuzz_writer(&once));
    gcp_plan again = gcp_plan_make(loss, .list = once.text);
    FUZZ_CHECK(again.core && again.bytes == plan->bytes && again.far_bytes == plan->far_bytes &&
               again.live_peak == plan->live_peak && again.instructions == plan->instructions);
    gcp_list_print(&again, fuzz_writer(&twice));
    FUZZ_CHECK(!strcmp(once.text, twice.text));
    FUZZ_CHECK(step(&again, got) > 0);
    if (!size) {
        record();
        gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
        FUZZ_CHECK(keep.core);
        size = step(&keep, kept);
    }
    FUZZ_CHECK(!memcmp(got, kept, size));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (!text) return 0;
    record();
    gcp_plan plan = gcp_plan_make(loss, .list = text);
    FUZZ_CHECK(!plan.core == !!gcp_error(loss.tape));
    if (plan.core) accepted(&plan);
    free(text);
    return 0;
}
