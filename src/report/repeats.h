/* Repeats: outermost segments that are alike. They lie one behind the other, each reading what the one before it made,
   and can be written as a loop. */

/* Alike segments, one behind the other. base, tensors: of the first one's tensors, and how many each has. What the
   first reads as tensor from[k], each other reads as what stands for to[k] in the one before it: it is carried. */
typedef struct gcpi_repeat {
    int segment, first, ops, base, tensors, times, carried, from[4], to[4];
} gcpi_repeat;

static int gcpi_repeat_base(const gcp_tape *t, int op) { return op ? t->ops[op - 1].out + t->ops[op - 1].outputs : 1; }
static int gcpi_repeat_outer(const gcp_tape *t, int op) { return t->segments[t->ops[op].segment].outer; }

/* The ops of the outermost segment that begins with this op; 0: none does. */
static int gcpi_repeat_length(const gcp_tape *t, int op)
{
    int n = 0;
    const int outer = op < t->op_count ? gcpi_repeat_outer(t, op) : 0;
    if (!outer || (op && gcpi_repeat_outer(t, op - 1) == outer)) return 0;
    while (op + n < t->op_count && gcpi_repeat_outer(t, op + n) == outer) n++;
    return n;
}
/* The name's text with its one number that differs in the other as %d; 0: more than a number differs. */
static int gcpi_repeat_numbers(const char *a, const char *b, char *format, size_t size, int *number, int *step)
{
    size_t at = 0, n = 0;
    char *rest, *other;
    if (!strcmp(a, b)) return 0;
    while (a[at] && a[at] == b[at]) at++;
    while (at && strchr("0123456789", a[at - 1])) at--;
    if (!a[at] || !b[at] || !strchr("0123456789", a[at]) || !strchr("0123456789", b[at])) return 0;
    const long first = strtol(a + at, &rest, 10), second = strtol(b + at, &other, 10);
    if (strcmp(rest, other) || first > INT32_MAX / 2 || second > INT32_MAX / 2) return 0;
    *number = (int)first;
    *step = (int)(second - first);
    for (const char *c = a; *c && n + 4 < size; c++) {
        if (c == a + at) {
            format[n++] = '%';
            format[n++] = 'd';
            c = rest;
        }
        if (*c == '%') format[n++] = '%';
        if (!*c) break;
        format[n++] = *c;
    }
    format[n] = 0;
    return n + 4 < size;
}
/* Whether name k of a row of names follows from its first two. */
static int gcpi_repeat_follows(const char *a, const char *b, const char *name, int k)
{
    char format[256], text[256];
    int number, step;
    if (!strcmp(a, b)) return !strcmp(a, name);
    if (!gcpi_repeat_numbers(a, b, format, sizeof format, &number, &step)) return 0;
    snprintf(text, sizeof text, format, number);
    if (strcmp(text, a)) return 0; /* zeros before it */
    if ((int64_t)number + (int64_t)step * k > INT32_MAX || (int64_t)number + (int64_t)step * k < 0) return 0;
    snprintf(text, sizeof text, format, number + step * k);
    return !strcmp(text, name);
}
/* The segment that a name lies in: 0, the tape itself; -1: it lies below an op, whose call made it. */
static int gcpi_repeat_owner(const gcp_tape *t, int name)
{
    const int parent = t->names[name].parent;
    for (int s = 0; s < t->segment_count; s++)
        if (t->segments[s].name == parent) return s;
    return -1;
}
/* Whether a segment of a copy stands where this one of the first does. */
static int gcpi_repeat_place_alike(const gcp_tape *t, const gcpi_repeat *r, int a, int b, int apart)
{
    for (; a; a = t->segments[a].parent, b = t->segments[b].parent) {
        const gcpi_segment *s = &t->segments[a], *u = &t->segments[b];
        if (b - a != apart || s->keep != u->keep || strcmp(t->names[s->name].label, t->names[u->name].label)) return 0;
        if (a == r->segment) return 1;
    }
    return 0;
}
static const char *gcpi_repeat_label(const gcp_tape *t, int tensor) { return t->names[t->tensors[tensor].name].label; }

/* Whether parameter c of copy k is recorded where and as parameter a of the first is. */
static int gcpi_repeat_parameter_alike(const gcp_tape *t, const gcpi_repeat *r, int a, int c, int apart)
{
    const gcpi_tensor *x = &t->tensors[a], *y = &t->tensors[c];
    const gcpi_parameter *p = &t->parameters[x->parameter], *q = &t->parameters[y->parameter];
    const int one = gcpi_repeat_owner(t, x->name), other = gcpi_repeat_owner(t, y->name);
    if (p->init != q->init || p->deviation != q->deviation || p->fan_in != q->fan_in || p->fan_out != q->fan_out)
        return 0;
    return one > 0 ? gcpi_repeat_place_alike(t, r, one, other, apart) : one == other;
}
/* Whether tensor i of copy k is what the loop's body makes there. */
static int gcpi_repeat_tensor_alike(const gcp_tape *t, const gcpi_repeat *r, int k, int i)
{
    const int a = r->base + i, b = a + r->tensors, c = a + k * r->tensors,
              apart = gcpi_repeat_outer(t, r->first + k * r->ops) - r->segment;
    const gcpi_tensor *x = &t->tensors[a], *y = &t->tensors[c];
    if (x->kind != y->kind || x->dtype != y->dtype || x->flags != y->flags || !gcpi_same_shape(x->shape, y->shape) ||
        x->shape.rank != y->shape.rank || x->kind == GCPI_INPUT || t->names[x->name].named != t->names[y->name].named)
        return 0;
    if (x->parameter >= 0 && !gcpi_repeat_parameter_alike(t, r, a, c, apart)) return 0;
    const char *first = gcpi_repeat_label(t, a), *name = gcpi_repeat_label(t, c);
    return t->names[x->name].named ? gcpi_repeat_follows(first, gcpi_repeat_label(t, b), name, k)
                                   : !strcmp(first, name);
}
/* What copy k reads where the first reads tensor x. */
static int gcpi_repeat_stands_for(const gcpi_repeat *r, int x, int k)
{
    if (x >= r->base) return x + k * r->tensors;
    for (int i = 0; i < r->carried; i++)
        if (r->from[i] == x) return r->to[i] + (k - 1) * r->tensors;
    return x;
}
/* The name that op j has in copy k: its own, which may have a number that goes on, or its row's. */
static const char *gcpi_repeat_op_label(const gcp_tape *t, const gcpi_repeat *r, int k, int j)
{
    return t->names[t->ops[r->first + k * r->ops + j].name].label;
}
static int gcpi_repeat_named(const gcp_tape *t, const gcpi_repeat *r, int k, int j)
{
    const char *first = gcpi_repeat_op_label(t, r, 0, j), *name = gcpi_repeat_op_label(t, r, k, j);
    if (!t->names[t->ops[r->first + j].name].named) return !strcmp(first, name);
    return gcpi_repeat_follows(first, gcpi_repeat_op_label(t, r, 1, j), name, k);
}
/* Whether a copy reads, or freezes, what a call of its own made under the call's name: that has no variable, and
   another path in each copy. */
static int gcpi_repeat_finds(const gcp_tape *t, const gcpi_repeat *r, const gcpi_op *op, int i)
{
    const int id = t->edges[op->in + i];
    if (gcpi_code_makes(t, op, i)) return t->tensors[id].flags & GCPI_FROZEN;
    return id >= r->base && t->tensors[id].parameter >= 0 && gcpi_repeat_owner(t, t->tensors[id].name) < 0 &&
           !gcpi_facts_of(op).silent;
}
static int gcpi_repeat_op_alike(const gcp_tape *t, const gcpi_repeat *r, int k, int j)
{
    const gcpi_op *x = &t->ops[r->first + j], *y = x + k * r->ops;
    const int apart = gcpi_repeat_outer(t, r->first + k * r->ops) - r->segment;
    int same = x->row == y->row && x->inputs == y->inputs && x->outputs == y->outputs && x->kept == y->kept &&
               y->out - x->out == k * r->tensors && gcpi_repeat_place_alike(t, r, x->segment, y->segment, apart) &&
               (!x->context || x->context == y->context) && t->names[x->name].named == t->names[y->name].named &&
               gcpi_repeat_named(t, r, k, j) && !memcmp(&x->attributes, &y->attributes, sizeof x->attributes);
    for (int i = 0; same && i < x->inputs; i++)
        same =
            gcpi_repeat_stands_for(r, t->edges[x->in + i], k) == t->edges[y->in + i] && !gcpi_repeat_finds(t, r, x, i);
    return same;
}
/* What the second copy reads of the first, where the first reads what was before it. */
static int gcpi_repeat_carried(const gcp_tape *t, gcpi_repeat *r)
{
    r->carried = 0;
    for (int j = 0; j < r->ops; j++) {
        const gcpi_op *x = &t->ops[r->first + j], *y = x + r->ops;
        for (int i = 0; i < x->inputs && i < y->inputs; i++) {
            const int a = t->edges[x->in + i], b = t->edges[y->in + i];
            if (a >= r->base || b < r->base || b >= r->base + r->tensors || gcpi_repeat_stands_for(r, a, 1) == b)
                continue;
            for (int k = 0; k < r->carried; k++)
                if (r->to[k] == b) return 0;
            if (r->carried == 4 || t->tensors[a].parameter >= 0 || t->tensors[b].parameter >= 0) return 0;
            r->from[r->carried] = a;
            r->to[r->carried++] = b;
        }
    }
    return 1;
}
static int gcpi_repeat_copy_alike(const gcp_tape *t, const gcpi_repeat *r, int k)
{
    const int op = r->first + k * r->ops;
    if (gcpi_repeat_length(t, op) != r->ops || gcpi_repeat_base(t, op) != r->base + k * r->tensors) return 0;
    for (int j = 0; j < r->ops; j++)
        if (!gcpi_repeat_op_alike(t, r, k, j)) return 0;
    for (int i = 0; i < r->tensors; i++)
        if (!gcpi_repeat_tensor_alike(t, r, k, i)) return 0;
    return 1;
}
/* Whether a tensor that the copies made is read where only the last one's carried ones have names. */
static int gcpi_repeat_lost(const gcpi_repeat *r, int tensor)
{
    const int last = tensor - (r->times - 1) * r->tensors;
    if (tensor < r->base || tensor >= r->base + r->times * r->tensors) return 0;
    for (int i = 0; i < r->carried; i++)
        if (r->to[i] == last) return 0;
    return 1;
}
static int gcpi_repeat_loses(const gcp_tape *t, const gcpi_repeat *r, const gcp_tensor *outputs, int count)
{
    const int end = r->first + r->times * r->ops;
    for (int e = end < t->op_count ? t->ops[end].in : t->edge_count; e < t->edge_count; e++)
        if (gcpi_repeat_lost(r, t->edges[e])) return 1;
    for (int i = 0; i < count; i++)
        if (gcpi_repeat_lost(r, outputs[i].id)) return 1;
    return 0;
}
/* Whether names of its copies differ, by a number. */
static int gcpi_repeat_numbered(const gcp_tape *t, const gcpi_repeat *r)
{
    int differ = 0;
    for (int i = 0; i < r->tensors; i++)
        differ |= strcmp(gcpi_repeat_label(t, r->base + i), gcpi_repeat_label(t, r->base + i + r->tensors));
    return differ;
}
/* The repeat that begins with this op; times 1: none does. */
static gcpi_repeat gcpi_repeat_of(const gcp_tape *t, int op, const gcp_tensor *outputs, int count)
{
    gcpi_repeat r;
    memset(&r, 0, sizeof r);
    r.segment = gcpi_repeat_outer(t, op);
    r.first = op;
    r.ops = gcpi_repeat_length(t, op);
    r.base = gcpi_repeat_base(t, op);
    r.times = 1;
    if (!r.ops || gcpi_repeat_length(t, op + r.ops) != r.ops) return r;
    r.tensors = gcpi_repeat_base(t, op + r.ops) - r.base;
    if (!gcpi_repeat_carried(t, &r)) return r;
    while (op + (r.times + 1) * r.ops <= t->op_count && gcpi_repeat_copy_alike(t, &r, r.times)) r.times++;
    if (gcpi_repeat_loses(t, &r, outputs, count)) r.times = 1;
    return r;
}
