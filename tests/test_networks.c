/* The published networks. At full size, where only shapes are needed: parameters, FLOPs and what a framework stores are
   the published figures. Small: a step recomputed in segments has the bits of one that keeps all. */
#include <stdlib.h>
#include "../examples/networks.h"
#include "check.h"

static unsigned char tape_memory[GCP_MB(48)];
static gcp_arena arena;

static gcp_tape *fresh(void)
{
    arena = gcp_arena_from(tape_memory, sizeof tape_memory);
    return gcp_tape_make(&arena, .ops = 16 * 66 + 16, .seed = 3);      /* as networks.h says, for depth 200 */
}

static const char *none(gcp_tape *net) { return gcp_error(net) ? gcp_error(net) : "none"; }

/* The builders under one signature; size: blocks or depth, where there is a choice. */
typedef network builder(gcp_tape *net, int size, int batch, int image, int classes, stored *s);

static network any000(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    network n = { .logits = GCP_NIL };
    n.loss = seed000_stored(net, image, batch, &n.image, &n.labels, s);
    (void)size; (void)classes;
    return n;
}
static network any003(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    network n = { .logits = GCP_NIL };
    n.loss = seed003_stored(net, 3, size, image, batch, &n.image, &n.labels, s);
    (void)classes;
    return n;
}
static network any_vgg16(gcp_tape *net, int size, int batch, int image, int classes, stored *s)
{
    (void)size;
    return vgg16_stored(net, batch, image, classes, s);
}

/* ---- Figures --------------------------------------------------------------------------------------------------*/

/* parameters: exactly; gigaflops of an image's forward and stored_mb: within 1 %. What a framework stores for resnet-50 is
   what PyTorch's saved-tensor hooks count, without the statistics of batch-norms. 0: nothing is published. */
typedef struct figures { const char *name; builder *build; int size, batch, image, classes; long long parameters; double gigaflops, stored_mb; } figures;

static const figures published[] = {
    { "seed000",        any000,         0,  16, 256, 10,    10821742,  43.96, 3045 },
    { "seed003, 3x3",   any003,         3,  16, 256, 10,    42254282,  40.75, 5289 },
    { "seed003, 3x7",   any003,         7,  16, 256, 10,    42675122,  95.80, 12336 },
    { "seed003, 3x9",   any003,         9,  16, 256, 10,    42885542, 123.3,  15859 },
    { "seed003, 3x20",  any003,         20, 16, 256, 10,    44042852, 274.7,  35236 },
    { "VGG16",          any_vgg16,      0,  64, 224, 1000, 138357544,  30.94, 3901 },
    { "seed002-18",     seed002_stored, 18,  32, 224, 1001, 11692329,  3.65, 611 },
    { "seed002-34",     seed002_stored, 34,  32, 224, 1001, 21800489,  7.35, 932 },
    { "seed002-50",     seed002_stored, 50,  32, 224, 1001, 25551401,  8.18, 2530 },
    { "seed002-101",    seed002_stored, 101, 32, 224, 1001, 44543529, 15.60, 3841 },
    { "seed002-152",    seed002_stored, 152, 32, 224, 1001, 60187177, 23.03, 5459 },
    { "seed002-200",    seed002_stored, 200, 32, 224, 1001, 64668201, 30.02, 7925 },
    { "resnet-18",      resnet_stored,  18,  32, 224, 1000, 11689512,  3.63, 0 },
    { "resnet-34",      resnet_stored,  34,  32, 224, 1000, 21797672,  7.33, 0 },
    { "resnet-50",      resnet_stored,  50,  32, 224, 1000, 25557032,  8.18, 2697.7 },
    { "resnet-101",     resnet_stored,  101, 32, 224, 1000, 44549160, 15.60, 0 },
    { "resnet-152",     resnet_stored,  152, 32, 224, 1000, 60192808, 23.03, 0 } };

static long long parameters(gcp_tape *net)
{
    long long n = 0;
    for (int i = 0; !gcp_is_nil(gcp_parameter(net, i)); i++) n += (long long)gcp_elements(gcp_parameter(net, i));
    return n;
}

static void figures_of(const figures *f)
{
    int failed = check_failed;
    stored s = { .count = 0 };
    gcp_tape *net = fresh();
    network n = f->build(net, f->size, f->batch, f->image, f->classes, &s);
    gcp_plan all = gcp_plan_make(n.loss, .policy = GCP_KEEP_ALL);
    double megabytes = (double)framework_bytes(&s) / 1e6;
    CHECK_TEXT(none(net), "none");
    CHECK_INT(parameters(net), ==, f->parameters);
    CHECK_NEAR(all.forward_flops / f->batch / 1e9, f->gigaflops, f->gigaflops / 100);
    if (f->stored_mb > 0) CHECK_NEAR(megabytes, f->stored_mb, f->stored_mb / 100);
    CHECK_INT(s.count, <, STORED_MAX);
    CHECK((double)all.after_forward / 1e6 <= megabytes);
    if (check_failed > failed) fprintf(stderr, "  in %s\n", f->name);
}

/* Of what a framework stores, the cuts that gcp chooses leave so many times less, gradients included. */
static void chosen_cuts(int depth, int batch, double stored_mb, double times_less)
{
    stored s = { .count = 0 };
    gcp_tape *net = fresh();
    network n = seed002_stored(net, depth, batch, 224, 1001, &s);
    gcp_plan plan = gcp_plan_make(n.loss, .policy = GCP_SQRT);
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
    return gcp_step(plan);
}

/* Both plans stay bound, so that gradients are compared one at a time. */
static void same_bits(builder *build, int size, int image)
{
    gcp_tape *net = fresh();
    network n = build(net, size, 2, image, 10, NULL);
    gcp_plan all = gcp_plan_make(n.loss, .policy = GCP_KEEP_ALL), cut = gcp_plan_make(n.loss, .policy = GCP_SEGMENTS);
    size_t state_bytes = gcp_state_bytes(net, GCP_NO_OPTIMIZER) + 64, largest = 0;
    for (int i = 0; !gcp_is_nil(gcp_parameter(net, i)); i++)
        if (gcp_elements(gcp_parameter(net, i)) > largest) largest = gcp_elements(gcp_parameter(net, i));
    float *kept = (float *)memory(largest * sizeof(float)), *again = (float *)memory(largest * sizeof(float));
    unsigned char *state = (unsigned char *)memory(state_bytes);
    unsigned char *slab_all = (unsigned char *)memory(all.bytes + 64), *slab_cut = (unsigned char *)memory(cut.bytes + 64);
    gcp_state_bind(net, state, state_bytes);
    float loss = step(&all, &n, slab_all), loss_again = step(&cut, &n, slab_cut);
    CHECK(loss > 0.1f && loss < 100);
    CHECK(loss == loss_again);
    CHECK_INT(cut.reruns, >, 0);
    for (int i = 0; !gcp_is_nil(gcp_parameter(net, i)); i++) {
        gcp_tensor w = gcp_parameter(net, i);
        CHECK(gcp_grad(&all, w, kept) == GCP_OK && gcp_grad(&cut, w, again) == GCP_OK);
        CHECK(!memcmp(kept, again, gcp_elements(w) * sizeof(float)));
    }
    CHECK_TEXT(none(net), "none");
    free(kept); free(again); free(state); free(slab_all); free(slab_cut);
}

int main(void)
{
    for (size_t i = 0; i < sizeof published / sizeof *published; i++) figures_of(&published[i]);
    chosen_cuts(50, 4, 316, 2.4);
    chosen_cuts(152, 2, 341, 4);
    same_bits(any_vgg16, 0, 32);
    same_bits(resnet_stored, 50, 64);
    same_bits(seed002_stored, 18, 64);
    return check_done();
}
