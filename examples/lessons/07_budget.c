#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- to say how many bytes there are, and get the fastest step that fits;\n"
    "- the trade-off curve: what each byte less costs in time, its bound, and where it ends;\n"
    "- what a list of instructions is, by writing one yourself against the planner.";

static const char question[] =
    "six layers, conv2d and tanh, on 32 x 32 pixels. The backward of the third convolution, 16 channels in and out,\n"
    "reads its input and the gradient of its output, and writes the gradient of its input. How many bytes are these\n"
    "three, in floats of 4? No budget below can work.";

/* ---- the program ---- */

static unsigned char tape_memory[GCP_MB(16)];
static gcp_arena arena;
static const int widths[] = { 8, 16, 16, 4, 12, 8 };

/* Costs are those of the cost model for one slow thread, so that the table is the same on every machine. */
static const gcp_target machine = { .threads = 1, .isa = GCP_ISA_SCALAR, .flops_per_second = 1e9,
                                    .bytes_per_second = 1e9 };

static gcp_tensor record(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 32, 32, 8));
    for (int i = 0; i < 6; i++) x = gcp_tanh(gcp_conv2d(x, .out = widths[i], .k = 3, .pad = 1));
    return gcp_mean(x);
}

/* Each plan is made of a new recording, so that an error (a budget that is too small) ends with it. */
static gcp_plan keep_all(void)
{
    return gcp_plan_make(record(), .policy = GCP_POLICY_KEEP_ALL, .target = &machine);
}
static gcp_plan in_bytes(size_t budget)
{
    return gcp_plan_make(record(), .policy = GCP_POLICY_BUDGET, .budget = budget, .target = &machine);
}
static size_t least(void) { return gcp_least_budget(record(), .target = &machine); }

#define LIST "07_list.txt"
static const char *file_text(void)                          /* the list that you edit, or NULL */
{
    static char list[4096];
    FILE *f = fopen(LIST, "r");
    if (!f) return NULL;
    list[fread(list, 1, sizeof list - 1, f)] = 0;
    fclose(f);
    return list;
}

static void table(void)
{
    enum { POINTS = 9 };
    gcp_point points[POINTS];
    const size_t all = keep_all().bytes, low = least();
    for (int i = 0; i < POINTS; i++) points[i].budget = low + (all - low) * (size_t)i / (POINTS - 1);
    const gcp_tensor loss = record();
    gcp_sweep(loss, points, POINTS, .target = &machine);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    printf("Keeping all takes %zu bytes, the least is %zu.\n"
           "   budget      bytes   time (keep all = 1)              bound\n", all, low);
    for (int i = 0; i < POINTS; i++) {
        const gcp_point *p = &points[i];
        printf("%9zu  %9zu   %19.4f   %16.4f %s\n", p->budget, p->bytes, p->seconds / p->keep_all_seconds,
               p->bound_seconds / p->keep_all_seconds, lesson_same(p->seconds, p->bound_seconds));
        lesson_differs += p->bytes > p->budget;
    }
    const gcp_plan plan = keep_all();
    FILE *f = file_text() ? NULL : fopen(LIST, "w");
    if (f) gcp_list_print(&plan, gcp_file(f));
    if (f) fclose(f);
    printf("\n" LIST ", in this folder, holds a step as a list that you may edit: F forward, R forward again, B "
           "backward.\n");
}

static double answer(void)
{
    const gcp_tensor loss = record();
    const gcp_shape s = gcp_shape_of(gcp_find(loss.tape, "x"));
    return 3.0 * s.d[0] * s.d[1] * s.d[2] * widths[2] * sizeof(float);
}

static const char why[] =
    "3 x 32 x 32 x 16 x 4. The least budget has besides the weights and their gradients, the input, scratch, and what\n"
    "must be there to make that layer's input again.";

static const char explain[] =
    "a value lives from the F or R that makes it to its last read. For so small a network the planner tries all\n"
    "lists, so the plan equals its bound. For a large one the bound, a minimum cut for each moment of the step, says\n"
    "how far off the plan can be. The least is the smallest budget that it found a list for.";

/* ---- change it ---- */

static int within(const gcp_plan *p) { return gcp_plan_ok(p) && p->seconds <= 1.1 * p->keep_all_seconds; }
#ifdef SOLUTIONS
#include "solutions/07.h"
#else
static const char *exercise_1(void) { return file_text(); }
static size_t exercise_2(void) { return keep_all().bytes; }
#endif

/* The verifier judges the list; the planner's time is the score. */
static int solved_1(void)
{
    const size_t budget = keep_all().bytes * 9 / 10;
    const gcp_plan best = in_bytes(budget);
    const char *list = exercise_1();
    if (!list) { printf("There is no " LIST " in this folder: run the lesson here once without options.\n"); return 0; }
    const gcp_tensor loss = record();
    const gcp_plan yours = gcp_plan_make(loss, .list = list, .target = &machine);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); return 0; }
    printf("Yours: %zu bytes of %zu, %.4f of keep-all's time; the planner's: %zu, %.4f. Of yours:\n", yours.bytes,
           budget, yours.seconds / best.keep_all_seconds, best.bytes, best.seconds / best.keep_all_seconds);
    gcp_why_print(&yours, gcp_file(stdout));
    const int good = yours.bytes <= budget && yours.seconds <= 1.05 * best.seconds;
    const gcp_plan again = in_bytes(budget);
    if (good) printf("The planner's list, to compare:\n");
    if (good) gcp_list_print(&again, gcp_file(stdout));
    return good;
}

static int solved_2(void)
{
    const size_t bytes = exercise_2();
    const gcp_plan fits = in_bytes(bytes), less = in_bytes(bytes > 64 ? bytes - 64 : 0);
    if (bytes > 64) printf("In %zu bytes it does%s, in 64 fewer it does%s.\n", bytes, within(&fits) ? "" : " not",
                           within(&less) ? "" : " not");
    return bytes > 64 && within(&fits) && !within(&less);
}

static const lesson self = {
    "07: a byte budget", learn, question, table, answer, "bytes", why, explain,
    { "Edit " LIST " until its step takes nine tenths of the bytes, in at most 1.05 of the planner's time. R lines,\n"
      "   just before the B that needs it, make a value anew; conv2d and tanh work in the same bytes: it takes both.\n"
      "   What was made anew is not kept from forward on. (Delete the file to begin again.)",
      "Make exercise_2 the smallest budget, to 64 bytes, in which the step takes at most 1.1 of keep-all's time:\n"
      "   within(&plan) says so of in_bytes(budget). Start from least() and keep_all().bytes, and halve." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
