/* SPDX-License-Identifier: MIT
 *
 * libev with ev_timer_again(), which its manual recommends for timeouts that are pushed back often.
 */
#include "connection.inc.h"

#include <ev.h>

BENCH_CONNECTION(ev_timer);

typedef void ready_fn(void);
static struct ev_loop *loop;
static ev_io watchers[2];
static int watches;

static void on_timer(struct ev_loop *of, ev_timer *timer, int events)
{
    (void)events;
    ev_timer_stop(of, timer); /* the timer repeats */
    reap((struct connection *)(void *)timer);
}

static void on_io(struct ev_loop *of, ev_io *io, int events)
{
    (void)of, (void)events;
    ready_fn *ready;
    memcpy(&ready, &io->data, sizeof ready);
    ready();
}

static void engine_open(void)
{
    watches = 0;
    loop = ev_loop_new(EVBACKEND_EPOLL | EVFLAG_NOENV);
    if (loop == NULL)
        bench_fail("libev: no loop");
}

static void engine_close(void)
{
    ev_loop_destroy(loop);
}

static void engine_watch(int fd, ready_fn *ready)
{
    ev_io *io = &watchers[watches++];
    ev_io_init(io, on_io, fd, EV_READ);
    memcpy(&io->data, &ready, sizeof ready);
    ev_io_start(loop, io);
}

static void engine_start(struct connection *connection)
{
    ev_timer_init(&connection->timer, on_timer, 0, IDLE_MS / 1e3);
    ev_timer_again(loop, &connection->timer);
}

static inline void engine_turn(void)
{
}

static inline void engine_beat(struct connection *connection)
{
    ev_timer_again(loop, &connection->timer);
}

static void engine_stop(void)
{
    ev_break(loop, EVBREAK_ALL);
}

static void engine_run(void)
{
    ev_run(loop, 0);
}

#include "../turns.inc.h"

BENCH_ENGINE(libev);
