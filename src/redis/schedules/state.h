/* SPDX-License-Identifier: MIT
 *
 * Schedules, the routes of their tasks, and all that the schedules of a process share. Times and memory come
 * from outside; nothing here knows a server.
 *
 *     schedule:  id -> task                task -> route -> schedule
 *                (target, options) -> route
 *
 * A task waits in one of four places: in the wheel that all schedules share; in the queue of overdue tasks,
 * when it came due and could not be delivered yet; in the queue of past ones, when its time had passed before
 * it was filed; in the queue of its route, when its target refused it or one before it.
 *
 * A schedule is attached while it is the value of a key. Detached, it keeps its tasks, which then come due
 * without effect; a removed key's schedule is detached first and reaped later, a few tasks at a time, on the
 * server's thread.
 *
 * Everything hangs on one struct tw__redis_schedules. A schedule knows it, a route knows its schedule, and a
 * task has the number of its route: so a function that takes a task alone needs struct tw__redis_schedules
 * beside it.
 *
 * Threads: one at a time, but for tw__redis_grave_bury().
 */
#ifndef TW_REDIS_STATE_H
#define TW_REDIS_STATE_H

#include <pthread.h>

#include "table.h"
#include "task.h"
#include "vector.h"

enum tw__redis_kind { TW__REDIS_STREAM, TW__REDIS_LIST };
enum tw__redis_late { TW__REDIS_LATE_FIRE, TW__REDIS_LATE_DROP, TW__REDIS_LATE_COALESCE };

/* Where a task goes, and how. */
struct tw__redis_plan {
    uint8_t kind; /* enum tw__redis_kind */
    uint8_t late; /* enum tw__redis_late */
    uint64_t maxlen, late_ms;
    struct tw__redis_bytes target;
};

struct tw__redis_schedule;
struct tw__redis_schedules;

/* What all tasks of a schedule with the same plan share. */
struct tw__redis_route {
    struct tw__redis_schedule *schedule;
    struct tw__link queue; /* tasks held back because the target refused the first of them */
    struct tw_timer retry; /* pending while the queue waits for another try */
    struct tw__link ready; /* in the list of routes whose wait is over, while the queue gets its try */
    uint64_t wait_ms;      /* the last wait before a retry; 0: none yet */
    uint32_t waits;        /* for the target, counted; a held task's tries are told by it */
    void *target;          /* the target's name as the server wants it, made when first used */
    uint64_t tasks;        /* and one more for each tw__redis_route_keep() */
    /* Even: the TW.DRAIN that it refused last; odd: one more is the one that found its target allowed. */
    uint64_t drain;
    uint64_t chunk; /* the chunk that numbered it last, and its number there (chunk.c) */
    uint32_t number;
    uint32_t index; /* in the list of all routes */
    uint32_t key_size;
    char key[]; /* the plan, packed */
};

struct tw__redis_schedule {
    struct tw__redis_schedules *schedules;
    struct tw__redis_table tasks, routes;
    struct tw__redis_route *last;       /* the route that was used last */
    struct tw__link all;                /* in the list of attached schedules, or of detached ones */
    struct tw__redis_schedule *grave;   /* the next of those to be reaped */
    struct tw__redis_schedule *touched; /* the next of those that the present batch has touched */
    void *name;                         /* of its key, as the server wants it */
    int db;
    bool attached, in_batch, left; /* left: tasks of it, in this batch */
    bool too_large;                /* counted in the sum of these */
    uint32_t longest_route;        /* the longest key of a route that it has had */
    uint64_t queued, held;         /* tasks in the queues of overdue and past ones; in those of its routes */
    uint64_t bytes;                /* all its memory: of tasks, routes and the tables of them */
    uint64_t fired, dead;
    /* Strings, as the server wants them: those that the present batch has to replicate. */
    struct tw__redis_vector once, next;
};

/* What all schedules share. */
struct tw__redis_schedules {
    struct tw__redis_memory memory;
    void (*forget)(void *string); /* frees a string of the server's: a route's target, a schedule's name */
    struct tw__redis_table_type of_tasks, of_routes;
    struct tw__link attached, detached;
    /* The schedule that a command looked into last, or NULL: where the next will look, mostly. */
    struct tw__redis_schedule *recent;
    struct tw__redis_task *delivering; /* NULL: none, or it has been changed meanwhile */

    /* Places (place.c). */
    struct tw_wheel *wheel;   /* by the wall clock's milliseconds */
    struct tw_wheel *behind;  /* for times that `wheel` has passed because the clock was set back; else NULL */
    struct tw_wheel *retries; /* of routes, by a monotonic clock's */
    struct tw__link ready;    /* routes whose wait is over and whose queue is not empty */
    struct tw__link overdue;  /* tasks, in the order in which they came due */
    struct tw__link past;     /* tasks whose time had passed when they were filed, in the order of filing */
    uint32_t order;

    /* Sums of attached schedules (sums.c). */
    uint64_t count, pending, queued, held, bytes;
    uint64_t empty;   /* schedules without tasks: there are none but in the middle of commands, mostly */
    uint64_t reaping; /* tasks of detached ones */
    uint64_t dump_limit, too_large; /* schedules whose dump may take more than dump_limit bytes */

    struct tw__redis_route **route; /* by number; unused numbers are a list, see tw__redis_route_at() */
    uint32_t routes, route_capacity, route_free;

    uint64_t chunks, samples; /* counted, to number them (chunk.c, overview.c) */

    pthread_mutex_t graves_lock;
    struct tw__redis_schedule *graves;
};

/* The route with a number, or NULL. An unused number has, instead of one, twice the next unused number plus 1,
 * which no pointer is. */
static inline struct tw__redis_route *tw__redis_route_at(const struct tw__redis_schedules *schedules,
                                                         uint32_t i)
{
    return (uintptr_t)schedules->route[i] & 1 ? NULL : schedules->route[i];
}

static inline struct tw__redis_route *tw__redis_route_of(const struct tw__redis_schedules *schedules,
                                                         const struct tw__redis_task *task)
{
    return schedules->route[task->route];
}

static inline struct tw__redis_schedule *tw__redis_schedule_of(const struct tw__redis_schedules *schedules,
                                                               const struct tw__redis_task *task)
{
    return tw__redis_route_of(schedules, task)->schedule;
}

/* The schedule at a link of the lists of attached and of detached ones. */
static inline struct tw__redis_schedule *tw__redis_schedule_at(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__redis_schedule, all);
}

/* Whether the route has refused this TW.DRAIN, an even number, or a later one. */
static inline bool tw__redis_route_refused(const struct tw__redis_route *route, uint64_t drain)
{
    return route->drain >= drain && route->drain % 2 == 0;
}

#endif
