/* SPDX-License-Identifier: MIT
 *
 * A wheel in an epoll loop, through the adapter. The file that includes this defines ENGINE_NEW, which
 * attaches the wheel, engine_wait(), which waits for events and fires the due timers, engine_turn() and
 * engine_beat().
 */
#include "connection.inc.h"

#include <sys/epoll.h>
#include <tickwheel/loop_epoll.h>
#include <unistd.h>

BENCH_CONNECTION(struct tw_timer);

static const uint64_t idle_ns = IDLE_MS * UINT64_C(1000000);
static struct tw_wheel *wheel;
static struct tw_loop *loop;
static int epoll_fd;
static bool stopped;
typedef void ready_fn(void);
static ready_fn *watched[2];
static int watches;

static void on_due(void *arg, struct tw_timer *timer)
{
    (void)arg;
    reap((struct connection *)(void *)timer);
}

static void engine_open(void)
{
    struct tw_loop_options options = {.due = on_due};
    epoll_fd = epoll_create1(EPOLL_CLOEXEC);
    watches = 0;
    if (epoll_fd < 0 || tw_wheel_new(&wheel, NULL, 0) != 0 || ENGINE_NEW(&loop, epoll_fd, wheel, &options) != 0)
        bench_fail("tickwheel: no loop");
}

static void engine_close(void)
{
    tw_loop_free(loop);
    tw_wheel_free(wheel);
    close(epoll_fd);
}

static void engine_watch(int fd, ready_fn *ready)
{
    watched[watches] = ready;
    struct epoll_event event = {.events = EPOLLIN, .data.ptr = &watched[watches++]};
    if (epoll_ctl(epoll_fd, EPOLL_CTL_ADD, fd, &event) != 0)
        bench_fail("tickwheel: a descriptor cannot be watched");
}

static void engine_start(struct connection *connection)
{
    if (tw_loop_add_in(loop, &connection->timer, idle_ns) != 0)
        bench_fail("tickwheel: a timer cannot be added");
}

static void engine_stop(void)
{
    stopped = true;
}

static int engine_wait(struct epoll_event *events, int room);

static void engine_run(void)
{
    struct epoll_event events[64];
    for (stopped = false; !stopped;) {
        int count = engine_wait(events, 64);
        for (int i = 0; i < count; i++)
            (*(ready_fn **)events[i].data.ptr)();
    }
}
