/* Weights from files with a map: what is loaded was in the file and fits; what is refused has changed nothing. The
   arena is small: a file takes no more scratch than gcp_io.h says. */
#include "fuzz.h"
#include "../support/memory_files.h"

static unsigned char tape_memory[1 << 18];
static _Alignas(64) unsigned char step_memory[1 << 16], before[1 << 14];

static gcp_arena arena;
static gcp_tape *net;
static gcp_plan plan;
static memory_disk disk;

static void prepare(void)
{
    if (net) return;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 16);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 4, 4, 2));
    x = gcp_batch_norm(gcp_conv2d(x, .out = 3, .k = 3, .name = "a"), .name = "n");
    plan = gcp_plan_make(gcp_linear(gcp_flatten(x), .out = 2, .no_bias = 1, .name = "b"), .inference = 1);
    FUZZ_CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && plan.state_bytes <= sizeof before);
    memcpy(before, step_memory, plan.state_bytes);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    prepare();
    gcp_files files = memory_files(&disk);
    memory_put(&disk, "f", data, size);
    const ptrdiff_t used = arena.used, scratch = arena.scratch;
    for (int style = 0; style < 4; style++) {
        int count = gcp_load(net, "f", .style = (gcp_style)(style % 3), .partial = style < 3, .files = &files,
                             .map = style ? "b/* fc.* oihw:2x2\n- *.skip\n*/* *.*" : NULL);
        FUZZ_CHECK(arena.used == used && arena.scratch == scratch && disk.open == 0);
        FUZZ_CHECK((count > 0) == !gcp_error(net) && count <= 7);
        if (!count) FUZZ_CHECK(!memcmp(before, step_memory, plan.state_bytes));
        memcpy(step_memory, before, plan.state_bytes);
        gcp_error_clear(net);
    }
    return 0;
}
