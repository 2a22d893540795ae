/* SPDX-License-Identifier: MIT
 *
 * The checkers find each fault, and name the broken invariant. test_table.c has the faults of tables.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <base/list.h>
#include <src/redis/queues/check.h>
#include <src/redis/queues/lease.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <src/redis/queues/route.h>
#include <src/redis/queues/sums.h>

/* Three queues, with a task in each place. All tasks belong to the attached queue, except one task in the
 * wheel, which belongs to the detached queue, and the stopped task of the paused queue. */
static struct tw__redis_queue *queue, *detached, *paused;
static struct tw__redis_task *filed, *behind, *late, *past, *held, *stopped, *ready, *leased, *again, *dead;
static struct tw__redis_route *refused, *other;

static struct tw__redis_task *put_to(struct tw__redis_queue *to, const char *id, unsigned plan, uint64_t due)
{
    struct tw__redis_task_plan task = {.id = text(id), .due = due, .packed = text("\1\1p")};
    struct tw__redis_task *made = tw__redis_task_new(&task, &counted);
    tw__redis_queue_put(to, made, tw__redis_route_for(to, &plan_of[plan]), tw__redis_queue_hash(all, text(id)),
                        NULL, START);
    return made;
}

/* Tasks for workers, and the stopped task. */
static void open_attempts(void)
{
    struct lease lease = {.token = 7, .ms = 9000, .worker = text("bob")};
    struct tw__redis_buffer log = {0};
    tw__redis_queue_attach(paused = tw__redis_queue_new(all));
    tw__redis_sums_pause(paused, true);
    stopped = put_to(paused, "stopped", 1, START + 1);
    tw__redis_place_unfile(all, stopped);
    tw__redis_place_stop(all, stopped);
    struct tw__redis_task **task[] = {&leased, &again, &ready, &dead};
    static const char *const ids[] = {"leased", "again", "ready", "dead"};
    for (unsigned i = 0; i < 4; i++) {
        *task[i] = put_to(queue, ids[i], FIRST_OF_WORKERS, START + 1);
        tw__redis_place_unfile(all, *task[i]);
        tw__redis_place_offer(all, *task[i], START + 1);
    }
    leased = begin_lease(queue, leased, &lease, START + 3000, &log);
    again = begin_lease(queue, again, &lease, START + 3000, &log);
    do_fail(queue, again, false, text("no"), START + 9000, START + 3000, &log);
    again = find(queue, "again");
    do_kill(queue, dead, 5, text("no"), START + 3000, &log);
    dead = find(queue, "dead");
    tw__redis_buffer_free(&log, &counted);
}

static void open_places(void)
{
    uint32_t budget = 100;
    struct tw__redis_task *taken;
    queue = open_one();
    detached = tw__redis_queue_new(all);
    put_to(detached, "detached", 1, START + 9000);
    held = put_to(queue, "held", 1, START + 1);
    late = put_to(queue, "late", 6, START + 2);
    assert_taken(START + 3000, held);
    assert_taken(START + 3000, late);
    tw__redis_place_hold_first(all, held, 6000, START + 1002);
    tw__redis_place_file_late(all, late);
    assert_int_equal(tw__redis_place_take(all, START + 3000, TW__REDIS_FROM_WHEELS, &budget, &taken),
                     TW__REDIS_TAKEN_NONE);
    tw__redis_place_clock_back(all, START + 1000);
    behind = put_to(queue, "behind", 6, START + 2000);
    past = put_to(queue, "past", 6, START);
    filed = put_to(queue, "filed", 6, START + 5000);
    refused = tw__redis_route_of(all, held);
    other = tw__redis_route_of(all, filed);
    open_attempts();
    assert_null(tw__redis_check_all(all));
}

static void close_places(void)
{
    assert_null(tw__redis_check_all(all));
    close_queue(detached);
    close_queue(paused);
    close_one(queue);
}

static void assert_fault(const char *name)
{
    const char *fault = tw__redis_check_all(all);
    assert_non_null(fault);
    assert_memory_equal(fault, name, strlen(name));
}

/* Breaks an invariant with another value of a member, and restores the value afterwards. */
#define BREAK(member, value, name)                                                                             \
    do {                                                                                                       \
        __typeof__((member) + 0) before_ = (member); /* + 0: a bit-field has no type */                        \
        (member) = (value);                                                                                    \
        assert_fault(name);                                                                                    \
        (member) = before_;                                                                                    \
        assert_null(tw__redis_check_all(all));                                                                 \
    } while (0)

static void a_task_that_is_not_where_it_says_is_seen(void **state)
{
    (void)state;
    open_places();
    BREAK(filed->place, TW__REDIS_IN_BEHIND, "P2: a task in a wheel says");
    BREAK(behind->place, TW__REDIS_IN_WHEEL, "P2: a task in a wheel says");
    BREAK(late->place, TW__REDIS_IN_READY, "P2: a task in a line says");
    BREAK(past->place, TW__REDIS_IN_HELD, "P2: a task in a line says");
    BREAK(held->place, TW__REDIS_IN_LINE, "P2: a task in a line says");
    BREAK(late->parked.link.prev, &past->parked.link, "P1: a task in a line");
    BREAK(all->lined_ms, START + 1, "P6: a task in a line is due later");
    BREAK(queue->back, late, "P7: the task that a queue got back last");
    BREAK(detached->back, ready, "P7: the task that a queue got back last");
    close_places();
}

static void a_task_in_the_wrong_stage_is_seen(void **state)
{
    (void)state;
    open_places();
    BREAK(ready->place, TW__REDIS_IN_LINE, "P2: a task in a line says");
    BREAK(stopped->place, TW__REDIS_IN_READY, "P2: a task in a line says");
    BREAK(dead->rest[0], TW__TASK_FILED - TW__TASK_FILED, "P2: a task is in the line of dead tasks");
    BREAK(again->rest[0], TW__TASK_BURIED - TW__TASK_FILED, "P2: a task in a wheel says");
    BREAK(again->rest[0], TW__TASK_TAKEN - TW__TASK_FILED, "P4: the count of leased tasks");
    BREAK(leased->rest[0], TW__TASK_FILED - TW__TASK_FILED, "P4: the count of leased tasks");
    BREAK(ready->place, TW__REDIS_NOWHERE, "P4: the count of tasks in lines");
    BREAK(dead->place, TW__REDIS_IN_LINE, "P2: a task in a line says");
    close_places();
}

static void a_leased_task_in_the_wheel_of_tasks_is_seen(void **state)
{
    (void)state;
    open_places();
    tw_wheel_cancel(all->leases, &leased->timer);
    assert_int_equal(tw_wheel_add_at(all->wheel, &leased->timer, START + 12000), 0);
    assert_fault("P2: a task in a wheel says");
    leased->place = TW__REDIS_IN_WHEEL;
    assert_fault("P2: a leased task is in another wheel");
    leased->place = TW__REDIS_IN_LEASES;
    tw_wheel_cancel(all->wheel, &leased->timer);
    tw_wheel_cancel(all->wheel, &filed->timer);
    assert_int_equal(tw_wheel_add_at(all->leases, &filed->timer, START + 5000), 0);
    assert_int_equal(tw_wheel_add_at(all->leases, &leased->timer, START + 12000), 0);
    assert_fault("P2: a task in a wheel says");
    filed->place = TW__REDIS_IN_LEASES;
    assert_fault("P2: a leased task is in another wheel");
    filed->place = TW__REDIS_IN_WHEEL;
    tw_wheel_cancel(all->leases, &filed->timer);
    assert_int_equal(tw_wheel_add_at(all->wheel, &filed->timer, START + 5000), 0);
    close_places();
}

static void a_stopped_task_of_a_queue_that_is_not_paused_is_seen(void **state)
{
    (void)state;
    open_places();
    BREAK(paused->paused, false, "C2"); /* the sums are checked first */
    tw__redis_sums_pause(paused, false);
    assert_fault("P2: a task is stopped");
    tw__redis_sums_pause(paused, true);
    close_places();
}

static void a_paused_queue_behind_others_is_seen(void **state)
{
    (void)state;
    open_places();
    tw__list_remove(&paused->all);
    tw__list_append(&all->attached, &paused->all);
    assert_fault("C5");
    tw__list_remove(&paused->all);
    tw__redis_sums_list(paused);
    close_places();
}

static void a_queue_that_does_not_wait_for_its_dead_tasks_is_seen(void **state)
{
    struct tw__redis_buffer log = {0};
    struct tw_timer nobody;
    (void)state;
    open_places();
    tw_wheel_cancel(all->deaths, &queue->death);
    assert_fault("P5: a queue with dead tasks");
    tw__list_append(&all->stale, &queue->stale);
    assert_null(tw__redis_check_all(all));
    tw__list_append(&all->stale, &detached->stale);
    assert_fault("P5: a queue with dead tasks");
    tw__list_remove(&detached->stale);
    tw__redis_place_let_stay(queue);
    assert_true(tw_timer_pending(&queue->death));
    assert_int_equal(tw_wheel_add_at(all->deaths, &detached->death, START), 0);
    assert_fault("P5: a queue with dead tasks");
    tw_wheel_cancel(all->deaths, &detached->death);
    tw_timer_init(&nobody);
    assert_int_equal(tw_wheel_add_at(all->deaths, &nobody, START), 0);
    assert_fault("P5: the wheel of deaths");
    tw_wheel_cancel(all->deaths, &nobody);
    do_kill(queue, ready, 5, text("no"), START + 3000, &log);
    tw__redis_buffer_free(&log, &counted);
    BREAK(all->dead_limit, 1, "P5: a queue with too many dead tasks");
    close_places();
}

/* Two wrong counts of one queue whose sum is right. */
static void counts_of_lines_that_are_exchanged_are_seen(void **state)
{
    (void)state;
    open_places();
    tw__redis_sums_ready(queue, 1);
    queue->dead_count--;
    all->dead_count--;
    assert_fault("P4: the count of tasks in lines");
    queue->dead_count++;
    all->dead_count++;
    tw__redis_sums_in_line(queue, -1);
    assert_fault("P4: the count of tasks in lines");
    tw__redis_sums_in_line(queue, 1);
    tw__redis_sums_held(queue, -1);
    assert_fault("P4: the count of tasks in lines");
    tw__redis_sums_held(queue, 1);
    tw__redis_sums_ready(queue, -1);
    close_places();
}

static void a_task_that_is_in_no_table_is_seen(void **state)
{
    (void)state;
    open_places();
    struct tw__redis_task_plan plan = {.id = text("lost"), .due = START + 7000, .packed = text("\1\1p")};
    struct tw__redis_task *lost = tw__redis_task_new(&plan, &counted);
    lost->route = other->index;
    tw__redis_place_file(all, lost, START + 7000, START);
    assert_fault("P1: a wheel");
    tw__redis_place_unfile(all, lost);
    counted_free(lost);
    close_places();
}

static void a_line_that_waits_for_nothing_is_seen(void **state)
{
    (void)state;
    open_places();
    tw_wheel_cancel(all->retries, &refused->retry);
    assert_fault("P3: a line");
    tw__list_append(&all->ready, &refused->ready);
    assert_null(tw__redis_check_all(all));
    assert_int_equal(tw_wheel_add_at(all->retries, &refused->retry, 7000), 0); /* waits, and is ready */
    assert_fault("P3: a line");
    tw__list_remove(&refused->ready);
    assert_int_equal(tw_wheel_add_at(all->retries, &other->retry, 7000), 0); /* a retry without a line */
    assert_fault("P3: a line");
    tw_wheel_cancel(all->retries, &other->retry);
    struct tw_timer nobody;
    tw_timer_init(&nobody);
    assert_int_equal(tw_wheel_add_at(all->retries, &nobody, 7000), 0);
    assert_fault("P3: a wait");
    tw_wheel_cancel(all->retries, &nobody);
    close_places();
}

static void a_wrong_count_is_seen(void **state)
{
    (void)state;
    open_places();
    detached->in_line++; /* no sum counts it */
    assert_fault("P4");
    detached->in_line--;
    detached->held++;
    assert_fault("P4");
    detached->held--;
    BREAK(queue->attached, false, "C1");
    BREAK(detached->attached, true, "C1");
    BREAK(all->count, all->count + 1, "C2");
    BREAK(all->empty, 1, "C2");
    BREAK(all->paused, 0, "C2");
    BREAK(all->stopped, 0, "C2");
    BREAK(all->ready_count, 0, "C2");
    BREAK(all->leased_count, all->leased_count + 1, "C2");
    BREAK(all->dead_count, all->dead_count - 1, "C2");
    BREAK(all->dead_bytes, all->dead_bytes - 1, "C2");
    BREAK(queue->ready_count, queue->ready_count + 1, "P4: the count of tasks in lines");
    BREAK(queue->dead_count, queue->dead_count - 1, "P4: the count of tasks in lines");
    BREAK(queue->leased_count, queue->leased_count + 1, "P4: the count of leased tasks");
    BREAK(paused->in_line, 0, "P4: the count of tasks in lines");
    BREAK(all->tasks, all->tasks + 1, "C2");
    BREAK(all->in_line, all->in_line - 1, "C2");
    BREAK(all->held, 0, "C2");
    BREAK(all->bytes, all->bytes + 1, "C2");
    BREAK(all->too_large, all->too_large + 1, "C2");
    BREAK(all->reaping, 0, "C2");
    BREAK(queue->bytes, queue->bytes + 1, "C3");
    BREAK(queue->dead_bytes, 0, "C6");
    BREAK(queue->too_large, !queue->too_large, "C4");
    BREAK(detached->too_large, true, "C4");
    close_places();
}

static void a_wrong_share_is_seen(void **state)
{
    (void)state;
    open_places();
    struct tw__redis_buffer log = {0};
    struct tw__redis_task_plan series = {
        .id = text("series"), .due = START + 5000, .every = 60000, .times = 9, .packed = text("\1\1p")};
    tw__redis_queue_put(queue, tw__redis_task_new(&series, &counted), tw__redis_route_for(queue, &plan_of[6]),
                        tw__redis_queue_hash(all, series.id), NULL, START + 3000);
    for (unsigned i = 0; i < 2; i++)
        do_kill(queue, find(queue, "series"), 5, text("no"), START + 3000, &log);
    tw__redis_buffer_free(&log, &counted);
    struct tw__redis_share *share = tw__redis_task_share(find(queue, "series"));
    assert_int_equal(share->users, 3);
    BREAK(share->users, 2, "U1: a task is not among the users");
    BREAK(share->user[0], filed, "U1: a task is not among the users");
    BREAK(share->user[2], share->user[1], "U1: a task is not among the users"); /* and the other one is twice */
    share->user[3] = share->user[0];
    BREAK(share->users, 4, "U1: a task is twice");
    share->user[3] = filed;
    BREAK(share->users, 4, "U1: a user of a payload");
    BREAK(share->dead, 0, "U2");
    BREAK(share->dead, 3, "U2");
    close_places();
}

static void a_wrong_route_is_seen(void **state)
{
    (void)state;
    open_places();
    struct tw__redis_route *foreign = tw__redis_route_for(detached, &plan_of[1]);
    BREAK(refused->index, other->index, "R1");
    BREAK(refused->index, all->routes, "R1");
    BREAK(refused->queue, detached, "R1");
    BREAK(filed->route, foreign->index, "R1");
    BREAK(filed->route, all->routes, "R1");
    BREAK(refused->tasks, refused->tasks + 1, "R2");
    BREAK(other->tasks, other->tasks - 1, "R2");
    BREAK(refused->tasks, 0, "R3");
    BREAK(queue->longest_route, refused->key_size - 1, "R4");
    BREAK(held->route, other->index, "P2: a task in the line of another route");
    close_places();
}

static void a_wrong_table_is_seen(void **state)
{
    (void)state;
    open_places();
    BREAK(queue->tasks.count, queue->tasks.count + 1, "T6");
    BREAK(detached->routes.bytes, detached->routes.bytes + 1, "T6");
    close_places();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_task_that_is_not_where_it_says_is_seen),
        cmocka_unit_test(a_task_in_the_wrong_stage_is_seen),
        cmocka_unit_test(a_leased_task_in_the_wheel_of_tasks_is_seen),
        cmocka_unit_test(a_stopped_task_of_a_queue_that_is_not_paused_is_seen),
        cmocka_unit_test(a_paused_queue_behind_others_is_seen),
        cmocka_unit_test(a_queue_that_does_not_wait_for_its_dead_tasks_is_seen),
        cmocka_unit_test(counts_of_lines_that_are_exchanged_are_seen),
        cmocka_unit_test(a_task_that_is_in_no_table_is_seen),
        cmocka_unit_test(a_line_that_waits_for_nothing_is_seen),
        cmocka_unit_test(a_wrong_count_is_seen),
        cmocka_unit_test(a_wrong_share_is_seen),
        cmocka_unit_test(a_wrong_route_is_seen),
        cmocka_unit_test(a_wrong_table_is_seen),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
