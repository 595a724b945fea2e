/* In the uneven chain a cut in the middle costs 1 and halves the rest; two early and late ones cost 4 and 2. */
static int exercise_2(const int *bytes, const int *cut, int n)
{
    int kept = 0, inside = 0, most = 0;
    for (int i = 0; i < n; i++) {
        inside += bytes[i];
        if (inside > most) most = inside;
        if (cut[i]) { kept += bytes[i]; inside = 0; }
    }
    return kept + most;
}
