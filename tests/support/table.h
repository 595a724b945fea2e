/* table.h - where a benchmark writes its table. */
#ifndef TABLE_H
#define TABLE_H
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static inline void table_failed(const char *tool, const char *path)
{
    fprintf(stderr, "%s: --out: %s: %s\n", tool, path, strerror(errno));
    exit(1);
}

/* FOLDER/FILE to write to; the folder is made, with those above it. What fails ends the program, with its cause. */
static inline FILE *table_open(const char *tool, const char *folder, const char *file)
{
    char path[1024];
    errno = ENAMETOOLONG;
    const int length = snprintf(path, sizeof path, "%s/%s", *folder ? folder : ".", file);
    if (length >= (int)sizeof path) table_failed(tool, folder);
    for (char *slash = strchr(path + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
        *slash = 0;
        if (mkdir(path, 0777) && errno != EEXIST) break;
        *slash = '/';
    }
    FILE *f = fopen(path, "w");
    if (!f) table_failed(tool, path);
    return f;
}

/* Whole and on the disk, or the program ends. */
static inline void table_close(const char *tool, FILE *f)
{
    const int bad = ferror(f);
    if (fclose(f) || bad) table_failed(tool, "a table");
}
#endif
