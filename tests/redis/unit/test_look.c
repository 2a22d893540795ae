/* SPDX-License-Identifier: MIT
 *
 * Looking for tasks of a queue. The model of test_queues.c looks for tasks too.
 */
#include "fixture.h"

#include "tests/support/cmocka.h"

#include <src/redis/queues/lease.h>
#include <src/redis/queues/look.h>
#include <src/redis/queues/place.h>
#include <src/redis/queues/queue.h>
#include <stdio.h>

/* The search in a large queue goes through the wheel, further and further ahead. */
static void the_earliest_are_found_however_far_apart_they_are(void **state)
{
    enum { MANY = 300 };
    struct tw__redis_task *task[MANY], *found[MANY];
    (void)state;
    open_all();
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    for (unsigned i = 0; i < MANY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        task[i] = put_one(queue, id, START + 1 + i * UINT64_C(5000), START);
    }
    for (unsigned from = 0; from < MANY; from += 7) {
        for (unsigned limit = 1; limit < MANY; limit += 13) {
            unsigned left = MANY - from, wanted = limit < left ? limit : left;
            uint64_t start = tw__redis_task_due(task[from]);
            assert_int_equal(tw__redis_look_earliest(queue, start, UINT64_MAX, START, limit, found), wanted);
            assert_memory_equal(found, task + from, wanted * sizeof found[0]);
        }
    }
    close_one(queue);
}

/* Dead tasks are in the table and in no place where the search looks: it ends all the same. */
static void a_search_ends_that_finds_nothing(void **state)
{
    enum { MANY = 300 };
    struct tw__redis_task *found[2];
    struct tw__redis_buffer log = {0};
    (void)state;
    open_all();
    struct tw__redis_queue *queue = tw__redis_queue_new(all);
    for (unsigned i = 0; i < MANY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        struct tw__redis_task *task = put_one(queue, id, START + 1, START);
        do_kill_series(queue, task, 1, text("refused"), START, &log);
    }
    tw__redis_buffer_free(&log, &all->memory);
    assert_int_equal(tw__redis_look_earliest(queue, 0, UINT64_MAX, START, 1, found), 0);
    struct tw__redis_task *waiting = put_one(queue, "waiting", START + 5000000, START);
    assert_int_equal(tw__redis_look_earliest(queue, 0, UINT64_MAX, START, 2, found), 1);
    assert_ptr_equal(found[0], waiting);
    close_one(queue);
}

/* Late tasks in a line are counted, and not looked at: the line leads nowhere meanwhile. */
static void a_search_passes_over_the_line_of_late_tasks(void **state)
{
    enum { MANY = 2000 };
    struct tw__redis_states states;
    struct tw__redis_task *found[2];
    struct tw__link line;
    (void)state;
    struct tw__redis_queue *queue = open_one();
    for (unsigned i = 0; i < MANY; i++) {
        char id[16];
        snprintf(id, sizeof id, "%u", i);
        put_one(queue, id, START + 1 + i % 7, START);
    }
    while (tw__redis_place_collect(all, START + 100, 10000))
        ;
    struct tw__redis_task *waiting = put_one(queue, "waiting", START + 5000, START + 100);
    line = all->late;
    all->late.next = NULL; /* who follows it dies */
    assert_int_equal(tw__redis_look_earliest(queue, START + 101, UINT64_MAX, START + 100, 2, found), 1);
    assert_ptr_equal(found[0], waiting);
    tw__redis_look_states(queue, START + 100, &states);
    assert_int_equal(states.ready, MANY);
    assert_int_equal(states.waiting, 1);
    all->late = line;
    /* The clock was set back: then some tasks of the line are waiting. */
    tw__redis_look_states(queue, START + 3, &states);
    assert_true(states.waiting > 1 && states.waiting + states.ready == MANY + 1);
    assert_int_equal(tw__redis_look_earliest(queue, START + 4, UINT64_MAX, START + 3, 1, found), 1);
    assert_int_equal(tw__redis_task_due(found[0]), START + 4);
    close_one(queue);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_earliest_are_found_however_far_apart_they_are),
        cmocka_unit_test(a_search_ends_that_finds_nothing),
        cmocka_unit_test(a_search_passes_over_the_line_of_late_tasks),
    };
    use_seed();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
