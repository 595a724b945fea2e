/* Our layouts and theirs: axes of weights, flattened channels. A weight in the state is [o][h][w][i]; letters give the
   order of its axes in a file.

   PyTorch flattens an image channel by channel, gcp pixel by pixel: what is flattened, and all channels that go with it
   from op to op (those of a norm's gamma, the rows of a dense layer that is added to it, the columns of the next), has
   another order in PyTorch's files. Such channels are [h][w][i] here and "ihw" there; rows of a dense layer, [p][q][o]
   and "opq". */

/* ---- the order of channels ---- */

/* A set of tensors whose channels go together: same: another tensor of it, or itself. h, w: the image that they were
   flattened from, or will be; 0: none; -1: it cannot be told. */
typedef struct gcpi_flat { int same, h, w; } gcpi_flat;

static gcpi_flat *gcpi_flat_of(gcpi_flat *all, int x)
{
    while (all[x].same != x) x = all[x].same = all[all[x].same].same;
    return &all[x];
}
static int gcpi_flat_set(gcpi_flat *all, int x, int h, int w)
{
    gcpi_flat *o = gcpi_flat_of(all, x);
    if (o->h == h && o->w == w) return 0;
    if (o->h) h = w = -1;
    const int changed = o->h != h;
    o->h = h; o->w = w;
    return changed;
}
static void gcpi_flat_join(gcpi_flat *all, int x, int y)
{
    const gcpi_flat *from = gcpi_flat_of(all, y);
    const int h = from->h, w = from->w;
    all[from->same].same = gcpi_flat_of(all, x)->same;
    if (h) gcpi_flat_set(all, x, h, w);
}

static int gcpi_flat_channels(const gcp_tape *t, int x) { return t->tensors[x].shape.d[3]; }
static int gcpi_flat_pixels(const gcp_tape *t, int x) { return t->tensors[x].shape.d[1] * t->tensors[x].shape.d[2]; }
/* Whether `flat` holds each sample of `image` as one row. */
static int gcpi_row_of(const gcp_tape *t, int image, int flat)
{
    const int values = gcpi_flat_pixels(t, image) * gcpi_flat_channels(t, image);
    return gcpi_flat_pixels(t, flat) == 1 && gcpi_flat_channels(t, flat) == values;
}
static void gcpi_flat_reshape(const gcp_tape *t, gcpi_flat *all, int x, int y)
{
    const int flat = gcpi_row_of(t, x, y) ? y : x, image = flat == y ? x : y;
    if (gcpi_flat_channels(t, x) == gcpi_flat_channels(t, y)) gcpi_flat_join(all, x, y);
    else if (gcpi_row_of(t, image, flat) && gcpi_flat_channels(t, image) > 1)
        gcpi_flat_set(all, flat, t->tensors[image].shape.d[1], t->tensors[image].shape.d[2]);
}

/* The op's inputs, then its outputs. */
static int gcpi_flat_operand(const gcp_tape *t, const gcpi_op *op, int i)
{
    return i < op->inputs ? gcpi_edge(t, op, i) : op->out + i - op->inputs;
}
/* The first operand that has as many channels as operand i: perhaps itself. */
static int gcpi_flat_like(const gcp_tape *t, const gcpi_op *op, int i)
{
    const int channels = gcpi_flat_channels(t, gcpi_flat_operand(t, op, i));
    int like = 0;
    while (gcpi_flat_channels(t, gcpi_flat_operand(t, op, like)) != channels) like++;
    return like;
}
static void gcpi_flat_same(const gcp_tape *t, gcpi_flat *all, const gcpi_op *op)
{
    for (int i = 1; i < op->inputs + op->outputs; i++) {
        const int like = gcpi_flat_like(t, op, i);
        if (like < i) gcpi_flat_join(all, gcpi_flat_operand(t, op, like), gcpi_flat_operand(t, op, i));
    }
}
/* Ops that join channels in another way: what is known on one side says that the other cannot be told. */
static int gcpi_flat_mixes(const gcp_tape *t, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const int x = gcpi_edge(t, op, 0), differ = gcpi_flat_channels(t, x) != gcpi_flat_channels(t, op->out);
    if (facts.view == GCPI_VIEW_WHOLE) return differ && !gcpi_row_of(t, x, op->out) && !gcpi_row_of(t, op->out, x);
    if (facts.view == GCPI_VIEW_PART) return differ;
    if (facts.custom && facts.channels == GCPI_CHANNELS_SAME)
        return gcpi_flat_like(t, op, op->inputs) == op->inputs && gcpi_count(t->tensors[op->out].shape) > 1;
    return facts.channels == GCPI_CHANNELS_UNKNOWN;
}
static void gcpi_flat_through(const gcp_tape *t, gcpi_flat *all, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    if (facts.view == GCPI_VIEW_WHOLE) { gcpi_flat_reshape(t, all, gcpi_edge(t, op, 0), op->out); return; }
    switch (facts.channels) {
    case GCPI_CHANNELS_SAME: gcpi_flat_same(t, all, op); break;
    case GCPI_CHANNELS_LOOKED_UP: gcpi_flat_join(all, op->out, gcpi_edge(t, op, 1)); break;
    case GCPI_CHANNELS_WEIGHED: if (op->inputs > 2) gcpi_flat_join(all, op->out, gcpi_edge(t, op, 2)); break;
    default: break;
    }
}
/* 1: something became known not to be known. */
static int gcpi_flat_doubt(const gcp_tape *t, gcpi_flat *all, const gcpi_op *op)
{
    int known = 0, made = 0, changed = 0;
    for (int i = 0; i < op->inputs; i++) known |= gcpi_flat_of(all, gcpi_edge(t, op, i))->h;
    for (int k = 0; k < op->outputs; k++) made |= gcpi_flat_of(all, op->out + k)->h;
    for (int k = 0; known && k < op->outputs; k++) changed |= gcpi_flat_set(all, op->out + k, -1, -1);
    for (int i = 0; made && i < op->inputs; i++) changed |= gcpi_flat_set(all, gcpi_edge(t, op, i), -1, -1);
    return changed;
}

static size_t gcpi_flats_bytes(const gcp_tape *t) { return (size_t)t->tensor_count * sizeof(gcpi_flat) + 16; }
/* The order of all tensors' channels, in scratch. NULL: no room. */
static gcpi_flat *gcpi_flats(const gcp_tape *t, gcp_arena *a)
{
    gcpi_flat *all = GCPI_SCRATCH(a, gcpi_flat, t->tensor_count);
    int changed = all != NULL;
    for (int x = 0; all && x < t->tensor_count; x++) all[x].same = x;
    for (int i = 0; all && i < t->op_count; i++) gcpi_flat_through(t, all, &t->ops[i]);
    while (changed) {
        changed = 0;
        for (int i = 0; i < t->op_count; i++)
            if (gcpi_flat_mixes(t, &t->ops[i])) changed |= gcpi_flat_doubt(t, all, &t->ops[i]);
    }
    return all;
}

/* ---- the axes of a weight ---- */

static int gcpi_axes_parse(gcpi_word word, gcpi_axes *axes)
{
    size_t n = 0;
    memset(axes, 0, sizeof *axes);
    axes->given = 1;
    for (; n < word.length && n < 4 && word.at[n] != ':'; n++) {
        if (!strchr("ohwi", word.at[n]) || strchr(axes->letters, word.at[n])) return 0;
        axes->letters[n] = word.at[n];
    }
    if (n == word.length) return n > 0;
    char text[24], end;
    if (memchr(word.at + n, '+', word.length - n)) return 0;
    snprintf(text, sizeof text, "%.*s", (int)GCPI_MIN(word.length - n, sizeof text - 1), word.at + n);
    if (sscanf(text, ":%6dx%6d%c", &axes->h, &axes->w, &end) != 2 || axes->h < 1 || axes->w < 1) return 0;
    return n == 4 && (axes->letters[0] == 'o' || axes->letters[3] == 'o');
}
/* The layout that a style has for a weight of this many sizes. */
static void gcpi_axes_default(gcp_style style, int rank, gcpi_axes *axes)
{
    static const char *const letters[][5] = { { "i", "i", "oi", "owi", "ohwi" },
                                              { "i", "i", "oi", "owi", "oihw" },
                                              { "i", "i", "io", "owi", "hwio" } };
    memset(axes, 0, sizeof *axes);
    strcpy(axes->letters, letters[style][rank]);
}

/* What is known of the channels that a weight reads (out 0) or makes (1): of all ops whose weight it is. */
static gcpi_flat gcpi_weight_flat(const gcp_tape *t, gcpi_flat *all, int weight, int out)
{
    gcpi_flat found = { 0, 0, 0 };
    for (int o = 0, any = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        const gcpi_facts facts = gcpi_facts_of(op);
        const int conv = facts.window != NULL;
        if (facts.channels != GCPI_CHANNELS_WEIGHED || gcpi_edge(t, op, 1) != weight) continue;
        const gcpi_flat *x = gcpi_flat_of(all, out ? op->out : gcpi_edge(t, op, 0));
        if ((any++ && (x->h != found.h || x->w != found.w)) || (conv && x->h)) { found.h = -1; return found; }
        found = *x;
    }
    return found;
}
/* The layout of a parameter in a file where no map says it. h -1: it cannot be told. */
static void gcpi_axes_of(const gcp_tape *t, int parameter, gcp_style style, gcpi_flat *order, gcpi_axes *axes)
{
    const int x = t->parameters[parameter].tensor, rank = t->parameters[parameter].shape.rank;
    gcpi_axes_default(style, rank, axes);
    if (!order || !x) return;
    gcpi_flat in = rank < 2 ? *gcpi_flat_of(order, x) : gcpi_weight_flat(t, order, x, 0),
               out = gcpi_weight_flat(t, order, x, 1);
    if (rank >= 2 && gcpi_flat_of(order, x)->h) in = *gcpi_flat_of(order, x);
    if (!in.h && !out.h) return;
    axes->h = in.h < 0 || out.h < 0 ? -1 : in.h;
    axes->w = in.w; axes->p = out.h; axes->q = out.w;
    if (axes->h >= 0)
        snprintf(axes->letters, sizeof axes->letters, "%s%s", rank < 2 ? "" : out.h ? "opq" : "o", in.h ? "ihw" : "i");
}

/* Sizes in our order, p, q, o, h, w, i, of images where some were flattened. 0: the layout is not for this weight. */
static const char gcpi_axes_letters[] = "pqohwi";
static int gcpi_axes_sizes(const gcpi_axes *axes, gcp_shape shape, size_t *sizes)
{
    sizes[0] = sizes[1] = 1;
    for (int i = 0; i < 4; i++) sizes[i + 2] = (size_t)shape.d[i];
    if (axes->h < 0) return 0;
    if (axes->h) {
        const size_t pixels = (size_t)axes->h * (size_t)axes->w;
        if (sizes[3] != 1 || sizes[4] != 1 || sizes[5] % pixels) return 0;
        sizes[3] = (size_t)axes->h; sizes[4] = (size_t)axes->w; sizes[5] /= pixels;
    }
    if (axes->p) {
        const size_t pixels = (size_t)axes->p * (size_t)axes->q;
        if (sizes[2] % pixels) return 0;
        sizes[0] = (size_t)axes->p; sizes[1] = (size_t)axes->q; sizes[2] /= pixels;
    }
    for (int i = 0; i < 6; i++) if (sizes[i] != 1 && !strchr(axes->letters, gcpi_axes_letters[i])) return 0;
    return 1;
}
/* The shape in the file, where a flattened image is one axis. Returns its rank; -1: not for this weight. */
static int gcpi_axes_shape(const gcpi_axes *axes, gcp_shape shape, uint64_t *out)
{
    size_t sizes[6];
    int rank = 0, last = -1;
    if (!gcpi_axes_sizes(axes, shape, sizes)) return -1;
    for (const char *letter = axes->letters; *letter; letter++) {
        const ptrdiff_t axis = strchr(gcpi_axes_letters, *letter) - gcpi_axes_letters;
        const int input = axis > 2;
        if ((input ? axes->h : axes->p) && input == last) out[rank - 1] *= sizes[axis];
        else out[rank++] = sizes[axis];
        last = input;
    }
    return rank;
}

/* ---- axes of one ----
   A file may have axes of size one that the layout lacks, or lack some of its own: a dense layer's weight may be that
   of a 1x1 convolution there. What was read from such a file is written with the same axes. */

static void gcpi_ones_keep(gcpi_parameter *x, gcp_style style, const uint64_t *sizes, int rank)
{
    unsigned ones = 0;
    for (int i = 0; i < rank; i++) ones |= (unsigned)(sizes[i] == 1) << i;
    x->file[style].known = 1;
    x->file[style].rank = (unsigned char)rank;
    x->file[style].ones = (unsigned char)ones;
}
/* Changes the shape in the file to one with the same axes of one as the file that was read. Returns its rank. */
static int gcpi_ones_restore(const gcpi_parameter *x, gcp_style style, uint64_t *sizes, int rank)
{
    uint64_t others[GCPI_RANK_MOST];
    const int ones = x->file[style].ones, file_rank = x->file[style].rank;
    int count = 0, wanted = 0, next = 0;
    if (!x->file[style].known) return rank;
    for (int i = 0; i < rank; i++) if (sizes[i] != 1) others[count++] = sizes[i];
    for (int i = 0; i < file_rank; i++) wanted += !(ones >> i & 1);
    if (count != wanted) return rank;
    for (int i = 0; i < file_rank; i++) sizes[i] = ones >> i & 1 ? 1 : others[next++];
    return file_rank;
}
