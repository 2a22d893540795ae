/* SPDX-License-Identifier: MIT
 *
 * The calls that the loads make to a scheduler, ours or another. Jobs have numbers, and a peer keeps its own
 * data for each job.
 */
#ifndef BENCH_SCHED_PEER_H
#define BENCH_SCHED_PEER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { KEY_SIZE = 16 };

struct peer {
    const char *name;
    bool calls; /* false: only the firing is measured */
    bool fires; /* false: only the calls are measured */
    /* Starts a scheduler, with room for the jobs 0 to jobs - 1. */
    void *(*open)(size_t jobs);
    void (*close)(void *self);
    /* Files a job that is not filed, to call fired(job) in delay_ns. */
    void (*add)(void *self, size_t job, uint64_t delay_ns);
    /* Cancels a filed job. */
    void (*cancel)(void *self, size_t job);
    /* The same by key, the 16 bytes of key_of(job), which the scheduler looks up. */
    void (*key_add)(void *self, size_t job, uint64_t delay_ns);
    void (*key_move)(void *self, size_t job, uint64_t delay_ns);
    /* Waits until all requests are carried out. */
    void (*settle)(void *self);
};

extern const struct peer tickwheel_peer, single_peer, workers1_peer, workers2_peer, workers4_peer, libuv_peer,
    bare_peer;

/* The number of threads that add and cancel. */
extern size_t producers;

/* The peer calls this when a job is due, on any of the threads where its callbacks run. */
void fired(size_t job);

/* The key of a job. */
const char *key_of(size_t job);

/* Allocates memory for `count` elements, or ends the program. */
void *need(size_t count, size_t size);

#endif
