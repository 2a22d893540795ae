/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop.h - a wheel, or a scheduler's callbacks, in an event loop that runs already.
 *
 * A loop adapter makes a struct tw_loop: loop_epoll.h, loop_uv.h, loop_event.h, loop_ev.h, loop_glib.h. What
 * can be done with it then is the same for all of them, and stands here.
 *
 * Conventions, stated once
 *   Time      Nanoseconds in a uint64_t on CLOCK_MONOTONIC: tw_loop_now(). It is the clock itself, not the time
 *             that the loop has noted at the beginning of its turn, so that nothing is early after a long
 *             callback. `_in` counts from the call, `_at` is a point on that clock: a program that moves many
 *             timers in one turn reads the clock once, after what they count from. Sums saturate; a timer due
 *             at the end of time (UINT64_MAX) never fires. While the machine is suspended this clock stands
 *             still, and so do the timers.
 *   Due       A timer never fires before its time. It is due on the first tick that does not begin before it,
 *             so at most one tick later (the next tick, if its time has passed), and fires in the loop's first
 *             turn from then on.
 *   Order     That of the wheel: earlier ticks first, equal ticks in the order of filing.
 *   Bounded   In one turn of the loop at most `budget` units of the wheel's work are done: a timer that is
 *             fired, refiled or passed over is a unit. The rest comes on the next turn, the loop's other events
 *             in between.
 *   Sleep     One timer of the loop is set to the wheel's next work. It is set anew only when an earlier timer
 *             is added or when it has rung: a timer that is moved later costs no system call. With nothing
 *             pending it is off.
 *   Threads   Those of the loop: all calls come from the thread that runs it.
 *   Requires  As in wheel.h: a duty of the caller, which a library with assertions sees, the guide's list
 *             excepted.
 *   Errors    0 or a negative TW_E* code (wheel.h has the texts); a call that fails has changed nothing.
 *   NULL      Valid only where a label says so.
 */
#ifndef TICKWHEEL_LOOP_H
#define TICKWHEEL_LOOP_H

#include <tickwheel/duration.h>
#include <tickwheel/wheel.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A wheel in an event loop. What is in it is known to the library alone. */
struct tw_loop;
/* What brings a scheduler's callbacks to an event loop. What is in it is known to the library alone. */
struct tw_executor;
struct tw_sched_options;

/* ---- attaching ------------------------------------------------------------------------------------------ */

/* Called on the loop's thread for each timer that is due; the timer is not pending any more. It may add, move
 * and cancel any timer, free this one's memory, and free the tw_loop and the wheel. Requires: it does not run
 * the loop, unless the adapter's header says that it may. */
typedef void tw_due_fn(void *arg, struct tw_timer *timer);

/* How a wheel is attached. */
struct tw_loop_options {
    uint64_t tick_ns; /* 1,000 to 3,600,000,000,000; 0: 1,000,000 (a millisecond) */
    uint32_t budget;  /* units of work in a turn; 0: 256 */
    tw_due_fn *due;   /* not NULL */
    void *arg;        /* for `due` */
};

/* Says whether options are valid and, if not, which value is wrong and what it may be. `message` receives at
 * most `size` bytes, always terminated. Requires: `message` is not NULL, or `size` is 0. Returns: 0 or
 * TW_EINVAL. */
int tw_loop_check(const struct tw_loop_options *options, char *message, size_t size);

/* Takes the wheel out of the loop. Its timers stay pending, and the wheel stays the caller's. `loop` may be
 * NULL. Requires: the wheel is still there. In callback: yes. */
void tw_loop_free(struct tw_loop *loop);

/* ---- timers --------------------------------------------------------------------------------------------- */

/* The time: CLOCK_MONOTONIC in nanoseconds. */
uint64_t tw_loop_now(const struct tw_loop *loop);

/* Files a timer to fire `ns` from now, or at a time. Requires: the timer is not pending. Returns: as
 * tw_wheel_add_at(); a wheel that refuses measures its range from where it stands, which is the present unless
 * timers are overdue; TW_ESYSTEM: the loop would not take the first timer. Cost: O(1); the clock is read by
 * `_in`, and when the loop's timer is set. In callback: yes. */
int tw_loop_add_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns);
int tw_loop_add_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns);

/* Gives a timer a new time, whether it is pending or not: a heartbeat. Later than before is two stores.
 * Requires: the timer, if pending, is pending in this wheel.
 * Returns, Cost: as tw_loop_add_in(); a timer that is refused keeps its old time. In callback: yes. */
int tw_loop_move_in(struct tw_loop *loop, struct tw_timer *timer, uint64_t ns);
int tw_loop_move_at(struct tw_loop *loop, struct tw_timer *timer, uint64_t at_ns);

/* Takes a timer out. Its memory is the caller's again at once. Requires: the timer, if pending, is pending in
 * this wheel. Returns: whether it was pending. In callback: yes. */
bool tw_loop_cancel(struct tw_loop *loop, struct tw_timer *timer);

/* ---- the wheel itself ------------------------------------------------------------------------------------ */

/* The wheel that was attached. */
struct tw_wheel *tw_loop_wheel(const struct tw_loop *loop);

/* The tick on which a timer with this time is due: the first one that does not begin before it. */
uint64_t tw_loop_tick(const struct tw_loop *loop, uint64_t at_ns);

/* When a tick begins; UINT64_MAX if that is past the end of time. The tick at which the wheel stood when it was
 * attached, and those before it, begin at that moment. */
uint64_t tw_loop_time(const struct tw_loop *loop, uint64_t tick);

/* To be called after timers were filed with tw_wheel_add_at() and the like: sets the loop's timer earlier if
 * that is needed. Returns: 0; TW_ESYSTEM: the loop would not take its timer; call it again. In callback: yes,
 * without need. */
int tw_loop_update(struct tw_loop *loop);

/* ---- a scheduler in a loop --------------------------------------------------------------------------------
 *
 * The scheduler (sched.h) keeps its own timer thread; an executor has its callbacks run on the loop's thread:
 *     tw_executor_uv_new(&executor, loop, 0, &options);    // fills in options.execute
 *     tw_sched_new(&sched, &options);                      // any thread may add now
 *     ...
 *     tw_sched_free(sched);                                // on the loop's thread, outside of callbacks
 *     tw_executor_free(executor);                          // before the loop turns again
 * In one turn of the loop at most `budget` callbacks run (0: 256), in the scheduler's order. An executor serves
 * one scheduler, and keeps its loop running until it is freed. The program links tickwheel_sched. */

/* Ends an executor. `executor` may be NULL. Requires: its scheduler was freed, or never made; no callback of
 * the scheduler is under way. In callback: no. */
void tw_executor_free(struct tw_executor *executor);

/* ---- other loops -----------------------------------------------------------------------------------------
 *
 * An adapter of your own takes these; src/loops/epoll.c is the shortest example. */

/* What a loop does for its wheel. */
struct tw_loop_driver {
    /* Has tw_loop_turn() called once, in a turn of the loop at `at_ns` or later, instead of when it was told
     * before; it is `now_ns`. A time that has passed means the next turn, after the loop's other events;
     * UINT64_MAX means never. It is never more than a day ahead. Returns 0, or TW_ESYSTEM. Requires: it refuses
     * only when it was off before. */
    int (*arm)(void *arg, uint64_t at_ns, uint64_t now_ns);
    /* Lets go of everything. Called by tw_loop_free(). */
    void (*close)(void *arg);
    /* The clock; NULL: CLOCK_MONOTONIC. Requires: it does not go back. */
    uint64_t (*now)(void *arg);
    /* While armed, the loop does not end by itself: it is to be off as soon as nothing is pending. */
    bool lingers;
};

/* Makes a tw_loop. `arg` is handed to the driver, which is copied.
 * Returns: 0, and the loop in *loop; TW_EINVAL (tw_loop_check() says why); TW_ENOMEM; what `arm` returned. */
int tw_loop_new(struct tw_loop **loop, struct tw_wheel *wheel, const struct tw_loop_options *options,
                const struct tw_loop_driver *driver, void *arg);

/* What tw_loop_new() was given for the driver. */
void *tw_loop_driver_arg(const struct tw_loop *loop);

/* What is to be done when the time has come that `arm` was told. Doing it earlier is no fault. The loop may be
 * gone when it returns, as its callbacks may free it. */
void tw_loop_turn(struct tw_loop *loop);

/* What a loop does for an executor. */
struct tw_executor_driver {
    /* Has tw_executor_turn() called in the loop's next turn, on its thread. Called from any thread. */
    void (*wake)(void *arg);
    /* Takes note that it was; called at the beginning of tw_executor_turn(). NULL: nothing to be done. */
    void (*clear)(void *arg);
    /* Lets go of everything. Called by tw_executor_free(). */
    void (*close)(void *arg);
};

/* Makes an executor and fills in options->execute and options->execute_arg. Returns: 0, and the executor in
 * *executor; TW_EINVAL: the options have workers or an execute hook, or the program does not link
 * tickwheel_sched; TW_ENOMEM. */
int tw_executor_new(struct tw_executor **executor, uint32_t budget, struct tw_sched_options *options,
                    const struct tw_executor_driver *driver, void *arg);

/* What is to be done after `wake`. */
void tw_executor_turn(struct tw_executor *executor);

#ifdef __cplusplus
}
#endif

#endif
