/* Networks for small machines: MobileNetV2, MobileNetV3, EfficientNet, EfficientNetV2, ShuffleNetV2, GhostNet. */
#ifndef NETWORKS_MOBILE_H
#define NETWORKS_MOBILE_H

#include <stdio.h>
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
/* Of the norms; momentum is PyTorch's, the new value's share. */
typedef struct mobile_norms { double epsilon, momentum; } mobile_norms;
static const mobile_norms mobile_usual = { 1e-5, 0.1 };

/* A convolution, its norm and an activation, or none. */
static inline gcp_tensor mobile_conv(gcp_tensor x, const char *name, int channels, int k, int stride, int groups,
                                     mobile_activation *activation, mobile_norms norms)
{
    char norm[32];
    snprintf(norm, sizeof norm, "%s_norm", name);
    x = gcp_conv2d(x, .out = channels, .k = k, .stride = stride, .pad = k / 2, .groups = groups, .no_bias = 1,
                   .name = name);
    x = gcp_batch_norm(x, .epsilon = norms.epsilon, .momentum = norms.momentum, .name = norm);
    return activation ? activation(x) : x;
}
/* Squeeze and excitation (Hu et al. 2018): each channel is scaled by a gate of the means of all. */
static inline gcp_tensor mobile_gate(gcp_tensor x, int hidden, mobile_activation *inside, mobile_activation *gate)
{
    gcp_tensor s = inside(gcp_linear(gcp_global_avg_pool(x), .out = hidden, .name = "squeeze"));
    return gcp_mul(x, gate(gcp_linear(s, .out = gcp_shape_of(x).d[3], .name = "excite")));
}

/* Expand by 1x1, depthwise, gate, contract by 1x1; fused: expand by k x k, contract. Added to x where it has its shape,
   with a rate of whole samples that are left out. */
typedef struct mobile_block {
    int k, wide, out, stride, squeeze;               /* wide: channels between; squeeze: of the gate, 0: none */
    mobile_activation *activation, *inside, *gate;
    mobile_norms norms;
    double drop;
    int fused;
} mobile_block;
static inline gcp_tensor mobile_inside(gcp_tensor x, const mobile_block *b)
{
    const int in = gcp_shape_of(x).d[3];
    if (b->fused && b->wide == in)
        return mobile_conv(x, "expand", b->out, b->k, b->stride, 1, b->activation, b->norms);
    if (b->fused) x = mobile_conv(x, "expand", b->wide, b->k, b->stride, 1, b->activation, b->norms);
    else {
        if (b->wide != in) x = mobile_conv(x, "expand", b->wide, 1, 1, 1, b->activation, b->norms);
        x = mobile_conv(x, "depthwise", b->wide, b->k, b->stride, b->wide, b->activation, b->norms);
    }
    if (b->squeeze) x = mobile_gate(x, b->squeeze, b->inside, b->gate);
    return mobile_conv(x, "project", b->out, 1, 1, 1, NULL, b->norms);
}
static inline gcp_tensor mobile_added(gcp_tensor x, const mobile_block *b)
{
    gcp_tensor y = mobile_inside(x, b);
    if (b->stride > 1 || gcp_shape_of(x).d[3] != b->out) return y;
    return gcp_add(b->drop > 0 ? network_dropout(y, b->drop, 1) : y, x);
}
static inline gcp_tensor mobile_bottleneck(gcp_tape *net, gcp_tensor x, const mobile_block *b)
{
    GCP_SEGMENT(net, "block") x = mobile_added(x, b);
    return x;
}
static inline gcp_tensor mobile_stage_block(gcp_tape *net, int stage, gcp_tensor x, const mobile_block *b)
{
    const int segment = stage_begin(net, stage);
    x = mobile_added(x, b);
    stage_end(net, segment);
    return x;
}
static inline gcp_tensor mobile_stem(gcp_tape *net, gcp_tensor x, int channels, mobile_activation *f,
                                     mobile_norms norms)
{
    GCP_SEGMENT(net, "stem") x = mobile_conv(x, "conv", channels, 3, 2, 1, f, norms);
    return x;
}
/* To `channels`, the mean over pixels, a dense layer. */
static inline gcp_tensor mobile_head(gcp_tape *net, gcp_tensor x, int channels, mobile_activation *f,
                                     mobile_norms norms, int classes)
{
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, "conv", channels, 1, 1, 1, f, norms));
        x = gcp_linear(network_dropout(x, 0.2, 0), .out = classes, .name = "classes");
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
    x = mobile_stem(net, x, 32, mobile_relu6, mobile_usual);
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stages[s][2]; i++) {
            const mobile_block b = { 3, gcp_shape_of(x).d[3] * stages[s][0], stages[s][1], i ? 1 : stages[s][3], 0,
                                     mobile_relu6, NULL, NULL, mobile_usual, 0, 0 };
            x = mobile_bottleneck(net, x, &b);
        }
    return network_of(pixels, labels, mobile_head(net, x, 1280, mobile_relu6, mobile_usual, classes));
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
    const mobile_norms norms = { 1e-3, 0.01 };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    x = mobile_stem(net, x, 16, mobile_hard_swish, norms);
    for (int i = 0; i < (large ? 15 : 11); i++) {
        const int *r = rows[large != 0][i];
        const mobile_block b = { r[0], r[1], r[2], r[5], r[3] ? mobile_width(r[1] / 4.0) : 0,
                                 r[4] ? mobile_hard_swish : mobile_relu, mobile_relu, mobile_hard_sigmoid, norms,
                                 0, 0 };
        x = mobile_bottleneck(net, x, &b);
    }
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, "conv", large ? 960 : 576, 1, 1, 1, mobile_hard_swish, norms));
        x = gcp_hard_swish(gcp_linear(x, .out = large ? 1280 : 1024, .name = "wide"));
        x = gcp_linear(network_dropout(x, 0.2, 0), .out = classes, .name = "classes");
    }
    return network_of(pixels, labels, x);
}

/* Tan and Le 2019. Columns: expansion, kernel, channels, blocks, stride. */
static inline network efficientnet_b0(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][5] = { { 1, 3, 16, 1, 1 },  { 6, 3, 24, 2, 2 },  { 6, 5, 40, 2, 2 }, { 6, 3, 80, 3, 2 },
                                     { 6, 5, 112, 3, 1 }, { 6, 5, 192, 4, 2 }, { 6, 3, 320, 1, 1 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)),
               x = mobile_stem(net, pixels, 32, mobile_silu, mobile_usual);
    for (int s = 0, block = 0; s < 7; s++)
        for (int i = 0; i < stages[s][3]; i++, block++) {
            const int in = gcp_shape_of(x).d[3];
            const mobile_block b = { stages[s][1], in * stages[s][0], stages[s][2], i ? 1 : stages[s][4], in / 4,
                                     mobile_silu, mobile_silu, mobile_sigmoid, mobile_usual, 0.2 * block / 16, 0 };
            x = mobile_stage_block(net, s + 1, x, &b);
        }
    return network_of(pixels, labels, mobile_head(net, x, 1280, mobile_silu, mobile_usual, classes));
}

/* Tan and Le 2021, S. Columns: fused, expansion, channels, blocks, stride. */
static inline network efficientnet_v2_s(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][5] = { { 1, 1, 24, 2, 1 },  { 1, 4, 48, 4, 2 },  { 1, 4, 64, 4, 2 },
                                     { 0, 4, 128, 6, 2 }, { 0, 6, 160, 9, 1 }, { 0, 6, 256, 15, 2 } };
    const mobile_norms norms = { 1e-3, 0.1 };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)),
               x = mobile_stem(net, pixels, 24, mobile_silu, norms);
    for (int s = 0, block = 0; s < 6; s++)
        for (int i = 0; i < stages[s][3]; i++, block++) {
            const int in = gcp_shape_of(x).d[3];
            const mobile_block b = { 3, in * stages[s][1], stages[s][2], i ? 1 : stages[s][4],
                                     stages[s][0] ? 0 : in / 4, mobile_silu, mobile_silu, mobile_sigmoid, norms,
                                     0.2 * block / 40, stages[s][0] };
            x = mobile_stage_block(net, s + 1, x, &b);
        }
    return network_of(pixels, labels, mobile_head(net, x, 1280, mobile_silu, norms, classes));
}

/* Ma et al. 2018, width 1: half of the channels pass by, then both halves are shuffled. */
static inline gcp_tensor shuffle_branch(gcp_tensor x, int channels, int stride)
{
    x = mobile_conv(x, "first", channels, 1, 1, 1, mobile_relu, mobile_usual);
    x = mobile_conv(x, "depthwise", channels, 3, stride, channels, NULL, mobile_usual);
    return mobile_conv(x, "last", channels, 1, 1, 1, mobile_relu, mobile_usual);
}
static inline gcp_tensor shuffle_block(gcp_tape *net, int stage, gcp_tensor x, int out, int stride)
{
    const int in = gcp_shape_of(x).d[3], segment = stage_begin(net, stage);
    gcp_tensor a, b;
    if (stride == 1) {
        a = gcp_slice(x, .first = 0, .count = in / 2);
        b = gcp_slice(x, .first = in / 2, .count = in / 2);
    } else {
        a = mobile_conv(x, "aside_depthwise", in, 3, stride, in, NULL, mobile_usual);
        a = mobile_conv(a, "aside", out / 2, 1, 1, 1, mobile_relu, mobile_usual);
        b = x;
    }
    x = gcp_channel_shuffle(gcp_concat(GCP_TENSORS(a, shuffle_branch(b, out / 2, stride))), .groups = 2);
    stage_end(net, segment);
    return x;
}
static inline network shufflenet_v2(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][2] = { { 116, 4 }, { 232, 8 }, { 464, 4 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "stem")
        x = gcp_max_pool(mobile_conv(x, "conv", 24, 3, 2, 1, mobile_relu, mobile_usual), .k = 3, .stride = 2, .pad = 1);
    for (int s = 0; s < 3; s++)
        for (int i = 0; i < stages[s][1]; i++) x = shuffle_block(net, s + 2, x, stages[s][0], i ? 1 : 2);
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, "conv", 1024, 1, 1, 1, mobile_relu, mobile_usual));
        x = gcp_linear(x, .out = classes, .name = "classes");
    }
    return network_of(pixels, labels, x);
}

/* Han et al. 2020: half of the channels by a 1x1 convolution, the other half cheaply from those. */
static inline gcp_tensor ghost(gcp_tape *net, const char *name, gcp_tensor x, int out, mobile_activation *f)
{
    const int half = (out + 1) / 2;
    gcp_segment_opts o = { .at = GCP_AT };
    const int segment = gcp_segment_begin(net, name, o);
    x = mobile_conv(x, "primary", half, 1, 1, 1, f, mobile_usual);
    x = gcp_concat(GCP_TENSORS(x, mobile_conv(x, "cheap", half, 3, 1, half, f, mobile_usual)));
    if (2 * half > out) x = gcp_slice(x, .first = 0, .count = out);
    stage_end(net, segment);
    return x;
}
/* r: kernel, channels between, channels out, gate, stride. */
static inline gcp_tensor ghost_block(gcp_tape *net, int stage, gcp_tensor x, const int *r)
{
    const int in = gcp_shape_of(x).d[3], segment = stage_begin(net, stage);
    gcp_tensor y = ghost(net, "ghost1", x, r[1], mobile_relu);
    if (r[4] > 1) y = mobile_conv(y, "depthwise", r[1], r[0], r[4], r[1], NULL, mobile_usual);
    if (r[3]) y = mobile_gate(y, (r[1] / 4 + 2) / 4 * 4, mobile_relu, mobile_hard_sigmoid);
    y = ghost(net, "ghost2", y, r[2], NULL);
    if (r[4] > 1 || in != r[2]) {
        x = mobile_conv(x, "aside_depthwise", in, r[0], r[4], in, NULL, mobile_usual);
        x = mobile_conv(x, "aside", r[2], 1, 1, 1, NULL, mobile_usual);
    }
    x = gcp_add(y, x);
    stage_end(net, segment);
    return x;
}
static inline network ghostnet(gcp_tape *net, int batch, int image, int classes)
{
    static const int first[] = { 0, 1, 2, 3, 4, 5, 6, 11, 12, 16 };
    static const int rows[][5] = { { 3, 16, 16, 0, 1 },   { 3, 48, 24, 0, 2 },   { 3, 72, 24, 0, 1 },
                                   { 5, 72, 40, 1, 2 },   { 5, 120, 40, 1, 1 },  { 3, 240, 80, 0, 2 },
                                   { 3, 200, 80, 0, 1 },  { 3, 184, 80, 0, 1 },  { 3, 184, 80, 0, 1 },
                                   { 3, 480, 112, 1, 1 }, { 3, 672, 112, 1, 1 }, { 5, 672, 160, 1, 2 },
                                   { 5, 960, 160, 0, 1 }, { 5, 960, 160, 1, 1 }, { 5, 960, 160, 0, 1 },
                                   { 5, 960, 160, 1, 1 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)),
               x = mobile_stem(net, pixels, 16, mobile_relu, mobile_usual);
    for (int s = 0; s < 9; s++)
        for (int i = first[s]; i < first[s + 1]; i++) x = ghost_block(net, s, x, rows[i]);
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(mobile_conv(x, "conv", 960, 1, 1, 1, mobile_relu, mobile_usual));
        x = gcp_relu(gcp_linear(x, .out = 1280, .name = "wide"));
        x = gcp_linear(network_dropout(x, 0.2, 0), .out = classes, .name = "classes");
    }
    return network_of(pixels, labels, x);
}

#endif
