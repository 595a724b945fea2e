/* Each segment of k layers drops k - 1 tensors. */
static int exercise_1(int layers, int first, int second) { return layers - (first - 1) - (second - 1); }
