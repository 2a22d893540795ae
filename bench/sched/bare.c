/* SPDX-License-Identifier: MIT
 *
 * No scheduler at all, only the work that every scheduler has to do as well:
 *
 *     add       read the clock, write the task's cache line under a mutex
 *     cancel    look the handle up, write the task's cache line under the mutex
 *     by key    read the key, one place of a table, and the task's cache line
 *
 * No task ever fires. Most of the time is spent waiting for memory, one address after the other. This is a
 * measure of the machine and no lower bound. An add visits the line of its task too, where our scheduler
 * takes a line that is at hand.
 */
#include "peer.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct task {
    _Alignas(64) uint64_t due_ns;
    uint64_t cancelled;
};

struct self {
    pthread_mutex_t lock;
    uint64_t *ids;   /* the handle of each job */
    uint32_t *place; /* the task of each key, by the key's hash */
    uint64_t place_mask;
    struct task **chunks; /* of 1,024 tasks, as in our scheduler */
    size_t chunk_count;
};

enum { CHUNK = 1024 };

static struct task *task_at(const struct self *self, size_t task)
{
    return &self->chunks[task / CHUNK][task % CHUNK];
}

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void *open_bare(size_t jobs)
{
    struct self *self = need(1, sizeof *self);
    pthread_mutexattr_t attributes;
    pthread_mutexattr_init(&attributes);
    pthread_mutexattr_settype(&attributes, PTHREAD_MUTEX_ADAPTIVE_NP);
    pthread_mutex_init(&self->lock, &attributes);
    self->ids = need(jobs, sizeof *self->ids);
    self->place_mask = 1;
    while (self->place_mask < jobs)
        self->place_mask = self->place_mask * 2 + 1;
    self->place = need(self->place_mask + 1, sizeof *self->place);
    self->chunk_count = jobs / CHUNK + 1;
    self->chunks = need(self->chunk_count, sizeof(void *));
    for (size_t i = 0; i < self->chunk_count; i++) {
        self->chunks[i] = aligned_alloc(sizeof(struct task), CHUNK * sizeof(struct task));
        if (self->chunks[i] == NULL)
            abort();
    }
    return self;
}

static void close_bare(void *at)
{
    struct self *self = at;
    free(self->ids);
    free(self->place);
    for (size_t i = 0; i < self->chunk_count; i++)
        free(self->chunks[i]);
    free(self->chunks);
    free(self);
}

static void file(struct self *self, size_t task, uint64_t delay_ns)
{
    uint64_t now = now_ns();
    pthread_mutex_lock(&self->lock);
    task_at(self, task)->due_ns = now + delay_ns;
    pthread_mutex_unlock(&self->lock);
}

static void add(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    file(self, job, delay_ns);
    self->ids[job] = job;
}

static void cancel(void *at, size_t job)
{
    struct self *self = at;
    uint64_t id = self->ids[job];
    pthread_mutex_lock(&self->lock);
    task_at(self, id)->cancelled++;
    pthread_mutex_unlock(&self->lock);
}

/* FNV-1a's constants, eight bytes at a time: cheaper than a hash that withstands an attacker. */
static uint64_t hash_of(size_t job)
{
    uint64_t words[KEY_SIZE / 8], hash = UINT64_C(14695981039346656037);
    memcpy(words, key_of(job), KEY_SIZE);
    for (size_t i = 0; i < KEY_SIZE / 8; i++) {
        hash = (hash ^ words[i]) * UINT64_C(1099511628211);
        hash ^= hash >> 29;
    }
    return hash;
}

static void key_add(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    self->place[hash_of(job) & self->place_mask] =
        (uint32_t)job; /* of equal hashes the last key counts: near enough */
    file(self, job, delay_ns);
}

static void key_move(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    uint64_t hash = hash_of(job), now = now_ns();
    pthread_mutex_lock(&self->lock);
    task_at(self, self->place[hash & self->place_mask])->due_ns = now + delay_ns;
    pthread_mutex_unlock(&self->lock);
}

static void settle(void *at)
{
    (void)at;
}

const struct peer bare_peer = {"bare", true,   false,   open_bare, close_bare,
                               add,    cancel, key_add, key_move,  settle};
