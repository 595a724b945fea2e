/* C(s + r, s): Griewank 1992. */
static int exercise_1(int states, int times) { return (int)binomial(states + times, states); }
