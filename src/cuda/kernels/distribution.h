/* Softmax and its logarithm: a warp a pixel. */

struct gcpi_softmaxed { gcp_view to, y, dy; int logarithm; size_t pixels; };
GCPI_DEVICE size_t gcpi_warp_pixel() { return (size_t)blockIdx.x * (blockDim.x / 32) + threadIdx.x / 32; }

__global__ void gcpi_softmax_kernel(gcpi_softmaxed m)                     /* y: what goes in */
{
    const size_t p = gcpi_warp_pixel();
    const int lane = (int)(threadIdx.x % 32), n = m.to.shape.d[3];
    if (p >= m.pixels) return;
    const gcpi_cuda_array x = gcpi_pixel_of(m.y, p), to = gcpi_pixel_of(m.to, p);
    float top = gcpi_get(x, 0);
    double sum = 0;
    for (int i = lane; i < n; i += 32) top = gcpi_get(x, i) > top ? gcpi_get(x, i) : top;
    top = gcpi_warp_max(top);
    for (int i = lane; i < n; i += 32) sum += (double)expf(gcpi_get(x, i) - top);
    sum = gcpi_warp_sum(sum);
    const float share = (float)(1 / sum), all = (float)log(sum);
    for (int i = lane; i < n; i += 32) {
        const float v = gcpi_get(x, i) - top;
        gcpi_set(to, i, m.logarithm ? v - all : expf(v) * share);
    }
}
__global__ void gcpi_softmax_back_kernel(gcpi_softmaxed m)
{
    const size_t p = gcpi_warp_pixel();
    const int lane = (int)(threadIdx.x % 32), n = m.to.shape.d[3];
    if (p >= m.pixels) return;
    const gcpi_cuda_array y = gcpi_pixel_of(m.y, p), dy = gcpi_pixel_of(m.dy, p), to = gcpi_pixel_of(m.to, p);
    double sum = 0;
    for (int i = lane; i < n; i += 32)
        sum += (double)(m.logarithm ? gcpi_get(dy, i) : gcpi_get(y, i) * gcpi_get(dy, i));
    const float all = (float)gcpi_warp_sum(sum);
    for (int i = lane; i < n; i += 32) {
        const float v = gcpi_get(y, i), g = gcpi_get(dy, i);
        gcpi_set(to, i, m.logarithm ? g - expf(v) * all : v * (g - all), m.to.accumulate);
    }
}
void gcpi_cuda_softmax(gcp_view y, gcp_view x, int logarithm, cudaStream_t stream)
{
    gcpi_softmaxed m = { y, x, x, logarithm, gcpi_pixels_of(x.shape) };
    GCP_LAUNCH(gcpi_softmax_kernel, gcpi_blocks(m.pixels, 8), 256, 0, stream, m);
}
void gcpi_cuda_softmax_back(gcp_view dx, gcp_view y, gcp_view dy, int logarithm, cudaStream_t stream)
{
    gcpi_softmaxed m = { dx, y, dy, logarithm, gcpi_pixels_of(y.shape) };
    GCP_LAUNCH(gcpi_softmax_back_kernel, gcpi_blocks(m.pixels, 8), 256, 0, stream, m);
}
