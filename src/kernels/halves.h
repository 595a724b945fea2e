/* bfloat16: the upper half of a float. Kernels compute in gcp_real. They widen a block of rows to their own memory, and
   round what they made. To the nearest, ties to even, as IEEE 754 says of any format; a NaN stays one. The bits are the
   same for every instruction set. AVX512-BF16's instruction makes denormals 0: where there is one, it is not used. */

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
/* Two halves that lie in a word: each is a float but for a mask or a shift, so that no vector is widened or narrowed.
   Which comes first is the machine's order. */
GCPI_BODY uint32_t gcpi_twins(const void *halves, size_t i)
{
    uint32_t twins;
    memcpy(&twins, (const gcpi_half *)halves + 2 * i, sizeof twins);
    return twins;
}
GCPI_BODY gcp_real gcpi_twin_low(uint32_t twins) { return (gcp_real)gcpi_float_of(twins << 16); }
GCPI_BODY gcp_real gcpi_twin_high(uint32_t twins) { return (gcp_real)gcpi_float_of(twins & 0xffff0000u); }
GCPI_BODY void gcpi_twins_put(void *halves, size_t i, uint32_t low, uint32_t high)        /* the bits of floats */
{
    const uint32_t twins = low >> 16 | (high & 0xffff0000u);
    memcpy((gcpi_half *)halves + 2 * i, &twins, sizeof twins);
}
/* Rounded where the loop is for halves. */
#define GCPI_SETTLED(half, x) ((half) ? gcpi_half_rounded(x) : (x))

/* A loop that makes n elements of y: element k of `to` of element i of the operands. Halves fill vectors of a line, so
   what n has beyond whole lines is made as a line that overlaps the one before: first, and apart, as y may lie where
   the operands do. half is a literal. */
enum { GCPI_HALVES_LINE = 32 };
#define GCPI_LINES(half, n, y, to, i, k, ...)                                                                        \
    {                                                                                                                \
        gcpi_half line_of[GCPI_HALVES_LINE];                                                                         \
        const int line_n = GCPI_HALVES_LINE, line_over = (half) && (n) > line_n ? (n) % line_n : 0;                  \
        for (int line_last = line_over != 0; line_last >= 0; line_last--) {                                          \
            const int line_from = line_last ? (n) - line_n : 0, line_count = line_last ? line_n : (n) - line_over;   \
            void *to = line_last ? (void *)line_of : (void *)(y);                                                    \
            GCPI_EACH for (int k = 0; k < line_count; k++) { const int i = line_from + k; __VA_ARGS__ }              \
        }                                                                                                            \
        if (line_over)                                                                                               \
            memcpy((gcpi_half *)(y) + ((n) - line_over), line_of + (line_n - line_over),                             \
                   (size_t)line_over * sizeof *line_of);                                                             \
    }

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
enum { GCPI_HALVES_FEW = 8, GCPI_HALVES_AHEAD = 2048 };
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
        if (to_pitch == n && pitch == n) n *= rows, rows = 1;                                                          \
        for (; rows > 0; rows--, to += to_pitch, from += pitch)                                                        \
            GCPI_HALVES_LOOP(n, from, to[i] = gcpi_half_value(from[i]), GCPI_PREFETCH_READ)                            \
    }                                                                                                                  \
    GCPI_LOOP TARGET void ISA##_narrow(gcpi_half *GCPI_RESTRICT to, ptrdiff_t to_pitch,                                \
                                       const gcp_real *GCPI_RESTRICT from, ptrdiff_t pitch, ptrdiff_t rows,            \
                                       ptrdiff_t n)                                                                    \
    {                                                                                                                  \
        if (to_pitch == n && pitch == n) n *= rows, rows = 1;                                                          \
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

#if GCPI_X86_DUOS
typedef uint32_t gcpi_floats __attribute__((vector_size(64), aligned(4), may_alias));
typedef gcpi_floats gcpi_floats_at __attribute__((aligned(2), may_alias));
typedef int gcpi_integers __attribute__((vector_size(64)));
/* A line, rounded by one instruction. 0 where a value is denormal, of whatever mode: the instruction makes those 0. */
GCPI_BODY GCPI_AVX512 int gcpi_bf16_line(gcpi_half *to, const gcp_real *from)
{
    const gcpi_floats zeros = { 0 }, x[2] = { *(const gcpi_floats *)(const void *)from,
                                              *(const gcpi_floats *)(const void *)(from + GCPI_HALVES_LINE / 2) };
    gcpi_floats line;
    uint16_t tiny[2];
    enum { BELOW = 1 };
    GCPI_UNROLL for (int k = 0; k < 2; k++)                   /* the bits from 1 to 0x7fffff, of either sign */
        tiny[k] = __builtin_ia32_ucmpd512_mask((gcpi_integers)((x[k] & (zeros + 0x7fffffffu)) - 1),
                                               (gcpi_integers)(zeros + 0x7fffffu), BELOW, 0xffff);
    __asm__("vcvtne2ps2bf16 {%2, %1, %0|%0, %1, %2}" : "=v"(line) : "v"(x[1]), "v"(x[0]));
    *(gcpi_floats_at *)(void *)to = line;
    return !(tiny[0] | tiny[1]);
}
GCPI_LOOP GCPI_AVX512 void gcpi_bf16_narrow(gcpi_half *GCPI_RESTRICT to, ptrdiff_t to_pitch,
                                            const gcp_real *GCPI_RESTRICT from, ptrdiff_t pitch, ptrdiff_t rows,
                                            ptrdiff_t n)
{
    if (to_pitch == n && pitch == n) n *= rows, rows = 1;
    if (n < GCPI_HALVES_LINE) gcpi_avx512_narrow(to, to_pitch, from, pitch, rows, n);
    for (; rows > 0 && n >= GCPI_HALVES_LINE; rows--, to += to_pitch, from += pitch)
        for (ptrdiff_t i = 0, at; i < n; i += GCPI_HALVES_LINE) {
            at = GCPI_MIN(i, n - GCPI_HALVES_LINE);
            GCPI_PREFETCH(to + at + GCPI_HALVES_AHEAD);
            if (!gcpi_bf16_line(to + at, from + at))
                gcpi_avx512_narrow(to + at, 0, from + at, 0, 1, GCPI_HALVES_LINE);
        }
}
GCPI_LOOP GCPI_AVX512 void gcpi_bf16_settle(gcp_real *x, ptrdiff_t n)
{
    gcpi_half line[GCPI_HALVES_LINE];
    ptrdiff_t i = 0;
    for (; i + GCPI_HALVES_LINE <= n && gcpi_bf16_line(line, x + i); i += GCPI_HALVES_LINE)
        for (int k = 0; k < GCPI_HALVES_LINE; k++) x[i + k] = gcpi_half_value(line[k]);
    gcpi_avx512_settle(x + i, n - i);
}
static const gcpi_halves gcpi_bf16_halves = { gcpi_avx512_widen, gcpi_bf16_narrow, gcpi_bf16_settle };
#endif

static const gcpi_halves *gcpi_halves_of(int isa)
{
#if GCPI_X86_DUOS
    if (isa == GCP_ISA_AVX512_BF16) return &gcpi_bf16_halves;
#endif
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
