/* SPDX-License-Identifier: MIT
 *
 * tickwheel/sched.h - a scheduler: run a function later, once or again and again, from any thread.
 *
 * A complete program. Link it with libtickwheel_sched: `cc first.c $(pkg-config --cflags --libs
 * tickwheel_sched)`.
 *
 *     #include <stdio.h>
 *     #include <threads.h>
 *     #include <tickwheel/sched.h>
 *
 *     static void unpaid(struct tw_sched *sched, const struct tw_task *task)
 *     {
 *         (void)sched;
 *         printf("%s was not paid\n", (const char *)task->arg);
 *     }
 *
 *     int main(void)
 *     {
 *         struct tw_sched *sched;
 *         uint64_t first;
 *         if (tw_sched_new(&sched, NULL) != 0)
 *             return 1;
 *         tw_sched_add_in(sched, TW_MS(20), unpaid, "order 1", &first);
 *         tw_sched_add_in(sched, TW_MS(20), unpaid, "order 2", NULL);
 *         tw_sched_cancel(sched, first); // paid
 *         thrd_sleep(&(struct timespec){.tv_nsec = 100000000}, NULL); // the program does something else
 *         tw_sched_free(sched); // drops pending tasks, and waits for running callbacks
 *     }
 *
 * Conventions, stated once
 *   Time      Nanoseconds in a uint64_t, on the scheduler's own clock, which tw_sched_now() reads. `_in` counts
 *             `delay_ns` from the call, `_at` names the point `due_ns` on that clock. duration.h makes
 *             nanoseconds, for example `TW_MS(20)`. Sums saturate. A task due at the end of time (UINT64_MAX)
 *             never runs.
 *   Due       A task never runs before its due time. It is due at the latest one tick after that time.
 *             Example: the scheduler was made at 0 with a tick of 1 ms. A task for 12.3 ms runs on the tick
 *             at 13 ms, and its due_ns stays 12.3 ms.
 *   Order     The order in which tasks start, however late the thread that starts them:
 *             - Tasks due on different ticks start in the order of these ticks.
 *             - Tasks due on one tick that one thread filed, without keys, start in the order in which it filed
 *               them. With one shard this holds for the tasks of all threads together, and for keys too. A
 *               program that needs this total order sets `shards` to 1.
 *             - A task that was moved, or whose key was set anew, has no fixed place among the tasks of its new
 *               tick (wheel.h, "Order").
 *             - A task that is filed for a tick that has begun already starts on the next tick, or at once. So
 *               does a call of a repeating task that is late when the call before it returns: it starts
 *               after the tasks that wait then.
 *             - Workers take tasks in this order and run them side by side. The execute hook receives tasks in
 *               this order, and tw_sched_run_some() starts them in it.
 *             - If there is no memory for a task in the shard of its thread, another shard takes the task, and
 *               it has no order among the thread's other tasks of that tick.
 *   Shards    Each shard has a wheel and a lock of its own, so threads that file into different shards do not
 *             wait for each other.
 *             - The first thread that files a task gets the first shard. The next threads get a shard each
 *               until there are as many as `shards` allows, and then threads share them.
 *             - A thread keeps its shard. When it ends, a later thread takes its place.
 *             - Callbacks on the timer thread file into the first shard. A program in which one thread files
 *               tasks has one wheel.
 *             - Keys lie in the first shard until a second thread files. From then on a new key lies in the
 *               shard of its hash. While more than 16,384 keys from before are pending, each call with a key
 *               takes the lock of the first shard too.
 *             - If there is no memory for a new shard, the thread files into a shard that exists.
 *             - Tasks, keys and statistics are counted one shard after the other. So while other threads add
 *               and cancel, a sum may be of no one moment.
 *   Threads   Every call may come from any thread and from inside a callback, except where a label says
 *             otherwise. The scheduler holds no lock while a callback runs. A task never runs on two threads
 *             at once.
 *   Locks     A call that runs callbacks, hooks or a tw_sched_visit_fn, or waits for callbacks, requires that
 *             the caller holds no lock that they take: both threads would wait for ever. Calls that wait are
 *             tw_sched_cancel_wait(), tw_sched_stop() and tw_sched_free(). The first two say how a program does
 *             without a wait under its lock.
 *   Signals   No call may be made in a signal handler, which may have interrupted a call that holds a lock of
 *             the scheduler. The handler writes to an eventfd instead, and a thread that reads the eventfd
 *             makes the call.
 *   Ids       An id has 64 bits. It is never 0 and is never used twice, so a stale id finds nothing. The calls
 *             that begin with tw_sched_key_ find a task by its key instead.
 *   NULL      Never a valid argument, except where a label says so. A pointer that the scheduler only hands
 *             back (`arg`, `value`) may be NULL, and so may a `message`, or the data of a key, whose size is 0.
 *             An id may be any number.
 *   Structs   A later version may have more members, and then a program that was compiled with this version
 *             runs on:
 *             - A struct that the scheduler fills in: the caller passes its size, for example
 *               `tw_sched_stats(sched, &stats, sizeof stats)`. The scheduler writes no more than that. A
 *               library that is older than the program sets the members that it does not know to 0.
 *             - A struct that the scheduler shows, in a callback: a later version adds members at its end only.
 *             - A struct that the caller fills in: its reserved members must be 0, and a later version puts new
 *               members in their places. A caller zeroes the whole struct, as `struct tw_every every =
 *               {.period_ns = TW_SEC(1)}` does. If a reserved member is not 0, the call returns TW_EINVAL.
 *   Requires  A duty of the caller that no return code reports. A library compiled with TICKWHEEL_DEBUG 1
 *             asserts it. docs/guide.md lists the duties that no assertion can see, and why.
 *   Results   As in wheel.h. An error is of this header or of wheel.h, and tw_sched_strerror() returns its
 *             text. A pointer for an outcome may be NULL: `id`, `old`, `value`, `found` (enum tw_cancel,
 *             task.h) and `handed` (how many tasks). A call that fails writes none of them but `old`.
 *   Fork      Every call requires that this process made the scheduler. A child of fork() must not use a
 *             scheduler of its parent, and must not free it.
 */
#ifndef TICKWHEEL_SCHED_H
#define TICKWHEEL_SCHED_H

#include <tickwheel/duration.h>
#include <tickwheel/task.h>
#include <tickwheel/wheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A scheduler. Its members are private. */
struct tw_sched;
struct tw_task;

/* ---- errors -------------------------------------------------------------------------------------------- */

/* The errors of the scheduler, besides those of wheel.h: name, value and text. */
#define TW_SCHED_ERROR_TABLE(X)                                                                                \
    X(TW_EFULL, -100, "too many tasks are pending (max_pending)")                                              \
    X(TW_ESTOPPED, -101, "the scheduler has been stopped")                                                     \
    X(TW_EGONE, -102, "no such task: it has run, was cancelled, or never was")                                 \
    X(TW_EDEADLK, -103, "a callback cannot wait for itself")                                                   \
    X(TW_ECLOCK, -104, "the system has no timers on CLOCK_BOOTTIME: take TW_SCHED_CLOCK_AUTO or _MONOTONIC")

/* The codes of TW_SCHED_ERROR_TABLE. */
enum tw_sched_error {
#define TW__ENUM(name, value, text) name = value,
    TW_SCHED_ERROR_TABLE(TW__ENUM)
#undef TW__ENUM
};

/* The text of an error of this library or of the wheel.
 * Returns: as tw_strerror(). */
const char *tw_sched_strerror(int error);

/* ---- options ------------------------------------------------------------------------------------------- */

/* The clock that measures due times. With a virtual clock tw_sched_advance() runs the due tasks itself, so
 * `workers` must be 0: with workers tw_sched_new() and tw_sched_options_check() return TW_EINVAL. */
enum tw_sched_clock {
    /* TW_SCHED_CLOCK_BOOTTIME, or TW_SCHED_CLOCK_MONOTONIC if the system has no timers on that clock: old
     * kernels, emulators and sandboxes have none. tw_sched_stats() tells which. */
    TW_SCHED_CLOCK_AUTO,
    TW_SCHED_CLOCK_BOOTTIME,  /* time since boot, with the time that the machine sleeps */
    TW_SCHED_CLOCK_MONOTONIC, /* time since boot, without the time that the machine sleeps */
    TW_SCHED_CLOCK_VIRTUAL    /* stands still until tw_sched_advance() moves it; for tests and simulations */
};

/* A callback. `task` describes the task, with the caller's argument in `task->arg`. The callback may add
 * tasks, cancel or move its own task and others, and stop the scheduler.
 * Requires: it neither frees nor advances its scheduler. */
typedef void tw_task_fn(struct tw_sched *sched, const struct tw_task *task);

/* Hands a due task to the caller's own threads. Any one of these threads then calls tw_sched_run(sched, id)
 * once, or calls tw_sched_run_some() for the tasks that were handed over so far. The scheduler may call the
 * hook from the timer thread, and holds no lock.
 * Requires: it does not block. */
typedef void tw_sched_execute_fn(void *arg, struct tw_sched *sched, uint64_t id);

/* A source of memory. The scheduler calls it under a lock. Several threads may call it at the same time,
 * because each shard has a lock of its own.
 *   - `old` is NULL: the hook returns a block of `size` bytes, aligned as malloc aligns, or NULL if there is
 *     no memory.
 *   - `old` is not NULL: the hook takes that block of `size` bytes back. The scheduler ignores its return
 *     value.
 * Requires: it does not call the scheduler. */
typedef void *tw_sched_memory_fn(void *arg, void *old, size_t size);

/* Receives a report of a callback that started late (on_late) or ran long (on_slow). `task` is as in the
 * callback. `ns` is how late it started, or how long it ran. The scheduler calls the hook on the thread of the
 * callback, after the callback and as part of it: the hook must not do anything that a callback must not do. */
typedef void tw_sched_slow_fn(void *arg, const struct tw_task *task, uint64_t ns);

/* Takes the argument of a task back, once, when nothing will use it any more:
 *   - the last callback has returned
 *   - the task was cancelled, or its key was removed or set anew
 *   - the task was drained or stopped, and `visit` has seen it
 *
 * The scheduler holds no lock. `value` is the argument. If a call that adds a task or sets a key fails, the
 * argument stays the caller's, and the hook does not receive it.
 *
 * If a callback is under way with the argument, the hook is part of that callback. So it has returned when
 * tw_sched_cancel_wait(), tw_sched_free(), or a stop that waits, has waited for the callback. Otherwise the
 * hook is part of the call that ended the task, and has returned when that call returns on its thread. Other
 * threads may find the task gone before the hook has returned, and do not wait for it.
 * Example: one thread cancels a task that is pending, so the hook runs inside its tw_sched_cancel(). A second
 * thread that cancels the same task gets TW_CANCEL_GONE, perhaps before the hook has returned.
 * Requires: it takes no lock that a thread holds while it ends a task, for example by tw_sched_cancel(). */
typedef void tw_sched_release_fn(void *arg, void *value);

/* The options of a scheduler. If all members are zero, the options are the defaults.
 * Example:
 *     struct tw_sched_options options = {.tick_ns = TW_US(100), .workers = 4, .max_pending = 1000000};
 */
struct tw_sched_options {
    uint64_t tick_ns; /* nanoseconds a tick, 1,000 to 3,600,000,000,000; 0: 1,000,000 (a millisecond) */
    const struct tw_geometry *geometry; /* of the wheels, in ticks; copied; NULL: TW_GEOMETRY_DEFAULT */
    /* wheels with a lock each, 1 to 64, which are made when they are needed; 0: as many as the processors that
     * the thread may run on that makes the scheduler, at most 16, and 1 with a virtual clock. See "Shards"
     * above. */
    uint32_t shards;
    uint32_t workers; /* threads for callbacks, 0 to 1,024; 0: callbacks run on the timer thread */
    /* not NULL: callbacks run on the threads to which this hook hands them, and `workers` must be 0 */
    tw_sched_execute_fn *execute;
    void *execute_arg; /* its `arg` */
    /* tasks pending at once, in all shards together; 0: no limit but memory (2^25 tasks a shard) */
    uint64_t max_pending;
    enum tw_sched_clock clock; /* 0: TW_SCHED_CLOCK_AUTO */
    uint64_t start_ns;         /* TW_SCHED_CLOCK_VIRTUAL: the time at which the clock starts; other clocks: 0 */
    tw_sched_memory_fn *memory; /* NULL: malloc and free */
    void *memory_arg;           /* its `arg` */
    /* on_late is called for callbacks that start more than this after they were due */
    uint64_t late_ns;
    tw_sched_slow_fn *on_late; /* NULL: none */
    uint64_t slow_ns;          /* on_slow is called for callbacks that run longer */
    tw_sched_slow_fn *on_slow; /* NULL: none */
    void *hook_arg;            /* the `arg` of on_late, on_slow and release */
    /* NULL: the caller frees arguments. Otherwise the hook receives every argument, also the arguments that
     * the scheduler reports through `old` and `value`. */
    tw_sched_release_fn *release;
    /* NULL: the hook receives the arguments of all tasks; otherwise only those of tasks with this function */
    tw_task_fn *release_of;
    uint64_t reserved[8]; /* 0: see "Structs" above */
};

/* Checks whether options are valid. If they are not, `message` names the wrong value and the values that are
 * allowed. It receives at most `size` bytes, always terminated. If the options are valid, `message` has no
 * meaning.
 * Returns: 0, TW_EINVAL or TW_EGEOMETRY. */
int tw_sched_options_check(const struct tw_sched_options *options, char *message, size_t size);

/* ---- beginning and end --------------------------------------------------------------------------------- */

/* Makes a scheduler. Its threads start with the first task. `options` may be NULL, for all defaults, and is
 * copied.
 * Returns:
 *   - 0: the scheduler is in *sched.
 *   - TW_EINVAL, TW_EGEOMETRY: an option is not valid. tw_sched_options_check() says which.
 *   - TW_ENOMEM: there is no memory.
 *   - TW_ESYSTEM: no descriptor is left, for the process or the system.
 *   - TW_ECLOCK: `clock` is TW_SCHED_CLOCK_BOOTTIME, and the system has no timers on that clock. */
int tw_sched_new(struct tw_sched **sched, const struct tw_sched_options *options);

/* Stops the scheduler, waits for running callbacks, ends the threads and frees everything. Pending tasks are
 * dropped. `sched` may be NULL.
 * Requires: no other call is under way, except calls from running callbacks, and no call comes later.
 * In callback: no, and not in a hook or a tw_sched_visit_fn either. */
void tw_sched_free(struct tw_sched *sched);

/* The time on the scheduler's clock. */
uint64_t tw_sched_now(const struct tw_sched *sched);

/* ---- tasks --------------------------------------------------------------------------------------------- */

/* A task, as its callback or a tw_sched_visit_fn sees it. It is valid during that call. */
struct tw_task {
    uint64_t id;     /* never 0 */
    tw_task_fn *fn;  /* its callback */
    void *arg;       /* the argument given with the task; the value of a keyed task */
    uint64_t due_ns; /* when the task is, or was, due, on the scheduler's clock */
    /* in its callback: how long after due_ns the callback started. If due_ns is a period that had passed when
     * the task was filed or moved, it counts from there. */
    uint64_t late_ns;
    uint64_t period_ns;      /* 0: it runs once */
    uint64_t left;           /* calls after the call under way or, while it waits, after the next; TW_FOREVER */
    uint64_t missed_periods; /* TW_MISSED_COALESCE: periods that this call stands for besides its own */
    enum tw_missed missed;   /* the policy for missed periods, if it repeats */
    struct tw_bytes key;     /* its data is NULL: the task has none */
};

/* Runs fn(sched, task) once, with `arg` in `task->arg`. *id receives the id before the task can run.
 * Returns: 0 or an error.
 *   - TW_EFULL: max_pending tasks are pending, under way with calls left, or just being added.
 *   - TW_ENOMEM: there is no memory, or every shard has 2^25 tasks.
 *   - TW_ESTOPPED: the scheduler has been stopped.
 *   - TW_ERANGE: the geometry refuses such a long delay.
 *   - TW_ESYSTEM: a thread could not be started.
 * Cost: O(1). */
int tw_sched_add_in(struct tw_sched *sched, uint64_t delay_ns, tw_task_fn *fn, void *arg, uint64_t *id);

/* As tw_sched_add_in(), at a point. A point that has passed means at once, and lateness counts from this call:
 * the task's due_ns becomes the beginning of the present tick.
 * Example: the scheduler was made at 0 with a tick of 1 ms. At 5,000.7 ms, tw_sched_add_at() for the point 0
 * files a task that is due at 5,000 ms. */
int tw_sched_add_at(struct tw_sched *sched, uint64_t due_ns, tw_task_fn *fn, void *arg, uint64_t *id);

/* When a repeating task runs.
 * Example: ten calls, the first in 250 ms, then one a second:
 *     struct tw_every every = {.first_ns = TW_MS(250), .period_ns = TW_SEC(1), .times = 10};
 */
struct tw_every {
    uint64_t first_ns; /* delay of the first call; 0: at once */
    /* not 0: the point in time of the first call, and first_ns does not count. If it has passed, the periods
     * since then are missed periods. */
    uint64_t at_ns;
    uint64_t period_ns;    /* from due time to due time, at least the tick */
    uint64_t times;        /* calls in all, however many periods are missed; 0 or TW_FOREVER: no end */
    enum tw_missed missed; /* 0: TW_MISSED_COALESCE */
    uint64_t reserved[2];  /* 0: see "Structs" above */
};

/* Runs fn again and again, as *every says. No call starts before the previous call has returned.
 * Returns: as tw_sched_add_in(), or TW_EINVAL if the period is shorter than a tick, `missed` is not one of
 * the three, or a reserved member is not 0. TW_ERANGE also if the geometry refuses such a long period. */
int tw_sched_add_every(struct tw_sched *sched, const struct tw_every *every, tw_task_fn *fn, void *arg,
                       uint64_t *id);

/* Reserves room for n more tasks without keys, in the shard of the calling thread, and beyond 2^25 tasks in
 * further shards. A thread whose own shard finds no memory adds to the other shards. So until this room is used
 * up, adding such a task cannot return TW_ENOMEM, whichever thread adds it. The exception is a geometry that
 * grows, whose levels are not made in advance.
 * Returns: 0, or TW_ENOMEM; the room that could be made stays.
 * Cost: O(n); 104 bytes a task, as the task may repeat. */
int tw_sched_reserve(struct tw_sched *sched, uint64_t n);

/* Cancels a task. After TW_CANCEL_CANCELLED the scheduler has let go of the argument. After TW_CANCEL_AT_WORK
 * the callback may still use it. Without a release hook, a caller that is not this callback waits with
 * tw_sched_cancel_wait() before it frees the argument.
 * Returns: one of enum tw_cancel (task.h).
 * Cost: O(1). The task's memory is free for another task at once. */
enum tw_cancel tw_sched_cancel(struct tw_sched *sched, uint64_t id);

/* Cancels a task. If its callback is under way, waits until the callback has returned. Then the argument is
 * the caller's.
 * Requires: nobody waits for ever, so
 *   - no callback waits for another callback that waits for it
 *   - the caller holds no lock that the callback, or its release hook, takes. Under such a lock the caller
 *     calls tw_sched_cancel(), which does not wait. If it finds TW_CANCEL_AT_WORK, the caller releases the
 *     lock, and calls tw_sched_cancel_wait() for the same id.
 *
 * Returns: 0, or TW_EDEADLK from inside the task's own callback, and then the task is not cancelled. */
int tw_sched_cancel_wait(struct tw_sched *sched, uint64_t id, enum tw_cancel *found);

/* Gives a pending task a new due time. A point may have passed, as in tw_sched_add_at(). For a repeating task
 * this is the due time of the next call, and the phase goes on from there, so the periods after a point that
 * has passed are missed periods. A task that runs once may move itself in its own callback: it is filed again,
 * under its id.
 * Returns: 0 or an error.
 *   - TW_EGONE: there is no such task, or its last call is under way on another thread. After tw_sched_stop()
 *     has returned, this holds for every task whose callback is not under way.
 *   - TW_ESTOPPED: the scheduler has been stopped, and a callback of the task is under way, or the stop has
 *     not yet handed the task over. A callback that moves its own task after a stop gets this error.
 *   - TW_ERANGE: the geometry refuses such a long delay.
 *   - TW_ENOMEM: the geometry grows, and there is no memory.
 *   - TW_EFULL: the callback is under way, so the task would take a place under max_pending again, and all
 *     are taken. */
int tw_sched_move_in(struct tw_sched *sched, uint64_t id, uint64_t delay_ns);
int tw_sched_move_at(struct tw_sched *sched, uint64_t id, uint64_t due_ns);

/* Looks a task up, and fills in *task, except for its key, which is empty.
 * Returns: 0, or TW_EGONE if there is no such task, or its last call is under way. */
int tw_sched_get(struct tw_sched *sched, uint64_t id, struct tw_task *task, size_t size);

/* Runs, on the calling thread, a task that the execute hook received. A task that was cancelled meanwhile is
 * passed over. */
void tw_sched_run(struct tw_sched *sched, uint64_t id);

/* Runs, on the calling thread, tasks that the execute hook received and nobody has run yet, at most `limit`
 * of them, in the order that is stated above. So a hook needs no queue: it wakes a thread, and that thread
 * calls this function.
 * Returns: how many tasks it took, fewer than `limit` if none is left. */
uint64_t tw_sched_run_some(struct tw_sched *sched, uint64_t limit);

/* The number of tasks that wait for their due time or for a thread. */
uint64_t tw_sched_count(const struct tw_sched *sched);

/* ---- keyed tasks --------------------------------------------------------------------------------------- */

enum { TW_SCHED_KEY_MAX = 65536 }; /* a key has 1 to 65,536 bytes, of any value */

/* Makes `key` name a task that calls fn, with `value` in `task->arg`. The key is copied.
 *   - The key names no task: the scheduler adds one, and *old becomes NULL.
 *   - The key names a task: this task gets the new function, value and time, and keeps its id. *old receives
 *     the value of the call that was to come next, or NULL if none was to come.
 *   - The key names a task whose callback is under way: the same, and the task runs again, at the new time.
 * Returns: as tw_sched_add_in() and, for tw_sched_key_put_every(), tw_sched_add_every(). TW_EINVAL also if the
 * key is empty or longer than TW_SCHED_KEY_MAX bytes, and TW_ENOMEM also if the key's shard has 2^25 tasks.
 * *old may become NULL also if the call fails.
 * Cost: O(1) on average. The key is hashed with SipHash. A key of at most 24 bytes lies beside its task, a
 * longer key in a block of its own.
 * Example: a program calls `tw_sched_key_put_in(sched, tw_text("save"), TW_MS(500), save, NULL, NULL)` at each
 * keystroke. While the keystrokes are less than 500 ms apart it does not save; it saves once, 500 ms after the
 * last keystroke. */
int tw_sched_key_put_in(struct tw_sched *sched, struct tw_bytes key, uint64_t delay_ns, tw_task_fn *fn,
                        void *value, void **old);
int tw_sched_key_put_at(struct tw_sched *sched, struct tw_bytes key, uint64_t due_ns, tw_task_fn *fn,
                        void *value, void **old);
int tw_sched_key_put_every(struct tw_sched *sched, struct tw_bytes key, const struct tw_every *every,
                           tw_task_fn *fn, void *value, void **old);

/* Gives the task of a key a new due time. However often the task is moved, it fires once, at the due time that
 * it received last.
 * Returns: as tw_sched_move_in(). TW_EGONE: the key names no task that is still to run. */
int tw_sched_key_move_in(struct tw_sched *sched, struct tw_bytes key, uint64_t delay_ns);
int tw_sched_key_move_at(struct tw_sched *sched, struct tw_bytes key, uint64_t due_ns);

/* Cancels the task of a key. After TW_CANCEL_CANCELLED *value has its value. A key that was set anew
 * while its callback is under way is cancelled too: the scheduler lets go of the new value, and the callback
 * goes on with the old value.
 * To wait for a callback, pass the task's id to tw_sched_cancel_wait(). tw_sched_key_get() returns the id while
 * a call is still to come, and TW_EGONE once the last call is under way; then only the callback itself knows it
 * (`task->id`).
 * Returns: as tw_sched_cancel(). */
enum tw_cancel tw_sched_key_cancel(struct tw_sched *sched, struct tw_bytes key, void **value);

/* Looks a key up, as tw_sched_get() looks an id up.
 * Returns: as tw_sched_get(). */
int tw_sched_key_get(struct tw_sched *sched, struct tw_bytes key, struct tw_task *task, size_t size);

/* The number of keys that name a task, including keys whose callback is under way. */
uint64_t tw_sched_key_count(const struct tw_sched *sched);

/* ---- handing over -------------------------------------------------------------------------------------- */

/* Takes a task that the scheduler hands over. The task is gone from the scheduler, which holds no lock. If
 * tw_sched_drain() or tw_sched_stop() gets NULL in its place, the tasks are dropped.
 * Requires: it does not free the scheduler. */
typedef void tw_sched_visit_fn(void *arg, const struct tw_task *task);

/* Hands over all tasks that are pending now, in no particular order, and the scheduler goes on. Tasks that
 * are added or become due meanwhile may or may not be among them.
 * Returns: 0, or TW_ESTOPPED if tw_sched_stop() was called, which hands the tasks over itself. */
int tw_sched_drain(struct tw_sched *sched, tw_sched_visit_fn *visit, void *arg, uint64_t *handed);

enum { TW_SCHED_STOP_NOWAIT = 1 }; /* flag: do not wait for callbacks that are under way */

/* Stops the scheduler. When the call returns:
 *   - No callback starts any more.
 *   - Callbacks that were under way have returned, unless `flags` is TW_SCHED_STOP_NOWAIT, or the stop is
 *     called from inside a callback.
 *   - `visit` has received every task with calls left, once.
 *
 * If a callback is under way with an argument that the release hook will receive, `visit` receives the
 * task without the argument: `fn` and `arg` are NULL. A second stop finds nothing to hand over. The scheduler
 * itself stays: tw_sched_free() ends it. Under a lock that a running callback takes, the caller passes
 * TW_SCHED_STOP_NOWAIT, releases the lock, and waits in a second stop.
 * Requires: `flags` is 0 or TW_SCHED_STOP_NOWAIT.
 * Returns: how many tasks were handed over; dropped ones count too.
 * Example: with release set, the stop finds a repeating task in the middle of its third call of ten. `visit`
 * receives the task with no argument and with `left` 6 (after the next call), and the hook receives the
 * argument when the third call has returned. */
uint64_t tw_sched_stop(struct tw_sched *sched, unsigned flags, tw_sched_visit_fn *visit, void *arg);

/* ---- virtual time -------------------------------------------------------------------------------------- */

/* Moves a virtual clock to the point `now_ns`, and runs the tasks that become due on the way, each with the
 * clock at its tick.
 * Requires: no other advance of the scheduler is under way.
 * Returns: 0, or TW_EINVAL if the clock is not virtual, or would go back.
 * In callback: no.
 * Example: `tw_sched_advance(sched, tw_sched_now(sched) + TW_MIN(30))` is half an hour in a test. */
int tw_sched_advance(struct tw_sched *sched, uint64_t now_ns);

/* The time on the scheduler's clock at which it next has work. This is never later than the tick on which the
 * earliest task runs.
 * Returns: a point, or TW_NEVER if no task waits for its due time or for the timer thread. */
uint64_t tw_sched_next_bound(const struct tw_sched *sched);

/* ---- statistics ---------------------------------------------------------------------------------------- */

/* Numbers of a scheduler; all but the first three and the last two count from the start.
 * added + again = fired + cancelled + handed + pending */
struct tw_sched_info {
    uint64_t pending, keys, running; /* now: pending tasks, keys that name a task, callbacks under way */
    uint64_t added;                  /* tasks added */
    uint64_t again;     /* further calls of repeating tasks, and tasks filed again in their own callback */
    uint64_t fired;     /* calls that have started */
    uint64_t cancelled; /* tasks; also removed keys */
    uint64_t moved;     /* moves; also keys that were set anew while their task was pending */
    uint64_t handed;    /* tasks handed over by drain and stop */
    uint64_t refused;   /* calls refused with TW_EFULL */
    uint64_t skipped;   /* periods that TW_MISSED_SKIP has passed over */
    /* periods that calls stood for besides their own, counted when a call returns; none if its task was
     * cancelled, moved, set anew or handed over meanwhile */
    uint64_t coalesced;
    uint64_t late; /* calls that started more than late_ns after they were due; 0 if late_ns is 0 */
    uint64_t slow; /* calls that ran longer than slow_ns; 0 if slow_ns is 0 */
    uint64_t late_p50_ns, late_p99_ns, late_max_ns; /* percentiles as tw_sched_late_percentile() */
    uint64_t run_max_ns;                            /* the longest callback */
    uint64_t memory;                                /* bytes held now */
    enum tw_sched_clock clock;                      /* the clock in use, never TW_SCHED_CLOCK_AUTO */
};

/* Fills in *stats. The counts of one shard are from one moment. */
void tw_sched_stats(const struct tw_sched *sched, struct tw_sched_info *stats, size_t size);

/* The lateness below which `share` of all calls started, in nanoseconds. It is at most 3.2 % too high, and
 * never too low. It is 0 if there were no calls.
 * Requires: `share` is a number from 0 to 1.
 * Example: 99 of 100 calls start 1.02 ms late, and one starts 7 ms late. With the share 0.99 it returns
 * 1,032,191, which is 1.2 % too high. */
uint64_t tw_sched_late_percentile(const struct tw_sched *sched, double share);

/* Counts the calls to come, in `steps` steps of `step_ns` nanoseconds. counts[i] receives how many calls are
 * due in (now + i * step_ns, now + (i + 1) * step_ns].
 *   - counts[0] also counts the calls that are due already and have not started.
 *   - Each call of a repeating task within that time counts, as long as it has calls left, as if no callback
 *     took time. Its missed periods count as one call, or as one call each with TW_MISSED_BURST.
 *   - Tasks that are added, moved, cancelled or started meanwhile may or may not be counted.
 * Requires: `counts` has room for `steps` numbers.
 * Returns: 0, or TW_EINVAL if step_ns is 0 or `steps` is not 1 to TW_FORECAST_MAX, and then *counts is
 * unchanged.
 * Cost: if few tasks are due by the end, O(these tasks), which are read from the wheel. Otherwise O(all
 * tasks): a few thousand tasks under each hold of a shard's lock, with a pause in between in which other
 * threads have the lock. In addition O(steps) for each repeating task.
 * Example: `uint64_t counts[60]` and `tw_sched_forecast(sched, TW_SEC(1), 60, counts)` count the calls in
 * each second of the next minute. */
int tw_sched_forecast(const struct tw_sched *sched, uint64_t step_ns, uint32_t steps, uint64_t *counts);

/* Writes the statistics in the text format of Prometheus. Every name begins with tickwheel_. */
void tw_sched_prometheus(const struct tw_sched *sched, tw_emit_fn *emit, void *arg);

#ifdef __cplusplus
}
#endif

#endif
