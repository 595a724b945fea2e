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
