/* Modules of branches side by side: Inception. */
#ifndef NETWORKS_INCEPTION_H
#define NETWORKS_INCEPTION_H

#include "residual.h"

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

/* ---- Inception-v4 (Szegedy et al. 2016) as TF-slim has it ------------------------------------------------------ */

/* normed: batch-norms in the place of biases, as in the paper; the OME measurements have none. */
typedef struct inception_v4_net { gcp_tape *net; stored *s; int normed; } inception_v4_net;

static inline gcp_tensor v4_relu(const inception_v4_net *v, gcp_tensor x)
{
    return v->normed ? norm_relu(v->s, x) : stored_note(v->s, gcp_relu(x));
}
static inline gcp_tensor v4_conv(const inception_v4_net *v, gcp_tensor x, int channels, int kh, int kw)
{
    return v4_relu(v, gcp_conv2d(stored_note(v->s, x), .out = channels, .kh = kh, .kw = kw,
                                 .padding = GCP_PADDING_SAME, .no_bias = v->normed));
}
static inline gcp_tensor v4_valid(const inception_v4_net *v, gcp_tensor x, int channels, int k, int stride)
{
    return v4_relu(v, gcp_conv2d(stored_note(v->s, x), .out = channels, .k = k, .stride = stride,
                                 .no_bias = v->normed));
}
static inline gcp_tensor v4_mean(const inception_v4_net *v, gcp_tensor x, int channels)
{
    return v4_conv(v, gcp_avg_pool(x, .k = 3, .stride = 1, .pad = 1), channels, 1, 1);
}

static inline gcp_tensor v4_stem(const inception_v4_net *v, gcp_tensor x)
{
    GCP_SEGMENT(v->net, "stem") {
        x = v4_valid(v, v4_valid(v, x, 32, 3, 2), 32, 3, 1);
        x = v4_conv(v, x, 64, 3, 3);
        gcp_tensor a = valid_pool(v->s, x), b = v4_valid(v, x, 96, 3, 2);
        x = gcp_concat(GCP_TENSORS(a, b));
    }
    stored_next_layer(v->s);
    GCP_SEGMENT(v->net, "stem") {
        gcp_tensor a = v4_valid(v, v4_conv(v, x, 64, 1, 1), 96, 3, 1);
        gcp_tensor b = v4_conv(v, v4_conv(v, v4_conv(v, x, 64, 1, 1), 64, 1, 7), 64, 7, 1);
        x = gcp_concat(GCP_TENSORS(a, v4_valid(v, b, 96, 3, 1)));
    }
    stored_next_layer(v->s);
    GCP_SEGMENT(v->net, "stem") {
        gcp_tensor a = v4_valid(v, x, 192, 3, 2);
        x = gcp_concat(GCP_TENSORS(a, valid_pool(v->s, x)));
    }
    stored_next_layer(v->s);
    return x;
}

static inline gcp_tensor v4_35(const inception_v4_net *v, gcp_tensor x)
{
    GCP_SEGMENT(v->net, "mixed") {
        gcp_tensor a = v4_conv(v, x, 96, 1, 1);
        gcp_tensor b = v4_conv(v, v4_conv(v, x, 64, 1, 1), 96, 3, 3);
        gcp_tensor c = v4_conv(v, v4_conv(v, v4_conv(v, x, 64, 1, 1), 96, 3, 3), 96, 3, 3);
        gcp_tensor d = v4_mean(v, x, 96);
        x = gcp_concat(GCP_TENSORS(a, b, c, d));
    }
    stored_next_layer(v->s);
    return x;
}

static inline gcp_tensor v4_35_to_17(const inception_v4_net *v, gcp_tensor x)
{
    GCP_SEGMENT(v->net, "mixed") {
        gcp_tensor a = v4_valid(v, x, 384, 3, 2);
        gcp_tensor b = v4_valid(v, v4_conv(v, v4_conv(v, x, 192, 1, 1), 224, 3, 3), 256, 3, 2);
        gcp_tensor c = valid_pool(v->s, x);
        x = gcp_concat(GCP_TENSORS(a, b, c));
    }
    stored_next_layer(v->s);
    return x;
}

static inline gcp_tensor v4_17(const inception_v4_net *v, gcp_tensor x)
{
    GCP_SEGMENT(v->net, "mixed") {
        gcp_tensor a = v4_conv(v, x, 384, 1, 1);
        gcp_tensor b = v4_conv(v, v4_conv(v, v4_conv(v, x, 192, 1, 1), 224, 1, 7), 256, 7, 1);
        gcp_tensor c = v4_conv(v, v4_conv(v, v4_conv(v, x, 192, 1, 1), 192, 7, 1), 224, 1, 7);
        c = v4_conv(v, v4_conv(v, c, 224, 7, 1), 256, 1, 7);
        gcp_tensor d = v4_mean(v, x, 128);
        x = gcp_concat(GCP_TENSORS(a, b, c, d));
    }
    stored_next_layer(v->s);
    return x;
}

static inline gcp_tensor v4_17_to_8(const inception_v4_net *v, gcp_tensor x)
{
    GCP_SEGMENT(v->net, "mixed") {
        gcp_tensor a = v4_valid(v, v4_conv(v, x, 192, 1, 1), 192, 3, 2);
        gcp_tensor b = v4_conv(v, v4_conv(v, v4_conv(v, x, 256, 1, 1), 256, 1, 7), 320, 7, 1);
        b = v4_valid(v, b, 320, 3, 2);
        gcp_tensor c = valid_pool(v->s, x);
        x = gcp_concat(GCP_TENSORS(a, b, c));
    }
    stored_next_layer(v->s);
    return x;
}

static inline gcp_tensor v4_8(const inception_v4_net *v, gcp_tensor x)
{
    GCP_SEGMENT(v->net, "mixed") {
        gcp_tensor a = v4_conv(v, x, 256, 1, 1);
        gcp_tensor b = v4_conv(v, x, 384, 1, 1), b1 = v4_conv(v, b, 256, 1, 3), b2 = v4_conv(v, b, 256, 3, 1);
        gcp_tensor c = v4_conv(v, v4_conv(v, v4_conv(v, x, 384, 1, 1), 448, 3, 1), 512, 1, 3);
        gcp_tensor c1 = v4_conv(v, c, 256, 1, 3), c2 = v4_conv(v, c, 256, 3, 1), d = v4_mean(v, x, 256);
        x = gcp_concat(GCP_TENSORS(a, b1, b2, c1, c2, d));
    }
    stored_next_layer(v->s);
    return x;
}

/* The auxiliary head: its loss counts 0.4. */
static inline gcp_tensor v4_auxiliary(const inception_v4_net *v, gcp_tensor x, gcp_tensor labels, int classes)
{
    gcp_tensor loss = GCP_NIL;
    GCP_SEGMENT(v->net, "auxiliary") {
        x = v4_conv(v, gcp_avg_pool(x, .k = 5, .stride = 3), 128, 1, 1);
        x = v4_valid(v, x, 768, gcp_shape_of(x).d[1], 1);
        loss = gcp_cross_entropy(gcp_linear(stored_note(v->s, gcp_flatten(x)), .out = classes), labels);
    }
    stored_next_layer(v->s);
    return gcp_scale(loss, .by = 0.4);
}

/* normed: with batch-norms, else biases; auxiliary: with that head. Images are 299x299, at least 107x107. It takes 349
   ops, with batch-norms 651. */
static inline network inception_v4_stored(gcp_tape *net, int normed, int auxiliary, int batch, int image_size,
                                          int classes, stored *s)
{
    const inception_v4_net v = { net, s, normed };
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, image_size, image_size, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image, aux = GCP_NIL;
    stored_input(s, x);
    x = v4_stem(&v, x);
    for (int i = 0; i < 4; i++) x = v4_35(&v, x);
    x = v4_35_to_17(&v, x);
    for (int i = 0; i < 7; i++) x = v4_17(&v, x);
    if (auxiliary) aux = v4_auxiliary(&v, x, labels, classes);
    x = v4_17_to_8(&v, x);
    for (int i = 0; i < 3; i++) x = v4_8(&v, x);
    GCP_SEGMENT(net, "head")
        x = gcp_linear(stored_note(s, gcp_dropout(gcp_global_avg_pool(x), .rate = 0.2)), .out = classes);
    stored_next_layer(s);
    network n = network_of(image, labels, x);
    if (auxiliary) n.loss = gcp_add(n.loss, aux);
    return n;
}

static inline network inception_v4(gcp_tape *net, int normed, int auxiliary, int batch, int image_size, int classes)
{
    return inception_v4_stored(net, normed, auxiliary, batch, image_size, classes, NULL);
}

#endif
