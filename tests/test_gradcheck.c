/* Every op's gradient against a 4-point stencil, in double and in float; and the same check against wrong backwards,
   which it must notice. They wrap the CPU's rows. */
#include <stdlib.h>
#include "gcp.h"
#include "support/check.h"
#include "support/pointwise.h"
#include "../examples/networks/lstm.h"
#include "../examples/networks/pde.h"

/* ---- the network of one case --------------------------------------------------------------------------------- */

typedef enum fill { SMOOTH, AWAY, DISTINCT, IDS, SOME_IDS } fill;     /* AWAY: from 0; DISTINCT: from each other */
enum { MOST = 1024 };
#define WRONG_BY (sizeof(gcp_real) == sizeof(float) ? 1.0 : 0.001)

static unsigned char tape_memory[1 << 18], step_memory[1 << 18];
static gcp_arena arena;
static gcp_tape *net;
static struct { gcp_tensor x; fill how; } given[16];
static int givens, names;

static gcp_tensor give(gcp_tensor x, fill how)
{
    given[givens].x = x;
    given[givens++].how = how;
    return x;
}

static const char *fresh_name(void)
{
    static char name[8];
    snprintf(name, sizeof name, "x%d", names++ % 1000);
    return name;
}

static gcp_tensor wanted(fill how, gcp_shape shape)
{
    return give(gcp_want_grad(gcp_input(net, fresh_name(), shape)), how);
}
static gcp_tensor labels(fill how, gcp_shape shape) { return give(gcp_labels(net, fresh_name(), shape), how); }
static gcp_tensor fixed(gcp_shape shape) { return give(gcp_input(net, fresh_name(), shape), SMOOTH); }
static gcp_tensor weight(gcp_shape shape)
{
    return gcp_param_at(net, fresh_name(), shape, GCP_OPTS(gcp_param_opts, .fan_in = 1));
}

#define S(...)    GCP_SHAPE(__VA_ARGS__)
#define IN(...)   wanted(SMOOTH, S(__VA_ARGS__))
#define AWAY(...) wanted(AWAY, S(__VA_ARGS__))
#define FAR(...)  wanted(DISTINCT, S(__VA_ARGS__))

/* A scalar whose gradient differs from element to element; a loss stays as it is. */
static gcp_tensor weighed(gcp_tensor y)
{
    gcp_shape s = gcp_shape_of(y);
    if (s.rank == 0) return y;
    s.rank = 4;                      /* its four sizes are all given */
    return gcp_scale(gcp_mean(gcp_mul(y, fixed(s))), .by = (double)gcp_elements(y));
}

/* ---- a custom op: (a, b) -> (exp(a / 2), a + b b), in place over a where it may ------------------------------- */

static gcp_op_kind wrong_kind;       /* whose backward is wrong, ... */
static int wrong_input;              /* ... in the gradient of which input, ... */
static int wrong_made, calls;        /* ... how many elements of it were; and calls of any backward of that kind */
static int inputs;                   /* of that op */

static double at(const gcp_view *v, int i)
{
    return (double)((const gcp_real *)v->data)[i / v->shape.d[3] * v->pitch + i % v->shape.d[3]];
}
static void put(const gcp_view *v, int i, double value)
{
    gcp_real *to = (gcp_real *)v->data + i / v->shape.d[3] * v->pitch + i % v->shape.d[3];
    *to = (gcp_real)(v->accumulate ? (double)*to + value : value);
}
static int count_of(const gcp_view *v) { return v->shape.d[0] * v->shape.d[1] * v->shape.d[2] * v->shape.d[3]; }

static void make_wrong(const gcp_call *c)
{
    calls++;
    inputs = c->inputs;
    if (wrong_input >= c->inputs || !c->din[wrong_input].data) return;
    gcp_view v = c->din[wrong_input];
    v.accumulate = 0;
    for (int i = 0; i < count_of(&v); i++) {
        wrong_made += fabs(at(&v, i)) > (WRONG_BY < 0.01 ? 1e-3 : 0.01);
        put(&v, i, at(&v, i) * (1 + WRONG_BY));
    }
}

static int two_shape(gcp_shape_call *s)
{
    s->out[0] = s->out[1] = s->in[0];
    return 1;
}
static void two_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = (size_t)(c->in[0].d[0] * c->in[0].d[1] * c->in[0].d[2] * c->in[0].d[3]) * sizeof(gcp_real);
}
static void two_forward(const gcp_call *c)
{
    gcp_real *copy = (gcp_real *)c->workspace;        /* output 0 may be input 0 */
    int n = count_of(&c->in[0]);
    for (int i = 0; i < n; i++) copy[i] = (gcp_real)at(&c->in[0], i);
    for (int i = 0; i < n; i++) put(&c->out[0], i, exp((double)copy[i] / 2));
    for (int i = 0; i < n && c->out[1].data; i++)
        put(&c->out[1], i, (double)copy[i] + at(&c->in[1], i) * at(&c->in[1], i));
}
static void two_backward(const gcp_call *c)
{
    gcp_real *from1 = (gcp_real *)c->workspace;       /* the gradient of input 0 may be that of output 0 */
    for (int i = 0; i < count_of(&c->in[0]); i++) {
        double from0 = c->dout[0].data ? at(&c->dout[0], i) : 0;
        from1[i] = (gcp_real)(c->dout[1].data ? at(&c->dout[1], i) : 0);
        if (c->din[0].data) put(&c->din[0], i, from0 * at(&c->out[0], i) / 2 + (double)from1[i]);
        if (c->din[1].data) put(&c->din[1], i, (double)from1[i] * 2 * at(&c->in[1], i));
    }
    if (wrong_kind == GCP_OP_CUSTOM) make_wrong(c);
}
static const gcp_op two = { "two",    two_shape, two_forward, two_backward,
                            two_cost, 2,         1,           GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_IN_PLACE,
                            2,        NULL };

/* which: 1, 2 or 3: one output is used, the other, or both */
static gcp_tensor custom(gcp_tensor a, gcp_tensor b, int which)
{
    gcp_tensor in[2] = { a, b }, out[2];
    gcp_custom(in, 2, &two, .outputs = out);
    return which == 3 ? gcp_mul(out[0], out[1]) : out[which - 1];
}

/* ---- the cases: kind of op, name, body ------------------------------------------------------------------------ */

#define CONVOLUTIONS(X)                                                                                                \
    X(CONV2D, conv_1x1, return gcp_conv2d(IN(2, 3, 4, 3), .out = 4, .k = 1);)                                          \
    X(CONV2D, conv_1x1_stride2, return gcp_conv2d(IN(2, 4, 5, 3), .out = 2, .k = 1, .stride = 2);)                     \
    X(CONV2D, conv_1x1_pad, return gcp_conv2d(IN(1, 2, 3, 2), .out = 2, .k = 1, .pad = 1);)                            \
    X(CONV2D, conv_2x2, return gcp_conv2d(IN(2, 3, 4, 2), .out = 3, .k = 2);)                                          \
    X(CONV2D, conv_3x3, return gcp_conv2d(IN(1, 4, 5, 3), .out = 4, .k = 3, .pad = 1);)                                \
    X(CONV2D, conv_3x3_no_bias, return gcp_conv2d(IN(1, 4, 5, 3), .out = 4, .k = 3, .pad = 1, .no_bias = 1);)          \
    X(CONV2D, conv_3x3_stride2, return gcp_conv2d(IN(2, 5, 6, 2), .out = 3, .k = 3, .stride = 2);)                     \
    X(CONV2D, conv_3x3_stride2_pad1, return gcp_conv2d(IN(1, 5, 6, 2), .out = 3, .k = 3, .stride = 2, .pad = 1);)      \
    X(CONV2D, conv_1x3, return gcp_conv2d(IN(1, 3, 5, 2), .out = 3, .kh = 1, .kw = 3);)                                \
    X(CONV2D, conv_3x1, return gcp_conv2d(IN(1, 5, 3, 2), .out = 3, .kh = 3, .kw = 1, .pad_top = 1, .pad_bottom = 1);) \
    X(CONV2D, conv_2x3_asymmetric,                                                                                     \
      return gcp_conv2d(IN(1, 4, 3, 2), .out = 3, .kh = 2, .kw = 3, .pad_top = 1, .pad_left = 2, .pad_right = 1);)     \
    X(CONV2D, conv_strides_2_1,                                                                                        \
      return gcp_conv2d(IN(1, 5, 4, 2), .out = 3, .k = 2, .stride_h = 2, .stride_w = 1, .pad_bottom = 1);)             \
    X(CONV2D, conv_stride_beyond_kernel, return gcp_conv2d(IN(1, 7, 6, 2), .out = 2, .k = 2, .stride = 3);)            \
    X(CONV2D, conv_same, return gcp_conv2d(IN(1, 4, 5, 2), .out = 2, .k = 2, .padding = GCP_PADDING_SAME);)            \
    X(CONV2D, conv_same_stride2,                                                                                       \
      return gcp_conv2d(IN(1, 6, 5, 2), .out = 2, .k = 3, .stride = 2, .padding = GCP_PADDING_SAME);)                  \
    X(CONV2D, conv_dilation2, return gcp_conv2d(IN(1, 6, 5, 2), .out = 2, .k = 3, .dilation = 2, .pad = 1);)           \
    X(CONV2D, conv_dilation_1_2_stride2,                                                                               \
      return gcp_conv2d(IN(1, 5, 7, 2), .out = 2, .k = 2, .dilation_h = 1, .dilation_w = 2, .stride = 2,               \
                        .pad_left = 1);)                                                                               \
    X(CONV2D, conv_pad_beyond_kernel, return gcp_conv2d(IN(1, 2, 2, 2), .out = 2, .k = 2, .pad = 3);)                  \
    X(CONV2D, conv_groups2, return gcp_conv2d(IN(1, 3, 4, 4), .out = 6, .k = 3, .pad = 1, .groups = 2);)               \
    X(CONV2D, conv_groups2_stride2_no_bias,                                                                            \
      return gcp_conv2d(IN(1, 5, 4, 6), .out = 4, .k = 2, .stride = 2, .groups = 2, .no_bias = 1);)                    \
    X(CONV2D, conv_depthwise, return gcp_conv2d(IN(1, 4, 5, 5), .out = 5, .k = 3, .pad = 1, .groups = 5);)             \
    X(CONV2D, conv_depthwise_stride2_dilation2,                                                                        \
      return gcp_conv2d(IN(1, 7, 6, 3), .out = 3, .k = 2, .stride = 2, .dilation = 2, .groups = 3);)                   \
    X(CONV2D, conv_depthwise_multiplier, return gcp_conv2d(IN(1, 4, 3, 3), .out = 6, .k = 2, .groups = 3);)            \
    X(CONV2D, conv_17_to_9, return gcp_conv2d(IN(1, 2, 3, 17), .out = 9, .k = 2);)                                     \
    X(CONV2D, conv_shared, gcp_tensor w = weight(S(2, 3, 3, 2)), b = weight(S(2)),                                     \
      x = gcp_conv2d_op(IN(1, 4, 4, 2), w, b, .pad = 1);                                                               \
      return gcp_conv2d_op(x, w, b, .pad = 1);)                                                                        \
    X(CONV2D, conv_made_weight, gcp_tensor x = IN(1, 3, 4, 2), w = gcp_tanh(IN(3, 2, 2, 2));                           \
      return gcp_conv2d_op(x, w, GCP_NIL, .k = 2);)                                                                    \
    X(CONV2D, conv_sliced_weight, gcp_tensor w = gcp_slice(weight(S(3, 2, 2, 7)), .first = 3, .count = 2);             \
      return gcp_conv2d_op(IN(1, 3, 4, 2), w, GCP_NIL, .k = 2);)                                                       \
    X(CONV2D, conv_joined_weight, gcp_tensor x = IN(1, 3, 4, 2), w = gcp_tanh(IN(3, 2, 2, 2)), v = IN(3, 2, 2, 1);     \
      gcp_tensor y = gcp_conv2d_op(x, w, GCP_NIL, .k = 2), z = gcp_concat(GCP_TENSORS(v, w));                          \
      return gcp_add(gcp_mean(gcp_mul(y, y)), gcp_mean(gcp_mul(z, z)));)                                               \
    X(CONV2D, conv_of_slice,                                                                                           \
      return gcp_conv2d(gcp_slice(gcp_tanh(IN(1, 3, 4, 6)), .first = 2, .count = 3), .out = 2, .k = 2);)               \
    X(CONV2D, conv_into_concat, gcp_tensor x = IN(1, 3, 3, 2), y = gcp_conv2d(x, .out = 3, .k = 3, .pad = 1);          \
      return gcp_concat(GCP_TENSORS(gcp_conv2d(y, .out = 2, .k = 1), y));)                                             \
    X(BIAS, bias_sliced, gcp_tensor b = gcp_slice(weight(S(3, 2)), .first = 1, .count = 1);                            \
      return gcp_bias(IN(2, 3), b);)                                                                                   \
    X(CONV2D, conv_sliced_bias, gcp_tensor b = gcp_slice(weight(S(3, 2)), .first = 1, .count = 1);                     \
      return gcp_conv2d_op(IN(1, 3, 3, 2), weight(S(3, 2, 2, 2)), b, .k = 2);)                                         \
    X(LINEAR, linear_sliced_bias, gcp_tensor b = gcp_slice(weight(S(3, 2)), .first = 1, .count = 1);                   \
      return gcp_linear_op(IN(2, 4), weight(S(3, 4)), b);)                                                             \
    X(LAYER_NORM, layer_norm_sliced, gcp_tensor g = gcp_slice(weight(S(4, 3)), .first = 1, .count = 1);                \
      return gcp_layer_norm_op(IN(3, 4), g, gcp_slice(weight(S(4, 2)), .first = 0, .count = 1));)                      \
    X(BATCH_NORM, batch_norm_sliced, gcp_tensor g = gcp_slice(weight(S(4, 3)), .first = 1, .count = 1);                \
      return gcp_batch_norm_op(IN(3, 4), g, gcp_slice(weight(S(4, 2)), .first = 0, .count = 1));)                      \
    X(CONV_TRANSPOSE2D, up_sliced_weight, gcp_tensor w = gcp_slice(weight(S(2, 2, 2, 7)), .first = 1, .count = 3);     \
      return gcp_conv_transpose2d_op(IN(1, 2, 3, 2), w, GCP_NIL, .k = 2);)                                             \
    X(CONV_TRANSPOSE2D, up_1x1, return gcp_conv_transpose2d(IN(1, 3, 4, 3), .out = 2, .k = 1);)                        \
    X(CONV_TRANSPOSE2D, up_1x1_stride2, return gcp_conv_transpose2d(IN(1, 2, 3, 2), .out = 2, .k = 1, .stride = 2);)   \
    X(CONV_TRANSPOSE2D, up_2x2_stride2, return gcp_conv_transpose2d(IN(2, 2, 3, 2), .out = 3, .k = 2, .stride = 2);)   \
    X(CONV_TRANSPOSE2D, up_3x3, return gcp_conv_transpose2d(IN(1, 3, 4, 2), .out = 3, .k = 3, .pad = 1);)              \
    X(CONV_TRANSPOSE2D, up_3x3_stride2,                                                                                \
      return gcp_conv_transpose2d(IN(1, 3, 2, 3), .out = 2, .k = 3, .stride = 2, .pad = 1);)                           \
    X(CONV_TRANSPOSE2D, up_no_bias,                                                                                    \
      return gcp_conv_transpose2d(IN(1, 3, 2, 3), .out = 2, .k = 3, .stride = 2, .no_bias = 1);)                       \
    X(CONV_TRANSPOSE2D, up_2x3_asymmetric,                                                                             \
      return gcp_conv_transpose2d(IN(1, 3, 3, 2), .out = 2, .kh = 2, .kw = 3, .stride_w = 2, .pad_top = 1,             \
                                  .pad_right = 2);)                                                                    \
    X(CONV_TRANSPOSE2D, up_same_stride2,                                                                               \
      return gcp_conv_transpose2d(IN(1, 2, 3, 2), .out = 2, .k = 3, .stride = 2, .padding = GCP_PADDING_SAME);)        \
    X(CONV_TRANSPOSE2D, up_dilation2,                                                                                  \
      return gcp_conv_transpose2d(IN(1, 2, 3, 2), .out = 2, .k = 2, .stride = 2, .dilation = 2, .pad = 1);)            \
    X(CONV_TRANSPOSE2D, up_groups2,                                                                                    \
      return gcp_conv_transpose2d(IN(1, 2, 3, 4), .out = 6, .k = 2, .stride = 2, .groups = 2);)                        \
    X(CONV_TRANSPOSE2D, up_depthwise,                                                                                  \
      return gcp_conv_transpose2d(IN(1, 3, 2, 4), .out = 4, .k = 3, .stride = 2, .pad = 1, .groups = 4);)              \
    X(CONV_TRANSPOSE2D, up_shared, gcp_tensor w = weight(S(2, 3, 3, 2)), b = weight(S(2)),                             \
      x = gcp_conv_transpose2d_op(IN(1, 3, 3, 2), w, b, .pad = 1);                                                     \
      return gcp_conv_transpose2d_op(x, w, b, .pad = 1);)

/* a tensor that is several inputs of one op: its gradient is their sum */
#define REPEATED(X)                                                                                                   \
    X(CONV2D, conv_same_b, gcp_tensor w = IN(2, 1, 1, 1); return gcp_conv2d_op(IN(1, 2, 3, 1), w, w);)                \
    X(CONV2D, conv_weight_too, gcp_tensor x = gcp_tanh(IN(2, 2, 2, 3)); return gcp_conv2d_op(x, x, GCP_NIL, .k = 2);) \
    X(CONV_TRANSPOSE2D, up_same_b, gcp_tensor w = IN(1, 1, 1, 2);                                                     \
      return gcp_conv_transpose2d_op(IN(1, 2, 3, 1), w, w);)                                                          \
    X(LINEAR, linear_same_b, gcp_tensor w = IN(3, 1); return gcp_linear_op(IN(2, 1), w, w);)                          \
    X(LINEAR, linear_same_x, gcp_tensor x = gcp_tanh(IN(1, 3)); return gcp_linear_op(x, weight(S(3, 3)), x);)         \
    X(BIAS, bias_same, gcp_tensor x = gcp_tanh(IN(1, 3)); return gcp_bias(x, x);)                                     \
    X(LAYER_NORM, layer_norm_gamma, gcp_tensor x = gcp_tanh(IN(1, 4)); return gcp_layer_norm_op(x, x, weight(S(4)));) \
    X(LAYER_NORM, layer_norm_beta, gcp_tensor x = gcp_tanh(IN(1, 4)); return gcp_layer_norm_op(x, weight(S(4)), x);)  \
    X(LAYER_NORM, layer_norm_one, gcp_tensor g = IN(4); return gcp_layer_norm_op(IN(3, 4), g, g);)                    \
    X(BATCH_NORM, batch_norm_gamma, gcp_tensor x = gcp_tanh(IN(1, 1, 3, 4));                                          \
      return gcp_batch_norm_op(x, gcp_global_avg_pool(x), weight(S(4)));)                                             \
    X(BATCH_NORM, batch_norm_beta, gcp_tensor x = gcp_tanh(IN(1, 1, 3, 4));                                           \
      return gcp_batch_norm_op(x, weight(S(4)), gcp_global_avg_pool(x));)

#define PRODUCTS(X)                                                                                                  \
    X(LINEAR, linear_2d, return gcp_linear(IN(3, 5), .out = 4);)                                                     \
    X(LINEAR, linear_3d_no_bias, return gcp_linear(IN(2, 3, 5), .out = 4, .no_bias = 1);)                            \
    X(LINEAR, linear_4d, return gcp_linear(IN(2, 2, 3, 3), .out = 4);)                                               \
    X(LINEAR, linear_wide, return gcp_linear(IN(2, 37), .out = 19);)                                                 \
    X(LINEAR, linear_shared, gcp_tensor w = weight(S(4, 4)), b = weight(S(4));                                       \
      return gcp_linear_op(gcp_linear_op(IN(3, 4), w, b), w, b);)                                                    \
    X(LINEAR, linear_of_slice, return gcp_linear(gcp_slice(gcp_tanh(IN(3, 7)), .first = 1, .count = 4), .out = 3);)  \
    X(MATMUL, matmul, gcp_tensor a = IN(3, 4), b = IN(4, 5); return gcp_matmul(a, b);)                               \
    X(MATMUL, matmul_square, gcp_tensor x = IN(4, 4); return gcp_matmul(x, x);)                                      \
    X(MATMUL, matmul_of_slices, gcp_tensor x = gcp_tanh(IN(3, 7));                                                   \
      return gcp_matmul(gcp_slice(x, .first = 0, .count = 3), gcp_slice(x, .first = 3, .count = 4));)                \
    X(MATMULS, matmul_batch, gcp_tensor x = gcp_tanh(IN(2, 3, 4)); return gcp_matmul(x, IN(2, 4, 2));)               \
    X(MATMULS, matmul_ta, gcp_tensor x = gcp_tanh(IN(2, 4, 3)); return gcp_matmul(x, IN(2, 4, 2), .transpose_a = 1);) \
    X(MATMULS, matmul_tb, gcp_tensor x = gcp_tanh(IN(9, 3, 4)); return gcp_matmul(x, IN(9, 2, 4), .transpose_b = 1);) \
    X(MATMULS, matmul_tt, gcp_tensor x = gcp_tanh(IN(3, 4, 3));                                                      \
      return gcp_matmul(x, IN(1, 2, 4), .transpose_a = 1, .transpose_b = 1);)                                        \
    X(MATMULS, matmul_squares, gcp_tensor x = gcp_tanh(IN(2, 3, 4)); return gcp_matmul(x, x, .transpose_b = 1);)     \
    X(MATMULS, matmul_spread, gcp_tensor x = gcp_tanh(IN(1, 3, 2, 4)); return gcp_matmul(x, IN(5, 1, 4, 3));)        \
    X(MATMULS, matmul_rows, gcp_tensor x = gcp_tanh(IN(2, 4, 3)); return gcp_matmul(IN(5, 4), x);)                   \
    X(MATMULS, matmul_flat, gcp_tensor x = gcp_tanh(IN(5, 4)), y = gcp_tanh(IN(3, 5));                               \
      return gcp_matmul(x, y, .transpose_a = 1, .transpose_b = 1);)                                                  \
    X(MATMULS, matmul_slices, gcp_tensor x = gcp_tanh(IN(2, 3, 7));                                                  \
      return gcp_matmul(gcp_slice(x, .first = 0, .count = 3), gcp_slice(x, .first = 3, .count = 4));)                \
    X(ADD, add, gcp_tensor a = IN(2, 3, 2, 3), b = IN(2, 3, 2, 3); return gcp_add(a, b);)                            \
    X(ADD, add_same, gcp_tensor x = IN(2, 3); return gcp_add(x, x);)                                                 \
    X(ADD, add_same_made, gcp_tensor x = gcp_tanh(IN(2, 3)); return gcp_tanh(gcp_add(gcp_add(x, x), x));)            \
    X(ADD, add_residual, gcp_tensor x = gcp_tanh(IN(2, 3)); return gcp_add(gcp_tanh(gcp_linear(x, .out = 3)), x);)   \
    X(PAIR, mul, gcp_tensor a = IN(2, 3, 2, 3), b = IN(2, 3, 2, 3); return gcp_mul(a, b);)                            \
    X(PAIR, mul_same, gcp_tensor x = IN(2, 3); return gcp_mul(x, x);)                                                 \
    X(PAIR, mul_same_made, gcp_tensor x = gcp_tanh(IN(2, 3)); return gcp_mul(gcp_mul(x, x), x);)                      \
    X(ATTENTION, attention, gcp_tensor q = IN(2, 5, 6), k = IN(2, 3, 6), v = IN(2, 3, 4);                            \
      return gcp_attention(q, k, v, .heads = 2);)                                                                    \
    X(ATTENTION, attention_self, gcp_tensor x = gcp_tanh(IN(2, 4, 6));                                               \
      return gcp_attention(x, x, x, .heads = 3, .causal = 1, .scale = 0.7);)                                         \
    X(ATTENTION, attention_bias, gcp_tensor x = gcp_tanh(IN(2, 4, 8)), k = gcp_slice(x, .first = 1, .count = 2);     \
      return gcp_attention(x, k, gcp_slice(x, .first = 5, .count = 3), .heads = 4, .bias = weight(S(1, 4, 4, 4)));)  \
    X(ATTENTION, attention_windows, gcp_tensor x = gcp_tanh(IN(4, 3, 4));                                            \
      return gcp_attention(x, x, x, .heads = 2, .bias = weight(S(2, 2, 3, 3)));)                                     \
    X(ATTENTION, attention_image, gcp_tensor x = gcp_tanh(IN(2, 2, 3, 4)), y = gcp_attention(x, x, x, .heads = 2);   \
      return gcp_add(y, x);)                                                                                         \
    X(TRANSPOSE, transpose, return gcp_transpose(gcp_tanh(IN(2, 3, 5, 4)), 0, 2, 1, 3);)                              \
    X(TRANSPOSE, transpose_matrices, return gcp_transpose(IN(2, 7, 5), 0, 1, 3, 2);)                                 \
    X(TRANSPOSE, transpose_all, gcp_tensor x = gcp_tanh(IN(2, 3, 5, 4));                                             \
      return gcp_mul(gcp_transpose(x, 3, 1, 0, 2), gcp_tanh(gcp_transpose(x, 3, 1, 0, 2)));)                         \
    X(TRANSPOSE, transpose_views, gcp_tensor x = gcp_tanh(IN(2, 3, 5, 6));                                           \
      return gcp_transpose(gcp_slice(x, .first = 1, .count = 3), 3, 2, 1, 0);)                                       \
    X(TRANSPOSE, shuffle, return gcp_channel_shuffle(gcp_tanh(IN(2, 2, 3, 12)), .groups = 3);)                       \
    X(JOIN, class_token, gcp_tensor x = gcp_tanh(IN(2, 4, 3)), token = gcp_expand(weight(S(1, 1, 3)), S(2, 1, 3));   \
      return gcp_concat(GCP_TENSORS(token, x, x), .axis = GCP_AXIS_TOKENS);)                                         \
    X(JOIN, join_samples, gcp_tensor x = gcp_tanh(IN(2, 2, 3, 4));                                                   \
      return gcp_tanh(gcp_concat(GCP_TENSORS(x, gcp_tanh(x), x), .axis = GCP_AXIS_SAMPLES));)                        \
    X(JOIN, join_rows, gcp_tensor x = gcp_tanh(IN(2, 2, 3, 4)), y = gcp_tanh(IN(2, 1, 3, 4));                        \
      return gcp_concat(GCP_TENSORS(x, y), .axis = GCP_AXIS_HEIGHT);)                                                \
    X(PAD, pad_zeros, return gcp_pad(gcp_tanh(IN(2, 3, 2, 3)), .before = 1, .after = 2, .axis = GCP_AXIS_HEIGHT);)   \
    X(PAD, pad_edge, gcp_tensor x = gcp_tanh(IN(2, 3, 2, 3));                                                        \
      return gcp_pad(gcp_mul(x, x), .before = 3, .after = 2, .axis = GCP_AXIS_WIDTH, .mode = GCP_PAD_EDGE);)         \
    X(PAD, pad_reflect, gcp_tensor x = gcp_tanh(IN(2, 2, 4, 3));                                                     \
      return gcp_pad(x, .before = 3, .after = 2, .axis = GCP_AXIS_TOKENS, .mode = GCP_PAD_REFLECT);)                 \
    X(PAD, pad_channels, gcp_tensor x = gcp_tanh(IN(2, 2, 2, 4)), y = gcp_pad(x, .after = 1);                        \
      return gcp_mul(gcp_pad(x, .before = 1), gcp_add(y, gcp_pad(x, .before = 1, .mode = GCP_PAD_REFLECT)));)        \
    X(PAD, pad_samples, gcp_tensor x = gcp_tanh(IN(2, 5));                                                           \
      return gcp_pad(x, .before = 1, .axis = GCP_AXIS_SAMPLES, .mode = GCP_PAD_EDGE);)                               \
    X(PAD, pad_one, return gcp_pad(gcp_tanh(IN(3, 4, 1)), .before = 2, .mode = GCP_PAD_EDGE);)                       \
    X(SUM, sum_pixels, gcp_tensor x = IN(2, 3, 4, 3);                                                                \
      return gcp_mul(x, gcp_reduce(gcp_tanh(x), .by = GCP_REDUCE_SUM, .height = 1, .width = 1));)                    \
    X(SUM, sum_mixed, return gcp_reduce(gcp_tanh(IN(2, 3, 4, 3)), .samples = 1, .width = 1);)                        \
    X(SUM, sum_channels, return gcp_reduce(gcp_tanh(IN(2, 3, 2, 9)), .by = GCP_REDUCE_SUM, .channels = 1);)          \
    X(SUM, sum_all, gcp_tensor x = gcp_tanh(IN(3, 5)); return gcp_mul(gcp_reduce(x), gcp_reduce(x, .tokens = 1));)    \
    X(MAX, max_pixels, gcp_tensor x = FAR(2, 3, 4, 3);                                                               \
      return gcp_reduce(gcp_mul(x, x), .by = GCP_REDUCE_MAX, .height = 1, .width = 1);)                              \
    X(MAX, max_channels, return gcp_reduce(gcp_tanh(FAR(3, 2, 2, 5)), .by = GCP_REDUCE_MAX, .channels = 1);)         \
    X(MAX, max_samples, gcp_tensor x = FAR(3, 4);                                                                    \
      return gcp_sub(x, gcp_reduce(x, .by = GCP_REDUCE_MAX, .samples = 1));)                                         \
    X(MAX, max_all, return gcp_reduce(FAR(2, 2, 3, 3), .by = GCP_REDUCE_MAX);)                                       \
    X(TRANSPOSE, pixel_shuffle, return gcp_pixel_shuffle(gcp_tanh(IN(2, 2, 3, 8)));)                                 \
    X(TRANSPOSE, pixel_unshuffle, return gcp_pixel_unshuffle(gcp_tanh(IN(1, 6, 3, 2)), .factor = 3);)                \
    X(RESIZE, resize_down, return gcp_resize(gcp_tanh(IN(2, 5, 4, 3)), .height = 3, .width = 5);)                    \
    X(RESIZE, resize_bilinear, gcp_tensor x = gcp_tanh(IN(2, 3, 4, 2));                                              \
      return gcp_resize(gcp_mul(x, x), .height = 5, .width = 3, .mode = GCP_UPSAMPLING_BILINEAR);)                   \
    X(RESIZE, resize_corners, return gcp_resize(gcp_tanh(IN(2, 3, 4, 2)), .height = 1, .width = 7,                   \
                                                .mode = GCP_UPSAMPLING_BILINEAR, .corners = 1);)                     \
    X(CUT, cut_token, return gcp_slice(gcp_tanh(IN(2, 5, 3)), .first = 0, .count = 1, .axis = GCP_AXIS_TOKENS);)     \
    X(CUT, cut_steps, gcp_tensor x = gcp_tanh(IN(2, 5, 6, 3));                                                       \
      return gcp_add(gcp_slice(x, .first = 1, .count = 3, .step = 2, .axis = GCP_AXIS_WIDTH),                        \
                     gcp_slice(x, .first = 0, .count = 3, .step = 2, .axis = GCP_AXIS_WIDTH));)                      \
    X(CUT, cut_channels, return gcp_slice(gcp_tanh(IN(2, 2, 3, 9)), .first = 1, .count = 4, .step = 2);)             \
    X(PAIR, expand, return gcp_expand(gcp_tanh(IN(2, 1, 3, 1)), S(2, 4, 3, 5));)                                     \
    X(LAYER_NORM, rms_norm, gcp_tensor x = IN(2, 2, 3, 5); return gcp_rms_norm_op(x, weight(S(5)), .epsilon = 0.1);) \
    X(LAYER_NORM, rms_norm_wide, return gcp_rms_norm(gcp_tanh(IN(3, 35)));)                                          \
    X(GROUP_NORM, group_norm, gcp_tensor x = IN(2, 2, 3, 6);                                                         \
      return gcp_group_norm_op(x, weight(S(6)), weight(S(6)), .groups = 3, .epsilon = 0.1);)           \
    X(GROUP_NORM, instance_norm, return gcp_group_norm(gcp_tanh(IN(2, 2, 3, 5)), .groups = 5);)                      \
    X(GROUP_NORM, group_norm_twice, gcp_tensor x = gcp_tanh(IN(2, 2, 2, 4)), y = gcp_group_norm(x, .groups = 1);     \
      return gcp_mul(y, gcp_add(x, gcp_group_norm(x, .groups = 2)));)                                                \
    X(SOFTMAX, softmax, return gcp_softmax(IN(3, 5));)                                                               \
    X(SOFTMAX, softmax_wide, return gcp_softmax(gcp_scale(IN(2, 1, 2, 37), .by = 3));)                               \
    X(SOFTMAX, log_softmax, return gcp_log_softmax(gcp_scale(IN(2, 2, 1, 19), .by = 4));)                            \
    X(SOFTMAX, softmax_twice, gcp_tensor x = gcp_tanh(IN(3, 17)), y = gcp_softmax(x);                                \
      return gcp_mul(y, gcp_softmax(gcp_add(x, y)));)                                                                \
    X(PAIR, sub, gcp_tensor a = IN(2, 3, 2, 3), b = IN(2, 3, 2, 3); return gcp_sub(a, b);)                           \
    X(PAIR, div, gcp_tensor a = IN(2, 3, 2, 3), b = AWAY(2, 3, 2, 3); return gcp_div(a, b);)                         \
    X(PAIR, div_same, gcp_tensor x = gcp_exp(IN(2, 3)); return gcp_div(x, gcp_mul(x, x));)                           \
    X(PAIR, maximum, return gcp_maximum(FAR(2, 3, 2, 3), gcp_scale(FAR(2, 1, 1, 3), .by = 0.51));)                   \
    X(PAIR, minimum, return gcp_minimum(gcp_scale(FAR(3), .by = 0.51), FAR(2, 3, 2, 3));)                            \
    X(PAIR, prelu, gcp_tensor x = AWAY(2, 3, 2, 3); return gcp_prelu(x, weight(S(3)));)                              \
    X(PAIR, prelu_one, gcp_tensor x = AWAY(4, 5); return gcp_prelu(x, weight(S(1)));)                                \
    X(PAIR, gate, gcp_tensor x = IN(2, 3, 4, 5);                                                                     \
      return gcp_mul(x, gcp_sigmoid(gcp_linear(gcp_global_avg_pool(x), .out = 5)));)                                 \
    X(PAIR, positions, gcp_tensor x = gcp_tanh(IN(3, 4, 5)); return gcp_add(x, weight(S(1, 4, 5)));)                 \
    X(PAIR, over_channels, gcp_tensor x = IN(2, 3, 4, 5); return gcp_mul(gcp_slice(x, .first = 1, .count = 1), x);)  \
    X(PAIR, both_spread, gcp_tensor a = gcp_tanh(IN(2, 1, 3, 1)), b = IN(1, 4, 1, 5); return gcp_div(a, gcp_exp(b));) \
    X(PAIR, less_a_channel, gcp_tensor z = gcp_linear(IN(4, 8), .out = 2);                                           \
      return gcp_tanh(gcp_sub(z, gcp_slice(z, .first = 0, .count = 1)));)                                            \
    X(PAIR, of_views, gcp_tensor x = gcp_tanh(IN(2, 3, 2, 7)), y = gcp_tanh(IN(2, 7));                               \
      gcp_tensor part = gcp_slice(y, .first = 2, .count = 4);                                                        \
      return gcp_concat(GCP_TENSORS(gcp_sub(gcp_slice(x, .first = 1, .count = 4), part), x));)                       \
    X(PAIR, many_rows, gcp_tensor x = IN(2, 11, 13, 3), b = weight(S(3)); return gcp_mul(gcp_add(x, b), b);)         \
    X(PAIR, one_value, gcp_tensor x = IN(2, 9, 28, 2), b = weight(S(1)); return gcp_mul(b, x);)                      \
    X(PAIR, a_sample, gcp_tensor x = IN(3, 5), b = IN(3, 1); return gcp_mul(x, b);)                                  \
    X(PAIR, mul_gate, gcp_tensor x = gcp_tanh(IN(2, 3)); return gcp_mul(gcp_sigmoid(x), gcp_scale(x, .by = 0.7));)    \
    X(BIAS, bias, gcp_tensor x = IN(2, 2, 3, 4); return gcp_bias(x, weight(S(4)));)                                  \
    X(BIAS, bias_input, gcp_tensor x = gcp_tanh(IN(5, 3)), b = gcp_tanh(IN(3)); return gcp_bias(gcp_bias(x, b), b);) \
    X(SCALE, scale_thrice, gcp_tensor x = gcp_tanh(IN(2, 3));                                                        \
      return gcp_add(gcp_scale(x, .by = 2), gcp_scale(gcp_scale(x, .by = 0.5), .by = -3));)

#define ELEMENTWISE(X)                                                                                              \
    X(RELU, relu, return gcp_relu(AWAY(2, 3, 4, 3));)                                                               \
    X(RELU, relu_of_made, return gcp_relu(gcp_scale(AWAY(3, 5), .by = 2));)                                         \
    X(RELU, relu_before_conv, return gcp_conv2d(gcp_relu(gcp_scale(AWAY(1, 3, 3, 2), .by = 2)), .out = 2, .k = 2);) \
    X(RELU, relu_twice_used, gcp_tensor y = gcp_relu(AWAY(3, 5));                                                   \
      return gcp_mul(gcp_relu(gcp_scale(y, .by = 1.5)), gcp_tanh(gcp_add(y, y)));)                                  \
    X(LEAKY_RELU, leaky_relu, return gcp_leaky_relu(AWAY(2, 3, 4, 3), .slope = 0.2);)                               \
    X(LEAKY_RELU, leaky_relu_default, return gcp_leaky_relu(AWAY(4, 5));)                                           \
    X(RELU6, relu6, return gcp_relu6(gcp_scale(AWAY(2, 3, 4, 3), .by = 8));)                                         \
    X(CLAMP, clamp, return gcp_clamp(AWAY(2, 3, 4, 3), .low = -0.505, .high = 0.305);)                               \
    X(CLAMP, clamp_one_bound, return gcp_clamp(AWAY(4, 5), .low = -HUGE_VAL, .high = GCP_ZERO);)                     \
    X(LEAKY_RELU, leaky_relu_before_linear,                                                                         \
      return gcp_linear(gcp_leaky_relu(gcp_scale(AWAY(4, 5), .by = 3), .slope = 0.3), .out = 2);)                   \
    X(TANH, tanh_chain, gcp_tensor y = gcp_tanh(gcp_scale(IN(2, 3), .by = 1.3)); return gcp_mul(gcp_tanh(y), y);)   \
    X(DROPOUT, dropout, return gcp_dropout(IN(2, 3, 2, 5), .rate = 0.3);)                                           \
    X(DROPOUT, dropout_samples, return gcp_dropout(gcp_tanh(IN(5, 2, 2, 3)), .rate = 0.5, .per_sample = 1);)        \
    X(DROPOUT, dropout_none, return gcp_dropout(gcp_tanh(IN(3, 4)), .rate = 0);)                                    \
    X(DROPOUT, dropout_twice, gcp_tensor x = gcp_tanh(IN(3, 7));                                                    \
      return gcp_add(gcp_dropout(x, .rate = 0.5), gcp_dropout(x, .rate = 0.5));)

#define SPATIAL(X)                                                                                                     \
    X(UPSAMPLE, nearest2, return gcp_upsample(IN(2, 2, 3, 2));)                                                        \
    X(UPSAMPLE, nearest3, return gcp_upsample(IN(1, 2, 3, 2), .factor = 3);)                                           \
    X(UPSAMPLE, nearest1, return gcp_upsample(IN(1, 2, 3, 2), .factor = 1);)                                           \
    X(UPSAMPLE, bilinear2, return gcp_upsample(IN(2, 2, 3, 2), .mode = GCP_UPSAMPLING_BILINEAR);)                      \
    X(UPSAMPLE, bilinear3, return gcp_upsample(IN(1, 3, 1, 2), .factor = 3, .mode = GCP_UPSAMPLING_BILINEAR);)         \
    X(UPSAMPLE, upsample_twice_used, gcp_tensor x = gcp_tanh(IN(1, 2, 2, 2));                                          \
      return gcp_mul(gcp_upsample(x), gcp_upsample(x, .mode = GCP_UPSAMPLING_BILINEAR));)                              \
    X(MAX_POOL, max_pool_2, return gcp_max_pool(FAR(2, 4, 6, 2), .k = 2);)                                             \
    X(MAX_POOL, max_pool_3_stride2_pad1, return gcp_max_pool(FAR(1, 5, 6, 2), .k = 3, .stride = 2, .pad = 1);)         \
    X(MAX_POOL, max_pool_overlap, return gcp_max_pool(FAR(1, 4, 5, 3), .k = 3, .stride = 1);)                          \
    X(MAX_POOL, max_pool_2x3,                                                                                          \
      return gcp_max_pool(FAR(1, 5, 6, 2), .kh = 2, .kw = 3, .stride_h = 1, .stride_w = 2, .pad_top = 1,               \
                          .pad_right = 2);)                                                                            \
    X(MAX_POOL, max_pool_same,                                                                                         \
      return gcp_max_pool(FAR(1, 5, 4, 2), .k = 3, .stride = 2, .padding = GCP_PADDING_SAME);)                         \
    X(MAX_POOL, max_pool_1x1, return gcp_max_pool(FAR(1, 3, 4, 2), .k = 1);)                                           \
    X(MAX_POOL, max_pool_1x1_between,                                                                                  \
      return gcp_scale(gcp_max_pool(gcp_scale(FAR(1, 3, 4, 2), .by = 1.1), .k = 1), .by = 1.2);)                       \
    X(MAX_POOL, max_pool_not_in_place,                                                                                 \
      return gcp_scale(gcp_max_pool(gcp_scale(FAR(1, 4, 5, 2), .by = 1.1), .k = 3, .stride = 1, .pad = 1),             \
                       .by = 1.2);)                                                                                    \
    X(MAX_POOL, max_pool_2_left_over, return gcp_max_pool(FAR(1, 5, 7, 2), .k = 2);)                                   \
    X(MAX_POOL, max_pool_1x1_stride2, return gcp_max_pool(FAR(1, 4, 5, 2), .k = 1, .stride = 2);)                      \
    X(MAX_POOL, max_pool_used_twice, gcp_tensor x = gcp_scale(FAR(1, 4, 4, 2), .by = 1.1);                             \
      return gcp_mul(gcp_max_pool(x, .k = 2), gcp_max_pool(x, .k = 3, .stride = 1));)                                  \
    X(AVG_POOL, avg_pool_2, return gcp_avg_pool(IN(2, 4, 6, 2), .k = 2);)                                              \
    X(AVG_POOL, avg_pool_3_stride1_pad1, return gcp_avg_pool(IN(1, 4, 5, 2), .k = 3, .stride = 1, .pad = 1);)          \
    X(AVG_POOL, avg_pool_2x3,                                                                                          \
      return gcp_avg_pool(IN(1, 5, 6, 2), .kh = 2, .kw = 3, .stride_h = 1, .stride_w = 2, .pad_top = 1,                \
                          .pad_right = 2);)                                                                            \
    X(AVG_POOL, avg_pool_same, return gcp_avg_pool(IN(1, 5, 4, 2), .k = 3, .stride = 2, .padding = GCP_PADDING_SAME);) \
    X(AVG_POOL, avg_pool_1x1, return gcp_avg_pool(IN(1, 3, 4, 2), .k = 1);)                                            \
    X(AVG_POOL, avg_pool_1x1_stride2, return gcp_avg_pool(IN(1, 4, 5, 2), .k = 1, .stride = 2);)                       \
    X(AVG_POOL, avg_pool_used_twice, gcp_tensor x = gcp_tanh(IN(1, 4, 4, 2));                                          \
      return gcp_mul(gcp_avg_pool(x, .k = 2), gcp_avg_pool(x, .k = 3, .stride = 1));)                                  \
    X(GLOBAL_AVG_POOL, global_avg_pool, return gcp_global_avg_pool(IN(2, 3, 4, 3));)                                   \
    X(GLOBAL_AVG_POOL, global_avg_pool_70, return gcp_global_avg_pool(IN(1, 2, 1, 70));)                               \
    X(GLOBAL_AVG_POOL, global_avg_pool_twice, gcp_tensor x = gcp_tanh(IN(2, 2, 2, 3));                                 \
      return gcp_mul(gcp_global_avg_pool(x), gcp_global_avg_pool(gcp_mul(x, x)));)                                     \
    X(BATCH_NORM, batch_norm, return gcp_batch_norm(IN(2, 3, 4, 3));)                                                  \
    X(BATCH_NORM, batch_norm_2d, return gcp_batch_norm(IN(6, 4), .epsilon = 0.1);)                                     \
    X(BATCH_NORM, batch_norm_made, gcp_tensor x = gcp_conv2d(IN(1, 4, 4, 2), .out = 3, .k = 2);                        \
      return gcp_add(gcp_tanh(gcp_batch_norm(x)), x);)                                                                 \
    X(BATCH_NORM, batch_norm_blocks, return gcp_batch_norm(IN(1, 11, 9, 2));)                                          \
    X(LAYER_NORM, layer_norm, return gcp_layer_norm(IN(2, 2, 3, 5));)                                                  \
    X(LAYER_NORM, layer_norm_2d, return gcp_layer_norm(IN(3, 19), .epsilon = 0.1);)                                    \
    X(LAYER_NORM, layer_norm_shared, gcp_tensor g = weight(S(4)), b = weight(S(5)), x = gcp_tanh(IN(3, 4)),            \
      y = gcp_layer_norm_op(x, g, gcp_slice(b, .first = 1, .count = 4));                                               \
      return gcp_add(gcp_layer_norm_op(y, g, g), x);)

#define SHAPING(X)                                                                                                     \
    X(CONCAT, concat, gcp_tensor a = IN(2, 3, 2, 2), b = IN(2, 3, 2, 3); return gcp_concat(GCP_TENSORS(a, b));)        \
    X(CONCAT, concat_made, gcp_tensor a = gcp_tanh(IN(2, 2, 2)), b = gcp_sigmoid(IN(2, 2, 3)),                         \
      c = gcp_scale(IN(2, 2, 1), .by = 2);                                                                             \
      return gcp_gelu(gcp_concat(GCP_TENSORS(a, b, c)));)                                                              \
    X(CONCAT, concat_same, gcp_tensor x = IN(3, 4); return gcp_concat(GCP_TENSORS(x, x));)                             \
    X(CONCAT, concat_same_made, gcp_tensor x = gcp_tanh(IN(3, 4)); return gcp_tanh(gcp_concat(GCP_TENSORS(x, x, x)));) \
    X(CONCAT, concat_one, return gcp_concat(GCP_TENSORS(gcp_tanh(IN(3, 4))));)                                         \
    X(CONCAT, concat_nested, gcp_tensor a = gcp_tanh(IN(2, 3)), b = gcp_tanh(IN(2, 2));                                \
      gcp_tensor ab = gcp_concat(GCP_TENSORS(a, b));                                                                   \
      return gcp_concat(GCP_TENSORS(gcp_concat(GCP_TENSORS(ab, a)), gcp_tanh(ab), b));)                                \
    X(CONCAT, concat_dense_block, gcp_tensor x = gcp_tanh(IN(1, 3, 3, 2));                                             \
      for (int i = 0; i < 3; i++) x = gcp_concat(GCP_TENSORS(x, gcp_tanh(gcp_conv2d(x, .out = 2, .k = 3, .pad = 1)))); \
      return x;)                                                                                                       \
    X(CONCAT, concat_of_slices, gcp_tensor x = gcp_tanh(IN(3, 6));                                                     \
      return gcp_concat(GCP_TENSORS(gcp_slice(x, .first = 4, .count = 2), gcp_slice(x, .first = 0, .count = 3)));)     \
    X(CONCAT, concat_params, gcp_tensor w = gcp_concat(GCP_TENSORS(weight(S(4, 3)), IN(4, 2)));                        \
      return gcp_linear_op(IN(3, 5), w, GCP_NIL, .out = 4);)                                                           \
    X(SLICE, slice, return gcp_slice(IN(2, 3, 2, 4), .first = 1, .count = 2);)                                         \
    X(SLICE, slice_all, return gcp_slice(gcp_tanh(IN(3, 4)), .first = 0, .count = 4);)                                 \
    X(SLICE, slice_overlap, gcp_tensor x = gcp_tanh(IN(3, 5));                                                         \
      return gcp_mul(gcp_slice(x, .first = 0, .count = 3), gcp_slice(x, .first = 1, .count = 3));)                     \
    X(SLICE, slice_nested, gcp_tensor x = gcp_tanh(IN(3, 7));                                                          \
      return gcp_tanh(gcp_slice(gcp_slice(x, .first = 1, .count = 5), .first = 2, .count = 2));)                       \
    X(SLICE, slice_of_concat, gcp_tensor a = gcp_tanh(IN(3, 2)), b = gcp_tanh(IN(3, 3));                               \
      return gcp_slice(gcp_concat(GCP_TENSORS(a, b)), .first = 1, .count = 3);)                                        \
    X(SLICE, slice_and_whole, gcp_tensor x = gcp_tanh(IN(3, 4)); return gcp_add(                                       \
          gcp_concat(GCP_TENSORS(gcp_slice(x, .first = 2, .count = 2), gcp_slice(x, .first = 0, .count = 2))), x);)    \
    X(SLICE, slice_twice_used, gcp_tensor s = gcp_slice(gcp_tanh(IN(3, 4)), .first = 1, .count = 2);                   \
      return gcp_mul(gcp_relu(gcp_mul(s, s)), gcp_tanh(s));)                                                           \
    X(RESHAPE, reshape, return gcp_reshape(IN(2, 3, 4), GCP_SHAPE(6, 2, 2));)                                          \
    X(RESHAPE, reshape_made, return gcp_tanh(gcp_reshape(gcp_tanh(IN(2, 3, 4)), GCP_SHAPE(4, 6)));)                    \
    X(RESHAPE, reshape_twice, gcp_tensor x = gcp_tanh(IN(2, 6));                                                       \
      return gcp_add(gcp_reshape(gcp_reshape(x, GCP_SHAPE(3, 4)), GCP_SHAPE(2, 6)), x);)                               \
    X(RESHAPE, reshape_of_slice,                                                                                       \
      return gcp_tanh(gcp_reshape(gcp_slice(gcp_tanh(IN(2, 2, 5)), .first = 1, .count = 3), GCP_SHAPE(3, 4)));)        \
    X(RESHAPE, reshape_of_concat, gcp_tensor a = gcp_tanh(IN(2, 2)), b = gcp_tanh(IN(2, 4));                           \
      return gcp_tanh(gcp_reshape(gcp_concat(GCP_TENSORS(a, b, a)), GCP_SHAPE(4, 4)));)                                \
    X(RESHAPE, concat_of_reshape, gcp_tensor x = gcp_tanh(IN(2, 6));                                                   \
      return gcp_concat(GCP_TENSORS(gcp_reshape(x, GCP_SHAPE(4, 3)), gcp_tanh(gcp_reshape(x, GCP_SHAPE(4, 3)))));)     \
    X(RESHAPE, reshape_param,                                                                                          \
      return gcp_linear_op(IN(3, 4), gcp_reshape(weight(S(3, 8)), GCP_SHAPE(6, 4)), GCP_NIL, .out = 6);)               \
    X(RESHAPE, flatten, return gcp_linear(gcp_flatten(gcp_tanh(IN(2, 2, 3, 2))), .out = 3);)

#define LOSSES(X)                                                                                                      \
    X(EMBEDDING, embedding_1d, return gcp_embedding(labels(IDS, S(6)), .entries = 4, .out = 3);)                       \
    X(EMBEDDING, embedding_2d, return gcp_embedding(labels(IDS, S(2, 4)), .entries = 5, .out = 3);)                    \
    X(EMBEDDING, embedding_shared, gcp_tensor t = gcp_tanh(IN(5, 3)), i = labels(IDS, S(4)), j = labels(IDS, S(4));    \
      return gcp_mul(gcp_embedding_op(i, t), gcp_embedding_op(j, t));)                                                 \
    X(CROSS_ENTROPY, cross_entropy, return gcp_cross_entropy(gcp_scale(IN(4, 5), .by = 3), labels(IDS, S(4)));)        \
    X(CROSS_ENTROPY, cross_entropy_smooth,                                                                             \
      return gcp_cross_entropy(gcp_scale(IN(4, 19), .by = 3), labels(IDS, S(4)), .smoothing = 0.1);)                   \
    X(CROSS_ENTROPY, cross_entropy_pixels, return gcp_cross_entropy(IN(1, 3, 6, 5), labels(IDS, S(1, 3, 6)));)         \
    X(CROSS_ENTROPY, cross_entropy_ignored,                                                                            \
      return gcp_scale(gcp_cross_entropy(IN(6, 5), labels(SOME_IDS, S(6)), .ignore = -1), .by = 2);)                   \
    X(CROSS_ENTROPY, cross_entropy_ignored_class, return gcp_cross_entropy(IN(6, 5), labels(IDS, S(6)), .ignore = 3);) \
    X(CROSS_ENTROPY, cross_entropy_ignored_zero,                                                                       \
      return gcp_cross_entropy(IN(6, 5), labels(IDS, S(6)), .ignore = GCP_ZERO);)                                      \
    X(CROSS_ENTROPY, cross_entropy_tied, gcp_tensor x = IN(4, 5), l = labels(IDS, S(4));                               \
      return gcp_add(gcp_cross_entropy(x, l), gcp_mean(gcp_mul(x, x)));)                                               \
    X(CROSS_ENTROPY, cross_entropy_weights, gcp_tensor x = gcp_scale(IN(6, 19), .by = 3);                              \
      return gcp_cross_entropy(x, labels(SOME_IDS, S(6)), .ignore = -1, .smoothing = 0.2,                              \
                               .class_weights = gcp_exp(fixed(S(19))), .sample_weights = gcp_exp(fixed(S(6))));)       \
    X(CROSS_ENTROPY, cross_entropy_classes, gcp_tensor x = gcp_tanh(IN(6, 5));                                         \
      return gcp_add(gcp_cross_entropy(x, labels(IDS, S(6)), .class_weights = gcp_exp(fixed(S(5)))), gcp_mean(x));)    \
    X(CROSS_ENTROPY, cross_entropy_targets, gcp_tensor x = gcp_scale(IN(4, 19), .by = 3);                              \
      return gcp_cross_entropy(x, gcp_softmax(fixed(S(4, 19))), .sample_weights = gcp_exp(fixed(S(4))));)              \
    X(CROSS_ENTROPY, cross_entropy_long, gcp_tensor x = gcp_slice(gcp_tanh(IN(1, 605)), .first = 2, .count = 601);     \
      return gcp_scale(gcp_cross_entropy(x, gcp_softmax(fixed(S(1, 601))), .smoothing = 0.1,                           \
                                         .class_weights = gcp_exp(fixed(S(601)))), .by = 40);)                         \
    X(PAIR, binary_cross_entropy, gcp_tensor x = gcp_scale(IN(3, 4), .by = 4), t = gcp_sigmoid(IN(3, 4));              \
      return gcp_binary_cross_entropy(x, t, .positive = 3);)                                                           \
    X(PAIR, binary_cross_entropy_weights, gcp_tensor x = gcp_scale(IN(3, 4), .by = 4);                                 \
      return gcp_binary_cross_entropy(x, gcp_sigmoid(fixed(S(3, 4))), .weights = gcp_exp(fixed(S(3, 1))));)            \
    X(PAIR, l1, gcp_tensor a = FAR(3, 4); return gcp_l1(a, gcp_scale(FAR(3, 4), .by = 0.51));)                         \
    X(PAIR, smooth_l1, gcp_tensor a = IN(3, 4), b = IN(3, 4); return gcp_smooth_l1(a, b, .beta = 0.7);)                \
    X(PAIR, smooth_l1_weights, gcp_tensor a = IN(3, 4), b = IN(3, 4);                                                  \
      return gcp_smooth_l1(a, b, .weights = gcp_exp(fixed(S(3, 4))));)                                                 \
    X(PAIR, mse_weights, gcp_tensor a = IN(3, 4), b = IN(3, 4);                                                        \
      return gcp_mse(a, b, .weights = gcp_exp(fixed(S(1, 4))));)                                                       \
    X(BATCH_NORM, batch_norm_frozen, gcp_tensor x = gcp_tanh(IN(2, 2, 3, 4));                                          \
      return gcp_relu(gcp_add(gcp_batch_norm(x, .frozen = 1), x));)                                                    \
    X(MSE, mse, gcp_tensor a = IN(3, 4), b = IN(3, 4); return gcp_mse(a, b);)                                          \
    X(MSE, mse_target, gcp_tensor a = gcp_tanh(IN(3, 4)); return gcp_mse(a, fixed(S(3, 4)));)                          \
    X(MSE, mse_second, gcp_tensor b = gcp_tanh(IN(2, 3, 3, 4));                                                        \
      return gcp_scale(gcp_mse(fixed(S(2, 3, 3, 4)), b), .by = 3);)                                                    \
    X(MSE, mse_tied, gcp_tensor x = gcp_tanh(IN(3, 4)); return gcp_mse(gcp_linear(x, .out = 4), x);)                   \
    X(MEAN, mean, return gcp_mean(IN(2, 3, 4, 3));)                                                                    \
    X(MEAN, mean_of_square, gcp_tensor x = gcp_tanh(IN(5, 4)); return gcp_mul(gcp_mean(gcp_mul(x, x)), gcp_mean(x));)  \
    X(MEAN, mean_of_slice, return gcp_mean(gcp_slice(gcp_tanh(IN(3, 5)), .first = 1, .count = 3));)                    \
    X(CUSTOM, custom_both, gcp_tensor a = gcp_scale(IN(2, 2, 3), .by = 0.5), b = gcp_tanh(IN(2, 2, 3));                \
      return custom(a, b, 3);)                                                                                         \
    X(CUSTOM, custom_first, gcp_tensor a = gcp_scale(IN(3, 4), .by = 0.5), b = IN(3, 4); return custom(a, b, 1);)      \
    X(CUSTOM, custom_second, gcp_tensor a = gcp_scale(IN(3, 4), .by = 0.5), b = IN(3, 4); return custom(a, b, 2);)     \
    X(CUSTOM, custom_same, gcp_tensor x = gcp_tanh(IN(3, 4)); return custom(x, x, 3);)                                 \
    X(CUSTOM, custom_chain, gcp_tensor x = gcp_tanh(IN(3, 4)); return custom(custom(x, x, 1), x, 3);)                  \
    X(CUSTOM, custom_of_views, gcp_tensor x = gcp_tanh(IN(3, 6)); return gcp_concat(                                   \
          GCP_TENSORS(custom(gcp_slice(x, .first = 1, .count = 2), gcp_slice(x, .first = 3, .count = 2), 3), x));)

#define CASES(X) CONVOLUTIONS(X) REPEATED(X) PRODUCTS(X) ELEMENTWISE(X) SPATIAL(X) SHAPING(X) LOSSES(X)

#define BODY(KIND, name, ...) static gcp_tensor case_##name(void) { __VA_ARGS__ }
CASES(BODY)
#define POINTWISE_BODY(NAME, op) \
    static gcp_tensor case_##op(void) { return pointwise_##op(gcp_scale(IN(2, 3, 4, 2), .by = 2)); }
GCP_POINTWISE_OPS(POINTWISE_BODY)
typedef struct gradient_case { const char *name; gcp_op_kind kind; gcp_tensor (*build)(void); } gradient_case;
#define ROW(KIND, name, ...) { #name, GCP_OP_##KIND, case_##name },
#define POINTWISE_ROW(NAME, op) { #op, GCP_OP_##NAME, case_##op },
static const gradient_case cases[] = { CASES(ROW) GCP_POINTWISE_OPS(POINTWISE_ROW) };
enum { COUNT = sizeof cases / sizeof cases[0] };

/* ---- values ---------------------------------------------------------------------------------------------------- */

static double draw(unsigned seed, unsigned i)
{
    uint32_t h = (i + 1) * 2654435761u + seed * 2246822519u;
    h = (h ^ (h >> 15)) * 3266489917u;
    h ^= h >> 13;
    return (double)(h >> 8) / 16777216.0 * 2.0 - 1.0;
}

/* DISTINCT: multiples of 0.02 in scrambled order; 7919 is prime and larger than any count, so that none repeats. */
static double value(fill how, unsigned seed, int i, int n)
{
    double v = draw(seed, (unsigned)i);
    if (how == AWAY) return v < 0 ? 0.95 * v - 0.05 : 0.95 * v + 0.05;
    if (how == DISTINCT) return 0.02 * (i * 7919 % n) - 0.01 * n;
    return v;
}

static void write_reals(gcp_plan *plan, gcp_tensor x, fill how, unsigned seed)
{
    gcp_real values[MOST];
    int n = (int)gcp_elements(x);
    for (int i = 0; i < n; i++) values[i] = (gcp_real)value(how, seed, i, n);
    gcp_write(plan, x, values);
}

static void write_ids(gcp_plan *plan, gcp_tensor x, fill how)           /* SOME_IDS: every third is -1 */
{
    int ids[MOST];
    for (int i = 0; i < (int)gcp_elements(x); i++) ids[i] = how == SOME_IDS && i % 3 == 1 ? -1 : (i * 7 + 3) % 5 % 4;
    gcp_write(plan, x, ids);
}

static void write_all(gcp_plan *plan)
{
    for (int i = 0; i < givens; i++) {
        if (given[i].how >= IDS) write_ids(plan, given[i].x, given[i].how);
        else write_reals(plan, given[i].x, given[i].how, (unsigned)i + 1);
    }
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++)
        write_reals(plan, gcp_nth_parameter(net, i), SMOOTH, (unsigned)i + 101);
}

/* ---- wrong backwards --------------------------------------------------------------------------------------------- */

static gcp_op cpu_rows[GCP_ROW_COUNT];
static void wrong_backward(const gcp_call *c, gcp_op_kind kind)
{
    cpu_rows[kind].backward(c);
    if (kind == wrong_kind) make_wrong(c);
}
#define WRONG(NAME, name) static void wrong_##name(const gcp_call *c) { wrong_backward(c, GCP_OP_##NAME); }
GCP_OPS(WRONG)
static gcp_op wrong_rows[GCP_ROW_COUNT];
#define WRONG_ROW(NAME, name) wrong_rows[GCP_OP_##NAME].backward = wrong_##name;
static void wrong_table(void)
{
    gcp_cpu_kernels(cpu_rows);
    memcpy(wrong_rows, cpu_rows, sizeof wrong_rows);
    GCP_OPS(WRONG_ROW)
}

/* ---- the checks -------------------------------------------------------------------------------------------------- */

static void check_ok(const char *name, int ok, const char *text)
{
    if (!ok) fprintf(stderr, "case %s: %s\n", name, text);
    CHECK(ok);
}

/* 0: this machine lacks the instruction set. */
static int gradcheck(const gradient_case *c, const gcp_target *target, gcp_policy policy, gcp_gradcheck_result *result)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 48);
    givens = names = 0;
    gcp_tensor loss = weighed(c->build());
    gcp_plan plan = gcp_plan_make(loss, .policy = policy, .check = GCP_CHECK, .target = target);
    if (gcp_error_code(net) == GCP_E_PLAN && target->isa > GCP_ISA_SCALAR) return 0;
    gcp_bind(&plan, step_memory, sizeof step_memory);
    write_all(&plan);
    *result = gcp_gradcheck(&plan);
    check_ok(c->name, gcp_error(net) == NULL, gcp_error(net) ? gcp_error(net) : "");
    gcp_real left;                                   /* came of a changed element: nobody may read it */
    check_ok(c->name,
             gcp_read(&plan, loss, &left) == GCP_E_INPUT &&
                 strstr(gcp_error(net), "no step has run since gcp_gradcheck"),
             "the loss can be read");
    gcp_error_clear(net);
    return 1;
}

static void right(const gradient_case *c, int isa, gcp_policy policy)
{
    gcp_target target = { .isa = isa };
    gcp_gradcheck_result r;
    char name[64], text[160];
    wrong_kind = GCP_OP_COUNT;
    if (!gradcheck(c, &target, policy, &r)) return;
    gcp_name(r.tensor, name, sizeof name);
    snprintf(text, sizeof text, "isa %d: %s[%d]: backward %.10g, stencil %.10g", isa, name, r.element, r.analytic,
             r.numeric);
    check_ok(c->name, r.passed && r.elements > 0, text);
}

/* Each gradient that the op makes, made wrong in turn. Returns how many. */
static int wrong(const gradient_case *c)
{
    gcp_target target = { .kernels = wrong_rows };
    int noticed = 0;
    wrong_kind = c->kind;
    for (wrong_input = 0, inputs = 1; wrong_input < inputs; wrong_input++) {
        gcp_gradcheck_result r;
        wrong_made = calls = 0;
        gradcheck(c, &target, GCP_POLICY_KEEP_ALL, &r);
        check_ok(c->name, calls > 0, "does not run the op that it names");
        if (!wrong_made) continue;
        check_ok(c->name, !r.passed, "a wrong backward passed");
        noticed++;
    }
    return noticed;
}

/* ---- networks: rectifiers and maxima everywhere, weights of any size --------------------------------------------- */

static gcp_tensor rectified(void)
{
    gcp_tensor x = gcp_input(net, "image", GCP_SHAPE(4, 6, 6, 3));
    for (int i = 0; i < 2; i++) x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 6, .k = 3, .pad = 1)));
    x = gcp_relu(gcp_linear(gcp_flatten(gcp_max_pool(x, .k = 3)), .out = 12));
    return gcp_cross_entropy(gcp_linear(x, .out = 5), gcp_labels(net, "label", GCP_SHAPE(4)));
}

static gcp_gradcheck_result checked_network(double size, const gcp_target *target)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 48);
    gcp_plan plan = gcp_plan_make(rectified(), .target = target);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_tensor w = gcp_nth_parameter(net, i);
        gcp_real values[MOST];
        for (int k = 0; k < (int)gcp_elements(w); k++)
            values[k] = (gcp_real)(size * draw((unsigned)i + 7, (unsigned)k));
        gcp_write(&plan, w, values);
    }
    write_reals(&plan, gcp_find(net, "image"), SMOOTH, 5);
    write_ids(&plan, gcp_find(net, "label"), IDS);
    gcp_gradcheck_result r = gcp_gradcheck(&plan);
    check_ok("network", gcp_error(net) == NULL, gcp_error(net) ? gcp_error(net) : "");
    return r;
}

static void networks(void)
{
    static const double sizes[] = { 1, 0.3, 0.02 };
    static const gcp_op_kind kinds[] = { GCP_OP_CONV2D, GCP_OP_LINEAR };
    const gcp_target best = { .isa = GCP_ISA_BEST }, broken = { .kernels = wrong_rows };
    for (int i = 0; i < 3; i++) {
        wrong_kind = GCP_OP_COUNT;
        gcp_gradcheck_result r = checked_network(sizes[i], &best);
        char text[160], name[64];
        snprintf(text, sizeof text, "weights of %g: %s[%d]: backward %.10g, stencil %.10g", sizes[i],
                 gcp_name(r.tensor, name, sizeof name), r.element, r.analytic, r.numeric);
        check_ok("network", r.passed && r.elements > 600, text);
    }
    for (int k = 0; k < 2; k++) {
        wrong_kind = kinds[k];
        wrong_input = 1;
        check_ok("network", !checked_network(1, &broken).passed, "wrong gradients of weights passed");
    }
}

/* Unrolled networks of the examples: weights shared by all steps, and an op of their own. */
static void unrolled(void)
{
    for (int i = 0; i < 2; i++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        net = gcp_tape_make(&arena, .ops = 120);
        network n = i ? pde(net, 2, 8, 12) : lstm(net, 2, 5, 3, 4);
        gcp_plan plan = gcp_plan_make(n.loss, .policy = i ? GCP_POLICY_SQRT : GCP_POLICY_SEGMENTS);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        if (i) write_reals(&plan, n.image, SMOOTH, 3);
        else { write_ids(&plan, n.image, IDS); write_ids(&plan, n.labels, IDS); }
        gcp_gradcheck_result r = gcp_gradcheck(&plan);
        check_ok(i ? "pde" : "lstm", r.passed && r.elements > 0 && plan.reruns > 0, "unrolled");
        check_ok("unrolled", gcp_error(net) == NULL, gcp_error(net) ? gcp_error(net) : "");
    }
}

int main(void)
{
    int covered[GCP_OP_COUNT] = { 0 };
    wrong_table();
    for (int i = 0; i < COUNT; i++) {
        /* other ops have one code for all */
        int last = cases[i].kind <= GCP_OP_MATMUL ? GCP_ISA_AVX512 : GCP_ISA_SCALAR;
        for (int isa = GCP_ISA_SCALAR; isa <= last; isa++) right(&cases[i], isa, GCP_POLICY_KEEP_ALL);
        right(&cases[i], GCP_ISA_BEST, GCP_POLICY_SQRT);
        check_ok(cases[i].name, wrong(&cases[i]) > 0, "no gradient was made wrong");
        covered[cases[i].kind]++;
    }
    covered[GCP_OP_BATCH_STATS] = covered[GCP_OP_BATCH_NORM];         /* has no gradient of its own */
    for (int k = 0; k < GCP_OP_COUNT; k++) check_ok(cpu_rows[k].name, covered[k] > 0, "no case");
    networks();
    unrolled();
    return check_done();
}
