/* The curve of a sweep, as SVG. Time of a step (up) against the budget (to the right). */

/* The two lines. */
#define GCPI_SWEEP_BEST "stroke=\"#0b3a82\" stroke-width=\"2\""
#define GCPI_SWEEP_BOUND "stroke=\"#5f6368\" stroke-dasharray=\"5 4\""

static int gcpi_point_fits(const gcp_point *p) { return p->bytes && p->keep_all_seconds > 0; }

/* What the axes go to: the largest budget; the least and the most time, keep-all's being 1. */
typedef struct gcpi_sweep_frame { double budget, least, most; } gcpi_sweep_frame;
static double gcpi_sweep_x(gcpi_sweep_frame f, double budget) { return 70 + 780 * budget / f.budget; }
static double gcpi_sweep_y(gcpi_sweep_frame f, double time)
{
    return 400 - 340 * (time - f.least) / (f.most - f.least);
}

static gcpi_sweep_frame gcpi_sweep_frame_of(const gcp_point *p, int count)
{
    gcpi_sweep_frame f = { (double)p[count - 1].budget, 1, 1.05 };
    for (int i = 0; i < count; i++) {
        if (!gcpi_point_fits(&p[i])) continue;
        f.least = GCPI_MIN(f.least, GCPI_MIN(p[i].seconds, p[i].bound_seconds) / p[i].keep_all_seconds);
        f.most = GCPI_MAX(f.most, p[i].seconds / p[i].keep_all_seconds);
    }
    return f;
}

/* One of the curve's two lines (bound or seconds), over the points that fit. */
static void gcpi_sweep_line(const gcp_point *p, int count, gcp_writer w, int bound, gcpi_sweep_frame f,
                            const char *style)
{
    gcpi_say(w, "<polyline fill=\"none\" %s points=\"", style);
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i]))
            gcpi_say(w, "%.1f,%.1f ", gcpi_sweep_x(f, (double)p[i].budget),
                     gcpi_sweep_y(f, (bound ? p[i].bound_seconds : p[i].seconds) / p[i].keep_all_seconds));
    gcpi_say(w, "\"/>\n");
}

/* Round ticks on both axes; what the lines are. */
static void gcpi_sweep_axes(gcpi_sweep_frame f, int fits, gcp_writer w)
{
    const char *unit;
    const double one = gcpi_unit((size_t)f.budget, &unit), dx = gcpi_round_step(f.budget / one, 8),
                 dy = gcpi_round_step(f.most - f.least, 6);
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 460\" font-family=\"sans-serif\" "
                "font-size=\"12\"><rect width=\"900\" height=\"460\" fill=\"white\"/>\n"
                "<text x=\"70\" y=\"28\" font-size=\"15\">Time of a step against the budget%s</text>\n",
             fits ? "" : ": nothing fits these budgets");
    for (int i = (int)ceil((f.least - 1) / dy); 1 + i * dy <= f.most + 1e-9; i++) {
        const double y = gcpi_sweep_y(f, 1 + i * dy);
        gcpi_say(w, "<line x1=\"70\" x2=\"850\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"62\" y=\"%.1f\" "
                    "text-anchor=\"end\">%.10gx</text>\n", y, y, y + 4, 1 + i * dy);
    }
    for (int i = 0; i * dx * one <= f.budget; i++) {
        const double x = gcpi_sweep_x(f, i * dx * one);
        gcpi_say(w, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"400\" y2=\"404\" stroke=\"#5f6368\"/>"
                    "<text x=\"%.1f\" y=\"420\" text-anchor=\"middle\">%.10g %s</text>\n", x, x, x, i * dx, unit);
    }
    gcpi_say(w, "<text x=\"70\" y=\"52\">time, keep-all = 1</text>"
                "<text x=\"850\" y=\"444\" text-anchor=\"end\">budget</text>\n"
                "<path d=\"M70 440h24\" " GCPI_SWEEP_BEST "/><text x=\"100\" y=\"444\">the planner's plans</text>"
                "<path d=\"M250 440h24\" " GCPI_SWEEP_BOUND "/><text x=\"280\" y=\"444\">no plan is faster</text>\n");
}

GCPI_DEF void gcp_sweep_svg(const gcp_point *p, int count, gcp_writer w)
{
    int fits = 0;
    if (count <= 0 || !p[count - 1].budget) return;
    for (int i = 0; i < count; i++) fits += gcpi_point_fits(&p[i]);
    const gcpi_sweep_frame f = gcpi_sweep_frame_of(p, count);
    gcpi_sweep_axes(f, fits, w);
    gcpi_sweep_line(p, count, w, 1, f, GCPI_SWEEP_BOUND);
    gcpi_sweep_line(p, count, w, 0, f, GCPI_SWEEP_BEST);
    for (int i = 0; i < count; i++) {
        const double time = gcpi_point_fits(&p[i]) ? p[i].seconds / p[i].keep_all_seconds : 0;
        if (time > 0)
            gcpi_say(w, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#0b3a82\"><title>%zu bytes: %.4f</title>"
                        "</circle>\n",
                     gcpi_sweep_x(f, (double)p[i].budget), gcpi_sweep_y(f, time), p[i].budget, time);
    }
    gcpi_say(w, "</svg>\n");
}
