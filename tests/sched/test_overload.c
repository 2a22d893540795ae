/* SPDX-License-Identifier: MIT
 *
 * Repeating tasks that take longer than their period, with threads: their calls are late all the time.
 * They must not keep other tasks waiting, and nobody may forget them. A call takes time by moving the clock,
 * or runs until the test lets it return.
 */
#include "own_clock.h"
#include "support.h"

static void ignore(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
}

enum { CALL_MS = 3, ROUND = 64 }; /* a worker makes so many calls of a shard before it looks at the others */
static _Atomic unsigned noted;
static _Atomic uint64_t most_calls_behind;

/* The timer thread has looked at the new time before this call returns. */
static void take_three(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    pass(CALL_MS * ms);
    EVENTUALLY(sleeps_on() || noted == 3);
}

/* Time passes in calls of the overloaded task alone. So lateness is a number of its calls. */
static void note_lateness(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    uint64_t behind = task->late_ns / (CALL_MS * ms);
    if (behind > most_calls_behind)
        most_calls_behind = behind;
    noted++;
}

/* Files tasks for half a second, one second and one and a half from now. */
static void *file_three(void *sched)
{
    uint64_t now_ns = tw_sched_now(sched);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(tw_sched_add_at(sched, now_ns + i * 500 * ms, note_lateness, NULL, NULL), 0);
    return NULL;
}

/* The repeating task is two periods further behind after each of its calls. The tasks of the other shard come
 * as late as a round of its calls takes. */
static void an_overloaded_task_does_not_starve_another_shard(void **state)
{
    (void)state;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.workers = 1, .shards = 2});
    struct tw_every every = {.first_ns = ms, .period_ns = ms, .times = 2000, .missed = TW_MISSED_BURST};
    pthread_t other;
    assert_int_equal(tw_sched_add_every(sched, &every, take_three, NULL, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, file_three, sched), 0);
    eventually_joined(other);
    assert_int_equal(tw__sched_made(sched), 2);
    settle();
    pass(ms);
    EVENTUALLY_TOLD(noted == 3, "%u were called", noted);
    /* a task that kept its tick would bring the last one a thousand calls late */
    assert_in_range(most_calls_behind, 0, 2 * ROUND);
    tw_sched_free(sched);
}

static sem_t may_return, may_end;
static _Atomic unsigned slow_calls;
static _Atomic bool ends_late;

static void slow_once(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    if (++slow_calls == 1)
        eventually_posted(&may_return);
}

/* While the call is under way, a thread files a task at the end of the wheel's range. So it has to bring the
 * wheel to the present, beyond the tick up to which the worker may start tasks. */
static void a_late_call_is_made_although_its_wheel_is_ahead_of_the_timer_thread(void **state)
{
    (void)state;
    struct tw_geometry short_range = TW_GEOMETRY_SIMPLE(10000);
    struct tw_sched *sched =
        still_sched((struct tw_sched_options){.workers = 1, .shards = 1, .geometry = &short_range});
    struct tw_every every = {.first_ns = 20 * ms, .period_ns = 10 * ms, .missed = TW_MISSED_BURST};
    sem_init(&may_return, 0, 0);
    slow_calls = 0;
    assert_int_equal(tw_sched_add_in(sched, 5000 * ms, ignore, NULL, NULL), 0);
    assert_int_equal(tw_sched_add_every(sched, &every, slow_once, NULL, NULL), 0);
    settle();
    pass(20 * ms);
    EVENTUALLY(slow_calls == 1);
    settle();
    pass(100 * ms);
    assert_int_equal(tw_sched_add_in(sched, 9950 * ms, ignore, NULL, NULL), 0);
    settle();
    pass(100 * ms);
    sem_post(&may_return);
    EVENTUALLY_TOLD(slow_calls >= 2, "%u calls", slow_calls); /* nobody waits for the task at 5,000 ms */
    tw_sched_free(sched);
    sem_destroy(&may_return);
}

/* ---- an executor of two threads -------------------------------------------------------------------------- */

static sem_t waiting;
static _Atomic unsigned sent_tasks;
static _Atomic bool ended;

static void count_sent(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched, (void)id;
    sent_tasks++;
    sem_post(&waiting);
}

static void *serve(void *sched)
{
    while (!ended) {
        eventually_posted(&waiting);
        tw_sched_run_some(sched, 100);
    }
    return NULL;
}

static void end_late(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    ends_late = true;
    eventually_posted(&may_end);
}

/* The first thread takes both tasks. When the repeating task's first call returns, its second call is late.
 * The other thread comes then, and makes it while the first thread is in the slow callback. */
static void a_late_call_does_not_wait_for_the_rest_of_the_batch(void **state)
{
    (void)state;
    pthread_t server[2];
    sem_init(&waiting, 0, 0);
    sem_init(&may_return, 0, 0);
    sem_init(&may_end, 0, 0);
    slow_calls = 0;
    struct tw_sched *sched = still_sched((struct tw_sched_options){.shards = 1, .execute = count_sent});
    uint64_t at_ns = tw_sched_now(sched) + 50 * ms;
    struct tw_every every = {.at_ns = at_ns, .period_ns = 10 * ms, .missed = TW_MISSED_BURST};
    assert_int_equal(tw_sched_add_every(sched, &every, slow_once, NULL, NULL), 0);
    assert_int_equal(tw_sched_add_at(sched, at_ns, end_late, NULL, NULL), 0);
    for (uint64_t i = 1; i <= 15; i++) /* these take the wheel past the second call */
        assert_int_equal(tw_sched_add_at(sched, at_ns + i * 10 * ms, ignore, NULL, NULL), 0);
    pass(50 * ms);
    EVENTUALLY_TOLD(sent_tasks == 2, "%u were sent", sent_tasks);
    assert_int_equal(pthread_create(&server[0], NULL, serve, sched), 0);
    EVENTUALLY(slow_calls == 1);
    for (unsigned i = 1; i <= 15; i++) {
        pass(10 * ms);
        EVENTUALLY_TOLD(sent_tasks == 2 + i, "%u were sent", sent_tasks);
    }
    sem_post(&may_return);
    EVENTUALLY(ends_late);
    assert_int_equal(pthread_create(&server[1], NULL, serve, sched), 0);
    EVENTUALLY_TOLD(slow_calls >= 2, "%u calls", slow_calls);
    ended = true;
    sem_post(&may_end);
    tw_sched_stop(sched, 0, NULL, NULL);
    for (int i = 0; i < 2; i++)
        sem_post(&waiting);
    for (int i = 0; i < 2; i++)
        eventually_joined(server[i]);
    tw_sched_free(sched);
    sem_destroy(&waiting);
    sem_destroy(&may_return);
    sem_destroy(&may_end);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overloaded_task_does_not_starve_another_shard),
        cmocka_unit_test(a_late_call_is_made_although_its_wheel_is_ahead_of_the_timer_thread),
        cmocka_unit_test(a_late_call_does_not_wait_for_the_rest_of_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
