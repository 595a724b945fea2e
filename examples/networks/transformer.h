/* Transformers: vision ones that cut an image into patches (ViT, DeiT), and language models (GPT-2). */
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
