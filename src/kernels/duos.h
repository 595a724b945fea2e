/* Duos: two halves, that one instruction multiplies by two others and adds. AVX512-BF16's dpbf16ps adds the product of
   the upper halves, then that of the lower ones, each rounded as by a fused multiply-add; denormals are 0. So the first
   of two terms lies in the upper half: sums have the order of the kernels of floats and, where nothing is denormal,
   their bits on rounded operands. Where no instruction takes duos, nothing here runs. */

#if GCPI_VECTORS
typedef uint32_t gcpi_duo __attribute__((may_alias));
typedef uint32_t gcpi_loose __attribute__((may_alias, aligned(2)));     /* two halves of a row, wherever they begin */
#else
typedef uint32_t gcpi_duo, gcpi_loose;
#endif
#if GCPI_X86
#define GCPI_DUOS GCPI_LOOP GCPI_AVX512
#else
#define GCPI_DUOS GCPI_LOOP
#endif

GCPI_BODY uint32_t gcpi_duo_of(gcp_real upper, gcp_real lower)
{
    return (gcpi_rounded_bits((float)upper) & 0xffff0000u) | gcpi_rounded_bits((float)lower) >> 16;
}

/* Rows of n duos, so many duos apart, from rows of as many values, `pitch` values apart: of `upper` the upper halves,
   of `lower` the lower; or of `from`, and of what lies `lower` values behind it. */
GCPI_DUOS void gcpi_duos_of_halves(gcpi_duo *GCPI_RESTRICT to, ptrdiff_t to_pitch, const gcpi_half *GCPI_RESTRICT upper,
                                   const gcpi_half *GCPI_RESTRICT lower, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t n)
{
    for (; rows > 0; rows--, to += to_pitch, upper += pitch, lower += pitch)
        GCPI_HALVES_LOOP(n, upper, to[i] = (uint32_t)upper[i] << 16 | lower[i], GCPI_PREFETCH_READ)
}
GCPI_DUOS void gcpi_duos_of_reals(gcpi_duo *GCPI_RESTRICT to, ptrdiff_t to_pitch, const gcp_real *GCPI_RESTRICT upper,
                                  const gcp_real *GCPI_RESTRICT lower, ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t n)
{
    for (; rows > 0; rows--, to += to_pitch, upper += pitch, lower += pitch)
        for (ptrdiff_t i = 0; i < n; i++) to[i] = gcpi_duo_of(upper[i], lower[i]);
}
GCPI_FAST static void gcpi_duos_of(gcp_real *to, ptrdiff_t to_pitch, gcpi_array from, ptrdiff_t lower, ptrdiff_t pitch,
                                   ptrdiff_t rows, ptrdiff_t n)
{
    gcpi_duo *out = (gcpi_duo *)to;
    const void *other = gcpi_array_at(from, lower).at;
    if (from.half)
        gcpi_duos_of_halves(out, to_pitch, (const gcpi_half *)from.at, (const gcpi_half *)other, pitch, rows, n);
    else gcpi_duos_of_reals(out, to_pitch, (const gcp_real *)from.at, (const gcp_real *)other, pitch, rows, n);
}

/* Rows of n duos from the values that lie side by side, or `step` apart. */
GCPI_DUOS void gcpi_duos_of_row(gcpi_duo *GCPI_RESTRICT to, const gcp_real *GCPI_RESTRICT from, ptrdiff_t n)
{
    for (ptrdiff_t i = 0; i < n; i++) to[i] = gcpi_duo_of(from[2 * i], from[2 * i + 1]);
}
GCPI_DUOS void gcpi_duos_turned(gcpi_duo *GCPI_RESTRICT to, ptrdiff_t to_pitch, const gcpi_half *GCPI_RESTRICT from,
                                ptrdiff_t pitch, ptrdiff_t rows, ptrdiff_t n)
{
    if (pitch == 2 * n && to_pitch == n) n *= rows, rows = 1;
    for (; rows > 0; rows--, to += to_pitch, from += pitch) {
        const gcpi_loose *at = (const gcpi_loose *)(const void *)from;
        GCPI_HALVES_LOOP(n, at, to[i] = at[i] << 16 | at[i] >> 16, GCPI_PREFETCH_READ)
    }
}
/* n duos of an upper half alone: the lower is 0, or -0 of one of the two that are multiplied, so that what is added is
   -0, which changes no sum. */
GCPI_FAST static void gcpi_duos_alone(gcp_real *to, ptrdiff_t to_pitch, gcpi_array from, ptrdiff_t pitch, ptrdiff_t n,
                                      gcp_real zero)
{
    for (ptrdiff_t i = 0; i < n; i++)
        ((gcpi_duo *)to)[i * to_pitch] = gcpi_duo_of(GCPI_AT(from.half, from.at, i * pitch), zero);
}
/* alone: the last duo of a row has no lower half but `zero`. */
GCPI_FAST static void gcpi_duos_load(gcp_real *to, ptrdiff_t to_pitch, gcpi_array from, ptrdiff_t pitch, ptrdiff_t step,
                                     ptrdiff_t rows, ptrdiff_t n, int alone, gcp_real zero)
{
    n -= alone;
    if (alone) gcpi_duos_alone(to + n, to_pitch, gcpi_array_at(from, 2 * n * step), pitch, rows, zero);
    if (from.half && step == 1) {
        gcpi_duos_turned((gcpi_duo *)to, to_pitch, (const gcpi_half *)from.at, pitch, rows, n);
        return;
    }
    for (; rows > 0; rows--, to += to_pitch, from = gcpi_array_at(from, pitch)) {
        if (step == 1) gcpi_duos_of_row((gcpi_duo *)to, (const gcp_real *)from.at, n);
        for (ptrdiff_t i = 0; step != 1 && i < n; i++)
            gcpi_duos_of(to + i, 0, gcpi_array_at(from, 2 * i * step), step, 0, 1, 1);
    }
}

#if GCPI_X86_DUOS
typedef uint32_t gcpi_duo_vector __attribute__((vector_size(64), may_alias));
#define GCPI_SUM_DUOS(VEC, NV)                                                                                         \
    const gcpi_duo_vector zero = { 0 }, x = zero + *(const gcpi_duo *)(a[i] + o);                                      \
    GCPI_UNROLL for (int v = 0; v < NV; v++)                                                                           \
        __asm__("vdpbf16ps {%2, %1, %0|%0, %1, %2}" : "+v"(acc[i][v]) : "v"(x), "v"(row[v]));
GCPI_TILES_512(gcpi_duos, GCPI_SUM_DUOS, GCPI_FETCH_NONE)
#endif
/* The same tiles of duos. */
static void gcpi_simd_duos(gcpi_simd *s)
{
#if GCPI_X86_DUOS
    s->kernel[0] = gcpi_duos_8x1;
    s->kernel[1] = gcpi_duos_8x2;
    s->kernel[2] = gcpi_duos_8x3;
    s->kernel[3] = gcpi_duos_6x4;
    s->five = gcpi_duos_5x4;
#else
    (void)s;
#endif
}
