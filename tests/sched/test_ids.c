/* SPDX-License-Identifier: MIT
 *
 * Ids, and the memory of tasks.
 */
#include "outcome.h"
#include "support.h"

#include <src/sched/pool.h>

static void a_stale_id_finds_nothing_though_its_place_is_taken_again(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t first, second;
    tw_sched_add_in(sched, ms, log_call, NULL, &first);
    assert_int_equal(tw_sched_cancel(sched, first), TW_CANCEL_CANCELLED);
    tw_sched_next_bound(sched); /* takes it out of the wheel */
    tw_sched_add_in(sched, ms, log_call, NULL, &second);
    assert_int_equal((uint32_t)first, (uint32_t)second); /* the second task has the place of the first */
    assert_int_equal(tw_sched_cancel(sched, first), TW_CANCEL_GONE);
    assert_int_equal(tw_sched_move_in(sched, first, 5 * ms), TW_EGONE);
    tw_sched_run(sched, first);
    assert_int_equal(calls, 0);
    advance(sched, 2 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(tw_sched_cancel(sched, second), TW_CANCEL_GONE);
    tw_sched_free(sched);
}

static void nonsense_ids_find_nothing(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    static const uint64_t nonsense[] = {0,         1, UINT32_MAX, UINT64_MAX, 1ull << 32, 1ull << 32 | 5000,
                                        1ull << 63};
    enum tw_cancel found = TW_CANCEL_AT_WORK;
    _Static_assert(TW_CANCEL_GONE == 0 && TW_CANCEL_CANCELLED == 1 && TW_CANCEL_AT_WORK == 2,
                   "as TW.CANCEL replies");
    tw_sched_add_in(sched, ms, log_call, NULL, NULL);
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        if (nonsense[i] != 1ull << 32) /* the only task */
            assert_int_equal(tw_sched_cancel(sched, nonsense[i]), TW_CANCEL_GONE);
        if (nonsense[i] != 1ull << 32)
            assert_int_equal(tw_sched_move_in(sched, nonsense[i], ms), TW_EGONE);
        tw_sched_run(sched, nonsense[i]);
    }
    assert_int_equal(tw_sched_cancel_wait(sched, UINT64_MAX, &found), 0);
    assert_int_equal(found, TW_CANCEL_GONE);
    assert_int_equal(tw_sched_cancel_wait(sched, 1, NULL), 0);
    assert_int_equal(tw_sched_count(sched), 1);
    tw_sched_free(sched);
}

static void a_place_whose_generations_are_used_up_is_left_alone(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id, last, after;
    tw_sched_add_in(sched, ms, log_call, NULL, &id);
    tw_sched_cancel(sched, id);
    tw_sched_next_bound(sched); /* takes it out of the wheel */
    tw__sched_task_at(&sched->shard[0]->lines[TW__SCHED_PLAIN], 0)->generation = UINT32_MAX;
    tw_sched_add_in(sched, ms, log_call, NULL, &last);
    assert_int_equal(last >> 32, UINT32_MAX);
    assert_int_equal(tw_sched_cancel(sched, last), TW_CANCEL_CANCELLED);
    tw_sched_next_bound(sched);
    tw_sched_add_in(sched, ms, log_call, NULL, &after);
    assert_int_not_equal((uint32_t)after, (uint32_t)last);
    assert_int_equal(tw_sched_cancel(sched, last), TW_CANCEL_GONE);
    tw_sched_free(sched);
}

static void cancelled_memory_is_used_again_at_once(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_add_in(sched, 3600000 * ms, log_call, NULL, &id);
    uint64_t memory = stats_of(sched).memory;
    for (int i = 0; i < 100000; i++) {
        tw_sched_cancel(sched, id);
        tw_sched_add_in(sched, 3600000 * ms, log_call, NULL, &id);
    }
    assert_int_equal(stats_of(sched).memory, memory);
    tw_sched_free(sched);
}

/* A cancelled task leaves the wheel a little after tw_sched_cancel() has returned, and no caller can tell. */
static void cancelled_memory_serves_when_there_is_no_other(void **state)
{
    (void)state;
    enum { CHUNK = 1024 };
    static uint64_t id[CHUNK];
    for (int cancelled = 0; cancelled <= 20; cancelled++) {
        requests_left = 1000;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.memory = scarce_memory});
        for (uint64_t i = 0; i < CHUNK; i++)
            assert_int_equal(tw_sched_add_in(sched, (1 + i) * ms, log_call, NULL, &id[i]), 0);
        requests_left = 0;
        for (int i = 0; i < cancelled; i++)
            assert_int_equal(tw_sched_cancel(sched, id[i]), TW_CANCEL_CANCELLED);
        for (int i = 0; i < cancelled; i++)
            assert_int_equal(tw_sched_add_in(sched, 2000 * ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, NULL), TW_ENOMEM);
        assert_int_equal(tw_sched_count(sched), CHUNK);
        advance(sched, 1500 * ms);
        assert_int_equal(calls, CHUNK - cancelled);
        tw_sched_free(sched);
    }
}

static void the_next_event_is_not_a_cancelled_one(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_add_at(sched, 5 * ms, log_call, NULL, &id);
    tw_sched_add_at(sched, 9 * ms, log_call, NULL, NULL);
    tw_sched_cancel(sched, id);
    assert_int_equal(tw_sched_next_bound(sched), 9 * ms);
    assert_int_equal(try_drain(sched, NULL, NULL), 1);
    assert_int_equal(tw_sched_next_bound(sched), TW_NEVER);
    tw_sched_free(sched);
}

static void get_itself(struct tw_sched *sched, const struct tw_task *task)
{
    struct tw_task got;
    log_call(sched, task);
    assert_int_equal(tw_sched_get(sched, task->id, &got, sizeof got), task->left > 0 ? 0 : TW_EGONE);
}

static void a_task_can_be_looked_up_by_its_id(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_task task;
    uint64_t once, twice;
    int thing;
    struct tw_every every = {.first_ns = 7 * ms, .period_ns = 3 * ms, .times = 2};
    tw_sched_add_at(sched, 5 * ms, get_itself, &thing, &once);
    tw_sched_add_every(sched, &every, get_itself, &thing, &twice);
    assert_int_equal(tw_sched_get(sched, once, &task, sizeof task), 0);
    assert_int_equal(task.id, once);
    assert_ptr_equal(task.arg, &thing);
    assert_true(task.fn == get_itself);
    assert_int_equal(task.due_ns, 5 * ms);
    assert_int_equal(task.period_ns, 0);
    assert_int_equal(tw_sched_get(sched, twice, &task, sizeof task), 0);
    assert_true(task.fn == get_itself);
    assert_int_equal(task.due_ns, 7 * ms);
    assert_int_equal(task.period_ns, 3 * ms);
    assert_int_equal(task.left, 1);
    advance(sched, 8 * ms);
    assert_int_equal(calls, 2);
    assert_true(seen[0].fn == get_itself);
    assert_int_equal(tw_sched_get(sched, once, &task, sizeof task), TW_EGONE);
    assert_int_equal(tw_sched_get(sched, twice, &task, sizeof task), 0);
    assert_int_equal(task.due_ns, 10 * ms);
    tw_sched_cancel(sched, twice);
    assert_int_equal(tw_sched_get(sched, twice, &task, sizeof task), TW_EGONE);
    assert_int_equal(tw_sched_get(sched, UINT64_MAX, &task, sizeof task), TW_EGONE);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stale_id_finds_nothing_though_its_place_is_taken_again),
        cmocka_unit_test(nonsense_ids_find_nothing),
        cmocka_unit_test(a_place_whose_generations_are_used_up_is_left_alone),
        cmocka_unit_test(cancelled_memory_is_used_again_at_once),
        cmocka_unit_test(cancelled_memory_serves_when_there_is_no_other),
        cmocka_unit_test(the_next_event_is_not_a_cancelled_one),
        cmocka_unit_test(a_task_can_be_looked_up_by_its_id),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
