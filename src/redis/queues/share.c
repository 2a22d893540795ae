/* SPDX-License-Identifier: MIT
 *
 * A series is a task that repeats. When a period of it dies, the period becomes a dead task of its own. Without
 * more ado each death would cost the memory of the payload once more. So with its first death the series gets a
 * payload that is shared, and its dead periods have the same one:
 *
 *     series  --+
 *     period  --+--> share: users | dead | payload
 *     period  --+
 *
 * The share knows its users, so that a series keeps its last TW__REDIS_DEATHS_MAX deaths, and so that the block
 * of the payload can be moved. It goes with its last user, whichever that is: the series may be done long
 * before somebody purges its deaths. A series that is put again has another payload, and begins to count anew.
 *
 * A share has at most TW__REDIS_USERS_MAX users, so that one of them is found within a microsecond. A series
 * whose share is full gets another one. So many users come together only if dead periods are replayed and not
 * worked on. A dump that somebody has made up may name more users, and is refused (chunk.c).
 *
 * A chunk has a shared payload once, and names the task that has it for each other user (chunk.c).
 *
 * Rejected: the time of death or the id of the oldest period in the series, because the number of an id, as in
 * x@1700000000000-1, cannot be foreseen.
 *
 * Invariants (check.c names the first that does not hold)
 *   U1  The users of a share are the tasks that point at it, each once. They belong to one queue.
 *   U2  `dead` counts the users whose stage is DEAD.
 */
#include "share.h"

#include <base/assert.h>
#include <string.h>

#include "sums.h"

/* ---- users ----------------------------------------------------------------------------------------------- */

static struct tw__redis_share *shared_by(const struct tw__redis_task *task)
{
    TW_ASSERT(task->shares);
    return tw__redis_task_share(task);
}

/* Makes room for one more user. */
static void reserve(struct tw__redis_queue *queue, struct tw__redis_share *share)
{
    if (share->users < share->room)
        return;
    if (share->user != NULL)
        tw__redis_sums_block(queue, share->user, -1);
    share->room = share->room == 0 ? 2 : share->room * 2;
    share->user = queue->queues->memory.realloc(share->user, share->room * sizeof(void *));
    tw__redis_sums_block(queue, share->user, 1);
}

/* The place of a user. */
static uint32_t place_of(const struct tw__redis_share *share, const struct tw__redis_task *task)
{
    uint32_t at = 0;
    while (at < share->users && share->user[at] != task)
        at++;
    TW_ASSERT(at < share->users);
    return at;
}

static void take_out(struct tw__redis_share *share, const struct tw__redis_task *task)
{
    uint32_t at = place_of(share, task);
    share->users--;
    memmove(share->user + at, share->user + at + 1, (share->users - at) * sizeof(void *));
}

/* The payload counts as memory of dead tasks while one of its users is dead. */
static void count_dead(struct tw__redis_queue *queue, struct tw__redis_share *share, int sign)
{
    uint32_t before = share->dead;
    share->dead += (uint32_t)sign;
    if (before == 0 || share->dead == 0)
        tw__redis_sums_dead_block(queue, share, sign);
}

static void add_user(struct tw__redis_queue *queue, struct tw__redis_share *share, struct tw__redis_task *task)
{
    reserve(queue, share);
    share->user[share->users++] = task;
    if (tw__redis_task_stage(task) == TW__TASK_BURIED)
        count_dead(queue, share, 1);
}

struct tw__redis_share *tw__redis_share_new(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    struct tw__redis_bytes packed = tw__redis_task_packed(task);
    struct tw__redis_share *share = queue->queues->memory.alloc(sizeof *share + packed.size);
    *share = (struct tw__redis_share){.size = packed.size};
    memcpy(share->packed, packed.at, packed.size);
    if (task->shares)
        tw__redis_share_leave(queue, task);
    tw__redis_sums_block(queue, share, 1);
    add_user(queue, share, task);
    return share;
}

void tw__redis_share_join(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    add_user(queue, shared_by(task), task);
}

void tw__redis_share_leave(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    struct tw__redis_share *share = shared_by(task);
    if (tw__redis_task_stage(task) == TW__TASK_BURIED)
        count_dead(queue, share, -1);
    take_out(share, task);
    if (share->users > 0)
        return;
    tw__redis_sums_block(queue, share->user, -1);
    tw__redis_sums_block(queue, share, -1);
    queue->queues->memory.free(share->user);
    queue->queues->memory.free(share);
}

void tw__redis_share_dead(struct tw__redis_queue *queue, struct tw__redis_task *task, int sign)
{
    struct tw__redis_share *share = shared_by(task);
    if (tw__redis_task_stage(task) != TW__TASK_BURIED)
        return;
    count_dead(queue, share, sign);
    if (sign < 0)
        return;
    take_out(share, task);
    share->user[share->users++] = task; /* it has died last */
}

/* ---- blocks that are moved ------------------------------------------------------------------------------- */

void tw__redis_share_moved(const struct tw__redis_task *old, struct tw__redis_task *task)
{
    struct tw__redis_share *share = shared_by(task);
    share->user[place_of(share, old)] = task;
}

void tw__redis_share_relocate(const struct tw__redis_task *task, void *(*move)(void *old))
{
    struct tw__redis_share *share = tw__redis_task_share(task);
    if (share == NULL || share->user[0] != task)
        return;
    struct tw__redis_share *moved = move(share);
    if (moved != NULL)
        share = moved;
    for (uint32_t i = 0; i < share->users && moved != NULL; i++)
        tw__redis_task_set_share(share->user[i], share);
    struct tw__redis_task **user = move(share->user);
    if (user != NULL)
        share->user = user;
}

/* ---- deaths ---------------------------------------------------------------------------------------------- */

struct tw__redis_task *tw__redis_share_excess(const struct tw__redis_task *task)
{
    const struct tw__redis_share *share = tw__redis_task_share(task);
    if (share == NULL || share->dead <= TW__REDIS_DEATHS_MAX)
        return NULL;
    uint32_t at = 0;
    while (tw__redis_task_stage(share->user[at]) != TW__TASK_BURIED)
        at++;
    return share->user[at];
}
