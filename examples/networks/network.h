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

/* What all rates of dropout are multiplied by: 0 for comparisons with other programs, else 1. */
static inline double *network_drop(void)
{
    static double share = 1;
    return &share;
}
static inline gcp_tensor network_dropout(gcp_tensor x, double rate, int per_sample)
{
    rate *= *network_drop();
    return rate > 0 ? gcp_dropout(x, .rate = rate, .per_sample = per_sample) : x;
}

/* A block of a stage is a segment of its own: stage1[0], stage1[1], ... */
static inline int stage_begin(gcp_tape *net, int stage)
{
    static const char *const labels[] = { "stage0", "stage1", "stage2", "stage3", "stage4",
                                          "stage5", "stage6", "stage7", "stage8", "stage9" };
    gcp_segment_opts o = { .at = GCP_AT };
    return gcp_segment_begin(net, labels[stage], o);
}
static inline void stage_end(gcp_tape *net, int segment)
{
    int done = 2;
    gcp_segment_end(net, segment, &done);
}

#endif
