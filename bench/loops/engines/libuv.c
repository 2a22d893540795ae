/* SPDX-License-Identifier: MIT
 *
 * libuv with uv_timer_again(). A uv_timer_t takes 152 bytes.
 */
#include "connection.inc.h"

#include <uv.h>

BENCH_CONNECTION(uv_timer_t);

typedef void ready_fn(void);
static uv_loop_t loop;
static uv_poll_t watchers[2];
static int watches;

static void on_timer(uv_timer_t *timer)
{
    uv_timer_stop(timer); /* the timer repeats */
    reap((struct connection *)(void *)timer);
}

static void on_poll(uv_poll_t *poll, int status, int events)
{
    (void)status, (void)events;
    ready_fn *ready;
    memcpy(&ready, &poll->data, sizeof ready);
    ready();
}

static void engine_open(void)
{
    watches = 0;
    if (uv_loop_init(&loop) != 0)
        bench_fail("libuv: no loop");
}

static void engine_watch(int fd, ready_fn *ready)
{
    uv_poll_t *poll = &watchers[watches++];
    if (uv_poll_init(&loop, poll, fd) != 0 || uv_poll_start(poll, UV_READABLE, on_poll) != 0)
        bench_fail("libuv: a descriptor cannot be watched");
    memcpy(&poll->data, &ready, sizeof ready);
}

static void engine_start(struct connection *connection)
{
    uv_timer_init(&loop, &connection->timer);
    uv_timer_start(&connection->timer, on_timer, IDLE_MS, IDLE_MS);
}

static inline void engine_turn(void)
{
}

static inline void engine_beat(struct connection *connection)
{
    uv_timer_again(&connection->timer);
}

static void engine_stop(void)
{
    uv_stop(&loop);
}

static void engine_run(void)
{
    uv_run(&loop, UV_RUN_DEFAULT);
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    uv_close(handle, NULL);
}

static void engine_close(void)
{
    uv_walk(&loop, close_handle, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&loop) != 0)
        bench_fail("libuv: the loop does not close");
}

#include "../turns.inc.h"

BENCH_ENGINE(libuv);
