/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_event.h - a wheel in a libevent loop: an event on a timerfd, which is finer than libevent's
 * own timers. Linux.
 *
 * A complete program. Link it with libtickwheel_event and libevent:
 * `cc first.c $(pkg-config --cflags --libs tickwheel_event libevent_core)`.
 *
 *     #include <event2/event.h>
 *     #include <tickwheel/loop_event.h>
 *
 *     static void due(void *arg, struct tw_timer *timer)
 *     {
 *         (void)timer;
 *         *(int *)arg = 1;
 *     }
 *
 *     int main(void)
 *     {
 *         struct event_base *base = event_base_new();
 *         int fired = 0;
 *         struct tw_loop_options options = {.due = due, .arg = &fired};
 *         struct tw_wheel *wheel;
 *         struct tw_loop *loop;
 *         struct tw_timer timer = {0};
 *         if (tw_wheel_new(&wheel, NULL, 0) != 0 || tw_loop_event_new(&loop, base, wheel, &options) != 0)
 *             return 1;
 *         tw_loop_add_in(loop, &timer, TW_MS(20));
 *         event_base_dispatch(base); // returns when nothing is pending any more
 *         tw_loop_free(loop);
 *         tw_wheel_free(wheel);
 *         event_base_free(base);
 *         return !fired;
 *     }
 *
 * The base goes on by itself while timers are pending, as it does for timers of its own. The event has the
 * middle priority. Free loops and executors before the base. The conventions are those of loop.h.
 *
 * A child of fork() that goes on frees its loops and executors, calls event_reinit(), and attaches the wheel
 * again. In this order: a base made anew before the loop is freed would still watch the parent's timerfd, and
 * wake up whenever the parent does.
 */
#ifndef TICKWHEEL_LOOP_EVENT_H
#define TICKWHEEL_LOOP_EVENT_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base; /* of libevent */

/* Attaches a wheel to a loop, as tw_loop_new().
 * Returns: 0, TW_EINVAL, TW_ENOMEM or TW_ESYSTEM. */
int tw_loop_event_new(struct tw_loop **loop, struct event_base *base, struct tw_wheel *wheel,
                      const struct tw_loop_options *options);

/* Makes an executor for this loop, as tw_executor_new().
 * Returns: 0, TW_EINVAL, TW_ENOMEM or TW_ESYSTEM. */
int tw_executor_event_new(struct tw_executor **executor, struct event_base *base, uint32_t budget);

#ifdef __cplusplus
}
#endif

#endif
