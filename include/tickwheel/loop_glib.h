/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_glib.h - a wheel in a GLib main loop: a GSource with a ready time.
 *
 * A complete program. Link it with libtickwheel_glib and GLib:
 * `cc first.c $(pkg-config --cflags --libs tickwheel_glib glib-2.0)`.
 *
 *     #include <glib.h>
 *     #include <tickwheel/loop_glib.h>
 *
 *     static void due(void *arg, struct tw_timer *timer)
 *     {
 *         (void)timer;
 *         g_main_loop_quit(arg);
 *     }
 *
 *     int main(void)
 *     {
 *         GMainLoop *main_loop = g_main_loop_new(NULL, FALSE);
 *         struct tw_loop_options options = {.due = due, .arg = main_loop};
 *         struct tw_wheel *wheel;
 *         struct tw_loop *loop;
 *         struct tw_timer timer = {0};
 *         if (tw_wheel_new(&wheel, NULL, 0) != 0 || tw_loop_glib_new(&loop, NULL, wheel, &options) != 0)
 *             return 1;
 *         tw_loop_add_in(loop, &timer, TW_MS(20));
 *         g_main_loop_run(main_loop);
 *         tw_loop_free(loop);
 *         tw_wheel_free(wheel);
 *         g_main_loop_unref(main_loop);
 *     }
 *
 * The source has the default priority. A callback may run the main loop, for a dialogue. No timer of the
 * wheel fires in that inner loop, as is usual for GLib's sources. GLib counts milliseconds while it sleeps: a
 * shorter tick fires no sooner. The conventions are those of loop.h. `context` may be NULL, for the default
 * context. GLib has no way to go on with a context in a child of fork(): the child frees its loops and
 * executors, and attaches the wheel to a context of its own.
 */
#ifndef TICKWHEEL_LOOP_GLIB_H
#define TICKWHEEL_LOOP_GLIB_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct _GMainContext; /* GMainContext */

/* Attaches a wheel to a loop, as tw_loop_new().
 * Returns: 0, TW_EINVAL or TW_ENOMEM. */
int tw_loop_glib_new(struct tw_loop **loop, struct _GMainContext *context, struct tw_wheel *wheel,
                     const struct tw_loop_options *options);

/* Makes an executor for this loop, as tw_executor_new().
 * Returns: 0, TW_EINVAL or TW_ENOMEM. */
int tw_executor_glib_new(struct tw_executor **executor, struct _GMainContext *context, uint32_t budget);

#ifdef __cplusplus
}
#endif

#endif
