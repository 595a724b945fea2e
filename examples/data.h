/* data.h - labelled images from files: IDX (MNIST and its relatives, the digits in examples/data) and CIFAR-10.

   Files are not trusted. A header is believed only where the file's size agrees with it, before anything is allocated;
   whatever is wrong becomes one line: file, offset, what was found, what was expected. */
#ifndef DATA_H
#define DATA_H

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DATA_ERROR = 512, DATA_MAX_SIDE = 4096, CIFAR_SIDE = 32, CIFAR_RECORD = 1 + 3 * CIFAR_SIDE * CIFAR_SIDE };

typedef struct dataset {
    unsigned char *pixels;              /* count x height x width x channels */
    unsigned char *labels;              /* 0 to classes - 1 */
    int count, height, width, channels, classes;
    float scale;                        /* a pixel times this is a network's input, 0 to 1 */
} dataset;

#if defined(__GNUC__)
__attribute__((format(printf, 2, 3)))
#endif
static inline int data_fail(char *error, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(error, DATA_ERROR, format, args);
    va_end(args);
    return 0;
}

static inline void data_free(dataset *d)
{
    free(d->pixels);
    free(d->labels);
    memset(d, 0, sizeof *d);
}

/* A file of known size, open for reading; NULL with a message. A directory opens, too, but has no byte to read. */
static inline FILE *data_open(const char *path, long *size, char *error)
{
    FILE *f = fopen(path, "rb");
    if (!f) { data_fail(error, "%s: cannot be opened", path); return NULL; }
    if (!fseek(f, 0, SEEK_END) && (*size = ftell(f)) >= 0 && !fseek(f, 0, SEEK_SET)) return f;
    data_fail(error, "%s: its size cannot be found: not a plain file", path);
    fclose(f);
    return NULL;
}

/* bytes of the file from here into fresh memory; the caller has checked them against the file's size. */
static inline unsigned char *data_take(FILE *f, const char *path, size_t bytes, char *error)
{
    unsigned char *p = malloc(bytes ? bytes : 1);
    long at = ftell(f);
    size_t got = p ? fread(p, 1, bytes, f) : 0;
    if (p && got == bytes) return p;
    if (!p) data_fail(error, "%s: %zu bytes of memory cannot be had", path, bytes);
    else data_fail(error, "%s: offset %ld: reading failed after %zu bytes, %zu expected", path, at, got, bytes);
    free(p);
    return NULL;
}

/* ---- IDX: big-endian words: 0x0800 + dimensions, then one size a dimension, then bytes -------------------------*/

static inline uint32_t data_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* What a first word is, for people who mixed up their arguments. */
static inline const char *idx_kind(uint32_t magic)
{
    return magic == 0x803          ? "IDX images"
           : magic == 0x801        ? "IDX labels"
           : magic >> 16 == 0x1f8b ? "a gzip file: unpack it first"
                                   : "no IDX file of bytes";
}

/* Reads the header into size[]; the bytes that must follow go to *body. */
static inline int idx_header(FILE *f, const char *path, int dimensions, uint32_t *size, uint64_t *body, char *error)
{
    unsigned char head[16];
    size_t want = 4 + 4 * (size_t)dimensions, got = fread(head, 1, want, f);
    uint32_t expected = 0x800u + (uint32_t)dimensions, magic = got < 4 ? 0 : data_word(head);
    if (got >= 4 && magic != expected)
        return data_fail(error, "%s: offset 0: found 0x%08x (%s), expected 0x%08x (%s)", path,
                         (unsigned)magic, idx_kind(magic), (unsigned)expected, idx_kind(expected));
    if (got < want)
        return data_fail(error, "%s: offset 0: found %zu bytes, expected a header of %zu (%s)", path, got, want,
                         idx_kind(expected));
    *body = 1;
    for (int i = 0; i < dimensions; i++) {
        uint32_t most = i ? DATA_MAX_SIDE : INT32_MAX;
        size[i] = data_word(head + 4 + 4 * i);
        if (size[i] < 1 || size[i] > most)
            return data_fail(error, "%s: offset %d: found %s %lu, expected 1 to %lu", path, 4 + 4 * i,
                             i == 0   ? "a count of"
                             : i == 1 ? "a height of"
                                      : "a width of",
                             (unsigned long)size[i], (unsigned long)most);
        *body *= size[i];
    }
    return 1;
}

/* A whole IDX file: its body, checked to fill the file exactly. */
static inline unsigned char *idx_read(const char *path, int dimensions, uint32_t *size, char *error)
{
    uint64_t body = 0, head = 4 + 4 * (uint64_t)dimensions;
    unsigned char *p = NULL;
    long bytes = 0;
    FILE *f = data_open(path, &bytes, error);
    if (!f) return NULL;
    if (!idx_header(f, path, dimensions, size, &body, error)) { fclose(f); return NULL; }
    unsigned long long found = (unsigned long long)bytes, expected = head + body;
    if (found < expected)
        data_fail(error,
                  "%s: offset %llu: found the end of a truncated file of %llu bytes, expected %llu as its header says",
                  path, found, found, expected);
    else if (found > expected)
        data_fail(error, "%s: offset %llu: found more data in a file of %llu bytes, expected %llu as its header says",
                  path, expected, found, expected);
    else p = data_take(f, path, (size_t)body, error);
    fclose(f);
    return p;
}

static inline int labels_check(const unsigned char *labels, int count, int classes, const char *path, long first,
                               long step, char *error)
{
    for (int i = 0; i < count; i++)
        if (labels[i] >= classes)
            return data_fail(error, "%s: offset %ld: found label %d, expected 0 to %d", path, first + step * i,
                             labels[i], classes - 1);
    return 1;
}

/* Grey images and their labels. brightest: the pixel value that becomes 1. Returns 1, or 0 with a message in error,
   which has DATA_ERROR bytes. */
static inline int data_idx(dataset *d, const char *images, const char *labels, int classes, int brightest, char *error)
{
    uint32_t size[3] = { 0, 0, 0 }, count = 0;
    memset(d, 0, sizeof *d);
    d->pixels = idx_read(images, 3, size, error);
    d->labels = d->pixels ? idx_read(labels, 1, &count, error) : NULL;
    int good = d->labels != NULL;
    if (good && count != size[0])
        good = data_fail(error, "%s: offset 4: found %lu labels, expected %lu as %s has images", labels,
                         (unsigned long)count, (unsigned long)size[0], images);
    good = good && labels_check(d->labels, (int)count, classes, labels, 8, 1, error);
    if (!good) { data_free(d); return 0; }
    d->count = (int)count; d->height = (int)size[1]; d->width = (int)size[2]; d->channels = 1;
    d->classes = classes;
    d->scale = 1.0f / (float)brightest;
    return 1;
}

/* ---- CIFAR-10: records of a label and three planes, red, green, blue -------------------------------------------*/

static inline void cifar_unpack(dataset *d, int at, const unsigned char *record)
{
    const int plane = CIFAR_SIDE * CIFAR_SIDE;
    unsigned char *pixels = d->pixels + (size_t)at * (CIFAR_RECORD - 1);
    d->labels[at] = record[0];
    for (int p = 0; p < plane; p++)
        for (int c = 0; c < 3; c++) pixels[3 * p + c] = record[1 + c * plane + p];
}

/* Room for more images; on failure what was there stays. */
static inline int cifar_grow(dataset *d, int count)
{
    unsigned char *pixels = realloc(d->pixels, (size_t)count * (CIFAR_RECORD - 1));
    if (pixels) d->pixels = pixels;
    unsigned char *labels = pixels ? realloc(d->labels, (size_t)count) : NULL;
    if (labels) d->labels = labels;
    return pixels && labels;
}

static inline int cifar_records(dataset *d, FILE *f, const char *path, int count, char *error)
{
    unsigned char record[CIFAR_RECORD];
    if (!cifar_grow(d, d->count + count))
        return data_fail(error, "%s: no memory for %d images", path, d->count + count);
    for (int i = 0; i < count; i++) {
        size_t got = fread(record, 1, sizeof record, f);
        if (got != sizeof record)
            return data_fail(error, "%s: offset %ld: reading failed after %zu bytes, %d expected", path,
                             (long)i * CIFAR_RECORD, got, CIFAR_RECORD);
        cifar_unpack(d, d->count + i, record);
    }
    if (!labels_check(d->labels + d->count, count, 10, path, 0, CIFAR_RECORD, error)) return 0;
    d->count += count;
    return 1;
}

static inline int cifar_append(dataset *d, const char *path, char *error)
{
    long bytes = 0;
    FILE *f = data_open(path, &bytes, error);
    if (!f) return 0;
    int good = 1, first = fgetc(f);
    if (first == EOF)
        good = data_fail(error, "%s: offset 0: found no data, expected records of %d bytes", path, CIFAR_RECORD);
    else if (bytes % CIFAR_RECORD)
        good = data_fail(
            error, "%s: offset %ld: found %ld bytes, expected a whole record of %d: truncated, or not a CIFAR-10 file",
            path, bytes - bytes % CIFAR_RECORD, bytes % CIFAR_RECORD, CIFAR_RECORD);
    else if (bytes / CIFAR_RECORD > INT32_MAX / CIFAR_RECORD - d->count)
        good = data_fail(error, "%s: offset 0: found %ld records, expected %d at most in all files", path,
                         bytes / CIFAR_RECORD, INT32_MAX / CIFAR_RECORD);
    else {
        rewind(f);
        good = cifar_records(d, f, path, (int)(bytes / CIFAR_RECORD), error);
    }
    fclose(f);
    return good;
}

/* One or more binary files, one after the other. Returns 1, or 0 with a message in error. */
static inline int data_cifar(dataset *d, char *const *paths, int files, char *error)
{
    memset(d, 0, sizeof *d);
    d->height = d->width = CIFAR_SIDE; d->channels = 3; d->classes = 10;
    d->scale = 1.0f / 255.0f;
    for (int i = 0; i < files; i++)
        if (!cifar_append(d, paths[i], error)) { data_free(d); return 0; }
    return 1;
}

/* ---- Batches ------------------------------------------------------------------------------------------------- */

/* Part of a dataset; it shares the memory of the whole, which alone is freed. */
static inline dataset data_slice(const dataset *d, int first, int count)
{
    dataset part = *d;
    part.pixels += (size_t)first * (size_t)(d->height * d->width * d->channels);
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

/* Puts a dataset in random order for good, so that slices of it are random samples: files are often sorted by
   writer. */
static inline void data_mix(dataset *d, uint64_t key)
{
    size_t size = (size_t)(d->height * d->width * d->channels);
    for (int i = d->count - 1; i > 0; i--) {
        size_t j = (size_t)(data_random(key, (uint64_t)i) % (uint64_t)(i + 1));
        data_swap(d->pixels + (size_t)i * size, d->pixels + j * size, size);
        data_swap(d->labels + i, d->labels + j, 1);
    }
}

/* An image as a network's input, moved by (dy, dx) with zeros coming in, mirrored or not. */
static inline void data_image(const dataset *d, int index, int dy, int dx, int mirror, float *to)
{
    const unsigned char *from = d->pixels + (size_t)index * (size_t)(d->height * d->width * d->channels);
    for (int y = 0; y < d->height; y++)
        for (int x = 0; x < d->width; x++) {
            int v = y + dy, u = (mirror ? d->width - 1 - x : x) + dx,
                inside = v >= 0 && v < d->height && u >= 0 && u < d->width;
            for (int c = 0; c < d->channels; c++)
                *to++ = inside ? d->scale * (float)from[(v * d->width + u) * d->channels + c] : 0.0f;
        }
}

/* Random changes to training images: moved by up to shift pixels each way, mirrored half of the time. */
typedef struct augment { int shift, mirror; uint64_t key; } augment;

static inline void data_image_changed(const dataset *d, int index, augment a, uint64_t counter, float *to)
{
    uint64_t r = data_random(a.key, counter), ways = 2 * (uint64_t)a.shift + 1;
    data_image(d, index, (int)(r % ways) - a.shift, (int)(r / ways % ways) - a.shift, a.mirror && r >> 63, to);
}

/* A batch of the images order[first], ...; order NULL: in file order. Past the end come empty images with the label -1,
   which the loss leaves out. */
static inline void data_batch(const dataset *d, const int *order, int first, int batch, augment a, float *images,
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
#endif
