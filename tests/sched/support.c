/* SPDX-License-Identifier: MIT
 *
 * The helpers that the tests of the scheduler share.
 */
#include "support.h"

#include <stdlib.h>

struct tw_task seen[LOG_MAX];
uint64_t seen_at[LOG_MAX];
int calls;

void log_call(struct tw_sched *sched, const struct tw_task *task)
{
    assert_true(calls < LOG_MAX);
    seen[calls] = *task;
    seen_at[calls++] = tw_sched_now(sched);
}

struct tw_sched *sched_of(struct tw_sched_options options)
{
    struct tw_sched *sched = NULL;
    options.clock = TW_SCHED_CLOCK_VIRTUAL;
    calls = 0;
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    return sched;
}

struct tw_sched *plain_sched(void)
{
    return sched_of((struct tw_sched_options){.start_ns = 0});
}

void advance(struct tw_sched *sched, uint64_t ns)
{
    assert_int_equal(tw_sched_advance(sched, tw_sched_now(sched) + ns), 0);
    assert_null(tw__sched_check(sched));
}

struct tw_sched_info stats_of(const struct tw_sched *sched)
{
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    assert_null(tw__sched_check(sched));
    assert_int_equal(stats.added + stats.again, stats.fired + stats.cancelled + stats.handed + stats.pending);
    return stats;
}

/* ---- memory ---------------------------------------------------------------------------------------------- */

int requests_left;
long blocks_out;
size_t bytes_out;

void *scarce_memory(void *arg, void *old, size_t size)
{
    (void)arg;
    if (old != NULL) {
        blocks_out--;
        bytes_out -= size;
        free(old);
        return NULL;
    }
    if (requests_left-- <= 0)
        return NULL;
    blocks_out++;
    bytes_out += size;
    return malloc(size);
}

/* ---- an executor that waits ------------------------------------------------------------------------------ */

uint64_t sent[LOG_MAX];
int sent_count;

void send_later(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched;
    sent[sent_count++] = id;
}

struct tw_sched *lazy_sched(void)
{
    sent_count = 0;
    return sched_of((struct tw_sched_options){.execute = send_later});
}

void run_sent(struct tw_sched *sched)
{
    int count = sent_count;
    sent_count = 0;
    for (int i = 0; i < count; i++)
        tw_sched_run(sched, sent[i]);
}

/* ---- callbacks and visits -------------------------------------------------------------------------------- */

enum tw_cancel answer;
int error_inside;
uint64_t handed;

void visit_count(void *arg, const struct tw_task *task)
{
    (void)arg, (void)task;
    handed++;
}

void add_another(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls < 10)
        error_inside = tw_sched_add_in(sched, 3 * ms, add_another, task->arg, NULL);
}

void cancel_and_move_self(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_cancel(sched, task->id);
    error_inside = tw_sched_move_in(sched, task->id, ms);
}
