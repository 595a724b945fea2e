/* gcp_print_c: a tape as a C program, a function that records it again. */

static void gcpi_program_indent(const gcpi_program *p)
{
    for (int i = 0; i <= p->t->segments[p->segment].depth; i++) gcpi_say(p->c.w, "    ");
}
static void gcpi_program_close(gcpi_program *p)
{
    const int parent = p->t->segments[p->segment].parent;
    p->segment = parent;
    gcpi_program_indent(p);
    gcpi_say(p->c.w, "}\n");
}
static void gcpi_program_keeps(const gcpi_program *p, unsigned keep)
{
    static const char *const words[] = { "PRODUCTS", "ATTENTION", "NORMS", "POOLS",
                                         "PAIRS",    "POINTWISE", "MOVES", "CUSTOM" };
    int count = 0;
    for (int k = 0; k < 8; k++)
        if (keep >> k & 1) gcpi_say(p->c.w, "%sGCP_KEEP_%s", count++ ? " | " : ", .keep = ", words[k]);
}
static void gcpi_program_open(gcpi_program *p, int segment)
{
    const gcpi_segment *s = &p->t->segments[segment];
    if (p->segment != s->parent) gcpi_program_open(p, s->parent);
    gcpi_program_indent(p);
    if (p->loop && p->loop->segment == segment) gcpi_say(p->c.w, "for (int i = 0; i < %d; i++) ", p->loop->times);
    gcpi_say(p->c.w, "GCP_SEGMENT(net, ");
    gcpi_code_text(&p->c, "", p->t->names[s->name].label);
    gcpi_program_keeps(p, s->keep & ~p->t->segments[s->parent].keep);
    gcpi_say(p->c.w, ") {\n");
    p->segment = segment;
}
static void gcpi_program_enter(gcpi_program *p, int segment)
{
    while (!gcpi_program_within(p->t, segment, p->segment)) gcpi_program_close(p);
    if (p->segment != segment) gcpi_program_open(p, segment);
}
/* "x = ", or "gcp_tensor t1 = " where all that read it stand in this block. */
static void gcpi_program_assign(gcpi_program *p, int tensor)
{
    const gcpi_variable v = p->variables[tensor];
    gcpi_program_indent(p);
    if (!v.kind || v.kind == 'c') return;
    gcpi_say(p->c.w, v.kind == 't' && p->readers[tensor].inside ? "gcp_tensor " : "");
    gcpi_code_tensor(&p->c, tensor);
    gcpi_say(p->c.w, " = ");
}
static void gcpi_program_input(gcpi_program *p, int id)
{
    const gcpi_tensor *e = &p->t->tensors[id];
    int ids = 0;
    for (int op = 0; op < p->t->op_count; op++)
        for (int i = 0; i < p->t->ops[op].inputs; i++)
            ids |= p->t->edges[p->t->ops[op].in + i] == id &&
                   gcpi_facts_of(&p->t->ops[op]).channels == GCPI_CHANNELS_LOOKED_UP;
    gcpi_program_assign(p, id);
    gcpi_say(p->c.w, "%s(net, ", e->dtype == GCP_DTYPE_REAL ? "gcp_input" : ids ? "gcp_ids" : "gcp_labels");
    gcpi_code_text(&p->c, "", gcpi_repeat_label(p->t, id));
    gcpi_say(p->c.w, ", ");
    gcpi_code_shape(&p->c, e->shape);
    gcpi_say(p->c.w, "%s);\n", e->flags & GCPI_WANTED ? ", .want_grad = 1" : "");
    if (e->flags & GCPI_KEPT && p->variables[id].kind) {
        gcpi_program_indent(p);
        gcpi_say(p->c.w, "gcp_keep(");
        gcpi_code_tensor(&p->c, id);
        gcpi_say(p->c.w, ");\n");
    }
}
/* Whether a product takes it as its right factor, and so gives it fans. */
static int gcpi_program_factor(const gcp_tape *t, int id)
{
    for (int op = 0; op < t->op_count; op++)
        if (t->edges[t->ops[op].in + (t->ops[op].inputs > 1)] == id && !strcmp(t->ops[op].row->name, "matmul"))
            return 1;
    return 0;
}
/* A parameter's options, where they are not gcp_param's defaults or what a matmul gives. */
static void gcpi_program_begins(const gcpi_program *p, int id)
{
    const gcpi_parameter *q = &p->t->parameters[p->t->tensors[id].parameter];
    const int given = q->fan_in || q->fan_out, flat = q->shape.rank == 1, rows = q->shape.d[0],
              rest = (int)GCPI_MIN(gcpi_count(q->shape) / (size_t)rows, (size_t)INT32_MAX),
              usual = given && q->shape.rank == 2 && q->fan_in == rows && q->fan_out == rest &&
                      gcpi_program_factor(p->t, id);
    if (!(q->deviation > 0)) gcpi_code_init(&p->c, q->init, flat ? GCP_INIT_ZEROS : GCP_INIT_DEFAULT);
    if (given && !usual) {
        gcpi_code_int(&p->c, "fan_in", q->fan_in, 0);
        gcpi_code_int(&p->c, "fan_out", q->fan_out, 0);
    }
    gcpi_code_real(&p->c, "std", q->deviation > 0 ? q->deviation : 0, 0);
}
/* A name. In a loop `second` is that of the next copy: the loop's number stands where the two differ. slash: "/" before
   the name of a parameter that is the tape's own, whatever segment is open. */
static void gcpi_program_text(gcpi_program *p, const char *slash, const char *first, const char *second)
{
    char format[256];
    int number, step;
    const int numbers = second && gcpi_repeat_numbers(first, second, format, sizeof format, &number, &step);
    if (numbers) gcpi_say(p->c.w, "numbered(");
    gcpi_code_text(&p->c, slash, numbers ? format : first);
    if (numbers && step == 1 && number == 0) gcpi_say(p->c.w, ", i)");
    else if (numbers && step == 1) gcpi_say(p->c.w, ", %d + i)", number);
    else if (numbers) gcpi_say(p->c.w, ", %d + %d * i)", number, step);
}
static void gcpi_program_parameter(gcpi_program *p, int id)
{
    const gcpi_tensor *e = &p->t->tensors[id];
    const int frozen = e->flags & GCPI_FROZEN;
    gcpi_program_assign(p, id);
    gcpi_say(p->c.w, "%sgcp_param(net, ", frozen ? "gcp_freeze(" : "");
    const int whole = !p->t->names[e->name].parent;
    gcpi_program_text(p, p->segment && whole ? "/" : "", gcpi_repeat_label(p->t, id),
                      p->loop ? gcpi_repeat_label(p->t, id + p->loop->tensors) : NULL);
    gcpi_say(p->c.w, ", ");
    gcpi_code_shape(&p->c, e->shape);
    gcpi_program_begins(p, id);
    gcpi_say(p->c.w, "%s);\n", frozen ? ")" : "");
}
/* The last tensor before this op that is a block's: of the one that is open, or of one around this op. */
static int gcpi_program_held(const gcpi_program *p, int first, int end)
{
    int held = 0;
    for (int id = first; id < end; id++)
        if (p->t->tensors[id].kind == GCPI_PARAMETER && gcpi_repeat_owner(p->t, p->t->tensors[id].name) > 0) held = id;
    return held;
}
/* What stands on the tape between the op before this one and this one. */
static void gcpi_program_before(gcpi_program *p, int op)
{
    const gcp_tape *t = p->t;
    const int first = gcpi_repeat_base(t, op), end = op < t->op_count ? t->ops[op].out : t->tensor_count,
              held = gcpi_program_held(p, first, end), next = op < t->op_count ? t->ops[op].segment : 0;
    if (p->loop && !p->segment) gcpi_program_enter(p, p->loop->segment);
    for (int id = first; id < end; id++) {
        const gcpi_tensor *e = &t->tensors[id];
        const int owner = gcpi_repeat_owner(t, e->name);
        if (e->kind == GCPI_INPUT) gcpi_program_input(p, id);
        if (e->kind != GCPI_PARAMETER || owner < 0) continue;
        if (owner) gcpi_program_enter(p, owner);
        else if (id > held) gcpi_program_enter(p, next);
        gcpi_program_parameter(p, id);
    }
}
/* What was done to the weights that the call of this op made. */
static void gcpi_program_behind(gcpi_program *p, const gcpi_op *op)
{
    for (int i = 0; i < op->inputs; i++) {
        const int id = p->t->edges[op->in + i];
        if (!gcpi_code_makes(p->t, op, i) || !(p->t->tensors[id].flags & GCPI_FROZEN)) continue;
        gcpi_program_indent(p);
        gcpi_say(p->c.w, "gcp_freeze(");
        gcpi_code_tensor(&p->c, id);
        gcpi_say(p->c.w, ");\n");
    }
    for (int id = op->out + 1; id < op->out + op->outputs && p->variables[id].kind == 'c'; id++) {
        if (!(p->t->tensors[id].flags & GCPI_KEPT)) continue;
        gcpi_program_indent(p);
        gcpi_say(p->c.w, "gcp_keep(");
        gcpi_code_tensor(&p->c, id);
        gcpi_say(p->c.w, ");\n");
    }
}
static int gcpi_program_call(gcpi_program *p, int op)
{
    const gcpi_op *x = &p->t->ops[op];
    const gcpi_facts facts = gcpi_facts_of(x);
    gcpi_program_before(p, op);
    if (gcpi_program_silent(p->t, op)) return 1;
    const int next = gcpi_program_next(p, x), result = p->t->ops[op + next].out, name = p->t->ops[op + next].name,
              kept = p->t->tensors[result].flags & GCPI_KEPT;
    gcpi_program_enter(p, x->segment);
    gcpi_program_assign(p, result);
    gcpi_say(p->c.w, kept ? "gcp_keep(" : "");
    if (facts.call) facts.call(&p->c, x);
    else gcpi_code_call(&p->c, x, x->row->name, 0, x->inputs);
    if (p->t->names[name].named) {
        gcpi_say(p->c.w, ", .name = ");
        gcpi_program_text(p, "", p->t->names[name].label,
                          p->loop ? p->t->names[p->t->ops[op + next + p->loop->ops].name].label : NULL);
    }
    gcpi_say(p->c.w, kept ? "));\n" : ");\n");
    gcpi_program_behind(p, x);
    return 1 + next;
}
static void gcpi_program_loop(gcpi_program *p, const gcpi_repeat *r)
{
    const int ahead = (r->times - 1) * r->tensors;
    gcpi_variable was[4];
    gcpi_program_enter(p, 0);
    for (int k = 0; k < r->carried; k++) {
        gcpi_program_assign(p, r->to[k] + ahead);
        gcpi_code_tensor(&p->c, r->from[k]);
        gcpi_say(p->c.w, ";\n");
        was[k] = p->variables[r->from[k]];
    }
    for (int k = 0; k < r->carried; k++) p->variables[r->from[k]] = p->variables[r->to[k] + ahead];
    p->loop = r;
    for (int j = 0; j < r->ops;) j += gcpi_program_call(p, r->first + j);
    gcpi_program_enter(p, r->segment);
    for (int k = 0; k < r->carried; k++) {
        gcpi_program_indent(p);
        gcpi_code_tensor(&p->c, r->to[k] + ahead);
        gcpi_say(p->c.w, " = ");
        gcpi_code_tensor(&p->c, r->to[k]);
        gcpi_say(p->c.w, ";\n");
        p->variables[r->from[k]] = was[k];
    }
    gcpi_program_enter(p, 0);
    p->loop = NULL;
}
/* Variables that are declared first: those that several blocks share. */
static void gcpi_program_declare(const gcpi_program *p)
{
    int params = 0, x = 0, count = 0;
    for (int id = 1; id < p->t->tensor_count; id++) {
        const gcpi_variable v = p->variables[id];
        if (v.kind == 'p') params = GCPI_MAX(params, v.number + 1);
        x |= v.kind == 'x';
    }
    if (x) gcpi_say(p->c.w, "%sx", count++ ? ", " : "    gcp_tensor ");
    for (int i = 0; i < params; i++) gcpi_say(p->c.w, "%sp%d", count++ ? ", " : "    gcp_tensor ", i);
    for (int id = 1; id < p->t->tensor_count; id++)
        if (p->variables[id].kind == 't' && !p->readers[id].inside)
            gcpi_say(p->c.w, "%st%d",
                     count++ % 16 ? ", "
                     : count > 1  ? ";\n    gcp_tensor "
                                  : "    gcp_tensor ",
                     p->variables[id].number);
    for (int op = 0; op < p->t->op_count; op++)
        if (p->variables[p->t->ops[op].out].kind == 'c')
            gcpi_say(p->c.w, "%sc%d[%d]", count++ ? ", " : "    gcp_tensor ", p->variables[p->t->ops[op].out].number,
                     p->t->ops[op].outputs);
    gcpi_say(p->c.w, count ? ";\n" : "");
}
/* The rows of custom ops, which the program that it becomes part of has. */
static void gcpi_program_customs(const gcpi_program *p)
{
    for (int op = 0; op < p->t->op_count; op++) {
        char name[80];
        int known = !gcpi_facts_of(&p->t->ops[op]).custom;
        for (int k = 0; k < op && !known; k++) known = p->t->ops[k].row == p->t->ops[op].row;
        if (!known)
            gcpi_say(p->c.w, "extern const gcp_op %s; /* yours, and its .context */\n",
                     gcpi_code_identifier(p->t->ops[op].row->name, name, sizeof name));
    }
}
static void gcpi_program_head(gcpi_program *p)
{
    const char *const several = p->output_count > 1 ? "void record(gcp_tape *net, gcp_tensor *outputs)" : NULL,
                      *const head = several ? several : "gcp_tensor record(gcp_tape *net)";
    for (int i = 0; i < p->repeat_count; i++) p->numbered |= gcpi_repeat_numbered(p->t, &p->repeats[i]);
    gcpi_say(
        p->c.w,
        "/* %d ops, recorded by gcp_print_c. Parameters have the names that they had: gcp_load takes what gcp_save "
        "wrote. */\n#include <math.h>\n%s#include \"gcp.h\"\n\n",
        p->t->op_count, p->numbered ? "#include <stdio.h>\n" : "");
    if (p->numbered)
        gcpi_say(
            p->c.w,
            "/* gcp_param copies it. */\nstatic const char *numbered(const char *format, int number)\n{\n"
            "    static char name[256];\n    snprintf(name, sizeof name, format, number);\n    return name;\n}\n\n");
    gcpi_program_customs(p);
    gcpi_say(p->c.w, "%s;\n%s\n{\n", head, head);
    gcpi_program_declare(p);
}
static void gcpi_program_print(gcpi_program *p)
{
    gcpi_program_head(p);
    for (int op = 0; op < p->t->op_count;) {
        const gcpi_repeat *r = gcpi_program_repeat_at(p, op);
        if (r) gcpi_program_loop(p, r);
        op += r ? r->times * r->ops : gcpi_program_call(p, op);
    }
    gcpi_program_before(p, p->t->op_count);
    gcpi_program_enter(p, 0);
    for (int i = 0; i < p->output_count; i++) {
        if (p->output_count > 1) gcpi_say(p->c.w, "    outputs[%d] = ", i);
        else gcpi_say(p->c.w, "    return ");
        gcpi_code_tensor(&p->c, p->outputs[i].id);
        gcpi_say(p->c.w, ";\n");
    }
    gcpi_say(p->c.w, "}\n");
}
GCPI_DEF gcp_code gcp_print_c_at(const gcp_tensor *outputs, int count, gcp_writer w, gcp_at at)
{
    gcp_tape *t = NULL;
    gcpi_program p;
    for (int i = 0; outputs && i < count && !t; i++) t = outputs[i].tape;
    for (int i = 0; i < count && t; i++)
        if (!gcpi_usable(t, outputs[i], at, "gcp_print_c")) return gcp_error_code(t);
    if (t && !t->op_count) gcpi_fail(t, GCP_E_ARGUMENT, at, "gcp_print_c", "no op is recorded");
    if (!t || t->code) return t ? t->code : GCP_E_ARGUMENT;
    const ptrdiff_t scratch = t->arena->scratch;
    memset(&p, 0, sizeof p);
    p.t = t;
    p.outputs = outputs;
    p.output_count = count;
    p.variables = GCPI_SCRATCH(t->arena, gcpi_variable, t->tensor_count);
    p.readers = GCPI_SCRATCH(t->arena, gcpi_readers, t->tensor_count);
    p.places = GCPI_SCRATCH(t->arena, int, t->op_count);
    int *stands = GCPI_SCRATCH(t->arena, int, t->tensor_count);
    p.repeats = GCPI_SCRATCH(t->arena, gcpi_repeat, t->segment_count);
    p.c.w = w;
    p.c.t = t;
    p.c.variables = p.variables;
    p.c.stands = stands;
    if (p.variables && p.readers && p.places && stands && p.repeats) {
        gcpi_program_stands(&p, stands);
        gcpi_program_repeats(&p);
        gcpi_program_places(&p);
        gcpi_program_readers(&p);
        gcpi_program_name(&p);
        gcpi_program_print(&p);
    } else
        gcpi_fail(t, GCP_E_NOMEM, at, "gcp_print_c", "the arena has no room for a list of %d tensors", t->tensor_count);
    t->arena->scratch = scratch;
    return t->code;
}
