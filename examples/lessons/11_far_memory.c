/* Lesson 11: far memory

   There is another way to be rid of an activation: copy it to far memory (a GPU's host, a file) over a link, and
   back before backward reads it. You will see at which rate of the link copying wins over running again, and that
   copies beside the computing may cost nothing at all.

   Predict: a layer's forward takes 4 milliseconds and leaves 1,000,000 bytes. Computing waits for copies. At which
   rate of the link, in bytes a second, does copying them away and back take as long as running the layer again? */
#include "gcp.h"
#include "lesson.h"

/* ---- a chain of layers that only cost, planned for machines that differ in their link ---- */

enum { LAYERS = 6, BYTES = 1000000 };
static unsigned char tape_memory[GCP_MB(8)];
static gcp_arena arena;

static int same_shape(gcp_shape_call *call) { call->out[0] = call->in[0]; return 1; }
static void nothing(const gcp_call *call) { (void)call; }
static void cost(const gcp_cost_call *call, gcp_cost *c) { (void)call; c->flops = 4e6; c->bytes = 0; }
static const gcp_op layer = { .name = "layer", .shape = same_shape, .forward = nothing, .backward = nothing,
                              .cost = cost, .reads_out = 1, .outputs = 1 };

static void start_copy(void *context, int id, void *to, const void *from, size_t size)
{
    (void)context; (void)id; (void)to; (void)from; (void)size;
}
static void wait_copy(void *context, int id) { (void)context; (void)id; }

/* 10^9 FLOPs a second: 4 ms a layer. beside: the link has a thread of its own, computing does not wait. */
static gcp_target machine(double rate, int beside)
{
    gcp_target t = { .threads = 1, .isa = GCP_ISA_SCALAR, .flops_per_second = 1e9, .bytes_per_second = 1e12 };
    t.far_bytes_per_second = rate;
    if (beside) { t.copy_start = start_copy; t.copy_wait = wait_copy; }
    return t;
}

static gcp_tensor record(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tensor x = gcp_input(gcp_tape_make(&arena, .ops = 32), "x", GCP_SHAPE(1, BYTES / 4), .want_grad = 1);
    for (int i = 0; i < LAYERS; i++) x = gcp_custom(&x, 1, &layer);
    return gcp_mean(x);
}

/* The step in `fewer` layers' bytes less than keep-all takes. copies: 0: run again alone, 1: copy alone, 2: either. */
static gcp_plan plan_of(double rate, int beside, int fewer, int copies)
{
    const gcp_tensor loss = record();
    const gcp_target t = machine(rate, beside);
    const gcp_plan all = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &t);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = all.bytes - (size_t)fewer * BYTES,
                                  .far = copies ? GCP_MB(64) : 0, .far_only = copies == 1, .target = &t,
                                  .effort = GCP_EFFORT_QUICK);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    return plan;
}

static void row(double rate)
{
    const gcp_plan again = plan_of(rate, 0, 1, 0), copy = plan_of(rate, 0, 1, 1), either = plan_of(rate, 0, 1, 2),
                   beside = plan_of(rate, 1, 1, 1);
    const double all = again.keep_all_seconds, wait = all + 2.0 * BYTES / rate,
                 overlap = fmax(all, 3 * 0.004 + 1e-6 + 2.0 * BYTES / rate);   /* 1e-6: the mean */
    printf("%8.0f   %8.2f   %8.2f  %8.2f %s   %8.2f  %-9s   %8.2f  %8.2f %s\n", 1e-6 * rate, 1e3 * again.seconds,
           1e3 * copy.seconds, 1e3 * wait, lesson_same(copy.seconds, wait), 1e3 * either.seconds,
           either.reruns ? "run again" : "copy", 1e3 * beside.seconds, 1e3 * overlap,
           lesson_same(beside.seconds, overlap));
    lesson_same(again.seconds, all + 0.004);
    lesson_same(either.seconds, fmin(again.seconds, copy.seconds));
}

static void table(void)
{
    static const double rates[] = { 2e7, 4e7, 1e8, 2e8, 4e8, 6e8, 1e9, 1e10 };
    printf("One activation of %d layers less in memory; milliseconds of a step (keep all: %.2f, as a layer takes 4\n"
           "forward, and 4 backward)\n", LAYERS,
           1e3 * plan_of(1e9, 0, 1, 0).keep_all_seconds);
    printf("    MB/s  run again       copy  all + 2 S/r     either              copy beside  12 ms + 2 S/r\n");
    for (int i = 0; i < 8; i++) row(rates[i]);
    const gcp_plan plan = plan_of(1e9, 1, 2, 1);
    lesson_picture("11_two_copied.svg", &plan, NULL);
}

/* By halving: where the planner changes from running again to copying. */
static double answer(void)
{
    double low = 1e8, high = 1e9;
    while (high - low > 1e5) {
        const double rate = (low + high) / 2;
        if (plan_of(rate, 0, 1, 2).reruns) low = rate;
        else high = rate;
    }
    return floor(high / 1e6 + 0.5) * 1e6;
}

/* ---- the exercises: exercises/11_1.h and 11_2.h ---- */

static double exercise_1(double seconds, double bytes);
static int exercise_2(double rate);

static int solved_1(void) { return GIVES(exercise_1(0.002, 3e6), 3e9) && GIVES(exercise_1(0.5, 3e6), 1.2e7); }
static int solved_2(void) 
{
    return GIVES(exercise_2(2.5e8), 1) && GIVES(exercise_2(1e9), 4) && GIVES(exercise_2(4.7e8), 1);
}

static const lesson self = { __FILE__, table, answer, "bytes a second",
    "The bytes go over the link twice. In which time must both copies be done?",
#include "answers/11.h"
    ,
    "Copying S bytes costs 2 S / r, running again costs t: copy where r > 2 S / t. Where the link works beside the\n"
    "computing, a copy costs nothing as long as there is time for it between the last read in forward and the first\n"
    "in backward. Early layers have the most. Here the first layer's output goes when it is made, after 4 ms. The\n"
    "last layer's backward works in its room, 4 ms. Then it comes back, for the first layer's backward, 4 ms. So the\n"
    "step takes 12 ms + 2 S / r where that is more than keep-all's time. GCP_POLICY_BUDGET with .far takes for each\n"
    "value what is better: running again, or copying.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/11_1.h>
#include <exercises/11_2.h>
