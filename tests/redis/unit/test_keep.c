/* SPDX-License-Identifier: MIT
 *
 * KEEPDUE: the decisions, and what becomes of a task in each place. test_queues.c has the model.
 */
#include "work.h"

#include <src/redis/queues/chunk.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>

static struct tw__redis_task *make(const char *id, const char *packed, uint64_t every, uint64_t times)
{
    struct tw__redis_task_plan parts = {
        .id = text(id), .due = START + 9000, .every = every, .times = times, .packed = text(packed)};
    return tw__redis_task_new(&parts, &counted);
}

static struct tw__redis_task *put_plan(const char *id, unsigned plan, uint64_t every)
{
    struct tw__redis_task *task = make(id, "\1\3old", every, TW_FOREVER);
    tw__redis_task_set_due(task, START + 5);
    tw__redis_queue_put(queue, task, tw__redis_route_for(queue, &plan_of[plan]),
                        tw__redis_queue_hash(all, text(id)), NULL, START);
    return task;
}

static struct tw__task_keep decide(const struct tw__redis_task *old, unsigned plan, uint64_t every)
{
    return tw__redis_keep_decide(all, old, &plan_of[plan], every, START + 9000, START + 70);
}

/* Puts another task with KEEPDUE. Returns it. */
static struct tw__redis_task *keep(const char *id, unsigned plan, uint64_t every, uint64_t times)
{
    struct tw__redis_task *old = find(queue, id);
    struct tw__task_keep keep = decide(old, plan, every);
    tw__redis_keep_put(queue, make(id, "\1\5newer", every, times), tw__redis_route_for(queue, &plan_of[plan]),
                       tw__redis_queue_hash(all, text(id)), old, keep.how, START + 70);
    struct tw__redis_task *task = find(queue, id);
    assert_bytes_equal(tw__redis_task_packed(task), text("\1\5newer"));
    assert_true(tw__redis_task_every(task) == every && tw__redis_task_times(task) == (every > 0 ? times : 1));
    struct tw__redis_plan now = tw__redis_route_plan(tw__redis_route_of(all, task));
    assert_plans_equal(&now, &plan_of[plan]);
    assert_null(tw__redis_check_all(all));
    return task;
}

static struct tw__redis_task *take(struct tw__redis_task *task, uint64_t token, uint64_t now)
{
    offer(task, now);
    return lease(task, token, now);
}

static void assert_attempt(const struct tw__redis_task *task, enum tw__task_stage stage, uint64_t due,
                           uint32_t number, uint64_t token)
{
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    assert_true(attempt.stage == stage && attempt.due == due && attempt.number == number &&
                attempt.token == token);
}

/* ---- deciding -------------------------------------------------------------------------------------------- */

static void assert_keep(struct tw__task_keep keep, enum tw__task_keepdue how, uint64_t due)
{
    assert_int_equal(keep.how, how);
    assert_true(keep.due_ms == due);
}

static void kind_and_target_decide_where_a_task_is(void **state)
{
    (void)state;
    open_work();
    const struct tw__redis_task *stream = put_plan("a", 0, 0), *list = put_plan("b", 6, 0),
                                *work = put_plan("c", FIRST_OF_WORKERS, 0);
    assert_keep(decide(NULL, 0, 0), TW__TASK_KEEPDUE_FILES, START + 9000);
    assert_keep(decide(stream, 3, 7), TW__TASK_KEEPDUE_IN_PLACE, START + 5); /* other options */
    assert_keep(decide(stream, 1, 0), TW__TASK_KEEPDUE_SAME_TIMES, START + 5);
    assert_keep(decide(stream, 4, 0), TW__TASK_KEEPDUE_SAME_TIMES, START + 5);
    assert_keep(decide(list, 7, 0), TW__TASK_KEEPDUE_IN_PLACE, START + 5); /* LEFT */
    assert_keep(decide(work, FIRST_OF_WORKERS + 1, 0), TW__TASK_KEEPDUE_IN_PLACE, START + 5);
    assert_keep(decide(work, 0, 0), TW__TASK_KEEPDUE_SAME_TIMES, START + 5);
    close_work();
}

static void a_task_that_repeats_no_more_stands_for_no_other_period(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = take(put_plan("a", FIRST_OF_WORKERS + 1, 60), 7, START + 200);
    do_fail(queue, task, false, text("no"), START + 900, START + 210, &changes);
    assert_true(tw__redis_task_missed_periods(keep("a", FIRST_OF_WORKERS + 1, 60, 5)) == 3);
    assert_true(tw__redis_task_missed_periods(keep("a", FIRST_OF_WORKERS + 1, 90, 5)) ==
                2); /* in the same time */
    task = keep("a", FIRST_OF_WORKERS + 1, 0, 1);
    assert_true(tw__redis_task_missed_periods(task) == 0);
    assert_attempt(task, TW__TASK_FILED, START + 5, 1, 0);
    close_work();
}

static void an_attempt_goes_on_if_both_repeat(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *once = take(put_plan("a", FIRST_OF_WORKERS, 0), 7, START + 10),
                          *series = take(put_plan("b", FIRST_OF_WORKERS, 60), 8, START + 10);
    assert_keep(decide(once, FIRST_OF_WORKERS, 60), TW__TASK_KEEPDUE_FILES, START + 70);
    assert_keep(decide(series, FIRST_OF_WORKERS, 0), TW__TASK_KEEPDUE_FILES, START + 70);
    assert_keep(decide(series, FIRST_OF_WORKERS + 1, 90), TW__TASK_KEEPDUE_IN_PLACE, START + 5);
    assert_keep(decide(series, 0, 90), TW__TASK_KEEPDUE_FILES, START + 5 + 60);
    const struct tw__redis_task *missed =
        take(put_plan("c", FIRST_OF_WORKERS + 1, 60), 9, START + 200); /* after 65, 125 and 185 */
    assert_keep(decide(missed, 0, 90), TW__TASK_KEEPDUE_FILES, START + 5 + 4 * 60);
    do_kill_series(queue, series, 1, text(""), START + 20, &changes);
    assert_keep(decide(find(queue, "b"), FIRST_OF_WORKERS, 60), TW__TASK_KEEPDUE_FILES, START + 9000);
    do_move(queue, once, START + 400, START + 20, &changes);
    assert_keep(decide(find(queue, "a"), 0, 0), TW__TASK_KEEPDUE_IN_PLACE, START + 400);
    close_work();
}

static void a_series_without_another_period_has_no_time_to_keep(void **state)
{
    uint64_t last = TW__TASK_TIME_MAX - START - 5;
    (void)state;
    open_work();
    const struct tw__redis_task *one = take(put_plan("a", FIRST_OF_WORKERS, last), 7, START + 10),
                                *other = take(put_plan("b", FIRST_OF_WORKERS, last + 1), 8, START + 10);
    assert_keep(decide(one, 0, 90), TW__TASK_KEEPDUE_FILES, TW__TASK_TIME_MAX);
    assert_keep(decide(other, 0, 90), TW__TASK_KEEPDUE_FILES, START + 9000);
    close_work();
}

/* ---- in place -------------------------------------------------------------------------------------------- */

static void a_task_keeps_its_place_in_a_wheel_and_in_the_lines(void **state)
{
    (void)state;
    open_work();
    for (const char *id = "a\0b\0c\0d\0e\0f\0"; *id; id += 2)
        put_plan(id, *id < 'd' ? FIRST_OF_WORKERS : 1, 0);
    keep("a", FIRST_OF_WORKERS + 1, 7, 3), keep("d", 1, 0, 1);
    struct tw__redis_task *task;
    for (const char *id = "a\0b\0c\0"; *id; id += 2) {
        assert_taken(START + 5, find(queue, id));
        tw__redis_place_offer(all, find(queue, id), START + 5);
    }
    keep("a", FIRST_OF_WORKERS, 0, 1), keep("b", FIRST_OF_WORKERS + 1, 0, 1);
    task = tw__redis_place_first_ready(queue);
    assert_ptr_equal(task, find(queue, "a"));
    assert_ptr_equal(task->parked.link.next, &find(queue, "b")->parked.link);
    assert_false(tw__redis_place_collect(all, START + 5, 100));
    keep("e", 1, 9, 2);
    for (const char *id = "d\0e\0f\0"; *id; id += 2)
        assert_taken(START + 5, find(queue, id));
    close_work();
}

static void a_retry_keeps_its_attempt_state_and_takes_no_byte_more(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = take(put_plan("a", FIRST_OF_WORKERS, 0), 7, START + 10);
    do_fail(queue, task, true, text("gone"), START + 500, START + 20, &changes);
    uint64_t bytes = queue->bytes;
    task = keep("a", FIRST_OF_WORKERS, 0, 1);
    assert_true(queue->bytes - bytes <= 8); /* two letters more, as the allocator rounds */
    assert_attempt(task, TW__TASK_FILED, START + 5, 1, 7);
    assert_true(tw__redis_task_due(task) == START + 500);
    assert_bytes_equal(tw__redis_task_whole_attempt(task).error, text("gone"));
    close_work();
}

static void an_attempt_under_way_keeps_its_lease(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = take(put_plan("a", FIRST_OF_WORKERS, 60), 7, START + 10);
    task = keep("a", FIRST_OF_WORKERS + 1, 90, 4);
    assert_attempt(task, TW__TASK_TAKEN, START + 5, 1, 7);
    assert_true(tw__redis_place_due(all, task) == START + 1010);
    do_done(queue, task, START + 80, &changes);
    task = find(queue, "a");
    assert_true(tw__redis_task_due(task) == START + 5 + 90 && tw__redis_task_times(task) == 3);
    close_work();
}

static void the_task_behind_an_attempt_may_get_a_target(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = take(put_plan("a", FIRST_OF_WORKERS, 0), 7, START + 10);
    do_move(queue, task, START + 400, START + 20, &changes);
    task = keep("a", 1, 0, 1);
    assert_attempt(task, TW__TASK_REPLACED, START + 400, 1, 7);
    assert_true(do_end_replaced(queue, task, START + 80, START + 80, &changes) == START + 400);
    assert_taken(START + 400, find(queue, "a"));
    close_work();
}

static void a_shared_payload_stays_with_the_others(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = take(put_plan("a", FIRST_OF_WORKERS, 60), 7, START + 10);
    do_kill(queue, task, 1, text(""), START + 20, &changes);
    task = find(queue, "a");
    assert_true(task->shares && tw__redis_task_share(task)->users == 2);
    task = keep("a", FIRST_OF_WORKERS, 60, 2);
    assert_false(task->shares);
    assert_int_equal(tw__redis_task_share(tw__redis_place_first_dead(queue))->users, 1);
    close_work();
}

static void a_held_task_waits_on_with_other_options(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_plan("a", 2, 0);
    assert_taken(START + 5, task);
    tw__redis_place_hold_first(all, task, 5100, START + 100);
    put_plan("b", 2, 0);
    assert_taken(START + 6, find(queue, "b"));
    tw__redis_place_hold(all, find(queue, "b"));
    task = keep("a", 2, 0, 1);
    assert_true(task->place == TW__REDIS_IN_HELD);
    uint32_t tries = tw__redis_place_tries(all, task);
    tw__redis_route_of(all, task)->wait_ms = 77;
    task = keep("a", 3, 0, 1);
    struct tw__redis_route *route = tw__redis_route_of(all, task);
    assert_true(task->place == TW__REDIS_IN_HELD);
    assert_int_equal(tw__redis_place_tries(all, task), tries);
    assert_true(tw_timer_pending(&route->retry) && tw_timer_deadline(&route->retry) == 5100);
    assert_true(tw__redis_place_next(all, task, START + 20) == START + 100 && route->wait_ms == 77);
    assert_true(tw_timer_pending(&tw__redis_route_of(all, find(queue, "b"))->retry));
    keep("b", 3, 0, 1);
    assert_true(tw__redis_route_of(all, find(queue, "b")) == route);
    tw__redis_place_try_again(route, START + 80);
    assert_take(START + 80, TW__REDIS_TAKEN_PROBE, task);
    tw__redis_place_put_back(all, task, TW__REDIS_TAKEN_PROBE);
    assert_take(START + 80, TW__REDIS_TAKEN_PROBE, task);
    assert_take(START + 80, TW__REDIS_TAKEN_PROBE, find(queue, "b"));
    close_work();
}

static void a_held_task_whose_wait_is_over_is_tried_with_other_options(void **state)
{
    (void)state;
    open_work();
    for (const char *id = "a\0b\0"; *id; id += 2) {
        put_plan(id, *id == 'a' ? 2 : 3, 0);
        assert_taken(START + 5, find(queue, id));
        tw__redis_place_hold_first(all, find(queue, id), 5100, START + 100);
    }
    tw__redis_place_try_again(tw__redis_route_of(all, find(queue, "a")), START + 60);
    assert_take(START + 60, TW__REDIS_TAKEN_PROBE, find(queue, "a"));
    all->delivering = find(queue, "a");
    struct tw__redis_task *task = keep("a", 3, 0, 1);
    assert_ptr_equal(all->delivering, task);
    all->delivering = NULL;
    tw__redis_place_put_back(all, task, TW__REDIS_TAKEN_PROBE);
    assert_null(tw__redis_check_all(all));
    assert_taken(START + 90, NULL); /* its new route waits */
    tw__redis_place_try_again(tw__redis_route_of(all, task), START + 90);
    task = keep("a", 2, 0, 1);
    assert_take(START + 90, TW__REDIS_TAKEN_PROBE, find(queue, "b"));
    assert_take(START + 90, TW__REDIS_TAKEN_PROBE, task);
    close_work();
}

static void the_delivery_of_a_task_goes_on_with_its_other_options(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_plan("a", 1, 60);
    assert_taken(START + 5, task);
    all->delivering = task;
    task = keep("a", 1, 60, 2);
    assert_ptr_equal(all->delivering, task);
    assert_false(tw__redis_task_filed(task));
    assert_taken(START + 5, NULL);
    assert_true(tw__redis_task_due(task) == START + 5);
    all->delivering = NULL;
    tw__redis_place_file_late(all, task);
    close_work();
}

/* ---- another target -------------------------------------------------------------------------------------- */

static void another_target_keeps_the_times(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_plan("a", 1, 0);
    put_plan("b", 0, 0);
    task->tries = 3;
    task = keep("a", 0, 0, 1);
    assert_true(tw__redis_task_due(task) == START + 5 && !task->has_attempt && task->tries == 0);
    assert_taken(START + 70, find(queue, "b"));
    assert_taken(START + 70, task);
    close_work();
}

static void another_target_keeps_the_next_of_a_retry(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = take(put_plan("a", FIRST_OF_WORKERS, 0), 7, START + 10);
    do_fail(queue, task, true, text("gone"), START + 500, START + 20, &changes);
    task = keep("a", 1, 0, 1);
    assert_attempt(task, TW__TASK_FILED, START + 5, 0, 0);
    assert_true(tw__redis_task_due(task) == START + 500);
    assert_bytes_equal(tw__redis_task_whole_attempt(task).error, text(""));
    assert_taken(START + 499, NULL);
    assert_taken(START + 500, task);
    close_work();
}

/* The next try of its target is the `next` of a held task. So no other target gets the task sooner, nor does a
 * worker. */
static void another_target_keeps_the_next_of_a_held_task(void **state)
{
    (void)state;
    open_work();
    for (const char *id = "a\0b\0"; *id; id += 2) {
        struct tw__redis_task *task = put_plan(id, 2, 0);
        assert_taken(START + 5, task);
        tw__redis_place_hold_first(all, task, 5100, START + 100);
    }
    struct tw__redis_task *sent = keep("a", 1, 0, 1);
    assert_attempt(sent, TW__TASK_FILED, START + 5, 0, 0);
    assert_true(tw__redis_place_next(all, sent, START + 70) == START + 100 && sent->tries == 0);
    tw__redis_place_try_again(tw__redis_route_of(all, find(queue, "b")), START + 60);
    struct tw__redis_task *put = keep("b", FIRST_OF_WORKERS, 0, 1);
    assert_attempt(put, TW__TASK_FILED, START + 5, 0, 0);
    assert_true(tw__redis_place_next(all, put, START + 70) == START + 60);
    assert_taken(START + 99, put);
    assert_taken(START + 99, NULL);
    assert_taken(START + 100, sent);
    close_work();
}

/* ---- what is logged -------------------------------------------------------------------------------------- */

/* Renews a task of the queue as the chunk of another task with its id says. Returns whether that fits. */
static bool renew_logged(const char *id, unsigned plan, uint64_t every)
{
    struct tw__redis_buffer chunk = {0};
    struct tw__redis_fault fault;
    struct tw__redis_logged logged = {.renews = true};
    struct tw__redis_task *task = make(id, "\1\5newer", every, 3);
    tw__redis_chunk_put(&chunk, task, tw__redis_route_for(queue, &plan_of[plan]));
    bool good = tw__redis_chunk_read(queue, (struct tw__redis_bytes){chunk.at, chunk.size}, &logged, START + 70,
                                     MONOTONIC, &fault);
    assert_true(good || fault.misfit != NULL);
    tw__redis_buffer_free(&chunk, &counted);
    counted_free(task);
    assert_null(tw__redis_check_all(all));
    return good;
}

static void a_logged_renewal_leaves_times_and_attempts(void **state)
{
    (void)state;
    open_work();
    put_plan("waits", FIRST_OF_WORKERS, 0);
    assert_true(renew_logged("waits", FIRST_OF_WORKERS + 1, 60));
    assert_true(tw__redis_task_due(find(queue, "waits")) == START + 5);
    assert_bytes_equal(tw__redis_task_packed(find(queue, "waits")), text("\1\5newer"));
    take(put_plan("leased", FIRST_OF_WORKERS, 60), 7, START + 10);
    assert_true(renew_logged("leased", FIRST_OF_WORKERS, 90));
    assert_attempt(find(queue, "leased"), TW__TASK_TAKEN, START + 5, 1, 7);
    assert_true(tw__redis_task_every(find(queue, "leased")) == 90);
    do_move(queue, find(queue, "leased"), START + 400, START + 20, &changes);
    assert_true(renew_logged("leased", 1, 0)); /* it stands behind an attempt */
    close_work();
}

static void a_logged_renewal_has_to_fit(void **state)
{
    (void)state;
    open_work();
    assert_false(renew_logged("a", FIRST_OF_WORKERS, 0));
    struct tw__redis_task *task = put_plan("a", FIRST_OF_WORKERS, 0);
    assert_false(renew_logged("a", 1, 0)); /* it would be filed there, and not renewed */
    do_kill_series(queue, task, 1, text(""), START + 20, &changes);
    assert_false(renew_logged("a", FIRST_OF_WORKERS, 0));
    assert_bytes_equal(tw__redis_task_packed(find(queue, "a")), text("\1\3old"));
    close_work();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(kind_and_target_decide_where_a_task_is),
        cmocka_unit_test(a_task_that_repeats_no_more_stands_for_no_other_period),
        cmocka_unit_test(an_attempt_goes_on_if_both_repeat),
        cmocka_unit_test(a_series_without_another_period_has_no_time_to_keep),
        cmocka_unit_test(a_task_keeps_its_place_in_a_wheel_and_in_the_lines),
        cmocka_unit_test(a_retry_keeps_its_attempt_state_and_takes_no_byte_more),
        cmocka_unit_test(an_attempt_under_way_keeps_its_lease),
        cmocka_unit_test(the_task_behind_an_attempt_may_get_a_target),
        cmocka_unit_test(a_shared_payload_stays_with_the_others),
        cmocka_unit_test(a_held_task_waits_on_with_other_options),
        cmocka_unit_test(a_held_task_whose_wait_is_over_is_tried_with_other_options),
        cmocka_unit_test(the_delivery_of_a_task_goes_on_with_its_other_options),
        cmocka_unit_test(another_target_keeps_the_times),
        cmocka_unit_test(another_target_keeps_the_next_of_a_retry),
        cmocka_unit_test(another_target_keeps_the_next_of_a_held_task),
        cmocka_unit_test(a_logged_renewal_leaves_times_and_attempts),
        cmocka_unit_test(a_logged_renewal_has_to_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
