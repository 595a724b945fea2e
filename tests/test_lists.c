/* Lists of instructions as text: printed, read back, edited by hand, and refused with the line where they are wrong. */
#include "support/check.h"
#include "gcp.h"
#include "support/fitting.h"

static unsigned char tape_memory[1 << 20];
static unsigned char step_memory[1 << 19];
static gcp_arena arena;
static gcp_tape *net;
static gcp_tensor image, label, loss;
static char printed[1 << 15], edited[1 << 16], again[1 << 16];         /* the latter: printed, and lines more */

static gcp_tensor dense_chain(gcp_tensor x)
{
    x = gcp_flatten(x);
    for (int i = 0; i < 6; i++) GCP_SEGMENT(net, "layer") x = gcp_linear(gcp_gelu(gcp_linear(x, .out = 12)), .out = 12);
    return gcp_linear(x, .out = 3);
}
static gcp_tensor residual(gcp_tensor x)
{
    x = gcp_conv2d(x, .out = 4, .k = 3, .pad = 1);
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "block")
    x = gcp_relu(gcp_add(gcp_dropout(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)), .rate = 0.25), x));
    return gcp_linear(gcp_global_avg_pool(x), .out = 3);
}
static gcp_tensor branches(gcp_tensor x)
{
    for (int i = 0; i < 3; i++)
        GCP_SEGMENT(net, "mix") {
            gcp_tensor a = gcp_tanh(gcp_gelu(gcp_conv2d(x, .out = 3, .k = 3, .pad = 1))),
                       b = gcp_sigmoid(gcp_conv2d(x, .out = 3, .k = 1));
            x = gcp_concat(GCP_TENSORS(a, b));
        }
    return gcp_linear(gcp_global_avg_pool(gcp_max_pool(x, .k = 2)), .out = 3);
}

static void record(int which)
{
    static gcp_tensor (*const nets[])(gcp_tensor) = { dense_chain, residual, branches };
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64, .seed = 5);
    image = gcp_input(net, "image", GCP_SHAPE(2, 4, 4, 2));
    label = gcp_labels(net, "label", GCP_SHAPE(2));
    loss = gcp_cross_entropy(nets[which](image), label);
}

typedef struct sink { char *to; size_t size; } sink;
static void append(void *context, const char *s, size_t size)
{
    sink *t = (sink *)context;
    memcpy(t->to + t->size, s, size);
    t->to[t->size += size] = 0;
}
static void print(const gcp_plan *plan, char *to)
{
    sink t = { to, 0 };
    to[0] = 0;
    gcp_list_print(plan, (gcp_writer) { append, &t });
}

/* Two steps' losses, as one number that any changed bit changes. */
static double losses(gcp_plan *plan)
{
    gcp_real data[64];
    int classes[2] = { 1, 2 };
    for (int i = 0; i < 64; i++) data[i] = (gcp_real)((i * 37 % 64) / 64.0);
    CHECK_INT(gcp_bind(plan, step_memory, sizeof step_memory), ==, GCP_OK);
    gcp_write(plan, image, data);
    gcp_write(plan, label, classes);
    double first = gcp_step(plan, .lr = 0.1);
    gcp_write(plan, image, data);
    gcp_write(plan, label, classes);
    return first + 1024 * gcp_step(plan, .lr = 0.1);
}

static gcp_plan policy_plan(int policy)
{
    return gcp_plan_make_at(loss, fitting(GCP_OPTS(gcp_plan_opts, .policy = (gcp_policy)policy, .segments = 3,
                                                   .checkpoints = 2, .optimizer = GCP_OPTIMIZER_SGD)));
}

static void round_trips(void)
{
    for (int which = 0; which < 3; which++)
        for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_CHEAP; policy++) {
            record(which);
            gcp_plan plan = policy_plan(policy);
            print(&plan, printed);
            double want = losses(&plan);
            record(which);
            gcp_plan read = gcp_plan_make(loss, .list = printed, .optimizer = GCP_OPTIMIZER_SGD);
            CHECK(read.core != NULL);
            print(&read, again);
            CHECK_TEXT(again, printed);
            CHECK_INT(read.bytes, ==, plan.bytes);
            CHECK_INT(read.live_peak, ==, plan.live_peak);
            CHECK_INT(read.instructions, ==, plan.instructions);
            CHECK_INT(read.reruns, ==, plan.reruns);
            CHECK_NEAR(read.rerun_flops, plan.rerun_flops, 1e-9 * plan.rerun_flops);
            CHECK_NEAR(losses(&read), want, 0);
        }
}

/* ---- edits: each makes edited from printed ------------------------------------------------------------------------*/

static char *line_of(char *from, const char *begins)
{
    for (char *s = from; s && *s; s = strchr(s, '\n'), s = s ? s + 1 : NULL)
        if (!strncmp(s, begins, strlen(begins))) return s;
    return NULL;
}
static size_t line_length(const char *s) { return (size_t)(strchr(s, '\n') - s) + 1; }

static void without(const char *begins)
{
    char *s = line_of(printed, begins);
    CHECK(s != NULL);
    if (!s) return;
    memcpy(edited, printed, (size_t)(s - printed));
    snprintf(edited + (s - printed), sizeof edited - (size_t)(s - printed), "%s", s + line_length(s));
}
static void before(const char *begins, const char *line)
{
    char *s = line_of(printed, begins);
    CHECK(s != NULL);
    if (s) snprintf(edited, sizeof edited, "%.*s%s%s", (int)(s - printed), printed, line, s);
}

static gcp_plan use_list(int which)
{
    record(which);
    return gcp_plan_make(loss, .list = edited, .optimizer = GCP_OPTIMIZER_SGD);
}

static void good_edits(void)
{
    record(0);
    gcp_plan plan = policy_plan(GCP_POLICY_SEGMENTS), other;
    double want = losses(&plan);
    print(&plan, printed);
    without("R layer[2]/linear[0]");                 /* its value lives from forward on */
    other = use_list(0);
    CHECK(other.core && other.reruns == plan.reruns && other.live_peak >= plan.live_peak &&
          other.instructions == plan.instructions - 1);
    CHECK_NEAR(losses(&other), want, 0);
    memcpy(printed, edited, sizeof printed);
    without("R layer[2]/gelu[0]");
    other = use_list(0);
    CHECK(other.core && other.reruns == plan.reruns - 1 && other.live_peak >= plan.live_peak &&
          other.instructions == plan.instructions - 2);
    CHECK_NEAR(losses(&other), want, 0);
    print(&plan, printed);
}

static void more_edits(void)
{
    record(0);
    gcp_plan plan = policy_plan(GCP_POLICY_SEGMENTS), other;
    double want = losses(&plan);
    print(&plan, printed);
    before("B layer[1]/gelu[0]", "R layer[0]/linear[0]\nR layer[0]/gelu[0]\n");
    other = use_list(0);
    CHECK(other.core && other.instructions == plan.instructions + 2);
    CHECK_NEAR(losses(&other), want, 0);
    /* comments, blank lines, CRLF, blanks at the ends, no last newline */
    size_t n = 0;
    n += (size_t)snprintf(edited, sizeof edited, "# a plan\n\n   \r\n\t\n");
    for (const char *s = printed; *s; s++)
        n += (size_t)snprintf(edited + n, sizeof edited - n, *s == '\n' ? "  \t# why\r\n#\n" : "%c", *s);
    edited[strlen(edited) - strlen("\r\n#\n")] = 0;
    other = use_list(0);
    CHECK(other.core && other.bytes == plan.bytes);
    print(&other, again);
    CHECK_TEXT(again, printed);
    CHECK_NEAR(losses(&other), want, 0);
}

/* Deleting every R, and every C, leaves keep-all: the least instructions, the same bits. */
static void no_reruns(void)
{
    for (int which = 0; which < 3; which++) {
        record(which);
        gcp_plan plan = policy_plan(GCP_POLICY_RECURSIVE), keep = policy_plan(GCP_POLICY_KEEP_ALL);
        double want = losses(&plan);
        print(&plan, printed);
        size_t n = 0;
        for (char *s = printed; *s; s += line_length(s))
            if (*s != 'R' && *s != 'C')
                n += (size_t)snprintf(edited + n, sizeof edited - n, "%.*s", (int)line_length(s), s);
        gcp_plan other = use_list(which);
        CHECK(other.core && other.reruns == 0 && other.bytes == keep.bytes && other.instructions == keep.instructions);
        CHECK_NEAR(losses(&other), want, 0);
    }
}

/* Two reruns that do not read each other may change places. */
static void reordered(void)
{
    record(1);
    gcp_plan plan = policy_plan(GCP_POLICY_SEGMENTS);
    double want = losses(&plan);
    print(&plan, printed);
    char *a = line_of(printed, "R block[1]/conv2d[0]"), *b = line_of(printed, "R block[0]/conv2d[0]");
    /* the second reads what the first does not make: it may come first */
    CHECK(a && b && a < b);
    if (!a || !b) return;
    snprintf(edited, sizeof edited, "%.*s%.*s%.*s%s", (int)(a - printed), printed, (int)line_length(b), b, (int)(b - a),
             a, b + line_length(b));
    gcp_plan other = use_list(1);
    CHECK(other.core != NULL);
    if (!other.core) fprintf(stderr, "%s\n", gcp_error(net));
    CHECK_INT(other.instructions, ==, plan.instructions);
    CHECK_NEAR(losses(&other), want, 0);
}

static void refused(int line, int which, const char *text)
{
    gcp_plan plan = use_list(which);
    const char *got = gcp_error(net), *rest = got ? strstr(got, "gcp_plan_make: ") : NULL;
    if (!check_report(!plan.core && rest && !strcmp(rest + 15, text), __FILE__, line))
        fprintf(stderr, "message\n  '%s', not\n  '%s'\n", got ? got : "none", text);
    CHECK_INT(gcp_error_code(net), ==, GCP_E_LIST);
    CHECK(got && !strncmp(got, "test_lists.c:", 13));
    gcp_error_clear(net);
    plan = policy_plan(GCP_POLICY_KEEP_ALL);
    CHECK(plan.core && !gcp_error(net));
}
#define REFUSED(edit, which, ...)                       \
    do {                                                \
        char want_[240];                                \
        record(which);                                  \
        gcp_plan p_ = policy_plan(GCP_POLICY_SEGMENTS); \
        print(&p_, printed);                            \
        edit;                                           \
        snprintf(want_, sizeof want_, __VA_ARGS__);     \
        refused(__LINE__, which, want_);                \
    } while (0)

static int number_of(const char *begins)             /* of a line in edited */
{
    int n = 1;
    for (const char *s = edited, *end = line_of(edited, begins); s < end; s++) n += *s == '\n';
    return n;
}

static void wrong_text(void)
{
    REFUSED(before("R layer[3]", "R layer[3]/tanh[0]\n"), 0,
            "line %d: no instruction 'R layer[3]/tanh[0]' in this network", number_of("R layer[3]/tanh"));
    REFUSED(before("R layer[3]", "X layer[3]/gelu[0]\n"), 0,
            "line %d: no instruction 'X layer[3]/gelu[0]' in this network", number_of("X layer[3]"));
    REFUSED(before("R layer[3]", "f layer[3]/gelu[0]\n"), 0,
            "line %d: no instruction 'f layer[3]/gelu[0]' in this network", number_of("f layer[3]"));
    REFUSED(before("R layer[3]", "garbage\n"), 0, "line %d: not 'LETTER NAME'", number_of("garbage"));
    REFUSED(before("R layer[3]", "R\n"), 0, "line %d: not 'LETTER NAME'", number_of("R\n"));
    REFUSED(memset(edited, 'F', 600); edited[1] = ' '; edited[600] = 0, 0, "line 1: not 'LETTER NAME'");
    REFUSED(snprintf(edited, sizeof edited, "\x01\xff\xfe\n"), 0, "line 1: not 'LETTER NAME'");
    REFUSED(edited[0] = 0, 0, "the list holds no instruction");
    REFUSED(snprintf(edited, sizeof edited, "# nothing\n\n"), 0, "the list holds no instruction");
}

/* Concats that copy: the list says so, is read back as it was, and computes the same. */
static void copies(void)
{
    static const char *const lines[] = { "C mix[0]/concat[0] 0 1\n",
                                         "C mix[1]/concat[0] 1\nC gradient of mix[1]/concat[0] 0\n",
                                         "C gradient of mix[2]/concat[0] 0 1\n" };
    for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_CHEAP; policy++)
        for (int i = 0; i < 3; i++) {
            record(2);
            gcp_plan plan = policy_plan(policy);
            double want = losses(&plan);
            print(&plan, printed);
            char *first = line_of(printed, "F");
            memmove(printed, first, strlen(first) + 1);                /* without the copies that the policy chose */
            plan = gcp_plan_make(loss, .list = printed, .optimizer = GCP_OPTIMIZER_SGD);
            before("F", lines[i]);
            gcp_plan other = use_list(2);
            CHECK(other.core && other.seconds > plan.seconds);
            print(&other, again);
            CHECK_TEXT(again, edited);
            CHECK_NEAR(losses(&other), want, 0);
        }
}

/* GCP_POLICY_BUDGET fuses updates by itself: fewer bytes, the same bits; the list says so and is read back. */
static void unheard(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count)
{
    (void)context; (void)parameter; (void)gradient; (void)count;
}

static void fused(void)
{
    int smaller = 0;
    for (int which = 0; which < 3; which++) {
        record(which);
        gcp_plan never = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(16),
                                       .optimizer = GCP_OPTIMIZER_SGD, .fuse_update = GCP_NEVER);
        double want = losses(&never);
        print(&never, again);
        record(which);
        gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(16),
                                      .optimizer = GCP_OPTIMIZER_SGD),
                 keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD);
        CHECK(plan.bytes <= never.bytes && plan.keep_all_bytes == keep.bytes);
        /* where keep-all fits easily, its first layout is enough */
        CHECK(never.bytes >= keep.bytes && never.bytes <= keep.bytes + keep.bytes / 50);
        smaller += plan.bytes < never.bytes;
        print(&plan, printed);
        CHECK(!strncmp(printed, "U as soon as gradients are finished\n", 36) && !strstr(again, "as soon as"));
        CHECK_NEAR(losses(&plan), want, 0);
        record(which);
        gcp_plan read = gcp_plan_make(loss, .list = printed, .optimizer = GCP_OPTIMIZER_SGD);
        CHECK(read.core && read.bytes <= plan.bytes);          /* with that budget fewer bytes were of no use */
        print(&read, again);
        CHECK_TEXT(again, printed);
        CHECK_NEAR(losses(&read), want, 0);
    }
    CHECK(smaller > 0);
}

/* Where somebody could tell, updates come last: a norm of all gradients, micro-batches, hooks, other policies. */
static void not_fused(void)
{
    record(0);
    const gcp_plan_opts others[] = {
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_BUDGET, .clip_norm = 1),
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_BUDGET, .accumulate = 2),
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_BUDGET, .on_gradient = unheard),
        GCP_OPTS(gcp_plan_opts, .policy = GCP_POLICY_SEGMENTS) };
    for (int i = 0; i < 4; i++) {
        gcp_plan_opts o = others[i];
        o.budget = GCP_MB(16); o.optimizer = GCP_OPTIMIZER_SGD;
        gcp_plan plan = gcp_plan_make_at(loss, o);
        print(&plan, printed);
        CHECK(plan.core && !strstr(printed, "as soon as"));
    }
}

#define ONLY(text) snprintf(edited, sizeof edited, text)
static void wrong_copies(void)
{
    REFUSED(ONLY("# a comment\nC mix[1]/concat[0] 0 2\n"), 2, "line 2: which inputs? 0 to 1");
    REFUSED(ONLY("C mix[1]/concat[0]\n"), 2, "line 1: which inputs? 0 to 1");
    REFUSED(ONLY("C mix[1]/concat[0] x\n"), 2, "line 1: no concat or slice 'mix[1]/concat[0] x' in this network"
                                                  "; its inputs follow as numbers");
    REFUSED(ONLY("C mix[1]/concat[0] 99999999999999999999\n"), 2, "line 1: which inputs? 0 to 1");
    REFUSED(ONLY("C mix[1]/gelu[0] 0\n"), 2, "line 1: no concat or slice 'mix[1]/gelu[0]' in this network"
                                              "; its inputs follow as numbers");
    REFUSED(ONLY("C gradient of mix[1]/gelu[0] 0\n"), 2, "line 1: no concat 'mix[1]/gelu[0]' in this network"
                                                          "; its inputs follow as numbers");
    REFUSED(before("B", "C mix[1]/concat[0] 0\n"), 2,
            "line %d: no instruction 'C mix[1]/concat[0] 0' in this network: such lines come before the first "
            "instruction",
            number_of("B") - 1);
}

static void wrong_order(void)
{
    REFUSED(without("F layer[2]/linear[0]"), 0,
            "line %d: F layer[2]/gelu[0]: runs before the forward op that precedes it", number_of("F layer[2]/gelu"));
    REFUSED(without("B layer[2]/gelu[0]"), 0, "line %d: B layer[2]/linear[0]: is out of order",
            number_of("B layer[2]/linear[0]"));
    REFUSED(before("B layer[2]/linear[0]", "B layer[2]/gelu[0]\n"), 0,
            "line %d: B layer[2]/gelu[0]: runs a second time", number_of("B layer[2]/linear[0]") - 1);
    REFUSED(before("B layer[2]/linear[0]", "B layer[0]/linear[0]\n"), 0,
            "line %d: B layer[0]/linear[0]: is out of order", number_of("B layer[0]/linear[0]"));
    REFUSED(before("F layer[1]/gelu[0]", "R layer[1]/gelu[0]\n"), 0,
            "line %d: R layer[1]/gelu[0]: runs again before it ran", number_of("R layer[1]/gelu[0]"));
    REFUSED(before("R layer[1]/linear[0]", "F layer[1]/linear[0]\n"), 0,
            "line %d: F layer[1]/linear[0]: runs forward a second time", number_of("R layer[1]/linear[0]") - 1);
    REFUSED(before("F layer[0]/linear[0]", "B seed\n"), 0, "line 2: B seed: runs before the forward pass is complete");
    REFUSED(before("R block[1]/conv2d[0]", "R block[1]/batch_norm[0]/statistics\n"), 1,
            "line %d: R block[1]/batch_norm[0]/statistics: has side effects and may not run again",
            number_of("R block[1]/batch_norm[0]/stat"));
    REFUSED(without("U layer[2]/linear[0]/bias"), 0,
            "line %d: U layer[2]/linear[1]/weight: is out of order (U as soon as gradients are finished opens a list "
            "of fused updates)",
            number_of("U layer[2]/linear[1]/weight"));
}

static void missing_end(void)
{
    record(0);
    gcp_plan plan = policy_plan(GCP_POLICY_KEEP_ALL);
    print(&plan, printed);
    without("U linear[0]/bias");
    refused(__LINE__, 0, "U linear[0]/bias is missing");
}

/* A move is a copy to another place: what can be moved behind forward, one after the other and all at once. */
static void moved(int which, const char *behind, const char *prefix, int at_least)
{
    char text[4096] = "", line[128];
    int count = 0;
    record(which);
    gcp_plan plan = policy_plan(GCP_POLICY_SEGMENTS);
    print(&plan, printed);
    double want = losses(&plan);
    for (char *s = printed; *s; s += line_length(s)) {
        if (*s != 'F') continue;
        snprintf(line, sizeof line, "M %s%.*s", prefix, (int)line_length(s) - 2, s + 2);
        before(behind, line);
        gcp_plan other = use_list(which);
        if (!other.core) continue;
        CHECK(other.moved_bytes > 0 && other.instructions == plan.instructions + 1 &&
              other.live_peak >= plan.live_peak && other.after_forward >= plan.after_forward);
        CHECK_NEAR(losses(&other), want, 0);
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s", line);
        count++;
    }
    CHECK_INT(count, >=, at_least);
    before(behind, text);
    gcp_plan all = use_list(which);
    CHECK(all.core && all.instructions == plan.instructions + count);
    CHECK_NEAR(losses(&all), want, 0);
    print(&all, again);
    CHECK_TEXT(again, edited);
}

static void no_hook(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count)
{
    (void)context;
    (void)parameter;
    (void)gradient;
    (void)count;
}

static void moves(void)
{
    moved(0, "B seed", "", 2);
    moved(1, "B seed", "", 4);
    moved(2, "B seed", "", 2);
    moved(0, "B layer[3]/linear[0]", "gradient of ", 1);
    moved(1, "B block[2]/conv2d[0]", "gradient of ", 1);
    record(0);
    gcp_plan plan = policy_plan(GCP_POLICY_SEGMENTS);
    print(&plan, printed);
    double want = losses(&plan);
    before("U linear[0]/weight", "M gradient of linear[0]/weight\nM gradient of linear[0]/weight\n");
    plan = use_list(0);
    CHECK(plan.core && plan.moved_bytes == 2 * 3 * 12 * sizeof(gcp_real));
    CHECK_NEAR(losses(&plan), want, 0);
    record(0);
    /* which has the address till it is waited for */
    CHECK(!gcp_plan_make(loss, .list = edited, .optimizer = GCP_OPTIMIZER_SGD, .on_gradient = no_hook).core);
    CHECK(gcp_error(net) && strstr(gcp_error(net), "no instruction 'M gradient of linear[0]/weight'"));
    REFUSED(before("F layer[1]/gelu[0]", "M layer[2]/gelu[0]\n"), 0,
            "line %d: M layer[2]/gelu[0]: reads a value that is not in the slab: layer[2]/gelu[0]",
            number_of("M layer[2]"));
    REFUSED(before("B seed", "M image\n"), 0, "line %d: no instruction 'M image' in this network",
            number_of("M image"));
}

int main(void)
{
    moves();
    round_trips();
    good_edits();
    more_edits();
    no_reruns();
    reordered();
    wrong_text();
    copies();
    wrong_copies();
    fused();
    not_fused();
    wrong_order();
    missing_end();
    return check_done();
}
