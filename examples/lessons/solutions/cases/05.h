static int more_1(void) { return GIVES(exercise_1(144), 12) && GIVES(exercise_1(100), 10); }
static int more_2(void)
{
    static const int bytes[] = { 5, 1, 1, 7, 2 }, cut[] = { 0, 1, 1, 0, 0 }, none[] = { 0, 0, 0, 0, 0 };
    return lesson_case("exercise_2 of 5 1 1 7 2 with two cuts", exercise_2(bytes, cut, 5), 11) &&
           lesson_case("exercise_2 of 5 1 1 7 2 with none", exercise_2(bytes, none, 5), 16);
}
