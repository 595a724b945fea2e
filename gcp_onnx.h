/* gcp_onnx.h - a model file in, recorded for gcp.h; the same file with trained weights out. MIT licence, see gcp.h.

   Do this in *one* C file, the one that holds gcp.h's implementation:
       #define GCP_IMPLEMENTATION
       #include "gcp.h"
       #include "gcp_io.h"
       #include "gcp_onnx.h"
   and plain #include "gcp_onnx.h" wherever else it is used. It needs gcp_io.h and the C library.

       gcp_onnx   model  = gcp_onnx_open(&file_arena, "mobilenet.onnx");       // model.error says what is wrong
       gcp_tape  *net    = gcp_tape_make(&tape_arena, .ops = model.ops);
       gcp_onnx_record(net, &model, .batch = 8);
       gcp_tensor labels = gcp_labels(net, "labels", GCP_SHAPE(8));
       gcp_tensor loss   = gcp_cross_entropy(gcp_onnx_output(&model, 0), labels);
       gcp_plan   plan   = gcp_plan_make(loss, .policy = GCP_POLICY_BUDGET, .budget = GCP_MB(64),
                                         .optimizer = GCP_OPTIMIZER_SGD);
       gcp_bind(&plan, memory, size);
       gcp_onnx_load(net, &model);
       ... gcp_write(&plan, gcp_onnx_input(&model, 0), images); gcp_step(&plan, .lr = 0.01) ...
       gcp_onnx_save(net, &model, "tuned.onnx");

   An ONNX file (onnx.ai) is what PyTorch, TensorFlow and others export. Shapes are fixed when it is recorded. What is
   channels first there is channels last here: an image (n, c, h, w) is a tensor (n, h, w, c); gcp_onnx_write and
   gcp_onnx_read take the file's own layout. docs/onnx.md says which ops are known, and what is folded and refused. */

#ifndef GCP_ONNX_H
#define GCP_ONNX_H

#include "gcp.h"
#include "gcp_io.h"

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/onnx/wire.h")
#error "gcp_onnx.h needs its rooms, the folder src/ beside it; the single files to copy are those in dist/"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

enum { GCP_ONNX_OLDEST = 6, GCP_ONNX_NEWEST = 28 };      /* opsets that are read */

/* A file that was opened. error: "", or why it was not. ops: capacity that is enough for a tape with gcp_tape_make. */
typedef struct gcp_onnx {
    char error[GCP_MAX_ERROR];
    int ir, opset, nodes, weights, ops;
    struct gcpi_onnx *core;
} gcp_onnx;

/* .data, .size: the file, in memory, which must live as long as the model; path is then a name for messages, or NULL.
   .folder: where data lies that the file keeps in others; default: the folder of path, of .data none. A path that
   leaves it is refused. */
typedef struct gcp_onnx_open_opts {
    gcp_at at GCPI_Z; const void *data GCPI_Z; size_t size GCPI_Z; const char *folder GCPI_Z;
    const gcp_files *files GCPI_Z;
} GCPI_BY_NAME gcp_onnx_open_opts;
/* Reads a file and checks it. The arena takes the file's bytes (not .data) and what stands in it, as a rule a tenth
   more; it is the model's own: recording takes its front, other calls its scratch. */
GCP_API gcp_onnx gcp_onnx_open_at(gcp_arena *arena, const char *path, gcp_onnx_open_opts opts);

/* .batch: the first size of each input. .sizes: others that the file leaves open, "height 224 width 192"; "* 224": any
   of them. .classes: how many numbers the last layer gives, if not as many as in the file: its weight is made anew, as
   gcp_linear's, its bias of zeros, and gcp_onnx_save writes them in the places of the file's. .frozen_norms:
   batch-norms take their running statistics in training, too. .until: a value's name: what is behind it is left out.
   .logits: so is a Softmax or LogSoftmax at the end, as gcp_cross_entropy takes what they read; it stays in the file.
   .inputs: tensors in place of the file's inputs, in their order; nil: one is made. .report: gets a line for each node
   that cannot be recorded, and for each value whose elements are moved. */
typedef struct gcp_onnx_record_opts {
    gcp_at at GCPI_Z; int batch GCPI_Z; const char *sizes GCPI_Z;
    int classes GCPI_Z, frozen_norms GCPI_Z, logits GCPI_Z; const char *until GCPI_Z;
    const gcp_tensor *inputs GCPI_Z; int input_count GCPI_Z; gcp_writer report GCPI_Z;
} GCPI_BY_NAME gcp_onnx_record_opts;
/* Records the network on a tape. Each initialiser of floats is a parameter of its name, in which what gcp does not
   allow became '_'. Constants are frozen ones, as is an initialiser of one element, unless its name has a dot. A block
   that exporters name with a number (layer1.0) is a segment; where no names have one, what is repeated at once is. What
   cannot be recorded is an error that counts all such nodes and names the first; after gcp_error_clear the tape is as
   it was. */
GCP_API gcp_code gcp_onnx_record_at(gcp_tape *tape, gcp_onnx *model, gcp_onnx_record_opts opts);

/* The tensor of a value by its name in the file, images channels last; nil with an error. */
GCP_API gcp_tensor gcp_onnx_tensor_at(gcp_tape *tape, gcp_onnx *model, const char *name, gcp_at at);
/* Inputs and outputs in the file's order; nil past the last. With .until or .logits there is one output. */
GCP_API gcp_tensor gcp_onnx_input(const gcp_onnx *model, int index);
GCP_API gcp_tensor gcp_onnx_output(const gcp_onnx *model, int index);

/* The file's weights and statistics into the tape's state, which must be bound; those of a new head (.classes) stay as
   they are. Returns how many; 0 with the error. */
GCP_API int      gcp_onnx_load_at(gcp_tape *tape, gcp_onnx *model, gcp_at at);
/* The same file with the state's values, written as gcp_save writes: beside the path, flushed and renamed. Elements
   keep their type. .inference: as a network that is used: where the file was exported for training, its norms take
   their running statistics and its dropout drops nothing, in any runtime. (gcp trains both kinds of file alike.) */
typedef struct gcp_onnx_save_opts {
    gcp_at at GCPI_Z; int inference GCPI_Z; const gcp_files *files GCPI_Z;
} GCPI_BY_NAME gcp_onnx_save_opts;
GCP_API gcp_code gcp_onnx_save_at(gcp_tape *tape, gcp_onnx *model, const char *path, gcp_onnx_save_opts opts);

/* As gcp_write of an input and gcp_read of an output (after gcp_keep), by their number, in the file's own layout,
   channels first. Inputs of whole numbers have no other: gcp_write takes them. */
GCP_API gcp_code gcp_onnx_write_at(gcp_plan *plan, gcp_onnx *model, int input, const gcp_real *data, gcp_at at);
GCP_API gcp_code gcp_onnx_read_at(gcp_plan *plan, gcp_onnx *model, int output, gcp_real *data, gcp_at at);

/* The network as C: gcp_print_c of the outputs. What it prints records the same with gcp.h alone; gcp_load takes the
   weights there that gcp_save wrote here, after gcp_onnx_load. */
GCP_API gcp_code gcp_onnx_print_c_at(gcp_tape *tape, gcp_onnx *model, gcp_writer out, gcp_at at);

#define gcp_onnx_open(...)   GCPI_F2(gcp_onnx_open_at, gcp_onnx_open_opts, __VA_ARGS__, )        /* arena, path */
#define gcp_onnx_record(...) GCPI_F2(gcp_onnx_record_at, gcp_onnx_record_opts, __VA_ARGS__, )    /* tape, model */
#define gcp_onnx_save(...)   GCPI_F3(gcp_onnx_save_at, gcp_onnx_save_opts, __VA_ARGS__, )        /* tape, model, path */
#define gcp_onnx_print_c(tape, model, out)       gcp_onnx_print_c_at((tape), (model), (out), GCP_AT)
#define gcp_onnx_load(tape, model)               gcp_onnx_load_at((tape), (model), GCP_AT)
#define gcp_onnx_tensor(tape, model, name)       gcp_onnx_tensor_at((tape), (model), (name), GCP_AT)
#define gcp_onnx_write(plan, model, input, data) gcp_onnx_write_at((plan), (model), (input), (data), GCP_AT)
#define gcp_onnx_read(plan, model, output, data) gcp_onnx_read_at((plan), (model), (output), (data), GCP_AT)

#ifdef __cplusplus
}
#endif
#endif /* GCP_ONNX_H */

/* ---- Rooms ------------------------------------------------------------------------------------------------------
   The implementation, behind gcp_io.h's. dist/gcp_onnx.h has all rooms in one file. */
#if defined(GCP_IMPLEMENTATION) && !defined(GCP_ONNX_IMPLEMENTATION_DONE)
#define GCP_ONNX_IMPLEMENTATION_DONE

GCPI_COLD                              /* at -Og: code that runs once per file */
#include "src/onnx/wire.h"             /* Protocol Buffers' wire format */
#include "src/onnx/onnx_model.h"       /* The file's graph: nodes, names, initialisers, as ONNX has them (onnx.proto) */
#include "src/onnx/schema.h"           /* Schema: which fields of ONNX's messages are messages (onnx.proto) */
#include "src/onnx/open.h"             /* gcp_onnx_open: a file read and checked, its graph in arrays */
#include "src/onnx/fold.h"             /* Folding: what is known before a step */
#include "src/onnx/shapes.h"           /* Shapes: what each op makes, and its elements where its inputs are known */
#include "src/onnx/onnx_sizes.h"       /* Sizes: of what is made of numbers, and of windows, products, sums, images */
#include "src/onnx/order.h"            /* Orders: where a value's elements lie */
#include "src/onnx/operands.h"         /* From values to tensors */
#include "src/onnx/onnx_elements.h"    /* Ops of elements: activations, and two operands */
#include "src/onnx/onnx_moves.h"       /* Ops that move elements, or that would: most change an order alone */
#include "src/onnx/onnx_windows.h"     /* Ops of images: convolutions, pools, other sizes */
#include "src/onnx/onnx_products.h"    /* Products of matrices, and attention */
#include "src/onnx/onnx_norms.h"       /* Norms, softmax, and ops that reduce axes */
#include "src/onnx/curves.h"           /* Curves: activations that exporters write in pieces */
#include "src/onnx/fusions.h"          /* Patterns: what exporters write in pieces and gcp has as one op */
#include "src/onnx/onnx_table.h"       /* The ops of ONNX: a row each */
#include "src/onnx/head.h"             /* The head: the last layer, given another number of outputs (.classes) */
#include "src/onnx/blocks.h"           /* Blocks: nodes that become a segment */
#include "src/onnx/onnx_record.h"      /* gcp_onnx_record: from a graph to a tape */
#include "src/onnx/onnx_values.h"      /* Values between the file and the tape */
#include "src/onnx/save.h"             /* gcp_onnx_save: the file again, with new elements where one was trained */
GCPI_WARM                              /* again at the user's level of optimisation */

#endif /* GCP_IMPLEMENTATION */
