/* SPDX-License-Identifier: MIT
 *
 * A test of one queue, whose tasks are leased, and of the log of their changes.
 */
#ifndef TW_TESTS_REDIS_WORK_H
#define TW_TESTS_REDIS_WORK_H

#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/check.h>
#include <src/redis/queues/lease.h>

static struct tw__redis_queue *queue;
static struct tw__redis_buffer changes;

static inline void open_work(void)
{
    queue = open_one();
}

static inline void close_work(void)
{
    assert_null(tw__redis_check_all(all));
    tw__redis_buffer_free(&changes, &counted);
    close_one(queue);
}

/* Makes a task ready, wherever it waits. */
static inline void offer(struct tw__redis_task *task, uint64_t now)
{
    tw__redis_place_unfile(all, task);
    tw__redis_place_offer(all, task, now);
}

/* Gives a ready task to a worker. */
static inline struct tw__redis_task *lease(struct tw__redis_task *task, uint64_t token, uint64_t now)
{
    struct lease its = {.token = token, .ms = 1000, .worker = text("bob")};
    return begin_lease(queue, task, &its, now, &changes);
}

#endif
