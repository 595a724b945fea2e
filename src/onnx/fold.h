/* Folding: what is known before a step. Exporters leave arithmetic about shapes behind, Shape, Gather, Concat and so
   on; once a recording fixes the shapes it is done here, in double, and never runs. So are constants of floats, if they
   are few. An initialiser of floats is a weight and is not folded, unless it is a number. */

enum { GCPI_ONNX_FOLDED = 1 << 16 }; /* the most elements of a folded value */

static ptrdiff_t gcpi_onnx_elements(const gcpi_onnx_value *v)
{
    ptrdiff_t n = 1;
    for (int i = 0; i < v->rank; i++) n *= v->d[i];
    return n;
}
/* An initialiser of one element is a weight where its name has a dot, as those of parameters have: block.scale. */
static int gcpi_onnx_trains(const gcpi_onnx *m, int data)
{
    const gcpi_onnx_data *d = &m->data[data];
    return data < m->initializers && d->rank > 0 && gcpi_onnx_is_real(d->type) &&
           (d->count > 1 || d->fresh || (d->name.size && memchr(d->name.at, '.', d->name.size)));
}
static int gcpi_onnx_is_weight(const gcpi_onnx *m, const gcpi_onnx_value *v)
{
    return v->data >= 0 && gcpi_onnx_trains(m, v->data);
}
static double *gcpi_onnx_known_new(gcpi_onnx *m, const gcpi_onnx_value *v) /* NULL: too many, or no room */
{
    const ptrdiff_t n = gcpi_onnx_elements(v);
    if (n > GCPI_ONNX_FOLDED) return NULL;
    double *known = GCPI_NEW(m->arena, double, n + 1);
    if (!known && !m->tape->code)
        gcpi_fail(m->tape, GCP_E_NOMEM, m->at, m->call, "the model's arena of %td bytes is full", m->arena->size);
    return known;
}
/* The elements of a value that is known, be it a weight (numbers that an op needs now: a Resize's scales); NULL: it is
   not, or they are too many. */
static const double *gcpi_onnx_elements_of(gcpi_onnx *m, gcpi_onnx_value *v)
{
    if (!v || v->uniform) return NULL;
    if (v->known || v->data < 0 || !gcpi_onnx_type_size(v->type)) return v->known;
    if (m->data[v->data].fresh) return NULL;
    double *known = gcpi_onnx_known_new(m, v);
    if (!known) return NULL;
    gcpi_onnx_reader r = gcpi_onnx_reader_of(&m->data[v->data]);
    for (size_t i = 0; i < m->data[v->data].count && gcpi_onnx_read(&r, &known[i]); i++) {}
    return v->known = known;
}
static const double *gcpi_onnx_known(gcpi_onnx *m, gcpi_onnx_value *v)
{
    return v && gcpi_onnx_is_weight(m, v) ? NULL : gcpi_onnx_elements_of(m, v);
}
/* A number, where a value is one. */
static int gcpi_onnx_number(gcpi_onnx *m, gcpi_onnx_value *v, double *x)
{
    const double *known = v && v->shaped && gcpi_onnx_elements(v) == 1 ? gcpi_onnx_known(m, v) : NULL;
    if (known) *x = *known;
    return known != NULL;
}
/* v without what changes nothing: Identity, a cast among floats, a Dropout that drops nothing. */
static gcpi_onnx_value *gcpi_onnx_bare(gcpi_onnx *m, gcpi_onnx_value *v)
{
    for (gcpi_onnx_node *n; v && v->node >= 0; v = gcpi_onnx_in(m, n, 0)) {
        double rate;
        n = &m->nodes[v->node];
        const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
        rate = gcpi_onnx_float(n, "ratio", 0.5);
        gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &rate);
        const int cast = gcpi_excerpt_is(n->op, "Cast") || gcpi_excerpt_is(n->op, "CastLike");
        if (!gcpi_excerpt_is(n->op, "Identity") &&
            !(cast && x && gcpi_onnx_is_real(x->type) && gcpi_onnx_is_real(v->type)) &&
            !(gcpi_excerpt_is(n->op, "Dropout") && rate == 0))
            return v;
    }
    return v;
}
/* v without the Mul or Div by a number that made it; *scale is multiplied by that. */
static gcpi_onnx_value *gcpi_onnx_unscaled(gcpi_onnx *m, gcpi_onnx_value *v, double *scale)
{
    gcpi_onnx_node *times = gcpi_onnx_maker(m, v, "Mul"), *over = gcpi_onnx_maker(m, v, "Div");
    double by;
    for (int i = 0; times && i < 2; i++)
        if (gcpi_onnx_number(m, gcpi_onnx_in(m, times, i), &by)) {
            *scale *= by;
            return gcpi_onnx_in(m, times, 1 - i);
        }
    if (over && gcpi_onnx_number(m, gcpi_onnx_in(m, over, 1), &by) && by != 0) {
        *scale /= by;
        return gcpi_onnx_in(m, over, 0);
    }
    return v;
}
/* An attribute of older opsets that became an input. Returns how many integers; -1: not given; -2: not known now. */
static int gcpi_onnx_list(gcpi_onnx *m, const gcpi_onnx_node *n, const char *attribute, int input, int64_t *list,
                          int most)
{
    gcpi_onnx_value *v = gcpi_onnx_in(m, n, input);
    if (gcpi_onnx_given(n, attribute)) return gcpi_onnx_integers(n, attribute, list, most);
    if (!v) return -1;
    const double *known = gcpi_onnx_elements_of(m, v);
    if (!known) return -2;
    const int count = (int)gcpi_onnx_elements(v);
    for (int i = 0; i < count && i < most; i++)
        list[i] = known[i] >= 9e18 ? INT64_MAX : known[i] <= -9e18 ? INT64_MIN : (int64_t)known[i];
    return count;
}

/* ---- outputs ---- */

static int gcpi_onnx_shape(gcpi_onnx *m, const gcpi_onnx_node *n, int output, int type, int rank, const int *d)
{
    gcpi_onnx_value *v = gcpi_onnx_out(m, n, output);
    if (!v) return 1;
    if (rank > GCPI_AXES) return gcpi_onnx_refuse(m, n, "a result of %d axes; at most %d", rank, GCPI_AXES);
    ptrdiff_t count = 1;
    for (int i = 0; i < rank; i++) {
        if (d[i] < 0) return gcpi_onnx_refuse(m, n, "a size of %d", d[i]);
        if (count > INT32_MAX / GCPI_MAX(d[i], 1)) return gcpi_onnx_refuse(m, n, "more than %d elements", INT32_MAX);
        count *= GCPI_MAX(d[i], 1);
    }
    v->shaped = 1;
    v->type = type;
    v->rank = rank;
    for (int i = 0; i < rank; i++) v->d[i] = d[i];
    return 1;
}
static int gcpi_onnx_shape_like(gcpi_onnx *m, const gcpi_onnx_node *n, int output, const gcpi_onnx_value *like)
{
    return gcpi_onnx_shape(m, n, output, like->type, like->rank, like->d);
}
/* Sizes of two operands, the shorter filled with ones in front. 0: they do not fit. */
static int gcpi_onnx_broadcast(const gcpi_onnx_value *a, const gcpi_onnx_value *b, int *rank, int *d)
{
    *rank = GCPI_MAX(a->rank, b->rank);
    for (int i = 0; i < *rank; i++) {
        const int ai = i - *rank + a->rank, bi = i - *rank + b->rank, x = ai < 0 ? 1 : a->d[ai],
                  y = bi < 0 ? 1 : b->d[bi];
        if (x != y && x != 1 && y != 1) return 0;
        d[i] = x == 1 ? y : x;
    }
    return 1;
}
static int gcpi_onnx_axis(int64_t axis, int rank) /* -1: not one of rank */
{
    if (axis < 0) axis += rank;
    return axis < 0 || axis >= rank ? -1 : (int)axis;
}

/* ---- moving elements ---- */

/* to[i] = from[first + the step of each axis times its index] for a dense array of these sizes. */
static void gcpi_fold_view(double *to, int rank, const int *d, const double *from, ptrdiff_t first,
                           const ptrdiff_t *step)
{
    int at[GCPI_AXES] = { 0 };
    ptrdiff_t count = 1;
    for (int i = 0; i < rank; i++) count *= d[i];
    for (ptrdiff_t n = 0; n < count; n++) {
        *to++ = from[first];
        for (int i = rank - 1; i >= 0; i--) {
            first += step[i];
            if (++at[i] < d[i]) break;
            first -= step[i] * d[i];
            at[i] = 0;
        }
    }
}
static void gcpi_fold_steps(const gcpi_onnx_value *v, ptrdiff_t *step)
{
    ptrdiff_t n = 1;
    for (int i = v->rank - 1; i >= 0; i--) {
        step[i] = n;
        n *= v->d[i];
    }
}
/* The elements of v, spread over sizes of at least its rank, in scratch. NULL: no room. */
static double *gcpi_fold_spread(gcpi_onnx *m, gcpi_onnx_value *v, int rank, const int *d)
{
    ptrdiff_t steps[GCPI_AXES], step[GCPI_AXES], count = 1;
    const double *from = gcpi_onnx_known(m, v);
    gcpi_fold_steps(v, steps);
    for (int i = 0; i < rank; i++) {
        const int k = i - rank + v->rank;
        step[i] = k < 0 || v->d[k] == 1 ? 0 : steps[k];
        count *= d[i];
    }
    double *to = from && count <= GCPI_ONNX_FOLDED ? GCPI_SCRATCH(m->arena, double, count + 1) : NULL;
    if (to) gcpi_fold_view(to, rank, d, from, 0, step);
    return to;
}

/* ---- arithmetic ---- */

static double gcpi_fold_rounded(int type, double x)
{
    if (type == GCPI_ONNX_FLOAT) return (double)(float)x;
    if (gcpi_onnx_is_real(type)) return x;
    if (type == GCPI_ONNX_BOOL) return x != 0;
    return x > 9.2e18 || x < -9.2e18 ? x : x < 0 ? ceil(x) : floor(x); /* Cast and Div cut towards zero */
}
static double gcpi_fold_pair(char fn, double a, double b, int real)
{
    switch (fn) {
    case '+': return a + b;
    case '-': return a - b;
    case '*': return a * b;
    case '/': return !real && b == 0 ? 0 : a / b;
    case '^': return pow(a, b);
    case '%': return b == 0 ? 0 : real ? fmod(a, b) : a - b * floor(a / b);
    case 'M': return a > b ? a : b;
    case 'm': return a < b ? a : b;
    case '=': return a == b;
    case '<': return a < b;
    case '>': return a > b;
    case 'l': return a <= b;
    case 'g': return a >= b;
    case '&': return a != 0 && b != 0;
    default: return a != 0 || b != 0; /* '|' */
    }
}
static double gcpi_fold_one(char fn, double x)
{
    switch (fn) {
    case '-': return -x;
    case 'a': return fabs(x);
    case 's': return sqrt(x);
    case 'e': return exp(x);
    case 'l': return log(x);
    case 'f': return floor(x);
    case 'c': return ceil(x);
    case 'r': return 1 / x;
    case '!': return x == 0;
    case 'S': return sin(x);
    case 'C': return cos(x);
    case 'E': return erf(x);
    case 't': return tanh(x);
    case 'G': return 1 / (1 + exp(-x));
    case 'p': return log(1 + exp(x));
    case 'R': return x > 0 ? x : 0;
    default: return x;
    }
}
/* Folds a node that is a function of each element of one or two inputs, whose output has its shape. */
static void gcpi_fold_elements(gcpi_onnx *m, const gcpi_onnx_node *n, char fn)
{
    gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1), *y = gcpi_onnx_out(m, n, 0);
    const ptrdiff_t scratch = m->arena->scratch;
    if (!y || !gcpi_onnx_known(m, a) || (b && !gcpi_onnx_known(m, b))) return;
    const double *x = gcpi_fold_spread(m, a, y->rank, y->d), *z = b ? gcpi_fold_spread(m, b, y->rank, y->d) : x;
    double *to = x && z ? gcpi_onnx_known_new(m, y) : NULL;
    const int real = gcpi_onnx_is_real(a->type) || gcpi_onnx_integer(n, "fmod", 0);
    for (ptrdiff_t i = 0; to && i < gcpi_onnx_elements(y); i++)
        to[i] = gcpi_fold_rounded(y->type, b ? gcpi_fold_pair(fn, x[i], z[i], real) : gcpi_fold_one(fn, x[i]));
    m->arena->scratch = scratch;
    y->known = to;
}
