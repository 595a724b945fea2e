/* The file's graph: nodes, names, initialisers, as ONNX has them (onnx.proto). What is read once when the file is
   opened is checked then; attributes stay in the file's bytes, and are looked up where they are asked for. */

enum { GCPI_AXES = 8 }; /* of a value; a tape has GCP_MAX_DIMS */

typedef enum gcpi_onnx_type { /* TensorProto.DataType */
                              GCPI_ONNX_NONE,
                              GCPI_ONNX_FLOAT,
                              GCPI_ONNX_UINT8,
                              GCPI_ONNX_INT8,
                              GCPI_ONNX_UINT16,
                              GCPI_ONNX_INT16,
                              GCPI_ONNX_INT32,
                              GCPI_ONNX_INT64,
                              GCPI_ONNX_STRING,
                              GCPI_ONNX_BOOL,
                              GCPI_ONNX_FLOAT16,
                              GCPI_ONNX_DOUBLE,
                              GCPI_ONNX_UINT32,
                              GCPI_ONNX_UINT64,
                              GCPI_ONNX_COMPLEX64,
                              GCPI_ONNX_COMPLEX128,
                              GCPI_ONNX_BFLOAT16
} gcpi_onnx_type;
/* Bytes of an element in raw data; 0: none that is read. */
static size_t gcpi_onnx_type_size(int type)
{
    static const unsigned char sizes[] = { 0, 4, 1, 1, 2, 2, 4, 8, 0, 1, 2, 8, 4, 8, 0, 0, 2 };
    return type > 0 && type <= GCPI_ONNX_BFLOAT16 ? sizes[type] : 0;
}
static const char *gcpi_onnx_type_name(int type)
{
    static const char *const names[] = { "no type", "float",  "uint8",     "int8",       "uint16",  "int16",
                                         "int32",   "int64",  "string",    "bool",       "float16", "double",
                                         "uint32",  "uint64", "complex64", "complex128", "bfloat16" };
    return type > 0 && type <= GCPI_ONNX_BFLOAT16 ? names[type] : "a type of few bits";
}
static int gcpi_onnx_is_real(int type)
{
    return type == GCPI_ONNX_FLOAT || type == GCPI_ONNX_DOUBLE || type == GCPI_ONNX_FLOAT16 ||
           type == GCPI_ONNX_BFLOAT16;
}

/* A TensorProto. raw: its elements in little-endian order, in the file or beside it; none: they are in fields. fresh:
   it is of a new head (src/onnx/head.h), its elements are not those of the file. */
typedef struct gcpi_onnx_data {
    gcpi_excerpt message, name, raw;
    int type, rank, d[GCPI_AXES], fresh;
    size_t count;
} gcpi_onnx_data;

/* Fields of messages, by their numbers in onnx.proto. */
enum { GCPI_MODEL_IR = 1, GCPI_MODEL_GRAPH = 7, GCPI_MODEL_OPSETS = 8, GCPI_MODEL_FUNCTIONS = 25 };
enum {
    GCPI_GRAPH_NODE = 1,
    GCPI_GRAPH_INITIALIZER = 5,
    GCPI_GRAPH_INPUT = 11,
    GCPI_GRAPH_OUTPUT = 12,
    GCPI_GRAPH_VALUES = 13, /* shapes between */
    GCPI_GRAPH_SPARSE = 15
};
enum {
    GCPI_NODE_INPUT = 1,
    GCPI_NODE_OUTPUT,
    GCPI_NODE_NAME,
    GCPI_NODE_OP,
    GCPI_NODE_ATTRIBUTE,
    GCPI_NODE_DOMAIN = 7,
    GCPI_NODE_METADATA = 9
};
enum {
    GCPI_ATTRIBUTE_NAME = 1,
    GCPI_ATTRIBUTE_F,
    GCPI_ATTRIBUTE_I,
    GCPI_ATTRIBUTE_S,
    GCPI_ATTRIBUTE_T,
    GCPI_ATTRIBUTE_FLOATS = 7,
    GCPI_ATTRIBUTE_INTS,
    GCPI_ATTRIBUTE_TYPE = 20,
    GCPI_ATTRIBUTE_IS_TENSOR = 4 /* a type */
};
enum {
    GCPI_TENSOR_DIMS = 1,
    GCPI_TENSOR_TYPE,
    GCPI_TENSOR_FLOATS = 4,
    GCPI_TENSOR_INT32S,
    GCPI_TENSOR_STRINGS,
    GCPI_TENSOR_INT64S,
    GCPI_TENSOR_NAME,
    GCPI_TENSOR_RAW,
    GCPI_TENSOR_DOUBLES,
    GCPI_TENSOR_UINT64S,
    GCPI_TENSOR_EXTERNAL = 13,
    GCPI_TENSOR_LOCATION
};

/* ---- elements ---- */

/* The elements of a tensor's data, one after the other. */
typedef struct gcpi_onnx_reader {
    const gcpi_onnx_data *data;
    gcpi_numbers fields;
    size_t next;
} gcpi_onnx_reader;

static gcpi_onnx_reader gcpi_onnx_reader_of(const gcpi_onnx_data *data)
{
    gcpi_onnx_reader r;
    const int type = data->type, number = type == GCPI_ONNX_FLOAT                              ? GCPI_TENSOR_FLOATS
                                        : type == GCPI_ONNX_DOUBLE                             ? GCPI_TENSOR_DOUBLES
                                        : type == GCPI_ONNX_INT64                              ? GCPI_TENSOR_INT64S
                                        : type == GCPI_ONNX_UINT64 || type == GCPI_ONNX_UINT32 ? GCPI_TENSOR_UINT64S
                                                                                               : GCPI_TENSOR_INT32S;
    r.data = data;
    r.next = 0;
    r.fields = gcpi_numbers_of(data->message, number,
                               number == GCPI_TENSOR_FLOATS    ? 4
                               : number == GCPI_TENSOR_DOUBLES ? 8
                                                               : 0);
    return r;
}
/* An element's value from its bits, as they stand in raw data (wide 0) or in a field. */
static double gcpi_onnx_element(int type, uint64_t bits, int wide)
{
    switch (type) {
    case GCPI_ONNX_FLOAT: return gcpi_float_bits(bits);
    case GCPI_ONNX_DOUBLE: return gcpi_double_bits(bits);
    case GCPI_ONNX_FLOAT16: return (double)gcpi_half_from((unsigned)(bits & 0xffff));
    case GCPI_ONNX_BFLOAT16: return gcpi_float_bits((bits & 0xffff) << 16);
    case GCPI_ONNX_INT8: return wide ? (double)(int64_t)bits : (double)(int8_t)bits;
    case GCPI_ONNX_INT16: return wide ? (double)(int64_t)bits : (double)(int16_t)bits;
    case GCPI_ONNX_INT32: return (double)(int32_t)bits;
    case GCPI_ONNX_INT64: return (double)(int64_t)bits;
    default: return (double)bits;
    }
}
/* The next element; 0 past the last one that there is. */
static int gcpi_onnx_read(gcpi_onnx_reader *r, double *x)
{
    const size_t size = gcpi_onnx_type_size(r->data->type);
    uint64_t bits = 0;
    if (r->data->raw.size) {
        if (!size || r->next >= r->data->raw.size / size) return 0;
        gcpi_excerpt at = gcpi_excerpt_of(r->data->raw.at + r->next++ * size, size);
        gcpi_wire_fixed(&at, size, &bits);
    } else if (!gcpi_numbers_next(&r->fields, &bits)) return 0;
    *x = gcpi_onnx_element(r->data->type, bits, !r->data->raw.size);
    return 1;
}

/* Reads a TensorProto. Returns NULL, or what is wrong. Whether its elements are all there is for gcpi_onnx_data_whole,
   when data that lies beside the file was found. */
static const char *gcpi_onnx_data_parse(gcpi_excerpt message, gcpi_onnx_data *data)
{
    uint64_t size;
    memset(data, 0, sizeof *data);
    data->message = message;
    data->name = gcpi_wire_find(message, GCPI_TENSOR_NAME);
    data->raw = gcpi_wire_find(message, GCPI_TENSOR_RAW);
    data->type = (int)gcpi_wire_integer(message, GCPI_TENSOR_TYPE, 0);
    uint64_t most = 1; /* with sizes of 0 left out */
    data->count = 1;
    for (gcpi_numbers dims = gcpi_numbers_of(message, GCPI_TENSOR_DIMS, 0); gcpi_numbers_next(&dims, &size);) {
        if (data->rank == GCPI_AXES) return "more than 8 axes";
        if (size > INT32_MAX || (size && most > INT32_MAX / size)) return "more than 2147483647 elements";
        most *= size ? size : 1;
        data->d[data->rank++] = (int)size;
        data->count *= (size_t)size;
    }
    return NULL;
}
static int gcpi_onnx_data_whole(const gcpi_onnx_data *data)
{
    const size_t size = gcpi_onnx_type_size(data->type);
    double x;
    size_t found = 0;
    if (!size) return 1; /* of a type that nothing reads */
    if (data->raw.size || !data->count) return data->raw.size == data->count * size;
    for (gcpi_onnx_reader r = gcpi_onnx_reader_of(data); found <= data->count && gcpi_onnx_read(&r, &x);) found++;
    return found == data->count;
}

/* ---- the graph ---- */

/* Where a value's elements lie in its tensor (src/onnx/order.h). */
enum { GCPI_FACTORS = 20 };
typedef struct gcpi_onnx_order {
    int rank, d[GCPI_AXES], count, size[GCPI_FACTORS], axis[GCPI_FACTORS], memory[GCPI_FACTORS];
} gcpi_onnx_order;

/* A name in the graph. data: of an initialiser or a Constant; -1: none. known: its elements, where they are folded.
   tensor: nil while it is not recorded; other: the same in another order, made when something asked for it. */
typedef struct gcpi_onnx_value {
    gcpi_excerpt name;
    int node, data, next; /* node: that makes it, -1: none; next: of the same hash */
    int source;           /* not recorded yet, but a weight or constant in other axes; -1: no */
    int shaped, type, rank, d[GCPI_AXES];
    int uses, needed;
    double *known;
    int uniform; /* known has one element, which is all of them; too many to be folded */
    gcp_tensor tensor, other;
    gcpi_onnx_order order, other_order;
} gcpi_onnx_value;

struct gcpi_onnx_row;
typedef struct gcpi_onnx_node {
    gcpi_excerpt message, name, op;
    int input, inputs, output, outputs; /* the first in edges, and how many; an edge is a value, 0: left out */
    int foreign;                        /* of another domain than ONNX's own */
    int needed, block;                  /* block: its number, 0: none */
    gcpi_excerpt block_name;
    const struct gcpi_onnx_row *row;
    const struct gcpi_onnx_pattern *pattern;
    int part[8]; /* values that the pattern found */
    double number[4];
} gcpi_onnx_node;

/* What is loaded: a parameter of the tape, made of a data, or of a value that is known (data_count + its number).
   order: the file's elements as its factors, in the memory order of the parameter. tensor: of this recording. */
typedef struct gcpi_onnx_weight {
    double number; /* source -1: its one element */
    int source;
    gcp_tensor tensor;
    gcpi_onnx_order order;
} gcpi_onnx_weight;

typedef struct gcpi_onnx {
    gcp_arena *arena;
    ptrdiff_t mark, end; /* of the arena, behind what opening took; behind a recording */
    gcpi_excerpt file, graph;
    int ir, opset;
    gcpi_onnx_node *nodes;
    int node_count;
    gcpi_onnx_value *values;
    int value_count; /* 0 is none */
    gcpi_onnx_data *data;
    int data_count, data_capacity, initializers; /* the first ones: those that may train */
    int *edges;
    int edge_count;
    int *inputs, *outputs;
    int input_count, output_count;
    gcpi_excerpt *input_types;
    int *buckets;
    int bucket_count;
    gcpi_onnx_weight *weights;
    int weight_count, weight_capacity;
    int head[2], head_count; /* data of a new head, and what they were */
    gcpi_onnx_data head_was[2];
    /* a recording */
    gcp_tape *tape;
    unsigned generation;
    gcp_at at;
    const char *call;
    gcp_writer report;
    int batch, classes, refused, recorded, until, frozen_norms;
    const char *sizes;
    char refusals[GCP_MAX_ERROR];
} gcpi_onnx;

static int gcpi_onnx_find(const gcpi_onnx *m, gcpi_excerpt name) /* 0: no such value */
{
    int i = m->bucket_count && name.size ? m->buckets[gcpi_excerpt_hash(name) % (unsigned)m->bucket_count] : 0;
    while (i && !gcpi_excerpt_equal(m->values[i].name, name)) i = m->values[i].next;
    return i;
}
static int gcpi_onnx_value_new(gcpi_onnx *m, gcpi_excerpt name)
{
    int *bucket = &m->buckets[gcpi_excerpt_hash(name) % (unsigned)m->bucket_count];
    gcpi_onnx_value *v = &m->values[m->value_count];
    v->name = name;
    v->node = v->data = -1;
    v->next = *bucket;
    return *bucket = m->value_count++;
}

/* ---- what a node says ---- */

static gcpi_onnx_value *gcpi_onnx_in(gcpi_onnx *m, const gcpi_onnx_node *n, int i) /* NULL: left out */
{
    const int v = i < n->inputs ? m->edges[n->input + i] : 0;
    return v ? &m->values[v] : NULL;
}
static gcpi_onnx_value *gcpi_onnx_out(gcpi_onnx *m, const gcpi_onnx_node *n, int i)
{
    const int v = i < n->outputs ? m->edges[n->output + i] : 0;
    return v ? &m->values[v] : NULL;
}
static gcpi_excerpt gcpi_onnx_attribute(const gcpi_onnx_node *n, const char *name) /* its message; nothing: not given */
{
    gcpi_excerpt rest = n->message;
    gcpi_field f;
    while (gcpi_wire_next(&rest, &f) > 0)
        if (f.number == GCPI_NODE_ATTRIBUTE && f.type == GCPI_WIRE_BYTES &&
            gcpi_excerpt_is(gcpi_wire_find(f.bytes, GCPI_ATTRIBUTE_NAME), name))
            return f.bytes;
    return gcpi_excerpt_of("", 0);
}
static int gcpi_onnx_given(const gcpi_onnx_node *n, const char *name) { return gcpi_onnx_attribute(n, name).size > 0; }
static int64_t gcpi_onnx_integer(const gcpi_onnx_node *n, const char *name, int64_t otherwise)
{
    const gcpi_excerpt a = gcpi_onnx_attribute(n, name);
    return a.size ? gcpi_wire_integer(a, GCPI_ATTRIBUTE_I, 0) : otherwise;
}
static double gcpi_onnx_float(const gcpi_onnx_node *n, const char *name, double otherwise)
{
    gcpi_numbers f = gcpi_numbers_of(gcpi_onnx_attribute(n, name), GCPI_ATTRIBUTE_F, 4);
    uint64_t bits = 0;
    if (!f.rest.size) return otherwise;
    gcpi_numbers_next(&f, &bits);
    return gcpi_float_bits(bits);
}
static gcpi_excerpt gcpi_onnx_string(const gcpi_onnx_node *n, const char *name, const char *otherwise)
{
    const gcpi_excerpt a = gcpi_onnx_attribute(n, name);
    return a.size ? gcpi_wire_find(a, GCPI_ATTRIBUTE_S) : gcpi_excerpt_of(otherwise, strlen(otherwise));
}
/* A list of integers, the first `most` of them. Returns how many there are; -1: not given. */
static int gcpi_onnx_integers(const gcpi_onnx_node *n, const char *name, int64_t *list, int most)
{
    const gcpi_excerpt a = gcpi_onnx_attribute(n, name);
    gcpi_numbers r = gcpi_numbers_of(a, GCPI_ATTRIBUTE_INTS, 0);
    uint64_t x;
    int count = 0;
    if (!a.size) return -1;
    while (gcpi_numbers_next(&r, &x)) {
        if (count < most) list[count] = (int64_t)x;
        count++;
    }
    return count;
}

/* The node that makes a value, if it is this op; else NULL. */
static gcpi_onnx_node *gcpi_onnx_maker(gcpi_onnx *m, const gcpi_onnx_value *v, const char *op)
{
    gcpi_onnx_node *n = v && v->node >= 0 ? &m->nodes[v->node] : NULL;
    return n && !n->foreign && gcpi_excerpt_is(n->op, op) ? n : NULL;
}
static int gcpi_onnx_index(const gcpi_onnx *m, const gcpi_onnx_value *v) { return (int)(v - m->values); }

static int gcpi_onnx_same_sizes(const gcpi_onnx_value *a, const gcpi_onnx_value *b)
{
    return a->rank == b->rank && !memcmp(a->d, b->d, (size_t)a->rank * sizeof *a->d);
}
/* How many inputs of nodes are a value, or another name of its data. */
static int gcpi_onnx_readers(const gcpi_onnx *m, const gcpi_onnx_value *v)
{
    int count = 0;
    for (int i = 0; i < m->node_count; i++)
        for (int k = 0; k < m->nodes[i].inputs; k++) {
            const int edge = m->edges[m->nodes[i].input + k];
            count += edge && (&m->values[edge] == v || (v->data >= 0 && m->values[edge].data == v->data));
        }
    return count;
}

/* A node cannot be recorded. All that are found go to the report, and the first ones to the message. Returns 0. */
GCPI_PRINTF(3, 4)
static int gcpi_onnx_refuse(gcpi_onnx *m, const gcpi_onnx_node *n, const char *format, ...)
{
    char what[240], line[400], name[80], op[40];
    const size_t used = strlen(m->refusals);
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof what, format, args);
    va_end(args);
    gcpi_excerpt label = n->name.size || !n->outputs ? n->name : m->values[m->edges[n->output]].name;
    snprintf(line, sizeof line, "node '%s' (%s): %s", gcpi_excerpt_text(label, name, sizeof name),
             gcpi_excerpt_text(n->op, op, sizeof op), what);
    if (m->report.write) gcpi_say(m->report, "refused: %s\n", line);
    if (used + strlen(line) + 60 < sizeof m->refusals)
        snprintf(m->refusals + used, sizeof m->refusals - used, "%s%s", used ? "; " : "", line);
    m->refused++;
    return 0;
}
/* Refuses an attribute that is not among these words, "alpha:f axis:i", or of another type: it may mean what is not
   done here. */
static int gcpi_onnx_only(gcpi_onnx *m, const gcpi_onnx_node *n, const char *words)
{
    static const char types[] = "?fist?FIS"; /* AttributeType, from 0 */
    gcpi_excerpt rest = n->message, attribute;
    while (gcpi_wire_each(&rest, GCPI_NODE_ATTRIBUTE, &attribute)) {
        const gcpi_excerpt name = gcpi_wire_find(attribute, GCPI_ATTRIBUTE_NAME);
        const int64_t type = gcpi_wire_integer(attribute, GCPI_ATTRIBUTE_TYPE, 0);
        char text[64];
        size_t length = 0;
        const char *word = words;
        for (; *word; word += length + 2 + (word[length + 2] == ' ')) {
            length = strcspn(word, ":");
            if (gcpi_excerpt_equal(name, gcpi_excerpt_of(word, length))) break;
        }
        gcpi_excerpt_text(name, text, sizeof text);
        if (!*word) return gcpi_onnx_refuse(m, n, "attribute '%s'; known are: %s", text, *words ? words : "none");
        if (type < 1 || type > 8 || types[type] != word[length + 1])
            return gcpi_onnx_refuse(m, n, "attribute '%s' is of another type", text);
    }
    return 1;
}
