/* What a saved file consists of, piece by piece. Its header and its data are the same walk over the pieces. */

/* What a run file has beside the values. */
#define GCPI_RUN_HEAD "gcp.run"
#define GCPI_RUN_UPDATES "gcp.updates/"
#define GCPI_RUN_SLOT "gcp.slot"                  /* and its number, and '/' */
#define GCPI_RUN_EXTRA "gcp.extra"
#define GCPI_RUN_SUM "gcp.checksum"
enum { GCPI_RUN_FORMAT = 1, GCPI_RUN_HEAD_WORDS = 5 };    /* format, seed, steps, updates, optimiser */

enum { GCPI_PIECE_HEAD, GCPI_PIECE_UPDATES, GCPI_PIECE_VALUE, GCPI_PIECE_SLOT_0, GCPI_PIECE_SLOT_1, GCPI_PIECE_EXTRA,
       GCPI_PIECE_SUM, GCPI_PIECE_END };
typedef struct gcpi_piece {
    int kind, parameter;                 /* parameter: -1 before the first of its kind */
    char name[GCPI_NAME_MOST + 32];
    int dtype, rank; uint64_t shape[GCPI_RANK_MOST];
    gcpi_axes axes;
} gcpi_piece;

/* run: a run file, else weights alone; most: as if every parameter had all slots, for an upper bound. */
typedef struct gcpi_saving {
    const gcp_tape *t; gcpi_disk_file *s;
    gcpi_naming naming;
    int run, most;
    const unsigned char *extra; size_t extra_bytes;
} gcpi_saving;

/* Goes to the next place for a piece, which may hold none. */
static void gcpi_piece_step(const gcpi_saving *v, gcpi_piece *p)
{
    const int each = p->kind >= GCPI_PIECE_UPDATES && p->kind <= GCPI_PIECE_SLOT_1;
    if (each && p->parameter + 1 < v->t->parameter_count) { p->parameter++; return; }
    p->kind++;
    p->parameter = p->kind >= GCPI_PIECE_UPDATES && p->kind <= GCPI_PIECE_SLOT_1 ? 0 : -1;
}
static int gcpi_piece_here(const gcpi_saving *v, const gcpi_piece *p)
{
    const gcp_tape *t = v->t;
    if (p->kind == GCPI_PIECE_VALUE) return p->parameter < t->parameter_count;
    if (!v->run) return 0;
    if (p->kind == GCPI_PIECE_EXTRA) return v->extra_bytes > 0;
    if (p->parameter < 0) return 1;
    if (p->parameter >= t->parameter_count || !(v->most || t->parameters[p->parameter].slot)) return 0;
    return v->most || p->kind == GCPI_PIECE_UPDATES || p->kind - GCPI_PIECE_SLOT_0 < t->slots;
}
static void gcpi_piece_shape(gcpi_piece *p, int dtype, int rank, uint64_t size)
{
    p->dtype = dtype; p->rank = rank; p->shape[0] = size;
}
/* Fills the rest of a piece that is there. 0: its name does not fit, or its layout. */
static int gcpi_piece_fill(const gcpi_saving *v, gcpi_piece *p)
{
    const gcpi_parameter *x = p->parameter >= 0 ? &v->t->parameters[p->parameter] : NULL;
    const int slot = p->kind - GCPI_PIECE_SLOT_0;
    static const gcpi_naming ours = { GCP_STYLE_GCP, NULL, NULL };
    switch (p->kind) {
    case GCPI_PIECE_HEAD:
        gcpi_piece_shape(p, GCPI_FILE_U64, 1, GCPI_RUN_HEAD_WORDS);
        strcpy(p->name, GCPI_RUN_HEAD);
        return 1;
    case GCPI_PIECE_EXTRA:
        gcpi_piece_shape(p, GCPI_FILE_U8, 1, v->extra_bytes);
        strcpy(p->name, GCPI_RUN_EXTRA);
        return 1;
    case GCPI_PIECE_SUM: gcpi_piece_shape(p, GCPI_FILE_U64, 0, 0); strcpy(p->name, GCPI_RUN_SUM); return 1;
    case GCPI_PIECE_UPDATES:
        gcpi_piece_shape(p, GCPI_FILE_U64, 0, 0);
        snprintf(p->name, sizeof p->name, GCPI_RUN_UPDATES "%.1024s", x->path);
        return strlen(x->path) <= GCPI_NAME_MOST - 16;
    }
    if (!gcpi_theirs(p->kind == GCPI_PIECE_VALUE ? &v->naming : &ours, v->t, p->parameter, p->name, &p->axes)) return 0;
    if (p->kind != GCPI_PIECE_VALUE) snprintf(p->name, sizeof p->name, GCPI_RUN_SLOT "%d/%.1024s", slot, x->path);
    p->dtype = gcpi_real_dtype();
    if ((p->rank = gcpi_axes_shape(&p->axes, x->shape, p->shape)) < 0) return 0;
    if (!v->run && !p->axes.given) p->rank = gcpi_ones_restore(x, v->naming.style, p->shape, p->rank);
    return 1;
}
/* The next piece of what is saved. 0: there is none, or an error. */
static int gcpi_piece_next(const gcpi_saving *v, gcpi_piece *p)
{
    do gcpi_piece_step(v, p); while (p->kind < GCPI_PIECE_END && !gcpi_piece_here(v, p));
    if (p->kind == GCPI_PIECE_END) return 0;
    if (gcpi_piece_fill(v, p) && gcpi_utf8_end(p->name, strlen(p->name)) == strlen(p->name) &&
        strcmp(p->name, "__metadata__"))
        return 1;
    if (p->parameter >= 0 && p->axes.h < 0) return gcpi_flat_fail(v->s, v->t, p->parameter);
    return gcpi_wrong(v->s, GCP_E_ARGUMENT,
                      "%.100s: its name in the file cannot be '%.100s', or the layout %s is not for it",
                      v->t->parameters[p->parameter].path, p->name, p->axes.letters);
}
static gcpi_piece gcpi_piece_first(void)
{
    gcpi_piece p;
    memset(&p, 0, sizeof p);
    p.kind = GCPI_PIECE_HEAD - 1; p.parameter = -1;
    return p;
}

static uint64_t gcpi_piece_bytes(const gcpi_piece *p)
{
    uint64_t bytes = gcpi_dtype_size(p->dtype);
    for (int i = 0; i < p->rank; i++) bytes *= p->shape[i];
    return bytes;
}

/* ---- the header, written ---- */

static void gcpi_say_quoted(gcp_writer w, const char *text)
{
    gcpi_say(w, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') gcpi_say(w, "\\%c", *c);
        else if ((unsigned char)*c < 0x20) gcpi_say(w, "\\u%04x", (unsigned)*c);
        else w.write(w.context, c, 1);
    }
    gcpi_say(w, "\"");
}
static void gcpi_header_say(const gcpi_saving *v, gcp_writer w)
{
    gcpi_piece p = gcpi_piece_first();
    uint64_t at = 0;
    gcpi_say(w, "{");
    for (int n = 0; gcpi_piece_next(v, &p); n++) {
        if (n) gcpi_say(w, ",");
        gcpi_say_quoted(w, p.name);
        gcpi_say(w, ":{\"dtype\":\"%s\",\"shape\":[", gcpi_dtype_name(p.dtype));
        for (int i = 0; i < p.rank; i++) gcpi_say(w, "%s%llu", i ? "," : "", (unsigned long long)p.shape[i]);
        gcpi_say(w, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                 (unsigned long long)(at + gcpi_piece_bytes(&p)));
        at += gcpi_piece_bytes(&p);
    }
    gcpi_say(w, "}");
}

/* A header's length, and how many { are in it. */
typedef struct gcpi_header_size { size_t length, braces; } gcpi_header_size;
static void gcpi_write_count(void *context, const char *text, size_t size)
{
    gcpi_header_size *n = (gcpi_header_size *)context;
    n->length += size;
    for (size_t i = 0; i < size; i++) n->braces += text[i] == '{';
}
static gcpi_header_size gcpi_header_measure(const gcpi_saving *v)
{
    gcpi_header_size size = { 0, 0 };
    gcp_writer count;
    count.write = gcpi_write_count; count.context = &size;
    gcpi_header_say(v, count);
    size.length += (size_t)(-size.length & 7);    /* with spaces */
    return size;
}
static void gcpi_write_disk(void *context, const char *text, size_t size)
{
    gcpi_disk_write((gcpi_disk_file *)context, text, size);
}
/* Its length, itself, and spaces. */
static int gcpi_header_write(const gcpi_saving *v, size_t length)
{
    static const char spaces[] = "       ";
    gcp_writer out;
    unsigned char first[8];
    out.write = gcpi_write_disk; out.context = v->s;
    gcpi_u64_to(length, first, 8);
    gcpi_disk_write(v->s, first, 8);
    gcpi_header_say(v, out);
    return gcpi_disk_write(v->s, spaces, (size_t)(8 + length - v->s->offset));
}

static int gcpi_hash_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
/* 0: two pieces would have one name, or an error. */
static int gcpi_names_differ(const gcpi_saving *v)
{
    gcp_arena *a = v->s->scratch;
    const ptrdiff_t most = 4 * (ptrdiff_t)v->t->parameter_count + 3;
    const ptrdiff_t scratch = a->scratch;
    uint64_t *hashes = GCPI_SCRATCH(a, uint64_t, most);
    gcpi_piece p = gcpi_piece_first();
    uint64_t twice = 0;
    int count = 0;
    if (!hashes) return gcpi_disk_no_room(v->s, (size_t)most * sizeof *hashes + 16, "comparing its names");
    while (gcpi_piece_next(v, &p)) hashes[count++] = gcpi_hash(p.name);
    qsort(hashes, (size_t)count, sizeof *hashes, gcpi_hash_order);
    for (int i = 1; i < count; i++) twice = hashes[i] == hashes[i - 1] ? hashes[i] : twice;
    a->scratch = scratch;
    p = gcpi_piece_first();
    while (twice && gcpi_piece_next(v, &p))
        if (gcpi_hash(p.name) == twice) {
            gcpi_wrong(v->s, GCP_E_NAME, "two tensors would have the same name in it: %.100s", p.name);
            break;
        }
    return !v->s->failed;
}

/* 0: a header that nothing reads, or a run that this arena could not take up again, and an error. */
static int gcpi_header_fits(const gcpi_saving *v, gcpi_header_size size)
{
    const size_t scratch = gcpi_header_scratch(size.length, size.braces);
    if (v->s->failed) return 0;
    if (size.length > GCPI_HEADER_MOST)
        return gcpi_wrong(v->s, GCP_E_CAPACITY, "its header would have %zu bytes, and %d are allowed", size.length,
                          GCPI_HEADER_MOST);
    return !v->run || scratch <= gcpi_disk_room(v->s) || gcpi_disk_no_room(v->s, scratch, "resuming from it");
}

/* The data of a piece. */
static int gcpi_piece_write(const gcpi_saving *v, const gcpi_piece *p)
{
    const gcp_tape *t = v->t;
    gcpi_place place = { &t->home, NULL };
    unsigned char words[8 * GCPI_RUN_HEAD_WORDS];
    if (p->kind == GCPI_PIECE_EXTRA) return gcpi_disk_write(v->s, v->extra, v->extra_bytes);
    if (p->kind == GCPI_PIECE_VALUE || p->kind == GCPI_PIECE_SLOT_0 || p->kind == GCPI_PIECE_SLOT_1) {
        const int slot = p->kind != GCPI_PIECE_VALUE;
        place.at = slot ? gcpi_slot_at(t, p->parameter, p->kind - GCPI_PIECE_SLOT_0) : gcpi_value_at(t, p->parameter);
        if (slot && t->far_slots) place.home = NULL;
        return gcpi_tensor_write(v->s, gcpi_axes_walk_of(&p->axes, t->parameters[p->parameter].shape), &place);
    }
    gcpi_counters c = gcpi_counters_read(t);
    uint64_t head[GCPI_RUN_HEAD_WORDS] = { GCPI_RUN_FORMAT, t->seed, c.steps, c.updates, (uint64_t)t->optimizer };
    size_t count = p->kind == GCPI_PIECE_HEAD ? GCPI_RUN_HEAD_WORDS : 1;
    if (p->kind == GCPI_PIECE_UPDATES) gcpi_bytes_copy(&t->home, head, gcpi_count_at(t, p->parameter), 8);
    if (p->kind == GCPI_PIECE_SUM) head[0] = gcpi_checksum_end(v->s->sum);
    for (size_t i = 0; i < count; i++) gcpi_u64_to(head[i], words + 8 * i, 8);
    return gcpi_disk_write(v->s, words, 8 * count);
}

/* Saves all pieces under the path of v->s. */
static gcp_code gcpi_save(const gcpi_saving *v)
{
    char part[GCPI_PATH];
    const gcpi_header_size size = gcpi_header_measure(v);
    if (!gcpi_header_fits(v, size) || !gcpi_names_differ(v) || !gcpi_disk_create(v->s, part))
        return gcp_error_code(v->t);
    gcpi_piece p = gcpi_piece_first();
    int good = gcpi_header_write(v, size.length);
    while (good && gcpi_piece_next(v, &p)) good = gcpi_piece_write(v, &p);
    gcpi_disk_settle(v->s, part);
    return gcp_error_code(v->t);
}
