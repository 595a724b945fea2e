/* Bytes that each kernel moves over those that its op must move, on the emulation: the kernels are compiled with the
   calls of the thread sanitizer, and these calls, which are here, count. A cache of 1 MiB stands between the kernels
   and memory (the least recently used goes; an H100's is 50 MiB), in sectors of 32 bytes; blocks run in order. Must:
   each operand once in each pass that the op needs, given by hand below. Prints a table; fails above 1.1. */
#include "gcp_cuda.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <vector>

enum { SECTOR = 32, CACHE = 1 << 20, MEMORY = 96 << 20 };
static unsigned char *memory;
static size_t used;
static std::vector<size_t> seen[2];              /* by reads, by writes: bytes moved when a sector was used, plus 1 */
static size_t moved;

static void touch(const void *at, size_t size, int written)
{
    const unsigned char *p = (const unsigned char *)at;
    if (!memory || p < memory || p >= memory + used) return;
    for (size_t s = (size_t)(p - memory) / SECTOR; s <= (size_t)(p - memory + size - 1) / SECTOR; s++) {
        const size_t last = seen[written][s], other = seen[!written][s];
        const bool here = last && moved + 1 - last < CACHE,
                   just_written = !written && other && moved + 1 - other < CACHE;
        if (!here && !just_written) moved += SECTOR;
        seen[written][s] = moved + 1;
    }
}

extern "C" {
void __tsan_init(void) {}
void __tsan_func_entry(void *) {}
void __tsan_func_exit(void) {}
void __tsan_vptr_read(void **) {}
void __tsan_vptr_update(void **, void *) {}
void __tsan_read_range(void *p, size_t size) { touch(p, size, 0); }
void __tsan_write_range(void *p, size_t size) { touch(p, size, 1); }
#define ACCESS(size)                                                    \
    void __tsan_read##size(void *p) { touch(p, size, 0); }              \
    void __tsan_write##size(void *p) { touch(p, size, 1); }             \
    void __tsan_unaligned_read##size(void *p) { touch(p, size, 0); }    \
    void __tsan_unaligned_write##size(void *p) { touch(p, size, 1); }
ACCESS(1)
ACCESS(2)
ACCESS(4)
ACCESS(8)
ACCESS(16)
}

static void *take(size_t size)
{
    void *p = memory + used;
    used += (size + 255) / 256 * 256;
    if (used > MEMORY) { fprintf(stderr, "too little memory\n"); exit(1); }
    return p;
}
static gcp_shape shape(int n, int h, int w, int c)
{
    gcp_shape s = {};
    s.rank = 4;
    s.d[0] = n; s.d[1] = h; s.d[2] = w; s.d[3] = c;
    return s;
}
static gcp_view floats(gcp_shape s)
{
    gcp_view v = {};
    v.shape = s;
    v.pitch = s.d[3];
    v.data = take(sizeof(float) * s.d[0] * s.d[1] * s.d[2] * s.d[3]);
    return v;
}
/* Of elements of so many bytes: floats, or halves. */
static size_t width = sizeof(float);
static gcp_view view(gcp_shape s)
{
    gcp_view v = {};
    if (width == sizeof(float)) return floats(s);
    v.shape = s;
    v.pitch = s.d[3];
    v.dtype = GCP_DTYPE_BF16;
    v.data = take(width * s.d[0] * s.d[1] * s.d[2] * s.d[3]);
    return v;
}

/* ---- Kernels, one line of the table each ---- */

static int failed;
template <class F> static void row(const char *name, double must, F run)
{
    seen[0].assign(MEMORY / SECTOR, 0);
    seen[1].assign(MEMORY / SECTOR, 0);
    moved = 0;
    run();
    cudaStreamSynchronize(NULL);
    printf("%s%s,%.0f,%zu,%.3f\n", name, width < sizeof(float) ? " (halves)" : "", must, moved, (double)moved / must);
    fflush(stdout);
    failed += !(must > 0) || (double)moved / must > 1.1;
    used = 0;
}

static const double E = 4.0 * 4 * 56 * 56 * 64;  /* bytes of the tensor: of floats, or of twice as many halves */
static int images = 4;
static gcp_shape S;
static double BITS;
static const cudaStream_t stream = NULL;

static float *channels(int c, float value)
{
    float *p = (float *)take(sizeof(float) * c);
    for (int i = 0; i < c; i++) p[i] = value;
    return p;
}
static const gcpi_cuda_rectifier relu = { 0, INFINITY, INFINITY, 0, 0, -INFINITY, 1 };
static gcpi_cuda_apply applied(int norm, int add, int mask)
{
    gcpi_cuda_apply a = {};
    a.x = view(S);
    a.y = view(S);
    a.rectifier = relu;
    if (add) a.other = view(S);
    if (mask) a.mask = (unsigned char *)take((size_t)BITS);
    if (norm) a.mean = channels(64, 0), a.scale = channels(64, 1), a.gamma = channels(64, 1), a.beta = channels(64, 0);
    return a;
}

static void elementwise(void)
{
    const gcp_view none = {};
    row("map: add", 3 * E, [&] { gcpi_cuda_map(GCPI_FN_ADD, view(S), view(S), view(S), 0, 0, stream); });
    row("map: gelu", 2 * E, [&] { gcpi_cuda_map(GCPI_FN_GELU, view(S), view(S), none, 0, 0, stream); });
    row("map: add to what is there", 3 * E, [&] {
        gcp_view to = view(S);
        to.accumulate = 1;
        gcpi_cuda_map(GCPI_FN_COPY, to, view(S), none, 0, 0, stream);
    });
    row("apply: norm and rectifier", 2 * E, [&] { auto a = applied(1, 0, 0); gcpi_cuda_apply_run(&a, stream); });
    row("apply: norm and addition and rectifier with a mask", 3 * E + BITS, [&] {
        auto a = applied(1, 1, 1);
        gcpi_cuda_apply_run(&a, stream);
    });
    row("rectify_back: by y", 3 * E, [&] {
        gcpi_cuda_rectify_back(view(S), view(S), view(S), NULL, &relu, stream);
    });
    row("rectify_back: by a mask", 2 * E + BITS, [&] {
        gcpi_cuda_rectify_back(view(S), view(S), none, (unsigned char *)take((size_t)BITS), &relu, stream);
    });
    row("reshape", 2 * E, [&] { gcpi_cuda_reshape(view(S), view(shape(images, 56 * 56, 1, 64)), stream); });
    row("dropout", 2 * E, [&] {
        gcp_step_numbers *n = (gcp_step_numbers *)take(sizeof *n);
        gcpi_cuda_dropout(view(S), view(S), 0.5, 0, 1, n, stream);
    });
}

static void windows(void)
{
    gcpi_cuda_conv c = { images, 56, 56, 64, 28, 28, 64, 3, 3, 2, 2, 1, 1, 1, 1, 1, 64, 64, 0 };
    const gcp_shape small = shape(images, 28, 28, 64), large = shape(images, 112, 112, 16);
    const double Y = E / 4, WHICH = Y / (double)width;
    row("max_pool 3x3, stride 2", E + Y + WHICH, [&] {
        gcpi_cuda_max_pool(&c, view(S), view(small), (unsigned char *)take((size_t)WHICH), 0, stream);
    });
    row("max_pool backward", E + Y + WHICH, [&] {
        gcpi_cuda_max_pool(&c, view(S), view(small), (unsigned char *)take((size_t)WHICH), 1, stream);
    });
    row("avg_pool 3x3, stride 2", E + Y, [&] { gcpi_cuda_avg_pool(&c, view(S), view(small), 0, stream); });
    row("avg_pool backward", E + Y, [&] { gcpi_cuda_avg_pool(&c, view(S), view(small), 1, stream); });
    row("upsample", E + Y, [&] { gcpi_cuda_upsample(view(shape(images, 56, 56, 16)), view(large), 2, 1, 0, stream); });
    row("upsample backward", E + Y, [&] {
        gcpi_cuda_upsample(view(shape(images, 56, 56, 16)), view(large), 2, 1, 1, stream);
    });
}

static void norms(void)
{
    gcp_view in[6] = {}, dout[1], din[6] = {};
    gcp_call call = {}, rectifier = {};
    call.in = in; call.dout = dout; call.din = din; call.training = 1;
    auto norm = [&](int channels_of) {
        memset(in, 0, sizeof in);
        memset(din, 0, sizeof din);
        in[0] = view(S); dout[0] = view(S); din[0] = view(S);
        for (int i = 1; i < 5; i++) in[i].data = channels(channels_of, 1);
        for (int i = 1; i < 5; i++) din[i].data = channels(channels_of, 1);
    };
    /* each tile of a convolution leaves its sums, so that it can make them */
    row("batch_stats", E + 2.0 * (double)gcpi_cuda_stats_workspace(S), [&] {
        gcpi_cuda_stats s = { channels(64, 0), channels(64, 0), channels(64, 0), channels(64, 0), 1e-5, 0.1, 1, 1 };
        gcpi_cuda_batch_stats(view(S), &s, 0, take(gcpi_cuda_stats_workspace(S)), stream);
    });
    for (int fused = 0; fused < 2; fused++)
        row(fused ? "norm's and rectifier's backward (two passes)" : "batch-norm backward (two passes)", 5 * E, [&] {
            norm(64);
            call.workspace = take(gcpi_cuda_sums_workspace(S, 2));
            call.fused = fused ? &rectifier : NULL;
            gcpi_cuda_batch_norm_back(&call, &relu, stream);
        });
    row("bias backward", E, [&] {
        gcpi_cuda_bias_back(floats(shape(1, 1, 1, 64)), view(S), take(gcpi_cuda_sums_workspace(S, 1)), stream);
    });
    row("layer_norm", 2 * E, [&] {
        gcpi_cuda_layer_norm(view(S), view(S), channels(64, 1), channels(64, 0), 1e-5, 0, stream);
    });
    row("layer_norm backward (moments, sums, dx)", 6 * E, [&] {
        norm(64);
        call.workspace = take(gcpi_cuda_layer_norm_workspace(S));
        gcpi_cuda_layer_norm_back(&call, 1e-5, 0, stream);
    });
}

static void losses(void)
{
    const int pixels = images * 56 * 56;
    const gcp_shape logits = shape(pixels, 1, 1, 64);
    const double LABELS = 4.0 * pixels;
    auto labels = [&] {
        gcpi_cuda_targets t = {};
        int *there = (int *)floats(shape(pixels, 1, 1, 1)).data;
        memset(there, 0, (size_t)LABELS);
        t.labels = there;
        t.ignore = -1;
        return t;
    };
    row("mean", E, [&] {
        gcpi_cuda_mean(view(S), gcp_view{}, channels(1, 0), take(GCPI_CUDA_LOSS_BYTES), stream);
    });
    row("mse", 2 * E, [&] { gcpi_cuda_mean(view(S), view(S), channels(1, 0), take(GCPI_CUDA_LOSS_BYTES), stream); });
    row("mse backward", 3 * E, [&] { gcpi_cuda_mse_back(view(S), view(S), view(S), channels(1, 1), stream); });
    row("cross_entropy", E + LABELS, [&] {
        const gcpi_cuda_targets t = labels();
        gcpi_cuda_cross_entropy(view(logits), &t, channels(1, 0), take(GCPI_CUDA_LOSS_BYTES), stream);
    });
    row("cross_entropy backward", 2 * E + LABELS, [&] {
        const gcpi_cuda_targets t = labels();
        gcpi_cuda_cross_entropy_back(view(logits), view(logits), &t, channels(1, 1), take(GCPI_CUDA_LOSS_BYTES),
                                     stream);
    });
}

static void embedding(void)
{
    const gcp_shape ids = shape(3000, 1, 1, 1), rows = shape(3000, 1, 1, 64), table = shape(1000, 1, 1, 64);
    const double IDS = 4.0 * 3000, ROWS = 64.0 * 3000 * width, TABLE = 256.0 * 1000;
    auto numbered = [&] {
        gcp_view v = floats(ids);
        for (int i = 0; i < 3000; i++) ((int *)v.data)[i] = i * 7919 % 1000;
        return v;
    };
    row("embedding", IDS + ROWS + TABLE, [&] { gcpi_cuda_embedding(view(rows), numbered(), floats(table), stream); });
    row("embedding backward", IDS + ROWS + TABLE, [&] {
        gcp_view d = floats(table), i = numbered();
        gcpi_cuda_embedding_back(d, i, view(rows), take(gcpi_cuda_embedding_workspace(ids)), stream);
    });
}

static void updates(void)
{
    const size_t count = 4 * 56 * 56 * 64;
    auto update = [&](gcp_optimizer optimizer) {
        gcp_step_numbers *n = (gcp_step_numbers *)take(sizeof *n);
        uint64_t *updates = (uint64_t *)take(8);
        memset(n, 0, sizeof *n);
        *updates = 0;
        n->lr = n->gradient_scale = n->micros = 1;
        gcpi_cuda_update u = { { { (float *)take(4 * count), (float *)take(4 * count), (float *)take(4 * count),
                                   (const float *)take(4 * count), count, updates, 0, 1, 0, 0 } },
                               n, 0.9, 0.99, 1e-8, 0, 0.9, 1, 0, (int)optimizer };
        gcpi_cuda_step(&u, stream);
    };
    row("sgd with momentum", 5 * E, [&] { update(GCP_OPTIMIZER_SGD); });
    row("adam", 7 * E, [&] { update(GCP_OPTIMIZER_ADAM); });
    row("norm of gradients", E, [&] {
        gcpi_cuda_norm_add(view(S), take(GCPI_CUDA_LOSS_BYTES + sizeof(double)), stream);
    });
}

int main(void)
{
    void *all = NULL;
    if (cudaMalloc(&all, MEMORY) != cudaSuccess) return 1;
    memset(all, 0, MEMORY);
    memory = (unsigned char *)all;
    printf("pass,must_move,moved,ratio\n");
    for (; width >= 2; width /= 2, images *= 2) {
        S = shape(images, 56, 56, 64);
        BITS = E / (double)width / 8;
        elementwise();
        windows();
        norms();
        losses();
        embedding();
        if (width == sizeof(float)) updates();
    }
    cudaFree(all);
    if (failed) fprintf(stderr, "%d above 1.1\n", failed);
    return failed > 0;
}
