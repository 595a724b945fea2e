/* safetensors: a file's header, read and checked. Eight bytes with the header's length, the header, the data. The
   header is JSON: an object of names, each an object of dtype, shape and data_offsets (and what else a writer adds,
   which is passed over); __metadata__ is an object of texts, or null. Nothing in it is trusted: entries must fill
   the data without gaps, each as large as its shape says, no name twice. */

enum { GCPI_HEADER_MOST = 1 << 24, GCPI_ENTRIES_MOST = 65536, GCPI_NAME_MOST = 1024, GCPI_RANK_MOST = 8,
       GCPI_DEPTH_MOST = 125 };           /* lists and objects inside each other, of what is passed over */

#define GCPI_DTYPES(X) \
    X(BOOL, 1) X(U8, 1) X(I8, 1) X(F8_E5M2, 1) X(F8_E4M3, 1) X(I16, 2) X(U16, 2) X(F16, 2) X(BF16, 2) X(I32, 4) \
    X(U32, 4) X(F32, 4) X(F64, 8) X(I64, 8) X(U64, 8)
#define GCPI_DTYPE(name, size) GCPI_FILE_##name,
typedef enum gcpi_file_dtype { GCPI_DTYPES(GCPI_DTYPE) GCPI_FILE_DTYPES } gcpi_file_dtype;
#undef GCPI_DTYPE

static const char *gcpi_dtype_name(int type)
{
#define GCPI_NAME(name, size) #name,
    static const char *const names[] = { GCPI_DTYPES(GCPI_NAME) };
#undef GCPI_NAME
    return names[type];
}
static size_t gcpi_dtype_size(int type)
{
#define GCPI_SIZE(name, size) size,
    static const unsigned char sizes[] = { GCPI_DTYPES(GCPI_SIZE) };
#undef GCPI_SIZE
    return sizes[type];
}

/* The order of a weight's axes: letters of o, h, w, i; h, w: of an image that was flattened, else 0; p, q: of one that
   its rows make (see layouts.h). given: by a line of .map. */
typedef struct gcpi_axes { char letters[7]; int h, w, p, q, given; } gcpi_axes;

/* A tensor of the file. begin and end count from the data's first byte. The readers of headers add what they found it
   to be: parameter (-1: nothing yet), slot of it (0: its value), the order of its axes. */
typedef struct gcpi_stored {
    const char *name;
    int dtype, rank, given;              /* given: a bit each for dtype, shape, data_offsets */
    uint64_t shape[GCPI_RANK_MOST], begin, end;
    int parameter, slot;
    gcpi_axes axes;
} gcpi_stored;

/* entries in the order of their data; by_name: their places in the order of their names */
typedef struct gcpi_header {
    gcpi_stored *entries, **by_name;
    int count;
    uint64_t data, bytes;                /* where the data begins in the file; how many they are */
} gcpi_header;

/* Where the text stops being UTF-8 (RFC 3629): neither longer than it need be, nor a surrogate, nor above 10FFFF. Its
   length, if it does not. */
static size_t gcpi_utf8_end(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0, more;
    for (; i < length; i += more + 1) {
        const unsigned char c = s[i];
        more = c < 0x80                ? 0
               : c >= 0xC2 && c < 0xE0 ? 1
               : c >= 0xE0 && c < 0xF0 ? 2
               : c >= 0xF0 && c < 0xF5 ? 3
                                       : length;
        if (more >= length - i) return i;
        for (size_t k = 1; k <= more; k++) if (s[i + k] >> 6 != 2) return i;
        if ((c == 0xE0 && s[i + 1] < 0xA0) || (c == 0xED && s[i + 1] >= 0xA0)) return i;
        if ((c == 0xF0 && s[i + 1] < 0x90) || (c == 0xF4 && s[i + 1] >= 0x90)) return i;
    }
    return length;
}

/* ---- JSON ---- */

typedef struct gcpi_json { gcpi_disk_file *s; char *text; size_t at, length; } gcpi_json;

static int gcpi_json_fail(gcpi_json *j, const char *expected)
{
    unsigned char c = j->at < j->length ? (unsigned char)j->text[j->at] : 0;
    int64_t offset = 8 + (int64_t)j->at;
    if (j->at >= j->length)
        return gcpi_wrong_at(j->s, offset, "found the header's end, expected %s", expected);
    if (c < 0x20 || c > 0x7e)
        return gcpi_wrong_at(j->s, offset, "found byte 0x%02x, expected %s", c, expected);
    return gcpi_wrong_at(j->s, offset, "found '%c', expected %s", c, expected);
}
/* The next byte that is no space, 0 at the end. */
static char gcpi_json_peek(gcpi_json *j)
{
    while (j->at < j->length && strchr(" \t\r\n", j->text[j->at]) && j->text[j->at]) j->at++;
    return j->at < j->length ? j->text[j->at] : (char)0;
}
static int gcpi_json_take(gcpi_json *j, char c, const char *expected)
{
    if (gcpi_json_peek(j) != c || j->at >= j->length) return gcpi_json_fail(j, expected);
    j->at++;
    return 1;
}
/* After a member of a list or an object: 1: another follows; 0: it is closed, or an error. */
static int gcpi_json_more(gcpi_json *j, char close)
{
    char c = gcpi_json_peek(j);
    if (c == ',') { j->at++; return 1; }
    if (c == close && c) { j->at++; return 0; }
    return gcpi_json_fail(j, close == '}' ? "',' or '}'" : "',' or ']'");
}

static int gcpi_json_hex(gcpi_json *j, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        char c = j->at < j->length ? j->text[j->at] : (char)0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return gcpi_json_fail(j, "four hexadecimal digits after \\u");
        *code = *code << 4 | (unsigned)digit;
    }
    return 1;
}
/* The code behind \u, two for what lies beyond 16 bits, as UTF-8 at `to`. Returns its end, NULL: an error. */
static char *gcpi_json_utf8(gcpi_json *j, char *to)
{
    unsigned code, low;
    if (!gcpi_json_hex(j, &code)) return NULL;
    if (code >> 10 == 0x36) {
        int pair = j->at + 1 < j->length && j->text[j->at] == '\\' && j->text[j->at + 1] == 'u';
        if (!pair) { gcpi_json_fail(j, "the second half of a pair of surrogates"); return NULL; }
        j->at += 2;
        if (!gcpi_json_hex(j, &low)) return NULL;
        if (low >> 10 != 0x37) {
            gcpi_json_fail(j, "the second half of a pair of surrogates before this");
            return NULL;
        }
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    } else if (!code || code >> 10 == 0x37) { gcpi_json_fail(j, "a character before this"); return NULL; }
    if (code < 0x80) { *to++ = (char)code; return to; }
    if (code < 0x800) *to++ = (char)(0xC0 | code >> 6);
    else if (code < 0x10000) *to++ = (char)(0xE0 | code >> 12);
    else { *to++ = (char)(0xF0 | code >> 18); *to++ = (char)(0x80 | (code >> 12 & 0x3F)); }
    if (code >= 0x800) *to++ = (char)(0x80 | (code >> 6 & 0x3F));
    *to++ = (char)(0x80 | (code & 0x3F));
    return to;
}
/* A text, decoded in place: what it stands for is never longer. NULL: an error. */
static char *gcpi_json_text(gcpi_json *j)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    if (!gcpi_json_take(j, '"', "a text in double quotes")) return NULL;
    char *text = j->text + j->at, *to = text;
    while (j->at < j->length && j->text[j->at] != '"') {
        char c = j->text[j->at];
        if ((unsigned char)c < 0x20) { gcpi_json_fail(j, "a character of a text"); return NULL; }
        j->at++;
        if (c != '\\') { *to++ = c; continue; }
        char escape = j->at < j->length ? j->text[j->at] : (char)0;
        const char *known = escape ? strchr(from, escape) : NULL;
        if (known) { *to++ = into[known - from]; j->at++; continue; }
        if (escape != 'u') { gcpi_json_fail(j, "a character that can follow \\"); return NULL; }
        j->at++;
        if ((to = gcpi_json_utf8(j, to)) == NULL) return NULL;
    }
    if (!gcpi_json_take(j, '"', "the text's end")) return NULL;
    *to = 0;
    return text;
}

static int gcpi_json_digit(const gcpi_json *j)    /* -1: none follows */
{
    const char c = j->at < j->length ? j->text[j->at] : (char)0;
    return c >= '0' && c <= '9' ? c - '0' : -1;
}
/* A whole number without a sign, below 2^64. */
static int gcpi_json_number(gcpi_json *j, uint64_t *value)
{
    *value = 0;
    gcpi_json_peek(j);
    const size_t first = j->at;
    for (int digit; (digit = gcpi_json_digit(j)) >= 0; j->at++) {
        if ((j->at > first && !*value) || *value > (UINT64_MAX - (uint64_t)digit) / 10) break;
        *value = *value * 10 + (uint64_t)digit;
    }
    return (j->at > first && gcpi_json_digit(j) < 0) || gcpi_json_fail(j, "a whole number below 2^64, without a sign");
}

/* [a, b, ...], at most `most` of them. Returns how many; -1: an error. */
static int gcpi_json_numbers(gcpi_json *j, uint64_t *values, int most)
{
    int count = 0;
    if (!gcpi_json_take(j, '[', "'['")) return -1;
    if (gcpi_json_peek(j) == ']') { j->at++; return 0; }
    do {
        if (count == most) { gcpi_json_fail(j, most == 2 ? "two offsets" : "at most eight sizes"); return -1; }
        if (!gcpi_json_number(j, &values[count++])) return -1;
    } while (gcpi_json_more(j, ']'));
    return j->s->failed ? -1 : count;
}

/* ---- what is passed over ---- */

/* A number as the format's own reader (serde_json) sums it up: 64 bits of digits, times ten to some power. */
typedef struct gcpi_json_decimal { uint64_t digits; int power; } gcpi_json_decimal;
/* step: what a digit that fits adds to the power, 0 before the point, -1 behind; from the first on that does not, each
   adds 1 more. */
static int gcpi_json_digits(gcpi_json *j, gcpi_json_decimal *d, int step)
{
    int full = 0;
    if (gcpi_json_digit(j) < 0) return gcpi_json_fail(j, "a digit");
    for (int digit; (digit = gcpi_json_digit(j)) >= 0; j->at++) {
        full |= d->digits > (UINT64_MAX - (uint64_t)digit) / 10;
        d->power += step + full;
        if (!full) d->digits = d->digits * 10 + (uint64_t)digit;
    }
    return 1;
}
static int gcpi_json_has(gcpi_json *j, const char *any) /* the next byte is one of these, and is taken */
{
    if (j->at == j->length || !j->text[j->at] || !strchr(any, j->text[j->at])) return 0;
    j->at++;
    return 1;
}
/* Any number (RFC 8259, section 6) that a double can hold. */
static int gcpi_json_pass_number(gcpi_json *j)
{
    enum { MOST = 1 << 24 };
    gcpi_json_decimal d = { 0, 0 }, e = { 0, 0 };
    int minus = 0;
    gcpi_json_has(j, "-");
    if (!gcpi_json_has(j, "0") && !gcpi_json_digits(j, &d, 0)) return 0;
    if (gcpi_json_has(j, ".") && !gcpi_json_digits(j, &d, -1)) return 0;
    if (gcpi_json_has(j, "eE")) {
        minus = gcpi_json_has(j, "-");
        if (!minus) gcpi_json_has(j, "+");
        if (!gcpi_json_digits(j, &e, 0)) return 0;
    }
    const int power = e.power || e.digits > MOST ? MOST : (int)e.digits;
    d.power += minus ? -power : power;
    if (!d.digits || d.power < 0 || (double)d.digits * pow(10, d.power) <= DBL_MAX) return 1;
    return gcpi_json_fail(j, "a number below 2^1024 before this");
}
static int gcpi_json_word(gcpi_json *j, const char *word)
{
    const size_t length = strlen(word);
    gcpi_json_peek(j);
    if (j->length - j->at < length || memcmp(j->text + j->at, word, length)) return 0;
    j->at += length;
    return 1;
}
static int gcpi_json_pass_scalar(gcpi_json *j)
{
    const char c = gcpi_json_peek(j);
    if (c == '"') return gcpi_json_text(j) != NULL;
    if (c == '-' || (c >= '0' && c <= '9')) return gcpi_json_pass_number(j);
    return gcpi_json_word(j, "null") || gcpi_json_word(j, "true") || gcpi_json_word(j, "false") ||
           gcpi_json_fail(j, "a value");
}
static int gcpi_json_key(gcpi_json *j) { return gcpi_json_text(j) && gcpi_json_take(j, ':', "':'"); }
/* Any value. close: what ends each list or object that is open. */
static int gcpi_json_pass(gcpi_json *j)
{
    char close[GCPI_DEPTH_MOST];
    int depth = 0;
    do {
        const char c = gcpi_json_peek(j);
        if (c == '{' || c == '[') {
            if (depth == GCPI_DEPTH_MOST) return gcpi_json_fail(j, "fewer values inside each other");
            j->at++;
            close[depth++] = c == '{' ? '}' : ']';
            if (gcpi_json_peek(j) != close[depth - 1]) {
                if (c == '{' && !gcpi_json_key(j)) return 0;
                continue;
            }
            j->at++; depth--;
        } else if (!gcpi_json_pass_scalar(j)) return 0;
        while (depth && !gcpi_json_more(j, close[depth - 1])) { if (j->s->failed) return 0; depth--; }
        if (depth && close[depth - 1] == '}' && !gcpi_json_key(j)) return 0;
    } while (depth);
    return 1;
}

/* ---- entries ---- */

static int gcpi_stored_dtype(gcpi_json *j, gcpi_stored *e)
{
    gcpi_json_peek(j);
    size_t at = j->at;
    const char *text = gcpi_json_text(j);
    if (!text) return 0;
    for (e->dtype = 0; e->dtype < GCPI_FILE_DTYPES; e->dtype++)
        if (!strcmp(text, gcpi_dtype_name(e->dtype))) return 1;
    return gcpi_wrong_at(j->s, 8 + (int64_t)at, "'%.20s' is no dtype that gcp knows", text);
}
/* A member of an entry: one of three, or what another writer added. */
static int gcpi_stored_member(gcpi_json *j, gcpi_stored *e)
{
    static const char *const names[] = { "dtype", "shape", "data_offsets" };
    uint64_t offsets[2];
    gcpi_json_peek(j);
    size_t at = j->at;
    const char *key = gcpi_json_text(j);
    int which = 0;
    if (!key) return 0;
    while (which < 3 && strcmp(key, names[which])) which++;
    if (which == 3) return gcpi_json_take(j, ':', "':'") && gcpi_json_pass(j);
    if (e->given >> which & 1) {
        j->at = at;
        return gcpi_json_fail(j, "dtype, shape and data_offsets, once each");
    }
    e->given |= 1 << which;
    if (!gcpi_json_take(j, ':', "':'")) return 0;
    if (which == 0) return gcpi_stored_dtype(j, e);
    if (which == 1) return (e->rank = gcpi_json_numbers(j, e->shape, GCPI_RANK_MOST)) >= 0;
    int count = gcpi_json_numbers(j, offsets, 2);
    if (count < 0) return 0;
    if (count < 2) { j->at--; return gcpi_json_fail(j, "two offsets"); }
    e->begin = offsets[0]; e->end = offsets[1];
    return 1;
}
/* The bytes that an entry's shape takes; 0 and an error where they are not those between its offsets. */
static int gcpi_stored_fits(gcpi_json *j, const gcpi_stored *e, size_t at)
{
    uint64_t bytes = 1;
    int fits = 1;
    for (int i = 0; i <= e->rank; i++) {
        const uint64_t size = i < e->rank ? e->shape[i] : gcpi_dtype_size(e->dtype);
        fits &= !size || bytes <= UINT64_MAX / size;
        bytes *= size;
    }
    if (fits && e->begin <= e->end && e->end - e->begin == bytes) return 1;
    return gcpi_wrong_at(j->s, 8 + (int64_t)at, "%.100s: found data_offsets [%llu, %llu], expected as many "
                         "bytes as dtype and shape say",
                         e->name, (unsigned long long)e->begin, (unsigned long long)e->end);
}
static int gcpi_stored_read(gcpi_json *j, gcpi_stored *e)
{
    if (!gcpi_json_take(j, '{', "'{'")) return 0;
    size_t at = j->at;
    if (gcpi_json_peek(j) != '}')
        do if (!gcpi_stored_member(j, e)) return 0;
        while (gcpi_json_more(j, '}'));
    if (j->s->failed) return 0;
    if (e->given != 7) { j->at = at; return gcpi_json_fail(j, "dtype, shape and data_offsets, once each"); }
    e->parameter = -1;
    return gcpi_stored_fits(j, e, at);
}

static int gcpi_metadata_read(gcpi_json *j)
{
    if (gcpi_json_word(j, "null")) return 1;
    if (!gcpi_json_take(j, '{', "'{'")) return 0;
    if (gcpi_json_peek(j) == '}') { j->at++; return 1; }
    do if (!gcpi_json_text(j) || !gcpi_json_take(j, ':', "':'") || !gcpi_json_text(j)) return 0;
    while (gcpi_json_more(j, '}'));
    return !j->s->failed;
}

static int gcpi_entries_read(gcpi_json *j, gcpi_header *h, int most)
{
    int metadata = 0;
    if (!gcpi_json_take(j, '{', "'{'")) return 0;
    if (gcpi_json_peek(j) == '}') { j->at++; return 1; }
    do {
        gcpi_json_peek(j);
        size_t at = j->at;
        const char *name = gcpi_json_text(j);
        if (!name || !gcpi_json_take(j, ':', "':'")) return 0;
        if (!strcmp(name, "__metadata__")) {
            if (metadata++ || !gcpi_metadata_read(j)) return gcpi_json_fail(j, "__metadata__ once");
            continue;
        }
        if (strlen(name) > GCPI_NAME_MOST || h->count == most) {
            j->at = at;
            return gcpi_json_fail(j, h->count == most ? "fewer tensors" : "a name of at most 1024 bytes");
        }
        h->entries[h->count].name = name;
        if (!gcpi_stored_read(j, &h->entries[h->count++])) return 0;
    } while (gcpi_json_more(j, '}'));
    return !j->s->failed;
}

/* ---- a header ---- */

static int gcpi_stored_order(const void *a, const void *b) /* of data; an empty one before what begins there */
{
    const gcpi_stored *x = (const gcpi_stored *)a, *y = (const gcpi_stored *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}
static int gcpi_stored_names(const void *a, const void *b)
{
    return strcmp((*(gcpi_stored *const *)a)->name, (*(gcpi_stored *const *)b)->name);
}
static int gcpi_stored_named(const void *name, const void *entry)
{
    return strcmp((const char *)name, (*(gcpi_stored *const *)entry)->name);
}

/* Puts the entries in order. 0: an error: they leave a gap, overlap, or have a name twice. */
static int gcpi_header_order(gcpi_disk_file *s, gcpi_header *h)
{
    uint64_t end = 0;
    qsort(h->entries, (size_t)h->count, sizeof *h->entries, gcpi_stored_order);
    for (int i = 0; i < h->count; end = h->entries[i++].end)
        if (h->entries[i].begin != end)
            return gcpi_wrong_at(s, 8, "%.100s: found data from byte %llu on, expected from %llu on, without a gap",
                                 h->entries[i].name, (unsigned long long)h->entries[i].begin, (unsigned long long)end);
    if (end != h->bytes)
        return gcpi_wrong_at(s, (int64_t)s->size, "found the end after %llu bytes of data, expected after %llu, "
                             "as the header says", (unsigned long long)h->bytes, (unsigned long long)end);
    for (int i = 0; i < h->count; i++) h->by_name[i] = &h->entries[i];
    qsort(h->by_name, (size_t)h->count, sizeof *h->by_name, gcpi_stored_names);
    for (int i = 1; i < h->count; i++)
        if (!strcmp(h->by_name[i - 1]->name, h->by_name[i]->name))
            return gcpi_wrong_at(s, 8, "%.100s: found twice", h->by_name[i]->name);
    return 1;
}

/* The entry of this name, or NULL. */
static gcpi_stored *gcpi_header_find(const gcpi_header *h, const char *name)
{
    if (!h->count) return NULL;
    gcpi_stored **found =
        (gcpi_stored **)bsearch(name, h->by_name, (size_t)h->count, sizeof *h->by_name, gcpi_stored_named);
    return found ? *found : NULL;
}

/* The header's length, from the file's first bytes. 0: an error. */
static size_t gcpi_header_length(gcpi_disk_file *s)
{
    unsigned char first[8];
    if (s->size < 8) return (size_t)gcpi_wrong_at(s, 0, "found %llu bytes, expected a safetensors file",
                                                  (unsigned long long)s->size);
    if (!gcpi_disk_read(s, first, 8)) return 0;
    uint64_t length = gcpi_u64_from(first);
    if (length >= 2 && length <= s->size - 8 && length <= GCPI_HEADER_MOST) return (size_t)length;
    const char *other = gcpi_other_format(first);
    if (other) gcpi_wrong(s, GCP_E_CONTENTS, "found %s, expected a safetensors file", other);
    else if (length > s->size - 8 && length <= GCPI_HEADER_MOST)
        gcpi_wrong_at(s, 0, "found %llu bytes of a header of %llu: the file was cut, or is no safetensors file",
                      (unsigned long long)(s->size - 8), (unsigned long long)length);
    else
        gcpi_wrong_at(s, 0, "found a header of %llu bytes, expected 2 to %llu: no safetensors file",
                      (unsigned long long)length,
                      (unsigned long long)GCPI_MIN(s->size - 8, (uint64_t)GCPI_HEADER_MOST));
    return 0;
}

/* The scratch that reading a header takes. braces: how many {; each entry has one, and so has the whole. */
static size_t gcpi_header_scratch(size_t length, size_t braces)
{
    const size_t most = GCPI_MIN(braces, (size_t)GCPI_ENTRIES_MOST);
    return length + (most + 1) * (sizeof(gcpi_stored) + sizeof(gcpi_stored *)) + 64;
}
/* The header's text, and room for its entries: how many, *most; NULL: an error. */
static char *gcpi_header_text(gcpi_disk_file *s, size_t length, gcpi_header *h, int *most)
{
    const size_t shortest = 51;                   /* bytes of an entry, and a comma */
    size_t braces = length / shortest + 2;
    const size_t bound = gcpi_header_scratch(length, braces);
    char *text = GCPI_SCRATCH(s->scratch, char, length + 1);
    if (!text) { gcpi_disk_no_room(s, bound, "reading its header"); return NULL; }
    if (!gcpi_disk_read(s, text, length)) return NULL;
    braces = 0;
    for (size_t i = 0; i < length; i++) braces += text[i] == '{';
    *most = (int)GCPI_MIN(GCPI_MIN(braces, length / shortest + 1), (size_t)GCPI_ENTRIES_MOST);
    h->entries = GCPI_SCRATCH(s->scratch, gcpi_stored, *most + 1);
    h->by_name = GCPI_SCRATCH(s->scratch, gcpi_stored *, *most);
    if (h->entries && h->by_name) return text;
    gcpi_disk_no_room(s, gcpi_header_scratch(length, (size_t)*most), "reading its header");
    return NULL;
}

/* Reads a header into scratch. */
static int gcpi_header_read(gcpi_disk_file *s, gcpi_header *h)
{
    const size_t length = gcpi_header_length(s);
    int most;
    memset(h, 0, sizeof *h);
    char *text = length ? gcpi_header_text(s, length, h, &most) : NULL;
    if (!text) return 0;
    gcpi_json j = { s, text, 0, length };
    if ((j.at = gcpi_utf8_end(text, length)) < length) return gcpi_json_fail(&j, "UTF-8");
    j.at = 0;
    if (!gcpi_entries_read(&j, h, most)) return 0;
    if (gcpi_json_peek(&j), j.at < length) return gcpi_json_fail(&j, "nothing but spaces after the header's '}'");
    h->data = 8 + length; h->bytes = s->size - h->data;
    return gcpi_header_order(s, h);
}
