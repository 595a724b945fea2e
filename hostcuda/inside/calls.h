/* The runtime's calls. */

#define HOSTCUDA_ENTER using namespace hostcuda; guard hostcuda_guard(device.lock)
extern "C" {
#define HOSTCUDA_NAME(name, value, text) case name: return #name;
#define HOSTCUDA_TEXT(name, value, text) case name: return text;
const char *cudaGetErrorName(cudaError_t error)
{
    switch (error) {
        HOSTCUDA_ERRORS(HOSTCUDA_NAME) default : return "unrecognized error code";
    }
}
const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
        HOSTCUDA_ERRORS(HOSTCUDA_TEXT) default : return "unrecognized error code";
    }
}
cudaError_t cudaPeekAtLastError(void)
{
    HOSTCUDA_ENTER;
    return device.error != cudaSuccess ? device.error : last_error;
}
cudaError_t cudaGetLastError(void)
{
    HOSTCUDA_ENTER;
    told();
    cudaError_t e = last_error;
    last_error = cudaSuccess;
    return e;
}
cudaError_t cudaGetDeviceCount(int *count) { *count = 1; return cudaSuccess; }
cudaError_t cudaGetDevice(int *number) { *number = 0; return cudaSuccess; }
cudaError_t cudaSetDevice(int number) { return number == 0 ? cudaSuccess : hostcuda::note(cudaErrorInvalidDevice); }
cudaError_t cudaRuntimeGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }
cudaError_t cudaDriverGetVersion(int *version) { *version = CUDART_VERSION; return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *prop, int number)
{
    HOSTCUDA_ENTER;
    if (!prop) return note(cudaErrorInvalidValue);
    if (number) return note(cudaErrorInvalidDevice);
    *prop = cudaDeviceProp();
    snprintf(prop->name, sizeof prop->name, "host emulation");
    prop->totalGlobalMem = device.capacity;
    prop->sharedMemPerBlock = 48 << 10; prop->sharedMemPerBlockOptin = 227 << 10;
    prop->sharedMemPerMultiprocessor = 228 << 10;
    prop->totalConstMem = 64 << 10; prop->regsPerBlock = 64 << 10; prop->warpSize = 32; prop->maxThreadsPerBlock = 1024;
    prop->maxThreadsDim[0] = prop->maxThreadsDim[1] = 1024; prop->maxThreadsDim[2] = 64;
    prop->maxGridSize[0] = 0x7FFFFFFF; prop->maxGridSize[1] = prop->maxGridSize[2] = 65535;
    const char *major = getenv("HOSTCUDA_MAJOR");
    prop->major = major ? atoi(major) : 9; prop->minor = 0; prop->multiProcessorCount = 4; prop->l2CacheSize = 4 << 20;
    prop->maxThreadsPerMultiProcessor = 2048; prop->memoryBusWidth = 64; prop->asyncEngineCount = 1;
    prop->unifiedAddressing = prop->concurrentKernels = 1;
    return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr attr, int number)
{
    struct cudaDeviceProp p;
    cudaError_t e = cudaGetDeviceProperties(&p, number);
    if (e != cudaSuccess) return e;
    switch (attr) {
    case cudaDevAttrMaxThreadsPerBlock: *value = p.maxThreadsPerBlock; break;
    case cudaDevAttrMaxSharedMemoryPerBlock: *value = static_cast<int>(p.sharedMemPerBlock); break;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin: *value = static_cast<int>(p.sharedMemPerBlockOptin); break;
    case cudaDevAttrWarpSize: *value = p.warpSize; break;
    case cudaDevAttrMultiProcessorCount: *value = p.multiProcessorCount; break;
    case cudaDevAttrL2CacheSize: *value = p.l2CacheSize; break;
    case cudaDevAttrComputeCapabilityMajor: *value = p.major; break;
    case cudaDevAttrComputeCapabilityMinor: *value = p.minor; break;
    default: return hostcuda::note(cudaErrorInvalidValue);
    }
    return cudaSuccess;
}

cudaError_t cudaMalloc(void **pointer, size_t size) { return hostcuda::allocate(pointer, size, false); }
cudaError_t cudaMallocHost(void **pointer, size_t size) { return hostcuda::allocate(pointer, size, true); }
cudaError_t cudaHostAlloc(void **pointer, size_t size, unsigned int flags)
{
    (void)flags;
    return hostcuda::allocate(pointer, size, true);
}
cudaError_t cudaFree(void *pointer) { return hostcuda::release_memory(pointer, false); }
cudaError_t cudaFreeHost(void *pointer) { return hostcuda::release_memory(pointer, true); }

cudaError_t cudaMemGetInfo(size_t *available, size_t *total)
{
    HOSTCUDA_ENTER;
    *total = device.capacity;
    *available = device.live < device.capacity ? device.capacity - device.live : 0;
    return cudaSuccess;
}

cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t count, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    return copy_memory(to, from, count, kind, stream);
}

cudaError_t cudaMemcpy2DAsync(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                              size_t height, enum cudaMemcpyKind kind, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (width > to_pitch || width > from_pitch) return note(cudaErrorInvalidValue);
    cudaError_t e = cudaSuccess;
    for (size_t r = 0; r < height && e == cudaSuccess; r++)
        e = copy_memory(static_cast<char *>(to) + r * to_pitch, static_cast<const char *>(from) + r * from_pitch, width,
                        kind, stream);
    return e;
}

cudaError_t cudaPointerGetAttributes(struct cudaPointerAttributes *attributes, const void *p)
{
    HOSTCUDA_ENTER;
    if (!attributes) return note(cudaErrorInvalidValue);
    const place there = place_of(p, 1);
    const bool reached = there == DEVICE || there == PINNED;
    attributes->type = there == DEVICE   ? cudaMemoryTypeDevice
                       : there == PINNED ? cudaMemoryTypeHost
                                         : cudaMemoryTypeUnregistered;
    attributes->device = reached ? 0 : -2;
    attributes->devicePointer = reached ? const_cast<void *>(p) : nullptr;
    attributes->hostPointer = there == DEVICE ? nullptr : const_cast<void *>(p);
    return cudaSuccess;
}

cudaError_t cudaMemcpy(void *to, const void *from, size_t count, enum cudaMemcpyKind kind)
{
    HOSTCUDA_ENTER;
    cudaError_t e = usable(&device.legacy);
    if (e == cudaSuccess) e = unsafe(false);
    if (e == cudaSuccess) e = copy_memory(to, from, count, kind, nullptr);
    return e == cudaSuccess ? wait_stream(&device.legacy) : e;
}

cudaError_t cudaMemsetAsync(void *to, int value, size_t count, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (count && place_of(to, count) != DEVICE && place_of(to, count) != PINNED) return note(cudaErrorInvalidValue);
    return count ? enqueue(stream, [=] { memset(to, value, count); }) : cudaSuccess;
}

cudaError_t cudaMemset(void *to, int value, size_t count)
{
    HOSTCUDA_ENTER;
    cudaError_t e = unsafe(false);
    return e == cudaSuccess ? cudaMemsetAsync(to, value, count, nullptr) : e;
}

cudaError_t cudaDeviceSynchronize(void)
{
    HOSTCUDA_ENTER;
    cudaError_t e = unsafe(true);
    if (e != cudaSuccess) return e;
    finish_all();
    return told();
}

cudaError_t cudaStreamCreate(cudaStream_t *stream) { return cudaStreamCreateWithFlags(stream, cudaStreamDefault); }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned int flags)
{
    HOSTCUDA_ENTER;
    if (!stream || flags > cudaStreamNonBlocking) return note(cudaErrorInvalidValue);
    *stream = create<CUstream_st>();
    (*stream)->blocking = flags == cudaStreamDefault;
    device.streams.push_back(*stream);
    return cudaSuccess;
}

cudaError_t cudaStreamDestroy(cudaStream_t stream) /* its work still runs */
{
    HOSTCUDA_ENTER;
    if (!known(stream)) return note(cudaErrorInvalidResourceHandle);
    if (stream->blocking) for (op_ptr &o : stream->tail) if (!o->captured) device.legacy.tail.push_back(o);
    if (stream->capture) stream->capture->invalid = true;
    for (size_t i = 0; i < device.streams.size(); i++)
        if (device.streams[i] == stream) {
            device.streams.erase(device.streams.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    destroy(stream);
    return cudaSuccess;
}

cudaError_t cudaStreamSynchronize(cudaStream_t stream) { HOSTCUDA_ENTER; return wait_stream(stream_of(stream)); }
cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    if (s->capture) return spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    if (!device.ready.empty()) step();           /* so that asking again and again ends */
    for (const op_ptr &o : before(s)) if (!o->done) return cudaErrorNotReady;
    return told();
}

cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!known(event) || flags > 1) return note(cudaErrorInvalidResourceHandle);
    cudaError_t e = usable(s);
    if (e != cudaSuccess || !event->op) return e;
    CUgraph_st *graph = event->op->graph;
    if (event->op->captured && !graph) return note(cudaErrorCapturedEvent); /* of a capture that has ended */
    if (graph && s->legacy) return spoil(graph, cudaErrorStreamCaptureImplicit);
    if (s->capture && !graph) return spoil(s->capture, cudaErrorStreamCaptureIsolation);
    if (s->capture && s->capture != graph) return spoil(s->capture, cudaErrorStreamCaptureMerge);
    if (graph && !s->capture) {                  /* this stream joins the capture */
        s->outer.swap(s->tail);
        s->tail.clear();
        s->capture = graph;
    }
    if (!graph) s->tail = {put(nullptr, [] {}, before(s))}; /* keeps the tail short */
    s->tail.push_back(event->op);
    return cudaSuccess;
}

cudaError_t cudaStreamBeginCapture(cudaStream_t stream, enum cudaStreamCaptureMode mode)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!s) return note(cudaErrorInvalidResourceHandle);
    if (s->legacy) return note(cudaErrorStreamCaptureUnsupported);
    if (s->capture) return note(cudaErrorIllegalState);
    s->capture = create<CUgraph_st>();
    s->capture->origin = s; s->capture->mode = mode; s->capture->owner = std::this_thread::get_id();
    device.capturing.push_back(s->capture);
    s->outer.swap(s->tail);
    s->tail.clear();
    return cudaSuccess;
}

cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t *result)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!s || !result) return note(cudaErrorInvalidValue);
    *result = nullptr;
    CUgraph_st *graph = s->capture;
    if (!graph) return note(cudaErrorIllegalState);
    if (graph->origin != s) return spoil(graph, cudaErrorStreamCaptureUnmatched);
    if (graph->mode != cudaStreamCaptureModeRelaxed && graph->owner != std::this_thread::get_id())
        return note(cudaErrorStreamCaptureWrongThread);
    cudaError_t e = graph->invalid ? cudaErrorStreamCaptureInvalidated : cudaSuccess;
    std::set<op *> joined;                       /* all that the origin's next operation would follow */
    std::vector<op_ptr> look = s->tail;
    while (!look.empty()) {
        op_ptr o = look.back();
        look.pop_back();
        if (joined.insert(o.get()).second) look.insert(look.end(), o->after.begin(), o->after.end());
    }
    for (CUstream_st *other : device.streams) {
        if (other->capture != graph) continue;
        for (op_ptr &o : other->tail)
            if (!joined.count(o.get()) && e == cudaSuccess) e = cudaErrorStreamCaptureUnjoined;
        other->capture = nullptr;
        other->tail.swap(other->outer);
        other->outer.clear();
    }
    for (op_ptr &o : graph->nodes) o->graph = nullptr;
    for (size_t i = 0; i < device.capturing.size(); i++)
        if (device.capturing[i] == graph) {
            device.capturing.erase(device.capturing.begin() + static_cast<ptrdiff_t>(i));
            break;
        }
    if (e == cudaSuccess) *result = graph;
    else destroy(graph);
    return note(e);
}

cudaError_t cudaStreamIsCapturing(cudaStream_t stream, enum cudaStreamCaptureStatus *status)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!s || !status) return note(cudaErrorInvalidValue);
    *status = !s->capture           ? cudaStreamCaptureStatusNone
              : s->capture->invalid ? cudaStreamCaptureStatusInvalidated
                                    : cudaStreamCaptureStatusActive;
    return cudaSuccess;
}

cudaError_t cudaEventCreate(cudaEvent_t *event) { return cudaEventCreateWithFlags(event, cudaEventDefault); }
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned int flags)
{
    HOSTCUDA_ENTER;
    if (!event) return note(cudaErrorInvalidValue);
    *event = create<CUevent_st>();
    (*event)->timing = !(flags & cudaEventDisableTiming);
    return cudaSuccess;
}

cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    destroy(event);
    return cudaSuccess;
}

cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    auto when = event->when = std::make_shared<double>(0);
    cudaError_t e = enqueue(stream, [=] {
        *when = std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch()).count();
    });
    if (e == cudaSuccess) event->op = stream_of(stream)->tail.back();
    return e;
}

cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    if (!event->op) return cudaSuccess;
    if (event->op->graph) return spoil(event->op->graph, cudaErrorCapturedEvent);
    if (event->op->captured) return note(cudaErrorCapturedEvent);
    finish({event->op});
    return told();
}

cudaError_t cudaEventQuery(cudaEvent_t event)
{
    HOSTCUDA_ENTER;
    if (!known(event)) return note(cudaErrorInvalidResourceHandle);
    if (!event->op) return cudaSuccess;
    if (event->op->graph) return spoil(event->op->graph, cudaErrorCapturedEvent);
    if (event->op->captured) return note(cudaErrorCapturedEvent);
    if (!device.ready.empty()) step();
    return event->op->done ? told() : cudaErrorNotReady;
}

cudaError_t cudaEventElapsedTime(float *milliseconds, cudaEvent_t begin, cudaEvent_t end)
{
    HOSTCUDA_ENTER;
    if (!milliseconds) return note(cudaErrorInvalidValue);
    if (!known(begin) || !known(end) || !begin->op || !end->op || !begin->timing || !end->timing)
        return note(cudaErrorInvalidResourceHandle);
    if (begin->op->captured || end->op->captured) return note(cudaErrorCapturedEvent);
    if (!begin->op->done || !end->op->done) return cudaErrorNotReady;
    *milliseconds = static_cast<float>(*end->when - *begin->when);
    return told();
}

cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t *exec, cudaGraph_t graph, unsigned long long flags)
{
    HOSTCUDA_ENTER;
    if (!exec || !known(graph) || flags) return note(cudaErrorInvalidValue);
    *exec = create<CUgraphExec_st>();
    (*exec)->nodes = graph->nodes;
    return cudaSuccess;
}

/* Each node again as an operation of its own, the edges between them as recorded; all of it follows what is in the
 * stream, and the graph's previous launch. */
cudaError_t cudaGraphLaunch(cudaGraphExec_t exec, cudaStream_t stream)
{
    HOSTCUDA_ENTER;
    CUstream_st *s = stream_of(stream);
    if (!known(exec)) return note(cudaErrorInvalidValue);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    std::vector<op_ptr> first = before(s);
    if (!s->capture) first.insert(first.end(), exec->last.begin(), exec->last.end());
    op_ptr head = put(s->capture, [] {}, first);
    std::map<op *, op_ptr> again;
    std::vector<op_ptr> all = {head};
    for (const op_ptr &node : exec->nodes) {
        std::vector<op_ptr> after = {head};
        for (const op_ptr &a : node->after) after.push_back(again[a.get()]);
        all.push_back(again[node.get()] = put(s->capture, node->body, after));
    }
    s->tail = {put(s->capture, [] {}, all)};
    if (!s->capture) exec->last = s->tail;
    if (!device.lazy) finish_all();
    return cudaSuccess;
}

cudaError_t cudaGraphDestroy(cudaGraph_t graph)
{
    HOSTCUDA_ENTER;
    if (!known(graph)) return note(cudaErrorInvalidValue);
    destroy(graph);
    return cudaSuccess;
}

cudaError_t cudaGraphExecDestroy(cudaGraphExec_t exec)
{
    HOSTCUDA_ENTER;
    if (!known(exec)) return note(cudaErrorInvalidValue);
    destroy(exec);
    return cudaSuccess;
}

cudaError_t cudaFuncSetAttribute(const void *function, enum cudaFuncAttribute attribute, int value)
{
    HOSTCUDA_ENTER;
    if (!function) return note(cudaErrorInvalidDeviceFunction);
    if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
    if (value < 0 || value > 227 << 10) return note(cudaErrorInvalidValue);
    device.dynamic[function] = value < 48 << 10 ? 48u << 10 : static_cast<size_t>(value);
    last_error = cudaSuccess;                    /* as CUDA 13.0 does on a card */
    return cudaSuccess;
}

void hostcuda_order(int kind, unsigned seed) { HOSTCUDA_ENTER; run.order = kind; run.draw = seed; }
void hostcuda_streams(unsigned seed) { HOSTCUDA_ENTER; finish_all(); device.lazy = seed != 0; device.draw = seed; }
void hostcuda_capacity(size_t bytes)
{
    HOSTCUDA_ENTER;
    device.capacity = bytes ? bytes : 16ull << 30;
    device.high = device.live;
}
void hostcuda_fail_nth(int n) { HOSTCUDA_ENTER; device.fail_nth = n; }
size_t hostcuda_live_bytes(void) { HOSTCUDA_ENTER; return device.live; }
size_t hostcuda_high_bytes(void) { HOSTCUDA_ENTER; return device.high; }
int hostcuda_live_count(void) { HOSTCUDA_ENTER; return static_cast<int>(device.memory.size()); }
int hostcuda_live_handles(void) { HOSTCUDA_ENTER; return static_cast<int>(device.handles.size()); }
const char *hostcuda_message(void) { HOSTCUDA_ENTER; return run.message; }
unsigned long long hostcuda_launches(void) { HOSTCUDA_ENTER; return device.launches; }
unsigned long long hostcuda_pageable(void) { HOSTCUDA_ENTER; return device.pageable; }
void hostcuda_count_banks(void) { HOSTCUDA_ENTER; finish_all(); run.banking = true; run.banks = hostcuda_banks(); }
hostcuda_banks hostcuda_banks_counted(void) { HOSTCUDA_ENTER; finish_all(); run.banking = false; return run.banks; }
} /* extern "C" */
