// gcp.h from strict C++17, which has no designated initialisers: option structs with .at = GCP_AT and the _at
// functions.
// Compiled twice: as declarations linked with the C library, and with GCP_IMPLEMENTATION.
#include "gcp.h"
#include "gcp_io.h"
#include <cstdio>
#include <string_view>
#include <vector>

static gcp_tensor conv(gcp_tensor x, int out)
{
    gcp_conv2d_opts o;
    o.at = GCP_AT;
    o.out = out; o.k = 3; o.pad = 1;
    return gcp_conv2d_at(x, o);
}

static gcp_tensor linear(gcp_tensor x, int out)
{
    gcp_linear_opts o;
    o.at = GCP_AT;
    o.out = out;
    return gcp_linear_at(x, o);
}

static gcp_tensor network(gcp_tape *net, gcp_tensor x, gcp_tensor label)
{
    GCP_SEGMENT(net, "block") {
        x = gcp_relu(conv(x, 4));
        GCP_SEGMENT(net, "inner") x = gcp_concat(GCP_TENSORS(x, gcp_tanh(conv(x, 2))));
    }
    gcp_pool_opts pool;
    pool.at = GCP_AT;
    pool.k = 2;
    x = gcp_add(gcp_max_pool_at(x, pool), gcp_avg_pool_at(x, pool));
    return gcp_cross_entropy(linear(gcp_flatten(x), 3), label);
}

static int failed(gcp_tape *net)
{
    if (gcp_error(net)) std::fprintf(stderr, "%s\n", gcp_error(net));
    return gcp_error(net) != nullptr;
}

int main()
{
    std::vector<unsigned char> tape_memory(GCP_KB(512)), step_memory(GCP_KB(512));
    std::vector<gcp_real> image_data(2 * 4 * 4 * 2, gcp_real(0.5));
    std::vector<int> label_data(2, 1);
    gcp_arena arena = gcp_arena_from(tape_memory.data(), tape_memory.size());
    gcp_tape_opts tape;
    tape.at = GCP_AT;
    tape.ops = 32;
    gcp_tape *net = gcp_tape_make_at(&arena, tape);
    gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(2, 4, 4, 2)), label = gcp_labels(net, "label", GCP_SHAPE(2));
    gcp_plan_opts options;
    options.at = GCP_AT;
    options.optimizer = GCP_OPTIMIZER_SGD;
    options.momentum = 0.9;
    gcp_plan plan = gcp_plan_make_at(network(net, image, label), options);
    gcp_bind(&plan, step_memory.data(), step_memory.size());
    gcp_step_opts step;
    step.at = GCP_AT;
    step.lr = 0.1;
    double first = 0, last = 0;
    for (int i = 0; i < 5; i++) {
        gcp_write(&plan, image, image_data.data());
        gcp_write(&plan, label, label_data.data());
        last = gcp_step_at(&plan, step);
        if (i == 0) first = last;
    }
    gcp_weights_opts files;
    files.at = GCP_AT;
    gcp_save_at(net, "cpp17.safetensors", files);
    if (gcp_load_at(net, "cpp17.safetensors", files) != 6) return 1;
    std::remove("cpp17.safetensors");
    if (failed(net)) return 1;
    gcp_why_print(&plan, gcp_file(stdout));
    gcp_relu(gcp_input(net, "image", GCP_SHAPE(1)));            // the name is taken: the message knows this line
    char want[64];
    std::snprintf(want, sizeof want, "compile_cpp17.cpp:%d: input", __LINE__ - 2);
    return !(last < first) || std::string_view(gcp_error(net)).substr(0, std::char_traits<char>::length(want)) != want;
}
