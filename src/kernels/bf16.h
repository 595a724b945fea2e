/* bfloat16: the upper half of a float. Kernels compute in gcp_real. They widen a block of rows to their own memory, and
   round what they made. To the nearest, ties to even, as IEEE 754 says of any format; a NaN stays one. The bits are the
   same for every instruction set (AVX-512's own instructions make denormals 0, so they are not used). */

typedef uint16_t gcpi_half;

GCPI_BODY float gcpi_float_of(uint32_t bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
GCPI_BODY uint32_t gcpi_bits_of(float x) { uint32_t bits; memcpy(&bits, &x, sizeof bits); return bits; }

/* The bits of x, rounded: the lower half is to be left out. */
GCPI_BODY uint32_t gcpi_rounded_bits(float x)
{
    const uint32_t bits = gcpi_bits_of(x), sum = bits + 0x7fffu + (bits >> 16 & 1u);
    return (bits & 0x7fffffffu) > 0x7f800000u ? bits | 0x400000u : sum;
}
GCPI_BODY gcpi_half gcpi_half_of(gcp_real x) { return (gcpi_half)(gcpi_rounded_bits((float)x) >> 16); }
GCPI_BODY gcp_real gcpi_half_value(gcpi_half h) { return (gcp_real)gcpi_float_of((uint32_t)h << 16); }
GCPI_BODY gcp_real gcpi_half_rounded(gcp_real x)
{
    return (gcp_real)gcpi_float_of(gcpi_rounded_bits((float)x) & 0xffff0000u);
}

GCPI_DEF uint16_t gcp_bf16(float x) { return (uint16_t)(gcpi_rounded_bits(x) >> 16); }
GCPI_DEF float gcp_bf16_value(uint16_t bits) { return gcpi_float_of((uint32_t)bits << 16); }

/* Runs of values: widened, rounded to halves, rounded where they are. */
typedef struct gcpi_halves {
    void (*widen)(gcp_real *to, const gcpi_half *from, ptrdiff_t n);
    void (*narrow)(gcpi_half *to, const gcp_real *from, ptrdiff_t n);
    void (*settle)(gcp_real *x, ptrdiff_t n);
} gcpi_halves;
#define GCPI_HALVES(ISA, TARGET)                                                                                       \
    GCPI_LOOP TARGET void ISA##_widen(gcp_real *GCPI_RESTRICT to, const gcpi_half *GCPI_RESTRICT from, ptrdiff_t n)    \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = gcpi_half_value(from[i]);                                            \
    }                                                                                                                  \
    GCPI_LOOP TARGET void ISA##_narrow(gcpi_half *GCPI_RESTRICT to, const gcp_real *GCPI_RESTRICT from, ptrdiff_t n)   \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < n; i++) to[i] = gcpi_half_of(from[i]);                                               \
    }                                                                                                                  \
    GCPI_LOOP TARGET void ISA##_settle(gcp_real *x, ptrdiff_t n)                                                       \
    {                                                                                                                  \
        for (ptrdiff_t i = 0; i < n; i++) x[i] = gcpi_half_rounded(x[i]);                                              \
    }                                                                                                                  \
    static const gcpi_halves ISA##_halves = { ISA##_widen, ISA##_narrow, ISA##_settle };
GCPI_HALVES(gcpi_any, )
#if GCPI_X86
GCPI_HALVES(gcpi_avx2, GCPI_AVX2)
GCPI_HALVES(gcpi_avx512, GCPI_AVX512)
#endif

static const gcpi_halves *gcpi_halves_of(int isa)
{
#if GCPI_X86
    if (isa == GCP_ISA_AVX512) return &gcpi_avx512_halves;
    if (isa == GCP_ISA_AVX2) return &gcpi_avx2_halves;
#endif
    (void)isa;
    return &gcpi_any_halves;
}

/* Elements of an operand: gcp_real, or halves. Steps and places are in elements. */
typedef struct gcpi_data { void *at; int half; } gcpi_data;
static gcpi_data gcpi_reals(const gcp_real *at)
{
    gcpi_data d = { (void *)(uintptr_t)at, 0 };
    return d;
}
static gcpi_data gcpi_data_at(gcpi_data d, ptrdiff_t element)
{
    d.at = (unsigned char *)d.at + element * (ptrdiff_t)(d.half ? sizeof(gcpi_half) : sizeof(gcp_real));
    return d;
}
/* n elements from `element` on, to and from gcp_real. */
static void gcpi_data_load(const gcpi_halves *h, gcpi_data d, ptrdiff_t element, gcp_real *to, ptrdiff_t n)
{
    d = gcpi_data_at(d, element);
    if (d.half) h->widen(to, (const gcpi_half *)d.at, n);
    else memcpy(to, d.at, (size_t)n * sizeof *to);
}
static void gcpi_data_store(const gcpi_halves *h, gcpi_data d, ptrdiff_t element, const gcp_real *from, ptrdiff_t n)
{
    d = gcpi_data_at(d, element);
    if (d.half) h->narrow((gcpi_half *)d.at, from, n);
    else memcpy(d.at, from, (size_t)n * sizeof *from);
}
