/* gcp_io.h - files for gcp.h: weights, runs that go on, sets of images. MIT licence, see gcp.h.

   Do this in *one* C file, the one that holds gcp.h's implementation:
       #define GCP_IMPLEMENTATION
       #include "gcp.h"
       #include "gcp_io.h"
   and plain #include "gcp_io.h" wherever else it is used. It needs the C library alone.

       gcp_save(net, "weights.safetensors");                  // when the state is bound, so after gcp_bind
       gcp_load(net, "weights.safetensors");

       struct { int epoch, batch; } at = { 0, 0 };            // where in the data: yours
       gcp_resume_run(net, "run.gcp", .extra = &at, .extra_bytes = sizeof at);
       for (; !gcp_error(net) && at.epoch < epochs; at.epoch++) {        // a file of another run is an error, and stays
           ... gcp_step ...
           gcp_save_run(net, "run.gcp", .extra = &at, .extra_bytes = sizeof at);
       }

   A weights file has the tape's parameters and running statistics, by path, in the format safetensors
   (github.com/huggingface/safetensors): PyTorch, TensorFlow and JAX read and write it. A *run file* (elsewhere called a
   checkpoint; here that word means a kept activation) has all that training goes on from, to the bit. It is a
   safetensors file too, so gcp_load takes the weights out of it, and so does Python.

   What is saved is written beside the file (PATH.gcp-PROCESS-NUMBER.part, a name that no other writer has), flushed to
   the disk and renamed. Whatever fails or is killed, and however many programs save there, PATH is the old file or a
   new one. (A link becomes a file; what is neither is refused.) What a writer left that died is removed by the next
   save of that path, a minute later at the earliest. Nothing in a file is trusted: what is wrong is an error that
   names the file, the offset, what was found and what was expected, before a byte of the tape's state is changed. */

#ifndef GCP_IO_H
#define GCP_IO_H

#include "gcp.h"

#if !defined(GCPI_ONE_FILE) && defined(__has_include)
#if !__has_include("src/io/files.h")
#error "gcp_io.h needs its rooms, the folder src/ beside it; the single files to copy are dist/gcp.h, dist/gcp_io.h"
#endif
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* The functions that files are reached by: .files of the options below, NULL: gcp_stdio(). Replace them for files of
   another kind (in memory, in an archive), or to see what happens when they fail. None is NULL. Where not said
   otherwise, 0 means failure. */
typedef struct gcp_files {
    void *context;
    /* write: a new file; fails where something has that name, and follows no link. Else a regular file, at once: a pipe
       is not waited for. NULL: failure */
    void   *(*open)(void *context, const char *path, int write);
    int     (*absent)(void *context, const char *path);             /* 1: nothing has that name */
    int64_t (*size)(void *context, void *file);                     /* of a file open for reading; -1: failure */
    int     (*rewind)(void *context, void *file);
    /* how many bytes were read or written; fewer than asked are asked for again, 0 is the end or a failure */
    size_t  (*read)(void *context, void *file, void *to, size_t size);
    size_t  (*write)(void *context, void *file, const void *from, size_t size);
    int     (*flush)(void *context, void *file);                    /* to the disk */
    int     (*close)(void *context, void *file);
    int     (*rename)(void *context, const char *from, const char *to);     /* in the place of `to`, at once;
                                                                               not of a device */
    void    (*remove)(void *context, const char *path);
    /* calls found with each name in a folder, in any order. -1: the path is no folder */
    int     (*list)(void *context, const char *folder, void (*found)(void *arg, const char *name), void *arg);
    double  (*age)(void *context, const char *path);                /* seconds since it was last written; -1: unknown */
} gcp_files;
GCP_API const gcp_files *gcp_stdio(void);

/* Whose names and layouts a file has. Ours: gcp's paths and shapes ([out][kh][kw][in]; [out][in]).
   GCP_STYLE_TORCH: PyTorch's. Weights of four sizes are [out][in][kh][kw] (transposed convolutions [in][out][kh][kw]).
   An image that gcp_flatten makes a row of, or gcp_reshape makes of a row, lies there channel by channel: so do the
   inputs of a dense layer behind it, the outputs of one before it, and norms and biases between. Where that cannot be
   told (behind a concat with something else) it is an error, and .map must give the layout. gamma and beta are called
   weight and bias; num_batches_tracked is passed over.
   GCP_STYLE_KERAS: weights are called kernel and are [kh][kw][in][out] or [in][out]; statistics are moving_mean and
   moving_variance. A depthwise convolution of one output per channel is [kh][kw][c][1]: layout hwoi in the map. */
typedef enum gcp_style { GCP_STYLE_GCP, GCP_STYLE_TORCH, GCP_STYLE_KERAS } gcp_style;

/* .map: lines "OURS THEIRS [LAYOUT]" (# begins a comment). A path goes by the first line whose OURS fits all of it, as
   gcp has it or with its last part as the style calls it; one that fits none stays, with that last part. In OURS {a} to
   {z} stand for a number, * for the shortest text with which the rest fits up to the next *; in THEIRS {a}, {a+1} or
   {a-2}, up to 999, give the number again, * the texts in order. A line that no path goes by is an error.
       stage[{s}]/block[{b}]/conv2d[{i}]/weight  layer{s+1}.{b}.conv{i+1}.weight
       *                                         backbone.*
   "OURS -": the file has no such tensor, it stays as it is (a new head; for gcp_load).
   "- THEIRS": tensors of the file that are passed over, if they are there (* in THEIRS is any text). LAYOUT gives the
   order of a weight's axes in the file, letters of o, h, w, i (out, height, width, in), without those that the weight
   lacks: oihw, io. oihw:7x7, of a dense layer: its inputs are an image of 7 rows and 7 columns, flattened.
   .partial: gcp_load takes what both have and leaves the rest (else each tensor must have its match); a tensor of both
   with another shape is an error all the same, if no line "- THEIRS" passes over it. Of no use in gcp_save.
   .report: gcp_load writes there, before it loads or fails, what goes where and what is left on both sides, as lines of
   a map. .arena: what is needed on the way comes from its scratch; NULL: the tape's. */
typedef struct gcp_weights_opts {
    gcp_at at GCPI_Z;
    gcp_style style GCPI_Z;
    const char *map GCPI_Z;
    int partial GCPI_Z;
    gcp_writer report GCPI_Z;
    const gcp_files *files GCPI_Z;
    gcp_arena *arena GCPI_Z;
} GCPI_BY_NAME gcp_weights_opts;

/* .extra: bytes of yours that go with the run, .extra_bytes of them: the place in the data, the best result so far. */
typedef struct gcp_run_opts {
    gcp_at at GCPI_Z;
    void *extra GCPI_Z; size_t extra_bytes GCPI_Z;
    const gcp_files *files GCPI_Z;
    gcp_arena *arena GCPI_Z;
} GCPI_BY_NAME gcp_run_opts;

/* The scratch that is enough for every call below with files of this recording, without a .map: of .arena, or left in
   the tape's arena. It is given back. Nothing need be bound. Reading somebody else's file takes up to 5 times its
   header. On a device a weight of another layout takes its own bytes besides. */
GCP_API size_t gcp_files_arena(const gcp_tape *tape);

/* Weights. The state must be bound. What is saved is float (F32), or double (F64) where gcp_real is double; gcp_load
   takes both, F16 and BF16. A shape that differs by sizes of one is taken (a 1x1 convolution's weight for a dense
   layer), and what gcp_save writes next in that style has the same ones; a layout in .map says it for good. gcp_load
   returns how many tensors it loaded, 0 with the tape's error. It changes neither slots nor counts, and does not
   compare a run file's checksum. Only if the disk fails in the middle of the data can the state be left with some
   tensors loaded. */
GCP_API gcp_code gcp_save_at(gcp_tape *tape, const char *path, gcp_weights_opts opts);
GCP_API int      gcp_load_at(gcp_tape *tape, const char *path, gcp_weights_opts opts);
#define gcp_save(...) GCPI_F2(gcp_save_at, gcp_weights_opts, __VA_ARGS__, )          /* tape, path */
#define gcp_load(...) GCPI_F2(gcp_load_at, gcp_weights_opts, __VA_ARGS__, )

/* Runs. A run file has values, statistics, the optimiser's slots and counts of updates, by path; the counts of steps;
   the seed; .extra; a checksum. Save and resume between updates, not between the micro-batches of .accumulate (or
   gcp_unbind first, which gives up what they summed). Names that begin with "gcp." are a run file's own. gcp_save_run
   refuses where the scratch would not be enough to resume. As any error, a save that failed stays on the tape, and no
   step is taken before gcp_error_clear: so look at what it returns.
   gcp_resume_run is called on the same recording, with plans bound that train all that was trained (in a run of several
   phases, bind the plans of all first); another policy, budget, target or number of threads may go on. (More threads
   take more bytes: see gcp_target.) Returns 1; 0 where there is no such file, without an error: a new run; 0 with the
   tape's error, and the state as it was (but if the disk fails in the second of two readings). What differs (a tensor's
   name or shape, the optimiser of slots, .extra_bytes) is an error that names the first difference. */
GCP_API gcp_code gcp_save_run_at(gcp_tape *tape, const char *path, gcp_run_opts opts);
GCP_API int      gcp_resume_run_at(gcp_tape *tape, const char *path, gcp_run_opts opts);
#define gcp_save_run(...)   GCPI_F2(gcp_save_run_at, gcp_run_opts, __VA_ARGS__, )    /* tape, path */
#define gcp_resume_run(...) GCPI_F2(gcp_resume_run_at, gcp_run_opts, __VA_ARGS__, )

/* Labelled images. images and labels lie in the arena; images is count x height x width x channels bytes, in the order
   of the files. On failure count is 0 and error says why. arena NULL: looks at sizes and headers alone (of a folder, at
   one image's); images and labels are NULL, bytes is what an arena must have. */
typedef struct gcp_dataset {
    unsigned char *images;
    int32_t *labels;                    /* 0 to classes - 1, as gcp_labels takes them */
    const char *const *names;           /* of the classes, of folders; else NULL */
    int count, height, width, channels, classes;
    int brightest;                      /* the value that is white: 255 in most files */
    size_t bytes;
    char error[GCP_MAX_ERROR];
} gcp_dataset;

/* .classes: default 10; of a folder: the most, default 65536. .brightest: of IDX files, default 255 */
typedef struct gcp_dataset_opts {
    gcp_at at GCPI_Z; int classes GCPI_Z, brightest GCPI_Z; const gcp_files *files GCPI_Z;
} GCPI_BY_NAME gcp_dataset_opts;

/* idx: grey images and their labels (MNIST and its relatives), unpacked. cifar10: the binary version's files, one after
   the other. folder: images of one size, PGM or PPM (binary, up to 255), in folders of their class in `folder`
   (folder/cat/1.ppm); classes and images are in the order of their names' bytes, so compare .names of two sets. An
   empty folder is a class. Without folders inside, all are of class 0. Only names that end with .ppm, .pgm or .pnm, or
   .PPM and so on, are images; others, and names that begin with a dot, are passed over. */
GCP_API gcp_dataset gcp_dataset_idx_at(gcp_arena *arena, const char *images, const char *labels, gcp_dataset_opts o);
GCP_API gcp_dataset gcp_dataset_cifar10_at(gcp_arena *arena, const char *const *paths, int count, gcp_dataset_opts o);
GCP_API gcp_dataset gcp_dataset_folder_at(gcp_arena *arena, const char *folder, gcp_dataset_opts o);
/* arena, images, labels; arena, paths, how many; arena, folder */
#define gcp_dataset_idx(...)     GCPI_F3(gcp_dataset_idx_at, gcp_dataset_opts, __VA_ARGS__, )
#define gcp_dataset_cifar10(...) GCPI_F3(gcp_dataset_cifar10_at, gcp_dataset_opts, __VA_ARGS__, )
#define gcp_dataset_folder(...)  GCPI_F2(gcp_dataset_folder_at, gcp_dataset_opts, __VA_ARGS__, )

#ifdef __cplusplus
}
#endif
#endif /* GCP_IO_H */

/* ---- Rooms ------------------------------------------------------------------------------------------------------
   The implementation, behind gcp.h's. dist/gcp_io.h has all rooms in one file. */
#if defined(GCP_IMPLEMENTATION) && !defined(GCP_IO_IMPLEMENTATION_DONE)
#define GCP_IO_IMPLEMENTATION_DONE

#include "src/io/files.h"              /* Files behind a table of functions; the table over stdio */
#include "src/io/header.h"             /* safetensors: a file's header, read and checked */
#include "src/io/layouts.h"            /* Our layouts and theirs: axes of weights, flattened channels */
#include "src/io/styles.h"             /* Our names and theirs */
#include "src/io/elements.h"           /* Elements on their way between the state and a file */
#include "src/io/pieces.h"             /* What a saved file consists of, piece by piece */
#include "src/io/weights.h"            /* gcp_save and gcp_load: parameters and running statistics */
#include "src/io/run.h"                /* gcp_save_run and gcp_resume_run */
#include "src/io/images.h"             /* Labelled images from files: IDX, CIFAR-10, folders of PGM and PPM */

#endif /* GCP_IMPLEMENTATION */
