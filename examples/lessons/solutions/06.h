/* beta(s, r) = C(s + r, s): Griewank and Walther 2000. */
static int exercise_1(int states, int times) { return (int)binomial(states + times, states); }
static int exercise_2(int steps, int times)
{
    int states = 1;
    while (exercise_1(states, times) < steps) states++;
    return states;
}
