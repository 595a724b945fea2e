/* Work: streams, events, captures, memory. It runs only when the host waits for something. */

namespace hostcuda {
struct op;
typedef std::shared_ptr<op> op_ptr;
struct op {                                      /* one piece of queued or captured work */
    std::function<void()> body;
    int blockers = 0; bool done = false; std::vector<op_ptr> followers; /* queued: how many must run first; who waits */
    /* captured: edges; graph while capturing */
    std::vector<op_ptr> after; CUgraph_st *graph = nullptr; bool captured = false;
};
typedef std::lock_guard<std::recursive_mutex> guard;
struct allocation { size_t size; bool pinned; };
enum place { PAGEABLE, PINNED, DEVICE, OUTSIDE };
} /* namespace hostcuda */

struct CUstream_st {
    bool legacy = false, blocking = true;
    std::vector<hostcuda::op_ptr> tail, outer;   /* what the next operation follows; outer: kept while capturing */
    CUgraph_st *capture = nullptr;
};
struct CUevent_st { hostcuda::op_ptr op; bool timing; std::shared_ptr<double> when; };
struct CUgraph_st {
    std::vector<hostcuda::op_ptr> nodes; CUstream_st *origin = nullptr;
    bool invalid = false; cudaStreamCaptureMode mode = cudaStreamCaptureModeGlobal; std::thread::id owner;
};
struct CUgraphExec_st { std::vector<hostcuda::op_ptr> nodes, last; };

namespace hostcuda {

static struct device {
    std::recursive_mutex lock;
    std::map<uintptr_t, allocation> memory; size_t live = 0, high = 0, capacity = 16ull << 30; int fail_nth = 0;
    CUstream_st legacy;
    std::set<void *> handles;
    std::vector<CUstream_st *> streams;
    std::vector<CUgraph_st *> capturing;
    std::vector<op_ptr> ready; unsigned long long draw = 0, launches = 0, pageable = 0; bool lazy = false;
    std::map<const void *, size_t> dynamic;      /* the most dynamic shared memory of a kernel, where set */
    cudaError_t error = cudaSuccess;             /* of a kernel, until a waiting call has told it */
    device()
    {
        legacy.legacy = true;
        streams.push_back(&legacy);
        const char *order = getenv("HOSTCUDA_ORDER"), *seed = getenv("HOSTCUDA_STREAMS");
        if (order)
            hostcuda_order(!strcmp(order, "forward")   ? 0
                           : !strcmp(order, "reverse") ? 1
                                                       : 2,
                           static_cast<unsigned>(atoi(order)));
        if (seed) { draw = strtoul(seed, nullptr, 10); lazy = draw != 0; }
    }
} device;
static thread_local cudaError_t last_error = cudaSuccess;

static cudaError_t note(cudaError_t e) { if (e != cudaSuccess) last_error = e; return e; }
static cudaError_t told(void) { cudaError_t e = device.error; device.error = cudaSuccess; return note(e); }
template <class T> static bool known(T *handle) { return device.handles.count(handle) != 0; }
static CUstream_st *stream_of(cudaStream_t s) { return !s ? &device.legacy : known(s) ? s : nullptr; }

/* Runs one operation that nothing holds back. After a failed kernel nothing runs until the failure has been told. */
static void step(void)
{
    size_t i = device.lazy ? draw(&device.draw) % device.ready.size() : 0;
    op_ptr o = device.ready[i];
    device.ready.erase(device.ready.begin() + static_cast<ptrdiff_t>(i));
    if (device.error == cudaSuccess) o->body();
    o->body = nullptr;
    o->done = true;
    for (op_ptr &f : o->followers) if (--f->blockers == 0) device.ready.push_back(f);
    o->followers.clear();
}

static void finish(const std::vector<op_ptr> &ops) { for (const op_ptr &o : ops) while (!o->done) step(); }
static void finish_all(void) { while (!device.ready.empty()) step(); }

static op_ptr put(CUgraph_st *graph, std::function<void()> body, const std::vector<op_ptr> &after)
{
    op_ptr o = std::make_shared<op>();
    o->body = std::move(body);
    if (graph) {
        o->after = after; o->graph = graph; o->captured = true;
        graph->nodes.push_back(o);
        return o;
    }
    for (const op_ptr &a : after) if (!a->done) { a->followers.push_back(o); o->blockers++; }
    if (!o->blockers) device.ready.push_back(o);
    return o;
}

/* What an operation in s must follow: those before it in s; and the legacy stream and blocking streams each other. */
static std::vector<op_ptr> before(CUstream_st *s)
{
    std::vector<op_ptr> after = s->tail;
    if (s->capture) return after;
    for (CUstream_st *other : device.streams)
        if (other != s && !other->capture && s->blocking && other->blocking && (s->legacy || other->legacy))
            after.insert(after.end(), other->tail.begin(), other->tail.end());
    return after;
}

static cudaError_t spoil(CUgraph_st *graph, cudaError_t e) { graph->invalid = true; return note(e); }

/* Whether work may be put into s now. */
static cudaError_t usable(CUstream_st *s)
{
    if (!s) return note(cudaErrorInvalidResourceHandle);
    if (s->capture && s->capture->invalid) return note(cudaErrorStreamCaptureInvalidated);
    if (s->legacy)
        for (CUstream_st *other : device.streams)
            if (other->capture && other->blocking) return spoil(other->capture, cudaErrorStreamCaptureImplicit);
    return cudaSuccess;
}

static cudaError_t enqueue(cudaStream_t stream, std::function<void()> body)
{
    CUstream_st *s = stream_of(stream);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    s->tail = {put(s->capture, std::move(body), before(s))};
    if (!device.lazy) finish_all();
    return cudaSuccess;
}

/* Calls that may wait for the whole device: not while a capture forbids it, that of this thread or a global one. */
static cudaError_t unsafe(bool always)
{
    cudaError_t e = cudaSuccess;
    for (CUgraph_st *g : device.capturing)
        if (always || g->mode == cudaStreamCaptureModeGlobal ||
            (g->mode == cudaStreamCaptureModeThreadLocal && g->owner == std::this_thread::get_id()))
            e = spoil(g, cudaErrorStreamCaptureUnsupported);
    return e;
}

static cudaError_t wait_stream(CUstream_st *s)
{
    if (!s) return note(cudaErrorInvalidResourceHandle);
    if (s->capture) return spoil(s->capture, cudaErrorStreamCaptureUnsupported);
    cudaError_t e = usable(s);
    if (e != cudaSuccess) return e;
    finish(before(s));
    return told();
}

static place place_of(const void *p, size_t count)
{
    uintptr_t at = reinterpret_cast<uintptr_t>(p);
    auto i = device.memory.upper_bound(at);
    if (i == device.memory.begin()) return PAGEABLE;
    --i;
    if (at >= i->first + i->second.size) return PAGEABLE;
    return count > i->first + i->second.size - at ? OUTSIDE : i->second.pinned ? PINNED : DEVICE;
}

/* Host memory that is not pinned is read when the copy is issued, and written before the call returns, as CUDA does;
 * a captured copy reads it at each launch. */
static cudaError_t copy_memory(void *to, const void *from, size_t count, cudaMemcpyKind kind, cudaStream_t stream)
{
    if (!count) return cudaSuccess;
    if (!to || !from) return note(cudaErrorInvalidValue);
    place dst = place_of(to, count), src = place_of(from, count);
    if (dst == OUTSIDE || src == OUTSIDE) return note(cudaErrorInvalidValue);
    int real = (src == DEVICE ? 2 : 0) + (dst == DEVICE ? 1 : 0);
    if (kind != cudaMemcpyDefault && real != static_cast<int>(kind)) return note(cudaErrorInvalidMemcpyDirection);
    CUstream_st *s = stream_of(stream);
    if (src == PAGEABLE && s && !s->capture) {
        device.pageable += dst == DEVICE;
        auto staged = std::make_shared<std::vector<char>>(static_cast<const char *>(from),
                                                          static_cast<const char *>(from) + count);
        cudaError_t e = enqueue(stream, [=] { memcpy(to, staged->data(), count); });
        if (e != cudaSuccess || dst == DEVICE) return e;
    } else {
        cudaError_t e = enqueue(stream, [=] { memcpy(to, from, count); });
        if (e != cudaSuccess || dst != PAGEABLE || s->capture) return e;
    }
    return wait_stream(s);
}

static cudaError_t allocate(void **pointer, size_t size, bool pinned)
{
    guard g(device.lock);
    if (!pointer) return note(cudaErrorInvalidValue);
    *pointer = nullptr;
    cudaError_t e = unsafe(false);
    if (e != cudaSuccess || !size) return e;
    bool fails = device.fail_nth > 0 && --device.fail_nth == 0;
    if (fails || (!pinned && (device.live > device.capacity || size > device.capacity - device.live)) ||
        posix_memalign(pointer, 256, size))
        return *pointer = nullptr, note(cudaErrorMemoryAllocation);
    memset(*pointer, 0xFF, size);
    device.memory[reinterpret_cast<uintptr_t>(*pointer)] = {size, pinned};
    if (!pinned) device.live += size;
    if (device.live > device.high) device.high = device.live;
    return cudaSuccess;
}

static cudaError_t release_memory(void *pointer, bool pinned)
{
    guard g(device.lock);
    if (!pointer) return cudaSuccess;
    cudaError_t e = unsafe(false);
    if (e != cudaSuccess) return e;
    auto i = device.memory.find(reinterpret_cast<uintptr_t>(pointer));
    if (i == device.memory.end() || i->second.pinned != pinned) return note(cudaErrorInvalidValue);
    finish_all();
    memset(pointer, 0xFF, i->second.size);
    if (!pinned) device.live -= i->second.size;
    device.memory.erase(i);
    free(pointer);
    return told();
}

template <class T> static T *create(void) { T *t = new T(); device.handles.insert(t); return t; }
template <class T> static void destroy(T *t) { device.handles.erase(t); delete t; }
} /* namespace hostcuda */

cudaError_t hostcuda_queue(const char *name, const void *kernel, dim3 grid, dim3 block, size_t shared,
                           cudaStream_t stream, std::function<void()> body)
{
    using namespace hostcuda;
    guard g(device.lock);
    unsigned long long threads = 1ull * block.x * block.y * block.z;
    if (!threads || threads > 1024 || block.z > 64 || !grid.x || !grid.y || !grid.z || grid.x > 0x7FFFFFFF ||
        grid.y > 65535 || grid.z > 65535)
        return note(cudaErrorInvalidConfiguration);
    auto most = device.dynamic.find(kernel);
    if (shared > (most == device.dynamic.end() ? 48u << 10 : most->second)) return note(cudaErrorInvalidValue);
    return enqueue(stream, [=] {
        device.launches++;
        if (!execute(name, grid, block, shared, body)) device.error = cudaErrorLaunchFailure;
    });
}
