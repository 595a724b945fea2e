/* Image networks from 2020 on that are neither small nor made of attention: RegNetY, ConvNeXt, MLP-Mixer. */
#ifndef NETWORKS_MODERN_H
#define NETWORKS_MODERN_H

#include "mobile.h"

/* Radosavovic et al. 2020: residual bottlenecks with groups of channels and a gate; 400 million products. */
static inline gcp_tensor regnet_block(gcp_tape *net, int stage, gcp_tensor x, int out, int group, int stride)
{
    const int in = gcp_shape_of(x).d[3], segment = stage_begin(net, stage);
    gcp_tensor y = mobile_conv(x, "first", out, 1, 1, 1, mobile_relu, mobile_usual);
    y = mobile_conv(y, "grouped", out, 3, stride, out / group, mobile_relu, mobile_usual);
    y = mobile_gate(y, (in + 2) / 4, mobile_relu, mobile_sigmoid);
    y = mobile_conv(y, "last", out, 1, 1, 1, NULL, mobile_usual);
    if (stride > 1 || in != out) x = mobile_conv(x, "aside", out, 1, stride, 1, NULL, mobile_usual);
    x = gcp_relu(gcp_add(y, x));
    stage_end(net, segment);
    return x;
}
static inline network regnet_y(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][2] = { { 48, 1 }, { 104, 3 }, { 208, 6 }, { 440, 6 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)),
               x = mobile_stem(net, pixels, 32, mobile_relu, mobile_usual);
    for (int s = 0; s < 4; s++)
        for (int i = 0; i < stages[s][1]; i++) x = regnet_block(net, s + 1, x, stages[s][0], 8, i ? 1 : 2);
    GCP_SEGMENT(net, "head") x = gcp_linear(gcp_global_avg_pool(x), .out = classes, .name = "classes");
    return network_of(pixels, labels, x);
}

/* Liu et al. 2022, T: a wide depthwise convolution, a norm, two dense layers on each pixel, scaled by channels. */
static inline gcp_tensor convnext_block(gcp_tape *net, int stage, gcp_tensor x, double drop)
{
    const int c = gcp_shape_of(x).d[3], segment = stage_begin(net, stage);
    gcp_tensor scale = gcp_param(net, "scale", GCP_SHAPE(c), .std = 1e-6);
    gcp_tensor y = gcp_conv2d(x, .out = c, .k = 7, .pad = 3, .groups = c, .name = "depthwise");
    y = gcp_linear(gcp_layer_norm(y, .epsilon = 1e-6, .name = "norm"), .out = 4 * c, .name = "expand");
    y = gcp_linear(gcp_gelu(y), .out = c, .name = "contract");
    x = gcp_add(x, network_dropout(gcp_mul(y, scale), drop, 1));
    stage_end(net, segment);
    return x;
}
static inline network convnext_t(gcp_tape *net, int batch, int image, int classes)
{
    static const int stages[][2] = { { 96, 3 }, { 192, 3 }, { 384, 9 }, { 768, 3 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    for (int s = 0, block = 0; s < 4; s++) {
        const int down = stage_begin(net, 2 * s);                       /* stages are counted as in torchvision */
        if (s) x = gcp_layer_norm(x, .epsilon = 1e-6, .name = "down_norm");
        x = gcp_conv2d(x, .out = stages[s][0], .k = s ? 2 : 4, .stride = s ? 2 : 4, .name = "down");
        if (!s) x = gcp_layer_norm(x, .epsilon = 1e-6, .name = "stem_norm");
        stage_end(net, down);
        for (int i = 0; i < stages[s][1]; i++, block++) x = convnext_block(net, 2 * s + 1, x, 0.1 * block / 17);
    }
    GCP_SEGMENT(net, "head") {
        x = gcp_layer_norm(gcp_global_avg_pool(x), .epsilon = 1e-6, .name = "norm");
        x = gcp_linear(x, .out = classes, .name = "classes");
    }
    return network_of(pixels, labels, x);
}

/* Tolstikhin et al. 2021: dense layers across tokens, and across channels. */
static inline gcp_tensor mixer_block(gcp_tape *net, gcp_tensor x)
{
    const int tokens = gcp_shape_of(x).d[2], c = gcp_shape_of(x).d[3];
    GCP_SEGMENT(net, "block") {
        gcp_tensor y = gcp_transpose(gcp_layer_norm(x, .epsilon = 1e-6, .name = "norm1"), 0, 1, 3, 2);
        y = gcp_gelu(gcp_linear(y, .out = c / 2, .name = "tokens1"));
        x = gcp_add(x, gcp_transpose(gcp_linear(y, .out = tokens, .name = "tokens2"), 0, 1, 3, 2));
        y = gcp_linear(gcp_layer_norm(x, .epsilon = 1e-6, .name = "norm2"), .out = 4 * c, .name = "channels1");
        y = gcp_gelu(y);
        x = gcp_add(x, gcp_linear(y, .out = c, .name = "channels2"));
    }
    return x;
}
static inline network mlp_mixer(gcp_tape *net, int width, int depth, int batch, int image, int classes)
{
    const int side = image / 16;
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "patches")
        x = gcp_reshape(gcp_conv2d(x, .out = width, .k = 16, .stride = 16), GCP_SHAPE(batch, side * side, width));
    for (int i = 0; i < depth; i++) x = mixer_block(net, x);
    GCP_SEGMENT(net, "head") {
        x = gcp_reduce(gcp_layer_norm(x, .epsilon = 1e-6, .name = "norm"), .tokens = 1);
        x = gcp_linear(gcp_reshape(x, GCP_SHAPE(batch, width)), .out = classes, .name = "classes");
    }
    return network_of(pixels, labels, x);
}

#endif
