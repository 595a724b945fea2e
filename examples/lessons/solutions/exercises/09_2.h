/* A mixer in the manner of splitmix64; gcp uses Philox, which is a stronger one (Salmon et al. 2011). */
static int exercise_2(unsigned seed, unsigned step, unsigned element)
{
    unsigned long long x = seed * 0x9E3779B97F4A7C15ull;
    x ^= step * 0xBF58476D1CE4E5B9ull ^ element * 0x94D049BB133111EBull;
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9ull;
    x = (x ^ x >> 27) * 0x94D049BB133111EBull;
    return (int)((x ^ x >> 31) & 1);
}
