/* Run files, whose checksum is made to fit first: what is taken up fits; what is refused has changed nothing. */
#include "fuzz.h"
#include "../support/memory_files.h"

static unsigned char tape_memory[1 << 18];
static _Alignas(64) unsigned char step_memory[1 << 16], before[1 << 14];

/* The checksum of run files, written from its description: little-endian words, the last filled with zeros, how many
   bytes that has; each is xored in and mixed. */
static uint64_t checksum(const uint8_t *data, size_t size)
{
    uint64_t h = 0;
    for (size_t i = 0; i <= size / 8 + 1; i++) {
        uint64_t word = 0;
        for (size_t k = 0; k < 8 && 8 * i + k < size && i <= size / 8; k++) word |= (uint64_t)data[8 * i + k] << 8 * k;
        if (i > size / 8) word = size % 8;
        h = (h ^ word) * 0x9E3779B185EBCA87u;
        h = (h << 31 | h >> 33) * 0xC2B2AE3D27D4EB4Fu;
    }
    return h;
}

static gcp_arena arena;
static gcp_tape *net;
static gcp_plan plan;
static memory_disk disk;

static void prepare(void)
{
    if (net) return;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor loss = gcp_mean(gcp_linear(gcp_input(net, "x", GCP_SHAPE(2, 3)), .out = 2));
    plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    FUZZ_CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && plan.state_bytes <= sizeof before);
    memcpy(before, step_memory, plan.state_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prepare();
    gcp_files files = memory_files(&disk);
    memory_file *f = memory_put(&disk, "f", data, size);
    uint32_t extra[3] = { 1, 2, 3 };
    for (size_t i = 0; size >= 8 && i < 8; i++)
        f->bytes[size - 8 + i] = (unsigned char)(checksum(data, size - 8) >> 8 * i);
    const ptrdiff_t used = arena.used, scratch = arena.scratch;
    int taken = gcp_resume_run(net, "f", .extra = extra, .extra_bytes = sizeof extra, .files = &files);
    FUZZ_CHECK(arena.used == used && arena.scratch == scratch && disk.open == 0 && taken == !gcp_error(net));
    if (!taken) FUZZ_CHECK(!memcmp(before, step_memory, plan.state_bytes) && extra[0] == 1 && extra[2] == 3);
    memcpy(step_memory, before, plan.state_bytes);
    gcp_error_clear(net);
    return 0;
}
