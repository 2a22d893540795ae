/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop.h - a wheel, or a scheduler's callbacks, in an event loop that runs already.
 *
 * A loop adapter makes a struct tw_loop: loop_epoll.h, loop_uv.h, loop_event.h, loop_ev.h, loop_glib.h. Each
 * of these headers begins with a complete program. The calls on a tw_loop are the same for all of them, and
 * stand here.
 *
 * Conventions, stated once
 *   Time      Nanoseconds in a uint64_t on CLOCK_MONOTONIC, which tw_loop_now() reads. This is the clock
 *             itself, not the time that the loop noted at the beginning of its iteration, so that nothing is
 *             early after a long callback. `_in` counts from the call, `_at` is a point on that clock.
 *             duration.h makes nanoseconds: TW_SEC(30). A program that moves many timers in one iteration
 *             reads the clock once, after the events from which the timers count. Example: it reads all
 *             sockets, then calls tw_loop_now() once, and tw_loop_move_at() with now + TW_SEC(30) for each
 *             connection. Sums saturate. A timer due at the end of time (UINT64_MAX) never fires. While the
 *             machine is suspended, this clock stands still, and so do the timers.
 *   Due       A timer never fires before its time. It is due on the first tick that does not begin before its
 *             time, so at most one tick later; if its time has passed, on the next tick. It fires in the
 *             first iteration of the loop from then on. Example: ticks of 1 ms begin at 12 and at 13 ms. A
 *             timer for 12.3 ms is due at 13 ms.
 *   Order     As in the wheel: timers with earlier ticks fire first, timers of one tick in the order of
 *             filing.
 *   Bounded   In one iteration of the loop the adapter does at most `budget` units of the wheel's work. Each
 *             timer that is fired, refiled or passed over is a unit. The rest comes in the next iteration,
 *             with the loop's other events in between.
 *   Sleep     The adapter sets one timer of the loop to the wheel's next work. It sets this timer anew only
 *             when an earlier timer is added, or when it has rung. So a timer that is moved later costs no
 *             system call. With nothing pending the loop's timer is off, at the latest after it has rung once
 *             more: epoll and GLib do not switch it off at a cancel.
 *   Threads   All calls come from the thread that runs the loop. Callbacks of the loop, due callbacks and, for
 *             an executor, the callbacks of its scheduler may make every call, except where a label says
 *             otherwise. A signal handler may make none: it writes to an eventfd that the loop watches.
 *   Structs   As in sched.h: the caller zeroes the structs that it fills in. If a reserved member is not 0, the
 *             call returns TW_EINVAL.
 *   Others    NULL, Requires, Results and Messages are as in wheel.h.
 *   Fork      A child of fork() inherits copies of loops and executors, and must not use them: every call
 *             requires that this process made the loop or the executor. But the child may free both, and
 *             this takes nothing from the parent, whose timers and callbacks go on. A child that goes on
 *             with its parent's wheel frees the loop, makes the event loop its own in the way that the
 *             adapter's header names, and attaches the wheel again: its timers keep their times, to a tick.
 *             A child that calls exec() or _exit() need not do anything. A server calls daemon() first, and
 *             attaches its wheels afterwards.
 */
#ifndef TICKWHEEL_LOOP_H
#define TICKWHEEL_LOOP_H

#include <tickwheel/duration.h>
#include <tickwheel/wheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A wheel in an event loop. Its members are private. */
struct tw_loop;
/* An executor: it runs the callbacks of a scheduler (sched.h) on the thread of an event loop. The scheduler
 * keeps its own timer thread. In one iteration of the loop at most `budget` callbacks run (0: 256), in the
 * scheduler's order. An executor serves one scheduler, and keeps its loop running until the executor is
 * freed. The program links tickwheel_sched. The members are private.
 * Example:
 *     tw_executor_uv_new(&executor, loop, 0);
 *     tw_executor_hook(executor, &options);
 *     tw_sched_new(&sched, &options);                      // any thread may add now
 *     ...
 *     tw_sched_free(sched);                                // on the loop's thread, outside of callbacks
 *     tw_executor_free(executor);                          // before the loop's next iteration
 */
struct tw_executor;
struct tw_sched_options;

/* ---- attaching ------------------------------------------------------------------------------------------ */

/* Called on the loop's thread for each timer that is due. The timer is no longer pending. The callback may
 * add, move and cancel any timer, free the memory of this timer, and free the tw_loop and the wheel. `arg` is
 * the `arg` of the options.
 * Requires: it does not run the loop, unless the adapter's header says that it may. */
typedef void tw_loop_due_fn(void *arg, struct tw_timer *timer);

/* How a wheel is attached.
 * Example:
 *     struct tw_loop_options options = {.tick_ns = TW_MS(10), .due = close_idle_connection, .arg = &server};
 */
struct tw_loop_options {
    uint64_t tick_ns;     /* nanoseconds a tick, 1,000 to 3,600,000,000,000; 0: 1,000,000 (a millisecond) */
    uint32_t budget;      /* units of work in an iteration of the loop; 0: 256 */
    tw_loop_due_fn *due;  /* called for each due timer; not NULL */
    void *arg;            /* for `due` */
    uint64_t reserved[4]; /* 0: see "Structs" above */
};

/* Checks whether options are valid. If they are not, `message` names the wrong value and the values that are
 * allowed.
 * Returns: 0 or TW_EINVAL. */
int tw_loop_options_check(const struct tw_loop_options *options, char *message, size_t size);

/* Takes the wheel out of the loop. Its timers stay pending, and the wheel stays the caller's. It stands at the
 * present tick, so in a loop to which it is attached at once its timers keep their times, to a tick. `loop` may
 * be NULL.
 * Requires: the wheel is still there. Free the wheel after the loop, not before. */
void tw_loop_free(struct tw_loop *loop);

/* ---- timers --------------------------------------------------------------------------------------------- */

/* The time: CLOCK_MONOTONIC in nanoseconds, read at each call. */
uint64_t tw_loop_now(const struct tw_loop *loop);

/* Files a timer to fire `ns` nanoseconds from now, or at the point `at_ns`.
 * Requires: the timer is not pending.
 * Returns: 0 or an error.
 *   - TW_ERANGE, TW_ENOMEM: as tw_wheel_add_at(). A wheel that refuses measures its range from the tick on
 *     which it stands, which is the present unless timers are overdue.
 *   - TW_ESYSTEM: the loop did not take the first timer.
 * Cost: O(1). `_in` reads the clock, and both read it when they set the loop's timer. */
int tw_loop_add_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns);
int tw_loop_add_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns);

/* Gives a timer a new time, whether it is pending or not: a heartbeat. A move to a later time is two stores.
 * Requires: the timer, if pending, is pending in this wheel.
 * Returns: as tw_loop_add_in(). A timer that is refused keeps its old time.
 * Cost: as tw_loop_add_in(). */
int tw_loop_move_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns);
int tw_loop_move_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns);

/* Takes a timer out. Its memory is the caller's again at once.
 * Requires: the timer, if pending, is pending in this wheel.
 * Returns: true if the timer was pending. */
bool tw_loop_cancel(struct tw_loop *loop, struct tw_timer *timer);

/* ---- the wheel itself ------------------------------------------------------------------------------------ */

/* The wheel that was attached. A program that polls it itself polls for no tick that has not begun. */
struct tw_wheel *tw_loop_wheel(const struct tw_loop *loop);

/* The tick on which a timer for the point `at_ns` is due: the first tick that does not begin before
 * `at_ns`. */
uint64_t tw_loop_tick(const struct tw_loop *loop, uint64_t at_ns);

/* The point in nanoseconds at which a tick begins, or UINT64_MAX if it is past the end of time. The tick at
 * which the wheel stood when it was attached begins at the moment of attaching, and so do the ticks before it.
 * Example: a wheel at tick 100, with a tick of 1 ms, is attached when tw_loop_now() is T. Ticks 90 and 100
 * begin at T, and tick 105 begins at T + TW_MS(5). */
uint64_t tw_loop_time(const struct tw_loop *loop, uint64_t tick);

/* Sets the loop's timer earlier if that is needed. In a loop that ends when nothing is pending (libuv,
 * libevent, libev), switches the timer off if the wheel is empty. The caller calls it after filing timers with
 * tw_wheel_add_at() and the like, of which the loop knows nothing, and after taking the last timer out with
 * tw_wheel_cancel(), a drain or the destructor of a C++ timer. Without the call such a loop goes on until that
 * timer would have fired.
 * Returns: 0, or TW_ESYSTEM if the loop did not take its timer. Then call it again.
 * In callback: it is not needed, because the loop's timer is set after the callbacks.
 * Example: `tw_wheel_add_at(wheel, timer, tw_loop_tick(loop, at_ns))`, then `tw_loop_update(loop)`. */
int tw_loop_update(struct tw_loop *loop);

/* ---- a scheduler in a loop ------------------------------------------------------------------------------- */

/* Makes the scheduler that gets these options give its callbacks to the executor: fills in `execute` and
 * `execute_arg`.
 * Returns: 0, or TW_EINVAL if the options have workers or an execute hook. */
int tw_executor_hook(struct tw_executor *executor, struct tw_sched_options *options);

/* Ends an executor. `executor` may be NULL.
 * Requires: its scheduler was freed, or never made, and no callback of the scheduler is under way. A child of
 * fork(), which cannot free its parent's scheduler (sched.h), frees the executor alone.
 * In callback: no. */
void tw_executor_free(struct tw_executor *executor);

/* ---- other loops ----------------------------------------------------------------------------------------- */

/* The functions that a loop provides for its wheel. An adapter of your own fills them in; src/loops/glib.c is
 * the shortest example. */
struct tw_loop_driver {
    /* Makes the loop call tw_loop_turn() once, in an iteration at `at_ns` or later. This replaces the time
     * that the previous call set. The present is `now_ns`, and `at_ns` is never more than a day ahead of it,
     * or is UINT64_MAX, which means never. A time that has passed means the next iteration, after the loop's
     * other events. Returns 0, or TW_ESYSTEM. Requires: it fails only when the timer was off before. */
    int (*arm)(void *arg, uint64_t at_ns, uint64_t now_ns);
    /* Frees everything that the driver holds. tw_loop_free() calls it, in a child of fork() as well: there it
     * must not change what the child shares with its parent, such as an epoll set. */
    void (*close)(void *arg);
    /* The clock, in nanoseconds; NULL: CLOCK_MONOTONIC. Requires: it does not go back. */
    uint64_t (*now)(void *arg);
    /* True: the loop does not end by itself while its timer is armed, so tw_loop switches the timer off as
     * soon as nothing is pending. */
    bool lingers;
    uint64_t reserved[4]; /* 0: see "Structs" above */
};

/* Attaches a wheel to a loop. tw_loop_free() takes it out again. `driver` is copied, and `arg` is passed to its
 * functions.
 * Returns: 0, and the loop is in *loop, or an error.
 *   - TW_EINVAL: tw_loop_options_check() says why, unless a reserved member of the driver is not 0.
 *   - TW_ENOMEM: there is no memory.
 *   - TW_ESYSTEM: `arm` has returned it. */
int tw_loop_new(struct tw_loop **loop, struct tw_wheel *wheel, const struct tw_loop_options *options,
                const struct tw_loop_driver *driver, void *arg);

/* The `arg` that tw_loop_new() received for the driver. */
void *tw_loop_driver_arg(const struct tw_loop *loop);

/* Fires the timers that are due, within the budget, and arms the driver again. The driver calls it when the
 * time that `arm` received has come. An earlier call does no harm. The loop may be gone when the call
 * returns, because a callback may free it. */
void tw_loop_turn(struct tw_loop *loop);

/* The functions that a loop provides for an executor. */
struct tw_executor_driver {
    /* Makes the loop call tw_executor_turn() in its next iteration, on the loop's thread. The scheduler's
     * threads call `wake`, so it must work from any thread. A wake-up may be repeated before that iteration. */
    void (*wake)(void *arg);
    /* Takes a wake-up back, because tw_executor_turn() runs now, which calls this first. NULL: there is
     * nothing to do. */
    void (*clear)(void *arg);
    /* Frees everything that the driver holds. tw_executor_free() calls it, in a child of fork() as well. */
    void (*close)(void *arg);
    uint64_t reserved[4]; /* 0: see "Structs" above */
};

/* Makes an executor, for a scheduler whose callbacks are to run in a loop. `budget` is callbacks in an
 * iteration of the loop; 0: 256. `driver` is copied, and `arg` is passed to its functions.
 * Returns: 0, and the executor is in *executor, or an error.
 *   - TW_EINVAL: the program does not link tickwheel_sched, or a reserved member of the driver is not 0.
 *   - TW_ENOMEM: there is no memory. */
int tw_executor_new(struct tw_executor **executor, uint32_t budget, const struct tw_executor_driver *driver,
                    void *arg);

/* Runs callbacks of the scheduler, at most `budget` of them. The driver calls it after `wake`. */
void tw_executor_turn(struct tw_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
