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

           // run: ten kinds of images, each of a colour of its own
           for (int step = 0; step < 10; step++) {
               for (int i = 0; i < 32; i++) labels[i] = (3 * i + step) % 10;
               for (int i = 0; i < 32 * 32 * 32 * 3; i++)
                   images[i] = (float)(labels[i / 3072] * (i % 3 + 1) % 10) / 10 + (float)(i * 7 % 11) / 11;
               gcp_write(&plan, image, images);
               gcp_write(&plan, label, labels);
               printf("step %d: loss %.4f\n", step, gcp_step(&plan, .lr = 0.01));
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

#define GCP_KB(n) ((size_t)((n) * 1024LL))            /* GCP_MB(1.5) is 1.5 MiB; of an integer, a constant */
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

/* Elements: gcp_real; labels and ids; bytes and bits that ops keep for their backward (a pool's index, a sign); reals
   that a plan stores as bfloat16. */
typedef enum gcp_dtype { GCP_DTYPE_REAL, GCP_DTYPE_I32, GCP_DTYPE_U8, GCP_DTYPE_BIT, GCP_DTYPE_BF16 } gcp_dtype;
/* How a plan stores activations and their gradients (gcp_plan_opts.store): GCP_STORE_BF16 as bfloat16, the upper half
   of a float. The result of each op is rounded once, to the nearest, ties to even, whether it is stored or not. */
typedef enum gcp_store { GCP_STORE_REAL, GCP_STORE_BF16 = 16 } gcp_store;      /* 16: nothing else's value */
/* One number to bfloat16 and back: a NaN stays one, infinities and denormals are as the format has them. */
GCP_API uint16_t gcp_bf16(float x);
GCP_API float gcp_bf16_value(uint16_t bits);

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

/* Pointwise ops: gcp_scale(x, .by = 2), gcp_tanh(x), gcp_silu(x), gcp_gelu(x) and more. */
#include "src/ops/pointwise_calls.h"   /* pointwise ops: functions, options, macros, GCP_POINTWISE_OPS */

/* The ops. One name serves the enum and the table in src/ops/table.h. */
#define GCP_OPS(X) GCP_OPS_WITH_ROOMS(X) GCP_POINTWISE_OPS(X) X(CUSTOM, custom)
#define GCP_OPS_WITH_ROOMS(X) \
    X(CONV2D, conv2d) X(CONV_TRANSPOSE2D, conv_transpose2d) X(UPSAMPLE, upsample) X(RESIZE, resize) \
    X(LINEAR, linear) X(MATMUL, matmul) X(MATMULS, matmuls) \
    X(ADD, add) X(PAIR, pair) X(BIAS, bias) X(RELU, relu) X(LEAKY_RELU, leaky_relu) X(RELU6, relu6) \
    X(CLAMP, clamp) X(MAX_POOL, max_pool) \
    X(AVG_POOL, avg_pool) X(GLOBAL_AVG_POOL, global_avg_pool) X(BATCH_STATS, batch_stats) X(BATCH_NORM, batch_norm) \
    X(LAYER_NORM, layer_norm) X(GROUP_NORM, group_norm) X(SOFTMAX, softmax) X(ATTENTION, attention) \
    X(DROPOUT, dropout) X(CONCAT, concat) X(SLICE, slice) X(RESHAPE, reshape) X(JOIN, join) X(CUT, cut) \
    X(PAD, pad) X(TRANSPOSE, transpose) X(SUM, sum) X(MAX, max) \
    X(EMBEDDING, embedding) X(CROSS_ENTROPY, cross_entropy) X(MSE, mse) X(MEAN, mean)
#define GCPI_KIND(NAME, name) GCP_OP_##NAME,
typedef enum gcp_op_kind { GCP_OPS(GCPI_KIND) GCP_OP_COUNT } gcp_op_kind;
/* Rows of the op table that are not recorded: the library adds their calls itself. APPLY stands for batch_norm's, add's
   and the rectifiers' forward, several or one: in: x, what is added, mean, scale, gamma, beta (data NULL: left out);
   out: y, mask (or NULL); attributes NULL: no rectifier, else as relu. SEED: the loss's gradient. NORM: .clip_norm.
   ROUND: with GCP_STORE_BF16, rounds the floats of output 0 to bfloat16 values, where they lie. */
enum { GCP_ROW_APPLY = GCP_OP_COUNT, GCP_ROW_SEED, GCP_ROW_NORM, GCP_ROW_UPDATE, GCP_ROW_ROUND, GCP_ROW_COUNT };
#undef GCPI_KIND
/* Classes of ops, for .keep of a segment: GCP_KEEP_PRODUCTS | GCP_KEEP_NORMS. */
enum {
    GCP_KEEP_PRODUCTS  = 1,     /* convolutions, linear, matmul */
    GCP_KEEP_ATTENTION = 2,     /* attention, softmax */
    GCP_KEEP_NORMS     = 4,
    GCP_KEEP_POOLS     = 8,     /* pools, reductions, upsample, resize */
    GCP_KEEP_PAIRS     = 16,    /* add, mul and the other ops of two operands, bias */
    GCP_KEEP_POINTWISE = 32,    /* pointwise ops, rectifiers, dropout */
    GCP_KEEP_MOVES     = 64,    /* concat, slice, pad, transpose, embedding */
    GCP_KEEP_CUSTOM    = 128
};

/* One operand of a kernel: element (pixel p, channel c) is data[p * pitch + c]; there are n * h * w pixels. data is
   NULL for what this call neither reads nor makes. GCP_DTYPE_BIT: pixel-major, dense, 8 elements per byte. */
typedef struct gcp_view { void *data; gcp_shape shape; ptrdiff_t pitch; gcp_dtype dtype; int accumulate; } gcp_view;

/* What changes from step to step. It lies in the slab: a step that a device recorded reads the new numbers there. */
typedef struct gcp_step_numbers {
    double   lr, gradient_scale;        /* gradient_scale: 1 / micro-batches (or their labels), times the clip factor */
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
    gcp_store store;                    /* the plan's; GCP_STORE_BF16: see GCP_FLAG_BF16 */
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

/* Of one call. performed: the FLOPs of a kernel that needs fewer than the op has (0: as many); its time is theirs. */
typedef struct gcp_cost { double flops, bytes; size_t workspace; double performed; } gcp_cost;
typedef struct gcp_cost_call {
    const void *attributes; const gcp_shape *in, *out; int inputs, outputs, backward; const gcp_target *target;
    unsigned wanted;                    /* backward: bit i = gradient of input i is wanted */
    gcp_store store;                    /* the plan's */
    /* NULL, or the call that may run in the same pass (GCP_FLAG_FUSED: statistics behind a convolution, with the larger
       workspace of both) */
    const struct gcp_cost_call *fused;
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
       rectifier behind it: dout[0] is the rectifier's gradient; inside or not is made again from in[0] (in[1] to in[4]:
       mean, scale, gamma, beta). GCP_ROW_UPDATE: call, call->fused, its fused and so on, a parameter each, at most
       GCP_MAX_UPDATES; a row of your own in a copied table does all of them, or is without the flag. Bits must be those
       of one call after the other. */
    GCP_FLAG_FUSED         = 1024,
    /* Without these the careful answer is taken: gcp_write_some refuses, a file's order of channels is not known. */
    GCP_FLAG_SAMPLES_APART = 2048, /* sample i of an output is made of samples i of the inputs (the first size counts
                                      samples), and of inputs that have none, as parameters */
    GCP_FLAG_SAME_CHANNELS = 4096, /* channel c of an output belongs to channel c of each input of as many: an order
                                      that a file has for one of them (GCP_STYLE_TORCH, behind gcp_flatten) holds for
                                      all */
    /* takes operands of GCP_DTYPE_BF16, any of them, which it reads as they are and writes rounded (gcp_bf16); with
       .accumulate the sum is rounded. Without it a plan with GCP_STORE_BF16 gives floats, four bytes each, whose values
       are rounded all the same, by those who make them: what this op makes is rounded when it returns */
    GCP_FLAG_BF16 = 8192
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
   (both or neither), copy_rows, behind and holds. */
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
    /* from behind(context, 1) to behind(context, 0), which nest: copies into the device's memory may return at once,
       when they have taken what is in `from`, and run behind all that was issued; NULL: they wait as ever */
    void (*behind)(void *context, int on);
    /* whether memory that the user gives or takes values in is the device's; NULL: never. With GCP_STORE_BF16 they are
       then rounded by rows of the table, else by the CPU */
    int (*holds)(void *context, const void *memory);
} gcp_device;

/* The machine that a plan is made for. Zero-initialised: this CPU, with OpenMP's threads if compiled with OpenMP,
   else one thread, whatever .threads says. For a thread pool of your own, fill threads, parallel_for and context.
   parallel_for runs task(arg, index, worker) for every index in [0, tasks). worker is in [0, threads), and no two
   tasks that run at the same time have the same. parallel_for stays NULL where the caller gave none. Each thread
   takes workspace of its own: a plan's bytes grow with .threads, and its least budget does as a rule, so a budget
   that fits here may not on a machine with more. { .threads = 4 } holds that down. */
struct gcp_target {
    const char *name;
    const gcp_op *kernels;              /* GCP_ROW_COUNT rows whose forward, backward, cost and GCP_FLAG_FUSED replace
                                           those of gcp_cpu_kernels; src/cuda/ is an example */
    const gcp_device *device;           /* NULL: the CPU reads and writes this target's memory */
    int    threads, isa;                /* isa: 0 the best; GCP_ISA_... forces one: for tests, or for the bytes and
                                           bits of a machine that has no more */
    int    direct;                      /* 1: on the CPU 3x3 convolutions are sums over taps, too, never Winograd's
                                           tiles: for values that differ by many orders of magnitude, or are infinite */
    size_t align;                       /* of every tensor; a power of two from 8 on, default 64 */
    size_t row_align;                   /* rows of a multiple of so many bytes begin at one, also where a tensor lies in
                                           the rows of a concat: else it is a copy. 0: any */
    double flops_per_second, bytes_per_second;      /* cost model; defaults 1e11 and 1e10 */
    double bf16_flops_per_second;                   /* of ops on what GCP_STORE_BF16 rounds; 0: flops_per_second, on
                                                       the CPU with GCP_ISA_AVX512_BF16 twice that */
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
/* AVX512_BF16: as AVX512, but in plans with GCP_STORE_BF16 convolutions (not depthwise) and products round their
   weights, and multiply bfloat16, two channels an instruction (floats still where a kernel of several taps has an odd
   number of channels, or a wide image few output channels). Denormals are 0. */
enum { GCP_ISA_BEST, GCP_ISA_SCALAR, GCP_ISA_V128, GCP_ISA_AVX2, GCP_ISA_AVX512, GCP_ISA_AVX512_BF16 };

/* A report goes through a writer; gcp_file(stdout) is one. */
typedef struct gcp_writer { void (*write)(void *context, const char *text, size_t size); void *context; } gcp_writer;

typedef enum gcp_init { GCP_INIT_DEFAULT, GCP_INIT_HE, GCP_INIT_GLOROT, GCP_INIT_ZEROS, GCP_INIT_ONES } gcp_init;
/* GCP_PADDING_SAME: as in TensorFlow, out = ceil(in / stride) */
typedef enum gcp_padding { GCP_PADDING_EXPLICIT, GCP_PADDING_SAME } gcp_padding;
/* One of the four stored axes; channels where none is named. */
typedef enum gcp_axis {
    GCP_AXIS_CHANNELS, GCP_AXIS_SAMPLES, GCP_AXIS_HEIGHT, GCP_AXIS_WIDTH, GCP_AXIS_TOKENS = GCP_AXIS_WIDTH
} gcp_axis;
/* Zeros; the outermost element again; those behind it in reverse: of a b c by two, c b a b c b a. */
typedef enum gcp_pad_mode { GCP_PAD_ZEROS, GCP_PAD_EDGE, GCP_PAD_REFLECT } gcp_pad_mode;
typedef enum gcp_reduction { GCP_REDUCE_MEAN, GCP_REDUCE_SUM, GCP_REDUCE_MAX } gcp_reduction;
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

/* Ops whose outputs are stored, not recomputed, whatever the policy, in this segment and those in it. .keep: classes of
   them. .keep_named: patterns as of a plan's .keep, of paths that begin inside of this segment ("softmax* mlp[0-1]*");
   the text lives until the segment ends. A pattern that fits no op is an error. */
typedef struct gcp_segment_opts {
    gcp_at at GCPI_Z; unsigned keep GCPI_Z; const char *keep_named GCPI_Z;
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

/* .transpose_a, .transpose_b: the operand's last two sizes change places, without a copy: (n, l, k) times (n, m, k)
   transposed -> (n, l, m). Of two sizes, (k, n) transposed is (n, k). */
typedef struct gcp_matmul_opts {
    gcp_at at GCPI_Z; int transpose_a GCPI_Z, transpose_b GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_matmul_opts;

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
/* .height, .width: must be given. .corners: with GCP_UPSAMPLING_BILINEAR the outermost pixels lie on each other; the
   default is half-pixel centres */
typedef struct gcp_resize_opts {
    gcp_at at GCPI_Z; int height GCPI_Z, width GCPI_Z; gcp_upsampling mode GCPI_Z; int corners GCPI_Z;
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_resize_opts;
/* .slope: default 0.01, at least 0 */
typedef struct gcp_leaky_relu_opts {
    gcp_at at GCPI_Z; double slope GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_leaky_relu_opts;
/* Both must be given, .low below .high; -HUGE_VAL or HUGE_VAL is no bound; GCP_ZERO says zero. */
typedef struct gcp_clamp_opts {
    gcp_at at GCPI_Z; double low GCPI_Z, high GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_clamp_opts;
typedef struct gcp_attention_opts {
    gcp_at at GCPI_Z;
    int heads GCPI_Z;                   /* of q; default 1. k and v may have fewer: each of them serves several */
    int causal GCPI_Z;                  /* row i of q sees keys up to i + keys - rows: up to i of as many */
    double scale GCPI_Z;                /* default 1 / sqrt(channels of a head) */
    gcp_tensor lengths GCPI_Z;          /* (n) of gcp_labels: how many keys of a sample count, the first ones */
    /* (n, heads, rows, keys), added to scaled scores; -HUGE_VAL hides a key. In place of n also 1, or another divisor
       of it: sample i takes bias i modulo that (windows of images: as many as an image has) */
    gcp_tensor bias GCPI_Z;
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_attention_opts;
typedef struct gcp_norm_opts {
    gcp_at at GCPI_Z;
    double epsilon GCPI_Z;              /* default 1e-5 */
    double momentum GCPI_Z;             /* batch-norm alone: running = (1 - m) running + m batch; default 0.1 */
    int frozen GCPI_Z;                  /* batch-norm alone: takes its running statistics in training, too, and leaves
                                           them as they are; gamma and beta train */
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_norm_opts;
/* .groups: must be given, a divisor of the channels; as many as channels: instance-norm. .epsilon: default 1e-5 */
typedef struct gcp_group_norm_opts {
    gcp_at at GCPI_Z; int groups GCPI_Z; double epsilon GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_group_norm_opts;
/* .rate: the share of values that become 0 in training, in [0, 1); the others are divided by 1 - rate. 0, the default,
   drops nothing. .per_sample: a sample's values become 0 together (stochastic depth). */
typedef struct gcp_dropout_opts {
    gcp_at at GCPI_Z; double rate GCPI_Z; int per_sample GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_dropout_opts;
/* .step: default 1, every element; .axis: default GCP_AXIS_CHANNELS */
typedef struct gcp_slice_opts {
    gcp_at at GCPI_Z; int first GCPI_Z, count GCPI_Z, step GCPI_Z; gcp_axis axis GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_slice_opts;
typedef struct gcp_concat_opts {
    gcp_at at GCPI_Z; gcp_axis axis GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_concat_opts;
/* .before, .after: elements along .axis (default GCP_AXIS_CHANNELS); .mode: default GCP_PAD_ZEROS */
typedef struct gcp_pad_opts {
    gcp_at at GCPI_Z; int before GCPI_Z, after GCPI_Z; gcp_axis axis GCPI_Z; gcp_pad_mode mode GCPI_Z;
    const char *name GCPI_Z;
} GCPI_BY_NAME gcp_pad_opts;
/* .by: default the mean. The axes that are summed up; none given: all. .tokens is .width. */
typedef struct gcp_reduce_opts {
    gcp_at at GCPI_Z; gcp_reduction by GCPI_Z; int samples GCPI_Z, height GCPI_Z, width GCPI_Z, tokens GCPI_Z,
    channels GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_reduce_opts;
/* .factor: default 2 */
typedef struct gcp_pixel_shuffle_opts {
    gcp_at at GCPI_Z; int factor GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_pixel_shuffle_opts;
/* .groups: must be given, a divisor of the channels */
typedef struct gcp_shuffle_opts {
    gcp_at at GCPI_Z; int groups GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_shuffle_opts;
/* .entries: rows of the table, one more than the largest id; .out: channels of each */
typedef struct gcp_embedding_opts {
    gcp_at at GCPI_Z; int entries GCPI_Z, out GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_embedding_opts;
/* .ignore: pixels with this label are left out of the loss and of the count for its mean; GCP_ZERO gives label 0.
   .smoothing: in [0, 1): such a share of the target is spread evenly over all classes. .class_weights (c): what a pixel
   of a class counts, in the sum and in what it is divided by; of targets (not labels) in the sum alone.
   .sample_weights: what a pixel counts, as many values as pixels. Weights get no gradient. */
typedef struct gcp_cross_entropy_opts {
    gcp_at at GCPI_Z; int ignore GCPI_Z; double smoothing GCPI_Z;
    gcp_tensor class_weights GCPI_Z, sample_weights GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_cross_entropy_opts;
/* .weights: what a value counts: of the shape of a, or 1 where it is spread over it, as (n, 1) for (n, c). The loss is
   divided by their sum, as spread over a, and 0 where that is 0. They get no gradient. */
typedef struct gcp_loss_opts {
    gcp_at at GCPI_Z; gcp_tensor weights GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_loss_opts;
/* .beta: default 1; GCP_ZERO: gcp_l1 */
typedef struct gcp_smooth_l1_opts {
    gcp_at at GCPI_Z; double beta GCPI_Z; gcp_tensor weights GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_smooth_l1_opts;
/* .positive: weight of the targets' part of 1, default 1; .weights: as gcp_loss_opts */
typedef struct gcp_binary_cross_entropy_opts {
    gcp_at at GCPI_Z; double positive GCPI_Z; gcp_tensor weights GCPI_Z; const char *name GCPI_Z;
} GCPI_BY_NAME gcp_binary_cross_entropy_opts;
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

    /* GCP_STORE_BF16: activations and their gradients take two bytes, not four. Weights, their gradients, statistics,
       optimizer slots, losses and one value a sample stay as they are, and so does what is made of these alone. The
       tape, its state and its files do not know it: training goes on under a plan without it. On the CPU, and on
       GPUs from sm_80 on; not where gcp_real is double. gcp_why_print names the ops that take none: their tensors lie
       in four bytes */
    gcp_store store GCPI_Z;

    /* -- policy: what is kept, and what is run again -- */
    gcp_policy policy GCPI_Z;
    int segments GCPI_Z, balance GCPI_Z;    /* GCP_POLICY_UNIFORM */
    int checkpoints GCPI_Z, replay GCPI_Z;  /* GCP_POLICY_CHECKPOINTS; 0 checkpoints: one segment */
    const char *list GCPI_Z;                /* instructions as text (gcp_list_print) instead of a policy */
    const char *keep GCPI_Z;                /* patterns of paths, as .train's, of ops whose outputs are stored, not
                                               recomputed, whatever the policy: "block[0-3]* *softmax*". One that
                                               fits no op is an error */

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
                                               step takes .lr; the last one's counts. gcp_step(.last = 1) ends them
                                               early */
    int accumulate_labels GCPI_Z;           /* 1: the update takes the mean over all labels that count in all
                                               micro-batches, where these have different numbers of them (ignored
                                               labels, gcp_write_some). The loss must be a gcp_cross_entropy of labels,
                                               without weights, or a sum of several of the same labels
                                               and .ignore, scaled as you like */

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
    int    least_proven;            /* not 0: no list takes fewer, whatever its order, addresses and moves */
    int    costed;                  /* ops whose seconds .costs gave; the others' come from FLOPs and bytes */
    double bound_seconds;           /* GCP_POLICY_BUDGET: no list within the budget takes less; else 0 */
    int    coarse;                  /* GCP_POLICY_BUDGET: 1: the plan's arena had no room for all of the search; 2:
                                       .progress stopped it */
    const char *method;             /* GCP_POLICY_BUDGET: what found the schedule: a policy, "cuts", "chain", "search",
                                       "least", "binomial", "joins", "exact"; else NULL */
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
    int last GCPI_Z;                    /* 1: the last micro-batch of its update, though .accumulate says more: at an
                                           epoch's end */
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
/* An input of int32: a class a pixel, for gcp_cross_entropy: (n) for logits (n, c), (n, l) for (n, l, c), as many as
   pixels. */
GCP_API gcp_tensor gcp_labels_at(gcp_tape *tape, const char *name, gcp_shape shape, gcp_input_opts opts);
/* An input of int32: entries of a table, for gcp_embedding. */
GCP_API gcp_tensor gcp_ids_at(gcp_tape *tape, const char *name, gcp_shape shape, gcp_input_opts opts);
/* Also computes the gradient of this real input (gcp_grad). Returns the input. */
GCP_API gcp_tensor gcp_want_grad_at(gcp_tensor input, gcp_at at);

/* A parameter to share among ops; layers make their own. Its values are in the tape's state, and found again by path
   after a reset. A name, as all names: no space, '/', '[', '#' or '*'; dots are fine. One '/' before
   it: the parameter is not that of the open segment, but of the tape. */
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

/* Never recomputed, never overwritten, readable after the step with gcp_read. Every plan of the tape computes it, also
   one whose loss does not depend on it: with the inputs, statistics and bytes that this takes. */
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
/* As layer_norm without a mean and without beta: over the root of the mean square. */
GCP_API gcp_tensor gcp_rms_norm_at(gcp_tensor x, gcp_norm_opts opts);
/* Over the pixels and the channels of a group, a sample each; the statistics are the sample's, so they never run. */
GCP_API gcp_tensor gcp_group_norm_at(gcp_tensor x, gcp_group_norm_opts opts);

/* The same ops with given weights, so that ops can share them: .out, .k and .entries follow from the weights, .init is
   an error. bias may be nil (pass GCP_NIL). A table is (entries, out), as weights of a linear layer of as many outputs
   as entries. Each batch-norm still has its own running statistics, as its inputs differ
   from others'. */
GCP_API gcp_tensor gcp_conv2d_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_conv2d_opts opts);
GCP_API gcp_tensor gcp_conv_transpose2d_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_conv2d_opts opts);
GCP_API gcp_tensor gcp_linear_op_at(gcp_tensor x, gcp_tensor weight, gcp_tensor bias, gcp_linear_opts opts);
GCP_API gcp_tensor gcp_embedding_op_at(gcp_tensor ids, gcp_tensor table, gcp_embedding_opts opts);
GCP_API gcp_tensor gcp_batch_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts opts);
GCP_API gcp_tensor gcp_layer_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_norm_opts opts);
GCP_API gcp_tensor gcp_rms_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_norm_opts opts);
GCP_API gcp_tensor gcp_group_norm_op_at(gcp_tensor x, gcp_tensor gamma, gcp_tensor beta, gcp_group_norm_opts opts);

/* Ops. Pointwise ones (scale, tanh, ...) stand above, before the kinds of ops.

   (n, k) times (k, m) -> (n, m): sizes before the last count as rows. With b of three or four sizes the last two are a
   matrix, and those before count matrices: (n, l, k) times (n, k, m) -> (n, l, m), (n, h, l, k) times (n, h, k, m)
   alike. Where one operand has one matrix, as (k, m) or (1, k, m), it serves all. */
GCP_API gcp_tensor gcp_matmul_at(gcp_tensor a, gcp_tensor b, gcp_matmul_opts opts);
/* Of two operands, element by element. Of the four stored sizes each is equal in both, or 1 in one of them: that one is
   spread over the other. So (n, c) scales the channels of (n, h, w, c), as a gate does; (c) is added to all pixels,
   (1, l, c) to all samples, (n, h, w, 1) to all channels. (n) is (1, 1, 1, n): a value a sample is (n, 1). The gradient
   of what is spread is a sum, in double, in an order that the shapes fix. gcp_mul, gcp_div and those below read both
   operands in backward. */
GCP_API gcp_tensor gcp_add_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
GCP_API gcp_tensor gcp_sub_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
GCP_API gcp_tensor gcp_mul_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
GCP_API gcp_tensor gcp_div_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
GCP_API gcp_tensor gcp_maximum_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
GCP_API gcp_tensor gcp_minimum_at(gcp_tensor a, gcp_tensor b, gcp_op_opts opts);
/* x where it is above 0, elsewhere slope x: slope (c), a value a channel, or (1), or whatever is spread over x. */
GCP_API gcp_tensor gcp_prelu_at(gcp_tensor x, gcp_tensor slope, gcp_op_opts opts);
/* Adds a value a channel: bias (c). */
GCP_API gcp_tensor gcp_bias_at(gcp_tensor x, gcp_tensor bias, gcp_op_opts opts);
/* max(x, 0). */
GCP_API gcp_tensor gcp_relu_at(gcp_tensor x, gcp_op_opts opts);
/* x where it is above 0, elsewhere slope x. */
GCP_API gcp_tensor gcp_leaky_relu_at(gcp_tensor x, gcp_leaky_relu_opts opts);
/* min(max(x, 0), 6). */
GCP_API gcp_tensor gcp_relu6_at(gcp_tensor x, gcp_op_opts opts);
/* min(max(x, low), high); its gradient is 0 where x is at a bound or beyond. */
GCP_API gcp_tensor gcp_clamp_at(gcp_tensor x, gcp_clamp_opts opts);
/* Over channels: exp(x) over the sum of all exp(x), and the logarithm of that. gcp_cross_entropy takes logits: these
   are for other uses of a distribution, as weights. */
GCP_API gcp_tensor gcp_softmax_at(gcp_tensor x, gcp_op_opts opts);
GCP_API gcp_tensor gcp_log_softmax_at(gcp_tensor x, gcp_op_opts opts);
/* q (n, rows, c), k (n, keys, c'), v (n, keys, c'') -> (n, rows, heads times a head's channels of v):
   softmax(scale q k' + bias) v, a head at a time. Images count their pixels as tokens. A row that sees no key gives 0.
   Keys and values that .lengths leaves out must be finite all the same.
   Exact, in memory linear in rows and keys: scores are made block by block, in backward again (which counts for no
   plan's rerun_flops). Dropout of weights is not part of it, as weights are never kept: put gcp_dropout behind it. */
GCP_API gcp_tensor gcp_attention_at(gcp_tensor q, gcp_tensor k, gcp_tensor v, gcp_attention_opts opts);
/* The largest of each window; padding never is. At most 256 cells. */
GCP_API gcp_tensor gcp_max_pool_at(gcp_tensor x, gcp_pool_opts opts);
/* The mean of each window; padding does not count. */
GCP_API gcp_tensor gcp_avg_pool_at(gcp_tensor x, gcp_pool_opts opts);
/* n h w c -> n c: the mean of each image. */
GCP_API gcp_tensor gcp_global_avg_pool_at(gcp_tensor x, gcp_op_opts opts);
/* n h w c -> n, factor h, factor w, c. */
GCP_API gcp_tensor gcp_upsample_at(gcp_tensor x, gcp_upsample_opts opts);
/* n h w c -> n, .height, .width, c. */
GCP_API gcp_tensor gcp_resize_at(gcp_tensor x, gcp_resize_opts opts);
/* In training some values become 0; the same ones when it runs again. */
GCP_API gcp_tensor gcp_dropout_at(gcp_tensor x, gcp_dropout_opts opts);
/* Side by side along .axis: gcp_concat(GCP_TENSORS(a, b, c), .name = "skip"); of an array gcp_concat(list, count) in C,
   in C++ gcp_concat_at(list, count, { }). A count below 1 gives nil without a tape, so without an error. */
GCP_API gcp_tensor gcp_concat_at(const gcp_tensor *inputs, int count, gcp_concat_opts opts);
/* Elements first, first + step, ... along .axis, `count` of them. Along channels and without a step it is a view. */
GCP_API gcp_tensor gcp_slice_at(gcp_tensor x, gcp_slice_opts opts);
/* More elements before and after those of x, along one axis: an image takes one pad for rows and one for columns. */
GCP_API gcp_tensor gcp_pad_at(gcp_tensor x, gcp_pad_opts opts);
/* The mean, sum or largest value over chosen axes, whose sizes become 1: (n, h, w, c) -> (n, 1, 1, c) with .height and
   .width. Over all axes it is a scalar. Sums add in double, in an order that the shape fixes. The gradient of a largest
   value goes to the first of several. */
GCP_API gcp_tensor gcp_reduce_at(gcp_tensor x, gcp_reduce_opts opts);
/* Axes change places: axis 0 of the result is axis n of x, and so on; of the four stored ones, so rows and columns of
   the matrices in (n, l, c) by gcp_transpose(x, 0, 1, 3, 2). A view where only sizes of 1 move. */
GCP_API gcp_tensor gcp_transpose_at(gcp_tensor x, int n, int h, int w, int c, gcp_op_opts opts);
/* Channel i of group g comes to i groups + g (ShuffleNet): two views and a transpose. */
GCP_API gcp_tensor gcp_channel_shuffle_at(gcp_tensor x, gcp_shuffle_opts opts);
/* n h w (c r r) -> n, h r, w r, c with r = .factor, as sub-pixel convolutions do (Shi et al. 2016), and the reverse:
   channel (k, i, j) of a pixel is channel k of its pixel (i, j). Two transposes. */
GCP_API gcp_tensor gcp_pixel_shuffle_at(gcp_tensor x, gcp_pixel_shuffle_opts opts);
GCP_API gcp_tensor gcp_pixel_unshuffle_at(gcp_tensor x, gcp_pixel_shuffle_opts opts);
/* x itself; no gradient comes back through it. */
GCP_API gcp_tensor gcp_stop_gradient_at(gcp_tensor x, gcp_op_opts opts);
/* Sizes of 1 are spread to those of `shape`: a class token (1, 1, c) to (n, 1, c). The gradient is a sum. */
GCP_API gcp_tensor gcp_expand_at(gcp_tensor x, gcp_shape shape, gcp_op_opts opts);
/* n h w c -> n, hwc. */
GCP_API gcp_tensor gcp_flatten_at(gcp_tensor x, gcp_op_opts opts);
/* The same values in the same order, in another shape of as many. */
GCP_API gcp_tensor gcp_reshape_at(gcp_tensor x, gcp_shape shape, gcp_op_opts opts);

/* Losses: scalars.

   The mean over pixels of softmax cross-entropy; labels int32 in [0, c) or .ignore; 0 where all are ignored. In place
   of labels targets of the logits' shape, a distribution a pixel: they get no gradient, and .ignore is an error. */
GCP_API gcp_tensor gcp_cross_entropy_at(gcp_tensor logits, gcp_tensor labels, gcp_cross_entropy_opts opts);
/* The mean over all values of -(positive t log s + (1 - t) log(1 - s)), s = sigmoid of a logit, t of the targets in
   [0, 1], of the same shape. */
GCP_API gcp_tensor gcp_binary_cross_entropy_at(gcp_tensor logits, gcp_tensor targets,
                                               gcp_binary_cross_entropy_opts opts);
/* The mean over all values of (a - b) squared; of |a - b|; of |a - b| - beta / 2, or below beta of
   (a - b) squared / (2 beta). */
GCP_API gcp_tensor gcp_mse_at(gcp_tensor a, gcp_tensor b, gcp_loss_opts opts);
GCP_API gcp_tensor gcp_l1_at(gcp_tensor a, gcp_tensor b, gcp_loss_opts opts);
GCP_API gcp_tensor gcp_smooth_l1_at(gcp_tensor a, gcp_tensor b, gcp_smooth_l1_opts opts);
/* The mean over all values. */
GCP_API gcp_tensor gcp_mean_at(gcp_tensor x, gcp_op_opts opts);

/* A user's own op, planned like a built-in one. op and context must live until the tape is reset. Returns the first
   output; all of them go to opts.outputs if given. A time step of an adjoint computation can be such an op. */
GCP_API gcp_tensor gcp_custom_at(const gcp_tensor *inputs, int count, const gcp_op *op, gcp_custom_opts opts);
/* For such an op's forward and backward on the CPU: runs task(arg, index, worker) for each index below tasks on the
   threads of the call's target: those of its pool, or OpenMP's, or the caller's. worker is below call->target->threads,
   and no two tasks that run at once have the same. Cut by shape, and let no float sum depend on the threads. */
GCP_API void gcp_parallel_for(const gcp_call *call, int tasks, void (*task)(void *arg, int index, int worker),
                              void *arg);

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
   output, INPUTS are the IDs whose outputs it reads; # begins a comment. gcp_graph_print writes gcp-graph 3 (of a plan
   with .store 4), which can say more: its format stands where the text "gcp-graph 1" does below (src/problem/graph.h).
   What it writes has the updates (.fuse_update) and the copied views of its plan, and all plans for that text have them
   too. The least budget of a graph: a plan with .policy = GCP_POLICY_BUDGET and .budget = 1 is refused, and has it in
   .least_bytes. */
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
   it. With GCP_STORE_BF16 inputs and kept tensors are rounded: an input is not quite what gcp_write was given. */
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

/* Measures the memory that a step really takes. Fills memory (plan->room bytes, or more, where a step that took more
   would show) with a pattern, runs a step there on copies of state and inputs (written or not), then the same with
   the pattern's complement; returns the bytes up to the last that changed: plan->bytes. (A few less, under one row
   of a concat, where the slab ends with a concat that is recomputed in part.) NULL, 0: the target's allocate gives
   the memory; it is not the plan's own. .lr may be left out. A custom op sees these steps with .commit 0, and its side
   effects in memory of its own happen in both all the same. */
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
/* The plan's problem as text, which gcp_graph_plan reads: gcp-graph 3, with .store 4. */
GCP_API void gcp_graph_print(const gcp_plan *plan, gcp_writer out);
/* The tape as C: a function record(net), which records the same again, with the same names, and returns the one output,
   or takes an array for several. Outermost segments that are alike are a loop, and so are parameters whose names differ
   in a number. A custom op's row is called by its name, which is yours to define; .keep_named is left out. */
GCP_API gcp_code gcp_print_c_at(const gcp_tensor *outputs, int count, gcp_writer out, gcp_at at);
/* A line an instruction, with the live bytes. */
GCP_API void gcp_plan_print(const gcp_plan *plan, gcp_writer out);
/* A line an op: shape, parameters, activation bytes, kept or recomputed. */
GCP_API void gcp_layers_print(const gcp_plan *plan, gcp_writer out);
/* What the peak is made of and, where there is something, what would lower it; of a plan that was not made, the tape's
   error. */
GCP_API void gcp_why_print(const gcp_plan *plan, gcp_writer out);

/* Pictures, each a whole file that needs no other. Names may be any bytes, numbers have a point in every locale.

   Memory over time and address, as SVG. beside: NULL, or another plan, whose live bytes are an outline on the same
   scale (keep-all's, to see what is saved). */
GCP_API void gcp_memory_svg(const gcp_plan *plan, const gcp_plan *beside, gcp_writer out);
/* The same as a page one can step through, instruction by instruction: what is live, what was just born, what is free
   and why; by address or by kind, over instructions or time. beside: another plan under it on the same scales, or NULL.
   It takes scratch from the plan's arena. */
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
template <int N> inline gcp_tensor gcpi_concat(const gcpi_tensors<N> &list, gcp_concat_opts opts)
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
template <class A, class B> struct gcpi_same { enum { yes = 0 }; };
template <class A> struct gcpi_same<A, A> { enum { yes = 1 }; };
template <class T> struct gcpi_element {
    enum { number = gcpi_same<T, float>::yes || gcpi_same<T, double>::yes || gcpi_same<T, long>::yes ||
                    gcpi_same<T, unsigned long>::yes || gcpi_same<T, long long>::yes ||
                    gcpi_same<T, unsigned long long>::yes || gcpi_same<T, short>::yes ||
                    gcpi_same<T, unsigned short>::yes || gcpi_same<T, signed char>::yes ||
                    gcpi_same<T, unsigned char>::yes,
           fits = gcpi_same<T, gcp_real>::yes || !number };
};
template <class T> struct gcpi_element<const T> : gcpi_element<T> { };
template <class T> inline T *gcpi_data(T *data)
{
    static_assert(gcpi_element<T>::fits, "elements are gcp_real, or int32_t for labels and ids (void *: not checked)");
    return data;
}
inline void *gcpi_data(decltype(nullptr)) { return nullptr; }
#define GCPI_DATA(data) gcpi_data(data)
#define GCP_OPTS(T, ...) gcpi_with_at(T { __VA_ARGS__ }, __FILE__, __LINE__)
#define GCP_SHAPE(...) gcpi_shape(__VA_ARGS__)
#define GCP_AT gcpi_at(__FILE__, __LINE__)
#define GCP_NIL gcpi_nil()
#define GCP_TENSORS(...) gcpi_tensors_of(__VA_ARGS__)
#define GCPI_CONCAT(list, ...) gcpi_concat(list, GCP_OPTS(gcp_concat_opts, __VA_ARGS__))
#define gcp_plans_bytes(...) gcpi_plans_bytes(__VA_ARGS__)
#define gcp_plans_room(...) gcpi_plans_room(__VA_ARGS__)
#else
#define GCP_OPTS(T, ...) ((T) { .at = { __FILE__, __LINE__ }, __VA_ARGS__ })
#define GCP_SHAPE(...) ((gcp_shape) { (int)(sizeof (int[]) { __VA_ARGS__ } / sizeof(int)), { __VA_ARGS__ } })
#define GCP_AT ((gcp_at) { __FILE__, __LINE__ })
#if __STDC_VERSION__ >= 201112L
/* What is no pointer, where one is expected, does not compile; the message has this name. */
typedef struct gcpi_elements_are_gcp_real_or_int32_t { int wrong; } gcpi_elements_are_gcp_real_or_int32_t;
#define GCPI_NOT(type) \
    type *: (gcpi_elements_are_gcp_real_or_int32_t) { 0 }, const type *: (gcpi_elements_are_gcp_real_or_int32_t) { 0 }
#define GCPI_DATA(data) \
    _Generic((data), gcp_real *: (data), const gcp_real *: (data), default: _Generic((data), GCPI_NOT(float), \
             GCPI_NOT(double), GCPI_NOT(long), GCPI_NOT(unsigned long), GCPI_NOT(long long), \
             GCPI_NOT(unsigned long long), GCPI_NOT(short), GCPI_NOT(unsigned short), GCPI_NOT(signed char), \
             GCPI_NOT(unsigned char), default: (data)))
#else
#define GCPI_DATA(data) data
#endif
#define GCP_NIL ((gcp_tensor) { 0, 0, 0 })
#define GCP_TENSORS(...) \
    ((const gcp_tensor[]) { __VA_ARGS__ }), (int)(sizeof (gcp_tensor[]) { __VA_ARGS__ } / sizeof(gcp_tensor))
#define GCPI_CONCAT(...) GCPI_F2(gcp_concat_at, gcp_concat_opts, __VA_ARGS__)
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
#define GCPI_F5(fn, T, a, b, c, d, e, ...) fn((a), (b), (c), (d), (e), GCP_OPTS(T, __VA_ARGS__))

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
#define gcp_rms_norm(...)            GCPI_F1(gcp_rms_norm_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_group_norm(...)          GCPI_F1(gcp_group_norm_at, gcp_group_norm_opts, __VA_ARGS__, )
#define gcp_rms_norm_op(...)         GCPI_F2(gcp_rms_norm_op_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_group_norm_op(...)       GCPI_F3(gcp_group_norm_op_at, gcp_group_norm_opts, __VA_ARGS__, )
#define gcp_layer_norm_op(...)       GCPI_F3(gcp_layer_norm_op_at, gcp_norm_opts, __VA_ARGS__, )
#define gcp_matmul(...)              GCPI_F2(gcp_matmul_at, gcp_matmul_opts, __VA_ARGS__, )
#define gcp_add(...)                 GCPI_F2(gcp_add_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_sub(...)                 GCPI_F2(gcp_sub_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_mul(...)                 GCPI_F2(gcp_mul_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_div(...)                 GCPI_F2(gcp_div_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_maximum(...)             GCPI_F2(gcp_maximum_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_minimum(...)             GCPI_F2(gcp_minimum_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_prelu(...)               GCPI_F2(gcp_prelu_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_bias(...)                GCPI_F2(gcp_bias_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_relu(...)                GCPI_F1(gcp_relu_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_leaky_relu(...)          GCPI_F1(gcp_leaky_relu_at, gcp_leaky_relu_opts, __VA_ARGS__, )
#define gcp_attention(...)           GCPI_F3(gcp_attention_at, gcp_attention_opts, __VA_ARGS__, )
#define gcp_softmax(...)             GCPI_F1(gcp_softmax_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_log_softmax(...)         GCPI_F1(gcp_log_softmax_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_relu6(...)               GCPI_F1(gcp_relu6_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_clamp(...)               GCPI_F1(gcp_clamp_at, gcp_clamp_opts, __VA_ARGS__, )
#define gcp_max_pool(...)            GCPI_F1(gcp_max_pool_at, gcp_pool_opts, __VA_ARGS__, )
#define gcp_avg_pool(...)            GCPI_F1(gcp_avg_pool_at, gcp_pool_opts, __VA_ARGS__, )
#define gcp_global_avg_pool(...)     GCPI_F1(gcp_global_avg_pool_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_upsample(...)            GCPI_F1(gcp_upsample_at, gcp_upsample_opts, __VA_ARGS__, )
#define gcp_resize(...)              GCPI_F1(gcp_resize_at, gcp_resize_opts, __VA_ARGS__, )
#define gcp_pad(...)                 GCPI_F1(gcp_pad_at, gcp_pad_opts, __VA_ARGS__, )
#define gcp_reduce(...)              GCPI_F1(gcp_reduce_at, gcp_reduce_opts, __VA_ARGS__, )
#define gcp_pixel_shuffle(...)       GCPI_F1(gcp_pixel_shuffle_at, gcp_pixel_shuffle_opts, __VA_ARGS__, )
#define gcp_pixel_unshuffle(...)     GCPI_F1(gcp_pixel_unshuffle_at, gcp_pixel_shuffle_opts, __VA_ARGS__, )
#define gcp_stop_gradient(...)       GCPI_F1(gcp_stop_gradient_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_dropout(...)             GCPI_F1(gcp_dropout_at, gcp_dropout_opts, __VA_ARGS__, )
#define gcp_concat(...)              GCPI_CONCAT(__VA_ARGS__, )         /* GCP_TENSORS(a, b, ...) */
#define gcp_slice(...)               GCPI_F1(gcp_slice_at, gcp_slice_opts, __VA_ARGS__, )
#define gcp_transpose(...)           GCPI_F5(gcp_transpose_at, gcp_op_opts, __VA_ARGS__, )      /* x, 0, 1, 3, 2 */
#define gcp_channel_shuffle(...)     GCPI_F1(gcp_channel_shuffle_at, gcp_shuffle_opts, __VA_ARGS__, )
#define gcp_expand(...)              GCPI_F2(gcp_expand_at, gcp_op_opts, __VA_ARGS__, )         /* x, GCP_SHAPE() */
#define gcp_flatten(...)             GCPI_F1(gcp_flatten_at, gcp_op_opts, __VA_ARGS__, )
#define gcp_reshape(...)             GCPI_F2(gcp_reshape_at, gcp_op_opts, __VA_ARGS__, )        /* x, GCP_SHAPE() */
#define gcp_cross_entropy(...)       GCPI_F2(gcp_cross_entropy_at, gcp_cross_entropy_opts, __VA_ARGS__, )
#define gcp_mse(...)                 GCPI_F2(gcp_mse_at, gcp_loss_opts, __VA_ARGS__, )
#define gcp_l1(...)                  GCPI_F2(gcp_l1_at, gcp_loss_opts, __VA_ARGS__, )
#define gcp_smooth_l1(...)           GCPI_F2(gcp_smooth_l1_at, gcp_smooth_l1_opts, __VA_ARGS__, )
#define gcp_binary_cross_entropy(...) \
    GCPI_F2(gcp_binary_cross_entropy_at, gcp_binary_cross_entropy_opts, __VA_ARGS__, )
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
/* data: gcp_reals or int32_t; with C11 and C++ a pointer to other numbers does not compile, but void * does. */
#define gcp_write(plan, tensor, ...) gcp_write_at((plan), (tensor), GCPI_DATA((__VA_ARGS__)), GCP_AT)
#define gcp_read(plan, tensor, ...)  gcp_read_at((plan), (tensor), GCPI_DATA((__VA_ARGS__)), GCP_AT)
#define gcp_grad(plan, tensor, ...)  gcp_grad_at((plan), (tensor), GCPI_DATA((__VA_ARGS__)), GCP_AT)
#define gcp_write_some(plan, tensor, data, samples) \
    gcp_write_some_at((plan), (tensor), GCPI_DATA((data)), (samples), GCP_AT)
#define gcp_gradient_norm(plan)      gcp_gradient_norm_at((plan), GCP_AT)
#define gcp_average(...)             gcp_average_at(__VA_ARGS__, GCP_AT)        /* tape, memory, decay */
#define gcp_average_swap(...)        gcp_average_swap_at(__VA_ARGS__, GCP_AT)   /* tape, memory */
#define gcp_ignored(plan, loss)      gcp_ignored_at((plan), (loss), GCP_AT)
#define gcp_step(...)                GCPI_F1(gcp_step_at, gcp_step_opts, __VA_ARGS__, )
#define gcp_forward(...)             GCPI_F1(gcp_forward_at, gcp_step_opts, __VA_ARGS__, )
#define gcp_profile(...)             GCPI_F1(gcp_profile_at, gcp_profile_opts, __VA_ARGS__, )
#define gcp_measure(...)             GCPI_F3(gcp_measure_at, gcp_step_opts, __VA_ARGS__, )
#define gcp_gradcheck(...)           GCPI_F1(gcp_gradcheck_at, gcp_gradcheck_opts, __VA_ARGS__, )
#define gcp_print_c(...)             gcp_print_c_at(__VA_ARGS__, GCP_AT)    /* GCP_TENSORS(loss) or list, count; out */

/* GCP_SEGMENT(net, "residual", .keep = GCP_KEEP_PRODUCTS) { ... } is
   for (scope s = begin(); s.state; end(s)) for (; s.state == 1; s.state = 2) { ... }
   break leaves the inner loop with state 1, so end() sees it at once; continue ends the segment early and is fine;
   return and goto leave the segment open, which the enclosing end() or gcp_plan_make reports with the segment's line.
   The label must be a literal without space, '/', '[', '#' and '*'; labels that repeat under the same parent are
   numbered.
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
#include "src/begin.h"                 /* The C library; no fast math from here on */

/* tape: what the user records */
#include "src/tape/base.h"             /* What all rooms use: arenas, hashes, random numbers, text through a writer */
GCPI_COLD                              /* at -Og: code that runs once per plan or step */
#include "src/tape/network.h"          /* The recorded network, and the tape that holds it; handles; errors */
#include "src/tape/tape.h"             /* A tape: its capacities, its arena, its reset */
#include "src/tape/names.h"            /* Names: nodes of a tree */
#include "src/tape/tensors.h"          /* Inputs and parameters; marks on tensors */
#include "src/tape/patterns.h"         /* Patterns of paths */
#include "src/tape/record.h"           /* Segments and ops, as they are recorded */
GCPI_WARM                              /* again at the user's level of optimisation */

/* kernels: tiles and products, for each instruction set */
#include "src/kernels/simd.h"          /* What a kernel needs of the target: threads, and vectors of any width */
#include "src/kernels/isa.h"           /* The instruction sets: the kernels of each, and which one a core has */
#include "src/kernels/halves.h"        /* bfloat16: the upper half of a float */
#include "src/kernels/duos.h"          /* Duos: two halves, that one instruction multiplies by two others and adds */
#include "src/kernels/columns.h"       /* What all products share: columns, cut into panels; windows of pixels */
#include "src/kernels/winograd_tiles.h" /* Winograd's tiles of a convolution: where they lie, and their transforms */
#include "src/kernels/gather_plan.h"   /* The gather product's plan: how it is cut, and how x and w are read */
#include "src/kernels/planar.h"        /* The gather product of planes: a vector holds pixels of a row */
#include "src/kernels/winograd.h"      /* The gather product by Winograd's tiles: 3x3 taps, one apart, no stride */
#include "src/kernels/gather.h"        /* The gather product: convolution forward and backward data, A times B */
#include "src/kernels/outer_plan.h"    /* The outer product's plan: how it is cut, and how x and e are read */
#include "src/kernels/winograd_back.h" /* The outer product by Winograd's tiles: the gradient of 3x3 weights */
#include "src/kernels/outer.h"         /* The outer product: convolution backward weights, transposed A times B */
#include "src/kernels/depthwise.h"     /* Depthwise convolution: each group has one channel of x and one of y */
#include "src/kernels/products.h"      /* Convolutions and matrix products in all passes */

/* ops: each op whole, and the table that hands them on */
#include "src/ops/target.h"            /* What every op uses: the target, and helpers for shape rules */
GCPI_COLD
#include "src/ops/row.h"               /* What stands for an op: its row, its facts, and how it is recorded */
#include "src/ops/code.h"              /* How an op is written in C: the call that records it */
GCPI_WARM
#include "src/ops/map.h"               /* A pass over all elements; copies of views */
#include "src/ops/by_image.h"          /* Ops that go image by image */
#include "src/ops/row_blocks.h"        /* A block of a call's rows in floats */
#include "src/ops/exponential.h"       /* exp, log, square root, tanh and the normal distribution, without a branch */
#include "src/ops/pointwise_table.h"   /* The pointwise ops, an entry each */
#include "src/ops/pointwise.h"         /* The pointwise ops on the CPU, from the lines of pointwise_table.h */
#include "src/ops/rectifier.h"         /* Rectifiers: relu, leaky_relu, relu6, clamp */
#include "src/ops/pairs_table.h"       /* The ops of two operands a and b, for both machines */
#include "src/ops/binary.h"            /* Two operands, element by element: add, sub, mul, div, and so on */
#include "src/ops/sums.h"              /* Sums over pixels, and the op whose backward is one: bias */
#include "src/ops/apply.h"             /* Batch-norm, addition and rectifier in one pass */
#include "src/ops/batch_norm.h"        /* Batch-norm: two ops, its statistics and their application */
#include "src/ops/layer_norm.h"        /* Norms over the channels of a pixel: layer_norm, rms_norm */
#include "src/ops/group_norm.h"        /* Group-norm: a group of a sample's channels has mean 0 and variance 1 */
#include "src/ops/softmax.h"           /* Softmax and its logarithm, over channels */
#include "src/ops/reductions.h"        /* Sums, means and largest values over chosen axes */
#include "src/ops/window.h"            /* Windows of an image: their arithmetic and options; pools */
#include "src/ops/resize.h"            /* Images of another size: resize, and upsample by a whole factor */
#include "src/ops/conv.h"              /* Convolutions and transposed convolutions */
#include "src/ops/dense.h"             /* A product with weights: linear */
#include "src/ops/matmul.h"            /* Products of matrices: matmul */
#include "src/ops/attention_blocks.h"  /* Blocks of attention: sizes, a worker's room, rows of scores */
#include "src/ops/attention.h"         /* Attention: softmax(scale q k' + bias) v, a head at a time */
#include "src/ops/shape.h"             /* Views: concat, slice, reshape, stop_gradient */
#include "src/ops/axes.h"              /* Along any axis: concat and slice that are no views, pad, transpose */
#include "src/ops/dropout.h"           /* Dropout: y = x / (1 - rate) or 0 */
#include "src/ops/embedding.h"         /* Embedding: rows of a table */
#include "src/ops/loss.h"              /* Losses: cross_entropy, mse, mean, and those made of other ops */
#include "src/ops/update.h"            /* What a step does besides its ops: seed gradient, norm of gradients, updates */
GCPI_COLD                              /* at -Og: code that runs once per plan or step */
#include "src/ops/table.h"             /* The table of ops: all that later rooms know of an op; custom ops */

/* problem: a tape, or a graph's text, as items and tasks */
#include "src/problem/problem.h"       /* What planning sees: items and tasks */
#include "src/problem/store.h"         /* What lies in two bytes */
#include "src/problem/views.h"         /* Where items lie: views and copies */
#include "src/problem/costs.h"         /* What tasks cost */
#include "src/problem/tasks.h"         /* The rest of a tape's problem: groups, gradients, updates, far tasks, moves */
#include "src/problem/graph.h"         /* A problem as text, read and written */
#include "src/problem/schedule.h"      /* From what is kept to a list; a list as text */
GCPI_WARM                              /* again at the user's level of optimisation */

/* place: addresses */
#include "src/place/lives.h"           /* Lives: values, the buffers that hold them, the peak of live bytes */
#include "src/place/heights.h"         /* Heights: the most of any stretch of moments, in logarithmic time */
#include "src/place/nearby.h"          /* Nearby: what lies near a buffer of a long list */
#include "src/place/gaps.h"            /* Gaps: first fit in order of birth, or of death back in time */
#include "src/place/skyline.h"         /* Skylines: places for rectangles in time and address */
#include "src/place/packing.h"         /* Packing: an exact search for places at a goal or below */
#include "src/place/layout.h"          /* Layout: gives each buffer its offset */
#include "src/place/arrange.h"         /* Arrangement: lives and addresses of a list */
#include "src/place/verify.h"          /* The verifier: no list runs that it has not passed */

/* search: a request in, an answer out */
#include "src/search/timeline.h"       /* When instructions run: computing, and a link to far memory */
#include "src/search/model.h"          /* What searches see of a problem: forward values only, in arrays */
#include "src/search/planner.h"        /* What policies and searches share */
#include "src/search/far.h"            /* Placing copies to far memory */
#include "src/search/policies.h"       /* Candidates, and the policies */
#include "src/search/search.h"         /* GCP_POLICY_BUDGET: local search */
#include "src/search/stages.h"         /* Stages: a network as a chain of runs, each with what reverses it */
#include "src/search/chain.h"          /* GCP_POLICY_BUDGET: dynamic programming over a chain of stages */
#include "src/search/cuts.h"           /* GCP_POLICY_BUDGET: minimum cuts, the bound */
GCPI_COLD                              /* at -Og: code that runs once per plan or step */
#include "src/search/exact.h"          /* GCP_POLICY_BUDGET: exact search of small graphs by live bytes */
#include "src/search/places.h"         /* GCP_POLICY_BUDGET: exact search of small graphs with addresses */
#include "src/search/portfolio.h"      /* GCP_POLICY_BUDGET: what its methods try */
#include "src/search/binomial.h"       /* GCP_POLICY_BUDGET: binomial checkpoints (Griewank 1992) */
#include "src/search/joins.h"          /* GCP_POLICY_BUDGET: joins */
#include "src/search/relaxed.h"        /* GCP_POLICY_BUDGET: a bound for all choices of views */
#include "src/search/least.h"          /* GCP_POLICY_BUDGET: the least budget, and the way there */
#include "src/search/budget.h"         /* GCP_POLICY_BUDGET: the methods in turn */
#include "src/search/choose.h"         /* From a request to an answer */

/* plan: from options to a placed list */
#include "src/plan/options.h"          /* The options of a plan: which go together, their defaults, their ranges */
#include "src/plan/plan.h"             /* A plan: its data; a list of the user's; where its values lie */
#include "src/plan/network_fits.h"     /* What a network must be to be planned */
#include "src/plan/samples.h"          /* Which samples a loss may leave out, for gcp_write_some */
#include "src/plan/outcome.h"          /* An outcome: an answer as a list, or why there is none */
#include "src/plan/sizes.h"            /* Sizes: of the state, of the arena that planning takes */
#include "src/plan/trials.h"           /* Which views are copies */
#include "src/plan/make.h"             /* A plan's figures, its making and its end */
#include "src/plan/sweep.h"            /* Planning more than once: curves, the least budget, the largest batch */

/* run: memory, and steps */
#include "src/run/state.h"             /* The state: what outlives plans */
#include "src/run/claims.h"            /* Whose memory is whose */
#include "src/run/bind.h"              /* Binding: memory for states, slabs, far values */
GCPI_WARM                              /* again at the user's level of optimisation */
#include "src/run/copies.h"            /* Copies to far memory and back */
#include "src/run/calls.h"             /* Calls of ops, groups, updates: the views that they are given */
#include "src/run/check.h"             /* What .check looks at: what each instruction left behind */
#include "src/run/execute.h"           /* The executor: instruction after instruction, pairs in one pass */
GCPI_COLD                              /* at -Og: code that runs once per plan or step */
#include "src/run/step.h"              /* A step: its numbers, checks and counters */
#include "src/run/values.h"            /* Values in and out: a plan's inputs, results, gradients */
#include "src/run/training.h"          /* What training needs beside steps: averages, the norm of gradients */
#include "src/run/measure.h"           /* Measurements: seconds, bytes, whether gradients are right */

/* report: what it shows */
#include "src/report/report.h"         /* Reports: plain text through a writer */
#include "src/report/page.h"           /* The style, body and script of gcp_memory_html */
#include "src/report/markup.h"         /* Text in markup and in strings */
#include "src/report/svg.h"            /* What pictures share */
#include "src/report/curve.h"          /* The curve of a sweep, as SVG */
#include "src/report/memory_picture.h" /* Memory over time (to the right) and address (up), as SVG */
#include "src/report/memory_page.h"    /* Memory as a page one can step through */
#include "src/report/trace.h"          /* A trace of a step */
#include "src/report/dot.h"            /* The network as a graph, for Graphviz */
#include "src/report/repeats.h"        /* Repeats: outermost segments that are alike */
#include "src/report/variables.h"      /* Variables: what a printed program calls its tensors */
#include "src/report/program.h"        /* gcp_print_c: a tape as a C program, a function that records it again */
GCPI_WARM                              /* again at the user's level of optimisation */
#include "src/end.h"
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
