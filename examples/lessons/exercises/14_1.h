/* Exercise 1. Return the fewest words of a text from which the scores of a block, if they were kept, would be more
   bytes than all that it leaves: scores(words) > formula(words). */
static int exercise_1(void)
{
    return 0;                            /* yours */
}
