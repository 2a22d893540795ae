/* SPDX-License-Identifier: MIT
 *
 * Tickwheel as a program should use it in its own loop: without a timerfd, and reading the clock once for all
 * heartbeats of an iteration.
 */
#include "tickwheel_wait.inc.h"
#include "tickwheel_at.inc.h"

#include "../turns.inc.h"

BENCH_ENGINE(tickwheel);
