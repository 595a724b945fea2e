/* Exercise 1. Return the bytes that each of so many workers sends if the gradients are so many bytes. */
static double exercise_1(int workers, double bytes)
{
    (void)workers; (void)bytes;
    return 0;                            /* yours */
}
