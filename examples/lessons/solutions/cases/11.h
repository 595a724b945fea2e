static int more_1(void) { return GIVES(exercise_1(0.25, 1e9), 8e9); }
static int more_2(void) { return GIVES(exercise_2(7.6e8), 3) && GIVES(exercise_2(1e8), 0); }
