/* The curve of a sweep, as SVG. Time of a step (up) against the budget (to the right). */

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
