/* published.h - the measurements of the five published systems, as they are printed (MB of 10^6 bytes; seconds of a
   step; 0: not given), and the networks they measured. Each counts bytes in its own way: what is known to be wrong with
   one is said in its note. */
#ifndef PUBLISHED_H
#define PUBLISHED_H
#include <stdlib.h>
#include <string.h>
#include "../../examples/networks.h"
#include "strategies.h"

enum { PUBLISHED = 6 };
typedef struct published { const char *system; double megabytes, seconds; } published;

/* record notes what a framework stores. budget: MB that `budget`, `far` and `either` may take; 0: state and gradients
   of weights, and a quarter of what a framework stores. own: strategies of this table alone. */
typedef struct workload {
    const char *table, *name;
    network (*record)(gcp_tape *net, int batch, stored *s);
    int ops, batch;
    double budget;
    const strategy *own; int owned;
    published published[PUBLISHED];
} workload;

/* ---- 000: recompute_sequential for TensorFlow 2 -----------------------------------------------------------------
   Its peaks are resident bytes at the ends of lines, so what backward holds in between is in none of them. */

static inline network cnn_000(gcp_tape *net, int batch, stored *s)
{
    network n = { .logits = GCP_NIL };
    n.loss = tf2_checkpointing_stored(net, 256, batch, &n.image, &n.labels, s);
    return n;
}
static inline network vgg16_000(gcp_tape *net, int batch, stored *s)
{
    return vgg_stored(net, 16, batch, 224, 1000, s);
}

#define REPLAY(k) { "replay " #k, GCP_POLICY_CHECKPOINTS, FAR_NEVER, 0, k, 1 }
#define RETAIN(k) { "retain " #k, GCP_POLICY_CHECKPOINTS, FAR_NEVER, 0, k, 0 }
static const strategy own_000[] = { REPLAY(0), REPLAY(2), RETAIN(2), REPLAY(4),  RETAIN(4),
                                    REPLAY(8), RETAIN(8), REPLAY(16), RETAIN(16) };
enum { OWN_VGG = 7 };                    /* whose layers are fewer */

/* ---- 001: checkpoint_sequential of PyTorch ----------------------------------------------------------------------
   The thread's network is not known; its bytes are those of the data set. A chain of 20 convolutions stands for it. */

static inline network chain_001(gcp_tape *net, int batch, stored *s)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, 32, 32, 16)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    for (int i = 0; i < 20; i++) x = conv_relu(net, s, x, 16, 3, GCP_INIT_HE);
    return network_of(image, labels, mean_head(net, s, x, 0, 10));
}
static inline network resnet1001_001(gcp_tape *net, int batch, stored *s)
{
    return resnet_wide_stored(net, 111, batch, 32, 10, s);
}

#define UNIFORM(n) { "segments " #n, GCP_POLICY_UNIFORM, FAR_NEVER, n, 0, 0 }
static const strategy own_001[] = { UNIFORM(1), UNIFORM(2), UNIFORM(5), UNIFORM(6), UNIFORM(10) };

/* ---- 002: gradient-checkpointing, LMS, OME ----------------------------------------------------------------------
   The least over ten steps of the allocator's peak, under Adam, on a card with 7.6 GB to use. */

#define RESNET(depth) \
    static inline network resnet##depth##_002(gcp_tape *net, int batch, stored *s) \
    { \
        return resnet_v2_stored(net, depth, batch, 224, 1001, s); \
    }
RESNET(18)
RESNET(34)
RESNET(50)
RESNET(101)
RESNET(152)
RESNET(200)
static inline network inception_v4_002(gcp_tape *net, int batch, stored *s)
{
    return inception_v4_stored(net, 0, 1, batch, 299, 1001, s);
}

/* ---- 003: recompute_grad of TensorFlow --------------------------------------------------------------------------
   Resident bytes at the ends of lines, as in 000. */

#define PARTITIONS(blocks) \
    static inline network cnn##blocks##_003(gcp_tape *net, int batch, stored *s) \
    { \
        network n = { .logits = GCP_NIL }; \
        n.loss = recompute_grad_stored(net, 3, blocks, 256, batch, &n.image, &n.labels, s); \
        return n; \
    }
PARTITIONS(3)
PARTITIONS(7)
PARTITIONS(9)
PARTITIONS(20)
static const strategy own_003[] = { { "partitions", GCP_POLICY_SEGMENTS, FAR_NEVER, 0, 0, 0 } };

/* ---- 004: memory-efficient DenseNet ------------------------------------------------------------------------------
   Per GPU, as its tool shows it. */

static inline network densenet_bc_004(gcp_tape *net, int batch, stored *s)
{
    return densenet_bc_stored(net, 100, 12, batch, 32, 10, s);
}

/* ---- What people come for -----------------------------------------------------------------------------------------*/

static inline network unet_big(gcp_tape *net, int batch, stored *s) { return unet_stored(net, batch, 512, 512, 2, s); }
static inline network resnet1000_big(gcp_tape *net, int batch, stored *s)
{
    return resnet_deep_stored(net, 166, batch, 32, 10, s);
}
/* A thousand layers, one after the other. */
static inline network chain_big(gcp_tape *net, int batch, stored *s)
{
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(batch, 32, 32, 16)),
               labels = gcp_labels(net, "labels", GCP_SHAPE(batch)), x = image;
    for (int i = 0; i < 1000; i++) x = conv_relu(net, s, x, 16, 3, GCP_INIT_HE);
    return network_of(image, labels, mean_head(net, s, x, 0, 10));
}

#define OWN(list) list, (int)(sizeof list / sizeof *list)
static const workload workloads[] = {
    { "000", "cnn26", cnn_000, 128, 16, 0, OWN(own_000),
      { { "plain", 3425.7, 38.1 }, { "0 checkpoints", 487.6, 138.6 }, { "2 checkpoints", 606.1, 96.6 },
        { "4 checkpoints", 795.9, 75.8 }, { "8 checkpoints", 1341.1, 69.1 }, { "16 checkpoints", 2181.0, 66.4 } } },
    { "000", "vgg16", vgg16_000, 64, 64, 0, own_000, OWN_VGG,
      { { "plain", 4909, 41 }, { "0 checkpoints", 1578, 264 }, { "2 checkpoints", 1658, 165 },
        { "4 checkpoints", 2128, 145 }, { "8 checkpoints", 2495, 137 }, { "16 checkpoints", 4408, 130 } } },
    { "001", "chain20", chain_001, 128, 64, 0, OWN(own_001),
      { { "plain", 0, 109.1 }, { "1 segment", 0, 109.12 }, { "2 segments", 0, 116.2 }, { "5 segments", 0, 116.8 },
        { "10 segments", 0, 119.4 } } },
    { "001", "resnet1001", resnet1001_001, 4352, 8, 0, OWN(own_001),
      { { "4 times 8 images", 0, 2.75 }, { "32 images, 6 segments", 0, 2.46 } } },
    { "002", "resnet18", resnet18_002, 256, 32, 509, NULL, 0,
      { { "plain", 844, .233 }, { "gradient-checkpointing", 514, .191 }, { "LMS", 829, .351 }, { "OME", 509, .197 } } },
    { "002", "resnet34", resnet34_002, 256, 32, 762, NULL, 0,
      { { "plain", 1323, .371 }, { "gradient-checkpointing", 800, .371 }, { "LMS", 1221, .539 },
        { "OME", 762, .383 } } },
    { "002", "resnet50", resnet50_002, 256, 32, 1231, NULL, 0,
      { { "plain", 3016, .538 }, { "gradient-checkpointing", 1382, .573 }, { "LMS", 2764, .940 },
        { "OME", 1231, .600 } } },
    { "002", "resnet101", resnet101_002, 512, 32, 1727, NULL, 0,
      { { "plain", 4671, .934 }, { "gradient-checkpointing", 1957, 1.118 }, { "LMS", 4108, 1.576 },
        { "OME", 1727, 1.139 } } },
    { "002", "resnet152", resnet152_002, 704, 32, 1925, NULL, 0,
      { { "plain", 6577, 1.381 }, { "gradient-checkpointing", 2084, 1.682 }, { "LMS", 5597, 2.290 },
        { "OME", 1925, 1.699 } } },
    { "002", "resnet200", resnet200_002, 1024, 32, 1952, NULL, 0,
      { { "plain (out of memory)", 0, 0 }, { "gradient-checkpointing", 2135, 2.287 }, { "LMS", 7559, 3.087 },
        { "OME", 1952, 2.323 } } },
    { "002", "inception_v4", inception_v4_002, 384, 32, 2528, NULL, 0,
      { { "plain", 4268, 1.975 }, { "gradient-checkpointing", 2528, 2.598 }, { "LMS", 4171, 2.901 },
        { "OME", 2564, 2.722 } } },
    { "002", "resnet18", resnet18_002, 256, 128, 1488, NULL, 0,
      { { "plain", 0, 0 }, { "gradient-checkpointing", 1560, .450 }, { "OME", 1488, .546 } } },
    { "002", "resnet34", resnet34_002, 256, 128, 2250, NULL, 0,
      { { "plain", 0, 0 }, { "gradient-checkpointing", 2304, .857 }, { "OME", 2250, .979 } } },
    { "002", "resnet50", resnet50_002, 256, 128, 3842, NULL, 0,
      { { "plain", 0, 0 }, { "gradient-checkpointing", 4255, 1.540 }, { "OME", 3842, 1.717 } } },
    { "002", "resnet101", resnet101_002, 512, 128, 5102, NULL, 0,
      { { "plain", 0, 0 }, { "gradient-checkpointing", 5740, 2.744 }, { "OME", 5102, 2.927 } } },
    { "002", "resnet152", resnet152_002, 704, 128, 5450, NULL, 0,
      { { "plain", 0, 0 }, { "gradient-checkpointing", 5865, 3.942 }, { "OME", 5450, 4.227 } } },
    { "002", "resnet200", resnet200_002, 1024, 128, 5382, NULL, 0,
      { { "plain", 0, 0 }, { "gradient-checkpointing", 5873, 5.373 }, { "OME", 5382, 5.720 } } },
    { "003", "cnn3x3", cnn3_003, 128, 16, 0, OWN(own_003),
      { { "plain", 5790, 67 }, { "recompute_grad", 858, 75 } } },
    { "003", "cnn3x7", cnn7_003, 256, 16, 0, OWN(own_003), { { "recompute_grad", 0, 5.77 } } },
    { "003", "cnn3x9", cnn9_003, 320, 16, 0, OWN(own_003), { { "plain (out of 16 GB)", 0, 0 } } },
    { "003", "cnn3x20", cnn20_003, 640, 16, 0, OWN(own_003), { { "plain (out of 16 GB)", 0, 0 } } },
    { "004", "densenet_bc", densenet_bc_004, 512, 64, 0, NULL, 0,
      { { "plain", 2860, .165 }, { "efficient_densenet_pytorch", 1610, .207 } } },
    { "004", "densenet_bc", densenet_bc_004, 512, 256, 0, NULL, 0,
      { { "plain", 9930, .42 }, { "torch.utils.checkpoint", 5380, .52 }, { "pytorch-checkpoint", 5370, .50 } } },
    { "004", "densenet_bc", densenet_bc_004, 512, 512, 0, NULL, 0,
      { { "plain", 0, 0 }, { "torch.utils.checkpoint", 10100, 1.00 }, { "pytorch-checkpoint", 10100, .97 } } },
    { "big", "unet512", unet_big, 64, 4, 0, NULL, 0, { { NULL, 0, 0 } } },
    { "big", "chain1000", chain_big, 2064, 16, 152, NULL, 0, { { NULL, 0, 0 } } },
    { "big", "resnet1000", resnet1000_big, 4608, 16, 0, NULL, 0, { { NULL, 0, 0 } } },
    { "big", "cnn3x20", cnn20_003, 640, 16, 4000, NULL, 0, { { NULL, 0, 0 } } },
};
enum { WORKLOADS = sizeof workloads / sizeof *workloads };

/* A card with these rates of FLOPs, memory bytes and bytes over the link, as a target to plan for: copies run beside
   what computes. On this CPU they are made at once. */
static inline void card_copy(void *context, int id, void *to, const void *from, size_t size)
{
    (void)context; (void)id;
    memcpy(to, from, size);
}
static inline void card_wait(void *context, int id) { (void)context; (void)id; }
/* FLOPS,BYTES,LINK: each a second, at least 1; 0: the text is not that. */
static inline int rates_of(const char *text, double rates[3])
{
    char *end = NULL;
    for (int i = 0; i < 3; i++, text = end + (*end == ',')) {
        rates[i] = strtod(text, &end);
        if (end == text || *end != (i < 2 ? ',' : 0) || !(rates[i] >= 1 && rates[i] <= 1e30)) return 0;
    }
    return 1;
}

static inline gcp_target card_of(const double rates[3])
{
    const gcp_target card = { .threads = 2, .direct = 1, .flops_per_second = rates[0], .bytes_per_second = rates[1],
                              .far_bytes_per_second = rates[2], .copy_start = card_copy, .copy_wait = card_wait };
    return card;
}

/* A card that the measurements of 002 can have had: a GTX 1070. */
#define CARD_RATES { 6.5e12, 2.56e11, 1.2e10 }

/* The optimiser that a table's measurements had. */
static inline gcp_plan_opts published_training(const char *table)
{
    gcp_plan_opts o = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD };
    if (!strcmp(table, "002")) o.optimizer = GCP_OPTIMIZER_ADAM;
    if (!strcmp(table, "001") || !strcmp(table, "004") || !strcmp(table, "big")) o.momentum = 0.9;
    if (!strcmp(table, "001") || !strcmp(table, "004")) o.weight_decay = 1e-4;
    o.nesterov = !strcmp(table, "004");
    return o;
}
#endif
