static int more_1(void) { return GIVES(exercise_1(2, 5), 21) && GIVES(exercise_1(1, 7), 8); }
static int more_2(void) { return GIVES(exercise_2(56, 3), 5) && GIVES(exercise_2(57, 3), 6); }
static int more_3(void) { return programme(64, 8); }
