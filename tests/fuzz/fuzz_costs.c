/* Tables of costs. What is accepted gives seconds that are numbers, and no more of them than there are ops. */
#include <math.h>
#include "fuzz.h"

static unsigned char tape_memory[1 << 20];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (!text) return 0;
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "image", GCP_SHAPE(2, 4, 4, 2));
    for (int i = 0; i < 3; i++) x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 3, .k = 3, .pad = 1)));
    gcp_tensor loss = gcp_mean(gcp_mul(x, x));
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD, .costs = text);
    FUZZ_CHECK(plan.core ? !gcp_error(net) : gcp_error_code(net) == GCP_E_ARGUMENT);
    if (plan.core)
        FUZZ_CHECK(plan.seconds >= 0 && isfinite(plan.seconds) && plan.costed >= 0 && plan.costed <= plan.instructions);
    free(text);
    return 0;
}
