/* judge.h - one exercise that came back. grade.cmake compiles a lesson with it, with the student's file in place of one
   of its exercises.

   The verdict is a word that grade.cmake makes up for each run and gives on standard input, which is read before
   anything of the student's runs. A program that prints what a right one would print does not know the word; one that
   ends early does not come to print it. */
#ifndef JUDGE_H
#define JUDGE_H

/* Exercise n as the lesson judges it (its main, under another name), and by cases that the lesson does not show. */
static inline int judge(int n, int (*more)(void))
{
    char word[64] = "", number[2] = { (char)('0' + n), 0 }, name[] = "lesson", option[] = "--exercise";
    char *arguments[] = { name, option, number, NULL };
    if (!fgets(word, sizeof word, stdin)) return 2;
    word[strcspn(word, "\n")] = 0;
    const int right = lesson_own_main(3, arguments) == 0 && more();
    printf("\n%s%s\n", word, right ? "right" : "wrong");
    fflush(stdout);
    return !right;
}
#endif
