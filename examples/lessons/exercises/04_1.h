/* Exercise 1. A chain of so many layers has two segments. One holds `first` layers, the other `second`; the layers
   that are left stand between the two and behind them. Return how many tensors wait where forward is done. */
static int exercise_1(int layers, int first, int second)
{
    (void)layers; (void)first; (void)second;
    return 0;                            /* yours */
}
