/* SPDX-License-Identifier: MIT
 *
 * Tickwheel with a timerfd in the epoll set, for loops that belong to another program or library.
 */
#define ENGINE_NEW tw_loop_epoll_new
#include "tickwheel.inc.h"
#include "tickwheel_at.inc.h"

/* Fires the due timers at once, and leaves the events of the program. Returns the number of these events. */
static int engine_wait(struct epoll_event *events, int room)
{
    int found = epoll_wait(epoll_fd, events, room, -1), own = 0;
    for (int i = 0; i < found; i++)
        if (!tw_loop_epoll_handle(loop, &events[i]))
            events[own++] = events[i];
    return own;
}

#include "../turns.inc.h"

BENCH_ENGINE(tickwheel_timerfd);
