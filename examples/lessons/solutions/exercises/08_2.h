/* Each layer reads the two before it. */
static table_net exercise_2(int n)
{
    table_net t = chain(n);
    for (int i = 2; i < n; i++) t.second[i] = i - 2;
    return t;
}
