/* SPDX-License-Identifier: MIT
 *
 * Counts of a queue, and their sums.
 *
 * Invariants
 * C1 A queue is in the list of attached or of detached queues, as its member `attached` says.
 * C2 Each sum adds up the counts of all attached queues; `reaping` counts the tasks of detached queues.
 * C3 The bytes of an attached queue are those of its block, its tables, and the blocks of its tasks, of the
 *    payloads that they share, and of its routes.
 * C4 A queue is too large if it is attached and its dump may take more than dump_limit bytes.
 * C5 The paused queues come first in the list of attached queues. So a look at the beginning of a long
 *    list finds a pause that somebody has forgotten.
 * C6 The bytes of dead tasks are those of the blocks in the line of dead tasks, and of each shared payload
 *    that has a dead user.
 */
#include "sums.h"

#include <base/list.h>

const char *const tw__redis_count_name[TW__REDIS_COUNTS] = {
    [TW__REDIS_DELIVERED] = "delivered", [TW__REDIS_DONE] = "done",       [TW__REDIS_FAILED] = "failed",
    [TW__REDIS_LAPSED] = "lapsed",       [TW__REDIS_BACK] = "back",       [TW__REDIS_DIED] = "died",
    [TW__REDIS_DROPPED] = "dropped",     [TW__REDIS_SKIPPED] = "skipped", [TW__REDIS_COALESCED] = "coalesced",
    [TW__REDIS_REPLACED] = "replaced",   [TW__REDIS_TAKEN] = "taken",
};

/* ---- queues that are too large to be moved --------------------------------------------------------------- */

/* In memory a task has its block and a cell of the table of ids. In a dump it has the number of its route,
 * its due time, flags and sizes instead. A chunk ends after TW__REDIS_CHUNK_BYTES. If the definitions of all
 * routes take no more than half of that, tasks fill the other half. */
uint64_t tw__redis_sums_dump_most(const struct tw__redis_queue *queue)
{
    enum { ROUTE = 5, NUMBER = 2, DUE = 5, FLAGS = 1, SIZE = 3, REPEAT = 2, CHUNK = 24, SNAPSHOT = 64 };
    const uint64_t beside = offsetof(struct tw__redis_task, rest) + sizeof(uint64_t);
    uint64_t tasks = tw__redis_table_count(&queue->tasks), routes = tw__redis_table_count(&queue->routes);
    uint64_t definition = queue->longest_route + ROUTE, chunks = tasks;
    if (routes * definition <= TW__REDIS_CHUNK_BYTES / 2)
        chunks = tasks / TW__REDIS_CHUNK_TASKS + queue->bytes / (TW__REDIS_CHUNK_BYTES / 2) + 1;
    uint64_t definitions = routes * chunks < tasks ? routes * chunks : tasks;
    return queue->bytes - tasks * (beside - NUMBER - DUE - FLAGS - SIZE - REPEAT) + definitions * definition +
           chunks * CHUNK + SNAPSHOT;
}

/* Keeps `too_large` correct, so that INFO does not have to go through all queues. A task or a route that
 * comes or goes changes the bytes, so count_bytes() calls this function. tw__redis_sums_queue() calls it
 * for queues that come or go. */
static void weigh(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    bool too_large = queue->attached && tw__redis_sums_dump_most(queue) > queues->dump_limit;
    if (too_large == queue->too_large)
        return;
    queue->too_large = too_large;
    queues->too_large += too_large ? 1 : (uint64_t)-1;
}

/* Sets a limit. If it is another one than before, each attached queue is looked at. */
static void set_limit(struct tw__redis_queues *queues, uint64_t *limit, uint64_t value,
                      void (*look_at)(struct tw__redis_queue *queue))
{
    if (value == *limit)
        return;
    *limit = value;
    for (struct tw__link *link = queues->attached.next; link != &queues->attached; link = link->next)
        look_at(tw__redis_queue_at(link));
}

void tw__redis_sums_limit_dump(struct tw__redis_queues *queues, uint64_t bytes)
{
    set_limit(queues, &queues->dump_limit, bytes, weigh);
}

/* ---- queues with too many dead tasks --------------------------------------------------------------------- */

static void weigh_dead(struct tw__redis_queue *queue)
{
    struct tw__redis_queues *queues = queue->queues;
    bool too_many = queues->dead_limit > 0 && queue->dead_count > queues->dead_limit;
    if (queue->attached && too_many && !tw__link_listed(&queue->stale))
        tw__list_append(&queues->stale, &queue->stale);
}

void tw__redis_sums_limit_dead(struct tw__redis_queues *queues, uint64_t count)
{
    set_limit(queues, &queues->dead_limit, count, weigh_dead);
}

/* ---- bytes ----------------------------------------------------------------------------------------------- */

/* Adds to a count of a queue, and to the sum over all attached queues. */
static void add(const struct tw__redis_queue *queue, uint64_t *own, uint64_t *all, int64_t more)
{
    *own += (uint64_t)more;
    if (queue->attached)
        *all += (uint64_t)more;
}

static void count_bytes(struct tw__redis_queue *queue, int64_t more)
{
    add(queue, &queue->bytes, &queue->queues->bytes, more);
    weigh(queue);
}

void tw__redis_sums_block(struct tw__redis_queue *queue, void *block, int sign)
{
    count_bytes(queue, sign * (int64_t)queue->queues->memory.usable(block));
}

size_t tw__redis_sums_table_bytes(const struct tw__redis_queue *queue)
{
    return tw__redis_table_bytes(&queue->tasks) + tw__redis_table_bytes(&queue->routes);
}

void tw__redis_sums_tables(struct tw__redis_queue *queue, size_t before)
{
    count_bytes(queue, (int64_t)tw__redis_sums_table_bytes(queue) - (int64_t)before);
}

/* ---- tasks and queues ------------------------------------------------------------------------------------ */

/* The `empty` of a queue: 1 if it is to be removed. */
static uint64_t is_empty(const struct tw__redis_queue *queue)
{
    return tw__redis_table_count(&queue->tasks) == 0 && !queue->paused;
}

static uint64_t stopped_of(const struct tw__redis_queue *queue)
{
    return queue->paused ? queue->in_line : 0;
}

/* Adds the numbers that a pause changes to the sums (`one` 1), or subtracts them (-1). */
static void count_pause(const struct tw__redis_queue *queue, uint64_t one)
{
    struct tw__redis_queues *queues = queue->queues;
    queues->empty += one * is_empty(queue);
    queues->paused += one * queue->paused;
    queues->stopped += one * stopped_of(queue);
}

void tw__redis_sums_queue(struct tw__redis_queue *queue, int sign)
{
    struct tw__redis_queues *queues = queue->queues;
    uint64_t one = (uint64_t)(int64_t)sign;
    queues->count += one;
    count_pause(queue, one);
    queues->tasks += one * tw__redis_table_count(&queue->tasks);
    queues->in_line += one * queue->in_line;
    queues->held += one * queue->held;
    queues->ready_count += one * queue->ready_count;
    queues->leased_count += one * queue->leased_count;
    queues->dead_count += one * queue->dead_count;
    queues->bytes += one * queue->bytes;
    queues->dead_bytes += one * queue->dead_bytes;
    queues->reaping -= one * tw__redis_table_count(&queue->tasks);
    weigh(queue);
    weigh_dead(queue);
}

void tw__redis_sums_task(struct tw__redis_queue *queue, int sign)
{
    struct tw__redis_queues *queues = queue->queues;
    if (queue->attached) {
        queues->tasks += (uint64_t)(int64_t)sign;
        queues->empty -= is_empty(queue) ? (uint64_t)(int64_t)sign : 0;
    } else {
        queues->reaping += (uint64_t)(int64_t)sign;
    }
}

void tw__redis_sums_list(struct tw__redis_queue *queue)
{
    struct tw__link *attached = &queue->queues->attached;
    tw__list_insert(&queue->all, queue->paused ? attached->next : attached);
}

void tw__redis_sums_pause(struct tw__redis_queue *queue, bool paused)
{
    if (!queue->attached) {
        queue->paused = paused;
        return;
    }
    count_pause(queue, (uint64_t)-1);
    queue->paused = paused;
    count_pause(queue, 1);
    tw__list_remove(&queue->all);
    tw__redis_sums_list(queue);
}

/* ---- places and stages ----------------------------------------------------------------------------------- */

void tw__redis_sums_in_line(struct tw__redis_queue *queue, int more)
{
    add(queue, &queue->in_line, &queue->queues->in_line, more);
    if (queue->attached && queue->paused)
        queue->queues->stopped += (uint64_t)(int64_t)more;
}

void tw__redis_sums_held(struct tw__redis_queue *queue, int more)
{
    add(queue, &queue->held, &queue->queues->held, more);
}

void tw__redis_sums_ready(struct tw__redis_queue *queue, int more)
{
    add(queue, &queue->ready_count, &queue->queues->ready_count, more);
}

void tw__redis_sums_dead_block(struct tw__redis_queue *queue, void *block, int sign)
{
    int64_t bytes = (int64_t)queue->queues->memory.usable(block);
    add(queue, &queue->dead_bytes, &queue->queues->dead_bytes, sign * bytes);
}

void tw__redis_sums_dead(struct tw__redis_queue *queue, struct tw__redis_task *task, int sign)
{
    add(queue, &queue->dead_count, &queue->queues->dead_count, sign);
    tw__redis_sums_dead_block(queue, task, sign);
    weigh_dead(queue);
}

void tw__redis_sums_leased(struct tw__redis_queue *queue, const struct tw__redis_task *task, int sign)
{
    if (tw__redis_task_is_leased(task))
        add(queue, &queue->leased_count, &queue->queues->leased_count, sign);
}
