/* Lesson 03: where the memory goes

   A step's memory has parts: the state (weights and what the optimiser keeps), inputs, activations that wait for
   backward, gradients, and workspace of single ops. Some grow with the batch, some do not. Recomputing saves only
   the activations that wait. You will learn to see how much that is, in a table, in words and in a picture.

   Predict: a convolution makes 16 channels from a batch of 32 images of 28 x 28 pixels, padded so that they stay
   28 x 28. How many bytes is its output, in floats of 4? */
#include "gcp.h"
#include "lesson.h"

static unsigned char tape_memory[GCP_MB(8)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */

static gcp_tape *start(gcp_arena *arena)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(arena, .ops = 128);
}

/* A shallow network that reads digits. */
static gcp_tensor shallow(gcp_arena *arena, int batch)
{
    gcp_tape *net = start(arena);
    gcp_tensor x = gcp_input(net, "image", GCP_SHAPE(batch, 28, 28, 1)),
               label = gcp_labels(net, "label", GCP_SHAPE(batch));
    x = gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    x = gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1)), .k = 2);
    x = gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 32, .k = 3, .pad = 1)), .k = 2);
    return gcp_cross_entropy(gcp_linear(gcp_flatten(x), .out = 10), label);
}

/* A deep one: 30 convolutions of 16 channels in a row. */
static gcp_tensor deep(gcp_arena *arena, int batch)
{
    gcp_tape *net = start(arena);
    gcp_tensor x = gcp_input(net, "image", GCP_SHAPE(batch, 28, 28, 1)),
               label = gcp_labels(net, "label", GCP_SHAPE(batch));
    for (int i = 0; i < 30; i++) x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    return gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 10), label);
}

static gcp_plan plan_of(gcp_tensor loss)
{
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM,
                                  .target = &one);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    return plan;
}

/* All parts of the peak, and their sum: nothing is left out. Gaps are bytes that nobody uses, as every tensor begins at
   a multiple of 64 (so do weights, three times for Adam: the state). Of weights' gradients those are there that the
   peak's op makes, and that were made before. Workspace is what one op asks for, here a convolution's backward. */
static void parts(void)
{
    gcp_arena arena;
    printf("At the peak, shallow network, Adam:\n"
           "batch    state   inputs   kept for   gradients of   gradients   workspace   gaps       sum   planned\n"
           "                          backward    activations  of weights\n");
    for (int batch = 8; batch <= 128; batch *= 2) {
        const gcp_plan plan = plan_of(shallow(&arena, batch));
        const gcp_split *s = &plan.split;
        const size_t sum = plan.state_bytes + s->inputs + s->kept + s->recomputed + s->activation_gradients +
                           s->weight_gradients + s->workspace + s->gaps;
        printf("%5d %8zu %8zu   %8zu   %12zu   %9zu   %9zu   %4zu  %8zu  %8zu %s\n", batch, plan.state_bytes,
               s->inputs, s->kept, s->activation_gradients, s->weight_gradients, s->workspace, s->gaps, sum,
               plan.bytes, lesson_same((double)sum, (double)plan.bytes));
    }
}

/* Keep-all's bytes, and the fewest that any plan of the network needs: what recomputing can save. */
static void savings(void)
{
    gcp_tensor (*const nets[])(gcp_arena *, int) = { shallow, deep };
    static const char *const names[] = { "shallow, 3 convolutions", "deep, 30 convolutions" };
    gcp_arena arena;
    printf("\nbatch 32                     wait for backward   at the peak    the least    can be saved\n");
    for (int i = 0; i < 2; i++) {
        const gcp_plan plan = plan_of(nets[i](&arena, 32));
        const size_t least = gcp_least_budget(nets[i](&arena, 32), .optimizer = GCP_OPTIMIZER_ADAM, .target = &one,
                                              .fuse_update = GCP_NEVER);
        printf("%-27s  %17zu   %11zu   %10zu   %11.1f %%\n", names[i], plan.after_forward - sizeof(float),
               plan.bytes, least,
               100 * (1 - (double)least / (double)plan.bytes));
        lesson_differs += least > plan.bytes;
    }
}

static void table(void)
{
    gcp_arena arena;
    parts();
    savings();
    const gcp_plan plan = plan_of(shallow(&arena, 32));
    printf("\nThe shallow network's layers, and the bytes that each writes: not all at once, and a conv2d and its\n"
           "relu work in the same ones. (Bits that a relu keeps and places that a pool keeps are among them.)\n");
    gcp_layers_print(&plan, gcp_file(stdout));
    printf("\nWhy its step takes its bytes (state outlives the step; the slab is all else):\n");
    gcp_why_print(&plan, gcp_file(stdout));
    lesson_picture("03_shallow.svg", &plan, NULL);
    FILE *f = fopen(lesson_path(lesson_program, "03_memory.html"), "w");
    if (f) gcp_memory_html(&plan, NULL, gcp_file(f));
    if (f && !fclose(f)) printf("The same, to step through: %s\n", lesson_path(lesson_program, "03_memory.html"));
}

static double answer(void)
{
    gcp_arena arena;
    const gcp_shape s = gcp_shape_of(gcp_find(shallow(&arena, 32).tape, "image"));
    return (double)s.d[0] * s.d[1] * s.d[2] * 16 * sizeof(float);
}

/* ---- the exercises: exercises/03_1.h and 03_2.h ---- */

static int exercise_1(size_t bytes);
static double exercise_2(const gcp_plan *plan);

/* The largest batch of the shallow network in so many bytes: a larger one must not fit. */
static int largest(size_t most)
{
    gcp_arena arena;
    const int batch = exercise_1(most);
    if (batch < 1 || batch > 999) { printf("A batch of %d?\n", batch); return 0; }
    const size_t bytes = plan_of(shallow(&arena, batch)).bytes, more = plan_of(shallow(&arena, batch + 1)).bytes;
    printf("Of %zu bytes a batch of %d takes %zu, one of %d %zu.\n", most, batch, bytes, batch + 1, more);
    return bytes <= most && more > most;
}
static int share(int batch)
{
    gcp_arena arena;
    const gcp_plan plan = plan_of(shallow(&arena, batch));
    return GIVES(exercise_2(&plan),
                 (double)(plan.split.kept + plan.split.activation_gradients) / (double)plan.bytes);
}
static int solved_1(void) { return largest(GCP_MB(2)); }
static int solved_2(void) { return share(32); }

static const lesson self = { __FILE__, table, answer, "bytes",
    "A number for each image, each pixel and each channel. Has the kernel's size a part in it?",
#include "answers/03.h"
    ,
    "Weights, their gradients and Adam's two slots do not know the batch. Activations and their gradients grow with\n"
    "it. Recomputing drops activations that wait, and runs layers again. It cannot make the rest smaller, nor what\n"
    "one op needs at once: the shallow network's peak is in the backward of one convolution, with its input and two\n"
    "gradients, so next to nothing can be saved. Of the deep one nearly all can: depth is what waits.\n\n"
    "In the picture time goes to the right, addresses go up, and a bar is a tensor: from the instruction that makes\n"
    "it to the last that reads it. Behind the dashed line backward begins. Look for the highest place (the mark):\n"
    "what is there? Long bars across the dashed line are kept for backward. Where they are thin, nothing is to be\n"
    "won.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/03_1.h>
#include <exercises/03_2.h>
