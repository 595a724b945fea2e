/* Lesson 07: a byte budget

   Say how many bytes there are, and get the fastest step that fits. You will see the trade-off curve: what each byte
   less costs in time, where it is flat, where it is steep and where it ends; and what a list of instructions is, by
   writing one yourself against the planner.

   Predict: six layers, conv2d and tanh, on 32 x 32 pixels. The backward of the third convolution, 16 channels in and
   out, reads its input and the gradient of its output, and writes the gradient of its input. How many bytes are
   these three, in floats of 4? (No budget below can work.) */
#include "gcp.h"
#include "lesson.h"

static unsigned char tape_memory[GCP_MB(24)];
static gcp_arena arena;

/* Costs are those of the cost model for one slow thread, so that the table is the same on every machine. */
static const gcp_target machine = { .threads = 1, .isa = GCP_ISA_SCALAR, .flops_per_second = 1e9,
                                    .bytes_per_second = 1e9 };

static gcp_tensor input_of(int channels)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_input(gcp_tape_make(&arena, .ops = 128), "x", GCP_SHAPE(1, 32, 32, channels));
}

static const int widths[] = { 8, 16, 16, 4, 12, 8 };
static gcp_tensor six(void)
{
    gcp_tensor x = input_of(8);
    for (int i = 0; i < 6; i++) x = gcp_tanh(gcp_conv2d(x, .out = widths[i], .k = 3, .pad = 1));
    return gcp_mean(x);
}

/* Deeper, and with cheap ops between the convolutions: they are what runs again first. */
static gcp_tensor deep(void)
{
    gcp_tensor x = input_of(8);
    for (int i = 0; i < 12; i++) {
        x = gcp_layer_norm(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1));
        x = gcp_dropout(gcp_silu(x), .rate = 0.1);
    }
    return gcp_mean(x);
}

/* For the contest: five layers down, four up, and what went down is added on the way up. */
static gcp_tensor skips(void)
{
    gcp_tensor x = input_of(8), down[5];
    for (int i = 0; i < 5; i++) x = down[i] = gcp_tanh(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1));
    for (int i = 3; i >= 0; i--) x = gcp_tanh(gcp_conv2d(gcp_add(x, down[i]), .out = 8, .k = 3, .pad = 1));
    return gcp_mean(x);
}

typedef gcp_tensor network(void);

/* Each plan is made of a new recording, so that an error (a budget that is too small) ends with it. */
static gcp_plan keep_all(network *net)
{
    return gcp_plan_make(net(), .policy = GCP_POLICY_KEEP_ALL, .target = &machine);
}
static gcp_plan in_bytes(network *net, size_t budget)
{
    return gcp_plan_make(net(), .policy = GCP_POLICY_BUDGET, .budget = budget, .target = &machine);
}
static size_t least(network *net) { return gcp_least_budget(net(), .target = &machine); }

static void curve(network *net, const char *name, int points)
{
    gcp_point p[16];
    const size_t all = keep_all(net).bytes, low = least(net);
    for (int i = 0; i < points; i++) p[i].budget = low + (all - low) * (size_t)i / (size_t)(points - 1);
    const gcp_tensor loss = net();
    gcp_sweep(loss, p, points, .target = &machine);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    printf("%s: keeping all takes %zu bytes, the least is %zu.\n   budget      bytes   time (keep all = 1)    bound\n",
           name, all, low);
    for (int i = 0; i < points; i++) {
        printf("%9zu  %9zu   %19.4f   %6.4f  ", p[i].budget, p[i].bytes, p[i].seconds / p[i].keep_all_seconds,
               p[i].bound_seconds / p[i].keep_all_seconds);
        const int percent = (int)(100 * (p[i].seconds / p[i].keep_all_seconds - 1) + 0.5);
        printf("%.*s%s\n", percent < 45 ? percent : 45, "#############################################",
               percent > 45 ? " ..." : "");
        lesson_differs += p[i].bytes > p[i].budget || p[i].seconds < p[i].bound_seconds * (1 - 1e-9);
    }
}

static void table(void)
{
    curve(six, "Six layers", 9);
    curve(deep, "Twelve, with cheap ops", 11);
    const gcp_tensor loss = deep();
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &machine),
                   plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = keep.bytes / 2,
                                        .target = &machine);
    lesson_picture("07_half.svg", &plan, &keep);
}

static double answer(void)
{
    const gcp_shape s = gcp_shape_of(gcp_find(six().tape, "x"));
    return 3.0 * s.d[0] * s.d[1] * s.d[2] * widths[2] * sizeof(float);
}

/* ---- the exercises: exercises/07_1.txt, 07_2.h, 07_3.txt ---- */

static size_t exercise_2(network *net, double most);

/* Names the first R line of no use: without it the list is right, and takes no more bytes. */
static void useless(network *net, const char *list, size_t bytes)
{
    static char without[1 << 14];
    int number = 1;
    for (const char *line = list; *line; number++) {
        const size_t length = strcspn(line, "\r\n");
        const char *next = line + length + strspn(line + length, "\r\n");
        snprintf(without, sizeof without, "%.*s%s", (int)(line - list), list, next);
        gcp_plan plan = { 0 };
        if (*line == 'R') plan = gcp_plan_make(net(), .list = without, .target = &machine);
        if (gcp_plan_ok(&plan) && plan.bytes <= bytes) {
            printf("Line %d, %.*s, is of no use here. Leave it out, and ask again.\n", number, (int)length, line);
            return;
        }
        line = next;
    }
}

/* The verifier judges the list; the planner's time in the same bytes is what it is held against. */
static int judged(const char *name, network *net, int percent, double slower)
{
    static char list[1 << 14];
    const size_t budget = keep_all(net).bytes * (size_t)percent / 100;
    const gcp_plan best = in_bytes(net, budget);
    const char *text = lesson_text(lesson_exercise_file(name));
    if (!text || strlen(text) >= sizeof list) { printf("No list in %s.\n", lesson_exercise_file(name)); return 0; }
    strcpy(list, text);
    const gcp_tensor loss = net();
    const gcp_plan yours = gcp_plan_make(loss, .list = list, .target = &machine);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); return 0; }
    printf("Yours: %zu bytes of %zu, %.4f of keep-all's time; the planner's: %zu, %.4f. score %.4f\n", yours.bytes,
           budget, yours.seconds / best.keep_all_seconds, best.bytes, best.seconds / best.keep_all_seconds,
           yours.bytes <= budget ? best.seconds / yours.seconds : 0);
    gcp_why_print(&yours, gcp_file(stdout));
    if (yours.bytes <= budget) useless(net, list, yours.bytes);
    return yours.bytes <= budget && yours.seconds <= slower * best.seconds;
}
static int solved_1(void) { return judged("exercises/07_1.txt", six, 90, 1.05); }
static int solved_3(void) { return judged("exercises/07_3.txt", skips, 75, 1.05); }

static int within(const gcp_plan *p, double most)
{
    return gcp_plan_ok(p) && p->seconds <= most * p->keep_all_seconds;
}
static int smallest(network *net, double most)
{
    const size_t bytes = exercise_2(net, most);
    if (bytes < 128) { printf("%zu bytes?\n", bytes); return 0; }
    const gcp_plan fits = in_bytes(net, bytes), less = in_bytes(net, bytes - 64);
    printf("In %zu bytes it takes at most %.2f of keep-all's time: %s; in 64 fewer: %s.\n", bytes, most,
           within(&fits, most) ? "yes" : "no", within(&less, most) ? "yes" : "no");
    return within(&fits, most) && !within(&less, most);
}
static int solved_2(void) { return smallest(six, 1.1); }

static const lesson self = { __FILE__, table, answer, "bytes",
    "Each of the three has 32 x 32 pixels, and 16 channels.",
#include "answers/07.h"
    ,
    "A value lives from the F or R that makes it to its last read. For so small a network as the first the planner\n"
    "tries all lists, so its time is the bound. Its curve is a staircase: each step is another set of layers that run\n"
    "again. The second curve is flat at its right end, where cheap ops make large values (they run again for next to\n"
    "nothing), and steep at its left, where convolutions must run again, and again. (A # is a hundredth of keep-all's\n"
    "time.) No list that fits takes less time than the bound says. The least is the smallest budget that a list was\n"
    "found for.\n\n"
    "Exercises 1 and 3 are lists, which need no build.",
    { solved_1, solved_2, solved_3 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/07_2.h>
