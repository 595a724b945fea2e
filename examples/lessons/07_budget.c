#include "gcp.h"
#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- to say how many bytes there are, and get the fastest step that fits;\n"
    "- the trade-off curve: what each byte less costs in time, its bound, and where it ends;\n"
    "- what a list of instructions is, by writing one yourself against the planner.";

static const char question[] =
    "six layers, conv2d and tanh, of different widths; the table shows what keeping all takes. In nine tenths of\n"
    "these bytes, how many instructions of the fastest step run something again?";

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

static gcp_plan keep_all(gcp_tensor loss)
{
    return gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &machine);
}
static gcp_plan in_bytes(gcp_tensor loss, size_t budget)
{
    return gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = budget, .target = &machine);
}

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
    const gcp_tensor loss = record();
    const gcp_plan all = keep_all(loss);
    const size_t least = gcp_least_budget(loss, .target = &machine);
    for (int i = 0; i < POINTS; i++) points[i].budget = least + (all.bytes - least) * (size_t)i / (POINTS - 1);
    gcp_sweep(loss, points, POINTS, .target = &machine);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    printf("Keeping all takes %zu bytes, the least is %zu.\n"
           "   budget      bytes   time (keep all = 1)   no list is below\n", all.bytes, least);
    for (int i = 0; i < POINTS; i++) {
        const gcp_point *p = &points[i];
        printf("%9zu  %9zu   %19.4f   %16.4f %s\n", p->budget, p->bytes, p->seconds / p->keep_all_seconds,
               p->bound_seconds / p->keep_all_seconds, lesson_same(p->seconds, p->bound_seconds));
        lesson_differs += p->bytes > p->budget;
    }
    FILE *f = file_text() ? NULL : fopen(LIST, "w");
    if (f) gcp_list_print(&all, gcp_file(f));
    if (f) fclose(f);
    printf("\n" LIST " holds a step as a list, which you may edit: F forward, R forward again, B backward.\n");
}

static double answer(void)
{
    const gcp_tensor loss = record();
    const gcp_plan plan = in_bytes(loss, keep_all(loss).bytes * 9 / 10);
    return plan.reruns;
}

static const char why[] =
    "Not every layer need run again, only as many as the bytes ask for, and the planner takes those that are cheap\n"
    "for their bytes. A policy that knows no bytes runs too many again or too few.";

static const char explain[] =
    "for so small a network all lists are searched, so the plan equals its bound. For a large one the bound, a\n"
    "minimum cut for each moment of the step, says how far off the plan can be. Below the least no list works: the op\n"
    "at the peak needs its inputs, its output and their gradients at once.";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/07.h"
#else
static const char *exercise_1(gcp_tensor loss, size_t budget) { return loss.tape && budget ? file_text() : NULL; }
static size_t exercise_2(gcp_tensor loss) { return keep_all(loss).bytes; }
#endif

/* The verifier judges the list; the planner's time is the score. */
static int solved_1(void)
{
    const gcp_tensor loss = record();
    const size_t budget = keep_all(loss).bytes * 9 / 10;
    const char *list = exercise_1(loss, budget);
    const gcp_plan best = in_bytes(loss, budget),
                   yours = gcp_plan_make(loss, .list = list ? list : "", .target = &machine);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); return 0; }
    printf("Yours: %zu of %zu bytes, %.4f of keep-all's time; the planner's: %zu, %.4f.\n", yours.bytes, budget,
           yours.seconds / best.keep_all_seconds, best.bytes, best.seconds / best.keep_all_seconds);
    return yours.bytes <= budget && yours.seconds <= 1.05 * best.seconds;
}
static int solved_2(void)
{
    const gcp_tensor loss = record();
    const size_t bytes = exercise_2(loss);
    const gcp_plan fits = in_bytes(loss, bytes), less = in_bytes(loss, bytes - 64);
    return fits.seconds <= 1.1 * fits.keep_all_seconds &&
           !(gcp_plan_ok(&less) && less.seconds <= 1.1 * less.keep_all_seconds);
}

static const lesson self = {
    "07: a byte budget", learn, question, table, answer, "instructions", why, explain,
    { "Edit " LIST " until its step takes nine tenths of the bytes, in at most 1.05 of the planner's time: an R\n"
      "   line makes an op's output anew, just before the B that reads it (delete the file to begin again).",
      "Make exercise_2 the smallest budget, to 64 bytes, in which the step takes at most 1.1 of keep-all's time." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
