/* check.h - checks that print both expressions and both values, and count. A test ends with: return check_done(); */
#ifndef CHECK_H
#define CHECK_H
#include <math.h>
#include <stdio.h>
#include <string.h>

static int check_failed, check_passed;

static inline int check_report(int ok, const char *file, int line)
{
    if (ok) { check_passed++; return 1; }
    if (++check_failed <= 40) fprintf(stderr, "%s:%d: ", file, line);
    return 0;
}
static inline int check_shown(void) { return check_failed <= 40; }

#define CHECK(condition)                                                       \
    do {                                                                       \
        if (!check_report(!!(condition), __FILE__, __LINE__) && check_shown()) \
            fprintf(stderr, "%s is false\n", #condition);                      \
    } while (0)
#define CHECK_INT(a, op, b) \
    do { long long check_a = (long long)(a), check_b = (long long)(b); \
         if (!check_report(check_a op check_b, __FILE__, __LINE__) && check_shown()) \
             fprintf(stderr, "%s %s %s: %lld and %lld\n", #a, #op, #b, check_a, check_b); } while (0)
#define CHECK_NEAR(a, b, tolerance)                                                                                 \
    do {                                                                                                            \
        double check_a = (double)(a), check_b = (double)(b), check_t = (double)(tolerance);                         \
        if (!check_report(fabs(check_a - check_b) <= check_t, __FILE__, __LINE__) && check_shown())                 \
            fprintf(stderr, "%s near %s: %.17g and %.17g differ by %.3g, allowed %.3g\n", #a, #b, check_a, check_b, \
                    fabs(check_a - check_b), check_t);                                                              \
    } while (0)
#define CHECK_TEXT(a, b)                                                                                         \
    do {                                                                                                         \
        const char *check_a = (a), *check_b = (b);                                                               \
        if (!check_report(check_a && check_b && !strcmp(check_a, check_b), __FILE__, __LINE__) && check_shown()) \
            fprintf(stderr, "%s is %s:\n  '%s'\n  '%s'\n", #a, #b, check_a ? check_a : "(null)",                 \
                    check_b ? check_b : "(null)");                                                               \
    } while (0)

static inline int check_done(void)
{
    printf("%d checks passed, %d failed\n", check_passed, check_failed);
    return check_failed != 0 || check_passed == 0;
}
#endif
