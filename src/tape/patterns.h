/* Patterns of paths. A star stands for any text, [a-b] for an index from a to b. Options that choose parameters are
   texts of such patterns: words, or lines of a pattern and a number. */

typedef struct gcpi_word { const char *at; size_t length; } gcpi_word;      /* a word of a text */

/* The next word of the line at *line. Empty at the line's end. */
static gcpi_word gcpi_word_next(const char **line)
{
    gcpi_word word;
    while (**line == ' ' || **line == '\t' || **line == '\r') ++*line;
    word.at = *line;
    while (**line && !strchr(" \t\r\n", **line)) ++*line;
    word.length = (size_t)(*line - word.at);
    return word;
}
/* Goes to the next line; 0: that was the last. */
static int gcpi_line_next(const char **line)
{
    while (**line && **line != '\n') ++*line;
    if (!**line) return 0;
    ++*line;
    return 1;
}

/* A whole number at *s, below 2^31. 0: there is none. */
static int gcpi_index_at(const char **s, const char *end, int64_t *value)
{
    const char *first = *s;
    for (*value = 0; *s < end && **s >= '0' && **s <= '9' && *value < INT32_MAX; ++*s)
        *value = *value * 10 + (**s - '0');
    return *s > first;
}
/* [a-b] at *p fits [n] at *s: goes behind both. 0: it is no such range, or n is outside. */
static int gcpi_range_fits(const char **p, const char *p_end, const char **s)
{
    const char *at = *p, *text = *s;
    int64_t from, to, index;
    if (at == p_end || *at++ != '[' || !gcpi_index_at(&at, p_end, &from) || at == p_end || *at++ != '-') return 0;
    if (!gcpi_index_at(&at, p_end, &to) || at == p_end || *at++ != ']') return 0;
    if (*text++ != '[' || !gcpi_index_at(&text, text + strlen(text), &index) || *text++ != ']') return 0;
    if (index < from || index > to) return 0;
    *p = at; *s = text;
    return 1;
}
/* Whether all of the path fits. A star that took too little is tried again with more; one star back is enough. */
static int gcpi_pattern_fits(gcpi_word pattern, const char *s)
{
    const char *p = pattern.at, *end = p + pattern.length, *star = NULL, *from = NULL;
    while (*s || p < end) {
        if (p < end && *p == '*') { star = ++p; from = s; }
        else if (gcpi_range_fits(&p, end, &s)) continue;
        else if (p < end && *s && *p == *s) { p++; s++; }
        else if (!star || !*from) return 0;
        else { p = star; s = ++from; }
    }
    return 1;
}

/* Whether any word of the text fits the path. */
static int gcpi_patterns_fit(const char *text, const char *path)
{
    do
        for (gcpi_word w; (w = gcpi_word_next(&text)).length > 0;) if (gcpi_pattern_fits(w, path)) return 1;
    while (gcpi_line_next(&text));
    return 0;
}

/* Whether the first word of a line between first and end fits the path. */
static int gcpi_lines_fit(const char *first, const char *end, const char *path)
{
    int fits = 0;
    for (const char *line = first; line < end && !fits; gcpi_line_next(&line))
        fits = gcpi_pattern_fits(gcpi_word_next(&line), path);
    return fits;
}
/* What is wrong with patterns, or NULL; *where: the word. Each must fit a parameter. lines: each is followed by a
   number of at least 0, and must fit one that no line before it fits. */
static const char *gcpi_patterns_wrong(const gcp_tape *t, const char *text, int lines, gcpi_word *where)
{
    const char *first = text;
    int words = 0;
    do
        while ((*where = gcpi_word_next(&text)).length > 0) {
            int fits = 0, used = 0;
            words++;
            for (int i = 0; i < t->parameter_count && !used; i++) {
                const char *path = t->parameters[i].path;
                if (t->parameters[i].kind != GCPI_PARAMETER || !gcpi_pattern_fits(*where, path)) continue;
                fits = 1;
                used = !lines || !gcpi_lines_fit(first, where->at, path);
            }
            if (!used) return fits ? "fits no parameter that the lines before leave" : "fits no parameter";
            if (!lines) continue;
            gcpi_word number = gcpi_word_next(&text);
            char *end = NULL;
            double value = number.length ? gcpi_real(number.at, &end) : -1;
            if (!(value >= 0) || !gcpi_finite(value) || end != number.at + number.length ||
                gcpi_word_next(&text).length)
                return "needs a number of at least 0 behind it, and nothing more on its line";
        }
    while (gcpi_line_next(&text));
    return words ? NULL : "has no pattern";
}

/* The number of the first line whose pattern fits the path; otherwise, where none does. */
static double gcpi_numbers_fit(const char *text, const char *path, double otherwise)
{
    if (!text) return otherwise;
    do {
        gcpi_word pattern = gcpi_word_next(&text), number = gcpi_word_next(&text);
        if (number.length && gcpi_pattern_fits(pattern, path)) return gcpi_real(number.at, NULL);
    } while (gcpi_line_next(&text));
    return otherwise;
}
