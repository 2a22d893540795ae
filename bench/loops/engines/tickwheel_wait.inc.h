/* SPDX-License-Identifier: MIT
 *
 * The time until the wheel's next work is the timeout of epoll_wait(), as in examples/echo-server.c.
 */
#define ENGINE_NEW tw_loop_epoll_wait_new
#include "tickwheel.inc.h"

static int engine_wait(struct epoll_event *events, int room)
{
    return tw_loop_epoll_wait(loop, events, room, -1);
}
