/* Threads of a block until they wait or end, in some order; the blocks of a launch; what kernels call. */

namespace hostcuda {

static const char *describe(char text[200], const cuda_thread *t)
{
    static const char *const kinds[] = {"__syncthreads", "__syncwarp", "a shuffle", "a vote", "mma",
                                        "mma of halves", "ldmatrix"};
    uint3 i = run.index[t - run.threads];
    int n = snprintf(text, 200, "thread (%u, %u, %u) at %s, %s:%d", i.x, i.y, i.z, kinds[t->kind], t->file, t->line);
    if (t->kind != HOSTCUDA_BARRIER && n > 0 && n < 200)
        snprintf(text + n, static_cast<size_t>(200 - n), ", mask %#x", t->mask);
    return text;
}

/* Ends the launch: no thread of it goes on. */
__attribute__((format(printf, 1, 2))) static void fail(const char *format, ...)
{
    va_list list;
    int n = snprintf(run.message, sizeof run.message, "%s, block (%u, %u, %u): ", run.name, blockIdx.x, blockIdx.y,
                     blockIdx.z);
    va_start(list, format);
    if (n > 0 && n < static_cast<int>(sizeof run.message))
        vsnprintf(run.message + n, sizeof run.message - static_cast<size_t>(n), format, list);
    va_end(list);
    run.failed = true;
    switch_to(&run.host);
}

static unsigned choose(unsigned bits)            /* one of them, by the order */
{
    if (run.order == 0) return static_cast<unsigned>(__builtin_ctz(bits));
    if (run.order == 1) return 31 - static_cast<unsigned>(__builtin_clz(bits));
    unsigned turn = draw(&run.draw) & 31, turned = turn ? bits >> turn | bits << (32 - turn) : bits;
    return (static_cast<unsigned>(__builtin_ctz(turned)) + turn) & 31;
}

static void release(warp *w, unsigned lanes)
{
    w->ready |= lanes;
    run.active |= 1u << (w - run.warps);
}

static void open_barrier(void)
{
    for (unsigned i = 0; 32 * i < run.count; i++) {
        warp *w = &run.warps[i];
        if (w->barrier) release(w, w->barrier);
        w->barrier = 0;
    }
    run.arrived = 0;
    run.w = &run.warps[choose(run.active)];      /* all start anew, in the order's first warp */
}

static void deadlock(void)
{
    char a[200], b[200];
    const cuda_thread *first = nullptr, *other = nullptr;
    unsigned exited = run.count - run.live;
    for (unsigned i = 0; i < run.count; i++) {
        const cuda_thread *t = &run.threads[i];
        if (!(run.warps[i / 32].live >> i % 32 & 1)) continue;
        if (!first) first = t;
        else if (t->kind != first->kind || t->line != first->line || t->mask != first->mask) { other = t; break; }
    }
    if (other) fail("threads wait for each other: %s; %s; %u exited", describe(a, first), describe(b, other), exited);
    else fail("threads wait for ever: %s; %u exited", describe(a, first), exited);
}

/* Makes one ready thread the current one: of the same warp while it has any. */
static void next(void)
{
    warp *w = run.w;
    if (!w->ready) {
        run.active &= ~(1u << (w - run.warps));
        if (!run.active) deadlock();
        w = run.w = &run.warps[choose(run.active)];
    }
    run.lane = choose(w->ready);
    w->ready &= ~(1u << run.lane);
    unsigned i = static_cast<unsigned>(w - run.warps) * 32 + run.lane;
    run.current = &run.threads[i];
    threadIdx = run.index[i];
}

/* The current thread waits; returns when it has been released and chosen. */
static void go_on(void)
{
    cuda_thread *self = run.current;
    self->on = run.on;
    next();
    if (run.current != self) switch_to(run.current->on ? run.current->on : take_fiber());
}

static void product(warp *w, int depth)          /* p = a * b, each sum in order of k */
{
    typedef float row __attribute__((vector_size(32)));
    const row *b = reinterpret_cast<const row *>(w->b);
    for (int i = 0; i < 16; i++) {
        row sum = b[0] * w->a[i][0];
        for (int k = 1; k < depth; k++) sum += b[k] * w->a[i][k];
        *reinterpret_cast<row *>(w->p[i]) = sum;
    }
}

/* If all live lanes of the mask wait in this collective: its results, and they are released. */
static bool gathered(warp *w, int kind, unsigned mask)
{
    unsigned group = mask & w->live, votes = 0;
    if ((w->waiting & group) != group) return false;
    if (w->mixed)
        for (unsigned l = 0, first = static_cast<unsigned>(w - run.warps) * 32; l < 32; l++)
            if (group >> l & 1 && (run.threads[first + l].kind != kind || run.threads[first + l].mask != mask))
                return false;
    if (kind == HOSTCUDA_VOTE)
        for (int l = 0; l < 32; l++) if (group >> l & 1 && w->in[l]) votes |= 1u << l;
    for (int l = 0; l < 32; l++) {               /* lanes outside may not have read theirs yet */
        if (!(group >> l & 1)) continue;
        if (kind == HOSTCUDA_VOTE) w->out[l] = votes;
        if (kind == HOSTCUDA_SHUFFLE) w->out[l] = group >> (w->from[l] & 31) & 1 ? w->in[w->from[l] & 31] : ~0ull;
    }
    if (kind == HOSTCUDA_MMA) product(w, 8);
    if (kind == HOSTCUDA_MMA_HALVES) product(w, 16);
    if (kind == HOSTCUDA_LDMATRIX) for (int l = 0; l < 32; l++) memcpy(w->fours[l], w->rows[l], sizeof w->fours[l]);
    if (kind == HOSTCUDA_LDMATRIX && run.banking) {
        uintptr_t at[32];
        for (int l = 0; l < 32; l++) at[l] = reinterpret_cast<uintptr_t>(w->rows[l]);
        wavefronts(at, ~0u, 16, &run.banks.reads, &run.banks.reads_least);
    }
    w->waiting &= ~group;
    release(w, group);
    return true;
}

static void join(warp *w, int kind, unsigned mask, const char *file, int line)
{
    cuda_thread *t = run.current;
    unsigned bit = 1u << run.lane;
    t->kind = kind; t->mask = mask; t->file = file; t->line = line;
    if (!w->waiting) { w->kind = kind; w->mask = mask; w->mixed = false; }
    else if (kind != w->kind || mask != w->mask) w->mixed = true;
    w->waiting |= bit;
    if (gathered(w, kind, mask)) w->ready &= ~bit; /* the last one to come runs on */
    else go_on();
}

/* ---- Blocks of a launch */

static bool next_block(void)
{
    if (!run.left--) return false;
    run.block = (run.block + run.step) % run.blocks;
    unsigned long long b = run.block;
    blockIdx = {static_cast<unsigned>(b % gridDim.x), static_cast<unsigned>(b / gridDim.x % gridDim.y),
                static_cast<unsigned>(b / gridDim.x / gridDim.y)};
    if (run.shared) memset(hostcuda_dynamic, 0xFF, run.shared);
    run.active = 0;
    run.arrived = 0;
    run.live = run.count;
    for (unsigned i = 0; 32 * i < run.count; i++) {
        warp *w = &run.warps[i];
        w->live = w->ready = run.count - 32 * i < 32 ? (1u << (run.count - 32 * i)) - 1 : ~0u;
        w->waiting = w->barrier = 0;
        run.active |= 1u << i;
    }
    run.w = &run.warps[choose(run.active)];
    return true;
}

static void retire(void)                         /* the current thread has returned */
{
    cuda_thread *t = run.current;
    warp *w = run.w;
    t->on = nullptr;
    t->stored = 0;
    if (t->groups || !t->copies.empty()) { t->groups = 0; t->first = 0; t->copies.clear(); }
    w->live &= ~(1u << run.lane);
    if (!w->live) count_stores(w);
    run.live--;
    for (unsigned l = 0, first = static_cast<unsigned>(w - run.warps) * 32; w->waiting && l < 32; l++)
        if (w->waiting >> l & 1) gathered(w, run.threads[first + l].kind, run.threads[first + l].mask);
    if (run.arrived && run.arrived == run.live) open_barrier();
}

/* What a fiber does: start threads one after another while they return without having waited. Such a kernel switches
 * stacks twice, however many threads it has. */
static void work(void)
{
    for (;;) {
        (*run.body)();
        retire();
        if (!run.live && !next_block()) {
            run.idle.push_back(run.on);
            switch_to(&run.host);
            continue;
        }
        next();
        if (run.current->on) {
            run.idle.push_back(run.on);
            switch_to(run.current->on);
        }
    }
}

/* How blocks are walked: by a step that has no common divisor with their number. */
static void walk_blocks(void)
{
    run.left = run.blocks;
    run.step = run.order == 1 ? run.blocks - 1 : 1;
    run.block = run.order == 1 ? 0 : run.blocks - 1;
    if (run.order != 2 || run.blocks < 3) return;
    unsigned long long a, b, rest;
    do {
        run.step = 1 + draw(&run.draw) % (run.blocks - 1);
        for (a = run.blocks, b = run.step; b; a = b, b = rest) rest = a % b;
    } while (a != 1);
    run.block = draw(&run.draw) % run.blocks;
}

static bool execute(const char *name, dim3 grid, dim3 block, size_t shared, const std::function<void()> &body)
{
    run.name = name; run.body = &body;
    gridDim = grid; blockDim = block;
    run.count = block.x * block.y * block.z;
    for (unsigned i = 0; i < run.count; i++) run.index[i] = {i % block.x, i / block.x % block.y, i / block.x / block.y};
    run.blocks = 1ull * grid.x * grid.y * grid.z;
    run.shared = shared;
    run.failed = false;
    if (posix_memalign(&hostcuda_dynamic, 1024, shared ? shared : 1)) abort();
    walk_blocks();
    next_block();
    next();
#ifdef HOSTCUDA_TSAN
    run.host.shadow = __tsan_get_current_fiber();
#endif
    run.on = &run.host;
    switch_to(take_fiber());
    free(hostcuda_dynamic);
    hostcuda_dynamic = nullptr;
    if (!run.failed) return true;
    run.idle.clear();                            /* threads were left where they stood */
    for (size_t i = 0; i < run.fibers.size(); i++) {
        rewind(run.fibers[i].get(), i);
        run.idle.push_back(run.fibers[i].get());
    }
    for (cuda_thread &t : run.threads) { t.on = nullptr; t.groups = 0; t.first = 0; t.copies.clear(); }
    return false;
}
} /* namespace hostcuda */

void hostcuda_barrier(const char *file, int line)
{
    using namespace hostcuda;
    char a[200], b[200];
    cuda_thread *t = run.current;
    t->kind = HOSTCUDA_BARRIER; t->file = file; t->line = line; t->mask = 0;
    if (!run.arrived++) run.barrier = t;
    else if (run.barrier->line != line || (run.barrier->file != file && strcmp(run.barrier->file, file)))
        fail("threads at different barriers: %s; %s; %u exited", describe(a, run.barrier), describe(b, t),
             run.count - run.live);
    run.w->barrier |= 1u << run.lane;
    if (run.arrived == run.live) open_barrier();
    go_on();
}

unsigned long long hostcuda_collective(int kind, unsigned mask, unsigned long long value, int from, const char *file,
                                       int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    unsigned lane = run.lane;
    w->in[lane] = value;
    w->from[lane] = from;
    if (!(mask >> lane & 1)) {
        char a[200];
        cuda_thread *t = run.current;
        t->kind = kind; t->mask = mask; t->file = file; t->line = line;
        fail("lane %u is not in its own mask: %s", lane, describe(a, t));
    }
    join(w, kind, mask, file, line);
    return w->out[lane];
}

int hostcuda_lane(void) { return static_cast<int>(hostcuda::run.lane); }

unsigned hostcuda_to_tf32(float value)           /* to nearest, ties away from zero; a NaN is one in 19 bits, too */
{
    unsigned u = __float_as_uint(value);
    if (isnan(value)) return 0x7FFFFFFFu;
    return (u & 0x7F800000u) == 0x7F800000u ? u : (u + 0x1000u) & 0xFFFFE000u;
}

unsigned short hostcuda_to_bf16(float value)     /* to nearest, ties to even */
{
    unsigned u = __float_as_uint(value);
    return static_cast<unsigned short>((isnan(value) ? 0x7FFF0000u : u + 0x7FFFu + (u >> 16 & 1)) >> 16);
}

/* Lane l has g = l/4, t = l%4 and holds a: (g,t) (g+8,t) (g,t+4) (g+8,t+4)  b: (t,g) (t+4,g)
 * d: (g,2t) (g,2t+1) (g+8,2t) (g+8,2t+1). The low 13 bits of a and b are not read. */
void hostcuda_mma_m16n8k8_tf32(float d[4], const unsigned a[4], const unsigned b[2], const char *file, int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    unsigned g = run.lane / 4, t = run.lane % 4, top = 0xFFFFE000u;
    if (w->live != ~0u) fail("mma needs all 32 lanes, live are %#x, %s:%d", w->live, file, line);
    w->a[g][t] = __uint_as_float(a[0] & top); w->a[g + 8][t] = __uint_as_float(a[1] & top);
    w->a[g][t + 4] = __uint_as_float(a[2] & top); w->a[g + 8][t + 4] = __uint_as_float(a[3] & top);
    w->b[t][g] = __uint_as_float(b[0] & top); w->b[t + 4][g] = __uint_as_float(b[1] & top);
    join(w, HOSTCUDA_MMA, ~0u, file, line);
    d[0] += w->p[g][2 * t]; d[1] += w->p[g][2 * t + 1];
    d[2] += w->p[g + 8][2 * t]; d[3] += w->p[g + 8][2 * t + 1];
}

/* The same of pairs: each word has two neighbours in k, the first in its lower half. */
void hostcuda_mma_m16n8k16_bf16(float d[4], const unsigned a[4], const unsigned b[2], const char *file, int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    unsigned g = run.lane / 4, t = run.lane % 4;
    if (w->live != ~0u) fail("mma needs all 32 lanes, live are %#x, %s:%d", w->live, file, line);
    for (unsigned high = 0; high < 2; high++) {
        for (unsigned i = 0; i < 4; i++)
            w->a[g + i % 2 * 8][2 * t + i / 2 * 8 + high] =
                __uint_as_float(high ? a[i] & 0xFFFF0000u : a[i] << 16);
        for (unsigned i = 0; i < 2; i++)
            w->b[2 * t + i * 8 + high][g] = __uint_as_float(high ? b[i] & 0xFFFF0000u : b[i] << 16);
    }
    join(w, HOSTCUDA_MMA_HALVES, ~0u, file, line);
    d[0] += w->p[g][2 * t]; d[1] += w->p[g][2 * t + 1];
    d[2] += w->p[g + 8][2 * t]; d[3] += w->p[g + 8][2 * t + 1];
}

/* Until it is waited for, what a copy will bring is NaN. */
void hostcuda_cp_async(void *shared, const void *global, int bytes, bool valid, const char *file, int line)
{
    using namespace hostcuda;
    cuda_thread *t = run.current;
    size_t size = static_cast<size_t>(bytes);
    if (bytes != 4 && bytes != 8 && bytes != 16) fail("cp.async of %d bytes, %s:%d", bytes, file, line);
    if (reinterpret_cast<uintptr_t>(shared) % size || (valid && reinterpret_cast<uintptr_t>(global) % size))
        fail("cp.async of %d bytes between misaligned addresses %p and %p, %s:%d", bytes, shared, global, file, line);
    if (run.banking) {
        std::vector<store> &stores = run.w->stores;
        if (stores.size() == t->stored) stores.push_back({{}, 0, bytes});
        stores[t->stored].at[run.lane] = reinterpret_cast<uintptr_t>(shared);
        stores[t->stored++].lanes |= 1u << run.lane;
    }
    t->copies.push_back({static_cast<char *>(shared), {}, bytes, t->groups});
    if (valid) memcpy(t->copies.back().data, global, size);
    memset(shared, 0xFF, size);
}

/* Lane l names four floats: those of row l % 8 of the l / 8-th of four 8x4 matrices; it gets element l % 4 of row l / 4
   of each. */
static void load_matrices(const void *row, const char *file, int line)
{
    using namespace hostcuda;
    warp *w = run.w;
    if (w->live != ~0u) fail("ldmatrix needs all 32 lanes, live are %#x, %s:%d", w->live, file, line);
    if (reinterpret_cast<uintptr_t>(row) % 16) fail("ldmatrix of a misaligned address %p, %s:%d", row, file, line);
    w->rows[run.lane] = row;
    join(w, HOSTCUDA_LDMATRIX, ~0u, file, line);
}
void hostcuda_ldmatrix_x4(float f[4], const float *row, const char *file, int line)
{
    using namespace hostcuda;
    unsigned lane = run.lane;
    load_matrices(row, file, line);
    for (unsigned i = 0; i < 4; i++) memcpy(&f[i], run.w->fours[8 * i + lane / 4] + lane % 4 * 4, 4);
}
/* Of halves, transposed: lane l names eight of row l % 8 of the l / 8-th of four 8x8 matrices; it gets column l / 4 of
   rows l % 4 * 2 and the next, the first in the lower half. */
void hostcuda_ldmatrix_x4_trans(unsigned r[4], const unsigned short *row, const char *file, int line)
{
    using namespace hostcuda;
    unsigned lane = run.lane;
    load_matrices(row, file, line);
    for (unsigned i = 0; i < 4; i++)
        for (unsigned high = 0; high < 2; high++)
            memcpy(reinterpret_cast<unsigned char *>(&r[i]) + 2 * high,
                   run.w->fours[8 * i + lane % 4 * 2 + high] + lane / 4 * 2, 2);
}

void hostcuda_cp_async_commit(void) { hostcuda::run.current->groups++; }

void hostcuda_cp_async_wait(int n)
{
    hostcuda::cuda_thread *t = hostcuda::run.current;
    for (; t->first < t->copies.size() && t->copies[t->first].group < t->groups - n; t->first++)
        memcpy(t->copies[t->first].to, t->copies[t->first].data, static_cast<size_t>(t->copies[t->first].bytes));
    if (t->first == t->copies.size()) { t->copies.clear(); t->first = 0; }
}
