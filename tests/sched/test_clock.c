/* SPDX-License-Identifier: MIT
 *
 * The scheduler on real clocks and with threads. The tests sleep, and their limits are generous. If the
 * machine is so busy that even a sleep ends late, the program says so and skips itself (exit status 77). As the
 * tests do little else than sleep, they run side by side, each in a process of its own.
 */
#include "spread.h"
#include "tests/support/cmocka.h"

#include <dirent.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tickwheel/sched.h>
#include <time.h>
#include <unistd.h>

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
    spread_keys(sched);
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

/* How often the threads of this process have gone to sleep. */
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
    assert_true(naps() - before <= 5); /* the sleep of this thread counts too */
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
    assert_int_equal(running, 1); /* the slow callback has run all the time */
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

/* Keys lie on all shards. When the timer thread looks, all of them are due, and many calls of a repeating
 * task are due as well. */
static void a_thread_that_comes_late_keeps_the_order(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards <= 5; shards += 4) {
        struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = shards});
        spread_keys(sched);
        uint64_t now = tw_sched_now(sched);
        struct tw_every every = {.at_ns = now + 21500000, .period_ns = 9 * ms, .times = 100};
        last_due = 0;
        disorder = 0;
        tw_sched_at(sched, now + 5 * ms, run_long, NULL, NULL);
        tw_sched_every(sched, &every, check_order, NULL, NULL);
        for (uint64_t i = 300; i > 0; i--)
            tw_sched_set_at(sched, &i, sizeof i, now + 20 * ms + i * 3 * ms, check_order, NULL, NULL);
        assert_true(wait_for_calls(400));
        assert_int_equal(disorder, 0);
        tw_sched_free(sched);
    }
}

/* Processor time of this process. */
static uint64_t cpu_ms(void)
{
    struct timespec used;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &used);
    return (uint64_t)used.tv_sec * 1000 + (uint64_t)used.tv_nsec / ms;
}

static void nobody_spins_once_woken_or_while_workers_are_busy(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = 1});
    tw_sched_after(sched, 3600000 * ms, count_call, NULL, NULL);
    sleep_ms(20);
    tw_sched_after(sched, ms, run_long, NULL, NULL); /* wakes the timer thread, which sleeps for an hour */
    tw_sched_after(sched, 2 * ms, count_call, NULL, NULL);
    while (running == 0)
        sleep_ms(1);
    uint64_t before = cpu_ms();
    sleep_ms(500);
    assert_true(cpu_ms() - before < 200);
    assert_true(wait_for_calls(1));
    before = cpu_ms();
    sleep_ms(300);
    assert_true(cpu_ms() - before < 150);
    tw_sched_free(sched);
}

static void tasks_due_together_run_side_by_side(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = 3});
    uint64_t at = tw_sched_now(sched) + 50 * ms;
    for (int i = 0; i < 3; i++)
        tw_sched_at(sched, at, run_long, NULL, NULL);
    bool together = false;
    for (int i = 0; i < 900 && !together; i++) {
        together = running == 3;
        sleep_ms(1);
    }
    assert_true(together);
    tw_sched_free(sched);
}

/* Of a thousand tasks that are due together, the first blocks one of the workers. */
static void a_slow_callback_does_not_delay_tasks_that_are_due_with_it(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.workers = 2});
    uint64_t at = tw_sched_now(sched) + 50 * ms, removed = 0, id[1000];
    tw_sched_at(sched, at, run_long, NULL, NULL);
    for (int i = 0; i < 1000; i++)
        tw_sched_at(sched, at, i == 500 ? run_long : count_call, NULL, &id[i]);
    assert_true(wait_for_calls(500)); /* and now both workers are in a slow callback */
    assert_int_equal(running, 2);
    assert_true(latest < 500 * ms);
    for (int i = 501; i < 1000; i += 2) /* a task that waits for a worker is still only a task that waits */
        removed += tw_sched_cancel(sched, id[i]) == TW_CANCELLED;
    assert_int_equal(removed, 250);
    assert_int_equal(tw_sched_move_after(sched, id[502], 10 * ms), 0);
    assert_int_equal(tw_sched_drain(sched, NULL, NULL), 249);
    assert_int_equal(calls, 500);
    tw_sched_free(sched);
}

static _Atomic uint64_t brought;

static void bring(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched;
    brought = id;
}

/* Each call is so late that the next call is overdue when it returns. */
static void an_executor_that_is_late_is_brought_the_next_call_at_once(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.execute = bring});
    struct tw_every every = {.first_ns = 10 * ms, .period_ns = 10 * ms, .times = 4};
    uint64_t id;
    brought = 0;
    tw_sched_every(sched, &every, count_call, NULL, &id);
    sleep_ms(100);
    for (int i = 0; i < 5000 && calls < 4; i++) {
        if (brought != 0) {
            brought = 0;
            tw_sched_run(sched, id);
        }
        sleep_ms(1);
    }
    assert_int_equal(calls, 4);
    tw_sched_free(sched);
}

/* The wheel has 256 ticks, and the timer thread does not look at it while no task is due. */
static void a_wheel_that_refuses_reaches_as_far_after_a_rest(void **state)
{
    (void)state;
    struct tw_geometry geometry = TW_SIMPLE(256);
    for (uint32_t workers = 0; workers < 2; workers++) {
        struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &geometry, .workers = workers});
        struct tw_every every = {.first_ns = 20 * ms, .period_ns = 200 * ms, .times = 2};
        sleep_ms(300);
        assert_int_equal(tw_sched_after(sched, 10 * ms, count_call, NULL, NULL), 0);
        assert_true(wait_for_calls(1));
        sleep_ms(300);
        assert_int_equal(tw_sched_set_after(sched, "k", 1, 200 * ms, count_call, NULL, NULL), 0);
        sleep_ms(100);
        assert_int_equal(tw_sched_key_move_after(sched, "k", 1, 200 * ms), 0);
        assert_int_equal(tw_sched_every(sched, &every, count_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_after(sched, 300 * ms, count_call, NULL, NULL), TW_ERANGE);
        assert_true(wait_for_calls(4));
        tw_sched_free(sched);
    }
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

/* Whether the machine is too busy to keep time: one of 20 sleeps of 2 ms takes more than 30 ms. */
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

/* While the timer thread is in a callback, other tasks become due, and the test moves one of them. */
static void a_wheel_that_refuses_is_brought_to_the_present_by_who_needs_it(void **state)
{
    (void)state;
    struct tw_geometry geometry = TW_SIMPLE(256);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &geometry});
    uint64_t moved;
    tw_sched_after(sched, ms, run_long, NULL, NULL);
    tw_sched_after(sched, 100 * ms, count_call, NULL, NULL);
    tw_sched_after(sched, 110 * ms, count_call, NULL, &moved);
    while (running == 0)
        sleep_ms(1);
    sleep_ms(300);
    assert_int_equal(tw_sched_move_after(sched, moved, 200 * ms), 0);
    assert_int_equal(tw_sched_after(sched, 200 * ms, count_call, NULL, NULL), 0);
    assert_true(wait_for_calls(3));
    tw_sched_free(sched);
}

int main(void)
{
    static const struct CMUnitTest tests[] = {
        cmocka_unit_test(tasks_run_on_both_clocks_and_never_early),
        cmocka_unit_test(an_earlier_task_wakes_a_scheduler_that_sleeps_long),
        cmocka_unit_test(nobody_wakes_up_while_nothing_is_due),
        cmocka_unit_test(a_slow_callback_does_not_delay_others_while_workers_are_free),
        cmocka_unit_test(a_thread_that_comes_late_keeps_the_order),
        cmocka_unit_test(nobody_spins_once_woken_or_while_workers_are_busy),
        cmocka_unit_test(tasks_due_together_run_side_by_side),
        cmocka_unit_test(a_slow_callback_does_not_delay_tasks_that_are_due_with_it),
        cmocka_unit_test(an_executor_that_is_late_is_brought_the_next_call_at_once),
        cmocka_unit_test(a_wheel_that_refuses_reaches_as_far_after_a_rest),
        cmocka_unit_test(a_wheel_that_refuses_is_brought_to_the_present_by_who_needs_it),
        cmocka_unit_test(cancel_wait_waits_until_the_callback_has_returned),
        cmocka_unit_test(stop_waits_for_callbacks_unless_told_not_to),
    };
    if (overloaded()) {
        fprintf(stderr, "skipped: this machine is too busy to keep time\n");
        return 77;
    }
    enum { COUNT = sizeof tests / sizeof *tests };
    pid_t child[COUNT];
    for (int i = 0; i < COUNT; i++) {
        child[i] = fork();
        if (child[i] == 0) {
            cmocka_set_test_filter(tests[i].name);
            exit(cmocka_run_group_tests(tests, NULL, NULL));
        }
    }
    int failed = 0;
    for (int i = 0; i < COUNT; i++) {
        int status = -1;
        failed += child[i] < 0 || waitpid(child[i], &status, 0) < 0 || status != 0;
    }
    return failed;
}
