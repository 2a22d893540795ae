/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_glib.h - a wheel in a GLib main loop: a GSource with a ready time.
 *
 * The source has the default priority. A callback may run the main loop, for a dialogue; no timer of the wheel
 * fires in it, as is the way of GLib's sources. GLib counts milliseconds while it sleeps: a shorter tick fires
 * no sooner. The conventions are those of loop.h. `context` may be NULL: the default one.
 */
#ifndef TICKWHEEL_LOOP_GLIB_H
#define TICKWHEEL_LOOP_GLIB_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _GMainContext; /* GMainContext */

/* Attaches a wheel to a loop; tw_loop_free() takes it out again. Returns: 0, and the loop in *loop; TW_EINVAL
 * (tw_loop_check() says why); TW_ENOMEM. */
int tw_loop_glib_new(struct tw_loop **loop, struct _GMainContext *context, struct tw_wheel *wheel,
                     const struct tw_loop_options *options);

/* Makes an executor for a scheduler whose callbacks are to run in this loop. Returns: 0, and the executor in
 * *executor; TW_EINVAL (as tw_executor_new()); TW_ENOMEM. */
int tw_executor_glib_new(struct tw_executor **executor, struct _GMainContext *context, uint32_t budget,
                         struct tw_sched_options *options);

#ifdef __cplusplus
}
#endif

#endif
