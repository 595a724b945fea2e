/* Networks that gcp_print_c prints when the tests are built. test_print_c records them again from what was printed. */
#ifndef PRINTED_H
#define PRINTED_H
#include <math.h>
#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"
#include "networks.h"

#define PRINTED_ONNX(name) TEST_DATA "/tests/reference/" name ".onnx"
enum { PRINTED_BATCH = 2 };

/* A custom op of two outputs. */
static inline int printed_twice_shape(gcp_shape_call *c)
{
    c->out[0] = c->out[1] = c->in[0];
    return 1;
}
static inline void printed_twice_forward(const gcp_call *c) { (void)c; }
extern const gcp_op printed_twice;
const gcp_op printed_twice = {
    "printed_twice", printed_twice_shape, printed_twice_forward, NULL, NULL, 0, 0, GCP_FLAG_NO_GRADIENT, 2, NULL
};

/* Images: windows, norms, moves. Each option that has a default is given another value somewhere. */
static inline gcp_tensor printed_images(gcp_tape *net, gcp_tensor x)
{
    x = gcp_conv2d(x, .out = 12, .k = 3, .stride = 2, .padding = GCP_PADDING_SAME, .no_bias = 1, .name = "stem");
    x = gcp_relu(gcp_batch_norm(x, .epsilon = 1e-3, .momentum = 0.01, .name = "\"bn\\1\""));
    gcp_freeze(gcp_find(net, "stem/weight"));
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "block", .keep = GCP_KEEP_NORMS)
        {
            static const char *const names[] = { "?\?=7", "?\?=9", "?\?=11" };
            x = gcp_mul(x, gcp_param(net, names[i], GCP_SHAPE(12), .init = GCP_INIT_ONES));
            gcp_tensor y = gcp_conv2d(x, .out = 12, .kh = 3, .kw = 1, .pad_top = 2, .dilation_h = 1, .groups = 3);
            GCP_SEGMENT(net, "inner") y = gcp_silu(gcp_batch_norm(y, .frozen = 1, .name = names[i]));
            x = gcp_add(x, y);
        }
    gcp_tensor two[2];
    gcp_custom(&x, 1, &printed_twice, .outputs = two);
    x = gcp_add(x, gcp_mul(two[1], two[0]));
    gcp_tensor gate = gcp_hard_sigmoid(gcp_global_avg_pool(x), .slope = 0.25, .offset = GCP_ZERO);
    x = gcp_mul(x, gate);
    gcp_tensor large = gcp_max_pool(x, .k = 3, .stride = 1, .pad = 1),
               mean = gcp_avg_pool(x, .kh = 1, .kw = 3, .stride = 1, .pad_left = 2);
    x = gcp_concat(GCP_TENSORS(large, mean, x));
    x = gcp_conv_transpose2d(x, .out = 8, .k = 2, .stride = 2, .init = GCP_INIT_GLOROT);
    x = gcp_group_norm(x, .groups = 2, .epsilon = 1e-6);
    x = gcp_resize(gcp_upsample(x, .factor = 3, .mode = GCP_UPSAMPLING_BILINEAR), .height = 8, .width = 8,
                   .mode = GCP_UPSAMPLING_BILINEAR, .corners = 1);
    x = gcp_pad(x, .before = 1, .after = 2, .axis = GCP_AXIS_WIDTH, .mode = GCP_PAD_REFLECT);
    x = gcp_slice(gcp_slice(x, .first = 1, .count = 8, .axis = GCP_AXIS_WIDTH), .first = 2, .count = 4);
    x = gcp_pixel_unshuffle(gcp_channel_shuffle(gcp_pixel_shuffle(x), .groups = 1));
    x = gcp_concat(GCP_TENSORS(x, gcp_transpose(x, 0, 2, 1, 3)), .axis = GCP_AXIS_HEIGHT);
    return gcp_slice(x, .first = 1, .count = 4, .step = 3, .axis = GCP_AXIS_HEIGHT);
}
/* Rows: products, attention, what goes element by element. */
static inline gcp_tensor printed_rows(gcp_tape *net, gcp_tensor x, gcp_tensor ids, gcp_tensor lengths)
{
    gcp_tensor table = gcp_freeze(gcp_param(net, "/table", GCP_SHAPE(10, 4), .std = 0.02)),
               bias = gcp_param(net, "bias", GCP_SHAPE(1, 2, 32, 32), .init = GCP_INIT_ZEROS),
               factor = gcp_param(net, "factor", GCP_SHAPE(4, 6)), slope = gcp_param(net, "slope", GCP_SHAPE(1)),
               shared = gcp_param(net, "shared", GCP_SHAPE(6, 6), .init = GCP_INIT_GLOROT, .fan_in = 3, .fan_out = 5);
    x = gcp_reshape(x, GCP_SHAPE(PRINTED_BATCH, 32, 4));
    gcp_tensor words = gcp_add(gcp_embedding_op(ids, table), gcp_embedding(ids, .entries = 10, .out = 4));
    x = gcp_add(x,
                gcp_slice(gcp_expand(gcp_reshape(words, GCP_SHAPE(PRINTED_BATCH, 1, 4)), gcp_shape_of(x)), .count = 4));
    x = gcp_attention(gcp_linear(x, .out = 4), gcp_linear(x, .out = 4, .no_bias = 1, .init = GCP_INIT_GLOROT), x,
                      .heads = 2, .causal = 1, .scale = 0.3, .lengths = lengths, .bias = bias);
    x = gcp_attention(x, x, x);
    x = gcp_layer_norm(gcp_matmul(x, factor), .epsilon = 1e-4);
    x = gcp_rms_norm(gcp_linear_op(gcp_linear_op(x, shared, GCP_NIL), shared, GCP_NIL));
    x = gcp_matmul(gcp_matmul(x, x, .transpose_b = 1), x);
    x = gcp_prelu(gcp_clamp(gcp_leaky_relu(x, .slope = 0.2), .low = GCP_ZERO, .high = HUGE_VAL), slope);
    x = gcp_relu6(gcp_elu(gcp_softplus(gcp_scale(x, .by = -1.0 / 3), .beta = 2), .alpha = GCP_ZERO));
    x = gcp_mish(gcp_tanh(gcp_sigmoid(gcp_gelu(gcp_gelu_tanh(gcp_hard_swish(gcp_neg(gcp_abs(x))))))));
    x = gcp_log(gcp_exp(gcp_sqrt(gcp_square(gcp_reciprocal(gcp_sub(x, gcp_stop_gradient(x, .name = "stop")))))));
    x = gcp_maximum(gcp_minimum(gcp_div(x, gcp_softmax(x)), gcp_log_softmax(x)),
                    gcp_bias(x, gcp_param(net, "b", GCP_SHAPE(6))));
    x = gcp_dropout(gcp_dropout(x, .rate = 0.1, .per_sample = 1), .rate = 0);
    return gcp_keep(gcp_flatten(x));
}
static inline gcp_tensor printed_everything(gcp_tape *net)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(PRINTED_BATCH, 9, 9, 3), .want_grad = 1),
               ids = gcp_ids(net, "ids", GCP_SHAPE(PRINTED_BATCH)),
               lengths = gcp_ids(net, "lengths", GCP_SHAPE(PRINTED_BATCH)),
               weights = gcp_input(net, "weights", GCP_SHAPE(PRINTED_BATCH, 1)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(PRINTED_BATCH)), x = printed_images(net, image), loss;
    GCP_SEGMENT(net, "rows") x = printed_rows(net, x, ids, lengths);
    gcp_tensor logits = gcp_linear(x, .out = 3), target = gcp_input(net, "target", GCP_SHAPE(PRINTED_BATCH, 3));
    loss = gcp_cross_entropy(logits, labels, .ignore = GCP_ZERO, .smoothing = 0.125,
                             .class_weights = gcp_slice(gcp_input(net, "classes", GCP_SHAPE(5)), .count = 3),
                             .sample_weights = weights);
    loss = gcp_add(loss, gcp_cross_entropy(logits, target, .name = "soft"));
    loss = gcp_add(loss, gcp_mse(logits, target));
    loss = gcp_add(loss, gcp_mse(logits, target, .weights = weights));
    loss = gcp_add(loss, gcp_l1(logits, target));
    loss = gcp_add(loss, gcp_smooth_l1(logits, target, .beta = 0.5, .weights = target, .name = "smooth"));
    loss = gcp_add(loss, gcp_binary_cross_entropy(logits, target, .positive = 3));
    loss = gcp_add(loss, gcp_mean(gcp_reduce(logits, .samples = 1)));
    return gcp_add(gcp_reduce(logits, .by = GCP_REDUCE_MAX), gcp_add(loss, gcp_reduce(logits, .by = GCP_REDUCE_SUM)));
}
static inline gcp_tensor printed_in(gcp_tape *net, gcp_tensor x)
{
    GCP_SEGMENT(net, "in") x = gcp_tanh(x);
    return x;
}
/* What looks like a loop, or a variable used once, and is none; a loop that reads more than it makes. */
static inline gcp_tensor printed_odd(gcp_tape *net)
{
    gcp_tensor a = gcp_input(net, "a", GCP_SHAPE(2, 4)), b = gcp_input(net, "b", GCP_SHAPE(2, 4)), x = gcp_add(a, b),
               h = gcp_tanh(x), c = gcp_relu(h), w, p, q, t, sum;
    static const char *const names[] = { "/w01", "/w2", "/w3" };
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "sum") h = gcp_add(h, c);
    q = gcp_relu(p = gcp_tanh(h));
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "both") p = q = gcp_sub(p, q);
    x = gcp_tanh(q);
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "own")
        {
            gcp_tensor y = gcp_relu(x);
            x = gcp_exp(i ? y : a);
        }
    t = gcp_softmax(h);
    sum = gcp_mean(x);
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "target")
        {
            sum = gcp_add(sum, gcp_cross_entropy(h, t));
            t = gcp_softmax(gcp_scale(t, .by = 2));
        }
    for (int i = 0; i < 2; i++) GCP_SEGMENT(net, "tied")
        {
            x = gcp_linear(x, .out = 4);
            x = gcp_linear_op(x, gcp_find(net, i ? "tied[1]/linear[0]/weight" : "tied[0]/linear[0]/weight"), GCP_NIL);
            if (i) gcp_freeze(gcp_find(net, "tied[1]/linear[0]/bias"));
        }
    GCP_SEGMENT(net, "end")
    {
        x = gcp_relu(x);
        w = gcp_param(net, "w", GCP_SHAPE(4), .init = GCP_INIT_GLOROT, .fan_in = 9);
    }
    x = gcp_bias(x, w);
    GCP_SEGMENT(net, "one") x = printed_in(net, x);
    GCP_SEGMENT(net, "two") x = printed_in(net, x);
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "zeros")
    x = gcp_matmul(x, gcp_param(net, names[i], GCP_SHAPE(4, 4), .fan_in = 4, .fan_out = 2));
    t = gcp_find(net, "tied[0]/linear[0]/bias");
    return gcp_add(sum, gcp_cross_entropy(x, gcp_softmax(x), .class_weights = t));
}
static inline gcp_tensor printed_resnet(gcp_tape *net) { return named_resnet50(net, PRINTED_BATCH, 32).loss; }
static inline gcp_tensor printed_mobilenet(gcp_tape *net)
{
    return named_mobilenet_v3_small(net, PRINTED_BATCH, 32).loss;
}
static inline gcp_tensor printed_vit(gcp_tape *net) { return named_vit_tiny(net, PRINTED_BATCH, 32).loss; }

/* A file's network is printed by gcp_onnx_print_c; its loss is the sum of its output. */
static inline gcp_onnx printed_open(gcp_arena *files, gcp_tape *net, const char *path)
{
    gcp_onnx model = gcp_onnx_open(files, path);
    gcp_onnx_record(net, &model, .batch = PRINTED_BATCH);
    return model;
}
typedef struct printed_network {
    const char *name;
    gcp_tensor (*record)(gcp_tape *net);
    const char *onnx;
} printed_network;
static const printed_network printed_networks[] = {
    { "odd", printed_odd, NULL },
    { "everything", printed_everything, NULL },
    { "resnet50", printed_resnet, NULL },
    { "mobilenet", printed_mobilenet, NULL },
    { "vit", printed_vit, NULL },
    { "small", NULL, PRINTED_ONNX("small") },
    { "pieces", NULL, PRINTED_ONNX("pieces") },
};
enum { PRINTED_NETWORKS = sizeof printed_networks / sizeof *printed_networks };
#endif
