/* SPDX-License-Identifier: MIT
 *
 * A chore is the part of a TW.SEND, TW.CANCEL or TW.MOVE on which the reply does not depend:
 *
 *     command      before the reply                     the chore
 *     TW.SEND      makes the task                       looks for its id; puts the task into table and wheel
 *     TW.CANCEL    finds the task                       takes it out of table and wheel; frees it
 *     TW.MOVE      finds the task; checks the rights    files it in the wheel for another time
 *
 * With millions of tasks a chore touches memory that is in no cache: cells of the table of ids, and the
 * neighbours of a task in the wheel. Each of these cache lines takes a fifth of a microsecond to arrive. So a
 * command prefetches the lines and leaves the chore. The chore is done when WAIT more chores have been left.
 * Example, with WAIT 4: a client cancels the ids 1 to 100 by one command each. The command for id 5 finds its
 * task. It then takes the task of id 1 out of the wheel, whose neighbours have arrived meanwhile, and replies.
 *
 * Nobody can tell that a chore is open, because all chores are done
 *   - before anybody reaches a queue by another command, by a snapshot, by INFO, or by a callback (keys.c);
 *   - before the tick looks at the wheel, before a batch begins, and before RESTORE files tasks;
 *   - before one of the three commands names an id whose hash has an open chore;
 *   - at the end of each event-loop iteration, before the server writes the AOF and sends the replies.
 * The last rule means that the memory of a cancelled task is free before its caller has the reply.
 *
 * In some moments a command leaves no chore open:
 *   - From the event that ends an iteration to the next iteration. In between, the server may serve clients
 *     that were blocked, or that its I/O threads have read from, and then it sends the replies.
 *   - On the thread of another module. The server may sleep meanwhile, so no iteration ends.
 *   - While a batch is open.
 *   - While used memory is at 90 % of maxmemory or more, because the server looks at it before each command.
 *     For the same reason a cancel does not leave a block of more than a kilobyte.
 * What remains: in a script that runs for seconds the server sends replies to other clients before the
 * script's last chores are done. A TW.SEND that replaces a task gives the memory of the old one back up to
 * WAIT commands later.
 *
 * Invariants
 *   K1  The queue of an open chore is attached. No batch is open while a chore is, but for the one that
 *       tw__redis_chores_leave() does at once.
 *   K2  No two open chores have the same hash. Chores are done in the order of their commands, because tasks
 *       that are due together keep the order in which they were filed.
 *   K3  The task of TW__REDIS_CHORE_PUT is filed nowhere and in no table, and the chore keeps its route. The
 *       task of another chore is in the table, and filed.
 *
 * Rejected: to leave the look-up of TW.CANCEL and TW.MOVE too. Their replies tell whether the id was there.
 */
#include "chores.h"

#include <base/assert.h>

#include "queues/lease.h"
#include "queues/place.h"
#include "queues/queue.h"
#include "queues/route.h"

enum {
    WAIT = 4,    /* chores that are left open behind a command */
    LARGE = 1024 /* bytes of a block that a cancel frees at once */
};
_Static_assert((int)WAIT < (int)TW__REDIS_CHORES, "the ring has room");

void tw__redis_chores_start(void)
{
    tw__redis_shared.chores = RedisModule_Calloc(1, sizeof *tw__redis_shared.chores);
    tw__redis_shared.chores->server = pthread_self();
}

static struct tw__redis_chore *chore_at(struct tw__redis_chores *chores, uint32_t i)
{
    return &chores->ring[(chores->first + i) % TW__REDIS_CHORES];
}

/* ---- doing ----------------------------------------------------------------------------------------------- */

static void do_put(const struct tw__redis_chore *chore)
{
    struct tw__redis_bytes id = tw__redis_task_id(chore->task);
    struct tw__redis_task *old = tw__redis_queue_find(chore->queue, chore->hash, id);
    tw__redis_lease_put(chore->queue, chore->task, chore->route, chore->hash, old, chore->now_ms);
    tw__redis_route_release(chore->route); /* the task itself keeps it now */
    tw__redis_count(chore->queue, TW__REDIS_COUNT_REPLACED, old != NULL);
}

static void do_refile(const struct tw__redis_chore *chore)
{
    if (chore->task->lived) {
        tw__redis_lease_move(chore->queue, chore->task, chore->due, chore->now_ms);
        return;
    }
    tw__redis_place_refile(tw__redis_shared.queues, chore->task, chore->due, chore->now_ms);
    chore->task->tries = 0;
}

static void do_first(struct tw__redis_chores *chores)
{
    struct tw__redis_chore chore = *chore_at(chores, 0);
    TW_ASSERT(chores->count > 0 && chore.queue->attached);
    chores->first++;
    chores->count--;
    switch (chore.kind) {
    case TW__REDIS_CHORE_PUT:
        do_put(&chore);
        break;
    case TW__REDIS_CHORE_REMOVE:
        tw__redis_queue_remove(chore.queue, chore.task, chore.hash);
        break;
    case TW__REDIS_CHORE_REFILE:
        do_refile(&chore);
        break;
    }
}

/* ---- leaving --------------------------------------------------------------------------------------------- */

static bool any_open_for(struct tw__redis_chores *chores, uint64_t hash)
{
    for (uint32_t i = 0; i < chores->count; i++)
        if (chore_at(chores, i)->hash == hash)
            return true;
    return false;
}

/* Whether a chore must be done before its command replies. */
static bool is_urgent(const struct tw__redis_chores *chores, const struct tw__redis_chore *chore)
{
    return chores->ending || chores->tight || tw__redis_shared.batch != NULL ||
           (chore->kind == TW__REDIS_CHORE_REMOVE &&
            tw__redis_task_bytes(chore->task, &tw__redis_shared.queues->memory) > LARGE) ||
           !pthread_equal(pthread_self(), chores->server);
}

void tw__redis_chores_leave(const struct tw__redis_chore *chore)
{
    struct tw__redis_chores *chores = tw__redis_shared.chores;
    TW_ASSERT(chore->queue->attached && !any_open_for(chores, chore->hash));
    TW_ASSERT(tw__redis_task_filed(chore->task) == (chore->kind != TW__REDIS_CHORE_PUT) ||
              tw__redis_shared.batch != NULL); /* the task that is being delivered is filed nowhere either */
    *chore_at(chores, chores->count++) = *chore;
    if (chore->kind == TW__REDIS_CHORE_PUT) {
        tw__redis_route_keep(chore->route);
        tw__redis_table_prefetch(&chore->queue->tasks, chore->hash);
    } else {
        tw__redis_place_prefetch(chore->task);
    }
    if (is_urgent(chores, chore))
        tw__redis_chores_finish();
    else if (chores->count > WAIT)
        do_first(chores);
}

/* ---- finishing ------------------------------------------------------------------------------------------- */

void tw__redis_chores_finish(void)
{
    while (tw__redis_shared.chores->count > 0)
        do_first(tw__redis_shared.chores);
}

void tw__redis_chores_iteration(bool ending)
{
    tw__redis_shared.chores->ending = ending;
    tw__redis_shared.chores->tight = RedisModule_GetUsedMemoryRatio() >= 0.9F;
    tw__redis_chores_settle();
}

void tw__redis_chores_finish_for(uint64_t hash)
{
    if (any_open_for(tw__redis_shared.chores, hash))
        tw__redis_chores_finish();
}

void tw__redis_chores_finish_last(const struct tw__redis_queue *queue)
{
    if (tw__redis_table_count(&queue->tasks) <= tw__redis_shared.chores->count)
        tw__redis_chores_finish();
}
