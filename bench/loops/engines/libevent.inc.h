/* SPDX-License-Identifier: MIT
 *
 * libevent with event_add() of an event that is pending. A struct event takes 128 bytes. The file that
 * includes this defines engine_timeout(), which is called once and returns the timeout for every event_add().
 */
#include "connection.inc.h"

#include <event2/event.h>
#include <event2/event_struct.h>

BENCH_CONNECTION(struct event);

typedef void ready_fn(void);
static struct event_base *base;
static const struct timeval *timeout;
static struct event watchers[2];
static ready_fn *watched[2];
static int watches;

static const struct timeval *engine_timeout(const struct timeval *idle);

static void on_timer(evutil_socket_t fd, short what, void *connection)
{
    (void)fd, (void)what;
    reap(connection);
}

static void on_io(evutil_socket_t fd, short what, void *ready)
{
    (void)fd, (void)what;
    (*(ready_fn **)ready)();
}

static void engine_open(void)
{
    static const struct timeval idle = {.tv_sec = IDLE_MS / 1000, .tv_usec = IDLE_MS % 1000 * 1000};
    struct event_config *config = event_config_new();
    watches = 0;
    if (config != NULL) {
        event_config_set_flag(config, EVENT_BASE_FLAG_NOLOCK | EVENT_BASE_FLAG_IGNORE_ENV);
        base = event_base_new_with_config(config);
        event_config_free(config);
    }
    timeout = base == NULL ? NULL : engine_timeout(&idle);
    if (timeout == NULL)
        bench_fail("libevent: no event base");
}

static void engine_close(void)
{
    event_base_free(base);
}

static void engine_watch(int fd, ready_fn *ready)
{
    watched[watches] = ready;
    event_assign(&watchers[watches], base, fd, EV_READ | EV_PERSIST, on_io, &watched[watches]);
    event_add(&watchers[watches++], NULL);
}

static void engine_start(struct connection *connection)
{
    evtimer_assign(&connection->timer, base, on_timer, connection);
    evtimer_add(&connection->timer, timeout);
}

static inline void engine_turn(void)
{
}

static inline void engine_beat(struct connection *connection)
{
    evtimer_add(&connection->timer, timeout);
}

static void engine_stop(void)
{
    event_base_loopbreak(base);
}

static void engine_run(void)
{
    event_base_loop(base, 0);
}

#include "../turns.inc.h"
