/* SPDX-License-Identifier: MIT
 *
 * libuv.
 */
#include "kind.h"

#include <stdlib.h>
#include <tickwheel/loop_uv.h>
#include <uv.h>

static uv_poll_t poll_handle;
static void (*on_readable)(void);

static void *base_open(void)
{
    uv_loop_t *uv = malloc(sizeof *uv);
    uv_loop_init(uv);
    return uv;
}

/* A handle that is still open was not closed: that aborts the test. */
static void base_close(void *base)
{
    uv_run(base, UV_RUN_DEFAULT);
    if (uv_loop_close(base) != 0)
        abort();
    free(base);
}

static int attach(struct tw_loop **loop, void *base, struct tw_wheel *wheel,
                  const struct tw_loop_options *options)
{
    return tw_loop_uv_new(loop, base, wheel, options);
}

static int executor(struct tw_executor **made, void *base, uint32_t budget)
{
    return tw_executor_uv_new(made, base, budget);
}

static void owner(struct tw_loop *loop, struct tw_executor *of)
{
    (void)loop;
    (void)of;
}

static void on_poll(uv_poll_t *handle, int status, int events)
{
    (void)handle;
    (void)status;
    (void)events;
    on_readable();
}

static void watch(void *base, int fd, void (*readable)(void))
{
    on_readable = readable;
    uv_poll_init(base, &poll_handle, fd);
    uv_poll_start(&poll_handle, UV_READABLE, on_poll);
    uv_unref((uv_handle_t *)&poll_handle);
}

static void unwatch(void *base)
{
    (void)base;
    uv_close((uv_handle_t *)&poll_handle, NULL);
}

static void run(void *base)
{
    uv_run(base, UV_RUN_DEFAULT);
}

static void stop(void *base)
{
    uv_stop(base);
}

/* A handle that is being closed is still in the loop. */
static bool empty(void *base)
{
    return !uv_loop_alive(base);
}

static uv_timer_t own_timer;
static bool (*on_own)(void);

static void on_own_timer(uv_timer_t *timer)
{
    if (!on_own())
        uv_close((uv_handle_t *)timer, NULL);
}

static void often(void *base, bool (*called)(void))
{
    on_own = called;
    uv_timer_init(base, &own_timer);
    uv_timer_start(&own_timer, on_own_timer, 1, 1);
}

static void *forked(void *base)
{
    uv_loop_fork(base);
    return base;
}

const struct kind kind = {"libuv", true,    false, base_open, base_close, attach, executor, owner,
                          watch,   unwatch, run,   stop,      empty,      often,  forked};

/* ---- calls that may fail --------------------------------------------------------------------------------- */

int __real_uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb called);
int __wrap_uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb called);

int __wrap_uv_async_init(uv_loop_t *uv, uv_async_t *async, uv_async_cb called)
{
    return failing() ? UV_EMFILE : __real_uv_async_init(uv, async, called);
}
