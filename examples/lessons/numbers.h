/* numbers.h - numbers as people write them: read in any spelling, printed with commas. */
#ifndef NUMBERS_H
#define NUMBERS_H
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A number as people write it: 32000, 32,000, 32.000, 32 000, 3.2e4, 32 kB, 31.25 KiB, 8 x 4,000, 32,000 bytes. point
   is what stands before a fraction; the other of , and . may part thousands. Returns where the number ends, or NULL. */
static inline const char *lesson_number(const char *s, char point, double *value)
{
    static const struct { const char *name; double times; } units[] = {
        { "KiB", 1024 }, { "MiB", 1048576 }, { "kB", 1e3 }, { "KB", 1e3 }, { "MB", 1e6 }, { "k", 1e3 }
    };
    char plain[64];
    size_t n = 0;
    for (; *s && n + 1 < sizeof plain; s++) {
        const int inside = n && isdigit((unsigned char)s[-1]) && isdigit((unsigned char)s[1]);
        if (isdigit((unsigned char)*s) || (!n && *s == '-')) plain[n++] = *s;
        else if (*s == point) plain[n++] = '.';
        else if ((*s == 'e' || *s == 'E') && n && (isdigit((unsigned char)s[1]) || s[1] == '-')) plain[n++] = *s;
        else if (*s == '-' && n && plain[n - 1] == 'e') plain[n++] = *s;
        else if (!(strchr(",. '_", *s) && inside)) break;
    }
    plain[n] = 0;
    char *end;
    *value = strtod(plain, &end);
    if (end == plain || *end) return NULL;
    while (*s == ' ') s++;
    for (int i = 0; i < 6; i++)
        if (!strncmp(s, units[i].name, strlen(units[i].name)) && !isalpha((unsigned char)s[strlen(units[i].name)])) {
            *value *= units[i].times;
            return s + strlen(units[i].name);
        }
    return s;
}

/* A product of numbers, and words behind it. */
static inline int lesson_reads(const char *s, char point, double *value)
{
    double factor;
    while (*s == ' ') s++;
    if (!(s = lesson_number(s, point, value))) return 0;
    while (*s == '*' || (*s == 'x' && !isalpha((unsigned char)s[1]))) {
        for (s++; *s == ' '; s++);
        if (!(s = lesson_number(s, point, &factor))) return 0;
        *value *= factor;
    }
    for (; *s; s++) if (!isalpha((unsigned char)*s) && *s != ' ' && *s != '.') return 0;
    return 1;
}

/* 32000 as 32,000. */
static inline const char *lesson_grouped(double value)
{
    static char text[64];
    char plain[32];
    size_t n = 0;
    snprintf(plain, sizeof plain, "%.10g", value);
    const size_t digits = strspn(plain, "0123456789");
    for (size_t i = 0; plain[i]; i++) {
        if (i && i < digits && (digits - i) % 3 == 0) text[n++] = ',';
        text[n++] = plain[i];
    }
    text[n] = 0;
    return text;
}
#endif
