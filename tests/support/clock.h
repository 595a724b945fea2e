/* clock.h - what benchmarks measure with: one clock, and an order of figures for medians. Its includers define
   _POSIX_C_SOURCE. */
#ifndef CLOCK_H
#define CLOCK_H
#include <time.h>

static inline double clock_seconds(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static inline double seconds_now(void) { return clock_seconds(CLOCK_MONOTONIC); }

static inline int by_size(const void *a, const void *b) /* for qsort, of double */
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
#endif
