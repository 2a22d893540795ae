/* SPDX-License-Identifier: MIT
 *
 * libuv: a timer, and an idle handle that is active while more timers are due than one pass fires.
 *
 * libuv's timers count whole milliseconds from a time that libuv noted at the beginning of its iteration.
 * This time comes from CLOCK_MONOTONIC, but it is old by the time that callbacks have taken since. There are
 * two ways to count the delay to the whole millisecond after `at_ns`:
 *   - From the time noted. libuv does not call before `at_ns`, however old the time is. But it sleeps for the
 *     whole delay from now on, and so too long by the time that callbacks have taken.
 *   - From the present, as we do. libuv sleeps as long as it should. But if other events make it run an
 *     iteration in between, it notes the time again and calls too early, by as much. Then no timer is due,
 *     and the adapter sets the timer again.
 * Example: libuv has noted 1,000 ms, and a callback that has taken 40 ms files a timer for 1,100 ms. Counted
 * from the time noted, the delay is 100 ms, and libuv sleeps until 1,140. Counted from the present it is 60
 * ms, and libuv sleeps until 1,100. If an event wakes libuv at 1,050, it calls at 1,000 + 60 = 1,060, and the
 * adapter sets the timer again, for 40 ms.
 *
 * Rejected: uv_update_time(). Suppose a callback of the program's own repeating timer takes longer than the
 * timer's period. If it then files a timer here, uv_update_time() makes the program's timer due again, and
 * libuv 1.44 would call nothing else any more.
 *
 * A timer that is started with 0 inside a timer's callback is called at once, before any other event: libuv
 * 1.44 takes timers from its heap as long as one is due. So the idle handle runs the passes. libuv calls it
 * once in each iteration; while it is active the loop does not sleep, but polls for other events in between.
 *
 * A handle that was put into a libuv loop leaves it only in the loop's next iteration. So handles are put in
 * when nothing can fail any more: a caller whose call has failed may close the loop.
 */
#include <tickwheel/loop_uv.h>
#include <tickwheel/sched.h>

#include <base/assert.h>
#include <stdlib.h>
#include <uv.h>

/* ---- a wheel --------------------------------------------------------------------------------------------- */

struct handles {
    uv_timer_t timer;
    uv_idle_t idle;
    struct tw_loop *loop;
    uint64_t first_ns; /* the time that was asked for before the handles were in the loop */
    unsigned open;
};

static void on_idle(uv_idle_t *idle)
{
    const struct handles *handles = idle->data;
    tw_loop_turn(handles->loop);
}

static void on_timer(uv_timer_t *timer)
{
    struct handles *handles = timer->data;
    uv_idle_start(&handles->idle, on_idle);
}

static int handles_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    enum { NS_PER_MS = 1000000 };
    struct handles *handles = arg;
    if (handles->open == 0) {
        handles->first_ns = at_ns;
    } else if (at_ns == UINT64_MAX) {
        uv_idle_stop(&handles->idle);
        uv_timer_stop(&handles->timer);
    } else if (at_ns <= now_ns) {
        uv_timer_stop(&handles->timer);
        uv_idle_start(&handles->idle, on_idle);
    } else {
        uint64_t at_ms = at_ns / NS_PER_MS + (at_ns % NS_PER_MS != 0);
        uv_idle_stop(&handles->idle);
        uv_timer_start(&handles->timer, on_timer, at_ms - now_ns / NS_PER_MS, 0);
    }
    return 0;
}

static void on_handle_closed(uv_handle_t *handle)
{
    struct handles *handles = handle->data;
    if (--handles->open == 0)
        free(handles);
}

static void handles_close(void *arg)
{
    struct handles *handles = arg;
    uv_close((uv_handle_t *)&handles->timer, on_handle_closed);
    uv_close((uv_handle_t *)&handles->idle, on_handle_closed);
}

static void handles_open(struct handles *handles, uv_loop_t *uv)
{
    uv_timer_init(uv, &handles->timer);
    uv_idle_init(uv, &handles->idle);
    handles->timer.data = handles->idle.data = handles;
    handles->open = 2;
    handles_arm(handles, handles->first_ns, tw_loop_now(handles->loop));
}

int tw_loop_uv_new(struct tw_loop **made, uv_loop_t *uv, struct tw_wheel *wheel,
                   const struct tw_loop_options *options)
{
    static const struct tw_loop_driver driver = {.arm = handles_arm, .close = handles_close, .lingers = true};
    TW_ASSERT(made != NULL && uv != NULL);
    struct handles *handles = malloc(sizeof *handles);
    if (handles == NULL)
        return TW_ENOMEM;
    handles->first_ns = UINT64_MAX;
    handles->open = 0;
    int error = tw_loop_new(&handles->loop, wheel, options, &driver, handles);
    if (error != 0) {
        free(handles);
        return error;
    }
    handles_open(handles, uv);
    *made = handles->loop;
    return 0;
}

/* ---- a scheduler ----------------------------------------------------------------------------------------- */

struct uv_waker {
    uv_async_t handle;
    struct tw_executor *executor;
    bool open; /* the handle is in the loop */
};

static void on_async(uv_async_t *handle)
{
    const struct uv_waker *async = handle->data;
    tw_executor_turn(async->executor);
}

static void async_wake(void *arg)
{
    struct uv_waker *async = arg;
    uv_async_send(&async->handle);
}

static void on_async_closed(uv_handle_t *handle)
{
    free(handle->data);
}

static void async_close(void *arg)
{
    struct uv_waker *async = arg;
    if (async->open)
        uv_close((uv_handle_t *)&async->handle, on_async_closed);
    else
        free(async);
}

int tw_executor_uv_new(struct tw_executor **made, uv_loop_t *uv, uint32_t budget)
{
    static const struct tw_executor_driver driver = {.wake = async_wake, .close = async_close};
    TW_ASSERT(made != NULL && uv != NULL);
    struct uv_waker *async = malloc(sizeof *async);
    if (async == NULL)
        return TW_ENOMEM;
    async->open = false;
    int error = tw_executor_new(&async->executor, budget, &driver, async);
    if (error != 0) {
        free(async);
        return error;
    }
    if (uv_async_init(uv, &async->handle, on_async) != 0) {
        tw_executor_free(async->executor);
        return TW_ESYSTEM;
    }
    async->handle.data = async;
    async->open = true;
    *made = async->executor;
    return 0;
}
