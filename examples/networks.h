/* networks.h - the networks of the examples, the benchmarks and the tests, and what a framework would store for them.

   Each builder records on a tape and returns the loss (tf2_checkpointing, recompute_grad) or the four tensors that
   training needs. The published ones have a twin, NAME_stored, that also notes what a framework stores. */
#ifndef NETWORKS_H
#define NETWORKS_H

#include "networks/network.h"        /* the four tensors */
#include "networks/stored.h"         /* what a framework stores */
#include "networks/plain.h"          /* one layer after another: tf2_checkpointing, recompute_grad, VGG, ... */
#include "networks/residual.h"       /* ResNet, ResNet v2, those for CIFAR-10 */
#include "networks/dense.h"          /* MobileNet, DenseNet */
#include "networks/mobile.h"         /* MobileNetV2 and V3, EfficientNet and its V2, ShuffleNetV2, GhostNet */
#include "networks/modern.h"         /* RegNetY, ConvNeXt, MLP-Mixer */
#include "networks/transformer.h"    /* ViT, DeiT, Swin, GPT-2 */
#include "networks/inception.h"      /* Inception */
#include "networks/unet.h"           /* U-Net */
#include "networks/lstm.h"           /* an unrolled LSTM language model */
#include "networks/pde.h"            /* time steps of a simulation */

/* ---- By name ----------------------------------------------------------------------------------------------------
   With 1000 classes and the image size of the paper (U-Net: 2 and 256; those for CIFAR, 10 and 32). The image of lstm,
   gpt2 and pde is a number of steps: 256 channels and 96 letters; 50257 words; 4096 points. */

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
    return densenet(net, 121, batch, image, 1000);
}
static inline network named_densenet161(gcp_tape *net, int batch, int image)
{
    return densenet(net, 161, batch, image, 1000);
}
static inline network named_densenet_bc(gcp_tape *net, int batch, int image)
{
    return densenet_bc(net, 100, 12, batch, image, 10);
}
static inline network named_inception_v3(gcp_tape *net, int batch, int image)
{
    return inception_v3(net, batch, image, 1000);
}
static inline network named_inception_v4(gcp_tape *net, int batch, int image)
{
    return inception_v4(net, 1, 1, batch, image, 1000);
}
static inline network named_resnet122(gcp_tape *net, int batch, int image)
{
    return cifar_resnet_v2(net, 122, batch, image, 10);
}
static inline network named_resnet1000(gcp_tape *net, int batch, int image)
{
    return resnet_deep(net, 166, batch, image, 10);
}
static inline network named_mobilenet_v2(gcp_tape *net, int batch, int image)
{
    return mobilenet_v2(net, batch, image, 1000);
}
static inline network named_mobilenet_v3_small(gcp_tape *net, int batch, int image)
{
    return mobilenet_v3(net, 0, batch, image, 1000);
}
static inline network named_mobilenet_v3_large(gcp_tape *net, int batch, int image)
{
    return mobilenet_v3(net, 1, batch, image, 1000);
}
static inline network named_efficientnet_b0(gcp_tape *net, int batch, int image)
{
    return efficientnet_b0(net, batch, image, 1000);
}
static inline network named_efficientnet_v2_s(gcp_tape *net, int batch, int image)
{
    return efficientnet_v2_s(net, batch, image, 1000);
}
static inline network named_shufflenet_v2(gcp_tape *net, int batch, int image)
{
    return shufflenet_v2(net, batch, image, 1000);
}
static inline network named_ghostnet(gcp_tape *net, int batch, int image) { return ghostnet(net, batch, image, 1000); }
static inline network named_regnet_y(gcp_tape *net, int batch, int image) { return regnet_y(net, batch, image, 1000); }
static inline network named_convnext_t(gcp_tape *net, int batch, int image)
{
    return convnext_t(net, batch, image, 1000);
}
static inline network named_mlp_mixer_s(gcp_tape *net, int batch, int image)
{
    return mlp_mixer(net, 512, 8, batch, image, 1000);
}
static inline network named_vit_tiny(gcp_tape *net, int batch, int image)
{
    return vit(net, 192, 12, 3, batch, image, 1000);
}
static inline network named_vit_small(gcp_tape *net, int batch, int image)
{
    return vit(net, 384, 12, 6, batch, image, 1000);
}
static inline network named_swin_t(gcp_tape *net, int batch, int image) { return swin_t(net, batch, image, 1000); }
static inline network named_gpt2(gcp_tape *net, int batch, int tokens)
{
    return gpt2(net, 768, 12, 12, batch, tokens, 50257);
}
static inline network named_lstm(gcp_tape *net, int batch, int steps) { return lstm(net, batch, steps, 256, 96); }
static inline network named_pde(gcp_tape *net, int batch, int steps) { return pde(net, batch, 4096, steps); }

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
                                              { "densenet161", 768, 32, 224, named_densenet161 },
                                              { "densenet_bc", 512, 64, 32, named_densenet_bc },
                                              { "inception_v3", 512, 32, 299, named_inception_v3 },
                                              { "inception_v4", 704, 32, 299, named_inception_v4 },
                                              { "resnet122", 576, 128, 32, named_resnet122 },
                                              { "resnet1000", 4608, 32, 32, named_resnet1000 },
                                              { "mobilenet_v2", 256, 32, 224, named_mobilenet_v2 },
                                              { "mobilenet_v3_small", 256, 32, 224, named_mobilenet_v3_small },
                                              { "mobilenet_v3_large", 320, 32, 224, named_mobilenet_v3_large },
                                              { "efficientnet_b0", 512, 32, 224, named_efficientnet_b0 },
                                              { "efficientnet_v2_s", 1024, 16, 224, named_efficientnet_v2_s },
                                              { "shufflenet_v2", 512, 32, 224, named_shufflenet_v2 },
                                              { "ghostnet", 512, 32, 224, named_ghostnet },
                                              { "regnet_y", 512, 32, 224, named_regnet_y },
                                              { "convnext_t", 512, 16, 224, named_convnext_t },
                                              { "mlp_mixer_s", 256, 16, 224, named_mlp_mixer_s },
                                              { "vit_tiny", 256, 32, 224, named_vit_tiny },
                                              { "vit_small", 256, 32, 224, named_vit_small },
                                              { "swin_t", 640, 8, 224, named_swin_t },
                                              { "gpt2", 256, 1, 512, named_gpt2 },
                                              { "lstm", 4616, 32, 256, named_lstm },
                                              { "pde", 1032, 1, 1024, named_pde } };
enum { NETWORK_NAMES = sizeof network_names / sizeof *network_names };
#endif
