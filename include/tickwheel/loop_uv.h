/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_uv.h - a wheel in a libuv loop: a uv_timer_t, and a uv_idle_t while more is due than one turn
 * takes.
 *
 * The loop goes on by itself while timers are pending, as it does for timers of its own. tw_loop_free() and
 * tw_executor_free() close their handles, which libuv completes on the loop's next turn: let it turn once more
 * before uv_loop_close(). libuv counts milliseconds: a shorter tick fires no sooner. The conventions are those
 * of loop.h.
 */
#ifndef TICKWHEEL_LOOP_UV_H
#define TICKWHEEL_LOOP_UV_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s; /* uv_loop_t */

/* Attaches a wheel to a loop; tw_loop_free() takes it out again. Returns: 0, and the loop in *loop; TW_EINVAL
 * (tw_loop_check() says why); TW_ENOMEM. */
int tw_loop_uv_new(struct tw_loop **loop, struct uv_loop_s *uv, struct tw_wheel *wheel,
                   const struct tw_loop_options *options);

/* Makes an executor for a scheduler whose callbacks are to run in this loop. Returns: 0, and the executor in
 * *executor; TW_EINVAL (as tw_executor_new()); TW_ENOMEM; TW_ESYSTEM. */
int tw_executor_uv_new(struct tw_executor **executor, struct uv_loop_s *uv, uint32_t budget,
                       struct tw_sched_options *options);

#ifdef __cplusplus
}
#endif

#endif
