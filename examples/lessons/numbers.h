/* numbers.h - numbers as people write them: read in any spelling, printed with commas. */
#ifndef NUMBERS_H
#define NUMBERS_H
#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A text that is being read. point stands before a fraction; the other of , and . may part thousands. unit: words that
   may stand behind a number. unknown: the first word that may not. */
typedef struct number_text { const char *at, *unit; char point, unknown[24]; } number_text;

static inline void number_space(number_text *t)
{
    while (*t->at == ' ' || *t->at == '\t' || !strncmp(t->at, "\xC2\xA0", 2)) t->at++;
}

/* 41000, 41,000, 41.000, 41 000, 4.1e4: digits, and what may stand between them. */
static inline int number_digits(number_text *t, double *value)
{
    char plain[64], *end;
    size_t n = 0;
    for (const char *s = t->at; n + 1 < sizeof plain; t->at = ++s) {
        const int digit = isdigit((unsigned char)*s), between = n && digit == 0 && isdigit((unsigned char)s[-1]);
        const int exponent = (*s == 'e' || *s == 'E') && between &&
                             isdigit((unsigned char)(s[1] == '-' || s[1] == '+' ? s[2] : s[1]));
        if (digit || exponent || ((*s == '-' || *s == '+') && n && (plain[n - 1] | 32) == 'e')) plain[n++] = *s;
        else if (*s == t->point && (isdigit((unsigned char)s[1]) || between)) plain[n++] = '.';
        else if (!(between && *s && strchr(",. '_", *s) && isdigit((unsigned char)s[1]))) break;
    }
    plain[n] = 0;
    *value = strtod(plain, &end);
    return n > 0 && n + 1 < sizeof plain && !*end && isfinite(*value);
}

/* Behind a number: KiB, MB, million; and words of the unit, or of no weight. */
static inline int number_words(number_text *t, double *value)
{
    static const struct { const char *name; double times; } units[] = {
        { "KiB", 1024 }, { "MiB", 1048576 }, { "GiB", 1073741824 }, { "kB", 1e3 }, { "KB", 1e3 }, { "MB", 1e6 },
        { "GB", 1e9 }, { "k", 1e3 }, { "K", 1024 }, { "M", 1e6 }, { "thousand", 1e3 }, { "million", 1e6 },
        { "kilobytes", 1e3 }, { "megabytes", 1e6 }, { "kib", 1024 }, { "mib", 1048576 }, { "B", 1 }
    };
    for (number_space(t); isalpha((unsigned char)*t->at); number_space(t)) {
        if ((*t->at == 'x' || *t->at == 'X') && !isalpha((unsigned char)t->at[1])) return 1;       /* a sign */
        const size_t n = strspn(t->at, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
        char word[24] = "";
        int known = 0;
        snprintf(word, sizeof word, "%.*s", n < 23 ? (int)n : 23, t->at);
        for (size_t i = 0; i < sizeof units / sizeof *units && !known; i++)
            if (!strcmp(word, units[i].name)) { *value *= units[i].times; known = 1; }
        if (!known && !strstr(t->unit, word) && !strstr(" a per second s of them byte ", word)) {
            memcpy(t->unknown, word, sizeof word);
            return 0;
        }
        t->at += n + (t->at[n] == '/' || t->at[n] == '.');
    }
    return 1;
}

static inline int number_power(number_text *t, double *value)
{
    double exponent;
    number_space(t);
    if (!number_digits(t, value)) return 0;
    if (*t->at == '^') {
        t->at++;
        if (!number_digits(t, &exponent)) return 0;
        *value = pow(*value, exponent);
    }
    return number_words(t, value);
}

/* Factors, with x, *, or the sign of multiplication between them, or /. */
static inline int number_product(number_text *t, double *value)
{
    double factor;
    if (!number_power(t, value)) return 0;
    for (number_space(t); ; number_space(t)) {
        const size_t sign = !strncmp(t->at, "\xC3\x97", 2) ? 2 : *t->at && strchr("xX*/", *t->at);
        const int divides = *t->at == '/';
        if (!sign) return 1;
        t->at += sign;
        if (!number_power(t, &factor)) return 0;
        *value = divides ? *value / factor : *value * factor;
    }
}

/* A sum of products, behind an '=' if there is one, and whatever says "about". 0: it is none. */
static inline int number_read(number_text *t, double *value)
{
    double term;
    if (strchr(t->at, '=')) t->at = strrchr(t->at, '=') + 1;
    for (number_space(t); *t->at == '~' || *t->at == '+' || !strncmp(t->at, "about", 5); number_space(t))
        t->at += *t->at == 'a' ? 5 : 1;
    if (!number_product(t, value)) return 0;
    while (*t->at == '+' || *t->at == '-') {
        const int sign = *t->at++ == '+' ? 1 : -1;
        if (!number_product(t, &term)) return 0;
        *value += sign * term;
    }
    return !t->at[strspn(t->at, ".!?")];
}

/* 41000 as 41,000. */
static inline const char *number_grouped(double value)
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
