/* SPDX-License-Identifier: MIT
 *
 * What the loads ask of a scheduler, ours or another. Jobs have numbers; a peer keeps whatever it needs for
 * each.
 */
#ifndef BENCH_SCHED_PEER_H
#define BENCH_SCHED_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_SIZE = 16 };

struct peer {
    const char *name;
    bool fires; /* else only its calls are measured */
    /* Starts one, with room for jobs 0 to jobs - 1. */
    void *(*open)(size_t jobs);
    void (*close)(void *self);
    /* Files a job that is not filed, to call fired(job) in delay_ns. */
    void (*add)(void *self, size_t job, uint64_t delay_ns);
    /* Takes a filed job back. */
    void (*cancel)(void *self, size_t job);
    /* The same with a key that is looked up: the 16 bytes of key_of(job). */
    void (*key_add)(void *self, size_t job, uint64_t delay_ns);
    void (*key_move)(void *self, size_t job, uint64_t delay_ns);
    /* Waits until everything asked for has been done. */
    void (*settle)(void *self);
};

extern const struct peer tickwheel_peer, sharded_peer, libuv_peer, bare_peer;

/* Threads that add and cancel. */
extern size_t producers;

/* Called by the peer when a job is due, on the thread where its callbacks run. */
void fired(size_t job);

/* The key of a job. */
const char *key_of(size_t job);

/* Memory for as many things, or the end of the program. */
void *need(size_t count, size_t size);

#endif
