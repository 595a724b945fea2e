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
