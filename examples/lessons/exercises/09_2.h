/* Exercise 2. Return a dropout mask, 0 or 1 with equal chances, that depends on seed, step and element alone. Mix
   the three numbers well (multiply by odd constants, shift, xor), and keep nothing between calls. */
static int exercise_2(unsigned seed, unsigned step, unsigned element)
{
    (void)seed; (void)step; (void)element;
    return 0;                            /* yours */
}
