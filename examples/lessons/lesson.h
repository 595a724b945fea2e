/* lesson.h - what the lessons share: their command line, and figures that must be equal.

   Read a lesson down to its table(), which prints the answer's figures. Predict. Then run it, and read on.

       01_by_hand                  the question, the table, the explanation, the exercises
       01_by_hand --predict 42     is 42 the answer? If not: how far off, and why
       01_by_hand --exercise 1     is what you wrote in exercise_1 right?

   A lesson includes its solutions in place of the exercises where it is compiled with -DSOLUTIONS. */
#ifndef LESSON_H
#define LESSON_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct lesson {
    const char *title, *learn, *question;
    void (*table)(void);
    double (*answer)(void);              /* of the question, measured */
    const char *unit, *why;              /* of the answer; why it is that */
    const char *explain;
    const char *tasks[2];
    int (*solved[2])(void);
} lesson;

static int lesson_differs;

/* "=" where a table's two figures are equal; if not, the lesson fails. */
static inline const char *lesson_same(double a, double b)
{
    const int same = fabs(a - b) <= 1e-6 * fabs(b);
    lesson_differs += !same;
    return same ? "=" : "DIFFERS";
}

/* 1 where an exercise gives what it should; else prints the case that fails. */
static inline int lesson_case(const char *call, double gives, double should)
{
    const int good = fabs(gives - should) <= 1e-6 * fabs(should);
    if (!good) printf("%s gives %.10g; it should be %.10g.\n", call, gives, should);
    return good;
}
#define GIVES(call, should) lesson_case(#call, call, should)

static inline int lesson_predict(const lesson *l, const char *text)
{
    char *end;
    const double said = strtod(text, &end), is = l->answer();
    if (end == text || *end) { fprintf(stderr, "--predict wants a number, not '%s'\n", text); return 2; }
    if (fabs(said - is) <= 1e-6 * fabs(is)) {
        printf("Right: %.10g %s. %s\n", is, l->unit, l->why);
        return 0;
    }
    printf("You say %.10g; it is %.10g %s: ", said, is, l->unit);
    if (said > 0 && is > 0) printf("you are off by a factor of %.3g. ", said > is ? said / is : is / said);
    else printf("you are off by %.10g. ", fabs(said - is));
    printf("%s\n", l->why);
    return 1;
}

static inline int lesson_exercise(const lesson *l, const char *text)
{
    const int n = atoi(text);
    if (n < 1 || n > 2) { fprintf(stderr, "--exercise wants 1 or 2, not '%s'\n", text); return 2; }
    const int good = l->solved[n - 1]();
    printf("Exercise %d: %s.\n%s%s", n, good ? "right" : "not yet", good ? "" : l->tasks[n - 1], good ? "" : "\n");
    return !good;
}

static inline int lesson_main(const lesson *l, int argc, char **argv)
{
    if (argc == 3 && !strcmp(argv[1], "--predict")) return lesson_predict(l, argv[2]);
    if (argc == 3 && !strcmp(argv[1], "--exercise")) return lesson_exercise(l, argv[2]);
    if (argc != 1) {
        const int help = argc == 2 && !strcmp(argv[1], "--help");
        fprintf(help ? stdout : stderr, "usage: %s [--predict NUMBER | --exercise 1|2]\n", argv[0]);
        return help ? 0 : 2;
    }
    printf("---- Lesson %s ----\n\n%s\n\nPredict: %s\n(%s --predict NUMBER)\n\n", l->title, l->learn, l->question,
           argv[0]);
    l->table();
    const char *slash = strrchr(argv[0], '/');
    printf("\nExplain: %s\n\nChange it (then cmake --build build/lessons --target lesson_%s, and %s --exercise 1,\n"
           "or 2):\n1. %s\n2. %s\n\n", l->explain, slash ? slash + 1 : argv[0], argv[0], l->tasks[0], l->tasks[1]);
    if (lesson_differs) printf("%d figures differ from the formula: please report it.\n", lesson_differs);
    return lesson_differs != 0;
}
#endif
