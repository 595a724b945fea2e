/* What runs: fibers, CUDA threads, warps, the block that is run; its banks of shared memory. */

#include <chrono>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <thread>
#include <vector>
#include <sys/mman.h>

#ifdef __has_feature
#define HOSTCUDA_HAS(sanitizer) __has_feature(sanitizer)
#else
#define HOSTCUDA_HAS(sanitizer) 0
#endif
#if defined(__SANITIZE_ADDRESS__) || HOSTCUDA_HAS(address_sanitizer)
#define HOSTCUDA_ASAN 1
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#elif defined(__SANITIZE_THREAD__) || HOSTCUDA_HAS(thread_sanitizer)
#define HOSTCUDA_TSAN 1
#include <sanitizer/tsan_interface.h>
#endif
#ifndef HOSTCUDA_STACK                           /* bytes of a CUDA thread's stack */
#ifdef HOSTCUDA_ASAN
#define HOSTCUDA_STACK (256 << 10)
#else
#define HOSTCUDA_STACK (64 << 10)
#endif
#endif

uint3 threadIdx, blockIdx;
dim3 blockDim, gridDim;
void *hostcuda_dynamic;

/* hostcuda_switch(&from, to) saves the registers that a call must keep on this stack, its top in from, and goes on with
 * those on the other stack. A new stack holds zeros and the address to start at, as if it had once called. */
#if defined(__x86_64__) && !defined(HOSTCUDA_UCONTEXT)
enum { HOSTCUDA_FRAME = 8, HOSTCUDA_START = 6 };
__asm__(".text\n.globl hostcuda_switch\nhostcuda_switch:\n"
        "push %rbp\npush %rbx\npush %r12\npush %r13\npush %r14\npush %r15\nmov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\npop %r15\npop %r14\npop %r13\npop %r12\npop %rbx\npop %rbp\nret\n");
#elif defined(__aarch64__) && !defined(HOSTCUDA_UCONTEXT)
enum { HOSTCUDA_FRAME = 20, HOSTCUDA_START = 11 };
__asm__(
    ".text\n.globl hostcuda_switch\nhostcuda_switch:\n"
    "sub sp, sp, #160\nstp x19, x20, [sp]\nstp x21, x22, [sp, #16]\nstp x23, x24, [sp, #32]\nstp x25, x26, [sp, #48]\n"
    "stp x27, x28, [sp, #64]\nstp x29, x30, [sp, #80]\nstp d8, d9, [sp, #96]\nstp d10, d11, [sp, #112]\n"
    "stp d12, d13, [sp, #128]\nstp d14, d15, [sp, #144]\nmov x9, sp\nstr x9, [x0]\nmov sp, x1\n"
    "ldp x19, x20, [sp]\nldp x21, x22, [sp, #16]\nldp x23, x24, [sp, #32]\nldp x25, x26, [sp, #48]\n"
    "ldp x27, x28, [sp, #64]\nldp x29, x30, [sp, #80]\nldp d8, d9, [sp, #96]\nldp d10, d11, [sp, #112]\n"
    "ldp d12, d13, [sp, #128]\nldp d14, d15, [sp, #144]\nadd sp, sp, #160\nret\n");
#else
#define HOSTCUDA_UCONTEXT_USED 1
#include <ucontext.h>
#endif
extern "C" void hostcuda_switch(void **from, void *to) __asm__("hostcuda_switch");

namespace hostcuda {

struct fiber {
    void *top = nullptr;                         /* of its stack while it does not run */
    char *stack = nullptr;                       /* the lowest byte; below it a page that may not be touched */
    const void *bottom = nullptr; size_t size = 0; void *shadow = nullptr; /* what sanitizers want to know */
#ifdef HOSTCUDA_UCONTEXT_USED
    ucontext_t context;
#endif
};
struct copy { char *to; unsigned char data[16]; int bytes, group; }; /* a cp.async under way */
struct cuda_thread {
    fiber *on = nullptr;                         /* where it waits; NULL before it starts */
    const char *file = nullptr; int line = 0, kind = 0; unsigned mask = 0; /* what it waits for */
    int groups = 0; size_t first = 0; std::vector<copy> copies;
    size_t stored = 0;                           /* cp.async of this thread in this block, where banks are counted */
};
/* What the lanes of a warp stored by their n-th cp.async. */
struct store { uintptr_t at[32]; unsigned lanes; int bytes; };
/* Bit l of each mask stands for lane l. A lane is ready (not started, or released), waiting in a collective, at the
 * barrier, running, or no longer live. */
struct warp {
    unsigned live, ready, waiting, barrier, mask;
    int kind; bool mixed;                        /* the kind and mask of all that wait, unless mixed */
    unsigned long long in[32], out[32]; int from[32];
    alignas(32) float a[16][16], b[16][8], p[16][8];
    /* of ldmatrix: what the lanes name, and the 16 bytes that lie there when all have come */
    const void *rows[32]; unsigned char fours[32][16];
    std::vector<store> stores;                   /* of this block, where banks are counted */
};

/* The block that runs, and where in it. */
static struct {
    const char *name; const std::function<void()> *body;
    warp warps[32], *w; unsigned active;         /* active: the warps with ready lanes */
    cuda_thread threads[1024]; uint3 index[1024];
    unsigned lane, count, live, arrived;         /* count: threads of a block; arrived: at the barrier */
    cuda_thread *current, *barrier;              /* barrier: the first that arrived */
    unsigned long long blocks, left, block, step; size_t shared;
    fiber *on, host, *before; std::vector<std::unique_ptr<fiber>> fibers; std::vector<fiber *> idle;
    int order; unsigned long long draw; bool failed; char message[640];
    bool banking; hostcuda_banks banks;
} run;

static unsigned draw(unsigned long long *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return static_cast<unsigned>(*state >> 33);
}

/* ---- Banks */

/* What the memory serves at once: as many lanes, side by side, as 128 bytes are; different words in one of 32 banks
   come one after
 * the other. */
static void wavefronts(const uintptr_t *at, unsigned lanes, int bytes, unsigned long long *taken,
                       unsigned long long *least)
{
    for (int first = 0, group = 128 / bytes; first < 32; first += group) {
        uintptr_t words[32][32];
        int count[32] = {}, most = 0;
        for (int l = first; l < first + group; l++)
            for (int b = 0; lanes >> l & 1 && b < bytes / 4; b++) {
                uintptr_t word = at[l] / 4 + static_cast<uintptr_t>(b);
                int bank = static_cast<int>(word % 32), i = 0;
                while (i < count[bank] && words[bank][i] != word) i++;
                if (i == count[bank]) words[bank][count[bank]++] = word;
                if (count[bank] > most) most = count[bank];
            }
        *taken += static_cast<unsigned long long>(most);
        *least += most > 0;
    }
}

static void count_stores(warp *w)                /* the block is done */
{
    for (const store &s : w->stores) wavefronts(s.at, s.lanes, s.bytes, &run.banks.stores, &run.banks.stores_least);
    w->stores.clear();
}
} // namespace hostcuda
