/* Exercise 2. This sum is right in one order of threads and not in others. Find the barrier that is missing: all
   threads must reach it. */
__global__ void exercise_2(float *sum, const float *x)
{
    __shared__ float part[THREADS];
    unsigned t = threadIdx.x;
    part[t] = x[t];
    __syncthreads();
    for (unsigned half = THREADS / 2; half; half /= 2)
        if (t < half) part[t] += part[t + half];
    __syncthreads();
    if (t == 0) *sum = part[0];
}
