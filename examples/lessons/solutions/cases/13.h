static int more_1(void) { return GIVES(exercise_1(2, 10), 10) && GIVES(exercise_1(1, 77), 0); }
static int more_2(void) { return GIVES(exercise_2(3, 12), 0.25); }
