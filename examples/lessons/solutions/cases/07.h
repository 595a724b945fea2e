static int more_1(void) { return 1; }
static int more_2(void) { return smallest(skips, 1.2); }
static int more_3(void) { return 1; }
