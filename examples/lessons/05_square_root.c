/* Lesson 05: the square root

   Cut a chain of n layers into segments of k. Long segments have few ends to keep, but much inside to make again;
   short ones the reverse. You will see that memory is n/k + k tensors, why the best k is the square root of n, what
   it costs, and that segments of as many layers are not segments of as many bytes.

   Here everything counts that a step holds at its peak: the input, what layers left, and the gradient that goes from
   layer to layer.

   Predict: 36 layers that leave a tensor each are cut into segments of 6. How many tensors are there at the peak? */
#include "gcp.h"
#include "lesson.h"
#include "timeline.h"

enum { LAYERS = 36, VALUES = 4096 };
static unsigned char tape_memory[GCP_MB(2)], step_memory[GCP_MB(4)], probe_memory[GCP_MB(4)];
static float input[VALUES];

static gcp_tape *start(gcp_arena *arena)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(arena, .ops = 128);
}

/* Layers of tanh: their backward reads what they made, not what went in, so a segment's end serves two layers. */
static gcp_tensor chain(gcp_tape *net, int n, int k)
{
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, VALUES), .want_grad = 1);
    for (int first = 0; first < n; first += k)
        GCP_SEGMENT(net, "segment")
            for (int layer = first; layer < first + k && layer < n; layer++) x = gcp_tanh(x);
    return gcp_mean(x);
}

/* Runs a step and measures what it touched, in whole tensors. again: layers that ran twice. k = 0: keep all. */
static int tensors(int n, int k, int *again)
{
    gcp_arena arena;
    gcp_tape *net = start(&arena);
    gcp_plan plan = gcp_plan_make(chain(net, n, k ? k : n), .policy = k ? GCP_POLICY_SEGMENTS : GCP_POLICY_KEEP_ALL);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, gcp_find(net, "x"), input);
    gcp_step(&plan);
    const size_t measured = gcp_measure(&plan, probe_memory, sizeof probe_memory);
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    *again = plan.instructions - (2 * n + 3);              /* n + 1 forward, as many backward, and backward's seed */
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
    gcp_arena arena;
    int again;
    const int all = tensors(LAYERS, 0, &again);
    printf("%d layers in segments of k, tensors at the peak:\n"
           "       k   n/k   n/k + k   measured   layers run again\n"
           "keep all          %2d + 2 %10d %s %16d\n", LAYERS, LAYERS, all, lesson_same(all, LAYERS + 2), again);
    for (int i = 0; i < 8; i++) {
        const int k = ks[i], measured = tensors(LAYERS, k, &again);
        printf("%8d %5d %9d %10d %s %16d\n", k, LAYERS / k, LAYERS / k + k, measured,
               lesson_same(measured, LAYERS / k + k), again);
    }
    printf("\nLayers whose bytes shrink; kept all, %zu bytes:\nsegments   of as many layers   with .balance\n",
           uneven_bytes(1, 0));
    for (int s = 2; s <= 10; s += 2) printf("%8d   %17zu   %13zu\n", s, uneven_bytes(s, 0), uneven_bytes(s, 1));
    const gcp_tensor loss = chain(start(&arena), LAYERS, 6);
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL), plan = gcp_plan_make(loss);
    lesson_picture("05_square_root.svg", &plan, &keep);
}

static void timeline_of_it(void)
{
    gcp_arena arena;
    const gcp_plan plan = gcp_plan_make(chain(start(&arena), LAYERS, 6), .policy = GCP_POLICY_SEGMENTS);
    timeline_print(&plan);
}

static double answer(void)
{
    int again;
    return tensors(36, 6, &again);
}

/* ---- the exercises: exercises/05_1.h and 05_2.h ---- */

static int exercise_1(int n);
static int exercise_2(const int *bytes, const int *cut, int n);

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
    return lesson_case("exercise_2 of 8 4 2 1 1 2 4 8, cut 0 0 0 1 0 0 0 0", exercise_2(bytes, middle, 8), 16) &&
           lesson_case("exercise_2 of 8 4 2 1 1 2 4 8, cut 0 1 0 0 0 1 0 0", exercise_2(bytes, two, 8), 18) &&
           lesson_case("exercise_2 of 1 2 3 4, cut 1 0 0 0", exercise_2(rising, early, 4), 10);
}

static const lesson self = { __FILE__, table, answer, "tensors",
    "Five ends are still kept when the last segment runs again: its own end was used up at once, by layer 36's\n"
    "backward. How many outputs inside of that segment are made again? And which two tensors are no output of a layer?",
#include "answers/05.h"
    ,
    "memory(k) = n/k + k. Its slope 1 - n/k^2 is 0 at k = sqrt(n), where it is 2 sqrt(n) (Chen et al. 2016, eq. 1,\n"
    "with k for the number of segments). All but the segments' ends run twice: at most one more forward. (k = 36 has\n"
    "no end to keep but the last, used up at once. Other policies spare the last segment, which is wanted at once.\n"
    "And the formula is that of layers whose backward reads what they made alone.) See it line by line: --timeline.\n\n"
    "The formula counts tensors of one size. In the second table the first layers are large: the first of two\n"
    "segments of as many layers holds nearly all bytes. .balance cuts at as many bytes where that is better, here up\n"
    "to 4 segments. Or leave the cuts to GCP_POLICY_SQRT and GCP_POLICY_BUDGET.",
    { solved_1, solved_2 }, timeline_of_it };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/05_1.h>
#include <exercises/05_2.h>
