/* Two operands, element by element: add, sub, mul, div, and so on. A size that is 1 in one of them is spread over the
   other's. add of equal shapes is a row of its own: it joins groups, and passes its gradient on. */

/* The loops over the elements of the result. Neighbouring sizes that are spread alike are one, so a loop goes over
   many elements at a time. Operands: 0 the result, 1 and 2 the inputs. step: in the operand's own elements, 0 where it
   is spread. The innermost loop is the first, and steps there by 0 or 1. All of this depends on the shapes only, hence
   so does the order of sums. */
enum { GCPI_PAIR_RUN = 512, GCPI_PAIR_LANES = 8, GCPI_PAIR_BLOCKS = 64, GCPI_PAIR_ROWS = 16 };
typedef struct gcpi_pair_loops { int count; size_t size[4], step[3][4]; } gcpi_pair_loops;

static gcp_shape gcpi_pair_out(gcp_shape a, gcp_shape b)
{
    gcp_shape out = a;
    for (int k = 0; k < 4; k++) out.d[k] = GCPI_MAX(a.d[k], b.d[k]);
    if (!gcpi_same_shape(out, a)) out.rank = gcpi_same_shape(out, b) ? b.rank : GCPI_MAX(a.rank, b.rank);
    return out;
}
static gcpi_pair_loops gcpi_pair_loops_of(gcp_shape a, gcp_shape b)
{
    const gcp_shape operand[3] = { gcpi_pair_out(a, b), a, b };
    gcpi_pair_loops l;
    size_t own[3] = { 1, 1, 1 };
    int before = -1;
    memset(&l, 0, sizeof l);
    for (int k = 3; k >= 0; k--) {
        const int size = operand[0].d[k], spread = (a.d[k] != size) | (b.d[k] != size) << 1;
        if (size > 1 && spread == before) l.size[l.count - 1] *= (size_t)size;
        else if (size > 1) {
            for (int o = 0; o < 3; o++) l.step[o][l.count] = operand[o].d[k] == size ? own[o] : 0;
            l.size[l.count++] = (size_t)size;
        }
        for (int o = 0; o < 3; o++) own[o] *= (size_t)operand[o].d[k];
        before = size > 1 ? spread : before;
    }
    if (l.count == 0) l.count = 1, l.size[0] = l.step[0][0] = l.step[1][0] = l.step[2][0] = 1;
    return l;
}

/* A run of up to GCPI_PAIR_RUN elements, side by side. */
typedef struct gcpi_pair_run {
    gcp_real *to, p; const gcp_real *x[3]; size_t n; const gcp_target *target;
} gcpi_pair_run;
typedef void (*gcpi_pair_fn)(const gcpi_pair_run *r);

#define GCPI_PAIR_LOOP(NAME, name, value)                                                               \
    GCPI_BODY void gcpi_pair_##name##_body(const gcpi_pair_run *r, int fused)                           \
    {                                                                                                   \
        gcp_real *to = r->to;                                                                           \
        const gcp_real p = r->p;                                                                        \
        const gcp_real *xs = r->x[0], *ys = r->x[1], *zs = r->x[2];                                     \
        GCPI_EACH for (size_t i = 0; i < r->n; i++) {                                                   \
            const gcp_real x = xs[i], y = ys[i], z = zs[i];                                             \
            (void)x; (void)y; (void)z; (void)p; (void)fused;                                            \
            to[i] = (value);                                                                            \
        }                                                                                               \
    }                                                                                                   \
    GCPI_EACH_SET(gcpi_pair_##name, (const gcpi_pair_run *r), (r), r->target,                           \
                  gcpi_pair_##name##_body(r, 0), gcpi_pair_##name##_body(r, 1))
GCPI_CALLS
GCPI_PAIR_LOOPS(GCPI_PAIR_LOOP)
GCPI_CALLS_END
#define GCPI_PAIR_LOOP_AT(NAME, name, value) gcpi_pair_##name,
static const gcpi_pair_fn gcpi_pair_fns[] = { GCPI_PAIR_LOOPS(GCPI_PAIR_LOOP_AT) };
static const gcpi_pair_step gcpi_pair_steps[][3] = { GCPI_PAIRS(GCPI_PAIR_STEPS) };     /* y; gradients of a and b */

/* sums[i] += r->x[0][i]; with lanes, element i goes to sum i % GCPI_PAIR_LANES. */
GCPI_BODY void gcpi_pair_total_body(const gcpi_pair_run *r, double *sums, int lanes)
{
    size_t i = 0;
    if (!lanes) { GCPI_EACH for (size_t k = 0; k < r->n; k++) sums[k] += (double)r->x[0][k]; return; }
    for (; i + GCPI_PAIR_LANES <= r->n; i += GCPI_PAIR_LANES)
        GCPI_EIGHT for (int k = 0; k < GCPI_PAIR_LANES; k++) sums[k] += (double)r->x[0][i + (size_t)k];
    for (int k = 0; i < r->n; i++, k++) sums[k] += (double)r->x[0][i];
}
GCPI_WIDE(gcpi_pair_total, (const gcpi_pair_run *r, double *sums, int lanes), (r, sums, lanes), r->target)

/* Where n elements from e on lie side by side in a view, as gcp_real; NULL: they do not. */
static gcp_real *gcpi_pair_there(const gcp_view *v, size_t e, size_t n)
{
    const size_t c = (size_t)v->shape.d[3];
    if (v->dtype == GCP_DTYPE_BF16) return NULL;
    if (v->pitch == (ptrdiff_t)c) return (gcp_real *)v->data + e;
    return e % c + n <= c ? gcpi_row_out(v, e / c) + e % c : NULL;
}
/* Element e, and how many of n lie side by side from it on. */
static gcpi_array gcpi_pair_element(const gcp_view *v, size_t e, size_t n, size_t *run)
{
    const size_t c = (size_t)v->shape.d[3];
    *run = v->pitch == (ptrdiff_t)c ? n : GCPI_MIN(n, c - e % c);
    return gcpi_elements(v, e / c, (int)(e % c));
}
/* They, where they lie or in the buffer. */
static const gcp_real *gcpi_pair_load(const gcpi_halves *h, const gcp_view *v, size_t e, size_t step, size_t n,
                                      gcp_real *buffer)
{
    const gcp_real *there = step ? gcpi_pair_there(v, e, n) : NULL;
    size_t run;
    if (there) return there;
    for (size_t i = 0, all = step ? n : 1; i < all; i += run) {
        const gcpi_array from = gcpi_pair_element(v, e + i, all - i, &run);
        gcpi_array_load(h, from, 0, buffer + i, 0, 1, (ptrdiff_t)run);
    }
    for (size_t i = 1; !step && i < n; i++) buffer[i] = buffer[0];
    return buffer;
}
/* from: n values, at most GCPI_PAIR_RUN. */
static void gcpi_pair_store(const gcpi_halves *h, const gcp_view *v, size_t e, size_t n, const gcp_real *from)
{
    gcp_real sums[GCPI_PAIR_RUN];
    size_t run;
    for (size_t i = 0; i < n; i += run) {
        const gcpi_array to = gcpi_pair_element(v, e + i, n - i, &run);
        if (v->accumulate) gcpi_array_load(h, to, 0, sums, 0, 1, (ptrdiff_t)run);
        for (size_t k = 0; k < run; k++) sums[k] = v->accumulate ? sums[k] + from[i + k] : from[i + k];
        gcpi_array_store(h, to, 0, sums, 0, 1, (ptrdiff_t)run);
    }
}

/* side: 0 forward, 1 and 2 the gradient of that operand, which is `to`. A task: so many units; a unit of the result is
   a run. A unit of sums is a run of the gradient where the innermost loop is not summed, else one element; its rows
   are cut into blocks. */
typedef struct gcpi_pair_job {
    const gcp_call *call;
    const gcp_view *to;
    gcpi_pair_loops loops;
    const gcpi_pair_step *step;
    int side, lanes;
    size_t runs, units, chunk, rows, blocks, width;      /* runs: of the innermost loop; width: of a sum */
} gcpi_pair_job;

static gcpi_pair_job gcpi_pair_job_of(const gcp_call *c, int side)
{
    gcpi_pair_job j;
    memset(&j, 0, sizeof j);
    j.call = c; j.side = side;
    j.step = &gcpi_pair_steps[gcpi_attr(c->attributes)->pair.fn][side];
    j.to = side ? &c->din[side - 1] : &c->out[0];
    j.loops = gcpi_pair_loops_of(c->in[0].shape, c->inputs > 1 ? c->in[1].shape : c->out[0].shape);
    j.runs = (j.loops.size[0] + GCPI_PAIR_RUN - 1) / GCPI_PAIR_RUN;
    return j;
}

/* Adds the place of row `index` of the loops behind the first that are summed, or are not; both: all. */
enum { GCPI_PAIR_BOTH = 2 };
static void gcpi_pair_at(const gcpi_pair_job *j, size_t index, int summed, size_t *e)
{
    const gcpi_pair_loops *l = &j->loops;
    for (int k = 1; k < l->count; k++) {
        if (summed != GCPI_PAIR_BOTH && summed != (l->step[j->side][k] == 0)) continue;
        for (int o = 0; o < 3; o++) e[o] += index % l->size[k] * l->step[o][k];
        index /= l->size[k];
    }
}
/* The run of n elements at e, the operands' first ones; hold: a buffer each for x, y and z. */
static void gcpi_pair_run_at(const gcpi_pair_job *j, const size_t *e, size_t n, gcp_real (*hold)[GCPI_PAIR_RUN],
                             gcpi_pair_run *r)
{
    const gcp_call *c = j->call;
    const gcp_view *views[3];
    views[0] = j->side ? &c->dout[0] : NULL; views[1] = &c->in[0]; views[2] = c->inputs > 1 ? &c->in[1] : NULL;
    r->to = NULL; r->n = n; r->target = c->target;
    r->p = (gcp_real)gcpi_attr(c->attributes)->pair.p;
    for (int k = 0; k < 3; k++) {
        const int o = j->step->x[k];
        r->x[k] = gcpi_pair_load(gcpi_halves_of(c->target->isa), views[o], e[o], j->loops.step[o][0], n, hold[k]);
    }
}
static size_t gcpi_pair_run_length(const gcpi_pair_job *j, size_t run)
{
    return GCPI_MIN((size_t)GCPI_PAIR_RUN, j->loops.size[0] - run * GCPI_PAIR_RUN);
}
static void gcpi_pair_run_place(const gcpi_pair_job *j, size_t run, size_t *e)
{
    for (int o = 0; o < 3; o++) e[o] += run * GCPI_PAIR_RUN * j->loops.step[o][0];
}

static void gcpi_pair_task(void *arg, int index, int worker)
{
    const gcpi_pair_job *j = (const gcpi_pair_job *)arg;
    gcp_real hold[4][GCPI_PAIR_RUN];
    const size_t first = (size_t)index * j->chunk, last = GCPI_MIN(first + j->chunk, j->units);
    memset(hold, 0, sizeof hold);
    for (size_t u = first; u < last; u++) {
        const size_t n = gcpi_pair_run_length(j, u % j->runs);
        size_t e[3] = { 0, 0, 0 };
        gcpi_pair_run_place(j, u % j->runs, e);
        gcpi_pair_at(j, u / j->runs, GCPI_PAIR_BOTH, e);
        gcpi_pair_run r;
        gcpi_pair_run_at(j, e, n, hold, &r);
        gcp_real *there = gcpi_pair_there(j->to, e[0], n);
        r.to = there && !j->to->accumulate ? there : hold[3];
        gcpi_pair_fns[j->step->loop](&r);
        if (r.to == there) continue;
        if (!there) { gcpi_pair_store(gcpi_halves_of(r.target->isa), j->to, e[0], n, hold[3]); continue; }
        r.x[0] = r.to = there; r.x[1] = r.x[2] = hold[3];
        gcpi_pair_sum(&r);
    }
    (void)worker;
}
static void gcpi_pair_each(gcpi_pair_job *j)
{
    j->units = j->runs;
    for (int k = 1; k < j->loops.count; k++) j->units *= j->loops.size[k];
    j->chunk = GCPI_MAX((size_t)1, GCPI_CHUNK / GCPI_MIN(j->loops.size[0], (size_t)GCPI_PAIR_RUN));
    gcpi_parallel(j->call->target, (int)((j->units + j->chunk - 1) / j->chunk), gcpi_pair_task, j);
}

/* ---- the gradient of an operand that is spread: sums in double ---- */

static void gcpi_pair_sums_cut(gcpi_pair_job *j)
{
    const gcpi_pair_loops *l = &j->loops;
    j->lanes = l->step[j->side][0] == 0;
    j->units = j->lanes ? 1 : j->runs;
    j->rows = j->lanes ? j->runs : 1;
    for (int k = 1; k < l->count; k++) *(l->step[j->side][k] ? &j->units : &j->rows) *= l->size[k];
    j->width = j->lanes ? (size_t)GCPI_PAIR_LANES : GCPI_MIN(l->size[0], (size_t)GCPI_PAIR_RUN);
    j->blocks = GCPI_MAX((size_t)1, GCPI_MIN(GCPI_PAIR_BLOCKS / j->units, j->rows / GCPI_PAIR_ROWS));
    j->chunk = GCPI_MAX((size_t)1, GCPI_CHUNK / j->rows / GCPI_MIN(l->size[0], (size_t)GCPI_PAIR_RUN));
}
/* A block of the unit's rows. The first places: a row of what is summed, a run where that is cut, too. */
static void gcpi_pair_sums_of(const gcpi_pair_job *j, size_t unit, size_t block, double *sums,
                              gcp_real (*hold)[GCPI_PAIR_RUN])
{
    const size_t first = j->rows * block / j->blocks, last = j->rows * (block + 1) / j->blocks;
    memset(sums, 0, j->width * sizeof *sums);
    for (size_t row = first; row < last; row++) {
        const size_t run = (j->lanes ? row : unit) % j->runs, n = gcpi_pair_run_length(j, run);
        size_t e[3] = { 0, 0, 0 };
        gcpi_pair_run_place(j, run, e);
        gcpi_pair_at(j, j->lanes ? unit : unit / j->runs, 0, e);
        gcpi_pair_at(j, j->lanes ? row / j->runs : row, 1, e);
        gcpi_pair_run r;
        gcpi_pair_run_at(j, e, n, hold, &r);
        r.to = hold[3];
        gcpi_pair_fns[j->step->loop](&r);
        r.x[0] = hold[3];
        gcpi_pair_total(&r, sums, j->lanes);
    }
}
static void gcpi_pair_sums_store(const gcpi_pair_job *j, size_t unit, double *sums)
{
    const size_t run = j->lanes ? 0 : unit % j->runs, n = j->lanes ? 1 : gcpi_pair_run_length(j, run);
    gcp_real values[GCPI_PAIR_RUN];
    size_t e[3] = { 0, 0, 0 };
    for (int k = 1; j->lanes && k < GCPI_PAIR_LANES; k++) sums[0] += sums[k];
    for (size_t i = 0; i < n; i++) values[i] = (gcp_real)sums[i];
    gcpi_pair_run_place(j, run, e);
    gcpi_pair_at(j, j->lanes ? unit : unit / j->runs, 0, e);
    gcpi_pair_store(gcpi_halves_of(j->call->target->isa), j->to, e[j->side], n, values);
}
static void gcpi_pair_sums_task(void *arg, int index, int worker)
{
    const gcpi_pair_job *j = (const gcpi_pair_job *)arg;
    gcp_real hold[4][GCPI_PAIR_RUN];
    double sums[GCPI_PAIR_RUN];
    memset(hold, 0, sizeof hold);
    if (j->blocks > 1) {
        const size_t unit = (size_t)index / j->blocks, block = (size_t)index % j->blocks;
        gcpi_pair_sums_of(j, unit, block, (double *)j->call->workspace + (size_t)index * j->width, hold);
        return;
    }
    for (size_t u = (size_t)index * j->chunk, last = GCPI_MIN(u + j->chunk, j->units); u < last; u++) {
        gcpi_pair_sums_of(j, u, 0, sums, hold);
        gcpi_pair_sums_store(j, u, sums);
    }
    (void)worker;
}
static void gcpi_pair_sums(gcpi_pair_job *j)
{
    double *sums = (double *)j->call->workspace;
    gcpi_pair_sums_cut(j);
    const size_t tasks = j->blocks > 1 ? j->units * j->blocks : (j->units + j->chunk - 1) / j->chunk;
    gcpi_parallel(j->call->target, (int)tasks, gcpi_pair_sums_task, j);
    for (size_t u = 0; j->blocks > 1 && u < j->units; u++, sums += j->blocks * j->width) {
        for (size_t i = j->width; i < j->blocks * j->width; i++) sums[i % j->width] += sums[i];
        gcpi_pair_sums_store(j, u, sums);
    }
}

/* ---- rows ---- */

static int gcpi_expand_shape(gcp_shape_call *s)
{
    const gcp_shape to = gcpi_attr(s->attributes)->pair.to;
    for (int k = 0; k < 4; k++)
        if (s->in[0].d[k] != to.d[k] && s->in[0].d[k] != 1)
            return gcpi_refuse(s, "%s to %s: each size must be equal, or 1 before", GCPI_SHAPE_TEXT(s->in[0]),
                               GCPI_SHAPE_TEXT(to));
    s->out[0] = to;
    return gcpi_all_real(s);
}
static int gcpi_pair_shape(gcp_shape_call *s)
{
    for (int k = 0; k < 4; k++)
        if (s->in[0].d[k] != s->in[1].d[k] && s->in[0].d[k] != 1 && s->in[1].d[k] != 1)
            return gcpi_refuse(s, "%s and %s: each size must be equal, or 1 in one of them",
                               GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[1]));
    s->out[0] = gcpi_pair_out(s->in[0], s->in[1]);
    return gcpi_all_real(s);
}
static void gcpi_pair_forward(const gcp_call *c)
{
    gcpi_pair_job j = gcpi_pair_job_of(c, 0);
    gcpi_pair_each(&j);
}
/* Input 1 comes first, since input 0's gradient may overwrite dy. For x * x input 0 does: the other adds to it. */
static void gcpi_pair_backward(const gcp_call *c)
{
    const int same = c->inputs > 1 && c->din[0].data == c->din[1].data;
    for (int k = 0; k < 2; k++) {
        const int i = same ? k : 1 - k;
        if (i >= c->inputs || !c->din[i].data) continue;
        gcpi_pair_job j = gcpi_pair_job_of(c, 1 + i);
        if (gcpi_same_shape(c->din[i].shape, c->dout[0].shape)) gcpi_pair_each(&j);
        else gcpi_pair_sums(&j);
    }
}
static void gcpi_pair_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    for (int i = 0; i < c->inputs && c->backward; i++) {
        gcpi_pair_job j;
        if (!(c->wanted >> i & 1) || gcpi_same_shape(c->in[i], c->out[0])) continue;
        memset(&j, 0, sizeof j);
        j.side = 1 + i;
        j.loops = gcpi_pair_loops_of(c->in[0], c->inputs > 1 ? c->in[1] : c->out[0]);
        j.runs = (j.loops.size[0] + GCPI_PAIR_RUN - 1) / GCPI_PAIR_RUN;
        gcpi_pair_sums_cut(&j);
        if (j.blocks > 1) cost->workspace = GCPI_MAX(cost->workspace, j.units * j.blocks * j.width * sizeof(double));
    }
}
/* expand and two parts of losses are no ops of two operands to the user; the others are. */
static void gcpi_pair_call(gcpi_code *c, const gcpi_op *op)
{
    const int fn = op->attributes.pair.fn;
    const double p = op->attributes.pair.p;
    if (fn == GCPI_PAIR_LOGITS) gcpi_code_loss(c, op, "binary_cross_entropy", "positive", p);
    else if (fn == GCPI_PAIR_HUBER) gcpi_code_loss(c, op, p == 0 ? "l1" : "smooth_l1", "beta", p == 0 ? 1 : p);
    else gcpi_code_call(c, op, op->row->name, 0, op->inputs);
    if (fn != GCPI_PAIR_EXPAND) return;
    gcpi_say(c->w, ", ");
    gcpi_code_shape(c, op->attributes.pair.to);
}
static void gcpi_pair_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_pair_call;
    f->shared = op->attributes.pair.whole;
    f->dense_on_device = op->attributes.pair.spread;
}

#define GCPI_PAIR_ROW(name, shape, reads, flags)                                                                   \
    static const gcpi_op_row gcpi_##name##_pair_row = {                                                     \
        GCP_OP_PAIR,                                                                                        \
        { #name, shape, gcpi_pair_forward, gcpi_pair_backward, gcpi_pair_cost, reads, 0,          \
          GCPI_OVER | GCP_FLAG_BF16 | (flags), 1, NULL },                                                   \
        gcpi_pair_facts                                                                                     \
    };
GCPI_PAIR_ROW(add, gcpi_pair_shape, 0, 0)
GCPI_PAIR_ROW(sub, gcpi_pair_shape, 0, 0)
GCPI_PAIR_ROW(mul, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), GCP_FLAG_CROSS)
GCPI_PAIR_ROW(div, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), 0)
GCPI_PAIR_ROW(maximum, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), 0)
GCPI_PAIR_ROW(minimum, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), 0)
GCPI_PAIR_ROW(prelu, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), 0)
GCPI_PAIR_ROW(expand, gcpi_expand_shape, 0, 0)
GCPI_PAIR_ROW(huber, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), 0)
GCPI_PAIR_ROW(logits, gcpi_pair_shape, GCPI_IN(0) | GCPI_IN(1), 0)
#define gcpi_pair_row gcpi_mul_pair_row            /* the table's: facts and functions are those of all */

static gcp_tensor gcpi_pair(const gcpi_op_row *row, int fn, double p, gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    const gcp_shape x = gcp_shape_of(a), y = gcp_shape_of(b);
    gcpi_attributes attributes = gcpi_no_attributes();
    gcp_tensor in[2];
    in[0] = a; in[1] = b;
    attributes.pair.fn = fn; attributes.pair.p = p;
    for (int k = 0; k < 4; k++)
        attributes.pair.spread |= (x.d[k] < y.d[k] ? GCPI_IN(0) : 0) | (y.d[k] < x.d[k] ? GCPI_IN(1) : 0);
    attributes.pair.whole = (x.d[0] < y.d[0] ? GCPI_IN(0) : 0) | (y.d[0] < x.d[0] ? GCPI_IN(1) : 0);
    return gcpi_simple(row, in, 2, &attributes, o.name, o.at);
}

/* ---- add of equal shapes ---- */

GCPI_BODY void gcpi_add_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    if (s->half) GCPI_EACH for (size_t i = 0; i < s->n; i++) GCPI_PUT(1, y, i, GCPI_AT(1, a, i) + GCPI_AT(1, b, i))
    else GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] + b[i];
}
GCPI_WIDE_SPAN(gcpi_add_span)
static void gcpi_add_forward(const gcp_call *c)
{
    const gcp_view *v[3];
    v[0] = &c->in[0]; v[1] = &c->in[1]; v[2] = &c->out[0];
    gcpi_map(c, gcpi_add_span, 1, v, 3, 2, NULL, 0);
}
static void gcpi_add_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->din[i].data) gcpi_view_copy(c, &c->din[i], &c->dout[0], c->din[i].accumulate);
}
static void gcpi_add_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->part = GCPI_PART_ADD; }
static const gcpi_op_row gcpi_add_row = {
    GCP_OP_ADD,
    { "add", gcpi_pair_shape, gcpi_add_forward, gcpi_add_backward, NULL, 0, 0,
      GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_VIEW | GCPI_EACH_ONE | GCP_FLAG_BF16, 1, NULL },
    gcpi_add_facts
};

GCPI_DEF gcp_tensor gcp_add_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    const int equal = gcpi_same_shape(gcp_shape_of(a), gcp_shape_of(b));
    return equal ? gcpi_binary(&gcpi_add_row, a, b, o) : gcpi_pair(&gcpi_add_pair_row, GCPI_PAIR_ADD, 0, a, b, o);
}
#define GCPI_PAIR_OP(NAME, op) \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o) \
    { \
        return gcpi_pair(&gcpi_##op##_pair_row, GCPI_PAIR_##NAME, 0, a, b, o); \
    }
GCPI_PAIR_OP(SUB, sub)
GCPI_PAIR_OP(MUL, mul)
GCPI_PAIR_OP(DIV, div)
GCPI_PAIR_OP(MAXIMUM, maximum)
GCPI_PAIR_OP(MINIMUM, minimum)
GCPI_PAIR_OP(PRELU, prelu)
GCPI_DEF gcp_tensor gcp_expand_at(gcp_tensor x, gcp_shape raw, gcp_op_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    const gcp_shape s = gcp_shape_of(x);
    char wrong[160];
    if (!gcpi_shape_normal(raw, &a.pair.to)) {
        if (gcpi_enter(x, o.at, "expand"))
            gcpi_fail(x.tape, GCP_E_ARGUMENT, o.at, "expand", "its output %s",
                      gcpi_shape_wrong(raw, wrong, sizeof wrong));
        return gcpi_nil(x.tape);
    }
    a.pair.fn = GCPI_PAIR_EXPAND;
    a.pair.spread = !gcpi_same_shape(s, a.pair.to);
    a.pair.whole = s.d[0] < a.pair.to.d[0];
    return gcpi_simple(&gcpi_expand_pair_row, &x, 1, &a, o.name, o.at);
}
