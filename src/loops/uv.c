/* SPDX-License-Identifier: MIT
 *
 * libuv: a timer, and an idle handle for as long as more is due than one turn takes.
 *
 * libuv's timers are in whole milliseconds of a time noted at the beginning of its turn, which comes from
 * CLOCK_MONOTONIC. Asked for the whole millisecond after `at_ns`, however long ago the time was noted, it does
 * not call before that has come. But it sleeps for what is left of it from the time noted, and so too long by
 * what callbacks have taken since. Therefore it is asked for what is left from the present. If it turns for
 * something else in between, and notes the time, it calls too early by as much: then nothing is due, and the
 * timer is set again.
 *
 * Rejected: uv_update_time(). In a callback of a timer of the program's own that takes longer than its period
 * it makes that timer due again, and libuv 1.44 would call nothing else any more.
 *
 * A timer that is started with 0 inside a timer's callback is called at once, before anything else has its turn
 * (libuv 1.44 takes from its heap for as long as something in it is due). So it is the idle handle that fires:
 * it is called once in each turn, and while it is active the loop does not sleep, but asks for other events in
 * between.
 *
 * What was put into a loop of libuv goes only in the loop's next turn. So handles are put in when nothing can
 * fail any more: who is refused may close his loop.
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
    uint64_t first_ns; /* what was asked for before they were in the loop */
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
    bool open; /* it is in the loop */
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

int tw_executor_uv_new(struct tw_executor **made, uv_loop_t *uv, uint32_t budget,
                       struct tw_sched_options *options)
{
    static const struct tw_executor_driver driver = {.wake = async_wake, .close = async_close};
    TW_ASSERT(made != NULL && uv != NULL && options != NULL);
    struct tw_sched_options filled = *options;
    struct uv_waker *async = malloc(sizeof *async);
    if (async == NULL)
        return TW_ENOMEM;
    async->open = false;
    int error = tw_executor_new(&async->executor, budget, &filled, &driver, async);
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
    *options = filled;
    *made = async->executor;
    return 0;
}
