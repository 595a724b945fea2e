/* Updates. The numbers of the step are read on the device, so that a recorded step sees each step's own. */

void gcpi_cuda_norm_add(gcp_view g, void *workspace, cudaStream_t stream)
{
    double *sum = (double *)workspace;
    gcpi_reduce(g, g, 2, 1, NULL, sum, sum + 1, stream);
}
__global__ void gcpi_norm_finish_kernel(gcp_step_numbers *n, double limit, const double *sum)
{
    double scale = 1.0 / n->micros, norm = sqrt(*sum) * scale, clip = limit / (norm + 1e-6);
    n->gradient_norm = norm;
    n->gradient_scale = scale * (clip >= 1 ? 1.0 : clip);                               /* a NaN stays */
}
void gcpi_cuda_norm_finish(gcp_step_numbers *numbers, double limit, const void *workspace, cudaStream_t stream)
{
    GCP_LAUNCH(gcpi_norm_finish_kernel, 1, 1, 0, stream, numbers, limit, (const double *)workspace);
}
/* Gradients as the optimiser takes them. */
template <int V> GCPI_DEVICE void gcpi_clipped(float *g, const gcpi_cuda_update &u, size_t i)
{
    const float scale = (float)u.numbers->gradient_scale, limit = (float)u.clip_value;
    gcpi_load<V>(g, u.g + i);
    for (int k = 0; k < V; k++) {
        g[k] *= scale;
        if (limit > 0) g[k] = g[k] > limit ? limit : g[k] < -limit ? -limit : g[k];    /* a NaN stays */
    }
}
template <int V> __global__ void gcpi_sgd_kernel(gcpi_cuda_update u)
{
    const size_t i = gcpi_thread() * V;
    if (i >= u.count) return;
    const float m = (float)u.momentum, rate = (float)(u.numbers->lr * u.rate);
    float g[V], w[V], v[V];
    gcpi_clipped<V>(g, u, i);
    gcpi_load<V>(w, u.w + i);
    for (int k = 0; k < V; k++) g[k] += (float)u.weight_decay * w[k];
    if (u.s1) {
        gcpi_load<V>(v, u.s1 + i);
        for (int k = 0; k < V; k++) {
            v[k] = m * v[k] + g[k];
            g[k] = u.nesterov ? g[k] + m * v[k] : v[k];
        }
        gcpi_store<V>(u.s1 + i, v);
    }
    for (int k = 0; k < V; k++) w[k] -= rate * g[k];
    gcpi_store<V>(u.w + i, w);
}
/* What all elements share is made once a block in double: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t), 1 - lr * decay. */
template <int V> __global__ void gcpi_adam_kernel(gcpi_cuda_update u)
{
    __shared__ float step, unroot, shrink;
    const size_t i = gcpi_thread() * V;
    const double t = (double)(*u.updates + 1), lr = u.numbers->lr * u.rate;
    if (threadIdx.x == 0) step = (float)(lr / (1 - pow(u.beta1, t)));
    if (threadIdx.x == 32) unroot = (float)(1 / sqrt(1 - pow(u.beta2, t)));
    if (threadIdx.x == 64) shrink = u.optimizer == GCP_OPTIMIZER_ADAMW ? (float)(1 - lr * u.weight_decay) : 1;
    __syncthreads();
    if (i >= u.count) return;
    const float beta1 = (float)u.beta1, rest1 = (float)(1 - u.beta1), beta2 = (float)u.beta2,
                rest2 = (float)(1 - u.beta2), epsilon = (float)u.epsilon,
                decay = u.optimizer == GCP_OPTIMIZER_ADAMW ? 0 : (float)u.weight_decay;
    float g[V], w[V], a[V], b[V];
    gcpi_clipped<V>(g, u, i);
    gcpi_load<V>(w, u.w + i);
    gcpi_load<V>(a, u.s1 + i);
    gcpi_load<V>(b, u.s2 + i);
    for (int k = 0; k < V; k++) {
        g[k] += decay * w[k];
        a[k] = beta1 * a[k] + rest1 * g[k];
        b[k] = beta2 * b[k] + rest2 * g[k] * g[k];
        w[k] = w[k] * shrink - step * __fdividef(a[k], sqrtf(b[k]) * unroot + epsilon);
    }
    gcpi_store<V>(u.s1 + i, a);
    gcpi_store<V>(u.s2 + i, b);
    gcpi_store<V>(u.w + i, w);
}
void gcpi_cuda_step(const gcpi_cuda_update *u, cudaStream_t stream)
{
    const bool sgd = u->optimizer == GCP_OPTIMIZER_SGD, four = u->count % 4 == 0 && gcpi_aligned(u->w, 0) &&
                     gcpi_aligned(u->s1, 0) && gcpi_aligned(u->s2, 0) && gcpi_aligned(u->g, 0);
    if (sgd && four) GCPI_EACH(gcpi_sgd_kernel<4>, u->count / 4, *u);
    else if (sgd)    GCPI_EACH(gcpi_sgd_kernel<1>, u->count, *u);
    else if (four)   GCPI_EACH(gcpi_adam_kernel<4>, u->count / 4, *u);
    else             GCPI_EACH(gcpi_adam_kernel<1>, u->count, *u);
}
