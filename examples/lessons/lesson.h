/* lesson.h - what the lessons share: their command line, and figures that must be equal.

   A lesson is read from its top. Its first comment says what it is about, and asks for a number. Write yours down.

       01_by_hand --predict 42     is 42 the answer? If not, a hint; --answer says it, and why
       01_by_hand                  the table, the explanation, the exercises
       01_by_hand --exercise 1     is what you wrote in exercises/01_1.h right? (build the lesson before)
       05_square_root --timeline   a step, drawn: of lessons that have one */
#ifndef LESSON_H
#define LESSON_H
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "numbers.h"

enum { LESSON_EXERCISES = 3, LESSON_PATH = 1024 };

typedef struct lesson {
    const char *file;                    /* __FILE__: its first comment is printed */
    void (*table)(void);
    double (*answer)(void);              /* of the question, measured */
    const char *unit, *hint, *why;       /* of the answer; what to think of after a wrong try; why it is that */
    const char *explain;
    int (*solved[LESSON_EXERCISES])(void);
    void (*timeline)(void);
} lesson;

static int lesson_differs;
static const char *lesson_program = "", *lesson_source = "";

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
    if (!good) printf("%s gives %.10g, not %.10g.\n", call, gives, should);
    return good;
}
#define GIVES(call, should) lesson_case(#call, call, should)

/* ---- files: those of the course lie beside its sources, what a lesson draws beside its program ---- */

/* The file NAME in the folder of PLACE (a path of a file). */
static inline const char *lesson_path(const char *place, const char *name)
{
    static char path[LESSON_PATH];
    const char *slash = strrchr(place, '/');
    snprintf(path, sizeof path, "%.*s%s", slash ? (int)(slash - place) + 1 : 0, place, name);
    return path;
}

/* LESSON_FOLDER, where a compiler sets it, holds exercises/ in place of the source's folder. */
static inline const char *lesson_exercise_file(const char *name)
{
#ifdef LESSON_FOLDER
    return lesson_path(LESSON_FOLDER "/", name);
#else
    return lesson_path(lesson_source, name);
#endif
}

/* The text of a file, or NULL. */
static inline const char *lesson_text(const char *path)
{
    static char text[1 << 16];
    FILE *f = fopen(path, "r");
    if (!f) return NULL;
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}

#ifdef GCP_H
/* Draws a plan's memory, and beside it another's as an outline. */
static inline void lesson_picture(const char *name, const gcp_plan *plan, const gcp_plan *beside)
{
    FILE *f = fopen(lesson_path(lesson_program, name), "w");
    if (!f) return;
    gcp_memory_svg(plan, beside, gcp_file(f));
    if (!fclose(f)) printf("\nA picture, for your browser: %s\n", lesson_path(lesson_program, name));
}
#endif

/* ---- the question ---- */

static inline int lesson_answer(const lesson *l)
{
    printf("%s %s.\n%s\n", lesson_grouped(l->answer()), l->unit, l->why);
    return 0;
}

static inline int lesson_predict(const lesson *l, const char *text)
{
    const double is = l->answer();
    double a = 0, b = 0;
    const int reads_a = lesson_reads(text, '.', &a), reads_b = lesson_reads(text, ',', &b);
    if (!reads_a && !reads_b) { fprintf(stderr, "--predict wants a number, not '%s'\n", text); return 2; }
    if ((reads_a && fabs(a - is) <= 1e-6 * fabs(is)) || (reads_b && fabs(b - is) <= 1e-6 * fabs(is))) {
        printf("Right: ");
        return lesson_answer(l);
    }
    printf("Not %s: that is too %s. Think of this:\n%s\n(Try again; --answer says it.)\n", text,
           (reads_a ? a : b) > is ? "large" : "small", l->hint);
    return 1;
}

/* ---- the exercises ---- */

static inline int lesson_exercise(const lesson *l, const char *text)
{
    const int n = atoi(text);
    int most = 0;
    while (most < LESSON_EXERCISES && l->solved[most]) most++;
    if (n < 1 || n > most) { fprintf(stderr, "--exercise wants 1 to %d, not '%s'\n", most, text); return 2; }
    const int good = l->solved[n - 1]();
    printf("Exercise %d: %s\n", n, good ? "right." : "not yet. Its file says what to do; build the lesson again.");
    return !good;
}

/* ---- the command line ---- */

/* The first comment of the lesson's source: its title, what it is about, its question. */
static inline void lesson_opening(void)
{
    const char *text = lesson_text(lesson_source), *end = text ? strstr(text, "*/") : NULL;
    if (!end || strncmp(text, "/* ", 3)) { printf("(The question is at the top of %s.)\n\n", lesson_source); return; }
    for (const char *s = text + 3; s < end; s++) {
        putchar(*s);
        if (*s == '\n' && !strncmp(s + 1, "   ", 3)) s += 3;
    }
    printf("\n\n");
}

static inline int lesson_usage(const lesson *l, FILE *out)
{
    fprintf(out, "usage: %s [--predict NUMBER | --answer | --exercise N%s]\n", lesson_program,
            l->timeline ? " | --timeline" : "");
    return out == stdout ? 0 : 2;
}

static inline int lesson_main(const lesson *l, int argc, char **argv)
{
    lesson_program = argv[0];
    lesson_source = l->file;
    if (argc == 3 && !strcmp(argv[1], "--predict")) return lesson_predict(l, argv[2]);
    if (argc == 3 && !strcmp(argv[1], "--exercise")) return lesson_exercise(l, argv[2]);
    if (argc == 2 && !strcmp(argv[1], "--answer")) return lesson_answer(l);
    if (argc == 2 && !strcmp(argv[1], "--timeline") && l->timeline) { l->timeline(); return 0; }
    if (argc != 1) return lesson_usage(l, argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
    lesson_opening();
    l->table();
    printf("\n%s\n\nExercises: exercises/%.2s_1.h and those beside it. Write yours there, build the lesson again, and\n"
           "%s --exercise 1 says whether it is right.\n", l->explain, strrchr(l->file, '/') ? strrchr(l->file, '/') + 1
           : l->file, argv[0]);
    if (lesson_differs) printf("%d figures differ from the formula: please report it.\n", lesson_differs);
    return lesson_differs != 0;
}
#endif
