/* Exercise 2. Return the smallest batch for which activations and their gradients are more than half of the dense
   network's bytes (1 segment). They are in the plan's split. */
static int exercise_2(void)
{
    return 0;                            /* yours */
}
