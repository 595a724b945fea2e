/* exp, log, tanh, the normal distribution and more at floats of every size, against <math.h> in double: within the
   units in the last place that exponential.h states, with fused multiply-adds and without. Every pointwise op, forward
   and backward: the bits of one value at a time in every vector, on every instruction set of this machine.
   Usage: test_exponential [all] */
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "support/check.h"

enum { BLOCK = 1003 };                                       /* no multiple of any vector */

/* The distance in units of the last place that a float of this size has; of denormals that of the least. */
static double ulps(float got, double want)
{
    int exponent;
    if (isnan(want) || isnan(got)) return isnan(want) && isnan(got) ? 0 : HUGE_VAL;
    if (isinf((float)want)) return isinf(got) || fabs(want) < 3.4028236e38 ? 0 : HUGE_VAL;
    frexp(want, &exponent);
    return fabs((double)got - want) / ldexp(1, (exponent < -125 ? -125 : exponent) - 24);
}
static float at(uint64_t bits) { return gcpi_float_of((uint32_t)bits); }

enum { FUNCTIONS = 9 };
static const char *const names[FUNCTIONS] = { "exp", "log", "root", "tanh", "sigmoid", "expm1", "log1p",
                                              "distribution", "density" };
static const double allowed[FUNCTIONS] = { 1.1, 1.1, 1.1, 3, 3, 3, 3, 8, 2 };

static void accuracy(uint64_t step)
{
    double worst[FUNCTIONS] = { 0 };
    long tiny = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32; bits += step) {
        const float f = at(bits), below = -gcpi_positive(f), share = fminf(1, gcpi_positive(f));
        const double x = (double)f, want[FUNCTIONS] = { exp(x), log(x), sqrt(x), tanh(x), 1 / (1 + exp(-x)),
                                                        expm1((double)below), log1p((double)share),
                                                        0.5 * erfc(-x * 0.70710678118654752440), exp(-0.5 * x * x) };
        for (int fused = 0; fused < 2; fused++) {
            const float got[FUNCTIONS] = { gcpi_exp_of(fused, f), gcpi_log_of(fused, f), gcpi_sqrt_of(fused, f),
                                           gcpi_tanh_of(fused, f), gcpi_sigmoid_of(fused, f),
                                           gcpi_expm1_of(fused, below), gcpi_log1p_of(fused, share),
                                           gcpi_phi_of(fused, f), gcpi_bell_of(fused, f) };
            for (int k = 0; k < FUNCTIONS; k++) {
                const int small = (k == 4 || k >= 7) && want[k] < 1.2e-38;              /* may be 0 */
                if (small) tiny += !(got[k] >= 0 && got[k] < 1.3e-38f);
                else worst[k] = fmax(worst[k], ulps(got[k], want[k]));
            }
        }
    }
    printf("ulp:");
    for (int k = 0; k < FUNCTIONS; k++) {
        printf(" %s %.2f", names[k], worst[k]);
        CHECK(worst[k] <= allowed[k]);
    }
    printf("\n");
    CHECK_INT(tiny, ==, 0);
}

/* Forward of x, or backward of dy = 1 with y as the ops' own forward makes it. */
static void values(gcpi_span_fn forward, gcpi_span_fn backward, int isa, int count, const float *x, float *to)
{
    const gcp_target target = { .isa = isa, .threads = 1 };
    gcpi_attributes attributes = gcpi_no_attributes();
    gcp_call call = { 0 };
    float in[BLOCK], y[BLOCK], one[BLOCK];
    attributes.pointwise[0] = 0.75; attributes.pointwise[1] = 0.5;
    call.target = &target; call.attributes = &attributes;
    for (int i = 0; i < count; i++) { in[i] = x[i]; one[i] = 1; }
    gcpi_span s = { { in, y }, NULL, (size_t)count, 0, &call, 0, 0 };
    forward(&s);
    if (!backward) { memcpy(to, y, (size_t)count * sizeof *to); return; }
    gcpi_span back = { { to, one, in, y }, NULL, (size_t)count, 0, &call, 0, 0 };
    backward(&back);
}

static void same_bits(uint64_t step)
{
#define SPANS(NAME, op) { gcpi_##op##_span, gcpi_##op##_span_back },
    static const struct { gcpi_span_fn forward, backward; } ops[] = { GCP_POINTWISE_OPS(SPANS) };
    enum { OPS = sizeof ops / sizeof *ops };
    float x[BLOCK], all[BLOCK], one;
    long differ = 0;
    for (uint64_t bits = 0; bits < (uint64_t)1 << 32;) {
        int count = 0;
        for (; count < BLOCK && bits < (uint64_t)1 << 32; bits += step) if (!isnan(at(bits))) x[count++] = at(bits);
        for (int isa = GCP_ISA_SCALAR; isa <= gcpi_isa_best(); isa++)
            for (int k = 0; k < 2 * OPS; k++) {
                const gcpi_span_fn forward = ops[k / 2].forward, backward = k % 2 ? ops[k / 2].backward : NULL;
                values(forward, backward, isa, count, x, all);
                for (int i = 0; i < count; i += 1 + count / 40) {
                    values(forward, backward, isa, 1, x + i, &one);
                    differ += memcmp(&one, all + i, sizeof one) && !(isnan(one) && isnan(all[i]));
                }
            }
    }
    CHECK_INT(differ, ==, 0);
}

/* Gradients and values where x is not finite, or as large as it can be. */
static void special(void)
{
    static const struct { float x, relu, clamp, mish, swish, soft; } rows[] = {
        { INFINITY, 1, 1, 1, 1, 1 }, { 3e38f, 1, 1, 1, 1, 1 }, { 1e18f, 1, 1, 1, 1, 1 }, { -3e38f, 0, 0, 0, 0, 0 } };
    for (int i = 0; i < (int)(sizeof rows / sizeof *rows); i++) {
        gcpi_attributes a = gcpi_no_attributes();
        a.rectifier.high = HUGE_VAL;
        const gcpi_rectifier relu = gcpi_rectifier_of(&a, GCP_STORE_REAL);
        a.rectifier.low = -1;
        const gcpi_rectifier above = gcpi_rectifier_of(&a, GCP_STORE_REAL);
        float got[3];
        CHECK(gcpi_within(&relu, gcpi_rectified(&relu, rows[i].x)) == (rows[i].relu > 0));
        CHECK(gcpi_within(&above, gcpi_rectified(&above, rows[i].x)) == (rows[i].clamp > 0));
        values(gcpi_mish_span, gcpi_mish_span_back, GCP_ISA_BEST, 1, &rows[i].x, got);
        values(gcpi_hard_swish_span, gcpi_hard_swish_span_back, GCP_ISA_BEST, 1, &rows[i].x, got + 1);
        values(gcpi_softplus_span, gcpi_softplus_span_back, GCP_ISA_BEST, 1, &rows[i].x, got + 2);
        CHECK(got[0] == rows[i].mish && got[1] == rows[i].swish && got[2] == rows[i].soft);
    }
    const float nan = NAN, large = 3.4e38f;
    float got;
    values(gcpi_hard_swish_span, gcpi_hard_swish_span_back, GCP_ISA_BEST, 1, &nan, &got);
    CHECK(isnan(got));
    values(gcpi_hard_swish_span, NULL, GCP_ISA_BEST, 1, &large, &got);
    CHECK(got == large);
    values(gcpi_softplus_span, NULL, GCP_ISA_BEST, 1, &large, &got);
    CHECK(got == large);
}

int main(int argc, char **argv)
{
    const int all = argc > 1 && !strcmp(argv[1], "all");
    special();
    accuracy(all ? 1 : 40009);
    same_bits(all ? 1013 : 400009);
    return check_done();
}
