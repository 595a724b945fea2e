static double exercise_1(double momentum) { return sqrt(momentum); }
