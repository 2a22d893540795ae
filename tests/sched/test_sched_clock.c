/* SPDX-License-Identifier: MIT
 *
 * The one file that sleeps: the scheduler on real clocks and with threads. The limits are generous; on a machine that is
 * so busy that even sleeping is late, it says so and skips itself (exit status 77).
 */
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <tickwheel/sched.h>
#include <time.h>

static const uint64_t ms = 1000000;
static _Atomic int calls, running;
static _Atomic uint64_t latest;

static void sleep_ms(long n)
{
    struct timespec rest = {n / 1000, n % 1000 * 1000000};
    nanosleep(&rest, NULL);
}

static void count_call(struct tw_sched *sched, const struct tw_task *task)
{
    assert_true(tw_sched_now(sched) >= task->due_ns);
    if (task->late_ns > latest)
        latest = task->late_ns;
    calls++;
}

static struct tw_sched *sched_of(struct tw_sched_options options)
{
    struct tw_sched *sched = NULL;
    calls = running = 0;
    latest = 0;
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    return sched;
}

static bool wait_for_calls(int n)
{
    for (int i = 0; i < 5000 && calls < n; i++)
        sleep_ms(1);
    return calls == n;
}

static void tasks_run_on_both_clocks_and_never_early(void **state)
{
    (void)state;
    static const enum tw_sched_clock clocks[] = {TW_SCHED_BOOTTIME, TW_SCHED_MONOTONIC};
    for (int c = 0; c < 2; c++)
        for (uint32_t workers = 0; workers < 3; workers++) {
            struct tw_sched *sched =
                sched_of((struct tw_sched_options){.clock = clocks[c], .workers = workers});
            for (uint64_t i = 0; i < 100; i++)
                assert_int_equal(tw_sched_after(sched, i * ms + i * 777, count_call, NULL, NULL), 0);
            assert_true(wait_for_calls(100));
            assert_true(latest < 1000 * ms);
            tw_sched_free(sched);
        }
}

static void an_earlier_task_wakes_a_scheduler_that_sleeps_long(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 3});
    uint64_t far;
    tw_sched_after(sched, 3600000 * ms, count_call, NULL, &far);
    sleep_ms(50);
    tw_sched_after(sched, 10 * ms, count_call, NULL, NULL);
    assert_true(wait_for_calls(1));
    sleep_ms(20);
    assert_int_equal(tw_sched_move_after(sched, far, 10 * ms), 0);
    assert_true(wait_for_calls(2));
    tw_sched_set_after(sched, "k", 1, 3600000 * ms, count_call, NULL, NULL);
    sleep_ms(20);
    tw_sched_key_move_after(sched, "k", 1, 10 * ms);
    assert_true(wait_for_calls(3));
    tw_sched_free(sched);
}

/* Times that the threads of this process went to sleep. */
static long naps(void)
{
    long sum = 0;
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *entry; (entry = readdir(tasks)) != NULL;) {
        char path[300], line[100];
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *status = fopen(path, "r");
        while (status != NULL && fgets(line, sizeof line, status) != NULL)
            if (strncmp(line, "voluntary_ctxt_switches:", 24) == 0)
                sum += atol(line + 24);
        if (status != NULL)
            fclose(status);
    }
    closedir(tasks);
    return sum;
}

static void nobody_wakes_up_while_nothing_is_due(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = 2});
    for (uint64_t i = 0; i < 1000; i++)
        tw_sched_after(sched, 3600000 * ms + i, count_call, NULL, NULL);
    sleep_ms(100);
    long before = naps();
    sleep_ms(500);
    assert_true(naps() - before <= 5); /* our own sleep is one */
    tw_sched_free(sched);
}

static void run_long(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    running++;
    sleep_ms(1000);
    running--;
}

static void a_slow_callback_does_not_delay_others_while_workers_are_free(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = 2});
    tw_sched_after(sched, 5 * ms, run_long, NULL, NULL);
    for (uint64_t i = 0; i < 500; i++)
        tw_sched_after(sched, 20 * ms + i * ms, count_call, NULL, NULL);
    assert_true(wait_for_calls(500));
    assert_int_equal(running, 1); /* it was busy all the time */
    struct tw_sched_stats stats;
    tw_sched_stats(sched, &stats);
    assert_true(stats.late_p50_ns < 20 * ms);
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

/* Keys lie on all shards; they are all due when the timer thread comes to look. */
static void a_thread_that_comes_late_keeps_the_order_across_shards(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 5});
    uint64_t now = tw_sched_now(sched);
    last_due = 0;
    disorder = 0;
    tw_sched_at(sched, now + 5 * ms, run_long, NULL, NULL);
    for (uint64_t i = 300; i > 0; i--)
        tw_sched_set_at(sched, &i, sizeof i, now + 20 * ms + i * 3 * ms, check_order, NULL, NULL);
    assert_true(wait_for_calls(300));
    assert_int_equal(disorder, 0);
    tw_sched_free(sched);
}

static void cancel_wait_waits_until_the_callback_has_returned(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = 1});
    enum tw_cancelled found;
    uint64_t id;
    tw_sched_after(sched, ms, run_long, NULL, &id);
    while (running == 0)
        sleep_ms(1);
    assert_int_equal(tw_sched_cancel(sched, id), TW_RUNNING);
    assert_int_equal(running, 1);
    assert_int_equal(tw_sched_cancel_wait(sched, id, &found), 0);
    assert_int_equal(found, TW_RUNNING);
    assert_int_equal(running, 0);
    tw_sched_free(sched);
}

static void stop_waits_for_callbacks_unless_told_not_to(void **state)
{
    (void)state;
    for (unsigned flags = 0; flags <= TW_STOP_NOWAIT; flags++) {
        struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = flags == 0 ? 2 : 0});
        tw_sched_after(sched, ms, run_long, NULL, NULL);
        tw_sched_after(sched, 600000 * ms, count_call, NULL, NULL);
        while (running == 0)
            sleep_ms(1);
        assert_int_equal(tw_sched_stop(sched, flags, NULL, NULL), 1);
        assert_int_equal(running, flags == 0 ? 0 : 1);
        tw_sched_free(sched);
        assert_int_equal(running, 0);
    }
}

/* A machine on which a sleep of 2 ms takes 30 has other things to do than to keep time. */
static bool overloaded(void)
{
    struct timespec before, after;
    for (int i = 0; i < 20; i++) {
        clock_gettime(CLOCK_MONOTONIC, &before);
        sleep_ms(2);
        clock_gettime(CLOCK_MONOTONIC, &after);
        if ((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 > 30)
            return true;
    }
    return false;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_on_both_clocks_and_never_early),
        cmocka_unit_test(an_earlier_task_wakes_a_scheduler_that_sleeps_long),
        cmocka_unit_test(nobody_wakes_up_while_nothing_is_due),
        cmocka_unit_test(a_slow_callback_does_not_delay_others_while_workers_are_free),
        cmocka_unit_test(a_thread_that_comes_late_keeps_the_order_across_shards),
        cmocka_unit_test(cancel_wait_waits_until_the_callback_has_returned),
        cmocka_unit_test(stop_waits_for_callbacks_unless_told_not_to),
    };
    if (overloaded()) {
        fprintf(stderr, "skipped: this machine is too busy to keep time\n");
        return 77;
    }
    return cmocka_run_group_tests(tests, NULL, NULL);
}
