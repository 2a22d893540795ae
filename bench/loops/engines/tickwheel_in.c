/* SPDX-License-Identifier: MIT
 *
 * As tickwheel.c, but reads the clock for each heartbeat.
 */
#include "tickwheel_wait.inc.h"

static inline void engine_turn(void)
{
}

static inline void engine_beat(struct connection *connection)
{
    tw_loop_move_in(loop, &connection->timer, idle_ns);
}

#include "../turns.inc.h"

BENCH_ENGINE(tickwheel_in);
