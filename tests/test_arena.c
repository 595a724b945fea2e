/* The arena: alignment, zeroing, overflow, high-water mark; and what a tape takes from it. */
#include "support/check.h"
#include "gcp.h"
#include <limits.h>

static _Alignas(64) unsigned char memory[1 << 20];

static void pushes(void)
{
    memset(memory, 0xEE, 4096);
    gcp_arena a = gcp_arena_from(memory + 1, 4096);
    for (ptrdiff_t align = 1; align <= 256; align *= 2) {
        ptrdiff_t before = a.used;
        unsigned char *p = (unsigned char *)gcp_arena_push(&a, 5, align, 3);
        CHECK(p != NULL);
        if (!p) return;
        CHECK_INT((uintptr_t)p % (uintptr_t)align, ==, 0);
        for (int i = 0; i < 15; i++) CHECK(p[i] == 0);
        CHECK(p >= memory + 1 + before && p + 15 == memory + 1 + a.used && a.high == a.used);
    }
}

static void limits(void)
{
    gcp_arena a = gcp_arena_from(memory, 64);
    CHECK(gcp_arena_push(&a, 1, 1, 65) == NULL);
    CHECK(gcp_arena_push(&a, PTRDIFF_MAX, 1, 2) == NULL && gcp_arena_push(&a, 2, 1, PTRDIFF_MAX) == NULL);
    CHECK(gcp_arena_push(&a, PTRDIFF_MAX, 1, 1) == NULL && gcp_arena_push(&a, PTRDIFF_MAX, 64, PTRDIFF_MAX) == NULL);
    CHECK(gcp_arena_push(&a, 8, 1, -1) == NULL && gcp_arena_push(&a, -8, 1, 1) == NULL &&
          gcp_arena_push(&a, 8, 0, 1) == NULL);
    CHECK_INT(a.used, ==, 0);                        /* what was refused took nothing */
    CHECK_INT(a.high, ==, 0);
    CHECK(gcp_arena_push(&a, 1, 1, 64) == (void *)memory);
    CHECK(gcp_arena_push(&a, 1, 1, 1) == NULL);
    CHECK_INT(a.high, ==, 64);
    a.used = 0;                                      /* given back by hand: the mark stays */
    CHECK(gcp_arena_push(&a, 1, 1, 8) != NULL);
    CHECK_INT(a.high, ==, 64);
}

static void no_memory(void)
{
    gcp_arena a = gcp_arena_from(NULL, 4096), huge = gcp_arena_from(memory, SIZE_MAX), none = gcp_arena_from(memory, 0);
    CHECK(a.size == 0 && huge.size == 0 && none.size == 0);
    CHECK(gcp_arena_push(&a, 1, 1, 1) == NULL && gcp_arena_push(&huge, 1, 1, 1) == NULL &&
          gcp_arena_push(NULL, 1, 1, 1) == NULL);
    CHECK(gcp_arena_push(&none, 1, 1, 1) == NULL && gcp_tape_make(&none, .ops = 1) == NULL);
}

static int made(ptrdiff_t offset, size_t bytes, gcp_tape_opts o, gcp_tape **net)
{
    static gcp_arena a;
    a = gcp_arena_from(memory + offset, bytes);
    *net = gcp_tape_make_at(&a, o);
    return *net && !gcp_error(*net);
}

/* gcp_tape_arena is enough wherever the arena begins; one byte below the least is an error with both numbers. */
static void tapes(void)
{
    static const gcp_tape_opts options[] = {
        { .ops = 1 },
        { .ops = 37 },
        { .ops = 300 },
        { .ops = 0 },
        { .ops = 16, .tensors = 100, .parameters = 3, .segments = 2, .names = 333 }
    };
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        for (ptrdiff_t offset = 0; offset < 20; offset += 3) {
            gcp_tape *net;
            char has[64], takes[64];
            size_t most = gcp_tape_arena_at(options[i]), least = most;
            CHECK(made(offset, most, options[i], &net));
            while (least > 1 && made(offset, least - 1, options[i], &net)) least--;
            CHECK_INT(most - least, <, 640);         /* what alignment may take, and no more */
            CHECK(!made(offset, least - 1, options[i], &net) && gcp_error_code(net) == GCP_E_NOMEM);
            snprintf(has, sizeof has, "an arena of %zu bytes ", least - 1);
            snprintf(takes, sizeof takes, " which take %zu bytes", most);
            CHECK(strstr(gcp_error(net), has) && strstr(gcp_error(net), takes));
        }
}

/* An arena serves one tape, until that is given back by hand. */
static void one_tape(void)
{
    gcp_arena a = gcp_arena_from(memory, sizeof memory);
    CHECK(gcp_arena_push(&a, 8, 8, 1) && gcp_tape_make(&a, .ops = 1));
    ptrdiff_t used = a.used;
    CHECK(!gcp_tape_make(&a, .ops = 1) && strstr(gcp_error(NULL), "serves one already"));
    CHECK_INT(a.used, ==, used);
    a.used = 0;
    CHECK(gcp_tape_make(&a, .ops = 1));
}

/* Planning puts everything behind what is used, and gives its scratch back. */
static void scratch(void)
{
    gcp_arena a = gcp_arena_from(memory, sizeof memory);
    gcp_tape *net = gcp_tape_make(&a, .ops = 16);
    gcp_tensor loss = gcp_mean(gcp_linear(gcp_input(net, "x", GCP_SHAPE(2, 4)), .out = 4));
    ptrdiff_t used = a.used;
    size_t bound = gcp_plan_arena(loss, .policy = GCP_POLICY_SQRT);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SQRT);
    CHECK(plan.core && a.scratch == 0 && a.used > used);
    CHECK(a.high > a.used && a.high - used <= (ptrdiff_t)bound);
    gcp_tape_reset(net);
    CHECK_INT(a.used, ==, used);
}

/* A plan in an arena of any size: it is made, or there is no room; what was taken goes back. */
static void plans(void)
{
    static unsigned char plan_memory[1 << 18];
    for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_BUDGET;
         policy += GCP_POLICY_BUDGET - GCP_POLICY_SEGMENTS) {
        gcp_arena a = gcp_arena_from(memory, sizeof memory), own;
        gcp_tape *net = gcp_tape_make(&a, .ops = 16);
        gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4));
        for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "block") x = gcp_tanh(gcp_linear(x, .out = 4));
        gcp_plan_opts o = { .policy = (gcp_policy)policy, .budget = policy ? 4096 : 0, .arena = &own,
                            .effort = policy ? GCP_EFFORT_QUICK : GCP_EFFORT_DEFAULT };
        gcp_tensor loss = gcp_mean(x);
        size_t made_from = 0;
        CHECK(policy || gcp_plan_arena_at(loss, o) < sizeof plan_memory);
        for (size_t bytes = 0; bytes <= sizeof plan_memory; bytes += 80) {
            own = gcp_arena_from(plan_memory, bytes);
            gcp_plan plan = gcp_plan_make_at(loss, o);
            CHECK(plan.core ? !gcp_error(net) : gcp_error_code(net) == GCP_E_NOMEM);
            CHECK(own.scratch == 0 && (plan.core || own.used == 0) && (plan.core || !made_from));
            if (plan.core && !made_from) made_from = bytes;
            gcp_error_clear(net);
        }
        CHECK(made_from > 0);
    }
}

int main(void)
{
    pushes();
    limits();
    no_memory();
    tapes();
    one_tape();
    scratch();
    plans();
    return check_done();
}
