/* Variables: what a printed program calls its tensors. */

/* What is known of a tensor's readers: their first and last place; whether all lie in the block where it is made;
   whether a loop reads it anew each time. */
typedef struct gcpi_readers {
    int first, last, inside, often;
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
/* The block that a tensor is made in; -1: none that its readers share for certain, as of what is made between two. */
static int gcpi_program_block(const gcp_tape *t, int tensor)
{
    const int maker = gcpi_program_maker(t, tensor), made = t->tensors[tensor].producer >= 0,
              segment = maker < t->op_count ? t->ops[maker].segment : 0;
    if (made) return segment;
    return t->tensors[tensor].kind != GCPI_INPUT && segment == (maker ? t->ops[maker - 1].segment : 0) ? segment : -1;
}
static void gcpi_program_reads(gcpi_program *p, int tensor, int place, int segment)
{
    gcpi_readers *r = &p->readers[tensor];
    const int block = gcpi_program_block(p->t, tensor);
    if (!r->first) {
        r->first = place;
        r->inside = 1;
    }
    r->last = GCPI_MAX(r->last, place);
    r->first = GCPI_MIN(r->first, place);
    r->inside &= block >= 0 && gcpi_program_within(p->t, segment, block);
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
                p->readers[id].often |= r && !carried && id < r->base;
            }
        }
        if (r) op += r->times * r->ops - 1;
    }
    for (int i = 0; i < p->output_count; i++)
        gcpi_program_reads(p, p->outputs[i].id, gcpi_program_place(p, t->op_count), 0);
}
/* A custom op's outputs are an array, if it has several. */
static int gcpi_program_several(const gcp_tape *t, int id)
{
    const gcpi_op *op = &t->ops[t->tensors[id].producer];
    return op->outputs > 1 && gcpi_facts_of(op).custom;
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
        const int several = made && gcpi_program_several(p->t, id);
        if (!r->first && !(several && p->t->tensors[id].flags & GCPI_KEPT)) continue;
        if (made && r->first && r->last == place) continue;
        if (p->t->tensors[id].parameter >= 0 && gcpi_repeat_owner(p->t, p->t->tensors[id].name) < 0) continue;
        const int once = !r->often && r->first == r->last && r->first == place + made;
        v->kind = !once || p->t->tensors[id].kind == GCPI_INPUT ? 't' : made ? 'x' : 'p';
        if (several) {
            const int op = p->t->tensors[id].producer;
            *v = p->variables[p->t->ops[op].out];
            if (v->kind != 'c') v->number = ++number;
            v->kind = 'c';
            p->variables[p->t->ops[op].out] = *v;
            continue;
        }
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
}
/* What a call stops the gradient of itself is written as it was before. */
static void gcpi_program_stands(gcpi_program *p, int *stands)
{
    for (int id = 0; id < p->t->tensor_count; id++) stands[id] = id;
    for (int op = 0; op < p->t->op_count; op++)
        if (gcpi_program_silent(p->t, op)) stands[p->t->ops[op].out] = stands[p->t->edges[p->t->ops[op].in]];
}
