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
        gcpi_say(w, "\"; labeljust=l; color=\"#5f6368\"; style=rounded\n");
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
    gcpi_say(w, "\", fillcolor=\"%s\"%s, tooltip=\"", gcpi_inks[is].colour,
             is == GCPI_IS_KEPT ? ", fontcolor=white, penwidth=2" : is == GCPI_IS_RESULT ? ", fontcolor=white" : "");
    gcpi_dot_text(w, name);
    gcpi_say(w, "\"]\n");
}

/* Where operand k of a task comes from: an op's task, an input's item, or nothing that is drawn. */
typedef struct gcpi_dot_source { char kind; int number; } gcpi_dot_source;
static gcpi_dot_source gcpi_dot_from(const gcpi_problem *p, const gcpi_operand *o)
{
    const gcpi_item *x = &p->items[o->item];
    gcpi_dot_source none = { 0, -1 }, input = { 'i', o->item }, op = { 'n', x->producer };
    if (o->mode != GCPI_READ) return none;
    return x->kind == GCPI_INPUT_ITEM ? input : x->producer >= 0 ? op : none;
}

/* An arrow from each source; where several tensors come from one, the arrow says how many. */
static void gcpi_dot_edges(const gcpi_problem *p, int task, gcp_writer w)
{
    const gcpi_task *t = &p->tasks[task];
    for (int k = 0; k < t->count; k++) {
        const gcpi_dot_source from = gcpi_dot_from(p, &p->operands[t->operands + k]);
        int before = 0, count = 1;
        for (int i = 0; i < t->count; i++) {
            const gcpi_dot_source other = gcpi_dot_from(p, &p->operands[t->operands + i]);
            if (i == k || other.kind != from.kind || other.number != from.number) continue;
            before += i < k;
            count += p->operands[t->operands + i].item != p->operands[t->operands + k].item;
        }
        if (!from.kind || before) continue;
        gcpi_say(w, "%c%d -> n%d", from.kind, from.number, task);
        if (count > 1) gcpi_say(w, " [label=\" %d tensors\", fontsize=10]", count);
        gcpi_say(w, "\n");
    }
}

GCPI_DEF void gcp_dot(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    int segment = 0;
    if (!gcpi_reportable(plan)) return;
    const gcpi_problem *p = &plan->core->p;
    gcpi_say(w, "digraph gcp {\nnode [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"]; "
                "edge [fontname=\"sans-serif\"]\n"
                "fontname=\"sans-serif\"; labelloc=t; label=\"%zu bytes at the peak, %d rerun%s of units\\n"
                "dark blue: kept for backward; blue: run again\\ngrey: gone when no forward op needs it; violet: result"
                "\"\n",
             plan->bytes, plan->reruns, plan->reruns == 1 ? "" : "s");
    for (int i = 0; i < p->item_count; i++) {
        if (p->items[i].kind != GCPI_INPUT_ITEM || !p->items[i].active) continue;
        gcpi_item_name(p, i, name, sizeof name);
        gcpi_say(w, "i%d [shape=ellipse, fillcolor=\"%s\", label=\"", i, gcpi_inks[GCPI_IS_INPUT].colour);
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
