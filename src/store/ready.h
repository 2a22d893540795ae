/* SPDX-License-Identifier: MIT
 *
 * The queues of the window and their entries, and the queues from which a task may be claimed, in the order of
 * their first ready entries.
 */
#ifndef TW_STORE_READY_H
#define TW_STORE_READY_H

#include "database.h"

#include <base/list.h>

/* A place in the order of tasks. */
struct tw__store_place {
    uint64_t place_ms, revision;
};

/* Returns whether a task comes before another one, or is the same. */
static inline bool tw__store_is_up_to(uint64_t place_ms, uint64_t revision, struct tw__store_place last)
{
    return place_ms < last.place_ms || (place_ms == last.place_ms && revision <= last.revision);
}

/* The handler of a queue. */
struct tw__store_callee {
    tw_store_handler_fn *handler;
    void *arg;
    uint32_t at_once; /* jobs under way at most; 0: no limit of its own */
};

/* A queue that has a handler, and tasks in the window. */
struct tw__store_queue {
    struct tw__store_queue *next;        /* of a bucket */
    struct tw__store_queue *next_hungry; /* of the queues whose next tasks have to be loaded */
    struct tw__store_callee callee;
    uint32_t running;               /* jobs under way, and entries that a claim has taken */
    bool named;                     /* the handler is its own: the queue stays also without a task */
    bool paused;                    /* tw_queue says so */
    bool whole;                     /* every task up to the window's horizon is loaded */
    bool hungry;                    /* it is in that list */
    uint64_t pause_read;            /* the last reading of tw_queue that has found its pause */
    uint64_t loaded;                /* its entries */
    struct tw__store_place horizon; /* unless it is whole: every task up to this place is loaded */
    struct tw__link ready;          /* entries that are due and wait for a claim, in their order */
    uint64_t place;                 /* in the heap of ready.c, from 1; 0: it is not there */
    char name[];
};

/* A task in the window. It waits in the wheel, or is in its queue's ready list, or is taken: a claim or a job
 * has it. */
struct tw__store_entry {
    struct tw_timer timer;
    struct tw__link link; /* in a ready list, or in the list of free entries */
    struct tw__store_queue *queue;
    struct tw__store_entry *next_taken;
    uint64_t revision;
    uint64_t place_ms; /* of the row, or when the window has found it, if that was later */
    bool orphan;       /* taken, and the file has gone back since: its number means nothing any more */
    bool failed;       /* its claim has failed, and was not made since */
};

/* The order of tasks. */
static inline bool tw__store_comes_before(const struct tw__store_entry *a, const struct tw__store_entry *b)
{
    return a->place_ms < b->place_ms || (a->place_ms == b->place_ms && a->revision < b->revision);
}

/* A heap of queues. See ready.c. */
struct tw__store_ready {
    struct tw__store_queue **heap;
    uint64_t size, room;
};

/* Makes room for n queues. Returns false if there is no memory. */
bool tw__store_ready_reserve(struct tw__store_ready *ready, uint64_t n);

/* Notes that a queue's ready list, its jobs or its pause have changed. */
void tw__store_ready_update(struct tw__store_ready *ready, struct tw__store_queue *queue);

/* Returns the queue whose first entry is the earliest; NULL: none. */
struct tw__store_queue *tw__store_ready_first(const struct tw__store_ready *ready);

#endif
