/* Lesson 01: backpropagation by hand

   A network is a chain of layers here, x -> tanh(w x), each with one weight, on 1,000 numbers at once. Training asks
   how the loss changes with each weight. Backward answers, last layer first, and needs values that forward made. You
   will see which ones, why they are many, and how to tell that a gradient is right.

   What waits are the bytes that layers made and that backward will read. The input does not count, as it is there
   anyway; nor does the loss, one float. All lessons count so.

   Predict: 8 such layers, each on 1,000 floats of 4 bytes. How many bytes wait where forward is done? */
#include <stddef.h>
#include "lesson.h"

enum { LAYERS = 16, NUMBERS = 1000, ARRAY = NUMBERS * sizeof(float) };
static float input[NUMBERS], weight[LAYERS], weight_gradient[LAYERS];

static void start(void)
{
    for (int k = 0; k < NUMBERS; k++) input[k] = (float)(k % 21 - 10) / 10;
    for (int i = 0; i < LAYERS; i++) weight[i] = 1.5f - 0.05f * (float)i;
}

/* Memory is counted in arrays. take() gives one, give() takes it back, and what was in it is gone. */
static float array_pool[2 * LAYERS + 2][NUMBERS];
static int array_in_use[2 * LAYERS + 2], arrays_held, most_arrays_held;

static float *take(void)
{
    int i = 0;
    while (array_in_use[i]) i++;
    array_in_use[i] = 1;
    if (++arrays_held > most_arrays_held) most_arrays_held = arrays_held;
    return array_pool[i];
}
/* Whether an array is the input or in use; strangers: how often one that is neither was used or given back. */
static int strangers;
static int known(const float *array)
{
    const ptrdiff_t at = array - array_pool[0];
    return array == input || (at >= 0 && at < 2 * (LAYERS + 1) * NUMBERS && array_in_use[at / NUMBERS]);
}
static void give(float *array)
{
    if (!known(array) || array == input) { strangers++; return; }
    for (int k = 0; k < NUMBERS; k++) array[k] = NAN;
    array_in_use[(array - array_pool[0]) / NUMBERS] = 0;
    arrays_held--;
}

/* One layer. Its derivatives are dy/dx = w (1 - y y) and dy/dw = x (1 - y y): backward reads x and y, what went into
   the layer and what came out. The gradient of y comes in, that of x goes out, in the same array. */
static void layer_forward(int i, const float *x, float *y)
{
    for (int k = 0; k < NUMBERS; k++) y[k] = tanhf(weight[i] * x[k]);
}
static void layer_backward(int i, const float *x, const float *y, float *gradient)
{
    double sum = 0;
    for (int k = 0; k < NUMBERS; k++) {
        const float inner = gradient[k] * (1 - y[k] * y[k]);
        sum += inner * x[k];
        gradient[k] = inner * weight[i];
    }
    weight_gradient[i] = (float)sum;
}

/* The loss is the mean of the squares. Its gradient, 2 y / n for each number, is what backward begins with. */
static double loss_of(const float *y, float *gradient)
{
    double sum = 0;
    for (int k = 0; k < NUMBERS; k++) sum += y[k] * y[k];
    for (int k = 0; k < NUMBERS; k++) gradient[k] = 2 * y[k] / NUMBERS;
    return sum / NUMBERS;
}

/* A step. The first layer's output is made first and read last: what layer i made waits in made[i + 1]. */
static int waiting;                                     /* arrays that wait where forward is done */
static double step(int layers)
{
    static float gradient[NUMBERS];
    float *made[LAYERS + 1] = { input };
    for (int i = 0; i < layers; i++) {
        made[i + 1] = take();
        layer_forward(i, made[i], made[i + 1]);
    }
    waiting = arrays_held;
    const double loss = loss_of(made[layers], gradient);
    for (int i = layers - 1; i >= 0; i--) {
        layer_backward(i, made[i], made[i + 1], gradient);
        give(made[i + 1]);
    }
    return loss;
}

/* How to tell that a gradient is right: move the weight a little, and see how the loss moves. */
static double slope(int layers)
{
    const float w = weight[0], little = 1e-2f;
    weight[0] = w + little;
    const double above = step(layers);
    weight[0] = w - little;
    const double below = step(layers);
    weight[0] = w;
    return (above - below) / (2 * (double)little);
}

static void table(void)
{
    start();
    printf("layers   bytes that wait     n x 4000      gradient of w[0]   slope of the loss\n");
    for (int n = 2; n <= LAYERS; n *= 2) {
        const double should = slope(n);
        step(n);
        printf("%6d   %15d   %10d %s   %16.6f   %17.6f\n", n, waiting * ARRAY, n * 4000,
               lesson_same(waiting * ARRAY, n * 4000), (double)weight_gradient[0], should);
        lesson_differs += fabs(weight_gradient[0] - should) > 1e-3 * fabs(should) + 1e-6;
    }
}

static double answer(void)
{
    start();
    step(8);
    return waiting * ARRAY;
}

/* ---- the exercises: exercises/01_1.h to 01_3.h ---- */

static double exercise_1(double x, double gradient);
static int exercise_2(int layers);
static double exercise_3(int layers, int k);

static int solved_1(void) { return GIVES(exercise_1(3, 2), 12) && GIVES(exercise_1(-0.5, 4), -4); }
static int solved_2(void) { return GIVES(exercise_2(4), 500) && GIVES(exercise_2(8), 1000); }

/* The same bits as step()'s, in n/k + k arrays at most, and all of them given back. */
static int checkpointed(int layers, int k)
{
    float expected[LAYERS];
    start();
    const double loss = step(layers);
    memcpy(expected, weight_gradient, sizeof expected);
    memset(weight_gradient, 0, sizeof weight_gradient);
    most_arrays_held = arrays_held = strangers = 0;
    memset(array_in_use, 0, sizeof array_in_use);
    const double yours = exercise_3(layers, k);
    const int same = yours == loss && !memcmp(expected, weight_gradient, (size_t)layers * sizeof *expected),
              bound = (layers + k - 1) / k + k;
    printf("%2d layers, k = %d: %s; %d arrays at once, of at most %d; %d not given back.\n", layers, k,
           same ? "the same loss and gradients" : "another loss, or other gradients", most_arrays_held, bound,
           arrays_held);
    if (strangers) printf("%d times an array was used, or given back, that take() had not given.\n", strangers);
    return same && most_arrays_held <= bound && most_arrays_held > 0 && !arrays_held && !strangers;
}
static int solved_3(void) { return checkpointed(16, 4) && checkpointed(12, 3) && checkpointed(10, 4); }

static const lesson self = { __FILE__, table, answer, "bytes",
    "Which values does the backward of one layer read? The output of one is the input of the next: count it once.",
#include "answers/01.h"
    ,
    "Forward goes up, backward comes down, and what the first layer made waits the longest. So n layers keep n\n"
    "arrays. This is the memory that checkpointing is about: Chen et al. 2016 start from this O(n).",
    { solved_1, solved_2, solved_3 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/01_1.h>
#include <exercises/01_2.h>

/* In exercise 3 layers take arrays that are known. */
#define layer_forward(i, x, y) (known(x) && known(y) ? layer_forward(i, x, y) : (void)strangers++)
#define layer_backward(i, x, y, gradient) (known(x) && known(y) ? layer_backward(i, x, y, gradient) : (void)strangers++)
#include <exercises/01_3.h>
