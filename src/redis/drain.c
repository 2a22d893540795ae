/* SPDX-License-Identifier: MIT
 *
 * A refusal does not count as a try of the task, as the task may not be due; it stays filed meanwhile, so that
 * it keeps its place among the tasks that are due with it.
 *
 * A call that met only tasks whose targets refuse, until its time was over, is the first of a series: the next
 * call goes on behind these tasks. TW.DRAIN calls are counted, and a route notes the call that it refused, so
 * that a series is told by the number of its first call.
 */
#include "drain.h"

#include <base/assert.h>

#include "deliver.h"
#include "letter.h"
#include "rights.h"
#include "schedules/look.h"
#include "schedules/place.h"
#include "strings.h"

enum {
    DRAIN_US = 20000,          /* for the deliveries of one TW.DRAIN */
    DRAIN_SERIES_US = 1000000, /* a call that comes later begins anew: targets may be mended by then */
    DRAIN_LOOK = 100,          /* tries between two looks at the clock: so many are made in any case */
    DRAIN_BIG = 4096           /* bytes of a task after which one is due too */
};

/* What the calls leave for the calls to come. */
struct tw__drains {
    uint64_t number; /* of the last call, which takes two numbers: see struct tw__route */
    uint64_t series; /* the number of the first of the calls that went on behind each other */
    /* The schedule in which the last call met only tasks that were refused, until its time was over: the next
     * call there is of the same series. Else NULL. It may have been removed: it is compared only. */
    const struct tw__schedule *goes_on;
    uint64_t ended_us;
};

/* One TW.DRAIN. */
struct drain {
    struct tw__batch batch;
    struct tw__schedule *schedule;
    uint64_t number, series; /* see above */
    uint64_t limit, delivered, tried;
    uint64_t until_us; /* 0 before the first try: finding the tasks takes the time that it takes */
    bool over;         /* its time is */
};

void tw__drain_start(void)
{
    tw__shared.drains = RedisModule_Calloc(1, sizeof *tw__shared.drains);
}

/* ---- rights ---------------------------------------------------------------------------------------------- */

static bool may_deliver_all(const struct drain *drain, struct tw__caller *caller, struct tw__task **task,
                            uint64_t count)
{
    for (uint64_t i = 0; i < count; i++) {
        struct tw__route *route = tw__route_of(tw__shared.schedules, task[i]);
        if (route->drain >= drain->number - 1)
            continue;
        if (!tw__caller_may_write(caller, tw__string_of_target(route)))
            return false;
        route->drain = drain->number - 1;
    }
    return true;
}

/* Whether the caller may write the targets of all these tasks; if not, sends the error. Each route is asked for
 * once in a TW.DRAIN, so that the cost is that of the different targets among the tasks that are looked at,
 * however many the schedule has. The user is looked up anew each time: a handler may have removed it while a
 * delivery was tried. */
static bool is_allowed(const struct drain *drain, struct tw__task **task, uint64_t count)
{
    struct tw__caller caller;
    tw__caller_init(&caller, drain->batch.ctx);
    bool allowed = may_deliver_all(drain, &caller, task, count);
    if (!allowed)
        tw__caller_error(&caller, drain->batch.ctx);
    tw__caller_fini(&caller);
    return allowed;
}

/* ---- deliveries ------------------------------------------------------------------------------------------ */

/* How it goes on. */
enum step { NEXT, STOP, FORBIDDEN };

static void look_at_clock(struct drain *drain, bool big)
{
    if (++drain->tried % DRAIN_LOOK == 0 || big)
        drain->over = RedisModule_MonotonicMicroseconds() >= drain->until_us;
}

/* Delivers a task, if its target takes it. */
static enum step drain_task(struct drain *drain, struct tw__delivery *delivery)
{
    if (tw__place_is_blocked(tw__shared.schedules, delivery->task) ||
        tw__route_refused(delivery->route, drain->series))
        return NEXT;
    enum tw__meanwhile others = tw__deliver_early(delivery);
    drain->delivered += delivery->why == TW__DEFER_NONE;
    if (others == TW__GONE)
        return STOP;
    if (delivery->why != TW__DEFER_NONE) {
        tw__shared.counts.deferred[delivery->why]++;
        delivery->route->drain = drain->number;
    }
    if (others == TW__SEEN)
        return STOP; /* other tasks may not be what they were, either */
    bool next = delivery->why == TW__DEFER_NONE || delivery->why == TW__DEFER_REFUSED ||
                delivery->why == TW__DEFER_SLOT;
    return next ? NEXT : STOP;
}

/* Delivers these tasks in turn. One that is too big stays until it is due, and nothing waits behind it, as it
 * will never be delivered. */
static enum step drain_tasks(struct drain *drain, struct tw__task **task, uint64_t count, uint64_t now_ms)
{
    enum step step = NEXT;
    for (uint64_t i = 0; i < count && step == NEXT && drain->delivered < drain->limit && !drain->over; i++) {
        struct tw__delivery delivery;
        bool big = tw__shared.schedules->memory.usable(task[i]) > DRAIN_BIG;
        tw__delivery_init(&delivery, &drain->batch, task[i], now_ms);
        if (tw__letter_is_too_big(&delivery))
            continue; /* without a look at the clock: the next call would not go on behind it */
        step = drain_task(drain, &delivery);
        look_at_clock(drain, big);
    }
    return step;
}

/* Delivers of the `want` tasks that are due first, without held tasks and tasks refused in this series. *found:
 * how many there were. */
static enum step drain_first(struct drain *drain, uint64_t want, uint64_t *found)
{
    uint64_t now_ms = tw__now_ms();
    struct tw__wanted wanted = {.to = UINT64_MAX, .drain = drain->series};
    struct tw__task **task = RedisModule_Alloc((want + 1) * sizeof(struct tw__task *));
    *found = tw__look_wanted(drain->schedule, &wanted, now_ms, want, task);
    if (drain->until_us == 0)
        drain->until_us = RedisModule_MonotonicMicroseconds() + DRAIN_US;
    enum step step = is_allowed(drain, task, *found) ? drain_tasks(drain, task, *found, now_ms) : FORBIDDEN;
    RedisModule_Free(task);
    return step;
}

/* While nothing at all could be delivered, further tasks are looked at. When fewer than `want` were found,
 * there are none. */
static enum tw__drained drain_some(struct drain *drain)
{
    struct tw__schedule *schedule = drain->schedule;
    enum step step = NEXT;
    uint64_t count = tw__table_count(&schedule->tasks), want = drain->limit < count ? drain->limit : count,
             found = want;
    while (schedule->held < count && found == want && drain->delivered == 0 && !drain->over) {
        step = drain_first(drain, want, &found);
        if (step != NEXT || want == count)
            break;
        if (found == want)
            want = found = want > count / 2 ? count : want * 2;
    }
    if (step == FORBIDDEN)
        return TW__DRAIN_FORBIDDEN;
    return drain->delivered == 0 && drain->over ? TW__DRAINED_NONE_YET : TW__DRAINED;
}

enum tw__drained tw__drain(RedisModuleCtx *ctx, struct tw__schedule *schedule, uint64_t limit,
                           uint64_t *delivered)
{
    struct tw__drains *drains = tw__shared.drains;
    int db = RedisModule_GetSelectedDb(ctx);
    TW_ASSERT(tw__shared.batch == NULL);
    *delivered = 0;
    if (!schedule->attached)
        return TW__DRAINED; /* a handler calls in the middle of RENAME */
    drains->number += 2;
    if (schedule != drains->goes_on || RedisModule_MonotonicMicroseconds() - drains->ended_us > DRAIN_SERIES_US)
        drains->series = drains->number;
    struct drain drain = {
        .schedule = schedule, .number = drains->number, .series = drains->series, .limit = limit};
    tw__deliver_begin(&drain.batch, ctx);
    tw__batch_touch(&drain.batch, schedule);
    enum tw__drained outcome = drain_some(&drain);
    drains->goes_on = outcome == TW__DRAINED_NONE_YET ? schedule : NULL;
    drains->ended_us = RedisModule_MonotonicMicroseconds();
    RedisModule_SelectDb(ctx, db);
    *delivered = drain.delivered;
    tw__deliver_finish(&drain.batch);
    return outcome;
}
