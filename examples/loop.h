/* loop.h - what the programs that train share: memory for a network, one epoch, accuracy, a hash of the weights. */
#ifndef LOOP_H
#define LOOP_H

#include <stdio.h>
#include <stdlib.h>

#include "clock.h"
#include "data.h"
#include "device.h"
#include "networks.h"

static inline int by_size(const void *a, const void *b)         /* for qsort, of double */
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* A training plan and an inference plan over one block of memory, and a batch on its way in. */
typedef struct loop {
    gcp_tape *net;
    network ends;
    gcp_plan train, infer;
    const gcp_target *target;           /* that the plans were made for; NULL: the CPU */
    void *memory;
    size_t size, measured;              /* measured: bytes that a step touched, 0 before loop_measure */
    int batch, classes;
    float *images, *logits;
    int32_t *labels;
    int *order;
    augment change;                     /* of training images */
    double lr;
} loop;

static inline int loop_free(loop *l)
{
    device_give(l->target, l->memory, l->size);
    free(l->images); free(l->logits); free(l->labels); free(l->order);
    l->memory = NULL; l->images = l->logits = NULL; l->labels = NULL; l->order = NULL;
    return 0;
}

/* l->net, .ends, .train, .infer, .batch are set: takes the memory that both plans share, no more. 0: an error. */
static inline int loop_start(loop *l, const gcp_dataset *d)
{
    size_t image = (size_t)(d->height * d->width * d->channels), batch = (size_t)l->batch;
    if (gcp_error(l->net)) return 0;
    l->classes = d->classes;
    l->size = gcp_plans_room(&l->train, &l->infer);
    l->memory = device_take(l->target, l->size);
    l->images = malloc(batch * image * sizeof(float));
    l->logits = malloc(batch * (size_t)d->classes * sizeof(float));
    l->labels = malloc(batch * sizeof(int32_t));
    l->order = malloc((size_t)d->count * sizeof(int));
    if (!l->memory || !l->images || !l->logits || !l->labels || !l->order) return loop_free(l);
    if (gcp_bind(&l->train, l->memory, l->size) == GCP_OK && gcp_bind(&l->infer, l->memory, l->size) == GCP_OK)
        return 1;
    return loop_free(l);
}

/* Batches in an epoch; the last may not be full. */
static inline int loop_batches(const loop *l, const gcp_dataset *d) { return (d->count + l->batch - 1) / l->batch; }

/* The order of an epoch's images, and the key of their changes. */
static inline void loop_shuffle(loop *l, const gcp_dataset *d, int epoch)
{
    l->change.key = (uint64_t)epoch;
    data_shuffle(l->order, d->count, (uint64_t)epoch);
}
/* Trains on batch i of the epoch. Returns the sum of the images' losses; adds to *seconds. */
static inline double loop_step(loop *l, const gcp_dataset *d, int i, double *seconds)
{
    const int first = i * l->batch, images = d->count - first < l->batch ? d->count - first : l->batch;
    data_batch(d, l->order, first, l->batch, l->change, l->images, l->labels);
    double start = seconds_now();
    gcp_write_some(&l->train, l->ends.image, l->images, images);
    gcp_write_some(&l->train, l->ends.labels, l->labels, images);
    double loss = gcp_step(&l->train, .lr = l->lr);
    *seconds += seconds_now() - start;
    return loss * images;
}

/* A whole epoch. Returns the mean loss; *ms a step. */
static inline double loop_epoch(loop *l, const gcp_dataset *d, int epoch, double *ms)
{
    const int batches = loop_batches(l, d);
    double loss = 0, seconds = 0;
    loop_shuffle(l, d, epoch);
    for (int i = 0; i < batches; i++) loss += loop_step(l, d, i, &seconds);
    *ms = 1e3 * seconds / batches;
    return loss / d->count;
}

/* The share of a set that is classified rightly, in percent. */
static inline double loop_accuracy(loop *l, const gcp_dataset *d)
{
    const augment none = { 0, 0, 0 };
    int right = 0;
    for (int first = 0; first < d->count; first += l->batch) {
        data_batch(d, NULL, first, l->batch, none, l->images, l->labels);
        gcp_write(&l->infer, l->ends.image, l->images);
        gcp_forward(&l->infer);
        if (gcp_read(&l->infer, l->ends.logits, l->logits)) return 0;
        for (int i = 0; i < l->batch; i++)
            right += data_best(l->logits + i * l->classes, l->classes) == l->labels[i];
    }
    return 100.0 * right / d->count;
}

/* The bytes that a step really touches, found in memory of its own. */
static inline size_t loop_measure(loop *l)
{
    size_t size = l->train.room + 256;
    void *memory = device_take(l->target, size);
    if (memory) l->measured = gcp_measure(&l->train, memory, size);
    device_give(l->target, memory, size);
    return l->measured;
}

/* FNV-1a over every weight. */
static inline uint64_t weights_hash(gcp_plan *plan)
{
    uint64_t hash = HASH_BEGIN;
    for (int i = 0;; i++) {
        gcp_tensor w = gcp_nth_parameter(plan->tape, i);
        if (gcp_is_nil(w)) return hash;
        size_t bytes = gcp_elements(w) * sizeof(gcp_real);
        gcp_real *values = malloc(bytes);
        if (values && gcp_read(plan, w, values) == GCP_OK) hash = hash_bytes(hash, values, bytes);
        free(values);
    }
}
#endif
