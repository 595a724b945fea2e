/* What training needs of a network. */
#ifndef NETWORKS_NETWORK_H
#define NETWORKS_NETWORK_H

#include "gcp.h"

typedef struct network { gcp_tensor image, labels, logits, loss; } network;

static inline network network_of(gcp_tensor image, gcp_tensor labels, gcp_tensor logits)
{
    network n = { image, labels, logits, gcp_cross_entropy(logits, labels) };
    return n;
}

#endif
