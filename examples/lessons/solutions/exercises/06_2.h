static int exercise_2(int steps, int times)
{
    int states = 1;
    while (binomial(states + times, states) < steps) states++;
    return states;
}
