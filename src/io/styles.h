/* Our names and theirs. A style's words, then the lines of .map. */

/* order: of each tensor's channels in PyTorch's files; NULL under another style */
typedef struct gcpi_naming { gcp_style style; const char *map; gcpi_flat *order; } gcpi_naming;

/* What a pattern's places stood for. texts are in the order of their stars. */
enum { GCPI_STARS = 4, GCPI_LETTERS = 26 };
typedef struct gcpi_captures {
    uint64_t number[GCPI_LETTERS]; unsigned known;       /* known: a bit for each letter */
    const char *text[GCPI_STARS]; size_t length[GCPI_STARS];
    int stars;
} gcpi_captures;

/* {a}, {a+1}, {a-12} at p: the letter's number and what is added. Returns the length, 0: that is none of them. */
static size_t gcpi_place_at(const char *p, size_t length, int *letter, int *add)
{
    if (length < 3 || p[0] != '{' || p[1] < 'a' || p[1] > 'z') return 0;
    *letter = p[1] - 'a';
    *add = 0;
    if (p[2] == '}') return 3;
    size_t n = 3;
    for (; n < length && n < 6 && p[n] >= '0' && p[n] <= '9'; n++) *add = 10 * *add + (p[n] - '0');
    if (n == 3 || !*add || n == length || p[n] != '}' || (p[2] != '+' && p[2] != '-')) return 0;
    if (p[2] == '-') *add = -*add;
    return n + 1;
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
        if (place && add < 0 && c->number[letter] < (uint64_t)-add) { out[0] = 0; return 0; }
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

/* The words of a line of .map, up to a comment. Returns how many. */
static int gcpi_map_words(const char **line, gcpi_word *words, int most)
{
    int count = 0;
    for (gcpi_word w; (w = gcpi_word_next(line)).length && *w.at != '#'; count++) if (count < most) words[count] = w;
    for (int i = count; i < most; i++) words[i].length = 0;
    return count;
}

/* Whether a line says that the file has no such tensor. */
static int gcpi_line_leaves(const char *line)
{
    gcpi_word words[2];
    gcpi_map_words(&line, words, 2);
    return words[1].length == 1 && *words[1].at == '-';
}
/* Whether a line's OURS fits a path: as the style calls its last part, or as gcp does. */
static int gcpi_line_fits(gcpi_word left, const char *styled, const char *path, gcpi_captures *c)
{
    if (left.length == 1 && *left.at == '-') return 0;
    return left.length && (gcpi_match(left, styled, c) || gcpi_match(left, path, c));
}

/* What a parameter is called in the file, and its layout there. 0: the name is too long. */
static int gcpi_theirs(const gcpi_naming *n, const gcp_tape *t, int parameter, char *out, gcpi_axes *axes)
{
    const char *ours = t->parameters[parameter].path;
    char name[GCPI_NAME_MOST + 1];
    gcpi_captures c;
    gcpi_axes_of(t, parameter, n->style, n->order, axes);
    gcpi_style_name(n->style, ours, name, sizeof name);
    const char *line = n->map ? n->map : "";
    do {
        gcpi_word words[3];
        gcpi_map_words(&line, words, 3);
        if (!gcpi_line_fits(words[0], name, ours, &c)) continue;
        if (words[2].length) gcpi_axes_parse(words[2], axes);
        return gcpi_fill(words[1], &c, out, GCPI_NAME_MOST + 1);
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
        gcpi_word words[2];
        gcpi_map_words(&line, words, 2);
        if (words[0].length == 1 && *words[0].at == '-' && gcpi_match(words[1], theirs, &c)) return 1;
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

/* The letters that a pattern has, and *stars. -1: a brace or a star too many. */
static int64_t gcpi_pattern_letters(gcpi_word pattern, int changed, int *stars)
{
    int64_t letters = 0;
    int letter, add;
    *stars = 0;
    for (size_t i = 0, place; i < pattern.length; i += place ? place : 1) {
        place = gcpi_place_at(pattern.at + i, pattern.length - i, &letter, &add);
        if (place && add && !changed) return -1;
        if (place) letters |= (int64_t)1 << letter;
        else if (strchr("{}", pattern.at[i])) return -1;
        *stars += pattern.at[i] == '*';
    }
    return *stars > GCPI_STARS ? -1 : letters;
}
/* What is wrong with a line of .map, or NULL. */
static const char *gcpi_line_wrong(const char *line)
{
    gcpi_word words[3];
    gcpi_axes axes;
    int left_stars, right_stars;
    const int count = gcpi_map_words(&line, words, 3);
    if (!count) return NULL;
    if (count < 2 || count > 3) return "expected \"OURS THEIRS [LAYOUT]\" or \"- THEIRS\"";
    const int passes = words[0].length == 1 && *words[0].at == '-';
    int64_t known = gcpi_pattern_letters(words[0], 0, &left_stars),
            used = gcpi_pattern_letters(words[1], 1, &right_stars);
    if (known < 0 || used < 0)
        return "a place is {a} to {z}, on the right also {a+1} or {a-2}, up to 999; at most 4 stars";
    if (used & ~known) return "a number on the right is not on the left";
    if (!passes && right_stars > left_stars) return "more stars on the right than on the left";
    if (words[2].length && !gcpi_axes_parse(words[2], &axes))
        return "a layout has letters of o, h, w, i, each once: oihw, io; oihw:7x7 with o first or last";
    return NULL;
}
/* Whether a path goes by the line, and by none before it; lines without one do. 0: none does: *taken is the number of a
   line before that takes what this one fits, or 0. */
static int gcpi_line_used(const gcp_tape *t, const gcpi_naming *n, const char *line, int *taken)
{
    char name[GCPI_NAME_MOST + 1];
    gcpi_captures c;
    gcpi_word word, earlier;
    const char *rest = line;
    *taken = 0;
    if (!gcpi_map_words(&rest, &word, 1) || (word.length == 1 && *word.at == '-')) return 1;
    for (int i = 0; i < t->parameter_count; i++) {
        int before = 0, number = 1;
        gcpi_style_name(n->style, t->parameters[i].path, name, sizeof name);
        if (!gcpi_line_fits(word, name, t->parameters[i].path, &c)) continue;
        for (const char *l = n->map; l < line && !before; gcpi_line_next(&l), number++) {
            gcpi_map_words(&l, &earlier, 1);
            before = gcpi_line_fits(earlier, name, t->parameters[i].path, &c) ? number : 0;
        }
        if (!before) return 1;
        *taken = before;
    }
    return 0;
}
static const char *gcpi_line_useless(const char *line, int taken, char *text, size_t size)
{
    gcpi_word ours = { NULL, 0 };
    gcpi_map_words(&line, &ours, 1);
    const int length = (int)GCPI_MIN(ours.length, 80u);
    if (taken) snprintf(text, size, "line %d has all tensors that '%.*s' fits", taken, length, ours.at);
    else snprintf(text, size, "'%.*s' fits no tensor of the network", length, ours.at);
    return text;
}
static int gcpi_flat_fail(gcpi_disk_file *s, const gcp_tape *t, int parameter)
{
    return gcpi_wrong(s, GCP_E_SHAPE, "%.100s: its order in PyTorch's file cannot be told, as a flattened image meets "
                      "other channels before it: give its layout in .map", t->parameters[parameter].path);
}

/* 0: a line of the map is wrong, or the style, which the tape's error says. */
static int gcpi_naming_check(gcp_tape *t, const gcpi_naming *n, gcp_at at, const char *call)
{
    if ((int)n->style < 0 || n->style > GCP_STYLE_KERAS) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "unknown .style");
        return 0;
    }
    for (int used = 0; used < 2; used++) {        /* first how lines are written, then whether they fit anything */
        int number = 1, taken;
        const char *line = n->map ? n->map : "";
        do {
            char text[160];
            const char *wrong = used ? NULL : gcpi_line_wrong(line);
            if (used && !gcpi_line_used(t, n, line, &taken)) wrong = gcpi_line_useless(line, taken, text, sizeof text);
            if (!wrong && gcpi_line_leaves(line) && strcmp(call, "gcp_load")) wrong = "\"OURS -\" is for gcp_load";
            if (wrong) { gcpi_fail(t, GCP_E_ARGUMENT, at, call, "line %d of .map: %s", number, wrong); return 0; }
            number++;
        } while (gcpi_line_next(&line));
    }
    return 1;
}
/* The same, and the order of channels, in scratch, where the style has one of its own. */
static int gcpi_naming_begin(gcpi_disk_file *s, gcpi_naming *n)
{
    if (!gcpi_naming_check(s->tape, n, s->at, s->call)) return 0;
    if (n->style != GCP_STYLE_TORCH) return 1;
    n->order = gcpi_flats(s->tape, s->scratch);
    return n->order || gcpi_disk_no_room(s, gcpi_flats_bytes(s->tape), "the order of channels");
}
