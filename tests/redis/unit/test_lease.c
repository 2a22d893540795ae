/* SPDX-License-Identifier: MIT
 *
 * The ways of a task through its life, one promise after the other. test_change.c compares random attempt
 * states on two servers; test_queues.c has the model.
 */
#include "copies.h"
#include "work.h"

#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/share.h>
#include <src/redis/queues/bytes.h>
#include <inttypes.h>
#include <stdio.h>

/* A task that was due at START + 5, and was leased at START + 10. */
static struct tw__redis_task *leased(const char *id, uint64_t token)
{
    struct tw__redis_task *task = put_work(queue, id, START + 5, START);
    offer(task, START + 5);
    return lease(task, token, START + 10);
}

static struct tw__redis_task *put_repeating(const char *id, unsigned plan, uint64_t every, uint64_t times)
{
    struct tw__redis_task_plan parts = {.id = text(id),
                                        .due = START + 5,
                                        .every = every,
                                        .times = times,
                                        .tries = 3,
                                        .packed = text("\1\3job")};
    struct tw__redis_task *task = tw__redis_task_new(&parts, &counted);
    tw__redis_queue_put(queue, task, tw__redis_route_for(queue, &plan_of[plan]),
                        tw__redis_queue_hash(all, text(id)), NULL, START);
    return task;
}

static struct tw__redis_task *leased_repeating(const char *id, uint64_t every, uint64_t times)
{
    struct tw__redis_task *task = put_repeating(id, FIRST_OF_WORKERS, every, times);
    offer(task, START + 5);
    return lease(task, 7, START + 10);
}

static void assert_counts(uint64_t tasks, uint64_t ready, uint64_t under_lease, uint64_t dead)
{
    assert_int_equal(tw__redis_table_count(&queue->tasks), tasks);
    assert_int_equal(queue->ready_count, ready);
    assert_int_equal(queue->leased_count, under_lease);
    assert_int_equal(queue->dead_count, dead);
    assert_int_equal(all->ready_count, ready);
    assert_int_equal(all->leased_count, under_lease);
    assert_int_equal(all->dead_count, dead);
    assert_null(tw__redis_check_all(all));
}

static void assert_attempt(const struct tw__redis_task *task, const struct tw__redis_attempt *wanted)
{
    assert_true(task->has_attempt);
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    assert_attempts_equal(&attempt, wanted);
    assert_int_equal(tw__redis_task_stage(task), wanted->stage);
}

/* ---- leases ---------------------------------------------------------------------------------------------- */

static void a_lease_is_an_attempt_with_an_end(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_work(queue, "a", START + 5, START);
    assert_true(tw__redis_task_waits(task));
    assert_false(tw__redis_lease_has_token(task, 0));
    offer(task, START + 6);
    assert_counts(1, 1, 0, 0);
    assert_false(tw__redis_task_waits(task));
    all->delivering = task;
    task = lease(task, UINT64_MAX, START + 10);
    assert_null(all->delivering);
    assert_ptr_equal(task, find(queue, "a"));
    assert_counts(1, 0, 1, 0);
    assert_attempt(task, &(struct tw__redis_attempt){.stage = TW__TASK_TAKEN,
                                                     .due = START + 5,
                                                     .token = UINT64_MAX,
                                                     .lease_ms = 1000,
                                                     .number = 1,
                                                     .worker = text("bob")});
    assert_true(tw__redis_task_due(task) == START + 1010);
    assert_true(tw__redis_task_first_due(task) == START + 5);
    assert_false(tw__redis_task_waits(task));
    assert_true(tw__redis_lease_has_token(task, UINT64_MAX));
    assert_false(tw__redis_lease_has_token(task, 1));
    assert_false(tw__redis_lease_has_token(task, 0));
    assert_bytes_equal(tw__redis_task_packed(task), text("\1\1p"));
    close_work();
}

static void a_lease_that_is_extended_ends_later(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    struct tw__redis_attempt wanted = {.stage = TW__TASK_TAKEN,
                                       .due = START + 5,
                                       .token = 9,
                                       .lease_ms = 50,
                                       .number = 1,
                                       .worker = text("bob")};
    do_extend(queue, task, 50, false, START + 400, &changes);
    assert_ptr_equal(task, find(queue, "a")); /* in its block */
    assert_attempt(task, &wanted);
    assert_true(tw__redis_task_due(task) == START + 450);
    wanted.renewed = true;
    do_extend(queue, task, 50, true, START + 500, &changes);
    assert_attempt(task, &wanted);
    assert_true(tw__redis_task_due(task) == START + 550);
    assert_counts(1, 0, 1, 0);
    /* The next lease is not a renewed one. */
    do_fail(queue, task, false, text(""), START + 600, START + 550, &changes);
    offer(find(queue, "a"), START + 600);
    task = lease(find(queue, "a"), 10, START + 700);
    assert_false(tw__redis_task_attempt(task).renewed);
    close_work();
}

static void assert_end(const struct tw__redis_task *task, uint64_t end)
{
    assert_true(tw__redis_place_due(all, task) == end);
    assert_true(tw__redis_place_next_work(all) <= end);
}

/* A lease is a span of time. A task with a due time waits for that time. */
static void the_ends_of_leases_move_with_the_clock(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *one = leased("one", 9), *two = leased("two", 8), *three = leased("three", 7),
                          *waits = put_one(queue, "waits", START + 600, START);
    do_extend(queue, three, 1000, false, START + 60, &changes);
    assert_end(one, START + 1010);
    tw__redis_place_clock_set(all, -500);
    assert_end(one, START + 510);
    assert_taken(START + 509, NULL);
    assert_taken(START + 510, one);
    assert_true(tw__redis_task_due(one) == START + 510);
    do_extend(queue, one, 100, true, START + 510, &changes);
    assert_end(one, START + 610);
    assert_taken(START + 510, two);
    tw__redis_place_file_late(all, two);
    tw__redis_place_clock_set(all, 100000);
    assert_end(one, START + 100610);
    assert_end(three, START + 100560);
    assert_true(tw__redis_place_due(all, two) == START + 510); /* it had ended */
    assert_taken(START + 100400, two);
    assert_taken(START + 100400, waits);
    assert_taken(START + 100559, NULL);
    tw__redis_place_unfile(all, three);
    assert_true(tw__redis_task_due(three) == START + 100560);
    tw__redis_place_file(all, three, START + 100560, START + 100559);
    do_give_back(queue, three, START + 100559, &changes);
    assert_true(tw__redis_task_due(find(queue, "three")) == START + 5);
    assert_taken(START + 100609, NULL);
    assert_taken(START + 100610, one);
    close_work();
}

static void file_again(struct tw__redis_task *task, uint64_t end, uint64_t now)
{
    tw__redis_place_unfile(all, task);
    tw__redis_place_file(all, task, end, now);
}

/* Its end was set by another clock. The present clock is two hours slow, and is corrected later. */
static void a_lease_from_elsewhere_is_no_longer_than_its_length(void **state)
{
    const uint64_t hours = 7200000;
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9), *hangs = leased("b", 8);
    file_again(task, START + hours, START + 20);
    assert_end(task, START + 1020);
    tw__redis_place_refile(all, task, START + hours, START + 30);
    assert_end(task, START + 1030);
    file_again(task, START + 40 + 1000 + TW__REDIS_LEASE_MORE_MS, START + 40); /* two clocks differ a little */
    assert_end(task, START + 1040 + TW__REDIS_LEASE_MORE_MS);
    file_again(task, START + 50 + 1001 + TW__REDIS_LEASE_MORE_MS, START + 50);
    assert_end(task, START + 1050);
    file_again(task, START + 60, START + 50); /* and a lease that has less left ends when it said */
    assert_end(task, START + 60);
    file_again(hangs, START + hours, START + 60);
    tw__redis_place_clock_set(all, (int64_t)hours);
    assert_taken(START + hours + 60, task);
    assert_taken(START + hours + 1059, NULL);
    assert_taken(START + hours + 1060, hangs);
    close_work();
}

/* Both wheels have far jumps to make, and the wheel of leases names times that come before its first lease. */
static void leases_end_and_tasks_are_due_in_the_order_of_time(void **state)
{
    (void)state;
    open_work();
    struct lease its = {.token = 5, .ms = 700000, .worker = text("bob")};
    struct tw__redis_task *first = put_work(queue, "first", START + 5, START);
    offer(first, START + 5);
    first = begin_lease(queue, first, &its, START + 10, &changes);
    struct tw__redis_task *before = put_one(queue, "before", START + 700009, START),
                          *same = put_one(queue, "same", START + 700010, START),
                          *after = put_one(queue, "after", START + 700011, START);
    its.ms += 2;
    struct tw__redis_task *last = put_work(queue, "last", START + 5, START);
    offer(last, START + 5);
    last = begin_lease(queue, last, &its, START + 10, &changes);
    assert_taken(START + 900000, before);
    assert_taken(START + 900000, same);
    assert_taken(START + 900000, first);
    assert_taken(START + 900000, after);
    assert_taken(START + 900000, last);
    assert_taken(START + 900000, NULL);
    close_work();
}

/* A step that is too small to be noticed, or has not been noticed yet. */
static void a_lease_that_begins_after_a_step_back_is_not_shorter(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *ends = leased("ends", 9), *task = put_work(queue, "a", START + 5, START);
    offer(task, START + 5);
    assert_taken(START + 2000, ends);
    tw__redis_lease_remove(queue, ends, &changes);
    task = lease(task, 8, START + 1500);
    assert_end(task, START + 3000);
    assert_taken(START + 2999, NULL);
    tw__redis_place_clock_set(all, -500); /* noticed only now */
    assert_end(task, START + 2500);
    assert_taken(START + 2500, task);
    close_work();
}

/* The same 55 minutes back, in an hour in which no lease has ended. */
static void a_lease_that_is_the_first_is_not_shorter_after_a_step_back(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_work(queue, "a", START + 5, START);
    offer(task, START + 5);
    assert_taken(START + 3600000, NULL);
    task = lease(task, 8, START + 300000);
    tw__redis_place_clock_set(all, -3300000); /* noticed only now */
    assert_end(task, START + 301000);
    assert_taken(START + 300999, NULL);
    assert_taken(START + 301000, task);
    close_work();
}

/* ---- replaced attempts ----------------------------------------------------------------------------------- */

/* Puts a task with the id of another one, which is leased. Returns it. */
static struct tw__redis_task *put_behind(struct tw__redis_task *old, unsigned plan, uint64_t due)
{
    char name[16];
    struct tw__redis_bytes id = tw__redis_task_id(old);
    memcpy(name, id.at, id.size);
    id.at = name;
    struct tw__redis_task_plan parts = {.id = id, .due = due, .times = 1, .packed = text("\2\1f\3new")};
    uint64_t hash = tw__redis_queue_hash(all, id);
    tw__redis_lease_put(queue, tw__redis_task_new(&parts, &counted), tw__redis_route_for(queue, &plan_of[plan]),
                        hash, old, START + 50);
    return tw__redis_queue_find(queue, hash, id);
}

/* Of the old task only its attempt is left. */
static void a_new_task_stands_behind_the_attempt(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_attempt wanted = {.stage = TW__TASK_REPLACED,
                                       .due = START + 9000,
                                       .token = 9,
                                       .lease_ms = 1000,
                                       .number = 2,
                                       .worker = text("bob")};
    do_fail(queue, leased_repeating("a", 60000, 3), false, text("no"), START + 20, START + 15, &changes);
    offer(find(queue, "a"), START + 20);
    struct tw__redis_task *task = put_behind(lease(find(queue, "a"), 9, START + 25), 0, START + 9000);
    assert_attempt(task, &wanted);
    assert_counts(1, 0, 1, 0);
    assert_end(task, START + 1025);
    assert_int_equal(tw__redis_task_every(task), 0);
    assert_bytes_equal(tw__redis_task_packed(task), text("\2\1f\3new"));
    assert_int_equal(tw__redis_route_plan(tw__redis_route_of(all, task)).kind, plan_of[0].kind);
    assert_false(tw__redis_task_waits(task));
    assert_true(tw__redis_lease_has_token(task, 9) && tw__redis_task_first_due(task) == START + 9000);
    task = put_behind(task, FIRST_OF_WORKERS, START + 3);
    wanted.due = START + 3;
    assert_attempt(task, &wanted);
    assert_end(task, START + 1025);
    do_extend(queue, task, 50, true, START + 60, &changes);
    do_move(queue, task, START + 7000, START + 70, &changes);
    wanted.due = START + 7000;
    wanted.lease_ms = 50;
    wanted.renewed = true;
    assert_attempt(find(queue, "a"), &wanted);
    assert_counts(1, 0, 1, 0);
    assert_taken(START + 109, NULL);
    assert_taken(START + 110, find(queue, "a"));
    close_work();
}

static void a_task_that_is_moved_stands_behind_its_own_attempt(void **state)
{
    (void)state;
    open_work();
    do_fail(queue, leased("a", 9), false, text("no"), START + 20, START + 15, &changes);
    offer(find(queue, "a"), START + 20);
    do_move(queue, lease(find(queue, "a"), 8, START + 25), START + 20, START + 30, &changes);
    struct tw__redis_task *task = find(queue, "a");
    assert_attempt(task, &(struct tw__redis_attempt){.stage = TW__TASK_REPLACED,
                                                     .due = START + 20,
                                                     .token = 8,
                                                     .lease_ms = 1000,
                                                     .number = 2,
                                                     .worker = text("bob")});
    assert_end(task, START + 1025);
    assert_bytes_equal(tw__redis_task_packed(task), text("\1\1p"));
    do_move(queue, put_work(queue, "waits", START + 20, START), START + 40, START + 30, &changes);
    assert_false(find(queue, "waits")->has_attempt);
    assert_true(tw__redis_task_due(find(queue, "waits")) == START + 40);
    close_work();
}

/* The new task waits for its time or, if that has passed, since the end of the attempt. */
static void the_end_of_a_replaced_attempt_lets_the_new_task_wait(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_behind(leased("a", 9), FIRST_OF_WORKERS, START + 500);
    assert_true(do_end_replaced(queue, task, START + 500, START + 510, &changes) == START + 500);
    assert_false(find(queue, "a")->has_attempt);
    assert_true(tw__redis_task_due(find(queue, "a")) == START + 500);
    assert_counts(1, 0, 0, 0);
    task = put_behind(leased("b", 9), 0, START + 499);
    assert_true(do_end_replaced(queue, task, START + 500, START + 510, &changes) == START + 500);
    assert_attempt(find(queue, "b"), &(struct tw__redis_attempt){.stage = TW__TASK_FILED, .due = START + 499});
    assert_true(tw__redis_task_due(find(queue, "b")) == START + 500);
    assert_true(tw__redis_task_waits(find(queue, "b")));
    assert_false(tw__redis_lease_has_token(find(queue, "b"), 9));
    assert_counts(2, 0, 0, 0);
    close_work();
}

/* A lease that has run out may wait in a line, or be in the hands of the tick. */
static void a_new_task_has_the_place_of_the_lease(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *first = leased("first", 1), *second = leased("second", 2),
                          *third = leased("third", 3);
    assert_taken(START + 1010, first);
    assert_taken(START + 1010, second);
    assert_taken(START + 1010, third);
    tw__redis_place_file_late(all, first);
    tw__redis_place_file_late(all, second);
    all->delivering = third;
    first = put_behind(first, 0, START);
    third = put_behind(third, 0, START);
    assert_null(all->delivering);
    assert_counts(3, 0, 3, 0);
    assert_true(tw__redis_task_due(third) == START + 1010);
    assert_taken(START + 1010, first);
    assert_taken(START + 1010, second);
    all->delivering = second;
    do_move(queue, second, START + 5000, START + 1010, &changes);
    assert_null(all->delivering);
    assert_taken(START + 1010, third);
    assert_taken(START + 1010, find(queue, "second"));
    assert_taken(START + 1010, NULL);
    close_work();
}

/* A step that nobody has noticed yet moves the end of the lease as if the task had not been replaced. */
static void a_replaced_attempt_keeps_its_end_after_a_step_of_the_clock(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    assert_taken(START + 800, NULL);
    task = put_behind(task, FIRST_OF_WORKERS, START + 9000); /* at START + 50 */
    assert_end(task, START + 1010);
    tw__redis_place_clock_set(all, -750);
    assert_end(task, START + 260);
    assert_taken(START + 260, task);
    close_work();
}

/* ---- the end of an attempt ------------------------------------------------------------------------------- */

static void an_attempt_that_failed_is_followed_by_another(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    do_fail(queue, task, false, text("no network"), START + 5000, START + 700, &changes);
    task = find(queue, "a");
    struct tw__redis_attempt wanted = {.stage = TW__TASK_FILED,
                                       .due = START + 5,
                                       .number = 1,
                                       .worker = text("bob"),
                                       .error = text("no network")};
    assert_attempt(task, &wanted);
    assert_counts(1, 0, 0, 0);
    assert_true(tw__redis_task_waits(task));
    assert_true(tw__redis_task_due(task) == START + 5000);
    assert_true(tw__redis_task_first_due(task) == START + 5);
    assert_false(tw__redis_lease_has_token(task, 9) || tw__redis_lease_has_token(task, 0));
    offer(task, START + 5000);
    assert_false(tw__redis_task_waits(task));
    struct tw__redis_task *again = lease(task, 10, START + 5001);
    assert_ptr_equal(again, find(queue, "a"));
    wanted.stage = TW__TASK_TAKEN;
    wanted.lease_ms = 1000;
    wanted.has_next = true;
    wanted.next = START + 5000;
    wanted.token = 10;
    wanted.number = 2;
    assert_attempt(again, &wanted);
    assert_false(tw__redis_lease_has_token(again, 9));
    assert_true(tw__redis_task_first_due(again) == START + 5);
    close_work();
}

/* It counts apart, and leaves its token behind. */
static void a_lapse_is_followed_by_another_attempt(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    do_fail(queue, task, true, text("the lease ran out"), START + 5000, START + 700, &changes);
    task = find(queue, "a");
    struct tw__redis_attempt wanted = {.stage = TW__TASK_FILED,
                                       .due = START + 5,
                                       .token = 9,
                                       .number = 1,
                                       .lapses = 1,
                                       .worker = text("bob"),
                                       .error = text("the lease ran out")};
    assert_attempt(task, &wanted);
    assert_true(tw__redis_task_due(task) == START + 5000);
    assert_true(tw__redis_lease_has_token(task, 9)); /* a late acknowledgement counts */
    offer(task, START + 5000);
    assert_true(tw__redis_lease_has_token(task, 9));
    task = lease(task, 10, START + 5001);
    assert_false(tw__redis_lease_has_token(task, 9));
    assert_int_equal(tw__redis_task_attempt(task).lapses, 1);
    task = do_give_back(queue, task, START + 5002, &changes);
    assert_int_equal(tw__redis_task_attempt(task).lapses, 1);
    close_work();
}

static void attempts_are_counted_up_to_a_limit(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    attempt.number = TW__REDIS_BEGUN_MAX;
    tw__redis_task_set_attempt(task, &attempt);
    do_fail(queue, task, false, text(""), START + 600, START + 550, &changes);
    offer(find(queue, "a"), START + 600);
    assert_true(tw__redis_task_attempt(lease(find(queue, "a"), 8, START + 700)).number == TW__REDIS_BEGUN_MAX);
    close_work();
}

/* ---- given back ------------------------------------------------------------------------------------------ */

static void a_task_that_is_given_back_was_never_taken(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_work(queue, "a", START + 5, START);
    offer(task, START + 6);
    uint64_t bytes = queue->bytes;
    task = lease(task, 9, START + 10);
    assert_true(queue->bytes > bytes);
    all->delivering = task;
    task = do_give_back(queue, task, START + 700, &changes);
    assert_null(all->delivering);
    assert_ptr_equal(task, find(queue, "a"));
    assert_counts(1, 1, 0, 0);
    assert_false(task->has_attempt);
    assert_int_equal(queue->bytes, bytes);
    assert_true(task->place == TW__REDIS_IN_READY && tw__redis_task_due(task) == START + 5);
    assert_false(tw__redis_lease_has_token(task, 9));
    assert_ptr_equal(tw__redis_place_first_ready(queue), task);
    task = lease(task, 10, START + 800);
    assert_int_equal(tw__redis_task_attempt(task).number, 1);
    close_work();
}

/* The failed attempt before it stays, with its error. The place is that of the due time. */
static void a_second_attempt_that_is_given_back_leaves_the_first(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    do_fail(queue, task, false, text("no network"), START + 600, START + 500, &changes);
    offer(find(queue, "a"), START + 600);
    task = lease(find(queue, "a"), 10, START + 700);
    do_extend(queue, task, 50, true, START + 710, &changes);
    task = do_give_back(queue, task, START + 720, &changes);
    assert_counts(1, 1, 0, 0);
    struct tw__redis_attempt wanted = {
        .stage = TW__TASK_FILED, .due = START + 5, .number = 1, .error = text("no network")};
    assert_attempt(task, &wanted);
    assert_true(tw__redis_task_due(task) == START + 600 && tw__redis_task_first_due(task) == START + 5);
    assert_false(tw__redis_lease_has_token(task, 9) || tw__redis_lease_has_token(task, 10) ||
                 tw__redis_lease_has_token(task, 0));
    task = lease(task, 11, START + 800);
    assert_int_equal(tw__redis_task_attempt(task).number, 2);
    assert_false(tw__redis_task_attempt(task).renewed);
    close_work();
}

/* TW.PROMOTE has made it ready before its time. Without an attempt state a replica would let it wait for that
 * time. */
static void a_promoted_task_that_is_given_back_is_ready_everywhere(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_work(queue, "a", START + 9000, START);
    task = do_promote(queue, task, START + 5, &changes);
    offer(task, START + 5);
    task = lease(find(queue, "a"), 9, START + 10);
    task = do_give_back(queue, task, START + 700, &changes);
    assert_counts(1, 1, 0, 0);
    struct tw__redis_attempt wanted = {
        .stage = TW__TASK_FILED,
        .due = START + 9000,
    };
    assert_attempt(task, &wanted);
    assert_true(tw__redis_task_due(task) == START + 5 && tw__redis_task_first_due(task) == START + 9000);
    close_work();
}

/* The tries of a leased task come from RESTORE, or from a file that somebody has changed. */
static void an_ended_lease_does_not_wait_for_a_target(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_one(queue, "refused", START + 1, START), *taken = leased("taken", 9);
    const uint64_t now = START + 10;
    tw__redis_place_unfile(all, task);
    tw__redis_place_unfile(all, taken);
    task->tries = taken->tries = 2;
    tw__redis_place_set_wait(tw__redis_route_of(all, task), 5000, now + 6000);
    tw__redis_place_set_wait(tw__redis_route_of(all, taken), 5000, now + 6000);
    assert_true(tw__redis_place_next_after(all, task, now) == now + 6000);
    assert_true(tw__redis_place_next_after(all, taken, now) == now);
    assert_true(tw__redis_place_next_after(all, task, now + 6000) == now + 6000);
    tw__redis_place_set_wait(tw__redis_route_of(all, task), 5000, now + 10001);
    assert_true(tw__redis_place_next_after(all, task, now) == now + 10000);
    task->tries = 0;
    assert_true(tw__redis_place_next_after(all, task, now) == now);
    close_work();
}

/* A lease takes bytes for the time before it only if that is not the due time, and gives them back. */
static void a_lease_knows_when_its_task_was_ready(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased("a", 9);
    assert_false(tw__redis_task_attempt(task).has_next);
    size_t bytes = tw__redis_task_bytes(task, &counted);
    do_fail(queue, task, false, text(""), START + 600, START + 500, &changes);
    offer(find(queue, "a"), START + 600);
    task = lease(find(queue, "a"), 10, START + 700);
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    assert_true(attempt.has_next && attempt.next == START + 600);
    assert_in_range(tw__redis_task_bytes(task, &counted), bytes, bytes + 16);
    do_fail(queue, task, true, text(""), START + 800, START + 750, &changes);
    assert_false(tw__redis_task_attempt(find(queue, "a")).has_next);
    assert_int_equal(tw__redis_task_bytes(find(queue, "a"), &counted), bytes);
    close_work();
}

/* Retries that come together have the order in which they have failed, whoever gives back first. */
static void tasks_that_are_given_back_have_their_old_order(void **state)
{
    static const char *const ids[] = {"a", "b", "c", "d"};
    static const unsigned back[] = {2, 0, 1};
    (void)state;
    open_work();
    for (unsigned i = 0; i < 4; i++)
        do_fail(queue, leased(ids[i], 9), false, text(""), START + 600, START + 500, &changes);
    for (unsigned i = 0; i < 4; i++)
        offer(find(queue, ids[i]), START + 600);
    for (unsigned round = 0; round < 2; round++) {
        for (unsigned i = 0; i < 3; i++)
            lease(find(queue, ids[i]), 10 + i, START + 700);
        for (unsigned i = 0; i < 3; i++)
            do_give_back(queue, find(queue, ids[back[i]]), START + 720, &changes);
        struct tw__link *link = queue->ready.next;
        for (unsigned i = 0; i < 4; i++, link = link->next)
            assert_ptr_equal(tw__redis_task_of_link(link), find(queue, ids[i]));
    }
    close_work();
}

static void a_period_that_is_given_back_is_still_to_come(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased_repeating("a", 60000, 3);
    task->tries = 2;
    task = do_give_back(queue, task, START + 700, &changes);
    assert_counts(1, 1, 0, 0);
    assert_false(task->has_attempt);
    assert_true(tw__redis_task_due(task) == START + 5 && tw__redis_task_times(task) == 3);
    assert_int_equal(task->tries, 0);
    do_done(queue, lease(task, 8, START + 800), START + 900, &changes);
    assert_true(tw__redis_task_due(find(queue, "a")) == START + 60005);
    close_work();
}

/* ---- done ------------------------------------------------------------------------------------------------ */

static void a_task_that_is_done_leaves(void **state)
{
    (void)state;
    open_work();
    do_done(queue, leased("a", 9), START + 20, &changes);
    assert_counts(0, 0, 0, 0);
    assert_null(find(queue, "a"));
    /* Late: after the lease, while the task is ready again. */
    do_fail(queue, leased("b", 9), false, text("late"), START + 600, START + 550, &changes);
    offer(find(queue, "b"), START + 600);
    do_done(queue, find(queue, "b"), START + 700, &changes);
    assert_counts(0, 0, 0, 0);
    close_work();
}

static void a_repeating_task_goes_on_from_its_due_time(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased_repeating("a", 60000, 3);
    do_done(queue, task, START + 900, &changes);
    task = find(queue, "a");
    assert_counts(1, 0, 0, 0);
    assert_false(task->has_attempt);
    assert_true(tw__redis_task_due(task) == START + 60005);
    assert_true(tw__redis_task_every(task) == 60000);
    assert_true(tw__redis_task_times(task) == 2);
    assert_int_equal(task->tries, 0);
    do_done(queue, task, START + 900, &changes);
    assert_true(tw__redis_task_due(find(queue, "a")) == START + 120005);
    do_done(queue, find(queue, "a"), START + 900, &changes); /* the last time */
    assert_counts(0, 0, 0, 0);
    task = leased_repeating("b", 60000, TW_FOREVER);
    do_done(queue, task, START + 900, &changes);
    assert_true(tw__redis_task_times(find(queue, "b")) == TW_FOREVER);
    close_work();
}

static void a_period_that_no_clock_reaches_is_the_last_one(void **state)
{
    (void)state;
    open_work();
    do_done(queue, leased_repeating("a", TW__TASK_TIME_MAX - START - 5, 3), START + 900, &changes);
    assert_true(tw__redis_task_due(find(queue, "a")) == TW__TASK_TIME_MAX);
    do_done(queue, leased_repeating("b", TW__TASK_TIME_MAX - START - 4, 3), START + 900, &changes);
    assert_null(find(queue, "b"));
    close_work();
}

/* ---- missed periods -------------------------------------------------------------------------------------- */

/* A task that was due at START + 5 and repeats every 100 ms. It is taken after the periods 105 and 205. */
static struct tw__redis_task *leased_late(const char *id, unsigned plan)
{
    struct tw__redis_task *task = put_repeating(id, plan, 100, 3);
    offer(task, START + 5);
    return lease(task, 7, START + 255);
}

static void a_call_stands_for_the_same_periods_in_each_attempt(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased_late("a", FIRST_OF_WORKERS + 1);
    assert_true(tw__redis_task_missed_periods(task) == 2 && tw__redis_task_first_due(task) == START + 5);
    do_fail(queue, task, false, text("no"), START + 600, START + 500, &changes);
    offer(find(queue, "a"), START + 600);
    task = lease(find(queue, "a"), 8, START + 900);
    assert_true(tw__redis_task_missed_periods(task) == 2);
    task = do_give_back(queue, task, START + 950, &changes); /* its first attempt has begun */
    assert_true(tw__redis_task_missed_periods(task) == 2);
    do_done(queue, lease(task, 9, START + 960), START + 970, &changes);
    task = find(queue, "a");
    assert_false(task->has_attempt);
    assert_true(tw__redis_task_due(task) == START + 305 && tw__redis_task_times(task) == 2);
    close_work();
}

static void a_call_that_is_given_back_counts_its_periods_anew(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased_late("a", FIRST_OF_WORKERS + 1);
    task = do_give_back(queue, task, START + 300, &changes);
    assert_false(task->has_attempt);
    task = lease(task, 8, START + 305);
    assert_true(tw__redis_task_missed_periods(task) == 3 && tw__redis_task_first_due(task) == START + 5);
    do_put_off(queue, task, START + 500, START + 310, &changes);
    assert_true(tw__redis_task_missed_periods(find(queue, "a")) == 0);
    close_work();
}

/* Lets the first ready task take its turn at a time, when it is not to be called. */
static void pass_over(struct tw__redis_task *task, uint64_t now)
{
    do_pass_over(queue, task, now, &changes);
}

/* The limit of this plan is 700 ms. A retry has none. */
static void a_task_that_is_too_late_leaves(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_repeating("a", FIRST_OF_WORKERS + 1, 0, 1);
    offer(task, START + 5);
    assert_true(turn_of(all, task, START + 705).calls);
    pass_over(task, START + 706);
    assert_null(find(queue, "a"));
    task = put_repeating("b", FIRST_OF_WORKERS + 1, 0, 1);
    offer(task, START + 5);
    task = lease(task, 7, START + 10);
    do_fail(queue, task, false, text("no"), START + 20, START + 15, &changes);
    offer(find(queue, "b"), START + 20);
    assert_true(turn_of(all, find(queue, "b"), START + 9000).calls);
    lease(find(queue, "b"), 8, START + 9000);
    close_work();
}

/* Of a task with a period of 100 ms, the calls at 5, 105, and 205 are more than 700 ms late at 910. */
static void periods_that_are_too_late_are_no_part_of_the_call(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_repeating("a", FIRST_OF_WORKERS + 1, 100, 3);
    offer(task, START + 5);
    assert_int_equal(turn_of(all, task, START + 910).dropped, 3);
    task = lease(task, 7, START + 910);
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(task);
    assert_true(attempt.due == START + 305 && attempt.missed_periods == 6 && !attempt.has_next);
    task = do_give_back(queue, task, START + 920, &changes);
    assert_true(tw__redis_task_due(task) == START + 305 && !task->has_attempt);
    do_done(queue, lease(task, 8, START + 930), START + 940, &changes);
    assert_true(tw__redis_task_due(find(queue, "a")) == START + 1005 &&
                tw__redis_task_times(find(queue, "a")) == 2);
    close_work();
}

static void a_series_waits_for_the_first_period_that_is_not_too_late(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_repeating("a", FIRST_OF_WORKERS + 1, 5000, 3);
    offer(task, START + 5);
    pass_over(task, START + 900);
    task = find(queue, "a");
    assert_true(tw__redis_task_due(task) == START + 5005 && tw__redis_task_times(task) == 3);
    assert_int_equal(task->tries, 0);
    assert_counts(1, 0, 0, 0);
    close_work();
}

/* Neither is late: the worker has put off the one, and somebody has promoted the other. */
static void what_comes_later_or_sooner_is_not_late(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_repeating("a", FIRST_OF_WORKERS + 1, 0, 1);
    offer(task, START + 5);
    do_put_off(queue, lease(task, 7, START + 10), START + 2000, START + 20, &changes);
    offer(find(queue, "a"), START + 2000);
    assert_true(turn_of(all, find(queue, "a"), START + 2700).calls);
    assert_false(turn_of(all, find(queue, "a"), START + 2701).calls);
    task = put_repeating("b", FIRST_OF_WORKERS + 1, 5000, 3);
    do_move(queue, task, START + 9000, START + 10, &changes);
    do_promote(queue, find(queue, "b"), START + 100, &changes);
    offer(find(queue, "b"), START + 100);
    struct tw__task_turn turn = turn_of(all, find(queue, "b"), START + 3000);
    assert_true(turn.calls && turn.due == START + 9000 && turn.missed_periods == 0);
    close_work();
}

/* A target has refused the task before this one three times, and not this one. */
static void the_tries_of_a_task_before_do_not_begin_a_call(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_repeating("a", 2, 0, 1); /* the limit of this plan is 500 ms */
    assert_int_equal(task->tries, 3);
    assert_true(turn_of(all, task, START + 505).calls);
    assert_false(turn_of(all, task, START + 506).calls);
    assert_int_equal(turn_of(all, put_repeating("b", 4, 100, 3), START + 310).missed_periods, 3);
    close_work();
}

static void a_call_dies_with_all_its_periods(void **state)
{
    (void)state;
    open_work();
    do_kill(queue, leased_late("a", FIRST_OF_WORKERS + 1), 1, text("no"), START + 300, &changes);
    assert_true(tw__redis_task_due(find(queue, "a")) == START + 305);
    const struct tw__redis_task *dead = tw__redis_place_first_dead(queue);
    assert_true(tw__redis_task_first_due(dead) == START + 5 &&
                !tw__redis_task_attempt(dead).has_missed_periods);
    close_work();
}

static void burst_and_a_new_task_stand_for_one_period(void **state)
{
    (void)state;
    open_work();
    assert_true(tw__redis_task_missed_periods(leased_late("a", FIRST_OF_WORKERS)) == 0);
    struct tw__redis_task *task = leased_late("b", FIRST_OF_WORKERS + 1);
    do_move(queue, task, START + 400, START + 300, &changes);
    assert_true(tw__redis_task_missed_periods(find(queue, "b")) == 0);
    do_end_replaced(queue, find(queue, "b"), START + 310, START + 310, &changes);
    assert_true(tw__redis_task_due(find(queue, "b")) == START + 400);
    close_work();
}

/* ---- dead ------------------------------------------------------------------------------------------------ */

static void a_dead_task_stays_with_its_error(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *first = leased("a", 9), *second = put_one(queue, "b", START + 6, START);
    do_kill(queue, first, 5, text("no network"), START + 700, &changes);
    do_kill(queue, second, 3, text("WRONGTYPE"), START + 800, &changes);
    assert_counts(2, 0, 0, 2);
    first = find(queue, "a");
    second = find(queue, "b");
    assert_attempt(first, &(struct tw__redis_attempt){.stage = TW__TASK_BURIED,
                                                      .due = START + 5,
                                                      .number = 5,
                                                      .worker = text("bob"),
                                                      .error = text("no network")});
    assert_attempt(second,
                   &(struct tw__redis_attempt){
                       .stage = TW__TASK_BURIED, .due = START + 6, .number = 3, .error = text("WRONGTYPE")});
    assert_true(tw__redis_task_due(first) == START + 700); /* the time of its death */
    assert_false(tw__redis_task_waits(first));
    assert_false(tw__redis_lease_has_token(first, 9));
    assert_false(tw__redis_lease_has_token(first, 0));
    assert_ptr_equal(tw__redis_place_first_dead(queue), first);
    assert_ptr_equal(tw__redis_place_next_dead(queue, first), second);
    assert_null(tw__redis_place_next_dead(queue, second));
    assert_true(tw_timer_pending(&queue->death));
    close_work();
}

/* Of a repeating task the period dies, and the series goes on. */
static void a_dead_period_is_a_task_of_its_own(void **state)
{
    (void)state;
    open_work();
    do_kill(queue, leased_repeating("a", 60000, 3), 5, text("no"), START + 700, &changes);
    assert_counts(2, 0, 0, 1);
    struct tw__redis_task *dead = find(queue, "a@1700000000005"), *task = find(queue, "a");
    assert_non_null(dead);
    assert_attempt(dead, &(struct tw__redis_attempt){.stage = TW__TASK_BURIED,
                                                     .due = START + 5,
                                                     .number = 5,
                                                     .worker = text("bob"),
                                                     .error = text("no")});
    assert_true(tw__redis_task_due(dead) == START + 700);
    assert_true(tw__redis_task_every(dead) == 0);
    assert_bytes_equal(tw__redis_task_packed(dead), text("\1\3job"));
    assert_int_equal(dead->route, task->route);
    assert_false(task->has_attempt);
    assert_true(tw__redis_task_due(task) == START + 60005);
    assert_true(tw__redis_task_times(task) == 2);
    close_work();
}

static void the_last_period_dies_and_ends_the_series(void **state)
{
    (void)state;
    open_work();
    do_kill(queue, leased_repeating("a", 60000, 1), 5, text("no"), START + 700, &changes);
    assert_counts(1, 0, 0, 1);
    assert_null(find(queue, "a"));
    assert_non_null(find(queue, "a@1700000000005"));
    close_work();
}

/* The task for a target has never had an attempt state; its due time names the period. */
static void a_period_that_a_target_refused_dies_in_the_same_way(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = put_repeating("s", 1, 60000, TW_FOREVER);
    do_kill(queue, task, 3, text("WRONGTYPE"), START + 700, &changes);
    task = find(queue, "s");
    assert_counts(2, 0, 0, 1);
    assert_non_null(find(queue, "s@1700000000005"));
    assert_true(tw__redis_task_due(task) == START + 60005);
    assert_true(tw__redis_task_times(task) == TW_FOREVER);
    assert_int_equal(task->tries, 0);
    close_work();
}

static void a_dead_period_leaves_a_task_with_its_id_alone(void **state)
{
    (void)state;
    open_work();
    leased("a@1700000000005", 8);
    leased("a@1700000000005-1", 9);
    assert_counts(2, 0, 2, 0);
    do_kill(queue, leased_repeating("a", 60000, 3), 5, text("no"), START + 700, &changes);
    assert_counts(4, 0, 2, 1);
    assert_int_equal(tw__redis_task_stage(find(queue, "a@1700000000005")), TW__TASK_TAKEN);
    assert_int_equal(tw__redis_task_stage(find(queue, "a@1700000000005-1")), TW__TASK_TAKEN);
    assert_int_equal(tw__redis_task_stage(find(queue, "a@1700000000005-2")), TW__TASK_BURIED);
    close_work();
}

static void a_series_can_die_as_a_whole(void **state)
{
    (void)state;
    open_work();
    struct tw__redis_task *task = leased_repeating("a", 60000, 3);
    do_kill_series(queue, task, 1, text("too big"), START + 700, &changes);
    task = find(queue, "a");
    assert_counts(1, 0, 0, 1);
    assert_int_equal(tw__redis_task_stage(task), TW__TASK_BURIED);
    assert_true(tw__redis_task_every(task) == 60000 && tw__redis_task_times(task) == 3);
    assert_true(tw__redis_task_first_due(task) == START + 5);
    close_work();
}

/* ---- payloads that dead periods share -------------------------------------------------------------------- */

enum { HEAVY = 20000, PERIOD = 60000 };

static void put_heavy(void)
{
    static char packed[HEAVY + 8] = {1};
    char *end = tw__redis_varint_put(packed + 1, HEAVY);
    struct tw__redis_task_plan plan = {.id = text("s"),
                                       .due = START,
                                       .every = PERIOD,
                                       .times = TW_FOREVER,
                                       .packed = {packed, (size_t)(end - packed) + HEAVY}};
    memset(end, 'p', HEAVY);
    tw__redis_queue_put(queue, tw__redis_task_new(&plan, &counted),
                        tw__redis_route_for(queue, &plan_of[FIRST_OF_WORKERS]),
                        tw__redis_queue_hash(all, plan.id), NULL, START);
}

static void kill_heavy(unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        do_kill(queue, find(queue, "s"), 5, text("no"), START + 700 + i, &changes);
}

/* The n-th period that has died, from 0 on; NULL: it is gone. */
static struct tw__redis_task *period(unsigned n)
{
    char id[48];
    snprintf(id, sizeof id, "s@%" PRIu64, START + (uint64_t)n * PERIOD);
    return find(queue, id);
}

static void assert_heavy(const struct tw__redis_task *task)
{
    struct tw__redis_payload payload = tw__redis_task_payload(task);
    struct tw__redis_bytes string = tw__redis_payload_next(&payload);
    assert_int_equal(payload.count, 0);
    assert_int_equal(string.size, HEAVY);
    assert_true(string.at[0] == 'p' && string.at[HEAVY - 1] == 'p');
    assert_int_equal(tw__redis_task_bytes(task, &counted) > HEAVY, true);
}

static void drop_task(struct tw__redis_task *task)
{
    tw__redis_queue_remove(queue, task, tw__redis_queue_hash(all, tw__redis_task_id(task)));
}

/* Each death cost the memory of the payload once more. */
static void the_deaths_of_a_series_have_one_payload(void **state)
{
    (void)state;
    open_work();
    put_heavy();
    uint64_t before = queue->bytes;
    kill_heavy(10);
    assert_counts(11, 0, 0, 10);
    assert_true(queue->bytes < before + HEAVY / 2);
    assert_in_range(queue->dead_bytes, HEAVY, HEAVY + HEAVY / 2);
    assert_heavy(find(queue, "s"));
    for (unsigned i = 0; i < 10; i++) {
        assert_heavy(period(i));
        assert_ptr_equal(tw__redis_task_share(period(i)), tw__redis_task_share(find(queue, "s")));
    }
    struct tw__redis_attempt attempt = tw__redis_task_whole_attempt(period(3));
    assert_bytes_equal(attempt.error, text("no"));
    close_work();
}

static void a_shared_payload_stays_for_the_last_that_has_it(void **state)
{
    (void)state;
    open_work();
    put_heavy();
    kill_heavy(4);
    drop_task(find(queue, "s"));
    drop_task(period(1));
    assert_counts(3, 0, 0, 3);
    assert_true(queue->dead_bytes > HEAVY);
    tw__redis_queue_begin_anew(queue, period(2), START + 9000, START + 800);
    assert_counts(3, 0, 0, 2);
    drop_task(period(0));
    drop_task(period(3));
    assert_counts(1, 0, 0, 0);
    assert_int_equal(queue->dead_bytes, 0);
    assert_heavy(period(2));
    offer(period(2), START + 9000);
    lease(period(2), 9, START + 9000);
    assert_heavy(period(2));
    drop_task(period(2));
    assert_true(queue->bytes < HEAVY);
    close_work();
}

/* A series that is put again has another payload, and its old deaths keep theirs. */
static void a_series_that_is_put_again_shares_nothing_with_its_old_deaths(void **state)
{
    (void)state;
    open_work();
    put_heavy();
    kill_heavy(2);
    drop_task(find(queue, "s"));
    put_repeating("s", FIRST_OF_WORKERS, PERIOD, TW_FOREVER);
    kill_heavy(1);
    struct tw__redis_task *dead = find(queue, "s@1700000000005");
    assert_counts(4, 0, 0, 3);
    assert_bytes_equal(tw__redis_task_packed(dead), text("\1\3job"));
    assert_heavy(period(0));
    assert_int_equal(tw__redis_task_share(dead)->dead, 1);
    close_work();
}

static void the_first_death_beyond_the_limit_is_named(void **state)
{
    (void)state;
    open_work();
    put_heavy();
    assert_null(tw__redis_share_excess(find(queue, "s")));
    kill_heavy(TW__REDIS_DEATHS_MAX);
    assert_null(tw__redis_share_excess(period(99)));
    kill_heavy(1);
    assert_ptr_equal(tw__redis_share_excess(period(100)), period(0));
    drop_task(period(50));
    assert_null(tw__redis_share_excess(period(100)));
    tw__redis_queue_begin_anew(queue, period(0), START + 9000, START + 800);
    kill_heavy(1);
    assert_null(tw__redis_share_excess(period(101))); /* a period that was replayed is not dead */
    do_kill(queue, period(0), 5, text("no"), START + 9000, &changes);
    assert_ptr_equal(tw__redis_share_excess(period(0)), period(1)); /* it has died last now */
    close_work();
}

/* Otherwise a dump that somebody has made up could have a million users of one payload, and each that leaves it
 * would be looked for among all others. */
static void a_payload_has_a_limited_number_of_users(void **state)
{
    (void)state;
    open_work();
    put_heavy();
    for (unsigned i = 0; i < TW__REDIS_USERS_MAX; i++) {
        kill_heavy(1);
        tw__redis_queue_begin_anew(queue, period(i), START + 9000, START + 800);
    }
    assert_int_equal(tw__redis_task_share(period(0))->users, TW__REDIS_USERS_MAX - 1);
    assert_int_equal(tw__redis_task_share(find(queue, "s"))->users, 2);
    assert_heavy(period(0));
    assert_heavy(period(TW__REDIS_USERS_MAX - 1));
    assert_heavy(find(queue, "s"));
    close_work();
}

static unsigned moves;

static void *move_block(void *old)
{
    void *moved = counted_alloc(counted_usable(old));
    memcpy(moved, old, counted_usable(old));
    counted_free(old);
    moves++;
    return moved;
}

static void *leave_block(void *old)
{
    (void)old;
    moves++;
    return NULL;
}

static void the_blocks_of_a_shared_payload_are_moved_once(void **state)
{
    (void)state;
    open_work();
    put_heavy();
    kill_heavy(3);
    struct tw__redis_task *tasks[] = {find(queue, "s"), period(0), period(1), period(2)};
    for (size_t i = 0; i < 4; i++)
        tw__redis_share_relocate(tasks[i], move_block);
    assert_int_equal(moves, 2);
    for (size_t i = 0; i < 4; i++)
        tw__redis_share_relocate(tasks[i], leave_block);
    assert_int_equal(moves, 4);
    tw__redis_share_relocate(put_one(queue, "plain", START, START), move_block);
    assert_int_equal(moves, 4);
    for (size_t i = 0; i < 4; i++)
        assert_heavy(tasks[i]);
    close_work();
}

/* ---- beginning anew -------------------------------------------------------------------------------------- */

static void assert_new(struct tw__redis_task *task, const char *id)
{
    size_t logged = changes.size;
    tw__redis_queue_begin_anew(queue, task, START + 9000, START + 800);
    task = find(queue, id);
    assert_false(task->has_attempt || task->place == TW__REDIS_IN_READY);
    assert_int_equal(task->tries, 0);
    assert_true(tw__redis_task_waits(task));
    assert_true(tw__redis_task_due(task) == START + 9000 && tw__redis_task_first_due(task) == START + 9000);
    assert_int_equal(changes.size, logged);
    assert_counts(1, 0, 0, 0);
    tw__redis_queue_remove(queue, task, tw__redis_queue_hash(all, text(id)));
}

static void a_task_begins_anew_in_any_state(void **state)
{
    (void)state;
    open_work();
    assert_new(put_repeating("waits", 1, 100, 5), "waits");
    assert_new(leased("leased", 9), "leased");
    struct tw__redis_task *task = put_work(queue, "ready", START + 5, START);
    offer(task, START + 6);
    assert_new(task, "ready");
    do_fail(queue, leased("failed", 9), false, text("no"), START + 600, START + 550, &changes);
    assert_new(find(queue, "failed"), "failed");
    do_kill(queue, leased("dead", 9), 5, text("no"), START + 700, &changes);
    assert_new(find(queue, "dead"), "dead");
    assert_false(tw_timer_pending(&queue->death));
    task = put_one(queue, "held", START + 5, START);
    tw__redis_place_unfile(all, task);
    tw__redis_place_hold_first(all, task, 6000, START + 1002);
    tw__redis_route_of(all, task)->waits += 2;
    assert_new(task, "held");
    close_work();
}

/* ---- copies ---------------------------------------------------------------------------------------------- */

static void assert_next(const char *id)
{
    uint32_t budget = 1000;
    struct tw__redis_task *task = NULL;
    assert_int_equal(tw__redis_place_take(all, START + 3000, TW__REDIS_FROM_ALL, &budget, &task),
                     id == NULL ? TW__REDIS_TAKEN_NONE : TW__REDIS_TAKEN_TASK);
    if (id != NULL)
        assert_bytes_equal(tw__redis_task_id(task), text(id));
}

/* Attempts under way have not begun in a copy. Those tasks come in the order in which they became ready, and
 * not in the order in which their leases end. */
static void a_copy_has_no_leases(void **state)
{
    static const char *const ids[] = {"c", "a", "e", "b", "d"};
    static const uint64_t due[] = {5, 3, 7, 3, 5};
    static const char *const sorted[] = {"a", "b", "c", "d", "e"};
    (void)state;
    open_work();
    for (unsigned i = 0; i < 5; i++)
        put_work(queue, ids[i], START + due[i], START);
    for (unsigned i = 0; i < 5; i++)
        offer(find(queue, ids[i]), START + 8);
    assert_next(NULL); /* from now on the wheel has passed the due times, and does not sort them */
    for (unsigned i = 0; i < 5; i++)
        lease(find(queue, sorted[4 - i]), 100 + i, START + 3020 + i * 10);
    tw__redis_lease_forget_all(queue, queue, START + 3500);
    assert_counts(5, 0, 0, 0);
    for (unsigned i = 0; i < 5; i++) {
        assert_false(find(queue, ids[i])->has_attempt);
        assert_true(tw__redis_task_due(find(queue, ids[i])) == START + due[i]);
    }
    assert_int_equal(tw__redis_task_due(find(queue, "e")), START + 7);
    for (unsigned i = 0; i < 5; i++)
        assert_next(ids[i]);
    assert_next(NULL);
    close_work();
}

/* Many leases, with numbers of filing that wrap: neither the due times nor the leases decide. */
static void the_leases_of_a_copy_end_in_order(void **state)
{
    enum { MANY = 60 };
    unsigned number[MANY];
    char id[8];
    (void)state;
    open_work();
    all->order = UINT32_MAX - MANY - MANY / 2;
    for (unsigned i = 0; i < MANY; i++) {
        number[i] = i * 37 % MANY;
        snprintf(id, sizeof id, "%u", number[i]);
        put_work(queue, id, START + 1 + number[i] % 7, START);
    }
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "%u", i);
        offer(find(queue, id), START + 8);
    }
    assert_next(NULL); /* the wheel passes the due times */
    for (unsigned i = 0; i < MANY; i++) {
        snprintf(id, sizeof id, "%u", number[i]);
        lease(find(queue, id), 1 + i, START + 3020);
    }
    tw__redis_lease_forget_all(queue, queue, START + 3500);
    assert_counts(MANY, 0, 0, 0);
    for (unsigned i = 0; i < MANY; i++) { /* as they became ready */
        snprintf(id, sizeof id, "%u", i);
        assert_next(id);
    }
    assert_next(NULL);
    close_work();
}

/* Copies the queue, and compares the order of the tasks of the copy. Closes both. */
static void assert_copied(const char *first, const char *second)
{
    unsigned chunks;
    struct tw__redis_queue *copy = copy_through_chunks(queue, &chunks);
    tw__redis_lease_forget_all(copy, queue, START);
    tw__redis_queue_detach(queue);
    tw__redis_queue_attach(copy);
    assert_next(first);
    assert_next(second);
    assert_next(NULL);
    close_queue(copy);
    close_work();
}

/* Two tasks that were filed for the same time when it had passed. */
static void open_late_tasks(void)
{
    open_work();
    put_work(queue, "a", START - 5, START);
    put_work(queue, "b", START - 5, START);
}

/* A bug: the second task has a smaller number until it becomes ready too, and came first in the copy. */
static void a_copy_in_the_moment_of_a_take_keeps_the_order(void **state)
{
    (void)state;
    open_late_tasks();
    offer(find(queue, "a"), START);
    do_give_back(queue, lease(find(queue, "a"), 9, START), START, &changes);
    assert_copied("a", "b");
}

/* A bug: a leased task came before each ready task of its time. */
static void a_copy_keeps_the_order_of_ready_and_leased_tasks(void **state)
{
    (void)state;
    open_late_tasks();
    offer(find(queue, "a"), START);
    offer(find(queue, "b"), START);
    lease(find(queue, "b"), 8, START);
    assert_copied("a", "b");
}

/* A bug: of two leases for the same time, the one that ends first made its task the first. */
static void a_copy_does_not_go_by_the_ends_of_leases(void **state)
{
    (void)state;
    open_late_tasks();
    offer(find(queue, "a"), START);
    offer(find(queue, "b"), START);
    lease(find(queue, "b"), 8, START);
    lease(find(queue, "a"), 9, START + 10);
    assert_copied("a", "b");
}

/* A bug: the task that was filed last came first, as its time is the earlier one. */
static void a_copy_keeps_the_order_of_filing_of_past_tasks(void **state)
{
    (void)state;
    open_work();
    put_work(queue, "a", START - 3, START - 10);
    put_work(queue, "b", START - 5, START);
    assert_copied("a", "b");
}

/* A bug: a task that waits for its next attempt went behind the other tasks of its time. In the second round
 * the clock was set back. */
static void a_retry_keeps_its_place_in_a_copy(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_work();
        if (i == 1)
            assert_next(NULL);
        do_fail(queue, leased("a", 9), false, text("no"), START + 900, START + 550, &changes);
        put_work(queue, "b", START + 900, START + 550);
        assert_int_equal(find(queue, "a")->place, i == 0 ? TW__REDIS_IN_WHEEL : TW__REDIS_IN_BEHIND);
        assert_copied("a", "b");
    }
}

/* A task that stands behind an attempt is not ready: it comes behind those that are, also those of a later
 * time, and behind a task that was filed before the copy. */
static void a_copy_has_a_new_task_behind_an_attempt_in_its_turn(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_work();
        offer(put_work(queue, "a", START - 5, START), START);
        put_behind(lease(find(queue, "a"), 9, START), FIRST_OF_WORKERS, START - 3);
        put_work(queue, "b", START - 2, START);
        if (i == 1)
            offer(find(queue, "b"), START);
        assert_copied("b", "a");
    }
}

/* After a restart nobody knows in which order tasks became ready, so their times decide, and they come before
 * those that have become ready since. */
static void a_copy_after_a_restart_goes_by_the_times(void **state)
{
    (void)state;
    for (int i = 0; i < 2; i++) {
        open_work();
        offer(put_work(queue, "b", START - 3, START), START);
        if (i == 1)
            tw__redis_place_begin_here(all);
        offer(put_work(queue, "a", START - 5, START), START);
        if (i == 0)
            tw__redis_place_begin_here(all);
        lease(find(queue, "b"), 8, START);
        lease(find(queue, "a"), 9, START);
        assert_copied(i == 0 ? "a" : "b", i == 0 ? "b" : "a");
    }
}

/* Of a replaced attempt nothing is left. The new task waits in its turn, and one that waits since the end of
 * such an attempt waits on. */
static void a_copy_has_no_replaced_attempts(void **state)
{
    (void)state;
    open_work();
    put_behind(leased("later", 8), FIRST_OF_WORKERS, START + 9000);
    put_behind(leased("target", 9), 0, START + 20);
    put_one(queue, "between", START + 25, START);
    put_behind(leased("ended", 7), FIRST_OF_WORKERS, START + 6);
    do_end_replaced(queue, find(queue, "ended"), START + 30, START + 31, &changes);
    tw__redis_lease_forget_all(queue, queue, START + 40);
    assert_counts(4, 0, 0, 0);
    assert_false(find(queue, "later")->has_attempt || find(queue, "target")->has_attempt);
    assert_true(tw__redis_task_due(find(queue, "later")) == START + 9000);
    assert_attempt(find(queue, "ended"),
                   &(struct tw__redis_attempt){.stage = TW__TASK_FILED, .due = START + 6});
    assert_taken(START + 40, find(queue, "between"));
    assert_taken(START + 40, find(queue, "ended"));
    assert_taken(START + 40, find(queue, "target"));
    assert_taken(START + 40, NULL);
    close_work();
}

static void a_copy_keeps_the_attempts_that_have_failed(void **state)
{
    (void)state;
    open_work();
    do_fail(queue, leased("waits", 9), false, text("no"), START + 9000, START + 550, &changes);
    do_fail(queue, leased("again", 9), false, text("no"), START + 600, START + 550, &changes);
    offer(find(queue, "again"), START + 600);
    lease(find(queue, "again"), 10, START + 700);
    do_fail(queue, leased("ready", 9), false, text("no"), START + 600, START + 550, &changes);
    offer(find(queue, "ready"), START + 600);
    do_kill(queue, leased("dead", 9), 5, text("no"), START + 700, &changes);
    offer(put_work(queue, "first", START + 5, START), START + 6);
    put_work(queue, "plain", START + 8000, START);
    assert_counts(6, 2, 1, 1);
    tw__redis_lease_forget_all(queue, queue, START + 2000);
    assert_counts(6, 1, 0, 1);
    struct tw__redis_attempt wanted = {
        .stage = TW__TASK_FILED, .due = START + 5, .number = 1, .error = text("no")};
    assert_attempt(find(queue, "waits"), &wanted);
    assert_attempt(find(queue, "again"), &wanted);
    assert_attempt(find(queue, "ready"), &wanted);
    assert_true(tw__redis_task_due(find(queue, "waits")) == START + 9000);
    assert_true(tw__redis_task_due(find(queue, "again")) == START + 600);
    assert_true(tw__redis_task_due(find(queue, "ready")) == START + 600);
    wanted = (struct tw__redis_attempt){
        .stage = TW__TASK_BURIED, .due = START + 5, .number = 5, .worker = text("bob"), .error = text("no")};
    assert_attempt(find(queue, "dead"), &wanted);
    assert_true(find(queue, "first")->place == TW__REDIS_IN_READY);
    assert_false(find(queue, "plain")->has_attempt);
    tw__redis_lease_forget_all(queue, queue, START + 2000); /* nothing is left to forget */
    assert_counts(6, 1, 0, 1);
    close_work();
}

/* Of a task with a target only the mark that its call has begun is left. Plan 2 has a limit of lateness. */
static void a_copy_keeps_the_calls_that_a_target_has_refused(void **state)
{
    struct tw__redis_attempt attempt = {.stage = TW__TASK_FILED,
                                        .due = START + 5,
                                        .has_missed_periods = true,
                                        .worker = text(""),
                                        .error = text("")};
    (void)state;
    open_work();
    tw__redis_queue_set_attempt(queue, put_repeating("once", 2, 0, 1), &attempt);
    attempt.missed_periods = 4;
    tw__redis_queue_set_attempt(queue, put_repeating("beat", 2, 100, 3), &attempt);
    tw__redis_lease_forget_all(queue, queue, START + 2000);
    assert_attempt(find(queue, "beat"), &attempt);
    assert_true(turn_of(all, find(queue, "once"), START + 9000).calls);
    assert_true(turn_of(all, find(queue, "beat"), START + 9000).missed_periods == 4);
    close_work();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_lease_is_an_attempt_with_an_end),
        cmocka_unit_test(a_lease_that_is_extended_ends_later),
        cmocka_unit_test(the_ends_of_leases_move_with_the_clock),
        cmocka_unit_test(a_lease_from_elsewhere_is_no_longer_than_its_length),
        cmocka_unit_test(leases_end_and_tasks_are_due_in_the_order_of_time),
        cmocka_unit_test(a_lease_that_begins_after_a_step_back_is_not_shorter),
        cmocka_unit_test(a_lease_that_is_the_first_is_not_shorter_after_a_step_back),
        cmocka_unit_test(a_new_task_stands_behind_the_attempt),
        cmocka_unit_test(a_task_that_is_moved_stands_behind_its_own_attempt),
        cmocka_unit_test(the_end_of_a_replaced_attempt_lets_the_new_task_wait),
        cmocka_unit_test(a_new_task_has_the_place_of_the_lease),
        cmocka_unit_test(a_replaced_attempt_keeps_its_end_after_a_step_of_the_clock),
        cmocka_unit_test(an_attempt_that_failed_is_followed_by_another),
        cmocka_unit_test(a_lapse_is_followed_by_another_attempt),
        cmocka_unit_test(attempts_are_counted_up_to_a_limit),
        cmocka_unit_test(a_task_that_is_given_back_was_never_taken),
        cmocka_unit_test(a_second_attempt_that_is_given_back_leaves_the_first),
        cmocka_unit_test(a_promoted_task_that_is_given_back_is_ready_everywhere),
        cmocka_unit_test(an_ended_lease_does_not_wait_for_a_target),
        cmocka_unit_test(a_lease_knows_when_its_task_was_ready),
        cmocka_unit_test(tasks_that_are_given_back_have_their_old_order),
        cmocka_unit_test(a_period_that_is_given_back_is_still_to_come),
        cmocka_unit_test(a_task_that_is_done_leaves),
        cmocka_unit_test(a_repeating_task_goes_on_from_its_due_time),
        cmocka_unit_test(a_period_that_no_clock_reaches_is_the_last_one),
        cmocka_unit_test(a_call_stands_for_the_same_periods_in_each_attempt),
        cmocka_unit_test(a_call_that_is_given_back_counts_its_periods_anew),
        cmocka_unit_test(a_task_that_is_too_late_leaves),
        cmocka_unit_test(periods_that_are_too_late_are_no_part_of_the_call),
        cmocka_unit_test(a_series_waits_for_the_first_period_that_is_not_too_late),
        cmocka_unit_test(what_comes_later_or_sooner_is_not_late),
        cmocka_unit_test(the_tries_of_a_task_before_do_not_begin_a_call),
        cmocka_unit_test(a_call_dies_with_all_its_periods),
        cmocka_unit_test(burst_and_a_new_task_stand_for_one_period),
        cmocka_unit_test(a_dead_task_stays_with_its_error),
        cmocka_unit_test(a_dead_period_is_a_task_of_its_own),
        cmocka_unit_test(the_last_period_dies_and_ends_the_series),
        cmocka_unit_test(a_period_that_a_target_refused_dies_in_the_same_way),
        cmocka_unit_test(a_dead_period_leaves_a_task_with_its_id_alone),
        cmocka_unit_test(a_series_can_die_as_a_whole),
        cmocka_unit_test(the_deaths_of_a_series_have_one_payload),
        cmocka_unit_test(a_shared_payload_stays_for_the_last_that_has_it),
        cmocka_unit_test(a_series_that_is_put_again_shares_nothing_with_its_old_deaths),
        cmocka_unit_test(the_first_death_beyond_the_limit_is_named),
        cmocka_unit_test(a_payload_has_a_limited_number_of_users),
        cmocka_unit_test(the_blocks_of_a_shared_payload_are_moved_once),
        cmocka_unit_test(a_task_begins_anew_in_any_state),
        cmocka_unit_test(a_copy_has_no_leases),
        cmocka_unit_test(the_leases_of_a_copy_end_in_order),
        cmocka_unit_test(a_copy_in_the_moment_of_a_take_keeps_the_order),
        cmocka_unit_test(a_copy_keeps_the_order_of_ready_and_leased_tasks),
        cmocka_unit_test(a_copy_does_not_go_by_the_ends_of_leases),
        cmocka_unit_test(a_copy_keeps_the_order_of_filing_of_past_tasks),
        cmocka_unit_test(a_retry_keeps_its_place_in_a_copy),
        cmocka_unit_test(a_copy_has_a_new_task_behind_an_attempt_in_its_turn),
        cmocka_unit_test(a_copy_after_a_restart_goes_by_the_times),
        cmocka_unit_test(a_copy_has_no_replaced_attempts),
        cmocka_unit_test(a_copy_keeps_the_attempts_that_have_failed),
        cmocka_unit_test(a_copy_keeps_the_calls_that_a_target_has_refused),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
