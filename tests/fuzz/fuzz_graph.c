/* Graphs as text. What is accepted prints as a graph that is planned the same. */
#include "fuzz.h"

static unsigned char tape_memory[16 << 20];
static fuzz_sink printed;

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = fuzz_text(data, size);
    if (!text) return 0;
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
    gcp_plan keep = fuzz_planned(tape, text, GCP_POLICY_KEEP_ALL, 0);
    if (keep.core) {
        gcp_graph_print(&keep, fuzz_writer(&printed));
        gcp_plan again = fuzz_planned(tape, printed.text, GCP_POLICY_KEEP_ALL, 0);
        FUZZ_CHECK(again.core && again.live_peak == keep.live_peak && again.state_bytes == keep.state_bytes &&
                   again.instructions == keep.instructions);
        fuzz_planned(tape, text, GCP_POLICY_SQRT, 0);
        fuzz_planned(tape, text, GCP_POLICY_RECURSIVE, 0);
    }
    free(text);
    return 0;
}
