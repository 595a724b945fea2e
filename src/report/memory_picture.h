/* Memory over time (to the right) and address (up), as SVG. A rectangle is a buffer; its name is shown on hover. */

/* The plan that is drawn, the one beside it or NULL, and where a picture of 1060 x 520 holds them on one scale. */
typedef struct gcpi_memory_frame {
    const gcp_plan *plan, *beside;
    double left, top, width, height, dx, dy;       /* dx: of an instruction, dy: of a byte */
    size_t most;                                    /* bytes that the height stands for */
    int instructions;
} gcpi_memory_frame;

static double gcpi_frame_x(const gcpi_memory_frame *f, double instruction) { return f->left + f->dx * instruction; }
static double gcpi_frame_y(const gcpi_memory_frame *f, double bytes) { return f->top + f->height - f->dy * bytes; }

static gcpi_memory_frame gcpi_memory_frame_of(const gcp_plan *plan, const gcp_plan *beside)
{
    gcpi_memory_frame f = { plan, beside, 76, 54, 960, 400, 0, 0, plan->slab_bytes, plan->instructions };
    if (beside) f.most = GCPI_MAX(f.most, beside->slab_bytes);
    if (beside) f.instructions = GCPI_MAX(f.instructions, beside->instructions);
    f.dx = f.width / f.instructions;
    f.dy = f.height / (1.04 * (double)f.most);      /* above the highest peak there is room for its mark */
    return f;
}

/* Ops that run again: as many more forwards than keep-all's. */
static int gcpi_runs_again(const gcpi_plan *core)
{
    int count = 0;
    for (ptrdiff_t i = 0; i < core->list.count; i++) count += core->list.at[i].letter == 'R';
    return count;
}

static void gcpi_svg_rect(const gcpi_memory_frame *f, double first, double last, size_t at, size_t bytes, int is,
                          gcp_writer w)
{
    const double width = GCPI_MAX(f->dx * (last - first + 1), 0.3), height = GCPI_MAX(f->dy * (double)bytes, 0.3);
    gcpi_say(w, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"url(#gcp-is-%d)\"%s>",
             gcpi_frame_x(f, first), gcpi_frame_y(f, (double)(at + bytes)), width, height, is,
             GCPI_MIN(width, height) > 3 ? " stroke=\"white\" stroke-width=\"0.6\"" : "");
}

/* Whether so many bytes are high enough to be seen. */
static int gcpi_frame_shows(const gcpi_memory_frame *f, size_t bytes) { return f->dy * (double)bytes >= 0.5; }

/* Draws the buffers and the ops' workspaces; seen[kind] is 1 where one of a kind can be seen. */
static void gcpi_svg_buffers(const gcpi_memory_frame *f, int *seen, gcp_writer w)
{
    const gcpi_plan *core = f->plan->core;
    char name[256];
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        const int is = gcpi_buffer_is(core, x);
        seen[is] |= gcpi_frame_shows(f, x->bytes);
        gcpi_svg_rect(f, x->first, x->last, x->offset, x->bytes, is, w);
        gcpi_item_name(&core->p, x->item, name, sizeof name);
        gcpi_say(w, "<title>%s", core->p.items[x->item].kind == GCPI_GRADIENT_ITEM ? "gradient of "
                                 : x->again                                      ? "recomputed "
                                                                                 : "");
        gcpi_say_escaped(w, name);
        gcpi_say(w, ": %zu bytes at %zu, instructions %d to %d</title></rect>\n", x->bytes, x->offset, x->first + 1,
                 x->last + 1);
    }
    for (int i = 0; i < (int)core->list.count; i++) {
        const size_t bytes = core->p.tasks[core->list.at[i].task].workspace;
        if (!bytes) continue;
        seen[GCPI_IS_WORKSPACE] |= gcpi_frame_shows(f, bytes);
        gcpi_svg_rect(f, i, i, gcpi_front(&core->p), bytes, GCPI_IS_WORKSPACE, w);
        gcpi_say(w, "<title>workspace of instruction %d: %zu bytes</title></rect>\n", i + 1, bytes);
    }
}

static void gcpi_svg_line(gcp_writer w, double x1, double y1, double x2, double y2, const char *style)
{
    gcpi_say(w, "<line x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\" %s/>\n", x1, y1, x2, y2, style);
}

/* Ticks: bytes up, instructions to the right, both in round steps from 0. */
static void gcpi_svg_axes(const gcpi_memory_frame *f, gcp_writer w)
{
    const char *unit;
    const double one = gcpi_unit(f->most, &unit), up = gcpi_round_step((double)f->most / one, 7),
                 right = GCPI_MAX(gcpi_round_step(f->instructions, 10), 1);
    for (int i = 0; i * up * one <= 1.04 * (double)f->most; i++) {
        const double y = gcpi_frame_y(f, i * up * one);
        gcpi_svg_line(w, f->left, y, f->left + f->width, y, "stroke=\"#dadce0\"");
        gcpi_say(w, "<text x=\"%.0f\" y=\"%.1f\" text-anchor=\"end\">%.10g %s</text>\n", f->left - 6, y + 4, i * up,
                 unit);
    }
    for (int i = 0; i * right <= f->instructions; i++) {
        const double x = gcpi_frame_x(f, i * right);
        gcpi_svg_line(w, x, f->top + f->height, x, f->top + f->height + 4, "stroke=\"#5f6368\"");
        gcpi_say(w, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"middle\">%.0f</text>\n", x, f->top + f->height + 16,
                 i * right);
    }
    gcpi_say(w, "<text x=\"%.0f\" y=\"%.0f\">instructions, in order &#8594;   up: address in the slab</text>\n",
             f->left, f->top + f->height + 32);
}

/* The outline of the plan beside: its live bytes, over the rectangles. */
static void gcpi_svg_outline(const gcpi_memory_frame *f, gcp_writer w)
{
    const gcpi_plan *core = f->beside->core;
    gcpi_say(w, "<path fill=\"none\" stroke=\"#3c4043\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\" d=\"M%.1f %.1f",
             f->left, gcpi_frame_y(f, 0));
    for (ptrdiff_t i = 0; i < core->list.count; i++)
        gcpi_say(w, "V%.1fH%.1f", gcpi_frame_y(f, (double)core->live[i]), gcpi_frame_x(f, (double)i + 1));
    gcpi_say(w, "V%.1f\"><title>live bytes of the plan beside</title></path>\n", gcpi_frame_y(f, 0));
}

/* A mark where a plan's slab is full, with its bytes beside it; at an edge of the picture where `edge` is "start" or
   "end", as two marks may be as high. */
static void gcpi_svg_peak(const gcpi_memory_frame *f, const gcp_plan *plan, const char *edge, gcp_writer w)
{
    const char *unit;
    const double one = gcpi_unit(plan->slab_bytes, &unit), x = gcpi_frame_x(f, plan->core->peak_at + 0.5),
                 y = gcpi_frame_y(f, (double)plan->slab_bytes);
    const int late = edge ? *edge == 'e' : x > f->left + f->width / 2;
    const double at = !edge ? x + (late ? -9 : 9) : late ? f->left + f->width - 4 : f->left + 4;
    gcpi_svg_line(w, f->left, y, f->left + f->width, y, "stroke=\"#3c4043\" stroke-dasharray=\"1 4\"");
    gcpi_say(w, "<path d=\"M%.1f %.1fl-5 -9h10z\" fill=\"#202124\"/>", x, y);
    gcpi_say(w, "<text x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\" font-weight=\"bold\" stroke=\"white\" "
                "stroke-width=\"3\" paint-order=\"stroke\">%s: slab %.1f %s at the peak</text>\n",
             at, y - 3, late ? "end" : "start", gcpi_policy_name(plan->core, 0), (double)plan->slab_bytes / one, unit);
}

/* The marks of both plans. */
static void gcpi_svg_peaks(const gcpi_memory_frame *f, gcp_writer w)
{
    const double apart = f->beside ? f->dy * fabs((double)f->beside->slab_bytes - (double)f->plan->slab_bytes) : 0;
    const int close = f->beside && apart < 16;
    if (f->beside) gcpi_svg_peak(f, f->beside, close ? "start" : NULL, w);
    gcpi_svg_peak(f, f->plan, close ? "end" : NULL, w);
}

static void gcpi_svg_turn(const gcpi_memory_frame *f, gcp_writer w)
{
    const double turn = gcpi_frame_x(f, f->plan->core->forward_end);
    const int late = turn > f->left + f->width - 110;
    if (!f->plan->core->p.training) return;
    gcpi_svg_line(w, turn, f->top, turn, f->top + f->height, "stroke=\"black\" stroke-dasharray=\"4 3\"");
    gcpi_say(w, "<text x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">backward begins</text>\n", turn + (late ? -4 : 4),
             f->top - 3, late ? "end" : "start");
}

/* The policy, the bytes, what runs again; and how many bytes that is of the plan beside. */
static void gcpi_svg_title(const gcpi_memory_frame *f, gcp_writer w)
{
    const char *unit;
    const gcp_plan *p = f->plan;
    const double one = gcpi_unit(p->bytes, &unit);
    const int again = gcpi_runs_again(p->core);
    gcpi_say(w, "<text x=\"%.0f\" y=\"20\" font-size=\"15\"><tspan font-weight=\"bold\">%s</tspan>: %.1f %s", f->left,
             gcpi_policy_name(p->core, 0), (double)p->bytes / one, unit);
    if (p->state_bytes > p->bytes / 100 && (double)p->state_bytes / one >= 0.05)
        gcpi_say(w, ", of them state %.1f, slab %.1f", (double)p->state_bytes / one, (double)p->slab_bytes / one);
    if (f->beside) gcpi_say(w, "; %.0f %% of %s's", 100 * (double)p->bytes / (double)f->beside->bytes,
                            gcpi_policy_name(f->beside->core, 0));
    gcpi_say(w, "; %d op%s run%s again", again, again == 1 ? "" : "s", again == 1 ? "s" : "");
    gcpi_say(w, "</text>\n");
}

static void gcpi_svg_legend(const gcpi_memory_frame *f, const int *seen, gcp_writer w)
{
    double x = f->left;
    for (int i = 0; i < GCPI_IS_COUNT; i++) {
        const int is = gcpi_legend[i];
        if (!seen[is]) continue;
        gcpi_say(w, "<rect x=\"%.0f\" y=\"500\" width=\"12\" height=\"12\" fill=\"url(#gcp-is-%d)\"/>"
                    "<text x=\"%.0f\" y=\"510\">%s</text>\n", x, is, x + 17, gcpi_inks[is].name);
        x += 34 + 6.2 * (double)strlen(gcpi_inks[is].name);
    }
    if (!f->beside) return;
    gcpi_say(w, "<path d=\"M%.0f 506h16\" stroke=\"#3c4043\" stroke-width=\"1.5\" stroke-dasharray=\"2 3\"/>"
                "<text x=\"%.0f\" y=\"510\">%s</text>\n", x, x + 21, gcpi_policy_name(f->beside->core, 0));
}

GCPI_DEF void gcp_memory_svg(const gcp_plan *plan, const gcp_plan *beside, gcp_writer w)
{
    int seen[GCPI_IS_COUNT] = { 0 };
    if (!gcpi_reportable(plan)) return;
    const gcpi_memory_frame f = gcpi_memory_frame_of(plan, beside != plan && gcpi_reportable(beside) ? beside : NULL);
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1060 520\" font-family=\"sans-serif\" "
                "font-size=\"12\">\n");
    gcpi_svg_patterns(w);
    gcpi_say(w, "<rect width=\"1060\" height=\"520\" fill=\"white\"/>\n");
    gcpi_svg_title(&f, w);
    gcpi_svg_axes(&f, w);
    gcpi_svg_buffers(&f, seen, w);
    if (f.beside) gcpi_svg_outline(&f, w);
    gcpi_svg_turn(&f, w);
    gcpi_svg_peaks(&f, w);
    gcpi_svg_legend(&f, seen, w);
    gcpi_say(w, "</svg>\n");
}
