/* SPDX-License-Identifier: MIT
 *
 * libuv's timers behind a mutex. Only the loop's own thread may touch a loop. So a producer notes its request
 * in the job, queues the job under the mutex and, if the queue was empty, wakes the loop with
 * uv_async_send(). If a job gets several requests before the loop looks, it is in the queue once, and the
 * last request counts.
 */
#include "peer.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <uthash.h>
#include <uv.h>

enum { NS_PER_MS = 1000000 };

struct job {
    uv_timer_t timer;
    struct job *next; /* the next job in the queue */
    uint64_t due_ns;  /* 0: stop */
    bool queued, initialised;
    size_t number;
    UT_hash_handle hh; /* keyed jobs */
};

struct self {
    uv_loop_t loop;
    uv_async_t async;
    uv_thread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t settled;
    struct job *first, **last, *keys;
    size_t waiting; /* jobs in the queue */
    bool quit, busy;
    struct job *jobs;
    size_t count;
};

static void on_due(uv_timer_t *timer)
{
    fired(((struct job *)timer)->number);
}

/* Carries out a request. */
static void apply(struct self *self, struct job *job, uint64_t due_ns)
{
    if (!job->initialised) {
        uv_timer_init(&self->loop, &job->timer);
        job->initialised = true;
    }
    if (due_ns == 0) {
        uv_timer_stop(&job->timer);
        return;
    }
    /* libuv counts in milliseconds from the start of this loop iteration. Rounding up keeps the timer from
     * being early. */
    uint64_t base_ns = uv_now(&self->loop) * NS_PER_MS;
    uint64_t delay_ns = due_ns > base_ns ? due_ns - base_ns : 0;
    uv_timer_start(&job->timer, on_due, (delay_ns + NS_PER_MS - 1) / NS_PER_MS, 0);
}

enum { BATCH = 64 };

struct asked {
    struct job *job;
    uint64_t due_ns;
};

/* Takes some requests out of the queue; the lock is held. */
static size_t take(struct self *self, struct asked *asked, size_t most)
{
    size_t taken = 0;
    while (self->first != NULL && taken < most) {
        struct job *job = self->first;
        asked[taken++] = (struct asked){job, job->due_ns};
        self->first = job->next;
        job->queued = false;
    }
    if (self->first == NULL)
        self->last = &self->first;
    self->waiting -= taken;
    return taken;
}

/* Carries out the requests that are in the queue now. Requests that arrive meanwhile wait for the next loop
 * iteration, so that timers run in between. */
static void on_async(uv_async_t *async)
{
    struct self *self = async->data;
    struct asked asked[BATCH];
    pthread_mutex_lock(&self->lock);
    self->busy = true;
    for (size_t left = self->waiting; left > 0;) {
        size_t taken = take(self, asked, left < BATCH ? left : BATCH);
        left -= taken;
        pthread_mutex_unlock(&self->lock);
        for (size_t i = 0; i < taken; i++)
            apply(self, asked[i].job, asked[i].due_ns);
        pthread_mutex_lock(&self->lock);
    }
    self->busy = false;
    bool more = self->waiting > 0, quit = self->quit;
    if (!more)
        pthread_cond_broadcast(&self->settled);
    pthread_mutex_unlock(&self->lock);
    if (more)
        uv_async_send(async);
    if (quit)
        uv_stop(&self->loop);
}

static void run_loop(void *at)
{
    struct self *self = at;
    uv_run(&self->loop, UV_RUN_DEFAULT);
}

static void *open_loop(size_t jobs)
{
    struct self *self = need(1, sizeof *self);
    self->jobs = need(jobs, sizeof *self->jobs);
    self->count = jobs;
    self->last = &self->first;
    pthread_mutex_init(&self->lock, NULL);
    pthread_cond_init(&self->settled, NULL);
    uv_loop_init(&self->loop);
    uv_async_init(&self->loop, &self->async, on_async);
    self->async.data = self;
    uv_thread_create(&self->thread, run_loop, self);
    return self;
}

static void close_loop(void *at)
{
    struct self *self = at;
    pthread_mutex_lock(&self->lock);
    self->quit = true;
    pthread_mutex_unlock(&self->lock);
    uv_async_send(&self->async);
    uv_thread_join(&self->thread);
    HASH_CLEAR(hh, self->keys);
    free(self->jobs); /* the handles end with the loop, which is not used again */
    free(self);
}

/* The lock is held. */
static bool request(struct self *self, struct job *job, uint64_t due_ns)
{
    bool was_empty = self->first == NULL && !self->busy; /* else the loop will look again by itself */
    job->due_ns = due_ns;
    if (job->queued)
        return false;
    job->queued = true;
    job->next = NULL;
    *self->last = job;
    self->last = &job->next;
    self->waiting++;
    return was_empty;
}

static void ask(struct self *self, size_t number, uint64_t due_ns)
{
    struct job *job = &self->jobs[number];
    pthread_mutex_lock(&self->lock);
    job->number = number;
    bool wake = request(self, job, due_ns);
    pthread_mutex_unlock(&self->lock);
    if (wake)
        uv_async_send(&self->async);
}

static void add(void *at, size_t job, uint64_t delay_ns)
{
    ask(at, job, uv_hrtime() + delay_ns);
}

static void cancel(void *at, size_t job)
{
    ask(at, job, 0);
}

static void key_add(void *at, size_t number, uint64_t delay_ns)
{
    struct self *self = at;
    struct job *job = &self->jobs[number];
    pthread_mutex_lock(&self->lock);
    job->number = number;
    HASH_ADD_KEYPTR(hh, self->keys, key_of(number), KEY_SIZE, job);
    bool wake = request(self, job, uv_hrtime() + delay_ns);
    pthread_mutex_unlock(&self->lock);
    if (wake)
        uv_async_send(&self->async);
}

static void key_move(void *at, size_t number, uint64_t delay_ns)
{
    struct self *self = at;
    struct job *job;
    bool wake = false;
    pthread_mutex_lock(&self->lock);
    HASH_FIND(hh, self->keys, key_of(number), KEY_SIZE, job);
    if (job != NULL)
        wake = request(self, job, uv_hrtime() + delay_ns);
    pthread_mutex_unlock(&self->lock);
    if (wake)
        uv_async_send(&self->async);
}

static void settle(void *at)
{
    struct self *self = at;
    pthread_mutex_lock(&self->lock);
    while (self->first != NULL || self->busy)
        pthread_cond_wait(&self->settled, &self->lock);
    pthread_mutex_unlock(&self->lock);
}

const struct peer libuv_peer = {"libuv", true,   true,    open_loop, close_loop,
                                add,     cancel, key_add, key_move,  settle};
