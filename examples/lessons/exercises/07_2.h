/* Exercise 2. Return the smallest budget, to 64 bytes, in which a step takes at most `most` times keep-all's time:
   within(&plan, most) says that of plan = in_bytes(net, budget). Start from least(net) and keep_all(net).bytes, and
   halve what lies between. */
static size_t exercise_2(network *net, double most)
{
    (void)net; (void)most;
    return 0;                            /* yours */
}
