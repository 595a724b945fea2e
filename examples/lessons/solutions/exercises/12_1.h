__global__ void exercise_1(float *y, const float *x, int n)
{
    int i = (int)(blockIdx.x * blockDim.x + threadIdx.x);
    if (i < n) y[i] = x[n - 1 - i];
}
