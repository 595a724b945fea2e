/* Elements on their way between the state and a file. */

static void gcpi_u64_to(uint64_t v, unsigned char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) b[i] = (unsigned char)(v >> 8 * i);
}
/* IEEE binary16: exact in float, also where it is below the normal numbers. */
static float gcpi_half_from(unsigned bits)
{
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, rest = bits & 0x3ff;
    if (exponent == 31) return gcpi_float_of(sign | 0x7f800000u | rest << 13);
    if (exponent) return gcpi_float_of(sign | (exponent + 112) << 23 | rest << 13);
    float small = (float)rest * gcpi_float_of(0x33800000u);       /* 2^-24 */
    return sign ? -small : small;
}
/* The type of a gcp_real in files: with it, bits stay as they are. */
static int gcpi_real_dtype(void) { return sizeof(gcp_real) == 4 ? GCPI_FILE_F32 : GCPI_FILE_F64; }

static gcp_real gcpi_real_from(int dtype, const unsigned char *b)
{
    uint64_t bits = dtype == GCPI_FILE_F64 ? gcpi_u64_from(b) : (uint64_t)b[0] | (uint64_t)b[1] << 8;
    if (dtype == GCPI_FILE_F16) return (gcp_real)gcpi_half_from((unsigned)bits);
    if (dtype == GCPI_FILE_BF16) return (gcp_real)gcpi_float_of((uint32_t)bits << 16);
    if (dtype == GCPI_FILE_F32) {
        bits |= (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
        if (sizeof(gcp_real) != 4) return (gcp_real)gcpi_float_of((uint32_t)bits);
    }
    if (dtype == GCPI_FILE_F64 && sizeof(gcp_real) == 4) {
        double x;
        memcpy(&x, &bits, sizeof x);
        return (gcp_real)x;
    }
    gcp_real x;
    uint32_t low = (uint32_t)bits;
    if (sizeof x == 4) memcpy(&x, &low, 4);
    else memcpy(&x, &bits, GCPI_MIN(sizeof x, sizeof bits));
    return x;
}
static void gcpi_real_to(gcp_real x, unsigned char *b)
{
    uint64_t bits = 0;
    uint32_t low;
    if (sizeof x == 4) { memcpy(&low, &x, 4); bits = low; } else memcpy(&bits, &x, GCPI_MIN(sizeof x, sizeof bits));
    gcpi_u64_to(bits, b, sizeof x);
}

/* Where in the state a weight's elements lie, in the order of the file. */
typedef struct gcpi_axes_walk { size_t size[6], step[6], at[6], index, count; int rank, plain; } gcpi_axes_walk;

static gcpi_axes_walk gcpi_axes_walk_of(const gcpi_axes *axes, gcp_shape shape)
{
    gcpi_axes_walk w;
    size_t sizes[6], steps[6], last = SIZE_MAX;
    memset(&w, 0, sizeof w);
    gcpi_axes_sizes(axes, shape, sizes);
    steps[5] = 1;
    for (int i = 5; i > 0; i--) steps[i - 1] = steps[i] * sizes[i];
    w.count = gcpi_count(shape);
    w.plain = 1;
    for (const char *letter = axes->letters; *letter; letter++) {
        ptrdiff_t axis = strchr(gcpi_axes_letters, *letter) - gcpi_axes_letters;
        w.size[w.rank] = sizes[axis];
        w.step[w.rank++] = steps[axis];
        if (sizes[axis] == 1) continue;
        w.plain &= steps[axis] < last;
        last = steps[axis];
    }
    return w;
}
static void gcpi_axes_walk_on(gcpi_axes_walk *w)
{
    for (int d = w->rank - 1; d >= 0; d--) {
        w->index += w->step[d];
        if (++w->at[d] < w->size[d]) return;
        w->index -= w->step[d] * w->size[d];
        w->at[d] = 0;
    }
}

/* Memory of a tensor in the state: on a device, or the CPU's (home NULL). */
typedef struct gcpi_place { const gcp_target *home; unsigned char *at; } gcpi_place;

static void gcpi_place_copy(const gcpi_place *p, void *to, const void *from, size_t size)
{
    if (p->home) gcpi_bytes_copy(p->home, to, from, size);
    else memcpy(to, from, size);
}
/* Memory that the CPU can address for the elements of a place in any order: the place, or scratch. NULL: no room. */
static gcp_real *gcpi_place_open(const gcpi_place *p, gcp_arena *a, size_t count)
{
    if (!p->home || !p->home->device) return (gcp_real *)(void *)p->at;
    return GCPI_SCRATCH(a, gcp_real, count);
}
static int gcpi_place_none(gcpi_disk_file *s, size_t count)
{
    const size_t before = (size_t)(s->scratch->scratch - s->taken);
    return gcpi_disk_no_room(s, before + count * sizeof(gcp_real) + 32, "a weight of another layout");
}

enum { GCPI_SOME = 1024 };               /* elements on the stack */

/* Reads count elements of this type, in the order of the state or of the walk. */
static int gcpi_tensor_read(gcpi_disk_file *s, int dtype, gcpi_axes_walk w, const gcpi_place *p)
{
    gcp_arena *a = s->scratch;
    unsigned char bytes[GCPI_SOME * 8];
    gcp_real some[GCPI_SOME];
    const ptrdiff_t scratch = a->scratch;
    const size_t size = gcpi_dtype_size(dtype);
    gcp_real *all = w.plain ? NULL : gcpi_place_open(p, a, w.count);
    if (!w.plain && !all) return gcpi_place_none(s, w.count);
    for (size_t first = 0, n; first < w.count; first += n) {
        n = GCPI_MIN(w.count - first, (size_t)GCPI_SOME);
        if (!gcpi_disk_read(s, bytes, n * size)) break;
        for (size_t i = 0; i < n; i++) some[i] = gcpi_real_from(dtype, bytes + i * size);
        if (w.plain) gcpi_place_copy(p, p->at + first * sizeof *some, some, n * sizeof *some);
        else for (size_t i = 0; i < n; i++, gcpi_axes_walk_on(&w)) memcpy(&all[w.index], &some[i], sizeof *some);
    }
    if (all && (unsigned char *)all != p->at && !s->failed) gcpi_place_copy(p, p->at, all, w.count * sizeof *all);
    a->scratch = scratch;
    return !s->failed;
}

/* Writes the elements of a place, as gcp_reals. */
static int gcpi_tensor_write(gcpi_disk_file *s, gcpi_axes_walk w, const gcpi_place *p)
{
    gcp_arena *a = s->scratch;
    unsigned char bytes[GCPI_SOME * sizeof(gcp_real)];
    gcp_real some[GCPI_SOME];
    const ptrdiff_t scratch = a->scratch;
    gcp_real *all = w.plain ? NULL : gcpi_place_open(p, a, w.count);
    if (!w.plain && !all) return gcpi_place_none(s, w.count);
    if (all && (unsigned char *)all != p->at) gcpi_place_copy(p, all, p->at, w.count * sizeof *all);
    for (size_t first = 0, n; first < w.count; first += n) {
        n = GCPI_MIN(w.count - first, (size_t)GCPI_SOME);
        if (w.plain) gcpi_place_copy(p, some, p->at + first * sizeof *some, n * sizeof *some);
        else for (size_t i = 0; i < n; i++, gcpi_axes_walk_on(&w)) memcpy(&some[i], &all[w.index], sizeof *some);
        for (size_t i = 0; i < n; i++) gcpi_real_to(some[i], bytes + i * sizeof *some);
        if (!gcpi_disk_write(s, bytes, n * sizeof *some)) break;
    }
    a->scratch = scratch;
    return !s->failed;
}
