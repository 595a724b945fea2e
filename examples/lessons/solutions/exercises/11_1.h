static double exercise_1(double seconds, double bytes) { return 2 * bytes / seconds; }
