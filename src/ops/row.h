/* What stands for an op: its row, its facts, and how it is recorded. A room of this wing holds an op whole:
   shape rule, forward, backward, cost, row, facts, and the public functions that record it. */

/* A group is a few consecutive ops that run as one pass (GCP_ROW_APPLY). An op can be one of these parts of it. */
enum { GCPI_PART_NONE, GCPI_PART_NORM, GCPI_PART_ADD, GCPI_PART_RECTIFIER };
enum { GCPI_NORM_BETA = 4 };                            /* the last input of GCPI_PART_NORM */
/* Output 0 of a view is: all of input 0; channels of input 0; its inputs side by side. */
enum { GCPI_VIEW_NONE, GCPI_VIEW_WHOLE, GCPI_VIEW_PART, GCPI_VIEW_JOINED };
/* The channels of output 0: not known; those of inputs of as many (GCP_FLAG_SAME_CHANNELS); made by the weight, input
   1, with a bias, input 2, for them; those of input 1. */
enum { GCPI_CHANNELS_UNKNOWN, GCPI_CHANNELS_SAME, GCPI_CHANNELS_WEIGHED, GCPI_CHANNELS_LOOKED_UP };

/* The labels or ids that an op's input may hold: 0 to count - 1, or the ignored one. count 0: not checked. Where the
   user ignores none, -1 is left out of losses all the same, but only gcp_write_some writes it. */
typedef struct gcpi_label_range { int count, ignores, ignore; } gcpi_label_range;
struct gcpi_code;

/* What only some ops have. A fact that is not given is the careful answer. */
typedef struct gcpi_facts {
    int part, view, channels;
    int custom;                                 /* the user's op: outputs are made even if no op reads them */
    int fixed;                                  /* a batch-norm that takes its running statistics in every plan */
    int stats;                                  /* statistics: the op that makes the tensor can make them, too */
    int first;                                  /* GCPI_VIEW_PART: the first channel */
    /* bits of inputs: read as one run of bytes, as is a gradient; besides where the target has a device */
    unsigned dense, dense_on_device;
    unsigned early;                             /* of parameters whose gradients backward writes before the others */
    unsigned shared;                            /* that each sample reads whole: weights, tables, values per channel */
    int apart;                                  /* GCP_FLAG_SAMPLES_APART, where inputs of `shared` have no samples */
    /* of GCP_FLAG_BF16: inputs that are read as gcp_real all the same; besides where the target has a device; outputs
       whose values are never rounded */
    unsigned floats, floats_on_device, exact;
    int leaves_out;                             /* a loss of samples: those of an ignored label do not count */
    int in_place, indexed;                      /* may overwrite input 0; backward reads the index, output 1 */
    const gcpi_conv_attr *window;               /* kernel, strides, paddings: part of the key of a cost */
    /* the range of labels or ids, its other input being of this shape; NULL: it reads none */
    gcpi_label_range (*labels)(const gcpi_attributes *a, gcp_shape other);
    /* on this CPU, in one pass: forward and a group; forward and statistics of its output, and their workspace. With
       both, a target's row may do the same (GCP_FLAG_FUSED) */
    void (*with_group)(const gcp_call *c, gcp_call *group);
    void (*with_stats)(const gcp_call *c, const gcp_call *stats);
    size_t (*stats_workspace)(const gcpi_conv_attr *a, const gcp_cost_call *call);
    /* writes the call that records it, but for its name and the last bracket (code.h); bits of inputs through which
       that call stops gradients; it is recorded by the call of the op behind it */
    void (*call)(struct gcpi_code *c, const gcpi_op *op);
    unsigned stops;
    int silent;
} gcpi_facts;

typedef struct gcpi_op_row {
    int kind;
    gcp_op op;
    void (*facts)(const gcpi_op *op, gcpi_facts *f);    /* fills what differs from the careful answer; may be NULL */
} gcpi_op_row;

/* Words of rows: bits of what backward reads, sets of flags. */
#define GCPI_IN(i)  (1u << (i))
#define GCPI_OUT(j) (1u << (j))
#define GCPI_EACH_ONE (GCP_FLAG_SAMPLES_APART | GCP_FLAG_SAME_CHANNELS)
#define GCPI_OVER     (GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_IN_PLACE | GCPI_EACH_ONE)
#define GCPI_PRODUCT  (GCP_FLAG_COSTLY | GCP_FLAG_CROSS | GCP_FLAG_SAMPLES_APART)
#define GCPI_LOSS     (GCP_FLAG_LOSS | GCP_FLAG_SAME_CHANNELS)

/* ---- recording ---- */

static int gcpi_enter(gcp_tensor x, gcp_at at, const char *what)
{
    if (x.tape && x.tape->full_ops) x.tape->full_ops++;
    if (!x.tape || x.tape->code) return 0;
    return gcpi_usable(x.tape, x, at, what);
}

static int gcpi_op_name(gcp_tape *t, const char *label, const char *named, gcp_at at)
{
    return gcpi_name_new(t, t->segments[t->open].name, label, named, at);
}

static gcp_tensor gcpi_record(gcp_tape *t, const gcpi_op_row *row, int name, const gcp_tensor *inputs, int count,
                              const gcpi_attributes *a, gcp_at at)
{
    int op = name ? gcpi_op_new(t, &row->op, row->kind, name, inputs, count, a, NULL, at) : -1;
    return op < 0 ? gcpi_nil(t) : gcpi_handle(t, t->ops[op].out);
}

/* An op without weights. */
static gcp_tensor gcpi_simple(const gcpi_op_row *row, const gcp_tensor *inputs, int count, const gcpi_attributes *a,
                              const char *named, gcp_at at)
{
    const char *label = row->op.name;
    gcp_tape *t = inputs[0].tape;
    if (!gcpi_enter(inputs[0], at, label)) return gcpi_nil(t);
    return gcpi_record(t, row, gcpi_op_name(t, label, named, at), inputs, count, a, at);
}
static gcp_tensor gcpi_unary(const gcpi_op_row *row, gcp_tensor x, gcp_op_opts o)
{
    return gcpi_simple(row, &x, 1, NULL, o.name, o.at);
}
static gcp_tensor gcpi_binary(const gcpi_op_row *row, gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    gcp_tensor in[2];
    in[0] = a; in[1] = b;
    return gcpi_simple(row, in, 2, NULL, o.name, o.at);
}
/* A call that records several ops: where one of them is refused, the others are taken back, too, and a full tape counts
   them all. */
typedef struct gcpi_before { gcpi_extents held; int full; } gcpi_before;
static gcpi_before gcpi_before_ops(gcp_tensor x)
{
    gcpi_before b;
    memset(&b, 0, sizeof b);
    if (x.tape) b.held = x.tape->good, b.full = x.tape->full_ops ? x.tape->full_ops : x.tape->good.ops;
    return b;
}
static gcp_tensor gcpi_all_or_none(gcp_tensor x, gcpi_before b, int ops, gcp_tensor y)
{
    if (!gcp_is_nil(y) || !x.tape) return y;
    x.tape->good = b.held;
    if (x.tape->full_ops) x.tape->full_ops = b.full + ops;
    return y;
}
static gcpi_attributes gcpi_no_attributes(void)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    return a;
}

static gcp_tensor gcpi_bad_option(gcp_tensor x, gcp_at at, const char *what, const char *option, double value,
                                  const char *allowed)
{
    if (gcpi_enter(x, at, what)) gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s = %g; %s", option, value, allowed);
    return gcpi_nil(x.tape);
}

/* ---- weights of layers: given, or made under the layer's name ---- */

static gcp_param_opts gcpi_weight_options(gcp_init init, gcp_init otherwise, double fan_in, double fan_out, gcp_at at)
{
    gcp_param_opts p;
    p.at = at;
    p.std = 0;
    p.init = init == GCP_INIT_DEFAULT ? otherwise : init;
    p.fan_in = (int)GCPI_MIN(fan_in, 2e9);
    p.fan_out = (int)GCPI_MIN(fan_out, 2e9);
    return p;
}

static gcp_shape gcpi_raw(int rank, int a, int b, int c, int d)
{
    gcp_shape s;
    s.rank = rank;
    s.d[0] = a; s.d[1] = b; s.d[2] = c; s.d[3] = d;
    return s;
}

#define gcpi_weight(t, layer, name, shape, options) \
    gcpi_parameter_of((t), GCPI_PARAMETER, (layer), (name), (shape), (options))

/* The options of a layer that makes its weights are errors where the weights are given. */
static int gcpi_given_ok(gcp_tensor x, gcp_tensor bias, const char *what, gcp_init init, int no_bias, gcp_at at)
{
    if (!gcpi_enter(x, at, what)) return 0;
    const char *vain = init != GCP_INIT_DEFAULT          ? ".init, but the weights are given"
                       : no_bias && !gcp_is_nil(bias) ? ".no_bias, but a bias is given"
                                                      : NULL;
    if (vain) gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s", vain);
    return !vain;
}
