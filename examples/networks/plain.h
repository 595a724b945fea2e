/* Networks whose layers follow one another: two CNNs of the published measurements, VGG, and small ones to train. */
#ifndef NETWORKS_PLAIN_H
#define NETWORKS_PLAIN_H

#include "network.h"
#include "stored.h"

static inline gcp_tensor conv_relu(gcp_tape *net, stored *s, gcp_tensor x, int channels, int k, gcp_init init)
{
    GCP_SEGMENT(net, "conv") {
        stored_note(s, x);
        x = gcp_relu(gcp_conv2d(x, .out = channels, .k = k, .padding = GCP_PADDING_SAME, .init = init));
        stored_note(s, x);
    }
    stored_next_layer(s);
    return x;
}

static inline gcp_tensor keras_conv(gcp_tape *net, stored *s, gcp_tensor x, int channels, int k)
{
    return conv_relu(net, s, x, channels, k, GCP_INIT_GLOROT);
}

static inline gcp_tensor keras_pool(gcp_tape *net, stored *s, gcp_tensor x, int size)
{
    GCP_SEGMENT(net, "pool") x = gcp_max_pool(x, .k = size);
    stored_note(s, x);
    stored_next_layer(s);
    return x;
}

/* Flatten, dense layers of one width with ReLU, a dense layer without. */
static inline gcp_tensor keras_head(gcp_tape *net, stored *s, gcp_tensor x, int hidden, int width, int classes)
{
    GCP_SEGMENT(net, "flatten") x = gcp_flatten(x);
    stored_next_layer(s);
    for (int i = 0; i < hidden; i++) {
        GCP_SEGMENT(net, "dense") x = gcp_relu(gcp_linear(x, .out = width, .init = GCP_INIT_GLOROT));
        stored_note(s, x);
        stored_next_layer(s);
    }
    GCP_SEGMENT(net, "dense") x = gcp_linear(x, .out = classes, .init = GCP_INIT_GLOROT);
    stored_next_layer(s);
    return x;
}

/* The CNN of tf2_gradient_checkpointing: 26 Keras layers, each a segment and so a unit of the index rules. Ten of its
   pools are 1x1: they change nothing, yet a framework stores what they copy. s may be NULL. */
static inline gcp_tensor tf2_checkpointing_stored(gcp_tape *net, int image_size, int batch, gcp_tensor *image,
                                                  gcp_tensor *labels, stored *s)
{
    static const int channels[] = { 10, 20, 40, 60, 40, 40, 40, 40, 40, 20, 20 };
    gcp_tensor x = *image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 1));
    *labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    GCP_SEGMENT(net, "reshape") x = gcp_reshape(x, GCP_SHAPE(batch, image_size, image_size, 1));
    stored_input(s, x);
    stored_next_layer(s);
    for (int i = 0; i < 11; i++) {
        x = keras_conv(net, s, x, channels[i], 5);
        x = keras_pool(net, s, x, i == 10 ? 2 : 1);
    }
    return gcp_cross_entropy(keras_head(net, s, x, 1, 32, 10), *labels);
}

static inline gcp_tensor tf2_checkpointing(gcp_tape *net, int image_size, int batch, gcp_tensor *image,
                                           gcp_tensor *labels)
{
    return tf2_checkpointing_stored(net, image_size, batch, image, labels, NULL);
}

/* The CNN of the tf.recompute_grad tutorial: each partition of blocks is a segment, as its author cut it. */
static inline gcp_tensor recompute_grad_stored(gcp_tape *net, int partitions, int blocks, int image_size, int batch,
                                               gcp_tensor *image, gcp_tensor *labels, stored *s)
{
    static const int channels[] = { 10, 40, 20 };
    gcp_tensor x = *image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 1));
    *labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    stored_input(s, x);
    for (int p = 0; p < partitions; p++)
        GCP_SEGMENT(net, "partition")
            for (int i = 0; i < 3 * blocks; i++) {
                x = keras_conv(net, s, x, channels[i % 3], 5);
                x = keras_pool(net, s, x, 1);
            }
    return gcp_cross_entropy(keras_head(net, s, x, 1, 32, 10), *labels);
}

static inline gcp_tensor recompute_grad(gcp_tape *net, int partitions, int blocks, int image_size, int batch,
                                        gcp_tensor *image, gcp_tensor *labels)
{
    return recompute_grad_stored(net, partitions, blocks, image_size, batch, image, labels, NULL);
}

/* VGG13, 16 and 19 as Keras has the last two, without dropout: configurations B, D and E of Simonyan & Zisserman 2014.
   Their layers are segments, so are their five blocks. Another depth: nil tensors. VGG19 takes 44 ops. */
static inline network vgg_stored(gcp_tape *net, int depth, int batch, int image_size, int classes, stored *s)
{
    static const int channels[] = { 64, 128, 256, 512, 512 };
    network none = { GCP_NIL, GCP_NIL, GCP_NIL, GCP_NIL };
    if (depth != 13 && depth != 16 && depth != 19) return none;
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    stored_input(s, x);
    for (int b = 0; b < 5; b++)
        GCP_SEGMENT(net, "block") {
            for (int i = 0; i < (b < 2 ? 2 : (depth - 7) / 3); i++) x = keras_conv(net, s, x, channels[b], 3);
            x = keras_pool(net, s, x, 2);
        }
    return network_of(image, labels, keras_head(net, s, x, 2, 4096, classes));
}

static inline network vgg16(gcp_tape *net, int batch, int image_size, int classes)
{
    return vgg_stored(net, 16, batch, image_size, classes, NULL);
}

static inline network vgg19(gcp_tape *net, int batch, int image_size, int classes)
{
    return vgg_stored(net, 19, batch, image_size, classes, NULL);
}

/* Digits of 8x8: two convolutions a segment, so that there is something to run again. */
static inline network digits_cnn(gcp_tape *net, int batch)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, 8, 8, 1)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "pair") {
            x = gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
            x = gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
        }
    GCP_SEGMENT(net, "head") {
        x = gcp_relu(gcp_linear(gcp_flatten(gcp_max_pool(x, .k = 2)), .out = 32));
        x = gcp_linear(x, .out = 10);
    }
    return network_of(image, labels, x);
}

/* Grey images of any size that two 2x2 pools leave something of: MNIST and its relatives. */
static inline network mnist_cnn(gcp_tape *net, int batch, int height, int width, int classes)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, height, width, 1)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    GCP_SEGMENT(net, "low") {
        x = gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
        x = gcp_max_pool(x, .k = 2);
    }
    GCP_SEGMENT(net, "high") {
        x = gcp_relu(gcp_conv2d(x, .out = 32, .k = 3, .pad = 1));
        x = gcp_max_pool(x, .k = 2);
    }
    GCP_SEGMENT(net, "head") {
        x = gcp_relu(gcp_linear(gcp_flatten(x), .out = 64));
        x = gcp_linear(x, .out = classes);
    }
    return network_of(image, labels, x);
}

#endif
