/* Lesson 14: a transformer

   A GPT is a chain of blocks: attention, then two dense layers, each added to what went in. You will see what a
   block leaves for backward, why attention need not leave its scores, and what segments of blocks save.

   Predict: attention compares each of 256 words with each of 256, in each of 8 heads. If these scores were kept, in
   floats of 4 bytes, how many bytes would one block keep for them, for one text? */
#include "gcp.h"
#include "lesson.h"

enum { HEADS = 8, WIDTH = 64, BLOCKS = 6 };
static unsigned char tape_memory[GCP_MB(8)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */
static gcp_arena arena;

/* One text of so many words, a row of WIDTH numbers each, through so many blocks. A segment is a block. */
static gcp_tensor record(int words, int blocks)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 256);
    gcp_tensor x = gcp_input(net, "words", GCP_SHAPE(1, words, WIDTH));
    for (int i = 0; i < blocks; i++)
        GCP_SEGMENT(net, "block") {
            const gcp_tensor n = gcp_layer_norm(x), q = gcp_linear(n, .out = WIDTH), k = gcp_linear(n, .out = WIDTH),
                             v = gcp_linear(n, .out = WIDTH);
            x = gcp_add(x, gcp_linear(gcp_attention(q, k, v, .heads = HEADS, .causal = 1), .out = WIDTH));
            x = gcp_add(x, gcp_linear(gcp_gelu(gcp_linear(gcp_layer_norm(x), .out = 4 * WIDTH)), .out = WIDTH));
        }
    return gcp_mean(gcp_mul(x, x));
}

static gcp_plan plan_of(gcp_tensor loss, gcp_policy policy, int segments)
{
    gcp_plan plan = gcp_plan_make(loss, .policy = policy, .segments = segments, .optimizer = GCP_OPTIMIZER_ADAM,
                                  .target = &one);
    if (gcp_error(loss.tape)) { printf("%s\n", gcp_error(loss.tape)); exit(1); }
    return plan;
}

static double scores(int words) { return (double)HEADS * words * words * (double)sizeof(float); }

/* What one block more leaves: the difference of two networks. */
static double block_leaves(int words)
{
    const size_t two = plan_of(record(words, 2), GCP_POLICY_KEEP_ALL, 0).after_forward,
                 one_block = plan_of(record(words, 1), GCP_POLICY_KEEP_ALL, 0).after_forward;
    return (double)(two - one_block);
}

/* Of a block backward reads, for each word: the inputs of two norms and what they made (4 rows of WIDTH); q, k, v and
   attention's output (4), with a number for each head; gelu's input and output (8). */
static double formula(int words) { return 4.0 * words * (16 * WIDTH + HEADS); }

static void table(void)
{
    printf("words   a block leaves      formula      its scores would be\n");
    for (int words = 64; words <= 1024; words *= 2)
        printf("%5d   %14.0f   %10.0f %s   %18.0f\n", words, block_leaves(words), formula(words),
               lesson_same(block_leaves(words), formula(words)), scores(words));
    printf("\n%d blocks, 256 words, Adam: segments of whole blocks\n"
           "blocks in a segment   bytes that wait      peak   blocks run again\n", BLOCKS);
    const gcp_plan keep = plan_of(record(256, BLOCKS), GCP_POLICY_KEEP_ALL, 0);
    printf("%19s   %15zu  %8zu   %16d\n", "keep all", keep.after_forward - 4, keep.bytes, keep.reruns);
    for (int k = 1; k <= BLOCKS; k++) {
        if (BLOCKS % k) continue;
        const gcp_plan p = plan_of(record(256, BLOCKS), GCP_POLICY_UNIFORM, BLOCKS / k);
        printf("%19d   %15zu  %8zu   %16d\n", k, p.after_forward - 4, p.bytes, p.reruns);
    }
    const gcp_tensor loss = record(256, BLOCKS);
    const gcp_plan all = plan_of(loss, GCP_POLICY_KEEP_ALL, 0), plan = plan_of(loss, GCP_POLICY_SEGMENTS, 0);
    lesson_picture("14_blocks.svg", &plan, &all);
}

static double answer(void) { return scores(256); }

/* ---- the exercises: exercises/14_1.h and 14_2.h ---- */

static int exercise_1(void);
static gcp_tensor exercise_2(gcp_tensor x);

/* The fewest words from which the scores alone would be more than all else that a block leaves. */
static int solved_1(void)
{
    const int words = exercise_1();
    if (words < 2 || words > 4096) { printf("%d words?\n", words); return 0; }
    printf("Of %d words the scores would be %.0f bytes, and a block leaves %.0f; of %d %.0f and %.0f.\n", words,
           scores(words), formula(words), words - 1, scores(words - 1), formula(words - 1));
    return scores(words) > formula(words) && scores(words - 1) <= formula(words - 1);
}

/* So many parameters has a layer norm, with dense layers to 4 WIDTH and back. */
enum { DENSE = 2 * WIDTH + WIDTH * 4 * WIDTH + 4 * WIDTH + 4 * WIDTH * WIDTH + WIDTH };

/* The second half of a block, in a segment: what one more of them leaves, and how many parameters it has. */
static int dense_blocks(int words, int count)
{
    size_t waits[2], parameters[2] = { 0, 0 };
    for (int k = 0; k < 2; k++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        gcp_tape *net = gcp_tape_make(&arena, .ops = 256);
        gcp_tensor x = gcp_input(net, "words", GCP_SHAPE(1, words, WIDTH));
        x = gcp_linear(x, .out = WIDTH);
        for (int i = 0; i < count + k; i++) x = exercise_2(x);
        waits[k] = plan_of(gcp_mean(gcp_mul(x, x)), GCP_POLICY_SEGMENTS, 0).after_forward;
        for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++)
            parameters[k] += gcp_elements(gcp_nth_parameter(net, i));
    }
    return lesson_case("What one exercise_2 more leaves", (double)(waits[1] - waits[0]), 4.0 * words * WIDTH) &&
           lesson_case("The parameters of exercise_2", (double)(parameters[1] - parameters[0]), DENSE);
}
static int solved_2(void) { return dense_blocks(256, 2); }

static const lesson self = { __FILE__, table, answer, "bytes",
    "A score for each pair of words, in each head.",
#include "answers/14.h"
    ,
    "Attention's backward can make the scores again from q, k and v, if it knows one number for each word and head\n"
    "(the logarithm of the sum that softmax divides by; Rabe, Staats 2021, Dao et al. 2022): recomputing, inside of\n"
    "one op. So memory grows with the number of words, not with its square. What is left grows with depth: a block\n"
    "leaves 16 rows of its width for each word, half of them around gelu. Segments of one block keep one row.",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/14_1.h>
#include <exercises/14_2.h>
