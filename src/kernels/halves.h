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

/* Element i of an operand, in a loop for halves or one for gcp_real: half is a literal. */
#define GCPI_AT(half, p, i) \
    ((half) ? gcpi_half_value(((const gcpi_half *)(p))[i]) : ((const gcp_real *)(p))[i])
/* An operand from element i on. */
#define GCPI_FROM(half, p, i) \
    ((half) ? (void *)((gcpi_half *)(void *)(p) + (i)) : (void *)((gcp_real *)(void *)(p) + (i)))
#define GCPI_PUT(half, p, i, value)                                        \
    {                                                                      \
        if (half) ((gcpi_half *)(p))[i] = gcpi_half_of(value);             \
        else ((gcp_real *)(p))[i] = (value);                               \
    }
/* What is rounded already is stored as it is. */
#define GCPI_PUT_SETTLED(half, p, i, value)                                                   \
    {                                                                                         \
        if (half) ((gcpi_half *)(p))[i] = (gcpi_half)(gcpi_bits_of((float)(value)) >> 16);    \
        else ((gcp_real *)(p))[i] = (value);                                                  \
    }
/* Rounded where the loop is for halves. */
#define GCPI_SETTLED(half, x) ((half) ? gcpi_half_rounded(x) : (x))

GCPI_DEF uint16_t gcp_bf16(float x) { return (uint16_t)(gcpi_rounded_bits(x) >> 16); }
GCPI_DEF float gcp_bf16_value(uint16_t bits) { return gcpi_float_of((uint32_t)bits << 16); }

/* Runs of values: widened, rounded to halves, floats rounded where they are. The first two take rows of n values, so
   many elements apart. */
typedef struct gcpi_halves {
    void (*widen)(gcp_real *to, ptrdiff_t to_pitch, const gcpi_half *from, ptrdiff_t pitch, ptrdiff_t rows,
                  ptrdiff_t n);
    void (*narrow)(gcpi_half *to, ptrdiff_t to_pitch, const gcp_real *from, ptrdiff_t pitch, ptrdiff_t rows,
                   ptrdiff_t n);
    void (*settle)(gcp_real *x, ptrdiff_t n);
} gcpi_halves;
/* A line at a time, then a few: the last of them overlap the ones before. Between two runs of a pass other work is
   done, so that the hardware prefetches too late. */
enum { GCPI_HALVES_LINE = 32, GCPI_HALVES_FEW = 8, GCPI_HALVES_AHEAD = 2048 };
#define GCPI_HALVES_LOOP(n, halves, convert, fetch)                                                                    \
    {                                                                                                                  \
        ptrdiff_t first = 0;                                                                                           \
        for (; first + GCPI_HALVES_LINE <= n; first += GCPI_HALVES_LINE) {                                             \
            fetch(halves + first + GCPI_HALVES_AHEAD);                                                                 \
            for (ptrdiff_t i = first; i < first + GCPI_HALVES_LINE; i++) convert;                                      \
        }                                                                                                              \
        for (; first < n && n >= GCPI_HALVES_FEW; first += GCPI_HALVES_FEW) {                                          \
            first = GCPI_MIN(first, n - GCPI_HALVES_FEW);                                                              \
            for (ptrdiff_t i = first; i < first + GCPI_HALVES_FEW; i++) convert;                                       \
        }                                                                                                              \
        for (ptrdiff_t i = first; i < n; i++) convert;                                                                 \
    }
#define GCPI_HALVES(ISA, TARGET)                                                                                       \
    GCPI_LOOP TARGET void ISA##_widen(gcp_real *GCPI_RESTRICT to, ptrdiff_t to_pitch,                                  \
                                      const gcpi_half *GCPI_RESTRICT from, ptrdiff_t pitch, ptrdiff_t rows,            \
                                      ptrdiff_t n)                                                                     \
    {                                                                                                                  \
        for (; rows > 0; rows--, to += to_pitch, from += pitch)                                                        \
            GCPI_HALVES_LOOP(n, from, to[i] = gcpi_half_value(from[i]), GCPI_PREFETCH_READ)                            \
    }                                                                                                                  \
    GCPI_LOOP TARGET void ISA##_narrow(gcpi_half *GCPI_RESTRICT to, ptrdiff_t to_pitch,                                \
                                       const gcp_real *GCPI_RESTRICT from, ptrdiff_t pitch, ptrdiff_t rows,            \
                                       ptrdiff_t n)                                                                    \
    {                                                                                                                  \
        for (; rows > 0; rows--, to += to_pitch, from += pitch)                                                        \
            GCPI_HALVES_LOOP(n, to, to[i] = gcpi_half_of(from[i]), GCPI_PREFETCH)                                      \
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
    if (isa >= GCP_ISA_AVX512) return &gcpi_avx512_halves;
    if (isa == GCP_ISA_AVX2) return &gcpi_avx2_halves;
#endif
    (void)isa;
    return &gcpi_any_halves;
}

/* Elements of an operand: gcp_real, or halves. Steps and places are in elements. */
typedef struct gcpi_array { void *at; int half; } gcpi_array;
static gcpi_array gcpi_reals(const gcp_real *at)
{
    gcpi_array d = { (void *)(uintptr_t)at, 0 };
    return d;
}
GCPI_BODY gcpi_array gcpi_array_at(gcpi_array d, ptrdiff_t element)
{
    d.at = (unsigned char *)d.at + element * (ptrdiff_t)(d.half ? sizeof(gcpi_half) : sizeof(gcp_real));
    return d;
}
/* Rows of n values, `pitch` elements apart in d, to and from gcp_real. halves: of the instruction set; NULL where d
   holds gcp_real in any case. */
GCPI_FAST static void gcpi_array_load(const gcpi_halves *halves, gcpi_array d, ptrdiff_t pitch, gcp_real *to,
                                     ptrdiff_t to_pitch, ptrdiff_t rows, ptrdiff_t n)
{
    const gcp_real *from = (const gcp_real *)d.at;
    if (d.half) halves->widen(to, to_pitch, (const gcpi_half *)d.at, pitch, rows, n);
    else for (; rows > 0; rows--, to += to_pitch, from += pitch) memcpy(to, from, (size_t)n * sizeof *to);
}
GCPI_FAST static void gcpi_array_store(const gcpi_halves *halves, gcpi_array d, ptrdiff_t pitch, const gcp_real *from,
                                      ptrdiff_t from_pitch, ptrdiff_t rows, ptrdiff_t n)
{
    gcp_real *to = (gcp_real *)d.at;
    if (d.half) halves->narrow((gcpi_half *)d.at, pitch, from, from_pitch, rows, n);
    else for (; rows > 0; rows--, to += pitch, from += from_pitch) memcpy(to, from, (size_t)n * sizeof *to);
}
