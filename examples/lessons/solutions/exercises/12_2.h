__global__ void exercise_2(float *sum, const float *x)
{
    __shared__ float part[THREADS];
    unsigned t = threadIdx.x;
    part[t] = x[t];
    for (unsigned half = THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (t < half) part[t] += part[t + half];
    }
    __syncthreads();
    if (t == 0) *sum = part[0];
}
