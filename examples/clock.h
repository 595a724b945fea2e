/* clock.h - seconds, and bytes as people read them. */
#ifndef CLOCK_H
#define CLOCK_H

#include <stddef.h>
#include <time.h>

static inline double seconds_now(void)
{
#ifdef TIME_UTC
    struct timespec t;
    timespec_get(&t, TIME_UTC);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
#else
    return (double)clock() / CLOCKS_PER_SEC;                    /* Windows before C11: there it counts seconds */
#endif
}

static inline double mib(size_t bytes) { return (double)bytes / 1048576.0; }
#endif
