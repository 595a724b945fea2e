/* Products of matrices: matmul. One product, or one for each of a batch of matrices, of either operand or of its
   transpose. An operand of one matrix serves all of a batch, and its gradient is a sum over the batch, in order. */

/* An operand as matrices: n by h of them. many: sizes before the last two count matrices; else they are rows. */
typedef struct gcpi_matrices {
    int n, h, rows, columns, accumulate; ptrdiff_t pitch; gcpi_array data;
} gcpi_matrices;
static gcpi_matrices gcpi_matrices_of(gcp_shape s, int many)
{
    gcpi_matrices m;
    memset(&m, 0, sizeof m);
    many &= s.rank > 2;
    m.n = many ? s.d[0] : 1;
    m.h = many ? s.d[1] : 1;
    m.rows = many ? s.d[2] : (int)GCPI_MIN(gcpi_pixels(s), (size_t)INT32_MAX);
    m.columns = s.d[3];
    return m;
}
static gcpi_matrices gcpi_matrices_in(const gcp_view *v, int many)
{
    gcpi_matrices m = gcpi_matrices_of(v->shape, many);
    m.pitch = v->pitch; m.data = gcpi_elements(v, 0, 0); m.accumulate = v->accumulate;
    return m;
}
/* Of matrix (n, h) of the batch. */
static gcpi_array gcpi_matrix_at(const gcpi_matrices *m, int n, int h)
{
    return gcpi_array_at(m->data, ((ptrdiff_t)(m->n > 1 ? n : 0) * m->h + (m->h > 1 ? h : 0)) * m->rows * m->pitch);
}

static int gcpi_matmul_shape(gcp_shape_call *s)
{
    const gcpi_attributes *at = gcpi_attr(s->attributes);
    const int many = at->matmul.many;
    const gcpi_matrices a = gcpi_matrices_of(s->in[0], many), b = gcpi_matrices_of(s->in[1], many);
    const int m = at->matmul.ta ? a.columns : a.rows, k = at->matmul.ta ? a.rows : a.columns,
              n = at->matmul.tb ? b.rows : b.columns;
    if (k != (at->matmul.tb ? b.columns : b.rows) || (a.n != b.n && a.n > 1 && b.n > 1) ||
        (a.h != b.h && a.h > 1 && b.h > 1))
        return gcpi_refuse(
            s, "%s%s times %s%s; a product is of matrices (rows, k) and (k, columns), one or a batch of as many: of "
               "(n, k) by (k, m) sizes before the last count as rows",
            GCPI_SHAPE_TEXT(s->in[0]), at->matmul.ta ? " transposed" : "", GCPI_SHAPE_TEXT(s->in[1]),
            at->matmul.tb ? " transposed" : "");
    s->out[0] = many ? gcpi_raw(GCPI_MAX(s->in[0].rank, s->in[1].rank), GCPI_MAX(a.n, b.n), GCPI_MAX(a.h, b.h), m, n)
              : at->matmul.ta ? gcpi_raw(2, m, 1, 1, n) : s->in[0];
    s->out[0].d[3] = n;
    if (gcpi_pixels(s->in[0]) > INT32_MAX || gcpi_pixels(s->in[1]) > INT32_MAX ||
        gcpi_pixels(s->out[0]) > INT32_MAX || GCPI_MAX(k, n) > GCPI_CHANNELS_MAX)
        return gcpi_refuse(s, "%s times %s is too large: at most 2^31 - 1 rows and 2^30 columns",
                           GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[1]));
    return gcpi_all_real(s);
}

/* The result y of a b, or a gradient, as a product of two of them, each transposed or not. */
enum { GCPI_MATMUL_Y, GCPI_MATMUL_A, GCPI_MATMUL_B };
typedef struct gcpi_matmul_side { int left, right, tl, tr; } gcpi_matmul_side;
static gcpi_matmul_side gcpi_matmul_side_of(const gcpi_attributes *at, int side)
{
    const int ta = at->matmul.ta, tb = at->matmul.tb;
    const gcpi_matmul_side y = { GCPI_MATMUL_A, GCPI_MATMUL_B, ta, tb };
    const gcpi_matmul_side da = { GCPI_MATMUL_Y, GCPI_MATMUL_B, 0, !tb }, da_turned = { da.right, da.left, tb, 1 };
    const gcpi_matmul_side db = { GCPI_MATMUL_A, GCPI_MATMUL_Y, !ta, 0 }, db_turned = { db.right, db.left, 1, ta };
    return side == GCPI_MATMUL_Y ? y : side == GCPI_MATMUL_A ? (ta ? da_turned : da) : tb ? db_turned : db;
}

/* Many matrices are a task each, on one thread; a few are one after another, on all. */
enum { GCPI_MATMUL_TASKS = 8 };
typedef struct gcpi_matmul_job {
    gcpi_matrices of[3];                   /* y, a, b; the result in the place of one of them */
    gcpi_matmul_side side;
    int to, n, h, exact;                   /* to: which is the result; n, h: the batch; exact: some is never rounded */
    gcpi_par par;
    size_t sums, scratch;                  /* bytes of a worker's: a result in floats, and behind it all scratch */
    unsigned char *workspace;
} gcpi_matmul_job;

static int gcpi_matmul_exact(gcp_shape a, gcp_shape b, gcp_shape y)
{
    return gcpi_one_a_sample(a) || gcpi_one_a_sample(b) || gcpi_one_a_sample(y);
}
static void gcpi_matmul_plan(gcpi_matmul_job *j, const gcpi_attributes *at, int to, const gcp_target *target,
                             gcp_store store)
{
    const gcpi_matrices *y = &j->of[to];
    j->to = to; j->side = gcpi_matmul_side_of(at, to);
    j->n = GCPI_MAX(j->of[1].n, j->of[2].n); j->h = GCPI_MAX(j->of[1].h, j->of[2].h);
    j->par = (int64_t)y->n * y->h < GCPI_MATMUL_TASKS ? gcpi_par_of(target, store)
                                                      : gcpi_serial_par(target, store);
    j->par.duos &= !j->exact;
    const gcpi_matrices *left = &j->of[j->side.left];
    const int several = y->n < j->n || y->h < j->h, outer = j->side.tl && !j->side.tr;
    j->sums = store && (several || outer)
                  ? gcpi_round((size_t)y->rows * (size_t)y->columns * sizeof(gcp_real), target->align)
                  : 0;
    j->scratch = j->sums + gcpi_round(gcpi_gemm_scratch(j->side.tl, j->side.tr, y->rows, y->columns,
                                                        j->side.tl ? left->rows : left->columns, &j->par),
                                      target->align);
}
/* Matrix `index` of the result: a product, or the sum of those that its one matrix serves. */
static void gcpi_matmul_task(void *arg, int index, int worker)
{
    const gcpi_matmul_job *j = (const gcpi_matmul_job *)arg;
    const gcpi_matrices *y = &j->of[j->to], *left = &j->of[j->side.left], *right = &j->of[j->side.right];
    const int n0 = index / y->h, h0 = index % y->h, ns = y->n == j->n ? 1 : j->n, hs = y->h == j->h ? 1 : j->h;
    unsigned char *room = j->workspace + (size_t)worker * j->scratch;
    const gcpi_halves *halves = gcpi_halves_of(j->par.isa);
    const gcpi_array to = gcpi_matrix_at(y, n0, h0), sums = gcpi_reals((gcp_real *)(void *)room);
    const int apart = to.half && j->sums;              /* several parts make a result that is rounded once */
    if (apart && y->accumulate)
        gcpi_array_load(halves, to, y->pitch, (gcp_real *)sums.at, y->columns, y->rows, y->columns);
    for (int i = 0; i < ns * hs; i++) {
        const int n = n0 + i / hs, h = h0 + i % hs;
        gcpi_gemm(j->side.tl, j->side.tr, y->rows, y->columns, j->side.tl ? left->rows : left->columns,
                  gcpi_matrix_at(left, n, h), left->pitch, gcpi_matrix_at(right, n, h), right->pitch, NULL,
                  apart ? sums : to, apart ? y->columns : y->pitch, i || y->accumulate, room + j->sums, &j->par);
    }
    if (apart) gcpi_array_store(halves, to, y->pitch, (const gcp_real *)sums.at, y->columns, y->rows, y->columns);
}
static void gcpi_matmul_run(const gcp_call *c, int to, const gcp_view *y, const gcp_view *result)
{
    const gcpi_attributes *at = gcpi_attr(c->attributes);
    gcpi_matmul_job j;
    j.of[GCPI_MATMUL_Y] = gcpi_matrices_in(y, at->matmul.many);
    j.of[GCPI_MATMUL_A] = gcpi_matrices_in(&c->in[0], at->matmul.many);
    j.of[GCPI_MATMUL_B] = gcpi_matrices_in(&c->in[1], at->matmul.many);
    j.of[to] = gcpi_matrices_in(result, at->matmul.many);
    j.exact = gcpi_matmul_exact(c->in[0].shape, c->in[1].shape, y->shape);
    gcpi_matmul_plan(&j, at, to, c->target, c->store);
    j.workspace = (unsigned char *)c->workspace;
    const int tasks = j.of[to].n * j.of[to].h;
    if (tasks >= GCPI_MATMUL_TASKS) { gcpi_parallel(c->target, tasks, gcpi_matmul_task, &j); return; }
    for (int i = 0; i < tasks; i++) gcpi_matmul_task(&j, i, 0);
}
static void gcpi_matmul_forward(const gcp_call *c) { gcpi_matmul_run(c, GCPI_MATMUL_Y, &c->out[0], &c->out[0]); }
static void gcpi_matmul_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->din[i].data) gcpi_matmul_run(c, GCPI_MATMUL_A + i, &c->dout[0], &c->din[i]);
}
static void gcpi_matmul_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    const gcpi_attributes *at = gcpi_attr(c->attributes);
    gcpi_matmul_job j;
    j.of[GCPI_MATMUL_Y] = gcpi_matrices_of(c->out[0], at->matmul.many);
    for (int i = 0; i < 2; i++) j.of[GCPI_MATMUL_A + i] = gcpi_matrices_of(c->in[i], at->matmul.many);
    j.exact = gcpi_matmul_exact(c->in[0], c->in[1], c->out[0]);
    for (int to = GCPI_MATMUL_Y; to <= GCPI_MATMUL_B; to++) {
        if (c->backward ? to == GCPI_MATMUL_Y || !(c->wanted >> (to - 1) & 1) : to != GCPI_MATMUL_Y) continue;
        gcpi_matmul_plan(&j, at, to, c->target, c->store);
        const int many = (int64_t)j.of[to].n * j.of[to].h >= GCPI_MATMUL_TASKS;
        cost->flops += 2.0 * j.n * j.h * j.of[0].rows * j.of[0].columns *
                       (at->matmul.ta ? j.of[1].rows : j.of[1].columns);
        cost->workspace = GCPI_MAX(cost->workspace, j.scratch * (many ? (size_t)c->target->threads : 1));
    }
}
static void gcpi_matmul_call(gcpi_code *c, const gcpi_op *op)
{
    gcpi_code_call(c, op, "matmul", 0, 2);
    gcpi_code_int(c, "transpose_a", op->attributes.matmul.ta, 0);
    gcpi_code_int(c, "transpose_b", op->attributes.matmul.tb, 0);
}
static void gcpi_matmul_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->call = gcpi_matmul_call;
    f->apart = op->attributes.matmul.many || !op->attributes.matmul.ta;
    f->shared = op->attributes.matmul.shared;
    f->dense_on_device = f->floats_on_device = GCPI_IN(1);
}
#define GCPI_MATMUL_ROW(NAME, name)                                                                                    \
    static const gcpi_op_row gcpi_##name##_row = {                                                                     \
        GCP_OP_##NAME,                                                                                                 \
        { "matmul", gcpi_matmul_shape, gcpi_matmul_forward, gcpi_matmul_backward, gcpi_matmul_cost,                    \
          GCPI_IN(0) | GCPI_IN(1), 0, GCPI_PRODUCT | GCP_FLAG_BF16, 1, NULL },                                         \
        gcpi_matmul_facts                                                                                              \
    };
GCPI_MATMUL_ROW(MATMUL, matmul)             /* one product, nothing transposed */
GCPI_MATMUL_ROW(MATMULS, matmuls)

GCPI_COLD

GCPI_DEF gcp_tensor gcp_matmul_at(gcp_tensor a, gcp_tensor b, gcp_matmul_opts o)
{
    const gcp_shape x = gcp_shape_of(a), y = gcp_shape_of(b);
    gcpi_attributes at = gcpi_no_attributes();
    gcp_tensor in[2];
    in[0] = a; in[1] = b;
    at.matmul.ta = o.transpose_a != 0;
    at.matmul.tb = o.transpose_b != 0;
    const int one = y.d[0] == 1 && y.d[1] == 1 && x.rank > 2;       /* b is one matrix: a's are rows of one product */
    at.matmul.many = (y.rank > 2 && !one) || (x.rank > 2 && at.matmul.ta);
    const gcpi_matrices left = gcpi_matrices_of(x, at.matmul.many), right = gcpi_matrices_of(y, at.matmul.many);
    at.matmul.shared = at.matmul.many ? (left.n < right.n ? GCPI_IN(0) : 0) | (right.n < left.n ? GCPI_IN(1) : 0)
                                      : GCPI_IN(1);
    const int plain = !at.matmul.many && !at.matmul.ta && !at.matmul.tb;
    gcp_tensor result = gcpi_simple(plain ? &gcpi_matmul_row : &gcpi_matmuls_row, in, 2, &at, o.name, o.at);
    const gcpi_tensor *weights = gcp_is_nil(result) || at.matmul.tb ? NULL : gcpi_get(b);
    if (!weights || weights->kind != GCPI_PARAMETER) return result;
    gcpi_parameter *p = &b.tape->parameters[weights->parameter];
    if (p->fan_in == 0) p->fan_in = right.rows;                                /* not given: k of (k, m) */
    if (p->fan_out == 0) p->fan_out = right.columns;
    return result;
}
GCPI_WARM
