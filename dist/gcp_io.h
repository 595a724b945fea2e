/* gcp_io.h 0.3.0 in one file: assembled from gcp_io.h and the rooms in src/ by src/assemble.cmake, never edited. */
#define GCPI_ONE_FILE

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


/* ==== src/io/files.h ==== */

/* Files behind a table of functions; the table over stdio. A gcpi_disk_file is being read or written: it counts and
   hashes its bytes, and sends its first error to a tape, or to a text, with the file's name and the offset. What is
   written goes beside the file, under a name that no other writer has, and takes its place at the end. */

#include <errno.h>
#include <time.h>
#if defined(_WIN32)
#include <fcntl.h>
#include <io.h>
#include <process.h>
#include <sys/stat.h>
#ifdef __cplusplus
extern "C"
#endif
__declspec(dllimport) int __stdcall MoveFileExA(const char *from, const char *to, unsigned long flags);
#else
#include <dirent.h>
#include <sys/stat.h>
#ifdef __cplusplus
#include <unistd.h>
#else                                   /* -std=c11 hides them */
extern int fsync(int file);
extern int fileno(FILE *file);
extern int getpid(void);
#endif
#endif

/* ---- over stdio ---- */

/* What stands there. Nothing is opened to see it: that of a pipe waits until somebody writes. */
typedef enum gcpi_found { GCPI_FOUND_UNKNOWN, GCPI_FOUND_NOTHING, GCPI_FOUND_FILE, GCPI_FOUND_OTHER } gcpi_found;
static gcpi_found gcpi_stdio_find(const char *path, int64_t *written)
{
#if defined(_WIN32)
    struct _stat64 is;
    const int failed = _stat64(path, &is) != 0, plain = !failed && (is.st_mode & _S_IFMT) == _S_IFREG;
#else
    struct stat is;
    const int failed = stat(path, &is) != 0, plain = !failed && S_ISREG(is.st_mode);
#endif
    if (failed) return errno == ENOENT ? GCPI_FOUND_NOTHING : GCPI_FOUND_UNKNOWN;
    *written = (int64_t)is.st_mtime;
    return plain ? GCPI_FOUND_FILE : GCPI_FOUND_OTHER;
}
static void *gcpi_stdio_open(void *context, const char *path, int write)
{
    int64_t written;
    (void)context;
    if (!write) return gcpi_stdio_find(path, &written) == GCPI_FOUND_FILE ? fopen(path, "rb") : NULL;
#if defined(_WIN32)
    const int file = _open(path, _O_CREAT | _O_EXCL | _O_WRONLY | _O_BINARY, _S_IREAD | _S_IWRITE);
    return file < 0 ? NULL : _fdopen(file, "wb");
#else
    return fopen(path, "wbx");           /* fails where there is one, and follows no link */
#endif
}
static int gcpi_stdio_absent(void *context, const char *path)
{
    int64_t written;
    (void)context;
    return gcpi_stdio_find(path, &written) == GCPI_FOUND_NOTHING;
}
static double gcpi_stdio_age(void *context, const char *path)
{
    int64_t written;
    (void)context;
    if (gcpi_stdio_find(path, &written) != GCPI_FOUND_FILE) return -1;
#if defined(_WIN32)
    return (double)((int64_t)time(NULL) - written);
#else
    struct timespec now = { 0, 0 };
    timespec_get(&now, TIME_UTC);
    return (double)((int64_t)now.tv_sec - written);
#endif
}
static int64_t gcpi_stdio_size(void *context, void *file)
{
    FILE *f = (FILE *)file;
    (void)context;
#if defined(_WIN32)
    int64_t size = _fseeki64(f, 0, SEEK_END) ? -1 : _ftelli64(f);
#else
    int64_t size = fseek(f, 0, SEEK_END) ? -1 : (int64_t)ftell(f);
#endif
    return fseek(f, 0, SEEK_SET) ? -1 : size;
}
static int gcpi_stdio_rewind(void *context, void *file)
{
    (void)context;
    return !fseek((FILE *)file, 0, SEEK_SET);
}
static size_t gcpi_stdio_read(void *context, void *file, void *to, size_t size)
{
    (void)context;
    return fread(to, 1, size, (FILE *)file);
}
static size_t gcpi_stdio_write(void *context, void *file, const void *from, size_t size)
{
    (void)context;
    return fwrite(from, 1, size, (FILE *)file);
}
static int gcpi_stdio_flush(void *context, void *file)
{
    (void)context;
    if (fflush((FILE *)file)) return 0;
#if defined(_WIN32)
    return !_commit(_fileno((FILE *)file));
#else
    return !fsync(fileno((FILE *)file));
#endif
}
static int gcpi_stdio_close(void *context, void *file)
{
    (void)context;
    return !fclose((FILE *)file);
}
static void gcpi_stdio_remove(void *context, const char *path)
{
    (void)context;
    remove(path);
}

enum { GCPI_PATH = 4096 };
/* Windows' rename does not replace. Elsewhere the folder is flushed, too: it holds the name. A device or a pipe there
   stays: a program of root's would lose /dev/null. */
static int gcpi_stdio_rename(void *context, const char *from, const char *to)
{
    (void)context;
#if defined(_WIN32)
    return MoveFileExA(from, to, 1 | 8) != 0;     /* replace, and wait for the disk */
#else
    char folder[GCPI_PATH];
    const char *slash = strrchr(to, '/');
    int64_t written;
    if (gcpi_stdio_find(to, &written) == GCPI_FOUND_OTHER || rename(from, to)) return 0;
    snprintf(folder, sizeof folder, "%.*s", slash ? (int)(slash - to) + 1 : 1, slash ? to : ".");
    FILE *f = fopen(folder, "rb");
    if (!f) return 1;                             /* a system that does not open folders */
    fsync(fileno(f));
    fclose(f);
    return 1;
#endif
}

static int gcpi_stdio_list(void *context, const char *folder, void (*found)(void *arg, const char *name), void *arg)
{
    (void)context;
#if defined(_WIN32)
    char pattern[GCPI_PATH];
    struct _finddata_t entry;
    snprintf(pattern, sizeof pattern, "%s/*", folder);
    intptr_t search = _findfirst(pattern, &entry);
    if (search == -1) return -1;
    do found(arg, entry.name); while (!_findnext(search, &entry));
    _findclose(search);
#else
    errno = 0;
    DIR *d = opendir(folder);
    if (!d) return errno == ENOTDIR ? -1 : 0;
    for (const struct dirent *entry; (entry = readdir(d)) != NULL;) found(arg, entry->d_name);
    closedir(d);
#endif
    return 1;
}

GCPI_DEF const gcp_files *gcp_stdio(void)
{
    static const gcp_files files = { NULL, gcpi_stdio_open, gcpi_stdio_absent, gcpi_stdio_size, gcpi_stdio_rewind,
                                     gcpi_stdio_read, gcpi_stdio_write, gcpi_stdio_flush, gcpi_stdio_close,
                                     gcpi_stdio_rename, gcpi_stdio_remove, gcpi_stdio_list, gcpi_stdio_age };
    return &files;
}

/* ---- a file that is read or written ---- */

/* Eight bytes at a time, as xxHash's rounds (Collet): each step can be undone, so that two texts which differ in one
   word never agree. */
typedef struct gcpi_checksum { uint64_t hash, word; int bytes; } gcpi_checksum;
static void gcpi_checksum_word(gcpi_checksum *c, uint64_t word)
{
    uint64_t h = (c->hash ^ word) * 0x9E3779B185EBCA87u;
    c->hash = (h << 31 | h >> 33) * 0xC2B2AE3D27D4EB4Fu;
}
static uint64_t gcpi_u64_from(const unsigned char *b)
{
    uint64_t v = 0;
    for (int i = 7; i >= 0; i--) v = v << 8 | b[i];
    return v;
}
static void gcpi_checksum_add(gcpi_checksum *c, const unsigned char *bytes, size_t count)
{
    size_t i = 0;
    while (i < count) {
        if (!c->bytes && count - i >= 8) { gcpi_checksum_word(c, gcpi_u64_from(bytes + i)); i += 8; continue; }
        c->word |= (uint64_t)bytes[i++] << 8 * c->bytes++;
        if (c->bytes == 8) { gcpi_checksum_word(c, c->word); c->word = 0; c->bytes = 0; }
    }
}
static uint64_t gcpi_checksum_end(gcpi_checksum c)
{
    gcpi_checksum_word(&c, c.word);
    gcpi_checksum_word(&c, (uint64_t)c.bytes);
    return c.hash;
}

/* One of tape and text is where errors go; text has GCP_MAX_ERROR bytes. scratch: the arena for what is needed on the
   way, of a tape's files. */
typedef struct gcpi_disk_file {
    const gcp_files *files;
    const char *path, *call;
    gcp_at at;
    gcp_tape *tape; char *text;
    gcp_arena *scratch; ptrdiff_t taken;  /* of its back before this */
    void *file;
    uint64_t size, offset;               /* of the file that is read; of the next byte */
    gcpi_checksum sum;                   /* of the bytes so far */
    int failed;
} gcpi_disk_file;

static void gcpi_disk_say(gcpi_disk_file *s, gcp_code code, int64_t offset, const char *format, va_list args)
{
    enum { MOST = 160 };                 /* of the path: its end says more */
    char what[GCP_MAX_ERROR], place[40] = "";
    const size_t length = strlen(s->path), skip = length > MOST ? length - MOST : 0;
    const char *dots = skip ? "..." : "", *path = s->path + skip;
    if (s->failed) return;
    s->failed = 1;
    vsnprintf(what, sizeof what, format, args);
    if (offset >= 0) snprintf(place, sizeof place, "offset %llu: ", (unsigned long long)offset);
    if (s->tape) gcpi_fail(s->tape, code, s->at, s->call, "%s%s: %s%s", dots, path, place, what);
    else snprintf(s->text, GCP_MAX_ERROR, "%.100s:%d: %s: %s%s: %s%.200s", gcpi_basename(s->at.file), s->at.line,
                  s->call, dots, path, place, what);
}
/* The first error stands. These return 0. */
GCPI_PRINTF(3, 4)
static int gcpi_wrong(gcpi_disk_file *s, gcp_code code, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    gcpi_disk_say(s, code, -1, format, args);
    va_end(args);
    return 0;
}
GCPI_PRINTF(3, 4)
static int gcpi_wrong_at(gcpi_disk_file *s, int64_t offset, const char *format, ...)          /* the contents, there */
{
    va_list args;
    va_start(args, format);
    gcpi_disk_say(s, GCP_E_CONTENTS, offset, format, args);
    va_end(args);
    return 0;
}
static int gcpi_disk_broke(gcpi_disk_file *s, const char *what, size_t done, size_t size)
{
    return gcpi_wrong(s, GCP_E_FILE, "offset %llu: %s failed after %llu of %llu bytes", (unsigned long long)s->offset,
                      what, (unsigned long long)done, (unsigned long long)size);
}

static size_t gcpi_disk_room(const gcpi_disk_file *s) /* scratch that there was at first */
{
    return (size_t)(s->scratch->size - s->scratch->used - s->taken);
}
static int gcpi_disk_no_room(gcpi_disk_file *s, size_t bytes, const char *what)
{
    return gcpi_wrong(s, GCP_E_NOMEM, "%s takes %zu bytes of scratch, and the arena has %zu left (.arena gives others)",
                      what, bytes, gcpi_disk_room(s));
}

static const char gcpi_no_path[] = "(NULL)";
static gcpi_disk_file gcpi_disk_of(const gcp_files *files, const char *path, gcp_at at, const char *call)
{
    gcpi_disk_file s;
    memset(&s, 0, sizeof s);
    s.files = files ? files : gcp_stdio();
    s.path = path ? path : gcpi_no_path; s.call = call; s.at = at;
    return s;
}

#define GCPI_PART_LONGEST ".gcp-2147483647-65536000000099.part"      /* that gcpi_disk_create puts behind a path */

/* 0: the path is none, or a function. */
static int gcpi_disk_path(gcpi_disk_file *s)
{
    const gcp_files *f = s->files;
    if (!f->open || !f->absent || !f->size || !f->rewind || !f->read || !f->write || !f->flush || !f->close ||
        !f->rename || !f->remove || !f->list || !f->age)
        return gcpi_wrong(s, GCP_E_ARGUMENT, "a function of .files is NULL");
    if (s->path == gcpi_no_path) return gcpi_wrong(s, GCP_E_ARGUMENT, "the path is NULL");
    if (!*s->path) return gcpi_wrong(s, GCP_E_ARGUMENT, "the path is empty");
    return strlen(s->path) + sizeof GCPI_PART_LONGEST <= GCPI_PATH ||
           gcpi_wrong(s, GCP_E_ARGUMENT, "the path is too long");
}

static int gcpi_disk_shut(gcpi_disk_file *s)      /* what open refused */
{
    return gcpi_wrong(s, GCP_E_FILE, "%s",
                      s->files->absent(s->files->context, s->path)
                          ? "there is no such file"
                          : "cannot be opened (a regular file that may be read is expected)");
}
/* Opens for reading. 0: failed. */
static int gcpi_disk_open(gcpi_disk_file *s)
{
    const gcp_files *f = s->files;
    if (!gcpi_disk_path(s)) return 0;
    s->file = f->open(f->context, s->path, 0);
    if (!s->file) return gcpi_disk_shut(s);
    int64_t size = f->size(f->context, s->file);
    if (size < 0) return gcpi_wrong(s, GCP_E_FILE, "its size cannot be found: not a plain file");
    s->size = (uint64_t)size;
    return 1;
}
static void gcpi_disk_close(gcpi_disk_file *s)
{
    if (s->scratch) s->scratch->scratch = s->taken;
    if (s->file) s->files->close(s->files->context, s->file);
    s->file = NULL;
}

/* All of size bytes, or an error. */
static int gcpi_disk_read(gcpi_disk_file *s, void *to, size_t size)
{
    const gcp_files *f = s->files;
    unsigned char *at = (unsigned char *)to;
    size_t got = 0, more = 1;
    while (got < size && more) {
        more = f->read(f->context, s->file, at + got, size - got);
        if (more > size - got) more = 0;
        got += more;
    }
    if (got < size) return gcpi_disk_broke(s, "reading", got, size);
    gcpi_checksum_add(&s->sum, at, size);
    s->offset += size;
    return 1;
}
static int gcpi_disk_skip(gcpi_disk_file *s, uint64_t size)
{
    unsigned char some[4096];
    for (uint64_t n; size > 0; size -= n) {
        n = GCPI_MIN(size, sizeof some);
        if (!gcpi_disk_read(s, some, (size_t)n)) return 0;
    }
    return 1;
}
/* Back to the beginning, for a second reading. */
static int gcpi_disk_again(gcpi_disk_file *s)
{
    memset(&s->sum, 0, sizeof s->sum);
    s->offset = 0;
    if (s->files->rewind(s->files->context, s->file)) return 1;
    return gcpi_wrong(s, GCP_E_FILE, "cannot be read a second time");
}

static int gcpi_disk_write(gcpi_disk_file *s, const void *from, size_t size)
{
    const gcp_files *f = s->files;
    const unsigned char *at = (const unsigned char *)from;
    size_t put = 0, more = 1;
    if (s->failed) return 0;
    while (put < size && more) {
        more = f->write(f->context, s->file, at + put, size - put);
        if (more > size - put) more = 0;
        put += more;
    }
    if (put < size) return gcpi_disk_broke(s, "writing", put, size);
    gcpi_checksum_add(&s->sum, at, size);
    s->offset += size;
    return 1;
}

#if defined(_WIN32)
#define GCPI_SLASHES "/\\"
static int gcpi_process(void) { return _getpid(); }
#else
#define GCPI_SLASHES "/"
static int gcpi_process(void) { return (int)getpid(); }
#endif

/* New files beside a path: PATH.gcp-PROCESS-NUMBER.part. The number is the clock's, in nanoseconds: a writer that slept
   while its file was swept away does not find another's under its name. */
typedef struct gcpi_parts { gcpi_disk_file *s; const char *base; int folder; } gcpi_parts;     /* folder: its length */
static const char *gcpi_digits_end(const char *text)      /* NULL: there are none */
{
    const char *end = text + strspn(text, "0123456789");
    return end > text ? end : NULL;
}
/* Whether this is the name of one beside base. */
static int gcpi_is_left(const char *name, const char *base)
{
    const size_t length = strlen(base);
    if (strncmp(name, base, length) || strncmp(name + length, ".gcp-", 5)) return 0;
    const char *end = gcpi_digits_end(name + length + 5);
    end = end && *end == '-' ? gcpi_digits_end(end + 1) : NULL;
    return end && !strcmp(end, ".part");
}
/* Removes it where nobody has written there for a minute: its writer is dead. */
static void gcpi_part_found(void *parts, const char *name)
{
    const gcpi_parts *p = (const gcpi_parts *)parts;
    const gcp_files *f = p->s->files;
    char path[GCPI_PATH];
    if (!gcpi_is_left(name, p->base)) return;
    snprintf(path, sizeof path, "%.*s%s", p->folder, p->s->path, name);
    if (f->age(f->context, path) > 60) f->remove(f->context, path);
}
static void gcpi_parts_sweep(gcpi_disk_file *s)
{
    char folder[GCPI_PATH];
    gcpi_parts p;
    p.s = s; p.base = s->path;
    for (const char *c = s->path; *c; c++) if (strchr(GCPI_SLASHES, *c)) p.base = c + 1;
    p.folder = (int)(p.base - s->path);
    snprintf(folder, sizeof folder, "%.*s", p.folder ? p.folder : 1, p.folder ? s->path : ".");
    s->files->list(s->files->context, folder, gcpi_part_found, &p);
}

/* Opens a new file beside the path, whose name goes to part. */
static int gcpi_disk_create(gcpi_disk_file *s, char *part)
{
    const gcp_files *f = s->files;
    if (!gcpi_disk_path(s)) return 0;
    gcpi_parts_sweep(s);
    const uint64_t now = (uint64_t)(1e9 * gcpi_now());
    for (unsigned i = 0; !s->file && i < 100; i++) {
        snprintf(part, GCPI_PATH, "%s.gcp-%d-%llu.part", s->path, gcpi_process(), (unsigned long long)(now + i));
        s->file = f->open(f->context, part, 1);
        if (!s->file && f->absent(f->context, part)) break;       /* it is not the name */
    }
    return s->file ? 1
                   : gcpi_wrong(s, GCP_E_FILE, "cannot be written: no new file can be made beside it (is its folder "
                                               "there, may it be written? the new name is up to 40 bytes longer)");
}
/* Puts the new file in the path's place; removes it where anything failed. 1: done. */
static int gcpi_disk_settle(gcpi_disk_file *s, const char *part)
{
    const gcp_files *f = s->files;
    if (!s->file) return 0;
    if (!s->failed && !f->flush(f->context, s->file))
        gcpi_wrong(s, GCP_E_FILE, "what was written cannot be flushed to the disk");
    if (!f->close(f->context, s->file)) gcpi_wrong(s, GCP_E_FILE, "what was written cannot be closed");
    s->file = NULL;
    if (!s->failed && !f->rename(f->context, part, s->path))
        gcpi_wrong(s, GCP_E_FILE, "cannot be replaced by the new file (a regular file, or none, is expected)");
    if (s->failed) f->remove(f->context, part);
    return !s->failed;
}

/* What the first four bytes of others' files say; NULL: nothing known. */
static const char *gcpi_other_format(const unsigned char *first)
{
    static const char torch[] = "a file of torch.save (safetensors.torch.save_file(model.state_dict(), path) "
                                "writes one)";
    if (!memcmp(first, "PK\3\4", 4) || (first[0] == 0x80 && first[1] >= 2 && first[1] <= 5)) return torch;
    return !memcmp(first, "\x89HDF", 4) ? "an HDF5 file (.h5)" : !memcmp(first, "GGUF", 4) ? "a GGUF file" : NULL;
}

/* ==== src/io/header.h ==== */

/* safetensors: a file's header, read and checked. Eight bytes with the header's length, the header, the data. The
   header is JSON: an object of names, each an object of dtype, shape and data_offsets (and what else a writer adds,
   which is passed over); __metadata__ is an object of texts, or null. Nothing in it is trusted: entries must fill
   the data without gaps, each as large as its shape says, no name twice. */

enum { GCPI_HEADER_MOST = 1 << 24, GCPI_ENTRIES_MOST = 65536, GCPI_NAME_MOST = 1024, GCPI_RANK_MOST = 8,
       GCPI_DEPTH_MOST = 125 };           /* lists and objects inside each other, of what is passed over */

#define GCPI_DTYPES(X) \
    X(BOOL, 1) X(U8, 1) X(I8, 1) X(F8_E5M2, 1) X(F8_E4M3, 1) X(I16, 2) X(U16, 2) X(F16, 2) X(BF16, 2) X(I32, 4) \
    X(U32, 4) X(F32, 4) X(F64, 8) X(I64, 8) X(U64, 8)
#define GCPI_DTYPE(name, size) GCPI_FILE_##name,
typedef enum gcpi_file_dtype { GCPI_DTYPES(GCPI_DTYPE) GCPI_FILE_DTYPES } gcpi_file_dtype;
#undef GCPI_DTYPE

static const char *gcpi_dtype_name(int type)
{
#define GCPI_NAME(name, size) #name,
    static const char *const names[] = { GCPI_DTYPES(GCPI_NAME) };
#undef GCPI_NAME
    return names[type];
}
static size_t gcpi_dtype_size(int type)
{
#define GCPI_SIZE(name, size) size,
    static const unsigned char sizes[] = { GCPI_DTYPES(GCPI_SIZE) };
#undef GCPI_SIZE
    return sizes[type];
}

/* The order of a weight's axes: letters of o, h, w, i; h, w: of an image that was flattened, else 0; p, q: of one that
   its rows make (see layouts.h). given: by a line of .map. */
typedef struct gcpi_axes { char letters[7]; int h, w, p, q, given; } gcpi_axes;

/* A tensor of the file. begin and end count from the data's first byte. The readers of headers add what they found it
   to be: parameter (-1: nothing yet), slot of it (0: its value), the order of its axes. */
typedef struct gcpi_stored {
    const char *name;
    int dtype, rank, given;              /* given: a bit each for dtype, shape, data_offsets */
    uint64_t shape[GCPI_RANK_MOST], begin, end;
    int parameter, slot;
    gcpi_axes axes;
} gcpi_stored;

/* entries in the order of their data; by_name: their places in the order of their names */
typedef struct gcpi_header {
    gcpi_stored *entries, **by_name;
    int count;
    uint64_t data, bytes;                /* where the data begins in the file; how many they are */
} gcpi_header;

/* Where the text stops being UTF-8 (RFC 3629): neither longer than it need be, nor a surrogate, nor above 10FFFF. Its
   length, if it does not. */
static size_t gcpi_utf8_end(const char *text, size_t length)
{
    const unsigned char *s = (const unsigned char *)text;
    size_t i = 0, more;
    for (; i < length; i += more + 1) {
        const unsigned char c = s[i];
        more = c < 0x80                ? 0
               : c >= 0xC2 && c < 0xE0 ? 1
               : c >= 0xE0 && c < 0xF0 ? 2
               : c >= 0xF0 && c < 0xF5 ? 3
                                       : length;
        if (more >= length - i) return i;
        for (size_t k = 1; k <= more; k++) if (s[i + k] >> 6 != 2) return i;
        if ((c == 0xE0 && s[i + 1] < 0xA0) || (c == 0xED && s[i + 1] >= 0xA0)) return i;
        if ((c == 0xF0 && s[i + 1] < 0x90) || (c == 0xF4 && s[i + 1] >= 0x90)) return i;
    }
    return length;
}

/* ---- JSON ---- */

typedef struct gcpi_json { gcpi_disk_file *s; char *text; size_t at, length; } gcpi_json;

static int gcpi_json_fail(gcpi_json *j, const char *expected)
{
    unsigned char c = j->at < j->length ? (unsigned char)j->text[j->at] : 0;
    int64_t offset = 8 + (int64_t)j->at;
    if (j->at >= j->length)
        return gcpi_wrong_at(j->s, offset, "found the header's end, expected %s", expected);
    if (c < 0x20 || c > 0x7e)
        return gcpi_wrong_at(j->s, offset, "found byte 0x%02x, expected %s", c, expected);
    return gcpi_wrong_at(j->s, offset, "found '%c', expected %s", c, expected);
}
/* The next byte that is no space, 0 at the end. */
static char gcpi_json_peek(gcpi_json *j)
{
    while (j->at < j->length && strchr(" \t\r\n", j->text[j->at]) && j->text[j->at]) j->at++;
    return j->at < j->length ? j->text[j->at] : (char)0;
}
static int gcpi_json_take(gcpi_json *j, char c, const char *expected)
{
    if (gcpi_json_peek(j) != c || j->at >= j->length) return gcpi_json_fail(j, expected);
    j->at++;
    return 1;
}
/* After a member of a list or an object: 1: another follows; 0: it is closed, or an error. */
static int gcpi_json_more(gcpi_json *j, char close)
{
    char c = gcpi_json_peek(j);
    if (c == ',') { j->at++; return 1; }
    if (c == close && c) { j->at++; return 0; }
    return gcpi_json_fail(j, close == '}' ? "',' or '}'" : "',' or ']'");
}

static int gcpi_json_hex(gcpi_json *j, unsigned *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, j->at++) {
        char c = j->at < j->length ? j->text[j->at] : (char)0;
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0) return gcpi_json_fail(j, "four hexadecimal digits after \\u");
        *code = *code << 4 | (unsigned)digit;
    }
    return 1;
}
/* The code behind \u, two for what lies beyond 16 bits, as UTF-8 at `to`. Returns its end, NULL: an error. */
static char *gcpi_json_utf8(gcpi_json *j, char *to)
{
    unsigned code, low;
    if (!gcpi_json_hex(j, &code)) return NULL;
    if (code >> 10 == 0x36) {
        int pair = j->at + 1 < j->length && j->text[j->at] == '\\' && j->text[j->at + 1] == 'u';
        if (!pair) { gcpi_json_fail(j, "the second half of a pair of surrogates"); return NULL; }
        j->at += 2;
        if (!gcpi_json_hex(j, &low)) return NULL;
        if (low >> 10 != 0x37) {
            gcpi_json_fail(j, "the second half of a pair of surrogates before this");
            return NULL;
        }
        code = 0x10000 + ((code & 0x3ff) << 10 | (low & 0x3ff));
    } else if (!code || code >> 10 == 0x37) { gcpi_json_fail(j, "a character before this"); return NULL; }
    if (code < 0x80) { *to++ = (char)code; return to; }
    if (code < 0x800) *to++ = (char)(0xC0 | code >> 6);
    else if (code < 0x10000) *to++ = (char)(0xE0 | code >> 12);
    else { *to++ = (char)(0xF0 | code >> 18); *to++ = (char)(0x80 | (code >> 12 & 0x3F)); }
    if (code >= 0x800) *to++ = (char)(0x80 | (code >> 6 & 0x3F));
    *to++ = (char)(0x80 | (code & 0x3F));
    return to;
}
/* A text, decoded in place: what it stands for is never longer. NULL: an error. */
static char *gcpi_json_text(gcpi_json *j)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    if (!gcpi_json_take(j, '"', "a text in double quotes")) return NULL;
    char *text = j->text + j->at, *to = text;
    while (j->at < j->length && j->text[j->at] != '"') {
        char c = j->text[j->at];
        if ((unsigned char)c < 0x20) { gcpi_json_fail(j, "a character of a text"); return NULL; }
        j->at++;
        if (c != '\\') { *to++ = c; continue; }
        char escape = j->at < j->length ? j->text[j->at] : (char)0;
        const char *known = escape ? strchr(from, escape) : NULL;
        if (known) { *to++ = into[known - from]; j->at++; continue; }
        if (escape != 'u') { gcpi_json_fail(j, "a character that can follow \\"); return NULL; }
        j->at++;
        if ((to = gcpi_json_utf8(j, to)) == NULL) return NULL;
    }
    if (!gcpi_json_take(j, '"', "the text's end")) return NULL;
    *to = 0;
    return text;
}

static int gcpi_json_digit(const gcpi_json *j)    /* -1: none follows */
{
    const char c = j->at < j->length ? j->text[j->at] : (char)0;
    return c >= '0' && c <= '9' ? c - '0' : -1;
}
/* A whole number without a sign, below 2^64. */
static int gcpi_json_number(gcpi_json *j, uint64_t *value)
{
    *value = 0;
    gcpi_json_peek(j);
    const size_t first = j->at;
    for (int digit; (digit = gcpi_json_digit(j)) >= 0; j->at++) {
        if ((j->at > first && !*value) || *value > (UINT64_MAX - (uint64_t)digit) / 10) break;
        *value = *value * 10 + (uint64_t)digit;
    }
    return (j->at > first && gcpi_json_digit(j) < 0) || gcpi_json_fail(j, "a whole number below 2^64, without a sign");
}

/* [a, b, ...], at most `most` of them. Returns how many; -1: an error. */
static int gcpi_json_numbers(gcpi_json *j, uint64_t *values, int most)
{
    int count = 0;
    if (!gcpi_json_take(j, '[', "'['")) return -1;
    if (gcpi_json_peek(j) == ']') { j->at++; return 0; }
    do {
        if (count == most) { gcpi_json_fail(j, most == 2 ? "two offsets" : "at most eight sizes"); return -1; }
        if (!gcpi_json_number(j, &values[count++])) return -1;
    } while (gcpi_json_more(j, ']'));
    return j->s->failed ? -1 : count;
}

/* ---- what is passed over ---- */

/* A number as the format's own reader (serde_json) sums it up: 64 bits of digits, times ten to some power. */
typedef struct gcpi_json_decimal { uint64_t digits; int power; } gcpi_json_decimal;
/* step: what a digit that fits adds to the power, 0 before the point, -1 behind; from the first on that does not, each
   adds 1 more. */
static int gcpi_json_digits(gcpi_json *j, gcpi_json_decimal *d, int step)
{
    int full = 0;
    if (gcpi_json_digit(j) < 0) return gcpi_json_fail(j, "a digit");
    for (int digit; (digit = gcpi_json_digit(j)) >= 0; j->at++) {
        full |= d->digits > (UINT64_MAX - (uint64_t)digit) / 10;
        d->power += step + full;
        if (!full) d->digits = d->digits * 10 + (uint64_t)digit;
    }
    return 1;
}
static int gcpi_json_has(gcpi_json *j, const char *any) /* the next byte is one of these, and is taken */
{
    if (j->at == j->length || !j->text[j->at] || !strchr(any, j->text[j->at])) return 0;
    j->at++;
    return 1;
}
/* Any number (RFC 8259, section 6) that a double can hold. */
static int gcpi_json_pass_number(gcpi_json *j)
{
    enum { MOST = 1 << 24 };
    gcpi_json_decimal d = { 0, 0 }, e = { 0, 0 };
    int minus = 0;
    gcpi_json_has(j, "-");
    if (!gcpi_json_has(j, "0") && !gcpi_json_digits(j, &d, 0)) return 0;
    if (gcpi_json_has(j, ".") && !gcpi_json_digits(j, &d, -1)) return 0;
    if (gcpi_json_has(j, "eE")) {
        minus = gcpi_json_has(j, "-");
        if (!minus) gcpi_json_has(j, "+");
        if (!gcpi_json_digits(j, &e, 0)) return 0;
    }
    const int power = e.power || e.digits > MOST ? MOST : (int)e.digits;
    d.power += minus ? -power : power;
    if (!d.digits || d.power < 0 || (double)d.digits * pow(10, d.power) <= DBL_MAX) return 1;
    return gcpi_json_fail(j, "a number below 2^1024 before this");
}
static int gcpi_json_word(gcpi_json *j, const char *word)
{
    const size_t length = strlen(word);
    gcpi_json_peek(j);
    if (j->length - j->at < length || memcmp(j->text + j->at, word, length)) return 0;
    j->at += length;
    return 1;
}
static int gcpi_json_pass_scalar(gcpi_json *j)
{
    const char c = gcpi_json_peek(j);
    if (c == '"') return gcpi_json_text(j) != NULL;
    if (c == '-' || (c >= '0' && c <= '9')) return gcpi_json_pass_number(j);
    return gcpi_json_word(j, "null") || gcpi_json_word(j, "true") || gcpi_json_word(j, "false") ||
           gcpi_json_fail(j, "a value");
}
static int gcpi_json_key(gcpi_json *j) { return gcpi_json_text(j) && gcpi_json_take(j, ':', "':'"); }
/* Any value. close: what ends each list or object that is open. */
static int gcpi_json_pass(gcpi_json *j)
{
    char close[GCPI_DEPTH_MOST];
    int depth = 0;
    do {
        const char c = gcpi_json_peek(j);
        if (c == '{' || c == '[') {
            if (depth == GCPI_DEPTH_MOST) return gcpi_json_fail(j, "fewer values inside each other");
            j->at++;
            close[depth++] = c == '{' ? '}' : ']';
            if (gcpi_json_peek(j) != close[depth - 1]) {
                if (c == '{' && !gcpi_json_key(j)) return 0;
                continue;
            }
            j->at++; depth--;
        } else if (!gcpi_json_pass_scalar(j)) return 0;
        while (depth && !gcpi_json_more(j, close[depth - 1])) { if (j->s->failed) return 0; depth--; }
        if (depth && close[depth - 1] == '}' && !gcpi_json_key(j)) return 0;
    } while (depth);
    return 1;
}

/* ---- entries ---- */

static int gcpi_stored_dtype(gcpi_json *j, gcpi_stored *e)
{
    gcpi_json_peek(j);
    size_t at = j->at;
    const char *text = gcpi_json_text(j);
    if (!text) return 0;
    for (e->dtype = 0; e->dtype < GCPI_FILE_DTYPES; e->dtype++)
        if (!strcmp(text, gcpi_dtype_name(e->dtype))) return 1;
    return gcpi_wrong_at(j->s, 8 + (int64_t)at, "'%.20s' is no dtype that gcp knows", text);
}
/* A member of an entry: one of three, or what another writer added. */
static int gcpi_stored_member(gcpi_json *j, gcpi_stored *e)
{
    static const char *const names[] = { "dtype", "shape", "data_offsets" };
    uint64_t offsets[2];
    gcpi_json_peek(j);
    size_t at = j->at;
    const char *key = gcpi_json_text(j);
    int which = 0;
    if (!key) return 0;
    while (which < 3 && strcmp(key, names[which])) which++;
    if (which == 3) return gcpi_json_take(j, ':', "':'") && gcpi_json_pass(j);
    if (e->given >> which & 1) {
        j->at = at;
        return gcpi_json_fail(j, "dtype, shape and data_offsets, once each");
    }
    e->given |= 1 << which;
    if (!gcpi_json_take(j, ':', "':'")) return 0;
    if (which == 0) return gcpi_stored_dtype(j, e);
    if (which == 1) return (e->rank = gcpi_json_numbers(j, e->shape, GCPI_RANK_MOST)) >= 0;
    int count = gcpi_json_numbers(j, offsets, 2);
    if (count < 0) return 0;
    if (count < 2) { j->at--; return gcpi_json_fail(j, "two offsets"); }
    e->begin = offsets[0]; e->end = offsets[1];
    return 1;
}
/* The bytes that an entry's shape takes; 0 and an error where they are not those between its offsets. */
static int gcpi_stored_fits(gcpi_json *j, const gcpi_stored *e, size_t at)
{
    uint64_t bytes = 1;
    int fits = 1;
    for (int i = 0; i <= e->rank; i++) {
        const uint64_t size = i < e->rank ? e->shape[i] : gcpi_dtype_size(e->dtype);
        fits &= !size || bytes <= UINT64_MAX / size;
        bytes *= size;
    }
    if (fits && e->begin <= e->end && e->end - e->begin == bytes) return 1;
    return gcpi_wrong_at(j->s, 8 + (int64_t)at, "%.100s: found data_offsets [%llu, %llu], expected as many "
                         "bytes as dtype and shape say",
                         e->name, (unsigned long long)e->begin, (unsigned long long)e->end);
}
static int gcpi_stored_read(gcpi_json *j, gcpi_stored *e)
{
    if (!gcpi_json_take(j, '{', "'{'")) return 0;
    size_t at = j->at;
    if (gcpi_json_peek(j) != '}')
        do if (!gcpi_stored_member(j, e)) return 0;
        while (gcpi_json_more(j, '}'));
    if (j->s->failed) return 0;
    if (e->given != 7) { j->at = at; return gcpi_json_fail(j, "dtype, shape and data_offsets, once each"); }
    e->parameter = -1;
    return gcpi_stored_fits(j, e, at);
}

static int gcpi_metadata_read(gcpi_json *j)
{
    if (gcpi_json_word(j, "null")) return 1;
    if (!gcpi_json_take(j, '{', "'{'")) return 0;
    if (gcpi_json_peek(j) == '}') { j->at++; return 1; }
    do if (!gcpi_json_text(j) || !gcpi_json_take(j, ':', "':'") || !gcpi_json_text(j)) return 0;
    while (gcpi_json_more(j, '}'));
    return !j->s->failed;
}

static int gcpi_entries_read(gcpi_json *j, gcpi_header *h, int most)
{
    int metadata = 0;
    if (!gcpi_json_take(j, '{', "'{'")) return 0;
    if (gcpi_json_peek(j) == '}') { j->at++; return 1; }
    do {
        gcpi_json_peek(j);
        size_t at = j->at;
        const char *name = gcpi_json_text(j);
        if (!name || !gcpi_json_take(j, ':', "':'")) return 0;
        if (!strcmp(name, "__metadata__")) {
            if (metadata++ || !gcpi_metadata_read(j)) return gcpi_json_fail(j, "__metadata__ once");
            continue;
        }
        if (strlen(name) > GCPI_NAME_MOST || h->count == most) {
            j->at = at;
            return gcpi_json_fail(j, h->count == most ? "fewer tensors" : "a name of at most 1024 bytes");
        }
        h->entries[h->count].name = name;
        if (!gcpi_stored_read(j, &h->entries[h->count++])) return 0;
    } while (gcpi_json_more(j, '}'));
    return !j->s->failed;
}

/* ---- a header ---- */

static int gcpi_stored_order(const void *a, const void *b) /* of data; an empty one before what begins there */
{
    const gcpi_stored *x = (const gcpi_stored *)a, *y = (const gcpi_stored *)b;
    if (x->begin != y->begin) return x->begin < y->begin ? -1 : 1;
    return x->end < y->end ? -1 : x->end > y->end;
}
static int gcpi_stored_names(const void *a, const void *b)
{
    return strcmp((*(gcpi_stored *const *)a)->name, (*(gcpi_stored *const *)b)->name);
}
static int gcpi_stored_named(const void *name, const void *entry)
{
    return strcmp((const char *)name, (*(gcpi_stored *const *)entry)->name);
}

/* Puts the entries in order. 0: an error: they leave a gap, overlap, or have a name twice. */
static int gcpi_header_order(gcpi_disk_file *s, gcpi_header *h)
{
    uint64_t end = 0;
    qsort(h->entries, (size_t)h->count, sizeof *h->entries, gcpi_stored_order);
    for (int i = 0; i < h->count; end = h->entries[i++].end)
        if (h->entries[i].begin != end)
            return gcpi_wrong_at(s, 8, "%.100s: found data from byte %llu on, expected from %llu on, without a gap",
                                 h->entries[i].name, (unsigned long long)h->entries[i].begin, (unsigned long long)end);
    if (end != h->bytes)
        return gcpi_wrong_at(s, (int64_t)s->size, "found the end after %llu bytes of data, expected after %llu, "
                             "as the header says", (unsigned long long)h->bytes, (unsigned long long)end);
    for (int i = 0; i < h->count; i++) h->by_name[i] = &h->entries[i];
    qsort(h->by_name, (size_t)h->count, sizeof *h->by_name, gcpi_stored_names);
    for (int i = 1; i < h->count; i++)
        if (!strcmp(h->by_name[i - 1]->name, h->by_name[i]->name))
            return gcpi_wrong_at(s, 8, "%.100s: found twice", h->by_name[i]->name);
    return 1;
}

/* The entry of this name, or NULL. */
static gcpi_stored *gcpi_header_find(const gcpi_header *h, const char *name)
{
    if (!h->count) return NULL;
    gcpi_stored **found =
        (gcpi_stored **)bsearch(name, h->by_name, (size_t)h->count, sizeof *h->by_name, gcpi_stored_named);
    return found ? *found : NULL;
}

/* The header's length, from the file's first bytes. 0: an error. */
static size_t gcpi_header_length(gcpi_disk_file *s)
{
    unsigned char first[8];
    if (s->size < 8) return (size_t)gcpi_wrong_at(s, 0, "found %llu bytes, expected a safetensors file",
                                                  (unsigned long long)s->size);
    if (!gcpi_disk_read(s, first, 8)) return 0;
    uint64_t length = gcpi_u64_from(first);
    if (length >= 2 && length <= s->size - 8 && length <= GCPI_HEADER_MOST) return (size_t)length;
    const char *other = gcpi_other_format(first);
    if (other) gcpi_wrong(s, GCP_E_CONTENTS, "found %s, expected a safetensors file", other);
    else if (length > s->size - 8 && length <= GCPI_HEADER_MOST)
        gcpi_wrong_at(s, 0, "found %llu bytes of a header of %llu: the file was cut, or is no safetensors file",
                      (unsigned long long)(s->size - 8), (unsigned long long)length);
    else
        gcpi_wrong_at(s, 0, "found a header of %llu bytes, expected 2 to %llu: no safetensors file",
                      (unsigned long long)length,
                      (unsigned long long)GCPI_MIN(s->size - 8, (uint64_t)GCPI_HEADER_MOST));
    return 0;
}

/* The scratch that reading a header takes. braces: how many {; each entry has one, and so has the whole. */
static size_t gcpi_header_scratch(size_t length, size_t braces)
{
    const size_t most = GCPI_MIN(braces, (size_t)GCPI_ENTRIES_MOST);
    return length + (most + 1) * (sizeof(gcpi_stored) + sizeof(gcpi_stored *)) + 64;
}
/* The header's text, and room for its entries: how many, *most; NULL: an error. */
static char *gcpi_header_text(gcpi_disk_file *s, size_t length, gcpi_header *h, int *most)
{
    const size_t shortest = 51;                   /* bytes of an entry, and a comma */
    size_t braces = length / shortest + 2;
    const size_t bound = gcpi_header_scratch(length, braces);
    char *text = GCPI_SCRATCH(s->scratch, char, length + 1);
    if (!text) { gcpi_disk_no_room(s, bound, "reading its header"); return NULL; }
    if (!gcpi_disk_read(s, text, length)) return NULL;
    braces = 0;
    for (size_t i = 0; i < length; i++) braces += text[i] == '{';
    *most = (int)GCPI_MIN(GCPI_MIN(braces, length / shortest + 1), (size_t)GCPI_ENTRIES_MOST);
    h->entries = GCPI_SCRATCH(s->scratch, gcpi_stored, *most + 1);
    h->by_name = GCPI_SCRATCH(s->scratch, gcpi_stored *, *most);
    if (h->entries && h->by_name) return text;
    gcpi_disk_no_room(s, gcpi_header_scratch(length, (size_t)*most), "reading its header");
    return NULL;
}

/* Reads a header into scratch. */
static int gcpi_header_read(gcpi_disk_file *s, gcpi_header *h)
{
    const size_t length = gcpi_header_length(s);
    int most;
    memset(h, 0, sizeof *h);
    char *text = length ? gcpi_header_text(s, length, h, &most) : NULL;
    if (!text) return 0;
    gcpi_json j = { s, text, 0, length };
    if ((j.at = gcpi_utf8_end(text, length)) < length) return gcpi_json_fail(&j, "UTF-8");
    j.at = 0;
    if (!gcpi_entries_read(&j, h, most)) return 0;
    if (gcpi_json_peek(&j), j.at < length) return gcpi_json_fail(&j, "nothing but spaces after the header's '}'");
    h->data = 8 + length; h->bytes = s->size - h->data;
    return gcpi_header_order(s, h);
}

/* ==== src/io/layouts.h ==== */

/* Our layouts and theirs: axes of weights, flattened channels. A weight in the state is [o][h][w][i]; letters give the
   order of its axes in a file.

   PyTorch flattens an image channel by channel, gcp pixel by pixel: what is flattened, and all channels that go with it
   from op to op (those of a norm's gamma, the rows of a dense layer that is added to it, the columns of the next), has
   another order in PyTorch's files. Such channels are [h][w][i] here and "ihw" there; rows of a dense layer, [p][q][o]
   and "opq". */

/* ---- the order of channels ---- */

/* A set of tensors whose channels go together: same: another tensor of it, or itself. h, w: the image that they were
   flattened from, or will be; 0: none; -1: it cannot be told. */
typedef struct gcpi_flat { int same, h, w; } gcpi_flat;

static gcpi_flat *gcpi_flat_of(gcpi_flat *all, int x)
{
    while (all[x].same != x) x = all[x].same = all[all[x].same].same;
    return &all[x];
}
static int gcpi_flat_set(gcpi_flat *all, int x, int h, int w)
{
    gcpi_flat *o = gcpi_flat_of(all, x);
    if (o->h == h && o->w == w) return 0;
    if (o->h) h = w = -1;
    const int changed = o->h != h;
    o->h = h; o->w = w;
    return changed;
}
static void gcpi_flat_join(gcpi_flat *all, int x, int y)
{
    const gcpi_flat *from = gcpi_flat_of(all, y);
    const int h = from->h, w = from->w;
    all[from->same].same = gcpi_flat_of(all, x)->same;
    if (h) gcpi_flat_set(all, x, h, w);
}

static int gcpi_flat_channels(const gcp_tape *t, int x) { return t->tensors[x].shape.d[3]; }
static int gcpi_flat_pixels(const gcp_tape *t, int x) { return t->tensors[x].shape.d[1] * t->tensors[x].shape.d[2]; }
/* Whether `flat` holds each sample of `image` as one row. */
static int gcpi_row_of(const gcp_tape *t, int image, int flat)
{
    const int values = gcpi_flat_pixels(t, image) * gcpi_flat_channels(t, image);
    return gcpi_flat_pixels(t, flat) == 1 && gcpi_flat_channels(t, flat) == values;
}
static void gcpi_flat_reshape(const gcp_tape *t, gcpi_flat *all, int x, int y)
{
    const int flat = gcpi_row_of(t, x, y) ? y : x, image = flat == y ? x : y;
    if (gcpi_flat_channels(t, x) == gcpi_flat_channels(t, y)) gcpi_flat_join(all, x, y);
    else if (gcpi_row_of(t, image, flat) && gcpi_flat_channels(t, image) > 1)
        gcpi_flat_set(all, flat, t->tensors[image].shape.d[1], t->tensors[image].shape.d[2]);
}

/* The op's inputs, then its outputs. */
static int gcpi_flat_operand(const gcp_tape *t, const gcpi_op *op, int i)
{
    return i < op->inputs ? gcpi_edge(t, op, i) : op->out + i - op->inputs;
}
/* The first operand that has as many channels as operand i: perhaps itself. */
static int gcpi_flat_like(const gcp_tape *t, const gcpi_op *op, int i)
{
    const int channels = gcpi_flat_channels(t, gcpi_flat_operand(t, op, i));
    int like = 0;
    while (gcpi_flat_channels(t, gcpi_flat_operand(t, op, like)) != channels) like++;
    return like;
}
static void gcpi_flat_same(const gcp_tape *t, gcpi_flat *all, const gcpi_op *op)
{
    for (int i = 1; i < op->inputs + op->outputs; i++) {
        const int like = gcpi_flat_like(t, op, i);
        if (like < i) gcpi_flat_join(all, gcpi_flat_operand(t, op, like), gcpi_flat_operand(t, op, i));
    }
}
/* Ops that join channels in another way: what is known on one side says that the other cannot be told. */
static int gcpi_flat_mixes(const gcp_tape *t, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    const int x = gcpi_edge(t, op, 0), differ = gcpi_flat_channels(t, x) != gcpi_flat_channels(t, op->out);
    if (facts.view == GCPI_VIEW_WHOLE) return differ && !gcpi_row_of(t, x, op->out) && !gcpi_row_of(t, op->out, x);
    if (facts.view == GCPI_VIEW_PART) return differ;
    if (facts.custom && facts.channels == GCPI_CHANNELS_SAME)
        return gcpi_flat_like(t, op, op->inputs) == op->inputs && gcpi_count(t->tensors[op->out].shape) > 1;
    return facts.channels == GCPI_CHANNELS_UNKNOWN;
}
static void gcpi_flat_through(const gcp_tape *t, gcpi_flat *all, const gcpi_op *op)
{
    const gcpi_facts facts = gcpi_facts_of(op);
    if (facts.view == GCPI_VIEW_WHOLE) { gcpi_flat_reshape(t, all, gcpi_edge(t, op, 0), op->out); return; }
    switch (facts.channels) {
    case GCPI_CHANNELS_SAME: gcpi_flat_same(t, all, op); break;
    case GCPI_CHANNELS_LOOKED_UP: gcpi_flat_join(all, op->out, gcpi_edge(t, op, 1)); break;
    case GCPI_CHANNELS_WEIGHED: if (op->inputs > 2) gcpi_flat_join(all, op->out, gcpi_edge(t, op, 2)); break;
    default: break;
    }
}
/* 1: something became known not to be known. */
static int gcpi_flat_doubt(const gcp_tape *t, gcpi_flat *all, const gcpi_op *op)
{
    int known = 0, made = 0, changed = 0;
    for (int i = 0; i < op->inputs; i++) known |= gcpi_flat_of(all, gcpi_edge(t, op, i))->h;
    for (int k = 0; k < op->outputs; k++) made |= gcpi_flat_of(all, op->out + k)->h;
    for (int k = 0; known && k < op->outputs; k++) changed |= gcpi_flat_set(all, op->out + k, -1, -1);
    for (int i = 0; made && i < op->inputs; i++) changed |= gcpi_flat_set(all, gcpi_edge(t, op, i), -1, -1);
    return changed;
}

static size_t gcpi_flats_bytes(const gcp_tape *t) { return (size_t)t->tensor_count * sizeof(gcpi_flat) + 16; }
/* The order of all tensors' channels, in scratch. NULL: no room. */
static gcpi_flat *gcpi_flats(const gcp_tape *t, gcp_arena *a)
{
    gcpi_flat *all = GCPI_SCRATCH(a, gcpi_flat, t->tensor_count);
    int changed = all != NULL;
    for (int x = 0; all && x < t->tensor_count; x++) all[x].same = x;
    for (int i = 0; all && i < t->op_count; i++) gcpi_flat_through(t, all, &t->ops[i]);
    while (changed) {
        changed = 0;
        for (int i = 0; i < t->op_count; i++)
            if (gcpi_flat_mixes(t, &t->ops[i])) changed |= gcpi_flat_doubt(t, all, &t->ops[i]);
    }
    return all;
}

/* ---- the axes of a weight ---- */

static int gcpi_axes_parse(gcpi_word word, gcpi_axes *axes)
{
    size_t n = 0;
    memset(axes, 0, sizeof *axes);
    axes->given = 1;
    for (; n < word.length && n < 4 && word.at[n] != ':'; n++) {
        if (!strchr("ohwi", word.at[n]) || strchr(axes->letters, word.at[n])) return 0;
        axes->letters[n] = word.at[n];
    }
    if (n == word.length) return n > 0;
    char text[24], end;
    if (memchr(word.at + n, '+', word.length - n)) return 0;
    snprintf(text, sizeof text, "%.*s", (int)GCPI_MIN(word.length - n, sizeof text - 1), word.at + n);
    if (sscanf(text, ":%6dx%6d%c", &axes->h, &axes->w, &end) != 2 || axes->h < 1 || axes->w < 1) return 0;
    return n == 4 && (axes->letters[0] == 'o' || axes->letters[3] == 'o');
}
/* The layout that a style has for a weight of this many sizes. */
static void gcpi_axes_default(gcp_style style, int rank, gcpi_axes *axes)
{
    static const char *const letters[][5] = { { "i", "i", "oi", "owi", "ohwi" },
                                              { "i", "i", "oi", "owi", "oihw" },
                                              { "i", "i", "io", "owi", "hwio" } };
    memset(axes, 0, sizeof *axes);
    strcpy(axes->letters, letters[style][rank]);
}

/* What is known of the channels that a weight reads (out 0) or makes (1): of all ops whose weight it is. */
static gcpi_flat gcpi_weight_flat(const gcp_tape *t, gcpi_flat *all, int weight, int out)
{
    gcpi_flat found = { 0, 0, 0 };
    for (int o = 0, any = 0; o < t->op_count; o++) {
        const gcpi_op *op = &t->ops[o];
        const gcpi_facts facts = gcpi_facts_of(op);
        const int conv = facts.window != NULL;
        if (facts.channels != GCPI_CHANNELS_WEIGHED || gcpi_edge(t, op, 1) != weight) continue;
        const gcpi_flat *x = gcpi_flat_of(all, out ? op->out : gcpi_edge(t, op, 0));
        if ((any++ && (x->h != found.h || x->w != found.w)) || (conv && x->h)) { found.h = -1; return found; }
        found = *x;
    }
    return found;
}
/* The layout of a parameter in a file where no map says it. h -1: it cannot be told. */
static void gcpi_axes_of(const gcp_tape *t, int parameter, gcp_style style, gcpi_flat *order, gcpi_axes *axes)
{
    const int x = t->parameters[parameter].tensor, rank = t->parameters[parameter].shape.rank;
    gcpi_axes_default(style, rank, axes);
    if (!order || !x) return;
    gcpi_flat in = rank < 2 ? *gcpi_flat_of(order, x) : gcpi_weight_flat(t, order, x, 0),
               out = gcpi_weight_flat(t, order, x, 1);
    if (rank >= 2 && gcpi_flat_of(order, x)->h) in = *gcpi_flat_of(order, x);
    if (!in.h && !out.h) return;
    axes->h = in.h < 0 || out.h < 0 ? -1 : in.h;
    axes->w = in.w; axes->p = out.h; axes->q = out.w;
    if (axes->h >= 0)
        snprintf(axes->letters, sizeof axes->letters, "%s%s", rank < 2 ? "" : out.h ? "opq" : "o", in.h ? "ihw" : "i");
}

/* Sizes in our order, p, q, o, h, w, i, of images where some were flattened. 0: the layout is not for this weight. */
static const char gcpi_axes_letters[] = "pqohwi";
static int gcpi_axes_sizes(const gcpi_axes *axes, gcp_shape shape, size_t *sizes)
{
    sizes[0] = sizes[1] = 1;
    for (int i = 0; i < 4; i++) sizes[i + 2] = (size_t)shape.d[i];
    if (axes->h < 0) return 0;
    if (axes->h) {
        const size_t pixels = (size_t)axes->h * (size_t)axes->w;
        if (sizes[3] != 1 || sizes[4] != 1 || sizes[5] % pixels) return 0;
        sizes[3] = (size_t)axes->h; sizes[4] = (size_t)axes->w; sizes[5] /= pixels;
    }
    if (axes->p) {
        const size_t pixels = (size_t)axes->p * (size_t)axes->q;
        if (sizes[2] % pixels) return 0;
        sizes[0] = (size_t)axes->p; sizes[1] = (size_t)axes->q; sizes[2] /= pixels;
    }
    for (int i = 0; i < 6; i++) if (sizes[i] != 1 && !strchr(axes->letters, gcpi_axes_letters[i])) return 0;
    return 1;
}
/* The shape in the file, where a flattened image is one axis. Returns its rank; -1: not for this weight. */
static int gcpi_axes_shape(const gcpi_axes *axes, gcp_shape shape, uint64_t *out)
{
    size_t sizes[6];
    int rank = 0, last = -1;
    if (!gcpi_axes_sizes(axes, shape, sizes)) return -1;
    for (const char *letter = axes->letters; *letter; letter++) {
        const ptrdiff_t axis = strchr(gcpi_axes_letters, *letter) - gcpi_axes_letters;
        const int input = axis > 2;
        if ((input ? axes->h : axes->p) && input == last) out[rank - 1] *= sizes[axis];
        else out[rank++] = sizes[axis];
        last = input;
    }
    return rank;
}

/* ---- axes of one ----
   A file may have axes of size one that the layout lacks, or lack some of its own: a dense layer's weight may be that
   of a 1x1 convolution there. What was read from such a file is written with the same axes. */

static void gcpi_ones_keep(gcpi_parameter *x, gcp_style style, const uint64_t *sizes, int rank)
{
    unsigned ones = 0;
    for (int i = 0; i < rank; i++) ones |= (unsigned)(sizes[i] == 1) << i;
    x->file[style].known = 1;
    x->file[style].rank = (unsigned char)rank;
    x->file[style].ones = (unsigned char)ones;
}
/* Changes the shape in the file to one with the same axes of one as the file that was read. Returns its rank. */
static int gcpi_ones_restore(const gcpi_parameter *x, gcp_style style, uint64_t *sizes, int rank)
{
    uint64_t others[GCPI_RANK_MOST];
    const int ones = x->file[style].ones, file_rank = x->file[style].rank;
    int count = 0, wanted = 0, next = 0;
    if (!x->file[style].known) return rank;
    for (int i = 0; i < rank; i++) if (sizes[i] != 1) others[count++] = sizes[i];
    for (int i = 0; i < file_rank; i++) wanted += !(ones >> i & 1);
    if (count != wanted) return rank;
    for (int i = 0; i < file_rank; i++) sizes[i] = ones >> i & 1 ? 1 : others[next++];
    return file_rank;
}

/* ==== src/io/styles.h ==== */

/* Our names and theirs. A style's words, then the lines of .map. */

/* order: of each tensor's channels in PyTorch's files; NULL under another style */
typedef struct gcpi_naming { gcp_style style; const char *map; gcpi_flat *order; } gcpi_naming;

/* What a pattern's places stood for. texts are in the order of their stars. */
enum { GCPI_STARS = 4, GCPI_LETTERS = 26 };
typedef struct gcpi_captures {
    uint64_t number[GCPI_LETTERS]; unsigned known;       /* known: a bit for each letter */
    const char *text[GCPI_STARS]; size_t length[GCPI_STARS];
    int stars;
} gcpi_captures;

/* {a}, {a+1}, {a-12} at p: the letter's number and what is added. Returns the length, 0: that is none of them. */
static size_t gcpi_place_at(const char *p, size_t length, int *letter, int *add)
{
    if (length < 3 || p[0] != '{' || p[1] < 'a' || p[1] > 'z') return 0;
    *letter = p[1] - 'a';
    *add = 0;
    if (p[2] == '}') return 3;
    size_t n = 3;
    for (; n < length && n < 6 && p[n] >= '0' && p[n] <= '9'; n++) *add = 10 * *add + (p[n] - '0');
    if (n == 3 || !*add || n == length || p[n] != '}' || (p[2] != '+' && p[2] != '-')) return 0;
    if (p[2] == '-') *add = -*add;
    return n + 1;
}

/* Takes a number from *s, which must be the letter's, where that is known. */
static int gcpi_number_match(gcpi_captures *c, int letter, const char **s)
{
    uint64_t value = 0;
    const char *first = *s;
    for (; **s >= '0' && **s <= '9' && value < (uint64_t)1 << 32; ++*s) value = value * 10 + (uint64_t)(**s - '0');
    if (*s == first || (c->known >> letter & 1 && c->number[letter] != value)) return 0;
    c->number[letter] = value;
    c->known |= 1u << letter;
    return 1;
}

/* Whether all of s fits the pattern. A star takes the shortest text that lets the rest fit up to the next star. */
static int gcpi_match(gcpi_word pattern, const char *s, gcpi_captures *c)
{
    const char *p = pattern.at, *end = p + pattern.length, *after = NULL;
    gcpi_captures at_star;
    int letter, add;
    memset(c, 0, sizeof *c);
    at_star = *c;
    while (*s || p < end) {
        size_t place = gcpi_place_at(p, (size_t)(end - p), &letter, &add);
        if (p < end && *p == '*' && c->stars < GCPI_STARS) {
            c->text[c->stars] = s;
            c->length[c->stars++] = 0;
            after = ++p;
            at_star = *c;
        } else if (place && gcpi_number_match(c, letter, &s)) p += place;
        else if (!place && p < end && *s && *p == *s) { p++; s++; }
        else {
            size_t taken = after ? ++at_star.length[at_star.stars - 1] : 0;
            const char *from = after ? at_star.text[at_star.stars - 1] : NULL;
            if (!after || strlen(from) < taken) return 0;
            s = from + taken;
            p = after;
            *c = at_star;
        }
    }
    return 1;
}

/* Writes what the pattern becomes with these captures. 0: it does not fit in `most` bytes with its end. */
static int gcpi_fill(gcpi_word pattern, const gcpi_captures *c, char *out, size_t most)
{
    size_t n = 0;
    int letter, add, star = 0;
    for (size_t i = 0, place; i < pattern.length && n < most; i += place) {
        const char *p = pattern.at + i;
        int wrote = 1;
        place = gcpi_place_at(p, pattern.length - i, &letter, &add);
        if (place && add < 0 && c->number[letter] < (uint64_t)-add) { out[0] = 0; return 0; }
        if (place)
            wrote =
                snprintf(out + n, most - n, "%llu", (unsigned long long)(c->number[letter] + (uint64_t)(int64_t)add));
        else if (*p == '*' && star < c->stars) {
            wrote = snprintf(out + n, most - n, "%.*s", (int)c->length[star], c->text[star]);
            star++;
        } else out[n] = *p;
        if (!place) place = 1;
        n += wrote > 0 ? (size_t)wrote : 0;
    }
    if (n >= most) { out[0] = 0; return 0; }
    out[n] = 0;
    return 1;
}

/* ---- a name ---- */

static void gcpi_style_name(gcp_style style, const char *ours, char *out, size_t most)
{
    static const char *const words[][2] = { { "gamma", "weight" },          { "beta", "bias" },
                                            { "weight", "kernel" },         { "running_mean", "moving_mean" },
                                            { "running_var", "moving_variance" } };
    const char *slash = strrchr(ours, '/'), *last = slash ? slash + 1 : ours;
    const int from = style == GCP_STYLE_TORCH ? 0 : 2, to = style == GCP_STYLE_TORCH   ? 2
                                                            : style == GCP_STYLE_KERAS ? 5
                                                                                       : 0;
    for (int i = from; i < to; i++)
        if (!strcmp(last, words[i][0])) {
            snprintf(out, most, "%.*s%s", (int)(last - ours), ours, words[i][1]);
            return;
        }
    snprintf(out, most, "%s", ours);
}

/* The words of a line of .map, up to a comment. Returns how many. */
static int gcpi_map_words(const char **line, gcpi_word *words, int most)
{
    int count = 0;
    for (gcpi_word w; (w = gcpi_word_next(line)).length && *w.at != '#'; count++) if (count < most) words[count] = w;
    for (int i = count; i < most; i++) words[i].length = 0;
    return count;
}

/* Whether a line says that the file has no such tensor. */
static int gcpi_line_leaves(const char *line)
{
    gcpi_word words[2];
    gcpi_map_words(&line, words, 2);
    return words[1].length == 1 && *words[1].at == '-';
}
/* Whether a line's OURS fits a path: as the style calls its last part, or as gcp does. */
static int gcpi_line_fits(gcpi_word left, const char *styled, const char *path, gcpi_captures *c)
{
    if (left.length == 1 && *left.at == '-') return 0;
    return left.length && (gcpi_match(left, styled, c) || gcpi_match(left, path, c));
}

/* What a parameter is called in the file, and its layout there. 0: the name is too long. */
static int gcpi_theirs(const gcpi_naming *n, const gcp_tape *t, int parameter, char *out, gcpi_axes *axes)
{
    const char *ours = t->parameters[parameter].path;
    char name[GCPI_NAME_MOST + 1];
    gcpi_captures c;
    gcpi_axes_of(t, parameter, n->style, n->order, axes);
    gcpi_style_name(n->style, ours, name, sizeof name);
    const char *line = n->map ? n->map : "";
    do {
        gcpi_word words[3];
        gcpi_map_words(&line, words, 3);
        if (!gcpi_line_fits(words[0], name, ours, &c)) continue;
        if (words[2].length) gcpi_axes_parse(words[2], axes);
        return gcpi_fill(words[1], &c, out, GCPI_NAME_MOST + 1);
    } while (gcpi_line_next(&line));
    strcpy(out, name);
    return strlen(ours) < sizeof name - 8;
}

/* Whether a line of .map passes over a tensor of the file. */
static int gcpi_line_passes(const gcpi_naming *n, const char *theirs)
{
    gcpi_captures c;
    const char *line = n->map ? n->map : "";
    do {
        gcpi_word words[2];
        gcpi_map_words(&line, words, 2);
        if (words[0].length == 1 && *words[0].at == '-' && gcpi_match(words[1], theirs, &c)) return 1;
    } while (gcpi_line_next(&line));
    return 0;
}

/* Whether a tensor of the file that nothing took may be left there. */
static int gcpi_passed_over(const gcpi_naming *n, const char *theirs)
{
    static const char counts[] = "num_batches_tracked";
    const size_t length = strlen(theirs), end = sizeof counts - 1;
    const int counter = n->style == GCP_STYLE_TORCH && length >= end && !strcmp(theirs + length - end, counts);
    return counter || gcpi_line_passes(n, theirs);
}

/* The letters that a pattern has, and *stars. -1: a brace or a star too many. */
static int64_t gcpi_pattern_letters(gcpi_word pattern, int changed, int *stars)
{
    int64_t letters = 0;
    int letter, add;
    *stars = 0;
    for (size_t i = 0, place; i < pattern.length; i += place ? place : 1) {
        place = gcpi_place_at(pattern.at + i, pattern.length - i, &letter, &add);
        if (place && add && !changed) return -1;
        if (place) letters |= (int64_t)1 << letter;
        else if (strchr("{}", pattern.at[i])) return -1;
        *stars += pattern.at[i] == '*';
    }
    return *stars > GCPI_STARS ? -1 : letters;
}
/* What is wrong with a line of .map, or NULL. */
static const char *gcpi_line_wrong(const char *line)
{
    gcpi_word words[3];
    gcpi_axes axes;
    int left_stars, right_stars;
    const int count = gcpi_map_words(&line, words, 3);
    if (!count) return NULL;
    if (count < 2 || count > 3) return "expected \"OURS THEIRS [LAYOUT]\" or \"- THEIRS\"";
    const int passes = words[0].length == 1 && *words[0].at == '-';
    int64_t known = gcpi_pattern_letters(words[0], 0, &left_stars),
            used = gcpi_pattern_letters(words[1], 1, &right_stars);
    if (known < 0 || used < 0)
        return "a place is {a} to {z}, on the right also {a+1} or {a-2}, up to 999; at most 4 stars";
    if (used & ~known) return "a number on the right is not on the left";
    if (!passes && right_stars > left_stars) return "more stars on the right than on the left";
    if (words[2].length && !gcpi_axes_parse(words[2], &axes))
        return "a layout has letters of o, h, w, i, each once: oihw, io; oihw:7x7 with o first or last";
    return NULL;
}
/* Whether a path goes by the line, and by none before it; lines without one do. 0: none does: *taken is the number of a
   line before that takes what this one fits, or 0. */
static int gcpi_line_used(const gcp_tape *t, const gcpi_naming *n, const char *line, int *taken)
{
    char name[GCPI_NAME_MOST + 1];
    gcpi_captures c;
    gcpi_word word, earlier;
    const char *rest = line;
    *taken = 0;
    if (!gcpi_map_words(&rest, &word, 1) || (word.length == 1 && *word.at == '-')) return 1;
    for (int i = 0; i < t->parameter_count; i++) {
        int before = 0, number = 1;
        gcpi_style_name(n->style, t->parameters[i].path, name, sizeof name);
        if (!gcpi_line_fits(word, name, t->parameters[i].path, &c)) continue;
        for (const char *l = n->map; l < line && !before; gcpi_line_next(&l), number++) {
            gcpi_map_words(&l, &earlier, 1);
            before = gcpi_line_fits(earlier, name, t->parameters[i].path, &c) ? number : 0;
        }
        if (!before) return 1;
        *taken = before;
    }
    return 0;
}
static const char *gcpi_line_useless(const char *line, int taken, char *text, size_t size)
{
    gcpi_word ours = { NULL, 0 };
    gcpi_map_words(&line, &ours, 1);
    const int length = (int)GCPI_MIN(ours.length, 80u);
    if (taken) snprintf(text, size, "line %d has all tensors that '%.*s' fits", taken, length, ours.at);
    else snprintf(text, size, "'%.*s' fits no tensor of the network", length, ours.at);
    return text;
}
static int gcpi_flat_fail(gcpi_disk_file *s, const gcp_tape *t, int parameter)
{
    return gcpi_wrong(s, GCP_E_SHAPE, "%.100s: its order in PyTorch's file cannot be told, as a flattened image meets "
                      "other channels before it: give its layout in .map", t->parameters[parameter].path);
}

/* 0: a line of the map is wrong, or the style, which the tape's error says. */
static int gcpi_naming_check(gcp_tape *t, const gcpi_naming *n, gcp_at at, const char *call)
{
    if ((int)n->style < 0 || n->style > GCP_STYLE_KERAS) {
        gcpi_fail(t, GCP_E_ARGUMENT, at, call, "unknown .style");
        return 0;
    }
    for (int used = 0; used < 2; used++) {        /* first how lines are written, then whether they fit anything */
        int number = 1, taken;
        const char *line = n->map ? n->map : "";
        do {
            char text[160];
            const char *wrong = used ? NULL : gcpi_line_wrong(line);
            if (used && !gcpi_line_used(t, n, line, &taken)) wrong = gcpi_line_useless(line, taken, text, sizeof text);
            if (!wrong && gcpi_line_leaves(line) && strcmp(call, "gcp_load")) wrong = "\"OURS -\" is for gcp_load";
            if (wrong) { gcpi_fail(t, GCP_E_ARGUMENT, at, call, "line %d of .map: %s", number, wrong); return 0; }
            number++;
        } while (gcpi_line_next(&line));
    }
    return 1;
}
/* The same, and the order of channels, in scratch, where the style has one of its own. */
static int gcpi_naming_begin(gcpi_disk_file *s, gcpi_naming *n)
{
    if (!gcpi_naming_check(s->tape, n, s->at, s->call)) return 0;
    if (n->style != GCP_STYLE_TORCH) return 1;
    n->order = gcpi_flats(s->tape, s->scratch);
    return n->order || gcpi_disk_no_room(s, gcpi_flats_bytes(s->tape), "the order of channels");
}

/* ==== src/io/elements.h ==== */

/* Elements on their way between the state and a file. */

static void gcpi_u64_to(uint64_t v, unsigned char *b, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) b[i] = (unsigned char)(v >> 8 * i);
}
/* IEEE binary16: exact in float, also where it is below the normal numbers. */
static float gcpi_half_from(unsigned bits)
{
    const uint32_t sign = (bits & 0x8000u) << 16, exponent = bits >> 10 & 31, rest = bits & 0x3ff;
    if (exponent == 31) return gcpi_float_of(sign | 0x7f800000u | rest << 13);
    if (exponent) return gcpi_float_of(sign | (exponent + 112) << 23 | rest << 13);
    float small = (float)rest * gcpi_float_of(0x33800000u);       /* 2^-24 */
    return sign ? -small : small;
}
/* The type of a gcp_real in files: with it, bits stay as they are. */
static int gcpi_real_dtype(void) { return sizeof(gcp_real) == 4 ? GCPI_FILE_F32 : GCPI_FILE_F64; }

static gcp_real gcpi_real_from(int dtype, const unsigned char *b)
{
    uint64_t bits = dtype == GCPI_FILE_F64 ? gcpi_u64_from(b) : (uint64_t)b[0] | (uint64_t)b[1] << 8;
    if (dtype == GCPI_FILE_F16) return (gcp_real)gcpi_half_from((unsigned)bits);
    if (dtype == GCPI_FILE_BF16) return (gcp_real)gcpi_float_of((uint32_t)bits << 16);
    if (dtype == GCPI_FILE_F32) {
        bits |= (uint64_t)b[2] << 16 | (uint64_t)b[3] << 24;
        if (sizeof(gcp_real) != 4) return (gcp_real)gcpi_float_of((uint32_t)bits);
    }
    if (dtype == GCPI_FILE_F64 && sizeof(gcp_real) == 4) {
        double x;
        memcpy(&x, &bits, sizeof x);
        return (gcp_real)x;
    }
    gcp_real x;
    uint32_t low = (uint32_t)bits;
    if (sizeof x == 4) memcpy(&x, &low, 4);
    else memcpy(&x, &bits, GCPI_MIN(sizeof x, sizeof bits));
    return x;
}
static void gcpi_real_to(gcp_real x, unsigned char *b)
{
    uint64_t bits = 0;
    uint32_t low;
    if (sizeof x == 4) { memcpy(&low, &x, 4); bits = low; } else memcpy(&bits, &x, GCPI_MIN(sizeof x, sizeof bits));
    gcpi_u64_to(bits, b, sizeof x);
}

/* Where in the state a weight's elements lie, in the order of the file. */
typedef struct gcpi_axes_walk { size_t size[6], step[6], at[6], index, count; int rank, plain; } gcpi_axes_walk;

static gcpi_axes_walk gcpi_axes_walk_of(const gcpi_axes *axes, gcp_shape shape)
{
    gcpi_axes_walk w;
    size_t sizes[6], steps[6], last = SIZE_MAX;
    memset(&w, 0, sizeof w);
    gcpi_axes_sizes(axes, shape, sizes);
    steps[5] = 1;
    for (int i = 5; i > 0; i--) steps[i - 1] = steps[i] * sizes[i];
    w.count = gcpi_count(shape);
    w.plain = 1;
    for (const char *letter = axes->letters; *letter; letter++) {
        ptrdiff_t axis = strchr(gcpi_axes_letters, *letter) - gcpi_axes_letters;
        w.size[w.rank] = sizes[axis];
        w.step[w.rank++] = steps[axis];
        if (sizes[axis] == 1) continue;
        w.plain &= steps[axis] < last;
        last = steps[axis];
    }
    return w;
}
static void gcpi_axes_walk_on(gcpi_axes_walk *w)
{
    for (int d = w->rank - 1; d >= 0; d--) {
        w->index += w->step[d];
        if (++w->at[d] < w->size[d]) return;
        w->index -= w->step[d] * w->size[d];
        w->at[d] = 0;
    }
}

/* Memory of a tensor in the state: on a device, or the CPU's (home NULL). */
typedef struct gcpi_place { const gcp_target *home; unsigned char *at; } gcpi_place;

static void gcpi_place_copy(const gcpi_place *p, void *to, const void *from, size_t size)
{
    if (p->home) gcpi_bytes_copy(p->home, to, from, size);
    else memcpy(to, from, size);
}
/* Memory that the CPU can address for the elements of a place in any order: the place, or scratch. NULL: no room. */
static gcp_real *gcpi_place_open(const gcpi_place *p, gcp_arena *a, size_t count)
{
    if (!p->home || !p->home->device) return (gcp_real *)(void *)p->at;
    return GCPI_SCRATCH(a, gcp_real, count);
}
static int gcpi_place_none(gcpi_disk_file *s, size_t count)
{
    const size_t before = (size_t)(s->scratch->scratch - s->taken);
    return gcpi_disk_no_room(s, before + count * sizeof(gcp_real) + 32, "a weight of another layout");
}

enum { GCPI_SOME = 1024 };               /* elements on the stack */

/* Reads count elements of this type, in the order of the state or of the walk. */
static int gcpi_tensor_read(gcpi_disk_file *s, int dtype, gcpi_axes_walk w, const gcpi_place *p)
{
    gcp_arena *a = s->scratch;
    unsigned char bytes[GCPI_SOME * 8];
    gcp_real some[GCPI_SOME];
    const ptrdiff_t scratch = a->scratch;
    const size_t size = gcpi_dtype_size(dtype);
    gcp_real *all = w.plain ? NULL : gcpi_place_open(p, a, w.count);
    if (!w.plain && !all) return gcpi_place_none(s, w.count);
    for (size_t first = 0, n; first < w.count; first += n) {
        n = GCPI_MIN(w.count - first, (size_t)GCPI_SOME);
        if (!gcpi_disk_read(s, bytes, n * size)) break;
        for (size_t i = 0; i < n; i++) some[i] = gcpi_real_from(dtype, bytes + i * size);
        if (w.plain) gcpi_place_copy(p, p->at + first * sizeof *some, some, n * sizeof *some);
        else for (size_t i = 0; i < n; i++, gcpi_axes_walk_on(&w)) memcpy(&all[w.index], &some[i], sizeof *some);
    }
    if (all && (unsigned char *)all != p->at && !s->failed) gcpi_place_copy(p, p->at, all, w.count * sizeof *all);
    a->scratch = scratch;
    return !s->failed;
}

/* Writes the elements of a place, as gcp_reals. */
static int gcpi_tensor_write(gcpi_disk_file *s, gcpi_axes_walk w, const gcpi_place *p)
{
    gcp_arena *a = s->scratch;
    unsigned char bytes[GCPI_SOME * sizeof(gcp_real)];
    gcp_real some[GCPI_SOME];
    const ptrdiff_t scratch = a->scratch;
    gcp_real *all = w.plain ? NULL : gcpi_place_open(p, a, w.count);
    if (!w.plain && !all) return gcpi_place_none(s, w.count);
    if (all && (unsigned char *)all != p->at) gcpi_place_copy(p, all, p->at, w.count * sizeof *all);
    for (size_t first = 0, n; first < w.count; first += n) {
        n = GCPI_MIN(w.count - first, (size_t)GCPI_SOME);
        if (w.plain) gcpi_place_copy(p, some, p->at + first * sizeof *some, n * sizeof *some);
        else for (size_t i = 0; i < n; i++, gcpi_axes_walk_on(&w)) memcpy(&some[i], &all[w.index], sizeof *some);
        for (size_t i = 0; i < n; i++) gcpi_real_to(some[i], bytes + i * sizeof *some);
        if (!gcpi_disk_write(s, bytes, n * sizeof *some)) break;
    }
    a->scratch = scratch;
    return !s->failed;
}

/* ==== src/io/pieces.h ==== */

/* What a saved file consists of, piece by piece. Its header and its data are the same walk over the pieces. */

/* What a run file has beside the values. */
#define GCPI_RUN_HEAD "gcp.run"
#define GCPI_RUN_UPDATES "gcp.updates/"
#define GCPI_RUN_SLOT "gcp.slot"                  /* and its number, and '/' */
#define GCPI_RUN_EXTRA "gcp.extra"
#define GCPI_RUN_SUM "gcp.checksum"
enum { GCPI_RUN_FORMAT = 1, GCPI_RUN_HEAD_WORDS = 5 };    /* format, seed, steps, updates, optimiser */

enum { GCPI_PIECE_HEAD, GCPI_PIECE_UPDATES, GCPI_PIECE_VALUE, GCPI_PIECE_SLOT_0, GCPI_PIECE_SLOT_1, GCPI_PIECE_EXTRA,
       GCPI_PIECE_SUM, GCPI_PIECE_END };
typedef struct gcpi_piece {
    int kind, parameter;                 /* parameter: -1 before the first of its kind */
    char name[GCPI_NAME_MOST + 32];
    int dtype, rank; uint64_t shape[GCPI_RANK_MOST];
    gcpi_axes axes;
} gcpi_piece;

/* run: a run file, else weights alone; most: as if every parameter had all slots, for an upper bound. */
typedef struct gcpi_saving {
    const gcp_tape *t; gcpi_disk_file *s;
    gcpi_naming naming;
    int run, most;
    const unsigned char *extra; size_t extra_bytes;
} gcpi_saving;

/* Goes to the next place for a piece, which may hold none. */
static void gcpi_piece_step(const gcpi_saving *v, gcpi_piece *p)
{
    const int each = p->kind >= GCPI_PIECE_UPDATES && p->kind <= GCPI_PIECE_SLOT_1;
    if (each && p->parameter + 1 < v->t->parameter_count) { p->parameter++; return; }
    p->kind++;
    p->parameter = p->kind >= GCPI_PIECE_UPDATES && p->kind <= GCPI_PIECE_SLOT_1 ? 0 : -1;
}
static int gcpi_piece_here(const gcpi_saving *v, const gcpi_piece *p)
{
    const gcp_tape *t = v->t;
    if (p->kind == GCPI_PIECE_VALUE) return p->parameter < t->parameter_count;
    if (!v->run) return 0;
    if (p->kind == GCPI_PIECE_EXTRA) return v->extra_bytes > 0;
    if (p->parameter < 0) return 1;
    if (p->parameter >= t->parameter_count || !(v->most || t->parameters[p->parameter].slot)) return 0;
    return v->most || p->kind == GCPI_PIECE_UPDATES || p->kind - GCPI_PIECE_SLOT_0 < t->slots;
}
static void gcpi_piece_shape(gcpi_piece *p, int dtype, int rank, uint64_t size)
{
    p->dtype = dtype; p->rank = rank; p->shape[0] = size;
}
/* Fills the rest of a piece that is there. 0: its name does not fit, or its layout. */
static int gcpi_piece_fill(const gcpi_saving *v, gcpi_piece *p)
{
    const gcpi_parameter *x = p->parameter >= 0 ? &v->t->parameters[p->parameter] : NULL;
    const int slot = p->kind - GCPI_PIECE_SLOT_0;
    static const gcpi_naming ours = { GCP_STYLE_GCP, NULL, NULL };
    switch (p->kind) {
    case GCPI_PIECE_HEAD:
        gcpi_piece_shape(p, GCPI_FILE_U64, 1, GCPI_RUN_HEAD_WORDS);
        strcpy(p->name, GCPI_RUN_HEAD);
        return 1;
    case GCPI_PIECE_EXTRA:
        gcpi_piece_shape(p, GCPI_FILE_U8, 1, v->extra_bytes);
        strcpy(p->name, GCPI_RUN_EXTRA);
        return 1;
    case GCPI_PIECE_SUM: gcpi_piece_shape(p, GCPI_FILE_U64, 0, 0); strcpy(p->name, GCPI_RUN_SUM); return 1;
    case GCPI_PIECE_UPDATES:
        gcpi_piece_shape(p, GCPI_FILE_U64, 0, 0);
        snprintf(p->name, sizeof p->name, GCPI_RUN_UPDATES "%.1024s", x->path);
        return strlen(x->path) <= GCPI_NAME_MOST - 16;
    }
    if (!gcpi_theirs(p->kind == GCPI_PIECE_VALUE ? &v->naming : &ours, v->t, p->parameter, p->name, &p->axes)) return 0;
    if (p->kind != GCPI_PIECE_VALUE) snprintf(p->name, sizeof p->name, GCPI_RUN_SLOT "%d/%.1024s", slot, x->path);
    p->dtype = gcpi_real_dtype();
    if ((p->rank = gcpi_axes_shape(&p->axes, x->shape, p->shape)) < 0) return 0;
    if (!v->run && !p->axes.given) p->rank = gcpi_ones_restore(x, v->naming.style, p->shape, p->rank);
    return 1;
}
/* The next piece of what is saved. 0: there is none, or an error. */
static int gcpi_piece_next(const gcpi_saving *v, gcpi_piece *p)
{
    do gcpi_piece_step(v, p); while (p->kind < GCPI_PIECE_END && !gcpi_piece_here(v, p));
    if (p->kind == GCPI_PIECE_END) return 0;
    if (gcpi_piece_fill(v, p) && gcpi_utf8_end(p->name, strlen(p->name)) == strlen(p->name) &&
        strcmp(p->name, "__metadata__"))
        return 1;
    if (p->parameter >= 0 && p->axes.h < 0) return gcpi_flat_fail(v->s, v->t, p->parameter);
    return gcpi_wrong(v->s, GCP_E_ARGUMENT,
                      "%.100s: its name in the file cannot be '%.100s', or the layout %s is not for it",
                      v->t->parameters[p->parameter].path, p->name, p->axes.letters);
}
static gcpi_piece gcpi_piece_first(void)
{
    gcpi_piece p;
    memset(&p, 0, sizeof p);
    p.kind = GCPI_PIECE_HEAD - 1; p.parameter = -1;
    return p;
}

static uint64_t gcpi_piece_bytes(const gcpi_piece *p)
{
    uint64_t bytes = gcpi_dtype_size(p->dtype);
    for (int i = 0; i < p->rank; i++) bytes *= p->shape[i];
    return bytes;
}

/* ---- the header, written ---- */

static void gcpi_say_quoted(gcp_writer w, const char *text)
{
    gcpi_say(w, "\"");
    for (const char *c = text; *c; c++) {
        if (*c == '"' || *c == '\\') gcpi_say(w, "\\%c", *c);
        else if ((unsigned char)*c < 0x20) gcpi_say(w, "\\u%04x", (unsigned)*c);
        else w.write(w.context, c, 1);
    }
    gcpi_say(w, "\"");
}
static void gcpi_header_say(const gcpi_saving *v, gcp_writer w)
{
    gcpi_piece p = gcpi_piece_first();
    uint64_t at = 0;
    gcpi_say(w, "{");
    for (int n = 0; gcpi_piece_next(v, &p); n++) {
        if (n) gcpi_say(w, ",");
        gcpi_say_quoted(w, p.name);
        gcpi_say(w, ":{\"dtype\":\"%s\",\"shape\":[", gcpi_dtype_name(p.dtype));
        for (int i = 0; i < p.rank; i++) gcpi_say(w, "%s%llu", i ? "," : "", (unsigned long long)p.shape[i]);
        gcpi_say(w, "],\"data_offsets\":[%llu,%llu]}", (unsigned long long)at,
                 (unsigned long long)(at + gcpi_piece_bytes(&p)));
        at += gcpi_piece_bytes(&p);
    }
    gcpi_say(w, "}");
}

/* A header's length, and how many { are in it. */
typedef struct gcpi_header_size { size_t length, braces; } gcpi_header_size;
static void gcpi_write_count(void *context, const char *text, size_t size)
{
    gcpi_header_size *n = (gcpi_header_size *)context;
    n->length += size;
    for (size_t i = 0; i < size; i++) n->braces += text[i] == '{';
}
static gcpi_header_size gcpi_header_measure(const gcpi_saving *v)
{
    gcpi_header_size size = { 0, 0 };
    gcp_writer count;
    count.write = gcpi_write_count; count.context = &size;
    gcpi_header_say(v, count);
    size.length += (size_t)(-size.length & 7);    /* with spaces */
    return size;
}
static void gcpi_write_disk(void *context, const char *text, size_t size)
{
    gcpi_disk_write((gcpi_disk_file *)context, text, size);
}
/* Its length, itself, and spaces. */
static int gcpi_header_write(const gcpi_saving *v, size_t length)
{
    static const char spaces[] = "       ";
    gcp_writer out;
    unsigned char first[8];
    out.write = gcpi_write_disk; out.context = v->s;
    gcpi_u64_to(length, first, 8);
    gcpi_disk_write(v->s, first, 8);
    gcpi_header_say(v, out);
    return gcpi_disk_write(v->s, spaces, (size_t)(8 + length - v->s->offset));
}

static int gcpi_hash_order(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return x < y ? -1 : x > y;
}
/* 0: two pieces would have one name, or an error. */
static int gcpi_names_differ(const gcpi_saving *v)
{
    gcp_arena *a = v->s->scratch;
    const ptrdiff_t most = 4 * (ptrdiff_t)v->t->parameter_count + 3;
    const ptrdiff_t scratch = a->scratch;
    uint64_t *hashes = GCPI_SCRATCH(a, uint64_t, most);
    gcpi_piece p = gcpi_piece_first();
    uint64_t twice = 0;
    int count = 0;
    if (!hashes) return gcpi_disk_no_room(v->s, (size_t)most * sizeof *hashes + 16, "comparing its names");
    while (gcpi_piece_next(v, &p)) hashes[count++] = gcpi_hash(p.name);
    qsort(hashes, (size_t)count, sizeof *hashes, gcpi_hash_order);
    for (int i = 1; i < count; i++) twice = hashes[i] == hashes[i - 1] ? hashes[i] : twice;
    a->scratch = scratch;
    p = gcpi_piece_first();
    while (twice && gcpi_piece_next(v, &p))
        if (gcpi_hash(p.name) == twice) {
            gcpi_wrong(v->s, GCP_E_NAME, "two tensors would have the same name in it: %.100s", p.name);
            break;
        }
    return !v->s->failed;
}

/* 0: a header that nothing reads, or a run that this arena could not take up again, and an error. */
static int gcpi_header_fits(const gcpi_saving *v, gcpi_header_size size)
{
    const size_t scratch = gcpi_header_scratch(size.length, size.braces);
    if (v->s->failed) return 0;
    if (size.length > GCPI_HEADER_MOST)
        return gcpi_wrong(v->s, GCP_E_CAPACITY, "its header would have %zu bytes, and %d are allowed", size.length,
                          GCPI_HEADER_MOST);
    return !v->run || scratch <= gcpi_disk_room(v->s) || gcpi_disk_no_room(v->s, scratch, "resuming from it");
}

/* The data of a piece. */
static int gcpi_piece_write(const gcpi_saving *v, const gcpi_piece *p)
{
    const gcp_tape *t = v->t;
    gcpi_place place = { &t->home, NULL };
    unsigned char words[8 * GCPI_RUN_HEAD_WORDS];
    if (p->kind == GCPI_PIECE_EXTRA) return gcpi_disk_write(v->s, v->extra, v->extra_bytes);
    if (p->kind == GCPI_PIECE_VALUE || p->kind == GCPI_PIECE_SLOT_0 || p->kind == GCPI_PIECE_SLOT_1) {
        const int slot = p->kind != GCPI_PIECE_VALUE;
        place.at = slot ? gcpi_slot_at(t, p->parameter, p->kind - GCPI_PIECE_SLOT_0) : gcpi_value_at(t, p->parameter);
        if (slot && t->far_slots) place.home = NULL;
        return gcpi_tensor_write(v->s, gcpi_axes_walk_of(&p->axes, t->parameters[p->parameter].shape), &place);
    }
    gcpi_counters c = gcpi_counters_read(t);
    uint64_t head[GCPI_RUN_HEAD_WORDS] = { GCPI_RUN_FORMAT, t->seed, c.steps, c.updates, (uint64_t)t->optimizer };
    size_t count = p->kind == GCPI_PIECE_HEAD ? GCPI_RUN_HEAD_WORDS : 1;
    if (p->kind == GCPI_PIECE_UPDATES) gcpi_bytes_copy(&t->home, head, gcpi_count_at(t, p->parameter), 8);
    if (p->kind == GCPI_PIECE_SUM) head[0] = gcpi_checksum_end(v->s->sum);
    for (size_t i = 0; i < count; i++) gcpi_u64_to(head[i], words + 8 * i, 8);
    return gcpi_disk_write(v->s, words, 8 * count);
}

/* Saves all pieces under the path of v->s. */
static gcp_code gcpi_save(const gcpi_saving *v)
{
    char part[GCPI_PATH];
    const gcpi_header_size size = gcpi_header_measure(v);
    if (!gcpi_header_fits(v, size) || !gcpi_names_differ(v) || !gcpi_disk_create(v->s, part))
        return gcp_error_code(v->t);
    gcpi_piece p = gcpi_piece_first();
    int good = gcpi_header_write(v, size.length);
    while (good && gcpi_piece_next(v, &p)) good = gcpi_piece_write(v, &p);
    gcpi_disk_settle(v->s, part);
    return gcp_error_code(v->t);
}

/* ==== src/io/weights.h ==== */

/* gcp_save and gcp_load: parameters and running statistics. */

/* What all begin with: the tape's errors and scratch. arena: its user's, or NULL. 0: an error. */
static int gcpi_file_begins(gcpi_disk_file *s, gcp_tape *t, gcp_arena *arena)
{
    if (!t || t->code) return 0;
    s->tape = t;
    s->scratch = arena ? arena : t->arena;
    s->taken = s->scratch->scratch;
    if (t->state) return 1;
    gcpi_fail(t, GCP_E_STATE, s->at, s->call, "the state has no memory yet: call gcp_bind (or gcp_state_bind) first");
    return 0;
}

GCPI_DEF size_t gcp_files_arena(const gcp_tape *t)
{
    char text[GCP_MAX_ERROR];
    const gcp_at nowhere = { "", 0 };
    gcpi_disk_file s = gcpi_disk_of(NULL, NULL, nowhere, "gcp_files_arena");
    const gcpi_saving v = { t, &s, { GCP_STYLE_GCP, NULL, NULL }, 1, 1, NULL, PTRDIFF_MAX };
    s.text = text;
    if (!t || !t->ops) return 0;
    const gcpi_header_size size = gcpi_header_measure(&v);
    return gcpi_header_scratch(size.length, size.braces) + gcpi_flats_bytes(t);
}

GCPI_DEF gcp_code gcp_save_at(gcp_tape *t, const char *path, gcp_weights_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_save");
    gcpi_saving v = { t, &s, { o.style, o.map, NULL }, 0, 0, NULL, 0 };
    if (!gcpi_file_begins(&s, t, o.arena)) return gcp_error_code(t);
    if (gcpi_naming_begin(&s, &v.naming)) gcpi_save(&v);
    s.scratch->scratch = s.taken;
    return gcp_error_code(t);
}

/* A shape as text: 16x3x3x3. */
static const char *gcpi_sizes_text(const uint64_t *sizes, int rank, char *text, size_t size)
{
    size_t n = 0;
    snprintf(text, size, rank ? "" : "scalar");
    for (int i = 0; i < rank && n < size; i++)
        n += (size_t)snprintf(text + n, size - n, "%s%llu", i ? "x" : "", (unsigned long long)sizes[i]);
    return text;
}
/* The same sizes, but for those of one. */
static int gcpi_sizes_agree(const uint64_t *a, int a_rank, const uint64_t *b, int b_rank)
{
    int i = 0, k = 0;
    for (;;) {
        while (i < a_rank && a[i] == 1) i++;
        while (k < b_rank && b[k] == 1) k++;
        if (i == a_rank || k == b_rank) return i == a_rank && k == b_rank;
        if (a[i++] != b[k++]) return 0;
    }
}

/* Gives an entry to parameter i, whose axes in the file are these. 0: an error: its type or shape is wrong, or it is
   taken. */
static int gcpi_stored_take(gcpi_disk_file *s, gcp_tape *t, gcpi_stored *e, int i, const gcpi_axes *axes)
{
    const gcpi_parameter *x = &t->parameters[i];
    uint64_t sizes[GCPI_RANK_MOST];
    char found[200], expected[100];
    const int rank = gcpi_axes_shape(axes, x->shape, sizes), dtype = e->dtype;
    if (e->parameter >= 0)
        return gcpi_wrong(s, GCP_E_NAME, "%.100s is asked for twice: for %.100s and %.100s", e->name,
                          t->parameters[e->parameter].path, x->path);
    if (dtype != GCPI_FILE_F32 && dtype != GCPI_FILE_F64 && dtype != GCPI_FILE_F16 && dtype != GCPI_FILE_BF16)
        return gcpi_wrong(s, GCP_E_DTYPE, "%.100s: found %s, expected F32, F64, F16 or BF16", e->name,
                          gcpi_dtype_name(dtype));
    if (axes->h < 0) return gcpi_flat_fail(s, t, i);
    if (rank < 0)
        return gcpi_wrong(s, GCP_E_SHAPE, "%.100s (%s): the layout %s is not for it", x->path,
                          gcpi_shape_text(x->shape, expected, sizeof expected), axes->letters);
    if (!gcpi_sizes_agree(e->shape, e->rank, sizes, rank))
        return gcpi_wrong(s, GCP_E_SHAPE, "%.100s: found %s, expected %s for %.100s (.style says whose layout it "
                          "is, or .map; .partial with \"- %.60s\" in .map leaves it there)", e->name,
                          gcpi_sizes_text(e->shape, e->rank, found, sizeof found),
                          gcpi_sizes_text(sizes, rank, expected, sizeof expected), x->path, e->name);
    e->parameter = i;
    e->axes = *axes;
    return 1;
}

/* Whether nothing asked for an entry that may not be left in the file. */
static int gcpi_stored_left(const gcpi_header *h, const gcpi_naming *n, const gcpi_stored *e)
{
    const int run = gcpi_header_find(h, GCPI_RUN_HEAD) != NULL;
    return e->parameter < 0 && !(run && !strncmp(e->name, "gcp.", 4)) && !gcpi_passed_over(n, e->name);
}
/* The style that the file's names look like, if the user gave none. */
static const char *gcpi_style_hint(const gcpi_header *h, const gcpi_naming *n)
{
    const char *name = h->count ? h->by_name[0]->name : "";
    if (n->style != GCP_STYLE_GCP || strchr(name, '[')) return "";
    return strchr(name, '/') ? "; .style = GCP_STYLE_KERAS?" : strchr(name, '.') ? "; .style = GCP_STYLE_TORCH?" : "";
}
/* The error of so many tensors that the file does not have, of which i is the first. */
static int gcpi_load_missing(gcpi_disk_file *s, gcp_tape *t, const gcpi_header *h, const gcpi_naming *n, int i,
                             int missing)
{
    char name[GCPI_NAME_MOST + 1], others[64] = "";
    gcpi_axes axes;
    int left = 0;
    gcpi_theirs(n, t, i, name, &axes);
    for (int k = 0; k < h->count; k++) left += gcpi_stored_left(h, n, h->by_name[k]);
    if (missing > 1) snprintf(others, sizeof others, missing > 2 ? ", nor %d others" : ", nor %d other", missing - 1);
    return gcpi_wrong(s, GCP_E_NAME, "found no %.100s, expected it for %.100s%s%s; %d of the file's %d are left (the "
                      "first in it is %.60s; .style and .map say what others call it, \"OURS -\" there leaves it as it "
                      "is, as .partial does; .report lists all)", name, t->parameters[i].path, others,
                      gcpi_style_hint(h, n), left, h->count, h->count ? h->by_name[0]->name : "none");
}
/* Finds each tensor's entry. Returns how many have one; -1: an error. */
static int gcpi_load_match(gcpi_disk_file *s, gcp_tape *t, const gcpi_header *h, const gcpi_naming *n, int partial)
{
    char name[GCPI_NAME_MOST + 1];
    gcpi_axes axes;
    int count = 0, missing = 0, first = 0;
    for (int i = 0; i < t->parameter_count; i++) {
        gcpi_stored *e = gcpi_theirs(n, t, i, name, &axes) ? gcpi_header_find(h, name) : NULL;
        const int passed = e && gcpi_line_passes(n, name);
        if ((partial && (!e || passed)) || !strcmp(name, "-")) continue;
        if (passed)
            gcpi_wrong(s, GCP_E_NAME, "a line of .map passes over %.100s, expected it for %.100s (.partial leaves that "
                       "as it is)", name, t->parameters[i].path);
        if (!e && !missing++) first = i;
        if (!e) continue;
        if (passed || !gcpi_stored_take(s, t, e, i, &axes)) return -1;
        count++;
    }
    return missing ? (gcpi_load_missing(s, t, h, n, first, missing), -1) : count;
}
/* 0: an entry that nothing asked for. */
static int gcpi_load_left(gcpi_disk_file *s, const gcpi_header *h, const gcpi_naming *n)
{
    const gcpi_stored *first = NULL;
    int left = 0;
    for (int i = 0; i < h->count; i++)
        if (gcpi_stored_left(h, n, &h->entries[i]) && !left++) first = &h->entries[i];
    if (!left) return 1;
    char others[64] = "";
    if (left > 1) snprintf(others, sizeof others, " and %d others", left - 1);
    return gcpi_wrong(s, GCP_E_NAME, "found %.100s%s, which the network does not have (.map with \"- %.100s\" passes "
                      "over it; .report lists all)", first->name, others, first->name);
}
/* What goes where, and what is left, as lines of a map. */
static void gcpi_load_report(gcp_tape *t, const gcpi_header *h, const gcpi_naming *n, gcp_writer out)
{
    char name[GCPI_NAME_MOST + 1], sizes[200];
    gcpi_axes axes;
    if (!out.write) return;
    for (int i = 0; i < t->parameter_count; i++) {
        const gcpi_stored *e = gcpi_theirs(n, t, i, name, &axes) ? gcpi_header_find(h, name) : NULL;
        const int passed = e && gcpi_line_passes(n, name);
        gcpi_say(out, "%s %s  # %s%s\n", t->parameters[i].path, name,
                 e                    ? gcpi_sizes_text(e->shape, e->rank, sizes, sizeof sizes)
                 : strcmp(name, "-")  ? "not in the file"
                                      : "stays as it is",
                 passed ? ", passed over" : "");
    }
    for (int i = 0; i < h->count; i++) {
        const gcpi_stored *e = h->by_name[i];
        int taken = gcpi_passed_over(n, e->name);
        for (int k = 0; k < t->parameter_count && !taken; k++)
            taken = gcpi_theirs(n, t, k, name, &axes) && !strcmp(name, e->name);
        if (!taken) gcpi_say(out, "- %s  # %s, nothing takes it\n", e->name,
                               gcpi_sizes_text(e->shape, e->rank, sizes, sizeof sizes));
    }
}

/* Reads an entry to where it was given, or passes over it. */
static int gcpi_load_entry(gcpi_disk_file *s, gcp_tape *t, const gcpi_stored *e)
{
    if (e->parameter < 0) return gcpi_disk_skip(s, e->end - e->begin);
    unsigned char *slot = e->slot ? gcpi_slot_at(t, e->parameter, e->slot - 1) : NULL;
    gcpi_place place = { slot && t->far_slots ? NULL : &t->home, slot ? slot : gcpi_value_at(t, e->parameter) };
    return gcpi_tensor_read(s, e->dtype, gcpi_axes_walk_of(&e->axes, t->parameters[e->parameter].shape), &place);
}

GCPI_DEF int gcp_load_at(gcp_tape *t, const char *path, gcp_weights_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_load");
    gcpi_naming naming = { o.style, o.map, NULL };
    gcpi_header h;
    memset(&h, 0, sizeof h);
    if (!gcpi_file_begins(&s, t, o.arena) || gcpi_halfway(t, o.at, s.call)) return 0;
    const int begun = gcpi_naming_begin(&s, &naming) && gcpi_disk_open(&s) && gcpi_header_read(&s, &h);
    if (begun) gcpi_load_report(t, &h, &naming, o.report);
    int count = begun ? gcpi_load_match(&s, t, &h, &naming, o.partial) : -1;
    if (!count) gcpi_wrong(&s, GCP_E_NAME, "found no tensor that the network has");
    if (count > 0 && !o.partial && !gcpi_load_left(&s, &h, &naming)) count = 0;
    for (int i = 0; i < h.count && count > 0; i++) {
        const gcpi_stored *e = &h.entries[i];
        if (!gcpi_load_entry(&s, t, e)) count = 0;
        else if (e->parameter >= 0) gcpi_ones_keep(&t->parameters[e->parameter], o.style, e->shape, e->rank);
    }
    gcpi_disk_close(&s);
    return GCPI_MAX(count, 0);
}

/* ==== src/io/run.h ==== */

/* gcp_save_run and gcp_resume_run. A run file is read twice: the first time its checksum is compared and its entries
   with the tape, the second time they go where they belong. */

/* .extra and .extra_bytes go together. */
static int gcpi_run_extra_ok(gcpi_disk_file *s, const gcp_run_opts *o)
{
    if (!o->extra != !o->extra_bytes)
        gcpi_fail(s->tape, GCP_E_ARGUMENT, s->at, s->call, "%s", o->extra ? ".extra without .extra_bytes"
                                                                          : ".extra_bytes without .extra");
    else if (o->extra_bytes > PTRDIFF_MAX)
        gcpi_fail(s->tape, GCP_E_ARGUMENT, s->at, s->call, ".extra_bytes = %zu: no object is as large",
                  o->extra_bytes);
    return !s->tape->code;
}
/* What a run file calls its own parts must not be a parameter's name. */
static int gcpi_run_names_ok(gcpi_disk_file *s)
{
    for (int i = 0; i < s->tape->parameter_count; i++)
        if (!strncmp(s->tape->parameters[i].path, "gcp.", 4))
            return gcpi_wrong(s, GCP_E_NAME, "%.100s: names that begin with 'gcp.' are a run file's own",
                              s->tape->parameters[i].path);
    return 1;
}

GCPI_DEF gcp_code gcp_save_run_at(gcp_tape *t, const char *path, gcp_run_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_save_run");
    const unsigned char *extra = (const unsigned char *)o.extra;
    const gcpi_saving v = { t, &s, { GCP_STYLE_GCP, NULL, NULL }, 1, 0, extra, o.extra_bytes };
    if (!gcpi_file_begins(&s, t, o.arena) || gcpi_halfway(t, o.at, s.call)) return gcp_error_code(t);
    return gcpi_run_extra_ok(&s, &o) && gcpi_run_names_ok(&s) ? gcpi_save(&v) : t->code;
}

/* What a run file has besides tensors. */
typedef struct gcpi_resuming {
    gcp_tape *t; gcpi_disk_file *s;
    gcpi_header h;
    const gcpi_stored *head, *extra, *sum;
    uint64_t words[GCPI_RUN_HEAD_WORDS];
} gcpi_resuming;

static const gcpi_stored *gcpi_resume_entry(gcpi_resuming *r, const char *name, int dtype, uint64_t bytes)
{
    gcpi_stored *e = gcpi_header_find(&r->h, name);
    if (!e || e->dtype != dtype || e->end - e->begin != bytes) return NULL;
    return e;
}

/* Reads to the end for the checksum; takes the head on the way. 0: an error. */
static int gcpi_resume_check(gcpi_resuming *r)
{
    gcpi_disk_file *s = r->s;
    unsigned char bytes[8 * GCPI_RUN_HEAD_WORDS];
    r->head = gcpi_resume_entry(r, GCPI_RUN_HEAD, GCPI_FILE_U64, sizeof bytes);
    r->sum = gcpi_resume_entry(r, GCPI_RUN_SUM, GCPI_FILE_U64, 8);
    r->extra = gcpi_header_find(&r->h, GCPI_RUN_EXTRA);
    if (!r->head || !r->sum || r->head->begin || r->sum->end != r->h.bytes)
        return gcpi_wrong(s, GCP_E_CONTENTS, "is not a run file of gcp_save_run (gcp_load reads weights alone)");
    if (!gcpi_disk_read(s, bytes, sizeof bytes)) return 0;
    for (int i = 0; i < GCPI_RUN_HEAD_WORDS; i++) r->words[i] = gcpi_u64_from(bytes + 8 * i);
    if (!gcpi_disk_skip(s, r->h.bytes - sizeof bytes - 8)) return 0;
    uint64_t sum = gcpi_checksum_end(s->sum);
    if (!gcpi_disk_read(s, bytes, 8)) return 0;
    if (gcpi_u64_from(bytes) != sum)
        return gcpi_wrong_at(s, (int64_t)s->size - 8, "found the checksum %016llx, expected %016llx: the file is "
                             "damaged", (unsigned long long)gcpi_u64_from(bytes), (unsigned long long)sum);
    if (r->words[0] != GCPI_RUN_FORMAT)
        return gcpi_wrong(s, GCP_E_CONTENTS, "found version %llu of the format, expected %d",
                          (unsigned long long)r->words[0], GCPI_RUN_FORMAT);
    return 1;
}

/* Gives parameter i its value, or a slot of its own. 0: the file has another network's, or none. */
static int gcpi_resume_take(gcpi_resuming *r, int i, int slot)
{
    const gcpi_parameter *x = &r->t->parameters[i];
    char name[GCPI_NAME_MOST + 32];
    gcpi_axes axes;
    if (slot) snprintf(name, sizeof name, GCPI_RUN_SLOT "%d/%.1024s", slot - 1, x->path);
    else snprintf(name, sizeof name, "%.1024s", x->path);
    gcpi_stored *e = gcpi_header_find(&r->h, name);
    if (!e && slot) return 1;                     /* not trained before: its slots stay zero */
    if (!e)
        return gcpi_wrong(r->s, GCP_E_PARAMETERS, "another network: it has no %.100s", name);
    if (e->dtype != gcpi_real_dtype())
        return gcpi_wrong(r->s, GCP_E_DTYPE, "%.100s: found %s, expected %s: gcp_real was another type", name,
                          gcpi_dtype_name(e->dtype), gcpi_dtype_name(gcpi_real_dtype()));
    gcpi_axes_default(GCP_STYLE_GCP, x->shape.rank, &axes);
    e->slot = slot;
    return gcpi_stored_take(r->s, r->t, e, i, &axes);
}
/* Whether the file's slots have a place: 0: an error. */
static int gcpi_resume_optimizer(gcpi_resuming *r)
{
    const gcp_tape *t = r->t;
    static const char *const names[] = { "none", "SGD", "Adam", "AdamW" };
    const uint64_t optimizer = r->words[4];
    if (!optimizer || optimizer == (uint64_t)t->optimizer) return 1;
    if (!t->optimizer)
        return gcpi_wrong(r->s, GCP_E_STATE,
                          "has slots of %s: bind a plan with it first (gcp_load reads weights alone)",
                          optimizer < 4 ? names[optimizer] : "another optimiser");
    return gcpi_wrong(r->s, GCP_E_STATE, "was trained with %s, and the slots bound are %s's",
                      optimizer < 4 ? names[optimizer] : "another optimiser", names[(int)t->optimizer & 3]);
}
/* Entries that nothing took: of another network, or slots of what no plan bound trains. */
static int gcpi_resume_left(gcpi_resuming *r)
{
    for (int i = 0; i < r->h.count; i++) {
        const gcpi_stored *e = &r->h.entries[i];
        if (e->parameter >= 0 || e == r->head || e == r->sum || e == r->extra) continue;
        if (!strncmp(e->name, GCPI_RUN_UPDATES, sizeof GCPI_RUN_UPDATES - 1)) continue;
        if (!strncmp(e->name, GCPI_RUN_SLOT, sizeof GCPI_RUN_SLOT - 1))
            return gcpi_wrong(r->s, GCP_E_STATE, "has %.100s: bind the plan that trains it first", e->name);
        return gcpi_wrong(r->s, GCP_E_PARAMETERS, "another network: it has %.100s", e->name);
    }
    return 1;
}

/* Compares the file with the tape. 0: an error, the first difference. */
static int gcpi_resume_match(gcpi_resuming *r, const gcp_run_opts *o)
{
    gcp_tape *t = r->t;
    const uint64_t extra = r->extra ? r->extra->end - r->extra->begin : 0;
    for (int i = 0; i < t->parameter_count; i++) if (!gcpi_resume_take(r, i, 0)) return 0;
    if (!gcpi_resume_optimizer(r)) return 0;
    for (int i = 0; i < t->parameter_count; i++)
        for (int k = 1; k <= t->slots && t->parameters[i].slot; k++) if (!gcpi_resume_take(r, i, k)) return 0;
    if (!gcpi_resume_left(r)) return 0;
    if (extra == o->extra_bytes) return 1;
    return gcpi_wrong(r->s, GCP_E_ARGUMENT, "found %llu bytes of .extra, expected %llu", (unsigned long long)extra,
                      (unsigned long long)o->extra_bytes);
}

/* The parameter whose updates an entry counts; -1: none, or it has no slots. */
static int gcpi_resume_counted(const gcp_tape *t, const gcpi_stored *e)
{
    const size_t prefix = sizeof GCPI_RUN_UPDATES - 1;
    if (strncmp(e->name, GCPI_RUN_UPDATES, prefix) || e->dtype != GCPI_FILE_U64 || e->end - e->begin != 8) return -1;
    for (int i = 0; i < t->parameter_count; i++)
        if (t->parameters[i].slot && !strcmp(t->parameters[i].path, e->name + prefix)) return i;
    return -1;
}
/* What the file has no slots for begins anew. */
static void gcpi_resume_clear(gcpi_resuming *r)
{
    gcp_tape *t = r->t;
    for (int i = 0; i < t->parameter_count; i++) {
        const size_t bytes = gcpi_parameter_bytes(t, i);
        if (!t->parameters[i].slot) continue;
        gcpi_bytes_fill(&t->home, gcpi_count_at(t, i), 0, sizeof(uint64_t));
        for (int k = 0; k < t->slots; k++) {
            if (t->far_slots) memset(gcpi_slot_at(t, i, k), 0, bytes);
            else gcpi_bytes_fill(&t->home, gcpi_slot_at(t, i, k), 0, bytes);
        }
    }
}
/* The second reading: everything to its place. */
static int gcpi_resume_apply(gcpi_resuming *r, const gcp_run_opts *o)
{
    gcp_tape *t = r->t;
    gcpi_disk_file *s = r->s;
    unsigned char word[8];
    uint64_t count;
    if (!gcpi_disk_again(s) || !gcpi_disk_skip(s, r->h.data)) return 0;
    gcpi_resume_clear(r);
    for (int i = 0; i < r->h.count; i++) {
        const gcpi_stored *e = &r->h.entries[i];
        const int counted = gcpi_resume_counted(t, e);
        if (counted >= 0) {
            if (!gcpi_disk_read(s, word, 8)) return 0;
            count = gcpi_u64_from(word);
            gcpi_bytes_copy(&t->home, gcpi_count_at(t, counted), &count, sizeof count);
        } else if (e == r->extra && o->extra) {
            if (!gcpi_disk_read(s, o->extra, o->extra_bytes)) return 0;
        } else if (!gcpi_load_entry(s, t, e)) return 0;
    }
    gcpi_counters c = { r->words[2], r->words[3] };
    gcpi_bytes_copy(&t->home, t->state, &c, sizeof c);
    t->seed = r->words[1];
    t->summing = 0;
    return 1;
}

GCPI_DEF int gcp_resume_run_at(gcp_tape *t, const char *path, gcp_run_opts o)
{
    gcpi_disk_file s = gcpi_disk_of(o.files, path, o.at, "gcp_resume_run");
    gcpi_resuming r;
    memset(&r, 0, sizeof r);
    r.t = t; r.s = &s;
    if (!gcpi_file_begins(&s, t, o.arena) || gcpi_halfway(t, o.at, s.call) || !gcpi_run_extra_ok(&s, &o) ||
        !gcpi_disk_path(&s))
        return 0;
    if (s.files->absent(s.files->context, s.path)) return 0;
    int good = gcpi_disk_open(&s) && gcpi_header_read(&s, &r.h) && gcpi_resume_check(&r) &&
               gcpi_resume_match(&r, &o) && gcpi_resume_apply(&r, &o);
    gcpi_disk_close(&s);
    return good;
}

/* ==== src/io/images.h ==== */

/* Labelled images from files: IDX, CIFAR-10, folders of PGM and PPM. A header is believed only where the file's size
   agrees with it, before anything is taken from the arena. */

enum { GCPI_SIDE_MOST = 4096, GCPI_CIFAR_SIDE = 32, GCPI_CIFAR_RECORD = 1 + 3 * 32 * 32 };

/* What the readers share. arena NULL: they only look. */
typedef struct gcpi_image_reader {
    gcp_dataset d;
    gcp_arena *arena;
    gcpi_disk_file s;                       /* its errors go to d.error */
    gcp_dataset_opts o;
    ptrdiff_t used, scratch;             /* of the arena at first */
} gcpi_image_reader;

static void gcpi_reader_begin(gcpi_image_reader *m, gcp_arena *arena, const gcp_dataset_opts *o)
{
    memset(&m->d, 0, sizeof m->d);
    m->arena = arena; m->o = *o;
    m->used = arena ? arena->used : 0; m->scratch = arena ? arena->scratch : 0;
    m->d.classes = o->classes ? o->classes : 10;
    m->d.brightest = o->brightest ? o->brightest : 255;
}
/* The next file. */
static void gcpi_reader_file(gcpi_image_reader *m, const char *path, const char *call)
{
    m->s = gcpi_disk_of(m->o.files, path, m->o.at, call);
    m->s.text = m->d.error;
}
static gcp_dataset gcpi_reader_end(gcpi_image_reader *m)
{
    gcpi_disk_close(&m->s);
    if (m->arena) m->arena->scratch = m->scratch;
    if (!m->d.error[0]) return m->d;
    if (m->arena) m->arena->used = m->used;
    m->d.images = NULL; m->d.labels = NULL; m->d.names = NULL; m->d.count = 0;
    return m->d;
}

/* Takes the memory for d.count images; d.bytes is set. 0: no room, or an error. */
static int gcpi_reader_take(gcpi_image_reader *m)
{
    gcp_dataset *d = &m->d;
    const ptrdiff_t image = (ptrdiff_t)d->height * d->width * d->channels;
    const ptrdiff_t bytes = gcpi_product(image, d->count), labels = gcpi_product((ptrdiff_t)sizeof(int32_t), d->count);
    if (bytes < 0 || labels < 0 || bytes > PTRDIFF_MAX - labels - 256)
        return gcpi_wrong(&m->s, GCP_E_NOMEM, "more images than this machine can address");
    d->bytes = (size_t)bytes + (size_t)labels + 128;
    if (!m->arena) return 1;
    d->labels = (int32_t *)gcp_arena_push(m->arena, (ptrdiff_t)sizeof(int32_t), 64, d->count);
    d->images = d->labels ? (unsigned char *)gcp_arena_push(m->arena, bytes, 64, 1) : NULL;
    return d->images ? 1 : gcpi_wrong(&m->s, GCP_E_NOMEM, "the arena has no room for %llu bytes",
                                      (unsigned long long)d->bytes);
}

/* ---- IDX: big-endian words: 0x0800 + dimensions, then one size a dimension, then bytes ---- */

static uint32_t gcpi_idx_word(const unsigned char *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}
/* What a first word is, for people who mixed up their arguments. */
static const char *gcpi_idx_kind(uint32_t magic)
{
    return magic == 0x803          ? "IDX images"
           : magic == 0x801        ? "IDX labels"
           : magic >> 16 == 0x1f8b ? "a gzip file: unpack it first"
                                   : "no IDX file of bytes";
}
/* Opens an IDX file and reads its sizes, which must fill the file. */
static int gcpi_idx_open(gcpi_image_reader *m, const char *path, int dimensions, uint32_t *size)
{
    gcpi_disk_file *s = &m->s;
    static const char *const what[] = { "a count of", "a height of", "a width of" };
    unsigned char head[16];
    const uint32_t expected = 0x800u + (uint32_t)dimensions;
    uint64_t all = 4 + 4 * (uint64_t)dimensions, body = 1;
    gcpi_reader_file(m, path, "gcp_dataset_idx");
    if (!gcpi_disk_open(s)) return 0;
    size_t have = (size_t)GCPI_MIN(s->size, all);
    if (!gcpi_disk_read(s, head, have)) return 0;
    const uint32_t magic = have < 4 ? expected : gcpi_idx_word(head);
    if (magic != expected)
        return gcpi_wrong_at(s, 0, "found 0x%08x (%s), expected 0x%08x (%s)", (unsigned)magic,
                             gcpi_idx_kind(magic), (unsigned)expected, gcpi_idx_kind(expected));
    if (have < all)
        return gcpi_wrong_at(s, 0, "found %llu bytes, expected a header of %llu (%s)", (unsigned long long)have,
                             (unsigned long long)all, gcpi_idx_kind(expected));
    for (int i = 0; i < dimensions; i++) {
        const uint32_t most = i ? GCPI_SIDE_MOST : INT32_MAX;
        size[i] = gcpi_idx_word(head + 4 + 4 * i);
        if (size[i] < 1 || size[i] > most)
            return gcpi_wrong_at(s, 4 + 4 * i, "found %s %lu, expected 1 to %lu", what[i],
                                 (unsigned long)size[i], (unsigned long)most);
        body *= size[i];
    }
    all += body;
    if (s->size == all) return 1;
    return gcpi_wrong_at(s, (int64_t)GCPI_MIN(s->size, all), "found %s of %llu bytes, expected %llu as its header "
                         "says", s->size < all ? "the end of a truncated file" : "more data in a file",
                         (unsigned long long)s->size, (unsigned long long)all);
}

/* Reads a byte for each label. */
static int gcpi_labels_read(gcpi_image_reader *m)
{
    unsigned char some[1024];
    const int64_t at = (int64_t)m->s.offset;
    for (int first = 0, n; first < m->d.count; first += n) {
        n = GCPI_MIN(m->d.count - first, (int)sizeof some);
        if (!gcpi_disk_read(&m->s, some, (size_t)n)) return 0;
        for (int i = 0; i < n; i++) {
            if (some[i] >= m->d.classes)
                return gcpi_wrong_at(&m->s, at + first + i, "found label %d, expected 0 to %d", some[i],
                                     m->d.classes - 1);
            m->d.labels[first + i] = some[i];
        }
    }
    return 1;
}
static int gcpi_idx_read(gcpi_image_reader *m, const char *images, const char *labels)
{
    uint32_t size[3] = { 0, 0, 0 }, count = 0;
    gcp_dataset *d = &m->d;
    if (!gcpi_idx_open(m, images, 3, size)) return 0;
    d->count = (int)size[0]; d->height = (int)size[1]; d->width = (int)size[2]; d->channels = 1;
    if (!gcpi_reader_take(m)) return 0;
    if (d->images && !gcpi_disk_read(&m->s, d->images, (size_t)d->count * size[1] * size[2])) return 0;
    gcpi_disk_close(&m->s);
    if (!gcpi_idx_open(m, labels, 1, &count)) return 0;
    if (count != size[0])
        return gcpi_wrong_at(&m->s, 4, "found %lu labels, expected %lu as %s has images", (unsigned long)count,
                             (unsigned long)size[0], images);
    return !d->labels || gcpi_labels_read(m);
}
GCPI_DEF gcp_dataset gcp_dataset_idx_at(gcp_arena *arena, const char *images, const char *labels, gcp_dataset_opts o)
{
    gcpi_image_reader m;
    gcpi_reader_begin(&m, arena, &o);
    gcpi_idx_read(&m, images, labels);
    return gcpi_reader_end(&m);
}

/* ---- CIFAR-10: records of a label and three planes, red, green, blue ---- */

static int gcpi_cifar_record(gcpi_image_reader *m, int at)
{
    enum { PLANE = GCPI_CIFAR_SIDE * GCPI_CIFAR_SIDE };
    unsigned char record[GCPI_CIFAR_RECORD], *to = m->d.images + (size_t)at * 3 * PLANE;
    const int64_t offset = (int64_t)m->s.offset;
    if (!gcpi_disk_read(&m->s, record, sizeof record)) return 0;
    if (record[0] >= m->d.classes)
        return gcpi_wrong_at(&m->s, offset, "found label %d, expected 0 to %d", record[0], m->d.classes - 1);
    m->d.labels[at] = record[0];
    for (int p = 0; p < PLANE; p++)
        for (int c = 0; c < 3; c++) to[3 * p + c] = record[1 + c * PLANE + p];
    return 1;
}
/* Opens a file and says how many records it has; 0: an error. */
static int gcpi_cifar_open(gcpi_image_reader *m, const char *path, int *records)
{
    gcpi_disk_file *s = &m->s;
    gcpi_reader_file(m, path, "gcp_dataset_cifar10");
    if (!gcpi_disk_open(s)) return 0;
    const uint64_t odd = s->size % GCPI_CIFAR_RECORD, count = s->size / GCPI_CIFAR_RECORD;
    if (!s->size)
        return gcpi_wrong_at(s, 0, "found no data, expected records of %d bytes", GCPI_CIFAR_RECORD);
    if (odd)
        return gcpi_wrong_at(s, (int64_t)(s->size - odd), "found %llu bytes, expected a whole record of %d: "
                             "truncated, or not a CIFAR-10 file", (unsigned long long)odd, GCPI_CIFAR_RECORD);
    if (count > (uint64_t)(INT32_MAX - *records))
        return gcpi_wrong_at(s, 0, "found %llu records, expected %d at most in all files",
                             (unsigned long long)count, INT32_MAX);
    *records += (int)count;
    return 1;
}
static int gcpi_cifar_read(gcpi_image_reader *m, const char *const *paths, int files)
{
    gcp_dataset *d = &m->d;
    d->height = d->width = GCPI_CIFAR_SIDE; d->channels = 3;
    for (int i = 0; i < files; i++) {
        if (!gcpi_cifar_open(m, paths[i], &d->count)) return 0;
        gcpi_disk_close(&m->s);
    }
    if (files < 1) {
        gcpi_reader_file(m, "no file", "gcp_dataset_cifar10");
        return gcpi_wrong(&m->s, GCP_E_ARGUMENT, "expected one or more");
    }
    if (!gcpi_reader_take(m) || !d->images) return 1;
    for (int i = 0, at = 0, end = 0; i < files; i++) {
        if (!gcpi_cifar_open(m, paths[i], &end)) return 0;
        if (end > d->count) return gcpi_wrong(&m->s, GCP_E_CONTENTS, "grew while it was read");
        while (at < end) if (!gcpi_cifar_record(m, at++)) return 0;
        gcpi_disk_close(&m->s);
    }
    return 1;
}
GCPI_DEF gcp_dataset gcp_dataset_cifar10_at(gcp_arena *arena, const char *const *paths, int count, gcp_dataset_opts o)
{
    gcpi_image_reader m;
    gcpi_reader_begin(&m, arena, &o);
    gcpi_cifar_read(&m, paths, paths ? count : 0);
    return gcpi_reader_end(&m);
}

/* ---- PGM and PPM: "P5" or "P6", width, height, brightest, one space, bytes; # begins a comment ---- */

static int gcpi_pnm_byte(gcpi_disk_file *s)          /* -1: the end */
{
    unsigned char c;
    if (s->offset >= s->size) return -1;
    return gcpi_disk_read(s, &c, 1) ? c : -1;
}
/* The next number of the header, and the space after it. 0: there is none from 1 to most. */
static int gcpi_pnm_number(gcpi_disk_file *s, const char *what, int most)
{
    int c, value = 0, digits = 0;
    do {
        c = gcpi_pnm_byte(s);
        if (c == '#') while (c >= 0 && c != '\n') c = gcpi_pnm_byte(s);
    } while (c == ' ' || (c >= '\t' && c <= '\r'));
    const int64_t at = (int64_t)s->offset - 1;
    for (; c >= '0' && c <= '9' && value <= most; c = gcpi_pnm_byte(s), digits++) value = value * 10 + c - '0';
    const int space = c == ' ' || (c >= '\t' && c <= '\r');
    if (digits && space && value >= 1 && value <= most) return value;
    return gcpi_wrong_at(s, GCPI_MAX(at, 0), "expected %s from 1 to %d and a space", what, most);
}
/* Opens an image and reads its header. */
static int gcpi_pnm_open(gcpi_image_reader *m, const char *path, int *height, int *width, int *channels)
{
    gcpi_disk_file *s = &m->s;
    gcpi_reader_file(m, path, "gcp_dataset_folder");
    if (!gcpi_disk_open(s)) return 0;
    const int p = gcpi_pnm_byte(s), kind = gcpi_pnm_byte(s);
    if (p != 'P' || (kind != '5' && kind != '6'))
        return gcpi_wrong_at(s, 0, "expected P5 or P6: a binary PGM or PPM file");
    *channels = kind == '5' ? 1 : 3;
    if ((*width = gcpi_pnm_number(s, "a width", GCPI_SIDE_MOST)) == 0) return 0;
    if ((*height = gcpi_pnm_number(s, "a height", GCPI_SIDE_MOST)) == 0) return 0;
    if ((m->d.brightest = gcpi_pnm_number(s, "the brightest value", 255)) == 0) return 0;
    const uint64_t body = (uint64_t)*width * (uint64_t)*height * (uint64_t)*channels;
    if (s->size - s->offset == body) return 1;
    return gcpi_wrong_at(s, (int64_t)s->offset, "found %llu bytes, expected %llu for one image",
                         (unsigned long long)(s->size - s->offset), (unsigned long long)body);
}

/* ---- a folder: its names are counted while they are listed, then kept in scratch, folder by folder ---- */

static int gcpi_is_image(const char *name)
{
    const char *dot = strrchr(name, '.');
    char end[4];
    if (!dot || strlen(dot) != 4) return 0;
    for (int i = 0; i < 4; i++) end[i] = dot[1 + i] >= 'A' && dot[1 + i] <= 'Z' ? (char)(dot[1 + i] + 32) : dot[1 + i];
    return !strcmp(end, "ppm") || !strcmp(end, "pgm") || !strcmp(end, "pnm");
}
/* 0: an error: the path is too long. */
static int gcpi_path_join(gcpi_disk_file *s, char *path, const char *folder, const char *name)
{
    const size_t first = strlen(folder), rest = strlen(name);
    if (first + rest + 2 > GCPI_PATH) return gcpi_wrong(s, GCP_E_ARGUMENT, "%.100s: the path is too long", name);
    memcpy(path, folder, first);
    path[first] = '/';
    memcpy(path + first + 1, name, rest + 1);
    return 1;
}

/* What is in a folder. inside: it is a class's; look: opens the first image. names: scratch for all names, at most. */
typedef struct gcpi_tally {
    gcpi_image_reader *m;
    const char *folder;
    int inside, look, images, folders, deeper;     /* deeper: images of the folders */
    size_t names;
} gcpi_tally;

static int gcpi_tally_of(gcpi_tally *t, gcpi_image_reader *m, const char *folder, int inside, int look);
static void gcpi_tally_name(void *arg, const char *name)
{
    gcpi_tally *t = (gcpi_tally *)arg, in;
    char path[GCPI_PATH];
    gcp_dataset *d = &t->m->d;
    if (name[0] == '.' || t->m->s.failed || !gcpi_path_join(&t->m->s, path, t->folder, name)) return;
    t->names += strlen(name) + 64;
    if (gcpi_is_image(name)) {
        if (t->images++ || !t->look || d->height) return;
        gcpi_pnm_open(t->m, path, &d->height, &d->width, &d->channels);
        gcpi_disk_close(&t->m->s);
    } else if (!t->inside) {
        const int is = gcpi_tally_of(&in, t->m, path, 1, t->look > 1);
        if (!is) {
            gcpi_reader_file(t->m, path, "gcp_dataset_folder");
            gcpi_wrong(&t->m->s, GCP_E_FILE, "cannot be opened");
        }
        if (is <= 0) return;
        t->folders++;
        t->deeper += GCPI_MIN(in.images, INT32_MAX - t->deeper);
        t->names += in.names;
    }
}
/* look: 1: this folder's images; 2: those of the folders in it. 0: it does not open; -1: it is no folder. */
static int gcpi_tally_of(gcpi_tally *t, gcpi_image_reader *m, const char *folder, int inside, int look)
{
    const gcp_files *f = m->s.files;
    memset(t, 0, sizeof *t);
    t->m = m; t->folder = folder; t->inside = inside; t->look = look;
    return f->list(f->context, folder, gcpi_tally_name, t);
}

/* Names of a folder, in order. images: those of images; else the others. */
typedef struct gcpi_listing { gcp_arena *arena; char **names; int count, capacity, images, full; } gcpi_listing;

static void gcpi_listing_add(void *arg, const char *name)
{
    gcpi_listing *l = (gcpi_listing *)arg;
    const size_t size = strlen(name) + 1;
    if (name[0] == '.' || l->images != gcpi_is_image(name) || l->count == l->capacity) return;
    char *copy = GCPI_SCRATCH(l->arena, char, size);
    if (copy) memcpy(l->names[l->count++] = copy, name, size);
    l->full |= !copy;
}
static int gcpi_name_order(const void *a, const void *b) { return strcmp(*(char *const *)a, *(char *const *)b); }

static int gcpi_listing_of(gcpi_image_reader *m, const char *folder, int images, int capacity, gcpi_listing *l)
{
    const gcp_files *f = m->s.files;
    memset(l, 0, sizeof *l);
    l->arena = m->arena; l->images = images; l->capacity = capacity;
    l->names = GCPI_SCRATCH(m->arena, char *, capacity + 1);
    if (!l->names || f->list(f->context, folder, gcpi_listing_add, l) <= 0 || l->full)
        return gcpi_wrong(&m->s, GCP_E_NOMEM, "the arena has no room for the names in it");
    qsort(l->names, (size_t)l->count, sizeof *l->names, gcpi_name_order);
    return 1;
}

/* Reads image number at. */
static int gcpi_folder_image(gcpi_image_reader *m, const char *path, int at, int label)
{
    gcp_dataset *d = &m->d;
    int height, width, channels;
    const int brightest = d->brightest;
    const size_t bytes = (size_t)d->height * (size_t)d->width * (size_t)d->channels;
    if (!gcpi_pnm_open(m, path, &height, &width, &channels)) return 0;
    if (height != d->height || width != d->width || channels != d->channels || d->brightest != brightest)
        return gcpi_wrong_at(&m->s, 0, "found %dx%dx%d up to %d, expected %dx%dx%d up to %d as in others",
                             height, width, channels, d->brightest, d->height, d->width, d->channels, brightest);
    if (!gcpi_disk_read(&m->s, d->images + (size_t)at * bytes, bytes)) return 0;
    gcpi_disk_close(&m->s);
    d->labels[at] = label;
    return 1;
}
/* Reads the images of one class from number *at on. */
static int gcpi_folder_class(gcpi_image_reader *m, const char *folder, int count, int *at, int label)
{
    char path[GCPI_PATH];
    gcpi_listing l;
    const ptrdiff_t scratch = m->arena->scratch;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (!gcpi_listing_of(m, folder, 1, count, &l)) return 0;
    for (int i = 0; i < l.count; i++) {
        gcpi_reader_file(m, folder, "gcp_dataset_folder");
        if (*at == m->d.count) return gcpi_wrong(&m->s, GCP_E_CONTENTS, "grew while it was read");
        if (!gcpi_path_join(&m->s, path, folder, l.names[i]) || !gcpi_folder_image(m, path, (*at)++, label)) return 0;
    }
    m->arena->scratch = scratch;
    return 1;
}
static int gcpi_folder_images(gcpi_image_reader *m, const char *folder, const gcpi_tally *all)
{
    gcpi_listing l;
    gcpi_tally in;
    char path[GCPI_PATH];
    int at = 0, label = 0;
    if (!all->folders) return gcpi_folder_class(m, folder, all->images, &at, 0);
    if (!gcpi_listing_of(m, folder, 0, (int)(all->names / 64), &l)) return 0;
    char **names = GCPI_NEW(m->arena, char *, m->d.classes);
    for (int i = 0; i < l.count && names; i++) {
        if (!gcpi_path_join(&m->s, path, folder, l.names[i])) return 0;
        if (gcpi_tally_of(&in, m, path, 1, 0) <= 0 || label == m->d.classes) continue;
        const size_t size = strlen(l.names[i]) + 1;
        if ((names[label] = (char *)gcp_arena_push(m->arena, 1, 1, (ptrdiff_t)size)) == NULL) break;
        memcpy(names[label], l.names[i], size);
        if (!gcpi_folder_class(m, path, in.images, &at, label++)) return 0;
    }
    m->d.names = (const char *const *)names;
    if (at == m->d.count && label == m->d.classes) return 1;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (!names || (label < m->d.classes && !names[label]))
        return gcpi_wrong(&m->s, GCP_E_NOMEM, "the arena has no room for the names of its classes");
    return gcpi_wrong(&m->s, GCP_E_CONTENTS, "shrank while it was read");
}
static int gcpi_folder_read(gcpi_image_reader *m, const char *folder)
{
    gcp_dataset *d = &m->d;
    gcpi_tally all, first;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (gcpi_tally_of(&all, m, m->s.path, 0, 0) <= 0) return gcpi_wrong(&m->s, GCP_E_FILE, "is no folder that opens");
    d->count = all.folders ? all.deeper : all.images;
    d->classes = all.folders ? all.folders : 1;
    if (!d->count) return gcpi_wrong(&m->s, GCP_E_CONTENTS, "found no file .ppm, .pgm or .pnm");
    if (d->classes > (m->o.classes ? m->o.classes : 65536))
        return gcpi_wrong(&m->s, GCP_E_CONTENTS, "found %d folders, expected %d classes at most", d->classes,
                          m->o.classes ? m->o.classes : 65536);
    if (m->s.failed || gcpi_tally_of(&first, m, folder, 0, all.folders ? 2 : 1) <= 0 || m->s.failed) return 0;
    gcpi_reader_file(m, folder, "gcp_dataset_folder");
    if (!gcpi_reader_take(m)) return 0;
    d->bytes += 2 * all.names + 64;
    return !m->arena || gcpi_folder_images(m, folder, &all);
}
GCPI_DEF gcp_dataset gcp_dataset_folder_at(gcp_arena *arena, const char *folder, gcp_dataset_opts o)
{
    gcpi_image_reader m;
    gcpi_reader_begin(&m, arena, &o);
    gcpi_folder_read(&m, folder);
    return gcpi_reader_end(&m);
}

#endif /* GCP_IMPLEMENTATION */
