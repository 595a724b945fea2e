#include "lesson.h"

static const char learn[] =
    "You will learn\n"
    "- that backward needs values which forward made, and which ones;\n"
    "- that plain backpropagation keeps all of them, so memory grows with depth;\n"
    "- how to tell that a gradient is right: the loss must change with the weight as the gradient says.";

static const char question[] =
    "a chain of 8 layers, x -> tanh(w x), each on 1,000 floats of 4 bytes. How many bytes must forward keep\n"
    "for backward, the chain's input among them?";

/* ---- the program: plain C, no library ---- */

enum { LAYERS = 16, NUMBERS = 1000 };
static float kept[LAYERS + 1][NUMBERS];                 /* kept[0] is the input, kept[i + 1] what layer i made */
static float weight[LAYERS], weight_gradient[LAYERS];
static size_t bytes_kept;

static void start(void)
{
    for (int k = 0; k < NUMBERS; k++) kept[0][k] = (float)(k % 21 - 10) / 10;
    for (int i = 0; i < LAYERS; i++) weight[i] = 1.5f - 0.05f * (float)i;
}

/* Each layer's output is kept: the next layer reads it now, and backward will read it again. */
static double forward(int layers)
{
    double sum = 0;
    bytes_kept = sizeof kept[0];
    for (int i = 0; i < layers; i++) {
        for (int k = 0; k < NUMBERS; k++) kept[i + 1][k] = tanhf(weight[i] * kept[i][k]);
        bytes_kept += sizeof kept[i + 1];
    }
    for (int k = 0; k < NUMBERS; k++) sum += kept[layers][k] * kept[layers][k];
    return sum / NUMBERS;                                /* the loss: the mean of the squares */
}

/* Last layer first. y = tanh(w x), so dy/dx = w (1 - y y) and dy/dw = x (1 - y y): backward reads x and y. */
static void backward(int layers)
{
    static float gradient[NUMBERS];                      /* of the loss, for what the layer made */
    for (int k = 0; k < NUMBERS; k++) gradient[k] = 2 * kept[layers][k] / NUMBERS;
    for (int i = layers - 1; i >= 0; i--) {
        double sum = 0;
        for (int k = 0; k < NUMBERS; k++) {
            const float x = kept[i][k], y = kept[i + 1][k], inner = gradient[k] * (1 - y * y);
            sum += inner * x;
            gradient[k] = inner * weight[i];
        }
        weight_gradient[i] = (float)sum;
    }
}

/* The slope of the loss when the first weight moves a little: what weight_gradient[0] must be. */
static double slope(int layers)
{
    const float w = weight[0], step = 1e-2f;
    weight[0] = w + step;
    const double above = forward(layers);
    weight[0] = w - step;
    const double below = forward(layers);
    weight[0] = w;
    return (above - below) / (2 * (double)step);
}

static void table(void)
{
    start();
    printf("layers   bytes kept   (n + 1) x 4000      gradient of w[0]   slope of the loss\n");
    for (int n = 2; n <= LAYERS; n *= 2) {
        const double should = slope(n);
        forward(n);
        backward(n);
        printf("%6d   %10zu   %14d %s   %16.6f   %17.6f\n", n, bytes_kept, (n + 1) * 4 * NUMBERS,
               lesson_same((double)bytes_kept, (n + 1) * 4.0 * NUMBERS), (double)weight_gradient[0], should);
        lesson_differs += fabs(weight_gradient[0] - should) > 1e-3 * fabs(should) + 1e-6;
    }
}

static double answer(void)
{
    start();
    forward(8);
    return (double)bytes_kept;
}

static const char why[] =
    "The backward of each layer reads its input and its output. The output of one is the input of the next, so 8\n"
    "layers keep 8 outputs and one input: 9 x 1,000 x 4 bytes.";

static const char explain[] =
    "forward goes up, backward comes down, and what the first layer made waits the longest. n layers keep n + 1\n"
    "arrays. This is the memory that checkpointing is about: Chen et al. 2016 start from this O(n).";

/* ---- change it ---- */

#ifdef SOLUTIONS
#include "solutions/01.h"
#else
static double exercise_1(double x, double gradient) { return 0 * x * gradient; }
static int exercise_2(int layers) { return 0 * layers; }
#endif

static int solved_1(void) { return GIVES(exercise_1(3, 2), 12) && GIVES(exercise_1(-0.5, 4), -4); }
static int solved_2(void) { return GIVES(exercise_2(4), 2500) && GIVES(exercise_2(8), 3000); }

static const lesson self = {
    "01: backpropagation by hand", learn, question, table, answer, "bytes", why, explain,
    { "Make exercise_1 the backward of y = x x: it has x and the gradient of y, and returns the gradient of x.",
      "A ReLU's backward reads only whether its output is above 0: one bit, and no input. Make exercise_2 the bytes\n"
      "   that so many ReLUs on 1,000 numbers keep, 8 bits to a byte, and 2,000 bytes besides for other things." },
    { solved_1, solved_2 }
};
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
