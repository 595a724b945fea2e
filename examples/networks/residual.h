/* Residual networks: ResNet, its pre-activated form, and those for small images. */
#ifndef NETWORKS_RESIDUAL_H
#define NETWORKS_RESIDUAL_H

#include "network.h"
#include "stored.h"

static inline gcp_tensor conv(stored *s, gcp_tensor x, int channels, int k, int stride)
{
    return gcp_conv2d(stored_note(s, x), .out = channels, .k = k, .stride = stride, .pad = k / 2, .no_bias = 1);
}

static inline gcp_tensor norm(stored *s, gcp_tensor x) { return gcp_batch_norm(stored_note(s, x)); }
static inline gcp_tensor norm_relu(stored *s, gcp_tensor x) { return stored_note(s, gcp_relu(norm(s, x))); }

/* The first layers of the residual networks for ImageNet and of the densely connected ones: a quarter of the size. */
static inline gcp_tensor imagenet_stem(gcp_tape *net, stored *s, gcp_tensor x, int channels)
{
    stored_input(s, x);
    GCP_SEGMENT(net, "stem") {
        x = norm_relu(s, conv(s, x, channels, 7, 2));
        x = stored_note(s, gcp_max_pool(x, .k = 3, .stride = 2, .pad = 1));
    }
    stored_next_layer(s);
    return x;
}

/* The mean over pixels, then a dense layer; activate: norm and ReLU come first. */
static inline gcp_tensor mean_head(gcp_tape *net, stored *s, gcp_tensor x, int activate, int classes)
{
    GCP_SEGMENT(net, "head") {
        if (activate) x = norm_relu(s, x);
        x = gcp_linear(stored_note(s, gcp_global_avg_pool(x)), .out = classes);
    }
    stored_next_layer(s);
    return x;
}

/* relu(f(x) + x), f two 3x3 convolutions or, in a bottleneck, 1x1, 3x3 and a four times wider 1x1; the 3x3 has the
   stride. Where size or width changes, x goes through a 1x1 convolution. */
static inline gcp_tensor residual_block(gcp_tape *net, stored *s, gcp_tensor x, int channels, int stride,
                                        int bottleneck)
{
    int out = bottleneck ? 4 * channels : channels;
    GCP_SEGMENT(net, "residual") {
        gcp_tensor y = bottleneck ? norm_relu(s, conv(s, x, channels, 1, 1)) : x;
        y = norm_relu(s, conv(s, y, channels, 3, stride));
        y = norm(s, conv(s, y, out, bottleneck ? 1 : 3, 1));
        if (stride > 1 || gcp_shape_of(x).d[3] != out) x = norm(s, conv(s, x, out, 1, stride));
        x = stored_note(s, gcp_relu(gcp_add(y, x)));
    }
    stored_next_layer(s);
    return x;
}

/* Blocks in the four stages of the residual networks for ImageNet; NULL for a depth that none has. */
static inline const int *resnet_stages(int depth)
{
    static const int stages[][5] = { { 18, 2, 2, 2, 2 },   { 34, 3, 4, 6, 3 },   { 50, 3, 4, 6, 3 },
                                     { 101, 3, 4, 23, 3 }, { 152, 3, 8, 36, 3 }, { 200, 3, 24, 36, 3 } };
    for (int i = 0; i < 6; i++) if (stages[i][0] == depth) return stages[i] + 1;
    return NULL;
}

/* ResNet-18 to -200 (He et al. 2015) as torchvision has them: in a bottleneck the 3x3 has the stride ("v1.5"). The tape
   needs 16 ops a block and 16 more. Another depth: nil tensors. */
static inline network resnet_stored(gcp_tape *net, int depth, int batch, int image_size, int classes, stored *s)
{
    const int *stages = resnet_stages(depth);
    network none = { GCP_NIL, GCP_NIL, GCP_NIL, GCP_NIL };
    if (!stages) return none;
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    gcp_tensor x = imagenet_stem(net, s, image, 64);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < stages[stage]; i++)
            x = residual_block(net, s, x, 64 << stage, stage && !i ? 2 : 1, depth >= 50);
    return network_of(image, labels, mean_head(net, s, x, 0, classes));
}

static inline network resnet(gcp_tape *net, int depth, int batch, int image_size, int classes)
{
    return resnet_stored(net, depth, batch, image_size, classes, NULL);
}

static inline network resnet50(gcp_tape *net, int batch, int image_size, int classes)
{
    return resnet(net, 50, batch, image_size, classes);
}

/* TensorFlow's official models pad by an op of their own before a convolution with a stride; the copy is then all that
   the convolution reads. */
static inline gcp_tensor padded_conv(stored *s, gcp_tensor x, int channels, int k, int stride)
{
    if (stride == 1 || k == 1) return conv(s, x, channels, k, stride);
    stored_padded(s, x, k / 2);
    return conv(NULL, x, channels, k, stride);
}

/* f(relu(norm(x))) + x, f as above with a norm and a ReLU between its convolutions. */
static inline gcp_tensor preactivated_block(gcp_tape *net, stored *s, gcp_tensor x, int channels, int stride,
                                            int bottleneck, int project)
{
    int out = bottleneck ? 4 * channels : channels;
    GCP_SEGMENT(net, "residual") {
        gcp_tensor y = norm_relu(s, x);
        if (project) x = padded_conv(s, y, out, 1, stride);
        if (bottleneck) y = norm_relu(s, conv(s, y, channels, 1, 1));
        y = norm_relu(s, padded_conv(s, y, channels, 3, stride));
        x = gcp_add(conv(s, y, out, bottleneck ? 1 : 3, 1), x);
    }
    stored_next_layer(s);
    return x;
}

/* The pre-activated ResNet-18 to -200 (He et al. 2016) of the checkpointing, swapping and OME measurements. */
static inline network resnet_v2_stored(gcp_tape *net, int depth, int batch, int image_size, int classes, stored *s)
{
    const int *stages = resnet_stages(depth);
    network none = { GCP_NIL, GCP_NIL, GCP_NIL, GCP_NIL };
    if (!stages) return none;
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    GCP_SEGMENT(net, "stem") {
        x = stored_note(s, padded_conv(s, x, 64, 7, 2));
        x = stored_note(s, gcp_max_pool(x, .k = 3, .stride = 2, .padding = GCP_PADDING_SAME));
    }
    stored_next_layer(s);
    for (int stage = 0; stage < 4; stage++)
        for (int i = 0; i < stages[stage]; i++)
            x = preactivated_block(net, s, x, 64 << stage, stage && !i ? 2 : 1, depth >= 50, !i);
    return network_of(image, labels, mean_head(net, s, x, 1, classes));
}

static inline network resnet_v2(gcp_tape *net, int depth, int batch, int image_size, int classes)
{
    return resnet_v2_stored(net, depth, batch, image_size, classes, NULL);
}

/* The residual networks for CIFAR-10: three stages of blocks, 16, 32 and 64 channels wide. Pre-activated ones project
   where the size changes, or at the beginning of every stage. */
typedef enum cifar_kind { CIFAR_PLAIN, CIFAR_PREACTIVATED, CIFAR_PREACTIVATED_PROJECTED } cifar_kind;
static inline network cifar_stages(gcp_tape *net, cifar_kind kind, int blocks, int batch, int image_size, int classes,
                                   stored *s)
{
    const int preactivated = kind != CIFAR_PLAIN;
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    stored_input(s, x);
    GCP_SEGMENT(net, "stem") {
        x = conv(s, x, 16, 3, 1);
        if (!preactivated) x = norm_relu(s, x);
    }
    stored_next_layer(s);
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < blocks; i++) {
            int channels = 16 << stage, stride = stage && !i ? 2 : 1;
            int project = kind == CIFAR_PREACTIVATED ? stride > 1 : !i;
            x = preactivated ? preactivated_block(net, s, x, channels, stride, 0, project)
                             : residual_block(net, s, x, channels, stride, 0);
        }
    return network_of(image, labels, mean_head(net, s, x, preactivated, classes));
}

/* The wide one of the memory tutorial for PyTorch (memonger): bottlenecks of 64, 128 and 256, four times as wide at
   their ends; 1001 layers for blocks = 111. The tape needs 39 blocks + 10 ops. */
static inline network resnet_wide_stored(gcp_tape *net, int blocks, int batch, int image_size, int classes, stored *s)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    stored_input(s, x);
    GCP_SEGMENT(net, "stem") x = conv(s, x, 64, 3, 1);
    stored_next_layer(s);
    for (int i = 0; i < 3 * blocks; i++) {
        const int stage = i / blocks, first = i % blocks == 0;
        x = preactivated_block(net, s, x, 64 << stage, stage && first ? 2 : 1, 1, first);
    }
    return network_of(image, labels, mean_head(net, s, x, 1, classes));
}

static inline network resnet_wide(gcp_tape *net, int blocks, int batch, int image_size, int classes)
{
    return resnet_wide_stored(net, blocks, batch, image_size, classes, NULL);
}

/* A residual network for CIFAR-10 (He et al. 2015): 6 blocks + 2 layers for blocks = 2. */
static inline network cifar_resnet(gcp_tape *net, int batch, int blocks)
{
    return cifar_stages(net, CIFAR_PLAIN, blocks, batch, 32, 10, NULL);
}

/* The pre-activated one (He et al. 2016, "Identity Mappings"), as deep as wanted: 6 blocks + 2 layers and two
   projections, 1000 in all for blocks = 166, the depth that Chen et al. 2016 measure. The tape needs 27 blocks + 9
   ops. */
static inline network resnet_deep_stored(gcp_tape *net, int blocks, int batch, int image_size, int classes, stored *s)
{
    return cifar_stages(net, CIFAR_PREACTIVATED, blocks, batch, image_size, classes, s);
}

static inline network resnet_deep(gcp_tape *net, int blocks, int batch, int image_size, int classes)
{
    return resnet_deep_stored(net, blocks, batch, image_size, classes, NULL);
}

/* The same as TensorFlow's official models have it, of depth 6 blocks + 2: 122 is what gradient-checkpointing measures.
   The tape needs 27 blocks + 10 ops. */
static inline network cifar_resnet_v2_stored(gcp_tape *net, int depth, int batch, int image_size, int classes,
                                             stored *s)
{
    return cifar_stages(net, CIFAR_PREACTIVATED_PROJECTED, (depth - 2) / 6, batch, image_size, classes, s);
}

static inline network cifar_resnet_v2(gcp_tape *net, int depth, int batch, int image_size, int classes)
{
    return cifar_resnet_v2_stored(net, depth, batch, image_size, classes, NULL);
}

#endif
