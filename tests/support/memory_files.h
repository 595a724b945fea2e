/* memory_files.h - files in memory, whose calls fail when asked to: call number fail_at from now on, all from there on
   with `persistent`. short_by: reads and writes do that many bytes at most. */
#ifndef MEMORY_FILES_H
#define MEMORY_FILES_H
#include <stdlib.h>
#include <string.h>
#include "gcp_io.h"

enum { MEMORY_FILES = 32, MEMORY_NAME = 128 };
typedef struct memory_file { char name[MEMORY_NAME]; unsigned char *bytes; size_t size, capacity, at; } memory_file;
typedef struct memory_disk {
    memory_file files[MEMORY_FILES];
    size_t short_by, full_at;           /* full_at: bytes after which a file is full; 0: never */
    int calls, fail_at, persistent, open, unflushed_renames, dirty;
} memory_disk;

static inline int memory_fails(memory_disk *d)
{
    d->calls++;
    return d->fail_at && (d->calls == d->fail_at || (d->persistent && d->calls > d->fail_at));
}
static inline memory_file *memory_find(memory_disk *d, const char *name)
{
    for (int i = 0; i < MEMORY_FILES; i++)
        if (d->files[i].name[0] && !strcmp(d->files[i].name, name)) return &d->files[i];
    return NULL;
}
/* How many new files were left beside others. */
static inline int memory_parts(const memory_disk *d)
{
    int count = 0;
    for (int i = 0; i < MEMORY_FILES; i++) count += strstr(d->files[i].name, ".part") != NULL;
    return count;
}
/* A file of these bytes. */
static inline memory_file *memory_put(memory_disk *d, const char *name, const void *bytes, size_t size)
{
    memory_file *f = memory_find(d, name);
    for (int i = 0; i < MEMORY_FILES && !f; i++) if (!d->files[i].name[0]) f = &d->files[i];
    if (!f) abort();
    if (size > f->capacity) {
        f->bytes = (unsigned char *)realloc(f->bytes, f->capacity = size);
        if (!f->bytes) abort();
    }
    if (size) memcpy(f->bytes, bytes, size);
    snprintf(f->name, sizeof f->name, "%s", name);
    f->size = size; f->at = 0;
    return f;
}

static inline void *memory_open(void *context, const char *path, int write)
{
    memory_disk *d = (memory_disk *)context;
    if (memory_fails(d) || (write && memory_find(d, path))) return NULL;
    memory_file *f = write ? memory_put(d, path, NULL, 0) : memory_find(d, path);
    if (f) { f->at = 0; d->open++; d->dirty |= write; }
    return f;
}
static inline int memory_absent(void *context, const char *path)
{
    return memory_find((memory_disk *)context, path) == NULL;
}
static inline int64_t memory_size(void *context, void *file)
{
    return memory_fails((memory_disk *)context) ? -1 : (int64_t)((memory_file *)file)->size;
}
static inline int memory_rewind(void *context, void *file)
{
    ((memory_file *)file)->at = 0;
    return !memory_fails((memory_disk *)context);
}
static inline size_t memory_read(void *context, void *file, void *to, size_t size)
{
    memory_disk *d = (memory_disk *)context;
    memory_file *f = (memory_file *)file;
    if (memory_fails(d)) return 0;
    size_t n = f->size - f->at < size ? f->size - f->at : size;
    if (d->short_by && n > d->short_by) n = d->short_by;
    if (n) memcpy(to, f->bytes + f->at, n);
    f->at += n;
    return n;
}
static inline size_t memory_write(void *context, void *file, const void *from, size_t size)
{
    memory_disk *d = (memory_disk *)context;
    memory_file *f = (memory_file *)file;
    if (memory_fails(d)) return 0;
    size_t n = d->short_by && size > d->short_by ? d->short_by : size;
    if (d->full_at && f->at + n > d->full_at) n = d->full_at > f->at ? d->full_at - f->at : 0;
    if (f->at + n > f->capacity && !(f->bytes = (unsigned char *)realloc(f->bytes, f->capacity = 2 * (f->at + n))))
        abort();
    if (n) memcpy(f->bytes + f->at, from, n);
    f->size = f->at += n;
    return n;
}
static inline int memory_flush(void *context, void *file)
{
    (void)file;
    ((memory_disk *)context)->dirty = 0;
    return !memory_fails((memory_disk *)context);
}
static inline int memory_close(void *context, void *file)
{
    (void)file;
    ((memory_disk *)context)->open--;
    return !memory_fails((memory_disk *)context);
}
static inline void memory_remove(void *context, const char *path)
{
    memory_file *f = memory_find((memory_disk *)context, path);
    if (f) f->name[0] = 0;
}
static inline int memory_rename(void *context, const char *from, const char *to)
{
    memory_disk *d = (memory_disk *)context;
    memory_file *f = memory_find(d, from);
    if (memory_fails(d) || !f) return 0;
    d->unflushed_renames += d->dirty;
    memory_remove(context, to);
    snprintf(f->name, sizeof f->name, "%s", to);
    return 1;
}
/* Names that begin with "folder/", up to the next '/', each once. */
static inline int memory_list(void *context, const char *folder, void (*found)(void *arg, const char *name), void *arg)
{
    memory_disk *d = (memory_disk *)context;
    size_t length = strlen(folder);
    int any = -1;
    if (memory_fails(d)) return 0;
    for (int i = 0; i < MEMORY_FILES; i++) {
        char name[MEMORY_NAME];
        int again = 0;
        if (strncmp(d->files[i].name, folder, length) || d->files[i].name[length] != '/') continue;
        snprintf(name, sizeof name, "%s", d->files[i].name + length + 1);
        name[strcspn(name, "/")] = 0;
        for (int k = 0; k < i; k++)
            again |= !strncmp(d->files[k].name, d->files[i].name, length + 1 + strlen(name)) &&
                     strchr("/", d->files[k].name[length + 1 + strlen(name)]) != NULL;
        any = 1;
        if (!again) found(arg, name);
    }
    return any;
}
static inline double memory_age(void *context, const char *path)
{
    return memory_find((memory_disk *)context, path) ? 3600 : -1;
}
static inline gcp_files memory_files(memory_disk *d)
{
    gcp_files f = { d, memory_open, memory_absent, memory_size, memory_rewind, memory_read, memory_write, memory_flush,
                    memory_close, memory_rename, memory_remove, memory_list, memory_age };
    return f;
}
static inline void memory_free(memory_disk *d)
{
    for (int i = 0; i < MEMORY_FILES; i++) free(d->files[i].bytes);
    memset(d, 0, sizeof *d);
}
#endif
