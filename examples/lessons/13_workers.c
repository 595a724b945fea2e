/* Lesson 13: several workers

   Workers with a share of the batch each sum up to one worker with all of it. You will see what they send each other
   (a ring moves less than twice the gradients, for any number of workers), and that a share of the batch is a share
   of the activations, but not of the weights.

   Predict: 4 workers sum gradients of 1,000,000 bytes each in a ring; in the end each has the sum. How many bytes
   does each worker send? */
#include "gcp.h"
#include "lesson.h"

/* ---- workers in turn, in one process; on machines MPI stands between them (gcp's examples/workers.h) ---- */

enum { BATCH = 16, MOST = 4, C = 8, PIXELS = BATCH * 16 * 16 * C, VALUES = 2 * (C * 9 * C + C) };
static unsigned char tape_memory[GCP_MB(1)], step_memory[GCP_MB(4)];
static const gcp_target one = { .threads = 1, .isa = GCP_ISA_SCALAR };       /* the same bytes on every machine */
static float images[PIXELS], gradients[MOST][VALUES];

static gcp_arena arena;
static gcp_tensor record(int count)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 32, .seed = 3);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(count, 16, 16, C));
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "layers") x = gcp_tanh(gcp_tanh(gcp_tanh(gcp_conv2d(x, .out = C, .k = 3, .pad = 1))));
    return gcp_mean(gcp_mul(x, x));
}

/* A step on images first to first + count; the gradients of all parameters, one after another, go to out. */
static gcp_plan step(int first, int count, gcp_policy policy, float *out)
{
    const gcp_tensor loss = record(count);
    gcp_tape *net = loss.tape;
    gcp_plan plan = gcp_plan_make(loss, .policy = policy, .target = &one);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, gcp_find(net, "x"), images + (size_t)first * (PIXELS / BATCH));
    gcp_step(&plan, .share = (double)count / BATCH);        /* the mean over all workers' images, not over its own */
    for (int i = 0; i < 4; i++) {
        const gcp_tensor p = gcp_nth_parameter(net, i);
        gcp_grad(&plan, p, out);
        out += gcp_elements(p);
    }
    if (gcp_error(net)) { printf("%s\n", gcp_error(net)); exit(1); }
    return plan;
}

/* Ring all-reduce of n floats (a multiple of w). In w - 1 rounds each worker sends its right neighbour one part, which
   adds it: then each has the sum of one part. In w - 1 more the finished parts go round. Returns bytes sent by each. */
static size_t ring(float *const *data, int w, int n)
{
    size_t sent = 0;
    const int part = n / w;
    for (int round = 0; round < 2 * (w - 1); round++) {
        for (int from = 0; from < w; from++) {
            const int to = (from + 1) % w, which = ((from - round) % w + 2 * w) % w;
            for (int i = which * part; i < (which + 1) * part; i++)
                data[to][i] = round < w - 1 ? data[to][i] + data[from][i] : data[from][i];
        }
        sent += (size_t)part * sizeof(float);
    }
    return sent;
}

static void table(void)
{
    static float whole[VALUES];
    for (int i = 0; i < PIXELS; i++) images[i] = (float)(i * 7 % 31 - 15) / 15;
    step(0, BATCH, GCP_POLICY_KEEP_ALL, whole);
    printf("workers  images  bytes each  in segments  (saved)  weights  difference  sent by each  2 (w - 1) / w x "
           "%d\n", VALUES * 4);
    for (int w = 1; w <= MOST; w *= 2) {
        float *all[MOST] = { gradients[0], gradients[1], gradients[2], gradients[3] };
        gcp_plan keep = { 0 }, less = { 0 };
        double off = 0;
        for (int k = 0; k < w; k++) less = step(k * (BATCH / w), BATCH / w, GCP_POLICY_SEGMENTS, all[k]);
        for (int k = 0; k < w; k++) keep = step(k * (BATCH / w), BATCH / w, GCP_POLICY_KEEP_ALL, all[k]);
        const size_t sent = ring(all, w, VALUES);
        for (int i = 0; i < VALUES; i++) off = fmax(off, fabs((double)(all[w - 1][i] - whole[i])));
        const double formula = 2.0 * (w - 1) / w * VALUES * 4;
        printf("%7d  %6d  %10zu  %11zu   %4.0f %%  %7zu  %10.1e  %12zu  %20.0f %s\n", w, BATCH / w, keep.bytes,
               less.bytes, 100 - 100.0 * (double)less.bytes / (double)keep.bytes, keep.state_bytes, off, sent, formula,
               w > 1 ? lesson_same((double)sent, formula) : "=");
        lesson_differs += off > 1e-6;
    }
    const gcp_tensor loss = record(BATCH / MOST);
    const gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .target = &one),
                   plan = gcp_plan_make(loss, .target = &one);
    lesson_picture("13_a_quarter.svg", &plan, &keep);
}

static double answer(void)
{
    static float data[MOST][250000];
    float *all[MOST] = { data[0], data[1], data[2], data[3] };
    return (double)ring(all, 4, 250000);
}

/* ---- the exercises: exercises/13_1.h and 13_2.h ---- */

static double exercise_1(int workers, double bytes);
static double exercise_2(int own, int batch);

static int solved_1(void) { return GIVES(exercise_1(8, 2000), 3500) && GIVES(exercise_1(1000, 500), 999); }
static int solved_2(void)
{
    return GIVES(exercise_2(5, 16), 0.3125) && GIVES(exercise_2(1, 1), 1);
}

static const lesson self = { __FILE__, table, answer, "bytes",
    "The gradients are cut into as many parts as there are workers. How many rounds does it take until each worker\n"
    "has the sum of one part? And until each has all parts?",
#include "answers/13.h"
    ,
    "The gradient of a mean is a sum over images, so it may be summed in parts; only the order of additions differs,\n"
    "and with it the last bits. Activations shrink with the share, weights do not. Checkpointing still saves each\n"
    "worker about as much of its share, here two fifths: the two go together. Gradients are sent as soon as they are\n"
    "finished, while backward goes on (on_gradient).",
    { solved_1, solved_2 }, NULL };
int main(int argc, char **argv) { return lesson_main(&self, argc, argv); }
#include <exercises/13_1.h>
#include <exercises/13_2.h>
