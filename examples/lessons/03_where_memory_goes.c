#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- which parts a step's memory has: state, inputs, activations, gradients, workspace;\n"
    "- which of them grow with the batch, and which of these recomputation can save;\n"
    "- to read a layer table, a why line and a picture of memory over time.";

static const char question[] =
    "the first convolution of this network makes 16 channels from a batch of 32 images of 28 x 28, padded so that\n"
    "they stay 28 x 28. How many bytes is its output, in floats of 4?";

/* ---- the program ---- */

static unsigned char tape_memory[GCP_MB(8)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */

static gcp_tensor record(gcp_arena *arena, int batch)
{
    *arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(arena, .ops = 64);
    gcp_tensor x = gcp_input(net, "image", GCP_SHAPE(batch, 28, 28, 1)),
               label = gcp_labels(net, "label", GCP_SHAPE(batch));
    x = gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    x = gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1)), .k = 2);
    x = gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 32, .k = 3, .pad = 1)), .k = 2);
    return gcp_cross_entropy(gcp_linear(gcp_flatten(x), .out = 10), label);
}

static gcp_plan plan_of(gcp_arena *arena, int batch)
{
    const gcp_tensor loss = record(arena, batch);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM,
                                  .target = &one);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    return plan;
}

/* The fewest bytes that any plan of the network needs, and so what recomputation can save. */
static size_t least(gcp_arena *arena, int batch)
{
    return gcp_least_budget(record(arena, batch), .optimizer = GCP_OPTIMIZER_ADAM, .fuse_update = GCP_NEVER,
                            .target = &one);
}

static size_t activations(const gcp_plan *p) { return p->split.kept + p->split.activation_gradients; }

/* All parts of the peak, and their sum: nothing is left out. */
static void parts(gcp_arena *arena)
{
    printf("batch    state   inputs   activations and      weight   workspace   gaps       sum   planned        least\n"
           "                          their gradients   gradients   (scratch)\n");
    for (int batch = 8; batch <= 128; batch *= 2) {
        const gcp_plan plan = plan_of(arena, batch);
        const gcp_split *s = &plan.split;
        const size_t sum = plan.state_bytes + s->inputs + s->kept + s->recomputed + s->activation_gradients +
                           s->weight_gradients + s->workspace + s->gaps;
        printf("%5d %8zu %8zu   %15zu   %9zu   %9zu   %4zu  %8zu  %8zu %s", batch, plan.state_bytes, s->inputs,
               activations(&plan), s->weight_gradients, s->workspace, s->gaps, sum, plan.bytes,
               lesson_same((double)sum, (double)plan.bytes));
        printf("   %8zu\n", least(arena, batch));
    }
}

static void table(void)
{
    gcp_arena arena;
    parts(&arena);
    const gcp_plan plan = plan_of(&arena, 32);
    printf("\nThe layers, and the bytes that each writes: not all at once, and a conv2d and its relu work in the same\n"
           "ones. (Bits that a relu keeps and places that a pool keeps are among them.)\n");
    gcp_layers_print(&plan, gcp_file(stdout));
    printf("\nWhy the step takes its bytes (state outlives the step; the slab is all else):\n");
    gcp_why_print(&plan, gcp_file(stdout));
    FILE *f = fopen("03_memory.html", "w");
    if (f) gcp_memory_html(&plan, NULL, gcp_file(f));
    if (f && !fclose(f)) printf("\nOpen 03_memory.html in a browser, and step through it with the arrow keys.\n");
}

static double answer(void)
{
    gcp_arena arena;
    const gcp_tensor loss = record(&arena, 32);
    const gcp_shape s = gcp_shape_of(gcp_find(loss.tape, "image"));
    return (double)s.d[0] * s.d[1] * s.d[2] * 16 * sizeof(float);
}

static const char why[] =
    "Batch x height x width x channels x 4 bytes = 32 x 28 x 28 x 16 x 4. With such padding the kernel's size has no\n"
    "part in it: it makes the layer dearer, not its output larger.";

static const char explain[] =
    "weights, their gradients and Adam's two slots do not know the batch. Activations and their gradients grow with\n"
    "it, and are most of a convolutional network's memory. Checkpointing drops activations and runs layers again; it\n"
    "cannot make the rest smaller. Nor what one op needs at once: the peak is in the backward of one convolution,\n"
    "with its input and two gradients, so of this shallow network hardly anything can go (least). Depth is what saves.";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/03.h"
#else
static int exercise_1(void) { return 0; }
static double exercise_2(const gcp_plan *plan) { return 0 * (double)plan->bytes; }
#endif

/* The largest batch whose step takes no more than 2 MB. */
static int solved_1(void)
{
    gcp_arena arena;
    const int batch = exercise_1();
    if (batch < 1 || batch > 999) return 0;
    const size_t bytes = plan_of(&arena, batch).bytes, more = plan_of(&arena, batch + 1).bytes;
    printf("A batch of %d takes %zu bytes, one of %d %zu; 2 MB are %zu.\n", batch, bytes, batch + 1, more, GCP_MB(2));
    return bytes <= GCP_MB(2) && more > GCP_MB(2);
}
static int solved_2(void)
{
    gcp_arena arena;
    const gcp_plan plan = plan_of(&arena, 32);
    return GIVES(exercise_2(&plan), (double)activations(&plan) / (double)plan.bytes);
}

static const lesson self = {
    "03: where the memory goes", learn, question, table, answer, "bytes", why, explain,
    { "Make exercise_1 the largest batch whose step takes at most 2 MB (2 x 1,048,576 bytes): keep-all.",
      "Make exercise_2 the share of a plan's bytes, 0 to 1, that activations and their gradients are at the peak." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
