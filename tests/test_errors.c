/* Bad input to every public function: the whole message, its code, nil or zero as the result, and a tape that works on
   after gcp_error_clear. BAD: one refused call on a line; GOOD: the allowed neighbour. */
#include "support/check.h"
#include "gcp_io.h"
#include "support/fitting.h"
#include <limits.h>
#include <stdlib.h>

static unsigned char tape_memory[1 << 20], other_memory[1 << 18], state_memory[1 << 16];
static _Alignas(4096) unsigned char step_memory[1 << 19], more_memory[1 << 19];
static gcp_arena arena, other_arena;
static gcp_tape *net;
static gcp_tensor x, flat, ids, loss, foreign, weight;
static int seen[GCP_ERROR_COUNT], cases;

/* Options with a call site of the test's choice, where a message comes from a helper or from a later call. */
#define SITE(T, n, ...) ((T) { .at = { "test_errors.c", n }, __VA_ARGS__ })

/* A tape with an image, a matrix, labels, a weight and a scalar; another tape with a tensor of its own. */
static void begin(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    net = gcp_tape_make(&arena, .ops = 64);
    x = gcp_input(net, "x", GCP_SHAPE(2, 8, 8, 6));
    flat = gcp_input(net, "flat", GCP_SHAPE(2, 4));
    ids = gcp_labels(net, "ids", GCP_SHAPE(2));
    weight = gcp_param(net, "w", GCP_SHAPE(4), .init = GCP_INIT_ONES);
    loss = gcp_mean(gcp_bias(flat, weight));
    other_arena = gcp_arena_from(other_memory, sizeof other_memory);
    foreign = gcp_input(gcp_tape_make(&other_arena, .ops = 4), "x", GCP_SHAPE(2, 4));
}

static const gcp_real zeros[2 * 8 * 8 * 6];
static gcp_code feed(gcp_plan *plan) { return gcp_write(plan, flat, zeros); }

/* What can follow a clear: new layers, a plan, a bind, a step. */
static void works_again(int line)
{
    gcp_error_clear(net);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_linear(flat, .out = 3)), .optimizer = GCP_OPTIMIZER_SGD);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    feed(&plan);
    gcp_step(&plan, .lr = 0.1);
    if (!check_report(!gcp_error(net), __FILE__, line)) fprintf(stderr, "after the clear: %s\n", gcp_error(net));
}

/* A call may take several lines, and each macro in it has a __LINE__ among them: the one that the message names. */
static int line_of_call(const char *message, int line)
{
    enum { LINES = 4 };
    const char *colon = message ? strchr(message, ':') : NULL;
    long named = colon ? strtol(colon + 1, NULL, 10) : 0;
    return named > line - LINES && named < line + LINES ? (int)named : line;
}

/* The message is FILE:line: text, with any FILE:line where line is 0. */
static void said(gcp_code code, int line, int at, const char *text)
{
    char want[480];
    const char *got = gcp_error(net), *rest = got;
    cases++;
    if (at == line) at = line_of_call(got, at);
    for (int colons = 0; at == 0 && rest && *rest && colons < 2; rest++) colons += *rest == ':';
    snprintf(want, sizeof want, at ? "test_errors.c:%d: %s" : "%.0d %s", at, text);
    if (!check_report(got && !strcmp(rest, want), __FILE__, line))
        fprintf(stderr, "message\n  '%s', not\n  '%s'\n", got ? got : "none", want);
    if (!check_report(gcp_error_code(net) == code, __FILE__, line))
        fprintf(stderr, "code %s, not %s\n", gcp_code_text(gcp_error_code(net)), gcp_code_text(code));
    seen[gcp_error_code(net)] = 1;
}

static void nil_and_said(gcp_tensor y, gcp_code code, int line, const char *text)
{
    if (!check_report(gcp_is_nil(y), __FILE__, line)) fprintf(stderr, "not nil\n");
    if (!check_report(gcp_elements(y) == 0, __FILE__, line)) fprintf(stderr, "not empty\n");
    said(code, line, line, text);
    works_again(line);
}

static void fine(int ok, int line)
{
    if (!check_report(ok && !gcp_error(net), __FILE__, line))
        fprintf(stderr, "refused: %s\n", gcp_error(net) ? gcp_error(net) : "");
}

#define BAD(code, text, ...) (begin(), nil_and_said((__VA_ARGS__), (code), __LINE__, (text)))
#define GOOD(...) (begin(), fine(!gcp_is_nil(__VA_ARGS__), __LINE__))

/* ---- recording -------------------------------------------------------------------------------------------------*/

static gcp_shape raw_shape(int rank) { return (gcp_shape) { rank, { 1, 1, 1, 1 } }; }

static void inputs(void)
{
#define SIZES(name, found) "'" name "' has " found "; 1 to 4 sizes are allowed, each at least 1"
#define MANY(name, found) "'" name "' has sizes " found ", too many values: at most 144115188075855871"
#define NAMED(name) "the name '" name "' is empty or has a space, '/', '[', '#' or '*'"
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "sizes 0"), gcp_input(net, "a", GCP_SHAPE(0)));
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "sizes -1x3"), gcp_input(net, "a", GCP_SHAPE(-1, 3)));
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "sizes 2x3x4x-2147483648"),
        gcp_input(net, "a", GCP_SHAPE(2, 3, 4, INT_MIN)));
    BAD(GCP_E_SHAPE, "input: " MANY("a", "2147483647x2147483647x2147483647x2147483647"),
        gcp_input(net, "a", GCP_SHAPE(INT_MAX, INT_MAX, INT_MAX, INT_MAX)));
    BAD(GCP_E_SHAPE, "input: " MANY("a", "1073741824x134217728"), gcp_input(net, "a", GCP_SHAPE(1 << 30, 1 << 27)));
    GOOD(gcp_input(net, "a", GCP_SHAPE(1 << 30, (1 << 27) - 1)));
    GOOD(gcp_input(net, "a", GCP_SHAPE(1)));
    for (int rank = 1; rank <= 4; rank++) {                 /* the shape of a tensor, as it is given, makes another */
        const gcp_shape sizes[] = { GCP_SHAPE(4), GCP_SHAPE(4, 8), GCP_SHAPE(4, 1, 8), GCP_SHAPE(4, 8, 1, 2) };
        const gcp_shape first = gcp_shape_of(gcp_input(net, "first", sizes[rank - 1])),
                        same = gcp_shape_of(gcp_input(net, "same", first));
        CHECK(same.rank == rank && !memcmp(&first, &same, sizeof first));
        gcp_tape_reset(net);
    }
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "5 sizes, with 1x1x1x1"), gcp_input(net, "a", raw_shape(5)));
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "no size"), gcp_input(net, "a", raw_shape(-1)));
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "no size"), gcp_input(net, "a", raw_shape(0)));
    BAD(GCP_E_SHAPE, "input: " SIZES("a", "sizes 3x0"), gcp_labels(net, "a", GCP_SHAPE(3, 0)));
    BAD(GCP_E_NAME, "input: " NAMED(""), gcp_input(net, NULL, GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: " NAMED(""), gcp_input(net, "", GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: " NAMED("a b"), gcp_input(net, "a b", GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: " NAMED("a/b"), gcp_labels(net, "a/b", GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: " NAMED("a#"), gcp_input(net, "a#", GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: the name 'x' is used twice in its segment", gcp_input(net, "x", GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: the name 'ids' is used twice in its segment", gcp_labels(net, "ids", GCP_SHAPE(3)));
    BAD(GCP_E_NAME, "input: the name 'w' is used twice in its segment", gcp_input(net, "w", GCP_SHAPE(3)));
    GOOD(gcp_input(net, "x2", GCP_SHAPE(3)));
}

static gcp_tensor path_of(int letters)
{
    char name[400];
    memset(name, 'p', sizeof name);
    name[letters] = 0;
    return gcp_param_at(net, name, GCP_SHAPE(1), SITE(gcp_param_opts, 1, .fan_in = 1));
}

static void parameters(void)
{
    BAD(GCP_E_SHAPE, "parameter: " SIZES("p", "sizes 0"), gcp_param(net, "p", GCP_SHAPE(0), .fan_in = 1));
    BAD(GCP_E_SHAPE, "parameter: " MANY("p", "2147483647x2147483647x2147483647"),
        gcp_param(net, "p", GCP_SHAPE(INT_MAX, INT_MAX, INT_MAX), .fan_in = 1));
    BAD(GCP_E_NAME, "parameter: the name 'w' is used twice in its segment",
        gcp_param(net, "w", GCP_SHAPE(4), .fan_in = 1));
    BAD(GCP_E_NAME, "parameter: " NAMED("p q"), gcp_param(net, "p q", GCP_SHAPE(4), .fan_in = 1));
    BAD(GCP_E_NAME, "parameter: " NAMED(""), gcp_param(net, NULL, GCP_SHAPE(4), .fan_in = 1));
    GOOD(path_of(254));
    begin();
    CHECK(gcp_is_nil(path_of(255)));
    said(GCP_E_NAME, __LINE__, 1, "parameter: a path of over 254 characters");
    BAD(GCP_E_ARGUMENT, "gcp_freeze: 'x' is not a parameter", gcp_freeze(x));
    BAD(GCP_E_ARGUMENT, "gcp_freeze: 'relu[0]' is not a parameter", gcp_freeze(gcp_relu(x)));
    BAD(GCP_E_ARGUMENT, "gcp_freeze: 'batch_norm[0]/running_var' is not a parameter",
        gcp_freeze((gcp_batch_norm(x), gcp_find(net, "batch_norm[0]/running_var"))));
    BAD(GCP_E_ARGUMENT, "gcp_freeze: a nil tensor", gcp_freeze(gcp_nth_parameter(net, 1)));
    BAD(GCP_E_ARGUMENT, "gcp_freeze: a nil tensor", gcp_freeze(gcp_nth_parameter(net, -1)));
    BAD(GCP_E_ARGUMENT, "gcp_keep: a nil tensor", gcp_keep(gcp_find(net, "nobody")));
    BAD(GCP_E_ARGUMENT, "gcp_keep: a nil tensor", gcp_keep(gcp_find(net, NULL)));
    GOOD(gcp_freeze(gcp_nth_parameter(net, 0)));
    BAD(GCP_E_ARGUMENT, "gcp_keep: 'w' is not an activation", gcp_keep(weight));
    GOOD(gcp_keep(gcp_relu(x)));
    BAD(GCP_E_ARGUMENT, "gcp_want_grad: 'ids' is not a real input", gcp_want_grad(ids));
    BAD(GCP_E_ARGUMENT, "gcp_want_grad: 'w' is not a real input", gcp_want_grad(weight));
    BAD(GCP_E_ARGUMENT, "gcp_want_grad: 'tanh[0]' is not a real input", gcp_want_grad(gcp_tanh(x)));
    GOOD(gcp_want_grad(x));
}

static void windows(void)
{
#define WINDOW(k, s, d, g, p)                                                            \
    ".k = " k ", .stride = " s ", .dilation = " d ", .groups = " g ", .pad = " p "; each " \
    "is 1 to 2^24, .pad 0 to 2^24 and left out with GCP_PADDING_SAME"
    BAD(GCP_E_ARGUMENT, "conv2d: .out is missing", gcp_conv2d(x, .k = 3));
    BAD(GCP_E_ARGUMENT, "conv2d: .k is missing", gcp_conv2d(x, .out = 4));
    BAD(GCP_E_ARGUMENT, "conv2d: .kh is missing", gcp_conv2d(x, .out = 4, .kw = 3));
    BAD(GCP_E_ARGUMENT, "conv_transpose2d: .kw is missing", gcp_conv_transpose2d(x, .out = 4, .kh = 3));
    BAD(GCP_E_ARGUMENT, "conv2d: .out = -1; at least 1", gcp_conv2d(x, .out = -1, .k = 3));
    BAD(GCP_E_ARGUMENT, "conv2d: " WINDOW("3x3", "-1x-1", "1x1", "1", "0 0 0 0"),
        gcp_conv2d(x, .out = 4, .k = 3, .stride = -1));
    BAD(GCP_E_ARGUMENT, "conv2d: " WINDOW("3x3", "1x1", "1x1", "1", "-1 -1 -1 -1"),
        gcp_conv2d(x, .out = 4, .k = 3, .pad = -1));
    BAD(GCP_E_ARGUMENT, "conv2d: " WINDOW("3x3", "1x1", "-2x-2", "1", "0 0 0 0"),
        gcp_conv2d(x, .out = 4, .k = 3, .dilation = -2));
    BAD(GCP_E_ARGUMENT, "conv2d: " WINDOW("3x3", "1x1", "1x1", "-2", "0 0 0 0"),
        gcp_conv2d(x, .out = 4, .k = 3, .groups = -2));
    BAD(GCP_E_ARGUMENT, "conv2d: " WINDOW("3x3", "1x1", "1x2147483647", "1", "0 0 0 0"),
        gcp_conv2d(x, .out = 4, .k = 3, .dilation_w = INT_MAX));
    BAD(GCP_E_ARGUMENT, "conv2d: " WINDOW("3x3", "1x1", "1x1", "1", "1 1 1 1"),
        gcp_conv2d(x, .out = 4, .k = 3, .pad = 1, .padding = GCP_PADDING_SAME));
    BAD(GCP_E_ARGUMENT, "conv_transpose2d: " WINDOW("2x2", "1x1", "1x1", "1", "0 0 0 2"),
        gcp_conv_transpose2d(x, .out = 4, .k = 2, .pad_right = 2, .padding = GCP_PADDING_SAME));
    GOOD(gcp_conv2d(x, .out = 4, .k = 3, .padding = GCP_PADDING_SAME));
    BAD(GCP_E_SHAPE, "conv2d: 2x8x8x6 does not fit a 9x9 kernel with .pad = 0 (GCP_PADDING_SAME pads enough)",
        gcp_conv2d(x, .out = 4, .k = 9));
    BAD(GCP_E_SHAPE, "conv2d: 2x8x8x6 does not fit a 3x3 kernel with .pad = 0 (GCP_PADDING_SAME pads enough)",
        gcp_conv2d(x, .out = 4, .k = 3, .dilation = 4));
    GOOD(gcp_conv2d(x, .out = 4, .k = 8));
    GOOD(gcp_conv2d(x, .out = 4, .k = 9, .pad_bottom = 1, .pad_left = 1));
    BAD(GCP_E_SHAPE, "conv2d: 6 channels in and .out = 4 do not divide into .groups = 4",
        gcp_conv2d(x, .out = 4, .k = 3, .groups = 4));
    BAD(GCP_E_SHAPE, "conv2d: 6 channels in and .out = 4 do not divide into .groups = 3",
        gcp_conv2d(x, .out = 4, .k = 3, .groups = 3));
    GOOD(gcp_conv2d(x, .out = 4, .k = 3, .groups = 2));
    BAD(GCP_E_SHAPE, "conv_transpose2d: 2x8x8x6 with a 1x1 kernel and .pad = 4 gives 0x0",
        gcp_conv_transpose2d(x, .out = 4, .k = 1, .pad = 4));
    GOOD(gcp_conv_transpose2d(x, .out = 4, .k = 2, .pad = 4));
}

static void windows_given(void)
{
    for (int transposed = 0; transposed < 2; transposed++) {
        begin();
        gcp_tensor w = gcp_param(net, "grouped", GCP_SHAPE(8, 3, 3, 2), .fan_in = 18);
        gcp_tensor y = transposed ? gcp_conv_transpose2d_op(x, w, GCP_NIL, .groups = 4)
                                  : gcp_conv2d_op(x, w, GCP_NIL, .groups = 4);
        nil_and_said(y, GCP_E_SHAPE, __LINE__ - 1,
                     transposed ? "conv_transpose2d: 6 channels in and .out = 8 do not divide into .groups = 4"
                                : "conv2d: 6 channels in and .out = 8 do not divide into .groups = 4");
    }
    BAD(GCP_E_DTYPE, "batch_norm: gamma and beta are real numbers, not integers", gcp_batch_norm_op(x, ids, ids));
    BAD(GCP_E_ARGUMENT, "conv2d: .init, but the weights are given",
        gcp_conv2d_op(x, gcp_param(net, "k", GCP_SHAPE(2, 1, 1, 6), .fan_in = 6), GCP_NIL, .init = GCP_INIT_ONES));
    BAD(GCP_E_SHAPE, "conv2d: weights of 1x1x1x4, not 4x1x1x6", gcp_conv2d_op(x, weight, GCP_NIL, .out = 4, .k = 1));
    BAD(GCP_E_SHAPE, "conv2d: a bias of 4 values for 2 outputs",
        gcp_conv2d_op(x, gcp_param(net, "k", GCP_SHAPE(2, 1, 1, 6), .fan_in = 6), weight, .out = 2));
}

static void pools(void)
{
    BAD(GCP_E_ARGUMENT, "max_pool: .k is missing", gcp_max_pool(x, .stride = 2));
    BAD(GCP_E_ARGUMENT, "avg_pool: " WINDOW("2x2", "-2x-2", "1x1", "1", "0 0 0 0"),
        gcp_avg_pool(x, .k = 2, .stride = -2));
    BAD(GCP_E_ARGUMENT, "max_pool: " WINDOW("3x3", "3x3", "1x1", "1", "1 1 1 1"),
        gcp_max_pool(x, .k = 3, .pad = 1, .padding = GCP_PADDING_SAME));
    BAD(GCP_E_SHAPE, "max_pool: padding 2 of a 2x2 window", gcp_max_pool(x, .k = 2, .pad = 2));
    BAD(GCP_E_SHAPE,
        "avg_pool: 2x8x8x6 does not fit a 9x9 kernel with .pad = 0 (GCP_PADDING_SAME pads enough)",
        gcp_avg_pool(x, .k = 9));
    GOOD(gcp_max_pool(x, .k = 2, .pad = 1));
    BAD(GCP_E_SHAPE, "max_pool: a window may have at most 256 cells",
        gcp_max_pool(gcp_input(net, "big", GCP_SHAPE(1, 20, 20, 1)), .k = 17));
    GOOD(gcp_max_pool(gcp_input(net, "big", GCP_SHAPE(1, 20, 20, 1)), .k = 16));
    BAD(GCP_E_ARGUMENT, "upsample: .factor = -1; at least 1", gcp_upsample(x, .factor = -1));
    BAD(GCP_E_SHAPE, "upsample: 2x8x8x6 times .factor = 268435456", gcp_upsample(x, .factor = 1 << 28));
}

/* Numbers whose products leave int: refused, never wrapped to something that fits. */
static void overflows(void)
{
    BAD(GCP_E_SHAPE, "max_pool: a window may have at most 256 cells",
        gcp_max_pool(gcp_input(net, "big", GCP_SHAPE(1, 65536, 65536, 1)), .k = 65536));
    BAD(GCP_E_SHAPE, "concat: 2147483651 channels",
        gcp_concat(GCP_TENSORS(flat, gcp_input(net, "wide", GCP_SHAPE(2, INT_MAX)))));
    begin();                                         /* 2^32 rows of weights; no works_again, for the weights stay */
    gcp_tensor v = gcp_param(net, "v", GCP_SHAPE(65536, 65536, 1, 4), .fan_in = 1);
    int line = __LINE__ + 1;
    CHECK(gcp_is_nil(gcp_linear_op(flat, v, GCP_NIL, .out = 65536)));
    said(GCP_E_SHAPE, __LINE__, line, "linear: weights of 65536x65536x1x4 for 2x4 and .out = 65536");
    begin();
    gcp_tensor tall = gcp_input(net, "tall", GCP_SHAPE(1, INT_MAX, 1, 1));
    CHECK(gcp_is_nil(gcp_conv2d(tall, .out = 1, .k = 1, .pad_bottom = 1)));
    CHECK_INT(gcp_error_code(net), ==, GCP_E_SHAPE);
    works_again(__LINE__);
    begin();
    gcp_tensor k = gcp_param(net, "k", GCP_SHAPE(6, 1, 1, 4), .fan_in = 1);
    CHECK(gcp_is_nil(gcp_conv_transpose2d_op(x, k, GCP_NIL, .groups = 1 << 30)));
    CHECK_INT(gcp_error_code(net), !=, GCP_OK);
    works_again(__LINE__);
}

static void pointwise_numbers(void)
{
    BAD(GCP_E_ARGUMENT, "leaky_relu: .slope = -0.5; at least 0", gcp_leaky_relu(x, .slope = -0.5));
    BAD(GCP_E_ARGUMENT, "clamp: .low is missing; GCP_ZERO says zero", gcp_clamp(x, .high = 6));
    BAD(GCP_E_ARGUMENT, "clamp: .high is missing; GCP_ZERO says zero", gcp_clamp(x, .low = -6));
    BAD(GCP_E_ARGUMENT, "clamp: .low = 2; below .high; -HUGE_VAL and HUGE_VAL: no bound",
        gcp_clamp(x, .low = 2, .high = 2));
    BAD(GCP_E_ARGUMENT, "elu: .alpha = -1; at least 0, and finite", gcp_elu(x, .alpha = -1));
    BAD(GCP_E_ARGUMENT, "softplus: .beta = 0; at least 1e-06, and finite", gcp_softplus(x, .beta = GCP_ZERO));
    BAD(GCP_E_ARGUMENT, "leaky_relu: .slope = inf; at least 0", gcp_leaky_relu(x, .slope = HUGE_VAL));
    GOOD(gcp_leaky_relu(x, .slope = GCP_ZERO));
    BAD(GCP_E_ARGUMENT, "scale: .by is missing; GCP_ZERO says zero", gcp_scale(x));
    if (sizeof(gcp_real) == 4) BAD(GCP_E_ARGUMENT, "scale: .by = 1e+300; finite", gcp_scale(x, .by = 1e300));
    BAD(GCP_E_ARGUMENT, "scale: .by = inf; finite", gcp_scale(x, .by = HUGE_VAL));
    GOOD(gcp_scale(x, .by = GCP_ZERO));
}

static void numbers(void)
{
    BAD(GCP_E_ARGUMENT, "dropout: .rate = 1; at least 0 and less than 1", gcp_dropout(x, .rate = 1));
    BAD(GCP_E_ARGUMENT, "dropout: .rate = -0.1; at least 0 and less than 1", gcp_dropout(x, .rate = -0.1));
    BAD(GCP_E_ARGUMENT, "dropout: .rate = nan; at least 0 and less than 1", gcp_dropout(x, .rate = (double)NAN));
    GOOD(gcp_dropout(x, .rate = 0.999));
    GOOD(gcp_dropout(x, .rate = 0));
    BAD(GCP_E_ARGUMENT, "batch_norm: .momentum = 1.5; in [0, 1]", gcp_batch_norm(x, .momentum = 1.5));
    GOOD(gcp_batch_norm(x, .momentum = 1));
    BAD(GCP_E_ARGUMENT, "layer_norm: .epsilon = -1; above 0", gcp_layer_norm(x, .epsilon = -1));
    BAD(GCP_E_ARGUMENT, "batch_norm: .epsilon = 0; above 0", gcp_batch_norm(x, .epsilon = GCP_ZERO));
    GOOD(gcp_batch_norm(x, .momentum = GCP_ZERO));
    BAD(GCP_E_ARGUMENT, "upsample: .mode = 9; GCP_UPSAMPLING_NEAREST or GCP_UPSAMPLING_BILINEAR",
        gcp_upsample(x, .mode = (gcp_upsampling)9));
    BAD(GCP_E_ARGUMENT, "conv2d: .padding = 7; GCP_PADDING_EXPLICIT or GCP_PADDING_SAME",
        gcp_conv2d(x, .out = 1, .k = 1, .padding = (gcp_padding)7));
    BAD(GCP_E_ARGUMENT, "avg_pool: .padding = 7; GCP_PADDING_EXPLICIT or GCP_PADDING_SAME",
        gcp_avg_pool(x, .k = 1, .padding = (gcp_padding)7));
    BAD(GCP_E_ARGUMENT, "parameter: 'weight' with .init = 77; a gcp_init",
        gcp_linear(flat, .out = 1, .init = (gcp_init)77));
    GOOD(gcp_conv2d(x, .out = 1, .k = 3, .pad = 1, .pad_top = GCP_ZERO));
    GOOD(gcp_slice(x, .first = GCP_ZERO, .count = 1));
    GOOD(gcp_dropout(x, .rate = GCP_ZERO));
#define FANS(fans, std) "parameter: 'p' with " fans ", .std = " std "; at least 0, and .std or .init"
    BAD(GCP_E_ARGUMENT, FANS(".fan_in = -1, .fan_out = 0", "0"), gcp_param(net, "p", GCP_SHAPE(4, 4), .fan_in = -1));
    BAD(GCP_E_ARGUMENT, FANS(".fan_in = 0, .fan_out = 0", "-0.5"), gcp_param(net, "p", GCP_SHAPE(4, 4), .std = -0.5));
    BAD(GCP_E_ARGUMENT, FANS(".fan_in = 0, .fan_out = 0", "0.5"),
        gcp_param(net, "p", GCP_SHAPE(4, 4), .init = GCP_INIT_ONES, .std = 0.5));
    GOOD(gcp_param(net, "p", GCP_SHAPE(4, 4), .std = GCP_ZERO));
    BAD(GCP_E_ARGUMENT, "linear: .out = 0; at least 1", gcp_linear(flat, .no_bias = 1));
    BAD(GCP_E_ARGUMENT, "linear: .out = -3; at least 1", gcp_linear(flat, .out = -3));
    BAD(GCP_E_ARGUMENT, "embedding: .entries = 0; at least 1", gcp_embedding(ids, .out = 4));
    BAD(GCP_E_ARGUMENT, "embedding: .out = 0; at least 1", gcp_embedding(ids, .entries = 4));
}

static gcp_tensor many(int count)
{
    gcp_tensor list[80];
    for (int i = 0; i < count; i++) list[i] = flat;
    return gcp_concat_at(list, count, SITE(gcp_concat_opts, 2, .name = NULL));
}

#define ATTENTION_OF(q, k, v, ...)                                                                                   \
    gcp_attention(gcp_input(net, "q", GCP_SHAPE(2, 1, q)), gcp_input(net, "k", GCP_SHAPE(2, 1, k)),                  \
                  gcp_input(net, "v", GCP_SHAPE(2, 1, v)), __VA_ARGS__)
static void attention_sizes(void)
{
    BAD(GCP_E_SHAPE,
        "attention: q 2x1x4096, v 2x1x1048576 and 4096 heads: at most 2^28 channels of q and of the result",
        ATTENTION_OF(4096, 1, 1 << 20, .heads = 4096));
    BAD(GCP_E_SHAPE, "attention: 3 heads of q 2x1x9, k 2x1x6 and v 2x1x6: each head of q has as many channels as one "
                     "of k, and the heads of k and v divide .heads", ATTENTION_OF(9, 6, 6, .heads = 3));
    BAD(GCP_E_ARGUMENT, "attention: .heads = 5; 1 to the channels of q; default 1", ATTENTION_OF(4, 4, 4, .heads = 5));
    BAD(GCP_E_ARGUMENT, "attention: .scale = 1e+300; finite; default 1 / sqrt(channels of a head)",
        ATTENTION_OF(4, 4, 4, .scale = sizeof(gcp_real) == sizeof(float) ? 1e300 : HUGE_VAL));
}

static void shapes(void)
{
    BAD(GCP_E_SHAPE, "slice: channels [2, 2 + 3) of 2x4", gcp_slice(flat, .first = 2, .count = 3));
    BAD(GCP_E_SHAPE, "slice: channels [-1, -1 + 2) of 2x4", gcp_slice(flat, .first = -1, .count = 2));
    BAD(GCP_E_SHAPE, "slice: channels [0, 0 + 0) of 2x4", gcp_slice(flat, .first = 0));
    BAD(GCP_E_SHAPE, "slice: channels [2147483647, 2147483647 + 2147483647) of 2x4",
        gcp_slice(flat, .first = INT_MAX, .count = INT_MAX));
    GOOD(gcp_slice(flat, .first = 2, .count = 2));
    BAD(GCP_E_SHAPE, "concat: 2x4 beside 2x8x8x6", gcp_concat(GCP_TENSORS(flat, x)));
    GOOD(gcp_concat(GCP_TENSORS(flat, flat)));
    begin();
    CHECK(gcp_is_nil(many(65)));
    said(GCP_E_ARGUMENT, __LINE__, 2, "concat: 65 inputs and 1 outputs; at most 64 and 1 to 8");
    GOOD(many(64));
    BAD(GCP_E_SHAPE, "add: 2x4 and 2x8x8x6: each size must be equal, or 1 in one of them", gcp_add(flat, x));
    BAD(GCP_E_SHAPE, "mul: 2x8x8x6 and 2x4: each size must be equal, or 1 in one of them", gcp_mul(x, flat));
    BAD(GCP_E_SHAPE, "prelu: 2x8x8x6 and 4: each size must be equal, or 1 in one of them", gcp_prelu(x, weight));
    BAD(GCP_E_SHAPE, "mse: 2x4 and 2x8x8x6 differ", gcp_mse(flat, x));
    BAD(GCP_E_SHAPE, "bias: 4 values for the 6 channels of 2x8x8x6", gcp_bias(x, weight));
    BAD(GCP_E_SHAPE, "reshape: 2x4 into 3x3: 8 and 9 values", gcp_reshape(flat, GCP_SHAPE(3, 3)));
    BAD(GCP_E_ARGUMENT, "reshape: its output has sizes -8; 1 to 4 sizes are allowed, each at least 1",
        gcp_reshape(flat, GCP_SHAPE(-8)));
    BAD(GCP_E_ARGUMENT,
        "reshape: its output has sizes 65536x65536x65536x65536, too many values: at most 144115188075855871",
        gcp_reshape(flat, GCP_SHAPE(65536, 65536, 65536, 65536)));
    GOOD(gcp_reshape(flat, GCP_SHAPE(8)));
}

static void products_and_sizes(void)
{
    BAD(GCP_E_SHAPE,
        "matmul: 2x4 times 2x4; a product is of matrices (rows, k) and (k, columns), one or a batch of as many: of "
        "(n, k) by (k, m) sizes before the last count as rows",
        gcp_matmul(flat, flat));
    GOOD(gcp_matmul(flat, gcp_input(net, "b", GCP_SHAPE(4, 3))));
    BAD(GCP_E_SHAPE, "matmul: 65536x1x1x1 times 1x65536x1x1 is too large: at most 2^31 - 1 rows and 2^30 columns",
        gcp_matmul(gcp_input(net, "wide", GCP_SHAPE(65536, 1, 1, 1)),
                   gcp_input(net, "high", GCP_SHAPE(1, 65536, 1, 1))));
    BAD(GCP_E_ARGUMENT, "batch_norm: .momentum = 0.5; with .frozen it changes nothing",
        gcp_batch_norm(x, .frozen = 1, .momentum = 0.5));
    BAD(GCP_E_ARGUMENT, "layer_norm: .frozen = 1; it belongs to gcp_batch_norm", gcp_layer_norm(x, .frozen = 1));
    BAD(GCP_E_SHAPE, "pad: 8 before and 0 after 2x8x8x6 along its size of 8; a reflection is shorter than that",
        gcp_pad(x, .before = 8, .axis = GCP_AXIS_WIDTH, .mode = GCP_PAD_REFLECT));
    BAD(GCP_E_ARGUMENT, "pad: .after = -1; at least 0", gcp_pad(x, .after = -1));
    BAD(GCP_E_ARGUMENT, "pad: .mode = 3; one of GCP_PAD_ZEROS, EDGE, REFLECT",
        gcp_pad(x, .after = 1, .mode = (gcp_pad_mode)3));
    BAD(GCP_E_ARGUMENT, "reduce: .by = 3; one of GCP_REDUCE_MEAN, SUM, MAX", gcp_reduce(x, .by = (gcp_reduction)3));
    BAD(GCP_E_ARGUMENT, "resize: .height = 0; at least 1", gcp_resize(x, .width = 3));
    BAD(GCP_E_ARGUMENT, "resize: .corners = 1; it belongs to GCP_UPSAMPLING_BILINEAR",
        gcp_resize(x, .height = 3, .width = 3, .corners = 1));
    BAD(GCP_E_ARGUMENT, "pixel_shuffle: .factor = 2; its square a divisor of the channels", gcp_pixel_shuffle(x));
    BAD(GCP_E_ARGUMENT, "pixel_unshuffle: .factor = 3; a divisor of height and width",
        gcp_pixel_unshuffle(x, .factor = 3));
}

static void losses(void)
{
    BAD(GCP_E_SHAPE, "l1: 2x4 and 2x8x8x6 differ", gcp_l1(flat, x));
    BAD(GCP_E_SHAPE, "mse: weights of 4 for 2x8x8x6: each size must be equal, or 1", gcp_mse(x, x, .weights = weight));
    BAD(GCP_E_ARGUMENT, "smooth_l1: .beta = -1; at least 0, and finite", gcp_smooth_l1(x, x, .beta = -1));
    BAD(GCP_E_ARGUMENT, "binary_cross_entropy: .positive = -1; at least 0, and finite",
        gcp_binary_cross_entropy(x, x, .positive = -1));
    BAD(GCP_E_ARGUMENT, "cross_entropy: .ignore = 3; targets that are no labels have none",
        gcp_cross_entropy(flat, flat, .ignore = 3));
    BAD(GCP_E_SHAPE, "cross_entropy: 384 .class_weights for the 4 classes of 2x4",
        gcp_cross_entropy(flat, flat, .class_weights = gcp_slice(x, .first = 0, .count = 3)));
}

static void rows_and_labels(void)
{
    BAD(GCP_E_SHAPE, "linear: weights of 4 for 2x4 and .out = 2", gcp_linear_op(flat, weight, GCP_NIL, .out = 2));
    BAD(GCP_E_SHAPE, "linear: a bias of 4 values for 1 outputs", gcp_linear_op(flat, weight, weight, .out = 1));
    GOOD(gcp_linear_op(flat, weight, GCP_NIL, .out = 1));
    GOOD(gcp_linear_op(flat, weight, GCP_NIL, .no_bias = 1));
    BAD(GCP_E_ARGUMENT, "linear: .init, but the weights are given",
        gcp_linear_op(flat, weight, GCP_NIL, .init = GCP_INIT_HE));
    BAD(GCP_E_ARGUMENT, "linear: .no_bias, but a bias is given",
        gcp_linear_op(flat, weight, gcp_param(net, "b", GCP_SHAPE(1), .fan_in = 1), .no_bias = 1));
    BAD(GCP_E_ARGUMENT, "layer_norm: .momentum = 0.1; it belongs to gcp_batch_norm",
        gcp_layer_norm(x, .momentum = 0.1));
    BAD(GCP_E_SHAPE, "layer_norm: 4 values for 6 channels", gcp_layer_norm_op(x, weight, weight, .epsilon = 1e-5));
    GOOD(gcp_layer_norm_op(flat, weight, weight, .epsilon = 1e-5));
    BAD(GCP_E_SHAPE, "cross_entropy: 3 labels for the 2 rows of 2x4",
        gcp_cross_entropy(flat, gcp_labels(net, "y", GCP_SHAPE(3))));
    GOOD(gcp_cross_entropy(flat, ids));
    BAD(GCP_E_SHAPE, "embedding: ids of 2x3x4x5: at most two sizes",
        gcp_embedding(gcp_labels(net, "i", GCP_SHAPE(2, 3, 4, 5)), .entries = 3, .out = 2));
    BAD(GCP_E_SHAPE, "embedding: ids of 2x3x4: at most two sizes",
        gcp_embedding(gcp_labels(net, "i", GCP_SHAPE(2, 3, 4)), .entries = 3, .out = 2));
    GOOD(gcp_embedding(gcp_labels(net, "i", GCP_SHAPE(2, 3)), .entries = 3, .out = 2));
}

static void dtypes(void)
{
#define INTEGERS(i) "input " i " holds integers, not real numbers"
#define TARGETS "needs real logits, and gcp_labels or real targets of the logits' shape"
    BAD(GCP_E_DTYPE, "relu: " INTEGERS("0"), gcp_relu(ids));
    BAD(GCP_E_DTYPE, "linear: " INTEGERS("0"), gcp_linear(ids, .out = 2));
    BAD(GCP_E_DTYPE, "mean: " INTEGERS("0"), gcp_mean(ids));
    BAD(GCP_E_DTYPE, "reshape: " INTEGERS("0"), gcp_reshape(ids, GCP_SHAPE(2, 1)));
    BAD(GCP_E_DTYPE, "add: " INTEGERS("0"), gcp_add(ids, ids));
    BAD(GCP_E_DTYPE, "concat: " INTEGERS("1"),
        gcp_concat(GCP_TENSORS(gcp_reshape(gcp_slice(flat, .count = 1), GCP_SHAPE(2)), ids)));
    BAD(GCP_E_DTYPE, "conv2d: " INTEGERS("0"),
        gcp_conv2d(gcp_labels(net, "i", GCP_SHAPE(1, 3, 3, 1)), .out = 1, .k = 1));
    BAD(GCP_E_DTYPE, "dropout: " INTEGERS("0"), gcp_dropout(ids, .rate = 0.5));
    BAD(GCP_E_DTYPE, "cross_entropy: " TARGETS,
        gcp_cross_entropy(flat, gcp_input(net, "y", GCP_SHAPE(2))));
    BAD(GCP_E_DTYPE, "cross_entropy: " TARGETS, gcp_cross_entropy(ids, ids));
    BAD(GCP_E_DTYPE, "embedding: ids must be gcp_ids", gcp_embedding(flat, .entries = 3, .out = 2));
    BAD(GCP_E_DTYPE, "embedding: " INTEGERS("1"),
        gcp_embedding_op(ids, gcp_labels(net, "table", GCP_SHAPE(3, 2)), .name = "e"));
    BAD(GCP_E_ARGUMENT, "embedding: .entries = 4; not the table's",
        gcp_embedding_op(ids, gcp_param(net, "words", GCP_SHAPE(3, 2)), .entries = 4));
    BAD(GCP_E_ARGUMENT, "embedding: .out = 3; not the table's",
        gcp_embedding_op(ids, gcp_param(net, "words", GCP_SHAPE(3, 2)), .entries = 3, .out = 3));
}

static gcp_tensor stale(void)
{
    gcp_tensor old = flat;
    gcp_tape_reset(net);
    flat = gcp_input(net, "flat", GCP_SHAPE(2, 4));
    weight = gcp_param(net, "w", GCP_SHAPE(4), .init = GCP_INIT_ONES);
    return old;
}

static void stale_said(gcp_tensor y, int line, const char *text)
{
    CHECK(gcp_is_nil(y));
    said(GCP_E_STALE, line, line, text);
    gcp_error_clear(net);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_bias(flat, weight)));
    CHECK(plan.core && !gcp_error(net));
}
#define STALE(what, ...) (begin(), stale_said((__VA_ARGS__), __LINE__, what ": a tensor from before the tape's reset"))

static void handles(void)
{
    BAD(GCP_E_FOREIGN, "add: a tensor of another tape", gcp_add(flat, foreign));
    BAD(GCP_E_FOREIGN, "concat: a tensor of another tape", gcp_concat(GCP_TENSORS(flat, foreign)));
    BAD(GCP_E_FOREIGN, "linear: a tensor of another tape", gcp_linear_op(flat, foreign, GCP_NIL, .out = 2));
    BAD(GCP_E_FOREIGN, "cross_entropy: a tensor of another tape", gcp_cross_entropy(flat, foreign));
    BAD(GCP_E_ARGUMENT, "add: a nil tensor", gcp_add(flat, GCP_NIL));
    BAD(GCP_E_ARGUMENT, "matmul: a nil tensor", gcp_matmul(flat, GCP_NIL));
    BAD(GCP_E_ARGUMENT, "conv2d: a nil tensor", gcp_conv2d_op(x, GCP_NIL, GCP_NIL, .out = 2, .k = 1));
    BAD(GCP_E_ARGUMENT, "linear: a nil tensor", gcp_linear_op(flat, GCP_NIL, GCP_NIL, .out = 2));
    BAD(GCP_E_ARGUMENT, "layer_norm: a nil tensor", gcp_layer_norm_op(flat, GCP_NIL, weight, .epsilon = 1));
    BAD(GCP_E_ARGUMENT, "embedding: a nil tensor", gcp_embedding_op(ids, GCP_NIL, .out = 1));
    BAD(GCP_E_ARGUMENT, "relu: a nil tensor", gcp_relu(gcp_nth_parameter(net, 9)));
    STALE("relu", gcp_relu(stale()));
    STALE("linear", gcp_linear(stale(), .out = 2));
    STALE("gcp_keep", gcp_keep(stale()));
    STALE("gcp_want_grad", gcp_want_grad(stale()));
    begin();
    gcp_tensor old = stale();
    char text[8] = "?";
    CHECK(gcp_elements(old) == 0 && gcp_shape_of(old).d[0] == 0);
    CHECK_TEXT(gcp_name(old, text, sizeof text), "");
    begin();                                         /* nil of no tape: nothing happens and nothing is said */
    CHECK(gcp_is_nil(gcp_relu(GCP_NIL)) && gcp_is_nil(gcp_linear(GCP_NIL, .out = 1)) &&
          gcp_is_nil(gcp_concat(GCP_TENSORS(GCP_NIL, GCP_NIL))));
    CHECK(gcp_is_nil(gcp_concat_at(NULL, 2, (gcp_concat_opts) { .name = 0 })) && gcp_is_nil(gcp_freeze(GCP_NIL)));
    CHECK(gcp_error(net) == NULL);
}

static void layer_names(void)
{
    BAD(GCP_E_NAME, "relu: " NAMED("a b"), gcp_relu(x, .name = "a b"));
    BAD(GCP_E_NAME, "relu: " NAMED(""), gcp_relu(x, .name = ""));
    BAD(GCP_E_NAME, "tanh: the name 'one' is used twice in its segment",
        (gcp_relu(x, .name = "one"), gcp_tanh(x, .name = "one")));
    BAD(GCP_E_NAME, "conv2d: the name 'c' is used twice in its segment",
        (gcp_conv2d(x, .out = 1, .k = 1, .name = "c"), gcp_conv2d(x, .out = 1, .k = 1, .name = "c")));
    BAD(GCP_E_NAME, "linear: the name 'x' is used twice in its segment", gcp_linear(flat, .out = 1, .name = "x"));
    BAD(GCP_E_NAME, "concat: the name 'x' is used twice in its segment",
        gcp_concat(GCP_TENSORS(flat, flat), .name = "x"));
    BAD(GCP_E_NAME, "reshape: the name 'x' is used twice in its segment",
        gcp_reshape(flat, GCP_SHAPE(1, 1), .name = "x"));
    BAD(GCP_E_DTYPE, "input: 'i' with .want_grad: whole numbers have no gradient",
        gcp_ids(net, "i", GCP_SHAPE(2), .want_grad = 1));
    gcp_error_clear(net);
    GOOD(gcp_ids(net, "i", GCP_SHAPE(2)));           /* the refused one took no name */
    /* a name that reads like a numbered one must not share its weights */
    begin();
    gcp_tensor a = gcp_linear(flat, .out = 4, .name = "linear[0]"), b = gcp_is_nil(a) ? a : gcp_linear(a, .out = 4);
    CHECK(gcp_error_code(net) == GCP_E_NAME && gcp_is_nil(b));
}

/* A refused layer leaves nothing: no parameter, no bytes of state, no name; nor does a tape that is reset in error. */
static void taken_back(void)
{
    for (int kind = 0; kind < 8; kind++) {
        char name[64];
        begin();
        size_t bytes = gcp_state_bytes(net, GCP_OPTIMIZER_ADAM);
        gcp_tensor table = gcp_labels(net, "three", GCP_SHAPE(2, 3, 4)), y;
        switch (kind & 3) {
        case 0: y = gcp_conv2d(x, .out = 4, .k = 99, .name = "mine"); break;
        case 1: y = gcp_conv2d(x, .out = 4, .k = 99); break;
        case 2: y = gcp_embedding(table, .entries = 3, .out = 2); break;
        default: y = gcp_conv_transpose2d(x, .out = 4, .k = 1, .pad = 4); break;
        }
        CHECK(gcp_is_nil(y) && gcp_error(net));
        if (kind & 4) {
            gcp_tape_reset(net);
            x = gcp_input(net, "x", GCP_SHAPE(2, 8, 8, 6));
            flat = gcp_input(net, "flat", GCP_SHAPE(2, 4));
            weight = gcp_param(net, "w", GCP_SHAPE(4), .init = GCP_INIT_ONES);
            loss = gcp_mean(gcp_bias(flat, weight));
            CHECK(gcp_plan_make(loss).core != NULL && gcp_state_bytes(net, GCP_OPTIMIZER_ADAM) == bytes);
            fine(1, __LINE__);
            continue;
        }
        gcp_error_clear(net);
        CHECK(gcp_state_bytes(net, GCP_OPTIMIZER_ADAM) == bytes && gcp_is_nil(gcp_nth_parameter(net, 1)));
        y = gcp_conv2d(x, .out = 4, .k = 3, .name = kind ? NULL : "mine");
        CHECK_TEXT(gcp_name(y, name, sizeof name), kind ? "conv2d[0]" : "mine");
        CHECK(!gcp_is_nil(gcp_find(net, kind ? "conv2d[0]/weight" : "mine/weight")));
        fine(1, __LINE__);
    }
}

static void segment_left(void)
{
    GCP_SEGMENT(net, "left") {
        gcp_relu(x);
        if (gcp_elements(x)) return;
    }
}

static void segments(void)
{
    begin();
    int line = __LINE__ + 1;
    GCP_SEGMENT(net, "out") {
        gcp_relu(x);
        break;
    }
    said(GCP_E_SEGMENT, __LINE__, line, "segment 'out[0]': a break left its block");
    works_again(__LINE__);
    begin();
    line = __LINE__ + 1;
    GCP_SEGMENT(net, "empty", .keep = GCP_KEEP_POINTWISE) { }
    said(GCP_E_SEGMENT, __LINE__, line, "segment 'empty[0]': its block recorded no op");
    begin();
    segment_left();
    gcp_plan plan = gcp_plan_make(loss);
    CHECK(!plan.core && gcp_error_code(net) == GCP_E_SEGMENT &&
          strstr(gcp_error(net), "segment 'left[0]': a return or goto left its block"));
    works_again(__LINE__);
}

/* ---- capacities ------------------------------------------------------------------------------------------------*/

static gcp_tape *small(gcp_tape_opts o)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return net = gcp_tape_make_at(&arena, o);
}

static void full_tape(void)
{
    small((gcp_tape_opts) { .ops = 5 });
    gcp_tensor y = gcp_input(net, "x", GCP_SHAPE(2, 4));
    int line = 0;
    for (int i = 0; i < 20; i++) y = (line = __LINE__, gcp_linear(y, .out = 4));
    CHECK(gcp_is_nil(y));
    said(GCP_E_CAPACITY, __LINE__, line, "tape: 5 ops are recorded, 20 were needed so far (.ops = 5)");
    small((gcp_tape_opts) { .ops = 20 });
    y = gcp_input(net, "x", GCP_SHAPE(2, 4));
    for (int i = 0; i < 20; i++) y = gcp_linear(y, .out = 4);
    fine(!gcp_is_nil(y), __LINE__);
}

/* The number asked for must be enough, whatever the layers are. */
static void full_tape_of_norms(void)
{
    small((gcp_tape_opts) { .ops = 3 });
    gcp_tensor y = gcp_input(net, "x", GCP_SHAPE(2, 4));
    int line = 0;
    for (int i = 0; i < 6; i++) y = (line = __LINE__, gcp_relu(gcp_batch_norm(y)));
    said(GCP_E_CAPACITY, __LINE__, line, "tape: 3 ops are recorded, 18 were needed so far (.ops = 3)");
    small((gcp_tape_opts) { .ops = 3 });             /* room for the first of its two ops alone: nothing stays */
    y = gcp_relu(gcp_relu(gcp_input(net, "x", GCP_SHAPE(2, 4))));
    line = __LINE__ + 1;
    CHECK(gcp_is_nil(gcp_batch_norm(y, .name = "bn")));
    said(GCP_E_CAPACITY, __LINE__, line, "tape: 3 ops are recorded, 4 were needed so far (.ops = 3)");
    gcp_error_clear(net);
    CHECK(gcp_is_nil(gcp_nth_parameter(net, 0)) && gcp_is_nil(gcp_find(net, "bn/running_mean")));
    fine(!gcp_is_nil(gcp_tanh(y, .name = "bn")), __LINE__);
}

static void capacities(void)
{
    int line = 0;
    small((gcp_tape_opts) { .ops = 8, .tensors = 3 });
    gcp_tensor y = gcp_input(net, "x", GCP_SHAPE(2, 4));
    for (int i = 0; i < 3; i++) y = (line = __LINE__, gcp_relu(y));
    said(GCP_E_CAPACITY, __LINE__, line, "relu: the tape's 3 tensors are full (.tensors)");
    small((gcp_tape_opts) { .ops = 8, .parameters = 1 });
    gcp_param(net, "a", GCP_SHAPE(1), .fan_in = 1);
    CHECK(!gcp_error(net));
    CHECK(gcp_is_nil((line = __LINE__, gcp_param(net, "b", GCP_SHAPE(1), .fan_in = 1))));
    said(GCP_E_CAPACITY, __LINE__, line, "parameter: the tape's 1 parameters are full (.parameters)");
    small((gcp_tape_opts) { .ops = 8, .segments = 1 });
    y = gcp_input(net, "x", GCP_SHAPE(2, 4));
    for (int i = 0; i < 2; i++) {
        line = __LINE__ + 1;
        GCP_SEGMENT(net, "block") y = gcp_relu(y);
    }
    said(GCP_E_CAPACITY, __LINE__, line, "segment: the tape's 1 segments are full (.segments)");
    small((gcp_tape_opts) { .ops = 8, .names = 8 });
    fine(!gcp_is_nil(gcp_input(net, "seven77", GCP_SHAPE(2, 4))), __LINE__);
    CHECK(gcp_is_nil((line = __LINE__, gcp_input(net, "x", GCP_SHAPE(2, 4)))));
    said(GCP_E_CAPACITY, __LINE__, line, "input: the tape's 8 bytes for names are full (.names)");
    small((gcp_tape_opts) { .ops = 8, .names = 8 });
    CHECK(gcp_is_nil((line = __LINE__, gcp_param(net, "eleven11111", GCP_SHAPE(2, 4)))));
    said(GCP_E_CAPACITY, __LINE__, line, "parameter: the tape's 8 bytes for names are full (.names)");
    small((gcp_tape_opts) { .ops = 8, .tensors = 1 });
    fine(!gcp_is_nil(gcp_input(net, "x", GCP_SHAPE(2, 4))), __LINE__);
    CHECK(gcp_is_nil((line = __LINE__, gcp_input(net, "y", GCP_SHAPE(2, 4)))));
    said(GCP_E_CAPACITY, __LINE__, line, "input: the tape's 1 tensors are full (.tensors)");
    small((gcp_tape_opts) { .ops = 2 });
    gcp_tensor many[60];
    for (int i = 0; i < 60; i++) many[i] = i ? many[0] : gcp_input(net, "x", GCP_SHAPE(2, 4));
    fine(!gcp_is_nil(gcp_concat(many, 60)), __LINE__);
    CHECK(gcp_is_nil((line = __LINE__, gcp_concat(many, 60))));
    said(GCP_E_CAPACITY, __LINE__, line, "concat: the tape's 72 inputs of ops are full (.ops)");
}

/* A tape that found no room holds its error; nothing can be recorded, and nothing crashes. */
static void no_room(void)
{
    char want[320];
    int line = __LINE__ + 2;
    arena = gcp_arena_from(tape_memory, 8192);
    net = gcp_tape_make(&arena, .ops = 64);
    CHECK(net != NULL);
    snprintf(want, sizeof want, "gcp_tape_make: an arena of 8192 bytes is too small for 64 ops, which take %zu bytes",
             gcp_tape_arena(.ops = 64));
    said(GCP_E_NOMEM, __LINE__, line, want);
    for (int clear = 0; clear < 2; clear++) {
        gcp_tensor y = gcp_input(net, "x", GCP_SHAPE(2, 4));
        CHECK(gcp_is_nil(y) && gcp_is_nil(gcp_labels(net, "l", GCP_SHAPE(2))) && gcp_is_nil(gcp_relu(y)) &&
              gcp_is_nil(gcp_linear(y, .out = 2)));
        CHECK(gcp_is_nil(gcp_param(net, "w", GCP_SHAPE(2), .fan_in = 1)) && gcp_is_nil(gcp_nth_parameter(net, 0)) &&
              gcp_is_nil(gcp_find(net, "x")));
        GCP_SEGMENT(net, "block") y = gcp_relu(y);
        CHECK(gcp_plan_make(y).core == NULL);
        gcp_tape_reset(net);
        CHECK(gcp_state_bind(net, state_memory, sizeof state_memory) == GCP_E_NOMEM);
        CHECK(gcp_error_code(net) != GCP_OK);
        gcp_error_clear(net);                        /* the second round: cleared, still without room */
    }
    arena = gcp_arena_from(tape_memory, 64);
    net = gcp_tape_make(&arena, .ops = 64);
    CHECK(net == NULL && gcp_error(net) && gcp_error_code(net) == GCP_E_NOMEM);
    CHECK(gcp_tape_make(NULL, .ops = 64) == NULL);
    CHECK_INT(gcp_tape_arena(.ops = INT_MAX), ==, SIZE_MAX);
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    line = __LINE__ + 1;
    net = gcp_tape_make(&arena, .ops = 64, .names = -1);
    said(GCP_E_ARGUMENT, __LINE__, line,
         "gcp_tape_make: .ops = 64, .tensors = 0, .parameters = 0, .segments = 0, .names = -1; 0 is the default, the "
         "most 2^24 - 1 (.tensors 2^26 - 1)");
    CHECK(gcp_is_nil(gcp_input(net, "x", GCP_SHAPE(2, 4))));
}

/* ---- plans -----------------------------------------------------------------------------------------------------*/

static void plan_said(gcp_plan plan, gcp_code code, int line, const char *text)
{
    if (!check_report(!plan.core && plan.bytes == 0, __FILE__, line)) fprintf(stderr, "a plan was made\n");
    said(code, line, line, text);
    works_again(line);
}
#define PLAN(code, text, ...) (begin(), plan_said((__VA_ARGS__), (code), __LINE__, "gcp_plan_make: " text))
#define PLAN_OK(...) (begin(), fine((__VA_ARGS__).core != NULL, __LINE__))

static gcp_tensor chain(int units)
{
    gcp_tensor y = flat;
    for (int i = 0; i < units; i++) y = gcp_linear(y, .out = 4);
    return gcp_mean(y);
}

static void any_hook(void *context, gcp_tensor p, gcp_real *g, size_t count)
{
    (void)context;
    (void)p;
    (void)g;
    (void)count;
}

/* An option belongs to a policy, an optimiser, a hook. */
static void options_that_apply(void)
{
    PLAN(GCP_E_PLAN, ".segments belongs to GCP_POLICY_UNIFORM", gcp_plan_make(loss, .segments = 2));
    PLAN(GCP_E_PLAN, ".segments belongs to GCP_POLICY_UNIFORM", gcp_plan_make(loss, .segments = 2, .list = "F x"));
    PLAN(GCP_E_PLAN, ".list stands in place of a .policy; GCP_POLICY_BUDGET alone goes with it",
         gcp_plan_make(loss, .policy = GCP_POLICY_SQRT, .list = "F x"));
    PLAN(GCP_E_PLAN, "an inference plan keeps nothing: no .segments, .balance, .checkpoints or .replay",
         gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = -7, .inference = 1));
    PLAN(GCP_E_PLAN, ".on_wait and .hook_context need .on_gradient", gcp_plan_make(loss, .hook_context = &loss));
    PLAN_OK(gcp_plan_make(loss, .replay = GCP_ZERO, .inference = GCP_ZERO, .fuse_update = GCP_ZERO));
    PLAN(GCP_E_PLAN, ".balance belongs to GCP_POLICY_UNIFORM",
         gcp_plan_make(loss, .policy = GCP_POLICY_SQRT, .balance = 1));
    PLAN(GCP_E_PLAN, ".checkpoints belongs to GCP_POLICY_CHECKPOINTS",
         gcp_plan_make(loss, .policy = GCP_POLICY_UNIFORM, .segments = 2, .checkpoints = 1));
    PLAN(GCP_E_PLAN, ".replay belongs to GCP_POLICY_CHECKPOINTS",
         gcp_plan_make(loss, .policy = GCP_POLICY_KEEP_ALL, .replay = 1));
    PLAN(GCP_E_PLAN, ".effort belongs to GCP_POLICY_BUDGET", gcp_plan_make(loss, .effort = GCP_EFFORT_QUICK));
    PLAN(GCP_E_PLAN, ".momentum belongs to GCP_OPTIMIZER_SGD",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .momentum = 0.9));
    PLAN(GCP_E_PLAN, ".momentum belongs to GCP_OPTIMIZER_SGD", gcp_plan_make(loss, .momentum = 0.9));
    PLAN(GCP_E_PLAN, ".beta1 and .beta2 belong to GCP_OPTIMIZER_ADAM and GCP_OPTIMIZER_ADAMW",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .beta2 = 0.9));
    PLAN(GCP_E_PLAN, ".epsilon belongs to GCP_OPTIMIZER_ADAM and GCP_OPTIMIZER_ADAMW",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .epsilon = 1e-3));
    PLAN(GCP_E_PLAN, ".weight_decay belongs to an .optimizer", gcp_plan_make(loss, .weight_decay = 0.1));
    PLAN(GCP_E_PLAN, ".clip_value belongs to an .optimizer", gcp_plan_make(loss, .clip_value = 1));
    PLAN(GCP_E_PLAN, ".clip_norm belongs to an .optimizer", gcp_plan_make(loss, .clip_norm = 1));
    PLAN_OK(gcp_plan_make(chain(5), .policy = GCP_POLICY_UNIFORM, .segments = 2, .balance = 1,
                          .optimizer = GCP_OPTIMIZER_ADAMW, .weight_decay = 0.1, .clip_norm = 1));
}

static void plan_options(void)
{
    options_that_apply();
    PLAN(GCP_E_SHAPE, "the loss is 2x4, not a scalar (gcp_mean makes one)", gcp_plan_make(gcp_relu(flat)));
    PLAN_OK(gcp_plan_make(gcp_relu(flat), .inference = 1));
    PLAN(GCP_E_PLAN, "the tensor is an input or parameter: there is nothing to run", gcp_plan_make(flat));
    PLAN(GCP_E_PLAN, "the tensor is an input or parameter: there is nothing to run",
         gcp_plan_make(weight, .inference = 1));
    PLAN(GCP_E_PLAN, "the loss depends on no parameter that trains and on no input with gcp_want_grad",
         gcp_plan_make(gcp_mean(flat)));
    PLAN(GCP_E_PLAN, "the loss depends on no parameter that trains and on no input with gcp_want_grad",
         gcp_plan_make((gcp_freeze(weight), loss)));
    PLAN_OK(gcp_plan_make((gcp_freeze(weight), gcp_want_grad(flat), loss)));
    PLAN(GCP_E_ARGUMENT, "a nil tensor", gcp_plan_make(gcp_nth_parameter(net, 7)));
    PLAN(GCP_E_PLAN, "unknown .policy", gcp_plan_make(loss, .policy = (gcp_policy)8));
    PLAN(GCP_E_PLAN, "unknown .optimizer", gcp_plan_make(loss, .optimizer = (gcp_optimizer)4));
    PLAN(GCP_E_PLAN, "an inference plan has no .optimizer",
         gcp_plan_make(loss, .inference = 1, .optimizer = GCP_OPTIMIZER_SGD));
    PLAN(GCP_E_PLAN, "an inference plan has no .accumulate", gcp_plan_make(loss, .inference = 1, .accumulate = 2));
    PLAN(GCP_E_PLAN, "an inference plan has no .on_gradient",
         gcp_plan_make(loss, .inference = 1, .on_gradient = any_hook));
    PLAN(GCP_E_PLAN, "an inference plan has no .fuse_update", gcp_plan_make(loss, .inference = 1, .fuse_update = 1));
    PLAN(GCP_E_PLAN, ".budget is at least 1 byte; left out there is no limit",
         gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = (size_t)GCP_ZERO));
}

static void update_options(void)
{
    PLAN(GCP_E_PLAN, ".fuse_update without .optimizer", gcp_plan_make(loss, .fuse_update = 1));
    PLAN(GCP_E_PLAN, ".fuse_update (or a .list of fused updates) with .clip_norm: the norm needs all gradients first",
         gcp_plan_make(loss, .fuse_update = 1, .optimizer = GCP_OPTIMIZER_SGD, .clip_norm = 1));
    PLAN(GCP_E_PLAN,
         ".fuse_update (or a .list of fused updates) with .accumulate: gradients are not finished before the last "
         "micro-batch",
         gcp_plan_make(loss, .fuse_update = 1, .optimizer = GCP_OPTIMIZER_SGD, .accumulate = 2));
    PLAN_OK(gcp_plan_make(loss, .fuse_update = 1, .optimizer = GCP_OPTIMIZER_SGD, .clip_value = 1));
    PLAN(GCP_E_PLAN, ".accumulate is at least 0", gcp_plan_make(loss, .accumulate = -1));
    PLAN(GCP_E_PLAN, ".accumulate_labels belongs to .accumulate", gcp_plan_make(loss, .accumulate_labels = 1));
    PLAN(GCP_E_PLAN,
         ".accumulate_labels: the loss is not a gcp_cross_entropy of labels without weights, nor a (scaled) sum of "
         "several of the same labels and .ignore",
         gcp_plan_make(gcp_mean(gcp_mul(weight, weight)), .accumulate = 2, .accumulate_labels = 1));
    PLAN(GCP_E_PLAN, ".clip_norm = -1; at least 0, and finite",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .clip_norm = -1));
    PLAN(GCP_E_PLAN, ".momentum = -0.5; at least 0, and finite",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = -0.5));
    PLAN(GCP_E_PLAN, ".weight_decay = nan; at least 0, and finite",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .weight_decay = fabs(NAN)));
    PLAN(GCP_E_PLAN, ".clip_value = inf; at least 0, and finite",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .clip_value = HUGE_VAL));
    PLAN(GCP_E_PLAN, ".beta1 = 1; at least 0 and below 1",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .beta1 = 1));
    PLAN(GCP_E_PLAN, ".beta2 = -0.1; at least 0 and below 1",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .beta2 = -0.1));
    PLAN_OK(gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .beta1 = GCP_ZERO, .beta2 = GCP_ZERO,
                          .epsilon = GCP_ZERO, .weight_decay = GCP_ZERO));
    PLAN(GCP_E_PLAN, ".nesterov needs GCP_OPTIMIZER_SGD with .momentum",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_SGD, .nesterov = 1));
    PLAN(GCP_E_PLAN, ".nesterov needs GCP_OPTIMIZER_SGD with .momentum",
         gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .nesterov = 1));
}

static void cut_options(void)
{
    PLAN(GCP_E_PLAN, ".checkpoints = 5 of 5 units; allowed are 0 to 4",
         gcp_plan_make(chain(5), .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 5));
    PLAN(GCP_E_PLAN, ".checkpoints = -1 of 5 units; allowed are 0 to 4",
         gcp_plan_make(chain(5), .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = -1));
    PLAN_OK(gcp_plan_make(chain(5), .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = 4));
    PLAN(GCP_E_PLAN, "the network has no op before the loss, so there is nothing to cut: use GCP_POLICY_KEEP_ALL",
         gcp_plan_make(gcp_mean(gcp_want_grad(flat)), .policy = GCP_POLICY_UNIFORM, .segments = 1));
    PLAN(GCP_E_PLAN, "the network has no op before the loss, so there is nothing to cut: use GCP_POLICY_KEEP_ALL",
         gcp_plan_make(gcp_mean(gcp_want_grad(flat)), .policy = GCP_POLICY_CHECKPOINTS));
    PLAN(GCP_E_PLAN, ".segments = 0 of 5 units; allowed are 1 to 5",
         gcp_plan_make(chain(5), .policy = GCP_POLICY_UNIFORM));
    PLAN(GCP_E_PLAN, ".segments = 6 of 5 units; allowed are 1 to 5",
         gcp_plan_make(chain(5), .policy = GCP_POLICY_UNIFORM, .segments = 6));
    PLAN_OK(gcp_plan_make(chain(5), .policy = GCP_POLICY_UNIFORM, .segments = 5));
}

static void plan_targets(void)
{
    gcp_target t = { .align = 48 }, low = { .align = 4 }, isa = { .isa = 99 }, good = { .align = 8 };
    const gcp_target huge = { .align = (size_t)1 << (sizeof(size_t) * 8 - 1) },
                     endless = { .flops_per_second = HUGE_VAL }, back = { .far_bytes_per_second = -1 },
                     fewer = { .threads = -1 }, halves = { .bf16_flops_per_second = -1 },
                     slow = { .bytes_per_second = 1e-300 };
    PLAN(GCP_E_PLAN, "the target's .align is not a power of two up to 2^30", gcp_plan_make(loss, .target = &t));
    PLAN(GCP_E_PLAN, "the target's .align is not a power of two up to 2^30", gcp_plan_make(loss, .target = &huge));
#define RATES                                                                                                      \
    "the target's .flops_per_second, .bf16_flops_per_second, .bytes_per_second and .far_bytes_per_second are 0 (the " \
    "default) or positive, and finite"
    PLAN(GCP_E_PLAN, RATES, gcp_plan_make(loss, .target = &endless));
    PLAN(GCP_E_PLAN, RATES, gcp_plan_make(loss, .target = &back));
    PLAN(GCP_E_PLAN, RATES, gcp_plan_make(loss, .target = &halves));
    PLAN(GCP_E_PLAN, "the target's .threads = -1; at least 0", gcp_plan_make(loss, .target = &fewer));
    PLAN(GCP_E_PLAN, "at the target's .flops_per_second and .bytes_per_second a step takes no finite time",
         gcp_plan_make(loss, .target = &slow));
    PLAN(GCP_E_PLAN, ".check is GCP_CHECK or 0", gcp_plan_make(loss, .check = 2));
    PLAN(GCP_E_PLAN, "GCP_POLICY_BUDGET needs .budget (bytes)", gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET));
    PLAN_OK(gcp_plan_make(loss, .policy = GCP_POLICY_CHECKPOINTS, .checkpoints = GCP_ZERO));
    PLAN(GCP_E_PLAN, "the target's .align is below 8", gcp_plan_make(loss, .target = &low));
    PLAN(GCP_E_PLAN, "the target's .isa: found 99, expected 0 (the best) or one of GCP_ISA_... that this machine has",
         gcp_plan_make(loss, .target = &isa));
    PLAN_OK(gcp_plan_make(loss, .target = &good));
    begin();
    gcp_tensor old = loss;
    stale();
    int line = __LINE__ + 1;
    gcp_plan plan = gcp_plan_make(old);
    CHECK(!plan.core);
    said(GCP_E_STALE, __LINE__, line, "gcp_plan_make: a tensor from before the tape's reset");
}

static void plan_budget(void)
{
    PLAN(GCP_E_PLAN, ".far belongs to GCP_POLICY_BUDGET",
         gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .list = "F mean[0]", .far = 1024));
    char want[320];
    begin();
    int line = __LINE__ + 1;
    gcp_tensor wide = gcp_mean(gcp_mul(gcp_tanh(gcp_linear(flat, .out = 512)), gcp_input(net, "m", GCP_SHAPE(2, 512))));
    gcp_plan plan = gcp_plan_make(wide, .policy = GCP_POLICY_KEEP_ALL);
    size_t bytes = plan.bytes;
    CHECK(bytes > 0);
    plan = gcp_plan_make(wide, .policy = GCP_POLICY_KEEP_ALL, .budget = bytes);
    fine(plan.core && plan.bytes == bytes, __LINE__);
    int made = __LINE__ + 1;
    plan = gcp_plan_make(wide, .policy = GCP_POLICY_KEEP_ALL, .budget = bytes - 1);
    snprintf(want, sizeof want,
             "test_errors.c:%d: gcp_plan_make: the plan takes %zu bytes, .budget allows %zu; the peak is at ", made,
             bytes, bytes - 1);
    CHECK(!plan.core && gcp_error(net) && !strncmp(gcp_error(net), want, strlen(want)));
    const char *rest = gcp_error(net) + strlen(want);
    char name[64], place[64];
    snprintf(place, sizeof place, "(test_errors.c:%d)", line);
    CHECK(sscanf(rest, "%*c %63s", name) == 1 && strchr(name, '[') && strstr(rest, place));
    CHECK_INT(gcp_error_code(net), ==, GCP_E_BUDGET);
    seen[GCP_E_BUDGET] = 1;
    cases++;
    works_again(__LINE__);
}

static unsigned char plan_memory[1 << 23];

static gcp_tensor arena_net(int kind)
{
    gcp_tensor y = gcp_conv2d(x, .out = 4, .k = 3, .pad = 1);
    for (int i = 0; i < 3 + kind % 5; i++)
        GCP_SEGMENT(net, "block") {
            gcp_tensor z = kind & 1 ? gcp_batch_norm(y) : gcp_relu(y);
            if (kind & 2) GCP_SEGMENT(net, "inner") z = gcp_conv2d(z, .out = 4, .k = 3, .padding = GCP_PADDING_SAME);
            if (kind & 4)
                z = gcp_slice(gcp_concat(GCP_TENSORS(z, y, gcp_dropout(z, .rate = 0.5))), .first = 2, .count = 4);
            y = kind & 8 ? gcp_add(z, y) : gcp_tanh(z);
            if (kind & 16) y = gcp_max_pool(y, .k = 3, .stride = 1, .pad = 1);
        }
    return gcp_mean(gcp_linear(gcp_flatten(y), .out = 3));
}

/* gcp_plan_arena's bytes are enough for every policy; far too few are an error with both numbers. */
static void plan_arenas(void)
{
    char want[240];
    for (int kind = 0; kind < 20; kind++)
        for (int policy = GCP_POLICY_SEGMENTS; policy <= GCP_POLICY_CHEAP; policy++)
            for (int replay = 0; replay <= (policy == GCP_POLICY_CHECKPOINTS); replay++) {
                begin();
                gcp_tensor out = arena_net(kind);
                gcp_arena own;
                gcp_plan_opts o = { .policy = (gcp_policy)policy,
                                    .segments = 2,
                                    .checkpoints = 2,
                                    .replay = replay,
                                    .arena = &own,
                                    .check = kind & 1,
                                    .optimizer = GCP_OPTIMIZER_ADAM,
                                    .clip_norm = 1 };
                o = fitting(o);
                size_t bytes = gcp_plan_arena_at(out, o);
                own = gcp_arena_from(plan_memory, bytes);
                CHECK(bytes <= sizeof plan_memory);
                gcp_plan plan = gcp_plan_make_at(out, o);
                if (!check_report(plan.core && !gcp_error(net), __FILE__, __LINE__))
                    fprintf(stderr, "net %d policy %d: %s\n", kind, policy, gcp_error(net));
                o.at = GCP_AT;
                own = gcp_arena_from(plan_memory, 2048);
                plan = gcp_plan_make_at(out, o);
                CHECK(!plan.core && own.used == 0 && own.scratch == 0);
                snprintf(want, sizeof want,
                         "gcp_plan_make: the plan's arena of 2048 bytes is too small; %zu are enough (gcp_plan_arena)",
                         bytes);
                said(GCP_E_NOMEM, __LINE__, o.at.line, want);
            }
}

/* Where the arena cuts the search short, the message of a budget that was not met says so. */
static void short_arena(void)
{
    begin();
    gcp_tensor y = chain(30);
    gcp_plan plan = gcp_plan_make(y, .policy = GCP_POLICY_BUDGET, .budget = 1);
    CHECK(!plan.core && gcp_error_code(net) == GCP_E_BUDGET && !strstr(gcp_error(net), "arena"));
    gcp_error_clear(net);
    int coarse = 0;
    for (size_t bytes = 1 << 15; bytes < 1 << 20; bytes += bytes / 4) {
        gcp_arena own = gcp_arena_from(plan_memory, bytes);
        plan = gcp_plan_make(y, .policy = GCP_POLICY_BUDGET, .budget = 1, .arena = &own);
        CHECK(!plan.core && (gcp_error_code(net) == GCP_E_BUDGET || gcp_error_code(net) == GCP_E_NOMEM));
        CHECK(plan.coarse ==
              (strstr(gcp_error(net), "(the plan's arena had no room for all of the search: gcp_plan_arena)") != NULL));
        coarse += plan.coarse;
        gcp_error_clear(net);
    }
    CHECK(coarse > 0);
}

/* A plan is made before the one that it replaces is freed: what that costs is said when it ends. */
static void freed_too_late(void)
{
    begin();
    gcp_plan plan = gcp_plan_make(loss);
    for (int i = 0; i < 10000 && plan.core; i++) {
        gcp_plan next = gcp_plan_make(loss);
        gcp_plan_free(&plan);
        plan = next;
    }
    CHECK(gcp_error_code(net) == GCP_E_NOMEM && strstr(gcp_error(net), "; freed plans below a living one hold ") &&
          strstr(gcp_error(net), "free before you make"));
}

/* ---- memory ----------------------------------------------------------------------------------------------------*/

static void code_said(gcp_code got, gcp_code code, int line, int at, const char *text)
{
    if (!check_report(got == code, __FILE__, line))
        fprintf(stderr, "returned '%s', not '%s'\n", gcp_code_text(got), gcp_code_text(code));
    said(code, line, at, text);
    gcp_error_clear(net);
}

/* Every call on a plan that was not made, or of an earlier recording, refuses, returns zeros and reports nothing. */
static void count_bytes(void *context, const char *text, size_t size) { (void)text; *(size_t *)context += size; }

static size_t all_reports(const gcp_plan *plan)
{
    size_t bytes = 0;
    gcp_writer w = { count_bytes, &bytes };
    gcp_list_print(plan, w);
    gcp_plan_print(plan, w);
    gcp_layers_print(plan, w);
    gcp_why_print(plan, w);
    gcp_memory_svg(plan, NULL, w);
    return bytes;
}

static void unusable(gcp_plan *plan, gcp_code code, const char *why)
{
    static const char *const calls[] = { "gcp_bind", "gcp_unbind",  "gcp_write",   "gcp_read",     "gcp_grad",
                                         "gcp_step", "gcp_forward", "gcp_measure", "gcp_gradcheck" };
    gcp_real data[64] = { 0 };
    for (int i = 0; i < 9; i++) {
        char text[160];
        gcp_code got = code;
        double value = 0;
        if (i == 0) got = gcp_bind(plan, step_memory, sizeof step_memory);
        if (i == 1) got = gcp_unbind(plan);
        if (i == 2) got = gcp_write(plan, flat, data);
        if (i == 3) got = gcp_read(plan, flat, data);
        if (i == 4) got = gcp_grad(plan, flat, data);
        if (i == 5) value = gcp_step(plan);
        if (i == 6) value = gcp_forward(plan);
        if (i == 7) value = (double)gcp_measure(plan, more_memory, sizeof more_memory);
        if (i == 8) value = gcp_gradcheck(plan, .step = 1e-3).elements;
        CHECK(i == 5 || i == 6 ? isnan(value) : value == 0);
        snprintf(text, sizeof text, "%s: %s", calls[i], why);
        code_said(got, code, __LINE__, 0, text);
    }
    CHECK_INT(all_reports(plan), ==, 0);
}

static void unusable_plans(void)
{
    begin();
    gcp_plan failed = gcp_plan_make(loss, .policy = (gcp_policy)99), plan, null_plan = { 0 };
    gcp_error_clear(net);
    unusable(&failed, GCP_E_PLAN, "the plan was not made (see gcp_plan_ok), or was freed");
    works_again(__LINE__);
    begin();
    plan = gcp_plan_make(loss);
    stale();
    gcp_plan_make(gcp_mean(gcp_bias(flat, weight)), .policy = GCP_POLICY_SQRT);      /* lies where the old plan lay */
    unusable(&plan, GCP_E_STALE, "a plan from before the tape's reset");
    CHECK(gcp_bind(NULL, step_memory, 64) != GCP_OK && gcp_unbind(NULL) != GCP_OK &&
          gcp_write(NULL, flat, NULL) != GCP_OK);
    CHECK(gcp_read(NULL, flat, NULL) != GCP_OK && gcp_grad(NULL, flat, NULL) != GCP_OK &&
          isnan(gcp_step(NULL, .lr = 1)) && isnan(gcp_forward(NULL, .lr = 1)));
    CHECK(gcp_measure(NULL, NULL, 0, .lr = 1) == 0 && gcp_gradcheck(NULL, .step = 1).elements == 0);
    CHECK(gcp_bind(&null_plan, NULL, 0) != GCP_OK && isnan(gcp_step(&null_plan)) && all_reports(&null_plan) == 0);
    CHECK_INT(all_reports(NULL), ==, 0);
}

static void no_tape(void)
{
    char text[8] = "old";
    CHECK(gcp_error(NULL) && gcp_error_code(NULL) == GCP_E_NOMEM);
    gcp_error_clear(NULL);
    gcp_tape_reset(NULL);
    gcp_slots_reset(NULL);
    CHECK(gcp_is_nil(gcp_input(NULL, "x", GCP_SHAPE(2))) && gcp_is_nil(gcp_labels(NULL, "x", GCP_SHAPE(2))) &&
          gcp_is_nil(gcp_param(NULL, "x", GCP_SHAPE(2), .fan_in = 1)));
    CHECK(gcp_is_nil(gcp_nth_parameter(NULL, 0)) && gcp_is_nil(gcp_find(NULL, "x")) &&
          gcp_state_bytes(NULL, GCP_OPTIMIZER_ADAM) == 0 && gcp_steps_done(NULL) == 0);
    CHECK(gcp_state_bind(NULL, state_memory, 64) != GCP_OK && gcp_plan_make(GCP_NIL).core == NULL &&
          gcp_plan_arena(GCP_NIL) == 0);
    CHECK_TEXT(gcp_name(GCP_NIL, text, sizeof text), "");
    CHECK(gcp_name(GCP_NIL, NULL, 0) == NULL);
    GCP_SEGMENT(NULL, "none") text[0] = 'x';
    CHECK(text[0] == 'x');
    CHECK(gcp_code_text(GCP_ERROR_COUNT) != NULL && gcp_code_text((gcp_code)-1) != NULL);
    for (int code = 0; code < GCP_ERROR_COUNT; code++) CHECK(gcp_code_text((gcp_code)code)[0] != 0);
}

static gcp_plan training(void)
{
    begin();
    return gcp_plan_make_at(loss, SITE(gcp_plan_opts, 7, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9));
}

static void binds(void)
{
    char text[160];
    gcp_plan plan = training();
    code_said((gcp_code)(isnan(gcp_step(&plan, .lr = 1)) ? GCP_E_BIND : GCP_OK), GCP_E_BIND, __LINE__, __LINE__,
              "gcp_step: the plan is not bound");
    code_said(gcp_write(&plan, flat, (void *)step_memory), GCP_E_BIND, __LINE__, __LINE__,
              "gcp_write: the plan is not bound");
    snprintf(text, sizeof text, "gcp_bind: no memory, and the target allocates none; %zu bytes are needed (plan.room)",
             plan.bytes + 63);
    code_said(gcp_bind(&plan, NULL, 0), GCP_E_BIND, __LINE__, __LINE__, text);
    snprintf(text, sizeof text, "gcp_bind: 7 bytes at NULL; %zu are needed (plan.room)", plan.room);
    code_said(gcp_bind(&plan, NULL, 7), GCP_E_BIND, __LINE__, __LINE__, text);
    snprintf(text, sizeof text,
             "gcp_bind: %zu bytes given, %zu needed at this address; %zu are enough at any (plan.room, gcp_plans_room)",
             plan.bytes - 1, plan.bytes, plan.bytes + 63);
    code_said(gcp_bind(&plan, step_memory, plan.bytes - 1), GCP_E_BIND, __LINE__, __LINE__, text);
    CHECK(isnan(gcp_step(&plan, .lr = 1)));
    CHECK_INT(gcp_error_code(net), ==, GCP_E_BIND);
    gcp_error_clear(net);
    fine(gcp_bind(&plan, step_memory, plan.bytes) == GCP_OK, __LINE__);
    plan = training();                               /* 63 bytes are lost to alignment and must be there too */
    CHECK(gcp_bind(&plan, step_memory + 1, plan.bytes + 62) == GCP_E_BIND);
    gcp_error_clear(net);
    fine(gcp_bind(&plan, step_memory + 1, plan.bytes + 63) == GCP_OK, __LINE__);
    plan = training();
    CHECK(gcp_bind(&plan, step_memory + 1, 5) == GCP_E_BIND);
}

/* Memory of plan.bytes, aligned to the target's align, is enough for any align. */
static void wide_align(void)
{
    for (size_t align = 8; align <= 4096; align *= 2) {
        gcp_target t = { .align = align };
        begin();
        gcp_plan plan = gcp_plan_make(loss, .optimizer = GCP_OPTIMIZER_ADAM, .target = &t);
        fine(gcp_bind(&plan, step_memory, plan.bytes) == GCP_OK && feed(&plan) == GCP_OK, __LINE__);
        CHECK_INT(gcp_step(&plan, .lr = 0.1) != 0, ==, 1);
    }
}

/* A bind that failed leaves no plan that still runs in its old place. */
static void failed_rebind(void)
{
    begin();
    gcp_plan inference = gcp_plan_make(loss, .inference = 1),
             train = gcp_plan_make_at(loss, SITE(gcp_plan_opts, 8, .optimizer = GCP_OPTIMIZER_ADAM));
    CHECK(gcp_bind(&inference, step_memory, sizeof step_memory) == GCP_OK &&
          gcp_bind(&train, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(gcp_bind(&inference, step_memory, 64) == GCP_E_BIND);
    gcp_error_clear(net);
    CHECK(gcp_write(&inference, flat, zeros) == GCP_E_BIND && strstr(gcp_error(net), "the plan is not bound"));
    gcp_error_clear(net);
    fine(gcp_bind(&inference, step_memory, sizeof step_memory) == GCP_OK, __LINE__);
}

static void states(void)
{
    char text[200];
    gcp_plan plan = training();
    size_t need = gcp_state_bytes(net, GCP_OPTIMIZER_NONE);
    snprintf(
        text, sizeof text,
        "gcp_state_bind: %zu bytes given, %zu needed at this address, and what the optimiser takes (gcp_state_bytes)",
        need - 1, need);
    code_said(gcp_state_bind(net, more_memory, need - 1), GCP_E_BIND, __LINE__, __LINE__, text);
    CHECK(gcp_state_bind(net, NULL, 1000) == GCP_E_BIND);
    gcp_error_clear(net);
    CHECK(gcp_state_bind(net, more_memory, need) == GCP_OK);
    code_said(gcp_state_bind(net, more_memory, need), GCP_E_STATE, __LINE__, __LINE__,
              "gcp_state_bind: the state has memory already: gcp_state_bind comes before the first gcp_bind, once");
    snprintf(text, sizeof text,
             "gcp_bind: the state's home (gcp_state_bind) has %zu bytes and stays it; with this optimiser it takes %zu "
             "(gcp_state_bytes)",
             need, gcp_state_bytes(net, GCP_OPTIMIZER_SGD));
    code_said(gcp_bind(&plan, step_memory, sizeof step_memory), GCP_E_STATE, __LINE__, __LINE__, text);
    plan = training();
    CHECK(gcp_state_bind(net, more_memory, gcp_state_bytes(net, GCP_OPTIMIZER_SGD)) == GCP_OK);
    code_said(gcp_bind(&plan, more_memory + 64, sizeof more_memory - 64), GCP_E_BIND, __LINE__, __LINE__,
              "gcp_bind: the memory overlaps the state, which stays where it was bound first");
    fine(gcp_bind(&plan, more_memory + gcp_state_bytes(net, GCP_OPTIMIZER_SGD), plan.slab_bytes) == GCP_OK, __LINE__);
}

static void optimisers(void)
{
    gcp_plan sgd = training(), adam = gcp_plan_make_at(loss, SITE(gcp_plan_opts, 9, .optimizer = GCP_OPTIMIZER_ADAM));
    CHECK(gcp_bind(&sgd, step_memory, sizeof step_memory) == GCP_OK);
    code_said(gcp_bind(&adam, step_memory, sizeof step_memory), GCP_E_STATE, __LINE__, __LINE__,
              "gcp_bind: the state holds slots of another optimiser; gcp_slots_reset forgets them");
    gcp_slots_reset(net);
    fine(gcp_bind(&adam, step_memory, sizeof step_memory) == GCP_OK, __LINE__);
    begin();
    gcp_plan plain = gcp_plan_make(loss);
    adam = gcp_plan_make_at(loss, SITE(gcp_plan_opts, 9, .optimizer = GCP_OPTIMIZER_ADAM));
    CHECK(gcp_bind(&plain, step_memory, sizeof step_memory) == GCP_OK);
    code_said(gcp_bind(&adam, more_memory, sizeof more_memory), GCP_E_STATE, __LINE__, __LINE__,
              "gcp_bind: the optimiser's slots must follow the weights, in the memory that was bound first: bind this "
              "plan there (gcp_plans_room of all plans says how much "
              "to give at first)");
}

static void accesses(void)
{
    gcp_real data[1024] = { 0 };
    gcp_plan plan = training();
    gcp_tensor hidden = gcp_find(net, "w");
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    code_said(gcp_write(&plan, loss, data), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_write: 'mean[0]' is neither an input nor a parameter");
    code_said(gcp_write(&plan, flat, NULL), GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_write: 'flat' from NULL");
    code_said(gcp_write(&plan, foreign, data), GCP_E_FOREIGN, __LINE__, __LINE__,
              "gcp_write: a tensor of another tape");
    code_said(gcp_write(&plan, GCP_NIL, data), GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_write: a nil tensor");
    code_said(gcp_read(&plan, flat, NULL), GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_read: 'flat' to NULL");
    code_said(gcp_grad(&plan, weight, data), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_grad: 'w' has no gradient that outlives the step: plan without an optimiser, or gcp_want_grad for "
              "an input");
    code_said(gcp_grad(&plan, flat, data), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_grad: 'flat' has no gradient that outlives the step: plan without an optimiser, or gcp_want_grad "
              "for an input");
    code_said(gcp_read(&plan, flat, data), GCP_E_INPUT, __LINE__, __LINE__,
              "gcp_read: 'flat' was not written since gcp_bind");
    code_said(gcp_read(&plan, loss, data), GCP_E_INPUT, __LINE__, __LINE__,
              "gcp_read: 'mean[0]' has no value yet: no step has run since gcp_bind");
    feed(&plan);
    gcp_step(&plan, .lr = 0.1);
    fine(gcp_read(&plan, hidden, data) == GCP_OK && gcp_write(&plan, hidden, data) == GCP_OK &&
             gcp_read(&plan, loss, data) == GCP_OK,
         __LINE__);
    begin();
    gcp_tensor mid = gcp_relu(gcp_bias(flat, weight));
    plan = gcp_plan_make_at(gcp_mean(mid), SITE(gcp_plan_opts, 7, .policy = GCP_POLICY_SEGMENTS));
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    feed(&plan);
    gcp_step(&plan);
    code_said(gcp_read(&plan, mid, data), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_read: 'relu[0]' is not kept: mark it with gcp_keep before planning");
    code_said(gcp_grad(&plan, weight, NULL), GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_grad: 'w' to NULL");
    fine(gcp_grad(&plan, weight, data) == GCP_OK, __LINE__);
}

static void runs(void)
{
    char text[160];
    gcp_plan plan = training(), inference = gcp_plan_make(loss, .inference = 1);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK &&
          gcp_bind(&inference, step_memory, sizeof step_memory) == GCP_OK);
    CHECK(isnan(gcp_step(&inference)));
    said(GCP_E_PLAN, __LINE__, __LINE__, "gcp_step: an inference plan: use gcp_forward");
    gcp_error_clear(net);
    CHECK(isnan(gcp_forward(&plan)));
    said(GCP_E_PLAN, __LINE__, __LINE__, "gcp_forward: a training plan: use gcp_step, or plan with .inference = 1");
    CHECK(isnan(gcp_step(&plan, .lr = 1)));     /* the first error sticks */
    CHECK(strstr(gcp_error(net), "gcp_forward") && gcp_steps_done(net) == 0);
    gcp_error_clear(net);
    CHECK_INT((gcp_gradcheck(&plan, .step = 1).passed), ==, 0);
    said(GCP_E_PLAN, __LINE__, __LINE__, "gcp_gradcheck: needs a training plan without optimiser or accumulation");
    gcp_error_clear(net);
    snprintf(text, sizeof text,
             "gcp_measure: %zu bytes given, more than %zu needed at this address; more than %zu are enough at any "
             "(plan.room)",
             plan.bytes, plan.bytes, plan.room);
    CHECK_INT((gcp_measure(&plan, more_memory, plan.bytes, .lr = 1)), ==, 0);
    said(GCP_E_BIND, __LINE__, __LINE__, text);
    gcp_error_clear(net);
    CHECK_INT((gcp_measure(&plan, step_memory, sizeof step_memory, .lr = 1)), ==, 0);
    said(GCP_E_BIND, __LINE__, __LINE__, "gcp_measure: the memory overlaps the plan's own");
    gcp_error_clear(net);
    CHECK_INT((gcp_measure(&plan, NULL, 0, .lr = 1)), ==, 0); CHECK_INT(gcp_error_code(net), ==, GCP_E_BIND);
    gcp_error_clear(net);
    size_t used = gcp_measure(&plan, more_memory, plan.bytes + 64);
    CHECK(used > 0 && used <= plan.bytes && !gcp_error(net));
}

/* A rate goes with an optimiser, and only with one. */
/* A batch that is not full: whatever reads its labels must be able to leave samples out. */
static void in_part_said(gcp_plan *plan, gcp_tensor t, const void *data, int samples, int line, const char *text)
{
    char want[300];
    snprintf(want, sizeof want, "gcp_write_some: %s", text);
    gcp_code code = gcp_write_some_at(plan, t, data, samples, (gcp_at) { "test_errors.c", line });
    code_said(code, GCP_E_ARGUMENT, line, line, want);
    gcp_error_clear(net);
}

static const char *joined(const char *op, int line, const char *more)
{
    static char text[256];
    snprintf(text, sizeof text,
             "'flat' cannot be written in part: '%s' (test_errors.c:%d) makes one value of several samples%s", op, line,
             more);
    return text;
}

static void in_part(void)
{
    const int32_t two[2] = { 1, 1 };
    begin();
    gcp_tensor other = gcp_cross_entropy(gcp_linear(flat, .out = 3), ids, .ignore = 2);
    gcp_plan plan = gcp_plan_make(gcp_add(gcp_cross_entropy(flat, ids, .ignore = 3), other));
    gcp_bind(&plan, step_memory, sizeof step_memory);
    in_part_said(&plan, ids, two, 1, __LINE__, "'ids' is read by ops that cannot ignore the same label");
    in_part_said(&plan, ids, two, 3, __LINE__, "'ids' was given 3 samples; 1 to 2 are allowed");
    in_part_said(&plan, ids, NULL, 1, __LINE__, "'ids' from NULL");
    in_part_said(&plan, gcp_nth_parameter(net, 1), zeros, 1, __LINE__, "'linear[0]/weight' is no input");
    begin();
    gcp_tensor out = gcp_linear(flat, .out = 4);
    plan = gcp_plan_make(gcp_mse(flat, out));
    const int at = __LINE__ - 1;
    gcp_bind(&plan, step_memory, sizeof step_memory);
    in_part_said(&plan, flat, zeros, 1, __LINE__, joined("mse[0]", at, ""));
    fine(gcp_write_some(&plan, flat, zeros, 2) == GCP_OK, __LINE__);
    plan = gcp_plan_make(out, .inference = 1);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    fine(gcp_write_some(&plan, flat, zeros, 1) == GCP_OK, __LINE__);          /* no loss: nothing to leave out */
}

/* What stands between samples and a cross-entropy: refused where it joins them, or does not say that it does not. */
static void batch_mean(const gcp_call *c)
{
    const gcp_real *from = (const gcp_real *)c->in[0].data;
    gcp_real *to = (gcp_real *)c->out[0].data;
    for (int i = 0; i < 4; i++) to[i] = to[4 + i] = (from[i] + from[4 + i]) / 2;
}
static void batch_mean_back(const gcp_call *c) { (void)c; }
static int as_input(gcp_shape_call *c) { c->out[0] = c->in[0]; return 1; }
static void in_part_through(gcp_tensor logits, int line, const char *text)
{
    gcp_plan plan = gcp_plan_make(gcp_cross_entropy(gcp_linear(logits, .out = 3), ids));
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    if (text) in_part_said(&plan, flat, zeros, 1, line, text);
    else fine(gcp_write_some(&plan, flat, zeros, 1) == GCP_OK, line);
}
static void in_part_between(void)
{
    static const gcp_op mean = { .name = "batch_mean", .shape = as_input, .forward = batch_mean,
                                 .backward = batch_mean_back, .outputs = 1 };
    gcp_op apart = mean;
    apart.flags = GCP_FLAG_SAMPLES_APART;
    begin();
    gcp_tensor y = gcp_custom(&flat, 1, &mean);
    in_part_through(y, __LINE__, joined("batch_mean[0]", __LINE__ - 1, ", or lacks GCP_FLAG_SAMPLES_APART"));
    begin();
    in_part_through(gcp_custom(&flat, 1, &apart), __LINE__, NULL);
    begin();                                     /* beside the cross-entropy */
    y = gcp_linear(flat, .out = 4);
    gcp_tensor last = gcp_mean(gcp_custom(&y, 1, &mean));
    const int at = __LINE__ - 1;
    gcp_plan plan = gcp_plan_make(gcp_add(gcp_cross_entropy(y, ids), last));
    gcp_bind(&plan, step_memory, sizeof step_memory);
    in_part_said(&plan, flat, zeros, 1, __LINE__, joined("batch_mean[0]", at, ", or lacks GCP_FLAG_SAMPLES_APART"));
    begin();                                     /* each sample reads all samples of the right factor */
    gcp_tensor scores = gcp_matmul(flat, gcp_reshape(gcp_concat(GCP_TENSORS(flat, flat)), GCP_SHAPE(4, 4)));
    in_part_through(scores, __LINE__, joined("matmul[0]", __LINE__ - 1, ""));
    begin();                                     /* two samples in one row, and back again */
    gcp_tensor row = gcp_linear(gcp_reshape(flat, GCP_SHAPE(1, 8)), .out = 8);
    in_part_through(gcp_reshape(row, GCP_SHAPE(2, 4)), __LINE__, joined("reshape[0]", __LINE__ - 1, ""));
    begin();                                     /* rows of a sample stay its own; statistics are of all */
    y = gcp_reshape(gcp_linear(gcp_reshape(flat, GCP_SHAPE(4, 2)), .out = 2), GCP_SHAPE(2, 4));
    in_part_through(gcp_batch_norm(y), __LINE__, NULL);
}

/* What a tensor's samples are, where its first size does not say it; the same part of all must be given. */
static void in_part_plan(gcp_plan *plan, gcp_tensor root, int inference)
{
    *plan = gcp_plan_make(root, .inference = inference);
    CHECK(gcp_bind(plan, step_memory, sizeof step_memory) == GCP_OK);
}
static void in_part_rows(void)
{
    static char text[256];
    const int32_t labels[8] = { 0, 1, 0, 1, 0, 1, 0, 1 };
    gcp_plan plan;
    begin();                                     /* (n) beside (n): samples are the concat's halves */
    gcp_tensor four = gcp_input(net, "four", GCP_SHAPE(4)), eight = gcp_labels(net, "eight", GCP_SHAPE(8));
    gcp_tensor y = gcp_concat(GCP_TENSORS(four, four));
    const int concat = __LINE__ - 1;
    in_part_plan(&plan, gcp_cross_entropy(gcp_linear(gcp_reshape(y, GCP_SHAPE(8, 1)), .out = 3), eight), 0);
    snprintf(text, sizeof text,
             "'four' cannot be written in part: 'concat[0]' (test_errors.c:%d) makes one value of several samples",
             concat);
    in_part_said(&plan, four, zeros, 2, __LINE__, text);
    begin();                                     /* labels of one row */
    gcp_tensor row = gcp_labels(net, "row", GCP_SHAPE(1, 2)), logits = gcp_linear(flat, .out = 3);
    in_part_plan(&plan, gcp_cross_entropy(logits, row), 0);
    in_part_said(&plan, flat, zeros, 1, __LINE__, joined("cross_entropy[0]", __LINE__ - 1, ""));
    begin();                                     /* an op over the row that (n) is */
    four = gcp_input(net, "four", GCP_SHAPE(4));
    y = gcp_layer_norm(four);
    const int norm = __LINE__ - 1;
    in_part_plan(&plan, gcp_cross_entropy(gcp_reshape(y, GCP_SHAPE(4, 1)), gcp_labels(net, "l", GCP_SHAPE(4))), 0);
    snprintf(text, sizeof text,
             "'four' cannot be written in part: 'layer_norm[0]' (test_errors.c:%d) makes one value of several samples",
             norm);
    in_part_said(&plan, four, zeros, 3, __LINE__, text);
    begin();                                     /* values of (n), one by one; four labels for each two samples */
    four = gcp_input(net, "four", GCP_SHAPE(4));
    eight = gcp_labels(net, "eight", GCP_SHAPE(8));
    y = gcp_reshape(gcp_linear(gcp_reshape(gcp_tanh(four), GCP_SHAPE(4, 1)), .out = 6), GCP_SHAPE(8, 3));
    in_part_plan(&plan, gcp_cross_entropy(y, eight), 0);
    gcp_write_some(&plan, four, zeros, 3);
    gcp_write_some(&plan, eight, labels, 6);
    fine(gcp_step(&plan) > 0, __LINE__);
    gcp_write(&plan, eight, labels);
    CHECK(isnan(gcp_step(&plan)));
    said(GCP_E_INPUT, __LINE__, __LINE__ - 1,
         "gcp_step: 3 of 4 samples of 'four' were written, and 8 of 8 of 'eight'");
}
static void in_part_whole(void)
{
    static char text[256];
    gcp_plan plan;
    begin();                                     /* an input that all samples read */
    gcp_tensor b = gcp_input(net, "b", GCP_SHAPE(4), .want_grad = 1), y = gcp_bias(flat, b);
    const int bias = __LINE__ - 1;
    in_part_plan(&plan, gcp_cross_entropy(y, ids), 0);
    fine(gcp_write_some(&plan, flat, zeros, 1) == GCP_OK && gcp_write(&plan, b, zeros) == GCP_OK, __LINE__);
    fine(gcp_write_some(&plan, ids, (const int32_t[1]) { 1 }, 1) == GCP_OK && gcp_step(&plan) > 0, __LINE__);
    snprintf(text, sizeof text, "'b' cannot be written in part: 'bias[1]' (test_errors.c:%d) reads it whole", bias);
    in_part_said(&plan, b, zeros, 2, __LINE__, text);
    begin();                                     /* inference, too, of what makes one value of all */
    y = gcp_mse(flat, gcp_tanh(flat));
    in_part_plan(&plan, y, 1);
    in_part_said(&plan, flat, zeros, 1, __LINE__, joined("mse[0]", __LINE__ - 2, ""));
}

static void gradchecks(void)
{
    static unsigned char small_arena[1 << 16];
    begin();
    gcp_arena own = gcp_arena_from(small_arena, sizeof small_arena);
    gcp_plan plan = gcp_plan_make(gcp_mean(gcp_linear(flat, .out = 3)));
    gcp_bind(&plan, step_memory, sizeof step_memory);
    feed(&plan);
    CHECK_INT((gcp_gradcheck(&plan, .step = -1).passed), ==, 0);
    said(GCP_E_ARGUMENT, __LINE__, __LINE__,
         "gcp_gradcheck: .step = -1, .tolerance = 0.005; above 0, at least 0");
    gcp_error_clear(net);
    begin();
    plan = gcp_plan_make(gcp_mean(gcp_linear(gcp_flatten(x), .out = 32)), .arena = &own,
                         .policy = GCP_POLICY_KEEP_ALL);
    gcp_bind(&plan, step_memory, sizeof step_memory);
    gcp_write(&plan, x, zeros);
    own.size = own.used;
    CHECK_INT((gcp_gradcheck(&plan).passed), ==, 0);
    said(GCP_E_NOMEM, __LINE__, __LINE__, "gcp_gradcheck: the plan's arena has no room for one gradient");
}

static void rates(void)
{
#define RATE(text, ...) CHECK(isnan(__VA_ARGS__)); said(GCP_E_ARGUMENT, __LINE__, __LINE__, text); gcp_error_clear(net)
    gcp_plan plan = training(), plain = gcp_plan_make(loss), inference = gcp_plan_make(loss, .inference = 1);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && feed(&plan) == GCP_OK);
    RATE("gcp_step: .lr is missing; GCP_ZERO says zero", gcp_step(&plan));
    RATE("gcp_step: .lr = -0.5; at least 0, and finite", gcp_step(&plan, .lr = -0.5));
    RATE("gcp_step: .lr = nan; at least 0, and finite", gcp_step(&plan, .lr = fabs(NAN)));
    RATE("gcp_step: .lr = inf; at least 0, and finite", gcp_step(&plan, .lr = HUGE_VAL));
    CHECK(gcp_profile(&plan, .lr = -1) == 0);
    said(GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_profile: .lr = -1; at least 0, and finite");
    gcp_error_clear(net);
    RATE("gcp_step: .last belongs to a plan with .accumulate", gcp_step(&plan, .lr = 1, .last = 1));
    RATE("gcp_step: .share = 1.5, in [0, 1]", gcp_step(&plan, .lr = 1, .share = 1.5));
    RATE("gcp_step: .share = -1, in [0, 1]", gcp_step(&plan, .lr = 1, .share = -1));
    RATE("gcp_step: .share = nan, in [0, 1]", gcp_step(&plan, .lr = 1, .share = fabs(NAN)));
    gcp_step(&plan, .lr = GCP_ZERO);
    fine(gcp_steps_done(net) == 1 && gcp_profile(&plan) > 0 && gcp_profile(&plan, .lr = 1) > 0, __LINE__);
    CHECK(gcp_bind(&plain, step_memory, sizeof step_memory) == GCP_OK && feed(&plain) == GCP_OK);
    RATE("gcp_step: .lr = 0.1, but the plan was made without .optimizer", gcp_step(&plain, .lr = 0.1));
    RATE("gcp_step: .lr = 0, but the plan was made without .optimizer", gcp_step(&plain, .lr = GCP_ZERO));
    gcp_step(&plain);
    CHECK(gcp_bind(&inference, step_memory, sizeof step_memory) == GCP_OK && feed(&inference) == GCP_OK);
    RATE("gcp_forward: .lr = 0.1, but the plan was made without .optimizer", gcp_forward(&inference, .lr = 0.1));
    RATE("gcp_forward: .share = 0.5, but an inference plan has no gradients", gcp_forward(&inference, .share = 0.5));
    gcp_forward(&inference);
    fine(1, __LINE__);
}

/* ---- labels ----------------------------------------------------------------------------------------------------*/

static gcp_plan classifier(int ignore, gcp_tensor *label, gcp_tensor *entropy)
{
    begin();
    *label = gcp_labels(net, "label", GCP_SHAPE(2));
    *entropy = gcp_cross_entropy_at(gcp_linear(flat, .out = 3), *label,
                                    SITE(gcp_cross_entropy_opts, 5, .ignore = ignore));
    gcp_plan plan = gcp_plan_make(*entropy);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && feed(&plan) == GCP_OK);
    return plan;
}

/* Labels are checked against what reads them where they are written; what was there stays. */
static void label_ranges(void)
{
    gcp_tensor label, entropy;
    int out[2] = { 1, 3 }, got[2] = { 0, 0 };
    gcp_plan plan = classifier(0, &label, &entropy);
    CHECK(gcp_write(&plan, label, (int[]) { 2, 1 }) == GCP_OK);
    double before = gcp_step(&plan);
    code_said(gcp_write(&plan, label, out), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_write: element 1 of 'label' is 3; cross_entropy[0] (test_errors.c:5) reads 0 to 2 (.ignore: "
              "a label that does not count)");
    code_said(gcp_write(&plan, label, (int[]){ -1, 0 }), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_write: element 0 of 'label' is -1; cross_entropy[0] (test_errors.c:5) reads 0 to 2 (.ignore: "
              "a label that does not count)");
    CHECK(gcp_step(&plan) == before && gcp_read(&plan, label, got) == GCP_OK && got[0] == 2 && got[1] == 1);
    CHECK(gcp_ignored(&plan, entropy) == 0);
    plan = classifier(-1, &label, &entropy);
    code_said(
        gcp_write(&plan, label, out), GCP_E_ARGUMENT, __LINE__, __LINE__,
        "gcp_write: element 1 of 'label' is 3; cross_entropy[0] (test_errors.c:5) reads 0 to 2, or the ignored -1");
    CHECK(gcp_write(&plan, label, (int[]) { 1, -1 }) == GCP_OK && gcp_ignored(&plan, entropy) == 1);
    double one = gcp_step(&plan);
    CHECK(gcp_write(&plan, label, (int[]) { -1, -1 }) == GCP_OK && gcp_ignored(&plan, entropy) == 2);
    CHECK(one > 0 && gcp_step(&plan) == 0);
    fine(1, __LINE__);
    plan = classifier(1, &label, &entropy);          /* a class that counts for nothing */
    CHECK(gcp_write(&plan, label, (int[]) { 0, 1 }) == GCP_OK && gcp_ignored(&plan, entropy) == 1);
    double first = gcp_step(&plan);
    plan = classifier(-1, &label, &entropy);
    CHECK(gcp_write(&plan, label, (int[]) { 0, -1 }) == GCP_OK && gcp_step(&plan) == first && first > 0);
    plan = classifier(GCP_ZERO, &label, &entropy);
    CHECK(gcp_write(&plan, label, (int[]){ 0, 2 }) == GCP_OK && gcp_ignored(&plan, entropy) == 1 &&
          gcp_step(&plan) > 0);
    CHECK(gcp_ignored(&plan, flat) == -1);
    said(GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_ignored: 'flat' is not made by gcp_cross_entropy");
    plan = classifier(GCP_ZERO, &label, &entropy);
    CHECK(gcp_ignored(&plan, entropy) == -1);
    said(GCP_E_INPUT, __LINE__, __LINE__, "gcp_ignored: 'label' was not written since gcp_bind");
    gcp_error_clear(net);
    CHECK(isnan(gcp_step(&plan)));
    said(GCP_E_INPUT, __LINE__, __LINE__, "gcp_step: 'label' was not written since gcp_bind");
}

static void id_ranges(void)
{
    begin();
    gcp_tensor words = gcp_mean(gcp_embedding_at(ids, SITE(gcp_embedding_opts, 6, .entries = 4, .out = 2)));
    gcp_plan plan = gcp_plan_make(words);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK &&
          gcp_write(&plan, ids, (int[]){ 0, 3 }) == GCP_OK);
    code_said(gcp_write(&plan, ids, (int[]){ 0, 4 }), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_write: element 1 of 'ids' is 4; embedding[0] (test_errors.c:6) reads 0 to 3");
    /* two readers: the narrower counts; a plan without them asks nothing */
    begin();
    gcp_tensor wide = gcp_cross_entropy(gcp_linear(flat, .out = 9), ids),
               narrow = gcp_cross_entropy_at(gcp_linear(flat, .out = 2), ids,
                                             SITE(gcp_cross_entropy_opts, 8, .ignore = 7));
    plan = gcp_plan_make(gcp_add(wide, narrow));
    gcp_plan alone = gcp_plan_make(wide);
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK &&
          gcp_bind(&alone, more_memory, sizeof more_memory) == GCP_OK);
    CHECK(gcp_write(&plan, ids, (int[]) { 1, 7 }) == GCP_OK && gcp_write(&alone, ids, (int[]) { 8, 3 }) == GCP_OK);
    code_said(gcp_write(&plan, ids, (int[]){ 1, 3 }), GCP_E_ARGUMENT, __LINE__, __LINE__,
              "gcp_write: element 1 of 'ids' is 3; cross_entropy[1] (test_errors.c:8) reads 0 to 1, or the ignored 7");
}

/* ---- custom ops ------------------------------------------------------------------------------------------------*/

static int same_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; return 1; }
static int no_shape(gcp_shape_call *s) { snprintf(s->message, s->message_size, "never"); return 0; }
static int empty_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; s->out[0].d[3] = 0; return 1; }
static int calls_made;

static void drifting_forward(const gcp_call *c)      /* other bits on every call */
{
    const gcp_real *from = (const gcp_real *)c->in[0].data;
    gcp_real *to = (gcp_real *)c->out[0].data;
    calls_made++;
    for (int i = 0; i < 8; i++) to[i] = from[i] + (gcp_real)calls_made;
}
static void pass_backward(const gcp_call *c)
{
    for (int i = 0; i < 8; i++)
        ((gcp_real *)c->din[0].data)[i] = ((gcp_real *)c->dout[0].data)[i] +
                                          (c->din[0].accumulate ? ((gcp_real *)c->din[0].data)[i] : 0);
}

static void on_forward(const gcp_call *c) { memcpy(c->out[0].data, c->in[0].data, 8 * sizeof(gcp_real)); }

static gcp_op drift(void)
{
    gcp_op op = { "drift", same_shape, drifting_forward, pass_backward, NULL, 0, 0, 0, 1, NULL };
    return op;
}

static gcp_tensor custom(gcp_op op, int inputs)
{
    static gcp_op row;
    gcp_tensor in[80];
    row = op;
    for (int i = 0; i < inputs; i++) in[i] = flat;
    return gcp_custom_at(in, inputs, &row, SITE(gcp_custom_opts, 3, .name = NULL));
}

static void custom_bad(gcp_op op, gcp_code code, int line, const char *text)
{
    begin();
    CHECK(gcp_is_nil(custom(op, 1)));
    said(code, line, 3, text);
    works_again(line);
}

static void customs(void)
{
#define OP_NEEDS                                                                                                      \
    ": an op needs name, shape, forward, and backward or GCP_FLAG_NO_GRADIENT; its flags may not be VIEW, GRAD_VIEW " \
    "or SIGN_OR_MASK"
    static const unsigned flags[] = { GCP_FLAG_VIEW, GCP_FLAG_GRAD_VIEW, GCP_FLAG_SIGN_OR_MASK };
    gcp_op op = drift();
    begin();
    fine(!gcp_is_nil(custom(op, 1)), __LINE__);
    op.shape = NULL;      custom_bad(op, GCP_E_ARGUMENT, __LINE__, "drift" OP_NEEDS); op = drift();
    op.forward = NULL;    custom_bad(op, GCP_E_ARGUMENT, __LINE__, "drift" OP_NEEDS); op = drift();
    op.backward = NULL;   custom_bad(op, GCP_E_ARGUMENT, __LINE__, "drift" OP_NEEDS);
    op.flags = GCP_FLAG_NO_GRADIENT;
    begin();
    fine(!gcp_is_nil(custom(op, 1)), __LINE__);
    op = drift();
    op.name = NULL;       custom_bad(op, GCP_E_ARGUMENT, __LINE__, "custom" OP_NEEDS); op = drift();
    for (int i = 0; i < 3; i++) {
        op.flags = flags[i];
        custom_bad(op, GCP_E_ARGUMENT, __LINE__, "drift" OP_NEEDS);
        op = drift();
    }
    op.outputs = 0;
    custom_bad(op, GCP_E_ARGUMENT, __LINE__, "drift: 1 inputs and 0 outputs; at most 64 and 1 to 8");
    op = drift();
    op.outputs = 9;
    custom_bad(op, GCP_E_ARGUMENT, __LINE__, "drift: 1 inputs and 9 outputs; at most 64 and 1 to 8");
    op = drift();
    op.shape = no_shape;  custom_bad(op, GCP_E_SHAPE, __LINE__, "drift: never"); op = drift();
    op.shape = empty_shape; custom_bad(op, GCP_E_SHAPE, __LINE__, "drift: an output of 2 x 1 x 1 x 0"); op = drift();
    begin();
    CHECK(gcp_is_nil(custom(op, 65)));
    said(GCP_E_ARGUMENT, __LINE__, 3, "drift: 65 inputs and 1 outputs; at most 64 and 1 to 8");
    begin();
    gcp_tensor in = flat;
    CHECK(gcp_is_nil(gcp_custom(&in, 1, NULL, .name = "n")) && gcp_error_code(net) == GCP_E_ARGUMENT);
    begin();
    CHECK(gcp_is_nil(gcp_custom(NULL, 1, &op, .name = "n")) && gcp_is_nil(gcp_custom(&in, 0, &op, .name = "n")));
    op.flags = GCP_FLAG_CROSS;                            /* it is about two inputs */
    begin();
    CHECK(gcp_is_nil(custom(op, 1)) && gcp_error_code(net) == GCP_E_ARGUMENT);
}

static unsigned turned;                                  /* a bit a value */
static void turning_forward(const gcp_call *c)       /* on every other call the other sign of those values */
{
    calls_made++;
    for (int i = 0; i < 8; i++)
        ((gcp_real *)c->out[0].data)[i] =
            (calls_made & 1 && turned >> i & 1 ? -1 : 1) * ((const gcp_real *)c->in[0].data)[i];
}
/* A forward that is not a function of its inputs: .check finds it where it is recomputed, and only there. */
static void drifts(gcp_op op, int last)
{
    for (int policy = GCP_POLICY_SEGMENTS; policy <= last; policy++) {
        begin();
        gcp_tensor y = gcp_bias(flat, weight);
        GCP_SEGMENT(net, "bad") y = gcp_tanh(gcp_mul(custom(op, 1), y));
        GCP_SEGMENT(net, "end") y = gcp_tanh(y);
        gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = (gcp_policy)policy, .check = GCP_CHECK);
        CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK && feed(&plan) == GCP_OK);
        gcp_step(&plan);
        if (policy == GCP_POLICY_SEGMENTS)
            said(GCP_E_CHECK, __LINE__, 3,
                 "bad[0]/drift[0]: output 0 was recomputed with bits that differ from the first run's");
        else fine(1, __LINE__);
    }
}
static void values_drift(void) { drifts(drift(), GCP_POLICY_KEEP_ALL); }
static void signs_drift(void)
{
    gcp_op op = drift();
    op.forward = turning_forward;
    for (turned = 1; turned < 256; turned++) drifts(op, GCP_POLICY_SEGMENTS);
}

/* .check names what made the first NaN: an op, its backward, or what the step was given. */
static void nan_forward(const gcp_call *c)
{
    for (int i = 0; i < 8; i++)
        ((gcp_real *)c->out[0].data)[i] = i == 5 ? (gcp_real)NAN : ((const gcp_real *)c->in[0].data)[i];
}
static void nan_backward(const gcp_call *c)
{
    for (int i = 0; i < 8; i++) ((gcp_real *)c->din[0].data)[i] = (gcp_real)NAN;
}

static void nans(void)
{
    for (int where = 0; where < 5; where++) {
        static const char *const texts[] = { "", "after[0]: output 0 has a NaN, but its inputs have none",
                                             "after[0]: its backward makes a NaN in the gradient of tanh[0]",
                                             "gcp_step: 'flat' holds a NaN before the step",
                                             "gcp_step: 'w' holds a NaN before the step" };
        gcp_real data[8] = { 0 };
        begin();
        gcp_op op = drift();
        op.name = "after";
        op.forward = where == 1 ? nan_forward : on_forward;
        op.backward = where == 2 ? nan_backward : pass_backward;
        flat = gcp_tanh(gcp_bias(flat, weight));
        gcp_tensor y = gcp_tanh(custom(op, 1));
        gcp_plan plan = gcp_plan_make(gcp_mean(y), .policy = GCP_POLICY_KEEP_ALL, .check = GCP_CHECK);
        CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
        if (where == 3) data[2] = (gcp_real)NAN;
        gcp_write(&plan, gcp_find(net, "flat"), data);
        data[2] = (gcp_real)NAN;
        if (where == 4) gcp_write(&plan, weight, data);
        int line = __LINE__ + 1;
        gcp_step(&plan);
        if (!where) fine(1, __LINE__);
        else said(GCP_E_CHECK, __LINE__, where > 2 ? line : 3, texts[where]);
    }
}

/* Batch-norm of one value a channel normalises it to nothing: training refuses it, what takes the running values does
   not, and the largest batch is looked for from two samples on. */
static gcp_tensor norm_of(gcp_tape *tape, int batch, int size)
{
    gcp_tensor image = gcp_input(tape, "image", GCP_SHAPE(batch, size, size, 4));
    return gcp_mean(gcp_tanh(gcp_batch_norm_at(image, SITE(gcp_norm_opts, 5, .name = NULL))));
}
static gcp_tensor norm_net(void *context, gcp_tape *tape, int batch) { return norm_of(tape, batch, *(int *)context); }
static void single_values(void)
{
    int size = 1;
    begin();
    fine(gcp_plan_make(norm_of(net, 2, 1)).core != NULL, __LINE__);
    begin();
    fine(gcp_plan_make(norm_of(net, 1, 2)).core != NULL, __LINE__);
    begin();
    fine(gcp_plan_make(norm_of(net, 1, 1), .inference = 1).core != NULL, __LINE__);
    begin();
    gcp_tensor one = norm_of(net, 1, 1);
    CHECK(gcp_plan_make(gcp_add(one, loss), .train = "w", .frozen_norms = 1).core != NULL);
    CHECK(gcp_plan_make(one).core == NULL);
    said(GCP_E_SHAPE, __LINE__, 5, "batch_norm[0]: found one value a channel in 1x1x1x4, expected at least 2 in "
                                   "training (a larger batch; or running statistics: .frozen_norms, with its gamma "
                                   "and beta in .freeze, or .inference)");
    gcp_error_clear(net);
    CHECK(gcp_plan_make(gcp_add(one, loss), .freeze = "batch_norm*/*", .frozen_norms = 1).core != NULL);
    for (int most = 1; most <= 3; most++) {
        begin();
        gcp_batch_opts o = { .plan = { .budget = sizeof more_memory }, .most = most };
        CHECK_INT(gcp_max_batch_at(net, norm_net, &size, o), ==, most == 1 ? 0 : most);
        CHECK(gcp_error_code(net) == (most == 1 ? GCP_E_SHAPE : GCP_OK));
    }
}

/* ---- recording again -------------------------------------------------------------------------------------------*/

static void again(int bound, int wide, int more)     /* the net of begin() with other parameters */
{
    gcp_plan plan = training();
    if (bound) CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    gcp_tape_reset(net);
    flat = gcp_input(net, "flat", GCP_SHAPE(2, 4));
    if (more >= 0) weight = gcp_param_at(net, "w", GCP_SHAPE(wide), SITE(gcp_param_opts, 4, .fan_in = 1));
    if (more > 0) gcp_param_at(net, "v", GCP_SHAPE(4), SITE(gcp_param_opts, 4, .fan_in = 1));
}

#define NEW_PARAMETER                                                                                                 \
    " is new, but the parameters were bound to memory before; record another network on another tape"
static void parameter_sets(void)
{
    for (int bound = 0; bound < 2; bound++) {
        again(bound, 4, 0);
        fine(gcp_plan_make(gcp_mean(gcp_bias(flat, weight))).core != NULL, __LINE__);
    }
    again(0, 4, 1);                                  /* no memory holds the parameters yet: any others will do */
    fine(gcp_plan_make(gcp_mean(gcp_bias(flat, weight))).core != NULL, __LINE__);
    CHECK(!gcp_is_nil(gcp_nth_parameter(net, 1)) && gcp_is_nil(gcp_nth_parameter(net, 2)));
    again(1, 5, 0);
    said(GCP_E_PARAMETERS, __LINE__, 4,
         "parameter: 'w' was 4 before the reset and is 5 now; record another network on another tape");
    again(1, 4, 1);
    said(GCP_E_PARAMETERS, __LINE__, 4, "parameter: 'v'" NEW_PARAMETER);
    again(1, 4, -1);
    gcp_tensor out = gcp_mean(gcp_want_grad(flat));
    int line = __LINE__ + 1;
    CHECK(gcp_plan_make(out).core == NULL);
    said(GCP_E_PARAMETERS, __LINE__, line,
         "gcp_plan_make: 'w' is in the state, but was not recorded again after gcp_tape_reset");
    gcp_plan plan = training();
    CHECK(gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_OK);
    line = __LINE__ + 1;
    CHECK(gcp_is_nil(gcp_linear(flat, .out = 2)));
    said(GCP_E_PARAMETERS, __LINE__, line, "parameter: 'linear[0]/weight'" NEW_PARAMETER);
}

static void any_wait(void *context, int id) { (void)context; (void)id; }
static const char *out_of_order(void *context) { (void)context; return "out of order"; }

static void any_copy(void *context, void *to, const void *from, size_t size)
{
    (void)context;
    (void)to;
    (void)from;
    (void)size;
}
static void any_fill(void *context, void *to, int byte, size_t size)
{
    (void)context;
    (void)to;
    (void)byte;
    (void)size;
}
static double any_timed(void *context, void (*issue)(void *arg), void *arg)
{
    (void)context;
    (void)issue;
    (void)arg;
    return 0;
}

static void devices(void)                            /* test_device has the rest */
{
    static const gcp_device device = { .copy = any_copy,
                                       .fill = any_fill,
                                       .timed = any_timed,
                                       .trouble = out_of_order },
                            half = { .trouble = out_of_order };
    static const gcp_op rows[GCP_ROW_COUNT];
    gcp_target target = { .name = "card", .device = &device, .kernels = rows };
    PLAN(GCP_E_DEVICE, "card: out of order", gcp_plan_make(loss, .target = &target));
    const char *incomplete =
        "the target's .device needs .kernels, and copy, fill, timed and trouble, and play and forget together";
    char want[200];
    snprintf(want, sizeof want, "gcp_plan_make: %s", incomplete);
    target.kernels = NULL;
    begin();
    plan_said(gcp_plan_make(loss, .target = &target), GCP_E_PLAN, __LINE__, want);
    target.kernels = rows; target.device = &half;
    begin();
    plan_said(gcp_plan_make(loss, .target = &target), GCP_E_PLAN, __LINE__, want);
    target.device = NULL; target.copy_wait = any_wait;
    PLAN(GCP_E_PLAN, "the target's .copy_start and .copy_wait belong together", gcp_plan_make(loss, .target = &target));
}

static void lists(void)
{
    PLAN(GCP_E_LIST, "line 1: no instruction 'F nobody' in this network", gcp_plan_make(loss, .list = "F nobody\n"));
    PLAN(GCP_E_LIST, "line 2: not 'LETTER NAME'", gcp_plan_make(loss, .list = "F bias[0]\nFmean[0]\n"));
    PLAN(GCP_E_LIST, "the list holds no instruction", gcp_plan_make(loss, .list = ""));
}

static void graphs(void)
{
    begin();
    gcp_plan plan = gcp_graph_plan(net, "f a 1 64 0\nf b 1 64 0 z\n", .policy = GCP_POLICY_KEEP_ALL);
    plan_said(plan, GCP_E_GRAPH, __LINE__ - 1, "gcp_graph_plan: line 2: no tensor z");
    begin();
    plan = gcp_graph_plan(net, "f a 1 64 0\nb a_b 1 64 0 a\n", .policy = GCP_POLICY_KEEP_ALL,
                          .optimizer = GCP_OPTIMIZER_SGD);
    plan_said(plan, GCP_E_PLAN, __LINE__ - 1,
              "gcp_graph_plan: the graph's text says what a step does: leave out .store, .inference, .optimizer, "
              ".accumulate, what trains, hooks and .costs");
    begin();
    plan = gcp_graph_plan(net, "f a 1 64 0\nb a_b 1 64 0 a\n", .policy = GCP_POLICY_KEEP_ALL);
    CHECK(plan.core && plan.bytes == 128 && gcp_bind(&plan, step_memory, sizeof step_memory) == GCP_E_BIND);
    said(GCP_E_BIND, __LINE__, 0, "gcp_bind: a graph's plan has nothing to run");
    gcp_error_clear(net);
    code_said(gcp_far_bind(&plan, more_memory, sizeof more_memory), GCP_E_BIND, __LINE__, __LINE__,
              "gcp_far_bind: a graph's plan has nothing to run");
    gcp_plan none = { 0 };
    CHECK(gcp_plans_room(&plan, &none) == 0 && gcp_plans_bytes(&none) == 0);
}

static void files(void)
{
    gcp_plan plan = training();
    code_said(gcp_save(net, "errors.w"), GCP_E_STATE, __LINE__, __LINE__,
              "gcp_save: the state has no memory yet: call gcp_bind (or gcp_state_bind) first");
    gcp_bind(&plan, step_memory, sizeof step_memory);
    code_said(gcp_save(net, "no/folder"), GCP_E_FILE, __LINE__, __LINE__,
              "gcp_save: no/folder: cannot be written: no new file can be made beside it (is its folder "
              "there, may it be written? the new name is up to 40 bytes longer)");
    code_said(gcp_save(net, NULL), GCP_E_ARGUMENT, __LINE__, __LINE__, "gcp_save: (NULL): the path is NULL");
    code_said(gcp_load(net, "no/file") ? GCP_OK : GCP_E_FILE, GCP_E_FILE, __LINE__, __LINE__,
              "gcp_load: no/file: there is no such file");
    FILE *f = fopen("errors.w", "wb");
    CHECK(f && fputs("short", f) >= 0 && fclose(f) == 0);
    code_said(gcp_load(net, "errors.w") ? GCP_OK : GCP_E_CONTENTS, GCP_E_CONTENTS, __LINE__, __LINE__,
              "gcp_load: errors.w: offset 0: found 5 bytes, expected a safetensors file");
    code_said(gcp_resume_run(net, "errors.w") ? GCP_OK : GCP_E_CONTENTS, GCP_E_CONTENTS, __LINE__, __LINE__,
              "gcp_resume_run: errors.w: offset 0: found 5 bytes, expected a safetensors file");
    remove("errors.w");
    CHECK(gcp_save(NULL, "w") == GCP_E_NOMEM && gcp_load(NULL, "w") == 0 && gcp_save_run(NULL, "r") == GCP_E_NOMEM &&
          gcp_resume_run(NULL, "r") == 0);
}

int main(void)
{
    static void (*const groups[])(void) = {
        inputs, parameters, windows, windows_given, pools, overflows, numbers, pointwise_numbers, shapes,
        products_and_sizes, losses, attention_sizes, rows_and_labels, dtypes, handles,
        layer_names, taken_back, segments, full_tape, full_tape_of_norms, capacities, no_room, plan_options,
        update_options, cut_options, plan_targets, plan_budget, plan_arenas, short_arena, freed_too_late,
        unusable_plans, no_tape, binds, wide_align, failed_rebind, states, optimisers, accesses, runs, in_part,
        in_part_between, in_part_rows, in_part_whole, gradchecks, rates, label_ranges, id_ranges, customs, values_drift,
        signs_drift, nans, single_values, parameter_sets, devices, lists, graphs, files
    };
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++) groups[i]();
    for (int code = GCP_OK + 1; code < GCP_ERROR_COUNT; code++)
        if (!check_report(seen[code], __FILE__, __LINE__))
            fprintf(stderr, "code '%s' was never seen\n", gcp_code_text((gcp_code)code));
    printf("%d refused calls\n", cases);
    CHECK_INT(cases, >=, 480);
    return check_done();
}
