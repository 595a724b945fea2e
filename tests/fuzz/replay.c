/* replay.c - gives a target files, and so many edits of each that seeds fix: replay EDITS FILE... . Not a fuzzer; it
   keeps the targets, and what was found by them, alive where there is no clang. */
#include "fuzz.h"

static uint32_t state;
static size_t pick(size_t count)        /* 0..count-1 */
{
    state = state * 1664525 + 1013904223;
    return (state >> 8) % (count ? count : 1);
}

static size_t remove_span(uint8_t *data, size_t size)
{
    size_t at = pick(size), n = 1 + pick(24);
    if (n > size - at) n = size - at;
    memmove(data + at, data + at + n, size - at - n);
    return size - n;
}

static size_t repeat_span(uint8_t *data, size_t size)
{
    size_t from = pick(size), to = pick(size), n = 1 + pick(24);
    if (n > size - from) n = size - from;
    if (n > FUZZ_BYTES - size) n = FUZZ_BYTES - size;
    uint8_t span[24];
    memcpy(span, data + from, n);
    memmove(data + to + n, data + to, size - to);
    memcpy(data + to, span, n);
    return size + n;
}

static size_t edited(uint8_t *data, size_t size)
{
    static const char letters[] = "0123456789 \n\t#<>=+@/.-efobtFRBOPW";
    size_t edits = 1 + pick(4);
    for (size_t i = 0; i < edits && size > 0; i++) {
        size_t how = pick(3);
        if (how == 0) size = remove_span(data, size);
        else if (how == 1) size = repeat_span(data, size);
        else data[pick(size)] = (uint8_t)letters[pick(sizeof letters - 1)];
    }
    return size;
}

static int replay(const char *path, uint32_t edits)
{
    static uint8_t data[FUZZ_BYTES], edit[FUZZ_BYTES];
    FILE *f = fopen(path, "rb");
    if (!f) { fprintf(stderr, "replay: %s cannot be read\n", path); return 0; }
    size_t size = fread(data, 1, sizeof data, f);
    fclose(f);
    LLVMFuzzerTestOneInput(data, size);
    for (uint32_t seed = 0; size && seed < edits; seed++) {
        state = seed;
        memcpy(edit, data, size);
        LLVMFuzzerTestOneInput(edit, edited(edit, size));
    }
    return 1;
}

int main(int argc, char **argv)
{
    uint32_t edits = argc > 1 ? (uint32_t)strtoul(argv[1], NULL, 10) : 0;
    for (int i = 2; i < argc; i++) if (!replay(argv[i], edits)) return 1;
    printf("%d files, %u edits of each\n", argc - 2, (unsigned)edits);
    return argc < 3;
}
