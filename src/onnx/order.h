/* Orders: where a value's elements lie. ONNX is channels first, gcp channels last, and a tape has four axes. So a value
   is a tensor and an order. Its axes are products of *factors*, an axis of size 1 of none: the factors of axis 0 from
   the slowest, then those of axis 1, and so on. The tensor has the same factors in an order of its own, memory[0] the
   slowest; each of its four sizes is a product of neighbours there. A Reshape cuts or joins factors, a Transpose
   changes the order of axes: both cost nothing. Elements are moved only where an op needs its axes elsewhere. */

static void gcpi_onnx_order_set(gcpi_onnx_order *o, int rank, const int *d)
{
    memset(o, 0, sizeof *o);
    o->rank = rank;
    for (int i = 0; i < rank; i++) {
        o->d[i] = d[i];
        if (d[i] == 1) continue;
        o->size[o->count] = d[i];
        o->axis[o->count] = i;
        o->memory[o->count] = o->count;
        o->count++;
    }
}
/* A layout is axes in the order of memory, and '|' between the four sizes of the tensor: "0|2|3|1" is an image of ONNX
   as gcp has it. "0||2|13": axes 1 and 3 together are the channels. */
static int gcpi_layout_factors(const gcpi_onnx_order *o, const char *layout, int *want)
{
    int count = 0;
    for (; *layout; layout++)
        for (int f = 0; f < o->count && *layout != '|'; f++)
            if (o->axis[f] == *layout - '0') want[count++] = f;
    return count;
}
static gcp_shape gcpi_layout_shape(const gcpi_onnx_order *o, const char *layout)
{
    gcp_shape s = gcpi_raw(4, 1, 1, 1, 1);
    for (int place = 0; *layout; layout++)
        if (*layout == '|') place++;
        else s.d[place] *= o->d[*layout - '0'];
    return s;
}
/* The order of a new value that an op makes in this layout. */
static void gcpi_onnx_order_make(gcpi_onnx_order *o, const char *layout, int rank, const int *d)
{
    gcpi_onnx_order_set(o, rank, d);
    gcpi_layout_factors(o, layout, o->memory);
}
/* All axes in their own order, cut into a tensor's four sizes: samples first, the last axis last. */
static const char *gcpi_layout_plain(int rank)
{
    static const char *const layouts[] = { "",         "|||0",      "0|||1",      "0||1|2",     "0|1|2|3",
                                           "0|1|2|34", "0|1|2|345", "0|1|2|3456", "0|1|2|34567" };
    return layouts[rank];
}
/* As gcp would have it: images channels last. */
static const char *gcpi_layout_usual(int rank) { return rank == 4 ? "0|2|3|1" : gcpi_layout_plain(rank); }

static int gcpi_onnx_order_place(const gcpi_onnx_order *o, int factor)
{
    int j = 0;
    while (j < o->count && o->memory[j] != factor) j++;
    return j;
}
/* Factor f becomes two, the outer of this size. 0: no room. */
static int gcpi_onnx_order_split(gcpi_onnx_order *o, int f, int outer)
{
    const int at = gcpi_onnx_order_place(o, f);
    if (o->count == GCPI_FACTORS) return 0;
    for (int i = o->count; i > f; i--) o->size[i] = o->size[i - 1], o->axis[i] = o->axis[i - 1];
    for (int j = 0; j < o->count; j++) o->memory[j] += o->memory[j] > f;
    for (int j = o->count; j > at + 1; j--) o->memory[j] = o->memory[j - 1];
    o->memory[at + 1] = f + 1;
    o->size[f] = outer;
    o->size[f + 1] /= outer;
    o->count++;
    return 1;
}
/* Factor f + 1 is joined to f, behind which it lies. */
static void gcpi_onnx_order_join(gcpi_onnx_order *o, int f)
{
    const int at = gcpi_onnx_order_place(o, f + 1);
    o->size[f] *= o->size[f + 1];
    o->count--;
    for (int i = f + 1; i < o->count; i++) o->size[i] = o->size[i + 1], o->axis[i] = o->axis[i + 1];
    for (int j = at; j < o->count; j++) o->memory[j] = o->memory[j + 1];
    for (int j = 0; j < o->count; j++) o->memory[j] -= o->memory[j] > f;
}
/* Joins what lies side by side in the value and in memory; across axes where they are about to change. */
static void gcpi_onnx_order_tidy(gcpi_onnx_order *o, int across)
{
    for (int f = 0; f + 1 < o->count;) {
        const int beside = gcpi_onnx_order_place(o, f + 1) == gcpi_onnx_order_place(o, f) + 1;
        if (beside && (across || o->axis[f] == o->axis[f + 1])) gcpi_onnx_order_join(o, f);
        else f++;
    }
}
/* Other axes, of as many elements. 0: an axis would be part of a factor: the value must lie in its own order first. */
static int gcpi_onnx_order_reshape(gcpi_onnx_order *o, int rank, const int *d)
{
    gcpi_onnx_order r = *o;
    int f = 0;
    gcpi_onnx_order_tidy(&r, 1);
    for (int i = 0; i < rank; i++) {
        int rest = d[i];
        for (; rest > 1; f++) {
            if (f == r.count) return 0;
            const int size = r.size[f], part = size > rest ? rest : size;
            if ((size > rest ? size : rest) % part) return 0;
            if (size > rest && !gcpi_onnx_order_split(&r, f, rest)) return 0;
            r.axis[f] = i;
            rest /= part;
        }
        r.d[i] = d[i];
    }
    r.rank = rank;
    gcpi_onnx_order_tidy(&r, 0);
    *o = r;
    return f == r.count || !r.count;
}
/* Axis i becomes what was axis axes[i]. */
static void gcpi_onnx_order_transpose(gcpi_onnx_order *o, const int *axes)
{
    gcpi_onnx_order r = *o;
    int to[GCPI_FACTORS], next = 0;
    for (int i = 0; i < o->rank; i++) {
        r.d[i] = o->d[axes[i]];
        for (int f = 0; f < o->count; f++)
            if (o->axis[f] == axes[i]) r.size[next] = o->size[f], r.axis[next] = i, to[f] = next++;
    }
    for (int j = 0; j < o->count; j++) r.memory[j] = to[o->memory[j]];
    *o = r;
}
static int gcpi_onnx_order_is(const gcpi_onnx_order *o, const int *want)
{
    return !memcmp(o->memory, want, (size_t)o->count * sizeof *want);
}
/* How many of the last factors in memory are those of axes from `axis` on, and no others; -1: they do not lie there. */
static int gcpi_onnx_order_trailing(const gcpi_onnx_order *o, int axis)
{
    int count = 0;
    for (int f = 0; f < o->count; f++) count += o->axis[f] >= axis;
    for (int j = o->count - count; j < o->count; j++)
        if (o->axis[o->memory[j]] < axis) return -1;
    return count;
}
static ptrdiff_t gcpi_onnx_order_elements(const gcpi_onnx_order *o, int from, int to) /* of memory[from .. to - 1] */
{
    ptrdiff_t n = 1;
    for (int j = from; j < to; j++) n *= o->size[o->memory[j]];
    return n;
}
/* Factor f is left out. */
static void gcpi_onnx_order_remove(gcpi_onnx_order *o, int f)
{
    const int at = gcpi_onnx_order_place(o, f);
    o->count--;
    for (int j = at; j < o->count; j++) o->memory[j] = o->memory[j + 1];
    for (int j = 0; j < o->count; j++) o->memory[j] -= o->memory[j] > f;
    for (int i = f; i < o->count; i++) o->size[i] = o->size[i + 1], o->axis[i] = o->axis[i + 1];
}
