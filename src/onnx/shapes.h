/* Shapes: what each op makes, and its elements where its inputs are known. A rule is called when all inputs have their
   shapes; it fills the outputs' and returns 1, or refuses the node and returns 0. */

static int gcpi_shape_like(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape_like(m, n, 0, x)) return 0;
    if (n->outputs > 1 && !gcpi_onnx_shape_like(m, n, 1, x)) return 0; /* Dropout's mask: nothing reads it */
    if (y && gcpi_excerpt_is(n->op, "Identity")) y->data = x->data;
    return 1;
}
/* Ops of elements that are folded, or drawn as curves: their letters in fold.h. */
static char gcpi_fold_letter(const gcpi_onnx_node *n)
{
    static const struct {
        const char *op;
        char letter;
    } letters[] = { { "Add", '+' },         { "Sum", '+' },
                    { "Sub", '-' },         { "Mul", '*' },
                    { "Div", '/' },         { "Pow", '^' },
                    { "Mod", '%' },         { "Max", 'M' },
                    { "Min", 'm' },         { "Equal", '=' },
                    { "Less", '<' },        { "Greater", '>' },
                    { "LessOrEqual", 'l' }, { "GreaterOrEqual", 'g' },
                    { "And", '&' },         { "Or", '|' },
                    { "Neg", '-' },         { "Abs", 'a' },
                    { "Sqrt", 's' },        { "Exp", 'e' },
                    { "Log", 'l' },         { "Floor", 'f' },
                    { "Ceil", 'c' },        { "Reciprocal", 'r' },
                    { "Not", '!' },         { "Sin", 'S' },
                    { "Cos", 'C' },         { "Erf", 'E' },
                    { "Tanh", 't' },        { "Sigmoid", 'G' },
                    { "Softplus", 'p' },    { "Relu", 'R' } };
    for (size_t i = 0; i < sizeof letters / sizeof *letters; i++)
        if (gcpi_excerpt_is(n->op, letters[i].op)) return letters[i].letter;
    return 'i';
}
static int gcpi_shape_one(gcpi_onnx *m, gcpi_onnx_node *n)
{
    if (!gcpi_shape_like(m, n)) return 0;
    gcpi_fold_elements(m, n, gcpi_fold_letter(n));
    return 1;
}
static int gcpi_shape_pair_of(gcpi_onnx *m, gcpi_onnx_node *n, int truth)
{
    const gcpi_onnx_value *a = gcpi_onnx_in(m, n, 0), *b = gcpi_onnx_in(m, n, 1);
    int rank, d[GCPI_AXES];
    if (!b && n->inputs > 1) return gcpi_onnx_refuse(m, n, "an input is left out");
    if (!b || (m->opset < 7 && gcpi_excerpt_is(n->op, "PRelu") && a->rank > 1 &&
               (gcpi_onnx_elements(b) == 1 || (b->rank == 1 && b->d[0] == a->d[1]))))
        return gcpi_shape_like(m, n);
    if (!gcpi_onnx_broadcast(a, b, &rank, d)) return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    if (!gcpi_onnx_shape(m, n, 0, truth ? GCPI_ONNX_BOOL : a->type, rank, d)) return 0;
    if (n->inputs == 2 && gcpi_fold_letter(n) != 'i') gcpi_fold_elements(m, n, gcpi_fold_letter(n));
    for (int i = 2; i < n->inputs; i++)
        if (!gcpi_onnx_in(m, n, i) || !gcpi_onnx_broadcast(gcpi_onnx_out(m, n, 0), gcpi_onnx_in(m, n, i), &rank, d) ||
            !gcpi_onnx_shape(m, n, 0, a->type, rank, d))
            return gcpi_onnx_refuse(m, n, "its operands' shapes do not fit");
    return 1;
}
static int gcpi_shape_pair(gcpi_onnx *m, gcpi_onnx_node *n) { return gcpi_shape_pair_of(m, n, 0); }
static int gcpi_shape_truth(gcpi_onnx *m, gcpi_onnx_node *n) { return gcpi_shape_pair_of(m, n, 1); }

static int gcpi_shape_cast(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *like = gcpi_onnx_in(m, n, 1);
    const int to = like ? like->type : (int)gcpi_onnx_integer(n, "to", 0);
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape(m, n, 0, to, x->rank, x->d) || !y) return 0;
    const double *from = gcpi_onnx_known(m, gcpi_onnx_in(m, n, 0));
    double *known = from ? gcpi_onnx_known_new(m, y) : NULL;
    for (ptrdiff_t i = 0; known && i < gcpi_onnx_elements(y); i++) known[i] = gcpi_fold_rounded(to, from[i]);
    y->known = known;
    return 1;
}
/* A list of integers becomes the output. */
static int gcpi_shape_integers(gcpi_onnx *m, gcpi_onnx_node *n, const int64_t *list, int count, int rank)
{
    gcpi_onnx_value *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape(m, n, 0, GCPI_ONNX_INT64, rank, &count) || !y) return 0;
    double *known = gcpi_onnx_known_new(m, y);
    for (int i = 0; known && i < count; i++) known[i] = (double)list[i];
    y->known = known;
    return 1;
}
static int gcpi_shape_shape(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t list[GCPI_AXES], first = gcpi_onnx_integer(n, "start", 0), last = gcpi_onnx_integer(n, "end", x->rank);
    int count = 0;
    if (first < 0) first = GCPI_MAX(first + x->rank, 0);
    if (last < 0) last += x->rank;
    for (int64_t i = first; i < last && i < x->rank; i++) list[count++] = x->d[i];
    return gcpi_shape_integers(m, n, list, count, 1);
}
static int gcpi_shape_size(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const int64_t count = gcpi_onnx_elements(gcpi_onnx_in(m, n, 0));
    return gcpi_shape_integers(m, n, &count, 1, 0);
}

/* ---- the same elements in other axes ---- */

/* The output has these sizes and the input's elements, in their order. */
static int gcpi_shape_again(gcpi_onnx *m, gcpi_onnx_node *n, int rank, const int *d)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d) || !y) return 0;
    if (gcpi_onnx_elements(x) != gcpi_onnx_elements(y))
        return gcpi_onnx_refuse(m, n, "%td elements become %td (another .batch than it was exported for?)",
                                gcpi_onnx_elements(x), gcpi_onnx_elements(y));
    const double *known = gcpi_onnx_known(m, x);
    y->known = (double *)(uintptr_t)known;
    return 1;
}
static int gcpi_shape_reshape(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t list[GCPI_AXES], zero = gcpi_onnx_integer(n, "allowzero", 0);
    int d[GCPI_AXES], open = -1;
    const int rank = gcpi_onnx_list(m, n, "shape", 1, list, GCPI_AXES);
    ptrdiff_t count = 1;
    if (rank < 0 || rank > GCPI_AXES)
        return gcpi_onnx_refuse(m, n, rank < 0 ? "its shape is not known before a step" : "more than 8 axes");
    for (int i = 0; i < rank; i++) {
        if (list[i] == 0 && !zero && i < x->rank) list[i] = x->d[i];
        if (list[i] == -1 && open < 0) open = i;
        else if (list[i] < 0 || list[i] > INT32_MAX)
            return gcpi_onnx_refuse(m, n, "a size of %lld", (long long)list[i]);
        d[i] = (int)list[i];
        if (i != open) count = count > PTRDIFF_MAX / INT32_MAX / 2 ? PTRDIFF_MAX / INT32_MAX / 2 : count * d[i];
    }
    if (open >= 0) d[open] = count ? (int)GCPI_MIN(gcpi_onnx_elements(x) / count, INT32_MAX) : 0;
    return gcpi_shape_again(m, n, rank, d);
}
static int gcpi_shape_flatten(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t axis = gcpi_onnx_integer(n, "axis", 1);
    int d[2] = { 1, 1 };
    if (axis < 0) axis += x->rank;
    if (axis < 0 || axis > x->rank) return gcpi_onnx_refuse(m, n, "axis %lld of %d", (long long)axis, x->rank);
    for (int i = 0; i < x->rank; i++) {
        if (d[i >= axis] > INT32_MAX / GCPI_MAX(x->d[i], 1)) return gcpi_onnx_refuse(m, n, "an axis is too long");
        d[i >= axis] *= x->d[i];
    }
    return gcpi_shape_again(m, n, 2, d);
}
/* Bits of axes that an attribute or input names. -1: one is wrong; none given: `otherwise`. */
static int gcpi_onnx_axes(gcpi_onnx *m, const gcpi_onnx_node *n, int input, int rank, int otherwise)
{
    int64_t list[GCPI_AXES];
    const int count = gcpi_onnx_list(m, n, "axes", input, list, GCPI_AXES);
    int bits = 0;
    if (count == -1) return otherwise;
    if (count < 0 || count > GCPI_AXES) return -1;
    for (int i = 0; i < count; i++) {
        const int axis = gcpi_onnx_axis(list[i], rank);
        if (axis < 0) return -1;
        bits |= 1 << axis;
    }
    return bits;
}
static int gcpi_shape_squeeze(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int ones = 0, d[GCPI_AXES], rank = 0;
    for (int i = 0; i < x->rank; i++) ones |= (x->d[i] == 1) << i;
    const int axes = gcpi_onnx_axes(m, n, 1, x->rank, ones);
    if (axes < 0 || axes & ~ones) return gcpi_onnx_refuse(m, n, "its axes are not of size 1");
    for (int i = 0; i < x->rank; i++)
        if (!(axes >> i & 1)) d[rank++] = x->d[i];
    return gcpi_shape_again(m, n, rank, d);
}
static int gcpi_shape_unsqueeze(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t list[GCPI_AXES];
    int d[GCPI_AXES], count = gcpi_onnx_list(m, n, "axes", 1, list, GCPI_AXES);
    if (count < 0 || count + x->rank > GCPI_AXES) return gcpi_onnx_refuse(m, n, "its axes are not known, or too many");
    const int axes = gcpi_onnx_axes(m, n, 1, count + x->rank, 0);
    if (axes < 0) return gcpi_onnx_refuse(m, n, "an axis is not one of %d", count + x->rank);
    for (int i = 0, next = 0; i < count + x->rank; i++) {
        if (!(axes >> i & 1) && next == x->rank) return gcpi_onnx_refuse(m, n, "an axis is named twice");
        d[i] = axes >> i & 1 ? 1 : x->d[next++];
    }
    return gcpi_shape_again(m, n, count + x->rank, d);
}
static int gcpi_onnx_permutation(const gcpi_onnx_node *n, int rank, int *axes) /* 0: none */
{
    int64_t list[GCPI_AXES];
    const int count = gcpi_onnx_integers(n, "perm", list, GCPI_AXES);
    int seen = 0;
    for (int i = 0; i < rank; i++) axes[i] = count < 0 ? rank - 1 - i : i < count ? gcpi_onnx_axis(list[i], rank) : -1;
    for (int i = 0; i < rank; i++) seen |= axes[i] < 0 ? 0 : 1 << axes[i];
    return (count < 0 || count == rank) && seen == (1 << rank) - 1;
}
static int gcpi_shape_transpose(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    int axes[GCPI_AXES], d[GCPI_AXES];
    ptrdiff_t steps[GCPI_AXES], step[GCPI_AXES];
    if (!gcpi_onnx_permutation(n, x->rank, axes))
        return gcpi_onnx_refuse(m, n, "its perm is no order of %d axes", x->rank);
    gcpi_fold_steps(x, steps);
    for (int i = 0; i < x->rank; i++) d[i] = x->d[axes[i]], step[i] = steps[axes[i]];
    if (!gcpi_onnx_shape(m, n, 0, x->type, x->rank, d) || !y) return 0;
    const double *from = gcpi_onnx_known(m, x);
    double *known = from ? gcpi_onnx_known_new(m, y) : NULL;
    if (known) gcpi_fold_view(known, x->rank, d, from, 0, step);
    y->known = known;
    return 1;
}
static int gcpi_shape_expand(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0), to;
    int64_t list[GCPI_AXES];
    int rank, d[GCPI_AXES];
    memset(&to, 0, sizeof to);
    to.rank = gcpi_onnx_list(m, n, "shape", 1, list, GCPI_AXES);
    if (to.rank < 0 || to.rank > GCPI_AXES) return gcpi_onnx_refuse(m, n, "its shape is not known before a step");
    for (int i = 0; i < to.rank; i++) to.d[i] = (int)list[i];
    if (!gcpi_onnx_broadcast(x, &to, &rank, d)) return gcpi_onnx_refuse(m, n, "its shapes do not fit");
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d) || !y) return 0;
    const ptrdiff_t scratch = m->arena->scratch;
    const double *spread = gcpi_onnx_known(m, x) ? gcpi_fold_spread(m, x, rank, d) : NULL;
    double *known = spread ? gcpi_onnx_known_new(m, y) : NULL;
    if (known) memcpy(known, spread, (size_t)gcpi_onnx_elements(y) * sizeof *known);
    m->arena->scratch = scratch;
    y->known = known;
    return 1;
}

/* ---- parts ---- */

static int gcpi_shape_concat(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 1), x->rank);
    int d[GCPI_AXES], known = 1;
    if (axis < 0 || !y) return gcpi_onnx_refuse(m, n, "its axis is not one of %d", x->rank);
    memcpy(d, x->d, sizeof d);
    for (int i = 0; i < n->inputs; i++) {
        gcpi_onnx_value *v = gcpi_onnx_in(m, n, i);
        if (!v || v->rank != x->rank) return gcpi_onnx_refuse(m, n, "its inputs have not as many axes");
        for (int k = 0; k < x->rank; k++)
            if (k != axis && v->d[k] != d[k])
                return gcpi_onnx_refuse(m, n, "sizes of %d and %d beside each other", d[k], v->d[k]);
        known &= gcpi_onnx_known(m, v) != NULL;
        if (i) d[axis] = v->d[axis] > INT32_MAX - d[axis] ? INT32_MAX : d[axis] + v->d[axis];
    }
    if (!gcpi_onnx_shape(m, n, 0, x->type, x->rank, d)) return 0;
    double *to = known ? gcpi_onnx_known_new(m, y) : NULL;
    ptrdiff_t outer = 1, inner = 1;
    for (int k = 0; k < x->rank; k++)
        if (k < axis) outer *= d[k];
        else if (k > axis) inner *= d[k];
    y->known = to;
    for (ptrdiff_t o = 0; to && o < outer; o++)
        for (int i = 0; i < n->inputs; i++) {
            gcpi_onnx_value *v = gcpi_onnx_in(m, n, i);
            const ptrdiff_t run = v->d[axis] * inner;
            memcpy(to, gcpi_onnx_known(m, v) + o * run, (size_t)run * sizeof *to);
            to += run;
        }
    return 1;
}
/* One output of a Split or Slice: elements first, first + step, ... of each axis. */
static int gcpi_shape_part(gcpi_onnx *m, gcpi_onnx_node *n, int output, const int *d, const int *first, const int *step)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *y = gcpi_onnx_out(m, n, output);
    ptrdiff_t steps[GCPI_AXES], from = 0;
    if (!y) return 1;
    if (!gcpi_onnx_shape(m, n, output, x->type, x->rank, d)) return 0;
    const double *known = gcpi_onnx_known(m, x);
    double *to = known ? gcpi_onnx_known_new(m, y) : NULL;
    gcpi_fold_steps(x, steps);
    for (int i = 0; i < x->rank; i++) {
        from += first[i] * steps[i];
        steps[i] *= step[i];
    }
    if (to && gcpi_onnx_elements(y)) gcpi_fold_view(to, x->rank, d, known, from, steps);
    y->known = to;
    return 1;
}
/* The sizes of a Split's outputs. 0: they are not known, or do not add up. */
static int gcpi_onnx_split_sizes(gcpi_onnx *m, const gcpi_onnx_node *n, int size, int64_t *sizes)
{
    const int count = gcpi_onnx_list(m, n, "split", 1, sizes, GCP_MAX_INPUTS);
    int64_t sum = 0, each = (size + n->outputs - 1) / GCPI_MAX(n->outputs, 1);
    if (n->outputs > GCP_MAX_INPUTS || (count >= 0 && count != n->outputs) || count == -2) return 0;
    for (int i = 0; i < n->outputs; i++) {
        if (count < 0) sizes[i] = GCPI_MIN(each, size - sum);
        if (sizes[i] < 0 || sizes[i] > size - sum) return 0;
        sum += sizes[i];
    }
    return sum == size;
}
static int gcpi_shape_split(gcpi_onnx *m, gcpi_onnx_node *n)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank);
    int d[GCPI_AXES], first[GCPI_AXES] = { 0 }, step[GCPI_AXES] = { 1, 1, 1, 1, 1, 1, 1, 1 };
    int64_t sizes[GCP_MAX_INPUTS];
    memcpy(d, x->d, sizeof d);
    if (axis < 0 || !gcpi_onnx_split_sizes(m, n, d[axis], sizes))
        return gcpi_onnx_refuse(m, n, "its parts do not fit its axis");
    for (int i = 0; i < n->outputs; i++) {
        d[axis] = (int)sizes[i];
        if (!gcpi_shape_part(m, n, i, d, first, step)) return 0;
        first[axis] += d[axis];
    }
    return 1;
}
/* A list of parts is never made: what takes one out of it is a slice of what was split. */
static int gcpi_shape_sequence(gcpi_onnx *m, gcpi_onnx_node *n)
{
    return gcpi_onnx_shape(m, n, 0, GCPI_ONNX_NONE, 0, NULL);
}
/* Of a SequenceAt: the node that split, the axis, and where its part begins. count: its elements. 0: not known. */
static gcpi_onnx_node *gcpi_onnx_sequence_part(gcpi_onnx *m, const gcpi_onnx_node *n, int *axis, int *first, int *count)
{
    const gcpi_onnx_value *list = gcpi_onnx_in(m, n, 0);
    gcpi_onnx_node *split = list->node >= 0 ? &m->nodes[list->node] : NULL;
    double index;
    if (!split || !gcpi_excerpt_is(split->op, "SplitToSequence") || !gcpi_onnx_number(m, gcpi_onnx_in(m, n, 1), &index))
        return NULL;
    const gcpi_onnx_value *x = gcpi_onnx_in(m, split, 0);
    const double *sizes = gcpi_onnx_elements_of(m, gcpi_onnx_in(m, split, 1));
    *axis = gcpi_onnx_axis(gcpi_onnx_integer(split, "axis", 0), x->rank);
    if (*axis < 0 || (gcpi_onnx_in(m, split, 1) && !sizes)) return NULL;
    const gcpi_onnx_value *given = gcpi_onnx_in(m, split, 1);
    const double each = !given       ? 1
                      : !given->rank ? *sizes
                                     : 0,
                 size = x->d[*axis],
                 parts = each > 0 ? ceil(size / each)
                       : given    ? (double)gcpi_onnx_elements(given)
                                  : 0,
                 at = index < 0 ? index + parts : index;
    double from = each > 0 ? each * at : 0, length = 0;
    if (!(at >= 0 && at < parts) || !(size > 0)) return NULL;
    for (int i = 0; i < (int)at && !(each > 0); i++) from += sizes[i];
    length = each > 0 ? GCPI_MIN(each, size - from) : sizes[(int)at];
    if (!(from >= 0 && length >= 1 && from + length <= size)) return NULL;
    *first = (int)from;
    *count = (int)length;
    return split;
}
static int gcpi_shape_sequence_at(gcpi_onnx *m, gcpi_onnx_node *n)
{
    int axis, first, count, d[GCPI_AXES], rank = 0;
    const gcpi_onnx_node *split = gcpi_onnx_sequence_part(m, n, &axis, &first, &count);
    if (!split) return gcpi_onnx_refuse(m, n, "its list or index is not known before a step");
    const gcpi_onnx_value *x = gcpi_onnx_in(m, split, 0);
    const int keep = gcpi_onnx_in(m, split, 1) || gcpi_onnx_integer(split, "keepdims", 1);
    for (int i = 0; i < x->rank; i++)
        if (i != axis) d[rank++] = x->d[i];
        else if (keep) d[rank++] = count;
    return gcpi_onnx_shape(m, n, 0, x->type, rank, d);
}
/* A Slice as first element, step and count of each axis. 0: not known, or no slice. */
static int gcpi_onnx_slice(gcpi_onnx *m, const gcpi_onnx_node *n, int *first, int *step, int *count)
{
    const gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0);
    int64_t from[GCPI_AXES], to[GCPI_AXES], axes[GCPI_AXES], by[GCPI_AXES];
    const int given = gcpi_onnx_list(m, n, "starts", 1, from, GCPI_AXES),
              ends = gcpi_onnx_list(m, n, "ends", 2, to, GCPI_AXES),
              named = gcpi_onnx_list(m, n, "axes", 3, axes, GCPI_AXES),
              steps = gcpi_onnx_list(m, n, "steps", 4, by, GCPI_AXES);
    if (given < 0 || given > x->rank || ends != given || (named != given && named != -1) ||
        (steps != given && steps != -1))
        return 0;
    for (int i = 0; i < x->rank; i++) first[i] = 0, step[i] = 1, count[i] = x->d[i];
    for (int i = 0; i < given; i++) {
        const int axis = gcpi_onnx_axis(named < 0 ? i : axes[i], x->rank);
        const int64_t s = steps < 0 ? 1 : by[i];
        if (axis < 0 || !s || s > INT32_MAX || s < -INT32_MAX) return 0;
        const int64_t size = x->d[axis], low = s < 0 ? -1 : 0, high = s < 0 ? size - 1 : size;
        int64_t a = from[i] < 0 ? from[i] + size : from[i], b = to[i] < -size ? -1 : to[i] < 0 ? to[i] + size : to[i];
        a = GCPI_MAX(s < 0 ? 0 : low, GCPI_MIN(a, high));
        b = GCPI_MAX(low, GCPI_MIN(b, size));
        first[axis] = (int)a;
        step[axis] = (int)s;
        count[axis] = (int)GCPI_MAX(0, s > 0 ? (b - a + s - 1) / s : (a - b - s - 1) / -s);
    }
    return 1;
}
static int gcpi_shape_slice(gcpi_onnx *m, gcpi_onnx_node *n)
{
    int first[GCPI_AXES], step[GCPI_AXES], count[GCPI_AXES];
    if (!gcpi_onnx_slice(m, n, first, step, count))
        return gcpi_onnx_refuse(m, n, "its bounds are not known before a step");
    return gcpi_shape_part(m, n, 0, count, first, step);
}
static int gcpi_shape_gather(gcpi_onnx *m, gcpi_onnx_node *n)
{
    gcpi_onnx_value *x = gcpi_onnx_in(m, n, 0), *index = gcpi_onnx_in(m, n, 1), *y = gcpi_onnx_out(m, n, 0);
    const int axis = gcpi_onnx_axis(gcpi_onnx_integer(n, "axis", 0), x->rank);
    int d[2 * GCPI_AXES], rank = 0;
    if (axis < 0 || !y) return gcpi_onnx_refuse(m, n, "its axis is not one of %d", x->rank);
    for (int i = 0; i < axis; i++) d[rank++] = x->d[i];
    for (int i = 0; i < index->rank; i++) d[rank++] = index->d[i];
    for (int i = axis + 1; i < x->rank; i++) d[rank++] = x->d[i];
    if (!gcpi_onnx_shape(m, n, 0, x->type, rank, d)) return 0;
    const double *from = gcpi_onnx_known(m, x), *at = gcpi_onnx_known(m, index);
    const ptrdiff_t many = gcpi_onnx_elements(index);
    for (ptrdiff_t i = 0; at && i < many; i++)
        if (at[i] < -x->d[axis] || at[i] >= x->d[axis])
            return gcpi_onnx_refuse(m, n, "index %g of %d", at[i], x->d[axis]);
    double *to = from && at ? gcpi_onnx_known_new(m, y) : NULL;
    ptrdiff_t outer = 1, inner = 1;
    for (int k = 0; k < x->rank; k++)
        if (k < axis) outer *= x->d[k];
        else if (k > axis) inner *= x->d[k];
    y->known = to;
    for (ptrdiff_t o = 0; to && o < outer; o++)
        for (ptrdiff_t i = 0; i < many; i++, to += inner) {
            const ptrdiff_t row = (ptrdiff_t)(at[i] < 0 ? at[i] + x->d[axis] : at[i]);
            memcpy(to, from + (o * x->d[axis] + row) * inner, (size_t)inner * sizeof *to);
        }
    return 1;
}
