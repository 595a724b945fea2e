/* A network of the examples on weights that PyTorch wrote: its logits in inference, its loss in training, and all
   gradients, for networks.py to compare.

       like_torch NAME WEIGHTS INPUT OUT      WEIGHTS: safetensors; INPUT: a batch's images (NHWC), then its labels;
                                              OUT.logits: doubles; OUT.safetensors: gradients by the
                                              names of WEIGHTS */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gcp.h"
#include "gcp_io.h"
#include "networks.h"
#include "networks/maps.h"

static const struct { const char *name, *map; } maps[] = {
    { "mobilenet_v2", mobilenet_v2_map },         { "mobilenet_v3_small", mobilenet_v3_small_map },
    { "mobilenet_v3_large", mobilenet_v3_large_map }, { "efficientnet_b0", efficientnet_b0_map },
    { "efficientnet_v2_s", efficientnet_v2_s_map }, { "shufflenet_v2", shufflenet_v2_map },
    { "ghostnet", ghostnet_map },                 { "regnet_y", regnet_y_map },
    { "convnext_t", convnext_t_map },             { "mlp_mixer_s", mlp_mixer_map },
    { "swin_t", swin_t_map },
    { "vit_tiny", vit_map },                      { "vit_small", vit_map } };

static const network_name *network_named(const char *name)
{
    for (int i = 0; i < NETWORK_NAMES; i++) if (!strcmp(network_names[i].name, name)) return &network_names[i];
    return NULL;
}
static const char *map_of(const char *name)
{
    for (size_t i = 0; i < sizeof maps / sizeof *maps; i++) if (!strcmp(maps[i].name, name)) return maps[i].map;
    return NULL;
}
static void *need(size_t size)
{
    void *memory = malloc(size);
    if (!memory) { fprintf(stderr, "no %zu bytes\n", size); exit(1); }
    return memory;
}
static void fine(gcp_tape *net)
{
    if (gcp_error(net)) { fprintf(stderr, "%s\n", gcp_error(net)); exit(1); }
}
static void read_file(FILE *f, void *to, size_t size)
{
    if (fread(to, 1, size, f) != size) { fprintf(stderr, "the input is too short\n"); exit(1); }
}
/* Gradients take the place of the values: what saves those saves them. */
static void gradients(gcp_tape *net, gcp_plan *plan)
{
    gcp_tensor w;
    for (int i = 0; !gcp_is_nil(w = gcp_nth_parameter(net, i)); i++) {
        gcp_real *values = need(gcp_elements(w) * sizeof *values);
        gcp_grad(plan, w, values);
        gcp_write(plan, w, values);
        free(values);
    }
}

static void write_doubles(const char *name, const char *ending, const gcp_real *values, size_t count)
{
    char path[512];
    double *doubles = need(count * sizeof *doubles);
    snprintf(path, sizeof path, "%s%s", name, ending);
    FILE *out = fopen(path, "wb");
    for (size_t i = 0; i < count; i++) doubles[i] = (double)values[i];
    if (!out || fwrite(doubles, sizeof *doubles, count, out) != count || fclose(out)) { perror(path); exit(1); }
    free(doubles);
}
/* The network's image and labels, from what networks.py wrote after the batch and the side. */
static gcp_real *read_batch(FILE *in, size_t pixels, int *labels, int batch)
{
    float *image = need(pixels * sizeof *image);
    gcp_real *reals = need(pixels * sizeof *reals);
    read_file(in, image, pixels * sizeof *image);
    read_file(in, labels, (size_t)batch * sizeof *labels);
    for (size_t i = 0; i < pixels; i++) reals[i] = image[i];
    free(image);
    return reals;
}
static void write_batch(gcp_plan *plan, network built, const gcp_real *image, int windows)
{
    gcp_real *constants = need(64 * SWIN_TOKENS * SWIN_TOKENS * sizeof *constants);
    gcp_write(plan, built.image, image);
    if (windows) swin_write(plan, constants);
    free(constants);
}

int main(int argc, char **argv)
{
    const network_name *n = argc > 4 ? network_named(argv[1]) : NULL;
    const char *map = n ? map_of(argv[1]) : NULL;
    char path[512];
    int batch, side;
    if (!map) { fprintf(stderr, "like_torch NAME WEIGHTS INPUT OUT, NAME one that has a map\n"); return 2; }
    FILE *in = fopen(argv[3], "rb");
    if (!in) { perror(argv[3]); return 1; }
    read_file(in, &batch, sizeof batch); read_file(in, &side, sizeof side);
    *network_drop() = 0;
    const size_t arena_bytes = GCP_MB(1024);
    gcp_arena arena = gcp_arena_from(need(arena_bytes), arena_bytes);
    gcp_tape *net = gcp_tape_make(&arena, .ops = n->ops * 2);
    network built = n->record(net, batch, side);
    const size_t pixels = gcp_elements(built.image);
    gcp_real logits[64 * 1000];
    int *labels = need((size_t)batch * sizeof *labels);
    const gcp_real *image = read_batch(in, pixels, labels, batch);
    fclose(in);
    fine(net);

    gcp_plan train = gcp_plan_make(built.loss), infer = gcp_plan_make(built.logits, .inference = 1);
    fine(net);
    const size_t room = gcp_plans_room(&train, &infer);
    void *memory = need(room);
    gcp_bind(&train, memory, room); gcp_bind(&infer, memory, room);
    gcp_load(net, argv[2], .style = GCP_STYLE_TORCH, .map = map);
    fine(net);
    write_batch(&infer, built, image, !strcmp(argv[1], "swin_t"));
    gcp_forward(&infer);
    gcp_read(&infer, built.logits, logits);
    fine(net);
    write_doubles(argv[4], ".logits", logits, gcp_elements(built.logits));
    write_batch(&train, built, image, !strcmp(argv[1], "swin_t"));
    gcp_write(&train, built.labels, labels);
    printf("%.9g\n", gcp_step(&train));
    gradients(net, &train);
    snprintf(path, sizeof path, "%s.safetensors", argv[4]);
    gcp_save(net, path, .style = GCP_STYLE_TORCH, .map = map);
    fine(net);
    return 0;
}
