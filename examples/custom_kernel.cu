/* custom_kernel.cu - custom.c's softmax on a GPU: a thread to a row.

       nvcc -O2 -arch=native -c custom_kernel.cu

   On the emulation (hostcuda/) the same text is C++, and GCP_LAUNCH is there. */
#include "gcp.h"
#include "gcp_cuda.h"

#ifndef GCP_LAUNCH
#define GCP_LAUNCH(kernel, grid, block, shared, stream, ...) kernel<<<grid, block, shared, stream>>>(__VA_ARGS__)
#endif

__global__ void softmax_kernel(gcp_view out, gcp_view in, int rows)
{
    const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x), channels = in.shape.d[3];
    if (p >= rows) return;
    const float *x = (const float *)in.data + p * in.pitch;
    float *y = (float *)out.data + p * out.pitch, most = x[0], sum = 0;
    for (int c = 1; c < channels; c++) most = fmaxf(most, x[c]);
    for (int c = 0; c < channels; c++) sum += y[c] = expf(x[c] - most);
    for (int c = 0; c < channels; c++) y[c] /= sum;
}

__global__ void softmax_back_kernel(gcp_view din, gcp_view out, gcp_view dout, int rows)
{
    const int p = (int)(blockIdx.x * blockDim.x + threadIdx.x), channels = out.shape.d[3];
    if (p >= rows) return;
    const float *y = (const float *)out.data + p * out.pitch, *dy = (const float *)dout.data + p * dout.pitch;
    float *dx = (float *)din.data + p * din.pitch, sum = 0;
    for (int c = 0; c < channels; c++) sum += y[c] * dy[c];
    for (int c = 0; c < channels; c++) dx[c] = y[c] * (dy[c] - sum) + (din.accumulate ? dx[c] : 0);
}

/* Both only put work into the target's stream: where a step is recorded, they are called while it records. */
static void forward_on_device(const gcp_call *call)
{
    const int *d = call->in[0].shape.d, rows = d[0] * d[1] * d[2];
    GCP_LAUNCH(softmax_kernel, (unsigned)(rows + 127) / 128, 128, 0, gcp_cuda_stream(call->target), call->out[0],
               call->in[0], rows);
}
static void backward_on_device(const gcp_call *call)
{
    const int *d = call->out[0].shape.d, rows = d[0] * d[1] * d[2];
    if (!call->din[0].data) return;
    GCP_LAUNCH(softmax_back_kernel, (unsigned)(rows + 127) / 128, 128, 0, gcp_cuda_stream(call->target), call->din[0],
               call->out[0], call->dout[0], rows);
}

/* name, shape, forward, backward; the row in custom.c has the rest */
extern "C" {
extern const gcp_op softmax_on_device;
const gcp_op softmax_on_device = { "softmax", NULL, forward_on_device, backward_on_device, NULL, 0, 0, 0, 0, NULL };
}
