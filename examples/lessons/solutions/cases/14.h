static int more_1(void) { return 1; }
static int more_2(void) { return dense_blocks(100, 4); }
