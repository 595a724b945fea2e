/* What every op uses: the target, and helpers for shape rules. Its threads, instruction set and memory. Work is
   split by shape, never by the number of threads; every sum has one order. */

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF            /* gcc: GCPI_LOOP; end.h restores the default */
#endif

/* Compiles a loop for each instruction set: NAME_body is inlined into one function per set, and NAME calls the
   target's. The bits are the same: nothing is contracted, and no sum changes its order. A body of GCPI_FUSED_SPAN
   is told whether the set has fused multiply-adds; where it takes them its bits differ. GCPI_EACH: vectorise the
   loop; two operands may be the same bytes, but must not overlap in part. GCPI_EIGHT: the same for a loop of eight
   or sixteen, which fills vectors and must not be unrolled. */
#if defined(__clang__)
#define GCPI_EACH _Pragma("clang loop vectorize(assume_safety)")
#define GCPI_EIGHT GCPI_EACH
#elif defined(__GNUC__)
#define GCPI_EACH _Pragma("GCC ivdep")
#define GCPI_EIGHT _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define GCPI_EACH
#define GCPI_EIGHT
#endif
/* Around loops that in double call <math.h>, and are not vectorised there: clang warns of it. */
#ifdef __clang__
#define GCPI_CALLS _Pragma("clang diagnostic push") _Pragma("clang diagnostic ignored \"-Wpass-failed\"")
#define GCPI_CALLS_END _Pragma("clang diagnostic pop")
#else
#define GCPI_CALLS
#define GCPI_CALLS_END
#endif
#if GCPI_X86
#define GCPI_EACH_SET(NAME, PARAMETERS, ARGUMENTS, TARGET, ANY, FUSED)                                      \
    GCPI_LOOP void NAME##_any PARAMETERS { ANY; }                                                           \
    GCPI_LOOP GCPI_AVX2 void NAME##_avx2 PARAMETERS { FUSED; }                                              \
    GCPI_LOOP GCPI_AVX512 void NAME##_avx512 PARAMETERS { FUSED; }                                          \
    static void NAME PARAMETERS                                                                             \
    {                                                                                                       \
        int isa = (TARGET)->isa;                                                                            \
        (isa >= GCP_ISA_AVX512 ? NAME##_avx512 : isa == GCP_ISA_AVX2 ? NAME##_avx2 : NAME##_any) ARGUMENTS; \
    }
#else
#define GCPI_EACH_SET(NAME, PARAMETERS, ARGUMENTS, TARGET, ANY, FUSED) GCPI_LOOP void NAME PARAMETERS { ANY; }
#endif
#define GCPI_WIDE(NAME, PARAMETERS, ARGUMENTS, TARGET) \
    GCPI_EACH_SET(NAME, PARAMETERS, ARGUMENTS, TARGET, NAME##_body ARGUMENTS, NAME##_body ARGUMENTS)
#define GCPI_WIDE_SPAN(NAME) GCPI_WIDE(NAME, (const gcpi_span *s), (s), s->call->target)
#define GCPI_FUSED_SPAN(NAME) \
    GCPI_EACH_SET(NAME, (const gcpi_span *s), (s), s->call->target, NAME##_body(s, 0), NAME##_body(s, 1))
#define GCPI_WIDE_SUM(NAME) \
    GCPI_WIDE(NAME, (const gcp_call *c, size_t first, size_t last, double *sums), (c, first, last, sums), c->target)
#define GCPI_WIDE_TASK(NAME, JOB) \
    GCPI_WIDE(NAME, (void *arg, int index, int worker), (arg, index, worker), ((const JOB *)arg)->call->target)
/* A body that may have a loop for halves is told whether it has (GCPI_TYPED_WIDE in row_blocks.h). */
enum { GCPI_TYPED_ANY = !GCPI_X86 };
#define GCPI_TYPED_SUM(NAME)                                                                                     \
    GCPI_EACH_SET(NAME, (const gcp_call *c, size_t first, size_t last, double *sums), (c, first, last, sums),    \
                  c->target, NAME##_body(c, first, last, sums, GCPI_TYPED_ANY), NAME##_body(c, first, last, sums, 1))

/* align is a power of two */
static size_t gcpi_round(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }

/* Values per task of a pass. Where no sum depends on it, and threads still have GCPI_TASKS_EACH of them, tasks are up
   to GCPI_CHUNKS_MOST times as long: streams start less often. */
enum { GCPI_CHUNK = 16384, GCPI_CHUNKS_MOST = 4, GCPI_TASKS_EACH = 16 };
/* Rows of about so many values: a multiple of 8, so that no two tasks share a byte of a mask. */
static size_t gcpi_rows_of(size_t values, size_t width)
{
    return (GCPI_MAX((size_t)1, values / width) + 7) / 8 * 8;
}
static size_t gcpi_task_rows(const gcp_target *target, size_t rows, size_t width)
{
    const size_t each = rows * width / GCPI_TASKS_EACH / (size_t)target->threads, least = GCPI_CHUNK;
    return gcpi_rows_of(GCPI_MIN(GCPI_MAX(each, least), GCPI_CHUNKS_MOST * least), width);
}

/* For a target without a thread pool: OpenMP's threads, as many as context says, or only the caller's. */
#ifdef _OPENMP
enum { GCPI_OPENMP = 1 };
static int gcpi_threads(void) { return omp_get_max_threads(); }
#else
enum { GCPI_OPENMP = 0 };
static int gcpi_threads(void) { return 1; }
#endif
static void gcpi_default_for(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
#ifdef _OPENMP
    int threads = *(const int *)context;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (tasks > 1)
    for (int i = 0; i < tasks; i++) task(arg, i, omp_get_thread_num());
#else
    (void)context;
    for (int i = 0; i < tasks; i++) task(arg, i, 0);
#endif
}

static gcpi_par gcpi_par_of(const gcp_target *target, gcp_store store)
{
    gcpi_par par;
    par.parallel_for = target->parallel_for ? target->parallel_for : gcpi_default_for;
    par.context = target->parallel_for ? target->context : (void *)(uintptr_t)&target->threads;
    par.threads = target->threads;
    par.isa = target->isa;
    par.direct = target->direct;
    par.halves = store == GCP_STORE_BF16;
    par.duos = par.halves && target->isa == GCP_ISA_AVX512_BF16;
    return par;
}

/* Of a product that makes y of x, and of its gradients. Values that are never rounded are multiplied as floats. */
static gcpi_par gcpi_product_par(const gcp_target *target, gcp_store store, gcp_shape x, gcp_shape y)
{
    gcpi_par par = gcpi_par_of(target, store);
    par.duos &= !gcpi_one_a_sample(x) && !gcpi_one_a_sample(y);
    return par;
}

/* For products that are a task's own: on its thread. */
static void gcpi_serial_for(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
    (void)context;
    for (int i = 0; i < tasks; i++) task(arg, i, 0);
}
static gcpi_par gcpi_serial_par(const gcp_target *target, gcp_store store)
{
    gcpi_par par = gcpi_par_of(target, store);
    par.context = NULL; par.threads = 1; par.parallel_for = gcpi_serial_for;
    return par;
}

static void gcpi_parallel(const gcp_target *target, int tasks, void (*task)(void *arg, int index, int worker),
                          void *arg)
{
    gcpi_par par = gcpi_par_of(target, GCP_STORE_REAL);
    par.parallel_for(par.context, tasks, task, arg);
}

GCPI_DEF void gcp_parallel_for(const gcp_call *call, int tasks, void (*task)(void *arg, int index, int worker),
                               void *arg)
{
    if (tasks > 0) gcpi_parallel(call->target, tasks, task, arg);
}

GCPI_PRINTF(2, 3)
static int gcpi_refuse(gcp_shape_call *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->message, s->message_size, format, args);
    va_end(args);
    return 0;
}

static const gcpi_attributes *gcpi_attr(const void *attributes) { return (const gcpi_attributes *)attributes; }

/* A shape as an argument of a message: it lives until the call is done. */
typedef struct gcpi_shape_words { char s[64]; } gcpi_shape_words;
static gcpi_shape_words gcpi_words_of(gcp_shape shape)
{
    gcpi_shape_words words;
    gcpi_shape_text(shape, words.s, sizeof words.s);
    return words;
}
#define GCPI_SHAPE_TEXT(shape) gcpi_words_of(shape).s

#define gcpi_refuse_type(s, ...) ((s)->code = GCP_E_DTYPE, gcpi_refuse((s), __VA_ARGS__))

static int gcpi_all_real(gcp_shape_call *s)
{
    for (int i = 0; i < s->inputs; i++)
        if (s->in_dtype[i] != GCP_DTYPE_REAL)
            return gcpi_refuse_type(s, "input %d holds integers, not real numbers", i);
    return 1;
}

static gcp_shape gcpi_scalar(void)
{
    gcp_shape s;
    s.rank = 0;
    s.d[0] = s.d[1] = s.d[2] = s.d[3] = 1;
    return s;
}

static int gcpi_unary_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; return gcpi_all_real(s); }

/* Copies and fills of the target's memory. */
static void gcpi_bytes_copy(const gcp_target *target, void *to, const void *from, size_t size)
{
    if (target->device) target->device->copy(target->context, to, from, size);
    else memcpy(to, from, size);
}
static void gcpi_rows_copy(const gcp_target *target, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t rows)
{
    if (rows > 1 && target->device && target->device->copy_rows) {
        target->device->copy_rows(target->context, to, to_pitch, from, from_pitch, width, rows);
        return;
    }
    unsigned char *there = (unsigned char *)to;
    const unsigned char *here = (const unsigned char *)from;
    for (size_t r = 0; r < rows; r++) gcpi_bytes_copy(target, there + r * to_pitch, here + r * from_pitch, width);
}
static void gcpi_bytes_fill(const gcp_target *target, void *to, int byte, size_t size)
{
    if (target->device) target->device->fill(target->context, to, byte, size);
    else memset(to, byte, size);
}

/* 1, and an error on the tape, if the device has failed. */
static int gcpi_trouble(gcp_tape *t, const gcp_target *target, gcp_at at, const char *what)
{
    /* what .feed would see is the step's */
    const char *text = target->device && !t->feeding ? target->device->trouble(target->context) : NULL;
    if (text) gcpi_fail(t, GCP_E_DEVICE, at, what, "%s: %s", target->name, text);
    return text != NULL;
}

/* By how much an instruction that multiplies bfloat16 does more than one that multiplies floats (duos.h). */
static double gcpi_bf16_gain(const gcp_target *t) { return !t->device && t->isa == GCP_ISA_AVX512_BF16 ? 2 : 1; }

/* Puts the defaults where a target holds zeros. */
static gcp_target gcpi_target_of(const gcp_target *given)
{
    gcp_target t;
    memset(&t, 0, sizeof t);
    if (given) t = *given;
    if (!t.name) t.name = "cpu";
    if (!t.align) t.align = 64;
    if (t.isa == GCP_ISA_BEST) t.isa = gcpi_isa_best();
    if (t.flops_per_second <= 0) t.flops_per_second = 1e11;
    if (t.bf16_flops_per_second <= 0) t.bf16_flops_per_second = t.flops_per_second * gcpi_bf16_gain(&t);
    if (t.bytes_per_second <= 0) t.bytes_per_second = 1e10;
    if (t.far_bytes_per_second <= 0) t.far_bytes_per_second = 1e10;
    if (!t.parallel_for) t.threads = GCPI_OPENMP ? (t.threads > 0 ? t.threads : gcpi_threads()) : 1;
    t.threads = GCPI_MAX(1, t.threads);
    return t;
}
