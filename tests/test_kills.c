/* A program that saves its run for ever is killed at any moment, again and again: each time the file is whole, and not
   older than what it had said to be saved. test_kills [kills] */
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
static void save_on(int pipe, int number)
{
    static gcp_real weights[256 * 128];
    gcp_tape *net = make(1);
    for (;; number++) {
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

int main(int argc, char **argv)
{
    const int kills = argc > 1 ? atoi(argv[1]) : 100;
    int number = 0, broken = 0, older = 0;
    remove(RUN);
    for (int i = 0; i < kills; i++) {
        int ends[2], said = number, next;
        if (pipe(ends)) return 77;
        pid_t child = fork();
        if (child < 0) return 77;
        if (!child) save_on(ends[1], number + 1);
        close(ends[1]);
        /* every second one has saved at least once */
        if (i % 2 == 0 && read(ends[0], &next, sizeof next) == (ssize_t)sizeof next) said = next;
        usleep((useconds_t)(500 + i * 7919 % 9000));
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        while (read(ends[0], &next, sizeof next) == (ssize_t)sizeof next) said = next;
        close(ends[0]);
        number = found();
        broken += number < 0;
        older += number >= 0 && number < said;
        if (number < 0) number = said;
    }
    printf("%d kills, %d saves, %d broken files, %d older than said\n", kills, number, broken, older);
    CHECK_INT(broken, ==, 0);
    CHECK_INT(older, ==, 0);
    CHECK_INT(number, >=, kills / 2);
    remove(RUN);
    remove(RUN ".part");
    return check_done();
}
#else
int main(void) { return 77; }
#endif
