/* SPDX-License-Identifier: MIT
 *
 * libevent's common timeouts: one list for all timers of the same duration. Its manual recommends them for
 * many such timers.
 */
#include "libevent.inc.h"

static const struct timeval *engine_timeout(const struct timeval *idle)
{
    return event_base_init_common_timeout(base, idle);
}

BENCH_ENGINE(libevent_common);
