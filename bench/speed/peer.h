/* peer.h - a Python at the other end of two pipes: a line to it, a line back. */
#ifndef PEER_H
#define PEER_H
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef struct peer { FILE *to, *from; pid_t process; char version[64]; } peer;

/* Starts `python script arguments...`, whose first line is its version. 0: no such Python, or it has not what the
   script imports. */
static int peer_start(peer *p, const char *python, const char *script, char *const *arguments)
{
    int to[2], from[2], count = 2;
    char *words[8] = { (char *)(size_t)python, (char *)(size_t)script };
    while (*arguments && count < 7) words[count++] = *arguments++;
    if (pipe(to) || pipe(from)) return 0;
    fflush(NULL);
    p->process = fork();
    if (p->process == 0) {
        dup2(to[0], 0); dup2(from[1], 1);
        close(to[0]); close(to[1]); close(from[0]); close(from[1]);
        if (!freopen("/dev/null", "w", stderr)) _exit(127);     /* TensorFlow greets */
        execvp(python, words);
        _exit(127);
    }
    close(to[0]); close(from[1]);
    fcntl(to[1], F_SETFD, FD_CLOEXEC);         /* or a later peer keeps it open, and this one never sees its end */
    fcntl(from[0], F_SETFD, FD_CLOEXEC);
    p->to = fdopen(to[1], "w");
    p->from = fdopen(from[0], "r");
    if (p->process > 0 && fgets(p->version, sizeof p->version, p->from)) {
        p->version[strcspn(p->version, "\n")] = 0;
        return 1;
    }
    return 0;
}

/* The line that answers what was written to p->to; NULL: it is gone. */
static const char *peer_answer(peer *p)
{
    static char line[128];
    fflush(p->to);
    return fgets(line, sizeof line, p->from);
}

static void peer_stop(peer *p)
{
    fclose(p->to); fclose(p->from);
    waitpid(p->process, NULL, 0);
}
#endif
