static int more_1(void) { return GIVES(pow(exercise_1(0.99), 2), 0.99) && GIVES(exercise_1(0.25), 0.5); }
/* No bit of seed or step is lost, and neighbours of many kinds differ in half of the cases. */
static int more_2(void)
{
    int far = 0, high = 0, pairs = 0;
    for (unsigned i = 0; i < 10000; i++) {
        far += exercise_2(5, 9, i) != exercise_2(5, 9, i + 4096);
        high += exercise_2(5, 9, i) != exercise_2(5 + (1u << 20), 9, i);
        pairs += exercise_2(i, 3, 7) != exercise_2(i, 4, 7);
    }
    printf("Further off, in another high bit, over seeds: %d, %d, %d of 10,000.\n", far, high, pairs);
    return abs(far - 5000) < 500 && abs(high - 5000) < 500 && abs(pairs - 5000) < 500;
}
