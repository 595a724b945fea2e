/* Lesson 04: one segment

   A segment is a piece of the network whose inside is dropped in forward and run again in backward. You will see
   what is kept (what crosses the segment's border) and what is run again, that loss and gradients have the same
   bits, and what would break that promise.

   Predict: 8 layers in a row leave one tensor of 65,536 bytes each. Layers 2 to 5 are put into one segment. How many
   bytes wait where forward is done? (The input and the loss do not count.) */
#include "gcp.h"
#include "lesson.h"

enum { LAYERS = 8, PIXELS = 4 * 16 * 16 * 16, UNIT = PIXELS * 4 };         /* 4 images of 16 x 16, 16 channels */
static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(4)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */

/* A layer that must not stand in a segment: its forward is no function of its input, as it counts its own calls. */
static int calls;
static int same_shape(gcp_shape_call *call) { call->out[0] = call->in[0]; return 1; }
static void wrong_forward(const gcp_call *call)
{
    float *y = call->out[0].data;
    const float *x = call->in[0].data;
    calls++;
    for (int i = 0; i < PIXELS; i++) y[i] = x[i] + 0.001f * (float)calls;
}
static void wrong_backward(const gcp_call *call)
{
    for (int i = 0; call->din[0].data && i < PIXELS; i++)
        ((float *)call->din[0].data)[i] = ((float *)call->dout[0].data)[i];
}
static const gcp_op wrong = { .name = "wrong", .shape = same_shape, .forward = wrong_forward,
                              .backward = wrong_backward, .outputs = 1 };

/* Layer 1, then `inside` layers in a segment, then the rest. A block in braces behind GCP_SEGMENT is the segment. */
static gcp_tensor record(gcp_arena *arena, int inside, int broken)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(arena, .ops = 64);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 16, 16, 16));
    x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    GCP_SEGMENT(net, "segment") {
        for (int i = 0; i < inside; i++) {
            x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
            if (broken && i == 1) x = gcp_custom(&x, 1, &wrong);
        }
    }
    for (int i = 1 + inside; i < LAYERS; i++) x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    return gcp_mean(gcp_mul(x, x));
}

typedef struct result { gcp_plan plan; double loss; float gradient[16 * 9 * 16]; const char *error; } result;

/* One step. The gradient of the first layer's weights has come through all other layers. */
static result run(gcp_policy policy, int inside, int broken)
{
    static float x[PIXELS];
    static gcp_arena arena;
    result r = { .error = NULL };
    const gcp_tensor loss = record(&arena, inside, broken);
    r.plan = gcp_plan_make(loss, .policy = policy, .check = broken ? GCP_CHECK : 0, .target = &one);
    gcp_bind(&r.plan, step_memory, sizeof step_memory);
    for (int i = 0; i < PIXELS; i++) x[i] = (float)(i % 17 - 8) / 8;
    gcp_write(&r.plan, gcp_find(loss.tape, "x"), x);
    r.loss = gcp_step(&r.plan);
    gcp_grad(&r.plan, gcp_nth_parameter(loss.tape, 0), r.gradient);
    r.error = gcp_error(loss.tape);
    return r;
}

static int waiting(const gcp_plan *p) { return (int)p->after_forward - 4; }   /* without the loss */

static void table(void)
{
    const result all = run(GCP_POLICY_KEEP_ALL, 4, 0);
    printf("k layers inside  bytes that wait  (8 - (k - 1)) x 65536     peak  segments run again  same loss  "
           "gradient\n");
    printf("       keep all  %15d  %21d   %6zu  %18d\n", waiting(&all.plan), LAYERS * UNIT, all.plan.bytes, 0);
    for (int k = 2; k <= 6; k++) {
        const result r = run(GCP_POLICY_SEGMENTS, k, 0);
        const int same = !memcmp(&r.loss, &all.loss, sizeof r.loss),
                  bits = !memcmp(r.gradient, all.gradient, sizeof r.gradient), formula = (LAYERS - (k - 1)) * UNIT;
        printf("%15d  %15d  %21d %s %6zu  %18d  %9s  %8s\n", k, waiting(&r.plan), formula,
               lesson_same(waiting(&r.plan), formula), r.plan.bytes, r.plan.reruns, same ? "yes" : "NO",
               bits ? "yes" : "NO");
        lesson_differs += !same + !bits;
    }
    const result broken = run(GCP_POLICY_SEGMENTS, 4, 1);
    printf("\nWith the layer that counts its calls inside, and .check = GCP_CHECK:\n%s\n",
           broken.error ? broken.error : "NO ERROR");
    lesson_differs += !broken.error;
    gcp_arena arena;
    const gcp_tensor loss = record(&arena, 4, 0);
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &one),
                   plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .target = &one);
    lesson_picture("04_segment.svg", &plan, &keep);
}

static double answer(void)
{
    const result r = run(GCP_POLICY_SEGMENTS, 4, 0);
    return waiting(&r.plan);
}

/* ---- the exercises: exercises/04_1.h and 04_2.h ---- */

static int exercise_1(int layers, int first, int second);
static float exercise_2(float x, int index);

static int solved_1(void)
{
    return GIVES(exercise_1(8, 4, 2), 4) && GIVES(exercise_1(20, 5, 5), 12) && GIVES(exercise_1(3, 1, 1), 3);
}
/* Another number for each index, the same in each call, and x besides. */
static int solved_2(void)
{
    const float a = exercise_2(1, 3), b = exercise_2(1, 4), other = exercise_2(2, 3);
    int good = memcmp(&a, &b, sizeof a) != 0 && fabsf(other - a - 1) < 1e-4f;
    if (!good) printf("exercise_2(1, 3) gives %g, (1, 4) %g, (2, 3) %g: it should add what index gives to x.\n",
                      (double)a, (double)b, (double)other);
    for (int i = 0; i < 20 && good; i++) {
        if (i % 3) exercise_2(1, i);
        const float again = exercise_2(1, 3);
        good = !memcmp(&a, &again, sizeof a);
        if (!good) printf("exercise_2(1, 3) gave %g, and now gives %g.\n", (double)a, (double)again);
    }
    return good;
}

static const lesson self = { __FILE__, table, answer, "bytes",
    "Of the four layers in the segment, which outputs does somebody outside of it read?",
#include "answers/04.h"
    ,
    "Running again is the same call on the same input, so it gives the same bits: nothing is approximated. A segment\n"
    "of k layers drops k - 1 tensors, for one more forward of all layers but its last (Chen et al. 2016, algorithm\n"
    "1). The peak falls until k = 4; from there on the inside that backward makes again is the larger part: lesson\n"
    "05. What is no function of its inputs (a counter, a clock, rand()) must not stand in a segment; lesson 09 has\n"
    "the rest.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/04_1.h>
#include <exercises/04_2.h>
