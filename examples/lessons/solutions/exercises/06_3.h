static int exercise_3(int steps, int states)
{
    static int best[STEPS + 1][STEPS + 1];
    for (int s = 1; s <= states; s++)
        for (int l = 1; l <= steps; l++) {
            best[l][s] = l * (l - 1) / 2;
            for (int j = 1; s > 1 && j < l; j++) {
                const int cost = j + best[l - j][s - 1] + best[j][s];
                if (cost < best[l][s]) best[l][s] = cost;
            }
        }
    return best[steps][states];
}
