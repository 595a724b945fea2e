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
#include <sys/stat.h>
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

static inline const char *lesson_base(const lesson *l)
{
    return strrchr(l->file, '/') ? strrchr(l->file, '/') + 1 : l->file;
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
    printf("%s %s.\n%s\n", number_grouped(l->answer()), l->unit, l->why);
    return 0;
}

/* How a text reads with . or with , before a fraction: 0 where it reads as no number. */
static inline int lesson_reads(const lesson *l, const char *text, char point, double *value, char *unknown)
{
    number_text t = { text, l->unit, point, "" };
    const int reads = number_read(&t, value);
    if (*t.unknown) strcpy(unknown, t.unknown);
    return reads;
}

static inline int lesson_predict(const lesson *l, const char *text)
{
    const double is = l->answer();
    double said[2] = { 0, 0 };
    char unknown[24] = "";
    const int reads[2] = { lesson_reads(l, text, '.', &said[0], unknown),
                           lesson_reads(l, text, ',', &said[1], unknown) };
    for (int i = 0; i < 2; i++)
        if (reads[i] && fabs(said[i] - is) <= 1e-6 * fabs(is)) {
            printf("Right: ");
            return lesson_answer(l);
        }
    if (!reads[0] && !reads[1]) {
        if (*unknown) fprintf(stderr, "'%s' is no unit here: the answer is in %s\n", unknown, l->unit);
        else fprintf(stderr, "--predict wants a number, not '%s'\n", text);
        return 2;
    }
    const double value = reads[0] ? said[0] : said[1];
    const int either = reads[0] && reads[1] && (said[0] > is) != (said[1] > is);        /* 64.000: by which reading? */
    printf("Not %s%s%s. Think of this:\n%s\n(Try again; --answer says it.)\n", text,
           either ? "" : value > is ? ": that is too large" : ": that is too small",
           fabs(value - is) < 0.05 * fabs(is) ? ", but close" : "", l->hint);
    return 1;
}

/* ---- the exercises ---- */

/* Whether exercise n was written after the program was built. (A list is read as it runs.) */
static inline int lesson_stale(const lesson *l, int n)
{
    struct stat program, exercise;
    char name[32];
    snprintf(name, sizeof name, "exercises/%.2s_%d.h", lesson_base(l), n);
    if (stat(lesson_program, &program) || stat(lesson_exercise_file(name), &exercise)) return 0;
    if (exercise.st_mtime <= program.st_mtime) return 0;
    fprintf(stderr, "%s is newer than this program: build the lesson again.\n", name);
    return 1;
}

static inline int lesson_exercise(const lesson *l, const char *text)
{
    const int n = strlen(text) == 1 ? *text - '0' : 0;
    int most = 0;
    while (most < LESSON_EXERCISES && l->solved[most]) most++;
    if (n < 1 || n > most) { fprintf(stderr, "--exercise wants 1 to %d, not '%s'\n", most, text); return 2; }
    if (lesson_stale(l, n)) return 2;
    const int good = l->solved[n - 1]();
    printf("Exercise %d: %s\n", n, good ? "right." : "not yet. Its file in exercises/ says what to do.");
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

/* Words of a command line, as one text: 8 x 4000 without quotes. */
static inline const char *lesson_joined(int count, char **words)
{
    static char text[256];
    size_t n = 0;
    for (int i = 0; i < count; i++) {
        const char *word = strlen(words[i]) < 60 && n < 180 ? words[i] : "?";      /* too long for a number */
        n += (size_t)snprintf(text + n, sizeof text - n, "%s%s", i ? " " : "", word);
        if (n > 250) n = 250;
    }
    return text;
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
    if (argc >= 3 && !strcmp(argv[1], "--predict")) return lesson_predict(l, lesson_joined(argc - 2, argv + 2));
    if (argc == 3 && !strcmp(argv[1], "--exercise")) return lesson_exercise(l, argv[2]);
    if (argc == 2 && !strcmp(argv[1], "--answer")) return lesson_answer(l);
    if (argc == 2 && !strcmp(argv[1], "--timeline") && l->timeline) { l->timeline(); return 0; }
    if (argc != 1) return lesson_usage(l, argc == 2 && !strcmp(argv[1], "--help") ? stdout : stderr);
    lesson_opening();
    l->table();
    printf("\n%s\n\nExercises: the files exercises/%.2s_* say what to do. Write yours there, build the lesson again,\n"
           "and %s --exercise 1 says whether it is right.\n", l->explain, lesson_base(l), argv[0]);
    if (lesson_differs) printf("%d figures differ from the formula: please report it.\n", lesson_differs);
    return lesson_differs != 0;
}
#endif
