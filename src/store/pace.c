/* SPDX-License-Identifier: MIT
 *
 * How many tasks are claimed ahead of the workers? A task that is claimed and waits for a worker is leased for
 * everybody else: its cancel cannot say that it is not called, and a crash costs it an attempt. So two are
 * claimed at first for each worker. The number doubles each time that the workers were found without work, as
 * long as the handlers of so many jobs take less than a twentieth of a second together. If one alone takes
 * longer, a job is claimed when a worker is free. Example: handlers that send a mail in a second get none
 * ahead; handlers that take a microsecond get 1,024 after nine rounds.
 *
 * Handlers may turn slow. Then jobs that have waited for a tenth of a second are given back, and wait as
 * before. While the runner is inside a commit it gives nothing back: nobody could write that down either.
 */
#include "pace.h"

#include "open.h"

static const uint64_t PATIENCE_NS = 100000000; /* for a job's wait for a worker */
static const uint64_t AHEAD_NS = 50000000;     /* for the handlers of the jobs that are claimed before it */

static uint64_t lesser(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

void tw__store_pace_init(struct tw__store_pace *pace, uint64_t workers)
{
    pace->ahead = 2 * workers;
}

/* Sets how many jobs may wait for a worker, by the pace of the handlers that have returned since the last call.
 * While none is claimed ahead, only a handler that has returned tells of a pace. */
static void adapt_ahead(struct tw__store_pace *pace, struct tw__store_pool *pool, uint64_t most,
                        uint64_t waiting)
{
    uint64_t workers = pool->workers;
    uint64_t waited_ns = atomic_exchange(&pool->waited_ns, 0);
    uint64_t took_ns = atomic_exchange(&pool->took_ns, 0);
    if (waited_ns > PATIENCE_NS)
        pace->ahead /= 2;
    else if (waiting == 0 && pace->more_ready && (pace->ahead > 0 || took_ns > 0))
        pace->ahead = pace->ahead > 0 ? 2 * pace->ahead : 2 * workers;
    if (took_ns > 0)
        most = lesser(most, AHEAD_NS / took_ns * workers);
    pace->ahead = lesser(pace->ahead, most);
}

uint64_t tw__store_pace_claims(struct tw__store_pace *pace, struct tw__store_pool *pool, uint64_t max_jobs,
                               uint64_t room)
{
    uint64_t idle = tw__store_pool_idle(pool), waiting = tw__store_pool_waiting(pool);
    adapt_ahead(pace, pool, max_jobs, waiting);
    uint64_t wanted = pace->ahead > idle ? pace->ahead : idle;
    uint64_t more = wanted > waiting ? wanted - waiting : 0;
    pace->more_ready = more <= room;
    return lesser(more, room);
}

void tw__store_pace_take_back(struct tw__store_pace *pace, struct tw__store_pool *pool)
{
    uint64_t now_ns = tw__store_monotonic();
    if (now_ns > PATIENCE_NS && tw__store_pool_take_back(pool, now_ns - PATIENCE_NS))
        pace->ahead = 0;
}

uint64_t tw__store_pace_next(const struct tw__store_pool *pool)
{
    uint64_t oldest_ns = tw__store_pool_oldest(pool);
    return oldest_ns != UINT64_MAX ? oldest_ns + PATIENCE_NS : UINT64_MAX;
}
