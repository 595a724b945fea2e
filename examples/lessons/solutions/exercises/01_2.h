/* 1,000 bits are 125 bytes a layer. */
static int exercise_2(int layers) { return 125 * layers; }
