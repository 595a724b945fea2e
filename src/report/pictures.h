/* Pictures: memory over time, traces, graphs. A plan's memory as SVG and as a page one can step through, its times
   as a trace, its network as a graph. */

/* ---- memory over time (to the right) and address (up): a rectangle per buffer, its name shown on hover ---- */

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

/* ---- a page one can step through: page.js draws what stands in it as JSON ---- */

static void gcpi_page_text(gcp_writer w, const char *const *lines)
{
    for (; *lines; lines++) gcpi_put(w, *lines, strlen(*lines));
}

/* [kind, name, place, live bytes, measured seconds, workspace, [item, mode, address, ...]] */
static void gcpi_page_line(const gcpi_plan *core, ptrdiff_t i, const gcpi_placed *placed, gcp_writer w)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    const char *comma = "";
    gcpi_say(w, "%s[\"%c\",", i ? ",\n" : "", core->list.at[i].letter);
    gcpi_json_task(core, core->list.at[i].task, w);
    gcpi_say(w, ",%zu,%.9g,%zu,[", core->live[i], core->seconds[i], t->workspace);
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        if (placed[k].offset < 0 || core->p.items[core->p.items[o->item].root].kind == GCPI_STATE_ITEM) continue;
        gcpi_say(w, "%s%d,%d,%td", comma, o->item, o->mode, placed[k].offset);
        comma = ",";
    }
    gcpi_say(w, "]]");
}

/* Which of its op's outputs a tensor is, from 0. */
static int gcpi_output_of(const gcp_tape *t, int tensor)
{
    const int op = t->tensors[tensor].producer;
    return op >= 0 ? tensor - t->ops[op].out : 0;
}

/* [name, bytes], 0 for what is not there */
static void gcpi_page_items(const gcpi_problem *p, gcp_writer w)
{
    char name[256];
    for (int i = 0; i < p->item_count; i++) {
        if (i) gcpi_say(w, ",");
        if (!p->items[i].active) { gcpi_say(w, "0"); continue; }
        gcpi_item_name(p, i, name, sizeof name);
        gcpi_say(w, "[\"%s", p->items[i].kind == GCPI_GRADIENT_ITEM && !gcpi_is_graph(p) ? "gradient of " : "");
        gcpi_json_write(&w, name, strlen(name));
        const int output = gcpi_is_graph(p) ? 0 : gcpi_output_of(p->tape, p->items[i].tensor);
        if (output > 0) gcpi_say(w, ", output %d", output + 1);
        gcpi_say(w, "\",%zu]", p->items[i].bytes);
    }
}

static const char *gcpi_policy_word(const gcpi_plan *core)
{
    static const char *const words[] = { "GCP_POLICY_SEGMENTS",    "GCP_POLICY_KEEP_ALL", "GCP_POLICY_UNIFORM",
                                         "GCP_POLICY_CHECKPOINTS", "GCP_POLICY_SQRT",     "GCP_POLICY_RECURSIVE",
                                         "GCP_POLICY_CHEAP",       "GCP_POLICY_BUDGET" };
    return core->opts.list ? "A list" : !core->p.training ? "Inference" : words[core->opts.policy];
}

static void gcpi_page_plan(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    gcp_writer escaped = { gcpi_json_write, &w };
    gcpi_say(w, "{\"policy\":\"%s\",\"bytes\":%zu,\"slab\":%zu,\"reruns\":%d,", gcpi_policy_word(core), plan->bytes,
             plan->slab_bytes, plan->reruns);
    gcpi_say(w, "\"peak\":%d,\"turn\":%d,\"align\":%zu,\"numbers\":%zu,\"why\":\"", core->peak_at,
             p->training ? core->forward_end : -1, p->target.align, gcpi_front(p));
    gcp_why_print(plan, escaped);
    gcpi_say(w, "\",\n\"items\":[");
    gcpi_page_items(p, w);
    gcpi_say(w, "],\n\"lines\":[");
    for (ptrdiff_t i = 0, n = 0; i < core->list.count; n += p->tasks[core->list.at[i++].task].count)
        gcpi_page_line(core, i, core->placed + n, w);
    gcpi_say(w, "],\n\"buffers\":[");
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        gcpi_say(w, "%s[%d,%d,%d,%d,%zu,%zu]", b ? ",\n" : "", x->item, gcpi_buffer_is(core, x), x->first, x->last,
                 x->offset, x->bytes);
    }
    gcpi_say(w, "]}");
}

GCPI_DEF void gcp_memory_html(const gcp_plan *plan, const gcp_plan *beside, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const char *title = plan->core->p.training ? "Memory of a training step" : "Memory of an inference";
    gcp_writer escaped = { gcpi_escaped_write, &w };
    gcpi_say(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>%s</title>\n<style>\n", title);
    gcpi_page_text(w, gcpi_page_style);
    gcpi_say(w, "</style>\n</head>\n<body>\n<h1>%s</h1>\n<p>Keys: left and right step, page up "
                "and down by ten, home, end, p to the peak, space plays.</p>\n", title);
    gcpi_say(w, "<div id=\"bar\">\n<button type=\"button\" id=\"play\">Play</button>\n"
                "<button type=\"button\" id=\"peak\">Peak</button>\n"
                "<input type=\"range\" id=\"at\" min=\"0\" value=\"0\" aria-label=\"Instruction\">\n</div>\n"
                "<p id=\"legend\"></p>\n<main id=\"plans\"></main>\n<div id=\"tip\"></div>\n"
                "<noscript><p>This page needs a script, which is in it. Without it, why the plan takes its bytes:</p>\n"
                "<pre>\n");
    gcp_why_print(plan, escaped);
    gcpi_say(w, "</pre></noscript>\n<script type=\"application/json\" id=\"data\">\n[");
    gcpi_page_plan(plan, w);
    if (beside && beside != plan && gcpi_reportable(beside)) {
        gcpi_say(w, ",\n");
        gcpi_page_plan(beside, w);
    }
    gcpi_say(w, "]\n</script>\n<script>\n");
    gcpi_page_text(w, gcpi_page_script);
    gcpi_say(w, "</script>\n</body>\n</html>\n");
}

/* ---- a trace: Chrome's format, which Perfetto reads ---- */

static void gcpi_trace_event(const gcpi_plan *core, ptrdiff_t i, const gcpi_time *span, gcp_writer w)
{
    static const char *const kinds[] = { GCPI_TASK_KINDS(GCPI_TASK_WORD) };
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    char name[256];
    gcpi_say(w, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"%c ",
             gcpi_copies(t) ? 2 : 1, 1e6 * span->begin, 1e6 * (span->end - span->begin),
             core->list.at[i].letter == 'R' ? "recompute" : kinds[t->kind], core->list.at[i].letter);
    gcpi_task_name(&core->p, t, name, sizeof name);
    gcpi_json_write(&w, name, strlen(name));
    gcpi_say(w, "\",\"args\":{\"instruction\":%td,\"measured\":%s,\"name and place\":[", i + 1,
             core->seconds[i] > 0 ? "true" : "false");
    gcpi_json_task(core, core->list.at[i].task, w);
    gcpi_say(w, "]}},\n{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"live bytes\",\"args\":{\"bytes\":%zu}}",
             1e6 * span->begin, core->live[i]);
}

GCPI_DEF void gcp_trace_json(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch;
    gcpi_time *spans = GCPI_SCRATCH(a, gcpi_time, core->list.count);
    if (!spans) {
        a->scratch = scratch;
        gcpi_fail(plan->tape, GCP_E_CAPACITY, core->opts.at, "gcp_trace_json",
                  "%td instructions take %td bytes of the arena", core->list.count,
                  core->list.count * (ptrdiff_t)sizeof *spans);
        return;
    }
    gcpi_timeline(&core->p, &core->list, core->placed, core->seconds, spans);
    gcpi_say(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"a step of gcp\"}},\n"
                "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"computing\"}},\n"
                "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"copies\"}}");
    for (ptrdiff_t i = 0; i < core->list.count; i++) gcpi_trace_event(core, i, &spans[i], w);
    gcpi_say(w, "\n]}\n");
    a->scratch = scratch;
}

/* ---- the network as a graph: Graphviz ---- */

/* The inside of a string: quotes and backslashes escaped, no control characters, UTF-8. */
static void gcpi_dot_text(gcp_writer w, const char *s)
{
    for (int n; *s; s += GCPI_MAX(n, 1)) {
        n = gcpi_utf8((const unsigned char *)s);
        if (!n) gcpi_say(w, "\xEF\xBF\xBD");
        else if (*s == '"' || *s == '\\') gcpi_say(w, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7F) gcpi_say(w, " ");
        else gcpi_say(w, "%.*s", n, s);
    }
}

static const char *gcpi_base(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Closes the clusters of segments that do not hold segment to, and opens those that do. Returns to. */
static int gcpi_dot_enter(const gcp_tape *t, int from, int to, gcp_writer w)
{
    char name[256];
    int inside = to;
    for (; from > 0; from = t->segments[from].parent) {
        for (inside = to; inside > 0 && inside != from;) inside = t->segments[inside].parent;
        if (inside == from) break;
        gcpi_say(w, "}\n");
    }
    while (from != to) {
        for (inside = to; t->segments[inside].parent != from;) inside = t->segments[inside].parent;
        gcpi_name_text(t, t->segments[inside].name, name, sizeof name);
        gcpi_say(w, "subgraph cluster_%d { label=\"", inside);
        gcpi_dot_text(w, gcpi_base(name));
        gcpi_say(w, "\"; color=\"#80868b\"; style=rounded\n");
        from = inside;
    }
    return to;
}

/* What an op's output is once forward is done: kept, if backward reads it as forward left it. */
static int gcpi_dot_is(const gcpi_plan *core, const gcpi_task *t)
{
    int is = GCPI_IS_GONE;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        const int read = o->mode == GCPI_READ ? 0 : gcpi_read_from(core, core->forward_end, o->item);
        if (read == 1 || (read && is == GCPI_IS_GONE)) is = read == 1 ? GCPI_IS_KEPT : GCPI_IS_RESULT;
    }
    return is;
}

static void gcpi_dot_op(const gcpi_plan *core, int task, gcp_writer w)
{
    const gcpi_problem *p = &core->p;
    const gcpi_task *t = &p->tasks[task];
    const int again = gcpi_rerun(core, task), is = again ? GCPI_IS_AGAIN : gcpi_dot_is(core, t);
    char name[256], shape[64] = "";
    size_t bytes = 0;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        if (o->mode == GCPI_WRITE) bytes += p->items[o->item].bytes;
    }
    if (!gcpi_is_graph(p)) gcpi_shape_text(p->tape->tensors[p->tape->ops[t->op].out].shape, shape, sizeof shape);
    gcpi_say(w, "n%d [label=\"", task);
    gcpi_dot_text(w, gcpi_base(gcpi_task_name(p, t, name, sizeof name)));
    gcpi_say(w, "\\n%s%s%zu bytes", shape, *shape ? ", " : "", bytes);
    if (again) gcpi_say(w, "\\nrun %d more time%s", again, again > 1 ? "s" : "");
    gcpi_say(w, "\", fillcolor=\"%s\"%s, tooltip=\"", gcpi_colours[is],
             is == GCPI_IS_KEPT ? ", fontcolor=white, penwidth=2" : is == GCPI_IS_RESULT ? ", fontcolor=white" : "");
    gcpi_dot_text(w, name);
    gcpi_say(w, "\"]\n");
}

static void gcpi_dot_edges(const gcpi_problem *p, int task, gcp_writer w)
{
    const gcpi_task *t = &p->tasks[task];
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        const gcpi_item *x = &p->items[o->item];
        if (o->mode == GCPI_READ && x->kind == GCPI_INPUT_ITEM) gcpi_say(w, "i%d -> n%d\n", o->item, task);
        else if (o->mode == GCPI_READ && x->producer >= 0) gcpi_say(w, "n%d -> n%d\n", x->producer, task);
    }
}

GCPI_DEF void gcp_dot(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    int segment = 0;
    if (!gcpi_reportable(plan)) return;
    const gcpi_problem *p = &plan->core->p;
    gcpi_say(w, "digraph gcp {\nnode [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"]\n"
                "fontname=\"sans-serif\"; labelloc=t; label=\"%zu bytes at the peak, %d rerun%s of units\\n"
                "blue: kept for backward; light blue: run again; pale: gone when no forward op needs it; violet: result"
                "\"\n",
             plan->bytes, plan->reruns, plan->reruns == 1 ? "" : "s");
    for (int i = 0; i < p->item_count; i++) {
        if (p->items[i].kind != GCPI_INPUT_ITEM || !p->items[i].active) continue;
        gcpi_item_name(p, i, name, sizeof name);
        gcpi_say(w, "i%d [shape=ellipse, fillcolor=\"%s\", label=\"", i, gcpi_colours[GCPI_IS_INPUT]);
        gcpi_dot_text(w, name);
        gcpi_say(w, "\"]\n");
    }
    for (int f = 0; f < p->forward; f++) {
        if (!gcpi_is_graph(p)) segment = gcpi_dot_enter(p->tape, segment, p->tasks[f].segment, w);
        gcpi_dot_op(plan->core, f, w);
    }
    if (!gcpi_is_graph(p)) gcpi_dot_enter(p->tape, segment, 0, w);
    for (int f = 0; f < p->forward; f++) gcpi_dot_edges(p, f, w);
    gcpi_say(w, "}\n");
}
