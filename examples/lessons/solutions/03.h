/* By trying, or by gcp_max_batch; plan_of(&arena, batch).bytes is known without a step. */
static int exercise_1(void)
{
    gcp_arena arena;
    int batch = 1;
    while (plan_of(&arena, batch + 1).bytes <= GCP_MB(2)) batch++;
    return batch;
}
static double exercise_2(const gcp_plan *plan)
{
    const gcp_split *s = &plan->split;
    return (double)(s->kept + s->activation_gradients) / (double)plan->bytes;
}
