/* A program that saves its run for ever, or two that save to the same path, are killed at any moment, again and again:
   the file is always whole, also between their saves, and not older than what its writer had said to be saved.
   test_save_survives_kill [rounds] */
#if defined(__unix__) || defined(__APPLE__)
#define _DEFAULT_SOURCE                  /* usleep, kill */
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include "gcp_io.h"
#include "support/check.h"
#include <stdlib.h>

#define RUN "kills_run.gcp"
static unsigned char tape_memory[1 << 20];
static _Alignas(64) unsigned char step_memory[1 << 20];
static gcp_arena arena;
static gcp_plan plan;

static gcp_tape *make(uint64_t seed)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 16, .seed = seed);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 256));
    plan = gcp_plan_make(gcp_mean(gcp_linear(x, .out = 128)), .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    return net;
}

/* Saves run after run, each with its number in every weight, and says each number once it is saved. */
static void save_on(int pipe, int number, int step)
{
    static gcp_real weights[256 * 128];
    gcp_tape *net = make(1);
    for (;; number += step) {
        for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) weights[i] = (gcp_real)number;
        gcp_write(&plan, gcp_find(net, "linear[0]/weight"), weights);
        if (gcp_save_run(net, RUN, .extra = &number, .extra_bytes = sizeof number) != GCP_OK) _exit(1);
        if (write(pipe, &number, sizeof number) != (ssize_t)sizeof number) _exit(1);
    }
}

/* The number in the file, all of whose weights have it. -1: the file is broken. */
static int found(void)
{
    static gcp_real weights[256 * 128];
    int number = -1;
    gcp_tape *net = make(2);
    if (!gcp_resume_run(net, RUN, .extra = &number, .extra_bytes = sizeof number)) return gcp_error(net) ? -1 : 0;
    gcp_read(&plan, gcp_find(net, "linear[0]/weight"), weights);
    for (size_t i = 0; i < sizeof weights / sizeof *weights; i++) if (weights[i] != (gcp_real)number) return -1;
    return number;
}

/* Writer k of several saves the numbers that leave k when divided by their count, so that a number tells its writer. */
typedef struct writer { pid_t child; int pipe, said; } writer;
static writer writer_of(int first, int step)
{
    writer w = { -1, -1, 0 };
    int ends[2];
    if (pipe(ends)) exit(77);
    w.child = fork();
    if (w.child < 0) exit(77);
    if (!w.child) save_on(ends[1], first, step);
    close(ends[1]);
    w.pipe = ends[0];
    return w;
}
static void listen_once(writer *w)
{
    int next;
    if (read(w->pipe, &next, sizeof next) == (ssize_t)sizeof next) w->said = next;
}
/* Kills it and hears what it had still said. 1: it had ended by itself, as a save failed. */
static int kill_writer(writer *w)
{
    int next, status = 0;
    kill(w->child, SIGKILL);
    waitpid(w->child, &status, 0);
    while (read(w->pipe, &next, sizeof next) == (ssize_t)sizeof next) w->said = next;
    close(w->pipe);
    return !WIFSIGNALED(status);
}

typedef struct tally { int kills, number, broken, older, failed, loads; } tally;

/* One round: so many writers at once, loads between their saves, and all are killed. */
static void round_of(tally *t, int writers, int i)
{
    writer w[2];
    for (int k = 0; k < writers; k++) w[k] = writer_of((t->number / writers + 1) * writers + k, writers);
    /* in every second round each has saved at least once */
    for (int k = 0; k < writers && i % 2 == 0; k++) listen_once(&w[k]);
    for (int load = 0; load < 2 && writers > 1; load++, t->loads++) t->broken += found() < 0;
    usleep((useconds_t)(500 + i * 7919 % 9000));
    for (int k = 0; k < writers; k++) t->failed += kill_writer(&w[k]);
    const int number = found();
    t->kills += writers;
    t->broken += number < 0;
    if (number < 0) return;
    t->older += number < w[number % writers].said;
    t->number = number;
}

int main(int argc, char **argv)
{
    const int rounds = argc > 1 ? atoi(argv[1]) : 100;
    tally t = { 0 };
    if (system("rm -f " RUN "*")) return 77;
    for (int i = 0; i < rounds; i++) round_of(&t, 1 + i % 2, i / 2);
    printf("%d kills, number %d, %d loads between saves; %d broken files, %d older than said, %d saves failed\n",
           t.kills, t.number, t.loads, t.broken, t.older, t.failed);
    CHECK_INT(t.broken, ==, 0);
    CHECK_INT(t.older, ==, 0);
    CHECK_INT(t.failed, ==, 0);
    CHECK_INT(t.number, >=, rounds / 2);
    return system("rm -f " RUN "*") ? 1 : check_done();
}
#else
int main(void) { return 77; }
#endif
