/* photos.h - photographs of any size, in folders of their classes, as inputs of a network. PPM, PGM and BMP are read
   here; JPEG, PNG and others where EXAMPLE_STB is defined, by stb_image (github.com/nothings/stb). */
#ifndef PHOTOS_H
#define PHOTOS_H

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data.h"
#ifdef EXAMPLE_STB
#define STB_IMAGE_IMPLEMENTATION
#include <stb_image.h>
#endif

/* ---- One photograph --------------------------------------------------------------------------------------------*/

typedef struct photo { unsigned char *pixels; int width, height; } photo;    /* red, green, blue; pixels NULL: none */

static inline photo photo_new(int64_t width, int64_t height)
{
    photo p = { NULL, (int)width, (int)height };
    if (width > 0 && height > 0 && width < 65536 && height < 65536)
        p.pixels = malloc((size_t)width * (size_t)height * 3);
    return p;
}
/* The next number of a PNM's head, behind blanks and comments; -1: none. */
static inline int photo_number(const unsigned char **at, const unsigned char *end)
{
    int n = -1;
    while (*at < end && (isspace(**at) || **at == '#'))
        if (*(*at)++ == '#') while (*at < end && **at != '\n') ++*at;
    for (; *at < end && isdigit(**at) && n < 1000000; ++*at) n = 10 * (n < 0 ? 0 : n) + **at - '0';
    return n;
}
static inline photo photo_pnm(const unsigned char *data, size_t size)
{
    const unsigned char *at = data + 2, *end = data + size;
    const int width = photo_number(&at, end), height = photo_number(&at, end), white = photo_number(&at, end),
              channels = data[1] == '6' ? 3 : 1;
    photo p = photo_new(width, height);
    const size_t count = p.pixels ? (size_t)width * (size_t)height * (size_t)channels : 0;
    if (!count || white < 1 || white > 255 || at == end || (size_t)(end - ++at) < count) {
        free(p.pixels);
        return (photo){ NULL, 0, 0 };
    }
    for (size_t i = 0; i < (size_t)width * (size_t)height * 3; i++)
        p.pixels[i] = (unsigned char)(at[channels == 3 ? i : i / 3] * 255 / white);
    return p;
}
static inline uint32_t photo_word(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}
/* Uncompressed, of 24 or 32 bits, rows from the bottom or (height below 0) from the top. */
static inline photo photo_bmp(const unsigned char *data, size_t size)
{
    const photo none = { NULL, 0, 0 };
    if (size < 54 || photo_word(data + 30)) return none;
    const int64_t width = (int32_t)photo_word(data + 18), height = (int32_t)photo_word(data + 22),
                  bytes = data[28] / 8;
    const size_t from = photo_word(data + 10), row = (size_t)(width * bytes + 3) / 4 * 4;
    photo p = photo_new(width, height < 0 ? -height : height);
    if (!p.pixels || (bytes != 3 && bytes != 4) || from > size || (size - from) / row < (size_t)p.height) {
        free(p.pixels);
        return none;
    }
    for (int y = 0; y < p.height; y++) {
        const unsigned char *at = data + from + row * (size_t)(height < 0 ? y : p.height - 1 - y);
        for (int x = 0; x < p.width; x++, at += bytes)
            for (int c = 0; c < 3; c++) p.pixels[(y * p.width + x) * 3 + c] = at[2 - c];
    }
    return p;
}
static inline photo photo_decode(const unsigned char *data, size_t size)
{
    photo p = { NULL, 0, 0 };
    if (size > 2 && data[0] == 'P' && (data[1] == '5' || data[1] == '6')) p = photo_pnm(data, size);
    else if (size > 2 && data[0] == 'B' && data[1] == 'M' && size > 30 && data[28] >= 24) p = photo_bmp(data, size);
#ifdef EXAMPLE_STB
    else if (size < INT32_MAX)
        p.pixels = stbi_load_from_memory(data, (int)size, &p.width, &p.height, &(int){ 0 }, 3);
#endif
    return p;
}
static inline photo photo_read(const char *path)
{
    photo p = { NULL, 0, 0 };
    FILE *f = fopen(path, "rb");
    if (!f) return p;
    const long size = fseek(f, 0, SEEK_END) ? -1 : ftell(f);
    unsigned char *data = size > 0 ? malloc((size_t)size) : NULL;
    rewind(f);
    if (data && fread(data, 1, (size_t)size, f) == (size_t)size) p = photo_decode(data, (size_t)size);
    free(data);
    fclose(f);
    return p;
}

/* ---- As a network sees it --------------------------------------------------------------------------------------*/

/* A square of a photograph, in its pixels. */
typedef struct crop { double x, y, side; int mirror; } crop;
/* What a network was trained with: its image's size; (value / 255 - mean) / std for each channel. */
typedef struct view { int height, width, channels; double mean[3], std[3]; } view;

/* Weights of the pixels that one output pixel is made of: a triangle, as wide as an output pixel where the image
   shrinks, as PIL's and torchvision's antialiased bilinear resize. Returns how many, from *first on. */
static inline int photo_taps(double centre, double step, int limit, int *first, double *weight)
{
    const double reach = step > 1 ? step : 1;
    int low = (int)floor(centre - reach + 0.5), high = (int)floor(centre + reach + 0.5);
    double sum = 0;
    low = low < 0 ? 0 : low >= limit ? limit - 1 : low;
    high = high > limit ? limit : high <= low ? low + 1 : high;
    for (int i = low; i < high; i++) {
        const double far = fabs(i + 0.5 - centre) / reach;
        sum += weight[i - low] = far < 1 ? 1 - far : 0;
    }
    if (sum <= 0) sum = weight[0] = 1;
    for (int i = low; i < high; i++) weight[i - low] /= sum;
    *first = low;
    return high - low;
}
/* The rows that the crop reaches become narrow, the crop's width of three floats each. */
static inline void photo_across(const photo *p, crop c, int low, int high, int width, float *narrow, double *weight)
{
    const double step = c.side / width;
    for (int x = 0, first; x < width; x++) {
        const int taps = photo_taps(c.x + (x + 0.5) * step, step, p->width, &first, weight);
        for (int y = low; y < high; y++) {
            const unsigned char *at = p->pixels + ((size_t)y * (size_t)p->width + (size_t)first) * 3;
            double sum[3] = { 0, 0, 0 };
            for (int i = 0; i < 3 * taps; i++) sum[i % 3] += weight[i / 3] * at[i];
            float *to = narrow + ((size_t)(y - low) * (size_t)width + (size_t)x) * 3;
            for (int k = 0; k < 3; k++) to[k] = (float)sum[k];
        }
    }
}
static inline void photo_down(const photo *p, crop c, int low, int height, int width, const float *narrow,
                              double *weight, float *to)
{
    const double step = c.side / height;
    for (int y = 0, first; y < height; y++) {
        const int taps = photo_taps(c.y + (y + 0.5) * step, step, p->height, &first, weight);
        for (int x = 0; x < width; x++)
            for (int k = 0; k < 3; k++) {
                const float *at = narrow + ((size_t)(first - low) * (size_t)width + (size_t)x) * 3 + k;
                double sum = 0;
                for (int i = 0; i < taps; i++) sum += weight[i] * (double)at[(size_t)i * (size_t)width * 3];
                to[(y * width + (c.mirror ? width - 1 - x : x)) * 3 + k] = (float)sum;
            }
    }
}
/* The crop as height x width pixels of three floats, 0 to 255. 0: out of memory. */
static inline int photo_resize(const photo *p, crop c, int height, int width, float *to)
{
    const double least = height < width ? height : width, reach = c.side / least + 2;
    const int low = c.y > reach ? (int)(c.y - reach) : 0,
              high = c.y + c.side + reach < p->height ? (int)(c.y + c.side + reach) : p->height;
    double *weight = malloc((size_t)(2 * reach + 4) * sizeof *weight);
    float *narrow = malloc((size_t)(high - low) * (size_t)width * 3 * sizeof *narrow);
    const int good = weight && narrow;
    if (good) photo_across(p, c, low, high, width, narrow, weight);
    if (good) photo_down(p, c, low, height, width, narrow, weight, to);
    free(weight);
    free(narrow);
    return good;
}
/* height x width x channels numbers, for the network. Grey is the mean of the three. */
static inline int photo_view(const photo *p, crop c, const view *v, float *to)
{
    const int count = v->height * v->width;
    float *colours = malloc((size_t)count * 3 * sizeof *colours);
    const int good = colours && photo_resize(p, c, v->height, v->width, colours);
    for (int i = 0; i < count && good; i++)
        for (int k = 0; k < v->channels; k++) {
            const float *at = colours + 3 * i;
            const double value = v->channels == 3 ? (double)at[k] : ((double)at[0] + (double)at[1] + (double)at[2]) / 3;
            *to++ = (float)((value / 255 - v->mean[k]) / v->std[k]);
        }
    free(colours);
    return good;
}
/* The middle: seven eighths of the shorter side, 224 of 256 as most networks are tested. */
static inline crop crop_middle(const photo *p)
{
    const int shorter = p->width < p->height ? p->width : p->height;
    const double side = 0.875 * shorter;
    return (crop){ (p->width - side) / 2, (p->height - side) / 2, side, 0 };
}
/* Anywhere, from 0.6 of the shorter side to all of it, mirrored half of the time; the same for the same key and
   number. */
static inline crop crop_anywhere(const photo *p, uint64_t key, uint64_t number)
{
    const int shorter = p->width < p->height ? p->width : p->height;
    double r[3];
    for (int i = 0; i < 3; i++)
        r[i] = (double)(data_random(key, number * 4 + (uint64_t)i) >> 11) / 9007199254740992.0;
    const double side = (0.6 + 0.4 * r[0]) * shorter;
    return (crop){ r[1] * (p->width - side), r[2] * (p->height - side), side,
                   (int)(data_random(key, number * 4 + 3) >> 63) };
}

/* ---- A folder of classes ---------------------------------------------------------------------------------------*/

typedef struct names { char **name; int count, room; } names;

static inline void names_add(void *list, const char *name)
{
    names *n = list;
    if (n->count == n->room) {
        char **more = realloc(n->name, (size_t)(n->room = 2 * n->room + 64) * sizeof *more);
        if (!more) exit(1);
        n->name = more;
    }
    n->name[n->count] = malloc(strlen(name) + 1);
    if (!n->name[n->count]) exit(1);
    strcpy(n->name[n->count++], name);
}
static inline void names_found(void *list, const char *name)     /* in a folder: hidden ones are passed over */
{
    if (*name != '.') names_add(list, name);
}
static inline int names_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }
/* What is in a folder, by name. 0: it is none. */
static inline int names_of(const char *folder, names *list)
{
    const gcp_files *files = gcp_stdio();
    memset(list, 0, sizeof *list);
    if (files->list(files->context, folder, names_found, list) < 0) return 0;
    if (list->count) qsort(list->name, (size_t)list->count, sizeof *list->name, names_order);
    return 1;
}
static inline void names_free(names *n)
{
    for (int i = 0; i < n->count; i++) free(n->name[i]);
    free(n->name);
    memset(n, 0, sizeof *n);
}

/* Photographs by class and name; label[i] is the class of path.name[i]. */
typedef struct photos { names classes, path; int32_t *label; int passed_over; } photos;

static inline void photos_free(photos *s)
{
    names_free(&s->classes);
    names_free(&s->path);
    free(s->label);
    s->label = NULL;
}
static inline int photo_known(const char *name)
{
    static const char *const ends[] = { ".ppm", ".pgm", ".pnm", ".bmp",
#ifdef EXAMPLE_STB
                                        ".jpg", ".jpeg", ".png", ".gif", ".tga",
#endif
                                        NULL };
    const char *dot = strrchr(name, '.');
    for (int i = 0; dot && ends[i]; i++) {
        size_t k = 0;
        while (ends[i][k] && tolower((unsigned char)dot[k]) == ends[i][k]) k++;
        if (!ends[i][k] && !dot[k]) return 1;
    }
    return 0;
}
static inline void photos_class(photos *s, const char *folder, const names *files)
{
    char path[4096];
    for (int i = 0; i < files->count; i++)
        if (!photo_known(files->name[i])) s->passed_over++;
        else if (snprintf(path, sizeof path, "%s/%s", folder, files->name[i]) < (int)sizeof path) {
            names_add(&s->path, path);
            int32_t *more = realloc(s->label, (size_t)s->path.room * sizeof *more);
            if (!more) exit(1);
            s->label = more;
            s->label[s->path.count - 1] = s->classes.count - 1;
        }
}
/* What cannot be read is passed over; each is said. */
static inline void photos_check(photos *s)
{
    int kept = 0;
    for (int i = 0; i < s->path.count; i++) {
        photo p = photo_read(s->path.name[i]);
        if (p.pixels) {
            char *name = s->path.name[i];
            s->path.name[i] = s->path.name[kept];
            s->path.name[kept] = name;
            s->label[kept++] = s->label[i];
        } else fprintf(stderr, "%s: passed over: no image that can be read\n", s->path.name[i]);
        free(p.pixels);
    }
    while (s->path.count > kept) free(s->path.name[--s->path.count]);
}
/* Each folder inside is a class. 0: there is no such folder, or none inside. */
static inline int photos_find(const char *folder, photos *s)
{
    names inside, files;
    char path[4096];
    memset(s, 0, sizeof *s);
    if (!names_of(folder, &inside)) return 0;
    for (int i = 0; i < inside.count; i++)
        if (snprintf(path, sizeof path, "%s/%s", folder, inside.name[i]) < (int)sizeof path && names_of(path, &files)) {
            names_add(&s->classes, inside.name[i]);
            photos_class(s, path, &files);
            names_free(&files);
        }
    names_free(&inside);
    return s->classes.count > 0;
}
#endif
