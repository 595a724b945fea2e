/* Exercise 2. Return a table of n layers in which two tensors cross every cut but the first: so that no cut but the
   first is good. */
static table_net exercise_2(int n)
{
    return chain(n);                     /* yours */
}
