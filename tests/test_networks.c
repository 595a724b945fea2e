/* The published networks. At full size, where only shapes are needed: parameters, FLOPs and what a framework stores are
   the published figures. Small: a step recomputed in segments has the bits of one that keeps all. */
#include <stdlib.h>
#include "../examples/networks.h"
#include "support/check.h"

static unsigned char tape_memory[GCP_MB(48)];
static gcp_arena arena;

static gcp_tape *fresh(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(&arena, .ops = 27 * 166 + 9, .seed = 3);      /* as networks.h says, for the deepest */
}

static const char *none(gcp_tape *net) { return gcp_error(net) ? gcp_error(net) : "none"; }

/* The builders under one signature; size: blocks or depth, where there is a choice. */
typedef network builder(gcp_tape *net, int size, int batch, int image, int classes, stored *s);

static network any000(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    network n = { .logits = GCP_NIL };
    n.loss = tf2_checkpointing_stored(net, image, batch, &n.image, &n.labels, s);
    (void)size; (void)classes;
    return n;
}
static network any003(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    network n = { .logits = GCP_NIL };
    n.loss = recompute_grad_stored(net, 3, size, image, batch, &n.image, &n.labels, s);
    (void)classes;
    return n;
}
static network any_unet(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    (void)size;
    return unet_stored(net, batch, image, image, classes, s);
}
static network any_densenet_bc(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    return densenet_bc_stored(net, size, 12, batch, image, classes, s);
}
#define ANY(name) \
    static network any_##name(gcp_tape *net, int size, int batch, int image, int classes, stored *s) \
    { \
        (void)size; \
        return name##_stored(net, batch, image, classes, s); \
    }
ANY(mobilenet)
ANY(inception_v3)
/* size: a bit for norms, one for the auxiliary head */
static network any_inception_v4(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    return inception_v4_stored(net, size & 1, size >> 1, batch, image, classes, s);
}

#define WITHOUT(name, ...) \
    static network any_##name(gcp_tape *net, int size, int batch, int image, int classes, stored *s) \
    { \
        (void)s; (void)size; \
        return __VA_ARGS__; \
    }
WITHOUT(mobilenet_v2, mobilenet_v2(net, batch, image, classes))
WITHOUT(mobilenet_v3, mobilenet_v3(net, size, batch, image, classes))
WITHOUT(efficientnet_b0, efficientnet_b0(net, batch, image, classes))
WITHOUT(efficientnet_v2_s, efficientnet_v2_s(net, batch, image, classes))
WITHOUT(shufflenet_v2, shufflenet_v2(net, batch, image, classes))
WITHOUT(ghostnet, ghostnet(net, batch, image, classes))
WITHOUT(regnet_y, regnet_y(net, batch, image, classes))
WITHOUT(convnext_t, convnext_t(net, batch, image, classes))
WITHOUT(mlp_mixer, mlp_mixer(net, 256 * size, 4 * size, batch, image, classes))
WITHOUT(swin_t, swin_t(net, batch, image, classes))
WITHOUT(vit, vit(net, 192 * size, 12, 3 * size, batch, image, classes))
WITHOUT(gpt2, gpt2(net, 768, 12, 12, batch, image, classes))

/* ---- Figures --------------------------------------------------------------------------------------------------*/

/* parameters: exactly; gigaflops of an image's forward and stored_mb: within 1 %. What a framework stores for resnet-50
   is what PyTorch's saved-tensor hooks count, without the statistics of batch-norms; for Inception-v4 what the log of
   the OME measurements has, 3698 MB, less 184 of weight gradients. 0: nothing is published.

   By hand: MobileNet's parameters are Keras's 4253864 less the statistics of batch-norms; U-Net's and the deep
   ResNet's, with c(k, i, o) = k k i o + o and o = 64, 128, ... 1024, are

       U-Net    down: c(3, 3, 64) + c(3, 64, 64), and for each o > 64 c(3, o / 2, o) + c(3, o, o);
                up: for each o < 1024 c(2, 2 o, o) + c(3, 2 o, o) + c(3, o, o); last c(1, 64, classes)
       ResNet   432 + 4672 blocks + 14432 + 18560 (blocks - 1) + 57536 + 73984 (blocks - 1) + 128 + 65 classes */
typedef struct figures {
    const char *name;
    builder *build;
    int size, batch, image, classes;
    long long parameters;
    double gigaflops, stored_mb;
} figures;

static const figures published[] = {
    { "tf2_checkpointing",        any000,         0,  16, 256, 10,    10821742,  43.96, 3045 },
    { "recompute_grad, 3x3",   any003,         3,  16, 256, 10,    42254282,  40.75, 5289 },
    { "recompute_grad, 3x7",   any003,         7,  16, 256, 10,    42675122,  95.80, 12336 },
    { "recompute_grad, 3x9",   any003,         9,  16, 256, 10,    42885542, 123.3,  15859 },
    { "recompute_grad, 3x20",  any003,         20, 16, 256, 10,    44042852, 274.7,  35236 },
    { "VGG16",          vgg_stored,     16, 64, 224, 1000, 138357544,  30.94, 3901 },
    { "VGG19",          vgg_stored,     19, 64, 224, 1000, 143667240,  39.26, 0 },
    { "resnet_v2-18",     resnet_v2_stored, 18,  32, 224, 1001, 11692329,  3.65, 611 },
    { "resnet_v2-34",     resnet_v2_stored, 34,  32, 224, 1001, 21800489,  7.35, 932 },
    { "resnet_v2-50",     resnet_v2_stored, 50,  32, 224, 1001, 25551401,  8.18, 2530 },
    { "resnet_v2-101",    resnet_v2_stored, 101, 32, 224, 1001, 44543529, 15.60, 3841 },
    { "resnet_v2-152",    resnet_v2_stored, 152, 32, 224, 1001, 60187177, 23.03, 5459 },
    { "resnet_v2-200",    resnet_v2_stored, 200, 32, 224, 1001, 64668201, 30.02, 7925 },
    { "resnet-18",      resnet_stored,  18,  32, 224, 1000, 11689512,  3.63, 0 },
    { "resnet-34",      resnet_stored,  34,  32, 224, 1000, 21797672,  7.33, 0 },
    { "resnet-50",      resnet_stored,  50,  32, 224, 1000, 25557032,  8.18, 2697.7 },
    { "resnet-101",     resnet_stored,  101, 32, 224, 1000, 44549160, 15.60, 0 },
    { "resnet-152",     resnet_stored,  152, 32, 224, 1000, 60192808, 23.03, 0 },
    { "resnet_deep-18", resnet_deep_stored, 18, 32, 32, 10,  1730522,  0.506, 0 },
    { "MobileNet",      any_mobilenet,    0, 32, 224, 1000,  4231976,  1.138, 0 },
    { "MobileNetV2",    any_mobilenet_v2, 0, 32, 224, 1000,  3504872,  0.602, 0 },
    { "MobileNetV3 small", any_mobilenet_v3, 0, 32, 224, 1000, 2542856, 0.113, 0 },
    { "MobileNetV3 large", any_mobilenet_v3, 1, 32, 224, 1000, 5483032, 0.434, 0 },
    { "EfficientNet-B0", any_efficientnet_b0, 0, 32, 224, 1000, 5288548, 0.772, 0 },
    { "EfficientNetV2-S", any_efficientnet_v2_s, 0, 2, 384, 1000, 21458488, 16.73, 0 },
    { "ShuffleNetV2",   any_shufflenet_v2, 0, 32, 224, 1000, 2278604, 0.290, 0 },
    { "GhostNet",       any_ghostnet,     0, 32, 224, 1000,  5182508,  0.283, 0 },
    { "RegNetY-400MF",  any_regnet_y,     0, 32, 224, 1000,  4344144,  0.804, 0 },
    { "ConvNeXt-T",     any_convnext_t,   0, 8,  224, 1000, 28589128,  8.91, 0 },
    { "MLP-Mixer-S/16", any_mlp_mixer,    2, 8,  224, 1000, 18528264,  7.56, 0 },
    { "Swin-T",         any_swin_t,       0, 8,  224, 1000, 28288354,  8.98, 0 },
    { "ViT-Ti/16",      any_vit,          1, 8,  224, 1000,  5717416,  2.51, 0 },
    { "ViT-S/16",       any_vit,          2, 8,  224, 1000, 22050664,  9.20, 0 },
    { "GPT-2, 512 words", any_gpt2,       0, 1,  512, 50257, 124439808 - 512 * 768, 131.3, 0 },
    { "ResNet-122 v2",  cifar_resnet_v2_stored, 122, 128, 32, 10, 1925210, 0.563, 1208 },
    { "DenseNet-121",   densenet_stored, 121, 32, 224, 1000,  7978856,  5.668, 0 },
    { "DenseNet-161",   densenet_stored, 161, 32, 224, 1000, 28681000, 15.456, 0 },
    { "DenseNet-BC-100-12", any_densenet_bc, 100, 256, 32, 10,    769162,  0.576, 8762 },
    { "Inception-v3",   any_inception_v3, 0, 32, 299, 1000, 23834568, 11.43, 0 },
    { "Inception-v4",   any_inception_v4, 2, 32, 299, 1001, 46009106, 24.52, 3514 },
    { "Inception-v4, normed", any_inception_v4, 3, 32, 299, 1001, 46041586, 24.52, 5454 },
    { "U-Net",          any_unet,         0, 4,  256, 2,    31031810, 96.34, 0 },
    { "U-Net, 1 class", any_unet,         0, 4,  64,  1,    31031745,  6.021, 0 } };

static long long parameters(gcp_tape *net)
{
    long long n = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++)
        n += (long long)gcp_elements(gcp_nth_parameter(net, i));
    return n;
}

/* A score for each class, of the image or, with as many labels, of each pixel. */
static void logits_are(const network *n, int batch, int height, int width, int classes)
{
    gcp_shape d = gcp_shape_of(n->logits);
    CHECK_INT(d.d[0], ==, batch);
    CHECK_INT(d.d[1], ==, height);
    CHECK_INT(d.d[2], ==, width);
    CHECK_INT(d.d[3], ==, classes);
    CHECK_INT(gcp_elements(n->labels), ==, batch * height * width);
}

static void figures_of(const figures *f)
{
    int failed = check_failed;
    stored s = { .count = 0 };
    gcp_tape *net = fresh();
    network n = f->build(net, f->size, f->batch, f->image, f->classes, &s);
    int side = f->build == any_unet ? f->image : 1;
    gcp_plan all = gcp_plan_make(n.loss, .policy = GCP_POLICY_KEEP_ALL);
    double megabytes = (double)framework_bytes(&s) / 1e6;
    CHECK_TEXT(none(net), "none");
    CHECK_INT(parameters(net), ==, f->parameters);
    CHECK_NEAR(all.forward_flops / f->batch / 1e9, f->gigaflops, f->gigaflops / 100);
    if (f->stored_mb > 0) CHECK_NEAR(megabytes, f->stored_mb, f->stored_mb / 100);
    CHECK_INT(s.count, <, STORED_MAX);
    if (!gcp_is_nil(n.logits)) logits_are(&n, f->batch, side, f->build == any_gpt2 ? f->image : side, f->classes);
    CHECK(!s.count || (double)all.after_forward / 1e6 <= megabytes);
    if (check_failed > failed) fprintf(stderr, "  in %s\n", f->name);
}

/* A thousand layers: 166 blocks a stage. Recorded, not planned. */
static void thousand_layers(void)
{
    gcp_tape *net = fresh();
    network n = resnet_deep(net, 166, 32, 32, 10);
    CHECK_TEXT(none(net), "none");
    CHECK_INT(parameters(net), ==, 16118490);
    logits_are(&n, 32, 1, 1, 10);
}

/* Unrolled: parameters are shared, so that there are as many for any number of steps. Logits are of every letter. */
static void unrolled(void)
{
    for (int steps = 1; steps <= 200; steps += 66) {         /* with one concat, and with concats of concats */
        gcp_tape *net = fresh();
        network n = lstm(net, 4, steps, 64, 96);
        CHECK_TEXT(none(net), "none");
        CHECK_INT(parameters(net), ==, 96 * 64 + 4 * 64 * (2 * 64 + 1) + 96 * (64 + 1));
        logits_are(&n, 4 * steps, 1, 1, 96);
    }
    gcp_tape *net = fresh();
    network n = pde(net, 2, 100, 300);
    CHECK_TEXT(none(net), "none");
    CHECK_INT(parameters(net), ==, 100);
    CHECK_INT(gcp_elements(n.logits), ==, 200);
}

/* Images need not be square. */
static void wide_unet(void)
{
    gcp_tape *net = fresh();
    network n = unet(net, 2, 32, 48, 5);
    CHECK_TEXT(none(net), "none");
    logits_are(&n, 2, 32, 48, 5);
}

/* Of what a framework stores, the cuts that gcp chooses leave so many times less, gradients included. */
static void chosen_cuts(int depth, int batch, double stored_mb, double times_less)
{
    stored s = { .count = 0 };
    gcp_tape *net = fresh();
    network n = resnet_v2_stored(net, depth, batch, 224, 1001, &s);
    gcp_plan plan = gcp_plan_make(n.loss, .policy = GCP_POLICY_SQRT);
    size_t left = plan.split.kept + plan.split.recomputed + plan.split.activation_gradients;
    CHECK_NEAR((double)framework_bytes(&s) / 1e6, stored_mb, stored_mb / 100);
    CHECK((double)left / 1e6 * times_less <= stored_mb);
    CHECK(plan.rerun_flops <= plan.forward_flops);
    CHECK_TEXT(none(net), "none");
}

/* ---- Steps ----------------------------------------------------------------------------------------------------*/

static void *memory(size_t size)
{
    void *m = malloc(size);
    if (!m) { fprintf(stderr, "no %zu bytes\n", size); exit(1); }
    return m;
}

static float step(gcp_plan *plan, const network *n, unsigned char *slab)
{
    static float image[2 * 64 * 64 * 3];
    int labels[2] = { 3, 7 };
    for (int i = 0; i < 2 * 64 * 64 * 3; i++) image[i] = (float)(i * 37 % 101) / 50 - 1;
    gcp_bind(plan, slab, plan->bytes + 64);
    gcp_write(plan, n->image, image);
    gcp_write(plan, n->labels, labels);
    return (float)gcp_step(plan);
}

/* Both plans stay bound, so that gradients are compared one at a time. */
static void same_bits(builder *build, int size, int image)
{
    gcp_tape *net = fresh();
    network n = build(net, size, 2, image, 10, NULL);
    gcp_plan all = gcp_plan_make(n.loss, .policy = GCP_POLICY_KEEP_ALL),
             cut = gcp_plan_make(n.loss, .policy = GCP_POLICY_SEGMENTS);
    size_t state_bytes = gcp_state_bytes(net, GCP_OPTIMIZER_NONE) + 64, largest = 0;
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++)
        if (gcp_elements(gcp_nth_parameter(net, i)) > largest) largest = gcp_elements(gcp_nth_parameter(net, i));
    float *kept = (float *)memory(largest * sizeof(float)), *again = (float *)memory(largest * sizeof(float));
    unsigned char *state = (unsigned char *)memory(state_bytes);
    unsigned char *slab_all = (unsigned char *)memory(all.bytes + 64),
                  *slab_cut = (unsigned char *)memory(cut.bytes + 64);
    gcp_state_bind(net, state, state_bytes);
    float loss = step(&all, &n, slab_all), loss_again = step(&cut, &n, slab_cut);
    CHECK(loss > 0.1f && loss < 100);
    CHECK(loss == loss_again);
    CHECK_INT(cut.reruns, >, 0);
    for (int i = 0; !gcp_is_nil(gcp_nth_parameter(net, i)); i++) {
        gcp_tensor w = gcp_nth_parameter(net, i);
        CHECK(gcp_grad(&all, w, kept) == GCP_OK && gcp_grad(&cut, w, again) == GCP_OK);
        CHECK(!memcmp(kept, again, gcp_elements(w) * sizeof(float)));
    }
    CHECK_TEXT(none(net), "none");
    free(kept); free(again); free(state); free(slab_all); free(slab_cut);
}

int main(void)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) figures_of(&published[i]);
    thousand_layers();
    unrolled();
    wide_unet();
    chosen_cuts(50, 4, 316, 2.4);
    chosen_cuts(152, 2, 341, 4);
    same_bits(vgg_stored, 16, 32);
    same_bits(resnet_stored, 50, 64);
    same_bits(resnet_v2_stored, 18, 64);
    same_bits(resnet_deep_stored, 2, 32);
    *network_drop() = 0;                            /* two steps draw other samples to drop */
    same_bits(any_mobilenet, 0, 32);
    same_bits(any_shufflenet_v2, 0, 32);
    return check_done();
}
