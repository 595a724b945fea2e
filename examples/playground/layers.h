/* layers.h - the networks of the playground, each a row of layers between which one may cut.

   A network is recorded layer by layer. With the cuts of a request the layers between two of them are a segment;
   without, each layer is one, and so a unit of the other policies. */
#ifndef PLAYGROUND_LAYERS_H
#define PLAYGROUND_LAYERS_H

#include "../networks/residual.h"
#include "request.h"

/* What the layers hand on. */
typedef struct flow {
    gcp_tensor x, labels, skip[4]; /* skip: of the U-Net */
} flow;

typedef struct model {
    const char *name;
    int layers; /* 0: as many as the request says */
    gcp_optimizer optimizer;
    size_t tensor; /* bytes of each layer's output, where all have as many */
    void (*begin)(gcp_tape *net, flow *f);
    void (*layer)(flow *f, int layer);
    const char *(*label)(int layer, int *number); /* "block", and which of them; -1: there is one */
} model;

/* ---- a chain, as in docs/checkpointing.md ---- */

static void chain_begin(gcp_tape *net, flow *f) { f->x = gcp_input(net, "x", GCP_SHAPE(1, 1024), .want_grad = 1); }
static void chain_layer(flow *f, int layer)
{
    (void)layer;
    f->x = gcp_tanh(f->x);
}
static const char *chain_label(int layer, int *number)
{
    *number = layer + 1;
    return "layer";
}

/* ---- residual networks ---- */

static void images_begin(gcp_tape *net, flow *f, int batch, int size)
{
    f->x = gcp_input(net, "image", GCP_SHAPE(batch, size, size, 3));
    f->labels = gcp_labels(net, "labels", GCP_SHAPE(batch));
}
static void head(flow *f, int classes) { f->x = gcp_linear(gcp_global_avg_pool(f->x), .out = classes); }

/* Of which residual_block (networks/residual.h) is the same with a segment of its own. */
static void block(flow *f, int channels, int stride, int bottleneck)
{
    const int out = bottleneck ? 4 * channels : channels;
    gcp_tensor x = f->x, y = bottleneck ? norm_relu(NULL, conv(NULL, x, channels, 1, 1)) : x;
    y = norm_relu(NULL, conv(NULL, y, channels, 3, stride));
    y = norm(NULL, conv(NULL, y, out, bottleneck ? 1 : 3, 1));
    if (stride > 1 || gcp_shape_of(x).d[3] != out) x = norm(NULL, conv(NULL, x, out, 1, stride));
    f->x = gcp_relu(gcp_add(y, x));
}

static void resnet20_begin(gcp_tape *net, flow *f) { images_begin(net, f, 16, 32); }
static void resnet20_layer(flow *f, int layer)
{
    const int stage = (layer - 1) / 3;
    if (!layer) f->x = norm_relu(NULL, conv(NULL, f->x, 16, 3, 1));
    else if (layer == 10) head(f, 10);
    else block(f, 16 << stage, stage && layer % 3 == 1 ? 2 : 1, 0);
}
static const char *resnet20_label(int layer, int *number)
{
    *number = layer && layer < 10 ? layer : -1;
    return !layer ? "stem" : layer < 10 ? "block" : "head";
}

static void resnet50_begin(gcp_tape *net, flow *f) { images_begin(net, f, 4, 224); }
static void resnet50_layer(flow *f, int layer)
{
    static const int ends[] = { 3, 7, 13, 16 };
    int stage = 0;
    while (stage < 3 && layer > ends[stage]) stage++;
    if (!layer) {
        f->x = norm_relu(NULL, conv(NULL, f->x, 64, 7, 2));
        f->x = gcp_max_pool(f->x, .k = 3, .stride = 2, .pad = 1);
    } else if (layer == 17) head(f, 1000);
    else block(f, 64 << stage, stage && layer == ends[stage - 1] + 1 ? 2 : 1, 1);
}
static const char *resnet50_label(int layer, int *number)
{
    *number = layer && layer < 17 ? layer : -1;
    return !layer ? "stem" : layer < 17 ? "block" : "head";
}

/* ---- U-Net: four layers down, one at the bottom, four up, one that classifies each pixel ---- */

static void unet_begin(gcp_tape *net, flow *f)
{
    f->x = gcp_input(net, "image", GCP_SHAPE(1, 256, 256, 3));
    f->labels = gcp_labels(net, "labels", GCP_SHAPE(1, 256, 256));
}
static gcp_tensor unet_two(gcp_tensor x, int channels)
{
    for (int i = 0; i < 2; i++) x = gcp_relu(gcp_conv2d(x, .out = channels, .k = 3, .pad = 1));
    return x;
}
static void unet_layer(flow *f, int layer)
{
    if (layer < 4) {
        f->skip[layer] = unet_two(f->x, 64 << layer);
        f->x = gcp_max_pool(f->skip[layer], .k = 2);
    } else if (layer == 4) f->x = unet_two(f->x, 1024);
    else if (layer == 9) f->x = gcp_conv2d(f->x, .out = 2, .k = 1);
    else {
        const int level = 8 - layer;
        f->x = gcp_conv_transpose2d(f->x, .out = 64 << level, .k = 2, .stride = 2);
        f->x = unet_two(gcp_concat(GCP_TENSORS(f->skip[level], f->x)), 64 << level);
    }
}
static const char *unet_label(int layer, int *number)
{
    *number = layer < 4 ? layer + 1 : layer > 4 && layer < 9 ? layer - 4 : -1;
    return layer < 4 ? "down" : layer == 4 ? "bottom" : layer < 9 ? "up" : "head";
}

/* ---- DenseNet: a stem, three blocks of six layers, a transition between two, a head ---- */

static void densenet_begin(gcp_tape *net, flow *f) { images_begin(net, f, 16, 32); }
static void densenet_layer(flow *f, int layer)
{
    if (!layer) f->x = conv(NULL, f->x, 24, 3, 1);
    else if (layer == 21) {
        f->x = norm_relu(NULL, f->x);
        head(f, 10);
    } else if (layer % 7 == 0)
        f->x = gcp_avg_pool(conv(NULL, norm_relu(NULL, f->x), gcp_shape_of(f->x).d[3] / 2, 1, 1), .k = 2);
    else {
        gcp_tensor y = conv(NULL, norm_relu(NULL, f->x), 48, 1, 1);
        y = conv(NULL, norm_relu(NULL, y), 12, 3, 1);
        f->x = gcp_concat(GCP_TENSORS(f->x, y));
    }
}
static const char *densenet_label(int layer, int *number)
{
    *number = !layer || layer == 21 ? -1 : layer % 7 == 0 ? layer / 7 : layer - layer / 7;
    return !layer ? "stem" : layer == 21 ? "head" : layer % 7 == 0 ? "transition" : "layer";
}

static const model models[] = {
    { "chain", 0, GCP_OPTIMIZER_NONE, 4096, chain_begin, chain_layer, chain_label },
    { "resnet", 11, GCP_OPTIMIZER_SGD, 0, resnet20_begin, resnet20_layer, resnet20_label },
    { "resnet50", 18, GCP_OPTIMIZER_SGD, 0, resnet50_begin, resnet50_layer, resnet50_label },
    { "unet", 10, GCP_OPTIMIZER_SGD, 0, unet_begin, unet_layer, unet_label },
    { "densenet", 22, GCP_OPTIMIZER_SGD, 0, densenet_begin, densenet_layer, densenet_label },
};
enum { MODELS = sizeof models / sizeof *models };

/* Whether a segment of the request begins with this layer. */
static int begins_segment(const request *r, int layer)
{
    int begins = !layer || r->policy != GCP_POLICY_SEGMENTS;
    for (int i = 0; i < r->cut_count; i++) begins |= r->cuts[i] == layer;
    return begins;
}

/* Records the network and returns its loss. end[i]: how many ops layers 0 to i have. */
static gcp_tensor record(gcp_tape *net, const model *m, const request *r, int layers, int *end)
{
    const int last = layers - 1;
    flow f;
    memset(&f, 0, sizeof f);
    m->begin(net, &f);
    for (int i = 0, open = 0, done = 2; i < layers; i++) {
        gcp_segment_opts o = { .at = GCP_AT };
        if (begins_segment(r, i))
            open = gcp_segment_begin(net, r->policy == GCP_POLICY_SEGMENTS ? "segment" : "layer", o);
        m->layer(&f, i);
        end[i] = net->op_count;
        if (i == last || begins_segment(r, i + 1)) gcp_segment_end(net, open, &done);
    }
    return gcp_is_nil(f.labels) ? gcp_mean(f.x) : gcp_cross_entropy(f.x, f.labels);
}

#endif
