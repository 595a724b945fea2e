/* workers.h - several workers on MPI, each with its share of every batch:

       workers w;
       workers_begin(&w, MPI_COMM_WORLD, 60);
       gcp_plan plan = gcp_plan_make(loss, .on_gradient = workers_on_gradient, .on_wait = workers_on_wait,
                                     .hook_context = &w, ...);
       workers_sums(&w, net);
       for (...) {
           gcp_step(&plan, .lr = 0.1, .first_sample = first_of_mine, .share = mine ? mine / (double)all : GCP_ZERO);
       }
       workers_end(&w);                                // before MPI_Finalize

   mine, all: what the loss is the mean of: samples, or labels that count where some are the .ignore. A rank without any
   takes the step with some sample and a share of 0. All ranks take as many steps, and train the same parameters of the
   tape that workers_sums was given. The loss that gcp_step returns is the rank's own mean.

   A gradient leaves as soon as it is finished, while backward goes on, and is waited for before its update. The sum
   that comes back is the whole batch's gradient, as each rank's was multiplied by its share. Small gradients go
   together, in buckets. Which sums are made depends on the plan alone, never on who comes first, so a run can be
   repeated to the bit, and weights are the same bits everywhere. From MPI_Init to workers_end nothing waits for
   ever: where a rank has said nothing for .limit seconds, all of them end. (gcp_profile calls the hooks, so all
   ranks call it or none; gcp_measure does not.) */
#ifndef WORKERS_H
#define WORKERS_H

#include <limits.h>
#include <mpi.h>
#include <sched.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "gcp.h"

enum { WORKERS_BUCKET = 1 << 16 };          /* values; a gradient of as many goes alone, in place */

/* A gradient on its way: whose it is, its place in the buckets (-1: in place), and the sum that it is part of (-1: it
   has not left). */
typedef struct workers_gradient { int id; gcp_real *data; size_t count; ptrdiff_t place; int sum; } workers_gradient;

typedef struct workers {
    MPI_Comm world;
    const gcp_tape *net;                    /* whose gradients */
    int rank, ranks, parameters;
    double limit;                           /* seconds that a rank may say nothing */
    int late;                               /* 1: nothing leaves before backward is done, to compare with */
    gcp_real *bucket;                       /* all buckets, one after the other; the open one is [open, used) */
    size_t open, used;
    workers_gradient *gradients;
    MPI_Request *sums;
    int open_sum, gradient_count, sum_count, waited;    /* open_sum: kept for the open bucket */
    double wait_seconds;                    /* in all, and the bytes that left */
    uint64_t bytes;
} workers;

/* ---- Waiting ---------------------------------------------------------------------------------------------------*/

/* Ends all ranks. */
static inline void workers_stop(workers *w, const char *why)
{
    fprintf(stderr, "rank %d of %d: %s\n", w->rank, w->ranks, why);
    fflush(stderr);
    MPI_Abort(w->world, 1);
}

static inline void workers_wait(workers *w, MPI_Request *request, const char *what)
{
    const double begin = MPI_Wtime();
    char why[200];
    int done = 0;
    while (MPI_Test(request, &done, MPI_STATUS_IGNORE), !done) {
        if (MPI_Wtime() - begin > w->limit) {
            snprintf(why, sizeof why, "%s: a rank has said nothing for %g seconds", what, w->limit);
            workers_stop(w, why);
        }
        sched_yield();
    }
    w->wait_seconds += MPI_Wtime() - begin;
}

static inline MPI_Datatype workers_real(void) { return sizeof(gcp_real) == 4 ? MPI_FLOAT : MPI_DOUBLE; }

/* The sums of all ranks' values, in their place. */
static inline void workers_add(workers *w, void *values, int count, MPI_Datatype type, const char *what)
{
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, values, count, type, MPI_SUM, w->world, &request);
    workers_wait(w, &request, what);
}

/* Bytes of rank `from`, to all. In pieces: MPI counts in int. */
static inline void workers_give(workers *w, void *data, size_t size, int from, const char *what)
{
    enum { PIECE = 1 << 26 };
    MPI_Request request;
    for (size_t done = 0; done < size; done += PIECE) {
        MPI_Ibcast((char *)data + done, (int)(size - done < PIECE ? size - done : PIECE), MPI_BYTE, from, w->world,
                   &request);
        workers_wait(w, &request, what);
    }
}

/* ---- Gradients -------------------------------------------------------------------------------------------------*/

static inline void workers_start(workers *w, int sum, gcp_real *data, size_t count)
{
    MPI_Iallreduce(MPI_IN_PLACE, data, (int)count, workers_real(), MPI_SUM, w->world, &w->sums[sum]);
    w->bytes += count * sizeof *data;
}

static inline void workers_close_bucket(workers *w)
{
    workers_start(w, w->open_sum, w->bucket + w->open, w->used - w->open);
    w->open = w->used;
}

static inline int workers_new_sum(workers *w)
{
    w->sums[w->sum_count] = MPI_REQUEST_NULL;
    return w->sum_count++;
}

static inline void workers_send(workers *w, workers_gradient *g)
{
    if (g->count >= WORKERS_BUCKET) {
        workers_start(w, g->sum = workers_new_sum(w), g->data, g->count);
        return;
    }
    if (w->open == w->used) w->open_sum = workers_new_sum(w);
    g->place = (ptrdiff_t)w->used;
    g->sum = w->open_sum;
    memcpy(w->bucket + w->used, g->data, g->count * sizeof *g->data);
    w->used += g->count;
    if (w->used - w->open >= WORKERS_BUCKET) workers_close_bucket(w);
}

static inline void workers_on_gradient(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count)
{
    workers *w = (workers *)context;
    int all;
    if (w->ranks == 1) return;
    if (parameter.tape != w->net) workers_stop(w, "a gradient of a tape that workers_sums was not called with");
    if (w->waited == w->gradient_count) w->gradient_count = w->sum_count = w->waited = 0, w->open = w->used = 0;
    if (w->gradient_count == w->parameters) workers_stop(w, "a parameter was recorded after workers_sums");
    workers_gradient *g = &w->gradients[w->gradient_count++];
    *g = (workers_gradient) { parameter.id, gradient, count, -1, -1 };
    if (w->late) return;
    workers_send(w, g);
    MPI_Testall(w->sum_count, w->sums, &all, MPI_STATUSES_IGNORE);     /* MPI works while it is called */
}

static inline void workers_on_wait(void *context, gcp_tensor parameter, gcp_real *gradient, size_t count)
{
    workers *w = (workers *)context;
    workers_gradient *g = w->gradients;
    if (w->ranks == 1) return;
    w->waited++;
    while (g->id != parameter.id) g++;
    for (int i = 0; g->sum < 0 && i < w->gradient_count; i++)
        if (w->gradients[i].sum < 0) workers_send(w, &w->gradients[i]);
    if (g->place >= (ptrdiff_t)w->open) workers_close_bucket(w);
    workers_wait(w, &w->sums[g->sum], "gradients");
    if (g->place >= 0) memcpy(gradient, w->bucket + g->place, count * sizeof *gradient);
}

/* ---- The beginning and the end ---------------------------------------------------------------------------------*/

static inline void workers_begin(workers *w, MPI_Comm world, double limit)
{
    memset(w, 0, sizeof *w);
    w->world = world;
    w->limit = limit;
    MPI_Comm_rank(world, &w->rank);
    MPI_Comm_size(world, &w->ranks);
}

static inline void workers_free(workers *w)
{
    free(w->bucket); free(w->gradients); free(w->sums);
    w->bucket = NULL; w->gradients = NULL; w->sums = NULL; w->net = NULL;
}

/* All ranks come here before one goes on to MPI_Finalize, which has no limit. */
static inline void workers_end(workers *w)
{
    MPI_Request request;
    MPI_Ibarrier(w->world, &request);
    workers_wait(w, &request, "the end");
    workers_free(w);
}

/* Memory for the gradients of a network as it is recorded; again for another. 0: there is none, or a parameter is
   larger than MPI can count. */
static inline int workers_sums(workers *w, gcp_tape *net)
{
    size_t small = 0, count = 0;
    gcp_tensor x;
    workers_free(w);
    while (x = gcp_nth_parameter(net, (int)count), !gcp_is_nil(x)) {
        if (gcp_elements(x) > INT_MAX) return 0;
        if (gcp_elements(x) < WORKERS_BUCKET) small += gcp_elements(x);
        count++;
    }
    w->bucket = (gcp_real *)malloc((small + 1) * sizeof *w->bucket);
    w->gradients = (workers_gradient *)malloc((count + 1) * sizeof *w->gradients);
    w->sums = (MPI_Request *)malloc((count + 1) * sizeof *w->sums);
    w->net = net;
    w->parameters = (int)count;
    return w->bucket && w->gradients && w->sums;
}

/* ---- What ranks share ------------------------------------------------------------------------------------------*/

/* Running statistics of batch-norms are each rank's own; this makes them the mean of all. All ranks call it, before
   they save or test. */
static inline int workers_average(workers *w, gcp_plan *plan)
{
    gcp_tensor x;
    for (int i = 0; w->ranks > 1 && (x = gcp_nth_statistic(plan->tape, i), !gcp_is_nil(x)); i++) {
        const size_t count = gcp_elements(x);
        gcp_real *values = (gcp_real *)malloc(count * sizeof *values);
        if (!values || gcp_read(plan, x, values)) { free(values); return 0; }
        workers_add(w, values, (int)count, workers_real(), "running statistics");
        for (size_t k = 0; k < count; k++) values[k] /= (gcp_real)w->ranks;
        gcp_write(plan, x, values);
        free(values);
    }
    return 1;
}

/* A text that grows as reports are written to it: gcp_list_print(&plan, workers_writer(&text)). */
typedef struct workers_text { char *text; size_t size, room; int failed; } workers_text;

static inline void workers_write(void *context, const char *text, size_t size)
{
    workers_text *t = (workers_text *)context;
    if (t->size + size + 1 > t->room) {
        char *more = (char *)realloc(t->text, 2 * (t->size + size) + 64);
        if (!more) { t->failed = 1; return; }
        t->text = more;
        t->room = 2 * (t->size + size) + 64;
    }
    memcpy(t->text + t->size, text, size);
    t->text[t->size += size] = 0;
}
static inline gcp_writer workers_writer(workers_text *t) { return (gcp_writer) { workers_write, t }; }

/* The number of the first line in which two texts differ, from 0; *a and *b its place in each. */
static inline int workers_first_difference(const char **a, const char **b)
{
    for (int line = 0;; line++) {
        const size_t n = strcspn(*a, "\n"), m = strcspn(*b, "\n");
        if (n != m || memcmp(*a, *b, n) || !(*a)[n] || !(*b)[m]) return line;
        *a += n + 1;
        *b += m + 1;
    }
}

/* A text as rank `from` has it, on all ranks; the caller frees it. NULL: no memory. */
static inline char *workers_text_of(workers *w, const char *mine, int from)
{
    uint64_t size = strlen(mine);
    workers_give(w, &size, sizeof size, from, "comparing");
    char *text = (char *)malloc((size_t)size + 1);
    if (!text) { workers_stop(w, "out of memory"); return NULL; }
    if (w->rank == from) memcpy(text, mine, (size_t)size);
    workers_give(w, text, (size_t)size, from, "comparing");
    text[size] = 0;
    return text;
}

/* All ranks call it with a text that says what they are about to do. 1: it is the same text. 0 on every rank, and
   message says which line differs first, between rank 0 and the first rank with another. */
static inline int workers_same(workers *w, const char *mine, char *message, size_t size)
{
    char *first = workers_text_of(w, mine, 0);
    int odd = strcmp(first, mine) ? w->rank : w->ranks;
    MPI_Request request;
    MPI_Iallreduce(MPI_IN_PLACE, &odd, 1, MPI_INT, MPI_MIN, w->world, &request);
    workers_wait(w, &request, "comparing");
    if (odd < w->ranks) {
        char *other = workers_text_of(w, mine, odd);
        const char *a = first, *b = other;
        workers_first_difference(&a, &b);
        snprintf(message, size, "rank %d has '%.*s' where rank 0 has '%.*s'", odd, (int)strcspn(b, "\n"), b,
                 (int)strcspn(a, "\n"), a);
        free(other);
    }
    free(first);
    return odd == w->ranks;
}
#endif
