/* SPDX-License-Identifier: MIT
 *
 * A task: one block of memory that holds its timer, its id and its payload.
 *
 *     [ timer, or place in a queue, 32 | route 4 | order 4 | flags 1 | every 8, times 8 if it repeats
 *       | id size, id | count, size, bytes ... ]
 *
 * Sizes are varints (varint.h). So a task costs 43 bytes beside its id and payload, and a byte or two for each
 * string of the payload.
 */
#ifndef TW_REDIS_TASK_H
#define TW_REDIS_TASK_H

#include <base/assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/wheel.h>

#include "memory.h"
#include "payload.h"

enum {
    TW__REDIS_TASK_REPEATS = 1, /* every and times are there */
    TW__REDIS_TASK_QUEUED = 2,  /* in a queue: that of overdue tasks, or that of its route */
    TW__REDIS_TASK_HELD = 4,    /* the queue is its route's */
    TW__REDIS_TASK_BEHIND = 8,  /* in the wheel for times that the main one has passed (see place.c) */
    TW__REDIS_TASK_TRIES = 16   /* the upper four bits count the tries that failed; see place.h */
};
enum { TW__REDIS_TRIES_MAX = 15 };

#define TW__REDIS_FOR_EVER UINT64_MAX

/* A task's place in a queue. */
struct tw__redis_parked {
    struct tw__link link;
    uint64_t due;
    uint64_t filed_ms; /* in the queue of past tasks: when it was filed */
};

struct tw__redis_task {
    union {
        struct tw_timer timer;          /* in a wheel, or nowhere: then it still carries the due time */
        struct tw__redis_parked parked; /* in a queue: TW__REDIS_TASK_QUEUED */
    };
    uint32_t route; /* index in the list of all routes */
    uint32_t order; /* when it was filed, among tasks that are due together; it may wrap */
    uint8_t flags;
    char rest[];
};

/* What a task is made of. */
struct tw__redis_task_plan {
    struct tw__redis_bytes id;
    uint64_t due;          /* Unix ms */
    uint64_t every, times; /* every 0: once; times TW__REDIS_FOR_EVER: no end */
    uint32_t tries;        /* that failed so far */
    /* The payload, in one of two forms: packed already, or `count` strings that `string` gives. */
    struct tw__redis_bytes packed;
    uint32_t count;
    struct tw__redis_bytes (*string)(void *arg, uint32_t i);
    void *arg;
};

/* A task in a block of memory of its own, filed nowhere. */
struct tw__redis_task *tw__redis_task_new(const struct tw__redis_task_plan *plan,
                                          const struct tw__redis_memory *memory);

struct tw__redis_bytes tw__redis_task_id(const struct tw__redis_task *task);
uint64_t tw__redis_task_every(const struct tw__redis_task *task);
uint64_t tw__redis_task_times(const struct tw__redis_task *task);
/* Requires: the task repeats. */
void tw__redis_task_set_times(struct tw__redis_task *task, uint64_t times);
/* The upper four bits of the flags. */
uint32_t tw__redis_task_tries(const struct tw__redis_task *task);
void tw__redis_task_set_tries(struct tw__redis_task *task, uint32_t tries);

static inline uint64_t tw__redis_task_due(const struct tw__redis_task *task)
{
    return task->flags & TW__REDIS_TASK_QUEUED ? task->parked.due : tw_timer_deadline(&task->timer);
}

/* Whether a task is filed: in a wheel or a queue. */
static inline bool tw__redis_task_filed(const struct tw__redis_task *task)
{
    return task->flags & TW__REDIS_TASK_QUEUED || tw_timer_pending(&task->timer);
}

/* Gives a task another due time. Requires: it is filed nowhere. */
static inline void tw__redis_task_set_due(struct tw__redis_task *task, uint64_t due)
{
    TW_ASSERT(!tw__redis_task_filed(task));
    tw_timer_init_at(&task->timer, due);
}

/* The task of a timer in a wheel, and that of a link in a queue. */
static inline struct tw__redis_task *tw__redis_task_of_timer(struct tw_timer *timer)
{
    return TW_CONTAINER(timer, struct tw__redis_task, timer);
}

static inline struct tw__redis_task *tw__redis_task_of_link(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__redis_task, parked.link);
}

struct tw__redis_payload tw__redis_task_payload(const struct tw__redis_task *task);
/* The payload with its sizes, as it is packed. */
struct tw__redis_bytes tw__redis_task_packed(const struct tw__redis_task *task);

#endif
