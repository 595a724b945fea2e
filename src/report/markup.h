/* Text in markup and in strings. Names may be any bytes. */

/* ---- names, which may be any bytes ---- */

/* Bytes of the UTF-8 sequence that s begins with, 0: none. */
static int gcpi_utf8(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    for (int i = 1; i < n; i++) if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    return (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F) ? 0 : n;
}

/* U+FFFE and U+FFFF, which are UTF-8 and yet in no text. */
static int gcpi_no_character(const unsigned char *s) { return s[0] == 0xEF && s[1] == 0xBF && s[2] >= 0xBE; }

/* Text in markup: what is no UTF-8, or no character of XML, becomes U+FFFD. */
static void gcpi_escaped_write(void *out, const char *text, size_t size)
{
    gcp_writer w = *(gcp_writer *)out;
    for (size_t i = 0; i < size;) {
        unsigned char s[4] = { 0 };
        memcpy(s, text + i, GCPI_MIN(size - i, sizeof s));
        const int n = gcpi_utf8(s);
        if (!n || gcpi_no_character(s) || (*s < 0x20 && *s != '\n') || *s == 0x7F) gcpi_say(w, "&#xFFFD;");
        else if (*s == '<') gcpi_say(w, "&lt;");
        else if (*s == '>') gcpi_say(w, "&gt;");
        else if (*s == '&') gcpi_say(w, "&amp;");
        else if (*s == '"') gcpi_say(w, "&quot;");
        else gcpi_say(w, "%.*s", n, text + i);
        i += (size_t)GCPI_MAX(n, 1);
    }
}

static void gcpi_say_escaped(gcp_writer w, const char *text) { gcpi_escaped_write(&w, text, strlen(text)); }

/* ---- names as strings ---- */

/* The inside of a string, which may stand in a script: no '<'. What is not UTF-8 becomes U+FFFD. */
static void gcpi_json_write(void *out, const char *text, size_t size)
{
    gcp_writer w = *(gcp_writer *)out;
    for (size_t i = 0; i < size;) {
        unsigned char s[4] = { 0 };
        memcpy(s, text + i, GCPI_MIN(size - i, sizeof s));
        int n = gcpi_utf8(s);
        if (!n || gcpi_no_character(s)) gcpi_say(w, "\\ufffd");
        else if (s[0] < 0x20 || s[0] == '<' || s[0] == '&' || s[0] == 0x7F) gcpi_say(w, "\\u%04x", s[0]);
        else if (s[0] == '"' || s[0] == '\\') gcpi_say(w, "\\%c", s[0]);
        else gcpi_say(w, "%.*s", n, (const char *)s);
        i += (size_t)GCPI_MAX(n, 1);
    }
}

static void gcpi_json_string(gcp_writer w, const char *text)
{
    gcpi_say(w, "\"");
    gcpi_json_write(&w, text, strlen(text));
    gcpi_say(w, "\"");
}

/* A task's name and the place of its op: "conv2d[0]","networks.h:122". */
static void gcpi_json_task(const gcpi_plan *core, int task, gcp_writer w)
{
    char name[256], place[256] = "";
    gcpi_json_string(w, gcpi_task_name(&core->p, &core->p.tasks[task], name, sizeof name));
    if (!gcpi_is_graph(&core->p)) {
        gcp_at at = gcpi_task_at(&core->p, task, core->opts.at);
        snprintf(place, sizeof place, "%s:%d", gcpi_basename(at.file), at.line);
    }
    gcpi_say(w, ",");
    gcpi_json_string(w, place);
}
