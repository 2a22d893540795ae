/* SPDX-License-Identifier: MIT
 *
 * libev.
 */
#include "kind.h"

#include <ev.h>
#include <tickwheel/loop_ev.h>

static ev_io io;
static void (*on_readable)(void);

static void *base_open(void)
{
    return ev_loop_new(EVFLAG_AUTO);
}

static void base_close(void *base)
{
    ev_loop_destroy(base);
}

static int attach(struct tw_loop **loop, void *base, struct tw_wheel *wheel,
                  const struct tw_loop_options *options)
{
    return tw_loop_ev_new(loop, base, wheel, options);
}

static int executor(struct tw_executor **made, void *base, uint32_t budget)
{
    return tw_executor_ev_new(made, base, budget);
}

static void owner(struct tw_loop *loop, struct tw_executor *of)
{
    (void)loop;
    (void)of;
}

static void on_io(struct ev_loop *base, ev_io *watcher, int events)
{
    (void)base;
    (void)watcher;
    (void)events;
    on_readable();
}

static void watch(void *base, int fd, void (*readable)(void))
{
    on_readable = readable;
    ev_io_init(&io, on_io, fd, EV_READ);
    ev_io_start(base, &io);
    ev_unref(base);
}

static void unwatch(void *base)
{
    ev_ref(base);
    ev_io_stop(base, &io);
}

static void run(void *base)
{
    ev_run(base, 0);
}

static void stop(void *base)
{
    ev_break(base, EVBREAK_ALL);
}

static void *forked(void *base)
{
    ev_loop_fork(base);
    return base;
}

const struct kind kind = {"libev", true,    false, base_open, base_close, attach, executor, owner,
                          watch,   unwatch, run,   stop,      NULL,       NULL,   forked};
