#define GCP_IMPLEMENTATION
#define GCP_STATIC
#include "gcp.h"
#include "support/check.h"

/* Concats and slices as views or copies: small networks of both, planned and compared with the exact search of every
   choice; the bound; their graphs as text. */

#define SMALL 20       /* networks; of a run by hand, as many as it is told */
#define CHOICES 64     /* a network of more is not searched */

static unsigned char memory[64 << 20];
static char text[1 << 16];
static gcp_arena arena;
static uint64_t drawn;

static unsigned draw(unsigned n)
{
    drawn ^= drawn << 13; drawn ^= drawn >> 7; drawn ^= drawn << 17;
    return (unsigned)((drawn * 0x2545F4914F6CDD1Du) >> 33) % n;
}

typedef struct pool { gcp_tensor x[16]; int count; } pool;
static gcp_tensor pick(const pool *p) { return p->x[draw(2) ? (unsigned)p->count - 1 : draw((unsigned)p->count)]; }
static int width(gcp_tensor x) { return gcp_shape_of(x).d[3]; }

static gcp_tensor joined(const pool *p)
{
    gcp_tensor list[4];
    int count = 0, all = 0;
    for (unsigned i = 0, most = 2 + draw(3); i < most; i++) {
        gcp_tensor x = pick(p);
        if (all + width(x) > 96) continue;
        all += width(x);
        list[count++] = x;
    }
    return count ? gcp_concat_at(list, count, (gcp_concat_opts) { .at = GCP_AT }) : gcp_relu(pick(p));
}

/* side: how wide and high images are; 1: rows alone */
static gcp_tensor layer(const pool *p, int side)
{
    gcp_tensor x = pick(p);
    switch (draw(8)) {
    case 0: case 1:
        return side > 1 ? gcp_conv2d(x, .out = 2 + (int)draw(14), .k = 3, .pad = 1)
                        : gcp_linear(x, .out = 2 + (int)draw(40));
    case 2: return gcp_relu(x);
    case 3: return gcp_mul(x, x);
    case 4: return gcp_add(x, gcp_relu(x));
    case 5: case 6: return joined(p);
    default: {
        int first = (int)draw((unsigned)width(x));
        return gcp_slice(x, .first = first, .count = 1 + (int)draw((unsigned)(width(x) - first)));
    }
    }
}

static gcp_tensor small_network(unsigned seed)
{
    pool p = { .count = 1 };
    drawn = 0x9E3779B97F4A7C15u ^ ((uint64_t)seed + 1) * 0xD1B54A32D192ED03u;
    for (int i = 0; i < 8; i++) draw(2);
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 64);
    int side = draw(2) ? 4 : 1;
    p.x[0] = gcp_input(tape, "x", GCP_SHAPE(side > 1 ? 2 : 4 + (int)draw(60), side, side, 4));
    if (draw(2)) p.x[0] = gcp_want_grad(p.x[0]);
    p.x[p.count++] = side > 1 ? gcp_conv2d(p.x[0], .out = 8, .k = 1) : gcp_linear(p.x[0], .out = 8);
    for (unsigned i = 0, ops = 2 + draw(6); i < ops; i++) {
        p.x[p.count] = layer(&p, side);
        p.count++;
    }
    gcp_tensor last = p.x[p.count - 1];
    return gcp_mean(gcp_mul(last, last));
}

/* ---- every choice ---- */

static void set_choice(gcpi_problem *p, const gcpi_flip *flips, int count, unsigned choice)
{
    memset(p->copied, 0, (size_t)p->tape->op_count * sizeof *p->copied);
    for (int i = 0; i < count; i++) {
        gcpi_copied *c = &p->copied[flips[i].op];
        if (choice >> i & 1) *(flips[i].gradient ? &c->gradients : &c->values) |= flips[i].bits;
    }
    gcpi_views_place(p);
}

/* Whether the order has addresses in so many bytes. */
static int laid_out(const gcpi_problem *p, const gcpi_order *order, size_t slab)
{
    gcpi_lives lives;
    size_t *live, found;
    gcpi_list list = { .capacity = order->count };
    list.at = GCPI_SCRATCH(&arena, gcpi_instruction, order->count);
    gcpi_list_of(p, order, &list);
    found = gcpi_arrange(p, &list, &lives, &live, gcpi_fit_of(slab, 1e6, 0), &arena);
    return found && found <= slab;
}

/* The least seconds of any list, whatever its views: whose live bytes fit; whose exact order has addresses, too. */
typedef struct fastest { double lives, laid; } fastest;

/* 0: too many values. */
static int search_choice(gcpi_problem *p, size_t slab, fastest *best)
{
    size_t align = p->target.align, limit = (slab - gcpi_round(p->numbers, align)) / align * align;
    ptrdiff_t scratch = arena.scratch;
    gcpi_model m;
    gcpi_exact exact;
    gcpi_order order;
    int made = gcpi_model_make(&m, p, &arena) && gcpi_order_make(&order, 400, &arena) &&
               gcpi_exact_make(&exact, &m, &arena);
    if (made && gcpi_exact_search(&exact, limit, &order)) {
        best->lives = fmin(best->lives, order.seconds);
        if (order.seconds < best->laid && laid_out(p, &order, slab)) best->laid = order.seconds;
    }
    arena.scratch = scratch;
    return made;
}

/* 0: the network is too large to search all its choices. */
static int search_choices(const gcp_plan *plan, size_t budget, fastest *best)
{
    gcpi_problem *p = &plan->core->p;
    gcpi_flip flips[25];
    int count = gcpi_flips_list(p, flips, 25);
    best->lives = best->laid = INFINITY;
    if (p->tape->op_count > GCPI_EXACT_VALUES || 1u << count > CHOICES) return 0;
    for (unsigned choice = 0; choice < 1u << count; choice++) {
        set_choice(p, flips, count, choice);
        if (!search_choice(p, budget - plan->state_bytes, best)) return 0;
    }
    return best->laid < INFINITY;
}

typedef struct score { int plans, optimal, mixed; double gap, worst, bound; } score;

/* A mixture: some of the views that may copy do, others do not. */
static int is_mixed(const gcp_plan *plan)
{
    gcpi_flip flips[25];
    const gcpi_problem *p = &plan->core->p;
    int count = gcpi_flips_list(p, flips, 25), copies = 0;
    for (int i = 0; i < count; i++) {
        const gcpi_copied *c = &p->copied[flips[i].op];
        copies += ((flips[i].gradient ? c->gradients : c->values) & flips[i].bits) != 0;
    }
    return copies > 0 && copies < count;
}

static size_t written;
static void write_text(void *context, const char *s, size_t n)
{
    (void)context;
    if (written + n >= sizeof text) return;
    memcpy(text + written, s, n);
    text[written += n] = 0;
}

/* The plan's list, its C lines too, is read back, and is the same list. */
static void listed(gcp_tensor loss, gcp_plan *plan)
{
    written = 0;
    gcp_list_print(plan, (gcp_writer) { write_text, NULL });
    gcp_plan again = gcp_plan_make(loss, .list = text, .budget = plan->bytes);
    if (!again.core) fprintf(stderr, "%s\n", gcp_error(loss.tape));
    CHECK(again.core && again.bytes <= plan->bytes && again.instructions == plan->instructions);
    CHECK_NEAR(again.seconds, plan->seconds, 1e-12 * plan->seconds);
    gcp_error_clear(loss.tape);
    gcp_plan_free(&again);
}

static void against_all(gcp_tensor loss, size_t budget, score *s)
{
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = budget);
    CHECK(plan.core && plan.bytes <= budget && plan.bound_seconds <= plan.seconds * (1 + 1e-9));
    if (!plan.core) return;
    listed(loss, &plan);
    int mixed = is_mixed(&plan);
    fastest best;
    if (!search_choices(&plan, budget, &best)) return;
    s->plans++;
    s->optimal += plan.seconds <= best.laid * (1 + 1e-9);
    s->mixed += mixed;
    s->gap += fmax(0, plan.seconds / best.laid - 1);
    s->worst = fmax(s->worst, plan.seconds / best.laid - 1);
    s->bound += 1 - plan.bound_seconds / best.lives;
    CHECK(plan.bound_seconds <= best.lives * (1 + 1e-9));
    gcp_plan_free(&plan);
}

static void every_choice(unsigned networks)
{
    score s = { 0 };
    for (unsigned seed = 0; seed < networks; seed++) {
        gcp_tensor loss = small_network(seed);
        gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
        if (!keep.core || !gcpi_views_open(&keep.core->p)) continue;       /* no weight in it, or no choice */
        size_t least = gcp_least_budget(loss);
        for (size_t share = 0; share < 3 && least < keep.bytes; share++)
            against_all(loss, least + (keep.bytes - least) * share / 3, &s);
    }
    printf("%d plans, %.1f %% optimal among all choices, gap %.3f %% (worst %.2f %%), %d mixtures; "
           "the bound is %.2f %% below\n",
           s.plans, 100.0 * s.optimal / s.plans, 100 * s.gap / s.plans, 100 * s.worst, s.mixed,
           100 * s.bound / s.plans);
    CHECK(s.plans > (int)networks / 3 && s.optimal >= 0.97 * s.plans && s.mixed > 0);
}

/* ---- progress ---- */

typedef struct heard { double share, middle; int falls; } heard;      /* middle: the last share below 1 */

static int hear(void *context, const gcp_progress *p)
{
    heard *h = context;
    h->falls += p->share < h->share;
    h->share = p->share;
    if (p->share < 1) h->middle = p->share;
    return 0;
}

/* A list of features that each layer concatenates anew, and a second head of all of them. */
static gcp_tensor dense_block(gcp_tape *tape, int layers)
{
    gcp_tensor list[16] = { gcp_input(tape, "x", GCP_SHAPE(2, 8, 8, 4)) };
    for (int i = 0; i < layers; i++)
        list[i + 1] = gcp_relu(gcp_conv2d(gcp_concat(list, i + 1), .out = 4, .k = 3, .pad = 1));
    gcp_tensor all = gcp_concat(list, layers + 1), part = gcp_slice(all, .first = 4, .count = 8);
    return gcp_mean(gcp_mul(gcp_conv2d(all, .out = 8, .k = 3, .pad = 1), part));
}

/* With open views the shares of a search rise nearly to its end; and the least budget is enough for its own plan. */
static void shares(void)
{
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_tensor loss = dense_block(gcp_tape_make(&arena, .ops = 64), 8);
    gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    size_t least = gcp_least_budget(loss);
    for (size_t i = 0; i < 3; i++) {
        heard h = { 0 };
        gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = least + i * (keep.bytes - least) / 4,
                                      .progress = hear, .progress_context = &h);
        CHECK(plan.core && (i || plan.bytes <= least) && h.share == 1 && h.middle > 0.5 && !h.falls);
    }
}

/* ---- graphs ---- */

/* A concat of a weight and a value as text: the weight takes its columns there, too. The plan is the same. */
static void weight_in_concat(void)
{
    static unsigned char second[1 << 22];
    static const gcp_policy policies[] = { GCP_POLICY_KEEP_ALL, GCP_POLICY_SQRT, GCP_POLICY_CHEAP };
    for (int i = 0; i < 3; i++) {
        arena = gcp_arena_from(memory, sizeof memory);
        gcp_arena apart = gcp_arena_from(second, sizeof second);
        gcp_tape *tape = gcp_tape_make(&arena, .ops = 32);
        gcp_tensor w = gcp_param(tape, "w", GCP_SHAPE(8, 3), .fan_in = 3), x = gcp_input(tape, "x", GCP_SHAPE(8, 5)),
                   a = gcp_relu(gcp_linear(x, .out = 6)), b = gcp_linear(x, .out = 2),
                   both = gcp_concat(GCP_TENSORS(w, a, b)), y = gcp_linear(gcp_relu(both), .out = 1);
        gcp_plan plan = gcp_plan_make(gcp_mean(gcp_add(y, gcp_linear(b, .out = 1))), .policy = policies[i]);
        written = 0;
        gcp_graph_print(&plan, (gcp_writer) { write_text, NULL });
        gcp_plan again = gcp_graph_plan(gcp_tape_make(&apart, .ops = 8), text, .policy = policies[i]);
        CHECK(plan.core && again.core && strstr(text, " state # w") && plan.bytes == again.bytes &&
              plan.seconds == again.seconds && plan.reruns == again.reruns);
    }
}

/* A slice of all of a concat lies in the next concat with it: nothing is copied, and the bound knows. */
static void slice_of_joined(void)
{
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 32);
    gcp_tensor x = gcp_input(tape, "x", GCP_SHAPE(2, 4, 4, 4)), a = gcp_conv2d(x, .out = 4, .k = 1), b = gcp_relu(a),
               inner = gcp_concat(GCP_TENSORS(a, b)), all = gcp_slice(inner, .count = 8),
               outer = gcp_concat(GCP_TENSORS(gcp_conv2d(x, .out = 4, .k = 1), all)),
               loss = gcp_mean(gcp_mul(outer, outer));
    gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL),
             plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = keep.bytes);
    CHECK(keep.core && plan.core && plan.bound_seconds <= plan.seconds);
    CHECK_NEAR(plan.seconds, keep.seconds, 1e-12 * keep.seconds);
    for (int k = 0; k < keep.core->p.forward; k++) CHECK(!keep.core->p.tasks[k].concat || keep.core->p.tasks[k].free);
}

/* Near the least budget a dense block is fastest with copies in its last concat alone: neither none nor all of them. */
static void largest_alone(void)
{
    static const gcp_target scalar = { .isa = GCP_ISA_SCALAR, .threads = 1 };
    gcp_plan_opts o = { .at = GCP_AT, .policy = GCP_POLICY_BUDGET, .optimizer = GCP_OPTIMIZER_ADAM, .target = &scalar };
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 64);
    gcp_tensor features[7];
    features[0] = gcp_conv2d(gcp_input(tape, "x", GCP_SHAPE(4, 16, 16, 3)), .out = 16, .k = 3, .pad = 1);
    for (int i = 1; i < 7; i++) {
        gcp_tensor y = gcp_conv2d(gcp_concat(features, i), .out = 16, .k = 3, .pad = 1);
        features[i] = gcp_relu(gcp_batch_norm(y));
    }
    gcp_tensor logits = gcp_linear(gcp_global_avg_pool(gcp_concat(features, 7)), .out = 10),
               loss = gcp_cross_entropy(logits, gcp_labels(tape, "y", GCP_SHAPE(4)));
    o.budget = gcp_least_budget_at(loss, o) + 1024;
    gcp_plan plan = gcp_plan_make_at(loss, o);
    CHECK(plan.core && plan.seconds < 1.3 * plan.keep_all_seconds);
}

static void refused(const char *graph, const char *message)
{
    arena = gcp_arena_from(memory, sizeof memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
    CHECK(!gcp_graph_plan(tape, graph, .policy = GCP_POLICY_KEEP_ALL).core && strstr(gcp_error(tape), message));
}

static void bad_states(void)
{
    refused("# gcp-graph 3\nt w 64 state\nf a 1 0 >w\n", "line 3: no op may write w");
    refused("# gcp-graph 3\nt w 64 state\nt x 64\nf a 1 0 w >x\nb b 1 0 x +w\n", "only a gradient that an earlier op");
    refused("# gcp-graph 5\nt w 64 state\n", "line 1: a version that this gcp does not read");
}

/* Usage: test_views [networks] */
int main(int argc, char **argv)
{
    every_choice(argc > 1 ? (unsigned)atoi(argv[1]) : SMALL);
    shares();
    weight_in_concat();
    slice_of_joined();
    largest_alone();
    bad_states();
    return check_done();
}
