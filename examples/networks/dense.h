/* Depthwise convolutions, and features that are joined: MobileNet and DenseNet. */
#ifndef NETWORKS_DENSE_H
#define NETWORKS_DENSE_H

#include "residual.h"

/* MobileNet (Howard et al. 2017) of width 1: a 3x3 convolution of each channel on its own, then a 1x1 over all,
   thirteen times. It takes 111 ops. */
static inline network mobilenet_stored(gcp_tape *net, int batch, int image_size, int classes, stored *s)
{
    static const int channels[] = { 32, 64, 128, 128, 256, 256, 512, 512, 512, 512, 512, 512, 1024, 1024 };
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    stored_input(s, x);
    GCP_SEGMENT(net, "stem") x = norm_relu(s, conv(s, x, channels[0], 3, 2));
    stored_next_layer(s);
    for (int i = 1; i < 14; i++) {
        int in = channels[i - 1], stride = i > 1 && channels[i] > in ? 2 : 1;
        GCP_SEGMENT(net, "separable") {
            x = norm_relu(s, gcp_conv2d(stored_note(s, x), .out = in, .k = 3, .stride = stride, .pad = 1, .groups = in,
                                        .no_bias = 1));
            x = norm_relu(s, conv(s, x, channels[i], 1, 1));
        }
        stored_next_layer(s);
    }
    return network_of(image, labels, mean_head(net, s, x, 0, classes));
}

static inline network mobilenet(gcp_tape *net, int batch, int image_size, int classes)
{
    return mobilenet_stored(net, batch, image_size, classes, NULL);
}

/* x and `growth` channels more, made of all of x by way of four times as many. */
static inline gcp_tensor dense_layer(gcp_tape *net, stored *s, gcp_tensor x, int growth)
{
    GCP_SEGMENT(net, "layer") {
        gcp_tensor y = conv(s, norm_relu(s, x), 4 * growth, 1, 1);
        y = conv(s, norm_relu(s, y), growth, 3, 1);
        x = gcp_concat(GCP_TENSORS(x, y));
    }
    stored_next_layer(s);
    return x;
}

/* DenseNet-121 and -161 (Huang et al. 2017). Between the four blocks a transition halves width, height and channels.
   They take 548 and 728 ops. Another depth: nil tensors. */
static inline network densenet_stored(gcp_tape *net, int depth, int batch, int image_size, int classes, stored *s)
{
    static const int blocks[2][4] = { { 6, 12, 24, 16 }, { 6, 12, 36, 24 } };
    const int *layers = blocks[depth == 161], growth = depth == 161 ? 48 : 32;
    network none = { GCP_NIL, GCP_NIL, GCP_NIL, GCP_NIL };
    if (depth != 121 && depth != 161) return none;
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    gcp_tensor x = imagenet_stem(net, s, image, 2 * growth);
    for (int b = 0; b < 4; b++) {
        if (b) {
            GCP_SEGMENT(net, "transition")
                x = gcp_avg_pool(conv(s, norm_relu(s, x), gcp_shape_of(x).d[3] / 2, 1, 1), .k = 2);
            stored_next_layer(s);
        }
        for (int i = 0; i < layers[b]; i++) x = dense_layer(net, s, x, growth);
    }
    return network_of(image, labels, mean_head(net, s, x, 1, classes));
}

static inline network densenet(gcp_tape *net, int depth, int batch, int image_size, int classes)
{
    return densenet_stored(net, depth, batch, image_size, classes, NULL);
}

/* A dense block as most write it: each layer joins all features so far anew. Returns all of them joined. */
static inline gcp_tensor dense_block(gcp_tape *net, stored *s, gcp_tensor x, int layers, int growth)
{
    enum { MOST = 48 };
    gcp_tensor features[MOST + 1];
    features[0] = x;
    layers = layers < MOST ? layers : MOST;
    for (int i = 0; i < layers; i++) {
        GCP_SEGMENT(net, "layer") {
            gcp_tensor all = i ? gcp_concat(features, i + 1) : x;
            gcp_tensor y = conv(s, norm_relu(s, all), 4 * growth, 1, 1);
            features[i + 1] = conv(s, norm_relu(s, y), growth, 3, 1);
        }
        stored_next_layer(s);
    }
    return gcp_concat(features, layers + 1);
}

/* DenseNet-BC (Huang et al. 2017) for small images: three dense blocks of (depth - 4) / 6 layers. With depth 100 and a
   growth of 12 it takes 447 ops. */
static inline network densenet_bc_stored(gcp_tape *net, int depth, int growth, int batch, int image_size, int classes,
                                         stored *s)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    stored_input(s, image);
    gcp_tensor x = conv(s, image, 2 * growth, 3, 1);
    stored_next_layer(s);
    for (int b = 0; b < 3; b++) {
        x = dense_block(net, s, x, (depth - 4) / 6, growth);
        if (b == 2) break;
        GCP_SEGMENT(net, "transition")
            x = gcp_avg_pool(conv(s, norm_relu(s, x), gcp_shape_of(x).d[3] / 2, 1, 1), .k = 2);
        stored_next_layer(s);
    }
    return network_of(image, labels, mean_head(net, s, x, 1, classes));
}

static inline network densenet_bc(gcp_tape *net, int depth, int growth, int batch, int image_size, int classes)
{
    return densenet_bc_stored(net, depth, growth, batch, image_size, classes, NULL);
}

#endif
