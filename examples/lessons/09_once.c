/* Lesson 09: what must not happen twice

   Some work must be done once a step: a batch-norm updates a running mean, a dropout draws random numbers. You will
   see what a framework gets that runs a segment again as it stands, and how gcp avoids it: ops that run once, and
   numbers drawn from a counter.

   Predict: a batch-norm's running mean m begins at 0, and a forward makes it 0.9 m + 0.1 b, with b the batch's mean.
   The batch's mean is 10. What is m after one step if the forward runs twice, and nobody takes care? */
#include "gcp.h"
#include "lesson.h"

enum { N = 8, C = 4 };                                     /* images; channels */
static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(4)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */

typedef struct result { double loss; float mean[C]; float gradient[C * 9 * C]; int reruns; size_t bytes; } result;

/* Two segments, each with a batch-norm and a dropout. The first batch-norm is on the image: its mean is known. */
static gcp_tensor record(gcp_arena *arena)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(arena, .ops = 64, .seed = 7);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(N, 8, 8, C));
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "segment") {
            x = gcp_tanh(gcp_conv2d(gcp_batch_norm(x), .out = C, .k = 3, .pad = 1));
            x = gcp_dropout(x, .rate = 0.5);
        }
    return gcp_mean(gcp_mul(x, x));
}

static result run(gcp_policy policy)
{
    static float x[N * 8 * 8 * C];
    gcp_arena arena;
    result r = { .loss = 0 };
    const gcp_tensor loss = record(&arena);
    gcp_tape *net = loss.tape;
    gcp_plan plan = gcp_plan_make(loss, .policy = policy, .target = &one);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int i = 0; i < N * 8 * 8 * C; i++) x[i] = (float)(i / C % 2 ? 11 : 9);      /* the mean is 10 */
    gcp_write(&plan, gcp_find(net, "x"), x);
    r.loss = gcp_step(&plan);
    gcp_read(&plan, gcp_find(net, "segment[0]/batch_norm[0]/running_mean"), r.mean);
    gcp_grad(&plan, gcp_find(net, "segment[0]/conv2d[0]/weight"), r.gradient);
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    r.reruns = plan.reruns;
    r.bytes = plan.bytes;
    return r;
}

/* What a forward that runs so many times makes of the running mean. */
static double updated(int times)
{
    double m = 0;
    for (int i = 0; i < times; i++) m = 0.9 * m + 0.1 * 10;
    return m;
}

static void table(void)
{
    static const struct { const char *name; gcp_policy policy; } rows[] = {
        { "keep all", GCP_POLICY_KEEP_ALL }, { "segments", GCP_POLICY_SEGMENTS }, { "cheap", GCP_POLICY_CHEAP }
    };
    const result all = run(GCP_POLICY_KEEP_ALL);
    printf("policy      bytes   segments run again   running mean   updated once       loss   gradients\n");
    for (int i = 0; i < 3; i++) {
        const result r = run(rows[i].policy);
        const int same = !memcmp(&r.loss, &all.loss, sizeof r.loss) && !memcmp(r.mean, all.mean, sizeof r.mean) &&
                         !memcmp(r.gradient, all.gradient, sizeof r.gradient);
        printf("%-9s %7zu   %18d   %12.6f   %12.6f %s   %.6f   %s\n", rows[i].name, r.bytes, r.reruns,
               (double)r.mean[0],
               updated(1), lesson_same((double)r.mean[0], updated(1)), r.loss, same ? "same bits" : "OTHER BITS");
        lesson_differs += !same;
    }
    printf("\nUpdated twice the mean would be %.6f, with no error and no warning.\n", updated(2));
    gcp_arena arena;
    const gcp_tensor loss = record(&arena);
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &one),
                   plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .target = &one);
    lesson_picture("09_segments.svg", &plan, &keep);
}

static double answer(void) { return updated(2); }

/* ---- the exercises: exercises/09_1.h and 09_2.h ---- */

static double exercise_1(double momentum);
static int exercise_2(unsigned seed, unsigned step, unsigned element);

/* Applied twice, the new momentum is the old one. */
static int solved_1(void)
{
    return GIVES(pow(exercise_1(0.9), 2), 0.9) && GIVES(pow(exercise_1(0.5), 2), 0.5);
}

/* The same mask for the same numbers, about half ones, another in each step, for each seed, and one element further. */
static int solved_2(void)
{
    int ones = 0, other = 0, seeds = 0, next = 0, shifted = 0, same = 1;
    for (unsigned i = 0; i < 10000; i++) {
        const int a = exercise_2(1, 1, i), b = exercise_2(1, 2, i), c = exercise_2(2, 1, i),
                  d = exercise_2(1, 1, i + 1);
        shifted += b != d || c != b;                       /* seed, step and element may not just be added up */
        ones += a == 1;
        other += a != b;
        seeds += a != c;
        next += a != d;
        same &= a == exercise_2(1, 1, i) && (a == 0 || a == 1);
    }
    if (!same) printf("exercise_2 should give 0 or 1, and the same for the same numbers.\n");
    printf("Of 10,000 elements %d are 1, %d differ in the next step, %d for another seed, %d from the next element.\n"
           "Each should be about 5,000.\n", ones, other, seeds, next);
    if (shifted < 6000) printf("The mask of one step or seed is another's, moved by an element.\n");
    return same && abs(ones - 5000) < 500 && abs(other - 5000) < 500 && abs(seeds - 5000) < 500 &&
           abs(next - 5000) < 500 && shifted > 6000;
}

static const lesson self = { __FILE__, table, answer, "(the running mean)",
    "What is m after the first run? The second begins with that.",
#include "answers/09.h"
    ,
    "A recomputed op must be a function of its inputs alone. Batch-norm here is two ops: statistics (once a step, its\n"
    "small outputs are kept) and apply (runs again). Dropout's mask is a function of seed, step, op and element, so\n"
    "it can be drawn anew and is never stored. A custom op that is not pure is marked GCP_FLAG_ONCE.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/09_1.h>
#include <exercises/09_2.h>
