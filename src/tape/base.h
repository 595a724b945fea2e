/* What all rooms use: arenas, hashes, random numbers, text through a writer. The front of an arena holds
   what lasts. Its back holds scratch, which is given back by restoring .scratch. */

/* Between GCPI_COLD and GCPI_WARM stands what runs once per plan or step. Where the user optimises at all, gcc takes
   -Og for it and compiles gcp.h in three quarters of the time; plans and steps take as long as before. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define GCPI_COLD _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")")
#define GCPI_WARM _Pragma("GCC pop_options")
#else
#define GCPI_COLD
#define GCPI_WARM
#endif

#if defined(__GNUC__) && !defined(__clang__)
/* Elementwise loops are fast at -O0, too. A product and a sum round separately, for an op alone and in a group. */
#define GCPI_LOOP static __attribute__((optimize("O3", "fp-contract=off")))
#define GCPI_RESTRICT __restrict__
#define GCPI_ALONE static __attribute__((noinline))
#if defined(__MINGW32__)                          /* printf would be Microsoft's old one, without %zu */
#define GCPI_PRINTF(f, a) __attribute__((format(gnu_printf, f, a)))
#else
#define GCPI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#endif
#elif defined(__clang__)
#define GCPI_LOOP static
#define GCPI_RESTRICT __restrict__
#define GCPI_ALONE static __attribute__((noinline))
#define GCPI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define GCPI_LOOP static
#define GCPI_RESTRICT
#define GCPI_ALONE static
#define GCPI_PRINTF(f, a)
#endif
#ifdef GCP_STATIC
#define GCPI_DEF static
#else
#define GCPI_DEF
#endif
#define GCPI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GCPI_MAX(a, b) ((a) > (b) ? (a) : (b))

GCPI_DEF gcp_arena gcp_arena_from(void *memory, size_t size)
{
    gcp_arena arena;
    memset(&arena, 0, sizeof arena);
    arena.base = (unsigned char *)memory;
    arena.size = memory && size <= PTRDIFF_MAX ? (ptrdiff_t)size : 0;
    return arena;
}

static void gcpi_arena_mark_high(gcp_arena *a) { a->high = GCPI_MAX(a->high, a->used + a->scratch); }

/* size * count with no overflow, or -1. */
static ptrdiff_t gcpi_product(ptrdiff_t size, ptrdiff_t count)
{
    if (size < 0 || count < 0 || (size && count > PTRDIFF_MAX / size)) return -1;
    return size * count;
}

GCPI_DEF void *gcp_arena_push(gcp_arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    ptrdiff_t bytes = gcpi_product(size, count);
    if (!a || !a->base || bytes < 0 || align <= 0 || align & (align - 1)) return NULL;
    ptrdiff_t pad = (ptrdiff_t)(-(uintptr_t)(a->base + a->used) & (uintptr_t)(align - 1));
    ptrdiff_t room = a->size - a->used - a->scratch;
    if (pad > room || bytes > room - pad) return NULL;
    void *p = a->base + a->used + pad;
    a->used += pad + bytes;
    gcpi_arena_mark_high(a);
    return memset(p, 0, (size_t)bytes);
}

static void *gcpi_scratch_push(gcp_arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    ptrdiff_t bytes = gcpi_product(size, count), room = a->size - a->used - a->scratch;
    if (bytes < 0 || bytes > room) return NULL;
    ptrdiff_t end = a->size - a->scratch - bytes;
    ptrdiff_t pad = (ptrdiff_t)((uintptr_t)(a->base + end) & (uintptr_t)(align - 1));
    if (pad > room - bytes) return NULL;
    a->scratch += bytes + pad;
    gcpi_arena_mark_high(a);
    return memset(a->base + end - pad, 0, (size_t)bytes);
}

/* Options where 0 means the default, or "not given"; GCP_ZERO stands for the value zero. */
static double gcpi_option(double given, double otherwise)
{
    return given == 0 ? otherwise : given == GCP_ZERO ? 0 : given;
}
static int gcpi_integer(int given) { return given == GCP_ZERO ? 0 : given; }

static int gcpi_finite(double x) { return x - x == 0; }
static size_t gcpi_bytes_from(double x) { return x >= (double)SIZE_MAX ? SIZE_MAX : x > 0 ? (size_t)x : 0; }

/* FNV-1a (Fowler, Noll, Vo), a byte at a time; GCPI_HASH is the start value. */
#define GCPI_HASH 14695981039346656037u
static uint64_t gcpi_hash_byte(uint64_t h, unsigned char byte) { return (h ^ byte) * 1099511628211u; }
static uint64_t gcpi_hash(const char *s)
{
    uint64_t h = GCPI_HASH;
    while (*s) h = gcpi_hash_byte(h, (unsigned char)*s++);
    return h;
}

#define GCPI_NEW(arena, type, count) ((type *)gcp_arena_push((arena), (ptrdiff_t)sizeof(type), 16, (ptrdiff_t)(count)))
#define GCPI_SCRATCH(arena, type, count) \
    ((type *)gcpi_scratch_push((arena), (ptrdiff_t)sizeof(type), 16, (ptrdiff_t)(count)))

/* Marsaglia's xorshift (2003): only for what planning tries; no step depends on it */
static uint32_t gcpi_below(uint64_t *random, uint32_t n)
{
    *random ^= *random << 13; *random ^= *random >> 7; *random ^= *random << 17;
    return (uint32_t)((*random >> 32) * n >> 32);
}

/* Random numbers: Philox 4x32-10 (Salmon et al. 2011). What is drawn depends on the key and counter alone. */
typedef struct gcpi_random { uint32_t x[4]; } gcpi_random;
static gcpi_random gcpi_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    gcpi_random r;
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0; c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1; c3 = (uint32_t)a;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    r.x[0] = c0; r.x[1] = c1; r.x[2] = c2; r.x[3] = c3;
    return r;
}

static void gcpi_file_write(void *context, const char *text, size_t size) { fwrite(text, 1, size, (FILE *)context); }

GCPI_DEF gcp_writer gcp_file(void *stdio_file)
{
    gcp_writer w;
    w.write = gcpi_file_write; w.context = stdio_file;
    return w;
}

static void gcpi_put(gcp_writer w, const char *text, size_t size)
{
    if (size && w.write) w.write(w.context, text, size);
}

/* A number's text has a point, whatever the program's locale writes there. */
static void gcpi_say_real(gcp_writer w, const char *conversion, double value)
{
    char text[340], *end = text;
    snprintf(text, sizeof text, conversion, value);
    for (char *c = text; *c; c++) {
        if (strchr("+-0123456789einfa ", *c)) *end++ = *c;
        else if (end == text || end[-1] != '.') *end++ = '.';       /* one of several bytes, perhaps */
    }
    gcpi_put(w, text, (size_t)(end - text));
}

/* One conversion of gcpi_say: d u x c s f g, with the sizes ll, z and t. */
static void gcpi_say_one(gcp_writer w, const char *conversion, size_t length, va_list *args)
{
    char text[640] = "";
    const char kind = conversion[length - 1], size = length > 2 ? conversion[length - 2] : '%';
    if (kind == 'f' || kind == 'g') { gcpi_say_real(w, conversion, va_arg(*args, double)); return; }
    if (kind == 's' && length == 2) {
        const char *s = va_arg(*args, const char *);
        gcpi_put(w, s, strlen(s));
        return;
    }
    if (kind == 's' && size == '*') {
        int n = va_arg(*args, int);
        snprintf(text, sizeof text, conversion, n, va_arg(*args, const char *));
    }
    else if (kind == 's') snprintf(text, sizeof text, conversion, va_arg(*args, const char *));
    else if (size == 'l') snprintf(text, sizeof text, conversion, va_arg(*args, unsigned long long));
    else if (size == 'z') snprintf(text, sizeof text, conversion, va_arg(*args, size_t));
    else if (size == 't') snprintf(text, sizeof text, conversion, va_arg(*args, ptrdiff_t));
    else if (kind == '%') text[0] = '%';
    else snprintf(text, sizeof text, conversion, va_arg(*args, int));           /* d u x c */
    gcpi_put(w, text, kind == 'c' ? 1 : strlen(text));
}

GCPI_PRINTF(2, 3)
static void gcpi_say(gcp_writer w, const char *format, ...)
{
    va_list args;
    char conversion[16];
    va_start(args, format);
    while (*format) {
        size_t n = strcspn(format, "%");
        gcpi_put(w, format, n);
        format += n;
        if (!*format) break;
        n = 1 + strcspn(format + 1, "duxcsfg%") + 1;
        snprintf(conversion, sizeof conversion, "%.*s", (int)n, format);
        gcpi_say_one(w, conversion, n, &args);
        format += n;
    }
    va_end(args);
}

/* strtod, which reads a point whatever the program's locale has there. */
static double gcpi_real(const char *text, char **end)
{
    char mark[16], copy[80];
    const size_t n = strspn(text, "+-0123456789.eE"), point = strcspn(text, ".");
    const int marks = snprintf(mark, sizeof mark, "%.1f", 0.5) - 2;
    if (point >= n || n > 60 || (marks == 1 && mark[1] == '.')) return strtod(text, end);
    snprintf(copy, sizeof copy, "%.*s%.*s%.*s", (int)point, text, marks, mark + 1, (int)(n - point - 1),
             text + point + 1);
    char *read;
    const double value = strtod(copy, &read);
    const size_t used = (size_t)(read - copy);
    if (end) *end = (char *)(uintptr_t)text + (used > point ? used - (size_t)marks + 1 : used);
    return value;
}

static double gcpi_mib(size_t bytes) { return (double)bytes / 1048576.0; }
