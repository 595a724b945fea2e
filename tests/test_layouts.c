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

/* ---- long lists: what finds places without looking at all buffers finds those that looking at all finds ---- */

enum { BUFFERS = 40, MOMENTS = 30 };
typedef struct many {
    gcpi_buffer all[BUFFERS];
    gcpi_lives lives;
    size_t ground[MOMENTS], end[BUFFERS];
    int order[BUFFERS], placed[BUFFERS];
} many;

static void many_random(many *x, uint64_t *random)
{
    memset(x, 0, sizeof *x);
    x->lives.buffers = x->all;
    x->lives.buffer_count = 2 + (int)gcpi_below(random, BUFFERS - 1);
    for (int t = 0; t < MOMENTS; t++) x->ground[t] = gcpi_below(random, 3) ? 0 : 8 * gcpi_below(random, 4);
    for (int b = 0; b < x->lives.buffer_count; b++) {
        const int p = (int)gcpi_below(random, MOMENTS), q = (int)gcpi_below(random, MOMENTS);
        x->all[b].first = p < q ? p : q; x->all[b].last = p < q ? q : p;
        x->all[b].bytes = gcpi_below(random, 50);
        const int k = (int)gcpi_below(random, (uint32_t)b + 1);            /* a random order */
        x->order[b] = x->order[k]; x->order[k] = b;
    }
}
static size_t many_floor(const many *x, int b)
{
    size_t floor = 0;
    for (int t = x->all[b].first; t <= x->all[b].last; t++) floor = GCPI_MAX(floor, x->ground[t]);
    return floor;
}
static size_t many_place(const many *x, int b)
{
    size_t at = many_floor(x, b);
    for (int again = 1; again && x->all[b].bytes;) {
        again = 0;
        for (int o = 0; o < x->lives.buffer_count; o++) {
            const gcpi_buffer *other = &x->all[o];
            if (!x->placed[o] || other->last < x->all[b].first || x->all[b].last < other->first) continue;
            if (at + x->all[b].bytes <= other->offset || x->end[o] <= at) continue;
            at = x->end[o];
            again = 1;
        }
    }
    return at;
}
static void many_put(many *x, int b, size_t at)
{
    x->all[b].offset = at; x->end[b] = gcpi_round(at + x->all[b].bytes, 8);
    x->placed[b] = x->all[b].bytes > 0;
}

/* In order of birth, or (back) of death back in time: gaps. */
static void many_by_time(many *x, int back)
{
    gcp_arena a = gcp_arena_from(memory, sizeof memory);
    gcpi_gaps gaps;
    CHECK(gcpi_gaps_make(&gaps, &x->lives, MOMENTS, 8, &a));
    gcpi_gaps_begin(&gaps, back);
    memset(x->placed, 0, sizeof x->placed);
    for (int k = 0; k < MOMENTS; k++)
        for (int b = 0; b < x->lives.buffer_count; b++) {
            if ((back ? MOMENTS - 1 - x->all[b].last : x->all[b].first) != k) continue;
            const size_t at = many_place(x, b);
            CHECK(gcpi_gaps_fit(&gaps, b, many_floor(x, b)) == at);
            many_put(x, b, at);
        }
}

/* In any order: what lies near. */
static void many_in_order(many *x)
{
    gcp_arena a = gcp_arena_from(memory, sizeof memory);
    gcpi_nearby nearby;
    gcpi_heights ground;
    double work = 0;
    CHECK(gcpi_heights_arrays(&ground, MOMENTS, &a));
    for (int t = 0; t < MOMENTS; t++) *gcpi_heights_leaf(&ground, t) = x->ground[t];
    gcpi_heights_ready(&ground);
    CHECK(gcpi_nearby_make(&nearby, &x->lives, x->order, x->lives.buffer_count, &ground, MOMENTS, &a));
    memset(x->placed, 0, sizeof x->placed);
    for (int k = 0; k < x->lives.buffer_count; k++) {
        const int b = x->order[k];
        const size_t at = many_place(x, b), found = gcpi_nearby_fit(&nearby, b, many_floor(x, b), &work);
        CHECK(gcpi_heights_most(&ground, x->all[b].first, x->all[b].last) == many_floor(x, b));
        CHECK(found == at || x->all[b].bytes == 0);
        many_put(x, b, at);
        gcpi_nearby_put(&nearby, b, at, x->end[b]);
    }
}

static void many_buffers(int instances)
{
    static many x;
    uint64_t random = 88172645463325252ull;
    for (int i = 0; i < instances; i++) {
        many_random(&x, &random);
        many_by_time(&x, 0);
        many_by_time(&x, 1);
        many_in_order(&x);
    }
}

/* ---- chains of equal buffers need no more than their live bytes ---- */

static char text[1 << 20];
static void write_chain(int n)
{
    char *w = text + sprintf(text, "# gcp-graph 1\no x0 0 1000 0\n");
    for (int i = 1; i < n; i++) w += sprintf(w, "f x%d 1 1000 0 x%d\n", i, i - 1);
    w += sprintf(w, "b g%d 1 1000 0 x%d\n", n, n - 1);
    for (int i = n - 1; i > 0; i--) w += sprintf(w, "b g%d 1 1000 0 x%d g%d\n", i, i - 1, i + 1);
}

static const gcp_target byte_target = { .threads = 1, .align = 8 };

/* 10,000 ops: a segment for each of about sqrt(n) checkpoints, a few states where segments are divided again. */
static void long_chains(void)
{
    enum { N = 10000 };
    static const struct { gcp_policy policy; size_t states; } cases[] = {
        { GCP_POLICY_KEEP_ALL, N + 1 }, { GCP_POLICY_SQRT, 203 }, { GCP_POLICY_RECURSIVE, 17 }
    };
    write_chain(N);
    for (int i = 0; i < 3; i++) {
        gcp_arena a = gcp_arena_from(memory, sizeof memory);
        gcp_tape *tape = gcp_tape_make(&a, .ops = 8);
        gcp_plan plan = gcp_graph_plan(tape, text, .policy = cases[i].policy, .target = &byte_target);
        printf("%d ops: %zu bytes, %.0f seconds\n", N, plan.slab_bytes, plan.seconds);
        CHECK(plan.core && plan.slab_bytes == plan.live_peak && plan.slab_bytes <= 1000 * cases[i].states);
    }
}

static void equal_chains(void)
{
    for (int n = 4; n <= 28; n += 4) {
        gcp_arena a = gcp_arena_from(memory, sizeof memory);
        gcp_tape *tape = gcp_tape_make(&a, .ops = 8);
        write_chain(n);
        gcp_plan plan = gcp_graph_plan(tape, text, .policy = GCP_POLICY_BUDGET, .budget = 4000, .target = &byte_target);
        CHECK(plan.core && plan.slab_bytes == 4000 && plan.live_peak == 4000 && plan.moved_bytes == 0);
    }
}

int main(int argc, char **argv)
{
    const int all = argc > 1 && !strcmp(argv[1], "all");
    hard(all ? "ABCDEFGHIJK" : "BCFGHK");
    small(all ? 20000 : 200);
    many_buffers(all ? 20000 : 1000);
    equal_chains();
    long_chains();
    return check_done();
}
