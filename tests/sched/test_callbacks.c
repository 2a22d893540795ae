/* SPDX-License-Identifier: MIT
 *
 * Calls of the scheduler from inside its callbacks.
 */
#include "outcome.h"
#include "support.h"

static uint64_t other_id;

static void cancel_other(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    answer = tw_sched_cancel(sched, other_id);
}

static void a_callback_may_cancel_another_of_its_own_tick(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_in(sched, ms, cancel_other, NULL, NULL);
    tw_sched_add_in(sched, ms, log_call, NULL, &other_id);
    advance(sched, 5 * ms);
    assert_int_equal(answer, TW_CANCEL_CANCELLED);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

static void cancel_self(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    answer = tw_sched_cancel(sched, task->id);
}

static void a_callback_that_cancels_itself_was_the_last(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_every(sched, &(struct tw_every){.period_ns = ms}, cancel_self, NULL, NULL);
    advance(sched, 50 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(answer, TW_CANCEL_AT_WORK);
    tw_sched_free(sched);
}

static void move_self(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls < 5)
        error_inside = tw_sched_move_in(sched, task->id, 10 * ms);
}

static void a_task_that_runs_once_may_file_itself_again_under_its_id(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_add_in(sched, ms, move_self, NULL, &id);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen[i].id, id);
        assert_int_equal(seen_at[i], (uint64_t)(1 + 10 * i) * ms);
    }
    assert_int_equal(stats_of(sched).again, 4);
    tw_sched_free(sched);
}

static void a_cancelled_task_cannot_move_itself(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_in(sched, ms, cancel_and_move_self, NULL, NULL);
    advance(sched, 10 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(error_inside, TW_EGONE);
    tw_sched_free(sched);
}

static void move_self_to_now(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_move_in(sched, task->id, 0);
}

static void a_callback_that_keeps_moving_itself_to_now_runs_once_a_tick(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_in(sched, 0, move_self_to_now, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 100);
    tw_sched_free(sched);
}

static void a_callback_may_add_tasks(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_in(sched, ms, add_another, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 10);
    tw_sched_free(sched);
}

static void stop_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, 0, visit_count, NULL);
}

static void a_callback_may_stop_the_scheduler(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    handed = 0;
    tw_sched_add_every(sched, &(struct tw_every){.first_ns = ms, .period_ns = ms}, stop_inside, NULL, NULL);
    for (int i = 0; i < 10; i++)
        tw_sched_add_in(sched, (uint64_t)(i / 5 + 1) * ms, log_call, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(handed, 11); /* the callback's own next call is among them */
    assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, NULL), TW_ESTOPPED);
    assert_int_equal(tw_sched_move_in(sched, seen[0].id, ms), TW_EGONE);
    tw_sched_free(sched);
}

static void cancel_wait_self(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    error_inside = tw_sched_cancel_wait(sched, task->id, &answer);
}

static void a_callback_cannot_wait_for_itself_and_is_not_cancelled(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_every(sched, &(struct tw_every){.period_ns = ms, .times = 3}, cancel_wait_self, NULL, NULL);
    advance(sched, 50 * ms);
    assert_int_equal(error_inside, TW_EDEADLK);
    assert_int_equal(calls, 3);
    tw_sched_free(sched);
}

static struct tw_sched *inner;
static void drive_inner(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_advance(inner, tw_sched_now(inner) + 5 * ms);
    error_inside =
        tw_sched_cancel_wait(sched, task->id, NULL); /* sees the outer callback behind the inner callbacks */
}

static void a_callback_may_drive_another_scheduler(void **state)
{
    (void)state;
    struct tw_sched *outer = plain_sched();
    inner = plain_sched();
    tw_sched_add_in(inner, ms, log_call, NULL, NULL);
    tw_sched_add_in(outer, ms, drive_inner, NULL, NULL);
    advance(outer, 5 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(error_inside, TW_EDEADLK);
    tw_sched_free(inner);
    tw_sched_free(outer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_callback_may_cancel_another_of_its_own_tick),
        cmocka_unit_test(a_callback_that_cancels_itself_was_the_last),
        cmocka_unit_test(a_task_that_runs_once_may_file_itself_again_under_its_id),
        cmocka_unit_test(a_cancelled_task_cannot_move_itself),
        cmocka_unit_test(a_callback_that_keeps_moving_itself_to_now_runs_once_a_tick),
        cmocka_unit_test(a_callback_may_add_tasks),
        cmocka_unit_test(a_callback_may_stop_the_scheduler),
        cmocka_unit_test(a_callback_cannot_wait_for_itself_and_is_not_cancelled),
        cmocka_unit_test(a_callback_may_drive_another_scheduler),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
