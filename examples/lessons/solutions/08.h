static int exercise_1(const table_net *t, const int *bytes, int p)
{
    int sum = 0;
    for (int made = 0; made <= p; made++) {
        int read = 0;
        for (int i = p + 1; i < t->n; i++) read |= t->first[i] == made || t->second[i] == made;
        if (read) sum += bytes[made];
    }
    return sum;
}
/* Each layer reads the two before it. */
static table_net exercise_2(int n)
{
    table_net t = chain(n);
    for (int i = 2; i < n; i++) t.second[i] = i - 2;
    return t;
}
