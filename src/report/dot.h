/* The network as a graph, for Graphviz. Segments are clusters. */

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
