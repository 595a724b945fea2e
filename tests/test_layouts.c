#define GCP_IMPLEMENTATION
#define GCP_STATIC
#include "gcp.h"
#include "support/check.h"
#include "support/layouts.h"

/* Addresses: the exact search packs what is known to pack, says "cannot" where brute force does, and never errs. */

static unsigned char memory[64 << 20];

/* ---- MiniMalloc's eleven instances: each packs in 1,048,576 bytes, and live bytes leave no room for less ---- */

static void hard(const char *names)
{
    static layout y;
    for (; *names; names++) {
        char path[512];
        gcp_arena a = gcp_arena_from(memory, sizeof memory);
        gcpi_skyline s;
        double work = 2e9;
        snprintf(path, sizeof path, "%s/tests/layout/%c.1048576.csv", TEST_DATA, *names);
        CHECK(layout_read(&y, path) && layout_rectangles(&y, &s, &a));
        CHECK(gcpi_packing_exact(&s, 1048576, &work, &a) == GCPI_PACKS && layout_holds(&y, &s, 1048576));
        printf("%c: %d buffers, %d sections, %.3g of work\n", *names, y.count, s.sections, 2e9 - work);
        work = 0;
        CHECK(gcpi_packing_exact(&s, 1048576, &work, &a) == GCPI_PACKING_UNDECIDED);
    }
}

/* ---- random small ones against brute force ---- */

enum { MOST = 8, SECTIONS = 10 };
typedef struct brute {
    int count, sections, first[MOST], last[MOST];
    size_t bytes[MOST], ground[SECTIONS], at[MOST], least;
} brute;

/* The lowest place of b above the ground, beside those that are placed. */
static size_t brute_place(const brute *x, int b, int placed)
{
    size_t at = 0;
    for (int t = x->first[b]; t <= x->last[b]; t++) at = x->ground[t] > at ? x->ground[t] : at;
    for (int again = 1; again;) {
        again = 0;
        for (int o = 0; o < x->count; o++) {
            if (!(placed >> o & 1) || x->last[o] < x->first[b] || x->last[b] < x->first[o]) continue;
            if (at + x->bytes[b] <= x->at[o] || x->at[o] + x->bytes[o] <= at) continue;
            at = x->at[o] + x->bytes[o];
            again = 1;
        }
    }
    return at;
}
/* Each order of first fit: one of them is the best layout there is. */
static void brute_force(brute *x, int placed, size_t top)
{
    if (top >= x->least) return;
    if (placed == (1 << x->count) - 1) { x->least = top; return; }
    for (int b = 0; b < x->count; b++) {
        if (placed >> b & 1) continue;
        x->at[b] = brute_place(x, b, placed);
        const size_t end = x->at[b] + x->bytes[b];
        brute_force(x, placed | 1 << b, end > top ? end : top);
    }
}

static void brute_random(brute *x, uint64_t *random)
{
    const uint32_t sizes = 1 + gcpi_below(random, 9);
    x->count = 3 + (int)gcpi_below(random, MOST - 2);
    x->sections = 2 + (int)gcpi_below(random, SECTIONS - 1);
    for (int t = 0; t < x->sections; t++) x->ground[t] = gcpi_below(random, 3) ? 0 : gcpi_below(random, 4);
    for (int b = 0; b < x->count; b++) {
        const uint32_t sections = (uint32_t)x->sections;
        const int p = (int)gcpi_below(random, sections), q = (int)gcpi_below(random, sections);
        x->first[b] = p < q ? p : q; x->last[b] = p < q ? q : p;
        x->bytes[b] = 1 + gcpi_below(random, sizes);
    }
    x->least = SIZE_MAX;
    brute_force(x, 0, 0);
}

/* What the exact search finds in `goal` bytes. */
static gcpi_packed pack(const brute *x, gcpi_skyline *s, size_t goal, gcp_arena *a)
{
    double work = 1e7;
    gcpi_skyline_arrays(s, x->count, x->sections, a);
    s->align = 1;
    memcpy(s->ground, x->ground, (size_t)x->sections * sizeof *s->ground);
    for (int b = 0; b < x->count; b++) {
        gcpi_rectangle *r = &s->all[s->count++];
        r->buffer = b; r->first = x->first[b]; r->last = x->last[b]; r->bytes = x->bytes[b];
    }
    gcpi_skyline_ready(s);
    return gcpi_packing_exact(s, goal, &work, a);
}

static int overlaps(const brute *x, const gcpi_skyline *s)
{
    int count = 0;
    for (int b = 0; b < x->count; b++) {
        for (int t = x->first[b]; t <= x->last[b]; t++) count += s->all[b].at < x->ground[t];
        for (int o = 0; o < b; o++)
            count += x->first[o] <= x->last[b] && x->first[b] <= x->last[o] &&
                     s->all[b].at < s->all[o].at + x->bytes[o] && s->all[o].at < s->all[b].at + x->bytes[b];
    }
    return count;
}

static void small(int instances)
{
    uint64_t random = 88172645463325252ull;
    int gaps = 0;
    for (int i = 0; i < instances; i++) {
        gcp_arena a = gcp_arena_from(memory, sizeof memory);
        gcpi_skyline s;
        brute x;
        size_t live = 0;
        brute_random(&x, &random);
        CHECK(pack(&x, &s, x.least, &a) == GCPI_PACKS && overlaps(&x, &s) == 0);
        for (int b = 0; b < x.count; b++) CHECK(s.all[b].at + x.bytes[b] <= x.least);
        CHECK(pack(&x, &s, x.least - 1, &a) == GCPI_CANNOT_PACK);
        for (int t = 0; t < x.sections; t++) if (s.load[t]) live = GCPI_MAX(live, s.ground[t] + s.load[t]);
        gaps += live < x.least;
    }
    printf("%d small layouts, %d of them with more than their live bytes\n", instances, gaps);
    CHECK(gaps > 0);
}

/* ---- chains of equal buffers need no more than their live bytes ---- */

static void equal_chains(void)
{
    static char text[8192];
    for (int n = 4; n <= 28; n += 4) {
        char *w = text + sprintf(text, "# gcp-graph 1\no x0 0 1000 0\n");
        gcp_arena a = gcp_arena_from(memory, sizeof memory);
        gcp_tape *tape = gcp_tape_make(&a, .ops = 8);
        const gcp_target target = { .threads = 1, .align = 8 };
        for (int i = 1; i < n; i++) w += sprintf(w, "f x%d 1 1000 0 x%d\n", i, i - 1);
        w += sprintf(w, "b g%d 1 1000 0 x%d\n", n, n - 1);
        for (int i = n - 1; i > 0; i--) w += sprintf(w, "b g%d 1 1000 0 x%d g%d\n", i, i - 1, i + 1);
        gcp_plan plan = gcp_graph_plan(tape, text, .policy = GCP_POLICY_BUDGET, .budget = 4000, .target = &target);
        CHECK(plan.core && plan.slab_bytes == 4000 && plan.live_peak == 4000 && plan.moved_bytes == 0);
    }
}

int main(int argc, char **argv)
{
    const int all = argc > 1 && !strcmp(argv[1], "all");
    hard(all ? "ABCDEFGHIJK" : "BCFGHK");
    small(all ? 20000 : 200);
    equal_chains();
    return check_done();
}
