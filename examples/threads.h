/* threads.h - a POSIX-thread pool behind gcp_target.parallel_for, for programs without OpenMP:

       thread_pool pool;
       pool_start(&pool, 4);
       gcp_target target = pool_target(&pool);
       gcp_plan plan = gcp_plan_make(loss, .target = &target);
       ...
       pool_stop(&pool);

   The caller works too, as worker 0. Tasks are handed out one by one; results do not depend on who gets which.
   pool_copies(&pool), ahead of pool_target, adds a thread that copies to far memory and back while the others
   compute. */
#ifndef THREADS_H
#define THREADS_H
#include <pthread.h>
#include <string.h>
#include "gcp.h"

enum { POOL_MAX = 64 };
typedef void (*pool_task)(void *arg, int index, int worker);

typedef struct pool_copy { void *to; const void *from; size_t size; int pending; } pool_copy;

typedef struct thread_pool {
    pthread_t thread[POOL_MAX], copier;
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    int threads, running, quit;          /* running: workers still inside the current job */
    unsigned job;                        /* counts jobs, so that a worker knows a new one */
    pool_task task; void *arg;
    int tasks, next;
    pthread_cond_t issued, copied;
    pool_copy copy[GCP_COPIES];          /* by id; queue: ids in the order of their issue */
    int queue[GCP_COPIES], queued, copies;
} thread_pool;

typedef struct pool_worker { thread_pool *pool; int index; } pool_worker;

/* Takes tasks until none is left; called with the lock held, and returns with it held. */
static inline void pool_drain(thread_pool *p, int worker)
{
    while (p->next < p->tasks) {
        int index = p->next++;
        pthread_mutex_unlock(&p->lock);
        p->task(p->arg, index, worker);
        pthread_mutex_lock(&p->lock);
    }
}

static inline void *pool_main(void *argument)
{
    pool_worker *w = (pool_worker *)argument;
    thread_pool *p = w->pool;
    int index = w->index;
    unsigned seen = 0;
    pthread_mutex_lock(&p->lock);
    p->running--;                        /* w may go */
    pthread_cond_signal(&p->done);
    while (!p->quit) {
        while (p->job == seen && !p->quit) pthread_cond_wait(&p->work, &p->lock);
        seen = p->job;
        if (p->quit) break;
        pool_drain(p, index);
        if (--p->running == 0) pthread_cond_signal(&p->done);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static inline void pool_for(void *context, int tasks, pool_task task, void *arg)
{
    thread_pool *p = (thread_pool *)context;
    if (p->threads == 1 || tasks == 1) {
        for (int i = 0; i < tasks; i++) task(arg, i, 0);
        return;
    }
    pthread_mutex_lock(&p->lock);
    p->task = task; p->arg = arg; p->tasks = tasks; p->next = 0;
    p->running = p->threads - 1;
    p->job++;
    pthread_cond_broadcast(&p->work);
    pool_drain(p, 0);
    while (p->running) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* Returns how many threads there are, the caller included: fewer than asked for where the system gives no more. */
static inline int pool_start(thread_pool *p, int threads)
{
    p->threads = 1;
    p->running = p->quit = 0;
    p->job = 0;
    p->tasks = p->next = 0;
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    p->copies = 0;
    for (int i = 1; i < threads && i < POOL_MAX; i++) {
        pool_worker w = { p, i };
        pthread_mutex_lock(&p->lock);
        p->running = 1;
        int made = pthread_create(&p->thread[i], NULL, pool_main, &w) == 0;
        while (made && p->running) pthread_cond_wait(&p->done, &p->lock);
        pthread_mutex_unlock(&p->lock);
        if (!made) break;
        p->threads = i + 1;
    }
    return p->threads;
}

/* Copies in the order of issue, until the pool stops. */
static inline void *pool_copier(void *argument)
{
    thread_pool *p = (thread_pool *)argument;
    pthread_mutex_lock(&p->lock);
    for (;;) {
        while (!p->queued && !p->quit) pthread_cond_wait(&p->issued, &p->lock);
        if (!p->queued) break;
        pool_copy *c = &p->copy[p->queue[0]];
        pthread_mutex_unlock(&p->lock);
        memcpy(c->to, c->from, c->size);
        pthread_mutex_lock(&p->lock);
        c->pending = 0;
        p->queued--;
        for (int i = 0; i < p->queued; i++) p->queue[i] = p->queue[i + 1];
        pthread_cond_broadcast(&p->copied);
    }
    pthread_mutex_unlock(&p->lock);
    return NULL;
}

static inline void pool_copy_start(void *context, int id, void *to, const void *from, size_t size)
{
    thread_pool *p = (thread_pool *)context;
    pthread_mutex_lock(&p->lock);
    p->copy[id].to = to; p->copy[id].from = from; p->copy[id].size = size; p->copy[id].pending = 1;
    p->queue[p->queued++] = id;
    pthread_cond_signal(&p->issued);
    pthread_mutex_unlock(&p->lock);
}

static inline void pool_copy_wait(void *context, int id)
{
    thread_pool *p = (thread_pool *)context;
    pthread_mutex_lock(&p->lock);
    while (p->copy[id].pending) pthread_cond_wait(&p->copied, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

/* 1: there is a thread that copies; 0: the system gives none. */
static inline int pool_copies(thread_pool *p)
{
    pthread_cond_init(&p->issued, NULL);
    pthread_cond_init(&p->copied, NULL);
    p->queued = 0;
    memset(p->copy, 0, sizeof p->copy);
    p->copies = pthread_create(&p->copier, NULL, pool_copier, p) == 0;
    if (!p->copies) { pthread_cond_destroy(&p->issued); pthread_cond_destroy(&p->copied); }
    return p->copies;
}

static inline void pool_stop(thread_pool *p)
{
    pthread_mutex_lock(&p->lock);
    p->quit = 1;
    pthread_cond_broadcast(&p->work);
    if (p->copies) pthread_cond_signal(&p->issued);
    pthread_mutex_unlock(&p->lock);
    for (int i = 1; i < p->threads; i++) pthread_join(p->thread[i], NULL);
    if (p->copies) {
        pthread_join(p->copier, NULL);
        pthread_cond_destroy(&p->issued);
        pthread_cond_destroy(&p->copied);
    }
    pthread_mutex_destroy(&p->lock);
    pthread_cond_destroy(&p->work);
    pthread_cond_destroy(&p->done);
}

static inline gcp_target pool_target(thread_pool *p)
{
    gcp_target t = { 0 };
    t.name = "cpu, POSIX threads";
    t.threads = p->threads;
    t.parallel_for = pool_for;
    t.context = p;
    if (p->copies) { t.copy_start = pool_copy_start; t.copy_wait = pool_copy_wait; }
    return t;
}
#endif
