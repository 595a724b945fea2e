/* Exercise 1. y = x x is a layer, too. Write its backward: it has x and the gradient of y; return the gradient of x. */
static double exercise_1(double x, double gradient)
{
    (void)x; (void)gradient;
    return 0;                            /* yours */
}
