/* The instruction sets: the kernels of each, and which one a core has. */

/* What is compiled for each. L: columns that are transposed together, of float a register's. P, Q: pixels of a strip,
   2 and 4 vectors of each, whose sums are in registers. */
#define GCPI_VECTOR(ISA, TARGET, VEC, L, P, Q)                                    \
    GCPI_COPY(ISA##_copy, TARGET, VEC)                                            \
    GCPI_TURN(ISA##_turn, TARGET, L)                                              \
    GCPI_DEPTH(ISA##_depth_2, TARGET, GCPI_DEPTH_LOOP, VEC, P, 2)                 \
    GCPI_DEPTH(ISA##_depth_4, TARGET, GCPI_DEPTH_LOOP, VEC, Q, 4)                 \
    GCPI_DEPTH(ISA##_depth_far, TARGET, GCPI_DEPTH_FAR_LOOP, VEC, Q, 4)           \
    GCPI_DEPTH(ISA##_depth_1, TARGET, GCPI_DEPTH_LOOP, VEC, 1, 4)                 \
    GCPI_DEPTH(ISA##_back_4, TARGET, GCPI_DEPTH_BACK_LOOP, VEC, 4, 2)             \
    GCPI_DEPTH(ISA##_back_3, TARGET, GCPI_DEPTH_BACK_LOOP, VEC, 3, 4)             \
    GCPI_DEPTH(ISA##_back_1, TARGET, GCPI_DEPTH_BACK_LOOP, VEC, 1, 4)

#if GCPI_X86 && !defined(__clang__)
#define GCPI_PLAIN __attribute__((noinline, optimize("fp-contract=fast")))
#else
#define GCPI_PLAIN GCPI_HOT
#endif
#define GCPI_SHORT gcp_real
#if GCPI_VECTORS
#undef GCPI_SHORT
#define GCPI_SHORT gcpi_v16
typedef gcp_real gcpi_v16 __attribute__((vector_size(16), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_v32 __attribute__((vector_size(32), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_v64 __attribute__((vector_size(64), aligned(sizeof(gcp_real)), may_alias));
GCPI_VECTOR(gcpi_v128, GCPI_PLAIN, gcpi_v16, 4, 6, 3)
GCPI_KERNEL(gcpi_v128_12x1, GCPI_PLAIN, gcpi_v16, 12, 1, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_KERNEL(gcpi_v128_6x2, GCPI_PLAIN, gcpi_v16, 6, 2, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_KERNEL(gcpi_v128_4x3, GCPI_PLAIN, gcpi_v16, 4, 3, GCPI_SUM_REALS, GCPI_FETCH_L2)
#endif
#if GCPI_X86
#define GCPI_AVX2 __attribute__((target("avx2,fma")))
#define GCPI_AVX512 __attribute__((target("avx512f,avx512vl,avx512bw,fma")))
GCPI_VECTOR(gcpi_avx2, GCPI_HOT GCPI_AVX2, gcpi_v32, 8, 6, 3)
GCPI_KERNEL(gcpi_avx2_12x1, GCPI_TILED GCPI_AVX2, gcpi_v32, 12, 1, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_KERNEL(gcpi_avx2_6x2, GCPI_TILED GCPI_AVX2, gcpi_v32, 6, 2, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_KERNEL(gcpi_avx2_4x3, GCPI_TILED GCPI_AVX2, gcpi_v32, 4, 3, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_VECTOR(gcpi_avx512, GCPI_HOT GCPI_AVX512, gcpi_v64, 16, 8, 4)
/* The tiles of 32 registers. */
#define GCPI_TILES_512(NAME, SUM, FETCH)                                        \
    GCPI_KERNEL(NAME##_8x1, GCPI_TILED GCPI_AVX512, gcpi_v64, 8, 1, SUM, FETCH) \
    GCPI_KERNEL(NAME##_8x2, GCPI_TILED GCPI_AVX512, gcpi_v64, 8, 2, SUM, FETCH) \
    GCPI_KERNEL(NAME##_8x3, GCPI_TILED GCPI_AVX512, gcpi_v64, 8, 3, SUM, FETCH) \
    GCPI_KERNEL(NAME##_5x4, GCPI_TILED GCPI_AVX512, gcpi_v64, 5, 4, SUM, FETCH) \
    GCPI_KERNEL(NAME##_6x4, GCPI_TILED GCPI_AVX512, gcpi_v64, 6, 4, SUM, FETCH)
GCPI_TILES_512(gcpi_avx512, GCPI_SUM_REALS, GCPI_FETCH_L1)
#endif
GCPI_VECTOR(gcpi_scalar, GCPI_PLAIN, gcp_real, 4, 6, 3)
GCPI_KERNEL(gcpi_scalar_12x1, GCPI_PLAIN, gcp_real, 12, 1, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_KERNEL(gcpi_scalar_6x2, GCPI_PLAIN, gcp_real, 6, 2, GCPI_SUM_REALS, GCPI_FETCH_L2)
GCPI_KERNEL(gcpi_scalar_4x3, GCPI_PLAIN, gcp_real, 4, 3, GCPI_SUM_REALS, GCPI_FETCH_L2)

typedef struct gcpi_simd {
    int lanes, nv; /* values per vector; most vectors in a tile's row */
    int mr[4];     /* rows of the kernels that are 1, 2, 3, 4 vectors wide */
    gcpi_kernel *kernel[4];
    gcpi_copier *copy;
    gcpi_turner *turn;
    int strips[GCPI_STRIPS], taps[GCPI_STRIPS]; /* depthwise: pixels of a kernel, of backward weights the taps */
    gcpi_stripper *depth[GCPI_STRIPS], *depth_back[GCPI_STRIPS], *depth_far; /* far: depth[1], which prefetches */
    gcpi_kernel *five; /* 5 x 4: wastes no row where the count is 10, 20, 40 */
    int burst, paces;  /* see gcpi_core_bursts, gcpi_core_paces */
} gcpi_simd;

#define GCPI_STRIPPERS(ISA, P, Q) \
    { P, Q, 1 }, { 4, 3, 1 }, \
    { ISA##_depth_2, ISA##_depth_4, ISA##_depth_1 }, { ISA##_back_4, ISA##_back_3, ISA##_back_1 }, \
    ISA##_depth_far

/* An instruction set whose tiles are 12, 6 and 4 rows by 1, 2 and 3 vectors. */
#define GCPI_SIMD(ISA, BYTES) \
    { (BYTES) / (int)sizeof(gcp_real), 3, { 12, 6, 4, 0 }, { ISA##_12x1, ISA##_6x2, ISA##_4x3, NULL }, \
      ISA##_copy, ISA##_turn, GCPI_STRIPPERS(ISA, 6, 3), NULL, 0, 0 }

/* Whether a core likes a tile's lines prefetched at once (AMD's: up to 10 % of a 1x1 convolution), or loses by it. On
   Intel's so many requests hold up the loads of the sum; what gains there is one line a term of what comes next,
   and less of it (outer.h). */
static int gcpi_core_bursts(void)
{
#if GCPI_X86
    return __builtin_cpu_is("amd");
#else
    return 1;
#endif
}

/* Whether a core likes what comes next prefetched evenly, into L1: Zen 4 (1x1 convolutions gain 6 to 25 %). A term of
   AVX2's tiles is too short for it. */
static int gcpi_core_paces(void)
{
#if GCPI_X86_KINDS
    return __builtin_cpu_is("amdfam19h") && __builtin_cpu_supports("avx512f");
#else
    return 0;
#endif
}

static const gcpi_simd *gcpi_simd_table(int isa)
{
    static const gcpi_simd scalar = GCPI_SIMD(gcpi_scalar, (int)sizeof(gcp_real));
#if GCPI_X86
    static const gcpi_simd avx512 = {
        64 / (int)sizeof(gcp_real), 4, { 8, 8, 8, 6 },
        { gcpi_avx512_8x1, gcpi_avx512_8x2, gcpi_avx512_8x3, gcpi_avx512_6x4 },
        gcpi_avx512_copy, gcpi_avx512_turn, GCPI_STRIPPERS(gcpi_avx512, 8, 4), gcpi_avx512_5x4, 0, 0 };
    static const gcpi_simd avx2 = GCPI_SIMD(gcpi_avx2, 32);
    if (isa >= GCP_ISA_AVX512) return &avx512;
    if (isa == GCP_ISA_AVX2) return &avx2;
#endif
#if GCPI_VECTORS
    static const gcpi_simd v128 = GCPI_SIMD(gcpi_v128, 16);
    if (isa != GCP_ISA_SCALAR) return &v128;
#endif
    (void)isa;
    return &scalar;
}

/* Whether tiles are whole lines wide. */
static int gcpi_simd_wide(const gcpi_simd *s) { return s->nv * s->lanes >= GCPI_NR_MAX; }

static gcpi_simd gcpi_simd_of(int isa)
{
    gcpi_simd s = *gcpi_simd_table(isa);
    s.burst = gcpi_core_bursts();
    s.paces = isa >= GCP_ISA_AVX512 && gcpi_core_paces();
    return s;
}

#if GCPI_X86_DUOS
static int gcpi_has_duos(void) { return __builtin_cpu_supports("avx512bf16") != 0; }
#elif GCPI_X86
static int gcpi_has_duos(void) { return 0; }
#endif

static int gcpi_isa_best(void)
{
#if GCPI_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw") &&
        __builtin_cpu_supports("fma"))
        return gcpi_has_duos() ? GCP_ISA_AVX512_BF16 : GCP_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return GCP_ISA_AVX2;
#endif
    return GCPI_VECTORS ? GCP_ISA_V128 : GCP_ISA_SCALAR;
}
