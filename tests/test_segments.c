/* GCP_SEGMENT: nesting, numbering, misuse. */
#include "support/check.h"
#include "gcp.h"

static unsigned char memory[1 << 20];
static gcp_arena arena;

static gcp_tape *fresh(void)
{
    arena = gcp_arena_from(memory, sizeof memory);
    return gcp_tape_make(&arena, .ops = 64);
}

static void returns(gcp_tape *net, gcp_tensor x)
{
    GCP_SEGMENT(net, "left") {
        gcp_relu(x);
        if (gcp_elements(x)) return;
    }
}

static void numbering(void)
{
    gcp_tape *net = fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    char name[64];
    GCP_SEGMENT(net, "stage")
        for (int i = 0; i < 3; i++)
            GCP_SEGMENT(net, "block") {
                x = gcp_linear(x, .out = 4);
                x = gcp_relu(x);
            }
    CHECK_TEXT(gcp_name(x, name, sizeof name), "stage[0]/block[2]/relu[0]");
    CHECK(!gcp_is_nil(gcp_find(net, "stage[0]/block[1]/linear[0]/weight")));
    CHECK_TEXT(gcp_error(net) ? gcp_error(net) : "none", "none");
}

static void misuse(void)
{
    char want[160];
    gcp_tape *net = fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    int line = __LINE__ + 1;
    GCP_SEGMENT(net, "out") {
        gcp_relu(x);
        break;
    }
    snprintf(want, sizeof want, "test_segments.c:%d: segment 'out[0]': a break left its block", line);
    CHECK_TEXT(gcp_error(net), want);

    net = fresh();
    x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    line = __LINE__ + 1;
    GCP_SEGMENT(net, "empty") { }
    snprintf(want, sizeof want, "test_segments.c:%d: segment 'empty[0]': its block recorded no op", line);
    CHECK_TEXT(gcp_error(net), want);

    net = fresh();
    x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    returns(net, x);
    gcp_tensor loss = gcp_mean(x);
    gcp_plan_make(loss);
    CHECK(strstr(gcp_error(net), "segment 'left[0]': a return or goto left its block") != NULL);

    net = fresh();
    x = gcp_input(net, "x", GCP_SHAPE(2, 4));
    GCP_SEGMENT(net, "fine") {
        x = gcp_relu(x);
        if (gcp_elements(x)) continue;
        x = gcp_relu(x);
    }
    CHECK(gcp_error(net) == NULL);
}

static gcp_tensor nest(gcp_tape *net, gcp_tensor x, int depth)
{
    if (depth) GCP_SEGMENT(net, "level") x = nest(net, gcp_tanh(x), depth - 1);
    return x;
}

/* A thousand segments, each in the one before: a short plan in a small arena, and the same loss. */
static void deep(void)
{
    enum { DEPTH = 1000 };
    static unsigned char tape_memory[4 << 20], plan_memory[4 << 20], step_memory[1 << 20];
    double loss[2];
    for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_KEEP_ALL; policy++) {
        arena = gcp_arena_from(tape_memory, sizeof tape_memory);
        gcp_arena own = gcp_arena_from(plan_memory, sizeof plan_memory);
        gcp_tape *net = gcp_tape_make(&arena, .ops = DEPTH + 8, .segments = DEPTH + 8);
        gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(1, 4), .want_grad = 1);
        gcp_plan plan = gcp_plan_make(gcp_mean(nest(net, x, DEPTH)), .policy = (gcp_policy)policy, .arena = &own);
        CHECK(plan.core && plan.instructions < 4 * DEPTH);
        CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
        gcp_write(&plan, x, ((float[]) { 0.1f, -0.4f, 0.9f, 2.0f }));
        loss[policy] = gcp_step(&plan);
        if (gcp_error(net)) fprintf(stderr, "%s\n", gcp_error(net));
    }
    CHECK(loss[0] > 0 && loss[0] == loss[1]);
}

/* ---- what segments and plans keep ----------------------------------------------------------------------------- */

typedef struct text { char at[1 << 14]; size_t size; } text;
static void collect(void *context, const char *piece, size_t size)
{
    text *t = (text *)context;
    if (t->size + size >= sizeof t->at) size = 0;
    memcpy(t->at + t->size, piece, size);
    t->at[t->size += size] = 0;
}
/* How many of the ops that run again have `op` in their path. */
static int reruns(const gcp_plan *plan, const char *op)
{
    static text t;
    int count = 0;
    t.size = 0; t.at[0] = 0;
    gcp_list_print(plan, (gcp_writer){ collect, &t });
    for (char *line = strtok(t.at, "\n"); line; line = strtok(NULL, "\n"))
        count += line[0] == 'R' && strstr(line, op) != NULL;
    return count;
}
static gcp_tensor kept_net(gcp_segment_opts o)
{
    gcp_tape *net = fresh();
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(4, 8));
    for (int i = 0; i < 2; i++) {
        const int segment = gcp_segment_begin(net, "block", o);
        int state = 2;
        x = gcp_linear(x, .out = 8);
        GCP_SEGMENT(net, "inner") x = gcp_tanh(gcp_layer_norm(x));
        x = gcp_sigmoid(gcp_linear(x, .out = 8, .name = "last"));
        gcp_segment_end(net, segment, &state);
    }
    return gcp_mean(x);
}
static void keeping(void)
{
    static const struct { unsigned keep; const char *named; int linear, norm, tanh; } cases[] = {
        { 0, NULL, 1, 1, 1 },                                /* the last block's inside is not run again */
        { GCP_KEEP_PRODUCTS, NULL, 0, 1, 1 },
        { GCP_KEEP_NORMS | GCP_KEEP_POINTWISE, NULL, 1, 0, 0 },
        { 0, "inner*", 1, 0, 0 },
        { 0, "linear[0-0] *tanh*", 0, 0, 0 },                /* nobody needs the norm */
        { GCP_KEEP_PRODUCTS, "\n *layer_norm[0]\n", 0, 0, 1 },
    };
    char paths[64];
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (cases[i].named) snprintf(paths, sizeof paths, "%s", cases[i].named);
        gcp_tensor loss = kept_net((gcp_segment_opts) { .at = GCP_AT, .keep = cases[i].keep,
                                                        .keep_named = cases[i].named ? paths : NULL });
        memset(paths, 'x', sizeof paths - 1);                /* the text may go when the segment has ended */
        gcp_plan plan = gcp_plan_make(loss);
        CHECK(plan.core && !gcp_error(loss.tape));
        if (gcp_error(loss.tape)) fprintf(stderr, "%s\n", gcp_error(loss.tape));
        CHECK_INT(reruns(&plan, "/linear"), ==, cases[i].linear);
        CHECK_INT(reruns(&plan, "layer_norm"), ==, cases[i].norm);
        CHECK_INT(reruns(&plan, "tanh"), ==, cases[i].tanh);
    }
    gcp_tensor loss = kept_net((gcp_segment_opts) { .at = GCP_AT });
    gcp_plan plan = gcp_plan_make(loss, .keep = "block[0-0]/linear* *norm*");
    CHECK(reruns(&plan, "linear") == 0 && reruns(&plan, "norm") == 0 && reruns(&plan, "tanh") == 1);
    plan = gcp_plan_make(loss, .keep = "*norm* inner*");
    CHECK(!plan.core && strstr(gcp_error(loss.tape), ".keep: 'inner*' fits no op"));
    gcp_error_clear(loss.tape);
    plan = gcp_plan_make(loss, .keep = "*", .inference = 1);
    CHECK(!plan.core && strstr(gcp_error(loss.tape), "an inference plan keeps nothing: no .keep"));
    gcp_error_clear(loss.tape);
    plan = gcp_plan_make(loss, .keep = " \n");
    CHECK(!plan.core && strstr(gcp_error(loss.tape), ".keep: no pattern"));
    loss = kept_net((gcp_segment_opts) { .at = GCP_AT, .keep_named = "" });
    CHECK(strstr(gcp_error(loss.tape), "segment 'block[0]': .keep_named: no pattern") != NULL);
    loss = kept_net((gcp_segment_opts) { .at = GCP_AT, .keep = 2 * GCP_KEEP_CUSTOM });
    CHECK(strstr(gcp_error(loss.tape), "segment: .keep = 256; a sum of GCP_KEEP_... classes") != NULL);
    loss = kept_net((gcp_segment_opts) { .at = GCP_AT, .keep_named = "inner* soft*" });
    CHECK(strstr(gcp_error(loss.tape), "segment 'block[0]': .keep_named: 'soft*' fits no op") != NULL);
}

int main(void)
{
    numbering();
    misuse();
    deep();
    keeping();
    return check_done();
}
