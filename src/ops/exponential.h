/* exp, log, square root, tanh and the normal distribution, without a branch. So a loop around them is vectorised, with
   the bits of one value at a time. Where the result is a normal number exp, log and root are within 1.1 ulp, tanh,
   sigmoid, expm1 and log1p within 3, the distribution within 8, for every instruction set. Sums and doubles take
   <math.h>. */

/* One value at a time, never inlined: under fast math <math.h> declares vector forms of these with other bits, and a
   loop around the call would use them. */
GCPI_ALONE double gcpi_exp(double x) { return exp(x); }
GCPI_ALONE double gcpi_pow(double x, double y) { return pow(x, y); }
GCPI_ALONE double gcpi_log(double x) { return log(x); }
GCPI_ALONE double gcpi_log1p_double(double x) { return log1p(x); }
GCPI_ALONE double gcpi_expm1_double(double x) { return expm1(x); }
GCPI_ALONE double gcpi_tanh_double(double x) { return tanh(x); }
GCPI_ALONE double gcpi_phi_double(double x) { return 0.5 * erfc(-x * 0.70710678118654752440); }

GCPI_BODY float gcpi_positive(float x) { return gcpi_float_of(gcpi_bits_of(x) & 0x7fffffffu); }

/* a b + c, rounded once (fused: see GCPI_FUSED_SPAN) or twice. */
GCPI_BODY float gcpi_fma(int fused, float a, float b, float c)
{
#if GCPI_X86
    if (fused) return __builtin_fmaf(a, b, c);
#endif
    (void)fused;
    return a * b + c;
}
/* yes ? a : b, by masks: gcc vectorises no loop with a choice between floats. */
GCPI_BODY float gcpi_either(int yes, float a, float b)
{
    const uint32_t mask = 0u - (uint32_t)yes;
    return gcpi_float_of((gcpi_bits_of(a) & mask) | (gcpi_bits_of(b) & ~mask));
}
GCPI_BODY float gcpi_at_most(float x, float high) { return gcpi_either(x > high, high, x); }     /* NaN: x */
GCPI_BODY float gcpi_at_least(float x, float low) { return gcpi_either(x < low, low, x); }

/* x = n ln 2 + rest, by Cody and Waite: 0.693359375 has few bits, so that n times it is exact. n is rounded by adding a
   number with no bits for fractions. */
GCPI_BODY uint32_t gcpi_twos(int fused, float x, float *rest)
{
    const float sum = gcpi_fma(fused, x, 1.44269504f, 12582912), n = sum - 12582912;
    *rest = gcpi_fma(fused, n, 2.12194440e-4f, gcpi_fma(fused, n, -0.693359375f, x));
    return gcpi_bits_of(sum) - 0x4b400000u;
}
/* 2^n for -126 <= n <= 127; 0 for -127, infinity for 128 */
GCPI_BODY float gcpi_two_to(uint32_t n) { return gcpi_float_of((n + 127) << 23); }
/* exp(r) - 1 for |r| <= 0.4: minimax, 3e-3 ulp. */
GCPI_BODY float gcpi_expm1_near(int fused, float r)
{
    float p = gcpi_fma(fused, 1.9944015e-4f, r, 1.3965063e-3f);
    p = gcpi_fma(fused, p, r, 8.333211e-3f);
    p = gcpi_fma(fused, p, r, 4.1665964e-2f);
    p = gcpi_fma(fused, p, r, 1.6666667e-1f);
    p = gcpi_fma(fused, p, r, 0.5f);
    return gcpi_fma(fused, r * r, p, r);
}

/* Two factors reach what is below the least normal float. */
GCPI_BODY float gcpi_exp_of(int fused, float x)
{
    float rest;
    const uint32_t n = gcpi_twos(fused, gcpi_at_least(gcpi_at_most(x, 89), -104), &rest), half = ((n + 256) >> 1) - 128;
    return (1 + gcpi_expm1_near(fused, rest)) * gcpi_two_to(half) * gcpi_two_to(n - half);
}
/* exp(x) - 1 for x <= 88; below -30 it is -1. */
GCPI_BODY float gcpi_expm1_of(int fused, float x)
{
    float rest;
    const float power = gcpi_two_to(gcpi_twos(fused, gcpi_at_least(gcpi_at_most(x, 88), -30), &rest));
    return gcpi_fma(fused, power, gcpi_expm1_near(fused, rest), power - 1);
}
/* x = 2^n (1 + f) with 1 + f between sqrt(1/2) and sqrt(2); log(1 + f) by s = f / (2 + f) as in FreeBSD's logf.c
   (Sun Microsystems 1993). Denormals are scaled first. */
GCPI_BODY float gcpi_log_of(int fused, float x)
{
    const int tiny = x < 1.17549435e-38f;
    const uint32_t bits = gcpi_bits_of(gcpi_either(tiny, x * 33554432, x)) + (0x3f800000u - 0x3f3504f3u);
    const float n = (float)((int32_t)(bits >> 23) - 127 - 25 * tiny),
                f = gcpi_float_of((bits & 0x7fffffu) + 0x3f3504f3u) - 1, half = 0.5f * f * f,
                s = f / (2 + f), z = s * s;
    float p = gcpi_fma(fused, 0.24279079f, z, 0.28498787f);
    p = gcpi_fma(fused, p, z, 0.40000972f);
    p = gcpi_fma(fused, p, z, 0.66666663f);
    const float small = gcpi_fma(fused, s, gcpi_fma(fused, z, p, half), n * 9.0580006e-6f) - half + f,
                other = gcpi_either(x > 0, x, gcpi_either(x == 0, -HUGE_VALF, x - x + (x < 0 ? NAN : x)));
    return gcpi_either((x > 0) & (x <= 3.4028235e38f), gcpi_fma(fused, n, 0.69313812f, small), other);
}
/* By Newton's method for 1 / sqrt(x) from a guess by the exponent; the last step is the root's own. gcc vectorises no
   sqrtf that may set errno. Denormals are scaled first. */
GCPI_BODY float gcpi_sqrt_of(int fused, float x)
{
    const int tiny = x < 1.17549435e-38f;
    const float v = gcpi_either(tiny, x * 67108864, x), half = 0.5f * v;
    float r = gcpi_float_of(0x5f375a86u - (gcpi_bits_of(v) >> 1));
    for (int i = 0; i < 3; i++) r = r * gcpi_fma(fused, -half * r, r, 1.5f);
    const float y = v * r, root = gcpi_fma(fused, 0.5f * r, gcpi_fma(fused, -y, y, v), y);
    return gcpi_either((x > 0) & (x <= 3.4028235e38f), gcpi_either(tiny, root * 1.2207031e-4f, root),
                       gcpi_either(x < 0, NAN, x));
}
/* log(1 + x) for 0 <= x <= 1, by s = x / (2 + x): a series in s s, minimax, 0.08 ulp. */
GCPI_BODY float gcpi_log1p_of(int fused, float x)
{
    const float s = x / (2 + x), z = s * s;
    float p = gcpi_fma(fused, 0.14012229f, z, 0.13999571f);
    p = gcpi_fma(fused, p, z, 0.2001085f);
    p = gcpi_fma(fused, p, z, 0.33333206f);
    return gcpi_fma(fused, 2 * s * z, p, 2 * s);
}
/* 1 / (1 + exp(-x)): what is below 4e-39 is 0. */
GCPI_BODY float gcpi_sigmoid_of(int fused, float x)
{
    float rest;
    const uint32_t n = gcpi_twos(fused, gcpi_at_least(gcpi_at_most(-x, 88.9f), -87), &rest);
    return 1 / gcpi_fma(fused, 1 + gcpi_expm1_near(fused, rest), gcpi_two_to(n), 1);
}
/* By e = exp(2 |x|) - 1, which loses nothing near 0: e / (e + 2). Above 9.02 it is 1. */
GCPI_BODY float gcpi_tanh_of(int fused, float x)
{
    float rest;
    const float power = gcpi_two_to(gcpi_twos(fused, 2 * gcpi_at_most(gcpi_positive(x), 9.02f), &rest)),
                e = gcpi_fma(fused, power, gcpi_expm1_near(fused, rest), power - 1), y = e / (e + 2);
    return gcpi_float_of(gcpi_bits_of(y) | (gcpi_bits_of(x) & 0x80000000u));
}
/* exp(-a a / 2) for 0 <= a <= 13.29, where it is 0. What a a loses when it is rounded is put beside. */
GCPI_BODY float gcpi_bell(int fused, float a)
{
    const float upper = gcpi_float_of(gcpi_bits_of(a) & 0xfffff000u), square = fused ? a * a : upper * upper,
                lost = fused ? gcpi_fma(fused, a, a, -square) : (a - upper) * (a + upper);
    float rest;
    const float power = gcpi_two_to(gcpi_twos(fused, -0.5f * square, &rest));
    return (1 + gcpi_expm1_near(fused, gcpi_fma(fused, -0.5f, lost, rest))) * power;
}
GCPI_BODY float gcpi_bell_of(int fused, float x) { return gcpi_bell(fused, gcpi_at_most(gcpi_positive(x), 13.29f)); }
/* The normal distribution's tail beyond a = |x| is bell(a) times a slow function: a polynomial of
   t = (a - 2.5) / (a + 2.5) over 1 + 2 a: minimax, 0.06 ulp. One division makes both quotients. */
GCPI_BODY float gcpi_phi_of(int fused, float x)
{
    const float a = gcpi_at_most(gcpi_positive(x), 13.29f), first = a + 2.5f, second = gcpi_fma(fused, 2, a, 1),
                over = 1 / (first * second), t = gcpi_fma(fused, 2 * a * second, over, -1);
    float p = gcpi_fma(fused, -1.5305165e-4f, t, -4.79483e-4f);
    p = gcpi_fma(fused, p, t, 1.9435197e-4f);
    p = gcpi_fma(fused, p, t, 2.8887652e-3f);
    p = gcpi_fma(fused, p, t, 1.7460145e-3f);
    p = gcpi_fma(fused, p, t, -1.5049254e-2f);
    p = gcpi_fma(fused, p, t, -1.2275886e-2f);
    p = gcpi_fma(fused, p, t, 1.1667554e-1f);
    p = gcpi_fma(fused, p, t, -1.8856905e-1f);
    p = gcpi_fma(fused, p, t, 4.4894792e-2f);
    p = gcpi_fma(fused, p, t, 8.47988e-1f);
    const float tail = gcpi_bell(fused, a) * (p * (first * over));
    return gcpi_either(x > 0, 1 - tail, tail);
}

/* In gcp_real. What calls them, a body of GCPI_FUSED_SPAN, has `fused`. */
enum { GCPI_DOUBLE = sizeof(gcp_real) == sizeof(double) };
#define GCPI_OF(of_double, of_float) (GCPI_DOUBLE ? (gcp_real)(of_double) : (gcp_real)(of_float))
#define gcpi_exp1(x) GCPI_OF(gcpi_exp((double)(x)), gcpi_exp_of(fused, (float)(x)))
#define gcpi_expm11(x) GCPI_OF(gcpi_expm1_double((double)(x)), gcpi_expm1_of(fused, (float)(x)))      /* x <= 0 */
#define gcpi_log1(x) GCPI_OF(gcpi_log((double)(x)), gcpi_log_of(fused, (float)(x)))
#define gcpi_log1p1(x) GCPI_OF(gcpi_log1p_double((double)(x)), gcpi_log1p_of(fused, (float)(x)))      /* 0 <= x <= 1 */
#define gcpi_abs1(x) GCPI_OF(fabs((double)(x)), gcpi_positive((float)(x)))
#define gcpi_sqrt1(x) GCPI_OF(sqrt((double)(x)), gcpi_sqrt_of(fused, (float)(x)))
#define gcpi_tanh1(x) GCPI_OF(gcpi_tanh_double((double)(x)), gcpi_tanh_of(fused, (float)(x)))
#define gcpi_sigmoid1(x) GCPI_OF(1 / (1 + gcpi_exp(-(double)(x))), gcpi_sigmoid_of(fused, (float)(x)))
#define gcpi_phi(x) GCPI_OF(gcpi_phi_double((double)(x)), gcpi_phi_of(fused, (float)(x)))
#define gcpi_density(x) ((gcp_real)0.39894228040143267794 *                                              \
                         GCPI_OF(gcpi_exp(-0.5 * (double)(x) * (double)(x)), gcpi_bell_of(fused, (float)(x))))
