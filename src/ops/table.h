/* The table of ops: all that planning and running know of an op. A row (gcp_op) is what built-in ops, custom ops and a
   device's kernels have in common; facts are what only some ops have. The planner and the executor name no op's
   function and read no op's attributes. */

/* The table, in the order of GCP_OPS. in, out: bits of the inputs and outputs that backward reads. */
#define GCPI_E (GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_IN_PLACE)
#define GCPI_P (GCP_FLAG_COSTLY | GCP_FLAG_CROSS)                       /* products */
#define GCPI_V (GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW)
#define GCPI_A (GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_VIEW)
#define GCPI_ROW(name, shape, cost, in, out, flags, outputs) \
    { #name, gcpi_##shape##_shape, gcpi_##name##_forward, gcpi_##name##_backward, cost, in, out, flags, outputs, NULL }
static const gcp_op gcpi_rows[GCP_ROW_COUNT] = {
    /*       name              shape's rule      cost                        in out flags, outputs */
    GCPI_ROW(conv2d,           conv2d,           gcpi_conv2d_cost,           3,  0, GCPI_P, 1),
    GCPI_ROW(conv_transpose2d, conv_transpose2d, gcpi_conv_transpose2d_cost, 3,  0, GCPI_P, 1),
    GCPI_ROW(upsample,         upsample,         NULL,                       0,  0, 0, 1),
    GCPI_ROW(linear,           linear,           gcpi_linear_cost,           3,  0, GCPI_P, 1),
    GCPI_ROW(matmul,           matmul,           gcpi_matmul_cost,           3,  0, GCPI_P, 1),
    GCPI_ROW(add,              pair,             NULL,                       0,  0, GCPI_A, 1),
    GCPI_ROW(mul,              pair,             NULL,                       3,  0, GCPI_E | GCP_FLAG_CROSS, 1),
    GCPI_ROW(bias,             bias,             gcpi_bias_cost,             0,  0, GCPI_E, 1),
    GCPI_ROW(scale,            unary,            NULL,                       0,  0, GCPI_E, 1),
    { "relu",          gcpi_rectify_shape, gcpi_rectify_forward, gcpi_rectify_backward, NULL,
      0, 1, GCPI_E | GCP_FLAG_SIGN_OR_MASK, 2, NULL },
    { "leaky_relu",    gcpi_rectify_shape, gcpi_rectify_forward, gcpi_rectify_backward, NULL,
      0, 1, GCPI_E | GCP_FLAG_SIGN_OR_MASK, 2, NULL },
    GCPI_ROW(tanh,             unary,            NULL,                       0,  1, GCPI_E, 1),
    GCPI_ROW(sigmoid,          unary,            NULL,                       0,  1, GCPI_E, 1),
    GCPI_ROW(gelu,             unary,            NULL,                       1,  0, GCPI_E, 1),
    GCPI_ROW(max_pool,         max_pool,         NULL,                       0,  2, GCPI_E, 2),
    GCPI_ROW(avg_pool,         pool,             NULL,                       0,  0, 0, 1),
    { "global_avg_pool", gcpi_global_avg_pool_shape, gcpi_avg_pool_forward, gcpi_avg_pool_backward, NULL,
      0, 0, 0, 1, NULL },
    { "batch_stats",   gcpi_batch_stats_shape, gcpi_batch_stats_forward, NULL, gcpi_batch_stats_cost,
      0, 0, GCP_FLAG_ONCE | GCP_FLAG_NO_GRADIENT, 2, NULL },
    GCPI_ROW(batch_norm,       norm,             gcpi_norm_cost,             15, 0, GCPI_E, 1),
    GCPI_ROW(layer_norm,       norm,             gcpi_norm_cost,             3,  0, GCPI_E, 1),
    GCPI_ROW(dropout,          unary,            NULL,                       0,  0, GCPI_E, 1),
    GCPI_ROW(concat,           concat,           NULL,                       0,  0, GCPI_V, 1),
    GCPI_ROW(slice,            slice,            NULL,                       0,  0, GCP_FLAG_VIEW, 1),
    GCPI_ROW(reshape,          reshape,          NULL,                       0,  0, GCPI_V, 1),
    GCPI_ROW(embedding,        embedding,        NULL,                       1,  0, 0, 1),
    GCPI_ROW(cross_entropy,    cross_entropy,    gcpi_loss_cost,             3,  0, GCP_FLAG_LOSS, 1),
    GCPI_ROW(mse,              mse,              gcpi_loss_cost,             3,  0, GCP_FLAG_LOSS, 1),
    GCPI_ROW(mean,             mean,             gcpi_loss_cost,             0,  0, GCP_FLAG_LOSS, 1),
    { "custom",        NULL, NULL, NULL, NULL, 0, 0, 0, 1, NULL },
    { "apply",         NULL, gcpi_apply_forward, NULL, NULL, 0, 0, GCP_FLAG_IN_PLACE, 2, NULL },
    { "seed",          NULL, gcpi_seed_forward, NULL, NULL, 0, 0, 0, 1, NULL },
    { "norm", NULL, gcpi_gradient_norm_add, gcpi_gradient_norm_finish, gcpi_gradient_norm_workspace, 0, 0, 0, 0, NULL },
    { "update",        NULL, gcpi_update_forward, NULL, NULL, 0, 0, 0, 3, NULL },
};
#undef GCPI_ROW

/* A group is a few consecutive ops that run as one pass (GCP_ROW_APPLY). An op can be one of these parts of it. */
enum { GCPI_PART_NONE, GCPI_PART_NORM, GCPI_PART_ADD, GCPI_PART_RECTIFIER };
/* Output 0 of a view is: all of input 0; channels of input 0; its inputs side by side. */
enum { GCPI_VIEW_NONE, GCPI_VIEW_WHOLE, GCPI_VIEW_PART, GCPI_VIEW_JOINED };

typedef struct gcpi_facts {
    int part, view;
    int custom;                                 /* the user's op: outputs are made even if no op reads them */
    int stats;                                  /* statistics: the op that makes the tensor can make them, too */
    int first;                                  /* GCPI_VIEW_PART: the first channel */
    /* bits of inputs that are read as one run of bytes, as is a gradient; and besides where the target has a device */
    unsigned dense, dense_on_device;
    unsigned early;                             /* bits of inputs whose gradients backward writes before the others */
    int in_place, indexed;                      /* may overwrite input 0; backward reads the index, output 1 */
    const gcpi_conv_attr *window;               /* kernel, strides, paddings: part of the key of a cost */
    /* on this CPU, in one pass: forward and a group; forward and statistics of its output, and their workspace */
    void (*with_group)(const gcp_call *c, gcp_call *group);
    void (*with_stats)(const gcp_call *c, const gcp_call *stats);
    size_t (*stats_workspace)(const gcpi_conv_attr *a, gcp_shape out, const gcp_target *target);
} gcpi_facts;

static gcpi_facts gcpi_facts_of(const gcpi_op *op)
{
    const gcpi_conv_attr *window = &op->attributes.conv;
    gcpi_facts f;
    memset(&f, 0, sizeof f);
    f.in_place = f.indexed = 1;
    switch (op->kind) {
    case GCP_OP_CONV2D:
        f.window = window;
        f.dense = 6;
        f.early = 4;
        f.with_group = gcpi_conv2d_apply;
        if (!GCPI_TAKES) break;
        f.with_stats = gcpi_conv2d_stats;
        f.stats_workspace = gcpi_conv2d_stats_workspace;
        break;
    case GCP_OP_MAX_POOL:
        f.window = window;
        f.in_place = gcpi_pool_copies(window);          /* larger windows read neighbours, too */
        f.indexed = window->kh * window->kw > 1;
        break;
    case GCP_OP_CONV_TRANSPOSE2D: f.window = window; f.dense = 6; f.early = 4; break;
    case GCP_OP_BIAS: f.dense = f.early = 2; break;
    case GCP_OP_LINEAR: f.dense = f.early = 4; f.dense_on_device = 2; break;
    case GCP_OP_MATMUL: f.dense_on_device = 2; break;
    case GCP_OP_LAYER_NORM: f.dense = f.early = 6; break;
    case GCP_OP_AVG_POOL: f.window = window; break;
    case GCP_OP_BATCH_STATS: f.stats = 1; break;
    case GCP_OP_BATCH_NORM: f.part = GCPI_PART_NORM; f.dense = 30; f.early = 24; break;
    case GCP_OP_ADD: f.part = GCPI_PART_ADD; break;
    case GCP_OP_RELU:
    case GCP_OP_LEAKY_RELU: f.part = GCPI_PART_RECTIFIER; break;
    case GCP_OP_RESHAPE: f.view = GCPI_VIEW_WHOLE; break;
    case GCP_OP_SLICE: f.view = GCPI_VIEW_PART; f.first = op->attributes.number.i; break;
    case GCP_OP_CONCAT: f.view = GCPI_VIEW_JOINED; break;
    case GCP_OP_CUSTOM: f.custom = 1; break;
    default: break;
    }
    return f;
}

GCPI_DEF const gcp_op *gcp_cpu_kernels(void) { return gcpi_rows; }

/* The row whose functions run an op on a target or, where op is NULL, one of the rows that no tape records. NULL: a
   custom op without a version for the target. */
static const gcp_op *gcpi_row_for(const gcp_target *target, const gcpi_op *op, int row)
{
    if (op && op->kind == GCP_OP_CUSTOM) return target->device ? op->row->on_device : op->row;
    return &(target->kernels ? target->kernels : gcpi_rows)[op ? op->kind : row];
}
