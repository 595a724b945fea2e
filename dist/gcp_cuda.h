/* gcp_cuda.h 0.3.0 in one file: assembled from gcp_cuda.h and the rooms in src/ by src/assemble.cmake, never edited. */
#define GCPI_ONE_FILE

/* gcp_cuda.h - the same plan on a GPU: a target for gcp.h over the CUDA runtime and cuBLAS. MIT licence, see gcp.h.

   Do this in *one* C file, the one that holds gcp.h's implementation:
       #define GCP_IMPLEMENTATION
       #include "gcp.h"
       #include "gcp_cuda.h"
   Compile kernels.cu (to copy: dist/kernels.cu) once with CUDA 11.4 or newer (-arch=native needs 11.6: name the card's
   before, as -arch=sm_80; tensor cores need sm_80 or newer) and link:
       nvcc -O2 -arch=native -fmad=false -Xcompiler=-fno-threadsafe-statics,-fno-exceptions,-fno-rtti -c kernels.cu
       cc main.c kernels.o -lcudart -lcublas -lcublasLt -lm
   In CMake: target_link_libraries(app gcp::cuda).

       gcp_gpu  gpu  = gcp_gpu_open(.math = GCP_TF32);
       gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD,
                                     .target = gcp_cuda(&gpu));
       gcp_bind(&plan, NULL, 0);             // one allocation on the device, of exactly plan.bytes
       ... gcp_write, gcp_step, gcp_read as on the CPU ...
       gcp_unbind(&plan);
       gcp_gpu_close(&gpu);

   A step is issued once as it stands and recorded as a CUDA graph the second time; from then on it is replayed (not
   with .check, .on_gradient or .no_graphs; where a recording fails, because a custom op waits for its stream, say,
   nothing of it runs and steps go on unrecorded). What fails on the device is an error on the tape with CUDA's own
   words; what the application's own calls left as CUDA's last error is not gcp's, and is cleared where gcp launches
   kernels. Same bits in every run on the same card and version of CUDA, under every plan: no atomics, every sum in an
   order that depends on shapes alone. Matrix products are cuBLAS's: each takes the algorithm that its heuristic gives
   for the dense shape, wherever the plan lets its operands lie; .workspace has a say in that.
   gcp_gpu_open and every step make .device the calling thread's current one. */

#ifndef GCP_CUDA_H
#define GCP_CUDA_H

#include "gcp.h"
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_runtime.h>

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/cuda/launchers.h")
#error "gcp_cuda.h needs its rooms, the folder src/ beside it; to copy are dist/gcp.h, dist/gcp_cuda.h, dist/kernels.cu"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* How floats are multiplied. With GCP_STORE_BF16 (cards from sm_80 on) what lies in two bytes is multiplied as
   bfloat16, and weights are rounded to it where they meet it, in either. */
typedef enum gcp_math {
    GCP_FP32, /* every product in float */
    GCP_TF32  /* convolutions and matrix products round their inputs to 10 bits of mantissa (tensor cores); grouped
                 convolutions, and input gradients of those with stride and dilation, stay in float. Cards before sm_80
                 have no such cores: there it is GCP_FP32 */
} gcp_math;

typedef struct gcp_gpu_opts {
    gcp_at at GCPI_Z;
    int device GCPI_Z;
    gcp_math math GCPI_Z;
    /* device memory to take plans' bytes from, aligned to 256; NULL: cudaMalloc. Given back in the reverse order, or
       all at once when the last plan is unbound */
    void *memory GCPI_Z; size_t size GCPI_Z;
    /* for cuBLAS, planned with each matrix product, at least 16 KiB; 0: its wish, 32 MiB from sm_90 on, else 4 MiB. The
       bits of products depend on it */
    size_t workspace GCPI_Z;
    cudaStream_t stream GCPI_Z;                  /* NULL: one of its own */
    int no_graphs GCPI_Z;                        /* issue every step anew */
} gcp_gpu_opts;

enum { GCP_GPU_RECORDINGS = 64, GCP_GPU_WORKSPACE_MIN = 16384 };

typedef struct gcp_gpu_recording {
    int taken, plain;
    cudaGraphExec_t graph;
} gcp_gpu_recording; /* plain: cannot be recorded */

/* All that a GPU needs; two of them share nothing. It must stay where it is while a plan uses it, and serves one thread
   at a time. The fields are for reading. */
typedef struct gcp_gpu {
    gcp_gpu_opts opts;
    cudaStream_t stream;
    cudaStream_t far[2];                         /* of copies to far memory, and back */
    cudaEvent_t start, stop, copied[GCP_COPIES]; /* copied: both ends of each copy, one after the other */
    cublasHandle_t blas;
    char name[256], message[320], told[320];     /* of the card; what went wrong; and what the tape was told of it */
    gcp_target target;
    size_t used; int blocks;                     /* of opts.memory; how many are out */
    int halves;                                  /* it multiplies bfloat16 (GCP_STORE_BF16): from sm_80 on */
    int launched;                                /* kernels were, since the last look for trouble */
    int capturing, spoiled;                      /* a step is being recorded; something of it failed */
    int behind;                                  /* writes are copied behind the step, through pinned memory: */
    unsigned char *staging; size_t staging_size, staged;
    gcp_gpu_recording recordings[GCP_GPU_RECORDINGS];
} gcp_gpu;

/* Opens a device. What fails is said by the first plan made for it, on that plan's tape. close gives back stream,
   handle and recordings; plans must be unbound before. */
GCP_API gcp_gpu gcp_gpu_open_at(gcp_gpu_opts opts);
GCP_API void    gcp_gpu_close(gcp_gpu *gpu);
#define gcp_gpu_open(...) GCPI_F0(gcp_gpu_open_at, gcp_gpu_opts, __VA_ARGS__)

/* The target to plan for. In a custom op's device functions gcp_cuda_stream(call->target) is the stream to launch
   on. */
GCP_API const gcp_target *gcp_cuda(gcp_gpu *gpu);
GCP_API cudaStream_t      gcp_cuda_stream(const gcp_target *target);


/* ==== src/cuda/launchers.h ==== */

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

#ifdef __cplusplus
}
#endif
#endif /* GCP_CUDA_H */

/* ---- Rooms ------------------------------------------------------------------------------------------------------
   The implementation, behind gcp.h's, whose op attributes it reads. dist/gcp_cuda.h has all rooms in one file. */
#if defined(GCP_IMPLEMENTATION) && !defined(GCP_CUDA_IMPLEMENTATION_DONE)
#define GCP_CUDA_IMPLEMENTATION_DONE


/* ==== src/cuda/device.h ==== */

/* A GPU: its context, memory, recorded steps, far memory. */

static gcp_gpu *gcpi_gpu_of(const void *context) { return (gcp_gpu *)(uintptr_t)context; }

/* Notes the first failure; the tape asks for it (trouble). 1 if all is well. */
static int gcpi_gpu_ok(gcp_gpu *gpu, cudaError_t code, const char *call)
{
    if (code != cudaSuccess && !gpu->message[0])
        snprintf(gpu->message, sizeof gpu->message, "%s: %s: %s", call, cudaGetErrorName(code),
                 cudaGetErrorString(code));
    if (code != cudaSuccess) (void)cudaGetLastError();        /* told once */
    return code == cudaSuccess;
}
static int gcpi_blas_ok(gcp_gpu *gpu, cublasStatus_t code, const char *call)
{
    if (code != CUBLAS_STATUS_SUCCESS && !gpu->message[0])
        snprintf(gpu->message, sizeof gpu->message, "%s: %s", call, cublasGetStatusString(code));
    return code == CUBLAS_STATUS_SUCCESS;
}
#define GCPI_GPU(gpu, call, args) gcpi_gpu_ok((gpu), call args, #call)

/* The stream to launch kernels on. What they leave as the last error is gcp's, what stood there before the
   application's; but the failure of a kernel is nobody else's. */
static cudaStream_t gcpi_gpu_stream(gcp_gpu *gpu)
{
    if (!gpu->launched && cudaPeekAtLastError() != cudaErrorLaunchFailure) (void)cudaGetLastError();
    gpu->launched = 1;
    return gpu->stream;
}

static const char *gcpi_gpu_trouble(void *context)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    if (gpu->capturing) {                                     /* a recording that fails is issued as it stands */
        gpu->spoiled |= gpu->launched && cudaPeekAtLastError() != cudaSuccess;  /* cudaFuncSetAttribute clears it */
        return NULL;
    }
    if (gpu->launched) gcpi_gpu_ok(gpu, cudaPeekAtLastError(), "a kernel");
    gpu->launched = 0;
    if (!gpu->message[0]) return NULL;
    memcpy(gpu->told, gpu->message, sizeof gpu->told);
    if (gpu->blas) gpu->message[0] = 0;                       /* one that did not open stays in trouble */
    return gpu->told;
}

/* Staging: what .feed writes is taken into pinned memory, from which the card copies it behind the step. */
static void gcpi_gpu_behind(void *context, int on) { gcpi_gpu_of(context)->behind += on ? 1 : -1; }    /* they nest */
static int gcpi_gpu_holds(void *context, const void *p)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    struct cudaPointerAttributes there;
    return GCPI_GPU(gpu, cudaPointerGetAttributes, (&there, p)) && there.type == cudaMemoryTypeDevice;
}
static void gcpi_gpu_wait(gcp_gpu *gpu)
{
    GCPI_GPU(gpu, cudaStreamSynchronize, (gpu->stream));
    gpu->staged = 0;
}
/* NULL: this copy waits. Where there is too little, more takes its place once its copies are done. */
static unsigned char *gcpi_gpu_room(gcp_gpu *gpu, const void *to, const void *from, size_t size)
{
    if (!gpu->behind || !gcpi_gpu_holds(gpu, to) || gcpi_gpu_holds(gpu, from)) return NULL;
    if (size > gpu->staging_size - gpu->staged) {
        const size_t wanted = gcpi_round(gpu->staged + size, 64);
        gcpi_gpu_wait(gpu);
        if (gpu->staging) cudaFreeHost(gpu->staging);
        gpu->staging = NULL;
        gpu->staging_size = cudaMallocHost((void **)&gpu->staging, wanted) == cudaSuccess ? wanted : 0;
        if (!gpu->staging_size) { (void)cudaGetLastError(); gpu->staging = NULL; return NULL; }
    }
    unsigned char *room = gpu->staging + gpu->staged;
    gpu->staged = GCPI_MIN(gcpi_round(gpu->staged + size, 64), gpu->staging_size);
    return room;
}

static void gcpi_gpu_copy(void *context, void *to, const void *from, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    unsigned char *room = gcpi_gpu_room(gpu, to, from, size);
    if (room) from = memcpy(room, from, size);
    if (GCPI_GPU(gpu, cudaMemcpyAsync, (to, from, size, cudaMemcpyDefault, gpu->stream)) && !room) gcpi_gpu_wait(gpu);
}
static void gcpi_gpu_copy_rows(void *context, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                               size_t width, size_t rows)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    unsigned char *room = gcpi_gpu_room(gpu, to, from, width * rows);
    for (size_t r = 0; room && r < rows; r++)
        memcpy(room + r * width, (const unsigned char *)from + r * from_pitch, width);
    if (room) { from = room; from_pitch = width; }
    if (GCPI_GPU(gpu, cudaMemcpy2DAsync,
                 (to, to_pitch, from, from_pitch, width, rows, cudaMemcpyDefault, gpu->stream)) && !room)
        gcpi_gpu_wait(gpu);
}
static void gcpi_gpu_fill(void *context, void *to, int byte, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    if (GCPI_GPU(gpu, cudaMemsetAsync, (to, byte, size, gpu->stream)))
        GCPI_GPU(gpu, cudaStreamSynchronize, (gpu->stream));
}

/* Memory: the caller's, taken and given back like a stack, or the device's. */
static void *gcpi_gpu_allocate(void *context, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    void *memory = NULL;
    size_t rounded = gcpi_round(size, gpu->target.align), free_bytes = 0, all_bytes = 0;
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    if (gpu->opts.memory && (rounded < size || size > gpu->opts.size - gpu->used)) {
        snprintf(gpu->message, sizeof gpu->message, "%zu bytes asked, %zu of the %zu given are free", size,
                 gpu->opts.size - gpu->used, gpu->opts.size);
        return NULL;
    }
    if (gpu->opts.memory) {
        memory = (unsigned char *)gpu->opts.memory + gpu->used;
        gpu->used = GCPI_MIN(gpu->used + rounded, gpu->opts.size);
        gpu->blocks++;
        return memory;
    }
    cudaError_t code = cudaMalloc(&memory, size);
    if (code == cudaSuccess) return memory;
    (void)cudaGetLastError();
    if (cudaMemGetInfo(&free_bytes, &all_bytes) != cudaSuccess) (void)cudaGetLastError();
    snprintf(gpu->message, sizeof gpu->message, "cudaMalloc: %s: %s; %zu bytes asked, %zu of %zu free",
             cudaGetErrorName(code), cudaGetErrorString(code), size, free_bytes, all_bytes);
    return NULL;
}
static void gcpi_gpu_release(void *context, void *memory, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    size_t first = (size_t)((unsigned char *)memory - (unsigned char *)gpu->opts.memory);
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    GCPI_GPU(gpu, cudaStreamSynchronize, (gpu->stream));
    if (!gpu->opts.memory) GCPI_GPU(gpu, cudaFree, (memory));
    else if (--gpu->blocks == 0) gpu->used = 0;
    else if (first + gcpi_round(size, gpu->target.align) >= gpu->used) gpu->used = first;
}

/* A step goes as it stands the first time (libraries set themselves up then), is recorded the second, replayed after. A
   card without room for the graph, or a stream that cannot be captured, is no reason to fail: nothing has run yet. */
static void gcpi_gpu_record(gcp_gpu *gpu, gcp_gpu_recording *r, void (*issue)(void *arg), void *arg)
{
    cudaGraph_t graph = NULL;
    if (cudaStreamBeginCapture(gpu->stream, cudaStreamCaptureModeThreadLocal) == cudaSuccess) {
        gpu->capturing = 1;
        gpu->spoiled = 0;
        issue(arg);
        (void)gcpi_gpu_trouble(gpu);
        gpu->capturing = 0;
        int whole = !gpu->message[0] && !gpu->spoiled;
        if (cudaStreamEndCapture(gpu->stream, &graph) != cudaSuccess || !graph) whole = 0;
        if (whole && cudaGraphInstantiateWithFlags(&r->graph, graph, 0) != cudaSuccess) r->graph = NULL;
        if (graph) cudaGraphDestroy(graph);
    }
    (void)cudaGetLastError();
    gpu->launched = 0;
    gpu->message[0] = 0;
    r->plain = !r->graph;
}
static void gcpi_gpu_play(void *context, void **recording, void (*issue)(void *arg), void *arg)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    gcp_gpu_recording *r = (gcp_gpu_recording *)*recording;
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    for (int i = 0; !r && !gpu->opts.no_graphs && i < GCP_GPU_RECORDINGS; i++)
        if (!gpu->recordings[i].taken) {
            gpu->recordings[i].taken = 1;
            *recording = &gpu->recordings[i];
            break;
        }
    if (r && !r->graph && !r->plain) gcpi_gpu_record(gpu, r, issue, arg);
    if (r && r->graph) GCPI_GPU(gpu, cudaGraphLaunch, (r->graph, gpu->stream));
    else issue(arg);
}
static void gcpi_gpu_forget(void *context, void *recording)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    gcp_gpu_recording *r = (gcp_gpu_recording *)recording;
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    if (r->graph && GCPI_GPU(gpu, cudaStreamSynchronize, (gpu->stream)))
        GCPI_GPU(gpu, cudaGraphExecDestroy, (r->graph));
    r->graph = NULL;
    r->taken = r->plain = 0;
}

static double gcpi_gpu_timed(void *context, void (*issue)(void *arg), void *arg)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    float ms = 0;
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    GCPI_GPU(gpu, cudaEventRecord, (gpu->start, gpu->stream));
    issue(arg);
    if (GCPI_GPU(gpu, cudaEventRecord, (gpu->stop, gpu->stream)) && GCPI_GPU(gpu, cudaEventSynchronize, (gpu->stop)))
        GCPI_GPU(gpu, cudaEventElapsedTime, (&ms, gpu->start, gpu->stop));
    return (double)ms / 1e3;
}

/* Far memory: pinned, on two streams of its own, one for each direction of the link. A copy begins behind what was
   issued; what waits for it begins behind it. */
static void *gcpi_gpu_far_allocate(void *context, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    void *memory = NULL;
    GCPI_GPU(gpu, cudaSetDevice, (gpu->opts.device));
    return GCPI_GPU(gpu, cudaMallocHost, (&memory, size)) ? memory : NULL;
}
static void gcpi_gpu_far_release(void *context, void *memory, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    (void)size;
    for (int i = 0; i < 2; i++) GCPI_GPU(gpu, cudaStreamSynchronize, (gpu->far[i]));
    GCPI_GPU(gpu, cudaFreeHost, (memory));
}
static void gcpi_gpu_copy_start(void *context, int id, void *to, const void *from, size_t size)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    struct cudaPointerAttributes there;
    if (!GCPI_GPU(gpu, cudaPointerGetAttributes, (&there, to))) return;
    cudaStream_t far = gpu->far[there.type == cudaMemoryTypeDevice];
    if (!GCPI_GPU(gpu, cudaEventRecord, (gpu->copied[id], gpu->stream)) ||
        !GCPI_GPU(gpu, cudaStreamWaitEvent, (far, gpu->copied[id], 0)))
        return;
    if (GCPI_GPU(gpu, cudaMemcpyAsync, (to, from, size, cudaMemcpyDefault, far)))
        GCPI_GPU(gpu, cudaEventRecord, (gpu->copied[id], far));
}
static void gcpi_gpu_copy_wait(void *context, int id)
{
    gcp_gpu *gpu = gcpi_gpu_of(context);
    GCPI_GPU(gpu, cudaStreamWaitEvent, (gpu->stream, gpu->copied[id], 0));
}

GCPI_DEF gcp_gpu gcp_gpu_open_at(gcp_gpu_opts o)
{
    gcp_gpu gpu;
    struct cudaDeviceProp card;
    memset(&gpu, 0, sizeof gpu);
    gpu.opts = o;
    if (!GCPI_GPU(&gpu, cudaSetDevice, (o.device)) || !GCPI_GPU(&gpu, cudaGetDeviceProperties, (&card, o.device))) {
        const size_t n = strlen(gpu.message);
        snprintf(gpu.message + n, sizeof gpu.message - n, " (is there a GPU, and its driver?)");
        return gpu;
    }
    if (!o.workspace) gpu.opts.workspace = (size_t)(card.major >= 9 ? 32 : 4) << 20;
    if (gpu.opts.workspace < GCP_GPU_WORKSPACE_MIN) {
        snprintf(gpu.message, sizeof gpu.message, ".workspace = %zu; cuBLAS takes at least %d bytes", o.workspace,
                 GCP_GPU_WORKSPACE_MIN);
        return gpu;
    }
    gpu.halves = card.major >= 8;
    if (!gpu.halves) gpu.opts.math = GCP_FP32;
    snprintf(gpu.name, sizeof gpu.name, "%s", card.name);
    gpu.stream = o.stream;
    if (!o.stream && !GCPI_GPU(&gpu, cudaStreamCreateWithFlags, (&gpu.stream, cudaStreamNonBlocking))) return gpu;
    for (int i = 0; i < 2; i++)
        if (!GCPI_GPU(&gpu, cudaStreamCreateWithFlags, (&gpu.far[i], cudaStreamNonBlocking))) return gpu;
    for (int i = 0; i < GCP_COPIES; i++)
        if (!GCPI_GPU(&gpu, cudaEventCreateWithFlags, (&gpu.copied[i], cudaEventDisableTiming))) return gpu;
    if (!GCPI_GPU(&gpu, cudaEventCreate, (&gpu.start)) || !GCPI_GPU(&gpu, cudaEventCreate, (&gpu.stop))) return gpu;
    if (!gcpi_blas_ok(&gpu, cublasCreate(&gpu.blas), "cublasCreate")) { gpu.blas = NULL; return gpu; }
    gcpi_blas_ok(&gpu, cublasSetStream(gpu.blas, gpu.stream), "cublasSetStream");
    return gpu;
}

GCPI_DEF void gcp_gpu_close(gcp_gpu *gpu)
{
    if (!gpu) return;
    if (gpu->blas) (void)cudaSetDevice(gpu->opts.device);     /* cuBLAS wants the one it was made with */
    for (int i = 0; i < GCP_GPU_RECORDINGS; i++)
        if (gpu->recordings[i].taken) gcpi_gpu_forget(gpu, &gpu->recordings[i]);
    if (gpu->blas) cublasDestroy(gpu->blas);
    for (int i = 0; i < GCP_COPIES; i++) if (gpu->copied[i]) cudaEventDestroy(gpu->copied[i]);
    for (int i = 0; i < 2; i++) if (gpu->far[i]) cudaStreamDestroy(gpu->far[i]);
    if (gpu->staging) cudaFreeHost(gpu->staging);
    if (gpu->start) cudaEventDestroy(gpu->start);
    if (gpu->stop) cudaEventDestroy(gpu->stop);
    if (gpu->stream && !gpu->opts.stream) cudaStreamDestroy(gpu->stream);
    memset(gpu, 0, sizeof *gpu);
}

static gcp_gpu *gcpi_gpu_in(const gcp_call *c) { return gcpi_gpu_of(c->target->context); }
static cudaStream_t gcpi_stream(const gcp_call *c) { return gcpi_gpu_stream(gcpi_gpu_in(c)); }
GCPI_DEF cudaStream_t gcp_cuda_stream(const gcp_target *target)
{
    return gcpi_gpu_stream(gcpi_gpu_of(target->context));
}

/* A row: only what runs is another than the CPU's, which has the shapes and the reads. GCPI_CUDA_HALVES: GCP_FLAG_BF16,
   or 0 in the table of older cards. */
#define GCPI_CUDA_ROW(name, forward, backward, cost, flags) \
    { name, NULL, forward, backward, cost, 0, 0, (flags) | GCPI_CUDA_HALVES, 0, NULL }
#define GCPI_CUDA_ROW_AS(name, as, cost) \
    GCPI_CUDA_ROW(#name, gcpi_cuda_##as##_forward, gcpi_cuda_##as##_backward, cost, 0)
#define GCPI_CUDA_ROW_OF(name, cost) GCPI_CUDA_ROW_AS(name, name, cost)
#define GCPI_CUDA_NO_ROW(name) { name, NULL, NULL, NULL, NULL, 0, 0, 0, 0, NULL }      /* refused by name */

/* ==== src/cuda/gpu_pixelwise.h ==== */

/* Rows: elementwise ops, bias, dropout, views. */

static gcp_view gcpi_no_view(void) { gcp_view v; memset(&v, 0, sizeof v); return v; }
static void gcpi_cuda_fn2(const gcp_call *c, gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b, double number)
{
    gcpi_cuda_map(fn, to, a, b, (float)number, 0, gcpi_stream(c));
}
static void gcpi_cuda_copy(const gcp_call *c, gcp_view to, gcp_view from)
{
    if (to.data == from.data && to.pitch == from.pitch && !to.accumulate) return;
    gcpi_cuda_fn2(c, GCPI_FN_COPY, to, from, gcpi_no_view(), 0);
}
static gcpi_cuda_rectifier gcpi_cuda_rectifier_of(const gcp_call *c)       /* NULL, or without attributes: none */
{
    const gcpi_rectifier r = gcpi_rectifier_of(c ? gcpi_attr(c->attributes) : NULL, c ? c->store : GCP_STORE_REAL);
    gcpi_cuda_rectifier there;
    there.low = (float)r.low; there.high = (float)r.high; there.last = (float)r.last;
    there.slope = (float)r.slope;
    there.least = (float)r.least; there.kink = (float)r.kink;
    there.rectify = c && c->attributes;
    return there;
}

/* The pointwise ops. forward: out = f(in); backward: din = g(dout, a saved value). */
#define GCPI_SAVED_X c->in[0]
#define GCPI_SAVED_Y c->out[0]
#define GCPI_SAVED_NOTHING gcpi_no_view()
static void gcpi_cuda_pointwise_map(const gcp_call *c, gcpi_cuda_fn fn, gcp_view to, gcp_view a, gcp_view b)
{
    const double *numbers = gcpi_attr(c->attributes)->pointwise;
    if (to.data) gcpi_cuda_map(fn, to, a, b, (float)numbers[0], (float)numbers[1], gcpi_stream(c));
}
#define GCPI_CUDA_POINTWISE_CALLS(NAME, name, saved)                                           \
    static void gcpi_cuda_##name##_forward(const gcp_call *c)                                  \
    {                                                                                          \
        gcpi_cuda_pointwise_map(c, GCPI_FN_##NAME, c->out[0], c->in[0], gcpi_no_view());           \
    }                                                                                          \
    static void gcpi_cuda_##name##_backward(const gcp_call *c)                                 \
    {                                                                                          \
        gcpi_cuda_pointwise_map(c, GCPI_FN_##NAME##_BACK, c->din[0], c->dout[0], saved);           \
    }
#define GCPI_CUDA_PLAIN(NAME, name, reads, value, derivative) GCPI_CUDA_POINTWISE_CALLS(NAME, name, GCPI_SAVED_##reads)
#define GCPI_CUDA_NUMBERS(NAME, name, reads, ...) GCPI_CUDA_POINTWISE_CALLS(NAME, name, GCPI_SAVED_##reads)
GCPI_POINTWISE(GCPI_CUDA_PLAIN, GCPI_CUDA_NUMBERS, GCPI_CUDA_NUMBERS)
#define GCPI_CUDA_POINTWISE(NAME, name) GCPI_CUDA_ROW_OF(name, NULL),

static unsigned char *gcpi_mask_of(const gcp_call *c)
{
    return c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL;
}
static gcpi_cuda_apply gcpi_cuda_applied(const gcp_call *c, const gcp_view *norm) /* norm: mean, scale, gamma, beta */
{
    gcpi_cuda_apply a;
    memset(&a, 0, sizeof a);
    a.y = c->out[0]; a.x = c->in[0];
    a.settles = c->store == GCP_STORE_BF16;
    if (norm) {
        a.mean = (const float *)norm[0].data; a.scale = (const float *)norm[1].data;
        a.gamma = (const float *)norm[2].data; a.beta = (const float *)norm[3].data;
    }
    return a;
}
static void gcpi_cuda_rectified(const gcp_call *c, gcpi_cuda_apply a)
{
    a.rectifier = gcpi_cuda_rectifier_of(c); a.mask = gcpi_mask_of(c);
    gcpi_cuda_apply_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_rectify_forward(const gcp_call *c) { gcpi_cuda_rectified(c, gcpi_cuda_applied(c, NULL)); }
static void gcpi_cuda_apply_forward(const gcp_call *c)
{
    gcpi_cuda_apply a = gcpi_cuda_applied(c, c->in + 2);
    a.other = c->in[1];
    if (c->attributes) gcpi_cuda_rectified(c, a);
    else gcpi_cuda_apply_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_rectify_backward(const gcp_call *c)
{
    const gcpi_cuda_rectifier r = gcpi_cuda_rectifier_of(c);
    if (c->din[0].data)
        gcpi_cuda_rectify_back(c->din[0], c->dout[0], c->out[0], gcpi_mask_of(c), &r, gcpi_stream(c));
}

static void gcpi_cuda_add_forward(const gcp_call *c)
{
    gcpi_cuda_fn2(c, GCPI_FN_ADD, c->out[0], c->in[0], c->in[1], 0);
}
static void gcpi_cuda_add_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++) if (c->din[i].data) gcpi_cuda_copy(c, c->din[i], c->dout[0]);
}
/* side: 0 forward; 1, 2 the gradient of that operand */
static void gcpi_cuda_pair_side(const gcp_call *c, int side)
{
    const gcpi_pair_step *step = &gcpi_pair_steps[gcpi_attr(c->attributes)->pair.fn][side];
    gcp_view operand[3], *x[3];
    gcpi_cuda_pair p;
    operand[0] = side ? c->dout[0] : gcpi_no_view();
    operand[1] = c->in[0];
    operand[2] = c->inputs > 1 ? c->in[1] : gcpi_no_view();
    memset(&p, 0, sizeof p);
    p.loop = step->loop;
    p.p = (float)gcpi_attr(c->attributes)->pair.p;
    p.to = side ? c->din[side - 1] : c->out[0];
    p.out = c->out[0].shape;
    p.workspace = gcpi_same_shape(p.to.shape, p.out) ? NULL : c->workspace;
    x[0] = &p.x; x[1] = &p.y; x[2] = &p.z;
    for (int k = 0; k < 3; k++) *x[k] = operand[step->x[k]];
    if (step->loop == GCPI_LOOP_PRODUCT && !p.workspace && gcpi_same_shape(p.x.shape, p.y.shape))
        gcpi_cuda_fn2(c, GCPI_FN_MUL, p.to, p.x, p.y, 0);
    else gcpi_cuda_pair_run(&p, gcpi_stream(c));
}
static void gcpi_cuda_pair_forward(const gcp_call *c) { gcpi_cuda_pair_side(c, 0); }
/* input 1 first: input 0's gradient may overwrite dy; x * x keeps the order */
static void gcpi_cuda_pair_backward(const gcp_call *c)
{
    const int same = c->inputs > 1 && c->din[0].data == c->din[1].data;
    for (int k = 0; k < 2; k++) {
        const int i = same ? k : 1 - k;
        if (i < c->inputs && c->din[i].data) gcpi_cuda_pair_side(c, 1 + i);
    }
}
static void gcpi_cuda_pair_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    for (int i = 0; i < c->inputs && c->backward; i++)
        if (c->wanted >> i & 1 && !gcpi_same_shape(c->in[i], c->out[0]))
            cost->workspace = GCPI_MAX(cost->workspace, gcpi_cuda_pair_workspace(c->in[i], c->out[0]));
}

/* A sum goes to a dense place behind its workspace, as a pair's kernel asks for, and then to where it belongs. */
static void gcpi_cuda_sum_forward(const gcp_call *c)
{
    gcp_view dense = c->out[0];
    dense.pitch = dense.shape.d[3]; dense.dtype = GCP_DTYPE_REAL;
    dense.data = (char *)c->workspace + gcpi_cuda_pair_workspace(dense.shape, c->in[0].shape);
    gcpi_expand_call(c, &dense, &c->in[0], gcpi_cuda_pair_backward);
    gcpi_cuda_copy(c, c->out[0], dense);
}
static void gcpi_cuda_sum_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_expand_call(c, &c->dout[0], &c->din[0], gcpi_cuda_pair_forward);
}
static void gcpi_cuda_sum_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) return;
    cost->workspace = gcpi_cuda_pair_workspace(c->out[0], c->in[0]) + gcpi_count(c->out[0]) * sizeof(float);
}

static void gcpi_cuda_add_bias(const gcp_call *c, gcp_view y, gcp_view x, const gcp_view *bias)
{
    gcpi_cuda_fn2(c, GCPI_FN_ADD_CHANNEL, y, x, *bias, 0);
}
static void gcpi_cuda_bias_gradient(const gcp_call *c, int i)
{
    if (c->inputs > i && c->din[i].data) gcpi_cuda_bias_back(c->din[i], c->dout[0], c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_bias_forward(const gcp_call *c) { gcpi_cuda_add_bias(c, c->out[0], c->in[0], &c->in[1]); }
static void gcpi_cuda_bias_backward(const gcp_call *c)
{
    gcpi_cuda_bias_gradient(c, 1);
    if (c->din[0].data) gcpi_cuda_copy(c, c->din[0], c->dout[0]);
}
static void gcpi_cuda_bias_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward && c->wanted & 2) cost->workspace = gcpi_cuda_sums_workspace(c->out[0], 1);
}

static void gcpi_cuda_drop(const gcp_call *c, gcp_view to, gcp_view from)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_dropout(to, from, a->dropout.rate, a->dropout.per_sample, c->ordinal, c->numbers, gcpi_stream(c));
}
static void gcpi_cuda_dropout_forward(const gcp_call *c)
{
    if (c->training) gcpi_cuda_drop(c, c->out[0], c->in[0]);
    else gcpi_cuda_copy(c, c->out[0], c->in[0]);
}
static void gcpi_cuda_dropout_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_cuda_drop(c, c->din[0], c->dout[0]);
}

/* ---- Rows: views ---------------------------------------------------------------------------------------------*/

static void gcpi_cuda_concat_forward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3])
        gcpi_cuda_copy(c, gcpi_channels(&c->out[0], at, c->in[i].shape.d[3]), c->in[i]);
}
static void gcpi_cuda_concat_backward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3])
        if (c->din[i].data) gcpi_cuda_copy(c, c->din[i], gcpi_channels(&c->dout[0], at, c->in[i].shape.d[3]));
}
static void gcpi_cuda_slice_forward(const gcp_call *c)
{
    const int first = gcpi_attr(c->attributes)->slice.first;
    gcpi_cuda_copy(c, c->out[0], gcpi_channels(&c->in[0], first, c->out[0].shape.d[3]));
}
static void gcpi_cuda_slice_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (!c->din[0].accumulate) gcpi_cuda_fn2(c, GCPI_FN_FILL, c->din[0], gcpi_no_view(), gcpi_no_view(), 0);
    const int first = gcpi_attr(c->attributes)->slice.first;
    gcpi_cuda_copy(c, gcpi_channels(&c->din[0], first, c->dout[0].shape.d[3]), c->dout[0]);
}
static void gcpi_cuda_reshaped(const gcp_call *c, gcp_view to, gcp_view from)
{
    if (to.data && (to.data != from.data || to.accumulate)) gcpi_cuda_reshape(to, from, gcpi_stream(c));
}
static void gcpi_cuda_reshape_forward(const gcp_call *c) { gcpi_cuda_reshaped(c, c->out[0], c->in[0]); }
static void gcpi_cuda_reshape_backward(const gcp_call *c) { gcpi_cuda_reshaped(c, c->din[0], c->dout[0]); }

static void gcpi_cuda_moved_run(gcpi_moved *m)
{
    gcpi_cuda_moved there;
    there.to.at = m->to.at; there.to.half = m->to.half;
    there.from.at = m->from.at; there.from.half = m->from.half;
    there.accumulate = m->accumulate;
    memcpy(there.size, m->size, sizeof there.size);
    memcpy(there.ts, m->ts, sizeof there.ts);
    memcpy(there.fs, m->fs, sizeof there.fs);
    gcpi_cuda_move(&there, gcpi_stream(m->call));
}
static void gcpi_cuda_join_forward(const gcp_call *c) { gcpi_join_run(c, 0, gcpi_cuda_moved_run); }
static void gcpi_cuda_join_backward(const gcp_call *c) { gcpi_join_run(c, 1, gcpi_cuda_moved_run); }
static void gcpi_cuda_cut_forward(const gcp_call *c)
{
    gcpi_cut_run(c, &c->in[0], &c->out[0], 0, gcpi_cuda_moved_run);
}
static void gcpi_cuda_cut_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (!c->din[0].accumulate) gcpi_cuda_fn2(c, GCPI_FN_FILL, c->din[0], gcpi_no_view(), gcpi_no_view(), 0);
    gcpi_cut_run(c, &c->din[0], &c->dout[0], 1, gcpi_cuda_moved_run);
}
static void gcpi_cuda_transpose_forward(const gcp_call *c) { gcpi_transpose_run(c, 0, gcpi_cuda_moved_run); }
static void gcpi_cuda_transpose_backward(const gcp_call *c) { gcpi_transpose_run(c, 1, gcpi_cuda_moved_run); }

#define GCPI_CUDA_ADD GCPI_CUDA_ROW_OF(add, NULL)
#define GCPI_CUDA_JOIN GCPI_CUDA_ROW_OF(join, NULL)
#define GCPI_CUDA_CUT GCPI_CUDA_ROW_OF(cut, NULL)
#define GCPI_CUDA_PAD GCPI_CUDA_NO_ROW("pad")
#define GCPI_CUDA_SUM GCPI_CUDA_ROW_OF(sum, gcpi_cuda_sum_cost)
#define GCPI_CUDA_MAX GCPI_CUDA_NO_ROW("max")
#define GCPI_CUDA_TRANSPOSE GCPI_CUDA_ROW_OF(transpose, NULL)
#define GCPI_CUDA_PAIR GCPI_CUDA_ROW_OF(pair, gcpi_cuda_pair_cost)
#define GCPI_CUDA_BIAS GCPI_CUDA_ROW_OF(bias, gcpi_cuda_bias_cost)
#define GCPI_CUDA_RELU GCPI_CUDA_ROW_AS(relu, rectify, NULL)
#define GCPI_CUDA_LEAKY_RELU GCPI_CUDA_ROW_AS(leaky_relu, rectify, NULL)
#define GCPI_CUDA_RELU6 GCPI_CUDA_ROW_AS(relu6, rectify, NULL)
#define GCPI_CUDA_CLAMP GCPI_CUDA_ROW_AS(clamp, rectify, NULL)
#define GCPI_CUDA_APPLY GCPI_CUDA_ROW("apply", gcpi_cuda_apply_forward, NULL, NULL, 0)
#define GCPI_CUDA_DROPOUT GCPI_CUDA_ROW_OF(dropout, NULL)
#define GCPI_CUDA_CONCAT GCPI_CUDA_ROW_OF(concat, NULL)
#define GCPI_CUDA_SLICE GCPI_CUDA_ROW_OF(slice, NULL)
#define GCPI_CUDA_RESHAPE GCPI_CUDA_ROW_OF(reshape, NULL)

/* ==== src/cuda/gpu_windows.h ==== */

/* Rows: pools, upsampling. */

static gcpi_cuda_conv gcpi_cuda_conv_of(const gcpi_conv_attr *a, const gcp_target *target, ptrdiff_t xpitch,
                                        ptrdiff_t ypitch)
{
    gcpi_cuda_conv c;
    c.n = a->n; c.h = a->h; c.w = a->w; c.ci = a->ci; c.ho = a->ho; c.wo = a->wo; c.co = a->co;
    c.kh = a->kh; c.kw = a->kw; c.sh = a->sh; c.sw = a->sw; c.pt = a->pt; c.pl = a->pl;
    c.dh = a->dh; c.dw = a->dw; c.groups = a->groups;
    c.xpitch = xpitch; c.ypitch = ypitch;
    c.tf32 = gcpi_gpu_of(target->context)->opts.math == GCP_TF32;
    return c;
}
static gcpi_cuda_conv gcpi_cuda_window(const gcp_call *c)
{
    return gcpi_cuda_conv_of(&gcpi_attr(c->attributes)->conv, c->target, 0, 0);
}
static void gcpi_cuda_max_pool_forward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    gcpi_cuda_max_pool(&w, c->in[0], c->out[0], gcpi_mask_of(c), 0, gcpi_stream(c));
}
static void gcpi_cuda_max_pool_backward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    if (c->din[0].data) gcpi_cuda_max_pool(&w, c->din[0], c->dout[0], gcpi_mask_of(c), 1, gcpi_stream(c));
}
static void gcpi_cuda_avg_pool_forward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    gcpi_cuda_avg_pool(&w, c->in[0], c->out[0], 0, gcpi_stream(c));
}
static void gcpi_cuda_avg_pool_backward(const gcp_call *c)
{
    gcpi_cuda_conv w = gcpi_cuda_window(c);
    if (c->din[0].data) gcpi_cuda_avg_pool(&w, c->din[0], c->dout[0], 1, gcpi_stream(c));
}
static void gcpi_cuda_upsampled(const gcp_call *c, gcp_view x, gcp_view y, int back)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_upsample(x, y, a->resize.factor, a->resize.mode == GCP_UPSAMPLING_BILINEAR, back, gcpi_stream(c));
}
static void gcpi_cuda_upsample_forward(const gcp_call *c)
{
    gcpi_cuda_upsampled(c, c->in[0], c->out[0], 0);
}
static void gcpi_cuda_upsample_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_cuda_upsampled(c, c->din[0], c->dout[0], 1);
}

#define GCPI_CUDA_MAX_POOL GCPI_CUDA_ROW_OF(max_pool, NULL)
#define GCPI_CUDA_AVG_POOL GCPI_CUDA_ROW_OF(avg_pool, NULL)
#define GCPI_CUDA_GLOBAL_AVG_POOL GCPI_CUDA_ROW_AS(global_avg_pool, avg_pool, NULL)
#define GCPI_CUDA_UPSAMPLE GCPI_CUDA_ROW_OF(upsample, NULL)
#define GCPI_CUDA_RESIZE GCPI_CUDA_NO_ROW("resize")

/* ==== src/cuda/gpu_norms.h ==== */

/* Rows: normalisation, softmax, attention. */

static void gcpi_cuda_batch_stats_summed(const gcp_call *c, int summed)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_stats s = { (float *)c->out[0].data, (float *)c->out[1].data, (float *)c->in[1].data,
                          (float *)c->in[2].data, a->norm.epsilon, a->norm.momentum, c->training, c->commit };
    gcpi_cuda_batch_stats(c->in[0], &s, summed, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_batch_stats_forward(const gcp_call *c) { gcpi_cuda_batch_stats_summed(c, 0); }
static void gcpi_cuda_batch_stats_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = gcpi_cuda_stats_workspace(c->in[0]);
}
static void gcpi_cuda_batch_norm_forward(const gcp_call *c)
{
    gcpi_cuda_apply a = gcpi_cuda_applied(c, c->in + 1);
    gcpi_cuda_apply_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_batch_norm_backward(const gcp_call *c)
{
    const gcpi_cuda_rectifier r = gcpi_cuda_rectifier_of(c->fused);
    gcpi_cuda_batch_norm_back(c, &r, gcpi_stream(c));
}
static void gcpi_cuda_batch_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_sums_workspace(c->in[0], 2);
}
static void gcpi_cuda_softmax_forward(const gcp_call *c)
{
    gcpi_cuda_softmax(c->out[0], c->in[0], gcpi_attr(c->attributes)->softmax.logarithm, gcpi_stream(c));
}
static void gcpi_cuda_softmax_backward(const gcp_call *c)
{
    if (c->din[0].data)
        gcpi_cuda_softmax_back(c->din[0], c->out[0], c->dout[0], gcpi_attr(c->attributes)->softmax.logarithm,
                               gcpi_stream(c));
}
static gcpi_cuda_attention gcpi_cuda_attention_sizes(const void *attributes, const gcp_shape *in)
{
    gcpi_attributes plain = *gcpi_attr(attributes);
    gcpi_cuda_attention a;
    plain.attention.bias = 0;
    const gcpi_attention sizes = gcpi_attention_of(&plain, in);
    memset(&a, 0, sizeof a);
    a.n = sizes.n; a.rows = sizes.rows; a.keys = sizes.keys; a.heads = sizes.heads; a.group = sizes.group;
    a.d = sizes.d; a.e = sizes.e; a.causal = sizes.causal; a.scale = (float)sizes.scale;
    return a;
}
static gcpi_cuda_attention gcpi_cuda_attention_of(const gcp_call *c)
{
    const gcp_shape in[3] = { c->in[0].shape, c->in[1].shape, c->in[2].shape };
    const gcpi_attributes *attributes = gcpi_attr(c->attributes);
    const int bias = attributes->attention.bias, lengths = attributes->attention.lengths;
    gcpi_cuda_attention a = gcpi_cuda_attention_sizes(attributes, in);
    a.q = c->in[0]; a.k = c->in[1]; a.v = c->in[2]; a.y = c->out[0]; a.all = c->out[1];
    if (bias) a.bias = c->in[bias];
    if (lengths) a.lengths = (const int32_t *)c->in[lengths].data;
    a.workspace = c->workspace;
    return a;
}
static void gcpi_cuda_attention_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    const gcpi_cuda_attention a = gcpi_cuda_attention_sizes(c->attributes, c->in);
    if (c->store) cost->workspace = gcpi_cuda_attention_workspace(&a, c->backward);
}
static void gcpi_cuda_attention_forward(const gcp_call *c)
{
    const gcpi_cuda_attention a = gcpi_cuda_attention_of(c);
    gcpi_cuda_attention_run(&a, gcpi_stream(c));
}
static void gcpi_cuda_attention_backward(const gcp_call *c)
{
    gcpi_cuda_attention a = gcpi_cuda_attention_of(c);
    const int bias = gcpi_attr(c->attributes)->attention.bias;
    a.dy = c->dout[0]; a.dq = c->din[0]; a.dk = c->din[1]; a.dv = c->din[2];
    if (bias) a.dbias = c->din[bias];
    gcpi_cuda_attention_back(&a, gcpi_stream(c));
}
static void gcpi_cuda_layer_norm_forward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_layer_norm(c->out[0], c->in[0], (const float *)c->in[1].data,
                         a->norm.rms ? NULL : (const float *)c->in[2].data, a->norm.epsilon, a->norm.rms,
                         gcpi_stream(c));
}
static void gcpi_cuda_layer_norm_backward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_layer_norm_back(c, a->norm.epsilon, a->norm.rms, gcpi_stream(c));
}
static void gcpi_cuda_group_norm_forward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_group_norm(c, a->norm.groups, a->norm.epsilon, gcpi_stream(c));
}
static void gcpi_cuda_group_norm_backward(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_group_norm_back(c, a->norm.groups, a->norm.epsilon, gcpi_stream(c));
}
static void gcpi_cuda_group_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (!c->backward) return;
    cost->workspace = gcpi_cuda_group_norm_workspace(c->in[0], gcpi_attr(c->attributes)->norm.groups);
}
static void gcpi_cuda_layer_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_layer_norm_workspace(c->in[0]);
}

#define GCPI_CUDA_GROUP_NORM GCPI_CUDA_ROW_OF(group_norm, gcpi_cuda_group_norm_cost)
#define GCPI_CUDA_BATCH_STATS GCPI_CUDA_ROW("batch_stats", gcpi_cuda_batch_stats_forward, NULL, \
                                            gcpi_cuda_batch_stats_cost, 0)
#define GCPI_CUDA_BATCH_NORM GCPI_CUDA_ROW("batch_norm", gcpi_cuda_batch_norm_forward, gcpi_cuda_batch_norm_backward, \
                                           gcpi_cuda_batch_norm_cost, GCP_FLAG_FUSED)
#define GCPI_CUDA_LAYER_NORM GCPI_CUDA_ROW_OF(layer_norm, gcpi_cuda_layer_norm_cost)
#define GCPI_CUDA_SOFTMAX GCPI_CUDA_ROW_OF(softmax, NULL)
#define GCPI_CUDA_ATTENTION GCPI_CUDA_ROW_OF(attention, gcpi_cuda_attention_cost)

/* ==== src/cuda/gpu_products.h ==== */

/* Matrix products by cuBLAS. It reads columns first, so a row-major C = A B is asked for as C' = B' A'. */

/* A product's order of sums must not depend on the plan, which chooses addresses and pitches. So its algorithm is the
   one that cuBLAS's heuristic gives for dense matrices of this shape, and for the alignment that rows have in every
   plan (the target's row_align). It then runs with the pitches that there are. Rows that have no such alignment, as
   their channels are not by fours, go another way. */
enum { GCPI_CUDA_ROW_ALIGN = 16 };
/* A matrix by its rows: how many, how long, how far apart; of halves or floats. */
typedef struct gcpi_matrix { size_t rows, row; ptrdiff_t pitch; int half; } gcpi_matrix;

static int gcpi_gemm_layouts(gcp_gpu *gpu, const gcpi_matrix *x, int dense, cublasLtMatrixLayoutOpaque_t *l)
{
    int ok = 1;
    for (int i = 0; i < 3 && ok; i++)
        ok = gcpi_blas_ok(gpu, cublasLtMatrixLayoutInit(&l[i], x[i].half ? CUDA_R_16BF : CUDA_R_32F, x[i].row,
                                                        x[i].rows, dense ? (int64_t)x[i].row : (int64_t)x[i].pitch),
                          "cublasLtMatrixLayoutInit");
    return ok;
}
/* What the heuristic is told besides. */
static int gcpi_gemm_wish(gcp_gpu *gpu, cublasLtMatmulPreference_t wish)
{
    static const cublasLtMatmulPreferenceAttributes_t of[] = {
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES,
        CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES
    };
    const uint64_t room = gpu->opts.workspace;
    const uint32_t align = GCPI_CUDA_ROW_ALIGN;
    cublasStatus_t status = cublasLtMatmulPreferenceInit(wish);
    if (!status)
        status =
            cublasLtMatmulPreferenceSetAttribute(wish, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room);
    for (int i = 0; i < 4 && !status; i++)
        status = cublasLtMatmulPreferenceSetAttribute(wish, of[i], &align, sizeof align);
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulPreferenceSetAttribute");
}
static int gcpi_gemm_choose(gcp_gpu *gpu, const gcpi_matrix *x, cublasLtMatmulDesc_t product,
                            cublasLtMatmulHeuristicResult_t *best)
{
    cublasLtMatmulPreferenceOpaque_t wish;
    cublasLtMatrixLayoutOpaque_t l[3];
    int found = 0;
    if (!gcpi_gemm_layouts(gpu, x, 1, l) || !gcpi_gemm_wish(gpu, &wish)) return 0;
    cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic((cublasLtHandle_t)gpu->blas, product, &l[0], &l[1], &l[2],
                                                           &l[2], &wish, 1, best, &found);
    if (!status && !found) status = CUBLAS_STATUS_NOT_SUPPORTED;
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulAlgoGetHeuristic");
}
static int gcpi_gemm_describe(gcp_gpu *gpu, int transpose_a, int transpose_b, int halves, cublasLtMatmulDesc_t product)
{
    const int32_t ta = transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N, tb = transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N;
    const int fast = !halves && gpu->opts.math == GCP_TF32;
    const cublasComputeType_t type = fast ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    cublasStatus_t status = cublasLtMatmulDescInit(product, type, CUDA_R_32F);
    if (!status) status = cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSA, &tb, sizeof tb);
    if (!status) status = cublasLtMatmulDescSetAttribute(product, CUBLASLT_MATMUL_DESC_TRANSB, &ta, sizeof ta);
    return gcpi_blas_ok(gpu, status, "cublasLtMatmulDescInit");
}

static void gcpi_cuda_gemm(const gcp_call *c, int ta, int tb, size_t m, size_t n, size_t k, gcp_view a, gcp_view b,
                           gcp_view y)
{
    gcp_gpu *gpu = gcpi_gpu_in(c);
    const int halves = a.dtype == GCP_DTYPE_BF16;
    const gcpi_matrix x[3] = { { tb ? n : k, tb ? k : n, b.pitch, halves }, { ta ? k : m, ta ? m : k, a.pitch, halves },
                               { m, n, y.pitch, y.dtype == GCP_DTYPE_BF16 } };
    const float one = 1, add = y.accumulate ? 1 : 0;
    cublasLtMatmulDescOpaque_t product;
    cublasLtMatrixLayoutOpaque_t l[3];
    cublasLtMatmulHeuristicResult_t best;
    if (m > INT32_MAX || k > INT32_MAX || a.pitch > INT32_MAX || b.pitch > INT32_MAX || y.pitch > INT32_MAX) {
        if (!gpu->message[0])
            snprintf(gpu->message, sizeof gpu->message,
                     "a matrix product of %zu x %zu x %zu is more than cuBLAS counts", m, n, k);
        return;
    }
    if (!gcpi_gemm_describe(gpu, ta, tb, halves, &product) || !gcpi_gemm_choose(gpu, x, &product, &best) ||
        !gcpi_gemm_layouts(gpu, x, 0, l))
        return;
    gcpi_blas_ok(gpu,
                 cublasLtMatmul((cublasLtHandle_t)gpu->blas, &product, &one, b.data, &l[0], a.data, &l[1], &add, y.data,
                                &l[2], y.data, &l[2], &best.algo, c->workspace, gpu->opts.workspace, gcpi_stream(c)),
                 "cublasLtMatmul");
}

/* Weights as a product's other operand takes them: rounded where that is of halves, behind cuBLAS's workspace. */
static gcp_view gcpi_cuda_alike(const gcp_call *c, gcp_view w, gcp_view other)
{
    gcp_view rounded = w;
    if (other.dtype != GCP_DTYPE_BF16) return w;
    rounded.data = (unsigned char *)c->workspace + gcpi_round(gcpi_gpu_in(c)->opts.workspace, 256);
    rounded.dtype = GCP_DTYPE_BF16;
    rounded.pitch = w.shape.d[3];
    gcpi_cuda_copy(c, rounded, w);
    return rounded;
}
/* y = x W' (tb) or x W over pixels, and its gradients; weights seen as a matrix of rows of `pitch`. */
static void gcpi_cuda_product_forward(const gcp_call *c, int tb, gcp_view w)
{
    const int bias = c->inputs > 2, first = bias && c->out[0].dtype == GCP_DTYPE_BF16;
    gcp_view y = c->out[0];
    if (first) gcpi_cuda_add_bias(c, y, gcpi_no_view(), &c->in[2]);       /* so that the result is rounded once */
    y.accumulate = first;
    gcpi_cuda_gemm(c, 0, tb, gcpi_pixels(c->in[0].shape), (size_t)y.shape.d[3], (size_t)c->in[0].shape.d[3], c->in[0],
                   gcpi_cuda_alike(c, w, c->in[0]), y);
    if (bias && !first) gcpi_cuda_add_bias(c, y, y, &c->in[2]);
}
static void gcpi_cuda_product_data(const gcp_call *c, int tb, gcp_view w)
{
    gcpi_cuda_gemm(c, 0, !tb, gcpi_pixels(c->in[0].shape), (size_t)c->in[0].shape.d[3], (size_t)c->dout[0].shape.d[3],
                   c->dout[0], gcpi_cuda_alike(c, w, c->dout[0]), c->din[0]);
}
static void gcpi_cuda_product_weights(const gcp_call *c, int tb, gcp_view dw)
{
    const size_t m = gcpi_pixels(c->in[0].shape), k = (size_t)c->in[0].shape.d[3], n = (size_t)c->dout[0].shape.d[3];
    if (tb) gcpi_cuda_gemm(c, 1, 0, n, k, m, c->dout[0], c->in[0], dw);
    else    gcpi_cuda_gemm(c, 1, 0, k, n, m, c->in[0], c->dout[0], dw);
}
static size_t gcpi_cuda_product_bytes(const gcp_cost_call *c)
{
    const size_t bytes = gcpi_gpu_of(c->target->context)->opts.workspace;
    return c->store ? gcpi_round(bytes, 256) + gcpi_count(c->in[1]) * sizeof(uint16_t) : bytes;
}

/* ==== src/cuda/gpu_convs.h ==== */

/* Rows: convolutions, dense layers, matrix products. 1x1 with stride 1 is a matrix product over pixels, where
   channels are by fours (in bfloat16 by eights); everything else goes to the kernels: their order of sums is the
   shape's, however rows are aligned. A transposed convolution is the backward-data of the convolution from its output
   to its input; a dense layer is a 1x1 convolution. */

static int gcpi_cuda_is_product(const gcpi_conv_attr *a, gcp_store store)
{
    const int one = a->kh == 1 && a->kw == 1 && a->sh == 1 && a->sw == 1 && a->groups == 1;
    return one && a->h == a->ho && a->w == a->wo && (a->ci | a->co) % (store ? 8 : 4) == 0;
}
/* What cuBLAS multiplies: floats to floats, or halves to any of both. */
static int gcpi_cuda_multiplies(const gcp_call *c, const gcp_view *from, const gcp_view *to)
{
    return gcpi_cuda_is_product(&gcpi_attr(c->attributes)->conv, c->store) &&
           (from->dtype == GCP_DTYPE_BF16 || to->dtype != GCP_DTYPE_BF16);
}
/* OHWI weights of a 1x1 kernel: a matrix of [out][in]. */
static gcp_view gcpi_cuda_matrix(gcp_view w) { w.pitch = w.shape.d[3]; return w; }

/* The sums of statistics, before the rounded weights that are still read while they are made. */
static size_t gcpi_cuda_stats_room(gcp_shape y) { return gcpi_round(gcpi_cuda_stats_workspace(y), 256); }
/* forward, data: which kernel passes stand behind the op's forward and its input's gradient. With halves some operands
   may be floats, so that a product takes either way. */
static void gcpi_cuda_conv_cost(const gcp_cost_call *c, gcp_cost *cost, int forward, int data)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    gcpi_cuda_conv conv = gcpi_cuda_conv_of(a, c->target, a->ci, a->co);
    const int product = gcpi_cuda_is_product(a, c->store), kernels = !product || c->store;
    const int passes[] = { !c->backward, c->backward && c->wanted & 1, c->backward && c->wanted & 2 },
              pass[] = { forward, data, GCPI_CUDA_WEIGHTS };
    const size_t room = c->fused && c->store ? gcpi_cuda_stats_room(c->out[0]) : 0;
    const gcpi_conv plain = gcpi_conv_of(a, a->ci, a->co);
    cost->flops = gcpi_conv_flops(&plain) * (c->backward ? (c->wanted & 1) + (c->wanted >> 1 & 1) : 1);
    if (product) cost->workspace = gcpi_cuda_product_bytes(c);
    for (int k = 0; k < 3; k++)
        if (passes[k] && kernels)
            cost->workspace = GCPI_MAX(cost->workspace, room + gcpi_cuda_conv_workspace(&conv, pass[k], c->store));
    if (c->backward && c->wanted & 4)
        cost->workspace = GCPI_MAX(cost->workspace, gcpi_cuda_sums_workspace(c->out[0], 1));
}
static void gcpi_cuda_conv2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_cuda_conv_cost(c, cost, GCPI_CUDA_FORWARD, GCPI_CUDA_DATA);
}
static void gcpi_cuda_conv_transpose2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_cuda_conv_cost(c, cost, GCPI_CUDA_DATA, GCPI_CUDA_FORWARD);
}

/* What c->fused is to a convolution's results; 0: it runs after them. A mask's bytes may be what others still read. */
static int gcpi_cuda_conv2d_end(const gcp_call *c, gcpi_cuda_end *end)
{
    const gcp_call *next = c->fused;
    memset(end, 0, sizeof *end);
    if (!next || gcpi_attr(c->attributes)->conv.groups != 1 || gcpi_cuda_multiplies(c, &c->in[0], &c->out[0])) return 0;
    if (next->row == GCP_OP_BATCH_STATS) end->partial = (double *)next->workspace;
    if (next->row == GCP_OP_BATCH_STATS) return next->training;
    end->other = next->in[next->in[1].data != c->out[0].data];       /* y + other, or other + y */
    end->rectifier = gcpi_cuda_rectifier_of(next);
    return !next->out[1].data;
}
static const float *gcpi_cuda_bias_of(const gcp_call *c) { return c->inputs > 2 ? (const float *)c->in[2].data : NULL; }
static const float *gcpi_cuda_weights_of(const gcp_call *c) { return (const float *)c->in[1].data; }
static gcpi_cuda_conv gcpi_cuda_conv_between(const gcp_call *c, gcp_view x, gcp_view y)
{
    return gcpi_cuda_conv_of(&gcpi_attr(c->attributes)->conv, c->target, x.pitch, y.pitch);
}
static void gcpi_cuda_conv2d_forward(const gcp_call *c)
{
    const gcpi_cuda_conv conv = gcpi_cuda_conv_between(c, c->in[0], c->out[0]);
    gcpi_cuda_end end;
    const int ends = gcpi_cuda_conv2d_end(c, &end);
    unsigned char *workspace = (unsigned char *)c->workspace;
    if (ends && end.partial && c->store) workspace += gcpi_cuda_stats_room(c->out[0].shape);
    if (gcpi_cuda_multiplies(c, &c->in[0], &c->out[0])) gcpi_cuda_product_forward(c, 1, gcpi_cuda_matrix(c->in[1]));
    else gcpi_cuda_conv_forward(&conv, c->in[0], gcpi_cuda_weights_of(c), gcpi_cuda_bias_of(c), c->out[0],
                                ends ? &end : NULL, workspace, gcpi_stream(c));
    if (c->fused && c->fused->row == GCP_OP_BATCH_STATS) gcpi_cuda_batch_stats_summed(c->fused, ends);
    else if (c->fused && !ends) gcpi_cuda_apply_forward(c->fused);
}
/* Gradients. forward: of a convolution, else of a transposed one, whose input's gradient is made as forward. */
static void gcpi_cuda_conv_back(const gcp_call *c, int forward)
{
    const gcp_view dy = c->dout[0], dx = c->din[0], x = c->in[0];
    const gcpi_cuda_conv data = forward ? gcpi_cuda_conv_between(c, dx, dy) : gcpi_cuda_conv_between(c, dy, dx),
                         weights = forward ? gcpi_cuda_conv_between(c, x, dy) : gcpi_cuda_conv_between(c, dy, x);
    const gcp_view w = gcpi_cuda_matrix(c->in[1]);
    gcpi_cuda_bias_gradient(c, 2);
    if (dx.data && gcpi_cuda_multiplies(c, &dy, &dx)) gcpi_cuda_product_data(c, forward, w);
    else if (dx.data && forward)
        gcpi_cuda_conv_backward_data(&data, dy, gcpi_cuda_weights_of(c), NULL, dx, c->workspace, gcpi_stream(c));
    else if (dx.data)
        gcpi_cuda_conv_forward(&data, dy, gcpi_cuda_weights_of(c), NULL, dx, NULL, c->workspace, gcpi_stream(c));
    if (!c->din[1].data) return;
    if (x.dtype == dy.dtype && gcpi_cuda_multiplies(c, &x, &dy))
        gcpi_cuda_product_weights(c, forward, gcpi_cuda_matrix(c->din[1]));
    else
        gcpi_cuda_conv_backward_weights(&weights, forward ? x : dy, forward ? dy : x, c->din[1], c->workspace,
                                        gcpi_stream(c));
}
static void gcpi_cuda_conv2d_backward(const gcp_call *c) { gcpi_cuda_conv_back(c, 1); }

static void gcpi_cuda_conv_transpose2d_forward(const gcp_call *c)
{
    const gcpi_cuda_conv conv = gcpi_cuda_conv_between(c, c->out[0], c->in[0]);
    if (gcpi_cuda_multiplies(c, &c->in[0], &c->out[0])) gcpi_cuda_product_forward(c, 0, gcpi_cuda_matrix(c->in[1]));
    else gcpi_cuda_conv_backward_data(&conv, c->in[0], gcpi_cuda_weights_of(c), gcpi_cuda_bias_of(c), c->out[0],
                                      c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_conv_transpose2d_backward(const gcp_call *c) { gcpi_cuda_conv_back(c, 0); }

/* A 1x1 convolution of x; of a matrix product, whose right side has a row to a channel of x, the transposed one. */
static gcpi_attributes gcpi_cuda_one_by_one(const gcp_shape *x, int out, int transposed)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    a.conv.n = x->d[0];
    a.conv.h = a.conv.ho = x->d[1];
    a.conv.w = a.conv.wo = x->d[2];
    a.conv.ci = transposed ? out : x->d[3];
    a.conv.co = transposed ? x->d[3] : out;
    a.conv.kh = a.conv.kw = a.conv.sh = a.conv.sw = a.conv.dh = a.conv.dw = a.conv.groups = 1;
    return a;
}
static void gcpi_cuda_as_conv(const gcp_call *c, int transposed, void (*run)(const gcp_call *))
{
    const gcpi_attributes a = gcpi_cuda_one_by_one(&c->in[0].shape, c->out[0].shape.d[3], transposed);
    gcp_call conv = *c;
    conv.attributes = &a;
    run(&conv);
}
static void gcpi_cuda_linear_forward(const gcp_call *c) { gcpi_cuda_as_conv(c, 0, gcpi_cuda_conv2d_forward); }
static void gcpi_cuda_linear_backward(const gcp_call *c) { gcpi_cuda_as_conv(c, 0, gcpi_cuda_conv2d_backward); }
static void gcpi_cuda_matmul_forward(const gcp_call *c) { gcpi_cuda_as_conv(c, 1, gcpi_cuda_conv_transpose2d_forward); }
static void gcpi_cuda_matmul_backward(const gcp_call *c)
{
    gcpi_cuda_as_conv(c, 1, gcpi_cuda_conv_transpose2d_backward);
}
static void gcpi_cuda_cost_as_conv(const gcp_cost_call *c, gcp_cost *cost, int transposed)
{
    const gcpi_attributes a = gcpi_cuda_one_by_one(&c->in[0], c->out[0].d[3], transposed);
    gcp_cost_call conv = *c;
    conv.attributes = &a;
    (transposed ? gcpi_cuda_conv_transpose2d_cost : gcpi_cuda_conv2d_cost)(&conv, cost);
}
static void gcpi_cuda_linear_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_cuda_cost_as_conv(c, cost, 0); }
static void gcpi_cuda_matmul_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_cuda_cost_as_conv(c, cost, 1); }

#define GCPI_CUDA_CONV2D GCPI_CUDA_ROW("conv2d", gcpi_cuda_conv2d_forward, gcpi_cuda_conv2d_backward, \
                                       gcpi_cuda_conv2d_cost, GCP_FLAG_FUSED)
#define GCPI_CUDA_CONV_TRANSPOSE2D GCPI_CUDA_ROW_OF(conv_transpose2d, gcpi_cuda_conv_transpose2d_cost)
#define GCPI_CUDA_LINEAR GCPI_CUDA_ROW_OF(linear, gcpi_cuda_linear_cost)
#define GCPI_CUDA_MATMULS GCPI_CUDA_NO_ROW("matmul")
#define GCPI_CUDA_MATMUL GCPI_CUDA_ROW_OF(matmul, gcpi_cuda_matmul_cost)

/* ==== src/cuda/gpu_losses.h ==== */

/* Rows: embedding, losses. */

static void gcpi_cuda_embedding_forward(const gcp_call *c)
{
    gcpi_cuda_embedding(c->out[0], c->in[0], c->in[1], gcpi_stream(c));
}
static void gcpi_cuda_embedding_backward(const gcp_call *c)
{
    if (c->din[1].data) gcpi_cuda_embedding_back(c->din[1], c->in[0], c->dout[0], c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_embedding_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_cuda_embedding_workspace(c->in[0]);
}

static void gcpi_cuda_loss_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->workspace = GCPI_CUDA_LOSS_BYTES;
}
static gcpi_cuda_targets gcpi_cuda_targets_of(const gcp_call *c)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcpi_cuda_targets t;
    memset(&t, 0, sizeof t);
    if (a->labels.soft) t.soft = c->in[1];
    else t.labels = (const int *)c->in[1].data;
    t.ignore = a->labels.ignores ? a->labels.ignore : -1;
    t.smoothing = a->labels.smoothing;
    t.classes = (const float *)gcpi_loss_weights(c, a->labels.classes);
    t.samples = (const float *)gcpi_loss_weights(c, a->labels.samples);
    return t;
}
static void gcpi_cuda_cross_entropy_forward(const gcp_call *c)
{
    const gcpi_cuda_targets t = gcpi_cuda_targets_of(c);
    gcpi_cuda_cross_entropy(c->in[0], &t, (float *)c->out[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_cross_entropy_backward(const gcp_call *c)
{
    const gcpi_cuda_targets t = gcpi_cuda_targets_of(c);
    if (c->din[0].data)
        gcpi_cuda_cross_entropy_back(c->din[0], c->in[0], &t, (const float *)c->dout[0].data, c->workspace,
                                     gcpi_stream(c));
}
static void gcpi_cuda_mse_forward(const gcp_call *c)
{
    gcpi_cuda_mean(c->in[0], c->in[1], (float *)c->out[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_mse_backward(const gcp_call *c)
{
    for (int k = 0; k < 2; k++)
        if (c->din[k].data)
            gcpi_cuda_mse_back(c->din[k], c->in[k], c->in[1 - k], (const float *)c->dout[0].data, gcpi_stream(c));
}
static void gcpi_cuda_mean_forward(const gcp_call *c)
{
    gcpi_cuda_mean(c->in[0], gcpi_no_view(), (float *)c->out[0].data, c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_mean_backward(const gcp_call *c)
{
    gcp_view dout = c->dout[0];
    if (c->din[0].data)
        gcpi_cuda_fn2(c, GCPI_FN_FILL_FROM, c->din[0], gcpi_no_view(), dout, 1.0 / (double)gcpi_count(c->din[0].shape));
}

#define GCPI_CUDA_EMBEDDING GCPI_CUDA_ROW_OF(embedding, gcpi_cuda_embedding_cost)
#define GCPI_CUDA_CROSS_ENTROPY GCPI_CUDA_ROW_OF(cross_entropy, gcpi_cuda_loss_cost)
#define GCPI_CUDA_MSE GCPI_CUDA_ROW_OF(mse, gcpi_cuda_loss_cost)
#define GCPI_CUDA_MEAN GCPI_CUDA_ROW_OF(mean, gcpi_cuda_loss_cost)

/* ==== src/cuda/gpu_table.h ==== */

/* Rows of what a step does beside its ops; the table; the target. */

static void gcpi_cuda_seed_forward(const gcp_call *c)
{
    gcpi_cuda_fn2(c, GCPI_FN_FILL, c->out[0], gcpi_no_view(), gcpi_no_view(), *(const double *)c->attributes);
}
static void gcpi_cuda_norm_forward(const gcp_call *c) { gcpi_cuda_norm_add(c->in[0], c->workspace, gcpi_stream(c)); }
static void gcpi_cuda_norm_backward(const gcp_call *c)
{
    gcpi_cuda_norm_finish((gcp_step_numbers *)(uintptr_t)c->numbers, ((const gcp_plan_opts *)c->attributes)->clip_norm,
                          c->workspace, gcpi_stream(c));
}
static void gcpi_cuda_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->workspace = GCPI_CUDA_LOSS_BYTES + sizeof(double);
}
static gcpi_cuda_parameter gcpi_cuda_parameter_of(const gcp_call *c)
{
    const gcpi_update_rates r = gcpi_update_rates_of(c);
    gcpi_cuda_parameter p = { (float *)c->out[0].data, (float *)c->out[1].data, (float *)c->out[2].data,
                              (const float *)c->in[0].data, gcpi_count(c->in[0].shape),
                              (const uint64_t *)c->in[1].data, r.decay, r.rate, 0, 0 };
    return p;
}
static void gcpi_cuda_update_forward(const gcp_call *c)
{
    const gcp_plan_opts *o = (const gcp_plan_opts *)c->attributes;
    const cudaStream_t stream = gcpi_stream(c);
    gcpi_cuda_update u;
    u.numbers = c->numbers;
    u.beta1 = o->beta1; u.beta2 = o->beta2; u.epsilon = o->epsilon; u.clip_value = o->clip_value;
    u.momentum = o->momentum; u.nesterov = o->nesterov; u.optimizer = (int)o->optimizer;
    for (u.count = 0; c && u.count < GCP_MAX_UPDATES; c = c->fused) u.at[u.count++] = gcpi_cuda_parameter_of(c);
    gcpi_cuda_step(&u, stream);
}

/* What an op without GCP_FLAG_BF16 made. */
static void gcpi_cuda_round_forward(const gcp_call *c)
{
    gcpi_cuda_fn2(c, GCPI_FN_ROUND, c->out[0], c->out[0], gcpi_no_view(), 0);
}

#define GCPI_CUDA_SEED GCPI_CUDA_ROW("seed", gcpi_cuda_seed_forward, NULL, NULL, 0)
#define GCPI_CUDA_NORM GCPI_CUDA_ROW_OF(norm, gcpi_cuda_norm_cost)
#define GCPI_CUDA_UPDATE GCPI_CUDA_ROW("update", gcpi_cuda_update_forward, NULL, NULL, GCP_FLAG_FUSED)
#define GCPI_CUDA_ROUND GCPI_CUDA_ROW("round", gcpi_cuda_round_forward, NULL, NULL, 0)
#define GCPI_CUDA_CUSTOM GCPI_CUDA_NO_ROW("custom")

/* The rows, by name: gcp.h puts them in order, and a missing one does not compile. Cards before sm_80 have no tensor
   cores for bfloat16. */
#define GCPI_CUDA_NEXT(NAME, name) GCPI_CUDA_##NAME,
#define GCPI_CUDA_ROWS                                                                                      \
    {                                                                                                       \
        GCP_OPS_WITH_ROOMS(GCPI_CUDA_NEXT) GCP_POINTWISE_OPS(GCPI_CUDA_POINTWISE) GCPI_CUDA_CUSTOM,         \
        GCPI_CUDA_APPLY, GCPI_CUDA_SEED, GCPI_CUDA_NORM, GCPI_CUDA_UPDATE, GCPI_CUDA_ROUND                  \
    }
#define GCPI_CUDA_HALVES GCP_FLAG_BF16
static const gcp_op gcpi_cuda_rows[GCP_ROW_COUNT] = GCPI_CUDA_ROWS;
#undef GCPI_CUDA_HALVES
#define GCPI_CUDA_HALVES 0
static const gcp_op gcpi_cuda_rows_before_80[GCP_ROW_COUNT] = GCPI_CUDA_ROWS;

GCPI_DEF const gcp_target *gcp_cuda(gcp_gpu *gpu)
{
    static const gcp_device device = { gcpi_gpu_copy,  gcpi_gpu_fill,    gcpi_gpu_play,    gcpi_gpu_forget,
                                       gcpi_gpu_timed, gcpi_gpu_trouble, gcpi_gpu_copy_rows, gcpi_gpu_behind,
                                       gcpi_gpu_holds };
    gcp_target *t = &gpu->target;
    memset(t, 0, sizeof *t);
    t->name = "cuda";
    t->kernels = gpu->halves ? gcpi_cuda_rows : gcpi_cuda_rows_before_80;
    t->device = &device;
    t->align = 256;
    t->row_align = GCPI_CUDA_ROW_ALIGN;
    t->flops_per_second = gpu->opts.math == GCP_TF32 ? 2e14 : 4e13;     /* of an H100's order; profiles replace them */
    t->bf16_flops_per_second = 4e14;
    t->bytes_per_second = 3e12;
    t->far_bytes_per_second = 2.5e10;                                   /* PCIe 4.0, 16 lanes */
    t->context = gpu;
    t->allocate = gcpi_gpu_allocate;
    t->release = gcpi_gpu_release;
    t->copy_start = gcpi_gpu_copy_start;
    t->copy_wait = gcpi_gpu_copy_wait;
    t->far_allocate = gcpi_gpu_far_allocate;
    t->far_release = gcpi_gpu_far_release;
    return t;
}

#endif /* GCP_IMPLEMENTATION */
