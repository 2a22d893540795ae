/* SPDX-License-Identifier: MIT
 *
 * Tasks that the caller's executor runs, with and without a queue of the executor.
 */
#include "outcome.h"
#include "spread.h"
#include "support.h"

static void an_id_that_comes_back_after_the_stop_runs_nothing(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    tw_sched_add_in(sched, ms, log_call, NULL, NULL);
    advance(sched, 2 * ms);
    assert_int_equal(sent_count, 1);
    assert_int_equal(tw_sched_stop(sched, 0, NULL, NULL), 1);
    run_sent(sched);
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static struct tw_sched *drained_sched;
static uint64_t drained_id[2];

static void run_the_others(void *arg, const struct tw_task *task)
{
    (void)arg, (void)task;
    for (int i = 0; i < 2; i++)
        tw_sched_run(drained_sched, drained_id[i]);
}

static void an_id_that_was_moved_after_it_was_sent_does_not_run_in_a_drain(void **state)
{
    (void)state;
    drained_sched = lazy_sched();
    for (int i = 0; i < 2; i++)
        tw_sched_add_in(drained_sched, ms, log_call, NULL, &drained_id[i]);
    advance(drained_sched, 2 * ms);
    assert_int_equal(sent_count, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tw_sched_move_in(drained_sched, drained_id[i], 50 * ms), 0);
    assert_int_equal(try_drain(drained_sched, run_the_others, NULL), 2);
    assert_int_equal(calls, 0);
    tw_sched_free(drained_sched);
}

static uint64_t late_id;
static int wait_error;

static void hook_that_waits(void *arg, const struct tw_task *task, uint64_t ns)
{
    struct tw_sched **sched = arg;
    (void)ns;
    wait_error = tw_sched_cancel_wait(*sched, task->id, NULL);
    tw_sched_stop(*sched, 0, NULL, NULL);
    late_id = task->id;
}

static void a_hook_is_part_of_the_callback(void **state)
{
    (void)state;
    struct tw_sched *sched;
    uint64_t id;
    sched = sched_of((struct tw_sched_options){.on_late = hook_that_waits, .hook_arg = &sched});
    tw_sched_add_at(sched, ms / 2, log_call, NULL, &id); /* half a tick late */
    advance(sched, 2 * ms);
    assert_int_equal(late_id, id);
    assert_int_equal(wait_error, TW_EDEADLK);
    tw_sched_free(sched);
}

static void a_task_with_the_executor_can_still_be_cancelled_moved_and_handed_over(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    uint64_t id[4];
    for (int i = 0; i < 4; i++)
        tw_sched_add_in(sched, ms, log_call, NULL, &id[i]);
    advance(sched, 5 * ms);
    assert_int_equal(sent_count, 4);
    assert_int_equal(tw_sched_count(sched), 4);
    assert_int_equal(tw_sched_cancel(sched, id[1]), TW_CANCEL_CANCELLED);
    assert_int_equal(tw_sched_move_in(sched, id[2], 10 * ms), 0);
    run_sent(sched); /* passes over tasks 1 and 2 */
    assert_int_equal(calls, 2);
    assert_int_equal(seen[0].id, id[0]);
    assert_int_equal(seen[1].id, id[3]);
    advance(sched, 20 * ms);
    assert_int_equal(sent_count, 1);
    handed = 0;
    assert_int_equal(try_drain(sched, visit_count, NULL), 1);
    run_sent(sched);
    assert_int_equal(calls, 2);
    stats_of(sched);
    tw_sched_free(sched);
}

static void an_executor_gets_each_missed_call_after_the_one_before(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = ms, .period_ns = ms, .times = 4, .missed = TW_MISSED_BURST};
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    advance(sched, 20 * ms);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(sent_count, 1);
        run_sent(sched);
        advance(sched, 0);
    }
    assert_int_equal(calls, 4);
    assert_int_equal(sent_count, 0);
    tw_sched_free(sched);
}

static void a_stopped_scheduler_runs_nothing_the_executor_still_holds(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    tw_sched_add_in(sched, ms, log_call, NULL, NULL);
    advance(sched, 5 * ms);
    handed = 0;
    assert_int_equal(tw_sched_stop(sched, TW_SCHED_STOP_NOWAIT, visit_count, NULL), 1);
    run_sent(sched);
    assert_int_equal(calls, 0);
    advance(sched, 5 * ms);
    tw_sched_free(sched);
}

/* ---- an executor without a queue ------------------------------------------------------------------------ */

static void what_was_sent_runs_in_order_and_as_much_as_is_asked_for(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    uint64_t id[8];
    for (int i = 0; i < 8; i++)
        tw_sched_add_in(sched, ms + (uint64_t)i % 2 * ms, log_call, NULL, &id[i]);
    assert_int_equal(tw_sched_run_some(sched, 100), 0); /* no task is due */
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_cancel(sched, id[0]), TW_CANCEL_CANCELLED);
    assert_int_equal(tw_sched_move_in(sched, id[2], 10 * ms), 0);
    assert_int_equal(tw_sched_run_some(sched, 0), 0);
    assert_int_equal(tw_sched_run_some(sched, 3), 3);
    assert_int_equal(calls, 3);
    assert_int_equal(seen[0].id, id[4]);
    assert_int_equal(seen[1].id, id[6]);
    assert_int_equal(seen[2].id, id[1]);
    tw_sched_run(sched, id[5]); /* another thread takes a task from the middle */
    assert_int_equal(tw_sched_run_some(sched, 100), 2);
    assert_int_equal(seen[4].id, id[3]);
    assert_int_equal(seen[5].id, id[7]);
    advance(sched, 20 * ms);
    assert_int_equal(tw_sched_run_some(sched, UINT64_MAX), 1);
    assert_int_equal(seen[6].id, id[2]);
    assert_int_equal(stats_of(sched).fired, 7);
    tw_sched_free(sched);
}

static void a_repeating_task_is_sent_again_before_it_runs_again(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = ms, .period_ns = ms, .times = 4, .missed = TW_MISSED_BURST};
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    advance(sched, 20 * ms);
    for (int i = 1; i <= 4; i++) {
        assert_int_equal(tw_sched_run_some(sched, 100), 1);
        assert_int_equal(calls, i);
        advance(sched, 0);
    }
    assert_int_equal(tw_sched_run_some(sched, 100), 0);
    tw_sched_free(sched);
}

static void a_call_that_is_skipped_was_taken_all_the_same(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = TW_MISSED_SKIP};
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    advance(sched, 45 * ms);
    assert_int_equal(tw_sched_run_some(sched, 100), 1);
    assert_int_equal(calls, 0);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_run_some(sched, 100), 1);
    assert_int_equal(seen[0].due_ns, 50 * ms);
    tw_sched_free(sched);
}

static void log_and_stop(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls == 2)
        tw_sched_stop(sched, 0, visit_count, NULL);
}

static void a_callback_that_stops_the_scheduler_is_the_last(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    handed = 0;
    for (int i = 0; i < 5; i++)
        tw_sched_add_in(sched, ms, log_and_stop, NULL, NULL);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_run_some(sched, 100), 2);
    assert_int_equal(calls, 2);
    assert_int_equal(handed, 3);
    assert_int_equal(tw_sched_run_some(sched, 100), 0);
    tw_sched_free(sched);
}

static void visit_and_run(void *arg, const struct tw_task *task)
{
    struct tw_sched *const *sched = arg;
    (void)task;
    assert_int_equal(tw_sched_run_some(*sched, 100), 0);
    handed++;
}

static void while_one_shard_is_handed_over_none_runs(void **state)
{
    (void)state;
    enum { TASKS = 100 };
    sent_count = handed = 0;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = send_later, .shards = 4});
    spread_keys(sched);
    for (int key = 0; key < TASKS; key++)
        assert_int_equal(tw_sched_key_put_in(sched, BYTES_OF(key), ms, log_call, NULL, NULL), 0);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_stop(sched, 0, visit_and_run, &sched), TASKS);
    assert_int_equal(handed, TASKS);
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static void shards_take_turns_in_what_was_sent(void **state)
{
    (void)state;
    enum { SHARDS = 4, TASKS = 1000, SOME = 256 };
    unsigned ran[SHARDS] = {0};
    sent_count = 0;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = send_later, .shards = SHARDS});
    spread_keys(sched);
    for (int key = 0; key < TASKS; key++)
        assert_int_equal(tw_sched_key_put_in(sched, BYTES_OF(key), ms, log_call, NULL, NULL), 0);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_run_some(sched, SOME), SOME);
    for (int i = 0; i < calls; i++)
        ran[((uint32_t)seen[i].id >> TW__SCHED_INDEX_BITS) % (1 << TW__SCHED_SHARD_BITS)]++;
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(ran[i], SOME / SHARDS);
    assert_int_equal(tw_sched_run_some(sched, TASKS), TASKS - SOME);
    assert_int_equal(calls, TASKS);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_that_comes_back_after_the_stop_runs_nothing),
        cmocka_unit_test(a_hook_is_part_of_the_callback),
        cmocka_unit_test(an_id_that_was_moved_after_it_was_sent_does_not_run_in_a_drain),
        cmocka_unit_test(a_task_with_the_executor_can_still_be_cancelled_moved_and_handed_over),
        cmocka_unit_test(an_executor_gets_each_missed_call_after_the_one_before),
        cmocka_unit_test(a_stopped_scheduler_runs_nothing_the_executor_still_holds),
        cmocka_unit_test(what_was_sent_runs_in_order_and_as_much_as_is_asked_for),
        cmocka_unit_test(a_repeating_task_is_sent_again_before_it_runs_again),
        cmocka_unit_test(a_call_that_is_skipped_was_taken_all_the_same),
        cmocka_unit_test(a_callback_that_stops_the_scheduler_is_the_last),
        cmocka_unit_test(while_one_shard_is_handed_over_none_runs),
        cmocka_unit_test(shards_take_turns_in_what_was_sent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
