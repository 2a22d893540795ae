/* SPDX-License-Identifier: MIT
 *
 * epoll. The loop of the test is a loop around epoll_wait(), as programs write it; with OWN_WAIT, a loop
 * around tw_loop_epoll_wait().
 */
#include "kind.h"

#include <errno.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/timerfd.h>
#include <tickwheel/loop_epoll.h>
#include <unistd.h>

static struct {
    int fd, watched;
    bool stopped;
    void (*readable)(void);
    struct tw_loop *loop;
    struct tw_executor *executor;
} base;

static void *base_open(void)
{
    base.fd = epoll_create1(EPOLL_CLOEXEC);
    base.loop = NULL;
    base.executor = NULL;
    base.stopped = false;
    return &base;
}

static void base_close(void *arg)
{
    (void)arg;
    close(base.fd);
}

static int attach(struct tw_loop **loop, void *arg, struct tw_wheel *wheel,
                  const struct tw_loop_options *options)
{
    (void)arg;
#ifdef OWN_WAIT
    return tw_loop_epoll_wait_new(loop, base.fd, wheel, options);
#else
    return tw_loop_epoll_new(loop, base.fd, wheel, options);
#endif
}

static int executor(struct tw_executor **made, void *arg, uint32_t budget)
{
    (void)arg;
    return tw_executor_epoll_new(made, base.fd, budget);
}

static void owner(struct tw_loop *loop, struct tw_executor *of)
{
    base.loop = loop;
    base.executor = of;
}

static void watch(void *arg, int fd, void (*readable)(void))
{
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    (void)arg;
    base.watched = fd;
    base.readable = readable;
    epoll_ctl(base.fd, EPOLL_CTL_ADD, fd, &event);
}

static void unwatch(void *arg)
{
    (void)arg;
    epoll_ctl(base.fd, EPOLL_CTL_DEL, base.watched, NULL);
}

/* One wait. base.loop is NULL after a callback has freed the loop. */
static int wait_for(struct epoll_event *events, int room)
{
#ifdef OWN_WAIT
    if (base.loop != NULL)
        return tw_loop_epoll_wait(base.loop, events, room, -1);
#endif
    return epoll_wait(base.fd, events, room, -1);
}

static void run(void *arg)
{
    (void)arg;
    while (!base.stopped) {
        struct epoll_event events[4];
        int n = wait_for(events, 4);
        for (int i = 0; i < n; i++)
            if (!tw_loop_epoll_handle(base.loop, &events[i]) &&
                !tw_executor_epoll_handle(base.executor, &events[i]) && events[i].data.fd == base.watched)
                base.readable();
    }
    base.stopped = false; /* there may be an outer run */
}

static void stop(void *arg)
{
    (void)arg;
    base.stopped = true;
}

static void *forked(void *arg)
{
    close(base.fd);
    base.fd = epoll_create1(EPOLL_CLOEXEC);
    return arg;
}

#ifdef OWN_WAIT
#define NAME "epoll_wait"
#else
#define NAME "epoll"
#endif

const struct kind kind = {NAME,  false,   true, base_open, base_close, attach, executor, owner,
                          watch, unwatch, run,  stop,      NULL,       NULL,   forked};

/* ---- calls that may fail --------------------------------------------------------------------------------- */

int __real_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event);
int __wrap_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event);

int __wrap_epoll_ctl(int epoll_fd, int what, int fd, struct epoll_event *event)
{
    if (what == EPOLL_CTL_ADD && failing()) {
        errno = ENOSPC; /* the user's watches are used up */
        return -1;
    }
    return __real_epoll_ctl(epoll_fd, what, fd, event);
}
