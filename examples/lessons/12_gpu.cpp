/* Lesson 12: a GPU without a GPU

   A GPU divides a layer into blocks of threads, one element to a thread. You will stop a debugger in one thread of a
   kernel, without a GPU, and see why sums on a GPU may have other bits in each run, and how gcp's keep the same
   ones.

   Predict: tanh of 1,000 elements (0 to 999) runs in blocks of 256 threads, one element to a thread. Which thread of
   its block (threadIdx.x, from 0) computes element 900? */
#define HOSTCUDA_IMPLEMENTATION
#include "cuda_runtime.h"                /* hostcuda/: CUDA on the CPU, as plain C++ */
#include "lesson.h"

/* ---- a kernel of a layer, and three kernels that sum ---- */

enum { N = 1000, THREADS = 256, BLOCKS = (N + THREADS - 1) / THREADS };

__global__ void tanh_kernel(float *y, const float *x, int *who, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i >= n) return;                  /* the last block has 24 threads too many */
    y[i] = tanhf(x[i]);
    who[i] = (int)threadIdx.x;
}
/* As the threads come, which nothing fixes. On a GPU this is atomicAdd. */
__global__ void sum_as_they_come(float *sum, const float *x) { *sum += x[threadIdx.x]; }
/* In pairs, one fixed order. __syncthreads() waits for all threads of the block. */
__global__ void sum_in_pairs(float *sum, const float *x)
{
    __shared__ float part[THREADS];
    unsigned t = threadIdx.x;
    part[t] = x[t];
    for (unsigned half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) part[t] += part[t + half];
    }
    if (t == 0) *sum = part[0];
}

__global__ void exercise_1(float *y, const float *x, int n);
__global__ void exercise_2(float *sum, const float *x);

static float *in, *out;                  /* device memory */
static int *threads;
static void copy(void *to, const void *from, int n) { cudaMemcpy(to, from, (size_t)n * 4, cudaMemcpyDefault); }
static void order(int i) { hostcuda_order(i < 2 ? i : 2, (unsigned)i); }
/* y = tanh(x) of N elements. */
static void layer(float *y)
{
    float x[N];
    for (int i = 0; i < N; i++) x[i] = (float)(i - N / 2) / N;
    copy(in, x, N);
    GCP_LAUNCH(tanh_kernel, BLOCKS, THREADS, 0, nullptr, out, in, threads, (int)N);
    copy(y, out, N);
}

static float sum(void (*kernel)(float *, const float *))
{
    float x[THREADS], s = 0;
    for (int i = 0; i < THREADS; i++) x[i] = 1.0f / (float)(i + 1);
    copy(in, x, THREADS);
    copy(out, &s, 1);
    GCP_LAUNCH(kernel, 1, THREADS, 0, nullptr, out, in);
    copy(&s, out, 1);
    if (cudaGetLastError()) printf("%s\n", hostcuda_message());
    return s;
}

static void table(void)
{
    static const char *const orders[] = { "forward", "reverse", "shuffled", "shuffled again" };
    float first[N], y[N], come = 0, pairs[THREADS];
    for (int i = 0; i < THREADS; i++) come += pairs[i] = 1.0f / (float)(i + 1);
    for (int half = THREADS / 2; half; half /= 2) for (int i = 0; i < half; i++) pairs[i] += pairs[i + half];
    for (int b = 0; b < BLOCKS; b++)
        printf("block %d: threads 0 to %d have the elements %d to %d\n", b, THREADS - 1, b * THREADS,
               (b + 1) * THREADS < N ? (b + 1) * THREADS - 1 : N - 1);
    printf("\nThe sum of 1 / i, by three kernels, and the tanh of the question\n"
           "order of threads    as they come       in pairs           exercise 2   tanh\n");
    for (int i = 0; i < 4; i++) {
        order(i);
        layer(i ? y : first);
        printf("%-16s %15.7f   %10.7f %s   %15.7f   %s\n", orders[i], sum(sum_as_they_come), sum(sum_in_pairs),
               lesson_same(sum(sum_in_pairs), pairs[0]), sum(exercise_2),
               i == 0 ? "first" : memcmp(y, first, sizeof y) ? "DIFFERS" : "the same bits");
        lesson_same(i == 0 ? sum(sum_as_they_come) : memcmp(y, first, sizeof y), i == 0 ? come : 0);
    }
}

static double answer(void) { float y[N]; int who[N]; layer(y); copy(who, threads, N); return who[900]; }

/* ---- the exercises: exercises/12_1.h and 12_2.h ---- */

static int solved_1(void)
{
    float x[N], y[N + THREADS], wrong = 0;
    for (int i = 0; i < N; i++) x[i] = (float)i;
    copy(in, x, N);
    for (int k = 0; k < 4; k++) {
        order(k);
        for (float &v : y) v = -1;
        copy(out, y, N + THREADS);
        GCP_LAUNCH(exercise_1, BLOCKS, THREADS, 0, nullptr, out, in, (int)N);
        copy(y, out, N + THREADS);
        for (int i = 0; i < N + THREADS; i++) wrong += y[i] != (i < N ? x[N - 1 - i] : -1);
    }
    return lesson_case("Wrong elements in four orders: exercise_1", wrong, 0);
}
/* Barriers that each thread of exercise_2 came to: as many for all. */
static int came[THREADS];
static int solved_2(void)
{
    int wrong = 0, apart = 0;
    memset(came, 0, sizeof came);
    for (int k = 0; k < 4; k++) { order(k); wrong += sum(exercise_2) != sum(sum_in_pairs); }
    for (int i = 0; i < THREADS; i++) apart += came[i] != came[0] || !came[i];
    return lesson_case("Wrong sums in four orders: exercise_2", wrong, 0) &&
           lesson_case("Threads that came to no barrier, or to others than thread 0: exercise_2", apart, 0);
}

static const lesson self = { __FILE__, table, answer, "(threadIdx.x)",
    "Block 0 has elements 0 to 255, block 1 has 256 to 511. Which block has 900?",
#include "answers/12.h"
    ,
    "Element = blockIdx.x x blockDim.x + threadIdx.x. Stop in its thread (compiled with -O0 -g): gdb and the path of\n"
    "this program, then\n"
    "    (gdb) break tanh_kernel if blockIdx.x == 2 && threadIdx.x == 88\n"
    "    (gdb) run                        it stops before the thread's first line\n"
    "    (gdb) next                       three times: its element is computed\n"
    "    (gdb) print i                    print x[i] is 0.1, print y[i] its tanh; then: delete, continue\n"
    "Threads of a block may run in any order between two barriers, and a float sum depends on its order. So gcp's\n"
    "kernels never add as threads come: each sum has one fixed order. A missing barrier may go unnoticed in one order\n"
    "and not in another: run the kernels in several. Recomputing launches the same kernels on the same input.\n"
    "gcp's own kernels too, in its sources: cmake --preset host && cmake --build build/host --target train, then\n"
    "break gcpi_cross_entropy_kernel in gdb --args build/host/examples/train --digits --epochs 1 --device cuda.",
    { solved_1, solved_2 }, nullptr };
int main(int argc, char **argv)
{
    if (cudaMalloc(&in, 4 * N) || cudaMalloc(&out, 4 * (N + THREADS)) || cudaMalloc(&threads, 4 * N)) return 2;
    return lesson_main(&self, argc, argv);
}
#include <exercises/12_1.h>
#define __syncthreads() (came[threadIdx.x]++, __syncthreads())
#include <exercises/12_2.h>
