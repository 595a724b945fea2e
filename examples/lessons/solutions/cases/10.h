static int more_1(void)
{
    const gcp_plan p = plan_of(convolutions(), 4);
    return lesson_case("exercise_1 of 4 segments", exercise_1(&p), 1 - (double)fixed(&p) / (double)p.bytes);
}
static int more_2(void) { return 1; }
