/* U-Net: what goes down is joined to what comes up. */
#ifndef NETWORKS_UNET_H
#define NETWORKS_UNET_H

#include "plain.h"

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

#endif
