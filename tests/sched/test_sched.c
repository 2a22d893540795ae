/* SPDX-License-Identifier: MIT
 *
 * The scheduler's behaviour, a test per sentence of sched.h, on a virtual clock.
 */
#include "tests/support/cmocka.h"

#include <src/sched/pool.h>
#include <stdlib.h>
#include <tickwheel/sched.h>

static const uint64_t ms = 1000000;

/* What callbacks have seen, in order. */
enum { LOG_MAX = 4096 };
static struct tw_task seen[LOG_MAX];
static uint64_t seen_at[LOG_MAX];
static int calls;

static void log_call(struct tw_sched *sched, const struct tw_task *task)
{
    assert_true(calls < LOG_MAX);
    seen[calls] = *task;
    seen_at[calls++] = tw_sched_now(sched);
}

static struct tw_sched *sched_of(struct tw_sched_options options)
{
    struct tw_sched *sched = NULL;
    options.clock = TW_SCHED_VIRTUAL;
    calls = 0;
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    return sched;
}

static struct tw_sched *plain_sched(void)
{
    return sched_of((struct tw_sched_options){.start_ns = 0});
}

static void advance(struct tw_sched *sched, uint64_t ns)
{
    assert_int_equal(tw_sched_advance(sched, tw_sched_now(sched) + ns), 0);
}

static struct tw_sched_stats stats_of(const struct tw_sched *sched)
{
    struct tw_sched_stats stats;
    tw_sched_stats(sched, &stats);
    assert_int_equal(stats.added + stats.again, stats.fired + stats.cancelled + stats.handed + stats.pending);
    return stats;
}

/* A source of memory that fails at the n-th request, and knows what is out. */
static int requests_left;
static long blocks_out;
static size_t bytes_out;

static void *scarce_memory(void *arg, void *old, size_t size)
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

/* ---- options ------------------------------------------------------------------------------------------------- */

static void nop_execute(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched, (void)id;
}

static void expect_refused(struct tw_sched_options options, const char *name, const char *value)
{
    char message[200] = "";
    struct tw_sched *sched = NULL;
    int error = tw_sched_check(&options, message, sizeof message);
    assert_true(error == TW_EINVAL || error == TW_EGEOMETRY);
    assert_non_null(strstr(message, name));
    assert_non_null(strstr(message, value));
    assert_int_equal(tw_sched_new(&sched, &options), error);
    assert_null(sched);
}

static void a_bad_option_is_named_with_its_value_and_range(void **state)
{
    (void)state;
    struct tw_geometry g = TW_DEFAULT;
    g.level[0].slots = 1;
    expect_refused((struct tw_sched_options){.tick_ns = 999}, "tick_ns", "999");
    expect_refused((struct tw_sched_options){.tick_ns = 3600000000001}, "tick_ns", "3600000000001");
    expect_refused((struct tw_sched_options){.shards = 65}, "shards", "65");
    expect_refused((struct tw_sched_options){.workers = 1025}, "workers", "1025");
    expect_refused((struct tw_sched_options){.workers = 2, .execute = nop_execute}, "workers", "2");
    expect_refused((struct tw_sched_options){.clock = (enum tw_sched_clock)3}, "clock", "3");
    expect_refused((struct tw_sched_options){.clock = TW_SCHED_VIRTUAL, .workers = 1}, "workers", "1");
    expect_refused((struct tw_sched_options){.start_ns = 7}, "start_ns", "7");
    expect_refused((struct tw_sched_options){.geometry = &g}, "level 0", "1");
}

static void options_may_be_left_out(void **state)
{
    (void)state;
    struct tw_sched *sched = NULL;
    assert_int_equal(tw_sched_new(&sched, NULL), 0);
    tw_sched_free(sched);
    tw_sched_free(NULL);
}

/* ---- running once ----------------------------------------------------------------------------------------------- */

static void a_task_runs_on_the_first_tick_that_is_not_before_its_time(void **state)
{
    (void)state;
    static const uint64_t ticks[] = {1000, 1000000, 999983, 60000000000};
    static const uint64_t starts[] = {0, 1, 123456789012345, UINT64_MAX / 2};
    for (size_t t = 0; t < 4; t++)
        for (size_t s = 0; s < 4; s++)
            for (uint64_t part = 0; part <= 20; part++) {
                struct tw_sched *sched =
                    sched_of((struct tw_sched_options){.tick_ns = ticks[t], .start_ns = starts[s]});
                uint64_t due_ns = starts[s] + 3 * ticks[t] + part * ticks[t] / 20;
                tw_sched_at(sched, due_ns, log_call, NULL, NULL);
                advance(sched, 10 * ticks[t]);
                assert_int_equal(calls, 1);
                assert_true(seen_at[0] >= due_ns);
                assert_true(seen_at[0] - due_ns < ticks[t]);
                assert_int_equal(seen[0].due_ns, due_ns);
                assert_int_equal(seen[0].late_ns, seen_at[0] - due_ns);
                tw_sched_free(sched);
            }
}

static void tasks_of_one_tick_run_in_the_order_of_adding(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    for (uintptr_t i = 0; i < 1000; i++)
        tw_sched_after(sched, (i % 3 == 0 ? 500 : i % 3 == 1 ? 70 : 5) * ms, log_call, (void *)i, NULL);
    advance(sched, 1000 * ms);
    assert_int_equal(calls, 1000);
    for (int i = 1; i < calls; i++)
        assert_true(seen_at[i] > seen_at[i - 1] || (uintptr_t)seen[i].arg > (uintptr_t)seen[i - 1].arg);
    tw_sched_free(sched);
}

static void a_time_that_has_passed_means_the_next_tick(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    advance(sched, 100 * ms);
    tw_sched_at(sched, 3 * ms, log_call, NULL, NULL);
    tw_sched_after(sched, 0, log_call, NULL, NULL);
    advance(sched, ms);
    assert_int_equal(calls, 2);
    tw_sched_free(sched);
}

static void the_end_of_time_never_comes_and_sums_saturate(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    advance(sched, 5 * ms);
    tw_sched_after(sched, UINT64_MAX, log_call, NULL, NULL);
    tw_sched_after(sched, UINT64_MAX - 5, log_call, NULL, NULL);
    assert_int_equal(tw_sched_advance(sched, UINT64_MAX - 1), 0);
    assert_int_equal(calls, 0);
    assert_int_equal(tw_sched_pending(sched), 2);
    tw_sched_free(sched);
}

static void the_id_is_there_before_the_task_can_run(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id = 0;
    tw_sched_after(sched, ms, log_call, NULL, &id);
    assert_int_not_equal(id, 0);
    advance(sched, 2 * ms);
    assert_int_equal(seen[0].id, id);
    tw_sched_free(sched);
}

/* ---- ids --------------------------------------------------------------------------------------------------------- */

static void a_stale_id_finds_nothing_though_its_place_is_taken_again(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t first, second;
    tw_sched_after(sched, ms, log_call, NULL, &first);
    assert_int_equal(tw_sched_cancel(sched, first), TW_CANCELLED);
    tw_sched_next(sched); /* takes it out of the wheel */
    tw_sched_after(sched, ms, log_call, NULL, &second);
    assert_int_equal((uint32_t)first, (uint32_t)second); /* the same place */
    assert_int_equal(tw_sched_cancel(sched, first), TW_GONE);
    assert_int_equal(tw_sched_move_after(sched, first, 5 * ms), TW_EGONE);
    tw_sched_run(sched, first);
    assert_int_equal(calls, 0);
    advance(sched, 2 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(tw_sched_cancel(sched, second), TW_GONE);
    tw_sched_free(sched);
}

static void nonsense_ids_find_nothing(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    static const uint64_t nonsense[] = {0,         1, UINT32_MAX, UINT64_MAX, 1ull << 32, 1ull << 32 | 5000,
                                        1ull << 63};
    enum tw_cancelled found = TW_RUNNING;
    tw_sched_after(sched, ms, log_call, NULL, NULL);
    for (size_t i = 0; i < sizeof nonsense / sizeof nonsense[0]; i++) {
        if (nonsense[i] != 1ull << 32) /* the one task there is */
            assert_int_equal(tw_sched_cancel(sched, nonsense[i]), TW_GONE);
        if (nonsense[i] != 1ull << 32)
            assert_int_equal(tw_sched_move_after(sched, nonsense[i], ms), TW_EGONE);
        tw_sched_run(sched, nonsense[i]);
    }
    assert_int_equal(tw_sched_cancel_wait(sched, UINT64_MAX, &found), 0);
    assert_int_equal(found, TW_GONE);
    assert_int_equal(tw_sched_cancel_wait(sched, 1, NULL), 0);
    assert_int_equal(tw_sched_pending(sched), 1);
    tw_sched_free(sched);
}

static void a_place_whose_generations_are_used_up_is_left_alone(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id, last, after;
    tw_sched_after(sched, ms, log_call, NULL, &id);
    tw_sched_cancel(sched, id);
    tw_sched_next(sched); /* takes it out of the wheel */
    tw__sched_task_at(&sched->shard[0], 0)->generation = UINT32_MAX;
    tw_sched_after(sched, ms, log_call, NULL, &last);
    assert_int_equal(last >> 32, UINT32_MAX);
    assert_int_equal(tw_sched_cancel(sched, last), TW_CANCELLED);
    tw_sched_next(sched);
    tw_sched_after(sched, ms, log_call, NULL, &after);
    assert_int_not_equal((uint32_t)after, (uint32_t)last);
    assert_int_equal(tw_sched_cancel(sched, last), TW_GONE);
    tw_sched_free(sched);
}

static void cancelled_memory_is_used_again_at_once(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_after(sched, 3600000 * ms, log_call, NULL, &id);
    uint64_t memory = stats_of(sched).memory;
    for (int i = 0; i < 100000; i++) {
        tw_sched_cancel(sched, id);
        tw_sched_after(sched, 3600000 * ms, log_call, NULL, &id);
    }
    assert_int_equal(stats_of(sched).memory, memory);
    tw_sched_free(sched);
}

/* A cancelled task leaves the wheel a little later than its caller is told; nobody can tell. */
static void cancelled_memory_serves_when_there_is_no_other(void **state)
{
    (void)state;
    enum { CHUNK = 1024 };
    static uint64_t id[CHUNK];
    for (int cancelled = 0; cancelled <= 20; cancelled++) {
        requests_left = 1000;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.memory = scarce_memory});
        for (uint64_t i = 0; i < CHUNK; i++)
            assert_int_equal(tw_sched_after(sched, (1 + i) * ms, log_call, NULL, &id[i]), 0);
        requests_left = 0;
        for (int i = 0; i < cancelled; i++)
            assert_int_equal(tw_sched_cancel(sched, id[i]), TW_CANCELLED);
        for (int i = 0; i < cancelled; i++)
            assert_int_equal(tw_sched_after(sched, 2000 * ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_after(sched, ms, log_call, NULL, NULL), TW_ENOMEM);
        assert_int_equal(tw_sched_pending(sched), CHUNK);
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
    tw_sched_at(sched, 5 * ms, log_call, NULL, &id);
    tw_sched_at(sched, 9 * ms, log_call, NULL, NULL);
    tw_sched_cancel(sched, id);
    assert_int_equal(tw_sched_next(sched), 9 * ms);
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), 1);
    assert_int_equal(tw_sched_next(sched), TW_NEVER);
    tw_sched_free(sched);
}

static void get_itself(struct tw_sched *sched, const struct tw_task *task)
{
    struct tw_task got;
    log_call(sched, task);
    assert_int_equal(tw_sched_get(sched, task->id, &got), task->left > 0 ? 0 : TW_EGONE);
}

static void a_task_can_be_looked_up_by_its_id(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_task task;
    uint64_t once, twice;
    int thing;
    struct tw_every every = {.first_ns = 7 * ms, .period_ns = 3 * ms, .times = 2};
    tw_sched_at(sched, 5 * ms, get_itself, &thing, &once);
    tw_sched_every(sched, &every, get_itself, &thing, &twice);
    assert_int_equal(tw_sched_get(sched, once, &task), 0);
    assert_int_equal(task.id, once);
    assert_ptr_equal(task.arg, &thing);
    assert_true(task.fn == get_itself);
    assert_int_equal(task.due_ns, 5 * ms);
    assert_int_equal(task.period_ns, 0);
    assert_int_equal(tw_sched_get(sched, twice, &task), 0);
    assert_true(task.fn == get_itself);
    assert_int_equal(task.due_ns, 7 * ms);
    assert_int_equal(task.period_ns, 3 * ms);
    assert_int_equal(task.left, 1);
    advance(sched, 8 * ms);
    assert_int_equal(calls, 2);
    assert_true(seen[0].fn == get_itself);
    assert_int_equal(tw_sched_get(sched, once, &task), TW_EGONE);
    assert_int_equal(tw_sched_get(sched, twice, &task), 0);
    assert_int_equal(task.due_ns, 10 * ms);
    tw_sched_cancel(sched, twice);
    assert_int_equal(tw_sched_get(sched, twice, &task), TW_EGONE);
    assert_int_equal(tw_sched_get(sched, UINT64_MAX, &task), TW_EGONE);
    tw_sched_free(sched);
}

/* ---- inside callbacks --------------------------------------------------------------------------------------------- */

static uint64_t other_id;
static enum tw_cancelled answer;
static int error_inside;

static void cancel_other(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    answer = tw_sched_cancel(sched, other_id);
}

static void a_callback_may_cancel_another_of_its_own_tick(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_after(sched, ms, cancel_other, NULL, NULL);
    tw_sched_after(sched, ms, log_call, NULL, &other_id);
    advance(sched, 5 * ms);
    assert_int_equal(answer, TW_CANCELLED);
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
    tw_sched_every(sched, &(struct tw_every){.period_ns = ms}, cancel_self, NULL, NULL);
    advance(sched, 50 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(answer, TW_RUNNING);
    tw_sched_free(sched);
}

static void move_self(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls < 5)
        error_inside = tw_sched_move_after(sched, task->id, 10 * ms);
}

static void a_task_that_runs_once_may_file_itself_again_under_its_id(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_after(sched, ms, move_self, NULL, &id);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen[i].id, id);
        assert_int_equal(seen_at[i], (uint64_t)(1 + 10 * i) * ms);
    }
    assert_int_equal(stats_of(sched).again, 4);
    tw_sched_free(sched);
}

static void cancel_and_move_self(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_cancel(sched, task->id);
    error_inside = tw_sched_move_after(sched, task->id, ms);
}

static void a_cancelled_task_cannot_move_itself(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_after(sched, ms, cancel_and_move_self, NULL, NULL);
    advance(sched, 10 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(error_inside, TW_EGONE);
    tw_sched_free(sched);
}

static void move_self_to_now(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_move_after(sched, task->id, 0);
}

static void a_callback_that_keeps_moving_itself_to_now_runs_once_a_tick(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_after(sched, 0, move_self_to_now, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 100);
    tw_sched_free(sched);
}

static void add_another(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls < 10)
        error_inside = tw_sched_after(sched, 3 * ms, add_another, task->arg, NULL);
}

static void a_callback_may_add_tasks(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_after(sched, ms, add_another, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 10);
    tw_sched_free(sched);
}

static uint64_t handed;
static void hand_count(void *arg, const struct tw_task *task)
{
    (void)arg, (void)task;
    handed++;
}

static void stop_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, 0, hand_count, NULL);
}

static void a_callback_may_stop_the_scheduler(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    handed = 0;
    tw_sched_every(sched, &(struct tw_every){.first_ns = ms, .period_ns = ms}, stop_inside, NULL, NULL);
    for (int i = 0; i < 10; i++)
        tw_sched_after(sched, (uint64_t)(i / 5 + 1) * ms, log_call, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(handed, 11); /* its own next call too */
    assert_int_equal(tw_sched_after(sched, ms, log_call, NULL, NULL), TW_ESTOPPED);
    assert_int_equal(tw_sched_move_after(sched, seen[0].id, ms), TW_EGONE);
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
    tw_sched_every(sched, &(struct tw_every){.period_ns = ms, .times = 3}, cancel_wait_self, NULL, NULL);
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
        tw_sched_cancel_wait(sched, task->id, NULL); /* the outer frame is seen past the inner ones */
}

static void a_callback_may_drive_another_scheduler(void **state)
{
    (void)state;
    struct tw_sched *outer = plain_sched();
    inner = plain_sched();
    tw_sched_after(inner, ms, log_call, NULL, NULL);
    tw_sched_after(outer, ms, drive_inner, NULL, NULL);
    advance(outer, 5 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(error_inside, TW_EDEADLK);
    tw_sched_free(inner);
    tw_sched_free(outer);
}

/* ---- repeating ------------------------------------------------------------------------------------------------------ */

static void a_repeating_task_keeps_its_phase_and_counts_its_calls(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every every = {.first_ns = 2 * ms + 300, .period_ns = 7 * ms + 1, .times = 5};
    assert_int_equal(tw_sched_every(sched, &every, log_call, &every, NULL), 0);
    advance(sched, 1000 * ms);
    assert_int_equal(calls, 5);
    for (int i = 0; i < 5; i++) {
        assert_int_equal(seen[i].due_ns, every.first_ns + (uint64_t)i * every.period_ns);
        assert_int_equal(seen[i].left, 4 - i);
        assert_int_equal(seen[i].period_ns, every.period_ns);
        assert_ptr_equal(seen[i].arg, &every);
    }
    tw_sched_free(sched);
}

static void the_first_call_may_have_a_point_in_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    advance(sched, 3 * ms);
    struct tw_every every = {.first_ns = 500 * ms, .at_ns = 10 * ms + 1, .period_ns = 7 * ms, .times = 2};
    tw_sched_every(sched, &every, log_call, NULL, NULL);
    tw_sched_set_every(sched, "k", 1, &every, log_call, NULL, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 4);
    assert_int_equal(seen[0].due_ns, 10 * ms + 1);
    assert_int_equal(seen[3].due_ns, 17 * ms + 1);
    tw_sched_free(sched);
}

static void without_times_it_repeats_for_ever(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_every(sched, &(struct tw_every){.period_ns = ms}, log_call, NULL, NULL);
    tw_sched_every(sched, &(struct tw_every){.period_ns = ms, .times = TW_FOREVER}, log_call, NULL, NULL);
    advance(sched, 1000 * ms);
    assert_int_equal(calls, 2002); /* those due at 0 and at 1,000 ms among them */
    assert_true(seen[2001].left == TW_FOREVER);
    tw_sched_free(sched);
}

static void a_period_shorter_than_a_tick_is_refused(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every every = {.period_ns = ms - 1};
    assert_int_equal(tw_sched_every(sched, &every, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_set_every(sched, "k", 1, &every, log_call, NULL, NULL), TW_EINVAL);
    every = (struct tw_every){.period_ns = ms, .missed = (enum tw_missed)3};
    assert_int_equal(tw_sched_every(sched, &every, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_pending(sched), 0);
    tw_sched_free(sched);
}

/* An executor that runs nothing by itself: tasks wait in it until run_sent(). */
static uint64_t sent[LOG_MAX];
static int sent_count;

static void send(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched;
    sent[sent_count++] = id;
}

static struct tw_sched *lazy_sched(void)
{
    sent_count = 0;
    return sched_of((struct tw_sched_options){.execute = send});
}

static void run_sent(struct tw_sched *sched)
{
    int count = sent_count;
    sent_count = 0;
    for (int i = 0; i < count; i++)
        tw_sched_run(sched, sent[i]);
}

/* A task every 10 ms from 10 ms on, whose first call starts at 45 ms; then all is served at once until 100 ms. */
static struct tw_sched *late_by_three_periods(enum tw_missed missed, uint64_t times)
{
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = missed, .times = times};
    assert_int_equal(tw_sched_every(sched, &every, log_call, NULL, NULL), 0);
    advance(sched, 45 * ms);
    assert_int_equal(sent_count, 1);
    while (tw_sched_now(sched) <= 100 * ms) {
        run_sent(sched);
        if (tw_sched_now(sched) % ms == 0 || sent_count == 0)
            advance(sched, ms);
    }
    return sched;
}

static void burst_makes_up_for_every_missed_period(void **state)
{
    (void)state;
    struct tw_sched *sched = late_by_three_periods(TW_MISSED_BURST, 0);
    assert_int_equal(calls, 10);
    for (int i = 0; i < calls; i++)
        assert_int_equal(seen[i].due_ns, (uint64_t)(i + 1) * 10 * ms);
    assert_true(seen_at[3] <= 49 * ms);
    tw_sched_free(sched);
}

static void skip_goes_on_at_the_next_period_ahead(void **state)
{
    (void)state;
    struct tw_sched *sched = late_by_three_periods(TW_MISSED_SKIP, 0);
    assert_int_equal(calls, 6);
    for (int i = 0; i < calls; i++)
        assert_int_equal(seen[i].due_ns, (uint64_t)(i + 5) * 10 * ms);
    assert_int_equal(stats_of(sched).skipped, 4); /* 10, 20, 30, 40 */
    tw_sched_free(sched);
}

static void coalesce_makes_one_call_stand_for_all(void **state)
{
    (void)state;
    struct tw_sched *sched = late_by_three_periods(TW_MISSED_COALESCE, 0);
    assert_int_equal(calls, 7);
    assert_int_equal(seen[0].due_ns, 10 * ms);
    assert_int_equal(seen[0].missed, 3);
    assert_int_equal(seen_at[0], 45 * ms);
    for (int i = 1; i < calls; i++) {
        assert_int_equal(seen[i].due_ns, (uint64_t)(i + 4) * 10 * ms);
        assert_int_equal(seen[i].missed, 0);
    }
    assert_int_equal(stats_of(sched).skipped, 3);
    tw_sched_free(sched);
}

static void missed_periods_use_up_no_calls(void **state)
{
    (void)state;
    for (int policy = TW_MISSED_BURST; policy <= TW_MISSED_COALESCE; policy++) {
        struct tw_sched *sched = late_by_three_periods((enum tw_missed)policy, 3);
        assert_int_equal(calls, 3);
        for (uint64_t i = 0; i < 3; i++)
            assert_int_equal(seen[i].left, 2 - i);
        assert_int_equal(tw_sched_pending(sched), 0);
        tw_sched_free(sched);
    }
}

static struct tw_task handed_one;
static int handed_ones;

static void keep_handed(void *arg, const struct tw_task *task)
{
    (void)arg;
    handed_one = *task;
    handed_ones++;
}

static void stop_in_its_call(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, 0, keep_handed, NULL);
}

static void a_stop_inside_a_coalesced_call_hands_over_the_call_after_it(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {
        .first_ns = 10 * ms, .period_ns = 10 * ms, .missed = TW_MISSED_COALESCE, .times = 9};
    tw_sched_every(sched, &every, stop_in_its_call, NULL, NULL);
    advance(sched, 55 * ms);
    handed_ones = 0;
    run_sent(sched);
    assert_int_equal(seen[0].missed, 4);
    assert_int_equal(handed_ones, 1);
    assert_int_equal(handed_one.due_ns, 60 * ms);
    assert_int_equal(handed_one.left, 7);
    assert_int_equal(handed_one.missed, 0);
    tw_sched_free(sched);
}

static void move_itself_to_90(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    assert_int_equal(tw_sched_move_at(sched, task->id, 90 * ms), 0);
}

static void a_move_in_a_coalesced_call_starts_afresh(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = TW_MISSED_COALESCE};
    tw_sched_every(sched, &every, move_itself_to_90, NULL, NULL);
    advance(sched, 55 * ms);
    run_sent(sched);
    assert_int_equal(seen[0].missed, 4);
    assert_int_equal(tw_sched_drain(sched, keep_handed, NULL), 1);
    assert_int_equal(handed_one.due_ns, 90 * ms);
    assert_int_equal(handed_one.missed, 0);
    tw_sched_free(sched);
}

/* A wheel that refuses measures its reach from where it stands; the timer thread may not have looked at it for long. */
static void a_repeating_task_is_not_lost_on_a_wheel_that_is_behind(void **state)
{
    (void)state;
    struct tw_geometry geometry = TW_SIMPLE(256);
    for (int policy = TW_MISSED_BURST; policy <= TW_MISSED_COALESCE; policy++) {
        sent_count = 0;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = send, .geometry = &geometry});
        struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .missed = (enum tw_missed)policy};
        tw_sched_every(sched, &every, log_call, NULL, NULL);
        advance(sched, 600 * ms);
        run_sent(sched);
        assert_int_equal(tw_sched_pending(sched), 1);
        stats_of(sched);
        advance(sched, 10 * ms);
        run_sent(sched);
        assert_true(calls >= 1);
        assert_int_equal(tw_sched_pending(sched), 1);
        tw_sched_free(sched);
    }
}

static void a_moved_repeating_task_goes_on_from_its_new_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    tw_sched_every(sched, &(struct tw_every){.first_ns = 10 * ms, .period_ns = 10 * ms, .times = 3}, log_call,
                   NULL, &id);
    advance(sched, 12 * ms);
    assert_int_equal(tw_sched_move_at(sched, id, 55 * ms), 0);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 3);
    assert_int_equal(seen_at[1], 55 * ms);
    assert_int_equal(seen_at[2], 65 * ms);
    tw_sched_free(sched);
}

/* ---- executors -------------------------------------------------------------------------------------------------------- */

static void an_id_that_comes_back_after_the_stop_runs_nothing(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    tw_sched_after(sched, ms, log_call, NULL, NULL);
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
        tw_sched_after(drained_sched, ms, log_call, NULL, &drained_id[i]);
    advance(drained_sched, 2 * ms);
    assert_int_equal(sent_count, 2);
    for (int i = 0; i < 2; i++)
        assert_int_equal(tw_sched_move_after(drained_sched, drained_id[i], 50 * ms), 0);
    assert_int_equal(tw_sched_drain(drained_sched, run_the_others, NULL), 2);
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
    tw_sched_at(sched, ms / 2, log_call, NULL, &id); /* half a tick late */
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
        tw_sched_after(sched, ms, log_call, NULL, &id[i]);
    advance(sched, 5 * ms);
    assert_int_equal(sent_count, 4);
    assert_int_equal(tw_sched_pending(sched), 4);
    assert_int_equal(tw_sched_cancel(sched, id[1]), TW_CANCELLED);
    assert_int_equal(tw_sched_move_after(sched, id[2], 10 * ms), 0);
    run_sent(sched); /* passes over 1 and 2 */
    assert_int_equal(calls, 2);
    assert_int_equal(seen[0].id, id[0]);
    assert_int_equal(seen[1].id, id[3]);
    advance(sched, 20 * ms);
    assert_int_equal(sent_count, 1);
    handed = 0;
    assert_int_equal(tw_sched_drain(sched, hand_count, NULL), 1);
    run_sent(sched);
    assert_int_equal(calls, 2);
    stats_of(sched);
    tw_sched_free(sched);
}

static void an_executor_gets_each_missed_call_after_the_one_before(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    tw_sched_every(sched, &(struct tw_every){.first_ns = ms, .period_ns = ms, .times = 4}, log_call, NULL,
                   NULL);
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
    tw_sched_after(sched, ms, log_call, NULL, NULL);
    advance(sched, 5 * ms);
    handed = 0;
    assert_int_equal(tw_sched_stop(sched, TW_STOP_NOWAIT, hand_count, NULL), 1);
    run_sent(sched);
    assert_int_equal(calls, 0);
    advance(sched, 5 * ms);
    tw_sched_free(sched);
}

/* ---- an executor without a queue ---------------------------------------------------------------------------------------- */

static void what_was_sent_runs_in_order_and_as_much_as_is_asked_for(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    uint64_t id[8];
    for (int i = 0; i < 8; i++)
        tw_sched_after(sched, ms + (uint64_t)i % 2 * ms, log_call, NULL, &id[i]);
    assert_int_equal(tw_sched_run_some(sched, 100), 0); /* none is due */
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_cancel(sched, id[0]), TW_CANCELLED);
    assert_int_equal(tw_sched_move_after(sched, id[2], 10 * ms), 0);
    assert_int_equal(tw_sched_run_some(sched, 0), 0);
    assert_int_equal(tw_sched_run_some(sched, 3), 3);
    assert_int_equal(calls, 3);
    assert_int_equal(seen[0].id, id[4]);
    assert_int_equal(seen[1].id, id[6]);
    assert_int_equal(seen[2].id, id[1]);
    tw_sched_run(sched, id[5]); /* somebody else takes one from the middle */
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
    struct tw_every every = {.first_ns = ms, .period_ns = ms, .times = 4};
    tw_sched_every(sched, &every, log_call, NULL, NULL);
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
    tw_sched_every(sched, &every, log_call, NULL, NULL);
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
        tw_sched_stop(sched, 0, hand_count, NULL);
}

static void a_callback_that_stops_the_scheduler_is_the_last(void **state)
{
    (void)state;
    struct tw_sched *sched = lazy_sched();
    handed = 0;
    for (int i = 0; i < 5; i++)
        tw_sched_after(sched, ms, log_and_stop, NULL, NULL);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_run_some(sched, 100), 2);
    assert_int_equal(calls, 2);
    assert_int_equal(handed, 3);
    assert_int_equal(tw_sched_run_some(sched, 100), 0);
    tw_sched_free(sched);
}

static void hand_and_run(void *arg, const struct tw_task *task)
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
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = send, .shards = 4});
    for (int key = 0; key < TASKS; key++)
        assert_int_equal(tw_sched_set_after(sched, &key, sizeof key, ms, log_call, NULL, NULL), 0);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_stop(sched, 0, hand_and_run, &sched), TASKS);
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
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = send, .shards = SHARDS});
    for (int key = 0; key < TASKS; key++)
        assert_int_equal(tw_sched_set_after(sched, &key, sizeof key, ms, log_call, NULL, NULL), 0);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_run_some(sched, SOME), SOME);
    for (int i = 0; i < calls; i++)
        ran[(uint32_t)seen[i].id >> TW__SCHED_INDEX_BITS]++;
    for (int i = 0; i < SHARDS; i++)
        assert_int_equal(ran[i], SOME / SHARDS);
    assert_int_equal(tw_sched_run_some(sched, TASKS), TASKS - SOME);
    assert_int_equal(calls, TASKS);
    tw_sched_free(sched);
}

/* ---- keys ------------------------------------------------------------------------------------------------------------- */

static void a_key_names_at_most_one_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    int one, two;
    void *old = &sched;
    assert_int_equal(tw_sched_set_after(sched, "order", 5, 10 * ms, log_call, &one, &old), 0);
    assert_null(old);
    assert_int_equal(tw_sched_set_after(sched, "order", 5, 30 * ms, log_call, &two, &old), 0);
    assert_ptr_equal(old, &one);
    assert_int_equal(tw_sched_key_count(sched), 1);
    assert_int_equal(tw_sched_pending(sched), 1);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_ptr_equal(seen[0].arg, &two);
    assert_int_equal(seen_at[0], 30 * ms);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void keys_are_any_bytes_up_to_64_kib(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 5});
    char *long_key = calloc(1, TW_KEY_MAX + 1);
    assert_int_equal(tw_sched_set_after(sched, "a\0b", 3, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, "a\0c", 3, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, "a", 1, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, long_key, TW_KEY_MAX, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, long_key, TW_KEY_MAX - 1, ms, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, long_key, TW_KEY_MAX + 1, ms, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_set_after(sched, "", 0, ms, log_call, NULL, NULL), TW_EINVAL);
    assert_int_equal(tw_sched_key_count(sched), 5);
    assert_int_equal(tw_sched_key_remove(sched, "a\0c", 3, NULL), TW_CANCELLED);
    assert_int_equal(tw_sched_key_remove(sched, "a\0c", 3, NULL), TW_GONE);
    free(long_key);
    advance(sched, 5 * ms);
    assert_int_equal(calls, 4);
    tw_sched_free(sched);
}

static void many_keys_are_told_apart(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    enum { MANY = 20000 };
    char key[16];
    for (uint64_t i = 0; i < MANY; i++) {
        snprintf(key, sizeof key, "key %d", (int)i);
        assert_int_equal(tw_sched_set_after(sched, key, strlen(key), (1 + i) * ms, log_call, NULL, NULL), 0);
    }
    assert_int_equal(tw_sched_key_count(sched), MANY);
    for (int i = MANY - 1; i >= 0; i -= 2) {
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(tw_sched_key_remove(sched, key, strlen(key), NULL), TW_CANCELLED);
    }
    for (int i = 0; i < MANY; i++) {
        struct tw_task task;
        snprintf(key, sizeof key, "key %d", i);
        assert_int_equal(tw_sched_key_get(sched, key, strlen(key), &task), i % 2 ? TW_EGONE : 0);
    }
    advance(sched, 4000 * ms);
    assert_int_equal(calls, 2000);
    tw_sched_free(sched);
}

static void a_moved_key_fires_once_at_its_last_time(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_set_after(sched, "k", 1, 10 * ms, log_call, NULL, NULL);
    for (uint64_t t = 1; t < 50; t++) {
        advance(sched, ms);
        assert_int_equal(tw_sched_key_move_after(sched, "k", 1, t % 2 ? 20 * ms : 5 * ms), 0);
    }
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(seen_at[0], 69 * ms);
    assert_int_equal(tw_sched_key_move_at(sched, "k", 1, 500 * ms), TW_EGONE);
    tw_sched_free(sched);
}

static void a_key_can_be_looked_up_and_removed_with_its_value(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_task task;
    int thing;
    void *value = NULL;
    tw_sched_set_at(sched, "k", 1, 25 * ms, log_call, &thing, NULL);
    assert_int_equal(tw_sched_key_get(sched, "k", 1, &task), 0);
    assert_int_equal(task.due_ns, 25 * ms);
    assert_ptr_equal(task.arg, &thing);
    assert_int_equal(tw_sched_key_get(sched, "x", 1, &task), TW_EGONE);
    assert_int_equal(tw_sched_key_remove(sched, "k", 1, &value), TW_CANCELLED);
    assert_ptr_equal(value, &thing);
    assert_int_equal(tw_sched_key_get(sched, "k", 1, &task), TW_EGONE);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static int first_value, second_value;
static void *value_inside;
static struct tw_task task_inside;
static int get_before, get_after;
static enum tw_cancelled removed_before, removed_after;

static void set_anew_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (task->arg != &first_value)
        return;
    void *old = sched;
    get_before = tw_sched_key_get(sched, "k", 1, &task_inside);
    tw_sched_set_after(sched, "k", 1, 10 * ms, set_anew_inside, &second_value, &old);
    assert_null(old); /* the first value is in use by its last call */
    get_after = tw_sched_key_get(sched, "k", 1, &task_inside);
}

static void a_key_set_anew_in_its_callback_runs_again(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_set_after(sched, "k", 1, 10 * ms, set_anew_inside, &first_value, NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 2);
    assert_ptr_equal(seen[1].arg, &second_value);
    assert_int_equal(seen_at[1], 20 * ms);
    assert_int_equal(get_before, TW_EGONE);
    assert_int_equal(get_after, 0);
    assert_ptr_equal(task_inside.arg, &second_value);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void set_and_remove_inside(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    removed_before = tw_sched_key_remove(sched, "k", 1, NULL);
    tw_sched_set_after(sched, "k", 1, 10 * ms, log_call, &second_value, NULL);
    removed_after = tw_sched_key_remove(sched, "k", 1, &value_inside);
}

static void a_key_set_anew_and_removed_in_its_callback_gives_the_new_value_back(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    value_inside = NULL;
    tw_sched_set_every(sched, "k", 1, &(struct tw_every){.period_ns = ms}, set_and_remove_inside, &first_value,
                       NULL);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(removed_before, TW_RUNNING);
    assert_int_equal(removed_after, TW_CANCELLED);
    assert_ptr_equal(value_inside, &second_value);
    stats_of(sched);
    tw_sched_free(sched);
}

static void a_keyed_task_may_repeat(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_set_every(sched, "beat", 4, &(struct tw_every){.first_ns = ms, .period_ns = 5 * ms, .times = 3},
                       log_call, NULL, NULL);
    advance(sched, 7 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(tw_sched_key_count(sched), 1);
    assert_int_equal(seen[0].key_size, 4);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 3);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

/* ---- limits and memory --------------------------------------------------------------------------------------------------- */

static void max_pending_refuses_the_one_too_many_and_counts_right(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.max_pending = 3, .shards = 2});
    uint64_t id[3];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(tw_sched_after(sched, 5 * ms, log_call, NULL, &id[i]), 0);
        assert_int_equal(tw_sched_after(sched, ms, log_call, NULL, NULL), TW_EFULL);
        assert_int_equal(tw_sched_set_after(sched, "k", 1, ms, log_call, NULL, NULL), TW_EFULL);
        assert_int_equal(tw_sched_key_count(sched), 0);
        assert_int_equal(tw_sched_cancel(sched, id[round % 3]), TW_CANCELLED);
        assert_int_equal(tw_sched_set_after(sched, "k", 1, ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_set_after(sched, "k", 1, 2 * ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_pending(sched), 3);
        advance(sched, 10 * ms);
        assert_int_equal(tw_sched_pending(sched), 0);
    }
    assert_int_equal(stats_of(sched).refused, 100);
    assert_int_equal(calls, 150);
    tw_sched_free(sched);
}

static void fill_up_and_move(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    assert_int_equal(tw_sched_after(sched, 50 * ms, log_call, NULL, NULL),
                     0); /* the running one counts no more */
    error_inside = tw_sched_move_after(sched, task->id, ms);
    answer = task->key != NULL
                 ? (enum tw_cancelled) - tw_sched_set_after(sched, "k", 1, ms, log_call, NULL, NULL)
                 : 0;
}

static void a_last_call_makes_room_while_it_runs(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.max_pending = 1});
    tw_sched_after(sched, ms, fill_up_and_move, NULL, NULL);
    advance(sched, 10 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(error_inside, TW_EFULL);
    advance(sched, 100 * ms);
    assert_int_equal(tw_sched_set_after(sched, "k", 1, ms, fill_up_and_move, NULL, NULL), 0);
    advance(sched, 10 * ms);
    assert_int_equal(answer, -TW_EFULL);
    tw_sched_free(sched);
}

/* A little of everything; whatever fails says TW_ENOMEM and has changed nothing. */
static void use_everything(struct tw_sched *sched, int n)
{
    char key[16];
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%d", i);
        uint64_t pending = tw_sched_pending(sched), keys = tw_sched_key_count(sched), id;
        struct tw_every every = {.first_ns = (uint64_t)i * ms, .period_ns = 3 * ms, .times = 2};
        int error[3] = {tw_sched_after(sched, (uint64_t)i * 100 * ms, log_call, NULL, &id),
                        tw_sched_every(sched, &every, log_call, NULL, NULL),
                        tw_sched_set_after(sched, key, strlen(key), ms, log_call, NULL, NULL)};
        for (int k = 0; k < 3; k++) {
            assert_true(error[k] == 0 || error[k] == TW_ENOMEM);
            pending += error[k] == 0;
        }
        assert_int_equal(tw_sched_pending(sched), pending);
        assert_int_equal(tw_sched_key_count(sched), keys + (error[2] == 0));
        int moved = error[0] == 0 ? tw_sched_move_after(sched, id, 50000000 * ms) : 0;
        assert_true(moved == 0 || moved == TW_ENOMEM);
    }
    stats_of(sched);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    struct tw_geometry shapes[] = {TW_DEFAULT, TW_GROWING(4)};
    for (int g = 0; g < 2; g++)
        for (int n = 0;; n++) {
            struct tw_sched_options options = {
                .clock = TW_SCHED_VIRTUAL, .memory = scarce_memory, .shards = 2, .geometry = &shapes[g]};
            struct tw_sched *sched = NULL;
            requests_left = n;
            calls = 0;
            int error = tw_sched_new(&sched, &options);
            assert_true(error == 0 || error == TW_ENOMEM);
            if (error == 0) {
                assert_int_equal(stats_of(sched).memory, bytes_out);
                use_everything(sched, 300);
                advance(sched, 3 * ms);
                use_everything(sched, 10);
                assert_int_equal(stats_of(sched).memory, bytes_out);
            }
            tw_sched_free(sched);
            assert_int_equal(blocks_out, 0);
            assert_int_equal(bytes_out, 0);
            if (requests_left > 0)
                break;
        }
}

static void what_was_reserved_cannot_fail(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards <= 5; shards += 2) {
        struct tw_sched_options options = {.memory = scarce_memory, .shards = shards};
        requests_left = 1000000;
        struct tw_sched *sched = sched_of(options);
        assert_int_equal(tw_sched_reserve(sched, 5000), 0);
        requests_left = 0;
        for (int i = 0; i < 5000; i++)
            assert_int_equal(
                i % 2 ? tw_sched_after(sched, ms, log_call, NULL, NULL)
                      : tw_sched_every(sched, &(struct tw_every){.period_ns = ms}, log_call, NULL, NULL),
                0);
        assert_int_equal(tw_sched_reserve(sched, 1000000), TW_ENOMEM);
        tw_sched_free(sched);
    }
}

static void a_geometry_that_refuses_is_heard(void **state)
{
    (void)state;
    struct tw_geometry g = TW_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g});
    uint64_t id;
    assert_int_equal(tw_sched_after(sched, 101 * ms, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_set_after(sched, "k", 1, 101 * ms, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_key_count(sched), 0);
    struct tw_every every = {.first_ns = ms, .period_ns = 100 * ms + 1};
    assert_int_equal(tw_sched_every(sched, &every, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_set_every(sched, "k", 1, &every, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_after(sched, 100 * ms, log_call, NULL, &id), 0);
    assert_int_equal(tw_sched_move_after(sched, id, 101 * ms), TW_ERANGE);
    assert_int_equal(tw_sched_pending(sched), 1);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

static void move_too_far(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    error_inside = task->key == NULL ? tw_sched_move_after(sched, task->id, 101 * ms)
                                     : tw_sched_set_after(sched, "k", 1, 101 * ms, log_call, NULL, NULL);
}

static void a_geometry_that_refuses_is_heard_inside_callbacks(void **state)
{
    (void)state;
    struct tw_geometry g = TW_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g});
    error_inside = 0;
    tw_sched_after(sched, ms, move_too_far, NULL, NULL);
    advance(sched, 5 * ms);
    assert_int_equal(error_inside, TW_ERANGE);
    error_inside = 0;
    tw_sched_set_after(sched, "k", 1, ms, move_too_far, NULL, NULL);
    advance(sched, 5 * ms);
    assert_int_equal(error_inside, TW_ERANGE);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void a_task_that_is_ready_stays_so_when_it_cannot_be_moved(void **state)
{
    (void)state;
    struct tw_geometry g = TW_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g, .execute = send});
    uint64_t id[3];
    sent_count = 0;
    for (int i = 0; i < 3; i++)
        tw_sched_after(sched, ms, log_call, NULL, &id[i]);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_move_after(sched, id[1], 101 * ms), TW_ERANGE);
    assert_int_equal(tw_sched_pending(sched), 3);
    run_sent(sched);
    assert_int_equal(calls, 3);
    stats_of(sched);
    tw_sched_free(sched);
}

static void many_tasks_have_room(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    enum { MANY = 40000 };
    uint64_t *id = calloc(MANY, sizeof *id);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tw_sched_after(sched, ms, log_call, NULL, &id[i]), 0);
    assert_true(stats_of(sched).memory / MANY <= 96);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tw_sched_cancel(sched, id[i]), TW_CANCELLED);
    free(id);
    tw_sched_free(sched);
}

static void what_can_never_be_reserved_takes_no_memory(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t memory = stats_of(sched).memory;
    assert_int_equal(tw_sched_reserve(sched, (UINT64_C(1) << 25) + 1), TW_ENOMEM);
    assert_int_equal(tw_sched_reserve(sched, UINT64_MAX), TW_ENOMEM);
    assert_int_equal(stats_of(sched).memory, memory);
    tw_sched_free(sched);
}

static void the_end_of_time_never_comes(void **state)
{
    (void)state;
    struct tw_sched *sched =
        sched_of((struct tw_sched_options){.tick_ns = 3855}); /* 2^64 - 1 is a multiple of it */
    struct tw_every every = {.at_ns = UINT64_MAX, .period_ns = 3855};
    tw_sched_at(sched, UINT64_MAX, log_call, NULL, NULL);
    tw_sched_every(sched, &every, log_call, NULL, NULL);
    tw_sched_at(sched, UINT64_MAX - 3855, log_call, NULL, NULL);
    assert_int_equal(tw_sched_advance(sched, UINT64_MAX), 0);
    assert_int_equal(calls, 1);
    assert_int_equal(tw_sched_pending(sched), 2);
    tw_sched_free(sched);
}

static struct tw_sched *refilled;
static bool original[100];

/* Each hand-over adds a task that is nearer than all others. */
static void refill(void *arg, const struct tw_task *task)
{
    (void)arg;
    uintptr_t number = (uintptr_t)task->arg;
    if (number >= sizeof original)
        return;
    original[number] = true;
    tw_sched_at(refilled, ms, log_call, (void *)(uintptr_t)1000, NULL);
}

static void a_drain_that_adds_hands_over_what_was_there(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards < 4; shards++) {
        refilled = sched_of((struct tw_sched_options){.shards = shards});
        memset(original, 0, sizeof original);
        for (uintptr_t i = 0; i < sizeof original; i++)
            tw_sched_at(refilled, (1000 + i * i) * ms, log_call, (void *)i, NULL);
        assert_true(tw_sched_drain(refilled, refill, NULL) >= (int64_t)sizeof original);
        for (size_t i = 0; i < sizeof original; i++)
            assert_true(original[i]);
        tw_sched_free(refilled);
    }
}

static void a_reserve_may_fail_half_way(void **state)
{
    (void)state;
    for (requests_left = 0;; requests_left++) {
        int given = requests_left;
        requests_left = 1000;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.memory = scarce_memory});
        requests_left = given;
        int error = tw_sched_reserve(sched, 3000);
        assert_int_equal(tw_sched_pending(sched), 0);
        tw_sched_free(sched);
        assert_int_equal(blocks_out, 0);
        requests_left = given;
        if (error == 0)
            break;
        assert_int_equal(error, TW_ENOMEM);
    }
}

static void periods_of_centuries_saturate(void **state)
{
    (void)state;
    for (int policy = TW_MISSED_BURST; policy <= TW_MISSED_COALESCE; policy++) {
        struct tw_sched *sched = lazy_sched();
        struct tw_every every = {
            .first_ns = ms, .period_ns = UINT64_MAX / 2 + 9, .missed = (enum tw_missed)policy};
        assert_int_equal(tw_sched_every(sched, &every, log_call, NULL, NULL), 0);
        advance(sched, UINT64_MAX - 5 * ms);
        run_sent(sched);
        advance(sched, ms);
        run_sent(sched);
        assert_true(calls <= 2);
        assert_int_equal(tw_sched_pending(sched), 1);
        tw_sched_free(sched);
    }
}

/* Calls of the system that fail when told to: at 0, after so many good ones otherwise. -1: never. */
static int threads_left = -1, descriptors_left = -1;

int __real_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *arg);
int __wrap_pthread_create(pthread_t *thread, const pthread_attr_t *how, void *(*body)(void *), void *arg)
{
    if (threads_left == 0)
        return 11; /* EAGAIN */
    threads_left -= threads_left > 0;
    return __real_pthread_create(thread, how, body, arg);
}

int __real_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags);
int __wrap_timerfd_create(int clock, int flags)
{
    return descriptors_left == 0 ? -1 : __real_timerfd_create(clock, flags);
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    return descriptors_left >= 0 ? -1 : __real_eventfd(count, flags);
}

static void a_scheduler_without_threads_says_so_and_can_try_again(void **state)
{
    (void)state;
    for (int good = 0; good < 3; good++) {
        struct tw_sched *sched = NULL;
        assert_int_equal(tw_sched_new(&sched, &(struct tw_sched_options){.workers = 2}), 0);
        threads_left = good;
        assert_int_equal(tw_sched_after(sched, 3600000 * ms, log_call, NULL, NULL), TW_ESYSTEM);
        threads_left = good;
        assert_int_equal(tw_sched_set_after(sched, "k", 1, 3600000 * ms, log_call, NULL, NULL), TW_ESYSTEM);
        assert_int_equal(tw_sched_pending(sched), 0);
        threads_left = -1;
        assert_int_equal(tw_sched_after(sched, 3600000 * ms, log_call, NULL, NULL), 0);
        tw_sched_free(sched);
    }
}

static void a_scheduler_without_descriptors_says_so(void **state)
{
    (void)state;
    struct tw_sched *sched = NULL;
    for (descriptors_left = 0; descriptors_left < 2; descriptors_left++)
        assert_int_equal(tw_sched_new(&sched, NULL), TW_ESYSTEM);
    descriptors_left = -1;
    assert_null(sched);
}

static void stop_then_move(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, 0, NULL, NULL);
    error_inside = tw_sched_move_after(sched, task->id, ms);
}

static void a_callback_cannot_file_itself_again_after_the_stop(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_after(sched, ms, stop_then_move, NULL, NULL);
    advance(sched, 10 * ms);
    assert_int_equal(error_inside, TW_ESTOPPED);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

/* ---- handing over ----------------------------------------------------------------------------------------------------------- */

static char handed_text[LOG_MAX];

static void hand_text(void *arg, const struct tw_task *task)
{
    char line[100];
    (void)arg;
    snprintf(line, sizeof line, "%s:%.*s:%d:%d\n", (const char *)task->arg, (int)task->key_size,
             task->key != NULL ? (const char *)task->key : "", (int)(task->due_ns / ms), (int)task->left);
    strcat(handed_text, line);
}

static void drain_hands_over_everything_and_goes_on(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3});
    handed_text[0] = '\0';
    tw_sched_after(sched, 10 * ms, log_call, "once", NULL);
    tw_sched_every(sched, &(struct tw_every){.first_ns = 20 * ms, .period_ns = 5 * ms, .times = 4}, log_call,
                   "many", NULL);
    tw_sched_set_after(sched, "key", 3, 30 * ms, log_call, "keyed", NULL);
    assert_int_equal(tw_sched_drain(sched, hand_text, NULL), 3);
    assert_non_null(strstr(handed_text, "once::10:0\n"));
    assert_non_null(strstr(handed_text, "many::20:3\n"));
    assert_non_null(strstr(handed_text, "keyed:key:30:0\n"));
    assert_int_equal(tw_sched_key_count(sched), 0);
    assert_int_equal(tw_sched_after(sched, ms, log_call, "more", NULL), 0);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), 0);
    tw_sched_free(sched);
}

static int64_t drained_in_hand;

static void drain_in_hand(void *arg, const struct tw_task *task)
{
    (void)task;
    drained_in_hand = tw_sched_drain(arg, NULL, NULL);
}

static void a_drain_tells_a_stopped_scheduler_apart_from_an_empty_one(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3});
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), 0);
    tw_sched_after(sched, 10 * ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_stop(sched, 0, drain_in_hand, sched), 1);
    assert_int_equal(drained_in_hand, TW_ESTOPPED); /* from the first task on that the stop hands over */
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), TW_ESTOPPED);
    tw_sched_free(sched);
}

static void stop_hands_over_what_did_not_run_once(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    handed_text[0] = '\0';
    tw_sched_every(sched, &(struct tw_every){.first_ns = 5 * ms, .period_ns = 5 * ms, .times = 4}, log_call,
                   "many", NULL);
    tw_sched_set_after(sched, "key", 3, 30 * ms, log_call, "keyed", NULL);
    advance(sched, 12 * ms);
    assert_int_equal(tw_sched_stop(sched, 0, hand_text, NULL), 2);
    assert_non_null(strstr(handed_text, "many::15:1\n"));
    assert_non_null(strstr(handed_text, "keyed:key:30:0\n"));
    assert_int_equal(tw_sched_stop(sched, 0, hand_text, NULL), 0);
    assert_int_equal(tw_sched_set_after(sched, "key", 3, ms, log_call, NULL, NULL), TW_ESTOPPED);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 2);
    assert_int_equal(stats_of(sched).handed, 2);
    tw_sched_free(sched);
}

static void after_a_stop_there_is_no_task_to_move_or_to_remove(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t id;
    void *value = sched;
    tw_sched_after(sched, ms, log_call, NULL, &id);
    tw_sched_set_after(sched, "key", 3, ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_stop(sched, 0, NULL, NULL), 2);
    assert_int_equal(tw_sched_move_after(sched, id, ms), TW_EGONE);
    assert_int_equal(tw_sched_key_move_after(sched, "key", 3, ms), TW_EGONE);
    assert_int_equal(tw_sched_key_move_at(sched, "key", 3, ms), TW_EGONE);
    assert_int_equal(tw_sched_cancel(sched, id), TW_GONE);
    assert_int_equal(tw_sched_key_remove(sched, "key", 3, &value), TW_GONE);
    assert_ptr_equal(value, sched);
    tw_sched_free(sched);
}

static void a_negative_delay_that_was_cast_never_comes(void **state)
{
    (void)state;
    const int64_t negative[] = {-1, -(int64_t)ms, INT64_MIN};
    struct tw_sched *sched = plain_sched();
    for (int i = 0; i < 3; i++)
        assert_int_equal(tw_sched_after(sched, (uint64_t)negative[i], log_call, NULL, NULL), 0);
    advance(sched, UINT64_C(3155760000000000000)); /* a century */
    assert_int_equal(calls, 0);
    tw_sched_free(sched);
}

static void stop_after_move(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_move_at(sched, task->id, 77 * ms);
    tw_sched_set_after(sched, "k", 1, 88 * ms, log_call, "anew", NULL);
    tw_sched_stop(sched, 0, hand_text, NULL);
}

static void stop_hands_over_the_calls_to_come_of_a_running_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    handed_text[0] = '\0';
    tw_sched_after(sched, ms, stop_after_move, "moved", NULL);
    advance(sched, 100 * ms);
    assert_non_null(strstr(handed_text, "moved::77:0\n"));
    assert_non_null(strstr(handed_text, "anew:k:89:0\n"));
    stats_of(sched);
    tw_sched_free(sched);
    sched = plain_sched();
    handed_text[0] = '\0';
    tw_sched_set_after(sched, "k", 1, ms, stop_after_move, "old", NULL);
    advance(sched, 100 * ms);
    assert_string_equal(handed_text, "anew:k:89:0\n");
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

/* ---- the clock and what is told ------------------------------------------------------------------------------------------------ */

static void a_virtual_clock_does_not_go_back_and_others_are_not_moved(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched(), *real = NULL;
    advance(sched, 10 * ms);
    assert_int_equal(tw_sched_advance(sched, 10 * ms - 1), TW_EINVAL);
    assert_int_equal(tw_sched_now(sched), 10 * ms);
    tw_sched_free(sched);
    assert_int_equal(tw_sched_new(&real, NULL), 0);
    assert_int_equal(tw_sched_advance(real, UINT64_MAX), TW_EINVAL);
    tw_sched_free(real);
}

static void next_is_the_time_of_the_next_work(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 2});
    assert_true(tw_sched_next(sched) == TW_NEVER);
    tw_sched_after(sched, 50 * ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_next(sched), 50 * ms);
    tw_sched_free(sched);
    sched = lazy_sched();
    tw_sched_after(sched, 5 * ms, log_call, NULL, NULL);
    advance(sched, 7 * ms);
    tw_sched_every(sched, &(struct tw_every){.period_ns = ms}, log_call, NULL, NULL);
    advance(sched, 50 * ms);
    run_sent(sched); /* the repeating one is ready again */
    assert_int_equal(tw_sched_next(sched), tw_sched_now(sched));
    tw_sched_free(sched);
}

static int late_told, slow_told;
static void on_late(void *arg, const struct tw_task *task, uint64_t ns)
{
    assert_ptr_equal(arg, &late_told);
    assert_int_equal(task->late_ns, ns);
    late_told++;
}

static void on_slow(void *arg, const struct tw_task *task, uint64_t ns)
{
    (void)arg, (void)task;
    assert_int_equal(ns, 3 * ms);
    slow_told++;
}

static void take_three_ms(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    atomic_store(&sched->virtual_ns, tw_sched_now(sched) + 3 * ms); /* as if it had run so long */
}

static void late_and_slow_callbacks_are_told_and_counted(void **state)
{
    (void)state;
    struct tw_sched_options options = {
        .late_ns = 2 * ms, .on_late = on_late, .slow_ns = 2 * ms, .on_slow = on_slow, .hook_arg = &late_told};
    struct tw_sched *sched = sched_of(options);
    late_told = slow_told = 0;
    tw_sched_after(sched, ms, take_three_ms, NULL, NULL);
    tw_sched_after(sched, ms, log_call, NULL, NULL);
    tw_sched_after(sched, 20 * ms, log_call, NULL, NULL);
    advance(sched, 50 * ms);
    assert_int_equal(late_told, 1);
    assert_int_equal(slow_told, 1);
    struct tw_sched_stats stats = stats_of(sched);
    assert_int_equal(stats.late, 1);
    assert_int_equal(stats.slow, 1);
    assert_int_equal(stats.run_max_ns, 3 * ms);
    assert_int_equal(stats.late_max_ns, 3 * ms);
    tw_sched_free(sched);
}

static void percentiles_are_right_to_three_per_cent(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    assert_int_equal(tw_sched_late_percentile(sched, 0.5), 0);
    for (uint64_t i = 0; i < 1000; i++) /* due at i/1000 of a tick: late by the rest */
        tw_sched_at(sched, 10 * ms + 1 + i * 1000, log_call, NULL, NULL);
    advance(sched, 50 * ms);
    for (double share = 0.01; share < 1; share += 0.07) {
        double wanted = share * 1e6, got = (double)tw_sched_late_percentile(sched, share);
        assert_true(got >= wanted - 1000 && got <= wanted * 1.04 + 1000);
    }
    assert_true(tw_sched_late_percentile(sched, 0) <= 1000);
    assert_true(stats_of(sched).late_p99_ns <= stats_of(sched).late_max_ns);
    tw_sched_free(sched);
}

static char prometheus[8192];
static void emit(void *arg, const char *text, size_t length)
{
    (void)arg;
    strncat(prometheus, text, length);
}

static void statistics_can_be_read_by_prometheus(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    prometheus[0] = '\0';
    for (int i = 0; i < 7; i++)
        tw_sched_after(sched, (uint64_t)i * ms, log_call, NULL, NULL);
    advance(sched, 3 * ms);
    tw_sched_prometheus(sched, emit, NULL);
    assert_non_null(strstr(prometheus, "# TYPE tickwheel_added_total counter\ntickwheel_added_total 7\n"));
    assert_non_null(strstr(prometheus, "\ntickwheel_lateness_seconds{quantile=\"0.99\"} 0.001"));
    for (char *line = strtok(prometheus, "\n"); line != NULL; line = strtok(NULL, "\n"))
        assert_true(strncmp(line, "# HELP tickwheel_", 17) == 0 ||
                    strncmp(line, "# TYPE tickwheel_", 17) == 0 || strncmp(line, "tickwheel_", 10) == 0);
    tw_sched_free(sched);
}

/* ---- the forecast ---------------------------------------------------------------------------------------------- */

static void expect_forecast(const struct tw_sched *sched, uint64_t step_ns, const uint64_t expected[6])
{
    uint64_t counts[6];
    assert_int_equal(tw_sched_forecast(sched, step_ns, 6, counts), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(counts[i], expected[i]);
}

static void a_forecast_counts_what_is_due_in_each_step(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    static const uint64_t due[] = {0, 1, 10, 11, 20, 21, 60, 61, 1000000};
    uint64_t id;
    expect_forecast(sched, 10 * ms, (uint64_t[]){0, 0, 0, 0, 0, 0});
    for (size_t i = 0; i < sizeof due / sizeof due[0]; i++)
        assert_int_equal(tw_sched_after(sched, due[i] * ms, log_call, NULL, NULL), 0);
    tw_sched_after(sched, UINT64_MAX, log_call, NULL, NULL);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 0, 0, 1});
    expect_forecast(sched, UINT64_MAX,
                    (uint64_t[]){9, 0, 0, 0, 0, 0}); /* what is due at the end of time never runs */
    assert_int_equal(tw_sched_after(sched, 35 * ms, log_call, NULL, &id), 0);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 1, 0, 1});
    tw_sched_move_after(sched, id, 45 * ms);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 0, 1, 1});
    tw_sched_cancel(sched, id);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 1, 0, 0, 1});
    advance(sched, 15 * ms);
    expect_forecast(sched, 10 * ms, (uint64_t[]){2, 0, 0, 0, 2, 0});
    tw_sched_free(sched);
}

static void a_forecast_counts_every_call_of_a_repeating_task(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    struct tw_every thrice = {.first_ns = 15 * ms, .period_ns = 10 * ms, .times = 3},
                    ever = {.first_ns = 5 * ms, .period_ns = 5 * ms, .missed = TW_MISSED_SKIP},
                    late = {.first_ns = 500 * ms, .period_ns = ms};
    assert_int_equal(tw_sched_every(sched, &thrice, log_call, NULL, NULL), 0);
    expect_forecast(sched, 10 * ms, (uint64_t[]){0, 1, 1, 1, 0, 0});
    expect_forecast(sched, UINT64_MAX / 2,
                    (uint64_t[]){3, 0, 0, 0, 0, 0});                    /* beyond the end of time, too, ... */
    expect_forecast(sched, UINT64_MAX, (uint64_t[]){3, 0, 0, 0, 0, 0}); /* ... and in one step */
    assert_int_equal(tw_sched_every(sched, &ever, log_call, NULL, NULL), 0);
    assert_int_equal(tw_sched_every(sched, &late, log_call, NULL, NULL), 0);
    expect_forecast(sched, 10 * ms, (uint64_t[]){2, 3, 3, 3, 2, 2});
    advance(sched, 27 * ms);
    expect_forecast(sched, 10 * ms, (uint64_t[]){3, 2, 2, 2, 2, 2});
    tw_sched_free(sched);
}

static void forecast_inside(struct tw_sched *sched, const struct tw_task *task)
{
    uint64_t *counts = task->arg;
    if (counts[0] == 1)
        tw_sched_move_after(sched, task->id, 25 * ms);
    tw_sched_forecast(sched, 10 * ms, 6, counts);
}

static void a_forecast_counts_what_follows_the_call_under_way(void **state)
{
    (void)state;
    static const uint64_t again[] = {0, 0, 1, 0, 1, 0}, last[6];
    struct tw_sched *sched = plain_sched();
    uint64_t counts[3][6] = {{0}, {1}, {0}};
    struct tw_every every = {.first_ns = 0, .period_ns = 20 * ms, .times = 3};
    tw_sched_every(sched, &every, forecast_inside, counts[0], NULL);
    advance(sched, ms);
    assert_memory_equal(counts[0], ((uint64_t[]){0, 1, 0, 1, 0, 0}), sizeof counts[0]);
    advance(sched, 100 * ms);
    assert_memory_equal(counts[0], last, sizeof last);
    tw_sched_every(sched, &every, forecast_inside, counts[1], NULL);
    advance(sched, ms);
    assert_memory_equal(counts[1], again, sizeof again);
    tw_sched_after(sched, ms, forecast_inside, counts[2], NULL);
    advance(sched, ms);
    assert_int_equal(counts[2][0], 0);
    tw_sched_free(sched);
}

/* Keeps what is due to itself, as an executor that is busy does. */
static void sit_on(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)sched;
    *(uint64_t *)arg = id;
}

static void a_forecast_counts_missed_periods_as_their_policy_has_it(void **state)
{
    (void)state;
    static const uint64_t first[] = {[TW_MISSED_BURST] = 10, [TW_MISSED_SKIP] = 2, [TW_MISSED_COALESCE] = 2};
    for (enum tw_missed missed = TW_MISSED_BURST; missed <= TW_MISSED_COALESCE; missed++) {
        uint64_t id = 0;
        struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = sit_on, .execute_arg = &id});
        struct tw_every every = {.first_ns = 5 * ms, .period_ns = 10 * ms, .missed = missed};
        tw_sched_every(sched, &every, log_call, NULL, NULL);
        advance(sched, 87 * ms);
        expect_forecast(sched, 10 * ms, (uint64_t[]){first[missed], 1, 1, 1, 1, 1});
        tw_sched_run(sched, id);
        tw_sched_free(sched);
    }
}

static void a_forecast_of_more_than_one_hold_of_the_lock_is_complete(void **state)
{
    (void)state;
    enum { MANY = 20000, REPEATING = 300 };
    for (uint32_t shards = 1; shards <= 3; shards += 2) {
        struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = shards});
        struct tw_every every = {.first_ns = 25 * ms, .period_ns = 20 * ms};
        char key[16];
        for (int i = 0; i < MANY; i++) {
            int size = snprintf(key, sizeof key, "%d", i);
            tw_sched_set_after(sched, key, (size_t)size, (uint64_t)(i % 60) * ms + 1, log_call, NULL, NULL);
        }
        for (int i = 0; i < REPEATING; i++)
            tw_sched_every(sched, &every, log_call, NULL, NULL);
        uint64_t sum = 0, counts[TW_FORECAST_MAX];
        assert_int_equal(tw_sched_forecast(sched, 10 * ms, 6, counts), 0);
        for (int i = 0; i < 6; i++)
            sum += counts[i];
        assert_int_equal(sum, MANY + 2 * REPEATING);
        assert_true(counts[0] > 3300 && counts[0] < 3400);
        assert_int_equal(tw_sched_forecast(sched, 100000, TW_FORECAST_MAX, counts), 0);
        for (int i = 0; i < 600; i++)
            sum -= counts[i];
        assert_int_equal(sum, 0);
        tw_sched_free(sched);
    }
}

/* More is ready, or with the executor, than may be counted under one hold. */
static void a_forecast_counts_a_backlog(void **state)
{
    (void)state;
    enum { MANY = 5000 };
    uint64_t id;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = sit_on, .execute_arg = &id});
    for (int i = 0; i < MANY; i++)
        tw_sched_after(sched, ms, log_call, NULL, NULL);
    advance(sched, 2 * ms);
    expect_forecast(sched, ms, (uint64_t[]){MANY, 0, 0, 0, 0, 0});
    tw_sched_free(sched);
}

static void a_bad_forecast_is_refused(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    uint64_t counts[1] = {7};
    assert_int_equal(tw_sched_forecast(sched, 0, 1, counts), TW_EINVAL);
    assert_int_equal(tw_sched_forecast(sched, 1, 0, counts), TW_EINVAL);
    assert_int_equal(tw_sched_forecast(sched, 1, TW_FORECAST_MAX + 1, counts), TW_EINVAL);
    assert_int_equal(counts[0], 7);
    tw_sched_free(sched);
}

/* ---- the release hook ---------------------------------------------------------------------------------------- */

enum { VALUES = 8 };
static int released[VALUES];           /* how often each */
static struct tw_sched *release_calls; /* not NULL: the hook tries calls on it */
static uint64_t release_id;
static int release_error[2];

static void count_release(void *arg, void *value)
{
    assert_ptr_equal(arg, released);
    released[(uintptr_t)value]++;
    if (release_calls == NULL)
        return;
    release_error[0] = tw_sched_move_after(release_calls, release_id, ms);
    release_error[1] = tw_sched_cancel_wait(release_calls, release_id, NULL);
}

static struct tw_sched *releasing_sched(tw_task_fn *only)
{
    memset(released, 0, sizeof released);
    release_calls = NULL;
    return sched_of(
        (struct tw_sched_options){.release = count_release, .release_of = only, .hook_arg = released});
}

static void *value_of(uintptr_t number)
{
    return (void *)number;
}

static void set_value(struct tw_sched *sched, const char *key, uintptr_t number)
{
    assert_int_equal(tw_sched_set_after(sched, key, 1, ms, log_call, value_of(number), NULL), 0);
}

/* The values from 1 on have been released so often. */
static void assert_released(const char *counts)
{
    for (int i = 1; counts[i - 1] != '\0'; i++)
        assert_int_equal(released[i], counts[i - 1] - '0');
}

static void a_value_is_released_after_the_last_call(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    struct tw_every thrice = {.first_ns = ms, .period_ns = ms, .times = 3};
    tw_sched_after(sched, ms, log_call, value_of(1), NULL);
    tw_sched_every(sched, &thrice, log_call, value_of(2), NULL);
    set_value(sched, "k", 3);
    assert_released("000");
    advance(sched, ms);
    assert_released("101");
    advance(sched, ms);
    assert_released("101");
    advance(sched, ms);
    assert_released("111");
    tw_sched_free(sched);
    assert_released("111");
}

static void a_value_is_released_when_its_task_is_cancelled_removed_or_set_anew(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    uint64_t first, second;
    void *old, *removed = NULL;
    tw_sched_after(sched, ms, log_call, value_of(1), &first);
    tw_sched_after(sched, ms, log_call, value_of(2), &second);
    set_value(sched, "k", 3);
    assert_int_equal(tw_sched_cancel(sched, first), TW_CANCELLED);
    assert_released("100");
    assert_int_equal(tw_sched_cancel_wait(sched, second, NULL), 0);
    assert_released("110");
    assert_int_equal(tw_sched_set_after(sched, "k", 1, ms, log_call, value_of(4), &old), 0);
    assert_ptr_equal(old, value_of(3));
    assert_released("1110");
    assert_int_equal(tw_sched_key_remove(sched, "k", 1, &removed), TW_CANCELLED);
    assert_ptr_equal(removed, value_of(4));
    assert_released("1111");
    assert_int_equal(tw_sched_cancel(sched, first), TW_GONE);
    assert_int_equal(tw_sched_key_remove(sched, "k", 1, NULL), TW_GONE);
    tw_sched_free(sched);
    assert_released("1111");
}

static void what_was_refused_is_not_released(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    struct tw_every short_one = {.period_ns = 1};
    set_value(sched, "k", 1);
    assert_int_equal(tw_sched_every(sched, &short_one, log_call, value_of(2), NULL), TW_EINVAL);
    assert_int_equal(tw_sched_set_every(sched, "k", 1, &short_one, log_call, value_of(2), NULL), TW_EINVAL);
    assert_int_equal(tw_sched_set_after(sched, "", 0, ms, log_call, value_of(2), NULL), TW_EINVAL);
    tw_sched_stop(sched, 0, NULL, NULL);
    assert_int_equal(tw_sched_after(sched, ms, log_call, value_of(2), NULL), TW_ESTOPPED);
    assert_int_equal(tw_sched_set_after(sched, "k", 1, ms, log_call, value_of(2), NULL), TW_ESTOPPED);
    assert_released("10");
    tw_sched_free(sched);
    assert_released("10");
}

/* Counts what it is handed, before it is released. */
static void hand_unreleased(void *arg, const struct tw_task *task)
{
    ++*(int *)arg;
    assert_int_equal(released[(uintptr_t)task->arg], 0);
    assert_ptr_equal(task->fn, log_call);
}

static void what_is_drained_stopped_or_freed_is_released_once_it_was_handed(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    int seen_by_hand = 0;
    tw_sched_after(sched, ms, log_call, value_of(1), NULL);
    assert_int_equal(tw_sched_drain(sched, hand_unreleased, &seen_by_hand), 1);
    assert_released("1000");
    set_value(sched, "k", 2);
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), 1);
    assert_released("1100");
    set_value(sched, "k", 3);
    assert_int_equal(tw_sched_stop(sched, 0, hand_unreleased, &seen_by_hand), 1);
    assert_released("1110");
    assert_int_equal(seen_by_hand, 2);
    tw_sched_free(sched);
    sched = releasing_sched(NULL);
    set_value(sched, "k", 4);
    tw_sched_free(sched);
    assert_released("0001");
}

static void only_the_values_of_the_function_that_was_named_are_released(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(log_call);
    uint64_t other;
    tw_sched_after(sched, ms, log_call, value_of(1), NULL);
    tw_sched_after(sched, ms, add_another, value_of(2), &other);
    tw_sched_cancel(sched, other);
    advance(sched, ms);
    assert_released("10");
    tw_sched_after(sched, ms, cancel_and_move_self, value_of(3), NULL);
    tw_sched_after(sched, ms, cancel_and_move_self, value_of(4), NULL);
    advance(sched, ms);
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), 0);
    tw_sched_free(sched);
    assert_released("1000");
}

/* What is done to a task by its own callback, which stands for whoever does it meanwhile. */
static void (*meanwhile)(struct tw_sched *, const struct tw_task *);

static void call_meanwhile(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (calls == 1)
        meanwhile(sched, task);
    assert_int_equal(released[(uintptr_t)task->arg], 0); /* it is in use to its end */
}

/* Runs value 1, with a key, `times` times; `does` happens in its first call. */
static struct tw_sched *with_meanwhile(uint64_t times, void (*does)(struct tw_sched *, const struct tw_task *))
{
    struct tw_sched *sched = releasing_sched(NULL);
    struct tw_every every = {.first_ns = ms, .period_ns = ms, .times = times};
    meanwhile = does;
    assert_int_equal(tw_sched_set_every(sched, "k", 1, &every, call_meanwhile, value_of(1), NULL), 0);
    advance(sched, ms);
    assert_int_equal(calls, 1);
    return sched;
}

static void set_twice(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    set_value(sched, "k", 2);
    set_value(sched, "k", 3);
    assert_released("010");
}

static void set_and_remove(struct tw_sched *sched, const struct tw_task *task)
{
    set_value(sched, "k", 2);
    assert_int_equal(tw_sched_key_remove(sched, "k", 1, NULL), TW_CANCELLED);
    assert_released("010");
    assert_int_equal(tw_sched_cancel(sched, task->id), TW_RUNNING);
    assert_released("010");
}

static void set_remove_and_set(struct tw_sched *sched, const struct tw_task *task)
{
    set_and_remove(sched, task);
    set_value(sched, "k", 3);
    assert_released("010");
}

static void cancel_this(struct tw_sched *sched, const struct tw_task *task)
{
    assert_int_equal(tw_sched_cancel(sched, task->id), TW_RUNNING);
    assert_int_equal(tw_sched_cancel(sched, task->id), TW_RUNNING);
}

static void move_this(struct tw_sched *sched, const struct tw_task *task)
{
    assert_int_equal(tw_sched_move_after(sched, task->id, ms), 0);
}

static void a_value_in_use_is_released_when_its_call_is_over(void **state)
{
    (void)state;
    for (uint64_t times = 1; times <= 3; times++) {
        struct tw_sched *sched = with_meanwhile(times, set_twice);
        assert_released("110");
        advance(sched, ms);
        assert_released("111");
        tw_sched_free(sched);
        sched = with_meanwhile(times, set_and_remove);
        assert_released("110");
        tw_sched_free(sched);
        sched = with_meanwhile(times, set_remove_and_set);
        assert_released("110");
        tw_sched_free(sched);
        assert_released("111");
        sched = with_meanwhile(times, cancel_this);
        assert_released("1");
        tw_sched_free(sched);
        sched = with_meanwhile(times, move_this);
        assert_released("0");
        tw_sched_free(sched);
        assert_released("1");
    }
}

static int handed_without, handed_with;

static void hand_busy(void *arg, const struct tw_task *task)
{
    (void)arg;
    handed_without += task->fn == NULL && task->arg == NULL;
    handed_with += task->fn == log_call && task->arg == value_of(2) && released[2] == 0;
}

static void stop_this(struct tw_sched *sched, const struct tw_task *task)
{
    (void)task;
    tw_sched_stop(sched, 0, hand_busy, NULL);
}

static void set_and_stop(struct tw_sched *sched, const struct tw_task *task)
{
    set_value(sched, "k", 2);
    stop_this(sched, task);
    assert_released("01");
}

static void move_and_stop(struct tw_sched *sched, const struct tw_task *task)
{
    move_this(sched, task);
    stop_this(sched, task);
}

static void a_stop_hands_a_value_in_use_to_nobody(void **state)
{
    (void)state;
    handed_without = handed_with = 0;
    tw_sched_free(with_meanwhile(2, stop_this));
    assert_released("10");
    assert_int_equal(handed_without, 1);
    tw_sched_free(with_meanwhile(2, set_and_stop));
    assert_released("11");
    assert_int_equal(handed_with, 1);
    struct tw_sched *sched = releasing_sched(NULL);
    meanwhile = move_and_stop;
    tw_sched_after(sched, ms, call_meanwhile, value_of(3), NULL);
    advance(sched, ms);
    assert_released("001");
    assert_int_equal(handed_without, 2);
    tw_sched_free(sched);
    sched = releasing_sched(log_call); /* the value is not the hook's: it is handed as ever */
    meanwhile = stop_this;
    struct tw_every twice = {.first_ns = ms, .period_ns = ms, .times = 2};
    tw_sched_every(sched, &twice, call_meanwhile, value_of(4), NULL);
    advance(sched, ms);
    assert_int_equal(handed_without, 2);
    tw_sched_free(sched);
    assert_released("0000");
}

static void a_task_whose_value_is_being_released_cannot_be_called_back(void **state)
{
    (void)state;
    struct tw_sched *sched = releasing_sched(NULL);
    tw_sched_after(sched, ms, log_call, value_of(1), &release_id);
    release_calls = sched;
    advance(sched, 10 * ms);
    assert_int_equal(calls, 1);
    assert_released("1");
    assert_int_equal(release_error[0], TW_EGONE);
    assert_int_equal(release_error[1], TW_EDEADLK);
    release_calls = NULL;
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bad_option_is_named_with_its_value_and_range),
        cmocka_unit_test(options_may_be_left_out),
        cmocka_unit_test(a_task_runs_on_the_first_tick_that_is_not_before_its_time),
        cmocka_unit_test(tasks_of_one_tick_run_in_the_order_of_adding),
        cmocka_unit_test(a_time_that_has_passed_means_the_next_tick),
        cmocka_unit_test(the_end_of_time_never_comes_and_sums_saturate),
        cmocka_unit_test(the_id_is_there_before_the_task_can_run),
        cmocka_unit_test(a_stale_id_finds_nothing_though_its_place_is_taken_again),
        cmocka_unit_test(nonsense_ids_find_nothing),
        cmocka_unit_test(a_place_whose_generations_are_used_up_is_left_alone),
        cmocka_unit_test(cancelled_memory_is_used_again_at_once),
        cmocka_unit_test(cancelled_memory_serves_when_there_is_no_other),
        cmocka_unit_test(the_next_event_is_not_a_cancelled_one),
        cmocka_unit_test(a_task_can_be_looked_up_by_its_id),
        cmocka_unit_test(a_callback_may_cancel_another_of_its_own_tick),
        cmocka_unit_test(a_callback_that_cancels_itself_was_the_last),
        cmocka_unit_test(a_task_that_runs_once_may_file_itself_again_under_its_id),
        cmocka_unit_test(a_cancelled_task_cannot_move_itself),
        cmocka_unit_test(a_callback_that_keeps_moving_itself_to_now_runs_once_a_tick),
        cmocka_unit_test(a_callback_may_add_tasks),
        cmocka_unit_test(a_callback_may_stop_the_scheduler),
        cmocka_unit_test(a_callback_cannot_wait_for_itself_and_is_not_cancelled),
        cmocka_unit_test(a_callback_may_drive_another_scheduler),
        cmocka_unit_test(a_repeating_task_keeps_its_phase_and_counts_its_calls),
        cmocka_unit_test(the_first_call_may_have_a_point_in_time),
        cmocka_unit_test(without_times_it_repeats_for_ever),
        cmocka_unit_test(a_period_shorter_than_a_tick_is_refused),
        cmocka_unit_test(burst_makes_up_for_every_missed_period),
        cmocka_unit_test(skip_goes_on_at_the_next_period_ahead),
        cmocka_unit_test(coalesce_makes_one_call_stand_for_all),
        cmocka_unit_test(missed_periods_use_up_no_calls),
        cmocka_unit_test(a_stop_inside_a_coalesced_call_hands_over_the_call_after_it),
        cmocka_unit_test(a_move_in_a_coalesced_call_starts_afresh),
        cmocka_unit_test(a_repeating_task_is_not_lost_on_a_wheel_that_is_behind),
        cmocka_unit_test(a_moved_repeating_task_goes_on_from_its_new_time),
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
        cmocka_unit_test(a_key_names_at_most_one_task),
        cmocka_unit_test(keys_are_any_bytes_up_to_64_kib),
        cmocka_unit_test(many_keys_are_told_apart),
        cmocka_unit_test(a_moved_key_fires_once_at_its_last_time),
        cmocka_unit_test(a_key_can_be_looked_up_and_removed_with_its_value),
        cmocka_unit_test(a_key_set_anew_in_its_callback_runs_again),
        cmocka_unit_test(a_key_set_anew_and_removed_in_its_callback_gives_the_new_value_back),
        cmocka_unit_test(a_keyed_task_may_repeat),
        cmocka_unit_test(max_pending_refuses_the_one_too_many_and_counts_right),
        cmocka_unit_test(a_last_call_makes_room_while_it_runs),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(what_was_reserved_cannot_fail),
        cmocka_unit_test(a_geometry_that_refuses_is_heard),
        cmocka_unit_test(a_geometry_that_refuses_is_heard_inside_callbacks),
        cmocka_unit_test(a_task_that_is_ready_stays_so_when_it_cannot_be_moved),
        cmocka_unit_test(many_tasks_have_room),
        cmocka_unit_test(what_can_never_be_reserved_takes_no_memory),
        cmocka_unit_test(the_end_of_time_never_comes),
        cmocka_unit_test(a_drain_that_adds_hands_over_what_was_there),
        cmocka_unit_test(a_reserve_may_fail_half_way),
        cmocka_unit_test(periods_of_centuries_saturate),
        cmocka_unit_test(a_scheduler_without_threads_says_so_and_can_try_again),
        cmocka_unit_test(a_scheduler_without_descriptors_says_so),
        cmocka_unit_test(a_callback_cannot_file_itself_again_after_the_stop),
        cmocka_unit_test(drain_hands_over_everything_and_goes_on),
        cmocka_unit_test(a_drain_tells_a_stopped_scheduler_apart_from_an_empty_one),
        cmocka_unit_test(stop_hands_over_what_did_not_run_once),
        cmocka_unit_test(after_a_stop_there_is_no_task_to_move_or_to_remove),
        cmocka_unit_test(a_negative_delay_that_was_cast_never_comes),
        cmocka_unit_test(stop_hands_over_the_calls_to_come_of_a_running_task),
        cmocka_unit_test(a_virtual_clock_does_not_go_back_and_others_are_not_moved),
        cmocka_unit_test(next_is_the_time_of_the_next_work),
        cmocka_unit_test(late_and_slow_callbacks_are_told_and_counted),
        cmocka_unit_test(percentiles_are_right_to_three_per_cent),
        cmocka_unit_test(statistics_can_be_read_by_prometheus),
        cmocka_unit_test(a_forecast_counts_what_is_due_in_each_step),
        cmocka_unit_test(a_forecast_counts_every_call_of_a_repeating_task),
        cmocka_unit_test(a_forecast_counts_what_follows_the_call_under_way),
        cmocka_unit_test(a_forecast_counts_missed_periods_as_their_policy_has_it),
        cmocka_unit_test(a_forecast_of_more_than_one_hold_of_the_lock_is_complete),
        cmocka_unit_test(a_forecast_counts_a_backlog),
        cmocka_unit_test(a_bad_forecast_is_refused),
        cmocka_unit_test(a_value_is_released_after_the_last_call),
        cmocka_unit_test(a_value_is_released_when_its_task_is_cancelled_removed_or_set_anew),
        cmocka_unit_test(what_was_refused_is_not_released),
        cmocka_unit_test(what_is_drained_stopped_or_freed_is_released_once_it_was_handed),
        cmocka_unit_test(only_the_values_of_the_function_that_was_named_are_released),
        cmocka_unit_test(a_value_in_use_is_released_when_its_call_is_over),
        cmocka_unit_test(a_stop_hands_a_value_in_use_to_nobody),
        cmocka_unit_test(a_task_whose_value_is_being_released_cannot_be_called_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
