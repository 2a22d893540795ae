/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_ev.h - a wheel in a libev loop: an ev_timer, and an ev_check while more is due than one turn
 * takes.
 *
 * The loop goes on by itself while timers are pending, as it does for timers of its own. Setting the timer
 * calls ev_now_update(). ev_suspend() does not stop the clock of the wheel. The conventions are those of
 * loop.h.
 *
 * libev has functions with the names of those of libevent, event_add() among them: a program with both links
 * -levent_core before -lev.
 */
#ifndef TICKWHEEL_LOOP_EV_H
#define TICKWHEEL_LOOP_EV_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct ev_loop; /* of libev */

/* Attaches a wheel to a loop; tw_loop_free() takes it out again. Returns: 0, and the loop in *loop; TW_EINVAL
 * (tw_loop_check() says why); TW_ENOMEM. */
int tw_loop_ev_new(struct tw_loop **loop, struct ev_loop *ev, struct tw_wheel *wheel,
                   const struct tw_loop_options *options);

/* Makes an executor for a scheduler whose callbacks are to run in this loop. Returns: 0, and the executor in
 * *executor; TW_EINVAL (as tw_executor_new()); TW_ENOMEM. */
int tw_executor_ev_new(struct tw_executor **executor, struct ev_loop *ev, uint32_t budget,
                       struct tw_sched_options *options);

#ifdef __cplusplus
}
#endif

#endif
