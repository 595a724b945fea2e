static int exercise_1(int n)
{
    int best = 1;
    for (int k = 1; k <= n; k++)
        if (n % k == 0 && n / k + k < n / best + best) best = k;
    return best;
}
