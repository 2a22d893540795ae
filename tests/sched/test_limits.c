/* SPDX-License-Identifier: MIT
 *
 * Limits: max_pending, memory, geometries that refuse, the end of time, and a system that has no more threads
 * or descriptors.
 */
#include "outcome.h"
#include "spread.h"
#include "support.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

static void max_pending_refuses_the_one_too_many_and_counts_right(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.max_pending = 3, .shards = 2});
    spread_keys(sched);
    uint64_t id[3];
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 3; i++)
            assert_int_equal(tw_sched_add_in(sched, 5 * ms, log_call, NULL, &id[i]), 0);
        assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, NULL), TW_EFULL);
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, NULL, NULL), TW_EFULL);
        assert_int_equal(tw_sched_key_count(sched), 0);
        assert_int_equal(tw_sched_cancel(sched, id[round % 3]), TW_CANCEL_CANCELLED);
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), 2 * ms, log_call, NULL, NULL), 0);
        assert_int_equal(tw_sched_count(sched), 3);
        advance(sched, 10 * ms);
        assert_int_equal(tw_sched_count(sched), 0);
    }
    assert_int_equal(stats_of(sched).refused, 100);
    assert_int_equal(calls, 150);
    tw_sched_free(sched);
}

static void fill_up_and_move(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    assert_int_equal(tw_sched_add_in(sched, 50 * ms, log_call, NULL, NULL),
                     0); /* the running task does not count any more */
    error_inside = tw_sched_move_in(sched, task->id, ms);
    answer = task->key.data != NULL
                 ? (enum tw_cancel) - tw_sched_key_put_in(sched, tw_text("k"), ms, log_call, NULL, NULL)
                 : 0;
}

static void a_last_call_makes_room_while_it_runs(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.max_pending = 1});
    tw_sched_add_in(sched, ms, fill_up_and_move, NULL, NULL);
    advance(sched, 10 * ms);
    assert_int_equal(calls, 1);
    assert_int_equal(error_inside, TW_EFULL);
    advance(sched, 100 * ms);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), ms, fill_up_and_move, NULL, NULL), 0);
    advance(sched, 10 * ms);
    assert_int_equal(answer, -TW_EFULL);
    tw_sched_free(sched);
}

/* Sets a long key, lets its task repeat, and sets it back. Each call may find no memory. */
static void use_keys(struct tw_sched *sched, int i)
{
    struct tw_every every = {.first_ns = 50 * ms, .period_ns = 3 * ms, .times = 2};
    struct tw_task before, task;
    char key[60];
    snprintf(key, sizeof key, "a key that has no room beside its task: %d", i);
    int set = tw_sched_key_put_in(sched, tw_text(key), 60 * ms, log_call, NULL, NULL);
    int got = tw_sched_key_get(sched, tw_text(key), &before, sizeof before);
    assert_true(set == 0 ? got == 0 : set == TW_ENOMEM);
    int repeats = tw_sched_key_put_every(sched, tw_text(key), &every, log_call, &every, NULL);
    assert_true(repeats == 0 || repeats == TW_ENOMEM);
    if (got == 0 && repeats == TW_ENOMEM) { /* then nothing has changed */
        assert_int_equal(tw_sched_key_get(sched, tw_text(key), &task, sizeof task), 0);
        assert_true(task.due_ns == before.due_ns && task.arg == before.arg);
        assert_true(task.period_ns == before.period_ns && task.left == before.left);
    }
    if (i % 3 == 0)
        tw_sched_key_cancel(sched, tw_text(key), NULL);
}

/* Makes a few calls of every kind. A call that fails must return TW_ENOMEM and have changed nothing. */
static void use_everything(struct tw_sched *sched, int n)
{
    char key[16];
    for (int i = 0; i < n; i++) {
        snprintf(key, sizeof key, "%d", i);
        use_keys(sched, i);
        uint64_t pending = tw_sched_count(sched), keys = tw_sched_key_count(sched), id;
        struct tw_every every = {.first_ns = (uint64_t)i * ms, .period_ns = 3 * ms, .times = 2};
        int error[3] = {tw_sched_add_in(sched, (uint64_t)i * 100 * ms, log_call, NULL, &id),
                        tw_sched_add_every(sched, &every, log_call, NULL, NULL),
                        tw_sched_key_put_in(sched, tw_text(key), ms, log_call, NULL, NULL)};
        for (int k = 0; k < 3; k++) {
            assert_true(error[k] == 0 || error[k] == TW_ENOMEM);
            pending += error[k] == 0;
        }
        assert_int_equal(tw_sched_count(sched), pending);
        assert_int_equal(tw_sched_key_count(sched), keys + (error[2] == 0));
        int moved = error[0] == 0 ? tw_sched_move_in(sched, id, 50000000 * ms) : 0;
        assert_true(moved == 0 || moved == TW_ENOMEM);
    }
    stats_of(sched);
}

/* A second thread, so a second shard if there is memory for it. */
static void *add_and_cancel(void *sched)
{
    uint64_t id;
    int error = tw_sched_add_in(sched, ms, log_call, NULL, &id);
    if (error == 0)
        tw_sched_cancel(sched, id);
    return NULL;
}

static void file_from_another_thread(struct tw_sched *sched)
{
    pthread_t other;
    add_and_cancel(sched);
    assert_int_equal(pthread_create(&other, NULL, add_and_cancel, sched), 0);
    eventually_joined(other);
}

static void any_allocation_may_fail(void **state)
{
    (void)state;
    struct tw_geometry shapes[] = {TW_GEOMETRY_DEFAULT, TW_GEOMETRY_GROWING(4)};
    for (int g = 0; g < 2; g++)
        for (int n = 0;; n++) {
            struct tw_sched_options options = {
                .clock = TW_SCHED_CLOCK_VIRTUAL, .memory = scarce_memory, .shards = 2, .geometry = &shapes[g]};
            struct tw_sched *sched = NULL;
            requests_left = n;
            calls = 0;
            int error = tw_sched_new(&sched, &options);
            assert_true(error == 0 || error == TW_ENOMEM);
            if (error == 0) {
                file_from_another_thread(sched);
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

/* Tasks with keys have lines of their own, so they leave those alone that are reserved. */
static void tasks_with_keys_take_nothing_that_is_reserved(void **state)
{
    (void)state;
    requests_left = 1000000;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.memory = scarce_memory});
    assert_int_equal(tw_sched_reserve(sched, 5000), 0);
    const struct tw_every every = {.period_ns = ms};
    for (int i = 0; i < 7000; i++)
        assert_int_equal(tw_sched_key_put_every(sched, BYTES_OF(i), &every, log_call, NULL, NULL), 0);
    requests_left = 0;
    for (int i = 0; i < 5000; i++)
        assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), 0);
    tw_sched_free(sched);
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
                i % 2 ? tw_sched_add_in(sched, ms, log_call, NULL, NULL)
                      : tw_sched_add_every(sched, &(struct tw_every){.period_ns = ms}, log_call, NULL, NULL),
                0);
        assert_int_equal(tw_sched_reserve(sched, 1000000), TW_ENOMEM);
        tw_sched_free(sched);
    }
}

static void a_geometry_that_refuses_is_heard(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g});
    uint64_t id;
    assert_int_equal(tw_sched_add_in(sched, 101 * ms, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), 101 * ms, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_key_count(sched), 0);
    struct tw_every every = {.first_ns = ms, .period_ns = 100 * ms + 1};
    assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_key_put_every(sched, tw_text("k"), &every, log_call, NULL, NULL), TW_ERANGE);
    assert_int_equal(tw_sched_add_in(sched, 100 * ms, log_call, NULL, &id), 0);
    assert_int_equal(tw_sched_move_in(sched, id, 101 * ms), TW_ERANGE);
    assert_int_equal(tw_sched_count(sched), 1);
    advance(sched, 100 * ms);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

static void move_too_far(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    error_inside = task->key.data == NULL
                       ? tw_sched_move_in(sched, task->id, 101 * ms)
                       : tw_sched_key_put_in(sched, tw_text("k"), 101 * ms, log_call, NULL, NULL);
}

static void a_geometry_that_refuses_is_heard_inside_callbacks(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g});
    error_inside = 0;
    tw_sched_add_in(sched, ms, move_too_far, NULL, NULL);
    advance(sched, 5 * ms);
    assert_int_equal(error_inside, TW_ERANGE);
    error_inside = 0;
    tw_sched_key_put_in(sched, tw_text("k"), ms, move_too_far, NULL, NULL);
    advance(sched, 5 * ms);
    assert_int_equal(error_inside, TW_ERANGE);
    assert_int_equal(tw_sched_key_count(sched), 0);
    tw_sched_free(sched);
}

static void a_task_that_is_ready_stays_so_when_it_cannot_be_moved(void **state)
{
    (void)state;
    struct tw_geometry g = TW_GEOMETRY_SIMPLE(100);
    struct tw_sched *sched = sched_of((struct tw_sched_options){.geometry = &g, .execute = send_later});
    uint64_t id[3];
    sent_count = 0;
    for (int i = 0; i < 3; i++)
        tw_sched_add_in(sched, ms, log_call, NULL, &id[i]);
    advance(sched, 5 * ms);
    assert_int_equal(tw_sched_move_in(sched, id[1], 101 * ms), TW_ERANGE);
    assert_int_equal(tw_sched_count(sched), 3);
    run_sent(sched);
    assert_int_equal(calls, 3);
    stats_of(sched);
    tw_sched_free(sched);
}

static void many_tasks_have_room(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    enum { MANY = TW_DEBUG > 1 ? 10000 : 40000 }; /* each call then checks all of them */
    uint64_t *id = calloc(MANY, sizeof *id);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tw_sched_add_in(sched, ms, log_call, NULL, &id[i]), 0);
    assert_true(stats_of(sched).memory / MANY <= 96);
    for (int i = 0; i < MANY; i++)
        assert_int_equal(tw_sched_cancel(sched, id[i]), TW_CANCEL_CANCELLED);
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
    tw_sched_add_at(sched, UINT64_MAX, log_call, NULL, NULL);
    tw_sched_add_every(sched, &every, log_call, NULL, NULL);
    tw_sched_add_at(sched, UINT64_MAX - 3855, log_call, NULL, NULL);
    assert_int_equal(tw_sched_advance(sched, UINT64_MAX), 0);
    assert_int_equal(calls, 1);
    assert_int_equal(tw_sched_count(sched), 2);
    tw_sched_free(sched);
}

static struct tw_sched *refilled;
static bool original[100];

/* A `visit` that adds a task which is due before all others. */
static void refill(void *arg, const struct tw_task *task)
{
    (void)arg;
    uintptr_t number = (uintptr_t)task->arg;
    if (number >= sizeof original)
        return;
    original[number] = true;
    tw_sched_add_at(refilled, ms, log_call, (void *)(uintptr_t)1000, NULL);
}

static void a_drain_that_adds_hands_over_what_was_there(void **state)
{
    (void)state;
    for (uint32_t shards = 1; shards < 4; shards++) {
        refilled = sched_of((struct tw_sched_options){.shards = shards});
        memset(original, 0, sizeof original);
        for (uintptr_t i = 0; i < sizeof original; i++)
            tw_sched_add_at(refilled, (1000 + i * i) * ms, log_call, (void *)i, NULL);
        assert_true(try_drain(refilled, refill, NULL) >= (int64_t)sizeof original);
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
        assert_int_equal(tw_sched_count(sched), 0);
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
    for (int policy = TW_MISSED_COALESCE; policy <= TW_MISSED_BURST; policy++) {
        struct tw_sched *sched = lazy_sched();
        struct tw_every every = {
            .first_ns = ms, .period_ns = UINT64_MAX / 2 + 9, .missed = (enum tw_missed)policy};
        assert_int_equal(tw_sched_add_every(sched, &every, log_call, NULL, NULL), 0);
        advance(sched, UINT64_MAX - 5 * ms);
        run_sent(sched);
        advance(sched, ms);
        run_sent(sched);
        assert_true(calls <= 2);
        assert_int_equal(tw_sched_count(sched), 1);
        tw_sched_free(sched);
    }
}

/* The number of system calls that will still succeed before one fails. 0: the next call fails. -1: no call
 * fails. */
static int threads_left = -1, descriptors_left = -1, timers_tried;

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
    timers_tried++;
    if (descriptors_left != 0)
        return __real_timerfd_create(clock, flags);
    errno = EMFILE;
    return -1;
}

int __real_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags);
int __wrap_eventfd(unsigned count, int flags)
{
    if (descriptors_left < 0)
        return __real_eventfd(count, flags);
    errno = EMFILE;
    return -1;
}

static void a_scheduler_without_threads_says_so_and_can_try_again(void **state)
{
    (void)state;
    for (int good = 0; good < 3; good++) {
        struct tw_sched *sched = NULL;
        assert_int_equal(tw_sched_new(&sched, &(struct tw_sched_options){.workers = 2}), 0);
        threads_left = good;
        assert_int_equal(tw_sched_add_in(sched, 3600000 * ms, log_call, NULL, NULL), TW_ESYSTEM);
        threads_left = good;
        assert_int_equal(tw_sched_key_put_in(sched, tw_text("k"), 3600000 * ms, log_call, NULL, NULL),
                         TW_ESYSTEM);
        assert_int_equal(tw_sched_count(sched), 0);
        threads_left = -1;
        assert_int_equal(tw_sched_add_in(sched, 3600000 * ms, log_call, NULL, NULL), 0);
        tw_sched_free(sched);
    }
}

static void a_scheduler_without_descriptors_says_so(void **state)
{
    (void)state;
    struct tw_sched *sched = NULL;
    for (int clock = TW_SCHED_CLOCK_AUTO; clock < TW_SCHED_CLOCK_VIRTUAL; clock++)
        for (descriptors_left = 0; descriptors_left < 2; descriptors_left++) {
            struct tw_sched_options options = {.clock = (enum tw_sched_clock)clock};
            timers_tried = 0;
            assert_int_equal(tw_sched_new(&sched, &options), TW_ESYSTEM);
            assert_int_equal(timers_tried, 1); /* the clock is there, so no other is taken */
        }
    descriptors_left = -1;
    assert_null(sched);
}

static void stop_then_move(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    tw_sched_stop(sched, 0, NULL, NULL);
    error_inside = tw_sched_move_in(sched, task->id, ms);
}

static void a_callback_cannot_file_itself_again_after_the_stop(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    tw_sched_add_in(sched, ms, stop_then_move, NULL, NULL);
    advance(sched, 10 * ms);
    assert_int_equal(error_inside, TW_ESTOPPED);
    assert_int_equal(calls, 1);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(max_pending_refuses_the_one_too_many_and_counts_right),
        cmocka_unit_test(a_last_call_makes_room_while_it_runs),
        cmocka_unit_test(any_allocation_may_fail),
        cmocka_unit_test(what_was_reserved_cannot_fail),
        cmocka_unit_test(tasks_with_keys_take_nothing_that_is_reserved),
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
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
