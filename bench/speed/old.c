/* old.c - the kernels of another tree as a library, which `kernels --old` takes turns with (bench/CMakeLists.txt,
   GCP_OLD). */
#define _POSIX_C_SOURCE 200809L
#define GCP_STATIC
#define GCP_IMPLEMENTATION
#include "gcp.h"
#include "own.h"

static gcp_target target;

/* Returns the bytes of a `work`: of other bytes, the trees cannot be compared. */
size_t old_begin(int threads);
size_t old_begin(int threads)
{
    const gcp_target wish = { .threads = threads };
    target = gcpi_target_of(&wish);
    par = gcpi_par_of(&target, GCP_STORE_REAL);
    return sizeof(work);
}

void old_open(const work *w);
void old_open(const work *w) { own_open(w); }
double old_seconds(int calls);
double old_seconds(int calls) { return own_seconds(calls); }
void old_close(void);
void old_close(void) { own_close(); }
