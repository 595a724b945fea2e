static int exercise_2(double rate) { return (int)(0.008 * rate / (2.0 * BYTES)); }
