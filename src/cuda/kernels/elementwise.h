/* Elementwise ops, reshape, dropout. */

/* What lines of pointwise_table.h call. */
GCPI_DEVICE float gcpi_exp1(float x) { return expf(x); }
GCPI_DEVICE float gcpi_expm11(float x) { return expm1f(x); }
GCPI_DEVICE float gcpi_log1(float x) { return logf(x); }
GCPI_DEVICE float gcpi_log1p1(float x) { return log1pf(x); }
GCPI_DEVICE float gcpi_abs1(float x) { return fabsf(x); }
GCPI_DEVICE float gcpi_sqrt1(float x) { return sqrtf(x); }
GCPI_DEVICE float gcpi_sigmoid1(float x) { return 1 / (1 + expf(-x)); }
GCPI_DEVICE float gcpi_tanh1(float x) { return tanhf(x); }
GCPI_DEVICE float gcpi_phi(float x) { return 0.5f * erfcf(-x * 0.70710678118654752f); }
GCPI_DEVICE float gcpi_density(float x) { return 0.39894228040143268f * expf(-0.5f * x * x); }

struct gcpi_map { gcp_view to, a, b; float p, q; gcpi_cut cut; };
#define GCPI_POINTWISE_CASE(NAME, name, reads, value, derivative)                             \
    case GCPI_FN_##NAME: { const float x = a; return value; }                                 \
    case GCPI_FN_##NAME##_BACK: { const float x = b, y = b; (void)x; (void)y; return a * (derivative); }
#define GCPI_NUMBERS_CASE(NAME, name, reads, value, derivative, ...) \
    GCPI_POINTWISE_CASE(NAME, name, reads, value, derivative)
template <int FN> GCPI_DEVICE float gcpi_apply(float a, float b, float p, float q)
{
    (void)q;
    switch (FN) {
    case GCPI_FN_ADD: case GCPI_FN_ADD_CHANNEL: return a + b;
    case GCPI_FN_MUL: return a * b;
    case GCPI_FN_FILL: return p;
    case GCPI_FN_FILL_FROM: return b * p;
    case GCPI_FN_ROUND: return gcpi_settled(a, true);
    GCPI_POINTWISE(GCPI_POINTWISE_CASE, GCPI_NUMBERS_CASE, GCPI_NUMBERS_CASE)
    default: return a; /* GCPI_FN_COPY */
    }
}
#undef GCPI_POINTWISE_CASE
#undef GCPI_NUMBERS_CASE
template <int FN, int V> __global__ void gcpi_map_kernel(gcpi_map m)
{
    const size_t i = gcpi_thread();
    if (i >= m.cut.units) return;
    const gcpi_unit u = gcpi_unit_of<V>(i, m.cut.width);
    float a[V] = {}, b[V] = {};
    if (m.a.data) gcpi_load<V>(a, gcpi_at(m.a, u));
    if (FN == GCPI_FN_ADD_CHANNEL) gcpi_load<V>(b, (const float *)m.b.data + u.c);
    else if (FN == GCPI_FN_FILL_FROM) for (int k = 0; k < V; k++) b[k] = *(const float *)m.b.data;
    else if (m.b.data) gcpi_load<V>(b, gcpi_at(m.b, u));
    for (int k = 0; k < V; k++) a[k] = gcpi_apply<FN>(a[k], b[k], m.p, m.q);
    gcpi_store<V>(m.to, u, a);
}
template <int FN> static void gcpi_map_launch(gcpi_map m, cudaStream_t stream)
{
    gcp_view b = m.b;
    if (FN == GCPI_FN_ADD_CHANNEL) b.pitch = 0;  /* one value a channel */
    if (FN == GCPI_FN_FILL_FROM) b.data = NULL;  /* one value */
    m.cut = gcpi_cut_of(m.to, m.a, b, FN != GCPI_FN_ADD_CHANNEL);
    if (m.cut.v == 4) GCPI_EACH((gcpi_map_kernel<FN, 4>), m.cut.units, m);
    else              GCPI_EACH((gcpi_map_kernel<FN, 1>), m.cut.units, m);
}
void gcpi_cuda_map(gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b, float p, float q, cudaStream_t stream)
{
    typedef void launcher(gcpi_map, cudaStream_t);
#define GCPI_POINTWISE_LAUNCH(NAME, name) , gcpi_map_launch<GCPI_FN_##NAME>, gcpi_map_launch<GCPI_FN_##NAME##_BACK>
    static launcher *const launch[] = {          /* in the order of gcpi_cuda_fn */
        gcpi_map_launch<GCPI_FN_COPY>, gcpi_map_launch<GCPI_FN_ADD>, gcpi_map_launch<GCPI_FN_MUL>,
        gcpi_map_launch<GCPI_FN_ADD_CHANNEL>, gcpi_map_launch<GCPI_FN_FILL>, gcpi_map_launch<GCPI_FN_FILL_FROM>,
        gcpi_map_launch<GCPI_FN_ROUND>
        GCP_POINTWISE_OPS(GCPI_POINTWISE_LAUNCH)
    };
#undef GCPI_POINTWISE_LAUNCH
    gcpi_map m = { to, a, b, p, q, { 0, 0, 0 } };
    launch[fn](m, stream);
}

/* apply: batch-norm, addition and rectifier in one pass, each where it is there. A byte of the mask is two threads' of
   four channels each, or that of a thread with eight. */
struct gcpi_applied { gcpi_cuda_apply a; gcpi_cut cut; };
template <int V> GCPI_DEVICE unsigned gcpi_apply_unit(const gcpi_cuda_apply &a, gcpi_unit u)
{
    float x[V], other[V] = {}, mean[V] = {}, scale[V] = {}, gamma[V] = {}, beta[V] = {};
    unsigned bits = 0;
    gcpi_load<V>(x, gcpi_at(a.x, u));
    if (a.other.data) gcpi_load<V>(other, gcpi_at(a.other, u));
    if (a.mean) {
        gcpi_load<V>(mean, a.mean + u.c);
        gcpi_load<V>(scale, a.scale + u.c);
        gcpi_load<V>(gamma, a.gamma + u.c);
        gcpi_load<V>(beta, a.beta + u.c);
    }
    for (int k = 0; k < V; k++) {
        float v = x[k];
        if (a.mean) v = gcpi_settled((v - mean[k]) * (scale[k] * gamma[k]) + beta[k], a.settles);
        if (a.other.data) v = gcpi_settled(v + other[k], a.settles);
        bits |= (unsigned)gcpi_within(v, a.rectifier) << k;
        x[k] = gcpi_rectified(v, a.rectifier);
    }
    gcpi_store<V>(gcpi_at(a.y, u), x);
    return bits;
}
__global__ void gcpi_apply_kernel(gcpi_applied m)
{
    const size_t first = gcpi_thread() * 8;
    unsigned bits = 0;
    for (unsigned k = 0; k < 8 && first + k < m.cut.units; k++)
        bits |= gcpi_apply_unit<1>(m.a, gcpi_unit_of<1>(first + k, m.cut.width)) << k;
    if (m.a.mask && first < m.cut.units) m.a.mask[first / 8] = (unsigned char)bits;
}
__global__ void gcpi_apply_fours_kernel(gcpi_applied m)
{
    const size_t four = gcpi_thread();
    unsigned bits = four < m.cut.units ? gcpi_apply_unit<4>(m.a, gcpi_unit_of<4>(four, m.cut.width)) : 0;
    bits |= __shfl_xor_sync(0xFFFFFFFFu, bits, 1) << 4;
    if (m.a.mask && four < m.cut.units && four % 2 == 0) m.a.mask[four / 2] = (unsigned char)bits;
}
void gcpi_cuda_apply_run(const gcpi_cuda_apply *a, cudaStream_t stream)
{
    gcpi_applied m = { *a, gcpi_cut_of(a->y, a->x, a->other, !a->mean) };
    const bool aligned = gcpi_aligned(a->mean) && gcpi_aligned(a->scale) && gcpi_aligned(a->gamma) &&
                         gcpi_aligned(a->beta);
    if (m.cut.v == 4 && aligned) { GCPI_EACH(gcpi_apply_fours_kernel, m.cut.units, m); return; }
    m.cut.units *= (size_t)m.cut.v;
    m.cut.width *= (unsigned)m.cut.v;
    GCPI_EACH(gcpi_apply_kernel, (m.cut.units + 7) / 8, m);
}

/* The rectifier's gradient: by the mask, or by y. */
struct gcpi_rectify {
    gcp_view dx, dy, y;
    const unsigned char *mask;
    gcpi_cuda_rectifier rectifier;
    gcpi_cut cut;
};
template <int V> __global__ void gcpi_rectify_back_kernel(gcpi_rectify r)
{
    const size_t i = gcpi_thread();
    if (i >= r.cut.units) return;
    const gcpi_unit u = gcpi_unit_of<V>(i, r.cut.width);
    const unsigned bits = r.mask ? r.mask[i * V / 8] >> (i * V % 8) : 0;
    float g[V], y[V] = {};
    gcpi_load<V>(g, gcpi_at(r.dy, u));
    if (!r.mask) gcpi_load<V>(y, gcpi_at(r.y, u));
    for (int k = 0; k < V; k++)
        if (r.mask ? (bits >> k & 1) == 0 : !gcpi_within(y[k], r.rectifier)) g[k] = r.rectifier.slope * g[k];
    gcpi_store<V>(r.dx, u, g);
}
void gcpi_cuda_rectify_back(gcp_view dx, gcp_view dy, gcp_view y, const unsigned char *mask,
                            const gcpi_cuda_rectifier *rectifier, cudaStream_t stream)
{
    if (mask) y.data = NULL;
    gcpi_rectify r = { dx, dy, y, mask, *rectifier, gcpi_cut_of(dx, dy, y, true) };
    if (r.cut.v == 4) GCPI_EACH(gcpi_rectify_back_kernel<4>, r.cut.units, r);
    else              GCPI_EACH(gcpi_rectify_back_kernel<1>, r.cut.units, r);
}

/* Same elements in the same order, rows of another length. */
__global__ void gcpi_reshape_kernel(gcp_view to, gcp_view from, size_t count)
{
    const size_t i = gcpi_thread();
    if (i >= count) return;
    const float v = gcpi_get(gcpi_at(from, gcpi_unit_of<1>(i, (unsigned)from.shape.d[3])), 0);
    gcpi_store<1>(to, gcpi_unit_of<1>(i, (unsigned)to.shape.d[3]), &v);
}
void gcpi_cuda_reshape(gcp_view to, gcp_view from, cudaStream_t stream)
{
    const size_t count = gcpi_count_of(to.shape);
    GCPI_EACH(gcpi_reshape_kernel, count, to, from, count);
}

/* Dropout: Philox 4x32-10 as on the CPU, four elements of one sample a draw. */
GCPI_DEVICE void gcpi_philox(unsigned c[4], uint64_t key)
{
    unsigned k0 = (unsigned)key, k1 = (unsigned)(key >> 32);
    for (int round = 0; round < 10; round++) {
        unsigned a_high = __umulhi(0xD2511F53u, c[0]), a_low = 0xD2511F53u * c[0], b_high = __umulhi(0xCD9E8D57u, c[2]),
                 b_low = 0xCD9E8D57u * c[2];
        c[0] = b_high ^ c[1] ^ k0; c[1] = b_low;
        c[2] = a_high ^ c[3] ^ k1; c[3] = a_low;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
}
__global__ void gcpi_dropout_kernel(gcp_view to, gcp_view from, double rate, int per_sample, uint64_t ordinal,
                                    const gcp_step_numbers *numbers, size_t per, size_t groups)
{
    const size_t i = gcpi_thread(), image = i / groups, group = i % groups;
    if (image >= (size_t)to.shape.d[0]) return;
    const uint64_t sample = numbers->first_sample + image;
    const size_t drawn = per_sample ? 0 : group;             /* element 0's draw is all elements' */
    unsigned draw[4] = { (unsigned)drawn, (unsigned)sample, (unsigned)numbers->step,
                         (unsigned)((drawn >> 32) ^ (sample >> 32)) };
    const unsigned limit = (unsigned)(rate * 4294967296.0);
    const float gain = (float)(1.0 / (1.0 - rate));
    gcpi_philox(draw, numbers->seed + 0x9E3779B97F4A7C15u * ordinal);
    for (size_t k = 0; k < 4 && 4 * group + k < per; k++) {
        const gcpi_unit u = gcpi_unit_of<1>(image * per + 4 * group + k, (unsigned)to.shape.d[3]);
        const float v = draw[per_sample ? 0 : k] >= limit ? gcpi_get(gcpi_at(from, u), 0) * gain : 0;
        gcpi_store<1>(to, u, &v);
    }
}
void gcpi_cuda_dropout(gcp_view to, gcp_view from, double rate, int per_sample, uint64_t ordinal,
                       const gcp_step_numbers *numbers, cudaStream_t stream)
{
    size_t per = gcpi_count_of(to.shape) / (size_t)to.shape.d[0], groups = (per + 3) / 4;
    GCPI_EACH(gcpi_dropout_kernel, groups * (size_t)to.shape.d[0], to, from, rate, per_sample, ordinal, numbers, per,
              groups);
}
