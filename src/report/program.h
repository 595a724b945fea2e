/* gcp_print_c: a tape as a C program, a function that records it again. */

/* What is known of a tensor's readers: their first and last place, and whether all lie in the segment of its maker. */
typedef struct gcpi_readers {
    int first, last, inside;
} gcpi_readers;

typedef struct gcpi_program {
    gcpi_code c;
    gcp_tape *t;
    const gcp_tensor *outputs;
    int output_count;
    gcpi_variable *variables; /* a tensor each */
    gcpi_readers *readers;
    int *places; /* an op each: number of its call; calls that record several ops count once */
    gcpi_repeat *repeats;
    int repeat_count, numbered; /* numbered: a loop has names with numbers */
    const gcpi_repeat *loop;    /* what is printed now */
    int segment;                /* open */
} gcpi_program;

static void gcpi_program_repeats(gcpi_program *p)
{
    for (int op = 0; op < p->t->op_count; op++) {
        const gcpi_repeat r = gcpi_repeat_of(p->t, op, p->outputs, p->output_count);
        if (r.times == 1) continue;
        p->repeats[p->repeat_count++] = r;
        op += r.times * r.ops - 1;
    }
}
static const gcpi_repeat *gcpi_program_repeat_at(const gcpi_program *p, int op)
{
    for (int i = 0; i < p->repeat_count; i++)
        if (p->repeats[i].first == op) return &p->repeats[i];
    return NULL;
}

/* ---- variables ---- */

static int gcpi_program_within(const gcp_tape *t, int segment, int around)
{
    while (segment && segment != around) segment = t->segments[segment].parent;
    return segment == around;
}
static int gcpi_program_place(const gcpi_program *p, int op)
{
    return op < p->t->op_count ? p->places[op] : p->places[p->t->op_count - 1] + 1;
}
/* The op that makes a tensor or, for what no op makes, the first op behind it. */
static int gcpi_program_maker(const gcp_tape *t, int tensor)
{
    if (t->tensors[tensor].producer >= 0) return t->tensors[tensor].producer;
    int low = 0, high = t->op_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (t->ops[middle].out > tensor) high = middle;
        else low = middle + 1;
    }
    return low;
}
static void gcpi_program_reads(gcpi_program *p, int tensor, int place, int segment)
{
    gcpi_readers *r = &p->readers[tensor];
    const int maker = gcpi_program_maker(p->t, tensor), input = p->t->tensors[tensor].kind == GCPI_INPUT,
              made = input || maker == p->t->op_count ? 0 : p->t->ops[maker].segment;
    if (!r->first) {
        r->first = place;
        r->inside = !input;
    }
    r->last = GCPI_MAX(r->last, place);
    r->first = GCPI_MIN(r->first, place);
    r->inside &= gcpi_program_within(p->t, segment, made);
}
/* How many ops behind this one its call records. */
static int gcpi_program_next(gcpi_program *p, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    gcpi_code silent = p->c;
    silent.w.write = NULL;
    silent.next = 0;
    if (facts.call) facts.call(&silent, op);
    return silent.next;
}
/* An op that the call of the op behind it records: statistics, and what makes targets and weights of a loss constant.
   */
static int gcpi_program_silent(const gcp_tape *t, int op)
{
    const gcpi_op *x = &t->ops[op];
    if (gcpi_facts_of(x).silent) return 1;
    if (strcmp(x->row->name, "stop_gradient")) return 0;
    for (int next = op + 1; next < t->op_count; next++) {
        const gcpi_op *y = &t->ops[next];
        for (int i = 0; i < y->inputs && i < 32; i++)
            if (t->edges[y->in + i] == x->out) return (gcpi_facts_of(y).stops >> i & 1) && next - op <= y->inputs;
        if (strcmp(y->row->name, "stop_gradient")) return 0;
    }
    return 0;
}
static void gcpi_program_places(gcpi_program *p)
{
    int place = 1;
    for (int op = 0; op < p->t->op_count; op++) {
        const int next = gcpi_program_next(p, &p->t->ops[op]);
        for (int k = 0; k <= next; k++) p->places[op + k] = place;
        op += next;
        place += !gcpi_program_silent(p->t, op);
    }
}
static void gcpi_program_readers(gcpi_program *p)
{
    const gcp_tape *t = p->t;
    for (int op = 0; op < t->op_count; op++) {
        const gcpi_repeat *r = gcpi_program_repeat_at(p, op);
        for (int k = 0; r && k < r->carried; k++) {
            gcpi_program_reads(p, r->from[k], p->places[op], 0);
            gcpi_program_reads(p, r->to[k], gcpi_program_place(p, op + r->ops), r->segment);
        }
        const int body = r ? r->ops : 1;
        for (int j = 0; j < body; j++) {
            const gcpi_op *x = &t->ops[op + j];
            for (int i = 0; i < x->inputs && !gcpi_facts_of(x).silent; i++) {
                const int id = t->edges[x->in + i];
                int carried = 0;
                for (int k = 0; r && k < r->carried; k++) carried |= r->from[k] == id;
                if (!carried) gcpi_program_reads(p, id, p->places[op + j], x->segment);
            }
        }
        if (r) op += r->times * r->ops - 1;
    }
    for (int i = 0; i < p->output_count; i++)
        gcpi_program_reads(p, p->outputs[i].id, gcpi_program_place(p, t->op_count), 0);
}
/* The segment that a name lies in: 0, the tape itself; -1: it lies below an op, whose call made it. */
static int gcpi_program_owner(const gcp_tape *t, int name)
{
    const int parent = t->names[name].parent;
    for (int s = 0; s < t->segment_count; s++)
        if (t->segments[s].name == parent) return s;
    return -1;
}
/* x: what only the next call reads; p0, p1, ...: parameters that only the call behind them reads; t1, t2, ...: others.
   What a call makes on the way has readers only in that call, and no name. */
static void gcpi_program_name(gcpi_program *p)
{
    int number = 0, waiting = 0, before = -1;
    for (int id = 1; id < p->t->tensor_count; id++) {
        const gcpi_readers *r = &p->readers[id];
        gcpi_variable *v = &p->variables[id];
        const int maker = gcpi_program_maker(p->t, id), place = gcpi_program_place(p, maker),
                  made = p->t->tensors[id].producer >= 0;
        if (place != before) waiting = 0;
        before = place;
        if (!r->first || (made && r->last == place)) continue;
        if (p->t->tensors[id].parameter >= 0 && gcpi_program_owner(p->t, p->t->tensors[id].name) < 0) continue;
        v->kind = 't';
        if (r->first == r->last && r->first == place + made)
            v->kind = made || p->t->tensors[id].kind == GCPI_INPUT ? 'x' : 'p';
        v->number = v->kind == 't' ? ++number : v->kind == 'p' ? waiting++ : 0;
    }
    for (int i = 0; i < p->repeat_count; i++) {
        const gcpi_repeat *r = &p->repeats[i];
        for (int k = 0; k < r->carried; k++) {
            gcpi_variable *v = &p->variables[r->to[k] + (r->times - 1) * r->tensors];
            v->kind = 't';
            v->number = ++number;
        }
    }
    for (int op = 0; op < p->t->op_count; op++)
        if (gcpi_program_silent(p->t, op))
            p->variables[p->t->ops[op].out] = p->variables[p->t->edges[p->t->ops[op].in]];
}

static int gcpi_program_alias(const gcp_tape *t, int id)
{
    return t->tensors[id].producer >= 0 && gcpi_program_silent(t, t->tensors[id].producer);
}

/* ---- printing ---- */

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
    gcpi_code_text(&p->c, p->t->names[s->name].label);
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
    if (!v.kind) return;
    gcpi_say(p->c.w, v.kind == 't' && p->readers[tensor].inside ? "gcp_tensor " : "");
    gcpi_code_tensor(&p->c, tensor);
    gcpi_say(p->c.w, " = ");
}
static void gcpi_program_input(gcpi_program *p, int id)
{
    const gcpi_tensor *e = &p->t->tensors[id];
    int loss = 0;
    for (int op = 0; op < p->t->op_count; op++)
        for (int i = 0; i < p->t->ops[op].inputs; i++)
            loss |= p->t->edges[p->t->ops[op].in + i] == id && gcpi_facts_of(&p->t->ops[op]).leaves_out;
    gcpi_program_assign(p, id);
    gcpi_say(p->c.w, "%s(net, ", e->dtype == GCP_DTYPE_REAL ? "gcp_input" : loss ? "gcp_labels" : "gcp_ids");
    gcpi_code_text(&p->c, gcpi_repeat_label(p->t, id));
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
/* A parameter's options, where they are not gcp_param's defaults or what a matmul gives. */
static void gcpi_program_begins(const gcpi_program *p, const gcpi_parameter *q)
{
    const int flat = q->shape.rank == 1, rows = q->shape.d[0],
              rest = (int)GCPI_MIN(gcpi_count(q->shape) / (size_t)rows, (size_t)INT32_MAX),
              usual = (!q->fan_in || q->fan_in == rest) && (!q->fan_out || q->fan_out == rows),
              factor = q->shape.rank == 2 && q->fan_in == rows && q->fan_out == rest;
    gcpi_code_real(&p->c, "std", q->deviation, 0);
    if (q->deviation == 0) gcpi_code_init(&p->c, q->init, flat ? GCP_INIT_ZEROS : GCP_INIT_DEFAULT);
    if (usual || factor || flat) return;
    gcpi_code_int(&p->c, "fan_in", q->fan_in, 0);
    gcpi_code_int(&p->c, "fan_out", q->fan_out, 0);
}
/* A name of the tape's own, whatever segment is open, begins with '/'. In a loop it may have the loop's number. */
static void gcpi_program_path(gcpi_program *p, int id)
{
    const gcp_tape *t = p->t;
    const char *label = gcpi_repeat_label(t, id),
               *slash = p->segment && !t->names[t->tensors[id].name].parent ? "/" : "";
    char format[256], text[260];
    int number, step;
    const int numbers =
        p->loop && *slash &&
        gcpi_repeat_numbers(label, gcpi_repeat_label(t, id + p->loop->tensors), format, sizeof format, &number, &step);
    snprintf(text, sizeof text, "%s%.250s", slash, numbers ? format : label);
    if (numbers) gcpi_say(p->c.w, "numbered(");
    gcpi_code_text(&p->c, text);
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
    gcpi_program_path(p, id);
    gcpi_say(p->c.w, ", ");
    gcpi_code_shape(&p->c, e->shape);
    gcpi_program_begins(p, &p->t->parameters[e->parameter]);
    gcpi_say(p->c.w, "%s);\n", frozen ? ")" : "");
}
/* What stands on the tape between the op before this one and this one. */
static void gcpi_program_before(gcpi_program *p, int op)
{
    const gcp_tape *t = p->t;
    const int end = op < t->op_count ? t->ops[op].out : t->tensor_count;
    for (int id = gcpi_repeat_base(t, op); id < end; id++) {
        const gcpi_tensor *e = &t->tensors[id];
        const int owner = gcpi_program_owner(t, e->name);
        if (e->kind == GCPI_INPUT) gcpi_program_input(p, id);
        if (e->kind != GCPI_PARAMETER || owner < 0) continue;
        if (owner && gcpi_program_within(t, op < t->op_count ? t->ops[op].segment : 0, owner))
            gcpi_program_enter(p, owner);
        else gcpi_program_enter(p, op < t->op_count ? t->ops[op].segment : 0);
        gcpi_program_parameter(p, id);
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
        gcpi_code_text(&p->c, p->t->names[name].label);
    }
    gcpi_say(p->c.w, kept ? "));\n" : ");\n");
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
        if (p->variables[id].kind == 't' && !p->readers[id].inside && !gcpi_program_alias(p->t, id))
            gcpi_say(p->c.w, "%st%d",
                     count++ % 16 ? ", "
                     : count > 1  ? ";\n    gcp_tensor "
                                  : "    gcp_tensor ",
                     p->variables[id].number);
    gcpi_say(p->c.w, count ? ";\n" : "");
}
static void gcpi_program_head(gcpi_program *p)
{
    const char *const several = p->output_count > 1 ? "void record(gcp_tape *net, gcp_tensor *outputs)" : NULL,
                      *const head = several ? several : "gcp_tensor record(gcp_tape *net)";
    for (int i = 0; i < p->repeat_count; i++)
        for (int k = 0; k < p->repeats[i].tensors; k++) {
            const int id = p->repeats[i].base + k;
            p->numbered |= strcmp(gcpi_repeat_label(p->t, id), gcpi_repeat_label(p->t, id + p->repeats[i].tensors));
        }
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
    gcp_tape *t = outputs && count > 0 ? outputs[0].tape : NULL;
    gcpi_program p;
    for (int i = 0; i < count && t; i++)
        if (!gcpi_usable(t, outputs[i], at, "gcp_print_c")) return gcp_error_code(t);
    if (!t || !t->op_count) return gcp_error_code(t);
    const ptrdiff_t scratch = t->arena->scratch;
    memset(&p, 0, sizeof p);
    p.t = t;
    p.outputs = outputs;
    p.output_count = count;
    p.variables = GCPI_SCRATCH(t->arena, gcpi_variable, t->tensor_count);
    p.readers = GCPI_SCRATCH(t->arena, gcpi_readers, t->tensor_count);
    p.places = GCPI_SCRATCH(t->arena, int, t->op_count);
    p.repeats = GCPI_SCRATCH(t->arena, gcpi_repeat, t->segment_count);
    p.c.w = w;
    p.c.t = t;
    p.c.variables = p.variables;
    if (p.variables && p.readers && p.places && p.repeats) {
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
