/* SPDX-License-Identifier: MIT
 *
 * tickwheel/sched.h - a scheduler: run a function later, once or again and again, from any thread.
 *
 * Conventions, stated once
 *   Time      Nanoseconds in a uint64_t, on the scheduler's own clock: tw_sched_now(). `_after` counts from the
 *             call, `_at` is a point on that clock. Sums saturate; a task due at the end of time (UINT64_MAX)
 *             never runs.
 *   Due       A task never runs before its due time, and is due at the latest one tick after it. Tasks due on
 *             different ticks start in that order, those of one tick in the order in which they were added;
 *             with more than one shard, those that one thread added. Workers take tasks in this order, and run
 *             them side by side; with more than one shard, shard by shard.
 *   Threads   Every call may come from any thread and from inside a callback, except where a label says
 *             otherwise. No lock is held while a callback runs. A task never runs on two threads at once.
 *   Ids       64 bits, never 0, never used twice: a stale id finds nothing.
 *   NULL      Never a valid argument, except where a label says so. An id may be any number.
 *   Requires  A duty of the caller that no return code reports. A library compiled with TICKWHEEL_DEBUG 1
 *             asserts it; docs/guide.md lists the duties that no assertion can see, and why.
 *   Errors    0 or a negative TW_E* code (wheel.h has the texts); a call that fails has changed nothing.
 *   Fork      Every call requires that this process made the scheduler: a child of fork() must not use a
 *             scheduler of its parent, and must not free it.
 */
#ifndef TICKWHEEL_SCHED_H
#define TICKWHEEL_SCHED_H

#include <tickwheel/duration.h>
#include <tickwheel/wheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scheduler. What is in it is known to the library alone. */
struct tw_sched;
struct tw_task;

/* ---- options ------------------------------------------------------------------------------------------- */

/* The clock that due times are on. With a virtual clock tw_sched_advance() runs the due tasks itself, so
 * `workers` must be 0: with workers tw_sched_new() and tw_sched_check() answer TW_EINVAL. */
enum tw_sched_clock {
    TW_SCHED_BOOTTIME,  /* time since boot, sleep of the machine included */
    TW_SCHED_MONOTONIC, /* the same without the sleep */
    TW_SCHED_VIRTUAL    /* stands still until tw_sched_advance() moves it; for tests and simulations */
};

/* A callback. It may add tasks, cancel or move itself and others, and stop the scheduler.
 * Requires: it neither frees nor advances its scheduler. */
typedef void tw_task_fn(struct tw_sched *sched, const struct tw_task *task);

/* Hands a due task to the caller's own threads, any of which then calls tw_sched_run(sched, id), once, or, for
 * whatever was handed over so far, tw_sched_run_some(). May be called from the timer thread, without a lock
 * held. Requires: it does not block. */
typedef void tw_execute_fn(void *arg, struct tw_sched *sched, uint64_t id);

/* A source of memory: `old` NULL asks for `size` bytes, aligned as malloc's are, and NULL in return says that
 * there are none; `old` not NULL gives that block of `size` bytes back. Called under a lock. Requires: it does
 * not call the scheduler. */
typedef void *tw_memory_fn(void *arg, void *old, size_t size);

/* Told about a callback that started late or ran long. Called on the thread of the callback, after it and as
 * part of it: what a callback may not do, it may not either. */
typedef void tw_slow_fn(void *arg, const struct tw_task *task, uint64_t ns);

/* Takes the argument of a task back, once, when nothing will use it any more: the last callback has returned,
 * the task was cancelled, its key removed or set anew, or it was drained or stopped and `hand` has seen it. No
 * lock is held. It is part of the callback, where there is one: what has waited for that, or for a stop, finds
 * it done. Else it is part of the call that ended the task: done when that returns on its thread, while others,
 * which find the task gone, do not wait for it. */
typedef void tw_release_fn(void *arg, void *value);

/* All zero is the default. */
struct tw_sched_options {
    uint64_t tick_ns;                   /* 1,000 to 3,600,000,000,000; 0: 1,000,000 (a millisecond) */
    const struct tw_geometry *geometry; /* NULL: TW_DEFAULT; in ticks; copied */
    uint32_t shards;        /* wheels with a lock each, 1 to 64; 0: 1. More let more threads add at once */
    uint32_t workers;       /* threads for callbacks, 0 to 1,024; 0: they run on the timer thread */
    tw_execute_fn *execute; /* not NULL: callbacks run where this brings them, and workers must be 0 */
    void *execute_arg;
    uint64_t max_pending; /* tasks pending at once; 0: no limit but memory (2^25 a shard) */
    enum tw_sched_clock clock;
    uint64_t start_ns;    /* TW_SCHED_VIRTUAL: where the clock starts */
    tw_memory_fn *memory; /* NULL: malloc and free */
    void *memory_arg;
    uint64_t late_ns; /* on_late is told of callbacks that start more than this after they were due */
    tw_slow_fn *on_late;
    uint64_t slow_ns; /* on_slow is told of callbacks that run longer than this */
    tw_slow_fn *on_slow;
    void *hook_arg;
    /* NULL: the caller frees arguments. Else the hook gets every one of them, also those that `old` and `value`
     * tell. */
    tw_release_fn *release;
    tw_task_fn *release_of; /* not NULL: only the arguments of tasks with this function are released */
};

/* Says whether options are valid and, if not, which value is wrong and what it may be. `message` receives at
 * most `size` bytes, always terminated. Requires: `message` is not NULL, or `size` is 0. Returns: 0, TW_EINVAL
 * or TW_EGEOMETRY. */
int tw_sched_check(const struct tw_sched_options *options, char *message, size_t size);

/* ---- life ---------------------------------------------------------------------------------------------- */

/* Makes a scheduler; its threads start with the first task. `options` may be NULL: all defaults.
 * Returns: 0, and the scheduler in *sched; TW_EINVAL; TW_EGEOMETRY; TW_ENOMEM; TW_ESYSTEM. */
int tw_sched_new(struct tw_sched **sched, const struct tw_sched_options *options);

/* Stops it (what is pending is dropped), waits for running callbacks, ends the threads and frees everything.
 * `sched` may be NULL. Requires: no other call is under way, but for those of running callbacks, and none comes
 * later. In callback: no, and not in a hook or a `hand` either. */
void tw_sched_free(struct tw_sched *sched);

/* The time on the scheduler's clock. */
uint64_t tw_sched_now(const struct tw_sched *sched);

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* As many calls as there is time for: the `times` of a repeating task, and what is `left` of it. */
#define TW_FOREVER UINT64_MAX

/* What becomes of periods that went by unserved, because the machine slept or callbacks were slow. The phase is
 * kept in any case: due times stay at first + n * period. */
enum tw_missed {
    TW_MISSED_BURST,   /* each is made up for, one after the other */
    TW_MISSED_SKIP,    /* none is: the next call is at the next period that lies ahead */
    TW_MISSED_COALESCE /* one call at once stands for all; `missed` tells how many besides itself */
};

/* A task, as its callback sees it, or whoever is handed it back. Valid during that call. */
struct tw_task {
    uint64_t id;
    tw_task_fn *fn;
    void *arg;          /* what was given with it; the value of a keyed task */
    uint64_t due_ns;    /* when it is, or was, due */
    uint64_t late_ns;   /* in its callback: how long after that the callback started */
    uint64_t period_ns; /* 0: it runs once */
    uint64_t left;      /* calls that follow the one under way or, while it waits, the next one; TW_FOREVER */
    uint64_t missed;    /* TW_MISSED_COALESCE: periods that this call stands for besides its own */
    enum tw_missed policy;
    const void *key; /* NULL: it has none */
    size_t key_size;
};

/* Runs fn(sched, task) once, `delay_ns` from now. *id, unless NULL, receives the id before the task can run.
 * Returns: 0; TW_EFULL (max_pending); TW_ENOMEM; TW_ESTOPPED; TW_ERANGE (a geometry that refuses); TW_ESYSTEM
 * (a thread could not be started). Cost: O(1). */
int tw_sched_after(struct tw_sched *sched, uint64_t delay_ns, tw_task_fn *fn, void *arg, uint64_t *id);

/* The same, at a point in time; one that has passed means at once. */
int tw_sched_at(struct tw_sched *sched, uint64_t due_ns, tw_task_fn *fn, void *arg, uint64_t *id);

/* When a repeating task runs. */
struct tw_every {
    uint64_t first_ns;  /* delay of the first call */
    uint64_t at_ns;     /* or, unless 0, its point in time; first_ns does not count then */
    uint64_t period_ns; /* at least the tick */
    uint64_t times;     /* calls in all, however many periods are missed; 0 or TW_FOREVER: no end */
    enum tw_missed missed;
};

/* Runs fn again and again. A call starts when the one before has returned.
 * Returns: as tw_sched_after(); TW_EINVAL: the period is shorter than a tick, or `missed` is none of the
 * three. */
int tw_sched_every(struct tw_sched *sched, const struct tw_every *every, tw_task_fn *fn, void *arg,
                   uint64_t *id);

/* Makes room: until room for n more unkeyed tasks is used up, adding one cannot return TW_ENOMEM, but for a
 * geometry that grows, whose levels are not made beforehand. Returns: 0; TW_ENOMEM, and what room could be made
 * stays. Cost: O(n); 64 bytes a task, 112 for repeating ones. */
int tw_sched_reserve(struct tw_sched *sched, uint64_t n);

/* What cancelling has come to. */
enum tw_cancelled {
    TW_CANCELLED, /* it will not run, and the scheduler has let go of its argument */
    TW_RUNNING,   /* its callback is under way; if it repeats, this was the last call */
    TW_GONE       /* no such task: it has run, was cancelled, or never was */
};

/* Cancels a task. Cost: O(1); its memory is free for another at once. */
enum tw_cancelled tw_sched_cancel(struct tw_sched *sched, uint64_t id);

/* Cancels a task and, if its callback is under way, waits until that has returned; then the argument is the
 * caller's. Returns: what was found, in *found unless NULL, and 0; TW_EDEADLK from inside the task's own
 * callback, which is not cancelled then. Requires: no callback waits for another one that waits for it; both
 * would wait for ever. */
int tw_sched_cancel_wait(struct tw_sched *sched, uint64_t id, enum tw_cancelled *found);

/* Gives a pending task a new due time; of a repeating one, the next call's, from which the phase goes on. In
 * its own callback a task that runs once is filed again, under its id. Returns: 0; TW_EGONE: no such task (so
 * for any after a stop), or its last call is under way on another thread; TW_ESTOPPED: its own callback moves
 * it after a stop; TW_ERANGE and TW_ENOMEM (geometries that refuse, or grow); TW_EFULL (one that is under way,
 * as it waits again from then on). */
int tw_sched_move_after(struct tw_sched *sched, uint64_t id, uint64_t delay_ns);
int tw_sched_move_at(struct tw_sched *sched, uint64_t id, uint64_t due_ns);

/* Looks a task up; *task (but not its key) is filled in. Returns: 0; TW_EGONE: no such task, or its last call
 * is under way. */
int tw_sched_get(struct tw_sched *sched, uint64_t id, struct tw_task *task);

/* Runs a task that the execute hook was given. One that was cancelled meanwhile is passed over. */
void tw_sched_run(struct tw_sched *sched, uint64_t id);

/* Runs tasks that the execute hook was given and nobody has run yet, at most `limit` of them: each shard's in
 * the order in which they were given. So a hook needs no queue: it wakes a thread, and that one calls this.
 * Returns: how many it took; fewer than `limit` when none was left. */
uint64_t tw_sched_run_some(struct tw_sched *sched, uint64_t limit);

/* Tasks that wait for their time or for a thread. */
uint64_t tw_sched_pending(const struct tw_sched *sched);

/* ---- keyed tasks --------------------------------------------------------------------------------------- */

enum { TW_KEY_MAX = 65536 }; /* bytes; any bytes, at least one */

/* Makes `key` name a task that calls fn with `value` in `delay_ns`. If it names one already, that one gets the
 * new function, value and time, keeps its id, and *old receives the value that it was to call with next (else
 * NULL); `old` may be NULL. If its callback is just under way, it runs once more, at the new time. The key is
 * copied. Requires: `key` is not NULL, or `key_size` is 0. Returns: as tw_sched_after(); TW_EINVAL: the key is
 * empty or too long. Cost: O(1) on average, in SipHash. */
int tw_sched_set_after(struct tw_sched *sched, const void *key, size_t key_size, uint64_t delay_ns,
                       tw_task_fn *fn, void *value, void **old);
int tw_sched_set_at(struct tw_sched *sched, const void *key, size_t key_size, uint64_t due_ns, tw_task_fn *fn,
                    void *value, void **old);
int tw_sched_set_every(struct tw_sched *sched, const void *key, size_t key_size, const struct tw_every *every,
                       tw_task_fn *fn, void *value, void **old);

/* Gives the task of a key a new due time: it fires once, at the latest one it was given, however often it is
 * moved. Requires: as tw_sched_set_after(). Returns: as tw_sched_move_after(); TW_EGONE: the key names no task
 * that is still to run. */
int tw_sched_key_move_after(struct tw_sched *sched, const void *key, size_t key_size, uint64_t delay_ns);
int tw_sched_key_move_at(struct tw_sched *sched, const void *key, size_t key_size, uint64_t due_ns);

/* Cancels the task of a key; *value, unless NULL, receives its value if it was cancelled. A key that was set
 * anew while its callback is under way is cancelled too: the new value is let go of, the callback goes on with
 * the old one. Requires: as tw_sched_set_after(). */
enum tw_cancelled tw_sched_key_remove(struct tw_sched *sched, const void *key, size_t key_size, void **value);

/* Looks a key up, as tw_sched_get() does an id. Requires: as tw_sched_set_after(). */
int tw_sched_key_get(struct tw_sched *sched, const void *key, size_t key_size, struct tw_task *task);

/* Keys that name a task, those whose callback is under way included. */
uint64_t tw_sched_key_count(const struct tw_sched *sched);

/* ---- handing over -------------------------------------------------------------------------------------- */

/* Takes a task that was handed over. It is gone from the scheduler; no lock is held.
 * Requires: it does not free the scheduler. */
typedef void tw_hand_fn(void *arg, const struct tw_task *task);

/* Hands over everything that is pending now, in no particular order; the scheduler goes on. Tasks that are
 * added meanwhile, or come due, may or may not be among them. `hand` may be NULL: they are dropped. Returns:
 * how many, 0 when nothing was pending; TW_ESTOPPED when tw_sched_stop() was called, which hands them over. */
int64_t tw_sched_drain(struct tw_sched *sched, tw_hand_fn *hand, void *arg);

enum { TW_STOP_NOWAIT = 1 }; /* flag: do not wait for callbacks that are under way */

/* Ends it: when this returns no callback starts any more, those under way have returned (unless TW_STOP_NOWAIT,
 * or from inside a callback), and every task with calls left was handed to `hand`, once. `hand` may be NULL. A
 * second stop finds nothing to hand over. One whose callback is under way with an argument that the release
 * hook will get comes without it: `fn` and `arg` are NULL. Requires: `flags` is 0 or TW_STOP_NOWAIT. Returns:
 * how many were handed over. */
uint64_t tw_sched_stop(struct tw_sched *sched, unsigned flags, tw_hand_fn *hand, void *arg);

/* ---- virtual time -------------------------------------------------------------------------------------- */

/* Moves a virtual clock to `now_ns`, running what comes due on the way, each task with the clock at its tick.
 * Requires: no other advance of the scheduler is under way. In callback: no.
 * Returns: 0; TW_EINVAL: the clock is not virtual, or would go back. */
int tw_sched_advance(struct tw_sched *sched, uint64_t now_ns);

/* When there will next be work: never later than the tick on which the earliest task runs. TW_NEVER when
 * nothing is pending. */
uint64_t tw_sched_next(const struct tw_sched *sched);

/* ---- statistics ---------------------------------------------------------------------------------------- */

/* Counts since the start. added + again = fired + cancelled + handed + pending */
struct tw_sched_stats {
    uint64_t pending, keys, running;
    uint64_t added;     /* tasks */
    uint64_t again;     /* further calls of repeating tasks, and tasks filed again in their own callback */
    uint64_t fired;     /* calls that have started */
    uint64_t cancelled; /* also removed keys */
    uint64_t moved;     /* also keys that were set anew while their task was pending */
    uint64_t handed;    /* by drain and stop */
    uint64_t refused;   /* TW_EFULL */
    uint64_t skipped;   /* periods that were skipped or coalesced */
    uint64_t late;      /* calls that the late hook's limit counts */
    uint64_t slow;      /* calls that the slow hook's limit counts */
    uint64_t late_p50_ns, late_p99_ns, late_max_ns; /* of the lateness of all calls; percentiles to 3 % */
    uint64_t run_max_ns;                            /* the longest callback */
    uint64_t memory;                                /* bytes held */
};

#if defined(__cplusplus) && defined(__GNUC__)
/* g++ warns that the function hides the constructor of the struct of its name. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wshadow"
#endif
/* Fills in *stats. The counts of one shard are of one moment; the shards are asked one after the other. */
void tw_sched_stats(const struct tw_sched *sched, struct tw_sched_stats *stats);
#if defined(__cplusplus) && defined(__GNUC__)
#pragma GCC diagnostic pop
#endif

/* The lateness below which `share` (0 to 1) of all calls started; 0 when there were none. To 3 %.
 * Requires: share is a number from 0 to 1. */
uint64_t tw_sched_late_percentile(const struct tw_sched *sched, double share);

enum { TW_FORECAST_MAX = 10000 }; /* steps */

/* Counts the calls to come: counts[i] receives how many are due in (now + i * step_ns, now + (i + 1) *
 * step_ns], the first also what is due already and has not started. Of a repeating task, each call within that
 * time counts, as long as it has any left, as if no callback took time; periods that have been missed count as
 * one call, with TW_MISSED_BURST each. What is added, moved, cancelled or started meanwhile may or may not be
 * counted. Requires: `counts` has room for `steps` numbers. Returns: 0; TW_EINVAL: step_ns is 0, or `steps` not
 * 1 to TW_FORECAST_MAX; *counts is not touched then. Cost: where few tasks are due by the end, O(these), read
 * from the wheel; else O(all tasks), a few thousand under each hold of a shard's lock, with a pause in between
 * in which others have it. O(steps) for each repeating task. */
int tw_sched_forecast(const struct tw_sched *sched, uint64_t step_ns, uint32_t steps, uint64_t *counts);

/* Writes the statistics in Prometheus' text format, every name beginning with tickwheel_. */
void tw_sched_prometheus(const struct tw_sched *sched, tw_emit_fn *emit, void *arg);

#ifdef __cplusplus
}
#endif

#endif
