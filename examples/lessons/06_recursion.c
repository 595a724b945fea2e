/* Lesson 06: recursion

   The inside of a segment is a chain, too: cut it again, and the inside of that. You will see that about log n
   tensors are then enough, for n log n work. A simulation that goes through its steps backwards is the same problem:
   with room for s states, how many steps must run again? Both trade memory for running forward again.

   Predict: a simulation of 64 steps is gone through backwards. There is room for 4 states, the first among them. How
   many steps are run forward in all, to get at the states that backward needs? (A guess will do. With room for 1
   state it is 63 + 62 + ... + 1 = 2,016.) */
#include "gcp.h"
#include "lesson.h"
#include "timeline.h"

/* ---- segments inside segments ---- */

enum { VALUES = 4096, MOST = 256 };
static unsigned char tape_memory[GCP_MB(8)], step_memory[GCP_MB(8)], probe_memory[GCP_MB(8)];
static float input[VALUES];
static gcp_arena arena;

/* A segment of two halves, which are segments of two halves. What crosses a half's end is one tensor. */
static gcp_tensor halves(gcp_tape *net, gcp_tensor x, int layers)
{
    if (layers == 1) return gcp_tanh(x);
    GCP_SEGMENT(net, "half") x = halves(net, x, layers / 2);
    GCP_SEGMENT(net, "half") x = halves(net, x, layers / 2);
    return x;
}

static gcp_tensor record(int layers)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 2 * MOST);
    return gcp_mean(halves(net, gcp_input(net, "x", GCP_SHAPE(1, VALUES), .want_grad = 1), layers));
}

/* Whole tensors that a step touches; runs: layers run forward, the first time and again. */
static int tensors(int layers, int *runs)
{
    const gcp_tensor loss = record(layers);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, gcp_find(loss.tape, "x"), input);
    gcp_step(&plan);
    const size_t measured = gcp_measure(&plan, probe_memory, sizeof probe_memory);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    *runs = plan.instructions - (layers + 3);              /* backward, its seed, the mean and its backward */
    return (int)(measured / sizeof input);
}

/* ---- time-stepping: only states can be kept, and a step's backward needs the state before it ---- */

enum { STEPS = 64 };

static double binomial(int n, int k)
{
    double b = 1;
    for (int i = 1; i <= k; i++) b = b * (n - k + i) / i;
    return floor(b + 0.5);
}

/* If no step may run more than r times, s states reverse L(s, r) steps at most. Keep one behind the first part: what
   lies behind it has s - 1 states and r runs, what lies before it s states and r - 1 runs, as it ran once on the way.
   So L(s, r) = L(s - 1, r) + L(s, r - 1), as in Pascal's triangle: C(s + r, s). The fewest steps run forward to go back
   through l steps are then, with r the least for which l <= C(s + r, s), r l - C(s + r, s + 1) (Griewank 1992; Griewank
   and Walther 2000). */
static double formula(int l, int s)
{
    int r = 0;
    while (binomial(s + r, s) < l) r++;
    return r * l - (r ? binomial(s + r, s + 1) : 0);
}

/* Goes back through l steps, and counts the steps that it runs forward on the way. The next state is kept where the
   formula says that it is best. */
static int reverse(int l, int s)
{
    int best = 1;
    if (l == 1) return 0;
    if (s == 1) return l - 1 + reverse(l - 1, 1);          /* from the start to the last step, then one less */
    for (int j = 1; j < l; j++)
        if (j + formula(l - j, s - 1) + formula(j, s) < best + formula(l - best, s - 1) + formula(best, s)) best = j;
    return best + reverse(l - best, s - 1) + reverse(best, s);
}

static void table(void)
{
    int runs;
    printf("Segments inside segments:\nlayers n   log2 n + 2   tensors     layers run   n (log2 n + 1) / 2\n");
    for (int n = 4, log = 2; n <= MOST; n *= 2, log++) {
        const int measured = tensors(n, &runs);
        printf("%8d   %10d   %7d %s   %10d   %18d %s\n", n, log + 2, measured, lesson_same(measured, log + 2), runs,
               n * (log + 1) / 2, lesson_same(runs, n * (log + 1) / 2));
    }
    printf("\nSteps run forward to go back through n steps with s states (each as counted, and by the formula):\n   n");
    for (int s = 1; s <= 6; s++) printf("        s = %d", s);
    for (int n = 4; n <= STEPS; n *= 2) {
        printf("\n%4d", n);
        for (int s = 1; s <= 6; s++)
            printf(" %5d %s %4.0f", reverse(n, s), lesson_same(reverse(n, s), formula(n, s)), formula(n, s));
    }
    printf("\n");
    const gcp_tensor loss = record(64);
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL), plan = gcp_plan_make(loss);
    lesson_picture("06_recursion.svg", &plan, &keep);
}

static void timeline_of_it(void)
{
    const gcp_plan plan = gcp_plan_make(record(16), .policy = GCP_POLICY_SEGMENTS);
    timeline_print(&plan);
}

static double answer(void) { return reverse(64, 4); }

/* ---- the exercises: exercises/06_1.h to 06_3.h ---- */

static int exercise_1(int states, int times);
static int exercise_2(int steps, int times);
static int exercise_3(int steps, int states);

static int solved_1(void)
{
    return GIVES(exercise_1(4, 4), 70) && GIVES(exercise_1(3, 2), 10) && GIVES(exercise_1(10, 3), 286);
}
static int solved_2(void)
{
    return GIVES(exercise_2(64, 4), 4) && GIVES(exercise_2(10, 2), 3) && GIVES(exercise_2(70, 4), 4) &&
           GIVES(exercise_2(1000, 3), 17);
}
/* Against the closed form, for all of so many steps and states. */
static int programme(int steps, int states)
{
    for (int l = 1; l <= steps; l++)
        for (int s = 1; s <= states; s++)
            if (exercise_3(l, s) != formula(l, s)) {
                printf("exercise_3(%d, %d) gives %d, not %.0f.\n", l, s, exercise_3(l, s), formula(l, s));
                return 0;
            }
    return 1;
}
static int solved_3(void) { return programme(30, 5); }

static const lesson self = { __FILE__, table, answer, "steps",
    "Run forward to some step j and keep its state. Then 3 states go back through what lies behind j, and 4 through\n"
    "what lies before it. The best j is not the middle. (No step needs to run more than 4 times.)",
#include "answers/06.h"
    ,
    "A segment is one layer of a chain of segments. With k cuts in each: g(n) = k + g(n/(k + 1)) = k log(n) to the\n"
    "base k + 1 (Chen et al. 2016, equations 2 and 3). Halves, k = 1, need log2 n tensors, and two more (input and\n"
    "gradient). Each level of halves but the lowest runs n/2 layers once more. See it line by line: --timeline.\n\n"
    "The binomial form is the optimum where only states are kept (Griewank 1992). GCP_POLICY_RECURSIVE makes halves.",
    { solved_1, solved_2, solved_3 }, timeline_of_it };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/06_1.h>
#include <exercises/06_2.h>
#include <exercises/06_3.h>
