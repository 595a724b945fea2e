static int more_1(void) { return 1; }
/* Other orders of the threads. */
static int more_2(void)
{
    int wrong = 0;
    for (unsigned seed = 11; seed < 20; seed++) {
        hostcuda_order(2, seed);
        wrong += sum(exercise_2) != sum(sum_in_pairs);
    }
    return lesson_case("Wrong sums in nine more orders: exercise_2", wrong, 0);
}
