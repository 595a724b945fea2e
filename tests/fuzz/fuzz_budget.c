/* Graphs as text, planned for a budget: the plan fits and is not faster than its bound, and the least budget that is
   said to work does. Apart from fuzz_graph.c, for a search takes a thousand times longer than a parse. */
#include "fuzz.h"

enum { SEARCHED = 40 };                 /* instructions */
static unsigned char tape_memory[64 << 20];

static void searched(gcp_tape *tape, const char *text, size_t budget)
{
    gcp_plan plan = fuzz_planned(tape, text, GCP_POLICY_BUDGET, budget);
    if (!plan.core) {
        FUZZ_CHECK(gcp_error_code(tape) == GCP_E_BUDGET && plan.least_bytes > budget);
        budget = plan.least_bytes;
        plan = fuzz_planned(tape, text, GCP_POLICY_BUDGET, budget);
    }
    FUZZ_CHECK(plan.core && plan.bytes <= budget && plan.bound_seconds <= plan.seconds);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (!text) return 0;
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
    gcp_plan keep = fuzz_planned(tape, text, GCP_POLICY_KEEP_ALL, 0);
    if (keep.core && keep.bytes && keep.instructions <= SEARCHED)
        searched(tape, text, 1 + keep.state_bytes + keep.slab_bytes / 8 * (3 + size % 6));     /* 0: not given */
    free(text);
    return 0;
}
