/* Our names and theirs: a style's words, then the lines of .map. Our layouts and theirs: a weight in the state is
   [o][h][w][i]; letters give the order of its axes in a file. */

typedef struct gcpi_naming { gcp_style style; const char *map; } gcpi_naming;

/* What a pattern's places stood for. texts are in the order of their stars. */
enum { GCPI_STARS = 4, GCPI_LETTERS = 26 };
typedef struct gcpi_captures {
    uint64_t number[GCPI_LETTERS]; unsigned known;       /* known: a bit for each letter */
    const char *text[GCPI_STARS]; size_t length[GCPI_STARS];
    int stars;
} gcpi_captures;

/* {a}, {a+1}, {a-1} at p: the letter's number and what is added. Returns the length, 0: that is none of them. */
static size_t gcpi_place_at(const char *p, size_t length, int *letter, int *add)
{
    if (length < 3 || p[0] != '{' || p[1] < 'a' || p[1] > 'z') return 0;
    *letter = p[1] - 'a';
    *add = 0;
    if (p[2] == '}') return 3;
    if (length < 5 || p[3] != '1' || p[4] != '}' || (p[2] != '+' && p[2] != '-')) return 0;
    *add = p[2] == '+' ? 1 : -1;
    return 5;
}

/* Takes a number from *s, which must be the letter's, where that is known. */
static int gcpi_number_match(gcpi_captures *c, int letter, const char **s)
{
    uint64_t value = 0;
    const char *first = *s;
    for (; **s >= '0' && **s <= '9' && value < (uint64_t)1 << 32; ++*s) value = value * 10 + (uint64_t)(**s - '0');
    if (*s == first || (c->known >> letter & 1 && c->number[letter] != value)) return 0;
    c->number[letter] = value;
    c->known |= 1u << letter;
    return 1;
}

/* Whether all of s fits the pattern. A star takes the shortest text that lets the rest fit up to the next star. */
static int gcpi_match(gcpi_word pattern, const char *s, gcpi_captures *c)
{
    const char *p = pattern.at, *end = p + pattern.length, *after = NULL;
    gcpi_captures at_star;
    int letter, add;
    memset(c, 0, sizeof *c);
    at_star = *c;
    while (*s || p < end) {
        size_t place = gcpi_place_at(p, (size_t)(end - p), &letter, &add);
        if (p < end && *p == '*' && c->stars < GCPI_STARS) {
            c->text[c->stars] = s;
            c->length[c->stars++] = 0;
            after = ++p;
            at_star = *c;
        } else if (place && gcpi_number_match(c, letter, &s)) p += place;
        else if (!place && p < end && *s && *p == *s) { p++; s++; }
        else {
            size_t taken = after ? ++at_star.length[at_star.stars - 1] : 0;
            const char *from = after ? at_star.text[at_star.stars - 1] : NULL;
            if (!after || strlen(from) < taken) return 0;
            s = from + taken;
            p = after;
            *c = at_star;
        }
    }
    return 1;
}

/* Writes what the pattern becomes with these captures. 0: it does not fit in `most` bytes with its end. */
static int gcpi_fill(gcpi_word pattern, const gcpi_captures *c, char *out, size_t most)
{
    size_t n = 0;
    int letter, add, star = 0;
    for (size_t i = 0, place; i < pattern.length && n < most; i += place) {
        const char *p = pattern.at + i;
        int wrote = 1;
        place = gcpi_place_at(p, pattern.length - i, &letter, &add);
        if (place && add < 0 && !c->number[letter]) { out[0] = 0; return 0; }
        if (place)
            wrote =
                snprintf(out + n, most - n, "%llu", (unsigned long long)(c->number[letter] + (uint64_t)(int64_t)add));
        else if (*p == '*' && star < c->stars) {
            wrote = snprintf(out + n, most - n, "%.*s", (int)c->length[star], c->text[star]);
            star++;
        } else out[n] = *p;
        if (!place) place = 1;
        n += wrote > 0 ? (size_t)wrote : 0;
    }
    if (n >= most) { out[0] = 0; return 0; }
    out[n] = 0;
    return 1;
}

/* ---- layouts ---- */

static int gcpi_axes_parse(gcpi_word word, gcpi_axes *axes)
{
    size_t n = 0;
    memset(axes, 0, sizeof *axes);
    for (; n < word.length && n < 4 && word.at[n] != ':'; n++) {
        if (!strchr("ohwi", word.at[n]) || strchr(axes->letters, word.at[n])) return 0;
        axes->letters[n] = word.at[n];
    }
    if (n == word.length) return n > 0;
    char text[24], end;
    snprintf(text, sizeof text, "%.*s", (int)GCPI_MIN(word.length - n, sizeof text - 1), word.at + n);
    if (sscanf(text, ":%6dx%6d%c", &axes->h, &axes->w, &end) != 2 || axes->h < 1 || axes->w < 1) return 0;
    return n == 4 && (axes->letters[0] == 'o' || axes->letters[3] == 'o');
}
/* The layout that a style has for a weight of this many sizes. */
static void gcpi_axes_default(gcp_style style, int rank, gcpi_axes *axes)
{
    static const char *const letters[][5] = { { "i", "i", "oi", "owi", "ohwi" },
                                              { "i", "i", "oi", "owi", "oihw" },
                                              { "i", "i", "io", "owi", "hwio" } };
    memset(axes, 0, sizeof *axes);
    strcpy(axes->letters, letters[style][rank]);
}

/* The image that was flattened before a dense layer with this weight, looked for behind ops that leave its shape.
   PyTorch flattens it channel by channel. 0: there is none, or channels or pixels are one. */
static int gcpi_flattened(const gcp_tape *t, int parameter, gcpi_axes *axes)
{
    const int weight = t->parameters[parameter].tensor;
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        if (op->kind != GCP_OP_LINEAR || gcpi_edge(t, op, 1) != weight) continue;
        int x = gcpi_edge(t, op, 0);
        while (t->tensors[x].producer >= 0 && t->ops[t->tensors[x].producer].kind != GCP_OP_RESHAPE) {
            op = &t->ops[t->tensors[x].producer];
            if (op->inputs != 1 || op->kind == GCP_OP_CUSTOM) return 0;
            const int before = gcpi_edge(t, op, 0);
            if (memcmp(t->tensors[before].shape.d, t->tensors[x].shape.d, sizeof t->tensors[x].shape.d)) return 0;
            x = before;
        }
        if (t->tensors[x].producer < 0) return 0;
        const gcp_shape image = t->tensors[gcpi_edge(t, &t->ops[t->tensors[x].producer], 0)].shape;
        const int flat = t->tensors[x].shape.d[3], pixels = image.d[1] * image.d[2];
        if (flat != pixels * image.d[3] || image.d[0] != t->tensors[x].shape.d[0]) return 0;
        axes->h = image.d[1]; axes->w = image.d[2];
        return pixels > 1 && image.d[3] > 1;
    }
    return 0;
}
/* The layout of a parameter in a file where no map says it. */
static void gcpi_axes_of(const gcp_tape *t, int parameter, gcp_style style, gcpi_axes *axes)
{
    gcpi_axes_default(style, t->parameters[parameter].shape.rank, axes);
    if (style != GCP_STYLE_TORCH) return;
    if (gcpi_flattened(t, parameter, axes)) memcpy(axes->letters, "oihw", 5);
    else axes->h = axes->w = 0;
}

/* Sizes in the order o, h, w, i, of the image where one was flattened. 0: the layout is not for this weight. */
static int gcpi_axes_sizes(const gcpi_axes *axes, gcp_shape shape, size_t *sizes)
{
    for (int i = 0; i < 4; i++) sizes[i] = (size_t)shape.d[i];
    if (axes->h) {
        const size_t pixels = (size_t)axes->h * (size_t)axes->w;
        if (sizes[1] != 1 || sizes[2] != 1 || sizes[3] % pixels) return 0;
        sizes[1] = (size_t)axes->h; sizes[2] = (size_t)axes->w; sizes[3] /= pixels;
    }
    for (int i = 0; i < 4; i++) if (sizes[i] != 1 && !strchr(axes->letters, "ohwi"[i])) return 0;
    return 1;
}
/* The shape in the file; returns its rank, -1: the layout is not for this weight. */
static int gcpi_axes_shape(const gcpi_axes *axes, gcp_shape shape, uint64_t *out)
{
    size_t sizes[4], rest = 1;
    int rank = 0;
    if (!gcpi_axes_sizes(axes, shape, sizes)) return -1;
    for (const char *letter = axes->letters; *letter; letter++) {
        size_t size = sizes[strchr("ohwi", *letter) - "ohwi"];
        if (axes->h && *letter != 'o') rest *= size;
        else out[rank++] = size;
    }
    if (axes->h) {                                /* the flattened image before or after o */
        out[rank] = rest;
        if (axes->letters[0] != 'o') { out[1] = out[0]; out[0] = rest; }
        rank++;
    }
    return rank;
}

/* ---- a name ---- */

static void gcpi_style_name(gcp_style style, const char *ours, char *out, size_t most)
{
    static const char *const words[][2] = { { "gamma", "weight" },          { "beta", "bias" },
                                            { "weight", "kernel" },         { "running_mean", "moving_mean" },
                                            { "running_var", "moving_variance" } };
    const char *slash = strrchr(ours, '/'), *last = slash ? slash + 1 : ours;
    const int from = style == GCP_STYLE_TORCH ? 0 : 2, to = style == GCP_STYLE_TORCH   ? 2
                                                            : style == GCP_STYLE_KERAS ? 5
                                                                                       : 0;
    for (int i = from; i < to; i++)
        if (!strcmp(last, words[i][0])) {
            snprintf(out, most, "%.*s%s", (int)(last - ours), ours, words[i][1]);
            return;
        }
    snprintf(out, most, "%s", ours);
}

/* Whether a line's OURS fits a path: as the style calls its last part, or as gcp does. */
static int gcpi_line_fits(gcpi_word left, const char *styled, const char *path, gcpi_captures *c)
{
    if (left.length == 1 && *left.at == '-') return 0;
    return left.length && *left.at != '#' && (gcpi_match(left, styled, c) || gcpi_match(left, path, c));
}

/* What a parameter is called in the file, and its layout there. 0: the name is too long. */
static int gcpi_theirs(const gcpi_naming *n, const gcp_tape *t, int parameter, char *out, gcpi_axes *axes)
{
    const char *ours = t->parameters[parameter].path;
    char name[GCPI_NAME_MOST + 1];
    gcpi_captures c;
    gcpi_axes_of(t, parameter, n->style, axes);
    gcpi_style_name(n->style, ours, name, sizeof name);
    const char *line = n->map ? n->map : "";
    do {
        gcpi_word left = gcpi_word_next(&line), right = gcpi_word_next(&line), layout = gcpi_word_next(&line);
        if (!gcpi_line_fits(left, name, ours, &c)) continue;
        if (layout.length) gcpi_axes_parse(layout, axes);
        return gcpi_fill(right, &c, out, GCPI_NAME_MOST + 1);
    } while (gcpi_line_next(&line));
    strcpy(out, name);
    return strlen(ours) < sizeof name - 8;
}

/* Whether a line of .map passes over a tensor of the file. */
static int gcpi_line_passes(const gcpi_naming *n, const char *theirs)
{
    gcpi_captures c;
    const char *line = n->map ? n->map : "";
    do {
        gcpi_word left = gcpi_word_next(&line), right = gcpi_word_next(&line);
        if (left.length == 1 && *left.at == '-' && right.length && gcpi_match(right, theirs, &c)) return 1;
    } while (gcpi_line_next(&line));
    return 0;
}

/* Whether a tensor of the file that nothing took may be left there. */
static int gcpi_passed_over(const gcpi_naming *n, const char *theirs)
{
    static const char counts[] = "num_batches_tracked";
    const size_t length = strlen(theirs), end = sizeof counts - 1;
    const int counter = n->style == GCP_STYLE_TORCH && length >= end && !strcmp(theirs + length - end, counts);
    return counter || gcpi_line_passes(n, theirs);
}

/* The letters that a pattern has. -1: a brace or a star too many. */
static int64_t gcpi_pattern_letters(gcpi_word pattern, int changed)
{
    int64_t letters = 0;
    int letter, add, stars = 0;
    for (size_t i = 0, place; i < pattern.length; i += place ? place : 1) {
        place = gcpi_place_at(pattern.at + i, pattern.length - i, &letter, &add);
        if (place && add && !changed) return -1;
        if (place) letters |= (int64_t)1 << letter;
        else if (strchr("{}", pattern.at[i])) return -1;
        stars += pattern.at[i] == '*';
    }
    return stars > GCPI_STARS ? -1 : letters;
}
/* What is wrong with a line of .map, or NULL. */
static const char *gcpi_line_wrong(const char *line)
{
    gcpi_word left = gcpi_word_next(&line), right = gcpi_word_next(&line), layout = gcpi_word_next(&line);
    gcpi_axes axes;
    if (!left.length || *left.at == '#') return NULL;
    if (!right.length || gcpi_word_next(&line).length) return "expected \"OURS THEIRS [LAYOUT]\" or \"- THEIRS\"";
    int64_t known = gcpi_pattern_letters(left, 0), used = gcpi_pattern_letters(right, 1);
    if (known < 0 || used < 0) return "a place is {a} to {z}, on the right also {a+1} or {a-1}; at most 4 stars";
    if (used & ~known) return "a number on the right is not on the left";
    if (layout.length && !gcpi_axes_parse(layout, &axes))
        return "a layout has letters of o, h, w, i, each once: oihw, io; oihw:7x7 with o first or last";
    return NULL;
}
/* Whether a line's OURS fits any tensor; lines without one do. */
static int gcpi_line_used(const gcp_tape *t, const gcpi_naming *n, const char *line)
{
    char name[GCPI_NAME_MOST + 1];
    gcpi_captures c;
    gcpi_word left = gcpi_word_next(&line);
    if (!left.length || *left.at == '#' || (left.length == 1 && *left.at == '-')) return 1;
    for (int i = 0; i < t->parameter_count; i++) {
        gcpi_style_name(n->style, t->parameters[i].path, name, sizeof name);
        if (gcpi_line_fits(left, name, t->parameters[i].path, &c)) return 1;
    }
    return 0;
}
/* 0: a line of the map is wrong, or the style, which the tape's error says. */
static int gcpi_naming_check(gcp_tape *t, const gcpi_naming *n, gcp_at at, const char *call)
{
    if ((int)n->style < 0 || n->style > GCP_STYLE_KERAS) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "unknown .style");
        return 0;
    }
    for (int used = 0; used < 2; used++) {        /* first how lines are written, then whether they fit anything */
        int number = 1;
        const char *line = n->map ? n->map : "";
        do {
            const char *wrong = used ? NULL : gcpi_line_wrong(line);
            if (used && !gcpi_line_used(t, n, line)) wrong = "its first name fits no tensor of the network";
            if (wrong) { gcpi_fail(t, GCP_E_ARGUMENT, at, call, "line %d of .map: %s", number, wrong); return 0; }
            number++;
        } while (gcpi_line_next(&line));
    }
    return 1;
}
