/* SPDX-License-Identifier: MIT
 *
 * All queues at once: the largest and the paused queues, the ready tasks, and the forecast, exact and
 * from a sample.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/lease.h>
#include <src/redis/queues/look.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/sums.h>
#include <stdio.h>

/* Makes an attached queue with `tasks` tasks. They are due at START + step, START + 2 * step and so on. */
static struct tw__redis_queue *queue_of(unsigned tasks, uint64_t step)
{
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    tw__redis_queue_attach(queue);
    for (unsigned k = 0; k < tasks; k++) {
        char id[16];
        snprintf(id, sizeof id, "%u", k);
        put_one(queue, id, START + (k + 1) * step, START);
    }
    return queue;
}

static void the_largest_come_in_order(void **state)
{
    static const unsigned sizes[] = {3, 9, 0, 7, 9, 1, 8};
    static const unsigned sorted[] = {9, 9, 8, 7, 3, 1, 0};
    enum { ALL = sizeof sizes / sizeof *sizes };
    struct tw__redis_queue *queue[ALL];
    const struct tw__redis_queue *largest[ALL + 2];
    (void)state;
    open_all();
    for (unsigned i = 0; i < ALL; i++)
        queue[i] = queue_of(sizes[i], 1000);
    struct tw__redis_queue *detached = queue_of(20, 1000);
    tw__redis_queue_detach(detached);
    for (size_t limit = 0; limit < ALL + 2; limit++) {
        size_t count = limit < ALL ? limit : ALL;
        assert_int_equal(tw__redis_overview_largest(all, largest, limit), count);
        for (size_t i = 0; i < count; i++)
            assert_int_equal(tw__redis_table_count(&largest[i]->tasks), sorted[i]);
    }
    for (unsigned i = 0; i < ALL; i++)
        close_queue(queue[i]);
    close_queue(detached);
    close_all();
}

static void few_tasks_are_counted_one_by_one(void **state)
{
    uint64_t counts[5];
    (void)state;
    open_all();
    struct tw__redis_queue *one = queue_of(1000, 10), *two = queue_of(100, 500), *gone = queue_of(50, 1);
    tw__redis_queue_detach(gone);
    put_one(two, "past", START - 1, START);
    assert_true(tw__redis_overview_forecast(all, START, 1000, 5, counts));
    assert_int_equal(counts[0], 100 + 2 + 1); /* a task in a line counts in the first step */
    for (unsigned i = 1; i < 5; i++)
        assert_int_equal(counts[i], 100 + 2);
    assert_true(tw__redis_overview_forecast(all, START, UINT64_MAX, 1, counts));
    assert_int_equal(counts[0], 1101);
    close_queue(one);
    close_queue(two);
    close_queue(gone);
    close_all();
}

/* 50,000 tasks are more than the forecast looks at. Half of them, in a queue of their own, are due in the
 * first of four steps. The other half is spread evenly over the other three steps. */
static void many_tasks_are_estimated_from_a_fair_sample(void **state)
{
    enum { HALF = 25000, STEP = 30000 };
    uint64_t counts[4], sum = 0;
    (void)state;
    open_all();
    struct tw__redis_queue *near = queue_of(HALF, 1), *far = tw__redis_queue_new(all);
    tw__redis_queue_attach(far);
    for (unsigned k = 0; k < HALF; k++) {
        char id[16];
        snprintf(id, sizeof id, "%u", k);
        put_one(far, id, START + STEP + 1 + (uint64_t)k * 3 * STEP / HALF, START);
    }
    assert_false(tw__redis_overview_forecast(all, START, STEP, 4, counts));
    for (unsigned i = 0; i < 4; i++)
        sum += counts[i];
    assert_in_range(sum, 2 * HALF - 4, 2 * HALF + 4); /* rounded */
    assert_in_range(counts[0], HALF * 0.97, HALF * 1.03);
    for (unsigned i = 1; i < 4; i++)
        assert_in_range(counts[i], HALF / 3 * 0.9, HALF / 3 * 1.1);
    close_queue(near);
    close_queue(far);
    close_all();
}

static void assert_ready(uint64_t now, uint64_t count, uint64_t late, uint64_t since, uint64_t late_since)
{
    struct tw__redis_ready ready;
    tw__redis_overview_all_ready(all, now, &ready);
    assert_int_equal(ready.count, count);
    assert_int_equal(ready.late, late);
    assert_true(ready.since == since);
    assert_true(ready.late_since == late_since);
}

/* The tasks of each of these queues, wherever their addresses lie in the order of all. */
static void assert_ready_of(struct tw__redis_queue *one, struct tw__redis_queue *other, uint64_t now,
                            uint64_t of_one, uint64_t of_other)
{
    const struct tw__redis_queue *list[] = {one, other, NULL}, *turned[] = {other, one};
    uint64_t ready[2];
    tw__redis_overview_ready(all, now, list, 2, ready);
    assert_true(ready[0] == of_one && ready[1] == of_other);
    tw__redis_overview_ready(all, now, turned, 2, ready);
    assert_true(ready[1] == of_one && ready[0] == of_other);
    tw__redis_overview_ready(all, now, &list[1], 1, ready);
    assert_true(ready[0] == of_other);
    tw__redis_overview_ready(all, now, list, 0, NULL);
}

static void ready_tasks_are_counted_queue_by_queue(void **state)
{
    uint32_t budget = 100;
    struct tw__redis_task *task;
    (void)state;
    struct tw__redis_queue *queue = open_one(), *other = tw__redis_queue_new(all),
                           *third = tw__redis_queue_new(all);
    tw__redis_queue_attach(other);
    tw__redis_queue_attach(third);
    put_one(queue, "held", START + 10, START);
    put_one(queue, "not seen", START + 20, START);
    put_one(queue, "yet to come", START + 100, START);
    put_one(other, "not seen either", START + 20, START);
    put_one(other, "past", START - 5, START);
    put_one(third, "of no interest", START - 5, START);
    assert_ready_of(queue, other, START, 0, 1);
    assert_ready_of(queue, other, START + 50, 2, 2);
    assert_int_equal(tw__redis_place_take(all, START + 10, TW__REDIS_FROM_WHEELS, &budget, &task),
                     TW__REDIS_TAKEN_TASK);
    tw__redis_place_hold_first(all, task, 6000, START + 1002);
    assert_ready_of(queue, other, START + 50, 1, 2);
    tw__redis_place_make_ready(tw__redis_route_of(all, task));
    tw_wheel_cancel(all->retries, &tw__redis_route_of(all, task)->retry);
    assert_ready_of(queue, other, START + 1100, 3, 2);
    close_queue(other);
    close_queue(third);
    close_one(queue);
}

static void ready_tasks_are_counted_wherever_they_wait(void **state)
{
    uint32_t budget = 100;
    struct tw__redis_task *task;
    (void)state;
    struct tw__redis_queue *queue = open_one();
    assert_ready(START, 0, 0, TW_NEVER, TW_NEVER);
    put_one(queue, "held", START + 10, START);
    put_one(queue, "behind it", START + 11, START);
    put_one(queue, "due", START + 20, START);
    put_one(queue, "yet to come", START + 100, START);
    put_one(queue, "past", START - 5, START); /* ready since it was filed */
    assert_ready(START + 50, 4, 4, START, START);
    struct tw__redis_task *past =
        tw__redis_queue_find(queue, tw__redis_queue_hash(all, text("past")), text("past"));
    tw__redis_queue_remove(queue, past, tw__redis_queue_hash(all, text("past")));
    for (unsigned i = 0; i < 2; i++) {
        assert_int_equal(tw__redis_place_take(all, START + 12, TW__REDIS_FROM_ALL, &budget, &task),
                         TW__REDIS_TAKEN_TASK);
        i == 0 ? tw__redis_place_hold_first(all, task, 6000, START + 1002) : tw__redis_place_hold(all, task);
    }
    /* Held tasks wait for the next try of their target. */
    assert_ready(START + 50, 1, 1, START + 20, START + 20);
    assert_true(tw__redis_overview_ready_since(queue, START + 50) == TW_NEVER); /* no tick has seen "due" */
    /* From now on the overview finds the line of their route in the list of ready routes. */
    tw__redis_place_make_ready(tw__redis_route_of(all, task));
    tw_wheel_cancel(all->retries, &tw__redis_route_of(all, task)->retry);
    assert_ready(START + 1100, 4, 4, START + 20, START + 20);
    assert_true(tw__redis_overview_ready_since(queue, START + 1100) == START + 1002);
    close_one(queue);
}

/* ---- workers, pauses, dead tasks ------------------------------------------------------------------------- */

/* Puts a task for workers that has been ready since `since`. */
static struct tw__redis_task *put_ready(struct tw__redis_queue *queue, const char *id, uint64_t since)
{
    struct tw__redis_task *task = put_work(queue, id, START + 1, START);
    tw__redis_place_unfile(all, task);
    tw__redis_place_offer(all, task, since);
    return task;
}

static void ready_leased_and_dead_tasks_are_neither_foretold_nor_late(void **state)
{
    struct lease lease = {.token = 7, .ms = 500, .worker = text("bob")};
    struct tw__redis_buffer log = {0};
    uint64_t counts[4];
    (void)state;
    struct tw__redis_queue *queue = open_one();
    put_ready(queue, "ready", START);
    begin_lease(queue, put_ready(queue, "leased", START), &lease, START, &log);
    struct tw__redis_task *again = begin_lease(queue, put_ready(queue, "again", START), &lease, START, &log);
    do_fail(queue, again, false, text("no"), START + 1500, START, &log);
    do_kill(queue, put_ready(queue, "dead", START), 5, text("no"), START, &log);
    put_work(queue, "waits", START + 2500, START);
    assert_true(tw__redis_overview_forecast(all, START, 1000, 4, counts));
    assert_true(counts[0] == 0 && counts[1] == 1 && counts[2] == 1 && counts[3] == 0);
    assert_ready(START + 1000, 1, 0, START, TW_NEVER);
    assert_ready(START + 2000, 2, 1, START, START + 1500);
    tw__redis_buffer_free(&log, &counted);
    close_one(queue);
}

/* The sample knows dead and ready tasks by their place in a line, and leases by their attempt states. */
static void an_estimate_counts_the_tasks_that_wait_alone(void **state)
{
    enum { EACH = 21000 }; /* more than an exact forecast reads */
    struct lease lease = {.token = 7, .ms = 500, .worker = text("bob")};
    struct tw__redis_buffer log = {0};
    uint64_t counts[1];
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned k = 0; k < EACH; k++) {
        char id[16];
        snprintf(id, sizeof id, "%u", k);
        put_work(queue, id, START + 1 + k % 1000, START);
        snprintf(id, sizeof id, "l%u", k);
        begin_lease(queue, put_ready(queue, id, START), &lease, START, &log);
        snprintf(id, sizeof id, "r%u", k);
        put_ready(queue, id, START);
        log.size = 0;
    }
    assert_false(tw__redis_overview_forecast(all, START, 1000, 1, counts));
    assert_in_range(counts[0], EACH * 0.95, EACH * 1.05);
    tw__redis_buffer_free(&log, &counted);
    close_one(queue);
}

static void tasks_of_a_paused_queue_are_ready_and_not_late(void **state)
{
    uint64_t counts[2];
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *stopped = put_one(queue, "stopped", START + 1, START);
    put_one(queue, "past", START - 1, START);
    put_one(queue, "due", START + 2, START);
    put_one(queue, "waits", START + 5000, START);
    tw__redis_sums_pause(queue, true);
    tw__redis_place_unfile(all, stopped);
    tw__redis_place_stop(all, stopped);
    assert_ready(START + 10, 3, 0, START, TW_NEVER);
    assert_true(tw__redis_overview_forecast(all, START, 10, 2, counts));
    assert_int_equal(counts[0], 3); /* they still wait for a time that has come */
    tw__redis_place_go_on(queue);
    tw__redis_sums_pause(queue, false);
    assert_ready(START + 10, 3, 3, START, START);
    close_one(queue);
}

/* Stops a queue in which some tasks are ready, and others become due then. */
static struct tw__redis_queue *paused_with(unsigned ready, unsigned due, unsigned waiting)
{
    struct tw__redis_queue *queue = queue_of(waiting, 1000);
    char id[16];
    for (unsigned k = 0; k < ready + due; k++) {
        snprintf(id, sizeof id, "now%u", k);
        if (k == ready)
            tw__redis_sums_pause(queue, true);
        if (k < ready) {
            put_ready(queue, id, START);
            continue;
        }
        struct tw__redis_task *task = put_work(queue, id, START + 1, START);
        tw__redis_place_unfile(all, task);
        tw__redis_place_stop(all, task);
    }
    tw__redis_sums_pause(queue, true);
    return queue;
}

/* First those with most ready tasks, offered ones or stopped ones, then the largest. */
static void the_pauses_that_keep_most_back_come_first(void **state)
{
    enum { PAUSED = 5 };
    const struct tw__redis_queue *found[PAUSED + 1];
    (void)state;
    open_all();
    struct tw__redis_queue *large = queue_of(50, 1000), *gone = paused_with(9, 9, 9);
    struct tw__redis_queue *none = paused_with(0, 0, 0), *one = paused_with(1, 0, 0),
                           *many = paused_with(0, 5, 7), *two = paused_with(2, 0, 0),
                           *some = paused_with(0, 5, 2);
    tw__redis_queue_detach(gone);
    assert_int_equal(all->paused, PAUSED);
    struct tw__redis_queue *const expected[] = {many, some, two, one, none};
    for (size_t limit = 0; limit <= PAUSED + 1; limit++) {
        size_t count = limit < PAUSED ? limit : PAUSED;
        assert_int_equal(tw__redis_overview_paused(all, found, limit), count);
        for (size_t i = 0; i < count; i++)
            assert_ptr_equal(found[i], expected[i]);
    }
    tw__redis_place_go_on(many);
    tw__redis_sums_pause(many, false);
    assert_int_equal(tw__redis_overview_paused(all, found, PAUSED), PAUSED - 1);
    tw__redis_queue_attach(gone);
    assert_int_equal(tw__redis_overview_paused(all, found, PAUSED), PAUSED);
    assert_ptr_equal(found[0], gone);
    close_queue(large);
    close_queue(gone);
    close_queue(none);
    close_queue(one);
    close_queue(many);
    close_queue(two);
    close_queue(some);
    close_all();
}

/* A look at 20,000 queues does not overlook a pause in the last of more queues, whether it began there or
 * came with the queue. */
static void a_pause_is_found_behind_very_many_queues(void **state)
{
    enum { MANY = 20001, BEYOND_WALKS = 1001 };
    static struct tw__redis_queue *queue[MANY];
    const struct tw__redis_queue *found[2];
    (void)state;
    open_all();
    queue[0] = queue_of(BEYOND_WALKS, 1000); /* with more tasks DEBUG does not walk after each change */
    for (unsigned i = 1; i < MANY; i++)
        queue[i] = queue_of(0, 0);
    tw__redis_sums_pause(queue[MANY - 1], true);
    assert_int_equal(tw__redis_overview_paused(all, found, 2), 1);
    assert_ptr_equal(found[0], queue[MANY - 1]);
    tw__redis_queue_detach(queue[MANY - 1]);
    assert_int_equal(tw__redis_overview_paused(all, found, 2), 0);
    tw__redis_queue_attach(queue[MANY - 1]);
    assert_int_equal(tw__redis_overview_paused(all, found, 2), 1);
    for (unsigned i = MANY; i-- > 0;)
        close_queue(queue[i]);
    close_all();
}

static void the_task_that_has_been_ready_longest_is_found(void **state)
{
    (void)state;
    open_all();
    struct tw__redis_queue *none = queue_of(3, 1000), *some = queue_of(1, 1000), *older = queue_of(0, 0),
                           *gone = queue_of(0, 0);
    assert_ready(START, 0, 0, TW_NEVER, TW_NEVER);
    put_ready(some, "a", START + 30);
    put_ready(some, "b", START + 40);
    assert_ready(START, 2, 0, START + 30, TW_NEVER);
    struct tw__redis_task *oldest = put_ready(older, "c", START + 20);
    put_ready(gone, "d", START + 10);
    tw__redis_queue_detach(gone);
    assert_ready(START, 3, 0, START + 20, TW_NEVER);
    tw__redis_place_unfile(all, oldest);
    assert_ready(START, 2, 0, START + 30, TW_NEVER);
    close_queue(none);
    close_queue(some);
    close_queue(older);
    close_queue(gone);
    close_all();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_largest_come_in_order),
        cmocka_unit_test(few_tasks_are_counted_one_by_one),
        cmocka_unit_test(many_tasks_are_estimated_from_a_fair_sample),
        cmocka_unit_test(ready_tasks_are_counted_queue_by_queue),
        cmocka_unit_test(ready_tasks_are_counted_wherever_they_wait),
        cmocka_unit_test(ready_leased_and_dead_tasks_are_neither_foretold_nor_late),
        cmocka_unit_test(an_estimate_counts_the_tasks_that_wait_alone),
        cmocka_unit_test(tasks_of_a_paused_queue_are_ready_and_not_late),
        cmocka_unit_test(the_pauses_that_keep_most_back_come_first),
        cmocka_unit_test(a_pause_is_found_behind_very_many_queues),
        cmocka_unit_test(the_task_that_has_been_ready_longest_is_found),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
