/* SPDX-License-Identifier: MIT
 *
 * The way of a task to its target. The tick takes the task and hands it over once. This file makes all
 * further decisions about it:
 *
 *     tick.c      place.c: the next due task          the task is filed nowhere from here on
 *        |
 *     deliver.c   are tasks of its target held? ----- yes: the task is held behind them
 *        |        is its schedule still a key? ------ no: the schedule is detached by now, with this task
 *        |        too late for LATE DROP? ----------- yes: done
 *        v
 *     call.c      XADD, RPUSH: the server's reply
 *        |
 *     deliver.c   accepted -------------------------- done
 *        |        a refusal of the whole server ----- back to the tick, which puts the task back
 *        |        a refusal of this key ------------- the task is held, and its route waits
 *        |        the last try was refused ---------- letter.c: a dead letter, and done
 *        v
 *     batch.c     done: the task leaves, or is filed for its next time; TW.FIRED will name it
 *
 * TW.FIRED replicates which tasks a batch has removed from a schedule. The server wraps everything that a
 * timer callback replicates into one MULTI/EXEC, so a delivery and the removal of its task stand or fall
 * together.
 *
 * There are three kinds of refusals:
 * - Server-wide and temporary (out of memory, too few replicas, disk error): nothing else is tried for a
 *   while.
 * - This key and temporary (its slot is migrating): only its route waits.
 * - Permanent (a wrong type, for example): its route waits, and the try is counted. After the configured
 *   number of tries (dead-letter-tries) the task goes to the dead-letter stream.
 */
#include "deliver.h"

#include <base/assert.h>
#include <base/saturate.h>

#include "config.h"
#include "keys.h"
#include "lateness.h"
#include "letter.h"
#include "strings.h"

enum { SLOT_WAIT_MAX_MS = 1000, WAIT_MAX_MS = 5000 };

/* ---- a batch --------------------------------------------------------------------------------------------- */

enum tw__redis_defer tw__redis_deliver_allowed(RedisModuleCtx *ctx)
{
    int flags = RedisModule_GetContextFlags(ctx);
    if (tw__redis_loading() || !(flags & REDISMODULE_CTX_FLAGS_MASTER) ||
        (flags & (TW__REDIS_LOADING | REDISMODULE_CTX_FLAGS_READONLY)))
        return TW__REDIS_DEFER_ROLE;
    if (RedisModule_AvoidReplicaTraffic())
        return TW__REDIS_DEFER_PAUSE;
    if ((flags & REDISMODULE_CTX_FLAGS_OOM) && !(flags & REDISMODULE_CTX_FLAGS_EVICT))
        return TW__REDIS_DEFER_OOM;
    return TW__REDIS_DEFER_NONE;
}

void tw__redis_deliver_begin(struct tw__redis_batch *batch, RedisModuleCtx *ctx)
{
    tw__redis_batch_begin(batch, ctx);
}

void tw__redis_deliver_finish(struct tw__redis_batch *batch)
{
    int db = RedisModule_GetSelectedDb(batch->ctx);
    for (struct tw__redis_told *one = tw__redis_batch_release(batch), *following; one != NULL;
         one = following) {
        following = one->following;
        RedisModule_SelectDb(batch->ctx, one->db);
        tw__redis_keys_changed(batch->ctx, one->name, "tw.fired");
        tw__redis_keys_remove_if_empty(batch->ctx, one->name, true);
        RedisModule_FreeString(NULL, one->name);
        RedisModule_Free(one);
    }
    RedisModule_SelectDb(batch->ctx, db);
    tw__redis_batch_end(batch);
}

/* ---- done ------------------------------------------------------------------------------------------------ */

/* Ends a delivery: the task leaves, or is filed for its next time. */
static void done(struct tw__redis_delivery *delivery)
{
    uint64_t every = tw__redis_task_every(delivery->task), times = tw__redis_task_times(delivery->task);
    if (every == 0)
        tw__redis_batch_leave(delivery->batch, delivery->schedule, delivery->task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->schedule, delivery->task,
                              tw__add_saturating(tw__redis_task_due(delivery->task), every),
                              times == TW__REDIS_FOR_EVER ? times : times - 1, delivery->now_ms);
}

/* Ends a delivery that was given up. A task that no Stream will ever take leaves, even if it repeats. */
static void gave_up(struct tw__redis_delivery *delivery)
{
    if (tw__redis_letter_is_too_big(delivery))
        tw__redis_batch_leave(delivery->batch, delivery->schedule, delivery->task);
    else
        done(delivery);
}

/* Ends a delivery that the target has accepted. */
static void delivered(struct tw__redis_delivery *delivery)
{
    delivery->route->wait_ms = 0;
    tw__redis_shared.counts.fired++;
    delivery->schedule->fired++;
    done(delivery);
}

/* ---- being late ------------------------------------------------------------------------------------------ */

/* LATE DROP: skips the periods that are too late. Returns whether it skipped any; the task is then done.
 * Example: EVERY 1000 and LATE DROP 500, due at 0, and now it is 2600. The periods 0, 1000 and 2000 are
 * skipped. */
static bool drop_late(struct tw__redis_delivery *delivery)
{
    struct tw__redis_task *task = delivery->task;
    uint64_t due = tw__redis_task_due(task), every = tw__redis_task_every(task),
             late_ms = delivery->plan.late_ms;
    if (delivery->plan.late != TW__REDIS_LATE_DROP || due >= delivery->now_ms ||
        delivery->now_ms - due <= late_ms)
        return false;
    uint64_t periods = every == 0 ? 1 : (delivery->now_ms - due - late_ms - 1) / every + 1;
    tw__redis_shared.counts.dropped += periods;
    if (every == 0)
        tw__redis_batch_leave(delivery->batch, delivery->schedule, task);
    else
        tw__redis_batch_rearm(delivery->batch, delivery->schedule, task, due + periods * every,
                              tw__redis_task_times(task), delivery->now_ms);
    return true;
}

/* LATE COALESCE: only the latest of the missed periods is delivered. Returns how many missed periods come
 * before it. */
static uint64_t missed_periods(const struct tw__redis_delivery *delivery)
{
    uint64_t due = tw__redis_task_due(delivery->task), every = tw__redis_task_every(delivery->task);
    bool missed = delivery->plan.late == TW__REDIS_LATE_COALESCE && every > 0 && due < delivery->now_ms;
    return missed ? (delivery->now_ms - due) / every : 0;
}

/* ---- the target ------------------------------------------------------------------------------------------ */

static enum tw__redis_meanwhile call_rpush(struct tw__redis_delivery *delivery)
{
    struct tw__redis_call call;
    tw__redis_call_init(&call, tw__redis_task_payload(delivery->task).count + 1);
    tw__redis_call_add_kept(&call, tw__redis_string_of_target(delivery->route));
    tw__redis_call_add_payload(&call, delivery->task);
    return tw__redis_call_send(&call, "RPUSH", delivery);
}

static enum tw__redis_meanwhile call_xadd(struct tw__redis_delivery *delivery)
{
    struct tw__redis_call call;
    uint64_t maxlen = delivery->plan.maxlen;
    tw__redis_call_init(&call, tw__redis_task_payload(delivery->task).count + 16);
    tw__redis_call_add_kept(&call, tw__redis_string_of_target(delivery->route));
    if (maxlen == 0)
        maxlen = (uint64_t)tw__redis_config.default_maxlen;
    if (maxlen != 0) {
        tw__redis_call_add_word(&call, TW__REDIS_WORD_MAXLEN);
        tw__redis_call_add_word(&call, TW__REDIS_WORD_ABOUT);
        tw__redis_call_add_own(&call, tw__redis_string_of_number(maxlen));
    }
    tw__redis_call_add_word(&call, TW__REDIS_WORD_NEW_ID);
    tw__redis_call_add_about(&call, delivery->task);
    tw__redis_call_add_payload(&call, delivery->task);
    return tw__redis_call_send(&call, "XADD", delivery);
}

/* Calls XADD or RPUSH for the task, with its due time moved on by `missed` periods. */
static enum tw__redis_meanwhile call_target(struct tw__redis_delivery *delivery, uint64_t missed)
{
    struct tw__redis_task *task = delivery->task;
    uint64_t due = tw__redis_task_due(task);
    if (missed > 0)
        tw__redis_task_set_due(task, due + missed * tw__redis_task_every(task));
    enum tw__redis_meanwhile others =
        delivery->plan.kind == TW__REDIS_LIST ? call_rpush(delivery) : call_xadd(delivery);
    if (others == TW__REDIS_GONE)
        tw__redis_shared.counts.fired += delivery->why == TW__REDIS_DEFER_NONE;
    else if (missed > 0 && delivery->why != TW__REDIS_DEFER_NONE)
        tw__redis_task_set_due(task, due); /* not delivered: replicas have the task with this time */
    else
        tw__redis_shared.counts.coalesced += missed;
    return others;
}

/* ---- refusals -------------------------------------------------------------------------------------------- */

/* Holds the task as the first in the queue of its route, and lets the route wait. The wait doubles with each
 * refusal, up to `most_ms`. */
static void make_wait(struct tw__redis_delivery *delivery, uint64_t most_ms)
{
    struct tw__redis_route *route = delivery->route;
    tw__redis_shared.counts.deferred[delivery->why]++;
    route->wait_ms = route->wait_ms == 0 ? (uint64_t)tw__redis_config.retry_ms : route->wait_ms * 2;
    if (route->wait_ms > most_ms)
        route->wait_ms = most_ms;
    tw__redis_place_hold_first(tw__redis_shared.schedules, delivery->task,
                               RedisModule_MonotonicMicroseconds() / 1000 + route->wait_ms);
}

/* Drops a task that is too big even for a dead letter. It is only counted, and logged by the server. */
static void drop_too_big(struct tw__redis_delivery *delivery)
{
    tw__redis_letter_log_none(delivery);
    tw__redis_shared.counts.dropped++;
    gave_up(delivery);
}

/* The last try was refused with `error`: sends the task to the dead-letter stream. Returns as
 * tw__redis_deliver(). */
static enum tw__redis_defer give_up(struct tw__redis_delivery *delivery)
{
    enum tw__redis_letter letter = tw__redis_letter_of(delivery);
    if (letter == TW__REDIS_LETTER_NONE) {
        drop_too_big(delivery);
        return TW__REDIS_DEFER_NONE;
    }
    enum tw__redis_meanwhile others = tw__redis_letter_send(delivery, letter);
    tw__redis_shared.counts.dead += delivery->why == TW__REDIS_DEFER_NONE;
    if (others == TW__REDIS_GONE)
        return TW__REDIS_DEFER_NONE;
    switch (delivery->why) {
    case TW__REDIS_DEFER_NONE:
        delivery->schedule->dead++;
        delivery->route->wait_ms = 0; /* the tries of the next task begin with the first wait */
        gave_up(delivery);
        return TW__REDIS_DEFER_NONE;
    case TW__REDIS_DEFER_REFUSED:
    case TW__REDIS_DEFER_SLOT:
        make_wait(delivery, WAIT_MAX_MS);
        return TW__REDIS_DEFER_NONE;
    default:
        return delivery->why;
    }
}

/* A permanent refusal: one more try is counted, for this task and for all tasks that are held behind it. */
static enum tw__redis_defer refused(struct tw__redis_delivery *delivery)
{
    uint32_t tries = tw__redis_place_tries(tw__redis_shared.schedules, delivery->task);
    if (tries + 1 >= (uint32_t)tw__redis_config.dead_letter_tries)
        return give_up(delivery);
    if (tries == 0)
        delivery->route->wait_ms = 0; /* the wait of another task does not count */
    make_wait(delivery, WAIT_MAX_MS);
    delivery->route->waits++;
    return TW__REDIS_DEFER_NONE;
}

/* Decides by the target's reply how the task goes on. Returns as tw__redis_deliver(). */
static enum tw__redis_defer decide(struct tw__redis_delivery *delivery)
{
    switch (delivery->why) {
    case TW__REDIS_DEFER_NONE:
        tw__redis_lateness_count(tw__redis_task_due(delivery->task));
        delivered(delivery);
        return TW__REDIS_DEFER_NONE;
    case TW__REDIS_DEFER_SLOT:
        make_wait(delivery, SLOT_WAIT_MAX_MS);
        return TW__REDIS_DEFER_NONE;
    case TW__REDIS_DEFER_REFUSED:
        return refused(delivery);
    default:
        return delivery->why;
    }
}

/* ---- delivery -------------------------------------------------------------------------------------------- */

/* Puts the schedule into the batch. Returns false if it is no longer the value of a key. */
static bool join_held(struct tw__redis_delivery *delivery)
{
    if (delivery->schedule->in_batch)
        return true;
    if (tw__redis_call_key(delivery) == TW__REDIS_GONE)
        return false; /* the key had expired: the schedule is detached by now, with this task */
    tw__redis_batch_touch(delivery->batch, delivery->schedule);
    return true;
}

enum tw__redis_defer tw__redis_deliver(struct tw__redis_batch *batch, struct tw__redis_task *task,
                                       enum tw__redis_taken taken, uint64_t now_ms)
{
    struct tw__redis_delivery delivery;
    TW_ASSERT(!tw__redis_task_filed(task));
    if (taken != TW__REDIS_TAKEN_PROBE && tw__redis_place_is_blocked(tw__redis_shared.schedules, task)) {
        tw__redis_place_hold(tw__redis_shared.schedules,
                             task); /* behind the refused task, so that their order holds */
        return TW__REDIS_DEFER_NONE;
    }
    tw__redis_delivery_init(&delivery, batch, task, now_ms);
    RedisModule_SelectDb(batch->ctx, delivery.schedule->db);
    if (!join_held(&delivery) || drop_late(&delivery))
        return TW__REDIS_DEFER_NONE;
    if (tw__redis_letter_is_too_big(&delivery)) {
        tw__redis_letter_too_big_error(&delivery); /* the size is known, so there is no first try */
        return give_up(&delivery);
    }
    return call_target(&delivery, missed_periods(&delivery)) == TW__REDIS_GONE ? TW__REDIS_DEFER_NONE
                                                                               : decide(&delivery);
}

enum tw__redis_meanwhile tw__redis_deliver_early(struct tw__redis_delivery *delivery)
{
    TW_ASSERT(tw__redis_task_filed(delivery->task));
    RedisModule_SelectDb(delivery->batch->ctx, delivery->schedule->db);
    enum tw__redis_meanwhile others = call_target(delivery, 0);
    if (others != TW__REDIS_GONE && delivery->why == TW__REDIS_DEFER_NONE) {
        tw__redis_place_unfile(tw__redis_shared.schedules, delivery->task);
        delivered(delivery);
    }
    return others;
}
