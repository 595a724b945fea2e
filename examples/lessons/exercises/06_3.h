/* Exercise 3. Revolve's dynamic programme. Return the fewest steps that are run forward to go back through so many
   steps with so many states, the first among them. Do not call formula(), binomial(), reverse() or your other
   exercises: it is what you are checked against. One step needs none. With one state: l - 1, then l - 2, and so on.
   Else run forward j steps and keep that state: it costs j, then what lies behind j with one state less, then the j
   steps before it. Try every j, and keep results in a table, as the same ones are asked for again and again: steps
   up to STEPS, states up to 8. */
static int exercise_3(int steps, int states)
{
    (void)steps; (void)states;
    return 0;                            /* yours */
}
