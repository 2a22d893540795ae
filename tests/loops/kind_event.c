/* SPDX-License-Identifier: MIT
 *
 * libevent.
 */
#include "kind.h"

#include <event2/event.h>
#include <tickwheel/loop_event.h>

static struct event *poll_event;
static void (*on_readable)(void);

static void *base_open(void)
{
    return event_base_new();
}

static void base_close(void *base)
{
    event_base_free(base);
}

static int attach(struct tw_loop **loop, void *base, struct tw_wheel *wheel,
                  const struct tw_loop_options *options)
{
    return tw_loop_event_new(loop, base, wheel, options);
}

static int executor(struct tw_executor **made, void *base, uint32_t budget)
{
    return tw_executor_event_new(made, base, budget);
}

static void owner(struct tw_loop *loop, struct tw_executor *of)
{
    (void)loop;
    (void)of;
}

static void on_event(evutil_socket_t fd, short what, void *arg)
{
    (void)fd;
    (void)what;
    (void)arg;
    on_readable();
}

static void watch(void *base, int fd, void (*readable)(void))
{
    on_readable = readable;
    poll_event = event_new(base, fd, EV_READ | EV_PERSIST, on_event, NULL);
    event_add(poll_event, NULL);
}

static void unwatch(void *base)
{
    (void)base;
    event_free(poll_event);
}

static void run(void *base)
{
    event_base_dispatch(base);
}

static void stop(void *base)
{
    event_base_loopbreak(base);
}

static bool empty(void *base)
{
    return event_base_get_num_events(base, EVENT_BASE_COUNT_ADDED) == 0;
}

static void *forked(void *base)
{
    event_reinit(base);
    return base;
}

const struct kind kind = {"libevent", true,    false, base_open, base_close, attach, executor, owner,
                          watch,      unwatch, run,   stop,      empty,      NULL,   forked};

/* ---- calls that may fail --------------------------------------------------------------------------------- */

struct event *__real_event_new(struct event_base *base, evutil_socket_t fd, short what,
                               event_callback_fn called, void *arg);
struct event *__wrap_event_new(struct event_base *base, evutil_socket_t fd, short what,
                               event_callback_fn called, void *arg);

struct event *__wrap_event_new(struct event_base *base, evutil_socket_t fd, short what,
                               event_callback_fn called, void *arg)
{
    return failing() ? NULL : __real_event_new(base, fd, what, called, arg);
}

int __real_event_add(struct event *event, const struct timeval *timeout);
int __wrap_event_add(struct event *event, const struct timeval *timeout);

int __wrap_event_add(struct event *event, const struct timeval *timeout)
{
    return failing() ? -1 : __real_event_add(event, timeout);
}
