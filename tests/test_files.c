/* Weights and runs in files: what comes back has the same bits; a run that is taken up again ends as one that was never
   stopped; whatever fails, the file and the state are the old ones or the new ones. */
#include "support/check.h"
#include "gcp_io.h"
#include "support/memory_files.h"
#include <stdlib.h>

static memory_disk disk;
static gcp_files files;
static unsigned char tape_memory[1 << 21], other_memory[1 << 21];
static _Alignas(64) unsigned char step_memory[1 << 20], other_step[1 << 20], far_memory[1 << 16],
                                   scratch_memory[1 << 15];

/* A network with all kinds of state: weights of 1, 2 and 4 sizes, statistics, slots, dropout. */
typedef struct run {
    gcp_arena arena;
    gcp_tape *net;
    gcp_tensor image, label, loss;
    gcp_plan plan;
} run;
typedef struct place { int64_t step; double best; } place;     /* without padding: all its bytes are written */

static void record(run *r, unsigned char *memory, size_t size, uint64_t seed, int channels)
{
    r->arena = gcp_arena_from(memory, size);
    r->net = gcp_tape_make(&r->arena, .ops = 64, .seed = seed);
    r->image = gcp_input(r->net, "image", GCP_SHAPE(4, 6, 6, 3));
    r->label = gcp_labels(r->net, "label", GCP_SHAPE(4));
    gcp_tensor x = r->image;
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(r->net, "block") {
            x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = channels, .k = 3, .pad = 1)));
            x = gcp_dropout(x, .rate = 0.25);
        }
    r->loss = gcp_cross_entropy(gcp_linear(gcp_flatten(gcp_max_pool(x, .k = 2)), .out = 5, .name = "head"), r->label);
}
static void bind(run *r, unsigned char *memory, gcp_plan_opts o)
{
    r->plan = gcp_plan_make_at(r->loss, o);
    gcp_bind(&r->plan, memory, 1 << 20);
}
static gcp_plan_opts adam(gcp_policy policy)
{
    return (gcp_plan_opts) { .at = GCP_AT, .policy = policy, .optimizer = GCP_OPTIMIZER_ADAM };
}
static void make(run *r, unsigned char *memory, unsigned char *step, uint64_t seed, int channels, gcp_plan_opts o)
{
    record(r, memory, sizeof tape_memory, seed, channels);
    bind(r, step, o);
}

static float train(run *r, int number)
{
    float values[4 * 6 * 6 * 3];
    int classes[4];
    for (int i = 0; i < 4; i++) classes[i] = (i + number) % 5;
    for (int i = 0; i < 432; i++) values[i] = (float)((i + number) * 37 % 64) / 64.0f;
    gcp_write(&r->plan, r->image, values);
    gcp_write(&r->plan, r->label, classes);
    return (float)gcp_step(&r->plan, .lr = 0.01);
}
static void fine(run *r, int line)
{
    if (!check_report(!gcp_error(r->net), __FILE__, line)) fprintf(stderr, "%s\n", gcp_error(r->net));
    gcp_error_clear(r->net);
}
/* That call failed, with a message that has this in it. */
static void said(run *r, gcp_code code, const char *text, int line)
{
    const char *error = gcp_error(r->net);
    if (!check_report(error && gcp_error_code(r->net) == code && strstr(error, text), __FILE__, line))
        fprintf(stderr, "expected '%s', found '%s'\n", text, error ? error : "no error");
    gcp_error_clear(r->net);
}
static uint64_t hash(const void *data, size_t size)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < size; i++) h = (h ^ ((const unsigned char *)data)[i]) * 1099511628211u;
    return h;
}
/* All of the state, which lies at the front of the memory. */
static uint64_t state(const run *r, const unsigned char *step) { return hash(step, r->plan.state_bytes); }

/* ---- weights ---- */

static void weights(void)
{
    run a, b;
    make(&a, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    for (int i = 0; i < 3; i++) train(&a, i);
    CHECK(gcp_save(a.net, "w", .files = &files) == GCP_OK);
    gcp_plan_opts infer = { .at = GCP_AT, .inference = 1 };
    record(&b, other_memory, sizeof other_memory, 2, 8);
    bind(&b, other_step, infer);
    CHECK_INT(gcp_load(b.net, "w", .files = &files), ==, 14);
    fine(&a, __LINE__); fine(&b, __LINE__);
    for (int i = 0;; i++) {
        char path[64];
        static gcp_real x[4096], y[4096];
        gcp_tensor p = gcp_nth_parameter(a.net, i);
        if (gcp_is_nil(p)) { CHECK_INT(i, ==, 10); break; }
        gcp_tensor q = gcp_find(b.net, gcp_name(p, path, sizeof path));
        CHECK(gcp_read(&a.plan, p, x) == GCP_OK && gcp_read(&b.plan, q, y) == GCP_OK);
        CHECK(!memcmp(x, y, gcp_elements(p) * sizeof *x));
    }
}

static char reported[1 << 14];
static void report_text(void *context, const char *text, size_t size)
{
    const size_t n = strlen(reported);
    (void)context;
    if (n + size < sizeof reported) { memcpy(reported + n, text, size); reported[n + size] = 0; }
}

/* Saved in PyTorch's way and with names of others, and read back so. */
static void styles(void)
{
    static const char map[] =
        "block[{b}]/conv2d[0]/*  layers.{b+1}.conv.*\r\n"
        "block[{b}]/batch_norm[0]/* layers.{b+12}.norm.*\n\n# no layout: a flattened image is seen\n"
        "head/weight fc.weight\n"
        "* model.*";
    run a;
    make(&a, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    for (int style = 0; style <= GCP_STYLE_KERAS; style++) {
        run b;
        make(&b, other_memory, other_step, 2, 8, adam(GCP_POLICY_SEGMENTS));
        CHECK(gcp_save(a.net, "s", .style = (gcp_style)style, .map = map, .files = &files) == GCP_OK);
        CHECK_INT(gcp_load(b.net, "s", .style = (gcp_style)style, .map = map, .files = &files), ==, 14);
        fine(&a, __LINE__); fine(&b, __LINE__);
        gcp_slots_reset(a.net); gcp_slots_reset(b.net);
        CHECK(!memcmp(step_memory + 128, other_step + 128, a.plan.split.weights));
    }
    CHECK(gcp_save(a.net, "s", .style = GCP_STYLE_TORCH, .map = map, .files = &files) == GCP_OK);
    const char *header = (const char *)memory_find(&disk, "s")->bytes + 8;
    CHECK(strstr(header, "\"layers.1.conv.weight\":{\"dtype\":\"F32\",\"shape\":[8,3,3,3]"));
    CHECK(strstr(header, "\"layers.13.norm.weight\":") && strstr(header, "\"layers.13.norm.running_var\":"));
    CHECK(strstr(header, "\"fc.weight\":{\"dtype\":\"F32\",\"shape\":[5,72]") &&
          strstr(header, "\"model.head/bias\":"));
}

/* The file of `styles`, read with the names of another: what the messages say. */
static void other_names(void)
{
    run b;
    make(&b, other_memory, other_step, 2, 8, adam(GCP_POLICY_SEGMENTS));
    gcp_load(b.net, "s", .style = GCP_STYLE_TORCH, .files = &files);
    said(&b, GCP_E_NAME, "test_files.c:", __LINE__);
    gcp_load(b.net, "s", .style = GCP_STYLE_TORCH, .files = &files);
    said(&b, GCP_E_NAME, "gcp_load: s: found no block[0]/conv2d[0]/weight, expected it for block[0]/conv2d[0]/weight",
         __LINE__);
    gcp_load(b.net, "s", .files = &files);
    said(&b, GCP_E_NAME, " others; ", __LINE__);
    gcp_load(b.net, "s", .files = &files);
    said(&b, GCP_E_NAME, "; .style = GCP_STYLE_TORCH?; ", __LINE__);
    gcp_load(b.net, "s", .map = "head/weight fc.weight io", .partial = 1, .files = &files);
    said(&b, GCP_E_SHAPE, "s: fc.weight: found 5x72, expected 72x5 for head/weight", __LINE__);
    CHECK_INT(gcp_load(b.net, "s", .map = "head/* fc.*", .partial = 1, .files = &files), ==, 1);
    fine(&b, __LINE__);
    gcp_load(b.net, "s", .map = "* y.*", .partial = 1, .files = &files);
    said(&b, GCP_E_NAME, "s: found no tensor that the network has", __LINE__);
}

/* What .report says of the same file, and a name that "OURS -" leaves out. */
static void reports(void)
{
    run b;
    make(&b, other_memory, other_step, 2, 8, adam(GCP_POLICY_SEGMENTS));
    reported[0] = 0;
    gcp_load(b.net, "s", .style = GCP_STYLE_TORCH, .map = "head/weight fc.weight", .partial = 1, .files = &files,
             .report = { report_text, NULL });
    CHECK(strstr(reported, "head/weight fc.weight  # 5x72\n") != NULL);
    CHECK(strstr(reported, "head/bias head/bias  # not in the file\n") != NULL);
    gcp_load(b.net, "s", .style = GCP_STYLE_TORCH, .map = "head/* -\n* y.*", .files = &files);
    said(&b, GCP_E_NAME, "found no y.block[0]/conv2d[0]/weight", __LINE__);
    CHECK(gcp_save(b.net, "t", .map = "head/* -", .files = &files) == GCP_E_ARGUMENT);
    said(&b, GCP_E_ARGUMENT, "line 1 of .map: \"OURS -\" is for gcp_load", __LINE__);
    gcp_load(b.net, "s", .style = GCP_STYLE_TORCH, .partial = 1, .files = &files,
             .map = "head/* -\nblock[{i}]/batch_norm[0]/* layers.{i+11}.norm.*");
    fine(&b, __LINE__);
    CHECK(strstr(reported, "- layers.13.norm.weight  # ") && !strstr(reported, "- fc.weight"));
    fine(&b, __LINE__);
}

static void bad_maps(void)
{
    static const char *const maps[][2] = {
        { "a", "line 1 of .map: expected \"OURS THEIRS [LAYOUT]\"" },
        { "a b\nc d oihw e", "line 2 of .map: expected" },
        { "a b oihq", "a layout has letters" }, { "a b oo", "a layout has letters" },
        { "a b oi:7x7", "a layout has letters" }, { "a b ihow:7x7", "a layout has letters" },
        { "a b oihw:0x7", "a layout has letters" }, { "a b oihw:7", "a layout has letters" },
        { "{a} {b}", "a number on the right is not on the left" }, { "- {b}", "a number on the right" },
        { "{a+1} {a}", "a place is" }, { "{a} {a+0}", "a place is" },
        { "{a} {a+}", "a place is" }, { "{a} {a-1000}", "a place is" }, { "{a} {a+12", "a place is" },
        { "{A} x", "a place is" }, { "{a x", "a place is" },
        { "***** x", "at most 4 stars" },
        { "# a comment\n\nheed/* fc.*", "line 3 of .map: 'heed/*' fits no tensor of the network" },
        { "* a.*\nhead/* fc.*", "line 2 of .map: line 1 has all tensors that 'head/*' fits" },
        { "head/weight #new", "line 1 of .map: expected" }, { "a b oihw:+7x7", "a layout has letters" },
        { "head/weight a.*", "more stars on the right than on the left" },
    };
    run a;
    make(&a, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) {
        gcp_save(a.net, "m", .map = maps[i][0], .files = &files);
        said(&a, GCP_E_ARGUMENT, maps[i][1], __LINE__);
        CHECK_INT(gcp_load(a.net, "m", .map = maps[i][0], .files = &files), ==, 0);
        said(&a, GCP_E_ARGUMENT, maps[i][1], __LINE__);
    }
    gcp_save(a.net, "m", .map = "* same", .files = &files);
    said(&a, GCP_E_NAME, "m: two tensors would have the same name in it: ", __LINE__);
    gcp_save(a.net, "m", .map = "block[{b}]/* layers.{b-2}.*", .files = &files);
    said(&a, GCP_E_ARGUMENT, "block[0]/conv2d[0]/weight: its name in the file cannot be ''", __LINE__);
    gcp_save(a.net, "m", .map = "head/weight fc oihw:5x5", .files = &files);
    said(&a, GCP_E_ARGUMENT,
         "head/weight: its name in the file cannot be 'fc', or the layout oihw is not for it", __LINE__);
    gcp_save(a.net, "m", .style = (gcp_style)3, .files = &files);
    said(&a, GCP_E_ARGUMENT, "gcp_save: unknown .style", __LINE__);
    CHECK(!memory_find(&disk, "m") && !memory_parts(&disk));
}

/* Files that do not answer to the network, or to the map. */
static void bad_matches(void)
{
    run a, b;
    make(&a, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    gcp_save(a.net, "m", .files = &files);
    b.arena = gcp_arena_from(other_memory, sizeof other_memory);
    b.net = gcp_tape_make(&b.arena, .ops = 8);
    b.loss = gcp_mean(gcp_param(b.net, "bias", GCP_SHAPE(5)));
    bind(&b, other_step, (gcp_plan_opts) { .at = GCP_AT, .inference = 1 });
    CHECK_INT(gcp_load(b.net, "m", .map = "bias head/bias", .files = &files), ==, 0);
    said(&b, GCP_E_NAME, "which the network does not have (.map with \"- ", __LINE__);
    CHECK_INT(gcp_load(b.net, "m", .map = "bias head/bias", .partial = 1, .files = &files), ==, 1);
    CHECK_INT(gcp_load(b.net, "m", .map = "bias head/bias\n- block*\n- head/weight", .files = &files), ==, 1);
    fine(&b, __LINE__);
    CHECK_INT(gcp_load(a.net, "m", .map = "head/weight head/bias", .files = &files), ==, 0);
    said(&a, GCP_E_SHAPE, "head/bias: found 5, expected 5x72 for head/weight", __LINE__);
    CHECK_INT(gcp_load(a.net, "m", .map = "*/gamma block[0]/batch_norm[0]/gamma", .files = &files), ==, 0);
    said(&a, GCP_E_NAME, "block[0]/batch_norm[0]/gamma is asked for twice: for block[0]", __LINE__);
    CHECK_INT(gcp_load(a.net, "m", .map = "head/weight head/weight oihw:5x5", .files = &files), ==, 0);
    said(&a, GCP_E_SHAPE, "head/weight (5x72): the layout oihw is not for it", __LINE__);
}

/* An arena whose scratch is too small for what a file needs on its way: an error with a number, until it is enough;
   gcp_files_arena is. What can be saved can be resumed. */
static void small_arenas(void)
{
    run a, b;
    int refused = 0, weights = 0, runs = 0;
    size_t enough;
    make(&a, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    gcp_save(a.net, "m", .style = GCP_STYLE_TORCH, .files = &files);
    gcp_save_run(a.net, "r", .files = &files);
    enough = gcp_files_arena(a.net);
    for (size_t more = 0; more < enough + 512; more += 512) {
        make(&b, other_memory, other_step, 2, 8, adam(GCP_POLICY_SEGMENTS));
        gcp_arena own = gcp_arena_from(scratch_memory, more < enough ? more : enough);
        b.arena.size = b.arena.used;
        const int taken = gcp_load(b.net, "m", .style = GCP_STYLE_TORCH, .files = &files, .arena = &own) > 0;
        if (!taken) said(&b, GCP_E_NOMEM, " bytes of scratch, and the arena has ", __LINE__);
        const int resumed = gcp_resume_run(b.net, "r", .files = &files, .arena = &own);
        if (!resumed) said(&b, GCP_E_NOMEM, " bytes of scratch, and the arena has ", __LINE__);
        const int saved = gcp_save_run(b.net, "s", .files = &files, .arena = &own) == GCP_OK;
        if (!saved) said(&b, GCP_E_NOMEM, "s: resuming from it takes ", __LINE__);
        CHECK(saved == resumed && own.scratch == 0 && own.used == 0);
        CHECK(taken >= weights && resumed >= runs);
        weights = taken; runs = resumed;
        refused += !taken + !resumed;
    }
    CHECK(weights && runs && refused > 4 && enough < 32768);
    CHECK_INT(gcp_files_arena(NULL), ==, 0);
}

/* A new head of other sizes, under the old one's name: "- NAME" leaves it as it is. */
static void two_layers(run *r, unsigned char *memory, unsigned char *step, int classes)
{
    r->arena = gcp_arena_from(memory, sizeof tape_memory);
    r->net = gcp_tape_make(&r->arena, .ops = 8, .seed = (uint64_t)classes);
    r->image = gcp_input(r->net, "image", GCP_SHAPE(2, 6));
    r->loss = gcp_linear(gcp_linear(r->image, .out = 4, .name = "stem"), .out = classes, .name = "head");
    r->loss = gcp_mean(r->loss);
    bind(r, step, adam(GCP_POLICY_SEGMENTS));
}
static void new_head(void)
{
    run a, b;
    gcp_real before[3 * 4], head[3 * 4], stems[2][4 * 6];
    two_layers(&a, tape_memory, step_memory, 5);
    gcp_save(a.net, "m", .files = &files);
    two_layers(&b, other_memory, other_step, 3);
    CHECK_INT(gcp_load(b.net, "m", .partial = 1, .files = &files), ==, 0);
    said(&b, GCP_E_SHAPE, "head/weight: found 5x4, expected 3x4 for head/weight", __LINE__);
    gcp_read(&b.plan, gcp_find(b.net, "head/weight"), before);
    CHECK_INT(gcp_load(b.net, "m", .partial = 1, .map = "- head/*", .files = &files), ==, 2);
    fine(&b, __LINE__);
    gcp_read(&b.plan, gcp_find(b.net, "head/weight"), head);
    gcp_read(&a.plan, gcp_find(a.net, "stem/weight"), stems[0]);
    gcp_read(&b.plan, gcp_find(b.net, "stem/weight"), stems[1]);
    CHECK(!memcmp(head, before, sizeof head) && !memcmp(stems[0], stems[1], sizeof stems[0]));
    CHECK_INT(gcp_load(a.net, "m", .map = "- head/weight", .files = &files), ==, 0);
    said(&a, GCP_E_NAME, "m: a line of .map passes over head/weight, expected it for head/weight (.partial", __LINE__);
}

/* Names that a file cannot hold, no path, no memory yet. */
static void bad_names(void)
{
    run b;
    b.arena = gcp_arena_from(other_memory, sizeof other_memory);
    b.net = gcp_tape_make(&b.arena, .ops = 8);
    b.loss = gcp_mean(gcp_param(b.net, "gcp.run", GCP_SHAPE(5)));       /* as a run file's own */
    bind(&b, other_step, (gcp_plan_opts) { .at = GCP_AT, .inference = 1 });
    CHECK(gcp_save(b.net, "m", .files = &files) == GCP_OK);
    gcp_save_run(b.net, "m", .files = &files);
    said(&b, GCP_E_NAME, "m: gcp.run: names that begin with 'gcp.' are a run file's own", __LINE__);
    gcp_save(b.net, "m", .map = "* __metadata__", .files = &files);
    said(&b, GCP_E_ARGUMENT, "gcp.run: its name in the file cannot be '__metadata__'", __LINE__);
    CHECK_INT(gcp_resume_run(b.net, NULL, .files = &files), ==, 0);
    said(&b, GCP_E_ARGUMENT, "the path is NULL", __LINE__);
    record(&b, other_memory, sizeof other_memory, 1, 8);
    gcp_save(b.net, "m", .files = &files);
    said(&b, GCP_E_STATE, "gcp_save: the state has no memory yet: call gcp_bind", __LINE__);
}

/* The network of reference/make_weights.py, with the weights, input and logits that PyTorch wrote. */
static gcp_tensor small(gcp_tape *net, gcp_tensor x)
{
    x = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1)));
    for (int i = 0; i < 2; i++)
        GCP_SEGMENT(net, "block") {
            gcp_tensor y = gcp_conv2d(x, .out = 4, .k = 3, .pad = 1, .groups = 2, .no_bias = 1, .name = "conv");
            x = gcp_relu(gcp_add(gcp_batch_norm(y, .name = "norm"), x));
        }
    x = gcp_conv_transpose2d(gcp_max_pool(x, .k = 2), .out = 3, .k = 2, .stride = 2, .name = "up");
    return gcp_linear(gcp_flatten(x), .out = 5, .name = "fc");
}
/* Another one: channels that were flattened meet a norm and what is added to them, and become an image again. */
static gcp_tensor coder(gcp_tape *net, gcp_tensor x)
{
    x = gcp_batch_norm(gcp_flatten(gcp_conv2d(x, .out = 4, .k = 3, .pad = 1, .name = "conv")), .name = "norm");
    gcp_tensor code = gcp_relu(gcp_linear(x, .out = 5, .name = "code"));
    x = gcp_relu(gcp_add(x, gcp_linear(code, .out = 24, .name = "back")));
    (void)net;
    return gcp_conv2d(gcp_reshape(x, GCP_SHAPE(2, 2, 3, 4)), .out = 2, .k = 1, .name = "last");
}

/* A network with the weights, input and output that PyTorch wrote: the output comes out. */
static void from_pytorch(const char *path, gcp_tensor (*network)(gcp_tape *, gcp_tensor), const char *map, int tensors,
                         gcp_shape shape, gcp_shape result)
{
    static float image[2 * 6 * 6 * 3], expected[24], found[24];
    run a, b;
    a.arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    a.net = gcp_tape_make(&a.arena, .ops = 32);
    a.image = gcp_input(a.net, "image", shape);
    a.loss = network(a.net, a.image);
    bind(&a, step_memory, (gcp_plan_opts) { .at = GCP_AT, .inference = 1 });
    CHECK_INT(gcp_load(a.net, path, .style = GCP_STYLE_TORCH, .map = map), ==, tensors);
    b.arena = gcp_arena_from(other_memory, sizeof other_memory);
    b.net = gcp_tape_make(&b.arena, .ops = 8);
    gcp_tensor x = gcp_param(b.net, "image", shape), y = gcp_param(b.net, "logits", result);
    b.loss = gcp_add(gcp_mean(x), gcp_mean(y));
    bind(&b, other_step, (gcp_plan_opts) { .at = GCP_AT, .inference = 1 });
    CHECK_INT(gcp_load(b.net, path, .partial = 1, .map = "image image oihw"), ==, 2);
    gcp_read(&b.plan, x, image);
    gcp_read(&b.plan, y, expected);
    gcp_write(&a.plan, a.image, image);
    gcp_forward(&a.plan);
    gcp_read(&a.plan, a.loss, found);
    fine(&a, __LINE__); fine(&b, __LINE__);
    for (size_t i = 0; i < gcp_elements(y); i++) CHECK_NEAR(found[i], expected[i], 1e-5);
    gcp_save(a.net, "m", .style = GCP_STYLE_TORCH, .map = map, .files = &files);
    CHECK_INT(gcp_load(a.net, "m", .style = GCP_STYLE_TORCH, .map = map, .files = &files), ==, tensors);
    gcp_forward(&a.plan);
    gcp_read(&a.plan, a.loss, image);
    CHECK(!memcmp(image, found, gcp_elements(y) * sizeof *found));
}
#define SMALL "conv2d[0]/* stem.0.*\nbatch_norm[0]/* stem.1.*\nblock[{i}]/*/* blocks.{i}.*.*\n"
#define REST "*/* *.*\n- image\n- logits"

/* Where the order of a flattened image's channels cannot be told, PyTorch's layout must be given. */
static void order_in_doubt(void)
{
    run b;
    b.arena = gcp_arena_from(other_memory, sizeof other_memory);
    b.net = gcp_tape_make(&b.arena, .ops = 8);
    gcp_tensor x = gcp_input(b.net, "image", GCP_SHAPE(2, 2, 3, 4)), y = gcp_input(b.net, "more", GCP_SHAPE(2, 5));
    x = gcp_linear(gcp_concat(GCP_TENSORS(gcp_flatten(x), y)), .out = 3, .name = "head");
    b.loss = gcp_mean(x);
    bind(&b, other_step, adam(GCP_POLICY_SEGMENTS));
    CHECK(gcp_save(b.net, "m", .files = &files) == GCP_OK);
    gcp_save(b.net, "m", .style = GCP_STYLE_TORCH, .files = &files);
    said(&b, GCP_E_SHAPE, "m: head/weight: its order in PyTorch's file cannot be told", __LINE__);
    CHECK_INT(gcp_load(b.net, "m", .style = GCP_STYLE_TORCH, .files = &files), ==, 0);
    said(&b, GCP_E_SHAPE, "m: head/weight: its order in PyTorch's file cannot be told", __LINE__);
    CHECK_INT(gcp_load(b.net, "m", .style = GCP_STYLE_TORCH, .map = "head/weight head/weight oi", .files = &files), ==,
              2);
    fine(&b, __LINE__);
}

/* A custom op that hands on channels (GCP_FLAG_SAME_CHANNELS): those of the input that has as many as its output. */
static int as_widest(gcp_shape_call *c)
{
    c->out[0] = c->in[c->inputs > 1 && c->in[1].d[3] > c->in[0].d[3]];
    return 1;
}
static int as_half(gcp_shape_call *c) { c->out[0] = c->in[0]; c->out[0].d[3] /= 2; return 1; }
static void no_call(const gcp_call *c) { (void)c; }
static void order_through_custom(void)
{
    static const gcp_op gate = { .name = "gate", .shape = as_widest, .forward = no_call, .backward = no_call,
                                 .flags = GCP_FLAG_SAME_CHANNELS, .outputs = 1 },
                        half = { .name = "half", .shape = as_half, .forward = no_call, .backward = no_call,
                                 .flags = GCP_FLAG_SAME_CHANNELS, .outputs = 1 };
    static float written[3][16];
    for (int way = 0; way < 4; way++) {                  /* no op between; the flat one first; last; half of it */
        run b;
        b.arena = gcp_arena_from(other_memory, sizeof other_memory);
        b.net = gcp_tape_make(&b.arena, .ops = 16);
        gcp_tensor x = gcp_conv2d(gcp_input(b.net, "image", GCP_SHAPE(2, 2, 2, 2)), .out = 2, .k = 1);
        gcp_tensor flat = gcp_flatten(x), s = gcp_input(b.net, "s", GCP_SHAPE(2, 1));
        if (way == 1) flat = gcp_custom(GCP_TENSORS(flat, s), &gate);
        if (way == 2) flat = gcp_custom(GCP_TENSORS(s, flat), &gate);
        if (way == 3) flat = gcp_custom(&flat, 1, &half);
        b.loss = gcp_mean(gcp_linear(flat, .out = 2, .no_bias = 1, .name = "fc"));
        bind(&b, other_step, (gcp_plan_opts) { .at = GCP_AT });
        float weights[16];
        for (int i = 0; i < 16; i++) weights[i] = (float)i;
        gcp_write(&b.plan, gcp_find(b.net, "fc/weight"), weights);
        gcp_save(b.net, "m", .style = GCP_STYLE_TORCH, .files = &files);
        if (way == 3) said(&b, GCP_E_SHAPE, "m: fc/weight: its order in PyTorch's file cannot be told", __LINE__);
        else fine(&b, __LINE__);
        if (way == 3) continue;
        gcp_load(b.net, "m", .map = "fc/weight fc/weight oi", .partial = 1, .files = &files);
        gcp_read(&b.plan, gcp_find(b.net, "fc/weight"), written[way]);
        fine(&b, __LINE__);
    }
    CHECK(written[0][1] == 2 && written[0][4] == 1);
    CHECK(!memcmp(written[0], written[1], sizeof written[0]) && !memcmp(written[0], written[2], sizeof written[0]));
}

/* ---- runs ---- */

/* Ten steps; after `stop` of them the run is saved, and taken up by another tape with these options. */
static void unbroken(gcp_plan_opts first, gcp_plan_opts second, int far_slots, int stop)
{
    place at = { 0, 0 }, found = { 0, 0 };
    float losses[10];
    run a, b;
    make(&a, tape_memory, step_memory, 7, 8, first);
    for (int i = 0; i < 10; i++) {
        if (i == stop) {
            at.step = i; at.best = 0.5;
            CHECK(gcp_save_run(a.net, "run", .extra = &at, .extra_bytes = sizeof at, .files = &files) == GCP_OK);
        }
        losses[i] = train(&a, i);
    }
    record(&b, other_memory, sizeof other_memory, 1234, 8);
    if (far_slots) gcp_slots_bind(b.net, far_memory, sizeof far_memory);
    bind(&b, other_step, second);
    CHECK_INT(gcp_resume_run(b.net, "run", .extra = &found, .extra_bytes = sizeof found, .files = &files), ==, 1);
    CHECK(found.step == stop && found.best == 0.5 && gcp_steps_done(b.net) == (uint64_t)stop);
    for (int i = stop; i < 10; i++) {
        float loss = train(&b, i);
        CHECK(!memcmp(&loss, &losses[i], sizeof loss));
    }
    fine(&a, __LINE__); fine(&b, __LINE__);
    gcp_save_run(a.net, "a", .files = &files); gcp_save_run(b.net, "b", .files = &files);
    const memory_file *x = memory_find(&disk, "a"), *y = memory_find(&disk, "b");
    CHECK(x && y && x->size == y->size && !memcmp(x->bytes, y->bytes, x->size));
}
static void runs(void)
{
    gcp_plan_opts sgd = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 }, plain = sgd,
                  budget = adam(GCP_POLICY_BUDGET);
    plain.momentum = 0;
    unbroken(adam(GCP_POLICY_KEEP_ALL), adam(GCP_POLICY_SQRT), 0, 4);
    unbroken(adam(GCP_POLICY_KEEP_ALL), adam(GCP_POLICY_RECURSIVE), 1, 4);
    unbroken(sgd, sgd, 0, 1);
    unbroken(plain, plain, 0, 9);
    unbroken(sgd, sgd, 0, 0);
    run least;
    make(&least, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_KEEP_ALL));
    gcp_plan_opts least_opts = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_ADAM };
    budget.budget = gcp_least_budget_at(least.loss, least_opts);
    unbroken(budget, adam(GCP_POLICY_SEGMENTS), 1, 5);
    unbroken(adam(GCP_POLICY_SEGMENTS), budget, 0, 5);
}

/* What must not be taken up, and leaves the state as it was. */
static void refused(run *r, const char *path, place *extra, gcp_code code, const char *text, int line)
{
    uint64_t before = state(r, other_step);
    CHECK_INT(gcp_resume_run(r->net, path, .extra = extra, .extra_bytes = extra ? sizeof *extra : 0, .files = &files),
              ==, 0);
    said(r, code, text, line);
    CHECK(state(r, other_step) == before && disk.open == 0);
}
static void differences(void)
{
    place at = { 3, 1 };
    gcp_plan_opts sgd = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 },
                  infer = { .at = GCP_AT, .inference = 1 },
                  parts = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9, .accumulate = 2 };
    run a, b;
    make(&a, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_SEGMENTS));
    train(&a, 0);
    CHECK(gcp_save_run(a.net, "run", .extra = &at, .extra_bytes = sizeof at, .files = &files) == GCP_OK);
    make(&b, other_memory, other_step, 7, 6, adam(GCP_POLICY_SEGMENTS));
    refused(&b, "run", &at, GCP_E_SHAPE, "run: block[0]/conv2d[0]/weight: found 8x3x3x3, expected 6x3x3x3", __LINE__);
    make(&b, other_memory, other_step, 7, 8, sgd);
    refused(&b, "run", &at, GCP_E_STATE, "was trained with Adam, and the slots bound are SGD's",
            __LINE__);
    make(&b, other_memory, other_step, 7, 8, infer);
    refused(&b, "run", &at, GCP_E_STATE, "has slots of Adam: bind a plan with it first", __LINE__);
    CHECK_INT(gcp_load(b.net, "run", .files = &files), ==, 14);
    make(&b, other_memory, other_step, 7, 8, adam(GCP_POLICY_SEGMENTS));
    refused(&b, "run", NULL, GCP_E_ARGUMENT, "run: found 16 bytes of .extra, expected 0", __LINE__);
    CHECK_INT(gcp_resume_run(b.net, "none", .files = &files), ==, 0);
    fine(&b, __LINE__);
    gcp_save(a.net, "w", .files = &files);
    refused(&b, "w", NULL, GCP_E_CONTENTS, "w: is not a run file of gcp_save_run", __LINE__);
    make(&a, tape_memory, step_memory, 7, 8, parts);
    train(&a, 0);
    CHECK(gcp_save_run(a.net, "run", .files = &files) == GCP_E_STATE);
    said(&a, GCP_E_STATE, "between two micro-batches of .accumulate", __LINE__);
    CHECK(gcp_resume_run(a.net, "run", .files = &files) == 0);
    said(&a, GCP_E_STATE, "between two micro-batches of .accumulate", __LINE__);
    CHECK(gcp_load(a.net, "w", .files = &files) == 0);            /* gradients of other weights */
    said(&a, GCP_E_STATE, "between two micro-batches of .accumulate", __LINE__);
    train(&a, 0);
    CHECK(gcp_save_run(a.net, "run", .files = &files) == GCP_OK);
    train(&a, 1);
    gcp_unbind(&a.plan);                                            /* what was summed is given up */
    CHECK(gcp_save_run(a.net, "run", .files = &files) == GCP_OK);
    gcp_bind(&a.plan, step_memory, sizeof step_memory);
    CHECK_INT(gcp_resume_run(a.net, "run", .files = &files), ==, 1);
    train(&a, 1);
    fine(&a, __LINE__);
}

/* .extra and .extra_bytes go together; a table of files is whole. */
static void given_half(void)
{
    run a;
    place at = { 1, 2 };
    make(&a, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_SEGMENTS));
    gcp_save_run(a.net, "run", .extra = &at, .files = &files);
    said(&a, GCP_E_ARGUMENT, "gcp_save_run: .extra without .extra_bytes", __LINE__);
    CHECK_INT(gcp_resume_run(a.net, "run", .extra_bytes = 4, .files = &files), ==, 0);
    said(&a, GCP_E_ARGUMENT, "gcp_resume_run: .extra_bytes without .extra", __LINE__);
    gcp_files lame = files;
    lame.flush = NULL;
    gcp_save(a.net, "m", .files = &lame);
    said(&a, GCP_E_ARGUMENT, "m: a function of .files is NULL", __LINE__);
}

/* Frozen weights have no slots; when they thaw, theirs begin at zero, as in a run that was not stopped. */
static void thawed(void)
{
    gcp_plan_opts sgd = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 };
    run a, b;
    record(&a, tape_memory, sizeof tape_memory, 7, 8);
    gcp_freeze(gcp_find(a.net, "block[0]/conv2d[0]/weight"));
    bind(&a, step_memory, sgd);
    for (int i = 0; i < 3; i++) train(&a, i);
    CHECK(gcp_save_run(a.net, "frozen", .files = &files) == GCP_OK);
    make(&b, other_memory, other_step, 1, 8, sgd);
    for (int i = 0; i < 3; i++) train(&b, i);
    CHECK_INT(gcp_resume_run(b.net, "frozen", .files = &files), ==, 1);
    fine(&b, __LINE__);
    gcp_save_run(b.net, "thawed", .files = &files);
    CHECK(memory_find(&disk, "thawed")->size > memory_find(&disk, "frozen")->size);
    record(&a, tape_memory, sizeof tape_memory, 7, 8);
    gcp_freeze(gcp_find(a.net, "block[0]/conv2d[0]/weight"));
    bind(&a, step_memory, sgd);
    CHECK_INT(gcp_resume_run(a.net, "thawed", .files = &files), ==, 0);
    said(&a, GCP_E_STATE, "has gcp.slot0/block[0]/conv2d[0]/weight: bind the plan that trains it first", __LINE__);
}

/* ---- what fails ---- */

/* Saves until call number fail_at is beyond the last: before that the file of this hash stays. Returns how many
   failed. Call 1 looks for what dead writers left, which is no reason not to save. */
static int failing_saves(run *a, uint64_t old)
{
    for (disk.fail_at = 2;; disk.fail_at++) {
        disk.calls = 0;
        gcp_code code = gcp_save_run(a->net, "run", .files = &files);
        CHECK(disk.open == 0 && !disk.unflushed_renames && !memory_parts(&disk));
        const memory_file *f = memory_find(&disk, "run");
        if (disk.calls < disk.fail_at) { CHECK(code == GCP_OK); return disk.fail_at - 1; }
        CHECK(code == GCP_E_FILE && f && hash(f->bytes, f->size) == old);
        gcp_error_clear(a->net);
    }
}
static int failing_loads(run *b)
{
    for (disk.fail_at = 1;; disk.fail_at++) {
        disk.calls = 0;
        int taken = gcp_resume_run(b->net, "run", .files = &files);
        CHECK(disk.open == 0);
        if (disk.calls < disk.fail_at) { CHECK(taken == 1); return disk.fail_at - 1; }
        CHECK(gcp_error_code(b->net) == (taken ? GCP_OK : GCP_E_FILE));
        gcp_error_clear(b->net);
    }
}
static void short_and_full(run *a, run *b)
{
    disk.short_by = 7;
    CHECK(gcp_save_run(a->net, "short", .files = &files) == GCP_OK &&
          gcp_resume_run(b->net, "short", .files = &files) == 1);
    disk.short_by = 0;
    for (disk.full_at = 1; disk.full_at < 4000; disk.full_at += 333) {
        CHECK(gcp_save_run(a->net, "short", .files = &files) == GCP_E_FILE);
        said(a, GCP_E_FILE, "writing failed after", __LINE__);
        CHECK(!memory_parts(&disk));
    }
    disk.full_at = 0;
    disk.fail_at = 1;
    disk.calls = disk.persistent = 0;
    CHECK(gcp_save_run(a->net, "short", .files = &files) == GCP_OK);
    disk.fail_at = 0;
    CHECK_INT(gcp_resume_run(b->net, "short", .files = &files), ==, 1);
}

/* Each call to the disk fails once, or from then on; reads and writes may be short. */
static void every_failure(void)
{
    run a, b;
    make(&a, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_SEGMENTS));
    make(&b, other_memory, other_step, 3, 8, adam(GCP_POLICY_SEGMENTS));
    train(&a, 0);
    gcp_save_run(a.net, "run", .files = &files);
    memory_file *f = memory_find(&disk, "run");
    uint64_t old = hash(f->bytes, f->size), kept = state(&b, other_step);
    train(&a, 1);
    int saves = 0, loads = 0;
    for (disk.persistent = 0; disk.persistent < 2; disk.persistent++) {
        saves += failing_saves(&a, old);
        f = memory_find(&disk, "run");
        CHECK(hash(f->bytes, f->size) != old);
        old = hash(f->bytes, f->size);
        train(&a, 2);
        loads += failing_loads(&b);
        CHECK(state(&b, other_step) != kept);
    }
    disk.persistent = disk.fail_at = 0;
    CHECK(saves > 100 && loads > 100);
    short_and_full(&a, &b);
    fine(&a, __LINE__); fine(&b, __LINE__);
}

/* A small run file with each of its bits flipped, and cut off after each of its bytes: never taken up. */
static void every_bit(void)
{
    run a, b;
    gcp_plan_opts sgd = { .at = GCP_AT, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9 };
    for (int i = 0; i < 2; i++) {
        run *r = i ? &b : &a;
        r->arena = gcp_arena_from(i ? other_memory : tape_memory, sizeof tape_memory);
        r->net = gcp_tape_make(&r->arena, .ops = 8, .seed = (uint64_t)i);
        r->image = gcp_input(r->net, "x", GCP_SHAPE(2, 3));
        r->loss = gcp_mean(gcp_linear(r->image, .out = 4));
        bind(r, i ? other_step : step_memory, sgd);
    }
    gcp_save_run(a.net, "bits", .files = &files);
    memory_file *f = memory_find(&disk, "bits");
    const uint64_t before = state(&b, other_step);
    const size_t size = f->size;
    for (size_t bit = 0; bit < 8 * size; bit++) {
        f->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
        int taken = gcp_resume_run(b.net, "bits", .files = &files);
        if (taken || !gcp_error(b.net)) CHECK_INT(bit, ==, -1);
        gcp_error_clear(b.net);
        f->bytes[bit / 8] ^= (unsigned char)(1 << bit % 8);
    }
    for (f->size = 0; f->size < size; f->size++) {
        if (gcp_resume_run(b.net, "bits", .files = &files) || !gcp_error(b.net)) CHECK_INT(f->size, ==, -1);
        gcp_error_clear(b.net);
    }
    CHECK(state(&b, other_step) == before);
    CHECK_INT(gcp_resume_run(b.net, "bits", .files = &files), ==, 1);
    CHECK(state(&b, other_step) != before && !memcmp(step_memory, other_step, a.plan.state_bytes));
}

/* ---- headers ---- */

static void header_said(run *r, const char *json, size_t data, const char *text, int line)
{
    static unsigned char bytes[1 << 16];
    const size_t length = strlen(json);
    memset(bytes, 0, sizeof bytes);
    bytes[0] = (unsigned char)length; bytes[1] = (unsigned char)(length >> 8);
    memcpy(bytes + 8, json, length);
    memory_put(&disk, "h", bytes, 8 + length + data);
    int count = gcp_load(r->net, "h", .partial = 1, .map = "head/bias b", .files = &files);
    if (!text) { CHECK_INT(count, ==, 1); fine(r, line); return; }
    CHECK_INT(count, ==, 0);
    said(r,
         strstr(text, "F32, F64")   ? GCP_E_DTYPE
         : strstr(text, "for head") ? GCP_E_SHAPE
                                    : GCP_E_CONTENTS,
         text, line);
}
#define B "\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,20]"
/* Headers that are read, and sizes of the data that they do not fit. */
static void headers_read(run *r)
{
    header_said(r, "{\"b\":{" B "}}", 20, NULL, __LINE__);
    header_said(r, " { \"\\u0062\" : { " B " } } \n ", 20, NULL, __LINE__);
    header_said(r, "{\"__metadata__\":{\"a\\n\":\"\\\"\"},\"b\":{" B "}}", 20, NULL, __LINE__);
    header_said(
        r,
        "{\"b\":{\"data_offsets\":[8,18],\"dtype\":\"F16\",\"shape\":[1,5]},\"\\ud83d\\ude00\":{\"dtype\":\"I64\","
        "\"shape\":[],\"data_offsets\":[0,8]}}",
        18, NULL, __LINE__);
    header_said(r, "{\"b\":{" B "}}", 21, "found the end after 21 bytes of data, expected after 20", __LINE__);
    header_said(r, "{\"b\":{" B "}}", 19, "found the end after 19 bytes of data, expected after 20", __LINE__);
}
/* Entries twice, in part, and text around them. */
static void headers_broken(run *r)
{
    header_said(r, "{\"b\":{" B "},\"b\":{" B "}}", 20,
                "h: offset 8: b: found data from byte 0 on, expected from 20 on", __LINE__);
    header_said(r, "{\"b\":{" B "},\"b\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[20,20]}}", 20,
                "b: found twice", __LINE__);
    header_said(r, "{\"b\":{" B "}} x", 20, "found 'x', expected nothing but spaces", __LINE__);
    header_said(r, "{\"b\":{" B "}", 20, "found the header's end, expected ',' or '}'", __LINE__);
    header_said(r, "{\"b\":{" B ",}}", 20, "expected a text in double quotes", __LINE__);
    header_said(r, "{\"b\":{" B ",\"shape\":[5]}}", 20, "expected dtype, shape and data_offsets, once each", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5]}}", 20,
                "expected dtype, shape and data_offsets, once each", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F31\"}}", 20, "'F31' is no dtype that gcp knows", __LINE__);
}
/* What another writer added is passed over, if it is JSON. */
static void headers_more(run *r)
{
    static const char *const values[] = { "null", "true", "-0.5e+3", "\"\\u00e9\"", "[]", "{}", "[1,[2,{}],3]",
                                          "0e999", "1e-400", "1.5e308", "18446744073709551616e288",
                                          "{\"a\":{\"b\":[null]},\"c\":1E9}" };
    static const char *const wrong[] = { "nul", "-", "01", "1.", "1e", "[1,]", "[1", "{\"a\"}", "{1:2}",
                                         "{\"a\":1,}", "'a'", "\"\\x\"", "]", "+1", "1e309", "1e99999999999999999999",
                                         "18446744073709551616e289" };
    char json[1024], deep[512];
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        snprintf(json, sizeof json, "{\"b\":{\"note\":%s," B "}}", values[i]);
        header_said(r, json, 20, NULL, __LINE__);
    }
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        snprintf(json, sizeof json, "{\"b\":{\"note\":%s," B "}}", wrong[i]);
        header_said(r, json, 20, "expected", __LINE__);
    }
    header_said(r, "{\"__metadata__\":null,\"b\":{" B "}}", 20, NULL, __LINE__);
    header_said(r, "{\"__metadata__\":nil,\"b\":{" B "}}", 20, "found 'n', expected '{'", __LINE__);
    for (int depth = 125; depth <= 126; depth++) {
        memset(deep, '[', (size_t)depth);
        memset(deep + depth, ']', (size_t)depth);
        snprintf(json, sizeof json, "{\"b\":{\"note\":%.*s," B "}}", 2 * depth, deep);
        header_said(r, json, 20, depth == 125 ? NULL : "expected fewer values inside each other", __LINE__);
    }
}
/* As many tensors as are allowed, and what is no tensor behind them. */
static void headers_full(run *r)
{
    enum { MOST = 65536, ROOM = 1 << 25 };
    unsigned char *bytes = (unsigned char *)malloc(ROOM), *scratch = (unsigned char *)malloc(ROOM);
    char *text = (char *)bytes + 8;
    if (!bytes || !scratch) abort();
    for (int more = 0; more < 2; more++) {
        gcp_arena arena = gcp_arena_from(scratch, ROOM);
        size_t n = (size_t)sprintf(text, "{\"b\":{" B "}");
        for (int i = 1; i < MOST + more; i++)
            n += (size_t)sprintf(text + n, ",\"%d\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[20,20]}", i);
        n += (size_t)sprintf(text + n, ",\"__metadata__\":null}");
        for (int i = 0; i < 8; i++) bytes[i] = (unsigned char)((uint64_t)n >> 8 * i);
        memset(text + n, 0, 20);
        memory_put(&disk, "full", bytes, 8 + n + 20);
        int count = gcp_load(r->net, "full", .partial = 1, .map = "head/bias b", .files = &files, .arena = &arena);
        CHECK_INT(count, ==, !more);
        if (more) said(r, GCP_E_CONTENTS, "expected fewer tensors", __LINE__);
        fine(r, __LINE__);
    }
    memory_remove(&disk, "full");
    free(bytes);
    free(scratch);
}
/* Numbers, and what they say of a tensor. */
static void headers_numbers(run *r)
{
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[18446744073709551621],\"data_offsets\":[0,20]}}", 20,
                "expected a whole number below 2^64", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,18446744073709551636]}}", 20,
                "expected a whole number below 2^64", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0,18446744073709551615]}}", 20,
                "b: found data_offsets [0, 18446744073709551615]", __LINE__);
    header_said(r,
                "{\"b\":{" B "},\"e\":{\"dtype\":\"U8\",\"shape\":[0,18446744073709551615],"
                "\"data_offsets\":[20,20]}}",
                20, NULL, __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[-5]}}", 20, "found '-', expected a whole number", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[05]}}", 20, "expected a whole number", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5.0]}}", 20, "found '.', expected ',' or ']'", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[99999999999999999999]}}", 20, "expected a whole number",
                __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1]}}", 20, "expected at most eight sizes",
                __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[0]}}", 20, "expected two offsets",
                __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5],\"data_offsets\":[20,0]}}", 20,
                "b: found data_offsets [20, 0]", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,20]}}", 20,
                "b: found data_offsets", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296,0],\"data_offsets\":[0,20]}}", 20,
                "b: found data_offsets", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"I32\",\"shape\":[5],\"data_offsets\":[0,20]}}", 20,
                "b: found I32, expected F32, F64, F16 or BF16", __LINE__);
    header_said(r, "{\"b\":{\"dtype\":\"F32\",\"shape\":[5,1,2],\"data_offsets\":[0,40]}}", 40,
                "b: found 5x1x2, expected 5 for head/bias", __LINE__);
}
/* Texts: what may stand in one, and what is UTF-8. */
static void headers_texts(run *r)
{
    header_said(r, "{\"\\u0000\":{" B "}}", 20, "expected a character", __LINE__);
    header_said(r, "{\"\\ud800\":{" B "}}", 20, "expected the second half of a pair", __LINE__);
    header_said(r, "{\"\\ud800\\u0041\":{" B "}}", 20, "expected the second half of a pair of surrogates before",
                __LINE__);
    header_said(r, "{\"\\ud8g0\":{" B "}}", 20, "expected four hexadecimal digits after", __LINE__);
    header_said(r, "{\"\\uD83D\\ude00\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[0,0]},\"b\":{" B "}}", 20,
                NULL, __LINE__);
    char longest[1200] = "{\"b\":{" B "},\"";
    const size_t begin = strlen(longest);
    memset(longest + begin, 'n', 1025);
    snprintf(longest + begin + 1025, sizeof longest - begin - 1025, "\":{}}");
    header_said(r, longest, 20, "expected a name of at most 1024 bytes", __LINE__);
    header_said(r, "{\"\\x\":{" B "}}", 20, "found 'x', expected a character that can follow", __LINE__);
    header_said(r, "{\"\t\":{" B "}}", 20, "found byte 0x09, expected a character of a text", __LINE__);
    header_said(r, "{\"__metadata__\":{\"a\":1},\"b\":{" B "}}", 20, "found '1', expected a text in double quotes",
                __LINE__);
    static const char *const names[] = { "\xc3\xa9",     "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\xc0\x80",
                                         "\xe0\x80\x80", "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xff",
                                         "\x80",         "\xc3" };
    for (int i = 0; i < 10; i++) {
        char json[160];
        snprintf(json, sizeof json, "{\"b\":{" B "},\"%s\":{\"dtype\":\"U8\",\"shape\":[0],\"data_offsets\":[20,20]}}",
                 names[i]);
        header_said(r, json, 20, i < 3 ? NULL : ", expected UTF-8", __LINE__);
    }
}
/* No header at all. */
static void headers_none(run *r)
{
    header_said(r, "{}", 1, "found the end after 1 bytes of data", __LINE__);
    memory_put(&disk, "h", "1234567", 7);
    gcp_load(r->net, "h", .files = &files);
    said(r, GCP_E_CONTENTS, "h: offset 0: found 7 bytes, expected a safetensors file", __LINE__);
    memory_put(&disk, "h", "\xff\xff\xff\xff\xff\xff\xff\xff{}", 10);
    gcp_load(r->net, "h", .files = &files);
    said(r, GCP_E_CONTENTS, "found a header of 18446744073709551615 bytes, expected 2 to 2", __LINE__);
    static const struct { const char *bytes, *said; } others[] = {
        { "PK\3\4\0\0\0\0\0\0", "found a file of torch.save (safetensors.torch.save_file(" },
        { "\x80\2\x8a\x0a\0\0\0\0\0\0", "found a file of torch.save (safetensors.torch.save_file(" },
        { "\x89HDF\r\n\0\0\0\0", "found an HDF5 file (.h5), expected a safetensors file" },
        { "GGUF\3\0\0\0\0\0", "found a GGUF file, expected a safetensors file" },
        { "\x40\0\0\0\0\0\0\0{}", "found 2 bytes of a header of 64: the file was cut, or is no safetensors file" } };
    for (int i = 0; i < 5; i++) {
        memory_put(&disk, "h", others[i].bytes, 10);
        gcp_load(r->net, "h", .files = &files);
        said(r, GCP_E_CONTENTS, others[i].said, __LINE__);
    }
    gcp_load(r->net, "nowhere", .files = &files);
    said(r, GCP_E_FILE, "test_files.c:", __LINE__);
}
#undef B
static void headers(void)
{
    run r;
    make(&r, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    headers_read(&r);
    headers_broken(&r);
    headers_more(&r);
    headers_full(&r);
    headers_numbers(&r);
    headers_texts(&r);
    headers_none(&r);
}

/* F16 and BF16, with the values below the normal ones, and the infinite. */
static void halves(void)
{
    static const struct { unsigned bits; float value;
    } half[] = { { 0x3c00, 1 },
                 { 0xc000, -2 },
                 { 0x0001, 5.9604644775390625e-8f },
                 { 0x83ff, -6.097555160522461e-5f },
                 { 0x7bff, 65504 } };
    run r;
    make(&r, tape_memory, step_memory, 1, 8, adam(GCP_POLICY_SEGMENTS));
    unsigned char bytes[200] = { 0 };
    float values[5];
    for (int type = 0; type < 2; type++) {
        const int length =
            sprintf((char *)bytes + 8, "{\"head/bias\":{\"dtype\":\"%s\",\"shape\":[5],\"data_offsets\":[0,10]}}",
                    type ? "BF16" : "F16");
        bytes[0] = (unsigned char)length;
        for (int i = 0; i < 5; i++) {
            unsigned bits = half[i].bits;
            if (type) { uint32_t word; memcpy(&word, &half[i].value, 4); bits = word >> 16; }
            bytes[8 + length + 2 * i] = (unsigned char)bits;
            bytes[9 + length + 2 * i] = (unsigned char)(bits >> 8);
        }
        memory_put(&disk, "half", bytes, (size_t)length + 18);
        CHECK_INT(gcp_load(r.net, "half", .partial = 1, .files = &files), ==, 1);
        fine(&r, __LINE__);
        gcp_read(&r.plan, gcp_find(r.net, "head/bias"), values);
        for (int i = 0; i < 5; i++)
            CHECK_NEAR(values[i], half[i].value, type ? fabs((double)half[i].value) / 128 : 0);
    }
}

/* The disk itself: what stands there afterwards is the new file, and no other. */

typedef struct named { const char *prefix; int count; } named;
static void named_too(void *arg, const char *name)
{
    named *n = (named *)arg;
    n->count += !strncmp(name, n->prefix, strlen(n->prefix));
}
static int files_named(const char *prefix)
{
    named n = { prefix, 0 };
    gcp_stdio()->list(NULL, ".", named_too, &n);
    return n.count;
}

/* A disk whose flush fails: what was written aside is removed. */
static int no_flush(void *context, void *file) { (void)context; (void)file; return 0; }
static void no_leftover(void)
{
    run a;
    gcp_files broken = *gcp_stdio();
    broken.flush = no_flush;
    make(&a, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_SEGMENTS));
    CHECK(gcp_save(a.net, "files_left.w", .files = &broken) == GCP_E_FILE);
    said(&a, GCP_E_FILE, "files_left.w", __LINE__);
    CHECK(files_named("files_left.w") == 0);
    gcp_save_run(a.net, "files_left.run", .extra = &a, .extra_bytes = SIZE_MAX);
    said(&a, GCP_E_ARGUMENT, ": no object is as large", __LINE__);
#ifndef _WIN32
    if (system("mkfifo files_pipe")) return;             /* what is no file stays */
    CHECK(gcp_save(a.net, "files_pipe") == GCP_E_FILE);
    said(&a, GCP_E_FILE, "files_pipe: cannot be replaced by the new file", __LINE__);
    CHECK(system("test -p files_pipe") == 0 && files_named("files_pipe") == 1);
    CHECK_INT(gcp_load(a.net, "files_pipe"), ==, 0);     /* at once, though nobody writes there */
    said(&a, GCP_E_FILE, "files_pipe: cannot be opened (a regular file", __LINE__);
    CHECK_INT(gcp_resume_run(a.net, "files_pipe"), ==, 0);
    said(&a, GCP_E_FILE, "files_pipe: cannot be opened (a regular file", __LINE__);
    remove("files_pipe");
#endif
}

/* A disk on which the first name that a save asks for is taken, by a link. */
static int links;
static void *open_beside_link(void *context, const char *path, int write)
{
    char link[400];
    snprintf(link, sizeof link, "echo kept > files_b.kept && ln -sf files_b.kept '%s'", path);
    if (write && !links++ && system(link)) return NULL;
    return gcp_stdio()->open(context, path, write);
}
/* A disk that falls asleep before its first flush, while another save finds this one's file old, removes it, and is
   killed in the middle of its own. */
static run *sleeper;
static int slept, writes, removed;
static size_t write_until_killed(void *context, void *file, const void *from, size_t size)
{
    return writes++ ? 0 : gcp_stdio()->write(context, file, from, size);
}
static void remove_once(void *context, const char *path) { if (!removed++) gcp_stdio()->remove(context, path); }
static int flush_after_sleep(void *context, void *file)
{
    gcp_files killed = *gcp_stdio();
    killed.write = write_until_killed;
    killed.remove = remove_once;
    if (!slept++) {
        CHECK(system("touch -d '2 minutes ago' files_b.w.gcp-*.part") == 0);
        CHECK(gcp_save(sleeper->net, "files_b.w", .files = &killed) == GCP_E_FILE && removed == 2);
        gcp_error_clear(sleeper->net);
    }
    return gcp_stdio()->flush(context, file);
}
static void saves_in_turn(run *a, run *b)
{
    gcp_files sleepy = *gcp_stdio();
    sleepy.flush = flush_after_sleep;
    sleeper = b;
    CHECK(system("rm -f files_b.w.gcp-*.part") == 0);
    CHECK(gcp_save(a->net, "files_b.w", .files = &sleepy) == GCP_E_FILE);
    said(a, GCP_E_FILE, "files_b.w: cannot be replaced by the new file", __LINE__);
    CHECK(gcp_load(b->net, "files_b.w") > 0);           /* the old file */
    fine(b, __LINE__);
}
/* Names of new files: what dead writers left goes after a minute, what others might still write stays, and a name that
   is taken, be it by a link, is not written through. */
static void beside(void)
{
#ifndef _WIN32
    static const char *const old = "touch -d '2 minutes ago' files_b.w.gcp-1-0.part files_b.w.part "
                                   "files_b.w.gcp-1.part 'files_b.w.gcp-+5-1.part' 'files_b.w.gcp- 5-1.part' "
                                   "files_b.w.gcp-1-1.parts";
    run a, b;
    gcp_files taken = *gcp_stdio();
    taken.open = open_beside_link;
    make(&a, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_SEGMENTS));
    make(&b, other_memory, other_step, 3, 8, adam(GCP_POLICY_SEGMENTS));
    CHECK(system(old) == 0 && system("touch files_b.w.gcp-1-1.part") == 0);
    CHECK(gcp_save(a.net, "files_b.w", .files = &taken) == GCP_OK);
    CHECK(system("test ! -e files_b.w.gcp-1-0.part && test -e files_b.w.gcp-1-1.part && test -e files_b.w.part") == 0);
    CHECK(system("test -e files_b.w.gcp-1.part && test -e 'files_b.w.gcp-+5-1.part'") == 0);
    CHECK(system("test -e 'files_b.w.gcp- 5-1.part' && test -e files_b.w.gcp-1-1.parts") == 0);
    CHECK(links == 2 && system("test $(cat files_b.kept) = kept") == 0);
    CHECK(gcp_load(a.net, "./files_b.w") > 0);
    fine(&a, __LINE__);
    saves_in_turn(&a, &b);
    CHECK(system("rm -f files_b.*") == 0);
#endif
}

static void on_disk(void)
{
    run a, b;
    make(&a, tape_memory, step_memory, 7, 8, adam(GCP_POLICY_SEGMENTS));
    make(&b, other_memory, other_step, 3, 8, adam(GCP_POLICY_SEGMENTS));
    place at = { 0, 0 };
    for (int i = 0; i < 2; i++) {
        train(&a, i);
        at.step++;
        CHECK(gcp_save_run(a.net, "files_run.gcp", .extra = &at, .extra_bytes = sizeof at) == GCP_OK);
    }
    at.step = 0;
    CHECK_INT(gcp_resume_run(b.net, "./files_run.gcp", .extra = &at, .extra_bytes = sizeof at), ==, 1);
    CHECK(at.step == 2 && !memcmp(step_memory, other_step, a.plan.state_bytes));
    CHECK(files_named("files_run.gcp") == 1);
    CHECK_INT(gcp_resume_run(b.net, "files_none.gcp"), ==, 0);
    fine(&b, __LINE__);
    CHECK(gcp_save(a.net, "no_such_folder/w") == GCP_E_FILE);
    said(&a, GCP_E_FILE, "no_such_folder/w: cannot be written: no new file can be made beside it (is its", __LINE__);
    remove("files_run.gcp");
}

/* A dense layer from a file that has it as a 1x1 convolution, a bias with a row of its own: saved, they are as they
   came. A line of .map that gives a layout, and another style, have their own. */
static void axes_of_one(void)
{
    static const char json[] =
        "{\"linear.bias\":{\"dtype\":\"F32\",\"shape\":[1,2],\"data_offsets\":[0,8]},"
        "\"linear.weight\":{\"dtype\":\"F32\",\"shape\":[2,3,1,1],\"data_offsets\":[8,32]}}     ";
    static const char map[] = "linear[0]/* linear.*";
    unsigned char bytes[8 + sizeof json - 1 + 32] = { (sizeof json - 1) & 255 };
    gcp_arena a = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&a, .ops = 8);
    gcp_tensor y = gcp_linear(gcp_input(net, "x", GCP_SHAPE(1, 3)), .out = 2);
    gcp_plan plan = gcp_plan_make(gcp_mean(y));
    memcpy(bytes + 8, json, sizeof json - 1);
    memory_put(&disk, "ones", bytes, sizeof bytes);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    for (int loaded = 0; loaded < 2; loaded++) {
        const char *weight = loaded ? "\"shape\":[2,3,1,1]" : "\"shape\":[2,3]";
        const char *bias = loaded ? "\"shape\":[1,2]" : "\"shape\":[2]";
        if (loaded) CHECK_INT(gcp_load(net, "ones", .style = GCP_STYLE_TORCH, .map = map, .files = &files), ==, 2);
        CHECK(gcp_save(net, "again", .style = GCP_STYLE_TORCH, .map = map, .files = &files) == GCP_OK);
        const char *text = (const char *)memory_find(&disk, "again")->bytes + 8;
        CHECK(strstr(text, weight) && strstr(text, bias));
        CHECK_INT(gcp_load(net, "again", .style = GCP_STYLE_TORCH, .map = map, .files = &files), ==, 2);
    }
    CHECK(gcp_save(net, "other", .style = GCP_STYLE_KERAS, .files = &files) == GCP_OK);
    CHECK(strstr((const char *)memory_find(&disk, "other")->bytes + 8, "\"shape\":[3,2]") != NULL);
    CHECK(gcp_load(net, "other", .style = GCP_STYLE_KERAS, .files = &files) == 2);       /* each style has its own */
    CHECK(gcp_save(net, "again", .style = GCP_STYLE_TORCH, .map = map, .files = &files) == GCP_OK);
    CHECK(strstr((const char *)memory_find(&disk, "again")->bytes + 8, "\"shape\":[2,3,1,1]") != NULL);
    CHECK(gcp_save(net, "mapped", .style = GCP_STYLE_TORCH, .map = "linear[0]/weight w oi", .files = &files) == GCP_OK);
    CHECK(strstr((const char *)memory_find(&disk, "mapped")->bytes + 8, "\"shape\":[2,3]}") ||
          strstr((const char *)memory_find(&disk, "mapped")->bytes + 8, "\"shape\":[2,3],") != NULL);
    CHECK(!gcp_error(net));
}

/* One value without any axis. */
static void no_axes(void)
{
    static const char json[] = "{\"b\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}     ";
    unsigned char bytes[8 + sizeof json - 1 + 4] = { sizeof json - 1 };
    gcp_arena a = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_tape *net = gcp_tape_make(&a, .ops = 8);
    gcp_tensor x = gcp_input(net, "x", GCP_SHAPE(2, 1));
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_bias(x, gcp_param(net, "b", GCP_SHAPE(1)))));
    memcpy(bytes + 8, json, sizeof json - 1);
    memory_put(&disk, "scalar", bytes, sizeof bytes);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    CHECK(gcp_load(net, "scalar", .files = &files) == 1 && gcp_save(net, "again", .files = &files) == GCP_OK);
    CHECK(strstr((const char *)memory_find(&disk, "again")->bytes + 8, "\"shape\":[]") && !gcp_error(net));
}

int main(void)
{
    files = memory_files(&disk);
    weights();
    styles();
    other_names();
    reports();
    bad_maps();
    bad_matches();
    small_arenas();
    new_head();
    bad_names();
    from_pytorch(TEST_DATA "/tests/reference/small.safetensors", small, SMALL "fc/weight fc.weight oihw:6x6\n" REST, 20,
                 GCP_SHAPE(2, 6, 6, 3), GCP_SHAPE(2, 5));
    from_pytorch(TEST_DATA "/tests/reference/small_bf16.safetensors", small, SMALL REST, 20,
                 GCP_SHAPE(2, 6, 6, 3), GCP_SHAPE(2, 5));
    from_pytorch(TEST_DATA "/tests/reference/coder.safetensors", coder, REST, 12, GCP_SHAPE(2, 2, 3, 3),
                 GCP_SHAPE(2, 2, 3, 2));
    order_in_doubt();
    order_through_custom();
    runs();
    differences();
    given_half();
    thawed();
    every_failure();
    every_bit();
    headers();
    halves();
    no_leftover();
    beside();
    on_disk();
    axes_of_one();
    no_axes();
    memory_free(&disk);
    return check_done();
}
