#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- how to record lesson 01's chain on a tape, plan a step, bind memory and run it;\n"
    "- that the numbers are the same as by hand: it is the same backpropagation;\n"
    "- that the bytes are known before the first step, and to the byte.";

static const char question[] =
    "the same chain: 8 layers, x -> tanh(w x), on 1,000 floats. How many bytes wait for backward where\n"
    "forward is done? Leave out the input, which gcp counts apart, and count the loss, one float.";

/* ---- by hand, as in lesson 01 ---- */

enum { LAYERS = 16, NUMBERS = 1000 };
static float input[NUMBERS], kept[LAYERS + 1][NUMBERS];

static void start(void) { for (int k = 0; k < NUMBERS; k++) kept[0][k] = input[k] = (float)(k % 21 - 10) / 10; }
static float weight(int layer) { return 1.5f - 0.05f * (float)layer; }

/* Returns the loss; *first: the gradient of the first weight. */
static double by_hand(int layers, double *first)
{
    static double gradient[NUMBERS];
    double loss = 0;
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < NUMBERS; k++) kept[i + 1][k] = tanhf(weight(i) * kept[i][k]);
    for (int k = 0; k < NUMBERS; k++) loss += kept[layers][k] * kept[layers][k] / NUMBERS;
    for (int k = 0; k < NUMBERS; k++) gradient[k] = 2 * kept[layers][k] / NUMBERS;
    for (int i = layers - 1; i >= 0; i--) {
        *first = 0;
        for (int k = 0; k < NUMBERS; k++) {
            const double inner = gradient[k] * (1 - kept[i + 1][k] * kept[i + 1][k]);
            *first += inner * kept[i][k];
            gradient[k] = inner * weight(i);
        }
    }
    return loss;
}

/* ---- on a tape ---- */

static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(1)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */

/* gcp_linear with one input and one output multiplies each of the 1,000 rows by one weight. */
static gcp_tensor record(gcp_tape *net, int layers)
{
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(NUMBERS, 1));
    for (int i = 0; i < layers; i++) x = gcp_tanh(gcp_linear(x, .out = 1, .no_bias = 1));
    return gcp_mean(gcp_mul(x, x));
}

static gcp_plan on_a_tape(int layers, double *loss, double *first)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    gcp_plan plan = gcp_plan_make(record(net, layers), .policy = GCP_POLICY_KEEP_ALL, .target = &one);
    float gradient = 0;
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < layers; i++) gcp_write(&plan, gcp_nth_parameter(net, i), &(float) { weight(i) });
    gcp_write(&plan, gcp_find(net, "x"), input);
    *loss = gcp_step(&plan);                                /* no optimiser: the gradients stay to be read */
    gcp_grad(&plan, gcp_nth_parameter(net, 0), &gradient);
    *first = (double)gradient;
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    return plan;
}

static void table(void)
{
    start();
    printf("layers   loss by hand   on a tape    gradient by hand   on a tape    after forward   n x 4000 + 4\n");
    for (int n = 2; n <= LAYERS; n *= 2) {
        double first = 0, theirs, loss, hand = by_hand(n, &first);
        const gcp_plan plan = on_a_tape(n, &loss, &theirs);
        printf("%6d   %12.6f   %9.6f    %16.6f   %9.6f    %13zu   %12d %s\n", n, hand, loss, first, theirs,
               plan.after_forward, n * 4000 + 4, lesson_same((double)plan.after_forward, n * 4000.0 + 4));
        lesson_differs += fabs(hand - loss) > 1e-5 || fabs(first - theirs) > 1e-5;
    }
}

static double answer(void)
{
    double loss, first;
    start();
    return (double)on_a_tape(8, &loss, &first).after_forward;
}

static const char why[] =
    "8 outputs of 1,000 floats wait, and the loss. gcp_linear's own output waits for nobody: tanh's backward reads\n"
    "what tanh made, so tanh may work in place, in the same bytes.";

static const char explain[] =
    "a plan is a list of instructions and an address for each tensor. gcp_plan_make checks it and counts its bytes;\n"
    "gcp_step only runs it. KEEP_ALL is plain backpropagation.";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/02.h"
#else
static gcp_tensor exercise_1(gcp_tensor x) { return x; }
static size_t exercise_2(const gcp_plan *plan) { return 0 * plan->bytes; }
#endif

static gcp_tape *tape_with(gcp_arena *arena, gcp_tensor *x)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(arena, .ops = 64);
    *x = gcp_input(net, "x", GCP_SHAPE(NUMBERS, 4));
    return net;
}
static int solved_1(void)
{
    gcp_arena arena;
    gcp_tensor x;
    gcp_tape *net = tape_with(&arena, &x);
    gcp_plan plan = gcp_plan_make(gcp_mean(exercise_1(gcp_linear(x, .out = 4))), .policy = GCP_POLICY_KEEP_ALL,
                                  .target = &one);
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); return 0; }
    return lesson_case("Forward's end with exercise_1", (double)plan.after_forward, NUMBERS * 7 * 4 + 4);
}
static int solved_2(void)
{
    double loss, first;
    const gcp_plan plan = on_a_tape(8, &loss, &first);
    return lesson_case("exercise_2", (double)exercise_2(&plan), (double)(plan.bytes - plan.state_bytes));
}

static const lesson self = {
    "02: the same on a tape", learn, question, table, answer, "bytes", why, explain,
    { "Make exercise_1 a layer with 3 outputs and then tanh, so that 1,000 x 4 and 1,000 x 3 floats wait for backward.",
      "Make exercise_2 all bytes of a step but the weights' and what else outlives it: look for gcp_plan in gcp.h." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
