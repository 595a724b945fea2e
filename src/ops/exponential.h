/* exp, tanh and the normal distribution, without a branch. So a loop around them is vectorised, with the bits of one
   value at a time, for every instruction set. exp is within 1 ulp, tanh within 2.5, the distribution within 7 of
   its value; sums and doubles take <math.h>. */

/* One value at a time, never inlined: under fast math <math.h> declares vector forms of these with other bits, and a
   loop around the call would use them. */
GCPI_ALONE double gcpi_exp(double x) { return exp(x); }
GCPI_ALONE double gcpi_pow(double x, double y) { return pow(x, y); }
GCPI_ALONE double gcpi_tanh_double(double x) { return tanh(x); }
GCPI_ALONE double gcpi_phi_double(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }

GCPI_BODY float gcpi_float_of(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
GCPI_BODY uint32_t gcpi_bits_of(float x) { uint32_t bits; memcpy(&bits, &x, sizeof bits); return bits; }

/* yes ? a : b, by masks: gcc vectorises no loop with a choice between floats. */
GCPI_BODY float gcpi_either(int yes, float a, float b)
{
    const uint32_t mask = 0u - (uint32_t)yes;
    return gcpi_float_of((gcpi_bits_of(a) & mask) | (gcpi_bits_of(b) & ~mask));
}
GCPI_BODY float gcpi_within(float x, float low, float high)                     /* NaN: low */
{
    x = gcpi_either(x > low, x, low);
    return gcpi_either(x < high, x, high);
}
GCPI_BODY float gcpi_positive(float x) { return gcpi_float_of(gcpi_bits_of(x) & 0x7fffffffu); }
GCPI_BODY float gcpi_signed(float x, float sign)                                /* x >= 0 */
{
    return gcpi_float_of(gcpi_bits_of(x) | (gcpi_bits_of(sign) & 0x80000000u));
}

/* x = n ln 2 + rest, by Cody and Waite: 0.693359375 has few bits, so that n times it is exact. */
GCPI_BODY int gcpi_twos(float x, float *rest)
{
    const float k = x * 1.44269504f;
    const int n = (int)(k + gcpi_signed(0.5f, k));
    *rest = (x - (float)n * 0.693359375f) + (float)n * 2.12194440e-4f;
    return n;
}
GCPI_BODY float gcpi_two_to(int n) { return gcpi_float_of((uint32_t)(n + 127) << 23); }         /* -126 <= n <= 127 */
/* exp(r) - 1 for |r| <= 0.4: minimax, 3e-3 ulp. */
GCPI_BODY float gcpi_expm1_near(float r)
{
    float p = 1.9944015e-4f;
    p = p * r + 1.3965063e-3f;
    p = p * r + 8.333211e-3f;
    p = p * r + 4.1665964e-2f;
    p = p * r + 1.6666667e-1f;
    p = p * r + 0.5f;
    return r + r * r * p;
}

/* exp(x + rest), where |rest| <= 0.05. Two factors reach what is below the least normal float. */
GCPI_BODY float gcpi_exp_of(float x, float rest)
{
    float near;
    const int n = gcpi_twos(gcpi_within(x, -104, 89), &near), half = ((n + 256) >> 1) - 128;
    const float y = (1 + gcpi_expm1_near(near + rest)) * gcpi_two_to(half) * gcpi_two_to(n - half);
    return gcpi_either(x == x, y, x);
}
/* By e = exp(2 |x|) - 1, which loses nothing near 0: e / (e + 2). Above 9.02 it is 1. */
GCPI_BODY float gcpi_tanh_of(float x)
{
    float near;
    const int n = gcpi_twos(2 * gcpi_within(gcpi_positive(x), 0, 9.02f), &near);
    const float e = gcpi_two_to(n) * gcpi_expm1_near(near) + (gcpi_two_to(n) - 1);
    return gcpi_either(x == x, gcpi_signed(e / (e + 2), x), x);
}
/* exp(-x x / 2). The upper bits of x have an exact square; the rest of it goes beside. */
GCPI_BODY float gcpi_bell(float x)
{
    const float near = gcpi_within(x, -16, 16), upper = gcpi_float_of(gcpi_bits_of(near) & 0xfffff000u);
    return gcpi_exp_of(-0.5f * upper * upper, -0.5f * (near - upper) * (near + upper));
}
/* The normal distribution's tail beyond |x| is bell(x) times a slow function: a polynomial of (|x| - 2.5) / (|x| + 2.5)
   over 1 + 2 |x|: minimax, 0.06 ulp. */
GCPI_BODY float gcpi_phi_of(float x)
{
    const float a = gcpi_within(gcpi_positive(x), 0, 16), t = 2 * (a / (a + 2.5f)) - 1;
    float p = -1.5305165e-4f;
    p = p * t - 4.79483e-4f;
    p = p * t + 1.9435197e-4f;
    p = p * t + 2.8887652e-3f;
    p = p * t + 1.7460145e-3f;
    p = p * t - 1.5049254e-2f;
    p = p * t - 1.2275886e-2f;
    p = p * t + 1.1667554e-1f;
    p = p * t - 1.8856905e-1f;
    p = p * t + 4.4894792e-2f;
    p = p * t + 8.47988e-1f;
    const float tail = gcpi_bell(x) * (p / (1 + 2 * a));
    return gcpi_either(x == x, gcpi_either(x > 0, 1 - tail, tail), x);
}

enum { GCPI_DOUBLE = sizeof(gcp_real) == sizeof(double) };
GCPI_BODY gcp_real gcpi_exp1(gcp_real x)
{
    return GCPI_DOUBLE ? (gcp_real)gcpi_exp((double)x) : (gcp_real)gcpi_exp_of((float)x, 0);
}
GCPI_BODY gcp_real gcpi_tanh1(gcp_real x)
{
    return GCPI_DOUBLE ? (gcp_real)gcpi_tanh_double((double)x) : (gcp_real)gcpi_tanh_of((float)x);
}
GCPI_BODY gcp_real gcpi_phi(gcp_real x)
{
    return GCPI_DOUBLE ? (gcp_real)gcpi_phi_double((double)x) : (gcp_real)gcpi_phi_of((float)x);
}
GCPI_BODY gcp_real gcpi_density(gcp_real x)
{
    return (gcp_real)0.39894228040143267794 *
           (GCPI_DOUBLE ? (gcp_real)gcpi_exp(-0.5 * (double)x * (double)x) : (gcp_real)gcpi_bell((float)x));
}
