/* The curve of a sweep, as SVG. Time of a step (up) against the budget (to the right). */

/* The two lines. */
#define GCPI_SWEEP_BEST "stroke=\"#0b3a82\" stroke-width=\"2\""
#define GCPI_SWEEP_BOUND "stroke=\"#5f6368\" stroke-dasharray=\"5 4\""

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

/* Round ticks on both axes; what the lines are. */
static void gcpi_sweep_axes(size_t budgets, double most, int fits, gcp_writer w)
{
    const char *unit;
    const double one = gcpi_unit(budgets, &unit), right = (double)budgets / one, dx = gcpi_round_step(right, 8),
                 dy = gcpi_round_step(most - 1, 6);
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 460\" font-family=\"sans-serif\" "
                "font-size=\"12\"><rect width=\"900\" height=\"460\" fill=\"white\"/>\n"
                "<text x=\"70\" y=\"28\" font-size=\"15\">Time of a step against the budget%s</text>\n",
             fits ? "" : ": nothing fits these budgets");
    for (int i = 0; i * dy <= most - 1 + 1e-9; i++) {
        const double y = 400 - 340 * i * dy / (most - 1);
        gcpi_say(w, "<line x1=\"70\" x2=\"850\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"62\" y=\"%.1f\" "
                    "text-anchor=\"end\">%.10gx</text>\n", y, y, y + 4, 1 + i * dy);
    }
    for (int i = 0; i * dx <= right; i++)
        gcpi_say(w, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"400\" y2=\"404\" stroke=\"#5f6368\"/>"
                    "<text x=\"%.1f\" y=\"420\" text-anchor=\"middle\">%.10g %s</text>\n",
                 70 + 780 * i * dx / right, 70 + 780 * i * dx / right, 70 + 780 * i * dx / right, i * dx, unit);
    gcpi_say(w, "<text x=\"70\" y=\"52\">time, keep-all = 1</text>"
                "<text x=\"850\" y=\"444\" text-anchor=\"end\">budget</text>\n"
                "<path d=\"M70 440h24\" " GCPI_SWEEP_BEST "/><text x=\"100\" y=\"444\">the planner's plans</text>"
                "<path d=\"M250 440h24\" " GCPI_SWEEP_BOUND "/><text x=\"280\" y=\"444\">no plan is faster</text>\n");
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
    gcpi_sweep_line(p, count, w, 1, most, GCPI_SWEEP_BOUND);
    gcpi_sweep_line(p, count, w, 0, most, GCPI_SWEEP_BEST);
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i]))
            gcpi_say(w,
                     "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#0b3a82\"><title>%zu bytes: %.4f</title>"
                     "</circle>\n",
                     gcpi_sweep_x(&p[i], p[count - 1].budget), gcpi_sweep_y(&p[i], p[i].seconds, most), p[i].budget,
                     p[i].seconds / p[i].keep_all_seconds);
    gcpi_say(w, "</svg>\n");
}
