/* SPDX-License-Identifier: MIT
 *
 * Our scheduler:
 *
 *     tickwheel    the defaults: a shard for each thread, up to the number of processors; ticks of a
 *                  millisecond; callbacks on the timer thread
 *     single       the same with one shard, for a total order
 *     workers_n    the defaults with n workers; only the firing is measured
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
    fprintf(stderr, "tickwheel: %s: %s\n", what, tw_sched_strerror(error));
    exit(1);
}

static void *open_with(size_t jobs, const struct tw_sched_options *options)
{
    struct self *self = need(1, sizeof *self);
    self->ids = need(jobs, sizeof *self->ids);
    check(tw_sched_new(&self->sched, options), "new");
    return self;
}

static void *open_default(size_t jobs)
{
    return open_with(jobs, NULL);
}

static void *open_single(size_t jobs)
{
    return open_with(jobs, &(struct tw_sched_options){.shards = 1});
}

static void *open_workers1(size_t jobs)
{
    return open_with(jobs, &(struct tw_sched_options){.workers = 1});
}

static void *open_workers2(size_t jobs)
{
    return open_with(jobs, &(struct tw_sched_options){.workers = 2});
}

static void *open_workers4(size_t jobs)
{
    return open_with(jobs, &(struct tw_sched_options){.workers = 4});
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
    check(tw_sched_add_in(self->sched, delay_ns, on_due, (void *)(uintptr_t)job, &self->ids[job]), "after");
}

static void cancel(void *at, size_t job)
{
    struct self *self = at;
    if (tw_sched_cancel(self->sched, self->ids[job]) != TW_CANCEL_CANCELLED)
        check(TW_EGONE, "cancel");
}

static struct tw_bytes bytes_of(size_t job)
{
    return (struct tw_bytes){key_of(job), KEY_SIZE};
}

static void key_add(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    check(tw_sched_key_put_in(self->sched, bytes_of(job), delay_ns, on_due, (void *)(uintptr_t)job, NULL),
          "set");
}

static void key_move(void *at, size_t job, uint64_t delay_ns)
{
    struct self *self = at;
    check(tw_sched_key_move_in(self->sched, bytes_of(job), delay_ns), "move");
}

static void settle(void *at)
{
    (void)at;
}

#define PEER(name, calls, open)                                                                                \
    {                                                                                                          \
        name, calls, true, open, close_sched, add, cancel, key_add, key_move, settle                           \
    }
const struct peer tickwheel_peer = PEER("tickwheel", true, open_default);
const struct peer single_peer = PEER("single", true, open_single);
const struct peer workers1_peer = PEER("workers_1", false, open_workers1);
const struct peer workers2_peer = PEER("workers_2", false, open_workers2);
const struct peer workers4_peer = PEER("workers_4", false, open_workers4);
