/* SPDX-License-Identifier: MIT
 *
 * tickwheel/loop_uv.h - a wheel in a libuv loop: a uv_timer_t, and a uv_idle_t while more is due than one
 * iteration takes.
 *
 * A complete program. Link it with libtickwheel_uv and libuv:
 * `cc first.c $(pkg-config --cflags --libs tickwheel_uv libuv)`. With -std=c11 libuv's own header also needs
 * -D_DEFAULT_SOURCE.
 *
 *     #include <uv.h>
 *     #include <tickwheel/loop_uv.h>
 *
 *     static void due(void *arg, struct tw_timer *timer)
 *     {
 *         (void)timer;
 *         *(int *)arg = 1;
 *     }
 *
 *     int main(void)
 *     {
 *         uv_loop_t *uv = uv_default_loop();
 *         int fired = 0;
 *         struct tw_loop_options options = {.due = due, .arg = &fired};
 *         struct tw_wheel *wheel;
 *         struct tw_loop *loop;
 *         struct tw_timer timer = {0};
 *         if (tw_wheel_new(&wheel, NULL, 0) != 0 || tw_loop_uv_new(&loop, uv, wheel, &options) != 0)
 *             return 1;
 *         tw_loop_add_in(loop, &timer, TW_MS(20));
 *         uv_run(uv, UV_RUN_DEFAULT); // returns when nothing is pending any more
 *         tw_loop_free(loop);
 *         tw_wheel_free(wheel);
 *         uv_run(uv, UV_RUN_DEFAULT); // completes the closing of the handles
 *         return uv_loop_close(uv) != 0 || !fired;
 *     }
 *
 * The loop goes on by itself while timers are pending, as it does for timers of its own. tw_loop_free() and
 * tw_executor_free() close their handles. libuv completes this in the loop's next iteration, so let the loop
 * run once more before uv_loop_close(). libuv counts milliseconds: a shorter tick fires no sooner. The
 * conventions are those of loop.h. A child of fork() that goes on frees its loops and executors, calls
 * uv_loop_fork(), and attaches the wheel again.
 */
#ifndef TICKWHEEL_LOOP_UV_H
#define TICKWHEEL_LOOP_UV_H

#include <tickwheel/loop.h>

#ifdef __cplusplus
extern "C" {
#endif

struct uv_loop_s; /* uv_loop_t */

/* Attaches a wheel to a loop, as tw_loop_new().
 * Returns: 0, TW_EINVAL or TW_ENOMEM. */
int tw_loop_uv_new(struct tw_loop **loop, struct uv_loop_s *uv, struct tw_wheel *wheel,
                   const struct tw_loop_options *options);

/* Makes an executor for this loop, as tw_executor_new().
 * Returns: 0, TW_EINVAL, TW_ENOMEM or TW_ESYSTEM. */
int tw_executor_uv_new(struct tw_executor **executor, struct uv_loop_s *uv, uint32_t budget);

#ifdef __cplusplus
}
#endif

#endif
