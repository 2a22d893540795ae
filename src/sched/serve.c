/* SPDX-License-Identifier: MIT
 *
 * Serving: the timer thread moves due tasks from the wheel to the ready list of their shard, in order. Which
 * thread runs the ready tasks depends on the options:
 *
 *     wheel  -- timer thread -->  ready list  -- timer thread -->  callback     no workers, no execute hook
 *     wheel  -- timer thread -->  ready list  -- a worker ----->   callback     `workers` > 0
 *     wheel  -- timer thread -->  ready list  -->  sent list  -->  callback     `execute`: tw_sched_run()
 *
 * No thread holds a lock while a callback runs. The thread that takes a task off its list, under the lock,
 * alone runs it (S1).
 *
 * A timer thread that comes late goes through the ticks in order, one tick at a time in all shards. If it runs
 * the callbacks itself, it runs all of one tick before it collects the next, so that repeating tasks find their
 * places among the other tasks. Example: it comes 30 ticks late, with a task of every second tick in shard 0
 * and one that repeats every 5 ticks in shard 1. It runs those of tick 2, 4, 5, 6, 8, 10 and so on. The call of
 * tick 10 is filed while tick 5 is served, so the wheel of shard 1 must not be past 10 by then.
 */
#include "serve.h"

#include "call.h"
#include "clock.h"
#include "due.h"
#include "filing.h"
#include "lock.h"
#include "order.h"
#include "pool.h"

enum { QUANTUM = 64 }; /* calls of one shard before another shard is served, if it has tasks of the same tick */

/* ---- on the timer thread --------------------------------------------------------------------------------- */

/* The first task that is due by the tick of the turn, from the ready list or, if that has none, the wheel. NULL
 * if there is none, or the wheel has some only after more work. The shard's lock is held. */
static struct tw__sched_task *next_due(const struct tw__sched_turn *turn, bool *more)
{
    struct tw__sched_task *task = tw__sched_order_next(turn, &turn->shard->ready);
    if (task != NULL || !*more)
        return task;
    *more = tw__sched_due_some(turn->shard, turn->until);
    return tw__sched_order_next(turn, &turn->shard->ready);
}

/* Runs tasks that are due by the tick of the turn, at most QUANTUM calls. Returns whether there may be more. */
static bool run_inline(const struct tw__sched_turn *turn)
{
    struct tw__sched_shard *shard = turn->shard;
    uint64_t now_ns = tw__sched_clock_read(shard->sched);
    struct tw__sched_call call;
    struct tw__sched_task *task;
    bool ready, more = true;
    tw__sched_lock(shard);
    for (unsigned left = QUANTUM; left > 0 && (task = next_due(turn, &more)) != NULL; left--)
        if (tw__sched_call_try_begin(shard, task, now_ns, &call))
            now_ns = tw__sched_call_make(shard, &call, &ready);
    more = more || tw__sched_order_next(turn, &shard->ready) != NULL;
    tw__sched_unlock(shard);
    return more;
}

/* ---- to the caller's executor ---------------------------------------------------------------------------- */

/* Hands tasks that are due by the tick of the turn to the executor, at most QUANTUM. Returns whether there may
 * be more. */
static bool send(const struct tw__sched_turn *turn)
{
    struct tw__sched_shard *shard = turn->shard;
    struct tw_sched *sched = shard->sched;
    bool more = true;
    for (unsigned left = QUANTUM; left > 0; left--) {
        tw__sched_lock(shard);
        struct tw__sched_task *task = next_due(turn, &more);
        uint64_t id = 0;
        if (task != NULL) {
            id = tw__sched_task_id(shard, task);
            tw__list_remove(&task->link);
            tw__sched_task_queue(&shard->sent, task, task->tick);
        }
        tw__sched_unlock(shard);
        if (id == 0)
            return more;
        sched->options.execute(sched->options.execute_arg, sched, id);
    }
    return true;
}

/* Whether a task that the executor wants to run is READY and due. It may not be due any more: a caller may
 * have moved it since it was sent, and a drain may then have set it aside before its time. */
static bool may_run(const struct tw__sched_shard *shard, const struct tw__sched_task *task, uint64_t now_ns)
{
    const struct tw_sched *sched = shard->sched;
    return task != NULL && task->state == TW__SCHED_READY && !shard->stopped &&
           tw__sched_tick_due(sched, task->due_ns) <= tw__sched_tick_now(sched, now_ns);
}

void tw_sched_run(struct tw_sched *sched, uint64_t id)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_shard *shard = tw__sched_shard_of(sched, id);
    struct tw__sched_call call;
    bool ready = false;
    if (shard == NULL)
        return;
    uint64_t now_ns = tw__sched_clock_read(sched);
    tw__sched_lock(shard);
    struct tw__sched_task *task = tw__sched_task_find(shard, id);
    if (may_run(shard, task, now_ns) && tw__sched_call_try_begin(shard, task, now_ns, &call))
        tw__sched_call_make(shard, &call, &ready);
    tw__sched_unlock(shard);
    if (ready)
        tw__sched_clock_wake(sched); /* so that the timer thread sends the task once more */
}

/* ---- tasks that wait in a list --------------------------------------------------------------------------- */

/* Runs tasks of a list of the turn's shard, at most `limit`. Returns the number of tasks taken. */
static uint64_t run_list(const struct tw__sched_turn *turn, struct tw__link *list, uint64_t limit)
{
    struct tw__sched_shard *shard = turn->shard;
    uint64_t now_ns = tw__sched_clock_read(shard->sched), taken = 0;
    struct tw__sched_call call;
    struct tw__sched_task *task;
    bool ready;
    tw__sched_lock(shard);
    for (; taken < limit && (task = tw__sched_order_next(turn, list)) != NULL; taken++) {
        if (!tw__sched_call_try_begin(shard, task, now_ns, &call))
            continue;
        now_ns = tw__sched_call_make(shard, &call, &ready);
        if (ready && list == &shard->sent)
            tw__sched_clock_wake(shard->sched); /* so that the timer thread sends the task once more */
    }
    tw__sched_unlock(shard);
    return taken;
}

uint64_t tw_sched_run_some(struct tw_sched *sched, uint64_t limit)
{
    TW_ASSERT(tw__sched_usable(sched));
    struct tw__sched_turn turn;
    uint64_t taken = 0;
    while (taken < limit && tw__sched_order_sent(sched, &turn)) {
        uint64_t left = limit - taken;
        taken += run_list(&turn, &turn.shard->sent, left < QUANTUM ? left : QUANTUM);
    }
    return taken;
}

bool tw__sched_work(struct tw_sched *sched)
{
    struct tw__sched_turn turn;
    bool any = false;
    while (tw__sched_order_worker(sched, &turn))
        any |= run_list(&turn, &turn.shard->ready, QUANTUM) > 0;
    return any;
}

/* ---- one tick -------------------------------------------------------------------------------------------- */

/* Runs or sends the tasks that are due by a tick, in the shards that have some. All wheels stand on the tick
 * before the first callback, so a task that a callback files is due later. */
static void serve_tick(struct tw_sched *sched, const struct tw__sched_firsts *first, uint64_t tick)
{
    bool (*serve_shard)(const struct tw__sched_turn *turn) = sched->options.execute != NULL ? send : run_inline;
    if (first->shards > 1 || first->all > tick)
        tw__sched_due_begin(sched, tick);
    for (bool more = first->all <= tick; more;) {
        more = false;
        for (uint32_t i = 0; i < first->shards; i++)
            if (first->of[i] <= tick)
                more |= serve_shard(&(struct tw__sched_turn){sched->shard[i], tick});
    }
}

bool tw__sched_serve(struct tw_sched *sched)
{
    struct tw__sched_firsts first;
    uint64_t now = tw__sched_tick_now(sched, tw__sched_clock_read(sched));
    tw__sched_due_first(sched, &first);
    uint64_t tick = first.all < now ? first.all : now;
    if (sched->options.workers > 0)
        tw__sched_due_all(sched, tick);
    else
        serve_tick(sched, &first, tick);
    return first.all <= now;
}
