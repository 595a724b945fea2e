/* gcp_onnx.h 0.3.0 in one file: assembled from gcp_onnx.h and the rooms in src/ by src/assemble.cmake, never edited. */
#define GCPI_ONE_FILE

/* gcp_onnx.h - a model file in, recorded for gcp.h; the same file with trained weights out. MIT licence, see gcp.h.

   Do this in *one* C file, the one that holds gcp.h's implementation:
       #define GCP_IMPLEMENTATION
       #include "gcp.h"
       #include "gcp_io.h"
       #include "gcp_onnx.h"
   and plain #include "gcp_onnx.h" wherever else it is used. It needs gcp_io.h and the C library.

       gcp_onnx   model  = gcp_onnx_open(&file_arena, "mobilenet.onnx");       // model.error says what is wrong
       gcp_tape  *net    = gcp_tape_make(&tape_arena, .ops = model.ops);
       gcp_onnx_record(net, &model, .batch = 8);
       gcp_tensor labels = gcp_labels(net, "labels", GCP_SHAPE(8));
       gcp_tensor loss   = gcp_cross_entropy(gcp_onnx_output(&model, 0), labels);
       gcp_plan   plan   = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(64),
                                         .optimizer = GCP_OPTIMIZER_SGD);
       gcp_bind(&plan, memory, size);
       gcp_onnx_load(net, &model);
       ... gcp_write(&plan, gcp_onnx_input(&model, 0), images); gcp_step(&plan, .lr = 0.01) ...
       gcp_onnx_save(net, &model, "tuned.onnx");

   An ONNX file (onnx.ai) is what PyTorch, TensorFlow and others export. Shapes are fixed when it is recorded. What is
   channels first there is channels last here: an image (n, c, h, w) is a tensor (n, h, w, c); gcp_onnx_write and
   gcp_onnx_read take the file's own layout. docs/onnx.md says which ops are known, and what is folded and refused. */

#ifndef GCP_ONNX_H
#define GCP_ONNX_H

#include "gcp.h"
#include "gcp_io.h"

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/onnx/wire.h")
#error "gcp_onnx.h needs its rooms, the folder src/ beside it; the single files to copy are those in dist/"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { GCP_ONNX_OLDEST = 6, GCP_ONNX_NEWEST = 28 };      /* opsets that are read */

/* A file that was opened. error: "", or why it was not. ops: capacity that is enough for a tape with gcp_tape_make. */
typedef struct gcp_onnx {
    char error[GCP_MAX_ERROR];
    int ir, opset, nodes, weights, ops;
    struct gcpi_onnx *core;
} gcp_onnx;

/* .data, .size: the file, in memory, which must live as long as the model; path is then a name for messages, or NULL.
   .folder: where data lies that the file keeps in others; default: the folder of path, of .data none. A path that
   leaves it is refused. */
typedef struct gcp_onnx_open_opts {
    gcp_at at GCPI_Z; const void *data GCPI_Z; size_t size GCPI_Z; const char *folder GCPI_Z;
    const gcp_files *files GCPI_Z;
} GCPI_BY_NAME gcp_onnx_open_opts;
/* Reads a file and checks it. The arena takes the file's bytes (not .data) and what stands in it, as a rule a tenth
   more; it is the model's own: recording takes its front, other calls its scratch. */
GCP_API gcp_onnx gcp_onnx_open_at(gcp_arena *arena, const char *path, gcp_onnx_open_opts opts);

/* .batch: the first size of each input. .sizes: others that the file leaves open, "height 224 width 192"; "* 224": any
   of them. .classes: how many numbers the last layer gives, if not as many as in the file: its weight is made anew, as
   gcp_linear's, its bias of zeros, and gcp_onnx_save writes them in the places of the file's. .frozen_norms:
   batch-norms take their running statistics in training, too. .until: a value's name: what is behind it is left out.
   .logits: so is a Softmax or LogSoftmax at the end, as gcp_cross_entropy takes what they read; it stays in the file.
   .inputs: tensors in place of the file's inputs, in their order; nil: one is made. .report: gets a line for each node
   that cannot be recorded, and for each value whose elements are moved. */
typedef struct gcp_onnx_record_opts {
    gcp_at at GCPI_Z; int batch GCPI_Z; const char *sizes GCPI_Z;
    int classes GCPI_Z, frozen_norms GCPI_Z, logits GCPI_Z; const char *until GCPI_Z;
    const gcp_tensor *inputs GCPI_Z; int input_count GCPI_Z; gcp_writer report GCPI_Z;
} GCPI_BY_NAME gcp_onnx_record_opts;
/* Records the network on a tape. Each initialiser of floats is a parameter of its name, in which what gcp does not
   allow became '_'. Constants are frozen ones, as is an initialiser of one element, unless its name has a dot. A block
   that exporters name with a number (layer1.0) is a segment; where no names have one, what is repeated at once is. What
   cannot be recorded is an error that counts all such nodes and names the first; after gcp_error_clear the tape is as
   it was. */
GCP_API gcp_code gcp_onnx_record_at(gcp_tape *tape, gcp_onnx *model, gcp_onnx_record_opts opts);

/* The tensor of a value by its name in the file, images channels last; nil with an error. */
GCP_API gcp_tensor gcp_onnx_tensor_at(gcp_tape *tape, gcp_onnx *model, const char *name, gcp_at at);
/* Inputs and outputs in the file's order; nil past the last. With .until or .logits there is one output. */
GCP_API gcp_tensor gcp_onnx_input(const gcp_onnx *model, int index);
GCP_API gcp_tensor gcp_onnx_output(const gcp_onnx *model, int index);

/* The file's weights and statistics into the tape's state, which must be bound; those of a new head (.classes) stay as
   they are. Returns how many; 0 with the error. */
GCP_API int      gcp_onnx_load_at(gcp_tape *tape, gcp_onnx *model, gcp_at at);
/* The same file with the state's values, written as gcp_save writes: beside the path, flushed and renamed. Elements
   keep their type. .inference: as a network that is used: where the file was exported for training, its norms take
   their running statistics and its dropout drops nothing, in any runtime. (gcp trains both kinds of file alike.) */
typedef struct gcp_onnx_save_opts {
    gcp_at at GCPI_Z; int inference GCPI_Z; const gcp_files *files GCPI_Z;
} GCPI_BY_NAME gcp_onnx_save_opts;
GCP_API gcp_code gcp_onnx_save_at(gcp_tape *tape, gcp_onnx *model, const char *path, gcp_onnx_save_opts opts);

/* As gcp_write of an input and gcp_read of an output (after gcp_keep), by their number, in the file's own layout,
   channels first. Inputs of whole numbers have no other: gcp_write takes them. */
GCP_API gcp_code gcp_onnx_write_at(gcp_plan *plan, gcp_onnx *model, int input, const gcp_real *data, gcp_at at);
GCP_API gcp_code gcp_onnx_read_at(gcp_plan *plan, gcp_onnx *model, int output, gcp_real *data, gcp_at at);

/* The network as C: gcp_print_c of the outputs. What it prints records the same with gcp.h alone; gcp_load takes the
   weights there that gcp_save wrote here, after gcp_onnx_load. */
GCP_API gcp_code gcp_onnx_print_c_at(gcp_tape *tape, gcp_onnx *model, gcp_writer out, gcp_at at);

#define gcp_onnx_open(...)   GCPI_F2(gcp_onnx_open_at, gcp_onnx_open_opts, __VA_ARGS__, )        /* arena, path */
#define gcp_onnx_record(...) GCPI_F2(gcp_onnx_record_at, gcp_onnx_record_opts, __VA_ARGS__, )    /* tape, model */
#define gcp_onnx_save(...)   GCPI_F3(gcp_onnx_save_at, gcp_onnx_save_opts, __VA_ARGS__, )        /* tape, model, path */
#define gcp_onnx_print_c(tape, model, out)       gcp_onnx_print_c_at((tape), (model), (out), GCP_AT)
#define gcp_onnx_load(tape, model)               gcp_onnx_load_at((tape), (model), GCP_AT)
#define gcp_onnx_tensor(tape, model, name)       gcp_onnx_tensor_at((tape), (model), (name), GCP_AT)
#define gcp_onnx_write(plan, model, input, data) gcp_onnx_write_at((plan), (model), (input), (data), GCP_AT)
#define gcp_onnx_read(plan, model, output, data) gcp_onnx_read_at((plan), (model), (output), (data), GCP_AT)

#ifdef __cplusplus
}
#endif
#endif /* GCP_ONNX_H */

/* ---- Rooms ------------------------------------------------------------------------------------------------------
   The implementation, behind gcp_io.h's. dist/gcp_onnx.h has all rooms in one file. */
#if defined(GCP_IMPLEMENTATION) && !defined(GCP_ONNX_IMPLEMENTATION_DONE)
#define GCP_ONNX_IMPLEMENTATION_DONE

GCPI_COLD                              /* at -Og: code that runs once per file */

/* ==== src/onnx/wire.h ==== */

/* Protocol Buffers' wire format. A message is fields; a field is a number, a type and a value. Nothing outside of the
   bytes that a message was given is read. (protobuf.dev/programming-guides/encoding) */

/* Bytes of the file, or text in it, which no zero ends. */
typedef struct gcpi_excerpt {
    const unsigned char *at;
    size_t size;
} gcpi_excerpt;

static gcpi_excerpt gcpi_excerpt_of(const void *at, size_t size)
{
    gcpi_excerpt s;
    s.at = (const unsigned char *)at;
    s.size = size;
    return s;
}
static int gcpi_excerpt_equal(gcpi_excerpt a, gcpi_excerpt b)
{
    return a.size == b.size && (!a.size || !memcmp(a.at, b.at, a.size));
}
static int gcpi_excerpt_is(gcpi_excerpt s, const char *text)
{
    return gcpi_excerpt_equal(s, gcpi_excerpt_of(text, strlen(text)));
}
static uint64_t gcpi_excerpt_hash(gcpi_excerpt s)
{
    uint64_t h = GCPI_HASH;
    for (size_t i = 0; i < s.size; i++) h = gcpi_hash_byte(h, s.at[i]);
    return h;
}
/* As text for a message: cut to size, what is not printable replaced. */
static const char *gcpi_excerpt_text(gcpi_excerpt s, char *text, size_t size)
{
    size_t n = 0;
    for (; n < s.size && n + 1 < size; n++) text[n] = s.at[n] >= 32 && s.at[n] < 127 ? (char)s.at[n] : '?';
    text[n] = 0;
    return text;
}

enum { GCPI_WIRE_VARINT, GCPI_WIRE_64, GCPI_WIRE_BYTES, GCPI_WIRE_32 = 5 };
/* value: of a varint, or the bits of a fixed number; bytes: of GCPI_WIRE_BYTES */
typedef struct gcpi_field {
    int number, type;
    uint64_t value;
    gcpi_excerpt bytes;
} gcpi_field;

static int gcpi_wire_varint(gcpi_excerpt *rest, uint64_t *value)
{
    *value = 0;
    for (int shift = 0; shift < 70 && rest->size; shift += 7) {
        const unsigned char byte = *rest->at++;
        rest->size--;
        if (shift < 64) *value |= (uint64_t)(byte & 127) << shift;
        if (byte < 128) return 1;
    }
    return 0;
}
static int gcpi_wire_fixed(gcpi_excerpt *rest, size_t bytes, uint64_t *value)
{
    *value = 0;
    if (rest->size < bytes) return 0;
    for (size_t i = bytes; i-- > 0;) *value = *value << 8 | rest->at[i];
    rest->at += bytes;
    rest->size -= bytes;
    return 1;
}
/* The next field: 1. At the end 0, where the bytes are no fields -1; rest is empty then. */
static int gcpi_wire_next(gcpi_excerpt *rest, gcpi_field *f)
{
    uint64_t key;
    int ok = 1;
    if (!rest->size) return 0;
    memset(f, 0, sizeof *f);
    if (gcpi_wire_varint(rest, &key) && key >> 3 && key >> 32 == 0) {
        f->number = (int)(key >> 3);
        f->type = (int)(key & 7);
        switch (f->type) {
        case GCPI_WIRE_VARINT: ok = gcpi_wire_varint(rest, &f->value); break;
        case GCPI_WIRE_64: ok = gcpi_wire_fixed(rest, 8, &f->value); break;
        case GCPI_WIRE_32: ok = gcpi_wire_fixed(rest, 4, &f->value); break;
        case GCPI_WIRE_BYTES:
            ok = gcpi_wire_varint(rest, &f->value) && f->value <= rest->size;
            if (!ok) break;
            f->bytes = gcpi_excerpt_of(rest->at, (size_t)f->value);
            rest->at += f->bytes.size;
            rest->size -= f->bytes.size;
            break;
        default: ok = 0;
        }
        if (ok) return 1;
    }
    rest->size = 0;
    return -1;
}
/* The last field of this number that is bytes, which is the one that counts; nothing where there is none. */
static gcpi_excerpt gcpi_wire_find(gcpi_excerpt message, int number)
{
    gcpi_excerpt found = gcpi_excerpt_of("", 0);
    gcpi_field f;
    while (gcpi_wire_next(&message, &f) > 0)
        if (f.number == number && f.type == GCPI_WIRE_BYTES) found = f.bytes;
    return found;
}
/* The same of a varint. */
static int64_t gcpi_wire_integer(gcpi_excerpt message, int number, int64_t otherwise)
{
    gcpi_field f;
    while (gcpi_wire_next(&message, &f) > 0)
        if (f.number == number && f.type == GCPI_WIRE_VARINT) otherwise = (int64_t)f.value;
    return otherwise;
}
/* The next field of this number that is bytes. */
static int gcpi_wire_each(gcpi_excerpt *rest, int number, gcpi_excerpt *bytes)
{
    gcpi_field f;
    while (gcpi_wire_next(rest, &f) > 0)
        if (f.number == number && f.type == GCPI_WIRE_BYTES) {
            *bytes = f.bytes;
            return 1;
        }
    return 0;
}
/* Numbers of a repeated field, packed or one by one: the next one of this number. all: the message, piece: what is left
   of a packed run; both go on. */
typedef struct gcpi_numbers {
    gcpi_excerpt rest, piece;
    int number, width;
} gcpi_numbers; /* width: 0 varint, 4, 8 */
static gcpi_numbers gcpi_numbers_of(gcpi_excerpt message, int number, int width)
{
    gcpi_numbers n;
    n.rest = message;
    n.piece = gcpi_excerpt_of("", 0);
    n.number = number;
    n.width = width;
    return n;
}
static int gcpi_numbers_next(gcpi_numbers *n, uint64_t *value)
{
    gcpi_field f;
    while (!n->piece.size) {
        if (gcpi_wire_next(&n->rest, &f) <= 0) return 0;
        if (f.number != n->number) continue;
        if (f.type != GCPI_WIRE_BYTES) {
            *value = f.value;
            return 1;
        }
        n->piece = f.bytes;
    }
    const int ok = n->width ? gcpi_wire_fixed(&n->piece, (size_t)n->width, value) : gcpi_wire_varint(&n->piece, value);
    if (!ok) n->piece.size = 0;
    return ok;
}
static double gcpi_float_bits(uint64_t bits)
{
    const uint32_t low = (uint32_t)bits;
    float x;
    memcpy(&x, &low, sizeof x);
    return (double)x;
}
static double gcpi_double_bits(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ==== src/onnx/onnx_model.h ==== */

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

/* ==== src/onnx/schema.h ==== */

/* Schema: which fields of ONNX's messages are messages (onnx.proto). A file that is broken anywhere is refused when it
   is opened. */

typedef enum gcpi_onnx_kind {
    GCPI_KIND_NONE,
    GCPI_KIND_MODEL,
    GCPI_KIND_GRAPH,
    GCPI_KIND_NODE,
    GCPI_KIND_ATTRIBUTE,
    GCPI_KIND_TENSOR,
    GCPI_KIND_SPARSE,
    GCPI_KIND_VALUE,
    GCPI_KIND_TYPE,
    GCPI_KIND_TYPE_OF_TENSOR,
    GCPI_KIND_TYPE_OF_MAP,
    GCPI_KIND_TYPE_OF_ONE, /* a sequence, or what may be missing */
    GCPI_KIND_SHAPE,
    GCPI_KIND_FUNCTION,
    GCPI_KIND_TRAINING,
    GCPI_KIND_ANNOTATION,
    GCPI_KIND_PLAIN /* a message without messages */
} gcpi_onnx_kind;

/* What a field of bytes is; NONE: text or numbers. */
static gcpi_onnx_kind gcpi_onnx_kind_of(gcpi_onnx_kind message, int field)
{
    static const struct {
        unsigned char message, field, is;
    } fields[] = {
        { GCPI_KIND_MODEL, 7, GCPI_KIND_GRAPH },         { GCPI_KIND_MODEL, 8, GCPI_KIND_PLAIN },
        { GCPI_KIND_MODEL, 14, GCPI_KIND_PLAIN },        { GCPI_KIND_MODEL, 20, GCPI_KIND_TRAINING },
        { GCPI_KIND_MODEL, 25, GCPI_KIND_FUNCTION },     { GCPI_KIND_MODEL, 26, GCPI_KIND_PLAIN },
        { GCPI_KIND_GRAPH, 1, GCPI_KIND_NODE },          { GCPI_KIND_GRAPH, 5, GCPI_KIND_TENSOR },
        { GCPI_KIND_GRAPH, 11, GCPI_KIND_VALUE },        { GCPI_KIND_GRAPH, 12, GCPI_KIND_VALUE },
        { GCPI_KIND_GRAPH, 13, GCPI_KIND_VALUE },        { GCPI_KIND_GRAPH, 14, GCPI_KIND_ANNOTATION },
        { GCPI_KIND_GRAPH, 15, GCPI_KIND_SPARSE },       { GCPI_KIND_GRAPH, 16, GCPI_KIND_PLAIN },
        { GCPI_KIND_NODE, 5, GCPI_KIND_ATTRIBUTE },      { GCPI_KIND_NODE, 9, GCPI_KIND_PLAIN },
        { GCPI_KIND_NODE, 10, GCPI_KIND_PLAIN },         { GCPI_KIND_ATTRIBUTE, 5, GCPI_KIND_TENSOR },
        { GCPI_KIND_ATTRIBUTE, 6, GCPI_KIND_GRAPH },     { GCPI_KIND_ATTRIBUTE, 10, GCPI_KIND_TENSOR },
        { GCPI_KIND_ATTRIBUTE, 11, GCPI_KIND_GRAPH },    { GCPI_KIND_ATTRIBUTE, 14, GCPI_KIND_TYPE },
        { GCPI_KIND_ATTRIBUTE, 15, GCPI_KIND_TYPE },     { GCPI_KIND_ATTRIBUTE, 22, GCPI_KIND_SPARSE },
        { GCPI_KIND_ATTRIBUTE, 23, GCPI_KIND_SPARSE },   { GCPI_KIND_TENSOR, 3, GCPI_KIND_PLAIN },
        { GCPI_KIND_TENSOR, 13, GCPI_KIND_PLAIN },       { GCPI_KIND_TENSOR, 16, GCPI_KIND_PLAIN },
        { GCPI_KIND_SPARSE, 1, GCPI_KIND_TENSOR },       { GCPI_KIND_SPARSE, 2, GCPI_KIND_TENSOR },
        { GCPI_KIND_VALUE, 2, GCPI_KIND_TYPE },          { GCPI_KIND_VALUE, 4, GCPI_KIND_PLAIN },
        { GCPI_KIND_TYPE, 1, GCPI_KIND_TYPE_OF_TENSOR }, { GCPI_KIND_TYPE, 4, GCPI_KIND_TYPE_OF_ONE },
        { GCPI_KIND_TYPE, 5, GCPI_KIND_TYPE_OF_MAP },    { GCPI_KIND_TYPE, 8, GCPI_KIND_TYPE_OF_TENSOR },
        { GCPI_KIND_TYPE, 9, GCPI_KIND_TYPE_OF_ONE },    { GCPI_KIND_TYPE_OF_TENSOR, 2, GCPI_KIND_SHAPE },
        { GCPI_KIND_TYPE_OF_MAP, 2, GCPI_KIND_TYPE },    { GCPI_KIND_TYPE_OF_ONE, 1, GCPI_KIND_TYPE },
        { GCPI_KIND_SHAPE, 1, GCPI_KIND_PLAIN },         { GCPI_KIND_FUNCTION, 7, GCPI_KIND_NODE },
        { GCPI_KIND_FUNCTION, 9, GCPI_KIND_PLAIN },      { GCPI_KIND_FUNCTION, 11, GCPI_KIND_ATTRIBUTE },
        { GCPI_KIND_FUNCTION, 12, GCPI_KIND_VALUE },     { GCPI_KIND_FUNCTION, 14, GCPI_KIND_PLAIN },
        { GCPI_KIND_TRAINING, 1, GCPI_KIND_GRAPH },      { GCPI_KIND_TRAINING, 2, GCPI_KIND_GRAPH },
        { GCPI_KIND_TRAINING, 3, GCPI_KIND_PLAIN },      { GCPI_KIND_TRAINING, 4, GCPI_KIND_PLAIN },
        { GCPI_KIND_ANNOTATION, 2, GCPI_KIND_PLAIN },
    };
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].message == message && fields[i].field == field) return (gcpi_onnx_kind)fields[i].is;
    return GCPI_KIND_NONE;
}
/* An attribute has one value, of the type that it says: 1 to 5 of fields 2 to 6, 6 to 10 of fields 7 to 11. */
static int gcpi_onnx_attribute_fits(int type, int field)
{
    static const unsigned char of_type[] = { 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 22, 23, 14, 15 };
    const int value = (field >= 2 && field <= 11) || field == 14 || field == 15 || field == 22 || field == 23;
    return !value || (type > 0 && type < (int)sizeof of_type && of_type[type] == field);
}
/* Whether a message is fields, and so is each message in it, 64 deep at most. */
static int gcpi_onnx_whole(gcpi_excerpt message, gcpi_onnx_kind kind, int depth)
{
    const int type = kind == GCPI_KIND_ATTRIBUTE ? (int)gcpi_wire_integer(message, GCPI_ATTRIBUTE_TYPE, 0) : 0;
    gcpi_field f;
    int is;
    if (depth > 64) return 0;
    while ((is = gcpi_wire_next(&message, &f)) > 0) {
        const gcpi_onnx_kind inner = f.type == GCPI_WIRE_BYTES ? gcpi_onnx_kind_of(kind, f.number) : GCPI_KIND_NONE;
        if (inner != GCPI_KIND_NONE && !gcpi_onnx_whole(f.bytes, inner, depth + 1)) return 0;
        if (kind == GCPI_KIND_ATTRIBUTE && !gcpi_onnx_attribute_fits(type, f.number)) return 0;
    }
    return !is;
}

/* ==== src/onnx/open.h ==== */

/* gcp_onnx_open: a file read and checked, its graph in arrays. Nothing in it is trusted: what is wrong is an error that
   names it. */

enum { GCPI_ONNX_NODES = 1 << 20, GCPI_ONNX_NAME = 4096 }; /* the most: nodes, values; bytes of a name */
enum { GCPI_ONNX_IR = 3 };                                 /* the least that has opsets */

static int gcpi_wire_count(gcpi_excerpt message, int number)
{
    gcpi_field f;
    int count = 0;
    while (gcpi_wire_next(&message, &f) > 0 && count <= GCPI_ONNX_NODES)
        count += f.number == number && f.type == GCPI_WIRE_BYTES;
    return count;
}

/* ---- sizes, and the arrays ---- */

typedef struct gcpi_onnx_counts {
    int nodes, edges, data, inputs, outputs;
} gcpi_onnx_counts;
static gcpi_onnx_counts gcpi_onnx_count(gcpi_excerpt graph)
{
    gcpi_onnx_counts c;
    gcpi_excerpt rest = graph, node;
    memset(&c, 0, sizeof c);
    c.data = gcpi_wire_count(graph, GCPI_GRAPH_INITIALIZER);
    c.inputs = gcpi_wire_count(graph, GCPI_GRAPH_INPUT);
    c.outputs = gcpi_wire_count(graph, GCPI_GRAPH_OUTPUT);
    while (gcpi_wire_each(&rest, GCPI_GRAPH_NODE, &node) && c.nodes <= GCPI_ONNX_NODES && c.edges <= GCPI_ONNX_NODES) {
        c.nodes++;
        c.edges += gcpi_wire_count(node, GCPI_NODE_INPUT) + gcpi_wire_count(node, GCPI_NODE_OUTPUT);
        c.data += gcpi_excerpt_is(gcpi_wire_find(node, GCPI_NODE_OP), "Constant");
    }
    return c;
}
/* 0: they do not fit; *bytes is what they take at most. */
static int gcpi_onnx_arrays(gcpi_onnx *m, gcpi_onnx_counts c, size_t *bytes)
{
    gcp_arena *a = m->arena;
    const int values = c.edges + c.data + c.inputs + 1;
    m->data_capacity = c.data;
    m->weight_capacity = 2 * c.data + 3 * c.nodes + 16;
    m->bucket_count = 2 * values;
    m->nodes = GCPI_NEW(a, gcpi_onnx_node, c.nodes);
    m->values = GCPI_NEW(a, gcpi_onnx_value, values);
    m->data = GCPI_NEW(a, gcpi_onnx_data, c.data);
    m->weights = GCPI_NEW(a, gcpi_onnx_weight, m->weight_capacity);
    m->edges = GCPI_NEW(a, int, c.edges + 1);
    m->inputs = GCPI_NEW(a, int, c.inputs + 1);
    m->input_types = GCPI_NEW(a, gcpi_excerpt, c.inputs + 1);
    m->outputs = GCPI_NEW(a, int, c.outputs + 1);
    m->buckets = GCPI_NEW(a, int, m->bucket_count);
    m->value_count = 1;
    *bytes = sizeof *m + (size_t)c.nodes * sizeof *m->nodes + (size_t)values * sizeof *m->values +
             (size_t)c.data * sizeof *m->data + (size_t)m->weight_capacity * sizeof *m->weights +
             (size_t)(c.edges + c.inputs + c.outputs + 3 + m->bucket_count) * sizeof(int) +
             (size_t)(c.inputs + 1) * sizeof(gcpi_excerpt) + 16 * 16;
    return m->nodes && m->values && m->data && m->weights && m->edges && m->inputs && m->input_types && m->outputs &&
           m->buckets;
}

/* ---- the graph ---- */

static int gcpi_onnx_name_ok(gcpi_disk_file *s, gcpi_excerpt name)
{
    return name.size <= GCPI_ONNX_NAME ||
           gcpi_wrong(s, GCP_E_CONTENTS, "a name of %zu bytes; at most %d", name.size, GCPI_ONNX_NAME);
}
/* A new value of this name. 0: an error. */
static int gcpi_onnx_define(gcpi_onnx *m, gcpi_disk_file *s, gcpi_excerpt name, const char *what)
{
    char text[80];
    if (!gcpi_onnx_name_ok(s, name)) return 0;
    if (gcpi_onnx_find(m, name))
        return gcpi_wrong(s, GCP_E_CONTENTS, "%s '%s': something before has this name", what,
                          gcpi_excerpt_text(name, text, sizeof text));
    return gcpi_onnx_value_new(m, name);
}

/* External data: the elements lie in a file of .folder. Its path must stay in there. */
static int gcpi_onnx_path_stays(gcpi_excerpt path)
{
    for (size_t i = 0, part = 0; i <= path.size; i++) {
        if (i < path.size && (path.at[i] < 32 || path.at[i] == ':')) return 0;
        if (i < path.size && path.at[i] != '/' && path.at[i] != '\\') continue;
        if (i - part == 2 && path.at[part] == '.' && path.at[part + 1] == '.') return 0;
        if (i == part) return 0; /* absolute, or empty */
        part = i + 1;
    }
    return path.size > 0;
}
typedef struct gcpi_onnx_external {
    gcpi_excerpt location;
    uint64_t offset, length;
    int has_length;
} gcpi_onnx_external;
static uint64_t gcpi_excerpt_number(gcpi_excerpt text)
{
    uint64_t x = 0;
    for (size_t i = 0; i < text.size && text.at[i] >= '0' && text.at[i] <= '9' && x < (uint64_t)1 << 58; i++)
        x = 10 * x + (uint64_t)(text.at[i] - '0');
    return x;
}
static gcpi_onnx_external gcpi_onnx_external_of(gcpi_excerpt tensor)
{
    gcpi_onnx_external e;
    gcpi_excerpt pair;
    memset(&e, 0, sizeof e);
    while (gcpi_wire_each(&tensor, GCPI_TENSOR_EXTERNAL, &pair)) {
        const gcpi_excerpt key = gcpi_wire_find(pair, 1), value = gcpi_wire_find(pair, 2);
        if (gcpi_excerpt_is(key, "location")) e.location = value;
        if (gcpi_excerpt_is(key, "offset")) e.offset = gcpi_excerpt_number(value);
        if (gcpi_excerpt_is(key, "length")) e.length = gcpi_excerpt_number(value), e.has_length = 1;
    }
    return e;
}
static int gcpi_onnx_external_read(gcpi_onnx *m, gcpi_disk_file *s, const char *folder, gcpi_onnx_data *d)
{
    const gcpi_onnx_external e = gcpi_onnx_external_of(d->message);
    const size_t size = d->count * gcpi_onnx_type_size(d->type);
    char name[80], location[200], path[GCPI_PATH];
    gcpi_excerpt_text(d->name, name, sizeof name);
    gcpi_excerpt_text(e.location, location, sizeof location);
    if (!folder)
        return gcpi_wrong(s, GCP_E_CONTENTS, "the elements of '%s' lie in another file, '%s': .folder says where it is",
                          name, location);
    if (!gcpi_onnx_path_stays(e.location) || e.location.size >= sizeof location)
        return gcpi_wrong(s, GCP_E_CONTENTS, "'%s' lies in '%s', which is no file of the folder", name, location);
    if (e.has_length && e.length != size)
        return gcpi_wrong(s, GCP_E_CONTENTS, "'%s' has %llu bytes in '%s', expected %zu", name,
                          (unsigned long long)e.length, location, size);
    if (snprintf(path, sizeof path, "%s/%s", folder, location) >= (int)sizeof path)
        return gcpi_wrong(s, GCP_E_FILE, "the path of '%s' is too long", location);
    unsigned char *at = (unsigned char *)gcp_arena_push(m->arena, 1, 16, (ptrdiff_t)size);
    if (!at && size)
        return gcpi_wrong(s, GCP_E_NOMEM, "'%s' takes %zu bytes of the arena, which has %td left", name, size,
                          m->arena->size - m->arena->used - m->arena->scratch);
    gcpi_disk_file beside = gcpi_disk_of(s->files, path, s->at, s->call);
    beside.text = s->text;
    if (gcpi_disk_open(&beside) && gcpi_disk_skip(&beside, e.offset)) gcpi_disk_read(&beside, at, size);
    gcpi_disk_close(&beside);
    s->failed |= beside.failed;
    d->raw = gcpi_excerpt_of(at, size);
    return !s->failed;
}

/* Reads the data of an initialiser or a Constant. Returns its index; -1: an error. */
static int gcpi_onnx_data_new(gcpi_onnx *m, gcpi_disk_file *s, gcpi_excerpt message, gcpi_excerpt name,
                              const char *folder)
{
    char text[80];
    gcpi_onnx_data *d = &m->data[m->data_count];
    const char *wrong = gcpi_onnx_data_parse(message, d);
    d->name = name;
    gcpi_excerpt_text(name, text, sizeof text);
    if (!wrong && gcpi_wire_integer(message, GCPI_TENSOR_LOCATION, 0) == 1 && !gcpi_onnx_external_read(m, s, folder, d))
        return -1;
    if (!wrong && !gcpi_onnx_data_whole(d)) wrong = "its elements are not as many as its shape says";
    if (!wrong) return m->data_count++;
    gcpi_wrong(s, GCP_E_CONTENTS, "tensor '%s': %s", text, wrong);
    return -1;
}
static int gcpi_onnx_initializers(gcpi_onnx *m, gcpi_disk_file *s, const char *folder)
{
    gcpi_excerpt rest = m->graph, message;
    while (gcpi_wire_each(&rest, GCPI_GRAPH_INITIALIZER, &message)) {
        const gcpi_excerpt name = gcpi_wire_find(message, GCPI_TENSOR_NAME);
        const int v = gcpi_onnx_define(m, s, name, "initialiser"),
                  data = v ? gcpi_onnx_data_new(m, s, message, name, folder) : -1;
        if (data < 0) return 0;
        m->values[v].data = data;
    }
    m->initializers = m->data_count;
    return !gcpi_wire_count(m->graph, GCPI_GRAPH_SPARSE) ||
           gcpi_wrong(s, GCP_E_CONTENTS, "sparse initialisers are not read");
}
/* An input that is an initialiser, too, is that (as before IR 4). */
static int gcpi_onnx_inputs(gcpi_onnx *m, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->graph, message;
    while (gcpi_wire_each(&rest, GCPI_GRAPH_INPUT, &message)) {
        const gcpi_excerpt name = gcpi_wire_find(message, 1);
        const int known = gcpi_onnx_find(m, name);
        if (known && m->values[known].data >= 0) continue;
        const int v = gcpi_onnx_define(m, s, name, "input");
        if (!v) return 0;
        m->input_types[m->input_count] = gcpi_wire_find(message, 2);
        m->inputs[m->input_count++] = v;
    }
    return 1;
}
static int gcpi_onnx_node_new(gcpi_onnx *m, gcpi_disk_file *s, gcpi_excerpt message, const char *folder)
{
    gcpi_onnx_node *n = &m->nodes[m->node_count];
    const gcpi_excerpt domain = gcpi_wire_find(message, GCPI_NODE_DOMAIN);
    gcpi_excerpt rest = message, name;
    char text[80], op[40];
    n->message = message;
    n->name = gcpi_wire_find(message, GCPI_NODE_NAME);
    n->op = gcpi_wire_find(message, GCPI_NODE_OP);
    n->foreign = domain.size && !gcpi_excerpt_is(domain, "ai.onnx");
    gcpi_excerpt_text(n->op, op, sizeof op);
    n->input = m->edge_count;
    while (gcpi_wire_each(&rest, GCPI_NODE_INPUT, &name)) {
        const int v = gcpi_onnx_find(m, name);
        if (!v && name.size)
            return gcpi_wrong(s, GCP_E_CONTENTS, "node %d (%s) reads '%s', which nothing before it makes",
                              m->node_count, op, gcpi_excerpt_text(name, text, sizeof text));
        m->edges[m->edge_count++] = v;
        n->inputs++;
    }
    n->output = m->edge_count;
    for (rest = message; gcpi_wire_each(&rest, GCPI_NODE_OUTPUT, &name); n->outputs++) {
        const int v = name.size ? gcpi_onnx_define(m, s, name, "output") : 0;
        if (!v && name.size) return 0;
        if (v) m->values[v].node = m->node_count;
        m->edges[m->edge_count++] = v;
    }
    const gcpi_excerpt value = gcpi_wire_find(gcpi_onnx_attribute(n, "value"), GCPI_ATTRIBUTE_T);
    if (!n->foreign && gcpi_excerpt_is(n->op, "Constant") && n->outputs && value.size) {
        gcpi_onnx_value *out = gcpi_onnx_out(m, n, 0);
        if (out) out->data = gcpi_onnx_data_new(m, s, value, out->name, folder);
        if (out && out->data < 0) return 0;
    }
    m->node_count++;
    return 1;
}
static int gcpi_onnx_nodes(gcpi_onnx *m, gcpi_disk_file *s, const char *folder)
{
    gcpi_excerpt rest = m->graph, message;
    while (gcpi_wire_each(&rest, GCPI_GRAPH_NODE, &message)) {
        if (!gcpi_onnx_node_new(m, s, message, folder)) return 0;
    }
    return 1;
}
static int gcpi_onnx_outputs(gcpi_onnx *m, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->graph, message;
    char text[80];
    while (gcpi_wire_each(&rest, GCPI_GRAPH_OUTPUT, &message)) {
        const gcpi_excerpt name = gcpi_wire_find(message, 1);
        const int v = gcpi_onnx_find(m, name);
        if (!v || !gcpi_wire_find(message, 2).size)
            return gcpi_wrong(s, GCP_E_CONTENTS, "nothing makes the output '%s', or it has no type",
                              gcpi_excerpt_text(name, text, sizeof text));
        m->outputs[m->output_count++] = v;
    }
    return m->output_count > 0 || gcpi_wrong(s, GCP_E_CONTENTS, "the graph has no output");
}

/* ---- the model ---- */

static int gcpi_onnx_versions(gcpi_onnx *m, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->file, import;
    if (!m->file.size || !gcpi_onnx_whole(m->file, GCPI_KIND_MODEL, 0))
        return gcpi_wrong(s, GCP_E_CONTENTS,
                          "no ONNX model: cut off, or its bytes are no messages of Protocol Buffers");
    m->ir = (int)gcpi_wire_integer(m->file, GCPI_MODEL_IR, 0);
    m->graph = gcpi_wire_find(m->file, GCPI_MODEL_GRAPH);
    while (gcpi_wire_each(&rest, GCPI_MODEL_OPSETS, &import)) {
        const gcpi_excerpt domain = gcpi_wire_find(import, 1);
        if (!domain.size || gcpi_excerpt_is(domain, "ai.onnx")) m->opset = (int)gcpi_wire_integer(import, 2, 0);
    }
    if (!m->graph.size || m->ir < GCPI_ONNX_IR)
        return gcpi_wrong(s, GCP_E_CONTENTS, "no ONNX model: no graph, or an IR version below %d", GCPI_ONNX_IR);
    if (gcpi_wire_count(m->file, GCPI_MODEL_GRAPH) > 1) return gcpi_wrong(s, GCP_E_CONTENTS, "two graphs");
    return (m->opset >= GCP_ONNX_OLDEST && m->opset <= GCP_ONNX_NEWEST) ||
           gcpi_wrong(s, GCP_E_CONTENTS, "opset %d; %d to %d are read", m->opset, GCP_ONNX_OLDEST, GCP_ONNX_NEWEST);
}
/* The file's bytes: the user's, or read into the arena. */
static int gcpi_onnx_bytes(gcpi_onnx *m, gcpi_disk_file *s, const gcp_onnx_open_opts *o)
{
    if (o->data) {
        m->file = gcpi_excerpt_of(o->data, o->size);
        return 1;
    }
    if (!gcpi_disk_open(s)) return 0;
    unsigned char *at = s->size < PTRDIFF_MAX ? GCPI_NEW(m->arena, unsigned char, s->size) : NULL;
    if (!at)
        return gcpi_wrong(s, GCP_E_NOMEM,
                          "the file takes %llu bytes, and as a rule a tenth more; the arena has %td left",
                          (unsigned long long)s->size, m->arena->size - m->arena->used - m->arena->scratch);
    m->file = gcpi_excerpt_of(at, (size_t)s->size);
    return gcpi_disk_read(s, at, (size_t)s->size);
}
/* A file without initialisers of floats has its weights in Constants, as Paddle's exporter writes them. */
static int gcpi_onnx_weights_found(gcpi_onnx *m)
{
    int found = 0;
    for (int i = 0; i < m->initializers; i++) found |= gcpi_onnx_is_real(m->data[i].type) && m->data[i].count > 1;
    if (!found) m->initializers = m->data_count;
    return 1;
}
static int gcpi_onnx_graph(gcpi_onnx *m, gcpi_disk_file *s, const gcp_onnx_open_opts *o)
{
    const gcpi_onnx_counts c = gcpi_onnx_count(m->graph);
    size_t bytes;
    if (c.nodes > GCPI_ONNX_NODES || c.edges > GCPI_ONNX_NODES || c.data > GCPI_ONNX_NODES ||
        c.inputs > GCPI_ONNX_NODES)
        return gcpi_wrong(s, GCP_E_CONTENTS, "too many nodes or names; at most %d", GCPI_ONNX_NODES);
    if (!gcpi_onnx_arrays(m, c, &bytes))
        return gcpi_wrong(s, GCP_E_NOMEM, "the graph takes %zu bytes of the arena beside the file's %zu", bytes,
                          m->file.size);
    return gcpi_onnx_initializers(m, s, o->folder) && gcpi_onnx_inputs(m, s) && gcpi_onnx_nodes(m, s, o->folder) &&
           gcpi_onnx_outputs(m, s) && gcpi_onnx_weights_found(m);
}

/* What a tape must hold: a node is two ops as a rule; names take 96 bytes an op. */
static int gcpi_onnx_ops(const gcpi_onnx *m)
{
    size_t names = 0;
    for (int i = 0; i < m->initializers; i++) names += GCPI_MIN(m->data[i].name.size, (size_t)200);
    return 2 * m->node_count + m->data_count + (int)(names / 96) + 64;
}
/* The folder that a file lies in; NULL: too long. */
static const char *gcpi_onnx_folder(const char *path, char *text, size_t size)
{
    const char *slash = strrchr(path, '/'), *other = strrchr(path, '\\');
    if (other && (!slash || other > slash)) slash = other;
    if (!slash) return ".";
    const size_t length = slash == path ? 1 : (size_t)(slash - path);
    if (length >= size) return NULL;
    memcpy(text, path, length);
    text[length] = 0;
    return text;
}
GCPI_DEF gcp_onnx gcp_onnx_open_at(gcp_arena *arena, const char *path, gcp_onnx_open_opts o)
{
    gcp_onnx model;
    memset(&model, 0, sizeof model);
    gcpi_disk_file s = gcpi_disk_of(o.files, path ? path : o.data ? "(bytes)" : NULL, o.at, "gcp_onnx_open");
    s.text = model.error;
    if (!arena || !arena->base) {
        gcpi_wrong(&s, GCP_E_ARGUMENT, "no arena");
        return model;
    }
    const ptrdiff_t before = arena->used;
    gcpi_onnx *m = GCPI_NEW(arena, gcpi_onnx, 1);
    if (!m) {
        gcpi_wrong(&s, GCP_E_NOMEM, "an arena of %td bytes is too small", arena->size);
        return model;
    }
    m->arena = arena;
    char folder[GCPI_PATH];
    if (!o.folder && !o.data && path) o.folder = gcpi_onnx_folder(path, folder, sizeof folder);
    const int ok = gcpi_onnx_bytes(m, &s, &o) && gcpi_onnx_versions(m, &s) && gcpi_onnx_graph(m, &s, &o);
    gcpi_disk_close(&s);
    if (!ok) {
        arena->used = before;
        return model;
    }
    m->mark = arena->used;
    model.core = m;
    model.ir = m->ir;
    model.opset = m->opset;
    model.nodes = m->node_count;
    model.weights = m->initializers;
    model.ops = gcpi_onnx_ops(m);
    return model;
}

/* ==== src/onnx/fold.h ==== */

/* Folding: what is known before a step. Exporters leave arithmetic about shapes behind, Shape, Gather, Concat and so
   on; once a recording fixes the shapes it is done here, in double, and never runs. So are constants of floats, if they
   are few. An initialiser of floats is a weight and is not folded, unless it is a number. */

enum { GCPI_ONNX_FOLDED = 1 << 16 }; /* the most elements of a folded value */

static ptrdiff_t gcpi_onnx_elements(const gcpi_onnx_value *v)
{
    ptrdiff_t n = 1;
    for (int i = 0; i < v->rank; i++) n *= v->d[i];
    return n;
}
/* An initialiser of one element is a weight where its name has a dot, as those of parameters have: block.scale. */
static int gcpi_onnx_trains(const gcpi_onnx *m, int data)
{
    const gcpi_onnx_data *d = &m->data[data];
    return data < m->initializers && d->rank > 0 && gcpi_onnx_is_real(d->type) &&
           (d->count > 1 || d->fresh || (d->name.size && memchr(d->name.at, '.', d->name.size)));
}
static int gcpi_onnx_is_weight(const gcpi_onnx *m, const gcpi_onnx_value *v)
{
    return v->data >= 0 && gcpi_onnx_trains(m, v->data);
}
static double *gcpi_onnx_known_new(gcpi_onnx *m, const gcpi_onnx_value *v) /* NULL: too many, or no room */
{
    const ptrdiff_t n = gcpi_onnx_elements(v);
    if (n > GCPI_ONNX_FOLDED) return NULL;
    double *known = GCPI_NEW(m->arena, double, n + 1);
    if (!known && !m->tape->code)
        gcpi_fail(m->tape, GCP_E_NOMEM, m->at, m->call, "the model's arena of %td bytes is full", m->arena->size);
    return known;
}
/* The elements of a value that is known, be it a weight (numbers that an op needs now: a Resize's scales); NULL: it is
   not, or they are too many. */
static const double *gcpi_onnx_elements_of(gcpi_onnx *m, gcpi_onnx_value *v)
{
    if (!v || v->uniform) return NULL;
    if (v->known || v->data < 0 || !gcpi_onnx_type_size(v->type)) return v->known;
    if (m->data[v->data].fresh) return NULL;
    double *known = gcpi_onnx_known_new(m, v);
    if (!known) return NULL;
    gcpi_onnx_reader r = gcpi_onnx_reader_of(&m->data[v->data]);
    for (size_t i = 0; i < m->data[v->data].count && gcpi_onnx_read(&r, &known[i]); i++) {}
    return v->known = known;
}
static const double *gcpi_onnx_known(gcpi_onnx *m, gcpi_onnx_value *v)
{
    return v && gcpi_onnx_is_weight(m, v) ? NULL : gcpi_onnx_elements_of(m, v);
}
/* A number, where a value is one. */
static int gcpi_onnx_number(gcpi_onnx *m, gcpi_onnx_value *v, double *x)
{
    const double *known = v && v->shaped && gcpi_onnx_elements(v) == 1 ? gcpi_onnx_known(m, v) : NULL;
    if (known) *x = *known;
    return known != NULL;
}
/* v without what changes nothing: Identity, a cast among floats, a Dropout that drops nothing. */
static gcpi_onnx_value *gcpi_onnx_bare(gcpi_onnx *m, gcpi_onnx_value *v)
{
    for (gcpi_onnx_node *n; v && v->node >= 0; v = gcpi_onnx_in(m, n, 0)) {
        double rate;
        n = &m->nodes[v->node];
        const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
        rate = gcpi_onnx_float(n, "ratio", 0.5);
        gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &rate);
        const int cast = gcpi_excerpt_is(n->op, "Cast") || gcpi_excerpt_is(n->op, "CastLike");
        if (!gcpi_excerpt_is(n->op, "Identity") &&
            !(cast && x && gcpi_onnx_is_real(x->type) && gcpi_onnx_is_real(v->type)) &&
            !(gcpi_excerpt_is(n->op, "Dropout") && rate == 0))
            return v;
    }
    return v;
}
/* v without the Mul or Div by a number that made it; *scale is multiplied by that. */
static gcpi_onnx_value *gcpi_onnx_unscaled(gcpi_onnx *m, gcpi_onnx_value *v, double *scale)
{
    gcpi_onnx_node *times = gcpi_onnx_maker(m, v, "Mul"), *over = gcpi_onnx_maker(m, v, "Div");
    double by;
    for (int i = 0; times && i < 2; i++)
        if (gcpi_onnx_number(m, gcpi_onnx_in(m, times, i), &by)) {
            *scale *= by;
            return gcpi_onnx_in(m, times, 1 - i);
        }
    if (over && gcpi_onnx_number(m, gcpi_onnx_in(m, over, 1), &by) && by != 0) {
        *scale /= by;
        return gcpi_onnx_in(m, over, 0);
    }
    return v;
}
/* An attribute of older opsets that became an input. Returns how many integers; -1: not given; -2: not known now. */
static int gcpi_onnx_list(gcpi_onnx *m, const gcpi_onnx_node *n, const char *attribute, int input, int64_t *list,
                          int most)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, input);
    if (gcpi_onnx_given(n, attribute)) return gcpi_onnx_integers(n, attribute, list, most);
    if (!v) return -1;
    const double *known = gcpi_onnx_elements_of(m, v);
    if (!known) return -2;
    const int count = (int)gcpi_onnx_elements(v);
    for (int i = 0; i < count && i < most; i++)
        list[i] = known[i] >= 9e18 ? INT64_MAX : known[i] <= -9e18 ? INT64_MIN : (int64_t)known[i];
    return count;
}

/* ---- outputs ---- */

static int gcpi_onnx_shape(gcpi_onnx *m, const gcpi_onnx_node *n, int output, int type, int rank, const int *d)
{
    gcpi_onnx_value *v = gcpi_onnx_out(m, n, output);
    if (!v) return 1;
    if (rank > GCPI_AXES) return gcpi_onnx_refuse(m, n, "a result of %d axes; at most %d", rank, GCPI_AXES);
    ptrdiff_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (d[i] < 0) return gcpi_onnx_refuse(m, n, "a size of %d", d[i]);
        if (count > INT32_MAX / GCPI_MAX(d[i], 1)) return gcpi_onnx_refuse(m, n, "more than %d elements", INT32_MAX);
        count *= GCPI_MAX(d[i], 1);
    }
    v->shaped = 1;
    v->type = type;
    v->rank = rank;
    for (int i = 0; i < rank; i++) v->d[i] = d[i];
    return 1;
}
static int gcpi_onnx_shape_like(gcpi_onnx *m, const gcpi_onnx_node *n, int output, const gcpi_onnx_value *like)
{
    return gcpi_onnx_shape(m, n, output, like->type, like->rank, like->d);
}
/* Sizes of two operands, the shorter filled with ones in front. 0: they do not fit. */
static int gcpi_onnx_broadcast(const gcpi_onnx_value *a, const gcpi_onnx_value *b, int *rank, int *d)
{
    *rank = GCPI_MAX(a->rank, b->rank);
    for (int i = 0; i < *rank; i++) {
        const int ai = i - *rank + a->rank, bi = i - *rank + b->rank, x = ai < 0 ? 1 : a->d[ai],
                  y = bi < 0 ? 1 : b->d[bi];
        if (x != y && x != 1 && y != 1) return 0;
        d[i] = x == 1 ? y : x;
    }
    return 1;
}
static int gcpi_onnx_axis(int64_t axis, int rank) /* -1: not one of rank */
{
    if (axis < 0) axis += rank;
    return axis < 0 || axis >= rank ? -1 : (int)axis;
}

/* ---- moving elements ---- */

/* to[i] = from[first + the step of each axis times its index] for a dense array of these sizes. */
static void gcpi_fold_view(double *to, int rank, const int *d, const double *from, ptrdiff_t first,
                           const ptrdiff_t *step)
{
    int at[GCPI_AXES] = { 0 };
    ptrdiff_t count = 1;
    for (int i = 0; i < rank; i++) count *= d[i];
    for (ptrdiff_t n = 0; n < count; n++) {
        *to++ = from[first];
        for (int i = rank - 1; i >= 0; i--) {
            first += step[i];
            if (++at[i] < d[i]) break;
            first -= step[i] * d[i];
            at[i] = 0;
        }
    }
}
static void gcpi_fold_steps(const gcpi_onnx_value *v, ptrdiff_t *step)
{
    ptrdiff_t n = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= v->d[i];
    }
}
/* The elements of v, spread over sizes of at least its rank, in scratch. NULL: no room. */
static double *gcpi_fold_spread(gcpi_onnx *m, gcpi_onnx_value *v, int rank, const int *d)
{
    ptrdiff_t steps[GCPI_AXES], step[GCPI_AXES], count = 1;
    const double *from = gcpi_onnx_known(m, v);
    gcpi_fold_steps(v, steps);
    for (int i = 0; i < rank; i++) {
        const int k = i - rank + v->rank;
        step[i] = k < 0 || v->d[k] == 1 ? 0 : steps[k];
        count *= d[i];
    }
    double *to = from && count <= GCPI_ONNX_FOLDED ? GCPI_SCRATCH(m->arena, double, count + 1) : NULL;
    if (to) gcpi_fold_view(to, rank, d, from, 0, step);
    return to;
}

/* ---- arithmetic ---- */

static double gcpi_fold_rounded(int type, double x)
{
    if (type == GCPI_ONNX_FLOAT) return (double)(float)x;
    if (gcpi_onnx_is_real(type)) return x;
    if (type == GCPI_ONNX_BOOL) return x != 0;
    return x > 9.2e18 || x < -9.2e18 ? x : x < 0 ? ceil(x) : floor(x); /* Cast and Div cut towards zero */
}
static double gcpi_fold_pair(char fn, double a, double b, int real)
{
    switch (fn) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return !real && b == 0 ? 0 : a / b;
    case '^': return pow(a, b);
    case '%': return b == 0 ? 0 : real ? fmod(a, b) : a - b * floor(a / b);
    case 'M': return a > b ? a : b;
    case 'm': return a < b ? a : b;
    case '=': return a == b;
    case '<': return a < b;
    case '>': return a > b;
    case 'l': return a <= b;
    case 'g': return a >= b;
    case '&': return a != 0 && b != 0;
    default: return a != 0 || b != 0; /* '|' */
    }
}
static double gcpi_fold_one(char fn, double x)
{
    switch (fn) {
    case '-': return -x;
    case 'a': return fabs(x);
    case 's': return sqrt(x);
    case 'e': return exp(x);
    case 'l': return log(x);
    case 'f': return floor(x);
    case 'c': return ceil(x);
    case 'r': return 1 / x;
    case '!': return x == 0;
    case 'S': return sin(x);
    case 'C': return cos(x);
    case 'E': return erf(x);
    case 't': return tanh(x);
    case 'G': return 1 / (1 + exp(-x));
    case 'p': return log(1 + exp(x));
    case 'R': return x > 0 ? x : 0;
    default: return x;
    }
}
/* Folds a node that is a function of each element of one or two inputs, whose output has its shape. */
static void gcpi_fold_elements(gcpi_onnx *m, const gcpi_onnx_node *n, char fn)
{
    gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1), *y = gcpi_onnx_out(m, n, 0);
    const ptrdiff_t scratch = m->arena->scratch;
    if (!y || !gcpi_onnx_known(m, a) || (b && !gcpi_onnx_known(m, b))) return;
    const double *x = gcpi_fold_spread(m, a, y->rank, y->d), *z = b ? gcpi_fold_spread(m, b, y->rank, y->d) : x;
    double *to = x && z ? gcpi_onnx_known_new(m, y) : NULL;
    const int real = gcpi_onnx_is_real(a->type) || gcpi_onnx_integer(n, "fmod", 0);
    for (ptrdiff_t i = 0; to && i < gcpi_onnx_elements(y); i++)
        to[i] = gcpi_fold_rounded(y->type, b ? gcpi_fold_pair(fn, x[i], z[i], real) : gcpi_fold_one(fn, x[i]));
    m->arena->scratch = scratch;
    y->known = to;
}

/* ==== src/onnx/shapes.h ==== */

/* Shapes: what each op makes, and its elements where its inputs are known. A rule is called when all inputs have their
   shapes; it fills the outputs' and returns 1, or refuses the node and returns 0. */

static int gcpi_shape_like(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape_like(m, n, 0, x)) return 0;
    if (n->outputs > 1 && !gcpi_onnx_shape_like(m, n, 1, x)) return 0; /* Dropout's mask: nothing reads it */
    if (y && gcpi_excerpt_is(n->op, "Identity")) y->data = x->data;
    return 1;
}
/* Ops of elements that are folded, or drawn as curves: their letters in fold.h. */
static char gcpi_fold_letter(const gcpi_onnx_node *n)
{
    static const struct {
        const char *op;
        char letter;
    } letters[] = { { "Add", '+' },         { "Sum", '+' },
                    { "Sub", '-' },         { "Mul", '*' },
                    { "Div", '/' },         { "Pow", '^' },
                    { "Mod", '%' },         { "Max", 'M' },
                    { "Min", 'm' },         { "Equal", '=' },
                    { "Less", '<' },        { "Greater", '>' },
                    { "LessOrEqual", 'l' }, { "GreaterOrEqual", 'g' },
                    { "And", '&' },         { "Or", '|' },
                    { "Neg", '-' },         { "Abs", 'a' },
                    { "Sqrt", 's' },        { "Exp", 'e' },
                    { "Log", 'l' },         { "Floor", 'f' },
                    { "Ceil", 'c' },        { "Reciprocal", 'r' },
                    { "Not", '!' },         { "Sin", 'S' },
                    { "Cos", 'C' },         { "Erf", 'E' },
                    { "Tanh", 't' },        { "Sigmoid", 'G' },
                    { "Softplus", 'p' },    { "Relu", 'R' } };
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (gcpi_excerpt_is(n->op, letters[i].op)) return letters[i].letter;
    return 'i';
}
static int gcpi_shape_one(gcpi_onnx *m, gcpi_onnx_node *n)
{
    if (!gcpi_shape_like(m, n)) return 0;
    gcpi_fold_elements(m, n, gcpi_fold_letter(n));
    return 1;
}
static int gcpi_shape_pair_of(gcpi_onnx *m, gcpi_onnx_node *n, int truth)
{
    const gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1);
    int rank, d[GCPI_AXES];
    if (!b && n->inputs > 1) return gcpi_onnx_refuse(m, n, "an input is left out");
    if (!b || (m->opset < 7 && gcpi_excerpt_is(n->op, "PRelu") && a->rank > 1 &&
               (gcpi_onnx_elements(b) == 1 || (b->rank == 1 && b->d[0] == a->d[1]))))
        return gcpi_shape_like(m, n);
    if (!gcpi_onnx_broadcast(a, b, &rank, d)) return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    if (!gcpi_onnx_shape(m, n, 0, truth ? GCPI_ONNX_BOOL : a->type, rank, d)) return 0;
    if (n->inputs == 2 && gcpi_fold_letter(n) != 'i') gcpi_fold_elements(m, n, gcpi_fold_letter(n));
    for (int i = 2; i < n->inputs; i++)
        if (!gcpi_onnx_in(m, n, i) || !gcpi_onnx_broadcast(gcpi_onnx_out(m, n, 0), gcpi_onnx_in(m, n, i), &rank, d) ||
            !gcpi_onnx_shape(m, n, 0, a->type, rank, d))
            return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    return 1;
}
static int gcpi_shape_pair(gcpi_onnx *m, gcpi_onnx_node *n) { return gcpi_shape_pair_of(m, n, 0); }
static int gcpi_shape_truth(gcpi_onnx *m, gcpi_onnx_node *n) { return gcpi_shape_pair_of(m, n, 1); }

static int gcpi_shape_cast(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *like = gcpi_onnx_in(m, n, 1);
    const int to = like ? like->type : (int)gcpi_onnx_integer(n, "to", 0);
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape(m, n, 0, to, x->rank, x->d) || !y) return 0;
    const double *from = gcpi_onnx_known(m, gcpi_onnx_in(m, n, 0));
    double *known = from ? gcpi_onnx_known_new(m, y) : NULL;
    for (ptrdiff_t i = 0; known && i < gcpi_onnx_elements(y); i++) known[i] = gcpi_fold_rounded(to, from[i]);
    y->known = known;
    return 1;
}
/* A list of integers becomes the output. */
static int gcpi_shape_integers(gcpi_onnx *m, gcpi_onnx_node *n, const int64_t *list, int count, int rank)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape(m, n, 0, GCPI_ONNX_INT64, rank, &count) || !y) return 0;
    double *known = gcpi_onnx_known_new(m, y);
    for (int i = 0; known && i < count; i++) known[i] = (double)list[i];
    y->known = known;
    return 1;
}
static int gcpi_shape_shape(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t list[GCPI_AXES], first = gcpi_onnx_integer(n, "start", 0), last = gcpi_onnx_integer(n, "end", x->rank);
    int count = 0;
    if (first < 0) first = GCPI_MAX(first + x->rank, 0);
    if (last < 0) last += x->rank;
    for (int64_t i = first; i < last && i < x->rank; i++) list[count++] = x->d[i];
    return gcpi_shape_integers(m, n, list, count, 1);
}
static int gcpi_shape_size(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int64_t count = gcpi_onnx_elements(gcpi_onnx_in(m, n, 0));
    return gcpi_shape_integers(m, n, &count, 1, 0);
}

/* ---- the same elements in other axes ---- */

/* The output has these sizes and the input's elements, in their order. */
static int gcpi_shape_again(gcpi_onnx *m, gcpi_onnx_node *n, int rank, const int *d)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d) || !y) return 0;
    if (gcpi_onnx_elements(x) != gcpi_onnx_elements(y))
        return gcpi_onnx_refuse(m, n, "%td elements become %td (another .batch than it was exported for?)",
                                gcpi_onnx_elements(x), gcpi_onnx_elements(y));
    const double *known = gcpi_onnx_known(m, x);
    y->known = (double *)(uintptr_t)known;
    return 1;
}
static int gcpi_shape_reshape(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t list[GCPI_AXES], zero = gcpi_onnx_integer(n, "allowzero", 0);
    int d[GCPI_AXES], open = -1;
    const int rank = gcpi_onnx_list(m, n, "shape", 1, list, GCPI_AXES);
    ptrdiff_t count = 1;
    if (rank < 0 || rank > GCPI_AXES)
        return gcpi_onnx_refuse(m, n, rank < 0 ? "its shape is not known before a step" : "more than 8 axes");
    for (int i = 0; i < rank; i++) {
        if (list[i] == 0 && !zero && i < x->rank) list[i] = x->d[i];
        if (list[i] == -1 && open < 0) open = i;
        else if (list[i] < 0 || list[i] > INT32_MAX)
            return gcpi_onnx_refuse(m, n, "a size of %lld", (long long)list[i]);
        d[i] = (int)list[i];
        if (i != open) count = count > PTRDIFF_MAX / INT32_MAX / 2 ? PTRDIFF_MAX / INT32_MAX / 2 : count * d[i];
    }
    if (open >= 0) d[open] = count ? (int)GCPI_MIN(gcpi_onnx_elements(x) / count, INT32_MAX) : 0;
    return gcpi_shape_again(m, n, rank, d);
}
static int gcpi_shape_flatten(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t axis = gcpi_onnx_integer(n, "axis", 1);
    int d[2] = { 1, 1 };
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank) return gcpi_onnx_refuse(m, n, "axis %lld of %d", (long long)axis, x->rank);
    for (int i = 0; i < x->rank; i++) {
        if (d[i >= axis] > INT32_MAX / GCPI_MAX(x->d[i], 1)) return gcpi_onnx_refuse(m, n, "an axis is too long");
        d[i >= axis] *= x->d[i];
    }
    return gcpi_shape_again(m, n, 2, d);
}
/* Bits of axes that an attribute or input names. -1: one is wrong; none given: `otherwise`. */
static int gcpi_onnx_axes(gcpi_onnx *m, const gcpi_onnx_node *n, int input, int rank, int otherwise)
{
    int64_t list[GCPI_AXES];
    const int count = gcpi_onnx_list(m, n, "axes", input, list, GCPI_AXES);
    int bits = 0;
    if (count == -1) return otherwise;
    if (count < 0 || count > GCPI_AXES) return -1;
    for (int i = 0; i < count; i++) {
        const int axis = gcpi_onnx_axis(list[i], rank);
        if (axis < 0) return -1;
        bits |= 1 << axis;
    }
    return bits;
}
static int gcpi_shape_squeeze(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int ones = 0, d[GCPI_AXES], rank = 0;
    for (int i = 0; i < x->rank; i++) ones |= (x->d[i] == 1) << i;
    const int axes = gcpi_onnx_axes(m, n, 1, x->rank, ones);
    if (axes < 0 || axes & ~ones) return gcpi_onnx_refuse(m, n, "its axes are not of size 1");
    for (int i = 0; i < x->rank; i++)
        if (!(axes >> i & 1)) d[rank++] = x->d[i];
    return gcpi_shape_again(m, n, rank, d);
}
static int gcpi_shape_unsqueeze(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t list[GCPI_AXES];
    int d[GCPI_AXES], count = gcpi_onnx_list(m, n, "axes", 1, list, GCPI_AXES);
    if (count < 0 || count + x->rank > GCPI_AXES) return gcpi_onnx_refuse(m, n, "its axes are not known, or too many");
    const int axes = gcpi_onnx_axes(m, n, 1, count + x->rank, 0);
    if (axes < 0) return gcpi_onnx_refuse(m, n, "an axis is not one of %d", count + x->rank);
    for (int i = 0, next = 0; i < count + x->rank; i++) {
        if (!(axes >> i & 1) && next == x->rank) return gcpi_onnx_refuse(m, n, "an axis is named twice");
        d[i] = axes >> i & 1 ? 1 : x->d[next++];
    }
    return gcpi_shape_again(m, n, count + x->rank, d);
}
static int gcpi_onnx_permutation(const gcpi_onnx_node *n, int rank, int *axes) /* 0: none */
{
    int64_t list[GCPI_AXES];
    const int count = gcpi_onnx_integers(n, "perm", list, GCPI_AXES);
    int seen = 0;
    for (int i = 0; i < rank; i++) axes[i] = count < 0 ? rank - 1 - i : i < count ? gcpi_onnx_axis(list[i], rank) : -1;
    for (int i = 0; i < rank; i++) seen |= axes[i] < 0 ? 0 : 1 << axes[i];
    return (count < 0 || count == rank) && seen == (1 << rank) - 1;
}
static int gcpi_shape_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    int axes[GCPI_AXES], d[GCPI_AXES];
    ptrdiff_t steps[GCPI_AXES], step[GCPI_AXES];
    if (!gcpi_onnx_permutation(n, x->rank, axes))
        return gcpi_onnx_refuse(m, n, "its perm is no order of %d axes", x->rank);
    gcpi_fold_steps(x, steps);
    for (int i = 0; i < x->rank; i++) d[i] = x->d[axes[i]], step[i] = steps[axes[i]];
    if (!gcpi_onnx_shape(m, n, 0, x->type, x->rank, d) || !y) return 0;
    const double *from = gcpi_onnx_known(m, x);
    double *known = from ? gcpi_onnx_known_new(m, y) : NULL;
    if (known) gcpi_fold_view(known, x->rank, d, from, 0, step);
    y->known = known;
    return 1;
}
static int gcpi_shape_expand(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0), to;
    int64_t list[GCPI_AXES];
    int rank, d[GCPI_AXES];
    memset(&to, 0, sizeof to);
    to.rank = gcpi_onnx_list(m, n, "shape", 1, list, GCPI_AXES);
    if (to.rank < 0 || to.rank > GCPI_AXES) return gcpi_onnx_refuse(m, n, "its shape is not known before a step");
    for (int i = 0; i < to.rank; i++) to.d[i] = (int)list[i];
    if (!gcpi_onnx_broadcast(x, &to, &rank, d)) return gcpi_onnx_refuse(m, n, "its shapes do not fit");
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d) || !y) return 0;
    const ptrdiff_t scratch = m->arena->scratch;
    const double *spread = gcpi_onnx_known(m, x) ? gcpi_fold_spread(m, x, rank, d) : NULL;
    double *known = spread ? gcpi_onnx_known_new(m, y) : NULL;
    if (known) memcpy(known, spread, (size_t)gcpi_onnx_elements(y) * sizeof *known);
    m->arena->scratch = scratch;
    y->known = known;
    return 1;
}

/* ---- parts ---- */

static int gcpi_shape_concat(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 1), x->rank);
    int d[GCPI_AXES], known = 1;
    if (axis < 0 || !y) return gcpi_onnx_refuse(m, n, "its axis is not one of %d", x->rank);
    memcpy(d, x->d, sizeof d);
    for (int i = 0; i < n->inputs; i++) {
        gcpi_onnx_value *v = gcpi_onnx_in(m, n, i);
        if (!v || v->rank != x->rank) return gcpi_onnx_refuse(m, n, "its inputs have not as many axes");
        for (int k = 0; k < x->rank; k++)
            if (k != axis && v->d[k] != d[k])
                return gcpi_onnx_refuse(m, n, "sizes of %d and %d beside each other", d[k], v->d[k]);
        known &= gcpi_onnx_known(m, v) != NULL;
        if (i) d[axis] = v->d[axis] > INT32_MAX - d[axis] ? INT32_MAX : d[axis] + v->d[axis];
    }
    if (!gcpi_onnx_shape(m, n, 0, x->type, x->rank, d)) return 0;
    double *to = known ? gcpi_onnx_known_new(m, y) : NULL;
    ptrdiff_t outer = 1, inner = 1;
    for (int k = 0; k < x->rank; k++)
        if (k < axis) outer *= d[k];
        else if (k > axis) inner *= d[k];
    y->known = to;
    for (ptrdiff_t o = 0; to && o < outer; o++)
        for (int i = 0; i < n->inputs; i++) {
            gcpi_onnx_value *v = gcpi_onnx_in(m, n, i);
            const ptrdiff_t run = v->d[axis] * inner;
            memcpy(to, gcpi_onnx_known(m, v) + o * run, (size_t)run * sizeof *to);
            to += run;
        }
    return 1;
}
/* One output of a Split or Slice: elements first, first + step, ... of each axis. */
static int gcpi_shape_part(gcpi_onnx *m, gcpi_onnx_node *n, int output, const int *d, const int *first, const int *step)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, output);
    ptrdiff_t steps[GCPI_AXES], from = 0;
    if (!y) return 1;
    if (!gcpi_onnx_shape(m, n, output, x->type, x->rank, d)) return 0;
    const double *known = gcpi_onnx_known(m, x);
    double *to = known ? gcpi_onnx_known_new(m, y) : NULL;
    gcpi_fold_steps(x, steps);
    for (int i = 0; i < x->rank; i++) {
        from += first[i] * steps[i];
        steps[i] *= step[i];
    }
    if (to && gcpi_onnx_elements(y)) gcpi_fold_view(to, x->rank, d, known, from, steps);
    y->known = to;
    return 1;
}
/* The sizes of a Split's outputs. 0: they are not known, or do not add up. */
static int gcpi_onnx_split_sizes(gcpi_onnx *m, const gcpi_onnx_node *n, int size, int64_t *sizes)
{
    const int count = gcpi_onnx_list(m, n, "split", 1, sizes, GCP_MAX_INPUTS);
    int64_t sum = 0, each = (size + n->outputs - 1) / GCPI_MAX(n->outputs, 1);
    if (n->outputs > GCP_MAX_INPUTS || (count >= 0 && count != n->outputs) || count == -2) return 0;
    for (int i = 0; i < n->outputs; i++) {
        if (count < 0) sizes[i] = GCPI_MIN(each, size - sum);
        if (sizes[i] < 0 || sizes[i] > size - sum) return 0;
        sum += sizes[i];
    }
    return sum == size;
}
static int gcpi_shape_split(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank);
    int d[GCPI_AXES], first[GCPI_AXES] = { 0 }, step[GCPI_AXES] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    int64_t sizes[GCP_MAX_INPUTS];
    memcpy(d, x->d, sizeof d);
    if (axis < 0 || !gcpi_onnx_split_sizes(m, n, d[axis], sizes))
        return gcpi_onnx_refuse(m, n, "its parts do not fit its axis");
    for (int i = 0; i < n->outputs; i++) {
        d[axis] = (int)sizes[i];
        if (!gcpi_shape_part(m, n, i, d, first, step)) return 0;
        first[axis] += d[axis];
    }
    return 1;
}
/* A list of parts is never made: what takes one out of it is a slice of what was split. */
static int gcpi_shape_sequence(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_shape(m, n, 0, GCPI_ONNX_NONE, 0, NULL);
}
/* Of a SequenceAt: the node that split, the axis, and where its part begins. count: its elements. 0: not known. */
static gcpi_onnx_node *gcpi_onnx_sequence_part(gcpi_onnx *m, const gcpi_onnx_node *n, int *axis, int *first, int *count)
{
    const gcpi_onnx_value *list = gcpi_onnx_in(m, n, 0);
    gcpi_onnx_node *split = list->node >= 0 ? &m->nodes[list->node] : NULL;
    double index;
    if (!split || !gcpi_excerpt_is(split->op, "SplitToSequence") || !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &index))
        return NULL;
    const gcpi_onnx_value *x = gcpi_onnx_in(m, split, 0);
    const double *sizes = gcpi_onnx_elements_of(m, gcpi_onnx_in(m, split, 1));
    *axis = gcpi_onnx_axis(gcpi_onnx_integer(split, "axis", 0), x->rank);
    if (*axis < 0 || (gcpi_onnx_in(m, split, 1) && !sizes)) return NULL;
    const gcpi_onnx_value *given = gcpi_onnx_in(m, split, 1);
    const double each = !given       ? 1
                      : !given->rank ? *sizes
                                     : 0,
                 size = x->d[*axis],
                 parts = each > 0 ? ceil(size / each)
                       : given    ? (double)gcpi_onnx_elements(given)
                                  : 0,
                 at = index < 0 ? index + parts : index;
    double from = each > 0 ? each * at : 0, length = 0;
    if (!(at >= 0 && at < parts) || !(size > 0)) return NULL;
    for (int i = 0; i < (int)at && !(each > 0); i++) from += sizes[i];
    length = each > 0 ? GCPI_MIN(each, size - from) : sizes[(int)at];
    if (!(from >= 0 && length >= 1 && from + length <= size)) return NULL;
    *first = (int)from;
    *count = (int)length;
    return split;
}
static int gcpi_shape_sequence_at(gcpi_onnx *m, gcpi_onnx_node *n)
{
    int axis, first, count, d[GCPI_AXES], rank = 0;
    const gcpi_onnx_node *split = gcpi_onnx_sequence_part(m, n, &axis, &first, &count);
    if (!split) return gcpi_onnx_refuse(m, n, "its list or index is not known before a step");
    const gcpi_onnx_value *x = gcpi_onnx_in(m, split, 0);
    const int keep = gcpi_onnx_in(m, split, 1) || gcpi_onnx_integer(split, "keepdims", 1);
    for (int i = 0; i < x->rank; i++)
        if (i != axis) d[rank++] = x->d[i];
        else if (keep) d[rank++] = count;
    return gcpi_onnx_shape(m, n, 0, x->type, rank, d);
}
/* A Slice as first element, step and count of each axis. 0: not known, or no slice. */
static int gcpi_onnx_slice(gcpi_onnx *m, const gcpi_onnx_node *n, int *first, int *step, int *count)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t from[GCPI_AXES], to[GCPI_AXES], axes[GCPI_AXES], by[GCPI_AXES];
    const int given = gcpi_onnx_list(m, n, "starts", 1, from, GCPI_AXES),
              ends = gcpi_onnx_list(m, n, "ends", 2, to, GCPI_AXES),
              named = gcpi_onnx_list(m, n, "axes", 3, axes, GCPI_AXES),
              steps = gcpi_onnx_list(m, n, "steps", 4, by, GCPI_AXES);
    if (given < 0 || given > x->rank || ends != given || (named != given && named != -1) ||
        (steps != given && steps != -1))
        return 0;
    for (int i = 0; i < x->rank; i++) first[i] = 0, step[i] = 1, count[i] = x->d[i];
    for (int i = 0; i < given; i++) {
        const int axis = gcpi_onnx_axis(named < 0 ? i : axes[i], x->rank);
        const int64_t s = steps < 0 ? 1 : by[i];
        if (axis < 0 || !s || s > INT32_MAX || s < -INT32_MAX) return 0;
        const int64_t size = x->d[axis], low = s < 0 ? -1 : 0, high = s < 0 ? size - 1 : size;
        int64_t a = from[i] < 0 ? from[i] + size : from[i], b = to[i] < -size ? -1 : to[i] < 0 ? to[i] + size : to[i];
        a = GCPI_MAX(s < 0 ? 0 : low, GCPI_MIN(a, high));
        b = GCPI_MAX(low, GCPI_MIN(b, size));
        first[axis] = (int)a;
        step[axis] = (int)s;
        count[axis] = (int)GCPI_MAX(0, s > 0 ? (b - a + s - 1) / s : (a - b - s - 1) / -s);
    }
    return 1;
}
static int gcpi_shape_slice(gcpi_onnx *m, gcpi_onnx_node *n)
{
    int first[GCPI_AXES], step[GCPI_AXES], count[GCPI_AXES];
    if (!gcpi_onnx_slice(m, n, first, step, count))
        return gcpi_onnx_refuse(m, n, "its bounds are not known before a step");
    return gcpi_shape_part(m, n, 0, count, first, step);
}
static int gcpi_shape_gather(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *index = gcpi_onnx_in(m, n, 1), *y = gcpi_onnx_out(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank);
    int d[2 * GCPI_AXES], rank = 0;
    if (axis < 0 || !y) return gcpi_onnx_refuse(m, n, "its axis is not one of %d", x->rank);
    for (int i = 0; i < axis; i++) d[rank++] = x->d[i];
    for (int i = 0; i < index->rank; i++) d[rank++] = index->d[i];
    for (int i = axis + 1; i < x->rank; i++) d[rank++] = x->d[i];
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d)) return 0;
    const double *from = gcpi_onnx_known(m, x), *at = gcpi_onnx_known(m, index);
    const ptrdiff_t many = gcpi_onnx_elements(index);
    for (ptrdiff_t i = 0; at && i < many; i++)
        if (at[i] < -x->d[axis] || at[i] >= x->d[axis])
            return gcpi_onnx_refuse(m, n, "index %g of %d", at[i], x->d[axis]);
    double *to = from && at ? gcpi_onnx_known_new(m, y) : NULL;
    ptrdiff_t outer = 1, inner = 1;
    for (int k = 0; k < x->rank; k++)
        if (k < axis) outer *= x->d[k];
        else if (k > axis) inner *= x->d[k];
    y->known = to;
    for (ptrdiff_t o = 0; to && o < outer; o++)
        for (ptrdiff_t i = 0; i < many; i++, to += inner) {
            const ptrdiff_t row = (ptrdiff_t)(at[i] < 0 ? at[i] + x->d[axis] : at[i]);
            memcpy(to, from + (o * x->d[axis] + row) * inner, (size_t)inner * sizeof *to);
        }
    return 1;
}

/* ==== src/onnx/onnx_sizes.h ==== */

/* Sizes: of what is made of numbers, and of windows, products, sums, images. Rules as in the room above. */

/* ---- made from numbers ---- */

static int gcpi_shape_constant(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    int64_t list[64];
    if (!y) return 1;
    if (y->data >= 0) {
        const gcpi_onnx_data *d = &m->data[y->data];
        return gcpi_onnx_shape(m, n, 0, d->type, d->rank, d->d);
    }
    const int many = gcpi_onnx_integers(n, "value_ints", list, 64);
    if (many >= 0 && many <= 64) return gcpi_shape_integers(m, n, list, many, 1);
    list[0] = gcpi_onnx_integer(n, "value_int", 0);
    if (gcpi_onnx_given(n, "value_int")) return gcpi_shape_integers(m, n, list, 1, 0);
    int count = 0;
    gcpi_numbers floats = gcpi_numbers_of(gcpi_onnx_attribute(n, "value_floats"), GCPI_ATTRIBUTE_FLOATS, 4);
    for (uint64_t bits; floats.rest.size && gcpi_numbers_next(&floats, &bits);) count++;
    if (!gcpi_onnx_given(n, "value_float") && !count)
        return gcpi_onnx_refuse(m, n, "a constant of another kind than numbers");
    if (!gcpi_onnx_shape(m, n, 0, GCPI_ONNX_FLOAT, count > 0, &count)) return 0;
    double *known = gcpi_onnx_known_new(m, y);
    if (known) known[0] = gcpi_onnx_float(n, "value_float", 0);
    floats = gcpi_numbers_of(gcpi_onnx_attribute(n, "value_floats"), GCPI_ATTRIBUTE_FLOATS, 4);
    for (uint64_t bits; known && count && gcpi_numbers_next(&floats, &bits);) *known++ = gcpi_float_bits(bits);
    y->known = known - (known ? count : 0);
    return 1;
}
static int gcpi_shape_constant_of_shape(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    gcpi_onnx_data value;
    int64_t list[GCPI_AXES];
    int d[GCPI_AXES];
    double x = 0;
    const int rank = gcpi_onnx_list(m, n, "shape", 0, list, GCPI_AXES);
    if (rank < 0 || rank > GCPI_AXES || !y) return gcpi_onnx_refuse(m, n, "its shape is not known before a step");
    for (int i = 0; i < rank; i++) d[i] = list[i] < 0 || list[i] > INT32_MAX ? -1 : (int)list[i];
    gcpi_onnx_data_parse(gcpi_wire_find(gcpi_onnx_attribute(n, "value"), GCPI_ATTRIBUTE_T), &value);
    gcpi_onnx_reader r = gcpi_onnx_reader_of(&value);
    gcpi_onnx_read(&r, &x);
    if (!gcpi_onnx_shape(m, n, 0, value.type ? value.type : GCPI_ONNX_FLOAT, rank, d)) return 0;
    y->uniform = gcpi_onnx_elements(y) > GCPI_ONNX_FOLDED;
    double *known = y->uniform ? GCPI_NEW(m->arena, double, 1) : gcpi_onnx_known_new(m, y);
    for (ptrdiff_t i = 0; known && i < (y->uniform ? 1 : gcpi_onnx_elements(y)); i++) known[i] = x;
    y->known = known;
    return known || m->tape->code || gcpi_onnx_refuse(m, n, "no room for its elements");
}
static int gcpi_shape_range(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    double first, last, step;
    if (!y || !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 0), &first) ||
        !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &last) || !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 2), &step) ||
        step == 0)
        return gcpi_onnx_refuse(m, n, "its bounds are not known before a step");
    const double many = ceil((last - first) / step);
    const int count = many > 0 && many <= GCPI_ONNX_FOLDED ? (int)many : 0;
    if (many > GCPI_ONNX_FOLDED)
        return gcpi_onnx_refuse(m, n, "%g elements; at most %d are folded", many, GCPI_ONNX_FOLDED);
    if (!gcpi_onnx_shape(m, n, 0, gcpi_onnx_in(m, n, 0)->type, 1, &count)) return 0;
    double *known = gcpi_onnx_known_new(m, y);
    for (int i = 0; known && i < count; i++) known[i] = gcpi_fold_rounded(y->type, first + i * step);
    y->known = known;
    return 1;
}
static int gcpi_shape_where(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *c = gcpi_onnx_in(m, n, 0), *a = gcpi_onnx_in(m, n, 1), *b = gcpi_onnx_in(m, n, 2),
                    *y = gcpi_onnx_out(m, n, 0);
    int rank, d[GCPI_AXES];
    if (!y || !gcpi_onnx_broadcast(a, b, &rank, d) || !gcpi_onnx_shape(m, n, 0, a->type, rank, d) ||
        !gcpi_onnx_broadcast(y, c, &rank, d) || !gcpi_onnx_shape(m, n, 0, a->type, rank, d))
        return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    if (!gcpi_onnx_known(m, a) || !gcpi_onnx_known(m, b) || !gcpi_onnx_known(m, c)) return 1;
    const ptrdiff_t scratch = m->arena->scratch;
    const double *is = gcpi_fold_spread(m, c, rank, d), *x = gcpi_fold_spread(m, a, rank, d),
                 *z = gcpi_fold_spread(m, b, rank, d);
    double *known = is && x && z ? gcpi_onnx_known_new(m, y) : NULL;
    for (ptrdiff_t i = 0; known && i < gcpi_onnx_elements(y); i++) known[i] = is[i] != 0 ? x[i] : z[i];
    m->arena->scratch = scratch;
    y->known = known;
    return 1;
}

/* ---- windows ---- */

enum { GCPI_ONNX_SIDE = 1 << 24 }; /* the most of an image's side, a padding, what a window reaches */
/* Windows along up to two axes, height and width: a sequence has a height of 1. */
typedef struct gcpi_onnx_window {
    int axes, k[2], stride[2], dilation[2], before[2], after[2];
} gcpi_onnx_window;

static int gcpi_onnx_along(const gcpi_onnx_node *n, const char *name, int axes, int otherwise, int *to)
{
    int64_t list[4] = { 0 };
    const int count = gcpi_onnx_integers(n, name, list, 4);
    to[0] = to[1] = otherwise;
    if (count < 0) return 1;
    for (int i = 0; i < axes; i++) to[2 - axes + i] = list[i] < 0 || list[i] > GCPI_ONNX_SIDE ? -1 : (int)list[i];
    return count == axes && to[0] >= 0 && to[1] >= 0;
}
/* Whether a window of an image fits in ints: its side, and what the window reaches. */
static int gcpi_onnx_side_fits(int size, int kernel, int dilation)
{
    return size <= GCPI_ONNX_SIDE && (int64_t)dilation * kernel <= GCPI_ONNX_SIDE;
}
/* in: a value of a batch, channels, and one or two axes. Its output's sizes go to out. 0, with a message: refused. */
static int gcpi_onnx_window_of(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x, const int *kernel,
                               gcpi_onnx_window *w, int *out)
{
    const gcpi_excerpt same = gcpi_onnx_string(n, "auto_pad", "NOTSET");
    const int axes = x->rank - 2, ceiling = (int)gcpi_onnx_integer(n, "ceil_mode", 0);
    int64_t pads[4] = { 0, 0, 0, 0 };
    w->axes = axes;
    if (axes < 1 || axes > 2) return gcpi_onnx_refuse(m, n, "a window along %d axes; one or two are allowed", axes);
    const int count = gcpi_onnx_integers(n, "pads", pads, 4);
    if (!gcpi_onnx_along(n, "kernel_shape", axes, 1, w->k) || !gcpi_onnx_along(n, "strides", axes, 1, w->stride) ||
        !gcpi_onnx_along(n, "dilations", axes, 1, w->dilation) || (count >= 0 && count != 2 * axes))
        return gcpi_onnx_refuse(m, n, "its window has not %d axes", axes);
    for (int i = 0, a = 2 - axes; a < 2; i++, a++) {
        if (kernel && gcpi_onnx_given(n, "kernel_shape") && w->k[a] != kernel[i])
            return gcpi_onnx_refuse(m, n, "a kernel_shape that its weight has not");
        if (kernel) w->k[a] = kernel[i];
        if (!gcpi_onnx_side_fits(x->d[2 + i], w->k[a], w->dilation[a]) || pads[i] < 0 || pads[axes + i] < 0 ||
            pads[i] > GCPI_ONNX_SIDE || pads[axes + i] > GCPI_ONNX_SIDE || w->stride[a] < 1 || w->dilation[a] < 1 ||
            w->k[a] < 1)
            return gcpi_onnx_refuse(m, n, "a kernel, stride, dilation, padding or side out of range");
        const int size = x->d[2 + i], reach = w->dilation[a] * (w->k[a] - 1) + 1;
        w->before[a] = (int)pads[i];
        w->after[a] = (int)pads[axes + i];
        if (gcpi_excerpt_is(same, "SAME_UPPER") || gcpi_excerpt_is(same, "SAME_LOWER")) {
            const int pad = GCPI_MAX(((size + w->stride[a] - 1) / w->stride[a] - 1) * w->stride[a] + reach - size, 0);
            w->before[a] = gcpi_excerpt_is(same, "SAME_LOWER") ? pad - pad / 2 : pad / 2;
            w->after[a] = pad - w->before[a];
        } else if (gcpi_excerpt_is(same, "VALID")) w->before[a] = w->after[a] = 0;
        const int room = size + w->before[a] + w->after[a] - reach;
        if (room < 0) return gcpi_onnx_refuse(m, n, "a window of %d on %d", reach, size);
        out[i] = room / w->stride[a] + 1;
        if (ceiling && room % w->stride[a] && out[i] * w->stride[a] < size + w->before[a]) {
            w->after[a] += w->stride[a] - room % w->stride[a]; /* the last window goes over the edge */
            out[i]++;
        }
    }
    w->before[0] *= axes == 2;
    w->after[0] *= axes == 2;
    if (axes == 1) w->k[0] = w->stride[0] = w->dilation[0] = 1;
    return 1;
}
static int gcpi_shape_conv(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1);
    gcpi_onnx_window w;
    int d[GCPI_AXES] = { 0 };
    if (!k || k->rank != x->rank || x->rank < 3)
        return gcpi_onnx_refuse(m, n, "its weight has not as many axes as its input");
    if (!gcpi_onnx_window_of(m, n, x, k->d + 2, &w, d + 2)) return 0;
    if (gcpi_onnx_integer(n, "group", 1) < 1 || gcpi_onnx_integer(n, "group", 1) > x->d[1])
        return gcpi_onnx_refuse(m, n, "a number of groups out of range");
    d[0] = x->d[0];
    d[1] = k->d[0];
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
/* Of a transposed convolution: w's paddings are those of the output that are cut off. */
static int gcpi_onnx_transposed(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x,
                                const gcpi_onnx_value *k, gcpi_onnx_window *w, int *out, int *extra)
{
    const gcpi_excerpt same = gcpi_onnx_string(n, "auto_pad", "NOTSET");
    const int axes = x->rank - 2;
    int64_t pads[4] = { 0, 0, 0, 0 }, shape[4] = { 0, 0, 0, 0 };
    const int count = gcpi_onnx_integers(n, "pads", pads, 4), sized = gcpi_onnx_integers(n, "output_shape", shape, 4);
    w->axes = axes;
    if (axes < 1 || axes > 2) return gcpi_onnx_refuse(m, n, "a window along %d axes; one or two are allowed", axes);
    if (!gcpi_onnx_along(n, "strides", axes, 1, w->stride) || !gcpi_onnx_along(n, "dilations", axes, 1, w->dilation) ||
        !gcpi_onnx_along(n, "output_padding", axes, 0, extra) || (count >= 0 && count != 2 * axes))
        return gcpi_onnx_refuse(m, n, "its window has not %d axes", axes);
    w->k[0] = 1;
    w->before[0] = w->after[0] = 0;
    for (int i = 0, a = 2 - axes; a < 2; i++, a++) {
        w->k[a] = k->d[2 + i];
        if (!gcpi_onnx_side_fits(x->d[2 + i], w->k[a], w->dilation[a]) || pads[i] < 0 || pads[axes + i] < 0 ||
            pads[i] > GCPI_ONNX_SIDE || pads[axes + i] > GCPI_ONNX_SIDE || shape[i] > GCPI_ONNX_SIDE ||
            (int64_t)x->d[2 + i] * w->stride[a] > GCPI_ONNX_SIDE || (sized >= 0 && sized != axes))
            return gcpi_onnx_refuse(m, n, "a kernel, stride, dilation, padding, side or output_shape out of range");
        w->before[a] = (int)pads[i];
        w->after[a] = (int)pads[axes + i];
        const int all = (x->d[2 + i] - 1) * w->stride[a] + extra[a] + w->dilation[a] * (w->k[a] - 1) + 1;
        const int to = sized >= 0 ? (int)shape[i]
                     : gcpi_excerpt_is(same, "SAME_UPPER") || gcpi_excerpt_is(same, "SAME_LOWER")
                         ? x->d[2 + i] * w->stride[a]
                         : 0;
        if (to > 0) {
            const int cut = all - to;
            w->before[a] = gcpi_excerpt_is(same, "SAME_UPPER") ? cut / 2 : cut - cut / 2;
            w->after[a] = cut - w->before[a];
        }
        out[i] = all - w->before[a] - w->after[a];
        if (w->before[a] < 0 || w->after[a] < 0 || out[i] < 1)
            return gcpi_onnx_refuse(m, n, "a padding or an output_shape out of range");
    }
    return 1;
}
static int gcpi_shape_conv_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1);
    gcpi_onnx_window w;
    int d[GCPI_AXES] = { 0 }, extra[2];
    if (!k || k->rank != x->rank || x->rank < 3)
        return gcpi_onnx_refuse(m, n, "its weight has not as many axes as its input");
    if (!gcpi_onnx_transposed(m, n, x, k, &w, d + 2, extra)) return 0;
    d[0] = x->d[0];
    const int64_t groups = gcpi_onnx_integer(n, "group", 1);
    if (groups < 1 || groups > x->d[1] || (int64_t)k->d[1] * groups > INT32_MAX)
        return gcpi_onnx_refuse(m, n, "a number of groups out of range");
    d[1] = k->d[1] * (int)groups;
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_pool(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    gcpi_onnx_window w;
    int d[GCPI_AXES] = { 0 };
    if (x->rank < 3) return gcpi_onnx_refuse(m, n, "an input of %d axes", x->rank);
    if (!gcpi_onnx_window_of(m, n, x, NULL, &w, d + 2)) return 0;
    d[0] = x->d[0];
    d[1] = x->d[1];
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_global(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int d[GCPI_AXES];
    for (int i = 0; i < x->rank; i++) d[i] = i < 2 ? x->d[i] : 1;
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}

/* ---- products, sums ---- */

static int gcpi_shape_gemm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1);
    const int ta = gcpi_onnx_integer(n, "transA", 0) != 0, tb = gcpi_onnx_integer(n, "transB", 0) != 0;
    int d[2];
    if (!b || a->rank != 2 || b->rank != 2 || a->d[!ta] != b->d[tb])
        return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    d[0] = a->d[ta];
    d[1] = b->d[!tb];
    return gcpi_onnx_shape(m, n, 0, a->type, 2, d);
}
static int gcpi_shape_matmul(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value a = *gcpi_onnx_in(m, n, 0), b = *gcpi_onnx_in(m, n, 1);
    int d[GCPI_AXES], rank, rows, columns;
    if (!a.rank || !b.rank || a.rank > GCPI_AXES - 1 || b.rank > GCPI_AXES - 1)
        return gcpi_onnx_refuse(m, n, "a number as operand");
    if (a.rank == 1) {
        a.d[1] = a.d[0];
        a.d[0] = 1;
    }
    if (b.rank == 1) b.d[1] = 1;
    const int ra = GCPI_MAX(a.rank, 2), rb = GCPI_MAX(b.rank, 2);
    rows = a.d[ra - 2];
    columns = b.d[rb - 1];
    if (a.d[ra - 1] != b.d[rb - 2])
        return gcpi_onnx_refuse(m, n, "rows of %d times columns of %d", a.d[ra - 1], b.d[rb - 2]);
    const int one = a.rank == 1, other = b.rank == 1;
    a.rank = ra - 2;
    b.rank = rb - 2;
    if (!gcpi_onnx_broadcast(&a, &b, &rank, d)) return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    if (!one) d[rank++] = rows;
    if (!other) d[rank++] = columns;
    return gcpi_onnx_shape(m, n, 0, a.type, rank, d);
}
/* Bits of the axes that a Reduce op sums up. */
static int gcpi_onnx_reduced(gcpi_onnx *m, const gcpi_onnx_node *n, int rank)
{
    int64_t list[GCPI_AXES];
    const int none = gcpi_onnx_list(m, n, "axes", 1, list, GCPI_AXES) <= 0, all = (1 << rank) - 1;
    if (none) return gcpi_onnx_integer(n, "noop_with_empty_axes", 0) ? 0 : all;
    return gcpi_onnx_axes(m, n, 1, rank, all);
}
static int gcpi_shape_reduce(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    const int keep = gcpi_onnx_integer(n, "keepdims", 1) != 0, axes = gcpi_onnx_reduced(m, n, x->rank);
    int d[GCPI_AXES], rank = 0;
    if (axes < 0 || !y) return gcpi_onnx_refuse(m, n, "its axes are not known, or not of %d", x->rank);
    for (int i = 0; i < x->rank; i++)
        if (!(axes >> i & 1)) d[rank++] = x->d[i];
        else if (keep) d[rank++] = 1;
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d)) return 0;
    const double *known = axes == (1 << x->rank) - 1 ? gcpi_onnx_known(m, x) : NULL;
    double *to = known ? gcpi_onnx_known_new(m, y) : NULL;
    const int product = gcpi_excerpt_is(n->op, "ReduceProd"), least = gcpi_excerpt_is(n->op, "ReduceMin"),
              most = gcpi_excerpt_is(n->op, "ReduceMax");
    if (!product && !least && !most && !gcpi_excerpt_is(n->op, "ReduceSum")) to = NULL;
    for (ptrdiff_t i = 0; to && i < gcpi_onnx_elements(x); i++)
        *to = !i      ? known[0]
            : product ? *to * known[i]
            : least   ? GCPI_MIN(*to, known[i])
            : most    ? GCPI_MAX(*to, known[i])
                      : *to + known[i];
    y->known = to;
    return 1;
}

/* ---- images ---- */

static int gcpi_shape_pad(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t pads[2 * GCPI_AXES];
    int d[GCPI_AXES];
    const int count = gcpi_onnx_list(m, n, "pads", 1, pads, 2 * GCPI_AXES),
              axes = gcpi_onnx_axes(m, n, 3, x->rank, (1 << x->rank) - 1);
    int named = 0;
    for (int i = 0; i < x->rank; i++) named += axes >= 0 && axes >> i & 1;
    if (axes < 0 || count != 2 * named)
        return gcpi_onnx_refuse(m, n, "its pads are not known, or not two for each axis");
    for (int i = 0, k = 0; i < x->rank; i++) {
        d[i] = x->d[i];
        if (!(axes >> i & 1)) continue;
        const int64_t size = x->d[i] + pads[k] + pads[named + k];
        if (pads[k] > 1 << 24 || pads[named + k] > 1 << 24 || size < 1)
            return gcpi_onnx_refuse(m, n, "a padded size of %lld", (long long)size);
        d[i] = (int)size;
        k++;
    }
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_resize(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    const int upsample = gcpi_excerpt_is(n->op, "Upsample"), old = upsample || m->opset < 11;
    gcpi_onnx_value *scales = gcpi_onnx_in(m, n, old ? 1 : 2), *sizes = old ? NULL : gcpi_onnx_in(m, n, 3);
    int64_t axes[GCPI_AXES];
    const int named = gcpi_onnx_integers(n, "axes", axes, GCPI_AXES);
    const double *by = sizes ? gcpi_onnx_elements_of(m, sizes) : gcpi_onnx_elements_of(m, scales);
    const ptrdiff_t many = by ? gcpi_onnx_elements(sizes ? sizes : scales) : 0;
    int d[GCPI_AXES];
    memcpy(d, x->d, sizeof d);
    if (!by || many != (named < 0 ? x->rank : named))
        return gcpi_onnx_refuse(m, n, "its sizes are not known before a step");
    if (!gcpi_excerpt_is(gcpi_onnx_string(n, "keep_aspect_ratio_policy", "stretch"), "stretch"))
        return gcpi_onnx_refuse(m, n, "keep_aspect_ratio_policy other than stretch");
    for (int i = 0; i < many; i++) {
        const int axis = gcpi_onnx_axis(named < 0 ? i : axes[i], x->rank);
        const double size = axis < 0 ? 0 : sizes ? by[i] : floor(x->d[axis] * by[i]);
        if (!(size >= 1 && size < 1 << 28)) return gcpi_onnx_refuse(m, n, "a size of %g", size);
        d[axis] = (int)size;
    }
    return gcpi_onnx_shape(m, n, 0, x->type, x->rank, d);
}
static int gcpi_shape_depth(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    const int to_space = gcpi_excerpt_is(n->op, "DepthToSpace"), b = (int)gcpi_onnx_integer(n, "blocksize", 0);
    int d[4];
    if (x->rank != 4 || b < 1 || b > 1 << 10 || (to_space ? x->d[1] % (b * b) : x->d[2] % b || x->d[3] % b))
        return gcpi_onnx_refuse(m, n, "its blocks do not fit its image");
    d[0] = x->d[0];
    d[1] = to_space ? x->d[1] / (b * b) : x->d[1] * b * b;
    d[2] = to_space ? x->d[2] * b : x->d[2] / b;
    d[3] = to_space ? x->d[3] * b : x->d[3] / b;
    return gcpi_onnx_shape(m, n, 0, x->type, 4, d);
}
/* Opset 23: of three axes (samples, tokens, channels of all heads) or four (samples, heads, tokens, channels). */
static int gcpi_shape_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *q = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1), *v = gcpi_onnx_in(m, n, 2);
    const int heads = (int)gcpi_onnx_integer(n, "q_num_heads", 1),
              shared = (int)gcpi_onnx_integer(n, "kv_num_heads", heads);
    int d[4];
    if (!k || !v || q->rank != k->rank || q->rank != v->rank || q->rank < 3 || q->rank > 4 || heads < 1 || shared < 1)
        return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    memcpy(d, q->d, sizeof d);
    d[q->rank - 1] = q->rank == 4 ? v->d[3] : v->d[2] / shared * heads;
    return gcpi_onnx_shape(m, n, 0, q->type, q->rank, d);
}
/* Its output is of its own kind; a rule of its own would say no more: batch-norm's statistics have no reader. */
static int gcpi_shape_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_shape_like(m, n, 0, gcpi_onnx_in(m, n, 0));
}

/* ==== src/onnx/order.h ==== */

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

/* ==== src/onnx/operands.h ==== */

/* From values to tensors. Weights are made where they are first used, in the order that their op wants; other values
   are moved where they lie in another. */

static gcp_op_opts gcpi_onnx_opts(const gcpi_onnx *m)
{
    gcp_op_opts o;
    o.at = m->at;
    o.name = NULL;
    return o;
}
/* A shape as the user would write it. */
static gcp_shape gcpi_onnx_rank(gcp_shape s)
{
    if (s.d[0] == 1 && s.d[1] == 1 && s.d[2] == 1) return gcpi_raw(1, s.d[3], 0, 0, 0);
    if (s.d[1] == 1 && s.d[2] == 1) return gcpi_raw(2, s.d[0], s.d[3], 0, 0);
    if (s.d[1] == 1) return gcpi_raw(3, s.d[0], s.d[2], s.d[3], 0);
    return gcpi_raw(4, s.d[0], s.d[1], s.d[2], s.d[3]);
}
static gcp_tensor gcpi_onnx_reshape(gcpi_onnx *m, gcp_tensor x, gcp_shape s)
{
    if (gcp_is_nil(x) || gcpi_same_shape(gcp_shape_of(x), s)) return x;
    return gcp_reshape_at(x, gcpi_onnx_rank(s), gcpi_onnx_opts(m));
}

/* ---- moving ---- */

/* Two blocks of memory change places: those that begin at j and k, with `length` factors from k on. */
static gcp_tensor gcpi_onnx_swap(gcpi_onnx *m, gcp_tensor x, gcpi_onnx_order *o, int j, int k, int length)
{
    int moved[GCPI_FACTORS];
    const int a = (int)gcpi_onnx_order_elements(o, 0, j), b = (int)gcpi_onnx_order_elements(o, j, k),
              c = (int)gcpi_onnx_order_elements(o, k, k + length),
              d = (int)gcpi_onnx_order_elements(o, k + length, o->count);
    x = gcpi_onnx_reshape(m, x, gcpi_raw(4, a, b, c, d));
    x = gcp_transpose_at(x, 0, 2, 1, 3, gcpi_onnx_opts(m));
    memcpy(moved, o->memory + k, (size_t)length * sizeof *moved);
    memmove(o->memory + j + length, o->memory + j, (size_t)(k - j) * sizeof *moved);
    memcpy(o->memory + j, moved, (size_t)length * sizeof *moved);
    return x;
}
/* Blocks of memory that stay together on the way to want. Returns how many; first[b]: where block b begins in want. */
static int gcpi_onnx_order_blocks(const gcpi_onnx_order *o, const int *want, int *first)
{
    int count = 0;
    for (int j = 0; j < o->count; j++)
        if (!j || gcpi_onnx_order_place(o, want[j]) != gcpi_onnx_order_place(o, want[j - 1]) + 1) first[count++] = j;
    first[count] = o->count;
    return count;
}
static void gcpi_onnx_moved(const gcpi_onnx *m, const gcpi_onnx_value *v)
{
    char name[80];
    if (m->report.write)
        gcpi_say(m->report, "moved: the %td elements of '%s', for an op that wants them in another order\n",
                 gcpi_onnx_elements(v), gcpi_excerpt_text(v->name, name, sizeof name));
}
/* All at once where four axes are enough, else a swap after the other. */
static gcp_tensor gcpi_onnx_move(gcpi_onnx *m, gcp_tensor x, gcpi_onnx_order *o, const int *want)
{
    int first[GCPI_FACTORS + 1], from[4] = { 0 }, rank[4], size[4] = { 1, 1, 1, 1 };
    const int blocks = gcpi_onnx_order_blocks(o, want, first);
    if (blocks <= 1) return x;
    for (int b = 0; b < blocks && blocks <= 4; b++) {
        from[b] = gcpi_onnx_order_place(o, want[first[b]]);
        rank[b] = 0;
        for (int c = 0; c < blocks; c++) rank[b] += gcpi_onnx_order_place(o, want[first[c]]) < from[b];
        for (int j = first[b]; j < first[b + 1]; j++) size[rank[b]] *= o->size[want[j]];
    }
    if (blocks <= 4) {
        for (int b = blocks; b < 4; b++) rank[b] = b;
        x = gcpi_onnx_reshape(m, x, gcpi_raw(4, size[0], size[1], size[2], size[3]));
        x = gcp_transpose_at(x, rank[0], rank[1], rank[2], rank[3], gcpi_onnx_opts(m));
        memcpy(o->memory, want, (size_t)o->count * sizeof *want);
        return x;
    }
    for (int j = 0; j < o->count; j++) {
        const int k = gcpi_onnx_order_place(o, want[j]);
        int length = 1;
        while (k + length < o->count && j + length < o->count && o->memory[k + length] == want[j + length]) length++;
        if (k != j) x = gcpi_onnx_swap(m, x, o, j, k, length);
    }
    return x;
}

/* ---- weights ---- */

/* The name of a parameter: the initialiser's, in which what gcp does not allow in names became '_'. A second one that
   would be the same ends in _2, a third one in _3. */
static void gcpi_onnx_plain_name(gcpi_excerpt name, char *text, size_t size)
{
    gcpi_excerpt_text(name, text, size);
    for (char *c = text; *c; c++)
        if (strchr(" /#[*?", *c)) *c = '_';
    if (!*text) snprintf(text, size, "_");
}
static void gcpi_onnx_free_name(gcp_tape *t, gcpi_excerpt name, char *text, size_t size)
{
    gcpi_onnx_plain_name(name, text, size);
    const size_t length = GCPI_MIN(strlen(text), size - 12); /* room for any number */
    for (int i = 2; gcpi_name_find(t, 0, text, gcpi_name_hash(0, text)); i++)
        snprintf(text + length, size - length, "_%d", i);
}
/* Where two orders of the same elements have boundaries in the file, both get them. The file's order is that of memory,
   or, of a weight's order, that of the factors (weight 1). 0: they do not nest. */
static int gcpi_onnx_order_cut(gcpi_onnx_order *o, int weight,
                               ptrdiff_t step) /* a boundary before every `step` elements */
{
    ptrdiff_t below = 1;
    for (int j = o->count - 1; j >= 0; j--) {
        const int f = weight ? j : o->memory[j], size = o->size[f];
        if (step > below && step < below * size)
            return step % below == 0 && size % (step / below) == 0 &&
                   gcpi_onnx_order_split(o, f, size / (int)(step / below));
        below *= size;
    }
    return 1;
}
static int gcpi_onnx_order_refine(gcpi_onnx_order *o, int weight, const gcpi_onnx_order *by)
{
    ptrdiff_t step = 1;
    for (int j = by->count - 1; j > 0; j--)
        if (!gcpi_onnx_order_cut(o, weight, step *= by->size[weight ? by->memory[j] : j])) return 0;
    return 1;
}
/* A weight's order: its factors in the file's order, and want in terms of them. o: of a value whose memory is the
   file's. */
static gcpi_onnx_order gcpi_onnx_file_order(const gcpi_onnx_order *o, const int *want)
{
    gcpi_onnx_order r;
    memset(&r, 0, sizeof r);
    r.rank = 1;
    r.d[0] = 1;
    r.count = o->count;
    for (int j = 0; j < o->count; j++) {
        r.size[j] = o->size[o->memory[j]];
        r.memory[j] = gcpi_onnx_order_place(o, want[j]);
        r.d[0] *= r.size[j];
    }
    gcpi_onnx_order_tidy(&r, 1);
    return r;
}
static gcpi_onnx_weight *gcpi_onnx_weight_of(gcpi_onnx *m, int source)
{
    for (int i = 0; i < m->weight_count; i++)
        if (m->weights[i].source == source) return &m->weights[i];
    return NULL;
}
/* A new parameter for a source. It is the tape's, whatever segment is open. */
static gcp_tensor gcpi_onnx_parameter(gcpi_onnx *m, int source, const gcpi_onnx_order *order, gcp_shape shape)
{
    char name[200], path[204];
    gcp_param_opts o = GCP_OPTS(gcp_param_opts, );
    const int constant = source < 0 || source >= m->data_count || !gcpi_onnx_trains(m, source);
    gcpi_excerpt text = source < 0             ? gcpi_excerpt_of("number", 6)
                      : source < m->data_count ? m->data[source].name
                                               : m->values[source - m->data_count].name;
    if (m->weight_count == m->weight_capacity) {
        gcpi_fail(m->tape, GCP_E_CAPACITY, m->at, m->call, "more than %d weights and constants", m->weight_capacity);
        return gcpi_nil(m->tape);
    }
    gcpi_onnx_free_name(m->tape, text, name, sizeof name);
    snprintf(path, sizeof path, "/%s", name);
    o.at = m->at;
    gcp_tensor x = gcp_param_at(m->tape, path, gcpi_onnx_rank(shape), o);
    if (gcp_is_nil(x)) return x;
    gcpi_onnx_weight *w = &m->weights[m->weight_count++];
    w->source = source;
    w->order = *order;
    w->tensor = x;
    return constant ? gcp_freeze_at(x, m->at) : x;
}
/* A number as a tensor of one element, where an op has no option for it. */
static gcp_tensor gcpi_onnx_number_tensor(gcpi_onnx *m, double number)
{
    gcpi_onnx_order none;
    gcpi_onnx_order_set(&none, 0, NULL);
    const gcp_tensor x = gcpi_onnx_parameter(m, -1, &none, gcpi_raw(4, 1, 1, 1, 1));
    if (!gcp_is_nil(x)) m->weights[m->weight_count - 1].number = number;
    return x;
}
/* A weight or constant that has its parameter already is a value like others. */
static void gcpi_onnx_bind(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const gcpi_onnx_weight *w = v->source < 0 ? NULL : gcpi_onnx_weight_of(m, v->source);
    int file[GCPI_FACTORS];
    char name[80];
    if (v->source < 0 && gcp_is_nil(v->tensor)) {
        gcpi_fail(m->tape, GCP_E_DTYPE, m->at, m->call, "'%s' is of %s; floats are allowed there",
                  gcpi_excerpt_text(v->name, name, sizeof name), gcpi_onnx_type_name(v->type));
        gcpi_onnx_order_set(&v->order, v->rank, v->d);
    }
    if (!w) return;
    if (gcpi_get(w->tensor)->kind == GCPI_STATISTIC)
        gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call, "'%s' is a running statistic, and is read as a weight, too",
                  gcpi_excerpt_text(v->name, name, sizeof name));
    gcpi_onnx_order lies = w->order;
    if (!gcpi_onnx_order_refine(&v->order, 0, &lies) || !gcpi_onnx_order_refine(&lies, 1, &v->order))
        gcpi_fail(m->tape, GCP_E_SHAPE, m->at, m->call, "a weight is read in two shapes that do not nest");
    memcpy(file, v->order.memory, sizeof file);
    for (int j = 0; j < lies.count && !m->tape->code; j++) v->order.memory[j] = file[lies.memory[j]];
    v->tensor = w->tensor;
    v->source = -1;
}

/* ---- a value as an op wants it ---- */

/* v, bound, with its factors in the order of `want`, and this shape. A weight is made so. What was moved is kept beside
   v for the next that asks. */
static gcp_tensor gcpi_onnx_arranged(gcpi_onnx *m, gcpi_onnx_value *v, const int *want, gcp_shape shape)
{
    if (v->source >= 0) {
        const gcpi_onnx_order order = gcpi_onnx_file_order(&v->order, want);
        v->tensor = gcpi_onnx_parameter(m, v->source, &order, shape);
        memcpy(v->order.memory, want, (size_t)v->order.count * sizeof *want);
        v->source = -1;
    }
    if (gcpi_onnx_order_is(&v->order, want)) return gcpi_onnx_reshape(m, v->tensor, shape);
    if (gcp_is_nil(v->other) || !gcpi_onnx_order_is(&v->other_order, want)) {
        v->other_order = v->order;
        v->other = gcpi_onnx_move(m, v->tensor, &v->other_order, want);
        gcpi_onnx_moved(m, v);
    }
    return gcpi_onnx_reshape(m, v->other, shape);
}
static gcp_tensor gcpi_onnx_get(gcpi_onnx *m, gcpi_onnx_value *v, const char *layout)
{
    int want[GCPI_FACTORS];
    gcpi_onnx_bind(m, v);
    gcpi_layout_factors(&v->order, layout, want);
    return gcpi_onnx_arranged(m, v, want, gcpi_layout_shape(&v->order, layout));
}
/* A value as gcp has it: an image channels last. */
static gcp_tensor gcpi_onnx_usual(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const char *layout = gcpi_layout_usual(v->rank);
    v->tensor = gcpi_onnx_get(m, v, layout);
    gcpi_onnx_order_make(&v->order, layout, v->rank, v->d);
    v->other = gcpi_nil(m->tape);
    return v->tensor;
}
/* v as it lies, or in its own order where it is a weight. */
static gcp_tensor gcpi_onnx_any(gcpi_onnx *m, gcpi_onnx_value *v)
{
    gcpi_onnx_bind(m, v);
    return v->source >= 0 ? gcpi_onnx_get(m, v, gcpi_layout_plain(v->rank)) : v->tensor;
}
/* A shape of as many elements, whose last size is `last`; sizes of x that stay whole are kept. */
static gcp_shape gcpi_onnx_rows_shape(gcp_tensor x, ptrdiff_t last)
{
    gcp_shape s = gcp_shape_of(x), r = gcpi_raw(4, 1, 1, 1, (int)last);
    if (gcp_is_nil(x)) return r;
    ptrdiff_t rest = (ptrdiff_t)gcpi_count(s) / last;
    for (int i = 0; i < 3 && rest % s.d[i] == 0; i++) {
        r.d[i] = s.d[i];
        rest /= s.d[i];
    }
    r.d[2] *= (int)rest;
    return r;
}
/* The axes of v from `axis` on as channels, in the order in which they lie there, if they do; o: the order of that. */
static gcp_tensor gcpi_onnx_rows(gcpi_onnx *m, gcpi_onnx_value *v, int axis, gcpi_onnx_order *o, int *trailing)
{
    gcp_tensor x = gcpi_onnx_any(m, v);
    *o = v->order;
    *trailing = gcpi_onnx_order_trailing(o, axis);
    if (*trailing < 0) {
        int want[GCPI_FACTORS], rest = 0, count = 0;
        for (int j = 0; j < o->count; j++)
            if (o->axis[o->memory[j]] < axis) want[rest++] = o->memory[j];
        for (int f = 0; f < o->count; f++)
            if (o->axis[f] >= axis) want[rest + count++] = f;
        x = gcpi_onnx_arranged(m, v, want, gcpi_raw(4, 1, 1, (int)gcpi_onnx_order_elements(o, 0, o->count), 1));
        memcpy(o->memory, want, sizeof o->memory);
        *trailing = count;
        x = gcpi_onnx_reshape(m, x,
                              gcpi_raw(4, (int)(rest ? gcpi_onnx_order_elements(o, 0, 1) : 1), 1,
                                       (int)(rest ? gcpi_onnx_order_elements(o, 1, rest) : 1),
                                       (int)gcpi_onnx_order_elements(o, rest, o->count)));
    }
    return gcpi_onnx_reshape(m, x,
                             gcpi_onnx_rows_shape(x, gcpi_onnx_order_elements(o, o->count - *trailing, o->count)));
}
/* Cuts v's factors where those of axis k of o, v's axis `axis`, are cut. 0: they do not nest. */
static int gcpi_onnx_cut_axis(gcpi_onnx_value *v, int axis, const gcpi_onnx_order *o, int k)
{
    int f = 0, g = 0;
    while (f < v->order.count && v->order.axis[f] < axis) f++;
    while (g < o->count && o->axis[g] < k) g++;
    for (; f < v->order.count && v->order.axis[f] == axis; f++, g++) {
        if (g == o->count || o->axis[g] != k) return 0;
        if (v->order.size[f] == o->size[g]) continue;
        if (!o->size[g] || v->order.size[f] % o->size[g] || !gcpi_onnx_order_split(&v->order, f, o->size[g])) return 0;
        v->other = gcpi_nil(v->tensor.tape);
    }
    return 1;
}
/* The place of v's factor f among those of its axis, and the factor with such a place. */
static int gcpi_onnx_order_nth(const gcpi_onnx_order *o, int axis, int nth)
{
    for (int f = 0; f < o->count; f++)
        if (o->axis[f] == axis && !nth--) return f;
    return -1;
}
static int gcpi_onnx_order_rank_in_axis(const gcpi_onnx_order *o, int f)
{
    int n = 0;
    while (f > n && o->axis[f - n - 1] == o->axis[f]) n++;
    return n;
}
/* A weight of the axes from `axis` on, in the order in which they lie in rows of o: their gamma. */
static gcp_tensor gcpi_onnx_along_rows(gcpi_onnx *m, gcpi_onnx_value *v, int axis, const gcpi_onnx_order *o,
                                       int trailing)
{
    int want[GCPI_FACTORS];
    gcpi_onnx_bind(m, v);
    for (int i = 0; i < v->rank; i++)
        if (!gcpi_onnx_cut_axis(v, i, o, axis + i)) return gcpi_nil(m->tape);
    for (int j = 0; j < trailing; j++) {
        const int f = o->memory[o->count - trailing + j];
        want[j] = gcpi_onnx_order_nth(&v->order, o->axis[f] - axis, gcpi_onnx_order_rank_in_axis(o, f));
        if (want[j] < 0) return gcpi_nil(m->tape);
    }
    return gcpi_onnx_arranged(m, v, want,
                              gcpi_raw(4, 1, 1, 1, (int)gcpi_onnx_order_elements(o, o->count - trailing, o->count)));
}

/* ---- results ---- */

static int gcpi_onnx_put(gcpi_onnx *m, gcpi_onnx_node *n, int output, gcp_tensor x, const gcpi_onnx_order *o)
{
    gcpi_onnx_value *v = gcpi_onnx_out(m, n, output);
    if (gcp_is_nil(x)) return 0;
    if (!v) return 1;
    if ((ptrdiff_t)gcp_elements(x) != gcpi_onnx_elements(v) || o->rank != v->rank ||
        memcmp(o->d, v->d, (size_t)o->rank * sizeof *o->d))
        return gcpi_onnx_refuse(m, n, "its shape was foretold wrong: a mistake in gcp");
    v->tensor = x;
    v->order = *o;
    return 1;
}
/* x lies in this layout of the output's axes. */
static int gcpi_onnx_put_layout(gcpi_onnx *m, gcpi_onnx_node *n, int output, gcp_tensor x, const char *layout)
{
    const gcpi_onnx_value *v = gcpi_onnx_out(m, n, output);
    gcpi_onnx_order o;
    if (!v) return 1;
    gcpi_onnx_order_make(&o, layout, v->rank, v->d);
    return gcpi_onnx_put(m, n, output, x, &o);
}
/* A value to be changed. What x has in another order is not its own: that order's factors are x's. */
static gcpi_onnx_value gcpi_onnx_copy(const gcpi_onnx_value *x)
{
    gcpi_onnx_value v = *x;
    v.known = NULL;
    v.other = gcpi_nil(x->tensor.tape);
    return v;
}
/* x becomes a result of its own. */
static void gcpi_onnx_becomes(const gcpi_onnx *m, gcpi_onnx_value *x, gcp_tensor y)
{
    x->tensor = y;
    x->other = gcpi_nil(m->tape);
    x->source = -1;
}
/* A copy's axes in another order. */
static void gcpi_onnx_turn(gcpi_onnx_value *x, const int *axes)
{
    gcpi_onnx_order_transpose(&x->order, axes);
    memcpy(x->d, x->order.d, sizeof x->d);
}
/* An output is this value in other axes. Where one of them would be cut across, x goes into its own order first. */
static int gcpi_onnx_put_value(gcpi_onnx *m, gcpi_onnx_node *n, int output, const gcpi_onnx_value *x)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, output), plain = gcpi_onnx_copy(x);
    if (!y) return 1;
    y->order = x->order;
    if (!gcpi_onnx_order_reshape(&y->order, y->rank, y->d)) {
        gcpi_onnx_becomes(m, &plain, gcpi_onnx_get(m, &plain, gcpi_layout_plain(x->rank)));
        gcpi_onnx_order_set(&y->order, y->rank, y->d);
    }
    y->tensor = plain.tensor;
    y->source = plain.source;
    return y->source >= 0 || !gcp_is_nil(y->tensor);
}

/* ==== src/onnx/onnx_elements.h ==== */

/* Ops of elements: activations, and two operands. */

#define GCPI_ONNX_OPTS(type, o)                          \
    gcp_##type##_opts o = GCP_OPTS(gcp_##type##_opts, ); \
    o.at = m->at

/* An option whose 0 would mean its default. */
static double gcpi_onnx_exactly(double x) { return x == 0 ? GCP_ZERO : x; }

/* y is f of each element of input 0. */
static int gcpi_onnx_put_like(gcpi_onnx *m, gcpi_onnx_node *n, gcp_tensor y)
{
    return gcpi_onnx_put(m, n, 0, y, &gcpi_onnx_in(m, n, 0)->order);
}
static int gcpi_onnx_plain(gcpi_onnx *m, gcpi_onnx_node *n)
{
    static const struct {
        const char *op;
        gcp_tensor (*record)(gcp_tensor x, gcp_op_opts o);
    } ops[] = { { "Relu", gcp_relu_at },
                { "Sigmoid", gcp_sigmoid_at },
                { "Tanh", gcp_tanh_at },
                { "Exp", gcp_exp_at },
                { "Log", gcp_log_at },
                { "Sqrt", gcp_sqrt_at },
                { "Abs", gcp_abs_at },
                { "Neg", gcp_neg_at },
                { "Reciprocal", gcp_reciprocal_at },
                { "HardSwish", gcp_hard_swish_at },
                { "Mish", gcp_mish_at } };
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (gcpi_excerpt_is(n->op, ops[i].op)) return gcpi_onnx_put_like(m, n, ops[i].record(x, gcpi_onnx_opts(m)));
    return 0;
}
/* What gcp has as a part of another op alone. */
static int gcpi_onnx_part(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_refuse(m, n, "only as a part of a GELU, of dropout, or of stochastic depth");
}
static int gcpi_onnx_leaky_relu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(leaky_relu, o);
    const double slope = gcpi_onnx_float(n, "alpha", 0.01);
    if (slope < 0) return gcpi_onnx_refuse(m, n, "alpha = %g; at least 0 is allowed", slope);
    o.slope = gcpi_onnx_exactly(slope);
    return gcpi_onnx_put_like(m, n, gcp_leaky_relu_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}
static gcp_tensor gcpi_onnx_scaled(gcpi_onnx *m, gcp_tensor x, double by)
{
    GCPI_ONNX_OPTS(scale, o);
    o.by = gcpi_onnx_exactly(by);
    return by == 1 ? x : gcp_scale_at(x, o);
}
/* Elu, Selu, Celu: scale elu(x / by) with its alpha. */
static int gcpi_onnx_elu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(elu, o);
    const int selu = gcpi_excerpt_is(n->op, "Selu"), celu = gcpi_excerpt_is(n->op, "Celu");
    const double alpha = gcpi_onnx_float(n, "alpha", selu ? 1.67326319217681884765625 : 1),
                 scale = selu ? gcpi_onnx_float(n, "gamma", 1.05070102214813232421875)
                       : celu ? alpha
                              : 1;
    gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    if (alpha < 0 || (celu && alpha == 0)) return gcpi_onnx_refuse(m, n, "alpha = %g; at least 0 is allowed", alpha);
    o.alpha = celu ? 1 : gcpi_onnx_exactly(alpha);
    if (celu) x = gcpi_onnx_scaled(m, x, 1 / alpha);
    return gcpi_onnx_put_like(m, n, gcpi_onnx_scaled(m, gcp_elu_at(x, o), scale));
}
static int gcpi_onnx_hard_sigmoid(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(hard_sigmoid, o);
    o.slope = gcpi_onnx_exactly(gcpi_onnx_float(n, "alpha", 0.2));
    if (fabs(o.slope - 1.0 / 6) < 1e-7) o.slope = 1.0 / 6; /* as a float the file cannot say it */
    o.offset = gcpi_onnx_exactly(gcpi_onnx_float(n, "beta", 0.5));
    return gcpi_onnx_put_like(m, n, gcp_hard_sigmoid_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}
static int gcpi_onnx_softplus(gcpi_onnx *m, gcpi_onnx_node *n)
{
    GCPI_ONNX_OPTS(softplus, o);
    return gcpi_onnx_put_like(m, n, gcp_softplus_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}
static int gcpi_onnx_gelu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    const gcpi_excerpt how = gcpi_onnx_string(n, "approximate", "none");
    const int quick = gcpi_excerpt_is(how, "tanh");
    if (!quick && !gcpi_excerpt_is(how, "none")) return gcpi_onnx_refuse(m, n, "approximate is neither none nor tanh");
    return gcpi_onnx_put_like(m, n, quick ? gcp_gelu_tanh_at(x, gcpi_onnx_opts(m)) : gcp_gelu_at(x, gcpi_onnx_opts(m)));
}
static int gcpi_onnx_swish(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const double alpha = gcpi_onnx_float(n, "alpha", 1);
    if (alpha == 0) return gcpi_onnx_refuse(m, n, "alpha = 0");
    const gcp_tensor x = gcpi_onnx_scaled(m, gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), alpha);
    return gcpi_onnx_put_like(m, n, gcpi_onnx_scaled(m, gcp_silu_at(x, gcpi_onnx_opts(m)), 1 / alpha));
}
static int gcpi_onnx_softsign(gcpi_onnx *m, gcpi_onnx_node *n) /* x / (1 + |x|) */
{
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), one = gcpi_onnx_number_tensor(m, 1),
                     size = gcp_add_at(gcp_abs_at(x, gcpi_onnx_opts(m)), one, gcpi_onnx_opts(m));
    return gcpi_onnx_put_like(m, n, gcp_div_at(x, size, gcpi_onnx_opts(m)));
}
static gcp_tensor gcpi_onnx_clamped(gcpi_onnx *m, gcp_tensor x, double low, double high)
{
    GCPI_ONNX_OPTS(clamp, o);
    if (low == -HUGE_VAL && high == HUGE_VAL) return x;
    if (low == 0 && high == HUGE_VAL) return gcp_relu_at(x, gcpi_onnx_opts(m));
    if (low == 0 && high == 6) return gcp_relu6_at(x, gcpi_onnx_opts(m));
    o.low = gcpi_onnx_exactly(low);
    o.high = gcpi_onnx_exactly(high);
    return gcp_clamp_at(x, o);
}
static int gcpi_onnx_clip(gcpi_onnx *m, gcpi_onnx_node *n)
{
    double low = gcpi_onnx_float(n, "min", -HUGE_VAL), high = gcpi_onnx_float(n, "max", HUGE_VAL);
    gcpi_onnx_value *least = gcpi_onnx_in(m, n, 1), *most = gcpi_onnx_in(m, n, 2);
    if ((least && !gcpi_onnx_number(m, least, &low)) || (most && !gcpi_onnx_number(m, most, &high)))
        return gcpi_onnx_refuse(m, n, "its bounds are not known before a step");
    if (low < -3e38) low = -HUGE_VAL;
    if (high > 3e38) high = HUGE_VAL;
    if (!(low < high)) return gcpi_onnx_refuse(m, n, "bounds of %g and %g", low, high);
    return gcpi_onnx_put_like(m, n, gcpi_onnx_clamped(m, gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), low, high));
}
static int gcpi_onnx_same(gcpi_onnx *m, gcpi_onnx_node *n) /* Identity, Cast among floats */
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    if (gcpi_onnx_is_real(x->type) != gcpi_onnx_is_real(y->type))
        return gcpi_onnx_refuse(m, n, "%s to %s of a tensor", gcpi_onnx_type_name(x->type),
                                gcpi_onnx_type_name(y->type));
    return gcpi_onnx_put_value(m, n, 0, x);
}
static int gcpi_onnx_dropout(gcpi_onnx *m, gcpi_onnx_node *n)
{
    double rate = gcpi_onnx_float(n, "ratio", 0.5);
    if (gcpi_onnx_in(m, n, 1) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &rate))
        return gcpi_onnx_refuse(m, n, "its ratio is not known before a step");
    if (!(rate >= 0 && rate < 1)) return gcpi_onnx_refuse(m, n, "a ratio of %g; in [0, 1) is allowed", rate);
    if (gcpi_onnx_out(m, n, 1) && gcpi_onnx_out(m, n, 1)->uses) return gcpi_onnx_refuse(m, n, "its mask is read");
    if (rate == 0) return gcpi_onnx_same(m, n);
    GCPI_ONNX_OPTS(dropout, o);
    o.rate = rate;
    return gcpi_onnx_put_like(m, n, gcp_dropout_at(gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0)), o));
}

/* ---- two operands ---- */

/* The axes of v counted from the end of a result's. */
static gcpi_onnx_order gcpi_onnx_aligned(const gcpi_onnx_value *v, int rank)
{
    gcpi_onnx_order o = v->order;
    for (int f = 0; f < o.count; f++) o.axis[f] += rank - v->rank;
    return o;
}
/* The four sizes for factors in memory, of which each operand has all or none within a size. has: bits of operands, a
   factor each, in the order of memory. shape: one that is tried first. 0: more than four. */
static int gcpi_onnx_groups(const gcpi_onnx_order *o, const int *has, gcp_shape shape, gcp_shape *to)
{
    int place = 0, fits = 1, sizes[GCPI_FACTORS], runs = 0;
    ptrdiff_t left = 1;
    for (int j = 0; j < o->count; j++) { /* shape, if no size of it mixes */
        const int size = o->size[o->memory[j]];
        if (left == 1) {
            while (place < 4 && shape.d[place] == 1) place++;
            left = place < 4 ? shape.d[place++] : 0;
        } else if (has[j] != has[j - 1]) fits = 0;
        if (!left || left % size) {
            fits = 0;
            break;
        }
        left /= size;
    }
    *to = shape;
    if (fits) return 1;
    for (int j = 0; j < o->count; j++) {
        if (!j || has[j] != has[j - 1]) sizes[runs++] = 1;
        sizes[runs - 1] *= o->size[o->memory[j]];
    }
    *to = gcpi_raw(4, 1, 1, 1, 1);
    for (int i = 0; i < runs && runs <= 4; i++) to->d[runs == 1 ? 3 : i == runs - 1 ? 3 : i] = sizes[i];
    return runs <= 4;
}
/* What of a shape in groups an operand has; want: its factors in that order. */
static gcp_shape gcpi_onnx_share(const gcpi_onnx_order *o, const int *has, int bit, gcp_shape all,
                                 const gcpi_onnx_order *own, int *want)
{
    gcp_shape s = gcpi_raw(4, 1, 1, 1, 1);
    int place = 0, count = 0;
    ptrdiff_t left = 1;
    for (int j = 0; j < o->count; j++) {
        const int f = o->memory[j];
        if (left == 1) {
            while (all.d[place] == 1) place++;
            left = all.d[place++];
        }
        left /= o->size[f];
        if (!(has[j] & bit)) continue;
        want[count++] = gcpi_onnx_order_nth(own, o->axis[f], gcpi_onnx_order_rank_in_axis(o, f));
        s.d[place - 1] *= o->size[f];
    }
    return s;
}
typedef struct gcpi_onnx_pair {
    gcp_tensor a, b;
    gcpi_onnx_order order;
    gcp_shape shape;
} gcpi_onnx_pair;

/* The order of the result: of the operand that has all axes, else the result's own. has: as gcpi_onnx_groups takes it.
   */
static void gcpi_onnx_pair_order(const gcpi_onnx_order *a, const gcpi_onnx_order *b, int rank, const int *d,
                                 gcpi_onnx_order *o, int *has)
{
    int mark[GCPI_FACTORS];
    memset(o, 0, sizeof *o);
    o->rank = rank;
    for (int i = 0; i < rank; i++) {
        const int in_a = gcpi_onnx_order_nth(a, i, 0) >= 0, in_b = gcpi_onnx_order_nth(b, i, 0) >= 0;
        const gcpi_onnx_order *from = in_a ? a : b;
        o->d[i] = d[i];
        for (int f = 0; f < from->count; f++)
            if (from->axis[f] == i) {
                mark[o->count] = in_a | in_b << 1;
                o->size[o->count] = from->size[f];
                o->axis[o->count] = i;
                o->memory[o->count] = o->count;
                o->count++;
            }
    }
    if (a->count == o->count) memcpy(o->memory, a->memory, sizeof o->memory);
    else if (b->count == o->count) memcpy(o->memory, b->memory, sizeof o->memory);
    for (int j = 0; j < o->count; j++) has[j] = mark[o->memory[j]];
}
/* a and b, of result y, in orders that agree. 0, with a message: refused. */
static int gcpi_onnx_pair_of(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *a, gcpi_onnx_value *b,
                             const gcpi_onnx_value *y, gcpi_onnx_pair *p)
{
    int has[GCPI_FACTORS], want[GCPI_FACTORS];
    gcpi_onnx_bind(m, a);
    gcpi_onnx_bind(m, b);
    for (int i = 0; i < y->rank; i++) {
        const int ai = i - y->rank + a->rank, bi = i - y->rank + b->rank;
        if (ai < 0 || bi < 0 || a->d[ai] == 1 || b->d[bi] == 1) continue;
        if (!gcpi_onnx_cut_axis(a, ai, &b->order, bi) && !gcpi_onnx_cut_axis(b, bi, &a->order, ai))
            return gcpi_onnx_refuse(m, n, "its operands were cut differently");
        if (!gcpi_onnx_cut_axis(b, bi, &a->order, ai))
            return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    }
    const gcpi_onnx_order oa = gcpi_onnx_aligned(a, y->rank), ob = gcpi_onnx_aligned(b, y->rank);
    const int swapped = a->source >= 0 && b->source < 0 && ob.count >= oa.count; /* a weight goes by what it meets */
    gcpi_onnx_pair_order(swapped ? &ob : &oa, swapped ? &oa : &ob, y->rank, y->d, &p->order, has);
    const gcpi_onnx_value *big = oa.count == p->order.count && !swapped ? a : ob.count == p->order.count ? b : NULL;
    const gcp_shape first = big && !gcp_is_nil(big->tensor) ? gcp_shape_of(big->tensor)
                                                            : gcpi_layout_shape(&p->order, gcpi_layout_plain(y->rank));
    if (!gcpi_onnx_groups(&p->order, has, first, &p->shape))
        return gcpi_onnx_refuse(m, n, "an operand is spread over axes that lie in more than four parts");
    const gcp_shape sa = gcpi_onnx_share(&p->order, has, swapped ? 2 : 1, p->shape, &oa, want);
    p->a = gcpi_onnx_arranged(m, a, want, sa);
    const gcp_shape sb = gcpi_onnx_share(&p->order, has, swapped ? 1 : 2, p->shape, &ob, want);
    p->b = gcpi_onnx_arranged(m, b, want, sb);
    return !gcp_is_nil(p->a) && !gcp_is_nil(p->b);
}

typedef gcp_tensor (*gcpi_onnx_pair_fn)(gcp_tensor a, gcp_tensor b, gcp_op_opts o);
static gcpi_onnx_pair_fn gcpi_onnx_pair_fn_of(gcpi_excerpt op)
{
    static const struct {
        const char *op;
        gcpi_onnx_pair_fn fn;
    } ops[] = { { "Add", gcp_add_at },     { "Sum", gcp_add_at },     { "Mean", gcp_add_at },
                { "Sub", gcp_sub_at },     { "Mul", gcp_mul_at },     { "Div", gcp_div_at },
                { "Max", gcp_maximum_at }, { "Min", gcp_minimum_at }, { "PRelu", gcp_prelu_at } };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (gcpi_excerpt_is(op, ops[i].op)) return ops[i].fn;
    return NULL;
}
/* An operand that is a number: no tensor is needed for it. 0: it is none, or that does not help. */
static int gcpi_onnx_with_number(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1), *x = a;
    const char fn = gcpi_fold_letter(n);
    double by;
    const int first = gcpi_onnx_number(m, a, &by);
    if (!first && !gcpi_onnx_number(m, b, &by)) return 0;
    if (first) x = b;
    if (x->known || x->rank != gcpi_onnx_out(m, n, 0)->rank || !isfinite(by)) return 0;
    gcp_tensor y = gcpi_onnx_any(m, x);
    if (fn == '*') y = gcpi_onnx_scaled(m, y, by);
    else if (fn == '/' && !first && by != 0) y = gcpi_onnx_scaled(m, y, 1 / by);
    else if (fn == '/' && first) y = gcpi_onnx_scaled(m, gcp_reciprocal_at(y, gcpi_onnx_opts(m)), by);
    else if (fn == '+' && by == 0) {
    } else if (fn == '-' && by == 0) y = first ? gcp_neg_at(y, gcpi_onnx_opts(m)) : y;
    else if (fn == 'M') y = gcpi_onnx_clamped(m, y, by, HUGE_VAL);
    else if (fn == 'm') y = gcpi_onnx_clamped(m, y, -HUGE_VAL, by);
    else return 0;
    return gcpi_onnx_put(m, n, 0, y, &x->order);
}
/* x below 0 times slopes. */
static int gcpi_onnx_prelu_of(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *slopes)
{
    gcpi_onnx_pair p;
    return gcpi_onnx_pair_of(m, n, x, slopes, gcpi_onnx_out(m, n, 0), &p) &&
           gcpi_onnx_put(m, n, 0, gcp_prelu_at(p.a, p.b, gcpi_onnx_opts(m)), &p.order);
}
/* PRelu before opset 7: its slopes are the channels', axis 1. */
static int gcpi_onnx_channel_slopes(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), slopes = gcpi_onnx_copy(gcpi_onnx_in(m, n, 1));
    int d[GCPI_AXES];
    for (int i = 0; i < x->rank; i++) d[i] = i ? 1 : (int)gcpi_onnx_elements(&slopes);
    gcpi_onnx_bind(m, &slopes);
    gcpi_onnx_order_reshape(&slopes.order, x->rank - 1, d);
    slopes.rank = x->rank - 1;
    memcpy(slopes.d, d, sizeof d);
    return gcpi_onnx_prelu_of(m, n, x, &slopes);
}
static int gcpi_onnx_pairs(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_pair_fn fn = gcpi_onnx_pair_fn_of(n->op);
    gcpi_onnx_value *out = gcpi_onnx_out(m, n, 0), sum;
    gcpi_onnx_pair p;
    if (n->inputs == 1) return gcpi_onnx_same(m, n);
    if (m->opset < 7 && gcpi_excerpt_is(n->op, "PRelu") && gcpi_onnx_in(m, n, 0)->rank > 1)
        return gcpi_onnx_channel_slopes(m, n);
    if (n->inputs == 2 && !gcpi_excerpt_is(n->op, "PRelu") && gcpi_onnx_with_number(m, n)) return 1;
    sum = *gcpi_onnx_in(m, n, 0);
    for (int i = 1; i < n->inputs; i++) {
        gcpi_onnx_value *b = gcpi_onnx_in(m, n, i), *a = i == 1 ? gcpi_onnx_in(m, n, 0) : &sum;
        gcpi_onnx_value y = *out;
        if (!gcpi_onnx_broadcast(a, b, &y.rank, y.d)) return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
        if (!gcpi_onnx_pair_of(m, n, a, b, &y, &p)) return 0;
        gcpi_onnx_becomes(m, &sum, fn(p.a, p.b, gcpi_onnx_opts(m)));
        sum.order = p.order;
        sum.rank = y.rank;
        memcpy(sum.d, y.d, sizeof sum.d);
    }
    if (gcpi_excerpt_is(n->op, "Mean")) sum.tensor = gcpi_onnx_scaled(m, sum.tensor, 1.0 / n->inputs);
    return gcpi_onnx_put(m, n, 0, sum.tensor, &sum.order);
}
static int gcpi_onnx_pow(gcpi_onnx *m, gcpi_onnx_node *n)
{
    double by;
    if (!gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &by))
        return gcpi_onnx_refuse(m, n, "its exponent is not a number known before a step");
    const gcp_tensor x = gcpi_onnx_any(m, gcpi_onnx_in(m, n, 0));
    const gcp_op_opts o = gcpi_onnx_opts(m);
    if (by == 1) return gcpi_onnx_same(m, n);
    if (by == 2) return gcpi_onnx_put_like(m, n, gcp_square_at(x, o));
    if (by == 0.5) return gcpi_onnx_put_like(m, n, gcp_sqrt_at(x, o));
    if (by == -1) return gcpi_onnx_put_like(m, n, gcp_reciprocal_at(x, o));
    if (by == -0.5) return gcpi_onnx_put_like(m, n, gcp_reciprocal_at(gcp_sqrt_at(x, o), o));
    if (by == 3) return gcpi_onnx_put_like(m, n, gcp_mul_at(gcp_square_at(x, o), x, o));
    return gcpi_onnx_refuse(m, n, "an exponent of %g; 2, 3, 1, 0.5, -0.5 and -1 are allowed", by);
}

/* ==== src/onnx/onnx_moves.h ==== */

/* Ops that move elements, or that would: most change an order alone. */

/* The output is the input in other axes. */
static int gcpi_onnx_again(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_put_value(m, n, 0, gcpi_onnx_in(m, n, 0));
}
static int gcpi_onnx_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value x = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0));
    int axes[GCPI_AXES];
    gcpi_onnx_permutation(n, x.rank, axes);
    gcpi_onnx_turn(&x, axes);
    return gcpi_onnx_put_value(m, n, 0, &x);
}
static int gcpi_onnx_expand(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0), all = *y;
    gcpi_onnx_pair p;
    if (gcpi_onnx_elements(x) == gcpi_onnx_elements(y)) return gcpi_onnx_again(m, n);
    gcpi_onnx_order_set(&all.order, y->rank, y->d);
    gcpi_onnx_bind(m, x);
    int has[GCPI_FACTORS], want[GCPI_FACTORS];
    for (int i = 0; i < y->rank; i++) {
        const int k = i - y->rank + x->rank;
        if (k >= 0 && x->d[k] != 1 && !gcpi_onnx_cut_axis(&all, i, &x->order, k))
            return gcpi_onnx_refuse(m, n, "its axes were cut");
    }
    const gcpi_onnx_order own = gcpi_onnx_aligned(x, y->rank);
    gcpi_onnx_pair_order(&all.order, &own, y->rank, y->d, &p.order, has);
    if (!gcpi_onnx_groups(&p.order, has, gcpi_layout_shape(&p.order, gcpi_layout_plain(y->rank)), &p.shape))
        return gcpi_onnx_refuse(m, n, "it spreads axes that lie in more than four parts");
    const gcp_shape share = gcpi_onnx_share(&p.order, has, 2, p.shape, &own, want);
    p.a = gcpi_onnx_arranged(m, x, want, share);
    return gcpi_onnx_put(m, n, 0, gcp_expand_at(p.a, gcpi_onnx_rank(p.shape), gcpi_onnx_opts(m)), &p.order);
}

/* ---- one axis ---- */

static const gcp_axis gcpi_onnx_places[4] = { GCP_AXIS_SAMPLES, GCP_AXIS_HEIGHT, GCP_AXIS_WIDTH, GCP_AXIS_CHANNELS };

/* The factors of an axis in memory are memory[*from .. *to - 1], in their order: 1. An axis of size 1 has none. */
static int gcpi_onnx_order_run(const gcpi_onnx_order *o, int axis, int *from, int *to)
{
    int f = gcpi_onnx_order_nth(o, axis, 0);
    *from = *to = f < 0 ? o->count : gcpi_onnx_order_place(o, f);
    for (; f >= 0 && f < o->count && o->axis[f] == axis; f++, ++*to)
        if (*to == o->count || o->memory[*to] != f) return 0;
    return 1;
}
/* v's axes in the order of memory, those of size 1 among them; as gcp would have them where the parts of one lie apart.
   */
static void gcpi_onnx_axes_list(const gcpi_onnx_value *v, char *list)
{
    const char *usual = gcpi_layout_usual(v->rank);
    int count = 0, from, to, together = 1;
    for (int i = 0; i < v->rank; i++) together &= gcpi_onnx_order_run(&v->order, i, &from, &to);
    for (const char *c = usual; *c; c++)
        if (*c != '|' && (!together || v->d[*c - '0'] == 1)) list[count++] = *c;
    for (int j = 0, last = -1; j < v->order.count && together; j++) {
        const int axis = v->order.axis[v->order.memory[j]];
        int at = 0;
        if (axis == last) continue;
        last = axis;
        while (at < count && (v->d[list[at] - '0'] != 1 || list[at] < '0' + axis)) at++; /* a 1 goes behind it */
        memmove(list + at + 1, list + at, (size_t)(count - at));
        list[at] = (char)('0' + axis);
        count++;
    }
    list[count] = 0;
}
/* The tensor's size for axis i of `count`, of which axis `at` has one alone. */
static int gcpi_onnx_place(int i, int count, int at)
{
    if (count <= 4) return i || count == 1 ? 4 - count + i : 0;
    const int place = !at ? 0 : at == count - 1 ? 3 : 2;
    return i == at ? place : i > at ? 3 : !i ? 0 : place == 2 ? 1 : GCPI_MIN(i, 2);
}
/* A layout of v in which an axis has one of the tensor's sizes alone. Returns which. */
static int gcpi_onnx_axis_layout(const gcpi_onnx_value *v, int axis, char *layout)
{
    char list[GCPI_AXES + 1];
    gcpi_onnx_axes_list(v, list);
    const int count = v->rank, at = (int)(strchr(list, '0' + axis) - list);
    for (int i = 0, now = 0; i < count; i++) {
        for (; now < gcpi_onnx_place(i, count, at); now++) *layout++ = '|';
        *layout++ = list[i];
    }
    *layout = 0;
    return gcpi_onnx_place(at, count, at);
}
/* Factors of an axis, which lie together, become one of this size. */
static void gcpi_onnx_order_resize(gcpi_onnx_order *o, int axis, int size)
{
    const int f = gcpi_onnx_order_nth(o, axis, 0);
    o->d[axis] = size;
    if (f < 0) return;
    while (f + 1 < o->count && o->axis[f + 1] == axis) gcpi_onnx_order_join(o, f);
    o->size[f] = size;
    if (size == 1) gcpi_onnx_order_remove(o, f);
}
/* Where an axis is the slowest part of one of the tensor's sizes (q, k and v in channels), that size, and how much of
   it an element is; 0: it is no such part. */
static int gcpi_onnx_axis_in_size(const gcpi_onnx_value *v, int axis, int *scale)
{
    int from, to;
    if (gcp_is_nil(v->tensor) || !gcpi_onnx_order_run(&v->order, axis, &from, &to) || from == to) return 0;
    const gcp_shape s = gcp_shape_of(v->tensor);
    const ptrdiff_t before = gcpi_onnx_order_elements(&v->order, 0, from),
                    size = gcpi_onnx_order_elements(&v->order, from, to);
    ptrdiff_t front = 1;
    for (int i = 0; i < 4; front *= s.d[i++])
        if (front == before && s.d[i] % size == 0) {
            *scale = s.d[i] / (int)size;
            return i + 1;
        }
    return 0;
}
/* y becomes elements first, first + step, ... of an axis of x, `count` of them. 0: refused. */
static int gcpi_onnx_cut(gcpi_onnx *m, gcpi_onnx_value *x, int axis, int first, int count, int step, gcpi_onnx_value *y)
{
    GCPI_ONNX_OPTS(slice, o);
    char layout[16];
    int scale = 1;
    *y = gcpi_onnx_copy(x);
    if (count == x->d[axis]) return 1;
    gcpi_onnx_bind(m, x);
    int size = gcpi_onnx_axis_in_size(x, axis, &scale);
    if (step != 1 && scale != 1) size = 0;
    if (!size) scale = 1;
    o.axis = gcpi_onnx_places[size ? size - 1 : gcpi_onnx_axis_layout(x, axis, layout)];
    o.first = first * scale;
    o.count = count * scale;
    o.step = step;
    gcpi_onnx_becomes(m, y, gcp_slice_at(size ? x->tensor : gcpi_onnx_get(m, x, layout), o));
    y->d[axis] = count;
    y->order = x->order;
    if (size) gcpi_onnx_order_resize(&y->order, axis, count);
    else gcpi_onnx_order_make(&y->order, layout, y->rank, y->d);
    return !gcp_is_nil(y->tensor);
}
static int gcpi_onnx_split(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), part;
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank);
    int64_t sizes[GCP_MAX_INPUTS];
    int first = 0;
    gcpi_onnx_split_sizes(m, n, x->d[axis], sizes);
    for (int i = 0; i < n->outputs; first += (int)sizes[i++]) {
        const gcpi_onnx_value *y = gcpi_onnx_out(m, n, i);
        if (sizes[i] < 1) return gcpi_onnx_refuse(m, n, "an empty part");
        if (!y || !y->needed) continue;
        if (!gcpi_onnx_cut(m, x, axis, first, (int)sizes[i], 1, &part) || !gcpi_onnx_put_value(m, n, i, &part))
            return 0;
    }
    return 1;
}
static int gcpi_onnx_sequence(gcpi_onnx *m, gcpi_onnx_node *n) { return m && n; }
static int gcpi_onnx_sequence_at(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value part;
    int axis, first, count;
    const gcpi_onnx_node *split = gcpi_onnx_sequence_part(m, n, &axis, &first, &count);
    gcpi_onnx_value *x = gcpi_onnx_in(m, split, 0);
    if (gcp_is_nil(x->tensor) && x->source < 0) return gcpi_onnx_refuse(m, n, "what was split was not recorded");
    return gcpi_onnx_cut(m, x, axis, first, count, 1, &part) && gcpi_onnx_put_value(m, n, 0, &part);
}
static int gcpi_onnx_slices(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), part = gcpi_onnx_copy(x), whole;
    int first[GCPI_AXES], step[GCPI_AXES], count[GCPI_AXES];
    gcpi_onnx_slice(m, n, first, step, count);
    for (int i = 0; i < x->rank; i++) {
        if (step[i] < 0 && count[i] > 1) return gcpi_onnx_refuse(m, n, "a step of %d; above 0 is allowed", step[i]);
        if (count[i] < 1) return gcpi_onnx_refuse(m, n, "an empty slice");
        if (count[i] == part.d[i]) continue;
        whole = part;
        if (!gcpi_onnx_cut(m, &whole, i, first[i], count[i], GCPI_MAX(step[i], 1), &part)) return 0;
    }
    return gcpi_onnx_put_value(m, n, 0, &part);
}
/* Elements in any order: side by side, one by one. */
static int gcpi_onnx_gather_each(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, int axis, const double *at,
                                 int count)
{
    gcp_tensor parts[GCP_MAX_INPUTS];
    gcpi_onnx_value part, all = gcpi_onnx_copy(x);
    char layout[16];
    GCPI_ONNX_OPTS(concat, o);
    if (count > GCP_MAX_INPUTS)
        return gcpi_onnx_refuse(m, n, "%d indices that are no slice; at most %d", count, GCP_MAX_INPUTS);
    gcpi_onnx_any(m, x);
    o.axis = gcpi_onnx_places[gcpi_onnx_axis_layout(x, axis, layout)];
    for (int i = 0; i < count; i++) {
        const int row = (int)(at[i] < 0 ? at[i] + x->d[axis] : at[i]);
        if (!gcpi_onnx_cut(m, x, axis, row, 1, 1, &part)) return 0;
        parts[i] = gcpi_onnx_get(m, &part, layout);
    }
    gcpi_onnx_becomes(m, &all, gcp_concat_at(parts, count, o));
    all.d[axis] = count;
    gcpi_onnx_order_make(&all.order, layout, all.rank, all.d);
    return !gcp_is_nil(all.tensor) && gcpi_onnx_put_value(m, n, 0, &all);
}
static int gcpi_onnx_gather(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *index = gcpi_onnx_in(m, n, 1), part;
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank), count = (int)gcpi_onnx_elements(index);
    const double *at = gcpi_onnx_known(m, index);
    GCPI_ONNX_OPTS(embedding, o);
    if (!at && (axis || x->rank != 2 || gcp_is_nil(index->tensor) || index->rank > 2))
        return gcpi_onnx_refuse(m, n, "indices that are not known before a step, but for rows of a table");
    if (!at)
        return gcpi_onnx_put_layout(m, n, 0, gcp_embedding_op_at(index->tensor, gcpi_onnx_get(m, x, "0|||1"), o),
                                    index->rank == 2 ? "0||1|2" : "0|||1");
    const int size = x->d[axis], first = count ? (int)(at[0] < 0 ? at[0] + size : at[0]) : 0;
    int step = 1, slice = 1;
    for (int i = 1; i < count; i++) {
        const int is = (int)(at[i] < 0 ? at[i] + size : at[i]);
        if (i == 1) step = is - first;
        slice &= step >= 1 && is == first + i * step;
    }
    if (!slice) return gcpi_onnx_gather_each(m, n, x, axis, at, count);
    return gcpi_onnx_cut(m, x, axis, first, count, step, &part) && gcpi_onnx_put_value(m, n, 0, &part);
}
/* Inputs side by side, in the order in which the largest lies. */
static int gcpi_onnx_concat(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 1), y->rank);
    gcpi_onnx_value *large = gcpi_onnx_in(m, n, 0);
    gcp_tensor parts[GCP_MAX_INPUTS];
    char layout[16];
    GCPI_ONNX_OPTS(concat, o);
    if (n->inputs > GCP_MAX_INPUTS) return gcpi_onnx_refuse(m, n, "%d inputs; at most %d", n->inputs, GCP_MAX_INPUTS);
    for (int i = 1; i < n->inputs; i++)
        if (gcpi_onnx_elements(gcpi_onnx_in(m, n, i)) > gcpi_onnx_elements(large)) large = gcpi_onnx_in(m, n, i);
    gcpi_onnx_bind(m, large);
    o.axis = gcpi_onnx_places[gcpi_onnx_axis_layout(large, axis, layout)];
    for (int i = 0; i < n->inputs; i++) parts[i] = gcpi_onnx_get(m, gcpi_onnx_in(m, n, i), layout);
    return gcpi_onnx_put_layout(m, n, 0, n->inputs == 1 ? parts[0] : gcp_concat_at(parts, n->inputs, o), layout);
}
/* What a Pad says: its mode, what it fills with. 0, with a message: refused. */
typedef struct gcpi_onnx_padding {
    gcp_pad_mode mode;
    double fill;
} gcpi_onnx_padding;
static int gcpi_onnx_padding_of(gcpi_onnx *m, const gcpi_onnx_node *n, gcpi_onnx_padding *p)
{
    static const char *const names[] = { "constant", "edge", "reflect" };
    static const gcp_pad_mode modes[] = { GCP_PAD_ZEROS, GCP_PAD_EDGE, GCP_PAD_REFLECT };
    const gcpi_excerpt mode = gcpi_onnx_string(n, "mode", "constant");
    int kind = 0;
    p->fill = gcpi_onnx_float(n, "value", 0);
    while (kind < 3 && !gcpi_excerpt_is(mode, names[kind])) kind++;
    if (gcpi_onnx_in(m, n, 2) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 2), &p->fill))
        return gcpi_onnx_refuse(m, n, "its value is not known before a step");
    if (kind == 3 || !gcpi_finite(p->fill))
        return gcpi_onnx_refuse(m, n, "its mode, or a value of %g; constant, edge and reflect are allowed", p->fill);
    p->mode = modes[kind];
    return 1;
}
/* More elements before and after those of an axis. */
static int gcpi_onnx_pad_axis(gcpi_onnx *m, gcpi_onnx_value *x, int axis, int before, int after, gcpi_onnx_padding p)
{
    const int shifts = p.mode == GCP_PAD_ZEROS && p.fill != 0; /* gcp pads with zeros */
    char layout[16];
    GCPI_ONNX_OPTS(pad, o);
    gcpi_onnx_bind(m, x);
    o.axis = gcpi_onnx_places[gcpi_onnx_axis_layout(x, axis, layout)];
    o.before = before;
    o.after = after;
    o.mode = p.mode;
    gcp_tensor y = gcpi_onnx_get(m, x, layout);
    const gcp_tensor by = shifts ? gcpi_onnx_number_tensor(m, p.fill) : y;
    if (shifts) y = gcp_sub_at(y, by, gcpi_onnx_opts(m));
    y = gcp_pad_at(y, o);
    if (shifts) y = gcp_add_at(y, by, gcpi_onnx_opts(m));
    x->d[axis] += before + after;
    gcpi_onnx_becomes(m, x, y);
    gcpi_onnx_order_make(&x->order, layout, x->rank, x->d);
    return !gcp_is_nil(y);
}
/* An axis after the other; a negative pad cuts. */
static int gcpi_onnx_pad(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value part = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0)), whole;
    gcpi_onnx_padding p;
    int64_t pads[2 * GCPI_AXES];
    const int named = gcpi_onnx_list(m, n, "pads", 1, pads, 2 * GCPI_AXES) / 2,
              axes = gcpi_onnx_axes(m, n, 3, part.rank, 255);
    if (!gcpi_onnx_padding_of(m, n, &p)) return 0;
    for (int i = 0, k = 0; i < part.rank; i++) {
        if (!(axes >> i & 1)) continue;
        const int before = (int)pads[k], after = (int)pads[named + k++];
        const int first = GCPI_MAX(-before, 0), count = part.d[i] + GCPI_MIN(before, 0) + GCPI_MIN(after, 0);
        whole = part;
        if (count != part.d[i] && !gcpi_onnx_cut(m, &whole, i, first, count, 1, &part)) return 0;
        if ((before > 0 || after > 0) && !gcpi_onnx_pad_axis(m, &part, i, GCPI_MAX(before, 0), GCPI_MAX(after, 0), p))
            return 0;
    }
    return gcpi_onnx_put_value(m, n, 0, &part);
}

/* ==== src/onnx/onnx_windows.h ==== */

/* Ops of images: convolutions, pools, other sizes. A sequence is an image of one row. */

static const char *gcpi_layout_image(int rank) { return rank == 3 ? "0||2|1" : "0|2|3|1"; }

/* A weight (out, in, height, width) as gcp has it; of a transposed convolution, too, where it is (in, out, ...). */
static gcp_tensor gcpi_onnx_kernel(gcpi_onnx *m, gcpi_onnx_value *w)
{
    return gcpi_onnx_get(m, w, gcpi_layout_image(w->rank));
}
static gcp_tensor gcpi_onnx_channels(gcpi_onnx *m, gcpi_onnx_value *b) /* a value a channel; nil: left out */
{
    return b ? gcpi_onnx_get(m, b, "|||0") : gcpi_nil(NULL);
}
static void gcpi_onnx_window_options(const gcpi_onnx_window *w, gcp_conv2d_opts *o)
{
    o->stride_h = w->stride[0];
    o->stride_w = w->stride[1];
    o->dilation_h = w->dilation[0];
    o->dilation_w = w->dilation[1];
    o->pad_top = w->before[0];
    o->pad_bottom = w->after[0];
    o->pad_left = w->before[1];
    o->pad_right = w->after[1];
}
static int gcpi_onnx_conv(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1), *b = gcpi_onnx_in(m, n, 2);
    const char *layout = gcpi_layout_image(x->rank);
    gcpi_onnx_window w;
    int out[2];
    GCPI_ONNX_OPTS(conv2d, o);
    if (!gcpi_onnx_window_of(m, n, x, k->d + 2, &w, out)) return 0;
    gcpi_onnx_window_options(&w, &o);
    o.groups = (int)gcpi_onnx_integer(n, "group", 1);
    o.no_bias = b == NULL;
    const gcp_tensor image = gcpi_onnx_get(m, x, layout), weight = gcpi_onnx_kernel(m, k),
                     bias = gcpi_onnx_channels(m, b), y = gcp_conv2d_op_at(image, weight, bias, o);
    return gcpi_onnx_put_layout(m, n, 0, y, layout);
}
static int gcpi_onnx_conv_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *k = gcpi_onnx_in(m, n, 1), *b = gcpi_onnx_in(m, n, 2);
    const char *layout = gcpi_layout_image(x->rank);
    gcpi_onnx_window w;
    int out[2], extra[2], cut[2];
    GCPI_ONNX_OPTS(conv2d, o);
    if (!gcpi_onnx_transposed(m, n, x, k, &w, out, extra)) return 0;
    for (int i = 0; i < 2; i++) { /* more output at the end is less padding there */
        cut[i] = w.after[i] - extra[i];
        w.after[i] = GCPI_MAX(cut[i], 0);
    }
    gcpi_onnx_window_options(&w, &o);
    o.groups = (int)gcpi_onnx_integer(n, "group", 1);
    o.no_bias = b == NULL || cut[0] < 0 || cut[1] < 0;
    const gcp_tensor image = gcpi_onnx_get(m, x, layout), weight = gcpi_onnx_kernel(m, k),
                     bias = gcpi_onnx_channels(m, b);
    gcp_tensor y = gcp_conv_transpose2d_op_at(image, weight, o.no_bias ? gcpi_nil(NULL) : bias, o);
    for (int i = 0; i < 2; i++) {
        GCPI_ONNX_OPTS(pad, p);
        p.axis = i ? GCP_AXIS_WIDTH : GCP_AXIS_HEIGHT;
        p.after = -cut[i];
        if (cut[i] < 0) y = gcp_pad_at(y, p); /* what no window reaches is the bias alone */
    }
    if (b && o.no_bias) y = gcp_bias_at(y, bias, gcpi_onnx_opts(m));
    return gcpi_onnx_put_layout(m, n, 0, y, layout);
}
static gcp_pool_opts gcpi_onnx_pool_options(const gcpi_onnx *m, const gcpi_onnx_window *w)
{
    GCPI_ONNX_OPTS(pool, o);
    o.kh = w->k[0];
    o.kw = w->k[1];
    o.stride_h = w->stride[0];
    o.stride_w = w->stride[1];
    o.pad_top = w->before[0];
    o.pad_bottom = w->after[0];
    o.pad_left = w->before[1];
    o.pad_right = w->after[1];
    return o;
}
/* Padding that counts becomes a pad; what a ceiling added to the end never counts. */
static int gcpi_onnx_pool_padded(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_window *w, gcp_tensor *x)
{
    int64_t pads[4] = { 0, 0, 0, 0 };
    const gcpi_excerpt same = gcpi_onnx_string(n, "auto_pad", "NOTSET");
    gcpi_onnx_integers(n, "pads", pads, 4);
    for (int i = 0, a = 2 - w->axes; i < w->axes; i++, a++) {
        GCPI_ONNX_OPTS(pad, o);
        o.axis = a ? GCP_AXIS_WIDTH : GCP_AXIS_HEIGHT;
        o.before = w->before[a];
        o.after = gcpi_excerpt_is(same, "NOTSET") ? (int)pads[w->axes + i] : w->after[a];
        if (o.before || o.after) *x = gcp_pad_at(*x, o);
        w->before[a] = 0;
        w->after[a] -= o.after;
    }
    return 1;
}
static int gcpi_onnx_pool(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 0);
    const char *layout = gcpi_layout_image(v->rank);
    const int most = gcpi_excerpt_is(n->op, "MaxPool");
    gcpi_onnx_window w;
    int out[2];
    if (most && gcpi_onnx_out(m, n, 1) && gcpi_onnx_out(m, n, 1)->uses)
        return gcpi_onnx_refuse(m, n, "its indices are read");
    if (!gcpi_onnx_window_of(m, n, v, NULL, &w, out)) return 0;
    if (w.dilation[0] != 1 || w.dilation[1] != 1) return gcpi_onnx_refuse(m, n, "dilations of a pool; 1 is allowed");
    gcp_tensor x = gcpi_onnx_get(m, v, layout);
    if (!most && gcpi_onnx_integer(n, "count_include_pad", 0)) gcpi_onnx_pool_padded(m, n, &w, &x);
    if (w.k[0] * w.k[1] == 1 && w.stride[0] * w.stride[1] == 1) return gcpi_onnx_put_layout(m, n, 0, x, layout);
    const gcp_pool_opts o = gcpi_onnx_pool_options(m, &w);
    return gcpi_onnx_put_layout(m, n, 0, most ? gcp_max_pool_at(x, o) : gcp_avg_pool_at(x, o), layout);
}
static int gcpi_onnx_global_pool(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 0);
    const int most = gcpi_excerpt_is(n->op, "GlobalMaxPool");
    if (v->rank < 3 || v->rank > 4) return gcpi_onnx_refuse(m, n, "an input of %d axes; 3 or 4 are allowed", v->rank);
    const gcp_tensor x = gcpi_onnx_get(m, v, gcpi_layout_image(v->rank));
    GCPI_ONNX_OPTS(reduce, o);
    o.by = GCP_REDUCE_MAX;
    o.height = o.width = 1;
    const gcp_tensor y = most ? gcp_reduce_at(x, o) : gcp_global_avg_pool_at(x, gcpi_onnx_opts(m));
    return gcpi_onnx_put_layout(m, n, 0, y, v->rank == 3 ? "0|||12" : "0|||123");
}

/* ---- other sizes ---- */

/* Whether scales, where the file has them and no sizes, are those of the sizes: else coordinates follow the scales. */
static int gcpi_onnx_exact_scales(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x,
                                  const gcpi_onnx_value *y)
{
    const int old = gcpi_excerpt_is(n->op, "Upsample") || m->opset < 11;
    gcpi_onnx_value *scales = gcpi_onnx_in(m, n, old ? 1 : 2);
    const double *by = (!old && gcpi_onnx_in(m, n, 3)) || !scales ? NULL : gcpi_onnx_elements_of(m, scales);
    int64_t axes[GCPI_AXES];
    const int named = gcpi_onnx_integers(n, "axes", axes, GCPI_AXES);
    for (int i = 0; by && i < (int)gcpi_onnx_elements(scales); i++) {
        const int axis = gcpi_onnx_axis(named < 0 ? i : axes[i], x->rank);
        if (axis >= 0 && fabs(x->d[axis] * by[i] - y->d[axis]) > 1e-4) return 0;
    }
    return 1;
}
/* Whether a side's resize is one that gcp knows; *corners, *mode say which. */
static int gcpi_onnx_resize_mode(gcpi_onnx *m, const gcpi_onnx_node *n, const gcpi_onnx_value *x,
                                 const gcpi_onnx_value *y, gcp_resize_opts *o)
{
    const gcpi_excerpt mode = gcpi_onnx_string(n, "mode", "nearest"),
                       at = gcpi_onnx_string(n, "coordinate_transformation_mode",
                                             m->opset < 11 ? "asymmetric" : "half_pixel"),
                       round = gcpi_onnx_string(n, "nearest_mode", m->opset < 11 ? "floor" : "round_prefer_floor");
    const int linear = gcpi_excerpt_is(mode, "linear") || gcpi_excerpt_is(mode, "bilinear");
    int whole = 1, same = 1;
    for (int i = 2; i < 4; i++) {
        whole &= y->d[i] % x->d[i] == 0;
        same &= y->d[i] == x->d[i];
    }
    const int half = gcpi_excerpt_is(at, "half_pixel") || gcpi_excerpt_is(at, "half_pixel_symmetric") ||
                     (gcpi_excerpt_is(at, "pytorch_half_pixel") && y->d[2] > 1 && y->d[3] > 1);
    if (!linear && !gcpi_excerpt_is(mode, "nearest"))
        return gcpi_onnx_refuse(m, n, "its mode; nearest and linear are allowed");
    if (gcpi_onnx_integer(n, "antialias", 0) && !same && (y->d[2] < x->d[2] || y->d[3] < x->d[3]))
        return gcpi_onnx_refuse(m, n, "antialias");
    if (gcpi_onnx_integer(n, "exclude_outside", 0)) return gcpi_onnx_refuse(m, n, "exclude_outside");
    o->mode = linear ? GCP_UPSAMPLING_BILINEAR : GCP_UPSAMPLING_NEAREST;
    if (same) return 1;
    if (linear && !gcpi_onnx_exact_scales(m, n, x, y))
        return gcpi_onnx_refuse(m, n, "linear by scales that make no whole size");
    if (linear) {
        o->corners = gcpi_excerpt_is(at, "align_corners");
        return half || o->corners ||
               gcpi_onnx_refuse(m, n, "linear with its coordinates; half_pixel and align_corners are allowed");
    }
    /* gcp takes floor(i in / out): that is asymmetric with floor, and of a whole factor also half_pixel's nearest */
    if (gcpi_excerpt_is(at, "asymmetric") && gcpi_excerpt_is(round, "floor")) return 1;
    if (half && whole && !gcpi_excerpt_is(round, "floor") && !gcpi_excerpt_is(round, "ceil")) return 1;
    return gcpi_onnx_refuse(
        m, n, "nearest with its coordinates; asymmetric with floor, and half_pixel of a whole factor are allowed");
}
static int gcpi_onnx_resize(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    GCPI_ONNX_OPTS(resize, o);
    if (x->rank != 4 || x->d[0] != y->d[0] || x->d[1] != y->d[1])
        return gcpi_onnx_refuse(m, n, "other than rows and columns of an image");
    if (!gcpi_onnx_resize_mode(m, n, x, y, &o)) return 0;
    gcp_tensor image = gcpi_onnx_get(m, x, "0|2|3|1");
    o.height = y->d[2];
    o.width = y->d[3];
    if (y->d[2] != x->d[2] || y->d[3] != x->d[3]) image = gcp_resize_at(image, o);
    return gcpi_onnx_put_layout(m, n, 0, image, "0|2|3|1");
}
/* An axis becomes several: (n, c, h, w) -> six axes, which are put in order and joined again. */
static int gcpi_onnx_depth(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value x = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0));
    const int b = (int)gcpi_onnx_integer(n, "blocksize", 1),
              crd = gcpi_excerpt_is(gcpi_onnx_string(n, "mode", "DCR"), "CRD"),
              to_space = gcpi_excerpt_is(n->op, "DepthToSpace");
    const int c = x.d[1] / (b * b), dcr[6] = { x.d[0], b, b, c, x.d[2], x.d[3] },
              crd_sizes[6] = { x.d[0], c, b, b, x.d[2], x.d[3] },
              blocks[6] = { x.d[0], x.d[1], x.d[2] / b, b, x.d[3] / b, b };
    static const int dcr_axes[6] = { 0, 3, 4, 1, 5, 2 }, crd_axes[6] = { 0, 1, 4, 2, 5, 3 },
                     block_axes[6] = { 0, 3, 5, 1, 2, 4 }, block_crd_axes[6] = { 0, 1, 3, 5, 2, 4 };
    const int *sizes = !to_space ? blocks
                     : crd       ? crd_sizes
                                 : dcr,
              *axes = !to_space ? crd ? block_crd_axes : block_axes
                    : crd       ? crd_axes
                                : dcr_axes;
    if (!gcpi_onnx_order_reshape(&x.order, 6, sizes)) {
        x.tensor = gcpi_onnx_get(m, gcpi_onnx_in(m, n, 0), "0|1|2|3");
        gcpi_onnx_order_set(&x.order, 6, sizes);
    }
    gcpi_onnx_order_transpose(&x.order, axes);
    return gcpi_onnx_put_value(m, n, 0, &x);
}

/* ==== src/onnx/onnx_products.h ==== */

/* Products of matrices, and attention. */

/* x's last axis, as it lies, times a weight that is no tensor yet: (in, out), or (out, in) where it is turned. */
static gcp_tensor gcpi_onnx_linear(gcpi_onnx *m, gcpi_onnx_value *x, gcpi_onnx_value *w, int turned, gcp_tensor bias,
                                   gcpi_onnx_order *o)
{
    int want[GCPI_FACTORS], trailing, count = 0;
    const int in = turned ? 1 : 0;
    const gcp_tensor rows = gcpi_onnx_rows(m, x, x->rank - 1, o, &trailing);
    GCPI_ONNX_OPTS(linear, opts);
    gcpi_onnx_bind(m, w);
    if (!gcpi_onnx_cut_axis(w, in, o, x->rank - 1)) return gcpi_nil(m->tape);
    for (int f = 0; f < w->order.count; f++)
        if (w->order.axis[f] == !in) want[count++] = f;
    for (int j = o->count - trailing; j < o->count; j++)
        want[count++] = gcpi_onnx_order_nth(&w->order, in, gcpi_onnx_order_rank_in_axis(o, o->memory[j]));
    opts.no_bias = gcp_is_nil(bias);
    return gcp_linear_op_at(rows, gcpi_onnx_arranged(m, w, want, gcpi_raw(4, w->d[!in], 1, 1, w->d[in])), bias, opts);
}
/* The order of rows whose last axis has become this long. */
static void gcpi_onnx_order_last(gcpi_onnx_order *o, int size)
{
    const int axis = o->rank - 1;
    while (o->count && o->axis[o->count - 1] == axis) gcpi_onnx_order_remove(o, o->count - 1);
    o->d[axis] = size;
    if (size == 1) return;
    o->size[o->count] = size;
    o->axis[o->count] = axis;
    o->memory[o->count] = o->count;
    o->count++;
}
static int gcpi_onnx_gemm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value a = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0)), b = gcpi_onnx_copy(gcpi_onnx_in(m, n, 1)),
                    *c = gcpi_onnx_in(m, n, 2), *y = gcpi_onnx_out(m, n, 0), product = *y;
    static const int turn[2] = { 1, 0 };
    const double alpha = gcpi_onnx_float(n, "alpha", 1), beta = gcpi_onnx_float(n, "beta", 1);
    gcpi_onnx_pair p;
    if (gcpi_onnx_integer(n, "transA", 0)) gcpi_onnx_turn(&a, turn);
    const int plain = c && c->rank == 1 && c->d[0] == y->d[1] && alpha == 1 && beta == 1;
    const gcp_tensor bias = plain ? gcpi_onnx_channels(m, c) : gcpi_nil(NULL);
    product.order.count = 0;
    product.tensor = gcpi_onnx_linear(m, &a, &b, gcpi_onnx_integer(n, "transB", 0) != 0, bias, &product.order);
    if (gcp_is_nil(product.tensor)) return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    gcpi_onnx_order_last(&product.order, y->d[1]);
    if (!c || plain || beta == 0)
        return gcpi_onnx_put(m, n, 0, gcpi_onnx_scaled(m, product.tensor, alpha), &product.order);
    gcpi_onnx_becomes(m, &product, gcpi_onnx_scaled(m, product.tensor, alpha));
    gcpi_onnx_value sum = gcpi_onnx_copy(c);
    if (beta != 1) {
        gcpi_onnx_becomes(m, &sum, gcpi_onnx_scaled(m, gcpi_onnx_any(m, c), beta));
        sum.order = c->order;
    }
    if (!gcpi_onnx_pair_of(m, n, &product, &sum, y, &p)) return 0;
    return gcpi_onnx_put(m, n, 0, gcp_add_at(p.a, p.b, gcpi_onnx_opts(m)), &p.order);
}
/* Layouts of operands of many matrices, in a product of so many axes: batches first, then the two of a matrix, which
   may be turned. */
static const char *gcpi_onnx_matrices(int rank, int of, int turned)
{
    static const char *const layouts[2][4] = { { "||0|1", "0||1|2", "0|1|2|3", "01|2|3|4" },
                                               { "||1|0", "0||2|1", "0|1|3|2", "01|2|4|3" } };
    if (rank == 3 && of == 4) return turned ? "|0|2|1" : "|0|1|2";
    return rank < 6 ? layouts[turned][rank - 2] : "";
}
/* A tensor of batches, also where sizes of 1 make it look like a matrix. */
static gcp_tensor gcpi_onnx_batches(gcpi_onnx *m, gcp_tensor x)
{
    const gcp_shape s = gcp_shape_of(x);
    if (gcp_is_nil(x) || s.rank > 2) return x;
    return gcp_reshape_at(x, gcpi_raw(4, s.d[0], s.d[1], s.d[2], s.d[3]), gcpi_onnx_opts(m));
}
/* Whether each batch of one is a batch of the other, or one of them is a single matrix. */
static int gcpi_onnx_batches_fit(const gcpi_onnx_value *a, const gcpi_onnx_value *b)
{
    const int rank = GCPI_MAX(a->rank, b->rank);
    int same = 1;
    for (int i = 3; i <= rank; i++)
        same &= (i > a->rank ? 1 : a->d[a->rank - i]) == (i > b->rank ? 1 : b->d[b->rank - i]);
    return same || gcpi_onnx_elements(a) == (ptrdiff_t)a->d[a->rank - 2] * a->d[a->rank - 1] ||
           gcpi_onnx_elements(b) == (ptrdiff_t)b->d[b->rank - 2] * b->d[b->rank - 1];
}
/* A vector is a matrix of one row, or of one column. */
static gcpi_onnx_value gcpi_onnx_matrix(const gcpi_onnx_value *x, int column)
{
    gcpi_onnx_value v = gcpi_onnx_copy(x);
    if (x->rank > 1) return v;
    v.rank = 2;
    v.d[column ? 0 : 1] = x->d[0];
    v.d[column ? 1 : 0] = 1;
    gcpi_onnx_order_reshape(&v.order, 2, v.d);
    return v;
}
/* x's rows times a matrix, and a bias; nil: none. */
static int gcpi_onnx_product(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *w, gcp_tensor bias)
{
    gcpi_onnx_value y = gcpi_onnx_copy(x);
    y.source = -1;
    y.tensor = gcpi_onnx_linear(m, x, w, 0, bias, &y.order);
    if (gcp_is_nil(y.tensor)) return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    gcpi_onnx_order_last(&y.order, w->d[1]);
    return gcpi_onnx_put_value(m, n, 0, &y);
}
static int gcpi_onnx_matmul(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *left = gcpi_onnx_in(m, n, 0), *right = gcpi_onnx_in(m, n, 1);
    gcpi_onnx_value row = gcpi_onnx_matrix(left, 0), column = gcpi_onnx_matrix(right, 1), y = row;
    gcpi_onnx_value *a = left->rank == 1 ? &row : left, *b = right->rank == 1 ? &column : right;
    const int rank = GCPI_MAX(a->rank, b->rank);
    GCPI_ONNX_OPTS(matmul, opts);
    y.source = -1;
    if (b->rank == 2) return gcpi_onnx_product(m, n, a, b, gcpi_nil(NULL));
    if (rank > 5 || (rank == 5 && (a->rank != 5 || b->rank != 5)) || !gcpi_onnx_batches_fit(a, b))
        return gcpi_onnx_refuse(m, n, "operands of %d and %d axes, or batches that are spread over each other", a->rank,
                                b->rank);
    gcpi_onnx_bind(m, b);
    const int last = b->order.count ? b->order.axis[b->order.memory[b->order.count - 1]] : 0;
    opts.transpose_b = b->source < 0 && last == b->rank - 2; /* as it lies */
    const gcp_tensor x = gcpi_onnx_batches(m, gcpi_onnx_get(m, a, gcpi_onnx_matrices(a->rank, rank, 0))),
                     z = gcpi_onnx_batches(m, gcpi_onnx_get(m, b, gcpi_onnx_matrices(b->rank, rank, opts.transpose_b)));
    const gcpi_onnx_value *large = a->rank == rank ? a : b;
    for (int i = 0; i < rank; i++)
        y.d[i] = i == rank - 2 ? a->d[a->rank - 2] : i == rank - 1 ? b->d[b->rank - 1] : large->d[i];
    for (int i = 0; i < rank - 2; i++)
        if (y.d[i] == 1 && a->rank == rank && b->rank == rank) y.d[i] = GCPI_MAX(a->d[i], b->d[i]);
    y.tensor = gcp_matmul_at(x, z, opts);
    y.rank = rank;
    gcpi_onnx_order_make(&y.order, gcpi_onnx_matrices(rank, rank, 0), rank, y.d);
    return !gcp_is_nil(y.tensor) && gcpi_onnx_put_value(m, n, 0, &y);
}

/* ---- attention ---- */

/* q, k, v (samples, heads, tokens, channels); bias added to scores, or NULL. */
typedef struct gcpi_onnx_attend {
    gcpi_onnx_value *q, *k, *v, *bias;
    int causal;
    double scale;
} gcpi_onnx_attend;

static gcp_tensor gcpi_onnx_bias_tensor(gcpi_onnx *m, gcpi_onnx_value *b, int samples, int heads, int rows, int keys)
{
    const gcp_tensor x = gcpi_onnx_get(m, b, b->rank == 2 ? "||0|1" : b->rank == 3 ? "|0|1|2" : "0|1|2|3");
    const gcp_shape s = gcp_shape_of(x), full = gcpi_raw(4, s.d[0] == 1 ? 1 : samples, heads, rows, keys);
    return gcp_is_nil(x) || gcpi_same_shape(s, full) ? x : gcp_expand_at(x, full, gcpi_onnx_opts(m));
}
static gcp_tensor gcpi_onnx_attended(gcpi_onnx *m, const gcpi_onnx_attend *a)
{
    GCPI_ONNX_OPTS(attention, o);
    o.heads = a->q->d[1];
    o.causal = a->causal;
    o.scale = a->scale;
    if (a->bias) o.bias = gcpi_onnx_bias_tensor(m, a->bias, a->q->d[0], o.heads, a->q->d[2], a->k->d[2]);
    const gcp_tensor q = gcpi_onnx_get(m, a->q, "0||2|13"), k = gcpi_onnx_get(m, a->k, "0||2|13"),
                     v = gcpi_onnx_get(m, a->v, "0||2|13");
    return gcp_attention_at(q, k, v, o);
}
/* The op of opset 23. */
static int gcpi_onnx_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    static const int heads_first[4] = { 0, 2, 1, 3 };
    gcpi_onnx_value x[3], *bias = gcpi_onnx_in(m, n, 3);
    gcpi_onnx_attend a;
    const int rank = gcpi_onnx_in(m, n, 0)->rank;
    for (int i = 4; i < n->inputs; i++)
        if (gcpi_onnx_in(m, n, i)) return gcpi_onnx_refuse(m, n, "past keys, or lengths");
    for (int i = 1; i < n->outputs; i++)
        if (gcpi_onnx_out(m, n, i)) return gcpi_onnx_refuse(m, n, "a second output");
    if (gcpi_onnx_float(n, "softcap", 0) != 0) return gcpi_onnx_refuse(m, n, "softcap");
    if (bias && !gcpi_onnx_is_real(bias->type)) return gcpi_onnx_refuse(m, n, "a mask that is no float");
    for (int i = 0; i < 3; i++) {
        x[i] = gcpi_onnx_copy(gcpi_onnx_in(m, n, i));
        const int heads = (int)gcpi_onnx_integer(n, i ? "kv_num_heads" : "q_num_heads", 1);
        int d[4] = { x[i].d[0], x[i].d[1], heads, x[i].d[2] / heads };
        if (rank == 4) continue;
        if (x[i].d[2] % heads || !gcpi_onnx_order_reshape(&x[i].order, 4, d))
            return gcpi_onnx_refuse(m, n, "heads that do not fit");
        gcpi_onnx_turn(&x[i], heads_first);
        x[i].rank = 4;
    }
    a.q = &x[0];
    a.k = &x[1];
    a.v = &x[2];
    a.bias = bias;
    a.causal = gcpi_onnx_integer(n, "is_causal", 0) != 0;
    a.scale = gcpi_onnx_float(n, "scale", 0);
    /* row i sees keys up to i, so those behind the last row serve nobody */
    for (int i = 1; i < 3 && a.causal && x[0].d[2] < x[i].d[2]; i++) {
        gcpi_onnx_value all = x[i];
        if (!gcpi_onnx_cut(m, &all, 2, 0, x[0].d[2], 1, &x[i])) return 0;
    }
    if (a.causal && x[0].d[2] > x[1].d[2]) return gcpi_onnx_refuse(m, n, "is_causal with more rows than keys");
    if (a.causal && a.bias && a.bias->d[a.bias->rank - 1] != x[1].d[2])
        return gcpi_onnx_refuse(m, n, "is_causal with a mask of more keys than rows");
    return gcpi_onnx_put_layout(m, n, 0, gcpi_onnx_attended(m, &a), rank == 4 ? "0||2|13" : "0||1|2");
}

/* ==== src/onnx/onnx_norms.h ==== */

/* Norms, softmax, and ops that reduce axes. */

/* The running mean and variance of the batch-norm that was recorded last are inputs 3 and 4 of its node. */
static void gcpi_onnx_statistics(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    gcp_tape *t = m->tape;
    int op = t->op_count - 1, next = 0;
    while (op > 0 && !gcpi_facts_of(&t->ops[op]).stats) op--;
    for (int i = 3; i < 5; i++) {
        if (m->weight_count == m->weight_capacity) {
            gcpi_fail(t, GCP_E_CAPACITY, m->at, m->call, "more than %d weights and constants", m->weight_capacity);
            return;
        }
        const gcpi_onnx_value *v = gcpi_onnx_in(m, n, i);
        gcpi_onnx_weight *w = &m->weights[m->weight_count++];
        w->source = v->source;
        w->order = v->order;
        w->tensor = gcpi_handle(t, t->edges[t->ops[op].in + 1 + next++]);
    }
}
/* A norm's running statistics lie below its name: that of the mean in the file, without the last part. NULL: it has
   none, or it is taken. */
static const char *gcpi_onnx_norm_name(const gcpi_onnx *m, const gcpi_onnx_value *mean, char *text, size_t size)
{
    const int parent = m->tape->segments[m->tape->open].name;
    size_t end = mean->name.size;
    while (end && mean->name.at[end - 1] != '.') end--;
    if (end < 2) return NULL;
    gcpi_onnx_plain_name(gcpi_excerpt_of(mean->name.at, end - 1), text, size);
    return gcpi_name_find(m->tape, parent, text, gcpi_name_hash(parent, text)) ? NULL : text;
}
/* The scale of a norm, which begins as ones where no file gives it. */
static gcp_tensor gcpi_onnx_ones(gcp_tensor scale)
{
    const gcpi_tensor *e = gcpi_get(scale);
    if (e && e->kind == GCPI_PARAMETER) scale.tape->parameters[e->parameter].init = GCP_INIT_ONES;
    return scale;
}
static int gcpi_onnx_batch_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *gamma = gcpi_onnx_in(m, n, 1), *beta = gcpi_onnx_in(m, n, 2);
    const char *layout = x->rank == 2 ? "0|||1" : x->rank == 3 ? "0||2|1" : "0|2|3|1";
    char name[200];
    GCPI_ONNX_OPTS(norm, o);
    const double momentum = 1 - gcpi_onnx_float(n, "momentum", 0.9);
    if (x->rank < 2 || x->rank > 4 || !beta || n->inputs < 5)
        return gcpi_onnx_refuse(m, n, "an input of %d axes; 2 to 4 are allowed", x->rank);
    for (int i = 3; i < 5; i++) {
        const int source = gcpi_onnx_in(m, n, i)->source;
        if (source < 0) return gcpi_onnx_refuse(m, n, "its mean or variance is not known before a step");
        if (gcpi_onnx_weight_of(m, source) || gcpi_onnx_in(m, n, 3) == gcpi_onnx_in(m, n, 4))
            return gcpi_onnx_refuse(m, n, "its mean or variance is another op's, too: it has one place in the file");
    }
    if (gcpi_onnx_integer(n, "spatial", 1) != 1) return gcpi_onnx_refuse(m, n, "spatial = 0");
    o.epsilon = gcpi_onnx_exactly(gcpi_onnx_float(n, "epsilon", 1e-5));
    o.frozen = m->frozen_norms;
    if (!o.frozen) o.momentum = gcpi_onnx_exactly(floor(momentum * 1e6 + 0.5) / 1e6); /* 0.9 as a float is not 0.9 */
    o.name = gcpi_onnx_norm_name(m, gcpi_onnx_in(m, n, 3), name, sizeof name);
    const gcp_tensor g = gcpi_onnx_ones(gcpi_onnx_channels(m, gamma)), b = gcpi_onnx_channels(m, beta),
                     y = gcp_batch_norm_op_at(gcpi_onnx_get(m, x, layout), g, b, o);
    if (gcp_is_nil(y)) return 0;
    gcpi_onnx_statistics(m, n);
    return gcpi_onnx_put_layout(m, n, 0, y, layout);
}
/* Layer norm, or rms, over the axes from `axis` on. beta NULL: none. */
static int gcpi_onnx_norm_of_rows(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *gamma,
                                  gcpi_onnx_value *beta, int axis, double epsilon, int rms)
{
    gcpi_onnx_order o;
    int trailing;
    GCPI_ONNX_OPTS(norm, opts);
    opts.epsilon = gcpi_onnx_exactly(epsilon);
    const gcp_tensor rows = gcpi_onnx_rows(m, x, axis, &o, &trailing),
                     g = gcpi_onnx_ones(gcpi_onnx_along_rows(m, gamma, axis, &o, trailing));
    gcp_tensor b = beta && !rms ? gcpi_onnx_along_rows(m, beta, axis, &o, trailing) : gcpi_nil(NULL);
    if (gcp_is_nil(g) || (beta && !rms && gcp_is_nil(b)))
        return gcpi_onnx_refuse(m, n, "its operands were cut differently");
    if (!beta && !rms) b = gcpi_onnx_scaled(m, g, 0);
    return gcpi_onnx_put(m, n, 0, rms ? gcp_rms_norm_op_at(rows, g, opts) : gcp_layer_norm_op_at(rows, g, b, opts), &o);
}
static int gcpi_onnx_layer_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *gamma = gcpi_onnx_in(m, n, 1);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", -1), x->rank);
    for (int i = 1; i < n->outputs; i++)
        if (gcpi_onnx_out(m, n, i) && gcpi_onnx_out(m, n, i)->uses)
            return gcpi_onnx_refuse(m, n, "its mean or deviation is read");
    if (axis < 0 || !gamma || gamma->rank != x->rank - axis)
        return gcpi_onnx_refuse(m, n, "its axis, or a scale of other axes");
    return gcpi_onnx_norm_of_rows(m, n, x, gamma, gcpi_onnx_in(m, n, 2), axis, gcpi_onnx_float(n, "epsilon", 1e-5),
                                  gcpi_excerpt_is(n->op, "RMSNormalization"));
}
static int gcpi_onnx_group_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *gamma = gcpi_onnx_in(m, n, 1), *beta = gcpi_onnx_in(m, n, 2);
    const int each = gcpi_excerpt_is(n->op, "InstanceNormalization");
    GCPI_ONNX_OPTS(group_norm, o);
    if (x->rank < 3 || x->rank > 4 || !gamma || !beta)
        return gcpi_onnx_refuse(m, n, "an input of %d axes; 3 or 4 are allowed", x->rank);
    if (gamma->d[0] != x->d[1])
        return gcpi_onnx_refuse(m, n, "a scale for each group, as before opset 21; for each channel is allowed");
    o.groups = each ? x->d[1] : (int)gcpi_onnx_integer(n, "num_groups", 1);
    o.epsilon = gcpi_onnx_exactly(gcpi_onnx_float(n, "epsilon", 1e-5));
    const char *layout = gcpi_layout_image(x->rank);
    const gcp_tensor g = gcpi_onnx_ones(gcpi_onnx_channels(m, gamma)), b = gcpi_onnx_channels(m, beta);
    return gcpi_onnx_put_layout(m, n, 0, gcp_group_norm_op_at(gcpi_onnx_get(m, x, layout), g, b, o), layout);
}
/* Over one axis; before opset 13 over all from the axis on. */
static int gcpi_onnx_softmax(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value x = gcpi_onnx_copy(gcpi_onnx_in(m, n, 0)), *in = gcpi_onnx_in(m, n, 0);
    const int old = m->opset < 13, axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", old ? 1 : -1), x.rank);
    const int logarithm = gcpi_excerpt_is(n->op, "LogSoftmax");
    int axes[GCPI_AXES], back[GCPI_AXES], trailing, last = 0;
    gcpi_onnx_order o;
    if (axis < 0) return gcpi_onnx_refuse(m, n, "its axis is not one of %d", x.rank);
    gcpi_onnx_bind(m, in);
    for (int i = 0; i < x.rank; i++)
        if (i != axis || old) axes[last++] = i;
    if (!old) axes[last] = axis;
    x = gcpi_onnx_copy(in);
    gcpi_onnx_turn(&x, axes);
    for (int i = 0; i < x.rank; i++) back[axes[i]] = i;
    const gcp_tensor rows = gcpi_onnx_rows(m, &x, old ? axis : x.rank - 1, &o, &trailing);
    gcpi_onnx_order_transpose(&o, back);
    return gcpi_onnx_put(
        m, n, 0, logarithm ? gcp_log_softmax_at(rows, gcpi_onnx_opts(m)) : gcp_softmax_at(rows, gcpi_onnx_opts(m)), &o);
}

/* ---- reductions ---- */

/* Factors of axes in `axes` are left out of an order. */
static void gcpi_onnx_order_drop(gcpi_onnx_order *o, int axes)
{
    for (int f = o->count - 1; f >= 0; f--)
        if (axes >> o->axis[f] & 1) gcpi_onnx_order_remove(o, f);
    for (int i = 0; i < o->rank; i++)
        if (axes >> i & 1) o->d[i] = 1;
}
static gcp_tensor gcpi_onnx_reduced_by(gcpi_onnx *m, gcp_tensor x, gcp_reduction by, const int *over)
{
    GCPI_ONNX_OPTS(reduce, o);
    o.by = by;
    o.samples = over[0];
    o.height = over[1];
    o.width = over[2];
    o.channels = over[3];
    return gcp_reduce_at(x, o);
}
static int gcpi_onnx_reduce(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 0), y;
    int has[GCPI_FACTORS], over[4] = { 0 }, any = 0;
    const int axes = gcpi_onnx_reduced(m, n, v->rank);
    const gcp_reduction by = gcpi_excerpt_is(n->op, "ReduceMean") ? GCP_REDUCE_MEAN
                           : gcpi_excerpt_is(n->op, "ReduceMax")  ? GCP_REDUCE_MAX
                                                                  : GCP_REDUCE_SUM;
    gcp_tensor x = gcpi_onnx_any(m, v);
    gcp_shape s;
    for (int j = 0; j < v->order.count; j++) has[j] = axes >> v->order.axis[v->order.memory[j]] & 1;
    if (!gcpi_onnx_groups(&v->order, has, gcp_shape_of(x), &s))
        return gcpi_onnx_refuse(m, n, "axes that lie in more than four parts");
    for (int j = 0, place = 0, left = 1; j < v->order.count; j++) {
        if (left == 1) {
            while (s.d[place] == 1) place++;
            left = s.d[place++];
        }
        left /= v->order.size[v->order.memory[j]];
        over[place - 1] |= has[j];
        any |= has[j];
    }
    y = gcpi_onnx_copy(v);
    y.source = -1;
    gcpi_onnx_order_drop(&y.order, axes);
    x = gcpi_onnx_reshape(m, x, s);
    if (gcpi_excerpt_is(n->op, "ReduceL2")) x = gcp_square_at(x, gcpi_onnx_opts(m));
    y.tensor = any ? gcpi_onnx_reduced_by(m, x, by, over) : x;
    if (gcpi_excerpt_is(n->op, "ReduceL2")) y.tensor = gcp_sqrt_at(y.tensor, gcpi_onnx_opts(m));
    return gcpi_onnx_put_value(m, n, 0, &y);
}

/* ==== src/onnx/curves.h ==== */

/* Curves: activations that exporters write in pieces. What a few nodes make of one value, element by element, is drawn:
   where all that goes in is that value and numbers, it is computed at some points, and compared with ops of gcp. */

/* Clip, HardSigmoid and Cast of a number. 0: n is another op. */
static int gcpi_onnx_clipped_at(gcpi_onnx *m, const gcpi_onnx_node *n, double a, double *y)
{
    double low = gcpi_onnx_float(n, "min", -HUGE_VAL), high = gcpi_onnx_float(n, "max", HUGE_VAL);
    if (gcpi_excerpt_is(n->op, "HardSigmoid")) {
        a = a * gcpi_onnx_float(n, "alpha", 0.2) + gcpi_onnx_float(n, "beta", 0.5);
        low = 0;
        high = 1;
    } else if (gcpi_excerpt_is(n->op, "Cast")) {
        const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *to = gcpi_onnx_out(m, n, 0);
        if (!x || !to || x->type != GCPI_ONNX_BOOL || !gcpi_onnx_is_real(to->type)) return 0; /* of a truth to 0 or 1 */
    } else if (!gcpi_excerpt_is(n->op, "Clip")) return 0;
    if ((gcpi_onnx_in(m, n, 1) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &low)) ||
        (gcpi_onnx_in(m, n, 2) && !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 2), &high)))
        return 0;
    *y = a < low ? low : a > high ? high : a;
    return 1;
}
/* v where x is `at`. steps: how many nodes may be looked at. 0: v is no function of x's elements alone. */
static int gcpi_onnx_curve_at(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, double at, int *steps,
                              double *y)
{
    double a, b = 0;
    *y = at;
    if (v == x || gcpi_onnx_number(m, v, y)) return 1;
    if (v != gcpi_onnx_bare(m, v)) return gcpi_onnx_curve_at(m, gcpi_onnx_bare(m, v), x, at, steps, y);
    gcpi_onnx_node *n = v && v->node >= 0 ? &m->nodes[v->node] : NULL;
    if (!n || n->foreign || --*steps < 0) return 0;
    const char letter = gcpi_fold_letter(n);
    const int pair = n->inputs == 2 && strchr("+-*/^Mm<>lg=&|", letter) != NULL;
    if (!gcpi_onnx_curve_at(m, gcpi_onnx_in(m, n, 0), x, at, steps, &a)) return 0;
    if (gcpi_excerpt_is(n->op, "Where") && n->inputs == 3)
        return gcpi_onnx_curve_at(m, gcpi_onnx_in(m, n, a != 0 ? 1 : 2), x, at, steps, y);
    if (pair && !gcpi_onnx_curve_at(m, gcpi_onnx_in(m, n, 1), x, at, steps, &b)) return 0;
    if (pair) *y = gcpi_fold_pair(letter, a, b, 1);
    else if (n->inputs == 1 && strchr("-aselrEtGpRf!", letter)) *y = gcpi_fold_one(letter, a);
    else return gcpi_onnx_clipped_at(m, n, a, y);
    return 1;
}

static double gcpi_curve_silu(double x) { return x / (1 + exp(-x)); }
static double gcpi_curve_hard_sigmoid(double x) { return GCPI_MIN(1.0, GCPI_MAX(0.0, x / 6 + 0.5)); }
static double gcpi_curve_hard_swish(double x) { return x * gcpi_curve_hard_sigmoid(x); }
static double gcpi_curve_gelu(double x) { return 0.5 * x * (1 + erf(x * 0.70710678118654752)); }
static double gcpi_curve_gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(0.79788456080286536 * (x + 0.044715 * x * x * x)));
}
static double gcpi_curve_mish(double x) { return x * tanh(log(1 + exp(x))); }
static gcp_tensor gcpi_onnx_sixth(gcp_tensor x, gcp_op_opts o) /* hard_sigmoid of slope 1/6 */
{
    gcp_hard_sigmoid_opts h = GCP_OPTS(gcp_hard_sigmoid_opts, );
    h.at = o.at;
    return gcp_hard_sigmoid_at(x, h);
}
static const struct gcpi_onnx_curve {
    double (*at)(double x);
    gcp_tensor (*record)(gcp_tensor x, gcp_op_opts o);
} gcpi_onnx_curves[] = { { gcpi_curve_silu, gcp_silu_at }, { gcpi_curve_hard_swish, gcp_hard_swish_at },
                         { gcpi_curve_gelu, gcp_gelu_at }, { gcpi_curve_gelu_tanh, gcp_gelu_tanh_at },
                         { gcpi_curve_mish, gcp_mish_at }, { gcpi_curve_hard_sigmoid, gcpi_onnx_sixth } };

/* Curves with numbers of their own, behind those above: p of clamp, low and high; of leaky_relu, the slope; of elu,
   alpha and what it is multiplied by. */
enum {
    GCPI_CURVES = (int)(sizeof gcpi_onnx_curves / sizeof *gcpi_onnx_curves),
    GCPI_CURVE_CLAMP = GCPI_CURVES,
    GCPI_CURVE_LEAKY,
    GCPI_CURVE_ELU,
    GCPI_CURVES_ALL
};
static double gcpi_onnx_curve_y(int curve, const double *p, double x)
{
    if (curve < GCPI_CURVES) return gcpi_onnx_curves[curve].at(x);
    if (curve == GCPI_CURVE_CLAMP) return x < p[0] ? p[0] : x > p[1] ? p[1] : x;
    if (curve == GCPI_CURVE_LEAKY) return x < 0 ? p[0] * x : x;
    return p[1] * (x < 0 ? p[0] * (exp(x) - 1) : x);
}
static int gcpi_onnx_drawn(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, double at, double *y)
{
    int steps = 24;
    return gcpi_onnx_curve_at(m, v, x, at, &steps, y);
}
/* The numbers that a curve would have, from where they show. 0: it has none that are allowed. */
static int gcpi_onnx_curve_numbers(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, int curve, double *p)
{
    const double far = curve == GCPI_CURVE_CLAMP ? 1e30 : curve == GCPI_CURVE_LEAKY ? 1 : 40;
    if (curve < GCPI_CURVES) return 1;
    if (!gcpi_onnx_drawn(m, v, x, -far, &p[0]) || !gcpi_onnx_drawn(m, v, x, curve == GCPI_CURVE_ELU ? 1 : far, &p[1]))
        return 0;
    if (curve == GCPI_CURVE_CLAMP) {
        if (p[0] == -far) p[0] = -HUGE_VAL;
        if (p[1] == far) p[1] = HUGE_VAL;
        return p[0] < p[1] && (p[0] > -HUGE_VAL || p[1] < HUGE_VAL);
    }
    if (curve == GCPI_CURVE_ELU && !(p[1] > 0)) return 0;
    p[0] /= curve == GCPI_CURVE_ELU ? -p[1] : -1;
    return p[0] >= 0;
}
/* Whether v is this curve where it is drawn. */
static int gcpi_onnx_curve_fits(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, int curve, const double *p)
{
    /* both sides of all kinks that activations have, close to 0, and far out */
    static const double points[] = { 1.1,  -4,    -2.2, -0.3,  0.2,  2.6,   3.7, 0,    1,  -1,  7.5, -7.5,
                                     1e-3, -1e-3, 0.05, -0.05, 2.95, -2.95, 5.4, -5.4, 20, -20, 1e3, -1e3 };
    enum { POINTS = (int)(sizeof points / sizeof *points) };
    const int bounds = curve == GCPI_CURVE_CLAMP ? 4 : 0;
    double y;
    for (int i = 0; i < POINTS + bounds; i++) {
        const double bound = p[(i - POINTS) / 2 & 1], step = 1e-3 * (1 + fabs(bound)),
                     at = i < POINTS       ? points[i]
                        : (i - POINTS) & 1 ? bound + step
                                           : bound - step;
        if (!isfinite(at)) continue;
        if (!gcpi_onnx_drawn(m, v, x, at, &y) || !(fabs(y - gcpi_onnx_curve_y(curve, p, at)) < 5e-7 * (1 + fabs(y))))
            return 0;
    }
    return 1;
}
/* Which curve v is, drawn over x, but for constants that are rounded to floats; -1: none. */
static int gcpi_onnx_curve_of(gcpi_onnx *m, gcpi_onnx_value *v, const gcpi_onnx_value *x, double *p)
{
    double y;
    if (!gcpi_onnx_drawn(m, v, x, 1.1, &y)) return -1;
    for (int c = 0; c < GCPI_CURVES_ALL; c++)
        if (gcpi_onnx_curve_numbers(m, v, x, c, p) && gcpi_onnx_curve_fits(m, v, x, c, p)) return c;
    return -1;
}
/* A value at most `depth` nodes below v of which n is a curve. */
static int gcpi_onnx_curve_below(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *v, int depth)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    double number;
    if (!v || gcpi_onnx_number(m, v, &number)) return 0;
    const int curve = gcpi_onnx_same_sizes(v, y) ? gcpi_onnx_curve_of(m, y, v, n->number + 1) : -1;
    n->part[0] = gcpi_onnx_index(m, v);
    n->number[0] = curve;
    if (curve >= 0) return 1;
    const gcpi_onnx_node *below = v->node >= 0 ? &m->nodes[v->node] : NULL;
    for (int i = 0; below && depth && i < 2; i++)
        if (gcpi_onnx_curve_below(m, n, gcpi_onnx_in(m, below, i), depth - 1)) return 1;
    n->part[0] = 0;
    return 0;
}
static int gcpi_match_curve(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (int i = 0; i < n->inputs; i++)
        if (gcpi_onnx_curve_below(m, n, gcpi_onnx_in(m, n, i), 2)) return 1;
    return 0;
}
static int gcpi_record_curve(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    const gcp_tensor in = gcpi_onnx_any(m, x);
    const int curve = (int)n->number[0];
    const double *p = n->number + 1;
    GCPI_ONNX_OPTS(leaky_relu, leaky);
    GCPI_ONNX_OPTS(elu, elu);
    leaky.slope = gcpi_onnx_exactly(p[0]);
    elu.alpha = gcpi_onnx_exactly(p[0]);
    const gcp_tensor y = curve == GCPI_CURVE_CLAMP ? gcpi_onnx_clamped(m, in, p[0], p[1])
                       : curve == GCPI_CURVE_LEAKY ? gcp_leaky_relu_at(in, leaky)
                       : curve == GCPI_CURVE_ELU   ? gcpi_onnx_scaled(m, gcp_elu_at(in, elu), p[1])
                                                   : gcpi_onnx_curves[curve].record(in, gcpi_onnx_opts(m));
    return gcpi_onnx_put(m, n, 0, y, &x->order);
}

/* ---- dropped samples ---- */

/* The random numbers that a mask is made of; NULL: none at most 6 nodes below it, or something else reads them. */
static gcpi_onnx_value *gcpi_onnx_random_below(gcpi_onnx *m, gcpi_onnx_value *v, int depth)
{
    gcpi_onnx_node *n = v && v->node >= 0 && depth ? &m->nodes[v->node] : NULL;
    gcpi_onnx_value *found = NULL;
    if (!n || n->foreign) return NULL;
    if (gcpi_excerpt_is(n->op, "RandomUniformLike"))
        return gcpi_onnx_float(n, "low", 0) == 0 && gcpi_onnx_float(n, "high", 1) == 1 ? v : NULL;
    for (int i = 0; i < 2 && !found; i++) found = gcpi_onnx_random_below(m, gcpi_onnx_in(m, n, i), depth - 1);
    return found && gcpi_onnx_readers(m, v) == 1 ? found : NULL;
}
/* How often a mask, a curve over uniform random numbers, is not 0, and what it is then; 0: it is no such mask. */
static double gcpi_onnx_kept_share(gcpi_onnx *m, gcpi_onnx_value *mask, double *number)
{
    const gcpi_onnx_value *r = gcpi_onnx_random_below(m, mask, 6);
    double low = 0, high = 1 - 1e-12, first, last, y;
    int steps = 24, more = 24;
    if (!r || !gcpi_onnx_curve_at(m, mask, r, low, &steps, &first) ||
        !gcpi_onnx_curve_at(m, mask, r, high, &more, &last) || (first != 0) == (last != 0))
        return 0;
    for (int i = 0; i < 44; i++) {
        const double middle = (low + high) / 2;
        steps = 24;
        if (!gcpi_onnx_curve_at(m, mask, r, middle, &steps, &y) || (y != first && y != last)) return 0;
        if (y == first) low = middle;
        else high = middle;
    }
    *number = first != 0 ? first : last;
    return first != 0 ? low : 1 - low;
}
/* x times a mask of its shape, or of a number for each sample: dropout, or stochastic depth. */
static int gcpi_match_drop(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (int i = 0; i < 2; i++) {
        gcpi_onnx_value *mask = gcpi_onnx_in(m, n, i), *x = gcpi_onnx_in(m, n, 1 - i);
        double kept, number = 1;
        int per_sample = x->rank > 1 && mask->rank == x->rank && mask->d[0] == x->d[0];
        for (int k = 1; k < x->rank && per_sample; k++) per_sample = mask->d[k] == 1;
        kept = per_sample || gcpi_onnx_same_sizes(mask, x) ? gcpi_onnx_kept_share(m, mask, &number) : 0;
        if (kept <= 0 || kept >= 1 || gcpi_onnx_readers(m, mask) != 1) continue;
        if (fabs(number * kept - 1) > 1e-5) x = gcpi_onnx_unscaled(m, x, &number);
        if (fabs(number * kept - 1) > 1e-5) continue; /* what is kept is not divided by its share */
        n->part[0] = gcpi_onnx_index(m, x);
        n->number[0] = 1 - kept;
        n->number[1] = per_sample;
        return 1;
    }
    return 0;
}
static int gcpi_record_drop(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    const char *layout = gcpi_layout_usual(x->rank);
    GCPI_ONNX_OPTS(dropout, o);
    o.rate = floor(n->number[0] * 1e7 + 0.5) / 1e7;
    o.per_sample = n->number[1] != 0;
    if (!o.per_sample) return gcpi_onnx_put(m, n, 0, gcp_dropout_at(gcpi_onnx_any(m, x), o), &x->order);
    return gcpi_onnx_put_layout(m, n, 0, gcp_dropout_at(gcpi_onnx_get(m, x, layout), o), layout);
}

/* ==== src/onnx/fusions.h ==== */

/* Patterns: what exporters write in pieces and gcp has as one op. A pattern belongs to its last node; what it reads is
   recorded, what lies between is not, unless something else reads it. */

typedef struct gcpi_onnx_pattern {
    const char *op;                                /* of the last node */
    int (*match)(gcpi_onnx *m, gcpi_onnx_node *n); /* fills n->part, the values that it reads, 0 behind them */
    int (*record)(gcpi_onnx *m, gcpi_onnx_node *n);
} gcpi_onnx_pattern;

/* A mask of scores (samples or 1, heads or 1, rows, keys), of two to four axes. */
static int gcpi_onnx_is_bias(const gcpi_onnx_value *b, const gcpi_onnx_value *scores)
{
    if (!b || !b->shaped || b->rank < 2 || b->rank > scores->rank || scores->rank != 4) return 0;
    for (int i = 1; i <= b->rank; i++) {
        const int size = b->d[b->rank - i], full = scores->d[scores->rank - i];
        if (size != full && (size != 1 || i < 3)) return 0;
    }
    return 1;
}
/* softmax(scale q k' + bias) v: a MatMul whose left operand is a Softmax of scores. */
static int gcpi_match_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, 1), *bias = NULL;
    gcpi_onnx_node *softmax = gcpi_onnx_maker(m, gcpi_onnx_bare(m, gcpi_onnx_in(m, n, 0)), "Softmax");
    gcpi_onnx_value *scores = softmax ? gcpi_onnx_bare(m, gcpi_onnx_in(m, softmax, 0)) : NULL;
    double scale = 1;
    if (!scores || (v->rank != 4 && v->rank != 3) || scores->rank != v->rank) return 0;
    if (gcpi_onnx_axis(gcpi_onnx_integer(softmax, "axis", m->opset < 13 ? 1 : -1), v->rank) != v->rank - 1) return 0;
    gcpi_onnx_node *add = gcpi_onnx_maker(m, scores, "Add");
    for (int i = 0; add && i < 2 && !bias; i++)
        if (gcpi_onnx_is_bias(gcpi_onnx_in(m, add, i), gcpi_onnx_in(m, add, 1 - i)) &&
            gcpi_onnx_maker(m, gcpi_onnx_unscaled(m, gcpi_onnx_in(m, add, 1 - i), &scale), "MatMul")) {
            bias = gcpi_onnx_in(m, add, i);
            scale = 1;
            scores = gcpi_onnx_in(m, add, 1 - i);
        } else scale = 1;
    gcpi_onnx_node *product = gcpi_onnx_maker(m, gcpi_onnx_unscaled(m, scores, &scale), "MatMul");
    if (!product) return 0;
    gcpi_onnx_value *q = gcpi_onnx_unscaled(m, gcpi_onnx_in(m, product, 0), &scale),
                    *k = gcpi_onnx_unscaled(m, gcpi_onnx_in(m, product, 1), &scale);
    if (!q || !k || q->rank != v->rank || k->rank != v->rank || scale <= 0) return 0;
    for (int i = 0; i < v->rank - 2; i++)
        if (q->d[i] != k->d[i] || q->d[i] != v->d[i]) return 0;
    n->part[0] = gcpi_onnx_index(m, q);
    n->part[1] = gcpi_onnx_index(m, k);
    n->part[2] = gcpi_onnx_index(m, v);
    n->part[3] = bias ? gcpi_onnx_index(m, bias) : 0;
    n->number[0] = scale;
    return 1;
}
static int gcpi_record_attention(gcpi_onnx *m, gcpi_onnx_node *n)
{
    static const int turn[4] = { 0, 1, 3, 2 };
    gcpi_onnx_value x[3];
    gcpi_onnx_attend a;
    const int rank = m->values[n->part[0]].rank;
    for (int i = 0; i < 3; i++) {
        gcpi_onnx_any(m, &m->values[n->part[i]]);
        x[i] = gcpi_onnx_copy(&m->values[n->part[i]]);
        const int one_head[4] = { x[i].d[0], 1, x[i].d[1], x[i].d[2] };
        if (rank == 3) gcpi_onnx_order_reshape(&x[i].order, 4, one_head);
        if (i == 1) gcpi_onnx_order_transpose(&x[i].order, turn);
        x[i].rank = 4;
        memcpy(x[i].d, x[i].order.d, sizeof x[i].d);
    }
    a.q = &x[0];
    a.k = &x[1];
    a.v = &x[2];
    a.bias = n->part[3] ? &m->values[n->part[3]] : NULL;
    a.causal = 0;
    a.scale = n->number[0];
    return gcpi_onnx_put_layout(m, n, 0, gcpi_onnx_attended(m, &a), rank == 4 ? "0||2|13" : "0||1|2");
}

/* ---- norms in pieces, and a product's bias ---- */

/* Which input of a sum or product is a weight of the last axis alone; -1: none. */
static int gcpi_onnx_affine(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    for (int i = 0; n && i < 2; i++) {
        const gcpi_onnx_value *w = gcpi_onnx_in(m, n, i), *x = gcpi_onnx_in(m, n, 1 - i);
        if (w && x && w->source >= 0 && gcpi_onnx_is_weight(m, w) && w->rank == 1 && x->rank > 1 &&
            w->d[0] == x->d[x->rank - 1])
            return i;
    }
    return -1;
}
/* A weight added to rows times a weight, which nothing else reads. */
static int gcpi_match_bias(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int bias = gcpi_onnx_affine(m, n);
    gcpi_onnx_value *product = bias < 0 ? NULL : gcpi_onnx_in(m, n, 1 - bias);
    const gcpi_onnx_node *matmul = gcpi_onnx_maker(m, product, "MatMul");
    gcpi_onnx_value *w = matmul ? gcpi_onnx_in(m, matmul, 1) : NULL;
    if (!w || product->needed || w->rank != 2 || gcpi_onnx_in(m, matmul, 0)->rank < 2) return 0;
    n->part[0] = gcpi_onnx_index(m, gcpi_onnx_in(m, matmul, 0));
    n->part[1] = gcpi_onnx_index(m, w);
    n->part[2] = gcpi_onnx_index(m, gcpi_onnx_in(m, n, bias));
    return 1;
}
static int gcpi_record_bias(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value w = gcpi_onnx_copy(&m->values[n->part[1]]);
    return gcpi_onnx_product(m, n, &m->values[n->part[0]], &w, gcpi_onnx_channels(m, &m->values[n->part[2]]));
}
/* x below 0 times a weight, else x: what PRelu is expanded to. */
static int gcpi_match_prelu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_node *less = gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 0), "Less"),
                         *times = gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 1), "Mul");
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 2), *y = gcpi_onnx_out(m, n, 0);
    double zero;
    if (!less || !times || gcpi_onnx_in(m, less, 0) != x || !gcpi_onnx_number(m, gcpi_onnx_in(m, less, 1), &zero))
        return 0;
    const int weight = gcpi_onnx_in(m, times, 0) == x;
    if (zero != 0 || gcpi_onnx_in(m, times, !weight) != x || !gcpi_onnx_same_sizes(x, y)) return 0;
    n->part[0] = gcpi_onnx_index(m, x);
    n->part[1] = gcpi_onnx_index(m, gcpi_onnx_in(m, times, weight));
    return 1;
}
static int gcpi_record_prelu(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_prelu_of(m, n, &m->values[n->part[0]], &m->values[n->part[1]]);
}
/* What v is the mean of, over its last axis, kept as a size of 1; NULL: it is none. */
static gcpi_onnx_value *gcpi_onnx_mean_of(gcpi_onnx *m, gcpi_onnx_value *v)
{
    gcpi_onnx_node *n = gcpi_onnx_maker(m, gcpi_onnx_bare(m, v), "ReduceMean");
    gcpi_onnx_value *x = n ? gcpi_onnx_in(m, n, 0) : NULL;
    int64_t axis;
    if (!x || gcpi_onnx_list(m, n, "axes", 1, &axis, 1) != 1 || !gcpi_onnx_integer(n, "keepdims", 1)) return NULL;
    return gcpi_onnx_axis(axis, x->rank) == x->rank - 1 ? gcpi_onnx_bare(m, x) : NULL;
}
static gcpi_onnx_value *gcpi_onnx_square_of(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const gcpi_onnx_node *power = gcpi_onnx_maker(m, v, "Pow"), *times = gcpi_onnx_maker(m, v, "Mul");
    double two;
    if (power && gcpi_onnx_number(m, gcpi_onnx_in(m, power, 1), &two) && two == 2)
        return gcpi_onnx_bare(m, gcpi_onnx_in(m, power, 0));
    return times && gcpi_onnx_in(m, times, 0) == gcpi_onnx_in(m, times, 1)
             ? gcpi_onnx_bare(m, gcpi_onnx_in(m, times, 0))
             : NULL;
}
/* Of a root of (mean of squares + epsilon): what is squared. NULL: v is none. */
static gcpi_onnx_value *gcpi_onnx_root_of(gcpi_onnx *m, gcpi_onnx_value *v, double *epsilon)
{
    const gcpi_onnx_node *root = gcpi_onnx_maker(m, v, "Sqrt"),
                         *sum = root ? gcpi_onnx_maker(m, gcpi_onnx_in(m, root, 0), "Add") : NULL;
    for (int i = 0; sum && i < 2; i++)
        if (gcpi_onnx_number(m, gcpi_onnx_in(m, sum, i), epsilon)) {
            gcpi_onnx_value *mean = gcpi_onnx_mean_of(m, gcpi_onnx_in(m, sum, 1 - i));
            return mean ? gcpi_onnx_square_of(m, mean) : NULL;
        }
    return NULL;
}
/* v = x over such a root, or times one over it. Returns x and fills what is squared; NULL: v is none. */
static gcpi_onnx_value *gcpi_onnx_over_root(gcpi_onnx *m, gcpi_onnx_value *v, gcpi_onnx_value **squared,
                                            double *epsilon)
{
    const gcpi_onnx_node *over = gcpi_onnx_maker(m, v, "Div"), *times = gcpi_onnx_maker(m, v, "Mul");
    if (over && (*squared = gcpi_onnx_root_of(m, gcpi_onnx_in(m, over, 1), epsilon)) != NULL)
        return gcpi_onnx_bare(m, gcpi_onnx_in(m, over, 0));
    for (int i = 0; times && i < 2; i++) {
        gcpi_onnx_value *factor = gcpi_onnx_in(m, times, i);
        const gcpi_onnx_node *one = gcpi_onnx_maker(m, factor, "Reciprocal"), *part = gcpi_onnx_maker(m, factor, "Div");
        double number = 0;
        if (part && gcpi_onnx_number(m, gcpi_onnx_in(m, part, 0), &number) && number != 1) part = NULL;
        if (!one && (!part || number != 1)) continue;
        *squared = gcpi_onnx_root_of(m, one ? gcpi_onnx_in(m, one, 0) : gcpi_onnx_in(m, part, 1), epsilon);
        if (*squared) return gcpi_onnx_bare(m, gcpi_onnx_in(m, times, 1 - i));
    }
    return NULL;
}
/* x where v is x minus its mean; else NULL. */
static gcpi_onnx_value *gcpi_onnx_centred(gcpi_onnx *m, gcpi_onnx_value *v)
{
    const gcpi_onnx_node *n = gcpi_onnx_maker(m, v, "Sub");
    gcpi_onnx_value *x = n ? gcpi_onnx_bare(m, gcpi_onnx_in(m, n, 0)) : NULL;
    return x && gcpi_onnx_mean_of(m, gcpi_onnx_in(m, n, 1)) == x ? x : NULL;
}
static int gcpi_onnx_norm_parts(gcpi_onnx *m, gcpi_onnx_node *n, gcpi_onnx_value *x, gcpi_onnx_value *gamma,
                                gcpi_onnx_value *beta, double epsilon)
{
    n->part[0] = gcpi_onnx_index(m, x);
    n->part[1] = gcpi_onnx_index(m, gamma);
    n->part[2] = beta ? gcpi_onnx_index(m, beta) : 0;
    n->number[0] = epsilon;
    return epsilon > 0;
}
static int gcpi_match_rms_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int weight = gcpi_onnx_affine(m, n);
    gcpi_onnx_value *squared, *x;
    double epsilon = 0;
    if (weight < 0) return 0;
    x = gcpi_onnx_over_root(m, gcpi_onnx_bare(m, gcpi_onnx_in(m, n, 1 - weight)), &squared, &epsilon);
    return x && x == squared && gcpi_onnx_norm_parts(m, n, x, gcpi_onnx_in(m, n, weight), NULL, epsilon);
}
static int gcpi_match_layer_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int shift = gcpi_onnx_affine(m, n);
    const gcpi_onnx_node *scaled = shift < 0 ? NULL : gcpi_onnx_maker(m, gcpi_onnx_in(m, n, 1 - shift), "Mul");
    const int scale = gcpi_onnx_affine(m, scaled);
    gcpi_onnx_value *squared, *x;
    double epsilon = 0;
    if (scale < 0) return 0;
    x = gcpi_onnx_over_root(m, gcpi_onnx_bare(m, gcpi_onnx_in(m, scaled, 1 - scale)), &squared, &epsilon);
    if (!x || (x = gcpi_onnx_centred(m, x)) == NULL || gcpi_onnx_centred(m, squared) != x) return 0;
    return gcpi_onnx_norm_parts(m, n, x, gcpi_onnx_in(m, scaled, scale), gcpi_onnx_in(m, n, shift), epsilon);
}
static int gcpi_record_norm(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = &m->values[n->part[0]];
    return gcpi_onnx_norm_of_rows(m, n, x, &m->values[n->part[1]], n->part[2] ? &m->values[n->part[2]] : NULL,
                                  x->rank - 1, n->number[0], !n->part[2]);
}

static const gcpi_onnx_pattern gcpi_onnx_patterns[] = {
    { "Mul", gcpi_match_curve, gcpi_record_curve },
    { "Div", gcpi_match_curve, gcpi_record_curve },
    { "Where", gcpi_match_curve, gcpi_record_curve },
    { "Where", gcpi_match_prelu, gcpi_record_prelu },
    { "Min", gcpi_match_curve, gcpi_record_curve },
    { "Max", gcpi_match_curve, gcpi_record_curve },
    { "Mul", gcpi_match_drop, gcpi_record_drop },
    { "Mul", gcpi_match_rms_norm, gcpi_record_norm },
    { "Add", gcpi_match_layer_norm, gcpi_record_norm },
    { "Add", gcpi_match_bias, gcpi_record_bias },
    { "MatMul", gcpi_match_attention, gcpi_record_attention },
};
/* The pattern that ends in this node; NULL: none. */
static const gcpi_onnx_pattern *gcpi_onnx_pattern_of(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (size_t p = 0; p < sizeof gcpi_onnx_patterns / sizeof *gcpi_onnx_patterns; p++) {
        memset(n->part, 0, sizeof n->part);
        if (gcpi_excerpt_is(n->op, gcpi_onnx_patterns[p].op) && gcpi_onnx_patterns[p].match(m, n))
            return &gcpi_onnx_patterns[p];
    }
    return NULL;
}

/* ==== src/onnx/onnx_table.h ==== */

/* The ops of ONNX: a row each. */

/* inputs: the first ones, which must be there. record NULL: it is folded, or refused. attributes: those that are known,
   and their types: f float, i int, s text, t tensor, capitals lists. (broadcast without an axis is what later opsets do
   anyway.) */
typedef struct gcpi_onnx_row {
    const char *op;
    int inputs;
    int (*shape)(gcpi_onnx *m, gcpi_onnx_node *n);
    int (*record)(gcpi_onnx *m, gcpi_onnx_node *n);
    const char *attributes;
} gcpi_onnx_row;

static const gcpi_onnx_row gcpi_onnx_rows_of_ops[] = {
    { "Abs", 1, gcpi_shape_one, gcpi_onnx_plain, "" },
    { "Add", 2, gcpi_shape_pair, gcpi_onnx_pairs, "broadcast:i" },
    { "And", 2, gcpi_shape_truth, NULL, "broadcast:i" },
    { "Attention", 3, gcpi_shape_attention, gcpi_onnx_attention,
      "is_causal:i kv_num_heads:i q_num_heads:i qk_matmul_output_mode:i scale:f softcap:f softmax_precision:i" },
    { "AveragePool", 1, gcpi_shape_pool, gcpi_onnx_pool,
      "auto_pad:s ceil_mode:i count_include_pad:i dilations:I kernel_shape:I pads:I strides:I" },
    { "BatchNormalization", 5, gcpi_shape_norm, gcpi_onnx_batch_norm,
      "epsilon:f is_test:i momentum:f spatial:i training_mode:i" },
    { "Cast", 1, gcpi_shape_cast, gcpi_onnx_same, "round_mode:s saturate:i to:i" },
    { "CastLike", 2, gcpi_shape_cast, gcpi_onnx_same, "round_mode:s saturate:i" },
    { "Ceil", 1, gcpi_shape_one, NULL, "" },
    { "Celu", 1, gcpi_shape_like, gcpi_onnx_elu, "alpha:f" },
    { "Clip", 1, gcpi_shape_like, gcpi_onnx_clip, "max:f min:f" },
    { "Concat", 1, gcpi_shape_concat, gcpi_onnx_concat, "axis:i" },
    { "Constant", 0, gcpi_shape_constant, NULL, "value:t value_float:f value_floats:F value_int:i value_ints:I" },
    { "ConstantOfShape", 1, gcpi_shape_constant_of_shape, NULL, "value:t" },
    { "Conv", 2, gcpi_shape_conv, gcpi_onnx_conv, "auto_pad:s dilations:I group:i kernel_shape:I pads:I strides:I" },
    { "ConvTranspose", 2, gcpi_shape_conv_transpose, gcpi_onnx_conv_transpose,
      "auto_pad:s dilations:I group:i kernel_shape:I output_padding:I output_shape:I pads:I strides:I" },
    { "Cos", 1, gcpi_shape_one, NULL, "" },
    { "DepthToSpace", 1, gcpi_shape_depth, gcpi_onnx_depth, "blocksize:i mode:s" },
    { "Div", 2, gcpi_shape_pair, gcpi_onnx_pairs, "broadcast:i" },
    { "Dropout", 1, gcpi_shape_like, gcpi_onnx_dropout, "is_test:i ratio:f seed:i" },
    { "Elu", 1, gcpi_shape_like, gcpi_onnx_elu, "alpha:f" },
    { "Equal", 2, gcpi_shape_truth, NULL, "broadcast:i" },
    { "Erf", 1, gcpi_shape_one, gcpi_onnx_part, "" },
    { "Exp", 1, gcpi_shape_one, gcpi_onnx_plain, "" },
    { "Expand", 2, gcpi_shape_expand, gcpi_onnx_expand, "" },
    { "Flatten", 1, gcpi_shape_flatten, gcpi_onnx_again, "axis:i" },
    { "Floor", 1, gcpi_shape_one, NULL, "" },
    { "Gather", 2, gcpi_shape_gather, gcpi_onnx_gather, "axis:i" },
    { "Gelu", 1, gcpi_shape_like, gcpi_onnx_gelu, "approximate:s" },
    { "Gemm", 2, gcpi_shape_gemm, gcpi_onnx_gemm, "alpha:f beta:f broadcast:i transA:i transB:i" },
    { "GlobalAveragePool", 1, gcpi_shape_global, gcpi_onnx_global_pool, "" },
    { "GlobalMaxPool", 1, gcpi_shape_global, gcpi_onnx_global_pool, "" },
    { "Greater", 2, gcpi_shape_truth, NULL, "broadcast:i" },
    { "GreaterOrEqual", 2, gcpi_shape_truth, NULL, "" },
    { "GroupNormalization", 3, gcpi_shape_norm, gcpi_onnx_group_norm, "epsilon:f num_groups:i stash_type:i" },
    { "HardSigmoid", 1, gcpi_shape_like, gcpi_onnx_hard_sigmoid, "alpha:f beta:f" },
    { "HardSwish", 1, gcpi_shape_like, gcpi_onnx_plain, "" },
    { "Identity", 1, gcpi_shape_one, gcpi_onnx_same, "" },
    { "InstanceNormalization", 3, gcpi_shape_norm, gcpi_onnx_group_norm, "epsilon:f" },
    { "LayerNormalization", 2, gcpi_shape_norm, gcpi_onnx_layer_norm, "axis:i epsilon:f stash_type:i" },
    { "LeakyRelu", 1, gcpi_shape_like, gcpi_onnx_leaky_relu, "alpha:f" },
    { "Less", 2, gcpi_shape_truth, NULL, "broadcast:i" },
    { "LessOrEqual", 2, gcpi_shape_truth, NULL, "" },
    { "Log", 1, gcpi_shape_one, gcpi_onnx_plain, "" },
    { "LogSoftmax", 1, gcpi_shape_like, gcpi_onnx_softmax, "axis:i" },
    { "MatMul", 2, gcpi_shape_matmul, gcpi_onnx_matmul, "" },
    { "Max", 1, gcpi_shape_pair, gcpi_onnx_pairs, "" },
    { "MaxPool", 1, gcpi_shape_pool, gcpi_onnx_pool,
      "auto_pad:s ceil_mode:i dilations:I kernel_shape:I pads:I storage_order:i strides:I" },
    { "Mean", 1, gcpi_shape_pair, gcpi_onnx_pairs, "" },
    { "Min", 1, gcpi_shape_pair, gcpi_onnx_pairs, "" },
    { "Mish", 1, gcpi_shape_like, gcpi_onnx_plain, "" },
    { "Mod", 2, gcpi_shape_pair, NULL, "fmod:i" },
    { "Mul", 2, gcpi_shape_pair, gcpi_onnx_pairs, "broadcast:i" },
    { "Neg", 1, gcpi_shape_one, gcpi_onnx_plain, "" },
    { "Not", 1, gcpi_shape_one, NULL, "" },
    { "Or", 2, gcpi_shape_truth, NULL, "broadcast:i" },
    { "PRelu", 2, gcpi_shape_pair, gcpi_onnx_pairs, "" },
    { "Pad", 1, gcpi_shape_pad, gcpi_onnx_pad, "mode:s pads:I value:f" },
    { "Pow", 2, gcpi_shape_pair, gcpi_onnx_pow, "broadcast:i" },
    { "RMSNormalization", 2, gcpi_shape_norm, gcpi_onnx_layer_norm, "axis:i epsilon:f stash_type:i" },
    { "RandomUniformLike", 1, gcpi_shape_like, gcpi_onnx_part, "dtype:i high:f low:f seed:f" },
    { "Range", 3, gcpi_shape_range, NULL, "stash_type:i" },
    { "Reciprocal", 1, gcpi_shape_one, gcpi_onnx_plain, "" },
    { "ReduceL2", 1, gcpi_shape_reduce, gcpi_onnx_reduce, "axes:I keepdims:i noop_with_empty_axes:i" },
    { "ReduceMax", 1, gcpi_shape_reduce, gcpi_onnx_reduce, "axes:I keepdims:i noop_with_empty_axes:i" },
    { "ReduceMean", 1, gcpi_shape_reduce, gcpi_onnx_reduce, "axes:I keepdims:i noop_with_empty_axes:i" },
    { "ReduceMin", 1, gcpi_shape_reduce, NULL, "axes:I keepdims:i noop_with_empty_axes:i" },
    { "ReduceProd", 1, gcpi_shape_reduce, NULL, "axes:I keepdims:i noop_with_empty_axes:i" },
    { "ReduceSum", 1, gcpi_shape_reduce, gcpi_onnx_reduce, "axes:I keepdims:i noop_with_empty_axes:i" },
    { "Relu", 1, gcpi_shape_like, gcpi_onnx_plain, "" },
    { "Reshape", 1, gcpi_shape_reshape, gcpi_onnx_again, "allowzero:i" },
    { "Resize", 1, gcpi_shape_resize, gcpi_onnx_resize,
      "antialias:i axes:I coordinate_transformation_mode:s cubic_coeff_a:f exclude_outside:i extrapolation_value:f "
      "keep_aspect_ratio_policy:s mode:s nearest_mode:s" },
    { "Selu", 1, gcpi_shape_like, gcpi_onnx_elu, "alpha:f gamma:f" },
    { "SequenceAt", 2, gcpi_shape_sequence_at, gcpi_onnx_sequence_at, "" },
    { "Shape", 1, gcpi_shape_shape, NULL, "end:i start:i" },
    { "Sigmoid", 1, gcpi_shape_like, gcpi_onnx_plain, "" },
    { "Sin", 1, gcpi_shape_one, NULL, "" },
    { "Size", 1, gcpi_shape_size, NULL, "" },
    { "Slice", 1, gcpi_shape_slice, gcpi_onnx_slices, "axes:I ends:I starts:I" },
    { "Softmax", 1, gcpi_shape_like, gcpi_onnx_softmax, "axis:i" },
    { "Softplus", 1, gcpi_shape_like, gcpi_onnx_softplus, "" },
    { "Softsign", 1, gcpi_shape_like, gcpi_onnx_softsign, "" },
    { "SpaceToDepth", 1, gcpi_shape_depth, gcpi_onnx_depth, "blocksize:i mode:s" },
    { "Split", 1, gcpi_shape_split, gcpi_onnx_split, "axis:i num_outputs:i split:I" },
    { "SplitToSequence", 1, gcpi_shape_sequence, gcpi_onnx_sequence, "axis:i keepdims:i" },
    { "Sqrt", 1, gcpi_shape_one, gcpi_onnx_plain, "" },
    { "Squeeze", 1, gcpi_shape_squeeze, gcpi_onnx_again, "axes:I" },
    { "Sub", 2, gcpi_shape_pair, gcpi_onnx_pairs, "broadcast:i" },
    { "Sum", 1, gcpi_shape_pair, gcpi_onnx_pairs, "" },
    { "Swish", 1, gcpi_shape_like, gcpi_onnx_swish, "alpha:f" },
    { "Tanh", 1, gcpi_shape_like, gcpi_onnx_plain, "" },
    { "Transpose", 1, gcpi_shape_transpose, gcpi_onnx_transpose, "perm:I" },
    { "Unsqueeze", 1, gcpi_shape_unsqueeze, gcpi_onnx_again, "axes:I" },
    { "Upsample", 1, gcpi_shape_resize, gcpi_onnx_resize, "mode:s" },
    { "Where", 3, gcpi_shape_where, NULL, "" },
};
static const gcpi_onnx_row *gcpi_onnx_row_of(const gcpi_onnx_node *n)
{
    for (size_t i = 0; i < sizeof gcpi_onnx_rows_of_ops / sizeof *gcpi_onnx_rows_of_ops && !n->foreign; i++)
        if (gcpi_excerpt_is(n->op, gcpi_onnx_rows_of_ops[i].op)) return &gcpi_onnx_rows_of_ops[i];
    return NULL;
}

/* ==== src/onnx/head.h ==== */

/* The head: the last layer, given another number of outputs (.classes). Its weight and bias keep their names and places
   in the file; their elements are made anew, and the file is saved with the sizes that they have then. */

/* Ops between a network's last layer and its output, which any number of classes passes. */
static int gcpi_onnx_behind_head(const gcpi_onnx_node *n)
{
    static const char *const ops[] = { "Softmax",  "LogSoftmax", "Sigmoid", "Relu",    "Flatten",           "Reshape",
                                       "Squeeze",  "Unsqueeze",  "Cast",    "Dropout", "GlobalAveragePool", "Clip",
                                       "Identity", "ReduceMean", "Add",     "Mul",     "AveragePool" };
    for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
        if (gcpi_excerpt_is(n->op, ops[i])) return !n->foreign;
    return 0;
}
/* The initialiser that a node reads there; NULL: it reads none. */
static gcpi_onnx_data *gcpi_onnx_initializer(gcpi_onnx *m, const gcpi_onnx_node *n, int input)
{
    const gcpi_onnx_value *v = gcpi_onnx_in(m, n, input);
    return v && v->data >= 0 && v->data < m->initializers ? &m->data[v->data] : NULL;
}
static const gcpi_onnx_value *gcpi_onnx_value_of(const gcpi_onnx *m, const gcpi_onnx_data *d)
{
    return &m->values[gcpi_onnx_find(m, d->name)];
}
/* The last node with a weight, on the way back from a value; what is added on that way may be its bias. */
static gcpi_onnx_node *gcpi_onnx_head_node(gcpi_onnx *m, int value, gcpi_onnx_data **bias)
{
    const gcpi_onnx_value *v = &m->values[value];
    *bias = NULL;
    while (v && v->node >= 0) {
        gcpi_onnx_node *n = &m->nodes[v->node];
        const int conv = gcpi_excerpt_is(n->op, "Conv"), gemm = gcpi_excerpt_is(n->op, "Gemm");
        if ((conv || gemm || gcpi_excerpt_is(n->op, "MatMul")) && !n->foreign && gcpi_onnx_initializer(m, n, 1)) {
            if (conv || gemm) *bias = gcpi_onnx_initializer(m, n, 2);
            return n;
        }
        if (!gcpi_onnx_behind_head(n)) return NULL;
        const int added = gcpi_excerpt_is(n->op, "Add"), first = added && gcpi_onnx_initializer(m, n, 0);
        if (added) *bias = gcpi_onnx_initializer(m, n, !first);
        v = gcpi_onnx_in(m, n, first);
    }
    return NULL;
}
/* Whether what is behind a value takes any number of classes, up to the outputs; a file whose .until lies before its
   head does not. */
static int gcpi_onnx_ends(gcpi_onnx *m, int value, int depth)
{
    int ends = depth > 0;
    for (int i = 0; i < m->node_count && ends; i++)
        for (int k = 0; k < m->nodes[i].inputs && ends; k++)
            if (m->edges[m->nodes[i].input + k] == value)
                ends = gcpi_onnx_behind_head(&m->nodes[i]) && m->nodes[i].outputs &&
                       gcpi_onnx_ends(m, m->edges[m->nodes[i].output], depth - 1);
    return ends;
}
/* The size of an axis becomes `classes`. What was is kept for the next recording. */
static int gcpi_onnx_head_resize(gcpi_onnx *m, gcpi_onnx_data *d, int axis, int classes)
{
    const size_t rest = d->count / (size_t)d->d[axis];
    if (rest > (size_t)INT32_MAX / (size_t)classes) return 0;
    m->head[m->head_count] = (int)(d - m->data);
    m->head_was[m->head_count++] = *d;
    d->d[axis] = classes;
    d->count = rest * (size_t)classes;
    d->fresh = 1;
    return 1;
}
static void gcpi_onnx_head_restore(gcpi_onnx *m)
{
    while (m->head_count) {
        m->head_count--;
        m->data[m->head[m->head_count]] = m->head_was[m->head_count];
    }
}
/* A head of so many classes as there are stays. 0: there is none that could be changed. */
static int gcpi_onnx_head_set(gcpi_onnx *m, int output, int classes)
{
    gcpi_onnx_data *bias, *weight;
    const gcpi_onnx_node *n = gcpi_onnx_head_node(m, output, &bias);
    if (!n || !gcpi_onnx_ends(m, output, 8)) return 0;
    weight = gcpi_onnx_initializer(m, n, 1);
    const int first = gcpi_excerpt_is(n->op, "Conv") || gcpi_onnx_integer(n, "transB", 0),
              axis = first ? 0 : weight->rank - 1;
    if (weight->rank < 2 || !weight->count || gcpi_onnx_integer(n, "group", 1) != 1) return 0;
    if (weight->d[axis] == classes) return 1;
    if (bias && (bias->rank < 1 || bias->d[bias->rank - 1] != weight->d[axis])) return 0;
    if (gcpi_onnx_readers(m, gcpi_onnx_value_of(m, weight)) != 1 ||
        (bias && gcpi_onnx_readers(m, gcpi_onnx_value_of(m, bias)) != 1))
        return 0;
    return (!bias || gcpi_onnx_head_resize(m, bias, bias->rank - 1, classes)) &&
           gcpi_onnx_head_resize(m, weight, axis, classes);
}
static int gcpi_onnx_head_fail(gcpi_onnx *m, int classes)
{
    gcpi_fail(m->tape, GCP_E_ARGUMENT, m->at, m->call,
              ".classes = %d: behind the last layer that has a weight there is an op that tells its outputs apart, or "
              "that weight is read twice: put a layer of yours behind .until",
              classes);
    return 0;
}
/* Whether an axis of the output has the new size: a Reshape of a fixed size may have made samples of classes. */
static int gcpi_onnx_head_shows(gcpi_onnx *m, const gcpi_onnx_value *output)
{
    int shows = 0;
    for (int i = 0; i < output->rank; i++) shows |= output->d[i] == m->classes;
    const int one = m->classes == 1 && m->batch && gcpi_onnx_elements(output) % m->batch == 0 &&
                    gcpi_onnx_elements(output) / m->batch > 1 && output->rank <= 2;
    return (shows && !one) || gcpi_onnx_head_fail(m, m->classes);
}
/* .classes of a recording; 0 leaves the file's. */
static int gcpi_onnx_head_record(gcpi_onnx *m, int output, int classes)
{
    gcpi_onnx_head_restore(m);
    if (!classes || gcpi_onnx_head_set(m, output, classes)) return 1;
    gcpi_onnx_head_restore(m);
    return gcpi_onnx_head_fail(m, classes);
}

/* ==== src/onnx/blocks.h ==== */

/* Blocks: nodes that become a segment. By the names that exporters give them, else by what repeats. */

/* Whether two parts or more stand behind this place of a scope. */
static int gcpi_onnx_nests(gcpi_excerpt scope, size_t at)
{
    int parts = 0;
    for (; at < scope.size; at++) parts += scope.at[at] == '/';
    return parts > 1;
}
/* The block that a node belongs to, by the scope that exporters write: the outermost part that ends in a number, as
   layer1.0 in /layer1/layer1.0/conv1/Conv, or encoder_layer_0 in /encoder/encoder_layer_0/mlp/Gemm and in
   /encoder/encoder_layer_0/Add behind it. (conv_1 in /conv_1/Conv is a layer.) now: the block of the node before. */
static gcpi_excerpt gcpi_onnx_scope(const gcpi_onnx_node *n, gcpi_excerpt now)
{
    gcpi_excerpt scope = n->name, rest = n->message, pair;
    while (gcpi_wire_each(&rest, GCPI_NODE_METADATA, &pair))
        if (gcpi_excerpt_is(gcpi_wire_find(pair, 1), "namespace")) scope = gcpi_wire_find(pair, 2);
    for (size_t i = 0, begin = 0; i < scope.size; i++) {
        const unsigned char c = scope.at[i];
        if (c == '/') {
            begin = i + 1;
            continue;
        }
        const int ends = i + 1 == scope.size || scope.at[i + 1] == '/' || scope.at[i + 1] == ':';
        size_t digits = i + 1;
        if (!ends || c < '0' || c > '9') continue;
        while (digits > begin && scope.at[digits - 1] >= '0' && scope.at[digits - 1] <= '9') digits--;
        if (digits == begin || (scope.at[digits - 1] != '.' && scope.at[digits - 1] != '_')) continue;
        const gcpi_excerpt part = gcpi_excerpt_of(scope.at + begin, i + 1 - begin);
        if (scope.at[digits - 1] == '.' || gcpi_onnx_nests(scope, i) || gcpi_excerpt_equal(part, now)) return part;
    }
    return gcpi_excerpt_of("", 0);
}
/* What a node is but for its names: its op, attributes and the sizes that it makes. */
static uint64_t gcpi_onnx_likeness(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    const gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    gcpi_excerpt rest = n->message, attribute;
    uint64_t hash = gcpi_excerpt_hash(n->op) + (uint64_t)n->inputs;
    while (gcpi_wire_each(&rest, GCPI_NODE_ATTRIBUTE, &attribute))
        hash = hash * 1099511628211u + gcpi_excerpt_hash(attribute);
    for (int i = 0; y && i < y->rank; i++) hash = hash * 1099511628211u + (uint64_t)y->d[i];
    return hash;
}
/* How often the first `length` are repeated there. */
static int gcpi_onnx_repeats(const uint64_t *like, int count, int length)
{
    int times = 1;
    while ((times + 1) * length <= count && !memcmp(like, like + times * length, (size_t)length * sizeof *like))
        times++;
    return times;
}
/* Runs of alike nodes, each of at least 3 nodes, that are repeated at once. */
static void gcpi_onnx_blocks_repeated(gcpi_onnx_node **nodes, const uint64_t *like, int count)
{
    int block = 0;
    for (int first = 0; first < count;) {
        int length = 0, times = 1;
        for (int l = 3; 2 * l <= count - first; l++) {
            const int t = like[first] == like[first + l] ? gcpi_onnx_repeats(like + first, count - first, l) : 1;
            if (t > 1 && t * l > times * length) {
                length = l;
                times = t;
            }
        }
        for (int i = 0; i < length * times; i++) {
            nodes[first + i]->block = block + 1 + i / length;
            nodes[first + i]->block_name = gcpi_excerpt_of("block", 5);
        }
        block += times;
        first += length ? length * times : 1;
    }
}
/* Numbers the blocks of the nodes that are recorded; 0: a node of none. */
static void gcpi_onnx_blocks(gcpi_onnx *m)
{
    const int most = GCPI_MIN(m->node_count, 4096); /* nodes among which repeats are looked for */
    const ptrdiff_t scratch = m->arena->scratch;
    gcpi_onnx_node **nodes = GCPI_SCRATCH(m->arena, gcpi_onnx_node *, most);
    uint64_t *like = nodes ? GCPI_SCRATCH(m->arena, uint64_t, most) : NULL;
    gcpi_excerpt now = gcpi_excerpt_of("", 0);
    int count = 0, block = 0;
    for (int i = 0; i < m->node_count; i++) {
        gcpi_onnx_node *n = &m->nodes[i];
        n->block = 0;
        if (!n->needed) continue;
        n->block_name = gcpi_onnx_scope(n, now);
        if (!gcpi_excerpt_equal(n->block_name, now)) block++;
        now = n->block_name;
        n->block = now.size ? block : 0;
        if (like && count < most) {
            like[count] = gcpi_onnx_likeness(m, n);
            nodes[count] = n;
        }
        count++;
    }
    if (!block && like && count <= most) gcpi_onnx_blocks_repeated(nodes, like, count);
    m->arena->scratch = scratch;
}

/* ==== src/onnx/onnx_record.h ==== */

/* gcp_onnx_record: from a graph to a tape. Sizes are filled in, shapes follow, what is known is folded; then what the
   outputs need is recorded, node after node. */

/* ---- inputs and their sizes ---- */

/* Whether an input has an open size of this name. */
static int gcpi_onnx_names_size(gcpi_onnx *m, gcpi_excerpt name)
{
    gcpi_excerpt dim;
    int found = gcpi_excerpt_is(name, "*");
    for (int i = 0; i < m->input_count; i++)
        for (gcpi_excerpt rest = gcpi_wire_find(gcpi_wire_find(m->input_types[i], 1), 2);
             gcpi_wire_each(&rest, 1, &dim);)
            found |= gcpi_excerpt_equal(gcpi_wire_find(dim, 2), name);
    return found;
}
/* .sizes is pairs of a name that an input has and a number above 0. */
static int gcpi_onnx_sizes_fit(gcpi_onnx *m, const char *text)
{
    const char *const blank = " \t\r\n";
    while (text && *(text += strspn(text, blank))) {
        const size_t length = strcspn(text, blank);
        const char *number = text + length + strspn(text + length, blank);
        char *end;
        const long size = strtol(number, &end, 10);
        const int known = gcpi_onnx_names_size(m, gcpi_excerpt_of(text, length));
        if (known && end > number && strchr(blank, *end) && size > 0 && size < INT32_MAX) {
            text = end;
            continue;
        }
        gcpi_fail(m->tape, GCP_E_ARGUMENT, m->at, m->call, ".sizes: '%.40s': %s", text,
                  known ? "a number above 0 must follow the name" : "no input has an open size of this name");
        return 0;
    }
    return 1;
}
/* The number behind a name in text "NAME NUMBER NAME NUMBER ..."; 0: it is not there. */
static int gcpi_onnx_size_of(const char *text, gcpi_excerpt name)
{
    while (text && *text) {
        const char *word = text + strspn(text, " \t\r\n"), *end = word + strcspn(word, " \t\r\n");
        const int is = gcpi_excerpt_equal(gcpi_excerpt_of(word, (size_t)(end - word)), name);
        char *after;
        const long size = strtol(end, &after, 10);
        if (is) return size > 0 && size < INT32_MAX ? (int)size : 0;
        text = after > end ? after : end;
        if (text == word) return 0;
    }
    return 0;
}
static int gcpi_onnx_input_fail(gcpi_onnx *m, const gcpi_onnx_value *v, const char *format, const char *what)
{
    char name[80];
    gcpi_excerpt_text(v->name, name, sizeof name);
    gcpi_fail(m->tape, GCP_E_SHAPE, m->at, m->call, format, name, what);
    return 0;
}
/* The sizes of an input: the file's, those of .sizes and .batch, those of a tensor that was given for it. */
static int gcpi_onnx_input_sizes(gcpi_onnx *m, gcpi_onnx_value *v, gcpi_excerpt type, const gcp_shape *given)
{
    const gcpi_excerpt tensor = gcpi_wire_find(type, 1);
    gcpi_excerpt rest = gcpi_wire_find(tensor, 2), dim;
    char name[80];
    v->type = (int)gcpi_wire_integer(tensor, 1, 0);
    v->rank = 0;
    while (gcpi_wire_each(&rest, 1, &dim)) {
        const gcpi_excerpt symbol = gcpi_wire_find(dim, 2);
        int64_t size = gcpi_wire_integer(dim, 1, 0);
        if (v->rank == GCPI_AXES) return gcpi_onnx_input_fail(m, v, "input '%s' has more than 8 axes%s", "");
        if (gcpi_onnx_size_of(m->sizes, symbol)) size = gcpi_onnx_size_of(m->sizes, symbol);
        else if (m->batch && !v->rank) size = m->batch;
        else if (size <= 0) size = gcpi_onnx_size_of(m->sizes, gcpi_excerpt_of("*", 1));
        v->d[v->rank] = size > 0 && size < INT32_MAX ? (int)size : 0;
        v->rank++;
        if (!given && !v->d[v->rank - 1])
            return gcpi_onnx_input_fail(
                m, v, "input '%s': its size '%s' is open: .batch is the first one, .sizes gives others",
                gcpi_excerpt_text(symbol, name, sizeof name));
    }
    if (v->rank > 4 || !tensor.size) return gcpi_onnx_input_fail(m, v, "input '%s' has not one to four axes%s", "");
    if (given) {
        const char *c = gcpi_layout_usual(v->rank);
        for (int place = 0; *c; c++) {
            if (*c == '|') {
                place++;
                continue;
            }
            int *size = &v->d[*c - '0'];
            if (*c > '0' && *size && *size != given->d[place])
                return gcpi_onnx_input_fail(m, v, "input '%s' has other sizes in the file than in .inputs%s", "");
            *size = given->d[place];
        }
    }
    for (int i = 0, most = 1; i < v->rank; most *= v->d[i++])
        if (v->d[i] > INT32_MAX / most) return gcpi_onnx_input_fail(m, v, "input '%s' has too many elements%s", "");
    v->shaped = 1;
    return 1;
}
static int gcpi_onnx_input_record(gcpi_onnx *m, gcpi_onnx_value *v, gcp_tensor given)
{
    char name[200];
    const char *layout = gcpi_layout_usual(v->rank);
    const int whole = v->type == GCPI_ONNX_INT64 || v->type == GCPI_ONNX_INT32;
    gcp_input_opts o = GCP_OPTS(gcp_input_opts, );
    o.at = m->at;
    gcpi_onnx_order_make(&v->order, layout, v->rank, v->d);
    gcpi_onnx_free_name(m->tape, v->name, name, sizeof name);
    const gcp_shape shape = gcpi_onnx_rank(gcpi_layout_shape(&v->order, layout));
    if (!gcp_is_nil(given) && whole != (gcpi_get(given)->dtype != GCP_DTYPE_REAL))
        return gcpi_onnx_input_fail(m, v, "input '%s' is of %s; .inputs gives another kind",
                                    gcpi_onnx_type_name(v->type));
    if (!gcp_is_nil(given)) v->tensor = given;
    else if (whole) v->tensor = gcp_ids_at(m->tape, name, shape, o);
    else if (gcpi_onnx_is_real(v->type)) v->tensor = gcp_input_at(m->tape, name, shape, o);
    else
        return gcpi_onnx_input_fail(m, v, "input '%s' is of %s; floats, int32 and int64 are allowed",
                                    gcpi_onnx_type_name(v->type));
    return !gcp_is_nil(v->tensor);
}
static int gcpi_onnx_inputs_begin(gcpi_onnx *m, const gcp_onnx_record_opts *o)
{
    for (int i = 0; i < m->input_count; i++) {
        gcpi_onnx_value *v = &m->values[m->inputs[i]];
        const gcp_tensor given = i < o->input_count ? o->inputs[i] : gcpi_nil(NULL);
        const gcp_shape shape = gcp_shape_of(given);
        if (!v->needed) continue;
        if (!gcpi_onnx_input_sizes(m, v, m->input_types[i], gcp_is_nil(given) ? NULL : &shape) ||
            !gcpi_onnx_input_record(m, v, given))
            return 0;
    }
    return 1;
}

/* ---- what is needed ---- */

static void gcpi_onnx_want(gcpi_onnx *m, int value)
{
    m->values[value].needed = 1;
    m->values[value].uses++;
}
/* Marks what the outputs are made of. With patterns: as it will be recorded. */
static void gcpi_onnx_needed(gcpi_onnx *m, const int *outputs, int count, int patterns)
{
    for (int i = 0; i < m->value_count; i++) m->values[i].needed = m->values[i].uses = 0;
    for (int i = 0; i < count; i++) gcpi_onnx_want(m, outputs[i]);
    for (int i = m->node_count - 1; i >= 0; i--) {
        gcpi_onnx_node *n = &m->nodes[i];
        n->needed = 0;
        n->pattern = NULL;
        for (int k = 0; k < n->outputs; k++) {
            const gcpi_onnx_value *y = gcpi_onnx_out(m, n, k);
            n->needed |= y && y->needed && !(patterns && (y->known || y->data >= 0));
        }
        if (!n->needed) continue;
        if (patterns && !n->foreign) n->pattern = gcpi_onnx_pattern_of(m, n);
        for (int k = 0; k < 8 && n->pattern; k++)
            if (n->part[k]) gcpi_onnx_want(m, n->part[k]);
        for (int k = 0; k < n->inputs && !n->pattern; k++)
            if (m->edges[n->input + k]) gcpi_onnx_want(m, m->edges[n->input + k]);
    }
}

/* ---- shapes ---- */

static void gcpi_onnx_values_clear(gcpi_onnx *m)
{
    for (int i = 0; i < m->value_count; i++) {
        gcpi_onnx_value *v = &m->values[i];
        v->shaped = 0;
        v->known = NULL;
        v->uniform = 0;
        v->tensor = v->other = gcpi_nil(m->tape);
        v->source = -1;
        if (v->node >= 0 || v->data < 0) continue;
        const gcpi_onnx_data *d = &m->data[v->data];
        v->shaped = 1;
        v->type = d->type;
        v->rank = d->rank;
        memcpy(v->d, d->d, sizeof v->d);
    }
}
/* All that cannot be recorded is found here, node by node; what is made of it is passed over. */
static void gcpi_onnx_shapes(gcpi_onnx *m)
{
    for (int i = 0; i < m->node_count && !m->tape->code; i++) {
        gcpi_onnx_node *n = &m->nodes[i];
        int ready = 1;
        if (!n->needed) continue;
        n->row = gcpi_onnx_row_of(n);
        if (!n->row) {
            gcpi_onnx_refuse(m, n, n->foreign ? "an op of another domain" : "an op that is not known");
            continue;
        }
        for (int k = 0; k < n->row->inputs; k++) ready &= gcpi_onnx_in(m, n, k) != NULL;
        if (!ready || !gcpi_onnx_out(m, n, 0)) {
            gcpi_onnx_refuse(m, n, "an input or output that it must have is left out");
            continue;
        }
        for (int k = 0; k < n->inputs; k++)
            ready &= !m->edges[n->input + k] || m->values[m->edges[n->input + k]].shaped;
        if (!ready) continue;
        const int before = m->refused;
        if (!gcpi_onnx_only(m, n, n->row->attributes)) continue;
        if (!n->row->shape(m, n) && m->refused == before && !m->tape->code)
            gcpi_onnx_refuse(m, n, "its inputs do not fit");
    }
}
/* What an op makes of an empty value is empty, and no tape has it. What a refused node would have made is missing: that
   was said. */
static int gcpi_onnx_recordable(gcpi_onnx *m, gcpi_onnx_node *n)
{
    for (int k = 0; k < n->outputs; k++) {
        const gcpi_onnx_value *y = gcpi_onnx_out(m, n, k);
        if (y && y->needed && (!y->shaped || (!gcpi_onnx_elements(y) && y->type != GCPI_ONNX_NONE)))
            return gcpi_onnx_refuse(m, n, "its output is empty, or not known");
    }
    if (!n->pattern && !n->row->record)
        return gcpi_onnx_refuse(m, n, "it is only folded: its inputs must be known before a step");
    for (int k = 0; k < (n->pattern ? 8 : n->inputs); k++) {
        const gcpi_onnx_value *x = n->pattern ? &m->values[n->part[k]] : gcpi_onnx_in(m, n, k);
        if (!x || !gcpi_onnx_index(m, x)) continue;
        const int unread = k && (gcpi_excerpt_is(n->op, "Resize") || gcpi_excerpt_is(n->op, "CastLike"));
        if (!unread && gcpi_onnx_is_real(x->type) && !gcpi_onnx_elements(x))
            return gcpi_onnx_refuse(m, n, "an empty input");
        if (x->source >= 0 || !gcp_is_nil(x->tensor) || (x->type == GCPI_ONNX_NONE && x->data < 0)) continue;
        if (gcpi_onnx_is_real(x->type)) return 0;
        if (!k) return gcpi_onnx_refuse(m, n, "%s elements; floats are allowed", gcpi_onnx_type_name(x->type));
    }
    return 1;
}
/* Weights and constants wait for the op that reads them first. */
static void gcpi_onnx_sources(gcpi_onnx *m)
{
    for (int i = 1; i < m->value_count; i++) {
        gcpi_onnx_value *v = &m->values[i];
        if (!v->shaped || !gcpi_onnx_is_real(v->type) || v->rank > GCPI_AXES || !gcp_is_nil(v->tensor)) continue;
        v->source = v->data >= 0 ? v->data : v->known ? m->data_count + i : -1;
        if (v->source >= 0) gcpi_onnx_order_set(&v->order, v->rank, v->d);
    }
}

/* ---- segments ---- */

/* Its label is the block's name without its number: the tape counts, too. */
static int gcpi_onnx_segment(gcpi_onnx *m, gcpi_excerpt block)
{
    char label[80];
    size_t end = block.size;
    while (end && block.at[end - 1] >= '0' && block.at[end - 1] <= '9') end--;
    if (end > 1 && (block.at[end - 1] == '.' || block.at[end - 1] == '_')) block.size = end - 1;
    gcp_segment_opts o = GCP_OPTS(gcp_segment_opts, );
    o.at = m->at;
    gcpi_onnx_plain_name(block, label, sizeof label);
    const char *kept = gcpi_keep_text(m->tape, label);
    return kept ? gcp_segment_begin(m->tape, kept, o) : 0;
}
/* A block whose nodes only changed orders recorded no op, and is no segment. */
static void gcpi_onnx_segment_end(gcpi_onnx *m, int segment)
{
    gcp_tape *t = m->tape;
    int state = 2;
    if (!segment || t->code) return;
    if (t->segments[segment].ops < t->op_count) {
        gcp_segment_end(t, segment, &state);
        return;
    }
    t->open = t->segments[segment].parent;
    t->segment_count = segment;
    if (t->segments[segment].name == t->name_count - 1) gcpi_name_take_back(t);
}

/* ---- recording ---- */

/* A tape's message says which call of a gcp op failed; this adds whose node it was. */
static int gcpi_onnx_where(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    char name[80], op[40];
    const size_t used = strlen(m->tape->message);
    snprintf(m->tape->message + used, sizeof m->tape->message - used, " (node '%s', %s)",
             gcpi_excerpt_text(n->name, name, sizeof name), gcpi_excerpt_text(n->op, op, sizeof op));
    return 0;
}
static int gcpi_onnx_nodes_record(gcpi_onnx *m)
{
    int segment = 0, now = 0;
    gcpi_onnx_blocks(m);
    for (int i = 0; i < m->node_count && !m->tape->code; i++) {
        gcpi_onnx_node *n = &m->nodes[i];
        if (!n->needed || !gcpi_onnx_recordable(m, n)) continue;
        if (n->block != now) {
            gcpi_onnx_segment_end(m, segment);
            segment = n->block ? gcpi_onnx_segment(m, n->block_name) : 0;
            now = n->block;
        }
        const int before = m->refused, ok = n->pattern ? n->pattern->record(m, n) : n->row->record(m, n);
        if (m->tape->code) return gcpi_onnx_where(m, n);
        if (!ok && m->refused == before) gcpi_onnx_refuse(m, n, "it could not be recorded");
    }
    gcpi_onnx_segment_end(m, segment);
    return !m->tape->code;
}
/* Outputs lie as gcp has them: images channels last. */
static int gcpi_onnx_outputs_record(gcpi_onnx *m, const int *outputs, int count)
{
    for (int i = 0; i < count; i++) {
        gcpi_onnx_value *v = &m->values[outputs[i]];
        if (gcp_is_nil(v->tensor) && v->source < 0)
            return gcpi_onnx_input_fail(m, v, "output '%s' is no tensor of floats%s", "");
        if (gcp_is_nil(gcpi_onnx_usual(m, v))) return 0;
        if (gcpi_get(v->tensor)->kind != GCPI_ACTIVATION) /* an input as it is: a plan has something to run */
            v->tensor = gcp_reshape_at(v->tensor, gcpi_onnx_rank(gcp_shape_of(v->tensor)), gcpi_onnx_opts(m));
        if (gcp_is_nil(v->tensor)) return 0;
    }
    return 1;
}
static int gcpi_onnx_refusals(gcpi_onnx *m)
{
    if (!m->refused) return 1;
    char text[GCP_MAX_ERROR];
    snprintf(text, sizeof text, "%s", m->refusals);
    gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call,
              "%d node%s of the file cannot be recorded (.report lists all): %.300s", m->refused,
              m->refused == 1 ? "" : "s", text);
    return 0;
}
static int gcpi_onnx_run(gcpi_onnx *m, const int *outputs, int count, const gcp_onnx_record_opts *o)
{
    if (!gcpi_onnx_sizes_fit(m, o->sizes) || !gcpi_onnx_head_record(m, outputs[0], o->classes)) return 0;
    gcpi_onnx_values_clear(m);
    gcpi_onnx_needed(m, outputs, count, 0);
    if (!gcpi_onnx_inputs_begin(m, o)) return 0;
    gcpi_onnx_shapes(m);
    if (m->tape->code || !gcpi_onnx_refusals(m)) return 0;
    gcpi_onnx_sources(m);
    gcpi_onnx_needed(m, outputs, count, 1);
    return gcpi_onnx_nodes_record(m) && gcpi_onnx_refusals(m) && gcpi_onnx_outputs_record(m, outputs, count) &&
           (!m->head_count || gcpi_onnx_head_shows(m, &m->values[outputs[0]]));
}

/* What a Softmax or LogSoftmax at the end reads; else the value itself. */
static int gcpi_onnx_logits(gcpi_onnx *m, int value)
{
    gcpi_onnx_value *v = &m->values[value];
    const gcpi_onnx_node *soft = gcpi_onnx_maker(m, v, "Softmax"), *log = gcpi_onnx_maker(m, v, "LogSoftmax"),
                         *same = gcpi_onnx_maker(m, v, "Identity"),
                         *n = soft ? soft
                            : log  ? log
                                   : same;
    const gcpi_onnx_value *x = n ? gcpi_onnx_in(m, n, 0) : NULL;
    if (x && same) return gcpi_onnx_logits(m, gcpi_onnx_index(m, x));
    return x ? gcpi_onnx_index(m, x) : value;
}
GCPI_DEF gcp_code gcp_onnx_record_at(gcp_tape *t, gcp_onnx *model, gcp_onnx_record_opts o)
{
    gcpi_onnx *m = model ? model->core : NULL;
    if (!t || t->code) return gcp_error_code(t);
    if (!m) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_onnx_record", "a model that was not opened: %.300s",
                  model ? model->error : "");
        return t->code;
    }
    m->tape = t;
    m->generation = t->generation;
    m->at = o.at;
    m->call = "gcp_onnx_record";
    m->report = o.report;
    m->batch = o.batch;
    m->classes = o.classes;
    m->sizes = o.sizes;
    m->refused = m->weight_count = m->recorded = 0;
    m->refusals[0] = 0;
    if (m->arena->used == m->end) m->arena->used = m->mark;
    const int until = o.until ? gcpi_onnx_find(m, gcpi_excerpt_of(o.until, strlen(o.until))) : 0;
    m->until = o.logits ? gcpi_onnx_logits(m, until ? until : m->outputs[0]) : until;
    m->frozen_norms = o.frozen_norms;
    const gcpi_extents before = t->good;
    const int open = t->open;
    if (o.until && !until)
        gcpi_fail(t, GCP_E_NAME, o.at, m->call, ".until = '%.100s': no value of the file has this name", o.until);
    else if (o.batch < 0 || o.classes < 0 || o.input_count < 0 || o.input_count > m->input_count ||
             (o.input_count && !o.inputs))
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, m->call,
                  ".batch = %d, .classes = %d, .input_count = %d; at least 0, at most %d inputs, and .inputs", o.batch,
                  o.classes, o.input_count, m->input_count);
    else gcpi_onnx_run(m, m->until ? &m->until : m->outputs, m->until ? 1 : m->output_count, &o);
    m->end = m->arena->used;
    m->recorded = !t->code;
    if (t->code) {
        t->good = before;
        t->open = open;
        m->weight_count = 0;
    }
    return t->code;
}

/* ==== src/onnx/onnx_values.h ==== */

/* Values between the file and the tape. Weights become parameters' values; inputs and results go in the file's own
   layout. */

/* The recording that a model serves; 0, with an error: none of this tape. */
static gcpi_onnx *gcpi_onnx_of(gcp_tape *t, const gcp_onnx *model, gcp_at at, const char *call)
{
    gcpi_onnx *m = model ? model->core : NULL;
    if (!t || t->code) return NULL;
    if (!m || m->tape != t || m->generation != t->generation || !m->recorded) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "the model is not recorded on this tape (gcp_onnx_record)");
        return NULL;
    }
    m->at = at;
    m->call = call;
    return m;
}

/* Where the file's next element lies in memory, in an order whose factors are the file's, one after the other. */
typedef struct gcpi_onnx_order_walk {
    int count, size[GCPI_FACTORS], at[GCPI_FACTORS];
    ptrdiff_t step[GCPI_FACTORS], index;
} gcpi_onnx_order_walk;
static gcpi_onnx_order_walk gcpi_onnx_order_walk_of(const gcpi_onnx_order *o)
{
    gcpi_onnx_order_walk w;
    ptrdiff_t step = 1;
    memset(&w, 0, sizeof w);
    w.count = o->count;
    for (int f = 0; f < o->count; f++) w.size[f] = o->size[f];
    for (int j = o->count - 1; j >= 0; j--) {
        w.step[o->memory[j]] = step;
        step *= o->size[o->memory[j]];
    }
    return w;
}
static void gcpi_onnx_order_walk_on(gcpi_onnx_order_walk *w)
{
    for (int f = w->count - 1; f >= 0; f--) {
        w->index += w->step[f];
        if (++w->at[f] < w->size[f]) return;
        w->index -= w->step[f] * w->size[f];
        w->at[f] = 0;
    }
}
static size_t gcpi_onnx_order_size(const gcpi_onnx_order *o)
{
    return (size_t)gcpi_onnx_order_elements(o, 0, o->count);
}

/* ---- weights ---- */

static int gcpi_onnx_state_ready(gcpi_onnx *m)
{
    if (!m->tape->state)
        gcpi_fail(m->tape, GCP_E_STATE, m->at, m->call,
                  "the state has no memory yet: call gcp_bind (or gcp_state_bind) first");
    return m->tape->state != NULL;
}
static int gcpi_onnx_no_room(gcpi_onnx *m, size_t bytes)
{
    gcpi_fail(m->tape, GCP_E_NOMEM, m->at, m->call, "a tensor takes %zu bytes of the model's arena, which has %td left",
              bytes, m->arena->size - m->arena->used - m->arena->scratch);
    return 0;
}
static gcpi_place gcpi_onnx_weight_place(const gcpi_onnx *m, const gcpi_onnx_weight *w)
{
    gcpi_place p;
    p.home = &m->tape->home;
    p.at = gcpi_value_at(m->tape, gcpi_get(w->tensor)->parameter);
    return p;
}
/* The elements of a weight go to `all`, in its order. */
static int gcpi_onnx_weight_read(gcpi_onnx *m, const gcpi_onnx_weight *w, gcp_real *all)
{
    const size_t count = gcpi_onnx_order_size(&w->order);
    gcpi_onnx_order_walk walk = gcpi_onnx_order_walk_of(&w->order);
    gcpi_onnx_reader r;
    double x = 0;
    const double *known = w->source < 0             ? &w->number
                        : w->source < m->data_count ? NULL
                                                    : m->values[w->source - m->data_count].known;
    const int uniform = w->source >= m->data_count && m->values[w->source - m->data_count].uniform;
    if (!known) r = gcpi_onnx_reader_of(&m->data[w->source]);
    for (size_t i = 0; i < count; i++, gcpi_onnx_order_walk_on(&walk)) {
        if (known) x = known[uniform ? 0 : i];
        else if (!gcpi_onnx_read(&r, &x)) return 0;
        all[walk.index] = (gcp_real)x;
    }
    return 1;
}
GCPI_DEF int gcp_onnx_load_at(gcp_tape *t, gcp_onnx *model, gcp_at at)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, "gcp_onnx_load");
    int count = 0;
    if (!m || !gcpi_onnx_state_ready(m) || gcpi_halfway(t, at, m->call)) return 0;
    for (int i = 0; i < m->weight_count; i++) {
        const gcpi_onnx_weight *w = &m->weights[i];
        if (w->source >= 0 && w->source < m->data_count && m->data[w->source].fresh) continue;
        const ptrdiff_t scratch = m->arena->scratch;
        const size_t size = gcpi_onnx_order_size(&w->order);
        const gcpi_place place = gcpi_onnx_weight_place(m, w);
        gcp_real *all = gcpi_place_open(&place, m->arena, size);
        if (!all) {
            gcpi_onnx_no_room(m, size * sizeof *all);
            return 0;
        }
        if (gcpi_onnx_weight_read(m, w, all) && (unsigned char *)all != place.at)
            gcpi_place_copy(&place, place.at, all, size * sizeof *all);
        m->arena->scratch = scratch;
        count++;
    }
    return count;
}

/* ---- inputs and results ---- */

GCPI_DEF gcp_tensor gcp_onnx_tensor_at(gcp_tape *t, gcp_onnx *model, const char *name, gcp_at at)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, "gcp_onnx_tensor");
    const int v = m && name ? gcpi_onnx_find(m, gcpi_excerpt_of(name, strlen(name))) : 0;
    if (!m) return gcpi_nil(t);
    if (v && (!gcp_is_nil(m->values[v].tensor) || m->values[v].source >= 0)) return gcpi_onnx_usual(m, &m->values[v]);
    gcpi_fail(t, GCP_E_NAME, at, m->call, "'%.100s': %s", name ? name : "(NULL)",
              v ? "it was not recorded: no output needs it, or it is part of another op"
                : "no value of the file has this name");
    return gcpi_nil(t);
}
/* The value that is input or output `index`; 0: there is none. Of a recording with .until, that is the output. */
static int gcpi_onnx_end(const gcp_onnx *model, int input, int index)
{
    const gcpi_onnx *m = model ? model->core : NULL;
    if (!m || !m->recorded || index < 0) return 0;
    if (input) return index < m->input_count ? m->inputs[index] : 0;
    if (m->until) return index ? 0 : m->until;
    return index < m->output_count ? m->outputs[index] : 0;
}
static gcp_tensor gcpi_onnx_end_tensor(const gcp_onnx *model, int input, int index)
{
    const int v = gcpi_onnx_end(model, input, index);
    return v ? model->core->values[v].tensor : gcpi_nil(NULL);
}
GCPI_DEF gcp_tensor gcp_onnx_input(const gcp_onnx *model, int index) { return gcpi_onnx_end_tensor(model, 1, index); }
GCPI_DEF gcp_tensor gcp_onnx_output(const gcp_onnx *model, int index) { return gcpi_onnx_end_tensor(model, 0, index); }

GCPI_DEF gcp_code gcp_onnx_print_c_at(gcp_tape *t, gcp_onnx *model, gcp_writer out, gcp_at at)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, "gcp_onnx_print_c");
    if (!m) return gcp_error_code(t);
    const ptrdiff_t scratch = m->arena->scratch;
    const int count = m->until ? 1 : m->output_count;
    gcp_tensor *outputs = GCPI_SCRATCH(m->arena, gcp_tensor, count);
    for (int i = 0; outputs && i < count; i++) outputs[i] = gcp_onnx_output(model, i);
    if (outputs) gcp_print_c_at(outputs, count, out, at);
    else gcpi_fail(t, GCP_E_NOMEM, at, m->call, "the model's arena has no room for %d outputs", count);
    m->arena->scratch = scratch;
    return t->code;
}

/* Elements in the file's order go to those of an input, or come from those of an output. */
static gcp_code gcpi_onnx_exchange(gcp_plan *plan, gcp_onnx *model, int index, gcp_real *data, int write, gcp_at at)
{
    gcp_tape *t = plan ? plan->tape : NULL;
    gcpi_onnx *m = gcpi_onnx_of(t, model, at, write ? "gcp_onnx_write" : "gcp_onnx_read");
    const int v = m ? gcpi_onnx_end(model, write, index) : 0;
    if (!m) return gcp_error_code(t);
    if (!v || gcp_is_nil(m->values[v].tensor)) {
        gcpi_fail(t, GCP_E_NAME, at, m->call, "%s %d was not recorded", write ? "input" : "output", index);
        return t->code;
    }
    const gcpi_onnx_value *x = &m->values[v];
    if (gcpi_get(x->tensor)->dtype != GCP_DTYPE_REAL) {
        gcpi_fail(t, GCP_E_DTYPE, at, m->call, "input %d is of whole numbers: gcp_write takes them", index);
        return t->code;
    }
    const size_t count = gcpi_onnx_order_size(&x->order);
    const ptrdiff_t scratch = m->arena->scratch;
    gcp_real *all = GCPI_SCRATCH(m->arena, gcp_real, count);
    gcpi_onnx_order_walk walk = gcpi_onnx_order_walk_of(&x->order);
    if (!all) {
        gcpi_onnx_no_room(m, count * sizeof *all);
        return t->code;
    }
    if (!write) gcp_read_at(plan, x->tensor, all, at);
    for (size_t i = 0; i < count; i++, gcpi_onnx_order_walk_on(&walk))
        if (write) all[walk.index] = data[i];
        else data[i] = all[walk.index];
    if (write) gcp_write_at(plan, x->tensor, all, at);
    m->arena->scratch = scratch;
    return t->code;
}
GCPI_DEF gcp_code gcp_onnx_write_at(gcp_plan *plan, gcp_onnx *model, int input, const gcp_real *data, gcp_at at)
{
    return gcpi_onnx_exchange(plan, model, input, (gcp_real *)(uintptr_t)data, 1, at);
}
GCPI_DEF gcp_code gcp_onnx_read_at(gcp_plan *plan, gcp_onnx *model, int output, gcp_real *data, gcp_at at)
{
    return gcpi_onnx_exchange(plan, model, output, data, 0, at);
}

/* ==== src/onnx/save.h ==== */

/* gcp_onnx_save: the file again, with new elements where one was trained. */

static size_t gcpi_varint_size(uint64_t x)
{
    size_t n = 1;
    while (x >>= 7) n++;
    return n;
}
static void gcpi_put_varint(gcpi_disk_file *s, uint64_t x)
{
    unsigned char bytes[10];
    size_t n = 0;
    do {
        bytes[n++] = (unsigned char)(x & 127) | (unsigned char)(x >> 7 ? 128 : 0);
    } while (x >>= 7);
    gcpi_disk_write(s, bytes, n);
}
static void gcpi_put_head(gcpi_disk_file *s, int number, size_t size) /* of a field of so many bytes */
{
    gcpi_put_varint(s, (uint64_t)number << 3 | GCPI_WIRE_BYTES);
    gcpi_put_varint(s, size);
}
static size_t gcpi_field_size(int number, size_t size)
{
    return gcpi_varint_size((uint64_t)number << 3) + gcpi_varint_size(size) + size;
}

/* The weight that an initialiser, or the tensor of a Constant, became; NULL: it is as it was. */
static const gcpi_onnx_weight *gcpi_onnx_trained(gcpi_onnx *m, const gcpi_field *f)
{
    const int constant =
        f->number == GCPI_GRAPH_NODE && gcpi_excerpt_is(gcpi_wire_find(f->bytes, GCPI_NODE_OP), "Constant");
    if (f->type != GCPI_WIRE_BYTES || (f->number != GCPI_GRAPH_INITIALIZER && !constant)) return NULL;
    for (int i = 0; i < m->weight_count; i++) {
        const gcpi_onnx_weight *w = &m->weights[i];
        const unsigned char *at = w->source >= 0 && w->source < m->initializers ? m->data[w->source].message.at : NULL;
        if (at && (constant ? at > f->bytes.at && at < f->bytes.at + f->bytes.size : at == f->bytes.at)) return w;
    }
    return NULL;
}
static size_t gcpi_onnx_data_size(const gcpi_onnx_data *d) /* of its message, written anew */
{
    size_t size = 1 + gcpi_varint_size((uint64_t)d->type);
    for (int i = 0; i < d->rank; i++) size += 1 + gcpi_varint_size((uint64_t)d->d[i]);
    return size + gcpi_field_size(GCPI_TENSOR_NAME, d->name.size) +
           gcpi_field_size(GCPI_TENSOR_RAW, d->count * gcpi_onnx_type_size(d->type));
}
/* A float's upper bits, rounded to the nearest, to even where there are two. */
static unsigned gcpi_half_bits(float x)
{
    uint32_t u;
    memcpy(&u, &x, 4);
    const unsigned sign = u >> 16 & 0x8000u;
    const uint32_t rest = u & 0x7fffffffu;
    if (rest > 0x7f800000u) return sign | 0x7e00u;
    if (rest >= 0x477ff000u) return sign | 0x7c00u;
    if (rest < 0x38800000u) { /* below the normal numbers: counts of 2^-24 */
        const double count = (double)gcpi_float_of(rest) * 16777216.0, low = floor(count), part = count - low;
        unsigned n = (unsigned)low;
        return sign | (n + (part > 0.5 || (part == 0.5 && n & 1)));
    }
    return sign | ((rest - 0x38000000u + 0xfffu + (rest >> 13 & 1)) >> 13);
}
static void gcpi_onnx_put_element(int type, double x, unsigned char *to)
{
    const float f = (float)x;
    uint32_t u;
    uint64_t d;
    memcpy(&u, &f, 4);
    memcpy(&d, &x, 8);
    if (type == GCPI_ONNX_FLOAT) gcpi_u64_to(u, to, 4);
    else if (type == GCPI_ONNX_DOUBLE) gcpi_u64_to(d, to, 8);
    else if (type == GCPI_ONNX_FLOAT16) gcpi_u64_to(gcpi_half_bits(f), to, 2);
    else gcpi_u64_to((u + 0x7fffu + (u >> 16 & 1)) >> 16, to, 2);
}
static int gcpi_onnx_put_data(gcpi_onnx *m, gcpi_disk_file *s, const gcpi_onnx_weight *w)
{
    const gcpi_onnx_data *d = &m->data[w->source];
    const size_t size = gcpi_onnx_type_size(d->type);
    const gcpi_place place = gcpi_onnx_weight_place(m, w);
    const ptrdiff_t scratch = m->arena->scratch;
    unsigned char some[8 * 512];
    const gcp_real *all = gcpi_place_open(&place, m->arena, d->count);
    if (!all) return gcpi_onnx_no_room(m, d->count * sizeof *all);
    if ((const unsigned char *)all != place.at)
        gcpi_place_copy(&place, (void *)(uintptr_t)all, place.at, d->count * sizeof *all);
    for (int i = 0; i < d->rank; i++) {
        gcpi_put_varint(s, GCPI_TENSOR_DIMS << 3);
        gcpi_put_varint(s, (uint64_t)d->d[i]);
    }
    gcpi_put_varint(s, GCPI_TENSOR_TYPE << 3);
    gcpi_put_varint(s, (uint64_t)d->type);
    gcpi_put_head(s, GCPI_TENSOR_NAME, d->name.size);
    gcpi_disk_write(s, d->name.at, d->name.size);
    gcpi_put_head(s, GCPI_TENSOR_RAW, d->count * size);
    gcpi_onnx_order_walk walk = gcpi_onnx_order_walk_of(&w->order);
    for (size_t first = 0, n; first < d->count && !s->failed; first += n) {
        n = GCPI_MIN(d->count - first, (size_t)512);
        for (size_t i = 0; i < n; i++, gcpi_onnx_order_walk_on(&walk))
            gcpi_onnx_put_element(d->type, (double)all[walk.index], some + i * size);
        gcpi_disk_write(s, some, n * size);
    }
    m->arena->scratch = scratch;
    return !s->failed;
}
/* The sizes of an output, or of a weight that is an input, too; a new head changed one. An output's other sizes that
   are not those of the recording are left open. Written, or (s NULL) counted. */
static size_t gcpi_onnx_put_sizes(const gcpi_onnx *m, const gcpi_onnx_value *v, gcpi_excerpt shape, int output,
                                  gcpi_disk_file *s)
{
    gcpi_excerpt dim;
    size_t total = 0;
    for (int i = 0; gcpi_wire_each(&shape, 1, &dim); i++) {
        const uint64_t was = (uint64_t)gcpi_wire_integer(dim, 1, 0),
                       is = v->shaped && i < v->rank ? (uint64_t)v->d[i] : 0;
        const int samples = output && !i && m->batch, same = !was || was == is || (!output && !is),
                  known = !output || (!samples && is == (uint64_t)m->classes);
        const uint64_t now = known ? is : 0;
        const size_t size = same ? dim.size : now ? 1 + gcpi_varint_size(now) : 0;
        total += gcpi_field_size(1, size);
        if (!s) continue;
        gcpi_put_head(s, 1, size);
        if (same) gcpi_disk_write(s, dim.at, dim.size);
        else if (now) {
            gcpi_put_varint(s, 1 << 3);
            gcpi_put_varint(s, now);
        }
    }
    return total;
}
/* Whether a field has sizes that a new head may have changed. */
static int gcpi_onnx_resized(const gcpi_onnx *m, const gcpi_field *f)
{
    const int v = f->number == GCPI_GRAPH_INPUT ? gcpi_onnx_find(m, gcpi_wire_find(f->bytes, 1)) : 0;
    return (f->number == GCPI_GRAPH_OUTPUT || (v && m->values[v].data >= 0)) && f->type == GCPI_WIRE_BYTES &&
           gcpi_wire_find(gcpi_wire_find(gcpi_wire_find(f->bytes, 2), 1), 2).size > 0;
}
/* A ValueInfoProto with a TypeProto of a tensor in it. */
static size_t gcpi_onnx_put_declared(gcpi_onnx *m, int field, gcpi_excerpt message, gcpi_disk_file *s)
{
    const gcpi_excerpt name = gcpi_wire_find(message, 1), tensor = gcpi_wire_find(gcpi_wire_find(message, 2), 1),
                       shape = gcpi_wire_find(tensor, 2);
    const gcpi_onnx_value *v = &m->values[gcpi_onnx_find(m, name)];
    const int output = field == GCPI_GRAPH_OUTPUT;
    const uint64_t element = (uint64_t)gcpi_wire_integer(tensor, 1, 0);
    const size_t sizes = gcpi_onnx_put_sizes(m, v, shape, output, NULL),
                 inner = 1 + gcpi_varint_size(element) + gcpi_field_size(2, sizes), type = gcpi_field_size(1, inner),
                 whole = gcpi_field_size(1, name.size) + gcpi_field_size(2, type);
    if (!s) return gcpi_field_size(field, whole);
    gcpi_put_head(s, field, whole);
    gcpi_put_head(s, 1, name.size);
    gcpi_disk_write(s, name.at, name.size);
    gcpi_put_head(s, 2, type);
    gcpi_put_head(s, 1, inner);
    gcpi_put_varint(s, 1 << 3);
    gcpi_put_varint(s, element);
    gcpi_put_head(s, 2, sizes);
    gcpi_onnx_put_sizes(m, v, shape, output, s);
    return gcpi_field_size(field, whole);
}

/* ---- a graph as it runs in inference ---- */

/* Whether a node reads a value, or it is an output of the file. */
static int gcpi_onnx_is_read(const gcpi_onnx *m, int value)
{
    int found = gcpi_onnx_readers(m, &m->values[value]) > 0;
    for (int i = 0; i < m->output_count; i++) found |= m->outputs[i] == value;
    return found;
}
/* What says that a node trains: a norm's attribute and outputs of statistics, a Dropout's third input. */
typedef struct gcpi_onnx_trims {
    int norm, dropout;
    const gcpi_onnx_value *copied; /* of a product that drops samples: what it passes on */
} gcpi_onnx_trims;
static gcpi_onnx_trims gcpi_onnx_trims_of(gcpi_onnx *m, const gcpi_onnx_node *n)
{
    gcpi_onnx_trims t;
    t.norm = !n->foreign && gcpi_excerpt_is(n->op, "BatchNormalization");
    t.dropout = !n->foreign && gcpi_excerpt_is(n->op, "Dropout");
    t.copied = n->pattern && n->pattern->record == gcpi_record_drop ? &m->values[n->part[0]] : NULL;
    for (int k = 1; k < n->outputs && t.norm; k++) {
        const int v = m->edges[n->output + k];
        if (v && gcpi_onnx_is_read(m, v)) t.norm = 0;
    }
    return t;
}
static int gcpi_onnx_trimmed(gcpi_onnx_trims t, const gcpi_field *f, int inputs, int outputs)
{
    if (f->type != GCPI_WIRE_BYTES) return 0;
    if (t.dropout) return f->number == GCPI_NODE_INPUT && inputs > 2;
    return (f->number == GCPI_NODE_OUTPUT && outputs > 1) ||
           (f->number == GCPI_NODE_ATTRIBUTE &&
            gcpi_excerpt_is(gcpi_wire_find(f->bytes, GCPI_ATTRIBUTE_NAME), "training_mode"));
}
/* An Identity of one of its values in the place of a node. */
static size_t gcpi_onnx_put_copy(const gcpi_onnx_value *x, gcpi_excerpt message, gcpi_disk_file *s)
{
    const gcpi_excerpt text[] = { x->name, gcpi_wire_find(message, GCPI_NODE_OUTPUT),
                                  gcpi_wire_find(message, GCPI_NODE_NAME), gcpi_excerpt_of("Identity", 8) };
    size_t total = 0;
    for (int i = 0; i < 4; i++) {
        total += gcpi_field_size(GCPI_NODE_INPUT + i, text[i].size);
        if (!s) continue;
        gcpi_put_head(s, GCPI_NODE_INPUT + i, text[i].size);
        gcpi_disk_write(s, text[i].at, text[i].size);
    }
    return total;
}
/* A Constant with new elements. */
static size_t gcpi_onnx_put_constant(gcpi_onnx *m, const gcpi_onnx_weight *w, gcpi_excerpt message, gcpi_disk_file *s)
{
    const size_t data = gcpi_onnx_data_size(&m->data[w->source]),
                 attribute = gcpi_field_size(GCPI_ATTRIBUTE_NAME, 5) + gcpi_field_size(GCPI_ATTRIBUTE_T, data) + 3;
    gcpi_field f;
    size_t total = 0;
    for (const unsigned char *from = message.at; gcpi_wire_next(&message, &f) > 0; from = message.at) {
        const int value = f.number == GCPI_NODE_ATTRIBUTE && f.type == GCPI_WIRE_BYTES;
        total += value ? gcpi_field_size(GCPI_NODE_ATTRIBUTE, attribute) : (size_t)(message.at - from);
        if (s && !value) gcpi_disk_write(s, from, (size_t)(message.at - from));
        if (!s || !value) continue;
        gcpi_put_head(s, GCPI_NODE_ATTRIBUTE, attribute);
        gcpi_put_head(s, GCPI_ATTRIBUTE_NAME, 5);
        gcpi_disk_write(s, "value", 5);
        gcpi_put_varint(s, GCPI_ATTRIBUTE_TYPE << 3);
        gcpi_put_varint(s, GCPI_ATTRIBUTE_IS_TENSOR);
        gcpi_put_head(s, GCPI_ATTRIBUTE_T, data);
        gcpi_onnx_put_data(m, s, w);
    }
    return total;
}
/* A node's fields without those; written, or (s NULL) counted. */
static size_t gcpi_onnx_put_node(gcpi_onnx_trims t, gcpi_excerpt message, gcpi_disk_file *s)
{
    gcpi_field f;
    size_t total = 0;
    int inputs = 0, outputs = 0;
    if (t.copied) return gcpi_onnx_put_copy(t.copied, message, s);
    for (const unsigned char *from = message.at; gcpi_wire_next(&message, &f) > 0; from = message.at) {
        inputs += f.number == GCPI_NODE_INPUT && f.type == GCPI_WIRE_BYTES;
        outputs += f.number == GCPI_NODE_OUTPUT && f.type == GCPI_WIRE_BYTES;
        if (gcpi_onnx_trimmed(t, &f, inputs, outputs)) continue;
        total += (size_t)(message.at - from);
        if (s) gcpi_disk_write(s, from, (size_t)(message.at - from));
    }
    return total;
}

/* ---- the graph ---- */

/* A field that is not as it was in the file: a trained weight or Constant; with a new head, an output; in inference, a
   node (else NULL). Written, or counted. 0: it is as it was. */
static size_t gcpi_onnx_put_changed(gcpi_onnx *m, const gcpi_field *f, const gcpi_onnx_node *node, gcpi_disk_file *s)
{
    const gcpi_onnx_weight *w = gcpi_onnx_trained(m, f);
    gcpi_onnx_trims t = { 0, 0, NULL };
    if (m->head_count && gcpi_onnx_resized(m, f)) return gcpi_onnx_put_declared(m, f->number, f->bytes, s);
    if (node) t = gcpi_onnx_trims_of(m, node);
    if (!w && !t.norm && !t.dropout && !t.copied) return 0;
    const int constant = w && f->number == GCPI_GRAPH_NODE;
    const size_t size = constant ? gcpi_onnx_put_constant(m, w, f->bytes, NULL)
                      : w        ? gcpi_onnx_data_size(&m->data[w->source])
                                 : gcpi_onnx_put_node(t, f->bytes, NULL);
    if (s) gcpi_put_head(s, f->number, size);
    if (s && constant) gcpi_onnx_put_constant(m, w, f->bytes, s);
    else if (s && w) gcpi_onnx_put_data(m, s, w);
    else if (s) gcpi_onnx_put_node(t, f->bytes, s);
    return gcpi_field_size(f->number, size);
}
/* The graph's fields, written or counted. With a new head, what the file says of shapes between is left out. */
static size_t gcpi_onnx_put_graph(gcpi_onnx *m, int inference, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->graph;
    gcpi_field f;
    size_t total = 0;
    int node = 0;
    for (const unsigned char *from = rest.at; gcpi_wire_next(&rest, &f) > 0; from = rest.at) {
        const int is_node = f.number == GCPI_GRAPH_NODE && f.type == GCPI_WIRE_BYTES;
        const gcpi_onnx_node *n = is_node ? &m->nodes[node++] : NULL;
        if (m->head_count && f.number == GCPI_GRAPH_VALUES) continue;
        const size_t changed = gcpi_onnx_put_changed(m, &f, inference ? n : NULL, s);
        if (s && !changed) gcpi_disk_write(s, from, (size_t)(rest.at - from));
        total += changed ? changed : (size_t)(rest.at - from);
    }
    return total;
}
static int gcpi_onnx_put_model(gcpi_onnx *m, int inference, gcpi_disk_file *s)
{
    gcpi_excerpt rest = m->file;
    gcpi_field f;
    for (const unsigned char *from = rest.at; gcpi_wire_next(&rest, &f) > 0; from = rest.at) {
        if (f.number != GCPI_MODEL_GRAPH) {
            gcpi_disk_write(s, from, (size_t)(rest.at - from));
            continue;
        }
        if (f.bytes.at != m->graph.at) continue;
        gcpi_put_head(s, GCPI_MODEL_GRAPH, gcpi_onnx_put_graph(m, inference, NULL));
        gcpi_onnx_put_graph(m, inference, s);
    }
    return !s->failed && !m->tape->code;
}
/* Whether running statistics that change have a place in the file. */
static int gcpi_onnx_statistics_stay(gcpi_onnx *m)
{
    for (int i = 0; i < m->weight_count && !m->frozen_norms; i++) {
        const gcpi_onnx_weight *w = &m->weights[i];
        if (gcpi_get(w->tensor)->kind != GCPI_STATISTIC || w->source < m->initializers) continue;
        gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call,
                  "a BatchNormalization's mean or variance is no initialiser: it has no place in the file "
                  "(.frozen_norms of gcp_onnx_record keeps it as it is)");
        return 0;
    }
    return 1;
}
/* Whether all norms that train in the file can be written as they are used. */
static int gcpi_onnx_infers(gcpi_onnx *m)
{
    char name[80];
    for (int i = 0; i < m->node_count; i++) {
        const gcpi_onnx_node *n = &m->nodes[i];
        if (n->foreign || !gcpi_excerpt_is(n->op, "BatchNormalization") || gcpi_onnx_trims_of(m, n).norm) continue;
        gcpi_fail(m->tape, GCP_E_CONTENTS, m->at, m->call,
                  ".inference: node '%s' (BatchNormalization): its statistics are read, or an output of the file",
                  gcpi_excerpt_text(n->name, name, sizeof name));
        return 0;
    }
    return 1;
}
GCPI_DEF gcp_code gcp_onnx_save_at(gcp_tape *t, gcp_onnx *model, const char *path, gcp_onnx_save_opts o)
{
    gcpi_onnx *m = gcpi_onnx_of(t, model, o.at, "gcp_onnx_save");
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_onnx_save");
    char part[GCPI_PATH];
    s.tape = t;
    if (!m || !gcpi_onnx_state_ready(m) || !gcpi_onnx_statistics_stay(m)) return gcp_error_code(t);
    if (o.inference && !gcpi_onnx_infers(m)) return gcp_error_code(t);
    if (gcpi_disk_create(&s, part) && !gcpi_onnx_put_model(m, o.inference, &s)) s.failed = 1;
    gcpi_disk_settle(&s, part);
    return t->code;
}
GCPI_WARM                              /* again at the user's level of optimisation */

#endif /* GCP_IMPLEMENTATION */
