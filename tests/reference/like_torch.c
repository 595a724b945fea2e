/* A network of the examples on weights that PyTorch wrote: its logits in inference, its loss and all gradients in
   training, then five steps, for networks.py to compare.

       like_torch NAME WEIGHTS INPUT OUT      WEIGHTS: safetensors; INPUT: batch and side, a batch's images (NHWC) or
                                              ids, then its labels. Writes OUT.logits: doubles; OUT.gradients,
                                              OUT.trained: as WEIGHTS, after one backward and after five steps. Prints
                                              a loss a line, the first step's twice */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "gcp.h"
#include "gcp_io.h"
#include "networks.h"
#include "networks/maps.h"
#include "packaged.h"

typedef struct network_file {
    const char *name, *map;
    network (*record)(gcp_tape *net, int batch, int side);     /* NULL: the one of the examples that is called so */
    gcp_style style;
} network_file;
static const network_file networks[] = {
    { "mobilenet_v2", mobilenet_v2_map, NULL, GCP_STYLE_TORCH },
    { "mobilenet_v3_small", mobilenet_v3_small_map, NULL, GCP_STYLE_TORCH },
    { "mobilenet_v3_large", mobilenet_v3_large_map, NULL, GCP_STYLE_TORCH },
    { "efficientnet_b0", efficientnet_b0_map, NULL, GCP_STYLE_TORCH },
    { "efficientnet_v2_s", efficientnet_v2_s_map, NULL, GCP_STYLE_TORCH },
    { "shufflenet_v2", shufflenet_v2_map, NULL, GCP_STYLE_TORCH },
    { "ghostnet", ghostnet_map, NULL, GCP_STYLE_TORCH },
    { "regnet_y", regnet_y_map, NULL, GCP_STYLE_TORCH },
    { "convnext_t", convnext_t_map, NULL, GCP_STYLE_TORCH },
    { "mlp_mixer_s", mlp_mixer_map, NULL, GCP_STYLE_TORCH },
    { "swin_t", swin_t_map, NULL, GCP_STYLE_TORCH },
    { "vit_tiny", vit_map, NULL, GCP_STYLE_TORCH },
    { "vit_small", vit_map, NULL, GCP_STYLE_TORCH },
    { "gpt2", gpt2_map, NULL, GCP_STYLE_TORCH },
    { "efficientnet_lite0", efficientnet_lite0_map, efficientnet_lite0, GCP_STYLE_TORCH },
    { "ppocr_cls", ppocr_cls_map, ppocr_cls, GCP_STYLE_TORCH },
    { "mini_xception", mini_xception_map, mini_xception, GCP_STYLE_KERAS }
};
enum { STEPS = 5 };

/* A network and one batch. */
typedef struct sample {
    gcp_tape *net;
    network built;
    gcp_real *image;                      /* NULL: the network takes ids */
    int32_t *ids, *labels;
    const char *weights;
    const network_file *known;
} sample;

static const network_file *network_known(const char *name)
{
    for (size_t i = 0; i < sizeof networks / sizeof *networks; i++)
        if (!strcmp(networks[i].name, name)) return &networks[i];
    return NULL;
}
static network record(gcp_tape *net, const network_file *known, int batch, int side)
{
    if (known->record) return known->record(net, batch, side);
    for (int i = 0; i < NETWORK_NAMES; i++)
        if (!strcmp(network_names[i].name, known->name)) return network_names[i].record(net, batch, side);
    return (network) { GCP_NIL, GCP_NIL, GCP_NIL, GCP_NIL };
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
static void gradients_as_values(gcp_tape *net, gcp_plan *plan)
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
static void read_batch(FILE *in, sample *s, int of_ids)
{
    const size_t count = gcp_elements(s->built.image), labels = gcp_elements(s->built.labels);
    float *image = need(count * sizeof *image);
    read_file(in, image, count * sizeof *image);
    s->ids = (int32_t *)image;
    s->labels = need(labels * sizeof *s->labels);
    read_file(in, s->labels, labels * sizeof *s->labels);
    if (of_ids) return;
    s->image = need(count * sizeof *s->image);
    for (size_t i = 0; i < count; i++) s->image[i] = image[i];
}
/* Swin's masks are inputs, too. */
static void write_batch(gcp_plan *plan, const sample *s, int labels)
{
    if (s->image) gcp_write(plan, s->built.image, s->image);
    else gcp_write(plan, s->built.image, s->ids);
    if (labels) gcp_write(plan, s->built.labels, s->labels);
    if (s->known->map != swin_t_map) return;
    gcp_real *constants = need(64 * SWIN_TOKENS * SWIN_TOKENS * sizeof *constants);
    swin_write(plan, constants);
    free(constants);
}
/* Weights as they are in the file, before each part: training moves them. */
static void begin(gcp_plan *plan, const sample *s, int labels)
{
    gcp_load(s->net, s->weights, .style = s->known->style, .map = s->known->map);
    write_batch(plan, s, labels);
    fine(s->net);
}

static void logits(gcp_plan *plan, const sample *s, const char *out)
{
    const size_t count = gcp_elements(s->built.logits);
    gcp_real *values = need(count * sizeof *values);
    begin(plan, s, 0);
    gcp_forward(plan);
    gcp_read(plan, s->built.logits, values);
    fine(s->net);
    write_doubles(out, ".logits", values, count);
}
static void save(const sample *s, const char *out, const char *ending)
{
    char path[512];
    snprintf(path, sizeof path, "%s%s", out, ending);
    gcp_save(s->net, path, .style = s->known->style, .map = s->known->map);
    fine(s->net);
}
static void gradients(gcp_plan *plan, const sample *s, const char *out)
{
    begin(plan, s, 1);
    printf("%.17g\n", gcp_step(plan));
    gradients_as_values(s->net, plan);
    save(s, out, ".gradients");
}
static void training(gcp_plan *plan, const sample *s, const char *out)
{
    begin(plan, s, 1);
    for (int i = 0; i < STEPS; i++) printf("%.17g\n", gcp_step(plan, .lr = 0.01));
    save(s, out, ".trained");
}
static void compare(const sample *s, const char *out)
{
    gcp_plan infer = gcp_plan_make(s->built.logits, .inference = 1), once = gcp_plan_make(s->built.loss),
             train = gcp_plan_make(s->built.loss, .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
    fine(s->net);
    const size_t room = gcp_plans_room(&infer, &once, &train);
    void *memory = need(room);
    gcp_bind(&infer, memory, room); gcp_bind(&once, memory, room); gcp_bind(&train, memory, room);
    logits(&infer, s, out);
    gradients(&once, s, out);
    training(&train, s, out);
}

int main(int argc, char **argv)
{
    sample s = { 0 };
    int batch, side;
    if (argc < 5 || !(s.known = network_known(argv[1]))) {
        fprintf(stderr, "like_torch NAME WEIGHTS INPUT OUT\n");
        return 2;
    }
    FILE *in = fopen(argv[3], "rb");
    if (!in) { perror(argv[3]); return 1; }
    read_file(in, &batch, sizeof batch); read_file(in, &side, sizeof side);
    *network_drop() = 0;
    const size_t arena_bytes = GCP_MB(1024);
    gcp_arena arena = gcp_arena_from(need(arena_bytes), arena_bytes);
    s.net = gcp_tape_make(&arena, .ops = 2048);
    s.built = record(s.net, s.known, batch, side);
    fine(s.net);
    read_batch(in, &s, s.known->map == gpt2_map);
    fclose(in);
    s.weights = argv[2];
    compare(&s, argv[4]);
    return 0;
}
