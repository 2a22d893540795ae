/* SPDX-License-Identifier: MIT
 *
 * Schedules, the routes of their tasks, and where tasks wait. Free of Redis: times and memory come from outside.
 *
 *     schedule:  id -> task                task -> route -> schedule
 *                (target, options) -> route
 *
 * A task waits in one of four places: in the wheel that all schedules share; in the queue of overdue tasks, when it came
 * due and could not be delivered yet; in the queue of late ones, when its time had passed before it was filed; in the queue
 * of its route, when its target refused it or one before it.
 *
 * A schedule is attached while it is the value of a key. Detached, it keeps its tasks, which then come due without
 * effect; a removed key's schedule is detached first and reaped later, a few tasks at a time, on the server's thread.
 */
#ifndef TW_REDIS_SCHEDULE_H
#define TW_REDIS_SCHEDULE_H

#include "table.h"
#include "task.h"

enum tw__kind { TW__STREAM, TW__LIST };
enum tw__late { TW__LATE_FIRE, TW__LATE_DROP, TW__LATE_COALESCE };

/* Where a task goes, and how. */
struct tw__plan {
    uint8_t kind; /* enum tw__kind */
    uint8_t late; /* enum tw__late */
    uint64_t maxlen, late_ms;
    struct tw__bytes target;
};

struct tw__schedule;

/* What all tasks of a schedule with the same plan share. */
struct tw__route {
    struct tw__schedule *schedule;
    struct tw__link queue; /* tasks held back because the target refused the first of them */
    struct tw_timer retry; /* pending while the queue waits for another try */
    struct tw__link turn;  /* in the list of routes whose wait is over, while the queue gets its try */
    uint64_t wait_ms;      /* the last wait before a retry; 0: none yet */
    uint32_t waits;        /* for the target, counted; a held task's tries are told by it */
    void *target; /* the target's name as the server wants it, made when first used; see forget_target */
    uint64_t tasks;
    uint64_t
        drain; /* even: the TW.DRAIN that it refused last; odd: one more is the one that found its target allowed */
    uint64_t chunk; /* the chunk that numbered it last, and its number there (chunk.c) */
    uint32_t number;
    uint32_t index; /* in the list of all routes */
    uint32_t key_size;
    char key[]; /* the plan, packed */
};

/* Pointers, gathered one by one in a block of tw__memory, which who gathers them frees. */
struct tw__vector {
    void **at;
    size_t count, capacity;
};
void tw__vector_add(struct tw__vector *vector, void *pointer);

struct tw__schedule {
    struct tw__table tasks, routes;
    struct tw__route *last;       /* the route that was used last */
    struct tw__link all;          /* in the list of attached schedules, or of detached ones */
    struct tw__schedule *grave;   /* the next of those to be reaped */
    struct tw__schedule *touched; /* the next of those that the present batch has touched */
    void *name;                   /* of its key, as the server wants it */
    int db;
    bool attached, in_batch, left; /* left: tasks of it, in this batch */
    bool too_large;                /* counted in tw__all.too_large */
    uint32_t longest_route;        /* the longest key of a route that it has had */
    uint64_t queued, held;         /* tasks in the queues of overdue and late ones; in those of its routes */
    uint64_t bytes;                /* all its memory: of tasks, routes and the tables of them */
    uint64_t fired, dead;
    struct tw__vector once,
        next; /* strings, as the server wants them: what the present batch has to replicate */
};

/* What all schedules share. */
struct tw__all {
    struct tw_wheel *wheel;
    struct tw_wheel *behind;  /* for times that `wheel` has passed because the clock was set back; else NULL */
    struct tw_wheel *retries; /* of routes, by a monotonic clock */
    struct tw__link turns;    /* routes whose wait is over and whose queue is not empty */
    struct tw__task *turn;    /* what was taken from such a queue last */
    struct tw__link overdue;  /* tasks, in the order in which they came due */
    struct tw__link late;     /* tasks that were overdue when they were filed, in that order */
    struct tw__link attached, detached;
    uint64_t schedules, pending, queued, held, bytes; /* of attached schedules */
    uint64_t empty; /* attached schedules without tasks: there are none but in the middle of commands, mostly */
    uint64_t reaping;               /* tasks of detached ones */
    uint64_t dump_limit, too_large; /* attached schedules whose dump may take more than dump_limit bytes */
    struct tw__route **route;       /* by number; unused numbers are a list, see tw__route_at() */
    uint32_t routes, route_capacity, route_free;
    uint32_t order;
    struct tw__schedule
        *recent; /* the one that a command looked into last, or NULL: where the next will look, mostly */
    struct tw__task *delivering; /* NULL: none, or it has been changed meanwhile */
    void (*forget_target)(void *target);
};
extern struct tw__all tw__all;

/* Makes the wheels: that of tasks counts the wall clock's milliseconds, that of retries a monotonic clock's. Returns 0 or
 * -1: no memory. */
int tw__all_start(uint64_t now_ms, uint64_t monotonic_ms);

/* ---- circular lists, whose head is a link too ---------------------------------------------------------------- */

static inline void tw__link_before(struct tw__link *link, struct tw__link *next)
{
    link->prev = next->prev;
    link->next = next;
    next->prev->next = link;
    next->prev = link;
}

static inline void tw__link_out(struct tw__link *link)
{
    link->prev->next = link->next;
    link->next->prev = link->prev;
    link->next = link->prev = NULL;
}

/* ---- schedules -------------------------------------------------------------------------------------------- */

/* An empty, detached schedule. */
struct tw__schedule *tw__schedule_new(void);
/* It is the value of a key, or will be: its tasks count, and come due. */
void tw__schedule_attach(struct tw__schedule *schedule);
/* And no longer. */
void tw__schedule_detach(struct tw__schedule *schedule);
/* Hands a schedule over to be reaped. Threads: any, when it is detached. */
void tw__schedule_bury(struct tw__schedule *schedule);
/* Frees up to `limit` tasks of buried schedules, and those that have none. Returns how many were freed. */
uint64_t tw__schedule_reap(uint64_t limit);
/* Frees all that are buried. */
void tw__schedule_reap_all(void);
bool tw__schedule_reaping(void);
/* The schedule at a place of the lists of attached and of detached ones. */
static inline struct tw__schedule *tw__schedule_at(struct tw__link *link)
{
    return TW_CONTAINER(link, struct tw__schedule, all);
}

/* What it takes in memory. */
size_t tw__schedule_bytes(const struct tw__schedule *schedule);

/* A chunk (chunk.h) of a snapshot or of DUMP has at most so many tasks, and ends behind the task that makes it so large. */
enum { TW__CHUNK_TASKS = 512, TW__CHUNK_BYTES = 64 * 1024 };
/* How many bytes a snapshot or DUMP takes for the schedule at most. It looks at no task, but at the memory that the
 * schedule holds: for payloads of 100 bytes and more that do not compress, the answer is a hundredth to a third too high,
 * as an allocator rounds up; for smaller ones up to three quarters. Requires: few tasks are due a year after the task
 * before. */
uint64_t tw__schedule_dump_most(const struct tw__schedule *schedule);
/* From now on `tw__all.too_large` counts the attached schedules whose dump may take more than `bytes`. Cost: a look at
 * each attached schedule, if that is another limit than before. */
void tw__schedules_limit_dump(uint64_t bytes);

/* Finding a task takes three fetches from memory, each after the other. A command tells beforehand which id it will look
 * for, does something else, and tells once more: if it turns out to mean the same schedule as the last one, what it needs is
 * there. Returns the hash of the id. */
uint64_t tw__foresee(struct tw__bytes id);
void tw__foresee_task(uint64_t hash);

struct tw__task *tw__schedule_find(const struct tw__schedule *schedule, uint64_t hash, struct tw__bytes id);
/* The route of a plan, made if need be. */
struct tw__route *tw__schedule_route(struct tw__schedule *schedule, const struct tw__plan *plan);
/* Lets go of a route whose `tasks` was raised by one to keep it. */
void tw__schedule_route_unused(struct tw__route *route);
/* How many have tasks. */
uint64_t tw__schedule_routes(const struct tw__schedule *schedule);
/* Puts a task in and files it; `old`, if not NULL, is the one with this id, which it replaces. */
void tw__schedule_put(struct tw__schedule *schedule, struct tw__task *task, struct tw__route *route,
                      uint64_t hash, struct tw__task *old, uint64_t now_ms);
/* Takes a task out, wherever it is filed, and frees it. */
void tw__schedule_remove(struct tw__schedule *schedule, struct tw__task *task, uint64_t hash);
/* The task's block has been moved: `old` is where it was. */
void tw__schedule_moved(struct tw__schedule *schedule, const struct tw__task *old, struct tw__task *task);
/* For defragmentation: tw__table_relocate() of the table of tasks. */
bool tw__schedule_relocate(struct tw__schedule *schedule, uint64_t *segment, void *(*move)(void *old));

/* The route with a number, or NULL. An unused number's place holds twice the next unused one, plus 1, which no pointer is. */
static inline struct tw__route *tw__route_at(uint32_t i)
{
    return (uintptr_t)tw__all.route[i] & 1 ? NULL : tw__all.route[i];
}

static inline struct tw__route *tw__route_of(const struct tw__task *task)
{
    return tw__all.route[task->route];
}

static inline struct tw__schedule *tw__schedule_of(const struct tw__task *task)
{
    return tw__route_of(task)->schedule;
}

/* Whether the route has refused this TW.DRAIN, an even number, or a later one. */
static inline bool tw__route_refused(const struct tw__route *route, uint64_t drain)
{
    return route->drain >= drain && route->drain % 2 == 0;
}

struct tw__plan tw__route_plan(const struct tw__route *route);

/* ---- filing ------------------------------------------------------------------------------------------------ */

/* Files a task that is filed nowhere. */
void tw__file(struct tw__task *task, uint64_t due_ms, uint64_t now_ms);
/* Takes it out of where it is filed. */
void tw__unfile(struct tw__task *task);
/* Fetches what lies beside a task that will be unfiled or filed elsewhere. */
void tw__foresee_unfile(const struct tw__task *task);
/* Gives it another time. */
void tw__refile(struct tw__task *task, uint64_t due_ms, uint64_t now_ms);
/* Puts a task that was taken out back to where it was taken from. */
void tw__put_back(struct tw__task *task);
/* Whether others for the same target are held, so that this task has to wait behind them, unless it is its turn. */
bool tw__is_behind(const struct tw__task *task);
/* Whether tasks wait that could be delivered now. */
bool tw__any_waiting(void);
/* Puts it at the end of its route's queue. */
void tw__hold(struct tw__task *task);
/* Puts it before all in its route's queue, which then waits until `retry_ms` on the monotonic clock. */
void tw__hold_first(struct tw__task *task, uint64_t retry_ms);
/* A route's wait is over: the first of its queue is what tw__take() gives next, and then the others. */
void tw__give_turn(struct tw__route *route);
/* Its queue is empty: it waits for nothing. */
void tw__route_rests(struct tw__route *route);
/* Tries to deliver a task that failed. A wait for the target counts for all that are held by it. */
uint32_t tw__tries(const struct tw__task *task);
/* Puts a task into the queue of overdue ones. */
void tw__file_overdue(struct tw__task *task);

enum tw__taken { TW__TAKEN_NONE, TW__TAKEN_TASK, TW__TAKEN_MORE };
/* Takes the task out that is due next at `now_ms`, of the wheel or, if `queued`, of the queues. TW__TAKEN_MORE: the budget is
 * used up. Detached schedules' tasks are passed over. */
enum tw__taken tw__take(uint64_t now_ms, bool queued, uint32_t *budget, struct tw__task **task);
/* Makes one queue of overdue and late tasks, in the order of their times. */
void tw__sort_overdue(void);
/* When tasks come due next, or the wheel has work of its own; TW_NEVER if it is empty; overdue tasks apart. */
uint64_t tw__next_work(void);
/* Gets ready for a clock that was set back to `now_ms`. */
void tw__clock_back(uint64_t now_ms);

/* ---- looking ------------------------------------------------------------------------------------------------- */

/* Overdue tasks of all attached schedules, and the earliest due time among them, TW_NEVER if there are none. */
uint64_t tw__overdue(uint64_t now_ms, uint64_t *oldest);

/* Which tasks of a schedule are looked for. */
struct tw__wanted {
    uint64_t from, to;      /* from <= due <= to */
    struct tw__task *after; /* if not NULL: in the order of delivery behind this one */
    uint64_t drain; /* if not 0: no held tasks, and none whose route refused this TW.DRAIN or a later one */
};

/* Up to `limit` of the tasks that are wanted, in the order of delivery, into `task`. Returns how many. Cost: a look at the
 * tasks of all schedules that are due before the last one, or at all tasks of this schedule, whichever are fewer. */
size_t tw__schedule_wanted(const struct tw__schedule *schedule, const struct tw__wanted *wanted,
                           uint64_t now_ms, size_t limit, struct tw__task **task);
/* The same of the tasks with from <= due <= to. */
size_t tw__schedule_earliest(const struct tw__schedule *schedule, uint64_t from, uint64_t to, uint64_t now_ms,
                             size_t limit, struct tw__task **task);

/* Counts a schedule's tasks that are due up to now_ms + step * count, by step. */
void tw__schedule_forecast(const struct tw__schedule *schedule, uint64_t now_ms, uint64_t step, size_t count,
                           uint64_t *counts);

/* The same for the tasks of all schedules; what waits in a queue counts in the first step. Returns whether the counts are
 * exact; if not, they are estimated from a sample (overview.c). */
bool tw__overview_forecast(uint64_t now_ms, uint64_t step, size_t count, uint64_t *counts);

/* Up to `limit` of the attached schedules that have most tasks, most first. Returns how many. */
size_t tw__overview_largest(const struct tw__schedule **largest, size_t limit);

/* All tasks of a schedule in order, in a block from tw__memory. NULL: there are none. */
struct tw__task **tw__schedule_sorted(const struct tw__schedule *schedule);

#endif
