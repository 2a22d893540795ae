/* SPDX-License-Identifier: MIT
 *
 * libevent's ordinary timers, in a heap.
 */
#include "libevent.inc.h"

static const struct timeval *engine_timeout(const struct timeval *idle)
{
    return idle;
}

BENCH_ENGINE(libevent_heap);
