/* words.h - numbers and other values on a command line. */
#ifndef WORDS_H
#define WORDS_H

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "gcp.h"

/* 200MiB (2^20 each), 1.5GB (10^9), 123456 as bytes; 0: the text is no such number. */
static inline size_t bytes_of(const char *s)
{
    static const struct { const char *unit; double bytes; } units[] = {
        { "", 1 },       { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 },
        { "kB", 1e3 },   { "KB", 1e3 },   { "MB", 1e6 },      { "GB", 1e9 }
    };
    char *end;
    double n = strtod(s, &end);
    if (!*end && n != floor(n)) return 0;                    /* 1.5 of what? */
    for (size_t i = 0; n > 0 && i < sizeof units / sizeof *units; i++)
        if (!strcmp(end, units[i].unit) && n * units[i].bytes < 1e18) return (size_t)(n * units[i].bytes);
    return 0;
}

/* A number in [low, high], and nothing after it; 0: the text is no such number. */
static inline int number_of(const char *s, double low, double high, double *value)
{
    char *end;
    *value = strtod(s, &end);
    return end != s && !*end && *value >= low && *value <= high;
}

/* The same of a whole number. */
static inline int whole_of(const char *s, int low, int high, int *value)
{
    char *end;
    errno = 0;
    const long n = strtol(s, &end, 10);
    if (end == s || *end || errno || n < low || n > high) return 0;
    *value = (int)n;
    return 1;
}

/* float or bf16: how a plan stores activations; 0: the text is neither. */
static inline int store_of(const char *s, gcp_store *store)
{
    *store = !strcmp(s, "bf16") ? GCP_STORE_BF16 : GCP_STORE_REAL;
    return *store == GCP_STORE_BF16 || !strcmp(s, "float");
}
/* Behind what a program says of a plan. */
static inline const char *store_said(gcp_store store) { return store ? ", activations in bfloat16" : ""; }
#endif
