#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- what a segment keeps (what crosses its border) and what is run again (its inside);\n"
    "- that loss and gradients are the same bits, and why;\n"
    "- what breaks that promise, and how .check finds it.";

static const char question[] =
    "8 layers in a row, each leaves one tensor of 65,536 bytes. Layers 2 to 5 are put into one segment. How many\n"
    "bytes wait for backward where forward is done? (Again: the loss's 4 bytes count, the input does not.)";

/* ---- the program ---- */

enum { LAYERS = 8, UNIT = 4 * 16 * 16 * 16 * 4 };          /* batch, height, width, channels; 4 bytes a float */
static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(4)];

/* A layer whose forward is not a function of its input: it counts its own calls. Nobody may do this. */
static int calls;
static int same_shape(gcp_shape_call *call) { call->out[0] = call->in[0]; return 1; }
static void wrong_forward(const gcp_call *call)
{
    const gcp_shape s = call->out[0].shape;
    float *y = call->out[0].data;
    const float *x = call->in[0].data;
    calls++;
    for (int i = 0; i < s.d[0] * s.d[1] * s.d[2] * s.d[3]; i++) y[i] = x[i] + 0.001f * (float)calls;
}
static void wrong_backward(const gcp_call *call)
{
    const gcp_shape s = call->out[0].shape;
    for (int i = 0; call->din[0].data && i < s.d[0] * s.d[1] * s.d[2] * s.d[3]; i++)
        ((float *)call->din[0].data)[i] = ((float *)call->dout[0].data)[i];
}
static const gcp_op wrong = { .name = "wrong", .shape = same_shape, .forward = wrong_forward,
                              .backward = wrong_backward, .outputs = 1 };

/* Layers 2 to 1 + inside are one segment. */
static gcp_tensor record(gcp_arena *arena, int inside, int broken)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(arena, .ops = 64);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 16, 16, 16));
    x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    GCP_SEGMENT(net, "segment")
        for (int i = 0; i < inside; i++) {
            x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
            if (broken && i == 1) x = gcp_custom(&x, 1, &wrong);
        }
    for (int i = 1 + inside; i < LAYERS; i++) x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    return gcp_mean(gcp_mul(x, x));
}

static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */

typedef struct result { gcp_plan plan; double loss; float gradient[16 * 9 * 16]; const char *error; } result;

/* One step; the gradient of the first layer has come through all others. */
static result run(gcp_policy policy, int inside, int broken)
{
    static float x[4 * 16 * 16 * 16];
    static gcp_arena arena;
    result r = { .error = NULL };
    const gcp_tensor loss = record(&arena, inside, broken);
    r.plan = gcp_plan_make(loss, .policy = policy, .check = broken ? GCP_CHECK : 0,
                           .target = &one);
    gcp_bind(&r.plan, step_memory, sizeof step_memory);
    for (int i = 0; i < 4 * 16 * 16 * 16; i++) x[i] = (float)(i % 17 - 8) / 8;
    gcp_write(&r.plan, gcp_find(loss.tape, "x"), x);
    r.loss = gcp_step(&r.plan);
    gcp_grad(&r.plan, gcp_nth_parameter(loss.tape, 0), r.gradient);
    r.error = gcp_error(loss.tape);
    return r;
}

static void table(void)
{
    const result all = run(GCP_POLICY_KEEP_ALL, 4, 0);
    printf("k layers inside  after forward  (8 - (k - 1)) x 65536 + 4     peak  segments rerun  same loss  gradient\n");
    printf("       keep all  %13zu  %25d   %6zu  %14d\n", all.plan.after_forward, LAYERS * UNIT + 4, all.plan.bytes, 0);
    for (int k = 2; k <= 6; k++) {
        const result r = run(GCP_POLICY_SEGMENTS, k, 0);
        const int same = !memcmp(&r.loss, &all.loss, sizeof r.loss),
                  bits = !memcmp(r.gradient, all.gradient, sizeof r.gradient), formula = (LAYERS - (k - 1)) * UNIT + 4;
        printf("%15d  %13zu  %25d %s %6zu  %14d  %9s  %8s\n", k, r.plan.after_forward, formula,
               lesson_same((double)r.plan.after_forward, formula), r.plan.bytes, r.plan.reruns, same ? "yes" : "NO",
               bits ? "yes" : "NO");
        lesson_differs += !same + !bits;
    }
    const result broken = run(GCP_POLICY_SEGMENTS, 4, 1);
    printf("\nWith a layer inside that counts its calls, and .check = GCP_CHECK:\n%s\n",
           broken.error ? broken.error : "NO ERROR");
    lesson_differs += !broken.error;
}

static double answer(void) { return (double)run(GCP_POLICY_SEGMENTS, 4, 0).plan.after_forward; }

static const char why[] =
    "The segment's output crosses its border: kept. Its 3 inner outputs are dropped, 8 - 3 = 5 tensors wait. Backward\n"
    "makes the 3 again from the segment's input, which layer 1 left anyway.";

static const char explain[] =
    "running again is the same call on the same input, so it gives the same bits: nothing is approximated. A segment\n"
    "of k layers drops k - 1 tensors for one more forward of them (Chen et al. 2016, algorithm 1). The peak falls\n"
    "until k = 4; from there on the inside that backward makes again is the larger part: lesson 05. What is not a\n"
    "function of its inputs (a counter, a clock, rand()) must not stand in a segment; lesson 09 has the rest.";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/04.h"
#else
static int exercise_1(int layers, int first, int second) { return 0 * layers * first * second; }
static float exercise_2(float x, int index) { return x + 0 * (float)index + 0.001f * (float)calls++; }
#endif

static int solved_1(void)
{
    return GIVES(exercise_1(8, 4, 2), 4) && GIVES(exercise_1(20, 5, 5), 12) &&
           GIVES(exercise_1(3, 1, 1), 3);
}
static int solved_2(void)
{
    const float a = exercise_2(1, 3), b = exercise_2(1, 4), other = exercise_2(2, 3);
    int good = memcmp(&a, &b, sizeof a) != 0 && fabsf(other - a - 1) < 1e-4f;
    if (!good) printf("exercise_2(1, 3) gives %g, (1, 4) %g, (2, 3) %g: it should add what index gives to x.\n",
                      (double)a, (double)b, (double)other);
    for (int i = 0; i < 20; i++) {
        const float again = exercise_2(1, 3);
        if (i % 3) exercise_2(1, i);
        if (good && memcmp(&a, &again, sizeof a)) printf("exercise_2(1, 3) gave %g, and now gives %g.\n", (double)a,
                                                         (double)again);
        good &= !memcmp(&a, &again, sizeof a);
    }
    return good;
}

static const lesson self = {
    "04: one segment", learn, question, table, answer, "bytes", why, explain,
    { "Make exercise_1 the tensors that wait when of so many layers two segments are made, of `first` and `second`\n"
      "   ones (layers outside of them stand between and after).",
      "exercise_2 adds another number in each call. Make it add one that depends on the element's index alone (any\n"
      "   number between 0 and 1): then it may run again. gcp_dropout draws its random numbers so." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
