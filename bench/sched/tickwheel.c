/* SPDX-License-Identifier: MIT
 *
 * Our scheduler with its defaults: one shard, ticks of a millisecond, callbacks on the timer thread. And the
 * same with as many shards as there are producers.
 */
#include "peer.h"

#include <tickwheel/sched.h>

#include <stdio.h>
#include <stdlib.h>

struct self {
    struct tw_sched *sched;
    uint64_t *ids;
};

static void check(int error, const char *what)
{
    if (error == 0)
        return;
    fprintf(stderr, "tickwheel: %s: %s\n", what, tw_strerror(error));
    exit(1);
}

static void *open_with(size_t jobs, uint32_t shards)
{
    struct tw_sched_options options = {.shards = shards};
    struct self *self = need(1, sizeof *self);
    self->ids = need(jobs, sizeof *self->ids);
    check(tw_sched_new(&self->sched, &options), "new");
    return self;
}

static void *open_default(size_t jobs)
{
    return open_with(jobs, 0);
}

static void *open_sharded(size_t jobs)
{
    return open_with(jobs, (uint32_t)producers);
}

static void close_sched(void *at)
{
    struct self *self = at;
    tw_sched_free(self->sched);
    free(self->ids);
    free(self);
}

static void on_due(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    fired((size_t)(uintptr_t)task->arg);
}

static void add(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    check(tw_sched_after(self->sched, delay_ns, on_due, (void *)(uintptr_t)job, &self->ids[job]), "after");
}

static void cancel(void *at, size_t job)
{
    struct self *self = at;
    if (tw_sched_cancel(self->sched, self->ids[job]) != TW_CANCELLED)
        check(TW_EGONE, "cancel");
}

static void key_add(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    check(
        tw_sched_set_after(self->sched, key_of(job), KEY_SIZE, delay_ns, on_due, (void *)(uintptr_t)job, NULL),
        "set");
}

static void key_move(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    check(tw_sched_key_move_after(self->sched, key_of(job), KEY_SIZE, delay_ns), "move");
}

static void settle(void *at)
{
    (void)at;
}

const struct peer tickwheel_peer = {"tickwheel", true,    open_default, close_sched, add,
                                    cancel,      key_add, key_move,     settle};
const struct peer sharded_peer = {"sharded", true,    open_sharded, close_sched, add,
                                  cancel,    key_add, key_move,     settle};
