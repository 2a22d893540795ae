/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_ev.h - a wheel in a libev loop: an ev_timer, and an ev_check while more is due than one
 * iteration takes.
 *
 * A complete program. Link it with libtickwheel_ev and libev:
 * `cc first.c $(pkg-config --cflags --libs tickwheel_ev) -lev`.
 *
 *     #include <ev.h>
 *     #include <tickwheel/loop_ev.h>
 *
 *     static void due(void *arg, struct tw_timer *timer)
 *     {
 *         (void)timer;
 *         *(int *)arg = 1;
 *     }
 *
 *     int main(void)
 *     {
 *         struct ev_loop *ev = ev_loop_new(0);
 *         int fired = 0;
 *         struct tw_loop_options options = {.due = due, .arg = &fired};
 *         struct tw_wheel *wheel;
 *         struct tw_loop *loop;
 *         struct tw_timer timer = {0};
 *         if (tw_wheel_new(&wheel, NULL, 0) != 0 || tw_loop_ev_new(&loop, ev, wheel, &options) != 0)
 *             return 1;
 *         tw_loop_add_in(loop, &timer, TW_MS(20));
 *         ev_run(ev, 0); // returns when nothing is pending any more
 *         tw_loop_free(loop);
 *         tw_wheel_free(wheel);
 *         ev_loop_destroy(ev);
 *         return !fired;
 *     }
 *
 * The loop goes on by itself while timers are pending, as it does for timers of its own. The adapter calls
 * ev_now_update() when it sets the loop's timer. ev_suspend() does not stop the clock of the wheel. The
 * conventions are those of loop.h. A child of fork() that goes on frees its loops and executors, calls
 * ev_loop_fork(), and attaches the wheel again.
 *
 * libev has functions with the names of libevent's functions, such as event_add(). A program with both
 * libraries links -levent_core before -lev.
 */
#ifndef TICKWHEEL_LOOP_EV_H
#define TICKWHEEL_LOOP_EV_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop; /* of libev */

/* Attaches a wheel to a loop, as tw_loop_new().
 * Returns: 0, TW_EINVAL or TW_ENOMEM. */
int tw_loop_ev_new(struct tw_loop **loop, struct ev_loop *ev, struct tw_wheel *wheel,
                   const struct tw_loop_options *options);

/* Makes an executor for this loop, as tw_executor_new().
 * Returns: 0, TW_EINVAL or TW_ENOMEM. */
int tw_executor_ev_new(struct tw_executor **executor, struct ev_loop *ev, uint32_t budget);

#ifdef __cplusplus
}
#endif

#endif
