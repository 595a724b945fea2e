/* Far memory: lists that copy values away and back, given by hand or chosen for a budget, give keep-all's bits in fewer
   bytes, whether a copy is done at once or as late as it may be. (By another thread: test_threads.) */
#include <stdlib.h>
#define GCP_IMPLEMENTATION
#define GCP_STATIC
#include "support/device_dags.h"
#include "support/far_slots.h"
#include "support/feed.h"
#include "support/graphs.h"

static unsigned char tape_memory[GCP_MB(48)], memory[GCP_MB(8)], probe[GCP_MB(8)], far_memory[GCP_MB(8)];
static char text[1 << 20];

/* ---- A target whose copies wait until they must be done -------------------------------------------------------*/

typedef struct late_copy { void *to; const void *from; size_t size; } late_copy;
static late_copy late[GCP_COPIES];
static int copies_made, copies_pending;
static void late_start(void *context, int id, void *to, const void *from, size_t size)
{
    (void)context;
    CHECK(late[id].size == 0);                   /* an id is free again only after its wait */
    late[id].to = to; late[id].from = from; late[id].size = size;
    copies_pending++;
}
static void late_wait(void *context, int id)
{
    (void)context;
    memcpy(late[id].to, late[id].from, late[id].size);
    late[id].size = 0;
    copies_pending--;
    copies_made++;
}
static void *take(void *context, size_t size) { (void)context; return malloc(size); }
static void give(void *context, void *p, size_t size) { (void)context; (void)size; free(p); }

/* ---- Lists ----------------------------------------------------------------------------------------------------*/

/* O behind instruction after, P ahead of before */
typedef struct edit { int after, before; char name[128]; } edit;

/* Where the value of a tensor is idle for longest. */
static int idle(const gcpi_plan *core, int item, edit *e)
{
    int last = -1, best = 1;
    for (int i = 0; i < (int)core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        for (int k = 0; k < t->count; k++) {
            if (core->p.operands[t->operands + k].item != item) continue;
            if (last >= 0 && i - last > best) { best = i - last; e->after = last; e->before = i; }
            last = i;
        }
    }
    gcpi_name_text(core->p.tape, core->p.tape->tensors[item].name, e->name, sizeof e->name);
    return best > 1;
}

static void append(void *context, const char *s, size_t size) { (void)context; strncat(text, s, size); }

/* The plan's list with some values copied away. Returns how many. */
static int edited(const gcp_plan *plan, unsigned seed)
{
    static edit edits[512];
    const gcpi_plan *core = plan->core;
    int count = 0, n = 0;
    for (int i = 1; i < core->p.tensors; i++) {
        const gcpi_item *x = &core->p.items[i];
        int alone = x->kind == GCPI_FORWARD_ITEM && x->active && x->root == i && x->next < 0 && !x->pinned
                 && core->p.tape->ops[core->p.tape->tensors[i].producer].out == i;
        if (alone && count < 512 && (seed + (unsigned)i) % 3 && idle(core, i, &edits[count])) count++;
    }
    text[0] = 0;
    gcpi_list_opening(core, (gcp_writer) { append, NULL });
    n = (int)strlen(text);
    for (int i = 0; i < (int)core->list.count; i++) {
        char name[128];
        for (int e = 0; e < count; e++) {
            if (edits[e].before - 1 == i && e % 2)
                n += snprintf(text + n, sizeof text - (size_t)n, "A %s\n", edits[e].name);
            if (edits[e].before == i) n += snprintf(text + n, sizeof text - (size_t)n, "P %s\n", edits[e].name);
        }
        n += snprintf(text + n, sizeof text - (size_t)n, "%c %s\n", core->list.at[i].letter,
                      gcpi_task_name(&core->p, &core->p.tasks[core->list.at[i].task], name, sizeof name));
        for (int e = 0; e < count; e++)
            if (edits[e].after == i) n += snprintf(text + n, sizeof text - (size_t)n, "O %s\n", edits[e].name);
    }
    return count;
}

static device_outcome train(random_net *r, gcp_plan *plan)
{
    device_outcome out = { .values = 0 };
    gcp_bind(plan, memory, sizeof memory);
    if (plan->far_bytes && !plan->core->bound.far) gcp_far_bind(plan, far_memory, sizeof far_memory);
    for (int step = 0; step < 3; step++) {
        device_feed(plan, r, step);
        out.loss[step] = (float)gcp_step(plan, .lr = 0.01);
    }
    device_hash(plan, &out, 0);
    CHECK_INT(gcp_measure(plan, probe, plan->bytes + 4096), ==, plan->bytes);
    return out;
}

static void networks(int count)
{
    gcp_target slow = { .copy_start = late_start, .copy_wait = late_wait, .far_allocate = take, .far_release = give };
    long moved = 0, smaller = 0;
    for (int i = 0; i < count && check_failed < 10; i++) {
        device_outcome kept = { .values = 0 };
        for (int way = 0; way < 4; way++) {
            gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
            random_net r = net_make_with(&arena, (unsigned)i, 1);
            gcp_plan plain = gcp_plan_make(r.loss, .policy = i % 2 ? GCP_POLICY_KEEP_ALL : GCP_POLICY_SEGMENTS,
                                           .optimizer = GCP_OPTIMIZER_ADAM);
            if (way == 0) { kept = train(&r, &plain); continue; }
            moved += edited(&plain, (unsigned)i);
            gcp_plan plan = gcp_plan_make(r.loss, .list = text, .optimizer = GCP_OPTIMIZER_ADAM,
                                          .target = way == 2 ? &slow : NULL, .check = way == 3);
            device_outcome now = train(&r, &plan);
            const char *error = gcp_error(r.tape);
            if (error) fprintf(stderr, "network %d, way %d: %s\n", i, way, error);
            CHECK(gcp_error(r.tape) == NULL && device_same(&now, &kept));
            CHECK(plan.bytes <= plain.bytes + plain.bytes / 4 && copies_pending == 0);
            smaller += plan.bytes < plain.bytes;
            gcp_unbind(&plan);
        }
    }
    printf("%d networks, %ld values copied away, %ld plans smaller, %d copies made late\n", count, moved, smaller,
           copies_made);
    CHECK(moved > count && smaller > count / 4 && copies_made > count);
}

/* ---- A chain: the figures that one works out by hand, and what is refused --------------------------------------*/

static gcp_tape *net;
static gcp_tensor loss;
static void chain(int n)
{
    static gcp_arena arena;
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor x = gcp_want_grad(gcp_input(net, "x", GCP_SHAPE(1, 16384)));
    for (int i = 0; i < n; i++) x = gcp_tanh(x);
    loss = gcp_mean(x);
}

static void refused(const char *list, const char *message)
{
    CHECK(gcp_plan_make(loss, .list = list).core == NULL);
    CHECK(gcp_error(net) && strstr(gcp_error(net), message));
    const char *error = gcp_error(net);
    if (error && !strstr(error, message)) fprintf(stderr, "%s\n", error);
    gcp_error_clear(net);
}

static void by_hand(void)
{
    chain(3);
    const char *list = "F tanh[0]\nF tanh[1]\nO tanh[0]\nF tanh[2]\nO tanh[1]\nA tanh[0]\nF mean[0]\nB seed\nB "
                       "mean[0]\nB tanh[2]\nP tanh[1]\nB tanh[1]\nP tanh[0]\nB tanh[0]\n";
    gcp_plan plan = gcp_plan_make(loss, .list = list), plain = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    CHECK(plan.core && plan.far_bytes == 2 * 65536);
    CHECK_NEAR(plain.slab_bytes - plan.slab_bytes, 65536, 128);           /* never three values at once */
    gcp_bind(&plan, memory, sizeof memory);
    CHECK(isnan(gcp_step(&plan)) && gcp_error_code(net) == GCP_E_BIND &&
          strstr(gcp_error(net), "131072 bytes to gcp_far_bind"));
    gcp_error_clear(net);
    CHECK(gcp_far_bind(&plan, far_memory, 100) == GCP_E_BIND);
    gcp_error_clear(net);
    void *const taken[] = { memory + plan.bytes - 64, plan.core, net };
    for (int i = 0; i < 3; i++) {
        CHECK(gcp_far_bind(&plan, taken[i], plan.far_bytes) == GCP_E_BIND &&
              strstr(gcp_error(net), i ? "gcp_far_bind: the far memory overlaps " : "overlaps the step's"));
        gcp_error_clear(net);
    }
    CHECK(gcp_far_bind(&plan, far_memory, plan.far_bytes) == GCP_OK);
    CHECK(gcp_bind(&plan, far_memory + 64, sizeof far_memory - 64) == GCP_E_BIND &&
          strstr(gcp_error(net), "gcp_bind: the far memory overlaps the step's"));
    gcp_error_clear(net);
    CHECK(gcp_bind(&plan, memory, sizeof memory) == GCP_OK &&
          gcp_far_bind(&plan, far_memory, plan.far_bytes) == GCP_OK);
    feed_zeros(&plan, "x");
    gcp_step(&plan);
    CHECK(gcp_error(net) == NULL);
    /* takes the slab; other far memory does not give it back */
    CHECK(gcp_bind(&plain, memory, sizeof memory) == GCP_OK);
    feed_zeros(&plain, "x");
    gcp_step(&plain);
    CHECK(gcp_far_bind(&plan, probe, plan.far_bytes) == GCP_OK && isnan(gcp_step(&plan)));
    CHECK(gcp_error_code(net) == GCP_E_INPUT &&
          strstr(gcp_error(net), "was not written since another plan used the same memory"));
    gcp_error_clear(net);
}

static void refused_by_hand(void)
{
    chain(3);
    refused("F tanh[0]\nP tanh[0]\n", "line 2: P tanh[0]: has no earlier copy to far memory (O)");
    refused("F tanh[0]\nA tanh[0]\n", "line 2: A tanh[0]: has no earlier copy to far memory (O)");
    refused("O tanh[0]\nF tanh[0]\n", "line 1: O tanh[0]: reads a value that is not in the slab");
    refused("F tanh[0]\nF tanh[1]\nF tanh[2]\nF mean[0]\nO mean[0]\n", "line 5: no instruction 'O mean[0]'");
}

/* ---- The timeline: two streams worked out by hand --------------------------------------------------------------*/

static const char three_ops[] =
    "f a 1 1000000000 0\nf b 2 1000000000 0 a\nf c 1 64 0 b\n"
    "b c_b 1 64 0 c\nb b_b 4 64 0 a b c_b\nb a_b 1 64 0 b_b\n";

static void seconds(const char *list, double rate, double want, double stall)
{
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *t = gcp_tape_make(&arena, .ops = 8);
    gcp_target link = { .far_bytes_per_second = rate };
    gcp_plan plan = gcp_graph_plan(t, three_ops, .list = list, .target = &link);
    CHECK(gcp_error(t) == NULL);
    CHECK_NEAR(plan.seconds, want, 1e-9);
    CHECK_NEAR(plan.stall_seconds, stall, 1e-9);
    CHECK_NEAR(plan.keep_all_seconds, 10, 1e-9);
}

static void timeline(void)
{
    seconds("F a\nF b\nF c\nB c_b\nB b_b\nB a_b\n", 1e9, 10, 0);
    /* out under b; back with nothing beside it */
    seconds("F a\nO a\nF b\nA a\nF c\nB c_b\nP a\nB b_b\nB a_b\n", 1e9, 11, 1);
    seconds("F a\nO a\nF b\nA a\nF c\nP a\nB c_b\nB b_b\nB a_b\n", 1e9, 10, 0);       /* back under c_b */
    /* 2.5 s: out from 1 to 3.5, 0.5 waited; back from 4.5 to 7, 1.5 waited */
    seconds("F a\nO a\nF b\nA a\nF c\nP a\nB c_b\nB b_b\nB a_b\n", 0.4e9, 12, 2);
    /* one link: b out 3..4, back 4..5, a back 5..6 */
    seconds("F a\nO a\nF b\nO b\nF c\nA a\nA b\nP b\nB c_b\nP a\nB b_b\nB a_b\n", 1e9, 11, 1);
    /* out 1..5, waited for 2 s; back 5..9, beside c and c_b, waited for 2 more */
    seconds("F a\nO a\nF b\nP a\nF c\nB c_b\nB b_b\nB a_b\n", 0.25e9, 14, 4);
}

/* a may be away for as long as it likes, and b, but nothing runs again: by hand, what cannot stay must go out and come
   back. */
static void bound(void)
{
    static const char chain[] = "f a 1 1000000000 0\nf b 1 1000000000 0 a\nf c 1 1000000000 0 b\nf d 1 64 0 c\n"
        "b d_b 1 64 0 c d\nb c_b 1 64 0 b c d_b\nb b_b 1 64 0 a b c_b\nb a_b 1 64 0 a b_b\n";
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *t = gcp_tape_make(&arena, .ops = 8);
    gcp_target link = { .far_bytes_per_second = 0.2e9 };
    gcp_plan keep = gcp_graph_plan(t, chain, .policy = GCP_POLICY_KEEP_ALL);
    gcp_plan plan = gcp_graph_plan(t, chain, .policy = GCP_POLICY_BUDGET, .budget = keep.bytes - 1000000000,
                                   .far = GCP_MB(4000), .far_only = 1, .target = &link);
    CHECK(gcp_error(t) == NULL && plan.far_bytes > 0 && plan.reruns == 0);
    CHECK_NEAR(plan.keep_all_seconds, 8, 1e-9);
    CHECK_NEAR(plan.bound_seconds, 10, 0.01);           /* 1 GB at 0.2 GB/s, both ways */
    CHECK(plan.seconds >= plan.bound_seconds);
    plan = gcp_graph_plan(t, chain, .policy = GCP_POLICY_BUDGET, .budget = keep.bytes - 1000000000, .far = GCP_MB(1),
                          .target = &link);
    /* far memory too small for any of them */
    CHECK(plan.core && plan.seconds >= plan.bound_seconds && plan.bound_seconds > plan.keep_all_seconds);
}

/* Values of n bytes take up whole multiples of 64 in the slab and n on the link: no list of copies made by hand is
   below the bound. */
static void bound_aligned(void)
{
    char chain[1024], list[1024];
    int lists = 0;
    for (int n = 4; n <= 68; n += 61)
        for (double rate = n / 16.0; rate <= n; rate *= 4) {
            gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
            gcp_tape *t = gcp_tape_make(&arena, .ops = 8);
            gcp_target link = { .far_bytes_per_second = rate };
            int end = snprintf(chain, sizeof chain, "f a0 1 %d 0\n", n);
            for (int i = 1; i < 7; i++)
                end += snprintf(chain + end, sizeof chain - (size_t)end, "f a%d 1 %d 0 a%d\n", i, n, i - 1);
            end += snprintf(chain + end, sizeof chain - (size_t)end, "b g6 1 %d 0 a5 a6\n", n);
            for (int i = 5; i >= 0; i--)
                end += snprintf(chain + end, sizeof chain - (size_t)end, "b g%d 1 %d 0 a%d a%d g%d\n", i, n,
                                i ? i - 1 : 0, i, i + 1);
            /* a0 to a(away - 1), each back ahead of the second that reads it */
            for (int away = 1; away < 5; away++) {
                int at = 0;
                for (int i = 0; i < 7; i++) {
                    if (i >= 2 && i - 2 < away) at += snprintf(list + at, sizeof list - (size_t)at, "A a%d\n", i - 2);
                    at += snprintf(list + at, sizeof list - (size_t)at, i < away ? "F a%d\nO a%d\n" : "F a%d\n", i, i);
                }
                for (int i = 6; i >= 0; i--) {
                    if (i > 0 && i - 1 < away) at += snprintf(list + at, sizeof list - (size_t)at, "P a%d\n", i - 1);
                    at += snprintf(list + at, sizeof list - (size_t)at, "B g%d\n", i);
                }
                gcp_plan hand = gcp_graph_plan(t, chain, .list = list, .target = &link);
                CHECK(hand.core && hand.far_bytes > 0);
                gcp_plan plan = gcp_graph_plan(t, chain, .policy = GCP_POLICY_BUDGET, .budget = hand.bytes,
                                               .far = hand.far_bytes, .far_only = away & 1, .target = &link);
                CHECK(plan.core && plan.bound_seconds <= plan.seconds &&
                      plan.bound_seconds <= hand.seconds * (1 + 1e-9));
                lists++;
            }
        }
    CHECK(lists == 24);
}

/* 200 steps in two states and far memory, as H-Revolve has it: a step takes a second, a copy two. Its schedule, from
   checkpoint_schedules, takes 790 s, with copies that nothing runs beside (bench/planner/solvers.py). */
static void two_levels(void)
{
    static char chain[1 << 15];
    const gcp_target link = { .far_bytes_per_second = GRAPH_STATE / 2.0 };
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *t = gcp_tape_make(&arena, .ops = 8);
    graph_steps(chain, 200);
    gcp_plan plan = gcp_graph_plan(t, chain, .policy = GCP_POLICY_BUDGET, .budget = 3 * GRAPH_STATE, .far = GCP_MB(1),
                                   .target = &link);
    CHECK(plan.core && plan.bytes <= 3 * GRAPH_STATE && plan.far_bytes > 0 && plan.reruns > 0 && plan.seconds < 550);
}

/* A gradient in place on a forward value has no bound of its bytes: the way to the least ends all the same. */
static void no_floor(void)
{
    static const char mixed[] = "# gcp-graph 2\nt v0 136\nt v1 64\nt v2 240\nt v3 32\nf k0 1 224 >v0\n"
                                "f k1 1 104 v0 >v1\nb k2 2 0 v0 v1 >v2\nb k3 2 88 v0 v2 >v3<v0\n";
    gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *t = gcp_tape_make(&arena, .ops = 8);
    for (int alone = 0; alone < 2; alone++) {
        gcp_plan plan = gcp_graph_plan(t, mixed, .policy = GCP_POLICY_BUDGET, .budget = 1, .far = 1024,
                                       .far_only = alone);
        CHECK(!plan.core && plan.least_bytes > 1 && gcp_error_code(t) == GCP_E_BUDGET);
        gcp_error_clear(t);
        CHECK(gcp_graph_plan(t, mixed, .policy = GCP_POLICY_BUDGET, .budget = plan.least_bytes, .far = 1024,
                             .far_only = alone).core != NULL);
    }
}

/* ---- The link, measured: a profile of a plan that copies says what it moves, and .costs plans with it ------------*/

static char table[1 << 16];
static size_t table_used;
static void table_write(void *context, const char *part, size_t size)
{
    (void)context;
    if (table_used + size < sizeof table) memcpy(table + table_used, part, size), table_used += size;
    table[table_used] = 0;
}

static void measured_link(void)
{
    static const gcp_target target = {
        .copy_start = late_start, .copy_wait = late_wait, .far_allocate = take, .far_release = give
    };
    gcp_writer writer = { table_write, NULL };
    gcp_arena arena;
    gcp_plan_opts o = { .policy = GCP_POLICY_BUDGET, .effort = GCP_EFFORT_QUICK, .target = &target,
                        .far = sizeof far_memory, .far_only = 1 };
    random_net r;
    gcp_plan plan = { .far_bytes = 0 };
    for (unsigned seed = 1; seed < 20 && !plan.far_bytes; seed++) {         /* one with copies at its least budget */
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        r = net_make(&arena, seed);
        o.budget = 1;
        o.budget = gcp_plan_make_at(r.loss, o).least_bytes;
        gcp_error_clear(r.tape);
        plan = gcp_plan_make_at(r.loss, o);
    }
    CHECK(plan.far_bytes > 0 && plan.core->p.target.far_bytes_per_second == 1e10);
    CHECK(gcp_bind(&plan, memory, sizeof memory) == GCP_OK);
    feed_zeros(&plan, "image label");
    const char *line = NULL;
    /* a busy machine's clock may stand still for so small a copy */
    for (int tries = 0; tries < 100 && !line; tries++) {
        table_used = 0;
        CHECK(gcp_profile(&plan, .repeats = 3) > 0 && copies_pending == 0);
        gcp_costs_print(&plan, writer);
        line = strstr(table, "\nlink 1e9 bytes ");
    }
    gcp_unbind(&plan);
    CHECK(line && !strstr(table, "offload") && !strstr(table, "prefetch"));
    double seconds = line ? atof(line + strlen("\nlink 1e9 bytes ")) : 0;
    o.costs = table;
    gcp_plan again = gcp_plan_make_at(r.loss, o);
    CHECK(again.core && seconds > 0);
    CHECK_NEAR(again.core->p.target.far_bytes_per_second * seconds, 1e9, 1);
    CHECK(gcp_plan_make(r.loss, .costs = "link 1e9 bytes fast\n").core == NULL &&
          gcp_error_code(r.tape) == GCP_E_ARGUMENT);
}

/* ---- Plans for a budget: the least that works, and half-way from it to keep-all ---------------------------------*/

static const gcp_target slow = { .copy_start = late_start, .copy_wait = late_wait };
enum { BOTH, ONLY, LITTLE, AT_ONCE, WAYS };
static gcp_plan budget_plan(gcp_tensor of, int way, size_t budget)
{
    return gcp_plan_make(of, .policy = GCP_POLICY_BUDGET, .budget = budget, .effort = GCP_EFFORT_QUICK,
                         .far = way == LITTLE ? 2000 : sizeof far_memory, .far_only = way == ONLY,
                         .optimizer = GCP_OPTIMIZER_ADAM, .check = way == LITTLE,
                         .target = way == AT_ONCE ? NULL : &slow);
}

static void budgets(int count)
{
    const unsigned first = 36;                           /* from there on copies pay in most networks */
    int made = 0, copying = 0, only = 0;
    for (int i = 0; i < count && check_failed < 10; i++)
        for (int way = 0; way < WAYS; way++) {
            gcp_arena arena = gcp_arena_from(tape_memory, sizeof tape_memory);
            random_net r = net_make_with(&arena, first + (unsigned)i, 1);
            gcp_plan plain = gcp_plan_make(r.loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_ADAM);
            device_outcome kept = train(&r, &plain);
            arena = gcp_arena_from(tape_memory, sizeof tape_memory);
            r = net_make_with(&arena, first + (unsigned)i, 1);
            size_t least = budget_plan(r.loss, way, 1).least_bytes,
                   budget = i % 2 ? least : least + (plain.bytes - least) / 2;
            CHECK(gcp_error_code(r.tape) == GCP_E_BUDGET && (way == LITTLE || least <= plain.bytes));  /* guards */
            gcp_error_clear(r.tape);
            CHECK(way != BOTH || least <= gcp_least_budget(r.loss, .optimizer = GCP_OPTIMIZER_ADAM,
                                                           .effort = GCP_EFFORT_QUICK));
            gcp_plan plan = budget_plan(r.loss, way, budget);
            device_outcome now = train(&r, &plan);
            const char *error = gcp_error(r.tape);
            if (error) fprintf(stderr, "network %d, way %d: %s\n", i, way, error);
            CHECK(error == NULL && device_same(&now, &kept) && copies_pending == 0);
            CHECK(plan.bytes <= budget && plan.far_bytes <= (way == LITTLE ? 2000 : sizeof far_memory));
            CHECK(way != ONLY || plan.reruns == 0);
            CHECK(plan.bound_seconds <= plan.seconds);
            made++; copying += plan.far_bytes > 0; only += way == ONLY && plan.far_bytes > 0;
            gcp_unbind(&plan);
        }
    printf("%d plans for a budget, %d of them copy, %d of those with nothing run again\n", made, copying, only);
    CHECK(copying > made / 4 && only > count / 4);
}

/* ---- Optimiser slots in far memory -----------------------------------------------------------------------------*/

static _Alignas(64) unsigned char slots[2][GCP_MB(4)];
static void *allocate(void *context, size_t size)
{
    (void)context;
    return aligned_alloc(256, (size + 255) / 256 * 256);
}

static int said(gcp_tape *tape, gcp_code code, const char *message)
{
    int ok = gcp_error_code(tape) == code && strstr(gcp_error(tape), message);
    if (!ok) fprintf(stderr, "'%s', not '%s'\n", gcp_error(tape) ? gcp_error(tape) : "no error", message);
    gcp_error_clear(tape);
    return ok;
}

static void slots_refused(wide_net *w)
{
    size_t need = gcp_slots_bytes(w->tape, GCP_OPTIMIZER_ADAM);
    CHECK(gcp_slots_bind(NULL, slots[0], need) == GCP_E_NOMEM);
    CHECK(gcp_slots_bind(w->tape, NULL, need) == GCP_E_BIND && said(w->tape, GCP_E_BIND, "bytes given"));
    CHECK(gcp_slots_bind(w->tape, slots[0], 63) == GCP_E_BIND && said(w->tape, GCP_E_BIND, "63 bytes given"));
    CHECK(gcp_slots_bind(w->tape, device_tape, need) == GCP_E_BIND && said(w->tape, GCP_E_BIND, "overlaps the tape"));
    gcp_plan early = gcp_plan_make(w->loss, .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(gcp_slots_bind(w->tape, slots[0], need) == GCP_OK);
    CHECK(gcp_bind(&early, memory, sizeof memory) == GCP_E_STATE &&
          said(w->tape, GCP_E_STATE, "made before gcp_slots_bind"));
    gcp_plan plan = gcp_plan_make(w->loss, .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(plan.bytes < early.bytes && gcp_bind(&plan, slots[0], sizeof slots) == GCP_E_BIND &&
          said(w->tape, GCP_E_BIND, "the optimiser's slots"));
    CHECK(gcp_slots_bind(w->tape, slots[0], need - 64) == GCP_OK);
    CHECK(gcp_bind(&plan, memory, sizeof memory) == GCP_E_STATE && said(w->tape, GCP_E_STATE, "gcp_slots_bind gave"));
    CHECK(gcp_slots_bind(w->tape, slots[0], need) == GCP_OK && gcp_bind(&plan, memory, sizeof memory) == GCP_OK);
    CHECK(gcp_slots_bind(w->tape, NULL, 0) == GCP_E_STATE && said(w->tape, GCP_E_STATE, "has slots already"));
    CHECK(gcp_bind(&early, memory, sizeof memory) == GCP_E_STATE &&
          said(w->tape, GCP_E_STATE, "made before gcp_slots_bind"));
    gcp_slots_reset(w->tape);
    CHECK(gcp_slots_bind(w->tape, NULL, 0) == GCP_OK && isnan(gcp_step(&plan, .lr = 0.1)) &&
          said(w->tape, GCP_E_STATE, "gcp_slots_reset has forgotten"));
    CHECK(gcp_bind(&plan, memory, sizeof memory) == GCP_E_STATE &&
          said(w->tape, GCP_E_STATE, "made before gcp_slots_bind"));
    CHECK(gcp_bind(&early, memory, sizeof memory) == GCP_OK && isnan(gcp_step(&early, .lr = 0.1)) &&
          said(w->tape, GCP_E_INPUT, "was not written"));
    gcp_slots_reset(w->tape);                        /* the other way round, and another plan brings slots first */
    CHECK(gcp_slots_bind(w->tape, slots[0], need) == GCP_OK && gcp_bind(&plan, memory, sizeof memory) == GCP_OK);
    CHECK(isnan(gcp_step(&early, .lr = 0.1)) && said(w->tape, GCP_E_STATE, "made before gcp_slots_bind"));
    gcp_unbind(&early);
    gcp_unbind(&plan);
    gcp_slots_reset(w->tape);
    CHECK(gcp_slots_bind(w->tape, NULL, 0) == GCP_OK && gcp_bind(&early, memory, sizeof memory) == GCP_OK);
    CHECK(gcp_state_bytes(w->tape, GCP_OPTIMIZER_ADAM) == early.state_bytes);
}

/* A run goes on in another plan, and on another tape that is given the state and the slots. After a reset of the slots
   it begins anew. */
static void slots_go_on(void)
{
    enum { STEPS = 4 };
    static unsigned char state[2][GCP_MB(4)];
    float losses[3][STEPS];
    wide_net w;
    for (int way = 0; way < 3; way++) {              /* in the state; in far memory, two plans; two tapes */
        wide_record(&w);
        size_t need = gcp_slots_bytes(w.tape, GCP_OPTIMIZER_ADAM), bytes = gcp_state_bytes(w.tape, GCP_OPTIMIZER_NONE);
        if (way) CHECK(gcp_slots_bind(w.tape, slots[0], need) == GCP_OK);
        CHECK(bytes + 64 < sizeof state[0] && gcp_state_bind(w.tape, state[0], sizeof state[0]) == GCP_OK);
        for (int step = 0; step < STEPS; step++) {
            if (way == 2 && step == 2) {
                wide_record(&w);
                CHECK(gcp_slots_bind(w.tape, slots[1], need) == GCP_OK &&
                      gcp_state_bind(w.tape, state[1], sizeof state[1]) == GCP_OK);
            }
            gcp_plan plan = gcp_plan_make(w.loss, .optimizer = GCP_OPTIMIZER_ADAM, .fuse_update = way && step % 2);
            CHECK(gcp_bind(&plan, memory, sizeof memory) == GCP_OK);
            if (way == 2 && step == 2) {
                memcpy(gcpi_align_up(state[1], 64), gcpi_align_up(state[0], 64), bytes);
                memcpy(slots[1], slots[0], need);
            }
            wide_step(&w, &plan, step, &losses[way][step]);
            gcp_plan_free(&plan);
        }
        CHECK(gcp_error(w.tape) == NULL && (!way || !memcmp(losses[way], losses[0], sizeof losses[0])));
    }
}

static void slots_away(void)
{
    const gcp_target late_one = { .allocate = allocate, .release = give,
                                  .copy_start = late_start, .copy_wait = late_wait },
                     at_once = { .allocate = allocate, .release = give, .align = 256 };
    wide_net w;
    wide_record(&w);
    slots_refused(&w);
    slots_go_on();
    far_slots(&at_once, slots[0]);
    far_slots(&late_one, slots[1] + 4);              /* at any address */
    CHECK(copies_pending == 0);
    wide_record(&w);
    CHECK(!gcp_plan_make(w.loss, .policy = GCP_POLICY_BUDGET, .budget = 1, .optimizer = GCP_OPTIMIZER_ADAM).core &&
          said(w.tape, GCP_E_BUDGET, "slots in far memory (gcp_slots_bind): up to"));
}

int main(int argc, char **argv)
{
    by_hand();
    refused_by_hand();
    timeline();
    bound();
    bound_aligned();
    two_levels();
    no_floor();
    measured_link();
    slots_away();
    budgets(argc > 2 ? atoi(argv[2]) : 2);
    networks(argc > 1 ? atoi(argv[1]) : 8);
    return check_done();
}
