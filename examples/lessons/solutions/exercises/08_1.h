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
