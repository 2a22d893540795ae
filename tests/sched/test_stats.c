/* SPDX-License-Identifier: MIT
 *
 * The virtual clock, hooks, statistics.
 */
#include "support.h"

static void a_virtual_clock_does_not_go_back_and_others_are_not_moved(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched(), *real = NULL;
    advance(sched, 10 * ms);
    assert_int_equal(tw_sched_advance(sched, 10 * ms - 1), TW_EINVAL);
    assert_int_equal(tw_sched_now(sched), 10 * ms);
    assert_int_equal(stats_of(sched).clock, TW_SCHED_CLOCK_VIRTUAL);
    tw_sched_free(sched);
    assert_int_equal(tw_sched_new(&real, NULL), 0);
    assert_int_equal(tw_sched_advance(real, UINT64_MAX), TW_EINVAL);
    tw_sched_free(real);
}

static bool all_are(const unsigned char *bytes, size_t n, unsigned char value)
{
    while (n > 0 && bytes[n - 1] == value)
        n--;
    return n == 0;
}

enum { HELD = 0xa5 }; /* in each byte before the call */

/* A struct of `known` bytes is in the first `size` bytes of `mine`. The bytes after these are as they were. */
static void assert_filled(const unsigned char *mine, size_t room, size_t size, const void *whole, size_t known)
{
    size_t both = size < known ? size : known;
    assert_memory_equal(mine, whole, both);
    assert_true(all_are(mine + both, size - both, 0));
    assert_true(all_are(mine + size, room - size, HELD));
}

/* A program that is older than the library has a shorter struct. A program that is newer has a longer one. */
static void the_caller_says_the_size_of_its_struct(void **state)
{
    (void)state;
    struct {
        struct tw_sched_info stats;
        struct tw_task task;
    } mine;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 1});
    struct tw_task task;
    tw_sched_key_put_in(sched, tw_text("k"), 5 * ms, log_call, &mine, NULL);
    assert_int_equal(tw_sched_key_get(sched, tw_text("k"), &task, sizeof task), 0);
    struct tw_sched_info stats; /* not stats_of(): a struct by value may lose its padding, which is 0 */
    tw_sched_stats(sched, &stats, sizeof stats);
    const size_t gap = offsetof(struct tw_task, missed) + sizeof task.missed,
                 end = offsetof(struct tw_task, key);
    for (size_t size = 0; size <= sizeof mine; size++) {
        memset(&mine, HELD, sizeof mine);
        tw_sched_stats(sched, &mine.stats, size);
        assert_filled((unsigned char *)&mine, sizeof mine, size, &stats, sizeof stats);
    }
    for (size_t size = 0; size <= sizeof mine; size++) {
        struct tw_task *mine_too = (struct tw_task *)(void *)&mine;
        memset(&mine, HELD, sizeof mine);
        assert_int_equal(size % 2 ? tw_sched_get(sched, task.id, mine_too, size)
                                  : tw_sched_key_get(sched, tw_text("k"), mine_too, size),
                         0);
        if (size > gap) /* no member is there, so nobody says what the bytes are */
            memcpy((char *)&mine + gap, (char *)&task + gap, (size < end ? size : end) - gap);
        assert_filled((unsigned char *)&mine, sizeof mine, size, &task, sizeof task);
    }
    tw_sched_free(sched);
}

static void next_is_the_time_of_the_next_work(void **state)
{
    (void)state;
    struct tw_sched *sched = sched_of((struct tw_sched_options){.shards = 2});
    assert_true(tw_sched_next_bound(sched) == TW_NEVER);
    tw_sched_add_in(sched, 50 * ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_next_bound(sched), 50 * ms);
    tw_sched_free(sched);
    sched = lazy_sched();
    tw_sched_add_in(sched, 5 * ms, log_call, NULL, NULL);
    advance(sched, 7 * ms);
    tw_sched_add_every(sched, &(struct tw_every){.period_ns = ms, .missed = TW_MISSED_BURST}, log_call, NULL,
                       NULL);
    advance(sched, 50 * ms);
    run_sent(sched); /* the repeating task is ready again */
    assert_int_equal(tw_sched_next_bound(sched), tw_sched_now(sched));
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
    atomic_store(&sched->virtual_ns, tw_sched_now(sched) + 3 * ms); /* as if it had run for 3 ms */
}

static void late_and_slow_callbacks_are_told_and_counted(void **state)
{
    (void)state;
    struct tw_sched_options options = {
        .late_ns = 2 * ms, .on_late = on_late, .slow_ns = 2 * ms, .on_slow = on_slow, .hook_arg = &late_told};
    struct tw_sched *sched = sched_of(options);
    late_told = slow_told = 0;
    tw_sched_add_in(sched, ms, take_three_ms, NULL, NULL);
    tw_sched_add_in(sched, ms, log_call, NULL, NULL);
    tw_sched_add_in(sched, 20 * ms, log_call, NULL, NULL);
    advance(sched, 50 * ms);
    assert_int_equal(late_told, 1);
    assert_int_equal(slow_told, 1);
    struct tw_sched_info stats = stats_of(sched);
    assert_int_equal(stats.late, 1);
    assert_int_equal(stats.slow, 1);
    assert_int_equal(stats.run_max_ns, 3 * ms);
    assert_int_equal(stats.late_max_ns, 3 * ms);
    tw_sched_free(sched);
}

static void move_itself_to_0(struct tw_sched *sched, const struct tw_task *task)
{
    log_call(sched, task);
    if (task->left > 0)
        error_inside = task->key.data == NULL ? tw_sched_move_at(sched, task->id, 0)
                                              : tw_sched_key_move_at(sched, task->key, 0);
}

/* Tasks for points that passed an hour ago. Each call starts a tick after the call that filed or moved it. */
static void a_point_that_has_passed_is_late_from_its_filing_on(void **state)
{
    (void)state;
    struct tw_sched *sched =
        sched_of((struct tw_sched_options){.late_ns = ms, .on_late = on_late, .hook_arg = &late_told});
    struct tw_every every = {.at_ns = 1, .period_ns = 1000 * ms, .times = 2};
    uint64_t id;
    late_told = 0;
    error_inside = 1;
    advance(sched, 3600000 * ms);
    tw_sched_add_at(sched, 0, log_call, NULL, NULL);
    tw_sched_key_put_at(sched, tw_text("set"), 0, log_call, NULL, NULL);
    tw_sched_add_in(sched, ms, log_call, NULL, &id);
    assert_int_equal(tw_sched_move_at(sched, id, 0), 0);
    tw_sched_key_put_in(sched, tw_text("moved"), ms, log_call, NULL, NULL);
    assert_int_equal(tw_sched_key_move_at(sched, tw_text("moved"), 0), 0);
    for (int policy = TW_MISSED_COALESCE; policy <= TW_MISSED_BURST; policy++) {
        every.missed = (enum tw_missed)policy;
        tw_sched_add_every(sched, &every, log_call, NULL, NULL);
        tw_sched_key_put_every(sched, (struct tw_bytes){&policy, sizeof policy}, &every, log_call, NULL, NULL);
    }
    every = (struct tw_every){.first_ns = 5 * ms, .period_ns = 1000 * ms, .times = 2};
    tw_sched_add_every(sched, &every, move_itself_to_0, NULL, &id);
    tw_sched_key_put_every(sched, tw_text("itself"), &every, move_itself_to_0, NULL, NULL);
    assert_int_equal(tw_sched_move_at(sched, id, 1), 0);
    advance(sched, 3000 * ms);
    assert_int_equal(error_inside, 0);
    assert_int_equal(calls, 4 + 3 * 4 + 4);
    assert_int_equal(stats_of(sched).late, 0);
    assert_int_equal(stats_of(sched).late_max_ns, ms);
    assert_int_equal(late_told, 0);
    tw_sched_free(sched);
}

static void percentiles_are_right_to_three_per_cent(void **state)
{
    (void)state;
    struct tw_sched *sched = plain_sched();
    assert_int_equal(tw_sched_late_percentile(sched, 0.5), 0);
    for (uint64_t i = 0; i < 1000;
         i++) /* due i/1000 of a tick after a tick began: late by the rest of the tick */
        tw_sched_add_at(sched, 10 * ms + 1 + i * 1000, log_call, NULL, NULL);
    advance(sched, 50 * ms);
    for (double share = 0.01; share < 1; share += 0.07) {
        double wanted = share * 1e6, got = (double)tw_sched_late_percentile(sched, share);
        assert_true(got >= wanted - 1000 && got <= wanted * 1.04 + 1000);
    }
    uint64_t least = tw_sched_late_percentile(sched, 0);
    assert_true(least <= 1000);
    assert_true(stats_of(sched).late_max_ns >= stats_of(sched).late_p99_ns);
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
        tw_sched_add_in(sched, (uint64_t)i * ms, log_call, NULL, NULL);
    advance(sched, 3 * ms);
    tw_sched_prometheus(sched, emit, NULL);
    assert_non_null(strstr(prometheus, "# TYPE tickwheel_added_total counter\ntickwheel_added_total 7\n"));
    assert_non_null(
        strstr(prometheus, "# HELP tickwheel_skipped_total Periods that TW_MISSED_SKIP passed over.\n"));
    assert_non_null(strstr(prometheus, "\ntickwheel_lateness_seconds{quantile=\"0.99\"} 0.001"));
    for (char *line = strtok(prometheus, "\n"); line != NULL; line = strtok(NULL, "\n"))
        assert_true(strncmp(line, "# HELP tickwheel_", 17) == 0 ||
                    strncmp(line, "# TYPE tickwheel_", 17) == 0 || strncmp(line, "tickwheel_", 10) == 0);
    tw_sched_free(sched);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_virtual_clock_does_not_go_back_and_others_are_not_moved),
        cmocka_unit_test(the_caller_says_the_size_of_its_struct),
        cmocka_unit_test(next_is_the_time_of_the_next_work),
        cmocka_unit_test(late_and_slow_callbacks_are_told_and_counted),
        cmocka_unit_test(a_point_that_has_passed_is_late_from_its_filing_on),
        cmocka_unit_test(percentiles_are_right_to_three_per_cent),
        cmocka_unit_test(statistics_can_be_read_by_prometheus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
