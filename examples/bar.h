/* bar.h - progress on a terminal. _POSIX_C_SOURCE must be 200809L before the first header, for isatty and fileno. */
#ifndef BAR_H
#define BAR_H

#include <stdio.h>

#include "clock.h"
#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

static inline int on_terminal(void)
{
#if defined(__unix__) || defined(__APPLE__)
    return isatty(fileno(stdout));
#else
    return 0;
#endif
}
/* done of all batches of the epoch, of which these took the seconds; at most ten times a second */
static inline void bar(int epoch, int done, int all, int now, double seconds)
{
    static double last;
    enum { WIDTH = 30 };
    const double left = now ? seconds / now * (all - done) : 0;
    if (!on_terminal() || (seconds_now() - last < 0.1 && done < all)) return;
    last = seconds_now();
    printf("\repoch %3d [", epoch);
    for (int i = 0; i < WIDTH; i++) putchar(i < done * WIDTH / all ? '=' : ' ');
    printf("] %d of %d, %d:%02d left ", done, all, (int)left / 60, (int)left % 60);
    if (done == all) printf("\r%*s\r", 79, "");
    fflush(stdout);
}
#endif
