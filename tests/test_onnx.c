/* A network from a file of PyTorch's (reference/small.onnx): recorded, trained and saved again; what is asked for
   wrongly; arenas that are too small; files that fail or are cut off. That single ops are right is test_onnx_cases'. */
#include <stdlib.h>
#include "gcp.h"
#include "gcp_io.h"
#include "gcp_onnx.h"
#include "support/check.h"

#define SMALL TEST_DATA "/tests/reference/small.onnx"
enum { BATCH = 4, PIXELS = BATCH * 3 * 8 * 8, CLASSES = 5 };

static unsigned char file_memory[1 << 20], tape_memory[1 << 21], step_memory[1 << 20], other_memory[3][1 << 21];

/* A network of the file and its plans, in memory of its own. */
typedef struct trained {
    gcp_onnx model;
    gcp_tape *net;
    gcp_tensor labels, logits, loss;
    gcp_plan plan, see;
    gcp_arena files, tapes;
    unsigned char *step;
} trained;

static int classes = CLASSES; /* of the networks that begin() makes */
static void begin(trained *t, const char *path, unsigned char *files, unsigned char *tapes, unsigned char *step,
                  gcp_policy policy)
{
    t->files = gcp_arena_from(files, sizeof file_memory);
    t->tapes = gcp_arena_from(tapes, sizeof tape_memory);
    t->model = gcp_onnx_open(&t->files, path);
    CHECK_TEXT(t->model.error, "");
    t->net = gcp_tape_make(&t->tapes, .ops = t->model.ops);
    CHECK_INT(gcp_onnx_record(t->net, &t->model, .batch = BATCH, .classes = classes), ==, GCP_OK);
    t->labels = gcp_labels(t->net, "labels", GCP_SHAPE(BATCH));
    t->logits = gcp_keep(gcp_onnx_output(&t->model, 0));
    t->loss = gcp_cross_entropy(t->logits, t->labels);
    t->plan = gcp_plan_make(t->loss, .policy = policy, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    t->see = gcp_plan_make(t->logits, .inference = 1, .policy = GCP_POLICY_KEEP_ALL);
    t->step = step;
    gcp_bind(&t->plan, step, sizeof step_memory);
    gcp_bind(&t->see, step, sizeof step_memory);
    CHECK_INT(gcp_onnx_load(t->net, &t->model), >, 20);
    CHECK(gcp_error(t->net) == NULL);
}
static double step(trained *t, int number)
{
    gcp_real image[PIXELS];
    int32_t labels[BATCH];
    for (int i = 0; i < PIXELS; i++) image[i] = (gcp_real)((i * 7 + number * 5) % 13) / 13;
    for (int i = 0; i < BATCH; i++) labels[i] = (i + number) % CLASSES;
    gcp_onnx_write(&t->plan, &t->model, 0, image);
    gcp_write(&t->plan, t->labels, labels);
    return gcp_step(&t->plan, .lr = 0.05);
}
static void forward(trained *t, gcp_real *out)
{
    gcp_real image[PIXELS];
    for (int i = 0; i < PIXELS; i++) image[i] = (gcp_real)(i % 11) / 11;
    gcp_onnx_write(&t->see, &t->model, 0, image);
    gcp_forward(&t->see);
    CHECK_INT(gcp_onnx_read(&t->see, &t->model, 0, out), ==, GCP_OK);
}

/* What a report says of a plan; "" where it cannot be had. */
static const char *printed(const gcp_plan *plan, void (*print)(const gcp_plan *plan, gcp_writer out))
{
    static char text[1 << 16];
    FILE *f = tmpfile();
    CHECK(f && plan->core);
    if (!f) return "";
    print(plan, gcp_file(f));
    rewind(f);
    text[fread(text, 1, sizeof text - 1, f)] = 0;
    fclose(f);
    return text;
}
/* Segments have the names of blocks, parameters those of initialisers, attention and silu are one op each. */
static void what_is_recorded(void)
{
    trained t;
    char name[96];
    int attention = 0, silu = 0, segments = 0, transposes = 0;
    begin(&t, SMALL, file_memory, tape_memory, step_memory, GCP_POLICY_SEGMENTS);
    CHECK(!gcp_is_nil(gcp_find(t.net, "layer1.0.conv1.weight")));
    CHECK(!gcp_is_nil(gcp_find(t.net, "fc.bias")));
    CHECK_INT(gcp_shape_of(gcp_onnx_input(&t.model, 0)).d[3], ==, 3);
    CHECK_INT(gcp_shape_of(t.logits).d[3], ==, CLASSES);
    CHECK(gcp_is_nil(gcp_onnx_input(&t.model, 1)) && gcp_is_nil(gcp_onnx_output(&t.model, 1)));
    for (const char *at = printed(&t.plan, gcp_plan_print); (at = strstr(at, "F ")) != NULL; at++) {
        attention += !strncmp(at + 2, "attention[", 10);
        silu += strstr(at, "silu") && strstr(at, "silu") < at + 40;
        segments += !strncmp(at + 2, "layer1[1]/", 10);
        transposes += !strncmp(at + 2, "transpose[", 10);
    }
    CHECK_INT(attention, ==, 1);
    CHECK_INT(silu, ==, 2);
    CHECK_INT(segments, >, 3);
    CHECK_INT(transposes, ==, 0); /* every Transpose of the file was an order */
    CHECK_TEXT(gcp_name(gcp_find(t.net, "image"), name, sizeof name), "image");
}

/* How often an op is on the plan's list of forward. */
static int count_of(gcp_plan *plan, const char *op)
{
    const size_t length = strlen(op);
    int count = 0;
    for (const char *line = printed(plan, gcp_layers_print); *line; line = strchr(line, '\n') + 1)
        count += !strncmp(line, op, length) && line[length] == '[';
    return count;
}
static gcp_tape *fresh(gcp_arena *tapes, const gcp_onnx *model)
{
    *tapes = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(tapes, .ops = model->ops);
}
/* What an older opset has in pieces (reference/pieces.onnx) is one op each, with PyTorch's results. */
static void pieces(void)
{
    static const char *const once[] = { "gelu",     "gelu_tanh",  "mish",         "silu",
                                        "rms_norm", "layer_norm", "hard_sigmoid", "hard_swish" };
    static const double torch[] = { -0.8813209533691406, -0.5043894052505493, -2.068511962890625,  -0.11235430836677551,
                                    -1.2084013223648071, -0.6795735359191895, -0.7750005722045898, -1.7830009460449219,
                                    0.14043468236923218, -1.4447638988494873 };
    gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory),
              tapes = gcp_arena_from(tape_memory, sizeof tape_memory);
    gcp_onnx model = gcp_onnx_open(&files, TEST_DATA "/tests/reference/pieces.onnx");
    gcp_tape *net = gcp_tape_make(&tapes, .ops = model.ops);
    gcp_real x[48], y[10];
    gcp_onnx_record(net, &model, .batch = 2);
    gcp_plan plan = gcp_plan_make(gcp_onnx_output(&model, 0), .inference = 1);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_onnx_load(net, &model);
    for (int i = 0; i < 48; i++) x[i] = (gcp_real)(i % 11) / 11;
    gcp_onnx_write(&plan, &model, 0, x);
    gcp_forward(&plan);
    CHECK_INT(gcp_onnx_read(&plan, &model, 0, y), ==, GCP_OK);
    for (int i = 0; i < 10 && !gcp_error(net); i++) CHECK_NEAR((double)y[i], torch[i], 2e-6);
    for (size_t i = 0; i < sizeof once / sizeof *once; i++) CHECK_INT(count_of(&plan, once[i]), ==, 1);
    CHECK_INT(count_of(&plan, "linear"), ==, 4);
    CHECK_INT(count_of(&plan, "add"), ==, 1); /* biases are the products' */
    CHECK_INT(count_of(&plan, "dropout"), ==, 1);
    CHECK_INT(gcp_onnx_save(net, &model, "used.onnx", .inference = 1), ==, GCP_OK);
    gcp_unbind(&plan);
    files = gcp_arena_from(file_memory, sizeof file_memory);
    model = gcp_onnx_open(&files, "used.onnx");
    net = fresh(&tapes, &model);
    CHECK_INT(gcp_onnx_record(net, &model, .batch = 2), ==, GCP_OK);
    plan = gcp_plan_make(gcp_onnx_output(&model, 0), .inference = 1);
    CHECK_INT(count_of(&plan, "dropout"), ==, 0); /* stochastic depth is an Identity there */
}

/* Weights that are Constants (reference/constants.onnx) train, and are saved in their places. */
static void constants(void)
{
    enum { ROWS = 2, IN = ROWS * 24, OUT = ROWS * 5 };
    gcp_real x[IN], first[OUT], after[OUT], again[OUT], *result[] = { first, after, again };
    for (int i = 0; i < IN; i++) x[i] = (gcp_real)(i % 11) / 11;
    for (int i = 0; i < 2; i++) {
        gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory), tapes;
        gcp_onnx model = gcp_onnx_open(&files, i ? "constants.onnx" : TEST_DATA "/tests/reference/constants.onnx");
        gcp_tape *net = fresh(&tapes, &model);
        CHECK_INT(gcp_onnx_record(net, &model, .batch = ROWS), ==, GCP_OK);
        const gcp_tensor y = gcp_onnx_output(&model, 0);
        gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL, .optimizer = GCP_OPTIMIZER_SGD),
                 see = gcp_plan_make(y, .inference = 1);
        gcp_bind(&plan, step_memory, sizeof step_memory);
        gcp_bind(&see, step_memory, sizeof step_memory);
        CHECK_INT(gcp_onnx_load(net, &model), >, 10);
        for (int pass = i; pass < 2; pass++) {
            gcp_onnx_write(&see, &model, 0, x);
            gcp_forward(&see);
            gcp_onnx_read(&see, &model, 0, result[i + pass]);
            gcp_onnx_write(&plan, &model, 0, x);
            if (!pass) gcp_step(&plan, .lr = 0.1);
        }
        CHECK_INT(gcp_onnx_save(net, &model, "constants.onnx"), ==, GCP_OK);
        gcp_unbind(&plan);
        gcp_unbind(&see);
    }
    CHECK(memcmp(first, after, sizeof first) && !memcmp(after, again, sizeof first));
}

/* Without names that number them, blocks are found as what repeats. */
static void blocks_without_names(void)
{
    static unsigned char whole[1 << 16];
    FILE *f = fopen(SMALL, "rb");
    const size_t size = f ? fread(whole, 1, sizeof whole, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i + 8 < size; i++)
        if (!memcmp(whole + i, "layer1.", 7)) {
            whole[i + 6] = 'x';
            whole[i + 7] = (unsigned char)(whole[i + 7] + 'a' - '0');
        }
    gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory), tapes;
    gcp_onnx model = gcp_onnx_open(&files, "renamed", .data = whole, .size = size);
    gcp_tape *net = fresh(&tapes, &model);
    CHECK_INT(gcp_onnx_record(net, &model, .batch = BATCH), ==, GCP_OK);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_onnx_output(&model, 0)), .policy = GCP_POLICY_SEGMENTS);
    int first = 0, second = 0;
    for (const char *line = printed(&plan, gcp_layers_print); *line; line = strchr(line, '\n') + 1) {
        first += !strncmp(line, "block[0]/", 9);
        second += !strncmp(line, "block[1]/", 9);
    }
    CHECK(first > 3 && second == first);
}

/* The same bits under policies; trained, saved, opened again: the same logits. */
static void trained_and_saved(void)
{
    trained t, u;
    gcp_real first[BATCH * CLASSES], again[BATCH * CLASSES];
    double loss[4], other[4];
    begin(&t, SMALL, file_memory, tape_memory, step_memory, GCP_POLICY_KEEP_ALL);
    for (int i = 0; i < 4; i++) loss[i] = step(&t, i);
    CHECK_INT(gcp_measure(&t.plan, other_memory[0], sizeof *other_memory), ==, t.plan.bytes);
    forward(&t, first);
    CHECK_INT(gcp_onnx_save(t.net, &t.model, "saved.onnx"), ==, GCP_OK);
    begin(&u, SMALL, other_memory[0], other_memory[1], other_memory[2], GCP_POLICY_SQRT);
    for (int i = 0; i < 4; i++) other[i] = step(&u, i);
    CHECK(!memcmp(loss, other, sizeof loss) && loss[3] < loss[0]);
    forward(&u, again);
    CHECK(!memcmp(first, again, sizeof first));
    begin(&u, "saved.onnx", other_memory[0], other_memory[1], other_memory[2], GCP_POLICY_KEEP_ALL);
    forward(&u, again);
    CHECK(!memcmp(first, again, sizeof first));
    step(&t, 4);
    gcp_onnx_load(t.net, &t.model); /* the file's weights again */
    CHECK_INT(gcp_onnx_save(t.net, &t.model, "same.onnx"), ==, GCP_OK);
    begin(&u, "same.onnx", other_memory[0], other_memory[1], other_memory[2], GCP_POLICY_KEEP_ALL);
    forward(&u, again);
    forward(&t, first);
    CHECK(!memcmp(first, again, sizeof first));
}

static int holds(const char *path, const char *text) /* bytes, anywhere in a file */
{
    static char whole[1 << 17];
    const size_t length = strlen(text);
    FILE *f = fopen(path, "rb");
    const size_t size = f ? fread(whole, 1, sizeof whole, f) : 0;
    if (f) fclose(f);
    for (size_t i = 0; i + length <= size; i++)
        if (!memcmp(whole + i, text, length)) return 1;
    return 0;
}
/* As it runs elsewhere: nothing says that norms train, and gcp's logits are the same. */
static void saved_for_inference(void)
{
    trained t, u;
    gcp_real first[BATCH * CLASSES], again[BATCH * CLASSES];
    begin(&t, SMALL, file_memory, tape_memory, step_memory, GCP_POLICY_KEEP_ALL);
    step(&t, 0);
    forward(&t, first);
    CHECK_INT(gcp_onnx_save(t.net, &t.model, "plain.onnx"), ==, GCP_OK);
    CHECK_INT(gcp_onnx_save(t.net, &t.model, "inference.onnx", .inference = 1), ==, GCP_OK);
    CHECK(holds("plain.onnx", "training_mode") && !holds("inference.onnx", "training_mode"));
    begin(&u, "inference.onnx", other_memory[0], other_memory[1], other_memory[2], GCP_POLICY_KEEP_ALL);
    forward(&u, again);
    CHECK(!memcmp(first, again, sizeof first));
    begin(&t, "plain.onnx", file_memory, tape_memory, step_memory, GCP_POLICY_KEEP_ALL);
    CHECK(step(&t, 1) == step(&u, 1) && step(&t, 2) == step(&u, 2)); /* both files train alike */
}
/* A tape's reset and another batch; a part of the network; an input of the user's own. */
static void recorded_otherwise(void)
{
    gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory), tapes;
    gcp_onnx model = gcp_onnx_open(&files, SMALL);
    gcp_tape *net = fresh(&tapes, &model);
    gcp_onnx_record(net, &model, .batch = 2);
    gcp_tape_reset(net);
    CHECK_INT(gcp_onnx_load(net, &model), ==, 0); /* the recording is gone */
    gcp_error_clear(net);
    CHECK_INT(gcp_onnx_record(net, &model, .batch = 6), ==, GCP_OK);
    CHECK_INT(gcp_shape_of(gcp_onnx_output(&model, 0)).d[0], ==, 6);
    const ptrdiff_t used = files.used;
    for (int i = 0; i < 3; i++) {
        gcp_tape_reset(net);
        gcp_onnx_record(net, &model, .sizes = "batch 6");
    }
    CHECK(files.used == used && !gcp_error(net));
    gcp_tape_reset(net);
    CHECK_INT(gcp_onnx_record(net, &model, .batch = 6, .frozen_norms = 1), ==, GCP_OK);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_onnx_output(&model, 0)), .policy = GCP_POLICY_KEEP_ALL);
    gcp_real before[8], after[8], image[6 * 3 * 8 * 8] = { 0 };
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_onnx_load(net, &model);
    gcp_read(&plan, gcp_nth_statistic(net, 1), before);
    gcp_onnx_write(&plan, &model, 0, image);
    gcp_step(&plan);
    gcp_read(&plan, gcp_nth_statistic(net, 1), after);
    CHECK(!gcp_error(net) && !memcmp(before, after, sizeof before)); /* the statistics stay */
    gcp_unbind(&plan);
    net = fresh(&tapes, &model);
    gcp_tensor pixels = gcp_input(net, "pixels", GCP_SHAPE(3, 8, 8, 3)), scaled = gcp_scale(pixels, .by = 2);
    CHECK_INT(
        gcp_onnx_record(net, &model, .until = "/layer1/layer1.0/Add_output_0", .inputs = &scaled, .input_count = 1), ==,
        GCP_OK);
    CHECK_INT(gcp_shape_of(gcp_onnx_output(&model, 0)).d[3], ==, 8);
    CHECK_INT(gcp_shape_of(gcp_onnx_output(&model, 0)).d[0], ==, 3);
    CHECK(gcp_is_nil(gcp_find(net, "image")) && gcp_is_nil(gcp_find(net, "fc.bias")));
    CHECK(!gcp_is_nil(gcp_onnx_tensor(net, &model, "/layer1/layer1.0/Add_output_0")));
}

/* Another number of classes: a new head, trained, saved in the place of the file's, opened again; the file's own comes
   back. */
static void new_head(void)
{
    enum { MORE = 7 };
    trained t, u;
    gcp_real first[BATCH * MORE], again[BATCH * MORE], weight[MORE * 128];
    double losses[6];
    classes = MORE;
    begin(&t, SMALL, file_memory, tape_memory, step_memory, GCP_POLICY_KEEP_ALL);
    CHECK_INT(gcp_shape_of(t.logits).d[3], ==, MORE);
    CHECK_INT(gcp_shape_of(gcp_find(t.net, "fc.weight")).d[0], ==, MORE);
    gcp_read(&t.plan, gcp_find(t.net, "fc.weight"), weight);
    double sum = 0;
    for (int i = 0; i < MORE * 128; i++) sum += (double)(weight[i] * weight[i]);
    CHECK(sum > 10 && sum < 18); /* He: 2 / 128 each */
    for (int i = 0; i < 6; i++) losses[i] = step(&t, i % 2);
    CHECK(losses[5] < losses[0]);
    forward(&t, first);
    CHECK_INT(gcp_onnx_save(t.net, &t.model, "head.onnx"), ==, GCP_OK);
    for (classes = 0; classes <= MORE; classes += MORE) { /* the number that it has is no new head */
        begin(&u, "head.onnx", other_memory[0], other_memory[1], other_memory[2], GCP_POLICY_KEEP_ALL);
        CHECK_INT(gcp_shape_of(u.logits).d[3], ==, MORE);
        forward(&u, again);
        CHECK(!memcmp(first, again, sizeof first));
    }
    classes = CLASSES;
    gcp_unbind(&t.plan);
    gcp_unbind(&t.see);
    t.net = fresh(&t.tapes, &t.model);
    CHECK_INT(gcp_onnx_record(t.net, &t.model, .batch = BATCH), ==, GCP_OK);
    CHECK_INT(gcp_shape_of(gcp_onnx_output(&t.model, 0)).d[3], ==, CLASSES);
    gcp_tape_reset(t.net);
    CHECK_INT(gcp_onnx_record(t.net, &t.model, .batch = BATCH, .classes = -1), ==, GCP_E_ARGUMENT);
}

/* ---- what is wrong ---- */

static const char *end_of(const char *message) /* without the place of the call */
{
    const char *at = message ? strstr(message, ": gcp_onnx_") : NULL;
    return at ? at + 2 : message;
}
static void asked_wrongly(void)
{
    gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory), tapes;
    gcp_onnx model = gcp_onnx_open(&files, "no such file.onnx");
    CHECK_TEXT(end_of(model.error), "gcp_onnx_open: no such file.onnx: there is no such file");
    CHECK(!files.used);
    gcp_tape *net = fresh(&tapes, &model);
    CHECK_INT(gcp_onnx_record(net, &model), ==, GCP_E_ARGUMENT);
    gcp_error_clear(net);
    model = gcp_onnx_open(&files, SMALL);
    CHECK_INT(gcp_onnx_load(net, &model), ==, 0);
    CHECK_TEXT(end_of(gcp_error(net)), "gcp_onnx_load: the model is not recorded on this tape (gcp_onnx_record)");
    gcp_error_clear(net);
    gcp_onnx_record(net, &model);
    CHECK_TEXT(end_of(gcp_error(net)),
               "gcp_onnx_record: input 'image': its size 'batch' is open: .batch is the first one, "
               ".sizes gives others");
    gcp_error_clear(net);
    gcp_onnx_record(net, &model, .batch = 1, .until = "nothing");
    CHECK_TEXT(end_of(gcp_error(net)), "gcp_onnx_record: .until = 'nothing': no value of the file has this name");
    gcp_error_clear(net);
    gcp_onnx_record(net, &model, .batch = 1, .sizes = "* 8 hight 8");
    CHECK_TEXT(end_of(gcp_error(net)), "gcp_onnx_record: .sizes: 'hight 8': no input has an open size of this name");
    gcp_error_clear(net);
    gcp_onnx_record(net, &model, .sizes = "batch 3x");
    CHECK_TEXT(end_of(gcp_error(net)), "gcp_onnx_record: .sizes: 'batch 3x': a number above 0 must follow the name");
    gcp_error_clear(net);
    net = fresh(&tapes, &model);
    gcp_tensor other = gcp_input(net, "other", GCP_SHAPE(2, 3, 8, 8));
    gcp_onnx_record(net, &model, .inputs = &other, .input_count = 1);
    CHECK_TEXT(end_of(gcp_error(net)), "gcp_onnx_record: input 'image' has other sizes in the file than in .inputs");
    gcp_error_clear(net);
    net = fresh(&tapes, &model);
    gcp_onnx_record(net, &model, .batch = 1);
    CHECK(!gcp_error(net));
    CHECK_INT(gcp_onnx_load(net, &model), ==, 0);
    CHECK_TEXT(end_of(gcp_error(net)),
               "gcp_onnx_load: the state has no memory yet: call gcp_bind (or gcp_state_bind) first");
    gcp_error_clear(net);
    CHECK(gcp_is_nil(gcp_onnx_tensor(net, &model, "nothing")));
    CHECK_TEXT(end_of(gcp_error(net)), "gcp_onnx_tensor: 'nothing': no value of the file has this name");
}
/* An arena of any size: the model opens and is recorded, or an error says what is missing; nothing is left. */
static void small_arenas(void)
{
    int opened = 0, recorded = 0;
    for (size_t size = 0; size < sizeof file_memory; size += 997) {
        gcp_arena files = gcp_arena_from(file_memory, size), tapes;
        gcp_onnx model = gcp_onnx_open(&files, SMALL);
        if (model.error[0]) {
            CHECK(!files.used && !files.scratch);
            continue;
        }
        opened++;
        gcp_tape *net = fresh(&tapes, &model);
        if (!gcp_onnx_record(net, &model, .batch = 2)) recorded++;
        else CHECK_INT(gcp_error_code(net), ==, GCP_E_NOMEM);
    }
    CHECK(opened > 100 && recorded > 100);
    for (int ops = 1; ops < 60; ops += 7) {
        gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory),
                  tapes = gcp_arena_from(tape_memory, sizeof tape_memory);
        gcp_onnx model = gcp_onnx_open(&files, SMALL);
        gcp_tape *net = gcp_tape_make(&tapes, .ops = ops);
        if (!gcp_onnx_record(net, &model, .batch = 2)) continue;
        CHECK_INT(gcp_error_code(net), ==, GCP_E_CAPACITY);
        gcp_error_clear(net);
        if (!gcp_error(net)) CHECK(gcp_is_nil(gcp_nth_parameter(net, 0))); /* the tape is as it was */
    }
}
/* Cut off anywhere, the file is refused. */
static void cut_off(void)
{
    static unsigned char whole[1 << 16];
    FILE *f = fopen(SMALL, "rb");
    const size_t size = f ? fread(whole, 1, sizeof whole, f) : 0;
    if (f) fclose(f);
    CHECK(size > 10000);
    for (size_t length = 0; length < size; length += 1 + length / 50) {
        gcp_arena files = gcp_arena_from(file_memory, sizeof file_memory);
        gcp_onnx model = gcp_onnx_open(&files, "cut", .data = whole, .size = length);
        CHECK(model.error[0] && !files.used);
    }
}
/* Every call of the file system fails once: an error, and the file that was there stays. */
static int calls, failing;
static size_t failing_write(void *context, void *file, const void *from, size_t size)
{
    return ++calls == failing ? 0 : gcp_stdio()->write(context, file, from, size);
}
static int failing_flush(void *context, void *file)
{
    return ++calls == failing ? 0 : gcp_stdio()->flush(context, file);
}
static void failing_disk(void)
{
    trained t;
    gcp_files files = *gcp_stdio();
    files.write = failing_write;
    files.flush = failing_flush;
    begin(&t, SMALL, file_memory, tape_memory, step_memory, GCP_POLICY_KEEP_ALL);
    gcp_onnx_save(t.net, &t.model, "kept.onnx");
    step(&t, 0);
    int failed = 0;
    for (failing = 1;; failing += 3) {
        calls = 0;
        const gcp_code code = gcp_onnx_save(t.net, &t.model, "kept.onnx", .files = &files);
        if (code == GCP_OK) break;
        CHECK_INT(code, ==, GCP_E_FILE);
        failed++;
        gcp_error_clear(t.net);
        trained u;
        if (failing < 8) begin(&u, "kept.onnx", other_memory[0], other_memory[1], other_memory[2], GCP_POLICY_KEEP_ALL);
    }
    CHECK(failed > 5);
}

int main(void)
{
    what_is_recorded();
    pieces();
    constants();
    blocks_without_names();
    trained_and_saved();
    saved_for_inference();
    recorded_otherwise();
    new_head();
    asked_wrongly();
    small_arenas();
    cut_off();
    failing_disk();
    return check_done();
}
