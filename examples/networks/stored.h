/* What a framework stores. Frameworks keep, as whole float tensors, what backward reads: inputs of convolutions, dense
   layers and batch-norms, outputs of ReLUs, inputs and outputs of max-pools, and the padded copies of those that pad by
   an op of their own. A builder that is given a list notes each such tensor once, with the layer that makes it. gcp
   itself stores less (bits, indices, views), so that this is the figure to compare with. */
#ifndef NETWORKS_STORED_H
#define NETWORKS_STORED_H

#include "gcp.h"

enum { STORED_MAX = 2048 };

typedef struct stored {
    gcp_tensor tensor[STORED_MAX];
    size_t bytes[STORED_MAX];
    int layer[STORED_MAX];              /* the tensor is made by this layer, from 0; -1: the network's input */
    int count, layers;
} stored;

/* Returns x, so that a call can stand inside another. */
static inline gcp_tensor stored_note(stored *s, gcp_tensor x)
{
    if (!s || s->count == STORED_MAX) return x;
    for (int i = 0; i < s->count; i++) if (s->tensor[i].id == x.id) return x;
    s->layer[s->count] = s->layers;
    s->bytes[s->count] = 4 * gcp_elements(x);
    s->tensor[s->count++] = x;
    return x;
}

/* x with pad zeros around it, a tensor of its own there and none here. */
static inline void stored_padded(stored *s, gcp_tensor x, int pad)
{
    gcp_shape d = gcp_shape_of(x);
    if (!s || s->count == STORED_MAX) return;
    s->layer[s->count] = s->layers;
    s->bytes[s->count] = (size_t)4 * (size_t)d.d[0] * (size_t)(d.d[1] + 2 * pad) * (size_t)(d.d[2] + 2 * pad) *
                         (size_t)d.d[3];
    s->tensor[s->count++] = GCP_NIL;
}

static inline void stored_input(stored *s, gcp_tensor x)
{
    if (!s) return;
    stored_note(s, x);
    s->layer[s->count - 1] = -1;
}

static inline void stored_next_layer(stored *s) { if (s) s->layers++; }

/* Bytes of the noted tensors of the layers from first up to, not including, end. */
static inline size_t stored_between(const stored *s, int first, int end)
{
    size_t bytes = 0;
    for (int i = 0; i < s->count; i++) if (s->layer[i] >= first && s->layer[i] < end) bytes += s->bytes[i];
    return bytes;
}

/* What plain training stores. */
static inline size_t framework_bytes(const stored *s) { return stored_between(s, -1, s->layers); }

/* The layer that the index rule of tf2_gradient_checkpointing takes for checkpoint i of k: evenly spaced between two
   ends, each rounded down before the spacing is. */
static inline int checkpoint_layer(int layers, int k, int i)
{
    int offset = (layers - 1) / k, first = offset / 2, last = (2 * (layers - 1) - offset) / 2;
    return k == 1 ? first : first + i * (last - first) / (k - 1);
}

/* The most that k checkpoints hold at once: their outputs, the network's input and, unless each layer is replayed on
   its own, the inside of the largest segment. For networks whose layers note one tensor each: not the residual ones. */
static inline size_t framework_checkpoint_bytes(const stored *s, int k, int replay)
{
    size_t kept = stored_between(s, -1, 0), inside = 0;
    int start = 0;
    for (int i = 0; i <= k; i++) {
        int end = i < k ? checkpoint_layer(s->layers, k, i) : s->layers;
        size_t bytes = stored_between(s, start, end);
        int maker = end;
        /* a view: its bytes are an earlier layer's */
        while (maker > 0 && i < k && !stored_between(s, maker, maker + 1)) maker--;
        if (i < k) kept += stored_between(s, maker, maker + 1);
        if (bytes > inside) inside = bytes;
        start = end + 1;
    }
    return replay ? kept : kept + inside;
}

/* Layers that it runs again: replay starts from the nearest checkpoint for every layer; else each segment but the last
   runs once more. */
static inline int framework_reruns(const stored *s, int k, int replay)
{
    int runs = 0, start = 0;
    for (int i = 0; i <= k; i++) {
        int end = i < k ? checkpoint_layer(s->layers, k, i) + 1 : s->layers, length = end - start;
        if (replay) runs += length * (length + 1) / 2;
        else if (i < k) runs += length;
        start = end;
    }
    return runs;
}

#endif
