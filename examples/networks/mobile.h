/* Networks for small machines: MobileNetV2, MobileNetV3, EfficientNet. */
#ifndef NETWORKS_MOBILE_H
#define NETWORKS_MOBILE_H

#include "network.h"

typedef gcp_tensor mobile_activation(gcp_tensor x);
static inline gcp_tensor mobile_relu(gcp_tensor x) { return gcp_relu(x); }
static inline gcp_tensor mobile_relu6(gcp_tensor x) { return gcp_relu6(x); }
static inline gcp_tensor mobile_hard_swish(gcp_tensor x) { return gcp_hard_swish(x); }
static inline gcp_tensor mobile_silu(gcp_tensor x) { return gcp_silu(x); }
static inline gcp_tensor mobile_sigmoid(gcp_tensor x) { return gcp_sigmoid(x); }
static inline gcp_tensor mobile_hard_sigmoid(gcp_tensor x) { return gcp_hard_sigmoid(x); }

/* The nearest multiple of 8, not more than a tenth below. */
static inline int mobile_width(double channels)
{
    const int near = (int)(channels + 4) / 8 * 8;
    return near < 8 ? 8 : near < 0.9 * channels ? near + 8 : near;
}
static inline gcp_tensor mobile_conv(gcp_tensor x, int channels, int k, int stride, int groups,
                                     mobile_activation *activation, double epsilon)
{
    x = gcp_conv2d(x, .out = channels, .k = k, .stride = stride, .pad = k / 2, .groups = groups, .no_bias = 1);
    x = gcp_batch_norm(x, .epsilon = epsilon);
    return activation ? activation(x) : x;
}
/* Squeeze and excitation (Hu et al. 2018): each channel is scaled by a gate of the means of all. */
static inline gcp_tensor mobile_gate(gcp_tensor x, int hidden, mobile_activation *inside, mobile_activation *gate)
{
    gcp_tensor s = inside(gcp_linear(gcp_global_avg_pool(x), .out = hidden, .name = "squeeze"));
    return gcp_mul(x, gate(gcp_linear(s, .out = gcp_shape_of(x).d[3], .name = "excite")));
}

/* Expand by 1x1, depthwise, gate, contract by 1x1; added to x where it has its shape. */
typedef struct mobile_block {
    int k, wide, out, stride, squeeze;               /* wide: channels between; squeeze: of the gate, 0: none */
    mobile_activation *activation, *inside, *gate;
    double epsilon;
} mobile_block;
static inline gcp_tensor mobile_bottleneck(gcp_tape *net, gcp_tensor x, const mobile_block *b)
{
    const int in = gcp_shape_of(x).d[3];
    GCP_SEGMENT(net, "block") {
        gcp_tensor y = x;
        if (b->wide != in) y = mobile_conv(y, b->wide, 1, 1, 1, b->activation, b->epsilon);
        y = mobile_conv(y, b->wide, b->k, b->stride, b->wide, b->activation, b->epsilon);
        if (b->squeeze) y = mobile_gate(y, b->squeeze, b->inside, b->gate);
        y = mobile_conv(y, b->out, 1, 1, 1, NULL, b->epsilon);
        x = b->stride == 1 && in == b->out ? gcp_add(y, x) : y;
    }
    return x;
}

/* Sandler et al. 2018, width 1. */
static inline network mobilenet_v2(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][4] = { { 1, 16, 1, 1 },  { 6, 24, 2, 2 },  { 6, 32, 3, 2 }, { 6, 64, 4, 2 },
                                     { 6, 96, 3, 1 }, { 6, 160, 3, 2 }, { 6, 320, 1, 1 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "stem") x = mobile_conv(x, 32, 3, 2, 1, mobile_relu6, 1e-5);
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stages[s][2]; i++) {
            const mobile_block b = { 3, gcp_shape_of(x).d[3] * stages[s][0], stages[s][1], i ? 1 : stages[s][3], 0,
                                     mobile_relu6, NULL, NULL, 1e-5 };
            x = mobile_bottleneck(net, x, &b);
        }
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, 1280, 1, 1, 1, mobile_relu6, 1e-5));
        x = gcp_linear(gcp_dropout(x, .rate = 0.2), .out = classes);
    }
    return network_of(pixels, labels, x);
}

/* Howard et al. 2019. Columns: kernel, channels between, channels out, gate, hard-swish, stride. */
static inline network mobilenet_v3(gcp_tape *net, int large, int batch, int image, int classes)
{
    static const int rows[2][15][6] = {
        { { 3, 16, 16, 1, 0, 2 },   { 3, 72, 24, 0, 0, 2 },   { 3, 88, 24, 0, 0, 1 },   { 5, 96, 40, 1, 1, 2 },
          { 5, 240, 40, 1, 1, 1 },  { 5, 240, 40, 1, 1, 1 },  { 5, 120, 48, 1, 1, 1 },  { 5, 144, 48, 1, 1, 1 },
          { 5, 288, 96, 1, 1, 2 },  { 5, 576, 96, 1, 1, 1 },  { 5, 576, 96, 1, 1, 1 } },
        { { 3, 16, 16, 0, 0, 1 },   { 3, 64, 24, 0, 0, 2 },   { 3, 72, 24, 0, 0, 1 },   { 5, 72, 40, 1, 0, 2 },
          { 5, 120, 40, 1, 0, 1 },  { 5, 120, 40, 1, 0, 1 },  { 3, 240, 80, 0, 1, 2 },  { 3, 200, 80, 0, 1, 1 },
          { 3, 184, 80, 0, 1, 1 },  { 3, 184, 80, 0, 1, 1 },  { 3, 480, 112, 1, 1, 1 }, { 3, 672, 112, 1, 1, 1 },
          { 5, 672, 160, 1, 1, 2 }, { 5, 960, 160, 1, 1, 1 }, { 5, 960, 160, 1, 1, 1 } } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "stem") x = mobile_conv(x, 16, 3, 2, 1, mobile_hard_swish, 1e-3);
    for (int i = 0; i < (large ? 15 : 11); i++) {
        const int *r = rows[large != 0][i];
        const mobile_block b = { r[0], r[1], r[2], r[5], r[3] ? mobile_width(r[1] / 4.0) : 0,
                                 r[4] ? mobile_hard_swish : mobile_relu, mobile_relu, mobile_hard_sigmoid, 1e-3 };
        x = mobile_bottleneck(net, x, &b);
    }
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, large ? 960 : 576, 1, 1, 1, mobile_hard_swish, 1e-3));
        x = gcp_hard_swish(gcp_linear(x, .out = large ? 1280 : 1024));
        x = gcp_linear(gcp_dropout(x, .rate = 0.2), .out = classes);
    }
    return network_of(pixels, labels, x);
}

/* Tan and Le 2019. Columns: expansion, kernel, channels, blocks, stride. */
static inline network efficientnet_b0(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][5] = { { 1, 3, 16, 1, 1 },  { 6, 3, 24, 2, 2 },  { 6, 5, 40, 2, 2 }, { 6, 3, 80, 3, 2 },
                                     { 6, 5, 112, 3, 1 }, { 6, 5, 192, 4, 2 }, { 6, 3, 320, 1, 1 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "stem") x = mobile_conv(x, 32, 3, 2, 1, mobile_silu, 1e-5);
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stages[s][3]; i++) {
            const int in = gcp_shape_of(x).d[3];
            const mobile_block b = { stages[s][1], in * stages[s][0], stages[s][2], i ? 1 : stages[s][4], in / 4,
                                     mobile_silu, mobile_silu, mobile_sigmoid, 1e-5 };
            x = mobile_bottleneck(net, x, &b);
        }
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, 1280, 1, 1, 1, mobile_silu, 1e-5));
        x = gcp_linear(gcp_dropout(x, .rate = 0.2), .out = classes);
    }
    return network_of(pixels, labels, x);
}

#endif
