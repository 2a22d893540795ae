/* SPDX-License-Identifier: MIT
 *
 * The scheduler with threads. One test runs on the real clocks, and asks only whether a task comes too early.
 * In the others time stands still until they move it (own_clock.h): a task that is due is called while nothing
 * moves, or never.
 */
#include "outcome.h"
#include "own_clock.h"
#include "spread.h"

static const uint64_t ms = 1000000, hour = 3600000000000;
static _Atomic int calls, early, running;
static sem_t may_return;

static void count_call(struct tw_sched *sched, const struct tw_task *task)
{
    early += tw_sched_now(sched) < task->due_ns;
    calls++;
}

/* Runs until the test posts `may_return`. */
static void run_long(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    running++;
    eventually_posted(&may_return);
    running--;
}

static int set_up(void **state)
{
    (void)state;
    calls = early = running = 0;
    return sem_init(&may_return, 0, 0);
}

static int tear_down(void **state)
{
    (void)state;
    assert_int_equal(early, 0);
    assert_int_equal(own.short_sleeps, 0);
    return sem_destroy(&may_return);
}

#define wait_for_calls(n) EVENTUALLY_TOLD(calls == (n), "%d calls, expected %d", calls, (int)(n))

static enum tw_sched_clock clock_in_use(const struct tw_sched *sched)
{
    struct tw_sched_info stats;
    tw_sched_stats(sched, &stats, sizeof stats);
    return stats.clock;
}

static void tasks_run_on_both_clocks_and_never_early(void **state)
{
    (void)state;
    static const struct {
        enum tw_sched_clock wanted, used;
        int kind;
    } clocks[] = {{TW_SCHED_CLOCK_AUTO, TW_SCHED_CLOCK_BOOTTIME, CLOCK_BOOTTIME},
                  {TW_SCHED_CLOCK_BOOTTIME, TW_SCHED_CLOCK_BOOTTIME, CLOCK_BOOTTIME},
                  {TW_SCHED_CLOCK_MONOTONIC, TW_SCHED_CLOCK_MONOTONIC, CLOCK_MONOTONIC}};
    own.stands = false;
    for (int c = 0; c < 3; c++)
        for (uint32_t workers = 0; workers < 3; workers++) {
            struct tw_sched_options options = {.clock = clocks[c].wanted, .workers = workers};
            struct tw_sched *sched = NULL;
            calls = 0;
            assert_int_equal(tw_sched_new(&sched, &options), 0);
            for (uint64_t i = 0; i < 100; i++)
                assert_int_equal(tw_sched_add_in(sched, i * ms + i * 777, count_call, NULL, NULL), 0);
            wait_for_calls(100);
            assert_int_equal(own.read_kind, clocks[c].kind);
            assert_int_equal(own.alarm_kind, clocks[c].kind);
            assert_int_equal(clock_in_use(sched), clocks[c].used);
            tw_sched_free(sched);
        }
}

static void a_system_without_boottime_timers_counts_on_the_monotonic_clock(void **state)
{
    (void)state;
    for (int known = 0; known < 2; known++) {
        struct tw_sched *none = NULL;
        calls = 0;
        own.no_boottime = known == 0;
        own.no_boottime_timers = true;
        struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 1});
        assert_int_equal(clock_in_use(sched), TW_SCHED_CLOCK_MONOTONIC);
        tw_sched_add_in(sched, 10 * ms, count_call, NULL, NULL);
        settle();
        pass(10 * ms);
        wait_for_calls(1);
        assert_int_equal(own.read_kind, CLOCK_MONOTONIC);
        assert_int_equal(own.alarm_kind, CLOCK_MONOTONIC);
        tw_sched_free(sched);
        assert_int_equal(tw_sched_new(&none, &(struct tw_sched_options){.clock = TW_SCHED_CLOCK_BOOTTIME}),
                         TW_ECLOCK);
        assert_null(none);
        sched = still_sched((struct tw_sched_options){.clock = TW_SCHED_CLOCK_MONOTONIC});
        tw_sched_free(sched);
    }
    own.no_boottime = own.no_boottime_timers = false;
    assert_non_null(strstr(tw_sched_strerror(TW_ECLOCK), "CLOCK_BOOTTIME"));
}

static void an_earlier_task_wakes_a_scheduler_that_sleeps_long(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.shards = 3});
    uint64_t far;
    spread_keys(sched);
    tw_sched_add_in(sched, hour, count_call, NULL, &far);
    settle();
    tw_sched_add_in(sched, 10 * ms, count_call, NULL, NULL);
    settle();
    pass(10 * ms);
    wait_for_calls(1);
    settle();
    assert_int_equal(tw_sched_move_in(sched, far, 10 * ms), 0);
    settle();
    assert_int_equal(calls, 1);
    pass(10 * ms);
    wait_for_calls(2);
    tw_sched_key_put_in(sched, tw_text("k"), hour, count_call, NULL, NULL);
    settle();
    tw_sched_key_move_in(sched, tw_text("k"), 10 * ms);
    settle();
    assert_int_equal(calls, 2);
    pass(10 * ms);
    wait_for_calls(3);
    tw_sched_free(sched);
}

/* An hour passes in steps of a minute. The timer thread sleeps on; a wheel may have some work on the way. */
static void nobody_wakes_up_while_nothing_is_due(void **state)
{
    (void)state;
    for (uint32_t workers = 0; workers < 3; workers++) {
        struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = workers});
        calls = 0;
        for (uint64_t i = 0; i < 1000; i++)
            tw_sched_add_in(sched, hour + i, count_call, NULL, NULL);
        settle();
        EVENTUALLY(own.waiting == (int)workers);
        long sleeps = own.sleeps, waits = own.waits;
        for (int minute = 1; minute < 60; minute++) {
            pass(60000 * ms);
            settle();
        }
        assert_int_equal(calls, 0);
        assert_int_equal(own.waits, waits);
        pass(60000 * ms + ms); /* most tasks are due in the tick after the hour */
        wait_for_calls(1000);
        settle();
        assert_in_range(own.sleeps - sleeps, 1, 5);
        tw_sched_free(sched);
    }
}

static void a_slow_callback_does_not_delay_others_while_workers_are_free(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 2});
    tw_sched_add_in(sched, 5 * ms, run_long, NULL, NULL);
    for (uint64_t i = 0; i < 500; i++)
        tw_sched_add_in(sched, 20 * ms + i * ms, count_call, NULL, NULL);
    pass(5 * ms);
    EVENTUALLY(running == 1);
    pass(14 * ms);
    for (int i = 1; i <= 500; i++) {
        pass(ms);
        wait_for_calls(i);
    }
    assert_int_equal(running, 1); /* the slow callback has run all the time */
    sem_post(&may_return);
    tw_sched_free(sched);
}

static uint64_t last_due;
static _Atomic int disorder;

static void check_order(struct tw_sched *sched, const struct tw_task *task)
{
    disorder += task->due_ns <= last_due;
    last_due = task->due_ns;
    count_call(sched, task);
}

static void take_a_second(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    pass(1000 * ms);
}

/* Keys lie on all shards. When the timer thread looks, all of them are due, and many calls of a repeating
 * task are due as well. */
static void a_thread_that_comes_late_keeps_the_order(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards <= 5; shards += 4) {
        struct tw_sched *sched = still_sched((struct tw_sched_options){.shards = shards});
        spread_keys(sched);
        uint64_t now = tw_sched_now(sched);
        struct tw_every every = {
            .at_ns = now + 21500000, .period_ns = 9 * ms, .times = 100, .missed = TW_MISSED_BURST};
        last_due = 0;
        calls = disorder = 0;
        tw_sched_add_at(sched, now + 5 * ms, take_a_second, NULL, NULL);
        tw_sched_add_every(sched, &every, check_order, NULL, NULL);
        for (uint64_t i = 300; i > 0; i--)
            tw_sched_key_put_at(sched, BYTES_OF(i), now + 20 * ms + i * 3 * ms, check_order, NULL, NULL);
        pass(5 * ms);
        wait_for_calls(400);
        assert_int_equal(disorder, 0);
        tw_sched_free(sched);
    }
}

static void nobody_spins_once_woken_or_while_workers_are_busy(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 1});
    tw_sched_add_in(sched, hour, count_call, NULL, NULL);
    settle();
    tw_sched_add_in(sched, ms, run_long, NULL, NULL); /* wakes the timer thread, which sleeps for an hour */
    tw_sched_add_in(sched, 2 * ms, count_call, NULL, NULL);
    pass(2 * ms);
    EVENTUALLY(running == 1);
    settle(); /* a thread that spins never gets there */
    assert_int_equal(calls, 0);
    sem_post(&may_return);
    wait_for_calls(1);
    settle();
    EVENTUALLY(own.waiting == 1); /* the worker */
    assert_in_range(own.sleeps, 2, 6);
    assert_in_range(own.waits, 1, 6);
    tw_sched_free(sched);
}

static void tasks_due_together_run_side_by_side(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 3});
    for (int i = 0; i < 3; i++)
        tw_sched_add_in(sched, 50 * ms, run_long, NULL, NULL);
    pass(50 * ms);
    EVENTUALLY_TOLD(running == 3, "%d run", running);
    for (int i = 0; i < 3; i++)
        sem_post(&may_return);
    tw_sched_free(sched);
}

/* Of a thousand tasks that are due together, the first blocks one of the workers. */
static void a_slow_callback_does_not_delay_tasks_that_are_due_with_it(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 2});
    uint64_t at = tw_sched_now(sched) + 50 * ms, removed = 0, id[1000];
    tw_sched_add_at(sched, at, run_long, NULL, NULL);
    for (int i = 0; i < 1000; i++)
        tw_sched_add_at(sched, at, i == 500 ? run_long : count_call, NULL, &id[i]);
    pass(50 * ms);
    EVENTUALLY_TOLD(running == 2, "%d run", running); /* both workers are in a slow callback */
    assert_int_equal(calls, 500);
    for (int i = 501; i < 1000; i += 2) /* a task that waits for a worker is still only a task that waits */
        removed += tw_sched_cancel(sched, id[i]) == TW_CANCEL_CANCELLED;
    assert_int_equal(removed, 250);
    assert_int_equal(tw_sched_move_in(sched, id[502], 10 * ms), 0);
    assert_int_equal(try_drain(sched, NULL, NULL), 249);
    assert_int_equal(calls, 500);
    sem_post(&may_return);
    sem_post(&may_return);
    tw_sched_free(sched);
}

static _Atomic uint64_t brought;

static void bring(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched;
    brought = id;
}

/* Each call is so late that the next call is late too when it returns. */
static void an_executor_that_is_late_is_brought_the_next_call_at_once(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.execute = bring});
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .times = 4, .missed = TW_MISSED_BURST};
    uint64_t id;
    brought = 0;
    tw_sched_add_every(sched, &every, count_call, NULL, &id);
    pass(100 * ms);
    for (int i = 1; i <= 4; i++) {
        EVENTUALLY_TOLD(brought == id, "after %d calls", calls);
        brought = 0;
        tw_sched_run(sched, id);
        assert_int_equal(calls, i);
    }
    tw_sched_free(sched);
}

/* Lets time pass, with a look of the timer thread every 20 ms. */
static void pass_by_and_by(uint64_t ns)
{
    for (; ns > 0; ns -= 20 * ms) {
        pass(20 * ms);
        settle();
    }
}

/* The wheel has 256 ticks, and the timer thread does not look at it while no task is due. */
static void a_wheel_that_refuses_reaches_as_far_after_a_rest(void **state)
{
    (void)state;
    struct tw_geometry geometry = TW_GEOMETRY_SIMPLE(256);
    for (uint32_t workers = 0; workers < 2; workers++) {
        struct tw_sched *sched =
            still_sched((struct tw_sched_options){.geometry = &geometry, .workers = workers});
        struct tw_every every = {.first_ns = 20 * ms, .period_ns = 200 * ms, .times = 2};
        calls = 0;
        pass(300 * ms);
        assert_int_equal(tw_sched_add_in(sched, 10 * ms, count_call, NULL, NULL), 0);
        pass(10 * ms);
        wait_for_calls(1);
        settle();
        pass(300 * ms);
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), 200 * ms, count_call, NULL, NULL), 0);
        pass(100 * ms);
        assert_int_equal(tw_sched_key_move_in(sched, tw_text("k"), 200 * ms), 0);
        assert_int_equal(tw_sched_add_every(sched, &every, count_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_add_in(sched, 300 * ms, count_call, NULL, NULL), TW_ERANGE);
        pass_by_and_by(20 * ms);
        wait_for_calls(2); /* before the next period: otherwise one call stands for both */
        pass_by_and_by(200 * ms);
        wait_for_calls(4);
        tw_sched_free(sched);
    }
}

/* While the timer thread is in a callback, other tasks become due, and the test moves one of them. */
static void a_wheel_that_refuses_is_brought_to_the_present_by_who_needs_it(void **state)
{
    (void)state;
    struct tw_geometry geometry = TW_GEOMETRY_SIMPLE(256);
    struct tw_sched *sched = still_sched((struct tw_sched_options){.geometry = &geometry});
    uint64_t moved;
    tw_sched_add_in(sched, ms, run_long, NULL, NULL);
    tw_sched_add_in(sched, 100 * ms, count_call, NULL, NULL);
    tw_sched_add_in(sched, 110 * ms, count_call, NULL, &moved);
    pass(ms);
    EVENTUALLY(running == 1);
    pass(300 * ms);
    assert_int_equal(tw_sched_move_in(sched, moved, 200 * ms), 0);
    assert_int_equal(tw_sched_add_in(sched, 200 * ms, count_call, NULL, NULL), 0);
    sem_post(&may_return);
    wait_for_calls(1);
    settle();
    assert_int_equal(calls, 1);
    pass(200 * ms);
    wait_for_calls(3);
    tw_sched_free(sched);
}

/* Lets the callback return once this many threads wait for something. */
static void *let_return(void *threads)
{
    EVENTUALLY_TOLD(own.waiting == *(const int *)threads, "%d threads wait", own.waiting);
    sem_post(&may_return);
    return NULL;
}

static void cancel_wait_waits_until_the_callback_has_returned(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 1});
    enum tw_cancel found;
    const int threads = 1;
    pthread_t other;
    uint64_t id;
    tw_sched_add_in(sched, ms, run_long, NULL, &id);
    pass(ms);
    EVENTUALLY(running == 1);
    assert_int_equal(tw_sched_cancel(sched, id), TW_CANCEL_AT_WORK);
    assert_int_equal(running, 1);
    assert_int_equal(pthread_create(&other, NULL, let_return, (void *)&threads), 0);
    assert_int_equal(tw_sched_cancel_wait(sched, id, &found), 0);
    assert_int_equal(found, TW_CANCEL_AT_WORK);
    assert_int_equal(running, 0);
    eventually_joined(other);
    tw_sched_free(sched);
}

static pthread_mutex_t callers_lock = PTHREAD_MUTEX_INITIALIZER;

static void take_the_callers_lock(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    running++;
    pthread_mutex_lock(&callers_lock);
    pthread_mutex_unlock(&callers_lock);
    running--;
}

/* Makes a scheduler whose callback waits for a lock that the caller holds from here on. */
static struct tw_sched *sched_that_wants_the_lock(uint64_t *id)
{
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 1});
    tw_sched_add_in(sched, ms, take_the_callers_lock, NULL, id);
    pthread_mutex_lock(&callers_lock);
    pass(ms);
    EVENTUALLY(running == 1);
    return sched;
}

static void a_caller_cancels_or_stops_under_its_lock_and_waits_without_it(void **state)
{
    (void)state;
    uint64_t id;
    struct tw_sched *sched = sched_that_wants_the_lock(&id);
    assert_int_equal(tw_sched_cancel(sched, id), TW_CANCEL_AT_WORK);
    assert_int_equal(running, 1);
    pthread_mutex_unlock(&callers_lock);
    assert_int_equal(tw_sched_cancel_wait(sched, id, NULL), 0);
    assert_int_equal(running, 0);
    tw_sched_free(sched);
    sched = sched_that_wants_the_lock(&id);
    assert_int_equal(tw_sched_stop(sched, TW_SCHED_STOP_NOWAIT, NULL, NULL), 0);
    assert_int_equal(running, 1);
    pthread_mutex_unlock(&callers_lock);
    assert_int_equal(tw_sched_stop(sched, 0, NULL, NULL), 0);
    assert_int_equal(running, 0);
    tw_sched_free(sched);
}

static void stop_waits_for_callbacks_unless_told_not_to(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= TW_SCHED_STOP_NOWAIT; flags++) {
        struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = flags == 0 ? 2 : 0});
        const int threads = flags == 0 ? 2 : 1; /* the idle worker, and this thread */
        pthread_t other;
        tw_sched_add_in(sched, ms, run_long, NULL, NULL);
        tw_sched_add_in(sched, 600000 * ms, count_call, NULL, NULL);
        pass(ms);
        EVENTUALLY(running == 1);
        assert_int_equal(pthread_create(&other, NULL, let_return, (void *)&threads), 0);
        assert_int_equal(tw_sched_stop(sched, flags, NULL, NULL), 1);
        assert_int_equal(running, flags == 0 ? 0 : 1);
        tw_sched_free(sched);
        assert_int_equal(running, 0);
        eventually_joined(other);
    }
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
        TEST(tasks_run_on_both_clocks_and_never_early),
        TEST(a_system_without_boottime_timers_counts_on_the_monotonic_clock),
        TEST(an_earlier_task_wakes_a_scheduler_that_sleeps_long),
        TEST(nobody_wakes_up_while_nothing_is_due),
        TEST(a_slow_callback_does_not_delay_others_while_workers_are_free),
        TEST(a_thread_that_comes_late_keeps_the_order),
        TEST(nobody_spins_once_woken_or_while_workers_are_busy),
        TEST(tasks_due_together_run_side_by_side),
        TEST(a_slow_callback_does_not_delay_tasks_that_are_due_with_it),
        TEST(an_executor_that_is_late_is_brought_the_next_call_at_once),
        TEST(a_wheel_that_refuses_reaches_as_far_after_a_rest),
        TEST(a_wheel_that_refuses_is_brought_to_the_present_by_who_needs_it),
        TEST(cancel_wait_waits_until_the_callback_has_returned),
        TEST(a_caller_cancels_or_stops_under_its_lock_and_waits_without_it),
        TEST(stop_waits_for_callbacks_unless_told_not_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
