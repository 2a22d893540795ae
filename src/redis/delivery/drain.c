/* SPDX-License-Identifier: MIT
 *
 * A refusal does not count as a try of the task, because the task may not be due. The task stays filed
 * meanwhile, so that it keeps its place among the tasks that are due together.
 *
 * A call may meet only tasks whose targets refuse, until its time is over. It is then the first call of a
 * series: the next call goes on after these tasks. TW.DRAIN calls are numbered, and a route notes the number
 * of the call that it refused last. So the number of the first call tells which routes have refused in this
 * series.
 */
#include "drain.h"

#include <base/assert.h>

#include "deliver.h"
#include "queues/look.h"
#include "queues/place.h"
#include "server/rights.h"
#include "server/strings.h"
#include "size.h"

enum {
    DRAIN_US = 20000,          /* for the deliveries of one TW.DRAIN */
    DRAIN_SERIES_US = 1000000, /* a later call begins anew: targets may be repaired by then */
    DRAIN_LOOK = 100, /* tries between two looks at the clock; without a big task a call makes so many */
    DRAIN_BIG = 4096  /* after a task of more bytes the call looks at the clock too */
};

/* The state that TW.DRAIN calls leave for the next calls. */
struct tw__redis_drains {
    uint64_t number; /* of the last call; each call takes two numbers, see struct tw__redis_route */
    uint64_t series; /* the number of the first call of the present series */
    /* The queue in which the last call met only refused tasks until its time was over; else NULL. The next
     * call for this queue belongs to the same series, if it comes within DRAIN_SERIES_US. The queue may
     * have been removed: the pointer is only compared. */
    const struct tw__redis_queue *goes_on;
    uint64_t ended_us;
};

/* One TW.DRAIN. */
struct drain {
    struct tw__redis_batch batch;
    struct tw__redis_queue *queue;
    uint64_t number, series; /* see above */
    uint64_t limit, delivered, tried;
    uint64_t until_us; /* 0 before the first try: the time to find the tasks does not count */
    bool over;         /* its time is over */
};

void tw__redis_drain_start(void)
{
    tw__redis_shared.drains = RedisModule_Calloc(1, sizeof *tw__redis_shared.drains);
}

/* ---- rights ---------------------------------------------------------------------------------------------- */

static bool may_deliver_all(const struct drain *drain, struct tw__redis_caller *caller,
                            struct tw__redis_task **task, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct tw__redis_route *route = tw__redis_route_of(tw__redis_shared.queues, task[i]);
        if (route->drain >= drain->number - 1)
            continue;
        if (!tw__redis_caller_may_deliver(caller, route))
            return false;
        route->drain = drain->number - 1;
    }
    return true;
}

/* Returns whether the caller may write the targets of all these tasks. If not, replies with an error. Each
 * route is checked once in a TW.DRAIN. So the cost depends on the number of different targets among these
 * tasks, not on the size of the queue. The user is looked up anew each time, because a handler may have
 * removed the user while a delivery was tried. */
static bool is_permitted(const struct drain *drain, struct tw__redis_task **task, uint64_t count)
{
    struct tw__redis_caller caller;
    tw__redis_caller_init(&caller, drain->batch.ctx);
    bool allowed = may_deliver_all(drain, &caller, task, count);
    if (!allowed)
        tw__redis_caller_error(&caller, drain->batch.ctx);
    tw__redis_caller_fini(&caller);
    return allowed;
}

/* ---- deliveries ------------------------------------------------------------------------------------------ */

/* How the drain goes on after a task. */
enum drain_step { NEXT, STOP, FORBIDDEN };

static void look_at_clock(struct drain *drain, bool big)
{
    if (++drain->tried % DRAIN_LOOK == 0 || big)
        drain->over = RedisModule_MonotonicMicroseconds() >= drain->until_us;
}

/* Delivers a task if its target takes it. */
static enum drain_step drain_task(struct drain *drain, struct tw__redis_delivery *delivery)
{
    if (tw__redis_place_is_blocked(tw__redis_shared.queues, delivery->task) ||
        tw__redis_route_refused(delivery->route, drain->series))
        return NEXT;
    enum tw__redis_meanwhile others = tw__redis_deliver_early(delivery);
    drain->delivered += delivery->why == TW__REDIS_DEFER_NONE;
    if (others == TW__REDIS_GONE)
        return STOP;
    if (delivery->why != TW__REDIS_DEFER_NONE) {
        tw__redis_shared.counts.deferred[delivery->why]++;
        delivery->route->drain = drain->number;
    }
    if (others == TW__REDIS_SEEN)
        return STOP; /* other tasks may have changed too */
    bool next = delivery->why == TW__REDIS_DEFER_NONE || delivery->why == TW__REDIS_DEFER_REFUSED ||
                delivery->why == TW__REDIS_DEFER_SLOT;
    return next ? NEXT : STOP;
}

/* Delivers these tasks, one after the other. A task that is too big for a Stream stays until it is due. No
 * task waits behind it, because it will never be delivered. */
static enum drain_step drain_tasks(struct drain *drain, struct tw__redis_task **task, uint64_t count,
                                   uint64_t now_ms)
{
    enum drain_step step = NEXT;
    for (uint64_t i = 0; i < count && step == NEXT && drain->delivered < drain->limit && !drain->over; i++) {
        struct tw__redis_delivery delivery;
        bool big = tw__redis_task_bytes(task[i], &tw__redis_shared.queues->memory) > DRAIN_BIG;
        tw__redis_delivery_init(&delivery, &drain->batch, task[i], now_ms);
        if (tw__redis_size_is_too_big(&delivery))
            continue; /* without a look at the clock: the next call would not go on after this task */
        step = drain_task(drain, &delivery);
        look_at_clock(drain, big);
    }
    return step;
}

/* Delivers some of the `want` tasks that are due first; held tasks and tasks that were refused in this series
 * do not count. Sets *found to the number of such tasks, at most `want`. */
static enum drain_step drain_first(struct drain *drain, uint64_t want, uint64_t *found)
{
    uint64_t now_ms = tw__redis_now_ms();
    struct tw__redis_wanted wanted = {.to = UINT64_MAX, .drain = drain->series};
    struct tw__redis_task **task = RedisModule_Alloc((want + 1) * sizeof(struct tw__redis_task *));
    *found = tw__redis_look_wanted(drain->queue, &wanted, now_ms, want, task);
    if (drain->until_us == 0)
        drain->until_us = RedisModule_MonotonicMicroseconds() + DRAIN_US;
    enum drain_step step =
        is_permitted(drain, task, *found) ? drain_tasks(drain, task, *found, now_ms) : FORBIDDEN;
    RedisModule_Free(task);
    return step;
}

/* While no task at all could be delivered, looks at more tasks. If fewer than `want` were found, there are no
 * more. */
static enum tw__redis_drained drain_some(struct drain *drain)
{
    struct tw__redis_queue *queue = drain->queue;
    enum drain_step step = NEXT;
    uint64_t count = tw__redis_table_count(&queue->tasks), want = drain->limit < count ? drain->limit : count,
             found = want;
    while (queue->held < count && found == want && drain->delivered == 0 && !drain->over) {
        step = drain_first(drain, want, &found);
        if (step != NEXT || want == count)
            break;
        if (found == want)
            want = found = want > count / 2 ? count : want * 2;
    }
    if (step == FORBIDDEN)
        return TW__REDIS_DRAIN_FORBIDDEN;
    return drain->delivered == 0 && drain->over ? TW__REDIS_DRAINED_NONE_YET : TW__REDIS_DRAINED;
}

enum tw__redis_drained tw__redis_drain(RedisModuleCtx *ctx, struct tw__redis_queue *queue, uint64_t limit,
                                       uint64_t *delivered)
{
    struct tw__redis_drains *drains = tw__redis_shared.drains;
    int db = RedisModule_GetSelectedDb(ctx);
    TW_ASSERT(tw__redis_shared.batch == NULL);
    *delivered = 0;
    if (!queue->attached)
        return TW__REDIS_DRAINED; /* a handler calls in the middle of RENAME */
    drains->number += 2;
    if (queue != drains->goes_on || RedisModule_MonotonicMicroseconds() - drains->ended_us > DRAIN_SERIES_US)
        drains->series = drains->number;
    struct drain drain = {.queue = queue, .number = drains->number, .series = drains->series, .limit = limit};
    tw__redis_deliver_begin(&drain.batch, ctx);
    tw__redis_batch_touch(&drain.batch, queue);
    enum tw__redis_drained outcome = drain_some(&drain);
    drains->goes_on = outcome == TW__REDIS_DRAINED_NONE_YET ? queue : NULL;
    drains->ended_us = RedisModule_MonotonicMicroseconds();
    RedisModule_SelectDb(ctx, db);
    *delivered = drain.delivered;
    tw__redis_deliver_finish(&drain.batch);
    return outcome;
}
