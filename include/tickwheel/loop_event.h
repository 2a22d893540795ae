/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_event.h - a wheel in a libevent loop: an event on a timerfd, which is finer than libevent's
 * own timers. Linux.
 *
 * The base goes on by itself while timers are pending, as it does for timers of its own. The event has the
 * middle priority. Free loops and executors before the base. The conventions are those of loop.h.
 */
#ifndef TICKWHEEL_LOOP_EVENT_H
#define TICKWHEEL_LOOP_EVENT_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct event_base; /* of libevent */

/* Attaches a wheel to a loop; tw_loop_free() takes it out again. Returns: 0, and the loop in *loop; TW_EINVAL
 * (tw_loop_check() says why); TW_ENOMEM; TW_ESYSTEM. */
int tw_loop_event_new(struct tw_loop **loop, struct event_base *base, struct tw_wheel *wheel,
                      const struct tw_loop_options *options);

/* Makes an executor for a scheduler whose callbacks are to run in this loop. Returns: 0, and the executor in
 * *executor; TW_EINVAL (as tw_executor_new()); TW_ENOMEM; TW_ESYSTEM. */
int tw_executor_event_new(struct tw_executor **executor, struct event_base *base, uint32_t budget,
                          struct tw_sched_options *options);

#ifdef __cplusplus
}
#endif

#endif
