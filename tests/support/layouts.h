/* Layouts in MiniMalloc's format, a line a buffer: id,lower,upper,size; it lives from lower to before upper. For
   programs that include gcp's implementation. */
#ifndef LAYOUTS_H
#define LAYOUTS_H
#include <stdio.h>
#include <stdlib.h>

enum { LAYOUT_MOST = 4096 };
typedef struct layout { int count; long long lower[LAYOUT_MOST], upper[LAYOUT_MOST]; size_t size[LAYOUT_MOST]; } layout;

static inline int layout_read(layout *y, const char *path)          /* 0: it cannot be read */
{
    FILE *f = fopen(path, "r");
    char line[256];
    y->count = 0;
    while (f && y->count < LAYOUT_MOST && fgets(line, sizeof line, f)) {
        const int n = y->count;
        if (sscanf(line, "%*[^,],%lld,%lld,%zu", &y->lower[n], &y->upper[n], &y->size[n]) == 3) y->count++;
    }
    if (f) fclose(f);
    return y->count > 0;
}

static inline int layout_earlier(const void *a, const void *b)
{
    const long long x = *(const long long *)a, y = *(const long long *)b;
    return x < y ? -1 : x > y;
}

/* The rectangles of a layout: a section begins where a buffer does after another has ended. All in scratch of a. */
static inline int layout_rectangles(const layout *y, gcpi_skyline *s, gcp_arena *a)
{
    static long long begins[LAYOUT_MOST], ends[LAYOUT_MOST], first[LAYOUT_MOST];
    const size_t bytes = (size_t)y->count * sizeof *begins;
    int sections = 0;
    memcpy(begins, y->lower, bytes); qsort(begins, (size_t)y->count, sizeof *begins, layout_earlier);
    memcpy(ends, y->upper, bytes); qsort(ends, (size_t)y->count, sizeof *ends, layout_earlier);
    for (int i = 0, ended = 0, e = 0; i < y->count; i++) {
        for (; e < y->count && ends[e] <= begins[i]; e++) ended = 1;
        if (i == 0 || ended) first[sections++] = begins[i];
        ended = 0;
    }
    if (!gcpi_skyline_arrays(s, y->count, sections, a)) return 0;
    s->align = 1;
    for (int i = 0; i < y->count; i++) {
        gcpi_rectangle *x = &s->all[s->count++];
        int t = 0;
        while (t + 1 < sections && first[t + 1] <= y->lower[i]) t++;
        x->first = t;
        while (t + 1 < sections && first[t + 1] < y->upper[i]) t++;
        x->last = t;
        x->bytes = y->size[i]; x->buffer = i;
    }
    gcpi_skyline_ready(s);
    return 1;
}

/* Whether all lie below the capacity and those that live at once do not overlap. */
static inline int layout_holds(const layout *y, const gcpi_skyline *s, size_t capacity)
{
    for (int i = 0; i < y->count; i++) {
        const size_t at = s->all[i].at, end = at + y->size[i];
        if (end > capacity || end < at) return 0;
        for (int k = 0; k < i; k++)
            if (y->lower[i] < y->upper[k] && y->lower[k] < y->upper[i] && at < s->all[k].at + y->size[k] &&
                s->all[k].at < end)
                return 0;
    }
    return 1;
}
#endif
