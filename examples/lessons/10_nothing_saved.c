/* Lesson 10: why nothing was saved

   Checkpointing may save nothing, as there is nothing to save: look at the share of activations first. Or a
   measurement may say that it saved nothing when it did: look at what was measured. You will let gcp_why_print
   answer in a sentence.

   Predict: a network of 4 dense layers, 1,024 wide, batch 8, SGD with momentum, has 50.4 MB of weights, their
   gradients and momentum. It keeps 4 activations for backward. How many bytes are these? */
#include "gcp.h"
#include "lesson.h"

/* ---- a network that is nearly all activations, and one that is nearly all weights ---- */

static unsigned char tape_memory[GCP_MB(2)];
static const gcp_target one_thread = { .threads = 1, .isa = GCP_ISA_SCALAR };  /* the same bytes on every machine */
static gcp_arena arena;

static gcp_tape *start(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(&arena, .ops = 128);
}
static gcp_tensor convolutions(void)
{
    gcp_tensor x = gcp_input(start(), "x", GCP_SHAPE(32, 32, 32, 16));
    for (int i = 0; i < 20; i++) x = gcp_tanh(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1));
    return gcp_mean(x);
}
static gcp_tensor dense(void)
{
    gcp_tensor x = gcp_input(start(), "x", GCP_SHAPE(8, 1024));
    for (int i = 0; i < 4; i++) x = gcp_tanh(gcp_linear(x, .out = 1024));
    return gcp_mean(x);
}

static gcp_plan stored_plan_of(gcp_tensor loss, int segments, gcp_store store)
{
    gcp_plan plan = gcp_plan_make(loss, .store = store, .policy = GCP_POLICY_UNIFORM, .segments = segments,
                                  .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9, .target = &one_thread);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    return plan;
}

static gcp_plan plan_of(gcp_tensor loss, int segments) { return stored_plan_of(loss, segments, GCP_STORE_REAL); }

/* Bytes that no recomputation can save: weights, statistics, the optimiser's slots; weight gradients; inputs. */
static size_t fixed(const gcp_plan *p) { return p->state_bytes + p->split.weight_gradients + p->split.inputs; }

/* A user of PyTorch asked on a forum (the thread is not to be found any more) why checkpoint_sequential saves nothing:
   154,106,538 bytes "at the peak", for any number of segments. That is what traces of Python's heap give, where no
   tensor is (PyTorch issue 91823). The data set is there: CIFAR-10's training images, 50,000 of 3 x 32 x 32 bytes. */
enum { REPORTED = 154106538, DATA_SET = 50000 * 3 * 32 * 32 };

static void table(void)
{
    static const int segments[] = { 1, 2, 4 };
    gcp_tensor (*const nets[])(void) = { convolutions, dense };
    static const char *const names[] = { "20 convolutions", "4 dense layers" };
    printf("network           segments       bytes   of keep all    fixed for all segments\n");
    for (int k = 0; k < 2; k++) {
        const gcp_plan one = plan_of(nets[k](), 1);
        for (int i = 0; i < 3; i++) {
            const gcp_plan p = plan_of(nets[k](), segments[i]);
            printf("%-15s   %8d   %9zu   %10.1f %%   %20.1f %%\n", names[k], segments[i], p.bytes,
                   100.0 * (double)p.bytes / (double)one.bytes, 100.0 * (double)fixed(&p) / (double)p.bytes);
            lesson_differs += fixed(&p) > p.bytes;
        }
    }
    printf("\nNothing runs again, but activations and their gradients take two bytes each, not four (bfloat16):\n");
    for (int k = 0; k < 2; k++) {
        const gcp_plan floats = plan_of(nets[k](), 1);       /* the next network is recorded in the same memory */
        const size_t all = floats.bytes;
        const gcp_plan halves = stored_plan_of(nets[k](), 1, GCP_STORE_BF16);
        printf("%-15s   %8d   %9zu   %10.1f %%\n", names[k], 1, halves.bytes,
               100.0 * (double)halves.bytes / (double)all);
    }
    printf("\nA PyTorch user measured %d bytes for any number of segments. The data set alone is %d bytes, %.2f %%\n"
           "of that: the tool traced Python's heap, and never saw an activation.\n", REPORTED, DATA_SET,
           100.0 * DATA_SET / REPORTED);
    printf("gcp_why_print of the dense network in 4 segments:\n");
    const gcp_plan plan = plan_of(dense(), 4);
    gcp_why_print(&plan, gcp_file(stdout));
    lesson_picture("10_dense.svg", &plan, NULL);
}

static double answer(void)
{
    const gcp_plan plan = plan_of(dense(), 1);
    return (double)(plan.after_forward / 4096 * 4096);       /* less the loss's 4 bytes */
}

/* ---- the exercises: exercises/10_1.h and 10_2.h ---- */

static double exercise_1(const gcp_plan *plan);
static int exercise_2(void);

static int solved_1(void)
{
    const gcp_plan a = plan_of(dense(), 1);
    const double dense_share = 1 - (double)fixed(&a) / (double)a.bytes;
    if (!lesson_case("Of the dense network exercise_1", exercise_1(&a), dense_share)) return 0;
    const gcp_plan b = plan_of(convolutions(), 1);
    return lesson_case("Of the convolutions exercise_1", exercise_1(&b), 1 - (double)fixed(&b) / (double)b.bytes);
}

/* In a batch of so many the dense network's activations are more than half of its peak; in one fewer they are not. */
static int solved_2(void)
{
    const int batch = exercise_2();
    int more[2];
    for (int k = 0; k < 2; k++) {
        gcp_tensor x = gcp_input(start(), "x", GCP_SHAPE(batch > k ? batch - k : 1, 1024));
        for (int i = 0; i < 4; i++) x = gcp_tanh(gcp_linear(x, .out = 1024));
        const gcp_plan p = plan_of(gcp_mean(x), 1);
        more[k] = p.split.kept + p.split.activation_gradients > p.bytes / 2;
    }
    if (batch > 0) printf("More than half in a batch of %d: %s; of %d: %s.\n", batch, more[0] ? "yes" : "no",
                          batch > 1 ? batch - 1 : 1, more[1] ? "yes" : "no");
    return more[0] && !more[1];
}

static const lesson self = { __FILE__, table, answer, "bytes",
    "An activation is a number for each row of the batch and each of the 1,024 outputs.",
#include "answers/10.h"
    ,
    "Three questions, in this order. Which share of the peak are activations and their gradients? Where is the peak,\n"
    "and does what is run again lie there? Does the tool count the memory that tensors are in, and at the moment of\n"
    "the peak? gcp answers the first two in words; its bytes are exact. (Its `kept` is 0 above: the peak is the last\n"
    "backward, where the activations are used up.)",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/10_1.h>
#include <exercises/10_2.h>
