/* Lesson 02: the same on a tape

   Lesson 01's chain again, now with gcp. The work is the same, and so are the numbers. What is new: the bytes are
   known before the first step, and to the byte.

       record            plan                            bind          run
       a tape of ops ->  a list of instructions,     ->  memory    ->  a step, again and again
                         an address for each tensor

   Predict: 8 layers x -> tanh(w x) on 1,000 floats. How many bytes of what the layers made wait where forward is
   done? (The input and the loss do not count, as in lesson 01.) */
#include "gcp.h"
#include "lesson.h"

enum { LAYERS = 16, NUMBERS = 1000 };
static float input[NUMBERS];

static void start(void) { for (int k = 0; k < NUMBERS; k++) input[k] = (float)(k % 21 - 10) / 10; }
static float weight(int layer) { return 1.5f - 0.05f * (float)layer; }

/* ---- by hand, as in lesson 01. Returns the loss; *first is the gradient of the first weight ---- */

static double by_hand(int layers, double *first)
{
    static float made[LAYERS + 1][NUMBERS];
    static double gradient[NUMBERS];
    double loss = 0;
    memcpy(made[0], input, sizeof input);
    for (int i = 0; i < layers; i++)
        for (int k = 0; k < NUMBERS; k++) made[i + 1][k] = tanhf(weight(i) * made[i][k]);
    for (int k = 0; k < NUMBERS; k++) loss += made[layers][k] * made[layers][k] / NUMBERS;
    for (int k = 0; k < NUMBERS; k++) gradient[k] = 2 * made[layers][k] / NUMBERS;
    for (int i = layers - 1; i >= 0; i--) {
        *first = 0;
        for (int k = 0; k < NUMBERS; k++) {
            const double inner = gradient[k] * (1 - made[i + 1][k] * made[i + 1][k]);
            *first += inner * made[i][k];
            gradient[k] = inner * weight(i);
        }
    }
    return loss;
}

/* ---- on a tape, one thing after another ---- */

/* 1. An *arena* is memory that you give. The library never takes any itself. 2. A *tape* in it remembers which ops run
   on which tensors. Shapes are checked here; nothing is computed. (gcp_linear with one input and one output multiplies
   each of the 1,000 rows by its one weight.) */
static unsigned char tape_memory[GCP_MB(1)];
static gcp_arena arena;

static gcp_tensor record(int layers)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(NUMBERS, 1));
    for (int i = 0; i < layers; i++) x = gcp_tanh(gcp_linear(x, .out = 1, .no_bias = 1));
    return gcp_mean(gcp_mul(x, x));
}

/* 3. A *plan* turns the tape into a list of instructions, and gives each tensor an address. It is made for a *target*,
   a machine: this one has one thread and no vectors, so that its bytes are the same everywhere. KEEP_ALL is plain
   backpropagation. From here on the bytes are known. */
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };

static gcp_plan plan_of(gcp_tensor loss)
{
    return gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &one);
}

/* 4. To *bind* is to give the plan the memory that its step uses: plan.bytes of it. 5. gcp_step runs the list. Without
   an optimiser the gradients stay, to be read. */
static unsigned char step_memory[GCP_MB(1)];

static gcp_plan on_a_tape(int layers, double *loss, double *first)
{
    gcp_tensor end = record(layers);
    gcp_tape *net = end.tape;
    gcp_plan plan = plan_of(end);
    float gradient = 0;
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < layers; i++) gcp_write(&plan, gcp_nth_parameter(net, i), &(float) { weight(i) });
    gcp_write(&plan, gcp_find(net, "x"), input);
    *loss = gcp_step(&plan);
    gcp_grad(&plan, gcp_nth_parameter(net, 0), &gradient);
    *first = (double)gradient;
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    return plan;
}

/* plan.after_forward counts what waits, and the loss. */
static double waiting(const gcp_plan *plan) { return (double)(plan->after_forward - sizeof(float)); }

static void table(void)
{
    start();
    printf("layers   loss by hand   on a tape    gradient by hand   on a tape    bytes that wait   n x 4000\n");
    for (int n = 2; n <= LAYERS; n *= 2) {
        double first = 0, theirs, loss, hand = by_hand(n, &first);
        const gcp_plan plan = on_a_tape(n, &loss, &theirs);
        printf("%6d   %12.6f   %9.6f    %16.6f   %9.6f    %15.0f   %8d %s\n", n, hand, loss, first, theirs,
               waiting(&plan), n * 4000, lesson_same(waiting(&plan), n * 4000));
        lesson_differs += fabs(hand - loss) > 1e-5 || fabs(first - theirs) > 1e-5;
    }
    const gcp_plan plan = plan_of(record(8));
    lesson_picture("02_keep_all.svg", &plan, NULL);
    printf("Each bar is a tensor, from the instruction that makes it to the last that reads it.\n");
}

static double answer(void)
{
    double loss, first;
    start();
    const gcp_plan plan = on_a_tape(8, &loss, &first);
    return waiting(&plan);
}

/* ---- the exercises: exercises/02_1.h and 02_2.h ---- */

static gcp_tensor exercise_1(gcp_tensor x);
static size_t exercise_2(const gcp_plan *plan);

static int layer_of(int inputs)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(NUMBERS, inputs));
    gcp_plan plan = plan_of(gcp_mean(exercise_1(gcp_linear(x, .out = inputs))));
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); return 0; }
    return lesson_case("With exercise_1 the bytes that wait", waiting(&plan), NUMBERS * (inputs + 3) * 4);
}
static int slab_of(int layers)
{
    double loss, first;
    const gcp_plan plan = on_a_tape(layers, &loss, &first);
    return lesson_case("exercise_2", (double)exercise_2(&plan), (double)(plan.bytes - plan.state_bytes));
}
static int solved_1(void) { return layer_of(4); }
static int solved_2(void) { return slab_of(8); }

static const lesson self = { __FILE__, table, answer, "bytes",
    "Each layer is two ops, a product and a tanh. Which of their two outputs does backward read?",
#include "answers/02.h"
    ,
    "A plan is a list of instructions and an address for each tensor. gcp_plan_make checks it and counts its bytes;\n"
    "gcp_step only runs it.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/02_1.h>
#include <exercises/02_2.h>
