/* judge.h - one exercise that came back. grade.cmake compiles a lesson with the student's file in place of one of its
   exercises, and links it with a program that is this function alone.

   The verdict is a word that grade.cmake makes up for each run. It comes on standard input, and is read when all of
   the student's code has run: a program that prints what a right one would print does not know it, and one that ends
   early does not come to print it. */
#ifndef JUDGE_H
#define JUDGE_H
#include <stdio.h>

int lesson_own_main(int argc, char **argv);             /* main of the lesson */
int lesson_more(void);                                  /* cases that the lesson does not show */

static inline int judge(int n)
{
    char word[64] = "", number[2] = { (char)('0' + n), 0 }, name[] = "lesson", option[] = "--exercise";
    char *arguments[] = { name, option, number, NULL };
    setvbuf(stdout, NULL, _IONBF, 0);                   /* what was printed before a crash is seen */
    const int right = lesson_own_main(3, arguments) == 0 && lesson_more();
    if (!fgets(word, sizeof word, stdin)) return 2;
    printf("\n%s %s\n", right ? "right" : "wrong", word);
    return !right;
}
#endif
