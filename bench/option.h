/* option.h - values of options: whole, and in range, or 0. */
#ifndef OPTION_H
#define OPTION_H
#include <math.h>
#include <stdlib.h>

static inline int option_number(const char *text, double low, double high, double *value)
{
    char *end;
    *value = strtod(text, &end);
    return end != text && !*end && *value >= low && *value <= high;          /* not NaN */
}
static inline int option_count(const char *text, int low, int high, int *value)
{
    double number;
    if (!option_number(text, low, high, &number) || number != floor(number)) return 0;
    *value = (int)number;
    return 1;
}

/* FLOPS,BYTES,LINK: each a second, above 0. */
static inline int option_rates(const char *text, double rates[3])
{
    char *end = (char *)(size_t)text;
    for (int i = 0; i < 3; i++) {
        const char *at = end + (i > 0);
        if (i && *end != ',') return 0;
        rates[i] = strtod(at, &end);
        if (end == at || !(rates[i] >= 1) || rates[i] > 1e30) return 0;
    }
    return !*end;
}
#endif
