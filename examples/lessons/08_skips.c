/* Lesson 08: skips

   A cut keeps every tensor that is made before it and read behind it. In a chain that is one. A ResNet can be cut
   for one tensor between its blocks only, and a U-Net nowhere inside. You will see why, and that a plan need not be
   a row of cuts: each tensor may be kept or made again by itself.

   Predict: a U-Net of 5 levels has 5 layers on the way down, one at the bottom, 5 on the way up. Each of the first 5
   is read by the next layer, and once more by its partner on the way up. How many tensors cross a cut in the middle,
   behind the sixth layer? */
#include "gcp.h"
#include "lesson.h"

/* ---- networks as tables. Layer i reads layers first[i] and second[i] (-1: none) ---- */

enum { MOST = 32, VALUES = 4096 };
typedef struct table_net { const char *name; int n, first[MOST], second[MOST]; } table_net;

static table_net chain(int n)
{
    table_net t = { "chain", n, { 0 }, { 0 } };
    for (int i = 0; i < n; i++) { t.first[i] = i - 1; t.second[i] = -1; }
    return t;
}
/* Blocks of three layers; the last of a block also reads what went into the block. */
static table_net residual(int blocks)
{
    table_net t = chain(1 + 3 * blocks);
    t.name = "ResNet";
    for (int i = 3; i < t.n; i += 3) t.second[i] = i - 3;
    return t;
}
/* Down, a layer at the bottom, and up again: layer depth + i reads layer depth - i, too. */
static table_net u_net(int depth)
{
    table_net t = chain(2 * depth + 1);
    t.name = "U-Net";
    for (int i = 1; i <= depth; i++) t.second[depth + i] = depth - i;
    return t;
}

/* Tensors that are made up to layer p, and read behind it. */
static int crossing(const table_net *t, int p)
{
    int count = 0;
    for (int made = 0; made <= p; made++) {
        int read = 0;
        for (int i = p + 1; i < t->n; i++) read |= t->first[i] == made || t->second[i] == made;
        count += read;
    }
    return count;
}

static unsigned char tape_memory[GCP_MB(8)];
static gcp_arena arena;

static gcp_tensor record(const table_net *t)
{
    gcp_tensor made[MOST];
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 3 * MOST);
    const gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, VALUES), .want_grad = 1);
    for (int i = 0; i < t->n; i++) {
        gcp_tensor in = t->first[i] < 0 ? x : made[t->first[i]];
        if (t->second[i] >= 0) in = gcp_add(in, made[t->second[i]]);
        made[i] = gcp_tanh(in);
    }
    return gcp_mean(made[t->n - 1]);
}

/* Whole tensors of a step. */
static int tensors(size_t bytes) { return (int)(bytes / (VALUES * sizeof(float))); }
static int under(const table_net *t, gcp_policy p) { return tensors(gcp_plan_make(record(t), .policy = p).bytes); }
static int least(const table_net *t) { return tensors(gcp_least_budget(record(t))); }

/* A network's row; fewest and most: what should cross its cuts. */
static void row(const table_net *t, int fewest, int most)
{
    int low = MOST, high = 0, single = 0;
    for (int p = 0; p < t->n - 1; p++) {
        const int c = crossing(t, p);
        low = c < low ? c : low;
        high = c > high ? c : high;
        single += c == 1;
    }
    printf("%-7s  %6d   %14d of %2d   %6d %s %4d %s   %8d   %9d   %5d\n", t->name, t->n, single, t->n - 1, low,
           lesson_same(low, fewest), high, lesson_same(high, most),
           under(t, GCP_POLICY_KEEP_ALL), under(t, GCP_POLICY_SQRT), least(t));
}

static void table(void)
{
    enum { SMALL = 5, LARGE = 10 };
    const table_net a = chain(16), b = residual(5), c = u_net(SMALL), d = u_net(LARGE);
    printf("network  layers   one tensor crosses   fewest   most     keep all   square root   least (tensors)\n");
    row(&a, 1, 1);
    row(&b, 1, 2);
    row(&c, 1, SMALL + 1);
    row(&d, 1, LARGE + 1);
    const gcp_tensor loss = record(&d);
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
                   plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = keep.bytes * 2 / 3,
                                        .effort = GCP_EFFORT_QUICK);
    lesson_picture("08_unet_two_thirds.svg", &plan, &keep);
}

static double answer(void)
{
    const table_net t = u_net(5);
    return crossing(&t, 5);
}

/* ---- the exercises: exercises/08_1.h and 08_2.h ---- */

static int exercise_1(const table_net *t, const int *bytes, int p);
static table_net exercise_2(int n);

static int solved_1(void)
{
    static const int bytes[] = { 8, 4, 2, 1, 2, 4, 8 };
    const table_net u = u_net(3), c = chain(7);
    return lesson_case("In the U-Net with bytes 8 4 2 1 2 4 8 and p = 3 exercise_1", exercise_1(&u, bytes, 3), 15) &&
           lesson_case("In the U-Net with bytes 8 4 2 1 2 4 8 and p = 2 exercise_1", exercise_1(&u, bytes, 2), 14) &&
           lesson_case("In the U-Net with bytes 8 4 2 1 2 4 8 and p = 5 exercise_1", exercise_1(&u, bytes, 5), 12) &&
           lesson_case("In the chain with bytes 8 4 2 1 2 4 8 and p = 2 exercise_1", exercise_1(&c, bytes, 2), 2);
}
static int solved_2(void)
{
    const table_net t = exercise_2(12);
    int good = lesson_case("Layers of exercise_2(12)", t.n, 12);
    for (int p = 1; p < 11 && good; p++)
        if (!(good = crossing(&t, p) == 2)) printf("%d tensors cross the cut behind layer %d.\n", crossing(&t, p), p);
    return good && lesson_case("Tensors across the first cut", crossing(&t, 0), 1);
}

static const lesson self = { __FILE__, table, answer, "tensors",
    "Which of the first six layers have a reader behind the cut?",
#include "answers/08.h"
    ,
    "Cutting a chain keeps one tensor for each segment. In general a cut keeps what crosses it, so segments fail\n"
    "where much crosses everywhere: the square root saves nothing of this U-Net, with one layer a level. (One with\n"
    "several layers a level has something between its skips that can be dropped.) Chen et al. 2016, algorithm 2, say\n"
    "for each tensor how often it may be made again; gcp finds that by minimum cuts and search (the column `least`).\n"
    "The chain takes 7 tensors, where lesson 05's formula has 8: GCP_POLICY_SQRT does not run the last segment again,\n"
    "and so its cuts are not even.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/08_1.h>
#include <exercises/08_2.h>
