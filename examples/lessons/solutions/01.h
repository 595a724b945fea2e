/* y = x x, so dy/dx = 2 x: backward reads the input, not the output. */
static double exercise_1(double x, double gradient) { return 2 * x * gradient; }
/* 1,000 bits are 125 bytes a layer. */
static int exercise_2(int layers) { return 2000 + 125 * layers; }
