static double exercise_1(int workers, double bytes) { return 2.0 * (workers - 1) / workers * bytes; }
