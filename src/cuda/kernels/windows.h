/* Windows: pooling and upsampling. Forward: a thread a unit of the output. Backward: a thread a unit of the input,
   which gathers from the windows over it in the order of the outputs: no atomics, and the order of the CPU's sums. */

struct gcpi_spot { int image, y, x; size_t c; };
template <int V> GCPI_DEVICE gcpi_spot gcpi_spot_of(size_t i, gcp_shape s)
{
    const gcpi_unit u = gcpi_unit_of<V>(i, (unsigned)s.d[3] / V);
    const unsigned h = (unsigned)s.d[1], w = (unsigned)s.d[2];
    const size_t pixel = (size_t)u.pixel, row = gcpi_over(pixel, w), image = gcpi_over(row, h);
    gcpi_spot p = { (int)image, (int)(row - image * h), (int)(pixel - row * w), u.c };
    return p;
}
GCPI_DEVICE gcpi_cuda_array gcpi_at(const gcp_view &v, int image, int y, int x, size_t c)
{
    return gcpi_at(v, (((ptrdiff_t)image * v.shape.d[1] + y) * v.shape.d[2] + x) * v.pitch + (ptrdiff_t)c);
}
template <int V> GCPI_DEVICE void gcpi_load_bytes(unsigned *v, const unsigned char *p)
{
    const unsigned all = V == 4 ? *(const unsigned *)p : *p;
    for (int k = 0; k < V; k++) v[k] = all >> 8 * k & 255;
}
GCPI_DEVICE int gcpi_low(int size, int start) { return start < 0 ? 0 : start < size ? start : size; }

/* Max and average pooling: their tensors, or the gradients of these. which: the cell of each maximum, or NULL. */
struct gcpi_pool { gcpi_cuda_conv a; gcp_view x, y; unsigned char *which; size_t units; };
GCPI_DEVICE float gcpi_share(const gcpi_cuda_conv &a, int oy, int ox)
{
    int top = oy * a.sh - a.pt, left = ox * a.sw - a.pl;
    int cells = (gcpi_low(a.h, top + a.kh) - gcpi_low(a.h, top)) * (gcpi_low(a.w, left + a.kw) - gcpi_low(a.w, left));
    return 1.0f / (float)(cells > 1 ? cells : 1);
}
/* sum += v; lost: what rounding has left out so far (Kahan 1965). The window may be a whole image. */
GCPI_DEVICE void gcpi_add_kept(float *sum, float *lost, float v)
{
    const float more = v - *lost, now = *sum + more;
    const float left = (now - *sum) - more;
    *lost = left == left ? left : 0;                     /* an infinity stays one */
    *sum = now;
}
template <int V, bool MAX> __global__ void gcpi_pool_kernel(gcpi_pool m)
{
    const gcpi_cuda_conv &a = m.a;
    const size_t i = gcpi_thread();
    if (i >= m.units) return;
    const gcpi_spot p = gcpi_spot_of<V>(i, m.y.shape);
    const int top = p.y * a.sh - a.pt, left = p.x * a.sw - a.pl;
    const float share = MAX ? 1 : gcpi_share(a, p.y, p.x);
    float v[V], y[V] = {}, lost[V] = {};
    unsigned cell[V] = {}, cells = 0;
    bool first = true;
    for (int iy = gcpi_low(a.h, top); iy < gcpi_low(a.h, top + a.kh); iy++)
        for (int ix = gcpi_low(a.w, left); ix < gcpi_low(a.w, left + a.kw); ix++, first = false) {
            gcpi_load<V>(v, gcpi_at(m.x, p.image, iy, ix, p.c));
            for (int k = 0; k < V; k++) {
                if (!MAX) { gcpi_add_kept(&y[k], &lost[k], v[k]); continue; }
                if (!first && !(v[k] > y[k])) continue;
                y[k] = v[k];
                cell[k] = (unsigned)((iy - top) * a.kw + ix - left);
            }
        }
    for (int k = 0; k < V && !MAX; k++) y[k] *= share;
    gcpi_store<V>(gcpi_at(m.y, p.image, p.y, p.x, p.c), y);
    for (int k = 0; k < V; k++) cells |= cell[k] << 8 * k;
    if (MAX && m.which && V == 4) ((unsigned *)m.which)[i] = cells;
    else if (MAX && m.which) m.which[i] = (unsigned char)cells;
}

/* Outputs whose windows lie over row (column) i: from gcpi_first to the last at or before (i + pad) / stride. */
GCPI_DEVICE int gcpi_first(int i, int pad, int k, int stride)
{
    const int t = i + pad - k + 1;
    return t <= 0 ? 0 : (t + stride - 1) / stride;
}
template <int V, bool MAX> __global__ void gcpi_pool_back_kernel(gcpi_pool m)
{
    const gcpi_cuda_conv &a = m.a;
    const size_t i = gcpi_thread();
    if (i >= m.units) return;
    const gcpi_spot p = gcpi_spot_of<V>(i, m.x.shape);
    const gcpi_cuda_array to = gcpi_at(m.x, p.image, p.y, p.x, p.c);
    float sum[V] = {}, g[V];
    unsigned which[V] = {};
    if (m.x.accumulate) gcpi_load<V>(sum, to);
    for (int oy = gcpi_first(p.y, a.pt, a.kh, a.sh); oy < a.ho && oy * a.sh - a.pt <= p.y; oy++)
        for (int ox = gcpi_first(p.x, a.pl, a.kw, a.sw); ox < a.wo && ox * a.sw - a.pl <= p.x; ox++) {
            const unsigned cell = (unsigned)((p.y - oy * a.sh + a.pt) * a.kw + p.x - ox * a.sw + a.pl);
            const float share = MAX ? 1 : gcpi_share(a, oy, ox);
            if (MAX && m.which)
                gcpi_load_bytes<V>(which, m.which + (((size_t)p.image * a.ho + oy) * a.wo + ox) * a.co + p.c);
            gcpi_load<V>(g, gcpi_at(m.y, p.image, oy, ox, p.c));
            for (int k = 0; k < V; k++) {
                if (MAX) sum[k] = which[k] == cell ? sum[k] + g[k] : sum[k];
                else sum[k] += g[k] * share;
            }
        }
    gcpi_store<V>(to, sum);
}
template <bool MAX> static void gcpi_pool_launch(gcpi_pool m, bool back, cudaStream_t stream)
{
    const bool four = (uintptr_t)m.which % 4 == 0 && gcpi_cut_of(m.x, m.y, m.y, false).v == 4;
    m.units = gcpi_count_of(back ? m.x.shape : m.y.shape) / (four ? 4 : 1);
    if (back && four) GCPI_EACH((gcpi_pool_back_kernel<4, MAX>), m.units, m);
    else if (back)    GCPI_EACH((gcpi_pool_back_kernel<1, MAX>), m.units, m);
    else if (four)    GCPI_EACH((gcpi_pool_kernel<4, MAX>), m.units, m);
    else              GCPI_EACH((gcpi_pool_kernel<1, MAX>), m.units, m);
}
void gcpi_cuda_max_pool(const gcpi_cuda_conv *c, gcp_view x, gcp_view y, unsigned char *which, int back,
                        cudaStream_t stream)
{
    gcpi_pool_launch<true>({ *c, x, y, which, 0 }, back, stream);
}
void gcpi_cuda_avg_pool(const gcpi_cuda_conv *c, gcp_view x, gcp_view y, int back, cudaStream_t stream)
{
    gcpi_pool_launch<false>({ *c, x, y, NULL, 0 }, back, stream);
}

/* Upsampling: the taps of large pixel o, as on the CPU (half-pixel centres, edges clamped). */
struct gcpi_lerp { int i[2]; float w[2]; };
GCPI_DEVICE gcpi_lerp gcpi_lerp_of(int o, int factor, int size, int bilinear)
{
    gcpi_lerp t;
    double x = bilinear ? fmax(0.0, ((double)o + 0.5) / factor - 0.5) : (double)(o / factor);
    t.i[0] = (int)x;
    t.i[1] = t.i[0] + 1 < size ? t.i[0] + 1 : size - 1;
    t.w[1] = (float)(x - (double)t.i[0]);
    t.w[0] = 1 - t.w[1];
    return t;
}
__global__ void gcpi_upsample_kernel(gcp_view x, gcp_view y, int factor, int bilinear, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const gcpi_spot p = gcpi_spot_of<1>(i, y.shape);
    gcpi_lerp ty = gcpi_lerp_of(p.y, factor, x.shape.d[1], bilinear),
              tx = gcpi_lerp_of(p.x, factor, x.shape.d[2], bilinear);
    float sum = 0;
    for (int t = 0; t < 4; t++) {
        float w = ty.w[t >> 1] * tx.w[t & 1];
        if (w != 0) sum += w * gcpi_get(gcpi_at(x, p.image, ty.i[t >> 1], tx.i[t & 1], p.c), 0);
    }
    gcpi_set(gcpi_at(y, p.image, p.y, p.x, p.c), 0, sum);
}
__global__ void gcpi_upsample_back_kernel(gcp_view dx, gcp_view dy, int factor, int bilinear, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const gcpi_spot p = gcpi_spot_of<1>(i, dx.shape);
    int h = dx.shape.d[1], w = dx.shape.d[2], reach = bilinear ? factor : 0;
    const gcpi_cuda_array to = gcpi_at(dx, p.image, p.y, p.x, p.c);
    float sum = dx.accumulate ? gcpi_get(to, 0) : 0;
    for (int oy = gcpi_low(h * factor, p.y * factor - reach); oy < gcpi_low(h * factor, (p.y + 1) * factor + reach);
         oy++) {
        gcpi_lerp ty = gcpi_lerp_of(oy, factor, h, bilinear);
        for (int ox = gcpi_low(w * factor, p.x * factor - reach); ox < gcpi_low(w * factor, (p.x + 1) * factor + reach);
             ox++) {
            gcpi_lerp tx = gcpi_lerp_of(ox, factor, w, bilinear);
            for (int t = 0; t < 4; t++) {
                float weight = ty.w[t >> 1] * tx.w[t & 1];
                if (weight != 0 && ty.i[t >> 1] == p.y && tx.i[t & 1] == p.x)
                    sum += weight * gcpi_get(gcpi_at(dy, p.image, oy, ox, p.c), 0);
            }
        }
    }
    gcpi_set(to, 0, sum);
}
void gcpi_cuda_upsample(gcp_view x, gcp_view y, int factor, int bilinear, int back, cudaStream_t stream)
{
    const size_t count = gcpi_count_of(back ? x.shape : y.shape);
    if (back) GCPI_EACH(gcpi_upsample_back_kernel, count, x, y, factor, bilinear, count);
    else      GCPI_EACH(gcpi_upsample_kernel, count, x, y, factor, bilinear, count);
}
