/* Fibers: each CUDA thread has a stack of its own. */

namespace hostcuda {

static void work(void);

static void landed(void)                         /* the first thing after every switch, on the stack switched to */
{
#ifdef HOSTCUDA_ASAN
    const void *bottom; size_t size;
    __sanitizer_finish_switch_fiber(run.on->shadow, &bottom, &size);
    if (run.before == &run.host) { run.host.bottom = bottom; run.host.size = size; }
#endif
}
static void start(void) { landed(); work(); }

static void switch_to(fiber *to)
{
    fiber *from = run.before = run.on;
    run.on = to;
#ifdef HOSTCUDA_ASAN
    __sanitizer_start_switch_fiber(&from->shadow, to->bottom, to->size);
#elif defined(HOSTCUDA_TSAN)
    __tsan_switch_to_fiber(to->shadow, 0);
#endif
#ifdef HOSTCUDA_UCONTEXT_USED
    swapcontext(&from->context, &to->context);
#else
    hostcuda_switch(&from->top, to->top);
#endif
    landed();
}

/* The stack as it is before the first switch to it, whatever was on it. Tops differ in their place within a page, or
   all
 * stacks would compete for the same lines of the cache. */
static void rewind(fiber *f, size_t number)
{
#ifdef HOSTCUDA_ASAN
    __asan_unpoison_memory_region(f->stack, HOSTCUDA_STACK);
    f->shadow = nullptr;
#elif defined(HOSTCUDA_TSAN)
    if (f->shadow) __tsan_destroy_fiber(f->shadow);
    f->shadow = __tsan_create_fiber(0);
#endif
    f->bottom = f->stack; f->size = HOSTCUDA_STACK;
#ifdef HOSTCUDA_UCONTEXT_USED
    (void)number;
    getcontext(&f->context);
    f->context.uc_stack.ss_sp = f->stack; f->context.uc_stack.ss_size = HOSTCUDA_STACK;
    makecontext(&f->context, start, 0);
#else
    void **top = reinterpret_cast<void **>(f->stack + HOSTCUDA_STACK - number * 576 % 4096) - HOSTCUDA_FRAME;
    for (int i = 0; i < HOSTCUDA_FRAME; i++) top[i] = nullptr;
    top[HOSTCUDA_START] = reinterpret_cast<void *>(start);
    f->top = top;
#endif
}

static fiber *take_fiber(void)
{
    if (run.idle.empty()) {
        fiber *f = new fiber;
        size_t page = 16 << 10;
        void *p = mmap(nullptr, page + HOSTCUDA_STACK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p == MAP_FAILED || mprotect(p, page, PROT_NONE)) {
            fprintf(stderr, "hostcuda: no memory for stacks\n");
            abort();
        }
        f->stack = static_cast<char *>(p) + page;
        rewind(f, run.fibers.size());
        run.fibers.emplace_back(f);
        return f;
    }
    fiber *f = run.idle.back();
    run.idle.pop_back();
    return f;
}
} // namespace hostcuda
