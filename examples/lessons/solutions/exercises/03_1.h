/* By trying, or by gcp_max_batch. */
static int exercise_1(size_t bytes)
{
    gcp_arena arena;
    int batch = 1;
    while (plan_of(shallow(&arena, batch + 1)).bytes <= bytes) batch++;
    return batch;
}
