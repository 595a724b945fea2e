/* Updates. The numbers of the step are read on the device, so that a recorded step sees each step's own. */

void gcpi_cuda_norm_add(gcp_view g, void *workspace, cudaStream_t stream)
{
    double *sum = (double *)workspace;
    gcpi_reduce(g, g, 2, 1, NULL, sum, sum + 1, stream);
}
__global__ void gcpi_norm_finish_kernel(gcp_step_numbers *n, double limit, const double *sum)
{
    double scale = n->gradient_scale, norm = sqrt(*sum) * scale, clip = limit / (norm + 1e-6);
    n->gradient_norm = norm;
    n->gradient_scale = scale * (clip >= 1 ? 1.0 : clip); /* a NaN stays */
}
void gcpi_cuda_norm_finish(gcp_step_numbers *numbers, double limit, const void *workspace, cudaStream_t stream)
{
    GCP_LAUNCH(gcpi_norm_finish_kernel, 1, 1, 0, stream, numbers, limit, (const double *)workspace);
}
/* Gradients as the optimiser takes them. */
template <int V> GCPI_DEVICE void gcpi_clipped(float *g, const gcpi_cuda_update &u, const float *from)
{
    const float scale = (float)u.numbers->gradient_scale, limit = (float)u.clip_value;
    gcpi_load<V>(g, from);
    for (int k = 0; k < V; k++) {
        g[k] *= scale;
        if (limit > 0) g[k] = g[k] > limit ? limit : g[k] < -limit ? -limit : g[k]; /* a NaN stays */
    }
}
/* Whose elements a block has. */
GCPI_DEVICE int gcpi_parameter_of_block(const gcpi_cuda_update &u)
{
    int k = 0;
    while (k + 1 < u.count && blockIdx.x >= u.at[k + 1].block) k++;
    return k;
}
template <int V> GCPI_DEVICE void gcpi_sgd(const gcpi_cuda_update &u, const gcpi_cuda_parameter &p)
{
    const size_t i = ((size_t)(blockIdx.x - p.block) * GCPI_THREADS + threadIdx.x) * V;
    if (i >= p.count) return;
    const float m = (float)u.momentum, rate = (float)(u.numbers->lr * p.rate);
    float g[V], w[V], v[V];
    gcpi_clipped<V>(g, u, p.g + i);
    gcpi_load<V>(w, p.w + i);
    for (int k = 0; k < V; k++) g[k] += (float)p.weight_decay * w[k];
    if (p.s1) {
        gcpi_load<V>(v, p.s1 + i);
        for (int k = 0; k < V; k++) {
            v[k] = m * v[k] + g[k];
            g[k] = u.nesterov ? g[k] + m * v[k] : v[k];
        }
        gcpi_store<V>(p.s1 + i, v);
    }
    for (int k = 0; k < V; k++) w[k] -= rate * g[k];
    gcpi_store<V>(p.w + i, w);
}
static __global__ void gcpi_sgd_kernel(gcpi_cuda_update u)
{
    const int k = gcpi_parameter_of_block(u);
    if (u.at[k].fours) gcpi_sgd<4>(u, u.at[k]);
    else gcpi_sgd<1>(u, u.at[k]);
}

/* What all elements share is made once a block in double: lr / (1 - beta1^t), 1 / sqrt(1 - beta2^t), lr * decay. */
struct gcpi_adam_shared {
    float step, unroot, lost;
};
template <int V>
GCPI_DEVICE void gcpi_adam(const gcpi_cuda_update &u, const gcpi_cuda_parameter &p, const gcpi_adam_shared &shared)
{
    const size_t i = ((size_t)(blockIdx.x - p.block) * GCPI_THREADS + threadIdx.x) * V;
    if (i >= p.count) return;
    const float beta1 = (float)u.beta1, rest1 = (float)(1 - u.beta1), beta2 = (float)u.beta2,
                rest2 = (float)(1 - u.beta2), epsilon = (float)u.epsilon,
                decay = u.optimizer == GCP_OPTIMIZER_ADAMW ? 0 : (float)p.weight_decay;
    float g[V], w[V], a[V], b[V];
    gcpi_clipped<V>(g, u, p.g + i);
    gcpi_load<V>(w, p.w + i);
    gcpi_load<V>(a, p.s1 + i);
    gcpi_load<V>(b, p.s2 + i);
    for (int k = 0; k < V; k++) {
        g[k] += decay * w[k];
        a[k] = beta1 * a[k] + rest1 * g[k];
        b[k] = beta2 * b[k] + rest2 * g[k] * g[k];
        w[k] -= shared.lost * w[k] + shared.step * __fdividef(a[k], sqrtf(b[k]) * shared.unroot + epsilon);
    }
    gcpi_store<V>(p.s1 + i, a);
    gcpi_store<V>(p.s2 + i, b);
    gcpi_store<V>(p.w + i, w);
}
static __global__ void gcpi_adam_kernel(gcpi_cuda_update u)
{
    __shared__ gcpi_adam_shared shared;
    const int k = gcpi_parameter_of_block(u);
    const double t = (double)(*u.at[k].updates + 1), lr = u.numbers->lr * u.at[k].rate;
    if (threadIdx.x == 0) shared.step = (float)(lr / (1 - pow(u.beta1, t)));
    if (threadIdx.x == 32) shared.unroot = (float)(1 / sqrt(1 - pow(u.beta2, t)));
    if (threadIdx.x == 64) shared.lost = u.optimizer == GCP_OPTIMIZER_ADAMW ? (float)(lr * u.at[k].weight_decay) : 0;
    __syncthreads();
    if (u.at[k].fours) gcpi_adam<4>(u, u.at[k], shared);
    else gcpi_adam<1>(u, u.at[k], shared);
}
void gcpi_cuda_step(gcpi_cuda_update *u, cudaStream_t stream)
{
    unsigned blocks = 0;
    for (int k = 0; k < u->count; k++) {
        gcpi_cuda_parameter *p = &u->at[k];
        p->fours =
            p->count % 4 == 0 && gcpi_aligned(p->w) && gcpi_aligned(p->s1) && gcpi_aligned(p->s2) && gcpi_aligned(p->g);
        p->block = blocks;
        blocks += (unsigned)gcpi_blocks((ptrdiff_t)p->count, GCPI_THREADS * (p->fours ? 4 : 1));
    }
    if (u->optimizer == GCP_OPTIMIZER_SGD) GCP_LAUNCH(gcpi_sgd_kernel, blocks, GCPI_THREADS, 0, stream, *u);
    else GCP_LAUNCH(gcpi_adam_kernel, blocks, GCPI_THREADS, 0, stream, *u);
}
