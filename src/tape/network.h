/* The recorded network, and the tape that holds it; handles; errors. Tensors, parameters, ops, names and segments
   are indices into arrays of the tape. The first error stays until it is cleared. A full tape goes on counting ops,
   to say in its message how many it needs. */

/* hash: of parent and label. The names are a hash table too: the chain of bucket i begins at names[i].newest and goes
   on at .before. */
typedef struct gcpi_name {
    int parent, index, named, newest, before;
    const char *label; uint64_t hash;
} gcpi_name;

/* outer: the outermost segment around it, or itself; keep: with the classes that those around it keep; named: patterns
   of what it keeps, while it is open */
typedef struct gcpi_segment {
    int parent, outer, name, depth, open, ops; unsigned keep; const char *named; gcp_at at;
} gcpi_segment;

enum { GCPI_INPUT = 1, GCPI_PARAMETER, GCPI_STATISTIC, GCPI_ACTIVATION };
enum { GCPI_KEPT = 1, GCPI_WANTED = 2, GCPI_FROZEN = 4 };

typedef struct gcpi_tensor {
    int kind, flags, producer, parameter, name;   /* producer: op; parameter: index; -1 where there is none */
    gcp_dtype dtype;
    gcp_shape shape;
} gcpi_tensor;

typedef struct gcpi_parameter {
    const char *path;
    gcp_shape shape;
    gcp_init init;
    /* tensor: in this recording, 0 while it is not recorded; fans: 0 where not given */
    int kind, tensor, fan_in, fan_out;
    double deviation;                             /* 0: the one that init implies */
    uint64_t hash;
    /* offsets: of its value in the state; of its optimiser slots, in the state or in far_slots, 0 where it has none */
    size_t offset, slot;
    /* io: the shape that a file of each style had for it */
    struct { unsigned char known, rank, ones; } file[3];
} gcpi_parameter;

typedef struct gcpi_conv_attr {
    int n, h, w, ci, ho, wo, co, kh, kw, sh, sw, pt, pb, pl, pr, dh, dw, groups, same;
} gcpi_conv_attr;
typedef union gcpi_attributes {
    gcpi_conv_attr conv;                          /* convolutions and pools */
    double pointwise[2];                          /* the numbers p and q */
    struct { double low, high, slope; } rectifier;   /* slope: below low; 0: low itself */
    /* fn: of GCPI_PAIRS; bits of inputs that are spread, and of those spread over samples */
    struct { int fn; unsigned spread, whole; gcp_shape to; double p; } pair;    /* to: of expand */
    struct { int logarithm; } softmax;
    /* lengths, bias: the input, 0: none; shared: all samples have one bias */
    struct { int heads, causal, lengths, bias, keys, shared; double scale; } attention;
    struct { double rate; int per_sample; } dropout;
    struct { double epsilon, momentum; int groups, rms, frozen; } norm;
    struct { int first, count; } slice;
    struct { int axis, first, count, step, from[4]; } axes;
    struct { int axis, before, after, mode; } pad;
    struct { int h, w, mode, corners, factor; } resize;            /* factor: of upsample */
    struct { int axes; } reduce;                   /* bits of the stored axes */
    struct { int out; } linear;
    struct { int ta, tb, many; unsigned shared; } matmul;   /* as options; batches; bits of inputs that serve all */
    /* of cross_entropy. ignore: the label that does not count; soft: targets are given; classes, samples: the input
       with their weights, 0: none */
    struct { int ignore, ignores, soft, classes, samples; double smoothing; } labels;
    gcp_shape shape;
} gcpi_attributes;

typedef struct gcpi_op {
    const gcp_op *row;
    int kind, name, segment;
    int in, inputs, out, outputs;                 /* in: its first input in tape->edges; out: its first tensor */
    int kept;                                     /* a segment around it keeps it by name */
    gcp_at at;
    const void *context;
    gcpi_attributes attributes;
} gcpi_op;

/* Bytes of an arena that can be given back; the lease lies at their front. before: the older one, in a tape's arena. */
typedef struct gcpi_lease { struct gcpi_lease *before; ptrdiff_t first, last; int freed; } gcpi_lease;

/* A bound plan: where the plan itself, its slab and its far memory lie. These are copies: the plan cannot be asked once
   its arena was used for something else. */
typedef struct gcpi_binding {
    uint64_t plan; const void *memory;            /* the plan's number, 0: none; gcp_bind's memory */
    const unsigned char *own, *slab, *far;
    size_t own_bytes, slab_bytes, far_bytes;
    int taken;                                    /* since then another plan wrote or ran in its slab */
} gcpi_binding;

/* How much a tape holds: what a call recorded before it was refused (its name, its weights) is taken back. */
typedef struct gcpi_extents {
    int ops, edges, tensors, names, parameters;
    ptrdiff_t text_used, text_mark;
} gcpi_extents;

struct gcp_tape {
    gcp_arena *arena;
    gcp_code code;
    char message[GCP_MAX_ERROR];
    gcp_at full_at;                               /* the call that found the tape full first */
    int full_ops;                                 /* ops needed so far, once it is full */
    unsigned generation;
    ptrdiff_t arena_mark;
    uint64_t seed;
    gcpi_op *ops;               int op_count, op_capacity;
    gcpi_tensor *tensors;       int tensor_count, tensor_capacity;     /* 0 is nil */
    int *edges;                 int edge_count, edge_capacity;
    gcpi_name *names;           int name_count, name_capacity;         /* 0 is the root */
    gcpi_segment *segments;     int segment_count, segment_capacity, open;     /* 0 is the whole tape */
    gcpi_parameter *parameters; int parameter_count, parameter_capacity;
    /* names that the user gave, from the front; paths of parameters, from the back */
    char *text;                 ptrdiff_t text_used, text_capacity, text_mark;
    gcpi_extents good;                            /* as of the last call that was not refused */
    /* state: the counters, then values, then optimiser slots; layout counts the changes that may move slabs */
    unsigned char *state; size_t state_size, state_capacity;
    gcp_target home;                              /* the target whose memory holds the state */
    const void *state_memory;                     /* the caller's pointer that it came from */
    int own_state, slots;                         /* slots: per parameter; 0 until a plan with slots is bound */
    gcp_optimizer optimizer;                      /* the optimiser that the slots belong to */
    /* where slots lie that wait in far memory (gcp_slots_bind); NULL: they are in the state */
    unsigned char *far_slots;   size_t far_slots_size, far_slots_capacity;
    unsigned layout;
    /* plans are known by number. plans: how many were made; runner: ran last; toucher: wrote or ran in its slab last;
       summing: is not through its micro-batches; feeding: its .feed is being called */
    uint64_t plans, runner, toucher, summing, feeding;
    gcp_at fed_at;                                /* the step whose .feed it is */
    const char *planning;                         /* the call that plans, or planned last: for errors */
    gcpi_binding bindings[GCP_MAX_BOUND];
    gcpi_lease *leases;                           /* the newest in this arena */
};

GCPI_DEF const char *gcp_code_text(gcp_code code)
{
#define GCPI_TEXT(name, text) text,
    static const char *const texts[] = { "no error", GCP_ERRORS(GCPI_TEXT) };
#undef GCPI_TEXT
    return code < GCP_ERROR_COUNT ? texts[code] : "unknown code";
}

static const char *gcpi_basename(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? slash + 1 : file ? file : "?";
}

GCPI_PRINTF(5, 6)
static void gcpi_fail(gcp_tape *t, gcp_code code, gcp_at at, const char *what, const char *format, ...)
{
    if (!t || t->code) return;
    t->code = code;
    int n = snprintf(t->message, sizeof t->message, "%s:%d: %s: ", gcpi_basename(at.file), at.line, what);
    if (n < 0 || n >= (int)sizeof t->message) return;
    va_list args;
    va_start(args, format);
    vsnprintf(t->message + n, sizeof t->message - (size_t)n, format, args);
    va_end(args);
}

static const char gcpi_no_tape[] =
    "gcp_tape_make: the arena is too small for a tape (gcp_tape_arena says what one takes), or serves one already";

GCPI_DEF const char *gcp_error(gcp_tape *t)
{
    if (!t) return gcpi_no_tape;
    if (t->full_ops)
        snprintf(t->message, sizeof t->message, "%s:%d: tape: %d ops are recorded, %d were needed so far (.ops = %d)",
                 gcpi_basename(t->full_at.file), t->full_at.line, t->op_capacity, t->full_ops, t->op_capacity);
    return t->code ? t->message : NULL;
}

GCPI_DEF gcp_code gcp_error_code(const gcp_tape *t) { return t ? t->code : GCP_E_NOMEM; }

static void gcpi_recorded(gcp_tape *t)
{
    t->good.ops = t->op_count; t->good.edges = t->edge_count;
    t->good.tensors = t->tensor_count; t->good.names = t->name_count; t->good.parameters = t->parameter_count;
    t->good.text_used = t->text_used; t->good.text_mark = t->text_mark;
}

static int *gcpi_name_bucket(gcp_tape *t, uint64_t hash)
{
    return &t->names[hash % (unsigned)t->name_capacity].newest;
}

static void gcpi_name_take_back(gcp_tape *t)     /* the last one */
{
    const gcpi_name *last = &t->names[--t->name_count];
    *gcpi_name_bucket(t, last->hash) = last->before;
}

static void gcpi_take_back(gcp_tape *t)
{
    t->op_count = t->good.ops; t->edge_count = t->good.edges;
    t->tensor_count = t->good.tensors; t->parameter_count = t->good.parameters;
    while (t->name_count > t->good.names) gcpi_name_take_back(t);
    t->text_used = t->good.text_used; t->text_mark = t->good.text_mark;
    for (int i = 0; i < t->parameter_count; i++)
        if (t->parameters[i].tensor >= t->tensor_count) t->parameters[i].tensor = 0;
}

/* 1, and an error, where a .feed is being called: it only writes inputs of its plan. at NULL: of the step. */
static int gcpi_in_feed(gcp_tape *t, const gcp_at *at, const char *what)
{
    if (t->feeding)
        gcpi_fail(t, GCP_E_ARGUMENT, at ? *at : t->fed_at, what,
                  "called in .feed, which only writes inputs of its plan");
    return t->feeding != 0;
}

GCPI_DEF void gcp_error_clear(gcp_tape *t)
{
    if (!t || !t->ops) return;                    /* a tape that did not fit its arena stays in error */
    gcpi_take_back(t);
    t->code = GCP_OK;
    t->full_ops = 0;
    t->message[0] = 0;
}

static gcp_tensor gcpi_nil(gcp_tape *t)          /* nil keeps its tape, so that a full tape can go on counting */
{
    gcp_tensor x;
    x.tape = t; x.id = 0; x.generation = t ? t->generation : 0;
    return x;
}

static gcp_tensor gcpi_handle(gcp_tape *t, int id)
{
    gcp_tensor x = gcpi_nil(t);
    x.id = id;
    return x;
}

GCPI_DEF int gcp_is_nil(gcp_tensor x) { return x.tape == NULL || x.id == 0; }

/* NULL unless x is a live tensor of its tape. */
static gcpi_tensor *gcpi_get(gcp_tensor x)
{
    if (gcp_is_nil(x) || x.generation != x.tape->generation || x.id < 0 || x.id >= x.tape->tensor_count) return NULL;
    return &x.tape->tensors[x.id];
}

static size_t gcpi_count(gcp_shape s) { return (size_t)s.d[0] * (size_t)s.d[1] * (size_t)s.d[2] * (size_t)s.d[3]; }
static size_t gcpi_pixels(gcp_shape s) { return (size_t)s.d[0] * (size_t)s.d[1] * (size_t)s.d[2]; }

/* A shape with the samples first: (n) is stored as {1, 1, 1, n}. */
static gcp_shape gcpi_by_samples(gcp_shape s)
{
    if (s.rank == 1) { s.d[0] = s.d[3]; s.d[3] = 1; }
    return s;
}

/* Whether a tensor has one value a sample: those are never rounded. */
static int gcpi_one_a_sample(gcp_shape s) { return gcpi_count(s) == (size_t)gcpi_by_samples(s).d[0]; }

static size_t gcpi_row_bytes(gcp_dtype type, size_t elements)
{
    switch (type) {
    case GCP_DTYPE_REAL: return elements * sizeof(gcp_real);
    case GCP_DTYPE_BF16: return elements * sizeof(uint16_t);
    case GCP_DTYPE_I32:  return elements * sizeof(int32_t);
    case GCP_DTYPE_U8:   return elements;
    case GCP_DTYPE_BIT:  return (elements + 7) / 8;
    }
    return 0;
}

static const char *gcpi_shape_text(gcp_shape s, char *buffer, size_t size)
{
    int from = s.rank >= 4 ? 0 : 4 - s.rank, n = 0;
    if (s.rank == 0) { snprintf(buffer, size, "scalar"); return buffer; }
    if (s.rank == 2 || s.rank == 3) n = snprintf(buffer, size, "%d", s.d[0]), from++;
    for (int i = from; i < 4 && n >= 0 && n < (int)size; i++)
        n += snprintf(buffer + n, size - (size_t)n, "%s%d", n ? "x" : "", s.d[i]);
    return buffer;
}

/* Four sizes already, as gcp_shape_of gives them of a lower rank: those that it lacks are 1, and the last is there. */
static int gcpi_shape_is_whole(gcp_shape s)
{
    return s.rank > 0 && s.rank < 4 && s.d[3] > 0 && s.d[1] == 1 && (s.rank > 2 || s.d[2] == 1) &&
           (s.rank > 1 || s.d[0] == 1);
}
/* {rank, raw sizes} -> four sizes. 0 if a size is not positive or the bytes overflow: gcpi_shape_wrong says which. */
static int gcpi_shape_normal(gcp_shape raw, gcp_shape *s)
{
    static const int place[5][4] = { { 0 }, { 3 }, { 0, 3 }, { 0, 2, 3 }, { 0, 1, 2, 3 } };
    const int sizes = gcpi_shape_is_whole(raw) ? 4 : raw.rank;
    size_t count = 1;
    if (raw.rank < 1 || raw.rank > 4) return 0;
    s->rank = raw.rank;
    s->d[0] = s->d[1] = s->d[2] = s->d[3] = 1;
    for (int i = 0; i < sizes; i++) {
        if (raw.d[i] <= 0 || count > (size_t)PTRDIFF_MAX / 64 / (size_t)raw.d[i]) return 0;
        count *= (size_t)raw.d[i];
        s->d[place[sizes][i]] = raw.d[i];
    }
    return 1;
}
static const char *gcpi_shape_wrong(gcp_shape raw, char *buffer, size_t size)
{
    int n = snprintf(buffer, size, raw.rank > 4 ? "has %d sizes, with " : raw.rank > 0 ? "has sizes " : "has no size",
                     raw.rank),
        wrong = raw.rank < 1 || raw.rank > 4;
    for (int i = 0; i < 4 && i < raw.rank; i++) {
        n += snprintf(buffer + n, size - (size_t)n, "%s%d", i ? "x" : "", raw.d[i]);
        wrong |= raw.d[i] < 1;
    }
    if (wrong) snprintf(buffer + n, size - (size_t)n, "; 1 to 4 sizes are allowed, each at least 1");
    else snprintf(buffer + n, size - (size_t)n, ", too many values: at most %td", (ptrdiff_t)(PTRDIFF_MAX / 64));
    return buffer;
}
