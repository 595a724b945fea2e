/* networks.h - the networks of the examples, the benchmarks and the tests, and what a framework would store for them.

   Each builder records on a tape and returns the loss (seed000, seed003) or the four tensors that training needs. */
#ifndef NETWORKS_H
#define NETWORKS_H

#include "gcp.h"

typedef struct network { gcp_tensor image, labels, logits, loss; } network;

/* ---- What a framework stores --------------------------------------------------------------------------------
   Frameworks keep, as whole float tensors, what backward reads: inputs of convolutions and dense layers, outputs of
   ReLUs, inputs and outputs of max-pools. A builder that is given a list notes each such tensor once, with the layer
   that makes it. gcp itself stores less (bits, indices, views), so that this is the figure to compare with. */

enum { STORED_MAX = 512 };

typedef struct stored {
    gcp_tensor tensor[STORED_MAX];
    int layer[STORED_MAX];              /* the tensor is made by this layer, from 0; -1: the network's input */
    int count, layers;
} stored;

static inline void stored_note(stored *s, gcp_tensor x)
{
    if (!s || s->count == STORED_MAX) return;
    for (int i = 0; i < s->count; i++) if (s->tensor[i].id == x.id) return;
    s->layer[s->count] = s->layers;
    s->tensor[s->count++] = x;
}

static inline void stored_input(stored *s, gcp_tensor x)
{
    if (!s) return;
    stored_note(s, x);
    s->layer[s->count - 1] = -1;
}

static inline void stored_next_layer(stored *s) { if (s) s->layers++; }

/* Bytes of the noted tensors of the layers from first up to, not including, end. */
static inline size_t stored_between(const stored *s, int first, int end)
{
    size_t bytes = 0;
    for (int i = 0; i < s->count; i++) if (s->layer[i] >= first && s->layer[i] < end) bytes += 4 * gcp_elements(s->tensor[i]);
    return bytes;
}

/* What plain training stores. */
static inline size_t framework_bytes(const stored *s) { return stored_between(s, -1, s->layers); }

/* The layer that the index rule of tf2_gradient_checkpointing takes for checkpoint i of k: evenly spaced between two
   ends, each rounded down before the spacing is. */
static inline int checkpoint_layer(int layers, int k, int i)
{
    int offset = (layers - 1) / k, first = offset / 2, last = (2 * (layers - 1) - offset) / 2;
    return k == 1 ? first : first + i * (last - first) / (k - 1);
}

/* The most that k checkpoints hold at once: their outputs, the network's input and, unless each layer is replayed on
   its own, the inside of the largest segment. */
static inline size_t framework_checkpoint_bytes(const stored *s, int k, int replay)
{
    size_t kept = stored_between(s, -1, 0), inside = 0;
    int start = 0;
    for (int i = 0; i <= k; i++) {
        int end = i < k ? checkpoint_layer(s->layers, k, i) : s->layers;
        size_t bytes = stored_between(s, start, end);
        int maker = end;
        while (maker > 0 && i < k && !stored_between(s, maker, maker + 1)) maker--;      /* a view: its bytes are an earlier layer's */
        if (i < k) kept += stored_between(s, maker, maker + 1);
        if (bytes > inside) inside = bytes;
        start = end + 1;
    }
    return replay ? kept : kept + inside;
}

/* Layers that it runs again: replay starts from the nearest checkpoint for every layer; else each segment but the last
   runs once more. */
static inline int framework_reruns(const stored *s, int k, int replay)
{
    int runs = 0, start = 0;
    for (int i = 0; i <= k; i++) {
        int end = i < k ? checkpoint_layer(s->layers, k, i) + 1 : s->layers, length = end - start;
        if (replay) runs += length * (length + 1) / 2;
        else if (i < k) runs += length;
        start = end;
    }
    return runs;
}

/* ---- The networks of the published measurements ---------------------------------------------------------------*/

static inline gcp_tensor keras_conv(gcp_tape *net, stored *s, gcp_tensor x, int channels)
{
    GCP_SEGMENT(net, "conv") {
        stored_note(s, x);
        x = gcp_relu(gcp_conv2d(x, .out = channels, .k = 5, .padding = GCP_SAME, .init = GCP_INIT_GLOROT));
        stored_note(s, x);
    }
    stored_next_layer(s);
    return x;
}

static inline gcp_tensor keras_pool(gcp_tape *net, stored *s, gcp_tensor x, int size)
{
    GCP_SEGMENT(net, "pool") x = gcp_max_pool(x, .k = size);
    stored_note(s, x);
    stored_next_layer(s);
    return x;
}

/* Flatten, dense 32 with ReLU, dense 10, loss. */
static inline gcp_tensor keras_tail(gcp_tape *net, stored *s, gcp_tensor x, gcp_tensor labels)
{
    GCP_SEGMENT(net, "flatten") x = gcp_flatten(x);
    stored_next_layer(s);
    GCP_SEGMENT(net, "dense") x = gcp_relu(gcp_linear(x, .out = 32, .init = GCP_INIT_GLOROT));
    stored_note(s, x);
    stored_next_layer(s);
    GCP_SEGMENT(net, "dense") x = gcp_linear(x, .out = 10, .init = GCP_INIT_GLOROT);
    stored_next_layer(s);
    return gcp_cross_entropy(x, labels);
}

/* The CNN of tf2_gradient_checkpointing: 26 Keras layers, each a segment and so a unit of the index rules. Ten of its
   pools are 1x1: they change nothing, yet a framework stores what they copy. s may be NULL. */
static inline gcp_tensor seed000_stored(gcp_tape *net, int image_size, int batch, gcp_tensor *image, gcp_tensor *labels, stored *s)
{
    static const int channels[] = { 10, 20, 40, 60, 40, 40, 40, 40, 40, 20, 20 };
    gcp_tensor x = *image = gcp_input(net, "image", batch, image_size, image_size, 1);
    *labels = gcp_labels(net, "labels", batch);
    GCP_SEGMENT(net, "reshape") x = gcp_reshape(x, batch, image_size, image_size, 1);
    stored_input(s, x);
    stored_next_layer(s);
    for (int i = 0; i < 11; i++) {
        x = keras_conv(net, s, x, channels[i]);
        x = keras_pool(net, s, x, i == 10 ? 2 : 1);
    }
    return keras_tail(net, s, x, *labels);
}

static inline gcp_tensor seed000(gcp_tape *net, int image_size, int batch, gcp_tensor *image, gcp_tensor *labels)
{
    return seed000_stored(net, image_size, batch, image, labels, NULL);
}

/* The CNN of the tf.recompute_grad tutorial: each partition of blocks is a segment, as its author cut it. */
static inline gcp_tensor seed003_stored(gcp_tape *net, int partitions, int blocks, int image_size, int batch, gcp_tensor *image, gcp_tensor *labels, stored *s)
{
    static const int channels[] = { 10, 40, 20 };
    gcp_tensor x = *image = gcp_input(net, "image", batch, image_size, image_size, 1);
    *labels = gcp_labels(net, "labels", batch);
    stored_input(s, x);
    for (int p = 0; p < partitions; p++)
        GCP_SEGMENT(net, "partition")
            for (int i = 0; i < 3 * blocks; i++) {
                x = keras_conv(net, s, x, channels[i % 3]);
                x = keras_pool(net, s, x, 1);
            }
    return keras_tail(net, s, x, *labels);
}

static inline gcp_tensor seed003(gcp_tape *net, int partitions, int blocks, int image_size, int batch, gcp_tensor *image, gcp_tensor *labels)
{
    return seed003_stored(net, partitions, blocks, image_size, batch, image, labels, NULL);
}

/* ---- Networks to train ----------------------------------------------------------------------------------------*/

static inline network network_of(gcp_tensor image, gcp_tensor labels, gcp_tensor logits)
{
    network n = { image, labels, logits, gcp_cross_entropy(logits, labels) };
    return n;
}

/* Digits of 8x8: two convolutions a segment, so that there is something to run again. */
static inline network digits_cnn(gcp_tape *net, int batch)
{
    gcp_tensor image = gcp_input(net, "image", batch, 8, 8, 1), labels = gcp_labels(net, "labels", batch), x = image;
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
    gcp_tensor image = gcp_input(net, "image", batch, height, width, 1), labels = gcp_labels(net, "labels", batch), x = image;
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

static inline gcp_tensor conv_norm(gcp_tensor x, int channels, int k, int stride)
{
    return gcp_batch_norm(gcp_conv2d(x, .out = channels, .k = k, .stride = stride, .pad = k / 2, .no_bias = 1));
}

/* relu(f(x) + x); where size or width changes, x goes through a 1x1 convolution. */
static inline gcp_tensor residual_block(gcp_tape *net, gcp_tensor x, int channels, int stride)
{
    GCP_SEGMENT(net, "residual") {
        gcp_tensor y = gcp_relu(conv_norm(x, channels, 3, stride));
        y = conv_norm(y, channels, 3, 1);
        if (stride > 1) x = conv_norm(x, channels, 1, stride);
        x = gcp_relu(gcp_add(y, x));
    }
    return x;
}

/* A residual network for CIFAR-10 (He et al. 2016): 6 blocks + 2 layers for blocks = 2. */
static inline network cifar_resnet(gcp_tape *net, int batch, int blocks)
{
    gcp_tensor image = gcp_input(net, "image", batch, 32, 32, 3), labels = gcp_labels(net, "labels", batch), x = image;
    GCP_SEGMENT(net, "stem") x = gcp_relu(conv_norm(x, 16, 3, 1));
    for (int stage = 0; stage < 3; stage++)
        for (int i = 0; i < blocks; i++) x = residual_block(net, x, 16 << stage, stage && !i ? 2 : 1);
    GCP_SEGMENT(net, "head") x = gcp_linear(gcp_global_avg_pool(x), .out = 10);
    return network_of(image, labels, x);
}
#endif
