static int more_1(void) { return GIVES(exercise_1(100, 30, 40), 32) && GIVES(exercise_1(9, 2, 7), 2); }
static int more_2(void)
{
    int different = 0;
    for (int i = 0; i < 50; i++) different += exercise_2(0, i) != exercise_2(0, i + 1);
    return lesson_case("Neighbours that get different numbers, of 50: exercise_2", different, 50);
}
