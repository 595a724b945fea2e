/* 8 w w 4 > 4 w (16 x 64 + 8), so w > 129. */
static int exercise_1(void)
{
    int words = 2;
    while (scores(words) <= formula(words)) words++;
    return words;
}
