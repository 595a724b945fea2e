/* data.h - batches of labelled images: slices, random order, random changes. gcp_io.h reads the files. */
#ifndef DATA_H
#define DATA_H

#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "gcp_io.h"

/* The digits of examples/data; .error says what is wrong. */
static inline gcp_dataset data_digits(gcp_arena *arena, const char *folder)
{
    char images[1024], labels[1024];
    snprintf(images, sizeof images, "%s/digits-images.idx3-ubyte", folder);
    snprintf(labels, sizeof labels, "%s/digits-labels.idx1-ubyte", folder);
    gcp_dataset d = gcp_dataset_idx(arena, images, labels, .brightest = 16);
    if (d.count && (d.count < 1501 || d.height != 8 || d.width != 8)) {
        snprintf(d.error, sizeof d.error, "%.300s: found %d images of %dx%d, expected the 1797 digits of 8x8", images,
                 d.count, d.height, d.width);
        d.count = 0;
    }
    return d;
}

/* Part of a set of images; it shares the memory of the whole. */
static inline gcp_dataset data_slice(const gcp_dataset *d, int first, int count)
{
    gcp_dataset part = *d;
    part.images += (size_t)first * (size_t)(d->height * d->width * d->channels);
    part.labels += first;
    part.count = count;
    return part;
}

/* A random number that depends on a key and a counter alone (splitmix64's finaliser), so that data order is the same
   wherever training is taken up again. */
static inline uint64_t data_random(uint64_t key, uint64_t counter)
{
    uint64_t z = key * 0xD1342543DE82EF95u + (counter + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}

/* FNV-1a; begin with HASH_BEGIN. */
#define HASH_BEGIN 0xCBF29CE484222325u
static inline uint64_t hash_bytes(uint64_t hash, const void *data, size_t size)
{
    const unsigned char *p = data;
    for (size_t i = 0; i < size; i++) hash = (hash ^ p[i]) * 0x100000001B3u;
    return hash;
}

/* order: a permutation of 0 to count - 1, another for each epoch. */
static inline void data_shuffle(int *order, int count, uint64_t epoch)
{
    for (int i = 0; i < count; i++) order[i] = i;
    for (int i = count - 1; i > 0; i--) {
        int j = (int)(data_random(epoch, (uint64_t)i) % (uint64_t)(i + 1)), was = order[i];
        order[i] = order[j];
        order[j] = was;
    }
}

static inline void data_swap(unsigned char *a, unsigned char *b, size_t size)
{
    for (size_t i = 0; i < size; i++) {
        unsigned char was = a[i];
        a[i] = b[i];
        b[i] = was;
    }
}

/* Puts a set in random order for good, so that slices of it are random samples: files are often sorted by
   writer. */
static inline void data_mix(gcp_dataset *d, uint64_t key)
{
    size_t size = (size_t)(d->height * d->width * d->channels);
    for (int i = d->count - 1; i > 0; i--) {
        size_t j = (size_t)(data_random(key, (uint64_t)i) % (uint64_t)(i + 1));
        data_swap(d->images + (size_t)i * size, d->images + j * size, size);
        int32_t was = d->labels[i];
        d->labels[i] = d->labels[j];
        d->labels[j] = was;
    }
}

/* An image as a network's input, 0 to 1, moved by (dy, dx) with zeros coming in, mirrored or not. */
static inline void data_image(const gcp_dataset *d, int index, int dy, int dx, int mirror, float *to)
{
    const unsigned char *from = d->images + (size_t)index * (size_t)(d->height * d->width * d->channels);
    const float scale = 1.0f / (float)d->brightest;
    for (int y = 0; y < d->height; y++)
        for (int x = 0; x < d->width; x++) {
            int v = y + dy, u = (mirror ? d->width - 1 - x : x) + dx,
                inside = v >= 0 && v < d->height && u >= 0 && u < d->width;
            for (int c = 0; c < d->channels; c++)
                *to++ = inside ? scale * (float)from[(v * d->width + u) * d->channels + c] : 0.0f;
        }
}

/* Random changes to training images: moved by up to shift pixels each way, mirrored half of the time. */
typedef struct augment { int shift, mirror; uint64_t key; } augment;

static inline void data_image_changed(const gcp_dataset *d, int index, augment a, uint64_t counter, float *to)
{
    uint64_t r = data_random(a.key, counter), ways = 2 * (uint64_t)a.shift + 1;
    data_image(d, index, (int)(r % ways) - a.shift, (int)(r / ways % ways) - a.shift, a.mirror && r >> 63, to);
}

/* A batch of the images order[first], ...; order NULL: in file order. Past the end come empty images with the label -1,
   which the loss leaves out. */
static inline void data_batch(const gcp_dataset *d, const int *order, int first, int batch, augment a, float *images,
                              int32_t *labels)
{
    size_t size = (size_t)(d->height * d->width * d->channels);
    for (int i = 0; i < batch; i++) {
        float *to = images + (size_t)i * size;
        labels[i] = -1;
        if (first + i >= d->count) { memset(to, 0, size * sizeof *to); continue; }
        int index = order ? order[first + i] : first + i;
        labels[i] = d->labels[index];
        data_image_changed(d, index, a, (uint64_t)(first + i), to);
    }
}

/* The place of the largest score. */
static inline int data_best(const float *scores, int count)
{
    int best = 0;
    for (int i = 1; i < count; i++) if (scores[i] > scores[best]) best = i;
    return best;
}
#endif
