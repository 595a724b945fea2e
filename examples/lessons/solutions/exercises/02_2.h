/* The rest is the state: plan->bytes = plan->state_bytes + plan->slab_bytes. */
static size_t exercise_2(const gcp_plan *plan) { return plan->slab_bytes; }
