/* Transformers: for images cut into patches (ViT, DeiT) or windows (Swin), and language models (GPT-2). */
#ifndef NETWORKS_TRANSFORMER_H
#define NETWORKS_TRANSFORMER_H

#include "network.h"

/* Norm, attention, addition; norm, two dense layers with GELU between, addition. */
static inline gcp_tensor transformer_block(gcp_tape *net, gcp_tensor x, int heads, int causal, double epsilon)
{
    const int c = gcp_shape_of(x).d[3];
    GCP_SEGMENT(net, "block") {
        gcp_tensor y = gcp_linear(gcp_layer_norm(x, .epsilon = epsilon), .out = 3 * c, .name = "qkv");
        y = gcp_attention(gcp_slice(y, .first = 0, .count = c), gcp_slice(y, .first = c, .count = c),
                          gcp_slice(y, .first = 2 * c, .count = c), .heads = heads, .causal = causal);
        x = gcp_add(x, gcp_linear(y, .out = c, .name = "project"));
        y = gcp_linear(gcp_layer_norm(x, .epsilon = epsilon), .out = 4 * c, .name = "expand");
        y = causal ? gcp_gelu_tanh(y) : gcp_gelu(y);
        x = gcp_add(x, gcp_linear(y, .out = c, .name = "contract"));
    }
    return x;
}

/* Dosovitskiy et al. 2020, Touvron et al. 2020: patches of 16 x 16 pixels, a class token in front. */
static inline network vit(gcp_tape *net, int width, int depth, int heads, int batch, int image, int classes)
{
    const int side = image / 16, tokens = side * side;
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "patches") {
        gcp_tensor token = gcp_param(net, "class", GCP_SHAPE(1, 1, width), .std = 0.02),
                   positions = gcp_param(net, "positions", GCP_SHAPE(1, tokens + 1, width), .std = 0.02);
        x = gcp_reshape(gcp_conv2d(x, .out = width, .k = 16, .stride = 16), GCP_SHAPE(batch, tokens, width));
        x = gcp_concat(GCP_TENSORS(gcp_expand(token, GCP_SHAPE(batch, 1, width)), x), .axis = GCP_AXIS_TOKENS);
        x = gcp_add(x, positions);
    }
    for (int i = 0; i < depth; i++) x = transformer_block(net, x, heads, 0, 1e-6);
    GCP_SEGMENT(net, "head") {
        x = gcp_slice(gcp_layer_norm(x, .epsilon = 1e-6), .first = 0, .count = 1, .axis = GCP_AXIS_TOKENS);
        x = gcp_linear(gcp_reshape(x, GCP_SHAPE(batch, width)), .out = classes);
    }
    return network_of(pixels, labels, x);
}

/* Liu et al. 2021, T: attention inside of windows of 7 x 7, in every second block of windows that are shifted by 3.
   What the image's edges bring together must not meet: a mask for each window, -100 where it must not. Masks and the
   numbers of relative positions are inputs, which swin_write fills. */
enum { SWIN_SIDE = 7, SWIN_SHIFT = 3, SWIN_TOKENS = SWIN_SIDE * SWIN_SIDE, SWIN_STEPS = 2 * SWIN_SIDE - 1 };
typedef struct swin { gcp_tape *net; gcp_tensor relative, mask[4]; } swin;

/* Rows and columns from `by` on come first. */
static inline gcp_tensor swin_roll(gcp_tensor x, int by)
{
    static const gcp_axis axes[] = { GCP_AXIS_HEIGHT, GCP_AXIS_WIDTH };
    for (int k = 0; k < 2; k++) {
        const int size = gcp_shape_of(x).d[1 + k];
        x = gcp_concat(GCP_TENSORS(gcp_slice(x, .first = by, .count = size - by, .axis = axes[k]),
                                   gcp_slice(x, .first = 0, .count = by, .axis = axes[k])), .axis = axes[k]);
    }
    return x;
}
/* (n, h, w, c) to (n windows, 49, c), and back. */
static inline gcp_tensor swin_cut(gcp_tensor x)
{
    const gcp_shape s = gcp_shape_of(x);
    const int high = s.d[0] * s.d[1] / SWIN_SIDE, wide = s.d[2] / SWIN_SIDE;
    x = gcp_transpose(gcp_reshape(x, GCP_SHAPE(high, SWIN_SIDE, wide, SWIN_SIDE * s.d[3])), 0, 2, 1, 3);
    return gcp_reshape(x, GCP_SHAPE(high * wide, SWIN_TOKENS, s.d[3]));
}
static inline gcp_tensor swin_joined(gcp_tensor x, gcp_shape s)
{
    const int high = s.d[0] * s.d[1] / SWIN_SIDE, wide = s.d[2] / SWIN_SIDE;
    x = gcp_transpose(gcp_reshape(x, GCP_SHAPE(high, wide, SWIN_SIDE, SWIN_SIDE * s.d[3])), 0, 2, 1, 3);
    return gcp_reshape(x, GCP_SHAPE(s.d[0], s.d[1], s.d[2], s.d[3]));
}
static inline gcp_tensor swin_block(const swin *w, int stage, gcp_tensor x, int heads, int shifted, double drop)
{
    const gcp_shape s = gcp_shape_of(x);
    const int c = s.d[3], segment = stage_begin(w->net, 2 * stage + 1), by = shifted && s.d[1] > SWIN_SIDE;
    gcp_tensor y = gcp_layer_norm(x, .name = "norm1"), table, bias;
    if (by) y = swin_roll(y, SWIN_SHIFT);
    table = gcp_param(w->net, "table", GCP_SHAPE(SWIN_STEPS * SWIN_STEPS, heads), .std = 0.02);
    bias = gcp_reshape(gcp_embedding_op(w->relative, table), GCP_SHAPE(1, SWIN_TOKENS, SWIN_TOKENS, heads));
    bias = gcp_transpose(bias, 0, 3, 1, 2);
    if (by) bias = gcp_add(bias, w->mask[stage]);
    y = gcp_linear(swin_cut(y), .out = 3 * c, .name = "qkv");
    y = gcp_attention(gcp_slice(y, .first = 0, .count = c), gcp_slice(y, .first = c, .count = c),
                      gcp_slice(y, .first = 2 * c, .count = c), .heads = heads, .bias = bias);
    y = swin_joined(gcp_linear(y, .out = c, .name = "project"), s);
    if (by) y = swin_roll(y, s.d[1] - SWIN_SHIFT);
    x = gcp_add(x, network_dropout(y, drop, 1));
    y = gcp_gelu(gcp_linear(gcp_layer_norm(x, .name = "norm2"), .out = 4 * c, .name = "expand"));
    x = gcp_add(x, network_dropout(gcp_linear(y, .out = c, .name = "contract"), drop, 1));
    stage_end(w->net, segment);
    return x;
}
/* Half the height and width: four neighbours side by side, and twice the channels of one. */
static inline gcp_tensor swin_merge(const swin *w, int stage, gcp_tensor x)
{
    const int high = gcp_shape_of(x).d[1] / 2, wide = gcp_shape_of(x).d[2] / 2, c = gcp_shape_of(x).d[3];
    const int segment = stage_begin(w->net, 2 * stage);
    gcp_tensor part[4];
    for (int i = 0; i < 4; i++) {
        part[i] = gcp_slice(x, .first = i % 2, .count = high, .step = 2, .axis = GCP_AXIS_HEIGHT);
        part[i] = gcp_slice(part[i], .first = i / 2, .count = wide, .step = 2, .axis = GCP_AXIS_WIDTH);
    }
    x = gcp_layer_norm(gcp_concat(GCP_TENSORS(part[0], part[1], part[2], part[3])), .name = "merge_norm");
    x = gcp_linear(x, .out = 2 * c, .no_bias = 1, .name = "merge");
    stage_end(w->net, segment);
    return x;
}
static inline network swin_t(gcp_tape *net, int batch, int image, int classes)
{
    static const int depths[] = { 2, 2, 6, 2 };
    static const char *const names[] = { "mask0", "mask1", "mask2", "mask3" };
    swin w;
    w.net = net;
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    w.relative = gcp_ids(net, "relative", GCP_SHAPE(SWIN_TOKENS * SWIN_TOKENS));
    for (int s = 0, side = image / 4 / SWIN_SIDE; s < 4 && side > 1; s++, side /= 2)
        w.mask[s] = gcp_input(net, names[s], GCP_SHAPE(side * side, 1, SWIN_TOKENS, SWIN_TOKENS));
    const int first = stage_begin(net, 0);
    x = gcp_layer_norm(gcp_conv2d(x, .out = 96, .k = 4, .stride = 4, .name = "patches"), .name = "patches_norm");
    stage_end(net, first);
    for (int s = 0, block = 0; s < 4; s++) {
        if (s) x = swin_merge(&w, s, x);
        for (int i = 0; i < depths[s]; i++, block++) x = swin_block(&w, s, x, 3 << s, i % 2, 0.2 * block / 11);
    }
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(gcp_layer_norm(x, .name = "norm"));
        x = gcp_linear(x, .out = classes, .name = "classes");
    }
    return network_of(pixels, labels, x);
}
/* Which of three parts a row or column of the shifted image belongs to. */
static inline int swin_part(int at, int size) { return at < size - SWIN_SIDE ? 0 : at < size - SWIN_SHIFT ? 1 : 2; }
static inline float swin_masked(int window, int i, int k, int side)
{
    const int y = window / side * SWIN_SIDE, x = window % side * SWIN_SIDE, size = side * SWIN_SIDE;
    const int a = 3 * swin_part(y + i / SWIN_SIDE, size) + swin_part(x + i % SWIN_SIDE, size),
              b = 3 * swin_part(y + k / SWIN_SIDE, size) + swin_part(x + k % SWIN_SIDE, size);
    return a == b ? 0 : -100;
}
/* Fills the inputs that are the same in each step. values: 64 x 49 x 49 of them, for an image of 224 x 224. */
static inline void swin_write(gcp_plan *plan, gcp_real *values)
{
    static const char *const names[] = { "mask0", "mask1", "mask2", "mask3" };
    int32_t relative[SWIN_TOKENS * SWIN_TOKENS];
    for (int i = 0; i < SWIN_TOKENS; i++)
        for (int k = 0; k < SWIN_TOKENS; k++)
            relative[i * SWIN_TOKENS + k] = (i / SWIN_SIDE - k / SWIN_SIDE + SWIN_SIDE - 1) * SWIN_STEPS +
                                            i % SWIN_SIDE - k % SWIN_SIDE + SWIN_SIDE - 1;
    gcp_write(plan, gcp_find(plan->tape, "relative"), relative);
    gcp_tensor mask[4];
    int masks = 0;
    while (masks < 4 && !gcp_is_nil(mask[masks] = gcp_find(plan->tape, names[masks]))) masks++;
    gcp_error_clear(plan->tape);                           /* of the last name, which is not there */
    for (int m = 0; m < masks; m++) {
        const int windows = gcp_shape_of(mask[m]).d[0];
        int side = 1;
        while (side * side < windows) side++;
        for (int at = 0; at < windows * SWIN_TOKENS * SWIN_TOKENS; at++)
            values[at] = swin_masked(at / SWIN_TOKENS / SWIN_TOKENS, at / SWIN_TOKENS % SWIN_TOKENS, at % SWIN_TOKENS,
                                     side);
        gcp_write(plan, mask[m], values);
    }
}

/* Radford et al. 2019. The image is the tokens' ids; the table of the tokens also makes the logits. */
static inline network gpt2(gcp_tape *net, int width, int depth, int heads, int batch, int tokens, int words)
{
    gcp_tensor ids = gcp_ids(net, "ids", GCP_SHAPE(batch, tokens)),
               next = gcp_labels(net, "next", GCP_SHAPE(batch, tokens)),
               table = gcp_param(net, "words", GCP_SHAPE(words, width), .std = 0.02), x = GCP_NIL;
    GCP_SEGMENT(net, "words_in") {
        gcp_tensor positions = gcp_param(net, "positions", GCP_SHAPE(1, tokens, width), .std = 0.02);
        x = gcp_add(gcp_reshape(gcp_embedding_op(ids, table), GCP_SHAPE(batch, tokens, width)), positions);
    }
    for (int i = 0; i < depth; i++) x = transformer_block(net, x, heads, 1, 1e-5);
    GCP_SEGMENT(net, "head") x = gcp_linear_op(gcp_layer_norm(x), table, GCP_NIL);
    return network_of(ids, next, x);
}

#endif
