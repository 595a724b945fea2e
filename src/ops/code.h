/* How an op is written in C: the call that records it. An op with options, or whose call has another name or other
   inputs than its row, writes it (.call of its facts); for all others it is the row's name and its inputs. */

/* What a tensor is called: x; t, p with a number; an element of c with a number. 0: it is found by its path. */
typedef struct gcpi_variable {
    char kind;
    int number;
} gcpi_variable;

/* variables: of each tensor. stands: for each tensor the one that is written: where a call stops a gradient, what it
   takes. next: how many ops behind this one its call records, too. */
typedef struct gcpi_code {
    gcp_writer w;
    const gcp_tape *t;
    const gcpi_variable *variables;
    const int *stands;
    int next;
} gcpi_code;

/* ---- values ---- */

static void gcpi_code_escaped(const gcpi_code *c, const char *text)
{
    for (const unsigned char *at = (const unsigned char *)text; *at; at++)
        if (*at < ' ' || *at > '~') gcpi_say(c->w, "\\%c%c%c", '0' + (*at >> 6), '0' + (*at >> 3 & 7), '0' + (*at & 7));
        else gcpi_say(c->w, strchr("\"\\?", *at) ? "\\%c" : "%c", *at);
}
static void gcpi_code_text(const gcpi_code *c, const char *before, const char *text)
{
    gcpi_say(c->w, "\"");
    gcpi_code_escaped(c, before);
    gcpi_code_escaped(c, text);
    gcpi_say(c->w, "\"");
}
static void gcpi_code_shape(const gcpi_code *c, gcp_shape s)
{
    gcpi_say(c->w, "GCP_SHAPE(");
    if (s.rank > 1) gcpi_say(c->w, "%d, ", s.d[0]);
    if (s.rank > 3) gcpi_say(c->w, "%d, ", s.d[1]);
    if (s.rank > 2) gcpi_say(c->w, "%d, ", s.d[2]);
    gcpi_say(c->w, "%d)", s.d[3]);
}
/* The shortest text that reads as the same number. */
static void gcpi_code_number(const gcpi_code *c, double value)
{
    char text[340] = "";
    if (value == 0) gcpi_say(c->w, "GCP_ZERO");
    else if (!gcpi_finite(value)) gcpi_say(c->w, value > 0 ? "HUGE_VAL" : "-HUGE_VAL");
    else {
        int digits = 3;
        do snprintf(text, sizeof text, "%.*g", digits++, value);
        while (digits < 18 && strtod(text, NULL) != value);
        snprintf(text, sizeof text, "%%.%dg", digits - 1);
        gcpi_say_real(c->w, text, value);
    }
}
static void gcpi_code_tensor(const gcpi_code *c, int tensor)
{
    const int id = c->stands[tensor];
    const gcpi_variable v = c->variables[id];
    const int op = c->t->tensors[id].producer;
    char path[256];
    if (v.kind == 'x') gcpi_say(c->w, "x");
    else if (v.kind == 'c') gcpi_say(c->w, "c%d[%d]", v.number, id - c->t->ops[op].out);
    else if (v.kind) gcpi_say(c->w, "%c%d", v.kind, v.number);
    else {
        gcpi_say(c->w, "gcp_find(net, ");
        gcpi_name_text(c->t, c->t->tensors[id].name, path, sizeof path);
        gcpi_code_text(c, "", path);
        gcpi_say(c->w, ")");
    }
}

/* A name as C allows it. */
static const char *gcpi_code_identifier(const char *name, char *word, size_t size)
{
    static const char *const allowed = "_0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ";
    snprintf(word, size, "%s%s", strchr("0123456789", *name) ? "_" : "", name);
    for (char *c = word; *c; c++)
        if (!strchr(allowed, *c)) *c = '_';
    return word;
}

/* ---- calls ---- */

/* Input i of an op; GCP_NIL where it has none. */
static void gcpi_code_input(const gcpi_code *c, const gcpi_op *op, int i)
{
    if (i < op->inputs) gcpi_code_tensor(c, c->t->edges[op->in + i]);
    else gcpi_say(c->w, "GCP_NIL");
}
/* A call's beginning: its name without gcp_, and inputs first .. end - 1. */
static void gcpi_code_call(const gcpi_code *c, const gcpi_op *op, const char *name, int first, int end)
{
    gcpi_say(c->w, "gcp_%s(", name);
    for (int i = first; i < end; i++) {
        if (i > first) gcpi_say(c->w, ", ");
        gcpi_code_input(c, op, i);
    }
}
/* A call of an array of all inputs. */
static void gcpi_code_list(const gcpi_code *c, const gcpi_op *op, const char *name)
{
    gcpi_say(c->w, "gcp_%s(GCP_TENSORS(", name);
    for (int i = 0; i < op->inputs; i++) {
        if (i) gcpi_say(c->w, ", ");
        gcpi_code_input(c, op, i);
    }
    gcpi_say(c->w, ")");
}
/* Whether the op's call made input i: its name lies below the op's. */
static int gcpi_code_makes(const gcp_tape *t, const gcpi_op *op, int i)
{
    return i < op->inputs && t->names[t->tensors[t->edges[op->in + i]].name].parent == op->name;
}
/* A layer's call, gcp_NAME(x, or gcp_NAME_op(x, weights. 1: it makes its weights. */
static int gcpi_code_layer(const gcpi_code *c, const gcpi_op *op, int inputs)
{
    const int makes = gcpi_code_makes(c->t, op, 1);
    char name[40];
    snprintf(name, sizeof name, makes ? "%s" : "%s_op", op->row->name);
    gcpi_code_call(c, op, name, 0, makes ? 1 : inputs);
    return makes;
}
static gcp_shape gcpi_code_input_shape(const gcpi_code *c, const gcpi_op *op, int i)
{
    return c->t->tensors[c->t->edges[op->in + i]].shape;
}

/* ---- options: nothing where it is the default ---- */

static void gcpi_code_int(const gcpi_code *c, const char *option, int value, int otherwise)
{
    if (value != otherwise && value) gcpi_say(c->w, ", .%s = %d", option, value);
    else if (value != otherwise) gcpi_say(c->w, ", .%s = GCP_ZERO", option);
}
static void gcpi_code_real(const gcpi_code *c, const char *option, double value, double otherwise)
{
    if (value == otherwise) return;
    gcpi_say(c->w, ", .%s = ", option);
    gcpi_code_number(c, value);
}
static void gcpi_code_word(const gcpi_code *c, const char *option, const char *word)
{
    gcpi_say(c->w, ", .%s = %s", option, word);
}
static void gcpi_code_init(const gcpi_code *c, gcp_init init, gcp_init otherwise)
{
    static const char *const words[] = { "DEFAULT", "HE", "GLOROT", "ZEROS", "ONES" };
    if (init != otherwise) gcpi_say(c->w, ", .init = GCP_INIT_%s", words[init]);
}
/* How a layer began its weights, input 1. */
static void gcpi_code_layer_init(const gcpi_code *c, const gcpi_op *op, gcp_init otherwise)
{
    const gcpi_tensor *e = &c->t->tensors[c->t->edges[op->in + 1]];
    gcpi_code_init(c, c->t->parameters[e->parameter].init, otherwise);
}
/* An option of rows and of columns, as .stride: one where they are equal. */
static void gcpi_code_both(const gcpi_code *c, const char *option, const char *rows, const char *columns, int h, int w,
                           int otherwise)
{
    if (h == w) gcpi_code_int(c, option, h, otherwise);
    else {
        gcpi_code_int(c, rows, h, otherwise);
        gcpi_code_int(c, columns, w, otherwise);
    }
}
static void gcpi_code_pads(const gcpi_code *c, const gcpi_conv_attr *a)
{
    if (a->same) gcpi_code_word(c, "padding", "GCP_PADDING_SAME");
    else if (a->pt == a->pb && a->pt == a->pl && a->pt == a->pr) gcpi_code_int(c, "pad", a->pt, 0);
    else {
        gcpi_code_int(c, "pad_top", a->pt, 0);
        gcpi_code_int(c, "pad_bottom", a->pb, 0);
        gcpi_code_int(c, "pad_left", a->pl, 0);
        gcpi_code_int(c, "pad_right", a->pr, 0);
    }
}
static void gcpi_code_axis(const gcpi_code *c, int axis)
{
    static const char *const words[] = { "GCP_AXIS_SAMPLES", "GCP_AXIS_HEIGHT", "GCP_AXIS_WIDTH" };
    if (axis < 3) gcpi_code_word(c, "axis", words[axis]);
}
/* A loss that is recorded as several ops, of which this is the first: with a mean behind it, or with what weights take,
   from stop_gradient to a division. option: of 1, if it
   is not given. */
static void gcpi_code_loss(gcpi_code *c, const gcpi_op *op, const char *name, const char *option, double value)
{
    const gcpi_op *next = op + 1, *end = c->t->ops + c->t->op_count;
    const int weighted = next < end && !strcmp(next->row->name, "stop_gradient");
    gcpi_code_call(c, op, name, 0, 2);
    gcpi_code_real(c, option, value, 1);
    if (weighted) {
        gcpi_say(c->w, ", .weights = ");
        gcpi_code_input(c, next, 0);
    }
    while (next < end && strcmp(next->row->name, weighted ? "div" : "mean")) next++;
    c->next = (int)(next - op);
}
