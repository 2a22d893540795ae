/* SPDX-License-Identifier: MIT
 *
 * libevent's common timeouts: a list for all timers of one duration, which is what its manual has for many of
 * them.
 */
#include "libevent.inc.h"

static const struct timeval *engine_timeout(const struct timeval *idle)
{
    return event_base_init_common_timeout(base, idle);
}

BENCH_ENGINE(libevent_common);
