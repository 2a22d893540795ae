/* SPDX-License-Identifier: MIT
 *
 * Queues, the routes of their tasks, and the state that all queues of a process share. The caller
 * passes in the time and the functions for memory; nothing here knows a server.
 *
 *     queue:  id -> task                   task -> route -> queue
 *             (target, options) -> route
 *
 * A task waits in one of these places:
 *   - the wheel that all queues share: for its due time or its next attempt;
 *   - the wheel of leases: for the end of its lease;
 *   - the line of late tasks, if the task became due and could not be delivered yet;
 *   - the line of past tasks, if its time had passed before it was filed;
 *   - the line of its route, if the target refused this task, or a task before it;
 *   - the line of its queue for stopped tasks, if it became due while the queue was paused;
 *   - the line of its queue for ready tasks, if it has no target: workers take it from there;
 *   - the line of its queue for dead tasks, if its last try or attempt has failed.
 *
 * A queue is attached while it is the value of a key. A detached queue keeps its tasks, which then
 * expire without effect. When a key is removed, its queue is first detached, and reaped later: the
 * server's thread frees a few tasks at a time.
 *
 * All state hangs on one struct tw__redis_queues. A queue points to that struct, a route points to its
 * queue, and a task holds the number of its route. So a function that starts from a task alone needs
 * struct tw__redis_queues to find the task's route and queue.
 *
 * Threads: one at a time, except that any thread may call tw__redis_reaper_add().
 */
#ifndef TW_REDIS_STATE_H
#define TW_REDIS_STATE_H

#include <pthread.h>
#include <task/words.h>

#include "bytes.h"
#include "table.h"
#include "task.h"

/* What a task's target is. A task with the kind WORKERS has no target: workers take it from its queue. */
enum tw__redis_kind { TW__REDIS_STREAM, TW__REDIS_LIST, TW__REDIS_LIST_LEFT, TW__REDIS_WORKERS };

/* How often and when an attempt that failed is made again, as its caller has said (task/backoff.h). */
struct tw__redis_retry {
    uint64_t first_ms, max_ms; /* first_ms 0: the waits are as the settings say */
    uint32_t tries;            /* 0: as the settings say */
    uint32_t factor_percent;   /* of a wait to the wait before it */
    uint32_t jitter;           /* percent; TW__REDIS_JITTER_OPEN: as the settings say */
};
enum { TW__REDIS_JITTER_OPEN = 101 };

/* Where a task goes, and how. */
struct tw__redis_plan {
    uint8_t kind;   /* enum tw__redis_kind */
    uint8_t missed; /* enum tw_missed */
    uint64_t maxlen;
    uint64_t max_late_ms; /* TW_FOREVER: no limit */
    struct tw__redis_retry retry;
    struct tw__redis_bytes target;
};

struct tw__redis_queue;
struct tw__redis_queues;

/* What has happened to tasks, by the names of docs/contract.md. */
enum tw__redis_count {
    TW__REDIS_DELIVERED,
    TW__REDIS_DONE,
    TW__REDIS_FAILED,
    TW__REDIS_LAPSED,
    TW__REDIS_BACK,
    TW__REDIS_DIED,
    TW__REDIS_DROPPED,
    TW__REDIS_SKIPPED,
    TW__REDIS_COALESCED,
    TW__REDIS_REPLACED, /* puts and sends */
    TW__REDIS_TAKEN,    /* behind those that an outcome counts (struct tw__task_tally) */
    TW__REDIS_COUNTS
};

/* Shared by all tasks of a queue that have the same plan. */
struct tw__redis_route {
    struct tw__redis_queue *queue;
    struct tw__link line;  /* tasks held back because the target refused the first of them */
    struct tw_timer retry; /* pending while the line waits for another try */
    struct tw__link ready; /* in the list of routes whose wait is over, while the line gets its try */
    uint64_t wait_ms;      /* the last wait before a retry; 0: none yet */
    uint64_t next_try_ms;  /* of the target, by the steady clock (place.c); as it was set with the last retry */
    uint32_t waits;        /* counts the waits for the target; gives the tries of a held task (place.c) */
    void *target;          /* the target's name as a string of the server's, made on first use */
    uint64_t tasks;        /* calls of tw__redis_route_keep(): one for each task, one while a chunk is read */
    uint64_t chunk;        /* the chunk that numbered it last, and its number there (chunk.c) */
    uint32_t number;
    uint32_t index; /* in the list of all routes */
    uint32_t key_size;
    char key[]; /* the plan, packed */
};

struct tw__redis_queue {
    struct tw__redis_queues *queues;
    struct tw__redis_table tasks, routes;
    struct tw__redis_route *last;    /* the route that was used last */
    struct tw__link all;             /* in the list of attached queues, or of detached ones */
    struct tw__redis_queue *reaped;  /* the next queue to be reaped */
    struct tw__redis_queue *touched; /* the next queue that the present batch has touched */
    void *name;                      /* of its key, as a string of the server's */
    int db;
    bool attached, in_batch;
    uint8_t tells;                        /* what has happened to its tasks in this batch (batch.h) */
    bool too_large;                       /* the queue counts in the sum `too_large` */
    bool paused;                          /* its due tasks wait, and nobody may take one */
    uint32_t longest_route;               /* the longest key of a route that this queue has had */
    struct tw__link stopped, ready, dead; /* lines of its tasks (place.c) */
    struct tw__redis_task *back; /* the ready task that was given back last, or one before it; or NULL */
    struct tw__link awake;       /* in the list of queues whose blocked workers can be served */
    struct tw_timer death;       /* for the time at which its first dead task died */
    struct tw__link stale;       /* in the list of queues whose first dead task may have to go */
    uint64_t in_line, held;      /* waiting tasks that are late, past or stopped; in its routes' lines */
    uint64_t ready_count, leased_count, dead_count;
    uint64_t bytes;      /* all memory of this queue: its tasks, their shared payloads, its routes, tables */
    uint64_t dead_bytes; /* of them those of dead tasks, and of payloads that dead tasks share */
    uint64_t counts[TW__REDIS_COUNTS]; /* since it was made or loaded */
    /* Strings of the server's, and changes (change.h), which the present batch has to replicate. */
    struct tw__redis_vector once, next;
    struct tw__redis_buffer changes;
};

/* The state that all queues share. */
struct tw__redis_queues {
    struct tw__redis_memory memory;
    void (*forget)(void *string); /* frees a string of the server's: a route's target, a queue's name */
    struct tw__redis_table_type of_tasks, of_routes;
    struct tw__link attached, detached; /* of the attached queues, the paused ones come first */
    /* The queue that the last command looked into, or NULL. The next command mostly looks there again. */
    struct tw__redis_queue *recent;
    struct tw__redis_task *delivering; /* NULL: no task, or it was removed, replaced or filed anew meanwhile */
    /* Places (place.c). */
    struct tw_wheel *wheel;   /* by the wall clock's milliseconds */
    struct tw_wheel *behind;  /* for times that `wheel` has passed because the clock was set back; else NULL */
    struct tw_wheel *leases;  /* by the steady clock's: the wall clock's, minus `set_ms` */
    struct tw_wheel *retries; /* of routes, by a monotonic clock's */
    struct tw_wheel *deaths;  /* of queues, by the wall clock's: when their first dead tasks died */
    int64_t set_ms;           /* by how much the wall clock has been set since the start */
    struct tw__link ready;    /* routes whose wait is over and whose line is not empty */
    struct tw__link awake;    /* queues that have ready tasks which blocked workers may not have seen */
    struct tw__link stale;    /* queues whose first dead task may have to go */
    struct tw__link late;     /* tasks, in the order in which they came due */
    struct tw__link past;     /* tasks whose time had passed when they were filed, in the order of filing */
    uint64_t lined_ms;        /* no task in these lines, or in `stopped` ones, is due later (place.c) */
    uint64_t late_since_ms;   /* of the task that was taken last: tw__redis_place_late_since() */
    struct tw__link aside;    /* tasks with targets that come before `late`, but wait for memory */
    uint32_t order;           /* the next number that a task gets */
    uint32_t here;            /* the first one since this server became a primary with these tasks (place.c) */

    /* Sums of attached queues (sums.c). */
    uint64_t count, tasks, in_line, held, ready_count, leased_count, dead_count, bytes, dead_bytes;
    uint64_t paused, stopped;       /* queues that are paused; their tasks in line */
    uint64_t empty;                 /* queues that are to be removed: without tasks, and not paused */
    uint64_t reaping;               /* tasks of detached queues */
    uint64_t dump_limit, too_large; /* queues whose dump may take more than dump_limit bytes */
    uint64_t dead_limit;            /* a queue with more dead tasks is in the list `stale`; 0: no limit */

    struct tw__redis_route **route; /* by number; unused numbers are a list, see tw__redis_route_at() */
    uint32_t routes, route_capacity, route_free;

    uint64_t counts[TW__REDIS_COUNTS]; /* of all queues, since the start */
    uint64_t dumps, chunks, samples;   /* counted, to number them (chunk.c, overview.c) */

    pthread_mutex_t to_reap_lock;
    struct tw__redis_queue *to_reap;
};

/* Counts for a queue and for all queues. */
static inline void tw__redis_count(struct tw__redis_queue *queue, enum tw__redis_count what, uint64_t number)
{
    queue->counts[what] += number;
    queue->queues->counts[what] += number;
}

/* The route with a number, or NULL. The entry of an unused number holds twice the next unused number plus 1,
 * which no pointer is. */
static inline struct tw__redis_route *tw__redis_route_at(const struct tw__redis_queues *queues, uint32_t i)
{
    return (uintptr_t)queues->route[i] & 1 ? NULL : queues->route[i];
}

static inline struct tw__redis_route *tw__redis_route_of(const struct tw__redis_queues *queues,
                                                         const struct tw__redis_task *task)
{
    return queues->route[task->route];
}

static inline struct tw__redis_queue *tw__redis_queue_of(const struct tw__redis_queues *queues,
                                                         const struct tw__redis_task *task)
{
    return tw__redis_route_of(queues, task)->queue;
}

/* The queue at a link in the list of attached or of detached queues. */
static inline struct tw__redis_queue *tw__redis_queue_at(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__redis_queue, all);
}

#endif
