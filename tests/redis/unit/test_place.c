/* SPDX-License-Identifier: MIT
 *
 * The places where tasks wait, one promise after the other. test_queues.c has the model.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/check.h>
#include <src/redis/queues/look.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/sums.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- the promises of tw__redis_place_take() -------------------------------------------------------------- */

static void a_late_task_waits_for_what_was_due_before_it_was_filed(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *before = put_one(queue, "before", START + 50, START);
    struct tw__redis_task *at = put_one(queue, "at", START + 100, START);
    struct tw__redis_task *after = put_one(queue, "after", START + 101, START);
    struct tw__redis_task *late = put_one(queue, "late", START - 9, START + 100);
    struct tw__redis_task *later = put_one(queue, "later", START - 10, START + 100);
    assert_taken(START + 200, before);
    assert_taken(START + 200, at);
    assert_taken(START + 200, late);
    assert_taken(START + 200, later);
    assert_taken(START + 200, after);
    assert_taken(START + 200, NULL);
    close_one(queue);
}

/* No tick has run since `due` was filed, so the wheel has passed none of these times. */
static void what_is_filed_with_a_passed_time_comes_in_the_order_of_filing(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *due = put_one(queue, "due", START + 250, START),
                          *moved = put_one(queue, "moved", START + 9000, START);
    struct tw__redis_task *third = put_one(queue, "third", START + 230, START + 300);
    tw__redis_place_refile(all, moved, START + 220, START + 300);
    struct tw__redis_task *now = put_one(queue, "now", START + 300, START + 300);
    struct tw__redis_task *second = put_work(queue, "second", START + 210, START + 300);
    struct tw__redis_task *soon = put_one(queue, "soon", START + 301, START + 300);
    struct tw__redis_task *first = put_one(queue, "first", START + 200, START + 301);
    assert_taken(START + 400, due);
    assert_taken(START + 400, third);
    assert_taken(START + 400, moved);
    assert_taken(START + 400, now);
    assert_taken(START + 400, second);
    assert_taken(START + 400, soon);
    assert_taken(START + 400, first);
    assert_taken(START + 400, NULL);
    close_one(queue);
}

static void what_is_filed_while_the_clock_is_back_comes_at_its_time(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *far = put_one(queue, "far", START + 5000, START);
    assert_taken(START + 3000, NULL);
    tw__redis_place_clock_back(all, START + 1000);
    struct tw__redis_task *near = put_one(queue, "near", START + 2000, START + 1000);
    assert_true(tw__redis_place_next_work(all) <= START + 2000);
    assert_taken(START + 1999, NULL);
    tw__redis_place_clock_back(all, START + 500); /* once more */
    assert_taken(START + 1999, NULL);
    assert_taken(START + 2000, near);
    assert_taken(START + 2999, NULL);
    assert_non_null(all->behind);
    assert_taken(START + 3000, NULL);
    assert_null(all->behind);
    assert_taken(START + 5000, far);
    close_one(queue);
}

/* The tasks are due in the second wheel when the clock is set back once more, but nobody has taken them
 * yet. */
static void what_came_due_while_the_clock_was_back_keeps_its_time(void **state)
{
    uint32_t budget = 1;
    struct tw__redis_task *task = NULL;
    (void)state;
    struct tw__redis_queue *queue = open_one();
    assert_taken(START + 1000, NULL);
    tw__redis_place_clock_back(all, START + 300);
    struct tw__redis_task *a = put_one(queue, "a", START + 400, START + 300);
    struct tw__redis_task *b = put_one(queue, "b", START + 450, START + 300);
    assert_int_equal(tw__redis_place_take(all, START + 600, TW__REDIS_FROM_ALL, &budget, &task),
                     TW__REDIS_TAKEN_MORE);
    tw__redis_place_clock_back(all, START + 500);
    assert_taken(START + 500, a);
    assert_int_equal(tw__redis_task_due(a), START + 400);
    assert_taken(START + 500, b);
    assert_int_equal(tw__redis_task_due(b), START + 450);
    close_one(queue);
}

/* The past tasks leave their line in the order of their filing, so these may not go there. */
static void what_is_filed_after_a_second_step_back_comes_at_its_time(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    assert_taken(START + 3000, NULL);
    tw__redis_place_clock_back(all, START + 2000);
    struct tw__redis_task *later = put_one(queue, "later", START + 1500, START + 500);
    struct tw__redis_task *sooner = put_one(queue, "sooner", START + 1000, START + 500);
    assert_taken(START + 999, NULL);
    assert_taken(START + 1000, sooner);
    assert_taken(START + 1500, later);
    close_one(queue);
}

/* Tasks that came due before a step back, and could not be delivered, are first in both lines. They wait for
 * their time once more, and nothing waits behind them. */
static void what_is_due_no_more_after_a_step_back_holds_nothing_up(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *a = put_one(queue, "a", START + 3000, START);
    assert_taken(START + 3000, a);
    tw__redis_place_file_late(all, a);
    struct tw__redis_task *b = put_one(queue, "b", START + 3000, START + 3000);
    tw__redis_place_clock_back(all, START + 1000);
    struct tw__redis_task *c = put_one(queue, "c", START + 900, START + 1000);
    struct tw__redis_task *d = put_one(queue, "d", START + 1100, START + 1000);
    assert_taken(START + 1000, c);
    assert_int_equal(all->in_line, 0);
    assert_taken(START + 1000, NULL);
    assert_taken(START + 1100, d);
    assert_taken(START + 2999, NULL);
    assert_taken(START + 3000, a);
    assert_taken(START + 3000, b);
    close_one(queue);
}

/* After a step of a few milliseconds no wheel takes the task. */
static void what_is_due_no_more_after_a_small_step_back_waits_in_its_line(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *a = put_one(queue, "a", START + 3000, START);
    assert_taken(START + 3000, a);
    tw__redis_place_file_late(all, a);
    assert_taken(START + 2995, NULL);
    assert_true(tw__redis_place_any_waiting(all));
    assert_taken(START + 3000, a);
    close_one(queue);
}

/* A task has four bits for its tries. While it is held, its tries are derived from the waits of its route,
 * and the waits wrap. */
static void each_wait_is_a_try_of_all_that_are_held(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *first = put_one(queue, "1", START + 1, START);
    struct tw__redis_task *second = put_one(queue, "2", START + 2, START);
    struct tw__redis_route *route = tw__redis_route_of(all, first);
    route->waits = UINT32_MAX - 3;
    assert_taken(START + 2, first);
    tw__redis_place_hold_first(all, first, 6000, START + 1002);
    assert_taken(START + 2, second);
    assert_true(tw__redis_place_is_blocked(all, second));
    route->waits++;
    tw__redis_place_hold(all, second);
    for (uint32_t tries = 1; tries < 8; tries++) {
        assert_int_equal(tw__redis_place_tries(all, first), tries);
        assert_int_equal(tw__redis_place_tries(all, second), tries - 1);
        tw__redis_place_make_ready(route);
        assert_take(START + 2, TW__REDIS_TAKEN_PROBE, first);
        assert_int_equal(first->tries, tries);
        assert_int_equal(tw__redis_place_tries(all, first), tries);
        tw__redis_place_hold_first(all, first, 6000, START + 1002);
        assert_null(route->ready.next);
        route->waits++;
    }
    tw__redis_place_unfile(all, first);
    tw__redis_place_unfile(all, second);
    assert_false(tw_timer_pending(&route->retry));
    assert_int_equal(second->tries, 7);
    close_one(queue);
}

/* As a snapshot tells: the first has been refused twice, the second has only waited behind it. */
static void a_refused_task_is_held_again_by_the_file_that_brings_it(void **state)
{
    const uint64_t now = START + 10, next = START + 6000;
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *first = put_one(queue, "1", START + 1, now),
                          *worker = put_work(queue, "w", START, now),
                          *second = put_one(queue, "2", START + 2, now);
    struct tw__redis_route *route = tw__redis_route_of(all, first);
    tw__redis_place_hold_again(all, worker, now, MONOTONIC);
    tw__redis_place_hold_again(all, second, now, MONOTONIC);
    assert_true(worker->place == TW__REDIS_IN_LINE && second->place == TW__REDIS_IN_LINE);
    first->tries = 2;
    tw__redis_place_set_wait(route, 5000, now);
    tw__redis_place_hold_again(all, first, now, MONOTONIC); /* the wait is over */
    assert_true(first->place == TW__REDIS_IN_LINE && all->past.prev == &first->parked.link);
    tw__redis_place_set_wait(route, 5000, next);
    tw__redis_place_hold_again(all, first, now, MONOTONIC);
    tw__redis_place_hold_again(all, second, now, MONOTONIC);
    struct tw__redis_task *late = put_one(queue, "3", START + 100, now);
    tw__redis_place_hold_again(all, late, now, MONOTONIC);
    assert_int_equal(late->place, TW__REDIS_IN_WHEEL);
    assert_true(tw_timer_deadline(&route->retry) == MONOTONIC + next - now);
    assert_true(tw__redis_place_next(all, first, now) == next &&
                tw__redis_place_next(all, second, now) == next);
    assert_true(tw__redis_place_tries(all, first) == 2 && tw__redis_place_tries(all, second) == 0);
    tw__redis_place_make_ready(route);
    assert_take(next, TW__REDIS_TAKEN_PROBE, first);
    assert_take(next, TW__REDIS_TAKEN_PROBE, second);
    assert_taken(next, worker);
    close_one(queue);
}

/* The next chance of a held task is the next try of its target, by the wall clock. */
static void a_held_task_comes_next_when_its_target_is_tried(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *first = put_one(queue, "1", START + 1, START);
    struct tw__redis_task *second = put_one(queue, "2", START + 2, START);
    assert_int_equal(tw__redis_place_next(all, first, START), START + 1);
    assert_taken(START + 2, first);
    tw__redis_place_hold_first(all, first, 6000, START + 1002);
    assert_taken(START + 2, second);
    tw__redis_place_hold(all, second);
    assert_int_equal(tw__redis_place_next(all, first, START + 2), START + 1002);
    assert_int_equal(tw__redis_place_next(all, second, START + 700),
                     START + 1002); /* whenever somebody looks */
    assert_int_equal(tw__redis_place_next(all, second, START + 1100), START + 1002);
    tw__redis_place_clock_set(all, 60000); /* the retry does not move, so its time is another one */
    assert_int_equal(tw__redis_place_next(all, second, START + 60003), START + 61002);
    tw__redis_place_clock_set(all, -60000);
    assert_ptr_equal(tw_wheel_poll(all->retries, 6000), &tw__redis_route_of(all, first)->retry);
    tw__redis_place_make_ready(tw__redis_route_of(all, first));
    assert_int_equal(tw__redis_place_next(all, first, START + 9), START + 9); /* it is tried before its time */
    assert_int_equal(tw__redis_place_next(all, first, START + 1100), START + 1002);
    close_one(queue);
}

/* ---- ready, stopped and dead tasks ----------------------------------------------------------------------- */

/* Takes a task that is due, and makes it ready. */
static struct tw__redis_task *offer(const char *id, uint64_t due, uint64_t now)
{
    struct tw__redis_queue *queue = tw__redis_queue_at(all->attached.next);
    struct tw__redis_task *task = put_work(queue, id, due, START);
    assert_taken(now, task);
    tw__redis_place_offer(all, task, now);
    return task;
}

static void ready_tasks_keep_the_order_in_which_they_were_offered(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    assert_null(tw__redis_place_first_ready(queue));
    struct tw__redis_task *one = offer("1", START + 30, START + 40), *two = offer("2", START + 10, START + 41),
                          *three = offer("3", START + 42, START + 50);
    assert_true(one->place == TW__REDIS_IN_READY);
    assert_true(tw__redis_task_due(one) == START + 30 && one->parked.since_ms == START + 40);
    assert_int_equal(queue->ready_count, 3);
    assert_int_equal(all->ready_count, 3);
    assert_int_equal(queue->in_line, 0);
    assert_false(tw__redis_place_any_waiting(all)); /* the server has nothing to do with them */
    assert_true(tw__redis_place_next_work(all) == TW_NEVER);
    assert_taken(START + 9000, NULL);
    assert_ptr_equal(tw__redis_place_first_ready(queue), one);
    tw__redis_place_unfile(all, one);
    assert_false(tw__redis_task_filed(one));
    assert_true(tw__redis_task_due(one) == START + 30);
    assert_ptr_equal(tw__redis_place_first_ready(queue), two);
    tw__redis_place_refile(all, two, START + 20000, START + 9000); /* waits again */
    assert_false(two->place == TW__REDIS_IN_READY);
    assert_ptr_equal(tw__redis_place_first_ready(queue), three);
    assert_int_equal(all->ready_count, 1);
    assert_taken(START + 20000, two);
    close_one(queue);
}

static void stopped_tasks_wait_for_the_end_of_the_pause(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *one = put_one(queue, "1", START + 1, START),
                          *two = put_work(queue, "2", START + 2, START),
                          *waits = put_one(queue, "3", START + 900, START);
    tw__redis_sums_pause(queue, true);
    assert_taken(START + 2, one);
    tw__redis_place_stop(all, one);
    assert_taken(START + 2, two);
    tw__redis_place_stop(all, two);
    assert_int_equal(all->stopped, 2);
    assert_int_equal(queue->in_line, 2);
    assert_false(tw__redis_place_any_waiting(all));
    assert_taken(START + 800, NULL);
    assert_true(tw__redis_place_next_work(all) <= START + 900);
    tw__redis_place_go_on(queue);
    tw__redis_sums_pause(queue, false);
    assert_int_equal(all->stopped, 0);
    assert_true(tw__redis_place_any_waiting(all));
    assert_taken(START + 800, one);
    assert_true(tw__redis_task_due(one) == START + 1);
    assert_taken(START + 800, two);
    assert_taken(START + 900, waits);
    tw__redis_place_go_on(queue); /* of no task */
    assert_taken(START + 900, NULL);
    close_one(queue);
}

static void assert_late_since(const struct tw__redis_task *task, uint64_t since)
{
    assert_true(tw__redis_place_late_since(all, task) == since);
}

static void a_time_that_had_passed_is_late_from_its_filing(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *waits = put_one(queue, "1", START + 10, START),
                          *past = put_one(queue, "2", 1, START + 20),
                          *work = put_work(queue, "3", 2, START + 30);
    assert_taken(START + 40, waits);
    assert_late_since(waits, START + 10);
    assert_taken(START + 40, past);
    assert_late_since(past, START + 20);
    tw__redis_place_put_back(all, past, TW__REDIS_TAKEN_TASK); /* no server writes now */
    assert_taken(START + 50, past);
    assert_late_since(past, START + 20);
    tw__redis_place_hold_first(all, past, 6000, START + 1002); /* its target refuses it */
    assert_taken(START + 50, work);
    assert_late_since(work, START + 30);
    tw__redis_sums_pause(queue, true);
    tw__redis_place_stop(all, work);
    tw__redis_place_make_ready(tw__redis_route_of(all, past));
    assert_take(START + 60, TW__REDIS_TAKEN_PROBE, past);
    assert_late_since(past, START + 20);
    tw__redis_place_go_on(queue);
    tw__redis_sums_pause(queue, false);
    tw__redis_place_put_aside(all, past);
    assert_taken(START + 70, past);
    assert_late_since(past, START + 20);
    assert_taken(START + 70, work);
    assert_late_since(work, START + 30);
    tw__redis_place_put_back(all, work, TW__REDIS_TAKEN_TASK);
    tw__redis_place_sort_late(all, START + 70); /* nobody knows any more when it was filed */
    assert_taken(START + 80, work);
    assert_late_since(work, 2);
    close_one(queue);
}

/* A load may be long: some of the tasks become due while it lasts, before others are read. */
static void tasks_that_became_due_in_a_load_are_sorted_with_the_others(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *second = put_one(queue, "2", START + 20, START + 10),
                          *third = put_one(queue, "3", START + 30, START + 10),
                          *lives = put_one(queue, "4", START + 61, START + 10),
                          *first = put_one(queue, "1", START + 15, START + 50),
                          *equal = put_one(queue, "5", START + 30, START + 50);
    tw__redis_place_sort_late(all, START + 60);
    assert_taken(START + 60, first);
    assert_taken(START + 60, second);
    assert_taken(START + 60, third);
    assert_taken(START + 60, equal);
    assert_taken(START + 60, NULL);
    assert_taken(START + 61, lives);
    close_one(queue);
}

/* The ready task behind another one, or the first. */
static struct tw__redis_task *task_after(struct tw__redis_queue *queue, struct tw__redis_task *task)
{
    return tw__redis_task_of_link(task == NULL ? queue->ready.next : task->parked.link.next);
}

/* A task that is offered again goes to the place that it had, by its order. */
static void a_task_that_is_offered_again_has_its_place(void **state)
{
    static const char *const ids[] = {"1", "2", "3", "4", "5", "6"};
    static const uint64_t due[] = {10, 20, 20, 20, 20, 30};
    static const unsigned back[] = {2, 0, 1, 3};
    struct tw__redis_task *task[6];
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < 6; i++)
        task[i] = offer(ids[i], START + due[i], START + 40 + i);
    for (unsigned i = 0; i < 4; i++)
        tw__redis_place_unfile(all, task[i]); /* taken */
    for (unsigned i = 0; i < 4; i++) {
        struct tw__redis_task *one = task[back[i]];
        uint32_t order = one->order;
        tw__redis_place_offer_again(all, one, START + 60 + i);
        assert_true(one->place == TW__REDIS_IN_READY && one->order == order);
        assert_true(tw__redis_task_due(one) == START + due[back[i]]);
        assert_true(one->parked.since_ms == START + 44); /* as long as the fifth, which was behind it */
        assert_int_equal(queue->ready_count, 3 + i);
    }
    for (unsigned i = 0; i < 6; i++) {
        assert_ptr_equal(tw__redis_place_first_ready(queue), task[i]);
        tw__redis_place_unfile(all, task[i]);
    }
    tw__redis_place_offer_again(all, task[0], START + 70); /* alone */
    assert_true(task[0]->parked.since_ms == START + 70);
    assert_null(tw__redis_check_places(all));
    close_one(queue);
}

/* The time for which a task waited does not matter, as it may have been filed late. */
static void a_task_that_was_filed_late_has_its_place_again(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *first = offer("first", START + 20, START + 40),
                          *late = offer("late", START - 9, START + 40),
                          *last = offer("last", START + 50, START + 50);
    tw__redis_place_unfile(all, first);
    tw__redis_place_unfile(all, late);
    tw__redis_place_unfile(all, last);
    tw__redis_place_offer_again(all, last, START + 60);
    tw__redis_place_offer_again(all, late, START + 60);
    tw__redis_place_offer_again(all, first, START + 60);
    assert_ptr_equal(task_after(queue, NULL), first);
    assert_ptr_equal(task_after(queue, first), late);
    assert_ptr_equal(task_after(queue, late), last);
    close_one(queue);
}

/* They come before all others, in the order of the times for which they waited. */
static void tasks_that_were_leased_elsewhere_have_the_order_of_their_times(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *third = put_work(queue, "3", START + 30, START),
                          *first = put_work(queue, "1", START + 10, START),
                          *second = put_work(queue, "2", START + 20, START);
    assert_taken(START + 40, first);
    assert_taken(START + 40, second);
    assert_taken(START + 40, third);
    tw__redis_place_begin_here(all); /* this server has become the primary */
    struct tw__redis_task *other = offer("other", START + 50, START + 50),
                          *late = offer("late", START - 9, START + 50);
    tw__redis_place_offer_again(all, second, START + 60);
    tw__redis_place_offer_again(all, third, START + 60);
    tw__redis_place_offer_again(all, first, START + 60);
    tw__redis_place_unfile(all, other);
    tw__redis_place_offer_again(all, other, START + 60);
    struct tw__redis_task *expected[] = {first, second, third, other, late};
    for (unsigned i = 0; i < 5; i++)
        assert_ptr_equal(task_after(queue, i == 0 ? NULL : expected[i - 1]), expected[i]);
    close_one(queue);
}

/* The numbers wrap, and a task of this server has one of this server all the same. */
static void tasks_of_here_have_their_order_after_many_tasks(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < 8; i++, all->order += UINT32_MAX / 4) {
        struct tw__redis_task *task = offer("task", START + 50, START + 50),
                              *late = offer("late", START - 9, START + 50);
        tw__redis_place_unfile(all, task);
        tw__redis_place_offer_again(all, task, START + 60);
        assert_ptr_equal(task_after(queue, NULL), task);
        assert_ptr_equal(task_after(queue, task), late);
        tw__redis_queue_remove(queue, task, tw__redis_queue_hash(all, text("task")));
        tw__redis_queue_remove(queue, late, tw__redis_queue_hash(all, text("late")));
    }
    close_one(queue);
}

/* A worker has given back the second task and then the first one. The order of filing counts again, and a lease
 * that ends at this time comes last. */
static void tasks_that_were_given_back_elsewhere_are_sorted(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *first = put_one(queue, "1", START + 20, START + 10),
                          *second = put_one(queue, "2", START + 20, START + 10),
                          *third = put_one(queue, "3", START + 20, START + 10);
    uint32_t order[] = {first->order, second->order};
    tw__redis_place_unfile(all, second);
    tw__redis_place_file(all, second, START + 20, START + 30);
    tw__redis_place_unfile(all, first);
    tw__redis_place_file(all, first, START + 20, START + 30);
    first->order = order[0], second->order = order[1];
    tw__redis_place_sort_late(all, START + 60);
    assert_taken(START + 60, first);
    assert_taken(START + 60, second);
    assert_taken(START + 60, third);
    close_one(queue);
}

/* Tasks that are given back in order, or in the reverse order, are each a step away from the one before. A
 * single one in the middle is too far away. */
static void a_task_that_is_offered_again_passes_ten_thousand_at_most(void **state)
{
    enum { MANY = 3 * TW__REDIS_PASSED_MAX, MIDDLE = MANY / 2 };
    struct tw__redis_task **task = calloc(MANY, sizeof *task);
    char id[8];
    (void)state;
    assert_non_null(task);
    struct tw__redis_queue *queue = open_one();
    all->order = UINT32_MAX - MIDDLE; /* so that it wraps */
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "%u", i);
        task[i] = offer(id, START + 1 + i, START + 1 + i);
    }
    for (unsigned i = MIDDLE; i < MANY; i++)
        tw__redis_place_unfile(all, task[i]);
    for (unsigned i = MANY; i-- > MIDDLE;)
        tw__redis_place_offer_again(all, task[i], START + MANY);
    for (unsigned i = 0; i < MANY; i++)
        tw__redis_place_unfile(all, task[i]);
    for (unsigned i = 0; i < MANY; i++)
        tw__redis_place_offer_again(all, task[i], START + MANY);
    for (unsigned i = 0; i < MANY; i++)
        assert_ptr_equal(task_after(queue, i == 0 ? NULL : task[i - 1]), task[i]);
    tw__redis_place_unfile(all, task[MIDDLE]); /* `back` is the last task by now */
    tw__redis_place_offer_again(all, task[MIDDLE], START + MANY);
    assert_ptr_equal(task_after(queue, task[TW__REDIS_PASSED_MAX - 1]), task[MIDDLE]);
    free(task);
    close_one(queue);
}

/* A pause of one queue does not hide the tasks of another. */
static void tasks_wait_beside_stopped_tasks(void **state)
{
    (void)state;
    struct tw__redis_queue *paused = open_one(), *other = tw__redis_queue_new(all);
    tw__redis_queue_attach(other);
    struct tw__redis_task *stopped = put_one(paused, "1", START + 1, START),
                          *late = put_one(other, "2", START - 1, START + 5);
    tw__redis_sums_pause(paused, true);
    assert_true(tw__redis_place_any_waiting(all));
    assert_taken(START + 1, stopped); /* was due before the other was filed */
    tw__redis_place_stop(all, stopped);
    assert_true(tw__redis_place_any_waiting(all));
    assert_taken(START + 5, late);
    assert_false(tw__redis_place_any_waiting(all));
    tw__redis_queue_detach(paused);
    assert_int_equal(all->stopped, 0);
    assert_int_equal(all->in_line, 0);
    tw__redis_queue_attach(paused);
    assert_int_equal(all->stopped, 1);
    close_queue(other);
    close_one(paused);
}

/* The server removes a queue without tasks, but not while it is paused. */
static void an_empty_queue_stays_while_it_is_paused(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    assert_int_equal(all->empty, 1);
    tw__redis_sums_pause(queue, true);
    assert_int_equal(all->empty, 0);
    put_one(queue, "1", START + 1, START);
    assert_int_equal(all->empty, 0);
    tw__redis_queue_remove(queue, find(queue, "1"), tw__redis_queue_hash(all, text("1")));
    assert_int_equal(all->empty, 0);
    tw__redis_queue_detach(queue);
    tw__redis_sums_pause(queue, false);
    assert_int_equal(all->empty, 0);
    tw__redis_sums_pause(queue, true);
    tw__redis_queue_attach(queue);
    assert_int_equal(all->empty, 0);
    tw__redis_sums_pause(queue, false);
    assert_int_equal(all->empty, 1);
    assert_null(tw__redis_check_all(all));
    close_one(queue);
}

static struct tw__redis_task *put_dead(struct tw__redis_queue *queue, const char *id, uint64_t died)
{
    struct tw__redis_attempt attempt = {.stage = TW__TASK_BURIED, .due = START};
    struct tw__redis_task_plan plan = {
        .id = text(id), .due = died, .packed = text("\1\1p"), .attempt = &attempt};
    struct tw__redis_task *task = tw__redis_task_new(&plan, &all->memory);
    tw__redis_queue_put(queue, task, tw__redis_route_for(queue, &plan_of[1]),
                        tw__redis_queue_hash(all, text(id)), find(queue, id), START);
    return task;
}

static void dead_tasks_are_never_due(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    assert_null(tw__redis_place_first_dead(queue));
    struct tw__redis_task *one = put_dead(queue, "1", START + 50), *two = put_dead(queue, "2", START + 10);
    assert_ptr_equal(tw__redis_place_first_dead(queue), one); /* the first that was filed */
    assert_ptr_equal(tw__redis_place_next_dead(queue, one), two);
    assert_null(tw__redis_place_next_dead(queue, two));
    assert_int_equal(all->dead_count, 2);
    assert_false(tw__redis_place_any_waiting(all));
    assert_true(tw__redis_place_next_work(all) == TW_NEVER);
    assert_taken(START + 9000, NULL);
    assert_true(tw__redis_task_due(one) == START + 50);
    put_one(queue, "3", START + 5, START);
    assert_true(tw_timer_pending(&queue->death));
    put_dead(queue, "1", START + 60); /* replaces the first one, and is the last one now */
    assert_ptr_equal(tw__redis_place_first_dead(queue), two);
    tw__redis_place_unfile(all, two);
    assert_true(tw_timer_pending(&queue->death));
    tw__redis_place_unfile(all, find(queue, "1"));
    assert_false(tw_timer_pending(&queue->death));
    assert_int_equal(all->dead_count, 0);
    tw__redis_place_file(all, two, START + 70, START);
    assert_ptr_equal(tw__redis_place_first_dead(queue), two);
    close_one(queue);
}

static void assert_stale(uint64_t died, const struct tw__redis_queue *wanted)
{
    uint32_t budget = 1000;
    assert_true(wanted == NULL || tw__redis_place_any_stale(all, died));
    assert_ptr_equal(tw__redis_place_first_stale(all, died, &budget), wanted);
    assert_int_equal(tw__redis_place_any_stale(all, died), wanted != NULL);
}

static void remove_one(struct tw__redis_queue *queue, const char *id)
{
    tw__redis_queue_remove(queue, find(queue, id), tw__redis_queue_hash(all, text(id)));
}

static void a_queue_is_stale_when_its_first_dead_task_has_stayed_too_long(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one(), *other = tw__redis_queue_new(all);
    tw__redis_queue_attach(other);
    assert_stale(0, NULL);
    put_dead(queue, "1", START + 50);
    put_dead(queue, "2", START + 60);
    put_dead(other, "3", START + 55);
    assert_stale(0, NULL);
    assert_stale(START + 49, NULL);
    uint32_t none = 0;
    assert_null(tw__redis_place_first_stale(all, START + 50, &none));
    assert_stale(START + 50, queue);
    assert_stale(START + 49, queue); /* until somebody has looked at it */
    remove_one(queue, "1");
    tw__redis_place_let_stay(queue);
    assert_stale(START + 54, NULL);
    assert_stale(START + 60, other);
    tw__redis_place_let_wait(other);
    assert_stale(START + 60, queue);
    remove_one(queue, "2"); /* it has no dead task any more */
    assert_stale(START + 60, other);
    put_dead(queue, "4", START + 40); /* from a file, for example */
    tw__redis_place_let_stay(other);
    assert_stale(START + 60, NULL);
    assert_stale(START + 61, queue);
    assert_null(tw__redis_check_all(all));
    close_queue(other);
    close_one(queue);
}

static void a_queue_is_stale_while_it_has_too_many_dead_tasks(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    put_dead(queue, "1", START + 50);
    put_dead(queue, "2", START + 60);
    assert_stale(0, NULL);
    tw__redis_sums_limit_dead(all, 2);
    assert_stale(0, NULL);
    put_dead(queue, "3", START + 70);
    assert_stale(0, queue);
    tw__redis_queue_detach(queue);
    tw__redis_place_let_stay(queue);
    assert_stale(0, NULL);
    tw__redis_queue_attach(queue);
    assert_stale(0, queue);
    remove_one(queue, "1");
    tw__redis_place_let_stay(queue);
    assert_stale(0, NULL);
    tw__redis_sums_limit_dead(all, 1);
    assert_stale(0, queue);
    tw__redis_sums_limit_dead(all, 0);
    tw__redis_place_let_stay(queue);
    assert_stale(0, NULL);
    assert_null(tw__redis_check_all(all));
    close_one(queue);
}

/* While memory is full: tasks for workers are reached behind tasks with targets, which keep their order. */
static void tasks_put_aside_come_first_later(void **state)
{
    (void)state;
    struct tw__redis_queue *queue = open_one();
    struct tw__redis_task *tasks[5];
    static const char *const ids[] = {"a", "b", "c", "d", "e"};
    struct tw__redis_ready ready;
    uint32_t budget = 100;
    for (unsigned i = 0; i < 4; i++)
        tasks[i] = put_one(queue, ids[i], START + 10 + i, START);
    for (unsigned i = 0; i < 3; i++) {
        struct tw__redis_task *task;
        assert_int_equal(tw__redis_place_take(all, START + 20, TW__REDIS_FROM_LATE, &budget, &task),
                         TW__REDIS_TAKEN_TASK);
        assert_ptr_equal(task, tasks[i]);
        if (i == 1)
            tw__redis_place_file_late(all, task); /* it comes first again */
        else
            tw__redis_place_put_aside(all, task);
        if (i == 1) {
            assert_int_equal(tw__redis_place_take(all, START + 20, TW__REDIS_FROM_LATE, &budget, &task),
                             TW__REDIS_TAKEN_TASK);
            assert_ptr_equal(task, tasks[1]);
            tw__redis_place_put_aside(all, task);
        }
    }
    tasks[4] = put_one(queue, ids[4], START + 30, START + 20);
    assert_true(tw__redis_place_any_waiting(all));
    tw__redis_overview_all_ready(all, START + 20, &ready);
    assert_int_equal(ready.late, 4);
    assert_true(ready.late_since == START + 10);
    tw__redis_place_unfile(all, tasks[1]);
    tw__redis_place_file(all, tasks[1], START + 25, START + 20);
    assert_null(tw__redis_check_places(all));
    static const unsigned order[] = {0, 2, 3, 1, 4};
    for (unsigned i = 0; i < 5; i++)
        assert_taken(START + 40, tasks[order[i]]);
    assert_taken(START + 40, NULL);
    assert_false(tw__redis_place_any_waiting(all));
    close_one(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_late_task_waits_for_what_was_due_before_it_was_filed),
        cmocka_unit_test(what_is_filed_with_a_passed_time_comes_in_the_order_of_filing),
        cmocka_unit_test(what_is_filed_while_the_clock_is_back_comes_at_its_time),
        cmocka_unit_test(what_came_due_while_the_clock_was_back_keeps_its_time),
        cmocka_unit_test(what_is_filed_after_a_second_step_back_comes_at_its_time),
        cmocka_unit_test(what_is_due_no_more_after_a_step_back_holds_nothing_up),
        cmocka_unit_test(what_is_due_no_more_after_a_small_step_back_waits_in_its_line),
        cmocka_unit_test(each_wait_is_a_try_of_all_that_are_held),
        cmocka_unit_test(a_refused_task_is_held_again_by_the_file_that_brings_it),
        cmocka_unit_test(a_held_task_comes_next_when_its_target_is_tried),
        cmocka_unit_test(ready_tasks_keep_the_order_in_which_they_were_offered),
        cmocka_unit_test(a_task_that_is_offered_again_has_its_place),
        cmocka_unit_test(a_task_that_was_filed_late_has_its_place_again),
        cmocka_unit_test(tasks_that_were_leased_elsewhere_have_the_order_of_their_times),
        cmocka_unit_test(tasks_of_here_have_their_order_after_many_tasks),
        cmocka_unit_test(tasks_that_were_given_back_elsewhere_are_sorted),
        cmocka_unit_test(a_task_that_is_offered_again_passes_ten_thousand_at_most),
        cmocka_unit_test(stopped_tasks_wait_for_the_end_of_the_pause),
        cmocka_unit_test(a_time_that_had_passed_is_late_from_its_filing),
        cmocka_unit_test(tasks_that_became_due_in_a_load_are_sorted_with_the_others),
        cmocka_unit_test(tasks_wait_beside_stopped_tasks),
        cmocka_unit_test(tasks_put_aside_come_first_later),
        cmocka_unit_test(an_empty_queue_stays_while_it_is_paused),
        cmocka_unit_test(dead_tasks_are_never_due),
        cmocka_unit_test(a_queue_is_stale_when_its_first_dead_task_has_stayed_too_long),
        cmocka_unit_test(a_queue_is_stale_while_it_has_too_many_dead_tasks),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
