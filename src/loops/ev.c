/* SPDX-License-Identifier: MIT
 *
 * libev: a timer, and a check watcher that is active while more timers are due than one pass fires.
 *
 * libev counts a delay from the time that it noted at the beginning of its iteration. The adapter cannot read
 * that time on the monotonic clock, so it has libev note the time again (ev_now_update()).
 *
 * A timer that is started with a delay of 0 still makes libev sleep for a millisecond. So the check watcher
 * runs the pass: libev calls it once in each iteration, after it has polled for other events. An idle watcher
 * that does nothing keeps the loop from sleeping meanwhile. (An idle watcher alone would be called only when
 * there are no other events.)
 */
#include <tickwheel/loop_ev.h>

#include <base/assert.h>
#include <ev.h>
#include <stdlib.h>

/* ---- a wheel --------------------------------------------------------------------------------------------- */

struct watchers {
    ev_timer timer;
    ev_check check;
    ev_idle idle;
    struct ev_loop *ev;
    struct tw_loop *loop;
};

static void on_timer(struct ev_loop *ev, ev_timer *timer, int events)
{
    const struct watchers *watchers = timer->data;
    (void)ev;
    (void)events;
    tw_loop_turn(watchers->loop);
}

static void on_check(struct ev_loop *ev, ev_check *check, int events)
{
    const struct watchers *watchers = check->data;
    (void)ev;
    (void)events;
    tw_loop_turn(watchers->loop);
}

/* While the idle watcher is active, the loop does not sleep. The check watcher is called before it, and stops
 * it or starts it again.
 * GCOVR_EXCL_START */
static void on_idle(struct ev_loop *ev, ev_idle *idle, int events)
{
    (void)ev;
    (void)idle;
    (void)events;
}
/* GCOVR_EXCL_STOP */

static void stop(struct watchers *watchers)
{
    ev_timer_stop(watchers->ev, &watchers->timer);
    ev_check_stop(watchers->ev, &watchers->check);
    ev_idle_stop(watchers->ev, &watchers->idle);
}

static int watchers_arm(void *arg, uint64_t at_ns, uint64_t now_ns)
{
    struct watchers *watchers = arg;
    stop(watchers);
    if (at_ns == UINT64_MAX)
        return 0;
    if (at_ns <= now_ns) {
        ev_check_start(watchers->ev, &watchers->check);
        ev_idle_start(watchers->ev, &watchers->idle);
        return 0;
    }
    const uint64_t rounding_ns = 1000; /* a double of seconds may be this much too small */
    ev_now_update(watchers->ev);
    ev_timer_set(&watchers->timer, (ev_tstamp)(at_ns - now_ns + rounding_ns) / 1e9, 0);
    ev_timer_start(watchers->ev, &watchers->timer);
    return 0;
}

static void watchers_close(void *arg)
{
    stop(arg);
    free(arg);
}

static struct watchers *watchers_new(struct ev_loop *ev)
{
    struct watchers *watchers = malloc(sizeof *watchers);
    if (watchers == NULL)
        return NULL;
    watchers->ev = ev;
    ev_timer_init(&watchers->timer, on_timer, 0, 0);
    ev_check_init(&watchers->check, on_check);
    ev_idle_init(&watchers->idle, on_idle);
    watchers->timer.data = watchers->check.data = watchers;
    return watchers;
}

int tw_loop_ev_new(struct tw_loop **made, struct ev_loop *ev, struct tw_wheel *wheel,
                   const struct tw_loop_options *options)
{
    static const struct tw_loop_driver driver = {.arm = watchers_arm, .close = watchers_close, .lingers = true};
    TW_ASSERT(made != NULL && ev != NULL);
    struct watchers *watchers = watchers_new(ev);
    if (watchers == NULL)
        return TW_ENOMEM;
    int error = tw_loop_new(&watchers->loop, wheel, options, &driver, watchers);
    if (error != 0)
        watchers_close(watchers);
    else
        *made = watchers->loop;
    return error;
}

/* ---- a scheduler ----------------------------------------------------------------------------------------- */

struct ev_waker {
    ev_async watcher;
    struct ev_loop *ev;
    struct tw_executor *executor;
};

static void on_async(struct ev_loop *ev, ev_async *watcher, int events)
{
    const struct ev_waker *async = watcher->data;
    (void)ev;
    (void)events;
    tw_executor_turn(async->executor);
}

static void async_wake(void *arg)
{
    struct ev_waker *async = arg;
    ev_async_send(async->ev, &async->watcher);
}

static void async_close(void *arg)
{
    struct ev_waker *async = arg;
    ev_async_stop(async->ev, &async->watcher);
    free(async);
}

int tw_executor_ev_new(struct tw_executor **made, struct ev_loop *ev, uint32_t budget)
{
    static const struct tw_executor_driver driver = {.wake = async_wake, .close = async_close};
    TW_ASSERT(made != NULL && ev != NULL);
    struct ev_waker *async = malloc(sizeof *async);
    if (async == NULL)
        return TW_ENOMEM;
    async->ev = ev;
    ev_async_init(&async->watcher, on_async);
    async->watcher.data = async;
    ev_async_start(ev, &async->watcher);
    int error = tw_executor_new(&async->executor, budget, &driver, async);
    if (error != 0)
        async_close(async);
    else
        *made = async->executor;
    return error;
}
