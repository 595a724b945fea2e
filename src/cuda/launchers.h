/* What the launchers of kernels.cu take: device memory, NHWC with a pitch (elements from one pixel to the next),
   weights [out][kh][kw][in / groups]. Each queues kernels on a stream; errors are CUDA's last error. A view's elements
   are floats or halves. */

typedef struct gcpi_cuda_array { void *at; int half; } gcpi_cuda_array;    /* floats, or halves: bfloat16 */

typedef struct gcpi_cuda_conv {                  /* y [n, ho, wo, co] = x [n, h, w, ci] * weights */
    int n, h, w, ci, ho, wo, co, kh, kw, sh, sw, pt, pl, dh, dw, groups;
    ptrdiff_t xpitch, ypitch;
    int tf32;
} gcpi_cuda_conv;
enum { GCPI_CUDA_FORWARD, GCPI_CUDA_DATA, GCPI_CUDA_WEIGHTS };
size_t gcpi_cuda_conv_workspace(const gcpi_cuda_conv *c, int pass, gcp_store store);
int gcpi_cuda_weights_blocks(const gcpi_cuda_conv *c, int halves);     /* of the weights' gradient, where groups is 1 */
/* As gcpi_rectifier of src/ops/rectifier.h; rectify 0: values stay as they are. */
typedef struct gcpi_cuda_rectifier { float low, high, last, slope, least, kink; int rectify; } gcpi_cuda_rectifier;
/* What a forward pass with groups = 1 does with y before it is stored: adds other and rectifies, or makes the sums of
   gcpi_cuda_batch_stats in its workspace, partial. */
typedef struct gcpi_cuda_end { gcp_view other; gcpi_cuda_rectifier rectifier; double *partial; } gcpi_cuda_end;
/* bias, end: may be NULL. Halves are multiplied by weights that are rounded to halves, too (not with groups). */
void gcpi_cuda_conv_forward(const gcpi_cuda_conv *c, gcp_view x, const float *w, const float *bias, gcp_view y,
                            const gcpi_cuda_end *end, void *workspace, cudaStream_t stream);
void gcpi_cuda_conv_backward_data(const gcpi_cuda_conv *c, gcp_view dy, const float *w, const float *bias, gcp_view dx,
                                  void *workspace, cudaStream_t stream);
void gcpi_cuda_conv_backward_weights(const gcpi_cuda_conv *c, gcp_view x, gcp_view dy, gcp_view dw, void *workspace,
                                     cudaStream_t stream);

/* to = f(a, b) element by element (added to where to.accumulate is set). b is another operand, or, for ..._CHANNEL, one
   value a channel. ROUND: to bfloat16 values. */
typedef enum gcpi_cuda_fn {
    GCPI_FN_COPY, GCPI_FN_ADD, GCPI_FN_MUL, GCPI_FN_ADD_CHANNEL, GCPI_FN_FILL, GCPI_FN_FILL_FROM, GCPI_FN_ROUND
#define GCPI_POINTWISE_FN(NAME, name) , GCPI_FN_##NAME, GCPI_FN_##NAME##_BACK
    GCP_POINTWISE_OPS(GCPI_POINTWISE_FN)
#undef GCPI_POINTWISE_FN
} gcpi_cuda_fn;
/* p, q: the numbers of a pointwise op; FILL takes p. */
void gcpi_cuda_map(gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b, float p, float q, cudaStream_t stream);
/* to = the loop of GCPI_PAIR_LOOPS, of x, y and z (data NULL: not read), each spread where its sizes are 1. With
   workspace, of gcpi_cuda_pair_workspace bytes: to, dense, is summed over what it is spread over in out. */
typedef struct gcpi_cuda_pair {
    int loop; float p; gcp_view to, x, y, z; gcp_shape out; void *workspace;
} gcpi_cuda_pair;
void gcpi_cuda_pair_run(const gcpi_cuda_pair *p, cudaStream_t stream);
size_t gcpi_cuda_pair_workspace(gcp_shape operand, gcp_shape out);
/* y = rectify(normalise(x) + other), each where it is there: mean NULL, other.data NULL, rectifier.rectify 0. settles:
   the result of each is rounded to bfloat16. */
typedef struct gcpi_cuda_apply {
    gcp_view y, x, other;
    const float *mean, *scale, *gamma, *beta;
    unsigned char *mask;
    gcpi_cuda_rectifier rectifier;
    int settles;
} gcpi_cuda_apply;
void gcpi_cuda_apply_run(const gcpi_cuda_apply *a, cudaStream_t stream);
void gcpi_cuda_rectify_back(gcp_view dx, gcp_view dy, gcp_view y, const unsigned char *mask,
                            const gcpi_cuda_rectifier *rectifier, cudaStream_t stream);
void gcpi_cuda_reshape(gcp_view to, gcp_view from, cudaStream_t stream);
void gcpi_cuda_dropout(gcp_view to, gcp_view from, double rate, int per_sample, uint64_t ordinal,
                       const gcp_step_numbers *numbers, cudaStream_t stream);

/* to += or = from, element by element, by strides: see gcpi_moved of src/ops/axes.h. */
typedef struct gcpi_cuda_moved {
    gcpi_cuda_array to, from;
    int size[4], accumulate;
    ptrdiff_t ts[4], fs[4];
} gcpi_cuda_moved;
void gcpi_cuda_move(const gcpi_cuda_moved *m, cudaStream_t stream);
/* Attention: see gcpi_attention of src/ops/attention.h. Gradients whose data is NULL are not made. */
typedef struct gcpi_cuda_attention {
    gcp_view q, k, v, bias, y, all, dy, dq, dk, dv, dbias;       /* bias, all, dbias: floats */
    const int32_t *lengths;
    int n, rows, keys, heads, group, d, e, causal;
    float scale;
    void *workspace;                             /* gcpi_cuda_attention_workspace bytes, where results are halves */
} gcpi_cuda_attention;
size_t gcpi_cuda_attention_workspace(const gcpi_cuda_attention *a, int backward);
void gcpi_cuda_attention_run(const gcpi_cuda_attention *a, cudaStream_t stream);
void gcpi_cuda_attention_back(const gcpi_cuda_attention *a, cudaStream_t stream);
void gcpi_cuda_softmax(gcp_view y, gcp_view x, int logarithm, cudaStream_t stream);
void gcpi_cuda_softmax_back(gcp_view dx, gcp_view y, gcp_view dy, int logarithm, cudaStream_t stream);

/* Windows as in gcpi_cuda_conv, ci = co channels. back: x and y are their gradients, and x's is made. */
void gcpi_cuda_max_pool(const gcpi_cuda_conv *c, gcp_view x, gcp_view y, unsigned char *which, int back,
                        cudaStream_t stream);
void gcpi_cuda_avg_pool(const gcpi_cuda_conv *c, gcp_view x, gcp_view y, int back, cudaStream_t stream);
void gcpi_cuda_upsample(gcp_view x, gcp_view y, int factor, int bilinear, int back, cudaStream_t stream);

/* Sums over pixels, a channel each. The workspace holds gcpi_cuda_sums_workspace(shape, sums of a channel) bytes. */
size_t gcpi_cuda_sums_workspace(gcp_shape shape, int sums);
void gcpi_cuda_bias_back(gcp_view db, gcp_view dy, void *workspace, cudaStream_t stream);
typedef struct gcpi_cuda_stats {
    float *mean, *scale, *running_mean, *running_var;
    double epsilon, momentum;
    int training, commit;
} gcpi_cuda_stats;
size_t gcpi_cuda_stats_workspace(gcp_shape x);
void gcpi_cuda_batch_stats(gcp_view x, const gcpi_cuda_stats *s, int summed, void *workspace, cudaStream_t stream);
/* rectifier: of call->fused */
void gcpi_cuda_batch_norm_back(const gcp_call *call, const gcpi_cuda_rectifier *rectifier, cudaStream_t stream);
void gcpi_cuda_layer_norm(gcp_view y, gcp_view x, const float *gamma, const float *beta, double epsilon, int rms,
                          cudaStream_t stream);       /* rms: RMS-norm, without beta */
void gcpi_cuda_layer_norm_back(const gcp_call *call, double epsilon, int rms, cudaStream_t stream);
size_t gcpi_cuda_layer_norm_workspace(gcp_shape shape);
/* group-norm; workspace: of backward */
void gcpi_cuda_group_norm(const gcp_call *call, int groups, double epsilon, cudaStream_t stream);
void gcpi_cuda_group_norm_back(const gcp_call *call, int groups, double epsilon, cudaStream_t stream);
size_t gcpi_cuda_group_norm_workspace(gcp_shape shape, int groups);

void gcpi_cuda_embedding(gcp_view y, gcp_view ids, gcp_view table, cudaStream_t stream);
size_t gcpi_cuda_embedding_workspace(gcp_shape ids);
void gcpi_cuda_embedding_back(gcp_view dtable, gcp_view ids, gcp_view dy, void *workspace, cudaStream_t stream);

/* Losses: out is one value. Their workspace: GCPI_CUDA_LOSS_BYTES. */
enum { GCPI_CUDA_LOSS_BLOCKS = 256, GCPI_CUDA_LOSS_BYTES = 2 * GCPI_CUDA_LOSS_BLOCKS * 8 };
/* labels, or soft: targets; ignore: a label that does not count, -1: none (as all out of range); classes, samples:
   weights, or NULL */
typedef struct gcpi_cuda_targets {
    const int *labels; gcp_view soft; const float *classes, *samples; int ignore; double smoothing;
} gcpi_cuda_targets;
void gcpi_cuda_cross_entropy(gcp_view x, const gcpi_cuda_targets *targets, float *out, void *workspace,
                             cudaStream_t stream);
void gcpi_cuda_cross_entropy_back(gcp_view d, gcp_view x, const gcpi_cuda_targets *targets, const float *dout,
                                  void *workspace, cudaStream_t stream);
void gcpi_cuda_mse_back(gcp_view d, gcp_view a, gcp_view b, const float *dout, cudaStream_t stream);
/* the mean of a, or of (a - b) squared where b has data */
void gcpi_cuda_mean(gcp_view a, gcp_view b, float *out, void *workspace, cudaStream_t stream);

/* The sum of squares goes to, or is added to, the first double of the workspace (GCPI_CUDA_LOSS_BYTES + 8). */
void gcpi_cuda_norm_add(gcp_view g, void *workspace, cudaStream_t stream);
void gcpi_cuda_norm_finish(gcp_step_numbers *numbers, double limit, const void *workspace, cudaStream_t stream);
typedef struct gcpi_cuda_parameter {
    float *w, *s1, *s2; const float *g; size_t count;
    const uint64_t *updates;                     /* of this parameter before this one, on the device */
    double weight_decay, rate;
    unsigned block; int fours;                   /* its first block; elements go by fours. gcpi_cuda_step fills both */
} gcpi_cuda_parameter;
typedef struct gcpi_cuda_update {
    gcpi_cuda_parameter at[GCP_MAX_UPDATES];
    const gcp_step_numbers *numbers;
    double beta1, beta2, epsilon, clip_value, momentum;
    int count, nesterov, optimizer;
} gcpi_cuda_update;
void gcpi_cuda_step(gcpi_cuda_update *u, cudaStream_t stream);
