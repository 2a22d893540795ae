/* SPDX-License-Identifier: MIT
 *
 * The system's clock is set while a store runs. The program is linked with --wrap for the calls that read the
 * clock and the timer: a step moves both, as the kernel does it.
 */
#include "running.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/timerfd.h>
#include <unistd.h>

enum { HOUR_MS = 3600000 };

int __real_clock_gettime(clockid_t id, struct timespec *now);
int __real_timerfd_create(int id, int flags);
int __real_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
ssize_t __real_read(int fd, void *to, size_t size);
int __wrap_clock_gettime(clockid_t id, struct timespec *now);
int __wrap_timerfd_create(int id, int flags);
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old);
ssize_t __wrap_read(int fd, void *to, size_t size);

static atomic_llong offset_s;   /* of the clock that the store sees */
static atomic_llong stopped_ms; /* the time at which that clock stands still; 0: it goes */
static atomic_int timer = -1;
static atomic_bool stepped, quietly;

int __wrap_clock_gettime(clockid_t id, struct timespec *now)
{
    int error = __real_clock_gettime(id, now);
    long long at_ms = atomic_load(&stopped_ms);
    if (id == CLOCK_REALTIME)
        now->tv_sec += atomic_load(&offset_s);
    if (id == CLOCK_REALTIME && at_ms != 0)
        *now = (struct timespec){.tv_sec = (time_t)(at_ms / 1000), .tv_nsec = (long)(at_ms % 1000) * 1000000};
    return error;
}

int __wrap_timerfd_create(int id, int flags)
{
    int fd = __real_timerfd_create(id, flags);
    if (id == CLOCK_REALTIME) /* the scheduler has a timer of its own, on another clock */
        atomic_store(&timer, fd);
    return fd;
}

/* The timer must be absolute, on the clock that is set, and be told of steps. */
int __wrap_timerfd_settime(int fd, int flags, const struct itimerspec *at, struct itimerspec *old)
{
    struct itimerspec real = *at;
    if (fd != atomic_load(&timer))
        return __real_timerfd_settime(fd, flags, at, old);
    assert_int_equal(flags, TFD_TIMER_ABSTIME | TFD_TIMER_CANCEL_ON_SET);
    real.it_value.tv_sec -= atomic_load(&offset_s);
    if (real.it_value.tv_sec <= 0)
        real.it_value = (struct timespec){.tv_nsec = 1};
    int error = __real_timerfd_settime(fd, flags, &real, old);
    if (!atomic_exchange(&quietly, false))
        return error;
    errno = ECANCELED;
    return -1;
}

ssize_t __wrap_read(int fd, void *to, size_t size)
{
    if (fd != atomic_load(&timer) || !atomic_exchange(&stepped, false))
        return __real_read(fd, to, size);
    errno = ECANCELED;
    return -1;
}

/* Sets the clock, and wakes who waits for the timer, as the kernel does. */
static void step(long long seconds)
{
    static const struct itimerspec at_once = {.it_value = {.tv_nsec = 1}};
    atomic_fetch_add(&offset_s, seconds);
    atomic_store(&stepped, true);
    assert_int_equal(__real_timerfd_settime(atomic_load(&timer), TFD_TIMER_ABSTIME, &at_once, NULL), 0);
}

/* Sets the clock while nobody waits for the timer: the next call that sets it tells of the step. */
static void step_quietly(long long seconds)
{
    atomic_fetch_add(&offset_s, seconds);
    atomic_store(&quietly, true);
}

static struct tw_store *store_of(void **state)
{
    return ((struct fixture *)*state)->store;
}

static void a_clock_that_is_set_forwards_makes_tasks_due(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    put(store, "near", tw_store_now() + 120000);
    put(store, "far", tw_store_now() + 2 * HOUR_MS);
    put(store, "later", tw_store_now() + 9 * HOUR_MS);
    start_with(store, &calls);
    usleep(30000);
    assert_int_equal(calls.count, 0);
    step(3 * HOUR_MS / 1000);
    wait_for_calls(&calls, 2);
    assert_true(strcmp(calls.text, "near/1 far/1") == 0 || strcmp(calls.text, "far/1 near/1") == 0);
    usleep(30000);
    assert_int_equal(calls.count, 2);
    assert_int_equal(tw_store_stop(store), 0);
}

static void a_clock_that_is_set_back_lets_tasks_wait(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    put(store, "x", tw_store_now() + 150);
    put(store, "y", tw_store_now() + 2 * HOUR_MS);
    start_with(store, &calls);
    usleep(30000);
    step(-HOUR_MS / 1000);
    usleep(300000);
    assert_int_equal(calls.count, 0);
    put(store, "now", tw_store_now() + 20);
    assert_string_equal(wait_for_calls(&calls, 1), "now/1");
    step(HOUR_MS / 1000);
    assert_string_equal(wait_for_calls(&calls, 2), "now/1 x/1");
    usleep(30000);
    assert_int_equal(calls.count, 2);
    assert_int_equal(tw_store_stop(store), 0);
}

/* A job that is under way meanwhile is neither lost nor called twice. */
static void a_step_leaves_jobs_alone(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    calls.answer = TW_RETRY;
    calls.answers = 1;
    struct tw_delayed task = {
        .queue = "q", .id = "x", .id_size = 1, .due_ms = tw_store_now(), .tries = 2, .backoff_ms = 20};
    assert_int_equal(tw_store_put(store, &task, 0), 1);
    start_with(store, &calls);
    wait_for_calls(&calls, 1);
    step(-HOUR_MS / 1000);
    usleep(30000);
    step(2 * HOUR_MS / 1000);
    usleep(30000);
    assert_int_equal(calls.count, 1);
    unblock(&calls);
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 x/2");
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(tw_store_count(store, "q", false), 0);
}

/* Tasks beyond the ten minutes that are loaded come in time, and nothing happens in between. */
static void the_window_moves_on(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    struct tw_store_stats stats;
    calls_init(&calls);
    uint64_t now_ms = tw_store_now();
    put(store, "a", now_ms + 5000);
    put(store, "b", now_ms + 16 * 60000);
    start_with(store, &calls);
    usleep(30000);
    step(6);
    wait_for_calls(&calls, 1);
    wait_for_answers(store, 1);
    step(8 * 60);
    usleep(100000);
    tw_store_stats(store, &stats);
    assert_int_equal(stats.loaded, 1);
    assert_int_equal(calls.count, 1);
    step(8 * 60);
    assert_string_equal(wait_for_calls(&calls, 2), "a/1 b/1");
    assert_int_equal(tw_store_stop(store), 0);
}

/* The window ends ten minutes after it was loaded. A task that is put for its last millisecond is in it. */
static void a_task_at_the_edge_of_the_window_is_called(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    uint64_t now_ms = tw_store_now();
    atomic_store(&stopped_ms, (long long)now_ms);
    assert_int_equal(tw_store_handle(store, "q", 1, note_call, &calls), 0); /* one after the other */
    assert_int_equal(tw_store_start(store, NULL), 0);
    put(store, "first", 5);
    usleep(30000);
    atomic_fetch_add(&stopped_ms, 1); /* the tick in which it comes */
    wait_for_calls(&calls, 1);
    for (uint64_t i = 0; i < 3; i++) {
        char id[2] = {(char)('a' + i), 0};
        put(store, id, now_ms + 599999 + i);
    }
    usleep(30000);
    atomic_store(&stopped_ms, (long long)now_ms + 600002);
    step(0);
    assert_string_equal(wait_for_calls(&calls, 4), "first/1 a/1 b/1 c/1");
    assert_int_equal(tw_store_stop(store), 0);
    atomic_store(&stopped_ms, 0);
}

/* The next call of a task lies beyond the window when it is known, and within it later. */
static void a_call_beyond_the_window_comes_once(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    uint64_t now_ms = tw_store_now();
    struct tw_delayed task = {
        .queue = "q", .id = "x", .id_size = 1, .due_ms = now_ms, .period_ms = 20 * 60000, .times = 2};
    assert_int_equal(tw_store_put(store, &task, 0), 1);
    start_with(store, &calls);
    wait_for_calls(&calls, 1);
    wait_for_answers(store, 1);
    step(12 * 60);
    usleep(50000);
    step(9 * 60);
    wait_for_calls(&calls, 2);
    wait_for_answers(store, 2);
    usleep(20000);
    assert_int_equal(tw_store_stop(store), 0);
    assert_int_equal(calls.count, 2);
    assert_int_equal(tw_store_count(store, "q", false), 0);
}

static void a_step_is_noticed_when_the_timer_is_set(void **state)
{
    struct tw_store *store = store_of(state);
    struct calls calls;
    calls_init(&calls);
    calls.block = true;
    put(store, "far", tw_store_now() + HOUR_MS);
    put(store, "x", 5);
    start_with(store, &calls);
    wait_for_calls(&calls, 1);
    step_quietly(2 * HOUR_MS / 1000);
    unblock(&calls);
    assert_string_equal(wait_for_calls(&calls, 2), "x/1 far/1");
    wait_for_answers(store, 2);
    usleep(10000);
    assert_false(atomic_load(&quietly));
    assert_int_equal(tw_store_stop(store), 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, store_setup, store_teardown)

int main(void)
{
    static const struct CMUnitTest tests[] = {
        TEST(a_clock_that_is_set_forwards_makes_tasks_due),
        TEST(a_clock_that_is_set_back_lets_tasks_wait),
        TEST(a_step_leaves_jobs_alone),
        TEST(the_window_moves_on),
        TEST(a_task_at_the_edge_of_the_window_is_called),
        TEST(a_call_beyond_the_window_comes_once),
        TEST(a_step_is_noticed_when_the_timer_is_set),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
