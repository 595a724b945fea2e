/* gcp.h 0.3.0 in one file: assembled from gcp.h and the rooms in src/ by src/assemble.cmake, never edited. */
#define GCPI_ONE_FILE

/* gcp.h - 0.3.0 - gradient checkpointing for C: record a network, plan its memory, train it. MIT licence, at the end.

   Do this in *one* C file:
       #define GCP_IMPLEMENTATION
       #include "gcp.h"
   and plain #include "gcp.h" wherever else it is used. Link with -lm. Compile with -fopenmp for threads.

   ------------------------------------------------------------------------------------------------------------
   A COMPLETE PROGRAM (the tests build and run it)

       #include <stdio.h>
       #define GCP_IMPLEMENTATION
       #include "gcp.h"

       static unsigned char tape_memory[GCP_MB(2)], step_memory[GCP_MB(64)];
       static float images[32 * 32 * 32 * 3];
       static int   labels[32];

       int main(void)
       {
           gcp_arena  arena = gcp_arena_from(tape_memory, sizeof tape_memory);
           gcp_tape  *net   = gcp_tape_make(&arena, .ops = 128);

           // record: shapes are checked here, nothing is computed
           gcp_tensor image = gcp_input(net, "image", GCP_SHAPE(32, 32, 32, 3));    // batch, height, width, channels
           gcp_tensor label = gcp_labels(net, "label", GCP_SHAPE(32));
           gcp_tensor x     = gcp_relu(gcp_conv2d(image, .out = 16, .k = 3, .pad = 1));
           for (int i = 0; i < 8; i++)
               GCP_SEGMENT(net, "residual") {                                   // residual[0], residual[1], ...
                   gcp_tensor y = gcp_relu(gcp_batch_norm(gcp_conv2d(x, .out = 16, .k = 3, .pad = 1)));
                   x = gcp_relu(gcp_add(gcp_conv2d(y, .out = 16, .k = 3, .pad = 1), x));
               }
           gcp_tensor loss = gcp_cross_entropy(gcp_linear(gcp_global_avg_pool(x), .out = 10), label);

           // plan: the peak is known before a byte is spent
           gcp_plan plan = gcp_plan_make(loss, .policy = GCP_POLICY_SEGMENTS,
                                         .optimizer = GCP_OPTIMIZER_SGD, .momentum = 0.9);
           gcp_why_print(&plan, gcp_file(stdout));

           // bind: the only memory a step touches
           gcp_bind(&plan, step_memory, sizeof step_memory);

           // run
           for (int step = 0; step < 3; step++) {
               for (int i = 0; i < 32; i++) labels[i] = (i + step) % 10;
               for (int i = 0; i < 32 * 32 * 32 * 3; i++) images[i] = (float)((i * 7 + labels[i / 3072]) % 11) / 11;
               gcp_write(&plan, image, images);
               gcp_write(&plan, label, labels);
               printf("step %d: loss %.4f\n", step, gcp_step(&plan, .lr = 0.05));
           }
           if (gcp_error(net)) { fprintf(stderr, "%s\n", gcp_error(net)); return 1; }
           return 0;
       }

   STEP BY STEP
     gcp_arena_from    give the library memory; it never takes any itself
     gcp_tape_make     a tape of fixed capacity in that arena
     gcp_input ...     record inputs, layers and ops; every call checks its shapes at once
     GCP_SEGMENT       mark a block whose activations GCP_POLICY_SEGMENTS recomputes instead of keeping
     gcp_plan_make     choose a policy; plan.bytes is all that a step needs
     gcp_bind          give those bytes
     gcp_write         put a batch into the inputs
     gcp_step          forward, backward, update; returns the loss
     gcp_error         NULL, or the first error, as file:line: op: what was found and what is allowed

   gcp DOES NOT allocate, print, exit or abort; use globals; keep a thread; need any library but libc and libm;
   change one bit of loss, gradients, batch-norm statistics or dropout between one plan and another.

   CONTENTS (search for the rule lines)
     1 how checkpointing works   2 configuration   3 types   4 functions   5 macros
     with GCP_IMPLEMENTATION: 6 the files of src/, called rooms, a line each

   ---- 1 how checkpointing works -----------------------------------------------------------------------------

   Training runs a network forward, then backward. The backward of a layer reads values that its forward read or made
   (a convolution reads its input, a ReLU the sign of its output), so plain backpropagation keeps all of them. A chain
   of n layers whose outputs take one unit of memory each needs n units where forward turns into backward.

   Chen et al. 2016 ("Training Deep Nets with Sublinear Memory Cost", arXiv 1604.06174) cut the chain into segments
   of k layers. Forward keeps only what crosses a cut (n/k units). Backward takes the segments from last to first: it
   runs one forward again from its cut, keeps its inside (k units), then goes backward through it. The peak is n/k + k.
   It is least at k = sqrt(n): 2 sqrt(n) units, for at most one extra forward pass.

       n = 16, k = 4           kept: the cuts               live at the turn of the last segment: 4 + 4 = 8, not 16
         x -1-2-3-4 | 5-6-7-8 | 9-10-11-12 | 13-14-15-16 - loss
                    ^         ^            ^

   Applied again inside each segment (GCP_POLICY_RECURSIVE), this needs O(log n) units for O(n log n) extra work. A
   network that is not a chain is cut the same way: a cut keeps every tensor that is made before it and read after it.

   With GCP_POLICY_BUDGET you give a number of bytes instead. gcp searches for lists that fit and keeps the fastest. It
   gives a time that no list that fits can beat (plan.bound_seconds); where nothing fits, it names the least budget
   found that works. With .far bytes of far memory (a file, or a GPU's host) values may also wait there: they are copied
   while ops compute.

   A *plan* is such a choice turned into a list of instructions, each with the addresses of what it reads and writes:
       F forward   R the same forward again   B backward   U update   H gradient ready   W wait for its hook
       O copy to far memory   P copy back   A wait until a copy to far memory has arrived   M move inside the slab
   A read sees the latest value made before it, so the list alone fixes each value's lifetime. Values whose lifetimes
   do not overlap share bytes. The result is one slab of known size, the same in every step.

   A recomputed op is the same call on the same inputs, so it gives the same bits. Ops with side effects (batch-norm
   statistics) run once, and their small outputs are kept. Dropout draws its random numbers from a counter (seed, step,
   op, element): the same mask can be drawn again, and nothing has to be stored for it.

   Memory has two parts. *State*: weights, batch-norm statistics, optimiser slots; it belongs to the tape and outlives
   plans, so a change of plan in mid-training changes no bit. *Slab*: inputs, activations, gradients, workspace; it
   belongs to the plan. plan.bytes = plan.state_bytes + plan.slab_bytes. */

#ifndef GCP_H
#define GCP_H

#include <stddef.h>
#include <stdint.h>

/* ---- 2 configuration ------------------------------------------------------------------------------------------
   GCP_REAL     float (default) or double: the type of all activations, gradients and weights. One choice per program:
                files that differ do not link (the choice is part of a function's name).
   GCP_STATIC   makes every function static: a private copy of the library for one file.
   GCP_API      put before every declaration (dllexport and the like).
   GCP_USE_CBLAS  matrix products (linear, matmul) use the CBLAS that you link, with <cblas.h>. gcp sets the BLAS to one
                thread, leaves it so, cuts a product by its shape and calls the BLAS from its own threads: bits do not
                depend on the number of threads. OpenBLAS is known; for another BLAS define GCP_CBLAS_ONE_THREAD() as
                what sets it to one thread. Memory that a BLAS allocates is not in the plan. Convolutions do not use it.
   GCP_ANY_MATH  allows -ffast-math with a compiler that cannot turn it off for this file (with others gcp turns it
                off): bits may then depend on the plan.
   Every option below is a field of a struct: zero means its default. No macro changes a public struct. */

#define GCP_VERSION_MAJOR 0
#define GCP_VERSION_MINOR 3
#define GCP_VERSION_PATCH 0

#if defined(__cplusplus) ? __cplusplus < 201703L : !defined(__STDC_VERSION__) || __STDC_VERSION__ < 199901L
#error "gcp.h needs C99 or C++17; the file with GCP_IMPLEMENTATION needs C11 or C++17"
#endif
#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/begin.h")
#error "gcp.h needs its rooms, the folder src/ beside it; the single file to copy is dist/gcp.h"
#endif
#endif
#ifndef GCP_REAL
#define GCP_REAL float
#endif
#ifdef GCP_STATIC
#if defined(__GNUC__)
#define GCP_API static __attribute__((unused))
#else
#define GCP_API static
#endif
#elif !defined(GCP_API)
#define GCP_API extern
#endif
/* A program's files agree on GCP_REAL or do not link: gcp_tape_make_at is gcp_tape_make_at_v2_float or ..._double. */
#define gcp_tape_make_at GCPI_STAMP(gcp_tape_make_at, GCP_REAL)
#define GCPI_STAMP(name, real) GCPI_STAMP2(name, real)
#define GCPI_STAMP2(name, real) name##_v2_##real
#ifdef __cplusplus
#define GCPI_Z = {}       /* C++ wants an initialiser for every option field */
extern "C" {
#else
#define GCPI_Z
#endif

/* Options are given by name: gcc warns at gcp_conv2d(x, 16, 3). */
#ifdef __has_attribute
#if __has_attribute(designated_init) && !defined(__cplusplus)
#define GCPI_BY_NAME __attribute__((designated_init))
#endif
#endif
#ifndef GCPI_BY_NAME
#define GCPI_BY_NAME
#endif

#define GCP_KB(n) ((size_t)((n) * 1024LL))            /* GCP_MB(1.5) is 1.5 MB; of an integer, a constant */
#define GCP_MB(n) ((size_t)((n) * 1048576LL))
#define GCP_GB(n) ((size_t)((n) * 1073741824LL))
/* Of an op's inputs and outputs, of a shape's sizes, of a message's bytes, of plans bound on one tape, of parameters
   that one call updates. */
enum { GCP_MAX_INPUTS = 64, GCP_MAX_OUTPUTS = 8, GCP_MAX_DIMS = 4, GCP_MAX_ERROR = 512, GCP_MAX_BOUND = 32,
       GCP_MAX_UPDATES = 32 };

/* The value zero of an option whose plain 0 means its default or "not given": .lr = GCP_ZERO, .by = GCP_ZERO, ... */
#define GCP_ZERO (-2147483647 - 1)

/* ---- 3 types --------------------------------------------------------------------------------------------------*/

typedef GCP_REAL gcp_real;
typedef struct gcp_tape gcp_tape;
typedef struct gcp_target gcp_target;

/* The place of a call in the user's code; every message begins with it. */
typedef struct gcp_at { const char *file; int line; } gcp_at;

/* Memory that the caller owns. The library takes what lasts from its front, and what it soon returns from its back. */
typedef struct gcp_arena {
    unsigned char *base;
    ptrdiff_t size, used, scratch;      /* bytes in all; taken at the front; taken at the back */
    ptrdiff_t high;                     /* the most that was ever taken at once */
    const void *tape;                   /* that it serves */
} gcp_arena;

/* A handle. id 0 is nil: what a failed call returns; ops on nil do nothing and return nil. Passed by value. */
typedef struct gcp_tensor { gcp_tape *tape; int id; unsigned generation; } gcp_tensor;

/* Sizes. The library always stores four: (n, h, w, c) as {n, h, w, c}, (n, l, c) as {n, 1, l, c}, (n, c) as
   {n, 1, 1, c}, (c) as {1, 1, 1, c}. */
typedef struct gcp_shape { int rank; int d[GCP_MAX_DIMS]; } gcp_shape;

/* Elements: gcp_real; labels and ids; bytes and bits that ops keep for their backward (a pool's index, a sign). */
typedef enum gcp_dtype { GCP_DTYPE_REAL, GCP_DTYPE_I32, GCP_DTYPE_U8, GCP_DTYPE_BIT } gcp_dtype;

#define GCP_ERRORS(X) \
    X(NOMEM, "out of memory") X(CAPACITY, "a fixed capacity is full") X(SHAPE, "shapes do not fit") \
    X(ARGUMENT, "an argument is out of range") X(DTYPE, "wrong kind of element") \
    X(SEGMENT, "a segment block is broken") \
    X(STALE, "a handle or plan of an earlier recording") X(FOREIGN, "a tensor of another tape") \
    X(NAME, "a name is used twice or unknown") X(PARAMETERS, "the set of parameters changed") \
    X(PLAN, "the options of a plan contradict") X(BUDGET, "the plan does not fit the budget") \
    X(LIST, "a list of instructions is wrong") X(BIND, "memory cannot be bound") X(STATE, "state and plan do not fit") \
    X(CHECK, "a recomputed value differs") X(GRAPH, "a graph's text is wrong") X(DEVICE, "the device failed") \
    X(INPUT, "an input was not written") X(FILE, "a file cannot be opened, read or written") \
    X(CONTENTS, "a file's contents are wrong")
#define GCPI_CODE(name, text) GCP_E_##name,
typedef enum gcp_code { GCP_OK, GCP_ERRORS(GCPI_CODE) GCP_ERROR_COUNT } gcp_code;
#undef GCPI_CODE

/* What an op without options of its own takes. */
typedef struct gcp_op_opts { gcp_at at GCPI_Z; const char *name GCPI_Z; } GCPI_BY_NAME gcp_op_opts;


/* ==== src/ops/pointwise_calls.h ==== */

/* What gcp.h says of the pointwise ops: made of the lines of pointwise_table.h by src/assemble.cmake, never edited. */
#define GCP_POINTWISE_OPS(X) \
    X(SCALE, scale) \
    X(TANH, tanh) \
    X(SIGMOID, sigmoid) \
    X(GELU, gelu)

/* Ops that go element by element. */

/* .by: must be given, finite; GCP_ZERO says zero. */
typedef struct gcp_scale_opts {
    gcp_at at GCPI_Z; double by GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_scale_opts;
/* by x. */
GCP_API gcp_tensor gcp_scale_at(gcp_tensor x, gcp_scale_opts opts);
#define gcp_scale(...) GCPI_F1(gcp_scale_at, gcp_scale_opts, __VA_ARGS__, )
/* tanh x. */
GCP_API gcp_tensor gcp_tanh_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_tanh(...) GCPI_F1(gcp_tanh_at, gcp_op_opts, __VA_ARGS__, )
/* 1 / (1 + exp(-x)). */
GCP_API gcp_tensor gcp_sigmoid_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_sigmoid(...) GCPI_F1(gcp_sigmoid_at, gcp_op_opts, __VA_ARGS__, )
/* x Phi(x), exact. */
GCP_API gcp_tensor gcp_gelu_at(gcp_tensor x, gcp_op_opts opts);
#define gcp_gelu(...) GCPI_F1(gcp_gelu_at, gcp_op_opts, __VA_ARGS__, )

/* The ops. One name serves the enum, the table in src/ops/table.h and GCP_KEEP. */
#define GCP_OPS(X) GCP_OPS_WITH_ROOMS(X) GCP_POINTWISE_OPS(X) X(CUSTOM, custom)
#define GCP_OPS_WITH_ROOMS(X) \
    X(CONV2D, conv2d) X(CONV_TRANSPOSE2D, conv_transpose2d) X(UPSAMPLE, upsample) X(LINEAR, linear) X(MATMUL, matmul) \
    X(ADD, add) X(MUL, mul) X(BIAS, bias) X(RELU, relu) X(LEAKY_RELU, leaky_relu) X(MAX_POOL, max_pool) \
    X(AVG_POOL, avg_pool) X(GLOBAL_AVG_POOL, global_avg_pool) X(BATCH_STATS, batch_stats) X(BATCH_NORM, batch_norm) \
    X(LAYER_NORM, layer_norm) X(DROPOUT, dropout) X(CONCAT, concat) X(SLICE, slice) X(RESHAPE, reshape) \
    X(EMBEDDING, embedding) X(CROSS_ENTROPY, cross_entropy) X(MSE, mse) X(MEAN, mean)
#define GCPI_KIND(NAME, name) GCP_OP_##NAME,
typedef enum gcp_op_kind { GCP_OPS(GCPI_KIND) GCP_OP_COUNT } gcp_op_kind;
/* Rows of the op table that are not recorded: the library adds their calls itself. APPLY stands for batch_norm's, add's
   and the rectifiers' forward, several or one: in: x, what is added, mean, scale, gamma, beta (data NULL: left out);
   out: y, mask (or NULL); attributes NULL: no rectifier, else as relu. SEED: the loss's gradient. NORM: .clip_norm. */
enum { GCP_ROW_APPLY = GCP_OP_COUNT, GCP_ROW_SEED, GCP_ROW_NORM, GCP_ROW_UPDATE, GCP_ROW_COUNT };
#undef GCPI_KIND
/* A kind of op in a mask, for .keep of a segment: GCP_KEEP(CONV2D) | GCP_KEEP(ADD). */
#define GCP_KEEP(NAME) ((uint64_t)1 << GCP_OP_##NAME)

/* One operand of a kernel: element (pixel p, channel c) is data[p * pitch + c]; there are n * h * w pixels. data is
   NULL for what this call neither reads nor makes. GCP_DTYPE_BIT: pixel-major, dense, 8 elements per byte. */
typedef struct gcp_view { void *data; gcp_shape shape; ptrdiff_t pitch; gcp_dtype dtype; int accumulate; } gcp_view;

/* What changes from step to step. It lies in the slab: a step that a device recorded reads the new numbers there. */
typedef struct gcp_step_numbers {
    double   lr, gradient_scale;        /* gradient_scale: 1 / micro-batches, times the clip factor */
    uint64_t step, updates, seed;       /* steps and updates before this one */
    uint64_t first_sample;              /* number of this batch's first sample among all workers' */
    int      micro, micros;             /* which micro-batch of how many */
    double   gradient_norm;             /* with .clip_norm: of all gradients, before they are clipped */
} gcp_step_numbers;

/* A call of an op's forward or backward. din[i].data is NULL where no gradient is wanted; with .accumulate the kernel
   adds to what is there. In backward, in[i] and out[j] hold data only where the op's row says that backward reads them,
   and dout[j].data is NULL where output j of several has no gradient. Write the gradients in the order of the inputs:
   of a tensor that is several inputs, the first is written, and the others are added to it. */
typedef struct gcp_call {
    const void *attributes;             /* a custom op's context; a built-in row's are the implementation's own */
    const gcp_view *in, *out, *din, *dout;
    int row, inputs, outputs;           /* row: the GCP_OP_ or GCP_ROW_ that is called */
    void *workspace;                    /* as many bytes as the row's cost asked for; NULL where it asked for none */
    const gcp_step_numbers *numbers;
    uint64_t ordinal;                   /* the op's number on the tape: keys random draws */
    /* commit: write side effects (running statistics, counts). 1 in the one evaluation of a training step that counts;
       0 when forward runs again, in inference, gcp_measure and gcp_gradcheck */
    int training, commit;
    const gcp_target *target;
    const struct gcp_call *fused;       /* NULL, or the call that runs in the same pass (GCP_FLAG_FUSED says which) */
} gcp_call;

/* The call of a shape rule: it reads the inputs and fills the outputs; on failure it writes a message and returns 0. */
typedef struct gcp_shape_call {
    const void *attributes;
    const gcp_shape *in;  const gcp_dtype *in_dtype;  int inputs;
    gcp_shape *out;       gcp_dtype *out_dtype;       int outputs;
    char *message; size_t message_size;
    gcp_code code;                      /* of that failure; GCP_E_SHAPE unless the rule sets another */
} gcp_shape_call;

typedef struct gcp_cost { double flops, bytes; size_t workspace; } gcp_cost;          /* of one call */
typedef struct gcp_cost_call {
    const void *attributes; const gcp_shape *in, *out; int inputs, outputs, backward; const gcp_target *target;
    unsigned wanted;                    /* backward: bit i = gradient of input i is wanted */
} gcp_cost_call;

/* What holds of an op, or of a target's version of it. */
typedef enum gcp_flag {
    GCP_FLAG_IN_PLACE      = 1,   /* forward may write output 0 over an input of its size that nobody reads again */
    GCP_FLAG_GRAD_IN_PLACE = 2,   /* backward may write the gradient of input 0 over that of output 0 */
    GCP_FLAG_ONCE          = 4,   /* side effects: runs once a step, outputs are kept */
    GCP_FLAG_VIEW          = 8,   /* output 0 can share the bytes of the inputs: reshape, slice, concat */
    GCP_FLAG_GRAD_VIEW     = 16,  /* the gradient of an input can share (some of) the bytes of that of output 0 */
    GCP_FLAG_COSTLY        = 32,  /* GCP_POLICY_CHEAP keeps its output */
    GCP_FLAG_LOSS          = 64,  /* belongs to the loss, not to a unit */
    GCP_FLAG_SIGN_OR_MASK  = 128, /* backward reads the mask, output 1; or output 0, where another op's backward reads
                                      it anyway (and, on a device, it does not end a batch-norm and an addition) */
    GCP_FLAG_NO_GRADIENT   = 256, /* gradients stop here */
    GCP_FLAG_CROSS         = 512, /* backward reads input 0 only for the gradient of input 1, and the reverse */
    /* Of a target's row that takes call->fused. conv2d: forward, then a call of another row: either GCP_OP_BATCH_STATS
       of its output (with the larger workspace of both), or GCP_ROW_APPLY without a norm, whose input 0 or 1 is
       conv2d's output, and whose output 0 lies there; nothing reads that before. Other outputs (mask, mean, scale) may
       lie on what conv2d reads: they are written when it has read. batch_norm: backward, and first that of the
       rectifier behind it: dout[0] is the rectifier's gradient, whose sign is made again from in[0] (in[1] to in[4]:
       mean, scale, gamma, beta). GCP_ROW_UPDATE: call, call->fused, its fused and so on, a parameter each, at most
       GCP_MAX_UPDATES; a row of your own in a copied table does all of them, or is without the flag. Bits must be those
       of one call after the other. */
    GCP_FLAG_FUSED         = 1024,
    /* Without these the careful answer is taken: gcp_write_some refuses, a file's order of channels is not known. */
    GCP_FLAG_SAMPLES_APART = 2048, /* sample i of an output is made of samples i of the inputs (the first size counts
                                      samples), and of inputs that have none, as parameters */
    GCP_FLAG_SAME_CHANNELS = 4096 /* channel c of an output belongs to channel c of each input of as many: an order that
                                     a file has for one of them (GCP_STYLE_TORCH, behind gcp_flatten) holds for all */
} gcp_flag;
/* An op: one row. Built-in ops and gcp_custom use the same struct. */
typedef struct gcp_op {
    const char *name;
    int  (*shape)(gcp_shape_call *call);
    void (*forward)(const gcp_call *call);
    void (*backward)(const gcp_call *call);
    void (*cost)(const gcp_cost_call *call, gcp_cost *cost);
    unsigned reads_in, reads_out;       /* what backward reads: bit i = input i, bit j = output j */
    unsigned flags;
    int outputs;
    const struct gcp_op *on_device;     /* a custom op's forward, backward and cost for targets with a device; NULL: the
                                           op is refused there. Where a device records steps, they are called while it
                                           records, not in each step */
} gcp_op;

/* A target whose memory the CPU cannot touch (a GPU). What is issued to it runs later, in order; copy, fill and timed
   run after all that was issued before them, and have finished when they return. All are needed but play and forget
   (both or neither), copy_rows and behind. */
typedef struct gcp_device {
    void (*copy)(void *context, void *to, const void *from, size_t size);       /* in any direction */
    void (*fill)(void *context, void *to, int byte, size_t size);
    /* play runs a step: issue(arg) makes its calls. play may record them in *recording and replay that in later steps,
       where every call would be the same. forget frees a recording. */
    void (*play)(void *context, void **recording, void (*issue)(void *arg), void *arg);
    void (*forget)(void *context, void *recording);
    /* seconds that the calls of issue(arg) take on the device */
    double (*timed)(void *context, void (*issue)(void *arg), void *arg);
    const char *(*trouble)(void *context);      /* NULL, or what went wrong since the last call */
    /* as copy, `rows` times `width` bytes, to_pitch and from_pitch bytes apart; NULL: each row is a copy */
    void (*copy_rows)(void *context, void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width,
                      size_t rows);
    /* from behind(context, 1) to behind(context, 0): copies into the device's memory may return at once, when they have
       taken what is in `from`, and run behind all that was issued; NULL: they wait as ever */
    void (*behind)(void *context, int on);
} gcp_device;

/* The machine that a plan is made for. Zero-initialised: this CPU, with OpenMP's threads if compiled with OpenMP, else
   one thread. For a thread pool of your own, fill threads, parallel_for and context. parallel_for runs task(arg, index,
   worker) for every index in [0, tasks). worker is in [0, threads), and no two tasks that run at the same time have the
   same. parallel_for stays NULL where the caller gave none. Each thread takes workspace of its own: a plan's bytes grow
   with .threads, and its least budget does as a rule, so a budget that fits here may not on a machine with more.
   { .threads = 4 } holds that down. */
struct gcp_target {
    const char *name;
    const gcp_op *kernels;              /* GCP_ROW_COUNT rows whose forward, backward, cost and GCP_FLAG_FUSED replace
                                           those of gcp_cpu_kernels; src/cuda/ is an example */
    const gcp_device *device;           /* NULL: the CPU reads and writes this target's memory */
    int    threads, isa;                /* isa: 0 the best; GCP_ISA_... forces one, for tests */
    size_t align;                       /* of every tensor; a power of two, default 64 */
    size_t row_align;                   /* rows of a multiple of so many bytes begin at one, also where a tensor lies in
                                           the rows of a concat: else it is a copy. 0: any */
    double flops_per_second, bytes_per_second;      /* cost model; defaults 1e11 and 1e10 */
    double far_bytes_per_second;                    /* of the copies below; default 1e10 */
    void  *context;
    void  (*parallel_for)(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg);
    /* Far memory: a list's O copies values to it, its P copies them back. copy_start begins a copy after all that was
       issued before; copy_wait holds back what is issued next until copy id (below GCP_COPIES) is done. Both NULL: each
       copy is done at once. */
    void  (*copy_start)(void *context, int id, void *to, const void *from, size_t size);
    void  (*copy_wait)(void *context, int id);
    void *(*far_allocate)(void *context, size_t size);      /* called by gcp_bind for plans with far_bytes; NULL: use
                                                               gcp_far_bind */
    void  (*far_release)(void *context, void *memory, size_t size);
    void *(*allocate)(void *context, size_t size);          /* for gcp_bind(plan, NULL, 0); aligned to align */
    void  (*release)(void *context, void *memory, size_t size);
};
enum { GCP_COPIES = 32 };
enum { GCP_ISA_BEST, GCP_ISA_SCALAR, GCP_ISA_V128, GCP_ISA_AVX2, GCP_ISA_AVX512 };

/* A report goes through a writer; gcp_file(stdout) is one. */
typedef struct gcp_writer { void (*write)(void *context, const char *text, size_t size); void *context; } gcp_writer;

typedef enum gcp_init { GCP_INIT_DEFAULT, GCP_INIT_HE, GCP_INIT_GLOROT, GCP_INIT_ZEROS, GCP_INIT_ONES } gcp_init;
/* GCP_PADDING_SAME: as in TensorFlow, out = ceil(in / stride) */
typedef enum gcp_padding { GCP_PADDING_EXPLICIT, GCP_PADDING_SAME } gcp_padding;
typedef enum gcp_upsampling { GCP_UPSAMPLING_NEAREST, GCP_UPSAMPLING_BILINEAR } gcp_upsampling;

/* A unit is an outermost segment, or an op outside of all segments. */
typedef enum gcp_policy {
    GCP_POLICY_SEGMENTS,    /* keep what crosses the user's segments, run their inside again once (Chen 2016) */
    GCP_POLICY_KEEP_ALL,    /* plain backpropagation */
    GCP_POLICY_UNIFORM,     /* .segments runs of equally many units, the last not run again; .balance: of equal bytes
                               where that is better */
    GCP_POLICY_CHECKPOINTS, /* cuts after .checkpoints units, evenly spaced by index; .replay keeps nothing inside a
                               segment (quadratic time) */
    GCP_POLICY_SQRT,        /* about sqrt(n) cuts, placed for the least peak (Chen 2016) */
    GCP_POLICY_RECURSIVE,   /* cuts inside cuts: O(log n) memory */
    GCP_POLICY_CHEAP,       /* keep the outputs of convolutions and matrix products, recompute the cheap rest */
    GCP_POLICY_BUDGET       /* the fastest schedule found whose plan.bytes are at most .budget; if none, an error
                               that names the least budget found that works */
} gcp_policy;

/* How long GCP_POLICY_BUDGET searches, in simulated instructions and not in seconds, so the same options give the same
   plan. GCP_EFFORT_QUICK leaves candidates out: another policy in the same bytes may be faster. */
typedef enum gcp_effort { GCP_EFFORT_DEFAULT, GCP_EFFORT_QUICK, GCP_EFFORT_THOROUGH } gcp_effort;

typedef enum gcp_optimizer {
    GCP_OPTIMIZER_NONE, GCP_OPTIMIZER_SGD, GCP_OPTIMIZER_ADAM, GCP_OPTIMIZER_ADAMW
} gcp_optimizer;

/* Called when a parameter's gradient is finished (with .accumulate: in the last micro-batch), before any clipping. Its
   bytes may be changed in place until on_wait returns. On a device the gradient's last instruction is only issued then:
   gradient is an address there, and work on it must be queued after what was issued. on_wait needs on_gradient. */
typedef void (*gcp_gradient_hook)(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count);

/* Options, each a struct whose first field the macro fills with the call site. Fields stand in order of use. */
typedef struct gcp_tape_opts {
    gcp_at at GCPI_Z;
    int ops GCPI_Z;                     /* capacity, default 256; the others follow from it unless given */
    int tensors GCPI_Z, parameters GCPI_Z, segments GCPI_Z;
    int names GCPI_Z;                   /* bytes for names */
    uint64_t seed GCPI_Z;               /* of initial values and dropout */
} GCPI_BY_NAME gcp_tape_opts;

typedef struct gcp_input_opts {
    gcp_at at GCPI_Z; int want_grad GCPI_Z;        /* see gcp_want_grad */
} GCPI_BY_NAME gcp_input_opts;

/* .keep: kinds of ops whose outputs are stored, not recomputed, whatever the policy, in this segment and those in it: a
   mask of GCP_KEEP. */
typedef struct gcp_segment_opts {
    gcp_at at GCPI_Z; uint64_t keep GCPI_Z;
} GCPI_BY_NAME gcp_segment_opts;

/* Default .init: zeros where the shape has one size, else He. Default .fan_in: the product of all sizes but the first;
   .fan_out: the first. For the right factor of a matmul, (k, m), they are k and m. .std: normal with this standard
   deviation, in place of .init. */
typedef struct gcp_param_opts {
    gcp_at at GCPI_Z; gcp_init init GCPI_Z; int fan_in GCPI_Z, fan_out GCPI_Z; double std GCPI_Z;
} GCPI_BY_NAME gcp_param_opts;

typedef struct gcp_conv2d_opts {        /* also of gcp_conv_transpose2d */
    gcp_at at GCPI_Z;
    int out GCPI_Z;                                              /* output channels */
    int k GCPI_Z, kh GCPI_Z, kw GCPI_Z;                          /* kernel; .k sets both */
    int stride GCPI_Z, stride_h GCPI_Z, stride_w GCPI_Z;         /* default 1; .stride sets both */
    int pad GCPI_Z, pad_top GCPI_Z, pad_bottom GCPI_Z, pad_left GCPI_Z, pad_right GCPI_Z;   /* default 0 */
    gcp_padding padding GCPI_Z;                                  /* GCP_PADDING_SAME: not with .pad */
    int dilation GCPI_Z, dilation_h GCPI_Z, dilation_w GCPI_Z;   /* default 1 */
    int groups GCPI_Z;                                           /* default 1; .groups = channels: depthwise */
    int no_bias GCPI_Z;
    gcp_init init GCPI_Z;                                        /* default He */
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_conv2d_opts;

/* .init: default He */
typedef struct gcp_linear_opts {
    gcp_at at GCPI_Z; int out GCPI_Z; int no_bias GCPI_Z; gcp_init init GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_linear_opts;

typedef struct gcp_pool_opts {
    gcp_at at GCPI_Z;
    int k GCPI_Z, kh GCPI_Z, kw GCPI_Z;
    int stride GCPI_Z, stride_h GCPI_Z, stride_w GCPI_Z;         /* default: the kernel's size */
    int pad GCPI_Z, pad_top GCPI_Z, pad_bottom GCPI_Z, pad_left GCPI_Z, pad_right GCPI_Z;
    gcp_padding padding GCPI_Z;
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_pool_opts;

typedef struct gcp_upsample_opts {      /* .factor: default 2, both ways */
    gcp_at at GCPI_Z; int factor GCPI_Z; gcp_upsampling mode GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_upsample_opts;
/* .slope: default 0.01, at least 0 */
typedef struct gcp_leaky_relu_opts {
    gcp_at at GCPI_Z; double slope GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_leaky_relu_opts;
typedef struct gcp_norm_opts {
    gcp_at at GCPI_Z;
    double epsilon GCPI_Z;              /* default 1e-5 */
    double momentum GCPI_Z;             /* batch-norm alone: running = (1 - m) running + m batch; default 0.1 */
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_norm_opts;
/* .rate: the share of values that become 0 in training, in [0, 1); the others are divided by 1 - rate. 0, the default,
   drops nothing. */
typedef struct gcp_dropout_opts {
    gcp_at at GCPI_Z; double rate GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_dropout_opts;
/* counted in channels */
typedef struct gcp_slice_opts {
    gcp_at at GCPI_Z; int first GCPI_Z, count GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_slice_opts;
/* .entries: rows of the table, one more than the largest id; .out: channels of each */
typedef struct gcp_embedding_opts {
    gcp_at at GCPI_Z; int entries GCPI_Z, out GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_embedding_opts;
/* .ignore: pixels with this label are left out of the loss and of the count for its mean; GCP_ZERO gives label 0. */
typedef struct gcp_cross_entropy_opts {
    gcp_at at GCPI_Z; int ignore GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_cross_entropy_opts;
/* .context: what gcp_call.attributes points to; NULL: a byte that is 0. .outputs: filled with the op's outputs. */
typedef struct gcp_custom_opts {
    gcp_at at GCPI_Z; void *context GCPI_Z; gcp_tensor *outputs GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_custom_opts;

/* How far a search is. Called from the call that plans, some ten to some hundred times in all, last with a share of 1.
   Not 0: the search ends with the best that it has (plan.coarse is 2); with nothing that fits, it is an error,
   GCP_E_BUDGET. In gcp_sweep the shares are of all points; for those after a stop only keep-all is tried, and where it
   does not fit, the plan of a smaller budget. gcp_max_batch plans once for each batch that it tries, and answers a stop
   with the largest that fits so far, gcp_least_budget with the least so far. */
typedef struct gcp_progress {
    double share;                           /* of the effort, from 0 to 1 */
    double seconds, keep_all_seconds;       /* the fastest that fits so far (0: none); keep-all */
} gcp_progress;
typedef int (*gcp_progress_fn)(void *context, const gcp_progress *progress);

typedef struct gcp_plan_opts {
    gcp_at at GCPI_Z;

    /* -- policy: what is kept, and what is run again -- */
    gcp_policy policy GCPI_Z;
    int segments GCPI_Z, balance GCPI_Z;    /* GCP_POLICY_UNIFORM */
    int checkpoints GCPI_Z, replay GCPI_Z;  /* GCP_POLICY_CHECKPOINTS; 0 checkpoints: one segment */
    const char *list GCPI_Z;                /* instructions as text (gcp_list_print) instead of a policy */

    /* -- memory: how much of it, and how long to search (GCP_POLICY_BUDGET, but .budget) -- */
    size_t budget GCPI_Z;                   /* the most that plan.bytes may be; 0: no limit (an error with
                                               GCP_POLICY_BUDGET: SIZE_MAX is no limit there) */
    gcp_effort effort GCPI_Z;
    gcp_progress_fn progress GCPI_Z; void *progress_context GCPI_Z;
    size_t far GCPI_Z; int far_only GCPI_Z; /* bytes of far memory that values may wait in; far_only: nothing runs
                                               again */
    const char *costs GCPI_Z;               /* of any policy: text of gcp_costs_print, from any machine: seconds to
                                               plan with. A line is for ops of its shapes: another batch needs a
                                               profile of its own (gcp_why_print says how much was found). The first of
                                               two counts */

    /* -- training: what trains, and how it is updated -- */
    int inference GCPI_Z;                   /* forward only: running statistics, no dropout, no gradients */
    /* which parameters train: those that fit a pattern of .train (all, where it is left out), none of .freeze, and are
       not frozen by gcp_freeze. Patterns are whole paths in which * stands for any text and [a-b] for an index from a
       to b, separated by spaces: "stem* stage[0-2]*" */
    const char *train GCPI_Z, *freeze GCPI_Z;
    int frozen_norms GCPI_Z;                /* 1: a batch-norm whose gamma and beta are frozen takes its running
                                               statistics, and leaves them as they are */
    gcp_optimizer optimizer GCPI_Z;
    double momentum GCPI_Z; int nesterov GCPI_Z; /* SGD */
    double beta1 GCPI_Z, beta2 GCPI_Z, epsilon GCPI_Z; /* Adam: defaults 0.9, 0.999, 1e-8 */
    double weight_decay GCPI_Z;             /* of all parameters, gamma too. SGD, Adam: added to the gradient; AdamW:
                                               decoupled */
    /* lines "PATTERN NUMBER", of which the first that fits counts: what .lr is multiplied by ("head* 10"); what stands
       in the place of .weight_decay */
    const char *rates GCPI_Z, *decays GCPI_Z;
    double clip_value GCPI_Z;               /* clips each gradient value to [-clip_value, clip_value]; 0: none */
    double clip_norm GCPI_Z;                /* scales all gradients together down to this Euclidean norm; 0: none */
    int fuse_update GCPI_Z;                 /* 1: update each weight as soon as its gradient is finished, which frees
                                               the gradient: same bits. GCP_POLICY_BUDGET does so by itself where
                                               nothing can tell: no clip_norm, no accumulation, no hooks; GCP_NEVER
                                               forbids it, GCP_ZERO too */
    int accumulate GCPI_Z;                  /* micro-batches per update, a gcp_step each; gradients are averaged. Each
                                               step takes .lr; the last one's counts */

    gcp_gradient_hook on_gradient GCPI_Z, on_wait GCPI_Z; void *hook_context GCPI_Z;

    /* -- checks: to find mistakes; both are slower -- */
    int no_groups GCPI_Z;                   /* fuse no ops into groups: same bits, more passes over memory */
    int check GCPI_Z;                       /* GCP_CHECK: a recomputed tensor with other bits, the first NaN, and an op
                                               that writes beside its workspace (2 * align bytes more lie around it)
                                               are errors that name the op; dead bytes are filled with NaNs */

    /* -- where it runs -- */
    const gcp_target *target GCPI_Z;        /* NULL: this CPU; copied */
    gcp_arena *arena GCPI_Z;                /* the plan's own; NULL: the tape's */
} GCPI_BY_NAME gcp_plan_opts;
enum { GCP_CHECK = 1, GCP_NEVER = -1 };

/* Where the bytes go at the peak. All fields, gaps included, add up to plan.bytes. */
typedef struct gcp_split {
    size_t weights, optimizer, statistics;                       /* state */
    size_t inputs, kept, recomputed, weight_gradients, activation_gradients, workspace, gaps;   /* slab at the peak */
} gcp_split;

/* A plan, passed by pointer. Its figures are known before gcp_bind. */
typedef struct gcp_plan {
    gcp_tape *tape; unsigned generation;
    size_t bytes;                   /* all that a step needs: state_bytes + slab_bytes. If another plan's optimiser
                                       makes the state grow, the next call with this plan updates them */
    size_t state_bytes, slab_bytes;
    size_t room;                    /* bytes to allocate: enough for gcp_bind at any address (plan.bytes, and what
                                       alignment may cost) */
    size_t keep_all_bytes;          /* plan.bytes of GCP_POLICY_KEEP_ALL, to compare with (its updates come last unless
                                       .fuse_update is 1); 0 for lists, and for GCP_POLICY_BUDGET of large networks */
    size_t live_peak;               /* the most live slab bytes at once; slab_bytes - live_peak is lost to layout */
    size_t after_forward;           /* live activations between forward and backward, inputs and state left out */
    size_t checkpoint_bytes;        /* GCP_POLICY_CHECKPOINTS: outputs of the chosen units */
    size_t far_bytes, far_traffic;  /* far memory that the list's O instructions need, not part of bytes; bytes copied
                                       in a step (those of gcp_slots_bind, too) */
    size_t moved_bytes;             /* moved inside the slab in a step, because no layout without moves fits */
    gcp_split split;
    double seconds, keep_all_seconds; /* by the cost model */
    double stall_seconds;           /* the part of seconds that waits for copies to and from far memory */
    size_t least_bytes;             /* where GCP_POLICY_BUDGET made no plan: the least budget found that works */
    int    costed;                  /* ops whose seconds .costs gave; the others' come from FLOPs and bytes */
    double bound_seconds;           /* GCP_POLICY_BUDGET: no list within the budget takes less; else 0 */
    int    coarse;                  /* GCP_POLICY_BUDGET: 1: the plan's arena had no room for all of the search; 2:
                                       .progress stopped it */
    const char *method;             /* GCP_POLICY_BUDGET: what found the schedule: a policy, "cuts", "chain", "search",
                                       "exact"; else NULL */
    double forward_flops, rerun_flops;  /* floating-point operations of one forward, and of what runs again */
    int    units, reruns;           /* units of the network; how often units are run again, in all */
    int    instructions, segments;  /* segments of the plan: 1 = keep-all */
    int    peak_instruction;            /* from 0; reports count from 1 */
    struct gcpi_plan *core;
} gcp_plan;

typedef struct gcp_step_opts {
    gcp_at at GCPI_Z;
    double lr GCPI_Z;                   /* must be given with an optimiser, and must not be given without one; a rate
                                           that reaches zero: .lr = rate > 0 ? rate : GCP_ZERO */
    /* data parallel: number of this worker's first sample in the whole batch, for dropout; this worker's share of what
       the loss is the mean of (samples, or labels that count), by which its gradients are multiplied, so that all
       workers' add up to those of the whole (default 1; GCP_ZERO: a worker without any). The loss is not multiplied */
    uint64_t first_sample GCPI_Z; double share GCPI_Z;
    /* called once the step was issued, while a device still computes it (on the CPU: when it is done); not where it has
       failed by then. It may gcp_write and gcp_write_some the inputs of this plan, for the next step: what they are
       given has been taken when they return. Calls that run, bind, read or free a plan of this tape, or change its
       state, are refused. An error there is on the tape, and this step counts nevertheless; a failure of the device is
       this step's. After it, gcp_read of an input or of a view of one, and gcp_ignored, see the next batch. It is
       called for each micro-batch, and in the last step, too. gcp_measure does not call it */
    void (*feed)(void *context) GCPI_Z; void *feed_context GCPI_Z;
} GCPI_BY_NAME gcp_step_opts;

/* step: the stencil's, relative to the element (to its tensor's root mean square where the element is smaller); default
   1e-3, in float 3e-2. Where the error is above the tolerance, a tenth and a hundredth of the step are tried too, and
   the least error counts. tolerance: default 1e-7, in float 5e-3; if gradients are far below 1, scale the loss up. */
typedef struct gcp_gradcheck_opts {
    gcp_at at GCPI_Z; double step GCPI_Z, tolerance GCPI_Z;
} GCPI_BY_NAME gcp_gradcheck_opts;
/* lr: default 0; repeats: 5 */
typedef struct gcp_profile_opts {
    gcp_at at GCPI_Z; double lr GCPI_Z; int repeats GCPI_Z;
} GCPI_BY_NAME gcp_profile_opts;
typedef struct gcp_gradcheck_result {
    int passed, elements;               /* elements checked */
    double worst;                       /* largest |analytic - numeric| / max(1, |analytic|, |numeric|) */
    gcp_tensor tensor; int element;     /* where */
    double analytic, numeric;
} gcp_gradcheck_result;

/* ---- 4 functions ----------------------------------------------------------------------------------------------
   Most have a macro of the same name without _at (section 5), which captures the call site and takes the options as
   designated initialisers: gcp_conv2d(x, .out = 16, .k = 3). Shapes are checked where they are recorded. A struct of
   options that you fill yourself begins as { .at = GCP_AT }. */

/* An arena in memory of yours. memory and the struct itself must outlive everything made from it: a tape keeps the
   struct's address. */
GCP_API gcp_arena gcp_arena_from(void *memory, size_t size);
/* size * count zeroed bytes, at a multiple of align (a power of two); NULL if they do not fit. */
GCP_API void     *gcp_arena_push(gcp_arena *arena, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count);

/* The bytes of arena that gcp_tape_make takes with these options. */
GCP_API size_t      gcp_tape_arena_at(gcp_tape_opts opts);
/* A tape. Its capacity is fixed; a full tape is an error that says how many ops were needed. An arena that is too small
   is an error too (NULL if not even the error fits). An arena serves one tape: for a second one the answer is NULL. */
GCP_API gcp_tape   *gcp_tape_make_at(gcp_arena *arena, gcp_tape_opts opts);
/* Forgets ops, tensors, plans and all else that was taken from the arena after the tape. Parameters that were bound to
   memory stay: record all of them again, with the same names and shapes, and they have their values. (Another network
   needs another tape.) Unbind plans before: afterwards the memory that a target gave them cannot be given back. State
   that must outlive a plan whose memory the target gives needs gcp_state_bind_on. */
GCP_API void        gcp_tape_reset(gcp_tape *tape);
/* NULL, or the first error: file and line of your call, what was found, what was allowed. Until gcp_error_clear nothing
   is recorded, planned, run, read or saved. */
GCP_API const char *gcp_error(gcp_tape *tape);
/* The kind of the first error, GCP_OK: there is none. */
GCP_API gcp_code    gcp_error_code(const gcp_tape *tape);
/* Forgets the error, and what the refused call recorded. */
GCP_API void        gcp_error_clear(gcp_tape *tape);
/* A code in words. */
GCP_API const char *gcp_code_text(gcp_code code);

/* An input of gcp_reals. Steps do not change inputs. */
GCP_API gcp_tensor gcp_input_at(gcp_tape *tape, const char *name, gcp_shape shape, gcp_input_opts opts);
/* An input of int32: a class a pixel, for gcp_cross_entropy. */
GCP_API gcp_tensor gcp_labels_at(gcp_tape *tape, const char *name, gcp_shape shape, gcp_input_opts opts);
/* An input of int32: entries of a table, for gcp_embedding. */
GCP_API gcp_tensor gcp_ids_at(gcp_tape *tape, const char *name, gcp_shape shape, gcp_input_opts opts);
/* Also computes the gradient of this real input (gcp_grad). Returns the input. */
GCP_API gcp_tensor gcp_want_grad_at(gcp_tensor input, gcp_at at);

/* A parameter to share among ops; layers make their own. Its values are in the tape's state, and found again by path
   after a reset. */
GCP_API gcp_tensor gcp_param_at(gcp_tape *tape, const char *name, gcp_shape shape, gcp_param_opts opts);
/* Until the tape is reset, plans made from now on compute no gradient for it; plans made before still train it. */
GCP_API gcp_tensor gcp_freeze_at(gcp_tensor parameter, gcp_at at);
/* In order of recording; nil past the last. */
GCP_API gcp_tensor gcp_nth_parameter(gcp_tape *tape, int index);
/* The running statistics of batch-norms, which are no parameters: a mean and a variance in turn; nil past the last.
   gcp_read and gcp_write take them. */
GCP_API gcp_tensor gcp_nth_statistic(gcp_tape *tape, int index);
/* A parameter, input or statistic by its path ("batch_norm[0]/running_mean"); nil if there is none. */
GCP_API gcp_tensor gcp_find(gcp_tape *tape, const char *path);

/* Never recomputed, never overwritten, readable after the step with gcp_read. */
GCP_API gcp_tensor gcp_keep_at(gcp_tensor x, gcp_at at);

/* All four sizes in d, whatever the rank; a function that takes a shape takes it as it is. */
GCP_API gcp_shape   gcp_shape_of(gcp_tensor x);
/* How many values it has. */
GCP_API size_t      gcp_elements(gcp_tensor x);
/* Writes its path, cut to size, and returns buffer. */
GCP_API const char *gcp_name(gcp_tensor x, char *buffer, size_t size);
/* 1: what a failed call has returned. */
GCP_API int         gcp_is_nil(gcp_tensor x);

/* Layers: they make their weights. Shapes: image n h w c; conv weights [out][kh][kw][c / groups]; transposed conv
   [c][kh][kw][out / groups]; linear [out][c]. A linear layer acts on the last axis. A convolution or pool of h rows
   makes floor((h + pad_top + pad_bottom - dilation (k - 1) - 1) / stride) + 1, with GCP_PADDING_SAME ceil(h / stride);
   columns alike. */
/* n h w c -> n h' w' out. */
GCP_API gcp_tensor gcp_conv2d_at(gcp_tensor x, gcp_conv2d_opts opts);
/* n h w c -> n h' w' out, h' = (h - 1) stride - pad_top - pad_bottom + dilation (k - 1) + 1, with GCP_PADDING_SAME
   h stride; w' alike. */
GCP_API gcp_tensor gcp_conv_transpose2d_at(gcp_tensor x, gcp_conv2d_opts opts);
/* ... c -> ... out. */
GCP_API gcp_tensor gcp_linear_at(gcp_tensor x, gcp_linear_opts opts);
/* ids (n) or (n, l) in [0, entries) -> (n, out) or (n, l, out). */
GCP_API gcp_tensor gcp_embedding_at(gcp_tensor ids, gcp_embedding_opts opts);
/* Over all pixels of the batch, a channel each. Two ops: statistics (once) and apply. A plan that trains it refuses one
   value a channel, which has no variance. */
GCP_API gcp_tensor gcp_batch_norm_at(gcp_tensor x, gcp_norm_opts opts);
/* Over the channels of each pixel. */
GCP_API gcp_tensor gcp_layer_norm_at(gcp_tensor x, gcp_norm_opts opts);

/* The same ops with given weights, so that ops can share them: .out, .k and .entries follow from the weights, .init is
   an error. bias may be nil (pass GCP_NIL). Each batch-norm still has its own running statistics, as its inputs differ
   from others'. */
GCP_API gcp_tensor gcp_conv2d_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_conv2d_opts opts);
GCP_API gcp_tensor gcp_conv_transpose2d_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_conv2d_opts opts);
GCP_API gcp_tensor gcp_linear_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_linear_opts opts);
GCP_API gcp_tensor gcp_embedding_op_at(gcp_tensor ids, gcp_tensor table, gcp_embedding_opts opts);
GCP_API gcp_tensor gcp_batch_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts opts);
GCP_API gcp_tensor gcp_layer_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts opts);

/* Ops. Pointwise ones (scale, tanh, ...) stand above, before the kinds of ops.

   (n, k) times (k, m): sizes before the last count as rows. */
GCP_API gcp_tensor gcp_matmul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
/* a + b, of equal shapes. */
GCP_API gcp_tensor gcp_add_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
/* a b, element by element, of equal shapes. */
GCP_API gcp_tensor gcp_mul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
/* Adds a value a channel: bias (c). */
GCP_API gcp_tensor gcp_bias_at(gcp_tensor x, gcp_tensor bias, gcp_op_opts opts);
/* max(x, 0). */
GCP_API gcp_tensor gcp_relu_at(gcp_tensor x, gcp_op_opts opts);
/* x where it is above 0, elsewhere slope x. */
GCP_API gcp_tensor gcp_leaky_relu_at(gcp_tensor x, gcp_leaky_relu_opts opts);
/* The largest of each window; padding never is. At most 256 cells. */
GCP_API gcp_tensor gcp_max_pool_at(gcp_tensor x, gcp_pool_opts opts);
/* The mean of each window; padding does not count. */
GCP_API gcp_tensor gcp_avg_pool_at(gcp_tensor x, gcp_pool_opts opts);
/* n h w c -> n c: the mean of each image. */
GCP_API gcp_tensor gcp_global_avg_pool_at(gcp_tensor x, gcp_op_opts opts);
/* n h w c -> n, factor h, factor w, c. */
GCP_API gcp_tensor gcp_upsample_at(gcp_tensor x, gcp_upsample_opts opts);
/* In training some values become 0; the same ones when it runs again. */
GCP_API gcp_tensor gcp_dropout_at(gcp_tensor x, gcp_dropout_opts opts);
/* Along channels: gcp_concat(GCP_TENSORS(a, b, c), .name = "skip"); of an array gcp_concat(list, count) in C, in C++
   gcp_concat_at(list, count, { }). A count below 1 gives nil without a tape, so without an error. */
GCP_API gcp_tensor gcp_concat_at(const gcp_tensor *inputs, int count, gcp_op_opts opts);
/* Channels [first, first + count). */
GCP_API gcp_tensor gcp_slice_at(gcp_tensor x, gcp_slice_opts opts);
/* n h w c -> n, hwc. */
GCP_API gcp_tensor gcp_flatten_at(gcp_tensor x, gcp_op_opts opts);
/* The same values in the same order, in another shape of as many. */
GCP_API gcp_tensor gcp_reshape_at(gcp_tensor x, gcp_shape shape, gcp_op_opts opts);

/* Losses: scalars.

   The mean over pixels of softmax cross-entropy; labels int32 in [0, c) or .ignore; 0 where all are
   ignored. */
GCP_API gcp_tensor gcp_cross_entropy_at(gcp_tensor logits, gcp_tensor labels, gcp_cross_entropy_opts opts);
/* The mean over all values of (a - b) squared. */
GCP_API gcp_tensor gcp_mse_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
/* The mean over all values. */
GCP_API gcp_tensor gcp_mean_at(gcp_tensor x, gcp_op_opts opts);

/* A user's own op, planned like a built-in one. op and context must live until the tape is reset. Returns the first
   output; all of them go to opts.outputs if given. A time step of an adjoint computation can be such an op. */
GCP_API gcp_tensor gcp_custom_at(const gcp_tensor *inputs, int count, const gcp_op *op, gcp_custom_opts opts);

/* Opens a segment; GCP_SEGMENT does. Returns its number. */
GCP_API int  gcp_segment_begin(gcp_tape *tape, const char *label, gcp_segment_opts opts);
/* Closes it, and those inside. *state 1: its block was left by break, return or goto, which is an error. */
GCP_API void gcp_segment_end(gcp_tape *tape, int segment, int *state);

/* A plan. loss: a scalar (any tensor for .inference). It takes memory from opts.arena or the tape's arena, and scratch
   memory only while it is made. An option that the policy or optimiser does not use is an error. */
GCP_API gcp_plan gcp_plan_make_at(gcp_tensor loss, gcp_plan_opts opts);
/* 1, or 0 where the plan could not be made. Then the tape holds the message (none where the loss is nil and has no
   tape). */
GCP_API int      gcp_plan_ok(const gcp_plan *plan);
/* Bytes of arena that are enough for gcp_plan_make: as a rule two to ten times what is used at most; more for small
   networks and GCP_POLICY_RECURSIVE. 0 where the loss is nil. */
GCP_API size_t   gcp_plan_arena_at(gcp_tensor loss, gcp_plan_opts opts);
/* The least .budget found that works with these options (plan.bytes counts the state too). Leave out .policy and
   .budget. 0 on error. */
GCP_API size_t   gcp_least_budget_at(gcp_tensor loss, gcp_plan_opts opts);

/* Unbinds a plan and frees it, so that another can be made in its place (a new budget every epoch). The tape's arena
   has its bytes again as soon as nothing that was taken after them is left there; another arena (.arena) has them again
   only if they are the last that were taken. So free a plan before you make its successor, or make them in two arenas
   in turn. The state stays, unless it lies in memory that the target gave this plan (see gcp_unbind). */
GCP_API void gcp_plan_free(gcp_plan *plan);

/* A plan for a graph given as text. It has figures, lists and reports, but cannot be bound. tape gives the arena and
   holds the errors; text is copied. A line per op: KIND ID COST BYTES WORKSPACE INPUTS... KIND is f (forward, may run
   again), o (forward, runs once) or b (backward, after all f and o); COST is in seconds, BYTES are those of its one
   output, INPUTS are the IDs whose outputs it reads; # begins a comment. gcp_graph_print writes gcp-graph 3, which can
   say more: its format stands where the text "gcp-graph 1" does below (src/problem/graph.h). What it writes has the
   updates (.fuse_update) and the copied views of its plan, and all plans for that text have them too. */
GCP_API gcp_plan gcp_graph_plan_at(gcp_tape *tape, const char *text, gcp_plan_opts opts);
/* As gcp_plan_arena, for a graph. */
GCP_API size_t   gcp_graph_arena_at(const gcp_tape *tape, const char *text, gcp_plan_opts opts);

/* The trade-off curve: give the budgets of `count` points, in ascending order; gcp_sweep fills the other fields. A
   point is never slower than one with a smaller budget. Returns how many points fit (the last ones); 0 for no points,
   and, with the tape's error, if planning failed for another reason. Leave out .policy, .budget and .list.
   gcp_plan_make with .budget = point.planned_with makes a point's plan. */
typedef struct gcp_point {
    size_t budget;                      /* given */
    size_t bytes;                       /* of this point's plan; 0: nothing fits */
    size_t planned_with;                /* .budget for the same plan; where nothing fits, the least that works (0 after
                                           .progress stopped the sweep: nobody looked) */
    double seconds, keep_all_seconds, bound_seconds;
    int    coarse;                      /* as plan.coarse: 2 from the point on at which .progress stopped the sweep */
} gcp_point;
GCP_API int  gcp_sweep_at(gcp_tensor loss, gcp_point *points, int count, gcp_plan_opts opts);
/* The same of a graph. */
GCP_API int  gcp_graph_sweep_at(gcp_tape *tape, const char *text, gcp_point *points, int count, gcp_plan_opts opts);
/* The curve as CSV, a line a point. */
GCP_API void gcp_sweep_csv(const gcp_point *points, int count, gcp_writer out);
/* The curve as SVG, the lower bound beside it. */
GCP_API void gcp_sweep_svg(const gcp_point *points, int count, gcp_writer out);

/* The largest batch for .plan.budget bytes, found by planning alone and by halving: with .slowdown a larger one may
   pass again, as the time of an image does not rise evenly with the batch. record makes a network of the given batch on
   the tape and returns its loss. The tape is reset before each try and after the last, and keeps no parameter that is
   new in a try. 0 on error, which the tape holds; a batch of one that does not fit is an error too. What gcp_plan_arena
   says of the network with a batch of one (and GCP_POLICY_BUDGET) is enough for all, if all have the same ops. */
typedef gcp_tensor (*gcp_record_fn)(void *context, gcp_tape *tape, int batch);
typedef struct gcp_batch_opts {
    gcp_at at GCPI_Z;
    int most GCPI_Z;                    /* the largest batch to try, default 65536 */
    double slowdown GCPI_Z;             /* the most time of a step, as a multiple of keep-all's; 0: any */
    gcp_plan_opts plan GCPI_Z;          /* .budget and other options, not .costs; the policy is GCP_POLICY_BUDGET */
} GCPI_BY_NAME gcp_batch_opts;
GCP_API int gcp_max_batch_at(gcp_tape *tape, gcp_record_fn record, void *context, gcp_batch_opts opts);

/* Gives a plan its memory: plan->room bytes, or plan->bytes at an address that is aligned to the target's align; not in
   the tape's own arena. NULL, 0: the target's allocate gives it. If the tape's state has no memory yet, it goes to the
   front of this memory, and stays there as long as the tape is used. It cannot move later: give room at first for the
   slots of the largest optimiser (gcp_state_bytes).
   Plans of one tape bound to the same memory share it: the state at its front, and after it one slab at a time. (Two
   tapes need two memories; this is not checked.) When a plan writes or runs there, the inputs and results of the others
   are lost: write their inputs again. Where an optimiser's slots make the state grow, the slabs of the other plans move
   by themselves, and their inputs are lost too. */
GCP_API gcp_code gcp_bind_at(gcp_plan *plan, void *memory, size_t size, gcp_at at);
/* Call it before the slab's memory is freed or used otherwise. The state does not move: memory that holds it must live
   as long as the tape is used. Only where the target allocated it is it given back, and the state is lost. */
GCP_API gcp_code gcp_unbind_at(gcp_plan *plan, gcp_at at);
/* What several plans of one tape need in one memory, their state and the largest slab, before any is bound. */
GCP_API size_t   gcp_plans_bytes_at(const gcp_plan *const *plans, int count);
/* What to allocate for them (up to GCP_MAX_BOUND plans; 0 where one of them was not made). */
GCP_API size_t   gcp_plans_room_at(const gcp_plan *const *plans, int count);
/* Bytes of the state, with the slots of this optimiser. They are all that training goes on from: parameters,
   statistics, slots, counts of steps. Copied from where gcp_state_bind put them over the state of another tape with the
   same recording and the same plans bound, by the same build, they go on there to the bit. */
GCP_API size_t   gcp_state_bytes(const gcp_tape *tape, gcp_optimizer optimizer);
/* Called first, it gives the state separate memory: gcp_state_bytes at an address aligned to 64, at any other 63 more.
   Then gcp_bind takes plan->slab_bytes at an aligned address; at any address, align - 1 bytes more. */
GCP_API gcp_code gcp_state_bind_at(gcp_tape *tape, void *memory, size_t size, gcp_at at);
/* The same, in the memory of this target. */
GCP_API gcp_code gcp_state_bind_on_at(gcp_tape *tape, const gcp_target *target, void *memory, size_t size, gcp_at at);
/* Bytes for gcp_slots_bind; 0 for an optimiser without slots. */
GCP_API size_t   gcp_slots_bytes(const gcp_tape *tape, gcp_optimizer optimizer);
/* The optimiser's slots wait in this memory between updates and are no part of state_bytes: each update copies them in
   and out in pieces, through a workspace of up to 1 MiB (2^18 elements). Same bits. memory: gcp_slots_bytes at an
   address aligned to 64, at any other (malloc's, too) 63 more, that the CPU can write and the target's copies reach
   (pinned, for a GPU); a mapped file will do. gcp_bind refuses if they are too few. Called before plans with an
   optimiser are made; NULL, 0: slots are in the state again. The memory must live as long as the tape is used, and
   belongs to what training goes on from: the first gcp_bind fills new slots with zeros, so copy saved ones (as the
   state) after it. */
GCP_API gcp_code gcp_slots_bind_at(gcp_tape *tape, void *memory, size_t size, gcp_at at);
/* Forgets the optimiser's slots, their counts of updates and the step counter, so that another optimiser may be
   bound. */
GCP_API void     gcp_slots_reset(gcp_tape *tape);
/* The memory where a plan's values wait: plan->far_bytes. Call it before the first gcp_write. */
GCP_API gcp_code gcp_far_bind_at(gcp_plan *plan, void *memory, size_t size, gcp_at at);

/* Writes a whole input, parameter or statistic from data: dense, in the element type of the tensor (gcp_real, int32).
   Write every input that the plan reads before its first step; labels must be in the range of the ops that read
   them. */
GCP_API gcp_code gcp_write_at(gcp_plan *plan, gcp_tensor x, const void *data, gcp_at at);
/* Writes an input's first samples, for a last batch that is not full: the others repeat them, and labels of a
   cross-entropy become its .ignore (-1 where it has none), so that they count neither in its mean nor in gradients (a
   batch-norm of training sees all). Give the same part of all inputs. A plan refuses where another op makes one value
   of several samples, and where a custom op does not say that it keeps them apart (GCP_FLAG_SAMPLES_APART); so it does
   an input that an op reads whole, as a bias. */
GCP_API gcp_code gcp_write_some_at(gcp_plan *plan, gcp_tensor x, const void *data, int samples, gcp_at at);
/* Reads a whole input, parameter or statistic, and after a step the loss and kept tensors. data: as gcp_write takes
   it. */
GCP_API gcp_code gcp_read_at(gcp_plan *plan, gcp_tensor x, void *data, gcp_at at);
/* Reads the gradient of a parameter (of a plan without optimiser) or of an input with gcp_want_grad. */
GCP_API gcp_code gcp_grad_at(gcp_plan *plan, gcp_tensor x, gcp_real *data, gcp_at at);
/* How many labels in the batch are the .ignore of the cross-entropy that made this loss; -1: an error. */
GCP_API ptrdiff_t gcp_ignored_at(gcp_plan *plan, gcp_tensor loss, gcp_at at);
/* Forward, backward, update; returns the loss, NaN after an error. A loss that is itself NaN is no error: the step was
   taken, and gcp_error is NULL. */
GCP_API double   gcp_step_at(gcp_plan *plan, gcp_step_opts opts);
/* Runs an inference plan and returns its value if that is a scalar, else 0; NaN after an error. */
GCP_API double   gcp_forward_at(gcp_plan *plan, gcp_step_opts opts);
/* Steps that have counted on this tape, of all its plans. */
GCP_API uint64_t gcp_steps_done(const gcp_tape *tape);
/* The Euclidean norm of all gradients in the last update, before they were clipped; of plans with .clip_norm (1e30
   clips nothing). NaN on error. */
GCP_API double   gcp_gradient_norm_at(gcp_plan *plan, gcp_at at);

/* Learning rates that change, for .lr: of the step (from 0), or of any count. Where the rate is 0 they return GCP_ZERO,
   which is what .lr takes; what makes no rate gives NaN.

   The rate rises linearly to lr for `warmup` steps; then it falls as half a cosine, to 0 at `steps` (Loshchilov and
   Hutter 2017). */
GCP_API double gcp_rate_cosine(double lr, uint64_t step, uint64_t warmup, uint64_t steps);
/* The rate rises linearly to lr for `warmup` steps; then it is multiplied by `factor` every `every` steps. */
GCP_API double gcp_rate_steps(double lr, uint64_t step, uint64_t warmup, uint64_t every, double factor);

/* Averages of weights and running statistics (Polyak and Juditsky 1992; exponential).

   Bytes of their memory, which is
   yours and aligned to a gcp_real. To go on later, they belong into a run file (gcp_io.h: .extra). They lie in the
   order of recording. */
GCP_API size_t   gcp_average_bytes(const gcp_tape *tape);
/* average = decay average + (1 - decay) value; a decay of 0 sets it, so that is the first call. The state must be
   bound. */
GCP_API gcp_code gcp_average_at(gcp_tape *tape, void *memory, double decay, gcp_at at);
/* Exchanges values and averages: evaluate or save between two calls of it. */
GCP_API gcp_code gcp_average_swap_at(gcp_tape *tape, void *memory, gcp_at at);

/* Measures the memory that a step really takes. Fills memory (more than plan->room bytes) with a pattern, runs a step
   there on copies of state and inputs (written or not), then the same with the pattern's complement; returns the bytes
   up to the last that changed: plan->bytes. (A few less, under one row of a concat, where the slab ends with a concat
   that is recomputed in part.) NULL, 0: the target's allocate gives the memory. .lr may be left out. A custom op sees
   these steps with .commit 0, and its side effects in memory of its own happen in both all the same. */
GCP_API size_t gcp_measure_at(gcp_plan *plan, void *memory, size_t size, gcp_step_opts opts);

/* Fills rows, GCP_ROW_COUNT of them, with the CPU's: to wrap their functions for a gcp_target of your own (to trace
   calls, to queue them, to replace one op's kernel). */
GCP_API void gcp_cpu_kernels(gcp_op *rows);

/* Compares the gradients of gcp_grad with numeric ones (4-point stencil), for every parameter and every input with
   gcp_want_grad of a bound plan without .optimizer and .accumulate. Meant for GCP_REAL double. In float the loss itself
   is rounded, so the check finds mistakes but not small errors. */
GCP_API gcp_gradcheck_result gcp_gradcheck_at(gcp_plan *plan, gcp_gradcheck_opts opts);

/* Runs .repeats steps of a bound plan as gcp_step would, times each instruction alone (by the device's events where it
   has them) and keeps the median of each one's seconds. Returns their sum. gcp_plan_print shows them beside the
   instructions. */
GCP_API double gcp_profile_at(gcp_plan *plan, gcp_profile_opts opts);
/* Seconds of one, counted from 0; 0: not measured. */
GCP_API double gcp_instruction_seconds(const gcp_plan *plan, int instruction);

/* The profile as a table for .costs. An op's line has its shapes, attributes and median seconds; ops that agree in
   these share it, wherever they are on the tape. A plan that copies adds a line for the link to far memory. */
GCP_API void gcp_costs_print(const gcp_plan *plan, gcp_writer out);

/* A writer for a FILE: gcp_file(stdout). */
GCP_API gcp_writer gcp_file(void *stdio_file);
/* The instructions as text that .list reads back, a letter and a name each: F forward, R forward again, B backward, U
   update, H and W a gradient's hooks; O copy to far memory, P copy back, A wait until O's copy has arrived; M move to
   another place in the slab ("M gradient of x" for x's gradient). First, "U as soon as gradients are finished" where
   updates are fused, and then a line for each concat or slice that copies what it need not: "C NAME 0 2" copies inputs
   0 and 2, "C gradient of NAME 0" in backward; NAME is that of the op's F line. With .budget = plan.bytes beside .list
   it takes no more bytes than the plan (rarely a few less: layouts are searched). */
GCP_API void gcp_list_print(const gcp_plan *plan, gcp_writer out);
/* The plan's problem as text: gcp-graph 3, which gcp_graph_plan reads. */
GCP_API void gcp_graph_print(const gcp_plan *plan, gcp_writer out);
/* A line an instruction, with the live bytes. */
GCP_API void gcp_plan_print(const gcp_plan *plan, gcp_writer out);
/* A line an op: shape, parameters, activation bytes, kept or recomputed. */
GCP_API void gcp_layers_print(const gcp_plan *plan, gcp_writer out);
/* What the peak is made of and, where there is something, what would lower it; of a plan that was not made, the tape's
   error. */
GCP_API void gcp_why_print(const gcp_plan *plan, gcp_writer out);

/* Pictures, each a whole file that needs no other. Names may be any bytes, numbers have a point in every locale.

   Memory over time and address, as SVG. */
GCP_API void gcp_memory_svg(const gcp_plan *plan, gcp_writer out);
/* The same as a page one can step through, instruction by instruction: what is live, what was just born, what is free
   and why; beside: another plan under it on the same scales, or NULL. */
GCP_API void gcp_memory_html(const gcp_plan *plan, const gcp_plan *beside, gcp_writer out);
/* The step over time for chrome://tracing or ui.perfetto.dev, a track of computing and one of copies, and live bytes;
   seconds are those of gcp_profile, or where it has not run the cost model's ("measured": false). It takes scratch from
   the plan's arena. */
GCP_API void gcp_trace_json(const gcp_plan *plan, gcp_writer out);
/* The network for Graphviz (dot -Tsvg), segments as clusters, what is kept for backward in blue. */
GCP_API void gcp_dot(const gcp_plan *plan, gcp_writer out);

/* ---- 5 macros -------------------------------------------------------------------------------------------------
   C99 and C++20 (there, options in the order of their fields). Strict C++17 has no designated initialisers: fill a
   struct with .at = GCP_AT and call the _at function. The macros append an empty argument, so that a call without
   options gives no pedantic warning. Write no #ifdef inside a call. */

#ifdef __cplusplus
} /* extern "C" */
template <class T> inline T gcpi_with_at(T opts, const char *file, int line)
{
    opts.at.file = file; opts.at.line = line;
    return opts;
}
template <class... D> inline gcp_shape gcpi_shape(D... d)
{
    gcp_shape s = { (int)sizeof...(d), { (int)d... } };
    return s;
}
inline gcp_at gcpi_at(const char *file, int line) { gcp_at at = { file, line }; return at; }
template <int N> struct gcpi_tensors { gcp_tensor x[N]; };
template <class... X> inline gcpi_tensors<(int)sizeof...(X)> gcpi_tensors_of(X... x) { return { { x... } }; }
template <int N> inline gcp_tensor gcpi_concat(const gcpi_tensors<N> &list, gcp_op_opts opts)
{
    return gcp_concat_at(list.x, N, opts);
}
template <class... P> inline size_t gcpi_plans_bytes(P... p)
{
    const gcp_plan *const list[] = { p... };
    return gcp_plans_bytes_at(list, (int)sizeof...(p));
}
template <class... P> inline size_t gcpi_plans_room(P... p)
{
    const gcp_plan *const list[] = { p... };
    return gcp_plans_room_at(list, (int)sizeof...(p));
}
inline gcp_tensor gcpi_nil(void) { gcp_tensor nil = { nullptr, 0, 0 }; return nil; }
#define GCP_OPTS(T, ...) gcpi_with_at(T { __VA_ARGS__ }, __FILE__, __LINE__)
#define GCP_SHAPE(...) gcpi_shape(__VA_ARGS__)
#define GCP_AT gcpi_at(__FILE__, __LINE__)
#define GCP_NIL gcpi_nil()
#define GCP_TENSORS(...) gcpi_tensors_of(__VA_ARGS__)
#define GCPI_CONCAT(list, ...) gcpi_concat(list, GCP_OPTS(gcp_op_opts, __VA_ARGS__))
#define gcp_plans_bytes(...) gcpi_plans_bytes(__VA_ARGS__)
#define gcp_plans_room(...) gcpi_plans_room(__VA_ARGS__)
#else
#define GCP_OPTS(T, ...) ((T) { .at = { __FILE__, __LINE__ }, __VA_ARGS__ })
#define GCP_SHAPE(...) ((gcp_shape) { (int)(sizeof (int[]) { __VA_ARGS__ } / sizeof(int)), { __VA_ARGS__ } })
#define GCP_AT ((gcp_at) { __FILE__, __LINE__ })
#define GCP_NIL ((gcp_tensor) { 0, 0, 0 })
#define GCP_TENSORS(...) \
    ((const gcp_tensor[]) { __VA_ARGS__ }), (int)(sizeof (gcp_tensor[]) { __VA_ARGS__ } / sizeof(gcp_tensor))
#define GCPI_CONCAT(...) GCPI_F2(gcp_concat_at, gcp_op_opts, __VA_ARGS__)
#define GCPI_PLANS(...) \
    (const gcp_plan *const[]) { __VA_ARGS__ }, (int)(sizeof (const gcp_plan *[]) { __VA_ARGS__ } / sizeof(gcp_plan *))
#define gcp_plans_bytes(...) gcp_plans_bytes_at(GCPI_PLANS(__VA_ARGS__))         /* &train, &eval, ... */
#define gcp_plans_room(...) gcp_plans_room_at(GCPI_PLANS(__VA_ARGS__))
#endif

#define GCPI_CAT(a, b) GCPI_CAT2(a, b)
#define GCPI_CAT2(a, b) a##b
#define GCPI_F0(fn, T, ...) fn(GCP_OPTS(T, __VA_ARGS__))
#define GCPI_F1(fn, T, a, ...) fn((a), GCP_OPTS(T, __VA_ARGS__))
#define GCPI_F2(fn, T, a, b, ...) fn((a), (b), GCP_OPTS(T, __VA_ARGS__))
#define GCPI_F3(fn, T, a, b, c, ...) fn((a), (b), (c), GCP_OPTS(T, __VA_ARGS__))
#define GCPI_F4(fn, T, a, b, c, d, ...) fn((a), (b), (c), (d), GCP_OPTS(T, __VA_ARGS__))

#define gcp_tape_arena(...)          GCPI_F0(gcp_tape_arena_at, gcp_tape_opts, __VA_ARGS__)
#define gcp_tape_make(...)           GCPI_F1(gcp_tape_make_at, gcp_tape_opts, __VA_ARGS__, )
#define gcp_input(...)               GCPI_F3(gcp_input_at, gcp_input_opts, __VA_ARGS__, ) /* tape, name, GCP_SHAPE() */
#define gcp_labels(...)              GCPI_F3(gcp_labels_at, gcp_input_opts, __VA_ARGS__, )
#define gcp_ids(...)                 GCPI_F3(gcp_ids_at, gcp_input_opts, __VA_ARGS__, )
#define gcp_want_grad(x)             gcp_want_grad_at((x), GCP_AT)
#define gcp_param(...)               GCPI_F3(gcp_param_at, gcp_param_opts, __VA_ARGS__, )
#define gcp_freeze(x)                gcp_freeze_at((x), GCP_AT)
#define gcp_keep(x)                  gcp_keep_at((x), GCP_AT)
#define gcp_conv2d(...)              GCPI_F1(gcp_conv2d_at, gcp_conv2d_opts, __VA_ARGS__, )
#define gcp_conv_transpose2d(...)    GCPI_F1(gcp_conv_transpose2d_at, gcp_conv2d_opts, __VA_ARGS__, )
#define gcp_linear(...)              GCPI_F1(gcp_linear_at, gcp_linear_opts, __VA_ARGS__, )
#define gcp_embedding(...)           GCPI_F1(gcp_embedding_at, gcp_embedding_opts, __VA_ARGS__, )
#define gcp_batch_norm(...)          GCPI_F1(gcp_batch_norm_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_layer_norm(...)          GCPI_F1(gcp_layer_norm_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_conv2d_op(...)           GCPI_F3(gcp_conv2d_op_at, gcp_conv2d_opts, __VA_ARGS__, )
#define gcp_conv_transpose2d_op(...) GCPI_F3(gcp_conv_transpose2d_op_at, gcp_conv2d_opts, __VA_ARGS__, )
#define gcp_linear_op(...)           GCPI_F3(gcp_linear_op_at, gcp_linear_opts, __VA_ARGS__, )
#define gcp_embedding_op(...)        GCPI_F2(gcp_embedding_op_at, gcp_embedding_opts, __VA_ARGS__, )
#define gcp_batch_norm_op(...)       GCPI_F3(gcp_batch_norm_op_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_layer_norm_op(...)       GCPI_F3(gcp_layer_norm_op_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_matmul(...)              GCPI_F2(gcp_matmul_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_add(...)                 GCPI_F2(gcp_add_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_mul(...)                 GCPI_F2(gcp_mul_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_bias(...)                GCPI_F2(gcp_bias_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_relu(...)                GCPI_F1(gcp_relu_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_leaky_relu(...)          GCPI_F1(gcp_leaky_relu_at, gcp_leaky_relu_opts, __VA_ARGS__, )
#define gcp_max_pool(...)            GCPI_F1(gcp_max_pool_at, gcp_pool_opts, __VA_ARGS__, )
#define gcp_avg_pool(...)            GCPI_F1(gcp_avg_pool_at, gcp_pool_opts, __VA_ARGS__, )
#define gcp_global_avg_pool(...)     GCPI_F1(gcp_global_avg_pool_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_upsample(...)            GCPI_F1(gcp_upsample_at, gcp_upsample_opts, __VA_ARGS__, )
#define gcp_dropout(...)             GCPI_F1(gcp_dropout_at, gcp_dropout_opts, __VA_ARGS__, )
#define gcp_concat(...)              GCPI_CONCAT(__VA_ARGS__, )         /* GCP_TENSORS(a, b, ...) */
#define gcp_slice(...)               GCPI_F1(gcp_slice_at, gcp_slice_opts, __VA_ARGS__, )
#define gcp_flatten(...)             GCPI_F1(gcp_flatten_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_reshape(...)             GCPI_F2(gcp_reshape_at, gcp_op_opts, __VA_ARGS__, )        /* x, GCP_SHAPE() */
#define gcp_cross_entropy(...)       GCPI_F2(gcp_cross_entropy_at, gcp_cross_entropy_opts, __VA_ARGS__, )
#define gcp_mse(...)                 GCPI_F2(gcp_mse_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_mean(...)                GCPI_F1(gcp_mean_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_custom(...)              GCPI_F3(gcp_custom_at, gcp_custom_opts, __VA_ARGS__, )  /* inputs[], count, op */
#define gcp_plan_make(...)           GCPI_F1(gcp_plan_make_at, gcp_plan_opts, __VA_ARGS__, )
#define gcp_least_budget(...)        GCPI_F1(gcp_least_budget_at, gcp_plan_opts, __VA_ARGS__, )
#define gcp_graph_plan(...)          GCPI_F2(gcp_graph_plan_at, gcp_plan_opts, __VA_ARGS__, )   /* tape, text */
#define gcp_graph_arena(...)         GCPI_F2(gcp_graph_arena_at, gcp_plan_opts, __VA_ARGS__, )
#define gcp_sweep(...)               GCPI_F3(gcp_sweep_at, gcp_plan_opts, __VA_ARGS__, )   /* loss, points, count */
#define gcp_graph_sweep(...)       GCPI_F4(gcp_graph_sweep_at, gcp_plan_opts, __VA_ARGS__, ) /* tape, text, points, n */
#define gcp_max_batch(...)         GCPI_F3(gcp_max_batch_at, gcp_batch_opts, __VA_ARGS__, ) /* tape, record, context */
#define gcp_plan_arena(...)          GCPI_F1(gcp_plan_arena_at, gcp_plan_opts, __VA_ARGS__, )
#define gcp_bind(...)                gcp_bind_at(__VA_ARGS__, GCP_AT)   /* plan, memory, size */
#define gcp_unbind(plan)             gcp_unbind_at((plan), GCP_AT)
#define gcp_state_bind(...)          gcp_state_bind_at(__VA_ARGS__, GCP_AT)   /* tape, memory, size */
#define gcp_state_bind_on(...)       gcp_state_bind_on_at(__VA_ARGS__, GCP_AT)   /* tape, target, memory, size */
#define gcp_slots_bind(...)          gcp_slots_bind_at(__VA_ARGS__, GCP_AT)   /* tape, memory, size */
#define gcp_far_bind(...)            gcp_far_bind_at(__VA_ARGS__, GCP_AT)   /* plan, memory, size */
#define gcp_write(...)               gcp_write_at(__VA_ARGS__, GCP_AT)   /* plan, tensor, data */
#define gcp_read(...)                gcp_read_at(__VA_ARGS__, GCP_AT)   /* plan, tensor, data */
#define gcp_grad(...)                gcp_grad_at(__VA_ARGS__, GCP_AT)   /* plan, tensor, data */
#define gcp_write_some(...)          gcp_write_some_at(__VA_ARGS__, GCP_AT)     /* plan, tensor, data, samples */
#define gcp_gradient_norm(plan)      gcp_gradient_norm_at((plan), GCP_AT)
#define gcp_average(...)             gcp_average_at(__VA_ARGS__, GCP_AT)        /* tape, memory, decay */
#define gcp_average_swap(...)        gcp_average_swap_at(__VA_ARGS__, GCP_AT)   /* tape, memory */
#define gcp_ignored(plan, loss)      gcp_ignored_at((plan), (loss), GCP_AT)
#define gcp_step(...)                GCPI_F1(gcp_step_at, gcp_step_opts, __VA_ARGS__, )
#define gcp_forward(...)             GCPI_F1(gcp_forward_at, gcp_step_opts, __VA_ARGS__, )
#define gcp_profile(...)             GCPI_F1(gcp_profile_at, gcp_profile_opts, __VA_ARGS__, )
#define gcp_measure(...)             GCPI_F3(gcp_measure_at, gcp_step_opts, __VA_ARGS__, )
#define gcp_gradcheck(...)           GCPI_F1(gcp_gradcheck_at, gcp_gradcheck_opts, __VA_ARGS__, )

/* GCP_SEGMENT(net, "residual", .keep = GCP_KEEP(CONV2D)) { ... } is
   for (scope s = begin(); s.state; end(s)) for (; s.state == 1; s.state = 2) { ... }
   break leaves the inner loop with state 1, so end() sees it at once; continue ends the segment early and is fine;
   return and goto leave the segment open, which the enclosing end() or gcp_plan_make reports with the segment's line.
   The label must be a literal without space, '/', '[' and '#'; labels that repeat under the same parent are numbered.
   Segments nest. */
typedef struct gcpi_scope { gcp_tape *tape; int segment, state; } gcpi_scope;
#define GCP_SEGMENT(...) GCPI_SEGMENT(GCPI_CAT(gcpi_scope_, __LINE__), __VA_ARGS__, )
#define GCPI_SEGMENT(s, net, label, ...) \
    for (gcpi_scope s = { (net), gcp_segment_begin((net), "" label, GCP_OPTS(gcp_segment_opts, __VA_ARGS__)), 1 }; \
         s.state; gcp_segment_end(s.tape, s.segment, &s.state)) \
        for (; s.state == 1; s.state = 2)

#endif /* GCP_H */

/* ---- 6 rooms --------------------------------------------------------------------------------------------------
   The implementation, in reading order. Each file (a room) uses only rooms above it, and includes none. dist/gcp.h has
   all of them in one file. */
#if defined(GCP_IMPLEMENTATION) && !defined(GCP_IMPLEMENTATION_DONE)
#define GCP_IMPLEMENTATION_DONE

#if !defined(__cplusplus) && __STDC_VERSION__ < 201112L
#error "gcp.h needs C11 in the file with GCP_IMPLEMENTATION"
#endif

/* ==== src/begin.h ==== */

#include <float.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#ifdef _OPENMP
#include <omp.h>
#endif
#ifdef GCP_USE_CBLAS
#include <cblas.h>
#endif

/* -ffast-math and its parts would change bits from one plan to another. The pragmas below switch them off, whatever the
   flags: sums keep their order, and a product and a sum are rounded separately (only matrix products may contract
   them). Where a compiler cannot be told so, fast math is an error. GCP_ANY_MATH accepts it: bits may then depend on
   the plan. */
#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#if defined(__FAST_MATH__) && defined(__FMA__) && !defined(GCP_ANY_MATH)
#error "gcp.h: clang's -ffast-math fuses products and sums of -march=native whatever a file says: \
compile this one without, or with -ffp-contract=off and GCP_ANY_MATH"
#endif
#pragma float_control(push)
#pragma float_control(precise, on)
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC push_options
#pragma GCC optimize("no-fast-math", "no-unsafe-math-optimizations", "no-associative-math", "no-reciprocal-math")
#pragma GCC optimize("no-finite-math-only", "signed-zeros", "fp-contract=off")
#pragma GCC optimize("no-trapping-math") /* changes no value; without it gcc does not vectorise x > 0 ? x : a * x */
#if defined(__i386__) && !defined(__SSE2_MATH__)                    /* x87 keeps extra bits in some places */
#pragma GCC target("sse2,fpmath=sse")
#endif
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(precise, on, push)
#elif defined(__FAST_MATH__) && !defined(GCP_ANY_MATH)
#error "gcp.h: this compiler cannot leave fast math out of this file: compile it without, or define GCP_ANY_MATH"
#elif defined(__clang__)
#pragma clang fp reassociate(off)
#endif

/* tape: what the user records */

/* ==== src/tape/base.h ==== */

/* What all rooms use: arenas, hashes, random numbers, text through a writer. The front of an arena holds
   what lasts. Its back holds scratch, which is given back by restoring .scratch. */

/* Between GCPI_COLD and GCPI_WARM stands what runs once per plan or step. Where the user optimises at all, gcc takes
   -Og for it and compiles gcp.h in three quarters of the time; plans and steps take as long as before. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#define GCPI_COLD _Pragma("GCC push_options") _Pragma("GCC optimize(\"Og\")")
#define GCPI_WARM _Pragma("GCC pop_options")
#else
#define GCPI_COLD
#define GCPI_WARM
#endif

#if defined(__GNUC__) && !defined(__clang__)
/* Elementwise loops are fast at -O0, too. A product and a sum round separately, for an op alone and in a group. */
#define GCPI_LOOP static __attribute__((optimize("O3", "fp-contract=off")))
#define GCPI_RESTRICT __restrict__
#define GCPI_ALONE static __attribute__((noinline))
#if defined(__MINGW32__)                          /* printf would be Microsoft's old one, without %zu */
#define GCPI_PRINTF(f, a) __attribute__((format(gnu_printf, f, a)))
#else
#define GCPI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#endif
#elif defined(__clang__)
#define GCPI_LOOP static
#define GCPI_RESTRICT __restrict__
#define GCPI_ALONE static __attribute__((noinline))
#define GCPI_PRINTF(f, a) __attribute__((format(printf, f, a)))
#else
#define GCPI_LOOP static
#define GCPI_RESTRICT
#define GCPI_ALONE static
#define GCPI_PRINTF(f, a)
#endif
#ifdef GCP_STATIC
#define GCPI_DEF static
#else
#define GCPI_DEF
#endif
#define GCPI_MIN(a, b) ((a) < (b) ? (a) : (b))
#define GCPI_MAX(a, b) ((a) > (b) ? (a) : (b))

GCPI_DEF gcp_arena gcp_arena_from(void *memory, size_t size)
{
    gcp_arena arena;
    memset(&arena, 0, sizeof arena);
    arena.base = (unsigned char *)memory;
    arena.size = memory && size <= PTRDIFF_MAX ? (ptrdiff_t)size : 0;
    return arena;
}

static void gcpi_arena_mark_high(gcp_arena *a) { a->high = GCPI_MAX(a->high, a->used + a->scratch); }

/* size * count with no overflow, or -1. */
static ptrdiff_t gcpi_product(ptrdiff_t size, ptrdiff_t count)
{
    if (size < 0 || count < 0 || (size && count > PTRDIFF_MAX / size)) return -1;
    return size * count;
}

GCPI_DEF void *gcp_arena_push(gcp_arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    ptrdiff_t bytes = gcpi_product(size, count);
    if (!a || !a->base || bytes < 0 || align <= 0 || align & (align - 1)) return NULL;
    ptrdiff_t pad = (ptrdiff_t)(-(uintptr_t)(a->base + a->used) & (uintptr_t)(align - 1));
    ptrdiff_t room = a->size - a->used - a->scratch;
    if (pad > room || bytes > room - pad) return NULL;
    void *p = a->base + a->used + pad;
    a->used += pad + bytes;
    gcpi_arena_mark_high(a);
    return memset(p, 0, (size_t)bytes);
}

static void *gcpi_scratch_push(gcp_arena *a, ptrdiff_t size, ptrdiff_t align, ptrdiff_t count)
{
    ptrdiff_t bytes = gcpi_product(size, count), room = a->size - a->used - a->scratch;
    if (bytes < 0 || bytes > room) return NULL;
    ptrdiff_t end = a->size - a->scratch - bytes;
    ptrdiff_t pad = (ptrdiff_t)((uintptr_t)(a->base + end) & (uintptr_t)(align - 1));
    if (pad > room - bytes) return NULL;
    a->scratch += bytes + pad;
    gcpi_arena_mark_high(a);
    return memset(a->base + end - pad, 0, (size_t)bytes);
}

/* Options where 0 means the default, or "not given"; GCP_ZERO stands for the value zero. */
static double gcpi_option(double given, double otherwise)
{
    return given == 0 ? otherwise : given == GCP_ZERO ? 0 : given;
}
static int gcpi_integer(int given) { return given == GCP_ZERO ? 0 : given; }

static int gcpi_finite(double x) { return x - x == 0; }
static size_t gcpi_bytes_from(double x) { return x >= (double)SIZE_MAX ? SIZE_MAX : x > 0 ? (size_t)x : 0; }

/* FNV-1a (Fowler, Noll, Vo), a byte at a time; GCPI_HASH is the start value. */
#define GCPI_HASH 14695981039346656037u
static uint64_t gcpi_hash_byte(uint64_t h, unsigned char byte) { return (h ^ byte) * 1099511628211u; }
static uint64_t gcpi_hash(const char *s)
{
    uint64_t h = GCPI_HASH;
    while (*s) h = gcpi_hash_byte(h, (unsigned char)*s++);
    return h;
}

#define GCPI_NEW(arena, type, count) ((type *)gcp_arena_push((arena), (ptrdiff_t)sizeof(type), 16, (ptrdiff_t)(count)))
#define GCPI_SCRATCH(arena, type, count) \
    ((type *)gcpi_scratch_push((arena), (ptrdiff_t)sizeof(type), 16, (ptrdiff_t)(count)))

/* Marsaglia's xorshift (2003): only for what planning tries; no step depends on it */
static uint32_t gcpi_below(uint64_t *random, uint32_t n)
{
    *random ^= *random << 13; *random ^= *random >> 7; *random ^= *random << 17;
    return (uint32_t)((*random >> 32) * n >> 32);
}

/* Random numbers: Philox 4x32-10 (Salmon et al. 2011). What is drawn depends on the key and counter alone. */
typedef struct gcpi_random { uint32_t x[4]; } gcpi_random;
static gcpi_random gcpi_philox(uint32_t c0, uint32_t c1, uint32_t c2, uint32_t c3, uint64_t key)
{
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    gcpi_random r;
    for (int round = 0; round < 10; round++) {
        uint64_t a = (uint64_t)0xD2511F53u * c0, b = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(b >> 32) ^ c1 ^ k0; c1 = (uint32_t)b;
        c2 = (uint32_t)(a >> 32) ^ c3 ^ k1; c3 = (uint32_t)a;
        k0 += 0x9E3779B9u; k1 += 0xBB67AE85u;
    }
    r.x[0] = c0; r.x[1] = c1; r.x[2] = c2; r.x[3] = c3;
    return r;
}

static void gcpi_file_write(void *context, const char *text, size_t size) { fwrite(text, 1, size, (FILE *)context); }

GCPI_DEF gcp_writer gcp_file(void *stdio_file)
{
    gcp_writer w;
    w.write = gcpi_file_write; w.context = stdio_file;
    return w;
}

static void gcpi_put(gcp_writer w, const char *text, size_t size)
{
    if (size && w.write) w.write(w.context, text, size);
}

/* A number's text has a point, whatever the program's locale writes there. */
static void gcpi_say_real(gcp_writer w, const char *conversion, double value)
{
    char text[340], *end = text;
    snprintf(text, sizeof text, conversion, value);
    for (char *c = text; *c; c++) {
        if (strchr("+-0123456789einfa ", *c)) *end++ = *c;
        else if (end == text || end[-1] != '.') *end++ = '.';       /* one of several bytes, perhaps */
    }
    gcpi_put(w, text, (size_t)(end - text));
}

/* One conversion of gcpi_say: d u x c s f g, with the sizes ll, z and t. */
static void gcpi_say_one(gcp_writer w, const char *conversion, size_t length, va_list *args)
{
    char text[640] = "";
    const char kind = conversion[length - 1], size = length > 2 ? conversion[length - 2] : '%';
    if (kind == 'f' || kind == 'g') { gcpi_say_real(w, conversion, va_arg(*args, double)); return; }
    if (kind == 's' && length == 2) {
        const char *s = va_arg(*args, const char *);
        gcpi_put(w, s, strlen(s));
        return;
    }
    if (kind == 's' && size == '*') {
        int n = va_arg(*args, int);
        snprintf(text, sizeof text, conversion, n, va_arg(*args, const char *));
    }
    else if (kind == 's') snprintf(text, sizeof text, conversion, va_arg(*args, const char *));
    else if (size == 'l') snprintf(text, sizeof text, conversion, va_arg(*args, unsigned long long));
    else if (size == 'z') snprintf(text, sizeof text, conversion, va_arg(*args, size_t));
    else if (size == 't') snprintf(text, sizeof text, conversion, va_arg(*args, ptrdiff_t));
    else if (kind == '%') text[0] = '%';
    else snprintf(text, sizeof text, conversion, va_arg(*args, int));           /* d u x c */
    gcpi_put(w, text, kind == 'c' ? 1 : strlen(text));
}

GCPI_PRINTF(2, 3)
static void gcpi_say(gcp_writer w, const char *format, ...)
{
    va_list args;
    char conversion[16];
    va_start(args, format);
    while (*format) {
        size_t n = strcspn(format, "%");
        gcpi_put(w, format, n);
        format += n;
        if (!*format) break;
        n = 1 + strcspn(format + 1, "duxcsfg%") + 1;
        snprintf(conversion, sizeof conversion, "%.*s", (int)n, format);
        gcpi_say_one(w, conversion, n, &args);
        format += n;
    }
    va_end(args);
}

/* strtod, which reads a point whatever the program's locale has there. */
static double gcpi_real(const char *text, char **end)
{
    char mark[16], copy[80];
    const size_t n = strspn(text, "+-0123456789.eE"), point = strcspn(text, ".");
    const int marks = snprintf(mark, sizeof mark, "%.1f", 0.5) - 2;
    if (point >= n || n > 60 || (marks == 1 && mark[1] == '.')) return strtod(text, end);
    snprintf(copy, sizeof copy, "%.*s%.*s%.*s", (int)point, text, marks, mark + 1, (int)(n - point - 1),
             text + point + 1);
    char *read;
    const double value = strtod(copy, &read);
    const size_t used = (size_t)(read - copy);
    if (end) *end = (char *)(uintptr_t)text + (used > point ? used - (size_t)marks + 1 : used);
    return value;
}

static double gcpi_mib(size_t bytes) { return (double)bytes / 1048576.0; }
GCPI_COLD                              /* at -Og: code that runs once per plan or step */

/* ==== src/tape/network.h ==== */

/* The recorded network, and the tape that holds it; handles; errors. Tensors, parameters, ops, names and segments
   are indices into arrays of the tape. The first error stays until it is cleared. A full tape goes on counting ops,
   to say in its message how many it needs. */

/* hash: of parent and label. The names are a hash table too: the chain of bucket i begins at names[i].newest and goes
   on at .before. */
typedef struct gcpi_name {
    int parent, index, named, newest, before;
    const char *label; uint64_t hash;
} gcpi_name;

/* outer: the outermost segment around it, or itself; keep: with what those around it keep */
typedef struct gcpi_segment { int parent, outer, name, depth, open, ops; uint64_t keep; gcp_at at; } gcpi_segment;

enum { GCPI_INPUT = 1, GCPI_PARAMETER, GCPI_STATISTIC, GCPI_ACTIVATION };
enum { GCPI_KEPT = 1, GCPI_WANTED = 2, GCPI_FROZEN = 4 };

typedef struct gcpi_tensor {
    int kind, flags, producer, parameter, name;   /* producer: op; parameter: index; -1 where there is none */
    gcp_dtype dtype;
    gcp_shape shape;
} gcpi_tensor;

typedef struct gcpi_parameter {
    const char *path;
    gcp_shape shape;
    gcp_init init;
    /* tensor: in this recording, 0 while it is not recorded; fans: 0 where not given */
    int kind, tensor, fan_in, fan_out;
    double deviation;                             /* 0: the one that init implies */
    uint64_t hash;
    /* offsets: of its value in the state; of its optimiser slots, in the state or in far_slots, 0 where it has none */
    size_t offset, slot;
    /* io: the shape that a file of each style had for it */
    struct { unsigned char known, rank, ones; } file[3];
} gcpi_parameter;

typedef struct gcpi_conv_attr {
    int n, h, w, ci, ho, wo, co, kh, kw, sh, sw, pt, pb, pl, pr, dh, dw, groups, same;
} gcpi_conv_attr;
typedef union gcpi_attributes {
    gcpi_conv_attr conv;                          /* convolutions and pools */
    double pointwise[2];                          /* the numbers p and q */
    struct { double slope; } rectifier;
    struct { double rate; } dropout;
    struct { double epsilon, momentum; } norm;
    struct { int first, count; } slice;
    struct { int factor, mode; } upsample;
    struct { int out; } linear;
    struct { int ignore, ignores; } labels;       /* of cross_entropy: the label that does not count; if any */
    gcp_shape shape;
} gcpi_attributes;

typedef struct gcpi_op {
    const gcp_op *row;
    int kind, name, segment;
    int in, inputs, out, outputs;                 /* in: its first input in tape->edges; out: its first tensor */
    gcp_at at;
    const void *context;
    gcpi_attributes attributes;
} gcpi_op;

/* Bytes of an arena that can be given back; the lease lies at their front. before: the older one, in a tape's arena. */
typedef struct gcpi_lease { struct gcpi_lease *before; ptrdiff_t first, last; int freed; } gcpi_lease;

/* A bound plan: where the plan itself, its slab and its far memory lie. These are copies: the plan cannot be asked once
   its arena was used for something else. */
typedef struct gcpi_binding {
    uint64_t plan; const void *memory;            /* the plan's number, 0: none; gcp_bind's memory */
    const unsigned char *own, *slab, *far;
    size_t own_bytes, slab_bytes, far_bytes;
    int taken;                                    /* since then another plan wrote or ran in its slab */
} gcpi_binding;

/* How much a tape holds: what a call recorded before it was refused (its name, its weights) is taken back. */
typedef struct gcpi_extents {
    int ops, edges, tensors, names, parameters;
    ptrdiff_t text_used, text_mark;
} gcpi_extents;

struct gcp_tape {
    gcp_arena *arena;
    gcp_code code;
    char message[GCP_MAX_ERROR];
    gcp_at full_at;                               /* the call that found the tape full first */
    int full_ops;                                 /* ops needed so far, once it is full */
    unsigned generation;
    ptrdiff_t arena_mark;
    uint64_t seed;
    gcpi_op *ops;               int op_count, op_capacity;
    gcpi_tensor *tensors;       int tensor_count, tensor_capacity;     /* 0 is nil */
    int *edges;                 int edge_count, edge_capacity;
    gcpi_name *names;           int name_count, name_capacity;         /* 0 is the root */
    gcpi_segment *segments;     int segment_count, segment_capacity, open;     /* 0 is the whole tape */
    gcpi_parameter *parameters; int parameter_count, parameter_capacity;
    /* names that the user gave, from the front; paths of parameters, from the back */
    char *text;                 ptrdiff_t text_used, text_capacity, text_mark;
    gcpi_extents good;                            /* as of the last call that was not refused */
    /* state: the counters, then values, then optimiser slots; layout counts the changes that may move slabs */
    unsigned char *state; size_t state_size, state_capacity;
    gcp_target home;                              /* the target whose memory holds the state */
    const void *state_memory;                     /* the caller's pointer that it came from */
    int own_state, slots;                         /* slots: per parameter; 0 until a plan with slots is bound */
    gcp_optimizer optimizer;                      /* the optimiser that the slots belong to */
    /* where slots lie that wait in far memory (gcp_slots_bind); NULL: they are in the state */
    unsigned char *far_slots;   size_t far_slots_size, far_slots_capacity;
    unsigned layout;
    /* plans are known by number. plans: how many were made; runner: ran last; toucher: wrote or ran in its slab last;
       summing: is not through its micro-batches; feeding: its .feed is being called */
    uint64_t plans, runner, toucher, summing, feeding;
    gcp_at fed_at;                                /* the step whose .feed it is */
    const char *planning;                         /* the call that plans, or planned last: for errors */
    gcpi_binding bindings[GCP_MAX_BOUND];
    gcpi_lease *leases;                           /* the newest in this arena */
};

GCPI_DEF const char *gcp_code_text(gcp_code code)
{
#define GCPI_TEXT(name, text) text,
    static const char *const texts[] = { "no error", GCP_ERRORS(GCPI_TEXT) };
#undef GCPI_TEXT
    return code < GCP_ERROR_COUNT ? texts[code] : "unknown code";
}

static const char *gcpi_basename(const char *file)
{
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? slash + 1 : file ? file : "?";
}

GCPI_PRINTF(5, 6)
static void gcpi_fail(gcp_tape *t, gcp_code code, gcp_at at, const char *what, const char *format, ...)
{
    if (!t || t->code) return;
    t->code = code;
    int n = snprintf(t->message, sizeof t->message, "%s:%d: %s: ", gcpi_basename(at.file), at.line, what);
    if (n < 0 || n >= (int)sizeof t->message) return;
    va_list args;
    va_start(args, format);
    vsnprintf(t->message + n, sizeof t->message - (size_t)n, format, args);
    va_end(args);
}

static const char gcpi_no_tape[] =
    "gcp_tape_make: the arena is too small for a tape (gcp_tape_arena says what one takes), or serves one already";

GCPI_DEF const char *gcp_error(gcp_tape *t)
{
    if (!t) return gcpi_no_tape;
    if (t->full_ops)
        snprintf(t->message, sizeof t->message, "%s:%d: tape: %d ops are recorded, %d were needed so far (.ops = %d)",
                 gcpi_basename(t->full_at.file), t->full_at.line, t->op_capacity, t->full_ops, t->op_capacity);
    return t->code ? t->message : NULL;
}

GCPI_DEF gcp_code gcp_error_code(const gcp_tape *t) { return t ? t->code : GCP_E_NOMEM; }

static void gcpi_recorded(gcp_tape *t)
{
    t->good.ops = t->op_count; t->good.edges = t->edge_count;
    t->good.tensors = t->tensor_count; t->good.names = t->name_count; t->good.parameters = t->parameter_count;
    t->good.text_used = t->text_used; t->good.text_mark = t->text_mark;
}

static int *gcpi_name_bucket(gcp_tape *t, uint64_t hash)
{
    return &t->names[hash % (unsigned)t->name_capacity].newest;
}

static void gcpi_take_back(gcp_tape *t)
{
    t->op_count = t->good.ops; t->edge_count = t->good.edges;
    t->tensor_count = t->good.tensors; t->parameter_count = t->good.parameters;
    for (; t->name_count > t->good.names; t->name_count--) {
        const gcpi_name *last = &t->names[t->name_count - 1];
        *gcpi_name_bucket(t, last->hash) = last->before;
    }
    t->text_used = t->good.text_used; t->text_mark = t->good.text_mark;
    for (int i = 0; i < t->parameter_count; i++)
        if (t->parameters[i].tensor >= t->tensor_count) t->parameters[i].tensor = 0;
}

/* 1, and an error, where a .feed is being called: it only writes inputs of its plan. at NULL: of the step. */
static int gcpi_in_feed(gcp_tape *t, const gcp_at *at, const char *what)
{
    if (t->feeding)
        gcpi_fail(t, GCP_E_ARGUMENT, at ? *at : t->fed_at, what,
                  "called in .feed, which only writes inputs of its plan");
    return t->feeding != 0;
}

GCPI_DEF void gcp_error_clear(gcp_tape *t)
{
    if (!t || !t->ops) return;                    /* a tape that did not fit its arena stays in error */
    gcpi_take_back(t);
    t->code = GCP_OK;
    t->full_ops = 0;
    t->message[0] = 0;
}

static gcp_tensor gcpi_nil(gcp_tape *t)          /* nil keeps its tape, so that a full tape can go on counting */
{
    gcp_tensor x;
    x.tape = t; x.id = 0; x.generation = t ? t->generation : 0;
    return x;
}

static gcp_tensor gcpi_handle(gcp_tape *t, int id)
{
    gcp_tensor x = gcpi_nil(t);
    x.id = id;
    return x;
}

GCPI_DEF int gcp_is_nil(gcp_tensor x) { return x.tape == NULL || x.id == 0; }

/* NULL unless x is a live tensor of its tape. */
static gcpi_tensor *gcpi_get(gcp_tensor x)
{
    if (gcp_is_nil(x) || x.generation != x.tape->generation || x.id < 0 || x.id >= x.tape->tensor_count) return NULL;
    return &x.tape->tensors[x.id];
}

static size_t gcpi_count(gcp_shape s) { return (size_t)s.d[0] * (size_t)s.d[1] * (size_t)s.d[2] * (size_t)s.d[3]; }
static size_t gcpi_pixels(gcp_shape s) { return (size_t)s.d[0] * (size_t)s.d[1] * (size_t)s.d[2]; }

/* A shape with the samples first: (n) is stored as {1, 1, 1, n}. */
static gcp_shape gcpi_by_samples(gcp_shape s)
{
    if (s.rank == 1) { s.d[0] = s.d[3]; s.d[3] = 1; }
    return s;
}

static size_t gcpi_row_bytes(gcp_dtype type, size_t elements)
{
    switch (type) {
    case GCP_DTYPE_REAL: return elements * sizeof(gcp_real);
    case GCP_DTYPE_I32:  return elements * sizeof(int32_t);
    case GCP_DTYPE_U8:   return elements;
    case GCP_DTYPE_BIT:  return (elements + 7) / 8;
    }
    return 0;
}

static const char *gcpi_shape_text(gcp_shape s, char *buffer, size_t size)
{
    int from = s.rank >= 4 ? 0 : 4 - s.rank, n = 0;
    if (s.rank == 0) { snprintf(buffer, size, "scalar"); return buffer; }
    if (s.rank == 2 || s.rank == 3) n = snprintf(buffer, size, "%d", s.d[0]), from++;
    for (int i = from; i < 4 && n >= 0 && n < (int)size; i++)
        n += snprintf(buffer + n, size - (size_t)n, "%s%d", n ? "x" : "", s.d[i]);
    return buffer;
}

/* Four sizes already, as gcp_shape_of gives them of a lower rank: those that it lacks are 1, and the last is there. */
static int gcpi_shape_is_whole(gcp_shape s)
{
    return s.rank > 0 && s.rank < 4 && s.d[3] > 0 && s.d[1] == 1 && (s.rank > 2 || s.d[2] == 1) &&
           (s.rank > 1 || s.d[0] == 1);
}
/* {rank, raw sizes} -> four sizes. 0 if a size is not positive or the bytes overflow: gcpi_shape_wrong says which. */
static int gcpi_shape_normal(gcp_shape raw, gcp_shape *s)
{
    static const int place[5][4] = { { 0 }, { 3 }, { 0, 3 }, { 0, 2, 3 }, { 0, 1, 2, 3 } };
    const int sizes = gcpi_shape_is_whole(raw) ? 4 : raw.rank;
    size_t count = 1;
    if (raw.rank < 1 || raw.rank > 4) return 0;
    s->rank = raw.rank;
    s->d[0] = s->d[1] = s->d[2] = s->d[3] = 1;
    for (int i = 0; i < sizes; i++) {
        if (raw.d[i] <= 0 || count > (size_t)PTRDIFF_MAX / 64 / (size_t)raw.d[i]) return 0;
        count *= (size_t)raw.d[i];
        s->d[place[sizes][i]] = raw.d[i];
    }
    return 1;
}
static const char *gcpi_shape_wrong(gcp_shape raw, char *buffer, size_t size)
{
    int n = snprintf(buffer, size, raw.rank > 4 ? "has %d sizes, with " : raw.rank > 0 ? "has sizes " : "has no size",
                     raw.rank),
        wrong = raw.rank < 1 || raw.rank > 4;
    for (int i = 0; i < 4 && i < raw.rank; i++) {
        n += snprintf(buffer + n, size - (size_t)n, "%s%d", i ? "x" : "", raw.d[i]);
        wrong |= raw.d[i] < 1;
    }
    if (wrong) snprintf(buffer + n, size - (size_t)n, "; 1 to 4 sizes are allowed, each at least 1");
    else snprintf(buffer + n, size - (size_t)n, ", too many values: at most %td", PTRDIFF_MAX / 64);
    return buffer;
}

/* ==== src/tape/tape.h ==== */

/* A tape: its capacities, its arena, its reset. What is recorded on it is in the rooms behind this one. */

typedef struct gcpi_capacities {
    int ops, tensors, edges, names, segments, parameters;
    ptrdiff_t text;
} gcpi_capacities;

static gcpi_capacities gcpi_capacities_of(const gcp_tape_opts *o)
{
    gcpi_capacities c;
    c.ops = o->ops > 0 ? o->ops : 256;
    c.parameters = o->parameters > 0 ? o->parameters : 2 * c.ops + 16;
    c.tensors = (o->tensors > 0 ? o->tensors : 5 * c.ops + 16) + 1;
    c.segments = (o->segments > 0 ? o->segments : c.ops) + 1;
    c.edges = 4 * c.ops + GCP_MAX_INPUTS;
    c.names = c.ops + c.tensors + c.segments + 1;
    c.text = o->names > 0 ? o->names : 96 * (ptrdiff_t)c.ops + 1024;
    return c;
}

static int gcpi_tape_fits(const gcp_tape_opts *o)     /* gcpi_capacities_of counts in int */
{
    const int most = 1 << 24;
    return o->ops >= 0 && o->ops < most && o->tensors >= 0 && o->tensors < 4 * most && o->parameters >= 0 &&
           o->parameters < most && o->segments >= 0 && o->segments < most && o->names >= 0;
}

GCPI_DEF size_t gcp_tape_arena_at(gcp_tape_opts o)
{
    if (!gcpi_tape_fits(&o)) return SIZE_MAX;
    gcpi_capacities c = gcpi_capacities_of(&o);
    return sizeof(gcp_tape) + (size_t)c.ops * sizeof(gcpi_op) + (size_t)c.tensors * sizeof(gcpi_tensor) +
           (size_t)c.edges * sizeof(int) + (size_t)c.names * sizeof(gcpi_name) +
           (size_t)c.segments * sizeof(gcpi_segment) + (size_t)c.parameters * sizeof(gcpi_parameter) + (size_t)c.text +
           8 * 64;
}

static int gcpi_tape_arrays(gcp_tape *t, gcp_arena *a, gcpi_capacities c)
{
    t->ops = GCPI_NEW(a, gcpi_op, c.ops);                         t->op_capacity = c.ops;
    t->tensors = GCPI_NEW(a, gcpi_tensor, c.tensors);             t->tensor_capacity = c.tensors;
    t->edges = GCPI_NEW(a, int, c.edges);                         t->edge_capacity = c.edges;
    t->names = GCPI_NEW(a, gcpi_name, c.names);                   t->name_capacity = c.names;
    t->segments = GCPI_NEW(a, gcpi_segment, c.segments);          t->segment_capacity = c.segments;
    t->parameters = GCPI_NEW(a, gcpi_parameter, c.parameters);    t->parameter_capacity = c.parameters;
    t->text = GCPI_NEW(a, char, c.text);                          t->text_capacity = c.text;
    return t->ops && t->tensors && t->edges && t->names && t->segments && t->parameters && t->text;
}

static void gcpi_tape_clear(gcp_tape *t)
{
    t->op_count = t->edge_count = t->open = 0;
    t->tensor_count = t->name_count = t->segment_count = 1;
    t->text_used = 0;
    memset(t->names, 0, (size_t)t->name_capacity * sizeof *t->names);
    t->names[0].label = "";
    memset(&t->segments[0], 0, sizeof t->segments[0]);
    for (int i = 0; i < t->parameter_count; i++) t->parameters[i].tensor = 0;
    gcpi_recorded(t);
}

GCPI_DEF gcp_tape *gcp_tape_make_at(gcp_arena *arena, gcp_tape_opts o)
{
    /* a tape that was given back by hand lies past what is used */
    if (arena && arena->tape && (const unsigned char *)arena->tape - arena->base < arena->used) return NULL;
    gcp_tape *t = GCPI_NEW(arena, gcp_tape, 1);
    if (!t) return NULL;
    arena->tape = t;
    t->arena = arena;
    t->generation = 1;
    t->seed = o.seed;
    if (!gcpi_tape_fits(&o))
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_tape_make",
                  ".ops = %d, .tensors = %d, .parameters = %d, .segments = %d, .names = %d; 0 is the default, the most "
                  "2^24 - 1 (.tensors 2^26 - 1)",
                  o.ops, o.tensors, o.parameters, o.segments, o.names);
    if (t->code || !gcpi_tape_arrays(t, arena, gcpi_capacities_of(&o))) {
        memset(&t->ops, 0, (size_t)((char *)&t->state - (char *)&t->ops));
        gcpi_fail(t, GCP_E_NOMEM, o.at, "gcp_tape_make",
                  "an arena of %td bytes is too small for %d ops, which take %zu bytes", arena->size,
                  o.ops > 0 ? o.ops : 256, gcp_tape_arena_at(o));
        return t;
    }
    gcpi_tape_clear(t);
    t->arena_mark = arena->used;
    return t;
}

GCPI_DEF void gcp_tape_reset(gcp_tape *t)
{
    if (!t || !t->ops || gcpi_in_feed(t, NULL, "gcp_tape_reset")) return;
    gcp_error_clear(t);
    if (!t->state) t->parameter_count = 0, t->text_mark = 0;           /* they have no values that could be kept */
    gcpi_tape_clear(t);
    t->generation++;
    t->arena->used = t->arena_mark;
    t->runner = t->toucher = t->summing = 0;
    t->leases = NULL;
    memset(t->bindings, 0, sizeof t->bindings);
    t->layout++;
}

/* ==== src/tape/names.h ==== */

/* Names: nodes of a tree. Their text is made when it is asked for. */

static const char *gcpi_keep_text(gcp_tape *t, const char *s)     /* a copy that lives until the reset; NULL if full */
{
    ptrdiff_t n = (ptrdiff_t)strlen(s) + 1;
    if (n > t->text_capacity - t->text_mark - t->text_used) return NULL;
    char *copy = t->text + t->text_used;
    t->text_used += n;
    return (const char *)memcpy(copy, s, (size_t)n);
}

static int gcpi_name_find(gcp_tape *t, int parent, const char *label, uint64_t hash)     /* the latest, or 0 */
{
    for (int i = *gcpi_name_bucket(t, hash); i > 0; i = t->names[i].before)
        if (t->names[i].hash == hash && t->names[i].parent == parent && !strcmp(t->names[i].label, label)) return i;
    return 0;
}

/* A child of parent: label[0], label[1], ... or, where the user named it, that name, which must be new there. */
static int gcpi_name_new(gcp_tape *t, int parent, const char *label, const char *named, gcp_at at)
{
    const char *text = named ? gcpi_keep_text(t, named) : label;
    if (!text || t->name_count == t->name_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, label, "the tape's %td bytes for names are full (.names)", t->text_capacity);
        return 0;
    }
    uint64_t hash = gcpi_hash(text) ^ (uint64_t)parent * 0x9e3779b97f4a7c15u;
    int same = gcpi_name_find(t, parent, text, hash);
    const int taken = named && same;
    if (taken || !*text || strpbrk(text, " /#[\n\t\r")) {
        gcpi_fail(t, GCP_E_NAME, at, label,
                  taken ? "the name '%s' is used twice in its segment"
                        : "the name '%s' is empty or has a space, '/', '[' or '#'",
                  text);
        return 0;
    }
    gcpi_name *n = &t->names[t->name_count];
    n->parent = parent; n->label = text; n->hash = hash; n->named = named != NULL;
    n->index = same ? t->names[same].index + 1 : 0;
    n->before = *gcpi_name_bucket(t, hash);
    *gcpi_name_bucket(t, hash) = t->name_count;
    return t->name_count++;
}

static int gcpi_name_text(const gcp_tape *t, int name, char *buffer, size_t size)
{
    if (!name || !size) { if (size) buffer[0] = 0; return 0; }
    const gcpi_name *x = &t->names[name];
    int n = gcpi_name_text(t, x->parent, buffer, size);
    if (n >= (int)size - 1) return n;
    int more = x->named ? snprintf(buffer + n, size - (size_t)n, "%s%s", n ? "/" : "", x->label)
                        : snprintf(buffer + n, size - (size_t)n, "%s%s[%d]", n ? "/" : "", x->label, x->index);
    return more < 0 ? n : GCPI_MIN(n + more, (int)size - 1);
}

GCPI_DEF const char *gcp_name(gcp_tensor x, char *buffer, size_t size)
{
    const gcpi_tensor *e = gcpi_get(x);
    if (size) buffer[0] = 0;
    if (e) gcpi_name_text(x.tape, e->name, buffer, size);
    return buffer;
}

GCPI_DEF gcp_shape gcp_shape_of(gcp_tensor x)
{
    const gcpi_tensor *e = gcpi_get(x);
    gcp_shape none;
    memset(&none, 0, sizeof none);
    return e ? e->shape : none;
}

GCPI_DEF size_t gcp_elements(gcp_tensor x) { const gcpi_tensor *e = gcpi_get(x); return e ? gcpi_count(e->shape) : 0; }

/* ==== src/tape/tensors.h ==== */

/* Inputs and parameters; marks on tensors. */

static int gcpi_tensor_new(gcp_tape *t, int kind, gcp_dtype dtype, gcp_shape shape, int name, gcp_at at,
                           const char *what)
{
    if (t->tensor_count == t->tensor_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, what, "the tape's %d tensors are full (.tensors)", t->tensor_capacity - 1);
        return 0;
    }
    gcpi_tensor *e = &t->tensors[t->tensor_count];
    memset(e, 0, sizeof *e);
    e->kind = kind; e->dtype = dtype; e->shape = shape; e->name = name;
    e->producer = e->parameter = -1;
    return t->tensor_count++;
}

static gcp_tensor gcpi_input_of(gcp_tape *t, gcp_dtype dtype, const char *name, gcp_shape raw, gcp_at at)
{
    gcp_shape shape;
    char wrong[160];
    if (!t || t->code) return gcpi_nil(t);
    if (!gcpi_shape_normal(raw, &shape)) {
        gcpi_fail(t, GCP_E_SHAPE, at, "input", "'%s' %s", name ? name : "", gcpi_shape_wrong(raw, wrong, sizeof wrong));
        return gcpi_nil(t);
    }
    int node = gcpi_name_new(t, 0, "input", name ? name : "", at);
    int id = node ? gcpi_tensor_new(t, GCPI_INPUT, dtype, shape, node, at, "input") : 0;
    if (id) gcpi_recorded(t);
    return id ? gcpi_handle(t, id) : gcpi_nil(t);
}

/* Checks a handle for a call: 0 with an error, or silently on nil after an earlier error. */
static int gcpi_usable(gcp_tape *t, gcp_tensor x, gcp_at at, const char *what)
{
    if (!t || t->code) return 0;
    if (gcp_is_nil(x)) { gcpi_fail(t, GCP_E_ARGUMENT, at, what, "a nil tensor"); return 0; }
    if (x.tape != t) { gcpi_fail(t, GCP_E_FOREIGN, at, what, "a tensor of another tape"); return 0; }
    if (!gcpi_get(x)) { gcpi_fail(t, GCP_E_STALE, at, what, "a tensor from before the tape's reset"); return 0; }
    return 1;
}

static gcp_tensor gcpi_flag(gcp_tensor x, int kinds, int flag, gcp_at at, const char *what, const char *kind_text)
{
    if (!gcpi_usable(x.tape, x, at, what)) return gcpi_nil(x.tape);
    gcpi_tensor *e = gcpi_get(x);
    if (!(kinds & 1 << e->kind) || (flag == GCPI_WANTED && e->dtype != GCP_DTYPE_REAL)) {
        char name[96];
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "'%s' is not %s", gcp_name(x, name, sizeof name), kind_text);
        return gcpi_nil(x.tape);
    }
    e->flags |= flag;
    return x;
}

GCPI_DEF gcp_tensor gcp_want_grad_at(gcp_tensor x, gcp_at at)
{
    return gcpi_flag(x, 1 << GCPI_INPUT, GCPI_WANTED, at, "gcp_want_grad", "a real input");
}

static gcp_tensor gcpi_input(gcp_tape *t, gcp_dtype dtype, const char *name, gcp_shape shape, const gcp_input_opts *o)
{
    if (o->want_grad && dtype != GCP_DTYPE_REAL)
        gcpi_fail(t, GCP_E_DTYPE, o->at, "input", "'%s' with .want_grad: whole numbers have no gradient",
                  name ? name : "");
    gcp_tensor x = gcpi_input_of(t, dtype, name, shape, o->at);
    return o->want_grad && !gcp_is_nil(x) ? gcp_want_grad_at(x, o->at) : x;
}
GCPI_DEF gcp_tensor gcp_input_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_input_opts o)
{
    return gcpi_input(t, GCP_DTYPE_REAL, name, shape, &o);
}
GCPI_DEF gcp_tensor gcp_labels_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_input_opts o)
{
    return gcpi_input(t, GCP_DTYPE_I32, name, shape, &o);
}
GCPI_DEF gcp_tensor gcp_ids_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_input_opts o)
{
    return gcpi_input(t, GCP_DTYPE_I32, name, shape, &o);
}

GCPI_DEF gcp_tensor gcp_freeze_at(gcp_tensor x, gcp_at at)
{
    return gcpi_flag(x, 1 << GCPI_PARAMETER, GCPI_FROZEN, at, "gcp_freeze", "a parameter");
}

GCPI_DEF gcp_tensor gcp_keep_at(gcp_tensor x, gcp_at at)
{
    return gcpi_flag(x, 1 << GCPI_ACTIVATION | 1 << GCPI_INPUT, GCPI_KEPT, at, "gcp_keep", "an activation");
}

/* Parameters outlive a reset, so their paths are copied to the back of the text, which a reset keeps. */
static const char *gcpi_keep_path(gcp_tape *t, const char *path)
{
    ptrdiff_t n = (ptrdiff_t)strlen(path) + 1;
    if (n > t->text_capacity - t->text_mark - t->text_used) return NULL;
    t->text_mark += n;
    return (const char *)memcpy(t->text + t->text_capacity - t->text_mark, path, (size_t)n);
}

static int gcpi_parameter_find(const gcp_tape *t, const char *path, uint64_t hash)
{
    for (int i = 0; i < t->parameter_count; i++)
        if (t->parameters[i].hash == hash && !strcmp(t->parameters[i].path, path)) return i;
    return -1;
}

/* A new parameter, or -1 with an error: once the state has its memory, there is none. */
static int gcpi_parameter_new(gcp_tape *t, const char *path, uint64_t hash, int kind, gcp_shape shape,
                              const gcp_param_opts *o)
{
    const gcp_at at = o->at;
    if (t->state) {
        gcpi_fail(t, GCP_E_PARAMETERS, at, "parameter",
                  "'%s' is new, but the parameters were bound to memory before; record another network on another tape",
                  path);
        return -1;
    }
    if (t->parameter_count == t->parameter_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, "parameter", "the tape's %d parameters are full (.parameters)",
                  t->parameter_capacity);
        return -1;
    }
    const char *copy = gcpi_keep_path(t, path);
    if (!copy) {
        gcpi_fail(t, GCP_E_CAPACITY, at, "parameter", "the tape's %td bytes for names are full (.names)",
                  t->text_capacity);
        return -1;
    }
    gcpi_parameter *p = &t->parameters[t->parameter_count];
    p->path = copy; p->hash = hash;
    p->kind = kind; p->shape = shape;
    p->init = o->init; p->deviation = o->std;
    p->fan_in = o->fan_in; p->fan_out = o->fan_out;
    return t->parameter_count++;
}

static int gcpi_same_shape(gcp_shape a, gcp_shape b) { return !memcmp(a.d, b.d, sizeof a.d); }

static gcp_tensor gcpi_parameter_of(gcp_tape *t, int kind, int parent, const char *name, gcp_shape raw,
                                    gcp_param_opts o)
{
    gcp_shape shape;
    char path[256], was[64], is[64], wrong[160];
    if (!t || t->code) return gcpi_nil(t);
    if (!gcpi_shape_normal(raw, &shape)) {
        gcpi_fail(t, GCP_E_SHAPE, o.at, "parameter", "'%s' %s", name ? name : "",
                  gcpi_shape_wrong(raw, wrong, sizeof wrong));
        return gcpi_nil(t);
    }
    if ((int)o.init < 0 || o.init > GCP_INIT_ONES) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "parameter", "'%s' with .init = %d; a gcp_init", name ? name : "",
                  (int)o.init);
        return gcpi_nil(t);
    }
    int node = gcpi_name_new(t, parent, "parameter", name ? name : "", o.at);
    int id = node ? gcpi_tensor_new(t, kind, GCP_DTYPE_REAL, shape, node, o.at, "parameter") : 0;
    if (!id) return gcpi_nil(t);
    if (gcpi_name_text(t, node, path, sizeof path) >= (int)sizeof path - 1) {
        gcpi_fail(t, GCP_E_NAME, o.at, "parameter", "a path of over %d characters", (int)sizeof path - 2);
        return gcpi_nil(t);
    }
    uint64_t hash = gcpi_hash(path);
    int index = gcpi_parameter_find(t, path, hash);
    if (index < 0) index = gcpi_parameter_new(t, path, hash, kind, shape, &o);
    if (index < 0) return gcpi_nil(t);
    gcpi_parameter *p = &t->parameters[index];
    if (!gcpi_same_shape(p->shape, shape) || p->kind != kind) {
        gcpi_fail(t, GCP_E_PARAMETERS, o.at, "parameter",
                  "'%s' was %s before the reset and is %s now; record another network on another tape", path,
                  gcpi_shape_text(p->shape, was, sizeof was), gcpi_shape_text(shape, is, sizeof is));
        return gcpi_nil(t);
    }
    p->tensor = id;
    t->tensors[id].parameter = index;
    return gcpi_handle(t, id);
}

GCPI_DEF gcp_tensor gcp_param_at(gcp_tape *t, const char *name, gcp_shape shape, gcp_param_opts o)
{
    int bad = o.fan_in < 0 || o.fan_out < 0 || !(o.std == GCP_ZERO || o.std >= 0) || !gcpi_finite(o.std) ||
              (o.std != 0 && o.init != GCP_INIT_DEFAULT);
    if (t && bad)
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "parameter",
                  "'%s' with .fan_in = %d, .fan_out = %d, .std = %g; at least 0, and .std or .init", name ? name : "",
                  o.fan_in, o.fan_out, o.std);
    if (o.init == GCP_INIT_DEFAULT && (shape.rank == 1 || o.std == GCP_ZERO))
        o.init = o.std > 0 ? GCP_INIT_HE : GCP_INIT_ZEROS;
    gcp_tensor x =
        gcpi_parameter_of(t, GCPI_PARAMETER, t && t->segments ? t->segments[t->open].name : 0, name, shape, o);
    if (x.id) gcpi_recorded(t);
    return x;
}

static gcp_tensor gcpi_nth(gcp_tape *t, int kind, int index)
{
    for (int i = 0, seen = 0; t && i < t->parameter_count; i++)
        if (t->parameters[i].kind == kind && seen++ == index) return gcpi_handle(t, t->parameters[i].tensor);
    return gcpi_nil(t);
}
GCPI_DEF gcp_tensor gcp_nth_parameter(gcp_tape *t, int index) { return gcpi_nth(t, GCPI_PARAMETER, index); }
GCPI_DEF gcp_tensor gcp_nth_statistic(gcp_tape *t, int index) { return gcpi_nth(t, GCPI_STATISTIC, index); }

GCPI_DEF gcp_tensor gcp_find(gcp_tape *t, const char *path)
{
    char name[256];
    for (int i = 1; t && path && i < t->tensor_count; i++) {
        gcpi_name_text(t, t->tensors[i].name, name, sizeof name);
        if (t->tensors[i].kind != GCPI_ACTIVATION && !strcmp(name, path)) return gcpi_handle(t, i);
    }
    return gcpi_nil(t);
}

/* ==== src/tape/record.h ==== */

/* Segments and ops, as they are recorded. Nothing is computed here. */

GCPI_DEF int gcp_segment_begin(gcp_tape *t, const char *label, gcp_segment_opts o)
{
    if (!t || t->code) return 0;
    if (t->segment_count == t->segment_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, o.at, "segment", "the tape's %d segments are full (.segments)",
                  t->segment_capacity - 1);
        return 0;
    }
    int name = gcpi_name_new(t, t->segments[t->open].name, label, NULL, o.at);
    if (!name) return 0;
    gcpi_segment *s = &t->segments[t->segment_count];
    memset(s, 0, sizeof *s);
    const gcpi_segment *around = &t->segments[t->open];
    s->parent = t->open; s->name = name; s->at = o.at; s->open = 1;
    s->outer = t->open ? around->outer : t->segment_count;
    s->keep = o.keep | around->keep;
    s->depth = around->depth + 1;
    s->ops = t->op_count;                         /* the segment's first op */
    gcpi_recorded(t);
    return t->open = t->segment_count++;
}

static void gcpi_segment_error(gcp_tape *t, int segment, const char *text)
{
    char name[128], what[160];
    gcpi_name_text(t, t->segments[segment].name, name, sizeof name);
    snprintf(what, sizeof what, "segment '%s'", name);
    gcpi_fail(t, GCP_E_SEGMENT, t->segments[segment].at, what, "%s", text);
}

/* Closes every open segment inside `segment` (0: all), with an error: a return or goto left it. */
static void gcpi_segments_close(gcp_tape *t, int segment)
{
    while (t->open > segment) {
        gcpi_segment *s = &t->segments[t->open];
        if (t->open != segment) gcpi_segment_error(t, t->open, "a return or goto left its block");
        s->open = 0;
        t->open = s->parent;
    }
}

GCPI_DEF void gcp_segment_end(gcp_tape *t, int segment, int *state)
{
    int left = *state == 1;                       /* a break: the loop of GCP_SEGMENT did not end by itself */
    *state = 0;
    if (!t || !segment) return;
    if (segment >= t->segment_count || !t->segments[segment].open) return;
    gcpi_segments_close(t, segment);
    if (t->open == segment) {
        gcpi_segment *s = &t->segments[segment];
        if (left) gcpi_segment_error(t, segment, "a break left its block");
        else if (s->ops == t->op_count && !t->code) gcpi_segment_error(t, segment, "its block recorded no op");
        s->open = 0;
        t->open = s->parent;
    }
}

/* Whether the tape has room for an op; if not, its error is set. */
static int gcpi_op_room(gcp_tape *t, const gcp_op *row, int inputs, int outputs, gcp_at at)
{
    if (t->full_ops) t->full_ops++;
    if (t->code) return 0;
    if (t->op_count == t->op_capacity) {
        gcpi_fail(t, GCP_E_CAPACITY, at, "tape", "full");
        t->full_at = at;
        t->full_ops = t->op_capacity + 1;
        return 0;
    }
    if (inputs > GCP_MAX_INPUTS || outputs < 1 || outputs > GCP_MAX_OUTPUTS) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, row->name, "%d inputs and %d outputs; at most %d and 1 to %d", inputs, outputs,
                  GCP_MAX_INPUTS, GCP_MAX_OUTPUTS);
        return 0;
    }
    if (inputs > t->edge_capacity - t->edge_count) {
        gcpi_fail(t, GCP_E_CAPACITY, at, row->name, "the tape's %d inputs of ops are full (.ops)", t->edge_capacity);
        return 0;
    }
    return 1;
}

static int gcpi_op_shapes(gcp_tape *t, const gcpi_op *op, gcp_shape *out, gcp_dtype *out_type)
{
    gcp_shape in[GCP_MAX_INPUTS];
    gcp_dtype type[GCP_MAX_INPUTS];
    char message[200];
    gcp_shape_call call;
    for (int i = 0; i < op->inputs; i++) {
        int id = t->edges[op->in + i];
        in[i] = t->tensors[id].shape;
        type[i] = t->tensors[id].dtype;
    }
    memset(out, 0, (size_t)op->outputs * sizeof *out);
    for (int j = 0; j < op->outputs; j++) out_type[j] = GCP_DTYPE_REAL;
    message[0] = 0;
    call.attributes = op->context ? op->context : (const void *)&op->attributes;
    call.in = in; call.in_dtype = type; call.inputs = op->inputs;
    call.out = out; call.out_dtype = out_type; call.outputs = op->outputs;
    call.message = message; call.message_size = sizeof message; call.code = GCP_E_SHAPE;
    if (!op->row->shape(&call)) { gcpi_fail(t, call.code, op->at, op->row->name, "%s", message); return 0; }
    for (int j = 0; j < op->outputs; j++) {
        gcp_shape raw = out[j];
        size_t count = 1;
        for (int d = 0; d < 4; d++) {
            if (raw.d[d] <= 0 || count > (size_t)PTRDIFF_MAX / 64 / (size_t)raw.d[d]) {
                gcpi_fail(t, GCP_E_SHAPE, op->at, op->row->name, "an output of %d x %d x %d x %d", raw.d[0], raw.d[1],
                          raw.d[2], raw.d[3]);
                return 0;
            }
            count *= (size_t)raw.d[d];
        }
    }
    return 1;
}

/* Records an op: its shape rule makes the outputs. Returns its index, or -1 with the tape's error set. */
static int gcpi_op_new(gcp_tape *t, const gcp_op *row, int kind, int name, const gcp_tensor *inputs, int count,
                       const gcpi_attributes *attributes, const void *context, gcp_at at)
{
    gcp_shape shape[GCP_MAX_OUTPUTS];
    gcp_dtype type[GCP_MAX_OUTPUTS];
    gcpi_op *op = &t->ops[t->op_count];
    if (!gcpi_op_room(t, row, count, row->outputs, at)) return -1;
    for (int i = 0; i < count; i++)
        if (!gcpi_usable(t, inputs[i], at, row->name)) return -1;
    memset(op, 0, sizeof *op);
    op->row = row; op->kind = kind; op->at = at; op->name = name; op->segment = t->open; op->context = context;
    op->in = t->edge_count; op->inputs = count; op->outputs = row->outputs;
    if (attributes) op->attributes = *attributes;
    for (int i = 0; i < count; i++) t->edges[op->in + i] = inputs[i].id;
    if (!gcpi_op_shapes(t, op, shape, type)) return -1;
    if (op->outputs > t->tensor_capacity - t->tensor_count) {
        gcpi_fail(t, GCP_E_CAPACITY, at, row->name, "the tape's %d tensors are full (.tensors)",
                  t->tensor_capacity - 1);
        return -1;
    }
    op->out = t->tensor_count;
    for (int j = 0; j < op->outputs; j++)
        t->tensors[gcpi_tensor_new(t, GCPI_ACTIVATION, type[j], shape[j], name, at, row->name)].producer = t->op_count;
    t->edge_count += count;
    t->op_count++;
    gcpi_recorded(t);
    return t->op_count - 1;
}

/* ==== src/tape/patterns.h ==== */

/* Patterns of paths. A star stands for any text, [a-b] for an index from a to b. Options that choose parameters are
   texts of such patterns: words, or lines of a pattern and a number. */

typedef struct gcpi_word { const char *at; size_t length; } gcpi_word;      /* a word of a text */

/* The next word of the line at *line. Empty at the line's end. */
static gcpi_word gcpi_word_next(const char **line)
{
    gcpi_word word;
    while (**line == ' ' || **line == '\t' || **line == '\r') ++*line;
    word.at = *line;
    while (**line && !strchr(" \t\r\n", **line)) ++*line;
    word.length = (size_t)(*line - word.at);
    return word;
}
/* Goes to the next line; 0: that was the last. */
static int gcpi_line_next(const char **line)
{
    while (**line && **line != '\n') ++*line;
    if (!**line) return 0;
    ++*line;
    return 1;
}

/* A whole number at *s, below 2^31. 0: there is none. */
static int gcpi_index_at(const char **s, const char *end, int64_t *value)
{
    const char *first = *s;
    for (*value = 0; *s < end && **s >= '0' && **s <= '9' && *value < INT32_MAX; ++*s)
        *value = *value * 10 + (**s - '0');
    return *s > first;
}
/* [a-b] at *p fits [n] at *s: goes behind both. 0: it is no such range, or n is outside. */
static int gcpi_range_fits(const char **p, const char *p_end, const char **s)
{
    const char *at = *p, *text = *s;
    int64_t from, to, index;
    if (at == p_end || *at++ != '[' || !gcpi_index_at(&at, p_end, &from) || at == p_end || *at++ != '-') return 0;
    if (!gcpi_index_at(&at, p_end, &to) || at == p_end || *at++ != ']') return 0;
    if (*text++ != '[' || !gcpi_index_at(&text, text + strlen(text), &index) || *text++ != ']') return 0;
    if (index < from || index > to) return 0;
    *p = at; *s = text;
    return 1;
}
/* Whether all of the path fits. A star that took too little is tried again with more; one star back is enough. */
static int gcpi_pattern_fits(gcpi_word pattern, const char *s)
{
    const char *p = pattern.at, *end = p + pattern.length, *star = NULL, *from = NULL;
    while (*s || p < end) {
        if (p < end && *p == '*') { star = ++p; from = s; }
        else if (gcpi_range_fits(&p, end, &s)) continue;
        else if (p < end && *s && *p == *s) { p++; s++; }
        else if (!star || !*from) return 0;
        else { p = star; s = ++from; }
    }
    return 1;
}

/* Whether any word of the text fits the path. */
static int gcpi_patterns_fit(const char *text, const char *path)
{
    do
        for (gcpi_word w; (w = gcpi_word_next(&text)).length > 0;) if (gcpi_pattern_fits(w, path)) return 1;
    while (gcpi_line_next(&text));
    return 0;
}

/* Whether the first word of a line between first and end fits the path. */
static int gcpi_lines_fit(const char *first, const char *end, const char *path)
{
    int fits = 0;
    for (const char *line = first; line < end && !fits; gcpi_line_next(&line))
        fits = gcpi_pattern_fits(gcpi_word_next(&line), path);
    return fits;
}
/* What is wrong with patterns, or NULL; *where: the word. Each must fit a parameter. lines: each is followed by a
   number of at least 0, and must fit one that no line before it fits. */
static const char *gcpi_patterns_wrong(const gcp_tape *t, const char *text, int lines, gcpi_word *where)
{
    const char *first = text;
    int words = 0;
    do
        while ((*where = gcpi_word_next(&text)).length > 0) {
            int fits = 0, used = 0;
            words++;
            for (int i = 0; i < t->parameter_count && !used; i++) {
                const char *path = t->parameters[i].path;
                if (t->parameters[i].kind != GCPI_PARAMETER || !gcpi_pattern_fits(*where, path)) continue;
                fits = 1;
                used = !lines || !gcpi_lines_fit(first, where->at, path);
            }
            if (!used) return fits ? "fits no parameter that the lines before leave" : "fits no parameter";
            if (!lines) continue;
            gcpi_word number = gcpi_word_next(&text);
            char *end = NULL;
            double value = number.length ? gcpi_real(number.at, &end) : -1;
            if (!(value >= 0) || !gcpi_finite(value) || end != number.at + number.length ||
                gcpi_word_next(&text).length)
                return "needs a number of at least 0 behind it, and nothing more on its line";
        }
    while (gcpi_line_next(&text));
    return words ? NULL : "has no pattern";
}

/* The number of the first line whose pattern fits the path; otherwise, where none does. */
static double gcpi_numbers_fit(const char *text, const char *path, double otherwise)
{
    if (!text) return otherwise;
    do {
        gcpi_word pattern = gcpi_word_next(&text), number = gcpi_word_next(&text);
        if (number.length && gcpi_pattern_fits(pattern, path)) return gcpi_real(number.at, NULL);
    } while (gcpi_line_next(&text));
    return otherwise;
}
GCPI_WARM                              /* again at the user's level of optimisation */

/* kernels: tiles and products, for each instruction set */

/* ==== src/kernels/simd.h ==== */

/* What a kernel needs of the target: threads and the instruction set. Kernels know nothing else of gcp. */

typedef struct gcpi_par {
    void *context; int threads;
    void (*parallel_for)(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg);
    int isa;
} gcpi_par;


#ifndef GCPI_VECTORS /* 0: scalar kernels alone, which compile in half the time */
#if defined(__GNUC__) || defined(__clang__)
#define GCPI_VECTORS 1
#else
#define GCPI_VECTORS 0
#endif
#endif
#if GCPI_VECTORS && (defined(__x86_64__) || defined(__i386__))
#define GCPI_X86 1
#else
#define GCPI_X86 0
#endif

/* Kernels run at full speed whatever flags the user builds with: gcc takes an optimisation level per function. Only the
   kernels for an x86 without AVX2 keep the user's level (GCPI_PLAIN): each function with its own level makes every
   compilation without optimisation slower. */
#if defined(__clang__)
#define GCPI_BODY static inline __attribute__((always_inline))
#define GCPI_FAST
#define GCPI_HOT __attribute__((noinline))
#define GCPI_PREFETCH(p) __builtin_prefetch(p, 1)
#define GCPI_PREFETCH_READ(p) __builtin_prefetch(p, 0)
#define GCPI_UNROLL _Pragma("clang loop unroll(full)")
#elif defined(__GNUC__)
#define GCPI_BODY static inline __attribute__((always_inline))
#define GCPI_FAST __attribute__((optimize("O2")))
#define GCPI_PREFETCH(p) __builtin_prefetch(p, 1)
#define GCPI_PREFETCH_READ(p) __builtin_prefetch(p, 0)
#define GCPI_HOT __attribute__((noinline, optimize("O2", "fp-contract=fast")))
#define GCPI_UNROLL _Pragma("GCC unroll 16")
#else
#define GCPI_BODY static
#define GCPI_FAST
#define GCPI_HOT
#define GCPI_PREFETCH(p) ((void)0)
#define GCPI_PREFETCH_READ(p) ((void)0)
#define GCPI_UNROLL
#endif

enum { GCPI_FORWARD, GCPI_BACKWARD_DATA, GCPI_BACKWARD_WEIGHTS };
enum {
    GCPI_ROWS = 24, /* rows walked together: whole tiles of every kernel of gcpi_simd */
    GCPI_MR_MAX = 12,
    GCPI_PHASES = 16,       /* depthwise: at most so many phases of the strides */
    GCPI_STRIPS = 3,        /* depthwise: sizes of strips */
    GCPI_OUTER_ROWS = 48,   /* rows of dy packed side by side: whole tiles of every kernel */
    GCPI_OUTER_BLOCKS = 3,  /* at most so many such blocks in a task */
    GCPI_OUTER_PLAIN = 24,  /* up to so many channels of dy are read in place */
    GCPI_LINE = 64 / (int)sizeof(gcp_real),              /* values in a cache line */
    GCPI_NR_MAX = 4 * GCPI_LINE,                         /* widest panel of columns */
    GCPI_K_BLOCK = 1024,                                 /* terms summed in one pass */
    GCPI_PACK_MAX = 786432 / (int)sizeof(gcp_real),      /* packed weights of a worker: fit in L2 */
    GCPI_L1_HALF = 16384 / (int)sizeof(gcp_real),        /* values that fill half of L1 */
    GCPI_PLANAR_COLS = 64,                               /* planar: at most so many output channels */
    GCPI_PACK_ROWS = 8 * GCPI_LINE,                      /* rows of weights transposed at a time */
    GCPI_RESIDENT_MAX = 1310720 / (int)sizeof(gcp_real), /* packed weights of a panel, whole sum: kept */
    GCPI_WINDOW_MAX = 786432 / (int)sizeof(gcp_real),    /* copied window of a worker */
    GCPI_PARTIAL_MAX = 2097152 / (int)sizeof(gcp_real),  /* all private sums of dw together */
    GCPI_OUTER_PIXELS = 512,                             /* pixels summed in one pass for dw; up to twice as many */
    GCPI_OUTER_MAX = 1048576 / (int)sizeof(gcp_real),    /* while x and dy have at most so many values there */
    GCPI_FAR = 16777216 / (int)sizeof(gcp_real),         /* more values than this are not in a cache */
    GCPI_TASKS = 16                                      /* fewer tasks than this are cut finer */
};

typedef struct gcpi_conv { /* NHWC x and y, OHWI weights [co][kh][kw][ci/groups] */
    int n, h, w, ci;
    ptrdiff_t xpitch; /* x: element (b,y,x,c) at ((b*h+y)*w+x)*xpitch + c */
    int ho, wo, co;
    ptrdiff_t ypitch; /* y likewise */
    int kh, kw, sh, sw, pt, pl, dh, dw, groups;
} gcpi_conv;

/* The micro-kernel. */

typedef struct gcpi_tile {        /* c[i][j] = start + sum over k of a[i][k*as] * b[k*bs + j] */
    ptrdiff_t n[3], as[3], bs[3]; /* three loops, outermost first; steps of a and b */
    const gcp_real *b, *const *a;
    gcp_real *const *c;
    ptrdiff_t first;       /* column of c at j = 0 */
    const gcp_real *start; /* starting values of the first row; NULL: those in c */
    ptrdiff_t ss;          /* step of start from row to row */
    int rows;              /* rows to store; later a[] and c[] repeat one of them */
} gcpi_tile;

typedef void gcpi_kernel(const gcpi_tile *t);
typedef void gcpi_turner(gcp_real *to, ptrdiff_t pitch, int rows, int cols, const gcp_real *from, ptrdiff_t step);
typedef void gcpi_copier(gcp_real *to, const gcp_real *from, ptrdiff_t rows, ptrdiff_t pitch, ptrdiff_t width);

typedef struct gcpi_strip {            /* depthwise: pixels of a row, and the taps that reach them */
    const gcp_real *x, *w, *start, *e; /* start: see gcpi_tile */
    gcp_real *y, *d;                   /* forward: y from x and w; backward: d (shaped as w) from x and e (as y) */
    ptrdiff_t xpixel, xrow, xtap, row, tap, pixel;
    int rows, taps, channels;
} gcpi_strip;

typedef void gcpi_stripper(const gcpi_strip *s);

/* Sizes are literals and every short loop unrolls, so that acc lives in registers: a tile whose
 * size is a parameter runs at a quarter of the speed. */
#define GCPI_KERNEL(NAME, TARGET, VEC, MR, NV)                                                                         \
    TARGET static void NAME(const gcpi_tile *t)                                                               \
    {                                                                                                                  \
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real));                                           \
        const ptrdiff_t n = t->n[2], as = t->as[2], bs = t->bs[2];                                                     \
        gcp_real *c[MR];                                                                                               \
        VEC acc[MR][NV];                                                                                               \
        GCPI_UNROLL for (int i = 0; i < MR; i++) c[i] = t->c[i] + t->first;                                            \
        GCPI_UNROLL for (int i = 0; i < MR; i++)                                                                       \
            GCPI_UNROLL for (int v = 0; v < NV; v++) GCPI_PREFETCH(c[i] + v * lanes);                                  \
        GCPI_UNROLL for (int i = 0; i < MR; i++) GCPI_UNROLL for (int v = 0; v < NV; v++) acc[i][v] =                  \
            *(const VEC *)((t->start ? t->start + i * t->ss : c[i]) + v * lanes);                                      \
        for (ptrdiff_t k0 = 0; k0 < t->n[0]; k0++)                                                                     \
            for (ptrdiff_t k1 = 0; k1 < t->n[1]; k1++) {                                                               \
                const gcp_real *b = t->b + k0 * t->bs[0] + k1 * t->bs[1], *a[MR];                                      \
                GCPI_UNROLL for (int i = 0; i < MR; i++) a[i] = t->a[i] + k0 * t->as[0] + k1 * t->as[1];               \
                for (ptrdiff_t k = 0, o = 0; k < n; k++, o += as, b += bs) {                                           \
                    VEC row[NV];                                                                                       \
                    GCPI_UNROLL for (int v = 0; v < NV; v++) row[v] = *(const VEC *)(b + v * lanes);                   \
                    GCPI_UNROLL for (int i = 0; i < MR; i++)                                                           \
                        GCPI_UNROLL for (int v = 0; v < NV; v++) acc[i][v] += a[i][o] * row[v];                        \
                }                                                                                                      \
            }                                                                                                          \
        GCPI_UNROLL for (int i = 0; i < MR; i++)                                                                       \
            if (i < t->rows) GCPI_UNROLL for (int v = 0; v < NV; v++) *(VEC *)(c[i] + v * lanes) = acc[i][v];          \
    }

/* Copies rows of `width` values to dense rows; the last vector of a row overlaps the one before it. */
#define GCPI_COPY(NAME, TARGET, VEC)                                                                                   \
    TARGET static void NAME(gcp_real *to, const gcp_real *from, ptrdiff_t rows, ptrdiff_t pitch,              \
                                     ptrdiff_t width)                                                                  \
    {                                                                                                                  \
        const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real));                                           \
        for (ptrdiff_t r = 0; r < rows; r++, from += pitch, to += width)                                               \
            for (ptrdiff_t j = 0; j < width; j += lanes) {                                                             \
                ptrdiff_t at = GCPI_MIN(j, width - lanes);                                                             \
                *(VEC *)(to + at) = *(const VEC *)(from + at);                                                         \
            }                                                                                                          \
    }

/* Transposes: to[r*pitch + c] = from[r + c*step], four rows and L columns at a time. A vector holds four rows of L / 4
 * columns. Zipping pairs of vectors twice transposes each 4 x 4 part in registers. The lanes of a shuffle are literals,
 * hence one macro for L = 4 and one for L = 16. */
#if defined(__has_builtin)
#if GCPI_VECTORS && __has_builtin(__builtin_shufflevector)
#define GCPI_SHUFFLES
#endif
#endif
#ifdef GCPI_SHUFFLES
typedef gcp_real gcpi_4 __attribute__((vector_size(4 * sizeof(gcp_real)), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_16 __attribute__((vector_size(16 * sizeof(gcp_real)), aligned(sizeof(gcp_real)), may_alias));
#define GCPI_ZIP_LOW_4(a, b) __builtin_shufflevector(a, b, 0, 4, 1, 5)
#define GCPI_ZIP_HIGH_4(a, b) __builtin_shufflevector(a, b, 2, 6, 3, 7)
#define GCPI_ZIP_LOW_16(a, b) __builtin_shufflevector(a, b, 0, 16, 1, 17, 4, 20, 5, 21, 8, 24, 9, 25, 12, 28, 13, 29)
#define GCPI_ZIP_HIGH_16(a, b) __builtin_shufflevector(a, b, 2, 18, 3, 19, 6, 22, 7, 23, 10, 26, 11, 27, 14, 30, 15, 31)
#define GCPI_FOURS_4(p, step) (*(const gcpi_4 *)(p))
#define GCPI_FOURS_8(p, step) \
    __builtin_shufflevector(GCPI_FOURS_4(p, 0), GCPI_FOURS_4((p) + 4 * (step), 0), 0, 1, 2, 3, 4, 5, 6, 7)
#define GCPI_FOURS_16(p, step) \
    __builtin_shufflevector(GCPI_FOURS_8(p, step), GCPI_FOURS_8((p) + 8 * (step), step), 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, \
                            10, 11, 12, 13, 14, 15)
#define GCPI_TURN_FOUR(L, to, from)                                                                                    \
    {                                                                                                                  \
        gcpi_##L r0 = GCPI_FOURS_##L(from, step), r1 = GCPI_FOURS_##L((from) + step, step);                            \
        gcpi_##L r2 = GCPI_FOURS_##L((from) + 2 * step, step), r3 = GCPI_FOURS_##L((from) + 3 * step, step);           \
        gcpi_##L low = GCPI_ZIP_LOW_##L(r0, r2), high = GCPI_ZIP_HIGH_##L(r0, r2);                                     \
        gcpi_##L odd_low = GCPI_ZIP_LOW_##L(r1, r3), odd_high = GCPI_ZIP_HIGH_##L(r1, r3);                             \
        *(gcpi_##L *)(to) = GCPI_ZIP_LOW_##L(low, odd_low);                                                            \
        *(gcpi_##L *)((to) + pitch) = GCPI_ZIP_HIGH_##L(low, odd_low);                                                 \
        *(gcpi_##L *)((to) + 2 * pitch) = GCPI_ZIP_LOW_##L(high, odd_high);                                            \
        *(gcpi_##L *)((to) + 3 * pitch) = GCPI_ZIP_HIGH_##L(high, odd_high);                                           \
    }
#else
#define GCPI_TURN_FOUR(L, to, from) \
    for (int q = 0; q < 4 * L; q++) (to)[q / L * pitch + q % L] = (from)[q / L + q % L * step];
#endif
#define GCPI_TURN_COLUMNS(L)                                                                     \
    for (; c + L <= cols; c += L) {                                                              \
        int r = 0;                                                                               \
        for (; r + 4 <= rows; r += 4) GCPI_TURN_FOUR(L, to + r * pitch + c, from + r + c * step) \
        for (; r < rows; r++)                                                                    \
            for (int i = c; i < c + L; i++) to[r * pitch + i] = from[r + i * step];              \
    }
#define GCPI_TURN(NAME, TARGET)                                                                                        \
    TARGET static void NAME(gcp_real *to, ptrdiff_t pitch, int rows, int cols, const gcp_real *from,          \
                                     ptrdiff_t step)                                                                   \
    {                                                                                                                  \
        int c = 0;                                                                                                     \
        GCPI_TURN_COLUMNS(16)                                                                                          \
        GCPI_TURN_COLUMNS(4)                                                                                           \
        for (; c < cols; c++)                                                                                          \
            for (int r = 0; r < rows; r++) to[r * pitch + c] = from[r + c * step];                                     \
    }

/* Depthwise: P pixels, NV vectors of channels of each.
 * y[p] = start + sum over rows and taps of x[p, row, tap] * w[row, tap]. */
#define GCPI_DEPTH_LOOP(VEC, P, NV)                                                                                    \
    for (const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real)); c + NV * lanes <= s.channels;            \
         c += NV * lanes) {                                                                                            \
        const gcp_real *x = s.x + c, *w = s.w + c, *start = (s.start ? s.start : s.y) + c;                             \
        const ptrdiff_t step = s.start ? 0 : s.pixel;                                                                  \
        VEC acc[P][NV];                                                                                                \
        GCPI_UNROLL for (int p = 0; p < P; p++) GCPI_UNROLL for (int v = 0; v < NV; v++) acc[p][v] =                   \
            *(const VEC *)(start + p * step + v * lanes);                                                              \
        for (int row = 0; row < s.rows; row++, x += s.xrow, w += s.row) {                                              \
            const gcp_real *at = x, *tap = w;                                                                          \
            for (int t = 0; t < s.taps; t++, at += s.xtap, tap += s.tap) GCPI_UNROLL for (int v = 0; v < NV; v++) {    \
                VEC weight = *(const VEC *)(tap + v * lanes);                                                          \
                GCPI_UNROLL for (int p = 0; p < P; p++)                                                                \
                    acc[p][v] += *(const VEC *)(at + p * pixel + v * lanes) * weight;                                  \
            }                                                                                                          \
        }                                                                                                              \
        GCPI_UNROLL for (int p = 0; p < P; p++)                                                                        \
            GCPI_UNROLL for (int v = 0; v < NV; v++) *(VEC *)(s.y + c + p * s.pixel + v * lanes) = acc[p][v];          \
    }

/* d[row, tap] += sum over P pixels of x[p, row, tap] * e[p]. */
#define GCPI_DEPTH_BACK_LOOP(VEC, P, NV)                                                                               \
    for (const ptrdiff_t lanes = (ptrdiff_t)(sizeof(VEC) / sizeof(gcp_real)); c + NV * lanes <= s.channels;            \
         c += NV * lanes) {                                                                                            \
        const gcp_real *x = s.x + c;                                                                                   \
        gcp_real *d = s.d + c;                                                                                         \
        VEC e[P][NV];                                                                                                  \
        GCPI_UNROLL for (int p = 0; p < P; p++) GCPI_UNROLL for (int v = 0; v < NV; v++) e[p][v] =                     \
            *(const VEC *)(s.e + c + p * s.pixel + v * lanes);                                                         \
        for (int row = 0; row < s.rows; row++, x += s.xrow, d += s.row) {                                              \
            const gcp_real *at = x;                                                                                    \
            gcp_real *tap = d;                                                                                         \
            for (int t = 0; t < s.taps; t++, at += s.xtap, tap += s.tap) GCPI_UNROLL for (int v = 0; v < NV; v++) {    \
                VEC sum = *(const VEC *)(tap + v * lanes);                                                             \
                GCPI_UNROLL for (int p = 0; p < P; p++) sum += *(const VEC *)(at + p * pixel + v * lanes) * e[p][v];   \
                *(VEC *)(tap + v * lanes) = sum;                                                                       \
            }                                                                                                          \
        }                                                                                                              \
    }

/* NV vectors at a time, then one, then short vectors, then single channels. */
#define GCPI_DEPTH(NAME, TARGET, LOOP, VEC, P, NV)              \
    TARGET static void NAME(const gcpi_strip *strip)   \
    {                                                           \
        const gcpi_strip s = *strip; /* a copy: no store can change it */ \
        const ptrdiff_t pixel = s.xpixel;                       \
        ptrdiff_t c = 0;                                        \
        LOOP(VEC, P, NV)                                        \
        LOOP(VEC, P, 1)                                         \
        LOOP(GCPI_SHORT, P, 1)                                  \
        LOOP(gcp_real, P, 1)                                    \
    }

#define GCPI_VECTOR(ISA, TARGET, VEC)                                             \
    GCPI_COPY(ISA##_copy, TARGET, VEC)                                            \
    GCPI_TURN(ISA##_turn, TARGET)                                                 \
    GCPI_DEPTH(ISA##_depth_8, TARGET, GCPI_DEPTH_LOOP, VEC, 8, 2)                 \
    GCPI_DEPTH(ISA##_depth_4, TARGET, GCPI_DEPTH_LOOP, VEC, 4, 4)                 \
    GCPI_DEPTH(ISA##_depth_1, TARGET, GCPI_DEPTH_LOOP, VEC, 1, 4)                 \
    GCPI_DEPTH(ISA##_back_8, TARGET, GCPI_DEPTH_BACK_LOOP, VEC, 8, 2)             \
    GCPI_DEPTH(ISA##_back_4, TARGET, GCPI_DEPTH_BACK_LOOP, VEC, 4, 4)             \
    GCPI_DEPTH(ISA##_back_1, TARGET, GCPI_DEPTH_BACK_LOOP, VEC, 1, 4)

#if GCPI_X86 && !defined(__clang__)
#define GCPI_PLAIN __attribute__((noinline, optimize("fp-contract=fast")))
#else
#define GCPI_PLAIN GCPI_HOT
#endif
#define GCPI_SHORT gcp_real
#if GCPI_VECTORS
#undef GCPI_SHORT
#define GCPI_SHORT gcpi_v16
typedef gcp_real gcpi_v16 __attribute__((vector_size(16), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_v32 __attribute__((vector_size(32), aligned(sizeof(gcp_real)), may_alias));
typedef gcp_real gcpi_v64 __attribute__((vector_size(64), aligned(sizeof(gcp_real)), may_alias));
GCPI_VECTOR(gcpi_v128, GCPI_PLAIN, gcpi_v16)
GCPI_KERNEL(gcpi_v128_12x1, GCPI_PLAIN, gcpi_v16, 12, 1)
GCPI_KERNEL(gcpi_v128_6x2, GCPI_PLAIN, gcpi_v16, 6, 2)
GCPI_KERNEL(gcpi_v128_4x3, GCPI_PLAIN, gcpi_v16, 4, 3)
#endif
#if GCPI_X86
#define GCPI_AVX2 __attribute__((target("avx2,fma")))
#define GCPI_AVX512 __attribute__((target("avx512f,avx512vl,fma")))
GCPI_VECTOR(gcpi_avx2, GCPI_HOT GCPI_AVX2, gcpi_v32)
GCPI_KERNEL(gcpi_avx2_12x1, GCPI_HOT GCPI_AVX2, gcpi_v32, 12, 1)
GCPI_KERNEL(gcpi_avx2_6x2, GCPI_HOT GCPI_AVX2, gcpi_v32, 6, 2)
GCPI_KERNEL(gcpi_avx2_4x3, GCPI_HOT GCPI_AVX2, gcpi_v32, 4, 3)
GCPI_VECTOR(gcpi_avx512, GCPI_HOT GCPI_AVX512, gcpi_v64)
GCPI_KERNEL(gcpi_avx512_8x1, GCPI_HOT GCPI_AVX512, gcpi_v64, 8, 1)
GCPI_KERNEL(gcpi_avx512_8x2, GCPI_HOT GCPI_AVX512, gcpi_v64, 8, 2)
GCPI_KERNEL(gcpi_avx512_8x3, GCPI_HOT GCPI_AVX512, gcpi_v64, 8, 3)
GCPI_KERNEL(gcpi_avx512_5x4, GCPI_HOT GCPI_AVX512, gcpi_v64, 5, 4)
GCPI_KERNEL(gcpi_avx512_6x4, GCPI_HOT GCPI_AVX512, gcpi_v64, 6, 4)
#endif
GCPI_VECTOR(gcpi_scalar, GCPI_PLAIN, gcp_real)
GCPI_KERNEL(gcpi_scalar_12x1, GCPI_PLAIN, gcp_real, 12, 1)
GCPI_KERNEL(gcpi_scalar_6x2, GCPI_PLAIN, gcp_real, 6, 2)
GCPI_KERNEL(gcpi_scalar_4x3, GCPI_PLAIN, gcp_real, 4, 3)

typedef struct gcpi_simd {
    int lanes, nv; /* values per vector; most vectors in a tile's row */
    int mr[4];     /* rows of the kernels that are 1, 2, 3, 4 vectors wide */
    gcpi_kernel *kernel[4];
    gcpi_copier *copy;
    gcpi_turner *turn;
    gcpi_stripper *depth[GCPI_STRIPS], *depth_back[GCPI_STRIPS]; /* strips of 8, 4, 1 pixels */
    gcpi_kernel *five; /* 5 x 4: wastes no row where the count is 10, 20, 40 */
} gcpi_simd;

#define GCPI_STRIPPERS(ISA) {ISA##_depth_8, ISA##_depth_4, ISA##_depth_1}, {ISA##_back_8, ISA##_back_4, ISA##_back_1}

/* An instruction set whose tiles are 12, 6 and 4 rows by 1, 2 and 3 vectors. */
#define GCPI_SIMD(ISA, BYTES) \
    { (BYTES) / (int)sizeof(gcp_real), 3, { 12, 6, 4, 0 }, { ISA##_12x1, ISA##_6x2, ISA##_4x3, NULL }, \
      ISA##_copy, ISA##_turn, GCPI_STRIPPERS(ISA), NULL }

static gcpi_simd gcpi_simd_of(int isa)
{
    static const gcpi_simd scalar = GCPI_SIMD(gcpi_scalar, (int)sizeof(gcp_real));
#if GCPI_X86
    static const gcpi_simd avx512 = {
        64 / (int)sizeof(gcp_real), 4, { 8, 8, 8, 6 },
        { gcpi_avx512_8x1, gcpi_avx512_8x2, gcpi_avx512_8x3, gcpi_avx512_6x4 },
        gcpi_avx512_copy, gcpi_avx512_turn, GCPI_STRIPPERS(gcpi_avx512), gcpi_avx512_5x4 };
    static const gcpi_simd avx2 = GCPI_SIMD(gcpi_avx2, 32);
    if (isa == GCP_ISA_AVX512) return avx512;
    if (isa == GCP_ISA_AVX2) return avx2;
#endif
#if GCPI_VECTORS
    static const gcpi_simd v128 = GCPI_SIMD(gcpi_v128, 16);
    if (isa != GCP_ISA_SCALAR) return v128;
#endif
    (void)isa;
    return scalar;
}

static int gcpi_isa_best(void)
{
#if GCPI_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("fma"))
        return GCP_ISA_AVX512;
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) return GCP_ISA_AVX2;
#endif
    return GCPI_VECTORS ? GCP_ISA_V128 : GCP_ISA_SCALAR;
}

/* Runs tasks, in several goes where an int cannot count them: a task's number is *base + index. */
static void gcpi_par_run(const gcpi_par *par, ptrdiff_t tasks, ptrdiff_t *base,
                         void (*task)(void *arg, int index, int worker), void *arg)
{
    for (*base = 0; *base < tasks; *base += INT32_MAX)
        par->parallel_for(par->context, (int)GCPI_MIN(tasks - *base, (ptrdiff_t)INT32_MAX), task, arg);
}

/* ==== src/kernels/columns.h ==== */

/* What all products share: columns, cut into panels; windows of pixels. A view says what pixels of x a block of
   outputs reads.

   One idea serves all products, the gather product: a tile of MR rows, each known by a pointer, times NV vectors of
   columns, summed over three nested loops with a stride each. Nothing is lowered to an im2col matrix.
     forward            rows = output pixels, columns = output channels, loops = (ky, kx, ci)
     backward data      the same on dy with flipped weights, one call per stride phase
     backward weights   rows = output channels, columns = a run of (kx, ci), loops = (image, y, x)
     matrix product     a 1x1 convolution, or its backward weights where A is stored transposed
   Borders cost nothing inside the loops: each task copies the zero-padded window of x it needs, and because that copy
   is dense, kx and ci merge into one contiguous run. Work is cut by shape and instruction set only, so results do not
   depend on the threads. */

static int gcpi_min(int a, int b) { return a < b ? a : b; }
static int gcpi_max(int a, int b) { return a > b ? a : b; }
static int gcpi_ceil(int a, int b) { return a / b + (a % b != 0); }
static int gcpi_even(int total, int most) { return gcpi_ceil(total, gcpi_ceil(total, most)); }
/* the greatest common divisor */
static int gcpi_divisor(int a, int b)
{
    while (b) {
        int r = a % b;
        a = b;
        b = r;
    }
    return a;
}
static ptrdiff_t gcpi_line(ptrdiff_t n) { return (n + GCPI_LINE - 1) / GCPI_LINE * GCPI_LINE; }

/* Bytes of scratch for `shared` values, and `worker` values per worker; SIZE_MAX where that is more than can be
   addressed. */
static size_t gcpi_scratch_bytes(ptrdiff_t shared, ptrdiff_t worker, const gcpi_par *par)
{
    return gcpi_bytes_from(((double)shared + (double)worker * par->threads) * sizeof(gcp_real));
}

/* steps * elements, capped. A stride that does not fit belongs to an axis with one position, so it is never taken. */
static ptrdiff_t gcpi_stride(int64_t steps, int64_t elements)
{
    int64_t all = steps * elements;
    return (ptrdiff_t)GCPI_MAX(GCPI_MIN(all, (int64_t)PTRDIFF_MAX), -(int64_t)PTRDIFF_MAX);
}

/* memcpy for so few values that a call would cost more than the copy. */
GCPI_FAST static void gcpi_copy(gcp_real *to, const gcp_real *from, int count)
{
    int i = 0;
    for (; i + 8 <= count; i += 8) memcpy(to + i, from + i, 8 * sizeof *to);
    if (count & 4) memcpy(to + i, from + i, 4 * sizeof *to), i += 4;
    if (count & 2) memcpy(to + i, from + i, 2 * sizeof *to), i += 2;
    if (count & 1) to[i] = from[i];
}

/* Prefetches the cache lines of `count` values from p + skip on. */
GCPI_BODY void gcpi_fetch(const gcp_real *p, ptrdiff_t skip, ptrdiff_t count)
{
    uintptr_t line = GCPI_LINE * sizeof *p, at = (uintptr_t)p + (size_t)skip * sizeof *p,
              end = at + (size_t)count * sizeof *p;
    for (; at < end; at += line) GCPI_PREFETCH_READ((const void *)at);
}

/* Columns come in panels of at most nv vectors, all nearly equally wide. */
typedef struct gcpi_columns {
    int count, lanes, vectors, panels;
} gcpi_columns;

static gcpi_columns gcpi_columns_of(int count, const gcpi_simd *simd)
{
    gcpi_columns c;
    c.count = count;
    c.lanes = simd->lanes;
    c.vectors = gcpi_ceil(count, simd->lanes);
    c.panels = gcpi_ceil(c.vectors, simd->nv);
    return c;
}

/* A panel's first column, its vectors, and its columns with (width) and without padding. */
typedef struct gcpi_panel {
    int first, nv, width, cols;
} gcpi_panel;

static gcpi_panel gcpi_panel_of(const gcpi_columns *c, int index)
{
    gcpi_panel p;
    int begin = (int)((ptrdiff_t)index * c->vectors / c->panels);
    int end = (int)((ptrdiff_t)(index + 1) * c->vectors / c->panels);
    p.first = begin * c->lanes;
    p.nv = end - begin;
    p.width = p.nv * c->lanes;
    p.cols = gcpi_min(p.width, c->count - p.first);
    return p;
}

/* The kernel for panels of nv vectors and, over all tiles, `rows` rows. */
static gcpi_kernel *gcpi_kernel_of(const gcpi_simd *simd, int nv, int rows, int *mr)
{
    int five = nv == 4 && rows % 5 == 0 && rows % 6 != 0;
    *mr = five ? 5 : simd->mr[nv - 1];
    return five ? simd->five : simd->kernel[nv - 1];
}

/* Runs a kernel on a tile; where its panel is padded, c goes through a full-width copy. */
GCPI_FAST static void gcpi_run_tile(gcpi_kernel *kernel, const gcpi_tile *t, const gcpi_panel *p)
{
    gcp_real wide[GCPI_MR_MAX][GCPI_NR_MAX], *c[GCPI_MR_MAX];
    if (p->cols == p->width) {
        kernel(t);
        return;
    }
    gcpi_tile padded = *t;
    padded.c = c, padded.first = 0;
    for (int i = 0; i < GCPI_MR_MAX; i++) c[i] = wide[i < t->rows ? i : 0];
    for (int i = 0; i < t->rows && !t->start; i++) gcpi_copy(wide[i], t->c[i] + t->first, p->cols);
    kernel(&padded);
    for (int i = 0; i < t->rows; i++) gcpi_copy(t->c[i] + t->first, wide[i], p->cols);
}

typedef struct gcpi_view {
    int n, h, w, channels;              /* source images; channels of one group */
    ptrdiff_t xs[3], xc;                /* steps to the next image, row, pixel, and channel */
    int oy, ox, sy, sx, ky, kx, dy, dx; /* row y reads source rows oy + y*sy + k*dy, k < ky */
    int ho, wo;
    /* set by gcpi_view_cut */
    int bn, bh, bw, cn, ch, cw; /* images, rows, columns of a block; blocks along each of them */
    ptrdiff_t chunks;           /* blocks in all */
    int direct, wh, ww;         /* x is read in place, or copied: wh x ww pixels an image */
    int runs, len;              /* per kernel row: contiguous runs, and their length */
    ptrdiff_t ws[3];            /* steps of the pixels that are read: image, row, pixel */
    ptrdiff_t window;           /* values in the copied window */
} gcpi_view;

typedef struct gcpi_block {
    int b, y, x, n, h, w;
} gcpi_block;

/* Values in the window of a block. Capped at INT32_MAX while the block is too large; the window of one pixel always
   fits (gcpi_conv_fits). */
static ptrdiff_t gcpi_view_window(gcpi_view *v)
{
    double values = (double)v->bn * v->channels;
    v->wh = (int)((int64_t)(v->bh - 1) * v->sy + (int64_t)(v->ky - 1) * v->dy + 1);
    v->ww = (int)((int64_t)(v->bw - 1) * v->sx + (int64_t)(v->kx - 1) * v->dx + 1);
    values *= (double)v->wh * v->ww;
    return values < INT32_MAX ? (ptrdiff_t)values : INT32_MAX;
}

static int gcpi_view_inside(const gcpi_view *v)
{
    return v->oy >= 0 && v->ox >= 0 &&
           (ptrdiff_t)v->oy + (ptrdiff_t)(v->ho - 1) * v->sy + (ptrdiff_t)(v->ky - 1) * v->dy < v->h &&
           (ptrdiff_t)v->ox + (ptrdiff_t)(v->wo - 1) * v->sx + (ptrdiff_t)(v->kx - 1) * v->dx < v->w;
}

/* Cuts the output into blocks of about `pixels`. Reading in place needs every pixel to exist, and
 * whole vectors (`lanes`) where x is the vector operand. */
static void gcpi_view_cut(gcpi_view *v, int pixels, int lanes)
{
    v->bw = gcpi_even(v->wo, pixels);
    v->bh = gcpi_even(v->ho, gcpi_max(1, pixels / v->wo));
    v->bn = v->bh < v->ho ? 1 : gcpi_even(v->n, gcpi_max(1, (int)(pixels / ((ptrdiff_t)v->ho * v->wo))));
    v->direct = lanes && gcpi_view_inside(v) && v->channels % lanes == 0;
    while (gcpi_view_window(v) > GCPI_WINDOW_MAX && !v->direct && v->bn * v->bh * v->bw > 1)
        if (v->bn > 1) v->bn = (v->bn + 1) / 2;
        else if (v->bh > 1) v->bh = (v->bh + 1) / 2;
        else v->bw = (v->bw + 1) / 2;
    v->cn = gcpi_ceil(v->n, v->bn);
    v->ch = gcpi_ceil(v->ho, v->bh);
    v->cw = gcpi_ceil(v->wo, v->bw);
    v->chunks = (ptrdiff_t)v->cn * v->ch * v->cw;
    v->ws[2] = v->direct ? v->xs[2] : v->channels;
    v->ws[1] = v->direct ? v->xs[1] : v->ww * v->ws[2];
    v->ws[0] = v->direct ? v->xs[0] : v->wh * v->ws[1];
    /* not in place: there merging would depend on the pitch, and scratch must not */
    int merge = v->dx == 1 && !v->direct && v->xc == 1;
    v->runs = merge ? 1 : v->kx;
    v->len = merge ? v->kx * v->channels : v->channels;
    v->window = v->direct ? 0 : gcpi_line(gcpi_view_window(v)) + GCPI_LINE; /* kernels read past the end */
}

static gcpi_block gcpi_view_block(const gcpi_view *v, ptrdiff_t index)
{
    gcpi_block k;
    k.x = (int)(index % v->cw) * v->bw;
    k.y = (int)(index / v->cw % v->ch) * v->bh;
    k.b = (int)(index / v->cw / v->ch) * v->bn;
    k.w = gcpi_min(v->bw, v->wo - k.x);
    k.h = gcpi_min(v->bh, v->ho - k.y);
    k.n = gcpi_min(v->bn, v->n - k.b);
    return k;
}

/* One row of the window: pixels first .. first + ww of a source row, zeros where there are none. */
GCPI_FAST static void gcpi_view_row(const gcpi_view *v, const gcp_real *x, ptrdiff_t first, gcp_real *out)
{
    ptrdiff_t c = v->channels, left = first < 0 ? -first : 0, end = v->w - first;
    if (left > v->ww) left = v->ww;
    if (end > v->ww) end = v->ww;
    if (end < left) end = left;
    memset(out, 0, (size_t)(left * c) * sizeof *out);
    memset(out + end * c, 0, (size_t)((v->ww - end) * c) * sizeof *out);
    if (v->xs[2] == c && end > left)
        memcpy(out + left * c, x + (first + left) * c, (size_t)((end - left) * c) * sizeof *out);
    else
        for (ptrdiff_t i = left; i < end; i++) memcpy(out + i * c, x + (first + i) * v->xs[2], (size_t)c * sizeof *out);
}

/* Whether kernel rows first .. last - 1 read row y of the window of block k. */
static int gcpi_view_reads(const gcpi_view *v, const gcpi_block *k, int y, int first, int last)
{
    for (int ky = first; ky < last; ky++) {
        int from = y - ky * v->dy;
        if (from >= 0 && from % v->sy == 0 && from / v->sy < k->h) return 1;
    }
    return 0;
}

/* Returns where the pixels of a block are read with the steps v->ws: in x itself, or in `window`, to which it copies
 * those that kernel rows first .. last - 1 read. */
GCPI_FAST static const gcp_real *gcpi_view_load(const gcpi_view *v, const gcp_real *x, const gcpi_block *k, int first,
                                                int last, gcp_real *window)
{
    ptrdiff_t y0 = v->oy + (ptrdiff_t)k->y * v->sy, x0 = v->ox + (ptrdiff_t)k->x * v->sx;
    if (v->direct) return x + k->b * v->xs[0] + y0 * v->xs[1] + x0 * v->xs[2];
    for (int b = 0; b < k->n; b++)
        for (int y = 0; y < v->wh; y++) {
            gcp_real *out = window + b * v->ws[0] + y * v->ws[1];
            if (!gcpi_view_reads(v, k, y, first, last)) continue;
            if (y0 + y < 0 || y0 + y >= v->h) memset(out, 0, (size_t)v->ws[1] * sizeof *out);
            else gcpi_view_row(v, x + (k->b + b) * v->xs[0] + (y0 + y) * v->xs[1], x0, out);
        }
    memset(window + k->n * v->ws[0], 0, GCPI_LINE * sizeof *window);
    return window;
}

/* ==== src/kernels/gather.h ==== */

/* The gather product: convolution forward and backward data, A times B. */

/* Called with finished pixels of a row of y, `count` channels from `first` on, while they are in cache. */
typedef struct gcpi_end {
    void (*run)(void *arg, size_t pixel, size_t pixels, int first, int count);
    void *arg;
} gcpi_end;

typedef struct gcpi_gather {
    gcpi_view v;
    const gcp_real *x, *w, *bias;
    gcp_real *y;
    int accumulate, groups;
    ptrdiff_t ws[4], wfirst;          /* steps of w: ky, kx, channel, column; its start */
    ptrdiff_t ys[3], yfirst;          /* steps of y: image, row, pixel */
    ptrdiff_t xgroup, wgroup, ygroup; /* steps to the next group */
    const gcpi_end *end;              /* may be NULL; counts pixels of the view's output */
    /* set by gcpi_gather_plan */
    gcpi_simd simd;
    gcpi_columns columns; /* output channels; planar: pixels of a row */
    /* planar: values of packed w; shared: these, and a panel of starting values for each row of the tiles */
    ptrdiff_t weights, shared;
    /* cols: output channels; tile: so many are packed side by side: a kernel's rows, or all where kernels differ */
    int planar, cols, tile;
    int by, bx, bj;           /* a block of the sum: kernel rows, runs, terms of a run */
    int panels, sets;         /* panels packed together (a set); how many sets */
    int resident;             /* a set is packed for the whole sum, and kept for the next tasks */
    ptrdiff_t pack, worker;   /* values: packed; in all of a worker's scratch */
    ptrdiff_t base;           /* number of the task at index 0 (gcpi_par_run) */
    gcp_real *scratch;
} gcpi_gather;

/* out[r][c] = w[r*rs + c*cs], rows padded with zeros to `width`; rs or cs is 1. */
GCPI_FAST static void gcpi_pack_rows(const gcpi_simd *simd, gcp_real *out, int width, int cols, const gcp_real *w,
                                     int rows, ptrdiff_t rs, ptrdiff_t cs)
{
    for (int r0 = 0; r0 < rows; r0 += GCPI_PACK_ROWS) {
        int r1 = gcpi_min(rows, r0 + GCPI_PACK_ROWS);
        if (cs != 1) simd->turn(out + (ptrdiff_t)r0 * width, width, r1 - r0, cols, w + r0, cs);
        for (int r = r0; r < r1; r++) {
            if (cs == 1) memcpy(out + (ptrdiff_t)r * width, w + r * rs, (size_t)cols * sizeof *out);
            memset(out + (ptrdiff_t)r * width + cols, 0, (size_t)(width - cols) * sizeof *out);
        }
    }
}

/* Planar: where few output channels would leave vector lanes empty, a vector holds pixels of a row
 * instead. The window is copied as [row][channel][x], so (ky, channel) is one evenly spaced run,
 * and output channels are the rows of the tile. */

/* Whether it fills enough lanes to pay for transposing x and y. */
static int gcpi_planar_pays(const gcpi_gather *g, int cols)
{
    int lanes = g->simd.lanes, mr;
    gcpi_kernel_of(&g->simd, g->simd.nv, cols, &mr);
    double across = cols / ((double)gcpi_ceil(cols, lanes) * lanes);
    double along = g->v.wo / ((double)gcpi_ceil(g->v.wo, lanes) * lanes) * cols / ((double)gcpi_ceil(cols, mr) * mr);
    return g->groups == 1 && g->v.sx == 1 && g->v.xc == 1 && g->v.wo > lanes && g->v.ky * g->v.kx >= 9 &&
           g->v.channels > 0 && cols <= GCPI_PLANAR_COLS && along > 1.05 * across;
}

static size_t gcpi_planar_plan(gcpi_gather *g, int cols, const gcpi_par *par)
{
    gcpi_view_cut(&g->v, 1024, 0);
    g->v.bn = 1;
    g->v.cn = g->v.n;
    g->v.chunks = (ptrdiff_t)g->v.cn * g->v.ch * g->v.cw;
    g->sets = 1;
    g->cols = cols;
    g->columns = gcpi_columns_of(g->v.bw, &g->simd);
    gcpi_kernel_of(&g->simd, gcpi_panel_of(&g->columns, 0).nv, cols, &g->tile);
    if (g->columns.vectors % g->columns.panels) g->tile = cols;
    g->pack = gcpi_line((ptrdiff_t)g->v.wh * g->v.ww * g->v.channels) + GCPI_NR_MAX;
    g->worker = g->pack + gcpi_line((ptrdiff_t)cols * g->columns.vectors * g->simd.lanes) + GCPI_LINE;
    g->weights = gcpi_line((ptrdiff_t)g->v.ky * g->v.kx * g->v.channels * cols);
    /* starting values also for rows of the last tile that are not stored */
    g->shared = g->weights + (cols + GCPI_MR_MAX) * GCPI_NR_MAX;
    return gcpi_scratch_bytes(g->shared, g->worker, par);
}

GCPI_FAST static void gcpi_planar_load(const gcpi_gather *g, const gcpi_block *k, gcp_real *window)
{
    const gcpi_view *v = &g->v;
    ptrdiff_t y0 = v->oy + (ptrdiff_t)k->y * v->sy, x0 = v->ox + k->x, row = (ptrdiff_t)v->channels * v->ww;
    ptrdiff_t left = x0 < 0 ? -x0 : 0, end = v->w - x0 < v->ww ? v->w - x0 : v->ww;
    for (ptrdiff_t y = 0; y < v->wh; y++) {
        gcp_real *to = window + y * row;
        int exists = y0 + y >= 0 && y0 + y < v->h && end > left;
        if (!exists || left > 0 || end < v->ww) memset(to, 0, (size_t)row * sizeof *to);
        if (exists)
            g->simd.turn(to + left, v->ww, v->channels, (int)(end - left),
                         g->x + k->b * v->xs[0] + (y0 + y) * v->xs[1] + (x0 + left) * v->xs[2], v->xs[2]);
    }
    memset(window + v->wh * row, 0, GCPI_NR_MAX * sizeof *window); /* kernels read past the end */
}

/* One output row of the block of pixels, into the planes at `out`: one plane per output channel. */
static void gcpi_planar_row(const gcpi_gather *g, const gcp_real *window, gcp_real *out, ptrdiff_t plane)
{
    const gcpi_view *v = &g->v;
    const gcp_real *start = g->scratch + g->weights, *w = g->scratch;
    ptrdiff_t terms = (ptrdiff_t)v->ky * v->kx * v->channels;
    const gcp_real *a[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_tile t;
    t.a = a, t.c = c;
    /* ky and channels make one run, unless reuse across kx in L1 is worth more */
    int whole = v->dy == 1 && (ptrdiff_t)v->ky * v->channels * v->ww <= GCPI_L1_HALF;
    t.n[0] = whole ? 1 : v->ky, t.n[1] = v->kx, t.n[2] = whole ? v->ky * v->channels : v->channels;
    t.bs[2] = v->ww, t.bs[1] = v->dx, t.bs[0] = (ptrdiff_t)v->dy * v->channels * v->ww;
    t.ss = GCPI_NR_MAX;
    for (int p = 0; p < g->columns.panels; p++) {
        gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        int mr;
        gcpi_kernel *kernel = gcpi_kernel_of(&g->simd, panel.nv, g->cols, &mr);
        t.b = window + panel.first;
        t.first = panel.first;
        for (int r = 0; r < g->cols; r += mr) {
            int side = r % g->tile, from = r - side;
            t.rows = gcpi_min(mr, g->cols - r);
            t.as[2] = gcpi_min(g->tile, g->cols - from), t.as[0] = t.as[2] * v->channels, t.as[1] = t.as[0] * v->ky;
            t.start = g->accumulate ? NULL : start + r * GCPI_NR_MAX;
            for (int i = 0; i < mr; i++) {
                int row = i < t.rows ? i : 0;
                a[i] = w + from * terms + side + row;
                c[i] = out + (r + row) * plane;
            }
            kernel(&t);
        }
    }
}

static void gcpi_gather_end(const gcpi_gather *g, const gcpi_block *k, int first, int count)
{
    for (int b = k->b; g->end && b < k->b + k->n; b++)
        for (int y = k->y; y < k->y + k->h; y++)
            g->end->run(g->end->arg, ((size_t)b * (size_t)g->v.ho + (size_t)y) * (size_t)g->v.wo + (size_t)k->x,
                        (size_t)k->w, first, count);
}

static void gcpi_planar_task(void *arg, int index, int worker)
{
    const gcpi_gather *g = (const gcpi_gather *)arg;
    const gcpi_view *v = &g->v;
    gcpi_block k = gcpi_view_block(v, g->base + index);
    gcp_real *window = g->scratch + g->shared + worker * g->worker;
    gcp_real *out = window + g->pack;
    ptrdiff_t plane = (ptrdiff_t)g->columns.vectors * g->simd.lanes;
    gcpi_planar_load(g, &k, window);
    for (int py = 0; py < k.h; py++) {
        gcp_real *y = g->y + g->yfirst + k.b * g->ys[0] + (k.y + py) * g->ys[1] + k.x * g->ys[2];
        if (g->accumulate) g->simd.turn(out, plane, g->cols, k.w, y, g->ys[2]);
        gcpi_planar_row(g, window + (ptrdiff_t)py * v->sy * v->channels * v->ww, out, plane);
        g->simd.turn(y, g->ys[2], k.w, g->cols, out, plane);
    }
    gcpi_gather_end(g, &k, 0, g->cols);
}

static void gcpi_planar_run(gcpi_gather *g, const gcpi_par *par)
{
    gcp_real *out = g->scratch;
    for (int first = 0, n; first < g->cols; first += n) {
        n = gcpi_min(g->tile, g->cols - first);
        for (int t = 0; t < g->v.kx * g->v.ky; t++, out += (ptrdiff_t)g->v.channels * n)
            gcpi_pack_rows(&g->simd, out, n, n,
                           g->w + g->wfirst + t % g->v.ky * g->ws[0] + t / g->v.ky * g->ws[1] + first * g->ws[3],
                           g->v.channels, g->ws[2], g->ws[3]);
    }
    out = g->scratch + g->weights;
    for (ptrdiff_t i = 0; i < g->shared - g->weights; i++)
        out[i] = g->bias && i / GCPI_NR_MAX < g->cols ? g->bias[i / GCPI_NR_MAX] : 0;
    gcpi_par_run(par, g->v.chunks, &g->base, gcpi_planar_task, g);
}

typedef struct gcpi_kblock {
    int y, x, j, ny, nx, nj;
} gcpi_kblock;

static void gcpi_gather_cut(gcpi_gather *g)
{
    int pixels = 512;
    do {
        gcpi_view_cut(&g->v, pixels, 1);
        pixels /= 2;
    } while (pixels >= 96 && (double)g->v.chunks * g->sets * g->groups < (double)GCPI_TASKS);
}

/* Chooses all block sizes; returns the bytes of scratch. */
static size_t gcpi_gather_plan(gcpi_gather *g, int cols, const gcpi_par *par)
{
    g->simd = gcpi_simd_of(par->isa);
    g->planar = gcpi_planar_pays(g, cols);
    if (g->planar) return gcpi_planar_plan(g, cols, par);
    g->columns = gcpi_columns_of(cols, &g->simd);
    g->sets = 1;
    gcpi_gather_cut(g);
    ptrdiff_t row = (ptrdiff_t)g->v.runs * g->v.len, all = g->v.ky * row;
    int width = gcpi_ceil(g->columns.vectors, g->columns.panels) * g->simd.lanes;
    g->by = g->bx = g->bj = 1;
    if (row > 0) {
        g->bj = gcpi_even(g->v.len, GCPI_K_BLOCK);
        g->bx = gcpi_even(g->v.runs, gcpi_max(1, GCPI_K_BLOCK / g->v.len));
        g->by = gcpi_even(g->v.ky, gcpi_max(1, (int)(GCPI_K_BLOCK / row)));
    }
    g->resident = all <= GCPI_RESIDENT_MAX / width;
    ptrdiff_t terms = g->resident ? all : (ptrdiff_t)g->by * g->bx * g->bj;
    ptrdiff_t most = terms ? GCPI_PACK_MAX / (terms * width) : g->columns.panels;
    g->panels = gcpi_even(g->columns.panels, gcpi_max(1, most < g->columns.panels ? (int)most : g->columns.panels));
    g->sets = gcpi_ceil(g->columns.panels, g->panels);
    gcpi_gather_cut(g);
    g->pack = gcpi_line((terms + 1) * g->panels * width);
    g->worker = GCPI_LINE + g->pack + g->v.window;
    return gcpi_scratch_bytes(0, g->worker, par);
}

/* Packs one panel of one block of the sum. */
static void gcpi_gather_pack(const gcpi_gather *g, const gcp_real *w, const gcpi_kblock *k, const gcpi_panel *p,
                             gcp_real *out)
{
    int channels = g->v.channels;
    for (int y = k->y; y < k->y + k->ny; y++)
        for (int x = k->x; x < k->x + k->nx; x++)
            for (int j = x * g->v.len + k->j, end = j + k->nj, rows; j < end; j += rows) {
                rows = gcpi_min(end - j, channels - j % channels);
                gcpi_pack_rows(&g->simd, out, p->width, p->cols,
                               w + y * g->ws[0] + j / channels * g->ws[1] + j % channels * g->ws[2] +
                                   p->first * g->ws[3],
                               rows, g->ws[2], g->ws[3]);
                out += (ptrdiff_t)rows * p->width;
            }
}

/* All pixels of a chunk, for the panels of a set and one block of the sum. */
typedef struct gcpi_sweep {
    const gcpi_gather *g;
    gcpi_block block;
    gcpi_kblock k;
    const gcp_real *x, *packed, *start; /* start: see gcpi_tile */
    gcp_real *y;
    int panel, panel_end;
} gcpi_sweep;

/* a and c hold GCPI_ROWS pointers. Those from `rows` on are never stored to, but must be readable. */
GCPI_FAST static void gcpi_sweep_panels(const gcpi_sweep *s, const gcp_real *const *a, gcp_real *const *c, int rows)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    int base = gcpi_panel_of(&g->columns, s->panel).first;
    ptrdiff_t terms = (ptrdiff_t)s->k.ny * s->k.nx * s->k.nj;
    gcpi_tile t;
    for (int p = s->panel; p < s->panel_end; p++) {
        gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        int mr = g->simd.mr[panel.nv - 1];
        t.n[0] = s->k.ny, t.n[1] = s->k.nx, t.n[2] = s->k.nj;
        t.as[0] = v->dy * v->ws[1], t.as[1] = v->dx * v->ws[2], t.as[2] = v->xc;
        t.bs[2] = panel.width, t.bs[1] = t.bs[2] * t.n[2], t.bs[0] = t.bs[1] * t.n[1];
        t.b = s->packed + terms * (panel.first - base);
        t.start = s->start ? s->start + (panel.first - base) : NULL, t.ss = 0;
        t.first = panel.first;
        for (int r = 0; r < rows; r += mr) {
            t.rows = gcpi_min(mr, rows - r);
            t.a = a + r, t.c = c + r;
            gcpi_run_tile(g->simd.kernel[panel.nv - 1], &t, &panel);
        }
    }
}

/* Where x is read in place, this prefetches the pixels after these rows: the hardware does not recognise a few short
 * rows at a time as a stream. Pixels that lie side by side are fetched in one go, with fewer instructions. Always
 * inlined, because gcc drops the call of a function that only prefetches. */
GCPI_BODY void gcpi_sweep_ahead(const gcp_real *const *a, ptrdiff_t step, ptrdiff_t terms)
{
    const ptrdiff_t far = GCPI_ROWS * step;
    if (step == terms) gcpi_fetch(a[0], far, far);
    else for (int i = 0; i < GCPI_ROWS; i++) gcpi_fetch(a[i], far, terms);
}

GCPI_FAST static void gcpi_sweep_pixels(const gcpi_sweep *s)
{
    const gcpi_gather *g = s->g;
    const gcpi_view *v = &g->v;
    const gcp_real *a[GCPI_ROWS],
        *first = s->x + s->k.y * v->dy * v->ws[1] + s->k.x * v->dx * v->ws[2] + s->k.j * v->xc;
    gcp_real *c[GCPI_ROWS];
    const ptrdiff_t xstep = v->sx * v->ws[2], ystep = g->ys[2];
    const int width = s->block.w, ahead = v->direct && GCPI_ROWS * s->k.nj <= 2 * GCPI_L1_HALF;
    int rows = 0;
    for (int line = 0; line < s->block.n * s->block.h; line++) {
        int b = line / s->block.h, py = line % s->block.h;
        const gcp_real *x = first + b * v->ws[0] + py * v->sy * v->ws[1];
        gcp_real *y = s->y + (s->block.b + b) * g->ys[0] + (s->block.y + py) * g->ys[1] + s->block.x * ystep;
        for (int px = 0; px < width; px++) {
            a[rows] = x + px * xstep, c[rows] = y + px * ystep;
            if (++rows < GCPI_ROWS) continue;
            if (ahead) gcpi_sweep_ahead(a, xstep, s->k.nj);
            gcpi_sweep_panels(s, a, c, rows);
            rows = 0;
        }
    }
    for (int i = rows; rows && i < GCPI_ROWS; i++) a[i] = a[0], c[i] = c[0];
    if (rows) gcpi_sweep_panels(s, a, c, rows);
}

/* Packs the panels of a set for the block s->k, at `out`. */
static void gcpi_gather_pack_set(const gcpi_gather *g, const gcpi_sweep *s, const gcp_real *w, gcp_real *out)
{
    for (int p = s->panel; p < s->panel_end; p++) {
        gcpi_panel panel = gcpi_panel_of(&g->columns, p);
        gcpi_gather_pack(g, w, &s->k, &panel, out);
        out += (ptrdiff_t)s->k.ny * s->k.nx * s->k.nj * panel.width;
    }
}

/* The starting values of a set: the bias, or zeros. */
static void gcpi_gather_start(const gcpi_gather *g, int group, int first, int width, gcp_real *out)
{
    for (int j = 0; j < width; j++)
        out[j] = g->bias && first + j < g->columns.count ? g->bias[group * g->columns.count + first + j] : 0;
}

static void gcpi_gather_task(void *arg, int index, int worker)
{
    const gcpi_gather *g = (const gcpi_gather *)arg;
    const gcpi_view *v = &g->v;
    gcp_real *scratch = g->scratch + worker * g->worker, *start = scratch + GCPI_LINE;
    /* last: the set whose weights this worker has packed */
    ptrdiff_t chunk = (g->base + index) % v->chunks, set = (g->base + index) / v->chunks, last;
    int group = (int)(set / g->sets);
    const gcp_real *w = g->w + g->wfirst + group * g->wgroup;
    gcpi_sweep s;
    s.g = g;
    s.panel = (int)(set % g->sets) * g->panels;
    s.panel_end = gcpi_min(g->columns.panels, s.panel + g->panels);
    int first = gcpi_panel_of(&g->columns, s.panel).first;
    int width = gcpi_panel_of(&g->columns, s.panel_end).first - first;
    s.block = gcpi_view_block(v, chunk);
    s.x = gcpi_view_load(v, g->x + group * g->xgroup, &s.block, 0, v->ky, start + g->pack);
    s.y = g->y + g->yfirst + group * g->ygroup;
    memcpy(&last, scratch, sizeof last);
    int packed = g->resident && last == set; /* by an earlier task of this worker */
    memcpy(scratch, &set, sizeof set);
    if (!packed) gcpi_gather_start(g, group, first, width, start);
    s.start = g->accumulate ? NULL : start;
    gcp_real *out = start + width;
    for (s.k.y = 0; s.k.y < v->ky; s.k.y += g->by)
        for (s.k.x = 0; s.k.x < v->runs; s.k.x += g->bx)
            for (s.k.j = 0; s.k.j == 0 || s.k.j < v->len; s.k.j += g->bj) {
                s.k.ny = gcpi_min(g->by, v->ky - s.k.y);
                s.k.nx = gcpi_min(g->bx, v->runs - s.k.x);
                s.k.nj = gcpi_min(g->bj, v->len - s.k.j);
                if (!packed) gcpi_gather_pack_set(g, &s, w, out);
                s.packed = out;
                gcpi_sweep_pixels(&s);
                s.start = NULL;
                if (g->resident) out += (ptrdiff_t)s.k.ny * s.k.nx * s.k.nj * width;
            }
    gcpi_gather_end(g, &s.block, group * g->columns.count + first, gcpi_min(width, g->columns.count - first));
}

static void gcpi_gather_run(gcpi_gather *g, void *scratch, const gcpi_par *par)
{
    g->scratch = (gcp_real *)scratch;
    if (g->planar) {
        gcpi_planar_run(g, par);
        return;
    }
    const ptrdiff_t none = -1;
    for (int i = 0; i < par->threads; i++) memcpy(g->scratch + i * g->worker, &none, sizeof none);
    gcpi_par_run(par, g->v.chunks * g->sets * g->groups, &g->base, gcpi_gather_task, g);
}

/* ==== src/kernels/outer.h ==== */

/* The outer product: convolution backward weights, transposed A times B. */

typedef struct gcpi_outer { /* d[row][t, j] = sum over pixels p of e[p][row] * x[p + t][j] */
    gcpi_view v;
    const gcp_real *x, *e;
    gcp_real *d;
    int rows, groups, accumulate;
    ptrdiff_t es[3], ds; /* steps of e: image, row, pixel; step of d: row */
    ptrdiff_t xgroup, egroup, dgroup;
    int turned;    /* d is stored as [j][row]; for one group only */
    /* set by gcpi_outer_plan */
    gcpi_simd simd;
    gcpi_columns columns;         /* of one run */
    int splits, shared;           /* private sums of blocks of pixels; shared: d itself is the only one */
    int packed;                   /* rows of e are copied side by side */
    /* for few channels of x: rows are the elements of x under the kernel, columns are e's */
    int swapped;
    int height, width;            /* of a sum */
    int part, parts, unit, units; /* rows of a task, their cuts; panels of a task, their cuts */
    ptrdiff_t sum, worker;        /* values: in a sum; in a worker's scratch */
    ptrdiff_t base;               /* number of the task at index 0 (gcpi_par_run) */
    gcp_real *scratch;
} gcpi_outer;

/* e is packed as [rows / 48][pixel][48]; the last block is as wide as the rows that are left. At the pitch of e, pixels
 * would compete for the same cache sets. An extra line after each block spreads them. */
static ptrdiff_t gcpi_outer_block(ptrdiff_t pixels) { return pixels * GCPI_OUTER_ROWS + GCPI_LINE; }

/* Cuts rows and panels into enough tasks, with as few repeated copies as possible. Each unit of panels copies the rows
 * again. Each task copies its window of x; where x is read in place, each part of the rows reads it once. Scratch
 * depends on the parts, so they depend on the shape only, not on the pitch of x. */
static void gcpi_outer_cut(gcpi_outer *o)
{
    double best = 0;
    int blocks = gcpi_ceil(o->rows, GCPI_OUTER_ROWS),
        tasks = gcpi_ceil(GCPI_TASKS, o->splits * gcpi_min(o->groups, GCPI_TASKS));
    for (int most = gcpi_min(blocks, GCPI_OUTER_BLOCKS); most > 0; most--) {
        int part = gcpi_even(blocks, most), parts = gcpi_ceil(blocks, part), units = gcpi_ceil(tasks, parts);
        /* pixels of x per pixel of e, for the kernel rows of a unit */
        double window = (double)gcpi_min(o->v.sy, gcpi_ceil(o->v.ky, units)) * o->v.sx;
        double copied = (double)units * o->rows + parts * (o->v.direct ? 1 : units * window) * o->v.channels;
        if (best > 0 && copied >= best) continue;
        best = copied;
        o->part = part * GCPI_OUTER_ROWS;
    }
    o->parts = gcpi_ceil(o->rows, o->part);
    int panels = o->v.ky * o->v.runs * o->columns.panels;
    o->unit = gcpi_ceil(panels, gcpi_ceil(tasks, o->parts));
    o->units = gcpi_ceil(panels, o->unit);
}

/* Whether more lanes work once rows and columns change places: a run of x may be shorter than a vector where the rows
   of e fill one. */
static int gcpi_outer_swaps(const gcpi_outer *o)
{
    int lanes = o->simd.lanes, run = o->v.kx * o->v.channels, elements = o->v.ky * run, mr, mr_swapped;
    gcpi_columns c = gcpi_columns_of(run, &o->simd), swapped = gcpi_columns_of(o->rows, &o->simd);
    gcpi_kernel_of(&o->simd, gcpi_panel_of(&c, 0).nv, o->rows, &mr);
    gcpi_kernel_of(&o->simd, gcpi_panel_of(&swapped, 0).nv, elements, &mr_swapped);
    double now = run / ((double)c.vectors * lanes) * o->rows / ((double)gcpi_ceil(o->rows, mr) * mr);
    double then =
        o->rows / ((double)swapped.vectors * lanes) * elements / ((double)gcpi_ceil(elements, mr_swapped) * mr_swapped);
    return o->v.channels <= 4 && o->v.ky * o->v.kx > 1 && o->v.dx == 1 && o->groups == 1 && !o->turned &&
           (ptrdiff_t)elements * o->rows <= GCPI_PARTIAL_MAX / GCPI_TASKS && then > 1.3 * now;
}

/* Every task computes all rows and columns, into a private sum. */
static size_t gcpi_swapped_plan(gcpi_outer *o, const gcpi_par *par)
{
    gcpi_view_cut(&o->v, 2 * GCPI_OUTER_PIXELS, 0);
    o->columns = gcpi_columns_of(o->rows, &o->simd);
    o->splits = (int)GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS);
    o->height = o->v.ky * o->v.len, o->width = o->rows, o->turned = 1;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->packed = o->rows % o->simd.lanes != 0;         /* else e's rows are whole vectors: read in place */
    o->worker =
        (o->packed ? gcpi_line((ptrdiff_t)o->v.bn * o->v.bh * o->v.bw * o->rows) + GCPI_NR_MAX : 0) + o->v.window;
    return gcpi_scratch_bytes(o->sum * o->splits, o->worker, par);
}

static size_t gcpi_outer_plan(gcpi_outer *o, const gcpi_par *par)
{
    o->simd = gcpi_simd_of(par->isa);
    o->splits = GCPI_TASKS;
    o->swapped = gcpi_outer_swaps(o);
    if (o->swapped) return gcpi_swapped_plan(o, par);
    gcpi_view_cut(&o->v,
                  gcpi_max(GCPI_OUTER_PIXELS,
                           gcpi_min(2 * GCPI_OUTER_PIXELS, (int)(GCPI_OUTER_MAX / ((int64_t)o->rows + o->v.channels)))),
                  o->simd.lanes);
    o->columns = gcpi_columns_of(o->v.len, &o->simd);
    o->height = o->groups * o->rows, o->width = o->v.ky * o->v.runs * o->v.len;
    o->sum = gcpi_line((ptrdiff_t)o->height * o->width);
    o->splits = (int)GCPI_MIN(GCPI_MIN(o->v.chunks, (ptrdiff_t)GCPI_TASKS), GCPI_PARTIAL_MAX / o->sum);
    o->splits = gcpi_max(1, o->splits);
    gcpi_outer_cut(o);
    ptrdiff_t pixels = (ptrdiff_t)o->v.bn * o->v.bh * o->v.bw;
    o->packed = o->groups * o->rows > GCPI_OUTER_PLAIN;
    o->worker = (o->packed ? gcpi_ceil(o->part, GCPI_OUTER_ROWS) * gcpi_outer_block(pixels) : 0) + o->v.window;
    o->shared = o->splits == 1 && !o->turned;
    ptrdiff_t sums = o->shared ? 0 : o->sum * o->splits;
    return gcpi_scratch_bytes(sums, o->worker, par);
}

/* Packs the rows of e at the pixels of a chunk: see gcpi_outer_block. */
GCPI_FAST static const gcp_real *gcpi_outer_pack(const gcpi_outer *o, const gcp_real *e, const gcpi_block *k, int rows,
                                                 gcp_real *out)
{
    ptrdiff_t block = gcpi_outer_block((ptrdiff_t)k->n * k->h * k->w);
    for (int line = 0; line < k->n * k->h; line++) {
        const gcp_real *from = e + line / k->h * o->es[0] + line % k->h * o->es[1];
        for (int r = 0; r < rows; r += GCPI_OUTER_ROWS) {
            int width = gcpi_min(GCPI_OUTER_ROWS, rows - r);
            gcp_real *to = out + r / GCPI_OUTER_ROWS * block + (ptrdiff_t)line * k->w * width;
            if (width == o->es[2]) memcpy(to, from + r, (size_t)((ptrdiff_t)k->w * width) * sizeof *to);
            else if (width >= o->simd.lanes) o->simd.copy(to, from + r, k->w, o->es[2], width);
            else for (int i = 0; i < k->w; i++) gcpi_copy(to + i * width, from + i * o->es[2] + r, width);
        }
    }
    return out;
}

/* Where panel p begins in the pixels that gcpi_view_load gave; panels of all runs are counted in one sequence. */
static const gcp_real *gcpi_outer_source(const gcpi_outer *o, const gcp_real *x, int p, gcpi_panel *panel)
{
    int run = p / o->columns.panels;
    *panel = gcpi_panel_of(&o->columns, p % o->columns.panels);
    return x + run / o->v.runs * o->v.dy * o->v.ws[1] + run % o->v.runs * o->v.dx * o->v.ws[2] + panel->first;
}

/* Merges two loops into one where the outer loop's step goes on exactly where the inner loop ends. */
static void gcpi_tile_merge(gcpi_tile *t)
{
    for (int i = 1; i >= 0; i--) {
        if (t->as[i] != t->n[2] * t->as[2] || t->bs[i] != t->n[2] * t->bs[2]) return;
        t->n[2] *= t->n[i], t->n[i] = 1;
    }
}

/* Adds one chunk to `rows` rows of d, for panel p of x; e: the rows, packed or in place. */
GCPI_FAST static void gcpi_outer_panel(const gcpi_outer *o, const gcpi_block *k, const gcp_real *x, int p,
                                       const gcp_real *e, gcp_real *d, ptrdiff_t ds, int rows, int fresh)
{
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_view *v = &o->v;
    const gcp_real *rows_of_e[GCPI_MR_MAX];
    gcp_real *c[GCPI_MR_MAX];
    gcpi_panel panel;
    gcpi_tile t;
    t.a = rows_of_e, t.c = c, t.first = 0;
    t.start = fresh ? zero : NULL, t.ss = 0;
    t.b = gcpi_outer_source(o, x, p, &panel);
    int mr;
    /* no tile may span two packed blocks, and 5 does not divide 48 */
    gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, panel.nv, rows <= GCPI_OUTER_ROWS ? rows : 0, &mr);
    d += p / o->columns.panels * v->len + panel.first;
    for (int r = 0; r < rows; r += mr) {
        int first = r / GCPI_OUTER_ROWS * GCPI_OUTER_ROWS;
        const gcp_real *a = e + r;
        t.n[0] = k->n, t.n[1] = k->h, t.n[2] = k->w;
        t.bs[0] = v->ws[0], t.bs[1] = gcpi_stride(v->sy, v->ws[1]), t.bs[2] = gcpi_stride(v->sx, v->ws[2]);
        t.as[0] = o->es[0], t.as[1] = o->es[1], t.as[2] = o->es[2];
        if (o->packed) {
            a = e + r / GCPI_OUTER_ROWS * gcpi_outer_block((ptrdiff_t)k->n * k->h * k->w) + (r - first);
            t.as[2] = gcpi_min(GCPI_OUTER_ROWS, rows - first), t.as[1] = t.as[2] * k->w, t.as[0] = t.as[1] * k->h;
        }
        gcpi_tile_merge(&t);
        t.rows = gcpi_min(mr, rows - r);
        for (int i = 0; i < mr; i++) {
            rows_of_e[i] = i < t.rows ? a + i : a;
            c[i] = d + (i < t.rows ? r + i : r) * ds;
        }
        gcpi_run_tile(kernel, &t, &panel);
    }
}

static void gcpi_outer_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    const gcpi_view *v = &o->v;
    ptrdiff_t task = o->base + index;
    int split = (int)(task % o->splits), unit = (int)(task / o->splits % o->units),
        part = (int)(task / o->splits / o->units % o->parts);
    int group = (int)(task / o->splits / o->units / o->parts), shared = o->shared;
    int row = part * o->part, rows = gcpi_min(o->part, o->rows - row), width = o->width;
    int first = unit * o->unit, last = gcpi_min(first + o->unit, v->ky * v->runs * o->columns.panels);
    int row_panels = v->runs * o->columns.panels;
    ptrdiff_t ds = shared ? o->ds : width;
    gcp_real *packed = o->scratch + (shared ? 0 : o->splits * o->sum) + worker * o->worker,
             *window = packed + o->worker - v->window;
    gcp_real *d = shared ? o->d + group * o->dgroup : o->scratch + split * o->sum + (ptrdiff_t)group * o->rows * width;
    ptrdiff_t begin = split * v->chunks / o->splits, end = (split + 1) * v->chunks / o->splits;
    for (ptrdiff_t i = begin; i < end; i++) {
        gcpi_block k = gcpi_view_block(v, i);
        const gcp_real *x =
            gcpi_view_load(v, o->x + group * o->xgroup, &k, first / row_panels, (last - 1) / row_panels + 1, window);
        const gcp_real *e = o->e + group * o->egroup + row + k.b * o->es[0] + k.y * o->es[1] + k.x * o->es[2];
        if (o->packed) e = gcpi_outer_pack(o, e, &k, rows, packed);
        for (int p = first; p < last; p++)
            gcpi_outer_panel(o, &k, x, p, e, d + row * ds, ds, rows, i == begin && !(shared && o->accumulate));
    }
}

/* The columns of e at the pixels of a chunk: rows of e, in place or copied side by side. */
GCPI_FAST static const gcp_real *gcpi_swapped_columns(const gcpi_outer *o, const gcpi_block *k, ptrdiff_t *steps,
                                                      gcp_real *out)
{
    const gcp_real *e = o->e + k->b * o->es[0] + k->y * o->es[1] + k->x * o->es[2];
    memcpy(steps, o->es, sizeof o->es);
    if (!o->packed) return e;
    steps[2] = o->rows, steps[1] = k->w * steps[2], steps[0] = k->h * steps[1];
    for (int line = 0; line < k->n * k->h; line++) {
        const gcp_real *from = e + line / k->h * o->es[0] + line % k->h * o->es[1];
        for (int i = 0; i < k->w; i++) gcpi_copy(out + line * steps[1] + i * steps[2], from + i * o->es[2], o->rows);
    }
    return out;
}

static void gcpi_swapped_task(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    static const gcp_real zero[GCPI_NR_MAX] = {0};
    const gcpi_view *v = &o->v;
    gcp_real *columns = o->scratch + o->splits * o->sum + worker * o->worker, *window = columns + o->worker - v->window,
             *d = o->scratch + index * o->sum;
    ptrdiff_t begin = index * v->chunks / o->splits, end = (index + 1) * v->chunks / o->splits;
    int mr;
    for (ptrdiff_t i = begin; i < end; i++) {
        gcpi_block k = gcpi_view_block(v, i);
        const gcp_real *a[GCPI_MR_MAX];
        gcp_real *c[GCPI_MR_MAX];
        gcpi_tile t = { { k.n, k.h, k.w },
                        { v->ws[0], v->sy * v->ws[1], v->sx * v->ws[2] },
                        { 0 },
                        NULL,
                        a,
                        c,
                        0,
                        i == begin ? zero : NULL,
                        0,
                        0 };
        const gcp_real *x = gcpi_view_load(v, o->x, &k, 0, v->ky, window),
                       *e = gcpi_swapped_columns(o, &k, t.bs, columns);
        for (int p = 0; p < o->columns.panels; p++) {
            gcpi_panel panel = gcpi_panel_of(&o->columns, p);
            gcpi_kernel *kernel = gcpi_kernel_of(&o->simd, panel.nv, o->height, &mr);
            t.b = e + panel.first;
            for (int r = 0; r < o->height; r += mr) {
                t.rows = gcpi_min(mr, o->height - r);
                for (int q = 0; q < mr; q++) {
                    int at = q < t.rows ? r + q : r;
                    a[q] = x + at / v->len * v->dy * v->ws[1] + at % v->len;
                    c[q] = d + (ptrdiff_t)at * o->width + panel.first;
                }
                gcpi_run_tile(kernel, &t, &panel);
            }
        }
    }
}

/* Row r of d: adds the private sums into the first, always in the same order. */
GCPI_FAST static gcp_real *gcpi_outer_row(const gcpi_outer *o, int r, int width)
{
    gcp_real *sum = o->scratch + (ptrdiff_t)r * width;
    for (int s = 1; s < o->splits; s++) {
        const gcp_real *from = sum + s * o->sum;
        for (int j = 0; j < width; j++) sum[j] += from[j];
    }
    return sum;
}

/* Writes a share of the rows to d. */
GCPI_FAST static void gcpi_outer_sum(void *arg, int index, int worker)
{
    const gcpi_outer *o = (const gcpi_outer *)arg;
    int width = o->width, total = o->height;
    int first = (int)((ptrdiff_t)index * total / GCPI_TASKS), end = (int)((ptrdiff_t)(index + 1) * total / GCPI_TASKS);
    (void)worker;
    for (int r = first; r < end; r++) {
        const gcp_real *sum = gcpi_outer_row(o, r, width);
        gcp_real *d = o->d + (o->turned ? r : r / o->rows * o->dgroup + r % o->rows * o->ds);
        if (o->accumulate) for (int j = 0; j < width; j++) d[o->turned ? j * o->ds : j] += sum[j];
        else if (!o->turned) memcpy(d, sum, (size_t)width * sizeof *d);
    }
    if (o->turned && !o->accumulate)
        o->simd.turn(o->d + first, o->ds, width, end - first, o->scratch + (ptrdiff_t)first * width, width);
}

static void gcpi_outer_run(gcpi_outer *o, void *scratch, const gcpi_par *par)
{
    o->scratch = (gcp_real *)scratch;
    if (o->swapped) par->parallel_for(par->context, o->splits, gcpi_swapped_task, o);
    else gcpi_par_run(par, (ptrdiff_t)o->splits * o->units * o->parts * o->groups, &o->base, gcpi_outer_task, o);
    if (!o->shared) par->parallel_for(par->context, GCPI_TASKS, gcpi_outer_sum, o);
}

/* ==== src/kernels/depthwise.h ==== */

/* Depthwise convolution: each group has one channel of x and one of y. */

typedef struct gcpi_depthwise {        /* scratch: w, then the bias; or private sums of d; all as [tap][channel] */
    /* one, or for backward data one per phase of the strides: [phase of rows][phase of columns] */
    gcpi_gather g[GCPI_PHASES];
    int phases[2], height;             /* phases of rows, of columns; rows in an image of y */
    int channels, taps, isa;           /* taps: of w, per channel */
    int shares;                        /* the rows of y are cut into so many tasks */
    const gcp_real *e;                 /* backward weights: dy; else NULL */
    gcp_real *d;
    gcp_real *scratch;
} gcpi_depthwise;

static void gcpi_depthwise_set(gcpi_depthwise *p, const gcp_real *x, const gcp_real *w, gcp_real *y, int accumulate)
{
    for (int i = 0; i < p->phases[0] * p->phases[1]; i++)
        p->g[i].x = x, p->g[i].w = w, p->g[i].y = y, p->g[i].accumulate = accumulate;
}

static size_t gcpi_depthwise_plan(gcpi_depthwise *p, int weights, const gcpi_par *par)
{
    ptrdiff_t rows = (ptrdiff_t)p->g[0].v.n * p->height;
    p->isa = par->isa;
    p->shares = (int)GCPI_MIN(rows, weights ? GCPI_TASKS : 4 * GCPI_TASKS);
    return (weights ? (size_t)p->shares * (size_t)p->taps : (size_t)p->taps + 1) * (size_t)p->channels *
           sizeof(gcp_real);
}

/* Of `count` positions from `first` on, `step` apart: the indices of those in [0, size). */
typedef struct gcpi_range { int begin, end; } gcpi_range;
static gcpi_range gcpi_inside(ptrdiff_t first, int step, int count, int size)
{
    gcpi_range r = { 0, count };
    while (r.begin < count && first + (ptrdiff_t)r.begin * step < 0) r.begin++;
    while (r.end > r.begin && first + (ptrdiff_t)(r.end - 1) * step >= size) r.end--;
    return r;
}

/* Prefetches in the order of memory. The kernel goes by channels, with steps of whole pixels, which the hardware does
 * not predict. y: two strips ahead. x, too, where no cache holds all images: the lowest rows, which no strip has read
 * yet. */
GCPI_FAST static void gcpi_strip_ahead(const gcpi_gather *g, const gcpi_strip *s, int pixels)
{
    for (int p = 2 * pixels; p < 3 * pixels; p++) gcpi_fetch(s->e ? s->e : s->y, p * s->pixel, s->channels);
    for (int i = 1; g->v.n * g->v.xs[0] > GCPI_FAR && i <= gcpi_min(g->v.sy, s->rows); i++)
        for (int p = 2 * pixels * g->v.sx; p < 3 * pixels * g->v.sx; p++)
            gcpi_fetch(s->x, (s->rows - i) * s->xrow + p * g->v.xs[2], s->channels);
}

/* Row j of a phase, in image b. taps: w, or the private sum of d. */
GCPI_FAST static void gcpi_depthwise_row(const gcpi_depthwise *p, const gcpi_gather *g, const gcpi_simd *simd, int b,
                                         int j, gcp_real *taps)
{
    static const int sizes[GCPI_STRIPS] = { 8, 4, 1 };
    const gcpi_view *v = &g->v;
    int row = v->oy + j * v->sy, size;
    gcpi_range rows = gcpi_inside(row, v->dy, v->channels ? v->ky : 0, v->h);
    ptrdiff_t from = b * v->xs[0] + (row + rows.begin * v->dy) * v->xs[1], to = b * g->ys[0] + j * g->ys[1];
    gcpi_strip s;
    memset(&s, 0, sizeof s);
    s.xpixel = v->sx * v->xs[2], s.xrow = v->dy * v->xs[1], s.xtap = v->dx * v->xs[2];
    s.row = g->ws[0] * p->channels, s.tap = g->ws[1] * p->channels, s.pixel = g->ys[2];
    s.start = p->e || g->accumulate ? NULL : taps + (ptrdiff_t)p->taps * p->channels;
    s.channels = p->channels;
    for (int o = 0; o < v->wo; o += sizes[size], to += sizes[size] * s.pixel) {
        ptrdiff_t x = v->ox + (ptrdiff_t)o * v->sx, left = v->w - x - (ptrdiff_t)(v->kx - 1) * v->dx;
        gcpi_range in = gcpi_inside(x, v->dx, v->kx, v->w);
        for (size = p->channels >= 4 * simd->lanes; size < GCPI_STRIPS - 1; size++)
            if (x >= 0 && o + sizes[size] <= v->wo && (ptrdiff_t)(sizes[size] - 1) * v->sx < left) break;
        s.rows = in.end > in.begin ? rows.end - rows.begin : 0, s.taps = in.end - in.begin;
        s.x = s.rows ? g->x + from + (x + in.begin * v->dx) * v->xs[2] : g->x;
        s.w = s.d = taps + (s.rows ? g->wfirst * p->channels + rows.begin * s.row + in.begin * s.tap : 0);
        if (p->e) s.e = p->e + to;
        else s.y = g->y + g->yfirst + to;
        if (sizes[size] > 1) gcpi_strip_ahead(g, &s, sizes[size]);
        (p->e ? simd->depth_back : simd->depth)[size](&s);
    }
}

/* A share of the rows, from top to bottom: rows of x that two rows of y read are still in cache. */
static void gcpi_depthwise_rows(const gcpi_depthwise *p, int share, gcp_real *taps)
{
    const gcpi_simd simd = gcpi_simd_of(p->isa);
    ptrdiff_t rows = (ptrdiff_t)p->g[0].v.n * p->height;
    for (ptrdiff_t r = share * rows / p->shares; r < (share + 1) * rows / p->shares; r++) {
        int b = (int)(r / p->height), y = (int)(r % p->height);
        const gcpi_gather *g = &p->g[y % p->phases[0] * p->phases[1]];
        gcpi_block done = { b, y, 0, 1, 1, g->v.wo };
        for (int x = 0; x < p->phases[1]; x++) gcpi_depthwise_row(p, &g[x], &simd, b, y / p->phases[0], taps);
        gcpi_gather_end(g, &done, 0, p->channels);
    }
}

static void gcpi_depthwise_task(void *arg, int index, int worker)
{
    const gcpi_depthwise *p = (const gcpi_depthwise *)arg;
    (void)worker;
    gcpi_depthwise_rows(p, index, p->scratch);
}

static void gcpi_depthwise_run(gcpi_depthwise *p, void *scratch, const gcpi_par *par)
{
    const gcp_real *bias = p->g[0].bias;
    gcpi_depthwise_plan(p, 0, par);
    p->scratch = (gcp_real *)scratch;
    gcpi_simd_of(p->isa).turn(p->scratch, p->channels, p->taps, p->channels, p->g[0].w, p->taps);
    for (int c = 0; c < p->channels; c++) p->scratch[(ptrdiff_t)p->taps * p->channels + c] = bias ? bias[c] : 0;
    par->parallel_for(par->context, p->shares, gcpi_depthwise_task, p);
}

/* Backward weights: each share has a private sum. */
static void gcpi_depthwise_back_task(void *arg, int index, int worker)
{
    const gcpi_depthwise *p = (const gcpi_depthwise *)arg;
    ptrdiff_t size = (ptrdiff_t)p->taps * p->channels;
    (void)worker;
    memset(p->scratch + index * size, 0, (size_t)size * sizeof *p->scratch);
    gcpi_depthwise_rows(p, index, p->scratch + index * size);
}

/* One tap, all channels: adds the private sums into the first, always in the same order. */
GCPI_FAST static void gcpi_depthwise_sum(void *arg, int tap, int worker)
{
    const gcpi_depthwise *p = (const gcpi_depthwise *)arg;
    ptrdiff_t size = (ptrdiff_t)p->taps * p->channels;
    gcp_real *sum = p->scratch + (ptrdiff_t)tap * p->channels;
    (void)worker;
    for (int s = 1; s < p->shares; s++)
        for (int c = 0; c < p->channels; c++) sum[c] += sum[s * size + c];
}

static void gcpi_depthwise_back(gcpi_depthwise *p, void *scratch, const gcpi_par *par)
{
    gcpi_depthwise_plan(p, 1, par);
    p->scratch = (gcp_real *)scratch;
    par->parallel_for(par->context, p->shares, gcpi_depthwise_back_task, p);
    par->parallel_for(par->context, p->taps, gcpi_depthwise_sum, p);
    if (!p->g[0].accumulate) gcpi_simd_of(p->isa).turn(p->d, p->taps, p->channels, p->taps, p->scratch, p->channels);
    else
        for (ptrdiff_t i = 0; i < (ptrdiff_t)p->channels * p->taps; i++)
            p->d[i] += p->scratch[i % p->taps * p->channels + i / p->taps];
}

/* ==== src/kernels/products.h ==== */

/* Convolutions and matrix products in all passes. Each is a gather product, an outer product or depthwise. */

static int gcpi_conv_empty(const gcpi_conv *c)
{
    return c->n <= 0 || c->h <= 0 || c->w <= 0 || c->ho <= 0 || c->wo <= 0;
}
static int gcpi_conv_is_depthwise(const gcpi_conv *c)
{
    return c->groups > 1 && c->ci == c->groups && c->co == c->groups && c->sh * (ptrdiff_t)c->sw <= GCPI_PHASES;
}

/* Steps from image to image, row to row, pixel to pixel. */
static void gcpi_steps(ptrdiff_t *s, int h, int w, ptrdiff_t pitch)
{
    s[2] = pitch;
    s[1] = w * pitch;
    s[0] = h * s[1];
}

static gcpi_view gcpi_conv_view(const gcpi_conv *c)
{
    gcpi_view v;
    memset(&v, 0, sizeof v);
    v.n = c->n, v.h = c->h, v.w = c->w, v.channels = c->ci / c->groups;
    gcpi_steps(v.xs, c->h, c->w, c->xpitch);
    v.xc = 1;
    v.oy = -c->pt, v.sy = c->sh, v.ky = c->kh, v.dy = c->dh, v.ho = c->ho;
    v.ox = -c->pl, v.sx = c->sw, v.kx = c->kw, v.dx = c->dw, v.wo = c->wo;
    return v;
}

static gcpi_gather gcpi_conv_gather(const gcpi_conv *c)
{
    gcpi_gather g;
    memset(&g, 0, sizeof g);
    g.v = gcpi_conv_view(c);
    g.groups = c->groups;
    g.ws[2] = 1, g.ws[1] = g.v.channels, g.ws[0] = c->kw * g.ws[1], g.ws[3] = c->kh * g.ws[0];
    gcpi_steps(g.ys, c->ho, c->wo, c->ypitch);
    g.xgroup = g.v.channels, g.ygroup = c->co / c->groups, g.wgroup = g.ygroup * g.ws[3];
    return g;
}

/* Along one axis, the gradient at positions i, i + s, i + 2s, ... is a stride-1 convolution of dy
 * with every tap that reaches them, last tap first. */
typedef struct gcpi_phase {
    int count, taps, last, step, origin, dilation;
} gcpi_phase;

/* The x with a x = b modulo m, where a and m have no common divisor (Euclid's algorithm, which also tracks the factor
   of a). */
static int64_t gcpi_congruent(int64_t a, int64_t b, int64_t m)
{
    int64_t high = m, low = a % m, was = 0, is = 1;
    while (low > 0) {
        int64_t times = high / low, rest = high % low, next = was - times * is;
        high = low; low = rest; was = is; is = next;
    }
    return ((b % m) * ((was % m + m) % m)) % m;
}

static gcpi_phase gcpi_phase_of(int i, int size, int k, int stride, int pad, int dilation)
{
    gcpi_phase p;
    int common = gcpi_divisor(dilation, stride);
    int64_t at = (int64_t)i + pad,
            first = at % common ? k : gcpi_congruent(dilation / common, at / common, stride / common);
    p.count = gcpi_ceil(size - i, stride);
    p.step = stride / common;
    p.taps = first < k ? (int)((k - 1 - first) / p.step) + 1 : 0;
    p.last = p.taps ? (int)first + (p.taps - 1) * p.step : 0;
    p.origin = p.taps ? (int)((at - (int64_t)p.last * dilation) / stride) : 0;
    p.dilation = dilation / common;
    return p;
}

static gcpi_gather gcpi_conv_phase(const gcpi_conv *c, int y, int x)
{
    gcpi_phase py = gcpi_phase_of(y, c->h, c->kh, c->sh, c->pt, c->dh);
    gcpi_phase px = gcpi_phase_of(x, c->w, c->kw, c->sw, c->pl, c->dw);
    int reached = py.taps && px.taps, ci = c->ci / c->groups, co = c->co / c->groups;
    ptrdiff_t row = (ptrdiff_t)c->kw * ci;
    gcpi_gather g;
    memset(&g, 0, sizeof g);
    g.groups = c->groups;
    g.v.n = c->n, g.v.h = c->ho, g.v.w = c->wo, g.v.channels = reached ? co : 0;
    gcpi_steps(g.v.xs, c->ho, c->wo, c->ypitch);
    g.v.xc = 1;
    g.v.oy = py.origin, g.v.sy = 1, g.v.ky = reached ? py.taps : 1, g.v.dy = py.dilation, g.v.ho = py.count;
    g.v.ox = px.origin, g.v.sx = 1, g.v.kx = reached ? px.taps : 1, g.v.dx = px.dilation, g.v.wo = px.count;
    g.wfirst = reached ? py.last * row + (ptrdiff_t)px.last * ci : 0;
    g.ws[0] = gcpi_stride(-py.step, row), g.ws[1] = gcpi_stride(-px.step, ci), g.ws[2] = c->kh * row, g.ws[3] = 1;
    gcpi_steps(g.ys, c->h, c->w, c->xpitch);
    g.yfirst = y * g.ys[1] + x * g.ys[2];
    g.ys[1] = gcpi_stride(c->sh, g.ys[1]), g.ys[2] = gcpi_stride(c->sw, g.ys[2]);
    g.xgroup = co, g.ygroup = ci, g.wgroup = co * g.ws[2];
    return g;
}

/* Whether x and dy change places in a 1x1 convolution's outer product. Rows are copied and columns are read in place,
 * so the side with fewer channels should be the rows. Every task needs room for a private sum. */
static int gcpi_conv_turns(const gcpi_conv *c)
{
    int inside = !c->pt && !c->pl && (c->ho - 1) * (ptrdiff_t)c->sh < c->h && (c->wo - 1) * (ptrdiff_t)c->sw < c->w;
    return c->kh == 1 && c->kw == 1 && inside && c->groups == 1 && c->co > c->ci &&
           (ptrdiff_t)c->ci * c->co <= GCPI_PARTIAL_MAX / GCPI_TASKS;
}

static gcpi_outer gcpi_conv_outer(const gcpi_conv *c)
{
    gcpi_outer o;
    memset(&o, 0, sizeof o);
    o.v = gcpi_conv_view(c);
    o.turned = gcpi_conv_turns(c);
    o.groups = c->groups, o.rows = c->co / c->groups;
    gcpi_steps(o.es, c->ho, c->wo, c->ypitch);
    o.ds = (ptrdiff_t)c->kh * c->kw * o.v.channels;
    o.xgroup = o.v.channels, o.egroup = o.rows, o.dgroup = o.rows * o.ds;
    if (!o.turned) return o;
    memcpy(o.es, o.v.xs, sizeof o.es);
    o.es[1] *= c->sh, o.es[2] *= c->sw;
    gcpi_steps(o.v.xs, c->ho, c->wo, c->ypitch);
    o.v.h = c->ho, o.v.w = c->wo, o.v.sy = o.v.sx = 1;
    o.v.channels = c->co, o.rows = c->ci;
    return o;
}

static gcpi_depthwise gcpi_conv_depthwise(const gcpi_conv *c, int pass)
{
    gcpi_depthwise p;
    int back = pass == GCPI_BACKWARD_DATA;
    memset(&p, 0, sizeof p);
    p.channels = c->groups, p.taps = c->kh * c->kw, p.height = back ? c->h : c->ho;
    p.phases[0] = back ? gcpi_min(c->sh, c->h) : 1, p.phases[1] = back ? gcpi_min(c->sw, c->w) : 1;
    for (int y = 0; y < p.phases[0]; y++)
        for (int x = 0; x < p.phases[1]; x++)
            p.g[y * p.phases[1] + x] = back ? gcpi_conv_phase(c, y, x) : gcpi_conv_gather(c);
    return p;
}

/* Finds one phase of each kind along an axis: strides may be long, but scratch depends only on how many positions and
 * taps a phase has, and on whether all that it reads lies inside dy. Returns how many kinds there are. */
enum { GCPI_KINDS = 12 };
static int gcpi_phase_kinds(int size, int read, int k, int stride, int pad, int dilation, int *at)
{
    struct { int count, taps, inside; } kinds[GCPI_KINDS];
    int found = 0;
    for (int i = 0; i < stride && i < size; i++) {
        gcpi_phase p = gcpi_phase_of(i, size, k, stride, pad, dilation);
        int inside = p.origin >= 0 && (int64_t)p.origin + p.count - 1 + (int64_t)(p.taps - 1) * p.dilation < read,
            same = 0;
        while (same < found &&
               (kinds[same].count != p.count || kinds[same].taps != p.taps || kinds[same].inside != inside))
            same++;
        if (same < found || found == GCPI_KINDS) continue;
        kinds[found].count = p.count, kinds[found].taps = p.taps, kinds[found].inside = inside;
        at[found++] = i;
    }
    return found;
}

static size_t gcpi_conv_scratch(const gcpi_conv *c, int pass, const gcpi_par *par)
{
    size_t most = 0;
    if (gcpi_conv_empty(c)) return 0;
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, pass);
        return gcpi_depthwise_plan(&p, pass == GCPI_BACKWARD_WEIGHTS, par);
    }
    if (pass == GCPI_FORWARD) {
        gcpi_gather g = gcpi_conv_gather(c);
        return gcpi_gather_plan(&g, c->co / c->groups, par);
    }
    if (pass == GCPI_BACKWARD_WEIGHTS) {
        gcpi_outer o = gcpi_conv_outer(c);
        return gcpi_outer_plan(&o, par);
    }
    int ys[GCPI_KINDS], xs[GCPI_KINDS];
    int rows = gcpi_phase_kinds(c->h, c->ho, c->kh, c->sh, c->pt, c->dh, ys),
        columns = gcpi_phase_kinds(c->w, c->wo, c->kw, c->sw, c->pl, c->dw, xs);
    for (int y = 0; y < rows; y++)
        for (int x = 0; x < columns; x++) {
            gcpi_gather g = gcpi_conv_phase(c, ys[y], xs[x]);
            size_t bytes = gcpi_gather_plan(&g, c->ci / c->groups, par);
            most = bytes > most ? bytes : most;
        }
    return most;
}

/* y starts from a bias, or is added to; not both. end may be NULL. */
static void gcpi_conv_forward(const gcpi_conv *c, const gcp_real *x, const gcp_real *w, const gcp_real *bias,
                              gcp_real *y, int accumulate, const gcpi_end *end, void *scratch, const gcpi_par *par)
{
    if (gcpi_conv_empty(c)) return;
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, GCPI_FORWARD);
        gcpi_depthwise_set(&p, x, w, y, accumulate);
        p.g[0].bias = bias, p.g[0].end = end;
        gcpi_depthwise_run(&p, scratch, par);
        return;
    }
    gcpi_gather g = gcpi_conv_gather(c);
    g.x = x, g.w = w, g.bias = bias, g.y = y, g.accumulate = accumulate, g.end = end;
    gcpi_gather_plan(&g, c->co / c->groups, par);
    gcpi_gather_run(&g, scratch, par);
}

static void gcpi_conv_backward_data(const gcpi_conv *c, const gcp_real *dy, const gcp_real *w, gcp_real *dx,
                                    int accumulate, void *scratch, const gcpi_par *par)
{
    if (gcpi_conv_empty(c)) return;
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, GCPI_BACKWARD_DATA);
        gcpi_depthwise_set(&p, dy, w, dx, accumulate);
        gcpi_depthwise_run(&p, scratch, par);
        return;
    }
    for (int py = 0; py < c->sh && py < c->h; py++)
        for (int px = 0; px < c->sw && px < c->w; px++) {
            gcpi_gather g = gcpi_conv_phase(c, py, px);
            if (accumulate && !g.v.channels) continue;
            g.x = dy, g.w = w, g.y = dx, g.accumulate = accumulate;
            gcpi_gather_plan(&g, c->ci / c->groups, par);
            gcpi_gather_run(&g, scratch, par);
        }
}

static void gcpi_conv_backward_weights(const gcpi_conv *c, const gcp_real *x, const gcp_real *dy, gcp_real *dw,
                                       int accumulate, void *scratch, const gcpi_par *par)
{
    gcpi_outer o = gcpi_conv_outer(c);
    if (gcpi_conv_empty(c)) {
        if (!accumulate) memset(dw, 0, (size_t)(c->co * o.ds) * sizeof *dw);
        return;
    }
    if (gcpi_conv_is_depthwise(c)) {
        gcpi_depthwise p = gcpi_conv_depthwise(c, GCPI_BACKWARD_WEIGHTS);
        gcpi_depthwise_set(&p, x, NULL, NULL, accumulate);
        p.e = dy, p.d = dw;
        gcpi_depthwise_back(&p, scratch, par);
        return;
    }
    o.x = o.turned ? dy : x, o.e = o.turned ? x : dy, o.d = dw, o.accumulate = accumulate;
    gcpi_outer_plan(&o, par);
    gcpi_outer_run(&o, scratch, par);
}

static gcpi_gather gcpi_gemm_gather(int ta, int tb, int m, int k, ptrdiff_t lda, ptrdiff_t ldb, ptrdiff_t ldc)
{
    gcpi_gather g;
    memset(&g, 0, sizeof g);
    g.groups = 1;
    g.v.n = g.v.h = g.v.ho = g.v.sy = g.v.sx = g.v.ky = g.v.kx = g.v.dy = g.v.dx = 1;
    g.v.w = g.v.wo = m, g.v.channels = k;
    g.v.xs[2] = ta ? 1 : lda, g.v.xc = ta ? lda : 1;
    g.ws[2] = tb ? 1 : ldb, g.ws[3] = tb ? ldb : 1;
    g.ys[2] = ldc;
    return g;
}

static gcpi_outer gcpi_gemm_outer(int m, int n, int k, ptrdiff_t lda, ptrdiff_t ldb, ptrdiff_t ldc)
{
    gcpi_outer o;
    memset(&o, 0, sizeof o);
    o.groups = 1, o.rows = m, o.es[2] = lda, o.ds = ldc;
    o.v.n = o.v.h = o.v.ho = o.v.sy = o.v.sx = o.v.ky = o.v.kx = o.v.dy = o.v.dx = 1;
    o.v.w = o.v.wo = k, o.v.channels = n, o.v.xs[2] = ldb, o.v.xc = 1;
    return o;
}

/* The user's BLAS. The longer side of c is cut into shares, whose number depends on the shape only. Each share is one
   call on one thread. */
#ifdef GCP_USE_CBLAS
enum { GCPI_CBLAS = 1, GCPI_CBLAS_SHARE = 32 };       /* the least rows or columns of a share */
#if !defined(GCP_CBLAS_ONE_THREAD) && defined(OPENBLAS_VERSION)
#define GCP_CBLAS_ONE_THREAD() openblas_set_num_threads(1)
#elif !defined(GCP_CBLAS_ONE_THREAD)
#error "GCP_USE_CBLAS: this is not OpenBLAS; define GCP_CBLAS_ONE_THREAD() as what sets it to one thread"
#endif

typedef struct gcpi_blas {
    int ta, tb, m, n, k, accumulate, shares;
    const gcp_real *a, *b;
    gcp_real *c;
    ptrdiff_t lda, ldb, ldc;
} gcpi_blas;

static void gcpi_blas_task(void *arg, int index, int worker)
{
    const gcpi_blas *g = (const gcpi_blas *)arg;
    int tall = g->m >= g->n, length = tall ? g->m : g->n;
    int first = (int)((ptrdiff_t)index * length / g->shares),
        count = (int)((ptrdiff_t)(index + 1) * length / g->shares) - first;
    int m = tall ? count : g->m, n = tall ? g->n : count, lda = (int)g->lda, ldb = (int)g->ldb, ldc = (int)g->ldc;
    const void *a = g->a + (tall ? (g->ta ? 1 : g->lda) * first : 0),
               *b = g->b + (tall ? 0 : (g->tb ? g->ldb : 1) * first);
    void *c = g->c + (tall ? g->ldc : 1) * first;
    CBLAS_TRANSPOSE ta = g->ta ? CblasTrans : CblasNoTrans, tb = g->tb ? CblasTrans : CblasNoTrans;
    (void)worker;
    if (sizeof(gcp_real) == sizeof(float))
        cblas_sgemm(CblasRowMajor, ta, tb, m, n, g->k, 1, (const float *)a, lda, (const float *)b, ldb,
                    (float)g->accumulate, (float *)c, ldc);
    else
        cblas_dgemm(CblasRowMajor, ta, tb, m, n, g->k, 1, (const double *)a, lda, (const double *)b, ldb, g->accumulate,
                    (double *)c, ldc);
}

static void gcpi_blas_run(gcpi_blas *g, const gcpi_par *par)
{
#ifdef _OPENMP
    int threads = omp_get_max_threads();       /* an OpenBLAS built with OpenMP changes this, too */
    GCP_CBLAS_ONE_THREAD();                    /* never restored: another thread may be in a product */
    omp_set_num_threads(threads);
#else
    GCP_CBLAS_ONE_THREAD();
#endif
    g->shares = gcpi_max(1, gcpi_min(GCPI_TASKS, gcpi_max(g->m, g->n) / GCPI_CBLAS_SHARE));
    par->parallel_for(par->context, g->shares, gcpi_blas_task, g);
}
#else
enum { GCPI_CBLAS = 0 };
#endif

static size_t gcpi_gemm_scratch(int ta, int tb, int m, int n, int k, const gcpi_par *par)
{
    if (m <= 0 || n <= 0 || GCPI_CBLAS) return 0;
    if (ta && !tb && k > 0) {
        gcpi_outer o = gcpi_gemm_outer(m, n, k, m, n, n);
        return gcpi_outer_plan(&o, par);
    }
    gcpi_gather g = gcpi_gemm_gather(ta, tb, m, k, k, k, n);
    return gcpi_gather_plan(&g, n, par);
}

static void gcpi_gemm(int ta, int tb, int m, int n, int k, const gcp_real *a, ptrdiff_t lda, const gcp_real *b,
                      ptrdiff_t ldb, const gcp_real *bias, gcp_real *c, ptrdiff_t ldc, int accumulate, void *scratch,
                      const gcpi_par *par)
{
    int outer = ta && !tb && k > 0;
    if (m <= 0 || n <= 0) return;
    if (bias && (outer || accumulate || GCPI_CBLAS)) {
        for (int i = 0; i < m; i++)
            for (int j = 0; j < n; j++) c[i * ldc + j] = bias[j] + (accumulate ? c[i * ldc + j] : 0);
        accumulate = 1;
    }
#ifdef GCP_USE_CBLAS
    gcpi_blas blas = { ta, tb, m, n, k, accumulate, 1, a, b, c, lda, ldb, ldc };
    gcpi_blas_run(&blas, par);
    return;
#endif
    if (outer) {
        gcpi_outer o = gcpi_gemm_outer(m, n, k, lda, ldb, ldc);
        o.x = b, o.e = a, o.d = c, o.accumulate = accumulate;
        gcpi_outer_plan(&o, par);
        gcpi_outer_run(&o, scratch, par);
        return;
    }
    gcpi_gather g = gcpi_gemm_gather(ta, tb, m, k, lda, ldb, ldc);
    g.x = a, g.w = b, g.bias = bias, g.y = c, g.accumulate = accumulate;
    gcpi_gather_plan(&g, n, par);
    gcpi_gather_run(&g, scratch, par);
}

/* ops: each op whole, and the table that hands them on */

/* ==== src/ops/target.h ==== */

/* What every op uses: the target, and helpers for shape rules. Its threads, instruction set and memory. Work is
   split by shape, never by the number of threads; every sum has one order. */

#ifdef __clang__
#pragma STDC FP_CONTRACT OFF            /* gcc: GCPI_LOOP; end.h restores the default */
#endif

/* Compiles a loop for each instruction set: NAME_body is inlined into one function per set, and NAME calls the
   target's. The bits are the same: nothing is contracted, and no sum changes its order. GCPI_EACH: vectorise the loop;
   two operands may be the same bytes, but must not overlap in part. GCPI_EIGHT: the same for a loop of eight, which
   fills a vector and must not be unrolled. */
#if defined(__clang__)
#define GCPI_EACH _Pragma("clang loop vectorize(assume_safety)")
#define GCPI_EIGHT GCPI_EACH
#elif defined(__GNUC__)
#define GCPI_EACH _Pragma("GCC ivdep")
#define GCPI_EIGHT _Pragma("GCC ivdep") _Pragma("GCC unroll 1")
#else
#define GCPI_EACH
#define GCPI_EIGHT
#endif
#if GCPI_X86
#define GCPI_WIDE(NAME, PARAMETERS, ARGUMENTS, TARGET)                                                      \
    GCPI_LOOP void NAME##_any PARAMETERS { NAME##_body ARGUMENTS; }                                         \
    GCPI_LOOP GCPI_AVX2 void NAME##_avx2 PARAMETERS { NAME##_body ARGUMENTS; }                              \
    GCPI_LOOP GCPI_AVX512 void NAME##_avx512 PARAMETERS { NAME##_body ARGUMENTS; }                          \
    static void NAME PARAMETERS                                                                             \
    {                                                                                                       \
        int isa = (TARGET)->isa;                                                                            \
        (isa == GCP_ISA_AVX512 ? NAME##_avx512 : isa == GCP_ISA_AVX2 ? NAME##_avx2 : NAME##_any) ARGUMENTS; \
    }
#else
#define GCPI_WIDE(NAME, PARAMETERS, ARGUMENTS, TARGET) GCPI_LOOP void NAME PARAMETERS { NAME##_body ARGUMENTS; }
#endif
#define GCPI_WIDE_SPAN(NAME) GCPI_WIDE(NAME, (const gcpi_span *s), (s), s->call->target)
#define GCPI_WIDE_SUM(NAME) \
    GCPI_WIDE(NAME, (const gcp_call *c, size_t first, size_t last, double *sums), (c, first, last, sums), c->target)
#define GCPI_WIDE_TASK(NAME, JOB) \
    GCPI_WIDE(NAME, (void *arg, int index, int worker), (arg, index, worker), ((const JOB *)arg)->call->target)

enum { GCPI_CHUNK = 16384 };           /* values per task of a pass */

/* For a target without a thread pool: OpenMP's threads, as many as context says, or only the caller's. */
#ifdef _OPENMP
enum { GCPI_OPENMP = 1 };
static int gcpi_threads(void) { return omp_get_max_threads(); }
#else
enum { GCPI_OPENMP = 0 };
static int gcpi_threads(void) { return 1; }
#endif
static void gcpi_default_for(void *context, int tasks, void (*task)(void *arg, int index, int worker), void *arg)
{
#ifdef _OPENMP
    int threads = *(const int *)context;
#pragma omp parallel for schedule(dynamic, 1) num_threads(threads) if (tasks > 1)
    for (int i = 0; i < tasks; i++) task(arg, i, omp_get_thread_num());
#else
    (void)context;
    for (int i = 0; i < tasks; i++) task(arg, i, 0);
#endif
}

static gcpi_par gcpi_par_of(const gcp_target *target)
{
    gcpi_par par;
    par.parallel_for = target->parallel_for ? target->parallel_for : gcpi_default_for;
    par.context = target->parallel_for ? target->context : (void *)(uintptr_t)&target->threads;
    par.threads = target->threads;
    par.isa = target->isa;
    return par;
}

static void gcpi_parallel(const gcp_target *target, int tasks, void (*task)(void *arg, int index, int worker),
                          void *arg)
{
    gcpi_par par = gcpi_par_of(target);
    par.parallel_for(par.context, tasks, task, arg);
}

GCPI_PRINTF(2, 3)
static int gcpi_refuse(gcp_shape_call *s, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(s->message, s->message_size, format, args);
    va_end(args);
    return 0;
}

static const gcpi_attributes *gcpi_attr(const void *attributes) { return (const gcpi_attributes *)attributes; }

/* A shape as an argument of a message: it lives until the call is done. */
typedef struct gcpi_shape_words { char s[64]; } gcpi_shape_words;
static gcpi_shape_words gcpi_words_of(gcp_shape shape)
{
    gcpi_shape_words words;
    gcpi_shape_text(shape, words.s, sizeof words.s);
    return words;
}
#define GCPI_SHAPE_TEXT(shape) gcpi_words_of(shape).s

#define gcpi_refuse_type(s, ...) ((s)->code = GCP_E_DTYPE, gcpi_refuse((s), __VA_ARGS__))

static int gcpi_all_real(gcp_shape_call *s)
{
    for (int i = 0; i < s->inputs; i++)
        if (s->in_dtype[i] != GCP_DTYPE_REAL)
            return gcpi_refuse_type(s, "input %d holds integers, not real numbers", i);
    return 1;
}

static gcp_shape gcpi_scalar(void)
{
    gcp_shape s;
    s.rank = 0;
    s.d[0] = s.d[1] = s.d[2] = s.d[3] = 1;
    return s;
}

static int gcpi_unary_shape(gcp_shape_call *s) { s->out[0] = s->in[0]; return gcpi_all_real(s); }

/* Copies and fills of the target's memory. */
static void gcpi_bytes_copy(const gcp_target *target, void *to, const void *from, size_t size)
{
    if (target->device) target->device->copy(target->context, to, from, size);
    else memcpy(to, from, size);
}
static void gcpi_rows_copy(const gcp_target *target, void *to, size_t to_pitch, const void *from, size_t from_pitch,
                           size_t width, size_t rows)
{
    if (rows > 1 && target->device && target->device->copy_rows) {
        target->device->copy_rows(target->context, to, to_pitch, from, from_pitch, width, rows);
        return;
    }
    unsigned char *there = (unsigned char *)to;
    const unsigned char *here = (const unsigned char *)from;
    for (size_t r = 0; r < rows; r++) gcpi_bytes_copy(target, there + r * to_pitch, here + r * from_pitch, width);
}
static void gcpi_bytes_fill(const gcp_target *target, void *to, int byte, size_t size)
{
    if (target->device) target->device->fill(target->context, to, byte, size);
    else memset(to, byte, size);
}

/* 1, and an error on the tape, if the device has failed. */
static int gcpi_trouble(gcp_tape *t, const gcp_target *target, gcp_at at, const char *what)
{
    /* what .feed would see is the step's */
    const char *text = target->device && !t->feeding ? target->device->trouble(target->context) : NULL;
    if (text) gcpi_fail(t, GCP_E_DEVICE, at, what, "%s: %s", target->name, text);
    return text != NULL;
}

/* Puts the defaults where a target holds zeros. */
static gcp_target gcpi_target_of(const gcp_target *given)
{
    gcp_target t;
    memset(&t, 0, sizeof t);
    if (given) t = *given;
    if (!t.name) t.name = "cpu";
    if (!t.align) t.align = 64;
    if (t.isa == GCP_ISA_BEST) t.isa = gcpi_isa_best();
    if (t.flops_per_second <= 0) t.flops_per_second = 1e11;
    if (t.bytes_per_second <= 0) t.bytes_per_second = 1e10;
    if (t.far_bytes_per_second <= 0) t.far_bytes_per_second = 1e10;
    if (!t.parallel_for) t.threads = GCPI_OPENMP ? (t.threads > 0 ? t.threads : gcpi_threads()) : 1;
    t.threads = GCPI_MAX(1, t.threads);
    return t;
}
GCPI_COLD

/* ==== src/ops/row.h ==== */

/* What stands for an op: its row, its facts, and how it is recorded. A room of this wing holds an op whole:
   shape rule, forward, backward, cost, row, facts, and the public functions that record it. */

/* A group is a few consecutive ops that run as one pass (GCP_ROW_APPLY). An op can be one of these parts of it. */
enum { GCPI_PART_NONE, GCPI_PART_NORM, GCPI_PART_ADD, GCPI_PART_RECTIFIER };
enum { GCPI_NORM_BETA = 4 };                            /* the last input of GCPI_PART_NORM */
/* Output 0 of a view is: all of input 0; channels of input 0; its inputs side by side. */
enum { GCPI_VIEW_NONE, GCPI_VIEW_WHOLE, GCPI_VIEW_PART, GCPI_VIEW_JOINED };
/* The channels of output 0: not known; those of inputs of as many (GCP_FLAG_SAME_CHANNELS); made by the weight, input
   1, with a bias, input 2, for them; those of input 1. */
enum { GCPI_CHANNELS_UNKNOWN, GCPI_CHANNELS_SAME, GCPI_CHANNELS_WEIGHED, GCPI_CHANNELS_LOOKED_UP };

/* The labels or ids that an op's input may hold: 0 to count - 1, or the ignored one. count 0: not checked. Where the
   user ignores none, -1 is left out of losses all the same, but only gcp_write_some writes it. */
typedef struct gcpi_label_range { int count, ignores, ignore; } gcpi_label_range;

/* What only some ops have. A fact that is not given is the careful answer. */
typedef struct gcpi_facts {
    int part, view, channels;
    int custom;                                 /* the user's op: outputs are made even if no op reads them */
    int stats;                                  /* statistics: the op that makes the tensor can make them, too */
    int first;                                  /* GCPI_VIEW_PART: the first channel */
    /* bits of inputs: read as one run of bytes, as is a gradient; besides where the target has a device */
    unsigned dense, dense_on_device;
    unsigned early;                             /* of parameters whose gradients backward writes before the others */
    unsigned shared;                            /* that each sample reads whole: weights, tables, values per channel */
    int apart;                                  /* GCP_FLAG_SAMPLES_APART, where inputs of `shared` have no samples */
    int leaves_out;                             /* a loss of samples: those of an ignored label do not count */
    int in_place, indexed;                      /* may overwrite input 0; backward reads the index, output 1 */
    const gcpi_conv_attr *window;               /* kernel, strides, paddings: part of the key of a cost */
    /* the range of labels or ids, its other input being of this shape; NULL: it reads none */
    gcpi_label_range (*labels)(const gcpi_attributes *a, gcp_shape other);
    /* on this CPU, in one pass: forward and a group; forward and statistics of its output, and their workspace. With
       both, a target's row may do the same (GCP_FLAG_FUSED) */
    void (*with_group)(const gcp_call *c, gcp_call *group);
    void (*with_stats)(const gcp_call *c, const gcp_call *stats);
    size_t (*stats_workspace)(const gcpi_conv_attr *a, gcp_shape out, const gcp_target *target);
} gcpi_facts;

typedef struct gcpi_op_row {
    int kind;
    gcp_op op;
    void (*facts)(const gcpi_op *op, gcpi_facts *f);    /* fills what differs from the careful answer; may be NULL */
} gcpi_op_row;

/* Words of rows: bits of what backward reads, sets of flags. */
#define GCPI_IN(i)  (1u << (i))
#define GCPI_OUT(j) (1u << (j))
#define GCPI_EACH_ONE (GCP_FLAG_SAMPLES_APART | GCP_FLAG_SAME_CHANNELS)
#define GCPI_OVER     (GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_IN_PLACE | GCPI_EACH_ONE)
#define GCPI_PRODUCT  (GCP_FLAG_COSTLY | GCP_FLAG_CROSS | GCP_FLAG_SAMPLES_APART)
#define GCPI_LOSS     (GCP_FLAG_LOSS | GCP_FLAG_SAME_CHANNELS)

/* A mask of .keep has a bit for each kind. */
typedef char gcpi_kinds_fit[GCP_OP_COUNT <= 64 ? 1 : -1];

/* ---- recording ---- */

static int gcpi_enter(gcp_tensor x, gcp_at at, const char *what)
{
    if (x.tape && x.tape->full_ops) x.tape->full_ops++;
    if (!x.tape || x.tape->code) return 0;
    return gcpi_usable(x.tape, x, at, what);
}

static int gcpi_op_name(gcp_tape *t, const char *label, const char *named, gcp_at at)
{
    return gcpi_name_new(t, t->segments[t->open].name, label, named, at);
}

static gcp_tensor gcpi_record(gcp_tape *t, const gcpi_op_row *row, int name, const gcp_tensor *inputs, int count,
                              const gcpi_attributes *a, gcp_at at)
{
    int op = name ? gcpi_op_new(t, &row->op, row->kind, name, inputs, count, a, NULL, at) : -1;
    return op < 0 ? gcpi_nil(t) : gcpi_handle(t, t->ops[op].out);
}

/* An op without weights. */
static gcp_tensor gcpi_simple(const gcpi_op_row *row, const gcp_tensor *inputs, int count, const gcpi_attributes *a,
                              const char *named, gcp_at at)
{
    const char *label = row->op.name;
    gcp_tape *t = inputs[0].tape;
    if (!gcpi_enter(inputs[0], at, label)) return gcpi_nil(t);
    return gcpi_record(t, row, gcpi_op_name(t, label, named, at), inputs, count, a, at);
}
static gcp_tensor gcpi_unary(const gcpi_op_row *row, gcp_tensor x, gcp_op_opts o)
{
    return gcpi_simple(row, &x, 1, NULL, o.name, o.at);
}
static gcp_tensor gcpi_binary(const gcpi_op_row *row, gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    gcp_tensor in[2];
    in[0] = a; in[1] = b;
    return gcpi_simple(row, in, 2, NULL, o.name, o.at);
}
static gcpi_attributes gcpi_no_attributes(void)
{
    gcpi_attributes a;
    memset(&a, 0, sizeof a);
    return a;
}

static gcp_tensor gcpi_bad_option(gcp_tensor x, gcp_at at, const char *what, const char *option, double value,
                                  const char *allowed)
{
    if (gcpi_enter(x, at, what)) gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s = %g; %s", option, value, allowed);
    return gcpi_nil(x.tape);
}

/* ---- weights of layers: given, or made under the layer's name ---- */

static gcp_param_opts gcpi_weight_options(gcp_init init, gcp_init otherwise, double fan_in, double fan_out, gcp_at at)
{
    gcp_param_opts p;
    p.at = at;
    p.std = 0;
    p.init = init == GCP_INIT_DEFAULT ? otherwise : init;
    p.fan_in = (int)GCPI_MIN(fan_in, 2e9);
    p.fan_out = (int)GCPI_MIN(fan_out, 2e9);
    return p;
}

static gcp_shape gcpi_raw(int rank, int a, int b, int c, int d)
{
    gcp_shape s;
    s.rank = rank;
    s.d[0] = a; s.d[1] = b; s.d[2] = c; s.d[3] = d;
    return s;
}

#define gcpi_weight(t, layer, name, shape, options) \
    gcpi_parameter_of((t), GCPI_PARAMETER, (layer), (name), (shape), (options))

/* The options of a layer that makes its weights are errors where the weights are given. */
static int gcpi_given_ok(gcp_tensor x, gcp_tensor bias, const char *what, gcp_init init, int no_bias, gcp_at at)
{
    if (!gcpi_enter(x, at, what)) return 0;
    const char *vain = init != GCP_INIT_DEFAULT          ? ".init, but the weights are given"
                       : no_bias && !gcp_is_nil(bias) ? ".no_bias, but a bias is given"
                                                      : NULL;
    if (vain) gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s", vain);
    return !vain;
}
GCPI_WARM

/* ==== src/ops/map.h ==== */

/* A pass over all elements; copies of views. A pass calls a function on one contiguous span of up to four operands
   at a time. */

/* A task starts at a multiple of 8 pixels,
   so that no two tasks share a byte of a bit mask. */
typedef struct gcpi_span {
    gcp_real *p[4];
    unsigned char *mask;
    size_t n, index;
    const gcp_call *call;
    int accumulate;
} gcpi_span;
typedef void (*gcpi_span_fn)(const gcpi_span *s);
typedef struct gcpi_map_job {
    const gcp_call *call; gcpi_span_fn fn;
    gcp_view view[4]; unsigned char *mask; int dense, accumulate;
    size_t pixels, chunk, width;
} gcpi_map_job;

static void gcpi_map_task(void *arg, int index, int worker)
{
    const gcpi_map_job *job = (const gcpi_map_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    size_t step = job->dense ? last - first : 1;
    gcpi_span s;
    s.call = job->call; s.mask = job->mask; s.accumulate = job->accumulate; s.n = step * job->width;
    for (size_t pixel = first; pixel < last; pixel += step) {
        s.index = pixel * job->width;
        for (int v = 0; v < 4; v++)
            s.p[v] = job->view[v].data ? (gcp_real *)job->view[v].data + (ptrdiff_t)pixel * job->view[v].pitch : NULL;
        job->fn(&s);
    }
    (void)worker;
}

static void gcpi_map(const gcp_call *call, gcpi_span_fn fn, const gcp_view *const *views, int count,
                     unsigned char *mask, int accumulate)
{
    gcpi_map_job job;
    memset(&job, 0, sizeof job);
    job.call = call; job.fn = fn; job.mask = mask; job.dense = 1; job.accumulate = accumulate;
    job.pixels = gcpi_pixels(views[0]->shape);
    job.width = (size_t)views[0]->shape.d[3];
    for (int v = 0; v < count; v++) {
        job.view[v] = *views[v];
        if (views[v]->data && views[v]->pitch != (ptrdiff_t)job.width) job.dense = 0;
    }
    job.chunk = (GCPI_MAX((size_t)1, GCPI_CHUNK / job.width) + 7) / 8 * 8;
    gcpi_parallel(call->target, (int)((job.pixels + job.chunk - 1) / job.chunk), gcpi_map_task, &job);
}

static void gcpi_map_forward(const gcp_call *c, gcpi_span_fn fn)          /* p: x, y */
{
    const gcp_view *v[2];
    v[0] = &c->in[0]; v[1] = &c->out[0];
    gcpi_map(c, fn, v, 2, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, 0);
}

static void gcpi_map_backward(const gcp_call *c, gcpi_span_fn fn)         /* p: dx, dy, x or NULL, y or NULL */
{
    const gcp_view *v[4];
    if (!c->din[0].data) return;
    v[0] = &c->din[0]; v[1] = &c->dout[0]; v[2] = &c->in[0]; v[3] = &c->out[0];
    gcpi_map(c, fn, v, 4, c->outputs > 1 ? (unsigned char *)c->out[1].data : NULL, c->din[0].accumulate);
}

GCPI_BODY void gcpi_copy_span_body(const gcpi_span *s)                          /* p: to, from */
{
    gcp_real *to = s->p[0];
    const gcp_real *from = s->p[1];
    if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) to[i] += from[i];
    else if (to != from) memmove(to, from, s->n * sizeof *to);
}
GCPI_WIDE_SPAN(gcpi_copy_span)

static void gcpi_view_copy(const gcp_call *c, const gcp_view *to, const gcp_view *from, int accumulate)
{
    const gcp_view *v[2];
    if (to->data == from->data && to->pitch == from->pitch && !accumulate) return;
    v[0] = to; v[1] = from;
    gcpi_map(c, gcpi_copy_span, v, 2, NULL, accumulate);
}

static const gcp_real *gcpi_row(const gcp_view *v, size_t pixel)
{
    return (const gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch;
}
static gcp_real *gcpi_row_out(const gcp_view *v, size_t pixel)
{
    return (gcp_real *)v->data + (ptrdiff_t)pixel * v->pitch;
}

static gcp_view gcpi_channels(const gcp_view *v, int first, int count)
{
    gcp_view part = *v;
    part.data = (gcp_real *)v->data + first;
    part.shape.d[3] = count;
    return part;
}

/* One task per image of the batch, so that scattered sums keep one order. */
typedef struct gcpi_image_job { const gcp_call *call; void (*fn)(const gcp_call *call, int image); } gcpi_image_job;
static void gcpi_image_task(void *arg, int index, int worker)
{
    const gcpi_image_job *job = (const gcpi_image_job *)arg;
    job->fn(job->call, index);
    (void)worker;
}
static void gcpi_images(const gcp_call *c, int images, void (*fn)(const gcp_call *call, int image))
{
    gcpi_image_job job;
    job.call = c; job.fn = fn;
    gcpi_parallel(c->target, images, gcpi_image_task, &job);
}
static size_t gcpi_pixel(gcp_shape s, int n, int y, int x)
{
    return ((size_t)n * (size_t)s.d[1] + (size_t)y) * (size_t)s.d[2] + (size_t)x;
}

static void gcpi_zero_image(const gcp_view *v, int image)
{
    size_t per = (size_t)v->shape.d[1] * (size_t)v->shape.d[2], width = (size_t)v->shape.d[3] * sizeof(gcp_real);
    for (size_t p = 0; p < per; p++) memset(gcpi_row_out(v, (size_t)image * per + p), 0, width);
}

/* ==== src/ops/pointwise_table.h ==== */

/* The pointwise ops, an entry each. It gives y, element by element, and dy/dx. It is all there is of one:
   from it come the enumerator, the functions and macros of gcp.h (pointwise_calls.h), rows and kernels of the CPU
   and of a GPU, and the cases of tests. x, y: input and output; p, q: the numbers that the user gives. Backward
   READS X, Y or NOTHING: the derivative uses nothing else. gcpi_exp1, gcpi_tanh1, gcpi_phi (the normal
   distribution), gcpi_density: of both machines. What a number is, behind the derivative: its field, its default
   (GCP_ZERO: it must be given), the least and the most that it may be, a value for tests. */
#define GCPI_POINTWISE(PLAIN, ONE, TWO)                                                                              \
    ONE(SCALE, scale, NOTHING, x * p, p, by, GCP_ZERO, -HUGE_VAL, HUGE_VAL, -1.7)                       /* by x */   \
    PLAIN(TANH, tanh, Y, gcpi_tanh1(x), 1 - y * y)                                                      /* tanh x */ \
    PLAIN(SIGMOID, sigmoid, Y, 1 / (1 + gcpi_exp1(-x)), y * (1 - y))                          /* 1 / (1 + exp(-x)) */ \
    PLAIN(GELU, gelu, X, x * gcpi_phi(x), gcpi_phi(x) + x * gcpi_density(x))                    /* x Phi(x), exact */

/* ==== src/ops/pointwise.h ==== */

/* The pointwise ops on the CPU, from the lines of pointwise_table.h. */

/* One value at a time, never inlined: under fast math <math.h> declares vector forms of these with other bits, and a
   loop around the call would use them. */
GCPI_ALONE double gcpi_exp(double x) { return exp(x); }
GCPI_ALONE double gcpi_pow(double x, double y) { return pow(x, y); }
GCPI_ALONE gcp_real gcpi_exp1(gcp_real x)
{
    return sizeof x == sizeof(double) ? (gcp_real)exp((double)x) : (gcp_real)expf((float)x);
}
GCPI_ALONE gcp_real gcpi_tanh1(gcp_real x)
{
    return sizeof x == sizeof(double) ? (gcp_real)tanh((double)x) : (gcp_real)tanhf((float)x);
}
GCPI_ALONE gcp_real gcpi_phi(gcp_real x) { return (gcp_real)(0.5 * erfc(-(double)x * 0.70710678118654752440)); }
static gcp_real gcpi_density(gcp_real x)
{
    return (gcp_real)(0.39894228040143267794 * gcpi_exp(-0.5 * (double)x * (double)x));
}

/* y is its value of x; dx gets dy times the derivative. */
#define GCPI_POINTWISE_NUMBERS                                                       \
    const double *numbers = gcpi_attr(s->call->attributes)->pointwise;               \
    const gcp_real p = (gcp_real)numbers[0], q = (gcp_real)numbers[1];               \
    (void)p; (void)q;
#define GCPI_POINTWISE_BACK(SET, derivative)                                         \
    for (size_t i = 0; i < s->n; i++) {                                              \
        const gcp_real x = xs[i], y = ys[i];                                         \
        (void)x; (void)y;                                                            \
        dx[i] SET dy[i] * (derivative);                                              \
    }
#define GCPI_POINTWISE_KERNELS(name, value, derivative)                              \
    GCPI_LOOP void gcpi_##name##_span(const gcpi_span *s)                            \
    {                                                                                \
        const gcp_real *in = s->p[0]; gcp_real *out = s->p[1];                       \
        GCPI_POINTWISE_NUMBERS                                                       \
        for (size_t i = 0; i < s->n; i++) { const gcp_real x = in[i]; out[i] = (value); } \
    }                                                                                \
    GCPI_LOOP void gcpi_##name##_span_back(const gcpi_span *s)                       \
    {                                                                                \
        gcp_real *dx = s->p[0];                                                      \
        const gcp_real *dy = s->p[1], *xs = s->p[2] ? s->p[2] : dy, *ys = s->p[3] ? s->p[3] : dy; \
        GCPI_POINTWISE_NUMBERS                                                       \
        if (s->accumulate) GCPI_POINTWISE_BACK(+=, derivative)                       \
        else GCPI_POINTWISE_BACK(=, derivative)                                      \
    }                                                                                \
    static void gcpi_##name##_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_##name##_span); } \
    static void gcpi_##name##_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_##name##_span_back); }

/* ---- recording ---- */

/* field: its name with the dot. */
static int gcpi_number_ok(gcp_tensor x, gcp_at at, const char *what, const char *field, double number, double least,
                          double most)
{
    char allowed[64];
    if (gcpi_finite((double)(gcp_real)number) && number >= least && number <= most) return 1;
    if (gcpi_finite(least) && gcpi_finite(most)) snprintf(allowed, sizeof allowed, "%g to %g", least, most);
    else if (gcpi_finite(least)) snprintf(allowed, sizeof allowed, "at least %g, and finite", least);
    else if (gcpi_finite(most)) snprintf(allowed, sizeof allowed, "at most %g, and finite", most);
    else snprintf(allowed, sizeof allowed, "finite");
    gcpi_bad_option(x, at, what, field, number, allowed);
    return 0;
}
/* The number itself, or its default where it is 0. */
static int gcpi_number_given(gcp_tensor x, gcp_at at, const char *what, const char *field, double otherwise,
                             double *number)
{
    const int missing = *number == 0 && otherwise == GCP_ZERO;
    if (missing && gcpi_enter(x, at, what))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s is missing; GCP_ZERO says zero", field);
    *number = gcpi_option(*number, otherwise);
    return !missing;
}
static gcp_tensor gcpi_pointwise(const gcpi_op_row *row, gcp_tensor x, double p, double q, const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.pointwise[0] = p; a.pointwise[1] = q;
    return gcpi_simple(row, &x, 1, &a, named, at);
}

#define GCPI_READS_X GCPI_IN(0), 0
#define GCPI_READS_Y 0, GCPI_OUT(0)
#define GCPI_READS_NOTHING 0, 0
#define GCPI_POINTWISE_ROW(NAME, name, reads, value, derivative)                                                    \
    GCPI_POINTWISE_KERNELS(name, value, derivative)                                                                 \
    static const gcpi_op_row gcpi_##name##_row = {                                                                  \
        GCP_OP_##NAME, { #name, gcpi_unary_shape, gcpi_##name##_forward, gcpi_##name##_backward, NULL, reads,       \
                         GCPI_OVER, 1, NULL }, NULL };
#define GCPI_POINTWISE_NUMBER(name, field, otherwise, least, most)                                                  \
    if (!gcpi_number_given(x, o.at, #name, "." #field, otherwise, &o.field) ||                                      \
        !gcpi_number_ok(x, o.at, #name, "." #field, o.field, least, most)) return gcpi_nil(x.tape);
#define GCPI_PLAIN_OP(NAME, op, reads, value, derivative)                                                         \
    GCPI_POINTWISE_ROW(NAME, op, GCPI_READS_##reads, value, derivative)                                           \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor x, gcp_op_opts o)                                                \
    {                                                                                                               \
        return gcpi_pointwise(&gcpi_##op##_row, x, 0, 0, o.name, o.at);                                           \
    }
#define GCPI_ONE_OP(NAME, op, reads, value, derivative, p, p_otherwise, p_least, p_most, p_test)                  \
    GCPI_POINTWISE_ROW(NAME, op, GCPI_READS_##reads, value, derivative)                                           \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor x, gcp_##op##_opts o)                                          \
    {                                                                                                               \
        GCPI_POINTWISE_NUMBER(op, p, p_otherwise, p_least, p_most)                                                \
        return gcpi_pointwise(&gcpi_##op##_row, x, o.p, 0, o.name, o.at);                                         \
    }
#define GCPI_TWO_OP(NAME, op, reads, value, derivative, p, p_otherwise, p_least, p_most, p_test, q, q_otherwise,  \
                    q_least, q_most, q_test)                                                                        \
    GCPI_POINTWISE_ROW(NAME, op, GCPI_READS_##reads, value, derivative)                                           \
    GCPI_DEF gcp_tensor gcp_##op##_at(gcp_tensor x, gcp_##op##_opts o)                                          \
    {                                                                                                               \
        GCPI_POINTWISE_NUMBER(op, p, p_otherwise, p_least, p_most)                                                \
        GCPI_POINTWISE_NUMBER(op, q, q_otherwise, q_least, q_most)                                                \
        return gcpi_pointwise(&gcpi_##op##_row, x, o.p, o.q, o.name, o.at);                                       \
    }
GCPI_POINTWISE(GCPI_PLAIN_OP, GCPI_ONE_OP, GCPI_TWO_OP)

/* ==== src/ops/rectifier.h ==== */

/* Rectifiers: relu, leaky_relu. max(x, slope x), with slope 0 for relu. Backward reads the sign of y, or the mask. */
static void gcpi_mask_write(unsigned char *mask, const gcp_real *x, size_t index, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        size_t k = index + i;
        if ((k & 7) == 0) mask[k >> 3] = 0;
        mask[k >> 3] = (unsigned char)(mask[k >> 3] | (x[i] > 0) << (k & 7));
    }
}

/* Packs eight bytes of 0 or 1 into the bits of one byte. The product moves byte i to bit 56 + i, and no two of its
   terms meet in a bit. */
#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    uint64_t all;
    memcpy(&all, on, sizeof all);
    return (unsigned char)(all * 0x0102040810204080u >> 56);
}
#else
GCPI_BODY unsigned char gcpi_bits(const unsigned char *on)
{
    unsigned bits = 0;
    for (unsigned i = 0; i < 8; i++) bits |= (unsigned)on[i] << i;
    return (unsigned char)bits;
}
#endif

/* Whole bytes of the mask at a time where the span begins at one. */
GCPI_BODY void gcpi_mask_span(unsigned char *mask, const gcp_real *x, size_t index, size_t n)
{
    enum { RUN = 64 };
    unsigned char on[RUN];
    size_t done = 0;
    for (; (index & 7) == 0 && done + RUN <= n; done += RUN) {
        for (int i = 0; i < RUN; i++) on[i] = x[done + (size_t)i] > 0;
        for (size_t b = 0; b < RUN / 8; b++) mask[(index + done) / 8 + b] = gcpi_bits(on + 8 * b);
    }
    for (; (index & 7) == 0 && done + 8 <= n; done += 8) {
        for (int i = 0; i < 8; i++) on[i] = x[done + (size_t)i] > 0;
        mask[(index + done) / 8] = gcpi_bits(on);
    }
    gcpi_mask_write(mask, x + done, index + done, n - done);
}

GCPI_BODY void gcpi_rectify_span_body(const gcpi_span *s)
{
    const gcp_real *x = s->p[0], slope = (gcp_real)gcpi_attr(s->call->attributes)->rectifier.slope;
    gcp_real *y = s->p[1];
    if (s->mask) gcpi_mask_span(s->mask, x, s->index, s->n);
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = x[i] > 0 ? x[i] : slope * x[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span)

/* By the mask: eight values at a time for whole bytes, the rest bit by bit. */
GCPI_BODY void gcpi_rectify_mask_back(const gcpi_span *s, gcp_real *dx, const gcp_real *dy, gcp_real slope)
{
    static const unsigned bit[8] = { 1, 2, 4, 8, 16, 32, 64, 128 };
    size_t bytes = (s->index & 7) == 0 ? s->n / 8 : 0;
    const unsigned char *mask = s->mask + s->index / 8;
    for (size_t b = 0; b < bytes; b++, mask++) {
        unsigned on = *mask;
        gcp_real *to = dx + 8 * b;
        const gcp_real *from = dy + 8 * b;
        if (s->accumulate) GCPI_EIGHT for (int i = 0; i < 8; i++) to[i] += on & bit[i] ? from[i] : slope * from[i];
        else GCPI_EIGHT for (int i = 0; i < 8; i++) to[i] = on & bit[i] ? from[i] : slope * from[i];
    }
    for (size_t i = 8 * bytes; i < s->n; i++) {
        size_t k = s->index + i;
        gcp_real g = s->mask[k >> 3] & bit[k & 7] ? dy[i] : slope * dy[i];
        dx[i] = s->accumulate ? dx[i] + g : g;
    }
}

GCPI_BODY void gcpi_rectify_span_back_body(const gcpi_span *s)
{
    gcp_real *dx = s->p[0];
    const gcp_real *dy = s->p[1], *y = s->p[3], slope = (gcp_real)gcpi_attr(s->call->attributes)->rectifier.slope;
    if (s->mask) gcpi_rectify_mask_back(s, dx, dy, slope);
    else if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] += y[i] > 0 ? dy[i] : slope * dy[i];
    else GCPI_EACH for (size_t i = 0; i < s->n; i++) dx[i] = y[i] > 0 ? dy[i] : slope * dy[i];
}
GCPI_WIDE_SPAN(gcpi_rectify_span_back)

static void gcpi_rectify_forward(const gcp_call *c) { gcpi_map_forward(c, gcpi_rectify_span); }
static void gcpi_rectify_backward(const gcp_call *c) { gcpi_map_backward(c, gcpi_rectify_span_back); }

static int gcpi_rectify_shape(gcp_shape_call *s)
{
    s->out[0] = s->out[1] = s->in[0];
    s->out_dtype[1] = GCP_DTYPE_BIT;
    return gcpi_all_real(s);
}

#define GCPI_RECTIFIER_ROW(name) \
    { name, gcpi_rectify_shape, gcpi_rectify_forward, gcpi_rectify_backward, NULL, 0, GCPI_OUT(0), \
      GCPI_OVER | GCP_FLAG_SIGN_OR_MASK, 2, NULL }
static void gcpi_rectifier_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->part = GCPI_PART_RECTIFIER; }
static const gcpi_op_row gcpi_relu_row = { GCP_OP_RELU, GCPI_RECTIFIER_ROW("relu"), gcpi_rectifier_facts };
static const gcpi_op_row gcpi_leaky_relu_row = {
    GCP_OP_LEAKY_RELU, GCPI_RECTIFIER_ROW("leaky_relu"), gcpi_rectifier_facts
};

static gcp_tensor gcpi_rectifier(const gcpi_op_row *row, gcp_tensor x, double slope, const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.rectifier.slope = slope;
    return gcpi_simple(row, &x, 1, &a, named, at);
}
GCPI_DEF gcp_tensor gcp_relu_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_rectifier(&gcpi_relu_row, x, 0, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_leaky_relu_at(gcp_tensor x, gcp_leaky_relu_opts o)
{
    double slope = gcpi_option(o.slope, 0.01);
    /* backward takes the sign of x from y */
    if (!(slope >= 0) || !gcpi_finite(slope))
        return gcpi_bad_option(x, o.at, "leaky_relu", ".slope", slope, "at least 0");
    return gcpi_rectifier(&gcpi_leaky_relu_row, x, slope, o.name, o.at);
}

/* ==== src/ops/binary.h ==== */

/* Two operands, element by element: add, mul. */
static int gcpi_pair_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    if (!gcpi_same_shape(s->in[0], s->in[1]))
        return gcpi_refuse(s,
                           "%s and %s differ; nothing is broadcast: gcp_bias adds a value a channel, gcp_upsample "
                           "spreads an n x 1 x 1 x c",
                           GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[1]));
    return gcpi_all_real(s);
}

GCPI_BODY void gcpi_add_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] + b[i];
}
GCPI_WIDE_SPAN(gcpi_add_span)

GCPI_BODY void gcpi_mul_span_body(const gcpi_span *s)
{
    const gcp_real *a = s->p[0], *b = s->p[1];
    gcp_real *y = s->p[2];
    GCPI_EACH for (size_t i = 0; i < s->n; i++) y[i] = a[i] * b[i];
}
GCPI_WIDE_SPAN(gcpi_mul_span)

GCPI_BODY void gcpi_mul_span_back_body(const gcpi_span *s)                      /* p: d of one, dy, the other */
{
    gcp_real *d = s->p[0];
    const gcp_real *dy = s->p[1], *other = s->p[2];
    if (s->accumulate) GCPI_EACH for (size_t i = 0; i < s->n; i++) d[i] += dy[i] * other[i];
    else               GCPI_EACH for (size_t i = 0; i < s->n; i++) d[i] = dy[i] * other[i];
}
GCPI_WIDE_SPAN(gcpi_mul_span_back)

static void gcpi_pair_forward(const gcp_call *c, gcpi_span_fn fn)
{
    const gcp_view *v[3];
    v[0] = &c->in[0]; v[1] = &c->in[1]; v[2] = &c->out[0];
    gcpi_map(c, fn, v, 3, NULL, 0);
}
static void gcpi_add_forward(const gcp_call *c) { gcpi_pair_forward(c, gcpi_add_span); }
static void gcpi_mul_forward(const gcp_call *c) { gcpi_pair_forward(c, gcpi_mul_span); }

static void gcpi_add_backward(const gcp_call *c)
{
    for (int i = 0; i < 2; i++)
        if (c->din[i].data) gcpi_view_copy(c, &c->din[i], &c->dout[0], c->din[i].accumulate);
}

/* Input 1 comes first, since input 0's gradient may overwrite dy. For x * x input 0 does: the other adds to it. */
static void gcpi_mul_backward(const gcp_call *c)
{
    int same = c->din[0].data == c->din[1].data;
    for (int k = 0; k < 2; k++) {
        int i = same ? k : 1 - k;
        const gcp_view *v[3];
        if (!c->din[i].data) continue;
        v[0] = &c->din[i]; v[1] = &c->dout[0]; v[2] = &c->in[1 - i];
        gcpi_map(c, gcpi_mul_span_back, v, 3, NULL, c->din[i].accumulate);
    }
}

static void gcpi_add_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->part = GCPI_PART_ADD; }
static const gcpi_op_row gcpi_add_row = {
    GCP_OP_ADD,
    { "add", gcpi_pair_shape, gcpi_add_forward, gcpi_add_backward, NULL, 0, 0,
      GCP_FLAG_IN_PLACE | GCP_FLAG_GRAD_VIEW | GCPI_EACH_ONE, 1, NULL },
    gcpi_add_facts
};
static const gcpi_op_row gcpi_mul_row = {
    GCP_OP_MUL,
    { "mul", gcpi_pair_shape, gcpi_mul_forward, gcpi_mul_backward, NULL, GCPI_IN(0) | GCPI_IN(1), 0,
      GCPI_OVER | GCP_FLAG_CROSS, 1, NULL },
    NULL
};
GCPI_DEF gcp_tensor gcp_add_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_add_row, a, b, o);
}
GCPI_DEF gcp_tensor gcp_mul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_mul_row, a, b, o);
}

/* ==== src/ops/sums.h ==== */

/* Sums over pixels, and the op whose backward is one: bias. */

/* Per channel. The shape fixes the blocks of pixels. Each block sums in double, and the blocks are
   added in order. */
enum { GCPI_SUM_BLOCKS = 64 };
typedef void (*gcpi_sum_fn)(const gcp_call *call, size_t first, size_t last, double *sums);
typedef struct gcpi_sum_job {
    const gcp_call *call;
    gcpi_sum_fn fn;
    size_t pixels, blocks, width;
    double *partial;
} gcpi_sum_job;

static size_t gcpi_sum_blocks(size_t pixels, size_t width)
{
    size_t most = GCPI_MAX((size_t)1, GCPI_MIN((size_t)GCPI_SUM_BLOCKS, 32768 / GCPI_MAX(width, (size_t)1)));
    return GCPI_MAX((size_t)1, GCPI_MIN(most, pixels / 32));
}
static gcpi_sum_job gcpi_sum_job_of(const gcp_call *call, gcp_shape shape, int sums, gcpi_sum_fn fn, void *partial)
{
    gcpi_sum_job job;
    job.call = call; job.fn = fn; job.pixels = gcpi_pixels(shape);
    job.width = (size_t)shape.d[3] * (size_t)sums;
    job.blocks = gcpi_sum_blocks(job.pixels, job.width);
    job.partial = (double *)partial;
    return job;
}
static size_t gcpi_sum_workspace(gcp_shape s, int sums)
{
    size_t width = (size_t)s.d[3] * (size_t)sums;
    return gcpi_sum_blocks(gcpi_pixels(s), width) * width * sizeof(double);
}

static size_t gcpi_sum_first(const gcpi_sum_job *job, size_t block) { return job->pixels * block / job->blocks; }
static void gcpi_sum_task(void *arg, int index, int worker)
{
    const gcpi_sum_job *job = (const gcpi_sum_job *)arg;
    double *sums = job->partial + (size_t)index * job->width;
    memset(sums, 0, job->width * sizeof *sums);
    job->fn(job->call, gcpi_sum_first(job, (size_t)index), gcpi_sum_first(job, (size_t)index + 1), sums);
    (void)worker;
}

/* Adds the blocks' sums into the first block's, and returns them: [sums][channels]. */
static double *gcpi_sum_total(const gcpi_sum_job *job)
{
    for (size_t b = 1; b < job->blocks; b++)
        for (size_t i = 0; i < job->width; i++) job->partial[i] += job->partial[b * job->width + i];
    return job->partial;
}
static double *gcpi_sums(const gcp_call *call, gcp_shape shape, int sums, gcpi_sum_fn fn)
{
    gcpi_sum_job job = gcpi_sum_job_of(call, shape, sums, fn, call->workspace);
    gcpi_parallel(call->target, (int)job.blocks, gcpi_sum_task, &job);
    return gcpi_sum_total(&job);
}

/* The same sums while the tensor is being written, in any order and by any number of threads: the thread that writes
   the last value of a block sums the block. */
#if defined(__GNUC__) || defined(__clang__)
enum { GCPI_TAKES = 1 };
#define GCPI_TAKE(left, n) __atomic_sub_fetch(left, n, __ATOMIC_ACQ_REL)
#else
enum { GCPI_TAKES = 0 };               /* never used: no atomic subtraction here */
#define GCPI_TAKE(left, n) (*(left) -= (n))
#endif
/* left: values of each block that are still to be written */
typedef struct gcpi_sum_watch { gcpi_sum_job job; size_t left[GCPI_SUM_BLOCKS]; } gcpi_sum_watch;

static void gcpi_sum_watch_of(gcpi_sum_watch *e, const gcpi_sum_job *job, int channels)
{
    e->job = *job;
    for (size_t b = 0; b < job->blocks; b++)
        e->left[b] = (gcpi_sum_first(job, b + 1) - gcpi_sum_first(job, b)) * (size_t)channels;
}
static void gcpi_sum_written(void *arg, size_t pixel, size_t pixels, int first, int count)
{
    gcpi_sum_watch *e = (gcpi_sum_watch *)arg;
    for (size_t b = pixel * e->job.blocks / e->job.pixels, n; pixels; b++, pixel += n, pixels -= n) {
        size_t end = gcpi_sum_first(&e->job, b + 1);
        n = end > pixel ? GCPI_MIN(end - pixel, pixels) : 0;
        if (n && GCPI_TAKE(&e->left[b], n * (size_t)count) == 0) gcpi_sum_task(&e->job, (int)b, 0);
    }
    (void)first;
}

static void gcpi_store_sums(const gcp_view *to, const double *sums)
{
    gcp_real *d = (gcp_real *)to->data;
    for (size_t i = 0; i < gcpi_count(to->shape); i++) d[i] = (gcp_real)((to->accumulate ? (double)d[i] : 0) + sums[i]);
}

/* Distances of prefetches, in values. These passes do so much with each cache line that the hardware prefetches too
   late: they ask for whole pixels ahead, of one tensor that is only read (READ), or of each of several. */
enum { GCPI_AHEAD = 512, GCPI_AHEAD_READ = 2048 };
static ptrdiff_t gcpi_row_ahead(const gcp_view *v, int values)
{
    return v->data ? (values / v->pitch + 1) * v->pitch : 0;
}

/* Sums take so many pixels at a time, and each channel adds them in order: the sums are loaded and stored less often. n
   is a literal: this number, or 1 at the end. */
enum { GCPI_SUM_PIXELS = 4 };

GCPI_BODY void gcpi_sum_dout_pixels(const gcp_call *c, size_t pixel, const int n, ptrdiff_t far, double *sums)
{
    const gcp_real *dy = gcpi_row(&c->dout[0], pixel);
    const ptrdiff_t pitch = c->dout[0].pitch;
    int width = c->dout[0].shape.d[3];
    for (int q = 0; q < n; q++) gcpi_fetch(dy, far + q * pitch, width);
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) sum += (double)dy[i + q * pitch];
        sums[i] = sum;
    }
}
GCPI_BODY void gcpi_sum_dout_body(const gcp_call *c, size_t first, size_t last, double *sums)
{
    const ptrdiff_t far = gcpi_row_ahead(&c->dout[0], GCPI_AHEAD_READ);
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS) gcpi_sum_dout_pixels(c, p, GCPI_SUM_PIXELS, far, sums);
    for (; p < last; p++) gcpi_sum_dout_pixels(c, p, 1, far, sums);
}
GCPI_WIDE_SUM(gcpi_sum_dout)

static void gcpi_bias_gradient(const gcp_call *c, const gcp_view *db)
{
    if (db->data) gcpi_store_sums(db, gcpi_sums(c, c->dout[0].shape, 1, gcpi_sum_dout));
}

static int gcpi_bias_fits(gcp_shape_call *s, int channels)
{
    if (s->inputs > 2 && gcpi_count(s->in[2]) != (size_t)channels)
        return gcpi_refuse(s, "a bias of %zu values for %d outputs", gcpi_count(s->in[2]), channels);
    return gcpi_all_real(s);
}
static int gcpi_bias_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    if (gcpi_count(s->in[1]) != (size_t)s->in[0].d[3])
        return gcpi_refuse(s, "%zu values for the %d channels of %s", gcpi_count(s->in[1]), s->in[0].d[3],
                           GCPI_SHAPE_TEXT(s->in[0]));
    return gcpi_all_real(s);
}

GCPI_LOOP void gcpi_bias_rows(const gcp_view *x, const gcp_real *bias, const gcp_view *y)
{
    size_t pixels = gcpi_pixels(y->shape);
    for (size_t p = 0; p < pixels; p++) {
        const gcp_real *from = gcpi_row(x, p);
        gcp_real *to = gcpi_row_out(y, p);
        for (int i = 0; i < y->shape.d[3]; i++) to[i] = from[i] + bias[i];
    }
}
static void gcpi_bias_forward(const gcp_call *c)
{
    gcpi_bias_rows(&c->in[0], (const gcp_real *)c->in[1].data, &c->out[0]);
}
static void gcpi_bias_backward(const gcp_call *c)
{
    gcpi_bias_gradient(c, &c->din[1]);
    if (c->din[0].data) gcpi_view_copy(c, &c->din[0], &c->dout[0], c->din[0].accumulate);
}
static void gcpi_bias_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward && c->wanted & 2) cost->workspace = gcpi_sum_workspace(c->out[0], 1);
}

static void gcpi_bias_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->shared = f->dense = f->early = GCPI_IN(1);
}
static const gcpi_op_row gcpi_bias_row = {
    GCP_OP_BIAS,
    { "bias", gcpi_bias_shape, gcpi_bias_forward, gcpi_bias_backward, gcpi_bias_cost, 0, 0, GCPI_OVER, 1, NULL },
    gcpi_bias_facts
};
GCPI_DEF gcp_tensor gcp_bias_at(gcp_tensor x, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_bias_row, x, b, o);
}

/* ==== src/ops/apply.h ==== */

/* Batch-norm, addition and rectifier in one pass. It is a row of its own, GCP_ROW_APPLY. */

/* Norms and apply run by chunks of pixels. means: of batch-norm's backward, else NULL. */
typedef struct gcpi_norm_job { const gcp_call *call; const gcp_real *means; size_t pixels, chunk; } gcpi_norm_job;

static void gcpi_norm_rows(const gcp_call *c, gcp_shape shape, const gcp_real *means,
                           void (*task)(void *arg, int index, int worker))
{
    gcpi_norm_job job;
    job.call = c; job.means = means; job.pixels = gcpi_pixels(shape);
    /* a multiple of 8: no two tasks share a byte of a mask */
    job.chunk = (GCPI_MAX((size_t)1, GCPI_CHUNK / (size_t)shape.d[3]) + 7) / 8 * 8;
    gcpi_parallel(c->target, (int)((job.pixels + job.chunk - 1) / job.chunk), task, &job);
}

/* Batch-norm's values per channel, and the slope of the rectifier after it. */
typedef struct gcpi_norm_values { const gcp_real *mean, *scale, *gamma, *beta; gcp_real slope; } gcpi_norm_values;
/* in: mean, scale, gamma, beta */
static gcpi_norm_values gcpi_norm_values_of(const gcp_view *in, const gcpi_attributes *rectifier)
{
    gcpi_norm_values v;
    v.mean = (const gcp_real *)in[0].data; v.scale = (const gcp_real *)in[1].data;
    v.gamma = (const gcp_real *)in[2].data; v.beta = (const gcp_real *)in[3].data;
    v.slope = rectifier ? (gcp_real)rectifier->rectifier.slope : 0;
    return v;
}
GCPI_BODY gcp_real gcpi_norm_value(const gcpi_norm_values *v, int i, gcp_real x)
{
    return (x - v->mean[i]) * (v->scale[i] * v->gamma[i]) + v->beta[i];
}

/* apply: batch-norm, addition and rectifier in one pass; any of them may be missing. The arithmetic is that of the ops
   alone. in: x, other, mean, scale, gamma, beta; out: y, mask. Attributes are the rectifier's, NULL without one. y may
   be the same bytes as x or other. norm and add are literals. Without a rectifier the slope is 1. A rectifier with a
   mask runs over what the others wrote while that is in L1. */
/* first, count: channels; far: how far ahead to prefetch x, other, y, 0: not at all */
typedef struct gcpi_apply_span { size_t pixel, pixels; int first, count; ptrdiff_t far[3]; } gcpi_apply_span;

GCPI_BODY void gcpi_apply_run(const gcpi_norm_values *v, const gcp_real *x, const gcp_real *other, gcp_real *y,
                              int channel, int count, const int norm, const int add)
{
    GCPI_EACH for (int i = 0; i < count; i++) {
        gcp_real z = norm ? gcpi_norm_value(v, channel + i, x[i]) : x[i];
        if (add) z = z + other[i];
        y[i] = z > 0 ? z : v->slope * z;
    }
}
static int gcpi_dense_rows(const gcp_view *v, int width) { return !v->data || v->pitch == width; }

/* Where rows are dense and nothing depends on the channel, several pixels go together: about so many values, which stay
   in L1, and a multiple of 8 pixels, for whole bytes of a mask. */
enum { GCPI_TOGETHER = 1024 };
GCPI_BODY void gcpi_apply_loop(const gcp_call *c, const gcpi_apply_span *s, const int norm, const int add)
{
    const int masked = c->attributes && c->out[1].data;
    gcpi_norm_values v = gcpi_norm_values_of(c->in + 2, gcpi_attr(c->attributes));
    if (!c->attributes || masked) v.slope = 1;
    const int width = c->out[0].shape.d[3];
    int flat = !norm && s->count == width && gcpi_dense_rows(&c->in[0], width) && gcpi_dense_rows(&c->in[1], width) &&
               gcpi_dense_rows(&c->out[0], width);
    size_t together = flat ? (size_t)(GCPI_TOGETHER / width + 8) / 8 * 8 : 1, end = s->pixel + s->pixels;
    for (size_t p = s->pixel, n; p < end; p += n) {
        n = GCPI_MIN(together, end - p);
        const int count = s->count * (int)n;
        const gcp_real *x = gcpi_row(&c->in[0], p) + s->first, *other = add ? gcpi_row(&c->in[1], p) + s->first : x;
        gcp_real *y = gcpi_row_out(&c->out[0], p) + s->first;
        if (s->far[0]) gcpi_fetch(x, s->far[0], count);
        if (s->far[1]) gcpi_fetch(other, s->far[1], count);
        if (s->far[2]) gcpi_fetch(y, s->far[2], count);
        gcpi_apply_run(&v, x, other, y, s->first, count, norm, add);
        if (!masked) continue;
        gcpi_span span = {
            { y, y }, (unsigned char *)c->out[1].data, (size_t)count, p * (size_t)width + (size_t)s->first, c, 0
        };
        gcpi_rectify_span(&span);
    }
}
GCPI_BODY void gcpi_apply_pixels_body(const gcp_call *c, size_t pixel, size_t pixels, int first, int count, int ahead)
{
    gcpi_apply_span s = { pixel, pixels, first, count, { 0 } };
    const gcp_view *views[] = { &c->in[0], &c->in[1], &c->out[0] };
    for (int i = 0; i < 3; i++)
        s.far[i] = ahead && c->out[0].shape.d[3] >= GCPI_LINE ? gcpi_row_ahead(views[i], GCPI_AHEAD) : 0;
    if (c->in[2].data && c->in[1].data) gcpi_apply_loop(c, &s, 1, 1);
    else if (c->in[2].data) gcpi_apply_loop(c, &s, 1, 0);
    else if (c->in[1].data) gcpi_apply_loop(c, &s, 0, 1);
    else gcpi_apply_loop(c, &s, 0, 0);
}
GCPI_WIDE(gcpi_apply_pixels, (const gcp_call *c, size_t pixel, size_t pixels, int first, int count, int ahead),
          (c, pixel, pixels, first, count, ahead), c->target)
static void gcpi_apply_end(void *arg, size_t pixel, size_t pixels, int first, int count)
{
    gcpi_apply_pixels((const gcp_call *)arg, pixel, pixels, first, count, 0);
}
static void gcpi_apply_task(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    gcpi_apply_pixels(job->call, first, last - first, 0, job->call->in[0].shape.d[3], 1);
    (void)worker;
}
static void gcpi_apply_forward(const gcp_call *c) { gcpi_norm_rows(c, c->in[0].shape, NULL, gcpi_apply_task); }

static const gcpi_op_row gcpi_apply_row = {
    GCP_ROW_APPLY, { "apply", NULL, gcpi_apply_forward, NULL, NULL, 0, 0, GCP_FLAG_IN_PLACE, 2, NULL }, NULL
};

/* ==== src/ops/norm.h ==== */

/* Normalisation: batch_norm, layer_norm. */

/* Batch-norm is two ops. Statistics: in: x, running mean, running variance; out: mean, scale = 1 / sqrt(variance +
   epsilon). It runs once a step and commits the running values (PyTorch's rule: unbiased variance). Application: in: x,
   mean, scale, gamma, beta. Its backward is that of both ops, so that x is read once:
   dx = gamma scale (dy - mean(dy) - xhat mean(dy xhat)); with running statistics (.frozen_norms) gamma scale dy. */
static int gcpi_batch_stats_shape(gcp_shape_call *s) { s->out[0] = s->out[1] = s->in[1]; return gcpi_all_real(s); }
GCPI_BODY void gcpi_sum_x_pixels(const gcp_call *c, size_t pixel, const int n, ptrdiff_t far, double *sums)
{
    const gcp_real *x = gcpi_row(&c->in[0], pixel);
    const ptrdiff_t pitch = c->in[0].pitch;
    int width = c->in[0].shape.d[3];
    double *squares = sums + width;
    for (int q = 0; q < n; q++) gcpi_fetch(x, far + q * pitch, width);
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i], square = squares[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) { double v = (double)x[i + q * pitch]; sum += v; square += v * v; }
        sums[i] = sum; squares[i] = square;
    }
}
GCPI_BODY void gcpi_sum_x_body(const gcp_call *c, size_t first, size_t last, double *sums)
{
    const ptrdiff_t far = gcpi_row_ahead(&c->in[0], GCPI_AHEAD_READ);
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS) gcpi_sum_x_pixels(c, p, GCPI_SUM_PIXELS, far, sums);
    for (; p < last; p++) gcpi_sum_x_pixels(c, p, 1, far, sums);
}
GCPI_WIDE_SUM(gcpi_sum_x)
static void gcpi_batch_stats_set(const gcp_call *c, const double *sums)      /* sums NULL: from the running values */
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    gcp_real *running_mean = (gcp_real *)c->in[1].data, *running_var = (gcp_real *)c->in[2].data;
    gcp_real *mean = (gcp_real *)c->out[0].data, *scale = (gcp_real *)c->out[1].data;
    int width = c->in[0].shape.d[3];
    double n = (double)gcpi_pixels(c->in[0].shape), m = a->norm.momentum;
    for (int i = 0; i < width; i++) {
        double mu = sums ? sums[i] / n : (double)running_mean[i];
        double var = sums ? GCPI_MAX(0.0, sums[width + i] / n - mu * mu) : (double)running_var[i];
        mean[i] = (gcp_real)mu;
        scale[i] = (gcp_real)(1.0 / sqrt(var + a->norm.epsilon));
        if (!sums || !c->commit) continue;
        running_mean[i] = (gcp_real)((1 - m) * (double)running_mean[i] + m * mu);
        running_var[i] = (gcp_real)((1 - m) * (double)running_var[i] + m * var * (n > 1 ? n / (n - 1) : 1));
    }
}
static void gcpi_batch_stats_forward(const gcp_call *c)
{
    gcpi_batch_stats_set(c, c->training ? gcpi_sums(c, c->in[0].shape, 2, gcpi_sum_x) : NULL);
}
static void gcpi_batch_stats_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    cost->workspace = gcpi_sum_workspace(c->in[0], 2);
}

static int gcpi_norm_shape(gcp_shape_call *s)       /* inputs from 1 on: one value per channel */
{
    s->out[0] = s->in[0];
    for (int i = 1; i < s->inputs; i++)
        if (gcpi_count(s->in[i]) != (size_t)s->in[0].d[3])
            return gcpi_refuse(s, "%zu values for %d channels", gcpi_count(s->in[i]), s->in[0].d[3]);
    return gcpi_all_real(s);
}
static void gcpi_batch_norm_forward(const gcp_call *c)      /* apply, without addition and rectifier */
{
    gcp_call apply = *c;
    gcp_view in[6] = { c->in[0] };
    memcpy(in + 2, c->in + 1, 4 * sizeof *in);
    apply.in = in; apply.attributes = NULL;
    gcpi_apply_forward(&apply);
}

/* The gradient of batch-norm's output: dy itself, or dy through the rectifier that comes after. The rectifier's sign is
   computed again from x, as in forward. */
GCPI_BODY gcp_real gcpi_norm_gradient(const gcpi_norm_values *v, int i, gcp_real x, gcp_real dy, int rectified)
{
    return !rectified || gcpi_norm_value(v, i, x) > 0 ? dy : v->slope * dy;
}

/* The sums of dy * xhat and of dy, n pixels at a time. */
GCPI_BODY void gcpi_sum_norm_pixels(const gcp_call *c, const gcpi_norm_values *v, size_t pixel, const int n,
                                    const int rectified, const ptrdiff_t *far, double *sums)
{
    const gcp_real *x = gcpi_row(&c->in[0], pixel), *dy = gcpi_row(&c->dout[0], pixel);
    const ptrdiff_t xp = c->in[0].pitch, dp = c->dout[0].pitch;
    int width = c->in[0].shape.d[3];
    double *plain = sums + width;
    for (int q = 0; q < n; q++) { gcpi_fetch(x, far[0] + q * xp, width); gcpi_fetch(dy, far[1] + q * dp, width); }
    GCPI_EACH for (int i = 0; i < width; i++) {
        double sum = sums[i], sum_dy = plain[i];
        GCPI_UNROLL for (int q = 0; q < n; q++) {
            gcp_real d = gcpi_norm_gradient(v, i, x[i + q * xp], dy[i + q * dp], rectified);
            sum += (double)(d * ((x[i + q * xp] - v->mean[i]) * v->scale[i]));
            sum_dy += (double)d;
        }
        sums[i] = sum; plain[i] = sum_dy;
    }
}
GCPI_BODY void gcpi_sum_norm_loop(const gcp_call *c, size_t first, size_t last, double *sums, const int rectified)
{
    const gcpi_norm_values v = gcpi_norm_values_of(c->in + 1, c->fused ? gcpi_attr(c->fused->attributes) : NULL);
    const ptrdiff_t far[] = { gcpi_row_ahead(&c->in[0], GCPI_AHEAD_READ / 2),
                              gcpi_row_ahead(&c->dout[0], GCPI_AHEAD_READ / 2) };
    size_t p = first;
    for (; p + GCPI_SUM_PIXELS <= last; p += GCPI_SUM_PIXELS)
        gcpi_sum_norm_pixels(c, &v, p, GCPI_SUM_PIXELS, rectified, far, sums);
    for (; p < last; p++) gcpi_sum_norm_pixels(c, &v, p, 1, rectified, far, sums);
}
GCPI_BODY void gcpi_sum_norm_body(const gcp_call *c, size_t first, size_t last, double *sums)
{
    if (c->fused) gcpi_sum_norm_loop(c, first, last, sums, 1);
    else gcpi_sum_norm_loop(c, first, last, sums, 0);
}
GCPI_WIDE_SUM(gcpi_sum_norm)
GCPI_BODY void gcpi_batch_norm_loop_back(const gcpi_norm_job *job, size_t first, size_t last, const int rectified,
                                         const int accumulate)
{
    const gcp_call *c = job->call;
    const gcpi_norm_values v = gcpi_norm_values_of(c->in + 1, c->fused ? gcpi_attr(c->fused->attributes) : NULL);
    const ptrdiff_t x_far = gcpi_row_ahead(&c->in[0], GCPI_AHEAD), dy_far = gcpi_row_ahead(&c->dout[0], GCPI_AHEAD),
                    dx_far = gcpi_row_ahead(&c->din[0], GCPI_AHEAD);
    int width = c->din[0].shape.d[3];
    const gcp_real *dy_xhat_mean = job->means, *dy_mean = dy_xhat_mean + width;
    for (size_t p = first; p < last; p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p), *dy = gcpi_row(&c->dout[0], p);
        gcp_real *dx = gcpi_row_out(&c->din[0], p);
        gcpi_fetch(x, x_far, width);
        gcpi_fetch(dy, dy_far, width);
        if (dx != dy) gcpi_fetch(dx, dx_far, width);
        GCPI_EACH for (int i = 0; i < width; i++) {
            gcp_real d = gcpi_norm_gradient(&v, i, x[i], dy[i], rectified);
            gcp_real g = v.gamma[i] * v.scale[i] * (d - dy_mean[i] - (x[i] - v.mean[i]) * v.scale[i] * dy_xhat_mean[i]);
            dx[i] = accumulate ? dx[i] + g : g;
        }
    }
}
GCPI_BODY void gcpi_batch_norm_task_back_body(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    /* fused: dx overwrites the rectifier's gradient, so nothing is ever added to it */
    if (job->call->fused) gcpi_batch_norm_loop_back(job, first, last, 1, 0);
    else if (job->call->din[0].accumulate) gcpi_batch_norm_loop_back(job, first, last, 0, 1);
    else gcpi_batch_norm_loop_back(job, first, last, 0, 0);
    (void)worker;
}
GCPI_WIDE_TASK(gcpi_batch_norm_task_back, gcpi_norm_job)
static void gcpi_batch_norm_backward(const gcp_call *c)
{
    const double n = (double)gcpi_pixels(c->in[0].shape);
    /* not in training: the statistics are constants, and gamma and beta are frozen */
    double *sums = c->training ? gcpi_sums(c, c->in[0].shape, 2, gcpi_sum_norm)
                               : (double *)memset(c->workspace, 0, 2 * (size_t)c->in[0].shape.d[3] * sizeof(double));
    if (c->din[3].data) gcpi_store_sums(&c->din[3], sums);
    if (c->din[4].data) gcpi_store_sums(&c->din[4], sums + c->in[0].shape.d[3]);
    /* the means overwrite the sums: a gcp_real is no wider than a double */
    for (int i = 0; i < 2 * c->in[0].shape.d[3]; i++) {
        gcp_real mean = (gcp_real)(sums[i] / n);
        memcpy((unsigned char *)sums + (size_t)i * sizeof mean, &mean, sizeof mean);
    }
    if (c->din[0].data)
        gcpi_norm_rows(c, c->din[0].shape, (const gcp_real *)(const void *)sums, gcpi_batch_norm_task_back);
}
static void gcpi_norm_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (c->backward) cost->workspace = gcpi_sum_workspace(c->in[0], 2);
}

/* Layer-norm over channels. Backward computes the mean and scale of a pixel again. */
static void gcpi_pixel_moments(const gcp_real *x, int width, double epsilon, double *mean, double *scale)
{
    double sum = 0, square = 0;
    for (int i = 0; i < width; i++) sum += (double)x[i];
    *mean = sum / width;
    for (int i = 0; i < width; i++) square += ((double)x[i] - *mean) * ((double)x[i] - *mean);
    *scale = 1.0 / sqrt(square / width + epsilon);
}
GCPI_LOOP void gcpi_layer_norm_task(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_call *c = job->call;
    const gcp_real *gamma = (const gcp_real *)c->in[1].data, *beta = (const gcp_real *)c->in[2].data;
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    int width = c->in[0].shape.d[3];
    for (size_t p = first; p < last; p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p);
        gcp_real *y = gcpi_row_out(&c->out[0], p);
        double mean, scale;
        gcpi_pixel_moments(x, width, gcpi_attr(c->attributes)->norm.epsilon, &mean, &scale);
        for (int i = 0; i < width; i++) y[i] = (gcp_real)(((double)x[i] - mean) * scale) * gamma[i] + beta[i];
    }
    (void)worker;
}
static void gcpi_layer_norm_forward(const gcp_call *c)
{
    gcpi_norm_rows(c, c->in[0].shape, NULL, gcpi_layer_norm_task);
}

GCPI_LOOP void gcpi_sum_layer_norm(const gcp_call *c, size_t first, size_t last, double *sums)
{
    int width = c->in[0].shape.d[3];
    for (size_t p = first; p < last; p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p), *dy = gcpi_row(&c->dout[0], p);
        double mean, scale;
        gcpi_pixel_moments(x, width, gcpi_attr(c->attributes)->norm.epsilon, &mean, &scale);
        for (int i = 0; i < width; i++) {
            sums[i] += (double)dy[i] * (((double)x[i] - mean) * scale);
            sums[width + i] += (double)dy[i];
        }
    }
}
GCPI_LOOP void gcpi_layer_norm_task_back(void *arg, int index, int worker)
{
    const gcpi_norm_job *job = (const gcpi_norm_job *)arg;
    const gcp_call *c = job->call;
    const gcp_real *gamma = (const gcp_real *)c->in[1].data;
    const gcp_view *d = &c->din[0];
    size_t first = (size_t)index * job->chunk, last = GCPI_MIN(first + job->chunk, job->pixels);
    int width = d->shape.d[3];
    for (size_t p = first; p < last; p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p), *dy = gcpi_row(&c->dout[0], p);
        gcp_real *dx = gcpi_row_out(d, p);
        double mean, scale, a = 0, b = 0;
        gcpi_pixel_moments(x, width, gcpi_attr(c->attributes)->norm.epsilon, &mean, &scale);
        for (int i = 0; i < width; i++) {
            double g = (double)dy[i] * (double)gamma[i];
            a += g;
            b += g * ((double)x[i] - mean) * scale;
        }
        for (int i = 0; i < width; i++) {
            double xhat = ((double)x[i] - mean) * scale;
            gcp_real g = (gcp_real)(scale * ((double)dy[i] * (double)gamma[i] - a / width - xhat * b / width));
            dx[i] = d->accumulate ? dx[i] + g : g;
        }
    }
    (void)worker;
}
static void gcpi_layer_norm_backward(const gcp_call *c)
{
    if (c->din[1].data || c->din[2].data) {
        const double *sums = gcpi_sums(c, c->in[0].shape, 2, gcpi_sum_layer_norm);
        if (c->din[1].data) gcpi_store_sums(&c->din[1], sums);
        if (c->din[2].data) gcpi_store_sums(&c->din[2], sums + c->in[0].shape.d[3]);
    }
    if (c->din[0].data) gcpi_norm_rows(c, c->din[0].shape, NULL, gcpi_layer_norm_task_back);
}

static void gcpi_batch_stats_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->stats = 1; }
static void gcpi_batch_norm_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->part = GCPI_PART_NORM;
    f->early = GCPI_IN(3) | GCPI_IN(GCPI_NORM_BETA);
    f->shared = f->dense = GCPI_IN(1) | GCPI_IN(2) | f->early;
}
static void gcpi_layer_norm_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->shared = f->dense = f->early = GCPI_IN(1) | GCPI_IN(2);
}
static const gcpi_op_row gcpi_batch_stats_row = {
    GCP_OP_BATCH_STATS,
    { "batch_stats", gcpi_batch_stats_shape, gcpi_batch_stats_forward, NULL, gcpi_batch_stats_cost, 0, 0,
      GCP_FLAG_ONCE | GCP_FLAG_NO_GRADIENT | GCP_FLAG_SAME_CHANNELS, 2, NULL },
    gcpi_batch_stats_facts
};
static const gcpi_op_row gcpi_batch_norm_row = {
    GCP_OP_BATCH_NORM,
    { "batch_norm", gcpi_norm_shape, gcpi_batch_norm_forward, gcpi_batch_norm_backward, gcpi_norm_cost,
      GCPI_IN(0) | GCPI_IN(1) | GCPI_IN(2) | GCPI_IN(3), 0, GCPI_OVER, 1, NULL },
    gcpi_batch_norm_facts
};
static const gcpi_op_row gcpi_layer_norm_row = {
    GCP_OP_LAYER_NORM,
    { "layer_norm", gcpi_norm_shape, gcpi_layer_norm_forward, gcpi_layer_norm_backward, gcpi_norm_cost,
      GCPI_IN(0) | GCPI_IN(1), 0, GCPI_OVER, 1, NULL },
    gcpi_layer_norm_facts
};

GCPI_COLD

static int gcpi_norm_options(gcp_tensor x, const char *what, gcp_norm_opts *o)
{
    o->epsilon = gcpi_option(o->epsilon, 1e-5);
    o->momentum = gcpi_option(o->momentum, 0.1);
    if (!(o->epsilon > 0) || !gcpi_finite(o->epsilon))
        gcpi_bad_option(x, o->at, what, ".epsilon", o->epsilon, "above 0");
    else if (!(o->momentum >= 0 && o->momentum <= 1))
        gcpi_bad_option(x, o->at, what, ".momentum", o->momentum, "in [0, 1]");
    else return gcpi_enter(x, o->at, what);
    return 0;
}

/* Whether gamma or beta has one value per channel. Checked before the first of the two ops is recorded. */
static int gcpi_channels_ok(gcp_tensor x, gcp_tensor values, gcp_at at)
{
    gcp_tape *t = x.tape;
    if (!gcpi_usable(t, values, at, "batch_norm")) return 0;
    const gcpi_tensor *e = gcpi_get(values);
    const int channels = gcpi_get(x)->shape.d[3];
    if (e->dtype != GCP_DTYPE_REAL)
        gcpi_fail(t, GCP_E_DTYPE, at, "batch_norm", "gamma and beta are real numbers, not integers");
    else if (gcpi_count(e->shape) != (size_t)channels)
        gcpi_fail(t, GCP_E_SHAPE, at, "batch_norm", "%zu values of gamma or beta for the %d channels of %s",
                  gcpi_count(e->shape), channels, GCPI_SHAPE_TEXT(gcpi_get(x)->shape));
    return t->code == GCP_OK;
}

/* Two ops under one name: statistics, and their application. gamma and beta are given, or made. Where the second op is
   refused, the first is taken back, too. */
static gcp_tensor gcpi_batch_norm(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given, gcp_norm_opts o)
{
    gcp_tape *t = x.tape;
    gcp_tensor stats[3], apply[5];
    gcpi_extents before;
    gcpi_attributes a = gcpi_no_attributes();
    if (t && t->full_ops) t->full_ops++;                             /* two ops: gcpi_enter counts one */
    if (!gcpi_norm_options(x, "batch_norm", &o)) return gcpi_nil(t);
    if (given && (!gcpi_channels_ok(x, gamma, o.at) || !gcpi_channels_ok(x, beta, o.at))) return gcpi_nil(t);
    a.norm.epsilon = o.epsilon; a.norm.momentum = o.momentum;
    gcp_shape channels = gcpi_raw(1, gcpi_get(x)->shape.d[3], 0, 0, 0);
    gcp_param_opts ones = gcpi_weight_options(GCP_INIT_ONES, GCP_INIT_ONES, 1, 1, o.at),
                   zeros = gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at);
    before = t->good;
    int name = gcpi_op_name(t, "batch_norm", o.name, o.at);
    int statistics = name ? gcpi_name_new(t, name, "statistics", "statistics", o.at) : 0;
    if (!statistics) return gcpi_nil(t);
    stats[0] = apply[0] = x;
    stats[1] = gcpi_parameter_of(t, GCPI_STATISTIC, name, "running_mean", channels, zeros);
    stats[2] = gcpi_parameter_of(t, GCPI_STATISTIC, name, "running_var", channels, ones);
    apply[3] = given ? gamma : gcpi_weight(t, name, "gamma", channels, ones);
    apply[4] = given ? beta : gcpi_weight(t, name, "beta", channels, zeros);
    if (t->code) return gcpi_nil(t);
    apply[1] = gcpi_record(t, &gcpi_batch_stats_row, statistics, stats, 3, &a, o.at);
    if (gcp_is_nil(apply[1]) && t->full_ops) t->full_ops++;          /* the second op is needed, too */
    if (gcp_is_nil(apply[1])) return gcpi_nil(t);
    apply[2] = gcpi_handle(t, apply[1].id + 1);
    gcp_tensor y = gcpi_record(t, &gcpi_batch_norm_row, name, apply, 5, &a, o.at);
    if (gcp_is_nil(y)) t->good = before;
    return y;
}
GCPI_DEF gcp_tensor gcp_batch_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_batch_norm(x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_batch_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts o)
{
    return gcpi_batch_norm(x, gamma, beta, 1, o);
}

/* gamma and beta are given, or made. */
static gcp_tensor gcpi_layer_norm(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, int given, gcp_norm_opts o)
{
    gcp_tape *t = x.tape;
    gcp_tensor in[3];
    gcpi_attributes a = gcpi_no_attributes();
    if (o.momentum != 0)
        return gcpi_bad_option(x, o.at, "layer_norm", ".momentum", o.momentum, "it belongs to gcp_batch_norm");
    if (!gcpi_norm_options(x, "layer_norm", &o)) return gcpi_nil(t);
    a.norm.epsilon = o.epsilon;
    gcp_shape channels = gcpi_raw(1, gcpi_get(x)->shape.d[3], 0, 0, 0);
    int name = gcpi_op_name(t, "layer_norm", o.name, o.at);
    if (!name) return gcpi_nil(t);
    gcp_param_opts ones = gcpi_weight_options(GCP_INIT_ONES, GCP_INIT_ONES, 1, 1, o.at),
                   zeros = gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at);
    in[0] = x;
    in[1] = given ? gamma : gcpi_weight(t, name, "gamma", channels, ones);
    in[2] = given ? beta : gcpi_weight(t, name, "beta", channels, zeros);
    return t->code ? gcpi_nil(t) : gcpi_record(t, &gcpi_layer_norm_row, name, in, 3, &a, o.at);
}
GCPI_DEF gcp_tensor gcp_layer_norm_at(gcp_tensor x, gcp_norm_opts o)
{
    return gcpi_layer_norm(x, gcpi_nil(NULL), gcpi_nil(NULL), 0, o);
}
GCPI_DEF gcp_tensor gcp_layer_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts o)
{
    return gcpi_layer_norm(x, gamma, beta, 1, o);
}
GCPI_WARM

/* ==== src/ops/window.h ==== */

/* Windows of an image: their arithmetic and options; pools. */

/* Window arithmetic of convolutions and pools: sets ho, wo and, for GCP_PADDING_SAME, the paddings. */
static int gcpi_window(gcp_shape_call *s, gcpi_conv_attr *a)
{
    long long eh = (long long)a->dh * (a->kh - 1) + 1, ew = (long long)a->dw * (a->kw - 1) + 1;
    if (a->same) {
        long long th = (long long)((a->h - 1) / a->sh) * a->sh + eh - a->h,
                  tw = (long long)((a->w - 1) / a->sw) * a->sw + ew - a->w;
        if (th > INT32_MAX || tw > INT32_MAX)
            return gcpi_refuse(s, "a kernel of %dx%d with .dilation = %d", a->kh, a->kw, a->dh);
        a->pt = (int)GCPI_MAX(th, 0) / 2; a->pb = (int)GCPI_MAX(th, 0) - a->pt;
        a->pl = (int)GCPI_MAX(tw, 0) / 2; a->pr = (int)GCPI_MAX(tw, 0) - a->pl;
    }
    long long fh = (long long)a->h + a->pt + a->pb - eh, fw = (long long)a->w + a->pl + a->pr - ew;
    if (fh < 0 || fw < 0 || fh / a->sh >= INT32_MAX || fw / a->sw >= INT32_MAX)
        return gcpi_refuse(s, "%s does not fit a %dx%d kernel with .out = %d, .pad = %d%s", GCPI_SHAPE_TEXT(s->in[0]),
                           a->kh, a->kw, a->co, a->pt, a->same ? "" : " (GCP_PADDING_SAME pads enough)");
    a->ho = (int)(fh / a->sh) + 1;
    a->wo = (int)(fw / a->sw) + 1;
    return 1;
}

static void gcpi_image_out(gcp_shape *out, int n, int h, int w, int c)
{
    out->rank = 4;
    out->d[0] = n; out->d[1] = h; out->d[2] = w; out->d[3] = c;
}

/* A shape rule may complete its attributes: they belong to the op that is being recorded. */
static gcpi_conv_attr *gcpi_conv_attr_of(const gcp_shape_call *s)
{
    return &((gcpi_attributes *)(uintptr_t)s->attributes)->conv;
}


/* Windows: .k sets both sides, .stride both strides, .pad all four paddings; a field for one side overrides them. */
static int gcpi_pick(int single, int both, int otherwise)
{
    return gcpi_integer(single ? single : both ? both : otherwise);
}

static int gcpi_window_in_range(const gcpi_conv_attr *a)
{
    const int most = 1 << 24, from1[] = { a->kh, a->kw, a->sh, a->sw, a->dh, a->dw, a->groups },
              from0[] = { a->pt, a->pb, a->pl, a->pr };
    for (int i = 0; i < 7; i++)
        if (from1[i] < 1 || from1[i] > most) return 0;
    for (int i = 0; i < 4; i++)
        if (from0[i] < 0 || from0[i] > (a->same ? 0 : most)) return 0;
    return 1;
}

/* Checks the options of a convolution or pool. */
static int gcpi_window_ok(gcp_tensor x, const char *what, const gcpi_conv_attr *a, gcp_padding padding, gcp_at at)
{
    if (!gcpi_enter(x, at, what)) return 0;
    if (padding != GCP_PADDING_EXPLICIT && padding != GCP_PADDING_SAME)
        gcpi_bad_option(x, at, what, ".padding", (double)padding, "GCP_PADDING_EXPLICIT or GCP_PADDING_SAME");
    else if (!a->kh || !a->kw)
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what, "%s is missing", a->kh ? ".kw" : a->kw ? ".kh" : ".k");
    else if (!gcpi_window_in_range(a))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, what,
                  ".k = %dx%d, .stride = %dx%d, .dilation = %dx%d, .groups = %d, .pad = %d %d %d %d; each "
                  "is 1 to 2^24, .pad 0 to 2^24 and left out with GCP_PADDING_SAME",
                  a->kh, a->kw, a->sh, a->sw, a->dh, a->dw, a->groups, a->pt, a->pb, a->pl, a->pr);
    return x.tape->code == GCP_OK;
}

/* ---- pools ---- */

/* Pools. Max-pool keeps in one byte which cell of the window was the largest; a 1x1 window needs none. */
static int gcpi_pool_shape(gcp_shape_call *s)
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    a->n = s->in[0].d[0]; a->h = s->in[0].d[1]; a->w = s->in[0].d[2]; a->ci = a->co = s->in[0].d[3];
    if (!gcpi_window(s, a)) return 0;
    if (a->pt >= a->kh || a->pb >= a->kh || a->pl >= a->kw || a->pr >= a->kw)
        return gcpi_refuse(s, "padding %d of a %dx%d window", GCPI_MAX(a->pt, a->pl), a->kh, a->kw);
    gcpi_image_out(&s->out[0], a->n, a->ho, a->wo, a->co);
    return gcpi_all_real(s);
}
static int gcpi_max_pool_shape(gcp_shape_call *s)
{
    if (!gcpi_pool_shape(s)) return 0;
    if ((long long)gcpi_conv_attr_of(s)->kh * gcpi_conv_attr_of(s)->kw > 256)
        return gcpi_refuse(s, "a window may have at most 256 cells");
    s->out[1] = s->out[0];
    s->out_dtype[1] = GCP_DTYPE_U8;
    return 1;
}

typedef struct gcpi_cells { int y0, y1, x0, x1, top, left; } gcpi_cells;     /* the window's cells inside the image */
static gcpi_cells gcpi_cells_of(const gcpi_conv_attr *a, int oy, int ox)
{
    gcpi_cells c;
    c.top = oy * a->sh - a->pt; c.left = ox * a->sw - a->pl;
    c.y0 = GCPI_MAX(c.top, 0); c.y1 = GCPI_MIN(c.top + a->kh, a->h);
    c.x0 = GCPI_MAX(c.left, 0); c.x1 = GCPI_MIN(c.left + a->kw, a->w);
    return c;
}

/* copies: y is x, since each window is one cell and each cell has a window. tiles: windows lie side by side. */
static int gcpi_pool_copies(const gcpi_conv_attr *a) { return a->kh * a->kw == 1 && a->sh == 1 && a->sw == 1; }
static int gcpi_pool_tiles(const gcpi_conv_attr *a)
{
    return a->kh == a->sh && a->kw == a->sw && a->ho * a->kh == a->h && a->wo * a->kw == a->w && !a->pt && !a->pl;
}
static int gcpi_one_cell(gcpi_cells c) { return c.y1 - c.y0 == 1 && c.x1 - c.x0 == 1; }

enum { GCPI_POOL_RUN = 64 };        /* channels at a time: for each, the largest value so far and its cell */

GCPI_BODY void gcpi_max_pool_run(const gcp_call *c, const gcpi_conv_attr *a, int image, gcpi_cells w, size_t o,
                                 int first, int n)
{
    gcp_real best[GCPI_POOL_RUN], *y = gcpi_row_out(&c->out[0], o) + first;
    int at[GCPI_POOL_RUN];
    unsigned char *which = c->out[1].data ? (unsigned char *)c->out[1].data + o * (size_t)a->co + first : NULL;
    if (gcpi_one_cell(w)) {
        memcpy(y, gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, w.y0, w.x0)) + first, (size_t)n * sizeof *y);
        if (which) memset(which, (w.y0 - w.top) * a->kw + w.x0 - w.left, (size_t)n);
        return;
    }
    for (int iy = w.y0; iy < w.y1; iy++)
        for (int ix = w.x0; ix < w.x1; ix++) {
            const gcp_real *x = gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, iy, ix)) + first;
            int cell = (iy - w.top) * a->kw + ix - w.left, any = iy == w.y0 && ix == w.x0;
            if (any) for (int k = 0; k < n; k++) best[k] = x[k], at[k] = cell;
            else for (int k = 0; k < n; k++) {
                at[k] = x[k] > best[k] ? cell : at[k];
                best[k] = x[k] > best[k] ? x[k] : best[k];
            }
        }
    for (int k = 0; k < n; k++) y[k] = best[k];
    for (int k = 0; which && k < n; k++) which[k] = (unsigned char)at[k];
}
GCPI_BODY void gcpi_max_pool_image_body(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++)
            for (int k = 0; k < a->co; k += GCPI_POOL_RUN)
                gcpi_max_pool_run(c, a, image, gcpi_cells_of(a, oy, ox), gcpi_pixel(c->out[0].shape, image, oy, ox), k,
                                  GCPI_MIN(GCPI_POOL_RUN, a->co - k));
}
GCPI_WIDE(gcpi_max_pool_image, (const gcp_call *c, int image), (c, image), c->target)
static void gcpi_max_pool_forward(const gcp_call *c)
{
    if (gcpi_pool_copies(&gcpi_attr(c->attributes)->conv) && !c->out[1].data)
        gcpi_view_copy(c, &c->out[0], &c->in[0], 0);
    else gcpi_images(c, c->in[0].shape.d[0], gcpi_max_pool_image);
}

GCPI_BODY void gcpi_max_pool_run_back(const gcp_call *c, const gcpi_conv_attr *a, int image, gcpi_cells w, size_t o,
                                      int first, int n, int fresh)
{
    const gcp_real *dy = gcpi_row(&c->dout[0], o) + first;
    const unsigned char *which =
        c->out[1].data ? (const unsigned char *)c->out[1].data + o * (size_t)a->co + first : NULL;
    int at[GCPI_POOL_RUN];
    if (gcpi_one_cell(w)) {
        gcp_real *dx = gcpi_row_out(&c->din[0], gcpi_pixel(c->din[0].shape, image, w.y0, w.x0)) + first;
        GCPI_EACH for (int k = 0; k < n; k++) dx[k] += dy[k];
        return;
    }
    for (int k = 0; k < n; k++) at[k] = which ? which[k] : 0;
    for (int iy = w.y0; iy < w.y1; iy++)
        for (int ix = w.x0; ix < w.x1; ix++) {
            gcp_real *dx = gcpi_row_out(&c->din[0], gcpi_pixel(c->din[0].shape, image, iy, ix)) + first;
            int cell = (iy - w.top) * a->kw + ix - w.left;
            if (fresh) for (int k = 0; k < n; k++) dx[k] = at[k] == cell ? dy[k] : 0;
            else GCPI_EACH for (int k = 0; k < n; k++) dx[k] = at[k] == cell ? dx[k] + dy[k] : dx[k];
        }
}
GCPI_BODY void gcpi_max_pool_image_back_body(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    int fresh = !c->din[0].accumulate && gcpi_pool_tiles(a);       /* each cell is written once */
    if (!c->din[0].accumulate && !fresh) gcpi_zero_image(&c->din[0], image);
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++)
            for (int k = 0; k < a->co; k += GCPI_POOL_RUN)
                gcpi_max_pool_run_back(c, a, image, gcpi_cells_of(a, oy, ox),
                                       gcpi_pixel(c->dout[0].shape, image, oy, ox), k,
                                       GCPI_MIN(GCPI_POOL_RUN, a->co - k), fresh);
}
GCPI_WIDE(gcpi_max_pool_image_back, (const gcp_call *c, int image), (c, image), c->target)
static void gcpi_max_pool_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    if (gcpi_pool_copies(&gcpi_attr(c->attributes)->conv))
        gcpi_view_copy(c, &c->din[0], &c->dout[0], c->din[0].accumulate);
    else gcpi_images(c, c->din[0].shape.d[0], gcpi_max_pool_image_back);
}

static gcp_real gcpi_cells_share(const gcpi_cells *w)
{
    return (gcp_real)1 / (gcp_real)GCPI_MAX(1, (int64_t)(w->y1 - w->y0) * (w->x1 - w->x0));
}
GCPI_LOOP void gcpi_avg_pool_image(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++) {
            gcpi_cells w = gcpi_cells_of(a, oy, ox);
            gcp_real *y = gcpi_row_out(&c->out[0], gcpi_pixel(c->out[0].shape, image, oy, ox));
            gcp_real share = gcpi_cells_share(&w);
            memset(y, 0, (size_t)a->co * sizeof *y);
            for (int iy = w.y0; iy < w.y1; iy++)
                for (int ix = w.x0; ix < w.x1; ix++) {
                    const gcp_real *x = gcpi_row(&c->in[0], gcpi_pixel(c->in[0].shape, image, iy, ix));
                    for (int k = 0; k < a->co; k++) y[k] += x[k];
                }
            for (int k = 0; k < a->co; k++) y[k] *= share;
        }
}
static void gcpi_avg_pool_forward(const gcp_call *c) { gcpi_images(c, c->in[0].shape.d[0], gcpi_avg_pool_image); }

GCPI_LOOP void gcpi_avg_pool_image_back(const gcp_call *c, int image)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    if (!c->din[0].accumulate) gcpi_zero_image(&c->din[0], image);
    for (int oy = 0; oy < a->ho; oy++)
        for (int ox = 0; ox < a->wo; ox++) {
            gcpi_cells w = gcpi_cells_of(a, oy, ox);
            const gcp_real *dy = gcpi_row(&c->dout[0], gcpi_pixel(c->dout[0].shape, image, oy, ox));
            gcp_real share = gcpi_cells_share(&w);
            for (int iy = w.y0; iy < w.y1; iy++)
                for (int ix = w.x0; ix < w.x1; ix++) {
                    gcp_real *dx = gcpi_row_out(&c->din[0], gcpi_pixel(c->din[0].shape, image, iy, ix));
                    for (int k = 0; k < a->co; k++) dx[k] += dy[k] * share;
                }
        }
}
static void gcpi_avg_pool_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_avg_pool_image_back);
}

static int gcpi_global_avg_pool_shape(gcp_shape_call *s)     /* the window is the image */
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    a->kh = a->sh = s->in[0].d[1]; a->kw = a->sw = s->in[0].d[2];
    a->dh = a->dw = a->groups = 1;
    if (!gcpi_pool_shape(s)) return 0;
    s->out[0].rank = 2;
    return 1;
}

static void gcpi_max_pool_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->window = &op->attributes.conv;
    f->in_place = gcpi_pool_copies(f->window);          /* larger windows read neighbours, too */
    f->indexed = f->window->kh * f->window->kw > 1;
}
static void gcpi_avg_pool_facts(const gcpi_op *op, gcpi_facts *f) { f->window = &op->attributes.conv; }
static const gcpi_op_row gcpi_max_pool_row = {
    GCP_OP_MAX_POOL,
    { "max_pool", gcpi_max_pool_shape, gcpi_max_pool_forward, gcpi_max_pool_backward, NULL, 0, GCPI_OUT(1), GCPI_OVER,
      2, NULL },
    gcpi_max_pool_facts
};
static const gcpi_op_row gcpi_avg_pool_row = {
    GCP_OP_AVG_POOL,
    { "avg_pool", gcpi_pool_shape, gcpi_avg_pool_forward, gcpi_avg_pool_backward, NULL, 0, 0, GCPI_EACH_ONE, 1, NULL },
    gcpi_avg_pool_facts
};
static const gcpi_op_row gcpi_global_avg_pool_row = {
    GCP_OP_GLOBAL_AVG_POOL,
    { "global_avg_pool", gcpi_global_avg_pool_shape, gcpi_avg_pool_forward, gcpi_avg_pool_backward, NULL, 0, 0,
      GCPI_EACH_ONE, 1, NULL },
    NULL
};

GCPI_COLD

static gcp_tensor gcpi_pool(const gcpi_op_row *row, gcp_tensor x, gcp_pool_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    gcpi_conv_attr *c = &a.conv;
    c->kh = gcpi_pick(o.kh, o.k, 0); c->kw = gcpi_pick(o.kw, o.k, 0);
    c->sh = gcpi_pick(o.stride_h, o.stride, c->kh); c->sw = gcpi_pick(o.stride_w, o.stride, c->kw);
    c->pt = gcpi_pick(o.pad_top, o.pad, 0); c->pb = gcpi_pick(o.pad_bottom, o.pad, 0);
    c->pl = gcpi_pick(o.pad_left, o.pad, 0); c->pr = gcpi_pick(o.pad_right, o.pad, 0);
    c->dh = c->dw = c->groups = 1;
    c->same = o.padding == GCP_PADDING_SAME;
    if (!gcpi_window_ok(x, row->op.name, c, o.padding, o.at)) return gcpi_nil(x.tape);
    return gcpi_simple(row, &x, 1, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_max_pool_at(gcp_tensor x, gcp_pool_opts o) { return gcpi_pool(&gcpi_max_pool_row, x, o); }
GCPI_DEF gcp_tensor gcp_avg_pool_at(gcp_tensor x, gcp_pool_opts o) { return gcpi_pool(&gcpi_avg_pool_row, x, o); }
GCPI_DEF gcp_tensor gcp_global_avg_pool_at(gcp_tensor x, gcp_op_opts o)
{
    return gcpi_unary(&gcpi_global_avg_pool_row, x, o);
}
GCPI_WARM

/* ==== src/ops/upsample.h ==== */

/* Upsampling by a whole factor. Bilinear: half-pixel centres, edges clamped. */
static int gcpi_upsample_shape(gcp_shape_call *s)
{
    int f = gcpi_attr(s->attributes)->upsample.factor;
    s->out[0] = s->in[0];
    if (s->in[0].d[1] > INT32_MAX / f || s->in[0].d[2] > INT32_MAX / f)
        return gcpi_refuse(s, "%s times .factor = %d", GCPI_SHAPE_TEXT(s->in[0]), f);
    s->out[0].d[1] *= f; s->out[0].d[2] *= f;
    s->out[0].rank = 4;
    return gcpi_all_real(s);
}
typedef struct gcpi_taps { int i[2]; gcp_real w[2]; } gcpi_taps;
static gcpi_taps gcpi_taps_of(int o, int factor, int size, int mode)
{
    gcpi_taps t;
    double x = mode == GCP_UPSAMPLING_BILINEAR ? GCPI_MAX(0.0, ((double)o + 0.5) / factor - 0.5) : (double)(o / factor);
    t.i[0] = (int)x;
    t.i[1] = GCPI_MIN(t.i[0] + 1, size - 1);
    t.w[1] = (gcp_real)(x - (double)t.i[0]);
    t.w[0] = 1 - t.w[1];
    return t;
}
GCPI_LOOP void gcpi_upsample_walk(const gcp_call *c, int image, const gcp_view *small, const gcp_view *large,
                                  int backward)
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    for (int oy = 0; oy < large->shape.d[1]; oy++)
        for (int ox = 0; ox < large->shape.d[2]; ox++) {
            gcpi_taps ty = gcpi_taps_of(oy, a->upsample.factor, small->shape.d[1], a->upsample.mode),
                      tx = gcpi_taps_of(ox, a->upsample.factor, small->shape.d[2], a->upsample.mode);
            gcp_real *l = gcpi_row_out(large, gcpi_pixel(large->shape, image, oy, ox));
            if (!backward) memset(l, 0, (size_t)large->shape.d[3] * sizeof *l);
            for (int t = 0; t < 4; t++) {
                gcp_real w = ty.w[t >> 1] * tx.w[t & 1];
                gcp_real *s = gcpi_row_out(small, gcpi_pixel(small->shape, image, ty.i[t >> 1], tx.i[t & 1]));
                if (w == 0) continue;
                if (backward) for (int k = 0; k < large->shape.d[3]; k++) s[k] += w * l[k];
                else          for (int k = 0; k < large->shape.d[3]; k++) l[k] += w * s[k];
            }
        }
}
static void gcpi_upsample_image(const gcp_call *c, int image)
{
    gcpi_upsample_walk(c, image, &c->in[0], &c->out[0], 0);
}
static void gcpi_upsample_image_back(const gcp_call *c, int image)
{
    if (!c->din[0].accumulate) gcpi_zero_image(&c->din[0], image);
    gcpi_upsample_walk(c, image, &c->din[0], &c->dout[0], 1);
}
static void gcpi_upsample_forward(const gcp_call *c) { gcpi_images(c, c->in[0].shape.d[0], gcpi_upsample_image); }
static void gcpi_upsample_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_upsample_image_back);
}

static const gcpi_op_row gcpi_upsample_row = {
    GCP_OP_UPSAMPLE,
    { "upsample", gcpi_upsample_shape, gcpi_upsample_forward, gcpi_upsample_backward, NULL, 0, 0, GCPI_EACH_ONE, 1,
      NULL },
    NULL
};
GCPI_DEF gcp_tensor gcp_upsample_at(gcp_tensor x, gcp_upsample_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.upsample.factor = o.factor ? o.factor : 2;
    a.upsample.mode = (int)o.mode;
    if (a.upsample.factor < 1) return gcpi_bad_option(x, o.at, "upsample", ".factor", o.factor, "at least 1");
    if (o.mode != GCP_UPSAMPLING_NEAREST && o.mode != GCP_UPSAMPLING_BILINEAR)
        return gcpi_bad_option(x, o.at, "upsample", ".mode", (double)o.mode,
                               "GCP_UPSAMPLING_NEAREST or GCP_UPSAMPLING_BILINEAR");
    return gcpi_simple(&gcpi_upsample_row, &x, 1, &a, o.name, o.at);
}

/* ==== src/ops/conv.h ==== */

/* Convolutions and transposed convolutions. */

/* Attributes hold the sizes; the pitches come with the call. */
static gcpi_conv gcpi_conv_of(const gcpi_conv_attr *a, ptrdiff_t xpitch, ptrdiff_t ypitch)
{
    gcpi_conv c;
    c.n = a->n; c.h = a->h; c.w = a->w; c.ci = a->ci; c.xpitch = xpitch;
    c.ho = a->ho; c.wo = a->wo; c.co = a->co; c.ypitch = ypitch;
    c.kh = a->kh; c.kw = a->kw; c.sh = a->sh; c.sw = a->sw; c.pt = a->pt; c.pl = a->pl;
    c.dh = a->dh; c.dw = a->dw; c.groups = a->groups;
    return c;
}

/* The limits of the kernels' ints: they hold a padded side, the values under a window, and channels rounded up to whole
   vectors. */
enum { GCPI_CHANNELS_MAX = 1 << 30, GCPI_WINDOW_LIMIT = sizeof(void *) > 4 ? INT32_MAX : INT32_MAX / 256 };
static int gcpi_conv_fits(gcp_shape_call *s, const gcpi_conv_attr *a)
{
    int64_t eh = (int64_t)a->dh * (a->kh - 1) + 1, ew = (int64_t)a->dw * (a->kw - 1) + 1;
    double side = GCPI_MAX((double)a->h + a->pt + a->pb, (double)a->w + a->pl + a->pr),
           window = (double)eh * (double)ew * GCPI_MAX(a->ci, a->co) / a->groups;
    if (side <= INT32_MAX && window <= (double)GCPI_WINDOW_LIMIT && a->ci <= GCPI_CHANNELS_MAX &&
        a->co <= GCPI_CHANNELS_MAX)
        return 1;
    return gcpi_refuse(s,
                       "%s with a %dx%d kernel and .out = %d is too large: at most 2^31 - 1 pixels a side with "
                       "padding, %d values under a window, 2^30 channels",
                       GCPI_SHAPE_TEXT(s->in[0]), a->kh, a->kw, s->out[0].d[3], (int)GCPI_WINDOW_LIMIT);
}

static int gcpi_conv_weights_fit(gcp_shape_call *s, const gcpi_conv_attr *a)
{
    const int *w = s->in[1].d;
    if (w[0] != a->co || w[1] != a->kh || w[2] != a->kw || w[3] != a->ci / a->groups)
        return gcpi_refuse(s, "weights of %dx%dx%dx%d, not %dx%dx%dx%d", w[0], w[1], w[2], w[3], a->co, a->kh, a->kw,
                           a->ci / a->groups);
    return 1;
}

static int gcpi_conv2d_shape(gcp_shape_call *s)
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    a->n = s->in[0].d[0]; a->h = s->in[0].d[1]; a->w = s->in[0].d[2]; a->ci = s->in[0].d[3];
    if (a->ci % a->groups || a->co % a->groups)
        return gcpi_refuse(s, "%d channels in and .out = %d do not divide into .groups = %d", a->ci, a->co, a->groups);
    if (!gcpi_window(s, a) || !gcpi_conv_weights_fit(s, a)) return 0;
    gcpi_image_out(&s->out[0], a->n, a->ho, a->wo, a->co);
    return gcpi_conv_fits(s, a) && gcpi_bias_fits(s, a->co);
}

static double gcpi_conv_flops(const gcpi_conv_attr *a)
{
    return 2.0 * a->n * a->ho * a->wo * a->co * (a->ci / a->groups) * a->kh * a->kw;
}

static size_t gcpi_conv_workspace(const gcpi_conv_attr *a, int pass, const gcp_target *target)
{
    gcpi_par par = gcpi_par_of(target);
    gcpi_conv c = gcpi_conv_of(a, a->ci, a->co);
    return gcpi_conv_scratch(&c, pass, &par);
}

/* forward, data: the kernel passes that compute the op's output and its input's gradient. */
static void gcpi_conv_cost(const gcp_cost_call *c, gcp_cost *cost, int forward, int data)
{
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    cost->flops = gcpi_conv_flops(a) * (c->backward ? (c->wanted & 1) + (c->wanted >> 1 & 1) : 1);
    if (!c->backward) cost->workspace = gcpi_conv_workspace(a, forward, c->target);
    if (c->backward && c->wanted & 1) cost->workspace = gcpi_conv_workspace(a, data, c->target);
    if (c->backward && c->wanted & 2)
        cost->workspace = GCPI_MAX(cost->workspace, gcpi_conv_workspace(a, GCPI_BACKWARD_WEIGHTS, c->target));
    if (c->backward && c->wanted & 4) cost->workspace = GCPI_MAX(cost->workspace, gcpi_sum_workspace(c->out[0], 1));
}
static void gcpi_conv2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_conv_cost(c, cost, GCPI_FORWARD, GCPI_BACKWARD_DATA);
}
static void gcpi_conv_transpose2d_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    gcpi_conv_cost(c, cost, GCPI_BACKWARD_DATA, GCPI_FORWARD);
}

static void gcpi_conv2d_run(const gcp_call *c, const gcpi_end *end)       /* end: may be NULL */
{
    gcpi_par par = gcpi_par_of(c->target);
    gcpi_conv d = gcpi_conv_of(&gcpi_attr(c->attributes)->conv, c->in[0].pitch, c->out[0].pitch);
    gcpi_conv_forward(&d, (const gcp_real *)c->in[0].data, (const gcp_real *)c->in[1].data,
                      c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL, (gcp_real *)c->out[0].data, 0, end,
                      c->workspace, &par);
}
static void gcpi_conv2d_forward(const gcp_call *c) { gcpi_conv2d_run(c, NULL); }

/* A convolution and the addition, rectifier or both after it, in one pass. */
static void gcpi_conv2d_apply(const gcp_call *c, gcp_call *apply)
{
    gcpi_end end = { gcpi_apply_end, apply };
    int masked = apply->out[1].data != NULL;                /* chunks of pixels may share a byte of the mask */
    gcpi_conv2d_run(c, masked ? NULL : &end);
    if (masked) gcpi_apply_forward(apply);
}
/* Bytes of a convolution's own workspace; the sums for the statistics of its output come after them. */
static size_t gcpi_conv2d_room(const gcpi_conv_attr *a, const gcp_target *target)
{
    return (gcpi_conv_workspace(a, GCPI_FORWARD, target) + 63) / 64 * 64;
}

/* Workspace of a convolution that also makes the statistics of its output, in training. */
static size_t gcpi_conv2d_stats_workspace(const gcpi_conv_attr *a, gcp_shape out, const gcp_target *target)
{
    return gcpi_conv2d_room(a, target) + gcpi_sum_workspace(out, 2);
}

static void gcpi_conv2d_stats(const gcp_call *c, const gcp_call *stats)
{
    gcpi_sum_watch sums;
    gcpi_end end = { gcpi_sum_written, &sums };
    gcpi_sum_job job =
        gcpi_sum_job_of(stats, c->out[0].shape, 2, gcpi_sum_x,
                        (unsigned char *)c->workspace + gcpi_conv2d_room(&gcpi_attr(c->attributes)->conv, c->target));
    gcpi_sum_watch_of(&sums, &job, c->out[0].shape.d[3]);
    gcpi_conv2d_run(c, &end);
    /* outputs of stats may lie in the workspace of c, but not in that of stats: the sums move there first */
    gcpi_batch_stats_set(
        stats, (const double *)memmove(stats->workspace, gcpi_sum_total(&job), job.width * sizeof *job.partial));
}
static void gcpi_conv2d_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_par_of(c->target);
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcp_real *dy = (const gcp_real *)c->dout[0].data;
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data) {
        gcpi_conv d = gcpi_conv_of(a, c->din[0].pitch, c->dout[0].pitch);
        gcpi_conv_backward_data(&d, dy, (const gcp_real *)c->in[1].data, (gcp_real *)c->din[0].data,
                                c->din[0].accumulate, c->workspace, &par);
    }
    if (c->din[1].data) {
        gcpi_conv d = gcpi_conv_of(a, c->in[0].pitch, c->dout[0].pitch);
        gcpi_conv_backward_weights(&d, (const gcp_real *)c->in[0].data, dy, (gcp_real *)c->din[1].data,
                                   c->din[1].accumulate, c->workspace, &par);
    }
}

/* A transposed convolution is the backward data pass of a convolution from its output to its input: the attributes are
   those of that convolution. */
static int gcpi_conv_transpose2d_shape(gcp_shape_call *s)
{
    gcpi_conv_attr *a = gcpi_conv_attr_of(s);
    const gcp_shape *x = &s->in[0];
    int out = a->ci;
    a->n = x->d[0]; a->ho = x->d[1]; a->wo = x->d[2]; a->co = x->d[3];
    long long h = (long long)(a->ho - 1) * a->sh - a->pt - a->pb + (long long)a->dh * (a->kh - 1) + 1;
    long long w = (long long)(a->wo - 1) * a->sw - a->pl - a->pr + (long long)a->dw * (a->kw - 1) + 1;
    if (a->same) { h = (long long)a->ho * a->sh; w = (long long)a->wo * a->sw; }
    if (h < 1 || w < 1 || h > INT32_MAX || w > INT32_MAX)
        return gcpi_refuse(s, "%s with a %dx%d kernel and .pad = %d gives %lldx%lld", GCPI_SHAPE_TEXT(*x), a->kh, a->kw,
                           a->pt, h, w);
    a->h = (int)h; a->w = (int)w;
    if (a->co % a->groups || out % a->groups)
        return gcpi_refuse(s, "%d channels in and .out = %d do not divide into .groups = %d", a->co, out, a->groups);
    if (a->same) {
        int ho = a->ho, wo = a->wo;
        if (!gcpi_window(s, a)) return 0;
        a->ho = ho; a->wo = wo;
    }
    if (!gcpi_conv_weights_fit(s, a)) return 0;
    gcpi_image_out(&s->out[0], a->n, a->h, a->w, out);
    return gcpi_conv_fits(s, a) && gcpi_bias_fits(s, out);
}

static void gcpi_conv_transpose2d_forward(const gcp_call *c)
{
    gcpi_par par = gcpi_par_of(c->target);
    gcpi_conv d = gcpi_conv_of(&gcpi_attr(c->attributes)->conv, c->out[0].pitch, c->in[0].pitch);
    gcp_real *y = (gcp_real *)c->out[0].data;
    size_t pixels = gcpi_pixels(c->out[0].shape);
    if (c->inputs > 2)
        for (size_t p = 0; p < pixels; p++)
            memcpy(gcpi_row_out(&c->out[0], p), c->in[2].data, (size_t)c->out[0].shape.d[3] * sizeof(gcp_real));
    gcpi_conv_backward_data(&d, (const gcp_real *)c->in[0].data, (const gcp_real *)c->in[1].data, y, c->inputs > 2,
                            c->workspace, &par);
}

static void gcpi_conv_transpose2d_backward(const gcp_call *c)
{
    gcpi_par par = gcpi_par_of(c->target);
    const gcpi_conv_attr *a = &gcpi_attr(c->attributes)->conv;
    const gcp_real *dy = (const gcp_real *)c->dout[0].data;
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data) {
        gcpi_conv d = gcpi_conv_of(a, c->dout[0].pitch, c->din[0].pitch);
        gcpi_conv_forward(&d, dy, (const gcp_real *)c->in[1].data, NULL, (gcp_real *)c->din[0].data,
                          c->din[0].accumulate, NULL, c->workspace, &par);
    }
    if (c->din[1].data) {
        gcpi_conv d = gcpi_conv_of(a, c->dout[0].pitch, c->in[0].pitch);
        gcpi_conv_backward_weights(&d, dy, (const gcp_real *)c->in[0].data, (gcp_real *)c->din[1].data,
                                   c->din[1].accumulate, c->workspace, &par);
    }
}

static void gcpi_conv_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->window = &op->attributes.conv;
    f->channels = GCPI_CHANNELS_WEIGHED;
    f->dense = f->shared = GCPI_IN(1) | GCPI_IN(2);
    f->early = GCPI_IN(2);
}
static void gcpi_conv2d_facts(const gcpi_op *op, gcpi_facts *f)
{
    gcpi_conv_facts(op, f);
    f->with_group = gcpi_conv2d_apply;
    f->with_stats = gcpi_conv2d_stats;
    f->stats_workspace = gcpi_conv2d_stats_workspace;
}
static const gcpi_op_row gcpi_conv2d_row = {
    GCP_OP_CONV2D,
    { "conv2d", gcpi_conv2d_shape, gcpi_conv2d_forward, gcpi_conv2d_backward, gcpi_conv2d_cost, GCPI_IN(0) | GCPI_IN(1),
      0, GCPI_PRODUCT, 1, NULL },
    gcpi_conv2d_facts
};
static const gcpi_op_row gcpi_conv_transpose2d_row = {
    GCP_OP_CONV_TRANSPOSE2D,
    { "conv_transpose2d", gcpi_conv_transpose2d_shape, gcpi_conv_transpose2d_forward, gcpi_conv_transpose2d_backward,
      gcpi_conv_transpose2d_cost, GCPI_IN(0) | GCPI_IN(1), 0, GCPI_PRODUCT, 1, NULL },
    gcpi_conv_facts
};

GCPI_COLD

/* ---- recording ---- */

static gcpi_attributes gcpi_conv_options(const gcp_conv2d_opts *o)
{
    gcpi_attributes a = gcpi_no_attributes();
    gcpi_conv_attr *c = &a.conv;
    c->kh = gcpi_pick(o->kh, o->k, 0); c->kw = gcpi_pick(o->kw, o->k, 0);
    c->sh = gcpi_pick(o->stride_h, o->stride, 1); c->sw = gcpi_pick(o->stride_w, o->stride, 1);
    c->pt = gcpi_pick(o->pad_top, o->pad, 0); c->pb = gcpi_pick(o->pad_bottom, o->pad, 0);
    c->pl = gcpi_pick(o->pad_left, o->pad, 0); c->pr = gcpi_pick(o->pad_right, o->pad, 0);
    c->dh = gcpi_pick(o->dilation_h, o->dilation, 1); c->dw = gcpi_pick(o->dilation_w, o->dilation, 1);
    c->groups = gcpi_pick(o->groups, 0, 1);
    c->same = o->padding == GCP_PADDING_SAME;
    return a;
}

static gcp_tensor gcpi_conv_record(const gcpi_op_row *row, gcp_tensor x, int name, gcp_tensor weight, gcp_tensor bias,
                                   gcpi_attributes a, gcp_conv2d_opts o)
{
    gcp_tensor in[3];
    in[0] = x; in[1] = weight; in[2] = bias;
    if (row->kind == GCP_OP_CONV_TRANSPOSE2D) { a.conv.ci = o.out; }
    else a.conv.co = o.out;
    return gcpi_record(x.tape, row, name, in, gcp_is_nil(bias) ? 2 : 3, &a, o.at);
}

static int gcpi_conv_options_ok(gcp_tensor x, const char *what, const gcpi_attributes *a, const gcp_conv2d_opts *o)
{
    if (!gcpi_window_ok(x, what, &a->conv, o->padding, o->at)) return 0;
    if (!o->out) gcpi_fail(x.tape, GCP_E_ARGUMENT, o->at, what, ".out is missing");
    else if (o->out < 0) gcpi_bad_option(x, o->at, what, ".out", o->out, "at least 1");
    return o->out > 0;
}

static gcp_tensor gcpi_conv_layer(const gcpi_op_row *row, gcp_tensor x, gcp_conv2d_opts o)
{
    const char *what = row->op.name;
    gcpi_attributes a = gcpi_conv_options(&o);
    gcp_tape *t = x.tape;
    if (!gcpi_conv_options_ok(x, what, &a, &o)) return gcpi_nil(t);
    int in = gcpi_get(x)->shape.d[3], name = gcpi_op_name(t, what, o.name, o.at);
    int transposed = row->kind == GCP_OP_CONV_TRANSPOSE2D;
    int cells = (int)GCPI_MIN((int64_t)a.conv.kh * a.conv.kw, 1 << 24);
    if (!name) return gcpi_nil(t);
    if (in % a.conv.groups || o.out % a.conv.groups) {
        gcpi_fail(t, GCP_E_SHAPE, o.at, what, "%d channels in and .out = %d do not divide into .groups = %d", in, o.out,
                  a.conv.groups);
        return gcpi_nil(t);
    }
    gcp_shape shape = transposed ? gcpi_raw(4, in, a.conv.kh, a.conv.kw, o.out / a.conv.groups)
                                 : gcpi_raw(4, o.out, a.conv.kh, a.conv.kw, in / a.conv.groups);
    double fan = (double)cells / a.conv.groups;
    gcp_tensor weight =
        gcpi_weight(t, name, "weight", shape, gcpi_weight_options(o.init, GCP_INIT_HE, fan * in, fan * o.out, o.at));
    gcp_tensor bias = o.no_bias ? gcpi_nil(t)
                                : gcpi_weight(t, name, "bias", gcpi_raw(1, o.out, 0, 0, 0),
                                              gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at));
    return t->code ? gcpi_nil(t) : gcpi_conv_record(row, x, name, weight, bias, a, o);
}
GCPI_DEF gcp_tensor gcp_conv2d_at(gcp_tensor x, gcp_conv2d_opts o) { return gcpi_conv_layer(&gcpi_conv2d_row, x, o); }
GCPI_DEF gcp_tensor gcp_conv_transpose2d_at(gcp_tensor x, gcp_conv2d_opts o)
{
    return gcpi_conv_layer(&gcpi_conv_transpose2d_row, x, o);
}

static gcp_tensor gcpi_conv_op(const gcpi_op_row *row, gcp_tensor x, gcp_tensor weight, gcp_tensor bias,
                               gcp_conv2d_opts o)
{
    const char *what = row->op.name;
    if (gcpi_get(weight)) {
        const int *d = gcpi_get(weight)->shape.d;
        if (!o.k && !o.kh) o.kh = d[1];
        if (!o.k && !o.kw) o.kw = d[2];
        if (!o.out && row->kind == GCP_OP_CONV2D) o.out = d[0];
        if (!o.out) o.out = (int)GCPI_MIN((long long)d[3] * GCPI_MAX(o.groups, 1), INT32_MAX);
    }
    gcpi_attributes a = gcpi_conv_options(&o);
    if (!gcpi_conv_options_ok(x, what, &a, &o) || !gcpi_given_ok(x, bias, what, o.init, o.no_bias, o.at))
        return gcpi_nil(x.tape);
    return gcpi_conv_record(row, x, gcpi_op_name(x.tape, what, o.name, o.at), weight, bias, a, o);
}
GCPI_DEF gcp_tensor gcp_conv2d_op_at(gcp_tensor x, gcp_tensor w, gcp_tensor b, gcp_conv2d_opts o)
{
    return gcpi_conv_op(&gcpi_conv2d_row, x, w, b, o);
}
GCPI_DEF gcp_tensor gcp_conv_transpose2d_op_at(gcp_tensor x, gcp_tensor w, gcp_tensor b, gcp_conv2d_opts o)
{
    return gcpi_conv_op(&gcpi_conv_transpose2d_row, x, w, b, o);
}
GCPI_WARM

/* ==== src/ops/dense.h ==== */

/* Matrix products: linear, matmul. linear: y = x W' + b; matmul: y = a b. */
static int gcpi_product_fits(gcp_shape_call *s)
{
    if (gcpi_pixels(s->in[0]) <= INT32_MAX && s->in[0].d[3] <= GCPI_CHANNELS_MAX && s->out[0].d[3] <= GCPI_CHANNELS_MAX)
        return 1;
    return gcpi_refuse(s, "%s to %d is too large: at most 2^31 - 1 rows and 2^30 columns", GCPI_SHAPE_TEXT(s->in[0]),
                       s->out[0].d[3]);
}

static int gcpi_linear_shape(gcp_shape_call *s)
{
    int out = gcpi_attr(s->attributes)->linear.out;
    s->out[0] = s->in[0];
    s->out[0].d[3] = out;
    if (!gcpi_product_fits(s)) return 0;
    if (gcpi_pixels(s->in[1]) != (size_t)out || s->in[1].d[3] != s->in[0].d[3])
        return gcpi_refuse(s, "weights of %s for %s and .out = %d", GCPI_SHAPE_TEXT(s->in[1]),
                           GCPI_SHAPE_TEXT(s->in[0]), out);
    return gcpi_bias_fits(s, out);
}

static int gcpi_matmul_shape(gcp_shape_call *s)
{
    s->out[0] = s->in[0];
    s->out[0].d[3] = s->in[1].d[3];
    if ((size_t)s->in[0].d[3] != gcpi_pixels(s->in[1]))
        return gcpi_refuse(
            s,
            "%s times %s; a product is of two matrices, (rows, k) by (k, columns): sizes before the last count as rows",
            GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[1]));
    return gcpi_product_fits(s) && gcpi_all_real(s);
}

/* m x k times k x n, forward and backward; tb: the second operand is stored as n x k. */
static void gcpi_product_cost(const gcp_cost_call *c, gcp_cost *cost, int tb)
{
    gcpi_par par = gcpi_par_of(c->target);
    int m = (int)gcpi_pixels(c->in[0]), k = c->in[0].d[3], n = c->out[0].d[3];
    double one = 2.0 * m * k * n;
    if (!c->backward) { cost->flops = one; cost->workspace = gcpi_gemm_scratch(0, tb, m, n, k, &par); return; }
    cost->flops = one * ((c->wanted & 1) + (c->wanted >> 1 & 1));
    if (c->wanted & 1) cost->workspace = gcpi_gemm_scratch(0, !tb, m, k, n, &par);
    if (c->wanted & 2) {
        size_t weights = tb ? gcpi_gemm_scratch(1, 0, n, k, m, &par) : gcpi_gemm_scratch(1, 0, k, n, m, &par);
        cost->workspace = GCPI_MAX(cost->workspace, weights);
    }
    if (c->wanted & 4) cost->workspace = GCPI_MAX(cost->workspace, gcpi_sum_workspace(c->out[0], 1));
}
static void gcpi_linear_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_product_cost(c, cost, 1); }
static void gcpi_matmul_cost(const gcp_cost_call *c, gcp_cost *cost) { gcpi_product_cost(c, cost, 0); }

static void gcpi_product_forward(const gcp_call *c, int tb, const gcp_real *bias)
{
    gcpi_par par = gcpi_par_of(c->target);
    gcpi_gemm(0, tb, (int)gcpi_pixels(c->in[0].shape), c->out[0].shape.d[3], c->in[0].shape.d[3],
              (const gcp_real *)c->in[0].data, c->in[0].pitch, (const gcp_real *)c->in[1].data, c->in[1].pitch, bias,
              (gcp_real *)c->out[0].data, c->out[0].pitch, 0, c->workspace, &par);
}
static void gcpi_linear_forward(const gcp_call *c)
{
    gcpi_product_forward(c, 1, c->inputs > 2 ? (const gcp_real *)c->in[2].data : NULL);
}
static void gcpi_matmul_forward(const gcp_call *c) { gcpi_product_forward(c, 0, NULL); }

static void gcpi_product_backward(const gcp_call *c, int tb)
{
    gcpi_par par = gcpi_par_of(c->target);
    const gcp_view *a = &c->in[0], *b = &c->in[1], *dy = &c->dout[0];
    const gcp_real *g = (const gcp_real *)dy->data;
    int m = (int)gcpi_pixels(dy->shape), n = dy->shape.d[3], k = a->shape.d[3];
    if (c->inputs > 2) gcpi_bias_gradient(c, &c->din[2]);
    if (c->din[0].data)
        gcpi_gemm(0, !tb, m, k, n, g, dy->pitch, (const gcp_real *)b->data, b->pitch, NULL, (gcp_real *)c->din[0].data,
                  c->din[0].pitch, c->din[0].accumulate, c->workspace, &par);
    if (c->din[1].data && tb)
        gcpi_gemm(1, 0, n, k, m, g, dy->pitch, (const gcp_real *)a->data, a->pitch, NULL, (gcp_real *)c->din[1].data,
                  c->din[1].pitch, c->din[1].accumulate, c->workspace, &par);
    else if (c->din[1].data)
        gcpi_gemm(1, 0, k, n, m, (const gcp_real *)a->data, a->pitch, g, dy->pitch, NULL, (gcp_real *)c->din[1].data,
                  c->din[1].pitch, c->din[1].accumulate, c->workspace, &par);
}
static void gcpi_linear_backward(const gcp_call *c) { gcpi_product_backward(c, 1); }
static void gcpi_matmul_backward(const gcp_call *c) { gcpi_product_backward(c, 0); }

static void gcpi_linear_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->channels = GCPI_CHANNELS_WEIGHED;
    f->shared = GCPI_IN(1) | GCPI_IN(2);
    f->dense = f->early = GCPI_IN(2);
    f->dense_on_device = GCPI_IN(1);
}
static void gcpi_matmul_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->shared = f->dense_on_device = GCPI_IN(1);
}
static const gcpi_op_row gcpi_linear_row = {
    GCP_OP_LINEAR,
    { "linear", gcpi_linear_shape, gcpi_linear_forward, gcpi_linear_backward, gcpi_linear_cost, GCPI_IN(0) | GCPI_IN(1),
      0, GCPI_PRODUCT, 1, NULL },
    gcpi_linear_facts
};
static const gcpi_op_row gcpi_matmul_row = {
    GCP_OP_MATMUL,
    { "matmul", gcpi_matmul_shape, gcpi_matmul_forward, gcpi_matmul_backward, gcpi_matmul_cost, GCPI_IN(0) | GCPI_IN(1),
      0, GCPI_PRODUCT, 1, NULL },
    gcpi_matmul_facts
};

GCPI_COLD

static gcp_tensor gcpi_linear_record(gcp_tensor x, int name, gcp_tensor weight, gcp_tensor bias, int out, gcp_at at)
{
    gcp_tensor in[3];
    gcpi_attributes a = gcpi_no_attributes();
    a.linear.out = out;
    in[0] = x; in[1] = weight; in[2] = bias;
    return gcpi_record(x.tape, &gcpi_linear_row, name, in, gcp_is_nil(bias) ? 2 : 3, &a, at);
}

GCPI_DEF gcp_tensor gcp_linear_at(gcp_tensor x, gcp_linear_opts o)
{
    gcp_tape *t = x.tape;
    if (o.out < 1) return gcpi_bad_option(x, o.at, "linear", ".out", o.out, "at least 1");
    if (!gcpi_enter(x, o.at, "linear")) return gcpi_nil(t);
    int in = gcpi_get(x)->shape.d[3], name = gcpi_op_name(t, "linear", o.name, o.at);
    if (!name) return gcpi_nil(t);
    gcp_tensor weight = gcpi_weight(t, name, "weight", gcpi_raw(2, o.out, in, 0, 0),
                                    gcpi_weight_options(o.init, GCP_INIT_HE, in, o.out, o.at));
    gcp_tensor bias = o.no_bias ? gcpi_nil(t)
                                : gcpi_weight(t, name, "bias", gcpi_raw(1, o.out, 0, 0, 0),
                                              gcpi_weight_options(GCP_INIT_ZEROS, GCP_INIT_ZEROS, 1, 1, o.at));
    return t->code ? gcpi_nil(t) : gcpi_linear_record(x, name, weight, bias, o.out, o.at);
}

GCPI_DEF gcp_tensor gcp_linear_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_linear_opts o)
{
    const gcpi_tensor *w = gcpi_get(weight);
    if (!gcpi_given_ok(x, bias, "linear", o.init, o.no_bias, o.at)) return gcpi_nil(x.tape);
    if (!o.out) o.out = w ? w->shape.d[0] : 1;
    return gcpi_linear_record(x, gcpi_op_name(x.tape, "linear", o.name, o.at), weight, bias, o.out, o.at);
}

GCPI_DEF gcp_tensor gcp_matmul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    gcp_tensor y = gcpi_binary(&gcpi_matmul_row, a, b, o);
    const gcpi_tensor *right = gcp_is_nil(y) ? NULL : gcpi_get(b);
    if (!right || right->kind != GCPI_PARAMETER) return y;
    gcpi_parameter *p = &b.tape->parameters[right->parameter];
    if (p->fan_in == 0) p->fan_in = (int)gcpi_pixels(right->shape);        /* not given: k of (k, m) */
    if (p->fan_out == 0) p->fan_out = right->shape.d[3];
    return y;
}
GCPI_WARM

/* ==== src/ops/shape.h ==== */

/* Views: concat, slice, reshape. Nothing is copied where output and input are the same bytes. */
static int gcpi_concat_shape(gcp_shape_call *s)
{
    long long channels = 0;
    for (int i = 0; i < s->inputs; i++) {
        gcp_shape want = s->in[0];
        want.d[3] = s->in[i].d[3];
        if (!gcpi_same_shape(want, s->in[i]))
            return gcpi_refuse(s, "%s beside %s", GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->in[i]));
        channels += s->in[i].d[3];
    }
    if (channels > INT32_MAX) return gcpi_refuse(s, "%lld channels", channels);
    s->out[0] = s->in[0];
    s->out[0].d[3] = (int)channels;
    return gcpi_all_real(s);
}
static void gcpi_concat_forward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3]) {
        gcp_view part = gcpi_channels(&c->out[0], at, c->in[i].shape.d[3]);
        gcpi_view_copy(c, &part, &c->in[i], 0);
    }
}
static void gcpi_concat_backward(const gcp_call *c)
{
    for (int i = 0, at = 0; i < c->inputs; at += c->in[i++].shape.d[3]) {
        gcp_view part = gcpi_channels(&c->dout[0], at, c->in[i].shape.d[3]);
        if (c->din[i].data) gcpi_view_copy(c, &c->din[i], &part, c->din[i].accumulate);
    }
}

static int gcpi_slice_shape(gcp_shape_call *s)
{
    int first = gcpi_attr(s->attributes)->slice.first, count = gcpi_attr(s->attributes)->slice.count;
    if (first < 0 || count < 1 || first > s->in[0].d[3] - count)
        return gcpi_refuse(s, "channels [%d, %d + %d) of %s", first, first, count, GCPI_SHAPE_TEXT(s->in[0]));
    s->out[0] = s->in[0];
    s->out[0].d[3] = count;
    return gcpi_all_real(s);
}
static void gcpi_slice_forward(const gcp_call *c)
{
    gcp_view part = gcpi_channels(&c->in[0], gcpi_attr(c->attributes)->slice.first, c->out[0].shape.d[3]);
    gcpi_view_copy(c, &c->out[0], &part, 0);
}
static void gcpi_slice_backward(const gcp_call *c)
{
    if (!c->din[0].data) return;
    gcp_view part = gcpi_channels(&c->din[0], gcpi_attr(c->attributes)->slice.first, c->dout[0].shape.d[3]);
    if (!c->din[0].accumulate)
        for (int n = 0; n < c->din[0].shape.d[0]; n++) gcpi_zero_image(&c->din[0], n);
    gcpi_view_copy(c, &part, &c->dout[0], c->din[0].accumulate);
}

static int gcpi_reshape_shape(gcp_shape_call *s)
{
    s->out[0] = gcpi_attr(s->attributes)->shape;
    s->out_dtype[0] = s->in_dtype[0];
    if (gcpi_count(s->out[0]) != gcpi_count(s->in[0]))
        return gcpi_refuse(s, "%s into %s: %zu and %zu values", GCPI_SHAPE_TEXT(s->in[0]), GCPI_SHAPE_TEXT(s->out[0]),
                           gcpi_count(s->in[0]), gcpi_count(s->out[0]));
    return gcpi_all_real(s);
}
GCPI_LOOP void gcpi_reshape_copy(const gcp_view *to, const gcp_view *from, int accumulate)    /* row lengths differ */
{
    size_t n = gcpi_count(to->shape), tw = (size_t)to->shape.d[3], fw = (size_t)from->shape.d[3];
    if (to->data == from->data && !accumulate) return;
    for (size_t i = 0; i < n;) {
        size_t run = GCPI_MIN(tw - i % tw, fw - i % fw);
        gcp_real *t = gcpi_row_out(to, i / tw) + i % tw;
        const gcp_real *f = gcpi_row(from, i / fw) + i % fw;
        for (size_t k = 0; k < run; k++) t[k] = accumulate ? t[k] + f[k] : f[k];
        i += run;
    }
}
static void gcpi_reshape_forward(const gcp_call *c) { gcpi_reshape_copy(&c->out[0], &c->in[0], 0); }
static void gcpi_reshape_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_reshape_copy(&c->din[0], &c->dout[0], c->din[0].accumulate);
}

static void gcpi_concat_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->view = GCPI_VIEW_JOINED; }
static void gcpi_reshape_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->view = GCPI_VIEW_WHOLE; }
static void gcpi_slice_facts(const gcpi_op *op, gcpi_facts *f)
{
    f->view = GCPI_VIEW_PART;
    f->first = op->attributes.slice.first;
}
static const gcpi_op_row gcpi_concat_row = {
    GCP_OP_CONCAT,
    { "concat", gcpi_concat_shape, gcpi_concat_forward, gcpi_concat_backward, NULL, 0, 0,
      GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW | GCP_FLAG_SAMPLES_APART, 1, NULL },
    gcpi_concat_facts
};
static const gcpi_op_row gcpi_slice_row = {
    GCP_OP_SLICE,
    { "slice", gcpi_slice_shape, gcpi_slice_forward, gcpi_slice_backward, NULL, 0, 0, GCP_FLAG_VIEW | GCPI_EACH_ONE, 1,
      NULL },
    gcpi_slice_facts
};
static const gcpi_op_row gcpi_reshape_row = {
    GCP_OP_RESHAPE,
    { "reshape", gcpi_reshape_shape, gcpi_reshape_forward, gcpi_reshape_backward, NULL, 0, 0,
      GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW | GCP_FLAG_SAMPLES_APART, 1, NULL },
    gcpi_reshape_facts
};

GCPI_DEF gcp_tensor gcp_slice_at(gcp_tensor x, gcp_slice_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.slice.first = gcpi_integer(o.first);
    a.slice.count = o.count;
    return gcpi_simple(&gcpi_slice_row, &x, 1, &a, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_concat_at(const gcp_tensor *inputs, int count, gcp_op_opts o)
{
    gcp_tape *t = inputs && count > 0 ? inputs[0].tape : NULL;
    return t ? gcpi_simple(&gcpi_concat_row, inputs, count, NULL, o.name, o.at) : gcpi_nil(NULL);
}

static gcp_tensor gcpi_reshape(gcp_tensor x, gcp_shape raw, const char *named, gcp_at at)
{
    gcpi_attributes a = gcpi_no_attributes();
    char wrong[160];
    if (gcpi_shape_normal(raw, &a.shape)) return gcpi_simple(&gcpi_reshape_row, &x, 1, &a, named, at);
    if (gcpi_enter(x, at, "reshape"))
        gcpi_fail(x.tape, GCP_E_ARGUMENT, at, "reshape", "its output %s", gcpi_shape_wrong(raw, wrong, sizeof wrong));
    return gcpi_nil(x.tape);
}
GCPI_DEF gcp_tensor gcp_reshape_at(gcp_tensor x, gcp_shape shape, gcp_op_opts o)
{
    return gcpi_reshape(x, shape, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_flatten_at(gcp_tensor x, gcp_op_opts o)
{
    const gcpi_tensor *e = gcpi_get(x);
    size_t per = e ? gcpi_count(e->shape) / (size_t)e->shape.d[0] : 1;
    gcp_shape s;
    memset(&s, 0, sizeof s);
    s.rank = 2;
    s.d[0] = e ? e->shape.d[0] : 1;
    s.d[1] = per <= INT32_MAX ? (int)per : 0;
    return gcpi_reshape(x, s, o.name, o.at);
}

/* ==== src/ops/dropout.h ==== */

/* Dropout: y = x / (1 - rate) or 0. A draw depends on seed, step, op, global sample and element only. */
GCPI_LOOP void gcpi_dropout_walk(const gcp_call *c, const gcp_view *to, const gcp_view *from, int image, int accumulate)
{
    double rate = gcpi_attr(c->attributes)->dropout.rate;
    uint32_t limit = (uint32_t)(rate * 4294967296.0);
    gcp_real gain = (gcp_real)(1.0 / (1.0 - rate));
    uint64_t sample = c->numbers->first_sample + (uint64_t)image,
             key = c->numbers->seed + 0x9E3779B97F4A7C15u * c->ordinal;
    size_t per = (size_t)to->shape.d[1] * (size_t)to->shape.d[2], width = (size_t)to->shape.d[3];
    uint64_t element = 0;
    gcpi_random r;
    for (size_t p = 0; p < per; p++) {
        const gcp_real *x = gcpi_row(from, (size_t)image * per + p);
        gcp_real *y = gcpi_row_out(to, (size_t)image * per + p);
        for (size_t i = 0; i < width; i++, element++) {
            if (i == 0 || (element & 3) == 0)
                r = gcpi_philox((uint32_t)(element >> 2), (uint32_t)sample, (uint32_t)c->numbers->step,
                                (uint32_t)((element >> 34) ^ (sample >> 32)), key);
            gcp_real v = r.x[element & 3] >= limit ? x[i] * gain : 0;
            y[i] = accumulate ? y[i] + v : v;
        }
    }
}
static void gcpi_dropout_image(const gcp_call *c, int image) { gcpi_dropout_walk(c, &c->out[0], &c->in[0], image, 0); }
static void gcpi_dropout_image_back(const gcp_call *c, int image)
{
    gcpi_dropout_walk(c, &c->din[0], &c->dout[0], image, c->din[0].accumulate);
}
static void gcpi_dropout_forward(const gcp_call *c)
{
    if (c->training) gcpi_images(c, c->in[0].shape.d[0], gcpi_dropout_image);
    else gcpi_view_copy(c, &c->out[0], &c->in[0], 0);
}
static void gcpi_dropout_backward(const gcp_call *c)
{
    if (c->din[0].data) gcpi_images(c, c->din[0].shape.d[0], gcpi_dropout_image_back);
}

static const gcpi_op_row gcpi_dropout_row = { GCP_OP_DROPOUT,
                                              { "dropout", gcpi_unary_shape, gcpi_dropout_forward,
                                                gcpi_dropout_backward, NULL, 0, 0, GCPI_OVER, 1, NULL },
                                              NULL };
GCPI_DEF gcp_tensor gcp_dropout_at(gcp_tensor x, gcp_dropout_opts o)
{
    gcpi_attributes a = gcpi_no_attributes();
    a.dropout.rate = gcpi_option(o.rate, 0);
    if (!(a.dropout.rate >= 0 && a.dropout.rate < 1))
        return gcpi_bad_option(x, o.at, "dropout", ".rate", a.dropout.rate, "at least 0 and less than 1");
    return gcpi_simple(&gcpi_dropout_row, &x, 1, &a, o.name, o.at);
}

/* ==== src/ops/embedding.h ==== */

/* Embedding: rows of a table. Backward adds rows in the order of the ids. */
static int gcpi_embedding_shape(gcp_shape_call *s)
{
    const int *d = s->in[0].d;
    if (s->in_dtype[0] != GCP_DTYPE_I32) return gcpi_refuse_type(s, "ids must be gcp_ids");
    if (s->in_dtype[1] != GCP_DTYPE_REAL) return gcpi_refuse_type(s, "input 1 holds integers, not real numbers");
    if (d[1] != 1 || s->in[0].rank > 2)
        return gcpi_refuse(s, "ids of %s: at most two sizes", GCPI_SHAPE_TEXT(s->in[0]));
    s->out[0].rank = s->in[0].rank + 1;
    s->out[0].d[0] = s->in[0].rank == 1 ? d[3] : d[0];
    s->out[0].d[1] = 1;
    s->out[0].d[2] = s->in[0].rank == 1 ? 1 : d[3];
    s->out[0].d[3] = s->in[1].d[3];
    return 1;
}
static size_t gcpi_entry(const gcp_call *c, size_t i)
{
    int32_t id = ((const int32_t *)c->in[0].data)[i];
    return id < 0 || (size_t)id >= gcpi_pixels(c->in[1].shape) ? 0 : (size_t)id;
}
static void gcpi_embedding_forward(const gcp_call *c)
{
    size_t n = gcpi_count(c->in[0].shape), width = (size_t)c->in[1].shape.d[3] * sizeof(gcp_real);
    for (size_t i = 0; i < n; i++) memcpy(gcpi_row_out(&c->out[0], i), gcpi_row(&c->in[1], gcpi_entry(c, i)), width);
}
static void gcpi_embedding_backward(const gcp_call *c)
{
    size_t n = gcpi_count(c->in[0].shape);
    const gcp_view *d = &c->din[1];
    if (!d->data) return;
    if (!d->accumulate) memset(d->data, 0, gcpi_count(d->shape) * sizeof(gcp_real));
    for (size_t i = 0; i < n; i++) {
        gcp_real *to = gcpi_row_out(d, gcpi_entry(c, i));
        const gcp_real *dy = gcpi_row(&c->dout[0], i);
        for (int k = 0; k < d->shape.d[3]; k++) to[k] += dy[k];
    }
}

static gcpi_label_range gcpi_embedding_ids(const gcpi_attributes *a, gcp_shape table)
{
    gcpi_label_range r = { (int)GCPI_MIN(gcpi_pixels(table), (size_t)INT32_MAX), 0, 0 };
    (void)a;
    return r;
}
static void gcpi_embedding_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->channels = GCPI_CHANNELS_LOOKED_UP;
    f->shared = GCPI_IN(1);
    f->labels = gcpi_embedding_ids;
}
static const gcpi_op_row gcpi_embedding_row = {
    GCP_OP_EMBEDDING,
    { "embedding", gcpi_embedding_shape, gcpi_embedding_forward, gcpi_embedding_backward, NULL, GCPI_IN(0), 0,
      GCP_FLAG_SAMPLES_APART, 1, NULL },
    gcpi_embedding_facts
};

GCPI_DEF gcp_tensor gcp_embedding_op_at(gcp_tensor ids, gcp_tensor table, gcp_embedding_opts o)
{
    gcp_tensor in[2];
    const gcpi_tensor *e = gcpi_get(table);
    in[0] = ids; in[1] = table;
    if (e && o.entries && (size_t)o.entries != gcpi_pixels(e->shape))
        return gcpi_bad_option(ids, o.at, "embedding", ".entries", o.entries, "not the table's");
    if (e && o.out && o.out != e->shape.d[3])
        return gcpi_bad_option(ids, o.at, "embedding", ".out", o.out, "not the table's");
    return gcpi_simple(&gcpi_embedding_row, in, 2, NULL, o.name, o.at);
}

GCPI_DEF gcp_tensor gcp_embedding_at(gcp_tensor ids, gcp_embedding_opts o)
{
    gcp_tape *t = ids.tape;
    gcp_tensor in[2];
    if (o.entries < 1 || o.out < 1)
        return gcpi_bad_option(ids, o.at, "embedding", o.entries < 1 ? ".entries" : ".out",
                               o.entries < 1 ? o.entries : o.out, "at least 1");
    if (!gcpi_enter(ids, o.at, "embedding")) return gcpi_nil(t);
    int name = gcpi_op_name(t, "embedding", o.name, o.at);
    if (!name) return gcpi_nil(t);
    in[0] = ids;
    in[1] = gcpi_weight(t, name, "table", gcpi_raw(2, o.entries, o.out, 0, 0),
                        gcpi_weight_options(GCP_INIT_GLOROT, GCP_INIT_GLOROT, o.entries, o.out, o.at));
    return t->code ? gcpi_nil(t) : gcpi_record(t, &gcpi_embedding_row, name, in, 2, NULL, o.at);
}

/* ==== src/ops/loss.h ==== */

/* Losses: cross_entropy, mse, mean. */

/* One sum per block of pixels. The shape fixes the blocks; their sums are added in order, in double. */
typedef struct gcpi_loss_job {
    const gcp_call *call;
    double (*value)(const gcp_call *call, size_t pixel);
    size_t pixels, blocks;
} gcpi_loss_job;
static void gcpi_loss_task(void *arg, int index, int worker)
{
    const gcpi_loss_job *job = (const gcpi_loss_job *)arg;
    size_t first = job->pixels * (size_t)index / job->blocks, last = job->pixels * (size_t)(index + 1) / job->blocks;
    double sum = 0;
    for (size_t p = first; p < last; p++) sum += job->value(job->call, p);
    ((double *)job->call->workspace)[index] = sum;
    (void)worker;
}
static size_t gcpi_loss_blocks(gcp_shape s) { return GCPI_MIN((size_t)64, (gcpi_pixels(s) + 15) / 16); }
static void gcpi_loss(const gcp_call *c, double (*value)(const gcp_call *call, size_t pixel), double count)
{
    gcpi_loss_job job;
    double sum = 0;
    job.call = c; job.value = value; job.pixels = gcpi_pixels(c->in[0].shape);
    job.blocks = gcpi_loss_blocks(c->in[0].shape);
    gcpi_parallel(c->target, (int)job.blocks, gcpi_loss_task, &job);
    for (size_t b = 0; b < job.blocks; b++) sum += ((double *)c->workspace)[b];
    *(gcp_real *)c->out[0].data = (gcp_real)(sum / count);
}
static void gcpi_loss_cost(const gcp_cost_call *c, gcp_cost *cost)
{
    if (!c->backward) cost->workspace = gcpi_loss_blocks(c->in[0]) * sizeof(double);
}

static int gcpi_cross_entropy_shape(gcp_shape_call *s)
{
    s->out[0] = gcpi_scalar();
    if (s->in_dtype[0] != GCP_DTYPE_REAL || s->in_dtype[1] != GCP_DTYPE_I32)
        return gcpi_refuse_type(s, "needs real logits and gcp_labels");
    if (gcpi_count(s->in[1]) != gcpi_pixels(s->in[0]))
        return gcpi_refuse(s, "%zu labels for the %zu rows of %s", gcpi_count(s->in[1]), gcpi_pixels(s->in[0]),
                           GCPI_SHAPE_TEXT(s->in[0]));
    return 1;
}
static int gcpi_label(const gcp_call *c, size_t pixel)                       /* -1: ignored, or out of range */
{
    const gcpi_attributes *a = gcpi_attr(c->attributes);
    int32_t label = ((const int32_t *)c->in[1].data)[pixel];
    return label >= 0 && label < c->in[0].shape.d[3] && !(a->labels.ignores && label == a->labels.ignore) ? label : -1;
}
static double gcpi_labels_counted(const gcp_call *c)
{
    size_t n = gcpi_pixels(c->in[0].shape), counted = 0;
    for (size_t p = 0; p < n; p++) counted += gcpi_label(c, p) >= 0;
    return counted ? (double)counted : 1;
}
static void gcpi_softmax_sums(const gcp_real *x, int width, double *top, double *sum)
{
    *top = (double)x[0];
    for (int i = 1; i < width; i++) *top = GCPI_MAX(*top, (double)x[i]);
    *sum = 0;
    for (int i = 0; i < width; i++) *sum += gcpi_exp((double)x[i] - *top);
}
static double gcpi_cross_entropy_value(const gcp_call *c, size_t pixel)
{
    const gcp_real *x = gcpi_row(&c->in[0], pixel);
    int label = gcpi_label(c, pixel);
    double top, sum;
    if (label < 0) return 0;
    gcpi_softmax_sums(x, c->in[0].shape.d[3], &top, &sum);
    return log(sum) + top - (double)x[label];
}
static void gcpi_cross_entropy_forward(const gcp_call *c)
{
    gcpi_loss(c, gcpi_cross_entropy_value, gcpi_labels_counted(c));
}
static void gcpi_cross_entropy_backward(const gcp_call *c)
{
    const gcp_view *d = &c->din[0];
    int width = c->in[0].shape.d[3];
    double share;
    if (!d->data) return;
    share = (double)*(const gcp_real *)c->dout[0].data / gcpi_labels_counted(c);
    for (size_t p = 0; p < gcpi_pixels(d->shape); p++) {
        const gcp_real *x = gcpi_row(&c->in[0], p);
        gcp_real *dx = gcpi_row_out(d, p);
        int label = gcpi_label(c, p);
        double top, sum;
        gcpi_softmax_sums(x, width, &top, &sum);
        for (int i = 0; i < width; i++) {
            gcp_real g = label < 0 ? 0 : (gcp_real)((gcpi_exp((double)x[i] - top) / sum - (i == label)) * share);
            dx[i] = d->accumulate ? dx[i] + g : g;
        }
    }
}

static int gcpi_mse_shape(gcp_shape_call *s)
{
    if (!gcpi_pair_shape(s)) return 0;
    s->out[0] = gcpi_scalar();
    return 1;
}
static double gcpi_mse_value(const gcp_call *c, size_t pixel)
{
    const gcp_real *a = gcpi_row(&c->in[0], pixel), *b = gcpi_row(&c->in[1], pixel);
    double sum = 0;
    for (int i = 0; i < c->in[0].shape.d[3]; i++) sum += ((double)a[i] - (double)b[i]) * ((double)a[i] - (double)b[i]);
    return sum;
}
static void gcpi_mse_forward(const gcp_call *c) { gcpi_loss(c, gcpi_mse_value, (double)gcpi_count(c->in[0].shape)); }
static void gcpi_mse_backward(const gcp_call *c)
{
    gcp_real share = (gcp_real)(2.0 * (double)*(const gcp_real *)c->dout[0].data / (double)gcpi_count(c->in[0].shape));
    for (int k = 0; k < 2; k++)
        for (size_t p = 0; c->din[k].data && p < gcpi_pixels(c->in[0].shape); p++) {
            const gcp_real *a = gcpi_row(&c->in[k], p), *b = gcpi_row(&c->in[1 - k], p);
            gcp_real *d = gcpi_row_out(&c->din[k], p);
            for (int i = 0; i < c->in[0].shape.d[3]; i++)
                d[i] = (c->din[k].accumulate ? d[i] : 0) + (a[i] - b[i]) * share;
        }
}

static int gcpi_mean_shape(gcp_shape_call *s) { s->out[0] = gcpi_scalar(); return gcpi_all_real(s); }
static double gcpi_mean_value(const gcp_call *c, size_t pixel)
{
    const gcp_real *x = gcpi_row(&c->in[0], pixel);
    double sum = 0;
    for (int i = 0; i < c->in[0].shape.d[3]; i++) sum += (double)x[i];
    return sum;
}
static void gcpi_mean_forward(const gcp_call *c) { gcpi_loss(c, gcpi_mean_value, (double)gcpi_count(c->in[0].shape)); }
static void gcpi_mean_backward(const gcp_call *c)
{
    const gcp_view *d = &c->din[0];
    if (!d->data) return;
    gcp_real share = (gcp_real)((double)*(const gcp_real *)c->dout[0].data / (double)gcpi_count(d->shape));
    for (size_t p = 0; p < gcpi_pixels(d->shape); p++) {
        gcp_real *dx = gcpi_row_out(d, p);
        for (int i = 0; i < d->shape.d[3]; i++) dx[i] = (d->accumulate ? dx[i] : 0) + share;
    }
}

static gcpi_label_range gcpi_cross_entropy_labels(const gcpi_attributes *a, gcp_shape logits)
{
    gcpi_label_range r = { logits.d[3], a->labels.ignores, a->labels.ignores ? a->labels.ignore : -1 };
    return r;
}
static void gcpi_cross_entropy_facts(const gcpi_op *op, gcpi_facts *f)
{
    (void)op;
    f->labels = gcpi_cross_entropy_labels;
    f->leaves_out = 1;
}
static const gcpi_op_row gcpi_cross_entropy_row = {
    GCP_OP_CROSS_ENTROPY,
    { "cross_entropy", gcpi_cross_entropy_shape, gcpi_cross_entropy_forward, gcpi_cross_entropy_backward,
      gcpi_loss_cost, GCPI_IN(0) | GCPI_IN(1), 0, GCPI_LOSS, 1, NULL },
    gcpi_cross_entropy_facts
};
static const gcpi_op_row gcpi_mse_row = {
    GCP_OP_MSE,
    { "mse", gcpi_mse_shape, gcpi_mse_forward, gcpi_mse_backward, gcpi_loss_cost, GCPI_IN(0) | GCPI_IN(1), 0, GCPI_LOSS,
      1, NULL },
    NULL
};
static const gcpi_op_row gcpi_mean_row = {
    GCP_OP_MEAN,
    { "mean", gcpi_mean_shape, gcpi_mean_forward, gcpi_mean_backward, gcpi_loss_cost, 0, 0, GCPI_LOSS, 1, NULL },
    NULL
};

GCPI_DEF gcp_tensor gcp_cross_entropy_at(gcp_tensor x, gcp_tensor labels, gcp_cross_entropy_opts o)
{
    gcp_tensor in[2];
    gcpi_attributes a = gcpi_no_attributes();
    in[0] = x; in[1] = labels;
    a.labels.ignore = o.ignore == GCP_ZERO ? 0 : o.ignore;
    a.labels.ignores = o.ignore != 0;
    return gcpi_simple(&gcpi_cross_entropy_row, in, 2, &a, o.name, o.at);
}
GCPI_DEF gcp_tensor gcp_mse_at(gcp_tensor a, gcp_tensor b, gcp_op_opts o)
{
    return gcpi_binary(&gcpi_mse_row, a, b, o);
}
GCPI_DEF gcp_tensor gcp_mean_at(gcp_tensor x, gcp_op_opts o) { return gcpi_unary(&gcpi_mean_row, x, o); }

/* ==== src/ops/update.h ==== */

/* What a step does besides its ops: seed gradient, norm of gradients, updates. */

/* The attributes of these calls are the plan's options. seed: the gradient of the
   loss with respect to itself. */
static void gcpi_seed_forward(const gcp_call *c)
{
    *(gcp_real *)c->out[0].data = (gcp_real)*(const double *)c->attributes;
}

/* norm: forward adds the squares of one gradient to the sum in the workspace (the first gradient sets it). backward
   turns the sum into the step's gradient scale. */
static void gcpi_gradient_norm_add(const gcp_call *c)
{
    const gcp_real *g = (const gcp_real *)c->in[0].data;
    size_t count = gcpi_count(c->in[0].shape);
    double sum = c->in[0].accumulate ? *(double *)c->workspace : 0;
    for (size_t i = 0; i < count; i++) sum += (double)g[i] * (double)g[i];
    *(double *)c->workspace = sum;
}
static void gcpi_gradient_norm_finish(const gcp_call *c)
{
    gcp_step_numbers *n = (gcp_step_numbers *)(uintptr_t)c->numbers;
    double limit = ((const gcp_plan_opts *)c->attributes)->clip_norm, scale = 1.0 / n->micros;
    n->gradient_norm = sqrt(*(double *)c->workspace) * scale;
    n->gradient_scale = scale * GCPI_MIN(1.0, limit / (n->gradient_norm + 1e-6));
}
static void gcpi_gradient_norm_workspace(const gcp_cost_call *c, gcp_cost *cost)
{
    (void)c;
    cost->workspace = sizeof(double);
}

/* update: in: the gradient; how often the slots were updated so far (uint64_t); what multiplies .lr, and the weight
   decay (two doubles that the CPU reads; NULL: 1 and the option's); out: the value, up to two slots. */
typedef struct gcpi_update_rates { double rate, decay; } gcpi_update_rates;
static gcpi_update_rates gcpi_update_rates_of(const gcp_call *c)
{
    const double *own = (const double *)c->in[2].data;
    gcpi_update_rates r = { 1, ((const gcp_plan_opts *)c->attributes)->weight_decay };
    if (own) { r.rate = own[0]; r.decay = own[1]; }
    return r;
}
typedef struct gcpi_update_job {
    const gcp_target *target; const gcp_plan_opts *o; const gcp_step_numbers *n;
    double lr, decay;
    gcp_real *w, *s1, *s2; const gcp_real *g;
    size_t count;
    double first, second;             /* Adam: 1 - beta1^t, 1 - beta2^t; t counts this parameter's updates */
} gcpi_update_job;

GCPI_BODY gcp_real gcpi_clip(const gcpi_update_job *u, gcp_real g)
{
    g *= (gcp_real)u->n->gradient_scale;
    if (u->o->clip_value <= 0) return g;
    return GCPI_MIN((gcp_real)u->o->clip_value, GCPI_MAX((gcp_real)-u->o->clip_value, g)); /* thus a NaN stays */
}

/* SGD as Sutskever et al. 2013 in PyTorch's form: v = m v + g; w -= lr (v, or g + m v). */
GCPI_BODY void gcpi_sgd_body(const gcpi_update_job *u, size_t first, size_t last)
{
    gcp_real lr = (gcp_real)u->lr, m = (gcp_real)u->o->momentum, decay = (gcp_real)u->decay;
    for (size_t i = first; i < last; i++) {
        gcp_real g = gcpi_clip(u, u->g[i]) + decay * u->w[i];
        if (u->s1) {
            u->s1[i] = m * u->s1[i] + g;
            g = u->o->nesterov ? g + m * u->s1[i] : u->s1[i];
        }
        u->w[i] -= lr * g;
    }
}
GCPI_WIDE(gcpi_sgd, (const gcpi_update_job *u, size_t first, size_t last), (u, first, last), u->target)

/* Adam: Kingma and Ba 2015. AdamW: Loshchilov and Hutter 2019 (weight decay is not part of the gradient). */
GCPI_BODY void gcpi_adam_body(const gcpi_update_job *u, size_t first, size_t last)
{
    double b1 = u->o->beta1, b2 = u->o->beta2, eps = u->o->epsilon, step = u->lr / u->first, root = sqrt(u->second);
    int decoupled = u->o->optimizer == GCP_OPTIMIZER_ADAMW;
    for (size_t i = first; i < last; i++) {
        double g = (double)gcpi_clip(u, u->g[i]), w = (double)u->w[i];
        if (decoupled) w *= 1 - u->lr * u->decay;
        else g += u->decay * w;
        u->s1[i] = (gcp_real)(b1 * (double)u->s1[i] + (1 - b1) * g);
        u->s2[i] = (gcp_real)(b2 * (double)u->s2[i] + (1 - b2) * g * g);
        u->w[i] = (gcp_real)(w - step * (double)u->s1[i] / (sqrt((double)u->s2[i]) / root + eps));
    }
}
GCPI_WIDE(gcpi_adam, (const gcpi_update_job *u, size_t first, size_t last), (u, first, last), u->target)

static void gcpi_update_task(void *arg, int index, int worker)
{
    const gcpi_update_job *u = (const gcpi_update_job *)arg;
    size_t first = (size_t)index * GCPI_CHUNK, last = GCPI_MIN(first + GCPI_CHUNK, u->count);
    (u->o->optimizer == GCP_OPTIMIZER_SGD ? gcpi_sgd : gcpi_adam)(u, first, last);
    (void)worker;
}
static void gcpi_update_forward(const gcp_call *c)
{
    gcpi_update_job u;
    u.target = c->target; u.o = (const gcp_plan_opts *)c->attributes; u.n = c->numbers;
    const gcpi_update_rates r = gcpi_update_rates_of(c);
    u.lr = u.n->lr * r.rate; u.decay = r.decay;
    u.w = (gcp_real *)c->out[0].data; u.s1 = (gcp_real *)c->out[1].data; u.s2 = (gcp_real *)c->out[2].data;
    u.g = (const gcp_real *)c->in[0].data;
    u.count = gcpi_count(c->in[0].shape);
    double t = (double)(*(const uint64_t *)c->in[1].data + 1);
    u.first = 1 - gcpi_pow(u.o->beta1, t); u.second = 1 - gcpi_pow(u.o->beta2, t);
    gcpi_parallel(c->target, (int)((u.count + GCPI_CHUNK - 1) / GCPI_CHUNK), gcpi_update_task, &u);
}

static const gcpi_op_row gcpi_seed_row = {
    GCP_ROW_SEED, { "seed", NULL, gcpi_seed_forward, NULL, NULL, 0, 0, 0, 1, NULL }, NULL
};
static const gcpi_op_row gcpi_gradient_norm_row = {
    GCP_ROW_NORM,
    { "norm", NULL, gcpi_gradient_norm_add, gcpi_gradient_norm_finish, gcpi_gradient_norm_workspace, 0, 0, 0, 0, NULL },
    NULL
};
static const gcpi_op_row gcpi_update_row = {
    GCP_ROW_UPDATE, { "update", NULL, gcpi_update_forward, NULL, NULL, 0, 0, 0, 3, NULL }, NULL
};
GCPI_COLD                              /* at -Og: code that runs once per plan or step */

/* ==== src/ops/table.h ==== */

/* The table of ops: all that later rooms know of an op; custom ops. A row (gcp_op) is what built-in ops, custom ops
   and a device's kernels have in common; facts are what only some ops have. What comes behind this room names no
   kind of op, calls no op's function and reads no op's attributes. */

/* ---- custom: the user's row ---- */

static void gcpi_custom_facts(const gcpi_op *op, gcpi_facts *f) { (void)op; f->custom = 1; }
static const gcpi_op_row gcpi_custom_row = {
    GCP_OP_CUSTOM, { "custom", NULL, NULL, NULL, NULL, 0, 0, 0, 1, NULL }, gcpi_custom_facts
};
GCPI_DEF gcp_tensor gcp_custom_at(const gcp_tensor *inputs, int count, const gcp_op *op, gcp_custom_opts o)
{
    gcp_tape *t = inputs && count > 0 ? inputs[0].tape : NULL;
    if (!t || !gcpi_enter(inputs[0], o.at, "custom")) return gcpi_nil(t);
    if (!op || !op->name || !op->shape || !op->forward || (!op->backward && !(op->flags & GCP_FLAG_NO_GRADIENT)) ||
        op->flags & (GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW | GCP_FLAG_SIGN_OR_MASK) ||
        (op->flags & GCP_FLAG_CROSS && count != 2)) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, op && op->name ? op->name : "custom",
                  "an op needs name, shape, forward, and backward or GCP_FLAG_NO_GRADIENT; its flags may not be VIEW, "
                  "GRAD_VIEW or SIGN_OR_MASK");
        return gcpi_nil(t);
    }
    static const char nothing[1] = { 0 };
    int name = gcpi_op_name(t, op->name, o.name, o.at);
    int index =
        name ? gcpi_op_new(t, op, GCP_OP_CUSTOM, name, inputs, count, NULL, o.context ? o.context : nothing, o.at) : -1;
    for (int j = 0; index >= 0 && o.outputs && j < op->outputs; j++)
        o.outputs[j] = gcpi_handle(t, t->ops[index].out + j);
    return index < 0 ? gcpi_nil(t) : gcpi_handle(t, t->ops[index].out);
}

/* ---- the table ---- */

#define GCPI_ROW_AT(NAME, name) &gcpi_##name##_row,
static const gcpi_op_row *const gcpi_rows[GCP_ROW_COUNT] = {
    GCP_OPS(GCPI_ROW_AT) &gcpi_apply_row, &gcpi_seed_row, &gcpi_gradient_norm_row, &gcpi_update_row
};
#undef GCPI_ROW_AT
/* A call of this row with one input copies it. */
enum { GCPI_ROW_COPY = GCP_OP_CONCAT };

static gcpi_facts gcpi_facts_of(const gcpi_op *op)
{
    gcpi_facts f;
    memset(&f, 0, sizeof f);
    f.in_place = f.indexed = 1;
    f.apart = !!(op->row->flags & GCP_FLAG_SAMPLES_APART);
    f.channels = op->row->flags & GCP_FLAG_SAME_CHANNELS ? GCPI_CHANNELS_SAME : GCPI_CHANNELS_UNKNOWN;
    if (gcpi_rows[op->kind]->facts) gcpi_rows[op->kind]->facts(op, &f);
    return f;
}

static int gcpi_label_ok(const gcpi_label_range *r, int32_t label)
{
    return (label >= 0 && label < r->count) || (r->ignores && label == r->ignore);
}
static gcpi_label_range gcpi_label_range_of(const gcp_tape *t, const gcpi_op *op, int input)
{
    const gcpi_label_range none = { 0, 0, 0 };
    const gcpi_facts facts = gcpi_facts_of(op);
    return facts.labels ? facts.labels(&op->attributes, t->tensors[t->edges[op->in + 1 - input]].shape) : none;
}

GCPI_DEF void gcp_cpu_kernels(gcp_op *rows)
{
    for (int k = 0; k < GCP_ROW_COUNT; k++) rows[k] = gcpi_rows[k]->op;
}

/* The row whose functions run an op on a target or, where op is NULL, one of the rows that no tape records. NULL: a
   custom op without a version for the target. */
static const gcp_op *gcpi_row_for(const gcp_target *target, const gcpi_op *op, int row)
{
    const int at = op ? op->kind : row;
    if (op && gcpi_facts_of(op).custom) return target->device ? op->row->on_device : op->row;
    return target->kernels ? &target->kernels[at] : &gcpi_rows[at]->op;
}

/* problem: a tape, or a graph's text, as items and tasks */

/* ==== src/problem/problem.h ==== */

/* What planning sees: items and tasks. Items are tensors and gradients: bytes, and where they lie inside an alias
   group. Tasks are op groups run forward or backward, and updates, in the order of plain backpropagation. Tasks [0,
   forward) may run again unless they have side effects; the others run once, in this order. Nothing here depends on
   a policy. */

enum { GCPI_STATE_ITEM, GCPI_INPUT_ITEM, GCPI_FORWARD_ITEM, GCPI_GRADIENT_ITEM };
/* ADD: read and written in place; ALIAS: shares bytes with what the task reads */
enum { GCPI_READ, GCPI_WRITE, GCPI_ADD, GCPI_ALIAS };
/* The kinds of tasks: the letter in a list, the word in the key of a cost. From OFFLOAD on they are by item: copies to
   far memory, back, the wait for the first; a move to another place in the slab. */
#define GCPI_TASK_KINDS(X)                                                                                             \
    X(FORWARD, 'F', "forward") X(SEED, 'B', "seed") X(BACKWARD, 'B', "backward") X(GRADIENT_NORM, 'U', "norm")         \
    X(UPDATE, 'U', "update") X(HOOK, 'H', "hook") X(WAIT, 'W', "wait") X(OFFLOAD, 'O', "offload")                      \
    X(PREFETCH, 'P', "prefetch") X(ARRIVE, 'A', "arrive") X(MOVE, 'M', "move")
#define GCPI_TASK_KIND(kind, letter, word) GCPI_TASK_##kind,
#define GCPI_TASK_LETTER(kind, letter, word) letter,
#define GCPI_TASK_WORD(kind, letter, word) word,
enum { GCPI_TASK_KINDS(GCPI_TASK_KIND) };
static const char gcpi_letters[] = { GCPI_TASK_KINDS(GCPI_TASK_LETTER) };

/* A pinned item lives to the end of the step; or from its beginning, too. */
enum { GCPI_PINNED_TO_END = 1, GCPI_PINNED_ALWAYS };
/* An item's pitch is fixed in any case; by a view of it. */
enum { GCPI_DENSE_ANYWAY = 1, GCPI_DENSE_BY_VIEW = 2 };

typedef struct gcpi_item {
    size_t bytes, offset;             /* own bytes; where they begin in the root's */
    ptrdiff_t pitch, row;             /* elements from row to row, and in one row; row 0: no rows, one run of bytes */
    int kind, tensor, producer;       /* tensor of the tape; producer: forward task (in a graph any task) or -1 */
    int root, next;                   /* alias group; next member, -1 at the end */
    int active, pinned, dense;        /* pinned: 0, or GCPI_PINNED_...; dense: bits that say why its pitch is fixed */
    int stored, kept;                 /* stored: every policy keeps it; kept: by gcp_keep, nothing may write it again */
    int alone;                        /* shares its bytes with no other item, for some choice of views */
    int move, updated;                /* the task that moves it; the task that updates its parameter; 0: none */
} gcpi_item;

typedef struct gcpi_operand { int item, mode, role; } gcpi_operand;      /* role: which of its op's operands it is */

typedef struct gcpi_task {          /* an op group run forward, an op run backward, ... */
    int kind;
    /* op: of the tape, of a group the last; parameter: of an update or a hook; item: of a far task or a move */
    union { int op, parameter, item; };
    /* forward: how many ops it runs: 1, or more for a group (GCP_ROW_APPLY); op is the last of them */
    int ops;
    int operands, count;              /* first one in problem->operands; how many */
    int forward;                      /* backward: the forward task that it reverses */
    int once, free, segment, unit;    /* free: a view, costs nothing; segment: of the tape; unit: of its forward op */
    /* costly: kept by GCP_POLICY_CHEAP; loss: is part of a loss; joins: activations meet; concat: parts side by side */
    int costly, loss, joins, concat;
    int over, under[2];               /* operand `over` may be written in place on operands under[0] or [1]; -1: none */
    double seconds, flops;
    size_t workspace;
} gcpi_task;
static int gcpi_copies(const gcpi_task *t) { return t->kind == GCPI_TASK_OFFLOAD || t->kind == GCPI_TASK_PREFETCH; }

/* consumers[first[i]] up to first[i + 1]: the ops that read tensor i, last op first */
typedef struct gcpi_uses { int *first, *consumers; } gcpi_uses;

/* Which views of an op are copies, though they need not be: bit i of values: input i of a concat, or the output of a
   slice (bit 0); of gradients: the gradient of input i of a concat. */
typedef struct gcpi_copied { uint64_t values, gradients; } gcpi_copied;

typedef struct gcpi_problem {
    gcp_tape *tape;
    gcp_target target;
    gcpi_item *items;       int item_count;           /* tensor i is item i, its gradient is item tensors + i */
    gcpi_task *tasks;       int task_count, forward;  /* every list holds these; after them: */
    int far_count, move_count;                        /* far tasks, then moves: a list may hold them */
    gcpi_operand *operands; int operand_count;
    /* root: the loss or output tensor; tensors: how many the tape had when it was planned */
    int units, root, training, tensors;
    gcpi_uses uses;
    gcpi_copied *copied;                              /* per op; see views.h. NULL for a graph */
    char **task_names, **item_names;                  /* of a graph; NULL for a tape */
    size_t numbers, state;                            /* bytes of the step's numbers, first in the slab; of state */
    int optimizer, costed;                            /* costed: how many tasks have their seconds from .costs, */
    double costed_share;                              /* and which share of all tasks' seconds that is */
    int far_slots;                                    /* slots per parameter that wait in far memory */
    int frozen_norms;                                 /* the option */
    size_t guard;                                     /* .check: bytes on each side of an op's workspace; else 0 */
    double (*rates)[2];                               /* of each parameter: what multiplies .lr, and its weight decay;
                                                         NULL: 1 and the option, for all */
} gcpi_problem;
static int gcpi_is_graph(const gcpi_problem *p) { return p->task_names != NULL; }
enum { GCPI_NUMBERS_BYTES = 64 };                     /* what a tape's steps need for gcp_step_numbers */
typedef char gcpi_numbers_room[sizeof(gcp_step_numbers) <= GCPI_NUMBERS_BYTES ? 1 : -1];

/* A role is one of these four plus an index below GCPI_ROLES. */
enum { GCPI_ROLES = GCP_MAX_INPUTS, GCPI_ROLE_IN = 0, GCPI_ROLE_OUT = GCPI_ROLES, GCPI_ROLE_DIN = 2 * GCPI_ROLES,
       GCPI_ROLE_DOUT = 3 * GCPI_ROLES };

static size_t gcpi_round(size_t n, size_t align) { return (n + align - 1) & ~(align - 1); }
/* Bytes of the step's numbers, first in the slab. */
static size_t gcpi_front(const gcpi_problem *p) { return gcpi_round(p->numbers, p->target.align); }

/* Bytes up to the end of the last pixel: a kernel touches nothing after that. */
static size_t gcpi_view_bytes(gcp_shape s, gcp_dtype type, ptrdiff_t pitch)
{
    if (type != GCP_DTYPE_REAL) return gcpi_row_bytes(type, gcpi_count(s));
    return ((gcpi_pixels(s) - 1) * (size_t)pitch + (size_t)s.d[3]) * sizeof(gcp_real);
}

static void gcpi_operand_add(gcpi_problem *p, gcpi_task *task, int item, int mode, int role)
{
    gcpi_operand *o = &p->operands[p->operand_count++];
    o->item = item; o->mode = mode; o->role = role;
    task->count++;
}

static gcpi_task *gcpi_task_add(gcpi_problem *p, int kind, int op)
{
    int *count = kind == GCPI_TASK_MOVE ? &p->move_count : kind >= GCPI_TASK_OFFLOAD ? &p->far_count : &p->task_count;
    gcpi_task *task = &p->tasks[p->task_count + p->far_count + p->move_count];
    ++*count;
    memset(task, 0, sizeof *task);
    task->kind = kind; task->op = op;
    task->operands = p->operand_count;
    task->forward = task->over = task->under[0] = task->under[1] = -1;
    return task;
}

static int gcpi_edge(const gcp_tape *t, const gcpi_op *op, int i) { return t->edges[op->in + i]; }

/* Which ops are needed: ancestors of the root and of kept tensors. */
static void gcpi_mark_needed(const gcp_tape *t, int root, unsigned char *needed)
{
    for (int o = t->op_count - 1; o >= 0; o--) {
        const gcpi_op *op = &t->ops[o];
        for (int j = 0; j < op->outputs; j++)
            if (op->out + j == root || t->tensors[op->out + j].flags & GCPI_KEPT) needed[o] = 1;
        for (int i = 0; needed[o] && i < op->inputs; i++) {
            int producer = t->tensors[gcpi_edge(t, op, i)].producer;
            if (producer >= 0) needed[producer] = 1;
        }
    }
}

/* Whether the options, and the tape, let a parameter train. */
static int gcpi_trains(const gcp_tape *t, int tensor, const gcp_plan_opts *o)
{
    const char *path = t->parameters[t->tensors[tensor].parameter].path;
    if (t->tensors[tensor].flags & GCPI_FROZEN || (o->train && !gcpi_patterns_fit(o->train, path))) return 0;
    return !o->freeze || !gcpi_patterns_fit(o->freeze, path);
}

/* A gradient is active where it is wanted (its tensor depends on some parameter or wanted input) and flows (the loss
   depends on its tensor). */
static void gcpi_mark_gradients(gcpi_problem *p, const unsigned char *needed, const gcp_plan_opts *opts)
{
    enum { WANTED = 1, FLOWS };                   /* wanted; wanted and flows */
    const gcp_tape *t = p->tape;
    gcpi_item *gradient = p->items + t->tensor_count;
    for (int i = 1; i < t->tensor_count; i++) {
        const gcpi_tensor *e = &t->tensors[i];
        gradient[i].active = (e->kind == GCPI_PARAMETER && gcpi_trains(t, i, opts)) ||
                             (e->kind == GCPI_INPUT && e->flags & GCPI_WANTED);
    }
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        int wanted = 0;
        if (!needed[o] || op->row->flags & GCP_FLAG_NO_GRADIENT) continue;
        for (int i = 0; i < op->inputs; i++) wanted |= gradient[gcpi_edge(t, op, i)].active;
        for (int j = 0; j < op->outputs; j++)
            gradient[op->out + j].active = wanted && t->tensors[op->out + j].dtype == GCP_DTYPE_REAL;
    }
    if (gradient[p->root].active) gradient[p->root].active = FLOWS;
    for (int o = t->op_count - 1; o >= 0; o--) {
        const gcpi_op *op = &t->ops[o];
        int flows = 0;
        for (int j = 0; j < op->outputs; j++) flows |= gradient[op->out + j].active == FLOWS;
        for (int i = 0; flows && i < op->inputs; i++)
            if (gradient[gcpi_edge(t, op, i)].active) gradient[gcpi_edge(t, op, i)].active = FLOWS;
    }
    for (int i = 1; i < t->tensor_count; i++) gradient[i].active = gradient[i].active == FLOWS;
}

static int gcpi_has_backward(const gcpi_problem *p, const gcpi_op *op)
{
    int out = 0, in = 0;
    for (int j = 0; j < op->outputs; j++) out |= p->items[p->tensors + op->out + j].active;
    for (int i = 0; i < op->inputs; i++) in |= p->items[p->tensors + gcpi_edge(p->tape, op, i)].active;
    return out && in;
}

/* A batch-norm, an addition and a rectifier, recorded one behind the other, are one pass on a device: the mask costs
   1/32 of the output's bytes, so backward reads it even where the output is there. (Behind a batch-norm alone neither
   is read; and a convolution rectifies its own output only where no mask is made.) */
static int gcpi_mask_pays(const gcpi_problem *p, const gcpi_op *op)
{
    const gcp_tape *t = p->tape;
    const int sum = t->tensors[gcpi_edge(t, op, 0)].producer;
    if (!p->target.device || sum < 1 || gcpi_facts_of(&t->ops[sum]).part != GCPI_PART_ADD) return 0;
    const gcpi_op *add = &t->ops[sum], *norm = add - 1;
    const int feeds = gcpi_edge(t, add, 0) == norm->out || gcpi_edge(t, add, 1) == norm->out;
    return feeds && gcpi_facts_of(norm).part == GCPI_PART_NORM;
}

/* What the backward of op reads, as bits of inputs and outputs. GCP_FLAG_CROSS ops read input 0 for the gradient of
   input 1 and the reverse. GCP_FLAG_SIGN_OR_MASK ops read output 0 where another backward reads that anyway
   (read_anyway) and the mask does not pay, else their mask, output 1. */
static void gcpi_backward_reads(const gcpi_problem *p, const gcpi_op *op, int read_anyway, uint64_t *in, uint64_t *out)
{
    const gcpi_item *gradient = p->items + p->tensors;
    *in = op->row->reads_in;
    *out = op->row->reads_out;
    if (op->row->flags & GCP_FLAG_CROSS) {
        if (!gradient[gcpi_edge(p->tape, op, 1)].active) *in &= ~(uint64_t)1;
        if (!gradient[gcpi_edge(p->tape, op, 0)].active) *in &= ~(uint64_t)2;
    }
    if (op->row->flags & GCP_FLAG_SIGN_OR_MASK && (!read_anyway || gcpi_mask_pays(p, op))) *out = 2;
    if (!gcpi_facts_of(op).indexed) *out = 0;
}

/* Fills read[tensor]: some backward reads its value. Ops that may choose come last: they see what the others read. */
static void gcpi_mark_reads(const gcpi_problem *p, const unsigned char *needed, unsigned char *read)
{
    const gcp_tape *t = p->tape;
    for (int choosing = 0; choosing < 2; choosing++)
        for (int o = 0; o < t->op_count; o++) {
            const gcpi_op *op = &t->ops[o];
            uint64_t in, out;
            int chooses = !!(op->row->flags & GCP_FLAG_SIGN_OR_MASK);
            if (!needed[o] || !gcpi_has_backward(p, op) || choosing != chooses) continue;
            gcpi_backward_reads(p, op, read[op->out], &in, &out);
            for (int i = 0; i < op->inputs; i++) if (in >> i & 1) read[gcpi_edge(t, op, i)] = 1;
            for (int j = 0; j < op->outputs; j++) if (out >> j & 1) read[op->out + j] = 1;
        }
}

static void gcpi_items_make(gcpi_problem *p)
{
    const gcp_tape *t = p->tape;
    static const int kinds[] = { 0, GCPI_INPUT_ITEM, GCPI_STATE_ITEM, GCPI_STATE_ITEM, GCPI_FORWARD_ITEM };
    for (int i = 0; i < p->item_count; i++) {
        gcpi_item *item = &p->items[i];
        int gradient = i >= t->tensor_count;
        item->tensor = gradient ? i - t->tensor_count : i;
        const gcpi_tensor *e = &t->tensors[item->tensor];
        item->root = i; item->next = -1; item->producer = -1;
        if (item->tensor == 0) continue;
        item->kind = gradient ? GCPI_GRADIENT_ITEM : kinds[e->kind];
        item->pitch = item->row = e->shape.d[3];
        item->bytes = gcpi_view_bytes(e->shape, gradient ? GCP_DTYPE_REAL : e->dtype, item->pitch);
        if (!gradient && e->dtype != GCP_DTYPE_REAL) item->row = 0;
        item->dense = e->dtype == GCP_DTYPE_BIT || e->dtype == GCP_DTYPE_U8 || e->dtype == GCP_DTYPE_I32 ||
                      item->kind == GCPI_STATE_ITEM || item->kind == GCPI_INPUT_ITEM;
    }
}

/* The inputs that an op reads as one run of bytes, and their gradients, which it writes so, get no other pitch. (Of one
   row, all are such a run.) */
static void gcpi_items_dense(gcpi_problem *p)
{
    const gcp_tape *t = p->tape;
    for (int o = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        const gcpi_facts facts = gcpi_facts_of(op);
        unsigned dense = facts.dense | (p->target.device ? facts.dense_on_device : 0);
        for (int i = 0; i < op->inputs && dense; i++, dense >>= 1) {
            int x = gcpi_edge(t, op, i);
            if (dense & 1 && gcpi_pixels(t->tensors[x].shape) > 1)
                p->items[x].dense = p->items[t->tensor_count + x].dense = 1;
        }
    }
}

static void gcpi_forward_output(gcpi_problem *p, gcpi_task *task, int op, int j, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    int kind = t->ops[op].kind, tensor = t->ops[op].out + j;
    const unsigned flags = t->ops[op].row->flags;
    const uint64_t keep = t->segments[t->ops[op].segment].keep;
    gcpi_item *item = &p->items[tensor];
    item->producer = (int)(task - p->tasks);
    item->active = j == 0 || gcpi_facts_of(&t->ops[op]).custom || flags & GCP_FLAG_ONCE || read[tensor];
    item->kept = !!(t->tensors[tensor].flags & GCPI_KEPT);
    item->pinned = item->kept || tensor == p->root;
    item->stored = item->kept || flags & GCP_FLAG_ONCE || keep >> kind & 1;
    if (item->active)
        gcpi_operand_add(p, task, tensor, flags & GCP_FLAG_VIEW ? GCPI_ALIAS : GCPI_WRITE, GCPI_ROLE_OUT + j);
}

static void gcpi_task_traits(const gcpi_problem *p, gcpi_task *task, const gcpi_op *op)
{
    int activations = 0;
    for (int i = 0; i < op->inputs; i++) activations += p->items[gcpi_edge(p->tape, op, i)].kind == GCPI_FORWARD_ITEM;
    task->joins = activations > 1 && !task->once && gcpi_facts_of(op).part != GCPI_PART_NORM;
    task->costly = !!(op->row->flags & GCP_FLAG_COSTLY);
    task->loss = !!(op->row->flags & GCP_FLAG_LOSS);
}

static void gcpi_forward_task(gcpi_problem *p, int o, const unsigned char *read)
{
    const gcpi_op *op = &p->tape->ops[o];
    gcpi_task *task = gcpi_task_add(p, GCPI_TASK_FORWARD, o);
    task->ops = 1;
    for (int i = 0; i < op->inputs; i++)
        gcpi_operand_add(p, task, gcpi_edge(p->tape, op, i), GCPI_READ, GCPI_ROLE_IN + i);
    for (int j = 0; j < op->outputs; j++) gcpi_forward_output(p, task, o, j, read);
    task->once = !!(op->row->flags & GCP_FLAG_ONCE);
    task->concat = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
    gcpi_task_traits(p, task, op);
}

static void gcpi_item_name(const gcpi_problem *p, int item, char *buffer, size_t size)
{
    if (gcpi_is_graph(p)) snprintf(buffer, size, "%s", p->item_names[item]);
    else gcpi_name_text(p->tape, p->tape->tensors[p->items[item].tensor].name, buffer, size);
}

static const char *gcpi_task_name(const gcpi_problem *p, const gcpi_task *task, char *buffer, size_t size)
{
    const gcp_tape *t = p->tape;
    if (gcpi_is_graph(p) && task->kind < GCPI_TASK_OFFLOAD) {
        snprintf(buffer, size, "%s", p->task_names[task - p->tasks]);
        return buffer;
    }
    if (task->kind >= GCPI_TASK_OFFLOAD) {
        const char *of = !gcpi_is_graph(p) && p->items[task->item].kind == GCPI_GRADIENT_ITEM ? "gradient of " : "";
        snprintf(buffer, size, "%s", of);
        gcpi_item_name(p, task->item, buffer + strlen(of), size - strlen(of));
        return buffer;
    }
    if (task->kind == GCPI_TASK_SEED) snprintf(buffer, size, "seed");
    else if (task->kind == GCPI_TASK_GRADIENT_NORM) snprintf(buffer, size, "norm");
    else if (task->kind > GCPI_TASK_GRADIENT_NORM) snprintf(buffer, size, "%s", t->parameters[task->parameter].path);
    else gcpi_name_text(t, t->ops[task->op - GCPI_MAX(task->ops, 1) + 1].name, buffer, size);
    /* the name of a group: a+b+c */
    for (int o = task->op - task->ops + 2; task->kind == GCPI_TASK_FORWARD && o <= task->op; o++) {
        char name[256];
        const char *base;
        gcpi_name_text(t, t->ops[o].name, name, sizeof name);
        base = strrchr(name, '/');
        size_t used = strlen(buffer);
        snprintf(buffer + used, size - used, "+%s", base ? base + 1 : name);
    }
    return buffer;
}

/* ==== src/problem/views.h ==== */

/* Where items lie: views and copies. An input of a concat can be made where the concat needs it, a slice or reshape
   can share the bytes of its input, and a gradient those of another: a view costs no time and no bytes, but what it
   shares stays as long as any of them is needed. Or it is a copy: p->copied says which, for a whole plan. Tasks,
   their operands and their numbers do not depend on it; gcpi_views_place (tasks.h) sets all that does: root, next,
   offset, pitch and bytes of items; free, over, under, workspace and seconds of tasks; which gradients are aliases. */

/* Alias groups. Moves every member of group `from` into `to`, at an offset, with the pitch of to. */
static void gcpi_join(gcpi_problem *p, int from, int to, size_t offset, ptrdiff_t pitch)
{
    int last = to;
    while (p->items[last].next >= 0) last = p->items[last].next;
    p->items[last].next = from;
    for (int i = from; i >= 0; i = p->items[i].next) {
        p->items[i].root = p->items[to].root;
        p->items[i].offset += offset;
        p->items[i].pitch = pitch;
        p->items[i].bytes = gcpi_view_bytes(p->tape->tensors[p->items[i].tensor].shape, GCP_DTYPE_REAL, pitch);
    }
}

/* A new item becomes a view of an old one. */
static void gcpi_view_of(gcpi_problem *p, int item, int of, size_t offset, ptrdiff_t pitch)
{
    gcpi_item *x = &p->items[item], *base = &p->items[of];
    x->offset = base->offset + offset;
    x->pitch = pitch;
    x->bytes = gcpi_view_bytes(p->tape->tensors[x->tensor].shape, GCP_DTYPE_REAL, pitch);
    x->root = base->root;
    x->next = p->items[base->root].next;
    p->items[base->root].next = item;
}

static int gcpi_alone(const gcpi_problem *p, int item)              /* shares its bytes with no other item */
{
    return p->items[item].root == item && p->items[item].next < 0;
}
static int gcpi_is_dense(const gcpi_problem *p, int item)
{
    return !p->items[item].row || p->items[item].pitch == p->items[item].row;
}
static int gcpi_takes_pitch(const gcpi_problem *p, int item, ptrdiff_t pitch)
{
    return !p->items[item].dense || pitch == p->items[item].row;
}
static void gcpi_dense_group(gcpi_problem *p, int item)
{
    for (int i = p->items[item].root; i >= 0; i = p->items[i].next) p->items[i].dense |= GCPI_DENSE_BY_VIEW;
}

/* Whether the target's kernels take an item's rows there (gcp_target.row_align). */
static int gcpi_rows_aligned(const gcpi_problem *p, int item, size_t offset, ptrdiff_t pitch)
{
    const size_t align = p->target.row_align, row = (size_t)p->items[item].row * sizeof(gcp_real);
    return !align || row % align || (offset % align == 0 && (size_t)pitch * sizeof(gcp_real) % align == 0);
}
/* Whether all of an item's group may move into another's rows, `at` bytes behind their beginning. */
static int gcpi_group_fits(const gcpi_problem *p, int root, int to, size_t at)
{
    for (int i = root; i >= 0; i = p->items[i].next) {
        const gcpi_item *x = &p->items[i];
        if (x->dense || !gcpi_rows_aligned(p, i, x->offset + p->items[to].offset + at, p->items[to].pitch)) return 0;
    }
    return 1;
}

/* Whether an input of a concat can be made where the concat needs it: it owns its bytes, and its pitch is free. */
static int gcpi_can_join(const gcpi_problem *p, int item, int to, size_t at)
{
    const gcpi_item *x = &p->items[item];
    return x->kind == GCPI_FORWARD_ITEM && x->root == item && item != p->items[to].root &&
           gcpi_group_fits(p, item, to, at);
}

/* Where input i begins in the rows of a concat, in bytes. */
static size_t gcpi_joined_at(const gcp_tape *t, const gcpi_op *op, int i)
{
    size_t at = 0;
    if (gcpi_facts_of(op).view != GCPI_VIEW_JOINED) return 0;
    for (int k = 0; k < i; k++) at += (size_t)t->tensors[gcpi_edge(t, op, k)].shape.d[3] * sizeof(gcp_real);
    return at;
}

/* Whether input i of a concat lies where the concat needs it. */
static int gcpi_in_place_in(const gcpi_problem *p, const gcpi_op *op, int i)
{
    const gcpi_item *x = &p->items[gcpi_edge(p->tape, op, i)], *y = &p->items[op->out];
    return x->root == y->root && x->pitch == y->pitch && x->offset - y->offset == gcpi_joined_at(p->tape, op, i);
}

/* Whether input i of a concat, which lies in an earlier one, may move with all of that into this one: as in a list of
   features that grows, concat(a, b), then concat(a, b, c). All columns of the earlier one must be inputs of this one,
   in the same order. *at: where it begins in the rows of this one. */
static int gcpi_can_join_with(const gcpi_problem *p, const gcpi_op *op, int i, size_t *at)
{
    const gcp_tape *t = p->tape;
    const uint64_t copied = p->copied[op - t->ops].values;
    const gcpi_item *x = &p->items[gcpi_edge(t, op, i)], *r = &p->items[x->root];
    const size_t begin = gcpi_joined_at(t, op, i) - x->offset, end = begin + (size_t)r->row * sizeof(gcp_real);
    if (x->kind != GCPI_FORWARD_ITEM || r->kind != GCPI_FORWARD_ITEM || x->root == op->out || x->root == x - p->items ||
        gcpi_joined_at(t, op, i) < x->offset || end > (size_t)p->items[op->out].row * sizeof(gcp_real))
        return 0;
    if (!gcpi_group_fits(p, x->root, op->out, begin)) return 0;
    size_t column = 0;
    for (int k = 0; k < op->inputs; k++) {
        const gcpi_item *z = &p->items[gcpi_edge(t, op, k)];
        size_t behind = column + (size_t)t->tensors[gcpi_edge(t, op, k)].shape.d[3] * sizeof(gcp_real);
        if (column < end && behind > begin &&
            (z->root != x->root || begin + z->offset != column || copied >> k & 1))
            return 0;
        column = behind;
    }
    *at = begin;
    return 1;
}

/* Whether y must outlive the step, but as a view of x would see what the update makes of a parameter. */
static int gcpi_view_changes(const gcpi_problem *p, int y, int x)
{
    int lasts = y == p->root || p->tape->tensors[y].flags & GCPI_KEPT;
    return lasts && p->training && p->items[p->items[x].root].kind == GCPI_STATE_ITEM;
}

static int gcpi_forward_views(gcpi_problem *p, const gcpi_op *op)       /* 1: nothing is left to copy */
{
    const gcp_tape *t = p->tape;
    const uint64_t copied = p->copied[op - t->ops].values;
    const gcpi_facts facts = gcpi_facts_of(op);
    int y = op->out, x = gcpi_edge(t, op, 0), whole = 1;
    if (facts.view != GCPI_VIEW_JOINED && gcpi_view_changes(p, y, x)) return 0;
    if (facts.view == GCPI_VIEW_WHOLE && gcpi_is_dense(p, x)) {
        gcpi_view_of(p, y, x, 0, p->items[y].pitch);
        gcpi_dense_group(p, x);
        return 1;
    }
    if (facts.view == GCPI_VIEW_PART && !(copied & 1) && gcpi_takes_pitch(p, y, p->items[x].pitch) &&
        gcpi_rows_aligned(p, y, p->items[x].offset + (size_t)facts.first * sizeof(gcp_real), p->items[x].pitch)) {
        gcpi_view_of(p, y, x, (size_t)facts.first * sizeof(gcp_real), p->items[x].pitch);
        return 1;
    }
    if (facts.view != GCPI_VIEW_JOINED) return 0;
    for (int i = 0; i < op->inputs; i++) {
        size_t at;
        x = gcpi_edge(t, op, i);
        if (copied >> i & 1) { whole = 0; continue; }
        if (gcpi_can_join(p, x, y, gcpi_joined_at(t, op, i)))
            gcpi_join(p, x, y, gcpi_joined_at(t, op, i), p->items[y].pitch);
        else if (gcpi_can_join_with(p, op, i, &at)) gcpi_join(p, p->items[x].root, y, at, p->items[y].pitch);
        whole &= gcpi_in_place_in(p, op, i);
    }
    return whole;
}

/* Whether gradient x would change while y is still to be read. Ops before o add to x, in backward after o. Both
   gradients are last read by the backward of their producers. Backward runs from the last op down to -1. */
static int gcpi_changes_under(const gcpi_problem *p, int x, int y, int o)
{
    const gcp_tape *t = p->tape;
    int tx = p->items[x].tensor, ty = p->items[y].tensor;
    int y_last = t->tensors[ty].producer;                     /* -1: an input's, read at the end */
    for (int k = p->uses.first[tx]; k < p->uses.first[tx + 1]; k++) {
        int c = p->uses.consumers[k];
        if (c < o && c >= y_last && gcpi_has_backward(p, &t->ops[c])) return 1;
    }
    return 0;
}

static int gcpi_regions_meet(const gcpi_problem *p, int x, int y)
{
    const gcpi_item *a = &p->items[x], *b = &p->items[y];
    size_t wa = (size_t)a->row * sizeof(gcp_real), wb = (size_t)b->row * sizeof(gcp_real);
    return a->pitch != b->pitch || (a->offset < b->offset + wb && b->offset < a->offset + wa);
}

/* The first backward task that makes a gradient writes it; later ones add to it. A gradient that add, concat or reshape
   passes on unchanged can share its bytes, unless one of those that share them is changed while another is still to be
   read. */
static int gcpi_gradient_alias(gcpi_problem *p, int o, int i)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o];
    int x = t->tensor_count + gcpi_edge(t, op, i), y = t->tensor_count + op->out;
    if (!(op->row->flags & GCP_FLAG_GRAD_VIEW) || t->tensors[gcpi_edge(t, op, i)].kind == GCPI_PARAMETER) return 0;
    int whole = gcpi_facts_of(op).view == GCPI_VIEW_WHOLE, joined = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
    if (joined && p->copied[o].gradients >> i & 1) return 0;
    if (whole ? !gcpi_is_dense(p, y) : !gcpi_takes_pitch(p, x, p->items[y].pitch)) return 0;
    if (!whole && !gcpi_rows_aligned(p, x, p->items[y].offset + gcpi_joined_at(t, op, i), p->items[y].pitch)) return 0;
    for (int k = 0; k < op->inputs; k++) if (k != i && gcpi_edge(t, op, k) == gcpi_edge(t, op, i)) return 0;
    gcpi_item trial = p->items[x];
    gcpi_view_of(p, x, y, gcpi_joined_at(t, op, i), whole ? trial.pitch : p->items[y].pitch);
    for (int m = p->items[x].root; m >= 0; m = p->items[m].next) {
        if (m == x || m == y || t->tensors[p->items[m].tensor].producer >= o || !gcpi_regions_meet(p, x, m)) continue;
        if (!gcpi_changes_under(p, x, m, o) && !gcpi_changes_under(p, m, x, o)) continue;
        p->items[p->items[x].root].next = p->items[x].next;   /* gcpi_view_of put it right after the root */
        p->items[x] = trial;
        return 0;
    }
    return 1;
}

/* Whether the task has the bytes of operand k as another operand, too, of which it does not know what it may overwrite:
   x as a batch-norm's input and its gamma. */
static int gcpi_operand_elsewhere(const gcpi_problem *p, const gcpi_task *task, int k)
{
    const gcpi_operand *o = &p->operands[task->operands];
    for (int m = 0; m < task->count; m++) {
        if (m == k || m == task->over || m == task->under[0] || m == task->under[1]) continue;
        if (p->items[o[m].item].root == p->items[o[k].item].root) return 1;
    }
    return 0;
}

/* What the task may write in place: output 0 over input 0 (or 1); in backward, the gradient of input 0 over that of
   output 0. */
static void gcpi_task_in_place(const gcpi_problem *p, gcpi_task *task, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    int back = task->kind == GCPI_TASK_BACKWARD, pair = !back && !facts.custom;
    const gcpi_operand *o = &p->operands[task->operands];
    task->over = task->under[0] = task->under[1] = -1;
    if (!facts.in_place || !(op->row->flags & (back ? GCP_FLAG_GRAD_IN_PLACE : GCP_FLAG_IN_PLACE))) return;
    for (int k = 0; k < task->count; k++) {
        if (o[k].role == (back ? GCPI_ROLE_DOUT : GCPI_ROLE_IN)) task->under[0] = k;
        if (pair && o[k].role == GCPI_ROLE_IN + 1) task->under[1] = k;
        if (o[k].role == (back ? GCPI_ROLE_DIN : GCPI_ROLE_OUT) && o[k].mode == GCPI_WRITE) task->over = k;
        /* x * x: the gradient is written, then added to, so not in place */
        else if (task->over >= 0 && o[k].item == o[task->over].item) { task->over = -1; return; }
    }
    for (int side = 0; side < 2; side++)
        if (task->under[side] >= 0 && gcpi_operand_elsewhere(p, task, task->under[side])) task->under[side] = -1;
}

static size_t gcpi_bytes_alone(const gcpi_problem *p, int item)
{
    const gcpi_tensor *e = &p->tape->tensors[p->items[item].tensor];
    return gcpi_view_bytes(e->shape, item < p->tensors ? e->dtype : GCP_DTYPE_REAL, e->shape.d[3]);
}

/* Every item has bytes of its own. */
static void gcpi_views_forget(gcpi_problem *p)
{
    for (int i = 1; i < p->item_count; i++) {
        gcpi_item *x = &p->items[i];
        if (!x->tensor) continue;
        x->root = i; x->next = -1; x->offset = 0;
        x->dense &= 1;
        x->pitch = p->tape->tensors[x->tensor].shape.d[3];
        x->bytes = gcpi_bytes_alone(p, i);
    }
}

/* The gradients that a backward task is the first to make: each is written, or shares bytes. */
static void gcpi_backward_views(gcpi_problem *p, const gcpi_task *task)
{
    gcpi_operand *o = &p->operands[task->operands];
    for (int k = 0; k < task->count; k++)
        if (o[k].mode == GCPI_WRITE || o[k].mode == GCPI_ALIAS)
            o[k].mode = gcpi_gradient_alias(p, task->op, o[k].role - GCPI_ROLE_DIN) ? GCPI_ALIAS : GCPI_WRITE;
}

/* ==== src/problem/costs.h ==== */

/* What tasks cost. FLOPs and bytes moved, or seconds from a table that a measured plan has written. */

/* Whether an op is one of the two of a batch-norm that takes its running statistics although the plan trains: gamma and
   beta are frozen. */
static int gcpi_norm_is_fixed(const gcpi_problem *p, const gcpi_op *op)
{
    const gcpi_op *norm = gcpi_facts_of(op).stats ? op + 1 : op;
    const gcpi_facts facts = gcpi_facts_of(norm);
    int trained = 0;
    if (!p->frozen_norms || facts.part != GCPI_PART_NORM) return 0;
    for (int i = 0; i <= GCPI_NORM_BETA; i++)
        trained |= facts.early >> i & 1 && p->items[p->tensors + gcpi_edge(p->tape, norm, i)].active;
    return !trained;
}

/* Whether the target may run an op and what is behind it as one pass. */
static int gcpi_fuses(const gcp_target *target, const gcpi_op *op)
{
    return !target->kernels || target->kernels[op->kind].flags & GCP_FLAG_FUSED;
}

/* Whether statistics follow a convolution that can make them. It then has workspace for their sums, so that both may
   run as one pass. */
static int gcpi_stats_follow(const gcpi_problem *p, const gcpi_op *op)
{
    const gcp_tape *t = p->tape;
    if (!p->training || !op || !gcpi_facts_of(op).with_stats || op + 1 == t->ops + t->op_count) return 0;
    if (!gcpi_fuses(&p->target, op) || (!p->target.kernels && !GCPI_TAKES)) return 0;
    return gcpi_facts_of(op + 1).stats && gcpi_edge(t, op + 1, 0) == op->out && !gcpi_norm_is_fixed(p, op + 1);
}

/* Workspace of a convolution that makes the statistics of its output, too. A target's rows use theirs in turn. */
static size_t gcpi_stats_room(const gcpi_problem *p, const gcpi_op *op, size_t own, gcp_cost_call *call)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const gcp_op *kernels = p->target.kernels;
    gcp_cost cost;
    memset(&cost, 0, sizeof cost);
    if (!kernels) return facts.stats_workspace(facts.window, call->out[0], &p->target);
    call->in = call->out;
    call->attributes = &(op + 1)->attributes;
    if (kernels[(op + 1)->kind].cost) kernels[(op + 1)->kind].cost(call, &cost);
    return GCPI_MAX(own, cost.workspace);
}

/* Bytes that a concat or slice moves: only what does not lie in place. */
static double gcpi_view_traffic(const gcpi_problem *p, const gcpi_task *task, const gcpi_op *op)
{
    double bytes = 0;
    int joined = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
    for (int i = 0; i < op->inputs && joined && task->kind == GCPI_TASK_FORWARD; i++)
        if (!gcpi_in_place_in(p, op, i)) bytes += 2 * (double)gcpi_bytes_alone(p, gcpi_edge(p->tape, op, i));
    if (!joined) bytes = (task->free ? 0 : 2) * (double)gcpi_bytes_alone(p, op->out);
    for (int k = 0; k < task->count && task->kind == GCPI_TASK_BACKWARD; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        if (o->mode == GCPI_READ || o->mode == GCPI_ALIAS) continue;
        if (joined) bytes += (o->mode == GCPI_ADD ? 3 : 2) * (double)gcpi_bytes_alone(p, o->item);
        else bytes += o->mode == GCPI_ADD ? bytes / 2 : (double)gcpi_bytes_alone(p, o->item);   /* or zeros beside it */
    }
    return bytes;
}

static double gcpi_task_traffic(const gcpi_problem *p, const gcpi_task *task, const gcpi_op *op)
{
    double bytes = 0;
    int view = op ? gcpi_facts_of(op).view : GCPI_VIEW_NONE;
    if (task->free) return 0;
    if (view == GCPI_VIEW_JOINED || view == GCPI_VIEW_PART) return gcpi_view_traffic(p, task, op);
    for (int k = 0; k < task->count; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        bytes += (double)gcpi_bytes_alone(p, o->item) * (o->mode == GCPI_ADD ? 2 : 1);
    }
    return bytes;
}

static void gcpi_task_cost(const gcpi_problem *p, gcpi_task *task, const gcpi_op *op, int backward)
{
    gcp_shape in[GCP_MAX_INPUTS], out[GCP_MAX_OUTPUTS];
    const gcp_tape *t = p->tape;
    const gcp_op *row = gcpi_row_for(&p->target, op, GCP_ROW_APPLY);
    gcp_cost_call call;
    gcp_cost cost;
    memset(&cost, 0, sizeof cost);
    memset(&call, 0, sizeof call);
    for (int i = 0; op && i < op->inputs; i++) in[i] = t->tensors[gcpi_edge(t, op, i)].shape;
    for (int j = 0; op && j < op->outputs; j++) out[j] = t->tensors[op->out + j].shape;
    cost.bytes = gcpi_task_traffic(p, task, op);
    if (op) {
        call.attributes = op->context ? op->context : (const void *)&op->attributes;
        call.inputs = op->inputs; call.outputs = op->outputs;
    }
    call.in = in; call.out = out;
    call.backward = backward; call.target = &p->target;
    for (int i = 0; backward && op && i < GCPI_MIN(op->inputs, 32); i++)
        call.wanted |= (unsigned)p->items[t->tensor_count + gcpi_edge(t, op, i)].active << i;
    if (op && row && row->cost) row->cost(&call, &cost);       /* row NULL: a custom op that will be refused */
    if (!backward && gcpi_stats_follow(p, op)) cost.workspace = gcpi_stats_room(p, op, cost.workspace, &call);
    if (task->free) cost.bytes = 0;
    task->flops = cost.flops;
    task->workspace = cost.workspace ? cost.workspace + 2 * p->guard : 0;
    task->seconds = GCPI_MAX(cost.flops / p->target.flops_per_second, cost.bytes / p->target.bytes_per_second);
}

/* Cost tables. A key says what a task does, not where it stands: its ops, the shapes of its operands, windows. */
#define GCPI_LINK_KEY "link 1e9 bytes"
static void gcpi_task_key(const gcpi_problem *p, const gcpi_task *task, char *key, size_t size)
{
    static const char *const kinds[] = { GCPI_TASK_KINDS(GCPI_TASK_WORD) };
    static const char *const modes[] = { "", ">", "+", "=" };
    const gcp_tape *t = p->tape;
    size_t n = (size_t)snprintf(key, size, "%s", kinds[task->kind]);
    int ops = task->kind == GCPI_TASK_FORWARD || task->kind == GCPI_TASK_BACKWARD;
    for (int o = task->op - GCPI_MAX(task->ops, 1) + 1; ops && o <= task->op && n < size; o++) {
        const gcpi_conv_attr *a = gcpi_facts_of(&t->ops[o]).window;
        n += (size_t)snprintf(key + n, size - n, " %s", t->ops[o].row->name);
        if (a && n < size)
            n += (size_t)snprintf(key + n, size - n, ",%dx%d,%dx%d,%d+%d+%d+%d,%dx%d,%d", a->kh, a->kw, a->sh, a->sw,
                                  a->pt, a->pb, a->pl, a->pr, a->dh, a->dw, a->groups);
    }
    for (int i = 0; task->concat && !task->free && i < t->ops[task->op].inputs && n < size; i++)
        if (!gcpi_in_place_in(p, &t->ops[task->op], i)) n += (size_t)snprintf(key + n, size - n, " copy %d", i);
    if (task->kind == GCPI_TASK_UPDATE && n < size)
        n += (size_t)snprintf(key + n, size - n, " %d%s", p->optimizer, p->far_slots ? " far" : "");
    for (int k = 0; k < task->count && n < size; k++) {
        const gcpi_operand *o = &p->operands[task->operands + k];
        const int *d = t->tensors[p->items[o->item].tensor].shape.d;
        n += (size_t)snprintf(key + n, size - n, " %s%dx%dx%dx%d", modes[o->mode], d[0], d[1], d[2], d[3]);
    }
}

enum { GCPI_KEY_BYTES = 1024 };
static uint64_t gcpi_key_hash(const char *key, size_t n)
{
    uint64_t h = GCPI_HASH;
    for (size_t i = 0; i < n; i++) if (key[i] != ' ') h = gcpi_hash_byte(h, (unsigned char)key[i]);
    return h;
}

/* A table's lines: keys as hashes, and their seconds. */
typedef struct gcpi_costs { uint64_t *hash; double *seconds; int count; } gcpi_costs;

/* 0: an error is on the tape, or the arena is too small. */
static int gcpi_costs_read(const gcpi_problem *p, const gcp_plan_opts *opts, gcp_arena *a, gcpi_costs *costs)
{
    int lines = 1, line = 0;
    for (const char *c = opts->costs; *c; c++) lines += *c == '\n';
    costs->count = 0;
    costs->hash = GCPI_SCRATCH(a, uint64_t, lines);
    costs->seconds = GCPI_SCRATCH(a, double, lines);
    if (!costs->hash || !costs->seconds) return 0;
    for (const char *c = opts->costs; *c;) {
        size_t n = strcspn(c, "\n"), last = n;
        char *end;
        line++;
        while (last > 0 && c[last - 1] != ' ') last--;
        if (n && *c != '#') {
            double value = gcpi_real(c + last, &end);
            if (!last || end != c + n || !(value >= 0) || value > 1e9) {
                gcpi_fail(p->tape, GCP_E_ARGUMENT, opts->at, p->tape->planning,
                          ".costs, line %d: not 'OP SHAPES SECONDS' (0 to 1e9), as gcp_costs_print writes it", line);
                return 0;
            }
            costs->hash[costs->count] = gcpi_key_hash(c, last);
            costs->seconds[costs->count++] = value;
        }
        c += n + (c[n] != 0);
    }
    return 1;
}

/* The first line of a key, or NULL. */
static const double *gcpi_costs_find(const gcpi_costs *costs, const char *key)
{
    const uint64_t hash = gcpi_key_hash(key, strlen(key));
    for (int k = 0; k < costs->count; k++) if (costs->hash[k] == hash) return &costs->seconds[k];
    return NULL;
}

/* Takes tasks' seconds, and the link's, from a table's text. 0: as gcpi_costs_read. */
static int gcpi_costs_apply(gcpi_problem *p, const gcp_plan_opts *opts, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_costs costs;
    double taken = 0, all = 0;
    p->costed = 0;
    if (!gcpi_costs_read(p, opts, a, &costs)) return 0;
    const double *link = gcpi_costs_find(&costs, GCPI_LINK_KEY);
    if (link && *link > 0) p->target.far_bytes_per_second = 1e9 / *link;
    for (int i = 0; i < p->task_count; i++) {
        char key[GCPI_KEY_BYTES];
        gcpi_task_key(p, &p->tasks[i], key, sizeof key);
        const double *seconds = gcpi_costs_find(&costs, key);
        if (seconds) { taken += p->tasks[i].seconds = *seconds; p->costed++; }
        all += p->tasks[i].seconds;
    }
    p->costed_share = all > 0 ? taken / all : 0;
    a->scratch = scratch;
    return 1;
}

/* ==== src/problem/tasks.h ==== */

/* The rest of a tape's problem: groups, gradients, updates, far tasks, moves. */

/* Groups: batch_norm, add and a rectifier that follow one another run as one pass (GCP_ROW_APPLY), so that the values
   in between are never made. Nothing else may need these: they are not kept, and no other op and no backward reads
   them. Backward runs op by op. Which ops form a group depends on the tape, the loss and .inference.
   1: op o + 1 is the only user of the output of op o. */
static int gcpi_swallowed(const gcpi_problem *p, int o, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    const gcpi_uses *u = &p->uses;
    const gcpi_op *op = &t->ops[o], *next = op + 1;
    if (o + 1 >= t->op_count || op->segment != next->segment || read[op->out] ||
        t->tensors[op->out].flags & GCPI_KEPT || op->out == p->root)
        return 0;
    return !(t->segments[op->segment].keep >> op->kind & 1) && u->first[op->out + 1] - u->first[op->out] == 1 &&
           u->consumers[u->first[op->out]] == o + 1;
}

static int gcpi_is_part(const gcpi_op *op, int part) { return gcpi_facts_of(op).part == part; }

/* how many ops from o on form a group; 1: none */
static int gcpi_group(const gcpi_problem *p, int o, const unsigned char *read)
{
    const gcpi_op *op = &p->tape->ops[o];
    int norm = gcpi_is_part(op, GCPI_PART_NORM), n = 1;
    if ((!norm && !gcpi_is_part(op, GCPI_PART_ADD)) || !gcpi_swallowed(p, o, read)) return 1;
    if (norm && gcpi_is_part(op + n, GCPI_PART_ADD)) {
        n++;
        if (!gcpi_swallowed(p, o + 1, read)) return n;
    }
    return n + gcpi_is_part(op + n, GCPI_PART_RECTIFIER);
}

static void gcpi_group_task(gcpi_problem *p, int o, int ops, const unsigned char *read)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o], *last = op + ops - 1,
                  *add = gcpi_is_part(op, GCPI_PART_ADD)       ? op
                         : gcpi_is_part(op + 1, GCPI_PART_ADD) ? op + 1
                                                               : NULL;
    gcpi_task *task = gcpi_task_add(p, GCPI_TASK_FORWARD, o + ops - 1);
    task->ops = ops;
    gcpi_operand_add(p, task, gcpi_edge(t, op, 0), GCPI_READ, GCPI_ROLE_IN);
    if (add)
        gcpi_operand_add(p, task, gcpi_edge(t, add, add == op || gcpi_edge(t, add, 0) == op->out), GCPI_READ,
                         GCPI_ROLE_IN + 1);
    for (int i = 1; gcpi_is_part(op, GCPI_PART_NORM) && i < 5; i++)
        gcpi_operand_add(p, task, gcpi_edge(t, op, i), GCPI_READ, GCPI_ROLE_IN + 1 + i);
    /* values that are never made count as made by this task */
    for (const gcpi_op *k = op; k < last; k++) p->items[k->out].producer = p->task_count - 1;
    for (int j = 0; j < last->outputs; j++) gcpi_forward_output(p, task, o + ops - 1, j, read);
    gcpi_task_traits(p, task, last);
}

/* Which ops read each tensor. */
static int gcpi_uses_make(gcpi_problem *p, const unsigned char *needed, gcp_arena *a)
{
    const gcp_tape *t = p->tape;
    gcpi_uses *u = &p->uses;
    u->first = GCPI_NEW(a, int, t->tensor_count + 2);
    u->consumers = GCPI_NEW(a, int, t->edge_count + 1);
    if (!u->first || !u->consumers) return 0;
    for (int o = 0; o < t->op_count; o++)
        for (int i = 0; needed[o] && i < t->ops[o].inputs; i++) u->first[gcpi_edge(t, &t->ops[o], i) + 2]++;
    for (int i = 2; i <= t->tensor_count + 1; i++) u->first[i] += u->first[i - 1];
    for (int o = t->op_count - 1; o >= 0; o--)
        for (int i = 0; needed[o] && i < t->ops[o].inputs; i++)
            u->consumers[u->first[gcpi_edge(t, &t->ops[o], i) + 1]++] = o;
    return 1;
}

/* Whether a tensor is more than one of the op's inputs. */
static int gcpi_repeats(const gcp_tape *t, const gcpi_op *op)
{
    for (int i = 1; i < op->inputs; i++)
        for (int k = 0; k < i; k++) if (gcpi_edge(t, op, k) == gcpi_edge(t, op, i)) return 1;
    return 0;
}

static void gcpi_backward_gradient(gcpi_problem *p, gcpi_task *task, int i, unsigned char *defined)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[task->op];
    int x = gcpi_edge(t, op, i);
    if (!p->items[t->tensor_count + x].active) return;
    gcpi_operand_add(p, task, t->tensor_count + x, defined[x] ? GCPI_ADD : GCPI_WRITE, GCPI_ROLE_DIN + i);
    defined[x] = 1;
}

static void gcpi_backward_task(gcpi_problem *p, int o, const unsigned char *read, unsigned char *defined)
{
    const gcp_tape *t = p->tape;
    const gcpi_op *op = &t->ops[o];
    gcpi_task *task = gcpi_task_add(p, GCPI_TASK_BACKWARD, o);
    /* where a tensor's gradient has two parts, the one that is written first comes first: the other is added to it */
    uint64_t in, out, early = gcpi_repeats(t, op) ? gcpi_facts_of(op).early : 0;
    task->forward = p->items[op->out].producer;
    task->unit = p->tasks[task->forward].unit;
    gcpi_backward_reads(p, op, read[op->out], &in, &out);
    for (int i = 0; i < op->inputs; i++)
        if (in >> i & 1) gcpi_operand_add(p, task, gcpi_edge(t, op, i), GCPI_READ, GCPI_ROLE_IN + i);
    for (int j = 0; j < op->outputs; j++) {
        int gradient = t->tensor_count + op->out + j;
        if (out >> j & 1) gcpi_operand_add(p, task, op->out + j, GCPI_READ, GCPI_ROLE_OUT + j);
        if (p->items[gradient].active && defined[op->out + j])
            gcpi_operand_add(p, task, gradient, GCPI_READ, GCPI_ROLE_DOUT + j);
    }
    for (int late = 0; late < 2; late++)
        for (int i = 0; i < op->inputs; i++)
            if (late != (int)(early >> i & 1)) gcpi_backward_gradient(p, task, i, defined);
}

static int gcpi_slots_of(const gcp_plan_opts *o)
{
    return o->optimizer == GCP_OPTIMIZER_SGD ? o->momentum > 0 : o->optimizer ? 2 : 0;
}

/* Slots that wait in far memory pass through the workspace of their update piece by piece. While one piece is updated,
   the next arrives: so there are two places for pieces, each for all slots of so many elements. */
enum { GCPI_SLOTS_PIECE = 65536, GCPI_STATE_ALIGN = 64 };
static size_t gcpi_slots_place(size_t count)            /* bytes of a place, per slot */
{
    return gcpi_round(GCPI_MIN(count, (size_t)GCPI_SLOTS_PIECE) * sizeof(gcp_real), GCPI_STATE_ALIGN);
}

static void gcpi_far_slots_cost(const gcpi_problem *p, gcpi_task *update, gcp_shape shape)
{
    size_t count = gcpi_count(shape), places = count > GCPI_SLOTS_PIECE ? 2 : 1;
    update->workspace = (size_t)p->far_slots * places * gcpi_slots_place(count);
    update->seconds += 2.0 * p->far_slots * (double)count * sizeof(gcp_real) / p->target.far_bytes_per_second;
}

static void gcpi_parameter_task(gcpi_problem *p, int kind, int parameter, int mode)
{
    int gradient = p->tensors + p->tape->parameters[parameter].tensor;
    gcpi_task *task = gcpi_task_add(p, kind, parameter);
    gcpi_operand_add(p, task, gradient, mode, GCPI_ROLE_DIN);
    if (kind == GCPI_TASK_UPDATE) p->items[gradient].updated = (int)(task - p->tasks);
    task->seconds = 3.0 * (double)p->items[gradient].bytes / p->target.bytes_per_second;
    if (kind == GCPI_TASK_UPDATE && p->far_slots) gcpi_far_slots_cost(p, task, p->tape->parameters[parameter].shape);
}

static int gcpi_trained(const gcpi_problem *p, int parameter)       /* has a gradient in this plan */
{
    int tensor = p->tape->parameters[parameter].tensor;
    return tensor && tensor < p->tensors && p->tape->parameters[parameter].kind == GCPI_PARAMETER &&
           p->items[p->tensors + tensor].active;
}

/* The tasks after the backward of op o, for parameters whose gradient is complete then: hooks, and fused updates. */
static void gcpi_after_backward(gcpi_problem *p, int o, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    const gcpi_uses *u = &p->uses;
    const gcpi_op *op = &t->ops[o];
    for (int i = 0; i < op->inputs; i++) {
        int x = gcpi_edge(t, op, i), parameter = t->tensors[x].parameter, repeated = 0, last = 1, read = 0;
        for (int k = 0; k < i; k++) repeated |= gcpi_edge(t, op, k) == x;
        if (t->tensors[x].kind != GCPI_PARAMETER || !p->items[t->tensor_count + x].active || repeated) continue;
        for (int k = u->first[x]; k < u->first[x + 1]; k++) {
            last &= u->consumers[k] >= o || !gcpi_has_backward(p, &t->ops[u->consumers[k]]);
            read |= u->consumers[k] < o;          /* that op may run again later and must see the old weights */
        }
        if (!last) continue;
        if (opts->on_gradient) gcpi_parameter_task(p, GCPI_TASK_HOOK, parameter, GCPI_ADD);
        if (!opts->fuse_update || read) continue;
        if (opts->on_gradient) gcpi_parameter_task(p, GCPI_TASK_WAIT, parameter, GCPI_ADD);
        gcpi_parameter_task(p, GCPI_TASK_UPDATE, parameter, GCPI_READ);
    }
}

static int gcpi_updated(const gcpi_problem *p, int parameter)
{
    return p->items[p->tensors + p->tape->parameters[parameter].tensor].updated;
}

static size_t gcpi_norm_bytes(const gcpi_problem *p, const gcp_shape *shape)
{
    gcp_cost_call call;
    gcp_cost cost;
    memset(&cost, 0, sizeof cost);
    memset(&call, 0, sizeof call);
    call.in = shape; call.inputs = 1; call.target = &p->target;
    gcpi_row_for(&p->target, NULL, GCP_ROW_NORM)->cost(&call, &cost);
    return cost.workspace;
}

static void gcpi_updates(gcpi_problem *p, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    for (int i = 0; opts->on_gradient && i < t->parameter_count; i++)
        if (gcpi_trained(p, i) && !gcpi_updated(p, i)) gcpi_parameter_task(p, GCPI_TASK_WAIT, i, GCPI_ADD);
    if (!opts->optimizer) return;
    int trained = 0;
    for (int i = 0; i < t->parameter_count; i++) trained |= gcpi_trained(p, i);
    if (opts->clip_norm > 0 && trained) {
        gcpi_task *norm = gcpi_task_add(p, GCPI_TASK_GRADIENT_NORM, 0);
        for (int i = 0; i < t->parameter_count; i++)
            if (gcpi_trained(p, i)) {
                gcpi_operand_add(p, norm, t->tensor_count + t->parameters[i].tensor, GCPI_READ, GCPI_ROLE_DIN);
                norm->workspace = GCPI_MAX(norm->workspace, gcpi_norm_bytes(p, &t->parameters[i].shape));
            }
    }
    for (int i = 0; i < t->parameter_count; i++)
        if (gcpi_trained(p, i) && !gcpi_updated(p, i)) gcpi_parameter_task(p, GCPI_TASK_UPDATE, i, GCPI_READ);
}

/* The tail: the loss and what is made from losses alone, to the end of forward. Returns its first task. */
static int gcpi_tail(gcpi_problem *p)
{
    int tail = p->forward;
    for (int i = 0; i < p->forward; i++) {
        int made = 0, losses = 0;
        for (int k = 0; k < p->tasks[i].count; k++) {
            const gcpi_item *x = &p->items[p->operands[p->tasks[i].operands + k].item];
            if (p->operands[p->tasks[i].operands + k].mode != GCPI_READ || x->kind != GCPI_FORWARD_ITEM) continue;
            made++;
            losses += p->tasks[x->producer].unit;
        }
        p->tasks[i].unit = p->training && (p->tasks[i].loss || (made && made == losses));
    }
    while (tail > 0 && p->tasks[tail - 1].unit) tail--;
    return tail;
}

/* A unit is an outermost segment, or an op outside of all segments. The tail belongs to none (unit = units). */
static void gcpi_units_number(gcpi_problem *p)
{
    const gcp_tape *t = p->tape;
    int segment = 0, tail = gcpi_tail(p);
    for (int i = 0; i < p->forward; i++) {
        p->tasks[i].segment = t->ops[p->tasks[i].op].segment;
        int outer = t->segments[p->tasks[i].segment].outer;
        if (i < tail && (!outer || outer != segment || p->units == 0)) p->units++;
        segment = outer;
        p->tasks[i].unit = i < tail ? p->units - 1 : p->units;
    }
}

/* Far tasks: copies to far memory and back, and waits for them. Only first outputs have them, and only those that can
   have bytes of their own; a list holds them where they do (gcpi_alone). */
static void gcpi_far_tasks(gcpi_problem *p)
{
    for (int i = 0; i < p->tensors; i++) {
        const gcpi_item *x = &p->items[i];
        if (x->kind != GCPI_FORWARD_ITEM || !x->active || !x->alone || x->pinned) continue;
        /* masks and the like share their op's name */
        if (!gcpi_is_graph(p) && p->tape->ops[p->tape->tensors[i].producer].out != i) continue;
        for (int kind = GCPI_TASK_OFFLOAD; kind <= GCPI_TASK_ARRIVE; kind++)
            gcpi_operand_add(p, gcpi_task_add(p, kind, i), i, kind == GCPI_TASK_PREFETCH ? GCPI_WRITE : GCPI_READ,
                             GCPI_ROLE_OUT);
    }
}

static int gcpi_may_move(const gcpi_problem *p, int i, int hooks)
{
    const gcpi_item *x = &p->items[i];
    if ((x->kind != GCPI_FORWARD_ITEM && x->kind != GCPI_GRADIENT_ITEM) || !x->active || !x->alone ||
        x->pinned == GCPI_PINNED_ALWAYS || !x->bytes)
        return 0;
    if (gcpi_is_graph(p)) return 1;
    const gcpi_tensor *e = &p->tape->tensors[x->tensor];
    if (hooks && e->kind == GCPI_PARAMETER) return 0;          /* on_gradient's address is good until on_wait returns */
    return e->producer < 0 || (p->tape->ops[e->producer].out == x->tensor &&
                               (e->dtype == GCP_DTYPE_REAL || x->kind == GCPI_GRADIENT_ITEM));
}

/* For items of real numbers that can have bytes of their own: a concat of one input does the copying. A graph's
   costs may be in any unit, so there a move costs what the op costs that made the item. */
static void gcpi_move_tasks(gcpi_problem *p, int hooks)
{
    for (int i = 0; i < p->item_count; i++) {
        if (!gcpi_may_move(p, i, hooks)) continue;
        gcpi_task *task = gcpi_task_add(p, GCPI_TASK_MOVE, i);
        gcpi_operand_add(p, task, i, GCPI_READ, GCPI_ROLE_IN);
        gcpi_operand_add(p, task, i, GCPI_WRITE, GCPI_ROLE_OUT);
        task->seconds = gcpi_is_graph(p) ? p->tasks[p->items[i].producer].seconds
                                 : 2 * (double)gcpi_bytes_alone(p, i) / p->target.bytes_per_second;
        p->items[i].move = (int)(task - p->tasks);
    }
}

/* Whether the list may hold moves. */
static int gcpi_moves(const gcp_plan_opts *o) { return o->list != NULL || o->policy == GCP_POLICY_BUDGET; }

static int gcpi_problem_arrays(gcpi_problem *p, int far, int moves, gcp_arena *a)
{
    const gcp_tape *t = p->tape;
    ptrdiff_t tasks = 2 * (ptrdiff_t)t->op_count + 3 * (ptrdiff_t)t->parameter_count + 2;
    ptrdiff_t operands =
        3 * (ptrdiff_t)t->edge_count + 4 * (ptrdiff_t)t->tensor_count + 4 * (ptrdiff_t)t->parameter_count + 1;
    if (far) { tasks += 3 * (ptrdiff_t)t->tensor_count; operands += 3 * (ptrdiff_t)t->tensor_count; }
    if (moves) { tasks += 2 * (ptrdiff_t)t->tensor_count; operands += 4 * (ptrdiff_t)t->tensor_count; }
    p->tensors = t->tensor_count;
    p->item_count = 2 * p->tensors;
    p->items = GCPI_NEW(a, gcpi_item, p->item_count);
    p->tasks = GCPI_NEW(a, gcpi_task, tasks);
    p->operands = GCPI_NEW(a, gcpi_operand, operands);
    p->copied = GCPI_NEW(a, gcpi_copied, t->op_count);
    return p->items && p->tasks && p->operands && p->copied;
}

static void gcpi_problem_backward(gcpi_problem *p, const unsigned char *needed, const unsigned char *read,
                                  unsigned char *defined, const gcp_plan_opts *opts)
{
    const gcp_tape *t = p->tape;
    gcpi_task *seed = gcpi_task_add(p, GCPI_TASK_SEED, t->tensors[p->root].producer);
    gcpi_operand_add(p, seed, t->tensor_count + p->root, GCPI_WRITE, GCPI_ROLE_DOUT);
    defined[p->root] = 1;
    for (int o = t->op_count - 1; o >= 0; o--) {
        if (!needed[o] || !gcpi_has_backward(p, &t->ops[o])) continue;
        gcpi_backward_task(p, o, read, defined);
        gcpi_after_backward(p, o, opts);
    }
    gcpi_updates(p, opts);
    for (int i = 1; i < t->tensor_count; i++) {
        gcpi_item *gradient = &p->items[t->tensor_count + i];
        if (!gradient->active) continue;
        if (t->tensors[i].kind == GCPI_PARAMETER)
            gradient->pinned = opts->accumulate > 1 ? GCPI_PINNED_ALWAYS : opts->optimizer ? 0 : GCPI_PINNED_TO_END;
        if (t->tensors[i].kind == GCPI_INPUT) gradient->pinned = GCPI_PINNED_TO_END;
    }
}

/* Places all items for the choice in p->copied, in the order of plain backpropagation: what comes first has its way. */
static void gcpi_views_place(gcpi_problem *p)
{
    gcpi_views_forget(p);
    for (int k = 0; k < p->task_count; k++) {
        gcpi_task *task = &p->tasks[k];
        int back = task->kind == GCPI_TASK_BACKWARD;
        if (task->kind != GCPI_TASK_FORWARD && !back) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        if (back) gcpi_backward_views(p, task);
        else task->free = task->ops == 1 && op->row->flags & GCP_FLAG_VIEW && gcpi_forward_views(p, op);
        gcpi_task_in_place(p, task, op);
        gcpi_task_cost(p, task, task->ops > 1 ? NULL : op, back);
    }
}

/* All values of concats and slices (copied & 1), all gradients of concats (copied & 2) are copies. */
static void gcpi_copied_set(gcpi_copied *c, int ops, int copied)
{
    for (int o = 0; o < ops; o++) {
        c[o].values = copied & 1 ? UINT64_MAX : 0;
        c[o].gradients = copied & 2 ? UINT64_MAX : 0;
    }
}

static void gcpi_views_choose(gcpi_problem *p, int copied)
{
    gcpi_copied_set(p->copied, p->tape->op_count, copied);
    gcpi_views_place(p);
    for (int i = 0; i < p->item_count; i++) p->items[i].alone |= gcpi_alone(p, i);
}

/* Of what gcpi_views_choose can copy, what is in place now: there is a choice. */
static int gcpi_views_open(const gcpi_problem *p)
{
    int open = 0;
    for (int k = 0; k < p->task_count && !gcpi_is_graph(p); k++) {
        const gcpi_task *task = &p->tasks[k];
        if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        int view = gcpi_facts_of(op).view;
        if (view == GCPI_VIEW_PART && task->free) open |= 1;
        for (int i = 0; view == GCPI_VIEW_JOINED && task->kind == GCPI_TASK_FORWARD && i < op->inputs; i++)
            open |= gcpi_in_place_in(p, op, i);
        for (int i = 0; view == GCPI_VIEW_JOINED && task->kind == GCPI_TASK_BACKWARD && i < task->count; i++)
            open |= 2 * (p->operands[task->operands + i].mode == GCPI_ALIAS);
    }
    return open;
}

static int gcpi_rates_make(gcpi_problem *p, const gcp_plan_opts *o, gcp_arena *a)
{
    const gcp_tape *t = p->tape;
    if (!o->rates && !o->decays) return 1;
    p->rates = (double (*)[2])gcp_arena_push(a, 2 * sizeof(double), 16, t->parameter_count + 1);
    for (int i = 0; p->rates && i < t->parameter_count; i++) {
        p->rates[i][0] = gcpi_numbers_fit(o->rates, t->parameters[i].path, 1);
        p->rates[i][1] = gcpi_numbers_fit(o->decays, t->parameters[i].path, o->weight_decay);
    }
    return p->rates != NULL;
}

/* Makes the problem of a tape. 0: the arena is too small. */
static int gcpi_problem_make(gcpi_problem *p, int root, const gcp_plan_opts *opts, const gcp_target *target,
                             gcp_arena *a)
{
    gcp_tape *t = p->tape;
    ptrdiff_t scratch = a->scratch;
    p->target = *target; p->root = root; p->training = !opts->inference;
    p->numbers = GCPI_NUMBERS_BYTES;
    p->frozen_norms = opts->frozen_norms;
    p->guard = opts->check ? target->align : 0;
    if (!gcpi_rates_make(p, opts, a)) return 0;
    p->far_slots = t->far_slots ? gcpi_slots_of(opts) : 0;
    unsigned char *needed = GCPI_SCRATCH(a, unsigned char, t->op_count + 1),
                  *read = GCPI_SCRATCH(a, unsigned char, t->tensor_count);
    unsigned char *defined = GCPI_SCRATCH(a, unsigned char, t->tensor_count);
    if (!gcpi_problem_arrays(p, opts->list || opts->far, gcpi_moves(opts), a) || !needed || !read || !defined) return 0;
    gcpi_mark_needed(t, root, needed);
    if (!gcpi_uses_make(p, needed, a)) return 0;
    gcpi_items_make(p);
    gcpi_items_dense(p);
    if (p->training) gcpi_mark_gradients(p, needed, opts);
    gcpi_mark_reads(p, needed, read);
    for (int i = 1; i < t->tensor_count; i++)
        if (p->items[i].kind == GCPI_INPUT_ITEM) p->items[i].pinned = GCPI_PINNED_ALWAYS;
    for (int o = 0, n; o < t->op_count; o += n) {
        n = needed[o] && !opts->no_groups ? gcpi_group(p, o, read) : 1;
        if (n > 1) gcpi_group_task(p, o, n, read);
        else if (needed[o]) gcpi_forward_task(p, o, read);
    }
    /* inputs and parameters that are read */
    for (int i = 0; i < p->operand_count; i++) p->items[p->operands[i].item].active = 1;
    p->forward = p->task_count;
    gcpi_units_number(p);
    if (p->training) gcpi_problem_backward(p, needed, read, defined, opts);
    gcpi_views_choose(p, 3);
    gcpi_views_choose(p, 0);
    if (opts->list || opts->far) gcpi_far_tasks(p);
    if (gcpi_moves(opts)) gcpi_move_tasks(p, opts->on_gradient != NULL);
    a->scratch = scratch;
    p->optimizer = (int)opts->optimizer;
    return !opts->costs || gcpi_costs_apply(p, opts, a);
}

/* ==== src/problem/graph.h ==== */

/* A problem as text, read and written. gcp-graph 1 has one line per op:  KIND ID COST BYTES WORKSPACE INPUTS...  KIND
   is f (forward, may run again), o (forward, runs once) or b (backward, runs once, in this order, after all f and o).
   Each op has one output tensor; INPUTS are ids of ops. gcp-graph 2 and 3 (the first line says so) have separate lines
   for tensors:
     t ID BYTES [in=ID@OFFSET] [rows=PITCH/ROW] [gradient] [stored] [keep] [end] [always] [state]
     f|o|b ID COST WORKSPACE OPERANDS... [of=ID] [free] [concat] [costly] [joins] [loss] [unit=N]
   in: a view, which takes no bytes of its own; what a concat reads and does not hold so, it copies. keep: kept by the
   user; end: lives to the end of the step; always: from its beginning, too; state: is not in the slab (2 leaves such
   operands out, so a concat of weights has the wrong columns there). Operands: T is read, >T written, +T added to, =T
   becomes the same bytes; >T<A or >T<A<B: T may be written in place on A or B. of: the op that a b reverses (by default
   ID_b reverses ID, and any other b the last op whose output it reads). '# numbers N' and '# state N' give the bytes of
   the step's numbers and of the state, '# units N' how many units count. Other text after # is a comment. */

typedef struct gcpi_reader {
    gcpi_problem *p; gcp_arena *a;
    char *text, *at;                  /* copy of the text, cut into tokens; where in the line */
    int *table, table_size;           /* hash table of names: item + 1 at even indices, task + 1 at odd ones */
    int version, line;
    size_t bytes;                     /* of all tensors and workspaces so far */
    char *message; size_t size;
} gcpi_reader;

static int gcpi_graph_bad(gcpi_reader *r, const char *text, const char *token)
{
    snprintf(r->message, r->size, "line %d: %s%s%.80s", r->line, text, token ? " " : "", token ? token : "");
    return 0;
}

static char *gcpi_token(gcpi_reader *r)              /* the line's next token, or NULL */
{
    while (*r->at == ' ' || *r->at == '\t' || *r->at == '\r') r->at++;
    if (!*r->at || *r->at == '#') return NULL;
    char *token = r->at;
    while (*r->at && *r->at != ' ' && *r->at != '\t' && *r->at != '\r' && *r->at != '#') r->at++;
    if (*r->at == '#') *r->at = 0;
    else if (*r->at) *r->at++ = 0;
    return token;
}

static int gcpi_size_token(const char *token, size_t *n)
{
    char *end;
    if (!token || *token < '0' || *token > '9') return 0;
    double value = gcpi_real(token, &end);
    if (*end || !(value >= 0) || value > (double)(SIZE_MAX / 16)) return 0;
    *n = (size_t)strtoull(token, &end, 10);
    if (*end) *n = (size_t)value;
    return 1;
}

/* Reads a size. The sum of all sizes is bounded, so that multiples of it do not overflow. */
static int gcpi_bytes_token(gcpi_reader *r, const char *token, size_t *n)
{
    return gcpi_size_token(token, n) && (r->bytes += *n) <= SIZE_MAX / 16;
}

static int *gcpi_name_place(gcpi_reader *r, const char *name, int task)      /* the entry where name is, or would be */
{
    char *const *names = task ? r->p->task_names : r->p->item_names;
    uint64_t at = gcpi_hash(name);
    for (;; at++) {
        int *entry = &r->table[2 * (at % (uint32_t)r->table_size) + (uint32_t)task];
        if (!*entry || !strcmp(names[*entry - 1], name)) return entry;
    }
}

static int gcpi_graph_item(gcpi_reader *r, char *name, size_t bytes)
{
    gcpi_problem *p = r->p;
    int *place = gcpi_name_place(r, name, 0);
    if (*place) return gcpi_graph_bad(r, "a second tensor", name) - 1;
    gcpi_item *x = &p->items[p->item_count];
    memset(x, 0, sizeof *x);
    x->bytes = bytes;
    x->kind = GCPI_FORWARD_ITEM;
    x->tensor = x->root = p->item_count;
    x->next = x->producer = -1;
    p->item_names[p->item_count] = name;
    return (*place = ++p->item_count) - 1;
}

static int gcpi_graph_rows(gcpi_reader *r, gcpi_item *x, const char *token)
{
    size_t pitch, row;
    char first[32];
    const char *slash = strchr(token, '/');
    if (!slash || (size_t)(slash - token) >= sizeof first) return gcpi_graph_bad(r, "not rows=PITCH/ROW:", token);
    memcpy(first, token, (size_t)(slash - token));
    first[slash - token] = 0;
    if (!gcpi_size_token(first, &pitch) || !gcpi_size_token(slash + 1, &row) || row > pitch || row < 1 ||
        pitch > PTRDIFF_MAX / 16)
        return gcpi_graph_bad(r, "not rows=PITCH/ROW:", token);
    x->pitch = (ptrdiff_t)pitch; x->row = (ptrdiff_t)row;
    return 1;
}

static int gcpi_graph_inside(gcpi_reader *r, int item, char *token)
{
    gcpi_problem *p = r->p;
    gcpi_item *x = &p->items[item];
    char *at = strrchr(token, '@');
    if (!at || !gcpi_size_token(at + 1, &x->offset)) return gcpi_graph_bad(r, "not in=ID@OFFSET:", token);
    *at = 0;
    int root = *gcpi_name_place(r, token, 0) - 1;
    if (root < 0 || root == item || p->items[root].root != root || x->root != item)
        return gcpi_graph_bad(r, "no tensor of its own:", token);
    if (x->offset + x->bytes > p->items[root].bytes) return gcpi_graph_bad(r, "does not lie inside of", token);
    x->root = root;
    x->next = p->items[root].next;
    p->items[root].next = item;
    return 1;
}

static int gcpi_graph_tensor(gcpi_reader *r)
{
    char *name = gcpi_token(r), *token;
    size_t bytes;
    if (!name || !gcpi_bytes_token(r, gcpi_token(r), &bytes)) return gcpi_graph_bad(r, "not 't ID BYTES'", NULL);
    int item = gcpi_graph_item(r, name, bytes);
    if (item < 0) return 0;
    gcpi_item *x = &r->p->items[item];
    while ((token = gcpi_token(r)) != NULL) {
        if (!strncmp(token, "in=", 3)) { if (!gcpi_graph_inside(r, item, token + 3)) return 0; }
        else if (!strncmp(token, "rows=", 5)) { if (!gcpi_graph_rows(r, x, token + 5)) return 0; }
        else if (!strcmp(token, "gradient")) x->kind = GCPI_GRADIENT_ITEM;
        else if (!strcmp(token, "stored")) x->stored = 1;
        else if (!strcmp(token, "keep")) x->kept = x->stored = 1;
        else if (!strcmp(token, "end")) x->pinned = GCPI_PINNED_TO_END;
        else if (!strcmp(token, "state")) x->kind = GCPI_STATE_ITEM;
        else if (!strcmp(token, "always")) {
            x->pinned = GCPI_PINNED_ALWAYS;
            if (x->kind == GCPI_FORWARD_ITEM) x->kind = GCPI_INPUT_ITEM;
        } else return gcpi_graph_bad(r, "unknown:", token);
    }
    return 1;
}

static int gcpi_graph_find(gcpi_reader *r, const char *name)
{
    int item = *gcpi_name_place(r, name, 0) - 1;
    return item >= 0 ? item : gcpi_graph_bad(r, "no tensor", name) - 1;
}

/* The operand after > or =, with the operands that it may be written on. */
static int gcpi_graph_write(gcpi_reader *r, gcpi_task *task, char *token, int mode)
{
    char *on = strchr(token, '<');
    if (on) *on++ = 0;
    int item = gcpi_graph_find(r, token);
    for (int side = 0; item >= 0 && on && side < 2; side++) {
        char *next = strchr(on, '<');
        if (next) *next++ = 0;
        int under = gcpi_graph_find(r, on);
        if (under < 0) return 0;
        for (int k = 0; k < task->count && task->under[side] < 0; k++)
            if (r->p->operands[task->operands + k].item == under && !(side && task->under[0] == k))
                task->under[side] = k;
        if (task->under[side] < 0) return gcpi_graph_bad(r, "is not read before it is written on:", on);
        task->over = task->count;
        on = next;
    }
    if (item >= 0 && r->p->items[item].kind == GCPI_STATE_ITEM) return gcpi_graph_bad(r, "no op may write", token);
    if (item < 0) return 0;
    if (r->p->items[item].producer < 0) r->p->items[item].producer = (int)(task - r->p->tasks);
    gcpi_operand_add(r->p, task, item, mode, GCPI_ROLE_OUT);
    return 1;
}

/* 1: token is a trait; 0: it is not; -1: it is one, but wrong */
static int gcpi_graph_trait(gcpi_reader *r, gcpi_task *task, const char *token)
{
    size_t unit;
    if (!strncmp(token, "of=", 3)) {
        task->forward = *gcpi_name_place(r, token + 3, 1) - 1;
        if (task->forward < 0) return gcpi_graph_bad(r, "no op", token + 3) - 1;
        return 1;
    }
    if (!strncmp(token, "unit=", 5)) {
        if (!gcpi_size_token(token + 5, &unit) || unit > (size_t)r->table_size)
            return gcpi_graph_bad(r, "not unit=N:", token) - 1;
        task->unit = (int)unit;
        return 1;
    }
    int *traits[] = { &task->free, &task->concat, &task->costly, &task->joins, &task->loss };
    static const char *const names[] = { "free", "concat", "costly", "joins", "loss" };
    for (int i = 0; i < 5; i++) if (!strcmp(token, names[i])) return *traits[i] = 1;
    return 0;
}

static int gcpi_graph_operands(gcpi_reader *r, gcpi_task *task)
{
    char *token;
    while ((token = gcpi_token(r)) != NULL) {
        int trait = r->version > 1 ? gcpi_graph_trait(r, task, token) : 0, item;
        if (trait < 0) return 0;
        if (trait) continue;
        if (r->version > 1 && *token == '>') {
            if (!gcpi_graph_write(r, task, token + 1, GCPI_WRITE)) return 0;
            continue;
        }
        if (r->version > 1 && *token == '=') {
            if (!gcpi_graph_write(r, task, token + 1, GCPI_ALIAS)) return 0;
            continue;
        }
        int add = r->version > 1 && *token == '+';
        if ((item = gcpi_graph_find(r, token + add)) < 0) return 0;
        const gcpi_item *x = &r->p->items[item];
        if (x->producer < 0 && x->pinned != GCPI_PINNED_ALWAYS && r->p->items[x->root].kind != GCPI_STATE_ITEM)
            return gcpi_graph_bad(r, "is read before any op writes it:", token + add);
        if (add && (r->p->forward < 0 || r->p->items[item].producer < r->p->forward))
            return gcpi_graph_bad(r, "only a gradient that an earlier op wrote can be added to:", token + 1);
        gcpi_operand_add(r->p, task, item, add ? GCPI_ADD : GCPI_READ, GCPI_ROLE_IN);
    }
    return 1;
}

/* The last forward op that made anything the b reads; -1: none. */
static int gcpi_graph_newest(const gcpi_problem *p, const gcpi_task *task)
{
    int newest = -1;
    for (int k = 0; k < task->count; k++) {
        int producer = p->items[p->operands[task->operands + k].item].producer;
        if (producer < p->forward) newest = GCPI_MAX(newest, producer);
    }
    return newest;
}

/* Which forward op a b reverses: that of of=ID; for a b named ID_b, ID; else the newest whose output it reads, or the
   one that the b before it reverses, or the last. */
static void gcpi_graph_reverses(gcpi_reader *r, gcpi_task *task, char *name)
{
    const gcpi_problem *p = r->p;
    size_t n = strlen(name);
    if (task->forward < 0 && n > 2 && !strcmp(name + n - 2, "_b")) {
        name[n - 2] = 0;
        task->forward = *gcpi_name_place(r, name, 1) - 1;
        name[n - 2] = '_';
    }
    if (task->forward < 0 || task->forward >= p->forward) task->forward = gcpi_graph_newest(p, task);
    if (task->forward < 0) task->forward = p->task_count - 1 > p->forward ? task[-1].forward : p->forward - 1;
    task->unit = p->tasks[task->forward].unit;
}

static int gcpi_graph_op(gcpi_reader *r, char kind)
{
    gcpi_problem *p = r->p;
    char *name = gcpi_token(r), *cost = gcpi_token(r), *end = NULL;
    size_t bytes = 0;
    double seconds = cost ? gcpi_real(cost, &end) : -1;
    if (!name || !cost || *end || !(seconds >= 0) || seconds > 1e300)
        return gcpi_graph_bad(r, "not 'KIND ID COST ...'", NULL);
    if (r->version == 1 && !gcpi_bytes_token(r, gcpi_token(r), &bytes)) return gcpi_graph_bad(r, "no bytes of", name);
    if (kind == 'b' ? p->task_count == 0 : p->forward >= 0)
        return gcpi_graph_bad(r, "every f and o line must come before the first b, and there must be one:", name);
    if (kind == 'b' && p->forward < 0) p->forward = p->task_count;
    gcpi_task *task = gcpi_task_add(p, kind == 'b' ? GCPI_TASK_BACKWARD : GCPI_TASK_FORWARD, p->task_count);
    int *place = gcpi_name_place(r, name, 1);
    if (*place) return gcpi_graph_bad(r, "a second op", name);
    p->task_names[p->task_count - 1] = name;
    *place = p->task_count;
    task->seconds = seconds; task->once = kind == 'o'; task->ops = 1; task->unit = p->task_count - 1;
    if (!gcpi_bytes_token(r, gcpi_token(r), &task->workspace)) return gcpi_graph_bad(r, "no workspace bytes of", name);
    if (!gcpi_graph_operands(r, task)) return 0;
    if (kind == 'b') gcpi_graph_reverses(r, task, name);
    if (r->version != 1 || !bytes) return 1;
    int item = gcpi_graph_item(r, name, bytes);
    if (item < 0) return 0;
    p->items[item].kind = kind == 'b' ? GCPI_GRADIENT_ITEM : GCPI_FORWARD_ITEM;
    p->items[item].producer = p->task_count - 1;
    gcpi_operand_add(p, task, item, GCPI_WRITE, GCPI_ROLE_OUT);
    return 1;
}

/* '# units N', '# numbers BYTES', '# state BYTES' describe the whole step; other comments are ignored. */
static int gcpi_graph_header(gcpi_reader *r, char *line)
{
    size_t units = 0;
    int ok = 1;
    if (!strncmp(line, "# numbers ", 10)) ok = gcpi_bytes_token(r, line + 10, &r->p->numbers);
    if (!strncmp(line, "# state ", 8)) ok = gcpi_bytes_token(r, line + 8, &r->p->state);
    if (!strncmp(line, "# units ", 8)) {
        ok = gcpi_size_token(line + 8, &units) && units <= (size_t)r->table_size;
        r->p->units = ok ? (int)units : 0;
    }
    return ok || gcpi_graph_bad(r, "not a valid number:", line);
}

static int gcpi_graph_line(gcpi_reader *r)
{
    const char *kind = gcpi_token(r);
    if (!kind) return 1;
    if (!strcmp(kind, "t") && r->version > 1) return gcpi_graph_tensor(r);
    if (!strcmp(kind, "f") || !strcmp(kind, "o") || !strcmp(kind, "b")) return gcpi_graph_op(r, *kind);
    return gcpi_graph_bad(r, "neither f, o, b nor t:", kind);
}

/* Allocates arrays by the counts of lines and words, which bound what the lines can make. 0: the arena is too small. */
static int gcpi_graph_arrays(gcpi_reader *r, const char *text, const gcp_plan_opts *opts)
{
    gcpi_problem *p = r->p;
    /* far and move tasks per item */
    size_t lines = 2, words = 2, n = strlen(text), far = opts->list || opts->far ? 3 : 0,
           moves = gcpi_moves(opts) ? 1 : 0;
    for (size_t i = 0; i < n; i++) {
        lines += text[i] == '\n';
        words += text[i] > ' ' && (i == 0 || text[i - 1] <= ' ');
    }
    r->text = GCPI_NEW(r->a, char, n + 1);
    p->items = GCPI_NEW(r->a, gcpi_item, lines);
    p->tasks = GCPI_NEW(r->a, gcpi_task, (1 + far + moves) * lines);
    p->operands = GCPI_NEW(r->a, gcpi_operand, words + (far + 2 * moves) * lines);
    p->task_names = GCPI_NEW(r->a, char *, lines);
    p->item_names = GCPI_NEW(r->a, char *, lines);
    if (lines > INT32_MAX / 8 || words > INT32_MAX / 8) return 0;
    r->table_size = 2 * (int)lines + 1;
    r->table = GCPI_SCRATCH(r->a, int, 2 * r->table_size);
    if (!r->text || !p->items || !p->tasks || !p->operands || !p->task_names || !p->item_names || !r->table) return 0;
    memcpy(r->text, text, n + 1);
    return 1;
}

/* 1 where the first line does not say; 0: one that is not known */
static int gcpi_graph_version(const char *text)
{
    int version = 0;
    if (strncmp(text, "# gcp-graph ", 12) || text[12] < '0' || text[12] > '9') return 1;
    for (text += 12; *text >= '0' && *text <= '9' && version < 100; text++) version = 10 * version + *text - '0';
    return version <= 3 ? version : 0;
}

/* A graph has no functions to run, so its problem can be planned, but not run. 0: the text is wrong (message says in
   which line), or the arena is too small (message is empty). */
static int gcpi_graph_parse(gcpi_problem *p, const char *text, const gcp_target *target, const gcp_plan_opts *opts,
                            char *message, size_t size, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_reader r;
    memset(&r, 0, sizeof r);
    r.p = p; r.a = a; r.message = message; r.size = size;
    message[0] = 0;
    p->target = *target; p->training = 1; p->root = -1; p->forward = -1;
    if (!gcpi_graph_arrays(&r, text, opts)) return 0;
    r.version = gcpi_graph_version(text);
    if (!r.version) {
        r.line = 1;
        return gcpi_graph_bad(&r, "a version that this gcp does not read; it reads 1 to 3", NULL);
    }
    for (char *line = r.text, *next; line; line = next) {
        next = strchr(line, '\n');
        if (next) *next++ = 0;
        for (size_t n = strlen(line); n && strchr(" \t\r", line[n - 1]); n--) line[n - 1] = 0;
        r.line++;
        r.at = line;
        if (!gcpi_graph_header(&r, line) || !gcpi_graph_line(&r)) return 0;
    }
    if (p->forward <= 0) return gcpi_graph_bad(&r, "there is no backward op", NULL);
    for (int i = 0; i < p->operand_count; i++) p->items[p->operands[i].item].active = 1;
    for (int i = 0; i < p->item_count; i++)
        if (p->items[i].producer >= p->forward) p->items[i].kind = GCPI_GRADIENT_ITEM;
    p->tensors = p->item_count;
    for (int f = 0; f < p->forward; f++)
        for (int k = 0; k < p->tasks[f].count; k++)
            if (p->tasks[f].once && p->operands[p->tasks[f].operands + k].mode != GCPI_READ)
                p->items[p->operands[p->tasks[f].operands + k].item].stored = 1;
    for (int f = 0, given = p->units; f < p->forward && !given; f++)
        p->units = GCPI_MAX(p->units, p->tasks[f].unit + 1);
    for (int f = 0; f < p->forward; f++) p->tasks[f].unit = GCPI_MIN(p->tasks[f].unit, p->units);
    for (int i = 0; i < p->item_count; i++) p->items[i].alone = gcpi_alone(p, i);
    if (opts->list || opts->far) gcpi_far_tasks(p);
    if (gcpi_moves(opts)) gcpi_move_tasks(p, opts->on_gradient != NULL);
    a->scratch = scratch;
    return 1;
}

/* Prints a tensor's line, after that of its group's root. done: per item, 1 once it has a line. */
static void gcpi_graph_print_tensor(const gcpi_problem *p, int item, unsigned char *done, gcp_writer w)
{
    const gcpi_item *x = &p->items[item];
    char name[256];
    if (done[item]) return;
    done[item] = 1;
    if (x->root != item) gcpi_graph_print_tensor(p, x->root, done, w);
    gcpi_say(w, "t %d %zu", item, x->bytes);
    if (x->root != item) gcpi_say(w, " in=%d@%zu", x->root, x->offset);
    if (x->row) gcpi_say(w, " rows=%td/%td", x->pitch, x->row);
    gcpi_item_name(p, item, name, sizeof name);
    gcpi_say(w, "%s%s%s%s%s%s # %s\n", x->kind == GCPI_GRADIENT_ITEM ? " gradient" : "", x->stored ? " stored" : "",
             x->kept ? " keep" : "", x->pinned == GCPI_PINNED_TO_END ? " end" : "",
             x->pinned == GCPI_PINNED_ALWAYS ? " always" : "",
             x->kind == GCPI_STATE_ITEM ? " state" : "", name);
}

static void gcpi_graph_print_op(const gcpi_problem *p, int task, gcp_writer w)
{
    const gcpi_task *t = &p->tasks[task];
    const gcpi_operand *o = &p->operands[t->operands];
    char name[256];
    static const char *const modes[] = { "", ">", "+", "=" };
    gcpi_say(w, "%c ", task >= p->forward ? 'b' : t->once ? 'o' : 'f');
    if (task < p->forward || t->kind == GCPI_TASK_BACKWARD)
        gcpi_say(w, "%s%s", gcpi_task_name(p, t, name, sizeof name), task < p->forward || gcpi_is_graph(p) ? "" : "_b");
    else gcpi_say(w, "%c:%d", gcpi_letters[t->kind], task);
    gcpi_say(w, " %.17g %zu", t->seconds, t->workspace);
    for (int k = 0; k < t->count; k++) {
        gcpi_say(w, " %s%d", modes[o[k].mode], o[k].item);
        for (int side = 0; k == t->over && side < 2; side++)
            if (t->under[side] >= 0 && t->under[side] < k &&
                p->items[p->items[o[t->under[side]].item].root].kind != GCPI_STATE_ITEM)
                gcpi_say(w, "<%d", o[t->under[side]].item);
    }
    if (t->kind == GCPI_TASK_BACKWARD && t->forward >= 0)
        gcpi_say(w, " of=%s", gcpi_task_name(p, &p->tasks[t->forward], name, sizeof name));
    gcpi_say(w, "%s%s%s%s%s", t->free ? " free" : "", t->concat ? " concat" : "", t->costly ? " costly" : "",
             t->joins ? " joins" : "", t->loss ? " loss" : "");
    if (task < p->forward) gcpi_say(w, " unit=%d", t->unit);
    gcpi_say(w, "\n");
}

/* ==== src/problem/schedule.h ==== */

/* From what is kept to a list; a list as text. A choice says what is kept; gcpi_schedule turns it into a list.
   Segments form a tree. An item's home is the smallest segment that holds its producer and all its forward readers.
   After forward, an item is resident if the last op lies in its home; from then on it stays resident while the op
   being reversed does. With one level of segments that is Chen's scheme; with more it is his recursion, in which
   each replay keeps only the inner boundaries; with none it is keep-all. */

enum { GCPI_DROP, GCPI_AUTO, GCPI_STORE };       /* drop after forward; by home; never drop */

typedef struct gcpi_choice {
    unsigned char *store;             /* per forward item: one of the above */
    int *segment;                     /* per forward task */
    int *parent, *depth, segments;    /* 0 is the root */
    int replay;                       /* drop what was recomputed as soon as backward enters another unit */
} gcpi_choice;

/* kind: 'F' 'R' 'B' 'U' 'H' 'W' 'O' 'P' 'A' 'M' */
typedef struct gcpi_instruction { int letter, task; } gcpi_instruction;

typedef struct gcpi_list {
    gcpi_instruction *at;
    ptrdiff_t count, capacity;
    int reruns, opening;              /* opening: how many lines of its text come before the instructions */
    double rerun_flops, seconds;
} gcpi_list;

typedef struct gcpi_scheduler {
    const gcpi_problem *p;
    const gcpi_choice *c;
    gcpi_list *list;
    int *home;                        /* per item */
    unsigned char *mode, *resident, *need;            /* per item; per item; per forward task */
    int *again, again_count;          /* forward tasks that ran again and are not yet held or dropped */
    /* forward tasks whose outputs are resident while their home is not left: per segment, the last whose home it is;
       per task, the one before it; -1: none. All these segments hold the one that is being reversed. */
    int *held, *before;
    int *last, *entered, entry, here; /* per item: the last backward task that uses it; per segment: its last entry */
    int *rank, *size;                 /* per segment: its place in preorder; how many segments it holds, itself too */
} gcpi_scheduler;

static void gcpi_emit(gcpi_list *list, int kind, int task, const gcpi_task *t)
{
    if (list->at && list->count < list->capacity) {
        list->at[list->count].letter = kind;
        list->at[list->count].task = task;
    }
    list->count++;
    list->seconds += t->seconds;
    if (kind == 'R') list->rerun_flops += t->flops;
}

static int gcpi_common(const gcpi_choice *c, int a, int b)        /* least common ancestor */
{
    while (a != b) {
        if (c->depth[a] >= c->depth[b]) a = c->parent[a];
        else b = c->parent[b];
    }
    return a;
}

/* Ranks segments, so that gcpi_holds takes no walk through the tree. Parents come before children. next: scratch. */
static void gcpi_segments_rank(gcpi_scheduler *s, int *next)
{
    const gcpi_choice *c = s->c;
    for (int i = 0; i < c->segments; i++) s->size[i] = 1;
    for (int i = c->segments - 1; i > 0; i--) s->size[c->parent[i]] += s->size[i];
    s->rank[0] = 0;
    next[0] = 1;
    for (int i = 1; i < c->segments; i++) {
        s->rank[i] = next[c->parent[i]];
        next[c->parent[i]] += s->size[i];
        next[i] = s->rank[i] + 1;
    }
}

static int gcpi_holds(const gcpi_scheduler *s, int segment, int inner)
{
    int at = s->rank[inner] - s->rank[segment];
    return at >= 0 && at < s->size[segment];
}

/* The outputs of one op stay together: running it again for one writes the others, too. 1: something changed. */
static int gcpi_join_outputs(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    int changed = 0;
    for (int f = 0; f < p->forward; f++) {
        const gcpi_operand *o = &p->operands[p->tasks[f].operands];
        int home = -1, mode = GCPI_DROP;
        for (int pass = 0; pass < 2; pass++)
            for (int k = 0; k < p->tasks[f].count; k++) {
                int root = p->items[o[k].item].root;
                if (o[k].mode == GCPI_READ) continue;
                if (pass) {
                    changed |= s->home[root] != home || s->mode[root] != mode;
                    s->home[root] = home;
                    s->mode[root] = (unsigned char)mode;
                }
                home = home < 0 ? s->home[root] : gcpi_common(s->c, home, s->home[root]);
                mode = GCPI_MAX(mode, s->mode[root]);
            }
    }
    return changed;
}

/* Homes and modes are those of alias groups: while one member holds the bytes, dropping another frees nothing. */
static void gcpi_homes(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    for (int i = 0; i < p->item_count; i++) { s->home[i] = -1; s->mode[i] = GCPI_DROP; }
    for (int f = 0; f < p->forward; f++)
        for (int k = 0; k < p->tasks[f].count; k++) {
            int item = p->operands[p->tasks[f].operands + k].item, root = p->items[item].root;
            s->home[root] = s->home[root] < 0 ? s->c->segment[f] : gcpi_common(s->c, s->home[root], s->c->segment[f]);
            if (p->items[root].kind != GCPI_FORWARD_ITEM) s->mode[root] = GCPI_STORE;
            s->mode[root] = GCPI_MAX(s->mode[root], s->c->store[item]);
        }
    while (gcpi_join_outputs(s)) { }
    for (int i = 0; i < p->item_count; i++) {
        s->home[i] = s->home[p->items[i].root] < 0 ? 0 : s->home[p->items[i].root];
        s->mode[i] = s->mode[p->items[i].root];
    }
}

static int gcpi_stays(const gcpi_scheduler *s, int item, int segment)
{
    return s->mode[item] == GCPI_STORE || gcpi_holds(s, s->home[item], segment);
}

static int gcpi_made_by(const gcpi_scheduler *s, int task)        /* an output of a forward task; -1: it has none */
{
    const gcpi_task *t = &s->p->tasks[task];
    for (int k = 0; k < t->count; k++)
        if (s->p->operands[t->operands + k].mode != GCPI_READ) return s->p->operands[t->operands + k].item;
    return -1;
}

static void gcpi_drop(gcpi_scheduler *s, int task)
{
    const gcpi_task *t = &s->p->tasks[task];
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &s->p->operands[t->operands + k];
        if (o->mode != GCPI_READ && s->mode[o->item] != GCPI_STORE) s->resident[o->item] = 0;
    }
}

static void gcpi_hold(gcpi_scheduler *s, int task)
{
    int *held = &s->held[s->home[gcpi_made_by(s, task)]];
    s->before[task] = *held;
    *held = task;
}

/* Backward goes from one segment to another: drops what is held for those that it leaves. */
static void gcpi_leave(gcpi_scheduler *s, int from, int to)
{
    for (; !gcpi_holds(s, from, to); from = s->c->parent[from]) {
        for (int f = s->held[from]; f >= 0; f = s->before[f]) gcpi_drop(s, f);
        s->held[from] = -1;
    }
}

/* Of what ran again, holds what stays resident in the segment and drops the rest. */
static void gcpi_settle(gcpi_scheduler *s, int segment)
{
    for (int i = 0; i < s->again_count; i++)
        if (gcpi_stays(s, gcpi_made_by(s, s->again[i]), segment)) gcpi_hold(s, s->again[i]);
        else gcpi_drop(s, s->again[i]);
    s->again_count = 0;
}

static int gcpi_need(gcpi_scheduler *s, int f, int *low, int *high)      /* marks f; 1: it was not marked yet */
{
    if (s->need[f]) return 0;
    *low = GCPI_MIN(*low, f);
    *high = GCPI_MAX(*high, f);
    return s->need[f] = 1;
}

/* Where a segment is entered to run f again, marks also what makes items that outlive it and that backward still reads:
   the segment then runs once for all of them, not once for each. */
static int gcpi_enter_segment(gcpi_scheduler *s, int task, int f, int *low, int *high)
{
    const gcpi_problem *p = s->p;
    int here = s->here, c = s->c->segment[f], marked = 0;
    if (gcpi_holds(s, c, here)) return 0;
    while (!gcpi_holds(s, s->c->parent[c], here)) c = s->c->parent[c];
    if (s->entered[c] == s->entry) return 0;
    s->entered[c] = s->entry;
    for (int side = -1; side <= 1; side += 2)
        for (int g = f; g >= 0 && g < p->forward && gcpi_holds(s, c, s->c->segment[g]); g += side)
            for (int k = 0; k < p->tasks[g].count; k++) {
                const gcpi_operand *o = &p->operands[p->tasks[g].operands + k];
                if (o->mode == GCPI_READ || s->resident[o->item] || s->last[o->item] < task ||
                    !gcpi_stays(s, o->item, here))
                    continue;
                marked += gcpi_need(s, g, low, high);
            }
    return marked;
}

/* Runs again what task reads and is not resident: marks tasks from last to first, emits them from first to last. */
static void gcpi_materialise(gcpi_scheduler *s, int task)
{
    const gcpi_problem *p = s->p;
    int pending = 0, low = p->forward, high = -1;
    for (int f = -1;;) {              /* -1: the task itself, then the marked ones from high to low */
        const gcpi_task *t = &p->tasks[f < 0 ? task : f];
        for (int k = 0; k < t->count; k++) {
            const gcpi_operand *o = &p->operands[t->operands + k];
            int producer = p->items[o->item].producer;
            if (o->mode != GCPI_READ || p->items[o->item].kind != GCPI_FORWARD_ITEM || s->resident[o->item] ||
                s->need[producer])
                continue;
            pending += gcpi_need(s, producer, &low, &high);
            if (!s->c->replay) pending += gcpi_enter_segment(s, task, producer, &low, &high);
        }
        if (!pending) break;
        if (f < 0) f = high + 1;
        do f--; while (!s->need[f]);
        pending--;
    }
    for (int f = low; f <= high; f++) {
        const gcpi_task *t = &p->tasks[f];
        if (!s->need[f]) continue;
        s->need[f] = 0;
        gcpi_emit(s->list, 'R', f, t);
        s->again[s->again_count++] = f;
        for (int k = 0; k < t->count; k++)
            if (p->operands[t->operands + k].mode != GCPI_READ) s->resident[p->operands[t->operands + k].item] = 1;
    }
}

static void gcpi_backward_list(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    int segment = p->forward ? s->c->segment[p->forward - 1] : 0, unit = -1;
    for (int b = p->forward; b < p->task_count; b++) {
        const gcpi_task *t = &p->tasks[b];
        if (t->kind == GCPI_TASK_BACKWARD) {
            int here = s->c->segment[t->forward];
            if (s->c->replay && unit != t->unit)
                while (s->again_count) gcpi_drop(s, s->again[--s->again_count]);
            if (!s->c->replay) gcpi_leave(s, segment, here);
            segment = s->here = here;
            unit = t->unit;
            s->entry++;
            gcpi_materialise(s, b);
            if (!s->c->replay) gcpi_settle(s, here);
        }
        gcpi_emit(s->list, gcpi_letters[t->kind], b, t);
    }
}

/* What is resident when backward begins. */
static void gcpi_resident_first(gcpi_scheduler *s)
{
    const gcpi_problem *p = s->p;
    const gcpi_choice *c = s->c;
    int last = p->forward ? c->segment[p->forward - 1] : 0;
    for (int i = 0; i < p->item_count; i++) {
        int at_home = c->replay ? s->home[i] == 0 : gcpi_holds(s, s->home[i], last);
        s->resident[i] = s->mode[i] == GCPI_STORE || (s->mode[i] == GCPI_AUTO && at_home);
    }
    for (int i = 0; i < c->segments; i++) s->held[i] = -1;
    for (int f = 0; f < p->forward && !c->replay; f++) {
        int made = gcpi_made_by(s, f);
        if (made >= 0 && s->resident[made] && s->mode[made] != GCPI_STORE) gcpi_hold(s, f);
    }
}

/* Fills list (list->at NULL: counts only). 0: not enough scratch. */
static int gcpi_schedule(const gcpi_problem *p, const gcpi_choice *c, gcpi_list *list, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_scheduler s;
    memset(&s, 0, sizeof s);
    s.p = p; s.c = c; s.list = list;
    s.home = GCPI_SCRATCH(a, int, p->item_count);
    s.mode = GCPI_SCRATCH(a, unsigned char, p->item_count);
    s.resident = GCPI_SCRATCH(a, unsigned char, p->item_count);
    s.need = GCPI_SCRATCH(a, unsigned char, p->forward + 1);
    s.again = GCPI_SCRATCH(a, int, p->forward + 1);
    s.before = GCPI_SCRATCH(a, int, p->forward + 1);
    s.held = GCPI_SCRATCH(a, int, c->segments + 1);
    s.last = GCPI_SCRATCH(a, int, p->item_count);
    s.entered = GCPI_SCRATCH(a, int, c->segments + 1);
    s.rank = GCPI_SCRATCH(a, int, c->segments + 1);
    s.size = GCPI_SCRATCH(a, int, c->segments + 1);
    int *next = GCPI_SCRATCH(a, int, c->segments + 1);
    list->count = 0; list->rerun_flops = list->seconds = 0;
    if (!s.home || !s.mode || !s.resident || !s.need || !s.again || !s.before || !s.held || !s.last || !s.entered ||
        !s.rank || !s.size || !next)
        return 0;
    gcpi_segments_rank(&s, next);
    gcpi_homes(&s);
    for (int f = 0; f < p->forward; f++) gcpi_emit(list, 'F', f, &p->tasks[f]);
    gcpi_resident_first(&s);
    for (int b = p->forward; b < p->task_count; b++)
        for (int k = 0; k < p->tasks[b].count; k++) s.last[p->operands[p->tasks[b].operands + k].item] = b;
    gcpi_backward_list(&s);
    a->scratch = scratch;
    return 1;
}

/* Lists as text: a letter and a name per line; '#' begins a comment. */
static int gcpi_letter_task(const gcpi_task *t, char letter)
{
    return letter == gcpi_letters[t->kind] || (letter == 'R' && t->kind == GCPI_TASK_FORWARD);
}

static int gcpi_list_find(const gcpi_problem *p, char letter, const char *name, int from)      /* task, or -1 */
{
    char buffer[256];
    int count = p->task_count + p->far_count + p->move_count;
    for (int k = 0; k < count; k++) {
        int task = (from + k) % count;
        if (gcpi_letter_task(&p->tasks[task], letter) &&
            !strcmp(gcpi_task_name(p, &p->tasks[task], buffer, sizeof buffer), name))
            return task;
    }
    return -1;
}

/* A list's text, line by line: 'LETTER NAME', in which a # begins a comment. */
typedef struct gcpi_lines { const char *text; int line; char letter, name[256], *message; size_t size; } gcpi_lines;

static gcpi_lines gcpi_lines_of(const char *text, char *message, size_t size)
{
    gcpi_lines l;
    memset(&l, 0, sizeof l);
    l.text = text; l.message = message; l.size = size;
    *message = 0;
    return l;
}

/* The next line that is not empty. 0: there is none, or it is wrong, which message says. */
static int gcpi_lines_next(gcpi_lines *l)
{
    for (size_t used = 0; *l->text;) {
        const char *text = l->text, *end = strchr(text, '\n'), *hash;
        size_t n = end ? (size_t)(end - text) : strlen(text);
        l->line++;
        l->text += n + (end != NULL);
        hash = (const char *)memchr(text, '#', n);
        used = hash ? (size_t)(hash - text) : n;
        while (used && (text[used - 1] == ' ' || text[used - 1] == '\t' || text[used - 1] == '\r')) used--;
        if (!used) continue;
        if (used < 3 || text[1] != ' ' || used - 2 >= sizeof l->name) {
            snprintf(l->message, l->size, "line %d: not 'LETTER NAME'", l->line);
            return 0;
        }
        l->letter = *text;
        memcpy(l->name, text + 2, used - 2);
        l->name[used - 2] = 0;
        return 1;
    }
    return 0;
}

/* The inputs that a line names: one C line of a list. Their bits, or 0: message says what is wrong. */
static uint64_t gcpi_copied_inputs(const gcpi_lines *l, const char *text, int inputs)
{
    uint64_t bits = 0;
    char *end;
    for (; *text; text = end) {
        long i = *text == ' ' && text[1] >= '0' && text[1] <= '9' ? strtol(text + 1, &end, 10) : -1;
        if (i < 0 || i >= inputs) { bits = 0; break; }
        bits |= (uint64_t)1 << i;
    }
    if (!bits) snprintf(l->message, l->size, "line %d: which inputs? 0 to %d", l->line, inputs - 1);
    return bits;
}

/* Where the numbers begin with which a line ends, a space before each: a name may hold spaces, too. */
static char *gcpi_numbers_after(char *name)
{
    char *numbers = name + strlen(name);
    for (char *s = numbers;; numbers = --s) {
        while (s > name && s[-1] >= '0' && s[-1] <= '9') s--;
        if (s == numbers || s == name || s[-1] != ' ') return numbers;
    }
}

/* Takes over one line 'C NAME INPUTS...': in this plan the concat or slice NAME copies these inputs. Or 'C gradient of
   NAME INPUTS...': backward of the concat copies their gradients. */
static int gcpi_copied_line(gcpi_problem *p, gcpi_lines *l)
{
    static const char gradient[] = "gradient of ";
    int back = !strncmp(l->name, gradient, sizeof gradient - 1), task;
    char *name = l->name + (back ? sizeof gradient - 1 : 0), *inputs = gcpi_numbers_after(name), first = *inputs;
    *inputs = 0;
    task = gcpi_is_graph(p) ? -1 : gcpi_list_find(p, 'F', name, 0);
    int view = task < 0 ? GCPI_VIEW_NONE : gcpi_facts_of(&p->tape->ops[p->tasks[task].op]).view;
    if (view != GCPI_VIEW_JOINED && (view != GCPI_VIEW_PART || back)) {
        snprintf(l->message, l->size, "line %d: no concat%s '%.120s' in this network; its inputs follow as numbers",
                 l->line, back ? "" : " or slice", name);
        return 0;
    }
    *inputs = first;
    const gcp_tape *t = p->tape;
    int op = p->tasks[task].op;
    uint64_t bits = gcpi_copied_inputs(l, inputs, t->ops[op].inputs);
    *(back ? &p->copied[op].gradients : &p->copied[op].values) |= bits;
    return bits != 0;
}

/* The line with which the list of fused updates opens, before the C lines. */
#define GCPI_LIST_FUSED "as soon as gradients are finished"
static int gcpi_line_opens(const gcpi_lines *l)
{
    return l->letter == 'C' || (l->letter == 'U' && !strcmp(l->name, GCPI_LIST_FUSED));
}

static int gcpi_list_fuses(const char *text)
{
    char message[200];
    gcpi_lines l = gcpi_lines_of(text, message, sizeof message);
    while (gcpi_lines_next(&l) && gcpi_line_opens(&l)) if (l.letter == 'U') return 1;
    return 0;
}

/* Reads the C lines with which a list opens, and places the views as they say. 0: message says which line is wrong. */
static int gcpi_list_views(gcpi_problem *p, const char *text, char *message, size_t size)
{
    gcpi_lines l = gcpi_lines_of(text, message, size);
    int lines = 0;
    while (gcpi_lines_next(&l) && gcpi_line_opens(&l)) {
        if (l.letter == 'U') continue;
        if (!gcpi_copied_line(p, &l)) return 0;
        lines++;
    }
    if (lines) gcpi_views_place(p);
    return !*message;
}

/* Parses the instructions. list->at NULL: counts. 0: message says which line is wrong. */
static int gcpi_list_parse(const gcpi_problem *p, const char *text, gcpi_list *list, char *message, size_t size)
{
    gcpi_lines l = gcpi_lines_of(text, message, size);
    int from = 0, again = 0;                     /* where the next F, B, U or R is likely to be */
    list->count = 0; list->seconds = list->rerun_flops = 0;
    while (gcpi_lines_next(&l)) {
        if (!list->count && gcpi_line_opens(&l)) continue;
        if (!list->count) list->opening = l.line - 1;
        int task = gcpi_list_find(p, l.letter, l.name, l.letter == 'R' ? again : from);
        if (task < 0) {
            snprintf(message, size, "line %d: no instruction '%c %.120s' in this network%s", l.line, l.letter, l.name,
                     gcpi_line_opens(&l)                   ? ": such lines come before the first instruction"
                     : l.letter == 'U' && !p->optimizer    ? ": the plan has no .optimizer"
                     : l.letter == 'B' && !p->training     ? ": the plan is for .inference"
                                                           : "");
            return 0;
        }
        gcpi_emit(list, l.letter, task, &p->tasks[task]);
        if (task < p->task_count) *(l.letter == 'R' ? &again : &from) = task + 1;
    }
    return !*message;
}

/* Counts reruns: of a unit, one for each unit whose backward it was run again for. Views are free and do not count. */
static int gcpi_list_reruns(const gcpi_problem *p, gcpi_list *list, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    int *last = GCPI_SCRATCH(a, int, p->units + 1), unit = -1;
    if (!last) return 0;
    list->reruns = 0;
    for (ptrdiff_t i = list->count - 1; i >= 0; i--) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        if (t->kind == GCPI_TASK_BACKWARD) unit = t->unit;
        if (list->at[i].letter != 'R' || t->free || last[t->unit] == unit + 1) continue;
        last[t->unit] = unit + 1;
        list->reruns++;
    }
    a->scratch = scratch;
    return 1;
}
GCPI_WARM                              /* again at the user's level of optimisation */

/* place: addresses */

/* ==== src/place/lives.h ==== */

/* Lives: values, the buffers that hold them, the peak of live bytes. A value is one writing of an item. Values of
   one alias group whose lives meet share a buffer; where an op may work in place on a value that dies there, input
   and output become one buffer. */

typedef struct gcpi_value { int item, buffer; int first, last; } gcpi_value;

typedef struct gcpi_buffer {
    size_t bytes, offset;
    int first, last, root, joined;    /* joined: the buffer this one became part of, or -1 */
    int pinned;                       /* holds what must stay: nobody works in place on it */
} gcpi_buffer;

typedef struct gcpi_lives {
    gcpi_value *values;   int value_count;
    gcpi_buffer *buffers; int buffer_count;
    int *operand_value;               /* per operand of each instruction, in list order */
    size_t peak; int peak_at;         /* most live bytes at once, and when; excludes the step's numbers */
    /* where no layout met the limit: a move that may help, and the instruction before which it goes; -1: none */
    int move, move_at;
} gcpi_lives;

static int gcpi_operand_total(const gcpi_problem *p, const gcpi_list *list)
{
    int total = 0;
    for (ptrdiff_t i = 0; i < list->count; i++) total += p->tasks[list->at[i].task].count;
    return total;
}

/* As many values as there can be: one for each writing, and those that are there from the start. */
static int gcpi_value_total(const gcpi_problem *p, const gcpi_list *list)
{
    int total = 0;
    for (int i = 0; i < p->item_count; i++) total += p->items[i].active && p->items[i].pinned == GCPI_PINNED_ALWAYS;
    for (ptrdiff_t i = 0; i < list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        for (int k = 0; k < t->count; k++) {
            const int mode = p->operands[t->operands + k].mode;
            total += mode == GCPI_WRITE || mode == GCPI_ALIAS;
        }
    }
    return total;
}

static int gcpi_buffer_of(const gcpi_lives *l, int buffer)
{
    while (l->buffers[buffer].joined >= 0) buffer = l->buffers[buffer].joined;
    return buffer;
}

static int gcpi_value_new(gcpi_lives *l, int item, int first, int *current)
{
    gcpi_value *v = &l->values[l->value_count];
    v->item = item; v->first = v->last = first; v->buffer = -1;
    return current[item] = l->value_count++;
}

static void gcpi_values_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, int *current)
{
    int end = (int)list->count - 1, n = 0;
    for (int i = 0; i < p->item_count; i++) {
        current[i] = -1;
        if (p->items[i].active && p->items[i].pinned == GCPI_PINNED_ALWAYS) gcpi_value_new(l, i, 0, current);
    }
    for (int i = 0; i <= end; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_operand *o = &p->operands[t->operands + k];
            int fresh = (o->mode == GCPI_WRITE || o->mode == GCPI_ALIAS) &&
                        p->items[o->item].pinned != GCPI_PINNED_ALWAYS;
            l->operand_value[n] = -1;
            if (p->items[p->items[o->item].root].kind == GCPI_STATE_ITEM) continue;
            if (fresh) gcpi_value_new(l, o->item, i, current);
            if (current[o->item] < 0) continue;
            l->operand_value[n] = current[o->item];
            l->values[current[o->item]].last = i;
        }
    }
    for (int v = 0; v < l->value_count; v++)
        if (p->items[l->values[v].item].pinned && current[l->values[v].item] == v) l->values[v].last = end;
}

/* Buffers, as long as what they hold reaches. Values come by group, in order of their first instruction. Inputs are
   live from the start: views share their buffers. Values of an item that shares its bytes with no other overlap, in two
   buffers, only at a move. */
static void gcpi_buffers_make(const gcpi_problem *p, gcpi_lives *l, const int *order)
{
    for (int k = 0; k < l->value_count; k++) {
        gcpi_value *v = &l->values[order[k]];
        int root = p->items[v->item].root, open = l->buffer_count - 1;
        if (open < 0 || l->buffers[open].root != root || v->first > l->buffers[open].last || p->items[root].next < 0) {
            gcpi_buffer *b = &l->buffers[open = l->buffer_count++];
            b->bytes = 0; b->offset = 0;
            b->first = v->first; b->last = v->last; b->root = root; b->joined = -1; b->pinned = 0;
        }
        l->buffers[open].pinned |= p->items[v->item].pinned;
        v->buffer = open;
        l->buffers[open].bytes = GCPI_MAX(l->buffers[open].bytes, p->items[v->item].offset + p->items[v->item].bytes);
        l->buffers[open].last = GCPI_MAX(l->buffers[open].last, v->last);
    }
}

static void gcpi_values_sort(const gcpi_problem *p, const gcpi_lives *l, int *order, int *count)
{
    /* by root; values are in order of time already */
    memset(count, 0, (size_t)(p->item_count + 1) * sizeof *count);
    for (int v = 0; v < l->value_count; v++) count[p->items[l->values[v].item].root + 1]++;
    for (int i = 1; i <= p->item_count; i++) count[i] += count[i - 1];
    for (int v = 0; v < l->value_count; v++) order[count[p->items[l->values[v].item].root]++] = v;
}

static int gcpi_whole(const gcpi_problem *p, int item)              /* fills its buffer, in dense rows */
{
    const gcpi_item *x = &p->items[item];
    return x->offset == 0 && x->bytes == p->items[x->root].bytes && gcpi_is_dense(p, item);
}

/* Output value z takes over the buffer of value x, which dies at instruction i. */
static int gcpi_take_over(const gcpi_problem *p, gcpi_lives *l, int x, int z, int i)
{
    if (x < 0 || z < 0 || l->values[z].first != i) return 0;
    int from = gcpi_buffer_of(l, l->values[x].buffer), to = gcpi_buffer_of(l, l->values[z].buffer);
    gcpi_buffer *b = &l->buffers[from], *e = &l->buffers[to];
    if (from == to || b->pinned || b->last != i || e->first != i || b->bytes != e->bytes) return 0;
    if (!gcpi_whole(p, l->values[x].item) || !gcpi_whole(p, l->values[z].item)) return 0;
    e->joined = from;
    b->last = e->last;
    b->pinned = e->pinned;
    return 1;
}

static void gcpi_in_place(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l)
{
    int n = 0;
    for (int i = 0; i < (int)list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        int done = t->over < 0;
        for (int k = 0; k < 2 && !done; k++)
            done = t->under[k] >= 0 &&
                   gcpi_take_over(p, l, l->operand_value[n + t->under[k]], l->operand_value[n + t->over], i);
        n += t->count;
    }
}

/* Live bytes at each instruction, workspace included; the most of them. */
static void gcpi_live_bytes(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, size_t *live)
{
    size_t align = p->target.align, now = 0;
    memset(live, 0, (size_t)(list->count + 1) * sizeof *live);
    for (int b = 0; b < l->buffer_count; b++) {
        if (l->buffers[b].joined >= 0) continue;
        live[l->buffers[b].first] += gcpi_round(l->buffers[b].bytes, align);
        live[l->buffers[b].last + 1] -= gcpi_round(l->buffers[b].bytes, align);     /* may wrap; the sums do not */
    }
    l->peak = 0; l->peak_at = 0;
    for (int i = 0; i < (int)list->count; i++) {
        now += live[i];
        live[i] = now + gcpi_round(p->tasks[list->at[i].task].workspace, align);
        if (live[i] > l->peak) { l->peak = live[i]; l->peak_at = i; }
    }
}

/* Fills l, all in scratch of a, which the caller gives back. 0: not enough. */
static int gcpi_lives_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    const int values = gcpi_value_total(p, list) + 1;
    memset(l, 0, sizeof *l);
    l->values = GCPI_SCRATCH(a, gcpi_value, values);
    l->buffers = GCPI_SCRATCH(a, gcpi_buffer, values);
    l->operand_value = GCPI_SCRATCH(a, int, gcpi_operand_total(p, list) + 1);
    *live = GCPI_SCRATCH(a, size_t, list->count + 2);
    ptrdiff_t scratch = a->scratch;
    int *current = GCPI_SCRATCH(a, int, p->item_count), *order = GCPI_SCRATCH(a, int, values),
        *count = GCPI_SCRATCH(a, int, p->item_count + 1);
    if (!l->values || !l->buffers || !l->operand_value || !*live || !current || !order || !count) return 0;
    gcpi_values_make(p, list, l, current);
    gcpi_values_sort(p, l, order, count);
    gcpi_buffers_make(p, l, order);
    gcpi_in_place(p, list, l);
    gcpi_live_bytes(p, list, l, *live);
    a->scratch = scratch;
    return 1;
}

/* ==== src/place/heights.h ==== */

/* Heights: the most of any stretch of moments, in logarithmic time. A node of a binary tree has the most of what is
   below it. To raise all moments of a stretch that are at its most is one change at each node that the stretch covers;
   the nodes below learn of it when they are looked at ("segment tree beats"). */

typedef struct gcpi_heights { size_t *most; int leaves; } gcpi_heights;    /* node n is above 2n and 2n + 1 */

/* For so many moments, all 0. 0: not enough scratch. */
static int gcpi_heights_arrays(gcpi_heights *h, ptrdiff_t moments, gcp_arena *a)
{
    for (h->leaves = 1; h->leaves < moments; h->leaves *= 2) { }
    h->most = GCPI_SCRATCH(a, size_t, 2 * (ptrdiff_t)h->leaves);
    return h->most != NULL;
}
static size_t gcpi_heights_bytes(size_t moments) { return 4 * (moments + 1) * sizeof(size_t); }   /* or less */

static size_t *gcpi_heights_leaf(const gcpi_heights *h, ptrdiff_t moment) { return &h->most[h->leaves + moment]; }

/* Once all leaves are set. */
static void gcpi_heights_ready(const gcpi_heights *h)
{
    for (int n = h->leaves - 1; n > 0; n--) h->most[n] = GCPI_MAX(h->most[2 * n], h->most[2 * n + 1]);
}

/* A node is higher than those below it where all of their highest moments were raised: raises them. */
static void gcpi_heights_pass(const gcpi_heights *h, int node)
{
    size_t *below = &h->most[2 * node], before = GCPI_MAX(below[0], below[1]);
    if (h->most[node] == before) return;
    for (int k = 0; k < 2; k++) if (below[k] == before) below[k] = h->most[node];
}

/* The most from moment `first` to `last`, of those below a node whose moments are begin to end. */
static size_t gcpi_heights_below(const gcpi_heights *h, int node, int begin, int end, int first, int last)
{
    if (first > end || last < begin) return 0;
    if (first <= begin && end <= last) return h->most[node];
    gcpi_heights_pass(h, node);
    const int middle = begin + (end - begin) / 2;
    const size_t left = gcpi_heights_below(h, 2 * node, begin, middle, first, last),
                 right = gcpi_heights_below(h, 2 * node + 1, middle + 1, end, first, last);
    return GCPI_MAX(left, right);
}
static size_t gcpi_heights_most(const gcpi_heights *h, int first, int last)
{
    return gcpi_heights_below(h, 1, 0, h->leaves - 1, first, last);
}

/* Raises moments of a stretch from the height `from`, which is the most there, to `to`. */
static void gcpi_heights_raise_below(const gcpi_heights *h, int node, int begin, int end, const int stretch[2],
                                     const size_t from_to[2])
{
    if (stretch[0] > end || stretch[1] < begin || h->most[node] < from_to[0]) return;
    if (stretch[0] <= begin && end <= stretch[1]) { h->most[node] = from_to[1]; return; }
    gcpi_heights_pass(h, node);
    const int middle = begin + (end - begin) / 2;
    gcpi_heights_raise_below(h, 2 * node, begin, middle, stretch, from_to);
    gcpi_heights_raise_below(h, 2 * node + 1, middle + 1, end, stretch, from_to);
    h->most[node] = GCPI_MAX(h->most[2 * node], h->most[2 * node + 1]);
}
static void gcpi_heights_raise(const gcpi_heights *h, int first, int last, size_t from, size_t to)
{
    const int stretch[2] = { first, last };
    const size_t from_to[2] = { from, to };
    gcpi_heights_raise_below(h, 1, 0, h->leaves - 1, stretch, from_to);
}

/* ==== src/place/nearby.h ==== */

/* Nearby: what lies near a buffer of a long list. Not all of it is looked at: a tree over the buffers in order of birth
   knows the last death and the highest end below each node, so those that meet a life above some address are found by
   going down where there are any. Each moment has a height below which no byte is free: a buffer lies at the most of
   its life or above, and where all is stacked without gaps it lies there. */

typedef struct gcpi_near { size_t at, next; } gcpi_near;    /* where a placed buffer begins and ends, aligned */

typedef struct gcpi_nearby {
    const gcpi_buffer *buffers;
    int *leaf, *born;                      /* of a buffer; per instruction: buffers that were born there or before */
    int *last; size_t *next, *at;          /* per node: the last death, the highest end; per leaf: the address */
    int leaves;
    gcpi_heights full;                     /* no byte is free below */
    gcpi_near *near; int near_count;       /* those that a fit has found, the lowest at the root of a heap */
} gcpi_nearby;

/* Of so many buffers and instructions, or less. Gaps take less than that. */
static size_t gcpi_nearby_bytes(size_t buffers, size_t list)
{
    return buffers * (5 * sizeof(int) + 7 * sizeof(size_t) + sizeof(gcpi_near)) + (list + 2) * sizeof(int) +
           gcpi_heights_bytes(list);
}

/* For the buffers of an order; none is placed. ground: where buffers may begin. 0: not enough scratch. */
static int gcpi_nearby_make(gcpi_nearby *n, const gcpi_lives *l, const int *order, int count,
                            const gcpi_heights *ground, ptrdiff_t list, gcp_arena *a)
{
    for (n->leaves = 1; n->leaves < count; n->leaves *= 2) { }
    n->buffers = l->buffers;
    n->leaf = GCPI_SCRATCH(a, int, l->buffer_count + 1);
    n->born = GCPI_SCRATCH(a, int, list + 2);
    n->last = GCPI_SCRATCH(a, int, 2 * (ptrdiff_t)n->leaves);
    n->next = GCPI_SCRATCH(a, size_t, 2 * (ptrdiff_t)n->leaves);
    n->at = GCPI_SCRATCH(a, size_t, count + 1);
    n->near = GCPI_SCRATCH(a, gcpi_near, count + 1);
    if (!n->leaf || !n->born || !n->last || !n->next || !n->at || !n->near) return 0;
    if (!gcpi_heights_arrays(&n->full, list, a)) return 0;
    int *begin = n->born + 1;              /* counting sort by birth; then begin[t] has become the count up to t */
    for (int k = 0; k < count; k++) begin[n->buffers[order[k]].first + 1]++;
    for (ptrdiff_t t = 1; t <= list; t++) begin[t] += begin[t - 1];
    for (int k = 0; k < count; k++) n->leaf[order[k]] = begin[n->buffers[order[k]].first]++;
    n->born = begin;
    memcpy(n->full.most, ground->most, 2 * (size_t)n->full.leaves * sizeof *n->full.most);
    for (int k = 0; k < 2 * n->leaves; k++) n->last[k] = -1;
    return 1;
}

/* Buffer b lies at this place. */
static void gcpi_nearby_put(gcpi_nearby *n, int b, size_t at, size_t next)
{
    const gcpi_buffer *x = &n->buffers[b];
    if (at == next) return;
    n->at[n->leaf[b]] = at;
    for (int node = n->leaves + n->leaf[b]; node > 0; node /= 2) {
        n->last[node] = GCPI_MAX(n->last[node], x->last);
        n->next[node] = GCPI_MAX(n->next[node], next);
    }
    if (at <= gcpi_heights_most(&n->full, x->first, x->last)) gcpi_heights_raise(&n->full, x->first, x->last, at, next);
}

/* Puts what meets b and ends above an address on the heap: leaves that were born until b's death, below a node whose
   leaves begin at `first` and are so many. */
static void gcpi_nearby_find(gcpi_nearby *n, const gcpi_buffer *b, size_t above, int node, int first, int leaves)
{
    if (first >= n->born[b->last] || n->last[node] < b->first || n->next[node] <= above) return;
    if (leaves > 1) {
        gcpi_nearby_find(n, b, above, 2 * node, first, leaves / 2);
        gcpi_nearby_find(n, b, above, 2 * node + 1, first + leaves / 2, leaves / 2);
        return;
    }
    int k = n->near_count++;
    for (; k > 0 && n->near[(k - 1) / 2].at > n->at[first]; k = (k - 1) / 2) n->near[k] = n->near[(k - 1) / 2];
    n->near[k].at = n->at[first]; n->near[k].next = n->next[node];
}
static gcpi_near gcpi_nearby_lowest(gcpi_nearby *n)                 /* takes it off the heap */
{
    const gcpi_near lowest = n->near[0], end = n->near[--n->near_count];
    int k = 0;
    for (int below; (below = 2 * k + 1) < n->near_count; k = below) {
        if (below + 1 < n->near_count && n->near[below + 1].at < n->near[below].at) below++;
        if (n->near[below].at >= end.at) break;
        n->near[k] = n->near[below];
    }
    n->near[k] = end;
    return lowest;
}

/* The lowest place for b at `floor` or above. Takes *work down: a fit takes as long as 50 looks at placed buffers, and
   8 more for each that is found. */
static size_t gcpi_nearby_fit(gcpi_nearby *n, int b, size_t floor, double *work)
{
    const gcpi_buffer *x = &n->buffers[b];
    size_t at = GCPI_MAX(floor, gcpi_heights_most(&n->full, x->first, x->last));
    n->near_count = 0;
    gcpi_nearby_find(n, x, at, 1, 0, n->leaves);
    *work -= 50 + 8 * (double)n->near_count;
    while (n->near_count) {
        const gcpi_near o = gcpi_nearby_lowest(n);
        if (o.at >= at + x->bytes) break;
        at = GCPI_MAX(at, o.next);
    }
    return at;
}

/* ==== src/place/gaps.h ==== */

/* Gaps: first fit in order of birth, or of death back in time. Lists may be of any length: of what was placed, those
   that live at the moment are all that a new buffer can meet; between them lie gaps, and they are few. */

typedef struct gcpi_gap { size_t from, to; } gcpi_gap;

typedef struct gcpi_gaps {
    const gcpi_buffer *buffers; size_t align;
    gcpi_gap *gaps; int gap_count;         /* what is free, by address; the last one has no end */
    int *ends, *next;                      /* per moment: the placed buffers that end there, a list */
    size_t *at;                            /* per buffer */
    int now, back; ptrdiff_t moments;      /* back: moments are counted from the end of the list */
} gcpi_gaps;

static int gcpi_gaps_make(gcpi_gaps *g, const gcpi_lives *l, ptrdiff_t list, size_t align, gcp_arena *a)
{
    g->buffers = l->buffers; g->align = align; g->moments = list;
    g->gaps = GCPI_SCRATCH(a, gcpi_gap, l->buffer_count + 2);
    g->ends = GCPI_SCRATCH(a, int, list + 1);
    g->next = GCPI_SCRATCH(a, int, l->buffer_count + 1);
    g->at = GCPI_SCRATCH(a, size_t, l->buffer_count + 1);
    return g->gaps && g->ends && g->next && g->at;
}
static void gcpi_gaps_begin(gcpi_gaps *g, int back)
{
    g->back = back; g->now = 0;
    g->gap_count = 1;
    g->gaps[0].from = 0; g->gaps[0].to = SIZE_MAX;
    for (ptrdiff_t t = 0; t < g->moments; t++) g->ends[t] = -1;
}
static int gcpi_gaps_moment(const gcpi_gaps *g, int b, int end)   /* when buffer b begins or ends */
{
    const gcpi_buffer *x = &g->buffers[b];
    return g->back ? (int)g->moments - 1 - (end ? x->first : x->last) : end ? x->last : x->first;
}

/* Sets gap k to these bytes, or removes it where there are none. */
static void gcpi_gaps_set(gcpi_gaps *g, int k, size_t from, size_t to)
{
    g->gaps[k].from = from; g->gaps[k].to = to;
    if (from >= to) memmove(g->gaps + k, g->gaps + k + 1, (size_t)(--g->gap_count - k) * sizeof *g->gaps);
}
static void gcpi_gaps_insert(gcpi_gaps *g, int k, size_t from, size_t to)
{
    if (from >= to) return;
    memmove(g->gaps + k + 1, g->gaps + k, (size_t)(g->gap_count++ - k) * sizeof *g->gaps);
    g->gaps[k].from = from; g->gaps[k].to = to;
}

/* A buffer's bytes are free again. */
static void gcpi_gaps_free(gcpi_gaps *g, int b)
{
    const size_t from = g->at[b], to = from + gcpi_round(g->buffers[b].bytes, g->align);
    int low = 0, high = g->gap_count;      /* the first gap above */
    while (low < high) {
        const int middle = (low + high) / 2;
        if (g->gaps[middle].from < to) low = middle + 1;
        else high = middle;
    }
    const int under = low > 0 && g->gaps[low - 1].to == from, over = low < g->gap_count && g->gaps[low].from == to;
    if (under && over) {
        g->gaps[low - 1].to = g->gaps[low].to;
        gcpi_gaps_set(g, low, 0, 0);
    } else if (under) g->gaps[low - 1].to = to;
    else if (over) g->gaps[low].from = from;
    else gcpi_gaps_insert(g, low, from, to);
}

/* The lowest place for the next buffer of the order at `floor` or above, which it takes. */
static size_t gcpi_gaps_fit(gcpi_gaps *g, int b, size_t floor)
{
    const size_t bytes = gcpi_round(g->buffers[b].bytes, g->align);
    const int begin = gcpi_gaps_moment(g, b, 0), end = gcpi_gaps_moment(g, b, 1);
    for (; g->now < begin; g->now++)
        for (int dead = g->ends[g->now]; dead >= 0; dead = g->next[dead]) gcpi_gaps_free(g, dead);
    if (!bytes) return floor;
    int k = 0;
    while (g->gaps[k].to < bytes || GCPI_MAX(g->gaps[k].from, floor) > g->gaps[k].to - bytes) k++;
    const gcpi_gap gap = g->gaps[k];
    const size_t at = GCPI_MAX(gap.from, floor);
    gcpi_gaps_set(g, k, at + bytes, gap.to);
    gcpi_gaps_insert(g, k, gap.from, at);
    g->at[b] = at;
    g->next[b] = g->ends[end]; g->ends[end] = b;
    return at;
}

/* ==== src/place/skyline.h ==== */

/* Skylines: places for rectangles in time and address. All end at a goal or below. The lowest step of the skyline of
   what is placed gets the rectangle that fits on it and whose sections of time are the fullest. Where none fits, the
   step is lifted to its lower neighbour, which loses bytes. Once a section cannot hold what is still to come, the
   trial ends, and the rectangles that it left over there weigh more in the next one: "squeaky wheel" optimisation
   (Joslin and Clements 1999). The lowest step first is the canonical order of MiniMalloc (Moffitt 2023). */

/* from section to section of time; buffer: for the caller; bytes: not 0 */
typedef struct gcpi_rectangle {
    int buffer, first, last, done;
    size_t bytes, at;
    double crowd, weight, key;        /* most bytes in its sections; grows where it is left over; of a trial */
} gcpi_rectangle;

typedef struct gcpi_skyline {
    gcpi_rectangle *all; int count, sections;
    int *order, *begin;               /* rectangles by their first section; where those of each section begin */
    size_t *ground, *load;            /* per section: where it begins to be free; bytes of its rectangles, aligned */
    /* of a trial. A step from section s to e: end[s] = e, start[e] = s, height[s]; rest: bytes still to come */
    int *end, *start;
    size_t *height, *rest;
    /* the lowest step as a tournament: node n plays 2n against 2n + 1, leaf `leaves + t` is t where a step begins
       there, else -1; lowest[1] wins */
    int *lowest, leaves, steps;
    gcpi_heights crowds;              /* the bytes of each section, for gcpi_skyline_ready */
    size_t align, top;                /* top: where the highest rectangle ends */
    uint64_t random;
    double work;                      /* steps, sections and rectangles that may still be looked at */
} gcpi_skyline;

static int gcpi_skyline_arrays(gcpi_skyline *s, int count, int sections, gcp_arena *a)
{
    memset(s, 0, sizeof *s);
    s->sections = sections; s->random = 88172645463325252ull;
    s->all = GCPI_SCRATCH(a, gcpi_rectangle, count + 1);
    s->order = GCPI_SCRATCH(a, int, count + 1);
    s->begin = GCPI_SCRATCH(a, int, sections + 3);
    s->end = GCPI_SCRATCH(a, int, sections + 1); s->start = GCPI_SCRATCH(a, int, sections + 1);
    s->ground = GCPI_SCRATCH(a, size_t, sections + 1); s->load = GCPI_SCRATCH(a, size_t, sections + 1);
    s->height = GCPI_SCRATCH(a, size_t, sections + 1); s->rest = GCPI_SCRATCH(a, size_t, sections + 1);
    s->lowest = GCPI_SCRATCH(a, int, 4 * (ptrdiff_t)sections + 4);
    return s->all && s->order && s->begin && s->end && s->start && s->ground && s->load && s->height && s->rest &&
           s->lowest && gcpi_heights_arrays(&s->crowds, sections + 1, a);
}

/* Once all rectangles are there: sorts them by their first section, and sums up what crowds them. */
static void gcpi_skyline_ready(gcpi_skyline *s)
{
    memset(s->begin, 0, (size_t)(s->sections + 3) * sizeof *s->begin);
    for (int b = 0; b < s->count; b++) {
        s->begin[s->all[b].first + 2]++;
        s->load[s->all[b].first] += gcpi_round(s->all[b].bytes, s->align);
        s->load[s->all[b].last + 1] -= gcpi_round(s->all[b].bytes, s->align);       /* may wrap; the sums do not */
    }
    for (int t = 1; t < s->sections; t++) s->load[t] += s->load[t - 1];
    for (int t = 2; t <= s->sections; t++) s->begin[t + 1] += s->begin[t];
    for (int b = 0; b < s->count; b++) s->order[s->begin[s->all[b].first + 1]++] = b;
    for (int t = 0; t < s->sections; t++) *gcpi_heights_leaf(&s->crowds, t) = s->ground[t] + s->load[t];
    gcpi_heights_ready(&s->crowds);
    for (int b = 0; b < s->count; b++)
        s->all[b].crowd = (double)gcpi_heights_most(&s->crowds, s->all[b].first, s->all[b].last);
}

static double gcpi_skyline_chance(gcpi_skyline *s) { return gcpi_below(&s->random, 65536) / 65536.0; }

/* The leftmost of the lowest wins. */
static void gcpi_skyline_play(gcpi_skyline *s, int node)
{
    int left = s->lowest[2 * node], right = s->lowest[2 * node + 1];
    s->lowest[node] = right < 0 || (left >= 0 && s->height[left] <= s->height[right]) ? left : right;
}

/* A step begins at section t, or does not any more. */
static void gcpi_skyline_mark(gcpi_skyline *s, int t, int begins)
{
    int node = s->leaves + t;
    s->steps += begins - (s->lowest[node] >= 0);
    if (!begins && s->lowest[node] < 0) return;
    s->lowest[node] = begins ? t : -1;
    while (node /= 2) gcpi_skyline_play(s, node);
}

/* A step from first to last, merged with neighbours of the same height. */
static void gcpi_skyline_step(gcpi_skyline *s, int first, int last, size_t height)
{
    if (first > 0 && s->height[s->start[first - 1]] == height) {
        gcpi_skyline_mark(s, first, 0);
        first = s->start[first - 1];
    }
    if (last + 1 < s->sections && s->height[last + 1] == height) {
        gcpi_skyline_mark(s, last + 1, 0);
        last = s->end[last + 1];
    }
    s->end[first] = last; s->start[last] = first;
    s->height[first] = height;
    gcpi_skyline_mark(s, first, 1);
}

static void gcpi_skyline_begin(gcpi_skyline *s, double noise)
{
    memcpy(s->rest, s->load, (size_t)s->sections * sizeof *s->rest);
    memcpy(s->height, s->ground, (size_t)s->sections * sizeof *s->height);
    for (int t = s->sections - 1; t >= 0; t--) {
        int merged = t + 1 < s->sections && s->ground[t] == s->ground[t + 1];
        s->end[t] = merged ? s->end[t + 1] : t;
        s->start[s->end[t]] = t;
    }
    for (s->leaves = 1; s->leaves < s->sections; s->leaves *= 2) { }
    for (int t = 0; t < s->leaves; t++) s->lowest[s->leaves + t] = -1;
    s->steps = 0;
    for (int t = 0; t < s->sections; t = s->end[t] + 1, s->steps++) s->lowest[s->leaves + t] = t;
    for (int node = s->leaves - 1; node > 0; node--) gcpi_skyline_play(s, node);
    for (int b = 0; b < s->count; b++) {
        gcpi_rectangle *x = &s->all[b];
        x->done = 0;
        x->key = x->crowd * (1 + x->weight + (noise > 0 ? noise * gcpi_skyline_chance(s) : 0)) +
                 1e-3 * (x->last - x->first);
    }
    s->top = 0;
    s->work -= s->sections + s->count;
}

/* The rectangle for the step from first to last, or NULL. */
static gcpi_rectangle *gcpi_skyline_choose(gcpi_skyline *s, int first, int last)
{
    gcpi_rectangle *best = NULL;
    for (int k = s->begin[first]; k < s->begin[last + 1]; k++) {
        gcpi_rectangle *x = &s->all[s->order[k]];
        if (!x->done && x->last <= last && (!best || x->key > best->key)) best = x;
    }
    s->work -= s->begin[last + 1] - s->begin[first];
    return best;
}

/* Puts a rectangle on the step that begins at section `first`. */
static void gcpi_skyline_put(gcpi_skyline *s, gcpi_rectangle *x, int first)
{
    size_t height = s->height[first], bytes = gcpi_round(x->bytes, s->align);
    int last = s->end[first];
    x->done = 1; x->at = height;
    s->top = GCPI_MAX(s->top, height + x->bytes);
    for (int t = x->first; t <= x->last; t++) s->rest[t] -= bytes;
    if (first < x->first) { s->end[first] = x->first - 1; s->start[x->first - 1] = first; }
    if (x->last < last) {
        s->end[x->last + 1] = last; s->start[last] = x->last + 1; s->height[x->last + 1] = height;
        gcpi_skyline_mark(s, x->last + 1, 1);
    }
    gcpi_skyline_step(s, x->first, x->last, height + bytes);
    s->work -= (x->last - x->first) / 4;
}

/* Lifts the step that begins at `first` to its lower neighbour. Returns a section that then holds too little, or -1. */
static int gcpi_skyline_lift(gcpi_skyline *s, int first, size_t limit)
{
    int last = s->end[first], full = -1;
    size_t height = first > 0 ? s->height[s->start[first - 1]] : SIZE_MAX;
    if (last + 1 < s->sections) height = GCPI_MIN(height, s->height[last + 1]);
    for (int t = first; t <= last && full < 0; t++) if (s->rest[t] && height + s->rest[t] > limit) full = t;
    gcpi_skyline_step(s, first, last, height);
    s->work -= (last - first) / 4;
    return full;
}

/* One trial; 1: all rectangles have their places and end at `goal` or below. */
static int gcpi_skyline_trial(gcpi_skyline *s, size_t goal, double noise)
{
    size_t limit = gcpi_round(goal, s->align);
    gcpi_skyline_begin(s, noise);
    for (int left = s->count, full = -1; left > 0 && full < 0 && s->work > 0;) {
        int first = s->lowest[1];
        s->work -= s->steps;
        gcpi_rectangle *x = gcpi_skyline_choose(s, first, s->end[first]);
        if (x) gcpi_skyline_put(s, x, first);
        else full = gcpi_skyline_lift(s, first, limit);
        if (x && --left == 0) return s->top <= goal;
        for (int b = 0; b < s->count && full >= 0; b++)
            if (!s->all[b].done && s->all[b].first <= full && full <= s->all[b].last) s->all[b].weight += 0.1;
    }
    return s->count == 0;
}

/* Trials until one reaches the goal, for so much work. */
static int gcpi_skyline_pack(gcpi_skyline *s, size_t goal, double work)
{
    s->work = work;
    for (int b = 0; b < s->count; b++) s->all[b].weight = 0;
    for (double noise = 0; s->work > 0; noise = 0.03 * gcpi_skyline_chance(s))
        if (gcpi_skyline_trial(s, goal, noise)) return 1;
    return 0;
}

/* ==== src/place/packing.h ==== */

/* Packing: an exact search for places at a goal or below.

   Rectangles of given sections of time move up and down only. Each rectangle has a lowest place so far, each section a
   height so far: below it nothing more can lie. Two rules raise them until nothing changes. A rectangle lies at the
   height of each of its sections or above; the height of a section is the lowest place of those that are still to come
   there. A section fails where its height and the bytes still to come exceed the limit.

   A valley is a run of sections of one height between higher ones. At its bottom, at each of its sections, lies one of
   the rectangles whose lowest place that is, or nothing: so the search branches. It takes the section that has failed
   most often for the number of its branches (Boussemart et al. 2004). What is placed in a valley rests on something,
   which makes the places canonical (Moffitt 2023, MiniMalloc), but in no order of time or address: each valley is on
   its own. So a failure can be blamed on an interval of sections, and forks that touch none of them are not tried
   again ("backjumping", Prosser 1993). Restarts with other orders and noise follow. */

enum { GCPI_PACKING_ORDERS = 4, GCPI_PACKING_NOISES = 4,
       /* larger problems are undecided; so many members take as long to look at as one of work */
       GCPI_PACKING_COUNT = 2048, GCPI_PACKING_SECTIONS = 4096, GCPI_PACKING_MEMBERS = 1 << 15,
       GCPI_PACKING_LOOKS = 3 };
typedef enum gcpi_packed { GCPI_PACKS, GCPI_CANNOT_PACK, GCPI_PACKING_UNDECIDED } gcpi_packed;

/* What was before a change. what: a rectangle's place (with the section that set it), a section's height (with the
   interval to blame), a section's bytes to come, a rectangle's being placed. */
typedef enum gcpi_change_of { GCPI_OF_PLACE, GCPI_OF_HEIGHT, GCPI_OF_REST, GCPI_OF_DONE } gcpi_change_of;
typedef struct gcpi_change { uint16_t what, i, from, to; size_t before; } gcpi_change;

/* A fork: what lies at the bottom of a section: one of its candidates, or (the last branch) nothing. */
typedef struct gcpi_fork {
    int section, first, count, next;      /* candidates[first + next] comes next */
    int touches_from, touches_to;         /* sections of the branch that was taken */
    int rests_from, rests_to;             /* sections because of which there are no other branches */
    int from, to;                         /* blamed by the branches that failed */
    size_t height;                        /* of the section, where nothing lies there */
    ptrdiff_t changes;                    /* before it */
} gcpi_fork;

typedef struct gcpi_packing {
    gcpi_rectangle *all; int count, sections;
    size_t goal, limit;                   /* limit: the goal, aligned */
    size_t *bytes; int *set_by, *rank;    /* per rectangle: aligned; the section that set its place; its order */
    int *members, *begin;                 /* of section s: members[begin[s]] up to members[begin[s + 1]] */
    size_t *height, *rest;                /* per section: so far; bytes to come */
    int *from, *to;                       /* per section: the interval that its height rests on */
    int *candidates_in, *stale;           /* per section: how many lie at its height; whether that must be counted */
    double *failures;                     /* per section */
    int *queue, *queued, head, queued_count;
    gcpi_change *changes; ptrdiff_t change_count, change_capacity;
    gcpi_fork *forks; int depth, depth_capacity;
    int *candidates, candidate_capacity, candidate_count;
    int blamed_from, blamed_to;           /* of the last failure */
    int full;                             /* a capacity was reached: undecided */
    uint64_t random;
    double work;                          /* members of sections that may still be looked at */
} gcpi_packing;

/* ---- heights and places ---- */

static int gcpi_packing_change(gcpi_packing *k, gcpi_change_of what, int i, int from, int to, size_t before)
{
    if (k->change_count >= k->change_capacity) { k->full = 1; return 0; }
    gcpi_change *c = &k->changes[k->change_count++];
    c->what = (uint16_t)what; c->i = (uint16_t)i; c->from = (uint16_t)from; c->to = (uint16_t)to; c->before = before;
    return 1;
}
static void gcpi_packing_count_again(gcpi_packing *k, int first, int last)
{
    for (int s = first; s <= last; s++) k->stale[s] = 1;
}
static void gcpi_packing_undo(gcpi_packing *k, ptrdiff_t to)
{
    while (k->change_count > to) {
        const gcpi_change *c = &k->changes[--k->change_count];
        gcpi_rectangle *x = &k->all[c->i];
        switch ((gcpi_change_of)c->what) {
        case GCPI_OF_PLACE: x->at = c->before; k->set_by[c->i] = c->from; break;
        case GCPI_OF_DONE: x->done = 0; break;
        case GCPI_OF_REST: k->rest[c->i] = c->before; break;
        default: k->height[c->i] = c->before; k->from[c->i] = c->from; k->to[c->i] = c->to; break;
        }
        if (c->what == GCPI_OF_PLACE || c->what == GCPI_OF_DONE) gcpi_packing_count_again(k, x->first, x->last);
        else k->stale[c->i] = 1;
    }
}

static void gcpi_packing_look(gcpi_packing *k, int section)
{
    if (k->queued[section]) return;
    k->queued[section] = 1;
    k->queue[(k->head + k->queued_count++) % k->sections] = section;
}
static int gcpi_packing_looks(gcpi_packing *k)
{
    const int section = k->queue[k->head];
    k->head = (k->head + 1) % k->sections;
    k->queued_count--;
    k->queued[section] = 0;
    return section;
}
/* Section s cannot hold what is to come. Always 0. */
static int gcpi_packing_fails(gcpi_packing *k, int s)
{
    k->failures[s]++;
    k->blamed_from = k->from[s]; k->blamed_to = k->to[s];
    while (k->queued_count) gcpi_packing_looks(k);
    return 0;
}

/* Raises a section, because of the interval and of what it rested on before, and the rectangles to come there. 0:
   something cannot lie there any more. */
static int gcpi_packing_raise(gcpi_packing *k, int s, size_t height, int from, int to)
{
    if (!gcpi_packing_change(k, GCPI_OF_HEIGHT, s, k->from[s], k->to[s], k->height[s])) return gcpi_packing_fails(k, s);
    k->height[s] = height;
    k->from[s] = GCPI_MIN(k->from[s], from); k->to[s] = GCPI_MAX(k->to[s], to);
    k->stale[s] = 1;
    if (k->rest[s] && (height > k->limit || k->rest[s] > k->limit - height)) return gcpi_packing_fails(k, s);
    k->work -= k->begin[s + 1] - k->begin[s];
    for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
        gcpi_rectangle *x = &k->all[k->members[m]];
        if (x->done || x->at >= height) continue;
        if (!gcpi_packing_change(k, GCPI_OF_PLACE, k->members[m], k->set_by[k->members[m]], 0, x->at) ||
            height > k->goal || x->bytes > k->goal - height)
            return gcpi_packing_fails(k, s);
        x->at = height; k->set_by[k->members[m]] = s;
        for (int t = x->first; t <= x->last; t++) {
            k->stale[t] = 1;
            if (k->height[t] < height) gcpi_packing_look(k, t);
        }
    }
    return 1;
}
/* Raises sections to the lowest place of those to come, until nothing changes. */
static int gcpi_packing_settle(gcpi_packing *k)
{
    while (k->queued_count) {
        const int s = gcpi_packing_looks(k);
        size_t lowest = SIZE_MAX;
        int from = s, to = s;
        k->work -= 2 * (k->begin[s + 1] - k->begin[s]);
        for (int m = k->begin[s]; k->rest[s] && m < k->begin[s + 1]; m++)
            if (!k->all[k->members[m]].done) lowest = GCPI_MIN(lowest, k->all[k->members[m]].at);
        if (!k->rest[s] || lowest <= k->height[s]) continue;
        for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
            const int by = k->set_by[k->members[m]];
            if (k->all[k->members[m]].done) continue;
            from = GCPI_MIN(from, k->from[by]); to = GCPI_MAX(to, k->to[by]);
        }
        if (!gcpi_packing_raise(k, s, lowest, from, to)) return 0;
    }
    return 1;
}

/* ---- forks ---- */

/* Places x at its lowest place, the height of section s. */
static int gcpi_packing_put(gcpi_packing *k, int b, int s)
{
    gcpi_rectangle *x = &k->all[b];
    const size_t top = x->at + k->bytes[b];
    const int from = k->from[s], to = k->to[s];
    if (!gcpi_packing_change(k, GCPI_OF_DONE, b, 0, 0, 0)) return gcpi_packing_fails(k, s);
    x->done = 1;
    for (int t = x->first; t <= x->last; t++) {
        if (!gcpi_packing_change(k, GCPI_OF_REST, t, 0, 0, k->rest[t])) return gcpi_packing_fails(k, s);
        k->rest[t] -= k->bytes[b];
    }
    for (int t = x->first; t <= x->last; t++) if (!gcpi_packing_raise(k, t, top, from, to)) return 0;
    for (int t = x->first; t <= x->last; t++) gcpi_packing_look(k, t);
    return gcpi_packing_settle(k);
}

static int gcpi_packing_candidates(gcpi_packing *k, int s)
{
    if (!k->stale[s]) return k->candidates_in[s];
    k->stale[s] = 0;
    k->candidates_in[s] = 0;
    k->work -= k->begin[s + 1] - k->begin[s];
    for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
        const gcpi_rectangle *x = &k->all[k->members[m]];
        k->candidates_in[s] += !x->done && x->at == k->height[s];
    }
    return k->candidates_in[s];
}
/* The section to choose for: of all valleys, that with the most failures for a branch. -1: all is placed. */
static int gcpi_packing_section(gcpi_packing *k)
{
    int best = -1;
    double most = -1;
    k->work -= k->sections;
    for (int a = 0, z; a < k->sections; a = z + 1) {
        z = a;
        if (!k->rest[a]) continue;
        while (z + 1 < k->sections && k->rest[z + 1] && k->height[z + 1] == k->height[a]) z++;
        if ((a > 0 && k->rest[a - 1] && k->height[a - 1] < k->height[a]) ||
            (z + 1 < k->sections && k->rest[z + 1] && k->height[z + 1] < k->height[a]))
            continue;
        for (int s = a; s <= z; s++) {
            const int n = gcpi_packing_candidates(k, s);
            const double key = n > 1 ? (k->failures[s] + 1e-3) / n : HUGE_VAL;
            if (key > most) { most = key; best = s; }
        }
    }
    return best;
}
static void gcpi_packing_add(gcpi_packing *k, const gcpi_fork *c, int b)
{
    int i = c->first + c->count;
    for (; i > c->first && k->rank[k->candidates[i - 1]] > k->rank[b]; i--) k->candidates[i] = k->candidates[i - 1];
    k->candidates[i] = b;
}
/* If nothing lies at the bottom of the section, what lies over it rests on a neighbour of the valley, or on what lies
   beside it at the bottom. */
static void gcpi_packing_without(gcpi_packing *k, gcpi_fork *c, int first, int last)
{
    for (int t = first; t <= last; t++) {
        k->work -= k->begin[t + 1] - k->begin[t];
        for (int m = k->begin[t]; m < k->begin[t + 1]; m++) {
            const gcpi_rectangle *x = &k->all[k->members[m]];
            if (x->done || (x->first <= c->section && c->section <= x->last)) continue;
            c->height = GCPI_MIN(c->height, k->height[c->section] + k->bytes[k->members[m]]);
        }
    }
}
/* A new fork. 0: there is none left, or no room for it. */
static int gcpi_packing_fork(gcpi_packing *k)
{
    const int s = gcpi_packing_section(k);
    if (s >= 0 && (k->depth >= k->depth_capacity ||
                   k->candidate_count + k->begin[s + 1] - k->begin[s] > k->candidate_capacity))
        k->full = 1;
    if (s < 0 || k->full) return 0;
    gcpi_fork *c = &k->forks[k->depth++];
    int first = s, last = s;
    c->section = s; c->first = k->candidate_count; c->count = c->next = 0;
    c->from = k->sections; c->to = -1; c->height = SIZE_MAX; c->changes = k->change_count;
    c->rests_from = k->from[s]; c->rests_to = k->to[s];
    for (int m = k->begin[s]; m < k->begin[s + 1]; m++) {
        const int b = k->members[m], by = k->set_by[b];
        const gcpi_rectangle *x = &k->all[b];
        if (x->done) continue;
        if (x->at == k->height[s]) {
            gcpi_packing_add(k, c, b);
            c->count++;
            first = GCPI_MIN(first, x->first); last = GCPI_MAX(last, x->last);
            continue;
        }
        c->height = GCPI_MIN(c->height, x->at);
        c->rests_from = GCPI_MIN(c->rests_from, k->from[by]); c->rests_to = GCPI_MAX(c->rests_to, k->to[by]);
    }
    gcpi_packing_without(k, c, first, last);
    c->rests_from = GCPI_MIN(c->rests_from, first); c->rests_to = GCPI_MAX(c->rests_to, last);
    k->candidate_count += c->count;
    return 1;
}

/* The branch that was taken failed. 1: others may not, as it is to blame. */
static int gcpi_packing_blames(gcpi_packing *k, gcpi_fork *c)
{
    gcpi_packing_undo(k, c->changes);
    if (k->blamed_to < c->touches_from || k->blamed_from > c->touches_to) return 0;
    c->from = GCPI_MIN(c->from, k->blamed_from); c->to = GCPI_MAX(c->to, k->blamed_to);
    return 1;
}
/* Takes the next branch that does not fail at once. 0: there is none. */
static int gcpi_packing_branch(gcpi_packing *k, gcpi_fork *c)
{
    while (c->next <= c->count && !k->full) {
        const int b = c->next < c->count ? k->candidates[c->first + c->next] : -1;
        c->next++;
        c->touches_from = b < 0 ? c->section : k->all[b].first;
        c->touches_to = b < 0 ? c->section : k->all[b].last;
        int goes_on;
        if (b >= 0) goes_on = gcpi_packing_put(k, b, c->section);
        else {
            goes_on = gcpi_packing_raise(k, c->section, c->height, c->rests_from, c->rests_to);
            if (goes_on) { gcpi_packing_look(k, c->section); goes_on = gcpi_packing_settle(k); }
        }
        if (goes_on) return 1;
        if (!gcpi_packing_blames(k, c)) return 0;
    }
    k->blamed_from = GCPI_MIN(c->from, c->rests_from); k->blamed_to = GCPI_MAX(c->to, c->rests_to);
    return 0;
}
/* Goes through forks, so many at most. */
static gcpi_packed gcpi_packing_search(gcpi_packing *k, int most)
{
    for (int n = 0; n < most && k->work > 0; n++) {
        if (!gcpi_packing_fork(k)) return k->full ? GCPI_PACKING_UNDECIDED : GCPI_PACKS;
        int goes_on = gcpi_packing_branch(k, &k->forks[k->depth - 1]);
        while (!goes_on && !k->full) {
            k->candidate_count = k->forks[--k->depth].first;
            if (!k->depth) return GCPI_CANNOT_PACK;
            gcpi_fork *c = &k->forks[k->depth - 1];
            goes_on = gcpi_packing_blames(k, c) && gcpi_packing_branch(k, c);
        }
    }
    return GCPI_PACKING_UNDECIDED;
}

/* ---- from the start ---- */

/* Enough for all of the instances of tests; a search that needs more is undecided. */
static ptrdiff_t gcpi_packing_changes(ptrdiff_t count, ptrdiff_t sections, ptrdiff_t members)
{
    return 8 * (count + sections) + 4 * members;
}
/* What the arrays take, for so many rectangles and sections at most. Few rectangles live for long: sixteen sections are
   counted for each. */
static size_t gcpi_packing_bytes(size_t rectangles, size_t instructions)
{
    const size_t count = GCPI_MIN(rectangles, (size_t)GCPI_PACKING_COUNT),
                 sections = GCPI_MIN(instructions, (size_t)GCPI_PACKING_SECTIONS),
                 members = GCPI_MIN(count * GCPI_MIN(sections, 16), (size_t)GCPI_PACKING_MEMBERS);
    return count * (sizeof(size_t) + 10 * sizeof(int) + 2 * sizeof(gcpi_fork)) +
           sections * (2 * sizeof(size_t) + 7 * sizeof(int) + sizeof(double)) + members * sizeof(int) +
           (size_t)gcpi_packing_changes((ptrdiff_t)count, (ptrdiff_t)sections, (ptrdiff_t)members) *
               sizeof(gcpi_change) + 17 * 16;
}

static int gcpi_packing_arrays(gcpi_packing *k, gcpi_skyline *s, gcp_arena *a)
{
    double members = 0;
    memset(k, 0, sizeof *k);
    k->all = s->all; k->count = s->count; k->sections = s->sections; k->random = 88172645463325252ull;
    for (int b = 0; b < s->count; b++) members += s->all[b].last - s->all[b].first + 1;
    if (!s->count || s->count > GCPI_PACKING_COUNT || s->sections > GCPI_PACKING_SECTIONS ||
        members > GCPI_PACKING_MEMBERS)
        return 0;
    const ptrdiff_t count = s->count, sections = s->sections;
    k->depth_capacity = 2 * s->count;
    k->candidate_capacity = 8 * s->count;
    k->change_capacity = gcpi_packing_changes(count, sections, (ptrdiff_t)members);
    k->bytes = GCPI_SCRATCH(a, size_t, count); k->set_by = GCPI_SCRATCH(a, int, count);
    k->rank = GCPI_SCRATCH(a, int, count);
    k->members = GCPI_SCRATCH(a, int, (ptrdiff_t)members); k->begin = GCPI_SCRATCH(a, int, sections + 2);
    k->height = GCPI_SCRATCH(a, size_t, sections); k->rest = GCPI_SCRATCH(a, size_t, sections);
    k->from = GCPI_SCRATCH(a, int, sections); k->to = GCPI_SCRATCH(a, int, sections);
    k->candidates_in = GCPI_SCRATCH(a, int, sections); k->stale = GCPI_SCRATCH(a, int, sections);
    k->failures = GCPI_SCRATCH(a, double, sections);
    k->queue = GCPI_SCRATCH(a, int, sections); k->queued = GCPI_SCRATCH(a, int, sections);
    k->changes = GCPI_SCRATCH(a, gcpi_change, k->change_capacity);
    k->forks = GCPI_SCRATCH(a, gcpi_fork, k->depth_capacity);
    k->candidates = GCPI_SCRATCH(a, int, k->candidate_capacity);
    return k->bytes && k->set_by && k->rank && k->members && k->begin && k->height && k->rest && k->from && k->to &&
           k->candidates_in && k->stale && k->failures && k->queue && k->queued && k->changes && k->forks &&
           k->candidates;
}
static void gcpi_packing_members(gcpi_packing *k, size_t align)
{
    memset(k->begin, 0, (size_t)(k->sections + 2) * sizeof *k->begin);
    memset(k->failures, 0, (size_t)k->sections * sizeof *k->failures);
    for (int b = 0; b < k->count; b++) {
        k->bytes[b] = gcpi_round(k->all[b].bytes, align);
        for (int s = k->all[b].first; s <= k->all[b].last; s++) k->begin[s + 2]++;
    }
    for (int s = 2; s <= k->sections; s++) k->begin[s + 1] += k->begin[s];
    for (int b = 0; b < k->count; b++)
        for (int s = k->all[b].first; s <= k->all[b].last; s++) k->members[k->begin[s + 1]++] = b;
}

/* Candidates come in this order: the longest life, the most crowded or the largest area first, with noise. */
static void gcpi_packing_order(gcpi_packing *k, int order, double noise)
{
    static const int by[GCPI_PACKING_ORDERS][2] = { { 0, 2 }, { 1, 2 }, { 1, 0 }, { 2, 0 } };
    double most[3] = { 1, 1, 1 };
    for (int pass = 0; pass < 2; pass++)
        for (int b = 0; b < k->count; b++) {
            gcpi_rectangle *x = &k->all[b];
            const double life = x->last - x->first + 1, keys[3] = { life, x->crowd, life * (double)x->bytes },
                         chance = pass ? gcpi_below(&k->random, 65536) / 65536.0 : 0;
            for (int i = 0; i < 3 && !pass; i++) most[i] = GCPI_MAX(most[i], keys[i]);
            x->key = keys[by[order][0]] / most[by[order][0]] * (1 + noise * chance) +
                     1e-9 * keys[by[order][1]] / most[by[order][1]];
        }
    for (int b = 0, i; b < k->count; b++) {                 /* rank as a list first: candidates is free now */
        for (i = b; i > 0 && k->all[k->candidates[i - 1]].key < k->all[b].key; i--)
            k->candidates[i] = k->candidates[i - 1];
        k->candidates[i] = b;
    }
    for (int i = 0; i < k->count; i++) k->rank[k->candidates[i]] = i;
}
/* Nothing is placed. 0: it cannot be, as sections fail at once. */
static int gcpi_packing_start(gcpi_packing *k, const gcpi_skyline *s)
{
    int goes_on = 1;
    k->change_count = 0; k->depth = k->candidate_count = k->full = 0;
    for (int b = 0; b < k->count; b++) { k->all[b].at = 0; k->all[b].done = 0; k->set_by[b] = k->all[b].first; }
    for (int t = 0; t < k->sections; t++) {
        k->height[t] = 0; k->rest[t] = s->load[t];
        k->from[t] = k->to[t] = t;
        k->queued[t] = 0; k->stale[t] = 1;
    }
    k->head = k->queued_count = 0;
    for (int t = 0; t < k->sections && goes_on; t++) goes_on = gcpi_packing_raise(k, t, s->ground[t], t, t);
    for (int t = 0; t < k->sections && goes_on; t++) gcpi_packing_look(k, t);
    return goes_on && gcpi_packing_settle(k);
}

/* Whether the rectangles of a skyline pack so that all end at the goal or below. If so, .at are their places. Takes
   *work down. */
static gcpi_packed gcpi_packing_exact(gcpi_skyline *s, size_t goal, double *work, gcp_arena *a)
{
    static const double noise[GCPI_PACKING_NOISES] = { 0, 1, 0.05, 0.3 };
    gcpi_packing k;
    gcpi_packed packed = GCPI_PACKING_UNDECIDED;
    const ptrdiff_t scratch = a->scratch;
    const int ready = gcpi_packing_arrays(&k, s, a);
    if (ready) gcpi_packing_members(&k, s->align);
    k.goal = goal; k.limit = gcpi_round(goal, s->align);
    k.work = GCPI_PACKING_LOOKS * *work;
    for (int round = 0; ready && k.work > 0 && packed == GCPI_PACKING_UNDECIDED; round++) {
        const int turn = round / GCPI_PACKING_ORDERS,
                  most = (500 + k.count) << GCPI_MIN(turn / GCPI_PACKING_NOISES, 10);
        gcpi_packing_order(&k, round % GCPI_PACKING_ORDERS, noise[turn % GCPI_PACKING_NOISES]);
        packed = gcpi_packing_start(&k, s) ? gcpi_packing_search(&k, most) : GCPI_CANNOT_PACK;
    }
    if (ready) *work = k.work / GCPI_PACKING_LOOKS;
    a->scratch = scratch;
    return packed;
}

/* ==== src/place/layout.h ==== */

/* Layout: gives each buffer its offset. The step's numbers come first, then the workspace of the current instruction
   (it may be written in part only, so it never lies on top), then the buffers: by first fit, the largest first; where
   that is not good enough, by skylines, by exact search, and by first fit in an order that is searched: the first
   buffer that finds no room below a limit moves before some other, and the buffers from there on are placed again. */
enum { GCPI_LAYOUT_WORK = 3000000,
       GCPI_LAYOUT_HARD = 1000000,         /* with so much work all ways are tried */
       /* buffers from which on it is tried first, or alone, not to look at all of them */
       GCPI_LAYOUT_MANY = 8192, GCPI_LAYOUT_MOST = 32768,
       GCPI_LAYOUT_NEAR = 4096,            /* of many buffers a layout may lose so small a part */
       /* moves of a list; buffers above which moves take too long to find */
       GCPI_MOST_MOVES = 8, GCPI_MOVES_LARGE = 3000 };

/* What a layout must achieve. enough: bytes that the slab may have, or 0: as few as can be found; work: how many placed
   buffers may be looked at where there are 250 tasks, more or fewer where there are; moves: how many at most. The same
   list and fit give the same layout; another fit may fail where this one did not. */
typedef struct gcpi_fit { size_t enough; double work; int moves; } gcpi_fit;
static gcpi_fit gcpi_fit_of(size_t enough, double work, int moves)
{
    gcpi_fit f;
    f.enough = enough;
    f.work = work;
    f.moves = moves;
    return f;
}
static gcpi_fit gcpi_fit_free(void) { return gcpi_fit_of(0, GCPI_LAYOUT_WORK, 0); }

/* a placed buffer; next: end, aligned; rank: its position in the order */
typedef struct gcpi_spot { size_t at, end, next; int first, last, rank; } gcpi_spot;

typedef struct gcpi_layout {
    const gcpi_problem *p; const gcpi_list *list; gcpi_lives *l;
    gcpi_spot *placed, *trial;         /* by offset: of the accepted order; of the order on trial */
    int *first, *last;                 /* of the spots on trial, for gcpi_fit_meets */
    int *order, *sorted, count, placed_count, trial_count;
    /* many buffers: spots are in the order of placing, and one of these (or NULL) finds what lies near */
    int many; gcpi_gaps *gaps; gcpi_nearby *nearby;
    size_t *floor, *offset, top, best_top;
    uint64_t random;
    double work;                       /* placed buffers that may still be looked at */
} gcpi_layout;

/* Which of some lives meet that from begin to end. Few do, so a fit looks at eight of these bytes at once. */
enum { GCPI_FIT_LIVES = 128 };
GCPI_LOOP void gcpi_fit_meets(const int *GCPI_RESTRICT first, const int *GCPI_RESTRICT last, int begin, int end,
                              unsigned char *GCPI_RESTRICT meets)
{
    for (int k = 0; k < GCPI_FIT_LIVES; k++) meets[k] = (unsigned char)((first[k] <= end) & (begin <= last[k]));
}
static int gcpi_fit_none(const unsigned char *meets)               /* of eight */
{
    uint64_t eight;
    memcpy(&eight, meets, sizeof eight);
    return eight == 0;
}

/* The lowest place for b; *before: how many placed buffers lie below it. Of many buffers, those for which there is no
   work left go on top of all. */
static size_t gcpi_first_fit(gcpi_layout *y, int b, int *before)
{
    const gcpi_buffer *x = &y->l->buffers[b];
    size_t at = y->floor[b];
    *before = y->trial_count;
    if (y->gaps) return gcpi_gaps_fit(y->gaps, b, at);
    if (y->nearby && y->work < 0) return GCPI_MAX(at, gcpi_round(y->top, y->p->target.align));
    if (y->nearby) return gcpi_nearby_fit(y->nearby, b, at, &y->work);
    unsigned char meets[GCPI_FIT_LIVES];
    int k = y->trial_count;
    for (int begin = 0; begin < k; begin += GCPI_FIT_LIVES) {
        gcpi_fit_meets(y->first + begin, y->last + begin, x->first, x->last, meets);
        for (int i = 0; i < GCPI_FIT_LIVES && begin + i < k; i++) {
            if (i % 8 == 0 && gcpi_fit_none(meets + i)) { i += 7; continue; }
            if (!meets[i]) continue;
            const gcpi_spot *o = &y->trial[begin + i];
            if (o->at >= at + x->bytes) k = begin + i;
            else at = GCPI_MAX(at, o->next);
        }
    }
    y->work -= k + 1;
    int low = 0, high = y->trial_count;
    while (low < high) {
        const int middle = (low + high) / 2;
        if (y->trial[middle].at <= at) low = middle + 1;
        else high = middle;
    }
    *before = low;
    return at;
}

static void gcpi_trial_put(gcpi_layout *y, int k, const gcpi_spot *spot)
{
    const size_t above = (size_t)(y->trial_count++ - k);
    memmove(y->trial + k + 1, y->trial + k, above * sizeof *y->trial);
    y->trial[k] = *spot;
    if (y->nearby) gcpi_nearby_put(y->nearby, y->order[spot->rank], spot->at, spot->next);
    if (y->many) return;
    memmove(y->first + k + 1, y->first + k, above * sizeof *y->first);
    memmove(y->last + k + 1, y->last + k, above * sizeof *y->last);
    y->first[k] = spot->first; y->last[k] = spot->last;
}

/* Places the buffers from position `from` of the order on; those before it stay. Returns the position of the first that
   would end above `most`, or count. y->top is where that one, or the highest, ends. */
static int gcpi_place_from(gcpi_layout *y, int from, size_t most)
{
    y->trial_count = 0; y->top = 0;
    y->work -= y->placed_count / 4;
    for (int i = 0; from > 0 && i < y->placed_count; i++) {
        if (y->placed[i].rank >= from) continue;
        gcpi_trial_put(y, y->trial_count, &y->placed[i]);
        y->top = GCPI_MAX(y->top, y->placed[i].end);
    }
    for (int i = from; i < y->count; i++) {
        int k;
        const gcpi_buffer *x = &y->l->buffers[y->order[i]];
        size_t at = gcpi_first_fit(y, y->order[i], &k);
        y->top = GCPI_MAX(y->top, at + x->bytes);
        if (at + x->bytes > most) return i;
        gcpi_spot spot;
        spot.at = at;
        spot.end = at + x->bytes;
        spot.next = gcpi_round(spot.end, y->p->target.align);
        spot.first = x->first;
        spot.last = x->last;
        spot.rank = i;
        gcpi_trial_put(y, k, &spot);
    }
    return y->count;
}

/* Accepts the trial. Where it holds all buffers, it may be the best. */
static void gcpi_layout_take(gcpi_layout *y)
{
    gcpi_spot *swap = y->placed; y->placed = y->trial; y->trial = swap;
    y->placed_count = y->trial_count;
    if (y->placed_count < y->count || y->top >= y->best_top) return;
    y->best_top = y->top;
    for (int i = 0; i < y->count; i++) y->offset[y->order[y->placed[i].rank]] = y->placed[i].at;
}

/* What an order is by. */
typedef enum gcpi_order_by { GCPI_BY_BYTES, GCPI_BY_AREA, GCPI_BY_BIRTH, GCPI_BY_DEATH } gcpi_order_by;
static double gcpi_layout_key(const gcpi_buffer *b, gcpi_order_by by)          /* the greatest comes first */
{
    double bytes = (double)b->bytes, life = (double)(b->last - b->first + 1);
    switch (by) {
    case GCPI_BY_BYTES: return bytes * 1e6 + life;
    case GCPI_BY_AREA: return bytes * life;
    case GCPI_BY_BIRTH: return -b->first;
    default: return b->last;
    }
}

/* Merge sort; equal keys go by buffer, so that the result is unique. */
static void gcpi_layout_sort(gcpi_layout *y, gcpi_order_by by)
{
    const gcpi_buffer *all = y->l->buffers;
    for (int run = 1; run < y->count; run *= 2) {
        for (int begin = 0; begin < y->count; begin += 2 * run) {
            const int middle = GCPI_MIN(begin + run, y->count), end = GCPI_MIN(middle + run, y->count);
            for (int i = begin, j = middle, k = begin; k < end; k++) {
                int left = j == end;
                if (i < middle && j < end) {
                    const double one = gcpi_layout_key(&all[y->order[i]], by),
                                 other = gcpi_layout_key(&all[y->order[j]], by);
                    left = one > other || (!(other > one) && y->order[i] < y->order[j]);
                }
                y->sorted[k] = y->order[left ? i++ : j++];
            }
        }
        int *swap = y->order; y->order = y->sorted; y->sorted = swap;
    }
}

/* Looks for an order in which all buffers end at `most` or below. The first that does not moves before a random one.
   That is undone if fewer buffers then find room, by more than chance allows: some steps back are taken, since another
   buffer may be the one to move. */
static void gcpi_pack(gcpi_layout *y, size_t most, double work)
{
    int reached = y->placed_count;
    double end = y->work - work;
    for (int i = 0; i < y->placed_count; i++)
        if (y->placed[i].end > most) reached = GCPI_MIN(reached, y->placed[i].rank);
    while (reached > 0 && reached < y->count && y->work > end) {
        int to = (int)gcpi_below(&y->random, (uint32_t)reached), b = y->order[reached];
        double chance = gcpi_below(&y->random, 65536) / 65536.0,
               slack = chance * chance * chance * chance * reached / 2;
        memmove(y->order + to + 1, y->order + to, (size_t)(reached - to) * sizeof *y->order);
        y->order[to] = b;
        int now = gcpi_place_from(y, to, most);
        if (now > reached - 2 - (int)slack) { gcpi_layout_take(y); reached = now; continue; }
        memmove(y->order + to, y->order + to + 1, (size_t)(reached - to) * sizeof *y->order);
        y->order[reached] = b;
    }
}

/* Where buffers may begin: after the largest workspace of their lives. */
static void gcpi_floors(gcpi_layout *y, const gcpi_heights *ground)
{
    const size_t align = y->p->target.align, front = gcpi_round(y->p->numbers, align);
    for (ptrdiff_t k = 0; k < y->list->count; k++)
        *gcpi_heights_leaf(ground, k) = front + gcpi_round(y->p->tasks[y->list->at[k].task].workspace, align);
    gcpi_heights_ready(ground);
    if (y->many && ground->most[1] - front <= y->l->peak / GCPI_LAYOUT_NEAR)       /* one ground for all */
        for (int k = 0; k < 2 * ground->leaves; k++) ground->most[k] = ground->most[1];
    for (int i = 0; i < y->count; i++) {
        const int b = y->order[i];
        y->floor[b] = gcpi_heights_most(ground, y->l->buffers[b].first, y->l->buffers[b].last);
    }
}

/* Places all buffers in their order, at `most` or below. */
static void gcpi_layout_once(gcpi_layout *y, size_t most, double work)
{
    y->placed_count = 0; y->work = work;
    gcpi_place_from(y, 0, most);
    gcpi_layout_take(y);
}

/* Searches from one order of the buffers: for the goal at once, or (least) in steps that get smaller. */
static void gcpi_layout_search(gcpi_layout *y, size_t goal, int least, double work)
{
    gcpi_layout_once(y, least ? SIZE_MAX : goal, work);
    y->work = work;
    if (!least) { gcpi_pack(y, goal, work); return; }
    for (double share = 1; share > 0.01 && y->work > 0 && y->best_top > goal;) {
        size_t before = y->best_top;
        gcpi_pack(y, before - GCPI_MAX(gcpi_bytes_from((double)(before - goal) * share), 1), work / 6);
        if (y->best_top == before) share /= 2;
    }
}

/* Sections of time. For skylines a new one begins where a buffer does, and where the workspace changes. For the exact
   search, whose time grows with them, there are fewer: one first grows (buffers begin, the workspace grows), then
   shrinks, and all of its buffers are live at the instruction in between. Sets section[t] for each instruction, and
   where buffers may begin; returns how many sections there are. marks: scratch, zeros. */
static int gcpi_layout_sections(const gcpi_layout *y, int exact, int *section, size_t *ground, unsigned char *marks)
{
    enum { BEGINS = 1, ENDED = 2 };
    size_t front = gcpi_round(y->p->numbers, y->p->target.align), last = 0;
    int sections = 0, shrinks = 0;
    for (int i = 0; i < y->count; i++) {
        marks[y->l->buffers[y->order[i]].first] |= BEGINS;
        marks[y->l->buffers[y->order[i]].last + 1] |= ENDED;
    }
    for (ptrdiff_t t = 0; t < y->list->count; t++) {
        const size_t now = front + gcpi_round(y->p->tasks[y->list->at[t].task].workspace, y->p->target.align);
        const int grows = (marks[t] & BEGINS) || now > last;
        shrinks |= (marks[t] & ENDED) || now < last;
        if (t == 0 || (exact ? grows && shrinks : grows || now != last)) { ground[sections++] = now; shrinks = 0; }
        ground[sections - 1] = GCPI_MAX(ground[sections - 1], now);
        section[t] = sections - 1;
        last = now;
    }
    return sections;
}

/* The rectangles of a skyline: one for each buffer that has bytes. 0: not enough scratch. */
static int gcpi_layout_rectangles(const gcpi_layout *y, gcpi_skyline *s, int exact, gcp_arena *a)
{
    int *section = GCPI_SCRATCH(a, int, y->list->count);
    unsigned char *marks = GCPI_SCRATCH(a, unsigned char, y->list->count + 1);
    if (!section || !marks || !gcpi_skyline_arrays(s, y->count, (int)y->list->count, a)) return 0;
    s->align = y->p->target.align;
    s->sections = gcpi_layout_sections(y, exact, section, s->ground, marks);
    for (int i = 0; i < y->count; i++) {
        const gcpi_buffer *x = &y->l->buffers[y->order[i]];
        gcpi_rectangle *b = &s->all[s->count];
        b->buffer = y->order[i]; b->first = section[x->first]; b->last = section[x->last]; b->bytes = x->bytes;
        s->count += x->bytes > 0;
    }
    gcpi_skyline_ready(s);
    return 1;
}

/* Places for all rectangles, at `aim` or below, by the exact search or by skylines. Takes *work down. */
static gcpi_packed gcpi_layout_reach(gcpi_layout *y, gcpi_skyline *s, size_t aim, int exact, double *work, gcp_arena *a)
{
    gcpi_packed packed = GCPI_PACKING_UNDECIDED;
    if (exact) packed = gcpi_packing_exact(s, aim, work, a);
    else {
        if (gcpi_skyline_pack(s, aim, *work)) packed = GCPI_PACKS;
        *work = s->work;
    }
    if (packed != GCPI_PACKS) return packed;
    y->best_top = 0;
    for (int i = 0; i < y->count; i++) y->offset[y->order[i]] = y->floor[y->order[i]];
    for (int i = 0; i < s->count; i++) {
        y->offset[s->all[i].buffer] = s->all[i].at;
        y->best_top = GCPI_MAX(y->best_top, s->all[i].at + s->all[i].bytes);
    }
    return packed;
}

/* Searches by rectangles: for the goal at once, or (least) in steps that get smaller. Returns the goal, or more where
   it cannot be reached. */
static size_t gcpi_layout_pack(gcpi_layout *y, size_t goal, int exact, int least, double work, gcp_arena *a)
{
    gcpi_skyline s;
    ptrdiff_t scratch = a->scratch;
    double left = gcpi_layout_rectangles(y, &s, exact, a) ? work : 0;
    for (double share = 1; share > 0.01 && left > 0 && y->best_top > goal;) {
        const size_t before = y->best_top,
                     aim = least ? before - GCPI_MAX(gcpi_bytes_from((double)(before - goal) * share), 1) : goal;
        double part = least ? GCPI_MIN(left, work / 6) : work;
        left -= part;
        const gcpi_packed packed = gcpi_layout_reach(y, &s, aim, exact, &part, a);
        left += GCPI_MAX(part, 0);
        if (packed == GCPI_CANNOT_PACK) goal = aim + 1;
        else if (packed == GCPI_PACKING_UNDECIDED) share /= 2;
        if (!least) break;
    }
    a->scratch = scratch;
    return goal;
}

/* Ways to a layout, in turn, with their shares of the work. In order of birth or death the goal is met or not: chains
   of equal buffers meet it. The exact search comes early, where it often ends at once, and later with more work. The
   hard ways are for layouts with much work, those that decide; for each candidate of a search they take too long. Moves
   begin with what the last order has placed. */
typedef enum gcpi_way { GCPI_WAY_ORDER, GCPI_WAY_SKYLINES, GCPI_WAY_EXACT } gcpi_way;
static const struct { gcpi_way way; gcpi_order_by by; double share; int hard; } gcpi_ways[] = {
    { GCPI_WAY_ORDER, GCPI_BY_BIRTH, 0, 1 },    { GCPI_WAY_ORDER, GCPI_BY_DEATH, 0, 1 },
    { GCPI_WAY_EXACT, GCPI_BY_BYTES, 0.03, 0 }, { GCPI_WAY_SKYLINES, GCPI_BY_BYTES, 0.8, 0 },
    { GCPI_WAY_EXACT, GCPI_BY_BYTES, 0.4, 1 },  { GCPI_WAY_ORDER, GCPI_BY_BYTES, 0.1, 0 },
    { GCPI_WAY_ORDER, GCPI_BY_AREA, 0.1, 0 },
};
static void gcpi_layout_improve(gcpi_layout *y, const size_t asked, gcpi_fit fit, gcp_arena *a)
{
    const double scale = GCPI_MIN(8, GCPI_MAX(0.2, y->p->task_count / 250.0));
    const int least = fit.enough == 0, hard = fit.work >= GCPI_LAYOUT_HARD;
    size_t goal = asked;
    for (size_t k = 0; k < sizeof gcpi_ways / sizeof *gcpi_ways && y->best_top > goal; k++) {
        const gcpi_way way = gcpi_ways[k].way;
        const double work = fit.work * scale * gcpi_ways[k].share;
        const int cannot = goal > asked && !least;
        if (cannot && !fit.moves) break;
        if (gcpi_ways[k].hard && !hard) continue;
        gcpi_layout_sort(y, gcpi_ways[k].by);
        if (way == GCPI_WAY_ORDER) gcpi_layout_search(y, asked, least && work > 0, work);
        else if (!cannot)
            goal = gcpi_layout_pack(y, goal, way != GCPI_WAY_SKYLINES, least, work, a);
    }
}

/* Many buffers: in order of birth and of death, and of too many, too, of bytes, by what finds places without looking at
   all of them. 1: it is good enough. */
static int gcpi_layout_long(gcpi_layout *y, size_t goal, int least, const gcpi_heights *ground, gcp_arena *a)
{
    gcpi_gaps gaps;
    gcpi_nearby nearby;
    const ptrdiff_t scratch = a->scratch;
    const size_t most = least ? SIZE_MAX : goal;
    if (least) goal += goal / GCPI_LAYOUT_NEAR;
    for (int death = 0; death < 2 && y->best_top > goal; death++) {
        if (!gcpi_gaps_make(&gaps, y->l, y->list->count, y->p->target.align, a)) break;
        gcpi_gaps_begin(&gaps, death);
        y->gaps = &gaps;
        gcpi_layout_sort(y, death ? GCPI_BY_DEATH : GCPI_BY_BIRTH);
        gcpi_layout_once(y, most, 0);
        a->scratch = scratch;
    }
    y->gaps = NULL;
    if (y->best_top <= goal || y->count < GCPI_LAYOUT_MOST) return y->best_top <= goal;
    if (!gcpi_nearby_make(&nearby, y->l, y->order, y->count, ground, y->list->count, a)) return 0;
    y->nearby = &nearby;
    gcpi_layout_sort(y, GCPI_BY_BYTES);
    gcpi_layout_once(y, most, 200.0 * y->count);
    y->nearby = NULL;
    a->scratch = scratch;
    return y->best_top <= goal;
}

/* ==== src/place/arrange.h ==== */

/* Arrangement: lives and addresses of a list. Where no layout is found, moves are the last resort: a buffer that finds
   no room for all of its life gets two places. */

/* The task that moves what buffer b holds between instructions t and t + 1, where there are bytes for both places; 0:
   none. */
static int gcpi_mover(const gcpi_layout *y, int b, int t, size_t most)
{
    const gcpi_lives *l = y->l;
    size_t across = gcpi_round(y->p->numbers, y->p->target.align) + l->buffers[b].bytes;
    int value = -1, values = 0;
    for (int v = 0; v < l->value_count; v++)
        if (l->values[v].first <= t && l->values[v].last > t && gcpi_buffer_of(l, l->values[v].buffer) == b) {
            value = v;
            values++;
        }
    if (values != 1) return 0;
    for (int k = 0; k < l->buffer_count; k++)
        if (l->buffers[k].joined < 0 && l->buffers[k].first <= t && l->buffers[k].last > t)
            across += gcpi_round(l->buffers[k].bytes, y->p->target.align);
    int item = l->values[value].item;
    return across <= most && gcpi_alone(y->p, item) ? y->p->items[item].move : 0;
}

/* Whether b would find room below `most` if it lived from first to last, beside what is placed. */
static int gcpi_layout_room(gcpi_layout *y, int b, int first, int last, size_t most)
{
    gcpi_buffer *x = &y->l->buffers[b], whole = *x;
    int before;
    x->first = first; x->last = last;
    size_t at = gcpi_first_fit(y, b, &before);
    *x = whole;
    return at + x->bytes <= most;
}

/* Splits the life of the buffer that found no room, into its longest first part that would find room and the rest, or
   its longest last part and the rest. Sets the move between the two. */
static void gcpi_layout_move(gcpi_layout *y, size_t most)
{
    if (y->placed_count >= y->count) return;
    int b = y->order[y->placed_count], first = y->l->buffers[b].first, last = y->l->buffers[b].last, front;
    y->trial_count = 0;
    for (int i = 0; i < y->placed_count; i++) gcpi_trial_put(y, i, &y->placed[i]);
    front = gcpi_layout_room(y, b, first, first, most);
    if (!front && !gcpi_layout_room(y, b, last, last, most)) return;
    int low = first, high = last;                  /* the end of the part lies in between */
    while (high - low > 1) {
        int middle = low + (high - low) / 2,
            fits = front ? gcpi_layout_room(y, b, first, middle, most) : gcpi_layout_room(y, b, middle, last, most);
        *(fits == front ? &low : &high) = middle;
    }
    int move = 0, t = low;                         /* from there to shorter parts */
    while (t >= first && t < last && (move = gcpi_mover(y, b, t, most)) == 0) t += front ? -1 : 1;
    if (move) { y->l->move = move; y->l->move_at = t + 1; }
}

static int gcpi_layout_arrays(gcpi_layout *y, gcp_arena *a)
{
    const int buffers = y->l->buffer_count;
    for (int b = 0; b < buffers; b++) y->count += y->l->buffers[b].joined < 0;
    const int alone = y->count >= GCPI_LAYOUT_MOST;
    y->many = y->count >= GCPI_LAYOUT_MANY;
    y->order = GCPI_SCRATCH(a, int, y->count + 1);
    y->sorted = GCPI_SCRATCH(a, int, y->count + 1);
    y->trial = GCPI_SCRATCH(a, gcpi_spot, y->count + 1);
    y->placed = alone ? y->trial : GCPI_SCRATCH(a, gcpi_spot, y->count + 1);
    y->first = GCPI_SCRATCH(a, int, alone ? 1 : y->count + GCPI_FIT_LIVES);
    y->last = GCPI_SCRATCH(a, int, alone ? 1 : y->count + GCPI_FIT_LIVES);
    y->floor = GCPI_SCRATCH(a, size_t, buffers + 1);
    y->offset = GCPI_SCRATCH(a, size_t, buffers + 1);
    if (!y->order || !y->sorted || !y->trial || !y->placed || !y->first || !y->last || !y->floor || !y->offset)
        return 0;
    for (int b = 0, k = 0; b < buffers; b++) if (y->l->buffers[b].joined < 0) y->order[k++] = b;
    return 1;
}

/* Sets the offsets of l's buffers; returns the slab's bytes, or 0: not enough scratch. A result above fit.enough, where
   that is given, means that no layout was found; the offsets are then not valid. */
static size_t gcpi_layout_make(const gcpi_problem *p, const gcpi_list *list, gcpi_lives *l, gcpi_fit fit, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_layout y;
    gcpi_heights ground;
    memset(&y, 0, sizeof y);
    y.p = p; y.list = list; y.l = l;
    y.best_top = SIZE_MAX; y.random = 88172645463325252ull;
    if (!gcpi_layout_arrays(&y, a) || !gcpi_heights_arrays(&ground, list->count, a)) {
        a->scratch = scratch;
        return 0;
    }
    size_t top = gcpi_front(p);
    const size_t goal = fit.enough ? fit.enough : top + l->peak;
    l->move = -1;
    gcpi_floors(&y, &ground);
    const int done = y.many && (gcpi_layout_long(&y, goal, fit.enough == 0, &ground, a) || y.count >= GCPI_LAYOUT_MOST);
    if (!done) {
        if (y.many) { y.many = 0; gcpi_floors(&y, &ground); }
        gcpi_layout_sort(&y, GCPI_BY_BYTES);
        gcpi_layout_search(&y, goal, fit.enough == 0, 0);
        if (y.best_top > goal) gcpi_layout_improve(&y, goal, fit, a);
    }
    a->scratch = scratch;
    if (y.best_top == SIZE_MAX && fit.moves && !y.many) gcpi_layout_move(&y, fit.enough);
    if (y.best_top == SIZE_MAX) return GCPI_MAX(y.top, goal + 1);
    for (ptrdiff_t i = 0; i < list->count; i++)
        top = GCPI_MAX(top, gcpi_front(p) + p->tasks[list->at[i].task].workspace);
    for (int b = 0; b < l->buffer_count; b++)
        if (l->buffers[b].joined < 0) {
            l->buffers[b].offset = y.offset[b];
            top = GCPI_MAX(top, y.offset[b] + l->buffers[b].bytes);
        }
    return top;
}

/* Lifetimes and layout of a list, to which moves may be added. Returns the slab's bytes as gcpi_layout_make does; l and
   *live lie in scratch. */
static size_t gcpi_arrange(const gcpi_problem *p, gcpi_list *list, gcpi_lives *l, size_t **live, gcpi_fit fit,
                           gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    for (int moves = 0;; moves++) {
        a->scratch = scratch;
        if (!gcpi_lives_make(p, list, l, live, a)) return 0;
        size_t slab = gcpi_layout_make(p, list, l, fit, a);
        if (slab == 0 || slab <= fit.enough || moves == fit.moves || l->move < 0 ||
            l->buffer_count > GCPI_MOVES_LARGE || list->count >= list->capacity)
            return slab;
        const gcpi_task *task = &p->tasks[l->move];
        gcpi_emit(list, 'M', l->move, task);
        memmove(list->at + l->move_at + 1, list->at + l->move_at,
                (size_t)(list->count - 1 - l->move_at) * sizeof *list->at);
        list->at[l->move_at].letter = 'M'; list->at[l->move_at].task = l->move;
    }
}

/* ==== src/place/verify.h ==== */

/* The verifier: no list runs that it has not passed. Knows neither policies nor lifetimes: it walks through a placed
   list with a map of which value lies where, and refuses it at the first instruction that reads what is not there,
   writes what must stay, or is out of order. */

typedef struct gcpi_placed { ptrdiff_t offset; } gcpi_placed;      /* of an operand in the slab; -1: state */

/* rows of `width` bytes, one every `pitch` bytes */
typedef struct gcpi_region { size_t at, end, pitch, width; int item; } gcpi_region;

typedef struct gcpi_verifier {
    const gcpi_problem *p; const gcpi_list *list; const gcpi_placed *placed;
    gcpi_region *held;                             /* per item: where its value lies */
    /* per item in the slab: item + 1, listed by the page that it begins in; next 0: not there, -1: last of its list */
    int *next, *page;
    size_t page_bytes, longest;                    /* longest: most bytes of any item that was there */
    /* per task: it has run; per item: its parameter has changed; far memory holds it */
    unsigned char *done, *updated, *far;
    int backward_next;
    char *message; size_t size;
} gcpi_verifier;

enum { GCPI_PAGES = 1024 };

static gcpi_region gcpi_region_of(const gcpi_problem *p, int item, size_t at)
{
    const gcpi_item *x = &p->items[item];
    gcpi_region r;
    r.item = item; r.at = at; r.end = at + x->bytes;
    r.pitch = x->row ? (size_t)x->pitch * sizeof(gcp_real) : x->bytes;
    r.width = x->row ? (size_t)x->row * sizeof(gcp_real) : x->bytes;
    return r;
}

static int gcpi_overlap(const gcpi_region *a, const gcpi_region *b)
{
    if (a->at >= b->end || b->at >= a->end) return 0;
    if (a->pitch != b->pitch) return 1;
    size_t shift = (b->at % a->pitch + a->pitch - a->at % a->pitch) % a->pitch;     /* from a's columns to b's */
    return shift < a->width || shift + b->width > a->pitch;
}

static int *gcpi_page(const gcpi_verifier *v, size_t at)
{
    return v->page + GCPI_MIN(at / v->page_bytes, (size_t)GCPI_PAGES);
}

static void gcpi_hold_region(gcpi_verifier *v, const gcpi_region *r)
{
    int *page = gcpi_page(v, r->at);
    v->held[r->item] = *r;
    v->next[r->item] = *page > 0 ? *page : -1;
    v->longest = GCPI_MAX(v->longest, r->end - r->at);
    *page = r->item + 1;
}

static void gcpi_lose(gcpi_verifier *v, int item)
{
    if (!v->next[item]) return;
    int *link = gcpi_page(v, v->held[item].at);
    while (*link != item + 1) link = &v->next[*link - 1];
    *link = v->next[item];
    v->next[item] = 0;
}

static int gcpi_verify_fail(gcpi_verifier *v, int i, const char *text, int item)
{
    char task[128], name[128];
    name[0] = 0;
    if (item >= 0) gcpi_item_name(v->p, item, name, sizeof name);
    snprintf(v->message, v->size, "line %d: %c %s: %s%s%s", v->list->opening + i + 1, v->list->at[i].letter,
             gcpi_task_name(v->p, &v->p->tasks[v->list->at[i].task], task, sizeof task), text,
             item >= 0 && v->p->items[item].kind == GCPI_GRADIENT_ITEM ? " gradient of " : item >= 0 ? " " : "", name);
    return 0;
}

static int gcpi_verify_order(gcpi_verifier *v, int i)
{
    int task = v->list->at[i].task, kind = v->list->at[i].letter;
    const gcpi_task *t = &v->p->tasks[task];
    if (t->kind == GCPI_TASK_OFFLOAD) v->far[t->item] = 1;
    if ((t->kind == GCPI_TASK_PREFETCH || t->kind == GCPI_TASK_ARRIVE) && !v->far[t->item])
        return gcpi_verify_fail(v, i, "has no earlier copy to far memory (O)", -1);
    if (t->kind >= GCPI_TASK_OFFLOAD)
        return gcpi_alone(v->p, t->item) || gcpi_verify_fail(v, i, "shares its bytes with another tensor", -1);
    if (kind == 'F' && v->done[task]) return gcpi_verify_fail(v, i, "runs forward a second time", -1);
    if (kind == 'F' && task > 0 && !v->done[task - 1])
        return gcpi_verify_fail(v, i, "runs before the forward op that precedes it", -1);
    for (int k = 0; kind == 'R' && k < t->count; k++) {
        const gcpi_operand *o = &v->p->operands[t->operands + k];
        if (o->mode == GCPI_READ && v->updated[v->p->items[o->item].root])
            return gcpi_verify_fail(v, i, "runs again after the update of", o->item);
        if (o->mode != GCPI_READ && v->p->items[o->item].kept)
            return gcpi_verify_fail(v, i, "would recompute the kept", o->item);
    }
    if (t->kind == GCPI_TASK_UPDATE) v->updated[v->p->items[v->p->operands[t->operands].item].tensor] = 1;
    if (kind == 'R' && (!v->done[task] || t->once))
        return gcpi_verify_fail(v, i, t->once ? "has side effects and may not run again" : "runs again before it ran",
                                -1);
    if (task >= v->p->forward) {
        if (task != v->backward_next)
            return gcpi_verify_fail(v, i,
                                    v->done[task]                   ? "runs a second time"
                                    : t->kind == GCPI_TASK_UPDATE ? "is out of order (U " GCPI_LIST_FUSED
                                                                    " opens a list of fused updates)"
                                                                  : "is out of order",
                                    -1);
        if (task == v->p->forward && v->p->forward && !v->done[v->p->forward - 1])
            return gcpi_verify_fail(v, i, "runs before the forward pass is complete", -1);
        v->backward_next++;
    }
    v->done[task] = 1;
    return 1;
}

/* loses what writing r destroys, also its own older value */
static void gcpi_forget(gcpi_verifier *v, const gcpi_region *r)
{
    if (r->item >= 0) gcpi_lose(v, r->item);
    for (int *page = gcpi_page(v, r->at - GCPI_MIN(r->at, v->longest)); page <= gcpi_page(v, r->end); page++)
        for (int *link = page; *link > 0;) {
            int item = *link - 1;
            if (!gcpi_overlap(&v->held[item], r)) { link = &v->next[item]; continue; }
            *link = v->next[item];
            v->next[item] = 0;
        }
}

/* An alias writes only the bytes that do not come from an operand that lies there already. */
static void gcpi_forget_copied(gcpi_verifier *v, const gcpi_task *t, int n, const gcpi_region *out)
{
    const gcpi_item *items = v->p->items, *y = &items[out->item];
    size_t column = 0;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &v->p->operands[t->operands + k];
        const gcpi_item *x = &items[o->item];
        gcpi_region part = *out;
        if (o->mode != GCPI_READ || (t->kind == GCPI_TASK_BACKWARD && x->kind != GCPI_GRADIENT_ITEM)) continue;
        if (t->concat) { part.at += column; part.width = (size_t)x->row * sizeof(gcp_real); column += part.width; }
        if (x->root == y->root && (size_t)v->placed[n + k].offset - x->offset == out->at - y->offset) continue;
        gcpi_forget(v, &part);
    }
    gcpi_lose(v, out->item);
}

/* Whether operands lie in the slab, and what the instruction reads is there. */
static int gcpi_verify_reads(gcpi_verifier *v, int i, int n, size_t slab)
{
    const gcpi_problem *p = v->p;
    const gcpi_task *t = &p->tasks[v->list->at[i].task];
    const gcpi_operand *o = &p->operands[t->operands];
    for (int k = 0; k < t->count; k++) {
        if (v->placed[n + k].offset < 0 && t->kind >= GCPI_TASK_OFFLOAD)
            return gcpi_verify_fail(v, i, "reads a value that is not in the slab:", o[k].item);
        if (v->placed[n + k].offset < 0) continue;
        gcpi_region r = gcpi_region_of(p, o[k].item, (size_t)v->placed[n + k].offset);
        if (r.end > slab || r.at < p->numbers)
            return gcpi_verify_fail(v, i, "has an operand outside the slab:", o[k].item);
        int here = o[k].mode == GCPI_WRITE || o[k].mode == GCPI_ALIAS;     /* made by this instruction */
        for (int m = 0; m < k; m++)
            here |= o[k].mode == GCPI_ADD && o[m].item == o[k].item && o[m].mode != GCPI_READ &&
                    v->placed[n + m].offset == v->placed[n + k].offset;
        if (here) continue;
        if (!v->next[o[k].item] || v->held[o[k].item].at != r.at)
            return gcpi_verify_fail(v, i, "reads a value that is not in the slab:", o[k].item);
    }
    return 1;
}

static int gcpi_verify_instruction(gcpi_verifier *v, int i, int n, size_t slab)
{
    const gcpi_problem *p = v->p;
    const gcpi_task *t = &p->tasks[v->list->at[i].task];
    const gcpi_operand *o = &p->operands[t->operands];
    gcpi_region work;
    if (!gcpi_verify_reads(v, i, n, slab)) return 0;
    memset(&work, 0, sizeof work);
    work.at = gcpi_front(p);
    work.end = work.at + t->workspace;
    work.pitch = work.width = t->workspace;
    work.item = -1;
    for (int k = 0; t->workspace && k < t->count; k++) {
        if (v->placed[n + k].offset < 0) continue;
        gcpi_region r = gcpi_region_of(p, o[k].item, (size_t)v->placed[n + k].offset);
        if (r.at < work.end) return gcpi_verify_fail(v, i, "has a workspace that overlaps", o[k].item);
    }
    if (t->workspace) gcpi_forget(v, &work);
    for (int k = 0; k < t->count; k++) {
        if (v->placed[n + k].offset < 0 || o[k].mode == GCPI_READ) continue;
        gcpi_region r = gcpi_region_of(p, o[k].item, (size_t)v->placed[n + k].offset);
        for (int m = 0; m < t->count; m++) {
            if (m == k || v->placed[n + m].offset < 0 || o[k].mode == GCPI_ALIAS || o[m].mode == GCPI_ALIAS) continue;
            gcpi_region s = gcpi_region_of(p, o[m].item, (size_t)v->placed[n + m].offset);
            if ((o[m].item == o[k].item && t->kind != GCPI_TASK_MOVE) || !gcpi_overlap(&r, &s)) continue;
            if (o[m].mode != GCPI_READ || s.at != r.at || s.end != r.end || k != t->over ||
                (m != t->under[0] && m != t->under[1]))
                return gcpi_verify_fail(v, i, "overwrites its own operand", o[m].item);
        }
        if (o[k].mode == GCPI_ALIAS) gcpi_forget_copied(v, t, n, &r);
        else gcpi_forget(v, &r);
        gcpi_hold_region(v, &r);
    }
    return 1;
}

/* Whether every task has run, and what must last is there. */
static int gcpi_verify_end(gcpi_verifier *v)
{
    const gcpi_problem *p = v->p;
    char name[128];
    for (int i = 0; i < p->task_count; i++) {
        if (v->done[i]) continue;
        snprintf(v->message, v->size, "%c %s is missing", gcpi_letters[p->tasks[i].kind],
                 gcpi_task_name(p, &p->tasks[i], name, sizeof name));
        return 0;
    }
    for (int i = 0; i < p->item_count; i++) {
        int pinned = p->items[i].active && p->items[i].pinned && p->items[p->items[i].root].kind != GCPI_STATE_ITEM;
        if (pinned && !v->next[i]) return gcpi_verify_fail(v, (int)v->list->count - 1, "at the end there is no", i);
    }
    return 1;
}

static int gcpi_verify(const gcpi_problem *p, const gcpi_list *list, const gcpi_placed *placed, size_t slab,
                       char *message, size_t size, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_verifier v;
    int n = 0, ok = 1, initial = 0;
    memset(&v, 0, sizeof v);
    v.p = p; v.list = list; v.placed = placed; v.message = message; v.size = size;
    v.page_bytes = slab / GCPI_PAGES + 1;
    v.held = GCPI_SCRATCH(a, gcpi_region, p->item_count);
    v.next = GCPI_SCRATCH(a, int, p->item_count);
    v.page = GCPI_SCRATCH(a, int, GCPI_PAGES + 1);
    v.done = GCPI_SCRATCH(a, unsigned char, p->task_count + 1);
    v.updated = GCPI_SCRATCH(a, unsigned char, p->item_count);
    v.far = GCPI_SCRATCH(a, unsigned char, p->tensors);
    if (!v.held || !v.next || !v.page || !v.done || !v.updated || !v.far) {
        *message = 0;                                  /* no message: the arena is too small, which its owner reports */
        return 0;
    }
    v.backward_next = p->forward;
    for (int i = 0; i < (int)list->count; i++)         /* inputs and lasting gradients are there from the start */
        for (int k = 0; k < p->tasks[list->at[i].task].count; k++, initial++) {
            int item = p->operands[p->tasks[list->at[i].task].operands + k].item;
            if (p->items[item].pinned != GCPI_PINNED_ALWAYS || placed[initial].offset < 0 || v.next[item]) continue;
            gcpi_region r = gcpi_region_of(p, item, (size_t)placed[initial].offset);
            gcpi_hold_region(&v, &r);
        }
    for (int i = 0; ok && i < (int)list->count; i++) {
        ok = gcpi_verify_order(&v, i) && gcpi_verify_instruction(&v, i, n, slab);
        n += p->tasks[list->at[i].task].count;
    }
    ok = ok && gcpi_verify_end(&v);
    a->scratch = scratch;
    return ok;
}

/* search: a request in, an answer out */

/* ==== src/search/timeline.h ==== */

/* When instructions run: computing, and a link to far memory. */

/* Far memory. One link copies values away and back, in the order of the list, while tasks compute. */
/* at, end: in the slab (end 0: no copy); back: it copies into the slab */
typedef struct gcpi_transfer { size_t at, end; int item, back; double done; } gcpi_transfer;

/* Whether a task waits for a copy: one of the same value, one out of bytes that it writes, or one into bytes that it
   touches. placed: where its operands lie; NULL: items are compared instead. */
static int gcpi_meets(const gcpi_problem *p, const gcpi_task *t, const gcpi_placed *placed, const gcpi_transfer *f)
{
    int meets = f->end && ((t->kind >= GCPI_TASK_OFFLOAD && t->item == f->item) ||
                           (placed && t->workspace && f->at < gcpi_front(p) + t->workspace));
    for (int k = 0; f->end && k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        if (o->mode == GCPI_READ && !f->back) continue;
        if (!placed) { meets |= o->item == f->item; continue; }
        size_t at = (size_t)placed[k].offset;
        meets |= placed[k].offset >= 0 && at < f->end && f->at < at + p->items[o->item].bytes;
    }
    return meets;
}

/* When an instruction runs, in seconds from the beginning of the step. */
typedef struct gcpi_time { double begin, end; } gcpi_time;

/* Seconds of a list on two streams, computing and the link. A copy begins when it is issued and the link is free; a
   task that meets a copy (gcpi_meets) waits for it. Without copy_start, computing waits for every copy. measured: each
   instruction's seconds, or 0 for the cost model's (NULL: of all); spans: NULL, or where each one's goes. */
static double gcpi_timeline(const gcpi_problem *p, const gcpi_list *list, const gcpi_placed *placed,
                            const double *measured, gcpi_time *spans)
{
    gcpi_transfer flying[GCP_COPIES];
    double now = 0, link = 0;
    unsigned first = 0, next = 0;      /* flying, modulo GCP_COPIES: the link is done with the first of them first */
    int at_once = !gcpi_is_graph(p) && !p->target.copy_start;
    memset(flying, 0, sizeof flying);
    for (ptrdiff_t i = 0, n = 0; i < list->count; i++) {
        const gcpi_task *t = &p->tasks[list->at[i].task];
        int copies = gcpi_copies(t);
        int full = copies && next - first == GCP_COPIES;
        for (; first < next && (full || flying[first % GCP_COPIES].done <= now); first++, full = 0)
            now = GCPI_MAX(now, flying[first % GCP_COPIES].done);
        for (unsigned f = first; f < next; f++)
            if (gcpi_meets(p, t, placed ? placed + n : NULL, &flying[f % GCP_COPIES])) {
                now = flying[f % GCP_COPIES].done;
                first = f + 1;
            }
        double begin = copies ? GCPI_MAX(now, link) : now,
               seconds = t->kind == GCPI_TASK_ARRIVE       ? 0
                         : measured && measured[i] > 0     ? measured[i]
                         : copies ? (double)p->items[t->item].bytes / p->target.far_bytes_per_second
                                  : t->seconds;
        if (spans) { spans[i].begin = begin; spans[i].end = begin + seconds; }
        if (copies) {
            gcpi_transfer *f = &flying[next++ % GCP_COPIES];
            link = f->done = begin + seconds;
            f->at = placed ? (size_t)placed[n].offset : 0; f->end = f->at + p->items[t->item].bytes;
            f->item = t->item; f->back = t->kind == GCPI_TASK_PREFETCH;
            if (at_once) now = link;
        } else now += seconds;
        n += t->count;
    }
    return now;
}

/* ==== src/search/model.h ==== */

/* What searches see of a problem: forward values only, in arrays. The bytes of gradients, inputs and workspace depend
   on where backward stands, but not on what is kept; they are summed up once. An order is a short form of a list: task,
   or ~task where it runs again. One pass from its end finds its peak, exactly that of gcpi_lives (lives.h), and
   removes runs that nobody reads. */

typedef struct gcpi_model {
    const gcpi_problem *p;
    int values, groups, *value_of;    /* value_of: per item, -1: not a forward value */
    int *item, *group, *producer;     /* per value */
    /* per value: the task that copies it back, or -1; the task before it copies away, the one after it waits */
    int *fetch;
    size_t *bytes;                    /* per group, rounded to the target's align */
    int *read, *read_first, *written, *written_first;      /* values, per task: GCPI_READS and GCPI_WRITES */
    /* per task: value that may be written in place, and (two each) those that it may lie on; -1: none */
    int *over, *under;
    /* per task: the first update of a weight that it reads; it may run again before that, but not after */
    int *until;
    /* per value: lives to the end; per task: may run again; writes bytes that other items share */
    unsigned char *lasting, *again, *shares;
    /* per task: bytes other than forward values: while it runs; while others run again before it; its own workspace */
    size_t *during, *before, *workspace;
    double seconds;                   /* of keep-all */
    /* of the pass: per value, whether it is live; per group, right after these, how many of its values are */
    unsigned char *live; uint16_t *members;
    size_t state_bytes;               /* of both */
} gcpi_model;

typedef struct gcpi_order { int *at, count, capacity, peak_at, valid; size_t peak; double seconds; } gcpi_order;
static int gcpi_code_task(const gcpi_order *o, int i) { return o->at[i] < 0 ? ~o->at[i] : o->at[i]; }

/* Whether running task again changes bytes of value v, which another task made. A view changes only what it copies. */
static int gcpi_clash(const gcpi_model *m, int task, int v)
{
    const gcpi_problem *p = m->p;
    const gcpi_task *t = &p->tasks[task];
    const gcpi_operand *o = &p->operands[t->operands];
    const gcpi_item *x = &p->items[m->item[v]];
    gcpi_region other = gcpi_region_of(p, m->item[v], x->offset);
    int clash = 0;
    size_t column = 0;
    for (int k = 0; k < t->count; k++) if (o[k].item == m->item[v]) return 0;
    for (int k = 0; k < t->count; k++) {
        if (o[k].mode == GCPI_READ || p->items[o[k].item].root != x->root) continue;
        gcpi_region mine = gcpi_region_of(p, o[k].item, p->items[o[k].item].offset), part = mine;
        if (o[k].mode != GCPI_ALIAS) clash |= gcpi_overlap(&mine, &other);
        for (int i = 0; o[k].mode == GCPI_ALIAS && i < t->count; i++) {
            if (o[i].mode != GCPI_READ) continue;
            if (t->concat) {
                part.at = mine.at + column;
                part.width = (size_t)p->items[o[i].item].row * sizeof(gcp_real);
                column += part.width;
            }
            if (p->items[o[i].item].root != x->root) clash |= gcpi_overlap(&part, &other);
        }
    }
    return clash;
}

static void gcpi_model_task(gcpi_model *m, int task, int *reads, int *writes)
{
    const gcpi_problem *p = m->p;
    const gcpi_task *t = &p->tasks[task];
    const gcpi_operand *o = &p->operands[t->operands];
    m->read_first[task] = *reads; m->written_first[task] = *writes;
    m->over[task] = m->under[2 * task] = m->under[2 * task + 1] = -1;
    m->again[task] = task < p->forward && !t->once;
    m->until[task] = p->task_count;
    for (int k = 0; k < t->count; k++) {
        int v = m->value_of[o[k].item];
        if (o[k].mode != GCPI_READ && p->items[o[k].item].stored) m->again[task] = 0;
        if (v < 0) continue;
        if (o[k].mode == GCPI_READ || o[k].mode == GCPI_ADD) m->read[(*reads)++] = v;
        if (o[k].mode == GCPI_READ) continue;
        m->written[(*writes)++] = v;
        m->shares[task] |= p->items[p->items[o[k].item].root].next >= 0 && !t->free;
    }
    if (t->over < 0 || m->value_of[o[t->over].item] < 0 || !gcpi_whole(p, o[t->over].item)) return;
    m->over[task] = m->value_of[o[t->over].item];
    for (int side = 0; side < 2; side++) {
        int x = t->under[side] < 0 ? -1 : o[t->under[side]].item, pinned = 0;
        if (x < 0 || m->value_of[x] < 0 || !gcpi_whole(p, x) ||
            p->items[p->items[x].root].bytes != p->items[p->items[o[t->over].item].root].bytes)
            continue;
        for (int i = p->items[x].root; i >= 0; i = p->items[i].next) pinned |= p->items[i].pinned;
        if (!pinned && p->items[x].root != p->items[o[t->over].item].root) m->under[2 * task + side] = m->value_of[x];
    }
}

/* Bytes of what no choice changes, from the lifetimes of keep-all. */
static int gcpi_model_fixed(gcpi_model *m, gcp_arena *a)
{
    const gcpi_problem *p = m->p;
    ptrdiff_t scratch = a->scratch;
    gcpi_list list;
    gcpi_lives lives;
    size_t *live, now = 0, across = 0;
    memset(&list, 0, sizeof list);
    list.count = p->task_count;
    list.at = GCPI_SCRATCH(a, gcpi_instruction, p->task_count);
    for (int i = 0; list.at && i < p->task_count; i++) {
        list.at[i].task = i;
        list.at[i].letter = gcpi_letters[p->tasks[i].kind];
    }
    if (!list.at || !gcpi_lives_make(p, &list, &lives, &live, a)) return 0;
    for (int b = 0; b < lives.buffer_count; b++) {
        const gcpi_buffer *x = &lives.buffers[b];
        if (x->joined >= 0 || p->items[x->root].kind == GCPI_FORWARD_ITEM) continue;
        m->during[x->first] += gcpi_round(x->bytes, p->target.align);
        m->during[x->last + 1] -= gcpi_round(x->bytes, p->target.align);        /* may wrap; the sums do not */
        if (x->first < x->last) {
            m->before[x->first + 1] += gcpi_round(x->bytes, p->target.align);
            m->before[x->last + 1] -= gcpi_round(x->bytes, p->target.align);
        }
        if (x->first == 0 && x->first < x->last) {
            m->before[0] += gcpi_round(x->bytes, p->target.align);
            m->before[1] -= gcpi_round(x->bytes, p->target.align);
        }
    }
    for (int i = 0; i < p->task_count; i++) {
        m->workspace[i] = gcpi_round(p->tasks[i].workspace, p->target.align);
        now += m->during[i]; across += m->before[i];
        m->during[i] = now + m->workspace[i];
        m->before[i] = across;
        m->seconds += p->tasks[i].seconds;
    }
    a->scratch = scratch;
    return 1;
}

static int gcpi_model_values(gcpi_model *m, gcp_arena *a)
{
    const gcpi_problem *p = m->p;
    m->value_of = GCPI_SCRATCH(a, int, p->item_count);
    m->item = GCPI_SCRATCH(a, int, p->item_count);
    m->group = GCPI_SCRATCH(a, int, p->item_count);
    m->producer = GCPI_SCRATCH(a, int, p->item_count);
    m->fetch = GCPI_SCRATCH(a, int, p->item_count);
    m->bytes = GCPI_SCRATCH(a, size_t, p->item_count);
    m->lasting = GCPI_SCRATCH(a, unsigned char, p->item_count);
    int *group_of = GCPI_SCRATCH(a, int, p->item_count);
    if (!m->value_of || !m->item || !m->group || !m->producer || !m->fetch || !m->bytes || !m->lasting || !group_of)
        return 0;
    for (int i = 0; i < p->item_count; i++) {
        const gcpi_item *x = &p->items[i], *root = &p->items[x->root];
        m->value_of[i] = -1;
        if (!x->active || x->kind != GCPI_FORWARD_ITEM || root->kind != GCPI_FORWARD_ITEM || x->producer < 0) continue;
        if (!group_of[x->root]) {
            m->bytes[m->groups] = gcpi_round(root->bytes, p->target.align);
            group_of[x->root] = ++m->groups;
        }
        m->group[m->values] = group_of[x->root] - 1;
        m->producer[m->values] = x->producer;
        m->fetch[m->values] = -1;
        m->item[m->values] = i;
        m->lasting[m->values] = x->pinned != 0;
        m->value_of[i] = m->values++;
    }
    return 1;
}

static void gcpi_model_updates(gcpi_model *m, int *updated)          /* updated: per item, scratch of zeros */
{
    const gcpi_problem *p = m->p;
    for (int t = p->forward; t < p->task_count; t++)
        if (p->tasks[t].kind == GCPI_TASK_UPDATE) updated[p->items[p->operands[p->tasks[t].operands].item].tensor] = t;
    for (int f = 0; f < p->forward; f++)
        for (int k = 0; k < p->tasks[f].count; k++) {
            int item = p->operands[p->tasks[f].operands + k].item;
            if (updated[p->items[item].root]) m->until[f] = GCPI_MIN(m->until[f], updated[p->items[item].root]);
        }
}

/* All in scratch of a. 0: not enough. */
static int gcpi_model_make(gcpi_model *m, const gcpi_problem *p, gcp_arena *a)
{
    memset(m, 0, sizeof *m);
    m->p = p;
    int ok = gcpi_model_values(m, a), reads = 0, writes = 0, all = p->task_count + p->far_count;
    m->read = GCPI_SCRATCH(a, int, p->operand_count + 1);
    m->written = GCPI_SCRATCH(a, int, p->operand_count + 1);
    m->read_first = GCPI_SCRATCH(a, int, all + 1);
    m->written_first = GCPI_SCRATCH(a, int, all + 1);
    m->shares = GCPI_SCRATCH(a, unsigned char, all + 1);
    m->over = GCPI_SCRATCH(a, int, all + 1);
    m->under = GCPI_SCRATCH(a, int, 2 * all + 2);
    m->again = GCPI_SCRATCH(a, unsigned char, all + 1);
    m->until = GCPI_SCRATCH(a, int, all + 1);
    int *updated = GCPI_SCRATCH(a, int, p->item_count + 1);
    m->during = GCPI_SCRATCH(a, size_t, all + 2);
    m->before = GCPI_SCRATCH(a, size_t, all + 2);
    m->workspace = GCPI_SCRATCH(a, size_t, all + 2);
    m->state_bytes = (size_t)(m->values + (m->values & 1)) + (size_t)m->groups * sizeof *m->members;
    m->live = GCPI_SCRATCH(a, unsigned char, (ptrdiff_t)m->state_bytes);
    if (!ok || !m->read || !m->written || !m->read_first || !m->written_first || !m->shares || !m->until || !updated ||
        !m->over || !m->under || !m->again || !m->during || !m->before || !m->workspace || !m->live)
        return 0;
    m->members = (uint16_t *)(void *)(m->live + m->values + (m->values & 1));
    for (int t = 0; t < all; t++) gcpi_model_task(m, t, &reads, &writes);
    m->read_first[all] = reads; m->written_first[all] = writes;
    for (int t = p->task_count; t < all; t++)
        if (p->tasks[t].kind == GCPI_TASK_PREFETCH && gcpi_alone(p, p->tasks[t].item))
            m->fetch[m->written[m->written_first[t]]] = t;
    gcpi_model_updates(m, updated);
    return gcpi_model_fixed(m, a);
}

#define GCPI_READS(m, t, i) (int i = (m)->read_first[t]; i < (m)->read_first[(t) + 1]; i++)
#define GCPI_WRITES(m, t, i) (int i = (m)->written_first[t]; i < (m)->written_first[(t) + 1]; i++)

static int gcpi_is_read(const gcpi_model *m, int task)       /* whether a later instruction reads what it writes */
{
    for GCPI_WRITES(m, task, i) if (m->live[m->written[i]]) return 1;
    return 0;
}

static size_t gcpi_revive(const gcpi_model *m, int value)    /* the bytes that this brings to life */
{
    if (m->live[value]) return 0;
    m->live[value] = 1;
    return m->members[m->group[value]]++ ? 0 : m->bytes[m->group[value]];
}

static int gcpi_clear_of(const gcpi_model *m, int task)      /* no live value is lost when task runs */
{
    for GCPI_WRITES(m, task, k)
        for (int i = m->p->items[m->item[m->written[k]]].root; i >= 0; i = m->p->items[i].next)
            if (m->value_of[i] >= 0 && m->live[m->value_of[i]] && gcpi_clash(m, task, m->value_of[i])) return 0;
    return 1;
}

/* One instruction of the pass: makes *live after it *live before it; returns the live forward bytes while it runs. */
static size_t gcpi_pass_task(const gcpi_model *m, int task, size_t *live)
{
    int dies = 0, under = m->over[task] < 0 ? 0 : 2, over = m->over[task];
    size_t now;
    for GCPI_WRITES(m, task, i) *live += gcpi_revive(m, m->written[i]);
    for (int side = 0; side < under; side++) {
        int x = m->under[2 * task + side];
        if (x >= 0 && m->members[m->group[x]] == 0) dies = 1;
    }
    for GCPI_READS(m, task, i) *live += gcpi_revive(m, m->read[i]);
    now = *live;
    for GCPI_WRITES(m, task, i) {
        int v = m->written[i];
        m->live[v] = 0;
        if (--m->members[m->group[v]] == 0) *live -= m->bytes[m->group[v]];
    }
    if (dies && m->members[m->group[over]] == 0) now -= m->bytes[m->group[over]];
    return now;
}

/* The pass at some position: live forward bytes; the next task that does not run again. */
typedef struct gcpi_pass { size_t live; int next, valid; } gcpi_pass;
#define GCPI_DEAD SIZE_MAX

/* One entry of an order: the live bytes while it runs, or GCPI_DEAD for a run again that nobody reads. */
static size_t gcpi_pass_code(const gcpi_model *m, int code, gcpi_pass *pass)
{
    int task = code < 0 ? ~code : code;
    if (code >= 0 && task < m->p->task_count) {
        pass->next = task;
        return gcpi_pass_task(m, task, &pass->live) + m->during[task];
    }
    if (code < 0 && !gcpi_is_read(m, task)) return GCPI_DEAD;
    size_t now = gcpi_pass_task(m, task, &pass->live) + m->before[pass->next] + m->workspace[task];
    pass->valid &= pass->next <= m->until[task];
    if (m->shares[task] && pass->valid) pass->valid = gcpi_clear_of(m, task);
    return now;
}

/* Sets peak, peak_at, seconds and valid of an order, and removes runs that nobody reads. profile: NULL, or the live
   bytes of each instruction. */
static void gcpi_simulate(const gcpi_model *m, gcpi_order *o, size_t *profile)
{
    gcpi_pass pass = { 0, m->p->task_count - 1, 1 };
    int kept = o->count;
    memset(m->live, 0, m->state_bytes);
    for (int v = 0; v < m->values; v++) if (m->lasting[v]) pass.live += gcpi_revive(m, v);
    o->peak = 0; o->seconds = 0;
    for (int i = o->count - 1; i >= 0; i--) {
        size_t now = gcpi_pass_code(m, o->at[i], &pass);
        if (now == GCPI_DEAD) continue;
        o->at[--kept] = o->at[i];
        if (profile) profile[kept] = now;
        o->seconds += m->p->tasks[gcpi_code_task(o, i)].seconds;
        if (now > o->peak) { o->peak = now; o->peak_at = kept; }
    }
    o->valid = pass.valid;
    o->count -= kept;
    memmove(o->at, o->at + kept, (size_t)o->count * sizeof *o->at);
    if (profile) memmove(profile, profile + kept, (size_t)o->count * sizeof *profile);
    o->peak_at -= kept;
}

static int gcpi_order_make(gcpi_order *o, int capacity, gcp_arena *a)
{
    memset(o, 0, sizeof *o);
    o->capacity = capacity;
    return (o->at = GCPI_SCRATCH(a, int, capacity + 1)) != NULL;
}

static void gcpi_order_copy(gcpi_order *to, const gcpi_order *from)
{
    int *at = to->at, capacity = to->capacity;
    memcpy(at, from->at, (size_t)from->count * sizeof *at);
    *to = *from;
    to->at = at; to->capacity = capacity;
}

/* ==== src/search/planner.h ==== */

/* What policies and searches share. The current choice, the best order so far, candidates. */

/* An order whose copies are being placed. A position is an index into the order, or its end. */
typedef struct gcpi_far {
    gcpi_order full;                  /* with all copies */
    size_t *live, *fall; double *clock;       /* per position: bytes while it runs; how they fall; when it begins */
    /* positions, per value: of its first run; of the last reader of what that made; of the next run or copy back; of
       the first copy back; of the wait for the copy away; -1: none */
    int *made, *read, *end, *back,
        *wait;
    /* linked lists per position: values to wait for; positions of the copies back that are issued there */
    int *waits, *next_wait, *backs, *next_back;
} gcpi_far;

/* seconds of the order HUGE_VAL: there is no candidate */
typedef struct gcpi_candidate { gcpi_order order; const char *method; gcpi_fit fit; } gcpi_candidate;

/* .progress of a call, and what was said last. A portion is the share of the call that something goes through. */
typedef struct gcpi_portion { double from, to; } gcpi_portion;
typedef struct gcpi_watch { gcp_progress_fn ask; void *context; gcp_progress now; int stopped; } gcpi_watch;

/* A request: what is looked for. Nothing changes it while it is answered. */
typedef struct gcpi_request {
    gcpi_problem *p;                  /* searches price its copies to far memory (gcpi_search_by) */
    const gcp_plan_opts *opts;        /* the numbers of policies: .segments, .checkpoints, ... */
    gcp_policy policy; gcp_effort effort;
    size_t limit;                     /* most bytes of the slab; 0: not GCP_POLICY_BUDGET */
    size_t far; int far_only;         /* bytes of far memory; nothing runs again */
    double known;                     /* seconds of a plan for another choice of views: find a faster one. 0: none */
    /* by_peak: an order's peak stands for its slab; no_least: the least budget is not wanted where nothing fits; rough:
       what the first search finds is enough; no_exact: for tests */
    int by_peak, no_least, rough, no_exact;
    gcpi_watch *watch; gcpi_portion portion;
} gcpi_request;

/* Where nothing fits: the smallest slab found, 0: none; the task at its peak; bytes there of weight gradients, and of
   what grows with the batch. */
typedef struct gcpi_lowest { size_t slab; int task; size_t gradients, batch; } gcpi_lowest;

/* The answer. order: in scratch, NULL: nothing fits; keep_all: slab of keep-all, SIZE_MAX: not known. coarse: some part
   of the search did not fit in the arena. */
typedef struct gcpi_answer {
    const gcpi_order *order; gcpi_fit fit; const char *method;
    double seconds, bound;            /* of the order; lower bound of any order's */
    int segments, coarse;
    size_t keep_all;
    gcpi_lowest lowest;
} gcpi_answer;

/* How a candidate is judged: by its layout; by its live bytes, which stand for its slab; by live bytes for now: the
   fastest becomes `loose`, to be laid out later. */
typedef enum gcpi_judgement { GCPI_BY_LAYOUT, GCPI_BY_PEAK, GCPI_LAID_OUT_LATER } gcpi_judgement;

/* The search's own memory. */
typedef struct gcpi_planner {
    const gcpi_request *r;            /* that is being answered; in parts of a search, a part of the one asked */
    gcpi_problem *p; gcp_arena *a;
    gcpi_model m;
    gcpi_choice now, guide;           /* guide: that of the best order */
    gcpi_list list;                   /* the list of an order, reused */
    gcpi_order trial, best;           /* of the current choice; of least peak, then least time */
    int tries, policies_tried;        /* policies_tried: best is the least of them all */
    /* per forward task f: bytes that a cut after f keeps; bytes of its outputs that backward reads */
    size_t *crossing, *saved;
    int out_of_memory, coarse;
    gcpi_judgement judgement;
    double layout;                    /* layout work for each candidate */
    size_t front, keep_all;           /* bytes of the step's numbers; slab of keep-all */
    gcpi_candidate kept, loose;       /* the fastest whose slab fits; whose bytes fit, but not its slab */
    const char *method;               /* of the current candidate */
    gcpi_far far;                     /* where .far is given */
    double bound;
    gcpi_lowest lowest;
} gcpi_planner;

static int gcpi_choice_make(gcpi_planner *q, gcpi_choice *c)
{
    const gcpi_problem *p = q->p;
    int segments = p->tape->segment_count + 2 * p->forward + 4;
    c->store = GCPI_SCRATCH(q->a, unsigned char, p->item_count);
    c->segment = GCPI_SCRATCH(q->a, int, p->forward + 1);
    c->parent = GCPI_SCRATCH(q->a, int, segments);
    c->depth = GCPI_SCRATCH(q->a, int, segments);
    return c->store && c->segment && c->parent && c->depth;
}

static void gcpi_choice_copy(const gcpi_problem *p, gcpi_choice *to, const gcpi_choice *from)
{
    memcpy(to->store, from->store, (size_t)p->item_count);
    memcpy(to->segment, from->segment, (size_t)p->forward * sizeof *to->segment);
    memcpy(to->parent, from->parent, (size_t)from->segments * sizeof *to->parent);
    memcpy(to->depth, from->depth, (size_t)from->segments * sizeof *to->depth);
    to->segments = from->segments; to->replay = from->replay;
}

/* All tasks go into the root segment. Outputs of ops with side effects, kept tensors and .keep masks are stored. */
static void gcpi_choice_clear(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    gcpi_choice *c = &q->now;
    memset(c->store, GCPI_AUTO, (size_t)p->item_count);
    memset(c->segment, 0, (size_t)p->forward * sizeof *c->segment);
    c->parent[0] = c->depth[0] = 0;
    c->segments = 1; c->replay = 0;
    for (int i = 0; i < p->item_count; i++) if (p->items[i].stored) c->store[i] = GCPI_STORE;
}

static int gcpi_segment_add(gcpi_choice *c, int parent)
{
    c->parent[c->segments] = parent;
    c->depth[c->segments] = c->depth[parent] + 1;
    return c->segments++;
}

/* The order of a choice, with its peak and seconds. 0: it has more runs than there is room for, or q->out_of_memory. */
static int gcpi_order_of(gcpi_planner *q, const gcpi_choice *c, gcpi_order *o)
{
    o->count = o->valid = 0;
    if (!gcpi_schedule(q->p, c, &q->list, q->a)) { q->out_of_memory = 1; return 0; }
    if (q->list.count > q->list.capacity) return 0;
    for (ptrdiff_t i = 0; i < q->list.count; i++)
        o->at[o->count++] = q->list.at[i].letter == 'R' ? ~q->list.at[i].task : q->list.at[i].task;
    gcpi_simulate(&q->m, o, NULL);
    return 1;
}

static void gcpi_list_of(const gcpi_problem *p, const gcpi_order *o, gcpi_list *list)
{
    list->count = 0; list->seconds = list->rerun_flops = 0;
    for (int i = 0; i < o->count; i++) {
        int task = gcpi_code_task(o, i);
        gcpi_emit(list, o->at[i] < 0 && task < p->forward ? 'R' : gcpi_letters[p->tasks[task].kind], task,
                  &p->tasks[task]);
    }
}

/* The slab that an order needs after layout, SIZE_MAX where the arena is too small to tell; seconds of its moves. */
typedef struct gcpi_slab { size_t bytes; double moving; } gcpi_slab;
static gcpi_slab gcpi_order_slab(gcpi_planner *q, const gcpi_order *o, gcpi_fit fit)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_lives lives;
    gcpi_slab slab;
    size_t *live;
    gcpi_list_of(q->p, o, &q->list);
    const double still = q->list.seconds;
    slab.bytes = gcpi_arrange(q->p, &q->list, &lives, &live, fit, q->a);
    slab.moving = q->list.seconds - still;
    q->a->scratch = scratch;
    if (!slab.bytes) slab.bytes = SIZE_MAX;
    return slab;
}

/* The most live bytes that the limit allows: buffers count rounded up to align, but the slab ends at its last byte. */
static size_t gcpi_room(const gcpi_planner *q)
{
    const size_t align = q->p->target.align;
    return q->r->limit > q->front ? gcpi_round(GCPI_MIN(q->r->limit - q->front, SIZE_MAX - align), align) : 0;
}

static gcpi_portion gcpi_part_of(gcpi_portion whole, double from, double to)
{
    gcpi_portion part;
    part.from = whole.from + from * (whole.to - whole.from);
    part.to = whole.from + to * (whole.to - whole.from);
    return part;
}

/* Tells .progress that so much of a portion is done, where that is news. 1: it stopped the search. */
static int gcpi_stopped(const gcpi_planner *q, gcpi_portion portion, double done)
{
    gcpi_watch *w = q->r->watch;
    double share = portion.from + GCPI_MIN(1, done) * (portion.to - portion.from);
    double seconds = q->kept.order.seconds;
    int faster = seconds < HUGE_VAL && (w->now.seconds == 0 || seconds < w->now.seconds);
    if (!w->ask || w->stopped || (share < w->now.share + 0.002 && !faster)) return w->stopped;
    w->now.share = GCPI_MAX(w->now.share, share);
    if (faster) w->now.seconds = seconds;
    if (w->now.keep_all_seconds == 0) w->now.keep_all_seconds = q->m.seconds;
    return w->stopped = w->ask(w->context, &w->now) != 0;
}

/* ==== src/search/far.h ==== */

/* Placing copies to far memory. A search's order holds only the copies back, as runs of tasks that read nothing and
   whose seconds are a price. Here all copies get their positions: away (O) after the value's first run, waited for
   (A) when the link will have done it, back (P) as long before the reader as the link needs. Where the bytes within
   the limit do not allow that, computing waits. */
static int gcpi_far_make(gcpi_planner *q, int capacity)
{
    gcpi_far *f = &q->far;
    int **const places[] = { &f->waits, &f->backs, &f->next_back },
                **const values[] = { &f->made, &f->read, &f->end, &f->back, &f->wait, &f->next_wait };
    int ok = gcpi_order_make(&f->full, capacity, q->a);
    for (int i = 0; i < 3; i++) ok &= (*places[i] = GCPI_SCRATCH(q->a, int, capacity + 1)) != NULL;
    for (int i = 0; i < 6; i++) ok &= (*values[i] = GCPI_SCRATCH(q->a, int, q->m.values + 1)) != NULL;
    f->live = GCPI_SCRATCH(q->a, size_t, capacity + 1);
    f->fall = GCPI_SCRATCH(q->a, size_t, capacity + 1);
    f->clock = GCPI_SCRATCH(q->a, double, capacity + 1);
    return ok && f->live && f->fall && f->clock;
}

static double gcpi_far_seconds(const gcpi_planner *q, int v)
{
    return (double)q->p->items[q->m.item[v]].bytes / q->p->target.far_bytes_per_second;
}

static int gcpi_touches(const gcpi_model *m, int task, int v)
{
    int touches = 0;
    for GCPI_READS(m, task, i) touches |= m->read[i] == v;
    for GCPI_WRITES(m, task, i) touches |= m->written[i] == v;
    return touches;
}

/* Clock and positions of an order. Returns the bytes that far memory needs. */
static size_t gcpi_far_scan(gcpi_planner *q, const gcpi_order *o)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    size_t bytes = 0;
    for (int v = 0; v < m->values; v++) f->made[v] = f->read[v] = f->end[v] = f->back[v] = f->wait[v] = -1;
    f->clock[0] = 0;
    for (int i = 0; i <= o->count; i++) {
        f->waits[i] = f->backs[i] = -1;
        if (i == o->count) break;
        int task = gcpi_code_task(o, i), far = task >= q->p->task_count;
        f->clock[i + 1] = f->clock[i] + (far ? 0 : q->p->tasks[task].seconds);
        for GCPI_READS(m, task, k) if (f->end[m->read[k]] < 0) f->read[m->read[k]] = i;
        for GCPI_WRITES(m, task, k) {
            int v = m->written[k];
            if (far && f->back[v] < 0) { f->back[v] = i; bytes += m->bytes[m->group[v]]; }
            if (o->at[i] >= 0) f->made[v] = f->read[v] = i;
            else if (f->end[v] < 0) f->end[v] = i;
        }
    }
    return bytes;
}

/* A copy away: the value stays until the copy is done, or until its bytes are needed. *link: when the link is free. */
static void gcpi_far_away(gcpi_planner *q, const gcpi_order *o, int v, size_t limit, double *link)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    size_t bytes = m->bytes[m->group[v]];
    int w = f->read[v], task = gcpi_code_task(o, w),
        over = m->over[task] >= 0 && (m->under[2 * task] == v || m->under[2 * task + 1] == v);
    *link = GCPI_MAX(*link, f->clock[f->made[v] + 1]) + gcpi_far_seconds(q, v);
    int stays = !over || (f->clock[w] < *link && f->live[w] + bytes <= limit);
    if (over && stays) f->live[w] += bytes;            /* nobody works in place on it then */
    if (stays) for (w++; w < f->end[v] && f->clock[w] < *link && f->live[w] + bytes <= limit; w++) f->live[w] += bytes;
    double stall = *link - f->clock[w];
    for (int i = w; stall > 0 && i <= o->count; i++) f->clock[i] += stall;
    f->wait[v] = w;
    f->next_wait[v] = f->waits[w];
    f->waits[w] = v;
}

/* The copy back at position r of the order. *due: when the copy back after it needs the link. */
static void gcpi_far_back(gcpi_planner *q, const gcpi_order *o, int r, size_t limit, double *due)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    int v = m->written[m->written_first[gcpi_code_task(o, r)]], at = r;
    size_t bytes = m->bytes[m->group[v]];
    double start = GCPI_MIN(*due, f->clock[r]) - gcpi_far_seconds(q, v);
    while (at > f->wait[v] && f->clock[at] > start && f->live[at - 1] + bytes <= limit &&
           !gcpi_touches(m, gcpi_code_task(o, at - 1), v))
        f->live[--at] += bytes;
    *due = GCPI_MAX(start, f->clock[at]);
    f->next_back[r] = f->backs[at];
    f->backs[at] = r;
}

static int gcpi_far_emit(gcpi_planner *q, const gcpi_order *o)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    gcpi_order *out = &f->full;
    out->count = 0;
    if (o->count + 2 * m->values > out->capacity) return 0;
    for (int i = 0; i <= o->count; i++) {
        for (int v = f->waits[i]; v >= 0; v = f->next_wait[v]) out->at[out->count++] = m->fetch[v] + 1;
        for (int r = f->backs[i]; r >= 0; r = f->next_back[r]) out->at[out->count++] = o->at[r];
        if (i == o->count || gcpi_code_task(o, i) >= q->p->task_count) continue;
        out->at[out->count++] = o->at[i];
        for GCPI_WRITES(m, gcpi_code_task(o, i), k)
            if (o->at[i] >= 0 && f->back[m->written[k]] >= 0) out->at[out->count++] = m->fetch[m->written[k]] - 1;
    }
    return 1;
}

/* The order with its copies placed within the limit, judged by the timeline. An order without copies, or with placed
   ones, is returned as it is. NULL: the copies cannot be placed. */
static const gcpi_order *gcpi_far_place(gcpi_planner *q, gcpi_order *o, size_t limit)
{
    gcpi_far *f = &q->far;
    int copies = 0, placed = 0;
    double link = 0, due = HUGE_VAL;
    for (int i = 0; q->r->far && i < o->count; i++) {
        copies += gcpi_code_task(o, i) >= q->p->task_count;
        placed |= o->at[i] >= q->p->task_count;
    }
    if (!copies || placed) return o;
    gcpi_simulate(&q->m, o, f->live);
    if (!o->valid || gcpi_far_scan(q, o) > q->r->far) return NULL;
    for (int i = 0; i < o->count; i++)
        for
            GCPI_WRITES(&q->m, gcpi_code_task(o, i), k)
            if (o->at[i] >= 0 && f->back[q->m.written[k]] >= 0) gcpi_far_away(q, o, q->m.written[k], limit, &link);
    for (int i = o->count - 1; i >= 0; i--)
        if (gcpi_code_task(o, i) >= q->p->task_count) gcpi_far_back(q, o, i, limit, &due);
    if (!gcpi_far_emit(q, o)) return NULL;
    gcpi_simulate(&q->m, &f->full, NULL);
    gcpi_list_of(q->p, &f->full, &q->list);
    f->full.seconds = gcpi_timeline(q->p, &q->list, NULL, NULL, NULL);
    return &f->full;
}

/* Removes from an order what placing has put in. */
static void gcpi_far_strip(const gcpi_planner *q, gcpi_order *o)
{
    int kept = 0;
    for (int i = 0; i < o->count; i++) if (o->at[i] < q->p->task_count) o->at[kept++] = o->at[i];
    o->count = kept;
}

/* Whether value v idles longer than w does; of equals the first goes first. */
static int gcpi_far_longer(const gcpi_far *f, int v, int w)
{
    double a = f->clock[f->end[v]] - f->clock[f->read[v] + 1], b = f->clock[f->end[w]] - f->clock[f->read[w] + 1];
    return a > b || (a == b && v < w);
}

static void gcpi_far_sift(const gcpi_far *f, int *heap, int count, int i)
{
    int v = heap[i];
    for (int child; (child = 2 * i + 1) < count; i = child) {
        if (child + 1 < count && gcpi_far_longer(f, heap[child + 1], heap[child])) child++;
        if (!gcpi_far_longer(f, heap[child], v)) break;
        heap[i] = heap[child];
    }
    heap[i] = v;
}

/* A heap of the values that idle across position `at` and can be copied away, the longest wait first. */
static int gcpi_far_idle(gcpi_planner *q, const gcpi_order *o, int at, int *heap)
{
    const gcpi_model *m = &q->m;
    gcpi_far *f = &q->far;
    int count = 0;
    for (int v = 0; v < m->values; v++) f->read[v] = f->end[v] = -1;
    for (int i = 0; i <= at; i++) {
        for GCPI_READS(m, gcpi_code_task(o, i), k) f->read[m->read[k]] = i;
        for GCPI_WRITES(m, gcpi_code_task(o, i), k) f->read[m->written[k]] = i;
    }
    for (int i = o->count - 1; i > at; i--) {
        for GCPI_WRITES(m, gcpi_code_task(o, i), k) f->end[m->written[k]] = -1;
        for GCPI_READS(m, gcpi_code_task(o, i), k) f->end[m->read[k]] = i;
    }
    for (int v = 0; v < m->values; v++)
        if (m->fetch[v] >= 0 && f->back[v] < 0 && f->read[v] >= 0 && f->read[v] < at && f->end[v] > at &&
            f->clock[f->end[v]] > f->clock[f->read[v] + 1])
            heap[count++] = v;
    for (int i = count / 2 - 1; i >= 0; i--) gcpi_far_sift(f, heap, count, i);
    return count;
}

/* Values that idle across position `at` are copied away meanwhile, until the bytes there are within room. *left: free
   bytes of far memory. */
static int gcpi_far_relieve_at(gcpi_planner *q, const gcpi_order *o, int at, size_t room, size_t *left)
{
    gcpi_far *f = &q->far;
    int *heap = f->next_back, count = gcpi_far_idle(q, o, at, heap);
    size_t live = f->live[at], fallen = 0;
    while (live > room && count) {
        int v = heap[0], reader = f->end[v];
        size_t bytes = q->m.bytes[q->m.group[v]];
        heap[0] = heap[--count];
        if (count) gcpi_far_sift(f, heap, count, 0);
        if (bytes > *left) continue;
        *left -= bytes; live -= bytes;
        f->fall[f->read[v] + 1] += bytes;
        f->fall[reader] -= bytes;                     /* may wrap; the sums do not */
        f->back[v] = reader;
        f->next_wait[v] = f->waits[reader];
        f->waits[reader] = v;
    }
    for (int i = 0; i <= o->count; i++) {
        fallen += f->fall[i];
        f->live[i] -= fallen;
        f->fall[i] = 0;
    }
    return live <= room;
}

/* Adds copies back to the order until its bytes are within room; 0: they do not get there. */
static int gcpi_far_relieve(gcpi_planner *q, gcpi_order *o, size_t room)
{
    gcpi_far *f = &q->far;
    size_t used, left;
    gcpi_simulate(&q->m, o, f->live);
    if (!o->valid || (used = gcpi_far_scan(q, o)) > q->r->far) return 0;
    left = q->r->far - used;
    for (;;) {
        int at = 0;
        for (int i = 1; i < o->count; i++) if (f->live[i] > f->live[at]) at = i;
        if (f->live[at] <= room) break;
        if (!gcpi_far_relieve_at(q, o, at, room, &left)) return 0;
    }
    gcpi_order *out = &f->full;
    out->count = 0;
    if (o->count + q->m.values > out->capacity) return 0;
    for (int i = 0; i < o->count; i++) {
        for (int v = f->waits[i]; v >= 0; v = f->next_wait[v]) out->at[out->count++] = ~q->m.fetch[v];
        out->at[out->count++] = o->at[i];
    }
    gcpi_order_copy(o, out);
    gcpi_simulate(&q->m, o, NULL);
    return o->valid && o->peak <= room;
}

/* ==== src/search/policies.h ==== */

/* Candidates, and the policies. Each policy only fills a choice. Where it has freedom it tries several and keeps the
   one with the least live peak, then the least time; GCP_POLICY_BUDGET keeps the fastest that fits. */

static int gcpi_has(const gcpi_candidate *c) { return c->order.seconds < HUGE_VAL; }
static void gcpi_none(gcpi_candidate *c) { c->order.seconds = HUGE_VAL; }

static void gcpi_keep(gcpi_candidate *c, const gcpi_order *o, const char *method, gcpi_fit fit)
{
    gcpi_order_copy(&c->order, o);
    c->method = method; c->fit = fit;
}

/* A candidate of GCP_POLICY_BUDGET: kept if its slab fits and it is faster than the kept one; if only its bytes fit,
   the fastest is remembered in `loose`. Returns its slab (where it is not laid out: the limit), or 0: no candidate. */
static size_t gcpi_offer_order(gcpi_planner *q, const gcpi_order *o)
{
    size_t slab = q->r->limit;
    const gcpi_fit fit = gcpi_fit_of(q->r->limit, q->layout, 0);
    if (!o || !o->valid || o->seconds >= q->kept.order.seconds || o->peak > gcpi_room(q)) return 0;
    if (q->judgement == GCPI_BY_LAYOUT) slab = gcpi_order_slab(q, o, fit).bytes;
    const int loose = q->judgement == GCPI_LAID_OUT_LATER || slab > q->r->limit;
    if (!loose) gcpi_keep(&q->kept, o, q->method, fit);
    else if (slab < SIZE_MAX && o->seconds < q->loose.order.seconds) gcpi_keep(&q->loose, o, q->method, fit);
    return slab;
}

static size_t gcpi_offer(gcpi_planner *q, gcpi_order *found)
{
    return gcpi_offer_order(q, found->valid ? gcpi_far_place(q, found, gcpi_room(q)) : found);
}

/* Places copies in all the room; where the slab then does not fit, in somewhat less. Returns what gcpi_offer does. */
static size_t gcpi_offer_copies(gcpi_planner *q, gcpi_order *found)
{
    size_t room = gcpi_room(q), slab = gcpi_offer(q, found);
    for (int less = 1; less < 4 && slab > q->r->limit; less++)
        slab = gcpi_offer_order(q, gcpi_far_place(q, found, room - room / 32 * (size_t)less));
    return slab;
}

static int gcpi_has_best(const gcpi_planner *q) { return q->best.seconds < HUGE_VAL; }

/* Tries the order of the current choice; it becomes the best if it is. */
static void gcpi_try(gcpi_planner *q)
{
    gcpi_order *o = &q->trial;
    q->tries++;
    if (!gcpi_order_of(q, &q->now, o) || !o->valid) return;
    if (q->r->limit) gcpi_offer(q, o);
    if (gcpi_has_best(q) && (o->peak > q->best.peak || (o->peak == q->best.peak && o->seconds >= q->best.seconds)))
        return;
    gcpi_order_copy(&q->best, o);
    gcpi_choice_copy(q->p, &q->guide, &q->now);
}

/* What a cut after each task would keep, and what segments would hold: guides for the search, not exact counts. */
static int gcpi_guides(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    q->crossing = GCPI_SCRATCH(q->a, size_t, p->forward + 2);
    q->saved = GCPI_SCRATCH(q->a, size_t, p->forward + 2);
    ptrdiff_t scratch = q->a->scratch;
    int *last = GCPI_SCRATCH(q->a, int, p->item_count);
    unsigned char *read = GCPI_SCRATCH(q->a, unsigned char, p->item_count);
    if (!q->crossing || !q->saved || !last || !read) return 0;
    for (int i = 0; i < p->item_count; i++) last[i] = -1;
    for (int b = 0; b < p->task_count; b++)
        for (int k = 0; k < p->tasks[b].count; k++) {
            const gcpi_operand *o = &p->operands[p->tasks[b].operands + k];
            if (o->mode == GCPI_READ && b < p->forward) last[p->items[o->item].root] = b;
            if (o->mode == GCPI_READ && b >= p->forward) read[p->items[o->item].root] = 1;
        }
    for (int i = 0; i < p->item_count; i++) {
        const gcpi_item *x = &p->items[i];
        if (x->kind != GCPI_FORWARD_ITEM || x->root != i || x->producer < 0 || q->now.store[i] == GCPI_STORE) continue;
        if (last[i] > x->producer) { q->crossing[x->producer] += x->bytes; q->crossing[last[i]] -= x->bytes; }
        if (read[i]) q->saved[x->producer] += x->bytes;
    }
    for (int f = 1; f <= p->forward; f++) q->crossing[f] += q->crossing[f - 1];
    q->a->scratch = scratch;
    return 1;
}

/* Segments from cuts: cut[f] = 1 begins a new segment after task f. */
static void gcpi_segments_from(gcpi_planner *q, const unsigned char *cut)
{
    const gcpi_problem *p = q->p;
    gcpi_choice_clear(q);
    int segment = gcpi_segment_add(&q->now, 0);
    for (int f = 0; f < p->forward; f++) {
        q->now.segment[f] = segment;
        if (cut[f] && f + 1 < p->forward) segment = gcpi_segment_add(&q->now, 0);
    }
}

/* Chen's algorithm 3: grow a segment to `budget` saved bytes, then cut where the fewest bytes cross. family 0: among
   its last four tasks; 1: in its second half; 2: among its last four tasks, but only between units. */
static int gcpi_chen_cuts(const gcpi_planner *q, size_t budget, int family, unsigned char *cut)
{
    const gcpi_problem *p = q->p;
    size_t held = 0;
    int begin = 0, cuts = 0, end = p->forward;
    while (end > 0 && p->tasks[end - 1].unit == p->units) end--;
    memset(cut, 0, (size_t)p->forward + 1);
    for (int f = 0; f + 1 < end; f++) {
        held += q->saved[f];
        if (held < budget) continue;
        int best = -1, from = family == 1 ? begin + (f - begin) / 2 : GCPI_MAX(begin, f - 3);
        for (int g = f; g >= from; g--) {
            if (family == 2 && p->tasks[g].unit == p->tasks[g + 1].unit) continue;
            if (best < 0 || q->crossing[g] < q->crossing[best]) best = g;
        }
        if (best < 0) continue;
        cut[best] = 1;
        cuts++;
        held = 0;
        for (int g = best + 1; g <= f; g++) held += q->saved[g];
        begin = best + 1;
    }
    return cuts;
}

/* Above so many tasks fewer numbers of segments are tried, and then some near the best one. */
enum { GCPI_CHEN_LONG = 8192 };
typedef struct gcpi_chen {
    int is_long;
    unsigned char *cut, *other;
    size_t total, budget;             /* saved bytes in all; of the last segments */
    int k, family;                    /* of the best */
} gcpi_chen;

/* About k segments. Families often cut alike: in a long chain one of them is enough. */
static void gcpi_chen_try(gcpi_planner *q, gcpi_chen *c, int k, int family)
{
    const size_t budget = c->total / (size_t)k + 1, peak = q->best.peak;
    const double seconds = q->best.seconds;
    if (budget == c->budget || !gcpi_chen_cuts(q, budget, family, c->cut)) return;
    if (family && c->is_long) {
        gcpi_chen_cuts(q, budget, 0, c->other);
        if (!memcmp(c->cut, c->other, (size_t)q->p->forward)) return;
    }
    c->budget = budget;
    gcpi_segments_from(q, c->cut);
    gcpi_try(q);
    if (q->best.peak != peak || q->best.seconds != seconds) { c->k = k; c->family = family; }
}

/* Moves single cuts of the best choice by one task. */
static void gcpi_chen_moves(gcpi_planner *q, unsigned char *cut)
{
    const gcpi_problem *p = q->p;
    for (int round = 0; round < 3 && gcpi_has_best(q); round++)
        for (int f = 0;
             f + 1 < p->forward && q->tries < 400 && (double)q->tries * p->task_count < (q->r->limit ? 1e5 : 5e5);
             f++) {
            if (q->guide.segment[f] == q->guide.segment[f + 1]) continue;
            for (int to = f - 1; to <= f + 1; to += 2) {
                for (int g = 0; g + 1 < p->forward; g++) cut[g] = q->guide.segment[g] != q->guide.segment[g + 1];
                if (to < 0 || to + 1 >= p->forward || cut[to] || !cut[f]) continue;
                cut[f] = 0; cut[to] = 1;
                gcpi_segments_from(q, cut);
                gcpi_try(q);
            }
        }
}

static void gcpi_policy_sqrt(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    gcpi_chen c = { p->forward > GCPI_CHEN_LONG, NULL, NULL, 0, 0, 0, 0 };
    c.cut = GCPI_SCRATCH(q->a, unsigned char, p->forward + 1);
    c.other = GCPI_SCRATCH(q->a, unsigned char, p->forward + 1);
    if (!c.cut || !c.other) { q->out_of_memory = 1; return; }
    for (int f = 0; f < p->forward; f++) c.total += q->saved[f];
    for (int family = 0; family < 3; family++)
        for (int k = 1; k <= 4 || (double)k * k <= 8.0 * p->forward;        /* more segments never pay */
             k += c.is_long ? 1 + k / 4 : q->r->limit || k >= 64 ? 1 + k / 8 : 1)
            if (!c.is_long || !family || (2 * k > c.k && k < 2 * c.k)) gcpi_chen_try(q, &c, k, family);
    for (int step = c.k / 8; c.is_long && step > 0; step /= 2)
        for (int side = -1, k = c.k; side < 2; side += 2) gcpi_chen_try(q, &c, k + side * step, c.family);
    gcpi_chen_moves(q, c.cut);
}

/* Halves (or k-ths by saved bytes) of a run of tasks, again and again, down to leaves of at most `leaf` tasks. */
static void gcpi_divide(gcpi_planner *q, int first, int last, int segment, int parts, int leaf)
{
    size_t total = 0, sum = 0;
    int begin = first, done = 0;
    for (int f = first; f < last; f++) { total += q->saved[f]; q->now.segment[f] = segment; }
    if (last - first <= leaf || total == 0 || q->now.depth[segment] > 24) return;
    for (int f = first; f < last && done + 1 < parts; f++) {
        sum += q->saved[f];
        if (sum < total / (size_t)parts * (size_t)(done + 1) || f + 1 >= last) continue;
        int best = f;
        for (int g = f; g >= GCPI_MAX(begin, f - 3); g--) if (q->crossing[g] < q->crossing[best]) best = g;
        gcpi_divide(q, begin, best + 1, gcpi_segment_add(&q->now, segment), parts, leaf);
        begin = best + 1;
        done++;
    }
    if (begin > first && begin < last) gcpi_divide(q, begin, last, gcpi_segment_add(&q->now, segment), parts, leaf);
}

static void gcpi_policy_recursive(gcpi_planner *q)
{
    for (int parts = 2; parts <= 4; parts++)
        for (int leaf = 1; leaf <= 16; leaf *= 2) {
            gcpi_choice_clear(q);
            gcpi_divide(q, 0, q->p->forward, 0, parts, leaf);
            gcpi_try(q);
        }
}

/* Keeps what is costly to recompute; then joins (add, concat), too, or a recomputation may reach back to the start. */
static void gcpi_policy_cheap(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    for (int joins = 0; joins < 2; joins++) {
        gcpi_choice_clear(q);
        for (int f = 0; f < p->forward; f++) {
            const gcpi_task *t = &p->tasks[f];
            if (t->costly || t->loss || (joins && t->joins)) continue;
            for (int k = 0; k < t->count; k++) {
                const gcpi_operand *o = &p->operands[t->operands + k];
                if (o->mode != GCPI_READ && q->now.store[o->item] == GCPI_AUTO) q->now.store[o->item] = GCPI_DROP;
            }
        }
        gcpi_try(q);
    }
}

/* The user's segments. What follows the last one (the loss) belongs to the root, or to that segment, which then need
   not run again; both are tried. */
static int gcpi_segments_choose(gcpi_planner *q, int tail)          /* 1: there are segments */
{
    const gcpi_problem *p = q->p;
    const gcp_tape *t = p->tape;
    int segmented = 0, last = 0;
    gcpi_choice_clear(q);
    q->now.segments = t->segment_count;
    for (int s = 0; s < t->segment_count; s++) {
        q->now.parent[s] = t->segments[s].parent;
        q->now.depth[s] = t->segments[s].depth;
    }
    for (int f = 0; f < p->forward; f++) {
        q->now.segment[f] = p->tasks[f].segment;
        segmented |= p->tasks[f].segment;
    }
    for (int f = p->forward - 1; tail && f >= 0 && !last; f--) last = p->tasks[f].segment;
    for (int f = p->forward - 1; last && f >= 0 && !p->tasks[f].segment; f--) q->now.segment[f] = last;
    return segmented;
}

static void gcpi_policy_segments(gcpi_planner *q)
{
    for (int tail = 0, segmented = 1; tail < 2 && segmented; tail++) {
        segmented = gcpi_segments_choose(q, tail);
        gcpi_try(q);
    }
}

/* Runs of units: boundary[i] = first unit of run i + 1. The loss belongs to the last run, or in replay to the root. */
static void gcpi_runs(gcpi_planner *q, const int *boundary, int boundaries, int replay)
{
    const gcpi_problem *p = q->p;
    gcpi_choice_clear(q);
    q->now.replay = replay;
    int run = 0, segment = gcpi_segment_add(&q->now, 0);
    for (int f = 0; f < p->forward; f++) {
        for (; run < boundaries && p->tasks[f].unit >= boundary[run] && p->tasks[f].unit < p->units; run++)
            segment = gcpi_segment_add(&q->now, 0);
        q->now.segment[f] = replay && p->tasks[f].unit == p->units ? 0 : segment;
    }
    gcpi_try(q);
}

static void gcpi_policy_uniform(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    int runs = q->r->opts->segments, *boundary = GCPI_SCRATCH(q->a, int, p->units + 1);
    if (!boundary) { q->out_of_memory = 1; return; }
    for (int i = 0; i + 1 < runs; i++) boundary[i] = (i + 1) * (p->units / runs);
    gcpi_runs(q, boundary, runs - 1, 0);
    if (!q->r->opts->balance) return;
    size_t total = 0, sum = 0;
    int n = 0;
    for (int f = 0; f < p->forward; f++) total += q->saved[f];
    for (int f = 0; f + 1 < p->forward && n + 1 < runs; f++) {
        sum += q->saved[f];
        int next = p->tasks[f + 1].unit;
        if (next == p->tasks[f].unit || next == p->units) continue;
        if (sum >= total / (size_t)runs * (size_t)(n + 1) || p->units - next <= runs - 1 - n) boundary[n++] = next;
    }
    gcpi_runs(q, boundary, n, 0);
}

/* Seed 000's rule: k units evenly spaced by index, both ends truncated before interpolating. */
static int gcpi_checkpoint_unit(int units, int k, int i)
{
    int offset = (units - 1) / k, first = offset / 2, last = (2 * (units - 1) - offset) / 2;
    return k == 1 ? first : first + (int)((long long)(last - first) * i / (k - 1));
}

static void gcpi_policy_checkpoints(gcpi_planner *q)
{
    int k = q->r->opts->checkpoints, *boundary = GCPI_SCRATCH(q->a, int, k + 1);
    if (!boundary) { q->out_of_memory = 1; return; }
    for (int i = 0; i < k; i++) boundary[i] = gcpi_checkpoint_unit(q->p->units, k, i) + 1;
    gcpi_runs(q, boundary, k, q->r->opts->replay);
}

/* Bytes of the checkpoints: outputs of the chosen units that other units read. Views of the input do not count. */
static size_t gcpi_checkpoint_bytes(const gcpi_request *r)
{
    const gcpi_problem *p = r->p;
    size_t bytes = 0;
    for (int i = 0; r->policy == GCP_POLICY_CHECKPOINTS && i < r->opts->checkpoints; i++) {
        int unit = gcpi_checkpoint_unit(p->units, r->opts->checkpoints, i);
        for (int x = 0; x < p->item_count; x++) {
            const gcpi_item *e = &p->items[x];
            int crosses = 0;
            if (e->kind != GCPI_FORWARD_ITEM || e->producer < 0 || p->tasks[e->producer].unit != unit ||
                p->items[e->root].kind != GCPI_FORWARD_ITEM)
                continue;
            for (int f = e->producer + 1; f < p->forward && !crosses; f++)
                for (int o = 0; o < p->tasks[f].count; o++)
                    crosses |= p->tasks[f].unit != unit && p->operands[p->tasks[f].operands + o].item == x &&
                               p->operands[p->tasks[f].operands + o].mode == GCPI_READ;
            if (crosses) bytes += e->bytes;
        }
    }
    return bytes;
}

static void gcpi_policy_keep_all(gcpi_planner *q) { gcpi_choice_clear(q); gcpi_try(q); }

/* ==== src/search/search.h ==== */

/* GCP_POLICY_BUDGET: local search. From an order it goes on by moves: a value is dropped and made again, a run is taken
   out or slides. Annealing takes some moves that are worse; bytes above the limit have a price. */

/* What .effort means. visits: instructions that the search simulates, in large problems up to `growth` times as many;
   prices: of cuts; places: tasks for bounds; stages, grains: of the chain; policies: each is tried, even if something
   fits; layout: placed buffers that a layout looks at; hard: the same, for the last layout of what nearly fits; least:
   visits per forward op on the way to the least budget. */
typedef struct gcpi_effort {
    double visits, growth;
    int prices, places, stages, grains, policies;
    double layout, hard, least;
} gcpi_effort;
enum {
    GCPI_MOST_STAGES = 192,
    GCPI_MOST_GRAINS = 160,
    GCPI_FEW_GRAINS = 48,
    GCPI_FEW_CELLS = 4000000,      /* stages squared, times grains, where grains are few */
    GCPI_SHORT_CHAIN = 201
};
static const gcpi_effort gcpi_efforts[] = { { 1.6e6, 6, 20, 12, 96, 100, 1, 6e5, 3e6, 8e3 },
                                            { 1.5e5, 1, 12, 4, 48, 64, 0, 1e5, 3e5, 2e3 },
                                            { 4e7, 6, 24, 32, GCPI_MOST_STAGES, GCPI_MOST_GRAINS, 1, 1.5e6, 1.2e7,
                                              1e5 } };

/* Local search: annealing with a fixed seed. A move takes a run out, puts one in, or shifts one nearer to its reader.
   Bytes above the limit cost a price, which rises while the present order does not fit and falls while it does. So the
   search stays near the limit and finds out by itself what a byte is worth there.

   Only what a move changes is simulated. Marks stand along the present order, each with what is live there and the peak
   from there to the next mark. A trial begins at the first mark after the move and walks towards the front, until the
   same values are live as before at a mark before the move: what comes before that mark is unchanged. */
/* peak_at: counted from `at`; state: index in states */
typedef struct gcpi_mark { int at, next, peak_at, state; size_t live, peak; } gcpi_mark;

enum { GCPI_MARKS = 64, GCPI_STATES = 2 * GCPI_MARKS };

typedef struct gcpi_search {
    const gcpi_model *m;
    gcpi_order now, best;             /* best: the fastest whose peak fits */
    /* limit: `aim` times the whole; most: a trial with a higher peak is not taken */
    size_t whole, limit, most;
    double aim;
    uint64_t random;
    /* price of bytes above the limit: keep-alls of seconds per limit; rate: e-folds of the price in a whole run */
    double price, rate;
    /* first: the search stops at the first order that fits */
    int found, first, spacing;
    unsigned char *states, *there;    /* there: per value, live at a position */
    double *weight;                   /* per value: bytes over seconds; 0: it cannot be made again */
    /* how values may come to life again: 0: by runs; 1: by runs or copies from far memory; 2: by copies alone */
    int far;
    gcpi_planner *q;
    int judge;                        /* 0: seconds are the sum of the tasks; 1: of the timeline of its placed copies */
    gcpi_mark mark[GCPI_MARKS], fresh[GCPI_MARKS];     /* from its front; of the trial, from its end */
    int marks, fresh_count, spare[GCPI_STATES], spares;
    /* the move: position of the run taken out; position before which runs are put; these, last first */
    int removed, ahead, *runs, run_count;
    int *part, part_count, low, high;                  /* the trial from mark low to mark high, last first */
    gcpi_mark front; gcpi_pass pass; double seconds;   /* of the trial: its mark low; where the walk is; all seconds */
} gcpi_search;

static uint32_t gcpi_draw(gcpi_search *s, uint32_t below) { return gcpi_below(&s->random, below); }

static double gcpi_chance(gcpi_search *s) { return (double)gcpi_draw(s, 1u << 30) / (double)(1u << 30); }

static double gcpi_energy(const gcpi_search *s, size_t peak, double seconds)
{
    double over = peak > s->limit ? (double)(peak - s->limit) / (double)GCPI_MAX(s->limit, 1) : 0;
    return seconds / s->m->seconds + s->price * over;
}

static unsigned char *gcpi_state(const gcpi_search *s, int state)
{
    return s->states + (size_t)state * s->m->state_bytes;
}

/* The trial. */

static void gcpi_walk_step(gcpi_search *s, int code, int old)
{
    size_t bytes = gcpi_pass_code(s->m, code, &s->pass);
    double seconds = code < 0 ? s->m->p->tasks[~code].seconds : 0;
    if (bytes == GCPI_DEAD) { if (old) s->seconds -= seconds; return; }
    if (!old) s->seconds += seconds;
    s->part[s->part_count++] = code;
    if (bytes > s->front.peak) { s->front.peak = bytes; s->front.peak_at = s->part_count; }
}

/* Where the walk stands becomes a mark. Until the trial is taken, `at` and peak_at count from mark high backwards. */
static void gcpi_walk_mark(gcpi_search *s, gcpi_mark *mark)
{
    *mark = s->front;
    mark->at = s->part_count; mark->next = s->pass.next; mark->live = s->pass.live;
    memcpy(gcpi_state(s, mark->state), s->m->live, s->m->state_bytes);
    s->front.peak = 0; s->front.peak_at = s->part_count;
}

static void gcpi_walk_runs(gcpi_search *s) { for (int i = 0; i < s->run_count; i++) gcpi_walk_step(s, s->runs[i], 0); }

static int gcpi_mark_behind(const gcpi_search *s, int at)    /* the first mark at this position or after it */
{
    int low = 0, high = s->marks - 1;
    while (low < high) {
        int middle = (low + high) / 2;
        if (s->mark[middle].at < at) low = middle + 1;
        else high = middle;
    }
    return low;
}

/* Walks through what the move changes; 0: the trial is not valid, or its peak is above s->most. */
static int gcpi_walk(gcpi_search *s)
{
    const gcpi_model *m = s->m;
    int first = GCPI_MIN(s->removed < 0 ? s->ahead : s->removed, s->ahead < 0 ? INT32_MAX : s->ahead);
    s->high = gcpi_mark_behind(s, GCPI_MAX(s->removed + 1, s->ahead));
    const gcpi_mark *mark = &s->mark[s->high];
    memcpy(m->live, gcpi_state(s, mark->state), m->state_bytes);
    s->pass.live = mark->live; s->pass.next = mark->next; s->pass.valid = 1;
    s->front.peak = 0; s->front.peak_at = 0;
    s->seconds = s->now.seconds;
    s->part_count = s->fresh_count = 0;
    s->low = s->high;
    if (s->ahead == mark->at) gcpi_walk_runs(s);
    for (int i = mark->at, last = 0, met = 0; s->low > 0;) {
        i--;
        if (i == s->removed) s->seconds -= m->p->tasks[~s->now.at[i]].seconds;
        else gcpi_walk_step(s, s->now.at[i], 1);
        if (i == s->ahead) gcpi_walk_runs(s);
        if (!s->pass.valid || s->front.peak > s->most) return 0;
        for (; s->low > 0 && s->mark[s->low - 1].at == i; s->low--) met = 1;
        if (met && i <= first && !memcmp(m->live, gcpi_state(s, s->mark[s->low].state), (size_t)m->values)) break;
        met = 0;
        if (s->part_count - last < s->spacing || s->low == 0 ||
            s->low + 1 + s->fresh_count + s->marks - s->high >= GCPI_MARKS)
            continue;
        s->front.state = s->spare[s->spares - 1 - s->fresh_count];
        gcpi_walk_mark(s, &s->fresh[s->fresh_count++]);
        last = s->part_count;
    }
    return 1;
}

/* The seconds of the order that the trial makes, from its timeline; HUGE_VAL: its copies cannot be placed. */
static double gcpi_judge(gcpi_search *s)
{
    gcpi_planner *q = s->q;
    gcpi_order *o = &q->trial;
    int begin = s->mark[s->low].at, end = s->mark[s->high].at;
    unsigned char *here = gcpi_state(s, GCPI_STATES);
    memcpy(o->at, s->now.at, (size_t)begin * sizeof *o->at);
    for (int i = 0; i < s->part_count; i++) o->at[begin + i] = s->part[s->part_count - 1 - i];
    o->count = begin + s->part_count + s->now.count - end;
    memcpy(o->at + begin + s->part_count, s->now.at + end, (size_t)(s->now.count - end) * sizeof *o->at);
    memcpy(here, s->m->live, s->m->state_bytes);
    gcpi_simulate(s->m, o, NULL);
    const gcpi_order *full = gcpi_far_place(q, o, GCPI_MAX(s->limit, o->peak));
    memcpy(s->m->live, here, s->m->state_bytes);
    return full && full->valid && full->peak <= GCPI_MAX(s->limit, o->peak) ? full->seconds : HUGE_VAL;
}

static size_t gcpi_walk_peak(const gcpi_search *s)         /* of the whole order that the trial makes */
{
    size_t peak = s->front.peak;
    for (int i = 0; i < s->low; i++) peak = GCPI_MAX(peak, s->mark[i].peak);
    for (int i = s->high; i < s->marks; i++) peak = GCPI_MAX(peak, s->mark[i].peak);
    for (int i = 0; i < s->fresh_count; i++) peak = GCPI_MAX(peak, s->fresh[i].peak);
    return peak;
}

static void gcpi_take_marks(gcpi_search *s, int shift)     /* the trial's replace those that it walked past */
{
    int from = s->low + 1 + s->fresh_count;
    s->spares -= s->fresh_count;
    for (int i = s->low + 1; i < s->high; i++) s->spare[s->spares++] = s->mark[i].state;
    memmove(s->mark + from, s->mark + s->high, (size_t)(s->marks - s->high) * sizeof *s->mark);
    s->marks += from - s->high;
    for (int i = from; i < s->marks; i++) s->mark[i].at += shift;
    for (int k = 0; k < s->fresh_count; k++) {
        gcpi_mark *mark = &s->mark[from - 1 - k];
        *mark = s->fresh[k];
        mark->peak_at = mark->at - mark->peak_at;
        mark->at = s->mark[s->low].at + s->part_count - mark->at;
    }
}

/* The trial becomes the present order. */
static void gcpi_take(gcpi_search *s)
{
    gcpi_order *o = &s->now;
    gcpi_mark *low = &s->mark[s->low];
    int begin = low->at, end = s->mark[s->high].at, shift = s->part_count - (end - begin);
    memmove(o->at + end + shift, o->at + end, (size_t)(o->count - end) * sizeof *o->at);
    for (int i = 0; i < s->part_count; i++) o->at[begin + i] = s->part[s->part_count - 1 - i];
    o->count += shift;
    o->seconds = s->seconds;
    s->front.state = low->state;
    gcpi_walk_mark(s, low);
    low->peak_at = low->at - low->peak_at;
    low->at = begin;
    gcpi_take_marks(s, shift);
    o->peak = 0;
    for (int i = 0; i < s->marks; i++)
        if (s->mark[i].peak > o->peak) {
            o->peak = s->mark[i].peak;
            o->peak_at = s->mark[i].at + s->mark[i].peak_at;
        }
}

/* Marks for the order in s->now, from one walk through all of it. */
static void gcpi_search_begin(gcpi_search *s)
{
    const gcpi_model *m = s->m;
    gcpi_simulate(m, &s->now, NULL);
    double seconds = s->now.seconds;
    s->spacing = s->now.count / (GCPI_MARKS / 2) + 4;
    s->spares = 0;
    for (int i = GCPI_STATES - 1; i >= 2; i--) s->spare[s->spares++] = i;
    memset(s->mark, 0, sizeof s->mark);
    s->marks = 2;
    s->mark[1].at = s->now.count;
    s->mark[1].next = m->p->task_count - 1;
    s->mark[1].state = 1;
    memset(m->live, 0, m->state_bytes);
    for (int v = 0; v < m->values; v++) if (m->lasting[v]) s->mark[1].live += gcpi_revive(m, v);
    memcpy(gcpi_state(s, 1), m->live, m->state_bytes);
    memset(gcpi_state(s, 0), 0xff, m->state_bytes);          /* equals no state */
    s->removed = -1; s->ahead = s->now.count; s->run_count = 0; s->most = SIZE_MAX;
    gcpi_walk(s);
    if (s->judge) seconds = gcpi_judge(s);
    gcpi_take(s);
    s->now.seconds = seconds;
}

/* Moves. */

/* Sets s->there: what is live before the instruction at this position. */
static void gcpi_live_ahead(gcpi_search *s, int at)
{
    const gcpi_model *m = s->m;
    const gcpi_mark *mark = &s->mark[gcpi_mark_behind(s, at)];
    memcpy(s->there, gcpi_state(s, mark->state), (size_t)m->values);
    for (int i = mark->at - 1; i >= at; i--) {
        int task = gcpi_code_task(&s->now, i);
        for GCPI_WRITES(m, task, k) s->there[m->written[k]] = 0;
        for GCPI_READS(m, task, k) s->there[m->read[k]] = 1;
    }
}

/* the next position, from `from` on, that reads anything that task makes; -1: none */
static int gcpi_reader_of(const gcpi_search *s, int task, int from)
{
    const gcpi_model *m = s->m;
    int back = task >= m->p->task_count ? m->written[m->written_first[task]] : -1;
    for (int i = from; i < s->now.count; i++) {
        int reader = gcpi_code_task(&s->now, i);
        for GCPI_READS(m, reader, k) if (m->producer[m->read[k]] == task || m->read[k] == back) return i;
    }
    return -1;
}

/* The task that will make a value live again; -1: none can. */
static int gcpi_maker(gcpi_search *s, int v)
{
    const gcpi_model *m = s->m;
    int again = s->far < 2 && m->again[m->producer[v]];
    if (s->far && m->fetch[v] >= 0 && (!again || gcpi_draw(s, 2))) return m->fetch[v];
    return again ? m->producer[v] : -1;
}

/* Lists a run of task and, by chance, of those whose outputs it needs and that are not live there. 0: no room. */
static int gcpi_list_runs(gcpi_search *s, int task, int depth)
{
    const gcpi_model *m = s->m;
    if (s->now.count + s->run_count >= s->now.capacity) return 0;
    s->runs[s->run_count++] = ~task;
    for GCPI_READS(m, task, k) {
        int v = m->read[k], maker = s->there[v] ? -1 : gcpi_maker(s, v);
        if (maker < 0 || depth > 40 || gcpi_draw(s, 8) < 2) continue;
        s->there[v] = 1;
        if (!gcpi_list_runs(s, maker, depth + 1)) return 0;
    }
    return 1;
}

/* Drop: a value that idles across a crowded position, drawn by weight, is made again for its next reader. */
static int gcpi_move_drop(gcpi_search *s)
{
    const gcpi_model *m = s->m;
    const gcpi_order *o = &s->now;
    int at = o->peak > s->limit || gcpi_draw(s, 4) == 0 ? o->peak_at : (int)gcpi_draw(s, (uint32_t)o->count), v = 0;
    int task = gcpi_code_task(o, at);
    double sum = 0;
    gcpi_live_ahead(s, at);
    for GCPI_READS(m, task, k) s->there[m->read[k]] = 0;
    for (int i = 0; i < m->values; i++) sum += s->there[i] * s->weight[i];
    if (sum <= 0) return 0;
    for (sum *= gcpi_chance(s); v < m->values - 1; v++) if ((sum -= s->there[v] * s->weight[v]) < 0) break;
    if (!s->there[v] || s->weight[v] <= 0) return 0;
    int maker = gcpi_maker(s, v);
    s->ahead = gcpi_reader_of(s, maker, at + 1);
    if (s->ahead < 0) return 0;
    gcpi_live_ahead(s, s->ahead);
    for GCPI_WRITES(m, maker, k) s->there[m->written[k]] = 1;
    return gcpi_list_runs(s, maker, 0);
}

static int gcpi_some_run(gcpi_search *s)             /* position of a run again, or -1 */
{
    int at = (int)gcpi_draw(s, (uint32_t)s->now.count);
    for (int k = 0; k < s->now.count; k++, at = at + 1 < s->now.count ? at + 1 : 0) if (s->now.at[at] < 0) return at;
    return -1;
}

static int gcpi_move_slide(gcpi_search *s)
{
    int reader = gcpi_reader_of(s, ~s->now.at[s->removed], s->removed + 1);
    if (reader <= s->removed + 1) return 0;
    s->runs[s->run_count++] = s->now.at[s->removed];
    s->ahead = gcpi_draw(s, 2) ? reader : s->removed + 2 + (int)gcpi_draw(s, (uint32_t)(reader - s->removed - 1));
    return 1;
}

static int gcpi_search_change(gcpi_search *s)
{
    uint32_t kind = gcpi_draw(s, 8);
    s->removed = s->ahead = -1;
    s->run_count = 0;
    if (kind < 3) return gcpi_move_drop(s);
    s->removed = gcpi_some_run(s);
    return s->removed >= 0 && (kind < 6 || gcpi_move_slide(s));
}

static void gcpi_search_keep(gcpi_search *s)         /* the present order, if it is the best so far that fits */
{
    if (s->now.peak > s->limit || (s->found && s->now.seconds >= s->best.seconds)) return;
    s->found = 1;
    gcpi_order_copy(&s->best, &s->now);
}

/* Sets s->most, the peak at which a move's energy reaches `worst`; 0: its seconds alone reach it. Runs right before the
   one that is taken out may fall out with it; other runs that may fall out are not counted. */
static int gcpi_hope(gcpi_search *s, double worst)
{
    double seconds = s->now.seconds;
    for (int i = 0; i < s->run_count; i++) seconds += s->m->p->tasks[~s->runs[i]].seconds;
    for (int i = s->removed; i >= 0 && s->now.at[i] < 0; i--) seconds -= s->m->p->tasks[~s->now.at[i]].seconds;
    double over = (worst - seconds / s->m->seconds) / s->price;
    s->most = over < 1 && !s->judge ? gcpi_bytes_from((double)s->limit * (1 + over)) : SIZE_MAX;
    return over >= 0 || s->judge;
}

/* Tries a move, taken if its energy is below a random threshold; returns how many instructions were looked at. */
static int gcpi_search_step(gcpi_search *s, double heat)
{
    if (!gcpi_search_change(s)) return s->spacing;
    double worst = gcpi_energy(s, s->now.peak, s->now.seconds) - heat * log(1 - gcpi_chance(s));
    if (!gcpi_hope(s, worst)) return s->spacing;
    int looked = s->spacing, valid = gcpi_walk(s);
    looked += s->part_count;
    if (valid && s->judge) { s->seconds = gcpi_judge(s); looked += 4 * s->now.count; }
    if (valid && gcpi_energy(s, gcpi_walk_peak(s), s->seconds) <= worst) {
        gcpi_take(s);
        if (s->marks + GCPI_MARKS / 8 > GCPI_MARKS) gcpi_search_begin(s);
        gcpi_search_keep(s);
    }
    return looked;
}

/* Moves until `visits` instructions were simulated, from the order in s->now. Returns how many were. */
static double gcpi_search_run(gcpi_search *s, double visits, double hot, double cold, gcpi_portion portion)
{
    double done = s->now.count;
    if (!s->now.count) return visits;
    gcpi_search_begin(s);
    gcpi_search_keep(s);
    while (done < visits && !(s->first && s->found) && !gcpi_stopped(s->q, portion, done / visits)) {
        double heat = hot * pow(cold / hot, done / visits), turn = 0;
        for (int i = 0; i < 16 && !(s->first && s->found); i++) {          /* so many steps at one heat and price */
            int looked = gcpi_search_step(s, heat);
            turn += s->now.peak > s->limit ? looked : -looked;
            done += looked;
        }
        s->price = GCPI_MIN(50, GCPI_MAX(0.02, s->price * exp(s->rate * turn / visits)));
    }
    return done;
}

/* ==== src/search/stages.h ==== */

/* Stages: a network as a chain of runs, each with what reverses it. What crosses from one run of forward tasks to the
   next is a set of values; here are its bytes, and those that running and reversing a stage takes. L(s): the values
   made up to stage s that later stages read. */
typedef struct gcpi_chain {
    const gcpi_model *m;
    /* stage s: forward tasks begin[s] .. begin[s + 1], backward tasks back[s] .. back[s - 1] */
    int stages, *begin, *back;
    int *made, *end;                  /* per group: stage that makes it; last stage that reads it, in either pass */
    double *seconds, *reverse_seconds;
    /* per value: backward of the stage that makes it reads it; per group: any backward task does */
    unsigned char *need, *taped;
    /* bytes per stage. keep: what `keep` keeps; own: of that, what no later stage reads; reads_own: what its backward
       reads of its own. Most of its own: save: running with keep kept; pass: running with L(s) kept; last, alone: the
       same two with its inputs counted; reverse: while reversed. gradient: gradients when that begins */
    size_t *keep, *own, *reads_own, *save, *pass, *last, *alone, *reverse, *gradient;
    size_t *cross;                    /* cross[s * stages + t]: of L(t), what s..t made */
    /* C0, C1 and (where tables is 3) C2; grains per byte, and what is added to them */
    float *table[3]; int tables, grains; double per_byte, rounding;
    int *first[3], *full[3];          /* per row: the first grains with an order; from which on more change nothing */
    unsigned char *loose;             /* per stage: there is an L(s - 1), and no backward reads it */
    /* stage 0 makes a value that may not be made again and no backward reads: the first cut keeps L(0) for it */
    int pinned;
    int late;                         /* a backward task may belong to the stage behind what it reads */
    size_t constant;                  /* bytes that are live throughout */
    unsigned char *ran;
} gcpi_chain;

/* Whether a cut may come after task f: not before a view, nor (unless pairs) inside a pair that works in place. */
static int gcpi_may_cut(const gcpi_model *m, int f, int pairs)
{
    if (f + 1 >= m->p->forward) return 1;
    if (m->p->tasks[f + 1].free) return 0;
    for (int side = 0; !pairs && m->over[f + 1] >= 0 && side < 2; side++)
        if (m->under[2 * (f + 1) + side] >= 0 && m->producer[m->under[2 * (f + 1) + side]] == f) return 0;
    return 1;
}

/* At most `most` stages of equally many places for a cut; each ends where the fewest bytes cross. A chain that works in
   place nearly throughout is cut inside pairs, too: the tables then count too much, the simulation does not. */
static void gcpi_chain_cut(gcpi_chain *c, const size_t *crossing, int most)
{
    int places = 0, seen = 0, best = -1, pairs = 0;
    for (int f = 0; f < c->m->p->forward; f++) places += gcpi_may_cut(c->m, f, 0);
    for (pairs = places * 8 < c->m->p->forward, places = 0, seen = 0; seen < c->m->p->forward; seen++)
        places += gcpi_may_cut(c->m, seen, pairs);
    c->stages = seen = 0;
    for (int f = 0; f < c->m->p->forward; f++) {
        if (!gcpi_may_cut(c->m, f, pairs)) continue;
        if (best < 0 || crossing[f] < crossing[best]) best = f;
        seen++;
        int last = f + 1 == c->m->p->forward;
        if (!last && places > most && (long long)seen * most < (long long)(c->stages + 1) * places) continue;
        c->begin[++c->stages] = (last ? f : best) + 1;
        best = -1;
    }
}

/* Whether task b reads nothing that was made before the last stage with forward tasks. */
static int gcpi_chain_at_end(const gcpi_chain *c, int b)
{
    for GCPI_READS(c->m, b, k) if (c->m->producer[c->m->read[k]] < c->begin[c->stages - 1]) return 0;
    return 1;
}

/* The stage that a backward task belongs to: of the op that it reverses; or (late) the one behind what it reads, where
   that crosses to it. */
static int gcpi_chain_stage_of(const gcpi_chain *c, const int *stage_of, int b)
{
    const gcpi_model *m = c->m;
    int at = stage_of[m->p->tasks[b].forward];
    for GCPI_READS(m, b, k) {
        const int v = m->read[k], s = stage_of[m->producer[v]];
        if (c->late) at = GCPI_MAX(at, s + (c->end[m->group[v]] > s));
    }
    return at;
}
/* Per group the last stage whose forward tasks read it. */
static void gcpi_chain_crossings(gcpi_chain *c, const int *stage_of)
{
    const gcpi_model *m = c->m;
    for (int g = 0; g < m->groups; g++) c->end[g] = -1;
    for (int f = 0; f < m->p->forward; f++)
        for GCPI_READS(m, f, k) c->end[m->group[m->read[k]]] = GCPI_MAX(c->end[m->group[m->read[k]]], stage_of[f]);
}
/* The first backward tasks, of the loss, become a stage without forward tasks if other backward tasks of the last stage
   read what was made before it. What the first ones read then crosses to them, and what only the others read need not
   be live while they run. */
static void gcpi_chain_backs(gcpi_chain *c, int *stage_of)         /* stage_of: per task */
{
    const gcpi_problem *p = c->m->p;
    int b = p->forward, last = c->stages - 1;
    for (int s = 0; s < c->stages; s++) for (int f = c->begin[s]; f < c->begin[s + 1]; f++) stage_of[f] = s;
    while (b < p->task_count && gcpi_chain_at_end(c, b)) b++;
    int own = b > p->forward && b < p->task_count && p->tasks[b].kind == GCPI_TASK_BACKWARD &&
              stage_of[p->tasks[b].forward] == last;
    if (own) { c->begin[++c->stages] = p->forward; for (int k = p->forward; k < b; k++) stage_of[k] = last + 1; }
    else b = p->forward;
    gcpi_chain_crossings(c, stage_of);
    for (int now = last; b < p->task_count; b++) {
        if (p->tasks[b].kind == GCPI_TASK_BACKWARD) now = GCPI_MIN(now, gcpi_chain_stage_of(c, stage_of, b));
        stage_of[b] = now;
    }
    b = p->task_count;
    for (int s = 0; s < c->stages; s++) {
        while (b > p->forward && stage_of[b - 1] <= s) b--;
        c->back[s] = s + 1 == c->stages ? p->forward : b;
    }
}

static int gcpi_chain_back_end(const gcpi_chain *c, int s) { return s ? c->back[s - 1] : c->m->p->task_count; }

/* Values that may not be made again are live throughout, except those of stage 0 that backward does not read (pinned).
   The others cross from where they are made to where they are read. */
static void gcpi_chain_lives(gcpi_chain *c, const int *stage_of)
{
    const gcpi_model *m = c->m;
    for (int g = 0; g < m->groups; g++) { c->made[g] = c->stages; c->end[g] = -1; }
    for (int v = 0; v < m->values; v++) c->made[m->group[v]] = GCPI_MIN(c->made[m->group[v]], stage_of[m->producer[v]]);
    for (int t = 0; t < m->p->task_count; t++)
        for GCPI_READS(m, t, k) {
            int v = m->read[k];
            c->end[m->group[v]] = GCPI_MAX(c->end[m->group[v]], stage_of[t]);
            if (t < m->p->forward) continue;
            c->taped[m->group[v]] = 1;
            if (stage_of[t] != stage_of[m->producer[v]]) continue;
            c->need[v] = 1;
            c->reads_own[stage_of[t]] += m->bytes[m->group[v]];
        }
    for (int v = 0; v < m->values; v++) {
        if (m->again[m->producer[v]]) continue;
        if (c->made[m->group[v]] == 0 && !c->taped[m->group[v]] && !m->lasting[v]) c->pinned = 1;
        else c->end[m->group[v]] = c->stages;
    }
    for (int g = 0; g < m->groups; g++) {
        if (c->end[g] >= c->stages) c->constant += m->bytes[g];
        else for (int t = c->made[g]; t < c->end[g]; t++) c->cross[c->made[g] * c->stages + t] += m->bytes[g];
    }
    for (int t = 0; t < c->stages; t++)
        for (int s = c->stages - 2; s >= 0; s--) c->cross[s * c->stages + t] += c->cross[(s + 1) * c->stages + t];
}

/* bytes of L(s - 1) */
static size_t gcpi_chain_input(const gcpi_chain *c, int s) { return s ? c->cross[s - 1] : 0; }

/* How many tables. C2 pays where each L(s) is made by stage s alone, and backward does not read some of them. */
static int gcpi_chain_tables(gcpi_chain *c)
{
    int simple = 1, any = 0;
    for (int s = 0; s < c->stages; s++) c->loose[s] = gcpi_chain_input(c, s) > 0;
    for (int t = 0; t < c->stages; t++) simple &= c->cross[t] == c->cross[t * c->stages + t];
    for (int g = 0; g < c->m->groups; g++)
        if (c->taped[g])
            for (int t = c->made[g]; t < c->end[g] && t + 1 < c->stages; t++) c->loose[t + 1] = 0;
    for (int s = 0; s < c->stages; s++) any |= c->loose[s];
    return simple && any ? 3 : 2;
}

/* The most bytes of stage s's own values while tasks [first, end) run; what was made before is live and not counted
   (alone: it is counted, and lives as long as it is needed). hold: 1: L(s) lives on; 2: what backward of s reads, too.
   *held: bytes of what lives on. */
static size_t gcpi_chain_most(const gcpi_chain *c, int s, int first, int end, int hold, int alone, size_t *held)
{
    const gcpi_model *m = c->m;
    size_t live = 0, most = 0;
    memset(m->live, 0, m->state_bytes);
    for (int t = first; t < end; t++)
        for GCPI_READS(m, t, k) if (!alone && m->producer[m->read[k]] < c->begin[s]) gcpi_revive(m, m->read[k]);
    for (int v = 0; alone && v < m->values; v++) {
        if (m->producer[v] >= c->begin[s] || c->end[m->group[v]] <= s) continue;
        size_t bytes = gcpi_revive(m, v);
        live += c->end[m->group[v]] < c->stages ? bytes : 0;
    }
    *held = 0;
    for (int f = c->begin[s]; hold && f < c->begin[s + 1]; f++)
        for GCPI_WRITES(m, f, k)
    if (c->end[m->group[m->written[k]]] > s || (hold == 2 && c->need[m->written[k]]))
        *held += gcpi_revive(m, m->written[k]);
    live += *held;
    for (int t = end - 1; t >= first; t--) {
        size_t now = gcpi_pass_task(m, t, &live) +
                     (t < m->p->forward ? m->workspace[t] : m->during[t] - (m->during[0] - m->workspace[0]));
        most = GCPI_MAX(most, now);
    }
    return most;
}

static void gcpi_chain_figures(gcpi_chain *c)
{
    const gcpi_model *m = c->m;
    size_t held;
    for (int s = 0; s < c->stages; s++) {
        int b = c->back[s], end = gcpi_chain_back_end(c, s);
        for (int f = c->begin[s]; f < c->begin[s + 1]; f++) c->seconds[s] += m->p->tasks[f].seconds;
        for (int k = b; k < end; k++) c->reverse_seconds[s] += m->p->tasks[k].seconds;
        c->last[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 2, 1, &held);
        c->pass[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 1, 0, &held);
        c->alone[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 1, 1, &held);
        c->save[s] = gcpi_chain_most(c, s, c->begin[s], c->begin[s + 1], 2, 0, &c->keep[s]);
        c->own[s] = c->keep[s] - held;
        c->reverse[s] = gcpi_chain_most(c, s, b, end, 0, 0, &held);
        c->gradient[s] = b < end ? m->before[b] - (m->during[0] - m->workspace[0]) : 0;
    }
}

static int gcpi_chain_arrays(gcpi_chain *c, int most, gcp_arena *a)
{
    const gcpi_model *m = c->m;
    size_t **const bytes[] = { &c->keep, &c->own,   &c->reads_own, &c->save,    &c->pass,
                               &c->last, &c->alone, &c->reverse,   &c->gradient };
    int ok = 1;
    c->begin = GCPI_SCRATCH(a, int, most + 2);
    c->back = GCPI_SCRATCH(a, int, most + 1);
    c->made = GCPI_SCRATCH(a, int, m->groups + 1);
    c->end = GCPI_SCRATCH(a, int, m->groups + 1);
    c->need = GCPI_SCRATCH(a, unsigned char, m->values + 1);
    c->taped = GCPI_SCRATCH(a, unsigned char, m->groups + 1);
    c->loose = GCPI_SCRATCH(a, unsigned char, most + 1);
    c->seconds = GCPI_SCRATCH(a, double, most + 1);
    c->reverse_seconds = GCPI_SCRATCH(a, double, most + 1);
    for (int i = 0; i < 9; i++) ok &= (*bytes[i] = GCPI_SCRATCH(a, size_t, most + 1)) != NULL;
    c->cross = GCPI_SCRATCH(a, size_t, most * most + 1);
    c->ran = GCPI_SCRATCH(a, unsigned char, m->p->task_count + 1);
    return ok && c->begin && c->back && c->made && c->end && c->need && c->taped && c->loose && c->seconds &&
           c->reverse_seconds && c->cross && c->ran;
}

static size_t gcpi_common_divisor(size_t a, size_t b)                /* the greatest; of 0 and b it is b */
{
    while (b) { const size_t rest = a % b; a = b; b = rest; }
    return a;
}

/* The unit of sizes: the most bytes of which all are multiples. Small ones (a loss beside activations) are not looked
   at where all of them together, *dust, are at most a sixteenth of the unit of the others. */
static size_t gcpi_chain_unit(const gcpi_model *m, size_t *dust)
{
    size_t unit = 0, most = 0, all = 0, rest = 0;
    *dust = 0;
    for (int g = 0; g < m->groups; g++) {
        most = GCPI_MAX(most, m->bytes[g]);
        all = gcpi_common_divisor(all, m->bytes[g]);
    }
    for (int g = 0; g < m->groups; g++)
        if (m->bytes[g] < most / 64) *dust += m->bytes[g];
        else unit = gcpi_common_divisor(unit, m->bytes[g]);
    for (int t = 0; t < m->p->task_count; t++) {
        all = gcpi_common_divisor(all, m->during[t]);
        if (unit) rest = GCPI_MAX(rest, (m->during[t] - (m->during[0] - m->workspace[0])) % unit);
    }
    *dust += rest;
    if (*dust && *dust <= unit / 16) return unit;
    *dust = 0;
    return GCPI_MAX(all, 1);
}

/* At most `most` stages; but where few grains express all sizes exactly, more of them, as many as the memory of the
   tables allows. */
static int gcpi_chain_stages(const gcpi_model *m, size_t bytes, int most)
{
    size_t dust;
    const size_t grains = bytes / gcpi_chain_unit(m, &dust);
    const double cells = (double)GCPI_FEW_CELLS * GCPI_MIN(most, 96) / 96;
    return grains < GCPI_FEW_GRAINS ? (int)sqrt(cells / ((double)grains + 5)) : most;
}

/* Stages and their figures. Returns the most bytes that the reversal of one takes. */
static size_t gcpi_chain_divide(gcpi_chain *c, const size_t *crossing, int most, int *stage_of, int late)
{
    const gcpi_model *m = c->m;
    size_t need = 0;
    c->late = late;
    memset(c->need, 0, (size_t)m->values);
    memset(c->taped, 0, (size_t)m->groups);
    memset(c->reads_own, 0, (size_t)(most + 2) * sizeof *c->reads_own);
    memset(c->seconds, 0, (size_t)(most + 2) * sizeof *c->seconds);
    memset(c->reverse_seconds, 0, (size_t)(most + 2) * sizeof *c->reverse_seconds);
    memset(c->cross, 0, (size_t)((most + 1) * (most + 1) + 1) * sizeof *c->cross);
    c->pinned = 0;
    gcpi_chain_cut(c, crossing, most);
    gcpi_chain_backs(c, stage_of);
    c->constant = m->during[0] - m->workspace[0];
    gcpi_chain_lives(c, stage_of);
    gcpi_chain_figures(c);
    for (int s = 0; s < c->stages; s++)
        need = GCPI_MAX(need, gcpi_chain_input(c, s) + GCPI_MAX(c->gradient[s] + c->save[s], c->reverse[s]));
    return need;
}

/* Whether a chain takes far fewer bytes where its backward tasks are late: where they read what ops read, not what they
   write. */
static int gcpi_chain_pays_late(const gcpi_model *m, const size_t *crossing, int most, gcp_arena *a)
{
    gcpi_chain c;
    const ptrdiff_t scratch = a->scratch;
    int pays = 0;
    memset(&c, 0, sizeof c);
    c.m = m;
    most = GCPI_MIN(most, m->p->forward + 1);
    if (gcpi_chain_arrays(&c, most, a)) {
        int *stage_of = GCPI_SCRATCH(a, int, m->p->task_count + 1);
        const size_t need = stage_of ? gcpi_chain_divide(&c, crossing, most - 1, stage_of, 0) : 0;
        pays = stage_of && gcpi_chain_divide(&c, crossing, most - 1, stage_of, 1) < need - need / 6;
    }
    a->scratch = scratch;
    return pays;
}

/* ==== src/search/chain.h ==== */

/* GCP_POLICY_BUDGET: dynamic programming over a chain of stages. It is the recursion of Beaumont et al. (rotor, 2019),
   with boundaries that are sets of values. A second table is for segments whose last values are there still, which
   spares their last run. Where backward does not read the boundaries, a third table lets what the segment begins with
   go once its first stage has run for the last time.

   L(s): what crosses from stage s (stages.h). C0(s, t, m): the least seconds to reverse stages s..t with m grains above
   L(s - 1). C1: the same where L(t) is there already and counts in m. C2: the same where L(s - 1) counts in m and is
   not needed afterwards.
     keep: run s and keep what its backward reads; C(s + 1, t) with fewer grains; backward of s
     cut:  run s..r - 1, keep L(r - 1); C(r, t) with fewer grains; C1(s, r - 1)
           (C2: keep L(s - 1); C2(r, t) with fewer grains; C2(s, r - 1))
   Sizes are rounded up to grains (rotor's slots). The orders that come out are judged by simulation: no count here is
   trusted. */

#define GCPI_NEVER 1e30f

/* Bytes above L(s - 1) while stage r runs after stages s..r - 1. Where L(s - 1) holds none of its inputs, these die
   there and may be written on. */
static size_t gcpi_chain_pass(const gcpi_chain *c, int s, int r)
{
    if (r == s) return c->pass[r];
    size_t inputs = c->cross[s * c->stages + r - 1];
    return inputs == c->cross[r - 1] ? c->alone[r] : inputs + c->pass[r];
}

static int gcpi_chain_at(int s, int t) { return t * (t + 1) / 2 + s; }
static float *gcpi_chain_row(const gcpi_chain *c, int with, int s, int t)
{
    return c->table[with] + (size_t)gcpi_chain_at(s, t) * (size_t)(c->grains + 1);
}

static int gcpi_chain_grains(const gcpi_chain *c, size_t bytes)
{
    double n = (double)(ptrdiff_t)bytes * c->per_byte + c->rounding;              /* rounds up, but for dust */
    return n > c->grains ? c->grains + 1 : (int)n;
}

static float gcpi_relative(const gcpi_chain *c, double seconds) { return (float)(seconds / c->m->seconds); }

/* row[k] = least of row[k] and a[k - shift] + b[k] + seconds, for k in [from, to]. b may be NULL. */
GCPI_LOOP void gcpi_chain_relax(float *GCPI_RESTRICT row, const float *a, const float *b, float seconds, int from,
                                int to)
{
    for (int k = from; b && k <= to; k++) {
        float value = a[k] + b[k] + seconds;
        row[k] = value < row[k] ? value : row[k];
    }
    for (int k = from; !b && k <= to; k++) row[k] = a[k] + seconds < row[k] ? a[k] + seconds : row[k];
}

/* What is there when the reversal of s..t begins: gradients and, in C1, what s..t made of L(t). */
static size_t gcpi_chain_start(const gcpi_chain *c, int with, int s, int t)
{
    return c->gradient[t] + (with == 1 ? c->cross[s * c->stages + t] : 0);
}

/* Fills the rest of a row, and finds where it begins to hold anything. */
static void gcpi_chain_first(gcpi_chain *c, int with, int s, int t)
{
    float *row = gcpi_chain_row(c, with, s, t);
    int at = gcpi_chain_at(s, t), first = 0;
    for (int k = c->full[with][at] + 1; k <= c->grains; k++) row[k] = row[k - 1];
    while (first <= c->grains && row[first] >= GCPI_NEVER) first++;
    c->first[with][at] = first;
}

static void gcpi_chain_single(gcpi_chain *c, int s)
{
    float *row[3] = { gcpi_chain_row(c, 0, s, s), gcpi_chain_row(c, 1, s, s),
                      c->tables < 3 ? NULL : gcpi_chain_row(c, 2, s, s) };
    float f = gcpi_relative(c, c->seconds[s]), b = gcpi_relative(c, c->reverse_seconds[s]);
    int run = gcpi_chain_grains(c, GCPI_MAX(c->gradient[s] + c->save[s], c->reverse[s])),
        reverse = gcpi_chain_grains(c, c->reverse[s]);
    int there = gcpi_chain_grains(c, GCPI_MAX(gcpi_chain_start(c, 1, s, s), c->reverse[s]));
    int input = gcpi_chain_grains(c, gcpi_chain_input(c, s)),
        last = gcpi_chain_grains(c, GCPI_MAX(c->gradient[s] + c->last[s], c->reverse[s]));
    for (int k = 0; k <= c->grains; k++) {
        row[0][k] = k >= reverse && c->reads_own[s] == 0 ? b : k >= run ? f + b : GCPI_NEVER;
        row[1][k] = k >= there && c->own[s] == 0 ? GCPI_MIN(b, row[0][k]) : row[0][k];
        if (c->tables < 3) continue;
        row[2][k] = k >= input ? row[0][k - input] : GCPI_NEVER;
        if (c->loose[s] && k >= last) row[2][k] = GCPI_MIN(row[2][k], f + b);
    }
    for (int with = 0; with < c->tables; with++) {
        c->full[with][gcpi_chain_at(s, s)] = GCPI_MIN(
            c->grains, GCPI_MAX(GCPI_MAX(run, there), with < 2 ? 0 : GCPI_MAX(last, input + GCPI_MAX(run, reverse))));
        gcpi_chain_first(c, with, s, s);
    }
}

/* What distinguishes the tables: the bytes of L(s - 1) that count in m; the table for the stages before a cut. */
static size_t gcpi_chain_inside(const gcpi_chain *c, int with, int s) { return with == 2 ? gcpi_chain_input(c, s) : 0; }
static int gcpi_chain_left(int with) { return with == 2 ? 2 : 1; }

/* keep: the grains that it takes from the stages after s; *from: the fewest grains with which it is possible. */
static int gcpi_chain_keep(const gcpi_chain *c, int with, int s, int t, int *from)
{
    size_t start = gcpi_chain_start(c, with, s, t);
    *from = gcpi_chain_grains(c, GCPI_MAX(start + (with == 2 ? c->last : c->save)[s], c->reverse[s]));
    if (with == 2 && !c->loose[s]) *from = c->grains + 1;
    return gcpi_chain_grains(c, with == 2 ? c->own[s] : c->keep[s]);
}

/* A cut before r: the same. most: peak bytes above L(s - 1) while stages s..r - 1 run. */
static int gcpi_chain_hold(const gcpi_chain *c, int with, int s, int t, int r, size_t most, int *from)
{
    size_t inside = gcpi_chain_inside(c, with, s);
    *from = s == 0 && c->pinned && r > 1 ? c->grains + 1
                                         : gcpi_chain_grains(c, inside + gcpi_chain_start(c, with, s, t) + most);
    return gcpi_chain_grains(c, with == 2 ? inside : c->cross[s * c->stages + r - 1]);
}

static void gcpi_chain_segment(gcpi_chain *c, int with, int s, int t)
{
    float *row = gcpi_chain_row(c, with, s, t), *without = gcpi_chain_row(c, 0, s, t);
    size_t most = 0;
    double run = 0;
    int from, shift = gcpi_chain_keep(c, with, s, t, &from), rest = gcpi_chain_at(s + 1, t),
              left = gcpi_chain_left(with);
    int inside = gcpi_chain_grains(c, gcpi_chain_inside(c, with, s));
    int full = GCPI_MAX(from > c->grains ? 0 : GCPI_MAX(from, shift + c->full[with][rest]),
                        with ? inside + c->full[0][gcpi_chain_at(s, t)] : 0);
    c->full[with][gcpi_chain_at(s, t)] = full = GCPI_MIN(full, c->grains);
    for (int k = 0; k <= full; k++) row[k] = with && k >= inside ? without[k - inside] : GCPI_NEVER;
    gcpi_chain_relax(row, gcpi_chain_row(c, with, s + 1, t) - shift, NULL,
                     gcpi_relative(c, c->seconds[s] + c->reverse_seconds[s]),
                     GCPI_MAX(from, shift + c->first[with][rest]), full);
    for (int r = s + 1; r <= t; r++) {
        run += c->seconds[r - 1];
        most = GCPI_MAX(most, gcpi_chain_pass(c, s, r - 1));
        shift = gcpi_chain_hold(c, with, s, t, r, most, &from);
        if (from > full) break;
        from = GCPI_MAX(from,
                        GCPI_MAX(shift + c->first[with][gcpi_chain_at(r, t)], c->first[left][gcpi_chain_at(s, r - 1)]));
        gcpi_chain_relax(row, gcpi_chain_row(c, with, r, t) - shift, gcpi_chain_row(c, left, s, r - 1),
                         gcpi_relative(c, run), from, full);
    }
    gcpi_chain_first(c, with, s, t);
}

/* A few t at a time: what they read of C1 stays in the cache. */
static void gcpi_chain_solve(gcpi_chain *c)
{
    enum { TILE = 8 };
    for (int s = 0; s < c->stages; s++) gcpi_chain_single(c, s);
    for (int tile = 0; tile < c->stages; tile += TILE)
        for (int s = GCPI_MIN(tile + TILE, c->stages) - 2; s >= 0; s--)
            for (int t = GCPI_MAX(tile, s + 1); t < GCPI_MIN(tile + TILE, c->stages); t++)
                for (int with = 0; with < c->tables; with++) gcpi_chain_segment(c, with, s, t);
}

/* Emission. A forward task runs for the first time or again; the simulation removes runs that nobody reads. */
static void gcpi_chain_emit(gcpi_chain *c, gcpi_order *out, int task)
{
    int again = task < c->m->p->forward && c->ran[task];
    if (again && !c->m->again[task]) return;
    if (out->count < out->capacity) out->at[out->count] = again ? ~task : task;
    out->count++;
    c->ran[task] = 1;
}

static void gcpi_chain_run(gcpi_chain *c, gcpi_order *out, int s)
{
    for (int f = c->begin[s]; f < c->begin[s + 1]; f++) gcpi_chain_emit(c, out, f);
}
static void gcpi_chain_reverse(gcpi_chain *c, gcpi_order *out, int s)
{
    for (int b = c->back[s]; b < gcpi_chain_back_end(c, s); b++) gcpi_chain_emit(c, out, b);
}

/* Which way the table went. 0: keep; r: a cut before stage r; -1: that of C0. */
static int gcpi_chain_way(const gcpi_chain *c, int with, int s, int t, int k)
{
    size_t most = 0;
    double run = 0;
    float least = GCPI_NEVER;
    int way = 0, from, shift = gcpi_chain_keep(c, with, s, t, &from),
        inside = gcpi_chain_grains(c, gcpi_chain_inside(c, with, s));
    if (k >= GCPI_MAX(shift, from))
        least = gcpi_chain_row(c, with, s + 1, t)[k - shift] + gcpi_relative(c, c->seconds[s] + c->reverse_seconds[s]);
    for (int r = s + 1; r <= t; r++) {
        run += c->seconds[r - 1];
        most = GCPI_MAX(most, gcpi_chain_pass(c, s, r - 1));
        shift = gcpi_chain_hold(c, with, s, t, r, most, &from);
        if (k < GCPI_MAX(shift, from)) continue;
        float value = gcpi_chain_row(c, with, r, t)[k - shift] + gcpi_chain_row(c, gcpi_chain_left(with), s, r - 1)[k] +
                      gcpi_relative(c, run);
        if (value < least) { least = value; way = r; }
    }
    return with && k >= inside && gcpi_chain_row(c, 0, s, t)[k - inside] <= least ? -1 : way;
}

static void gcpi_chain_trace(gcpi_chain *c, gcpi_order *out, int with, int s, int t, int k)
{
    if (out->count > out->capacity) return;
    if (s == t) {
        int there = with == 1 && c->own[s] == 0 &&
                    k >= gcpi_chain_grains(c, GCPI_MAX(gcpi_chain_start(c, 1, s, s), c->reverse[s]));
        if (!c->ran[c->begin[s]] || (!there && c->reads_own[s])) gcpi_chain_run(c, out, s);
        gcpi_chain_reverse(c, out, s);
        return;
    }
    int way = gcpi_chain_way(c, with, s, t, k), from;
    if (way < 0) { gcpi_chain_trace(c, out, 0, s, t, k - gcpi_chain_grains(c, gcpi_chain_inside(c, with, s))); return; }
    for (int r = s; r < GCPI_MAX(way, s + 1); r++) gcpi_chain_run(c, out, r);
    if (way == 0) {
        gcpi_chain_trace(c, out, with, s + 1, t, k - gcpi_chain_keep(c, with, s, t, &from));
        gcpi_chain_reverse(c, out, s);
    } else {
        gcpi_chain_trace(c, out, with, way, t, k - gcpi_chain_hold(c, with, s, t, way, 0, &from));
        gcpi_chain_trace(c, out, gcpi_chain_left(with), s, way - 1, k);
    }
}

/* The chain of a model, with tables for orders of up to `bytes`. Scratch of a; 0: not enough. */
static int gcpi_chain_make(gcpi_chain *c, const gcpi_model *m, const size_t *crossing, size_t bytes, int most,
                           int grains, int late, gcp_arena *a)
{
    memset(c, 0, sizeof *c);
    c->m = m;
    most = GCPI_MIN(most, m->p->forward + 1);
    if (!gcpi_chain_arrays(c, most, a)) return 0;
    ptrdiff_t scratch = a->scratch;
    int *stage_of = GCPI_SCRATCH(a, int, m->p->task_count + 1);
    if (!stage_of) return 0;
    gcpi_chain_divide(c, crossing, most - 1, stage_of, late);
    c->tables = gcpi_chain_tables(c);
    a->scratch = scratch;
    if (bytes <= c->constant) return 0;
    size_t dust, unit = gcpi_chain_unit(m, &dust);
    if (c->tables == 3) grains = GCPI_MIN(grains, GCPI_MOST_GRAINS * 5 / 8);
    /* exact: a grain is one unit, and nothing but dust is rounded */
    int exact = (bytes - c->constant) / unit <= (size_t)grains;
    c->grains = exact ? GCPI_MIN(grains, (int)((bytes - c->constant) / unit) + 4) : grains;
    c->rounding = 1 - 1e-9 - (exact ? (double)dust / (double)unit : 0);
    c->per_byte = exact ? 1 / (double)unit : grains / (double)(bytes - c->constant);
    ptrdiff_t rows = (ptrdiff_t)c->stages * (c->stages + 1) / 2;
    for (int with = 0; with < c->tables; with++) {
        c->table[with] = GCPI_SCRATCH(a, float, rows * (c->grains + 1));
        c->first[with] = GCPI_SCRATCH(a, int, rows);
        c->full[with] = GCPI_SCRATCH(a, int, rows);
        if (!c->table[with] || !c->first[with] || !c->full[with]) return 0;
    }
    gcpi_chain_solve(c);
    return 1;
}

/* The table's order for k grains; 0: there is none. */
static int gcpi_chain_order(gcpi_chain *c, gcpi_order *out, int k)
{
    int with = c->tables < 3 ? 0 : 2;
    if (gcpi_chain_row(c, with, 0, c->stages - 1)[k] >= GCPI_NEVER) return 0;
    memset(c->ran, 0, (size_t)c->m->p->task_count);
    out->count = 0;
    gcpi_chain_trace(c, out, with, 0, c->stages - 1, k);
    if (out->count > out->capacity) return 0;
    gcpi_simulate(c->m, out, NULL);
    return out->valid;
}

/* ==== src/search/cuts.h ==== */

/* GCP_POLICY_BUDGET: minimum cuts, the bound. A resident byte has a price. A value that is needed later is kept (its
   bytes times the price), or its task runs again (seconds), which needs its inputs. The least total is a minimum
   cut: a value on the source side is needed, and kept if its task is on the sink side. Keep-sets for many prices are
   starts for the search. For each position in the order, the cut also bounds what any order must pay from there on
   (Lagrangian of the bytes that are free there), so that the answer comes with its gap. */
enum { GCPI_CUT_WORK = 500000000, GCPI_CUT_PLACES = 32 };
typedef struct gcpi_cut {
    const gcpi_model *m;
    /* node 0: source, 1: sink, 2 + value, 2 + values + task */
    int nodes, arcs, *head, *next, *to, *level, *at, *path;
    double *room, kept;               /* per arc: what may still flow; kept: bytes that the cut keeps */
    double price;                     /* the best one at this position, or 0 */
    double work;                      /* arcs that may still be looked at: a long chain can take thousands of phases */
    size_t *own;                      /* per value: bytes that keeping it adds */
    int *needed;                      /* per value: last task that reads it; if it lives to the end, the last of all */
    /* per value: resident at the position in question; a task of the window behind it reads it */
    unsigned char *free, *wanted;
} gcpi_cut;

static size_t gcpi_dense_bytes(const gcpi_problem *p, int item)      /* without what lies between its rows */
{
    const gcpi_item *x = &p->items[item];
    if (!x->row || x->pitch == x->row) return x->bytes;
    size_t row = (size_t)x->row * sizeof(gcp_real), pitch = (size_t)x->pitch * sizeof(gcp_real);
    return (x->bytes - GCPI_MIN(row, x->bytes)) / pitch * row + row;
}

static int gcpi_cut_make(gcpi_cut *c, const gcpi_model *m, gcp_arena *a)
{
    const gcpi_problem *p = m->p;
    int arcs = 2 * (3 * m->values + m->read_first[p->forward] * 2 + p->forward + 8);
    memset(c, 0, sizeof *c);
    c->m = m; c->work = GCPI_CUT_WORK;
    c->nodes = 2 + m->values + p->forward;
    c->head = GCPI_SCRATCH(a, int, c->nodes); c->level = GCPI_SCRATCH(a, int, c->nodes);
    c->at = GCPI_SCRATCH(a, int, c->nodes); c->path = GCPI_SCRATCH(a, int, c->nodes + 1);
    c->next = GCPI_SCRATCH(a, int, arcs); c->to = GCPI_SCRATCH(a, int, arcs); c->room = GCPI_SCRATCH(a, double, arcs);
    c->own = GCPI_SCRATCH(a, size_t, m->values + 1);
    c->needed = GCPI_SCRATCH(a, int, m->values + 1);
    c->free = GCPI_SCRATCH(a, unsigned char, m->values + 1);
    c->wanted = GCPI_SCRATCH(a, unsigned char, m->values + 1);
    if (!c->head || !c->level || !c->at || !c->path || !c->next || !c->to || !c->room || !c->own || !c->needed ||
        !c->free || !c->wanted)
        return 0;
    for (int i = 0; i < p->item_count; i++) {
        int v = m->value_of[i];
        if (v < 0) continue;
        c->own[v] = p->items[p->items[i].root].next < 0 ? gcpi_round(p->items[i].bytes, p->target.align)
                                                        : gcpi_dense_bytes(p, i);
        const gcpi_task *t = &p->tasks[m->producer[v]];
        for (int k = 0; k < t->count; k++) {         /* a view adds only what is not its inputs' bytes */
            int x = p->operands[t->operands + k].item;
            if (p->operands[t->operands + k].mode == GCPI_READ && p->items[x].root == p->items[i].root)
                c->own[v] -= GCPI_MIN(c->own[v], gcpi_dense_bytes(p, x));
        }
    }
    for (int v = 0; v < m->values; v++) c->needed[v] = m->producer[v];
    for (int t = 0; t < p->task_count; t++) for GCPI_READS(m, t, k) c->needed[m->read[k]] = t;
    for (int v = 0; v < m->values; v++) if (m->lasting[v]) c->needed[v] = p->task_count - 1;
    return 1;
}

static void gcpi_arc(gcpi_cut *c, int from, int to, double room)
{
    for (int back = 0; back < 2; back++) {
        c->to[c->arcs] = back ? from : to;
        c->room[c->arcs] = back ? 0 : room;
        c->next[c->arcs] = c->head[back ? to : from];
        c->head[back ? to : from] = c->arcs++;
    }
}

/* The network at a price for position k: the values made before k that are read after it (in backward, or at it), and
   what it takes to make them again. */
static void gcpi_cut_build(gcpi_cut *c, int k, double price)
{
    const gcpi_model *m = c->m;
    int forward = GCPI_MIN(k, m->p->forward), tasks = 2 + m->values;
    const double never = 1e30;
    c->arcs = 0;
    for (int i = 0; i < c->nodes; i++) c->head[i] = -1;
    for (int f = 0; f < forward; f++) {
        if (!m->again[f]) continue;
        gcpi_arc(c, tasks + f, 1, m->p->tasks[f].seconds);
        for
            GCPI_READS(m, f, i)
            if (!c->free[m->read[i]] && m->again[m->producer[m->read[i]]])
                gcpi_arc(c, tasks + f, 2 + m->read[i], never);
        for GCPI_WRITES(m, f, i) {
            int v = m->written[i];
            if (c->free[v]) continue;
            gcpi_arc(c, 2 + v, tasks + f, price * (double)c->own[v]);
            for
                GCPI_READS(m, f, j)
                if (m->group[m->read[j]] == m->group[v] && !c->free[m->read[j]] && m->again[m->producer[m->read[j]]])
                    gcpi_arc(c, 2 + v, 2 + m->read[j], never);
            if (c->wanted[v]) gcpi_arc(c, 0, 2 + v, never);
        }
    }
}

static int gcpi_cut_levels(gcpi_cut *c)
{
    int first = 0, count = 1;
    for (int i = 0; i < c->nodes; i++) { c->level[i] = -1; c->at[i] = c->head[i]; }
    c->level[0] = 0;
    c->path[0] = 0;                                  /* as a queue */
    while (first < count) {
        int node = c->path[first++];
        for (int e = c->head[node]; e >= 0; c->work--, e = c->next[e])
            if (c->room[e] > 0 && c->level[c->to[e]] < 0) {
                c->level[c->to[e]] = c->level[node] + 1;
                c->path[count++] = c->to[e];
            }
    }
    return c->level[1] >= 0;
}

/* Pushes what one path from the source along levels can take; 0: there is no path left. path: its arcs. */
static double gcpi_cut_push(gcpi_cut *c)
{
    int node = 0, depth = 0;
    while (node != 1) {
        int e = c->at[node];
        while (e >= 0 && (c->room[e] <= 0 || c->level[c->to[e]] != c->level[node] + 1)) e = c->next[e];
        c->at[node] = e;
        c->work -= 2;
        if (e >= 0) { c->path[depth++] = e; node = c->to[e]; continue; }
        if (!depth) return 0;
        c->level[node] = -1;
        node = c->to[c->path[--depth] ^ 1];
    }
    double least = 1e300;
    for (int i = 0; i < depth; i++) least = GCPI_MIN(least, c->room[c->path[i]]);
    for (int i = 0; i < depth; i++) { c->room[c->path[i]] -= least; c->room[c->path[i] ^ 1] += least; }
    return least;
}

static int gcpi_cut_keeps(const gcpi_cut *c, int v)
{
    return c->level[2 + v] >= 0 && c->level[2 + c->m->values + c->m->producer[v]] < 0;
}

/* Dinic's algorithm (1970). Returns the least seconds + price x bytes; where c->work ends, what it is at least. */
static double gcpi_cut_solve(gcpi_cut *c, int k, double price)
{
    double flow = 0, more;
    gcpi_cut_build(c, k, price);
    while (gcpi_cut_levels(c) && c->work > 0) while (c->work > 0 && (more = gcpi_cut_push(c)) > 0) flow += more;
    c->kept = 0;
    for (int v = 0; v < c->m->values; v++) if (gcpi_cut_keeps(c, v)) c->kept += (double)c->own[v];
    return flow;
}

/* The bytes that are live in any case while task k runs. Values that are resident then become free. A value that lives
   to the end is live in any case only if it cannot be made again. */
static size_t gcpi_cut_place(gcpi_cut *c, int k)
{
    const gcpi_model *m = c->m;
    size_t live = 0, now;
    memset(m->live, 0, m->state_bytes);
    for (int v = 0; v < m->values; v++)
        if (m->lasting[v] && !m->again[m->producer[v]] && m->producer[v] <= k) live += gcpi_revive(m, v);
    now = gcpi_pass_task(m, k, &live) + m->during[k];
    for GCPI_WRITES(m, k, i) m->members[m->group[m->written[i]]]++;
    for (int v = 0; v < m->values; v++) c->free[v] = m->members[m->group[v]] > 0;
    return now;
}

/* The window from task `from` to task `to`: what it wants is what these read, and behind the last, what lives on. */
static void gcpi_cut_window(gcpi_cut *c, int from, int to)
{
    const gcpi_model *m = c->m;
    memset(c->wanted, 0, (size_t)m->values);
    for (int t = from; t <= to; t++) for GCPI_READS(m, t, i) c->wanted[m->read[i]] = 1;
    for (int v = 0; v < m->values && to == m->p->task_count - 1; v++) c->wanted[v] |= m->lasting[v];
}

/* A lower bound of what any order runs again from when task k first runs until task `to` does, because only `limit`
   bytes are there at k. */
static double gcpi_cut_bound_at(gcpi_cut *c, int k, int to, size_t limit)
{
    size_t footprint = gcpi_cut_place(c, k);
    double capacity = (double)limit - (double)footprint, low = 0, high = 0, best = 0, need = 0, cost = 0,
           dearest = 0;
    gcpi_cut_window(c, k, to);
    for (int v = 0; v < c->m->values; v++)
        if (!c->free[v] && c->m->producer[v] < k && c->wanted[v]) {
            need += (double)c->own[v];
            cost += c->m->p->tasks[c->m->producer[v]].seconds;
        }
    if (capacity < 0 || need <= capacity) return 0;
    for (int step = 0; step < 24; step++) {
        double price = high > 0 ? (low + high) / 2 : low > 0 ? 4 * low : c->price > 0 ? c->price : cost / need,
               value = gcpi_cut_solve(c, k, price) - price * capacity;
        if (value > best) { best = value; dearest = price; }
        if (c->kept > capacity) low = price;
        else high = price;
        if (high > 0 && high - low < 0.01 * high) break;
    }
    if (best > 0) c->price = dearest;
    return best;
}

/* The bytes that task k takes in any case. *own: the part of the crossing values that these bytes hold. All values are
   dead before and after. */
static size_t gcpi_footprint(const gcpi_cut *c, int k, size_t *own)
{
    const gcpi_model *m = c->m;
    size_t live = 0, now = gcpi_pass_task(m, k, &live) + m->during[k];
    *own = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int i = pass ? m->written_first[k] : m->read_first[k];
             i < (pass ? m->written_first[k + 1] : m->read_first[k + 1]); i++) {
            int v = pass ? m->written[i] : m->read[i];
            m->live[v] = 0;
            m->members[m->group[v]] = 0;
            for (int x = m->p->items[m->item[v]].root; x >= 0; x = m->p->items[x].next)
                if (m->value_of[x] >= 0 && m->producer[m->value_of[x]] < k && c->needed[m->value_of[x]] >= k)
                    *own += c->own[m->value_of[x]];
        }
    return now;
}

static void gcpi_all_dead(const gcpi_model *m)
{
    memset(m->live, 0, m->state_bytes);
}

/* The bytes below which nothing fits. */
static size_t gcpi_least_bytes(gcpi_cut *c)
{
    size_t most = 0, own;
    gcpi_all_dead(c->m);
    for (int t = 0; t < c->m->p->task_count; t++) {
        size_t now = gcpi_footprint(c, t, &own);
        most = GCPI_MAX(most, now);
    }
    return most;
}

/* The most crowded tasks, some way apart, first to last. excess: per task, bytes that want to be there above the limit;
   becomes 0 around each. Returns how many. */
static int gcpi_cut_places(const gcpi_cut *c, double *excess, int most, int *at)
{
    int tasks = c->m->p->task_count, apart = tasks / (4 * most), n = 0;
    for (; n < most; n++) {
        int worst = 0, i = n;
        for (int t = 1; t < tasks; t++) if (excess[t] > excess[worst]) worst = t;
        if (excess[worst] <= 0) break;
        for (; i > 0 && at[i - 1] > worst; i--) at[i] = at[i - 1];
        at[i] = worst;
        for (int t = GCPI_MAX(0, worst - apart); t <= GCPI_MIN(tasks - 1, worst + apart); t++) excess[t] = 0;
    }
    return n;
}

/* The best sum of bounds of windows that do not meet: no run again falls into two of them. */
static double gcpi_cut_windows(gcpi_cut *c, const int *at, int n, size_t limit)
{
    double sum[GCPI_CUT_PLACES + 1];
    sum[n] = 0;
    for (int i = n - 1; i >= 0; i--) {
        double most = HUGE_VAL;                          /* no window from i on that ends earlier has a higher bound */
        sum[i] = sum[i + 1];
        c->price = 0;
        for (int j = n; j > i && most + sum[i + 1] > sum[i]; j--) {
            most = gcpi_cut_bound_at(c, at[i], j == n ? c->m->p->task_count - 1 : at[j], limit);
            sum[i] = GCPI_MAX(sum[i], most + sum[j]);
        }
    }
    return sum[0];
}

/* A lower bound of every order's seconds within `limit` bytes, from cuts at the most crowded tasks. excess: zeros, one
   more than tasks. */
static double gcpi_bound(gcpi_cut *c, size_t limit, int places, double *excess)
{
    const gcpi_model *m = c->m;
    int tasks = m->p->task_count, at[GCPI_CUT_PLACES];
    double crossing = 0;
    for (int v = 0; v < m->values; v++) {
        excess[m->producer[v] + 1] += (double)c->own[v];
        excess[c->needed[v] + 1] -= (double)c->own[v];
    }
    gcpi_all_dead(m);
    for (int t = 0; t < tasks; t++) {
        size_t own, footprint = gcpi_footprint(c, t, &own);
        crossing += excess[t];
        excess[t] = (double)footprint - (double)limit;
        if (excess[t] > 0) return HUGE_VAL;
        excess[t] += crossing - (double)own;
    }
    int n = gcpi_cut_places(c, excess, GCPI_MIN(places, GCPI_CUT_PLACES), at);
    return m->seconds + gcpi_cut_windows(c, at, n, limit);
}
GCPI_COLD                              /* at -Og: code that runs once per plan or step */

/* ==== src/search/exact.h ==== */

/* GCP_POLICY_BUDGET: exact search of small graphs. At most 14 forward ops and values: Dijkstra over (next task, set
   of live values). Edges: the next task; a task again; a value dropped. Least seconds within a limit, or (limit 0)
   the least peak that any order has. */
enum { GCPI_EXACT_VALUES = 14 };

typedef struct gcpi_exact {
    const gcpi_model *m;
    size_t limit, *bytes;             /* bytes: per set */
    /* sets of values; mates: per value, those of its group; useful: per next task, what may still be read */
    unsigned *mates, *useful, *reads, *writes, *clashes;
    double *cost;                     /* per state: (next task << values) + set */
    int *heap, *place, count;         /* states; per state, its index in the heap + 1, -1: settled */
    /* per state: how it was reached: task, ~task for a task again, INT32_MAX: a value dropped */
    int *edge;
    unsigned *from;                   /* per state: the set it was reached from */
    /* for other orders than the fastest: by chance a run counts up to this share more seconds; others in each turn */
    double noise; int turn;
} gcpi_exact;

/* What a run of task before `next` counts. */
static double gcpi_exact_seconds(const gcpi_exact *x, int next, int task)
{
    const double seconds = x->m->p->tasks[task].seconds;
    if (!(x->noise > 0)) return seconds;
    uint64_t random = (uint64_t)(x->turn * 65536 + next * 256 + task + 1) * 6364136223846793005u;
    for (int i = 0; i < 3; i++) gcpi_below(&random, 2);                /* neighbours' first numbers are alike */
    return seconds * (1 + x->noise * gcpi_below(&random, 65536) / 65536.0);
}

static void gcpi_exact_sift(gcpi_exact *x, int i)
{
    int state = x->heap[i];
    for (; i > 0 && x->cost[x->heap[(i - 1) / 2]] > x->cost[state]; i = (i - 1) / 2) {
        x->heap[i] = x->heap[(i - 1) / 2];
        x->place[x->heap[i]] = i + 1;
    }
    for (int child; (child = 2 * i + 1) < x->count; i = child) {
        if (child + 1 < x->count && x->cost[x->heap[child + 1]] < x->cost[x->heap[child]]) child++;
        if (x->cost[x->heap[child]] >= x->cost[state]) break;
        x->heap[i] = x->heap[child]; x->place[x->heap[i]] = i + 1;
    }
    x->heap[i] = state; x->place[state] = i + 1;
}

static void gcpi_exact_reach(gcpi_exact *x, int next, unsigned set, double cost, int edge, unsigned from)
{
    int state = (int)(((unsigned)next << x->m->values) + (set & x->useful[next]));
    if (x->place[state] < 0 || (x->place[state] > 0 && x->cost[state] <= cost)) return;
    x->cost[state] = cost; x->edge[state] = edge; x->from[state] = from;
    if (x->place[state] == 0) { x->heap[x->count] = state; x->place[state] = ++x->count; }
    gcpi_exact_sift(x, x->place[state] - 1);
}

/* Runs task (the next one, or one again) on a set, with each way of working in place. */
static void gcpi_exact_run(gcpi_exact *x, int next, unsigned set, int task, double cost)
{
    const gcpi_model *m = x->m;
    int again = task != next;
    unsigned all = set | x->writes[task];
    if ((x->reads[task] & ~set) || (again && (next > m->until[task] || x->clashes[task] & set))) return;
    size_t fixed = again ? m->before[next] + m->workspace[task] : m->during[task];
    for (int side = -1; side < (m->over[task] < 0 ? 0 : 2); side++) {
        unsigned after = all;
        size_t bytes = x->bytes[all] + fixed;
        if (side >= 0) {
            int under = m->under[2 * task + side], z = m->over[task];
            if (under < 0) continue;
            after &= ~(1u << under);
            if (set & x->mates[z] || after & x->mates[under]) continue;          /* others of the group live */
            bytes -= m->bytes[m->group[z]];
        }
        if (x->limit && bytes > x->limit) continue;
        gcpi_exact_reach(x, again ? next : next + 1, after,
                         x->limit ? cost + gcpi_exact_seconds(x, next, task) : GCPI_MAX(cost, (double)bytes),
                         again ? ~task : task, set);
    }
}

static int gcpi_exact_small(const gcpi_model *m)
{
    const int ops = gcpi_is_graph(m->p) ? m->p->forward : m->p->tape->op_count;
    return m->values <= GCPI_EXACT_VALUES && ops <= GCPI_EXACT_VALUES;
}

static int gcpi_exact_make(gcpi_exact *x, const gcpi_model *m, gcp_arena *a)
{
    int tasks = m->p->task_count;
    memset(x, 0, sizeof *x);
    x->m = m;
    if (!gcpi_exact_small(m)) return 0;
    ptrdiff_t sets = (ptrdiff_t)1 << m->values, states = sets * (tasks + 1);
    x->bytes = GCPI_SCRATCH(a, size_t, sets);
    x->mates = GCPI_SCRATCH(a, unsigned, m->values + 1);
    x->useful = GCPI_SCRATCH(a, unsigned, tasks + 1);
    x->reads = GCPI_SCRATCH(a, unsigned, tasks + 1);
    x->writes = GCPI_SCRATCH(a, unsigned, tasks + 1); x->clashes = GCPI_SCRATCH(a, unsigned, tasks + 1);
    x->cost = GCPI_SCRATCH(a, double, states);
    x->heap = GCPI_SCRATCH(a, int, states);
    x->place = GCPI_SCRATCH(a, int, states);
    x->edge = GCPI_SCRATCH(a, int, states); x->from = GCPI_SCRATCH(a, unsigned, states);
    if (!x->bytes || !x->mates || !x->useful || !x->reads || !x->writes || !x->clashes || !x->cost || !x->heap ||
        !x->place || !x->edge || !x->from)
        return 0;
    for (int t = 0; t < tasks; t++) {
        for GCPI_READS(m, t, k) x->reads[t] |= 1u << m->read[k];
        for GCPI_WRITES(m, t, k) x->writes[t] |= 1u << m->written[k];
        for (int v = 0; v < m->values; v++) x->clashes[t] |= (unsigned)(m->shares[t] && gcpi_clash(m, t, v)) << v;
    }
    for (int v = 0; v < m->values; v++) {
        if (m->lasting[v]) x->useful[tasks] |= 1u << v;
        for (int u = 0; u < m->values; u++) x->mates[v] |= (unsigned)(m->group[u] == m->group[v]) << u;
    }
    for (int t = tasks - 1; t >= 0; t--) {
        x->useful[t] = x->useful[t + 1] | x->reads[t];
        for (int f = m->p->forward - 1; f >= 0; f--)
            if (m->again[f] && x->writes[f] & x->useful[t]) x->useful[t] |= x->reads[f];
    }
    for (ptrdiff_t set = 1; set < sets; set++) {
        int top = m->values - 1;
        while (!((unsigned)set >> top & 1)) top--;
        unsigned rest = (unsigned)set & ~(1u << top);
        x->bytes[set] = x->bytes[rest] + (rest & x->mates[top] ? 0 : m->bytes[m->group[top]]);
    }
    return 1;
}

static void gcpi_exact_order(const gcpi_exact *x, int state, gcpi_order *out)
{
    const gcpi_model *m = x->m;
    int count = out->capacity;
    for (int next = m->p->task_count; x->from[state] != UINT32_MAX;) {
        int edge = x->edge[state];
        if (edge != INT32_MAX && count > 0) out->at[--count] = edge;
        next -= edge >= 0 && edge != INT32_MAX;
        state = (int)(((unsigned)next << m->values) + x->from[state]);
    }
    out->count = out->capacity - count;
    memmove(out->at, out->at + count, (size_t)out->count * sizeof *out->at);
    gcpi_simulate(m, out, NULL);
    out->valid &= count > 0;
}

/* 1: out holds the best order; 0: there is none within the limit. */
static int gcpi_exact_search(gcpi_exact *x, size_t limit, gcpi_order *out)
{
    const gcpi_model *m = x->m;
    int tasks = m->p->task_count;
    ptrdiff_t states = ((ptrdiff_t)tasks + 1) << m->values;
    x->limit = limit; x->count = 0;
    memset(x->place, 0, (size_t)states * sizeof *x->place);
    gcpi_exact_reach(x, 0, 0, 0, INT32_MAX, UINT32_MAX);
    while (x->count) {
        int state = x->heap[0], next = state >> m->values;
        unsigned set = (unsigned)state & ((1u << m->values) - 1);
        double cost = x->cost[state];
        x->heap[0] = x->heap[--x->count];
        if (x->count) gcpi_exact_sift(x, 0);
        x->place[state] = -1;
        if (next == tasks && set == x->useful[tasks]) {
            if (limit) { gcpi_exact_order(x, state, out); return out->valid; }
            return gcpi_exact_search(x, (size_t)cost, out);             /* of those with this peak, the fastest */
        }
        if (next == tasks) continue;
        gcpi_exact_run(x, next, set, next, cost);
        for (int f = 0; f < m->p->forward && f < next; f++)
            if (m->again[f] && x->writes[f] & x->useful[next] & ~set) gcpi_exact_run(x, next, set, f, cost);
        for (int v = 0; v < m->values; v++)
            if (set >> v & 1) gcpi_exact_reach(x, next, set & ~(1u << v), cost, INT32_MAX, set);
    }
    return 0;
}

/* Orders within a limit, for one that has a layout: the fastest, others as fast, others nearly as fast; then the same
   for a peak below, thrice. 0: there is no order i. */
enum { GCPI_EXACT_PEAKS = 4, GCPI_EXACT_NOISES = 6, GCPI_EXACT_ORDERS = GCPI_EXACT_PEAKS * GCPI_EXACT_NOISES };
static int gcpi_exact_other(gcpi_exact *x, int i, size_t *limit, gcpi_order *out)
{
    static const double noises[GCPI_EXACT_NOISES] = { 0, 1e-6, 1e-6, 1e-6, 0.05, 0.2 };
    x->turn = i; x->noise = noises[i % GCPI_EXACT_NOISES];
    if (i > 0 && x->noise == 0) *limit = out->peak - 1;
    const int found = *limit > 0 && gcpi_exact_search(x, *limit, out);
    x->noise = 0;
    return found;
}

/* ==== src/search/portfolio.h ==== */

/* GCP_POLICY_BUDGET: what its methods try. The policies, cuts, chains, turns of the local search, copies, exact search;
   and the bound. Each offers candidates; budget.h calls them. */

/* The order that keeps what the cut at this price (seconds per byte) keeps. 0: its bytes do not fit. */
static int gcpi_cut_order(gcpi_planner *q, gcpi_cut *c, double price)
{
    gcpi_cut_window(c, q->p->forward, q->p->task_count - 1);
    gcpi_cut_solve(c, q->p->forward, price);
    gcpi_choice_clear(q);
    for (int i = 0; i < q->p->item_count; i++) {
        int v = q->m.value_of[i];
        if (v >= 0 && q->now.store[i] == GCPI_AUTO) q->now.store[i] = gcpi_cut_keeps(c, v) ? GCPI_STORE : GCPI_DROP;
    }
    return gcpi_order_of(q, &q->now, &q->trial) && q->trial.valid && q->trial.peak <= gcpi_room(q);
}

/* Tries keep-sets for prices, by bisection on whether the order fits. Of the orders that fit, those of lower prices are
   faster, so they are laid out first. */
static void gcpi_cuts_try(gcpi_planner *q, int prices)
{
    enum { MOST = 32 };
    ptrdiff_t scratch = q->a->scratch;
    gcpi_cut c;
    /* exponents of two; the unit is the price at which all bytes together cost the seconds of keep-all */
    double low = -12, high = 12, fit[MOST], all = 0;
    int fits = 0;
    if (!gcpi_cut_make(&c, &q->m, q->a)) { q->coarse = 1; q->a->scratch = scratch; return; }
    for (int v = 0; v < q->m.values; v++) all += (double)c.own[v];
    for (int k = 0; k < prices && k < MOST; k++) {
        double price = (low + high) / 2, seconds = q->m.seconds / GCPI_MAX(all, 1) * exp2(price);
        if (gcpi_cut_order(q, &c, seconds)) { fit[fits++] = seconds; high = price; }
        else low = price;
    }
    while (fits-- > 0)
        if (gcpi_cut_order(q, &c, fit[fits]) && gcpi_offer(q, &q->trial) <= q->r->limit) break;
    /* lower prices keep too much, and copies take the excess away */
    for (double price = high; q->r->far && price > -12; price -= 0.5) {
        gcpi_cut_order(q, &c, q->m.seconds / GCPI_MAX(all, 1) * exp2(price));
        if (gcpi_far_relieve(q, &q->trial, gcpi_room(q))) gcpi_offer_copies(q, &q->trial);
    }
    q->a->scratch = scratch;
}

/* Grains from many to few: the first orders that fit are the fastest. late: only where that pays. */
static void gcpi_chain_try(gcpi_planner *q, int late)
{
    const size_t bytes = gcpi_bytes_from(1.6 * (double)q->r->limit);       /* the tables count too much */
    ptrdiff_t scratch = q->a->scratch;
    gcpi_chain c;
    const int most = gcpi_efforts[q->r->effort].stages;
    int made = 0, stages = gcpi_chain_stages(&q->m, bytes, most), grains = gcpi_efforts[q->r->effort].grains;
    if (stages <= most && q->p->forward > 2 * stages) stages /= 2;
    if (late && !gcpi_chain_pays_late(&q->m, q->crossing, stages, q->a)) return;
    for (; stages >= 16 && !made; stages /= 2, grains = GCPI_MAX(64, grains / 2)) {
        q->a->scratch = scratch;
        made = gcpi_chain_make(&c, &q->m, q->crossing, bytes, stages, grains, late, q->a);
        q->coarse |= !made && bytes > c.constant;
    }
    for (int k = made ? c.grains : 0, after = 0; k > 0 && after < 4; k--) {
        if (!gcpi_chain_order(&c, &q->trial, k)) continue;
        if (q->trial.peak > gcpi_room(q)) continue;
        gcpi_offer(q, &q->trial);
        after += q->kept.order.seconds <= q->trial.seconds;
    }
    q->a->scratch = scratch;
}

/* The search's turns: where each starts, its share of the visits, its first heat (in seconds of keep-all), price and
   rate. The last one runs only where a policy was faster than all the others. */
enum { GCPI_FROM_KEPT, GCPI_FROM_KEEP_ALL, GCPI_TURNS = 6 };
typedef struct gcpi_turn { int from; double share, heat, price, rate; } gcpi_turn;
static const gcpi_turn gcpi_turns[] = {
    { GCPI_FROM_KEPT, 0.1, 0.001, 3, 0 },
    { GCPI_FROM_KEEP_ALL, 0.3, 0.003, 0.2, 50 },
    { GCPI_FROM_KEEP_ALL, 0.3, 0.01, 0.3, 50 },
    { GCPI_FROM_KEEP_ALL, 0.2, 0.01, 1, 3 },
    { GCPI_FROM_KEPT, 0.2, 0.001, 1, 10 },
    { GCPI_FROM_KEPT, 0.1, 0.0005, 1, 10 },
    { GCPI_FROM_KEPT, 0.4, 0.001, 3, 0 },
};

/* What it costs to make each value live again, in ways that far allows (see gcpi_search). A copy is priced at a tenth
   of the link's seconds, away and back. */
static void gcpi_search_by(gcpi_search *s, gcpi_planner *q, int far)
{
    const gcpi_model *m = s->m;
    s->far = far;
    for (int v = 0; v < m->values; v++) {
        double run = far < 2 && m->again[m->producer[v]] ? m->p->tasks[m->producer[v]].seconds : HUGE_VAL;
        double copy = far && m->fetch[v] >= 0 ? 0.2 * gcpi_far_seconds(q, v) : HUGE_VAL, least = GCPI_MIN(run, copy);
        if (m->fetch[v] >= 0) q->p->tasks[m->fetch[v]].seconds = far ? copy : 0;
        s->weight[v] = least < HUGE_VAL ? (double)m->bytes[m->group[v]] / (least + 1e-6 * m->seconds) : 0;
    }
}

static void gcpi_search_aim(gcpi_search *s, double aim)
{
    s->aim = GCPI_MIN(1, aim);
    s->limit = gcpi_bytes_from((double)s->whole * s->aim);
}

static int gcpi_search_make(gcpi_search *s, gcpi_planner *q)
{
    const gcpi_model *m = &q->m;
    memset(s, 0, sizeof *s);
    s->m = m; s->q = q;
    s->random = 88172645463325252ull;
    s->there = GCPI_SCRATCH(q->a, unsigned char, m->values + 1);
    s->weight = GCPI_SCRATCH(q->a, double, m->values + 1);
    s->states = GCPI_SCRATCH(q->a, unsigned char, (GCPI_STATES + 1) * (ptrdiff_t)m->state_bytes);
    s->runs = GCPI_SCRATCH(q->a, int, q->trial.capacity + 1);
    s->part = GCPI_SCRATCH(q->a, int, q->trial.capacity + 1);
    if (!s->there || !s->weight || !s->states || !s->runs || !s->part) return 0;
    gcpi_search_by(s, q, 0);
    return gcpi_order_make(&s->now, q->trial.capacity, q->a) && gcpi_order_make(&s->best, q->trial.capacity, q->a);
}

static double gcpi_search_scale(const gcpi_planner *q)              /* in a small problem each move weighs more */
{
    return GCPI_MAX(1, 60.0 / q->p->forward);
}

static void gcpi_keep_all_order(const gcpi_model *m, gcpi_order *o)
{
    o->count = 0;
    for (int i = 0; i < m->p->task_count; i++) o->at[o->count++] = i;
    gcpi_simulate(m, o, NULL);
}

/* What could still be gained is not worth a search, or .progress stopped it. */
static int gcpi_search_over(const gcpi_planner *q)
{
    return q->r->watch->stopped || (gcpi_has(&q->kept) && q->kept.order.seconds <= q->bound * (1 + 3e-4));
}

/* Offers what a turn found. Where it has no layout that fits, the search goes on from it and aims lower, as later
   turns will. */
static void gcpi_budget_mend(gcpi_planner *q, gcpi_search *s, double visits, double scale, gcpi_portion portion)
{
    enum { TRIES = 2 };
    for (int i = 0; s->found; i++) {
        size_t slab = q->r->far_only ? gcpi_offer_copies(q, &s->best) : gcpi_offer(q, &s->best);
        int fits = slab <= q->r->limit;
        if (slab) gcpi_search_aim(s, s->aim + (fits ? 0.002 : -0.008));
        if (fits || i == TRIES || q->r->watch->stopped) break;
        s->limit = GCPI_MIN(s->limit, s->best.peak - 1);
        gcpi_order_copy(&s->now, &s->best);
        s->found = 0; s->price = 3; s->rate = 0;
        gcpi_search_run(s, visits, 0.001 * scale, 4e-5 * scale, portion);
    }
    s->found = 0;
}

/* The last resort for `loose`, the fastest order whose bytes fit: more work on its layout, then its layout without a
   limit, then moves. 1: one of these is kept. */
static int gcpi_budget_pack(gcpi_planner *q)
{
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    gcpi_fit fits[3];
    fits[0] = gcpi_fit_of(q->r->limit, e->hard, 0);
    fits[1] = gcpi_fit_free();
    fits[2] = gcpi_fit_of(q->r->limit, e->layout / 2, GCPI_MOST_MOVES);
    int kept = 0;
    for (int i = 0; i < 3 && !kept && q->loose.order.seconds < q->kept.order.seconds; i++) {
        const gcpi_slab slab = gcpi_order_slab(q, &q->loose.order, fits[i]);
        if (slab.bytes > q->r->limit || q->loose.order.seconds + slab.moving >= q->kept.order.seconds) continue;
        gcpi_keep(&q->kept, &q->loose.order, q->loose.method, fits[i]);
        q->kept.order.seconds += slab.moving;
        kept = 1;
    }
    gcpi_none(&q->loose);
    return kept;
}

static void gcpi_budget_turn(gcpi_planner *q, gcpi_search *s, const gcpi_turn *r, double visits, double mending,
                              gcpi_portion portion)
{
    /* what fits only by its bytes may be so much faster that it is worth mending */
    const gcpi_candidate *kept =
        q->loose.order.seconds < q->kept.order.seconds - 0.1 * q->m.seconds ? &q->loose : &q->kept;
    if (r->from == GCPI_FROM_KEPT && gcpi_has(kept)) gcpi_order_copy(&s->now, &kept->order);
    else gcpi_keep_all_order(s->m, &s->now);
    const double scale = gcpi_search_scale(q);
    gcpi_far_strip(q, &s->now);
    s->price = r->price; s->rate = r->rate;
    gcpi_search_aim(s, s->aim);
    gcpi_search_run(s, visits * r->share, r->heat * scale, 4e-5 * scale, portion);
    gcpi_budget_mend(q, s, visits * mending, scale, portion);
}

/* Searches with copies. An order is judged by the timeline of its copies, once they are placed: a second of the link
   does not cost the same everywhere. This takes more visits than without copies: each move looks at the whole order. */
static void gcpi_budget_far(gcpi_planner *q, gcpi_search *s, double visits, gcpi_portion portion)
{
    static const gcpi_turn turns[] = { { GCPI_FROM_KEPT, 1.5, 0.001, 1, 3 },
                                                { GCPI_FROM_KEPT, 2, 0.003, 0.3, 10 },
                                                { GCPI_FROM_KEPT, 1.5, 0.002, 1, 3 },
                                                { GCPI_FROM_KEPT, 1, 0.001, 1, 10 } };
    s->judge = 1;
    const double count = sizeof turns / sizeof *turns;
    for (int i = 0; i < count && !gcpi_search_over(q); i++) {
        gcpi_search_by(s, q, i == 0 || q->r->far_only ? 2 : 1);
        gcpi_budget_turn(q, s, &turns[i], visits, 0.3, gcpi_part_of(portion, i / count, (i + 1) / count));
    }
    s->judge = 0;
    gcpi_search_by(s, q, 0);
}

static double gcpi_budget_visits(const gcpi_planner *q, double patience)      /* larger problems get more */
{
    const gcpi_effort *e = &gcpi_efforts[q->r->effort];
    double growth = GCPI_MIN(e->growth, GCPI_MAX(1, sqrt(q->p->task_count / 800.0)));
    return patience * GCPI_MIN(e->visits * growth, 150000.0 * q->p->forward);
}

/* Turns [from, to). patience: how many times the visits of the effort. */
static void gcpi_budget_search(gcpi_planner *q, int from, int to, double patience, gcpi_portion portion)
{
    double visits = gcpi_budget_visits(q, patience);
    ptrdiff_t scratch = q->a->scratch;
    gcpi_search s;
    int ok = gcpi_search_make(&s, q);
    q->coarse |= !ok;
    q->method = "search";
    s.whole = gcpi_room(q);
    gcpi_search_aim(&s, 1);
    double near = q->r->far ? 0.2 : 1;              /* the share of searches without copies */
    for (int i = from; ok && i < to && !gcpi_search_over(q); i++) {
        const double begin = near * (i - from) / (to - from), end = near * (i + 1 - from) / (to - from);
        gcpi_budget_turn(q, &s, &gcpi_turns[i], visits, 0.06, gcpi_part_of(portion, begin, end));
    }
    if (ok && q->r->far) gcpi_budget_far(q, &s, visits, gcpi_part_of(portion, near, 1));
    q->a->scratch = scratch;
    gcpi_budget_pack(q);
}

/* Nothing runs again: values are kept, or away in far memory. Where that has no layout, more of them go away. */
static void gcpi_budget_copies(gcpi_planner *q)
{
    size_t room = gcpi_room(q);
    for (int less = 0; less < 6; less++) {
        gcpi_keep_all_order(&q->m, &q->trial);
        if (gcpi_far_relieve(q, &q->trial, room - room / 16 * (size_t)less) &&
            gcpi_offer_copies(q, &q->trial) <= q->r->limit)
            break;
    }
}

/* The fastest order within the limit; where that has no layout that fits, others. */
static void gcpi_budget_exact(gcpi_planner *q)
{
    ptrdiff_t scratch = q->a->scratch;
    size_t limit = gcpi_room(q);
    gcpi_exact x;
    int made = limit && gcpi_exact_make(&x, &q->m, q->a);
    q->coarse |= limit && !made && gcpi_exact_small(&q->m);
    for (int i = 0; made && i < GCPI_EXACT_ORDERS && gcpi_exact_other(&x, i, &limit, &q->trial); i++) {
        if (i == 0 && !q->r->far) q->bound = q->trial.seconds;
        if (gcpi_offer(q, &q->trial) <= q->r->limit) break;
    }
    q->a->scratch = scratch;
}

/* The bound with copies. What is away at any moment was copied out before and is copied back later. In T seconds it is
   at most half of what the link moves, and at most what far memory holds; in the slab it takes more, by its alignment.
   So T is at least the time of a schedule without copies and with that many bytes more. Bisection finds the least T. */
static double gcpi_far_bound(gcpi_planner *q, gcpi_cut *c, int places, double *excess)
{
    enum { STEPS = 12, MOST = 16 };
    const gcpi_model *m = &q->m;
    double low = m->seconds, high = gcpi_has(&q->kept) ? q->kept.order.seconds : (double)MOST * low, aligning = 0;
    for (int v = 0; v < m->values; v++)
        if (m->fetch[v] >= 0) aligning += (double)(m->bytes[m->group[v]] - q->p->items[m->item[v]].bytes);
    gcpi_keep_all_order(m, &q->trial);
    for (int i = 0; i < STEPS && low < high; i++) {
        double seconds = (low + high) / 2, least = HUGE_VAL,
               away = GCPI_MIN((double)q->r->far, q->p->target.far_bytes_per_second * seconds / 2);
        const size_t more = (size_t)GCPI_MIN(away + aligning, (double)q->trial.peak),
                     room = more + GCPI_MIN(gcpi_room(q), SIZE_MAX - more);
        memset(excess, 0, ((size_t)q->p->task_count + 2) * sizeof *excess);
        if (!q->r->far_only) least = gcpi_bound(c, room, places, excess);
        else if (q->trial.peak <= room) least = m->seconds;
        if (least < seconds) { low = GCPI_MAX(low, least); high = seconds; }
        else low = seconds;
    }
    return low;
}

static void gcpi_budget_bound(gcpi_planner *q, int places)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_cut c;
    double *excess = GCPI_SCRATCH(q->a, double, q->p->task_count + 2);
    if (!gcpi_room(q)) q->bound = HUGE_VAL;
    else if (excess && gcpi_cut_make(&c, &q->m, q->a)) {
        double bound =
            q->r->far ? gcpi_far_bound(q, &c, places, excess) : gcpi_bound(&c, gcpi_room(q), places, excess);
        q->bound = GCPI_MAX(q->bound, bound);
    }
    q->a->scratch = scratch;
}

/* Nothing is kept inside of a segment: quadratic time, and in short chains the least memory. */
static void gcpi_policy_replay(gcpi_planner *q)
{
    enum { MOST = 16 };
    int boundary[MOST], units = q->p->units;
    for (int k = 0; k <= MOST && k < units; k = k ? 2 * k : 1) {
        if ((double)q->p->forward * units / (k + 1) > 2.0 * q->trial.capacity) continue;
        for (int i = 0; i < k; i++) boundary[i] = gcpi_checkpoint_unit(units, k, i) + 1;
        gcpi_runs(q, boundary, k, 1);
    }
}

static void gcpi_policies_try(gcpi_planner *q)
{
    const int all = gcpi_efforts[q->r->effort].policies;
    q->best.seconds = HUGE_VAL;
    q->tries = 0;
    q->method = "segments";  gcpi_policy_segments(q);
    q->method = "cheap";     gcpi_policy_cheap(q);
    q->method = "sqrt";      if (all || !gcpi_has(&q->kept)) gcpi_policy_sqrt(q);
    q->method = "recursive"; if (all || !gcpi_has(&q->kept)) gcpi_policy_recursive(q);
    q->method = "replay";    if (all || !gcpi_has(&q->kept)) gcpi_policy_replay(q);
}

/* The policies. First the fastest of all their orders whose bytes fit is laid out; where that fails, each order that
   may be faster. Where nothing fits, q->best does not depend on the limit: it is offered on the way down. */
static void gcpi_budget_policies(gcpi_planner *q)
{
    const gcpi_judgement judgement = q->judgement;
    q->policies_tried = 1;
    if (q->r->watch->stopped) return;
    if (judgement == GCPI_BY_LAYOUT) q->judgement = GCPI_LAID_OUT_LATER;
    gcpi_policies_try(q);
    q->judgement = judgement;
    if (gcpi_has(&q->loose) && !gcpi_budget_pack(q) && !q->r->watch->stopped) gcpi_policies_try(q);
}

/* Keep-all. 1: it fits without a move, and nothing is faster. */
static int gcpi_budget_keep_all(gcpi_planner *q)
{
    q->method = "keep_all"; q->layout = GCPI_LAYOUT_WORK;
    gcpi_policy_keep_all(q);
    if (!gcpi_has(&q->kept)) gcpi_budget_pack(q);
    if (q->kept.order.seconds > q->m.seconds) return 0;
    q->bound = q->m.seconds;
    return 1;
}

/* ==== src/search/relaxed.h ==== */

/* GCP_POLICY_BUDGET: a bound for all choices of views. It holds for mixtures, too (views.h). The relaxed problem has
   the same tasks, but concats and reshapes are gone: whoever reads one reads its parts, the values whose bytes it
   shows. A concat keeps only its own copies of what can lie in none (inputs of the step, weights). Slices cost their
   bytes while they are kept, and nothing while a task uses them; copies cost no time; a gradient that may share
   another's bytes does.

   No choice takes less. Where a concat is resident, as a view or a copy, the relaxed problem may keep its parts
   instead, which take no more bytes, and has the concat with them. Where a slice is resident in what it was cut from,
   it may keep that. The cuts of cuts.h take the least cost of such relaxed schedules, so their bound holds. */
enum { GCPI_RELAXED_PARTS = 1 << 20 };         /* a larger problem has no cuts */

typedef struct gcpi_relaxed {
    const gcpi_problem *from;
    gcpi_problem p;
    gcpi_model m;
    int *first, *parts;               /* parts[first[i]] up to parts[first[i + 1]]: of tensor i */
    int *seen, mark;                  /* per tensor: the last mark; a mark is one op or task */
    unsigned char *slice;             /* per tensor: it is a slice with bytes of its own */
    size_t *discount;                 /* per task: bytes of its operands that may take none */
} gcpi_relaxed;

/* Whether an input of a concat may lie where the concat needs it, in some choice. */
static int gcpi_relaxed_joins(const gcpi_relaxed *r, int x)
{
    return r->from->items[x].kind == GCPI_FORWARD_ITEM && !(r->from->items[x].dense & GCPI_DENSE_ANYWAY) &&
           r->first[x] < r->first[x + 1];
}

/* Whether each concat that reads it has a copy of its own, in any choice. A slice of an input of the step may be copied
   once, then lie in one concat within another. */
static int gcpi_relaxed_copied(const gcpi_relaxed *r, int x)
{
    return r->from->items[x].kind != GCPI_FORWARD_ITEM || r->from->items[x].dense & GCPI_DENSE_ANYWAY;
}

static void gcpi_relaxed_part(gcpi_relaxed *r, int part)
{
    if (r->seen[part] != r->mark) r->parts[r->first[r->p.tensors]++] = part;
    r->seen[part] = r->mark;
}

static void gcpi_relaxed_parts_of(gcpi_relaxed *r, int x)
{
    for (int k = r->first[x]; k < r->first[x + 1]; k++) gcpi_relaxed_part(r, r->parts[k]);
}

/* The parts of an op's first output: of what it shows, and itself, if it has bytes that lie nowhere else. */
static void gcpi_relaxed_output(gcpi_relaxed *r, const gcpi_op *op)
{
    const gcp_tape *t = r->from->tape;
    const int view = gcpi_facts_of(op).view, y = op->out, x = op->inputs ? gcpi_edge(t, op, 0) : 0;
    size_t rest = 0;
    r->mark++;
    if (view == GCPI_VIEW_JOINED) {
        for (int i = 0; i < op->inputs; i++) {
            int input = gcpi_edge(t, op, i);
            if (gcpi_relaxed_joins(r, input)) gcpi_relaxed_parts_of(r, input);
            else if (gcpi_relaxed_copied(r, input)) rest += gcpi_bytes_alone(r->from, input);
        }
        r->p.items[y].bytes = rest;
        r->p.items[y].active &= rest > 0;
        if (rest) gcpi_relaxed_part(r, y);
    } else if (view == GCPI_VIEW_NONE || gcpi_view_changes(r->from, y, x)) gcpi_relaxed_part(r, y);
    else if (r->first[x] == r->first[x + 1]) r->p.items[y].root = r->p.items[x].root;    /* of an input or a weight */
    else if (view == GCPI_VIEW_WHOLE) { gcpi_relaxed_parts_of(r, x); r->p.items[y].active = 0; }
    else { gcpi_relaxed_part(r, y); r->slice[y] = 1; r->p.items[y].pinned = 0; }
}

/* Sets the parts of all tensors; those of inputs and parameters have none. 0: they are too many, or no arena. */
static int gcpi_relaxed_parts(gcpi_relaxed *r, gcp_arena *a)
{
    const gcp_tape *t = r->from->tape;
    int *most = GCPI_SCRATCH(a, int, r->p.tensors), at = 0;
    ptrdiff_t all = 1;
    for (int i = 0; most && i < r->p.tensors; i++) {
        const gcpi_op *op = t->tensors[i].producer < 0 ? NULL : &t->ops[t->tensors[i].producer];
        most[i] = op != NULL;
        for (int k = 0; op && i == op->out && k < op->inputs; k++)
            if (gcpi_facts_of(op).view != GCPI_VIEW_NONE) most[i] += most[gcpi_edge(t, op, k)];
        if ((all += most[i]) > GCPI_RELAXED_PARTS) return 0;
    }
    r->parts = GCPI_SCRATCH(a, int, all);
    if (!most || !r->parts) return 0;
    int *end = &r->first[r->p.tensors];
    for (int i = 0; i < r->p.tensors; i++, at = *end) {
        const gcpi_op *op = t->tensors[i].producer < 0 ? NULL : &t->ops[t->tensors[i].producer];
        r->first[i] = r->first[i + 1] = *end = at;
        if (op && i == op->out) gcpi_relaxed_output(r, op);
        else if (op) { r->mark++; gcpi_relaxed_part(r, i); }
        if (i + 1 < r->p.tensors) r->first[i + 1] = *end;
    }
    return 1;
}

/* An operand, as the relaxed task has it: a read of a value, one of each of its parts. */
static void gcpi_relaxed_operand(gcpi_relaxed *r, gcpi_task *task, const gcpi_operand *o, int over)
{
    const int item = o->item, forward = item < r->p.tensors && r->from->items[item].kind == GCPI_FORWARD_ITEM,
              none = forward && r->first[item] == r->first[item + 1], k = (int)(task - r->p.tasks);
    if (!forward || none) { gcpi_operand_add(&r->p, task, item, o->mode, o->role); return; }
    for (int i = r->first[item]; i < r->first[item + 1]; i++) {
        int part = r->parts[i];
        if (o->mode == GCPI_READ ? r->seen[part] == r->mark : part != item) continue;
        if (o->mode == GCPI_READ) r->seen[part] = r->mark;
        if (r->slice[part] || over) r->discount[k] += r->p.items[part].bytes;
        gcpi_operand_add(&r->p, task, part, o->mode == GCPI_READ ? GCPI_READ : GCPI_WRITE, o->role);
    }
}

/* Views take no time. With measured costs, nor does what passes gradients on: its key may be another in each choice. */
static void gcpi_relaxed_seconds(gcpi_relaxed *r, gcpi_task *task)
{
    if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) return;
    const gcpi_op *op = &r->from->tape->ops[task->op];
    if (task->kind == GCPI_TASK_FORWARD) {
        if (task->ops == 1 && gcpi_facts_of(op).view != GCPI_VIEW_NONE) task->seconds = 0;
    } else if (op->row->flags & GCP_FLAG_GRAD_VIEW) {
        double copying = gcpi_view_traffic(&r->p, task, op) / r->p.target.bytes_per_second;
        if (r->from->costed) task->seconds = 0;
        else if (gcpi_facts_of(op).view == GCPI_VIEW_JOINED) task->seconds = GCPI_MIN(task->seconds, copying);
    }
}

static void gcpi_relaxed_task(gcpi_relaxed *r, int k)
{
    const gcpi_task *from = &r->from->tasks[k];
    gcpi_task *task = &r->p.tasks[k];
    int passes = from->kind == GCPI_TASK_BACKWARD && r->from->tape->ops[from->op].row->flags & GCP_FLAG_GRAD_VIEW;
    *task = *from;
    task->operands = r->p.operand_count; task->count = 0;
    task->over = task->under[0] = task->under[1] = -1;
    r->mark++;
    for (int i = 0; i < from->count; i++) {
        gcpi_operand o = r->from->operands[from->operands + i];
        if (passes && o.mode == GCPI_WRITE) o.mode = GCPI_ALIAS;
        gcpi_relaxed_operand(r, task, &o, i == from->over);
    }
    gcpi_relaxed_seconds(r, task);
}

static int gcpi_relaxed_arrays(gcpi_relaxed *r, gcp_arena *a)
{
    const gcpi_problem *p = r->from;
    r->p = *p;
    r->p.target.align = 1;
    r->p.far_count = r->p.move_count = r->p.operand_count = 0;
    r->p.items = GCPI_SCRATCH(a, gcpi_item, p->item_count);
    r->p.tasks = GCPI_SCRATCH(a, gcpi_task, p->task_count);
    r->first = GCPI_SCRATCH(a, int, p->tensors + 1);
    r->seen = GCPI_SCRATCH(a, int, p->tensors);
    r->slice = GCPI_SCRATCH(a, unsigned char, p->tensors);
    r->discount = GCPI_SCRATCH(a, size_t, p->task_count);
    if (!r->p.items || !r->p.tasks || !r->first || !r->seen || !r->slice || !r->discount) return 0;
    memcpy(r->p.items, p->items, (size_t)p->item_count * sizeof *p->items);
    gcpi_views_forget(&r->p);
    return 1;
}

static int gcpi_relaxed_tasks(gcpi_relaxed *r, gcp_arena *a)
{
    const gcpi_problem *p = r->from;
    ptrdiff_t all = 1;
    for (int k = 0; k < p->task_count; k++)
        for (int i = 0; i < p->tasks[k].count; i++) {
            int item = p->operands[p->tasks[k].operands + i].item;
            all += item < p->tensors ? GCPI_MAX(1, r->first[item + 1] - r->first[item]) : 1;
        }
    r->p.operands = all <= 4 * GCPI_RELAXED_PARTS ? GCPI_SCRATCH(a, gcpi_operand, all) : NULL;
    for (int k = 0; r->p.operands && k < p->task_count; k++) gcpi_relaxed_task(r, k);
    return r->p.operands != NULL;
}

/* Gradients. One that is first made by passing another on may lie in it: in a concat's, side by side with its others;
   else on top of them. So they form trees; what one of these takes at least while a task runs follows from which of its
   gradients are alive. */
typedef struct gcpi_tree {
    int above, below, beside;         /* which one it may lie in; the first in it; the next beside it; -1: none */
    int first, last;                  /* its first task, its last */
    int joined, live, early;          /* joined: those in it lie side by side; early: begins on another's bytes */
    size_t now;                       /* bytes that it takes with all in it */
} gcpi_tree;

static void gcpi_tree_lives(const gcpi_problem *p, gcpi_tree *tree)
{
    for (int i = 0; i < p->item_count; i++) {
        tree[i].above = tree[i].below = tree[i].beside = tree[i].first = tree[i].last = -1;
        if (!p->items[i].active || p->items[i].kind != GCPI_GRADIENT_ITEM) continue;
        if (p->items[i].pinned == GCPI_PINNED_ALWAYS) tree[i].first = 0;
        if (p->items[i].pinned) tree[i].last = p->task_count - 1;
    }
    for (int k = 0; k < p->task_count; k++)
        for (int i = 0; i < p->tasks[k].count; i++) {
            const gcpi_operand *o = &p->operands[p->tasks[k].operands + i];
            gcpi_tree *x = &tree[o->item];
            if (p->items[o->item].kind != GCPI_GRADIENT_ITEM) continue;
            if (x->first < 0) x->first = k;
            x->last = GCPI_MAX(x->last, k);
        }
}

static void gcpi_tree_links(const gcpi_problem *p, gcpi_tree *tree)
{
    const gcp_tape *t = p->tape;
    for (int k = p->forward; k < p->task_count; k++) {
        const gcpi_task *task = &p->tasks[k];
        if (task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &t->ops[task->op];
        int y = t->tensor_count + op->out, passes = !!(op->row->flags & GCP_FLAG_GRAD_VIEW);
        tree[y].joined = gcpi_facts_of(op).view == GCPI_VIEW_JOINED;
        for (int i = 0; i < task->count; i++) {
            int x = p->operands[task->operands + i].item;
            if (x < t->tensor_count || x == y || tree[x].first != k || tree[x].above >= 0) continue;
            if (!passes) tree[x].early = i == task->over;
            else if (t->tensors[x - t->tensor_count].kind != GCPI_PARAMETER) {
                tree[x].above = y;
                tree[x].beside = tree[y].below;
                tree[y].below = x;
            }
        }
    }
}

/* Gradient i begins or ends; returns by how much its tree takes more (may wrap; the sums do not). */
static size_t gcpi_tree_set(const gcpi_problem *p, gcpi_tree *tree, int i, int live)
{
    size_t change = 0;
    tree[i].live = live;
    for (; i >= 0; i = tree[i].above) {
        size_t inside = 0, was = tree[i].now;
        for (int x = tree[i].below; x >= 0; x = tree[x].beside)
            inside = tree[i].joined ? inside + tree[x].now : GCPI_MAX(inside, tree[x].now);
        tree[i].now = tree[i].live ? GCPI_MAX(gcpi_bytes_alone(p, i), inside) : inside;
        change = tree[i].now - was;
    }
    return change;
}

/* Replaces what the model says of bytes other than forward values. */
static int gcpi_relaxed_during(gcpi_relaxed *r, gcp_arena *a)
{
    const gcpi_problem *p = r->from;
    gcpi_tree *tree = GCPI_SCRATCH(a, gcpi_tree, p->item_count);
    size_t now = 0;
    if (!tree) return 0;
    gcpi_tree_lives(p, tree);
    gcpi_tree_links(p, tree);
    for (int i = 0; i < p->item_count; i++) {
        if (!p->items[i].active || p->items[i].pinned != GCPI_PINNED_ALWAYS) continue;
        if (p->items[i].kind == GCPI_INPUT_ITEM) now += gcpi_bytes_alone(p, i);
        if (p->items[i].kind == GCPI_GRADIENT_ITEM) now += gcpi_tree_set(p, tree, i, 1);
    }
    for (int k = 0; k < p->task_count; k++)
        for (int step = 0; step < 3; step++) {         /* what begins with k; k itself; what begins or ends behind it */
            if (step == 1) r->m.during[k] = now + p->tasks[k].workspace - r->discount[k];
            for (int i = 0; i < p->tasks[k].count && step != 1; i++) {
                int x = p->operands[p->tasks[k].operands + i].item;
                if (p->items[x].kind != GCPI_GRADIENT_ITEM) continue;
                if (tree[x].first == k && !tree[x].live && (step == 2) == tree[x].early)
                    now += gcpi_tree_set(p, tree, x, 1);
                if (step == 2 && tree[x].last == k && tree[x].live) now += gcpi_tree_set(p, tree, x, 0);
            }
        }
    return 1;
}

/* Seconds of the copies that no choice avoids. */
static double gcpi_relaxed_copies(const gcpi_relaxed *r)
{
    const gcpi_problem *p = r->from;
    double bytes = 0;
    for (int k = 0; k < p->forward && !p->costed; k++) {
        const gcpi_op *op = &p->tape->ops[p->tasks[k].op];
        for (int i = 0; p->tasks[k].ops == 1 && gcpi_facts_of(op).view == GCPI_VIEW_JOINED && i < op->inputs; i++) {
            int x = gcpi_edge(p->tape, op, i);
            if (gcpi_relaxed_copied(r, x)) bytes += 2 * (double)gcpi_bytes_alone(p, x);
        }
    }
    return bytes / p->target.bytes_per_second;
}

/* The relaxed problem of one whose views are placed in any way, and its model; all in scratch of a. 0: it is too large,
   or there is not enough. */
static int gcpi_relaxed_make(gcpi_relaxed *r, const gcpi_problem *p, gcp_arena *a)
{
    memset(r, 0, sizeof *r);
    r->from = p;
    int ok = gcpi_relaxed_arrays(r, a) && gcpi_relaxed_parts(r, a) && gcpi_relaxed_tasks(r, a) &&
             gcpi_model_make(&r->m, &r->p, a) && gcpi_relaxed_during(r, a);
    if (ok) r->m.seconds += gcpi_relaxed_copies(r);
    return ok;
}

/* Seconds that no choice of views changes. */
static double gcpi_relaxed_floor(const gcpi_problem *p)
{
    double seconds = 0;
    for (int k = 0; k < p->task_count; k++) {
        const gcpi_task *t = &p->tasks[k];
        int op = t->kind == GCPI_TASK_FORWARD || t->kind == GCPI_TASK_BACKWARD;
        if (!op || !(p->tape->ops[t->op].row->flags & (GCP_FLAG_VIEW | GCP_FLAG_GRAD_VIEW))) seconds += t->seconds;
    }
    return seconds;
}

/* What no list of any choice of views beats, for this request. */
static double gcpi_relaxed_bound(const gcpi_request *asked, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_planner q;
    gcpi_relaxed r;
    memset(&q, 0, sizeof q);
    q.r = asked; q.a = a;
    q.front = gcpi_front(asked->p);
    q.bound = gcpi_relaxed_floor(asked->p);
    gcpi_none(&q.kept);
    if (gcpi_relaxed_make(&r, asked->p, a) && gcpi_order_make(&q.trial, r.p.task_count, a)) {
        q.p = &r.p; q.m = r.m;
        if (asked->far_only) q.bound = r.m.seconds;
        else gcpi_budget_bound(&q, gcpi_efforts[asked->effort].places);
    }
    a->scratch = scratch;
    return q.bound;
}

/* ==== src/search/least.h ==== */

/* GCP_POLICY_BUDGET: the least budget, and the way there. Where nothing fits, or what fits is slow, orders of fewer
   and fewer bytes are looked for, from keep-all down. The way does not depend on the budget that was asked for: what
   fits on it is a candidate, and if nothing does, the least slab on it is what the refusal names. A greater effort
   first goes the way of the lesser ones, then further. */
typedef struct gcpi_least {
    gcpi_order order, path;
    size_t slab, floor;
} gcpi_least;

/* Whether nothing fits yet, or what does is so far from the bound that the way down may pass a faster order. No more
   is wanted once .progress stopped the search. */
static int gcpi_least_wanted(const gcpi_planner *q)
{
    if (q->r->watch->stopped) return 0;
    if (!gcpi_has(&q->kept)) return 1;
    return !q->r->far && q->kept.order.seconds > q->bound + 0.1 * q->m.seconds;
}

/* The slab of an order on the way; it is kept if it is the fastest that fits, and `loose` if only its bytes fit.
   SIZE_MAX: it has none. *placed: the order with its copies. */
static size_t gcpi_least_slab(gcpi_planner *q, size_t most, gcpi_order *found, gcpi_fit fit, const gcpi_order **placed)
{
    /* limit 0: each copy is waited for at once, which takes the fewest bytes */
    const gcpi_order *o = *placed = found->valid ? gcpi_far_place(q, found, 0) : found;
    if (!o || !o->valid || q->front + o->peak > gcpi_round(most, q->p->target.align)) return SIZE_MAX;
    const gcpi_slab laid = gcpi_order_slab(q, o, fit);
    const size_t slab = laid.bytes;
    if (slab > q->r->limit && o->peak <= gcpi_room(q) && o->seconds < q->loose.order.seconds)
        gcpi_keep(&q->loose, o, "least", fit);
    if (fit.enough && slab > fit.enough) return SIZE_MAX;
    if (slab <= q->r->limit && o->seconds + laid.moving < q->kept.order.seconds) {
        gcpi_keep(&q->kept, o, "least", fit);
        q->kept.order.seconds += laid.moving;
    }
    return slab;
}

/* Takes over an order with the least slab so far. 1: what is kept is good enough, or no slab is smaller. */
static int gcpi_least_offer(gcpi_planner *q, gcpi_least *least, gcpi_order *found, gcpi_fit fit)
{
    const gcpi_order *o;
    size_t slab = gcpi_least_slab(q, GCPI_MAX(least->slab, q->r->limit), found, fit, &o);
    if (slab < least->slab || (slab == least->slab && o->seconds < least->order.seconds)) {
        least->slab = slab;
        gcpi_order_copy(&least->order, o);
    }
    return !gcpi_least_wanted(q) || least->slab <= q->front + least->floor;
}

static gcpi_fit gcpi_least_fit(void) { return gcpi_fit_of(0, 5e5, 0); }

/* Early on the way no slab is the least for long: what fits is kept. */
static int gcpi_least_early(gcpi_planner *q, gcpi_order *found)
{
    const gcpi_order *o;
    gcpi_least_slab(q, q->r->limit, found, gcpi_least_fit(), &o);
    return !gcpi_least_wanted(q);
}

/* From the end of the path down. Each search stops at the first order within its limit. Where one fails, a hotter one
   follows, and where these fail, a smaller step. */
static int gcpi_least_walk(gcpi_planner *q, gcpi_least *least, gcpi_search *s, double visits, gcpi_portion portion)
{
    enum { HEATS = 3 };
    static const double heats[HEATS] = { 0.03, 0.1, 0.3 };
    const gcpi_fit fit = gcpi_least_fit();
    double used = 0, scale = gcpi_search_scale(q), step = 0.1;
    s->first = 1;
    for (int failed = 0; step > 0.002 && used < visits && least->path.peak > least->floor && !q->r->watch->stopped;) {
        double heat = heats[failed] * scale;
        s->limit = GCPI_MAX(least->floor, gcpi_bytes_from((double)least->path.peak * (1 - step)));
        s->found = 0;
        s->price = 3 * scale;
        s->rate = 50;
        gcpi_order_copy(&s->now, &least->path);
        gcpi_far_strip(q, &s->now);
        used += gcpi_search_run(s, visits / 24, heat, 0.3 * heat,
                                gcpi_part_of(portion, used / visits, GCPI_MIN(1, used / visits + 1.0 / 24)));
        failed = s->found ? 0 : (failed + 1) % HEATS;
        if (!s->found && !failed) step /= 2;
        if (!s->found) continue;
        gcpi_order_copy(&least->path, &s->best);
        if (step > 0.05 ? gcpi_least_early(q, &least->path) : gcpi_least_offer(q, least, &least->path, fit)) return 1;
    }
    return 0;
}

/* More work on the layout of an order, for less and less of what the least slab is above its bytes. */
static int gcpi_least_pack(gcpi_planner *q, gcpi_least *least, gcpi_order *o, double work)
{
    for (double share = 0.5; share > 0.05;) {
        size_t live = q->front + o->peak, before = least->slab;
        if (before < live + live / 128) break;
        size_t goal = before - gcpi_bytes_from((double)(before - live) * share);
        if (gcpi_least_offer(q, least, o, gcpi_fit_of(goal, work, 0))) return 1;
        if (least->slab == before) share /= 2;
    }
    return 0;
}

/* Moves, as long as they take bytes off the least slab. */
static int gcpi_least_move(gcpi_planner *q, gcpi_least *least, double work)
{
    enum { MOST = 8 };
    int done = 0;
    size_t before = SIZE_MAX;
    for (int i = 0; i < MOST && !done && least->slab < before; i++) {
        before = least->slab;
        done = gcpi_least_offer(q, least, &least->order, gcpi_fit_of(before - 1, work, GCPI_MOST_MOVES));
    }
    return done;
}

/* The chain's orders of the fewest grains. */
static int gcpi_least_chain(gcpi_planner *q, gcpi_least *least, const gcpi_effort *e, int late)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_chain chain;
    size_t bytes = 3 * least->floor;
    int done = 0, made, stages = gcpi_chain_stages(&q->m, bytes, e->stages);
    if (late && !gcpi_chain_pays_late(&q->m, q->crossing, stages, q->a)) return 0;
    made = gcpi_chain_make(&chain, &q->m, q->crossing, bytes, stages, e->grains, late, q->a);
    q->coarse |= !made && bytes > chain.constant;
    for (int k = 0, orders = 0; made && k <= chain.grains && orders < 12 && !done; k++)
        if (gcpi_chain_order(&chain, &q->trial, k)) {
            done = gcpi_least_offer(q, least, &q->trial, gcpi_least_fit());
            orders++;
        }
    q->a->scratch = scratch;
    return done;
}

/* Orders of few bytes, however long they take: the policies' least, and the exact one. */
static int gcpi_least_starts(gcpi_planner *q, gcpi_least *least)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_exact exact;
    int done = 0;
    if (!q->r->no_exact && gcpi_exact_make(&exact, &q->m, q->a) && gcpi_exact_search(&exact, 0, &q->trial))
        done = gcpi_least_offer(q, least, &q->trial, gcpi_least_fit());
    q->a->scratch = scratch;
    if (done) return 1;
    if (!q->policies_tried) gcpi_budget_policies(q);
    return gcpi_least_offer(q, least, &q->best, gcpi_least_fit());
}

/* An order in its live bytes or in `most`, by moves: which ones are tried depends on the work, too. */
static int gcpi_least_moves(gcpi_planner *q, gcpi_least *least, gcpi_order *o, size_t most)
{
    enum { TRIES = 4 };
    const size_t live = q->front + o->peak, before = least->slab;
    double work = gcpi_efforts[q->r->effort].layout;
    int done = 0;
    for (int i = 0; i < 2 * TRIES && !done && least->slab == before; i++, work *= i % 2 ? 1 : 0.5)
        done = gcpi_least_offer(q, least, o, gcpi_fit_of(GCPI_MIN(i % 2 ? most : live, most), work, GCPI_MOST_MOVES));
    return done;
}

/* Small graphs: orders within a byte less than the least slab, with moves if need be, until none of them has a
   layout. */
static int gcpi_least_exact(gcpi_planner *q, gcpi_least *least)
{
    ptrdiff_t scratch = q->a->scratch;
    const size_t align = q->p->target.align;
    size_t before = least->slab, limit = 0;
    gcpi_exact x;
    int done = 0, made = !q->r->no_exact && gcpi_exact_make(&x, &q->m, q->a);
    for (int i = 0; made && i < GCPI_EXACT_ORDERS && !done && before > q->front + least->floor; i++) {
        if (i == 0) limit = gcpi_round(before - 1 - q->front, align);
        if (!gcpi_exact_other(&x, i, &limit, &q->trial)) break;
        done = gcpi_least_moves(q, least, &q->trial, before - 1);
        if (least->slab < before) i = -1;
        before = least->slab;
    }
    q->a->scratch = scratch;
    return done;
}

/* keep-all with copies, for limits from the least up: the first few that are reached */
static int gcpi_least_copies(gcpi_planner *q, gcpi_least *least)
{
    int done = 0;
    size_t room = least->floor, most = least->path.peak;
    for (int relieved = 0; relieved < 4 && room < most && !done; room += room / 32) {
        gcpi_keep_all_order(&q->m, &q->trial);
        if (!gcpi_far_relieve(q, &q->trial, room)) continue;
        if (!relieved) gcpi_order_copy(&least->path, &q->trial);
        done = gcpi_least_offer(q, least, &q->trial, gcpi_least_fit());
        relieved++;
    }
    return done;
}

static int gcpi_least_effort(gcpi_planner *q, gcpi_least *least, gcpi_search *s, const gcpi_effort *e,
                             gcpi_portion portion)
{
    /* a small problem takes as many to settle; a large one has no time for more */
    double visits = e->least * GCPI_MIN(GCPI_MAX(q->p->forward, 100), 6000);
    if (gcpi_least_walk(q, least, s, visits, portion) || gcpi_least_pack(q, least, &least->path, e->hard / 2)) return 1;
    for (int late = 0; late < 2 && !q->r->far_only; late++)
        if (gcpi_least_chain(q, least, e, late)) return 1;
    return (least->order.peak != least->path.peak && gcpi_least_pack(q, least, &least->order, e->hard / 2)) ||
           gcpi_least_move(q, least, e->layout / 2);
}

static void gcpi_least_find(gcpi_planner *q, gcpi_least *least, gcpi_portion portion)
{
    static const gcp_effort efforts[] = { GCP_EFFORT_QUICK, GCP_EFFORT_DEFAULT, GCP_EFFORT_THOROUGH };
    gcpi_search s;
    int made = gcpi_search_make(&s, q);
    q->coarse |= !made;
    if (!made) return;
    gcpi_search_by(&s, q, q->r->far ? 1 + (q->r->far_only != 0) : 0);
    gcpi_keep_all_order(&q->m, &least->path);
    int done = gcpi_least_offer(q, least, &least->path, gcpi_least_fit()) || (q->r->far && gcpi_least_copies(q, least));
    /* where something fits that is not too slow, a little effort tells whether another way is faster */
    for (int e = 0; e < (q->kept.order.seconds < q->bound + q->m.seconds ? 1 : 3) && !done; e++) {
        int last = efforts[e] == q->r->effort;
        done = gcpi_least_effort(q, least, &s, &gcpi_efforts[efforts[e]],
                                 gcpi_part_of(portion, e ? 0.2 : 0, last ? 1 : 0.2)) ||
               (e == 0 && !q->r->far_only && gcpi_least_starts(q, least));
        if (last) break;
    }
    if (!done && !q->r->far) gcpi_least_exact(q, least);
    gcpi_search_by(&s, q, 0);
}

/* What the least slab holds at its peak. */
static void gcpi_least_holds(gcpi_planner *q, const gcpi_order *o)
{
    const gcpi_problem *p = q->p;
    ptrdiff_t scratch = q->a->scratch;
    gcpi_lives l;
    size_t *live;
    q->lowest.gradients = q->lowest.batch = 0;
    for (int i = o->peak_at; (q->lowest.task = gcpi_code_task(o, i)) >= p->task_count;) i++;
    gcpi_list_of(p, o, &q->list);
    int made = !gcpi_is_graph(p) && gcpi_lives_make(p, &q->list, &l, &live, q->a);
    for (int b = 0; made && b < l.buffer_count; b++) {
        const gcpi_buffer *x = &l.buffers[b];
        const gcpi_item *item = &p->items[x->root];
        if (x->joined >= 0 || x->first > l.peak_at || x->last < l.peak_at) continue;
        int weight = item->kind == GCPI_GRADIENT_ITEM && p->tape->tensors[item->tensor].kind == GCPI_PARAMETER;
        *(weight ? &q->lowest.gradients : &q->lowest.batch) += x->bytes;
    }
    q->a->scratch = scratch;
}

/* Looks for the least slab; that of an earlier search stays where it is smaller. */
static void gcpi_budget_way_down(gcpi_planner *q, gcpi_portion portion)
{
    ptrdiff_t scratch = q->a->scratch;
    gcpi_least least;
    gcpi_cut cut;
    q->judgement = GCPI_BY_LAYOUT;
    memset(&least, 0, sizeof least);
    least.slab = SIZE_MAX / 2;
    if (gcpi_order_make(&least.order, q->trial.capacity, q->a) &&
        gcpi_order_make(&least.path, q->trial.capacity, q->a) && gcpi_cut_make(&cut, &q->m, q->a)) {
        least.floor = gcpi_least_bytes(&cut);
        gcpi_least_find(q, &least, portion);
    }
    /* no order: the arena is too small to lay anything out */
    if (least.order.count && (!q->lowest.slab || least.slab < q->lowest.slab)) {
        q->lowest.slab = least.slab;
        gcpi_least_holds(q, &least.order);
    }
    q->a->scratch = scratch;
}

/* ==== src/search/budget.h ==== */

/* GCP_POLICY_BUDGET: the methods in turn. Their table; the way down where nothing fits; copies alone and without any,
   where both are allowed. */

static int gcpi_any(const gcpi_planner *q) { (void)q; return 1; }
static int gcpi_may_be_exact(const gcpi_planner *q) { return !q->r->no_exact; }
static int gcpi_may_run_again(const gcpi_planner *q) { return !q->r->far_only; }
static int gcpi_only_copies(const gcpi_planner *q) { return q->r->far_only; }
static int gcpi_copies_too(const gcpi_planner *q) { return q->r->far > 0; }
static int gcpi_no_copies(const gcpi_planner *q) { return !q->r->far; }

/* The methods. 1: nothing is left to look for. */
static int gcpi_method_keep_all(gcpi_planner *q, gcpi_portion portion)
{
    const int best = gcpi_budget_keep_all(q);
    q->layout = gcpi_efforts[q->r->effort].layout;
    (void)portion;
    return best;
}
static int gcpi_method_bound(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_bound(q, gcpi_efforts[q->r->effort].places);
    (void)portion;
    return !q->r->far && q->bound >= (q->r->known > 0 ? q->r->known : HUGE_VAL);
}
static int gcpi_method_exact(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_exact(q);
    (void)portion;
    return 0;
}
static int gcpi_method_chain(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_chain_try(q, 0);
    (void)portion;
    return 0;
}
static int gcpi_method_cuts(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_cuts_try(q, gcpi_efforts[q->r->effort].prices);
    (void)portion;
    return 0;
}
static int gcpi_method_copies(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_copies(q);
    (void)portion;
    return 0;
}
static int gcpi_method_search(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_search(q, 0, GCPI_TURNS, 1, portion);
    return 0;
}
/* The search goes on from a policy's order that is faster than all before. */
static int gcpi_method_policies(gcpi_planner *q, gcpi_portion portion)
{
    const double searched = q->kept.order.seconds;
    gcpi_budget_policies(q);
    if (q->kept.order.seconds < searched) gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
    return 0;
}

/* Late backward tasks in chains where that pays; the search goes on from such an order if it is faster. */
static int gcpi_method_late_chain(gcpi_planner *q, gcpi_portion portion)
{
    const double searched = q->kept.order.seconds;
    gcpi_chain_try(q, 1);
    if (q->kept.order.seconds < searched) gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
    return 0;
}

/* name: of the candidates that it offers; share: of what .progress counts. */
typedef struct gcpi_method {
    const char *name;
    int (*applies)(const gcpi_planner *q);
    int (*run)(gcpi_planner *q, gcpi_portion portion);
    double share;
} gcpi_method;
static const gcpi_method gcpi_methods[] = {
    { "keep_all", gcpi_any, gcpi_method_keep_all, 0 },
    { "bound", gcpi_no_copies, gcpi_method_bound, 0 },
    { "exact", gcpi_may_be_exact, gcpi_method_exact, 0.1 },
    { "chain", gcpi_may_run_again, gcpi_method_chain, 0 },
    { "cuts", gcpi_may_run_again, gcpi_method_cuts, 0 },
    { "copies", gcpi_only_copies, gcpi_method_copies, 0 },
    { "bound", gcpi_copies_too, gcpi_method_bound, 0 },
    { "search", gcpi_any, gcpi_method_search, 0.8 },
    { "policies", gcpi_may_run_again, gcpi_method_policies, 0.1 },
    { "chain", gcpi_may_run_again, gcpi_method_late_chain, 0 },
};

/* The candidates for the limit. Where the bound says that nothing fits, there is nothing to look for. */
static void gcpi_budget_find(gcpi_planner *q, gcpi_portion portion)
{
    double done = 0;
    q->bound = 0;
    gcpi_none(&q->loose);
    for (size_t k = 0; k < sizeof gcpi_methods / sizeof *gcpi_methods; k++) {
        const gcpi_method *method = &gcpi_methods[k];
        q->method = method->name;
        if (method->applies(q) && method->run(q, gcpi_part_of(portion, done, done + method->share))) return;
        done += method->share;
    }
}

/* Keep-all, kept if it has a layout within this limit. */
static int gcpi_inference_within(gcpi_planner *q, size_t limit)
{
    const gcpi_request *asked = q->r;
    gcpi_request within = *asked;
    within.limit = limit;
    q->r = &within;
    gcpi_none(&q->kept);
    gcpi_budget_keep_all(q);
    q->r = asked;
    return gcpi_has(&q->kept);
}

/* Inference has only one order, keep-all. Where its first layout does not fit, the limit is lowered to a byte below
   each layout that is found, until there is none: the last one is the least. */
static void gcpi_budget_inference(gcpi_planner *q)
{
    gcpi_fit fit = gcpi_fit_free();
    const int fits = gcpi_inference_within(q, q->r->limit);
    q->bound = q->m.seconds;
    if (fits) return;
    gcpi_least_holds(q, &q->best);
    q->lowest.slab = gcpi_order_slab(q, &q->best, fit).bytes;
    while (gcpi_inference_within(q, q->lowest.slab - 1)) {
        fit = q->kept.fit;
        q->lowest.slab = gcpi_order_slab(q, &q->best, fit).bytes;
    }
    gcpi_none(&q->kept);
    if (q->lowest.slab <= q->r->limit) gcpi_keep(&q->kept, &q->best, "keep_all", fit);
}

/* Whether .progress lets the search go on, and the plan is so far above the bound, as a share of keep-all. */
static int gcpi_budget_far_off(const gcpi_planner *q, double share)
{
    return !q->r->watch->stopped && !q->r->far && gcpi_has(&q->kept) &&
           q->kept.order.seconds > q->bound + share * q->m.seconds;
}

/* Whether all of the search runs once more: the plan is still far off, more effort than little was asked for, and no
   other choice of views is known to be faster. */
static int gcpi_budget_again(const gcpi_planner *q)
{
    return q->r->effort != GCP_EFFORT_QUICK && gcpi_budget_far_off(q, 0.04) &&
           !(q->r->known > 0 && q->kept.order.seconds > q->r->known);
}

/* As long as it helps, and the plan is far from the bound, the search goes on; then all of it, with more visits. */
static void gcpi_budget_more(gcpi_planner *q, gcpi_portion portion)
{
    for (int again = 0; again < 2; again++) {
        double before = HUGE_VAL;
        if (again && !gcpi_budget_again(q)) return;
        if (again) gcpi_budget_search(q, 0, GCPI_TURNS, 4, portion);
        while (gcpi_budget_far_off(q, 0.02) && q->kept.order.seconds < before - 0.003 * q->m.seconds) {
            before = q->kept.order.seconds;
            gcpi_budget_search(q, GCPI_TURNS, GCPI_TURNS + 1, 1, portion);
        }
    }
}

/* The first search is enough: more is not wanted, or another choice of views is known to be much faster. */
static int gcpi_budget_enough(const gcpi_planner *q)
{
    const double known = q->r->known;
    return q->r->rough || (known > 0 && gcpi_has(&q->kept) && q->kept.order.seconds > known + 0.03 * q->m.seconds);
}

/* What is kept, or `loose`, is what answers this request best. */
static void gcpi_budget_run(gcpi_planner *q, gcpi_portion portion)
{
    gcpi_budget_find(q, gcpi_part_of(portion, 0, 0.4));
    if (!gcpi_budget_enough(q)) {
        const double found = q->kept.order.seconds;
        const int beaten = q->r->known > 0 && q->bound >= q->r->known;
        if (gcpi_has(&q->kept) ? gcpi_least_wanted(q) : !q->r->no_least && !beaten)
            gcpi_budget_way_down(q, gcpi_part_of(portion, 0.4, 0.7));
        if (GCPI_MIN(q->kept.order.seconds, q->loose.order.seconds) < found)      /* from that order */
            gcpi_budget_search(q, 0, GCPI_TURNS, 1, gcpi_part_of(portion, 0.7, 1));
        gcpi_budget_more(q, gcpi_part_of(portion, 0.7, 1));
    }
    if (gcpi_has(&q->kept)) gcpi_order_copy(&q->best, &q->kept.order);
}

/* A part of the request: with copies alone (far), or without them. Its bounds do not hold where values may be copied
   and ops run again. known: as in a request. */
static void gcpi_budget_part(gcpi_planner *q, size_t far, double known, gcpi_portion portion)
{
    const gcpi_request *asked = q->r;
    gcpi_request part = *asked;
    const size_t size = (size_t)q->p->task_count;
    ptrdiff_t scratch = q->a->scratch;
    unsigned char *again = GCPI_SCRATCH(q->a, unsigned char, q->p->task_count);
    if (!again) { q->coarse = 1; q->a->scratch = scratch; return; }
    memcpy(again, q->m.again, size);
    if (far) memset(q->m.again, 0, size);
    part.far = far; part.far_only = far > 0; part.known = known;
    q->r = &part;
    gcpi_budget_run(q, portion);
    q->r = asked;
    q->bound = 0;
    memcpy(q->m.again, again, size);
    q->a->scratch = scratch;
}
/* Copies alone, then none; the faster order of both is kept. So what is found with both is no worse than either. */
static void gcpi_budget_parts(gcpi_planner *q, gcpi_portion portion)
{
    ptrdiff_t scratch = q->a->scratch;
    double known = q->r->known;
    gcpi_candidate copies;
    memset(&copies, 0, sizeof copies);
    if (!gcpi_order_make(&copies.order, q->trial.capacity, q->a)) { q->coarse = 1; q->a->scratch = scratch; return; }
    gcpi_budget_part(q, q->r->far, known, gcpi_part_of(portion, 0, 0.4));
    gcpi_keep(&copies, &q->kept.order, q->kept.method, q->kept.fit);
    if (gcpi_has(&copies) && !(known > 0 && known < copies.order.seconds)) known = copies.order.seconds;
    gcpi_none(&q->kept);
    gcpi_budget_part(q, 0, known, gcpi_part_of(portion, 0.4, 1));
    if (copies.order.seconds < q->kept.order.seconds) gcpi_keep(&q->kept, &copies.order, copies.method, copies.fit);
    q->a->scratch = scratch;
}

static void gcpi_policy_budget(gcpi_planner *q)
{
    if (!q->p->training) { gcpi_budget_inference(q); return; }
    const int both = q->r->far && !q->r->far_only;
    if (both) gcpi_budget_parts(q, gcpi_part_of(q->r->portion, 0, 0.5));
    gcpi_budget_run(q, gcpi_part_of(q->r->portion, both ? 0.5 : 0, 1));
}

/* ==== src/search/choose.h ==== */

/* From a request to an answer. The policy runs, with what it needs in scratch. */

static const struct gcpi_policy { const char *name; void (*run)(gcpi_planner *);
} gcpi_policies[] = { { "segments", gcpi_policy_segments }, { "keep_all", gcpi_policy_keep_all },
                      { "uniform", gcpi_policy_uniform },   { "checkpoints", gcpi_policy_checkpoints },
                      { "sqrt", gcpi_policy_sqrt },         { "recursive", gcpi_policy_recursive },
                      { "cheap", gcpi_policy_cheap },       { "budget", gcpi_policy_budget } };

/* How many entries a policy's orders may have. */
static ptrdiff_t gcpi_order_capacity(const gcp_plan_opts *o, ptrdiff_t tasks, ptrdiff_t forward,
                                     ptrdiff_t segments_deep)
{
    ptrdiff_t depth = GCPI_MAX(2, segments_deep + 1), runs;
    if (o->policy == GCP_POLICY_RECURSIVE) depth = 26;
    if (o->policy == GCP_POLICY_CHECKPOINTS && o->replay) depth = forward + 1;
    runs = depth * forward;
    if (o->policy == GCP_POLICY_BUDGET) runs = GCPI_MAX(runs, GCPI_MAX(8 * forward, GCPI_MIN(64 * forward, 6000)));
    /* the least memory may take a run of all from the start for each op */
    if (o->policy == GCP_POLICY_BUDGET && forward <= GCPI_SHORT_CHAIN)
        runs = GCPI_MAX(runs, forward * (forward + 1) / 2);
    if (o->far) runs += 6 * forward;
    return tasks + runs + 1;
}

/* What the orders of this problem need. Deep segments could run again as often as they are deep, but rarely do: theirs
   are counted. Needs q->now. */
static ptrdiff_t gcpi_planner_capacity(gcpi_planner *q)
{
    enum { DEEP = 8 };
    const gcpi_problem *p = q->p;
    int depth = 0;
    for (int i = 0; i < p->tape->segment_count; i++) depth = GCPI_MAX(depth, p->tape->segments[i].depth);
    ptrdiff_t capacity = gcpi_order_capacity(q->r->opts, p->task_count, p->forward, GCPI_MIN(depth, DEEP));
    for (int tail = 0; tail < 2 && depth > DEEP; tail++) {
        gcpi_list count;
        memset(&count, 0, sizeof count);
        gcpi_segments_choose(q, tail);
        if (!gcpi_schedule(p, &q->now, &count, q->a)) return 0;
        capacity = GCPI_MAX(capacity, count.count + 1);
    }
    return capacity;
}

static int gcpi_planner_make(gcpi_planner *q)
{
    const gcpi_problem *p = q->p;
    if (!gcpi_choice_make(q, &q->now) || !gcpi_choice_make(q, &q->guide)) return 0;
    ptrdiff_t capacity = gcpi_planner_capacity(q);
    if (capacity <= 0 || capacity > INT32_MAX / 4) return 0;
    q->list.capacity = capacity;
    q->list.at = GCPI_SCRATCH(q->a, gcpi_instruction, capacity);
    q->front = gcpi_front(p);
    q->judgement = q->r->by_peak ? GCPI_BY_PEAK : GCPI_BY_LAYOUT;
    q->layout = GCPI_LAYOUT_WORK; q->kept.fit = gcpi_fit_free();
    int ok = q->list.at && gcpi_model_make(&q->m, p, q->a) && (!q->r->far || gcpi_far_make(q, (int)capacity));
    gcpi_order *const orders[] = { &q->trial, &q->best, &q->kept.order, &q->loose.order };
    for (int i = 0; ok && i < 4; i++) ok = gcpi_order_make(orders[i], (int)capacity, q->a);
    gcpi_none(&q->kept); gcpi_none(&q->loose);
    q->best.seconds = HUGE_VAL;
    return ok;
}

/* The slab of keep-all, to compare with. In large problems (by_peak) a budget's search has no time for layouts. */
static size_t gcpi_keep_all_slab(gcpi_planner *q)
{
    size_t slab = SIZE_MAX;
    gcpi_choice_clear(q);
    if (!q->r->by_peak && gcpi_order_of(q, &q->now, &q->trial))
        slab = gcpi_order_slab(q, &q->trial, gcpi_fit_free()).bytes;
    gcpi_choice_clear(q);
    return slab;
}

/* SQRT, RECURSIVE and CHEAP answer with keep-all where that is smaller. */
static void gcpi_or_keep_all(gcpi_planner *q)
{
    const gcpi_fit less = gcpi_fit_of(q->keep_all - 1, GCPI_LAYOUT_WORK, 0);
    gcpi_choice_clear(q);
    if (!gcpi_order_of(q, &q->now, &q->trial) ||
        (gcpi_has_best(q) && gcpi_order_slab(q, &q->best, less).bytes < q->keep_all))
        return;
    gcpi_order_copy(&q->best, &q->trial);
    gcpi_choice_copy(q->p, &q->guide, &q->now);
}

static gcpi_answer gcpi_answer_of(const gcpi_planner *q)
{
    gcpi_answer a;
    const int fits = !q->r->limit || gcpi_has(&q->kept);
    memset(&a, 0, sizeof a);
    a.order = fits && gcpi_has_best(q) ? &q->best : NULL;
    a.seconds = q->r->limit ? q->kept.order.seconds : q->best.seconds;
    a.fit = q->kept.fit; a.method = q->kept.method; a.bound = q->bound;
    a.segments = GCPI_MAX(1, q->guide.segments - 1);
    a.coarse = q->coarse;
    a.keep_all = q->keep_all;
    a.lowest = q->lowest;
    return a;
}

/* Answers a request: q's memory is in scratch of a, and so is the order. 0: not enough arena. */
static int gcpi_choose(gcpi_planner *q, const gcpi_request *r, gcp_arena *a, gcpi_answer *answer)
{
    gcp_policy policy = r->p->training || r->policy == GCP_POLICY_BUDGET ? r->policy : GCP_POLICY_KEEP_ALL;
    memset(q, 0, sizeof *q);
    q->r = r; q->p = r->p; q->a = a;
    if (!gcpi_planner_make(q)) return 0;
    if (r->far_only) memset(q->m.again, 0, (size_t)q->p->task_count);
    gcpi_choice_clear(q);
    if (!gcpi_guides(q)) return 0;
    q->keep_all = gcpi_keep_all_slab(q);
    gcpi_policies[policy].run(q);
    if (policy >= GCP_POLICY_SQRT && policy != GCP_POLICY_BUDGET && !q->out_of_memory) gcpi_or_keep_all(q);
    *answer = gcpi_answer_of(q);
    return !q->out_of_memory && (gcpi_has_best(q) || r->watch->stopped);
}

/* plan: from options to a placed list */

/* ==== src/plan/options.h ==== */

/* The options of a plan: which go together, their defaults, their ranges. */

static int gcpi_plan_bad(gcp_tape *t, const gcp_plan_opts *o, const char *text)
{
    gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "%s", text);
    return 0;
}

/* Every option that was given must be one that the policy or the optimiser uses. Called before gcpi_plan_defaults, as
   defaults do not count as given. */
static int gcpi_plan_applies(gcp_tape *t, const gcp_plan_opts *o)
{
    const gcp_policy policy = o->policy;
    const int sgd = o->optimizer == GCP_OPTIMIZER_SGD,
              adam = o->optimizer == GCP_OPTIMIZER_ADAM || o->optimizer == GCP_OPTIMIZER_ADAMW;
    const struct { int given, applies; const char *text;
    } options[] = { { o->segments != 0, policy == GCP_POLICY_UNIFORM, ".segments belongs to GCP_POLICY_UNIFORM" },
                    { o->balance != 0, policy == GCP_POLICY_UNIFORM, ".balance belongs to GCP_POLICY_UNIFORM" },
                    { o->checkpoints != 0, policy == GCP_POLICY_CHECKPOINTS,
                      ".checkpoints belongs to GCP_POLICY_CHECKPOINTS" },
                    { o->replay != 0, policy == GCP_POLICY_CHECKPOINTS, ".replay belongs to GCP_POLICY_CHECKPOINTS" },
                    { o->effort != GCP_EFFORT_DEFAULT, policy == GCP_POLICY_BUDGET,
                      ".effort belongs to GCP_POLICY_BUDGET" },
                    { o->progress != NULL, policy == GCP_POLICY_BUDGET && !o->list,
                      ".progress belongs to GCP_POLICY_BUDGET" },
                    { o->progress_context != NULL, o->progress != NULL, ".progress_context needs .progress" },
                    { o->momentum != 0, sgd, ".momentum belongs to GCP_OPTIMIZER_SGD" },
                    { o->beta1 != 0 || o->beta2 != 0, adam,
                      ".beta1 and .beta2 belong to GCP_OPTIMIZER_ADAM and GCP_OPTIMIZER_ADAMW" },
                    { o->epsilon != 0, adam, ".epsilon belongs to GCP_OPTIMIZER_ADAM and GCP_OPTIMIZER_ADAMW" },
                    { o->weight_decay != 0, sgd || adam, ".weight_decay belongs to an .optimizer" },
                    { o->clip_value != 0, sgd || adam, ".clip_value belongs to an .optimizer" },
                    { o->clip_norm != 0, sgd || adam, ".clip_norm belongs to an .optimizer" },
                    { o->optimizer != 0, !o->inference, "an inference plan has no .optimizer" },
                    { gcpi_integer(o->accumulate) > 1, !o->inference, "an inference plan has no .accumulate" },
                    { o->on_gradient != NULL, !o->inference, "an inference plan has no .on_gradient" },
                    { o->fuse_update > 0, !o->inference, "an inference plan has no .fuse_update" },
                    { o->train || o->freeze || gcpi_integer(o->frozen_norms), !o->inference,
                      "an inference plan trains nothing: no .train, .freeze or .frozen_norms" },
                    { o->rates || o->decays, o->optimizer != GCP_OPTIMIZER_NONE, ".rates and .decays need .optimizer" },
                    { o->budget == (size_t)GCP_ZERO, 0, ".budget is at least 1 byte; left out there is no limit" } };
    if (o->list && policy != GCP_POLICY_SEGMENTS && policy != GCP_POLICY_BUDGET)
        return gcpi_plan_bad(t, o, ".list stands in place of a .policy; GCP_POLICY_BUDGET alone goes with it");
    if (o->inference && (o->segments || o->balance || o->checkpoints || o->replay))
        return gcpi_plan_bad(t, o, "an inference plan keeps nothing: no .segments, .balance, .checkpoints or .replay");
    if ((o->on_wait || o->hook_context) && !o->on_gradient)
        return gcpi_plan_bad(t, o, ".on_wait and .hook_context need .on_gradient");
    for (size_t i = 0; i < sizeof options / sizeof *options; i++)
        if (options[i].given && !options[i].applies) return gcpi_plan_bad(t, o, options[i].text);
    return 1;
}

static void gcpi_plan_defaults(gcp_plan_opts *o)
{
    o->momentum = gcpi_option(o->momentum, 0);
    o->beta1 = gcpi_option(o->beta1, 0.9);
    o->beta2 = gcpi_option(o->beta2, 0.999);
    o->epsilon = gcpi_option(o->epsilon, 1e-8);
    o->weight_decay = gcpi_option(o->weight_decay, 0);
    o->clip_value = gcpi_option(o->clip_value, 0);
    o->clip_norm = gcpi_option(o->clip_norm, 0);
    o->segments = gcpi_integer(o->segments);
    o->checkpoints = gcpi_integer(o->checkpoints);
    o->accumulate = gcpi_integer(o->accumulate);
    if (o->far == (size_t)GCP_ZERO) o->far = 0;
}

/* The optimiser's numbers must be in range. Called after gcpi_plan_defaults. */
static int gcpi_plan_numbers_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const struct { const char *name; double value, below;
    } numbers[] = { { ".momentum", o->momentum, HUGE_VAL },
                    { ".weight_decay", o->weight_decay, HUGE_VAL },
                    { ".clip_value", o->clip_value, HUGE_VAL },
                    { ".clip_norm", o->clip_norm, HUGE_VAL },
                    { ".epsilon", o->epsilon, HUGE_VAL },
                    { ".beta1", o->beta1, 1 },
                    { ".beta2", o->beta2, 1 } };
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i].value >= 0 && numbers[i].value < numbers[i].below) continue;
        gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "%s = %g; at least 0%s", numbers[i].name, numbers[i].value,
                  numbers[i].below > 1 ? ", and finite" : " and below 1");
        return 0;
    }
    return 1;
}

static int gcpi_target_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const gcp_target *g = o->target;
    if (g->align & (g->align - 1) || g->align > 1 << 30)
        return gcpi_plan_bad(t, o, "the target's .align is not a power of two up to 2^30");
    const double rates[] = { g->flops_per_second, g->bytes_per_second, g->far_bytes_per_second };
    for (int i = 0; i < 3; i++)
        if (!gcpi_finite(rates[i]) || rates[i] < 0)
            return gcpi_plan_bad(t, o, "the target's .flops_per_second, .bytes_per_second and .far_bytes_per_second "
                                       "are 0 (the default) or positive, and finite");
    if (g->threads < 0) {
        gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "the target's .threads = %d; at least 0", g->threads);
        return 0;
    }
    const gcp_device *d = g->device;
    if (d && (!g->kernels || !d->copy || !d->fill || !d->timed || !d->trouble || !d->play != !d->forget))
        return gcpi_plan_bad(
            t, o,
            "the target's .device needs .kernels, and copy, fill, timed and trouble, and play and forget together");
    if (!g->copy_start != !g->copy_wait)
        return gcpi_plan_bad(t, o, "the target's .copy_start and .copy_wait belong together");
    if (g->align && g->align < sizeof(double))
        return gcpi_plan_bad(t, o, "the target's .align is below 8");
    if (g->isa < 0 || g->isa > gcpi_isa_best())
        return gcpi_plan_bad(t, o, "this machine does not have the target's .isa");
    return 1;
}

/* Whether updates are fused, and why: GCPI_FUSED_ITSELF where nothing can tell. */
enum { GCPI_FUSED = 1, GCPI_FUSED_ITSELF };
static int gcpi_updates_early(const gcp_plan_opts *o)
{
    if (o->fuse_update || !o->optimizer || o->inference) return o->fuse_update > 0 ? GCPI_FUSED : 0;
    if (o->list) return gcpi_list_fuses(o->list) ? GCPI_FUSED : 0;
    if (o->policy != GCP_POLICY_BUDGET || o->clip_norm > 0 || o->accumulate > 1 || o->on_gradient) return 0;
    return GCPI_FUSED_ITSELF;
}

static int gcpi_plan_patterns_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    const struct { const char *name, *text; int lines; } texts[] = {
        { ".train", o->train, 0 }, { ".freeze", o->freeze, 0 }, { ".rates", o->rates, 1 }, { ".decays", o->decays, 1 }
    };
    gcpi_word word;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        const char *wrong = texts[i].text ? gcpi_patterns_wrong(t, texts[i].text, texts[i].lines, &word) : NULL;
        if (!wrong) continue;
        gcpi_fail(t, GCP_E_PLAN, o->at, t->planning, "%s: '%.*s' %s (the first parameter is %.120s)", texts[i].name,
                  (int)GCPI_MIN(word.length, 120u), word.at, wrong,
                  t->parameter_count ? t->parameters[0].path : "none");
        return 0;
    }
    return 1;
}

/* An option that changes nothing was given by mistake. */
static int gcpi_plan_effects_ok(gcp_tape *t, const gcp_plan_opts *o)
{
    int frozen = !o->frozen_norms, decays = !o->decays || o->weight_decay > 0;
    for (int x = 1; x < t->tensor_count; x++) {
        if (t->tensors[x].kind != GCPI_PARAMETER) continue;
        frozen |= !gcpi_trains(t, x, o);
        decays |= gcpi_numbers_fit(o->decays, t->parameters[t->tensors[x].parameter].path, 0) > 0;
    }
    if (!frozen) return gcpi_plan_bad(t, o, ".frozen_norms: nothing is frozen (.freeze, .train, gcp_freeze)");
    return decays || gcpi_plan_bad(t, o, ".decays: its numbers are 0, and so is .weight_decay: nothing decays");
}

/* Checks the options and fills in their defaults. */
static int gcpi_plan_options_ok(gcp_tape *t, gcp_plan_opts *o)
{
    int *const flags[] = { &o->balance, &o->replay, &o->far_only, &o->inference, &o->nesterov, &o->fuse_update,
                           &o->frozen_norms, &o->no_groups, &o->check };
    if (o->fuse_update == GCP_ZERO) o->fuse_update = GCP_NEVER;
    for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) *flags[i] = gcpi_integer(*flags[i]);
    if ((int)o->policy < 0 || o->policy > GCP_POLICY_BUDGET) return gcpi_plan_bad(t, o, "unknown .policy");
    if ((int)o->effort < 0 || o->effort > GCP_EFFORT_THOROUGH) return gcpi_plan_bad(t, o, "unknown .effort");
    if ((int)o->optimizer < 0 || o->optimizer > GCP_OPTIMIZER_ADAMW) return gcpi_plan_bad(t, o, "unknown .optimizer");
    if (!gcpi_plan_applies(t, o) || !gcpi_plan_patterns_ok(t, o)) return 0;
    gcpi_plan_defaults(o);
    if (!gcpi_plan_numbers_ok(t, o) || !gcpi_plan_effects_ok(t, o)) return 0;
    if (o->far && (o->policy != GCP_POLICY_BUDGET || o->list || o->inference))
        return gcpi_plan_bad(t, o, ".far belongs to GCP_POLICY_BUDGET");
    if (o->far_only && !o->far) return gcpi_plan_bad(t, o, ".far_only without .far");
    if (o->policy == GCP_POLICY_BUDGET && !o->budget && !o->list)
        return gcpi_plan_bad(t, o, "GCP_POLICY_BUDGET needs .budget (bytes)");
    if (o->fuse_update > 0 && !o->optimizer) return gcpi_plan_bad(t, o, ".fuse_update without .optimizer");
    o->fuse_update = gcpi_updates_early(o);
    if (o->fuse_update && o->clip_norm > 0)
        return gcpi_plan_bad(
            t, o, ".fuse_update (or a .list of fused updates) with .clip_norm: the norm needs all gradients first");
    if (o->fuse_update && o->accumulate > 1)
        return gcpi_plan_bad(t, o,
                             ".fuse_update (or a .list of fused updates) with .accumulate: gradients are not finished "
                             "before the last micro-batch");
    if (o->accumulate < 0) return gcpi_plan_bad(t, o, ".accumulate is at least 0");
    if (o->check && o->check != GCP_CHECK) return gcpi_plan_bad(t, o, ".check is GCP_CHECK or 0");
    if (o->nesterov && (o->optimizer != GCP_OPTIMIZER_SGD || o->momentum == 0))
        return gcpi_plan_bad(t, o, ".nesterov needs GCP_OPTIMIZER_SGD with .momentum");
    return !o->target || gcpi_target_ok(t, o);
}

/* Every parameter of the tape must be recorded (again, after a reset); the error names the first that is missing. */
static int gcpi_parameters_seen(gcp_tape *t, gcp_at at)
{
    for (int i = 0; i < t->parameter_count; i++)
        if (!t->parameters[i].tensor) {
            gcpi_fail(t, GCP_E_PARAMETERS, at, t->planning,
                      "'%s' is in the state, but was not recorded again after gcp_tape_reset", t->parameters[i].path);
            return 0;
        }
    return 1;
}

static int gcpi_plan_ready(gcp_tensor loss, gcp_plan_opts *o)
{
    gcp_tape *t = loss.tape;
    if (!t) return 0;
    gcpi_segments_close(t, 0);
    if (!gcpi_usable(t, loss, o->at, t->planning) || !gcpi_plan_options_ok(t, o) || !gcpi_parameters_seen(t, o->at))
        return 0;
    const gcpi_tensor *e = gcpi_get(loss);
    char text[64];
    if (e->producer < 0) return gcpi_plan_bad(t, o, "the tensor is an input or parameter: there is nothing to run");
    if (!o->inference && (gcpi_count(e->shape) != 1 || e->dtype != GCP_DTYPE_REAL)) {
        gcpi_fail(t, GCP_E_SHAPE, o->at, t->planning, "the loss is %s, not a scalar (gcp_mean makes one)",
                  gcpi_shape_text(e->shape, text, sizeof text));
        return 0;
    }
    return 1;
}

/* ==== src/plan/plan.h ==== */

/* A plan: its data; a list of the user's; where its values lie. */

/* a buffer of the placed list, as reports, .check and the figures need it */
typedef struct gcpi_plan_buffer { size_t offset, bytes; int first, last, item, again; } gcpi_plan_buffer;

/* What a plan is bound to. The slab moves inside the memory that gcp_bind was given when the state grows. */
typedef struct gcpi_bound_state {
    void *memory; size_t memory_size;
    unsigned char *slab; void *owned; size_t owned_size;              /* owned: the target allocated it */
    unsigned layout;                  /* tape->layout when the slab was placed */
    int *given;                       /* per tensor: samples of an input that were written since then; 0: none */
    int some;                         /* an input was written in part since then */
    int unwritten, ran;               /* inputs that are not written; whether a step ran since the slab was placed */
    const char *since;                /* for messages: what lost the written inputs */
    unsigned char *far; void *far_owned;
} gcpi_bound_state;

/* What a run is for: a step that counts; gcp_measure, on copies of state and inputs; gcp_gradcheck, whose steps all
   have the same numbers and do not change the state. */
typedef enum gcpi_purpose { GCPI_TO_STEP, GCPI_TO_MEASURE, GCPI_TO_GRADCHECK } gcpi_purpose;

/* The step that runs, or ran last. */
typedef struct gcpi_run_state {
    int micro;
    gcpi_purpose purpose;
    double share;                     /* what the loss's own gradient is */
    gcpi_transfer flying[GCP_COPIES]; int next_copy;
    gcp_step_numbers numbers;         /* of the step that is being issued; the slab holds a copy for the kernels */
    void *recordings[4];              /* the device's: of a first, middle, only and last micro-batch */
} gcpi_run_state;

typedef struct gcpi_plan {
    gcpi_lease lease;                 /* its bytes in the arena, this struct at their front; freed by gcp_plan_free */
    gcp_arena *arena;
    uint64_t number;                  /* the tape knows the plan by it */
    gcp_plan_opts opts;
    gcpi_problem p;
    gcpi_list list;
    gcpi_placed *placed;              /* per operand, in list order */
    size_t *live;                     /* per instruction */
    double *seconds;                  /* per instruction, measured; 0: not yet */
    gcpi_plan_buffer *buffers; int buffer_count;
    ptrdiff_t *where;                 /* per item: offset in the slab of its last value, -1: none */
    /* .check: per item the hash of its first value; the buffers (indices of buffers) that die at each instruction:
       dying[dying_first[i]] up to dying[dying_first[i + 1]] */
    uint64_t *hashes; int *dying, *dying_first;
    /* keep_all: slab bytes of the keep-all plan by default views, 0 where not known; its seconds */
    size_t slab_bytes, state_bytes, slot_bytes, live_peak, keep_all;
    double bound_seconds, keep_all_seconds;
    const char *method; gcpi_fit fit;           /* of the search */
    size_t unfused;                   /* slab bytes of the keep-all plan without fused updates; SIZE_MAX: as it is */
    int peak_at, forward_end, slots, segments;          /* forward_end: the instruction after the last F */
    int inputs, leaves_out;           /* inputs that the list reads; whether the loss can leave samples out */
    int *samples, joins_samples;      /* per tensor: see samples.h; the first op that joins them, -1: none */
    ptrdiff_t *far_at; size_t far_bytes;      /* per tensor: its offset in far memory, -1: never there */
    double timeline;                  /* seconds of a step, far copies beside it; 0: the list has no copies */
    gcpi_bound_state bound;
    gcpi_run_state run;
} gcpi_plan;

static int gcpi_policy_fits(gcp_tape *t, const gcp_plan_opts *o, int units)
{
    int bad_k = o->policy == GCP_POLICY_CHECKPOINTS && (o->checkpoints < 0 || o->checkpoints >= units);
    int bad_s = o->policy == GCP_POLICY_UNIFORM && (o->segments < 1 || o->segments > units);
    if (o->inference || o->list || (!bad_k && !bad_s)) return 1;
    if (!units)
        return gcpi_plan_bad(
            t, o, "the network has no op before the loss, so there is nothing to cut: use GCP_POLICY_KEEP_ALL");
    gcpi_fail(t, GCP_E_PLAN, o->at, t->planning,
              bad_k ? ".checkpoints = %d of %d units; allowed are 0 to %d"
                    : ".segments = %d of %d units; allowed are 1 to %d",
              bad_k ? o->checkpoints : o->segments, units, bad_k ? units - 1 : units);
    return 0;
}

/* Parses the list that the user gave: the first pass counts its instructions, the second stores them. */
static int gcpi_plan_list(gcpi_plan *core, gcp_arena *a)
{
    gcp_tape *t = core->p.tape;
    char message[200];
    if (!gcpi_list_views(&core->p, core->opts.list, message, sizeof message)) {
        gcpi_fail(t, GCP_E_LIST, core->opts.at, t->planning, "%s", message);
        return 0;
    }
    if (core->opts.costs && !gcpi_costs_apply(&core->p, &core->opts, a)) return 0;
    for (int pass = 0; pass < 2; pass++) {
        if (!gcpi_list_parse(&core->p, core->opts.list, &core->list, message, sizeof message)) {
            gcpi_fail(t, GCP_E_LIST, core->opts.at, t->planning, "%s", message);
            return 0;
        }
        if (core->list.count == 0) {
            gcpi_fail(t, GCP_E_LIST, core->opts.at, t->planning, "the list holds no instruction");
            return 0;
        }
        if (pass == 0 && core->list.count > INT32_MAX / 4) {
            gcpi_fail(t, GCP_E_PLAN, core->opts.at, t->planning, "%td instructions", core->list.count);
            return 0;
        }
        if (pass == 0 && (core->list.at = GCPI_NEW(a, gcpi_instruction, core->list.count)) == NULL) return 0;
        core->list.capacity = core->list.count;
    }
    return gcpi_list_reruns(&core->p, &core->list, a);
}

/* Where each operand lies, and each item's last value: from the addresses of buffers. */
static void gcpi_plan_place(gcpi_plan *core, const gcpi_lives *l)
{
    const gcpi_problem *p = &core->p;
    int n = 0;
    for (int i = 0; i < p->item_count; i++) core->where[i] = -1;
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const gcpi_task *t = &p->tasks[core->list.at[i].task];
        for (int k = 0; k < t->count; k++, n++) {
            const gcpi_item *x = &p->items[p->operands[t->operands + k].item];
            core->placed[n].offset = -1;
            if (l->operand_value[n] < 0) continue;
            core->placed[n].offset =
                (ptrdiff_t)(l->buffers[gcpi_buffer_of(l, l->values[l->operand_value[n]].buffer)].offset + x->offset);
            core->where[p->operands[t->operands + k].item] = core->placed[n].offset;
        }
    }
}

static void gcpi_plan_buffers(gcpi_plan *core, const gcpi_lives *l)
{
    for (int i = 0; i < l->buffer_count; i++) {
        const gcpi_buffer *x = &l->buffers[i];
        if (x->joined >= 0) continue;
        gcpi_plan_buffer *b = &core->buffers[core->buffer_count++];
        b->offset = x->offset;
        b->bytes = x->bytes;
        b->first = x->first;
        b->last = x->last;
        b->item = x->root;
        b->again = core->list.at[x->first].letter == 'R';
    }
}

static int gcpi_plan_deaths(gcpi_plan *core, gcp_arena *a)
{
    core->hashes = GCPI_NEW(a, uint64_t, core->p.item_count);
    core->dying = GCPI_NEW(a, int, core->buffer_count + 1);
    core->dying_first = GCPI_NEW(a, int, core->list.count + 2);
    if (!core->hashes || !core->dying || !core->dying_first) return 0;
    for (int b = 0; b < core->buffer_count; b++) core->dying_first[core->buffers[b].last + 1]++;
    for (ptrdiff_t i = 0; i < core->list.count; i++) core->dying_first[i + 1] += core->dying_first[i];
    for (int b = 0; b < core->buffer_count; b++) core->dying[core->dying_first[core->buffers[b].last]++] = b;
    for (ptrdiff_t i = core->list.count; i > 0; i--) core->dying_first[i] = core->dying_first[i - 1];
    core->dying_first[0] = 0;
    return 1;
}

enum { GCPI_LARGE = 3000 };           /* tasks of a problem in which not every candidate gets a layout */

static size_t gcpi_slab_limit(const gcpi_plan *core)
{
    return core->opts.budget > core->state_bytes ? core->opts.budget - core->state_bytes : 0;
}

/* The layout of a user's list. With a budget, it tries each amount of work that the planner can have spent on a layout:
   so a list printed from a plan gets that plan's layout again (nearly always, if its budget was the least). */
static int gcpi_plan_layout(gcpi_plan *core, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    size_t limit = gcpi_slab_limit(core);
    for (int i = 0; limit && i < 9; i++) {
        const gcpi_effort *e = &gcpi_efforts[((int)core->opts.effort + i / 3) % 3];
        a->scratch = scratch;
        core->slab_bytes = gcpi_arrange(&core->p, &core->list, l, live,
                                      gcpi_fit_of(limit,
                                                  i % 3 == 0   ? e->layout
                                                  : i % 3 == 1 ? e->layout / 2
                                                               : e->hard,
                                                  0),
                                      a);
        if (core->slab_bytes && core->slab_bytes <= limit) return 1;
    }
    a->scratch = scratch;
    core->slab_bytes = gcpi_arrange(&core->p, &core->list, l, live, gcpi_fit_free(), a);
    return core->slab_bytes != 0;
}

/* ==== src/plan/network_fits.h ==== */

/* What a network must be to be planned. */

static int gcpi_customs_run_on(const gcpi_problem *p)
{
    for (int i = 0; p->target.device && i < p->task_count; i++) {
        const gcpi_task *task = &p->tasks[i];
        if (task->kind != GCPI_TASK_FORWARD && task->kind != GCPI_TASK_BACKWARD) continue;
        const gcpi_op *op = &p->tape->ops[task->op];
        const gcp_op *own = op->row->on_device;
        if (!gcpi_facts_of(op).custom ||
            (own && (task->kind == GCPI_TASK_FORWARD ? own->forward != NULL : own->backward != NULL)))
            continue;
        gcpi_fail(p->tape, GCP_E_PLAN, op->at, op->row->name, "no version for the target '%s' (.on_device)",
                  p->target.name);
        return 0;
    }
    return 1;
}

/* Statistics of one value a channel are that value: what they normalise is a constant, and no gradient comes back. */
static int gcpi_norms_have_values(const gcpi_problem *p)
{
    for (int i = 0; p->training && i < p->forward; i++) {
        const gcpi_op *op = &p->tape->ops[p->tasks[i].op];
        const gcp_shape *x = &p->tape->tensors[gcpi_edge(p->tape, op, 0)].shape;
        if (!gcpi_facts_of(op).stats || gcpi_norm_is_fixed(p, op) || gcpi_pixels(*x) > 1) continue;
        char name[256];
        gcpi_fail(p->tape, GCP_E_SHAPE, op->at, gcpi_task_name(p, &p->tasks[i + 1], name, sizeof name),
                  "found one value a channel in %s, expected at least 2 in training (a larger batch; or running "
                  "statistics: .frozen_norms, with its gamma and beta in .freeze, or .inference)", GCPI_SHAPE_TEXT(*x));
        return 0;
    }
    return 1;
}

/* Refuses a network whose sums of bytes could overflow under some plan, or whose sum of seconds is not finite. */
static int gcpi_plan_addressable(const gcpi_plan *core)
{
    double bytes = 0, workspace = 0, seconds = 0;
    for (int i = 0; i < core->p.item_count; i++) {
        const gcpi_item *x = &core->p.items[i];
        if (x->root == i)
            bytes += ((double)x->bytes + (double)core->p.target.align) *
                     (x->kind == GCPI_STATE_ITEM ? 1 + core->slots : 1);
    }
    for (int i = 0; i < core->p.task_count; i++) {
        workspace = GCPI_MAX(workspace, (double)core->p.tasks[i].workspace);
        seconds += core->p.tasks[i].seconds;
    }
    if (!(seconds < 1e100))
        return gcpi_plan_bad(core->p.tape, &core->opts,
                             "at the target's .flops_per_second and .bytes_per_second a step takes no finite time");
    if (bytes + workspace < (double)(SIZE_MAX / 2)) return 1;
    gcpi_fail(core->p.tape, GCP_E_SHAPE, core->opts.at, core->p.tape->planning,
              "the network's tensors take %.3g bytes, more than can be addressed", bytes + workspace);
    return 0;
}

/* ==== src/plan/samples.h ==== */

/* Which samples a loss may leave out, for gcp_write_some.

   An input's first size counts its samples; (n) has n of one value. They follow one another in its values. So they do
   in all that is made of them, until an op makes one value of several: then none can be left out. */

/* Whether op reads tensor x whole for each sample, as a bias or a table. */
static int gcpi_reads_whole(const gcp_tape *t, const gcpi_op *op, int x)
{
    const unsigned shared = gcpi_facts_of(op).shared;
    for (int i = 0; i < op->inputs && shared >> i; i++)
        if (shared >> i & 1 && gcpi_edge(t, op, i) == x) return 1;
    return 0;
}
/* Of each input how many samples it has that can be left out; 0: none, or an op reads it whole. Tensors that ops make
   have 0 so far. */
static void gcpi_samples_of_inputs(const gcp_tape *t, int *samples)
{
    for (int x = 0; x < t->tensor_count; x++) {
        const int n = gcpi_by_samples(t->tensors[x].shape).d[0];
        samples[x] = t->tensors[x].kind == GCPI_INPUT && n > 1 ? n : 0;
    }
    for (int o = 0; o < t->op_count; o++)
        for (int i = 0; i < t->ops[o].inputs; i++) {
            const int x = gcpi_edge(t, &t->ops[o], i);
            if (samples[x] && gcpi_reads_whole(t, &t->ops[o], x)) samples[x] = 0;
        }
}

/* Whether value i of output 0 is made of values i of the inputs. */
static int gcpi_value_by_value(const gcp_tape *t, const gcpi_op *op, const gcpi_facts *facts)
{
    if (facts->view == GCPI_VIEW_WHOLE) return 1;
    return facts->channels == GCPI_CHANNELS_SAME && facts->view == GCPI_VIEW_NONE && !facts->shared &&
           gcpi_count(t->tensors[op->out].shape) == gcpi_count(t->tensors[gcpi_edge(t, op, 0)].shape);
}
/* The samples of an op: the fewest that an input has, where those of the others are parts of them. -1: an input's are
   joined: they are read whole, or are values of one row, and the op goes over rows. (A custom op that says that it
   keeps samples apart means those of (n), too.) */
static int gcpi_samples_of_op(const gcp_tape *t, const gcpi_op *op, const int *samples)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const int by_value = facts.custom || gcpi_value_by_value(t, op, &facts);
    int fewest = 0;
    for (int i = 0; i < op->inputs; i++) {
        const int x = gcpi_edge(t, op, i), n = samples[x];
        const gcpi_tensor *e = &t->tensors[x];
        if (!n) continue;
        if (gcpi_reads_whole(t, op, x) || (!by_value && e->dtype == GCP_DTYPE_REAL && e->shape.rank == 1)) return -1;
        if (fewest && n % fewest && fewest % n) return -1;
        fewest = fewest ? GCPI_MIN(fewest, n) : n;
    }
    return fewest;
}
/* Fills the samples of the op's outputs. 1: it makes one value of several. A cross-entropy does, but leaves out those
   whose labels are ignored; statistics are of all. */
static int gcpi_samples_join(const gcp_tape *t, const gcpi_op *op, int *samples)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const int n = gcpi_samples_of_op(t, op, samples), ends = n < 0 || facts.stats || facts.leaves_out;
    int joins = n < 0 || (facts.leaves_out && samples[gcpi_edge(t, op, 0)] && !samples[gcpi_edge(t, op, 1)]);
    for (int j = 0; j < op->outputs; j++) {
        const int aside = j && !facts.custom;               /* a mask, of which only backward knows */
        samples[op->out + j] = ends ? 0 : n;
        joins |= !ends && n && !aside && (!facts.apart || gcpi_by_samples(t->tensors[op->out + j].shape).d[0] % n);
    }
    return joins;
}

/* Whether samples can be left out: no op joins them, and the loss, where there is one, leaves some out. */
static int gcpi_plan_samples(gcpi_plan *core, gcp_arena *a)
{
    const gcp_tape *t = core->p.tape;
    int left_out = 0;
    if (gcpi_is_graph(&core->p)) return 1;
    core->joins_samples = -1;
    core->samples = GCPI_NEW(a, int, t->tensor_count);
    if (!core->samples) return 0;
    gcpi_samples_of_inputs(t, core->samples);
    for (int k = 0; k < core->p.forward; k++) {
        const gcpi_task *task = &core->p.tasks[k];
        for (int o = task->op - GCPI_MAX(task->ops, 1) + 1; o <= task->op; o++) {
            if (gcpi_samples_join(t, &t->ops[o], core->samples) && core->joins_samples < 0) core->joins_samples = o;
            left_out |= gcpi_facts_of(&t->ops[o]).leaves_out;
        }
    }
    core->leaves_out = core->joins_samples < 0 && (left_out || !core->p.training);
    return 1;
}

/* ==== src/plan/outcome.h ==== */

/* An outcome: an answer as a list, or why there is none. The words of the refusal, and what would help, are made
   here. */

static gcp_at gcpi_task_at(const gcpi_problem *p, int task, gcp_at other)          /* where the user recorded it */
{
    return p->tasks[task].kind <= GCPI_TASK_BACKWARD && !gcpi_is_graph(p) ? p->tape->ops[p->tasks[task].op].at : other;
}

/* Whether a smaller batch can be had: an input has more than one sample. */
static int gcpi_can_halve(const gcp_tape *t)
{
    for (int i = 1; i < t->tensor_count; i++)
        if (t->tensors[i].kind == GCPI_INPUT && t->tensors[i].shape.d[0] > 1) return 1;
    return 0;
}

/* What one thread alone would take less for a task's workspace. */
static size_t gcpi_threads_take(const gcpi_problem *p, int task)
{
    gcpi_problem one = *p;
    gcpi_task alone = p->tasks[task];
    if (alone.kind > GCPI_TASK_BACKWARD) return 0;
    one.target.threads = 1;
    gcpi_task_cost(&one, &alone, &p->tape->ops[alone.op], alone.kind == GCPI_TASK_BACKWARD);
    return p->tasks[task].workspace - GCPI_MIN(alone.workspace, p->tasks[task].workspace);
}

/* What else would lower a peak at this task, with so many bytes of weight gradients, and so many that grow with the
   batch: each with the bytes that it saves at most. Empty: nothing. */
static void gcpi_help_text(const gcpi_plan *core, int task, size_t gradients, size_t batch, char *text, size_t size)
{
    const gcp_plan_opts *o = &core->opts;
    int adam = o->optimizer == GCP_OPTIMIZER_ADAM || o->optimizer == GCP_OPTIMIZER_ADAMW;
    size_t n = 0;
    text[0] = 0;
    if (gcpi_is_graph(&core->p)) return;
    const size_t threads = gcpi_threads_take(&core->p, task);
    if (adam && core->slot_bytes)
        n += (size_t)snprintf(text, size, "; SGD with momentum in place of Adam: %zu less", core->slot_bytes / 2);
    if (o->optimizer == GCP_OPTIMIZER_SGD && core->slot_bytes)
        n += (size_t)snprintf(text, size, "; SGD without momentum: %zu less", core->slot_bytes);
    if (core->slot_bytes && n < size)
        n += (size_t)snprintf(text + n, size - n, "; slots in far memory (gcp_slots_bind): up to %zu less",
                              core->slot_bytes);
    if (o->optimizer && !o->fuse_update && gradients && n < size)
        n += (size_t)snprintf(text + n, size - n, "; .fuse_update%s%s: frees up to %zu of weight gradients",
                              o->clip_norm > 0 ? ", without .clip_norm" : "",
                              o->accumulate > 1 ? ", without .accumulate" : "", gradients);
    if (threads && n < size)
        n += (size_t)snprintf(text + n, size - n, "; a target with .threads = 1, in place of %d: up to %zu less",
                              core->p.target.threads, threads);
    if (batch && gcpi_can_halve(core->p.tape) && n < size)
        snprintf(text + n, size - n, "; half the batch: about %zu less", batch / 2);
}

/* What planning with one choice of views gave: a list with its layout, or why there is none. */
typedef struct gcpi_outcome {
    int made;
    gcpi_list list; gcpi_fit fit; const char *method;
    double seconds, bound;            /* seconds: as the search judged it */
    size_t slab, keep_all, checkpoints;           /* bytes; keep_all 0: not known */
    int segments, coarse;
    gcpi_lowest lowest;
    gcp_code code; char message[GCP_MAX_ERROR];   /* GCP_OK: the arena is too small */
} gcpi_outcome;

GCPI_PRINTF(3, 4)
static void gcpi_outcome_fail(gcpi_outcome *out, gcp_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(out->message, sizeof out->message, format, args);
    va_end(args);
    out->code = code;
}

static void gcpi_stop_fail(const gcpi_plan *core, gcpi_outcome *out)
{
    gcpi_outcome_fail(out, GCP_E_BUDGET,
                      ".progress stopped the search before anything was found that fits .budget = %zu bytes",
                      core->opts.budget);
}

static void gcpi_budget_fail(const gcpi_plan *core, const gcpi_watch *watch, gcpi_outcome *out)
{
    char name[128], help[400];
    const gcpi_lowest *lowest = &out->lowest;
    const gcpi_task *task = &core->p.tasks[lowest->task];
    gcp_at at = gcpi_task_at(&core->p, lowest->task, core->opts.at);
    if (!lowest->slab && watch->stopped) gcpi_stop_fail(core, out);
    if (!lowest->slab) return;
    gcpi_help_text(core, lowest->task, lowest->gradients, lowest->batch, help, sizeof help);
    gcpi_outcome_fail(out, GCP_E_BUDGET,
                      ".budget allows %zu bytes; the least found to work is %zu%s; %s %.48s (%s:%d) sets it%s",
                      core->opts.budget, core->state_bytes + lowest->slab,
                      watch->stopped ? " (.progress stopped the search)"
                      : out->coarse  ? " (the plan's arena had no room for all of the search: gcp_plan_arena)"
                                     : "",
                      lowest->task < core->p.forward ? "forward of" : "backward of",
                      gcpi_task_name(&core->p, task, name, sizeof name), gcpi_basename(at.file), at.line, help);
}

/* What a plan of these options asks for. */
static gcpi_request gcpi_request_of(gcpi_plan *core, gcpi_watch *watch)
{
    gcpi_request r;
    memset(&r, 0, sizeof r);
    r.p = &core->p; r.opts = &core->opts;
    r.policy = core->opts.policy; r.effort = core->opts.effort;
    r.far = core->opts.far; r.far_only = core->opts.far_only;
    if (r.policy == GCP_POLICY_BUDGET) r.limit = GCPI_MAX(gcpi_slab_limit(core), 1);
    r.watch = watch; r.portion.to = 1;
    return r;
}

/* The answer as a list, at the front of the arena. */
static void gcpi_outcome_list(gcpi_outcome *out, const gcpi_request *r, const gcpi_answer *found, gcp_arena *a)
{
    out->list.capacity = found->order->count + found->fit.moves;
    out->list.at = GCPI_NEW(a, gcpi_instruction, out->list.capacity);
    if (out->list.at) gcpi_list_of(r->p, found->order, &out->list);
    out->made = out->list.at && gcpi_list_reruns(r->p, &out->list, a);
}

static gcpi_outcome gcpi_plan_choose(const gcpi_plan *core, const gcpi_request *r, gcp_arena *a)
{
    ptrdiff_t scratch = a->scratch;
    gcpi_planner q;
    gcpi_answer found;
    gcpi_outcome out;
    memset(&out, 0, sizeof out);
    if (!gcpi_choose(&q, r, a, &found)) return out;
    out.lowest = found.lowest;
    out.coarse = found.coarse; out.bound = found.bound; out.seconds = found.seconds; out.segments = found.segments;
    out.method = found.method; out.fit = found.fit;
    out.keep_all = core->unfused < SIZE_MAX ? core->unfused : found.keep_all < SIZE_MAX ? found.keep_all : 0;
    if (!found.order) { gcpi_budget_fail(core, r->watch, &out); return out; }
    memset(&out.lowest, 0, sizeof out.lowest);
    out.checkpoints = core->p.training ? gcpi_checkpoint_bytes(r) : 0;
    gcpi_outcome_list(&out, r, &found, a);
    a->scratch = scratch;
    return out;
}

/* The slab of GCP_POLICY_KEEP_ALL, whose updates come last: what a plan is compared with that fuses them by itself. 0:
   not known, for a large problem. */
static size_t gcpi_unfused_slab(const gcpi_plan *core, int root, const gcp_target *target, gcp_arena *a)
{
    const gcp_arena was = *a;
    gcp_plan_opts o = core->opts;
    gcpi_problem p;
    gcpi_list list;
    gcpi_lives l;
    size_t *live, slab = 0;
    memset(&p, 0, sizeof p);
    memset(&list, 0, sizeof list);
    p.tape = core->p.tape;
    o.policy = GCP_POLICY_KEEP_ALL; o.far = 0; o.fuse_update = 0;
    if (gcpi_problem_make(&p, root, &o, target, a) && p.task_count <= GCPI_LARGE &&
        (list.at = GCPI_SCRATCH(a, gcpi_instruction, p.task_count)) != NULL) {
        list.capacity = p.task_count;
        for (int i = 0; i < p.task_count; i++) gcpi_emit(&list, gcpi_letters[p.tasks[i].kind], i, &p.tasks[i]);
        slab = gcpi_arrange(&p, &list, &l, &live, gcpi_fit_free(), a);
    }
    a->used = was.used; a->scratch = was.scratch;
    return slab;
}

/* The list for a request, and its layout. In a large problem a layout takes longer than finding another order. There
   candidates are judged by their live peak, and only the chosen one gets a layout. If that does not fit, the search
   runs again and lays out every candidate. l and live stay in scratch. */
static gcpi_outcome gcpi_plan_by_views(const gcpi_plan *core, const gcpi_request *asked, gcpi_lives *l, size_t **live,
                                       gcp_arena *a)
{
    ptrdiff_t used = a->used, scratch = a->scratch;
    gcpi_request r = *asked;
    for (r.by_peak = r.policy == GCP_POLICY_BUDGET && r.p->task_count > GCPI_LARGE;; r.by_peak = 0) {
        a->used = used; a->scratch = scratch;
        gcpi_outcome out = gcpi_plan_choose(core, &r, a);
        if (!out.made) return out;
        out.slab = gcpi_arrange(r.p, &out.list, l, live, out.fit, a);
        out.made = out.slab != 0;
        if (!r.by_peak || out.slab <= gcpi_slab_limit(core)) return out;
    }
}

/* ==== src/plan/sizes.h ==== */

/* Sizes: of the state, of the arena that planning takes. */

/* The state's layout: counters (the tape's, then per parameter how often its slots were updated), values in order of
   recording, slots. These may wait in far memory instead. */
enum { GCPI_FAR_SLOTS_FIRST = 64 };            /* offset 0 says that a parameter has none */
typedef struct gcpi_counters { uint64_t steps, updates; } gcpi_counters;

static size_t gcpi_counters_bytes(const gcp_tape *t)
{
    return gcpi_round(sizeof(gcpi_counters) + (size_t)t->parameter_count * sizeof(uint64_t), GCPI_STATE_ALIGN);
}
static size_t gcpi_parameter_bytes(const gcp_tape *t, int i)
{
    return gcpi_round(gcpi_count(t->parameters[i].shape) * sizeof(gcp_real), GCPI_STATE_ALIGN);
}

/* Bytes of the state once it has the slots that each of these plans adds. */
static size_t gcpi_state_with(const gcp_tape *t, gcpi_plan *const *plans, int count)
{
    size_t total = gcpi_counters_bytes(t);
    for (int i = 0; i < t->parameter_count; i++) {
        int slots = t->parameters[i].slot ? t->slots : 0;
        for (int k = 0; k < count; k++) if (gcpi_trained(&plans[k]->p, i)) slots = GCPI_MAX(slots, plans[k]->slots);
        if (t->far_slots) slots = 0;
        total += gcpi_parameter_bytes(t, i) * (size_t)(1 + slots);
    }
    return total;
}
GCPI_DEF size_t gcp_slots_bytes(const gcp_tape *t, gcp_optimizer optimizer)
{
    const size_t slots = !optimizer ? 0 : optimizer == GCP_OPTIMIZER_SGD ? 1 : 2;
    size_t total = GCPI_FAR_SLOTS_FIRST;
    for (int i = 0; t && i < t->parameter_count; i++)
        if (t->parameters[i].kind == GCPI_PARAMETER) total += gcpi_parameter_bytes(t, i) * slots;
    return t && slots ? total : 0;
}
GCPI_DEF size_t gcp_state_bytes(const gcp_tape *t, gcp_optimizer optimizer)
{
    size_t total = t ? gcpi_counters_bytes(t) : 0;
    for (int i = 0; t && i < t->parameter_count; i++) total += gcpi_parameter_bytes(t, i);
    return t && optimizer && !t->far_slots ? total + gcp_slots_bytes(t, optimizer) - GCPI_FAR_SLOTS_FIRST : total;
}

/* Counts for an upper bound of what planning takes. list: instructions of the longest list that the policy can make;
   listed: their operands; written: those that they write; values: that forward makes. */
typedef struct gcpi_sizes { size_t tasks, forward, items, operands, list, listed, written, values; } gcpi_sizes;

static size_t gcpi_arena_budget(const gcpi_sizes *n)
{
    size_t stages = GCPI_MIN(n->forward + 1, (size_t)GCPI_MOST_STAGES), rows = stages * (stages + 1) / 2,
           sets = n->forward <= GCPI_EXACT_VALUES ? (size_t)1 << GCPI_MIN(n->values, (size_t)GCPI_EXACT_VALUES) : 0;
    size_t chain = 2 * rows * ((GCPI_MOST_GRAINS + 1) * sizeof(float) + 2 * sizeof(int)) +
                   stages * (stages + 16) * sizeof(size_t) + (n->items + n->tasks) * 4 * sizeof(int);
    size_t exact = sets * sizeof(size_t) + sets * (n->tasks + 1) * (sizeof(double) + 4 * sizeof(int)) +
                   (n->tasks + n->items) * 4 * sizeof(int);
    size_t cut = (n->items + n->forward) * 6 * sizeof(size_t) +
                 (n->operands + n->items + n->forward) * 8 * (2 * sizeof(int) + sizeof(double));
    return GCPI_MAX(GCPI_MAX(chain, exact), cut) + 7 * n->list * sizeof(int) +
           n->items * (sizeof(double) + 1 + (GCPI_STATES + 1) * (1 + sizeof(uint16_t))) + 8192;
}

static size_t gcpi_arena_of(const gcp_tape *t, const gcp_plan_opts *o, const gcpi_sizes *n)
{
    size_t problem = n->items * (sizeof(gcpi_item) + 1) + n->tasks * sizeof(gcpi_task) +
                     n->operands * (sizeof(gcpi_operand) + sizeof(int)) + n->items * sizeof(int) +
                     n->forward * (4 * sizeof(gcpi_copied) + sizeof(int)) +
                     2 * (size_t)(t->parameter_count + 1) * sizeof(double);
    size_t lives = n->listed * (sizeof(int) + sizeof(gcpi_placed)) +
                   n->written * (sizeof(gcpi_value) + sizeof(gcpi_buffer) + 2 * sizeof(gcpi_spot) + 6 * sizeof(int) +
                                 2 * sizeof(size_t) + sizeof(gcpi_plan_buffer) + sizeof(gcpi_rectangle)) +
                   n->items * 2 * sizeof(int);
    size_t lists = n->list * (5 * sizeof(gcpi_instruction) + 6 * sizeof(size_t) + 13 * sizeof(int) + sizeof(double));
    size_t choice = 2 * (n->items + (n->forward + 4) * 5 * sizeof(int) + 2 * (size_t)t->segment_count * sizeof(int));
    size_t model = n->items * (6 * sizeof(int) + sizeof(size_t) + 2) +
                   n->tasks * (6 * sizeof(int) + 3 * sizeof(size_t) + 2) + 2 * n->operands * sizeof(int);
    size_t search = (n->items * 4 + n->forward * 4 + n->operands) * 2 * sizeof(size_t) +
                    (10 * n->forward + 4 * n->items + 5 * (size_t)t->segment_count) * sizeof(int);
    size_t far =
        o->far ? n->list * (4 * sizeof(int) + 2 * sizeof(size_t) + sizeof(double)) + n->items * 7 * sizeof(int) : 0;
    size_t layout =
        gcpi_packing_bytes(n->written, n->list) + n->list + 2 * (size_t)GCPI_FIT_LIVES * sizeof(int) +
        2 * gcpi_heights_bytes(n->list) +
        (n->written < GCPI_LAYOUT_MANY ? 0 : gcpi_nearby_bytes(n->written, n->list));
    return sizeof(gcpi_plan) + problem + lives + lists + choice + model + search + far + layout +
           (o->policy == GCP_POLICY_BUDGET ? gcpi_arena_budget(n) : 0) + 128 * 64;
}

GCPI_DEF size_t gcp_plan_arena_at(gcp_tensor loss, gcp_plan_opts o)
{
    const gcp_tape *t = loss.tape;
    gcpi_sizes n;
    if (!t || !t->ops || !loss.id) return 0;
    size_t tensors = (size_t)t->tensor_count, edges = (size_t)t->edge_count, parameters = (size_t)t->parameter_count,
           widest = 0, lines = 1;
    int depth = 0;
    for (int s = 0; s < t->segment_count; s++) depth = GCPI_MAX(depth, t->segments[s].depth);
    n.forward = (size_t)t->op_count; n.items = 2 * tensors;
    n.tasks = 2 * n.forward + 3 * parameters + 2; n.operands = 3 * edges + 4 * tensors + 4 * parameters + 1;
    n.list = (size_t)gcpi_order_capacity(&o, (ptrdiff_t)n.tasks, (ptrdiff_t)n.forward, depth);
    const size_t again = (n.list - n.tasks) / n.forward;
    n.listed = n.operands + again * (edges + 2 * tensors);
    n.written = (2 + again) * tensors + n.tasks; n.values = tensors - parameters;
    if (o.far) { n.tasks += 3 * tensors; n.operands += 3 * tensors; n.written += 3 * tensors; }
    if (gcpi_moves(&o)) { n.tasks += 2 * tensors; n.operands += 4 * tensors; n.written += 2 * tensors; }
    for (int i = 0; i < t->op_count; i++) widest = GCPI_MAX(widest, 2 * (size_t)(t->ops[i].inputs + t->ops[i].outputs));
    for (const char *c = o.list; c && *c; c++) lines += *c == '\n';
    if (o.list) {
        n.list = lines;
        n.listed = n.written = lines * (widest + parameters);
        n.tasks += 3 * tensors;
        n.operands += 3 * tensors;
    }
    lines = 1;
    for (const char *c = o.costs; c && *c; c++) lines += *c == '\n';
    return gcpi_arena_of(t, &o, &n) + lines * (sizeof(uint64_t) + sizeof(double));
}

/* An upper bound from the text's lines and words alone, without parsing it. */
GCPI_DEF size_t gcp_graph_arena_at(const gcp_tape *t, const char *text, gcp_plan_opts o)
{
    gcpi_sizes n;
    if (!text) text = "";
    size_t lines = 2, words = 2, length = strlen(text), line = 0, widest = 2;
    n.forward = n.values = 0;
    for (size_t i = 0; i < length; i++) {
        int begins = text[i] > ' ' && (i == 0 || text[i - 1] <= ' ');
        line = text[i] == '\n' ? 0 : line + (size_t)begins;
        widest = GCPI_MAX(widest, line);
        lines += text[i] == '\n'; words += (size_t)begins;
        n.forward += begins && line == 1 && (text[i] == 'f' || text[i] == 'o');
        n.values += begins && line == 1 && (text[i] == 'f' || text[i] == 'o' || text[i] == 't');
    }
    n.forward = GCPI_MAX(n.forward, 1); n.tasks = n.items = lines; n.operands = words;
    n.list = (size_t)gcpi_order_capacity(&o, (ptrdiff_t)lines, (ptrdiff_t)lines, 2);
    n.listed = words * (1 + n.list / lines);
    if (o.far || o.list) { n.tasks += 3 * lines; n.operands += 3 * lines; }
    if (gcpi_moves(&o)) { n.tasks += lines; n.operands += 2 * lines; }
    size_t given = o.list != NULL;
    for (const char *c = o.list; c && *c; c++) given += *c == '\n';
    n.list += given; n.listed += given * widest;
    n.written = n.listed;
    return gcpi_arena_of(t, &o, &n) + length + lines * (2 * sizeof(char *) + 8 * sizeof(int)) + 1;
}

/* ==== src/plan/trials.h ==== */

/* Which views are copies. Whole choices come first: none, all values, all gradients, all. Then a budget's search
   flips single views: near keep-all, as long as keep-all takes fewer bytes; of the best choice, as long as a quick
   plan is faster with the flip. Before that the copies of small ops are taken back, where that is faster: near the
   least budget often only the largest concat must be a copy. */

/* A choice of views, per op, and what planning with it gave. */
typedef struct gcpi_trial { gcpi_copied *copied; gcpi_outcome out; } gcpi_trial;

/* A view that may be flipped; in a large network, all of one op. */
typedef struct gcpi_flip { int op, gradient; uint64_t bits; double bytes; } gcpi_flip;

/* What the choices of one plan share. tries: how many flips the effort allows. */
enum { GCPI_FLIPS = 25 };
typedef struct gcpi_trials {
    gcpi_flip flips[GCPI_FLIPS]; int count, tries;
    gcpi_plan *core;
    gcpi_request asked;               /* what all of them are for */
    gcp_arena *a;
    int open;                         /* gcpi_views_open */
    gcpi_trial best, trial, quick;    /* quick: what flips have reached */
    double bound;                     /* of all choices */
    int no_least;                     /* of the trials to come: see gcpi_request */
    int broken;                       /* an error that no other choice mends is on the tape */
} gcpi_trials;

/* Whether outcome b is worth more than a: a faster list within the budget, else one of fewer bytes. A policy without a
   budget takes copies only where they save 2 % of the slab. */
static int gcpi_outcome_better(const gcpi_outcome *a, const gcpi_outcome *b, gcp_policy policy)
{
    if (a->made != b->made) return b->made;
    if (!b->made) return b->lowest.slab && b->lowest.slab < a->lowest.slab;
    if (policy == GCP_POLICY_BUDGET) return b->seconds < a->seconds;
    return (double)b->slab < 0.98 * (double)a->slab;
}

static int gcpi_views_use(gcpi_plan *core, const gcpi_copied *copied, gcp_arena *a)
{
    memcpy(core->p.copied, copied, (size_t)core->p.tape->op_count * sizeof *copied);
    gcpi_views_place(&core->p);
    return !core->opts.costs || gcpi_costs_apply(&core->p, &core->opts, a);
}

/* Plans with trial->copied. The list stays at the front of the arena. */
static void gcpi_trial_run(gcpi_trials *r, gcpi_trial *trial, const gcpi_request *request)
{
    gcpi_lives lives;
    size_t *live;
    ptrdiff_t scratch = r->a->scratch;
    memset(&trial->out, 0, sizeof trial->out);
    r->broken |= !gcpi_views_use(r->core, trial->copied, r->a);
    if (!r->broken) trial->out = gcpi_plan_by_views(r->core, request, &lives, &live, r->a);
    r->a->scratch = scratch;
}

static void gcpi_trial_copy(const gcpi_trials *r, gcpi_trial *to, const gcpi_trial *from)      /* its choice */
{
    memcpy(to->copied, from->copied, (size_t)r->core->p.tape->op_count * sizeof *to->copied);
}

/* A trial takes the place of the best one, if it is better. What is compared with stays keep-all by default views. */
static int gcpi_trial_take(const gcpi_trials *r, gcpi_trial *best, const gcpi_trial *trial)
{
    const size_t keep_all = best->out.keep_all;
    if (!gcpi_outcome_better(&best->out, &trial->out, r->asked.policy)) return 0;
    best->out = trial->out;
    best->out.keep_all = keep_all;
    gcpi_trial_copy(r, best, trial);
    return 1;
}

/* Whether another choice of views can gain nothing: keep-all was asked for or is nearly reached, or nothing trains. */
static int gcpi_trial_enough(const gcpi_trials *r)
{
    const gcpi_outcome *best = &r->best.out;
    if (r->asked.policy == GCP_POLICY_KEEP_ALL || r->asked.watch->stopped || r->broken) return 1;
    if (r->asked.policy != GCP_POLICY_BUDGET) return !r->core->p.training;
    return best->made && best->seconds <= r->core->keep_all_seconds * (1 + 3e-4);
}

/* A bound of the seconds of all lists, whatever their views. */
static double gcpi_views_bound(const gcpi_request *asked, gcp_arena *a)
{
    return asked->policy == GCP_POLICY_BUDGET && asked->p->training ? gcpi_relaxed_bound(asked, a) : 0;
}

/* The request for a trial that must beat `best`, in this part of the call. The last tenth is for the least budget,
   which is rarely looked for. */
static gcpi_request gcpi_trial_request(const gcpi_trials *r, const gcpi_outcome *best, double from, double to)
{
    const double begin = r->no_least || !gcpi_slab_limit(r->core) ? 0 : 0.9, share = begin > 0 ? 0.1 : 0.9;
    gcpi_request request = r->asked;
    request.known = best && best->made ? best->seconds : 0;
    request.no_least = r->no_least;
    request.portion.from = begin + share * from;
    request.portion.to = begin + share * to;
    return request;
}

/* Plans with each whole choice that is open, the default first, in the first `share` of the call. For the least budget
   copies of gradients alone are left out, which is seldom the best choice. */
static void gcpi_trials_whole(gcpi_trials *r, gcp_effort effort, double share)
{
    enum { GRADIENTS = 2 };
    const int least = !r->no_least && r->open == 3, choices = least ? 3 : r->open == 3 ? 4 : 2;
    int done = 0;
    for (int copied = 0; copied < 4 && (!copied || !gcpi_trial_enough(r)); copied++) {
        if (copied & ~r->open || (least && copied == GRADIENTS)) continue;
        gcpi_trial *trial = copied ? &r->trial : &r->best;
        r->no_least |= copied && r->best.out.made;
        gcpi_request request = gcpi_trial_request(r, copied ? &r->best.out : NULL, share * done / choices,
                                                  share * (done + 1) / choices);
        request.effort = effort;
        done++;
        gcpi_copied_set(trial->copied, r->core->p.tape->op_count, copied);
        gcpi_trial_run(r, trial, &request);
        if (copied) gcpi_trial_take(r, &r->best, trial);
    }
}

static void gcpi_flip_add(gcpi_flip *flips, int *count, int most, gcpi_flip flip)
{
    int at = *count;
    if (!flip.bits || (at == most && flips[most - 1].bytes >= flip.bytes)) return;
    if (at == most) at--;
    else ++*count;
    for (; at > 0 && flips[at - 1].bytes < flip.bytes; at--) flips[at] = flips[at - 1];
    flips[at] = flip;
}

/* The views of an op that may lie in place or be copies: of its values, or of its gradients. */
static uint64_t gcpi_flip_bits(const gcpi_problem *p, const gcpi_op *op, int gradient)
{
    int view = gcpi_facts_of(op).view;
    uint64_t bits = 0;
    if (view != GCPI_VIEW_JOINED && (view != GCPI_VIEW_PART || gradient)) return 0;
    for (int i = 0; i < op->inputs; i++) {
        int x = gcpi_edge(p->tape, op, i);
        const gcpi_item *item = &p->items[gradient ? p->tensors + x : x];
        int open = view == GCPI_VIEW_PART ? 1
                   : gradient            ? item->active && p->tape->tensors[x].kind != GCPI_PARAMETER
                                         : item->kind == GCPI_FORWARD_ITEM && !(item->dense & GCPI_DENSE_ANYWAY);
        bits |= (uint64_t)open << i;
    }
    return bits;
}

/* single: one flip for each input, else one for all of them */
static void gcpi_flips_of(const gcpi_problem *p, int o, int single, gcpi_flip *flips, int *count, int most)
{
    const gcpi_op *op = &p->tape->ops[o];
    for (int gradient = 0; gradient < 2; gradient++) {
        uint64_t bits = gcpi_flip_bits(p, op, gradient);
        gcpi_flip flip = { o, gradient, bits, (double)gcpi_bytes_alone(p, op->out) };
        if (!single) gcpi_flip_add(flips, count, most, flip);
        for (int i = 0; single && i < op->inputs; i++) {
            flip.bits = bits & (uint64_t)1 << i;
            if (gcpi_facts_of(op).view == GCPI_VIEW_JOINED)
                flip.bytes = (double)gcpi_bytes_alone(p, gcpi_edge(p->tape, op, i));
            gcpi_flip_add(flips, count, most, flip);
        }
    }
}

/* The flips of the most bytes, largest first: of single inputs where all are few, else of ops. Returns how many. */
static int gcpi_flips_list(const gcpi_problem *p, gcpi_flip *flips, int most)
{
    int count = most;
    for (int single = 1; single >= 0 && count == most; single--) {
        count = 0;
        for (int k = 0; k < p->forward; k++)
            if (p->tasks[k].ops == 1) gcpi_flips_of(p, p->tasks[k].op, single, flips, &count, most);
    }
    return count;
}

static void gcpi_flip_turn(gcpi_trial *trial, const gcpi_flip *flip)
{
    gcpi_copied *c = &trial->copied[flip->op];
    uint64_t *bits = flip->gradient ? &c->gradients : &c->values;
    *bits = *bits & flip->bits ? *bits & ~flip->bits : *bits | flip->bits;
}

/* Whether flips may gain anything: there is a list, and it is above what no choice beats. */
static int gcpi_flips_wanted(const gcpi_trials *r, const gcpi_outcome *best)
{
    return r->asked.policy == GCP_POLICY_BUDGET && r->core->p.training && !r->asked.watch->stopped && !r->broken &&
           (!best->made || best->seconds > r->bound + 0.002 * r->core->keep_all_seconds);
}

/* Leaves copies only to ops of this share of the largest one's bytes, or more. 0: that changes nothing. */
static int gcpi_trial_thin(const gcpi_problem *p, gcpi_trial *trial, double share)
{
    size_t most = 0;
    int changed = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < p->forward; k++) {
            const gcpi_op *op = &p->tape->ops[p->tasks[k].op];
            gcpi_copied *c = &trial->copied[p->tasks[k].op];
            if (p->tasks[k].ops > 1 || !(gcpi_flip_bits(p, op, 0) | gcpi_flip_bits(p, op, 1))) continue;
            size_t bytes = gcpi_bytes_alone(p, op->out);
            if (!pass) most = GCPI_MAX(most, bytes);
            else if ((double)bytes < share * (double)most && (c->values | c->gradients)) {
                c->values = c->gradients = 0;
                changed = 1;
            }
        }
    return changed;
}

/* Plans quickly with the trial's choice. 1: it takes less than this share of the time that flips have reached, and is
   what they have reached now. */
static int gcpi_flips_try(gcpi_trials *r, ptrdiff_t used, double share, double from, double to)
{
    const gcpi_outcome *before = &r->quick.out, *now = &r->trial.out;
    gcpi_request request = gcpi_trial_request(r, before, from, to);
    request.effort = GCP_EFFORT_QUICK; request.rough = 1;
    r->a->used = used;
    gcpi_trial_run(r, &r->trial, &request);
    if (before->made && now->made && now->seconds >= share * before->seconds) return 0;
    return gcpi_trial_take(r, &r->quick, &r->trial);
}

/* Takes the copies of small ops back, more and more of them, where that is clearly faster. 1: it is once. */
static int gcpi_flips_thin(gcpi_trials *r, ptrdiff_t used)
{
    int better = 0;
    for (double rest = 0.5; rest > 0.1 && gcpi_flips_wanted(r, &r->quick.out); rest /= 2) {
        gcpi_trial_copy(r, &r->trial, &r->quick);
        better |= gcpi_trial_thin(&r->core->p, &r->trial, 1 - rest) && gcpi_flips_try(r, used, 0.98, 0.7, 0.7);
    }
    return better;
}

/* From the best choice on: turns the flips in turn, and keeps those with which a quick plan is better. 1: any is. */
static int gcpi_flips_quick(gcpi_trials *r)
{
    const ptrdiff_t used = r->a->used;
    gcpi_request request = gcpi_trial_request(r, NULL, 0.7, 0.7);
    request.effort = GCP_EFFORT_QUICK; request.rough = 1;
    gcpi_trial_copy(r, &r->quick, &r->best);
    gcpi_trial_run(r, &r->quick, &request);
    int better = gcpi_flips_thin(r, used);
    for (int n = 0, idle = 0; idle < r->count && n < r->tries && gcpi_flips_wanted(r, &r->quick.out); n++) {
        gcpi_trial_copy(r, &r->trial, &r->quick);
        gcpi_flip_turn(&r->trial, &r->flips[n % r->count]);
        int taken = gcpi_flips_try(r, used, 1, 0.7 + 0.2 * n / r->tries, 0.7 + 0.2 * (n + 1) / r->tries);
        better |= taken;
        idle = taken ? 0 : idle + 1;
    }
    r->a->used = used;
    return better;
}

/* Where keep-all takes hardly more than a slab of these bytes: turns the flips in turn, from the default on, and keeps
   those with which keep-all takes less, until it fits. r->quick has the choice. 1: any is kept. */
static int gcpi_flips_keep_all(gcpi_trials *r, size_t slab)
{
    const ptrdiff_t used = r->a->used;
    const size_t limit = gcpi_slab_limit(r->core), all = r->best.out.keep_all;
    gcpi_request request = r->asked;
    int better = 0;
    if (!all || slab < all / 5 * 4 || r->asked.watch->stopped) return 0;
    request.policy = GCP_POLICY_KEEP_ALL; request.limit = 0;
    gcpi_copied_set(r->quick.copied, r->core->p.tape->op_count, 0);
    gcpi_trial_run(r, &r->quick, &request);
    for (int n = 0, idle = 0; idle < r->count && n < 4 * r->tries && r->quick.out.made && !r->broken; n++) {
        if (r->quick.out.slab <= limit) break;
        gcpi_trial_copy(r, &r->trial, &r->quick);
        gcpi_flip_turn(&r->trial, &r->flips[n % r->count]);
        r->a->used = used;
        gcpi_trial_run(r, &r->trial, &request);
        int taken = r->trial.out.made && r->trial.out.slab < r->quick.out.slab;
        if (taken) { gcpi_trial_copy(r, &r->quick, &r->trial); r->quick.out = r->trial.out; }
        better |= taken;
        idle = taken ? 0 : idle + 1;
    }
    r->a->used = used;
    return better;
}

/* Plans in full with the choice of r->quick, in this part of the call. */
static void gcpi_trials_full(gcpi_trials *r, double from, double to)
{
    const gcpi_request request = gcpi_trial_request(r, &r->best.out, from, to);
    gcpi_trial_copy(r, &r->trial, &r->quick);
    gcpi_trial_run(r, &r->trial, &request);
    gcpi_trial_take(r, &r->best, &r->trial);
}

/* Mixtures: those that lower keep-all's bytes, then from the best choice on. What quick plans say is better is planned
   in full. */
static void gcpi_trials_flip(gcpi_trials *r)
{
    if (!r->tries || !gcpi_flips_wanted(r, &r->best.out)) return;
    if (gcpi_flips_keep_all(r, gcpi_slab_limit(r->core))) gcpi_trials_full(r, 0.6, 0.7);
    if (!gcpi_flips_wanted(r, &r->best.out)) return;
    if (gcpi_flips_quick(r) && !r->asked.watch->stopped) gcpi_trials_full(r, 0.9, 1);
}

/* Looks for the least budget: with little effort for each whole choice, then in full for the best of them. */
static void gcpi_trials_least(gcpi_trials *r)
{
    r->no_least = 0;
    gcpi_trials_whole(r, GCP_EFFORT_QUICK, 0.3);
    if (r->asked.effort == GCP_EFFORT_QUICK || r->asked.watch->stopped || r->broken) return;
    r->no_least = r->best.out.made;
    gcpi_trial_copy(r, &r->quick, &r->best);
    gcpi_trials_full(r, 0.3, 0.6);
    const size_t least = r->best.out.lowest.slab;
    if (!r->best.out.made && least && gcpi_flips_keep_all(r, least)) gcpi_trials_full(r, 0.6, 1);
}

static int gcpi_trials_make(gcpi_trials *r, gcpi_plan *core, gcpi_watch *watch, int open, gcp_arena *a)
{
    memset(r, 0, sizeof *r);
    r->core = core; r->asked = gcpi_request_of(core, watch); r->a = a; r->open = open;
    gcpi_trial *const all[] = { &r->best, &r->trial, &r->quick };
    for (int i = 0; i < 3; i++)
        if ((all[i]->copied = GCPI_SCRATCH(a, gcpi_copied, core->p.tape->op_count)) == NULL) return 0;
    r->bound = gcpi_views_bound(&r->asked, a);
    static const int share[] = { 4, 1, 16 }, some[] = { 8, 0, 32 };      /* per effort */
    const int forward = core->p.forward, small = forward <= 16;
    r->count = gcpi_flips_list(&core->p, r->flips, GCPI_FLIPS);
    r->tries = share[r->asked.effort] * (small ? 20 : 120 / (forward + 10)) + some[r->asked.effort];
    return 1;
}

/* The best outcome, laid out again. */
static gcpi_outcome gcpi_trials_end(gcpi_trials *r, gcpi_lives *l, size_t **live)
{
    gcpi_outcome out = r->best.out;
    if (!out.made && !out.code && r->asked.watch->stopped) gcpi_stop_fail(r->core, &out);   /* in a later choice */
    if (!out.made || r->broken) { out.made = 0; return out; }
    /* what other trials took after the list is free again */
    r->a->used = (unsigned char *)(out.list.at + out.list.capacity) - r->a->base;
    if (!gcpi_views_use(r->core, r->best.copied, r->a)) { out.made = 0; return out; }
    out.bound = r->bound;
    out.slab = gcpi_arrange(&r->core->p, &out.list, l, live, out.fit, r->a);
    out.made = out.slab != 0;
    return out;
}

/* The best outcome of all choices of views. The least budget is looked for only where no choice has a list. l and live
   stay in scratch. */
static gcpi_outcome gcpi_plan_search(gcpi_plan *core, gcpi_watch *watch, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    const int open = gcpi_views_open(&core->p), budget = core->opts.policy == GCP_POLICY_BUDGET;
    gcpi_trials r;
    if (!open) {
        const gcpi_request asked = gcpi_request_of(core, watch);
        return gcpi_plan_by_views(core, &asked, l, live, a);
    }
    if (!gcpi_trials_make(&r, core, watch, open, a)) return r.best.out;
    r.no_least = 1;
    /* in a slab of no bytes nothing fits: gcp_least_budget asks for the least alone */
    if (!budget || gcpi_slab_limit(core)) gcpi_trials_whole(&r, core->opts.effort, 0.6);
    if (!r.best.out.made && budget && !watch->stopped) gcpi_trials_least(&r);
    if (r.best.out.made) gcpi_trials_flip(&r);
    return gcpi_trials_end(&r, l, live);
}

/* Takes an outcome over into the plan. 0: it is an error, which goes on the tape. */
static int gcpi_plan_take(gcp_plan *plan, const gcpi_outcome *out)
{
    gcpi_plan *core = plan->core;
    plan->least_bytes = out->lowest.slab ? core->state_bytes + out->lowest.slab : 0;
    plan->checkpoint_bytes = out->checkpoints;
    if (out->coarse) plan->coarse = 1;
    core->list = out->list; core->fit = out->fit; core->method = out->method;
    core->bound_seconds = out->bound; core->slab_bytes = out->slab; core->keep_all = out->keep_all;
    core->segments = out->segments;
    if (!out->made && out->code)
        gcpi_fail(plan->tape, out->code, core->opts.at, plan->tape->planning, "%s", out->message);
    return out->made;
}

/* Plans under the eyes of .progress, which hears of the end, too. */
static int gcpi_plan_watched(gcp_plan *plan, gcpi_lives *l, size_t **live, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    gcpi_watch watch;
    memset(&watch, 0, sizeof watch);
    watch.ask = core->opts.progress; watch.context = core->opts.progress_context;
    const gcpi_outcome out = gcpi_plan_search(core, &watch, l, live, a);
    const int made = gcpi_plan_take(plan, &out);
    if (watch.stopped) plan->coarse = 2;
    if (!watch.ask || watch.stopped) return made;
    watch.now.share = 1;
    if (made) { watch.now.seconds = out.seconds; watch.now.keep_all_seconds = core->keep_all_seconds; }
    watch.ask(watch.context, &watch.now);
    return made;
}

/* ==== src/plan/make.h ==== */

/* A plan's figures, its making and its end. */

/* From options to a verified, placed plan. */
static int gcpi_plan_settle(gcp_plan *plan, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    ptrdiff_t scratch = a->scratch;
    gcpi_lives lives;
    size_t *live;
    char message[200];
    if (core->opts.list ? !gcpi_plan_list(core, a) || !gcpi_plan_layout(core, &lives, &live, a)
                      : !gcpi_plan_watched(plan, &lives, &live, a))
        return 0;
    core->placed = GCPI_NEW(a, gcpi_placed, gcpi_operand_total(&core->p, &core->list) + 1);
    core->live = GCPI_NEW(a, size_t, core->list.count + 1);
    core->where = GCPI_NEW(a, ptrdiff_t, core->p.item_count);
    core->seconds = GCPI_NEW(a, double, core->list.count);
    core->buffers = GCPI_NEW(a, gcpi_plan_buffer, lives.buffer_count + 1);
    if (!core->placed || !core->live || !core->where || !core->seconds || !core->buffers) return 0;
    memcpy(core->live, live, (size_t)core->list.count * sizeof *live);
    /* lives.peak rounds every buffer up to align; the slab ends at the last buffer's last byte */
    core->live_peak = GCPI_MIN(lives.peak, core->slab_bytes);
    core->peak_at = lives.peak_at;
    gcpi_plan_place(core, &lives);
    gcpi_plan_buffers(core, &lives);
    a->scratch = scratch;
    if (!gcpi_verify(&core->p, &core->list, core->placed, core->slab_bytes, message, sizeof message, a)) {
        if (*message) gcpi_fail(core->p.tape, GCP_E_LIST, core->opts.at, core->p.tape->planning, "%s", message);
        return 0;
    }
    return !core->opts.check || gcpi_plan_deaths(core, a);
}

/* The figures that change when the state grows. */
static void gcpi_plan_sizes(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    if (!gcpi_is_graph(&core->p))
        core->state_bytes = gcpi_round(gcpi_state_with(plan->tape, &plan->core, 1), core->p.target.align);
    plan->state_bytes = core->state_bytes;
    plan->slab_bytes = core->slab_bytes;
    plan->bytes = plan->state_bytes + plan->slab_bytes;
    plan->room = plan->bytes + core->p.target.align - 1;
    plan->keep_all_bytes = core->keep_all ? plan->state_bytes + core->keep_all : 0;
    plan->split.optimizer = plan->state_bytes - plan->split.weights - plan->split.statistics;
}

static void gcpi_plan_split(gcp_plan *plan)
{
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    const gcp_tape *t = p->tape;
    gcp_split *s = &plan->split;
    size_t sum = 0;
    for (int i = 0; i < t->parameter_count && !gcpi_is_graph(p); i++)
        *(t->parameters[i].kind == GCPI_PARAMETER ? &s->weights : &s->statistics) += gcpi_parameter_bytes(t, i);
    if (gcpi_is_graph(p)) s->weights = core->state_bytes;
    else s->statistics += gcpi_counters_bytes(t);
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        const gcpi_item *item = &p->items[x->item];
        if (x->first > core->peak_at || x->last < core->peak_at) continue;
        sum += x->bytes;
        if (item->kind == GCPI_INPUT_ITEM) s->inputs += x->bytes;
        else if (item->kind == GCPI_GRADIENT_ITEM)
            *(!gcpi_is_graph(p) && t->tensors[item->tensor].kind == GCPI_PARAMETER ? &s->weight_gradients
                                                                           : &s->activation_gradients) += x->bytes;
        else *(x->again ? &s->recomputed : &s->kept) += x->bytes;
    }
    s->workspace = p->tasks[core->list.at[core->peak_at].task].workspace + p->numbers;
    s->gaps = core->slab_bytes - sum - s->workspace;
}

static void gcpi_plan_figures(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    plan->live_peak = core->live_peak;
    plan->peak_instruction = core->peak_at;
    plan->instructions = (int)core->list.count;
    plan->units = p->units;
    plan->reruns = core->list.reruns;
    plan->rerun_flops = core->list.rerun_flops;
    plan->seconds = GCPI_MAX(core->list.seconds, core->timeline);
    plan->stall_seconds = plan->seconds - core->list.seconds;
    plan->segments = core->segments;
    plan->far_bytes = core->far_bytes;
    plan->costed = p->costed;
    /* the bound is above the plan's own time by less than 1e-9 of it */
    const int rounding = core->bound_seconds > plan->seconds && core->bound_seconds < plan->seconds * (1 + 1e-9);
    plan->bound_seconds = rounding ? plan->seconds : core->bound_seconds;
    plan->method = core->method;
    plan->keep_all_seconds = core->keep_all_seconds;
    for (int i = 0; i < p->forward; i++) plan->forward_flops += p->tasks[i].flops;
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const gcpi_task *t = &p->tasks[core->list.at[i].task];
        if (gcpi_copies(t)) plan->far_traffic += p->items[t->item].bytes;
        if (t->kind == GCPI_TASK_UPDATE)
            plan->far_traffic += 2 * (size_t)p->far_slots * p->items[p->operands[t->operands].item].bytes;
        if (t->kind == GCPI_TASK_MOVE) plan->moved_bytes += p->items[t->item].bytes;
        if (core->list.at[i].letter == 'F') core->forward_end = (int)i + 1;
    }
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        if (x->first < core->forward_end && x->last >= core->forward_end && p->items[x->item].kind == GCPI_FORWARD_ITEM)
            plan->after_forward += x->bytes;
    }
    gcpi_plan_split(plan);
    gcpi_plan_sizes(plan);
}

static int gcpi_plan_within(gcp_plan *plan)
{
    const gcpi_plan *core = plan->core;
    const gcpi_task *task = &core->p.tasks[core->list.at[core->peak_at].task];
    char name[128];
    if (!core->opts.budget || plan->bytes <= core->opts.budget) return 1;
    const int searched = core->opts.policy == GCP_POLICY_BUDGET || core->opts.list || core->opts.inference;
    gcp_at at = gcpi_task_at(&core->p, (int)(task - core->p.tasks), core->opts.at);
    gcpi_fail(core->p.tape, GCP_E_BUDGET, core->opts.at, core->p.tape->planning,
              "the plan takes %zu bytes, .budget allows %zu; the peak is at %c %s (%s:%d)%s", plan->bytes,
              core->opts.budget, core->list.at[core->peak_at].letter, gcpi_task_name(&core->p, task, name, sizeof name),
              gcpi_basename(at.file), at.line, searched ? "" : "; GCP_POLICY_BUDGET looks for a plan that fits");
    return 0;
}

/* Gives every tensor that the list copies away a place in far memory; no two share bytes. */
static int gcpi_plan_far(gcpi_plan *core, gcp_arena *a)
{
    if (!core->p.far_count) return 1;
    core->far_at = GCPI_NEW(a, ptrdiff_t, core->p.tensors);
    for (int i = 0; core->far_at && i < core->p.tensors; i++) core->far_at[i] = -1;
    for (ptrdiff_t i = 0; core->far_at && i < core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        if (t->kind != GCPI_TASK_OFFLOAD || core->far_at[t->item] >= 0) continue;
        core->far_at[t->item] = (ptrdiff_t)core->far_bytes;
        core->far_bytes += gcpi_round(core->p.items[t->item].bytes, core->p.target.align);
    }
    if (core->far_bytes) core->timeline = gcpi_timeline(&core->p, &core->list, core->placed, NULL, NULL);
    return core->far_at != NULL;
}

/* Counts the inputs that the list reads: a step is refused until all of them are written. */
static int gcpi_plan_inputs(gcpi_plan *core, gcp_arena *a)
{
    core->bound.given = GCPI_NEW(a, int, core->p.tensors + 1);
    for (int i = 0; i < core->p.tensors; i++)
        core->inputs += core->p.items[i].kind == GCPI_INPUT_ITEM && core->where[i] >= 0;
    core->bound.unwritten = core->inputs;
    return core->bound.given != NULL && gcpi_plan_samples(core, a);
}

static int gcpi_plan_finish(gcp_plan *plan, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    for (int i = 0; i < core->p.task_count; i++) core->keep_all_seconds += core->p.tasks[i].seconds;
    if (!gcpi_plan_settle(plan, a) || !gcpi_plan_far(core, a) || !gcpi_plan_inputs(core, a)) return 0;
    gcpi_plan_figures(plan);
    return gcpi_plan_within(plan);
}

static int gcpi_plan_steps(gcp_plan *plan, int root, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    gcp_target target = gcpi_target_of(core->opts.target);
    core->p.tape = t;
    core->slots = gcpi_slots_of(&core->opts);
    if (gcpi_trouble(t, &target, core->opts.at, t->planning)) return 0;
    if (!gcpi_problem_make(&core->p, root, &core->opts, &target, a) || !gcpi_customs_run_on(&core->p) ||
        !gcpi_norms_have_values(&core->p) || !gcpi_plan_addressable(core))
        return 0;
    if (core->p.training && !core->p.items[t->tensor_count + root].active)
        return gcpi_plan_bad(t, &core->opts,
                             "the loss depends on no parameter that trains and on no input with gcp_want_grad");
    if (!gcpi_policy_fits(t, &core->opts, core->p.units)) return 0;
    core->state_bytes = gcpi_round(gcpi_state_with(t, &plan->core, 1), core->p.target.align);
    core->unfused = core->opts.fuse_update == GCPI_FUSED_ITSELF ? gcpi_unfused_slab(core, root, &target, a) : SIZE_MAX;
    core->slot_bytes = core->state_bytes - gcp_state_bytes(t, GCP_OPTIMIZER_NONE);
    return gcpi_plan_finish(plan, a);
}

static int gcpi_graph_steps(gcp_plan *plan, const char *text, gcp_arena *a)
{
    gcpi_plan *core = plan->core;
    char message[200];
    gcp_target target = gcpi_target_of(core->opts.target);
    core->p.tape = plan->tape;
    if (!gcpi_graph_parse(&core->p, text, &target, &core->opts, message, sizeof message, a)) {
        if (message[0]) gcpi_fail(plan->tape, GCP_E_GRAPH, core->opts.at, plan->tape->planning, "%s", message);
        return 0;
    }
    core->state_bytes = gcpi_round(core->p.state, core->p.target.align);
    core->unfused = SIZE_MAX;
    return gcpi_policy_fits(plan->tape, &core->opts, core->p.units) && gcpi_plan_finish(plan, a);
}

/* Takes the plan's struct from the arena. Its lease begins here and ends where gcpi_plan_end says. */
static int gcpi_plan_begin(gcp_plan *plan, const gcp_plan_opts *o)
{
    gcp_arena *a = o->arena ? o->arena : plan->tape->arena;
    ptrdiff_t first = a->used;
    plan->generation = plan->tape->generation;
    plan->core = GCPI_NEW(a, gcpi_plan, 1);
    if (!plan->core) return 0;
    plan->core->opts = *o;
    plan->core->arena = a; plan->core->lease.first = first;
    plan->core->number = ++plan->tape->plans;
    return 1;
}

/* Forgets bindings of plans whose bytes this plan now has: their arena was used again. */
static void gcpi_binding_forget(gcp_tape *t, const gcpi_plan *core)
{
    uintptr_t first = (uintptr_t)core->arena->base + (uintptr_t)core->lease.first,
              last = (uintptr_t)core->arena->base + (uintptr_t)core->lease.last;
    for (int i = 0; i < GCP_MAX_BOUND; i++)
        if ((uintptr_t)t->bindings[i].own >= first && (uintptr_t)t->bindings[i].own < last)
            memset(&t->bindings[i], 0, sizeof t->bindings[i]);
}

/* Bytes that freed plans still hold in the tape's arena, because a later plan is not freed. */
static size_t gcpi_freed_below(const gcp_tape *t)
{
    size_t bytes = 0;
    for (const gcpi_lease *l = t->leases; l; l = l->before) if (l->freed) bytes += (size_t)(l->last - l->first);
    return bytes;
}

/* Ends planning. If the plan was not made, its bytes go back to the arena, and if there is no error yet, the error is
   that the arena is too small. */
static void gcpi_plan_end(gcp_plan *plan, int made, const gcp_arena *was, size_t enough, const gcp_plan_opts *o,
                          const char *call)
{
    gcp_tape *t = plan->tape;
    gcp_arena *a = o->arena ? o->arena : t->arena;
    gcpi_plan *core = plan->core;
    a->scratch = was->scratch;
    if (made) {
        core->lease.last = a->used;
        gcpi_binding_forget(t, core);
        if (a != t->arena) return;
        core->lease.before =
            (uintptr_t)t->leases < (uintptr_t)a->base + (uintptr_t)core->lease.first ? t->leases : NULL;
        t->leases = &core->lease;
        return;
    }
    size_t freed = a == t->arena ? gcpi_freed_below(t) : 0;
    if (!freed)
        gcpi_fail(t, GCP_E_NOMEM, o->at, t->planning, "the plan's arena of %td bytes is too small; %zu are enough (%s)",
                  was->size - was->used - was->scratch, enough, call);
    else
        gcpi_fail(t, GCP_E_NOMEM, o->at, t->planning,
                  "the plan's arena of %td bytes is too small; %zu are enough (%s); freed plans below a living one "
                  "hold %zu (free before you "
                  "make, or use two arenas in turn)",
                  was->size - was->used - was->scratch, enough, call, freed);
    size_t least = core && t->code == GCP_E_BUDGET ? plan->least_bytes : 0;
    int coarse = least > 0 ? plan->coarse : 0;
    memset(plan, 0, sizeof *plan);
    plan->tape = t; plan->least_bytes = least; plan->coarse = coarse;
    a->used = was->used;
}

static gcp_plan gcpi_plan_none(gcp_tape *t)
{
    gcp_plan plan;
    memset(&plan, 0, sizeof plan);
    plan.tape = t;
    return plan;
}

/* Gives the plan's bytes back to the arena, if they are the last taken there. In the tape's arena, bytes that are not
   the last go back once all plans after them are freed. */
static void gcpi_plan_return(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    core->lease.freed = 1;
    if (core->arena != t->arena && core->arena->used == core->lease.last) core->arena->used = core->lease.first;
    while (t->leases && t->leases->freed && t->arena->used == t->leases->last) {
        t->arena->used = t->leases->first;
        t->leases = t->leases->before;
    }
    *plan = gcpi_plan_none(t);
}

static gcp_plan gcpi_plan_of_tape(gcp_tensor loss, gcp_plan_opts *o)
{
    gcp_plan plan = gcpi_plan_none(loss.tape);
    if (!gcpi_plan_ready(loss, o)) return plan;
    gcp_arena *a = o->arena ? o->arena : plan.tape->arena, was = *a;
    int made = gcpi_plan_begin(&plan, o) && gcpi_plan_steps(&plan, loss.id, a);
    gcpi_plan_end(&plan, made, &was, made ? 0 : gcp_plan_arena_at(loss, *o), o, "gcp_plan_arena");
    return plan;
}

static gcp_plan gcpi_plan_of_graph(gcp_tape *t, const char *text, gcp_plan_opts *o)
{
    gcp_plan plan = gcpi_plan_none(t);
    const int chosen = o->train || o->freeze || o->frozen_norms || o->rates || o->decays;
    if (!t->ops || t->code || (!chosen && !gcpi_plan_options_ok(t, o))) return plan;
    if (o->inference || o->optimizer || o->accumulate > 1 || o->on_gradient || o->costs || chosen) {
        gcpi_plan_bad(t, o,
                      "the graph's text says what a step does: leave out .inference, .optimizer, .accumulate, what "
                      "trains, hooks and .costs");
        return plan;
    }
    gcp_arena *a = o->arena ? o->arena : t->arena, was = *a;
    int made = gcpi_plan_begin(&plan, o) && gcpi_graph_steps(&plan, text, a);
    gcpi_plan_end(&plan, made, &was, made ? 0 : gcp_graph_arena_at(t, text, *o), o, "gcp_graph_arena");
    return plan;
}

/* text: a graph's, or NULL: the loss is planned. call: the function that the user called, for errors. */
static gcp_plan gcpi_plan_for(gcp_tensor loss, const char *text, gcp_plan_opts o, const char *call)
{
    if (!loss.tape) return gcpi_plan_none(NULL);
    loss.tape->planning = call;
    return text ? gcpi_plan_of_graph(loss.tape, text, &o) : gcpi_plan_of_tape(loss, &o);
}

GCPI_DEF gcp_plan gcp_plan_make_at(gcp_tensor loss, gcp_plan_opts o)
{
    return gcpi_plan_for(loss, NULL, o, "gcp_plan_make");
}
GCPI_DEF gcp_plan gcp_graph_plan_at(gcp_tape *t, const char *text, gcp_plan_opts o)
{
    return gcpi_plan_for(gcpi_nil(t), text ? text : "", o, "gcp_graph_plan");
}

GCPI_DEF int gcp_plan_ok(const gcp_plan *plan) { return plan && plan->core; }

/* ==== src/plan/sweep.h ==== */

/* Planning more than once: curves, the least budget, the largest batch. */

/* gcp_sweep, gcp_least_budget and gcp_max_batch: the policy may be left out or be GCP_POLICY_BUDGET. budget: where the
   budgets come from, if not from .budget. */
static int gcpi_budgets_only(gcp_tape *t, gcp_plan_opts *o, gcp_at at, const char *call, const char *budget)
{
    const int other = o->policy != GCP_POLICY_SEGMENTS && o->policy != GCP_POLICY_BUDGET;
    if (other) gcpi_fail(t, GCP_E_PLAN, at, call, "the policy is always GCP_POLICY_BUDGET: leave out .policy");
    else if (o->list) gcpi_fail(t, GCP_E_PLAN, at, call, "schedules are searched for: leave out .list");
    else if (budget && o->budget) gcpi_fail(t, GCP_E_PLAN, at, call, "%s: leave out .budget", budget);
    o->policy = GCP_POLICY_BUDGET;
    return !t->code;
}

/* Plans that are made one after another. Of .progress, each plan's share becomes one of all plans. */
typedef struct gcpi_series {
    gcp_tensor loss; const char *text; gcp_plan_opts o;
    const char *call;                                          /* the user's, for errors */
    gcp_progress_fn ask; void *context;                        /* the user's */
    int plan, plans, stopped;
} gcpi_series;

static int gcpi_series_progress(void *context, const gcp_progress *progress)
{
    gcpi_series *s = (gcpi_series *)context;
    gcp_progress now = *progress;
    now.share = (s->plan + now.share) / s->plans;
    return s->stopped |= s->ask(s->context, &now) != 0;
}

/* The series stands between its plans and .progress. */
static void gcpi_series_watched(gcpi_series *s)
{
    s->ask = s->o.progress; s->context = s->o.progress_context;
    s->stopped = 0;
    if (!s->ask) return;
    s->o.progress = gcpi_series_progress; s->o.progress_context = s;
}

/* A point's plan. Once the series was stopped, only keep-all is left to try. */
static gcp_plan gcpi_series_plan(const gcpi_series *s)
{
    gcp_plan_opts o = s->o;
    if (s->stopped) {
        o.policy = GCP_POLICY_KEEP_ALL;
        o.effort = GCP_EFFORT_DEFAULT; o.progress = NULL; o.progress_context = NULL; o.far = 0; o.far_only = 0;
    }
    return gcpi_plan_for(s->loss, s->text, o, s->call);
}

/* A point by a plan of its own. 1: it has one; 0: nothing fits, or nothing was found before the stop; -1: an error. */
static int gcpi_sweep_point(gcpi_series *s, gcp_point *p)
{
    gcp_tape *t = s->loss.tape;
    size_t budget = s->o.budget = p->budget;
    memset(p, 0, sizeof *p);
    p->budget = budget;
    const int kept = s->stopped;
    gcp_plan plan = gcpi_series_plan(s);
    p->planned_with = plan.core ? budget : plan.least_bytes;
    if (!plan.core && t->code != GCP_E_BUDGET) return -1;
    p->coarse = s->stopped ? 2 : plan.coarse;
    if (!plan.core) { gcp_error_clear(t); return 0; }
    p->bytes = plan.bytes;
    p->seconds = plan.seconds;
    p->keep_all_seconds = plan.keep_all_seconds;
    p->bound_seconds = kept ? plan.keep_all_seconds : plan.bound_seconds;
    gcpi_plan_return(&plan);
    return 1;
}

/* The budgets must not fall. */
static int gcpi_sweep_budgets_ok(gcp_tape *t, const gcp_point *points, int count, gcp_at at, const char *call)
{
    if (!points) return gcpi_fail(t, GCP_E_ARGUMENT, at, call, "points is NULL"), 0;
    if (!points[0].budget) return gcpi_fail(t, GCP_E_ARGUMENT, at, call, "points[0].budget is 0"), 0;
    for (int i = 1; i < count; i++) {
        if (points[i].budget >= points[i - 1].budget) continue;
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "points[%d].budget = %zu is less than points[%d].budget = %zu", i,
                  points[i].budget, i - 1, points[i - 1].budget);
        return 0;
    }
    return 1;
}

/* A point takes the plan of a smaller budget where that is faster. */
static int gcpi_sweep_points(gcp_tensor loss, const char *text, gcp_point *points, int count, gcp_plan_opts o)
{
    gcp_tape *t = loss.tape;
    int fit = 0;
    const gcp_point *last = NULL;          /* the fastest so far: its plan fits all later budgets too */
    gcpi_series s;
    if (!t || t->code || count <= 0) return 0;
    s.loss = loss; s.text = text; s.plans = count; s.call = text ? "gcp_graph_sweep" : "gcp_sweep";
    if (!gcpi_budgets_only(t, &o, o.at, s.call, "the budgets are those of the points") ||
        !gcpi_sweep_budgets_ok(t, points, count, o.at, s.call))
        return 0;
    s.o = o;
    gcpi_series_watched(&s);
    for (int i = 0; i < count; i++) {
        gcp_point *p = &points[i];
        size_t budget = p->budget;
        s.plan = i;
        int planned = gcpi_sweep_point(&s, p);
        if (planned < 0) return 0;
        if (!planned && !last) continue;
        fit++;
        if (last && (!planned || last->seconds < p->seconds)) {
            double bound = planned ? p->bound_seconds : last->keep_all_seconds;      /* that of fewer bytes is none */
            const int coarse = p->coarse;
            *p = *last;
            p->budget = budget; p->bound_seconds = bound; p->coarse = coarse;
        }
        last = p;
    }
    return fit;
}

GCPI_DEF int gcp_sweep_at(gcp_tensor loss, gcp_point *points, int count, gcp_plan_opts o)
{
    return gcpi_sweep_points(loss, NULL, points, count, o);
}
GCPI_DEF int gcp_graph_sweep_at(gcp_tape *t, const char *text, gcp_point *points, int count, gcp_plan_opts o)
{
    return gcpi_sweep_points(gcpi_nil(t), text ? text : "", points, count, o);
}

GCPI_DEF size_t gcp_least_budget_at(gcp_tensor loss, gcp_plan_opts o)
{
    gcp_tape *t = loss.tape;
    if (!t || t->code || !gcpi_budgets_only(t, &o, o.at, "gcp_least_budget", "the least budget is what is looked for"))
        return 0;
    o.budget = 1;
    size_t least = gcpi_plan_for(loss, NULL, o, "gcp_least_budget").least_bytes;
    if (least) gcp_error_clear(t);
    return least;
}

/* Forgets a try, but not its error. */
static void gcpi_batch_forget(gcp_tape *t)
{
    char message[GCP_MAX_ERROR];
    gcp_code code = t->code;
    gcp_error(t);                                   /* a full tape's message is written only here */
    memcpy(message, t->message, sizeof message);
    gcp_tape_reset(t);
    t->code = code;
    memcpy(t->message, message, sizeof message);
}

/* 1: the batch fits; 0: it does not, and the tape's error says why; 2: one sample is too few for a batch-norm; -1:
   another error. */
static int gcpi_batch_fits(gcp_tape *t, gcp_record_fn record, void *context, const gcp_batch_opts *o, int batch)
{
    gcp_plan_opts plan = o->plan;
    plan.at = o->at;
    gcp_tensor loss = record(context, t, batch);
    if (loss.tape != t || loss.id == 0)
        gcpi_fail(t, GCP_E_ARGUMENT, o->at, "gcp_max_batch",
                  "record returned no tensor of the tape that it was given, at batch %d", batch);
    if (t->code) return -1;
    gcp_plan made = gcpi_plan_for(loss, NULL, plan, "gcp_max_batch");
    if (!made.core && t->code == GCP_E_SHAPE && batch == 1 && o->most != 1) return 2;
    if (!made.core) return t->code == GCP_E_BUDGET ? 0 : -1;
    const double slowdown = made.seconds / made.keep_all_seconds;
    gcpi_plan_return(&made);
    if (!(o->slowdown > 0) || slowdown <= o->slowdown) return 1;
    gcpi_fail(t, GCP_E_BUDGET, o->at, "gcp_max_batch", "a step of batch %d takes %.3f of keep-all's time, .slowdown %g",
              batch, slowdown, o->slowdown);
    return 0;
}

/* One try on an empty tape. low: the largest batch that fits so far; if 0, the error "does not fit" stays. */
static int gcpi_batch_try(gcp_tape *t, gcp_record_fn record, void *context, const gcp_batch_opts *o, int batch, int low)
{
    int fits = gcpi_batch_fits(t, record, context, o, batch);
    if (fits >= 0 && (fits || low)) gcp_error_clear(t);
    gcpi_batch_forget(t);
    return fits;
}

GCPI_DEF int gcp_max_batch_at(gcp_tape *t, gcp_record_fn record, void *context, gcp_batch_opts o)
{
    int64_t low = 0, high = 1, most = o.most > 0 ? o.most : 65536, fits = 1;
    if (!t || t->code || !t->ops) return 0;
    if (!record || o.most < 0 || !(o.slowdown >= 0)) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_max_batch", "%s",
                  !record      ? "record is NULL"
                  : o.most < 0 ? ".most is at least 1; 0 is the default"
                               : ".slowdown is above 0; 0 is any");
        return 0;
    }
    if (o.plan.costs) {
        gcpi_fail(t, GCP_E_ARGUMENT, o.at, "gcp_max_batch", "%s",
                  ".plan.costs are the seconds of ops of one batch: leave them out, or give a .plan.target with rates");
        return 0;
    }
    if (!gcpi_budgets_only(t, &o.plan, o.at, "gcp_max_batch", NULL)) return 0;
    gcpi_series s;
    s.o = o.plan; s.plan = 0; s.plans = 1;
    gcpi_series_watched(&s);
    o.plan = s.o;
    gcp_tape_reset(t);
    while (high <= most && !s.stopped && (fits = gcpi_batch_try(t, record, context, &o, (int)high, (int)low)) > 0) {
        if (fits == 1) low = high;
        high *= 2;
    }
    high = GCPI_MIN(high, most + 1);
    while (low && fits >= 0 && !s.stopped && high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        fits = gcpi_batch_try(t, record, context, &o, (int)middle, (int)low);
        if (fits > 0) low = middle;
        else high = middle;
    }
    return fits < 0 ? 0 : (int)low;
}

/* run: memory, and steps */

/* ==== src/run/state.h ==== */

/* The state: what outlives plans. Weights, statistics, slots, counters: their initial values, and where each lies. */

static unsigned char *gcpi_value_at(const gcp_tape *t, int parameter)
{
    return t->state + t->parameters[parameter].offset;
}
/* Where slot k of a parameter lies: in far memory or in the state. */
static unsigned char *gcpi_slot_at(const gcp_tape *t, int parameter, int k)
{
    return (t->far_slots ? t->far_slots : t->state) + t->parameters[parameter].slot +
           (size_t)k * gcpi_parameter_bytes(t, parameter);
}
static gcpi_counters gcpi_counters_read(const gcp_tape *t)
{
    gcpi_counters c;
    gcpi_bytes_copy(&t->home, &c, t->state, sizeof c);
    return c;
}
static double gcpi_uniform01(uint32_t x) { return ((double)x + 0.5) / 4294967296.0; }

/* Initial values, keyed by the seed and the parameter's ordinal. He: normal, variance 2 / fan in. Glorot: uniform,
   variance 2 / (fan in + fan out). Fans that are not given are those of a weight (out, ..., in). */
static gcp_real gcpi_initial(gcpi_random r, gcp_init init, double deviation, double limit)
{
    double u = gcpi_uniform01(r.x[0]), v = gcpi_uniform01(r.x[1]);
    if (init == GCP_INIT_GLOROT) return (gcp_real)((2 * u - 1) * limit);
    return (gcp_real)(deviation * sqrt(-2 * log(u)) * cos(6.28318530717958647692 * v));
}

static void gcpi_initialise(const gcp_tape *t, int ordinal)
{
    enum { CHUNK = 1024 };
    const gcpi_parameter *p = &t->parameters[ordinal];
    gcp_real some[CHUNK];
    size_t count = gcpi_count(p->shape);
    int constant = p->init == GCP_INIT_ONES || p->init == GCP_INIT_ZEROS;
    double out = (double)p->shape.d[p->shape.rank == 1 ? 3 : 0], in = p->fan_in         ? p->fan_in
                                                                    : p->shape.rank > 1 ? (double)count / out
                                                                                        : out;
    double deviation = p->deviation > 0 ? p->deviation : sqrt(2.0 / in),
           limit = sqrt(6.0 / (in + (p->fan_out ? p->fan_out : out)));
    for (size_t first = 0; first < count; first += CHUNK) {
        size_t n = GCPI_MIN((size_t)CHUNK, count - first);
        for (size_t k = 0; k < n; k++) {
            uint64_t i = first + k;
            some[k] = constant ? (gcp_real)(p->init == GCP_INIT_ONES)
                               : gcpi_initial(gcpi_philox((uint32_t)i, (uint32_t)(i >> 32), (uint32_t)ordinal,
                                                          0x67637069u, t->seed),
                                              p->init, deviation, limit);
        }
        gcpi_bytes_copy(&t->home, gcpi_value_at(t, ordinal) + first * sizeof(gcp_real), some, n * sizeof(gcp_real));
    }
}

static void gcpi_state_settle(gcp_tape *t, const gcp_target *home, unsigned char *base, size_t capacity)
{
    size_t offset = gcpi_counters_bytes(t);
    t->home = *home;
    t->state = base;
    t->state_capacity = capacity;
    for (int i = 0; i < t->parameter_count; i++) {
        t->parameters[i].offset = offset;
        t->parameters[i].slot = 0;
        offset += gcpi_parameter_bytes(t, i);
    }
    gcpi_bytes_fill(home, base, 0, offset);
    for (int i = 0; i < t->parameter_count; i++) gcpi_initialise(t, i);
    t->state_size = offset;
    t->layout++;
}

/* Where the state has a parameter's count of updates. */
static unsigned char *gcpi_count_at(const gcp_tape *t, int parameter)
{
    return t->state + sizeof(gcpi_counters) + (size_t)parameter * sizeof(uint64_t);
}

/* Bytes of the slots that the plan's parameters lack. */
static size_t gcpi_slots_lacking(const gcp_tape *t, const gcpi_plan *core)
{
    size_t bytes = 0;
    for (int i = 0; i < t->parameter_count; i++)
        if (gcpi_trained(&core->p, i) && !t->parameters[i].slot)
            bytes += gcpi_parameter_bytes(t, i) * (size_t)core->slots;
    return bytes;
}

/* Gives the plan's parameters their slots, after all that the state (or far_slots) holds, with a count of updates that
   begins at 0. */
static void gcpi_slots_settle(gcp_tape *t, const gcpi_plan *core)
{
    size_t *size = t->far_slots ? &t->far_slots_size : &t->state_size;
    for (int i = 0; i < t->parameter_count; i++) {
        size_t bytes = gcpi_parameter_bytes(t, i) * (size_t)core->slots;
        if (!bytes || !gcpi_trained(&core->p, i) || t->parameters[i].slot) continue;
        t->parameters[i].slot = *size;
        gcpi_bytes_fill(&t->home, gcpi_count_at(t, i), 0, sizeof(uint64_t));
        if (t->far_slots) memset(t->far_slots + *size, 0, bytes);
        else gcpi_bytes_fill(&t->home, t->state + *size, 0, bytes);
        *size += bytes;
        t->slots = core->slots;
        t->optimizer = core->opts.optimizer;
        t->layout++;
    }
}

GCPI_DEF void gcp_slots_reset(gcp_tape *t)
{
    if (!t || gcpi_in_feed(t, NULL, "gcp_slots_reset")) return;
    for (int i = 0; i < t->parameter_count; i++) {
        if (!t->parameters[i].slot) continue;
        t->parameters[i].slot = 0;
        if (!t->far_slots) t->state_size -= (size_t)t->slots * gcpi_parameter_bytes(t, i);
    }
    t->far_slots_size = GCPI_FAR_SLOTS_FIRST;
    t->slots = 0;
    t->optimizer = GCP_OPTIMIZER_NONE;
    if (t->state) gcpi_bytes_fill(&t->home, t->state, 0, gcpi_counters_bytes(t));
    t->layout++;
}

GCPI_DEF uint64_t gcp_steps_done(const gcp_tape *t) { return t && t->state ? gcpi_counters_read(t).steps : 0; }

/* ==== src/run/claims.h ==== */

/* Whose memory is whose. Which plans may be used, what overlaps, and what is lost when a plan writes. */

static unsigned char *gcpi_align_up(void *memory, size_t align)
{
    return (unsigned char *)memory + (-(uintptr_t)memory & (uintptr_t)(align - 1));
}

GCPI_PRINTF(5, 6)
static gcp_code gcpi_refuse_plan(const gcp_plan *plan, gcp_code code, gcp_at at, const char *what, const char *format,
                                 ...)
{
    char text[GCP_MAX_ERROR];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    gcpi_fail(plan->tape, code, at, what, "%s", text);
    return plan->tape->code;
}

/* Whether a plan may be used: it was made, from the tape's present recording, and the tape has no error. feeds: the
   call may also come from the plan's own .feed, as writes of its inputs do. */
static gcp_code gcpi_plan_check(const gcp_plan *plan, gcp_at at, const char *what, int feeds)
{
    if (!plan || !plan->tape) return GCP_E_PLAN;
    if (plan->tape->code) return plan->tape->code;
    if (!plan->core)
        return gcpi_refuse_plan(plan, GCP_E_PLAN, at, what, "the plan was not made (see gcp_plan_ok), or was freed");
    if (plan->generation != plan->tape->generation)
        return gcpi_refuse_plan(plan, GCP_E_STALE, at, what, "a plan from before the tape's reset");
    if (feeds && plan->tape->feeding == plan->core->number) return GCP_OK;
    return gcpi_in_feed(plan->tape, &at, what) ? GCP_E_ARGUMENT : GCP_OK;
}

static int gcpi_ranges_meet(const void *a, size_t an, const void *b, size_t bn)
{
    return an && bn && (uintptr_t)a < (uintptr_t)b + bn && (uintptr_t)b < (uintptr_t)a + an;
}

/* Names what of the tape's overlaps a range of memory: the tape, plans or free bytes in the arena, slabs, far memory,
   the state. NULL: nothing. memory: the pointer that the caller gave; plans bound to the same pointer share its memory,
   and its front may hold the state. for_far: far memory may be shared, too, as values lie there within a step only. */
static const char *gcpi_taken(const gcp_tape *t, const void *first, size_t bytes, const void *memory, int for_far)
{
    const gcp_arena *a = t->arena;
    if (gcpi_ranges_meet(first, bytes, a->base, (size_t)t->arena_mark)) return "the tape in its arena";
    if (gcpi_ranges_meet(first, bytes, a->base + a->used, (size_t)(a->size - a->used)))
        return "what is free in the tape's arena";
    for (const gcpi_lease *p = t->leases; p; p = p->before)
        if (gcpi_ranges_meet(first, bytes, p, (size_t)(p->last - p->first))) return "a plan in its arena";
    for (int i = 0; i < GCP_MAX_BOUND; i++) {
        const gcpi_binding *b = &t->bindings[i];
        if (gcpi_ranges_meet(first, bytes, b->own, b->own_bytes)) return "a plan in its arena";
        if (b->memory != memory && gcpi_ranges_meet(first, bytes, b->slab, b->slab_bytes))
            return "another plan's (gcp_unbind, or bind both to the same)";
        if (!for_far && gcpi_ranges_meet(first, bytes, b->far, b->far_bytes)) return "a plan's far memory";
    }
    if (gcpi_ranges_meet(first, bytes, t->far_slots, t->far_slots_capacity)) return "the optimiser's slots";
    return (t->own_state || memory != t->state_memory) && gcpi_ranges_meet(first, bytes, t->state, t->state_size)
               ? "the state, which stays where it was bound first"
               : NULL;
}

/* The tape's note of a bound plan, or NULL. make: if there is none, a vacant one, or NULL if all are in use. */
static gcpi_binding *gcpi_binding_of(gcp_tape *t, const gcpi_plan *core, int make)
{
    gcpi_binding *vacant = NULL;
    for (int i = GCP_MAX_BOUND - 1; i >= 0; i--) {
        if (t->bindings[i].plan == core->number) return &t->bindings[i];
        if (!t->bindings[i].plan) vacant = &t->bindings[i];
    }
    return make ? vacant : NULL;
}

static void gcpi_binding_note(gcp_tape *t, const gcpi_plan *core, gcpi_binding *b)
{
    b->plan = core->number; b->memory = core->bound.memory; b->taken = 0;
    b->own = (const unsigned char *)core; b->own_bytes = (size_t)(core->lease.last - core->lease.first);
    b->slab = core->bound.slab; b->slab_bytes = core->slab_bytes;
    b->far = core->bound.far; b->far_bytes = core->far_bytes;
    if (t->toucher == core->number) t->toucher = 0;
}

/* The inputs and results in the slab are lost. since: what lost them, for messages. */
static void gcpi_written_forget(gcpi_plan *core, const char *since)
{
    memset(core->bound.given, 0, (size_t)core->p.tensors * sizeof *core->bound.given);
    core->bound.some = 0;
    core->bound.unwritten = core->inputs;
    core->bound.ran = 0;
    core->bound.since = since;
}

/* The plan is about to write to its slab: what other plans have in those bytes is lost. */
static void gcpi_touch(gcpi_plan *core)
{
    gcp_tape *t = core->p.tape;
    if (t->toucher == core->number || core->run.purpose == GCPI_TO_MEASURE) return;
    t->toucher = core->number;
    for (int i = 0; i < GCP_MAX_BOUND; i++) {
        gcpi_binding *b = &t->bindings[i];
        int meet = gcpi_ranges_meet(b->slab, b->slab_bytes, core->bound.slab, core->slab_bytes);
        if (b->plan && b->plan != core->number && meet) b->taken = 1;
    }
}

static void gcpi_recordings_forget(gcpi_plan *core)
{
    for (int i = 0; i < 4; i++) {
        if (core->run.recordings[i]) core->p.target.device->forget(core->p.target.context, core->run.recordings[i]);
        core->run.recordings[i] = NULL;
    }
}

/* ==== src/run/bind.h ==== */

/* Binding: memory for states, slabs, far values. A state that has no home takes its bytes from the front of the
   first plan's memory. */

static void gcpi_state_forget(gcp_tape *t)          /* its memory is given back, or was never filled */
{
    gcp_slots_reset(t);
    t->state = NULL;
    t->state_memory = NULL;
    t->state_size = t->state_capacity = 0;
    t->own_state = 0;
    t->layout++;
}

GCPI_DEF gcp_code gcp_state_bind_at(gcp_tape *t, void *memory, size_t size, gcp_at at)
{
    return gcp_state_bind_on_at(t, NULL, memory, size, at);
}
GCPI_DEF gcp_code gcp_state_bind_on_at(gcp_tape *t, const gcp_target *target, void *memory, size_t size, gcp_at at)
{
    gcp_target home = gcpi_target_of(target);
    if (!t || t->code) return t ? t->code : GCP_E_NOMEM;
    unsigned char *base = gcpi_align_up(memory, GCPI_STATE_ALIGN);
    size_t lost = (size_t)(base - (unsigned char *)memory), need = gcp_state_bytes(t, GCP_OPTIMIZER_NONE);
    const char *taken = gcpi_taken(t, base, need, memory, 0);
    if (t->state)
        gcpi_fail(t, GCP_E_STATE, at, "gcp_state_bind",
                  "the state has memory already: gcp_state_bind comes before the first gcp_bind, once");
    else if (!memory || size < need + lost)
        gcpi_fail(t, GCP_E_BIND, at, "gcp_state_bind",
                  "%zu bytes given, %zu needed at this address, and what the optimiser takes (gcp_state_bytes)", size,
                  need + lost);
    else if (taken) gcpi_fail(t, GCP_E_BIND, at, "gcp_state_bind", "the memory overlaps %s", taken);
    if (t->code) return t->code;
    gcpi_state_settle(t, &home, base, size - lost);
    t->own_state = 1;
    t->state_memory = memory;
    if (!gcpi_trouble(t, &home, at, "gcp_state_bind")) return GCP_OK;
    gcpi_state_forget(t);
    return t->code;
}

GCPI_DEF gcp_code gcp_slots_bind_at(gcp_tape *t, void *memory, size_t size, gcp_at at)
{
    if (!t || t->code) return t ? t->code : GCP_E_NOMEM;
    if (gcpi_in_feed(t, &at, "gcp_slots_bind")) return t->code;
    unsigned char *base = gcpi_align_up(memory, GCPI_STATE_ALIGN);
    size_t lost = (size_t)(base - (unsigned char *)memory), room = size > lost ? size - lost : 0;
    unsigned char *was = t->far_slots;
    t->far_slots = NULL;                          /* the same memory may be given again */
    const char *taken = memory ? gcpi_taken(t, base, room, NULL, 0) : NULL;
    t->far_slots = was;
    if (t->slots)
        gcpi_fail(t, GCP_E_STATE, at, "gcp_slots_bind",
                  "the optimiser has slots already: gcp_slots_bind comes before the first gcp_bind of a plan with an "
                  "optimiser, or after gcp_slots_reset");
    else if (!memory != !size || (memory && room < GCPI_FAR_SLOTS_FIRST))
        gcpi_fail(t, GCP_E_BIND, at, "gcp_slots_bind",
                  "%zu bytes given; gcp_slots_bytes says how many are needed (NULL, 0: in the state again)", size);
    else if (taken) gcpi_fail(t, GCP_E_BIND, at, "gcp_slots_bind", "the memory overlaps %s", taken);
    if (t->code) return t->code;
    t->far_slots = memory ? base : NULL;
    t->far_slots_capacity = room; t->far_slots_size = GCPI_FAR_SLOTS_FIRST;
    return GCP_OK;
}

/* Whether the state lies at the front of this memory, or will when it is bound. */
static int gcpi_state_here(const gcp_tape *t, const void *memory)
{
    return !t->state || (!t->own_state && memory == t->state_memory);
}

/* Updates the plan's bytes for the state as it is now; with them the plan must still fit its budget. */
static gcp_code gcpi_plan_refresh(gcp_plan *plan, gcp_at at, const char *what)
{
    gcpi_plan_sizes(plan);
    if (!plan->core->opts.budget || plan->bytes <= plan->core->opts.budget) return GCP_OK;
    return gcpi_refuse_plan(
        plan, GCP_E_BUDGET, at, what,
        "the plan takes %zu bytes with the optimisers' slots that the state holds, .budget allows %zu", plan->bytes,
        plan->core->opts.budget);
}

/* Where the slab goes in the plan's memory: after the state, if the state is at the front of it (where the first plan's
   align put it), else at the front. NULL: an error. */
static unsigned char *gcpi_slab_place(const gcp_plan *plan, gcp_at at, const char *what)
{
    const gcpi_plan *core = plan->core;
    const gcp_tape *t = plan->tape;
    int here = gcpi_state_here(t, core->bound.memory);
    size_t align = core->p.target.align, state = here ? gcpi_state_with(t, &plan->core, 1) : 0;
    unsigned char *base = here && t->state ? t->state : gcpi_align_up(core->bound.memory, align),
                  *slab = gcpi_align_up(base + state, align);
    size_t lost = (size_t)(base - (unsigned char *)core->bound.memory), used = (size_t)(slab - base) + core->slab_bytes;
    const char *taken = gcpi_ranges_meet(base, used, core, (size_t)(core->lease.last - core->lease.first))
                            ? "the plan in its arena"
                            : gcpi_taken(t, base, used, core->bound.memory, 0);
    if (core->bound.memory_size < lost + used)
        gcpi_refuse_plan(
            plan, GCP_E_BIND, at, what,
            "%zu bytes given, %zu needed at this address; %zu are enough at any (plan.room, gcp_plans_room)",
            core->bound.memory_size, lost + used, used + align - 1);
    else if (taken) gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the memory overlaps %s", taken);
    return t->code ? NULL : slab;
}

/* What micro-batches have summed is of no use any more. */
static void gcpi_sums_forget(gcpi_plan *core)
{
    core->run.micro = 0;
    core->p.tape->summing = 0;
}
/* 1, and an error: a bound plan's gradients of earlier micro-batches wait for the last one; they are of these weights,
   and in no file. */
static int gcpi_halfway(gcp_tape *t, gcp_at at, const char *call)
{
    int bound = gcpi_in_feed(t, &at, call);
    for (int i = 0; i < GCP_MAX_BOUND; i++) bound |= t->summing && t->bindings[i].plan == t->summing;
    if (bound)
        gcpi_fail(t, GCP_E_STATE, at, call, "a plan is between two micro-batches of .accumulate: call it after the "
                                            "last one (gcp_unbind gives up what was summed)");
    return bound;
}

/* Refuses a plan that was made for slots in the state where they wait in far memory, or the reverse. */
static gcp_code gcpi_slots_elsewhere(const gcp_plan *plan, gcp_at at, const char *what)
{
    const gcpi_plan *core = plan->core;
    return !core->slots || !core->p.far_slots == !plan->tape->far_slots
               ? GCP_OK
               : gcpi_refuse_plan(plan, GCP_E_STATE, at, what,
                                  "the plan was made before gcp_slots_bind: make it again");
}

/* The state's layout has changed since the slab was placed: places the slab again. */
static gcp_code gcpi_lay_again(gcp_plan *plan, gcp_at at, const char *what)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    if (!t->state) return gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the state's memory was given back: bind again");
    const int others = t->optimizer && t->optimizer != core->opts.optimizer;
    if (core->slots && (others || gcpi_slots_lacking(t, core)))
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, what,
                                "gcp_slots_reset has forgotten the optimiser's slots: bind again");
    if (gcpi_slots_elsewhere(plan, at, what)) return t->code;
    unsigned char *slab = gcpi_plan_refresh(plan, at, what) ? NULL : gcpi_slab_place(plan, at, what);
    if (!slab) return t->code;
    gcpi_recordings_forget(core);
    int moved = slab != core->bound.slab, micro = core->run.micro;
    core->bound.slab = slab;
    core->bound.layout = t->layout;
    if (!moved) return GCP_OK;
    gcpi_written_forget(core, "the state grew");
    gcpi_binding *note = gcpi_binding_of(t, core, 1);
    if (note) gcpi_binding_note(t, core, note);
    if (micro) gcpi_sums_forget(core);
    return micro ? gcpi_refuse_plan(plan, GCP_E_BIND, at, what,
                                    "another plan was bound between the micro-batches of this one")
                 : GCP_OK;
}

/* Whether a plan is bound, and its slab is where it was: it is placed again where the state has grown. feeds: as in
   gcpi_plan_check. */
static gcp_code gcpi_usable_check(gcp_plan *plan, gcp_at at, const char *what, int feeds)
{
    gcp_code code = gcpi_plan_check(plan, at, what, feeds);
    if (code) return code;
    gcpi_plan *core = plan->core;
    if (!core->bound.slab) return gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the plan is not bound");
    if (core->far_bytes && !core->bound.far)
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "no far memory: %zu bytes to gcp_far_bind",
                                plan->far_bytes);
    if (core->bound.layout != plan->tape->layout && (code = gcpi_lay_again(plan, at, what)) != GCP_OK) return code;
    gcpi_binding *note = gcpi_binding_of(plan->tape, core, 0);
    if (!note || !note->taken) return GCP_OK;
    note->taken = 0;
    gcpi_written_forget(core, "another plan used the same memory");
    if (!core->run.micro) return GCP_OK;
    gcpi_sums_forget(core);
    return gcpi_refuse_plan(plan, GCP_E_BIND, at, what,
                            "another plan used the same memory between the micro-batches of this one");
}
static gcp_code gcpi_bound_check(gcp_plan *plan, gcp_at at, const char *what)
{
    return gcpi_usable_check(plan, at, what, 0);
}

/* Whether the plan's slots have room where slots lie, if that is not the plan's memory. */
static gcp_code gcpi_bind_slots_ok(const gcp_plan *plan, gcp_at at)
{
    const gcp_tape *t = plan->tape;
    const gcpi_plan *core = plan->core;
    size_t lacking = gcpi_slots_lacking(t, core), end = (t->far_slots ? t->far_slots_size : t->state_size) + lacking;
    if (gcpi_slots_elsewhere(plan, at, "gcp_bind")) return t->code;
    if (!lacking) return GCP_OK;
    if (t->far_slots)
        return end <= t->far_slots_capacity
                   ? GCP_OK
                   : gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                      "gcp_slots_bind gave %zu bytes; with this optimiser the slots take %zu "
                                      "(gcp_slots_bytes)", t->far_slots_capacity, end);
    if (gcpi_state_here(t, core->bound.memory)) return GCP_OK;
    if (t->own_state && end > t->state_capacity)
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                "the state's home (gcp_state_bind) has %zu bytes and stays it; with this optimiser it "
                                "takes %zu (gcp_state_bytes)",
                                t->state_capacity, end);
    if (!t->own_state)
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                "the optimiser's slots must follow the weights, in the memory that was bound first: "
                                "bind this plan there (gcp_plans_room of all plans says how much to give at first)");
    return GCP_OK;
}

/* Whether the plan's optimiser and target agree with the state. */
static gcp_code gcpi_bind_state_ok(const gcp_plan *plan, gcp_at at)
{
    const gcp_tape *t = plan->tape;
    const gcpi_plan *core = plan->core;
    if (core->slots && t->slots && (t->optimizer != core->opts.optimizer || t->slots != core->slots))
        return gcpi_refuse_plan(plan, GCP_E_STATE, at, "gcp_bind",
                                "the state holds slots of another optimiser; gcp_slots_reset forgets them");
    if (t->state &&
        (t->home.device != core->p.target.device || (t->home.device && t->home.context != core->p.target.context)))
        return gcpi_refuse_plan(
            plan, GCP_E_STATE, at, "gcp_bind",
            "the state lies in the memory of another target: its values can be moved with gcp_read and gcp_write");
    return gcpi_bind_slots_ok(plan, at);
}

/* Places state, slots and slab in in->bound.memory. Nothing is written before all of it is known to fit. */
static gcp_code gcpi_bind_memory(gcp_plan *plan, gcp_at at)
{
    gcp_tape *t = plan->tape;
    gcpi_plan *core = plan->core;
    if (gcpi_bind_state_ok(plan, at) || gcpi_plan_refresh(plan, at, "gcp_bind")) return t->code;
    unsigned char *slab = gcpi_slab_place(plan, at, "gcp_bind");
    if (!slab) return t->code;
    gcpi_binding *note = gcpi_binding_of(t, core, 1);
    if (!note)
        return gcpi_refuse_plan(plan, GCP_E_CAPACITY, at, "gcp_bind",
                                "%d plans are bound; gcp_unbind those that are done", GCP_MAX_BOUND);
    if (gcpi_state_here(t, core->bound.memory)) {
        if (!t->state) {
            gcpi_state_settle(t, &core->p.target, gcpi_align_up(core->bound.memory, core->p.target.align), 0);
            t->state_memory = core->bound.memory;
        }
        t->state_capacity = core->bound.memory_size - (size_t)(t->state - (unsigned char *)core->bound.memory);
    }
    gcpi_slots_settle(t, core);
    core->bound.slab = slab;
    core->bound.layout = t->layout;
    core->run.micro = 0;
    gcpi_written_forget(core, "gcp_bind");
    gcpi_binding_note(t, core, note);
    return GCP_OK;
}

static void gcpi_far_release(gcpi_plan *core)
{
    if (core->bound.far_owned && core->p.target.far_release)
        core->p.target.far_release(core->p.target.context, core->bound.far_owned, core->far_bytes);
    core->bound.far = NULL;
    core->bound.far_owned = NULL;
}

static void gcpi_unlay(gcpi_plan *core)
{
    gcpi_binding *note = gcpi_binding_of(core->p.tape, core, 0);
    if (note) memset(note, 0, sizeof *note);
    gcpi_recordings_forget(core);
    core->bound.slab = NULL;
}

/* Gives back what the target allocated. A state that lies in it is lost. */
static void gcpi_release(gcp_plan *plan)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    if (!core->bound.owned) return;
    if (t->state_memory == core->bound.owned && !t->own_state) gcpi_state_forget(t);
    if (core->p.target.release)
        core->p.target.release(core->p.target.context, core->bound.owned, core->bound.owned_size);
    core->bound.owned = NULL;
    core->bound.slab = NULL;
    t->layout++;
}

/* gcp_bind(plan, NULL, 0): the target allocates. What it gave this plan before is kept if it is large enough, or holds
   the state. */
static gcp_code gcpi_bind_owned(gcp_plan *plan, gcp_at at)
{
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    const gcp_target *target = &core->p.target;
    gcpi_plan_sizes(plan);
    size_t exact = core->slab_bytes + (gcpi_state_here(t, core->bound.owned) ? core->state_bytes : 0);
    if (core->bound.owned && core->bound.owned_size < exact && t->state_memory != core->bound.owned) gcpi_release(plan);
    if (!core->bound.owned && !target->allocate)
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind",
                                "no memory, and the target allocates none; %zu bytes are needed (plan.room)",
                                plan->room);
    if (!core->bound.owned) {
        core->bound.owned_size = exact;
        core->bound.owned = target->allocate(target->context, exact);
        if (!core->bound.owned && !gcpi_trouble(t, target, at, "gcp_bind"))
            gcpi_refuse_plan(plan, GCP_E_NOMEM, at, "gcp_bind", "the target could not allocate %zu bytes", exact);
    }
    if ((uintptr_t)core->bound.owned & (target->align - 1)) {
        gcpi_release(plan);
        gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind",
                         "the target's allocate gave memory that is not aligned to %zu bytes", target->align);
    }
    core->bound.memory = core->bound.owned; core->bound.memory_size = core->bound.owned_size;
    return t->code;
}

static gcp_code gcpi_far_check(const gcp_plan *plan, const void *memory, gcp_at at, const char *what)
{
    const gcpi_plan *core = plan->core;
    int own = gcpi_ranges_meet(memory, core->far_bytes, core->bound.slab, core->bound.slab ? core->slab_bytes : 0);
    const char *taken = own ? "the step's" : gcpi_taken(plan->tape, memory, core->far_bytes, NULL, 1);
    return taken ? gcpi_refuse_plan(plan, GCP_E_BIND, at, what, "the far memory overlaps %s", taken) : GCP_OK;
}

static gcp_code gcpi_far_take(gcp_plan *plan, void *memory, gcp_at at, const char *what)
{
    gcpi_plan *core = plan->core;
    gcpi_binding *note = gcpi_binding_of(plan->tape, core, 0);
    if (gcpi_far_check(plan, memory, at, what)) return plan->tape->code;
    core->bound.far = (unsigned char *)memory;
    if (note) { note->far = core->bound.far; note->far_bytes = core->far_bytes; }
    return GCP_OK;
}

static gcp_code gcpi_bind_far(gcp_plan *plan, gcp_at at)
{
    gcpi_plan *core = plan->core;
    const gcp_target *target = &core->p.target;
    if (!core->far_bytes || (!core->bound.far && !target->far_allocate)) return GCP_OK;
    if (core->bound.far) return gcpi_far_take(plan, core->bound.far, at, "gcp_bind");
    core->bound.far_owned = target->far_allocate(target->context, core->far_bytes);
    if (core->bound.far_owned) return gcpi_far_take(plan, core->bound.far_owned, at, "gcp_bind");
    if (gcpi_trouble(plan->tape, target, at, "gcp_bind")) return plan->tape->code;
    return gcpi_refuse_plan(plan, GCP_E_NOMEM, at, "gcp_bind", "the target could not allocate %zu bytes of far memory",
                            core->far_bytes);
}

GCPI_DEF gcp_code gcp_bind_at(gcp_plan *plan, void *memory, size_t size, gcp_at at)
{
    gcp_code code = gcpi_plan_check(plan, at, "gcp_bind", 0);
    if (code) return code;
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    const void *owned = core->bound.owned, *had_state = t->state;
    if (gcpi_is_graph(&core->p))
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind", "a graph's plan has nothing to run");
    gcpi_unlay(core);                               /* the plan is not bound unless this bind succeeds */
    core->bound.memory = memory; core->bound.memory_size = size;
    if (!memory && size == 0) code = gcpi_bind_owned(plan, at);
    else if (!memory)
        code = gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_bind", "%zu bytes at NULL; %zu are needed (plan.room)", size,
                                plan->room);
    if (!code) code = gcpi_bind_memory(plan, at);
    if (!code) code = gcpi_bind_far(plan, at);
    if (gcpi_trouble(t, &core->p.target, at, "gcp_bind")) code = t->code;
    if (!code) return GCP_OK;
    gcpi_unlay(core);
    if (core->bound.owned != owned) gcpi_release(plan);   /* what an earlier bind got stays: the state may lie in it */
    if (!had_state) gcpi_state_forget(t);
    return code;
}

GCPI_DEF gcp_code gcp_far_bind_at(gcp_plan *plan, void *memory, size_t size, gcp_at at)
{
    gcp_code code = gcpi_plan_check(plan, at, "gcp_far_bind", 0);
    if (code) return code;
    if (gcpi_is_graph(&plan->core->p))
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_far_bind", "a graph's plan has nothing to run");
    if (!memory || size < plan->far_bytes)
        return gcpi_refuse_plan(plan, GCP_E_BIND, at, "gcp_far_bind",
                                "%zu bytes given, %zu needed (plan.far_bytes)", size, plan->far_bytes);
    if (gcpi_far_check(plan, memory, at, "gcp_far_bind")) return plan->tape->code;
    gcpi_recordings_forget(plan->core);
    gcpi_far_release(plan->core);
    return gcpi_far_take(plan, memory, at, "gcp_far_bind");
}

static void gcpi_unbind(gcp_plan *plan)
{
    gcpi_unlay(plan->core);
    gcpi_release(plan);
    gcpi_far_release(plan->core);
}
GCPI_DEF gcp_code gcp_unbind_at(gcp_plan *plan, gcp_at at)
{
    if (!plan || !plan->tape || !plan->core || plan->generation != plan->tape->generation)
        return gcpi_plan_check(plan, at, "gcp_unbind", 0);
    if (gcpi_in_feed(plan->tape, &at, "gcp_unbind")) return plan->tape->code;
    if (plan->tape->summing == plan->core->number) gcpi_sums_forget(plan->core);
    gcpi_unbind(plan);
    return GCP_OK;
}

GCPI_DEF void gcp_plan_free(gcp_plan *plan)
{
    if (!plan || (plan->tape && gcpi_in_feed(plan->tape, NULL, "gcp_plan_free"))) return;
    if (plan->core && plan->generation == plan->tape->generation) {
        gcpi_unbind(plan);
        gcpi_plan_return(plan);
    }
    *plan = gcpi_plan_none(plan->tape);
}

GCPI_DEF size_t gcp_plans_bytes_at(const gcp_plan *const *plans, int count)
{
    enum { MOST = GCP_MAX_BOUND };
    gcpi_plan *in[MOST];
    size_t slab = 0, align = 1;
    int n = 0;
    for (int i = 0; plans && i < count && i < MOST; i++) {
        if (!plans[i] || !plans[i]->core || plans[i]->tape != plans[0]->tape ||
            plans[i]->generation != plans[i]->tape->generation)
            return 0;
        in[n++] = plans[i]->core;
        slab = GCPI_MAX(slab, plans[i]->core->slab_bytes);
        align = GCPI_MAX(align, plans[i]->core->p.target.align);
    }
    return n && n == count ? gcpi_round(gcpi_state_with(in[0]->p.tape, in, n), align) + slab : 0;
}

GCPI_DEF size_t gcp_plans_room_at(const gcp_plan *const *plans, int count)
{
    size_t bytes = gcp_plans_bytes_at(plans, count), least = SIZE_MAX, most = 1;
    for (int i = 0; bytes && i < count; i++) {
        most = GCPI_MAX(most, plans[i]->core->p.target.align);
        least = GCPI_MIN(least, plans[i]->core->p.target.align);
    }
    /* if the plan that is bound first has a smaller align, both alignments may cost bytes */
    return bytes ? bytes + most - 1 + (least < most ? least - 1 : 0) : 0;
}
GCPI_WARM                              /* again at the user's level of optimisation */

/* ==== src/run/copies.h ==== */

/* Copies to far memory and back. Of values, where the list says so; of optimiser slots, in each update. */

/* In the list each copy seems to be done at once. In fact it runs on until an instruction needs its bytes. */
static void gcpi_far_wait(gcpi_plan *core, int id)
{
    if (core->run.flying[id].end && core->p.target.copy_wait) core->p.target.copy_wait(core->p.target.context, id);
    core->run.flying[id].end = 0;
}

static void gcpi_far_wait_all(gcpi_plan *core)
{
    for (int id = 0; core->far_at && id < GCP_COPIES; id++) gcpi_far_wait(core, id);
}

/* Begins a copy, under the next number. Returns the number, to wait for. */
static int gcpi_copy_begin(gcpi_plan *core, unsigned char *to, const unsigned char *from, size_t bytes)
{
    const gcp_target *target = &core->p.target;
    int id = core->run.next_copy;
    gcpi_far_wait(core, id);
    core->run.next_copy = (id + 1) % GCP_COPIES;
    if (!target->copy_start) gcpi_bytes_copy(target, to, from, bytes);
    else target->copy_start(target->context, id, to, from, bytes);
    return id;
}

static void gcpi_far_start(gcpi_plan *core, const gcpi_task *t, int n)
{
    unsigned char *near = core->bound.slab + core->placed[n].offset, *far = core->bound.far + core->far_at[t->item];
    const int back = t->kind == GCPI_TASK_PREFETCH;
    const size_t bytes = core->p.items[t->item].bytes;
    int id = gcpi_copy_begin(core, back ? near : far, back ? far : near, bytes);
    gcpi_transfer *f = &core->run.flying[id];
    f->at = (size_t)core->placed[n].offset;
    f->end = f->at + bytes;
    f->item = t->item;
    f->back = back;
    if (!core->p.target.copy_start || core->opts.check) gcpi_far_wait(core, id);
}

/* Waits for the copies that must be done before the task (gcpi_meets). */
static void gcpi_far_meet(gcpi_plan *core, const gcpi_task *t, int n)
{
    for (int id = 0; core->far_at && id < GCP_COPIES; id++)
        if (gcpi_meets(&core->p, t, core->placed + n, &core->run.flying[id])) gcpi_far_wait(core, id);
}

/* Updates whose slots wait in far memory. */

/* A piece of a parameter on its way through the workspace: where its slots lie there, `slot` bytes apart. in, out:
   numbers of the copies of its slots. */
typedef struct gcpi_slots_piece {
    unsigned char *place;
    size_t slot, first, count;
    int in[2], out[2];
} gcpi_slots_piece;

/* back: from far memory, where the call of the whole has its slots */
static void gcpi_slots_copy(gcpi_plan *core, const gcp_call *whole, gcpi_slots_piece *x, int back)
{
    for (int k = 0; k < core->slots; k++) {
        unsigned char *far = (unsigned char *)((gcp_real *)whole->out[1 + k].data + x->first),
                      *near = x->place + (size_t)k * x->slot;
        (back ? x->in : x->out)[k] =
            gcpi_copy_begin(core, back ? near : far, back ? far : near, x->count * sizeof(gcp_real));
    }
}

static void gcpi_slots_wait(const gcpi_plan *core, const int *ids)
{
    for (int k = 0; k < core->slots && core->p.target.copy_wait; k++)
        core->p.target.copy_wait(core->p.target.context, ids[k]);
}

static void gcpi_slots_piece_of(const gcpi_plan *core, const gcp_call *c, size_t count, size_t index,
                                gcpi_slots_piece *x)
{
    x->first = index * GCPI_SLOTS_PIECE;
    x->count = GCPI_MIN((size_t)GCPI_SLOTS_PIECE, count - x->first);
    x->slot = gcpi_slots_place(count);
    x->place = (unsigned char *)c->workspace + (index % 2) * (size_t)core->slots * x->slot;
}

static void gcpi_slots_update(const gcpi_plan *core, const gcp_call *whole, const gcpi_slots_piece *x)
{
    gcp_call call = *whole;
    gcp_view from[3] = { whole->in[0], whole->in[1], whole->in[2] },
             to[3] = { whole->out[0], whole->out[1], whole->out[2] };
    const gcp_shape shape = { 1, { 1, 1, 1, (int)x->count } };
    from[0].data = (gcp_real *)from[0].data + x->first;
    to[0].data = (gcp_real *)to[0].data + x->first;
    for (int k = 0; k < core->slots; k++) to[1 + k].data = x->place + (size_t)k * x->slot;
    from[0].shape = to[0].shape = to[1].shape = to[2].shape = shape;
    from[0].pitch = to[0].pitch = to[1].pitch = to[2].pitch = (ptrdiff_t)x->count;
    call.in = from;
    call.out = to;
    gcpi_row_for(&core->p.target, NULL, GCP_ROW_UPDATE)->forward(&call);
}

/* While a piece is updated, the next one arrives, in the place that the one before it has left. An update is done piece
   by piece, so bits are those of the whole. gcp_measure changes no slots. */
static void gcpi_run_far_update(gcpi_plan *core, const gcp_call *whole)
{
    const size_t count = gcpi_count(whole->in[0].shape), pieces = (count + GCPI_SLOTS_PIECE - 1) / GCPI_SLOTS_PIECE;
    const int back = core->run.purpose != GCPI_TO_MEASURE;
    gcpi_slots_piece x[2];
    for (size_t i = 0; i <= pieces; i++) {
        gcpi_slots_piece *next = &x[i % 2], *now = &x[(i + 1) % 2];
        if (i > 1 && back) gcpi_slots_wait(core, next->out);
        if (i < pieces) {
            gcpi_slots_piece_of(core, whole, count, i, next);
            gcpi_slots_copy(core, whole, next, 1);
        }
        if (i == 0) continue;
        gcpi_slots_wait(core, now->in);
        gcpi_slots_update(core, whole, now);
        if (back) gcpi_slots_copy(core, whole, now, 0);
    }
    if (back) gcpi_slots_wait(core, x[(pieces + 1) % 2].out);
}

/* ==== src/run/calls.h ==== */

/* Calls of ops, groups, updates: the views that they are given. */

/* The bytes of an item. offset: its place in the slab; -1: it lies in the state, with its root's parameter. NULL: in
   neither. */
static void *gcpi_item_data(const gcpi_plan *core, int item, ptrdiff_t offset)
{
    const gcpi_item *x = &core->p.items[item];
    const gcpi_tensor *root = &core->p.tape->tensors[core->p.items[x->root].tensor];
    if (offset >= 0) return core->bound.slab + offset;
    if (root->parameter < 0) return NULL;
    return core->p.tape->state + core->p.tape->parameters[root->parameter].offset + x->offset;
}

typedef struct gcpi_call_space {
    gcp_view in[GCP_MAX_INPUTS], din[GCP_MAX_INPUTS], out[GCP_MAX_OUTPUTS], dout[GCP_MAX_OUTPUTS];
} gcpi_call_space;

static void gcpi_view_empty(const gcpi_plan *core, gcp_view *v, int tensor, int gradient)
{
    const gcpi_tensor *e = &core->p.tape->tensors[tensor];
    v->data = NULL;
    v->shape = e->shape;
    v->dtype = gradient ? GCP_DTYPE_REAL : e->dtype;
    v->pitch = e->shape.d[3];
    v->accumulate = 0;
}

/* Fills the call's views of the task's operands. Operand k is placed at in->placed[n + k]. */
static void gcpi_call_operands(const gcpi_plan *core, const gcpi_task *t, int n, gcpi_call_space *s)
{
    const gcpi_problem *p = &core->p;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        int index = o->role % GCPI_ROLES, gradient = o->role >= GCPI_ROLE_DIN;
        gcp_view *v = o->role >= GCPI_ROLE_DOUT  ? &s->dout[index]
                      : gradient                 ? &s->din[index]
                      : o->role >= GCPI_ROLE_OUT ? &s->out[index]
                                                 : &s->in[index];
        gcpi_view_empty(core, v, p->items[o->item].tensor, gradient);
        v->data = gcpi_item_data(core, o->item, core->placed[n + k].offset);
        v->pitch = p->items[o->item].pitch;
        v->accumulate = o->mode == GCPI_ADD ||
                        (o->mode == GCPI_WRITE && p->items[o->item].pinned == GCPI_PINNED_ALWAYS &&
                         core->run.numbers.micro > 0);
    }
}

static void gcpi_call_fill(const gcpi_plan *core, const gcpi_task *t, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_op *op = &core->p.tape->ops[t->op];
    for (int i = 0; i < op->inputs; i++) {
        gcpi_view_empty(core, &s->in[i], gcpi_edge(core->p.tape, op, i), 0);
        gcpi_view_empty(core, &s->din[i], gcpi_edge(core->p.tape, op, i), 1);
    }
    for (int j = 0; j < op->outputs; j++) {
        gcpi_view_empty(core, &s->out[j], op->out + j, 0);
        gcpi_view_empty(core, &s->dout[j], op->out + j, 1);
    }
    gcpi_call_operands(core, t, n, s);
    c->attributes = op->context ? op->context : (const void *)&op->attributes;
    c->inputs = op->inputs; c->outputs = op->outputs;
}

/* What an op, or the library's own task, may write besides its operands. Around an op's the guards of .check lie. */
typedef struct gcpi_space { unsigned char *at; size_t size, guard; } gcpi_space;
static gcpi_space gcpi_workspace_of(const gcpi_plan *core, const gcpi_task *t)
{
    gcpi_space w;
    w.guard = t->kind <= GCPI_TASK_BACKWARD && t->workspace ? core->p.guard : 0;
    w.size = t->workspace - 2 * w.guard;
    w.at = core->bound.slab + gcpi_round(GCPI_NUMBERS_BYTES, core->p.target.align) + w.guard;
    return w;
}

static void gcpi_call_init(const gcpi_plan *core, const gcpi_task *t, int row, gcp_call *c)
{
    memset(c, 0, sizeof *c);
    c->row = row;
    c->attributes = &core->opts;
    c->workspace = t->workspace ? gcpi_workspace_of(core, t).at : NULL;
    c->numbers = (const gcp_step_numbers *)(void *)core->bound.slab;
    c->ordinal = (uint64_t)t->op;
    c->training = core->p.training;
    c->target = &core->p.target;
}

static void gcpi_call_begin(const gcpi_plan *core, const gcpi_task *t, int row, gcp_call *c, gcpi_call_space *s)
{
    gcpi_call_init(core, t, row, c);
    c->in = s->in; c->out = s->out; c->din = s->din; c->dout = s->dout;
}

/* A group, or a single op that could be a group, as a call of GCP_ROW_APPLY. */
static void gcpi_apply_call(const gcpi_plan *core, const gcpi_task *t, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_op *last = &core->p.tape->ops[t->op];
    gcpi_call_begin(core, t, GCP_ROW_APPLY, c, s);
    memset(s->in, 0, 6 * sizeof *s->in);
    memset(s->out, 0, 2 * sizeof *s->out);
    gcpi_call_operands(core, t, n, s);
    c->attributes = gcpi_is_part(last, GCPI_PART_RECTIFIER) ? (const void *)&last->attributes : NULL;
    c->inputs = 6; c->outputs = 2;
}

static void gcpi_run_group(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_apply_call(core, t, n, &call, &space);
    gcpi_row_for(&core->p.target, NULL, GCP_ROW_APPLY)->forward(&call);
}

static void gcpi_op_call(const gcpi_plan *core, const gcpi_instruction *i, int n, gcp_call *c, gcpi_call_space *s)
{
    const gcpi_task *t = &core->p.tasks[i->task];
    gcpi_call_begin(core, t, (int)core->p.tape->ops[t->op].kind, c, s);
    c->training &= !gcpi_norm_is_fixed(&core->p, &core->p.tape->ops[t->op]);
    c->commit = i->letter == 'F' && core->p.training && core->run.purpose == GCPI_TO_STEP;
    gcpi_call_fill(core, t, n, c, s);
}

static void gcpi_run_op(const gcpi_plan *core, const gcpi_instruction *i, int n)
{
    const gcpi_task *t = &core->p.tasks[i->task];
    const gcp_op *row = gcpi_row_for(&core->p.target, &core->p.tape->ops[t->op], 0);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(core, i, n, &call, &space);
    (t->kind == GCPI_TASK_FORWARD ? row->forward : row->backward)(&call);
}

/* A view of data as reals with the item's shape: the item itself, or values, slots and a count in the state. */
static gcp_view gcpi_view_like(const gcpi_plan *core, int item, void *data)
{
    gcp_view v;
    gcpi_view_empty(core, &v, core->p.items[item].tensor, 1);
    v.data = data;
    v.pitch = core->p.items[item].pitch;
    return v;
}

static void gcpi_run_seed(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(core, t, GCP_ROW_SEED, &call, &space);
    space.out[0] = gcpi_view_like(core, core->p.operands[t->operands].item, core->bound.slab + core->placed[n].offset);
    call.outputs = 1;
    call.attributes = &core->run.share;
    gcpi_row_for(&core->p.target, NULL, GCP_ROW_SEED)->forward(&call);
}

static void gcpi_run_gradient_norm(const gcpi_plan *core, const gcpi_task *t, int n)
{
    const gcp_op *row = gcpi_row_for(&core->p.target, NULL, GCP_ROW_NORM);
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(core, t, GCP_ROW_NORM, &call, &space);
    call.inputs = 1;
    for (int k = 0; k < t->count; k++) {
        int item = core->p.operands[t->operands + k].item;
        space.in[0] = gcpi_view_like(core, item, gcpi_item_data(core, item, core->placed[n + k].offset));
        space.in[0].accumulate = k > 0;
        row->forward(&call);
    }
    row->backward(&call);
}

typedef struct gcpi_update_call { gcp_call call; gcp_view in[3], out[3], none[3]; } gcpi_update_call;
static void gcpi_update_call_fill(const gcpi_plan *core, const gcpi_task *t, int n, gcpi_update_call *u)
{
    int item = core->p.operands[t->operands].item;
    memset(u->none, 0, sizeof u->none);
    gcpi_call_init(core, t, GCP_ROW_UPDATE, &u->call);
    u->call.in = u->in; u->call.out = u->out; u->call.din = u->call.dout = u->none;
    u->call.inputs = 3; u->call.outputs = 3;
    u->in[0] = gcpi_view_like(core, item, gcpi_item_data(core, item, core->placed[n].offset));
    u->in[1] = gcpi_view_like(core, item, gcpi_count_at(core->p.tape, t->parameter));
    u->in[2] = gcpi_view_like(core, item, core->p.rates ? core->p.rates[t->parameter] : NULL);
    u->out[0] = gcpi_view_like(core, item, gcpi_value_at(core->p.tape, t->parameter));
    for (int k = 0; k < 2; k++)
        u->out[1 + k] = gcpi_view_like(core, item,
                                       core->slots > k ? gcpi_slot_at(core->p.tape, t->parameter, k) : NULL);
}

static void gcpi_run_move(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_call call;
    gcpi_call_space space;
    gcpi_call_begin(core, t, GCPI_ROW_COPY, &call, &space);
    space.in[0] = gcpi_view_like(core, t->item, core->bound.slab + core->placed[n].offset);
    space.out[0] = gcpi_view_like(core, t->item, core->bound.slab + core->placed[n + 1].offset);
    call.inputs = call.outputs = 1;
    gcpi_row_for(&core->p.target, NULL, GCPI_ROW_COPY)->forward(&call);
}

static void gcpi_run_hook(const gcpi_plan *core, const gcpi_task *t, int n)
{
    gcp_gradient_hook hook = t->kind == GCPI_TASK_HOOK ? core->opts.on_gradient : core->opts.on_wait;
    const gcpi_parameter *p = &core->p.tape->parameters[t->parameter];
    if (hook && core->run.purpose == GCPI_TO_STEP)
        hook(core->opts.hook_context, gcpi_handle(core->p.tape, p->tensor),
             (gcp_real *)gcpi_item_data(core, core->p.operands[t->operands].item, core->placed[n].offset),
             gcpi_count(p->shape));
}

/* ==== src/run/check.h ==== */

/* What .check looks at: what each instruction left behind. */

static gcp_at gcpi_instruction_at(const gcpi_plan *core, int i)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    int by_item = t->kind >= GCPI_TASK_OFFLOAD,
        op = by_item ? core->p.tape->tensors[core->p.items[t->item].tensor].producer : t->op;
    return (t->kind <= GCPI_TASK_BACKWARD || by_item) && op >= 0 ? core->p.tape->ops[op].at : core->opts.at;
}

/* .check: a recomputed output must have the hash of its first value; the first NaN is an error of the op that made it;
   what lies around a workspace must stay; buffers are overwritten with NaNs when they die. */
typedef struct gcpi_looked {
    uint64_t hash;
    int nan;
} gcpi_looked;

static void gcpi_look_bytes(const gcp_target *target, const unsigned char *data, size_t size, int real, gcpi_looked *l)
{
    gcp_real some[4096 / sizeof(gcp_real)];
    for (size_t first = 0; first < size; first += sizeof some) {
        size_t n = GCPI_MIN(sizeof some, size - first);
        gcpi_bytes_copy(target, some, data + first, n);
        for (size_t i = 0; i < n; i++) l->hash = gcpi_hash_byte(l->hash, ((unsigned char *)some)[i]);
        for (size_t i = 0; real && i < n / sizeof *some; i++) l->nan |= isnan(some[i]) != 0;
    }
}

static gcpi_looked gcpi_look(const gcpi_plan *core, int item, ptrdiff_t offset)
{
    const gcpi_item *x = &core->p.items[item];
    const gcpi_tensor *e = &core->p.tape->tensors[x->tensor];
    const unsigned char *data = (const unsigned char *)gcpi_item_data(core, item, offset);
    int real = x->kind == GCPI_GRADIENT_ITEM || e->dtype == GCP_DTYPE_REAL, dense = !real || x->pitch == e->shape.d[3];
    size_t rows = dense ? 1 : gcpi_pixels(e->shape),
           width = dense ? x->bytes : (size_t)e->shape.d[3] * sizeof(gcp_real);
    gcpi_looked l = { GCPI_HASH, 0 };
    for (size_t r = 0; r < rows; r++)
        gcpi_look_bytes(&core->p.target, data + r * (size_t)x->pitch * sizeof(gcp_real), width, real, &l);
    return l;
}

/* Before the first instruction: the state and the inputs hold no NaN. */
static void gcpi_check_given(const gcpi_plan *core, gcp_at at)
{
    char name[128];
    for (int i = 1; i < core->p.tensors; i++) {
        int kind = core->p.items[i].kind,
            there = kind == GCPI_STATE_ITEM || (kind == GCPI_INPUT_ITEM && core->where[i] >= 0);
        if (there && gcpi_look(core, i, core->where[i]).nan)
            gcpi_fail(core->p.tape, GCP_E_CHECK, at, "gcp_step", "'%s' holds a NaN before the step",
                      gcp_name(gcpi_handle(core->p.tape, i), name, sizeof name));
    }
}

/* Guards: a pattern on both sides of a workspace, which an op that stays inside leaves alone. */
enum { GCPI_GUARD = 0x5C };
static void gcpi_guards_set(const gcpi_plan *core, const gcpi_task *t)
{
    const gcpi_space w = gcpi_workspace_of(core, t);
    if (!w.guard) return;
    gcpi_bytes_fill(&core->p.target, w.at - w.guard, GCPI_GUARD, w.guard);
    gcpi_bytes_fill(&core->p.target, w.at + w.size, GCPI_GUARD, w.guard);
}
static int gcpi_guard_whole(const gcpi_plan *core, const unsigned char *guard, size_t size)
{
    unsigned char some[256];
    for (size_t n; size > 0; guard += n, size -= n) {
        n = GCPI_MIN(size, sizeof some);
        gcpi_bytes_copy(&core->p.target, some, guard, n);
        for (size_t i = 0; i < n; i++)
            if (some[i] != GCPI_GUARD) return 0;
    }
    return 1;
}
static void gcpi_guards_check(const gcpi_plan *core, const gcpi_task *t, gcp_at at)
{
    const gcpi_space w = gcpi_workspace_of(core, t);
    char name[128];
    const int before = gcpi_guard_whole(core, w.at - w.guard, w.guard);
    if (before && gcpi_guard_whole(core, w.at + w.size, w.guard)) return;
    gcpi_fail(core->p.tape, GCP_E_CHECK, at, gcpi_task_name(&core->p, t, name, sizeof name),
              "its %s writes %s its workspace of %zu bytes", t->kind == GCPI_TASK_BACKWARD ? "backward" : "forward",
              before ? "behind" : "before", w.size);
}

static void gcpi_check_instruction(const gcpi_plan *core, int i, int n)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    int makes = t->kind == GCPI_TASK_FORWARD || t->kind == GCPI_TASK_PREFETCH || t->kind == GCPI_TASK_BACKWARD;
    int letter = core->list.at[i].letter;
    char name[128], other[256];
    gcp_at at = gcpi_instruction_at(core, i);
    gcpi_guards_check(core, t, at);
    for (int k = 0; makes && k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        if (o->mode == GCPI_READ || core->placed[n + k].offset < 0) continue;
        gcpi_looked now = gcpi_look(core, o->item, core->placed[n + k].offset);
        gcpi_task_name(&core->p, t, name, sizeof name);
        gcpi_item_name(&core->p, o->item, other, sizeof other);
        if (t->kind == GCPI_TASK_BACKWARD) {
            if (now.nan)
                gcpi_fail(core->p.tape, GCP_E_CHECK, at, name, "its backward makes a NaN in the gradient of %s", other);
        } else if (letter != 'F' && core->hashes[o->item] != now.hash)
            gcpi_fail(core->p.tape, GCP_E_CHECK, at, name, "output %d %s with bits that differ from the first run's",
                      o->role - GCPI_ROLE_OUT, letter == 'P' ? "came back" : "was recomputed");
        else if (now.nan)
            gcpi_fail(core->p.tape, GCP_E_CHECK, at, name, "output %d has a NaN, but its inputs have none",
                      o->role - GCPI_ROLE_OUT);
        if (letter == 'F') core->hashes[o->item] = now.hash;
    }
    for (int d = core->dying_first[i]; d < core->dying_first[i + 1] && i + 1 < (int)core->list.count; d++)
        gcpi_bytes_fill(&core->p.target, core->bound.slab + core->buffers[core->dying[d]].offset, 0xFF,
                        core->buffers[core->dying[d]].bytes);
}

/* ==== src/run/execute.h ==== */

/* The executor: instruction after instruction, pairs in one pass. A pair is two instructions that run as one pass;
   so are updates behind each other. */

/* Pairs: two instructions that run as one pass and give the same bits as one after the other. The second writes where
   the first would have written, so that no instruction could read what is left out; or it reads what the first made
   while that is in cache, or still at hand. */

/* Index of a task's operand, or -1. */
static int gcpi_operand_at(const gcpi_plan *core, const gcpi_task *t, int role)
{
    for (int k = 0; k < t->count; k++) if (core->p.operands[t->operands + k].role == role) return k;
    return -1;
}

/* Whether operand b of task u (placed from placed[m] on) has the same bytes as operand a of task t (from placed[n] on),
   and both tasks write them without adding. */
static int gcpi_same_place(const gcpi_plan *core, const gcpi_task *t, int n, int a, const gcpi_task *u, int m, int b)
{
    if (a < 0 || b < 0) return 0;
    const gcpi_operand *x = &core->p.operands[t->operands + a], *y = &core->p.operands[u->operands + b];
    return x->mode == GCPI_WRITE && y->mode == GCPI_WRITE && core->p.items[x->item].pinned != GCPI_PINNED_ALWAYS &&
           core->p.items[y->item].pinned != GCPI_PINNED_ALWAYS && core->placed[n + a].offset >= 0 &&
           core->placed[n + a].offset == core->placed[m + b].offset &&
           core->p.items[x->item].pitch == core->p.items[y->item].pitch &&
           core->p.items[x->item].bytes == core->p.items[y->item].bytes;
}

/* conv2d and, next and in place, an addition, a rectifier or both. */
static int gcpi_conv_ends(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u)
{
    int reads = 0;
    if (t->kind != GCPI_TASK_FORWARD || u->kind != GCPI_TASK_FORWARD) return 0;
    const gcpi_op *op = &core->p.tape->ops[t->op], *first = &core->p.tape->ops[u->op] - (u->ops - 1);
    if (!gcpi_facts_of(op).with_group || !gcpi_fuses(&core->p.target, op)) return 0;
    if (!gcpi_is_part(first, GCPI_PART_ADD) && !gcpi_is_part(first, GCPI_PART_RECTIFIER)) return 0;
    for (int k = 0; k < u->count; k++)
        reads += core->p.operands[u->operands + k].item == op->out &&
                 core->p.operands[u->operands + k].mode == GCPI_READ;
    return reads == 1 && gcpi_same_place(core, t, n, gcpi_operand_at(core, t, GCPI_ROLE_OUT), u, n + t->count,
                                         gcpi_operand_at(core, u, GCPI_ROLE_OUT));
}

/* Backward of a rectifier and, next and in place, of the batch-norm whose output it rectifies. */
static int gcpi_batch_norm_begins(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u)
{
    if (t->kind != GCPI_TASK_BACKWARD || u->kind != GCPI_TASK_BACKWARD) return 0;
    const gcpi_op *op = &core->p.tape->ops[t->op], *norm = &core->p.tape->ops[u->op];
    int dx = gcpi_operand_at(core, t, GCPI_ROLE_DIN), dy = gcpi_operand_at(core, t, GCPI_ROLE_DOUT);
    if (!gcpi_is_part(op, GCPI_PART_RECTIFIER) || !gcpi_is_part(norm, GCPI_PART_NORM)) return 0;
    if (gcpi_edge(core->p.tape, op, 0) != norm->out || !gcpi_fuses(&core->p.target, norm) ||
        core->p.items[gcpi_edge(core->p.tape, norm, GCPI_NORM_BETA)].kind != GCPI_STATE_ITEM)
        return 0;
    return gcpi_same_place(core, t, n, dx, u, n + t->count, gcpi_operand_at(core, u, GCPI_ROLE_DIN)) && dy >= 0 &&
           core->placed[n + dy].offset == core->placed[n + dx].offset &&
           core->p.items[core->p.operands[t->operands + dy].item].pitch ==
               core->p.items[core->p.operands[t->operands + dx].item].pitch;
}

/* conv2d and the statistics of its output. */
static int gcpi_conv_sums(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u)
{
    (void)n;
    if (t->kind != GCPI_TASK_FORWARD || u->kind != GCPI_TASK_FORWARD || u->op != t->op + 1) return 0;
    return gcpi_stats_follow(&core->p, &core->p.tape->ops[t->op]);
}

/* A convolution, with the call of the next instruction in the same pass. */
static void gcpi_run_conv(const gcpi_plan *core, int i, int n, gcp_call *next)
{
    const gcpi_op *op = &core->p.tape->ops[core->p.tasks[core->list.at[i].task].op];
    const gcpi_facts facts = gcpi_facts_of(op);
    gcp_call call;
    gcpi_call_space space;
    gcpi_op_call(core, &core->list.at[i], n, &call, &space);
    call.fused = next;
    if (core->p.target.kernels) core->p.target.kernels[op->kind].forward(&call);
    else if (next->row == GCP_ROW_APPLY) facts.with_group(&call, next);
    else facts.with_stats(&call, next);
}

static void gcpi_run_conv_ends(const gcpi_plan *core, int i, int n)
{
    gcp_call apply;
    gcpi_call_space space;
    const int count = core->p.tasks[core->list.at[i].task].count;
    gcpi_apply_call(core, &core->p.tasks[core->list.at[i + 1].task], n + count, &apply, &space);
    gcpi_run_conv(core, i, n, &apply);
}

static void gcpi_run_conv_sums(const gcpi_plan *core, int i, int n)
{
    gcp_call stats;
    gcpi_call_space space;
    gcpi_op_call(core, &core->list.at[i + 1], n + core->p.tasks[core->list.at[i].task].count, &stats, &space);
    gcpi_run_conv(core, i, n, &stats);
}

static void gcpi_run_batch_norm_begins(const gcpi_plan *core, int i, int n)
{
    const gcpi_op *norm = &core->p.tape->ops[core->p.tasks[core->list.at[i + 1].task].op];
    gcp_call call, rectifier;
    gcpi_call_space space, others;
    gcpi_op_call(core, &core->list.at[i], n, &rectifier, &others);
    gcpi_op_call(core, &core->list.at[i + 1], n + core->p.tasks[core->list.at[i].task].count, &call, &space);
    space.in[GCPI_NORM_BETA].data = gcpi_item_data(core, gcpi_edge(core->p.tape, norm, GCPI_NORM_BETA), -1);
    call.fused = &rectifier;
    gcpi_row_for(&core->p.target, norm, 0)->backward(&call);
}

/* i: an instruction; its operands are placed from placed[n] on. t, u: its task and the next instruction's. */
typedef struct gcpi_pair {
    int (*fits)(const gcpi_plan *core, const gcpi_task *t, int n, const gcpi_task *u);
    void (*run)(const gcpi_plan *core, int i, int n);
} gcpi_pair;
static const gcpi_pair gcpi_pairs[] = { { gcpi_conv_ends, gcpi_run_conv_ends },
                                        { gcpi_conv_sums, gcpi_run_conv_sums },
                                        { gcpi_batch_norm_begins, gcpi_run_batch_norm_begins } };

static const gcpi_pair *gcpi_pair_at(const gcpi_plan *core, int i, int n)        /* NULL: instruction i runs alone */
{
    if (i + 1 >= (int)core->list.count || core->opts.check || core->opts.no_groups) return NULL;
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task], *u = &core->p.tasks[core->list.at[i + 1].task];
    for (size_t k = 0; k < sizeof gcpi_pairs / sizeof *gcpi_pairs; k++)
        if (gcpi_pairs[k].fits(core, t, n, u)) return &gcpi_pairs[k];
    return NULL;
}

/* Updates behind each other are one call where the target's row takes them: each is the .fused of the one before. How
   many instructions from i on that are, 1 where there is nothing to join. */
static int gcpi_updates_at(const gcpi_plan *core, int i)
{
    const gcp_op *kernels = core->p.target.kernels;
    int count = 1;
    if (core->p.tasks[core->list.at[i].task].kind != GCPI_TASK_UPDATE) return 1;
    if (!kernels || !(kernels[GCP_ROW_UPDATE].flags & GCP_FLAG_FUSED)) return 1;
    if (core->p.far_slots || core->opts.check || core->opts.no_groups) return 1;
    while (count < GCP_MAX_UPDATES && i + count < (int)core->list.count &&
           core->p.tasks[core->list.at[i + count].task].kind == GCPI_TASK_UPDATE)
        count++;
    return count;
}
static void gcpi_run_updates(gcpi_plan *core, int i, int n, int count)
{
    gcpi_update_call u[GCP_MAX_UPDATES];
    if (core->run.numbers.micro + 1 != core->run.numbers.micros) return;
    for (int k = 0; k < count; k++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i + k].task];
        gcpi_update_call_fill(core, t, n, &u[k]);
        if (k > 0) u[k - 1].call.fused = &u[k].call;
        n += t->count;
    }
    if (core->p.far_slots) gcpi_run_far_update(core, &u[0].call);
    else gcpi_row_for(&core->p.target, NULL, GCP_ROW_UPDATE)->forward(&u[0].call);
}

static void gcpi_run_instruction(gcpi_plan *core, int i, int n)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    int last = core->run.numbers.micro + 1 == core->run.numbers.micros;
    gcpi_far_meet(core, t, n);
    gcpi_guards_set(core, t);
    switch (t->kind) {
    case GCPI_TASK_FORWARD: if (t->ops > 1) { gcpi_run_group(core, t, n); break; }  /* fall through */
    case GCPI_TASK_BACKWARD: gcpi_run_op(core, &core->list.at[i], n); break;
    case GCPI_TASK_SEED: gcpi_run_seed(core, t, n); break;
    case GCPI_TASK_GRADIENT_NORM: if (last) gcpi_run_gradient_norm(core, t, n); break;
    case GCPI_TASK_UPDATE: gcpi_run_updates(core, i, n, 1); break;
    case GCPI_TASK_HOOK: case GCPI_TASK_WAIT: if (last) gcpi_run_hook(core, t, n); break;
    case GCPI_TASK_OFFLOAD: case GCPI_TASK_PREFETCH: gcpi_far_start(core, t, n); break;
    case GCPI_TASK_MOVE: gcpi_run_move(core, t, n); break;
    default: break;
    }
    if (core->opts.check && core->run.purpose != GCPI_TO_MEASURE) gcpi_check_instruction(core, i, n);
}

/* A pair, or several updates. */
static void gcpi_run_together(gcpi_plan *core, const gcpi_pair *pair, int i, int n, int count)
{
    for (int k = 0, m = n; k < count; k++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i + k].task];
        gcpi_far_meet(core, t, m);
        m += t->count;
    }
    if (pair) pair->run(core, i, n);
    else gcpi_run_updates(core, i, n, count);
}

/* Issues the whole list. A device's first error gets the line of the op that was issued last. */
static void gcpi_issue(void *plan)
{
    gcpi_plan *core = (gcpi_plan *)plan;
    const gcp_target *target = &core->p.target;
    for (int i = 0, n = 0; i < (int)core->list.count; i++) {
        const gcpi_pair *pair = gcpi_pair_at(core, i, n);
        const int count = pair ? 2 : gcpi_updates_at(core, i), end = i + count;
        const char *text;
        char name[128];
        if (count > 1) gcpi_run_together(core, pair, i, n, count);
        else gcpi_run_instruction(core, i, n);
        for (; i < end; i++) n += core->p.tasks[core->list.at[i].task].count;
        const gcpi_task *t = &core->p.tasks[core->list.at[--i].task];
        if (!target->device || (text = target->device->trouble(target->context)) == NULL) continue;
        gcpi_fail(core->p.tape, GCP_E_DEVICE, gcpi_instruction_at(core, i),
                  gcpi_task_name(&core->p, t, name, sizeof name),
                  "%s: %s", target->name, text);
        break;
    }
    gcpi_far_wait_all(core);
    core->run.next_copy = 0;
}
GCPI_COLD                              /* at -Og: code that runs once per plan or step */

/* ==== src/run/step.h ==== */

/* A step: its numbers, checks and counters. */

static double gcpi_root_value(const gcpi_plan *core)
{
    const gcpi_tensor *e = &core->p.tape->tensors[core->p.root];
    gcp_real value = 0;
    if (gcpi_count(e->shape) == 1 && e->dtype == GCP_DTYPE_REAL)
        gcpi_bytes_copy(&core->p.target, &value, gcpi_item_data(core, core->p.root, core->where[core->p.root]),
                        sizeof value);
    return (double)value;
}

static void gcpi_numbers_fill(gcpi_plan *core, const gcp_step_opts *o)
{
    gcp_tape *t = core->p.tape;
    gcpi_counters counters = gcpi_counters_read(t);
    unsigned char bytes[GCPI_NUMBERS_BYTES] = { 0 };
    core->run.numbers.lr = o->lr;
    core->run.numbers.step = counters.steps;
    core->run.numbers.updates = counters.updates;
    core->run.numbers.seed = t->seed;
    core->run.numbers.first_sample = o->first_sample;
    core->run.numbers.micro = core->run.micro;
    core->run.numbers.micros = GCPI_MAX(1, core->opts.accumulate);
    core->run.numbers.gradient_scale = 1.0 / core->run.numbers.micros;
    const double share = gcpi_option(o->share, 1);
    if (share != core->run.share) gcpi_recordings_forget(core);         /* they have it as a constant */
    core->run.share = share;
    memcpy(bytes, &core->run.numbers, sizeof core->run.numbers);
    gcpi_bytes_copy(&core->p.target, core->bound.slab, bytes, sizeof bytes);
}

/* Counts one more update of each parameter that the plan trains, if its optimiser has slots. */
static void gcpi_counts_advance(const gcpi_plan *core)
{
    enum { SOME = 512 };
    const gcp_tape *t = core->p.tape;
    uint64_t some[SOME];
    for (int first = 0; core->slots && first < t->parameter_count; first += SOME) {
        int n = GCPI_MIN((int)SOME, t->parameter_count - first);
        gcpi_bytes_copy(&t->home, some, gcpi_count_at(t, first), (size_t)n * sizeof *some);
        for (int i = 0; i < n; i++) some[i] += (uint64_t)gcpi_trained(&core->p, first + i);
        gcpi_bytes_copy(&t->home, gcpi_count_at(t, first), some, (size_t)n * sizeof *some);
    }
}

static void gcpi_counters_advance(gcpi_plan *core)
{
    gcpi_counters c;
    core->run.micro = (core->run.micro + 1) % core->run.numbers.micros;
    if (core->run.purpose == GCPI_TO_STEP) core->p.tape->summing = core->run.micro ? core->number : 0;
    c.steps = core->run.numbers.step + 1;
    c.updates = core->run.numbers.updates + (core->run.micro == 0);
    gcpi_bytes_copy(&core->p.tape->home, core->p.tape->state, &c, sizeof c);
    if (core->run.micro == 0) gcpi_counts_advance(core);
}

/* An error that names the first input that the list reads and that was not written. */
static void gcpi_unwritten_fail(const gcpi_plan *core, gcp_at at, const char *what)
{
    char name[128];
    int i = 0;
    while (core->p.items[i].kind != GCPI_INPUT_ITEM || core->where[i] < 0 || core->bound.given[i]) i++;
    gcpi_fail(core->p.tape, GCP_E_INPUT, at, what, "'%s' was not written since %s",
              gcp_name(gcpi_handle(core->p.tape, i), name, sizeof name), core->bound.since);
}
/* The same part of all inputs' samples must have been given: that of the first that was written in part. */
static int gcpi_samples_agree(gcpi_plan *core, gcp_at at, const char *what)
{
    const gcp_tape *t = core->p.tape;
    char name[96], other[96];
    int first = -1, first_all = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int x = 0; x < core->p.tensors; x++) {
            const int given = core->p.items[x].kind == GCPI_INPUT_ITEM ? core->bound.given[x] : 0;
            const int all = given ? gcpi_by_samples(t->tensors[x].shape).d[0] : 0;
            if (!pass && first < 0 && given < all) { first = x; first_all = all; }
            if (!pass || !given || first < 0 || !core->samples[x]) continue;
            if ((int64_t)given * first_all == (int64_t)core->bound.given[first] * all) continue;
            gcp_name(gcpi_handle(core->p.tape, first), name, sizeof name);
            gcp_name(gcpi_handle(core->p.tape, x), other, sizeof other);
            gcpi_fail(core->p.tape, GCP_E_INPUT, at, what,
                      "%d of %d samples of '%s' were written, and %d of %d of '%s'", core->bound.given[first],
                      first_all, name, given, all, other);
            return 0;
        }
    core->bound.some = first >= 0;
    return 1;
}

/* Whether this plan may run its next micro-batch. If so, it is the tape's running plan from now on. */
static int gcpi_may_run(gcpi_plan *core, gcp_at at, const char *what)
{
    gcp_tape *t = core->p.tape;
    if (core->run.purpose == GCPI_TO_MEASURE) return 1;
    if (core->bound.unwritten) { gcpi_unwritten_fail(core, at, what); return 0; }
    if (core->bound.some && !gcpi_samples_agree(core, at, what)) return 0;
    if (core->run.micro && t->runner != core->number) {
        gcpi_sums_forget(core);
        gcpi_fail(t, GCP_E_BIND, at, what, "another plan ran between the micro-batches of this one");
        return 0;
    }
    if (core->p.training && core->run.purpose == GCPI_TO_STEP && t->summing &&
        (t->summing != core->number || !core->run.micro)) {
        t->summing = 0;
        gcpi_fail(t, GCP_E_BIND, at, what,
                  "the plan before was not through its micro-batches: the gradients that it summed are lost");
        return 0;
    }
    if (core->run.purpose == GCPI_TO_STEP) t->runner = core->number;
    gcpi_touch(core);
    return 1;
}

/* Whether a run failed. If so, its recording is useless, and so are the gradients that micro-batches have summed. */
static int gcpi_broken_off(gcpi_plan *core, gcp_at at, const char *what)
{
    if (!core->p.tape->code && !gcpi_trouble(core->p.tape, &core->p.target, at, what)) return 0;
    gcpi_recordings_forget(core);
    gcpi_sums_forget(core);
    return 1;
}

/* What a .feed left on the tape. */
typedef struct gcpi_fed { gcp_code code; char message[GCP_MAX_ERROR]; } gcpi_fed;

/* The next step's inputs, while a device computes this one. An error is put by until the step is done. */
static void gcpi_feed(gcpi_plan *core, const gcp_step_opts *o, gcpi_fed *fed)
{
    gcp_tape *t = core->p.tape;
    const gcp_device *device = core->p.target.device;
    fed->code = GCP_OK;
    if (!o->feed || t->code || core->run.purpose != GCPI_TO_STEP) return;
    t->feeding = core->number;
    t->fed_at = o->at;
    if (device && device->behind) device->behind(core->p.target.context, 1);
    o->feed(o->feed_context);
    if (device && device->behind) device->behind(core->p.target.context, 0);
    t->feeding = 0;
    fed->code = t->code;
    memcpy(fed->message, t->message, sizeof fed->message);
    t->code = GCP_OK;
}

/* A device may record a step only if every step makes the same calls: no host code in between, always the same memory.
   way: which recording, as calls differ between the first, the last and other micro-batches. */
static void gcpi_start(gcpi_plan *core)
{
    const gcp_target *target = &core->p.target;
    int way = (core->run.numbers.micro > 0) + 2 * (core->run.numbers.micro + 1 == core->run.numbers.micros),
        by_host = (core->far_bytes || core->p.far_slots) && !target->copy_start;
    if (target->device && target->device->play && core->run.purpose == GCPI_TO_STEP && !core->opts.check &&
        !core->opts.on_gradient && !by_host)
        target->device->play(target->context, &core->run.recordings[way], gcpi_issue, core);
    else gcpi_issue(core);
}

static double gcpi_run(gcpi_plan *core, const gcp_step_opts *o, const char *what)
{
    gcp_tape *t = core->p.tape;
    gcpi_fed fed;
    if (!gcpi_may_run(core, o->at, what)) return (double)NAN;
    gcpi_numbers_fill(core, o);
    if (core->opts.check && core->run.purpose == GCPI_TO_STEP) gcpi_check_given(core, o->at);
    if (t->code) return (double)NAN;
    gcpi_start(core);
    /* a value that is a view of an input is read before .feed writes that; others do not wait for the device yet */
    const int viewed = o->feed && core->p.items[core->p.items[core->p.root].root].kind == GCPI_INPUT_ITEM;
    double value = viewed ? gcpi_root_value(core) : 0;
    gcpi_feed(core, o, &fed);
    if (gcpi_broken_off(core, o->at, what)) return (double)NAN;
    if (core->p.training && core->run.purpose != GCPI_TO_GRADCHECK) gcpi_counters_advance(core);
    if (!viewed) value = gcpi_root_value(core);
    if (gcpi_broken_off(core, o->at, what)) return (double)NAN;
    if (core->run.purpose != GCPI_TO_MEASURE) core->bound.ran = 1;
    if (fed.code) { t->code = fed.code; memcpy(t->message, fed.message, sizeof fed.message); }
    return value;
}

/* A plan with an optimiser needs a learning rate, another may have none. free: the rate may be left out. */
static int gcpi_rate_ok(const gcp_plan *plan, double *lr, int free, gcp_at at, const char *what)
{
    double given = *lr, rate = *lr = gcpi_option(given, 0);
    int trains = plan->core->opts.optimizer != GCP_OPTIMIZER_NONE;
    if (given != 0 && !trains)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, at, what, ".lr = %g, but the plan was made without .optimizer", rate);
    else if (given == 0 && trains && !free)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, at, what, ".lr is missing; GCP_ZERO says zero");
    else if (!(rate >= 0) || !gcpi_finite(rate))
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, at, what, ".lr = %g; at least 0, and finite", rate);
    return plan->tape->code == GCP_OK;
}

static int gcpi_share_ok(const gcp_plan *plan, const gcp_step_opts *o, const char *what)
{
    const double share = gcpi_option(o->share, 1);
    if (!(share >= 0 && share <= 1))
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, o->at, what, ".share = %.9g, in [0, 1]", share);
    else if (o->share != 0 && !plan->core->p.training)
        gcpi_refuse_plan(plan, GCP_E_ARGUMENT, o->at, what, ".share = %g, but an inference plan has no gradients",
                         share);
    return plan->tape->code == GCP_OK;
}

GCPI_DEF double gcp_step_at(gcp_plan *plan, gcp_step_opts o)
{
    if (gcpi_bound_check(plan, o.at, "gcp_step")) return (double)NAN;
    if (!plan->core->p.training) {
        gcpi_fail(plan->tape, GCP_E_PLAN, o.at, "gcp_step", "an inference plan: use gcp_forward");
        return (double)NAN;
    }
    if (!gcpi_rate_ok(plan, &o.lr, 0, o.at, "gcp_step") || !gcpi_share_ok(plan, &o, "gcp_step")) return (double)NAN;
    return gcpi_run(plan->core, &o, "gcp_step");
}

GCPI_DEF double gcp_forward_at(gcp_plan *plan, gcp_step_opts o)
{
    if (gcpi_bound_check(plan, o.at, "gcp_forward")) return (double)NAN;
    if (plan->core->p.training) {
        gcpi_fail(plan->tape, GCP_E_PLAN, o.at, "gcp_forward",
                  "a training plan: use gcp_step, or plan with .inference = 1");
        return (double)NAN;
    }
    if (!gcpi_rate_ok(plan, &o.lr, 1, o.at, "gcp_forward") || !gcpi_share_ok(plan, &o, "gcp_forward"))
        return (double)NAN;
    return gcpi_run(plan->core, &o, "gcp_forward");
}

/* ==== src/run/values.h ==== */

/* Values in and out: a plan's inputs, results, gradients. */

/* Copies samples [first, first + count) of a tensor between the user's dense array, which begins with the first of
   them, and their place in the slab or the state. Bits are copied as a whole alone. */
static void gcpi_copy_samples(const gcpi_plan *core, int item, unsigned char *user, int first, int count, int to_user)
{
    const gcpi_item *x = &core->p.items[item];
    const gcpi_tensor *e = &core->p.tape->tensors[x->tensor];
    const int real = x->kind == GCPI_GRADIENT_ITEM || e->dtype == GCP_DTYPE_REAL,
              dense = !real || x->pitch == e->shape.d[3] || e->shape.rank == 1;
    gcp_shape some = gcpi_by_samples(e->shape), before = some;
    some.d[0] = count; before.d[0] = first;
    const gcp_dtype type = real ? GCP_DTYPE_REAL : e->dtype;
    const size_t rows = dense ? 1 : gcpi_pixels(some), row = (size_t)x->pitch * sizeof(gcp_real),
                 width = gcpi_row_bytes(type, dense ? gcpi_count(some) : (size_t)e->shape.d[3]);
    unsigned char *data = (unsigned char *)gcpi_item_data(core, item, core->where[item]) +
                          (dense ? gcpi_row_bytes(type, gcpi_count(before)) : gcpi_pixels(before) * row);
    if (to_user) gcpi_rows_copy(&core->p.target, user, width, data, row, width, rows);
    else gcpi_rows_copy(&core->p.target, data, row, user, width, width, rows);
}
/* The whole tensor. */
static gcp_code gcpi_copy_dense(const gcpi_plan *core, int item, unsigned char *user, int to_user, gcp_at at)
{
    const gcp_shape shape = gcpi_by_samples(core->p.tape->tensors[core->p.items[item].tensor].shape);
    gcpi_copy_samples(core, item, user, 0, shape.d[0], to_user);
    return gcpi_trouble(core->p.tape, &core->p.target, at, to_user ? "gcp_read" : "gcp_write") ? core->p.tape->code
                                                                                               : GCP_OK;
}

/* A call on a value. feeds: it writes, which .feed may do to its own plan. */
typedef struct gcpi_access { gcp_plan *plan; gcp_tensor x; gcp_at at; const char *what; int feeds; } gcpi_access;

static gcp_code gcpi_access_fail(const gcpi_access *a, gcp_code code, const char *text, const char *since)
{
    char name[96];
    gcpi_fail(a->plan->tape, code, a->at, a->what, "'%s' %s%s", gcp_name(a->x, name, sizeof name), text, since);
    return code;
}

static gcp_code gcpi_access_check(const gcpi_access *a)
{
    gcp_code code = gcpi_usable_check(a->plan, a->at, a->what, a->feeds);
    if (code) return code;
    if (!gcpi_usable(a->plan->tape, a->x, a->at, a->what)) return a->plan->tape->code;
    return a->x.id < a->plan->core->p.tensors
               ? GCP_OK
               : gcpi_access_fail(a, GCP_E_ARGUMENT, "was recorded after the plan was made", "");
}

static gcpi_access gcpi_access_of(gcp_plan *plan, gcp_tensor x, gcp_at at, const char *what, int feeds)
{
    gcpi_access a;
    a.plan = plan; a.x = x; a.at = at; a.what = what; a.feeds = feeds;
    return a;
}

/* The k-th forward op that reads this item, and as which of its inputs; NULL: there are no more. */
static const gcpi_op *gcpi_reading_op(const gcpi_problem *p, int item, int k, int *input)
{
    for (int f = 0; f < p->forward; f++)
        for (int o = p->tasks[f].operands; o < p->tasks[f].operands + p->tasks[f].count; o++) {
            if (p->operands[o].item != item || p->operands[o].mode != GCPI_READ || k-- > 0) continue;
            *input = p->operands[o].role - GCPI_ROLE_IN;
            return &p->tape->ops[p->tasks[f].op];
        }
    return NULL;
}

/* Each label must be in the range of each op that reads it, or be the label that the op ignores. */
static gcp_code gcpi_labels_check(const gcpi_access *a, const int32_t *labels, size_t n)       /* the first n */
{
    gcp_tape *t = a->plan->tape;
    int input = 0;
    const gcpi_op *op;
    for (int k = 0; (op = gcpi_reading_op(&a->plan->core->p, a->x.id, k, &input)) != NULL; k++) {
        gcpi_label_range range = gcpi_label_range_of(t, op, input);
        for (size_t i = 0; range.count && i < n; i++) {
            if (gcpi_label_ok(&range, labels[i])) continue;
            char name[96], reader[128], ignored[48] = "";
            gcpi_name_text(t, op->name, reader, sizeof reader);
            if (range.ignores) snprintf(ignored, sizeof ignored, ", or the ignored %d", range.ignore);
            gcpi_fail(t, GCP_E_ARGUMENT, a->at, a->what, "element %zu of '%s' is %d; %s (%s:%d) reads 0 to %d%s", i,
                      gcp_name(a->x, name, sizeof name), (int)labels[i], reader, gcpi_basename(op->at.file),
                      op->at.line, range.count - 1, ignored);
            return GCP_E_ARGUMENT;
        }
    }
    return GCP_OK;
}

/* The label that losses reading x leave out of their mean. 0: none, an embedding reads x. -1: they differ. */
static int gcpi_ignored_label(const gcpi_plan *core, int x, int32_t *label)
{
    const gcpi_op *op;
    int input = 0, found = 0;
    for (int k = 0; (op = gcpi_reading_op(&core->p, x, k, &input)) != NULL; k++) {
        const int one = gcpi_facts_of(op).leaves_out;
        const int32_t ignored = gcpi_label_range_of(core->p.tape, op, input).ignore;
        if (k && (one != found || (one && ignored != *label))) return -1;
        found = one;
        *label = ignored;
    }
    return found;
}
/* Fills samples [given, all) of an input: with the ones given, again and again; labels with the ignored one. */
static void gcpi_write_rest(const gcpi_plan *core, int x, const unsigned char *data, int given, int all)
{
    enum { SOME = 1024 };
    const gcpi_tensor *e = &core->p.tape->tensors[x];
    int32_t label, some[SOME];
    const int labels = given < all && e->dtype == GCP_DTYPE_I32 && gcpi_ignored_label(core, x, &label) > 0;
    for (int i = 0; labels && i < SOME; i++) some[i] = label;
    if (labels) {
        const size_t each = gcpi_count(e->shape) / (size_t)all, end = each * (size_t)all;
        int32_t *at = (int32_t *)gcpi_item_data(core, x, core->where[x]);
        for (size_t i = each * (size_t)given, n; i < end; i += n) {
            n = GCPI_MIN(end - i, (size_t)SOME);
            gcpi_bytes_copy(&core->p.target, at + i, some, n * sizeof *some);
        }
        return;
    }
    for (int i = given, n; i < all; i += n) {
        n = GCPI_MIN(given, all - i);
        gcpi_copy_samples(core, x, (unsigned char *)(uintptr_t)data, i, n, 0);
    }
}

/* samples: how many of the input's are given. */
static gcp_code gcpi_write(const gcpi_access *a, const void *data, int samples)
{
    gcpi_plan *core = a->plan->core;
    const int x = a->x.id;
    const gcpi_tensor *e = &core->p.tape->tensors[x];
    unsigned char *from = (unsigned char *)(uintptr_t)data;
    const int all = gcpi_by_samples(e->shape).d[0];
    const size_t given = gcpi_count(e->shape) / (size_t)all * (size_t)samples;
    gcp_code code;
    if (core->where[x] < 0) return GCP_OK;           /* this plan does not read it */
    if (e->dtype == GCP_DTYPE_I32 && (code = gcpi_labels_check(a, (const int32_t *)data, given)) != GCP_OK) return code;
    gcpi_touch(core);
    gcpi_copy_samples(core, x, from, 0, samples, 0);
    gcpi_write_rest(core, x, from, samples, all);
    if (gcpi_trouble(core->p.tape, &core->p.target, a->at, a->what)) return core->p.tape->code;
    core->bound.unwritten -= !core->bound.given[x];
    core->bound.given[x] = samples;
    core->bound.some |= samples < all;
    return GCP_OK;
}

GCPI_DEF gcp_code gcp_write_at(gcp_plan *plan, gcp_tensor x, const void *data, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_write", 1);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    const gcpi_plan *core = plan->core;
    int kind = core->p.items[x.id].kind;
    if (!data || (kind != GCPI_INPUT_ITEM && kind != GCPI_STATE_ITEM))
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, data ? "is neither an input nor a parameter" : "from NULL", "");
    if (kind == GCPI_STATE_ITEM && gcpi_halfway(plan->tape, at, a.what)) return plan->tape->code;
    if (kind == GCPI_STATE_ITEM) return gcpi_copy_dense(core, x.id, (unsigned char *)(uintptr_t)data, 0, at);
    return gcpi_write(&a, data, gcpi_by_samples(core->p.tape->tensors[x.id].shape).d[0]);
}

/* Whether an input can be written in part: the loss leaves samples out, and these are samples. */
static gcp_code gcpi_some_check(const gcpi_access *a)
{
    char text[256], name[96];
    const gcpi_plan *core = a->plan->core;
    const gcp_tape *t = a->plan->tape;
    int o = core->joins_samples;
    if (core->leaves_out && core->samples[a->x.id]) return GCP_OK;
    if (!core->leaves_out && o < 0)
        return gcpi_access_fail(a, GCP_E_ARGUMENT, "cannot be written in part: the plan has no gcp_cross_entropy, "
                                                   "which alone leaves samples out", "");
    for (; core->leaves_out && (o < 0 || !gcpi_reads_whole(t, &t->ops[o], a->x.id)); o++) {}
    gcpi_name_text(t, t->ops[o].name, name, sizeof name);
    snprintf(text, sizeof text, "'%s' (%s:%d) %s%s", name, gcpi_basename(t->ops[o].at.file), t->ops[o].at.line,
             core->leaves_out ? "reads it whole" : "makes one value of several samples",
             gcpi_facts_of(&t->ops[o]).custom ? ", or lacks GCP_FLAG_SAMPLES_APART" : "");
    return gcpi_access_fail(a, GCP_E_ARGUMENT, "cannot be written in part: ", text);
}

GCPI_DEF gcp_code gcp_write_some_at(gcp_plan *plan, gcp_tensor x, const void *data, int samples, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_write_some", 1);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    const int all = gcpi_by_samples(plan->tape->tensors[x.id].shape).d[0];
    if (!data || plan->core->p.items[x.id].kind != GCPI_INPUT_ITEM)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, data ? "is no input" : "from NULL", "");
    char text[64];
    int32_t label;
    if (samples < all && plan->tape->tensors[x.id].dtype == GCP_DTYPE_I32 &&
        gcpi_ignored_label(plan->core, x.id, &label) < 0)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, "is read by ops that cannot ignore the same label", "");
    if (samples < all && samples >= 1 && (code = gcpi_some_check(&a)) != GCP_OK) return code;
    if (samples >= 1 && samples <= all) return gcpi_write(&a, data, samples);
    snprintf(text, sizeof text, "%d samples; 1 to %d are allowed", samples, all);
    return gcpi_access_fail(&a, GCP_E_ARGUMENT, "was given ", text);
}

/* Whether an item has a value to read: state always, an input once written, others once a step ran. */
static gcp_code gcpi_there(const gcpi_access *a, int item)
{
    const gcpi_plan *core = a->plan->core;
    int kind = core->p.items[core->p.items[item].root].kind;
    const int there = kind == GCPI_INPUT_ITEM ? core->bound.given[core->p.items[item].root] > 0 : core->bound.ran;
    if (kind == GCPI_STATE_ITEM || there) return GCP_OK;
    return gcpi_access_fail(
        a, GCP_E_INPUT, kind == GCPI_INPUT_ITEM ? "was not written since " : "has no value yet: no step has run since ",
        core->bound.since);
}

GCPI_DEF gcp_code gcp_read_at(gcp_plan *plan, gcp_tensor x, void *data, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_read", 0);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    const gcpi_item *item = &plan->core->p.items[x.id];
    int there = item->kind == GCPI_STATE_ITEM ||
                ((item->kind == GCPI_INPUT_ITEM || item->pinned) && plan->core->where[x.id] >= 0) ||
                (item->kind == GCPI_FORWARD_ITEM && plan->core->p.items[item->root].kind == GCPI_STATE_ITEM);
    if (!data || !there)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT,
                                data ? "is not kept: mark it with gcp_keep before planning" : "to NULL", "");
    code = gcpi_there(&a, x.id);
    return code ? code : gcpi_copy_dense(plan->core, x.id, (unsigned char *)data, 1, at);
}

GCPI_DEF gcp_code gcp_grad_at(gcp_plan *plan, gcp_tensor x, gcp_real *data, gcp_at at)
{
    gcpi_access a = gcpi_access_of(plan, x, at, "gcp_grad", 0);
    gcp_code code = gcpi_access_check(&a);
    if (code) return code;
    int item = plan->core->p.tensors + x.id;
    const char *none =
        gcpi_get(x)->kind == GCPI_PARAMETER && !plan->core->p.items[item].active
            ? "is frozen (gcp_freeze, .train or .freeze), or the loss does not depend on it"
            : "has no gradient that outlives the step: plan without an optimiser, or gcp_want_grad for an input";
    if (!data || !plan->core->p.items[item].pinned || plan->core->where[item] < 0)
        return gcpi_access_fail(&a, GCP_E_ARGUMENT, data ? none : "to NULL", "");
    code = gcpi_there(&a, item);
    return code ? code : gcpi_copy_dense(plan->core, item, (unsigned char *)data, 1, at);
}

GCPI_DEF ptrdiff_t gcp_ignored_at(gcp_plan *plan, gcp_tensor loss, gcp_at at)
{
    enum { SOME = 1024 };
    gcpi_access a = gcpi_access_of(plan, loss, at, "gcp_ignored", 0);
    if (gcpi_access_check(&a)) return -1;
    gcp_tape *t = plan->tape;
    const gcpi_plan *core = plan->core;
    const gcpi_op *op = t->tensors[loss.id].producer >= 0 ? &t->ops[t->tensors[loss.id].producer] : NULL;
    if (!op || !gcpi_facts_of(op).leaves_out) {
        gcpi_access_fail(&a, GCP_E_ARGUMENT, "is not made by gcp_cross_entropy", "");
        return -1;
    }
    int labels = gcpi_edge(t, op, 1);
    gcpi_label_range range = gcpi_label_range_of(t, op, 1);
    ptrdiff_t n = (ptrdiff_t)gcpi_count(t->tensors[labels].shape), ignored = 0;
    a.x = gcpi_handle(t, labels);
    if (core->where[labels] < 0) { gcpi_access_fail(&a, GCP_E_ARGUMENT, "is not read by this plan", ""); return -1; }
    if (gcpi_there(&a, labels)) return -1;
    for (ptrdiff_t first = 0; first < n; first += SOME) {
        int32_t some[SOME];
        ptrdiff_t count = GCPI_MIN((ptrdiff_t)SOME, n - first);
        gcpi_bytes_copy(&core->p.target, some, core->bound.slab + core->where[labels] + (size_t)first * sizeof *some,
                        (size_t)count * sizeof *some);
        for (ptrdiff_t i = 0; i < count; i++) ignored += some[i] == range.ignore;
    }
    return gcpi_trouble(t, &core->p.target, at, "gcp_ignored") ? -1 : ignored;
}

/* ==== src/run/training.h ==== */

/* What training needs beside steps: averages, the norm of gradients. Rates that change, too. */

/* What is no rate stays none, for gcp_step to refuse. */
static double gcpi_rate(double lr) { return lr == 0 ? GCP_ZERO : lr > 0 ? lr : (double)NAN; }
static double gcpi_warm(uint64_t step, uint64_t warmup) { return ((double)step + 1) / (double)warmup; }

GCPI_DEF double gcp_rate_cosine(double lr, uint64_t step, uint64_t warmup, uint64_t steps)
{
    if (step < warmup) return gcpi_rate(lr * gcpi_warm(step, warmup));
    if (!steps || !(lr >= 0)) return (double)NAN;
    if (step >= steps) return GCP_ZERO;
    const double share = (double)(step - warmup) / (double)(steps - warmup);
    return gcpi_rate(lr * 0.5 * (1 + cos(3.14159265358979323846 * share)));
}
GCPI_DEF double gcp_rate_steps(double lr, uint64_t step, uint64_t warmup, uint64_t every, double factor)
{
    if (step < warmup) return gcpi_rate(lr * gcpi_warm(step, warmup));
    return gcpi_rate(every ? lr * pow(factor, (double)((step - warmup) / every)) : lr);
}

GCPI_DEF double gcp_gradient_norm_at(gcp_plan *plan, gcp_at at)
{
    gcp_step_numbers n;
    if (gcpi_bound_check(plan, at, "gcp_gradient_norm")) return (double)NAN;
    const gcpi_plan *core = plan->core;
    if (core->opts.clip_norm <= 0 || !core->bound.ran) {
        gcpi_fail(plan->tape, GCP_E_PLAN, at, "gcp_gradient_norm", core->bound.ran ? "the plan has no .clip_norm"
                                                                                 : "no step has run yet");
        return (double)NAN;
    }
    gcpi_bytes_copy(&core->p.target, &n, core->bound.slab, sizeof n);
    return n.gradient_norm;
}

/* ---- averages: in order of recording, one behind the other ---- */

GCPI_DEF size_t gcp_average_bytes(const gcp_tape *t)
{
    size_t count = 0;
    for (int i = 0; t && i < t->parameter_count; i++) count += gcpi_count(t->parameters[i].shape);
    return count * sizeof(gcp_real);
}
static int gcpi_average_ok(gcp_tape *t, const void *memory, gcp_at at, const char *call)
{
    if (!t || t->code) return 0;
    const char *wrong = !memory                                ? "memory is NULL"
                        : (uintptr_t)memory % sizeof(gcp_real) ? "memory is not aligned to a gcp_real"
                        : !t->state ? "the state has no memory yet: call gcp_bind first"
                                    : NULL;
    if (wrong) gcpi_fail(t, GCP_E_STATE, at, call, "%s", wrong);
    return !wrong;
}
/* decay below 0: exchanges them */
static void gcpi_average_some(gcp_real *average, gcp_real *values, size_t count, double decay)
{
    for (size_t i = 0; i < count; i++) {
        const gcp_real value = values[i], old = average[i];
        if (decay < 0) { average[i] = value; values[i] = old; }
        else average[i] = decay > 0 ? (gcp_real)(decay * (double)old + (1 - decay) * (double)value) : value;
    }
}
static void gcpi_average(gcp_tape *t, gcp_real *average, double decay)
{
    enum { SOME = 1024 };
    gcp_real some[SOME];
    for (int i = 0; i < t->parameter_count; i++) {
        const size_t count = gcpi_count(t->parameters[i].shape);
        gcp_real *at = (gcp_real *)(void *)gcpi_value_at(t, i);
        for (size_t first = 0, n; first < count; first += n, average += n) {
            n = GCPI_MIN(count - first, (size_t)SOME);
            gcpi_bytes_copy(&t->home, some, at + first, n * sizeof *some);
            gcpi_average_some(average, some, n, decay);
            if (decay < 0) gcpi_bytes_copy(&t->home, at + first, some, n * sizeof *some);
        }
    }
}
GCPI_DEF gcp_code gcp_average_at(gcp_tape *t, void *memory, double decay, gcp_at at)
{
    if (!gcpi_average_ok(t, memory, at, "gcp_average")) return gcp_error_code(t);
    if (decay >= 0 && decay <= 1) gcpi_average(t, (gcp_real *)memory, decay);
    else gcpi_fail(t, GCP_E_ARGUMENT, at, "gcp_average", "a decay of %g; 0 to 1 are allowed", decay);
    return gcp_error_code(t);
}
GCPI_DEF gcp_code gcp_average_swap_at(gcp_tape *t, void *memory, gcp_at at)
{
    if (gcpi_average_ok(t, memory, at, "gcp_average_swap") && !gcpi_halfway(t, at, "gcp_average_swap"))
        gcpi_average(t, (gcp_real *)memory, -1);
    return gcp_error_code(t);
}

/* ==== src/run/measure.h ==== */

/* Measurements: seconds, bytes, whether gradients are right. */

/* Profile. Each instruction is waited for, far copies too, so that a copy's seconds are those of the link. */
typedef struct gcpi_timed { gcpi_plan *core; int instruction, operand; } gcpi_timed;
static void gcpi_issue_one(void *timed)
{
    const gcpi_timed *t = (const gcpi_timed *)timed;
    gcpi_run_instruction(t->core, t->instruction, t->operand);
    gcpi_far_wait_all(t->core);
}

/* Seconds since some moment, to the nanosecond: of a clock that counts from 1970 a double would hold a quarter of a
   microsecond, so the high bits are left out. They may begin again at 0 between two calls. */
#if defined(_WIN32)
union _LARGE_INTEGER;                   /* as windows.h has them */
#ifdef __cplusplus
extern "C" {
#endif
__declspec(dllimport) int __stdcall QueryPerformanceCounter(union _LARGE_INTEGER *count);
__declspec(dllimport) int __stdcall QueryPerformanceFrequency(union _LARGE_INTEGER *per_second);
#ifdef __cplusplus
}
#endif
static double gcpi_now(void)
{
    int64_t count = 0, per_second = 1;
    QueryPerformanceCounter((union _LARGE_INTEGER *)(void *)&count);
    QueryPerformanceFrequency((union _LARGE_INTEGER *)(void *)&per_second);
    return (double)(count / per_second & 0xFFFF) + (double)(count % per_second) / (double)per_second;
}
#else
static double gcpi_now(void)
{
    struct timespec t = { 0, 0 };
    timespec_get(&t, TIME_UTC);
    return (double)((int64_t)t.tv_sec & 0xFFFF) + 1e-9 * (double)t.tv_nsec;
}
#endif
static double gcpi_since(double start)
{
    const double seconds = gcpi_now() - start;
    if (seconds >= 0) return seconds;
    return seconds > -1 ? 0 : seconds + 0x10000;  /* it was set back; it began again */
}

static int gcpi_profile_step(gcpi_plan *core, const gcp_step_opts *o, double *seconds)
{
    const gcp_target *target = &core->p.target;
    gcpi_timed t;
    if (!gcpi_may_run(core, o->at, "gcp_profile")) return 0;
    t.core = core;
    gcpi_numbers_fill(core, o);
    for (t.instruction = t.operand = 0; t.instruction < (int)core->list.count; t.instruction++) {
        double begin = gcpi_now();
        if (target->device) seconds[t.instruction] = target->device->timed(target->context, gcpi_issue_one, &t);
        else { gcpi_issue_one(&t); seconds[t.instruction] = gcpi_since(begin); }
        t.operand += core->p.tasks[core->list.at[t.instruction].task].count;
    }
    if (gcpi_broken_off(core, o->at, "gcp_profile")) return 0;
    if (core->p.training) gcpi_counters_advance(core);
    core->bound.ran = 1;
    return 1;
}

static double gcpi_median(const double *x, ptrdiff_t stride, int n)          /* n even: the upper middle value */
{
    for (int i = 0; i < n; i++) {
        int below = 0;
        for (int k = 0; k < n; k++) below += x[k * stride] < x[i * stride] || (x[k * stride] == x[i * stride] && k < i);
        if (below == n / 2) return x[i * stride];
    }
    return 0;
}

GCPI_DEF double gcp_profile_at(gcp_plan *plan, gcp_profile_opts o)
{
    gcp_step_opts step;
    double sum = 0;
    if (gcpi_bound_check(plan, o.at, "gcp_profile") || !gcpi_rate_ok(plan, &o.lr, 1, o.at, "gcp_profile")) return 0;
    gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch, count = core->list.count;
    int repeats = o.repeats > 0 ? o.repeats : 5;
    double *all = GCPI_SCRATCH(a, double, gcpi_product(count, repeats));
    step.at = o.at; step.lr = o.lr; step.first_sample = 0; step.share = 0; step.feed = NULL; step.feed_context = NULL;
    if (!all)
        gcpi_fail(plan->tape, GCP_E_NOMEM, o.at, "gcp_profile", "the plan's arena has no room for %d x %td times",
                  repeats, count);
    int ok = all != NULL;
    for (int r = 0; ok && r < repeats; r++) ok = gcpi_profile_step(core, &step, all + r * count);
    for (ptrdiff_t i = 0; ok && i < count; i++) sum += core->seconds[i] = gcpi_median(all + i, count, repeats);
    a->scratch = scratch;
    return ok ? sum : 0;
}

GCPI_DEF double gcp_instruction_seconds(const gcp_plan *plan, int i)
{
    return plan && plan->core && plan->generation == plan->tape->generation && i >= 0 && i < plan->instructions
               ? plan->core->seconds[i]
               : 0;
}

/* Runs the plan in other memory, on copies of state and inputs; afterwards everything is as before. */
static void gcpi_run_copy(gcpi_plan *core, unsigned char *base, const gcp_step_opts *o)
{
    gcp_tape *t = core->p.tape;
    unsigned char *slab = core->bound.slab, *state = t->state;
    int micro = core->run.micro;
    gcpi_bytes_copy(&core->p.target, base, state, t->state_size);
    t->state = base;
    core->bound.slab = base + gcpi_round(t->state_size, core->p.target.align);
    core->run.purpose = GCPI_TO_MEASURE;
    for (int i = 0; i < core->p.item_count; i++)
        if (core->p.items[i].kind == GCPI_INPUT_ITEM && core->where[i] >= 0)
            gcpi_bytes_copy(&core->p.target, core->bound.slab + core->where[i], slab + core->where[i],
                            core->p.items[i].bytes);
    core->run.micro = 0;
    for (int m = 0; m < GCPI_MAX(1, core->opts.accumulate); m++) gcpi_run(core, o, "gcp_measure");
    core->run.purpose = GCPI_TO_STEP;
    core->run.micro = micro;
    core->bound.slab = slab;
    t->state = state;
}

/* Bytes up to the last that differs from the pattern. */
static size_t gcpi_touched(const gcp_target *target, const unsigned char *base, size_t size, unsigned char pattern)
{
    unsigned char some[16384];
    while (size > 0) {
        size_t n = (size - 1) % sizeof some + 1;
        gcpi_bytes_copy(target, some, base + size - n, n);
        while (n > 0 && some[n - 1] == pattern) { n--; size--; }
        if (n > 0) break;
    }
    return size;
}

static size_t gcpi_measure(gcp_plan *plan, unsigned char *memory, size_t size, const gcp_step_opts *o)
{
    gcpi_plan *core = plan->core;
    const gcp_target *target = &core->p.target;
    unsigned char *base = gcpi_align_up(memory, target->align);
    size_t lost = (size_t)(base - memory), last = 0;
    if (!memory || size <= plan->bytes + lost) {
        gcpi_fail(plan->tape, GCP_E_BIND, o->at, "gcp_measure",
                  "%zu bytes given, more than %zu needed at this address; more than %zu are enough at any "
                  "(plan.room)", size, plan->bytes + lost, plan->room);
        return 0;
    }
    const char *taken = gcpi_ranges_meet(memory, size, core->bound.slab, core->slab_bytes)
                            ? "the plan's own"
                            : gcpi_taken(plan->tape, memory, size, NULL, 0);
    if (taken) {
        gcpi_fail(plan->tape, GCP_E_BIND, o->at, "gcp_measure", "the memory overlaps %s", taken);
        return 0;
    }
    for (int pass = 0; pass < 2; pass++) {
        unsigned char pattern = pass ? 0x5A : 0xA5;
        gcpi_bytes_fill(target, base, pattern, size - lost);
        gcpi_run_copy(core, base, o);
        last = GCPI_MAX(last, gcpi_touched(target, base, size - lost, pattern));
    }
    return gcpi_trouble(plan->tape, target, o->at, "gcp_measure") ? 0 : last;
}

GCPI_DEF size_t gcp_measure_at(gcp_plan *plan, void *memory, size_t size, gcp_step_opts o)
{
    if (gcpi_bound_check(plan, o.at, "gcp_measure") || !gcpi_rate_ok(plan, &o.lr, 1, o.at, "gcp_measure") ||
        !gcpi_share_ok(plan, &o, "gcp_measure"))
        return 0;
    const gcp_target *target = &plan->core->p.target;
    if (memory || size || !target->allocate) return gcpi_measure(plan, (unsigned char *)memory, size, &o);
    size = plan->room + 4096;
    memory = target->allocate(target->context, size);
    if (!memory) {
        if (!gcpi_trouble(plan->tape, target, o.at, "gcp_measure"))
            gcpi_fail(plan->tape, GCP_E_NOMEM, o.at, "gcp_measure", "the target could not allocate %zu bytes", size);
        return 0;
    }
    size_t measured = gcpi_measure(plan, (unsigned char *)memory, size, &o);
    if (target->release) target->release(target->context, memory, size);
    return measured;
}

/* Gradient check. Its steps all have the same numbers (dropout, say) and do not change the state. */
typedef struct gcpi_check_job {
    gcp_plan *plan;
    gcp_step_opts o;
    double step, tolerance;
    gcp_gradcheck_result r;
} gcpi_check_job;

static double gcpi_loss_at(gcpi_check_job *j, gcp_real *x, double value)
{
    gcp_real v = (gcp_real)value;
    gcpi_bytes_copy(&j->plan->core->p.target, x, &v, sizeof v);
    return gcpi_run(j->plan->core, &j->o, "gcp_gradcheck");
}

static double gcpi_mean_square_root(const gcp_target *target, const gcp_real *x, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        gcp_real v;
        gcpi_bytes_copy(target, &v, &x[i], sizeof v);
        sum += (double)v * (double)v / (double)n;
    }
    return sqrt(sum);
}

static double gcpi_stencil(gcpi_check_job *j, gcp_real *x, double was, double h)
{
    double a = gcpi_loss_at(j, x, was + h) - gcpi_loss_at(j, x, was - h);
    double b = gcpi_loss_at(j, x, was + 2 * h) - gcpi_loss_at(j, x, was - 2 * h);
    return (8 * a - b) / (12 * h);
}

/* A large error need not be backward's: a rectifier or a maximum may have a kink between the stencil's points. Then
   closer points give a small error. */
static void gcpi_check_element(gcpi_check_job *j, gcp_tensor x, int element, gcp_real *at, double exact, double usual)
{
    enum { STEPS = 3 };
    const gcp_target *target = &j->plan->core->p.target;
    gcp_real first;
    gcpi_bytes_copy(target, &first, at, sizeof first);
    double size = GCPI_MAX(usual, fabs((double)first)), h = j->step * (size > 0 ? size : 1), least = HUGE_VAL, best = 0;
    for (int i = 0; i < STEPS && !(least <= j->tolerance); i++, h /= 10) {
        double numeric = gcpi_stencil(j, at, (double)first, h);
        double error = fabs(numeric - exact) / GCPI_MAX(1.0, GCPI_MAX(fabs(numeric), fabs(exact)));
        if (!i || error < least) best = numeric;
        if (error < least) least = error;           /* false for a NaN */
    }
    gcpi_bytes_copy(target, at, &first, sizeof first);
    j->r.elements++;
    if (least <= j->r.worst) return;
    j->r.worst = least;
    j->r.tensor = x;
    j->r.element = element;
    j->r.analytic = exact; j->r.numeric = best;
}

static void gcpi_check_tensor(gcpi_check_job *j, int tensor, gcp_real *x, const gcp_real *analytic)
{
    int n = (int)gcpi_count(j->plan->tape->tensors[tensor].shape);
    double usual = gcpi_mean_square_root(&j->plan->core->p.target, x, (size_t)n);
    for (int i = 0; i < n && j->r.worst < HUGE_VAL; i++)
        gcpi_check_element(j, gcpi_handle(j->plan->tape, tensor), i, &x[i], (double)analytic[i], usual);
}

static int gcpi_check_options(gcpi_check_job *j, const gcp_gradcheck_opts *o)
{
    int single = sizeof(gcp_real) == sizeof(float);
    j->step = gcpi_option(o->step, single ? 3e-2 : 1e-3);
    j->tolerance = gcpi_option(o->tolerance, single ? 5e-3 : 1e-7);
    if (j->step > 0 && gcpi_finite(j->step) && j->tolerance >= 0) return 1;
    gcpi_fail(j->plan->tape, GCP_E_ARGUMENT, o->at, "gcp_gradcheck", ".step = %g, .tolerance = %g; above 0, at least 0",
              j->step, j->tolerance);
    return 0;
}

GCPI_DEF gcp_gradcheck_result gcp_gradcheck_at(gcp_plan *plan, gcp_gradcheck_opts o)
{
    gcpi_check_job j;
    memset(&j.r, 0, sizeof j.r);
    j.o.at = o.at; j.o.lr = 0; j.o.first_sample = 0; j.o.share = 0; j.o.feed = NULL; j.o.feed_context = NULL;
    if (gcpi_bound_check(plan, o.at, "gcp_gradcheck")) return j.r;
    gcpi_plan *core = plan->core;
    gcp_tape *t = plan->tape;
    if (!core->p.training || core->opts.optimizer || core->opts.accumulate > 1) {
        gcpi_fail(t, GCP_E_PLAN, o.at, "gcp_gradcheck", "needs a training plan without optimiser or accumulation");
        return j.r;
    }
    gcp_arena *a = core->opts.arena ? core->opts.arena : t->arena;
    ptrdiff_t scratch = a->scratch;
    j.plan = plan;
    if (!gcpi_check_options(&j, &o)) return j.r;
    for (int i = 1; i < core->p.tensors; i++) {
        int gradient = core->p.tensors + i, kind = t->tensors[i].kind;
        if (!core->p.items[gradient].active || (kind != GCPI_PARAMETER && kind != GCPI_INPUT)) continue;
        gcp_real *analytic = GCPI_SCRATCH(a, gcp_real, gcpi_count(t->tensors[i].shape));
        if (!analytic) {
            gcpi_fail(t, GCP_E_NOMEM, o.at, "gcp_gradcheck", "the plan's arena has no room for one gradient");
            return j.r;
        }
        core->run.purpose = GCPI_TO_GRADCHECK;
        gcpi_run(core, &j.o, "gcp_gradcheck");
        gcp_grad_at(plan, gcpi_handle(t, i), analytic, o.at);
        gcpi_check_tensor(&j, i, (gcp_real *)gcpi_item_data(core, i, core->where[i]), analytic);
        core->run.purpose = GCPI_TO_STEP;
        a->scratch = scratch;
        core->bound.ran = 0;                              /* the last results are those of a changed element */
        core->bound.since = "gcp_gradcheck";
    }
    j.r.passed = j.r.elements > 0 && j.r.worst <= j.tolerance;
    return j.r;
}

/* report: what it shows */

/* ==== src/report/report.h ==== */

/* Reports: plain text through a writer. */

static int gcpi_reportable(const gcp_plan *plan)
{
    return plan && plan->core && plan->generation == plan->tape->generation;
}

/* How a list opens: a line where updates are fused, and one for each concat or slice that copies what it need not. */
static void gcpi_list_opening(const gcpi_plan *core, gcp_writer w)
{
    const gcpi_problem *p = &core->p;
    char name[256];
    if (core->opts.fuse_update) gcpi_say(w, "U " GCPI_LIST_FUSED "\n");
    for (int f = 0; f < p->forward && !gcpi_is_graph(p); f++) {
        const gcpi_copied *c = &p->copied[p->tasks[f].op];
        const gcpi_op *op = &p->tape->ops[p->tasks[f].op];
        const int view = gcpi_facts_of(op).view;
        for (int back = 0; back < 2; back++) {
            if (view != GCPI_VIEW_JOINED && (view != GCPI_VIEW_PART || back)) continue;
            uint64_t bits = (back ? c->gradients : c->values) & UINT64_MAX >> (64 - op->inputs);
            if (!bits) continue;
            gcpi_say(w, "C %s%s", back ? "gradient of " : "", gcpi_task_name(p, &p->tasks[f], name, sizeof name));
            for (int i = 0; i < op->inputs; i++) if (bits >> i & 1) gcpi_say(w, " %d", i);
            gcpi_say(w, "\n");
        }
    }
}

GCPI_DEF void gcp_list_print(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    if (!gcpi_reportable(plan)) return;
    gcpi_list_opening(plan->core, w);
    for (int i = 0; i < plan->instructions; i++)
        gcpi_say(w, "%c %s\n", plan->core->list.at[i].letter,
                 gcpi_task_name(&plan->core->p, &plan->core->p.tasks[plan->core->list.at[i].task], name, sizeof name));
}

static void gcpi_link_print(const gcpi_plan *core, gcp_writer w)
{
    double bytes = 0, seconds = 0;
    for (ptrdiff_t i = 0; i < core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        if (gcpi_copies(t) && core->seconds[i] > 0) {
            bytes += (double)core->p.items[t->item].bytes;
            seconds += core->seconds[i];
        }
    }
    if (seconds > 0) gcpi_say(w, GCPI_LINK_KEY " %.9g\n", 1e9 * seconds / bytes);
}

GCPI_DEF void gcp_costs_print(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan) || gcpi_is_graph(&plan->core->p)) return;
    const gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch, count = core->list.count;
    uint64_t *hash = GCPI_SCRATCH(a, uint64_t, count);
    double *same = GCPI_SCRATCH(a, double, count);
    char key[GCPI_KEY_BYTES];
    gcpi_say(w, "# gcp-costs: seconds on %s, %d threads\n", core->p.target.name, core->p.target.threads);
    gcpi_link_print(core, w);
    for (ptrdiff_t i = 0; hash && same && i < count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        gcpi_task_key(&core->p, t, key, sizeof key);
        hash[i] = core->seconds[i] > 0 && t->kind < GCPI_TASK_OFFLOAD ? gcpi_key_hash(key, strlen(key)) : 0;
    }
    for (ptrdiff_t i = 0; hash && same && i < count; i++) {
        int n = 0;
        for (ptrdiff_t k = i; hash[i] && k < count; k++) {
            if (hash[k] != hash[i]) continue;
            same[n++] = core->seconds[k];
            if (k > i) hash[k] = 0;
        }
        if (!n) continue;
        gcpi_task_key(&core->p, &core->p.tasks[core->list.at[i].task], key, sizeof key);
        gcpi_say(w, "%s %.9g\n", key, gcpi_median(same, 1, n));
    }
    a->scratch = scratch;
}

GCPI_DEF void gcp_graph_print(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    gcp_arena *a = core->opts.arena ? core->opts.arena : p->tape->arena;
    ptrdiff_t scratch = a->scratch;
    unsigned char *done = GCPI_SCRATCH(a, unsigned char, p->item_count);
    if (done) {
        gcpi_say(w, "# gcp-graph 3\n# numbers %zu\n# state %zu\n# units %d\n", p->numbers, plan->state_bytes, p->units);
        for (int i = 0; i < p->operand_count; i++) gcpi_graph_print_tensor(p, p->operands[i].item, done, w);
        for (int i = 0; i < p->task_count; i++) gcpi_graph_print_op(p, i, w);
    }
    a->scratch = scratch;
}

/* The unit in which so many bytes are between 1 and 1024. */
static double gcpi_unit(size_t bytes, const char **name)
{
    static const char *const names[] = { "bytes", "KiB", "MiB", "GiB" };
    double unit = 1;
    int k = 0;
    while (k < 3 && (double)bytes >= 1024 * unit) { unit *= 1024; k++; }
    *name = names[k];
    return unit;
}

GCPI_DEF void gcp_plan_print(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    const char *unit;
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    const double one = gcpi_unit(plan->live_peak, &unit);
    for (int i = 0; i < plan->instructions; i++) {
        if (core->list.at[i].task == core->p.forward && core->p.training)
            gcpi_say(w, "-- forward is done; backward begins, last to first --\n");
        gcpi_say(w, "%5d  %c %-44s ", i + 1, core->list.at[i].letter,
                 gcpi_task_name(&core->p, &core->p.tasks[core->list.at[i].task], name, sizeof name));
        gcpi_say(w, one > 1 ? "%10.3f %s live" : "%10.0f %s live", (double)core->live[i] / one, unit);
        if (core->seconds[i] > 0) gcpi_say(w, " %10.3f ms", 1e3 * core->seconds[i]);
        gcpi_say(w, i == core->peak_at ? "  <- peak\n" : "\n");
    }
    gcpi_say(w, "F forward, R forward again, B backward, U update, H gradient ready, W wait for its hook");
    gcpi_say(w, core->far_bytes ? ", O copy to far memory, P copy back, A wait until a copy has arrived\n" : "\n");
}

static int gcpi_rerun(const gcpi_plan *core, int task)
{
    int n = 0;
    for (ptrdiff_t i = 0; i < core->list.count; i++)
        n += core->list.at[i].letter == 'R' && core->list.at[i].task == task;
    return n;
}

GCPI_DEF void gcp_sweep_csv(const gcp_point *p, int count, gcp_writer w)
{
    gcpi_say(w, "budget_bytes,plan_bytes,planned_with,time_ratio,bound_ratio\n");
    for (int i = 0; i < count; i++)
        if (p[i].bytes)
            gcpi_say(w, "%zu,%zu,%zu,%.6f,%.6f\n", p[i].budget, p[i].bytes, p[i].planned_with,
                     p[i].seconds / p[i].keep_all_seconds, p[i].bound_seconds / p[i].keep_all_seconds);
        else gcpi_say(w, "%zu,,%zu,,\n", p[i].budget, p[i].planned_with);
}

GCPI_DEF void gcp_layers_print(const gcp_plan *plan, gcp_writer w)
{
    char name[256], shape[64];
    if (!gcpi_reportable(plan)) return;
    const gcpi_problem *p = &plan->core->p;
    const gcp_tape *t = p->tape;
    size_t parameters = 0, bytes = 0;
    gcpi_say(w, "%-40s %-16s %12s %14s\n", "op", "output", "parameters", "bytes");
    for (int f = 0; f < p->forward; f++) {
        const gcpi_op *op = &t->ops[p->tasks[f].op];
        size_t own = 0, size = 0;
        int again = gcpi_rerun(plan->core, f);
        for (int k = 0; k < p->tasks[f].count; k++) {
            const gcpi_operand *o = &p->operands[p->tasks[f].operands + k];
            if (o->mode == GCPI_READ && t->tensors[o->item].kind == GCPI_PARAMETER)
                own += gcpi_count(t->tensors[o->item].shape);
        }
        for (int j = 0; j < op->outputs; j++)
            if (p->items[op->out + j].active && p->items[op->out + j].root == op->out + j)
                size += p->items[op->out + j].bytes;
        gcpi_say(w, "%-40s %-16s %12zu %14zu  ", gcpi_task_name(p, &p->tasks[f], name, sizeof name),
                 gcpi_shape_text(t->tensors[op->out].shape, shape, sizeof shape), own, size);
        if (again) gcpi_say(w, "run %d more time%s\n", again, again > 1 ? "s" : "");
        else gcpi_say(w, "%s\n", p->tasks[f].free ? "view" : "run once");
        parameters += own; bytes += size;
    }
    gcpi_say(w, "%-40s %-16s %12zu %14zu\n", "total", "", parameters, bytes);
}

static void gcpi_why_in_vain(const gcp_plan *plan, gcp_writer w)
{
    if (!plan->core->p.training || !plan->reruns || !plan->keep_all_bytes || plan->bytes < plan->keep_all_bytes) return;
    gcpi_say(w,
             "checkpointing saves nothing here: this plan takes %.1f %% of the %.3f MiB that GCP_POLICY_KEEP_ALL "
             "takes, with %d rerun%s of units. What crosses its cuts stays until backward, and what is run again at "
             "the peak comes on top: try GCP_POLICY_BUDGET with a .budget, GCP_POLICY_SQRT, or other blocks\n",
             100.0 * (double)plan->bytes / (double)plan->keep_all_bytes, gcpi_mib(plan->keep_all_bytes), plan->reruns,
             plan->reruns == 1 ? "" : "s");
}

/* Why the plan needs its bytes: the share that no plan can save, and why nothing was recomputed, if so. */
static void gcpi_why_reason(const gcp_plan *plan, gcp_writer w)
{
    const gcp_split *s = &plan->split;
    const gcpi_plan *core = plan->core;
    size_t fixed = plan->state_bytes + s->inputs + s->weight_gradients;
    double share = 100.0 * (double)fixed / (double)plan->bytes;
    char help[400];
    if (!core->p.training) return;
    if (share > 50)
        gcpi_say(w,
                 "why not less: weights, their gradients, optimiser and inputs are %.1f %% of the peak and need as "
                 "much under every plan: "
                 "at most %.1f %% can be saved by recomputing\n",
                 share, 100 - share);
    gcpi_help_text(core, core->list.at[core->peak_at].task, s->weight_gradients,
                   s->inputs + s->kept + s->recomputed + s->activation_gradients, help, sizeof help);
    if (share > 50 && *help) gcpi_say(w, "what would help, in bytes: %s\n", help + 2);
    if (plan->reruns == 0 && core->opts.policy != GCP_POLICY_KEEP_ALL && !core->opts.list && !plan->far_bytes)
        gcpi_say(w, "why nothing is recomputed: %s\n",
                 core->opts.policy == GCP_POLICY_BUDGET ? "keeping all fits the budget"
                 : core->opts.policy == GCP_POLICY_SEGMENTS && core->p.tape->segment_count < 2
                     ? "no GCP_SEGMENT block was recorded"
                 : core->opts.policy >= GCP_POLICY_SQRT
                     ? "every plan of this policy needs at least as much as keeping all"
                 : plan->segments <= 1
                     ? "one segment holds the whole network, and the last segment is never run again"
                     : "the last segment is never run again, and nothing that backward reads lies inside the others");
    if (core->opts.policy < GCP_POLICY_SQRT &&
        core->p.tasks[core->list.at[core->peak_at].task].kind == GCPI_TASK_FORWARD &&
        core->list.at[core->peak_at].letter == 'R')
        gcpi_say(w, "the peak is inside a segment that is run again: more, shorter segments would lower it\n");
}

/* A graph's text does not tell what its state is, nor whose gradients are weights'. */
static void gcpi_why_bytes(const gcp_plan *plan, gcp_writer w)
{
    const gcp_split *s = &plan->split;
    const int graph = gcpi_is_graph(&plan->core->p);
    gcpi_say(w, "peak %.3f MiB (%zu bytes) = state: ", gcpi_mib(plan->bytes), plan->bytes);
    if (graph) gcpi_say(w, "%.3f", gcpi_mib(plan->state_bytes));
    else
        gcpi_say(w, "weights %.3f + statistics %.3f + optimiser %.3f", gcpi_mib(s->weights), gcpi_mib(s->statistics),
                 gcpi_mib(s->optimizer));
    gcpi_say(w, "; slab: input %.3f + kept %.3f + recomputed %.3f + ", gcpi_mib(s->inputs), gcpi_mib(s->kept),
             gcpi_mib(s->recomputed));
    if (graph) gcpi_say(w, "gradients %.3f", gcpi_mib(s->weight_gradients + s->activation_gradients));
    else
        gcpi_say(w, "weight gradients %.3f + activation gradients %.3f", gcpi_mib(s->weight_gradients),
                 gcpi_mib(s->activation_gradients));
    gcpi_say(w, " + workspace %.3f + gaps %.3f\n", gcpi_mib(s->workspace), gcpi_mib(s->gaps));
}

static void gcpi_why_time(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    const gcpi_task *task = &core->p.tasks[core->list.at[core->peak_at].task];
    gcp_at at = gcpi_task_at(&core->p, (int)(task - core->p.tasks), core->opts.at);
    char name[256];
    gcpi_say(w, "set by %c %s (%s:%d), instruction %d of %d; %d rerun%s of units, ",
             core->list.at[core->peak_at].letter,
             gcpi_task_name(&core->p, task, name, sizeof name), gcpi_basename(at.file), at.line, core->peak_at + 1,
             plan->instructions, plan->reruns, plan->reruns == 1 ? "" : "s");
    if (plan->forward_flops > 0)
        gcpi_say(w, "extra forward FLOPs %.1f %%, ", 100.0 * plan->rerun_flops / plan->forward_flops);
    gcpi_say(w, "time by %s %.3f of keeping all\n", plan->costed ? ".costs" : "the cost model",
             plan->keep_all_seconds > 0 ? plan->seconds / plan->keep_all_seconds : 1.0);
}

/* Whether an instruction from i on reads the value that item has before it; 2: none, but it lives to the step's end. */
static int gcpi_read_from(const gcpi_plan *core, ptrdiff_t i, int item)
{
    for (; i < core->list.count; i++) {
        const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
        const gcpi_operand *o = &core->p.operands[t->operands];
        int writes = 0;
        for (int k = 0; k < t->count; k++) {
            if (o[k].item != item) continue;
            if (o[k].mode == GCPI_READ || o[k].mode == GCPI_ADD) return 1;
            writes = 1;
        }
        if (writes) return 0;
    }
    return core->p.items[item].pinned ? 2 : 0;
}

/* Whether the columns of item a lie within those of b, which shares its bytes. */
static int gcpi_lies_in(const gcpi_problem *p, int a, int b)
{
    const gcpi_item *x = &p->items[a], *y = &p->items[b];
    size_t wide = (size_t)x->row * sizeof(gcp_real), wider = (size_t)y->row * sizeof(gcp_real);
    return a != b && x->pitch == y->pitch && x->offset >= y->offset && x->offset + wide <= y->offset + wider &&
           (wide < wider || a > b);
}

/* Bytes of a buffer at the peak that nothing needs any more: they stay for another part of a concat, or for a slice.
   *last: the largest part that is needed. */
static size_t gcpi_held_up(const gcpi_plan *core, const gcpi_plan_buffer *b, int *last)
{
    const gcpi_problem *p = &core->p;
    size_t needed = 0, most = 0;
    if (p->items[b->item].next < 0 || b->first > core->peak_at || b->last <= core->peak_at) return 0;
    for (int i = b->item; i >= 0; i = p->items[i].next) {
        int inside = !gcpi_read_from(core, core->peak_at, i);
        for (int k = b->item; !inside && k >= 0; k = p->items[k].next)
            inside = gcpi_lies_in(p, i, k) && gcpi_read_from(core, core->peak_at, k);
        size_t bytes = inside ? 0 : gcpi_dense_bytes(p, i);
        if (bytes > most) { most = bytes; *last = i; }
        needed += bytes;
    }
    return most && needed < b->bytes ? b->bytes - needed : 0;
}

static void gcpi_why_views(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    char whole[128], part[128];
    size_t all = 0, most = 0;
    int buffer = 0, last = 0;
    for (int b = 0; b < core->buffer_count; b++) {
        int needed = 0;
        size_t held = gcpi_held_up(core, &core->buffers[b], &needed);
        all += held;
        if (held > most) { most = held; buffer = b; last = needed; }
    }
    if (all < plan->bytes / 100) return;
    gcpi_item_name(&core->p, core->buffers[buffer].item, whole, sizeof whole);
    gcpi_item_name(&core->p, last, part, sizeof part);
    gcpi_say(w,
             "%.3f MiB at the peak are held up by views, most of it %s%s (%.3f of %.3f MiB), which stays for %s: %s\n",
             gcpi_mib(all), core->p.items[last].kind == GCPI_GRADIENT_ITEM ? "the gradient of " : "", whole,
             gcpi_mib(most), gcpi_mib(core->buffers[buffer].bytes), part,
             core->opts.policy == GCP_POLICY_BUDGET
                 ? "copies of such parts were tried, and are no faster in this budget"
                                                  : "GCP_POLICY_BUDGET copies such parts where that pays");
}

GCPI_DEF void gcp_why_print(const gcp_plan *made, gcp_writer w)
{
    if (made && !made->core && made->tape && gcp_error(made->tape)) gcpi_say(w, "no plan: %s\n", gcp_error(made->tape));
    if (!gcpi_reportable(made)) return;
    gcp_plan now = *made, *plan = &now;
    gcpi_plan_sizes(plan);                        /* the state may have grown */
    const gcpi_plan *core = plan->core;
    gcpi_why_in_vain(plan, w);
    gcpi_why_bytes(plan, w);
    gcpi_why_time(plan, w);
    if (core->opts.policy == GCP_POLICY_BUDGET && plan->method)
        gcpi_say(w,
                 "found by %s for %.3f MiB; no schedule in these bytes is below %.4f of keeping all: another may be at "
                 "most %.2f %% faster\n",
                 plan->method, gcpi_mib(core->opts.budget), plan->bound_seconds / plan->keep_all_seconds,
                 100 * (1 - plan->bound_seconds / plan->seconds));
    if (core->opts.costs)
        gcpi_say(w, ".costs gave the seconds of %d ops, %.1f %% of all ops' seconds; the others are the cost model's\n",
                 core->p.costed, 100 * core->p.costed_share);
    if (plan->far_bytes)
        gcpi_say(w,
                 "%.3f MiB wait in far memory, %.3f MiB are copied in a step; computing waits for copies for %.2f %% "
                 "of the step\n",
                 gcpi_mib(plan->far_bytes), gcpi_mib(plan->far_traffic),
                 plan->seconds > 0 ? 100 * plan->stall_seconds / plan->seconds : 0.0);
    if (core->p.far_slots)
        gcpi_say(w, "the optimiser's slots wait in far memory (gcp_slots_bind); each update copies its own\n");
    if (plan->moved_bytes)
        gcpi_say(w, "%zu bytes are moved inside the slab in a step: no layout without that fits\n", plan->moved_bytes);
    if (plan->coarse == 2) gcpi_say(w, ".progress stopped the search: a longer one may find a faster schedule\n");
    if (plan->coarse == 1)
        gcpi_say(w, "the plan's arena had no room for all of the search: gcp_plan_arena says how much it takes\n");
    gcpi_why_views(plan, w);
    gcpi_why_reason(plan, w);
}

/* ==== src/report/page.h ==== */

/* The style and script of gcp_memory_html. Made of src/report/page/ by src/assemble.cmake, never edited. */

static const char *const gcpi_page_style[] = {
":root { color-scheme: light dark;\n",
"  --ink: #202124; --dim: #5f6368; --paper: #ffffff; --line: #dadce0; --mark: #d93025;\n",
"  --k0: #80868b; --k1: #1a73e8; --k2: #c6dafc; --k3: #7baaf7; --k4: #e8710a; --k5: #b5651d; --k6: #188038;\n",
"  --k7: #9334e6; }\n",
"@media (prefers-color-scheme: dark) { :root { --ink: #e8eaed; --dim: #9aa0a6; --paper: #17181a; --line: #3c4043;\n",
"  --mark: #f28b82; --k2: #3d5475; } }\n",
"body { font: 15px/1.45 system-ui, sans-serif; color: var(--ink); background: var(--paper);\n",
"  margin: 1rem auto; max-width: 1080px; padding: 0 1rem; }\n",
"h1 { font-size: 1.3rem; margin: 0; }\n",
"h2 { font-size: 1.05rem; margin: 1.2rem 0 .2rem; }\n",
"p { margin: .3rem 0; }\n",
"button { font: inherit; }\n",
"#bar { position: sticky; top: 0; background: var(--paper); padding: .5rem 0; display: flex; gap: .6rem;\n",
"  align-items: center; border-bottom: 1px solid var(--line); z-index: 1; }\n",
"#bar input { flex: 1; }\n",
"#legend span { margin-right: 1.1em; white-space: nowrap; }\n",
"svg { width: 100%; height: auto; display: block; font-size: 12px; touch-action: none; cursor: crosshair; }\n",
"svg text { fill: var(--dim); user-select: none; }\n",
".grid { stroke: var(--line); }\n",
".cursor { stroke: var(--mark); stroke-width: 1.5; pointer-events: none; }\n",
".turn { stroke: var(--dim); stroke-dasharray: 4 3; }\n",
".curve { fill: none; stroke: var(--ink); }\n",
".peak { fill: var(--mark); }\n",
".plot { fill: transparent; }\n",
".hot { stroke: var(--ink); stroke-width: 1.5; }\n",
".k0 { fill: var(--k0); background: var(--k0); }\n",
".k1 { fill: var(--k1); background: var(--k1); }\n",
".k2 { fill: var(--k2); background: var(--k2); }\n",
".k3 { fill: var(--k3); background: var(--k3); }\n",
".k4 { fill: var(--k4); background: var(--k4); }\n",
".k5 { fill: var(--k5); background: var(--k5); }\n",
".k6 { fill: var(--k6); background: var(--k6); }\n",
".k7 { fill: var(--k7); background: var(--k7); }\n",
"i { display: inline-block; width: .8em; height: .8em; margin-right: .4em; }\n",
".now { min-height: 5em; }\n",
".now, h2, td, #tip { overflow-wrap: anywhere; }\n",
".live { max-height: 14rem; overflow: auto; }\n",
"table { border-collapse: collapse; font-size: .85em; width: 100%; }\n",
"td:nth-child(2) { white-space: nowrap; }\n",
" td, th { padding: .1rem .8rem .1rem 0; text-align: left;\n",
"  border-bottom: 1px solid var(--line); } td.n, th.n { text-align: right;\n",
"  white-space: nowrap;\n",
"  font-variant-numeric: tabular-nums; }\n",
"pre { white-space: pre-wrap; font-size: .85em; color: var(--dim); }\n",
"#tip { position: fixed; display: none; background: var(--paper); border: 1px solid var(--dim);\n",
"  padding: .3rem .6rem;\n",
"  font-size: .85em; max-width: 30rem; white-space: pre-line; pointer-events: none; z-index: 2; }\n", NULL
};

static const char *const gcpi_page_script[] = {
"'use strict';\n",
"const plans = JSON.parse(document.getElementById('data').textContent);\n",
"const kinds = ['input', 'kept for backward', 'gone after forward', 'recomputed', 'activation gradient',\n",
"  'weight gradient', 'workspace', 'result'];\n",
"const words = { F: 'forward', R: 'forward again', B: 'backward', U: 'update', H: 'its gradient is ready',\n",
"  W: 'wait for its hook', O: 'copy to far memory', P: 'copy back', A: 'wait until its copy has arrived',\n",
"  M: 'move' };\n",
"const WIDE = 960, HIGH = 300, LEFT = 90, CURVE = 80, TOP = CURVE + 30, ROWS = 200;\n",
"const steps = Math.max(...plans.map(p => p.lines.length));\n",
"const most = Math.max(...plans.map(p => p.slab), 1);\n",
"const x = i => LEFT + WIDE * i / steps, y = bytes => TOP + HIGH * (1 - bytes / most);\n",
"const count = (n, word) => n.toLocaleString('en') + ' ' + word + (n === 1 ? '' : 's');\n",
"const bytes = n => count(n, 'byte');\n",
"const unit = [1, 1024, 1048576, 1073741824].filter((u, k) => !k || most >= u).pop();\n",
"const scale = n => +(n / unit).toPrecision(4) + ' ' + ['bytes', 'KiB', 'MiB', 'GiB'][Math.log2(unit) / 10];\n",
"\n",
"function element(parent, tag, attributes, text) {\n",
"  const svg = tag === 'svg' || parent.namespaceURI === 'http://www.w3.org/2000/svg';\n",
"  const e = document.createElementNS(svg ? 'http://www.w3.org/2000/svg' : 'http://www.w3.org/1999/xhtml', tag);\n",
"  for (const name in attributes) e.setAttribute(name, attributes[name]);\n",
"  if (text !== undefined) e.textContent = text;\n",
"  parent.append(e);\n",
"  return e;\n",
"}\n",
"\n",
"const READ = 0, WRITE = 1, VIEW = 3;\n",
"\n",
"/* The place in live, which is in order of addresses, of the last buffer that begins at most there. */\n",
"function place(live, at) {\n",
"  let low = 0, high = live.length;\n",
"  while (low < high) {\n",
"    const middle = (low + high) >> 1;\n",
"    if (live[middle].at <= at) low = middle + 1; else high = middle;\n",
"  }\n",
"  return low - 1;\n",
"}\n",
"\n",
"/* Finds the buffers that each instruction reads and writes: those that are live and hold its addresses. */\n",
"function prepare(p) {\n",
"  p.buffers = p.buffers.map(([item, kind, first, last, at, size]) =>\n",
"    ({ item, kind, first, last, at, size, holds: [], reads: [] }));\n",
"  p.born = p.lines.map(() => []);\n",
"  p.dies = p.lines.map(() => []);\n",
"  p.over = p.lines.map(() => []);\n",
"  p.written = {};\n",
"  for (const b of p.buffers) { p.born[b.first].push(b); p.dies[b.last].push(b); }\n",
"  const live = [];\n",
"  p.lines = p.lines.map(([kind, name, where, size, seconds, workspace, uses], i) => {\n",
"    for (const b of p.born[i]) live.splice(place(live, b.at) + 1, 0, b);\n",
"    for (let k = 0; k < uses.length; k += 3) {\n",
"      const [item, mode, at] = uses.slice(k, k + 3), b = live[place(live, at)];\n",
"      if (!b || at >= b.at + b.size) continue;\n",
"      if ((mode !== WRITE && mode !== VIEW) && b.reads[b.reads.length - 1] !== i) b.reads.push(i);\n",
"      if (mode !== READ && !b.holds.some(h => h.item === item)) {\n",
"        const before = held(p, b, i - 1);\n",
"        b.holds.push({ item, at, since: i });\n",
"        const now = held(p, b, i);\n",
"        if (i > b.first) p.over[i].push({ b, item, gone: before.filter(k => !now.includes(k)) });\n",
"      }\n",
"      if (mode === WRITE || mode === VIEW) (p.written[item] = p.written[item] || []).push(i);\n",
"    }\n",
"    for (const b of p.dies[i]) live.splice(place(live, b.at), 1);\n",
"    return { kind, name, place: where, size, seconds, workspace };\n",
"  });\n",
"}\n",
"\n",
"/* What a buffer holds at an instruction. Ops work in place; a concat's parts lie in its buffer before it runs. */\n",
"function held(p, b, i) {\n",
"  let parts = [];\n",
"  for (const h of b.holds)\n",
"    if (h.since <= i) parts = parts.filter(o => o.at !== h.at && p.items[h.item][1] < b.size).concat(h);\n",
"  return parts.length ? parts.map(h => h.item) : [b.item];\n",
"}\n",
"const name_of = (p, items) => items.map(k => p.items[k][0]).join(' and ');\n",
"const name = (p, b, i) => name_of(p, held(p, b, i));\n",
"const line = (p, i) => `${i + 1} (${p.lines[i].kind} ${p.lines[i].name})`;\n",
"\n",
"/* Why a buffer's bytes may be used for something else after its last instruction. */\n",
"function ending(p, b) {\n",
"  const items = held(p, b, b.last), made = items.map(k => p.written[k] || []);\n",
"  if (p.lines[b.last].kind === 'M' && made.some(m => m.includes(b.last))) return `moves: ${line(p, b.last)}`;\n",
"  const next = Math.min(...made.map(m => m.find(i => i > b.last) ?? Infinity));\n",
"  if (next < Infinity && p.lines[next].kind === 'R') return `will be run again: ${line(p, next)}`;\n",
"  if (next < Infinity && p.lines[next].kind === 'P') return `is in far memory, comes back: ${line(p, next)}`;\n",
"  return b.last === p.lines.length - 1 ? 'needed until the end of the step' : 'no later instruction reads it';\n",
"}\n",
"\n",
"function read_next(p, b, i) {\n",
"  const next = b.reads.find(j => j > i), now = b.reads.includes(i) ? 'now' : '';\n",
"  return next === undefined ? now || 'nothing' : (now && 'now, then ') + line(p, next);\n",
"}\n",
"\n",
"function tip_text(p, b, i) {\n",
"  const born = p.lines[b.first];\n",
"  const now = held(p, b, i), others = b.holds.filter(h => !now.includes(h.item)).map(h => p.items[h.item][0]);\n",
"  return `${name(p, b, i)}\\n` +\n",
"    `${others.length ? `the same bytes hold at other times: ${others.join(', ')}\\n` : ''}` +\n",
"    `${kinds[b.kind]}, ${bytes(b.size)} at ${b.at.toLocaleString('en')}\\n` +\n",
"    `from ${b.kind ? line(p, b.first) + (born.place ? ', ' + born.place : '') : 'the start'} ` +\n",
"    `to ${line(p, b.last)}\\n` +\n",
"    `read by ${b.reads.length ? b.reads.map(j => line(p, j)).slice(0, 6).join(', ') : 'nothing in the step'}` +\n",
"    `${b.reads.length > 6 ? ` and ${b.reads.length - 6} more` : ''}\\n` +\n",
"    `read next: ${read_next(p, b, i)}\\nafter that: ${ending(p, b)}`;\n",
"}\n",
"\n",
"/* ---- drawing ---- */\n",
"\n",
"function axes(svg, p) {\n",
"  for (let i = 0; i <= 4; i++) {\n",
"    const at = y(most * i / 4);\n",
"    element(svg, 'line', { class: 'grid', x1: LEFT, x2: LEFT + WIDE, y1: at, y2: at });\n",
"    element(svg, 'text', { x: LEFT - 6, y: at + 4, 'text-anchor': 'end' }, scale(most * i / 4));\n",
"  }\n",
"  if (p.turn < 0) return;\n",
"  element(svg, 'line', { class: 'turn', x1: x(p.turn), x2: x(p.turn), y1: 14, y2: TOP + HIGH });\n",
"  const late = x(p.turn) > LEFT + WIDE - 110;\n",
"  element(svg, 'text', { x: x(p.turn) + (late ? -4 : 4), y: TOP - 4, 'text-anchor': late ? 'end' : 'start' },\n",
"    'backward begins');\n",
"}\n",
"\n",
"function curve(svg, p) {\n",
"  const high = size => CURVE + 14 - CURVE * size / most;\n",
"  element(svg, 'text', { x: LEFT + 4, y: 12 }, 'live');\n",
"  for (const size of [0, most])\n",
"    element(svg, 'text', { x: LEFT - 6, y: high(size) + 4, 'text-anchor': 'end' }, scale(size));\n",
"  element(svg, 'path', { class: 'curve', d: 'M' + p.lines.map((l, i) =>\n",
"    `${x(i).toFixed(1)} ${high(l.size).toFixed(1)}H${x(i + 1).toFixed(1)}`).join('L') });\n",
"  element(svg, 'circle', { class: 'peak', r: 4, cx: x(p.peak + .5), cy: high(p.lines[p.peak].size) });\n",
"  element(svg, 'line', { class: 'grid', x1: LEFT, x2: LEFT + WIDE, y1: high(0), y2: high(0) });\n",
"}\n",
"\n",
"function rectangles(svg, p) {\n",
"  const wide = b => Math.max(WIDE * (b.last - b.first + 1) / steps, .3).toFixed(2);\n",
"  p.buffers.forEach((b, k) => element(svg, 'rect', { class: 'k' + b.kind, 'data-b': k,\n",
"    x: x(b.first).toFixed(2), y: y(b.at + b.size).toFixed(2), width: wide(b),\n",
"    height: Math.max(HIGH * b.size / most, .3).toFixed(2) }));\n",
"  p.lines.forEach((l, i) => l.workspace && element(element(svg, 'rect', { class: 'k6', x: x(i),\n",
"    width: WIDE / steps, y: y(p.numbers + l.workspace), height: HIGH * l.workspace / most }),\n",
"  'title', {}, `workspace of ${line(p, i)}: ${bytes(l.workspace)}`));\n",
"}\n",
"\n",
"function draw(p) {\n",
"  const main = document.getElementById('plans');\n",
"  element(main, 'h2', {}, `${p.policy}: ${bytes(p.bytes)}, ${bytes(p.slab)} of them the slab; ` +\n",
"    `${count(p.lines.length, 'instruction')}, ${count(p.reruns, 'rerun')} of units`);\n",
"  const label = `Memory over time and address: ${bytes(p.slab)} over ${count(p.lines.length, 'instruction')}. ` +\n",
"    'What is live at the cursor stands in the table below.';\n",
"  const svg = element(main, 'svg', { viewBox: `0 0 ${LEFT + WIDE + 10} ${TOP + HIGH + 24}`, role: 'img',\n",
"    'aria-label': label });\n",
"  axes(svg, p);\n",
"  curve(svg, p);\n",
"  element(svg, 'rect', { class: 'plot', x: LEFT, y: 0, width: WIDE, height: TOP + HIGH });\n",
"  rectangles(svg, p);\n",
"  p.cursor = element(svg, 'line', { class: 'cursor', y1: 4, y2: TOP + HIGH });\n",
"  element(svg, 'text', { x: LEFT, y: TOP + HIGH + 18 }, 'instructions, in order; up: address in the slab');\n",
"  p.now = element(main, 'div', { class: 'now', 'aria-live': 'polite' });\n",
"  const more = element(main, 'details', { open: '' });\n",
"  p.summary = element(more, 'summary', {});\n",
"  const region = { class: 'live', tabindex: 0, role: 'region', 'aria-label': 'Live buffers' };\n",
"  p.table = element(element(more, 'div', region), 'table', {});\n",
"  p.details = more;\n",
"  more.addEventListener('toggle', show_tables);\n",
"  const why = element(main, 'details', {});\n",
"  element(why, 'summary', {}, 'Why the plan takes its bytes');\n",
"  element(why, 'pre', {}, p.why);\n",
"  listen(svg, p);\n",
"}\n",
"\n",
"/* ---- the cursor ---- */\n",
"\n",
"let at = 0, timer = 0, resting = 0;\n",
"const [slider, play, tip] = ['at', 'play', 'tip'].map(id => document.getElementById(id));\n",
"\n",
"function changes(p, i) {\n",
"  const over = p.over[i].map(o => `${name_of(p, [o.item])} (${bytes(p.items[o.item][1])}, ` +\n",
"    `${o.gone.length ? `over ${name_of(p, o.gone)}` : `in the buffer of ${name(p, o.b, i - 1)}`})`);\n",
"  const born = p.born[i].map(b => `${name(p, b, i)} (${bytes(b.size)})`);\n",
"  const dies = p.dies[i].map(b => `${name(p, b, i)} (${bytes(b.size)}; ${ending(p, b)})`);\n",
"  const last = i === p.lines.length - 1;\n",
"  element(p.now, 'p', {}, `Born: ${born.concat(over).join('; ') || 'nothing'}`);\n",
"  element(p.now, 'p', {}, `Free after it: ${last ? 'the step ends' : dies.join('; ') || 'nothing'}`);\n",
"}\n",
"\n",
"function show_live(p, i) {\n",
"  const live = p.buffers.filter(b => b.first <= i && i <= b.last).sort((a, b) => b.at - a.at);\n",
"  p.summary.textContent = `Live now: ${count(live.length, 'buffer')}, top address first; ` +\n",
"    `each takes whole blocks of ${p.align} bytes`;\n",
"  p.table.textContent = '';\n",
"  if (!p.details.open) return;\n",
"  const head = element(p.table, 'tr', {});\n",
"  for (const text of ['tensor', 'what it is', 'bytes', 'address', 'since', 'read next'])\n",
"    element(head, 'th', { scope: 'col', class: ['bytes', 'address', 'since'].includes(text) ? 'n' : '' }, text);\n",
"  for (const b of live.slice(0, p.whole ? live.length : ROWS)) {\n",
"    const row = element(p.table, 'tr', {}), first = element(row, 'td', {});\n",
"    element(first, 'i', { class: 'k' + b.kind });\n",
"    first.append(name(p, b, i));\n",
"    element(row, 'td', {}, kinds[b.kind]);\n",
"    for (const n of [b.size, b.at, b.first + 1]) element(row, 'td', { class: 'n' }, n.toLocaleString('en'));\n",
"    element(row, 'td', {}, read_next(p, b, i));\n",
"  }\n",
"  if (p.whole || live.length <= ROWS) return;\n",
"  const more = element(element(element(p.table, 'tr', {}), 'td', { colspan: 6 }), 'button', { type: 'button' },\n",
"    `Show ${live.length - ROWS} more`);\n",
"  more.addEventListener('click', () => { p.whole = true; show_live(p, i); });\n",
"}\n",
"\n",
"/* The tables are the slow part: they follow when the cursor rests. */\n",
"const shown = p => Math.min(at, p.lines.length - 1);\n",
"function show_tables() { plans.forEach(p => show_live(p, shown(p))); }\n",
"\n",
"function show(p) {\n",
"  const i = shown(p), l = p.lines[i];\n",
"  p.cursor.setAttribute('x1', x(i + .5));\n",
"  p.cursor.setAttribute('x2', x(i + .5));\n",
"  p.now.textContent = '';\n",
"  const text = element(p.now, 'p', {}, `Instruction ${i + 1} of ${p.lines.length}: `);\n",
"  element(text, 'b', {}, `${l.kind} ${l.name}`);\n",
"  text.append(`, ${words[l.kind] || l.kind}${l.place ? ', ' + l.place : ''}. Live: ${bytes(l.size)}` +\n",
"    `${i === p.peak ? ', the peak' : ''}${l.workspace ? `, workspace ${bytes(l.workspace)}` : ''}` +\n",
"    `${l.seconds ? `. Measured: ${(1e3 * l.seconds).toPrecision(3)} ms` : ''}.`);\n",
"  changes(p, i);\n",
"}\n",
"\n",
"function go(to) {\n",
"  at = Math.max(0, Math.min(steps - 1, to));\n",
"  slider.value = at;\n",
"  slider.setAttribute('aria-valuetext', `instruction ${at + 1} of ${steps}`);\n",
"  plans.forEach(show);\n",
"  clearTimeout(resting);\n",
"  resting = setTimeout(show_tables, 150);\n",
"}\n",
"\n",
"function listen(svg, p) {\n",
"  const instruction = e => Math.floor(((e.clientX - svg.getBoundingClientRect().left) *\n",
"    (LEFT + WIDE + 10) / svg.getBoundingClientRect().width - LEFT) * steps / WIDE);\n",
"  svg.addEventListener('pointerdown', e => go(instruction(e)));\n",
"  svg.addEventListener('pointermove', e => {\n",
"    if (e.buttons & 1) go(instruction(e));\n",
"    const b = p.buffers[e.target.dataset.b];\n",
"    tip.style.display = b ? 'block' : 'none';\n",
"    for (const r of svg.querySelectorAll('.hot')) r.classList.remove('hot');\n",
"    if (!b) return;\n",
"    e.target.classList.add('hot');\n",
"    tip.textContent = tip_text(p, b, Math.min(Math.max(instruction(e), 0), p.lines.length - 1));\n",
"    tip.style.left = Math.min(e.clientX + 14, innerWidth - tip.offsetWidth - 8) + 'px';\n",
"    tip.style.top = Math.min(e.clientY + 14, innerHeight - tip.offsetHeight - 8) + 'px';\n",
"  });\n",
"  svg.addEventListener('pointerleave', () => { tip.style.display = 'none'; });\n",
"}\n",
"\n",
"function toggle() {\n",
"  clearInterval(timer);\n",
"  const pause = Math.max(30, Math.min(400, 20000 / steps));\n",
"  timer = timer ? 0 : setInterval(() => at < steps - 1 ? go(at + 1) : toggle(), pause);\n",
"  if (timer && at === steps - 1) go(0);\n",
"  play.textContent = timer ? 'Pause' : 'Play';\n",
"  for (const p of plans) p.now.setAttribute('aria-live', timer ? 'off' : 'polite');\n",
"}\n",
"\n",
"/* The first plan's peak; from there the next plan's. */\n",
"function next_peak() { go(plans[(plans.findIndex(p => p.peak === at) + 1) % plans.length].peak); }\n",
"\n",
"const keys = { ArrowRight: () => go(at + 1), ArrowLeft: () => go(at - 1), PageDown: () => go(at + 10),\n",
"  PageUp: () => go(at - 10), Home: () => go(0), End: () => go(steps - 1), p: next_peak,\n",
"  ' ': toggle };\n",
"document.addEventListener('keydown', e => {\n",
"  const pressed = e.target.tagName === 'BUTTON' || e.target.tagName === 'SUMMARY';\n",
"  const scrolls = e.target.className === 'live' && /Page|Home|End/.test(e.key);\n",
"  const does = keys[e.key === 'P' ? 'p' : e.key];\n",
"  if (!does || scrolls || (pressed && e.key === ' ') || e.ctrlKey || e.altKey || e.metaKey) return;\n",
"  does();\n",
"  e.preventDefault();\n",
"});\n",
"slider.max = steps - 1;\n",
"slider.addEventListener('input', () => go(+slider.value));\n",
"play.addEventListener('click', toggle);\n",
"document.getElementById('peak').addEventListener('click', next_peak);\n",
"kinds.forEach((kind, k) => {\n",
"  const span = element(document.getElementById('legend'), 'span', {});\n",
"  element(span, 'i', { class: 'k' + k });\n",
"  span.append(kind);\n",
"});\n",
"plans.forEach(prepare);\n",
"plans.forEach(draw);\n",
"next_peak();\n",
"show_tables();\n", NULL
};

/* ==== src/report/curve.h ==== */

/* Text in markup; the curve of a sweep, as SVG. */

/* ---- names, which may be any bytes ---- */

/* Bytes of the UTF-8 sequence that s begins with, 0: none. */
static int gcpi_utf8(const unsigned char *s)
{
    int n = s[0] < 0x80 ? 1 : s[0] < 0xC2 ? 0 : s[0] < 0xE0 ? 2 : s[0] < 0xF0 ? 3 : s[0] < 0xF5 ? 4 : 0;
    for (int i = 1; i < n; i++) if ((s[i] & 0xC0) != 0x80) return 0;
    if ((s[0] == 0xE0 && s[1] < 0xA0) || (s[0] == 0xED && s[1] > 0x9F)) return 0;
    return (s[0] == 0xF0 && s[1] < 0x90) || (s[0] == 0xF4 && s[1] > 0x8F) ? 0 : n;
}

/* U+FFFE and U+FFFF, which are UTF-8 and yet in no text. */
static int gcpi_no_character(const unsigned char *s) { return s[0] == 0xEF && s[1] == 0xBF && s[2] >= 0xBE; }

/* Text in markup: what is no UTF-8, or no character of XML, becomes U+FFFD. */
static void gcpi_escaped_write(void *out, const char *text, size_t size)
{
    gcp_writer w = *(gcp_writer *)out;
    for (size_t i = 0; i < size;) {
        unsigned char s[4] = { 0 };
        memcpy(s, text + i, GCPI_MIN(size - i, sizeof s));
        const int n = gcpi_utf8(s);
        if (!n || gcpi_no_character(s) || (*s < 0x20 && *s != '\n') || *s == 0x7F) gcpi_say(w, "&#xFFFD;");
        else if (*s == '<') gcpi_say(w, "&lt;");
        else if (*s == '>') gcpi_say(w, "&gt;");
        else if (*s == '&') gcpi_say(w, "&amp;");
        else if (*s == '"') gcpi_say(w, "&quot;");
        else gcpi_say(w, "%.*s", n, text + i);
        i += (size_t)GCPI_MAX(n, 1);
    }
}

static void gcpi_say_escaped(gcp_writer w, const char *text) { gcpi_escaped_write(&w, text, strlen(text)); }

/* ---- the trade-off ---- */

static int gcpi_point_fits(const gcp_point *p) { return p->bytes && p->keep_all_seconds > 0; }
static double gcpi_sweep_x(const gcp_point *p, size_t budgets)
{
    return 70 + 780 * (double)p->budget / (double)budgets;
}
static double gcpi_sweep_y(const gcp_point *p, double seconds, double most)
{
    return 400 - 340 * (seconds / p->keep_all_seconds - 1) / (most - 1);
}

/* One of the curve's two lines (bound or seconds), over the points that fit. */
static void gcpi_sweep_line(const gcp_point *p, int count, gcp_writer w, int bound, double most, const char *style)
{
    gcpi_say(w, "<polyline fill=\"none\" %s points=\"", style);
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i]))
            gcpi_say(w, "%.1f,%.1f ", gcpi_sweep_x(&p[i], p[count - 1].budget),
                     gcpi_sweep_y(&p[i], bound ? p[i].bound_seconds : p[i].seconds, most));
    gcpi_say(w, "\"/>\n");
}

static void gcpi_sweep_axes(size_t budgets, double most, int fits, gcp_writer w)
{
    const char *unit;
    const double one = gcpi_unit(budgets, &unit);
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 460\" font-family=\"sans-serif\" "
                "font-size=\"12\"><rect width=\"900\" height=\"460\" fill=\"white\"/>\n"
                "<text x=\"70\" y=\"28\" font-size=\"15\">Time of a step (keep-all = 1) against the budget in %s; "
                "%s</text>\n", unit, fits ? "dashed: no plan is faster" : "nothing fits these budgets");
    for (int i = 0; i <= 4; i++) {
        const double share = i / 4.0, y = 400 - 340 * share;
        gcpi_say(w,
                 "<line x1=\"70\" x2=\"850\" y1=\"%.1f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"62\" y=\"%.1f\" "
                 "text-anchor=\"end\">%.3f</text>\n",
                 y, y, y + 4, 1 + share * (most - 1));
        gcpi_say(w, "<text x=\"%.1f\" y=\"420\" text-anchor=\"middle\">%.4g</text>\n", 70 + 780 * share,
                 share * (double)budgets / one);
    }
}

GCPI_DEF void gcp_sweep_svg(const gcp_point *p, int count, gcp_writer w)
{
    double most = 1.05;
    int fits = 0;
    if (count <= 0 || !p[count - 1].budget) return;
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i])) {
            most = GCPI_MAX(most, p[i].seconds / p[i].keep_all_seconds);
            fits++;
        }
    gcpi_sweep_axes(p[count - 1].budget, most, fits, w);
    gcpi_sweep_line(p, count, w, 1, most, "stroke=\"#5f6368\" stroke-dasharray=\"5 4\"");
    gcpi_sweep_line(p, count, w, 0, most, "stroke=\"#1a73e8\" stroke-width=\"2\"");
    for (int i = 0; i < count; i++)
        if (gcpi_point_fits(&p[i]))
            gcpi_say(w,
                     "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"#1a73e8\"><title>%zu bytes: %.4f</title>"
                     "</circle>\n",
                     gcpi_sweep_x(&p[i], p[count - 1].budget), gcpi_sweep_y(&p[i], p[i].seconds, most), p[i].budget,
                     p[i].seconds / p[i].keep_all_seconds);
    gcpi_say(w, "</svg>\n");
}

/* ==== src/report/pictures.h ==== */

/* Pictures: memory over time, traces, graphs. A plan's memory as SVG and as a page one can step through, its times
   as a trace, its network as a graph. */

/* ---- memory over time (to the right) and address (up): a rectangle per buffer, its name shown on hover ---- */

/* What a buffer is; page.js has the same numbers. */
enum {
    GCPI_IS_INPUT, GCPI_IS_KEPT, GCPI_IS_GONE, GCPI_IS_AGAIN, GCPI_IS_GRADIENT, GCPI_IS_WEIGHT, GCPI_IS_WORKSPACE,
    GCPI_IS_RESULT, GCPI_IS_COUNT
};
static const char *const gcpi_colours[] = { "#9aa0a6", "#1a73e8", "#d2e3fc", "#7baaf7",
                                            "#e8710a", "#b5651d", "#188038", "#9334e6" };

/* Whether a buffer waits for the step's end alone (the loss, what gcp_keep keeps), not for backward. */
static int gcpi_buffer_result(const gcpi_plan *core, const gcpi_plan_buffer *b)
{
    int result = 0;
    if (b->last < core->list.count - 1) return 0;
    for (int i = core->p.items[b->item].root; i >= 0; i = core->p.items[i].next)
        result |= core->p.items[i].pinned == GCPI_PINNED_TO_END;
    for (int i = core->p.items[b->item].root; result && i >= 0; i = core->p.items[i].next)
        if (gcpi_read_from(core, core->forward_end, i) == 1) result = 0;
    return result;
}

static int gcpi_buffer_is(const gcpi_plan *core, const gcpi_plan_buffer *b)
{
    const gcpi_item *x = &core->p.items[b->item];
    if (x->kind == GCPI_INPUT_ITEM) return GCPI_IS_INPUT;
    if (x->kind == GCPI_GRADIENT_ITEM)
        return !gcpi_is_graph(&core->p) && core->p.tape->tensors[x->tensor].kind == GCPI_PARAMETER ? GCPI_IS_WEIGHT
                                                                                     : GCPI_IS_GRADIENT;
    if (b->again || gcpi_buffer_result(core, b)) return b->again ? GCPI_IS_AGAIN : GCPI_IS_RESULT;
    return b->last >= core->forward_end ? GCPI_IS_KEPT : GCPI_IS_GONE;
}

static void gcpi_svg_rect(gcp_writer w, double x, double y, double width, double height, const char *colour)
{
    gcpi_say(w, "<rect x=\"%.2f\" y=\"%.2f\" width=\"%.2f\" height=\"%.2f\" fill=\"%s\">", x, y, GCPI_MAX(width, 0.3),
             GCPI_MAX(height, 0.3), colour);
}

static void gcpi_svg_buffers(const gcpi_plan *core, gcp_writer w, double left, double bottom, double dx, double dy)
{
    char name[256];
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        gcpi_svg_rect(w, left + dx * x->first, bottom - dy * (double)(x->offset + x->bytes),
                      dx * (x->last - x->first + 1), dy * (double)x->bytes, gcpi_colours[gcpi_buffer_is(core, x)]);
        gcpi_item_name(&core->p, x->item, name, sizeof name);
        gcpi_say(w, "<title>%s",
                 core->p.items[x->item].kind == GCPI_GRADIENT_ITEM ? "gradient of "
                 : x->again                                      ? "recomputed "
                                                                 : "");
        gcpi_say_escaped(w, name);
        gcpi_say(w, ": %zu bytes at %zu, instructions %d to %d</title></rect>\n", x->bytes, x->offset, x->first + 1,
                 x->last + 1);
    }
    for (int i = 0; i < (int)core->list.count; i++) {
        size_t bytes = core->p.tasks[core->list.at[i].task].workspace,
               first = gcpi_front(&core->p);
        if (!bytes) continue;
        gcpi_svg_rect(w, left + dx * i, bottom - dy * (double)(first + bytes), dx, dy * (double)bytes,
                      gcpi_colours[GCPI_IS_WORKSPACE]);
        gcpi_say(w, "<title>workspace of instruction %d: %zu bytes</title></rect>\n", i + 1, bytes);
    }
}

GCPI_DEF void gcp_memory_svg(const gcp_plan *plan, gcp_writer w)
{
    static const struct { const char *text; double at; } legend[] = {
        { "input", 0 }, { "kept for backward", 70 }, { "gone after forward", 210 }, { "recomputed", 355 },
        { "activation gradient", 460 }, { "weight gradient", 610 }, { "workspace", 740 }, { "result", 840 }
    };
    const double width = 960, height = 420, left = 76, top = 34;
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    const char *unit;
    double dx = width / (double)plan->instructions, dy = height / (double)plan->slab_bytes,
           turn = left + dx * core->forward_end, one = gcpi_unit(plan->slab_bytes, &unit);
    const int late = turn > left + width - 110;
    gcpi_say(w, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 1060 520\" font-family=\"sans-serif\" "
                "font-size=\"12\">\n<rect width=\"1060\" height=\"520\" fill=\"white\"/>\n");
    gcpi_say(w,
             "<text x=\"%.0f\" y=\"20\" font-size=\"14\">slab %.3f %s of %.3f %s in all, over %d instructions; %d "
             "rerun%s of units</text>\n",
             left, (double)plan->slab_bytes / one, unit, (double)plan->bytes / one, unit, plan->instructions,
             plan->reruns, plan->reruns == 1 ? "" : "s");
    for (int i = 0; i <= 4; i++) {
        double y = top + height - height * i / 4;
        gcpi_say(w,
                 "<line x1=\"%.0f\" y1=\"%.1f\" x2=\"%.0f\" y2=\"%.1f\" stroke=\"#e0e0e0\"/><text x=\"%.0f\" "
                 "y=\"%.1f\" text-anchor=\"end\">%.4g %s</text>\n",
                 left, y, left + width, y, left - 6, y + 4, (double)plan->slab_bytes / one * i / 4, unit);
    }
    gcpi_svg_buffers(core, w, left, top + height, dx, dy);
    if (core->p.training)
        gcpi_say(w,
                 "<line x1=\"%.1f\" y1=\"%.0f\" x2=\"%.1f\" y2=\"%.0f\" stroke=\"black\" stroke-dasharray=\"4 "
                 "3\"/><text x=\"%.1f\" y=\"%.0f\" text-anchor=\"%s\">backward begins</text>\n",
                 turn, top, turn, top + height, turn + (late ? -4 : 4), top + 12, late ? "end" : "start");
    for (int i = 0; i < GCPI_IS_COUNT; i++)
        gcpi_say(w,
                 "<rect x=\"%.0f\" y=\"%.0f\" width=\"12\" height=\"12\" fill=\"%s\"/><text x=\"%.0f\" "
                 "y=\"%.0f\">%s</text>\n",
                 left + legend[i].at, top + height + 18, gcpi_colours[i], left + legend[i].at + 17, top + height + 28,
                 legend[i].text);
    gcpi_say(w, "<text x=\"%.0f\" y=\"%.0f\">instructions, in order &#8594;   up: address in the slab</text>\n</svg>\n",
             left, top + height + 50);
}

/* ---- names as strings ---- */

/* The inside of a string, which may stand in a script: no '<'. What is not UTF-8 becomes U+FFFD. */
static void gcpi_json_write(void *out, const char *text, size_t size)
{
    gcp_writer w = *(gcp_writer *)out;
    for (size_t i = 0; i < size;) {
        unsigned char s[4] = { 0 };
        memcpy(s, text + i, GCPI_MIN(size - i, sizeof s));
        int n = gcpi_utf8(s);
        if (!n || gcpi_no_character(s)) gcpi_say(w, "\\ufffd");
        else if (s[0] < 0x20 || s[0] == '<' || s[0] == '&' || s[0] == 0x7F) gcpi_say(w, "\\u%04x", s[0]);
        else if (s[0] == '"' || s[0] == '\\') gcpi_say(w, "\\%c", s[0]);
        else gcpi_say(w, "%.*s", n, (const char *)s);
        i += (size_t)GCPI_MAX(n, 1);
    }
}

static void gcpi_json_string(gcp_writer w, const char *text)
{
    gcpi_say(w, "\"");
    gcpi_json_write(&w, text, strlen(text));
    gcpi_say(w, "\"");
}

/* A task's name and the place of its op: "conv2d[0]","networks.h:122". */
static void gcpi_json_task(const gcpi_plan *core, int task, gcp_writer w)
{
    char name[256], place[256] = "";
    gcpi_json_string(w, gcpi_task_name(&core->p, &core->p.tasks[task], name, sizeof name));
    if (!gcpi_is_graph(&core->p)) {
        gcp_at at = gcpi_task_at(&core->p, task, core->opts.at);
        snprintf(place, sizeof place, "%s:%d", gcpi_basename(at.file), at.line);
    }
    gcpi_say(w, ",");
    gcpi_json_string(w, place);
}

/* ---- a page one can step through: page.js draws what stands in it as JSON ---- */

static void gcpi_page_text(gcp_writer w, const char *const *lines)
{
    for (; *lines; lines++) gcpi_put(w, *lines, strlen(*lines));
}

/* [kind, name, place, live bytes, measured seconds, workspace, [item, mode, address, ...]] */
static void gcpi_page_line(const gcpi_plan *core, ptrdiff_t i, const gcpi_placed *placed, gcp_writer w)
{
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    const char *comma = "";
    gcpi_say(w, "%s[\"%c\",", i ? ",\n" : "", core->list.at[i].letter);
    gcpi_json_task(core, core->list.at[i].task, w);
    gcpi_say(w, ",%zu,%.9g,%zu,[", core->live[i], core->seconds[i], t->workspace);
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        if (placed[k].offset < 0 || core->p.items[core->p.items[o->item].root].kind == GCPI_STATE_ITEM) continue;
        gcpi_say(w, "%s%d,%d,%td", comma, o->item, o->mode, placed[k].offset);
        comma = ",";
    }
    gcpi_say(w, "]]");
}

/* Which of its op's outputs a tensor is, from 0. */
static int gcpi_output_of(const gcp_tape *t, int tensor)
{
    const int op = t->tensors[tensor].producer;
    return op >= 0 ? tensor - t->ops[op].out : 0;
}

/* [name, bytes], 0 for what is not there */
static void gcpi_page_items(const gcpi_problem *p, gcp_writer w)
{
    char name[256];
    for (int i = 0; i < p->item_count; i++) {
        if (i) gcpi_say(w, ",");
        if (!p->items[i].active) { gcpi_say(w, "0"); continue; }
        gcpi_item_name(p, i, name, sizeof name);
        gcpi_say(w, "[\"%s", p->items[i].kind == GCPI_GRADIENT_ITEM && !gcpi_is_graph(p) ? "gradient of " : "");
        gcpi_json_write(&w, name, strlen(name));
        const int output = gcpi_is_graph(p) ? 0 : gcpi_output_of(p->tape, p->items[i].tensor);
        if (output > 0) gcpi_say(w, ", output %d", output + 1);
        gcpi_say(w, "\",%zu]", p->items[i].bytes);
    }
}

static const char *gcpi_policy_word(const gcpi_plan *core)
{
    static const char *const words[] = { "GCP_POLICY_SEGMENTS",    "GCP_POLICY_KEEP_ALL", "GCP_POLICY_UNIFORM",
                                         "GCP_POLICY_CHECKPOINTS", "GCP_POLICY_SQRT",     "GCP_POLICY_RECURSIVE",
                                         "GCP_POLICY_CHEAP",       "GCP_POLICY_BUDGET" };
    return core->opts.list ? "A list" : !core->p.training ? "Inference" : words[core->opts.policy];
}

static void gcpi_page_plan(const gcp_plan *plan, gcp_writer w)
{
    const gcpi_plan *core = plan->core;
    const gcpi_problem *p = &core->p;
    gcp_writer escaped = { gcpi_json_write, &w };
    gcpi_say(w, "{\"policy\":\"%s\",\"bytes\":%zu,\"slab\":%zu,\"reruns\":%d,", gcpi_policy_word(core), plan->bytes,
             plan->slab_bytes, plan->reruns);
    gcpi_say(w, "\"peak\":%d,\"turn\":%d,\"align\":%zu,\"numbers\":%zu,\"why\":\"", core->peak_at,
             p->training ? core->forward_end : -1, p->target.align, gcpi_front(p));
    gcp_why_print(plan, escaped);
    gcpi_say(w, "\",\n\"items\":[");
    gcpi_page_items(p, w);
    gcpi_say(w, "],\n\"lines\":[");
    for (ptrdiff_t i = 0, n = 0; i < core->list.count; n += p->tasks[core->list.at[i++].task].count)
        gcpi_page_line(core, i, core->placed + n, w);
    gcpi_say(w, "],\n\"buffers\":[");
    for (int b = 0; b < core->buffer_count; b++) {
        const gcpi_plan_buffer *x = &core->buffers[b];
        gcpi_say(w, "%s[%d,%d,%d,%d,%zu,%zu]", b ? ",\n" : "", x->item, gcpi_buffer_is(core, x), x->first, x->last,
                 x->offset, x->bytes);
    }
    gcpi_say(w, "]}");
}

GCPI_DEF void gcp_memory_html(const gcp_plan *plan, const gcp_plan *beside, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const char *title = plan->core->p.training ? "Memory of a training step" : "Memory of an inference";
    gcp_writer escaped = { gcpi_escaped_write, &w };
    gcpi_say(w, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
                "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
                "<title>%s</title>\n<style>\n", title);
    gcpi_page_text(w, gcpi_page_style);
    gcpi_say(w, "</style>\n</head>\n<body>\n<h1>%s</h1>\n<p>Keys: left and right step, page up "
                "and down by ten, home, end, p to the peak, space plays.</p>\n", title);
    gcpi_say(w, "<div id=\"bar\">\n<button type=\"button\" id=\"play\">Play</button>\n"
                "<button type=\"button\" id=\"peak\">Peak</button>\n"
                "<input type=\"range\" id=\"at\" min=\"0\" value=\"0\" aria-label=\"Instruction\">\n</div>\n"
                "<p id=\"legend\"></p>\n<main id=\"plans\"></main>\n<div id=\"tip\"></div>\n"
                "<noscript><p>This page needs a script, which is in it. Without it, why the plan takes its bytes:</p>\n"
                "<pre>\n");
    gcp_why_print(plan, escaped);
    gcpi_say(w, "</pre></noscript>\n<script type=\"application/json\" id=\"data\">\n[");
    gcpi_page_plan(plan, w);
    if (beside && beside != plan && gcpi_reportable(beside)) {
        gcpi_say(w, ",\n");
        gcpi_page_plan(beside, w);
    }
    gcpi_say(w, "]\n</script>\n<script>\n");
    gcpi_page_text(w, gcpi_page_script);
    gcpi_say(w, "</script>\n</body>\n</html>\n");
}

/* ---- a trace: Chrome's format, which Perfetto reads ---- */

static void gcpi_trace_event(const gcpi_plan *core, ptrdiff_t i, const gcpi_time *span, gcp_writer w)
{
    static const char *const kinds[] = { GCPI_TASK_KINDS(GCPI_TASK_WORD) };
    const gcpi_task *t = &core->p.tasks[core->list.at[i].task];
    char name[256];
    gcpi_say(w, ",\n{\"ph\":\"X\",\"pid\":1,\"tid\":%d,\"ts\":%.3f,\"dur\":%.3f,\"cat\":\"%s\",\"name\":\"%c ",
             gcpi_copies(t) ? 2 : 1, 1e6 * span->begin, 1e6 * (span->end - span->begin),
             core->list.at[i].letter == 'R' ? "recompute" : kinds[t->kind], core->list.at[i].letter);
    gcpi_task_name(&core->p, t, name, sizeof name);
    gcpi_json_write(&w, name, strlen(name));
    gcpi_say(w, "\",\"args\":{\"instruction\":%td,\"measured\":%s,\"name and place\":[", i + 1,
             core->seconds[i] > 0 ? "true" : "false");
    gcpi_json_task(core, core->list.at[i].task, w);
    gcpi_say(w, "]}},\n{\"ph\":\"C\",\"pid\":1,\"ts\":%.3f,\"name\":\"live bytes\",\"args\":{\"bytes\":%zu}}",
             1e6 * span->begin, core->live[i]);
}

GCPI_DEF void gcp_trace_json(const gcp_plan *plan, gcp_writer w)
{
    if (!gcpi_reportable(plan)) return;
    const gcpi_plan *core = plan->core;
    gcp_arena *a = core->opts.arena ? core->opts.arena : plan->tape->arena;
    ptrdiff_t scratch = a->scratch;
    gcpi_time *spans = GCPI_SCRATCH(a, gcpi_time, core->list.count);
    if (!spans) {
        a->scratch = scratch;
        gcpi_fail(plan->tape, GCP_E_CAPACITY, core->opts.at, "gcp_trace_json",
                  "%td instructions take %td bytes of the arena", core->list.count,
                  core->list.count * (ptrdiff_t)sizeof *spans);
        return;
    }
    gcpi_timeline(&core->p, &core->list, core->placed, core->seconds, spans);
    gcpi_say(w, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
                "{\"ph\":\"M\",\"pid\":1,\"name\":\"process_name\",\"args\":{\"name\":\"a step of gcp\"}},\n"
                "{\"ph\":\"M\",\"pid\":1,\"tid\":1,\"name\":\"thread_name\",\"args\":{\"name\":\"computing\"}},\n"
                "{\"ph\":\"M\",\"pid\":1,\"tid\":2,\"name\":\"thread_name\",\"args\":{\"name\":\"copies\"}}");
    for (ptrdiff_t i = 0; i < core->list.count; i++) gcpi_trace_event(core, i, &spans[i], w);
    gcpi_say(w, "\n]}\n");
    a->scratch = scratch;
}

/* ---- the network as a graph: Graphviz ---- */

/* The inside of a string: quotes and backslashes escaped, no control characters, UTF-8. */
static void gcpi_dot_text(gcp_writer w, const char *s)
{
    for (int n; *s; s += GCPI_MAX(n, 1)) {
        n = gcpi_utf8((const unsigned char *)s);
        if (!n) gcpi_say(w, "\xEF\xBF\xBD");
        else if (*s == '"' || *s == '\\') gcpi_say(w, "\\%c", *s);
        else if ((unsigned char)*s < 0x20 || *s == 0x7F) gcpi_say(w, " ");
        else gcpi_say(w, "%.*s", n, s);
    }
}

static const char *gcpi_base(const char *name)
{
    const char *slash = strrchr(name, '/');
    return slash ? slash + 1 : name;
}

/* Closes the clusters of segments that do not hold segment to, and opens those that do. Returns to. */
static int gcpi_dot_enter(const gcp_tape *t, int from, int to, gcp_writer w)
{
    char name[256];
    int inside = to;
    for (; from > 0; from = t->segments[from].parent) {
        for (inside = to; inside > 0 && inside != from;) inside = t->segments[inside].parent;
        if (inside == from) break;
        gcpi_say(w, "}\n");
    }
    while (from != to) {
        for (inside = to; t->segments[inside].parent != from;) inside = t->segments[inside].parent;
        gcpi_name_text(t, t->segments[inside].name, name, sizeof name);
        gcpi_say(w, "subgraph cluster_%d { label=\"", inside);
        gcpi_dot_text(w, gcpi_base(name));
        gcpi_say(w, "\"; color=\"#80868b\"; style=rounded\n");
        from = inside;
    }
    return to;
}

/* What an op's output is once forward is done: kept, if backward reads it as forward left it. */
static int gcpi_dot_is(const gcpi_plan *core, const gcpi_task *t)
{
    int is = GCPI_IS_GONE;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &core->p.operands[t->operands + k];
        const int read = o->mode == GCPI_READ ? 0 : gcpi_read_from(core, core->forward_end, o->item);
        if (read == 1 || (read && is == GCPI_IS_GONE)) is = read == 1 ? GCPI_IS_KEPT : GCPI_IS_RESULT;
    }
    return is;
}

static void gcpi_dot_op(const gcpi_plan *core, int task, gcp_writer w)
{
    const gcpi_problem *p = &core->p;
    const gcpi_task *t = &p->tasks[task];
    const int again = gcpi_rerun(core, task), is = again ? GCPI_IS_AGAIN : gcpi_dot_is(core, t);
    char name[256], shape[64] = "";
    size_t bytes = 0;
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        if (o->mode == GCPI_WRITE) bytes += p->items[o->item].bytes;
    }
    if (!gcpi_is_graph(p)) gcpi_shape_text(p->tape->tensors[p->tape->ops[t->op].out].shape, shape, sizeof shape);
    gcpi_say(w, "n%d [label=\"", task);
    gcpi_dot_text(w, gcpi_base(gcpi_task_name(p, t, name, sizeof name)));
    gcpi_say(w, "\\n%s%s%zu bytes", shape, *shape ? ", " : "", bytes);
    if (again) gcpi_say(w, "\\nrun %d more time%s", again, again > 1 ? "s" : "");
    gcpi_say(w, "\", fillcolor=\"%s\"%s, tooltip=\"", gcpi_colours[is],
             is == GCPI_IS_KEPT ? ", fontcolor=white, penwidth=2" : is == GCPI_IS_RESULT ? ", fontcolor=white" : "");
    gcpi_dot_text(w, name);
    gcpi_say(w, "\"]\n");
}

static void gcpi_dot_edges(const gcpi_problem *p, int task, gcp_writer w)
{
    const gcpi_task *t = &p->tasks[task];
    for (int k = 0; k < t->count; k++) {
        const gcpi_operand *o = &p->operands[t->operands + k];
        const gcpi_item *x = &p->items[o->item];
        if (o->mode == GCPI_READ && x->kind == GCPI_INPUT_ITEM) gcpi_say(w, "i%d -> n%d\n", o->item, task);
        else if (o->mode == GCPI_READ && x->producer >= 0) gcpi_say(w, "n%d -> n%d\n", x->producer, task);
    }
}

GCPI_DEF void gcp_dot(const gcp_plan *plan, gcp_writer w)
{
    char name[256];
    int segment = 0;
    if (!gcpi_reportable(plan)) return;
    const gcpi_problem *p = &plan->core->p;
    gcpi_say(w, "digraph gcp {\nnode [shape=box, style=\"filled,rounded\", fontname=\"sans-serif\"]\n"
                "fontname=\"sans-serif\"; labelloc=t; label=\"%zu bytes at the peak, %d rerun%s of units\\n"
                "blue: kept for backward; light blue: run again; pale: gone when no forward op needs it; violet: result"
                "\"\n",
             plan->bytes, plan->reruns, plan->reruns == 1 ? "" : "s");
    for (int i = 0; i < p->item_count; i++) {
        if (p->items[i].kind != GCPI_INPUT_ITEM || !p->items[i].active) continue;
        gcpi_item_name(p, i, name, sizeof name);
        gcpi_say(w, "i%d [shape=ellipse, fillcolor=\"%s\", label=\"", i, gcpi_colours[GCPI_IS_INPUT]);
        gcpi_dot_text(w, name);
        gcpi_say(w, "\"]\n");
    }
    for (int f = 0; f < p->forward; f++) {
        if (!gcpi_is_graph(p)) segment = gcpi_dot_enter(p->tape, segment, p->tasks[f].segment, w);
        gcpi_dot_op(plan->core, f, w);
    }
    if (!gcpi_is_graph(p)) gcpi_dot_enter(p->tape, segment, 0, w);
    for (int f = 0; f < p->forward; f++) gcpi_dot_edges(p, f, w);
    gcpi_say(w, "}\n");
}
GCPI_WARM                              /* again at the user's level of optimisation */

/* ==== src/end.h ==== */

#if defined(__clang__)
#pragma STDC FP_CONTRACT DEFAULT
#endif
#if defined(__clang__) && (defined(__x86_64__) || defined(__i386__))
#pragma float_control(pop)
#elif defined(__GNUC__) && !defined(__clang__)
#pragma GCC pop_options
#elif defined(_MSC_VER) && !defined(__clang__)
#pragma float_control(pop)
#endif
#endif /* GCP_IMPLEMENTATION */

/* MIT licence

   Copyright (c) 2026 the gcp authors

   Permission is hereby granted, free of charge, to any person obtaining a copy of this software and associated
   documentation files (the "Software"), to deal in the Software without restriction, including without limitation the
   rights to use, copy, modify, merge, publish, distribute, sublicense, and/or sell copies of the Software, and to
   permit persons to whom the Software is furnished to do so, subject to the following conditions:

   The above copyright notice and this permission notice shall be included in all copies or substantial portions of the
   Software.

   THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND, EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE
   WARRANTIES OF MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT. IN NO EVENT SHALL THE AUTHORS OR
   COPYRIGHT HOLDERS BE LIABLE FOR ANY CLAIM, DAMAGES OR OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR
   OTHERWISE, ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR OTHER DEALINGS IN THE SOFTWARE. */
