/* SPDX-License-Identifier: MIT
 *
 * A task: one block of memory that holds its timer, its id and its payload, unless it shares the payload.
 *
 *     [ timer, or place in a line, 32 | route 4 | order 4 | place 1 | attempt state 22 if it has one
 *       | every 8, times 8 if it repeats | id size, id | count, size, bytes ...
 *       | worker size, worker | error size, error if it has an attempt state | next if that is not due
 *       | missed periods if its call has any ]
 *
 * Sizes are varints (bytes.h). So a task costs 43 bytes besides its id and payload, and a byte or two for
 * each string of the payload. An attempt state (attempt.h) adds 24 bytes, the worker's name and the last error,
 * and a few bytes more for a leased task that did not wait for its due time before, or whose call stands for
 * further periods. In place of a payload that is shared stands its address, aligned.
 */
#ifndef TW_REDIS_TASK_H
#define TW_REDIS_TASK_H

#include <base/assert.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <tickwheel/wheel.h>

#include "attempt.h"
#include "bytes.h"

struct tw__redis_task;

/* ---- payloads -------------------------------------------------------------------------------------------- */

/* A payload is the number of its strings, then one string after the other, each with its size before it.
 * Numbers are varints. Example: the two strings "job" and "7" are the bytes 2, 3, 'j', 'o', 'b', 1, '7'.
 *
 * A payload lies in the block of its task. The payload of a series of which periods have died lies in a block
 * of its own, which the series and its dead periods share. */

/* The strings of a payload that are still to be read. */
struct tw__redis_payload {
    const char *at;
    uint32_t count;
};

/* A payload that tasks share (share.c). */
struct tw__redis_share {
    struct tw__redis_task **user; /* these tasks; the dead ones among them in the order of their deaths */
    uint32_t users, room;         /* how many there are, and for how many there is room */
    uint32_t dead;
    uint64_t dump;                        /* the last writing of the queue as chunks that came to the payload */
    const struct tw__redis_task *written; /* and the task with which it wrote the payload (chunk.c) */
    size_t size;
    char packed[];
};

/* Reads the next string. Requires: count > 0. */
struct tw__redis_bytes tw__redis_payload_next(struct tw__redis_payload *payload);
/* The bytes of all strings of a payload, without the sizes; and the bytes of the first, third, fifth ...
 * string, which are the fields in the payload of a Stream. */
uint64_t tw__redis_payload_bytes(struct tw__redis_payload payload);
uint64_t tw__redis_payload_field_bytes(struct tw__redis_payload payload);

/* Whether bytes are exactly one whole payload. */
bool tw__redis_payload_valid(struct tw__redis_bytes packed);

/* ---- tasks ----------------------------------------------------------------------------------------------- */

/* Where a task is. */
enum tw__redis_place {
    TW__REDIS_NOWHERE, /* new, or taken out */
    TW__REDIS_IN_WHEEL,
    TW__REDIS_IN_BEHIND, /* the wheel for times that the main wheel has passed (place.c) */
    TW__REDIS_IN_LEASES,
    TW__REDIS_IN_LINE,  /* of late, past or stopped tasks, or of those put aside; all lines from here on */
    TW__REDIS_IN_HELD,  /* the line of its route, which its target refuses */
    TW__REDIS_IN_READY, /* the line of ready tasks of its queue */
    TW__REDIS_IN_DEAD
};
enum { TW__REDIS_TRIES_MAX = 15, TW__REDIS_ROUTES_MAX = 1 << 29 };

/* A task's place in a line. */
struct tw__redis_parked {
    struct tw__link link;
    uint64_t due;
    /* Of a ready task: when it became so. Of a past one: when it was filed, or its due time; it keeps this time
     * in the lines to which it goes. Elsewhere 0. */
    uint64_t since_ms;
};

struct tw__redis_task {
    union {
        struct tw_timer timer;          /* in a wheel or nowhere; nowhere, it still carries the due time */
        struct tw__redis_parked parked; /* in a line */
    };
    uint32_t route : 29;      /* index in the list of all routes */
    uint32_t shares : 1;      /* its payload, with other tasks */
    uint32_t has_attempt : 1; /* has an attempt state */
    uint32_t repeats : 1;     /* has `every` and `times` */
    uint32_t order;           /* of filing, among tasks that are due at the same time; it may wrap (place.c) */
    uint8_t place : 4;        /* enum tw__redis_place */
    uint8_t tries : 4;        /* that have failed, unless the task is held (place.c) */
    char rest[];
};

/* The parts from which a task is made. */
struct tw__redis_task_plan {
    struct tw__redis_bytes id;
    uint64_t due;                            /* Unix ms */
    uint64_t every, times;                   /* every 0: once; times TW_FOREVER: no end */
    uint32_t tries;                          /* tries that have failed so far */
    const struct tw__redis_attempt *attempt; /* NULL: none */
    /* The payload, in one of three forms: shared, packed already, or `count` strings that `string` returns. */
    struct tw__redis_share *share;
    struct tw__redis_bytes packed;
    uint32_t count;
    struct tw__redis_bytes (*string)(void *arg, uint32_t i);
    void *arg;
};

/* Makes a task in a block of memory of its own, filed nowhere. */
struct tw__redis_task *tw__redis_task_new(const struct tw__redis_task_plan *plan,
                                          const struct tw__redis_memory *memory);

struct tw__redis_bytes tw__redis_task_id(const struct tw__redis_task *task);
uint64_t tw__redis_task_every(const struct tw__redis_task *task);
uint64_t tw__redis_task_times(const struct tw__redis_task *task);
/* Requires: the task repeats. */
void tw__redis_task_set_times(struct tw__redis_task *task, uint64_t times);
/* The attempt state of a task. Requires: it has one. The strings, `next` and `missed_periods` lie behind the
 * payload, and only the second function reads them. */
struct tw__redis_attempt tw__redis_task_attempt(const struct tw__redis_task *task);
struct tw__redis_attempt tw__redis_task_whole_attempt(const struct tw__redis_task *task);
/* The same or, of a task that has none, the one with which it begins. */
struct tw__redis_attempt tw__redis_task_any_attempt(const struct tw__redis_task *task);
/* The further periods for which the task's call stands; 0 before its first attempt. */
uint64_t tw__redis_task_missed_periods(const struct tw__redis_task *task);
/* The stage; FILED without an attempt state, be the task waiting or ready. */
static inline enum tw__task_stage tw__redis_task_stage(const struct tw__redis_task *task)
{
    return task->has_attempt ? tw__redis_attempt_stage(task->rest) : TW__TASK_FILED;
}

/* Whether an attempt is under way, be it that of an older task. */
static inline bool tw__redis_task_is_leased(const struct tw__redis_task *task)
{
    return tw__task_stage_is_leased(tw__redis_task_stage(task));
}

/* Changes the attempt state in place, all but its strings, `next` and `missed_periods`. Requires: the task has
 * an attempt state. */
void tw__redis_task_set_attempt(struct tw__redis_task *task, const struct tw__redis_attempt *attempt);
/* Makes a copy of the task, in a block of its own, with another attempt state, or with none if `attempt` is
 * NULL. The copy begins with the same bytes: the caller corrects what points at the old block, as after any
 * move. The strings of `attempt` may lie in the task itself. */
struct tw__redis_task *tw__redis_task_with_attempt(const struct tw__redis_task *task,
                                                   const struct tw__redis_attempt *attempt,
                                                   const struct tw__redis_memory *memory);

/* Makes a copy of the task in the same way, with a payload that it shares. */
struct tw__redis_task *tw__redis_task_sharing(const struct tw__redis_task *task, struct tw__redis_share *share,
                                              const struct tw__redis_memory *memory);

/* Makes a copy of the task in the same way, with the payload, `every` and `times` of another task, which has a
 * payload of its own. The attempt state stays, but a task that repeats no more stands for no further
 * periods. */
struct tw__redis_task *tw__redis_task_renewed(const struct tw__redis_task *task,
                                              const struct tw__redis_task *other,
                                              const struct tw__redis_memory *memory);

/* Whether a task is in a line, and not in a wheel or nowhere. */
static inline bool tw__redis_task_in_line(const struct tw__redis_task *task)
{
    return task->place >= TW__REDIS_IN_LINE;
}

/* The time for which the task is filed: its due time, or the time of its next attempt, of its death. The end of
 * a lease is this time only while the task is not in the wheel of leases: tw__redis_place_due(). */
static inline uint64_t tw__redis_task_due(const struct tw__redis_task *task)
{
    return tw__redis_task_in_line(task) ? task->parked.due : tw_timer_deadline(&task->timer);
}

/* The due time that its user has given the task. */
static inline uint64_t tw__redis_task_first_due(const struct tw__redis_task *task)
{
    return task->has_attempt ? tw__redis_task_attempt(task).due : tw__redis_task_due(task);
}

/* Whether a task waits for a time: it is not ready, not leased and not dead. */
static inline bool tw__redis_task_waits(const struct tw__redis_task *task)
{
    return task->place != TW__REDIS_IN_READY && tw__redis_task_stage(task) == TW__TASK_FILED;
}

/* Whether a task is filed: in a wheel or a line. */
static inline bool tw__redis_task_filed(const struct tw__redis_task *task)
{
    return task->place != TW__REDIS_NOWHERE;
}

/* Gives a task another due time. Requires: the task is filed nowhere. */
static inline void tw__redis_task_set_due(struct tw__redis_task *task, uint64_t due)
{
    TW_ASSERT(!tw__redis_task_filed(task));
    tw_timer_init_at(&task->timer, due);
}

/* The task of a timer in a wheel, and the task of a link in a line. */
static inline struct tw__redis_task *tw__redis_task_of_timer(struct tw_timer *timer)
{
    return TW_CONTAINER(timer, struct tw__redis_task, timer);
}

static inline struct tw__redis_task *tw__redis_task_of_link(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__redis_task, parked.link);
}

struct tw__redis_payload tw__redis_task_payload(const struct tw__redis_task *task);
/* The payload in its packed form, with its sizes. */
struct tw__redis_bytes tw__redis_task_packed(const struct tw__redis_task *task);
/* The payload that the task shares; NULL if it has one of its own. */
struct tw__redis_share *tw__redis_task_share(const struct tw__redis_task *task);
/* Corrects the address of a shared payload whose block has been moved. Requires: the task shares it. */
void tw__redis_task_set_share(struct tw__redis_task *task, struct tw__redis_share *share);
/* The memory of a task with its payload, be it shared or not. */
size_t tw__redis_task_bytes(const struct tw__redis_task *task, const struct tw__redis_memory *memory);

#endif
