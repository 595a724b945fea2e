/* Two files of one program: this one has the implementation, two_units_b.c uses it. */
#define GCP_IMPLEMENTATION
#include "gcp.h"

static unsigned char tape_memory[GCP_KB(256)];
gcp_tensor two_units_network(gcp_tape *net);

int main(void)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16);
    gcp_plan plan = gcp_plan_make(two_units_network(net));
    return plan.core == NULL || gcp_error(net) != NULL;
}
