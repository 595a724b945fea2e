/* Memory over time (to the right) and address (up), as SVG. A rectangle is a buffer; its name is shown on hover. */

/* What a buffer is; page.js has the same numbers. */
enum {
    GCPI_IS_INPUT, GCPI_IS_KEPT, GCPI_IS_GONE, GCPI_IS_AGAIN, GCPI_IS_GRADIENT, GCPI_IS_WEIGHT, GCPI_IS_WORKSPACE,
    GCPI_IS_RESULT, GCPI_IS_COUNT
};
static const char *const gcpi_colours[] = { "#9aa0a6", "#1a73e8", "#d2e3fc", "#7baaf7",
                                            "#e8710a", "#b5651d", "#188038", "#9334e6" };

/* Whether a buffer waits for the step's end alone (the loss, what gcp_keep keeps), not for backward. */
static int gcpi_buffer_result(const gcpi_plan *core, const gcpi_plan_buffer *b)
{
    int result = 0;
    if (b->last < core->list.count - 1) return 0;
    for (int i = core->p.items[b->item].root; i >= 0; i = core->p.items[i].next)
        result |= core->p.items[i].pinned == GCPI_PINNED_TO_END;
    for (int i = core->p.items[b->item].root; result && i >= 0; i = core->p.items[i].next)
        if (gcpi_read_from(core, core->forward_end, i) == 1) result = 0;
    return result;
}

static int gcpi_buffer_is(const gcpi_plan *core, const gcpi_plan_buffer *b)
{
    const gcpi_item *x = &core->p.items[b->item];
    if (x->kind == GCPI_INPUT_ITEM) return GCPI_IS_INPUT;
    if (x->kind == GCPI_GRADIENT_ITEM)
        return !gcpi_is_graph(&core->p) && core->p.tape->tensors[x->tensor].kind == GCPI_PARAMETER ? GCPI_IS_WEIGHT
                                                                                     : GCPI_IS_GRADIENT;
    if (b->again || gcpi_buffer_result(core, b)) return b->again ? GCPI_IS_AGAIN : GCPI_IS_RESULT;
    return b->last >= core->forward_end ? GCPI_IS_KEPT : GCPI_IS_GONE;
}

static void gcpi_svg_rect(gcp_writer w, double x, double y, double width, double height, const char *colour)
{
    gcpi_say(w, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\">", x, y, GCPI_MAX(width, 0.3),
             GCPI_MAX(height, 0.3), colour);
}

static void gcpi_svg_buffers(const gcpi_plan *core, gcp_writer w, double left, double bottom, double dx, double dy)
{
    char name[256];
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        gcpi_svg_rect(w, left + dx * x->first, bottom - dy * (double)(x->offset + x->bytes),
                      dx * (x->last - x->first + 1), dy * (double)x->bytes, gcpi_colours[gcpi_buffer_is(core, x)]);
        gcpi_item_name(&core->p, x->item, name, sizeof name);
        gcpi_say(w, "<title>%s",
                 core->p.items[x->item].kind == GCPI_GRADIENT_ITEM ? "gradient of "
                 : x->again                                      ? "recomputed "
                                                                 : "");
        gcpi_say_escaped(w, name);
        gcpi_say(w, ": %zu bytes at %zu, instructions %d to %d</title></rect>\n", x->bytes, x->offset, x->first + 1,
                 x->last + 1);
    }
    for (int i = 0; i < (int)core->list.count; i++) {
        size_t bytes = core->p.tasks[core->list.at[i].task].workspace,
               first = gcpi_front(&core->p);
        if (!bytes) continue;
        gcpi_svg_rect(w, left + dx * i, bottom - dy * (double)(first + bytes), dx, dy * (double)bytes,
                      gcpi_colours[GCPI_IS_WORKSPACE]);
        gcpi_say(w, "<title>workspace of instruction %d: %zu bytes</title></rect>\n", i + 1, bytes);
    }
}

GCPI_DEF void gcp_memory_svg(const gcp_plan *plan, gcp_writer w)
{
    static const struct { const char *text; double at; } legend[] = {
        { "input", 0 }, { "kept for backward", 70 }, { "gone after forward", 210 }, { "recomputed", 355 },
        { "activation gradient", 460 }, { "weight gradient", 610 }, { "workspace", 740 }, { "result", 840 }
    };
    const double width = 960, height = 420, left = 76, top = 34;
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    const char *unit;
    double dx = width / (double)plan->instructions, dy = height / (double)plan->slab_bytes,
           turn = left + dx * core->forward_end, one = gcpi_unit(plan->slab_bytes, &unit);
    const int late = turn > left + width - 110;
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1060 520\" font-family=\"sans-serif\" "
                "font-size=\"12\">\n<rect width=\"1060\" height=\"520\" fill=\"white\"/>\n");
    gcpi_say(w,
             "<text x=\"%.0f\" y=\"20\" font-size=\"14\">slab %.3f %s of %.3f %s in all, over %d instructions; %d "
             "rerun%s of units</text>\n",
             left, (double)plan->slab_bytes / one, unit, (double)plan->bytes / one, unit, plan->instructions,
             plan->reruns, plan->reruns == 1 ? "" : "s");
    for (int i = 0; i <= 4; i++) {
        double y = top + height - height * i / 4;
        gcpi_say(w,
                 "<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"%.0f\" "
                 "y=\"%.1f\" text-anchor=\"end\">%.4g %s</text>\n",
                 left, y, left + width, y, left - 6, y + 4, (double)plan->slab_bytes / one * i / 4, unit);
    }
    gcpi_svg_buffers(core, w, left, top + height, dx, dy);
    if (core->p.training)
        gcpi_say(w,
                 "<line x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"black\" stroke-dasharray=\"4 "
                 "3\"/><text x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">backward begins</text>\n",
                 turn, top, turn, top + height, turn + (late ? -4 : 4), top + 12, late ? "end" : "start");
    for (int i = 0; i < GCPI_IS_COUNT; i++)
        gcpi_say(w,
                 "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%.0f\" "
                 "y=\"%.0f\">%s</text>\n",
                 left + legend[i].at, top + height + 18, gcpi_colours[i], left + legend[i].at + 17, top + height + 28,
                 legend[i].text);
    gcpi_say(w, "<text x=\"%.0f\" y=\"%.0f\">instructions, in order &#8594;   up: address in the slab</text>\n</svg>\n",
             left, top + height + 50);
}
