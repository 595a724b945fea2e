/* The conformance cases of the onnx package (tests/reference/make_onnx.py): each is right within the suite's own
   tolerances, or refused by name. test_onnx_cases ARCHIVE.tar [list [NAME]] prints a line a case, and the table by op.
   test_onnx_cases ARCHIVE.tar broken [N] changes N copies of each model (2): none may harm. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"

enum { MOST = 24, AXES = 8 };
typedef struct bytes {
    const unsigned char *at;
    size_t size;
} bytes;
typedef struct tensor {
    bytes message;
    int type, rank, real;
    int64_t d[AXES];
    size_t count;
    double *x;
} tensor;
typedef struct one_case {
    char name[128], op[64];
    bytes model, in[MOST], out[MOST];
    int ins, outs;
    double relative, absolute;
} one_case;
typedef enum answer { RIGHT, REFUSED, WRONG } answer;

/* ---- Protocol Buffers, apart from the library's reader ---- */

static uint64_t varint(bytes *b)
{
    uint64_t v = 0;
    for (int shift = 0; b->size; shift += 7) {
        const unsigned char c = *b->at++;
        b->size--;
        if (shift < 64) v |= (uint64_t)(c & 127) << shift;
        if (c < 128) break;
    }
    return v;
}
typedef struct field {
    int number, type;
    uint64_t value;
    bytes bytes;
} field;
static int next_field(bytes *b, field *f)
{
    if (!b->size) return 0;
    const uint64_t key = varint(b);
    f->number = (int)(key >> 3);
    f->type = (int)(key & 7);
    f->value = 0;
    f->bytes.at = b->at;
    f->bytes.size = f->type == 1 ? 8 : 4;
    if (f->type == 0) {
        f->value = varint(b);
        return 1;
    }
    if (f->type == 2) f->bytes.size = (size_t)varint(b), f->bytes.at = b->at;
    b->at += f->bytes.size;
    b->size -= f->bytes.size;
    return 1;
}
static bytes find(bytes b, int number)
{
    bytes found = { NULL, 0 };
    for (field f; next_field(&b, &f);)
        if (f.number == number && f.type == 2) found = f.bytes;
    return found;
}
static double element(int type, const unsigned char *p)
{
    float f;
    double d;
    int64_t l;
    int32_t i;
    switch (type) {
    case 1: memcpy(&f, p, 4); return (double)f;
    case 11: memcpy(&d, p, 8); return d;
    case 7: memcpy(&l, p, 8); return (double)l;
    case 6: memcpy(&i, p, 4); return (double)i;
    case 9: return *p;
    default: return NAN;
    }
}
/* Of a .pb file: dims, type, raw data. */
static tensor tensor_of(bytes message)
{
    static const size_t sizes[12] = { 0, 4, 0, 0, 0, 0, 4, 8, 0, 1, 0, 8 };
    tensor t;
    bytes b = message;
    memset(&t, 0, sizeof t);
    t.message = message;
    t.count = 1;
    for (field f; next_field(&b, &f);) {
        bytes packed = f.bytes;
        if (f.number == 1 && f.type == 0 && t.rank < AXES) t.d[t.rank++] = (int64_t)f.value;
        while (f.number == 1 && f.type == 2 && packed.size && t.rank < AXES) t.d[t.rank++] = (int64_t)varint(&packed);
        if (f.number == 2) t.type = (int)f.value;
    }
    for (int i = 0; i < t.rank; i++) t.count *= (size_t)t.d[i];
    t.real = t.type == 1 || t.type == 11;
    const bytes raw = find(message, 9);
    t.x = calloc(t.count + 1, sizeof *t.x);
    const size_t size = t.type >= 0 && t.type < 12 ? sizes[t.type] : 0;
    for (size_t i = 0; i < t.count && size && raw.size == t.count * size; i++)
        t.x[i] = element(t.type, raw.at + i * size);
    return t;
}

/* ---- the archive ---- */

static unsigned char *file_read(const char *path, size_t *size)
{
    FILE *f = fopen(path, "rb");
    if (!f) {
        fprintf(stderr, "%s: cannot be read\n", path);
        exit(2);
    }
    fseek(f, 0, SEEK_END);
    *size = (size_t)ftell(f);
    rewind(f);
    unsigned char *data = malloc(*size + 1);
    if (!data || fread(data, 1, *size, f) != *size) exit(2);
    fclose(f);
    return data;
}
/* The next case: entries NAME/..., which stand together. 0: the end. */
static int next_case(const unsigned char *tar, size_t size, size_t *at, one_case *c)
{
    memset(c, 0, sizeof *c);
    c->relative = 1e-3;
    c->absolute = 1e-7;
    for (; *at + 512 <= size && tar[*at];) {
        const char *name = (const char *)tar + *at, *slash = memchr(name, '/', 100);
        const size_t bytes_in = (size_t)strtoull(name + 124, NULL, 8), length = slash ? (size_t)(slash - name) : 0;
        bytes body;
        if (c->name[0] && (strlen(c->name) != length || strncmp(c->name, name, length))) return 1;
        snprintf(c->name, sizeof c->name, "%.*s", (int)length, name);
        body.at = tar + *at + 512;
        body.size = bytes_in;
        const char *entry = name + length + 1;
        if (!strcmp(entry, "model.onnx")) c->model = body;
        else if (!strncmp(entry, "input_", 6) && c->ins < MOST) c->in[atoi(entry + 6)] = body, c->ins++;
        else if (!strncmp(entry, "output_", 7) && c->outs < MOST) c->out[atoi(entry + 7)] = body, c->outs++;
        else if (!strcmp(entry, "tolerance")) sscanf((const char *)body.at, "%lf %lf", &c->relative, &c->absolute);
        *at += 512 + (bytes_in + 511) / 512 * 512;
    }
    return c->name[0] != 0;
}

/* ---- a case's model with some of its inputs as initialisers ---- */

static size_t put_varint(unsigned char *to, uint64_t v)
{
    size_t n = 0;
    do {
        to[n++] = (unsigned char)(v & 127) | (unsigned char)(v >> 7 ? 128 : 0);
    } while (v >>= 7);
    return n;
}
static size_t put_field(unsigned char *to, int number, bytes b)
{
    size_t n = put_varint(to, (uint64_t)number << 3 | 2);
    n += put_varint(to + n, b.size);
    memcpy(to + n, b.at, b.size);
    return n + b.size;
}
/* Name of input i of those that are no initialisers: input_i is its value. */
static bytes input_name(bytes graph, int i)
{
    bytes b = graph, none = { NULL, 0 };
    for (field f; next_field(&b, &f);) {
        if (f.number != 11) continue;
        const bytes name = find(f.bytes, 1);
        bytes all = graph;
        int stored = 0;
        for (field g; next_field(&all, &g);) {
            const bytes other = g.number == 5 ? find(g.bytes, 8) : none;
            stored |= g.number == 5 && other.size == name.size && !memcmp(other.at, name.at, name.size);
        }
        if (!stored && !i--) return name;
    }
    return none;
}
static bytes first_output(bytes graph)
{
    const bytes none = { NULL, 0 };
    for (field f; next_field(&graph, &f);)
        if (f.number == 12) return find(f.bytes, 1);
    return none;
}
static bytes with_initializers(const one_case *c, unsigned baked)
{
    bytes b = c->model, graph = find(b, 7), all;
    size_t room = c->model.size + 4096, n = 0, g = 0;
    for (int i = 0; i < c->ins; i++) room += 2 * c->in[i].size + 1024;
    unsigned char *model = malloc(room), *inner = malloc(room), *one = malloc(room);
    memcpy(inner, graph.at, graph.size);
    g = graph.size;
    for (int i = 0; i < c->ins; i++) {
        bytes t = { one, c->in[i].size };
        if (!(baked >> i & 1)) continue;
        memcpy(one, c->in[i].at, c->in[i].size);
        t.size += put_field(one + t.size, 8, input_name(graph, i));
        g += put_field(inner + g, 5, t);
    }
    for (field f; b.size;) {
        const unsigned char *from = b.at;
        next_field(&b, &f);
        all.at = inner;
        all.size = g;
        if (f.number == 7) n += put_field(model + n, 7, all);
        else {
            memcpy(model + n, from, (size_t)(b.at - from));
            n += (size_t)(b.at - from);
        }
    }
    free(inner);
    free(one);
    all.at = model;
    all.size = n;
    return all;
}

/* ---- running ---- */

static char message[700];

static answer compare(const one_case *c, const tensor *want, const float *got, const char *how)
{
    for (size_t i = 0; i < want->count; i++) {
        const double w = want->x[i], x = (double)got[i];
        if ((isnan(w) && isnan(x)) || w == x || (fabs(w) > 3.4e38 && isinf(x)) ||
            fabs(x - w) <= c->absolute + c->relative * fabs(w))
            continue;
        snprintf(message, sizeof message, "%s: element %zu is %.9g, expected %.9g", how, i, x, w);
        return WRONG;
    }
    return RIGHT;
}
static answer refused(const char *text)
{
    snprintf(message, sizeof message, "%s", text);
    return REFUSED;
}

/* Reads the outputs of a plan and compares them. */
static answer outputs(const one_case *c, gcp_plan *plan, gcp_onnx *model, int only_first, const char *how)
{
    answer all = REFUSED;
    for (int i = 0; i < c->outs && (!i || !only_first) && all != WRONG; i++) {
        tensor want = tensor_of(c->out[i]);
        const gcp_tensor y = gcp_onnx_output(model, i);
        if (want.real && !gcp_is_nil(y)) {
            float *got = calloc(want.count + 1, sizeof *got);
            const size_t found = gcp_elements(y);
            if (found != want.count) {
                snprintf(message, sizeof message, "%s: %zu elements, expected %zu", how, found, want.count);
                all = WRONG;
            } else if (gcp_onnx_read(plan, model, i, got)) all = refused(gcp_error(plan->tape));
            else all = compare(c, &want, got, how);
            free(got);
        }
        free(want.x);
    }
    return all;
}
static int write_inputs(const one_case *c, gcp_plan *plan, gcp_onnx *model, unsigned baked)
{
    for (int i = 0, next = 0; i < c->ins; i++) {
        if (baked >> i & 1) continue;
        const int input = next++;
        const gcp_tensor x = gcp_onnx_input(model, input);
        if (gcp_is_nil(x)) continue;
        tensor t = tensor_of(c->in[i]);
        float *reals = calloc(t.count + 1, sizeof *reals);
        int32_t *ids = calloc(t.count + 1, sizeof *ids);
        for (size_t k = 0; k < t.count; k++) {
            reals[k] = (float)t.x[k];
            if (!t.real) ids[k] = (int32_t)t.x[k];
        }
        if (t.real) gcp_onnx_write(plan, model, input, reals);
        else gcp_write(plan, x, ids);
        free(reals);
        free(ids);
        free(t.x);
    }
    return !gcp_error(plan->tape);
}
/* A training case takes a step: its norm's statistics are the batch's. */
static answer recorded(const one_case *c, gcp_tape *net, gcp_onnx *model, unsigned baked, const char *how)
{
    const int trains = strstr(c->name, "training") != NULL;
    const gcp_tensor y = gcp_onnx_output(model, 0);
    for (int i = 0; i < c->outs; i++)
        if (!gcp_is_nil(gcp_onnx_output(model, i))) gcp_keep(gcp_onnx_output(model, i));
    gcp_error_clear(net); /* a parameter is no activation */
    gcp_plan plan = trains ? gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL)
                           : gcp_plan_make(y, .inference = 1, .policy = GCP_POLICY_KEEP_ALL);
    if (gcp_error(net)) return refused(gcp_error(net));
    void *memory = malloc(plan.room);
    gcp_bind(&plan, memory, plan.room);
    gcp_onnx_load(net, model);
    answer is = REFUSED;
    if (gcp_error(net) || !write_inputs(c, &plan, model, baked)) refused(gcp_error(net));
    else {
        if (trains) gcp_step(&plan);
        else gcp_forward(&plan);
        is = gcp_error(net) ? refused(gcp_error(net)) : outputs(c, &plan, model, trains, how);
    }
    free(memory);
    return is;
}
/* until: the one output that is asked for; NULL: all. */
static answer run(const one_case *c, unsigned baked, const char *until, const char *how)
{
    static unsigned char *memory;
    const size_t size = GCP_MB(512);
    if (!memory) memory = malloc(2 * size);
    const bytes model_bytes = with_initializers(c, baked);
    gcp_arena files = gcp_arena_from(memory, size), tapes = gcp_arena_from(memory + size, size);
    gcp_onnx model = gcp_onnx_open(&files, c->name, .data = model_bytes.at, .size = model_bytes.size);
    answer is;
    if (model.error[0]) is = refused(model.error);
    else {
        gcp_tape *net = gcp_tape_make(&tapes, .ops = model.ops);
        const gcp_code code = net ? gcp_onnx_record(net, &model, .until = until) : GCP_E_NOMEM;
        if (!net || code) is = refused(net ? gcp_error(net) : "no tape");
        else is = recorded(c, net, &model, baked, how);
    }
    free((void *)(uintptr_t)model_bytes.at);
    return is;
}
/* Inputs that are known before a step, as whole numbers are, become initialisers; then weights, too. */
static answer answer_of(const one_case *c)
{
    const int norm = !strcmp(c->op, "BatchNormalization"),
              numbers = !strcmp(c->op, "Resize") || !strcmp(c->op, "Upsample") || !strcmp(c->op, "Pad") ||
                        !strcmp(c->op, "Range"),
              gather = !strcmp(c->op, "Gather");
    unsigned known = 0, weights = 0;
    for (int i = 0; i < c->ins; i++) {
        tensor t = tensor_of(c->in[i]);
        if ((!t.real && !gather) || (i && (t.rank == 0 || numbers)) || (norm && i > 2)) known |= 1u << i;
        if (i) weights |= 1u << i;
        free(t.x);
    }
    /* Other outputs than the first (a norm's mean) may be refused without it. */
    char name[128];
    const bytes text_of = first_output(find(c->model, 7));
    snprintf(name, sizeof name, "%.*s", (int)text_of.size, (const char *)text_of.at);
    answer first = run(c, known | weights, NULL, "weights as initialisers");
    if (first == REFUSED && c->outs > 1) first = run(c, known | weights, name, "the first output alone");
    char text[sizeof message];
    memcpy(text, message, sizeof text);
    if (first == WRONG) return WRONG;
    const answer second = run(c, known, NULL, "weights as inputs");
    if (second == WRONG || first == second || first == REFUSED) return second;
    memcpy(message, text, sizeof text);
    return first;
}

/* ---- broken files ---- */

static unsigned next_random(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return (unsigned)(*state >> 33);
}
/* A case's model with some bytes changed, cut off or doubled: it is opened and recorded, or refused. */
static void broken(const one_case *c, uint64_t *random, int count[3])
{
    static unsigned char *memory;
    const size_t size = GCP_MB(64);
    if (!memory) memory = malloc(2 * size);
    const bytes whole = with_initializers(c, next_random(random));
    size_t length = whole.size;
    unsigned char *copy = malloc(length + 1);
    memcpy(copy, whole.at, length);
    for (unsigned n = next_random(random) % 4; n < 4 && length; n++)
        copy[next_random(random) % length] = (unsigned char)(next_random(random) % 3 ? next_random(random) : 255);
    if (next_random(random) % 4 == 0) length = next_random(random) % (length + 1);
    gcp_arena files = gcp_arena_from(memory, size), tapes = gcp_arena_from(memory + size, size);
    gcp_onnx model = gcp_onnx_open(&files, c->name, .data = copy, .size = length);
    if (model.error[0]) count[0]++;
    else {
        gcp_tape *net = gcp_tape_make(&tapes, .ops = model.ops < 20000 ? model.ops : 20000);
        count[net && !gcp_onnx_record(net, &model, .batch = (int)(next_random(random) % 3)) ? 2 : 1]++;
    }
    free(copy);
    free((void *)(uintptr_t)whole.at);
}

/* ---- the table ---- */

typedef struct row {
    char op[64];
    int count[3];
} row;
static void op_of(one_case *c)
{
    const bytes node = find(find(c->model, 7), 1), op = find(node, 4); /* the last node's */
    snprintf(c->op, sizeof c->op, "%.*s", (int)op.size, (const char *)op.at);
}
static int all_broken(unsigned char *tar, size_t size, int copies)
{
    uint64_t random = 88172645463325252u;
    int found[3] = { 0 };
    size_t at = 0;
    one_case c;
    while (next_case(tar, size, &at, &c))
        for (int i = 0; i < copies && c.model.size < 200000; i++) broken(&c, &random, found);
    printf("%d broken files: %d not opened, %d not recorded, %d recorded\n", found[0] + found[1] + found[2], found[0],
           found[1], found[2]);
    free(tar);
    return !found[0] || !found[1] || !found[2];
}
int main(int count, char **words)
{
    static row rows[400];
    static const char *const texts[3] = { "right", "refused", "WRONG" };
    int used = 0, all[3] = { 0 };
    size_t size, at = 0;
    one_case c;
    if (count < 2) {
        fprintf(stderr, "test_onnx_cases ARCHIVE.tar [list]\n");
        return 2;
    }
    unsigned char *tar = file_read(words[1], &size);
    if (count > 2 && !strcmp(words[2], "broken")) return all_broken(tar, size, count > 3 ? atoi(words[3]) : 2);
    while (next_case(tar, size, &at, &c)) {
        op_of(&c);
        if (count > 3 && strcmp(words[3], c.name)) continue;
        const answer is = answer_of(&c);
        int r = 0;
        while (r < used && strcmp(rows[r].op, c.op)) r++;
        if (r == used && used < 400) memcpy(rows[used++].op, c.op, sizeof c.op);
        rows[r].count[is]++;
        all[is]++;
        if (is == WRONG || count > 2) {
            printf("%s %s (%s) %s\n", texts[is], c.name, c.op, is == RIGHT ? "" : message);
            fflush(stdout);
        }
    }
    for (int i = 0; i < used && count > 2; i++)
        printf("%-28s %3d right %3d refused\n", rows[i].op, rows[i].count[RIGHT], rows[i].count[REFUSED]);
    printf("%d cases: %d right, %d refused by name, %d wrong\n", all[0] + all[1] + all[2], all[RIGHT], all[REFUSED],
           all[WRONG]);
    free(tar);
    return all[WRONG] || !all[RIGHT];
}
