/* Reports: of three networks under every policy, through a writer that counts; their figures add up. */
#include "support/check.h"
#include "gcp.h"
#include "support/fitting.h"
#include "support/feed.h"
#include "support/svg.h"
#include <stdlib.h>

static unsigned char tape_memory[1 << 20];
static gcp_arena arena;
static gcp_tape *net;
static char out[1 << 17];
static size_t used, writes;

static gcp_tensor start(int h, int w, int c)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 96);
    return gcp_input(net, "image", GCP_SHAPE(2, h, w, c));
}

static gcp_tensor chain(void)
{
    gcp_tensor x = start(8, 8, 3);
    for (int i = 0; i < 8; i++) GCP_SEGMENT(net, "layer") x = gcp_gelu(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1));
    return gcp_mean(x);
}
static gcp_tensor residual(void)
{
    gcp_tensor x = gcp_conv2d(start(6, 6, 3), .out = 4, .k = 1);
    for (int i = 0; i < 4; i++)
        GCP_SEGMENT(net, "block") x = gcp_relu(gcp_add(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)), x));
    return gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 3), gcp_labels(net, "label", GCP_SHAPE(2)));
}
static gcp_tensor branches(void)
{
    gcp_tensor x = start(6, 6, 4);
    for (int i = 0; i < 3; i++)
        GCP_SEGMENT(net, "mix") {
            gcp_tensor a = gcp_layer_norm(gcp_conv2d(x, .out = 3, .k = 3, .pad = 1)),
                       b = gcp_dropout(gcp_slice(x, .first = 1, .count = 2), .rate = 0.5, .name = "a<b>&\"c'");
            x = gcp_concat(GCP_TENSORS(a, b));
        }
    return gcp_mean(gcp_mul(gcp_max_pool(x, .k = 2), gcp_avg_pool(x, .k = 2)));
}
static gcp_tensor (*const nets[])(void) = { chain, residual, branches };

static void append(void *context, const char *s, size_t size)
{
    (void)context;
    writes++;
    CHECK(size > 0 && memchr(s, 0, size) == NULL && used + size < sizeof out);
    if (used + size < sizeof out) memcpy(out + used, s, size);
    out[used += size] = 0;
}

/* The text of a report, in out. */
static const char *report(void (*print)(const gcp_plan *plan, gcp_writer w), const gcp_plan *plan)
{
    used = writes = 0;
    out[0] = 0;
    print(plan, (gcp_writer) { append, NULL });
    CHECK(used > 0 && writes > 0 && out[used - 1] == '\n');
    return out;
}

static int count(const char *text, const char *what)
{
    int n = 0;
    for (const char *s = strstr(text, what); s; s = strstr(s + strlen(what), what)) n++;
    return n;
}

/* Tags close in the order they were opened, quotes and entities are whole; the number of elements, or -1. */
static int well_formed(const char *s)
{
    char open[16][16];
    int depth = 0, elements = 0;
    for (; *s; s++) {
        if (*s == '&' && strncmp(s, "&lt;", 4) && strncmp(s, "&gt;", 4) && strncmp(s, "&amp;", 5) &&
            strncmp(s, "&quot;", 6) && strncmp(s, "&#8594;", 7))
            return -1;
        if (*s == '>') return -1;
        if (*s != '<') continue;
        char name[16] = { 0 };
        int closing = s[1] == '/', quote = 0;
        if (sscanf(s + 1 + closing, "%15[a-z]", name) != 1) return -1;
        for (s++; *s && (*s != '>' || quote); s++) {
            quote ^= *s == '"';
            if (*s == '<') return -1;
        }
        if (!*s) return -1;
        if (closing) { if (depth == 0 || strcmp(open[--depth], name)) return -1; }
        else if (elements++, s[-1] != '/') { if (depth == 16) return -1; strcpy(open[depth++], name); }
    }
    return depth == 0 ? elements : -1;
}

static void memory_alone(const gcp_plan *plan, gcp_writer w) { gcp_memory_svg(plan, NULL, w); }

/* Relative luminance and contrast, as WCAG 2.1 has them. */
static double luminance(unsigned colour)
{
    static const double share[] = { 0.0722, 0.7152, 0.2126 };
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        const double c = (colour >> 8 * i & 255) / 255.0;
        sum += share[i] * (c <= 0.04045 ? c / 12.92 : pow((c + 0.055) / 1.055, 2.4));
    }
    return sum;
}
static double contrast(unsigned a, unsigned b)
{
    const double x = luminance(a) + 0.05, y = luminance(b) + 0.05;
    return x > y ? x / y : y / x;
}

/* Colours have three times the contrast of the ground, and of what stands beside them in a full legend (kept and
   recomputed, the two gradients among them); those of one shade differ in their pattern. */
static void inks(const char *s)
{
    static const int full[] = { 1, 3, 4, 5, 6, 2, 7, 0 };
    unsigned colour[8] = { 0 };
    char path[8][64] = { { 0 } };
    for (int i = 0; i < 8; i++) {
        char id[48];
        snprintf(id, sizeof id, "<pattern id=\"gcp-is-%d\"", i);
        const char *at = strstr(s, id), *fill = at ? strstr(at, "fill=\"#") : NULL;
        const char *d = at ? strstr(at, "<path d=\"") : NULL;
        CHECK(fill && d && sscanf(fill, "fill=\"#%6x", &colour[i]) == 1);
        if (d) sscanf(d, "<path d=\"%63[^\"]", path[i]);
        CHECK(contrast(colour[i], 0xFFFFFF) >= 3);
    }
    for (int i = 0; i < 7; i++) CHECK(contrast(colour[full[i]], colour[full[i + 1]]) >= 3);
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < i; k++)
            CHECK(contrast(colour[i], colour[k]) >= 3 || strcmp(path[i], path[k]) || (i == 5 && k == 0));
}

/* Ticks up are multiples of 1, 2 or 5 times a power of ten, from 0. */
static void ticks(const char *s)
{
    double step = 0, tick;
    int found = 0;
    for (const char *t = strstr(s, "text-anchor=\"end\">"); t; t = strstr(t + 1, "text-anchor=\"end\">")) {
        char unit[8];
        if (sscanf(t, "text-anchor=\"end\">%lf %7[a-zA-Z]<", &tick, unit) != 2) continue;
        if (found == 1) step = tick;
        CHECK_NEAR(tick, found * step, 1e-9);
        found++;
    }
    const double lead = step > 0 ? step / pow(10, floor(log10(step) + 1e-9)) : 0;
    CHECK(found >= 3 && found <= 9);
    CHECK(fabs(lead - 1) < 1e-6 || fabs(lead - 2) < 1e-6 || fabs(lead - 5) < 1e-6);
}

static void svg(const gcp_plan *plan)
{
    const char *s = report(memory_alone, plan);
    CHECK_INT(well_formed(s), >, 20);
    CHECK(!strncmp(s, "<svg ", 5) && count(s, "<svg ") == 1 && strstr(s, "</svg>"));
    CHECK_INT(svg_texts_outside(s), ==, 0);
    int titles = count(s, "<title>"), work = count(s, "<title>workspace "), blocks = count(s, " bytes at ");
    /* with background, patterns and legend */
    CHECK_INT(count(s, "<rect "), ==, titles + 1 + count(s, "<pattern ") + count(s, "width=\"12\" height=\"12\""));
    CHECK_INT(count(s, " at the peak</text>"), ==, 1);
    inks(s);
    ticks(s);
    CHECK_INT(blocks, ==, titles - work);
    CHECK_INT(blocks, >, 3);
    size_t high = 0;                                 /* the blocks fill the slab to its end */
    for (const char *t = strstr(s, " bytes at "); t; t = strstr(t + 1, " bytes at ")) {
        const char *digits = t;
        while (digits[-1] >= '0' && digits[-1] <= '9') digits--;
        size_t end = strtoull(digits, NULL, 10) + strtoull(t + 10, NULL, 10);
        if (end > high) high = end;
    }
    CHECK(high <= plan->slab_bytes && high + 64 > plan->slab_bytes);
}

static void instructions(const gcp_plan *plan)
{
    int lines = 0, peak = 0, n;
    const char *s = report(gcp_plan_print, plan);
    CHECK_INT(count(s, "<- peak"), ==, 1);
    for (const char *line = s; line && *line; line = strchr(line, '\n'), line = line ? line + 1 : NULL) {
        if (sscanf(line, "%d", &n) != 1) continue;
        CHECK_INT(n, ==, ++lines);
        const char *mark = strstr(line, "<- peak"), *end = strchr(line, '\n');
        if (mark && mark < end) peak = n;
    }
    CHECK_INT(lines, ==, plan->instructions);
    CHECK_INT(peak, ==, plan->peak_instruction + 1);
    const char *list = report(gcp_list_print, plan);
    int copies = count(list, "\nC ") + !strncmp(list, "C ", 2), forward = count(list, "\nF ") + !strncmp(list, "F ", 2);
    CHECK_INT(count(list, "\n"), ==, copies + plan->instructions);
    CHECK_INT(count(report(gcp_layers_print, plan), "\n"), ==, forward + 2);
}

static double figure(const char *s, const char *label)
{
    const char *at = strstr(s, label);
    CHECK(at != NULL);
    return at ? strtod(at + strlen(label), NULL) : 0;
}

static void why(const gcp_plan *plan)
{
    static const char *const parts[] = { "weights ",   "statistics ", "optimiser ",        "input ",
                                         "kept ",      "recomputed ", "weight gradients ", "activation gradients ",
                                         "workspace ", "gaps " };
    const char *s = report(gcp_why_print, plan);
    const gcp_split *p = &plan->split;
    double sum = 0;
    for (int i = 0; i < 10; i++) sum += figure(s, parts[i]);
    CHECK_NEAR(sum, (double)plan->bytes / 1048576, 0.0005 * 10);
    char total[40];
    snprintf(total, sizeof total, "(%zu bytes)", plan->bytes);
    CHECK(strstr(s, total) && strstr(s, "(test_reports.c:"));
    CHECK_INT(p->weights + p->statistics + p->optimizer, ==, plan->state_bytes);
    CHECK_INT(p->inputs + p->kept + p->recomputed + p->weight_gradients + p->activation_gradients + p->workspace +
                  p->gaps,
              ==, plan->slab_bytes);
    CHECK_INT(plan->state_bytes + plan->slab_bytes, ==, plan->bytes);
    CHECK(p->gaps <= plan->slab_bytes && plan->live_peak <= plan->slab_bytes);
}

static void every_report(void)
{
    for (int n = 0; n < 3; n++)
        for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_CHEAP + 1; policy++) {
            gcp_tensor loss = nets[n]();
            gcp_plan plan =
                policy > GCP_POLICY_CHEAP
                    ? gcp_plan_make(loss, .inference = 1)
                    : gcp_plan_make_at(
                          loss,
                          fitting(GCP_OPTS(gcp_plan_opts, .policy = (gcp_policy)policy, .segments = 3, .checkpoints = 2,
                                           .optimizer = n ? GCP_OPTIMIZER_ADAM : GCP_OPTIMIZER_SGD, .momentum = 0.9)));
            CHECK(plan.core != NULL);
            if (!plan.core) { fprintf(stderr, "%s\n", gcp_error(net)); continue; }
            svg(&plan);
            instructions(&plan);
            why(&plan);
        }
}

static void reasons(void)
{
    gcp_tensor x = gcp_flatten(start(4, 4, 4));      /* all weights */
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "dense") x = gcp_tanh(gcp_linear(x, .out = 256));
    gcp_plan plan = gcp_plan_make(gcp_mean(x), .optimizer = GCP_OPTIMIZER_ADAM);
    CHECK(strstr(report(gcp_why_print, &plan), "why not less: weights, their gradients, optimiser and inputs are ") !=
          NULL);
    double fixed = (double)(plan.state_bytes + plan.split.inputs + plan.split.weight_gradients) / (double)plan.bytes;
    CHECK(fixed > 0.5);
    CHECK_NEAR(figure(out, "inputs are "), 100 * fixed, 0.051);
    CHECK_NEAR(figure(out, "at most "), 100 - 100 * fixed, 0.051);

    CHECK(strstr(out, "what would help, in bytes: ") != NULL);
    gcp_plan sgd = gcp_plan_make(gcp_mean(x), .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9),
             fused = gcp_plan_make(gcp_mean(x), .optimizer = GCP_OPTIMIZER_ADAM, .fuse_update = 1);
    CHECK_NEAR(figure(out, "in place of Adam: "), (double)plan.bytes - (double)sgd.bytes, 256);
    double freed = (double)plan.bytes - (double)fused.bytes;
    CHECK(freed > 0 && figure(out, ".fuse_update: frees up to ") >= freed);
    CHECK(strstr(report(gcp_why_print, &fused), ".fuse_update") == NULL);

    x = start(16, 16, 8);                            /* no blocks */
    for (int i = 0; i < 6; i++) x = gcp_gelu(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1));
    plan = gcp_plan_make(gcp_mean(x));
    CHECK(strstr(report(gcp_why_print, &plan), "why nothing is recomputed: no GCP_SEGMENT block was recorded\n") !=
          NULL);
    CHECK(plan.reruns == 0 && plan.segments == 1);

    x = start(16, 16, 8);                            /* one block */
    GCP_SEGMENT(net, "all") for (int i = 0; i < 6; i++) x = gcp_gelu(gcp_conv2d(x, .out = 8, .k = 3, .pad = 1));
    plan = gcp_plan_make(gcp_mean(x));
    CHECK(strstr(report(gcp_why_print, &plan), "why nothing is recomputed: one segment holds the whole network, and "
                                               "the last segment is never run again\n") != NULL);
    CHECK(strstr(out, "why not less") == NULL);
    plan = gcp_plan_make(gcp_mean(x), .policy = GCP_POLICY_KEEP_ALL);      /* asked for: nothing to explain */
    CHECK(strstr(report(gcp_why_print, &plan), "why nothing") == NULL);
}

/* The peak is where a block runs again: a sum of two large tensors that backward does not read. Blocks are advised
   where the policy follows them, and nowhere else. */
static void no_plan(void)
{
    gcp_tensor loss = gcp_mean(gcp_linear(start(4, 4, 2), .out = 8));
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = 1);
    const char *s = report(gcp_why_print, &plan);
    CHECK(strstr(s, "no plan: test_reports.c:") == s && strstr(s, "the least found to work is "));
    CHECK(strstr(s, "; half the batch: about ") && !strstr(s, "Adam") && !strstr(s, ".fuse_update"));
    start(4, 4, 2);
    gcp_tape_reset(net);                                            /* of one sample there is no half */
    loss = gcp_mean(gcp_linear(gcp_input(net, "one", GCP_SHAPE(1, 4, 4, 2)), .out = 8));
    plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = 1);
    s = report(gcp_why_print, &plan);
    CHECK(strstr(s, "the least found to work is ") && !strstr(s, "half the batch"));
    gcp_error_clear(net);
    used = 0;
    gcp_why_print(&plan, (gcp_writer) { append, NULL });
    CHECK_INT(used, ==, 0);
}

static void advice(void)
{
    static const char shorter[] = "more, shorter segments would lower it";
    gcp_tensor x = gcp_conv2d(start(16, 16, 8), .out = 8, .k = 1);
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "wide") {
            gcp_tensor a = gcp_upsample(x, .factor = 8), b = gcp_upsample(gcp_tanh(x), .factor = 8);
            x = gcp_gelu(gcp_avg_pool(gcp_add(a, b), .k = 8));
        }
    gcp_tensor loss = gcp_mean(gcp_conv2d(x, .out = 8, .k = 3));
    gcp_plan plan = gcp_plan_make(loss), keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    CHECK(plan.reruns > 0 && strstr(report(gcp_why_print, &plan), shorter) != NULL);
    for (int policy = GCP_POLICY_SQRT; policy <= GCP_POLICY_BUDGET; policy++) {
        const size_t budget = policy == GCP_POLICY_BUDGET ? keep.bytes : 0;
        plan = gcp_plan_make(loss, .policy = (gcp_policy)policy, .budget = budget);
        CHECK(gcp_plan_ok(&plan) && strstr(report(gcp_why_print, &plan), shorter) == NULL);
        if (budget) CHECK(strstr(out, "why nothing is recomputed: keeping all fits the budget\n") != NULL);
    }
}

static gcp_tensor fire(gcp_tensor x, int squeezed, int expanded)
{
    gcp_tensor s = gcp_relu(gcp_conv2d(x, .out = squeezed, .k = 1));
    return gcp_concat(GCP_TENSORS(gcp_relu(gcp_conv2d(s, .out = expanded, .k = 1)),
                                  gcp_relu(gcp_conv2d(s, .out = expanded, .k = 3, .pad = 1))));
}

/* SqueezeNet: blocks at every module need more than keeping all; the report says so first. Every plan knows what
   keeping all takes. */
/* One channel of a concat is read in backward, fifteen lie there until then: the report names both. */
static void held_up(void)
{
    gcp_tensor x = start(32, 32, 4), one = gcp_conv2d(x, .out = 1, .k = 3, .pad = 1, .name = "one");
    gcp_tensor all = gcp_concat(GCP_TENSORS(one, gcp_conv2d(x, .out = 15, .k = 3, .pad = 1)), .name = "all");
    gcp_tensor low = gcp_mean(gcp_global_avg_pool(all)), y = gcp_tanh(gcp_conv2d(one, .out = 16, .k = 3, .pad = 1));
    gcp_tensor loss = gcp_add(gcp_mean(gcp_mul(y, y)), low);
    gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL);
    CHECK(strstr(report(gcp_why_print, &keep), "are held up by views, most of it all (") != NULL);
    CHECK(strstr(out, "which stays for one: GCP_POLICY_BUDGET") != NULL);
    size_t least = gcp_least_budget(loss);
    gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = least);
    CHECK(gcp_plan_ok(&plan) && strstr(report(gcp_why_print, &plan), "held up by views") == NULL);
}

static void in_vain(void)
{
    gcp_tensor x = start(64, 64, 3);
    GCP_SEGMENT(net, "stem")
        x = gcp_max_pool(gcp_relu(gcp_conv2d(x, .out = 64, .k = 3, .stride = 2)), .k = 3, .stride = 2);
    for (int i = 0; i < 3; i++) GCP_SEGMENT(net, "fire") x = fire(x, 8, 32);
    gcp_tensor loss = gcp_mean(gcp_mul(x, x));
    gcp_plan keep = gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL), plan = gcp_plan_make(loss);
    CHECK(plan.reruns > 0 && plan.bytes > keep.bytes);
    CHECK_INT(plan.keep_all_bytes, ==, keep.bytes);
    report(gcp_why_print, &plan);
    CHECK(!strncmp(out, "checkpointing saves nothing here: this plan takes ", 34));
    CHECK_NEAR(figure(out, "this plan takes "), 100.0 * (double)plan.bytes / (double)keep.bytes, 0.051);
    CHECK_INT(figure(out, "takes, with "), ==, plan.reruns);
    for (int policy = GCP_POLICY_KEEP_ALL; policy <= GCP_POLICY_BUDGET; policy++) {
        gcp_plan other = gcp_plan_make_at(
            loss, fitting(GCP_OPTS(gcp_plan_opts, .policy = (gcp_policy)policy, .segments = 2, .checkpoints = 1,
                                   .budget = policy == GCP_POLICY_BUDGET ? keep.bytes * 9 / 10 : 0)));
        CHECK(other.core && other.keep_all_bytes == keep.bytes);
        CHECK(!strncmp(report(gcp_why_print, &other), "checkpointing saves nothing", 27) ==
              (other.reruns && other.bytes >= keep.bytes));
    }
    CHECK(strstr(report(gcp_why_print, &keep), "checkpointing saves nothing") == NULL);
}

/* What somebody asked to keep is told from what is kept by itself: statistics, and what no block runs again. */
static void kept(void)
{
    const char *const asked = ", kept as asked\n";
    gcp_tensor loss = residual();
    gcp_plan plan = gcp_plan_make(loss);
    CHECK_INT(count(report(gcp_layers_print, &plan), asked), ==, 0);
    plan = gcp_plan_make(loss, .keep = "block[0-1]/conv2d*");
    CHECK_INT(count(report(gcp_layers_print, &plan), asked), ==, 2);
    CHECK_INT(count(out, "run once, kept as asked\n"), ==, 2);
    loss = gcp_mean(gcp_keep(gcp_tanh(start(4, 4, 1))));
    gcp_want_grad(gcp_find(net, "image"));
    plan = gcp_plan_make(loss);
    CHECK_INT(count(report(gcp_layers_print, &plan), asked), ==, 1);
}

/* A plan of a graph's text, on a tape that has room for fewer ops than the text: of its layers only bytes are known. */
static void of_a_graph(void)
{
    static char text[1 << 16];
    size_t used_text = 0;
    for (int i = 0; i < 1000; i++)
        used_text += (size_t)snprintf(text + used_text, sizeof text - used_text, "f a%d 1 4096 0\n", i);
    snprintf(text + used_text, sizeof text - used_text, "b c 1 4096 0 a7\n");
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *tape = gcp_tape_make(&arena, .ops = 8);
    const gcp_plan plan = gcp_graph_plan(tape, text, .policy = GCP_POLICY_KEEP_ALL);
    CHECK(gcp_plan_ok(&plan));
    const char *s = report(gcp_layers_print, &plan);
    CHECK_INT(count(s, "\n"), ==, 1002);
    CHECK_INT(count(s, " 4096  run once\n"), ==, 1000);
    CHECK(strstr(s, " 4096000\n") != NULL);
}

/* Writers without a function and reports of nothing write nothing. */
static void nothing(void)
{
    gcp_plan plan = gcp_plan_make(chain()), none = { 0 };
    void (*const prints[])(const gcp_plan *p, gcp_writer w) = { gcp_list_print, gcp_plan_print, gcp_layers_print,
                                                                gcp_why_print, memory_alone };
    for (int i = 0; i < 5; i++) {
        used = 0;
        prints[i](&plan, (gcp_writer) { NULL, NULL });
        prints[i](&none, (gcp_writer) { append, NULL });
        prints[i](NULL, (gcp_writer) { append, NULL });
        CHECK_INT(used, ==, 0);
    }
    FILE *file = tmpfile();
    if (!file) return;
    gcp_list_print(&plan, gcp_file(file));
    CHECK_INT(ftell(file), ==, strlen(report(gcp_list_print, &plan)));
    fclose(file);
}

/* Measured seconds: none before, one for each instruction after, beside its line; a real step each time. */
static void profile(void)
{
    static unsigned char memory[1 << 20];
    gcp_plan plan = gcp_plan_make(residual(), .policy = GCP_POLICY_SEGMENTS, .optimizer = GCP_OPTIMIZER_SGD);
    CHECK(gcp_profile(&plan) == 0 && gcp_error_code(net) == GCP_E_BIND);
    gcp_error_clear(net);
    gcp_bind(&plan, memory, sizeof memory);
    CHECK(gcp_instruction_seconds(&plan, 0) == 0 && !strstr(report(gcp_plan_print, &plan), " ms"));
    feed_zeros(&plan, "image label");
    double sum = gcp_profile(&plan, .repeats = 3, .lr = 0.1), parts = 0;
    for (int i = 0; i < plan.instructions; i++) parts += gcp_instruction_seconds(&plan, i);
    CHECK(sum > 0 && parts == sum && gcp_steps_done(net) == 3);
    CHECK(strstr(report(gcp_plan_print, &plan), " ms") != NULL);
    CHECK(gcp_instruction_seconds(&plan, -1) == 0 && gcp_instruction_seconds(&plan, plan.instructions) == 0);
    arena.size = arena.used + 16;
    CHECK(gcp_profile(&plan) == 0 && gcp_error_code(net) == GCP_E_NOMEM);
}

int main(void)
{
    profile();
    every_report();
    reasons();
    advice();
    held_up();
    no_plan();
    in_vain();
    kept();
    of_a_graph();
    nothing();
    return check_done();
}
