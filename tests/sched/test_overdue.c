/* SPDX-License-Identifier: MIT
 *
 * Repeating tasks that take longer than their period, on a real clock: their calls are overdue all the time.
 * They must not keep other tasks waiting, and nobody may forget them.
 */
#include "support.h"

#include <semaphore.h>
#include <stdatomic.h>
#include <time.h>

static void rest(long n)
{
    nanosleep(&(struct timespec){n / 1000, n % 1000 * 1000000}, NULL);
}

static struct tw_sched *real_sched(struct tw_sched_options options)
{
    struct tw_sched *sched = NULL;
    assert_int_equal(tw_sched_new(&sched, &options), 0);
    return sched;
}

static void ignore(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
}

static void rest_three(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    rest(3);
}

static sem_t noted;
static _Atomic uint64_t worst_ns;

static void note_lateness(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    if (task->late_ns > worst_ns)
        worst_ns = task->late_ns;
    sem_post(&noted);
}

/* Files tasks for half a second, one second and one and a half from now. */
static void *file_three(void *sched)
{
    uint64_t now_ns = tw_sched_now(sched);
    for (uint64_t i = 1; i <= 3; i++)
        assert_int_equal(tw_sched_at(sched, now_ns + i * 500 * ms, note_lateness, NULL, NULL), 0);
    return NULL;
}

/* The repeating task is two periods further behind after each of its calls. The tasks of the other shard come
 * as late as a few of its calls take. */
static void an_overloaded_task_does_not_starve_another_shard(void **state)
{
    (void)state;
    struct tw_sched *sched = real_sched((struct tw_sched_options){.workers = 1, .shards = 2});
    struct tw_every every = {.period_ns = ms};
    pthread_t other;
    worst_ns = 0;
    sem_init(&noted, 0, 0);
    assert_int_equal(tw_sched_every(sched, &every, rest_three, NULL, NULL), 0);
    assert_int_equal(pthread_create(&other, NULL, file_three, sched), 0);
    pthread_join(other, NULL);
    assert_int_equal(tw__sched_made(sched), 2);
    for (int i = 0; i < 3; i++)
        sem_wait(&noted);
    assert_true(worst_ns < 700 * ms); /* a task that kept its tick would make the last one 3 s late */
    tw_sched_free(sched);
    sem_destroy(&noted);
}

static _Atomic uint64_t second_call_ns; /* from when it was due */
static _Atomic unsigned slow_calls;

static void slow_once(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched;
    unsigned number = ++slow_calls;
    if (number == 1)
        rest(200);
    else if (number == 2)
        second_call_ns = task->late_ns;
}

/* While the call is under way, a thread files a task at the end of the wheel's range. So it has to bring the
 * wheel to the present, beyond the tick up to which the worker may start tasks. */
static void an_overdue_call_is_made_although_its_wheel_is_ahead_of_the_timer_thread(void **state)
{
    (void)state;
    struct tw_geometry short_range = TW_SIMPLE(10000);
    struct tw_sched *sched =
        real_sched((struct tw_sched_options){.workers = 1, .shards = 1, .geometry = &short_range});
    struct tw_every every = {.first_ns = 20 * ms, .period_ns = 10 * ms};
    slow_calls = 0;
    second_call_ns = 0;
    assert_int_equal(tw_sched_after(sched, 5000 * ms, ignore, NULL, NULL), 0);
    assert_int_equal(tw_sched_every(sched, &every, slow_once, NULL, NULL), 0);
    rest(120);
    assert_int_equal(tw_sched_after(sched, 9950 * ms, ignore, NULL, NULL), 0);
    for (int i = 0; i < 3000 && slow_calls < 2; i++)
        rest(1);
    assert_true(slow_calls >= 2);
    assert_true(second_call_ns < 2000 * ms);
    tw_sched_free(sched);
}

/* ---- an executor of two threads -------------------------------------------------------------------------- */

static sem_t waiting;
static _Atomic bool ended;

static void count_sent(void *arg, struct tw_sched *sched, uint64_t id)
{
    (void)arg, (void)sched, (void)id;
    sem_post(&waiting);
}

static void *serve(void *sched)
{
    while (!ended) {
        sem_wait(&waiting);
        tw_sched_run_some(sched, 100);
    }
    return NULL;
}

static void take_two_seconds(struct tw_sched *sched, const struct tw_task *task)
{
    (void)sched, (void)task;
    rest(2000);
}

/* The first thread takes both tasks. When the repeating task's first call returns, its second call is overdue.
 * The other thread comes then, and makes it while the first thread is in the slow callback. */
static void an_overdue_call_does_not_wait_for_the_rest_of_the_batch(void **state)
{
    (void)state;
    pthread_t server[2];
    sem_init(&waiting, 0, 0);
    ended = false;
    slow_calls = 0;
    second_call_ns = 0;
    struct tw_sched *sched = real_sched((struct tw_sched_options){.shards = 1, .execute = count_sent});
    uint64_t at_ns = tw_sched_now(sched) + 50 * ms;
    struct tw_every every = {.at_ns = at_ns, .period_ns = 10 * ms};
    assert_int_equal(tw_sched_every(sched, &every, slow_once, NULL, NULL), 0);
    assert_int_equal(tw_sched_at(sched, at_ns, take_two_seconds, NULL, NULL), 0);
    for (uint64_t i = 1; i <= 15; i++) /* these take the wheel past the second call */
        assert_int_equal(tw_sched_at(sched, at_ns + i * 10 * ms, ignore, NULL, NULL), 0);
    rest(100); /* both were sent */
    assert_int_equal(pthread_create(&server[0], NULL, serve, sched), 0);
    rest(300);
    assert_int_equal(pthread_create(&server[1], NULL, serve, sched), 0);
    for (int i = 0; i < 5000 && slow_calls < 2; i++)
        rest(1);
    assert_true(slow_calls >= 2);
    assert_true(second_call_ns < 1500 * ms);
    ended = true;
    tw_sched_stop(sched, 0, NULL, NULL);
    for (int i = 0; i < 2; i++)
        sem_post(&waiting);
    for (int i = 0; i < 2; i++)
        pthread_join(server[i], NULL);
    tw_sched_free(sched);
    sem_destroy(&waiting);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_overloaded_task_does_not_starve_another_shard),
        cmocka_unit_test(an_overdue_call_is_made_although_its_wheel_is_ahead_of_the_timer_thread),
        cmocka_unit_test(an_overdue_call_does_not_wait_for_the_rest_of_the_batch),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
