/* SPDX-License-Identifier: MIT
 *
 * The way of a task to its target. The tick takes the task and hands it over once. This file makes all
 * further decisions about it:
 *
 *     tick.c      place.c: the next due task          the task is filed nowhere from here on
 *        |
 *     deliver.c   is its queue paused? -------------- yes: the task is stopped
 *        |        are tasks of its target held? ----- yes: the task is held behind them
 *        |        does its target's wait go on? ----- yes, as a snapshot tells: the task is held
 *        |        is its queue still a key? --------- no: the queue is detached by now, with this task
 *        |        has its lease run out? ------------ yes, offer.c: it waits for the next attempt, or is dead
 *        |        is it for workers? ---------------- yes, offer.c: it is ready
 *        |        are its periods too late, or skipped? yes: done
 *        v
 *     call.c      XADD, RPUSH, LPUSH: the server's reply
 *        |
 *     deliver.c   accepted -------------------------- done
 *        |        a refusal of the whole server ----- back to the tick, which puts the task back
 *        |        a refusal of this key ------------- the task is held, and its route waits; TW.FIRED tells of
 *        |                                            the first one, after which the task is never too late
 *        |        the last try was refused ---------- the task is dead
 *        v
 *     batch.c     done: the task leaves, or is filed for its next time; TW.FIRED will name it
 *
 * TW.FIRED replicates which tasks a batch has removed from a queue. The server wraps everything that a
 * timer callback replicates into one MULTI/EXEC, so a delivery and the removal of its task stand or fall
 * together.
 *
 * There are three kinds of refusals:
 * - Server-wide and temporary (out of memory, too few replicas, disk error): nothing else is tried for a
 *   while.
 * - This key and temporary (its slot is migrating): only its route waits.
 * - Permanent (a wrong type, for example): its route waits, and the try is counted. After the configured
 *   number of tries (target-tries) the task is dead.
 */
#include "delivery.h"

#include <base/assert.h>
#include <string.h>
#include <task/state.h>

#include "keyspace/keys.h"
#include "purge.h"
#include "queues/lease.h"
#include "server/config.h"
#include "server/lateness.h"
#include "server/strings.h"
#include "workers.h"

enum { SLOT_WAIT_MAX_MS = 1000 };

/* ---- a batch --------------------------------------------------------------------------------------------- */

static void notify(RedisModuleCtx *ctx, const struct tw__redis_told *told)
{
    static const struct {
        uint8_t tell;
        const char *event;
    } events[] = {{TW__REDIS_TELL_DELIVERED, "tw.delivered"},
                  {TW__REDIS_TELL_READY, "tw.ready"},
                  {TW__REDIS_TELL_DEAD, "tw.dead"},
                  {TW__REDIS_TELL_PURGED, "tw.purge"}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (told->tells & events[i].tell)
            tw__redis_keys_changed(ctx, told->name, events[i].event);
    if (told->tells == TW__REDIS_TELL_CHANGED)
        RedisModule_SignalModifiedKey(ctx, told->name);
}

void tw__redis_deliver_finish(struct tw__redis_batch *batch)
{
    int db = RedisModule_GetSelectedDb(batch->ctx);
    for (struct tw__redis_told *one = tw__redis_batch_release(batch), *following; one != NULL;
         one = following) {
        following = one->following;
        RedisModule_SelectDb(batch->ctx, one->db);
        notify(batch->ctx, one);
        tw__redis_keys_remove_if_empty(batch->ctx, one->name, true);
        RedisModule_FreeString(NULL, one->name);
        RedisModule_Free(one);
    }
    RedisModule_SelectDb(batch->ctx, db);
    tw__redis_batch_end(batch);
}

/* ---- the target ------------------------------------------------------------------------------------------ */

static enum tw__redis_meanwhile call_push(struct tw__redis_delivery *delivery)
{
    struct tw__redis_call call;
    tw__redis_call_init(&call, tw__redis_task_payload(delivery->task).count + 1);
    tw__redis_call_add_kept(&call, tw__redis_string_of_target(delivery->route));
    tw__redis_call_add_payload(&call, delivery->task);
    return tw__redis_call_send(&call, delivery->plan.kind == TW__REDIS_LIST ? "RPUSH" : "LPUSH", delivery);
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
    tw__redis_call_add_about(&call, delivery);
    tw__redis_call_add_payload(&call, delivery->task);
    return tw__redis_call_send(&call, "XADD", delivery);
}

/* Calls XADD or RPUSH for the task. */
static enum tw__redis_meanwhile call_target(struct tw__redis_delivery *delivery)
{
    enum tw__redis_meanwhile others =
        delivery->plan.kind == TW__REDIS_STREAM ? call_xadd(delivery) : call_push(delivery);
    if (others == TW__REDIS_GONE && delivery->why == TW__REDIS_DEFER_NONE)
        tw__redis_count(delivery->queue, TW__REDIS_DELIVERED, 1);
    return others;
}

/* ---- refusals -------------------------------------------------------------------------------------------- */

static void hold_first(struct tw__redis_delivery *delivery, uint64_t now_ms, uint64_t next_ms)
{
    tw__redis_place_hold_first(tw__redis_shared.queues, delivery->task,
                               RedisModule_MonotonicMicroseconds() / 1000 + (next_ms - now_ms), next_ms);
}

/* Holds the task as the first in the line of its route, and lets the route wait. The first wait and each
 * further one are as `retry` says. */
static void make_wait(struct tw__redis_delivery *delivery, const struct tw__task_retry *retry)
{
    struct tw__redis_route *route = delivery->route;
    tw__redis_shared.counts.deferred[delivery->why]++;
    route->wait_ms = route->wait_ms == 0 ? tw__task_wait(retry, 1) : tw__task_wait_after(retry, route->wait_ms);
    uint64_t wait_ms = tw__task_jitter(route->wait_ms, retry->jitter, tw__redis_token_new()),
             now_ms = tw__redis_now_ms();
    hold_first(delivery, now_ms, now_ms + wait_ms);
}

/* The slot of the key is migrating: nothing is known about the target. */
static void await_slot(struct tw__redis_delivery *delivery)
{
    struct tw__task_retry retry =
        tw__redis_config_target_retry(&(struct tw__redis_retry){.jitter = TW__REDIS_JITTER_OPEN});
    retry.max_ms = SLOT_WAIT_MAX_MS;
    make_wait(delivery, &retry);
}

/* The last try was refused with `error`: the task is dead, or its period. */
static void give_up(struct tw__redis_delivery *delivery, const struct tw__task_outcome *outcome)
{
    struct tw__redis_bytes error = {delivery->error, strlen(delivery->error)};
    delivery->route->wait_ms = 0; /* the tries of the next task begin with the first wait */
    tw__redis_lease_settle(delivery->queue, delivery->task, outcome, error, delivery->now_ms,
                           tw__redis_batch_log(delivery->batch, delivery->queue));
    tw__redis_purge_after_death(delivery->batch, delivery->queue);
}

/* A task that no Stream will ever take is dead at once, and as a whole, even if it repeats. */
static void refuse_for_ever(struct tw__redis_delivery *delivery)
{
    struct tw__task numbers = tw__redis_late_numbers(delivery);
    struct tw__task_outcome outcome;
    numbers.every_ms = 0;
    numbers.retry.tries = 1;
    tw__task_change(&numbers, &(struct tw__task_call){.verb = TW__TASK_REFUSED}, delivery->now_ms, &outcome);
    give_up(delivery, &outcome);
}

/* A permanent refusal: one more try is counted, for this task and for all tasks that are held behind it. */
static void refused(struct tw__redis_delivery *delivery)
{
    struct tw__task numbers = tw__redis_late_numbers(delivery);
    struct tw__task_outcome outcome;
    numbers.retry = tw__redis_config_target_retry(&delivery->plan.retry);
    tw__task_change(&numbers, &(struct tw__task_call){.verb = TW__TASK_REFUSED}, delivery->now_ms, &outcome);
    if (outcome.reply == TW__TASK_DIED) {
        give_up(delivery, &outcome);
        return;
    }
    tw__redis_late_refused(delivery, numbers.missed_periods);
    if (numbers.attempt == 0)
        delivery->route->wait_ms = 0; /* the wait of another task does not count */
    make_wait(delivery, &numbers.retry);
    delivery->route->waits++;
}

/* Decides by the target's reply how the task goes on. Returns as tw__redis_deliver(). */
static enum tw__redis_defer decide(struct tw__redis_delivery *delivery)
{
    switch (delivery->why) {
    case TW__REDIS_DEFER_NONE:
        tw__redis_lateness_count(delivery->late_since_ms);
        delivery->route->wait_ms = 0;
        tw__redis_late_done(delivery);
        break;
    case TW__REDIS_DEFER_SLOT:
        await_slot(delivery);
        break;
    case TW__REDIS_DEFER_REFUSED:
        refused(delivery);
        break;
    default:
        return delivery->why;
    }
    return TW__REDIS_DEFER_NONE;
}

/* ---- delivery -------------------------------------------------------------------------------------------- */

/* Puts the queue into the batch. Returns false if it is no longer the value of a key. */
static bool join_held(struct tw__redis_delivery *delivery)
{
    if (delivery->queue->in_batch)
        return true;
    if (tw__redis_call_key(delivery) == TW__REDIS_GONE)
        return false; /* the key had expired: the queue is detached by now, with this task */
    tw__redis_batch_touch(delivery->batch, delivery->queue);
    return true;
}

/* Tries the target of a task that is due. */
static enum tw__redis_defer deliver_to_target(struct tw__redis_delivery *delivery)
{
    if (tw__redis_size_is_too_big(delivery)) {
        tw__redis_size_error(delivery); /* the size is known, so there is no first try */
        refuse_for_ever(delivery);
        return TW__REDIS_DEFER_NONE;
    }
    return call_target(delivery) == TW__REDIS_GONE ? TW__REDIS_DEFER_NONE : decide(delivery);
}

/* Delivers the task, or makes it ready. Returns as tw__redis_deliver(). */
static enum tw__redis_defer deliver(struct tw__redis_delivery *delivery)
{
    RedisModule_SelectDb(delivery->batch->ctx, delivery->queue->db);
    if (!join_held(delivery))
        return TW__REDIS_DEFER_NONE;
    struct tw__redis_task *task = delivery->task;
    if (tw__redis_task_is_leased(task))
        return tw__redis_offer_lapse(delivery);
    if (delivery->plan.kind == TW__REDIS_WORKERS) {
        tw__redis_offer(delivery);
        tw__redis_lateness_count(delivery->late_since_ms);
        return TW__REDIS_DEFER_NONE;
    }
    return tw__redis_late_passes(delivery) ? TW__REDIS_DEFER_NONE : deliver_to_target(delivery);
}

enum tw__redis_defer tw__redis_deliver(struct tw__redis_batch *batch, struct tw__redis_task **task,
                                       enum tw__redis_taken taken, uint64_t now_ms)
{
    struct tw__redis_queues *queues = tw__redis_shared.queues;
    struct tw__redis_delivery delivery;
    bool leased = tw__redis_task_is_leased(*task);
    TW_ASSERT(!tw__redis_task_filed(*task));
    tw__redis_delivery_init(&delivery, batch, *task, now_ms);
    if (delivery.queue->paused && !leased) {
        tw__redis_place_stop(queues, *task);
        return TW__REDIS_DEFER_NONE;
    }
    if (taken != TW__REDIS_TAKEN_PROBE && !leased && tw__redis_place_is_blocked(queues, *task)) {
        tw__redis_place_hold(queues, *task); /* behind the refused task, so that their order holds */
        return TW__REDIS_DEFER_NONE;
    }
    uint64_t next_ms = tw__redis_place_next_after(queues, *task, now_ms);
    if (taken != TW__REDIS_TAKEN_PROBE && next_ms > now_ms) {
        hold_first(&delivery, now_ms, next_ms);
        return TW__REDIS_DEFER_NONE;
    }
    delivery.late_since_ms = taken == TW__REDIS_TAKEN_PROBE ? tw__redis_place_next_try(delivery.route)
                                                            : tw__redis_place_late_since(queues, *task);
    enum tw__redis_defer why = deliver(&delivery);
    *task = delivery.task;
    return why;
}
