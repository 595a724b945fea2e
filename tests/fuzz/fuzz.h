/* fuzz.h - what the targets share. A target is a function of bytes; it aborts where a promise does not hold. Built with
   -fsanitize=fuzzer where GCP_FUZZ is ON, and with replay.c, which gives it files and small edits of them, everywhere
   else. */
#ifndef FUZZ_H
#define FUZZ_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gcp.h"

enum { FUZZ_BYTES = 1 << 14, FUZZ_TEXT = 1 << 17 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define FUZZ_CHECK(condition)                                                        \
    do {                                                                             \
        if (!(condition)) {                                                          \
            fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition); \
            abort();                                                                 \
        }                                                                            \
    } while (0)

/* A graph's plan, with what holds of any. The slab ends at a byte, live bytes count to the next multiple of 64. */
static inline gcp_plan fuzz_planned(gcp_tape *tape, const char *text, gcp_policy policy, size_t budget)
{
    gcp_error_clear(tape);
    gcp_plan plan = gcp_graph_plan(tape, text, .policy = policy, .budget = budget,
                                   .effort = policy == GCP_POLICY_BUDGET ? GCP_EFFORT_QUICK : GCP_EFFORT_DEFAULT);
    FUZZ_CHECK(!plan.core == !!gcp_error(tape));
    FUZZ_CHECK(!plan.core || (plan.seconds >= 0 && plan.slab_bytes + 63 >= plan.live_peak));
    return plan;
}

/* A block of its own, so that a sanitizer sees a read behind the end. NULL: longer than any input that is tried. */
static inline char *fuzz_text(const uint8_t *data, size_t size)
{
    char *text = size <= FUZZ_BYTES ? (char *)malloc(size + 1) : NULL;
    if (!text) return NULL;
    if (size) memcpy(text, data, size);
    text[size] = 0;
    return text;
}

typedef struct fuzz_sink { char text[FUZZ_TEXT]; size_t size; } fuzz_sink;

static inline void fuzz_put(void *context, const char *text, size_t size)
{
    fuzz_sink *s = (fuzz_sink *)context;
    FUZZ_CHECK(size < sizeof s->text - s->size);
    memcpy(s->text + s->size, text, size);
    s->text[s->size += size] = 0;
}

static inline gcp_writer fuzz_writer(fuzz_sink *s)
{
    gcp_writer w = { fuzz_put, s };
    s->size = 0;
    s->text[0] = 0;
    return w;
}
#endif
