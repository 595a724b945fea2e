/* rivals.h - the kernels that bench/kernels runs beside gcp's: oneDNN, OpenBLAS, and PyTorch in a process of its own;
   or, in place of them, those of another tree of gcp.

   A rival opens one pass of one layer, or one matrix product, with operands of its own, and times calls of it. All run
   with the same number of threads. oneDNN counts its primitive alone, no reorders, in NHWC and in the format it likes
   best, and its sgemm for products; OpenBLAS, where it knows the CPU, the matrix product that an im2col convolution
   would call, without the im2col; PyTorch its operator in both layouts. */
#ifndef RIVALS_H
#define RIVALS_H
#include <dlfcn.h>
#include "own.h"

typedef struct rival {
    const char *name;
    int (*open)(const work *w);        /* 0: not this one */
    double (*seconds)(int calls);
    void (*close)(void);
} rival;

/* ---- oneDNN 2.x (its third version has another interface) ---- */
#ifdef BENCH_ONEDNN
#include <dnnl.h>
#endif
#if defined(BENCH_ONEDNN) && DNNL_VERSION_MAJOR == 2

static struct {
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    dnnl_primitive_t primitive;
    dnnl_memory_t memory[3];
    dnnl_exec_arg_t args[3];
} dnn;

static void dnn_must(dnnl_status_t s)
{
    if (s != dnnl_success) {
        fprintf(stderr, "kernels: oneDNN status %d\n", (int)s);
        exit(1);
    }
}

static void dnn_operand(int at, dnnl_primitive_desc_t pd, dnnl_query_t what, int argument)
{
    const dnnl_memory_desc_t *md = dnnl_primitive_desc_query_md(pd, what, 0);
    void *data;
    dnn_must(dnnl_memory_create(&dnn.memory[at], md, dnn.engine, DNNL_MEMORY_ALLOCATE));
    dnn_must(dnnl_memory_get_data_handle(dnn.memory[at], &data));
    for (size_t i = 0, n = dnnl_memory_desc_get_size(md) / sizeof(float); i < n; i++)
        ((float *)data)[i] = (float)((int)(i * 7919 % 2001) - 1000) / 997;
    dnn.args[at].arg = argument;
    dnn.args[at].memory = dnn.memory[at];
}

static void dnn_descriptors(const gcpi_conv *c, int nhwc, dnnl_memory_desc_t md[3])
{
    int grouped = c->groups > 1;
    dnnl_dims_t x = { c->n, c->ci, c->h, c->w }, y = { c->n, c->co, c->ho, c->wo }, w = { c->co, c->ci, c->kh, c->kw };
    dnnl_dims_t g = { c->groups, c->co / c->groups, c->ci / c->groups, c->kh, c->kw };
    dnn_must(dnnl_memory_desc_init_by_tag(&md[0], 4, x, dnnl_f32, nhwc ? dnnl_nhwc : dnnl_format_tag_any));
    dnn_must(dnnl_memory_desc_init_by_tag(&md[1], grouped ? 5 : 4, grouped ? g : w, dnnl_f32, dnnl_format_tag_any));
    dnn_must(dnnl_memory_desc_init_by_tag(&md[2], 4, y, dnnl_f32, nhwc ? dnnl_nhwc : dnnl_format_tag_any));
}

static dnnl_primitive_desc_t dnn_describe(const gcpi_conv *c, int pass, dnnl_memory_desc_t md[3],
                                          dnnl_primitive_desc_t hint)
{
    int ends[2] = { (c->ho - 1) * c->sh + c->kh - c->h - c->pt, (c->wo - 1) * c->sw + c->kw - c->w - c->pl };
    dnnl_dims_t strides = { c->sh, c->sw }, before = { c->pt, c->pl }, after = { ends[0], ends[1] };
    dnnl_convolution_desc_t d;
    dnnl_primitive_desc_t pd = NULL;
    if (pass == GCPI_FORWARD)
        dnn_must(dnnl_convolution_forward_desc_init(&d, dnnl_forward_training, dnnl_convolution_direct, &md[0], &md[1],
                                                    NULL, &md[2], strides, before, after));
    else if (pass == GCPI_BACKWARD_DATA)
        dnn_must(dnnl_convolution_backward_data_desc_init(&d, dnnl_convolution_direct, &md[0], &md[1], &md[2], strides,
                                                          before, after));
    else
        dnn_must(dnnl_convolution_backward_weights_desc_init(&d, dnnl_convolution_direct, &md[0], &md[1], NULL, &md[2],
                                                             strides, before, after));
    return dnnl_primitive_desc_create(&pd, &d, NULL, dnn.engine, hint) == dnnl_success ? pd : NULL;
}

static int dnn_open(const work *w, int nhwc)
{
    dnnl_memory_desc_t md[3];
    if (w->m) return 0;
    if (!dnn.engine) {
        dnn_must(dnnl_engine_create(&dnn.engine, dnnl_cpu, 0));
        dnn_must(dnnl_stream_create(&dnn.stream, dnn.engine, dnnl_stream_default_flags));
    }
    dnn_descriptors(&w->c, nhwc, md);
    dnnl_primitive_desc_t forward = dnn_describe(&w->c, GCPI_FORWARD, md, NULL), pd = forward;
    if (forward && w->pass != GCPI_FORWARD) pd = dnn_describe(&w->c, w->pass, md, forward);
    if (pd) {
        dnn_operand(0, pd, w->pass == GCPI_BACKWARD_DATA ? dnnl_query_diff_src_md : dnnl_query_src_md,
                    w->pass == GCPI_BACKWARD_DATA ? DNNL_ARG_DIFF_SRC : DNNL_ARG_SRC);
        dnn_operand(1, pd, w->pass == GCPI_BACKWARD_WEIGHTS ? dnnl_query_diff_weights_md : dnnl_query_weights_md,
                    w->pass == GCPI_BACKWARD_WEIGHTS ? DNNL_ARG_DIFF_WEIGHTS : DNNL_ARG_WEIGHTS);
        dnn_operand(2, pd, w->pass == GCPI_FORWARD ? dnnl_query_dst_md : dnnl_query_diff_dst_md,
                    w->pass == GCPI_FORWARD ? DNNL_ARG_DST : DNNL_ARG_DIFF_DST);
        dnn_must(dnnl_primitive_create(&dnn.primitive, pd));
    }
    if (pd && pd != forward) dnnl_primitive_desc_destroy(pd);
    if (forward) dnnl_primitive_desc_destroy(forward);
    return pd != NULL;
}

static int dnn_open_nhwc(const work *w) { return dnn_open(w, 1); }
static int dnn_open_any(const work *w) { return dnn_open(w, 0); }

static double dnn_seconds(int calls)
{
    double start = seconds_now();
    for (int i = 0; i < calls; i++) dnn_must(dnnl_primitive_execute(dnn.primitive, dnn.stream, 3, dnn.args));
    dnn_must(dnnl_stream_wait(dnn.stream));
    return seconds_now() - start;
}

static void dnn_close(void)
{
    dnnl_primitive_destroy(dnn.primitive);
    for (int i = 0; i < 3; i++) dnnl_memory_destroy(dnn.memory[i]);
}

static struct { work w; float *a, *b, *c; } product;

static int dnn_open_product(const work *w)
{
    if (!w->m) return 0;
    product.w = *w;
    product.a = filled((size_t)w->m * (size_t)w->k);
    product.b = filled((size_t)w->k * (size_t)w->n);
    product.c = filled((size_t)w->m * (size_t)w->n);
    return 1;
}

static double dnn_product_seconds(int calls)
{
    const work *w = &product.w;
    int ta = w->pass == 2, tb = w->pass == 1;
    double start = seconds_now();
    for (int i = 0; i < calls; i++)
        dnn_must(dnnl_sgemm(ta ? 'T' : 'N', tb ? 'T' : 'N', w->m, w->n, w->k, 1, product.a, ta ? w->m : w->k, product.b,
                            tb ? w->k : w->n, 0, product.c, w->n));
    return seconds_now() - start;
}

static void dnn_close_product(void) { free(product.a); free(product.b); free(product.c); }
static void dnn_say(void)
{
    const dnnl_version_t *v = dnnl_version();
    printf("oneDNN %d.%d.%d\n", v->major, v->minor, v->patch);
}
#define RIVALS_ONEDNN                                                                                              \
    { "onednn_nhwc", dnn_open_nhwc, dnn_seconds, dnn_close }, { "onednn_any", dnn_open_any, dnn_seconds, dnn_close }, \
        { "onednn_sgemm", dnn_open_product, dnn_product_seconds, dnn_close_product },
#else
#define RIVALS_ONEDNN
static void dnn_say(void) { printf("built without oneDNN 2 (Debian: libdnnl-dev)\n"); }
#endif

/* ---- OpenBLAS ---- */
#ifdef BENCH_CBLAS
#include <cblas.h>

enum { BLAS_MOST = 64 << 20 };        /* values in a matrix that im2col would make; more are cut by images */
static struct { int ta, tb, m, n, k, times; float *a, *b, *c; } blas;

/* Where OpenBLAS does not know the CPU it takes the kernels of the oldest that has 64 bits: no peer. */
static int blas_knows_cpu(void) { return strcmp(openblas_get_corename(), "Prescott") != 0; }

static int blas_open(const work *w)
{
    const gcpi_conv *c = &w->c;
    if (!blas_knows_cpu()) return 0;
    blas.times = 1;
    blas.ta = w->m && w->pass == 2; blas.tb = w->m && w->pass == 1;
    blas.m = w->m; blas.n = w->n; blas.k = w->k;
    if (!w->m) {
        if (c->groups > 1) return 0;
        int taps = c->kh * c->kw * c->ci, images = c->n;
        while (images > 1 && (double)images * c->ho * c->wo * taps > BLAS_MOST) images = (images + 1) / 2;
        int pixels = images * c->ho * c->wo;
        blas.times = (c->n + images - 1) / images;
        blas.tb = w->pass == GCPI_FORWARD; blas.ta = w->pass == GCPI_BACKWARD_WEIGHTS;
        blas.m = w->pass == GCPI_BACKWARD_WEIGHTS ? c->co : pixels;
        blas.n = w->pass == GCPI_FORWARD ? c->co : taps;
        blas.k = w->pass == GCPI_FORWARD ? taps : w->pass == GCPI_BACKWARD_DATA ? c->co : pixels;
    }
    blas.a = filled((size_t)blas.m * (size_t)blas.k);
    blas.b = filled((size_t)blas.k * (size_t)blas.n);
    blas.c = filled((size_t)blas.m * (size_t)blas.n);
    return 1;
}

static double blas_seconds(int calls)
{
    double start = seconds_now();
    for (int i = 0; i < calls * blas.times; i++)
        cblas_sgemm(CblasRowMajor, blas.ta ? CblasTrans : CblasNoTrans, blas.tb ? CblasTrans : CblasNoTrans, blas.m,
                    blas.n, blas.k, 1, blas.a, blas.ta ? blas.m : blas.k, blas.b, blas.tb ? blas.k : blas.n, 0, blas.c,
                    blas.n);
    return seconds_now() - start;
}

static void blas_close(void) { free(blas.a); free(blas.b); free(blas.c); }
static void blas_say(void)
{
    printf("OpenBLAS takes its kernels for %s%s\n", openblas_get_corename(),
           blas_knows_cpu() ? "" : ": it does not know this CPU, and is left out");
}
#define RIVALS_BLAS { "openblas", blas_open, blas_seconds, blas_close },
#else
#define RIVALS_BLAS
static void blas_say(void) { }
#endif

/* ---- another tree of gcp: old.c as a library; then no other rival runs ---- */
static struct { void *library; void (*open)(const work *w); double (*seconds)(int calls); void (*close)(void); } old;

/* POSIX gives a function's address as that of an object. */
static void *old_symbol(const char *name)
{
    void *p = dlsym(old.library, name);
    if (!p) { fprintf(stderr, "kernels: --old: no %s there\n", name); exit(1); }
    return p;
}

static void old_load(const char *file, int threads)
{
    size_t (*begin)(int);
    old.library = dlopen(file, RTLD_NOW | RTLD_LOCAL);
    if (!old.library) { fprintf(stderr, "kernels: --old: %s\n", dlerror()); exit(1); }
    *(void **)&begin = old_symbol("old_begin"), *(void **)&old.open = old_symbol("old_open");
    *(void **)&old.seconds = old_symbol("old_seconds"), *(void **)&old.close = old_symbol("old_close");
    if (begin(threads) != sizeof(work)) { fprintf(stderr, "kernels: --old: its layers are others\n"); exit(1); }
}

static int old_open(const work *w) { if (old.library) old.open(w); return old.library != NULL; }
static double old_seconds(int calls) { return old.seconds(calls); }
static void old_close(void) { old.close(); }
#define RIVALS_OLD { "old", old_open, old_seconds, old_close },

/* ---- PyTorch: torch_layers.py at the other end of two pipes, a line each way ---- */
#include "peer.h"

static peer torch;
static int torch_runs;

static double torch_ask(void)
{
    const char *line = peer_answer(&torch);
    return line ? atof(line) : 0;
}

static int torch_open(const work *w, int channels_last)
{
    const gcpi_conv *c = &w->c;
    if (!torch_runs || (w->m && channels_last)) return 0;
    if (w->m) fprintf(torch.to, "matmul %d %d %d %d\n", w->m, w->n, w->k, w->pass);
    else
        fprintf(torch.to, "conv %d %d %d %d %d %d %d %d %d %d %d %d %d %d\n", c->n, c->h, c->w, c->ci, c->co, c->kh,
                c->kw, c->sh, c->sw, c->pt, c->pl, c->groups, w->pass, channels_last);
    return torch_ask() > 0;
}

static int torch_open_last(const work *w) { return torch_open(w, 1); }
static int torch_open_default(const work *w) { return torch_open(w, 0); }
static double torch_seconds(int calls) { fprintf(torch.to, "run %d\n", calls); return torch_ask(); }
static void torch_close(void) { }
#define RIVALS_TORCH                                                        \
    { "torch_channels_last", torch_open_last, torch_seconds, torch_close }, \
        { "torch", torch_open_default, torch_seconds, torch_close },

#endif
