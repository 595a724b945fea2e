/* What a kernel needs of the target: threads, and vectors of any width. Kernels know nothing else of gcp. */

typedef struct gcpi_par {
    void *context; int threads;
    void (*parallel_for)(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg);
    int isa;
    int halves; /* operands may be bfloat16: scratch has room for floats (halves.h) */
    int duos;  /* and are multiplied two at a time where channels allow it (duos.h) */
    int direct; /* convolutions are sums over taps, never Winograd's tiles (winograd.h) */
} gcpi_par;

/* Runs tasks, in several goes where an int cannot count them: a task's number is *base + index. */
static void gcpi_par_run(const gcpi_par *par, ptrdiff_t tasks, ptrdiff_t *base,
                         void (*task)(void *arg, int index, int worker), void *arg)
{
    for (*base = 0; *base < tasks; *base += INT32_MAX)
        par->parallel_for(par->context, (int)GCPI_MIN(tasks - *base, (ptrdiff_t)INT32_MAX), task, arg);
}

/* Winograd's tiles are for convolutions whose x and y have more values: beside fewer their scratch would be much. */
#ifndef GCPI_WINOGRAD_LEAST
#define GCPI_WINOGRAD_LEAST (1048576 / (int)sizeof(gcp_real))
#endif

#ifndef GCPI_VECTORS /* 0: scalar kernels alone, which compile in half the time */
#if defined(__GNUC__) || defined(__clang__)
#define GCPI_VECTORS 1
#else
#define GCPI_VECTORS 0
#endif
#endif
#if GCPI_VECTORS && (defined(__x86_64__) || defined(__i386__))
#define GCPI_X86 1
#else
#define GCPI_X86 0
#endif

/* Compilers that know AVX512-BF16: the kernels of duos.h. */
#ifdef __clang__
#define GCPI_X86_DUOS (GCPI_X86 && __clang_major__ >= 10)
#elif defined(__GNUC__)
#define GCPI_X86_DUOS (GCPI_X86 && __GNUC__ >= 11)
#else
#define GCPI_X86_DUOS 0
#endif

/* Compilers that know AMD's family 19h by name. */
#ifdef __clang__
#define GCPI_X86_KINDS (GCPI_X86 && __clang_major__ >= 13)
#elif defined(__GNUC__)
#define GCPI_X86_KINDS (GCPI_X86 && __GNUC__ >= 11)
#else
#define GCPI_X86_KINDS 0
#endif

/* Kernels run at full speed whatever flags the user builds with: gcc takes an optimisation level per function. Only the
   kernels for an x86 without AVX2 keep the user's level (GCPI_PLAIN): each function with its own level makes every
   compilation without optimisation slower. Loops of tiles (GCPI_TILED) begin a line: those of AVX2's widest are then
   two lines of instructions, not three, which cost 2 to 10 % of a product. */
#if defined(__clang__)
#define GCPI_BODY static inline __attribute__((always_inline))
#define GCPI_FAST
#define GCPI_HOT __attribute__((noinline))
#define GCPI_PREFETCH(p) __builtin_prefetch(p, 1)
#define GCPI_PREFETCH_READ(p) __builtin_prefetch(p, 0)
#define GCPI_PREFETCH_L2(p) __builtin_prefetch((const void *)(p), 0, 2)
#define GCPI_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define GCPI_BODY static inline __attribute__((always_inline))
#define GCPI_FAST __attribute__((optimize("O2")))
#define GCPI_PREFETCH(p) __builtin_prefetch(p, 1)
#define GCPI_PREFETCH_READ(p) __builtin_prefetch(p, 0)
#define GCPI_PREFETCH_L2(p) __builtin_prefetch((const void *)(p), 0, 2)
#define GCPI_HOT __attribute__((noinline, optimize("O2", "fp-contract=fast")))
#define GCPI_TILED __attribute__((noinline, optimize("O2", "fp-contract=fast", "align-loops=64")))
#define GCPI_UNROLL _Pragma("GCC unroll 16")
#else
#define GCPI_BODY static
#define GCPI_FAST
#define GCPI_HOT
#define GCPI_PREFETCH(p) ((void)0)
#define GCPI_PREFETCH_READ(p) ((void)0)
#define GCPI_PREFETCH_L2(p) ((void)0)
#define GCPI_UNROLL
#endif
#ifndef GCPI_TILED
#define GCPI_TILED GCPI_HOT
#endif

enum { GCPI_FORWARD, GCPI_BACKWARD_DATA, GCPI_BACKWARD_WEIGHTS };
enum {
    GCPI_ROWS = 24, /* rows walked together: whole tiles of every kernel of gcpi_simd */
    GCPI_MR_MAX = 12,
    GCPI_PHASES = 16,       /* depthwise: at most so many phases of the strides */
    GCPI_STRIPS = 3,        /* depthwise: sizes of strips */
    GCPI_OUTER_ROWS = 48,   /* rows of dy packed side by side: whole tiles of every kernel, */
    GCPI_OUTER_BLOCKS = 8,  /* at most so many such blocks in a task; */
    GCPI_OUTER_BESIDE = 12, /* for narrow tiles, which read each line more often: so few that they stay in L1, */
    GCPI_PACK_PIECE = 16,   /* copied from so many pixels, or rows of w, at a time; */
    GCPI_OUTER_SHORT = 128, /* and pixels of a chunk whose rows are read in place from L1 */
    GCPI_COPY_AHEAD = 16,   /* rows that are prefetched before they are copied; of wide panels half as many */
    GCPI_OUTER_COPY = 24,   /* products that take as long as copying a value */
    GCPI_OUTER_PLAIN = 64,  /* up to so many channels of dy are read in place, */
    GCPI_OUTER_FEW = 24,    /* and on cores that fetch many lines at once */
    GCPI_OUTER_NEAR = 320,  /* up to so many channels of x are read in place; twice as many where d is small: */
    GCPI_OUTER_SMALL = 163840, /* d of at most so many values */
    GCPI_LINE = 64 / (int)sizeof(gcp_real),              /* values in a cache line */
    GCPI_NR_MAX = 4 * GCPI_LINE,                         /* widest panel of columns */
    GCPI_GATHER_PIXELS = 512,                            /* rows of a task, or fewer, */
    GCPI_GATHER_LEAST = 96,                              /* but no fewer than these */
    GCPI_PLACE_PIXELS = 384,                             /* up to so many pixels read w in place; where its */
    GCPI_PLACE_FEW = 32, GCPI_PLACE_NARROW = 8,          /* rows compete, so few; narrow tiles fewer */
    GCPI_L2_MIN = 1048576, GCPI_L2_WAY = 65536,          /* bytes of the smallest L2 beside wide tiles, of a way */
    GCPI_SKIPS_MAX = 512,                                /* a longer side has little padding */
    GCPI_SKIPS_TAPS = 16,                                /* more taps make too many kinds of pixels */
    GCPI_TILE_TERMS = 16,                                /* a tile takes as long beside its terms, */
    GCPI_KIND_TERMS = 96,                                /* a kind of pixels beside its tiles */
    GCPI_K_BLOCK = 1024,                                 /* terms summed in one pass; where narrow tiles sum many */
    GCPI_K_NARROW = 2048,                                /* pixels; where rows of w are read in place, and the next */
    GCPI_PLACE_K = 512,                                  /* pass's are prefetched meanwhile */
    GCPI_AHEAD_PIXELS = 256,                             /* up to so many, narrow tiles prefetch w to be packed */
    GCPI_PACK_MAX = 786432 / (int)sizeof(gcp_real),      /* packed weights of a worker: fit in L2, */
    GCPI_PACK_FEW = 262144 / (int)sizeof(gcp_real),      /* and beside narrow tiles in half of it */
    GCPI_L1_HALF = 16384 / (int)sizeof(gcp_real),        /* values that fill half of L1 */
    GCPI_PLANAR_COLS = 64,                               /* planar: at most so many output channels */
    GCPI_PACK_ROWS = 8 * GCPI_LINE,                      /* rows of weights transposed at a time */
    GCPI_RESIDENT_MAX = 1310720 / (int)sizeof(gcp_real), /* packed weights of a panel, whole sum: kept */
    GCPI_WINDOW_MAX = 786432 / (int)sizeof(gcp_real),    /* copied window of a worker; of one that is widened, as */
    GCPI_WINDOW_WIDE = 1572864 / (int)sizeof(gcp_real),  /* nothing of it is read in place */
    GCPI_PARTIAL_MAX = 2097152 / (int)sizeof(gcp_real),  /* all private sums of dw together */
    GCPI_OUTER_PIXELS = 512,                             /* pixels summed in one pass for dw; up to twice as many */
    GCPI_OUTER_MAX = 1048576 / (int)sizeof(gcp_real),    /* while x and dy have at most so many values there */
    GCPI_FAR = 16777216 / (int)sizeof(gcp_real),         /* more values than this are not in a cache */
    GCPI_WINOGRAD_MAX = 2097152 / (int)sizeof(gcp_real), /* Winograd's tiles: a panel's weights, at most */
    GCPI_WINOGRAD_SUMS = 1310720 / (int)sizeof(gcp_real), /* all private sums of dw together, */
    GCPI_WINOGRAD_SPLIT = 128,                           /* each of so many tiles at least */
    GCPI_WINOGRAD_TILES = 48,                            /* a chunk has at most so many tiles, */
    GCPI_WINOGRAD_CHUNK = 49152 / (int)sizeof(gcp_real), /* with so many values at each point, */
    GCPI_WINOGRAD_BACK = 25600 / (int)sizeof(gcp_real),  /* for dw so many */
    GCPI_WINOGRAD_ROWS = 64,                             /* channels whose weights are transformed together */
    GCPI_WINOGRAD_PART = 96,                             /* rows of dw of a task */
    GCPI_WINOGRAD_WEIGHTS = 32,                          /* weights' transforms take as long as so many tiles, */
    GCPI_WINOGRAD_IN = 40, GCPI_WINOGRAD_OUT = 30,       /* a tile's as so many products a channel */
    GCPI_TASK_LEAST = 262144,                            /* products, else a task takes less than its start */
    GCPI_TASKS = 16                                      /* fewer tasks than this are cut finer */
};

typedef struct gcpi_conv { /* NHWC x and y, OHWI weights [co][kh][kw][ci/groups] */
    int n, h, w, ci;
    ptrdiff_t xpitch; /* x: element (b,y,x,c) at ((b*h+y)*w+x)*xpitch + c */
    int ho, wo, co;
    ptrdiff_t ypitch; /* y likewise */
    int kh, kw, sh, sw, pt, pl, dh, dw, groups;
} gcpi_conv;

/* The micro-kernel. */

typedef struct gcpi_tile {        /* c[i][j] = start + sum over k of a[i][k*as] * b[k*bs + j] */
    ptrdiff_t n[3], as[3], bs[3]; /* three loops, outermost first; steps of a and b */
    const gcp_real *b, *const *a;
    gcp_real *const *c;
    ptrdiff_t first;       /* column of c at j = 0 */
    const gcp_real *start; /* starting values of the first row; NULL: those in c */
    ptrdiff_t ss;          /* step of start from row to row */
    int rows;              /* rows to store; later a[] and c[] repeat one of them */
    uintptr_t ahead, pace; /* a line is prefetched from here for each term, `pace` bytes apart; 0: none */
    int near;              /* into L1, not L2, and from `also` another, to be written, `step` bytes apart */
    uintptr_t also, step;
    int burst;             /* the lines of c are prefetched at once, */
    ptrdiff_t further;     /* or those so many values further */
} gcpi_tile;

typedef void gcpi_kernel(const gcpi_tile *t);
typedef void gcpi_turner(gcp_real *to, ptrdiff_t pitch, int rows, int cols, const gcp_real *from, ptrdiff_t step);
typedef void gcpi_copier(gcp_real *to, const gcp_real *from, ptrdiff_t rows, ptrdiff_t pitch, ptrdiff_t width);

/* Prefetches the cache lines of `count` values: from an address on; from p + skip on. */
GCPI_BODY void gcpi_fetch_at(uintptr_t at, ptrdiff_t count)
{
    const uintptr_t end = at + (size_t)count * sizeof(gcp_real);
    for (; at < end; at += GCPI_LINE * sizeof(gcp_real)) GCPI_PREFETCH_READ((const void *)at);
}
GCPI_BODY void gcpi_fetch(const gcp_real *p, ptrdiff_t skip, ptrdiff_t count)
{
    gcpi_fetch_at((uintptr_t)p + (size_t)skip * sizeof *p, count);
}

typedef struct gcpi_strip {            /* depthwise: pixels of a row, and the taps that reach them */
    const gcp_real *x, *w, *start, *e; /* start: see gcpi_tile */
    gcp_real *y, *d;                   /* forward: y from x and w; backward: d (shaped as w) from x and e (as y) */
    ptrdiff_t xpixel, xrow, xtap, row, tap, pixel;
    int rows, taps, pixels, channels;  /* taps: forward; pixels: backward. The kernel fixes the other */
    uintptr_t xnext, ynext;            /* what follows in x and y (or e) is prefetched: a share of so many values */
    ptrdiff_t xshare, yshare;          /* for each row of taps and block of channels */
} gcpi_strip;

GCPI_BODY void gcpi_strip_fetch(gcpi_strip *s)
{
    gcpi_fetch_at(s->xnext, s->xshare), s->xnext += (size_t)s->xshare * sizeof(gcp_real);
    gcpi_fetch_at(s->ynext, s->yshare), s->ynext += (size_t)s->yshare * sizeof(gcp_real);
}

typedef void gcpi_stripper(const gcpi_strip *s);

/* Sizes are literals and every short loop unrolls, so that acc lives in registers: a tile whose size is a parameter
 * runs at a quarter of the speed. Few terms (32, 64) leave little to hide what stands around the sum: so one row of
 * starting values is loaded once, a sum of one run pays nothing for the loops around it, and the addresses of a tile
 * that prefetches nothing stay in registers, too. */
#define GCPI_TERMS(VEC, MR, NV, FETCH, SUM)                                                                            \
    for (ptrdiff_t k = n, o = 0; k > 0; k--, o += as, at += bs) {                                                      \
        VEC row[NV];                                                                                                   \
        FETCH                                                                                                          \
        GCPI_UNROLL for (int v = 0; v < NV; v++) row[v] = *(const VEC *)(at + v * lanes);                              \
        GCPI_UNROLL for (int i = 0; i < MR; i++) { SUM(VEC, NV) }                                                      \
    }
#define GCPI_SUM_REALS(VEC, NV) GCPI_UNROLL for (int v = 0; v < NV; v++) acc[i][v] += a[i][o] * row[v];

/* What a kernel may prefetch: nothing; into L2; into L1, too. */
#define GCPI_FETCH_NONE(VEC, MR, NV, SUM)
#define GCPI_FETCH_L2(VEC, MR, NV, SUM) \
    if (t->pace) GCPI_TERMS(VEC, MR, NV, GCPI_PREFETCH_L2(ahead); ahead += t->pace;, SUM) else
#define GCPI_NEAR_LINES                      \
    GCPI_PREFETCH_READ((const void *)ahead); \
    GCPI_PREFETCH((const void *)also);       \
    ahead += t->pace, also += t->step;
#define GCPI_FETCH_L1(VEC, MR, NV, SUM)                        \
    if (t->near) GCPI_TERMS(VEC, MR, NV, GCPI_NEAR_LINES, SUM) \
    else GCPI_FETCH_L2(VEC, MR, NV, SUM)

#define GCPI_KERNEL(NAME, TARGET, VEC, MR, NV, SUM, FETCH)                                                             \
    TARGET static void NAME(const gcpi_tile *t)                                                                        \
    {                                                                                                                  \
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real));                                           \
        const ptrdiff_t n = t->n[2], as = t->as[2], bs = t->bs[2];                                                     \
        const ptrdiff_t rounds = t->n[1] - 1, afar = t->as[0] - rounds * t->as[1], bfar = t->bs[0] - rounds * t->bs[1];\
        ptrdiff_t runs = t->n[0] * t->n[1], inner = rounds, from = 0;                                                  \
        uintptr_t ahead = t->ahead, also = t->also;                                                                    \
        const gcp_real *b = t->b;                                                                                      \
        VEC acc[MR][NV];                                                                                               \
        if (t->burst)                                                                                                  \
            GCPI_UNROLL for (int i = 0; i < MR; i++)                                                                   \
                GCPI_UNROLL for (int v = 0; v < NV; v++) GCPI_PREFETCH(t->c[i] + t->first + t->further + v * lanes);   \
        if (t->start && !t->ss)                                                                                        \
            GCPI_UNROLL for (int v = 0; v < NV; v++) {                                                                 \
                VEC value = *(const VEC *)(t->start + v * lanes);                                                      \
                GCPI_UNROLL for (int i = 0; i < MR; i++) acc[i][v] = value;                                            \
            }                                                                                                          \
        else                                                                                                           \
            GCPI_UNROLL for (int i = 0; i < MR; i++) GCPI_UNROLL for (int v = 0; v < NV; v++) acc[i][v] =              \
                *(const VEC *)((t->start ? t->start + i * t->ss : t->c[i] + t->first) + v * lanes);                    \
        for (;;) {                                                                                                     \
            const gcp_real *a[MR], *at = b;                                                                            \
            GCPI_UNROLL for (int i = 0; i < MR; i++) a[i] = t->a[i] + from;                                            \
            FETCH(VEC, MR, NV, SUM) GCPI_TERMS(VEC, MR, NV, , SUM)                                                     \
            (void)ahead, (void)also;                                                                                   \
            if (--runs <= 0) break;                                                                                    \
            const int whole = inner == 0;                                                                              \
            from += whole ? afar : t->as[1];                                                                           \
            b += whole ? bfar : t->bs[1];                                                                              \
            inner = whole ? rounds : inner - 1;                                                                        \
        }                                                                                                              \
        GCPI_UNROLL for (int i = 0; i < MR; i++) {                                                                     \
            gcp_real *c = t->c[i] + t->first;                                                                          \
            if (i < t->rows) GCPI_UNROLL for (int v = 0; v < NV; v++) *(VEC *)(c + v * lanes) = acc[i][v];             \
        }                                                                                                              \
    }

/* Copies rows of `width` values to dense rows; the last vector of a row overlaps the one before it. Rows may lie a page
   apart, where no hardware prefetches them. */
#define GCPI_COPY(NAME, TARGET, VEC)                                                                                   \
    TARGET static void NAME(gcp_real *to, const gcp_real *from, ptrdiff_t rows, ptrdiff_t pitch,              \
                                     ptrdiff_t width)                                                                  \
    {                                                                                                                  \
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real)),                                           \
                        ahead = GCPI_COPY_AHEAD / (sizeof(VEC) < 64 ? 1 : 2) * pitch;                                  \
        for (ptrdiff_t r = 0; r < rows; r++, from += pitch, to += width)                                               \
            for (ptrdiff_t j = 0; j < width; j += lanes) {                                                             \
                ptrdiff_t at = GCPI_MIN(j, width - lanes);                                                             \
                GCPI_PREFETCH_READ(from + ahead + at);                                                                 \
                *(VEC *)(to + at) = *(const VEC *)(from + at);                                                         \
            }                                                                                                          \
    }

/* Transposes: to[r*pitch + c] = from[r + c*step], four rows and L columns at a time. A vector holds four rows of L / 4
 * columns. Zipping pairs of vectors twice transposes each 4 x 4 part in registers. L floats fill a register: gcc
 * shuffles wider vectors value by value. The lanes of a shuffle are literals, hence macros for each L. */
#if defined(__has_builtin)
#if GCPI_VECTORS && __has_builtin(__builtin_shufflevector)
#define GCPI_SHUFFLES
#endif
#endif
#ifdef GCPI_SHUFFLES
typedef gcp_real gcpi_4 __attribute__((vector_size(4 * sizeof(gcp_real)), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_8 __attribute__((vector_size(8 * sizeof(gcp_real)), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_16 __attribute__((vector_size(16 * sizeof(gcp_real)), aligned(sizeof(gcp_real)), may_alias));
#define GCPI_ZIP_LOW_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define GCPI_ZIP_HIGH_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define GCPI_ZIP_LOW_8(a, b) __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define GCPI_ZIP_HIGH_8(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
#define GCPI_ZIP_LOW_16(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define GCPI_ZIP_HIGH_16(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define GCPI_FOURS_4(p, step) (*(const gcpi_4 *)(p))
#define GCPI_FOURS_8(p, step) \
    __builtin_shufflevector(GCPI_FOURS_4(p, 0), GCPI_FOURS_4((p) + 4 * (step), 0), 0, 1, 2, 3, 4, 5, 6, 7)
#define GCPI_FOURS_16(p, step) \
    __builtin_shufflevector(GCPI_FOURS_8(p, step), GCPI_FOURS_8((p) + 8 * (step), step), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \
                            10, 11, 12, 13, 14, 15)
#define GCPI_TURN_FOUR(L, to, from)                                                                                    \
    {                                                                                                                  \
        gcpi_##L r0 = GCPI_FOURS_##L(from, step), r1 = GCPI_FOURS_##L((from) + step, step);                            \
        gcpi_##L r2 = GCPI_FOURS_##L((from) + 2 * step, step), r3 = GCPI_FOURS_##L((from) + 3 * step, step);           \
        gcpi_##L low = GCPI_ZIP_LOW_##L(r0, r2), high = GCPI_ZIP_HIGH_##L(r0, r2);                                     \
        gcpi_##L odd_low = GCPI_ZIP_LOW_##L(r1, r3), odd_high = GCPI_ZIP_HIGH_##L(r1, r3);                             \
        *(gcpi_##L *)(to) = GCPI_ZIP_LOW_##L(low, odd_low);                                                            \
        *(gcpi_##L *)((to) + pitch) = GCPI_ZIP_HIGH_##L(low, odd_low);                                                 \
        *(gcpi_##L *)((to) + 2 * pitch) = GCPI_ZIP_LOW_##L(high, odd_high);                                            \
        *(gcpi_##L *)((to) + 3 * pitch) = GCPI_ZIP_HIGH_##L(high, odd_high);                                           \
    }
#else
#define GCPI_TURN_FOUR(L, to, from) \
    for (int q = 0; q < 4 * L; q++) (to)[q / L * pitch + q % L] = (from)[q / L + q % L * step];
#endif
#define GCPI_TURN_COLUMNS(L)                                                                     \
    for (; c + L <= cols; c += L) {                                                              \
        int r = 0;                                                                               \
        for (; r + 4 <= rows; r += 4) GCPI_TURN_FOUR(L, to + r * pitch + c, from + r + c * step) \
        for (; r < rows; r++)                                                                    \
            for (int i = c; i < c + L; i++) to[r * pitch + i] = from[r + i * step];              \
    }
#define GCPI_TURN(NAME, TARGET, L)                                                                                     \
    TARGET static void NAME(gcp_real *to, ptrdiff_t pitch, int rows, int cols, const gcp_real *from,          \
                                     ptrdiff_t step)                                                                   \
    {                                                                                                                  \
        int c = 0;                                                                                                     \
        GCPI_TURN_COLUMNS(L)                                                                                           \
        GCPI_TURN_COLUMNS(4)                                                                                           \
        for (; c < cols; c++)                                                                                          \
            for (int r = 0; r < rows; r++) to[r * pitch + c] = from[r + c * step];                                     \
    }

/* Depthwise: P pixels, NV vectors of channels of each.
 * y[p] = start + sum over rows and taps of x[p, row, tap] * w[row, tap]. */
#define GCPI_DEPTH_SUM(VEC, P, NV, FETCH)                                                                              \
    for (const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real)); c + NV * lanes <= s.channels;            \
         c += NV * lanes) {                                                                                            \
        const gcp_real *x = s.x + c, *w = s.w + c, *start = (s.start ? s.start : s.y) + c;                             \
        const ptrdiff_t step = s.start ? 0 : s.pixel;                                                                  \
        VEC acc[P][NV];                                                                                                \
        GCPI_UNROLL for (int p = 0; p < P; p++) GCPI_UNROLL for (int v = 0; v < NV; v++) acc[p][v] =                   \
            *(const VEC *)(start + p * step + v * lanes);                                                              \
        for (int row = 0; row < s.rows; row++, x += s.xrow, w += s.row) {                                              \
            const gcp_real *at = x, *tap = w;                                                                          \
            FETCH                                                                                                      \
            for (int t = 0; t < s.taps; t++, at += s.xtap, tap += s.tap) GCPI_UNROLL for (int v = 0; v < NV; v++) {    \
                VEC weight = *(const VEC *)(tap + v * lanes);                                                          \
                GCPI_UNROLL for (int p = 0; p < P; p++)                                                                \
                    acc[p][v] += *(const VEC *)(at + p * pixel + v * lanes) * weight;                                  \
            }                                                                                                          \
        }                                                                                                              \
        GCPI_UNROLL for (int p = 0; p < P; p++)                                                                        \
            GCPI_UNROLL for (int v = 0; v < NV; v++) *(VEC *)(s.y + c + p * s.pixel + v * lanes) = acc[p][v];          \
    }

#define GCPI_DEPTH_LOOP(VEC, P, NV) GCPI_DEPTH_SUM(VEC, P, NV, )
#define GCPI_DEPTH_FAR_LOOP(VEC, P, NV) GCPI_DEPTH_SUM(VEC, P, NV, gcpi_strip_fetch(&s);)

/* d[row, tap] += sum over pixels of x[pixel, row, tap] * e[pixel]: T taps stay in registers. */
#define GCPI_DEPTH_BACK_LOOP(VEC, T, NV)                                                                               \
    for (const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real)); c + NV * lanes <= s.channels;            \
         c += NV * lanes) {                                                                                            \
        const gcp_real *x = s.x + c;                                                                                   \
        gcp_real *d = s.d + c;                                                                                         \
        for (int row = 0; row < s.rows; row++, x += s.xrow, d += s.row) {                                              \
            const gcp_real *at = x, *e = s.e + c;                                                                      \
            gcpi_strip_fetch(&s);                                                                                      \
            VEC sum[T][NV];                                                                                            \
            GCPI_UNROLL for (int t = 0; t < T; t++) GCPI_UNROLL for (int v = 0; v < NV; v++) sum[t][v] =               \
                *(const VEC *)(d + t * s.tap + v * lanes);                                                             \
            for (int p = 0; p < s.pixels; p++, at += pixel, e += s.pixel) GCPI_UNROLL for (int v = 0; v < NV; v++) {   \
                VEC value = *(const VEC *)(e + v * lanes);                                                             \
                GCPI_UNROLL for (int t = 0; t < T; t++)                                                                \
                    sum[t][v] += *(const VEC *)(at + t * s.xtap + v * lanes) * value;                                  \
            }                                                                                                          \
            GCPI_UNROLL for (int t = 0; t < T; t++)                                                                    \
                GCPI_UNROLL for (int v = 0; v < NV; v++) *(VEC *)(d + t * s.tap + v * lanes) = sum[t][v];              \
        }                                                                                                              \
    }

/* NV vectors at a time, then one, then short vectors, then single channels. */
#define GCPI_DEPTH(NAME, TARGET, LOOP, VEC, P, NV)              \
    TARGET static void NAME(const gcpi_strip *strip)   \
    {                                                           \
        gcpi_strip s = *strip; /* a copy: no store to y or d can change it */ \
        const ptrdiff_t pixel = s.xpixel;                       \
        ptrdiff_t c = 0;                                        \
        LOOP(VEC, P, NV)                                        \
        LOOP(VEC, P, 1)                                         \
        LOOP(GCPI_SHORT, P, 1)                                  \
        LOOP(gcp_real, P, 1)                                    \
    }
