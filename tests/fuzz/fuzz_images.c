/* Images: the first byte says of which kind, the second how many bytes at the end are IDX labels. What is read is
   complete. */
#include "fuzz.h"
#include "../support/memory_files.h"

static unsigned char memory[1 << 16];

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static memory_disk disk;
    gcp_files files = memory_files(&disk);
    gcp_arena arena = gcp_arena_from(memory, sizeof memory);
    const char *path = "c";
    if (size < 2) return 0;
    const uint8_t *file = data + 2;
    const size_t all = size - 2, labels = data[1] < all ? data[1] : all;
    gcp_dataset d;
    switch (data[0] % 3) {
    case 0:
        memory_put(&disk, "i", file, all - labels);
        memory_put(&disk, "l", file + all - labels, labels);
        d = gcp_dataset_idx(&arena, "i", "l", .files = &files);
        break;
    case 1:
        memory_put(&disk, "c", file, all);
        d = gcp_dataset_cifar10(&arena, &path, 1, .files = &files);
        break;
    default:
        memory_put(&disk, "d/1.ppm", file, all);
        d = gcp_dataset_folder(&arena, "d", .files = &files);
    }
    FUZZ_CHECK(disk.open == 0 && arena.scratch == 0 && (d.count > 0) == !d.error[0]);
    if (!d.count) FUZZ_CHECK(!d.images && !d.labels && !arena.used);
    for (int i = 0; i < d.count; i++) FUZZ_CHECK(d.labels[i] >= 0 && d.labels[i] < d.classes);
    size_t bytes = (size_t)d.count * (size_t)d.height * (size_t)d.width * (size_t)d.channels, sum = 0;
    for (size_t i = 0; i < bytes && d.count; i++) sum += d.images[i];
    FUZZ_CHECK(sum <= 255 * bytes);
    return 0;
}
