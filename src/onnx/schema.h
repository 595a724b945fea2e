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
