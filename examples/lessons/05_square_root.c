#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- what n layers need when they are cut into segments of k: n/k + k tensors;\n"
    "- why the best k is the square root of n, and what it costs;\n"
    "- that segments of equally many layers are not segments of equally many bytes.";

static const char question[] =
    "36 layers that leave a tensor each are cut into segments of 6. How many tensors does a step need at its peak?\n"
    "The input counts, and so does the gradient that goes from layer to layer.";

/* ---- the program: even layers ---- */

enum { LAYERS = 36, VALUES = 4096 };
static unsigned char tape_memory[GCP_MB(2)], step_memory[GCP_MB(4)], probe_memory[GCP_MB(4)];
static float input[VALUES];

static gcp_tape *start(gcp_arena *arena)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(arena, .ops = 128);
}

static gcp_tensor chain(gcp_tape *net, int n, int k)
{
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, VALUES), .want_grad = 1);
    for (int first = 0; first < n; first += k)
        GCP_SEGMENT(net, "segment")
            for (int layer = first; layer < first + k && layer < n; layer++) x = gcp_tanh(x);
    return gcp_mean(x);
}

/* Runs a step, and measures what it touched, in whole tensors. reruns: layers that ran twice. */
static int tensors(int n, int k, int *reruns)
{
    gcp_arena arena;
    gcp_tape *net = start(&arena);
    gcp_plan plan = gcp_plan_make(chain(net, n, k), .policy = GCP_POLICY_SEGMENTS);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, gcp_find(net, "x"), input);
    gcp_step(&plan);
    const size_t measured = gcp_measure(&plan, probe_memory, sizeof probe_memory);
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    *reruns = plan.instructions - (2 * n + 3);             /* n + 1 forward, as many backward, and backward's seed */
    return (int)(measured / sizeof input);
}

/* ---- uneven layers: the first leave the most, as in a network that classifies images ---- */

static gcp_tensor narrowing(gcp_tape *net)
{
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 64, 64, 1), .want_grad = 1);
    for (int i = 0; i < 4; i++) {
        for (int layer = 0; layer < 6; layer++) x = gcp_tanh(x);
        x = gcp_avg_pool(x, .k = 2);                       /* a quarter of the bytes from here */
    }
    return gcp_mean(x);
}

static size_t uneven_bytes(int segments, int balance)
{
    gcp_arena arena;
    gcp_tape *net = start(&arena);
    const gcp_tensor loss = narrowing(net);
    const gcp_plan plan = segments > 1 ? gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = segments,
                                                       .balance = balance)
                                       : gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    return plan.slab_bytes;
}

static void table(void)
{
    static const int ks[] = { 2, 3, 4, 6, 9, 12, 18, 36 };
    int reruns;
    printf("%d layers in segments of k:\n    k   n/k   n/k + k   measured   layers run again\n", LAYERS);
    for (int i = 0; i < 8; i++) {
        const int k = ks[i], measured = tensors(LAYERS, k, &reruns);
        printf("%5d %5d %9d %10d %s %16d\n", k, LAYERS / k, LAYERS / k + k, measured,
               lesson_same(measured, LAYERS / k + k), reruns);
    }
    printf("\nLayers whose bytes shrink; kept all, %zu bytes:\nsegments   of as many layers   with .balance\n",
           uneven_bytes(1, 0));
    for (int s = 2; s <= 10; s += 2) printf("%8d   %17zu   %13zu\n", s, uneven_bytes(s, 0), uneven_bytes(s, 1));
}

static double answer(void)
{
    int reruns;
    return tensors(36, 6, &reruns);
}

static const char why[] =
    "The input and the ends of 5 segments are kept: 36/6 = 6 tensors. (The sixth end is used up by the first\n"
    "backward.) Backward holds the inside of one segment at a time, 5, and one gradient, which works in place:\n"
    "6 + 5 + 1.";

static const char explain[] =
    "memory(k) = n/k + k. Its slope 1 - n/k^2 is 0 at k = sqrt(n), where it is 2 sqrt(n) (Chen et al. 2016, eq. 1,\n"
    "with k for the number of segments). All but the segments' ends run twice: at most one more forward. (k = 36 has\n"
    "no end to keep but the last, used up at once. Other policies spare the last segment, which is wanted at once.)\n"
    "The formula counts tensors of one size. In the second table the first layers are large: the first of two\n"
    "segments of as many layers holds nearly all bytes. .balance cuts at as many bytes where that is better, here\n"
    "up to 4 segments. Or leave the cuts to GCP_POLICY_SQRT and GCP_POLICY_BUDGET.";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/05.h"
#else
static int exercise_1(int n) { return 0 * n; }
static int exercise_2(const int *bytes, const int *cut, int n) { return 0 * bytes[0] * cut[0] * n; }
#endif

static int solved_1(void)
{
    return GIVES(exercise_1(36), 6) && GIVES(exercise_1(64), 8) &&
           (exercise_1(12) == 3 || GIVES(exercise_1(12), 4)) && (exercise_1(7) == 1 || GIVES(exercise_1(7), 7));
}
static int solved_2(void)
{
    static const int bytes[] = { 8, 4, 2, 1, 1, 2, 4, 8 }, middle[] = { 0, 0, 0, 1, 0, 0, 0, 0 },
                     two[] = { 0, 1, 0, 0, 0, 1, 0, 0 };
    static const int rising[] = { 1, 2, 3, 4 }, early[] = { 1, 0, 0, 0 };
    return lesson_case("For bytes 8 4 2 1 1 2 4 8, cut 0 0 0 1 0 0 0 0 exercise_2", exercise_2(bytes, middle, 8), 16) &&
           lesson_case("For bytes 8 4 2 1 1 2 4 8, cut 0 1 0 0 0 1 0 0 exercise_2", exercise_2(bytes, two, 8), 18) &&
           lesson_case("For bytes 1 2 3 4, cut 1 0 0 0 exercise_2", exercise_2(rising, early, 4), 10);
}

static const lesson self = {
    "05: the square root", learn, question, table, answer, "tensors", why, explain,
    { "Make exercise_1 the k, among those that divide n, of the least n/k + k.",
      "Layers leave bytes[0] to bytes[n - 1]; cut[i] is 1 where a segment ends after layer i. Make exercise_2 the\n"
      "   bytes of Chen's rule: those at the cuts, and the most that one segment leaves (its own end is part of it)." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
