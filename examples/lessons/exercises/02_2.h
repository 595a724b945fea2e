/* Exercise 2. Return all bytes of a step but those that outlive it (the weights, for one). Look for gcp_plan in
   gcp.h: one of its fields is the number. */
static size_t exercise_2(const gcp_plan *plan)
{
    (void)plan;
    return 0;                            /* yours */
}
