/* networks.h - the networks of the examples, the benchmarks and the tests, and what a framework would store for them.

   Each builder records on a tape and returns the loss (tf2_checkpointing, recompute_grad) or the four tensors that
   training needs. The published ones have a twin, NAME_stored, that also notes what a framework stores. */
#ifndef NETWORKS_H
#define NETWORKS_H

#include "gcp.h"

typedef struct network { gcp_tensor image, labels, logits, loss; } network;

static inline network network_of(gcp_tensor image, gcp_tensor labels, gcp_tensor logits)
{
    network n = { image, labels, logits, gcp_cross_entropy(logits, labels) };
    return n;
}

/* ---- What a framework stores --------------------------------------------------------------------------------
   Frameworks keep, as whole float tensors, what backward reads: inputs of convolutions, dense layers and batch-norms,
   outputs of ReLUs, inputs and outputs of max-pools, and the padded copies of those that pad by an op of their own. A
   builder that is given a list notes each such tensor once, with the layer that makes it. gcp itself stores less (bits,
   indices, views), so that this is the figure to compare with. */

enum { STORED_MAX = 2048 };

typedef struct stored {
    gcp_tensor tensor[STORED_MAX];
    size_t bytes[STORED_MAX];
    int layer[STORED_MAX];              /* the tensor is made by this layer, from 0; -1: the network's input */
    int count, layers;
} stored;

/* Returns x, so that a call can stand inside another. */
static inline gcp_tensor stored_note(stored *s, gcp_tensor x)
{
    if (!s || s->count == STORED_MAX) return x;
    for (int i = 0; i < s->count; i++) if (s->tensor[i].id == x.id) return x;
    s->layer[s->count] = s->layers;
    s->bytes[s->count] = 4 * gcp_elements(x);
    s->tensor[s->count++] = x;
    return x;
}

/* x with pad zeros around it, a tensor of its own there and none here. */
static inline void stored_padded(stored *s, gcp_tensor x, int pad)
{
    gcp_shape d = gcp_shape_of(x);
    if (!s || s->count == STORED_MAX) return;
    s->layer[s->count] = s->layers;
    s->bytes[s->count] = (size_t)4 * (size_t)d.d[0] * (size_t)(d.d[1] + 2 * pad) * (size_t)(d.d[2] + 2 * pad) *
                         (size_t)d.d[3];
    s->tensor[s->count++] = GCP_NIL;
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
    for (int i = 0; i < s->count; i++) if (s->layer[i] >= first && s->layer[i] < end) bytes += s->bytes[i];
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
   its own, the inside of the largest segment. For networks whose layers note one tensor each: not the residual ones. */
static inline size_t framework_checkpoint_bytes(const stored *s, int k, int replay)
{
    size_t kept = stored_between(s, -1, 0), inside = 0;
    int start = 0;
    for (int i = 0; i <= k; i++) {
        int end = i < k ? checkpoint_layer(s->layers, k, i) : s->layers;
        size_t bytes = stored_between(s, start, end);
        int maker = end;
        /* a view: its bytes are an earlier layer's */
        while (maker > 0 && i < k && !stored_between(s, maker, maker + 1)) maker--;
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

/* ---- Networks to train ----------------------------------------------------------------------------------------*/

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

/* ---- Residual networks ----------------------------------------------------------------------------------------*/

static inline gcp_tensor conv(stored *s, gcp_tensor x, int channels, int k, int stride)
{
    return gcp_conv2d(stored_note(s, x), .out = channels, .k = k, .stride = stride, .pad = k / 2, .no_bias = 1);
}

static inline gcp_tensor norm(stored *s, gcp_tensor x) { return gcp_batch_norm(stored_note(s, x)); }
static inline gcp_tensor norm_relu(stored *s, gcp_tensor x) { return stored_note(s, gcp_relu(norm(s, x))); }

/* The first layers of the residual networks for ImageNet and of the densely connected ones: a quarter of the size. */
static inline gcp_tensor imagenet_stem(gcp_tape *net, stored *s, gcp_tensor x)
{
    stored_input(s, x);
    GCP_SEGMENT(net, "stem") {
        x = norm_relu(s, conv(s, x, 64, 7, 2));
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
    gcp_tensor x = imagenet_stem(net, s, image);
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

/* The residual networks for CIFAR-10: three stages of blocks, 16, 32 and 64 channels wide. */
static inline network cifar_stages(gcp_tape *net, int preactivated, int blocks, int batch, int image_size, int classes,
                                   stored *s)
{
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
            x = preactivated ? preactivated_block(net, s, x, channels, stride, 0, stride > 1)
                             : residual_block(net, s, x, channels, stride, 0);
        }
    return network_of(image, labels, mean_head(net, s, x, preactivated, classes));
}

/* A residual network for CIFAR-10 (He et al. 2016): 6 blocks + 2 layers for blocks = 2. */
static inline network cifar_resnet(gcp_tape *net, int batch, int blocks)
{
    return cifar_stages(net, 0, blocks, batch, 32, 10, NULL);
}

/* The pre-activated one (He et al. 2016, "Identity Mappings"), as deep as wanted: 6 blocks + 2 layers and two
   projections, 1000 in all for blocks = 166, the depth that Chen et al. 2016 measure. The tape needs 27 blocks + 9
   ops. */
static inline network resnet_deep_stored(gcp_tape *net, int blocks, int batch, int image_size, int classes, stored *s)
{
    return cifar_stages(net, 1, blocks, batch, image_size, classes, s);
}

static inline network resnet_deep(gcp_tape *net, int blocks, int batch, int image_size, int classes)
{
    return resnet_deep_stored(net, blocks, batch, image_size, classes, NULL);
}

/* ---- Depthwise convolutions and concatenations ----------------------------------------------------------------*/

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

/* x and 32 channels more, made of all of x by way of 128. */
static inline gcp_tensor dense_layer(gcp_tape *net, stored *s, gcp_tensor x)
{
    GCP_SEGMENT(net, "layer") {
        gcp_tensor y = conv(s, norm_relu(s, x), 128, 1, 1);
        y = conv(s, norm_relu(s, y), 32, 3, 1);
        x = gcp_concat(GCP_TENSORS(x, y));
    }
    stored_next_layer(s);
    return x;
}

/* DenseNet-121 (Huang et al. 2017). Between its four blocks a transition halves width, height and channels. It takes
   548 ops. */
static inline network densenet121_stored(gcp_tape *net, int batch, int image_size, int classes, stored *s)
{
    static const int layers[] = { 6, 12, 24, 16 };
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
    gcp_tensor x = imagenet_stem(net, s, image);
    for (int b = 0; b < 4; b++) {
        if (b) {
            GCP_SEGMENT(net, "transition")
                x = gcp_avg_pool(conv(s, norm_relu(s, x), gcp_shape_of(x).d[3] / 2, 1, 1), .k = 2);
            stored_next_layer(s);
        }
        for (int i = 0; i < layers[b]; i++) x = dense_layer(net, s, x);
    }
    return network_of(image, labels, mean_head(net, s, x, 1, classes));
}

static inline network densenet121(gcp_tape *net, int batch, int image_size, int classes)
{
    return densenet121_stored(net, batch, image_size, classes, NULL);
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

/* Inception: a kernel of any size that keeps the image's, and a 3x3 that reads no padding. */
static inline gcp_tensor same_conv(stored *s, gcp_tensor x, int channels, int kh, int kw)
{
    return norm_relu(s, gcp_conv2d(stored_note(s, x), .out = channels, .kh = kh, .kw = kw, .padding = GCP_PADDING_SAME,
                                   .no_bias = 1));
}

static inline gcp_tensor valid_conv(stored *s, gcp_tensor x, int channels, int stride)
{
    return norm_relu(s, gcp_conv2d(stored_note(s, x), .out = channels, .k = 3, .stride = stride, .no_bias = 1));
}

static inline gcp_tensor valid_pool(stored *s, gcp_tensor x)
{
    return stored_note(s, gcp_max_pool(stored_note(s, x), .k = 3, .stride = 2));
}

static inline gcp_tensor mean_branch(stored *s, gcp_tensor x, int channels)
{
    return same_conv(s, gcp_avg_pool(x, .k = 3, .stride = 1, .pad = 1), channels, 1, 1);
}

/* Its modules, by the size of their image: branches of x, side by side in the result. */
static inline gcp_tensor inception_35(gcp_tape *net, stored *s, gcp_tensor x, int pooled)
{
    GCP_SEGMENT(net, "mixed") {
        gcp_tensor a = same_conv(s, x, 64, 1, 1);
        gcp_tensor b = same_conv(s, same_conv(s, x, 48, 1, 1), 64, 5, 5);
        gcp_tensor c = same_conv(s, same_conv(s, same_conv(s, x, 64, 1, 1), 96, 3, 3), 96, 3, 3);
        gcp_tensor d = mean_branch(s, x, pooled);
        x = gcp_concat(GCP_TENSORS(a, b, c, d));
    }
    stored_next_layer(s);
    return x;
}

static inline gcp_tensor inception_35_to_17(gcp_tape *net, stored *s, gcp_tensor x)
{
    GCP_SEGMENT(net, "mixed") {
        gcp_tensor a = valid_conv(s, x, 384, 2);
        gcp_tensor b = valid_conv(s, same_conv(s, same_conv(s, x, 64, 1, 1), 96, 3, 3), 96, 2);
        gcp_tensor c = valid_pool(s, x);
        x = gcp_concat(GCP_TENSORS(a, b, c));
    }
    stored_next_layer(s);
    return x;
}

static inline gcp_tensor inception_17(gcp_tape *net, stored *s, gcp_tensor x, int channels)
{
    GCP_SEGMENT(net, "mixed") {
        gcp_tensor a = same_conv(s, x, 192, 1, 1);
        gcp_tensor b = same_conv(s, same_conv(s, same_conv(s, x, channels, 1, 1), channels, 1, 7), 192, 7, 1);
        gcp_tensor c = same_conv(s, same_conv(s, same_conv(s, x, channels, 1, 1), channels, 7, 1), channels, 1, 7);
        c = same_conv(s, same_conv(s, c, channels, 7, 1), 192, 1, 7);
        gcp_tensor d = mean_branch(s, x, 192);
        x = gcp_concat(GCP_TENSORS(a, b, c, d));
    }
    stored_next_layer(s);
    return x;
}

static inline gcp_tensor inception_17_to_8(gcp_tape *net, stored *s, gcp_tensor x)
{
    GCP_SEGMENT(net, "mixed") {
        gcp_tensor a = valid_conv(s, same_conv(s, x, 192, 1, 1), 320, 2);
        gcp_tensor b = same_conv(s, same_conv(s, same_conv(s, x, 192, 1, 1), 192, 1, 7), 192, 7, 1);
        b = valid_conv(s, b, 192, 2);
        gcp_tensor c = valid_pool(s, x);
        x = gcp_concat(GCP_TENSORS(a, b, c));
    }
    stored_next_layer(s);
    return x;
}

static inline gcp_tensor inception_8(gcp_tape *net, stored *s, gcp_tensor x)
{
    GCP_SEGMENT(net, "mixed") {
        gcp_tensor a = same_conv(s, x, 320, 1, 1);
        gcp_tensor b = same_conv(s, x, 384, 1, 1), b1 = same_conv(s, b, 384, 1, 3), b2 = same_conv(s, b, 384, 3, 1);
        gcp_tensor c = same_conv(s, same_conv(s, x, 448, 1, 1), 384, 3, 3), c1 = same_conv(s, c, 384, 1, 3),
                   c2 = same_conv(s, c, 384, 3, 1);
        gcp_tensor d = mean_branch(s, x, 192);
        x = gcp_concat(GCP_TENSORS(a, b1, b2, c1, c2, d));
    }
    stored_next_layer(s);
    return x;
}

/* Inception-v3 (Szegedy et al. 2015) as torchvision has it, without the auxiliary head and dropout, but that its
   average pools leave padding out, as in TensorFlow. Images are 299x299, at least 75x75. It takes 403 ops. */
static inline network inception_v3_stored(gcp_tape *net, int batch, int image_size, int classes, stored *s)
{
    static const int pooled[] = { 32, 64, 64 }, channels[] = { 128, 160, 160, 192 };
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    stored_input(s, x);
    GCP_SEGMENT(net, "stem") {
        x = valid_conv(s, valid_conv(s, x, 32, 2), 32, 1);
        x = valid_pool(s, same_conv(s, x, 64, 3, 3));
        x = valid_conv(s, same_conv(s, x, 80, 1, 1), 192, 1);
        x = valid_pool(s, x);
    }
    stored_next_layer(s);
    for (int i = 0; i < 3; i++) x = inception_35(net, s, x, pooled[i]);
    x = inception_35_to_17(net, s, x);
    for (int i = 0; i < 4; i++) x = inception_17(net, s, x, channels[i]);
    x = inception_17_to_8(net, s, x);
    for (int i = 0; i < 2; i++) x = inception_8(net, s, x);
    return network_of(image, labels, mean_head(net, s, x, 0, classes));
}

static inline network inception_v3(gcp_tape *net, int batch, int image_size, int classes)
{
    return inception_v3_stored(net, batch, image_size, classes, NULL);
}

static inline gcp_tensor unet_pair(gcp_tape *net, stored *s, gcp_tensor x, int channels)
{
    for (int i = 0; i < 2; i++) x = conv_relu(net, s, x, channels, 3, GCP_INIT_HE);
    return x;
}

/* U-Net (Ronneberger et al. 2015) with padded convolutions and without dropout: a class for each pixel. Height and
   width are multiples of 16. It takes 50 ops. */
static inline network unet_stored(gcp_tape *net, int batch, int height, int width, int classes, stored *s)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, height, width, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch, height, width)), x = image, skip[4];
    stored_input(s, x);
    for (int level = 0; level < 4; level++)
        GCP_SEGMENT(net, "down") {
            skip[level] = unet_pair(net, s, x, 64 << level);
            x = keras_pool(net, s, skip[level], 2);
        }
    GCP_SEGMENT(net, "bottom") x = unet_pair(net, s, x, 1024);
    for (int level = 3; level >= 0; level--)
        GCP_SEGMENT(net, "up") {
            x = gcp_conv_transpose2d(stored_note(s, x), .out = 64 << level, .k = 2, .stride = 2);
            stored_next_layer(s);
            x = unet_pair(net, s, gcp_concat(GCP_TENSORS(skip[level], x)), 64 << level);
        }
    GCP_SEGMENT(net, "head") x = gcp_conv2d(stored_note(s, x), .out = classes, .k = 1);
    stored_next_layer(s);
    return network_of(image, labels, x);
}

static inline network unet(gcp_tape *net, int batch, int height, int width, int classes)
{
    return unet_stored(net, batch, height, width, classes, NULL);
}

/* ---- By name ----------------------------------------------------------------------------------------------------
   With 1000 classes and the image size of the paper (U-Net: 2 and 256; resnet1000 and densenet_bc, 10 and 32). */

static inline network named_vgg16(gcp_tape *net, int batch, int image) { return vgg16(net, batch, image, 1000); }
static inline network named_vgg19(gcp_tape *net, int batch, int image) { return vgg19(net, batch, image, 1000); }
static inline network named_resnet50(gcp_tape *net, int batch, int image) { return resnet50(net, batch, image, 1000); }
static inline network named_resnet200(gcp_tape *net, int batch, int image)
{
    return resnet(net, 200, batch, image, 1000);
}
static inline network named_unet(gcp_tape *net, int batch, int image) { return unet(net, batch, image, image, 2); }
static inline network named_mobilenet(gcp_tape *net, int batch, int image)
{
    return mobilenet(net, batch, image, 1000);
}
static inline network named_densenet121(gcp_tape *net, int batch, int image)
{
    return densenet121(net, batch, image, 1000);
}
static inline network named_densenet_bc(gcp_tape *net, int batch, int image)
{
    return densenet_bc(net, 100, 12, batch, image, 10);
}
static inline network named_inception_v3(gcp_tape *net, int batch, int image)
{
    return inception_v3(net, batch, image, 1000);
}
static inline network named_resnet1000(gcp_tape *net, int batch, int image)
{
    return resnet_deep(net, 166, batch, image, 10);
}

typedef struct network_name {
    const char *name;
    int ops, batch, image;
    network (*record)(gcp_tape *net, int batch, int image);
} network_name;
static const network_name network_names[] = { { "vgg16", 64, 32, 224, named_vgg16 },
                                              { "vgg19", 64, 32, 224, named_vgg19 },
                                              { "resnet50", 256, 32, 224, named_resnet50 },
                                              { "resnet200", 1024, 32, 224, named_resnet200 },
                                              { "unet", 64, 8, 256, named_unet },
                                              { "mobilenet", 128, 32, 224, named_mobilenet },
                                              { "densenet121", 640, 32, 224, named_densenet121 },
                                              { "densenet_bc", 512, 64, 32, named_densenet_bc },
                                              { "inception_v3", 512, 32, 299, named_inception_v3 },
                                              { "resnet1000", 4608, 32, 32, named_resnet1000 } };
enum { NETWORK_NAMES = sizeof network_names / sizeof *network_names };
#endif
