static double exercise_2(const gcp_plan *plan)
{
    const gcp_split *s = &plan->split;
    return (double)(s->kept + s->activation_gradients) / (double)plan->bytes;
}
