/* SPDX-License-Identifier: MIT
 *
 * Tickwheel as it is meant for a loop of one's own: no timerfd, and one look at the clock for all heartbeats of
 * a turn.
 */
#include "tickwheel_wait.inc.h"
#include "tickwheel_at.inc.h"

#include "../turns.inc.h"

BENCH_ENGINE(tickwheel);
