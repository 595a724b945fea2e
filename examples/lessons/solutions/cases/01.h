static int more_1(void) { return GIVES(exercise_1(1.5, -2), -6) && GIVES(exercise_1(0, 5), 0); }
static int more_2(void) { return GIVES(exercise_2(1), 125) && GIVES(exercise_2(24), 3000); }
static int more_3(void) { return checkpointed(16, 8) && checkpointed(7, 2) && checkpointed(9, 9); }
