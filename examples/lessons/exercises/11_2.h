/* Exercise 2. The link works beside the computing, and for 8 milliseconds it has nothing else to do. Return how many
   whole activations of 1,000,000 bytes go away and come back in that time at such a rate (bytes a second). */
static int exercise_2(double rate)
{
    (void)rate;
    return 0;                            /* yours */
}
