/* Exercise 2. This function adds a number to x, another one in each call. So it must not stand in a segment. Change
   it: let it add a number between 0 and 1 that depends on the element's index alone, another for each index.
   (gcp_dropout draws its random numbers so.) */
static float exercise_2(float x, int index)
{
    static int called;
    (void)index;
    return x + 0.001f * (float)called++;  /* yours */
}
