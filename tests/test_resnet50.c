/* A ResNet-50 that torchvision wrote (reference/make_resnet50.py FILE): test_resnet50 FILE. Its logits to 1e-4 of the
   largest. */
#include <stdlib.h>
#include "gcp_io.h"
#include "networks.h"
#include "support/check.h"

/* Our residual[0] to residual[15] are its layer1.0 to layer4.2; a block's fourth convolution goes round the others. */
static const char *names(void)
{
    static char map[8192];
    static const int blocks[] = { 3, 4, 6, 3 };
    int n = snprintf(map, sizeof map,
                     "stem[0]/conv2d[0]/* conv1.*\nstem[0]/batch_norm[0]/* bn1.*\nhead[0]/linear[0]/* fc.*\n- image\n"
                     "- logits\n");
    for (int layer = 0, block = 0; layer < 4; layer++)
        for (int i = 0; i < blocks[layer]; i++, block++)
            n += snprintf(map + n, sizeof map - (size_t)n,
                          "residual[%d]/conv2d[3]/* layer%d.%d.downsample.0.*\n"
                          "residual[%d]/batch_norm[3]/* layer%d.%d.downsample.1.*\n"
                          "residual[%d]/conv2d[{c}]/* layer%d.%d.conv{c+1}.*\n"
                          "residual[%d]/batch_norm[{c}]/* layer%d.%d.bn{c+1}.*\n",
                          block, layer + 1, i, block, layer + 1, i, block, layer + 1, i, block, layer + 1, i);
    return map;
}

static gcp_plan bound(gcp_tensor result)
{
    gcp_plan plan = gcp_plan_make(result, .inference = 1);
    void *memory = malloc(plan.room);
    if (memory) gcp_bind(&plan, memory, plan.room);
    return plan;
}

int main(int argc, char **argv)
{
    static unsigned char memory[2][GCP_MB(8)];
    static float image[2 * 224 * 224 * 3], expected[2000], logits[2000];
    if (argc < 2) return 77;
    gcp_arena arena = gcp_arena_from(memory[0], sizeof memory[0]), other = gcp_arena_from(memory[1], sizeof memory[1]);
    gcp_tape *net = gcp_tape_make(&arena, .ops = 512), *values = gcp_tape_make(&other, .ops = 8);
    network ends = resnet50(net, 2, 224, 1000);
    gcp_plan plan = bound(ends.logits);
    gcp_tensor x = gcp_param(values, "image", GCP_SHAPE(2, 224, 224, 3)),
               y = gcp_param(values, "logits", GCP_SHAPE(2, 1000));
    gcp_plan read = bound(gcp_add(gcp_mean(x), gcp_mean(y)));
    CHECK_INT(gcp_load(net, argv[1], .style = GCP_STYLE_TORCH, .map = names()), ==, 267);
    CHECK_INT(gcp_load(values, argv[1], .style = GCP_STYLE_TORCH, .partial = 1), ==, 2);
    gcp_read(&read, x, image);
    gcp_read(&read, y, expected);
    gcp_write(&plan, ends.image, image);
    gcp_forward(&plan);
    gcp_read(&plan, ends.logits, logits);
    double worst = 0, largest = 0;
    for (int i = 0; i < 2000; i++) {
        largest = fmax(largest, fabs((double)expected[i]));
        worst = fmax(worst, fabs((double)expected[i] - (double)logits[i]));
    }
    if (gcp_error(net)) fprintf(stderr, "%s\n", gcp_error(net));
    CHECK(!gcp_error(net) && !gcp_error(values));
    CHECK_NEAR(worst / largest, 0, 1e-4);
    printf("logits up to %g, off by %g at most\n", largest, worst);
    return check_done();
}
