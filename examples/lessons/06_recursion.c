#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- that segments inside segments need about log n tensors, for n log n work;\n"
    "- how many steps a time-stepping program must run again when it has room for s states (Revolve);\n"
    "- that both trade the same things: memory, and running forward again.";

static const char question[] =
    "a simulation of 64 steps is gone through backwards, and there is room for 4 states, the first among them. How\n"
    "many steps are run forward in all, to get at the states that backward needs? (A guess will do; with room for 1\n"
    "state it is 63 + 62 + ... + 1 = 2016.)";

/* ---- the program: segments inside segments ---- */

enum { VALUES = 4096, MOST = 256 };
static unsigned char tape_memory[GCP_MB(8)], step_memory[GCP_MB(8)], probe_memory[GCP_MB(8)];
static float input[VALUES];

/* A segment of two halves, which are segments of two halves. What crosses a half's end is one tensor. */
static gcp_tensor halves(gcp_tape *net, gcp_tensor x, int layers)
{
    if (layers == 1) return gcp_tanh(x);
    GCP_SEGMENT(net, "half") x = halves(net, x, layers / 2);
    GCP_SEGMENT(net, "half") x = halves(net, x, layers / 2);
    return x;
}

/* Whole tensors that a step touches; runs: layers run forward, the first time and again. */
static int tensors(int layers, int *runs)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 2 * MOST);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, VALUES), .want_grad = 1);
    gcp_plan plan = gcp_plan_make(gcp_mean(halves(net, x, layers)), .policy = GCP_POLICY_SEGMENTS);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, x, input);
    gcp_step(&plan);
    const size_t measured = gcp_measure(&plan, probe_memory, sizeof probe_memory);
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    *runs = plan.instructions - (layers + 3);              /* backward, its seed, the mean and its backward */
    return (int)(measured / sizeof input);
}

/* ---- time-stepping: only states can be kept, and a step's backward needs the state before it ---- */

enum { STEPS = 64 };
static int best[STEPS + 1][STEPS + 1], split[STEPS + 1][STEPS + 1];

/* best[l][s]: the fewest advances to go back through l steps with s states, by trying every place for the next one. */
static void solve(void)
{
    for (int s = 1; s <= STEPS; s++)
        for (int l = 1; l <= STEPS; l++) {
            best[l][s] = l == 1 ? 0 : s == 1 ? l * (l - 1) / 2 : 1 << 30;
            for (int j = 1; s > 1 && j < l; j++) {
                const int cost = j + best[l - j][s - 1] + best[j][s];
                if (cost < best[l][s]) { best[l][s] = cost; split[l][s] = j; }
            }
        }
}

/* Goes back through l steps and counts the steps that it runs forward on the way. A state is kept at the split. */
static int reverse(int l, int s)
{
    if (l == 1) return 0;
    if (s == 1) return l - 1 + reverse(l - 1, 1);          /* from the start to the last step, then one less */
    const int j = split[l][s];
    return j + reverse(l - j, s - 1) + reverse(j, s);
}

static double binomial(int n, int k)
{
    double b = 1;
    for (int i = 1; i <= k; i++) b = b * (n - k + i) / i;
    return floor(b + 0.5);
}

/* Griewank and Walther 2000: with r the least that l <= beta(s, r) = C(s + r, s), it is r l - beta(s + 1, r - 1). */
static double formula(int l, int s)
{
    int r = 0;
    while (binomial(s + r, s) < l) r++;
    return r * l - (r ? binomial(s + r, s + 1) : 0);
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
    solve();
    printf("\nSteps run forward to go back through n steps with s states (each as counted, and by the formula):\n   n");
    for (int s = 1; s <= 6; s++) printf("        s = %d", s);
    for (int n = 4; n <= STEPS; n *= 2) {
        printf("\n%4d", n);
        for (int s = 1; s <= 6; s++)
            printf(" %5d %s %4.0f", reverse(n, s), lesson_same(reverse(n, s), formula(n, s)), formula(n, s));
    }
    printf("\n");
}

static double answer(void)
{
    solve();
    return reverse(64, 4);
}

static const char why[] =
    "With C(n, k) for n! / (k! (n - k)!): 4 states reverse C(4 + 4, 4) = 70 steps if none is run more than r = 4\n"
    "times, so 4 x 64 runs are enough, and C(8, 5) = 56 of them can be left out: 200.";

static const char explain[] =
    "a segment is one layer of a chain of segments. With k cuts in each: g(n) = k + g(n/(k + 1)) = k log(n) to the\n"
    "base k + 1 (Chen et al. 2016, equations 2 and 3). Halves, k = 1: log2 n tensors, and two (input and gradient).\n"
    "Each level of halves but the\n"
    "lowest runs n/2 layers once more.\n"
    "Revolve's binomial form is the optimum where only states are kept. GCP_POLICY_RECURSIVE makes halves.";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/06.h"
#else
static int exercise_1(int states, int times) { return 0 * states * times; }
static int exercise_2(int steps, int times) { return 0 * steps * times; }
#endif

static int solved_1(void) 
{
    return GIVES(exercise_1(4, 4), 70) && GIVES(exercise_1(3, 2), 10) && GIVES(exercise_1(10, 3), 286);
}
static int solved_2(void)
{
    return GIVES(exercise_2(64, 4), 4) && GIVES(exercise_2(10, 2), 3) && GIVES(exercise_2(70, 4), 4) &&
           GIVES(exercise_2(1000, 3), 17);
}

static const lesson self = {
    "06: recursion", learn, question, table, answer, "steps", why, explain,
    { "Make exercise_1 the longest simulation that so many states reverse, no step being run more than so many times.",
      "Make exercise_2 the fewest states for so many steps, no step being run more than so many times." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
