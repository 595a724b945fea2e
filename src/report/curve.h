/* Text in markup; the curve of a sweep, as SVG. */

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

/* ---- the trade-off ---- */

static int gcpi_point_fits(const gcp_point *p) { return p->bytes && p->keep_all_seconds > 0; }
static double gcpi_sweep_x(const gcp_point *p, size_t budgets)
{
    return 70 + 780 * (double)p->budget / (double)budgets;
}
static double gcpi_sweep_y(const gcp_point *p, double seconds, double most)
{
    return 400 - 340 * (seconds / p->keep_all_seconds - 1) / (most - 1);
}

/* One of the curve's two lines (bound or seconds), over the points that fit. */
static void gcpi_sweep_line(const gcp_point *p, int count, gcp_writer w, int bound, double most, const char *style)
{
    gcpi_say(w, "<polyline fill=\"none\" %s points=\"", style);
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i]))
            gcpi_say(w, "%.1f,%.1f ", gcpi_sweep_x(&p[i], p[count - 1].budget),
                     gcpi_sweep_y(&p[i], bound ? p[i].bound_seconds : p[i].seconds, most));
    gcpi_say(w, "\"/>\n");
}

static void gcpi_sweep_axes(size_t budgets, double most, int fits, gcp_writer w)
{
    const char *unit;
    const double one = gcpi_unit(budgets, &unit);
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 460\" font-family=\"sans-serif\" "
                "font-size=\"12\"><rect width=\"900\" height=\"460\" fill=\"white\"/>\n"
                "<text x=\"70\" y=\"28\" font-size=\"15\">Time of a step (keep-all = 1) against the budget in %s; "
                "%s</text>\n", unit, fits ? "dashed: no plan is faster" : "nothing fits these budgets");
    for (int i = 0; i <= 4; i++) {
        const double share = i / 4.0, y = 400 - 340 * share;
        gcpi_say(w,
                 "<line x1=\"70\" x2=\"850\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"62\" y=\"%.1f\" "
                 "text-anchor=\"end\">%.3f</text>\n",
                 y, y, y + 4, 1 + share * (most - 1));
        gcpi_say(w, "<text x=\"%.1f\" y=\"420\" text-anchor=\"middle\">%.4g</text>\n", 70 + 780 * share,
                 share * (double)budgets / one);
    }
}

GCPI_DEF void gcp_sweep_svg(const gcp_point *p, int count, gcp_writer w)
{
    double most = 1.05;
    int fits = 0;
    if (count <= 0 || !p[count - 1].budget) return;
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i])) {
            most = GCPI_MAX(most, p[i].seconds / p[i].keep_all_seconds);
            fits++;
        }
    gcpi_sweep_axes(p[count - 1].budget, most, fits, w);
    gcpi_sweep_line(p, count, w, 1, most, "stroke=\"#5f6368\" stroke-dasharray=\"5 4\"");
    gcpi_sweep_line(p, count, w, 0, most, "stroke=\"#1a73e8\" stroke-width=\"2\"");
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i]))
            gcpi_say(w,
                     "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#1a73e8\"><title>%zu bytes: %.4f</title>"
                     "</circle>\n",
                     gcpi_sweep_x(&p[i], p[count - 1].budget), gcpi_sweep_y(&p[i], p[i].seconds, most), p[i].budget,
                     p[i].seconds / p[i].keep_all_seconds);
    gcpi_say(w, "</svg>\n");
}
