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
